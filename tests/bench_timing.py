"""Whether the time of an answer tells what is known of an address, over the real server:

    python tests/bench_timing.py [--samples 5000] [--rounds 1000]

Each pair of requests differs in what is known of the address alone, and is asked in turns. Each
sample is about another address, from another client, and the clock goes on by a minute, so that no
limit is met. Printed are both medians, their difference, and p of the rank test of Mann and
Whitney: how often chance alone parts two like samples as far. Below 0.01 the times tell something:
run it where nothing else runs. Passwords are hashed with few
`--rounds`, so that what is beside the hash is not lost in its noise."""

import argparse
import http.client
import itertools
import json
import logging
import math
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from ipaddress import IPv4Address
from itertools import groupby
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from commentd import App, Config, World, drain, hashed, make_app, make_server, password_scheme

PASSWORD = "right horse"
WARM = 20  # that are not counted


def rank_test(one: list[float], other: list[float]) -> float:
    """p of Mann and Whitney's U, both sides, by the normal curve, ties corrected."""
    n, m = len(one), len(other)
    both = sorted([(t, 0) for t in one] + [(t, 1) for t in other])
    ranks = ties = below = 0.0
    for _, group in groupby(both, key=lambda pair: pair[0]):
        equal = [of for _, of in group]
        ranks += equal.count(0) * (below + (len(equal) + 1) / 2)
        ties += len(equal) ** 3 - len(equal)
        below += len(equal)
    u, all = ranks - n * (n + 1) / 2, n + m
    spread = math.sqrt(n * m / 12 * (all + 1 - ties / (all * (all - 1))))
    return math.erfc(abs(u - n * m / 2) / spread / math.sqrt(2)) if spread else 1.0


@contextmanager
def served(folder: str, rounds: int) -> Iterator[tuple[App, int]]:
    config = Config(database_path=f"{folder}/commentd.db", captcha_provider="none")
    here = {"server_listen": "127.0.0.1:0", "server_trusted_proxy": ("127.0.0.1/32",)}
    clock, stopping = itertools.count(int(time.time()), 61), threading.Event()
    world = World(now=lambda: next(clock), send=lambda *_: None)
    with closing(make_app(replace(config, **here), world, rounds=rounds)) as app:
        server = make_server(app)

        def serve() -> None:
            while not stopping.is_set():
                server.asyncore.loop(timeout=1, count=1, map=server._map, use_poll=True)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield app, int(server.effective_port)
        finally:
            stopping.set()
            server.pull_trigger()
            thread.join()
            drain(server)
            server.trigger.close()


def people(app: App, many: int) -> None:
    """Readers, admins, blocked ones, and addresses where a registration waits."""
    house, now = app.house, int(time.time())
    with house.store.writing():
        for number, kind in itertools.product(
            range(many), ("reader", "blocks", "admins", "waits_")
        ):
            email = f"{kind}{number:06d}@example.com"
            stored = hashed(PASSWORD, password_scheme(house.rounds, house.key, email))
            if kind != "waits_":
                role, blocked = "admin" if kind == "admins" else "user", kind == "blocks"
                account = house.store.make_admin(email, kind, stored, now)
                house.store.set_rights(account.id, role, blocked, less=False)
                continue
            waits = {"email": email, "nickname": kind, "password": stored, "code": "x"}
            times = {"created_at": now, "expires_at": now + 10**9}
            asked = {"request_id": f"r{number}", "client": "c"}
            house.store.add_registration("", **waits, **asked, **times)


PAIRS = {
    "login, a reader": ("/auth/login", "reader", "wrong"),
    "login, a blocked one with the password": ("/auth/login", "blocks", PASSWORD),
    "login, a registration that waits": ("/auth/login", "waits_", "wrong"),
    "verify, a reader": ("/auth/verify", "reader", "wrong"),
    "verify, a registration that waits": ("/auth/verify", "waits_", "wrong"),
    "register, a reader": ("/auth/register", "reader", "other"),
    "register, a registration that waits": ("/auth/register", "waits_", "other"),
    "register, a blocked one": ("/auth/register", "blocks", "other"),
    "admin's login, an admin": ("/admin/login", "admins", "wrong"),
}


def asked(line: http.client.HTTPConnection, path: str, email: str, password: str, ip: str) -> float:
    """Milliseconds until the answer is there, on a connection that is kept."""
    form = {"email": email, "password": password, "nickname": "Lu", "captcha_token": "x"}
    body = json.dumps(form | {"token": "000000"}).encode()
    headers = {"Content-Type": "application/json", "X-Forwarded-For": ip}
    begun = time.perf_counter()
    line.request("POST", path, body, headers)
    answer = line.getresponse()
    answer.read()
    took = (time.perf_counter() - begun) * 1000
    assert answer.status in (200, 400, 401), (path, answer.status)
    return took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=5000, help="of each of a pair")
    parser.add_argument("--rounds", type=int, default=1000, help="of PBKDF2")
    args, told, chance = parser.parse_args(), 0, Random(1)
    logging.disable()
    print(f"{args.samples} samples each, {args.rounds} rounds; milliseconds\n")
    print(f"{'what':42} {'known':>8} {'nobody':>8} {'apart':>7} {'p':>7}")
    with tempfile.TemporaryDirectory() as folder, served(folder, args.rounds) as (app, port):
        people(app, args.samples + WARM)
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for name, (path, kind, password) in PAIRS.items():
            times: dict[str, list[float]] = {kind: [], "nobody": []}
            for number in range(args.samples + WARM):
                for who in chance.sample([*times], 2):
                    # Nobody is another one for each pair.
                    host = "example.com" if who == kind else f"{len(name):06d}.com"[-11:]
                    email = f"{who}{number:06d}@{host}"
                    ip = str(IPv4Address(0x2D000000 + chance.randrange(2**24)))
                    times[who].append(asked(line, path, email, password, ip))
            known, nobody = (found[WARM:] for found in times.values())
            medians, p = [statistics.median(t) for t in (known, nobody)], rank_test(known, nobody)
            apart = (medians[0] - medians[1]) / medians[1]
            print(
                f"{name:42} {medians[0]:8.3f} {medians[1]:8.3f} {apart:7.1%} {p:7.4f}", flush=True
            )
            told += p < 0.01
        line.close()
    print(f"\n{told} of {len(PAIRS)} tell something")
    return 0


if __name__ == "__main__":
    sys.exit(main())
