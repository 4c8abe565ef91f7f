"""Databases of every older version, under this program: it keeps them as they were, brings them up
to date, loses nothing; whatever cuts it off, the next start goes on; and there is a way back.

`schemas/N.sql` is a database of version N, as `iterdump()` of sqlite3 writes it, below its two
pragmas. It stands still at `NOW`: what is due then goes out, nothing else has had its time."""

import itertools
import json
import os
import re
import shutil
import sqlite3
import traceback
import urllib.parse
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import START, Outside, Visitor, assert_whole
from test_backup import files, found, little_room
from test_commands import run
from test_server import refused, services, until
from test_storage import schema

import commentd
from commentd import (
    COMMANDS,
    DAY,
    HOUR,
    MIGRATIONS,
    Config,
    Fault,
    Store,
    back_up,
    beijing_time,
    connect,
    make_app,
    migrate,
)

pytestmark = pytest.mark.slow

PASSWORD = "correct horse"  # of the accounts in them
ME = "d53a81b4ae51f6f35790fe4caac91206"  # who likes from the address of a test
NOW = START + 300  # an older program stopped, and this one starts
SCHEMAS = {int(path.stem): path for path in (Path(__file__).parent / "schemas").glob("*.sql")}
OLDER = [version for version in sorted(SCHEMAS) if version < len(MIGRATIONS)]
LATEST = len(MIGRATIONS)
# The program, at that time.
THEN = f"""
import commentd, functools, sys
commentd.World = functools.partial(commentd.World, now=lambda: {NOW})
sys.exit(commentd.main())
"""

Rows = dict[str, list[dict[str, Any]]]


def make(path: Path, version: int, killed: bool = False) -> Path:
    """A database as the program of that version left it when it was stopped, or killed."""
    home = path.with_name("home")
    home.mkdir()
    with closing(connect(str(home / path.name))) as db:
        script = SCHEMAS[version].read_text("utf-8")
        db.executescript(f"PRAGMA foreign_keys = OFF; {script}")
        if killed:
            shutil.copytree(home, path.parent, dirs_exist_ok=True)
    if not killed:
        shutil.copytree(home, path.parent, dirs_exist_ok=True)
    shutil.rmtree(home)
    return path


@pytest.fixture(params=OLDER)
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def old(version: int, config: Config) -> Path:
    return make(Path(config.database_path), version)


@pytest.fixture
def outside() -> Outside:
    outside = Outside()
    outside.time = NOW
    return outside


def rows_of(path: Path) -> Rows:
    """Every row of every table, by the names of its columns."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {t: [dict(row) for row in db.execute(f"SELECT * FROM {t}")] for t in tables}


# What is kept as notifications now: see below how that is carried over.
MOVED = {"owner_due", "author_due", "follower_due", "about"}
OUTDATED = "owner 9,0 16,0 "  # an email that tells of what was hidden while it waited


def unmoved(rows: Rows) -> Rows:
    """What every migration leaves as it was."""
    left = {
        table: [{n: v for n, v in row.items() if n not in MOVED} for row in found]
        for table, found in rows.items()
    }
    left["outbox"] = [
        {n: v for n, v in row.items() if n not in MOVED}
        for row in rows["outbox"]
        if row["recipient"] != "webhook" and row.get("about") != OUTDATED
    ]
    return left


def still(path: Path, before: Rows) -> Rows:
    """What a file holds now of the tables and columns that were there before."""
    now, before = unmoved(rows_of(path)), unmoved(before)
    names = [row["name"] for row in before.get("sqlite_sequence", [])]
    now["sqlite_sequence"] = [r for r in now["sqlite_sequence"] if r["name"] in names]
    return {t: [{name: row[name] for name in before[t][0]} for row in now[t]] for t in before}


def schema_of(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return schema(db)


def update(path: Path, now: int = NOW) -> None:
    """What a start does with the database before anything else."""
    Store(path, lambda label: back_up(path, path.with_name("copies"), now, label)).close()


# The databases themselves


def test_there_is_a_database_of_every_older_version() -> None:
    assert sorted(SCHEMAS) in ([*range(1, LATEST)], [*range(1, LATEST + 1)])


@pytest.mark.parametrize("of", sorted(SCHEMAS))
def test_a_released_schema_was_never_edited(tmp_path: Path, of: int) -> None:
    path = make(tmp_path / "commentd.db", of)
    with closing(connect(str(tmp_path / "new.db"))) as db:
        migrate(db, MIGRATIONS[:of])
    assert schema_of(path) == schema_of(tmp_path / "new.db")
    assert all(rows_of(path).values())  # else nothing would be shown by what follows
    assert_whole(str(path))


# Brought up to date


def test_nothing_is_lost_or_altered_and_a_copy_is_unmoved(old: Path, version: int) -> None:
    before, was = rows_of(old), schema_of(old)
    update(old)
    (copy,) = old.with_name("copies").iterdir()
    assert copy.name == f"commentd-20261118-111140-schema{version}.db"
    assert copy.stat().st_mode & 0o777 == 0o600
    assert (rows_of(copy), schema_of(copy)) == (before, was)
    assert still(old, before) == unmoved(before)
    new = old.with_name("new.db")
    Store(new).close()
    assert schema_of(old) == schema_of(new)
    now = old.read_bytes()
    update(old)
    assert (old.read_bytes(), found(copy.parent)) == (now, {copy.name})
    for each in (old, copy):
        assert_whole(str(each))


def test_what_a_killed_service_wrote_last_is_kept_too(config: Config, version: int) -> None:
    old = Path(config.database_path)
    before = rows_of(make(old.with_name("stopped.db"), version))
    make(old, version, killed=True)
    assert old.with_name(f"{old.name}-wal").stat().st_size > 0
    update(old)
    (copy,) = old.with_name("copies").iterdir()
    assert still(old, before) == unmoved(before)
    assert rows_of(copy) == before


def test_what_older_versions_did_not_know_is_told_from_what_they_did(
    old: Path, version: int
) -> None:
    before = rows_of(old)
    update(old)
    now = rows_of(old)
    if version < 2:  # whose a like is, is forgotten in time, but for those of accounts
        for like in (*now["comment_liker"], *now["page_liker"]):
            assert (like["liked_at"] is None) == like["visitor"].startswith("user ")
    if version < 4:  # a page is as old as its first comment
        for page in now["page"]:
            times = [c["created_at"] for c in now["comment"] if c["page_id"] == page["id"]]
            assert page["opened_at"] == min(times, default=page["seen_at"])
    plain = {"masked": 0, "edited_at": None, "pinned": 0, "held": ""}
    for comment, earlier in zip(now["comment"], before["comment"], strict=True):
        assert {name: comment[name] for name in plain if name not in earlier}.items() <= (
            plain.items()
        )


def test_the_program_starts_serves_and_finds_no_fault(
    old: Path, version: int, tmp_path: Path
) -> None:
    before = rows_of(old)
    due = [letter for letter in before["outbox"] if (letter["due_at"] or NOW + 1) <= NOW]
    assert due
    with services(tmp_path) as start:
        service = start(program=THEN)
        copy = tmp_path / "backups" / f"commentd-20261118-111140-schema{version}.db"
        assert f"as it was, it is kept in {copy}\n" in service.said
        code, text, errors = run(tmp_path, "check")
        assert (code, errors) == (0, ""), text
        assert run(tmp_path, "recount") == (0, "every counter was right\n", "")
        for page in before["page"]:
            query = urllib.parse.urlencode({"url": page["page_url"]})
            assert service.ask("GET", f"/comments?{query}").json["total"] == page["total"]
        for letter in due:
            until(lambda: f"To: {letter['recipient']}\n" in service.said)  # noqa: B023
        assert service.stop() == 0
    left = [letter for letter in before["outbox"] if letter not in due]
    before = unmoved({**before, "outbox": left})
    for page in before["page"]:
        page["views"], page["seen_at"] = page["views"] + 1, NOW
    for day in before.get("day", []):
        if day["day"] == (NOW + 8 * HOUR) // DAY:
            day["views"] += len(before["page"])
    now = still(old, before)
    lost = {table: [row for row in before[table] if row not in now[table]] for table in before}
    assert lost == {table: [] for table in before}


def seen(comment: dict[str, Any]) -> tuple[Any, ...]:
    """A comment as a reader knows it; of one that is a tombstone, that it is one."""
    if comment.get("deleted") or comment.get("status", "visible") != "visible":
        return (comment["id"], comment["parent_id"], None)
    edited = comment.get("edited_at") or comment.get("edited")
    names = ("id", "parent_id", "nickname", "website", "content", "html", "likes", "created_at")
    pinned = bool(comment.get("pinned"))
    return (*(comment[name] for name in names), bool(edited), pinned)


def test_every_thread_is_read_as_before(old: Path, config: Config, outside: Outside) -> None:
    before = rows_of(old)
    with closing(make_app(config, outside.world, rounds=1)) as app:
        reader = Visitor(app)
        for page in before["page"]:
            # By the address that was sent, which is not the key, and may be written otherwise.
            said = reader.listing(url=page["page_url"], view="threads", sort="oldest", limit=100)
            sums = {name: said[name] for name in ("total", "views", "page_likes")}
            assert sums == {name: page[name] for name in sums} | {"views": page["views"] + 1}
            assert said["settings"]["closed"] == bool(page.get("closed"))
            shown = [c for c in before["comment"] if c["page_id"] == page["id"] and c["shown"]]
            for comment in shown:
                comment["created_at"] = beijing_time(comment["created_at"])
            found = [c for root in said["comments"] for c in (root, *root["replies"])]
            assert sorted(map(seen, found)) == sorted(map(seen, shown))
            assert not any(c["content"] + c["nickname"] for c in found if c.get("deleted"))
        assert {c["status"] for c in before["comment"] if c["shown"]} == {"visible", "deleted"}
    assert_whole(str(old))


def test_life_goes_on_in_it(old: Path, config: Config, outside: Outside) -> None:
    """Passwords, codes and likes of before are what they were, and what waited can be approved."""
    before = rows_of(old)
    config = replace(config, limits_enabled=False)
    with closing(make_app(config, outside.world, rounds=1)) as app:
        web = Visitor(app)
        for page in before["page"]:
            status = 403 if page.get("closed") else 200
            web.say(page_url=page["page_url"], nickname="Eve", status=status)
        for comment in before["comment"]:
            if comment["status"] == "visible":
                like = {"comment_id": comment["id"], "visitor": ME}
                again = any(like.items() <= row.items() for row in before["comment_liker"])
                said = web.post_json("/comment/like", {"id": comment["id"]}).json
                assert said["likes"] == comment["likes"] + (not again)
        waits = before["registration"][0]
        web.verify("123456", waits["email"], request_id=waits["request_id"])
        assert web.login(waits["email"], password=PASSWORD)["nickname"] == waits["nickname"]
        web.authorization = ("Bearer", web.login("ann@example.com", password=PASSWORD)["token"])
        waiting = [c["id"] for c in before["comment"] if c["status"] == "waiting"]
        for number in waiting:
            web.post_json(f"/comments/{number}/moderate", {"status": "visible"})
    now = {c["id"]: c["status"] for c in rows_of(old)["comment"]}
    assert {now[number] for number in waiting} == {"visible"}
    (last,) = (row["seq"] for row in before["sqlite_sequence"] if row["name"] == "comment")
    assert min(set(now) - {c["id"] for c in before["comment"]}) == last + 1  # none is given again
    assert_whole(str(old))


def test_who_was_to_be_told_is_told(old: Path, config: Config, outside: Outside) -> None:
    before = rows_of(old)
    with closing(make_app(config, outside.world, rounds=1)) as app:
        outside.time = NOW + HOUR
        app.deliver()
    letters = [(letter.recipient, outside.text(n)) for n, letter in enumerate(outside.letters)]
    later = [letter for letter in unmoved(before)["outbox"] if (letter["due_at"] or 0) > NOW]
    assert later
    assert {letter["recipient"] for letter in later} <= {recipient for recipient, _ in letters}
    now = rows_of(old)
    assert not any(letter["due_at"] for letter in unmoved(now)["outbox"])
    hidden = {c["id"] for c in now["comment"] if c["status"] != "visible"}
    left = [n for n in now["notification"] if n["outbox_id"] is None]
    assert {n["comment_id"] for n in left} <= hidden
    for was in before["comment"]:
        for due, states in DUE_STATES.items():
            if was["status"] in states and was.get(due):
                assert any(was["content"] in text for _, text in letters)


DUE_STATES = {"owner_due": ("visible", "waiting"), "author_due": ("visible",)}


def test_news_that_wait_are_carried_over(config: Config) -> None:
    """Those of comments, and of emails that wait; a webhook says what it is about."""
    path = make(Path(config.database_path), 6)
    update(path)
    now = rows_of(path)
    names = ("comment_id", "kind", "recipient", "outbox_id")
    assert sorted(tuple(map(str, (n[name] for name in names))) for n in now["notification"]) == [
        ("1", "owner", "nobody@example.com", "2"),
        ("12", "follower", "", "None"),
        ("16", "owner", "ann@example.com", "None"),
        ("21", "owner", "", "None"),
        ("4", "follower", "bob@example.com", "8"),
        ("5", "author", "", "None"),
        ("5", "owner", "", "None"),
        ("6", "author", "", "None"),
        ("6", "author", "guest@example.com", "3"),
        ("6", "author", "guest@example.com", "9"),
        ("6", "follower", "", "None"),
        ("6", "follower", "bob@example.com", "8"),
        ("9", "owner", "ann@example.com", "None"),
    ]
    asks = {row["id"]: row["subscriber"] for row in now["outbox"] if row["subscriber"]}
    assert asks == {9: "6303d09f83ce20816e345a33d0e3fa39"}
    names = ("id", "comment_id", "event", "message", "created_at")
    hooks = [row for row in now["outbox"] if row["recipient"] == "webhook"]
    assert [tuple(row[name] for name in names) for row in hooks] == [
        (6, 2, "reported", "rude; it's", 1794999900),
        (7, 4, "created", "", 1797505600),
    ]


def test_two_emails_about_one_hidden_comment_are_carried_over_once(config: Config) -> None:
    path = make(Path(config.database_path), 6)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE comment SET status = 'spam' WHERE id = 6")
    update(path)
    pending = [
        (row["kind"], row["recipient"])
        for row in rows_of(path)["notification"]
        if row["comment_id"] == 6 and row["outbox_id"] is None
    ]
    assert ("author", "guest@example.com") in pending
    assert len(pending) == len({*pending})


# Cut off


class Counted:
    """A connection whose n-th statement or commit, of all of a start, ends it."""

    def __init__(self, db: sqlite3.Connection, count: Callable[[], None]) -> None:
        self.db, self.count = db, count

    def execute(self, *words: Any) -> sqlite3.Cursor:
        self.count()
        return self.db.execute(*words)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.db, name)

    def __enter__(self) -> sqlite3.Connection:
        return self.db.__enter__()

    def __exit__(self, *how: Any) -> bool:
        if how[0] is None:
            self.count()
        return self.db.__exit__(*how)


def update_until(path: Path, last: int, end: Callable[[], object]) -> None:
    """Bring it up to date, but for what happens before the n-th statement."""
    numbers = itertools.count()

    def count() -> None:
        if next(numbers) == last:
            end()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(commentd, "connect", lambda name: Counted(connect(name), count))
        update(path)


def is_refused(work: Callable[[], object], words: str) -> bool:
    """Whether it is, in a sentence with these words."""
    try:
        work()
    except Fault as fault:
        said = str(fault)
    else:
        return False
    assert words in said
    assert "\n" not in said
    return True


def fails(path: Path, last: int) -> bool:
    def fail() -> None:
        raise sqlite3.OperationalError("disk I/O error")

    return is_refused(lambda: update_until(path, last, fail), "disk I/O error")


def is_killed(path: Path, last: int) -> bool:
    if child := os.fork():
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)
    try:
        update_until(path, last, lambda: os.kill(os.getpid(), 9))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def has_no_room(path: Path, last: int) -> bool:
    """No file may grow beyond so much: the copy is the first that can't."""
    with little_room(6000 * last):
        return is_refused(lambda: update(path), "")


def is_full(path: Path, last: int) -> bool:
    """The database may grow by so many pages."""

    def small(name: str) -> sqlite3.Connection:
        db = connect(name)
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages + last}")
        return db

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(commentd, "connect", small)
        return is_refused(lambda: update(path), f"{path} can't be written: database or disk is")


def assert_usable(path: Path, version: int, before: Rows) -> int:
    """What was cut off left the old database, or a step on the way and a copy of the old one, and
    the next start comes to the end. The version that was left."""
    was = schema_of(path)[0]
    assert version <= was <= LATEST
    assert was == LATEST or rows_of(path) == before
    assert was == version or still(path, before) == unmoved(before)
    copies = list(path.with_name("copies").glob("[!.]*"))
    assert copies or was == version
    for copy in copies:
        assert rows_of(copy) == before
        assert schema_of(copy)[0] == version
    update(path)
    assert schema_of(path)[0] == LATEST
    assert still(path, before) == unmoved(before)
    assert_whole(str(path))
    assert not list(path.with_name("copies").glob("*.part"))
    return int(was)


@pytest.mark.parametrize("cut_off", [fails, is_killed, has_no_room, is_full])
def test_what_was_cut_off_anywhere_is_usable_and_the_next_start_goes_on(
    version: int, tmp_path: Path, cut_off: Callable[[Path, int], bool]
) -> None:
    old = make(tmp_path / "commentd.db", version)
    before, left = rows_of(old), set[int]()
    for last in itertools.count():
        path = tmp_path / str(last) / "commentd.db"
        path.parent.mkdir()
        shutil.copy(old, path)
        ended = cut_off(path, last)
        left.add(assert_usable(path, version, before))
        shutil.rmtree(path.parent)
        if not ended:
            break
    assert (last > 0, LATEST in left) == (True, True)


def test_starts_that_fail_again_and_again_do_not_fill_the_disk_with_copies(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever keeps the service running starts it anew each few seconds."""

    def fail(db: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(commentd, "migrate", fail)
    for second in range(5):
        with pytest.raises(Fault, match="disk I/O error"):
            update(old, NOW + second)
    assert len(found(old.with_name("copies"))) <= 1


def test_without_a_copy_there_is_no_migration(old: Path, tmp_path: Path) -> None:
    before, was = rows_of(old), schema_of(old)
    with services(tmp_path) as start:
        for folder, words in (
            ("commentd.ini", "commentd.ini can't be made: File exists"),
            ("/sys", "could not be written"),
        ):
            assert words in refused(start(waits=False, backup={"folder": folder}))
            assert (rows_of(old), schema_of(old)) == (before, was)
        service = start(backup={"folder": "copies", "every": "0"})
        assert service.ask("GET", "/health").status == 200
    assert len(found(tmp_path / "copies")) == 1


def test_commands_leave_a_migration_to_the_service(old: Path, tmp_path: Path) -> None:
    before, was = rows_of(old), schema_of(old)
    for words in ("check", "recount", "admin bob@example.com"):
        code, text, errors = run(tmp_path, *words.split())
        assert code == 1
        assert "commentd.db is of an older commentd: start the service once\n" in text + errors
        assert (rows_of(old), schema_of(old)) == (before, was)
    code, text, errors = run(tmp_path, "backup", "copy.db")  # which may always be made
    assert (code, errors) == (0, "")
    assert (rows_of(tmp_path / "copy.db"), schema_of(tmp_path / "copy.db")) == (before, was)


# And back


def test_the_copy_that_was_kept_is_put_back_by_one_command(
    old: Path, version: int, tmp_path: Path, config: Config, outside: Outside
) -> None:
    before, was = rows_of(old), schema_of(old)
    with closing(make_app(config, outside.world, rounds=1)) as app:
        Visitor(app).say("written since", nickname="Eve")
    (copy,) = Path(config.backup_folder).iterdir()
    newest, whole = rows_of(old), copy.read_bytes()
    code, text, errors = run(tmp_path, "restore", str(copy))
    assert (code, errors) == (0, "")
    kept = re.fullmatch(
        rf"commentd\.db is what {copy} was; all logins have ended\n"
        r"what it replaces is kept in (commentd\.db\.\d{8}-\d{6})\n",
        text,
    )
    assert kept
    assert rows_of(tmp_path / kept[1]) == newest
    assert copy.read_bytes() == whole
    assert schema_of(old) == was
    now = rows_of(old)
    for account, earlier in zip(now["account"], before["account"], strict=True):
        assert account["version"] > earlier["version"]
        account["version"] = earlier["version"]
    assert not now.pop("admin_link", [])  # each is good for once
    before.pop("admin_link", [])
    numbers = [{row["name"]: row["seq"] for row in r.pop("sqlite_sequence")} for r in (before, now)]
    assert numbers[1].pop("account") > numbers[0].pop("account")  # none is given again
    assert numbers[1] == numbers[0]
    assert now == before
    update(old)  # and forth again
    again = still(old, before)
    again["account"] = before["account"]
    assert again == unmoved(before)
    assert_whole(str(old))


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A database that a program to come brought up to date."""
    path = make(tmp_path / "commentd.db", OLDER[-1])
    update(path)
    with closing(connect(str(path))) as db:
        migrate(db, [*MIGRATIONS, "CREATE TABLE of_tomorrow (x TEXT) STRICT"])
    return path


def test_a_newer_database_is_refused_by_every_command(newer: Path, tmp_path: Path) -> None:
    row = {"objectId": 1, "nick": "Ann", "comment": "Hi.", "url": "/a/"}
    whole = {"type": "waline", "version": 1, "data": {"Comment": [row]}}
    (tmp_path / "all.json").write_text(json.dumps(whole))
    takes = {"EMAIL": "ann@example.com", "FILE": "all.json", "OLD NEW": "/a/ /b/"}
    before = files(tmp_path)
    for name, (_, word, _) in COMMANDS.items():
        if name in ("example", "restore"):
            continue
        code, text, errors = run(tmp_path, name, *takes.get(word, "").split())
        assert code == 1, name
        assert "commentd.db was made by a newer commentd: " in text + errors, name
        assert files(tmp_path) == before, name


def test_whoever_goes_back_to_an_older_program_restores_with_that(
    newer: Path, tmp_path: Path, config: Config, outside: Outside
) -> None:
    """To it the database that is there is one of a newer program; this one plays the older."""
    copy = make(tmp_path / "copy.db", OLDER[-1])
    update(copy)
    before, replaced = rows_of(copy), rows_of(newer)
    code, text, errors = run(tmp_path, "restore", "copy.db")
    assert (code, errors) == (0, "")
    (kept,) = re.findall(r"what it replaces is kept in (.*)\n", text)
    assert rows_of(tmp_path / kept) == replaced
    assert rows_of(newer)["comment"] == before["comment"]
    with closing(make_app(config, outside.world, rounds=1)) as app:
        for page in before["page"]:
            assert Visitor(app).listing(url=page["page_url"])["total"] == page["total"]
