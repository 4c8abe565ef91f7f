"""What hostile peers do to an honest one, here and at stock waitress with a constant answer of the
same size; run by hand, such as `python tests/bench_peers.py --seconds 40`.

Peers, servers and the honest client share this machine, so figures are for comparing."""

import argparse
import contextlib
import logging
import os
import re
import resource
import socket
import sqlite3
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import waitress
from bench_http import HOME, process, seed

SILENT, DRIPPING, UNREAD = 500, 400, 100
LIST = b"GET /comments?url=/p/1&limit=100 HTTP/1.1\r\nHost: x\r\n\r\n"


def stock() -> None:
    """Serves one answer to everything, as waitress does it by itself."""
    body = Path("answer").read_bytes()

    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "application/json; charset=utf-8")])
        return [body]

    logging.getLogger("waitress").addHandler(logging.NullHandler())  # said, but not printed
    server = waitress.create_server(app, listen="127.0.0.1:0")
    print(f"http://127.0.0.1:{server.effective_port}", flush=True)
    server.run()


def levels(pid: int) -> str:
    """Memory and descriptors."""
    memory = re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
    return f"{int(memory[1]) // 1024 if memory else 0} MB {len(os.listdir(f'/proc/{pid}/fd'))} fd"


def asked(address: tuple[str, int], timeout: float = 5) -> float:
    """Seconds until a new, honest client has its whole answer; 0 if it gets none."""
    begun = time.monotonic()
    with contextlib.suppress(OSError), socket.create_connection(address, timeout) as client:
        client.sendall(LIST.replace(b"Host", b"Connection: close\r\nHost"))
        if b"".join(iter(lambda: client.recv(1 << 20), b"")).startswith(b"HTTP/1.1 200"):
            return time.monotonic() - begun
    return 0


def closed(peer: socket.socket) -> bool:
    try:
        return peer.recv(1 << 16) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


class Drips(threading.Thread):
    """Sends a byte a second on each of its connections, and notes when each is cut."""

    def __init__(self, peers: list[socket.socket]) -> None:
        super().__init__(daemon=True)
        self.peers, self.over, self.begun = peers, False, time.monotonic()
        self.cuts: list[float] = []

    def run(self) -> None:
        while not self.over:
            for peer in list(self.peers):
                with contextlib.suppress(OSError):
                    peer.send(b"x")
                if closed(peer):
                    self.cuts.append(time.monotonic() - self.begun)
                    self.peers.remove(peer)
            time.sleep(1)


def connected(address: tuple[str, int], number: int, raw: bytes = b"") -> list[socket.socket]:
    """So many peers, or as many as the system takes for a server that does not."""
    peers: list[socket.socket] = []
    with contextlib.suppress(OSError):
        while len(peers) < number:
            peers.append(socket.create_connection(address, 1))
            peers[-1].sendall(raw)
            peers[-1].setblocking(False)
    return peers


def honest(address: tuple[str, int], seconds: float) -> str:
    """How an honest client fares, with a new connection ten times a second."""
    took, ends_at = [], time.monotonic() + seconds
    while time.monotonic() < ends_at:
        took.append(asked(address))
        time.sleep(0.1)
    good = sorted(each * 1000 for each in took if each)
    if len(good) < 2:
        return f"{len(good):5} of {len(took):4}{'-':>10}{'-':>10}"
    p99 = statistics.quantiles(good, n=100, method="inclusive")[98]
    return f"{len(good):5} of {len(took):4}{statistics.median(good):10.1f}{p99:10.1f}"


def row(name: str, pid: int, work: Callable[[], str]) -> None:
    before = levels(pid)
    done = work()
    print(f"{name:34}{done:52}{before:>16}{levels(pid):>16}", flush=True)


def attacks(name: str, pid: int, address: tuple[str, int], seconds: float) -> None:
    """Prints the lines of one server."""

    def crowd() -> str:
        silent = connected(address, SILENT)
        drips = Drips(connected(address, DRIPPING, b"GET /comments?url="))
        drips.start()
        fared = honest(address, seconds)
        drips.over = True
        drips.join()
        cuts = f"{min(drips.cuts):.0f} to {max(drips.cuts):.0f} s" if drips.cuts else "never"
        for peer in silent + drips.peers:
            peer.close()
        return f"{fared}  {len(drips.cuts)} cut: {cuts}"

    def unread() -> str:
        peers = connected(address, UNREAD, LIST)
        fared = honest(address, seconds)
        for peer in peers:
            peer.close()
        return fared

    row(f"{name}: nobody else", pid, lambda: honest(address, seconds / 4))
    row(f"{name}: {SILENT} silent, {DRIPPING} drip", pid, crowd)
    time.sleep(2)
    row(f"{name}: {UNREAD} do not read", pid, unread)
    time.sleep(2)
    row(f"{name}: all gone", pid, lambda: honest(address, seconds / 4))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=40, help="for each attack")
    parser.add_argument("--stock", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.stock:
        stock()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4000)), hard))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = "[server]\nlisten=127.0.0.1:0\n[captcha]\nprovider=none\n"
        (folder / "commentd.ini").write_text(settings)
        seed(folder / "commentd.db", 2000)
        with closing(sqlite3.connect(folder / "commentd.db")) as db, db:
            db.execute("UPDATE comment SET html = ?", ("x" * 40_000,))  # lists of 4 MB
        print(f"{'':34}    served    p50 ms    p99 ms{'':18}{'before':>16}{'after':>16}")
        with process(folder, str(HOME / "commentd.py")) as (pid, url):
            address = ("127.0.0.1", int(url.rpartition(":")[2]))
            with socket.create_connection(address) as client:
                client.sendall(LIST.replace(b"Host", b"Connection: close\r\nHost"))
                answer = b"".join(iter(lambda: client.recv(1 << 20), b""))
            (folder / "answer").write_bytes(answer.partition(b"\r\n\r\n")[2])
            attacks("commentd", pid, address, chosen.seconds)
        with process(folder, __file__, "--stock") as (pid, url):
            attacks("waitress", pid, ("127.0.0.1", int(url.rpartition(":")[2])), chosen.seconds)


if __name__ == "__main__":
    main()
