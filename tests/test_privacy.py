"""Privacy: IP addresses are masked in the file and likes become anonymous after their days, while
all counts stay. Nothing that readers name is called, and no public response holds an email."""

import hashlib
import json
import random
import re
import socket
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import webtest

from commentd import App, Config, main, make_app, masked, unused_bytes
from support import inside
from support.client import CANARY, COMMENT, PAGE, Visitor
from support.database import assert_whole, raw_bytes
from support.sources import STATIC
from support.world import START, FakeWorld

HOUR, DAY = 3600, 86400
KEPT = [  # what an author's connection says, what is stored of it, and what is left in the end
    ("45.33.32.156", "45.33.32.156", "45.33.32.0"),
    ("::ffff:45.33.32.157", "45.33.32.157", "45.33.32.0"),
    ("2a00:1450:4001:81b::200e", "2a00:1450:4001:81b::200e", "2a00:1450:4001::"),
    ("[2a00:1450:4001:81c::200e]:443", "2a00:1450:4001:81c::200e", "2a00:1450:4001::"),
    ("unknown", "", ""),
]
# What an import or another program may have left in the column.
ODD = {
    "": "",
    "unknown": "",
    "1.2.3.4, 5.6.7.8": "",
    "1.2.3": "",
    "1.2.3.4/32": "",
    "1.2.3.4\0": "",
    "a\nb": "",
    "::" * 5000: "",
    "'; DROP TABLE comment; --": "",
    "::ffff:1.2.3.4": "1.2.3.0",
    "1.2.3.4:80": "1.2.3.0",
    "[2001:db8:1:2::3]:80": "2001:db8:1::",
    "fe80::1%eth0": "fe80::",
}
# By the key under which the widget keeps it in the browser: what the manual says of it.
KEPT_BY_BROWSERS = {
    "'me'": ("name, email address and website", "昵称、邮箱、网址"),
    "'likes'": ("likes", "点赞"),
    "'reactions'": ("reactions", "表情回应"),
    "'reports'": ("reports", "举报"),
    "'stickers'": ("the stickers used last", "最近用过的表情"),
    "'own'": ("the newest comments with the right to edit them", "最近的评论及修改它们的凭据"),
    "'login'": ("from where they went to an identity provider", "去登录服务之前所在的位置"),
    "form.draft": ("drafts", "草稿"),
    "'account'": ("what was typed to get a code", "获取验证码时填写的内容"),
    "'wrote'": ("when something was last sent", "最近一次发送的时间"),
}
NO_LIMITS = pytest.mark.parametrize("settings", [{"limits_enabled": False}])
LEFT = """SELECT (SELECT count(*) FROM comment WHERE masked = 0),
                 (SELECT count(*) FROM comment_liker WHERE liked_at IS NOT NULL),
                 (SELECT count(*) FROM page_liker WHERE liked_at IS NOT NULL)"""


def ips(db: sqlite3.Connection) -> list[str]:
    return [ip for (ip,) in db.execute("SELECT ip FROM comment ORDER BY id")]


def age(app: App, fake_world: FakeWorld, seconds: float, ticks: int = 1) -> None:
    fake_world.time += seconds
    for _ in range(ticks):
        app.tick()


def add_comments(
    db: sqlite3.Connection, number: int, ip: str = "45.{0}.{1}.{2}", step: int = 1
) -> None:
    """A page with many comments, each of another address, some of one moment."""
    db.execute("INSERT INTO page (key, page_url, seen_at) VALUES ('/', '/', ?)", (START,))
    rows = [
        (ip.format(n // 65536, n // 256 % 256, n % 256), START + n // step) for n in range(number)
    ]
    db.execute("BEGIN")
    db.executemany(
        """INSERT INTO comment (page_id, nickname, email, website, content, html, ip, country,
                                location, shown, status, created_at)
           VALUES (1, 'Ann', '', '', 'hi', '<p>hi</p>', ?, '', '', 1, 'visible', ?)""",
        rows,
    )
    db.execute("UPDATE page SET total = ?, threads = ?", (number, number))
    db.execute("COMMIT")


# Addresses


@pytest.mark.parametrize("settings", [{"privacy_keep_ip_days": d} for d in (0, 1, 30)])
def test_an_ip_address_is_masked_after_its_days_and_not_before(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection, settings: dict[str, int]
) -> None:
    for peer, _, _ in KEPT:
        Visitor(app, ip=peer).say(f"from {peer}")
    span = max(HOUR, settings["privacy_keep_ip_days"] * DAY)
    for seconds, index in ((span, 1), (60, 2), (span, 2)):
        age(app, fake_world, seconds)
        assert ips(db) == [case[index] for case in KEPT]


@NO_LIMITS
def test_the_ip_address_of_a_comment_is_masked_whatever_its_status(
    app: App, ann: Visitor, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    statuses = ("visible", "waiting", "spam", "deleted")
    for status in statuses:
        ann.say(f"of an account, {status}")
        above = Visitor(app).say(f"of a guest, {status}")["comment"]["id"]
        ann.say("a reply", parent_id=above)
    fake_world.time += DAY
    for number in range(12):
        inside.set_status(app, number + 1, statuses[number // 3])
    age(app, fake_world, 29 * DAY + 1)
    assert ips(db) == ["203.0.113.0"] * 12


@pytest.mark.parametrize("settings", [{}, {"privacy_show_ip": "full"}])
def test_masking_changes_nothing_for_readers_and_admins_see_what_is_left(
    app: App, ann: Visitor, fake_world: FakeWorld, settings: dict[str, str]
) -> None:
    inside.sql(app, "UPDATE account SET role = 'admin'")
    reader = Visitor(app)
    for peer, _, _ in KEPT:
        Visitor(app, ip=peer).say(f"from {peer}", nickname="Bob")

    def seen(by: Visitor) -> list[str]:
        return [comment["ip"] for comment in by.listing(sort="oldest")["comments"]]

    whole, short = ([case[index] for case in KEPT] for index in (1, 2))
    assert (seen(reader), seen(ann)) == (whole if settings else short, whole)
    age(app, fake_world, 30 * DAY + 1)
    ann.authorization = ("Bearer", ann.login()["token"])
    assert (seen(reader), seen(ann)) == (short, short)


def test_an_invalid_ip_address_does_not_stop_the_masking_of_others(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    add_comments(db, len(ODD) + 2)
    for number, (text, left) in enumerate(ODD.items(), 1):
        db.execute("UPDATE comment SET ip = ? WHERE id = ?", (text, number))
        assert masked(text) == masked(left) == left, text
    db.execute("INSERT INTO comment_liker SELECT id, 'a', created_at FROM comment WHERE id < 3")
    db.execute("UPDATE comment SET likes = 1 WHERE id < 3")
    # Nor does a row that no text can be made of keep the others.
    db.execute("UPDATE comment_liker SET visitor = CAST(x'ff00fe' AS TEXT) WHERE comment_id = 1")
    last = len(ODD) + 2
    db.execute("UPDATE comment SET ip = CAST(x'ff00fe' AS TEXT) WHERE id = ?", (last,))
    age(app, fake_world, 31 * DAY, ticks=3)
    assert ips(db) == [*ODD.values(), "45.0.0.0", ""]
    listed = Visitor(app).listing(url="/", sort="oldest", limit=100)["comments"]
    assert [comment["ip"] for comment in listed] == ips(db)
    assert db.execute(LEFT).fetchone() == (0, 0, 0)


# Likes


def likes(visitor: webtest.TestApp, undo: bool = False) -> list[int]:
    """Of the comment and of the page, after this visitor liked both."""
    comment = visitor.post_json("/comment/like", {"id": 1, "undo": undo}).json
    page = visitor.post_json("/page/like", {"page_url": PAGE, "undo": undo}).json
    return [comment["likes"], page["page_likes"]]


def likers(db: sqlite3.Connection) -> set[str]:
    both = "SELECT visitor FROM comment_liker UNION SELECT visitor FROM page_liker"
    return {visitor for (visitor,) in db.execute(both)}


def test_a_like_forgets_whose_it_was(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    visitor, other = Visitor(app), Visitor(app, ip="203.0.113.8")
    visitor.say()
    assert (likes(visitor), likes(other)) == ([1, 1], [2, 2])
    known = likers(db)
    age(app, fake_world, 29 * DAY)
    assert likes(visitor) == [2, 2]  # given again, it does not grow younger
    age(app, fake_world, DAY)
    assert likers(db) == known
    age(app, fake_world, 60)
    left = likers(db)
    assert not left & known
    assert len(left) == 4  # each like stands for itself
    assert_whole(inside.database_path(app))
    # Nobody's now: the visitor may like again, and take back that one alone.
    assert likes(visitor, undo=True) == [2, 2]
    assert likes(visitor) == likes(visitor) == [3, 3]
    assert likes(visitor, undo=True) == likes(visitor, undo=True) == [2, 2]
    age(app, fake_world, 31 * DAY)
    assert likers(db) == left


def test_very_many_old_likes_become_anonymous_little_by_little(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    add_comments(db, 2)
    liked = [(n % 2 + 1, f"visitor {n}", START + n % 7) for n in range(1200)]
    db.execute("BEGIN")
    db.executemany("INSERT INTO comment_liker VALUES (?, ?, ?)", liked)
    db.executemany("INSERT INTO page_liker VALUES (1, ?, ?)", [each[1:] for each in liked])
    db.execute("UPDATE comment SET likes = 600")
    db.execute("UPDATE page SET page_likes = 1200")
    db.execute("COMMIT")
    left = []
    for seconds in (31 * DAY, 60, 60):  # a transaction for all would keep authors waiting
        age(app, fake_world, seconds)
        left.append(db.execute(LEFT).fetchone()[1:])
    assert left == [(700, 700), (200, 200), (0, 0)]


def test_the_rows_of_very_many_erased_comments_go_little_by_little(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    add_comments(db, 450)
    db.execute("UPDATE comment SET status = 'deleted', content = '', html = '', shown = 0")
    db.execute("UPDATE page SET total = 0, threads = 0")
    left = []
    for _ in range(3):
        age(app, fake_world, 60)
        left += db.execute("SELECT count(*) FROM comment").fetchone()
    assert left == [250, 50, 0]


def test_a_like_of_an_account_can_be_taken_back_years_later(
    app: App, ann: Visitor, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    ann.say()
    assert likes(ann) == [1, 1]
    age(app, fake_world, 900 * DAY, ticks=3)
    ann.authorization = ("Bearer", ann.login()["token"])
    assert likers(db) == {"user 1"}
    assert likes(ann) == [1, 1]
    assert likes(ann, undo=True) == [0, 0]


# The file


def traces(path: Path, texts: set[str]) -> set[str]:
    """Those of the texts whose bytes are in the file, or in one beside it."""
    files = [file for file in path.parent.rglob("*") if file.is_file() and file.suffix != ".ini"]
    held = b"".join(file.read_bytes() for file in files)
    pieces = set(re.findall(rb"[0-9a-f.:]{7,}", held))
    return {text for text in texts if any(text.encode() in piece for piece in pieces)}


def test_a_masked_ip_address_leaves_the_files_at_once(app: App, fake_world: FakeWorld) -> None:
    """It does not wait for the look of a day through the file, which was an hour ago."""
    path = Path(inside.database_path(app))
    Visitor(app, ip="145.133.100.200").say()
    age(app, fake_world, 30 * DAY - HOUR)
    assert traces(path, {"145.133.100.200"})
    age(app, fake_world, HOUR + 60, ticks=2)
    assert not traces(path, {"145.133.100.200"})


@pytest.mark.slow
@NO_LIMITS
def test_a_stop_leaves_no_byte_of_a_masked_ip_address(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    path, chance = Path(inside.database_path(app)), random.Random(1)
    addresses = {f"145.133.{n}.{chance.randint(100, 255)}" for n in range(100, 250)}
    for n in range(4096, 4121):
        addresses.add(f"2a00:1450:4001:{n:x}::{chance.randint(4096, 65535):x}")
    ids: list[int] = []
    for ip in sorted(addresses):  # texts of many lengths, replies, likes: rows grow and move
        fake_world.time += 1
        text = f"hello {'x' * chance.randrange(900)}"
        parent = {"parent_id": chance.choice(ids)} if ids and chance.random() < 0.4 else {}
        web = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": ip})
        posted = web.post_json("/comments", {**COMMENT, "content": text, **parent}).json
        ids.append(posted["comment"]["id"])
        for _ in range(2):
            web.post_json("/comment/like", {"id": chance.choice(ids)})
        web.post_json("/page/like", {"page_url": PAGE})
    secret = addresses | likers(db)
    db.close()
    assert traces(path, secret) == secret  # so that the test knows how to look
    age(app, fake_world, 31 * DAY)
    app.close()
    assert not Path(f"{path}-wal").exists()
    assert traces(path, secret) == set()
    assert_whole(str(path))


@pytest.mark.slow
@NO_LIMITS
def test_erased_texts_leave_a_large_database_file_while_authors_write(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    path, chance = Path(inside.database_path(app)), random.Random(2)
    db.execute("PRAGMA secure_delete = ON")
    add_comments(db, 9000)
    emails = [f"{chance.getrandbits(64):016x}@secret.example" for _ in range(9000)]
    grown = [(email, "x" * chance.randrange(1500), n + 1) for n, email in enumerate(emails)]
    chance.shuffle(grown)
    db.execute("BEGIN")
    db.executemany("UPDATE comment SET email = ?, content = ? WHERE id = ?", grown)
    db.execute("UPDATE comment SET email = '', masked = 1")
    db.execute("COMMIT")
    db.close()

    def left() -> set[bytes]:
        return {*re.findall(rb"[0-9a-f]{16}@secret\.example", raw_bytes(path))}

    assert left(), "no row has moved"
    for number in range(8):
        fake_world.time += DAY if number == 0 else 1
        app.tick()
        Visitor(app).say(f"{number}")
    assert left() == set()
    assert_whole(str(path))


@pytest.fixture
def secret_is_left(app: App, db: sqlite3.Connection) -> Callable[[], bool]:
    """Tells whether a file still has an erased text: rows that moved left copies of it."""
    add_comments(db, 900)
    db.execute("UPDATE comment SET email = 'secret@example.com'")
    db.execute("UPDATE comment SET content = hex(zeroblob(id % 7 * 100))")  # rows move
    db.execute("UPDATE comment SET email = '', masked = 1")
    path = Path(inside.database_path(app))

    return lambda: b"secret@" in raw_bytes(path)


def test_erased_texts_leave_a_database_file_as_soon_as_no_other_program_reads_it(
    app: App, fake_world: FakeWorld, secret_is_left: Callable[[], bool]
) -> None:
    with closing(sqlite3.connect(inside.database_path(app))) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM comment").fetchone()
        age(app, fake_world, DAY, ticks=3)
        assert secret_is_left()
    age(app, fake_world, 60, ticks=3)
    assert not secret_is_left()


def test_erased_texts_leave_a_database_file_though_another_program_writes_in_between(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection, secret_is_left: Callable[[], bool]
) -> None:
    statements = [""]

    def write_before_the_lock(statement: str) -> None:
        if statement == "BEGIN IMMEDIATE" and "busy_timeout" in statements[-1]:
            db.execute("UPDATE page SET views = views + 1")
        statements.append(statement)

    age(app, fake_world, DAY, ticks=0)
    inside.writer(app).set_trace_callback(write_before_the_lock)
    age(app, fake_world, 1, ticks=3)
    assert db.execute("SELECT views FROM page").fetchall() == [(3,)]
    assert secret_is_left()
    inside.writer(app).set_trace_callback(None)
    age(app, fake_world, 60, ticks=3)
    assert not secret_is_left()


def test_erased_texts_leave_a_database_file_though_another_program_reads_in_between(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection, secret_is_left: Callable[[], bool]
) -> None:
    statements = []
    with closing(sqlite3.connect(inside.database_path(app))) as reader:

        def read_before_the_wal_is_emptied_again(statement: str) -> None:
            statements.append(statement)
            if (
                statements.count("PRAGMA wal_checkpoint(TRUNCATE)") == 2
                and not reader.in_transaction
            ):
                db.execute("UPDATE page SET views = views + 1")
                reader.execute("BEGIN")
                reader.execute("SELECT views FROM page").fetchone()

        inside.writer(app).set_trace_callback(read_before_the_wal_is_emptied_again)
        age(app, fake_world, DAY)
        inside.writer(app).set_trace_callback(None)
        assert reader.in_transaction
        assert secret_is_left()
    age(app, fake_world, 60, ticks=3)
    assert not secret_is_left()


# Databases that commentd does not make itself, but that an owner may have rewritten.
LAYOUTS = {
    "maps of pages": ("auto_vacuum = FULL",),
    "maps of free pages": ("auto_vacuum = INCREMENTAL", "page_size = 512"),
    "small pages": ("page_size = 512",),
    "the largest pages": ("page_size = 65536",),
}


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
def test_erased_texts_leave_a_database_file_of_any_layout_and_nothing_else_does(
    tmp_path: Path, fake_world: FakeWorld, layout: str
) -> None:
    path, chance = tmp_path / "commentd.db", random.Random(4)
    config = Config(database_path=str(path))
    make_app(config, fake_world.world, rounds=1).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for pragma in ("journal_mode = DELETE", *LAYOUTS[layout]):
            db.execute(f"PRAGMA {pragma}")
        db.execute("VACUUM")
        made = make_app(config, fake_world.world, rounds=1)
        db.execute("PRAGMA secure_delete = ON")
        add_comments(db, 4000)
        ids = list(range(1, 4001))
        chance.shuffle(ids)
        emails = [(f"{n:016x}@secret.example", "x" * chance.randrange(200), n) for n in ids]
        db.execute("BEGIN")
        db.executemany("UPDATE comment SET email = ?, content = ? WHERE id = ?", emails)
        db.execute("UPDATE comment SET email = '', masked = 1")
        db.execute("DELETE FROM comment WHERE id > 3500")
        db.execute("UPDATE page SET total = 3500, threads = 3500")
        db.execute("COMMIT")
        assert b"@secret.example" in path.read_bytes() + Path(f"{path}-wal").read_bytes()
        kept = db.execute("SELECT * FROM comment").fetchall()
        age(made, fake_world, DAY)
        for _ in range(8):
            age(made, fake_world, 30)
        assert db.execute("SELECT * FROM comment").fetchall() == kept
        assert b"@secret.example" not in path.read_bytes()
    made.close()
    assert_whole(str(path))


def test_only_the_bytes_between_the_list_of_rows_and_the_rows_of_a_page_are_unused() -> None:
    def leaf(first_free: int, rows_at: int, row: int) -> bytes:
        return struct.pack(">BHHHBH", 13, first_free, 1, rows_at, 0, row).ljust(4096, b"x")

    assert unused_bytes(leaf(0, 4000, 4000), 2) == (10, 4000)
    assert unused_bytes(leaf(4050, 4000, 4000), 2) == (10, 4000)
    assert unused_bytes((bytes(100) + leaf(0, 4000, 4000))[:4096], 1) == (110, 4000)
    damaged = [leaf(0, 4000, 3999), leaf(3999, 4000, 4000), leaf(0, 9, 9), leaf(0, 4097, 4097)]
    for page in (*damaged, bytes(4096)):
        assert unused_bytes(page, 2) == (0, 0)


def test_a_damaged_page_of_the_database_does_not_stop_the_erasing_behind_it(
    tmp_path: Path, fake_world: FakeWorld
) -> None:
    path = tmp_path / "commentd.db"
    config = Config(database_path=str(path))
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            add_comments(db, 4000)
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        age(app, fake_world, DAY)
        whole = path.read_bytes()
        with_rows = [at for at in range(0, len(whole), 4096) if whole[at] == 13]
        damaged = with_rows[len(with_rows) // 2]
        with path.open("r+b") as file:
            file.seek(damaged + 5)
            file.write(b"\xff\xff")  # says that the rows of this page begin at byte 65535
        age(app, fake_world, DAY)
    behind = slice(damaged + 4096, damaged + 17 * 4096)
    assert path.read_bytes()[behind] == whole[behind]


# The work


@pytest.mark.parametrize("step", [1, 1300])
def test_very_many_old_ip_addresses_are_masked_in_several_turns_the_oldest_first(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection, step: int
) -> None:
    add_comments(db, 1300, step=step)
    db.execute("UPDATE comment SET likes = 1")
    db.execute("UPDATE page SET page_likes = 1300")
    for liker, of in (("comment_liker (comment_id", "id"), ("page_liker (page_id", "1")):
        liked = f"SELECT {of}, 'v' || id, created_at FROM comment"
        db.execute(f"INSERT INTO {liker}, visitor, liked_at) {liked}")
    fake_world.time += 31 * DAY
    rest = []
    for _ in range(4):
        fake_world.time += 60
        app.tick()
        rest.append(db.execute(LEFT).fetchone())
        done = "SELECT coalesce(max(created_at), 0) FROM comment WHERE masked = 1"
        older = f"SELECT count(*) FROM comment WHERE masked = 0 AND created_at < ({done})"
        assert db.execute(older).fetchone() == (0,)
    assert rest == sorted(rest, reverse=True)
    assert rest[0][0] > 0  # a turn is short
    assert rest[-1] == (0, 0, 0)
    assert len(likers(db)) == 2600


def test_masking_survives_a_clock_jump(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    visitor = Visitor(app, ip="45.33.32.156")
    visitor.say("before")
    likes(visitor)
    age(app, fake_world, 365 * DAY)
    assert ips(db) == ["45.33.32.0"]
    visitor.say("in the future")
    likes(visitor)
    age(app, fake_world, -365 * DAY)
    visitor.say("after")
    assert ips(db) == ["45.33.32.0", "45.33.32.156", "45.33.32.156"]
    assert likes(visitor) == [2, 2]
    age(app, fake_world, 31 * DAY)
    assert ips(db)[0::2] == ["45.33.32.0"] * 2
    age(app, fake_world, 365 * DAY)
    assert ips(db) == ["45.33.32.0"] * 3
    assert db.execute(LEFT).fetchone() == (0, 0, 0)


def test_masking_writes_nothing_where_nothing_is_due_and_scans_once_a_minute(
    app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    add_comments(db, 1000)
    app.tick()
    version = db.execute("PRAGMA data_version").fetchone()
    with inside.statements(app) as asked:
        for _ in range(50):
            age(app, fake_world, 1)
    assert db.execute("PRAGMA data_version").fetchone() == version
    assert [each for each in asked if re.search("comment|_liker|report", each)] == []
    with inside.statements(app) as asked:
        age(app, fake_world, 10)
    # Only the service has the tables that are named so.
    read = r"\s*(SELECT|UPDATE)(?!.*FROM changed_)"
    asked = [each for each in set(asked) if re.match(read, each)]
    for table in ("comment", "comment_liker", "page_liker"):
        plans = [
            step
            for each in asked
            for *_, step in db.execute(f"EXPLAIN QUERY PLAN {each}")
            if re.search(rf"\b{table}\b", step)
        ]
        assert plans
        searched = r"SEARCH \w+ USING (COVERING )?INDEX|SEARCH.*PRIMARY KEY"
        assert [plan for plan in plans if not re.match(searched, plan)] == []


# What leaves

WEB = "http://198.51.100.9"  # of nobody


def test_no_url_that_a_reader_writes_is_requested(
    tmp_path: Path, config: Config, fake_world: FakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[Any] = []

    def refuse(address: Any, *more: Any, **how: Any) -> Any:
        called.append(address)
        raise ConnectionRefusedError

    for name in ("create_connection", "getaddrinfo", "gethostbyname", "getfqdn"):
        monkeypatch.setattr(socket, name, refuse)
    open_to_all = replace(
        config,
        server_listen="0.0.0.0:80",
        site_origins=("https://blog.example",),
        server_public_url="https://c.example",
    )
    app = make_app(open_to_all, fake_world.world, rounds=1)
    with closing(app):
        inside.add_account(app, "owner@example.com", "Owner", CANARY, "admin")
        owner = Visitor(app)
        owner.authorization = ("Bearer", inside.token_of(app, "owner@example.com", "admin"))
        text = f"{WEB}/a ![x]({WEB}/x.png) [y]({WEB}/y) <img src={WEB}/z>"
        visitor = Visitor(app)
        posted = visitor.say(
            text,
            page_url=f"{WEB}/page/",
            website=f"{WEB}/me",
            email="lu@198-51-100-9.example",
            lang="en",
        )
        number, token = posted["comment"]["id"], posted["edit_token"]
        visitor.post_json("/comments/preview", {"content": text})
        edit = {"content": f"{text} more", "edit_token": token}
        visitor.patch_json(f"/comments/{number}", edit)
        visitor.post_json(f"/comments/{number}/report", {"reason": text})
        visitor.post_json("/page/like", {"page_url": f"{WEB}/page/"})
        visitor.listing(url=f"{WEB}/page/", view="threads")
        assert WEB in visitor.get("/feed.atom", {"url": f"{WEB}/page/"}).text
        assert WEB in visitor.get("/thread", {"url": f"{WEB}/page/"}).text
        for _ in range(2):
            fake_world.time += HOUR
            app.tick()
            app.deliver()
        assert WEB in fake_world.text()
        owner.post_json("/admin/blocks", {"kind": "domain", "value": "evil.example"})
        owner.post_json("/admin/comments", {"ids": [number], "status": "visible"})
        assert WEB in owner.get("/admin/comments").text
    rows = [{"objectId": "1", "nick": "Lu", "url": f"{WEB}/page/", "link": WEB, "comment": text}]
    (tmp_path / "valine.json").write_text(json.dumps({"results": rows}))
    monkeypatch.chdir(tmp_path)
    assert main(["import", "--host", "198.51.100.9", "valine.json"]) == 0
    assert called == []


@pytest.mark.parametrize("settings", [{"server_metrics": True}])
def test_no_public_response_holds_an_email_or_ip_address_or_a_hash_of_one(
    app: App, ann: Visitor
) -> None:
    addresses = ("Lu.Guest@example.net", "lu.guest@example.net", "ann@example.com")
    secrets = [text for a in addresses for text in (a, a.partition("@")[0])]
    for kind in ("md5", "sha1", "sha256", "sha512"):
        secrets += [hashlib.new(kind, address.encode()).hexdigest() for address in addresses]
    secrets.remove("ann")  # who is Ann
    shown = [ann.say("by an account"), Visitor(app).say("by a guest", email="Lu.Guest@example.net")]
    shown.append(Visitor(app).say("an answer", parent_id=1, email="lu.guest@example.net"))
    shown += [Visitor(app).say(email="lu.guest@example.net"), ann.listing()]
    paths = ["/comments/latest", "/feed.atom", "/metrics", "/captcha", "/health"]
    queries = [
        "/comments?url={}",
        "/comments?url={}&view=threads",
        "/comments?url={}&thread=1",
        "/pages?url={}",
        "/feed.atom?url={}",
        "/thread?url={}",
    ]
    for reader in (Visitor(app), ann):
        for path in [*paths, *(query.format(PAGE) for query in queries)]:
            shown.append(reader.get(path).text)
    everything = "\n".join(map(str, shown))
    assert everything.count("an answer") > 9
    assert [secret for secret in secrets if secret in everything] == []


def test_a_deleted_account_leaves_no_location(ann: Visitor, db: sqlite3.Connection) -> None:
    ann.extra_environ["REMOTE_ADDR"] = KEPT[0][0]
    ann.say("words that stay")
    kept = "SELECT content, ip, country, location FROM comment"
    (row,) = db.execute(kept)
    assert all(row)
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})
    assert db.execute(kept).fetchall() == [("words that stay", "", "", "")]


def test_the_manual_names_all_that_the_widget_keeps_in_the_browser() -> None:
    scripts = "".join(path.read_text("utf-8") for path in STATIC.glob("*.js"))
    keys = {*re.findall(r"\bkeep\(kit, ([^,)]+)", scripts)}
    keys |= {*re.findall(r"\.setItem\(SERVICE \+ ([\w.]+)", scripts)} - {"key"}  # in `keep` itself
    assert keys == KEPT_BY_BROWSERS.keys(), (
        "Write what the browser keeps into static/help/en/privacy.md and zh/privacy.md, and here"
    )
    for place, (language, lead) in enumerate((("en", "The browser keeps"), ("zh", "浏览器只为"))):
        page = (STATIC / f"help/{language}/privacy.md").read_text("utf-8")
        [passage] = [part for part in page.split("\n\n") if part.startswith(lead)]
        text = " ".join(passage.split())
        assert [said[place] for said in KEPT_BY_BROWSERS.values() if said[place] not in text] == []
