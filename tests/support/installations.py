"""Folders with settings and a database, to export from and to import into."""

import contextlib
import io
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from commentd import main, page_name, safe_html
from support.client import CANARY
from support.inside import add_stored_comment, writing_store

BLOG = "https://blog.example"
LONG_AGO = 1_700_000_000  # 2023-11-14: nothing that is imported may be of times to come
Row = dict[str, Any]


class Installation:
    """A folder with settings and, once something is written, a database; and the program, in this
    process, since to start one takes longer than what it does."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / "commentd.db"
        folder.mkdir(exist_ok=True)
        ini = f"[database]\npath = {self.path}\n[site]\norigins = {BLOG}\n"
        (folder / "commentd.ini").write_text(ini)

    def run(self, *words: str) -> tuple[int, bytes, str]:
        printed, told = io.BytesIO(), io.BytesIO()
        out = io.TextIOWrapper(printed, "utf-8", newline="\n")
        err = io.TextIOWrapper(told, "utf-8", newline="\n")
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(["--config", str(self.folder / "commentd.ini"), *words])
            except SystemExit as ended:  # of argparse
                code = int(str(ended.code))
            out.flush()
            err.flush()
        return code, printed.getvalue(), told.getvalue().decode()

    def export(self, *words: str) -> bytes:
        code, text, _ = self.run("export", *words)
        assert code == 0
        return text

    def import_text(self, text: bytes, *words: str) -> dict[str, int]:
        """Import it; the figures of the report."""
        (self.folder / "file").write_bytes(text)
        code, report, errors = self.run("import", str(self.folder / "file"), *words)
        assert (code, errors) == (0, "")
        return figures(report.decode())

    def rows(self, sql: str) -> list[Row]:
        with closing(sqlite3.connect(self.path)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql)]


def figures(report: str) -> dict[str, int]:
    """What a report of an import counts."""
    words = ("read", "new", "already here", "skipped", "new pages")
    found = {word: re.search(rf"(\d+) {word}|{word}: (\d+)$", report, re.M) for word in words}
    return {word: int(number[1] or number[2]) for word, number in found.items() if number}


@contextlib.contextmanager
def installations(*names: str) -> Iterator[list[Installation]]:
    """For examples of a property, which share what pytest gives a test."""
    with tempfile.TemporaryDirectory() as folder:
        yield [Installation(Path(folder) / name) for name in names]


def fill_database(installation: Installation, life: list[Any], start: int = LONG_AGO) -> None:
    """All of that, in a new database."""
    with writing_store(installation.path) as store:
        for name in ("lu@example.cn", "max@example.de"):
            store.run(
                """INSERT INTO account (email, nickname, password, created_at)
                   VALUES (:email, 'Account', :password, 0)""",
                email=name,
                password=CANARY,
            )
        for page_url, closed, opened, views, likes, rows in life:
            named = page_name(page_url, {"https://blog.example"})
            page = store.add_page(named.key, named.page_url, start, start + opened)
            store.run("UPDATE page SET views = :views WHERE id = :id", views=views, id=page.id)
            store.run("UPDATE page SET closed = :closed WHERE id = :id", closed=closed, id=page.id)
            for number in range(likes):
                visitor = f"visitor {number}"
                store.add_like("page", page.id, visitor, start)
            add_rows(store, page.id, rows, start)


WORDS = ("nickname", "email", "website", "content", "held", "ip", "country", "location", "language")


def add_rows(store: Any, page_id: int, rows: list[Row], start: int) -> None:
    made: list[Any] = []
    erased = []
    for one in rows:
        if made and one["gap"]:  # what was wiped leaves gaps in the numbers
            sql = "UPDATE sqlite_sequence SET seq = seq + :gap WHERE name = 'comment'"
            store.run(sql, gap=one["gap"])
        above = made[one["parent"]] if one["parent"] is not None else None
        gone = one["status"] in ("deleted", "erased")
        comment = add_stored_comment(
            store,
            **{word: one[word] for word in WORDS} | ({"email": ""} if one["user"] else {}),
            page_id=page_id,
            user_id=one["user"],
            html=safe_html(one["content"]),
            status="visible" if gone else one["status"],
            parent_id=above.id if above else None,
            created_at=start + one["created_at"],
            edited_at=one["edited_at"] and start + one["edited_at"],
            pinned=one["pinned"],
        )
        store.add_past_likes("comment", comment.id, one["likes"])
        made.append(comment)
        if gone:
            erased.append((comment.id, one["status"] == "erased"))
    for comment_id, wholly in erased:
        store.change_status(comment_id, "deleted", start)
        if wholly:
            store.erase_comments([comment_id])


DEEP: Row = {
    "gap": 0,
    "user": None,
    "nickname": "Ann",
    "email": "lu@example.cn",
    "website": "",
    "content": "hi",
    "ip": "8.8.8.8",
    "country": "",
    "location": "",
    "held": "",
    "language": "",
    "likes": 2,
    "pinned": 0,
    "created_at": 0,
    "edited_at": None,
}


def chain(*statuses: str) -> list[Row]:
    """Each answers the one before."""
    return [
        DEEP | {"status": status, "parent": number - 1 if number else None}
        for number, status in enumerate(statuses)
    ]
