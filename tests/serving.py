"""Servers in this process, on real sockets: turned by hand, or run by a thread.

Beside `inside.py` the one place that knows how `commentd.py` serves. Tests meet what comes over the
sockets."""

import contextlib
import functools
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from conftest import Outside
from waitress.parser import HTTPRequestParser

import commentd
from commentd import App, World, drain, make_app, make_server, turns_of

T = TypeVar("T")
Turn = Callable[[float], object]
LIMITS = {
    "connections": "CROWD",
    "waiting": "MOST_WAITING",
    "untaken": "UNTAKEN",
    "cached": "READY_BYTES",
}


def until(ready: Callable[[], T], seconds: float = 20) -> T:
    """What a condition gives as soon as it is true."""
    ends_at = time.monotonic() + seconds
    while not (found := ready()):
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(0.005)
    return found


def limit(patch: pytest.MonkeyPatch, **limits: int) -> None:
    """Other limits of the server than those in force."""
    for name, value in limits.items():
        patch.setattr(commentd, LIMITS[name], value)


def break_reading(patch: pytest.MonkeyPatch) -> None:
    """From now on the server fails while it reads a request."""

    def fail(parser: Any, data: bytes) -> int:
        raise RuntimeError("a fault of ours")

    for parser in (HTTPRequestParser, commentd.StrictParser):
        patch.setattr(parser, "received", fail)


def turned(app: App, *, fast: bool) -> tuple[Any, Turn]:
    """A server that does nothing until it is turned."""
    server = make_server(app)
    config = replace(app.house.config, server_fast=fast)
    return server, turns_of(server, replace(app.house, config=config))


def instead_of_serving(
    patch: pytest.MonkeyPatch, world: World, use: Callable[[App], object]
) -> None:
    """`commentd` starts its service, lets it be used, and ends."""

    def serve(app: App, server: Any) -> None:
        commentd.greet(app, server)
        try:
            use(app)
        finally:
            server.close()
            server.trigger.close()
            server.task_dispatcher.shutdown(timeout=5)

    made = functools.partial(make_app, world=world, rounds=1)
    patch.setattr(commentd, "make_app", made)
    patch.setattr(commentd, "serve_until_stopped", serve)


def gone(peer: socket.socket) -> bool:
    """Whether the other side has closed, whatever it sent before."""
    peer.setblocking(False)
    try:
        while peer.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


class Ground:
    """A server that is turned by hand, and its peers. Nothing moves unless it is told to."""

    def __init__(self, server: Any, turn: Turn, outside: Outside) -> None:
        self.server, self.turn, self.outside = server, turn, outside
        self.peers: list[socket.socket] = []

    def until(self, ready: Callable[[], Any]) -> Any:
        def turned() -> Any:
            self.turn(0.005)
            return ready()

        return until(turned)

    def come(self, raw: bytes = b"", ip: str = "127.0.0.1") -> socket.socket:
        """A peer that has sent this, and was heard."""
        known = set(self.server.active_channels)
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.peers.append(peer)
        peer.bind((ip, 0))
        peer.connect(("127.0.0.1", int(self.server.effective_port)))
        self.until(lambda: self.server.active_channels.keys() - known)
        self.say(peer, raw)
        return peer

    def channel(self, peer: socket.socket) -> Any:
        name = peer.getsockname()
        return next(c for c in self.server.active_channels.values() if c.addr == name)

    def say(self, peer: socket.socket, raw: bytes) -> None:
        if raw:
            channel = self.channel(peer)
            channel.last_activity = 0
            peer.sendall(raw)
            self.until(lambda: channel.last_activity and not channel.requests)

    def untaken(self, peer: socket.socket) -> int:
        """How many bytes wait for a peer to read."""
        return int(self.channel(peer).total_outbufs_len)

    def take(self, peer: socket.socket) -> None:
        """The peer reads all that is there for it."""
        self.until(lambda: not gone(peer) and not self.untaken(peer))

    def sweep(self, now: float) -> list[bool]:
        """Who is still there."""
        commentd.sweep(self.server, now)
        names = {channel.addr for channel in self.server.active_channels.values()}
        return [peer.getsockname() in names for peer in self.peers]

    def look_for_silence(self, now: float) -> None:
        """What the server does each second, at a time of its own clock."""
        self.outside.time += 1
        self.server.maintenance(now)
        for _ in range(3):
            self.turn(0)

    def close(self) -> None:
        for peer in self.peers:
            peer.close()
        drain(self.server, 1)
        self.server.trigger.close()


class Queue(Ground):
    """A server with one thread that reads and one that writes. It notes by their User-Agent whom it
    begins to work for, and goes on when the gate is open."""

    def __init__(self, app: App, outside: Outside, *, fast: bool) -> None:
        super().__init__(*turned(app, fast=fast), outside)
        self.gate, self.served = threading.Event(), list[str]()
        for pool in (self.server.task_dispatcher, self.server.task_dispatcher.readers):
            pool.set_thread_count(1)
            until(lambda pool=pool: len(pool.threads) == 1)

        def application(environ: Any, start: Any) -> Any:
            self.served.append(environ["HTTP_USER_AGENT"])
            self.gate.wait()
            return app(environ, start)

        application.house = app.house  # type: ignore[attr-defined]
        self.server.application = application

    def ask(self, raw: bytes, ip: str = "127.0.0.1") -> None:
        """Sends a request, and waits until the server has read it."""
        peer = self.come(ip=ip)
        channel = self.channel(peer)
        peer.sendall(raw)
        self.until(lambda: channel.requests)
        self.until(lambda: self.served)  # its thread works for the first one

    def head(self, peer: socket.socket) -> bytes:
        """What has come on a line, as soon as it has a whole head."""
        received = bytearray()
        peer.setblocking(False)

        def whole() -> bool:
            with contextlib.suppress(BlockingIOError):
                received.extend(peer.recv(65536))
            return b"\r\n\r\n" in received

        self.until(whole)
        return bytes(received)

    def answers(self) -> list[int]:
        """The statuses on all lines, in the order in which they were opened."""
        self.gate.set()
        return [int(self.head(peer)[9:12]) for peer in self.peers]

    def close(self) -> None:
        self.gate.set()
        super().close()


class Front:
    """A server and the thread that runs it: with the response cache if it is `fast`."""

    def __init__(self, app: App, *, fast: bool) -> None:
        self.app = app
        self.server, self.turn = turned(app, fast=fast)
        self.noted = threading.Condition()
        self.turns = self.worked = 0
        self.lines: list[socket.socket] = []

        def counted(environ: Any, start_response: Any) -> Any:
            self.worked += 1
            return app(environ, start_response)

        counted.house = app.house  # type: ignore[attr-defined]
        self.server.application = counted
        self.thread, self.stopping = threading.Thread(target=self.run), False
        self.thread.start()

    def run(self) -> None:
        while not self.stopping:
            self.turn(0.1)
            with self.noted:
                self.turns += 1
                self.noted.notify_all()

    def wait(self, ready: Callable[[], bool]) -> None:
        with self.noted:
            assert self.noted.wait_for(ready, 20), "waited in vain"

    @property
    def channels(self) -> list[Any]:
        return [*self.server.active_channels.values()]

    @property
    def untaken(self) -> int:
        """How many bytes wait for peers to read."""
        return sum(channel.total_outbufs_len for channel in self.channels)

    @property
    def kept(self) -> int:
        """How many bytes the response cache keeps."""
        answers = self.server.loop.ready.answers
        return sum(len(question) + answer.size for question, answer in [*answers.items()])

    @property
    def kept_bytes(self) -> bytes:
        return b"".join(answer.data for answer in self.server.loop.ready.answers.values())

    @property
    def remembered(self) -> int:
        """How many bytes it remembers of spellings of a question, and of who asked."""
        loop = self.server.loop
        spellings = sum(map(len, loop.ready.questions.spellings))
        return spellings + sum(sum(map(len, who)) for who in loop.viewers)

    def connect(self, room: int = 0) -> socket.socket:
        """A line, with little room for what is not read."""
        line = socket.socket()
        self.lines.append(line)
        if room:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        line.settimeout(20)
        line.connect(("127.0.0.1", int(self.server.effective_port)))
        if room:
            name = line.getsockname()
            self.wait(lambda: name in [channel.addr for channel in self.channels])
            (channel,) = [channel for channel in self.channels if channel.addr == name]
            channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
        return line

    def answers(self, *questions: bytes) -> list[bytes]:
        """To questions on one line, each of which waits for the answer before it."""
        answers = []
        with self.connect() as line:
            for question in questions:
                line.sendall(question)
                answers.append(undated(next_answer(line, question)))
                # What was sent is kept a moment later.
                self.wait(lambda: not any(channel.requests for channel in self.channels))
        return answers

    def ask(self, question: bytes) -> bytes:
        return self.answers(question)[0]

    def ready(self, *questions: bytes) -> list[bytes]:
        """The answers to questions that nobody works for."""
        worked = self.worked
        answers = self.answers(*questions)
        assert self.worked == worked, "somebody worked"
        return answers

    def stream(self, *pieces: bytes) -> bytes:
        """All that comes for bytes that come in pieces, until it is closed."""
        received = b""
        with self.connect() as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(OSError):  # it may be refused before it was all sent
                for piece in pieces:
                    line.sendall(piece)
                    self.look()
                line.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while data := line.recv(1 << 16):
                    received += data
        return undated(received)

    def look(self) -> None:
        """Waits until the server has looked at all that was sent."""
        for _ in range(2):
            turns = self.turns
            self.server.pull_trigger()
            self.wait(lambda: self.turns > turns)  # noqa: B023

    def close(self) -> None:
        self.stopping = True
        self.server.pull_trigger()
        self.thread.join()
        for line in self.lines:
            line.close()
        drain(self.server, 1)
        self.server.trigger.close()


@contextlib.contextmanager
def fronts_of(*apps: App) -> Iterator[tuple[Front, Front]]:
    """A fast server and a stock one, of one service or of two."""
    with contextlib.ExitStack() as stack:
        fast, stock = Front(apps[0], fast=True), Front(apps[-1], fast=False)
        stack.callback(stock.close)
        stack.callback(fast.close)
        yield fast, stock


def undated(answer: bytes) -> bytes:
    return re.sub(rb"(?m)^Date: .{29}\r\n", b"", answer)


def next_answer(line: socket.socket, question: bytes = b"") -> bytes:
    """The bytes of the next answer on a line, and no more."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += line.recv(1) or pytest.fail("closed")
    length = re.search(rb"(?m)^Content-Length: (\d+)\r$", answer)
    left = int(length[1]) if length and not question.startswith(b"HEAD") else 0
    while left:
        data = line.recv(left) or pytest.fail("closed")
        answer += data
        left -= len(data)
    return answer
