"""What the file holds, whatever happens: kills, faults of the machine, damage, old and foreign
files; and no question reads more than it has to."""

import http.client
import itertools
import logging
import os
import random
import re
import resource
import select
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import webtest
from conftest import CANARY, PAGE, START, Campaign, Outside, Visitor, assert_whole, cut_off
from hypothesis import given, settings
from hypothesis import strategies as st
from test_admin import new_admin, token_of
from test_server import COMMENT, LOGIN, Service, answer_on, refused, request, services, until

import commentd
from commentd import (
    BEFORE,
    CASES,
    ERASE_COMMENTS,
    EXPORTED,
    FIGURES,
    LISTS,
    MIGRATIONS,
    PAGES,
    RECOUNTS,
    App,
    Comment,
    Config,
    SchemaFault,
    Store,
    Unavailable,
    World,
    connect,
    make_app,
    migrate,
    statements,
)

# Killed


class Writer(threading.Thread):
    """Posts comments and likes them; remembers what was answered with 200."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(name=name)
        self.service = service
        self.posted: dict[int, str] = {}
        self.liked: set[int] = set()

    def ask(self, connection: socket.socket, path: str, **body: Any) -> Any:
        connection.sendall(request("POST", path, body=body))
        answer = answer_on(connection)
        assert answer.status == 200
        return answer.json

    def run(self) -> None:
        with suppress(OSError, http.client.HTTPException), self.service.connect() as connection:
            for number in itertools.count():
                body = {"page_url": f"/{number % 7}/", "content": f"{self.name}-{number}"}
                posted = self.ask(connection, "/comments", **{**COMMENT, **body})["comment"]
                self.posted[posted["id"]] = body["content"]
                self.ask(connection, "/comment/like", id=posted["id"])
                self.liked.add(posted["id"])


class Busy(Writer):
    """Writes, edits, erases, likes, takes likes back, judges, renames its account, registers; knows
    what must be there."""

    def __init__(self, service: Service, name: str, tokens: list[str], chance: Random) -> None:
        super().__init__(service, name)
        self.tokens, self.chance, self.writes = tokens, chance, 0
        self.mine: dict[int, str] = {}
        self.kept: dict[tuple[str, object], object] = {}
        self.open = set[tuple[str, object]]()  # what is asked for now

    def run(self) -> None:
        usual = [self.write, self.like, self.edit, self.erase, self.judge, self.rename]
        acts = usual + 5 * [self.write] + 3 * [self.like]
        with suppress(OSError, http.client.HTTPException), self.service.connect() as connection:
            self.connection = connection
            self.write(), self.write()
            if self.chance.random() < 0.1:  # hashing costs as much as a hundred of the others
                self.register()
            while True:
                self.chance.choice(acts)()

    def does(
        self, path: str, *kept: tuple[str, object, object], method: str = "POST", **body: Any
    ) -> Any:
        """Once it is answered, it is to be kept; until then nobody knows."""
        self.open = {(what, which) for what, which, _ in kept}
        token = body.pop("as_", None)
        headers = [f"Authorization: Bearer {token}"] if token else []
        self.connection.sendall(
            request(method, path, *headers, body={"captcha_token": "x", **body})
        )
        answer = answer_on(self.connection)
        assert answer.status == 200, (path, body, answer)
        self.kept |= {(what, which): value for what, which, value in kept}
        self.open, self.writes = set(), self.writes + 1
        return answer.json

    def write(self) -> None:
        text = f"{self.name} {self.chance.getrandbits(64)}"
        body = {**COMMENT, "page_url": f"/{self.chance.randrange(7)}/", "content": text}
        said = self.does("/comments", **body)
        self.mine[said["comment"]["id"]] = said["edit_token"]
        self.kept |= {("content", said["comment"]["id"]): text}

    def one(self) -> int:
        return self.chance.choice([*self.mine])

    def like(self) -> None:
        number, undo = self.one(), self.chance.random() < 0.3
        self.does("/comment/like", ("likes", number, int(not undo)), id=number, undo=undo)

    def edit(self) -> None:
        number, text = self.one(), f"edited {self.chance.getrandbits(64)}"
        path, token = f"/comments/{number}", self.mine[number]
        kept = ("content", number, text)
        self.does(path, kept, method="PATCH", content=text, edit_token=token)

    def erase(self) -> None:
        number = self.one()
        kept = [("content", number, ""), ("status", number, "deleted"), ("likes", number, 0)]
        token = self.mine.pop(number)
        self.does(f"/comments/{number}", *kept, method="DELETE", edit_token=token)
        self.write()

    def judge(self) -> None:
        """It is spam, and nobody else answers or likes it."""
        number = self.one()
        del self.mine[number]
        kept = ("status", number, "spam")
        self.does("/admin/comments", kept, as_=self.tokens[0], ids=[number], status="spam")
        self.write()

    def rename(self) -> None:
        name = f"{self.name} {self.chance.getrandbits(64)}"
        self.does(
            "/me", ("nickname", self.name, name), method="PATCH", nickname=name, as_=self.tokens[1]
        )

    def register(self) -> None:
        email = f"{self.chance.getrandbits(64)}@example.com"
        self.does("/auth/register", ("registration", email, "Ann"), **account(email))


def kept_in(path: Path) -> dict[tuple[str, object], object]:
    """What a database holds of what a `Busy` one knows."""
    with closing(sqlite3.connect(path)) as db:
        found: dict[tuple[str, object], object] = {}
        for number, *values in db.execute("SELECT id, content, likes, status FROM comment"):
            for what, value in zip(("content", "likes", "status"), values, strict=True):
                found[what, number] = value
        for email, nickname in db.execute("SELECT email, nickname FROM account"):
            found["nickname", email.partition("@")[0]] = nickname
        for (email,) in db.execute("SELECT email FROM registration"):
            found["registration", email] = "Ann"
    return found


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, campaign: Campaign) -> None:
    names, tokens = "abcdef", {}
    with closing(make_app(Config(database_path=str(tmp_path / "commentd.db")), rounds=1)) as app:
        owner, _ = new_admin(app)
        for name in names:
            tokens[name] = [owner, new_user(app, f"{name}@example.com")]
    kept: dict[tuple[str, object], object] = {}
    with services(tmp_path) as start:
        for chance in campaign.rounds(3):
            service = start()
            writers = [
                Busy(service, name, tokens[name], Random(chance.getrandbits(64))) for name in names
            ]
            for writer in writers:
                writer.start()
            time.sleep(chance.uniform(0.05, 0.6))  # the moment of the kill
            service.process.kill()
            service.process.wait()
            now = kept_in(service.path)
            for writer in writers:
                writer.join()
                campaign.figures["acknowledged"] += writer.writes
                sure = {
                    what: value for what, value in writer.kept.items() if what not in writer.open
                }
                assert {what: now.get(what) for what in sure} == sure
                kept |= sure
                for what in writer.open:
                    kept.pop(what, None)
            campaign.figures["kills"] += 1
        assert {what: now.get(what) for what in kept} == kept
        assert_whole(str(service.path))
    assert campaign.figures["acknowledged"] > campaign.figures["kills"]


def new_user(app: App, email: str) -> str:
    """The token of an account."""
    with app.house.store.writing():
        app.house.store.make_admin(email, "Ann", "x$1$x$x", START)
        app.house.store.run("UPDATE account SET role = 'user' WHERE email = :email", email=email)
    return token_of(app, email, "login")


def deterministic(seed: int, outside: Outside) -> World:
    """A world whose chance can be had again."""
    chance = random.Random(seed)
    return replace(outside.world, chance=chance.randbytes)


def account(email: str = "bob@example.com") -> dict[str, str]:
    return {"email": email, "nickname": "Bob", "password": CANARY, "captcha_token": "x"}


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A file with something of all, closed cleanly, and the code of a registration in it."""
    path, outside = tmp_path_factory.mktemp("lived_in") / "commentd.db", Outside()
    config = Config(database_path=str(path), captcha_provider="none")
    app = make_app(config, deterministic(1, outside), rounds=1)
    web = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})
    web.post_json("/auth/register", account("ann@example.com"))
    app.deliver()
    web.post_json("/auth/verify", {**account("ann@example.com"), "token": outside.code()})
    for number in range(3):
        web.post_json("/comments", {**COMMENT, "content": f"{number} " + "long " * 300})
    web.post_json("/comment/like", {"id": 1})
    web.post_json("/auth/register", account())
    app.deliver()
    outside.time += 120
    web.post_json("/auth/register", account("cid@example.com"))
    app.close()
    return path, outside.code()


# Faults of the machine


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Another program holds the lock for longer than we wait."""
    store.writer.execute("PRAGMA busy_timeout = 1")
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def read_only(store: Store) -> Iterator[None]:
    store.writer.execute("PRAGMA query_only = ON")
    yield
    store.writer.execute("PRAGMA query_only = OFF")


@contextmanager
def no_room(store: Store) -> Iterator[None]:
    """The system takes not one more byte into any file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


FAULTS: list[Callable[[Store], AbstractContextManager[None]]] = [locked, read_only, no_room]
WRITES = {
    "/comments": {**COMMENT, "content": "lost"},
    "/comment/like": {"id": 1},
    "/page/like": {"page_url": PAGE},
    "/auth/register": account(),
    "/auth/login": LOGIN,
    "/auth/verify": {"email": "bob@example.com", "token": "123456"},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_refuses_writes_and_nothing_else(
    visitor: Visitor, fault: Callable[[Store], AbstractContextManager[None]]
) -> None:
    visitor.say("kept")
    visitor.faults_allowed = True
    with fault(visitor.served.house.store):
        for path, body in WRITES.items():
            reply = visitor.post_json(path, body, status=503)
            assert int(reply.headers["Retry-After"]) > 0
            if path != "/auth/verify":
                assert reply.json == {"error": "暂时无法保存，请稍后再试", "code": "storage"}
        assert visitor.get("/health", status=503).json["code"] == "storage"
        assert [c["content"] for c in visitor.listing()["comments"]] == ["kept"]
        assert visitor.listing(url="/new/")["views"] == 1
        with pytest.raises(Unavailable):
            visitor.served.tick()
    visitor.faults_allowed = False
    assert visitor.get("/health").json == {"ok": True}
    visitor.served.tick()
    visitor.say("again")
    assert [c["content"] for c in visitor.listing()["comments"]] == ["again", "kept"]
    assert visitor.listing(url="/new/")["views"] == 2  # what could not be written was not lost


@pytest.mark.parametrize("path", ["/comments", "/comment/like", "/page/like", "/auth/register"])
@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_a_write_that_is_cut_off_anywhere_leaves_nothing(visitor: Visitor, path: str) -> None:
    visitor.say()
    visitor.faults_allowed = True  # and what a refusal changes, the visitor sees
    writer = visitor.served.house.store.writer
    for last in itertools.count(5, 25):
        form = {**WRITES[path], "page_url": "/new/"}
        with cut_off(writer, last):
            reply = visitor.post_json(path, form, expect_errors=True)
        if reply.status_int == 200:
            break
        assert (reply.status_int, reply.json["code"]) == (503, "storage")
    assert last > 50


@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_a_full_disk_refuses_what_needs_room(visitor: Visitor) -> None:
    store = visitor.served.house.store
    (pages,) = store.writer.execute("PRAGMA page_count").fetchone()
    store.writer.execute(f"PRAGMA max_page_count = {pages}")
    visitor.faults_allowed = True
    for kept in range(50):
        body = {**COMMENT, "content": f"{kept} " + "x" * 1900}
        reply = visitor.post_json("/comments", body, expect_errors=True)
        if reply.status_int != 200:
            break
    assert (reply.status_int, reply.json["code"]) == (503, "storage")
    assert int(reply.headers["Retry-After"]) > 0
    assert visitor.listing()["total"] == kept
    for _ in range(3):  # the row of the first is there: the others write over it
        assert visitor.get("/health", status=503).json["code"] == "storage"
    store.writer.execute("PRAGMA max_page_count = 1000000")
    visitor.faults_allowed = False
    assert visitor.get("/health").json == {"ok": True}
    visitor.say("again")
    assert visitor.listing()["total"] == kept + 1


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A disk of 3 MB, where this user may have one; else a file that is kept from growing."""
    folder.mkdir()
    how = ["mount", "-t", "tmpfs", "-o", "size=3m", "none", str(folder)]
    mounted = shutil.which("mount") and not subprocess.run(how, capture_output=True).returncode
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Not one more byte: of a disk that is not small there is too much."""
    if shutil.disk_usage(folder).total < 1e7:
        with (folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass


@pytest.mark.slow
def test_a_disk_that_fills_up_refuses_writes_until_there_is_room(tmp_path: Path) -> None:
    folder, kept = tmp_path / "disk", list[int]()
    with small_disk(folder), services(folder) as start:
        service = start(backup={"every": "0", "folder": str(tmp_path)})
        service.ask("POST", "/comments", body=COMMENT)
        fill(folder)
        size = service.path.with_name("commentd.db-wal").stat().st_size + 50_000
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        for number in range(500):
            body = {**COMMENT, "content": f"{number} " + "x" * 1900}
            answer = service.ask("POST", "/comments", body=body)
            if answer.status != 200:
                break
            kept.append(answer.json["comment"]["id"])
        assert (answer.status, answer.json["code"]) == (503, "storage")
        assert int(answer.headers["Retry-After"]) > 0
        # The last bytes are taken by what is small, which then is written over, again and again.
        until(lambda: service.ask("GET", "/health").status == 503)
        for _ in range(3):
            assert service.ask("POST", "/comments", body=body).status == 503
            assert service.ask("GET", "/health").status == 503
        assert len(re.findall("the database failed: .*full", service.said)) == 1
        assert service.ask("GET", f"/comments?url={PAGE}").json["total"] == len(kept) + 1
        (folder / "filler").unlink(missing_ok=True)
        endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, endless)
        assert service.ask("POST", "/comments", body=body).status == 200
        assert service.ask("GET", "/health").status == 200
        service.process.kill()
        service.process.wait()
        assert start().ask("GET", f"/comments?url={PAGE}").json["total"] == len(kept) + 2


def test_the_wal_stays_small_however_much_is_written(app: App, visitor: Visitor) -> None:
    visitor.say()
    store, sizes = app.house.store, list[int]()
    store.writer.execute("PRAGMA synchronous = OFF")  # which is slow, and changes no size
    for number in range(600):
        with store.writing():
            add(store, number)
        assert store.comment(1)
        sizes.append(os.path.getsize(f"{store.path}-wal"))
    assert max(sizes) < 6_000_000
    with store.writing():
        store.recount()


@pytest.mark.parametrize("fault", FAULTS)
def test_a_letter_goes_out_once_although_that_can_not_be_written_down(
    visitor: Visitor, outside: Outside, fault: Callable[[Store], AbstractContextManager[None]]
) -> None:
    visitor.register()
    with fault(visitor.served.house.store):
        for _ in range(5):
            with suppress(Unavailable):
                visitor.served.deliver()
            outside.time += 5
    assert len(outside.letters) <= 1
    visitor.served.deliver()
    assert 1 <= len(outside.letters) <= 2
    assert len({letter.message for letter in outside.letters}) == 1


@pytest.mark.slow
def test_readers_are_served_while_all_writers_wait(tmp_path: Path) -> None:
    with services(tmp_path) as start:
        service = start()
        service.ask("POST", "/comments", body=COMMENT)
        with closing(sqlite3.connect(service.path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            like = request("POST", "/comment/like", body={"id": 1})
            # Whether it could write is what health asks.
            writers = [service.sent(request("GET", "/health")) for _ in range(5)]
            writers += [service.sent(like) for _ in range(20)]
            reader = service.sent(request("GET", f"/comments?url={PAGE}"))
            assert answer_on(reader).json["total"] == 1
            assert not select.select(writers, [], [], 0)[0], "a reader waited for a writer"
        assert {answer_on(each).status for each in writers} <= {200, 503}
        assert service.ask("GET", "/health").json == {"ok": True}


def test_closing_writes_the_last_views_and_twice_is_fine(config: Config, outside: Outside) -> None:
    app = make_app(config, outside.world, rounds=1)
    webtest.TestApp(app).get(f"/comments?url={PAGE}")
    app.close()
    app.close()
    with closing(sqlite3.connect(config.database_path)) as db:
        assert db.execute("SELECT page_url, views FROM page").fetchall() == [(PAGE, 1)]


# Damage


def noise(size: int = 4096) -> bytes:
    return random.Random(7).randbytes(size)


def spoil(path: str, table: str) -> None:
    """Noise over the first page of a table of a file that is in use."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE page SET seen_at = seen_at + 1")  # so that no cache is trusted
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = db.execute(sql, (table,)).fetchone()
    with open(path, "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(noise())


@pytest.mark.parametrize("table", ["budget", "comment"])
def test_damage_that_is_seen_ends_all_writing_and_is_told_once(
    config: Config, outside: Outside, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    app = make_app(config, outside.world, rounds=1)
    web = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})
    web.post_json("/comments", COMMENT)
    spoil(config.database_path, table)
    before = Path(config.database_path).read_bytes()
    if table == "comment":
        assert web.get(f"/comments?url={PAGE}", status=503).json["code"] == "storage"
    for path in ("/comments", "/page/like", "/auth/login"):
        body = {**COMMENT, **LOGIN, "content": "other"}
        reply = web.post_json(path, body, status=503)
        assert reply.json["code"] == "storage"
        assert "Retry-After" in reply.headers
    assert web.get("/health", status=503).json["code"] == "storage"
    assert web.get(f"/pages?url={PAGE}").json["pages"][0]["total"] == 1
    app.close()
    assert len([r for r in caplog.records if r.levelno == logging.CRITICAL]) == 1
    assert Path(config.database_path).read_bytes() == before
    with pytest.raises(SchemaFault, match="damaged"):
        make_app(config, outside.world, rounds=1)


# What is there at the start


def with_version(whole: bytes, version: int) -> bytes:
    return whole[:60] + version.to_bytes(4) + whole[64:]  # sqlite.org/fileformat.html


SPOILT: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "newer": (lambda whole: with_version(whole, len(MIGRATIONS) + 1), "newer commentd"),
    "half": (lambda whole: whole[: len(whole) // 2], "damaged"),
    "a page short": (lambda whole: whole[:-4096], "damaged"),
    "a byte short": (lambda whole: whole[:-1], "damaged"),
    "a page": (lambda whole: whole[:4096], "damaged"),
    "a header": (lambda whole: whole[:100], "damaged"),
    "a magic word": (lambda whole: whole[:16], "damaged"),
    "a text": (lambda whole: b"these are my notes\n", "damaged"),
    "a long text": (lambda whole: b"these are my notes\n" * 1000, "damaged"),
    "noise": (lambda whole: noise(10_000), "damaged"),
    "noise after the header": (lambda whole: whole[:100] + noise(10_000), "damaged"),
}


def assert_refused_untouched(path: Path, words: str) -> None:
    def found() -> dict[str, bytes]:
        """What lies there, but for the lock, in which is nothing."""
        return {p.name: p.read_bytes() for p in path.parent.iterdir() if "-lock" not in p.name}

    before = found()
    with pytest.raises(SchemaFault, match=words) as refusal:
        make_app(Config(database_path=str(path)))
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert found() == before


@pytest.mark.parametrize("case", SPOILT)
def test_a_spoilt_file_is_refused_untouched(
    lived_in: tuple[Path, str], tmp_path: Path, case: str
) -> None:
    spoils, words = SPOILT[case]
    path = tmp_path / "commentd.db"
    path.write_bytes(spoils(lived_in[0].read_bytes()))
    assert_refused_untouched(path, words)


def test_noise_over_any_page_is_seen(lived_in: tuple[Path, str], tmp_path: Path) -> None:
    path, whole = tmp_path / "commentd.db", lived_in[0].read_bytes()
    for start in range(0, len(whole), 4096):
        path.write_bytes(whole[:start] + noise() + whole[start + 4096 :])
        assert_refused_untouched(path, "damaged")


# By chance


def left_behind(folder: Path, number: int) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """The file of a service that was stopped, and those of one that went on and was killed."""
    folder.mkdir()
    path = folder / "commentd.db"
    for again in (False, True):
        with closing(make_app(settled(path), deterministic(number, Outside()), rounds=1)) as app:
            web = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})
            for text in ("one", "two " * 400, "three"):
                body = {"content": f"{text} {number} {again}", "page_url": f"/{text[:3]}/"}
                web.post_json("/comments", {**COMMENT, **body})
            if again:
                names = ("commentd.db", "commentd.db-wal")
                killed = {name: (folder / name).read_bytes() for name in names}
        if not again:
            stopped = {path.name: path.read_bytes()}
    return stopped, killed


def flipped(chance: Random, data: bytes) -> bytes:
    spoilt = bytearray(data)
    for _ in range(chance.choice((1, 1, 8, 100))):
        spoilt[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(spoilt)


def patched(chance: Random, data: bytes, size: int = 4096) -> bytes:
    """Another page in the place of one, or noise, or nothing, or the half of it."""
    at, other = (chance.randrange(len(data) // size) * size for _ in "ab")
    page = chance.choice((data[other : other + size], chance.randbytes(size), bytes(size)))
    cut = chance.choice((size, size // 2, 512, 100))
    return data[:at] + page[:cut] + data[at + cut :]


def cut(chance: Random, data: bytes) -> bytes:
    return data[: chance.randrange(len(data))]


SPOILS: list[Callable[[Random, bytes], bytes]] = [
    flipped,
    patched,
    cut,
    lambda chance, data: data + chance.randbytes(chance.randrange(1, 9000)),
    lambda chance, data: chance.randbytes(100) + data[100:],
    lambda chance, data: bytes(100) + data[100:],
]
# What anybody may ask, and what is asked for by itself.
ASKED = [
    "/comments?url=/one/&view=threads",
    "/comments?url=/two/&sort=likes",
    "/comments/latest",
    "/pages?url=/one/",
    "/feed.atom",
    "/thread?url=/two/",
    "/",
    "/health",
]


def settled(path: Path) -> Config:
    how: dict[str, Any] = {"captcha_provider": "none", "limits_enabled": False}
    return Config(database_path=str(path), backup_folder=str(path.parent / "copies"), **how)


def test_a_page_that_was_cut_while_the_wal_was_emptied_is_in_the_wal(tmp_path: Path) -> None:
    _, killed = left_behind(tmp_path / "0", 0)
    path = tmp_path / "commentd.db"
    for name, data in killed.items():
        path.with_name(name).write_bytes(data)
    with path.open("ab") as file:
        file.write(noise(1000))
    make_app(settled(path), rounds=1).close()
    assert_whole(str(path))


def asked_for_all(app: App) -> list[int]:
    """Whatever is in the file, it is an answer or, for now, none."""
    web = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.8"}, lint=False)
    replies = [web.get(path, expect_errors=True) for path in ASKED]
    for path, body in (
        ("/comments", COMMENT),
        ("/comment/like", {"id": 1}),
        ("/auth/login", LOGIN),
    ):
        replies.append(web.post_json(path, body, expect_errors=True))
    for work in (app.deliver, app.tick, app.keep):
        with suppress(Unavailable, sqlite3.Error):  # `Worker` goes on
            work()
    statuses = [reply.status_int for reply in replies]
    assert set(statuses) <= {200, 401, 403, 404, 409, 503}, statuses
    return statuses


def in_a_process(work: Callable[[], str]) -> str:
    """What it tells: where the library itself fell, only that process is gone."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            told = work()
        except BaseException:
            told = traceback.format_exc()
        os.write(writing, told.encode()[-60_000:])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return told


def spoilt_while_served(path: Path, stopped: bytes, seed: int) -> str:
    """It is seen and told once, and then nothing is written; or it is not met."""
    chance = Random(seed)
    path.write_bytes(stopped)
    alarms: list[logging.LogRecord] = []
    handler = logging.Handler(logging.CRITICAL)
    handler.emit = alarms.append  # type: ignore[method-assign]
    commentd.log.addHandler(handler)
    app = make_app(settled(path), Outside().world, rounds=1)
    asked_for_all(app)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE page SET seen_at = seen_at + 1")  # so that no cache is trusted
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = path.read_bytes()
    spoilt = chance.choice((flipped, patched))(chance, data)
    with path.open("r+b") as file:
        file.write(spoilt)
    for _ in range(3):
        statuses = asked_for_all(app)
    damaged = app.house.store.damaged
    assert len(alarms) == damaged
    if damaged:
        now = path.read_bytes()
        health, writes = statuses[ASKED.index("/health")], statuses[-3:]
        assert (health, set(writes)) == (503, {503})
        assert path.read_bytes() == now
    app.close()
    assert len(alarms) <= 1
    return "seen" if damaged else "not met"


def started_on(path: Path, files: dict[str, bytes]) -> str:
    """Refused in a sentence and left as it is, or served."""
    for name, data in files.items():
        path.with_name(name).write_bytes(data)
    try:
        app = make_app(settled(path), Outside().world, rounds=1)
    except SchemaFault as fault:
        refusal = str(fault)
    else:
        asked_for_all(app)
        app.close()
        return "served"
    assert re.fullmatch(f".*{re.escape(str(path))}.*", refusal)
    assert {name: path.with_name(name).read_bytes() for name in files} == files
    known = {f"{path.name}{suffix}" for suffix in ("", "-wal", "-shm", "-lock", "-turn")}
    assert {each.name for each in path.parent.iterdir()} <= known
    return "refused"


def test_whatever_was_done_to_the_files_the_start_is_refused_or_serves(
    tmp_path: Path, campaign: Campaign
) -> None:
    (stopped, killed), (_, other) = (left_behind(tmp_path / f"{n}", n) for n in range(2))
    for chance in campaign.rounds(20):
        files = dict(chance.choice((stopped, killed)))
        name = chance.choice([*files])
        files[name] = chance.choice(SPOILS)(chance, files[name])
        if chance.random() < 0.1:
            files = {**stopped, "commentd.db-wal": other["commentd.db-wal"]}
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            told = in_a_process(lambda: started_on(Path(folder) / "commentd.db", files))  # noqa: B023
        assert told in ("refused", "served"), told
        campaign.figures[told] += 1


def test_damage_by_chance_is_an_alarm_and_no_failure(tmp_path: Path, campaign: Campaign) -> None:
    (stopped, _) = left_behind(tmp_path / "0", 0)
    for chance in campaign.rounds(7):
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            path, seed = Path(folder) / "commentd.db", chance.getrandbits(64)
            told = in_a_process(lambda: spoilt_while_served(path, stopped["commentd.db"], seed))  # noqa: B023
        assert told in ("seen", "not met"), told
        campaign.figures[told] += 1


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_the_database_of_another_program_is_refused_untouched(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "commentd.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute("CREATE TABLE note (text)")
    assert_refused_untouched(path, "another program")


def test_what_is_no_file_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "missing" / "commentd.db"):
        with pytest.raises(SchemaFault, match=str(tmp_path)) as refusal:
            make_app(Config(database_path=str(path)))
        assert "\n" not in str(refusal.value)
    assert [p.name for p in tmp_path.rglob("*") if "-lock" not in p.name] == ["folder"]


@pytest.mark.slow
def test_the_command_says_so_and_fails(tmp_path: Path) -> None:
    path = tmp_path / "commentd.db"
    path.write_text("these are my notes")
    path.chmod(0o600)
    with services(tmp_path) as start:
        assert "commentd.db is damaged" in refused(start(waits=False))
    assert path.read_text() == "these are my notes"


def test_an_empty_file_is_a_new_one(config: Config) -> None:
    Path(config.database_path).touch()
    make_app(config).close()
    assert_whole(config.database_path)


def test_only_the_owner_can_read_the_files(config: Config) -> None:
    umask = os.umask(0)
    try:
        app = make_app(config, rounds=1)
        web = webtest.TestApp(app)
        web.post_json("/comments", COMMENT)
        path = Path(config.database_path)
        modes = {p.name: p.stat().st_mode & 0o777 for p in path.parent.iterdir()}
        app.close()
    finally:
        os.umask(umask)
    assert {"commentd.db", "commentd.db-wal", "commentd.db-shm"} <= set(modes)
    assert set(modes.values()) == {0o600}, modes


def test_accounts_without_a_key_stop_the_start(config: Config, lived_in: tuple[Path, str]) -> None:
    shutil.copy(lived_in[0], config.database_path)
    with closing(sqlite3.connect(config.database_path)) as db, db:
        db.execute("DELETE FROM secret")
    with pytest.raises(SchemaFault, match=r"accounts but no key: set \[token\] key"):
        make_app(config)
    make_app(replace(config, token_key="k" * 32)).close()


# Migrations


def schema(db: sqlite3.Connection) -> list[Any]:
    sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY 1, 2"
    pragmas = [db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("user_version", "application_id")]
    return [*pragmas, *map(tuple, db.execute(sql))]


@pytest.fixture
def file(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(connect(str(tmp_path / "other.db"))) as db:
        yield db


BASE = "CREATE TABLE a (id INTEGER PRIMARY KEY); CREATE TABLE b (a_id REFERENCES a (id));"
ROWS = "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1);"


def test_a_migration_that_fails_leaves_nothing(file: sqlite3.Connection) -> None:
    migrate(file, [BASE])
    before = schema(file)
    broken = "CREATE TABLE c (id); INSERT INTO a VALUES (2); INSERT INTO nowhere VALUES (1);"
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(file, [BASE, ROWS, broken, "CREATE TABLE never (id)"])
    assert schema(file) == before  # nor do those before it, which alone no program knows
    assert [tuple(r) for r in file.execute("SELECT * FROM a")] == []
    assert not file.in_transaction
    migrate(file, [BASE, ROWS, "CREATE TABLE c (id)"])
    assert file.execute("PRAGMA user_version").fetchone()[0] == 3


@pytest.mark.parametrize("orphan", ["INSERT INTO b VALUES (9)", "DELETE FROM a", "DROP TABLE a"])
def test_a_migration_that_leaves_orphans_is_refused(file: sqlite3.Connection, orphan: str) -> None:
    migrate(file, [BASE, ROWS])
    before = schema(file)
    with pytest.raises(SchemaFault, match="migration 3 leaves rows that point nowhere"):
        migrate(file, [BASE, ROWS, orphan])
    assert schema(file) == before
    assert [tuple(r) for r in file.execute("SELECT * FROM b")] == [(1,)]


def test_a_table_can_be_built_anew_without_losing_what_points_to_it(
    file: sqlite3.Connection,
) -> None:
    anew = """CREATE TABLE a2 (id INTEGER PRIMARY KEY, more TEXT);
        INSERT INTO a2 (id) SELECT id FROM a; DROP TABLE a; ALTER TABLE a2 RENAME TO a;"""
    migrate(file, [BASE.replace("a_id ", "a_id INTEGER "), ROWS, anew])
    assert [tuple(r) for r in file.execute("SELECT * FROM b JOIN a ON id = a_id")] == [(1, 1, None)]
    with pytest.raises(sqlite3.IntegrityError):
        file.execute("INSERT INTO b VALUES (9)")


def test_statements_end_where_sql_says() -> None:
    script = """
        CREATE TABLE a (x);  -- a comment; with a semicolon
        /* ; */ INSERT INTO a VALUES (';'), ("it''s;"), ('--;');
        CREATE TRIGGER t AFTER INSERT ON a BEGIN
            DELETE FROM a WHERE x = new.x;
            SELECT CASE WHEN 1 THEN ';' END;
        END;
        ;
        DROP TRIGGER t"""
    assert [" ".join(statement.split()) for statement in statements(script)] == [
        "CREATE TABLE a (x);",
        "-- a comment; with a semicolon /* ; */ INSERT INTO a VALUES (';'), (\"it''s;\"), ('--;');",
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a WHERE x = new.x; "
        "SELECT CASE WHEN 1 THEN ';' END; END;",
        "DROP TRIGGER t;",
    ]


@given(st.lists(st.text(st.sampled_from("a;'\"`-/* \n\t[]\0é"), max_size=12), max_size=6))
@settings(deadline=None)
def test_no_text_breaks_a_statement(texts: list[str]) -> None:
    texts = [text.replace("\0", "") for text in texts]
    quoted = ["'" + text.replace("'", "''") + "'" for text in texts]
    script = "CREATE TABLE a (x); " + "\n".join(f"INSERT INTO a VALUES ({q});" for q in quoted)
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in statements(script):
            db.execute(statement)
        assert [row[0] for row in db.execute("SELECT x FROM a ORDER BY rowid")] == texts


# What a question costs


class Watched(Store):
    """Remembers what it was asked for, and the statements that it ran."""

    def __init__(self, path: Path) -> None:
        self.used: set[str] = set()
        self.ran: dict[str, dict[str, Any]] = {}
        super().__init__(path)

    def __getattribute__(self, name: str) -> Any:
        super().__getattribute__("__dict__").setdefault("used", set()).add(name)
        return super().__getattribute__(name)

    def run(self, sql: str, **values: Any) -> sqlite3.Cursor:
        self.ran[sql] = values
        return super().run(sql, **values)


def add(
    store: Store, number: int, page_id: int = 1, parent: Comment | None = None, id: int = 0
) -> Comment:
    words = dict.fromkeys(["nickname", "email", "website", "html", "ip", "country", "location"], "")
    return store.add_comment(
        **{**words, "content": str(number), "page_id": page_id, "user_id": None},
        parent_id=parent.id if parent else None,
        thread_id=parent.id if parent else None,
        status="visible",
        created_at=START + number,
        id=id,
    )


def exercise(store: Store) -> None:
    """Every question and every order."""
    store.secret("key", lambda: "x")
    with store.writing():
        for _ in range(2):
            store.take("login", "x", 1, 60, START), store.wait_for("login", "x", 1, 60, START)
        store.give_back("login", "x")
        store.has_room("a@b.c", "client", "", START)
        waits = {"request_id": "r", "email": "a@b.c", "nickname": "Ann", "password": "p"}
        times = {"created_at": START, "expires_at": START + 600}
        number = store.add_registration(**waits, **times, code="c", client="x", older="")
        assert store.revise("a@b.c", "r", "Bob", "q")
        letter = {"recipient": "a@b.c", "message": "hi", "due_at": START, "expires_at": START}
        letter["created_at"] = START
        store.add_letter(registration_id=number, **letter)
        (registration,) = store.tried("a@b.c", "", START)
        store.confirm(registration, START)
        for _ in range(2):
            store.add_letter(**letter)
        store.account(1), store.account_of("a@b.c")
        store.end_tokens(1), store.set_password(1, "p")
        exercise_comments(store)
        exercise_moderation(store)
        exercise_account(store)
        due = store.due_letter(START)
        assert due
        assert store.next_due() == START
        assert store.begin_try(due, START, 1)
        store.note_failure(due.id, 1, "x"), store.stuck_letters(), store.carried(due.id)
        assert store.retry_letter(due.id, START)
        store.fail_letter(due.id, 1, "x", START), store.drop_letter(due.id)
        store.end_letter(due.id, [1])
        store.forget(START + 9, lambda ip: ip), store.purge(START)
        store.judge(1, "spam", START), store.erase_judged(START + 1)
        # These may read all there is: they are asked for by hand, or seldom.
        assert store.recount() == 0
        assert store.figures(START)["comments"] == 4
    store.cramped = True
    store.examine_room()


def exercise_comments(store: Store) -> None:
    """What is written and read on the blog."""
    page = store.add_page("/", "/", START)
    store.page("/"), store.page_with(page.id), store.add_views("/", 1, START)
    root = add(store, 1)
    reply = add(store, 2, parent=root)
    store.spend_captcha("s", START), store.bind_captcha("s", 1), store.spent_on("s")
    assert store.is_spent("s")
    place = {"page_id": 1, "parent_id": None, "user_id": None}
    store.same_comment(START, START, **place, nickname="", content="1", ip="")
    store.count_replies(1), store.pin(1, True), store.pinned(1)
    for view, sort in LISTS:
        store.comments(view, sort, 0, 10, 1)
        store.count_before(view, sort, reply if view == "thread" else root)
    for what in ("comment", "page"):
        for undo in (False, True, False):
            store.like(what, 1, "x", START, undo, START)
    store.judge(1, "deleted", START)
    store.edit_comment(2, "hi", "<p>hi</p>", START), store.erase_comment(2)


def exercise_moderation(store: Store) -> None:
    """What is asked and done on the admin page and for letters."""
    store.admins(), store.accounts("%a%", 9, 10), store.set_rights(1, "admin", False, less=True)
    store.add_admin_link("h", "a@b.c", START + 60), store.admin_link("h", START)
    store.make_admin("a@b.c", "Ann", "p", START)
    for sort in PAGES:
        store.pages(sort, "%a%", 0, 10)
    store.set_closed(1, True, START)
    other = store.add_page("/b/", "/b/", START)
    add(store, 3, page_id=other.id)
    assert store.rename_page(other, "/c/", "/c/").key == "/c/"
    assert store.rename_page(other, "/", "/").id == 1
    store.case(1), store.rewrite(1, "Ann", ""), store.count_states()
    store.latest_comments(6)
    for status in CASES:
        store.cases(status, "%a%", 0, 9, 10)
    known = {"user_id": None, "nickname": "Ann", "ip": "192.0.2.1", "id": 1}
    store.count_known(network="192.0.2.0", **known)
    exercise_notifications(store)
    store.learn(1, "spam", [7], START), store.unlearn(1, "spam", [7])
    store.unlearn_ham({0: 1, 7: 1})
    store.tokens([0, 7]), store.oldest_unlearnt(but=1)
    store.report(1, "x", "rude", START), store.reports(1), store.end_reports(1)
    store.put_off("webhook", START, START + 9)
    store.subscribe("who", 1, "asked"), store.subscriptions("who")
    store.blocks(START)
    words = {"value": "x", "note": "", "created_at": START, "expires_at": None}
    assert store.drop_block(store.add_block(kind="word", **words).id)
    store.note(now=START, who="Ann", action="edit", subject="1", detail="")
    store.audit(9, 10), store.days(0)
    store.note_import("isso", "1 2", 1), store.imported("isso", "1 2")
    store.twins(key="/", id=0, created_at=START, nickname="Ann", content="hi")
    store.raise_page(1, 1, 7, 3), store.add_likes("comment", 1, 3)
    store.exported().fetchall(), store.all_pages()
    add(store, 2, id=99)


def exercise_notifications(store: Store) -> None:
    """Who is to hear of what, and what an email carries."""
    store.wait_for("bundle", "", 1, 60, START)
    account = store.make_admin("d@b.c", "Dan", "p", START)
    store.follow(account.id, 1, "en"), store.following(account.id, 1)
    store.notify(3, ["owner", "follower"], START)
    while news := store.unaddressed(START):
        if news.kind == "owner":
            store.address(news, ["d@b.c"])
        else:
            store.address_followers(news, 1, 200)
    assert store.due_recipients("follower", START, 10) == ["d@b.c"]
    (due,) = store.due_notifications("follower", "d@b.c", START)
    store.postpone([due.id], START)
    assert (store.pending([due.id]), [*store.cases_with([3])]) == ({due.id}, [3])
    times = {"created_at": START, "due_at": START, "expires_at": START}
    store.carry([due.id], store.add_letter(recipient="d@b.c", message="hi", **times))
    store.withdraw([3]), store.end_owner_notifications(3), store.drop_notifications([due.id])
    store.notify_again("a@b.c", START), store.unfollow(account.id)


def exercise_account(store: Store) -> None:
    """What a reader may have of his own."""
    account = store.make_admin("c@b.c", "Cat", "p", START)
    store.follow(account.id, 1, "en"), store.followed(account.id)
    store.change_account(account.id, "Kat", ""), store.claim_comments(account)
    (
        store.comments_of(account.id),
        store.count_comments_of(account.id),
        store.traces("x"),
        store.unfollow(account.id),
    )
    store.erase_account(account, "who", comments=True)


SLOW = {*RECOUNTS, FIGURES, EXPORTED, "SELECT * FROM page ORDER BY key"}
# What may read all there is, by its words, and why.
MAY_SCAN = {
    "DELETE FROM admin_link": "some rows, none older than an hour",
    "FROM page WHERE :like": "what an admin looks for; without words, an index and its first rows",
    "SELECT status, count(*)": "of the index alone, for the admin page",
    ") AS known": "what it scans is the hundred that it found",
    "visitor = :visitor": "when a reader takes or erases what is his",
    "FROM token": "of an index alone, some 50 000 at most",
    "WITH RECURSIVE n (i)": "as many as there are likes to come",
    "FROM block WHERE expires_at": "each block is held against each comment",
    "FROM outbox WHERE tries > 0": "for the admin page; what is in the outbox does not stay",
    "DELETE FROM outbox WHERE recipient": "the same",
    "AS gone": "the pages of what is erased, which were summed up before",
    "UPDATE report": "what is reported is soon judged",
    "FROM report": "what is reported waits for the owner, and is no more than 60 an hour",
}


def test_no_statement_reads_a_whole_table(tmp_path: Path) -> None:
    with closing(Watched(tmp_path / "commentd.db")) as store:
        exercise(store)
        public = {name for name in vars(Store) if not name.startswith("_")}
        assert public - store.used == {"close", "empty_wal", "exported_pages"}  # the last begins
        explain = store.writer.execute
        plans = {
            sql: [row["detail"] for row in explain(f"EXPLAIN QUERY PLAN {sql}", values)]
            for sql, values in store.ran.items()
        }
    for known in (LISTS, BEFORE, CASES, PAGES):
        assert set(known.values()) < set(plans)
    scans = {
        " ".join(sql.split())
        for sql, details in plans.items()
        # A virtual table is a list that was handed in as JSON.
        if sql not in SLOW and any("SCAN" in d and "VIRTUAL TABLE" not in d for d in details)
    }
    assert [sql for sql in scans if not any(words in sql for words in MAY_SCAN)] == []
    assert [words for words in MAY_SCAN if not any(words in sql for sql in scans)] == []
    # What is sorted at last is one page of a list, since the index chose and cut it before.
    sorts = {sql for sql, details in plans.items() if any("TEMP B-TREE" in d for d in details)}
    # What is erased is summed up for each page.
    assert sorts <= {*LISTS.values(), EXPORTED, ERASE_COMMENTS[0]}


def test_each_reference_can_be_found_from_its_other_end(db: sqlite3.Connection) -> None:
    tables = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    for table in tables:
        for reference in db.execute(f"PRAGMA foreign_key_list({table})").fetchall():
            sql = f"EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE {reference[3]} = 1"
            assert "SEARCH" in db.execute(sql).fetchone()[3], (table, reference[3])


@pytest.mark.parametrize(("view", "sort"), LISTS)
def test_a_first_page_costs_the_same_however_much_there_is(
    app: App, visitor: Visitor, view: str, sort: str
) -> None:
    store = app.house.store
    steps: list[int] = []

    def cost() -> int:
        """The steps of SQLite's machine for one answer."""
        words = {"sort": sort, "view": "threads" if view == "threads" else "flat"}
        query = {**words, **({"thread": "1", "sort": "oldest"} if view == "thread" else {})}
        visitor.listing(**query)
        steps.clear()
        store.db.set_progress_handler(lambda: steps.append(1), 1)
        visitor.listing(**query)
        store.db.set_progress_handler(None, 1)
        return len(steps)

    def fill(numbers: range) -> None:
        with store.writing():
            for number in numbers:
                add(store, number, parent=root if view == "thread" else None)
                add(store, number, page_id=2)

    with store.writing():
        for key in (PAGE.strip("/"), "other"):
            store.add_page(f"/{key}", f"/{key}/", START)
        root = add(store, 0)
    fill(range(1, 20))
    before = cost()
    fill(range(20, 120))
    assert cost() == before > 0


def test_each_connection_heeds_keys_and_trusts_no_schema(config: Config) -> None:
    usual = {"foreign_keys": 1, "trusted_schema": 0, "busy_timeout": 5000, "secure_delete": 1}
    usual |= {"synchronous": 2, "journal_size_limit": 64 * 1024 * 1024, "mmap_size": 0}
    with closing(Store(Path(config.database_path))) as store:
        reader = store.db
        assert reader is not store.writer
        for db, query_only in ((store.writer, 0), (reader, 1)):
            wanted = {**usual, "query_only": query_only}
            assert {n: db.execute(f"PRAGMA {n}").fetchone()[0] for n in wanted} == wanted
            assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM page")


def test_the_wal_does_not_grow_with_what_is_written(config: Config) -> None:
    with closing(Store(Path(config.database_path))) as store:
        for number in range(60):
            with store.writing():
                store.run(
                    "INSERT INTO secret (name, value) VALUES (:n, hex(zeroblob(100000)))", n=number
                )
        assert Path(f"{store.path}-wal").stat().st_size < 8 * 1024 * 1024


CIRCLED = """
    UPDATE comment SET parent_id = 3, thread_id = 1 WHERE id = 1;
    UPDATE comment SET status = 'deleted', shown = 1 - (id = 3) WHERE id <= 3;
    UPDATE page SET threads = 0, total = 1;"""


@pytest.mark.slow
def test_a_circle_in_the_file_hangs_nothing(config: Config, outside: Outside) -> None:
    """Those who answer each other in a circle hang no list and no command; each has a minute."""
    app = make_app(config, outside.world, rounds=1)
    with closing(app):
        visitor = Visitor(app)
        for number in range(3):
            visitor.say(str(number), parent_id=number or None)
        visitor.say("beside")
    with closing(sqlite3.connect(config.database_path)) as db:
        db.executescript(CIRCLED)
    code = """
import sys, webtest, commentd
path, page = sys.argv[1:]
app = commentd.make_app(commentd.Config(database_path=path, captcha_provider="none"), rounds=1)
web = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})
for query in ("", "&view=threads", "&thread=1", "&thread=2", "&around=1", "&view=threads&around=3"):
    web.get(f"/comments?url={page}{query}", expect_errors=True)
web.get(f"/thread?url={page}")
store = app.house.store
with store.writing():
    for number in (1, 2, 3):
        store.judge(number, "visible", 0)
        store.judge(number, "spam", 0)
    store.recount()
list(commentd.as_commentd(store, app.house.config, False))
assert web.get(f"/comments?url={page}").json["total"] == 1
app.close()"""
    command = [sys.executable, "-c", code, config.database_path, PAGE]
    where = Path(commentd.__file__).parent
    subprocess.run(command, check=True, timeout=60, cwd=where)


def test_the_wal_is_emptied_in_turn_alone(config: Config) -> None:
    """By whoever closes, too: two that empty it at one moment can spoil the file."""
    store = Store(Path(config.database_path))
    store.turns.execute("PRAGMA busy_timeout = 1")
    with store.writing():
        store.run("INSERT INTO secret (name, value) VALUES ('a', 'b')")
    wal = Path(f"{store.path}-wal")
    before = wal.read_bytes()
    with (
        closing(sqlite3.connect(store.path)) as reader,
        closing(sqlite3.connect(f"{store.path}-turn", isolation_level=None)) as other,
    ):
        reader.execute("SELECT count(*) FROM secret").fetchall()
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Unavailable):
            store.empty_wal()
        store.close()
        assert wal.read_bytes() == before
    assert before


def test_of_damage_that_many_read_there_is_one_alarm(
    config: Config, outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(make_app(config, outside.world, rounds=1)) as app:
        web = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})
        web.post_json("/comments", COMMENT)
        spoil(config.database_path, "comment")
        for _ in range(3):
            web.get("/comments", {"url": PAGE}, status=503)
    assert [r.levelname for r in caplog.records].count("CRITICAL") == 1
