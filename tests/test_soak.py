"""The service under mixed load, with a fault a minute. What was acknowledged is there at the
end, nothing but the fault itself makes a request fail, and what the service holds comes back to
where it was. An hour of it is `pytest tests/test_soak.py --seconds 3600`."""

import http.client
import os
import random
import sqlite3
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import commentd
from support.campaign import Campaign
from support.database import assert_whole
from support.service import (
    LOOPS,
    PARTS_OF_REQUESTS,
    Answer,
    Service,
    Start,
    held_descriptors,
    memory,
    request,
    reset_connection,
    services,
)
from support.serving import until

pytestmark = [pytest.mark.slow, pytest.mark.long]

resource = pytest.importorskip("resource", reason="this system does not limit descriptors")

CLIENTS, PAGES = 6, [f"/{number}/" for number in range(9)]
READ = [
    f"/comments?url={PAGES[0]}&view=threads&sort=likes",
    "/comments/latest",
    "/embed.js",
    "/pages?" + "&".join(f"url={page}" for page in PAGES),
    "/feed.atom",
    "/captcha",
    f"/thread?url={PAGES[0]}",
    "/health",
    *(f"/comments?url={page}" for page in PAGES),
]
GONE = 0  # in place of a status: the connection ended without an answer


class Failed(Exception):
    """A request failed by a fault, and may or may not have been done."""


class ObservedService:
    """The service, and what the clients observe."""

    def __init__(self, start: Start, folder: Path) -> None:
        self.begin, self.folder, self.starts = start, folder, 0
        self.closing, self.wrong = threading.Event(), list[BaseException]()
        self.excuses: list[list[Any]] = []  # [what, from, until]
        self.counts: Counter[str] = Counter()
        self.start()

    def start(self) -> None:
        """Starts the service, by turns with the response cache and without."""
        self.starts += 1
        loop = [LOOPS["fast"], LOOPS["stock"]][self.starts % 2]
        server = {"listen": "127.0.0.1:0", "public_url": "http://127.0.0.1:1", **loop}
        self.service: Service = self.begin(self.folder, server=server)
        assert self.service.ask("GET", "/health").status == 200

    @contextmanager
    def excused(self, *what: int) -> Iterator[None]:
        """Meanwhile these statuses are expected."""
        excuse = [what, time.monotonic(), float("inf")]
        self.excuses.append(excuse)
        yield
        excuse[2] = time.monotonic()

    def is_excused(self, status: int, begun_at: float) -> bool:
        return any(status in what and end >= begun_at for what, _, end in self.excuses)

    def seen(self, what: str, more: int = 1) -> None:
        """Waits until this count has grown."""
        wanted = self.counts[what] + more
        until(lambda: self.counts[what] >= wanted or self.wrong)


class Client(threading.Thread):
    """A client that reads, writes, edits and deletes comments."""

    def __init__(self, observed: ObservedService, number: int, seed: str, pause: float) -> None:
        super().__init__()
        self.observed, self.number, self.pause = observed, number, pause
        self.chance = random.Random(f"{seed} {number}")
        # Of each comment all texts that it may have, "" once it may be deleted: more than one of
        # them after a request without a response.
        self.written: dict[int, set[str]] = {}
        self.tokens: dict[int, str] = {}

    def run(self) -> None:
        acts = [self.read, self.write, self.change]
        while not self.observed.closing.wait(self.chance.expovariate(1) * self.pause):
            with suppress(Failed):
                try:
                    self.chance.choices(acts, [50, 20, 10])[0]()
                except AssertionError as error:
                    self.observed.wrong.append(error)
                    return

    def ask(self, method: str, target: str, **how: Any) -> Answer:
        begun_at = time.monotonic()
        agent = f"User-Agent: client {self.number}"
        try:
            response = self.observed.service.ask(method, target, agent, **how)
            status, reason = response.status, response.body.decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            status, reason = GONE, repr(error)
        self.observed.counts["requests"] += 1
        if status in (GONE, 503):
            assert self.observed.is_excused(status, begun_at), f"{method} {target} {reason}"
            assert not status or int(response.headers["Retry-After"]) > 0
            self.observed.counts["refused" if status else "cut off"] += 1
            self.observed.closing.wait(0.1)
            raise Failed
        assert status == 200, (target, status, reason)
        return response

    def post(self, target: str, method: str = "POST", **body: Any) -> Any:
        done = self.ask(method, target, body={"captcha_token": "x", **body}).json
        self.observed.counts["writes"] += 1
        return done

    def read(self) -> None:
        self.ask("GET", self.chance.choice(READ))

    def write(self) -> None:
        content = f"{self.number}-{self.chance.getrandbits(64)}"
        content += " word" * self.chance.randint(0, 99)
        body = {"page_url": self.chance.choice(PAGES), "nickname": "Ann", "content": content}
        posted = self.post("/comments", **body)
        self.written[posted["comment"]["id"]] = {content}
        self.tokens[posted["comment"]["id"]] = posted["edit_token"]
        self.observed.counts["comments"] += 1

    def change(self) -> None:
        there = [number for number, texts in self.written.items() if "" not in texts]
        if there:
            number = self.chance.choice(there[-50:])
            edits = self.chance.random() < 0.7
            content = f"edited {self.chance.getrandbits(64)}" if edits else ""
            self.written[number] |= {content}
            form = {"content": content} if edits else {}
            method = "PATCH" if edits else "DELETE"
            self.post(f"/comments/{number}", method, edit_token=self.tokens[number], **form)
            self.written[number] = {content}


# The faults


def killed(observed: ObservedService) -> None:
    with observed.excused(GONE):
        observed.service.process.kill()
        observed.service.process.wait()
        assert_whole(str(observed.service.path))
        observed.start()


def stopped(observed: ObservedService) -> None:
    with observed.excused(GONE):
        assert observed.service.stop() == 0
        observed.start()


def locked(observed: ObservedService) -> None:
    """Another program holds the database for longer than writers wait."""
    with closing(sqlite3.connect(observed.service.path, isolation_level=None, timeout=20)) as other:
        with observed.excused(503):
            other.execute("BEGIN EXCLUSIVE")
            observed.seen("refused")
        other.execute("ROLLBACK")


@contextmanager
def limited(observed: ObservedService, what: int, most: int) -> Iterator[None]:
    pid = observed.service.process.pid
    soft, hard = resource.prlimit(pid, what)
    resource.prlimit(pid, what, (most, hard))
    yield
    resource.prlimit(pid, what, (soft, hard))


def full(observed: ObservedService) -> None:
    """No file may grow."""
    with observed.excused(503), limited(observed, resource.RLIMIT_FSIZE, 0):
        observed.seen("refused", 3)


def few_descriptors(observed: ObservedService) -> None:
    """No connection can be taken and no file be opened."""
    with observed.excused(GONE, 503):
        with limited(observed, resource.RLIMIT_NOFILE, 3):
            waiting = [observed.service.sent(request("GET", "/health")) for _ in range(20)]
        for peer in waiting:
            peer.close()
        until(lambda: observed.service.ask("GET", "/health").status == 200)


def crowded(observed: ObservedService) -> None:
    """Many clients are silent, slow or leave."""
    parts = [*PARTS_OF_REQUESTS.values(), b""]
    crowd = [observed.service.sent(parts[number % len(parts)]) for number in range(300)]
    observed.seen("requests", 50)
    for peer in crowd[:200]:
        reset_connection(peer)
    observed.seen("requests", 50)
    for peer in crowd[200:]:
        peer.close()


def commanded(observed: ObservedService) -> None:
    for word in ("backup", "recount", "export"):
        program = [sys.executable, commentd.__file__, "--config", "commentd.ini", word]
        done = subprocess.run(program, cwd=observed.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


RESTARTS = [killed, stopped]
FAULTS = [*RESTARTS, locked, full, few_descriptors, crowded, commanded]


# The soak


@pytest.fixture
def observed(tmp_path: Path) -> Iterator[ObservedService]:
    with services(tmp_path) as start:
        yield ObservedService(start, tmp_path)


def held(service: Service) -> dict[str, int]:
    process = Path(f"/proc/{service.process.pid}")
    files = 0
    for link in (process / "fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile
            files += os.readlink(link).startswith("/")
    return {"MiB": memory(service), "threads": len([*(process / "task").iterdir()]), "files": files}


def test_nothing_is_lost_and_nothing_grows_under_faults(
    observed: ObservedService, campaign: Campaign
) -> None:
    minute, pause = (60.0, 0.1) if campaign.seconds else (0.0, 0.0)
    clients = [Client(observed, n, f"{campaign.seed}", pause) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    used: list[dict[str, int]] = []
    try:
        for chance in campaign.rounds(len(FAULTS)):
            ends_at, number = time.monotonic() + minute, campaign.last
            # Restarts come in the first cycle alone, so that one process is seen growing old.
            known = FAULTS if number < len(FAULTS) else FAULTS[len(RESTARTS) :]
            cycle = random.Random(f"{campaign.seed} {number // len(known)}")
            fault = cycle.sample(known, len(known))[number % len(known)]
            observed.seen("writes", chance.randint(5, 20))
            fault(observed)
            observed.seen("writes", 10)
            until(lambda: time.monotonic() >= ends_at or observed.wrong, minute + 1)  # noqa: B023
            used = [*used, held(observed.service)] if fault not in RESTARTS else []
            campaign.measured(f"MiB after {fault.__name__}", memory(observed.service))
            campaign.measured("threads", held(observed.service)["threads"])
            campaign.measured("minutes in one process", len(used))
            assert not observed.wrong, (
                fault.__name__,
                *observed.wrong,
                observed.service.output[-2000:],
            )
    finally:
        observed.closing.set()
        for client in clients:
            client.join()
    assert not observed.wrong
    until(lambda: held_descriptors(observed.service) == 1)
    if len(used) > 20:  # minutes in one process
        quarter = len(used) // 4
        for what in used[0]:
            numbers = [each[what] for each in used]
            early = statistics.median(numbers[quarter : 2 * quarter])
            assert statistics.median(numbers[-quarter:]) <= early * 1.05 + 2, what
    killed(observed)
    assert observed.service.stop() == 0
    campaign.figures.update(observed.counts)
    with closing(sqlite3.connect(observed.service.path)) as db:
        there = dict(db.execute("SELECT id, content FROM comment"))
    for client in clients:  # the row of a deleted comment goes after a while
        assert [i for i, texts in client.written.items() if there.get(i, "") not in texts] == []
