"""What is in a database file, and whether it is whole."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from commentd import Config

# What a refused request may change: rate limits, tries, spent captchas, and the times of those.
VOLATILE = {"rate_limit", "state", "spent_captcha", "sqlite_sequence"}


def tables_in(db: sqlite3.Connection) -> list[str]:
    """The tables of the schema. Those of the index for searches are made of their rows."""
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return [table for table in tables if not table.startswith("search_")]


def drop_index(db: sqlite3.Connection) -> None:
    for table in ("search_entry", "search_index", "search_progress"):
        db.execute(f"DROP TABLE {table}")


def dump(path: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the lasting tables of a database."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return rows_of(db)


def rows_of(db: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """The same from a connection. Tries of a code are left out: they are a rate limit too."""
    tables = [*tables_in(db), "search_index_data", "search_progress"]
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
            """SELECT id FROM reaction WHERE count <> (SELECT count(*) FROM reaction_liker
                  WHERE reaction_id = reaction.id)"""
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


# Which comment each three characters of the index for searches stand in, as SQLite indexes the same
# texts anew.
INDEX_ANEW = """
    CREATE VIRTUAL TABLE temp.anew USING fts5 (text, detail = none, tokenize = 'trigram');
    INSERT INTO temp.anew (rowid, text)
    SELECT id, content || char(10) || nickname || char(10) || email || char(10) || website
               || char(10) || char(10)
      FROM comment, search_progress WHERE id <= comment_id AND content <> '';
    CREATE VIRTUAL TABLE temp.anew_entry USING fts5vocab (anew, instance)"""


def assert_indexed(path: Path) -> None:
    """The index for searches has what it should have, and nothing else."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(INDEX_ANEW)
        entries = {*db.execute("SELECT term, doc FROM search_entry")}
        assert entries
        assert entries ^ {*db.execute("SELECT term, doc FROM anew_entry")} == set()


PLAIN: dict[str, Any] = {"captcha_provider": "none", "limits_enabled": False}


def config_for(path: Path, **settings: Any) -> Config:
    folder = str(path.parent / "copies")
    return Config(database_path=str(path), backup_folder=folder, **PLAIN, **settings)


def comments_by_id(path: Path) -> dict[int, str]:
    """The comments that a database holds."""
    with closing(sqlite3.connect(path)) as db:
        return dict(db.execute("SELECT id, content FROM comment").fetchall())


def with_version(whole: bytes, version: int) -> bytes:
    return whole[:60] + version.to_bytes(4) + whole[64:]  # sqlite.org/fileformat.html


def schema(db: sqlite3.Connection) -> list[Any]:
    """Without the index for searches."""
    sql = """SELECT type, name, tbl_name, sql FROM sqlite_schema
              WHERE name NOT LIKE 'search#_%' ESCAPE '#' ORDER BY 1, 2"""
    pragmas = [db.execute(f"PRAGMA {p}").fetchone()[0] for p in ("user_version", "application_id")]
    return [*pragmas, *map(tuple, db.execute(sql))]


def raw_bytes(path: Path) -> bytes:
    """All bytes of a database and of what lies beside it."""
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


def names_in(folder: Path) -> set[str]:
    """What lies in a folder, but for locks, which are empty, and the claim of a database."""
    return {p.name for p in folder.iterdir() if not p.name.endswith(("-lock", "-write", "-of"))}


def files(folder: Path) -> dict[str, bytes]:
    names = (name for name in names_in(folder) if (folder / name).is_file())
    return {name: (folder / name).read_bytes() for name in names}
