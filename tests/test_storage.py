"""What the database holds, whatever happens: kills, faults of the machine, damage, files of other
programs, migrations. And no request reads more than it has to."""

import gc
import itertools
import json
import logging
import os
import resource
import signal
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commentd import (
    MIGRATIONS,
    YEAR_9999,
    App,
    Changes,
    Config,
    Turns,
    World,
    make_app,
    migrate,
    possible_time,
)
from support import inside
from support.api import example_of, path_of
from support.campaign import Campaign
from support.client import CANARY, COMMENT, PAGE, Visitor, registration, stranger
from support.commands import run_here
from support.comments import solved
from support.database import (
    assert_whole,
    comments_by_id,
    config_for,
    cut_off,
    schema,
    tables_in,
    with_version,
)
from support.faults import little_room, noise, spoil
from support.inside import (
    REFUSALS,
    add_account,
    database_path,
    in_its_thread,
    sql,
    statements,
    token_of,
    writer,
    writers_held,
)
from support.patience import PATIENCE
from support.service import LOGIN, Service, Writer, answer_on, request, services
from support.serving import PROGRAM, SteppedServer, arrived, gone, limit, turned, until
from support.world import FakeWorld

SORTS = ("newest", "oldest", "likes")


# Killed


def test_acknowledged_comments_survive_a_kill(tmp_path: Path, campaign: Campaign) -> None:
    kept: dict[int, str] = {}
    folder = tmp_path / "0"
    with services(folder) as start:
        for chance in campaign.rounds(2):
            # To look through a database takes longer, the more is in it.
            if (now_in := tmp_path / f"{campaign.last // 20}") != folder:
                folder, kept = now_in, {}
            service = start(folder)
            writers = [Writer(service, name) for name in "abcdef"]
            for each in writers:
                each.start()
            enough = chance.randrange(20, 300)
            until(lambda: sum(each.writes for each in writers) > enough)  # noqa: B023
            service.stop(signal.SIGKILL)
            now = comments_by_id(service.path)
            for each in writers:
                each.join()
                campaign.figures["acknowledged"] += each.writes
                kept |= each.kept
            assert {number: now.get(number) for number in kept} == kept
            assert_whole(str(service.path))
            campaign.figures["kills"] += 1


# Many writers at once


on_any_port = pytest.mark.parametrize("settings", [{"server_listen": "127.0.0.1:0"}])


@pytest.fixture
def server(app: App, fake_world: FakeWorld, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server whose event loop writes all that waits in one transaction."""
    limit(monkeypatch, turn_seconds=PATIENCE, seconds_of_one=PATIENCE)
    with closing(SteppedServer(turned(app), fake_world)) as server:
        yield server


@dataclass
class Write:
    """A request of a client with an IP address of its own."""

    number: int
    path: str
    form: dict[str, Any]

    def send(self, server: SteppedServer) -> socket.socket:
        peer = server.come(ip=f"127.1.{self.number // 250}.{1 + self.number % 250}")
        peer.sendall(request("POST", self.path, body=self.form))
        return peer


def comment_at(number: int) -> Write:
    return Write(number, "/comments", {**COMMENT, "content": f"{number}"})


def status_for(server: SteppedServer, peer: socket.socket) -> int:
    return int(server.read(peer, lambda data: b"\r\n\r\n" in data)[9:12])


def done(server: SteppedServer, write: Write) -> int:
    return status_for(server, write.send(server))


def send_at_once(
    app: App,
    server: SteppedServer,
    patch: pytest.MonkeyPatch,
    writes: list[Write],
    fault: Any = None,
) -> list[int]:
    """All wait for each other, in this order, and then go on with a fault of the machine: the
    statuses of the responses."""
    peers = []
    with ExitStack() as stack:
        with writers_held(app, patch):
            for number, write in enumerate(writes, 1):
                peers.append(write.send(server))
                server.until(lambda: server.waiting_writes() == number)  # noqa: B023
            if fault:
                stack.enter_context(fault)
        return [status_for(server, peer) for peer in peers]


def test_a_thread_that_waits_no_longer_for_its_turn_does_not_get_it() -> None:
    turns = Turns()
    assert turns.acquire(timeout=0)
    with ThreadPoolExecutor() as threads:
        assert threads.submit(turns.acquire, timeout=0.01).result() is False
        turns.release()
        assert threads.submit(turns.acquire, timeout=0.01).result() is True


def test_a_turn_that_comes_when_the_wait_has_just_ended_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    turns = Turns()

    @contextmanager
    def overtaken() -> Iterator[None]:
        if turns.waiting:
            monkeypatch.undo()
            turns.release()
        else:
            monkeypatch.setattr(turns, "lock", overtaken())
        yield

    assert turns.acquire(timeout=0)
    monkeypatch.setattr(turns, "lock", overtaken())
    assert turns.acquire(timeout=0) is True
    turns.release()
    assert turns.acquire(timeout=0) is True


def test_a_connection_that_a_thread_has_closed_is_kept_nowhere(app: App) -> None:
    """Where several blogs are served, each request of a worker opens one."""
    store = app.site.store

    def connections() -> int:
        gc.collect()
        return sum(isinstance(each, sqlite3.Connection) for each in gc.get_objects())

    store.close_own_reader()
    before = connections()
    for _ in range(3):
        assert store.admins() == []
        assert connections() == before + 1
        store.close_own_reader()
    assert connections() == before


def test_a_stored_time_that_is_impossible_is_the_nearest_possible_one() -> None:
    assert [possible_time(time) for time in (-1, 0, 1, 1e12)] == [0, 0, 1, YEAR_9999]


def test_changes_of_more_pages_than_are_told_apart_count_for_all_pages() -> None:
    changes = Changes()
    changes.note(["/a"])
    seen = changes.last
    changes.note([f"/{number}" for number in range(changes.MOST_PAGES - 1)])
    assert not changes.came_after(seen, ["/a"])
    seen = changes.last
    changes.note(["/one more"])
    assert changes.came_after(seen, ["/a"])
    seen = changes.last
    changes.note(["/b"])
    assert changes.came_after(seen, ["/b"])
    assert not changes.came_after(seen, ["/a"])


@on_any_port
def test_a_hundred_writers_at_once_are_served_in_turn_and_share_a_commit(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with statements(app) as run:
        assert send_at_once(app, server, monkeypatch, [*map(comment_at, range(100))]) == [200] * 100
    assert run.count("COMMIT") == 1
    rows = sql(app, "SELECT content FROM comment ORDER BY id")
    assert [int(content) for (content,) in rows] == [*range(100)]


@on_any_port
def test_no_response_leaves_before_the_commit_that_keeps_its_write(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = server.turn
    turns: list[float] = []
    peers: list[socket.socket] = []
    have_response: list[bool] = []

    def counted_turn(seconds: float) -> None:
        turn(seconds)
        turns.append(seconds)

    def look(statement: str) -> None:
        if statement == "COMMIT":
            enough = len(turns) + 3
            until(lambda: len(turns) > enough)
            have_response.extend(map(arrived, peers))

    server.turn = counted_turn
    with writers_held(app, monkeypatch):
        peers = [comment_at(number).send(server) for number in range(5)]
        server.until(lambda: server.waiting_writes() == 5)
        writer(app).set_trace_callback(look)
    assert [status_for(server, peer) for peer in peers] == [200] * 5
    assert have_response == [False] * 5


@on_any_port
def test_readers_get_lists_while_writers_wait(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert done(server, comment_at(0)) == 200
    with writers_held(app, monkeypatch):
        peer = comment_at(1).send(server)
        server.until(server.waiting_writes)
        reader = server.come(ip="127.2.0.1")
        reader.sendall(request("GET", f"/comments?url={PAGE}"))
        assert status_for(server, reader) == 200
        assert server.waiting_writes() == 1
    assert status_for(server, peer) == 200


@on_any_port
def test_a_refused_write_takes_nothing_back_of_those_that_share_its_commit(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert done(server, comment_at(0)) == 200
    refused = Write(1, "/page/like", {"page_url": "/new/"})
    for undo in (False, True) * 5:
        assert done(server, Write(1, "/page/like", {"page_url": PAGE, "undo": undo})) == 200
    writes = [comment_at(2), refused, comment_at(3), refused, comment_at(4)]
    assert send_at_once(app, server, monkeypatch, writes) == [200, 429, 200, 429, 200]
    # A like adds the page before it is refused.
    assert sql(app, "SELECT page_url FROM page") == [(PAGE,)]
    rows = sql(app, "SELECT content FROM comment ORDER BY id")
    assert [content for (content,) in rows] == ["0", "2", "3", "4"]


@on_any_port
def test_a_refused_write_may_be_the_first_or_the_last_one(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = [Write(number, "/comment/like", {"id": 9}) for number in range(2)]
    writes = [gone[0], comment_at(2), gone[1]]
    assert send_at_once(app, server, monkeypatch, writes) == [404, 200, 404]
    assert sql(app, "SELECT content FROM comment") == [("2",)]


@on_any_port
def test_a_commit_that_fails_refuses_all_that_share_it(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert done(server, comment_at(0)) == 200
    likes = [Write(number, "/page/like", {"page_url": PAGE}) for number in range(9)]
    assert send_at_once(app, server, monkeypatch, likes, little_room(0)) == [503] * 9
    assert sql(app, "SELECT count(*) FROM page_liker") == [(0,)]
    assert send_at_once(app, server, monkeypatch, likes) == [200] * 9
    assert sql(app, "SELECT count(*) FROM page_liker") == [(9,)]


@on_any_port
def test_a_fault_that_undoes_all_refuses_all_that_were_done(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite takes back a whole transaction when a change is interrupted, but not for a query."""
    assert done(server, comment_at(0)) == 200
    whole = sql(app, "SELECT content FROM comment")
    counts = set()
    for last in range(200, 4400, 300):
        writes = [comment_at(number) for number in range(last, last + 9)]
        fault = cut_off(writer(app), last)
        statuses = send_at_once(app, server, monkeypatch, writes, fault)
        assert set(statuses) <= {200, 503}
        numbered = zip(writes, statuses, strict=True)
        kept = [(write.form["content"],) for write, status in numbered if status == 200]
        whole += kept
        assert sql(app, "SELECT content FROM comment ORDER BY id") == whole
        counts.add(len(kept))
    assert counts == {0, 8}


@contextmanager
def savepoints_kept(db: sqlite3.Connection) -> Iterator[None]:
    """SQLite does not go back to any savepoint."""

    def answer(action: int, detail: str | None, *_: object) -> int:
        is_back = action == sqlite3.SQLITE_SAVEPOINT and detail == "ROLLBACK"
        return sqlite3.SQLITE_DENY if is_back else sqlite3.SQLITE_OK

    db.set_authorizer(answer)
    yield
    db.set_authorizer(None)


@on_any_port
def test_a_refusal_that_cannot_be_undone_alone_undoes_all(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert done(server, comment_at(0)) == 200
    writes = [replace(comment_at(number), number=1) for number in range(1, 7)]
    fault = savepoints_kept(writer(app))  # the sixth is one too many
    assert send_at_once(app, server, monkeypatch, writes, fault) == [503] * 6
    assert sql(app, "SELECT content FROM comment") == [("0",)]


@on_any_port
def test_writers_that_find_the_database_locked_are_told_so(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert done(server, comment_at(0)) == 200
    likes = [Write(number, "/page/like", {"page_url": PAGE}) for number in range(3)]
    assert send_at_once(app, server, monkeypatch, likes, locked(app)) == [503] * 3
    assert send_at_once(app, server, monkeypatch, likes) == [200] * 3


@on_any_port
def test_writes_of_one_client_that_share_a_commit_count_on_its_limits(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = [replace(comment_at(number), number=1) for number in range(7)]
    assert send_at_once(app, server, monkeypatch, writes) == [200] * 5 + [429] * 2
    assert sql(app, "SELECT content FROM comment ORDER BY id") == [(f"{n}",) for n in range(5)]


@on_any_port
def test_a_double_click_whose_requests_share_a_commit_makes_one_comment(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert send_at_once(app, server, monkeypatch, [comment_at(1)] * 2) == [200] * 2
    assert sql(app, "SELECT content FROM comment") == [("1",)]


@pytest.mark.parametrize(
    "settings", [{"server_listen": "127.0.0.1:0", "captcha_provider": "altcha"}]
)
def test_a_captcha_is_spent_on_one_of_the_comments_that_share_a_commit(
    app: App, server: SteppedServer, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    captcha_token = solved(visitor)
    writes = [comment_at(number) for number in range(3)]
    for write in writes:
        write.form["captcha_token"] = captcha_token
    assert send_at_once(app, server, monkeypatch, writes) == [200, 403, 403]
    assert sql(app, "SELECT content FROM comment") == [("0",)]


def no_thread(_: threading.Thread) -> None:
    """What `start` does where a container or a user may have no more threads."""
    raise RuntimeError("can't start new thread")


@on_any_port
def test_a_request_whose_thread_cannot_start_ends_no_other(
    server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = request("POST", "/auth/login", body=LOGIN)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_thread)
        peers = [comment_at(0).send(server), server.come(ip="127.2.0.1")]
        peers[1].sendall(login)
        server.until(lambda: all(map(gone, peers)))
    assert done(server, comment_at(1)) == 200
    peer = server.come(ip="127.2.0.2")
    peer.sendall(login)
    assert status_for(server, peer) == 401


@on_any_port
def test_a_client_that_has_used_its_time_of_the_event_loop_writes_in_a_worker(
    app: App, server: SteppedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what it had sent before that, which waited for a transaction."""
    with writers_held(app, monkeypatch):
        peers = [comment_at(number).send(server) for number in range(2)]
        server.until(lambda: server.waiting_writes() == 2)
        limit(monkeypatch, seconds_of_one=-1)
    assert [status_for(server, peer) for peer in peers] == [200] * 2
    assert server.workers()


@on_any_port
def test_a_commit_that_outlasts_the_end_of_the_service_is_still_acknowledged(
    app: App, server: SteppedServer
) -> None:
    transaction = server.loop.shared_transaction(app.site.store)

    def wait(statement: str) -> None:
        if statement == "COMMIT":
            until(lambda: transaction.is_closed)

    assert done(server, comment_at(0)) == 200
    writer(app).set_trace_callback(wait)
    peer = comment_at(1).send(server)
    server.until(lambda: writer(app).in_transaction and not server.waiting_writes())
    server.loop.drain(0)
    server.loop.end_threads()
    assert answer_on(peer).status == 200


@pytest.mark.slow
def test_a_service_whose_event_loop_fails_ends_so_that_it_is_started_again(tmp_path: Path) -> None:
    fails = PROGRAM.format("commentd.EventLoop.run_handlers = lambda self, shared: 1 / 0")
    with services(tmp_path) as start:
        service = start(program=fails)
        service.sent(request("POST", "/comments", body=COMMENT))
        assert service.process.wait(PATIENCE) == 1


# Faults of the machine


@contextmanager
def locked(app: App) -> Iterator[None]:
    """Another program holds the file for longer than we wait."""
    writer(app).execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(database_path(app), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def read_only(app: App) -> Iterator[None]:
    writer(app).execute("PRAGMA query_only = ON")
    yield
    writer(app).execute("PRAGMA query_only = OFF")


FAULTS: dict[str, Callable[[App], AbstractContextManager[None]]]
FAULTS = {"locked": locked, "read only": read_only, "no room": lambda app: little_room(0)}
WRITES = {
    "/comments": {**COMMENT, "content": "lost", "page_url": "/new/"},
    "/comment/like": {"id": 1},
    "/page/like": {"page_url": "/new/"},
    "/auth/register": registration(),
    "/auth/login": LOGIN,
    "/auth/verify": {"email": "bob@example.com", "token": "123456"},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_disk_refuses_writes_and_nothing_else(visitor: Visitor, fault: str) -> None:
    visitor.say("kept")
    visitor.faults_allowed = True
    with FAULTS[fault](visitor.served):
        for path, body in WRITES.items():
            reply = visitor.post_json(path, body, status=503)
            assert int(reply.headers["Retry-After"]) > 0, path
            if path != "/auth/verify":
                assert reply.json == {"error": "暂时无法保存，请稍后再试", "code": "storage"}
        assert visitor.get("/health", status=503).json["code"] == "storage"
        assert [c["content"] for c in visitor.listing()["comments"]] == ["kept"]
        assert visitor.listing(url="/other/")["views"] == 1
    visitor.faults_allowed = False
    assert visitor.get("/health").json == {"ok": True}
    visitor.served.tick()
    visitor.say("again")
    assert [c["content"] for c in visitor.listing()["comments"]] == ["again", "kept"]
    assert visitor.listing(url="/other/")["views"] == 2  # the first view was not lost


@pytest.mark.parametrize("fault", FAULTS)
def test_an_email_whose_sending_can_not_be_noted_is_sent_once(
    visitor: Visitor, fake_world: FakeWorld, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    visitor.register()
    with FAULTS[fault](visitor.served):
        for _ in range(5):
            in_its_thread(visitor.served.deliver)
            fake_world.time += 5
    in_its_thread(lambda: 1 / 0)
    assert "failed, and goes on" in caplog.text
    assert len(fake_world.emails) <= 1
    visitor.served.deliver()
    assert 1 <= len(fake_world.emails) <= 2
    assert len({email.message for email in fake_world.emails}) == 1


@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_a_write_that_is_cut_off_anywhere_leaves_nothing(visitor: Visitor) -> None:
    visitor.say()
    visitor.faults_allowed = True  # and the visitor sees what a refusal changes
    for path in ("/comments", "/comment/like", "/page/like", "/auth/register"):
        for last in itertools.count(5, 25):
            with cut_off(writer(visitor.served), last):
                reply = visitor.post_json(path, WRITES[path], expect_errors=True)
            if reply.status_int == 200:
                break
            assert (reply.status_int, reply.json["code"]) == (503, "storage")
        assert last > 50, path


@pytest.mark.slow
def test_a_disk_that_fills_up_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    kept = 1
    with services(tmp_path) as start:
        service = start(backup={"every": "0"})
        service.ask("POST", "/comments", body=COMMENT)
        size = service.path.with_name("commentd.db-wal").stat().st_size + 50_000
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        for number in range(500):
            body = {**COMMENT, "content": f"{number} " + "x" * 1900}
            answer = service.ask("POST", "/comments", body=body)
            if answer.status != 200:
                break
            kept += 1
        assert (answer.status, answer.json["code"]) == (503, "storage")
        assert int(answer.headers["Retry-After"]) > 0
        assert service.ask("GET", f"/comments?url={PAGE}").json["total"] == kept
        endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, endless)
        assert service.ask("POST", "/comments", body=body).status == 200
        assert service.ask("GET", "/health").status == 200
        service.stop(signal.SIGKILL)
        assert start().ask("GET", f"/comments?url={PAGE}").json["total"] == kept + 1


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"limits_enabled": False, "comments_max_length": 10_000}])
def test_the_wal_does_not_grow_with_what_is_written(app: App) -> None:
    client, sizes = stranger(app), []
    writer(app).execute("PRAGMA synchronous = OFF")  # for speed; it changes no size
    for number in range(100):
        client.post_json("/comments", {**COMMENT, "content": f"{number} " + "x " * 4900})
        client.get("/comments", {"url": PAGE, "limit": 1})
        sizes.append(os.path.getsize(f"{database_path(app)}-wal"))
    assert max(sizes) < 6_000_000 < sizes[0] * len(sizes)


WAITS_AN_HOUR_FOR_THE_LOCK = PROGRAM.format(
    "commentd.PRAGMAS = ('busy_timeout = 3600000', *commentd.PRAGMAS[1:])"
)


@pytest.mark.slow
def test_readers_are_served_while_all_writers_wait(tmp_path: Path) -> None:
    with services(tmp_path) as start:
        service = start(program=WAITS_AN_HOUR_FOR_THE_LOCK)
        service.ask("POST", "/comments", body=COMMENT)
        with closing(sqlite3.connect(service.path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            like = request("POST", "/comment/like", body={"id": 1})
            # Whether it could write is what health asks.
            writers = [service.sent(request("GET", "/health")) for _ in range(5)]
            writers += [service.sent(like) for _ in range(20)]
            reader = service.sent(request("GET", f"/comments?url={PAGE}"))
            assert answer_on(reader).json["total"] == 1
        assert {answer_on(each).status for each in writers} <= {200, 503}
        assert service.ask("GET", "/health").json == {"ok": True}


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """The connections that are made from now on, which do not wait for locks."""
    made: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connecting(*words: Any, **how: Any) -> sqlite3.Connection:
        made.append(connect(*words, **{**how, "timeout": 0.01}))
        return made[-1]

    monkeypatch.setattr(sqlite3, "connect", connecting)
    return made


def test_the_wal_is_emptied_in_turn_alone(config: Config, connections: list[Any]) -> None:
    """By whoever closes, too: two that empty it at one moment can spoil the file."""
    app = make_app(config, rounds=1)
    stranger(app).post_json("/comments", COMMENT)
    wal = Path(f"{config.database_path}-wal")
    before = wal.read_bytes()
    turn = sqlite3.connect(f"{config.database_path}-write", isolation_level=None)
    with closing(turn), closing(sqlite3.connect(config.database_path)) as reader:
        reader.execute("SELECT count(*) FROM comment").fetchall()
        turn.execute("BEGIN EXCLUSIVE")
        app.close()
        assert wal.read_bytes() == before != b""


def test_a_stop_waits_for_a_command_that_reads_and_empties_the_wal(config: Config) -> None:
    app = make_app(config, rounds=1)
    stranger(app).post_json("/comments", COMMENT)
    with closing(
        sqlite3.connect(config.database_path, check_same_thread=False, isolation_level=None)
    ) as command:
        command.execute("BEGIN")
        command.execute("SELECT count(*) FROM comment").fetchone()
        threading.Timer(0.5, command.rollback).start()
        app.close()
        assert os.path.getsize(f"{config.database_path}-wal") == 0


def test_each_connection_is_set_up_and_stays_so(
    config: Config, connections: list[sqlite3.Connection], fake_world: FakeWorld
) -> None:
    usual = {"foreign_keys": 1, "trusted_schema": 0, "busy_timeout": 5000, "secure_delete": 1}
    usual |= {"synchronous": 2, "journal_size_limit": 64 * 1024 * 1024, "mmap_size": 0}
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        stranger(app).post_json("/comments", COMMENT)
        stranger(app).get("/comments", {"url": PAGE})
        fake_world.time += 86400
        app.tick()  # which empties the -wal
        reads_only = []
        for db in connections:
            with suppress(sqlite3.ProgrammingError):  # it is closed
                if db.execute("PRAGMA database_list").fetchone()[2] != config.database_path:
                    continue  # a lock
                assert {n: db.execute(f"PRAGMA {n}").fetchone()[0] for n in usual} == usual
                assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
                reads_only.append(db.execute("PRAGMA query_only").fetchone()[0])
                kept = db.execute("PRAGMA cache_size").fetchone()[0]
                assert kept == -256 or not reads_only[-1]  # KiB: each thread has a reader
                in_memory = db.execute("PRAGMA temp_store").fetchone()[0] == 2
                assert in_memory or reads_only[-1]  # what is written there may be deleted later
        assert sorted(reads_only) == [0, 1]


def test_erased_data_is_wiped_from_the_file_once_a_day(app: App, fake_world: FakeWorld) -> None:
    began = inside.now(app)
    for hours, wiped_at in ((0, 0), (23, 0), (24, 24), (47, 24), (48, 48)):
        fake_world.time = began + hours * 3600
        app.tick()
        [(found,)] = inside.sql(app, "SELECT time FROM state WHERE name = 'wipe'")
        assert found == began + wiped_at * 3600


# Damage


@pytest.mark.parametrize("table", ["rate_limit", "comment"])
def test_a_damaged_database_ends_all_writing_and_is_reported_once(
    config: Config, fake_world: FakeWorld, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    app = make_app(config, fake_world.world, rounds=1)
    client = stranger(app)
    client.post_json("/comments", COMMENT)
    spoil(config.database_path, table)
    before = Path(config.database_path).read_bytes()
    for _ in range(3 * (table == "comment")):
        assert client.get("/comments", {"url": PAGE}, status=503).json["code"] == "storage"
    for path in ("/comments", "/page/like", "/auth/login"):
        reply = client.post_json(path, {**COMMENT, **LOGIN, "content": "other"}, status=503)
        assert reply.json["code"] == "storage"
        assert "Retry-After" in reply.headers
    assert client.get("/health", status=503).json["code"] == "storage"
    assert client.get("/pages", {"url": PAGE}).json["pages"][0]["total"] == 1
    app.close()
    assert [r.levelno for r in caplog.records].count(logging.CRITICAL) == 1
    assert Path(config.database_path).read_bytes() == before
    with pytest.raises(REFUSALS, match="damaged"):
        make_app(config, fake_world.world, rounds=1)


# What is there at the start


def deterministic(seed: int, fake_world: FakeWorld) -> World:
    """A world whose chance is the same each time."""
    return replace(fake_world.world, random_bytes=Random(seed).randbytes)


@pytest.fixture(scope="module")
def used_database(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A database with comments, likes, an account and registrations, closed cleanly."""
    path, fake_world = tmp_path_factory.mktemp("lived_in") / "commentd.db", FakeWorld()
    with closing(make_app(config_for(path), deterministic(1, fake_world), rounds=1)) as app:
        client = stranger(app)
        client.post_json("/auth/register", registration("ann@example.com"))
        app.deliver()
        client.post_json("/auth/verify", {"email": "ann@example.com", "token": fake_world.code()})
        for number in range(3):
            client.post_json("/comments", {**COMMENT, "content": f"{number} " + "long " * 300})
        client.post_json("/comment/like", {"id": 1})
        client.post_json("/auth/register", registration())
        app.deliver()
        client.post_json("/auth/register", registration("cid@example.com"))
    return path.read_bytes()


TEXT = b"these are my notes\n"
SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "half": lambda whole: whole[: len(whole) // 2],
    "a page short": lambda whole: whole[:-4096],
    "a byte short": lambda whole: whole[:-1],
    "a page": lambda whole: whole[:4096],
    "a header": lambda whole: whole[:100],
    "a magic word": lambda whole: whole[:16],
    "a text": lambda whole: TEXT,
    "a long text": lambda whole: TEXT * 1000,
    "noise": lambda whole: noise(10_000),
    "noise after the header": lambda whole: whole[:100] + noise(10_000),
}


def assert_refused_untouched(path: Path, words: str, case: object = "") -> None:
    def found() -> dict[str, bytes]:
        """What lies there, but for the lock, which is empty."""
        files = [p for p in path.parent.iterdir() if p.is_file() and "-lock" not in p.name]
        return {p.name: p.read_bytes() for p in files}

    before = found()
    with pytest.raises(REFUSALS, match=words) as refusal:
        make_app(Config(database_path=str(path)))
    assert str(path) in str(refusal.value), case
    assert "\n" not in str(refusal.value), case
    assert found() == before, case


def test_a_spoilt_database_file_is_refused_untouched(used_database: bytes, tmp_path: Path) -> None:
    path = tmp_path / "commentd.db"
    for case, spoils in SPOILT.items():
        path.write_bytes(spoils(used_database))
        assert_refused_untouched(path, "damaged", case)
    path.write_bytes(with_version(used_database.replace(b"STRICT", b"TIDIED"), len(MIGRATIONS) + 1))
    assert_refused_untouched(path, "newer commentd")


def test_noise_over_any_page_of_the_database_is_noticed(
    used_database: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "commentd.db"
    for start in range(0, len(used_database), 4096):
        path.write_bytes(used_database[:start] + noise() + used_database[start + 4096 :])
        assert_refused_untouched(path, "damaged", start)


def test_the_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    for mode in ("DELETE", "WAL"):
        path = tmp_path / f"{mode}.db"
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute(f"PRAGMA journal_mode = {mode}")
            db.execute("CREATE TABLE note (text)")
        assert_refused_untouched(path, "another program", mode)
    (tmp_path / "folder").mkdir()
    long = tmp_path / ("x" * 252)  # the name of its lock is too long
    for path in (tmp_path / "folder", tmp_path / "missing" / "commentd.db", long):
        with pytest.raises(REFUSALS, match=f"^{tmp_path}.*$"):
            make_app(Config(database_path=str(path)))
    assert not (tmp_path / "missing").exists()


def test_an_empty_database_file_becomes_a_new_database(config: Config) -> None:
    Path(config.database_path).touch()
    make_app(config).close()
    assert_whole(config.database_path)


def test_only_the_owner_can_read_the_database_files(config: Config) -> None:
    umask = os.umask(0)
    try:
        with closing(make_app(config, rounds=1)) as app:
            stranger(app).post_json("/comments", COMMENT)
            folder = Path(config.database_path).parent
            modes = {p.name: p.stat().st_mode & 0o777 for p in folder.iterdir()}
    finally:
        os.umask(umask)
    assert {"commentd.db", "commentd.db-wal", "commentd.db-shm"} <= set(modes)
    assert set(modes.values()) == {0o600}, modes


# Migrations


@pytest.fixture
def memory_database() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        yield db


BASE = "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a_id REFERENCES a (id));"
ROWS = "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1);"


def test_a_migration_that_fails_leaves_nothing(memory_database: sqlite3.Connection) -> None:
    """The earlier ones of the same start go too: no released program knows that state."""
    migrate(memory_database, [BASE])
    before = schema(memory_database)
    broken = "CREATE TABLE c (id); INSERT INTO a VALUES (2); INSERT INTO nowhere VALUES (1);"
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(memory_database, [BASE, ROWS, broken, "CREATE TABLE never (id)"])
    assert (schema(memory_database), memory_database.execute("SELECT * FROM a").fetchall()) == (
        before,
        [],
    )
    assert not memory_database.in_transaction
    migrate(memory_database, [BASE, ROWS, "CREATE TABLE c (id)"])
    assert memory_database.execute("PRAGMA user_version").fetchone()[0] == 3
    before = schema(memory_database)
    for orphan in ("INSERT INTO b VALUES (9)", "DELETE FROM a", "DROP TABLE a"):
        with pytest.raises(REFUSALS, match="migration 4 leaves rows that point nowhere"):
            migrate(memory_database, [BASE, ROWS, "CREATE TABLE c (id)", orphan])
        assert (schema(memory_database), memory_database.execute("SELECT * FROM b").fetchall()) == (
            before,
            [(1,)],
        )


def test_a_migration_may_be_a_function_and_leaves_nothing_if_it_fails(
    memory_database: sqlite3.Connection,
) -> None:
    def repair(db: sqlite3.Connection) -> None:
        for (number,) in db.execute("SELECT id FROM a").fetchall():
            db.execute("INSERT INTO a VALUES (?)", (number + 100,))

    def fail(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO a VALUES (3)")
        raise ValueError("a row that can't be repaired")

    def orphan(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO b VALUES (9)")

    migrate(memory_database, [BASE, ROWS, repair])
    assert memory_database.execute("SELECT id FROM a").fetchall() == [(1,), (101,)]
    assert memory_database.execute("PRAGMA user_version").fetchone()[0] == 3
    for broken, error, text in (
        (fail, ValueError, "can't be repaired"),
        (orphan, REFUSALS, "rows that point nowhere"),
    ):
        with pytest.raises(error, match=text):
            migrate(memory_database, [BASE, ROWS, repair, broken])
        assert memory_database.execute("SELECT id FROM a").fetchall() == [(1,), (101,)]
        assert memory_database.execute("PRAGMA user_version").fetchone()[0] == 3


def test_a_table_is_rebuilt_without_losing_what_points_to_it(
    memory_database: sqlite3.Connection,
) -> None:
    anew = """CREATE TABLE a2 (id INTEGER PRIMARY KEY, more TEXT);
        INSERT INTO a2 (id) SELECT id FROM a; DROP TABLE a; ALTER TABLE a2 RENAME TO a;"""
    migrate(memory_database, [BASE.replace("a_id ", "a_id INTEGER "), ROWS, anew])
    assert memory_database.execute("SELECT * FROM b JOIN a ON id = a_id").fetchall() == [
        (1, 1, None)
    ]
    with pytest.raises(sqlite3.IntegrityError):
        memory_database.execute("INSERT INTO b VALUES (9)")


# What a request costs


def test_each_reference_can_be_found_from_its_other_end(db: sqlite3.Connection) -> None:
    tables = tables_in(db)
    for table in tables:
        for reference in db.execute(f"PRAGMA foreign_key_list({table})").fetchall():
            sql = f"EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE {reference[3]} = 1"
            assert "SEARCH" in db.execute(sql).fetchone()[3], (table, reference[3])


COSTS = [
    "/comments?url=/a/&view=flat&sort=newest",
    "/comments?url=/a/&view=flat&sort=oldest",
    "/comments?url=/a/&view=flat&sort=likes",
    "/comments?url=/a/&view=threads&sort=newest",
    "/comments?url=/a/&view=threads&sort=oldest",
    "/comments?url=/a/&view=threads&sort=likes",
    "/comments?url=/a/&thread=1&sort=oldest",
    "/comments?url=/a/&page=2",
    "/comments/latest",
    "/pages?url=/a/&url=/b/",
    "/feed.atom",
    "/feed.atom?url=/a/",
    "/health",
    "/thread?url=/a/",
    "/fragment?url=/a/",
    "/comments?url=/a/&sort=oldest&around=1",
]


# They read no table.
NO_ROWS = {"/{name}", "/words/{name}", "/admin_page/{name}", "/picture", "/fragment.css"}


def test_the_cost_of_every_public_route_is_weighed() -> None:
    weighed = {path_of(target) for target in COSTS}
    lacking = [
        f'tests/test_storage.py: COSTS lacks "{example_of(path)}?…" '
        f'(or NO_ROWS lacks "{path}", if it reads no table)'
        for path in inside.public_paths() - weighed - NO_ROWS
    ]
    assert not lacking, "\n".join(sorted(lacking))


@pytest.mark.slow
def test_a_request_costs_the_same_however_much_there_is(
    connections: list[sqlite3.Connection], app: App, fake_world: FakeWorld, tmp_path: Path
) -> None:
    """In steps of SQLite's machine: no statement may read all comments. What an admin searches for
    has a limit of time instead."""
    client, numbers, steps = stranger(app), itertools.count(), list[int]()
    add_account(app, "ann@example.com", "Ann", CANARY)
    bearer = {"Authorization": f"Bearer {token_of(app, 'ann@example.com')}"}

    def post(path: str, **form: Any) -> Callable[[], object]:
        body = {**COMMENT, "page_url": "/a/", **form}
        return lambda: client.post_json(path, {**body, "content": f"text {next(numbers)}"})

    def tick() -> None:
        fake_world.time += 60  # so that it does all that is due once a minute
        app.tick()

    works: dict[str, Callable[[], object]] = {
        path: lambda path=path: client.get(path, headers=bearer)  # type: ignore[misc]
        for path in [*COSTS, "/me"]
    }
    works |= {
        "a comment": post("/comments"),
        "a reply": post("/comments", parent_id=1),
        "a like": post("/comment/like", id=1),
        "a like of the page": post("/page/like"),
        "a report": post("/comments/7/report", reason="rude"),
        "a login": lambda: client.post_json("/auth/login", LOGIN, status=401),
        "a registration": post("/auth/register", **registration()),
        "a tick": tick,
        "emails": app.deliver,
    }
    costs: dict[str, list[int]] = {name: [] for name in works}
    for first, last in ((0, 100), (100, 700)):
        lines = []
        for number in range(first, last):
            record = {"_id": f"{number}", "comment": f"<p>{number}</p>", "created": 1790000000000}
            parent = {"pid": "0", "rid": "0"} if number % 5 == 4 else {}
            lines.append(json.dumps({**record, **parent, "url": f"/{'ab'[number % 2]}/"}))
        (tmp_path / "file").write_text("\n".join(lines))
        assert run_here(tmp_path, "import", "file")[0] == 0
        for name, work in works.items():
            fake_world.time += 3601  # no rate limit is used up
            work()  # what is done once is not counted
            fake_world.time += 3601
            steps.clear()
            for handler in (lambda: steps.append(1), None):
                for db in connections:
                    with suppress(sqlite3.ProgrammingError):  # it is closed
                        db.set_progress_handler(handler, 1)
                if handler:
                    work()
            costs[name].append(len(steps))
    for name, (few, many) in costs.items():
        assert few > 0, name
        # A third of a step for each new comment.
        grows = f"commentd.py: the SQL of {name} reads more rows the more comments there are"
        assert many - few < 200, f"{grows} ({few} steps, then {many}): it lacks an index or a LIMIT"


# The file is not where it was


def moved(service: Service) -> None:
    service.path.rename(service.path.with_name("gone.db"))


def moved_back(service: Service) -> None:
    service.path.with_name("gone.db").rename(service.path)


def folder_moved(service: Service) -> None:
    service.path.parent.rename(service.path.parent.with_name("elsewhere"))


def folder_moved_back(service: Service) -> None:
    service.path.parent.with_name("elsewhere").rename(service.path.parent)


def replaced(service: Service) -> None:
    another = service.path.with_name("another.db")
    another.write_bytes(service.path.read_bytes())
    another.replace(service.path)


def wal_deleted(service: Service) -> None:
    Path(f"{service.path}-wal").unlink()


def table_dropped(service: Service) -> None:
    with closing(sqlite3.connect(service.path)) as db:
        db.execute("DROP TABLE day")


LOSSES: dict[str, tuple[Callable[[Service], None], Callable[[Service], None] | None]] = {
    "moved": (moved, moved_back),
    "deleted": (lambda service: service.path.unlink(), None),
    "replaced": (replaced, None),
    "folder moved": (folder_moved, folder_moved_back),
    "-wal deleted": (wal_deleted, None),
    "table dropped": (table_dropped, None),
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_a_service_whose_database_file_is_lost_says_so(tmp_path: Path, loss: str) -> None:
    lose, find = LOSSES[loss]
    service = Service(tmp_path / "site").greeted()
    try:
        assert service.ask("POST", "/comments", body=COMMENT).status == 200
        lose(service)
        names = sorted(path.name for path in tmp_path.rglob("*.db*"))
        assert service.ask("GET", "/health").status == 503
        if loss != "table dropped":
            assert service.ask("POST", "/comments", body=COMMENT).status == 503
            assert service.ask("GET", f"/comments?url={PAGE}").status == 503
        assert sorted(path.name for path in tmp_path.rglob("*.db*")) == names
        if find:
            find(service)
            until(lambda: service.ask("GET", "/health").status == 200)
            assert service.ask("GET", f"/comments?url={PAGE}").json["total"] == 1
            assert service.stop() == 0
            assert_whole(str(service.path))
    finally:
        service.end()


def test_a_closed_service_has_no_file_open(visitor: Visitor) -> None:
    visitor.say()
    visitor.listing()
    path = database_path(visitor.served)
    assert [name for name in open_files() if name.startswith(path)]
    visitor.served.close()
    assert [name for name in open_files() if name.startswith(path)] == []


def open_files() -> list[str]:
    """The names of the files that this process has open."""
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("this system has no /proc")
    names = []
    for link in folder.iterdir():
        with suppress(FileNotFoundError):  # the one that lists the folder
            names.append(os.readlink(link))
    return names
