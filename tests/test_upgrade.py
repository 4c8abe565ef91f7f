"""A newer program and the database of an older one: nothing is lost, a backup is kept, the next
start completes a migration that was cut off, and there is a way back.

The program of today plays the older one. With one migration more it plays the newer one."""

import itertools
import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commentd import COMMANDS, MIGRATIONS, Config, make_app
from support.client import COMMENT, PAGE, Visitor
from support.commands import run_here
from support.database import assert_whole, files, names_in, schema
from support.faults import killed_at
from support.inside import REFUSALS
from support.service import services
from support.world import FakeWorld

pytestmark = pytest.mark.slow

OLD = len(MIGRATIONS)
NEXT = """
CREATE TABLE mood (
    comment_id INTEGER NOT NULL REFERENCES comment (id),
    mood       TEXT NOT NULL
) STRICT;
ALTER TABLE comment ADD COLUMN mood TEXT NOT NULL DEFAULT '';
INSERT INTO mood SELECT id, 'calm' FROM comment;
"""
NEWER = f"import commentd, sys; commentd.MIGRATIONS.append({NEXT!r}); sys.exit(commentd.main())"
EXPORT = {
    "type": "waline",
    "version": 1,
    "data": {"Comment": [{"objectId": 1, "nick": "Ann", "comment": "Hi.", "url": "/a/"}]},
}
COPY = rf"commentd-\d{{8}}-\d{{6}}-schema{OLD}\.db"

Rows = dict[str, list[dict[str, Any]]]


def rows_of(path: Path) -> Rows:
    """Every row of every table, by the names of its columns."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {t: [dict(row) for row in db.execute(f"SELECT * FROM {t}")] for t in tables}


def kept(path: Path, before: Rows) -> Rows:
    """What a file holds now of the tables and columns that were there before."""
    now = rows_of(path)
    return {
        table: [{name: row[name] for name in rows[0]} for row in now[table]] if rows else []
        for table, rows in before.items()
    }


def schema_of(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return schema(db)


def version_of(path: Path) -> int:
    version: int = schema_of(path)[0]
    return version


@pytest.fixture
def old_database(config: Config, fake_world: FakeWorld) -> Path:
    """A database that the older program filled and closed."""
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        web = Visitor(app)
        web.register()
        app.deliver()
        web.verify(fake_world.code())
        first = web.say("first")["comment"]
        web.authorization = ("Bearer", web.login()["token"])
        reply = web.say("reply; it's -- one", parent_id=first["id"])["comment"]
        for number in (first["id"], reply["id"]):
            web.post_json("/comment/like", {"id": number})
        web.post_json("/page/like", {"page_url": PAGE})
        web.register("bob@example.com")
    return Path(config.database_path)


@pytest.fixture
def newer_program() -> Iterator[None]:
    """This process plays the newer program."""
    MIGRATIONS.append(NEXT)
    yield
    MIGRATIONS.remove(NEXT)


def start(config: Config, fake_world: FakeWorld, path: Path | None = None) -> None:
    """A start and a stop."""
    if path:
        folder = str(path.with_name("backups"))
        config = replace(config, database_path=str(path), backup_folder=folder)
    make_app(config, fake_world.world, rounds=1).close()


# The migration


def test_no_data_is_lost_in_an_upgrade(
    old_database: Path, config: Config, fake_world: FakeWorld, newer_program: None
) -> None:
    before, was = rows_of(old_database), schema_of(old_database)
    start(config, fake_world)
    (copy,) = Path(config.backup_folder).iterdir()
    assert re.fullmatch(COPY, copy.name)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert (rows_of(copy), schema_of(copy)) == (before, was)
    assert kept(old_database, before) == before
    assert {row["comment_id"] for row in rows_of(old_database)["mood"]} == {
        row["id"] for row in before["comment"]
    }
    new = old_database.with_name("new.db")
    start(config, fake_world, new)
    assert schema_of(old_database) == schema_of(new)
    start(config, fake_world)
    assert names_in(copy.parent) == {copy.name}
    for each in (old_database, copy):
        assert_whole(str(each))


# Cut off


def test_the_next_start_completes_an_upgrade_that_was_cut_off(
    old_database: Path, config: Config, fake_world: FakeWorld, newer_program: None, tmp_path: Path
) -> None:
    before, left = rows_of(old_database), set[int]()
    for line in itertools.count(0, 37):
        path = tmp_path / str(line) / "commentd.db"
        path.parent.mkdir()
        shutil.copy(old_database, path)
        killed = killed_at(line, lambda: start(config, fake_world, path))  # noqa: B023
        left.add(version_of(path))
        copies = [p for p in path.with_name("backups").glob("*.db") if not p.name.startswith(".")]
        if version_of(path) == OLD:
            assert rows_of(path) == before
        else:
            assert copies
        for copy in copies:
            assert (rows_of(copy), version_of(copy)) == (before, OLD)
        start(config, fake_world, path)
        assert version_of(path) == OLD + 1
        assert kept(path, before) == before
        assert_whole(str(path))
        assert not list(path.with_name("backups").glob("*.part"))
        shutil.rmtree(path.parent)
        if not killed:
            break
    assert left == {OLD, OLD + 1}


def test_upgrades_that_fail_again_and_again_do_not_fill_the_disk_with_backups(
    old_database: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Whoever keeps the service running starts it again every few seconds."""
    was = schema_of(old_database)
    MIGRATIONS.append("CREATE TABLE comment (id)")
    request.addfinalizer(MIGRATIONS.pop)
    for _ in range(3):
        code, _, errors = run_here(tmp_path)
        assert code == 1
        assert errors.endswith("can't be written: table comment already exists\n")
    assert names_in(tmp_path / "backups") == set()
    assert schema_of(old_database) == was
    old_database.unlink()  # nor does a new database that can't be made
    assert (run_here(tmp_path)[0], names_in(tmp_path / "backups")) == (1, set())


def test_a_migration_is_not_made_without_a_backup(
    old_database: Path, config: Config, fake_world: FakeWorld, newer_program: None, tmp_path: Path
) -> None:
    before, was = rows_of(old_database), schema_of(old_database)
    (tmp_path / "a file").touch()
    for folder, words in (
        (f"{tmp_path}/a file", "can't be made: File exists"),
        ("/sys", "written"),
    ):
        with pytest.raises(REFUSALS, match=words):
            start(replace(config, backup_folder=folder), fake_world)
        assert (rows_of(old_database), schema_of(old_database)) == (before, was)
    start(replace(config, backup_folder=f"{tmp_path}/copies", backup_every=0), fake_world)
    assert len(names_in(tmp_path / "copies")) == 1


def test_commands_leave_a_migration_to_the_service(
    old_database: Path, tmp_path: Path, newer_program: None
) -> None:
    before, was = rows_of(old_database), schema_of(old_database)
    (tmp_path / "all.json").write_text(json.dumps(EXPORT))
    for words in ("check", "recount", "admin bob@example.com", "import all.json"):
        code, text, errors = run_here(tmp_path, *words.split())
        error = "commentd.db is of an older commentd: start the service once\n"
        assert (code, error in text + errors) == (1, True), words
        assert (rows_of(old_database), schema_of(old_database)) == (before, was)
    assert run_here(tmp_path, "backup", "copy.db")[0] == 0  # which may always be made
    assert (rows_of(tmp_path / "copy.db"), schema_of(tmp_path / "copy.db")) == (before, was)


# And back


def test_the_older_program_refuses_a_newer_database_and_restores_the_backup(
    old_database: Path, config: Config, fake_world: FakeWorld, tmp_path: Path
) -> None:
    before, was = rows_of(old_database), schema_of(old_database)
    with services(tmp_path) as begin:
        service = begin(program=NEWER)
        assert service.ask("POST", "/comments", body=COMMENT).status == 200
        assert service.stop() == 0
    newest = rows_of(old_database)
    (tmp_path / "all.json").write_text(json.dumps(EXPORT))
    takes = {"admin": "ann@example.com", "import": "all.json", "render": ".", "move": "/a/ /b/"}
    whole = files(tmp_path)
    for name in COMMANDS:
        if name not in ("example", "help", "restore"):
            code, text, errors = run_here(tmp_path, name, *takes.get(name, "").split())
            error = "commentd.db was made by a newer commentd: "
            assert (code, error in text + errors) == (1, True), name
            assert files(tmp_path) == whole, name
    (copy,) = (tmp_path / "backups").glob(f"*-schema{OLD}.db")
    code, text, errors = run_here(tmp_path, "restore", str(copy))
    assert (code, errors) == (0, "")
    assert rows_of(tmp_path / text.split()[-1]) == newest
    assert schema_of(old_database) == was
    now = rows_of(old_database)
    assert now["comment"] == before["comment"]
    for account, earlier in zip(now["account"], before["account"], strict=True):
        assert account["version"] > earlier["version"]
    start(config, fake_world)
