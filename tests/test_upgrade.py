"""A newer program and the database of an older one: nothing is lost, a backup is kept, the next
start completes a migration that was cut off, and there is a way back.

The database of each release is kept in `tests/schemas/`. Elsewhere the program of today plays the
older one. With one migration more it plays the newer one."""

import itertools
import json
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commentd import COMMANDS, MIGRATIONS, Config, __version__, make_app
from support.client import COMMENT, PAGE, Visitor
from support.commands import run_here
from support.database import assert_whole, files, names_in, schema, tables_in
from support.faults import in_a_fork, killed_at, little_room
from support.inside import REFUSALS
from support.released import (
    Released,
    differences,
    empty_tables,
    keep,
    put_database,
    releases,
    served,
)
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
        tables = tables_in(db)
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


# The database of each release

SCHEMA_CHANGED = """
The database that this program makes is not that of tests/schemas/{}.sql. If that version is
released, leave its migrations as they are, add a new one at the end of MIGRATIONS, and raise
__version__. Then run `python tests/release.py`: it keeps the new schema, so that the tests of all
later versions bring it up to date."""


def test_the_newest_kept_schema_is_that_of_this_program(
    config: Config, fake_world: FakeWorld, tmp_path: Path
) -> None:
    newest = releases()[-1]
    kept = tmp_path / "kept.db"
    put_database(newest.sql, kept)
    start(config, fake_world)
    same = schema_of(kept) == schema_of(Path(config.database_path))
    assert same, SCHEMA_CHANGED.format(newest.version)


@pytest.mark.parametrize("release", releases(), ids=str)
@pytest.mark.parametrize("is_newer", [False, True], ids=["this program", "a newer one"])
def test_readers_owners_and_exports_see_after_an_upgrade_what_they_saw_before(
    release: Released, is_newer: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if is_newer:
        request.getfixturevalue("newer_program")
    with served(release, tmp_path) as service:
        assert differences(release.kept["seen"], service.seen()) == []
        assert differences(release.kept["exports"], service.exported()) == []
    assert_whole(str(tmp_path / "commentd.db"))
    assert version_of(tmp_path / "commentd.db") == len(MIGRATIONS)


@pytest.mark.parametrize("release", releases(), ids=str)
def test_every_table_of_a_kept_database_has_rows(release: Released, tmp_path: Path) -> None:
    put_database(release.sql, tmp_path / "kept.db")
    empty = empty_tables(tmp_path / "kept.db")
    assert empty == [], f"tests/support/released.py: `fill` lets nobody write into {empty}"
    assert_whole(str(tmp_path / "kept.db"))


def test_the_command_for_releases_keeps_a_database_and_what_is_seen_of_it(tmp_path: Path) -> None:
    keep(tmp_path / "schemas")
    [kept] = releases(tmp_path / "schemas")
    assert kept.version == __version__
    (tmp_path / "home").mkdir()
    with served(kept, tmp_path / "home") as service:
        assert differences(kept.kept["seen"], service.seen()) == []
    put_database(kept.sql, tmp_path / "kept.db")
    assert empty_tables(tmp_path / "kept.db") == []


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


def half_done(end: Callable[[], object]) -> Callable[[sqlite3.Connection], None]:
    """A migration that comes to an end when it has changed half of what it should."""

    def migration(db: sqlite3.Connection) -> None:
        db.execute("ALTER TABLE comment ADD COLUMN mood TEXT NOT NULL DEFAULT ''")
        db.execute("UPDATE comment SET mood = hex(randomblob(100)) WHERE id % 2 = 0")
        end()

    return migration


def fail() -> None:
    raise ValueError("of the migration")


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("end", [fail, kill])
@pytest.mark.parametrize("release", releases(), ids=str)
def test_an_upgrade_that_ends_half_way_leaves_the_old_file(
    release: Released, end: Callable[[], object], tmp_path: Path, config: Config
) -> None:
    path = Path(config.database_path)
    put_database(release.sql, path)
    before, was = rows_of(path), schema_of(path)

    def upgrade() -> None:
        MIGRATIONS.append(half_done(end))
        with pytest.raises(ValueError, match="of the migration"):
            start(config, FakeWorld())

    in_a_fork(upgrade)
    assert (rows_of(path), schema_of(path)) == (before, was)
    # A process that was killed deletes nothing, so its backup stays.
    copies = list(Path(config.backup_folder).glob("*.db"))
    assert len(copies) == (1 if end is kill else 0)
    for copy in copies:
        assert (rows_of(copy), schema_of(copy)) == (before, was)
    with served(release, tmp_path / "home", path) as service:  # the older program goes on
        assert differences(release.kept["seen"], service.seen()) == []


def test_an_upgrade_on_a_full_disk_leaves_the_old_file(
    config: Config, fake_world: FakeWorld, request: pytest.FixtureRequest
) -> None:
    path = Path(config.database_path)
    put_database(releases()[-1].sql, path)
    before, was = rows_of(path), schema_of(path)
    # There is room for the backup. What the migration writes first, beside the file, is larger.
    rows = "SELECT first.id, hex(zeroblob(999)) FROM comment AS first, comment, comment AS third"
    MIGRATIONS.append(f"{NEXT}INSERT INTO mood {rows};")
    request.addfinalizer(MIGRATIONS.pop)
    with (
        little_room(path.stat().st_size + 4096),
        pytest.raises(REFUSALS, match=r"can.t be written: (database or disk is full|disk I/O)"),
    ):
        start(config, fake_world)
    assert (rows_of(path), schema_of(path)) == (before, was)
    assert list(Path(config.backup_folder).glob("*.db")) == []
    start(config, fake_world)  # there is room again
    assert version_of(path) == OLD + 1
    assert kept(path, before) == before


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
    takes = {
        "admin": "ann@example.com",
        "moderator": "ann@example.com",
        "import": "all.json",
        "render": ".",
        "move": "/a/ /b/",
    }
    whole = files(tmp_path)
    (copy,) = (tmp_path / "backups").glob(f"*-schema{OLD}.db")
    refusal = f"{old_database} was made by a newer commentd: install that one again"
    hint = f"{refusal}, or go back to the moment before its update: commentd restore "
    for name in COMMANDS:
        if name not in ("add", "demo", "example", "help", "restore", "update"):
            code, text, errors = run_here(tmp_path, name, *takes.get(name, "").split())
            assert code == 1, name
            assert f"{hint}backups/{copy.name}" in text + errors, name
            assert files(tmp_path) == whole, name
    code, text, errors = run_here(tmp_path, LC_ALL="zh_CN.UTF-8")
    assert "请装回那个版本，或退回它升级之前：commentd restore " in errors
    code, text, errors = run_here(tmp_path, *errors.strip().rpartition("commentd ")[2].split())
    assert (code, errors) == (0, "")
    assert rows_of(tmp_path / text.split()[-1]) == newest
    assert schema_of(old_database) == was
    now = rows_of(old_database)
    assert now["comment"] == before["comment"]
    for account, earlier in zip(now["account"], before["account"], strict=True):
        assert account["version"] > earlier["version"]
    start(config, fake_world)


def test_a_newer_database_without_a_backup_is_for_the_newer_program_alone(
    old_database: Path, tmp_path: Path, newer_program: None
) -> None:
    with closing(sqlite3.connect(old_database)) as db:
        db.execute(f"PRAGMA user_version = {OLD + 2}")
    for name in (
        f"commentd-20261120-031500-schema{OLD + 2}.db",
        "other-20261120-031500-schema1.db",
    ):
        (tmp_path / "backups").mkdir(exist_ok=True)
        (tmp_path / "backups" / name).touch()  # one that is too new as well, and another blog's
    error = f"commentd: {old_database} was made by a newer commentd: install that one again\n"
    assert run_here(tmp_path)[2] == error
    for version in (OLD, OLD + 1):
        backup = tmp_path / "backups" / f"commentd-2026112{version}-031500-schema{version}.db"
        backup.touch()
        assert run_here(tmp_path)[2].endswith(f"commentd restore backups/{backup.name}\n")
