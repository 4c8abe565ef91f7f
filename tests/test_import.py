"""What holds for an import, whatever product its file is of: it comes once, takes nothing away,
goes on where it was stopped, spoils nothing for those who read and write meanwhile, and tells what
it did. What is particular to a product is tested beside."""

import gzip
import html
import io
import itertools
import json
import os
import pty
import random
import re
import select
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
import test_admin
from conftest import START, Outside, Visitor, assert_whole, dump, sample
from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st
from test_admin import OWNER, change, judge, pages, pin, queue
from test_backup import files, little_room
from test_server import COMMENT, Answer, Service, services, until

import commentd
from commentd import (
    DAY,
    MINUTE,
    App,
    connect,
    main,
    proper_email,
    proper_nickname,
    proper_website,
    safe_html,
)

HOUR = 60 * MINUTE
NOON = START - 300 * DAY
KILLS = int(os.environ.get("COMMENTD_TEST_KILLS", "10"))
PROGRAM = Path(commentd.__file__)
owner, visitor = test_admin.owner, test_admin.visitor


# Files as products make them


@dataclass(frozen=True)
class Said:
    """A comment as any product has it; its time is what tells it from others."""

    id: str
    at: Any = NOON
    parent: str = ""
    page: str = "/a/"
    text: str = "hi"
    nickname: str = "Ann"
    email: str = ""
    website: str = ""
    ip: str = "203.0.113.77"
    status: str = "visible"
    likes: int = 0


def moment(at: Any, form: str = "%Y-%m-%dT%H:%M:%S.000Z") -> Any:
    return datetime.fromtimestamp(at, UTC).strftime(form) if isinstance(at, int) else at


def waline_row(said: Said) -> dict[str, Any]:
    status = "approved" if said.status == "visible" else said.status
    return {
        "objectId": said.id,
        "comment": said.text,
        "nick": said.nickname,
        "mail": said.email,
        "link": said.website,
        "ip": said.ip,
        "url": said.page,
        "pid": said.parent,
        "rid": said.parent,
        "ua": "Mozilla/5.0",
        "insertedAt": moment(said.at),
        "like": said.likes,
        "status": status,
    }


def as_waline(rows: list[Any], **tables: Any) -> bytes:
    data = {"Comment": rows, "Counter": [], "Users": [], **tables}
    return json.dumps({"type": "waline", "version": 1, "data": data}).encode()


def waline(thread: Iterable[Said], **tables: Any) -> bytes:
    return as_waline([waline_row(said) for said in thread], **tables)


def twikoo_row(said: Said) -> dict[str, Any]:
    return {
        "_id": said.id,
        "comment": f"<p>{html.escape(said.text)}</p>",
        "nick": said.nickname,
        "mail": said.email,
        "link": said.website,
        "ip": said.ip,
        "url": said.page,
        "pid": said.parent or None,
        "isSpam": said.status != "visible",
        "created": said.at * 1000 if isinstance(said.at, int) else said.at,
        "like": [f"{number:032x}" for number in range(said.likes)],
    }


def twikoo(thread: Iterable[Said]) -> bytes:
    return "".join(json.dumps(twikoo_row(said)) + "\n" for said in thread).encode()


WXR_STATES = {"visible": "1", "waiting": "0", "spam": "spam", "deleted": "trash"}


def wordpress(thread: Iterable[Said], closed: tuple[str, ...] = ()) -> bytes:
    items: dict[str, list[str]] = {}
    for said in thread:
        words = {
            "id": said.id,
            "author": said.nickname,
            "author_email": said.email,
            "author_url": said.website,
            "author_IP": said.ip,
            "date_gmt": moment(said.at, "%Y-%m-%d %H:%M:%S"),
            "content": said.text,
            "approved": WXR_STATES[said.status],
            "type": "comment",
            "parent": said.parent or "0",
        }
        inner = "".join(
            f"<wp:comment_{n}>{escape(str(t))}</wp:comment_{n}>" for n, t in words.items()
        )
        items.setdefault(said.page, []).append(f"<wp:comment>{inner}</wp:comment>\n")
    shape = "<item><link>{}</link><wp:comment_status>{}</wp:comment_status>{}</item>\n"
    body = "".join(
        shape.format(escape(page), "closed" if page in closed else "open", "".join(comments))
        for page, comments in items.items()
    )
    head = '<rss version="2.0" xmlns:wp="http://wordpress.org/export/1.2/"><channel>\n'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}{body}</channel></rss>\n'.encode()


ISSO = """
    CREATE TABLE threads (id INTEGER PRIMARY KEY, uri VARCHAR UNIQUE, title VARCHAR);
    CREATE TABLE comments (tid REFERENCES threads(id), id INTEGER PRIMARY KEY, parent INTEGER,
        created FLOAT NOT NULL, modified FLOAT, mode INTEGER, remote_addr VARCHAR, text VARCHAR,
        author VARCHAR, email VARCHAR, website VARCHAR, likes INTEGER DEFAULT 0,
        dislikes INTEGER DEFAULT 0, voters BLOB NOT NULL, notification INTEGER DEFAULT 0);
    CREATE TABLE preferences (key VARCHAR PRIMARY KEY, value VARCHAR);
    INSERT INTO preferences VALUES ('session-key', 'canary-session-key');
"""
ISSO_MODES = {"visible": 1, "waiting": 2, "deleted": 4}


def isso(thread: Iterable[Said]) -> bytes:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(ISSO)
        for said in thread:
            db.execute("INSERT OR IGNORE INTO threads (uri) VALUES (?)", (said.page,))
            names = (html.escape(said.nickname, quote=False), html.escape(said.email, quote=False))
            values = (said.id, said.parent or None, said.at, ISSO_MODES[said.status], said.ip)
            values += (said.text, *names, html.escape(said.website), said.likes, said.page)
            sql = """INSERT OR IGNORE INTO comments (id, parent, created, mode, remote_addr, text,
                author, email, website, likes, voters, tid) VALUES
                (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, x'00', (SELECT id FROM threads WHERE uri = ?))"""
            db.execute(sql, values)
        db.commit()
        return db.serialize()


FILES: dict[str, Callable[..., bytes]] = {
    "waline": waline,
    "twikoo": twikoo,
    "wordpress": wordpress,
    "isso": isso,
}
every = pytest.mark.parametrize("product", FILES)
LIKED = {"waline", "twikoo", "isso"}  # WordPress has no likes


def blog(count: int = 12) -> list[Said]:
    """Three pages of threads, some of which wait. The first comment is of somebody with an
    address, and stands on the page /0/ like the third, which answers it."""
    return [
        Said(
            str(number + 1),
            NOON + number * MINUTE,
            parent=str(number - 2) if number % 4 and number > 2 else "",
            page=f"/{number % 3}/",
            text=f"text {number + 1}",
            nickname=f"N{number}",
            email="" if number else "Lu@example.cn",
            status="waiting" if number % 7 == 6 else "visible",
            likes=number % 3,
        )
        for number in range(count)
    ]


# The program, and what it left


@dataclass(frozen=True)
class Told:
    """What an import answered."""

    code: int
    text: str
    errors: str

    @property
    def sums(self) -> tuple[int, ...]:
        """Comments read, new, already here, skipped. Each that was read is one of the others."""
        found = re.search(r"(\d+) comments? read, (\d+) new, (\d+) already here, (\d+) ", self.text)
        assert found, self
        read, *parts = map(int, found.groups())
        assert read == sum(parts)
        return read, *parts

    def named(self, word: str) -> list[str]:
        """What is listed in the lines with that word."""
        lines = [line for line in self.text.splitlines() if re.search(word, line)]
        return [
            w.removesuffix(" …") for line in lines for w in line.rpartition(": ")[2].split(", ")
        ]

    def number(self, word: str) -> int:
        """The number in the line with that word; 0 where there is no such line."""
        found = re.search(rf"(\d+) .*{word}", self.text)
        return int(found[1]) if found else 0


Kept = dict[str, Any]


class Desk:
    """A folder with a database, into which files are brought by the program. It runs in this
    process, which is many times faster, and its clock stands still."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, out: pytest.CaptureFixture[str]):
        self.folder, self.patch, self.out = folder, patch, out
        self.path = folder / "commentd.db"

    def file(self, data: bytes, name: str = "export") -> Path:
        path = self.folder / name
        path.write_bytes(data)
        return path

    def bring(self, data: bytes | Path, *words: object) -> Told:
        path = data if isinstance(data, Path) else self.file(data)
        return self.ask("import", path, *words)

    def ask(self, *words: object) -> Told:
        self.out.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as wrong:
            code = int(str(wrong.code))
        told = self.out.readouterr()
        return Told(code, told.out, told.err)

    def use(self, name: str) -> Path:
        """From now on, another database."""
        self.path = self.folder / name
        self.patch.setenv("COMMENTD_DATABASE_PATH", name)
        return self.path

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        return dump(str(self.path))

    def rows(self, sql: str) -> list[Kept]:
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql)]

    @property
    def kept(self) -> dict[int, Kept]:
        """The comments by their times, with the time of what they answer as `above`."""
        sql = """SELECT comment.*, page.key, above.created_at AS above FROM comment
                   JOIN page ON page.id = comment.page_id
                   LEFT JOIN comment AS above ON above.id = comment.parent_id"""
        return {row["created_at"]: row for row in self.rows(sql)}

    @property
    def texts(self) -> list[str]:
        return [row["content"] for row in self.rows("SELECT content FROM comment ORDER BY id")]

    @property
    def raw(self) -> bytes:
        """All bytes of the database and of what lies beside it."""
        return b"".join(each.read_bytes() for each in self.folder.glob(f"{self.path.name}*"))


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outside: Outside, capsys: Any
) -> Iterator[Desk]:
    for name in [name for name in os.environ if name.startswith("COMMENTD_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(commentd, "World", lambda: outside.world)
    desk = Desk(tmp_path, monkeypatch, capsys)
    yield desk
    if desk.path.exists():
        assert_whole(str(desk.path))


def program(*words: str) -> list[str]:
    return [sys.executable, "-W", "error", str(PROGRAM), *words]


def environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if not name.startswith("COMMENTD_")}


def begun(folder: Path, *words: str, **how: Any) -> subprocess.Popen[str]:
    """The program in a process of its own, started in that folder."""
    with_pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", **how}
    return subprocess.Popen(program(*words), cwd=folder, env=environment(), **with_pipes)


def ended(process: subprocess.Popen[str]) -> Told:
    text, errors = process.communicate(timeout=120)
    assert "Traceback" not in (errors or ""), errors
    return Told(process.returncode, text or "", errors or "")


def count_in(path: Path) -> int:
    """How many comments are in a database; 0 where there is none yet."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM comment").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


# Twice, and dry


@every
def test_a_dry_run_tells_what_would_be_and_makes_nothing(desk: Desk, product: str) -> None:
    file = desk.file(FILES[product](blog()))
    dry = desk.bring(file, "--dry-run")
    assert list(desk.folder.iterdir()) == [file]
    real = desk.bring(file)
    assert (dry.code, real.code, real.sums) == (0, 0, (12, 12, 0, 0))
    *lines, last = dry.text.splitlines()
    assert lines == real.text.splitlines()
    assert "dry run" in last
    assert sorted(row["content"] for row in desk.kept.values()) == sorted(s.text for s in blog())


@every
def test_a_dry_run_changes_nothing_that_is_there(desk: Desk, product: str) -> None:
    make = FILES[product]
    desk.bring(
        make([*blog(6), Said("x", START, page="", text="no page")][: 6 + (product != "isso")])
    )
    file = desk.file(make([*blog(9), replace(blog()[0], id="99", at=NOON - 1, parent="77")]))
    before, lasting = files(desk.folder), desk.dump()
    dry = desk.bring(file, "--dry-run")
    assert (files(desk.folder), desk.dump()) == (before, lasting)
    assert dry.sums == (10, 4, 6, 0)
    assert dry.text.splitlines()[:-1] == desk.bring(file).text.splitlines()


@every
def test_a_second_import_changes_nothing(desk: Desk, product: str) -> None:
    file = desk.file(FILES[product](blog()))
    assert desk.bring(file).sums == (12, 12, 0, 0)
    before = desk.dump()
    for _ in range(2):
        again = desk.bring(file)
        assert (again.code, again.sums) == (0, (12, 0, 12, 0))
        assert desk.dump() == before


@every
def test_a_newer_export_brings_what_is_new_and_changes_nothing(desk: Desk, product: str) -> None:
    make = FILES[product]
    desk.bring(make(blog()))
    before = desk.rows("SELECT * FROM comment")
    changed = [
        replace(s, text="edited there", nickname="Eve", likes=9, status="visible", parent="")
        for s in blog()
    ]
    assert desk.bring(make([*changed, *blog(15)[12:]])).sums == (15, 3, 12, 0)
    after = desk.rows("SELECT * FROM comment")
    assert len(after) == 15
    counted = dict.fromkeys(("replies", "shown"))  # what answers it may be new
    assert [{**row, **counted} for row in after[:12]] == [{**row, **counted} for row in before]


@pytest.mark.parametrize(
    "change", [{"likes": 5}, {"status": "waiting"}, {"website": "http://x.example"}]
)
@pytest.mark.parametrize("product", ["waline", "twikoo"])
def test_a_row_without_an_id_is_known_by_page_time_author_and_text(
    desk: Desk, product: str, change: dict[str, Any]
) -> None:
    thread = [replace(said, id="", parent="") for said in blog()]
    assert desk.bring(FILES[product](thread)).sums == (12, 12, 0, 0)
    assert desk.bring(FILES[product](thread)).sums == (12, 0, 12, 0)
    newer = [replace(said, page=said.page.rstrip("/"), **change) for said in thread]
    assert desk.bring(FILES[product](newer)).sums == (12, 0, 12, 0)
    apart = [replace(thread[0], text="other"), replace(thread[0], nickname="Bob")]
    apart += [replace(thread[0], page="/b/"), replace(thread[0], at=NOON + 1)]
    assert desk.bring(FILES[product](apart)).sums == (4, 4, 0, 0)


def test_what_comes_from_two_products_comes_once(desk: Desk) -> None:
    """Many moved from one to the other, and have a file of each."""
    thread = [replace(said, likes=0) for said in blog()]
    assert desk.bring(waline(thread)).sums == (12, 12, 0, 0)
    before = desk.kept
    for product in ("isso", "twikoo", "wordpress"):
        assert desk.bring(FILES[product](thread)).sums == (12, 0, 12, 0)
        assert desk.bring(FILES[product](thread)).sums == (12, 0, 12, 0)
    assert desk.kept == before
    more = replace(blog(13)[12], parent="1", page="/0/")
    assert desk.bring(isso([*thread, more])).sums == (13, 1, 12, 0)
    assert desk.kept[more.at]["above"] == NOON


def test_ids_of_two_files_may_be_the_same(desk: Desk) -> None:
    """Two Isso of one owner both begin with 1."""
    one, other = blog(), [replace(s, at=s.at + HOUR, text=s.text + "b") for s in blog()]
    assert desk.bring(isso(one)).sums == desk.bring(isso(other)).sums == (12, 12, 0, 0)
    answers = [said for said in other if said.parent]
    assert [desk.kept[said.at]["above"] for said in answers] == [
        NOON + HOUR + (int(said.parent) - 1) * MINUTE for said in answers
    ]


# Stopped


def statements_of(
    work: Callable[[], object], dies_at: int | None = None, may_end: bool = False
) -> int:
    """How many statements the work sends to the database. It is killed before one of them, if
    that is named; it runs in a process of its own."""
    reading, writing = os.pipe()
    if child := os.fork():
        os.close(writing)
        with os.fdopen(reading) as pipe:
            counted = pipe.read()
        status = os.waitpid(child, 0)[1]
        assert may_end or os.WIFSIGNALED(status) == (dies_at is not None), status
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return int(counted or 0)
    numbers = itertools.count()

    def watch(sql: str) -> None:
        if next(numbers) == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watched(path: str) -> sqlite3.Connection:
        db = connect(path)
        db.set_trace_callback(watch)
        return db

    try:
        commentd.connect = watched
        work()
        os.write(writing, str(next(numbers)).encode())
        os._exit(0)
    finally:
        os._exit(1)


@pytest.mark.slow
@every
def test_it_goes_on_where_it_was_killed(desk: Desk, product: str) -> None:
    file = desk.file(FILES[product](blog(120)))
    desk.use("whole.db")
    desk.bring(file)
    whole = desk.dump()
    desk.use("counted.db")
    count = statements_of(lambda: desk.bring(file))
    assert desk.dump() == whole
    left = []
    for number in range(KILLS):
        path = desk.use(f"{number}.db")
        dies_at = random.randrange(count * number // KILLS, count * (number + 1) // KILLS)
        statements_of(lambda: desk.bring(file), dies_at)
        left.append(count_in(path))
        if left[-1]:
            assert_whole(str(path))
        again = desk.bring(file)
        assert (again.code, again.sums) == (0, (120, 120 - left[-1], left[-1], 0)), dies_at
        assert desk.dump() == whole, dies_at
    assert {0 < n < 120 for n in left} == {True, False}


@pytest.mark.slow
def test_killed_again_and_again_it_comes_to_its_end(desk: Desk) -> None:
    file = desk.file(waline(blog(180)))
    desk.use("whole.db")
    desk.bring(file)
    whole = desk.dump()
    desk.use("counted.db")
    count = statements_of(lambda: desk.bring(file))
    path, left = desk.use("killed.db"), [0]
    while left[-1] < 180 and len(left) < 20:
        statements_of(lambda: desk.bring(file), count // 2, may_end=True)
        left.append(count_in(path))
    assert left == sorted(left)
    assert len({*left}) > 3
    assert desk.bring(file).sums == (180, 0, 180, 0)
    assert desk.dump() == whole


@pytest.mark.slow
def test_two_imports_at_a_time_bring_each_comment_once(tmp_path: Path) -> None:
    (tmp_path / "export").write_bytes(waline(blog(600)))
    with closing(sqlite3.connect(tmp_path / "commentd.db", isolation_level=None)) as db:
        commentd.migrate(db)
    both = [begun(tmp_path, "import", "export") for _ in range(2)]
    told = [ended(process) for process in both]
    assert [each.code for each in told] == [0, 0]
    assert sum(each.sums[1] for each in told) == 600
    assert count_in(tmp_path / "commentd.db") == 600
    assert_whole(str(tmp_path / "commentd.db"))


@pytest.mark.slow
def test_ctrl_c_ends_it_with_a_sentence_and_it_goes_on(tmp_path: Path) -> None:
    (tmp_path / "export").write_bytes(waline(blog(3000)))
    process = begun(tmp_path, "import", "export")
    until(lambda: count_in(tmp_path / "commentd.db"))
    process.send_signal(signal.SIGINT)
    told = ended(process)
    assert (told.code, told.text) == (1, "")
    assert re.fullmatch("commentd: .*stopped.*\n", told.errors)
    left = count_in(tmp_path / "commentd.db")
    assert 0 < left < 3000
    assert_whole(str(tmp_path / "commentd.db"))
    assert ended(begun(tmp_path, "import", "export")).sums == (3000, 3000 - left, left, 0)


@pytest.mark.slow
@pytest.mark.parametrize("room", sample([1 << 16, 1 << 19, 3 << 20], 1))
def test_a_disk_that_is_full_ends_it_with_a_sentence_and_it_goes_on(
    tmp_path: Path, room: int
) -> None:
    """Wherever it is full: the folder of the database, or that of temporary files."""
    thread = [replace(said, text=said.text + " long" * 300) for said in blog(3000)]
    (tmp_path / "export.gz").write_bytes(gzip.compress(waline(thread)))
    with little_room(room):
        told = ended(begun(tmp_path, "import", "export.gz"))
    assert (told.code, told.text) == (1, "")
    assert re.search("^commentd: .+", told.errors, re.M)
    left = count_in(tmp_path / "commentd.db")
    again = ended(begun(tmp_path, "import", "export.gz"))
    assert (again.code, again.sums) == (0, (3000, 3000 - left, left, 0))
    assert_whole(str(tmp_path / "commentd.db"))


# What was done here stays


def delete_as_author(owner: Visitor, reader: Visitor, outside: Outside) -> None:
    """Whoever was given what he wrote elsewhere deletes it."""
    reader.register("lu@example.cn")
    reader.served.deliver()
    reader.verify(outside.code(), "lu@example.cn")
    reader.authorization = ("Bearer", reader.login("lu@example.cn")["token"])
    first = of_page(reader)[0]
    with closing(sqlite3.connect(reader.served.house.store.path)) as db, db:
        account = "SELECT id FROM account WHERE email = 'lu@example.cn'"
        db.execute(f"UPDATE comment SET user_id = ({account}) WHERE id = ?", (first,))
    assert reader.delete_json(f"/comments/{first}", {}).json["success"]


def purge(owner: Visitor, reader: Visitor, outside: Outside) -> None:
    """Spam goes after its days. What answers it goes with it, so that nothing holds it."""
    judge(owner, of_page(reader), "spam")
    outside.time += 31 * DAY
    owner.served.tick()
    owner.served.keep()


def of_page(reader: Visitor, url: str = "/0/") -> list[int]:
    """The numbers of the comments of the page, the oldest first."""
    found = reader.get("/comments", {"url": url, "limit": 100, "sort": "oldest"}).json
    return [comment["id"] for comment in found["comments"]]


def read_and_like(owner: Visitor, reader: Visitor, outside: Outside) -> None:
    reader.post_json("/comment/like", {"id": of_page(reader)[0]})
    reader.post_json("/page/like", {"page_url": "/0/"})
    reader.served.tick()


def page_of(owner: Visitor, url: str = "/0/") -> str:
    return f"pages/{next(page['id'] for page in pages(owner)['pages'] if page['page_url'] == url)}"


def say_here(owner: Visitor, reader: Visitor, outside: Outside) -> None:
    reader.say("of here", page_url="/0/")
    reader.say("an answer", page_url="/0/", parent_id=of_page(reader)[0])


DONE_HERE: dict[str, Callable[[Visitor, Visitor, Outside], object]] = {
    "edited": lambda owner, reader, outside: change(
        owner, f"comments/{of_page(reader)[0]}", content="mended", nickname="Bob", website=""
    ),
    "hidden": lambda owner, reader, outside: judge(owner, of_page(reader)[:1], "spam"),
    "held": lambda owner, reader, outside: judge(owner, of_page(reader)[:1], "waiting"),
    "deleted": lambda owner, reader, outside: judge(owner, of_page(reader)[:1], "deleted"),
    "approved": lambda owner, reader, outside: judge(
        owner, test_admin.ids(queue(owner, status="waiting")), "visible"
    ),
    "pinned": lambda owner, reader, outside: pin(owner, of_page(reader)[:1]),
    "closed": lambda owner, reader, outside: change(owner, page_of(owner), closed=True),
    "moved": lambda owner, reader, outside: change(owner, page_of(owner), page_url="/moved/"),
    "merged": lambda owner, reader, outside: change(
        owner, page_of(owner), page_url="/1/", merge=True
    ),
    "erased by its author": delete_as_author,
    "purged": purge,
    "liked and read": read_and_like,
    "answered": say_here,
}


@pytest.mark.parametrize("done", DONE_HERE)
@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_what_was_done_here_stays_done(
    desk: Desk, app: App, owner: Visitor, visitor: Visitor, outside: Outside, done: str
) -> None:
    """With the same file again, and with a newer one, in which all that was changed and two more
    answer what was."""
    desk.bring(waline(blog()))
    DONE_HERE[done](owner, visitor, outside)
    before, sum_before = desk.dump(), desk.rows("SELECT * FROM comment")
    again = desk.bring(waline(blog()))
    assert (again.code, again.sums) == (0, (12, 0, 12, 0))
    assert again.number("of them new") == 3  # pages, of which none is new
    assert desk.dump() == before

    changed = [replace(s, text="edited there", likes=7, status="visible") for s in blog()]
    more = [
        Said("98", NOON + DAY, "1", "/0/", "more"),
        Said("99", NOON + DAY + 1, "7", "/0/", "more"),
    ]
    counter = [{"url": "/0/", "time": 1}]
    assert desk.bring(waline([*changed, *more], Counter=counter)).sums == (14, 2, 12, 0)
    told = [row for row in desk.rows("SELECT * FROM comment") if row["content"] != "more"]
    counted = dict.fromkeys(("replies", "shown"))
    assert [{**row, **counted} for row in told] == [{**row, **counted} for row in sum_before]
    if done == "closed":
        assert visitor.listing(url="/0/", view="threads")["settings"]["closed"]


@pytest.mark.parametrize("form", ["commentd", "waline"])
@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_an_export_of_ours_brings_nothing_back(
    desk: Desk, app: App, owner: Visitor, visitor: Visitor, outside: Outside, form: str
) -> None:
    """Neither what is here, nor what was edited, hidden or deleted since."""
    saids = [visitor.say(f"text {n}", page_url="/0/") for n in range(6)]
    outside.time += MINUTE
    saids += [visitor.say(f"text {n}", page_url="/0/", parent_id=n - 5) for n in range(6, 9)]
    visitor.post_json("/comment/like", {"id": 1})
    ours = desk.file(desk.ask("export", form).text.encode())
    before = desk.rows("SELECT * FROM comment"), desk.rows("SELECT * FROM page")
    assert desk.bring(ours, "--dry-run").sums == (9, 0, 9, 0)
    assert desk.bring(ours).sums == (9, 0, 9, 0)
    assert (desk.rows("SELECT * FROM comment"), desk.rows("SELECT * FROM page")) == before

    with closing(sqlite3.connect(desk.path)) as db, db:
        db.execute("DELETE FROM import")  # as where it was not brought in before
    judge(owner, [2], "spam")
    change(owner, "comments/3", content="mended")
    for number in (1, 4):
        token = {"edit_token": saids[number - 1]["edit_token"]}
        assert visitor.delete_json(f"/comments/{number}", token).json["success"]
    before = desk.rows("SELECT * FROM comment"), desk.rows("SELECT * FROM page")
    assert desk.bring(ours).sums == (9, 0, 9, 0)
    assert (desk.rows("SELECT * FROM comment"), desk.rows("SELECT * FROM page")) == before


def test_what_was_spam_there_goes_after_its_days_here_and_stays_away(
    desk: Desk, app: App, outside: Outside
) -> None:
    thread = [replace(said, status="spam" if said.id in "147" else "visible") for said in blog()]
    desk.bring(waline(thread))
    outside.time += 29 * DAY
    app.tick()
    assert desk.kept[NOON]["content"] == "text 1"
    outside.time += 2 * DAY
    app.tick()
    assert not {"text 1", "text 4", "text 7"} & {*desk.texts}
    assert len([text for text in desk.texts if text]) == 9
    before = desk.dump()
    assert desk.bring(waline(thread)).sums == (12, 0, 12, 0)
    assert desk.dump() == before


def test_a_page_that_was_reopened_here_stays_open(
    desk: Desk, app: App, owner: Visitor, visitor: Visitor
) -> None:
    def closed() -> bool:
        return bool(visitor.listing(url="/0/", view="threads")["settings"]["closed"])

    desk.bring(wordpress(blog(), closed=("/0/",)))
    assert closed()
    assert not visitor.listing(url="/1/", view="threads")["settings"]["closed"]
    change(owner, page_of(owner), closed=False)
    for count in (12, 13):
        assert desk.bring(wordpress(blog(count), closed=("/0/",))).code == 0
        assert not closed()


def test_a_page_that_was_reopened_stays_open_when_it_was_read_more_elsewhere(desk: Desk) -> None:
    desk.bring(waline(blog()))
    ours = json.loads(desk.ask("export").text)
    ours["pages"].append(
        {**ours["pages"][0], "page_key": "/none", "page_url": "/none", "closed": 1}
    )
    desk.use("other.db")
    for views in (5, 6):
        page = next(page for page in ours["pages"] if page["page_url"] == "/0/")
        page |= {"closed": 1, "views": views}
        desk.bring(json.dumps(ours).encode())
        there = desk.rows(
            "SELECT closed, views FROM page WHERE key IN ('/0', '/none') ORDER BY key"
        )
        closed = int(views == 5)
        assert there == [{"closed": closed, "views": views}, {"closed": closed, "views": 0}]
        with closing(sqlite3.connect(desk.path)) as db, db:
            db.execute("UPDATE page SET closed = 0")  # as its owner does on the admin page


def test_likes_and_views_of_here_and_there_never_fall(
    desk: Desk, app: App, visitor: Visitor
) -> None:
    def counter(views: int) -> list[dict[str, Any]]:
        return [{"objectId": "v", "url": "/0/", "time": views}]

    def sums() -> tuple[int, int]:
        (page,) = visitor.get("/pages", {"url": "/0/"}).json["pages"]
        first = next(
            c for c in visitor.listing(url="/0/", limit=100)["comments"] if "4" in c["content"]
        )
        return page["views"], first["likes"]

    thread = [replace(said, likes=3) for said in blog()]
    desk.bring(waline(thread, Counter=counter(10)))
    assert sums() == (10, 3)
    visitor.post_json("/comment/like", {"id": desk.kept[NOON + 3 * MINUTE]["id"]})
    app.tick()
    here = sums()
    assert here[0] > 10
    assert here[1] == 4
    for views, expected in ((10, 0), (5, 0), (11, 0), (100, 100)):
        desk.bring(waline(thread, Counter=counter(views)))
        assert sums() >= max(here, (expected, 4))
    assert sums()[0] < 110


# Who answers whom


def test_answers_may_come_before_what_they_answer(desk: Desk) -> None:
    for number, (product, make) in enumerate(FILES.items()):
        desk.use(f"{number}.db")
        thread = [replace(said, id=str(100 - int(said.id))) for said in blog()]
        thread = [replace(s, parent=str(100 - int(s.parent)) if s.parent else "") for s in thread]
        assert desk.bring(make(thread[::-1])).sums == (12, 12, 0, 0), product
        for said in blog():
            above = NOON + (int(said.parent) - 1) * MINUTE if said.parent else None
            assert desk.kept[said.at]["above"] == above


def circle(size: int, first: int = 1) -> list[Said]:
    """Comments that answer each other, two below each of them, and one below that."""
    ids = [str(first + number) for number in range(size)]
    found = [Said(id, parent=ids[n - 1]) for n, id in enumerate(ids)]
    found += [Said(f"{id}{n}", parent=id) for id in ids for n in "78"]
    found += [Said(f"{id}79", parent=f"{id}7") for id in ids]
    return [replace(said, at=NOON + int(said.id), text=said.id) for said in found]


@every
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_circle_of_answers_is_cut_at_one_place(desk: Desk, product: str, size: int) -> None:
    thread = [*circle(size), *circle(size, 4), Said("30", NOON + 30, text="30")]
    told = desk.bring(FILES[product](thread))
    assert (told.code, told.sums[1], told.sums[3]) == (0, len(thread), 0)
    above = {said.at: NOON + int(said.parent) if said.parent else None for said in thread}
    moved = {at for at, row in desk.kept.items() if row["above"] != above[at]}
    assert len(moved) == 2
    assert {at < NOON + 4 for at in moved} == {True, False}
    assert {at - NOON for at in moved} <= {1, 2, 3, 4, 5, 6}
    assert {desk.kept[at]["above"] for at in moved} == {None}
    assert {int(id) for id in told.named("stand at the top")} == {at - NOON for at in moved}
    assert desk.bring(FILES[product](thread)).sums[1] == 0


@pytest.mark.slow
def test_a_long_chain_of_replies_comes_in(desk: Desk, app: App, visitor: Visitor) -> None:
    """Longer than Python calls functions below each other."""
    thread = [Said(str(n), NOON + n, str(n - 1), text=f"{n}") for n in range(1, 1501)]
    assert desk.bring(waline(thread[::-1])).sums == (1500, 1500, 0, 0)
    assert all(row["above"] == at - 1 for at, row in desk.kept.items() if at > NOON + 1)
    listed = visitor.listing(url="/a/", view="threads")
    assert (listed["total"], listed["threads"]) == (1500, 1)
    before = desk.dump()
    assert desk.bring(waline(thread)).sums == (1500, 0, 1500, 0)
    assert desk.dump() == before


def test_what_holds_an_answer_far_below_keeps_its_place(desk: Desk) -> None:
    """A chain of empty comments stays where a word stands at its end, and goes where none does."""
    chain = [Said(str(n), NOON + n, str(n - 1), text="") for n in range(1, 1001)]
    told = desk.bring(waline(chain))
    assert told.sums == (1000, 0, 0, 1000)
    assert told.number("pages") == 0
    told = desk.bring(waline([*chain, Said("1001", NOON + 1001, "1000", text="word")]))
    assert told.sums == (1001, 1001, 0, 0)
    assert {row["status"] for at, row in desk.kept.items() if at < NOON + 1001} == {"deleted"}
    (page,) = desk.rows("SELECT total, threads FROM page")
    assert page == {"total": 1, "threads": 1}


IDS = st.integers(1, 8).map(str)
THREADS = st.lists(
    st.builds(
        Said,
        id=IDS,
        parent=st.one_of(st.just(""), IDS),
        page=st.sampled_from(["/a/", "/a", "/b/", ""]),
        text=st.sampled_from(["word", "word", ""]),
        status=st.sampled_from(["visible", "waiting"]),
    ),
    max_size=8,
).map(lambda thread: [replace(s, at=NOON + n) for n, s in enumerate(thread)])


def expected(thread: list[Said]) -> tuple[dict[int, Said], dict[int, int], set[frozenset[int]]]:
    """What must come of a file by the rules: the comments, whom each answers, the circles."""
    first: dict[str, Said] = {}
    for said in thread:
        if said.page:
            first.setdefault(said.id, said)
    above = {}
    for said in first.values():
        there = first.get(said.parent)
        if there and there.page.rstrip("/") == said.page.rstrip("/") and there is not said:
            above[said.at] = there.at
    circles = set()
    for at in above:
        seen = [at]
        while above.get(seen[-1]) and above[seen[-1]] not in seen:
            seen.append(above[seen[-1]])
        if above.get(seen[-1]) == at:
            circles.add(frozenset(seen))
    return {said.at: said for said in first.values()}, above, circles


@pytest.mark.slow
@given(product=st.sampled_from([*FILES]), thread=THREADS)
@how(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_tangle_of_answers_becomes_threads(
    desk: Desk, product: str, thread: list[Said]
) -> None:
    if product == "wordpress":  # whose comments stand below their pages
        order = [said.page for said in thread]
        thread = sorted(thread, key=lambda said: order.index(said.page))
    if product == "isso":  # which has keys
        thread = list({said.id: said for said in thread if said.page}.values())
    for each in desk.folder.iterdir():
        each.unlink()
    file = desk.file(FILES[product](thread))
    if not thread:
        return
    dry = desk.bring(file, "--dry-run")
    told = desk.bring(file)
    assert (told.code, dry.code) == (0, 0)
    assert dry.text.splitlines()[:-1] == told.text.splitlines()
    kept, (saids, above, circles) = desk.kept, expected(thread)

    def is_held(at: int, seen: tuple[int, ...] = ()) -> bool:
        """Whether a word stands there or below."""
        below = [a for a, b in above.items() if b == at and a not in seen]
        return saids[at].text != "" or any(is_held(each, (*seen, at)) for each in below)

    cut = {at for at, row in kept.items() if row["above"] is None and at in above}
    for ring in circles:
        assert len(cut & ring) == 1 or not ring & {*kept}
    assert cut <= {at for ring in circles for at in ring}
    for at in cut:
        above.pop(at)
    assert {*kept} == {at for at in saids if is_held(at)} or circles
    assert {*kept} >= {at for at, said in saids.items() if said.text}
    for at, row in kept.items():
        said = saids[at]
        assert row["above"] == above.get(at)
        assert row["key"] == said.page.rstrip("/")
        assert row["content"] == said.text
        assert row["status"] == (said.status if said.text else "deleted")
    assert told.sums[1] == len(kept)
    before = desk.dump()
    assert desk.bring(file).sums[1:3] == (0, len(kept))
    assert desk.dump() == before
    assert_whole(str(desk.path))


# Bad rows

ODD_VALUES = {
    "null": "null",
    "true": "true",
    "number": "7",
    "negative": "-7.5",
    "infinite": "1e999",
    "nan": "NaN",
    "long number": "9" * 4000,
    "empty": '""',
    "blank": r'" \t\u00a0\u200b\u3000"',
    "controls": r'"a\u0000b\u001b[31mc\u0085d"',
    "half a character": r'"\ud83d"',
    "list": "[1, [2], {}]",
    "object": '{"a": {"b": 1}}',
    "wrapped": '{"$oid": {"$oid": {"$numberLong": "7"}}}',
    "date": '{"__type": "Date", "iso": "yesterday"}',
    "brackets": json.dumps("[" * 100_000),
    "deep list": "[" * 300 + "]" * 300,
    "deep wrapping": '{"$oid":' * 300 + "1" + "}" * 300,
    "long text": json.dumps("x" * 200_000),
    "sql": '"\'); DROP TABLE comment; --"',
    "words": r'"-- % _ {0} %s \\ \" \u2028"',
}


@pytest.mark.slow
@pytest.mark.parametrize("odd", ODD_VALUES)
@pytest.mark.parametrize("product", ["waline", "twikoo"])
def test_whatever_a_field_holds_the_other_comments_come_in(
    desk: Desk, product: str, odd: str
) -> None:
    row = (waline_row if product == "waline" else twikoo_row)(Said("1"))
    thread = [Said(str(n), NOON + n, text=f"word {n}") for n in range(2 * len(row) + 1)]
    rows = [(waline_row if product == "waline" else twikoo_row)(said) for said in thread]
    for number, name in enumerate(row):
        rows[2 * number + 1][name] = "MARK"
    texts = [json.dumps(each).replace('"MARK"', ODD_VALUES[odd]) for each in rows]
    texts[2:2] = [ODD_VALUES[odd]]  # in the place of a comment
    data = "\n".join(texts)
    if product == "waline":
        data = as_waline(["MARK"]).decode().replace('"MARK"', ",".join(texts))
    told = desk.bring(data.encode("utf-8", "surrogatepass"))
    assert told.code == 0, told
    kept = {*desk.texts}
    assert {said.text for said in thread[::2]} <= kept
    assert told.sums[0] in (len(texts), len(texts) - 1)  # null or a list may be no row at all
    before = desk.dump()
    desk.bring(desk.folder / "export")
    assert desk.dump() == before


def test_what_is_wrong_with_a_row_is_told_with_its_name(desk: Desk) -> None:
    rows: list[Any] = [waline_row(said) for said in blog()]
    rows[3:3] = [
        "a text in the place of a comment",
        {**rows[1], "objectId": "empty-7", "comment": " \u200b "},
        {**rows[1], "objectId": "homeless-7", "url": ""},
        {**rows[1], "objectId": "orphan-7", "pid": "nobody"},
        {**rows[1], "objectId": "timeless-7", "insertedAt": "yesterday"},
        {**rows[1]},
    ]
    told = desk.bring(as_waline(rows))
    assert (told.code, told.sums) == (0, (18, 14, 0, 4))
    assert told.named("no page") == ["homeless-7"]
    assert told.named("no text") == ["empty-7"]
    assert told.named("at the top") == ["orphan-7"]
    assert told.named("without a time") == ["timeless-7"]
    assert told.named("twice") == [rows[1]["objectId"]]
    assert "a text in the place" in told.text


def test_a_long_list_of_what_is_wrong_is_counted_and_begun(desk: Desk) -> None:
    thread = [Said(f"orphan-{n}", NOON + n, "nobody", text=f"{n}") for n in range(500)]
    told = desk.bring(waline(thread))
    assert told.number("at the top") == 500
    assert "…" in told.text
    assert 3 < len(told.named("at the top")) < 20
    assert all(len(line) < 300 for line in told.text.splitlines())


def test_names_of_rows_can_not_write_on_the_terminal(desk: Desk) -> None:
    """A name with an escape sequence or an end of line would write what its maker likes."""
    evil = "\x1b]0;evil\x07\x1b[2K\r\n  0 skipped\u202e"
    rows = [{**waline_row(blog()[0]), "objectId": f"{evil}{n}", "url": ""} for n in range(3)]
    told = desk.bring(as_waline([*rows, evil * 3]))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", told.text)
    assert len(told.text.splitlines()) < 8


CUTS = [0.3, 0.6, 0.95]


@pytest.mark.slow
@every
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("part", CUTS)
def test_a_file_that_breaks_off_gives_what_stands_before(
    desk: Desk, product: str, packed: bool, part: float
) -> None:
    thread = blog(60) if product != "isso" else blog(600)
    data = FILES[product](thread)
    kept = data[: int(len(data) * part)]
    if packed:  # without a word of chance in it, so that each block can be read
        pack = gzip.compress(data)
        kept = pack[: int(len(pack) * part)]
    told = desk.bring(kept)
    assert "Traceback" not in told.errors
    assert (told.text + told.errors).strip()
    left = count_in(desk.path)
    assert told.code == 1
    if product == "isso":  # of a database it is chance what can be read
        assert left < 600
    else:
        least = part - 0.35 if product == "wordpress" else part - 0.1  # which has whole pages
        assert packed or least <= left / 60 <= part
    assert desk.bring(data).sums == (len(thread), len(thread) - left, left, 0)
    found = {at: row["above"] for at, row in desk.kept.items()}
    desk.use("whole.db")
    desk.bring(data)
    assert found == {at: row["above"] for at, row in desk.kept.items()}


# Times

NONSENSE = [
    "",
    "0000-00-00 00:00:00",
    "0001-01-01T00:00:00Z",
    "0000-01-01",
    "9999-12-31T23:59:59Z",
    "10000-01-01",
    "1969-12-31T23:59:59Z",
    "2026-02-30 10:00:00",
    "yesterday",
    moment(START + 3 * DAY),
    str(START + 3 * DAY),
    "-1",
    "1e400",
    "nan",
    "99999999999999999999",
]


@pytest.mark.parametrize("time", NONSENSE)
def test_a_time_that_can_not_be_becomes_that_of_the_parent_or_page_or_today(
    desk: Desk, time: str
) -> None:
    thread = [
        Said("1", NOON + HOUR),
        Said("2", NOON),
        Said("3", time, parent="1", text="an answer"),
        Said("4", time, parent="3", text="an answer to that"),
        Said("5", time, text="on top"),
        Said("6", time, page="/b/", text="alone"),
    ]
    told = desk.bring(waline(thread))
    assert (told.code, told.sums) == (0, (6, 6, 0, 0))
    assert told.named("without a time") == ["3", "4", "5", "6"]
    found = {row["content"]: row["created_at"] for row in desk.rows("SELECT * FROM comment")}
    assert found["an answer"] == NOON + HOUR
    assert NOON <= found["an answer to that"] <= NOON + HOUR
    assert (found["on top"], found["alone"]) == (NOON, START)
    before = desk.dump()
    assert desk.bring(desk.folder / "export").sums == (6, 0, 6, 0)
    assert desk.dump() == before


def test_a_time_that_can_not_be_is_no_new_comment_a_day_later(desk: Desk, outside: Outside) -> None:
    """It gets the day of the import, which is another one then."""
    thread = [
        replace(said, id=id, at="yesterday") for said, id in zip(blog(), ["a", ""], strict=False)
    ]
    desk.bring(waline(thread))
    before = desk.dump()
    outside.time += DAY
    assert desk.bring(desk.folder / "export").sums == (2, 0, 2, 0)
    assert desk.dump() == before


def test_nothing_of_here_is_of_a_time_to_come(desk: Desk) -> None:
    """Else it would stand above all that is written here, until then."""
    desk.bring(waline([Said("1", START + 20 * HOUR), Said("2", START - 5, text="ho")]))
    assert max(desk.kept) <= START


BARE = moment(NOON, "%Y-%m-%d %H:%M:%S")
ZONES = {
    (): NOON - 8 * HOUR,
    ("--zone", "+00:00"): NOON,
    ("--zone", "+08:00"): NOON - 8 * HOUR,
    ("--zone=-05:00",): NOON + 5 * HOUR,
    ("--zone", "+05:30"): NOON - 5 * HOUR - 30 * MINUTE,
}


@pytest.mark.parametrize("words", ZONES)
def test_bare_times_are_of_the_zone_that_is_named(desk: Desk, words: tuple[str, ...]) -> None:
    thread = [Said("1", BARE), Said("2", NOON + 1, text="with its zone")]
    told = desk.bring(waline(thread), *words)
    found = {row["content"]: row["created_at"] for row in desk.kept.values()}
    assert found == {"hi": ZONES[words], "with its zone": NOON + 1}
    assert "--zone" in told.text
    assert desk.bring(waline(thread)).sums == (2, 0, 2, 0)  # nobody has it twice for that
    assert "--zone" not in desk.bring(waline(thread[1:])).text


@pytest.mark.parametrize("zone", ["Beijing", "8", "+8", "+25:00", "+08:00; DROP"])
def test_a_zone_that_is_none_is_wrong_use(desk: Desk, zone: str) -> None:
    assert desk.bring(waline(blog()), f"--zone={zone}").code == 2
    assert not desk.path.exists()


# Names, addresses, lengths

ODD_WORDS = [
    "",
    " ",
    "\u200b\u200d",
    "\x00\x1b[31mred",
    "a\nb\r\nc",
    "\u202egnp.exe",
    "n" * 300,
    "名" * 300,
    "e" + "\u0301" * 50,
    "👩‍👩‍👧‍👦",
    "\ufeffbom",
    "<script>alert(1)</script>",
    "'; DROP TABLE comment; --",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "//evil.example",
    "http://",
    "http://user:pass@evil.example",
    "http://evil.example/a b",
    'http://evil.example/"onclick="x',
    "http://[::1",
    "http://evil.example:99999",
    "https://ok.example/?a=1&b=2",
    "ok.example",
    "a@b",
    "a@b@c.example",
    "ann@example.com\nBcc: x@evil.example",
    "=?utf-8?q?x?=@evil.example",
    "Ann <ann@example.com>",
    "ann@" + "x" * 300 + ".example",
    "ＡＮＮ@example.com",
    "ann@例子.中国",
    "ok@example.com",
]


@pytest.mark.parametrize("product", FILES)
def test_no_name_and_no_address_loses_a_comment(desk: Desk, product: str) -> None:
    words = [w for w in ODD_WORDS if product != "wordpress" or not re.search("[\x00\x1b]", w)]
    thread = [
        Said(str(n + 1), NOON + n, text=f"word {n}", nickname=w, email=w, website=w)
        for n, w in enumerate(words)
    ]
    told = desk.bring(FILES[product](thread))
    assert (told.code, told.sums) == (0, (len(words), len(words), 0, 0))
    for at, row in desk.kept.items():
        word = words[at - NOON]
        assert proper_nickname(row["nickname"]) == row["nickname"], word
        assert row["email"] == "" or proper_email(row["email"]) == row["email"], word
        assert row["website"] == "" or proper_website(row["website"]) == row["website"], word
        assert "evil" not in row["website"] + row["email"] or word.startswith("//"), word
    found = {words[at - NOON]: row for at, row in desk.kept.items()}
    assert found["ok@example.com"]["email"] == "ok@example.com"
    assert found["https://ok.example/?a=1&b=2"]["website"] == "https://ok.example/?a=1&b=2"
    assert found["n" * 300]["nickname"] == "n" * 64
    assert found["👩‍👩‍👧‍👦"]["nickname"] == "👩‍👩‍👧‍👦"


@pytest.mark.slow
@pytest.mark.parametrize("product", FILES)
def test_a_long_comment_is_kept_whole_and_shown_as_plain_text(desk: Desk, product: str) -> None:
    def long(size: int, sign: str = "x") -> str:
        return "**a** b_c\nlines " + sign * (size - 16)

    texts = {
        1: long(10_000),
        2: long(10_001),
        3: long(65_536),
        4: long(65_537),
        5: long(30_000, "长"),
        6: long(3_000_000),
    }
    told = desk.bring(FILES[product]([Said(str(n), NOON + n, text=t) for n, t in texts.items()]))
    assert (told.code, told.sums) == (0, (6, 6, 0, 0))
    kept = {at - NOON: row["content"] for at, row in desk.kept.items()}
    shown = {at - NOON: row["html"] for at, row in desk.kept.items()}
    assert all(len(text.encode()) <= 65536 for text in kept.values())
    assert "�" not in "".join(kept.values())
    if product in ("waline", "isso"):  # whose texts are Markdown
        assert kept == {n: t.encode()[:65536].decode(errors="ignore") for n, t in texts.items()}
        assert {*told.named("64 KiB")} == {"4", "5", "6"}
        assert shown[1] == safe_html(texts[1])
        assert "<strong>" in shown[1]
    for number in range(2, 7):
        assert html.unescape(re.sub("<br>", "\n", shown[number])) == kept[number]
        assert "<strong>" not in shown[number]


# Pages and hosts


@every
def test_the_spellings_of_a_page_are_one(desk: Desk, product: str) -> None:
    spellings = [
        "/2024/你好/",
        "/2024/%E4%BD%A0%E5%A5%BD",
        "/2024/%e4%bd%a0%e5%a5%bd/index.html",
        "/2024/你好/?utm_source=feed&fbclid=7",
        "http://blog.example/2024/你好/",
        "https://blog.example/2024/你好",
        "https://www.blog.example/2024/你好/#comments",
        "//BLOG.example/2024/你好/",
    ]
    thread = [Said(str(n + 1), NOON + n, page=p) for n, p in enumerate(spellings)]
    told = desk.bring(FILES[product](thread))
    assert told.sums == (8, 8, 0, 0)
    (page,) = desk.rows("SELECT * FROM page")
    assert (page["key"], page["total"]) == ("/2024/你好", 8)
    assert "blog.example" not in page["page_url"].lower()
    assert told.number("pages") == 1


def test_pages_that_differ_stay_apart(desk: Desk) -> None:
    apart = ["/a/", "/a/b/", "/a/?p=1", "/a/?p=2", "/A/", "/", "post-7", "/a/#!/route", "/a.html"]
    desk.bring(waline([Said(str(n), NOON + n, page=p) for n, p in enumerate(apart)]))
    assert len(desk.rows("SELECT * FROM page")) == len(apart)


def test_it_joins_the_page_that_is_here(desk: Desk, app: App, visitor: Visitor) -> None:
    visitor.say(
        "of here", page_url="https://blog.example/a/", headers={"Origin": "https://blog.example"}
    )
    before = desk.rows("SELECT id, page_url FROM page")
    desk.bring(waline([Said("1", page="http://www.blog.example/a/index.html")]))
    assert desk.rows("SELECT id, page_url FROM page") == before
    assert desk.texts == ["of here", "hi"]
    assert visitor.listing(url="/a")["total"] == 2


HOSTS = [
    "https://blog.example/a/",
    "https://www.blog.example/a/",
    "http://localhost:4000/a/",
    "/a/",
]


def several_hosts() -> list[Said]:
    return [Said(str(n), NOON + n, page=page) for n, page in enumerate(HOSTS)]


@every
def test_of_several_hosts_none_is_taken_before_one_is_named(desk: Desk, product: str) -> None:
    file = desk.file(FILES[product](several_hosts()))
    told = desk.bring(file)
    assert (told.code, count_in(desk.path)) == (1, 0)
    assert "--host" in told.errors
    assert "blog.example" in told.errors
    assert "localhost" in told.errors
    for host in ("blog.example", "www.blog.example", "BLOG.example"):
        told = desk.bring(file, "--host", host, "--dry-run")
        assert (told.code, told.sums) == (0, (4, 3, 0, 1)), host
        assert told.named("localhost") == ["2"]
    told = desk.bring(file, "--host", "blog.example")
    (page,) = desk.rows("SELECT * FROM page")
    assert (told.sums, page["key"], page["total"]) == ((4, 3, 0, 1), "/a", 3)


def test_the_host_of_the_settings_is_taken_of_itself(desk: Desk) -> None:
    desk.patch.setenv("COMMENTD_SITE_ORIGINS", "https://www.blog.example http://localhost:1313")
    told = desk.bring(waline([*several_hosts()[:2], Said("9", page="https://other.example/a/")]))
    assert (told.code, told.sums) == (0, (3, 2, 0, 1))
    assert told.named("other.example") == ["9"]


def test_a_host_that_is_not_in_the_file_is_refused(desk: Desk) -> None:
    told = desk.bring(waline(several_hosts()), "--host", "elsewhere.example")
    assert (told.code, count_in(desk.path)) == (1, 0)
    assert "blog.example (2), localhost:4000 (1)" in told.errors
    counters = [{"url": page, "time": 3} for page in HOSTS]
    views = waline([], Counter=counters)
    assert desk.bring(views, "--host", "elsewhere.example").code == 1
    assert desk.bring(views, "--host", "blog.example").code == 0


def test_the_report_counts_what_waits_and_what_is_closed(desk: Desk) -> None:
    thread = [
        Said("1"),
        Said("2", NOON + 1, status="waiting", page="/b/"),
        Said("3", NOON + 2, status="spam"),
        Said("4", NOON + 3, page="/c/"),
    ]
    file = wordpress(thread, closed=("/b/", "/c/"))
    for words in (["--dry-run"], []):
        report = desk.bring(file, *words).text.splitlines()
        assert "  new: 2 visible, 1 waiting, 1 spam" in report
        assert "  3 pages, 3 of them new, 2 closed to new comments" in report
    report = desk.bring(file).text.splitlines()
    assert "  3 pages, 0 of them new" in report
    assert not [line for line in report if "new:" in line]


# Which files


def test_the_product_that_is_named_is_taken_not_what_it_looks_like(desk: Desk) -> None:
    rows = [waline_row(said) for said in blog()]
    data = json.dumps({"results": rows}).encode()
    assert desk.bring(data, "--dry-run").text.startswith("waline: 12 ")
    assert desk.bring(data, "--format", "valine", "--dry-run").text.startswith("valine: 12 ")
    assert desk.bring("\n".join(map(json.dumps, rows)).encode(), "--format", "waline").sums[1] == 12


def test_the_words_may_stand_in_any_order(desk: Desk) -> None:
    file = desk.file(waline(blog()))
    for words in (["import", "--dry-run", file], ["--dry-run", "import", file]):
        told = desk.ask(*words)
        assert (told.code, told.sums[1]) == (0, 12)
    assert desk.ask("import", "--format", "waline", file, "--zone", "+00:00").code == 0


BAD_FILES: dict[str, bytes | None] = {
    "none.json": None,
    "empty": b"",
    "blank": b" \n\n",
    "notes.txt": b"these are my notes\n" * 100,
    "noise": bytes(range(256)) * 40,
    "other.json": b'{"posts": [{"title": "x"}]}',
    "list.json": b"[1, 2, 3]",
    "page.html": b"<!doctype html><title>x</title>",
    "feed.xml": b'<?xml version="1.0"?><rss><channel/></rss>',
    "zip": b"PK\x03\x04" + bytes(100),
    "empty.gz": gzip.compress(b""),
    "notes.gz": gzip.compress(b"these are my notes"),
    "half.gz": b"\x1f\x8b",
    "sqlite": b"SQLite format 3\0" + bytes(84),
}


@pytest.mark.parametrize("there", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_of_no_known_product_is_refused_with_a_sentence(
    desk: Desk, name: str, there: bool
) -> None:
    if there:
        desk.bring(waline(blog()))
    data = BAD_FILES[name]
    file = desk.folder / name
    if data is not None:
        file.write_bytes(data)
    before = files(desk.folder)
    for words in ([], ["--dry-run"]):
        told = desk.bring(file, *words)
        assert (told.code, told.text) == (1, "")
        assert re.fullmatch("commentd: .+\n", told.errors), told.errors
        assert name in told.errors
        assert files(desk.folder) == before


def test_a_folder_is_refused_with_a_sentence(desk: Desk) -> None:
    told = desk.bring(desk.folder)
    assert (told.code, told.text) == (1, "")
    assert re.fullmatch("commentd: .+\n", told.errors)


@pytest.fixture
def strangers() -> Iterator[Path]:
    """A folder of a user who is not root, who else could read all."""
    owner = 1234 if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, owner, -1)
        yield Path(name)
        for each in Path(name).iterdir():
            each.chmod(0o600)


@pytest.mark.slow
def test_a_file_without_the_right_to_read_it_is_refused_with_a_sentence(strangers: Path) -> None:
    file = strangers / "export.json"
    file.write_bytes(waline(blog()))
    file.chmod(0o200)
    told = ended(begun(strangers, "import", str(file)))
    assert (told.code, told.text) == (1, "")
    assert re.fullmatch("commentd: .*export.json.*\n", told.errors)


@pytest.mark.slow
def test_the_database_that_root_makes_belongs_to_the_owner_of_the_folder(strangers: Path) -> None:
    file = strangers / "export.json"
    file.write_bytes(waline(blog()))
    os.chown(file, strangers.stat().st_uid, -1)
    assert ended(begun(strangers, "import", str(file))).sums == (12, 12, 0, 0)
    assert {each.stat().st_uid for each in strangers.iterdir()} == {strangers.stat().st_uid}
    assert (strangers / "commentd.db").stat().st_mode & 0o077 == 0


def test_files_may_be_packed_and_have_any_name(desk: Desk) -> None:
    data = waline(blog())
    desk.bring(desk.file(gzip.compress(data), "export.txt"))
    before = desk.dump()
    assert len(desk.texts) == 12
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("../../Comment.0.jsonl", "/_User.0.jsonl", "notes"):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data if "Comment" in name else b"\0" * len(data)))
    told = desk.bring(desk.file(packed.getvalue(), "-strange name.tgz"), "--format", "waline")
    assert (told.code, told.sums) == (0, (12, 0, 12, 0))
    assert desk.dump() == before


# Beside the service


class Reader(threading.Thread):
    """Asks for lists until it is stopped; remembers what was answered."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service, self.stopping = service, False
        self.answers: list[Answer] = []

    def run(self) -> None:
        while not self.stopping:
            for target in ("/comments?url=/0/&view=threads", "/pages?url=/0/&url=/1/"):
                self.answers.append(self.service.ask("GET", target))


@pytest.mark.slow
def test_readers_and_writers_do_not_wait_for_an_import(tmp_path: Path) -> None:
    (tmp_path / "export").write_bytes(waline(blog(2000)))
    with services(tmp_path) as start:
        service = start(notify={"owner": OWNER})
        reader = Reader(service)
        reader.start()
        process = begun(tmp_path, "import", "export")
        posted = []
        while process.poll() is None:
            body = {**COMMENT, "page_url": "/0/", "content": f"meanwhile {len(posted)}"}
            answer = service.ask("POST", "/comments", body=body)
            assert answer.status == 200
            posted.append(answer.json["comment"]["id"])
        told = ended(process)
        reader.stopping = True
        reader.join()
        assert (told.code, told.sums) == (0, (2000, 2000, 0, 0))
        assert {answer.status for answer in reader.answers} == {200}
        totals = [a.json["total"] for a in reader.answers if "total" in a.json]
        assert totals == sorted(totals)
        assert len({*totals}) > 2  # they saw it grow
        waiting = sum(s.status == "waiting" for s in blog(2000) if s.page == "/0/")
        seen = service.ask("GET", "/comments?url=/0/").json["total"]
        assert seen == 667 - waiting + len(posted)
        found = {row[0] for row in rows(service.path, "SELECT id FROM comment WHERE ip <> ''")}
        assert found >= {*posted}
        assert rows(service.path, "SELECT count(*) FROM comment") == [(2000 + len(posted),)]
        checked = ended(begun(tmp_path, "check"))
        assert "wrong" not in checked.text
        assert not re.search("fail +(counters|database)", checked.text)
        assert "Traceback" not in service.said
    text = service.said
    assert text.count("Subject:") <= 1  # of what was posted here: those of ten minutes in one
    assert not re.search(r"\btext \d", text)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute(sql).fetchall()


@pytest.mark.slow
def test_an_import_that_is_killed_leaves_the_service_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "export").write_bytes(waline(blog(2000)))
    with services(tmp_path) as start:
        service = start()
        for least in (0, 100, 300):
            process = begun(tmp_path, "import", "export")
            until(lambda: count_in(service.path) > least)  # noqa: B023
            process.kill()
            process.communicate()
            answer = service.ask("POST", "/comments", body={**COMMENT, "content": f"{least}"})
            assert answer.status == service.ask("GET", "/comments?url=/0/").status == 200
        left = count_in(service.path) - 3
        assert 0 < left < 2000
        told = ended(begun(tmp_path, "import", "export"))
        assert told.sums == (2000, 2000 - left, left, 0)
        assert count_in(service.path) == 2003


@pytest.mark.parametrize(
    "settings",
    [
        {
            "notify_owner": (OWNER,),
            "server_public_url": "https://comments.example",
            "limits_enabled": False,
        }
    ],
)
def test_nobody_is_told_of_what_came_from_elsewhere(
    desk: Desk, app: App, visitor: Visitor, outside: Outside
) -> None:
    """Neither the owner, nor those who are answered: guests, and an account that wrote here."""
    visitor.register("lu@example.cn", nickname="N0")
    app.deliver()
    visitor.verify(outside.code(), "lu@example.cn")
    outside.letters.clear()
    thread = [
        replace(s, at=START - HOUR + n, email=f"n{n % 4}@example.com" if n else "lu@example.cn")
        for n, s in enumerate(blog())
    ]
    visitor.authorization = ("Bearer", visitor.login("lu@example.cn")["token"])
    said = visitor.say("here", page_url="/0/", nickname="N0")["comment"]
    app.deliver()
    outside.letters.clear()
    # It answers what was said here, which is in the file too: as in one that was made of ours.
    twin = Said("77", START, "", "/0/", "here", "N0")
    desk.bring(waline([*thread, twin, Said("78", START, "77", "/0/", "an answer", "Bob")]))
    (answer,) = desk.rows("SELECT * FROM comment WHERE content = 'an answer'")
    assert answer["parent_id"] == said["id"]
    for _ in range(30):
        outside.time += 10 * MINUTE
        app.tick()
        app.deliver()
    assert outside.letters == []
    assert desk.rows("SELECT * FROM outbox") == []
    visitor.say("a new one", page_url="/0/", email="bob@example.com")
    outside.time += 10 * MINUTE
    app.deliver()
    (letter,) = outside.letters  # so that it could have been told
    assert letter.recipient == OWNER
    assert "a new one" in outside.text()
    assert "text " not in outside.text()


# Whose they are


def test_no_account_and_no_comment_of_one_is_touched(
    desk: Desk, app: App, ann: Visitor, owner: Visitor
) -> None:
    ann.say("by an account", nickname="", page_url="/0/")
    Visitor(app, ip="198.51.100.9").say("by a guest", page_url="/0/", email="guest@example.com")
    before = desk.rows("SELECT * FROM comment")
    accounts = desk.rows("SELECT * FROM account")
    user = {"objectId": "1", "display_name": "Owner", "email": OWNER, "type": "administrator"}
    rows = [
        {
            **waline_row(said),
            "user_id": "1",
            "mail": email,
            "role": "admin",
            "type": "administrator",
        }
        for said, email in zip(
            blog(), [OWNER, "ann@example.com", "guest@example.com"] * 4, strict=True
        )
    ]
    users = [user, {**user, "objectId": "2", "email": "new@example.com", "password": "x"}]
    assert desk.bring(as_waline(rows, Users=users)).sums == (12, 12, 0, 0)
    assert desk.rows("SELECT * FROM account") == accounts
    assert desk.rows("SELECT * FROM registration") == []
    after = desk.rows("SELECT * FROM comment")
    assert after[:2] == before
    assert {row["user_id"] for row in after[2:]} == {None}
    listed = ann.listing(url="/0/", limit=100)["comments"]
    mine = [comment for comment in listed if comment["user_id"]]
    assert [comment["content"] for comment in mine] == ["by an account"]
    assert {comment["role"] for comment in listed if comment not in mine} == {""}
    assert "example.com" not in json.dumps(listed)
    assert ann.login()["token"]


def test_secrets_and_whole_addresses_never_come_into_the_file(desk: Desk) -> None:
    secrets = {
        name: f"canary-{name}"
        for name in ("password", "2fa", "token", "mailMd5", "github", "avatar", "uid", "ua", "orig")
    }
    waline_rows = [{**waline_row(said), **secrets} for said in blog()]
    users = [{"objectId": "1", "display_name": "U", "email": "u@example.com", **secrets}]
    twikoo_rows = [{**twikoo_row(said), **secrets, "ups": ["canary-voter"]} for said in blog()]
    ipv6 = [replace(s, ip="2001:db8:12:34:56:78:9a:bc", at=s.at + DAY) for s in blog()]
    told = [
        desk.bring(as_waline(waline_rows, Users=users, Token=[secrets])),
        desk.bring("\n".join(map(json.dumps, twikoo_rows)).encode()),
        desk.bring(isso(blog())),
        desk.bring(wordpress(ipv6)),
    ]
    assert [each.code for each in told] == [0] * 4
    assert b"text 12" in desk.raw
    for word in (b"canary", b"203.0.113.77", b"34:56", b"Mozilla"):
        assert word not in desk.raw
    ips = {row["ip"] for row in desk.rows("SELECT ip FROM comment")}
    assert ips == {"203.0.113.0", "2001:db8:12::"}
    assert {row["masked"] for row in desk.rows("SELECT masked FROM comment")} == {1}


@pytest.mark.parametrize(
    "settings", [{"privacy_show_location": True}, {"privacy_show_location": False}]
)
def test_where_an_address_is_from_is_found_as_for_what_is_written_here(
    desk: Desk, app: App, visitor: Visitor, settings: dict[str, bool]
) -> None:
    shown = "yes" if settings["privacy_show_location"] else "no"
    desk.patch.setenv("COMMENTD_PRIVACY_SHOW_LOCATION", shown)
    here = Visitor(app, ip="1.2.4.8").say("of here", page_url="/a/")["comment"]
    desk.bring(waline([Said("1", ip="1.2.4.8")]))
    assert bool(here["location"]) == settings["privacy_show_location"]
    assert desk.kept[NOON]["location"] == here["location"]


ORIGINAL = '<p class="canary-original">ho <b>ho</b></p>'


def with_original(desk: Desk) -> int:
    """A comment of which the HTML is kept, that its author can claim; its number."""
    rows = [{**twikoo_row(Said("1", email="lu@example.cn", page="/0/")), "comment": ORIGINAL}]
    desk.bring(json.dumps(rows).encode())
    (row,) = desk.rows("SELECT id, content, original FROM comment JOIN import ON comment_id = id")
    assert (row["content"], row["original"]) == ("ho **ho**", ORIGINAL)
    return int(row["id"])


@pytest.mark.parametrize("goes", ["erased by its author", "purged"])
@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_the_html_is_kept_until_the_comment_is_erased(
    desk: Desk, app: App, owner: Visitor, visitor: Visitor, outside: Outside, goes: str
) -> None:
    number = with_original(desk)
    assert ORIGINAL not in json.dumps(visitor.listing(url="/0/"))
    change(owner, f"comments/{number}", content="mended")
    assert desk.rows("SELECT original FROM import") == [{"original": ORIGINAL}]
    DONE_HERE[goes](owner, visitor, outside)
    app.tick()
    app.keep()
    app.close()
    assert b"canary-original" not in desk.raw
    assert desk.bring(desk.folder / "export").sums == (1, 0, 1, 0)
    assert b"canary-original" not in desk.raw


# How it works

PEAK = """
import pathlib, re, sys
import commentd
code = commentd.main(sys.argv[1:])
print("peak", re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
sys.exit(code)
"""


def peak(folder: Path, *words: str) -> int:
    """The most memory that it had, in KiB. (RUSAGE_SELF would have that of this process.)"""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *words],
        cwd=folder,
        env={**environment(), "PYTHONPATH": str(PROGRAM.parent)},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


@pytest.mark.long
@pytest.mark.parametrize(
    ("product", "few", "words"),
    [("waline", 2000, ""), ("wordpress", 1000, "--dry-run"), ("isso", 1000, "--dry-run")],
    ids=["waline", "wordpress", "isso"],
)
def test_memory_does_not_grow_with_the_file(
    tmp_path: Path, product: str, few: int, words: str
) -> None:
    """Ten times the comments: a tenth more is room for what is measured, not for a list of them.
    What comes after reading is the same for all products."""
    found = {}
    for count in (few, 10 * few):
        folder = tmp_path / str(count)
        folder.mkdir()
        thread = [replace(said, text=said.text + " word" * 40) for said in blog(count)]
        (folder / "export").write_bytes(FILES[product](thread))
        found[count] = peak(folder, "import", "export", *words.split())
        assert count_in(folder / "commentd.db") == (0 if words else count)
    assert found[10 * few] < 1.1 * found[few], found


def on_a_terminal(folder: Path, *words: str) -> tuple[int, str]:
    """Exit code and errors of the program, whose errors go to a terminal."""
    ours, theirs = pty.openpty()
    process = begun(folder, *words, stdin=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    text, _ = process.communicate(timeout=60)
    assert "comments read" in text
    return process.returncode, seen.decode()


@pytest.mark.slow
@every
def test_progress_is_shown_on_a_terminal_and_reaches_its_end(tmp_path: Path, product: str) -> None:
    (tmp_path / "export").write_bytes(FILES[product](blog(300)))
    code, shown = on_a_terminal(tmp_path, "import", "export")
    assert code == 0
    assert re.search(r"\r100 % read\r?\n", shown)
    assert re.search(r"\r100 % brought in\r?\n", shown)
    numbers = [int(number) for number in re.findall(r"\r(\d+) % brought in", shown)]
    assert numbers == sorted(numbers)
    assert all(0 <= number <= 100 for number in map(int, re.findall(r"(-?\d+) %", shown)))


@pytest.mark.slow
def test_elsewhere_only_the_report_is_printed(tmp_path: Path) -> None:
    (tmp_path / "export").write_bytes(waline(blog()))
    told = ended(begun(tmp_path, "import", "export"))
    assert (told.code, told.errors) == (0, "")
    assert "%" not in told.text
