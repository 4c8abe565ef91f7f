"""Rows that were spoilt, as readers and exports meet them (to be moved into test_moderation.py)."""

import re
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
import webtest
from conftest import PAGE, Config, Outside, Visitor
from test_moderation import JUNK, Judge

from commentd import EXPORTERS, App, make_app

READ = ["/comments?url=", "/comments?view=threads&url=", "/comments?sort=likes&url=", "/pages?url="]
READ += ["/thread?url=", "/feed.atom?url="]
TIMES = [
    f"UPDATE comment SET {column} = {seconds} WHERE id = 2"
    for column in ("created_at", "edited_at", "judged_at")
    for seconds in (2**63 - 1, -(2**63), 300_000_000_000)
]
SUMS = [
    "UPDATE page SET views = 9223372036854775807 WHERE id = 2",
    "INSERT INTO day VALUES (20775, 0, 9223372036854775807, 0) ON CONFLICT DO UPDATE SET views = 1",
    "UPDATE day SET likes = 9223372036854775807, comments = 9223372036854775807, views = 0",
]


PAGES = [sql for sql in JUNK if re.match("UPDATE (comment|page) ", sql) and "nickname =" not in sql]


@pytest.mark.parametrize("sql", [*PAGES, *TIMES, *SUMS])
def test_a_poisoned_row_spoils_no_list_no_feed_and_no_export(
    config: Config, outside: Outside, sql: str
) -> None:
    config = replace(config, limits_enabled=False)
    with closing(make_app(config, outside.world, rounds=1)) as app:
        client = webtest.TestApp(app)
        for url in (PAGE, "/other/", PAGE):
            Judge(app).say(f"on {url}", page_url=url)
        with closing(sqlite3.connect(config.database_path, isolation_level=None)) as db:
            db.execute(sql)
        for path in [*READ, "/comments/latest?", "/feed.atom?"]:
            for url in (PAGE, "/other/"):
                told = client.get(path + url, expect_errors=True)
                assert told.status_int == 200, path
                whole = PAGE in path + url or "=" not in path
                assert not whole or "/pages" in path or f"on {PAGE}" in told.text, path
        for export, _ in EXPORTERS.values():
            assert "".join(export(app.house.store, config, True)).count(f"on {PAGE}") >= 1
            app.house.store.db.rollback()
        client.post_json("/page/like", {"page_url": PAGE})
        client.post_json("/comment/like", {"id": 1})
        app.tick()
        assert app.house.views.pending == {}
        assert client.get(f"/pages?url={PAGE}").json["pages"][0]["views"] > 0


def test_a_page_with_absurd_views_does_not_keep_those_of_others(
    app: App, visitor: Visitor, db: sqlite3.Connection
) -> None:
    visitor.say("one")
    visitor.say("other", page_url="/other/")
    db.execute("UPDATE page SET views = 9223372036854775807 WHERE id = 1")
    for url in (PAGE, "/other/"):
        visitor.listing(url=url)
    app.tick()
    assert db.execute("SELECT views FROM page WHERE id = 2").fetchone() == (1,)
    assert app.house.views.pending == {}
