"""Huge threads, which are read in pages."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import inside
import pytest
import webtest
from conftest import CANARY, START, Campaign, Outside
from test_commands import run_here

from commentd import App, Config, World, make_app

pytestmark = pytest.mark.slow

BLOG = "https://blog.example"
USUAL: dict[str, Any] = {
    "captcha_provider": "none",
    "limits_enabled": False,
    "server_metrics": True,
    "server_public_url": "https://comments.example",
    "site_origins": (BLOG,),
    "webhook_url": f"{BLOG}/hook",
}
OWNER = "owner@example.com"


def world_of(outside: Outside) -> World:
    """A world in which every fetch succeeds, such as of webhooks."""
    return replace(outside.world, fetch=lambda *_, **__: (200, b""))


def new_admin(app: App) -> tuple[str, str]:
    """The login of a new admin."""
    inside.add_account(app, OWNER, "Owner", CANARY, "admin")
    return "Bearer", inside.token_of(app, OWNER, "admin")


def exported(app: App, name: str) -> str:
    """What `commentd export FORMAT --emails` prints."""
    path = Path(inside.database_path(app))
    settings = {"COMMENTD_DATABASE_PATH": str(path), "COMMENTD_SITE_ORIGINS": BLOG}
    code, text, errors = run_here(path.parent, "export", name, "--emails", **settings)
    assert code == 0, errors
    return text


def grown(path: Path, n: int) -> None:
    """Adds a page whose comments each reply to the one before, and as many likes and pages."""
    rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :n)"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO page (id, key, page_url, seen_at) VALUES (1, '/big', '/big/', 1)")
        for sql in (
            f"""INSERT INTO comment (id, page_id, parent_id, thread_id, nickname, email, website,
                       content, html, ip, country, location, status, created_at)
                {rows} SELECT i, 1, nullif(i - 1, 0), iif(i > 1, 1, NULL), 'Lu', '', '',
                       'text ' || i, '<p>text</p>', '', '', '', 'visible', {START} + i FROM n""",
            f"INSERT INTO comment_liker (comment_id, visitor) {rows} SELECT 1, 'v' || i FROM n",
            f"INSERT INTO page_liker (page_id, visitor) {rows} SELECT 1, 'v' || i FROM n",
            f"""INSERT INTO page (key, page_url, seen_at) {rows}
                SELECT '/p' || i, '/p' || i, {START} FROM n""",
            f"""INSERT INTO outbox (recipient, message, tries, due_at, expires_at) {rows}
                SELECT 'a@example.com', 'Subject: x', 1, 2 * {START}, 2 * {START} FROM n""",
            f"""INSERT INTO audit (created_at, who, action, subject, detail) {rows}
                SELECT {START}, 'x', 'spam', i, '' FROM n""",
        ):
            db.execute(sql, {"n": n})


HUGE = [
    "/comments?url=/big/", "/comments?url=/big/&limit=100",
    "/comments?url=/big/&view=threads&limit=100",
    "/comments?url=/big/&page=7&sort=likes", "/comments?url=/big/&around=99&view=threads",
    "/thread?url=/big/", "/feed.atom?url=/big/", "/comments/latest?limit=30",
    *(f"/admin/{path}" for path in ("comments", "pages", "users", "outbox", "audit", "figures")),
]  # fmt: skip


def test_huge_threads_come_in_pages(config: Config, outside: Outside, campaign: Campaign) -> None:
    """Four times as many rows make no larger response, and nothing recurses."""
    most, sizes = 25_000 if campaign.seconds else 500, dict[str, list[int]]()
    for n in (most, 4 * most):
        path = Path(config.database_path).with_name(f"{n}.db")
        each = replace(config, **USUAL, database_path=str(path))
        make_app(each, world_of(outside), rounds=1).close()
        grown(path, n)
        with closing(make_app(each, world_of(outside), rounds=1)) as app:
            inside.recount(app)
            inside.writer(app).execute("PRAGMA synchronous = OFF")
            client, login = webtest.TestApp(app), new_admin(app)
            for url in HUGE:
                client.authorization = login if "/admin/" in url else None
                sizes.setdefault(url, []).append(len(client.get(url).body))
            client.authorization = None
            comment = {
                "page_url": "/big/",
                "nickname": "Lu",
                "content": "last",
                "captcha_token": "x",
            }
            done = client.post_json("/comments", {**comment, "parent_id": n}).json
            form = {"edit_token": done["edit_token"]}
            client.delete_json(f"/comments/{done['comment']['id']}", form)
            client.authorization = login
            for status in ("spam", "visible"):
                form = {"ids": [n, 1, n // 2], "status": status}
                client.post_json("/admin/comments", form)
            app.tick()
            for name in ("commentd", "artalk"):
                assert len(exported(app, name)) > n
            # An export does not hold back the checkpoint.
            assert path.with_name(f"{n}.db-wal").stat().st_size == 0
        campaign.figures["rows"] += 6 * n
    for url, (size, more) in sizes.items():
        assert more < 1.2 * size + 2000, url
