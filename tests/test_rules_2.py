"""Rules that no other test holds. Each belongs to another file, which is named above it."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from conftest import PAGE, Outside, Visitor

import commentd
from commentd import App, Config, Store, make_app

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
