"""Whether the time of a response tells what is known of an email address, over the real server:

    python tests/bench_timing.py [--samples 5000] [--rounds 1000]

Each pair of requests differs in what is known of the email address alone, and is asked in turns.
Each sample is about another email address, from another client, and the clock goes on by a minute,
so that no rate limit is met. Printed are both medians and their difference. Run it where nothing
else runs: then a difference of more than 5 % tells something. Passwords are hashed with few
`--rounds`, so that the rest is not lost in the noise of the hash."""

import argparse
import http.client
import itertools
import json
import logging
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from ipaddress import IPv4Address
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import blog
import inside

from commentd import App, Config, World, make_app

PASSWORD = "right horse"
WARM = 20  # that are not counted
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


def add_people(app: App, many: int) -> None:
    """Readers, admins, blocked ones, and email addresses where a registration waits."""
    account = """INSERT INTO account (email, nickname, password, role, blocked, created_at)
        VALUES (?, 'Lu', ?, ?, ?, 1)"""
    registration = """INSERT INTO registration
        (request_id, email, nickname, password, code, client, created_at, expires_at)
        VALUES (?1, ?1, 'Lu', ?2, 'x', 'c', ?3, ?3 + 1000000000)"""
    now = int(time.time())
    with closing(sqlite3.connect(inside.database_path(app))) as db, db:
        for number, kind in itertools.product(
            range(many), ("reader", "blocks", "admins", "waits_")
        ):
            email = f"{kind}{number:06d}@example.com"
            stored = inside.stored_password(app, email, PASSWORD)
            role = "admin" if kind == "admins" else "user"
            if kind == "waits_":
                db.execute(registration, (email, stored, now))
            else:
                db.execute(account, (email, stored, role, kind == "blocks"))


def asked(line: http.client.HTTPConnection, path: str, email: str, password: str, ip: str) -> float:
    """Milliseconds until the response is there, on a connection that is kept."""
    form = {"email": email, "password": password, "nickname": "Lu", "captcha_token": "x"}
    body = json.dumps(form | {"token": "000000"}).encode()
    headers = {"Content-Type": "application/json", "X-Forwarded-For": ip}
    begun = time.perf_counter()
    line.request("POST", path, body, headers)
    with line.getresponse() as response:
        response.read()
        took = (time.perf_counter() - begun) * 1000
        assert response.status in (200, 400, 401), (path, response.status)
    return took


def measured(address: str, samples: int) -> Iterator[tuple[str, list[float], list[float]]]:
    """Each pair, with the times of what is known and of what is not."""
    chance, port = Random(1), urlsplit(address).port
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as line:
        for name, (path, kind, password) in PAIRS.items():
            times: dict[str, list[float]] = {kind: [], "nobody": []}
            for number in range(samples + WARM):
                for who in chance.sample([*times], 2):
                    # Nobody is another one for each pair.
                    host = "example.com" if who == kind else f"{len(name):06d}.com"[-11:]
                    email = f"{who}{number:06d}@{host}"
                    ip = str(IPv4Address(0x2D000000 + chance.randrange(2**24)))
                    times[who].append(asked(line, path, email, password, ip))
            yield name, times[kind][WARM:], times["nobody"][WARM:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=5000, help="of each of a pair")
    parser.add_argument("--rounds", type=int, default=1000, help="of PBKDF2")
    args = parser.parse_args()
    logging.disable()
    print(f"{args.samples} samples each, {args.rounds} rounds; milliseconds\n")
    print(f"{'what':42} {'known':>8} {'nobody':>8} {'apart':>7}")
    clock, apart_pairs = itertools.count(int(time.time()), 61), 0
    world = World(now=lambda: next(clock), send=lambda *_, **server: None)
    with tempfile.TemporaryDirectory() as folder:
        config = Config(
            server_listen="127.0.0.1:0",
            server_trusted_proxy=("127.0.0.1/32",),
            database_path=f"{folder}/commentd.db",
            captcha_provider="none",
        )
        with closing(make_app(config, world, rounds=args.rounds)) as app:
            add_people(app, args.samples + WARM)
            with blog.service(app) as address:
                for name, known, nobody in measured(address, args.samples):
                    medians = statistics.median(known), statistics.median(nobody)
                    apart = medians[0] / medians[1] - 1
                    figures = f"{medians[0]:8.3f} {medians[1]:8.3f} {apart:7.1%}"
                    print(f"{name:42} {figures}", flush=True)
                    apart_pairs += abs(apart) > 0.05
    print(f"\n{apart_pairs} of {len(PAIRS)} differ by more than 5 %")


if __name__ == "__main__":
    main()
