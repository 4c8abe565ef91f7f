"""Rules that no other test holds. Each belongs to another file, which is named above it."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import test_mail
from conftest import PAGE, Outside, Visitor
from test_mail import Clerk, Serve
from test_server import COMMENT
from test_storage import spoil
from webtest import TestApp

import commentd
from commentd import DAY, App, Config, Store, Unavailable, make_app

clerk, serve = test_mail.clerk, test_mail.serve

# To test_storage


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
        web = TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})
        web.post_json("/comments", COMMENT)
        spoil(config.database_path, "comment")
        for _ in range(3):
            web.get("/comments", {"url": PAGE}, status=503)
    assert [r.levelname for r in caplog.records].count("CRITICAL") == 1


# To test_auth


def test_a_code_that_saw_the_clock_go_back_is_no_code_any_more(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    visitor.register()
    app.deliver()
    outside.time -= DAY
    app.tick()
    outside.time += DAY  # a moment later by the clock, and who knows how long after
    visitor.verify(outside.code(), status=400)


# To test_mail


def test_a_letter_that_failed_before_the_clock_went_back_is_tried_again_at_once(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    outside.time += 30 * DAY
    outside.mail_fails_with = ConnectionRefusedError()
    visitor.register()
    app.deliver()
    outside.time -= 30 * DAY
    outside.mail_fails_with = None
    app.tick()
    app.deliver()
    assert len(outside.letters) == 1


def test_a_server_that_says_no_goodbye_gets_no_double(
    serve: Serve, outside: Outside, clerk: Clerk
) -> None:
    clerk.script = {"QUIT": ""}
    app = serve(clerk.port)
    Visitor(app).register()
    for _ in range(3):
        app.deliver()
        outside.time += 60  # its code is good for ten minutes
    assert len(clerk.letters) == 1


# To test_letters


def test_ten_minutes_lie_between_two_letters_about_a_page(
    app: App, ann: Visitor, outside: Outside
) -> None:
    first = ann.say("mine")["comment"]["id"]
    times = []
    for minute in range(25):
        Visitor(app, f"203.0.113.{minute}").say(str(minute), nickname="Bob", parent_id=first)
        before = len(outside.letters)
        app.deliver()
        times += [minute] * (len(outside.letters) - before)
        outside.time += 60
    assert times == [0, 9, 18]


# To test_keys


@pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}])
def test_a_challenge_that_nobody_solves_leaves_no_row(app: App, visitor: Visitor) -> None:
    def rows() -> dict[str, int]:
        with closing(sqlite3.connect(app.house.store.path)) as db:
            tables = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
            return {t: db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}

    before = rows()
    for _ in range(5):
        visitor.get("/captcha")
    assert rows() == before


# To test_comments


def test_a_household_has_one_share_whatever_addresses_it_uses(app: App) -> None:
    for host in range(1, 6):
        Visitor(app, f"2001:db8:12:7::{host}").say(str(host))
    Visitor(app, "2001:db8:12:7:ffff::6").say("a sixth", status=429)
    Visitor(app, "2001:db8:12:8::1").say("next door")
