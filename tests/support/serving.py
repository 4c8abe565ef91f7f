"""Servers in this process, on real sockets: turned by hand, or run by a thread.

Beside `inside.py` the one place that knows how `commentd.py` serves. Tests meet what comes over the
sockets. When the part Serving changes, only this file has to follow."""

import contextlib
import functools
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

import commentd
from commentd import App, Sites, Waitress, make_event_loop
from support.patience import PATIENCE
from support.world import FakeWorld

T = TypeVar("T")
Turn = Callable[[float], object]
# How many connections there may be, and seconds for a request and for a response.
CONNECTIONS = commentd.CONNECTIONS
REQUEST_TIME, REPLY_TIME = commentd.REQUEST_SECONDS, commentd.RESPONSE_SECONDS
LIMITS = {
    "untaken": "UNREAD_BYTES",
    "untaken_by_one": "UNREAD_BYTES_OF_ONE",
    "cached": "CACHE_BYTES",
    "known_headers": "KNOWN_HEADERS",
    "queue_seconds": "QUEUE_SECONDS",
    "turn_seconds": "TURN_SECONDS",
    "seconds_of_one": "SPAN_SECONDS_OF_ONE",
    "span_seconds": "SPAN_SECONDS",
}
# Programs that start the service in another way, for `test_server.Service`.
PROGRAM = "import resource, sys, commentd, waitress\n{0}\nsys.exit(commentd.main())"
BRIEF = PROGRAM.format("commentd.CACHE_SECONDS = 1")
IMPATIENT = PROGRAM.format("commentd.REQUEST_SECONDS = commentd.RESPONSE_SECONDS = 1")
REMEMBERING = PROGRAM.format("commentd.CACHE_SECONDS = 3600")
IMPATIENT_REMEMBERING = PROGRAM.format(
    "commentd.CACHE_SECONDS = 3600; commentd.REQUEST_SECONDS = commentd.RESPONSE_SECONDS = 1"
)
ONE_THREAD = PROGRAM.format("commentd.READING_THREADS = commentd.WAITING_THREADS = 1")

# The service gives up what takes too long: a write that waits for others, a request that is not
# done some seconds after a stop. On a busy machine much takes so long; with these lines it waits.
UNHURRIED = """
import functools
commentd.QUEUE_SECONDS = commentd.LOCK_SECONDS = 3600
commentd.EventLoop.drain = functools.partialmethod(commentd.EventLoop.drain, seconds=3600)
commentd.Workers.shutdown = functools.partialmethod(commentd.Workers.shutdown, timeout=3600)
"""
PATIENT = PROGRAM.format(UNHURRIED)


def until(ready: Callable[[], T], seconds: float = PATIENCE) -> T:
    """The value of a condition as soon as it is true."""
    ends_at, pause = time.monotonic() + seconds, 0.005
    while not (found := ready()):
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(pause)
        pause = min(pause * 1.1, 0.05)  # to look costs time of the service that is waited for
    return found


def limit(patch: pytest.MonkeyPatch, **limits: int) -> None:
    """Sets other limits of the server."""
    for name, value in limits.items():
        patch.setattr(commentd, LIMITS[name], value)


def turned(
    app: App | Sites, *, fast: bool = True, serves: Any = None, known: Waitress = Waitress.KNOWN
) -> commentd.EventLoop:
    """A server that only works in its turns; `serves` responds in place of the app. If it is not
    `fast`, it finds nothing in its cache."""
    sites = app if isinstance(app, Sites) else Sites([app])
    loop = make_event_loop(serves or app, sites, known)
    if not fast:
        patched: Any = loop.cache
        patched.fresh_entry = lambda key: None
    return loop


def guarded_server(app: App) -> Any:
    """A server as with `[server] fast = no`: waitress turns it, and nothing is cached."""
    return turned(app, known=Waitress.SIMILAR).server


def turn_of_waitress(server: Any) -> Turn:
    """A turn of such a server."""
    loop = server.asyncore.loop
    return functools.partial(loop, map=server._map, count=1)


def in_workers(application: Any) -> Any:
    """An application that only worker threads call."""

    def called(environ: Any, start_response: Any) -> Any:
        if environ["commentd.in_event_loop"]:
            writes = environ["REQUEST_METHOD"] == "POST"
            raise commentd.NeedsWorker(commentd.Pace.WAITING if writes else commentd.Pace.LONG)
        return application(environ, start_response)

    return called


def stop(loop: commentd.EventLoop) -> None:
    if loop.known is Waitress.KNOWN:
        loop.drain(1)
    loop.end_threads()
    close_server(loop.server)


def close_server(server: Any) -> None:
    """Closes a server and all its connections. Its event loop must not run in another thread."""
    server.close()
    for channel in [*server.active_channels.values()]:
        channel.handle_close()


def gone(peer: socket.socket) -> bool:
    """Whether the other side has closed the connection."""
    peer.setblocking(False)
    try:
        while peer.recv(1 << 20):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def arrived(peer: socket.socket) -> bool:
    """Whether something has come that the client has not read."""
    try:
        return bool(peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except BlockingIOError:
        return False


class SteppedServer:
    """A server that only works when `turn` is called, and its clients."""

    def __init__(self, loop: commentd.EventLoop, fake_world: FakeWorld) -> None:
        self.loop, self.server, self.fake_world = loop, loop.server, fake_world
        is_fast = loop.known is Waitress.KNOWN
        self.turn: Turn = loop.turn if is_fast else turn_of_waitress(loop.server)
        self.peers: list[socket.socket] = []
        self.made_at = time.time()

    def until(self, ready: Callable[[], Any]) -> Any:
        def turned() -> Any:
            self.turn(0.005)
            return ready()

        return until(turned)

    def knock(self, ip: str = "127.0.0.1") -> socket.socket:
        """A new connection, which the server has not accepted yet."""
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.peers.append(peer)
        peer.bind((ip, 0))
        peer.connect(("127.0.0.1", int(self.server.effective_port)))
        return peer

    def come(self, raw: bytes = b"", ip: str = "127.0.0.1") -> socket.socket:
        """A new connection, on which the server has read this."""
        known = set(self.server.active_channels)
        peer = self.knock(ip)
        self.until(lambda: self.server.active_channels.keys() - known)
        self.say(peer, raw)
        return peer

    def channel(self, peer: socket.socket) -> Any:
        return next(c for c in self.server.active_channels.values() if c.addr == peer.getsockname())

    def say(self, peer: socket.socket, raw: bytes) -> None:
        if raw:
            channel = self.channel(peer)
            channel.last_activity = 0
            peer.sendall(raw)
            self.until(lambda: channel.last_activity and not channel.requests)

    def clients(self) -> int:
        """How many clients the server keeps in memory."""
        return len(self.loop.connections.by_network)

    def workers(self) -> int:
        """How many worker threads have begun."""
        return len(self.loop.workers.reading.threads + self.loop.workers.waiting.threads)

    def waiting_writes(self) -> int:
        """How many requests wait until the event loop may write."""
        return sum(shared.waiting.size for shared in self.loop.shared.values())

    def unread_bytes(self, peer: socket.socket) -> int:
        """How many bytes the client has not read."""
        return int(self.channel(peer).total_outbufs_len)

    def read(self, peer: socket.socket, enough: Callable[[bytes], object]) -> bytes:
        """What the client reads until it is enough."""
        received = bytearray()
        peer.setblocking(False)

        def has_enough() -> object:
            with contextlib.suppress(BlockingIOError):
                while data := peer.recv(1 << 16):
                    received.extend(data)
            return enough(bytes(received))

        self.until(has_enough)
        return bytes(received)

    def take(self, peer: socket.socket) -> None:
        """The client reads everything."""
        self.until(lambda: not gone(peer) and not self.unread_bytes(peer))

    def sweep(self, now: float, most: int = CONNECTIONS) -> list[bool]:
        """Which connections are still open after the sweep at this time, in seconds."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.server.adj, "connection_limit", -(-most * 10 // 9))
            self.loop.sweeper.sweep(self.made_at + now)
        names = {channel.addr for channel in self.server.active_channels.values()}
        return [peer.getsockname() in names for peer in self.peers]

    def look_for_silence(self, now: float) -> None:
        """Does the maintenance of waitress at this time."""
        self.fake_world.time += 1
        self.server.maintenance(now)
        for _ in range(3):
            self.turn(0)

    def close(self) -> None:
        for peer in self.peers:
            peer.close()
        stop(self.loop)


class GatedServer(SteppedServer):
    """A server with one thread, which waits until the gate is open. `served` holds the User-Agents
    of the requests in the order in which they were begun."""

    def __init__(self, app: App | Sites, fake_world: FakeWorld) -> None:
        self.gate, self.served = threading.Event(), list[str]()

        def application(environ: Any, start: Any) -> Any:
            self.served.append(environ["HTTP_USER_AGENT"])
            self.gate.wait()
            return app(environ, start)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(commentd, "READING_THREADS", 1)
            patch.setattr(commentd, "WAITING_THREADS", 1)
            loop = turned(app, serves=in_workers(application))
        super().__init__(loop, fake_world)

    def ask(self, raw: bytes, ip: str = "127.0.0.1") -> None:
        """Sends a request and waits until the server has read it."""
        peer = self.come(ip=ip)
        channel = self.channel(peer)
        peer.sendall(raw)
        self.until(lambda: channel.requests)
        self.until(lambda: self.served)  # the thread has the first one

    def statuses(self) -> list[int]:
        """The statuses on all connections, in the order in which they were opened."""
        self.gate.set()
        heads = [self.read(peer, lambda data: b"\r\n\r\n" in data) for peer in self.peers]
        return [int(head[9:12]) for head in heads]

    def close(self) -> None:
        self.gate.set()
        super().close()


class RunningServer:
    """A server and the thread that runs it, with the response cache if it is `fast`. `worked` is
    how many requests came to the app."""

    def __init__(self, app: App | Sites, *, fast: bool) -> None:
        self.app: Any = app
        self.worked = 0

        def counted(environ: Any, start_response: Any) -> Any:
            self.worked += 1
            return app(environ, start_response)

        self.loop = turned(app, fast=fast, serves=counted)
        self.server = self.loop.server
        self.port = int(self.server.effective_port)
        self.noted, self.turns = threading.Condition(), 0
        self.connections: list[socket.socket] = []
        self.thread, self.stopping = threading.Thread(target=self.run), False
        self.thread.start()

    def run(self) -> None:
        while not self.stopping:
            self.loop.turn(0.1)
            with self.noted:
                self.turns += 1
                self.noted.notify_all()

    def wait(self, ready: Callable[[], bool]) -> None:
        with self.noted:
            assert self.noted.wait_for(ready, PATIENCE), "waited in vain"

    def look(self) -> None:
        """Waits until the server has read all that was sent."""
        for _ in range(2):
            turns = self.turns
            self.server.pull_trigger()
            self.wait(lambda: self.turns > turns)  # noqa: B023

    @property
    def channels(self) -> list[Any]:
        return [*self.server.active_channels.values()]

    @property
    def cached(self) -> bytes:
        """All keys and responses of the cache."""
        entries = [*self.loop.cache.entries.items()]
        return b"".join(key + entry.response for key, entry in entries)

    def connect(self, room: int = 0) -> socket.socket:
        """A connection, with small buffers if `room` is given."""
        connection = socket.socket()
        self.connections.append(connection)
        if room:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        connection.settimeout(PATIENCE)
        connection.connect(("127.0.0.1", self.port))
        if room:
            name = connection.getsockname()
            self.wait(lambda: name in [channel.addr for channel in self.channels])
            (channel,) = [channel for channel in self.channels if channel.addr == name]
            channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
        return connection

    def responses(self, *requests: bytes) -> list[bytes]:
        """The responses to requests on one connection, one after the other."""
        found = []
        with self.connect() as connection:
            for raw in requests:
                connection.sendall(raw)
                found.append(undated(next_response(connection, raw)))
                # What was sent is cached a moment later.
                self.wait(lambda: not any(channel.requests for channel in self.channels))
        return found

    def ask(self, raw: bytes) -> bytes:
        return self.responses(raw)[0]

    def from_cache(self, *requests: bytes) -> list[bytes]:
        """Responses that must come from the cache."""
        worked = self.worked
        found = self.responses(*requests)
        assert self.worked == worked, "somebody worked"
        return found

    def stream(self, *pieces: bytes) -> bytes:
        """All data that the server sends after these pieces, until it closes."""
        received = b""
        with self.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(OSError):  # it may be refused before it was all sent
                for piece in pieces:
                    connection.sendall(piece)
                    self.look()
                connection.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while data := connection.recv(1 << 16):
                    received += data
        return undated(received)

    def close(self) -> None:
        self.stopping = True
        self.server.pull_trigger()
        self.thread.join()
        for connection in self.connections:
            connection.close()
        stop(self.loop)


@contextlib.contextmanager
def fast_and_stock_servers(*apps: App | Sites) -> Iterator[tuple[RunningServer, RunningServer]]:
    """A server with the response cache and one without, of one service or of two."""
    with contextlib.ExitStack() as stack:
        fast, stock = RunningServer(apps[0], fast=True), RunningServer(apps[-1], fast=False)
        stack.callback(stock.close)
        stack.callback(fast.close)
        yield fast, stock


def undated(response: bytes) -> bytes:
    return re.sub(rb"(?m)^Date: .{29}\r\n", b"", response)


def is_whole(response: bytes) -> bool:
    length = re.search(rb"(?m)^Content-Length: (\d+)\r$", response)
    return length is not None and len(response.partition(b"\r\n\r\n")[2]) == int(length[1])


def next_response(connection: socket.socket, request: bytes = b"") -> bytes:
    """The bytes of the next response on a connection, and no more."""
    response = b""
    end = -1
    while end < 0:
        seen = connection.recv(1 << 16, socket.MSG_PEEK) or pytest.fail("closed")
        end = (response + seen).find(b"\r\n\r\n")
        head = len(seen) if end < 0 else end + 4 - len(response)
        response += connection.recv(head)
    length = re.search(rb"(?m)^Content-Length: (\d+)\r$", response)
    left = int(length[1]) if length and not request.startswith(b"HEAD") else 0
    while left:
        data = connection.recv(left) or pytest.fail("closed")
        response += data
        left -= len(data)
    return response
