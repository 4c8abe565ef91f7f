"""Whether one client that floods the service holds up the others, as a Markdown table; run by hand:
`python tests/bench/bench_flood.py` for this checkout, or with the folders of several, which take
turns.

The flood opens many connections and asks on each for the longest list there is. It reads `whole`
responses, leaves them `unread`, or has sent eight requests ahead on each connection (`pipelined`).
It comes from one IPv4 address, or through a proxy from one IPv4 address or one IPv6 /64. All of it
stays on the loopback interface. Another client meanwhile reads a list that is cached, likes and
comments, on a new connection each time. Its waits are in milliseconds. A request that was reset or
had no response within twenty seconds is a failure."""

import argparse
import contextlib
import http.client
import itertools
import json
import multiprocessing
import re
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import Any

HOME = Path(__file__).resolve().parents[2]
TEXT = "评论" * 950
CONNECTIONS = [0, 350, 900]  # without a flood: what the machine alone adds
WAYS = ["whole", "unread", "pipelined"]
ORIGINS = ["direct", "proxied", "proxied /64"]
LONG_LIST = "/comments?url=/a&limit=100&view=threads"
CACHED_LIST = "/comments?url=/b"
MOST_SECONDS, PATIENCE, PAUSE = 30, 20, 0.1
SETTINGS = """[server]
listen = 127.0.0.1:0
{proxy}
[database]
path = {folder}/commentd.db
[captcha]
provider = none
[limits]
enabled = no
"""


class Service:
    """The program of a checkout, with a hundred long comments on one page."""

    def __init__(self, checkout: Path, folder: Path, *, is_proxied: bool) -> None:
        proxy = "trusted_proxy = 127.0.0.1" if is_proxied else ""
        settings = folder / "commentd.ini"
        settings.write_text(SETTINGS.format(proxy=proxy, folder=folder))
        self.log = folder / "log"
        command = [sys.executable, str(checkout / "commentd.py"), "--config", str(settings)]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        while not (found := re.search(r" on http://127\.0\.0\.1:(\d+)$", self.said, re.M)):
            if self.process.poll() is not None:
                raise SystemExit(self.said)
            time.sleep(0.05)
        self.port = int(found[1])
        for page, number in itertools.chain(itertools.product("a", range(100)), [("b", 0)]):
            comment(self.port, f"/{page}", f"{number} {TEXT}", {})

    @property
    def said(self) -> str:
        return self.log.read_text()

    @property
    def memory(self) -> int:
        """The most that the process has had resident, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+)", status)
        return int(found[1]) // 1024 if found else 0

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def ask(port: int, method: str, target: str, form: Any, headers: dict[str, str]) -> None:
    """One request on a connection of its own; an error if it is not served."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(connection):
        body = json.dumps(form) if form else None
        headers = headers | ({"Content-Type": "application/json"} if form else {})
        connection.request(method, target, body, headers)
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise ConnectionError(f"{response.status} {content[:100]!r}")


def comment(port: int, page: str, text: str, headers: dict[str, str]) -> None:
    form = {"page_url": page, "nickname": "Ann", "content": text, "captcha_token": "x"}
    ask(port, "POST", "/comments", form, headers)


class Reader(threading.Thread):
    """Does one thing again and again, and notes how long each took."""

    def __init__(self, port: int, work: str, ends_at: float, headers: dict[str, str]) -> None:
        super().__init__()
        self.port, self.work, self.ends_at, self.headers = port, work, ends_at, headers
        self.waits: list[float] = []
        self.failures: list[str] = []

    def do(self, number: int) -> None:
        if self.work == "list":
            ask(self.port, "GET", CACHED_LIST, None, self.headers)
        elif self.work == "like":
            ask(self.port, "POST", "/page/like", {"page_url": "/liked"}, self.headers)
        else:
            comment(self.port, "/c", f"Comment {number}", self.headers)

    def run(self) -> None:
        for number in itertools.count():
            began = time.monotonic()
            if began > self.ends_at:
                return
            try:
                self.do(number)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
            self.waits.append(1000 * (time.monotonic() - began))
            time.sleep(PAUSE)


def flood(port: int, origin: str, way: str, size: int, ends_at: float) -> None:
    """Opens all connections, sends, and begins again after four seconds."""
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    numbers = itertools.count()
    while time.monotonic() < ends_at:
        with selectors.DefaultSelector() as selector, contextlib.ExitStack() as opened:
            for index in range(size):
                peer = opened.enter_context(socket.socket())
                if origin == "direct":
                    peer.bind(("127.0.0.66", 0))
                peer.setblocking(False)
                peer.connect_ex(("127.0.0.1", port))
                selector.register(peer, selectors.EVENT_READ | selectors.EVENT_WRITE, index)
            round_ends_at = min(ends_at, time.monotonic() + 4)
            while time.monotonic() < round_ends_at:
                for key, events in selector.select(0.1):
                    with contextlib.suppress(OSError):
                        serve(selector, key, events, origin, way, numbers)


def serve(selector: Any, key: Any, events: int, origin: str, way: str, numbers: Any) -> None:
    """Sends on a connection that is open, and reads what came if the flood reads."""
    peer = key.fileobj
    if events & selectors.EVENT_WRITE:
        client = {"proxied": "192.0.2.66", "proxied /64": f"2001:db8:1:2::{key.data:x}"}
        forwarded = f"X-Forwarded-For: {client[origin]}\r\n" if origin in client else ""
        raw = b""
        for _ in range(8 if way == "pipelined" else 1):
            target = f"{LONG_LIST}&x={next(numbers)}"
            raw += f"GET {target} HTTP/1.1\r\nHost: x\r\n{forwarded}\r\n".encode()
        peer.send(raw)
    if way != "whole":
        selector.unregister(peer)
    elif events & selectors.EVENT_WRITE:
        selector.modify(peer, selectors.EVENT_READ, key.data)
    elif not peer.recv(1 << 20):
        selector.unregister(peer)


def measured(checkout: Path, origin: str, way: str, size: int, seconds: float) -> list[str]:
    """The cells of a line: median and worst wait for each work, failures, memory."""
    is_proxied = origin != "direct"
    headers = {"X-Forwarded-For": "198.51.100.7"} if is_proxied else {}
    with tempfile.TemporaryDirectory() as folder:
        service = Service(checkout, Path(folder), is_proxied=is_proxied)
        try:
            ends_at = time.monotonic() + seconds
            arguments = (service.port, origin, way, size, ends_at)
            attacker = multiprocessing.Process(target=flood, args=arguments)
            attacker.start()
            readers = [
                Reader(service.port, work, ends_at, headers) for work in ("list", "like", "comment")
            ]
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            attacker.join()
            cells = [f"{median(each.waits):.0f} / {max(each.waits):.0f}" for each in readers]
            failures = [failure for each in readers for failure in each.failures]
            requests = sum(len(each.waits) for each in readers)
            for failure in sorted(set(failures)):
                print("   ", failures.count(failure), failure, file=sys.stderr)
            return [*cells, f"{len(failures)} of {requests}", str(service.memory)]
        finally:
            service.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[HOME])
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--connections", type=int, nargs="*", default=CONNECTIONS)
    parser.add_argument("--ways", nargs="*", default=WAYS, choices=WAYS)
    parser.add_argument("--origins", nargs="*", default=ORIGINS, choices=ORIGINS)
    options = parser.parse_args()
    if max(options.connections) > 1000 or options.seconds > MOST_SECONDS:
        parser.error(f"at most 1000 connections and {MOST_SECONDS} seconds")
    heading = ["flood", "program", "list", "like", "comment", "failures", "most MB"]
    print("|", " | ".join(heading), "|\n|", " | ".join(["---"] * len(heading)), "|")
    places = itertools.product(options.origins, options.ways, options.connections)
    for origin, way, size in places:
        for _, checkout in itertools.product(range(options.turns), options.checkouts):
            cells = measured(checkout.resolve(), origin, way, size, options.seconds)
            name = checkout.resolve().name
            print("|", " | ".join([f"{origin}, {way}, {size}", name, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
