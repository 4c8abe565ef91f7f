"""What is in a database file, and whether it is whole."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

# What a refused request may change: rate limits, tries, spent captchas, and the times of those.
VOLATILE = {"rate_limit", "state", "spent_captcha", "sqlite_sequence"}


def dump(path: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the lasting tables of a database."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return rows_of(db)


def rows_of(db: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """The same from a connection. Tries of a code are left out: they are a rate limit too."""
    tables = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    rows = {t: db.execute(f"SELECT * FROM {t}").fetchall() for t in tables if t not in VOLATILE}
    names = [c[1] for c in db.execute("PRAGMA table_info(registration)")]
    lasting = [i for i, name in enumerate(names) if name not in ("tries", "named_tries")]
    rows["registration"] = [tuple(row[i] for i in lasting) for row in rows["registration"]]
    return rows


@contextmanager
def cut_off(writer: sqlite3.Connection, last: int) -> Iterator[None]:
    """SQLite is interrupted once, at its `last` step; not at the very end of a COMMIT, for what it
    wrote is kept by then."""
    steps, cuts = itertools.count(), [True]

    def cut() -> bool:
        return next(steps) >= last and writer.in_transaction and bool(cuts) and cuts.pop()

    writer.set_progress_handler(cut, 1)
    yield
    writer.set_progress_handler(None, 1)


def assert_whole(path: str) -> None:
    """The file is intact, no row points nowhere, every counter equals a recount."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        wrong = db.execute(
            """SELECT page.id FROM page WHERE total <> (SELECT count(*) FROM comment
                  WHERE page_id = page.id AND status = 'visible')
                OR threads <> (SELECT count(*) FROM comment
                  WHERE page_id = page.id AND shown = 1 AND parent_id IS NULL)
                OR page_likes <> (SELECT count(*) FROM page_liker WHERE page_id = page.id)"""
        ).fetchall()
        assert wrong == []
        wrong = db.execute(
            """SELECT c.id FROM comment AS c WHERE likes <> (SELECT count(*) FROM comment_liker
                  WHERE comment_id = c.id)
                OR replies <> (SELECT count(*) FROM comment AS r
                  WHERE r.parent_id = c.id AND r.shown = 1)
                OR shown <> (status = 'visible' OR replies > 0)"""
        ).fetchall()
        assert wrong == []
