"""Hostile clients: silent ones, those that send a byte now and then, never read, come in crowds, or
send ambiguous requests. None holds a thread, a descriptor or the log for long."""

import contextlib
import errno
import functools
import json
import re
import shutil
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commentd import Config, Overloaded, Waitress, make_app
from support.campaign import Campaign
from support.client import CANARY, COMMENT, PAGE, Visitor
from support.inside import add_account, database_path, token_of
from support.patience import PATIENCE
from support.service import (
    HEALTH,
    LIKE,
    LIKED,
    LIST,
    LOGIN,
    LOOPS,
    PARTS_OF_REQUESTS,
    Service,
    Start,
    answer_on,
    held_at_rest,
    held_descriptors,
    memory,
    request,
    reset_connection,
    services,
    with_comments,
)
from support.service import start as start  # a fixture
from support.serving import (
    CONNECTIONS,
    IMPATIENT,
    IMPATIENT_REMEMBERING,
    ONE_THREAD,
    PATIENT,
    PROGRAM,
    REMEMBERING,
    REPLY_TIME,
    REQUEST_TIME,
    SteppedServer,
    gone,
    in_workers,
    is_whole,
    limit,
    turned,
    until,
)
from support.world import FakeWorld

pytestmark = pytest.mark.slow

resource = pytest.importorskip("resource", reason="this system does not limit descriptors")


CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(LIKE), LIKE)


# The deadlines, by a clock of our own


@pytest.fixture
def stepped_server(config: Config, fake_world: FakeWorld) -> Iterator[SteppedServer]:
    how = replace(config, server_listen="127.0.0.1:0")
    with closing(make_app(how, fake_world.world, rounds=1)) as app:
        with_comments(database_path(app), 40_000)
        with closing(SteppedServer(turned(app), fake_world)) as stepped_server:
            yield stepped_server


def test_a_client_that_leaves_between_two_responses_stops_nothing(
    stepped_server: SteppedServer,
) -> None:
    short = request("GET", "/comments?url=/short/&limit=100")  # which a worker responds to
    stepped_server.come(short)
    leaving = stepped_server.come()
    channel = stepped_server.channel(leaving)
    leaving.sendall(short * 2)  # the second response comes from the cache
    stepped_server.until(lambda: channel.requests)
    until(lambda: not channel.requests)  # the first response is sent, the loop has not turned yet
    leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    leaving.close()
    for _ in range(3):
        stepped_server.turn(0)
    assert len(stepped_server.server.active_channels) == 1


def test_no_client_is_remembered_when_its_connections_are_closed(
    stepped_server: SteppedServer,
) -> None:
    peers = [stepped_server.come(HEALTH, f"127.0.{n}.1") for n in range(9)]
    assert stepped_server.clients() == 9
    for peer in peers:
        peer.close()
    stepped_server.until(lambda: not stepped_server.clients())


def test_slow_requests_each_have_their_own_deadline(stepped_server: SteppedServer) -> None:
    now, peer, stream, received = 1000.0, stepped_server.come(), LIKED * 3, b""
    for piece in in_bites(stream, 7):  # the end of one comes with the next one's beginning
        stepped_server.say(peer, piece)
        now += (REQUEST_TIME - 2) * 7 / len(LIKED)
        assert stepped_server.sweep(now) == [True]
    peer.settimeout(PATIENCE)
    while received.count(b"HTTP/1.1 200 OK") < 3:
        data = peer.recv(65536)
        assert data, received
        received += data


def test_an_idle_connection_closes_after_two_minutes(stepped_server: SteppedServer) -> None:
    new, used = stepped_server.come(), stepped_server.come(HEALTH)
    stepped_server.sweep(1000)
    assert stepped_server.sweep(1000 + 10 * (REQUEST_TIME + REPLY_TIME)) == [True, True]
    for peer in (new, used):
        stepped_server.say(peer, HEALTH)
        assert not gone(peer)
    stepped_server.look_for_silence(time.time() + 119)
    assert not gone(new)
    stepped_server.look_for_silence(time.time() + 121)
    stepped_server.until(lambda: gone(new) and gone(used))


def test_a_response_that_is_not_read_is_dropped(stepped_server: SteppedServer) -> None:
    """Also if a byte of it is read now and then. Each response has its own deadline."""
    never, rarely, slowly = (stepped_server.come(LIST) for _ in range(3))
    for second in range(0, REPLY_TIME + 1, 5):
        never.recv(0)
        rarely.recv(1)
        stepped_server.turn(0)
        assert stepped_server.sweep(1000 + second) == [True] * 3
        if second == REPLY_TIME // 2:
            stepped_server.take(slowly)
            stepped_server.say(slowly, LIST)
    assert stepped_server.sweep(1001 + REPLY_TIME) == [False, False, True]
    assert stepped_server.sweep(1001 + 3 * REPLY_TIME) == [False, False, False]


def test_a_client_that_expects_100_continue_gets_only_the_response(
    stepped_server: SteppedServer,
) -> None:
    content = request("POST", "/comments/preview", "Expect: 100-continue", body={"content": "hi"})
    head, end, body = content.partition(b"\r\n\r\n")
    peer = stepped_server.come(head + end)
    peer.setblocking(False)
    with pytest.raises(BlockingIOError):  # nothing was sent so far
        peer.recv(1)
    stepped_server.say(peer, body)
    assert peer.recv(1 << 16).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_download_has_a_longer_deadline_than_other_responses(
    config: Config, fake_world: FakeWorld
) -> None:
    """Otherwise no backup would arrive over a slow connection."""
    how = replace(config, server_listen="127.0.0.1:0")
    with closing(make_app(how, fake_world.world, rounds=1)) as app:
        with_comments(database_path(app), 40_000)
        add_account(app, "ann@example.com", "Ann", CANARY, "admin")
        bearer = f"Authorization: Bearer {token_of(app, 'ann@example.com', 'admin')}"
        with closing(SteppedServer(turned(app), fake_world)) as stepped_server:
            form = {"password": CANARY}
            peer = stepped_server.come(request("POST", "/admin/backup", bearer, body=form))
            for now in (1000, 1001 + 2 * REPLY_TIME):
                assert stepped_server.unread_bytes(peer) > 1 << 20
                assert stepped_server.sweep(now) == [True]
            stepped_server.take(peer)


def test_the_oldest_unread_responses_are_cut_when_too_many_bytes_wait(
    stepped_server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepped_server.come()
    for _ in range(3):
        stepped_server.come(LIST)
    waiting = [stepped_server.unread_bytes(peer) for peer in stepped_server.peers]
    limit(monkeypatch, untaken=sum(waiting))
    assert stepped_server.sweep(1000) == [True] * 4
    limit(monkeypatch, untaken=sum(waiting) - waiting[1] - 1)
    assert stepped_server.sweep(1000) == [True, False, False, True]


def test_the_longest_silent_connections_make_room_for_new_ones(
    stepped_server: SteppedServer,
) -> None:
    """A byte of an unfinished request does not count: it would keep a hostile client connected."""
    for _ in range(6):
        stepped_server.come()
    stepped_server.say(stepped_server.peers[0], HEALTH)
    assert stepped_server.sweep(1000, most=4) == [True, False, False, True, True, True]
    for peer in stepped_server.peers[:1] + stepped_server.peers[3:]:
        stepped_server.say(peer, b"GET /comm")
    stepped_server.sweep(1000, most=4)
    stepped_server.come(b"GET /comm")
    assert stepped_server.sweep(1005, most=4).count(True) == 4
    dripping = [peer for peer in stepped_server.peers[:-1] if not gone(peer)]
    for peer in dripping:
        stepped_server.say(peer, b"e")
    stepped_server.come(b"GET /comm")
    assert stepped_server.sweep(1006, most=2)[-2:] == [True, True]


# One client among others

ATTACKER, HONEST = "127.0.0.66", "127.0.0.7"


def open_of(stepped_server: SteppedServer) -> list[bool]:
    """Which connections are open."""
    open_names = {channel.addr for channel in stepped_server.server.active_channels.values()}
    return [peer.getsockname() in open_names for peer in stepped_server.peers]


def test_one_client_has_at_most_half_of_the_connections(
    stepped_server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stepped_server.server.adj, "connection_limit", 8)
    stepped_server.come(ip=HONEST)
    for _ in range(6):
        stepped_server.come(ip=ATTACKER)
    assert open_of(stepped_server) == [True, False, False, True, True, True, True]


def test_connections_beyond_the_limit_wait_until_another_one_closes(
    stepped_server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = stepped_server.come(ip=HONEST)
    most = len(stepped_server.server._map) + 2
    monkeypatch.setattr(stepped_server.server.adj, "connection_limit", most)
    for number in range(4):
        stepped_server.knock(f"127.0.1.{number + 1}")
    for _ in range(3):
        stepped_server.turn(0)
    assert open_of(stepped_server) == [True, True, True, False, False]
    first.close()
    stepped_server.peers.remove(first)
    stepped_server.until(lambda: open_of(stepped_server) == [True, True, True, False])


def test_a_client_that_leaves_before_it_is_accepted_keeps_no_other_waiting(
    stepped_server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux does not mind, but other systems say so when the socket is set up."""
    server = stepped_server.server
    left: list[socket.socket] = []

    def set_up(sock: socket.socket) -> None:
        if not left:
            left.append(sock)
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(server, "set_socket_options", set_up)
    for ip in (ATTACKER, HONEST):
        stepped_server.knock(ip)
    stepped_server.turn(PATIENCE)
    assert open_of(stepped_server) == [False, True]
    left[0].close()


def test_a_connection_that_makes_room_is_not_read_in_the_same_turn(
    stepped_server: SteppedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stepped_server.server.adj, "connection_limit", 8)
    first, *_ = [stepped_server.come(ip=ATTACKER) for _ in range(4)]
    stepped_server.knock(ATTACKER)
    first.sendall(HEALTH)
    stepped_server.turn(PATIENCE)
    assert open_of(stepped_server) == [False, True, True, True, True]
    assert gone(first)
    assert caplog.text == ""


def test_connections_of_the_client_with_most_make_room_first(stepped_server: SteppedServer) -> None:
    for raw in (b"", HEALTH, b"GET /comm"):
        stepped_server.come(raw, HONEST)
    stepped_server.come(b"", "127.0.0.8")
    for raw in (b"", HEALTH, b"GET /comm", LIST, LIST, LIST):
        stepped_server.come(raw, ATTACKER)
    stepped_server.sweep(1000)
    still_open = stepped_server.sweep(1000, most=7)
    assert still_open[:4] == [True] * 4
    assert still_open[4:].count(True) == 3


def test_the_client_that_reads_least_is_cut(
    stepped_server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stepped_server.come(LIST, HONEST)
    for _ in range(4):
        stepped_server.come(LIST, ATTACKER)
    one = stepped_server.unread_bytes(stepped_server.peers[0])
    limit(monkeypatch, untaken=3 * one + one // 2)
    assert stepped_server.sweep(1000) == [True, False, False, True, True]
    limit(monkeypatch, untaken_by_one=one // 2)
    assert stepped_server.sweep(1000) == [True, False, False, False, True]


class RecordingApp:
    """An application that notes the User-Agents of its requests, and keeps those of `a`."""

    def __init__(self) -> None:
        self.began, self.gate = list[str](), threading.Event()

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        name = environ["HTTP_USER_AGENT"]
        self.began.append(name)
        if name == "a":
            self.gate.wait()
        start_response("200 OK", [("Content-Length", "2"), ("Content-Type", "text/plain")])
        return [b"ok"]


@pytest.fixture
def recording_app() -> Iterator[RecordingApp]:
    recording_app = RecordingApp()
    yield recording_app
    recording_app.gate.set()


@pytest.fixture
def known() -> Waitress:
    return Waitress.KNOWN


@pytest.fixture
def recording_server(
    config: Config, fake_world: FakeWorld, recording_app: RecordingApp, known: Waitress
) -> Iterator[SteppedServer]:
    """A server with that application, which trusts a proxy."""
    how = replace(config, server_listen="127.0.0.1:0", server_trusted_proxy=("127.0.0.1",))
    serves = recording_app if known is Waitress.SIMILAR else in_workers(recording_app)
    with (
        closing(make_app(how, fake_world.world, rounds=1)) as app,
        closing(
            SteppedServer(turned(app, serves=serves, known=known), fake_world)
        ) as stepped_server,
    ):
        yield stepped_server
        recording_app.gate.set()


def send_request(stepped_server: SteppedServer, raw: bytes, ip: str = "127.0.0.1") -> socket.socket:
    """A connection on which the server has a request."""
    peer = stepped_server.come(ip=ip)
    channel = stepped_server.channel(peer)
    channel.last_activity = 0
    peer.sendall(raw)
    stepped_server.until(lambda: channel.last_activity)
    return peer


def gets_response(stepped_server: SteppedServer, peer: socket.socket) -> bool:
    """Whether the connection gets a response."""
    return bool(stepped_server.until(lambda: not stepped_server.channel(peer).requests))


def request_by(name: str, client: str, method: str = "GET") -> bytes:
    body = b"{}" if method == "POST" else b""
    return request(method, "/x", f"User-Agent: {name}", f"X-Forwarded-For: {client}", body=body)


def test_a_connection_of_a_proxy_belongs_to_the_client_it_named_last(
    recording_server: SteppedServer,
) -> None:
    proxy = recording_server.come()
    for number in range(5):
        recording_server.say(proxy, request_by("b", f"192.0.2.{number}"))
        assert recording_server.clients() == 1
    proxy.close()
    recording_server.until(lambda: not recording_server.clients())


@pytest.mark.parametrize(("method", "most"), [("GET", 1), ("POST", 2)])
def test_one_client_does_not_hold_all_worker_threads(
    recording_server: SteppedServer, recording_app: RecordingApp, method: str, most: int
) -> None:
    """Even if it has a whole /64 behind a proxy."""
    for number in range(20):
        send_request(recording_server, request_by("a", f"2001:db8:1:2::{number:x}", method))
    assert gets_response(
        recording_server, send_request(recording_server, request_by("b", "192.0.2.7", method))
    )
    assert recording_app.began.count("a") == most


@pytest.mark.parametrize("known", [Waitress.KNOWN, Waitress.SIMILAR])
def test_one_client_behind_a_proxy_has_at_most_half_of_the_connections(
    recording_server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose connection it is, only the first request on it says."""
    monkeypatch.setattr(recording_server.server.adj, "connection_limit", 8)
    for client in ("192.0.2.7", *["198.51.100.66"] * 6):
        peer = send_request(recording_server, request_by("b", client))
        gets_response(recording_server, peer)
    still_open = open_of(recording_server)
    assert still_open[0]
    assert still_open.count(True) == 5


def test_a_request_beyond_half_of_the_connections_is_not_begun(
    recording_server: SteppedServer, recording_app: RecordingApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of this client are busy, so that none of them makes room."""
    monkeypatch.setattr(recording_server.server.adj, "connection_limit", 8)
    busy = [send_request(recording_server, request_by("a", "198.51.100.66")) for _ in range(4)]
    send_request(recording_server, request_by("late", "198.51.100.66"))
    assert open_of(recording_server) == [True, True, True, True, False]
    recording_app.gate.set()
    for peer in busy:
        gets_response(recording_server, peer)
    gets_response(recording_server, send_request(recording_server, request_by("b", "192.0.2.7")))
    assert recording_app.began == ["a", "a", "a", "a", "b"]


def test_readers_do_not_wait_for_writers(
    recording_server: SteppedServer, recording_app: RecordingApp
) -> None:
    for number in range(40):
        send_request(recording_server, request_by("a", f"192.0.2.{number}", "POST"))
    assert gets_response(
        recording_server, send_request(recording_server, request_by("b", "198.51.100.7"))
    )


def test_busy_connections_of_one_client_close_before_any_of_another(
    recording_server: SteppedServer, recording_app: RecordingApp
) -> None:
    recording_server.come()
    send_request(recording_server, request_by("a", "198.51.100.7"))
    for _ in range(6):
        send_request(recording_server, request_by("a", "192.0.2.66"))
    assert recording_server.sweep(1000, most=5) == [
        True,
        True,
        False,
        False,
        False,
        True,
        True,
        True,
    ]


def test_the_next_request_of_a_pipeline_waits_until_the_response_is_read(
    stepped_server: SteppedServer,
) -> None:
    response = stepped_server.read(stepped_server.come(LIST, HONEST), is_whole)
    peer = stepped_server.come(LIST * 2 + HEALTH, ATTACKER)
    for _ in range(5):
        stepped_server.turn(0)
    assert 0 < stepped_server.unread_bytes(peer) <= len(response)
    # The client reads, and gets all three.
    stepped_server.read(peer, lambda data: data.count(b"HTTP/1.1 200 OK\r\n") == 3)


def test_a_crowd_of_busy_connections_leaves_a_turn_to_others(
    recording_server: SteppedServer,
) -> None:
    crowd = [recording_server.come(ip=ATTACKER) for _ in range(80)]
    honest = recording_server.come(ip=HONEST)
    for peer in [*crowd, honest]:
        peer.sendall(b"GET /comm")
    recording_server.turn(0.1)
    begun = [bool(recording_server.channel(peer).request) for peer in [*crowd, honest]]
    assert begun[-1]
    assert not all(begun)


def test_the_event_loop_responds_to_clients_in_turn(
    stepped_server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client with many requests leaves others their turn, though there is time for one only."""
    limit(monkeypatch, turn_seconds=0, seconds_of_one=1000)
    crowd = [stepped_server.come(ip=ATTACKER) for _ in range(20)]
    honest = stepped_server.come(ip=HONEST)
    for number, peer in enumerate([*crowd, honest]):
        peer.sendall(request("GET", f"/comments?url=/{number}/"))
    for _ in range(3):  # it may need two to read all that was sent
        stepped_server.turn(0.1)
    assert not stepped_server.channel(honest).requests
    assert sum(bool(stepped_server.channel(peer).requests) for peer in crowd) > 10
    for peer in crowd:
        assert gets_response(stepped_server, peer)


def test_a_client_that_has_used_its_time_of_the_event_loop_waits_for_a_worker(
    stepped_server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But only while others are connected."""
    limit(monkeypatch, seconds_of_one=-1)
    names = [f"/comments?url=/{number}/" for number in range(4)]
    alone = stepped_server.come(ip=ATTACKER)
    stepped_server.come(ip=HONEST).close()
    stepped_server.until(lambda: stepped_server.clients() == 1)
    for name in names:
        stepped_server.say(alone, request("GET", name, "User-Agent: a bot"))
    assert not stepped_server.workers()
    stepped_server.come(ip=HONEST)
    stepped_server.say(alone, request("GET", "/comments?url=/5/"))
    assert stepped_server.workers() == 1


@pytest.mark.parametrize(("span_seconds", "workers"), [(1000, 1), (0, 0)])
def test_the_time_of_a_client_is_added_up_for_a_span(
    stepped_server: SteppedServer, monkeypatch: pytest.MonkeyPatch, span_seconds: int, workers: int
) -> None:
    limit(monkeypatch, seconds_of_one=0, span_seconds=span_seconds)
    stepped_server.come(ip=HONEST)
    peer = stepped_server.come(ip=ATTACKER)
    stepped_server.say(peer, request("GET", "/comments?url=/1/"))
    assert stepped_server.workers() == 0
    stepped_server.say(peer, request("GET", "/comments?url=/2/"))
    assert stepped_server.workers() == workers


@pytest.mark.parametrize("path", ["/comments?url=/long/&since=0", "/thread?url=/long/"])
def test_the_event_loop_leaves_lists_of_many_comments_to_a_worker(
    config: Config, fake_world: FakeWorld, path: str
) -> None:
    how = replace(config, server_listen="127.0.0.1:0", limits_enabled=False)
    with closing(make_app(how, fake_world.world, rounds=1)) as app:
        visitor = Visitor(app)
        for page, threads in (("/long/", 5), ("/short/", 4)):
            for _ in range(threads):
                root = visitor.say("a question", page_url=page)["comment"]["id"]
                for _ in range(10):
                    visitor.say("an answer", page_url=page, parent_id=root)
        with closing(SteppedServer(turned(app), fake_world)) as server:
            answer_on(server.come(request("GET", path.replace("long", "short"))))
            assert server.workers() == 0
            answer = answer_on(server.come(request("GET", path)))
            assert server.workers() == 1
            assert answer.body.count(b"an answer") >= 50


@pytest.mark.parametrize(
    ("path", "quick", "long"),
    [
        ("/comments", "limit=50", "limit=51"),
        ("/comments", "page=1", "around=1"),
        ("/fragment", "limit=50", "limit=51"),
    ],
)
def test_the_event_loop_leaves_what_may_be_a_long_list_to_a_worker(
    stepped_server: SteppedServer, path: str, quick: str, long: str
) -> None:
    reader = stepped_server.come(ip=HONEST)
    for query, workers in ((quick, 0), (long, 1)):
        stepped_server.say(reader, request("GET", f"{path}?url=/1/&{query}"))
        assert stepped_server.workers() == workers


FORMULAS = {"comments_formulas": True}


@pytest.mark.parametrize(
    ("settings", "text", "workers"),
    [
        ({"comments_max_length": 3000}, "x" * 2000, 0),
        ({"comments_max_length": 3000}, "x" * 2001, 1),
        ({}, "$y$", 0),
        (FORMULAS, "$y$", 1),
        ({}, "```math\nx\n```", 0),
        (FORMULAS, "```math\nx\n```", 1),
    ],
)
def test_the_event_loop_leaves_a_text_that_takes_long_to_a_worker(
    config: Config, fake_world: FakeWorld, settings: dict[str, Any], text: str, workers: int
) -> None:
    how = replace(config, server_listen="127.0.0.1:0", **settings)
    with (
        closing(make_app(how, fake_world.world, rounds=1)) as app,
        closing(SteppedServer(turned(app), fake_world)) as server,
    ):
        body = {**COMMENT, "content": text}
        server.say(server.come(ip=HONEST), request("POST", "/comments", body=body))
        assert server.workers() == workers


def test_a_write_that_waited_too_long_is_refused(
    config: Config, fake_world: FakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, queue_seconds=-1)
    how = replace(config, server_listen="127.0.0.1:0")
    with (
        closing(make_app(how, fake_world.world, rounds=1)) as app,
        closing(SteppedServer(turned(app), fake_world)) as stepped_server,
    ):
        peer = stepped_server.come(request("POST", "/auth/login", body=LOGIN))
        answer = answer_on(peer)
        assert (answer.status, answer.json["code"]) == (503, "storage")
        assert int(answer.headers["Retry-After"]) > 0


def test_a_request_that_waited_too_long_is_refused_by_a_waitress_of_any_version() -> None:
    """One that the program does not know asks for the response, rather than for its parts."""
    status, headers, body = Overloaded().to_response("waitress")
    assert status == "503 Service Unavailable"
    assert dict(headers) == {"Content-Type": "application/json; charset=utf-8", "Retry-After": "5"}
    assert json.loads(body)["code"] == "storage"


# What could be read as two requests


@pytest.fixture(scope="module")
def shared_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for all tests that leave it unchanged."""
    with services(tmp_path_factory.mktemp("peers")) as start:
        yield start(program=PATIENT)


def head(*lines: bytes, first: bytes = b"POST /page/like HTTP/1.1") -> bytes:
    return b"\r\n".join([first, b"Host: x", b"Content-Type: application/json", *lines, b"", b""])


def get(*headers: bytes, first: bytes = b"GET /health HTTP/1.1") -> bytes:
    return b"\r\n".join([first, b"Host: x", *headers, b"", b""])


TE, CL = b"Transfer-Encoding: chunked", b"Content-Length: %d" % len(LIKE)
ASK = b"Expect: 100-continue"
ABSOLUTE = b"GET http://other.example/health HTTP/1.1"
AMBIGUOUS = [
    # Which length?
    *(head(*both) + CHUNKS for both in ((CL, TE), (TE, CL), (TE, TE), (ASK, CL, TE))),
    *(head(*both) + LIKE for both in ((CL, CL), (CL + b", %d" % len(LIKE),))),
    *(head(b"Transfer-Encoding: " + odd) + CHUNKS for odd in (b"chunked,", b"chunked, chunked")),
    *(head(b"Transfer-Encoding:" + odd) + CHUNKS for odd in (b" xchunked", b"\x0bchunked", b"")),
    *(head(b"Transfer-Encoding:" + odd, CL) + LIKE for odd in (b" identity", b"")),
    head(TE, first=b"POST /page/like HTTP/1.0") + CHUNKS,
    *(head(b"Content-Length:" + odd) for odd in (b" -1", b"", b" " + b"9" * 5000)),
    *(head(b"Content-Length:" + odd) + LIKE for odd in (b" +23", b" 0x17", b" 2_3")),
    head(CL.replace(b":", b" :")) + LIKE,
    head(ASK, b"Content-Length: -1"),
    # Which host, which header?
    b"GET /health HTTP/1.1\r\n\r\n",
    ABSOLUTE + b"\r\n\r\n",
    get(b"Host: x"),
    *(get(b"X: a", odd) for odd in (b" b", b"\tHost: b")),
    b"GET /health HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n",
    b"GET /health HTTP/1.1\nHost: x\r\n\r\n",
    *(get(odd) for odd in (b"X: a\nY: b", b"X: a\rY: b", b"X: \0", b"X\0: a", b"\xff: a", b": a")),
    # Which target, which protocol?
    *(get(first=odd) for odd in (b"GET  /health HTTP/1.1", b"GET\t/health\tHTTP/1.1")),
    *(get(first=odd) for odd in (b"GET /health HTTP/1.1\x0b", b"get /health HTTP/1.1")),
    *(get(first=odd) for odd in (b"GET /health http/1.1", b"GET HTTP/1.1")),
    *(get(first=odd) for odd in (b"GET http://[x/health HTTP/1.1", b"GET /hea\0lth HTTP/1.1")),
    get(first=b"GET /hea\xfflth HTTP/1.1"),
    b"GET /health\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


def answers(service: Service, raw: bytes) -> tuple[bytes, list[int]]:
    """All data until the connection closes or a second response begins, and the statuses; 0 stands
    for closed."""
    received = b""
    found: list[int] = []
    with service.sent(raw) as peer, contextlib.suppress(ConnectionResetError):
        while len(found) < 2 and (data := peer.recv(65536)):
            received += data
            found = [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", received)]
        else:
            found += [0] * (len(found) < 2)  # closed
    return received, found


def test_ambiguous_requests_are_refused_once(shared_service: Service) -> None:
    before = shared_service.output
    for raw in AMBIGUOUS:
        received, statuses = answers(shared_service, raw + HEALTH)
        assert statuses in ([400, 0], [411, 0] if b"Transfer-Encoding" in raw else []), raw
        assert b'"code"' in received, raw
        assert b"\r\nConnection: close\r\n" in received, raw
    assert shared_service.output == before, "a stranger writes the log"


PLAIN = [
    *(before + HEALTH for before in (b"\r\n", b"\r\n\r\n")),
    get(first=ABSOLUTE),
    *(get(word) for word in (b"X: \xff", b"X:", ASK)),
    b"GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    request("GET", "/health", body=b"{}"),  # an unused body
    get(*[b"X-%d: y" % i for i in range(700)]),
    get(ASK, b"Content-Length: 0"),
]


def test_unusual_but_clear_requests_are_answered(shared_service: Service) -> None:
    for raw in PLAIN:
        assert answers(shared_service, raw + HEALTH)[1] == [200, 200], raw


def test_a_body_that_is_too_large_gets_no_100_continue(shared_service: Service) -> None:
    assert answers(shared_service, head(ASK, b"Content-Length: 99999999"))[1] == [413, 0]


def test_headers_may_have_16_kib(shared_service: Service) -> None:
    lines = [b"X-%d: y" % i for i in range(500)]
    for size, status in ((16 * 1024 - 1, 200), (16 * 1024, 431)):
        padding = size - len(get(*lines, b"P: "))
        assert shared_service.raw(get(*lines, b"P: " + b"p" * padding)).status == status, size


# Peers that leave


def test_a_half_closed_connection_gets_whole_responses(shared_service: Service) -> None:
    for raw, statuses in (
        (HEALTH, [200, 0]),
        (LIKED, [200, 0]),
        (HEALTH * 2, [200, 200]),
        (b"", [0]),
        (HEALTH[:-2], [0]),
        (LIKED[:-2], [0]),
        (HEALTH + HEALTH[:-2], [200, 0]),
    ):
        with shared_service.sent(raw) as peer:
            peer.shutdown(socket.SHUT_WR)
            received = b"".join(iter(lambda: peer.recv(65536), b""))
        found = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", received)]
        assert [*found, 0][:2] == statuses, raw


def test_a_client_that_leaves_early_leaks_nothing(shared_service: Service) -> None:
    before = held_at_rest(shared_service)
    for raw in [request("POST", "/auth/login", body=LOGIN)] * 4 + [LIKED, LIST] * 20:
        reset_connection(shared_service.sent(raw))
    until(lambda: held_descriptors(shared_service) == before)
    assert shared_service.ask("GET", "/health").status == 200
    assert "Traceback" not in shared_service.output


@pytest.mark.parametrize("program", [REMEMBERING, IMPATIENT_REMEMBERING], ids=["left", "cut"])
def test_a_pipeline_whose_client_is_gone_does_not_end_the_service(
    start: Start, program: str, tmp_path: Path, empty_database: Path
) -> None:
    """The response to the next request is in the cache, and waits until this one is read."""
    short = request("GET", "/comments?url=/short/", "User-Agent: a bot")  # a view would change it
    with_comments(shutil.copy(empty_database, tmp_path / "commentd.db"), 40_000)
    service = start(program=program)
    before = held_at_rest(service)
    assert service.raw(short).status == 200
    leaving = service.connect()
    leaving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    leaving.sendall(LIST + short)
    assert leaving.recv(1, socket.MSG_PEEK)  # the first response is more than can be sent
    if program is REMEMBERING:  # else the service closes the connection, which takes too long
        reset_connection(leaving)
    until(lambda: service.process.poll() is not None or held_descriptors(service) == before)
    assert service.ask("GET", "/health").status == 200, service.output
    assert "Traceback" not in service.output


# Crowds, over the wire


LIMITED = PROGRAM.format("resource.setrlimit(resource.RLIMIT_NOFILE, ({0}, {1}))")


@pytest.fixture
def many_sockets() -> Iterator[None]:
    """Lets this process open 2000 sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < 2000:
        pytest.skip("this process may not open 2000 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def hello() -> bytes:
    """The first bytes of a browser that expects TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        ssl.create_default_context().wrap_bio(
            incoming, outgoing, server_hostname="x"
        ).do_handshake()
    return outgoing.read()


def client_that_does_not_read(service: Service) -> socket.socket:
    """A client that asks for long responses and does not read them. What it leaves unread costs
    its own connections alone."""
    peer = service.connect(ATTACKER)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.sendall(LIST * 8)
    return peer


def send_a_byte(peers: list[socket.socket]) -> None:
    """Sends one more byte on each connection."""
    for peer in peers:
        with contextlib.suppress(OSError):
            peer.send(b"1")


def none_is_held(peers: list[socket.socket], service: Service, before: int) -> bool:
    """Whether no connection is held any more, after one more byte on each."""
    send_a_byte(peers)
    return held_descriptors(service) == before


def all_are_closed(peers: list[socket.socket]) -> bool:
    """Whether all connections are closed, after one more byte on each."""
    send_a_byte(peers)
    return all(map(gone, peers))


# The stock loop of waitress leaves it to the proxy to end what comes to no end.
def test_endless_requests_are_cut_and_leak_nothing(start: Start) -> None:
    service = start(program=IMPATIENT)
    before = held_at_rest(service)
    with_comments(service.path, 12_000)
    until(lambda: service.ask("GET", "/health").status == 200)
    idle = service.sent(HEALTH)
    assert answer_on(idle).status == 200
    readers = [service.sent(LIST) for _ in range(64)]
    assert {answer_on(reader).status for reader in readers} == {200}
    for reader in readers:
        reader.close()
    used = memory(service)  # every thread has made a long list
    for _ in range(2):
        dripping = [service.sent(raw) for raw in [*PARTS_OF_REQUESTS.values(), hello()]]
        unread = [client_that_does_not_read(service) for _ in range(3)]
        until(lambda: all_are_closed(dripping))  # noqa: B023
        until(lambda: held_descriptors(service) == before + 1)
        for peer in unread:
            peer.close()
    idle.sendall(HEALTH)
    assert answer_on(idle).status == 200
    assert memory(service) <= used + 20


@pytest.mark.parametrize("loop", LOOPS)
def test_no_worker_thread_waits_for_a_client_that_does_not_read(start: Start, loop: str) -> None:
    service = start(program=ONE_THREAD, server=LOOPS[loop])
    with_comments(service.path, 25_000)
    # More than there are threads. Each health comes between two requests of a pipeline.
    for _ in range(5):
        client_that_does_not_read(service)
    for _ in range(8):
        assert service.ask("GET", "/health").status == 200
        assert service.ask("GET", "/comments?url=/other/&page=2").status == 200
    service.end()


@pytest.mark.usefixtures("many_sockets")
def test_a_crowd_of_silent_connections_makes_room_for_new_ones(start: Start) -> None:
    service = start()
    before = held_at_rest(service)
    for raw in (b"", b"GET /comm"):
        crowd = [service.sent(raw) for _ in range(CONNECTIONS + 200)]
        assert service.ask("GET", "/health").status == 200
        until(lambda: gone(crowd[0]))  # noqa: B023
        assert not gone(crowd[-1])
        for peer in crowd:
            peer.close()
        until(lambda: held_descriptors(service) == before)
    assert service.output.count("\n") < 50, service.output


@pytest.mark.parametrize("most", [256, pytest.param(1024, marks=pytest.mark.long)])
@pytest.mark.usefixtures("many_sockets")
def test_a_new_client_is_served_when_descriptors_are_few(start: Start, most: int) -> None:
    """Beside clients that come and go, that do not read, and that are silent."""
    service = start(program=LIMITED.format(most, most))
    with_comments(service.path, 12_000)
    crowd = [service.connect() for _ in range(most // 2)]
    for peer in crowd[:100]:
        peer.close()
        crowd.append(service.sent(HEALTH))
        assert answer_on(crowd[-1]).status == 200
    for _ in range(most // 26):
        client_that_does_not_read(service)
    for _ in range(50):  # while more and more responses are unread
        assert service.ask("GET", "/health").status == 200
    for _ in range(most + 50):
        service.connect()
    assert service.ask("GET", f"/comments?url={PAGE}&page=2").status == 200
    assert service.output.count("\n") < 50, service.output[-3000:]
    service.end()  # a stop would wait for the clients that do not read


def in_bites(raw: bytes, size: int = 1) -> list[bytes]:
    return [raw[i : i + size] for i in range(0, len(raw), size)]


# Honest readers beside hostile connections


def hostile(service: Service, chance: Random) -> tuple[socket.socket, list[bytes]]:
    """A connection, and the pieces of data that are to be sent on it."""
    length = b"Content-Length: %d"
    wrong = [head(length % (len(LIKE) + change)) + LIKE for change in (99, -9)]
    asking = head(ASK, CL)
    kinds = [
        [],
        in_bites(chance.choice([LIST, LIKED, hello()])),
        wrong[:1],
        wrong[1:],
        [asking],
        [LIST * 4],
        [LIKED + LIST[:9]],
        [HEALTH] * 40,
        in_bites(LIST * 9, 9),
        [head(TE)] + [b"1\r\nx\r\n"] * 99,
        [asking, *in_bites(LIKE * 2)],
        [chance.choice(AMBIGUOUS) + HEALTH],
    ]
    peer = service.connect()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, chance.choice([2048, 1 << 16]))
    peer.setblocking(False)
    return peer, list(chance.choice(kinds))


def send_read_or_leave(peer: socket.socket, pieces: list[bytes], chance: Random) -> None:
    """Sends a piece, reads a little or much or nothing, or leaves."""
    with contextlib.suppress(OSError):
        if pieces:
            peer.send(pieces.pop(0))
        if size := chance.choice([0, 0, 1, 1, 1 << 16]):
            peer.recv(size)
        if chance.random() < 0.06:
            chance.choice([reset_connection, socket.socket.close, half_close])(peer)


def half_close(peer: socket.socket) -> None:
    peer.shutdown(socket.SHUT_WR)


class Honest:
    """A reader who reads lists, likes and asks for the health, each on a connection of its own."""

    def __init__(self, service: Service) -> None:
        self.service, self.seconds = service, list[float]()

    def ask(self, chance: Random) -> None:
        begun_at = time.monotonic()
        assert self.service.raw(chance.choice([LIST, LIKED, HEALTH])).status == 200
        self.seconds.append(time.monotonic() - begun_at)

    @property
    def p99(self) -> int:
        """The 99th percentile, in milliseconds."""
        return round(1000 * sorted(self.seconds)[len(self.seconds) * 99 // 100])


@pytest.mark.usefixtures("many_sockets")
def test_an_honest_reader_is_answered_beside_hostile_ones(start: Start, campaign: Campaign) -> None:
    service = start(program=IMPATIENT)
    before, reader, used = held_at_rest(service), Honest(service), 0
    with_comments(service.path, 200)
    for chance in campaign.rounds(1):
        size = chance.choice([50, 100, 300]) if campaign.seconds else 100
        crowd = [hostile(service, chance) for _ in range(size)]
        for _ in range(10):
            for peer, pieces in chance.sample(crowd, size // 2):
                send_read_or_leave(peer, pieces, chance)
            reader.ask(chance)
        left = [peer for peer, _ in crowd if peer.fileno() >= 0]
        until(functools.partial(none_is_held, left, service, before))
        for peer, _ in crowd:
            peer.close()
        service.opened.clear()
        used = used or memory(service)
        campaign.figures["hostile connections"] += size
        campaign.measured("MiB more", memory(service) - used)
        campaign.measured("ms at the 99th percentile", reader.p99)
    assert campaign.most["MiB more"] <= 20
    assert "Traceback" not in service.output
    assert service.output.count("\n") < 50, service.output


# With the deadlines of this program, and of the real one.
@pytest.mark.parametrize("program", [IMPATIENT, pytest.param("", marks=pytest.mark.long)])
@pytest.mark.usefixtures("many_sockets")
def test_a_reader_is_answered_beside_500_silent_and_400_slow_clients(
    start: Start, program: str
) -> None:
    service = start(program=program)
    before = held_at_rest(service)
    with_comments(service.path, 500)
    reader = Honest(service)
    chance = Random(1)
    silent = [service.connect() for _ in range(500)]
    slow = [service.sent(LIST[:1]) for _ in range(400)]

    def all_slow_ones_are_cut() -> bool:
        reader.ask(chance)
        return all_are_closed(slow)  # they send one more byte of an endless request

    until(all_slow_ones_are_cut)
    for peer in [*silent, *slow]:
        peer.close()
    service.opened.clear()
    until(lambda: held_descriptors(service) == before)
    assert "Traceback" not in service.output
