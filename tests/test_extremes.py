"""A page with more comments than anybody reads: whatever is asked of it comes in parts of a bounded
size, and replies below replies end no program."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from commentd import App, Config, make_app
from support.client import CANARY, Visitor
from support.commands import run_here
from support.database import assert_whole
from support.inside import add_account, add_many_comments, token_of
from support.world import START, FakeWorld

pytestmark = pytest.mark.slow

BLOG = "https://blog.example"
OWNER = "owner@example.com"
READ_BY_ALL = [
    "/comments?url=/big/",
    "/comments?url=/big/&limit=100",
    "/comments?url=/big/&view=threads&limit=100",
    "/comments?url=/big/&page=7&sort=likes",
    "/comments?url=/big/&thread=1&limit=100",
    "/comments?url=/big/&around=99&view=threads",
    "/thread?url=/big/",
    "/fragment?url=/big/",
    "/feed.atom",
    "/feed.atom?url=/big/",
    "/comments/latest?limit=30",
]
READ_BY_ADMINS = [
    "/admin/comments",
    "/admin/comments?q=text",
    "/admin/pages",
    "/admin/users",
    "/admin/outbox",
    "/admin/audit",
    "/admin/figures",
]
# Each adds as many rows as there are numbers in `n`, or counts them.
OTHER_ROWS = [
    "INSERT INTO comment_liker (comment_id, visitor) SELECT 1, 'visitor ' || i FROM n",
    "INSERT INTO page_liker (page_id, visitor) SELECT 1, 'visitor ' || i FROM n",
    f"""INSERT INTO page (key, page_url, seen_at)
        SELECT '/page-' || i, '/page-' || i, {START} FROM n""",
    f"""INSERT INTO outbox (recipient, subject, tries, due_at, expires_at)
        SELECT 'ann@example.com', 'x', 1, 2 * {START}, 2 * {START} FROM n""",
    f"""INSERT INTO audit (created_at, who, action, subject, detail)
        SELECT {START}, 'owner', 'spam', i, '' FROM n""",
    "UPDATE comment SET likes = (SELECT max(i) FROM n) WHERE id = 1",
    "UPDATE page SET page_likes = (SELECT max(i) FROM n) WHERE id = 1",
]


def add_rows(path: Path, count: int) -> None:
    """One page with a comment, the reply to it, the reply to that and so on; and as many likes,
    other pages, emails that wait and entries of the log."""
    add_many_comments(path, ["/big/"], count, nested=True)
    with closing(sqlite3.connect(path)) as db, db:
        for statement in OTHER_ROWS:
            db.execute(
                f"""WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
                    {statement}""",
                [count],
            )


def sizes_of_responses(visitor: Visitor, owner: Visitor) -> dict[str, int]:
    sizes = {}
    for url in READ_BY_ALL:
        sizes[url] = len(visitor.get(url).body)
    for url in READ_BY_ADMINS:
        sizes[url] = len(owner.get(url).body)
    return sizes


def write_and_moderate(app: App, visitor: Visitor, owner: Visitor, count: int) -> None:
    """What somebody does at the end of a long row of replies, and at both ends of it."""
    last = visitor.say("the last", page_url="/big/", parent_id=count)
    edit_token = {"edit_token": last["edit_token"]}
    visitor.delete_json(f"/comments/{last['comment']['id']}", edit_token)
    for status in ("spam", "visible"):
        ids = [1, count // 2, count]
        owner.post_json("/admin/comments", {"ids": ids, "status": status})
    app.tick()


@pytest.mark.parametrize("count", [500, pytest.param(25_000, marks=pytest.mark.long)])
def test_four_times_the_comments_of_a_page_make_no_response_larger(
    config: Config, fake_world: FakeWorld, tmp_path: Path, count: int
) -> None:
    responses: list[dict[str, int]] = []
    for rows in (count, 4 * count):
        folder = tmp_path / str(rows)
        folder.mkdir()
        path = folder / "commentd.db"
        large = replace(config, database_path=str(path), limits_enabled=False, site_origins=(BLOG,))
        add_rows(path, rows)
        with closing(make_app(large, fake_world.world, rounds=1)) as app:
            add_account(app, OWNER, "Owner", CANARY, "admin")
            visitor = Visitor(app)
            owner = Visitor(app)
            owner.authorization = ("Bearer", token_of(app, OWNER, "admin"))
            responses.append(sizes_of_responses(visitor, owner))
            write_and_moderate(app, visitor, owner, rows)
            for name in ("commentd", "artalk", "waline"):
                code, exported, errors = run_here(folder, "export", name)
                assert code == 0, errors
                assert len(exported) > rows
            code, _, errors = run_here(folder, "export", "data", "--to", str(folder))
            assert code == 0, errors
            # No export holds back the checkpoint.
            assert path.with_name("commentd.db-wal").stat().st_size == 0
        assert_whole(str(path))
    few, many = responses
    for url, size in many.items():
        assert size < 1.2 * few[url] + 2000, url
