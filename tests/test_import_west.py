"""What comes in from Cusdis, Disqus, WordPress, Isso, Remark42, Commento and Comentario: whole
files field by field, each odd case by itself, and files that are hostile, broken or unknown.

The files are made by hand from what each product's own code writes; `canary` marks in them what
must not come into the database."""

import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest
from conftest import Outside, Visitor, assert_whole, dump

from commentd import Config, Fault, Store, foreign, main, make_app, proper_nickname, xml_records

MOVING = Path(__file__).parent / "moving"
PROGRAM = Path(__file__).parent.parent / "commentd.py"
NOON = 1_704_110_400  # 2024-01-01 12:00:00 UTC
LINK = '<a href="{}" rel="nofollow ugc noopener noreferrer">{}</a>'


@dataclass(frozen=True)
class Told:
    """What the program answered."""

    code: int
    text: str
    errors: str

    @property
    def sums(self) -> tuple[int, ...]:
        """Comments read, new, here already, skipped."""
        return tuple(map(int, re.findall(r"\d+", self.text.splitlines()[0].partition(":")[2])))

    @property
    def skipped(self) -> dict[str, list[str]]:
        """The ids that were left out, by the reason."""
        found = re.findall(r"^ +skipped: (.+?): (.+)$", self.text, re.M)
        return {reason: ids.split(", ") for reason, ids in found}

    @property
    def failure(self) -> str:
        """What went wrong: one sentence on stderr or, where something was read, in the report."""
        assert self.code == 1
        pattern = (
            r"commentd: (.+)\n" if self.errors else r"(?m)^  (.+): what stands before is taken$"
        )
        (said,) = re.findall(pattern, self.errors or self.text)
        assert not self.errors or (self.text, self.errors.count("\n")) == ("", 1)
        return str(said)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the program is started: no settings, no database yet."""
    for name in [name for name in os.environ if name.startswith("COMMENTD_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


Run = Callable[..., Told]


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the program in this process: that is many times faster than a new one."""

    def run(*words: object) -> Told:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as wrong:
            code = int(str(wrong.code))
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return Told(code, told.out, told.err)

    return run


def child(folder: Path, *words: object, memory: int = 0, seconds: int = 60) -> Told:
    """Run it in a process of its own, which may have so many MB more than it begins with."""
    lines = ["import commentd, pathlib, resource, sys"]
    if memory:
        lines += [
            "now = int(pathlib.Path('/proc/self/statm').read_text().split()[0])",
            f"most = now * resource.getpagesize() + {memory << 20}",
            "resource.setrlimit(resource.RLIMIT_AS, (most, most))",
        ]
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        "\n".join([*lines, "sys.exit(commentd.main())"]),
    ]
    kept = {name: text for name, text in os.environ.items() if not name.startswith("COMMENTD_")}
    done = subprocess.run(
        [*command, *map(str, words)],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(PROGRAM.parent)},
        capture_output=True,
        encoding="utf-8",
        timeout=seconds,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Told(done.returncode, done.stdout, done.stderr)


# What came in


@dataclass(frozen=True)
class Row:
    """A comment as the database holds it, or as it must. Times as texts, in UTC."""

    page: str
    created: str
    nickname: str
    text: str  # as it was written, or as it is shown where the source had HTML
    above: str | None = None  # when the comment that it answers was written
    status: str = "visible"
    email: str = ""
    website: str = ""
    likes: int = 0
    pinned: int = 0
    edited: str | None = None
    ip: str = ""


def moment(seconds: int | None) -> str | None:
    """A time, or `now` for about that of the test."""
    if seconds is None:
        return None
    time, now = datetime.fromtimestamp(seconds, UTC), datetime.now(UTC)
    return "now" if abs((now - time).days) < 2 else str(time)[:19]


def reading(folder: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"file:{folder / 'commentd.db'}?mode=ro", uri=True)
    db.row_factory = sqlite3.Row
    return db


def rows(folder: Path, text: str = "content") -> list[Row]:
    """All comments, in the order of their pages and times."""
    sql = f"""SELECT page.key AS page, c.created_at, c.nickname, c.{text} AS text,
                     above.created_at AS above, c.status, c.email, c.website, c.likes, c.pinned,
                     c.edited_at, c.ip
                FROM comment AS c JOIN page ON page.id = c.page_id
                LEFT JOIN comment AS above ON above.id = c.parent_id
               ORDER BY page.key, c.created_at, c.nickname"""
    with closing(reading(folder)) as db:
        found = [dict(row) for row in db.execute(sql)]
    for row in found:
        row["created"], row["edited"] = moment(row.pop("created_at")), moment(row.pop("edited_at"))
        row["above"] = moment(row["above"])
    return [Row(**row) for row in found]


def pages(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Comments that are shown, views, and whether closed, of each page."""
    with closing(reading(folder)) as db:
        found = db.execute("SELECT key, total, views, closed FROM page ORDER BY key")
        return {key: tuple(rest) for key, *rest in found}


def nothing_in(folder: Path) -> bool:
    return not (folder / "commentd.db").exists() or not (rows(folder) or pages(folder))


def bytes_of(folder: Path) -> bytes:
    """All that lies in the database, what was deleted from it included."""
    return b"".join(path.read_bytes() for path in folder.glob("commentd.db*"))


def load(script: str | Path, path: Path) -> Path:
    """A database made by an SQL script."""
    text = script if isinstance(script, str) else script.read_text("utf-8")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"BEGIN; {text} COMMIT;")
    return path


def given(name: str, folder: Path) -> Path:
    """One of the files beside this one, as it would be imported."""
    source = MOVING / name
    if source.suffix == ".sql":
        return load(source, folder / f"{source.stem}.db")
    return source


# Whole files

NOBODY = "Anonymous"  # who gave no name


@dataclass(frozen=True)
class Whole:
    """A file, and what must come of it; the comments stand in a file beside it, a line each."""

    file: str
    pages: dict[str, tuple[int, int, int]]  # comments that are shown, views, whether closed
    skipped: list[str]
    orphans: int = 1
    timeless: int = 1
    column: str = "content"
    words: tuple[str, ...] = ()

    @property
    def product(self) -> str:
        return {"isso.json": "isso-json"}.get(self.file, self.file.partition(".")[0])

    @property
    def rows(self) -> list[Row]:
        lines = (MOVING / f"{self.file}.rows").read_text("utf-8").splitlines()
        return [Row(**json.loads(line)) for line in lines]


WHOLE = [
    Whole(
        "disqus.xml",
        {"/2024/closed": (2, 0, 1), "/2024/first": (9, 0, 0)},
        ["20005", "20010", "20011", "20018", "20019"],
        column="html",
        words=("--host", "blog.example"),
    ),
    Whole(
        "wordpress.xml",
        {"/2024/hello-world": (7, 0, 0), "/?p=42": (2, 0, 0), "/about": (1, 0, 1)},
        ["108", "109", "110", "114"],
        orphans=2,
        timeless=2,
        column="html",
    ),
    Whole(
        "isso.sql",
        {"/blog/first": (5, 0, 0), "/blog/中文?id=3": (3, 0, 0)},
        ["6", "10", "11"],
        timeless=2,
    ),
    Whole(
        "isso.json",
        {"/blog/first": (3, 0, 0), "/blog/second": (2, 0, 0)},
        ["/blog/second/ 2"],
        orphans=0,
    ),
    Whole(
        "remark42.jsonl",
        {"/2024/closed": (2, 0, 1), "/2024/first": (5, 0, 0)},
        [f"11111111-aaaa-4aaa-8aaa-{n:012}" for n in (6, 10, 11)],
    ),
    Whole(
        "commento.json",
        {"/2024/first": (5, 0, 0), "/2024/second": (2, 0, 0)},
        [f"{n:02}{'c0ffee' * 10}{n:02}" for n in (8, 9)],
    ),
    Whole(
        "comentario.json",
        {"/2024/closed": (2, 0, 1), "/2024/first": (6, 321, 0), "/2024/nobody": (0, 12, 0)},
        [f"0000000c-0000-4000-8000-{n:012}" for n in (8, 12)],
        words=("--host", "blog.example"),
    ),
    Whole(
        "cusdis.sql",
        {"/2024/first": (4, 0, 0), "/2024/second": (3, 0, 0)},
        ["c07", "c08", "c12", "c13", "c14"],
    ),
]
ALL = pytest.mark.parametrize("whole", WHOLE, ids=lambda whole: whole.file)


@ALL
def test_a_file_comes_in_whole(run: Run, folder: Path, whole: Whole) -> None:
    told = run("import", given(whole.file, folder), *whole.words)
    assert (told.code, told.errors) == (0, "")
    assert rows(folder, whole.column) == whole.rows
    assert pages(folder) == whole.pages
    assert_whole(str(folder / "commentd.db"))
    assert told.text.startswith(f"{whole.product}: ")
    skipped = sorted(each[:36] for ids in told.skipped.values() for each in ids)
    assert skipped == sorted(each[:36] for each in whole.skipped)
    new, left = len(whole.rows), len(whole.skipped)
    assert told.sums == (new + left, new, 0, left)
    orphans = re.findall(r"^  (\d+) stand at the top, since what they answer ", told.text, re.M)
    timeless = re.findall(r"^  (\d+) without a time that can be: ", told.text, re.M)
    assert sum(map(int, orphans)) == whole.orphans
    assert timeless == [str(whole.timeless)] * (whole.timeless > 0)


@ALL
def test_a_second_import_changes_nothing(run: Run, folder: Path, whole: Whole) -> None:
    file = given(whole.file, folder)
    first = run("import", file, *whole.words)
    before = dump("commentd.db")
    again = run("import", file, *whole.words)
    read, new, _, skipped = first.sums
    assert (again.code, again.sums) == (0, (read, 0, new, skipped))
    assert dump("commentd.db") == before


@ALL
def test_a_dry_run_tells_the_same_and_writes_nothing(run: Run, folder: Path, whole: Whole) -> None:
    file = given(whole.file, folder)
    first = run("import", file, "--dry-run", *whole.words)
    assert (first.code, (folder / "commentd.db").exists()) == (0, False)
    run("import", put(folder, disqus(Said())))
    before = dump("commentd.db")
    dry = run("import", file, "--dry-run", *whole.words)
    assert (dry.text, dump("commentd.db")) == (first.text, before)
    real = run("import", file, *whole.words)
    assert dry.text == real.text + "this was a dry run: nothing is written\n"


@ALL
def test_no_secret_of_the_source_comes_in(run: Run, folder: Path, whole: Whole) -> None:
    run("import", given(whole.file, folder), *whole.words)
    said = bytes_of(folder)
    assert whole.rows[-1].nickname.encode() in said  # so it would be found
    assert re.findall(rb"(?i)[\w-]*(?:canary|ca0a4e|5e11e5)[\w-]*", said) == []


@ALL
def test_authors_are_guests_whatever_they_were(run: Run, folder: Path, whole: Whole) -> None:
    run("import", given(whole.file, folder), *whole.words)
    with closing(reading(folder)) as db:
        assert db.execute("SELECT DISTINCT user_id FROM comment").fetchall()[0][:] == (None,)
        for table in ("account", "registration", "subscription", "outbox", "notification", "block"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0


@ALL
def test_readers_see_what_came_in(
    run: Run, folder: Path, outside: Outside, config: Config, whole: Whole
) -> None:
    run("import", given(whole.file, folder), *whole.words)
    app = make_app(replace(config, database_path="commentd.db"), outside.world, rounds=1)
    try:
        visitor = Visitor(app)
        for page, (total, views, closed) in whole.pages.items():
            listing = visitor.listing(url=page, view="threads", limit=100)
            said = [each for top in listing["comments"] for each in (top, *top["replies"])]
            names = [each["nickname"] for each in said if not each.get("deleted")]
            shown = [r.nickname for r in whole.rows if (r.page, r.status) == (page, "visible")]
            assert sorted(names) == sorted(shown)
            assert (listing["total"], listing["settings"]["closed"]) == (total, bool(closed))
            assert listing["views"] == views + 1
            assert {(each["user_id"], each["role"]) for each in said} <= {(None, "")}
            graves = [r for r in whole.rows if (r.page, r.status) == (page, "deleted")]
            assert len([each for each in said if each.get("deleted")]) == len(graves)
            assert "@" not in json.dumps(said)
    finally:
        app.close()


# Small files of any product


@dataclass(frozen=True)
class Said:
    """A comment, before it is put into a product's words. `page` is a path."""

    id: str = "1"
    text: Any = "Hello"
    parent: str = ""
    page: str = "/a/"
    nickname: Any = "Ann"
    email: Any = ""
    website: Any = ""
    time: int = NOON

    @property
    def iso(self) -> str:
        return f"{datetime.fromtimestamp(self.time, UTC):%Y-%m-%dT%H:%M:%SZ}"

    @property
    def sql(self) -> str:
        return self.iso[:19].replace("T", " ")


SITE = "https://blog.example"


def paths(said: tuple[Said, ...]) -> list[str]:
    return list(dict.fromkeys(each.page for each in said))


def disqus(*said: Said) -> str:
    threads = "".join(
        f"""<thread dsq:id="9{i}"><id /><link>{SITE}{escape(path)}</link><title>T</title>
        <createdAt>2024-01-01T00:00:00Z</createdAt><isClosed>false</isClosed>
        <isDeleted>false</isDeleted></thread>\n"""
        for i, path in enumerate(paths(said))
    )
    posts = "".join(
        f"""<post dsq:id="{each.id}"><id /><message>{escape(each.text)}</message>
        <createdAt>{each.iso}</createdAt><isDeleted>false</isDeleted><isSpam>false</isSpam>
        <author><email>{escape(each.email)}</email><name>{escape(each.nickname)}</name>
        <isAnonymous>true</isAnonymous></author><thread dsq:id="9{paths(said).index(each.page)}" />
        {f'<parent dsq:id="{each.parent}" />' if each.parent else ""}</post>\n"""
        for each in said
    )
    return f"""<?xml version="1.0" encoding="utf-8"?>
<disqus xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals">
{threads}{posts}</disqus>
"""


def wxr_comment(said: Said) -> str:
    fields = {"id": said.id, "author": said.nickname, "author_email": said.email,
              "author_url": said.website, "author_IP": "", "date": said.sql, "date_gmt": said.sql,
              "content": said.text, "approved": "1", "type": "comment",
              "parent": said.parent or "0"}  # fmt: skip
    tags = (f"<wp:comment_{k}>{escape(v)}</wp:comment_{k}>" for k, v in fields.items())
    return f"<wp:comment>{''.join(tags)}</wp:comment>\n"


def wordpress(*said: Said) -> str:
    items = "".join(
        f"""<item><title>T</title><link>{SITE}{escape(path)}</link><wp:post_id>{i}</wp:post_id>
        <wp:post_date_gmt>2024-01-01 00:00:00</wp:post_date_gmt>
        <wp:comment_status>open</wp:comment_status><wp:post_type>post</wp:post_type>
        {"".join(wxr_comment(each) for each in said if each.page == path)}</item>\n"""
        for i, path in enumerate(paths(said))
    )
    return f"""<?xml version="1.0" encoding="UTF-8" ?>
<rss version="2.0" xmlns:wp="http://wordpress.org/export/1.2/">
<channel><wp:wxr_version>1.2</wp:wxr_version>
{items}</channel></rss>
"""


def isso_json(*said: Said) -> str:
    threads = [
        {"id": path, "title": "T", "comments": [
            {"id": s.id and int(s.id), "author": s.nickname, "email": s.email,
             "website": s.website, "remote_addr": "", "created": s.sql, "text": s.text}
            for s in said if s.page == path]}
        for path in paths(said)
    ]  # fmt: skip
    return json.dumps(threads)


def remark42(*said: Said) -> str:
    lines: list[Any] = [{"version": 1, "users": [], "posts": []}]
    lines += [
        {"id": s.id, "pid": s.parent, "text": "", "orig": s.text,
         "user": {"name": s.nickname, "id": "anonymous_1", "picture": "", "admin": False},
         "locator": {"site": "blog", "url": SITE + s.page}, "score": 0, "vote": 0, "time": s.iso}
        for s in said
    ]  # fmt: skip
    return "".join(json.dumps(line) + "\n" for line in lines)


def commento(*said: Said) -> str:
    comments = [
        {"commentHex": f"{s.id:0>64}", "domain": "blog.example", "url": s.page,
         "commenterHex": f"c{i}", "markdown": s.text, "html": "",
         "parentHex": f"{s.parent:0>64}" if s.parent else "root", "score": 0, "state": "approved",
         "creationDate": s.iso, "direction": 0, "deleted": False}
        for i, s in enumerate(said)
    ]  # fmt: skip
    people = [
        {"commenterHex": f"c{i}", "email": s.email, "name": s.nickname, "link": s.website,
         "photo": "undefined", "provider": "commento", "joinDate": s.iso, "isModerator": False}
        for i, s in enumerate(said)
    ]  # fmt: skip
    return json.dumps({"version": 1, "comments": comments, "commenters": people})


def uuid(number: object) -> str:
    return f"00000000-0000-4000-8000-{number:0>12}"


def comentario(*said: Said) -> str:
    pages = [
        {"id": uuid(9000 + i), "domainId": uuid(1), "path": path, "title": "T", "isReadonly": False}
        for i, path in enumerate(paths(said))
    ]
    comments = [
        {"id": uuid(s.id), "parentId": uuid(s.parent) if s.parent else "",
         "pageId": uuid(9000 + paths(said).index(s.page)), "markdown": s.text, "html": "",
         "isApproved": True, "isPending": False, "isDeleted": False, "isSticky": False, "score": 0,
         "createdTime": s.iso, "userCreated": uuid(8_000_000 + i),
         "url": f"{SITE}{s.page}#comentario-{uuid(s.id)}"}
        for i, s in enumerate(said)
    ]  # fmt: skip
    people = [
        {"id": uuid(8_000_000 + i), "email": s.email, "name": s.nickname,
         "websiteUrl": s.website, "isCommenter": True}
        for i, s in enumerate(said)
    ]  # fmt: skip
    data = {"version": 3, "pages": pages, "comments": comments, "commenters": people}
    return json.dumps(data)


def filled(path: Path, name: str, rows: dict[str, list[tuple[Any, ...]]]) -> Path:
    """A database with the tables of one of the files beside this one, and these rows."""
    script = (MOVING / name).read_text("utf-8")
    path.unlink(missing_ok=True)
    load("\n".join(re.findall(r"^CREATE (?:TABLE|INDEX).*?;$", script, re.M | re.S)), path)
    with closing(sqlite3.connect(path)) as db, db:
        for table, values in rows.items():
            for row in values:
                db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
    return path


def isso(path: Path, *said: Said) -> Path:
    threads = paths(said)
    comments: list[tuple[Any, ...]] = [
        (threads.index(s.page), int(s.id), int(s.parent) if s.parent else None, float(s.time),
         None, 1, "203.0.113.0", s.text, s.nickname, s.email, s.website, 0, 0, b"\0", 0)
        for s in said
    ]  # fmt: skip
    pages: list[tuple[Any, ...]] = [(i, p, "T") for i, p in enumerate(threads)]
    return filled(path, "isso.sql", {"threads": pages, "comments": comments})


def cusdis(path: Path, *said: Said) -> Path:
    at = NOON * 1000
    comments: list[tuple[Any, ...]] = [
        (s.id, s.page, s.time * 1000, at, None, None, s.email, s.nickname, s.text, 1,
         s.parent or None)
        for s in said
    ]  # fmt: skip
    project = ("p", "T", at, at, None, "u", None, None, None, None, None)
    pages: list[tuple[Any, ...]] = [(p, p, SITE + p, "T", at, at, "p") for p in paths(said)]
    return filled(path, "cusdis.sql", {"projects": [project], "pages": pages, "comments": comments})


TEXTS: dict[str, Callable[..., str]] = {
    "disqus": disqus,
    "wordpress": wordpress,
    "isso-json": isso_json,
    "remark42": remark42,
    "commento": commento,
    "comentario": comentario,
}
TABLES: dict[str, Callable[..., Path]] = {"isso": isso, "cusdis": cusdis}
MADE = [*TEXTS, *TABLES]
EACH = pytest.mark.parametrize("product", MADE)
XML = pytest.mark.parametrize("product", ["disqus", "wordpress"])
SQLITE = pytest.mark.parametrize("product", TABLES)
THREADED = pytest.mark.parametrize("product", [name for name in MADE if name != "isso-json"])
JSON = pytest.mark.parametrize("product", ["isso-json", "remark42", "commento", "comentario"])


def made(product: str, folder: Path, *said: Said) -> Path:
    """A file with these comments."""
    path = folder / "source"
    if product in TABLES:
        return TABLES[product](path, *said)
    path.write_text(TEXTS[product](*said), "utf-8")
    return path


def put(folder: Path, text: str | bytes) -> Path:
    path = folder / "source"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def came(run: Run, folder: Path, product: str, *said: Said, column: str = "content") -> list[Row]:
    """What comes of these comments."""
    told = run("import", made(product, folder, *said))
    assert (told.code, told.errors) == (0, ""), told
    assert_whole(str(folder / "commentd.db"))
    return rows(folder, column)


@EACH
def test_a_small_file_of_each_product_comes_in(run: Run, folder: Path, product: str) -> None:
    said = Said(email="ann@example.com", website="https://ann.example/")
    kept: dict[str, str] = {"email": said.email, "website": said.website}
    if product in ("disqus", "remark42", "cusdis"):
        kept["website"] = ""
    if product == "remark42":
        kept["email"] = ""
    found = came(run, folder, product, said)
    assert [replace(row, ip="") for row in found] == [
        Row("/a", "2024-01-01 12:00:00", "Ann", "Hello", **kept)
    ]


def several(name: str, values: Iterable[Any]) -> list[Said]:
    """Comments that differ in one field, a second apart."""
    return [
        replace(Said(str(n), f"text {n}", time=NOON + n), **{name: value})
        for n, value in enumerate(values, 1)
    ]


# Authors


NAMES = {
    "x" * 300: "x" * 50,
    "名" * 300: "名" * 50,
    "👨‍👩‍👧‍👦" * 60: "👨",
    "  Ann\u202e\u200b \t": "Ann",
    "A\u0301\u0301\u0301\u0301\u0301nn": "",
    "An\nn": "An",
    "": NOBODY,
    " \u3164\u2800 ": NOBODY,
    "\u202e": NOBODY,
    "Anonymous\ufffd\ue000": "Anonymous",
}
CONTROLS = {"A\0n\x07\x1b[31mn\x7f\x85": "A", "\0": NOBODY}


@EACH
def test_a_name_becomes_one_that_could_be_written_here(
    run: Run, folder: Path, product: str
) -> None:
    names = NAMES if product in ("disqus", "wordpress") else NAMES | CONTROLS
    found = came(run, folder, product, *several("nickname", names))
    assert len(found) == len(names)
    for row, begins in zip(found, names.values(), strict=True):
        assert row.nickname.startswith(begins)
        assert proper_nickname(row.nickname) == row.nickname


WEBSITES = [
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "http://", "undefined", "#",
    "https://ann:pw@ann.example/", 'https://ann.example/"onload="x', "https://ann.example/ x",
    "ftp://ann.example", "x" * 3000, "https://ann.example/" + "x" * 3000, "https://[::1", "null",
    "javascript://ann.example/%0aalert(1)", "/ann", "",
]  # fmt: skip


@pytest.mark.parametrize("product", [p for p in MADE if p not in ("disqus", "remark42", "cusdis")])
def test_a_bad_website_is_dropped(run: Run, folder: Path, product: str) -> None:
    good = "https://ann.example/?a=1&b=2"
    found = came(run, folder, product, *several("website", [*WEBSITES, good]))
    kept = [row.website for row in found]
    assert (kept[-1], [each for each in kept[:-1] if each]) == (good, [])


EMAILS = [
    "Ann", "ann@", "ann@example.com, b@example.com", "a\u00e4@example.com", "a@b", "",
    "x" * 300 + "@example.com", "=?utf-8?q?x?=@example.com", "Ann <ann@example.com>",
]  # fmt: skip


@pytest.mark.parametrize("product", [p for p in MADE if p != "remark42"])
def test_a_bad_email_is_dropped(run: Run, folder: Path, product: str) -> None:
    found = came(run, folder, product, *several("email", [*EMAILS, " Ann@Example.com "]))
    kept = [row.email for row in found]
    assert (kept[-1], [each for each in kept[:-1] if each]) == ("ann@example.com", [])


# Texts


HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)>"
    '<a href="javascript:alert(1)">a</a> [b](javascript:alert(1)) '
    "<iframe src=//evil.example></iframe><b onclick=alert(1)>c</b> ![d](https://evil.example/x.png)"
)


@EACH
def test_nothing_hostile_is_shown(run: Run, folder: Path, product: str) -> None:
    (row,) = came(run, folder, product, Said(text=HOSTILE), column="html")
    tags = re.findall(r"<[^>]*>", row.text)
    assert tags
    assert [
        t for t in tags if not re.fullmatch(r"</?(p|strong|br|a( href=\"https?://.*)?)>", t)
    ] == []


@EACH
def test_a_long_text_is_kept_whole_and_shown_as_plain_text(
    run: Run, folder: Path, product: str
) -> None:
    text = "**bold** " * 2000 + "end"
    (row,) = came(run, folder, product, Said(text=text))
    assert len(row.text) > 17_000
    assert row.text.endswith("end")
    (shown,) = rows(folder, "html")
    assert ("<strong>" in shown.text, shown.text.count("bold")) == (False, 2000)


@EACH
def test_a_text_of_a_megabyte_is_no_trouble(run: Run, folder: Path, product: str) -> None:
    (row,) = came(run, folder, product, Said(text="word " * 200_000))
    assert 0 < len(row.text.encode()) <= 65_536


@EACH
def test_without_a_text_nothing_comes_in(run: Run, folder: Path, product: str) -> None:
    said = several("text", ["", " \n\t ", "\u200b\u3164", "Here"])
    told = run("import", made(product, folder, *said))
    assert (told.code, told.sums) == (0, (4, 1, 0, 3))
    assert [reason for reason in told.skipped if "no text" in reason]
    assert [row.text for row in rows(folder)] == ["Here"]


@THREADED
def test_without_a_text_but_with_an_answer_it_keeps_its_place(
    run: Run, folder: Path, product: str
) -> None:
    found = came(run, folder, product, Said(text=""), Said("2", "Here", "1", time=NOON + 1))
    assert [(row.text, row.status, row.above) for row in found] == [
        ("", "deleted", None),
        ("Here", "visible", "2024-01-01 12:00:00"),
    ]


@JSON
def test_half_a_character_is_lost_alone(run: Run, folder: Path, product: str) -> None:
    halves = ["\ud83d", "\ude00\ud83d", "\udfff"]
    said = [Said(str(n), f"be{x}fore", nickname=f"An{x}n") for n, x in enumerate(halves)]
    found = came(run, folder, product, *said)
    assert [re.sub("[\ufffd?]+", "", row.text + row.nickname) for row in found] == ["beforeAnn"] * 3
    assert re.search(rb"\xed[\xa0-\xbf]", bytes_of(folder)) is None


@JSON
def test_both_halves_are_one_character(run: Run, folder: Path, product: str) -> None:
    assert "\\ud83d\\ude00" in TEXTS[product](Said(text="😀"))
    assert [row.text for row in came(run, folder, product, Said(text="😀"))] == ["😀"]


@SQLITE
def test_a_text_that_is_no_utf8_is_lost_where_it_is_broken_alone(
    run: Run, folder: Path, product: str
) -> None:
    path = made(product, folder, Said(text="x"), Said("2", "Whole"))
    name = "text" if product == "isso" else "content"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"UPDATE comments SET {name} = CAST(X'6265FF666F7265' AS TEXT) WHERE id = '1'")
    told = run("import", path)
    assert (told.code, told.sums) == (0, (2, 2, 0, 0))
    assert sorted(row.text for row in rows(folder)) == ["Whole", "be\ufffdfore"]


# Threads


@THREADED
def test_a_circle_of_answers_is_cut(run: Run, folder: Path, product: str) -> None:
    said = [Said(str(n), f"text {n}", str(n % 3 + 1), time=NOON + n) for n in (1, 2, 3)]
    own = Said("7", "text 7", "7", time=NOON + 7)
    found = came(run, folder, product, *said, own)
    assert [row.text for row in found] == ["text 1", "text 2", "text 3", "text 7"]
    assert None in [row.above for row in found[:3]]
    assert found[3].above is None


@THREADED
def test_an_answer_to_another_page_stands_at_the_top(run: Run, folder: Path, product: str) -> None:
    told = run("import", made(product, folder, Said(), Said("2", "There", "1", page="/b/")))
    assert [(row.page, row.above) for row in rows(folder)] == [("/a", None), ("/b", None)]
    assert "\n  1 stand at the top, since what they answer " in told.text


@pytest.mark.slow
@THREADED
def test_answers_far_below_each_other_come_in_from_the_last(
    run: Run, folder: Path, product: str
) -> None:
    """Deeper than Python calls itself."""
    deep = sys.getrecursionlimit() + 50 if product == "remark42" else 60
    said = [Said(str(n), f"text {n}", str(n - 1), time=NOON + n) for n in range(deep, 1, -1)]
    found = came(run, folder, product, *said, Said(time=NOON + 1))
    times = [row.created for row in found]
    assert [row.above for row in found] == [None, *times[:-1]]


@EACH
def test_the_spellings_of_a_page_are_one(run: Run, folder: Path, product: str) -> None:
    spelt = ["/a/", "/a", "/a/index.html", "/a/?utm_source=x", "/%61/#top"]
    found = came(run, folder, product, *several("page", spelt))
    assert [row.page for row in found] == ["/a"] * len(spelt)
    assert pages(folder) == {"/a": (len(spelt), 0, 0)}


@pytest.mark.parametrize("product", TEXTS)
def test_the_same_comment_twice_in_a_file_is_one(run: Run, folder: Path, product: str) -> None:
    told = run("import", made(product, folder, Said(), Said()))
    assert (told.code, told.sums[:2]) == (0, (2, 1))
    assert len(rows(folder)) == 1


@EACH
def test_a_time_that_can_not_be_becomes_that_of_the_import(
    run: Run, folder: Path, product: str
) -> None:
    times = [int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1, 3000, 9999)]
    told = run("import", made(product, folder, *several("time", times)))
    assert [row.created for row in rows(folder)] == ["now"] * 3
    assert "\n  3 without a time that can be: " in told.text


# What each product does by itself


def test_disqus_threads_without_a_link_have_their_identifier_as_page(
    run: Run, folder: Path
) -> None:
    text = disqus(Said()).replace(f"<id /><link>{SITE}/a/</link>", "<id>/by/id/</id><link />", 1)
    assert "/by/id/" in text
    assert run("import", put(folder, text)).code == 0
    assert [row.page for row in rows(folder)] == ["/by/id"]


def test_comments_of_a_disqus_thread_that_was_deleted_are_not_shown(run: Run, folder: Path) -> None:
    text = disqus(Said(), Said("2", "Other", page="/b/"))
    text = text.replace("<isDeleted>false", "<isDeleted>true", 1)
    assert text.index("<isDeleted>true") < text.index("</thread>")
    assert run("import", put(folder, text)).code == 0
    assert [row.page for row in rows(folder) if row.status == "visible"] == ["/b"]


def test_disqus_posts_that_lack_what_may_be_absent_come_in(run: Run, folder: Path) -> None:
    text = disqus(Said())
    text = re.sub("<isDeleted>.*</isSpam>|<email>.*</email>|<title>.*</title>", "", text)
    assert "<isSpam>" not in text
    assert run("import", put(folder, text)).code == 0
    assert rows(folder) == [Row("/a", "2024-01-01 12:00:00", "Ann", "Hello")]


def test_posts_of_disqus_may_come_before_their_threads(run: Run, folder: Path) -> None:
    text = disqus(Said())
    (thread,) = re.findall("(?s)<thread dsq:id=.*</thread>\n", text)
    text = text.replace(thread, "").replace("</disqus>", thread + "</disqus>")
    assert run("import", put(folder, text)).code == 0
    assert [row.page for row in rows(folder)] == ["/a"]


def test_without_a_host_a_file_of_several_hosts_says_which_there_are(
    run: Run, folder: Path
) -> None:
    told = run("import", given("disqus.xml", folder))
    said = told.text + told.errors
    assert "--host" in said
    assert {"blog.example", "elsewhere.example"} <= set(re.findall(r"[\w.]+\.example", said))
    # Nothing of one blog stands on a page of the other.
    found = rows(folder) if (folder / "commentd.db").exists() else []
    assert {row.page for row in found} <= {"/2024/first", "/2024/closed"} or found == []


def test_each_host_of_a_file_can_be_imported(run: Run, folder: Path) -> None:
    told = run("import", given("disqus.xml", folder), "--host", "elsewhere.example")
    assert told.code == 0
    assert [(row.page, row.nickname) for row in rows(folder)] == [("/mirror", "Nora")]


def test_a_host_that_no_page_is_of_is_refused_and_the_others_are_counted(
    run: Run, folder: Path
) -> None:
    told = run("import", given("disqus.xml", folder), "--host", "none.example")
    assert re.search(
        r"none\.example.*blog\.example \(\d+\), elsewhere\.example \(1\)", told.failure
    )
    assert not (folder / "commentd.db").exists()


@pytest.mark.parametrize("product", ["isso", "commento"])
def test_a_host_is_refused_where_the_file_names_none(run: Run, folder: Path, product: str) -> None:
    told = run("import", made(product, folder, Said()), "--host", "nope.example")
    assert "name none" in told.failure
    assert not (folder / "commentd.db").exists()


def test_the_reason_of_an_answer_at_the_top_is_the_right_one(run: Run, folder: Path) -> None:
    said = [
        Said("1"),
        Said("2", parent="1", page="/b/", time=NOON + 1),
        Said("3", parent="77", time=NOON + 2),
        Said("4", parent="5", time=NOON + 3),
        Said("5", page=f"/{'x' * 3000}/", time=NOON + 4),
        Said("6", parent="6", time=NOON + 5),
    ]
    told = run("import", put(folder, remark42(*said)))
    reasons = re.findall(r"^  1 stand at the top, since (.+): (.+)$", told.text, re.M)
    assert dict(reasons) == {
        "what they answer is on another page": "2",
        "what they answer is not in the file": "3",
        "what they answer is skipped": "4",
        "they answer themselves": "6",
    }
    assert [row.above for row in rows(folder)] == [None] * 5  # all but the fifth


@pytest.mark.parametrize("product", ["disqus", "wordpress"])
@pytest.mark.parametrize("stray", [b"x", b"0", b"\xff", b"\xff\xff ", b"# made by a tool\n"])
def test_what_stands_before_an_xml_by_accident_is_passed_over(
    run: Run, folder: Path, product: str, stray: bytes
) -> None:
    text = TEXTS[product](Said("1"), Said("2", parent="1", time=NOON + 1))
    text = text if text.startswith("<?xml") else f'<?xml version="1.0"?>{text}'
    for words in ([], ["--format", product, "--dry-run"]):
        told = run("import", put(folder, stray + text.encode()), *words)
        assert (told.code, told.sums[0]) == (0, 2)


def test_the_export_of_the_theme_unit_test_is_known(run: Run, folder: Path) -> None:
    """WordPress's own file for those who make themes names its namespaces by https."""
    text = TEXTS["wordpress"](Said()).replace("http://wordpress.org/", "https://wordpress.org/")
    assert "https://wordpress.org/export/" in text
    told = run("import", put(folder, text))
    assert (told.text.partition(":")[0], told.sums) == ("wordpress", (1, 1, 0, 0))


def test_pages_of_the_only_host_are_found_by_their_paths(
    run: Run, folder: Path, outside: Outside, config: Config
) -> None:
    run("import", put(folder, disqus(Said())))
    app = make_app(replace(config, database_path="commentd.db"), outside.world, rounds=1)
    try:
        visitor = Visitor(app)
        for spelt in ("/a/", "/a"):
            assert visitor.listing(url=spelt)["total"] == 1
    finally:
        app.close()


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_every_version_of_wxr_is_read(run: Run, folder: Path, version: str) -> None:
    text = wordpress(Said()).replace("export/1.2/", f"export/{version}/")
    assert run("import", put(folder, text)).code == 0
    assert [row.text for row in rows(folder)] == ["Hello"]


@pytest.mark.parametrize("kind", ["pingback", "trackback", "order_note", "action_log"])
def test_what_is_no_comment_to_wordpress_stays_out(run: Run, folder: Path, kind: str) -> None:
    text = wordpress(Said(text="Secret"), Said("2", "Here"))
    text = text.replace("_type>comment<", f"_type>{kind}<", 1)
    told = run("import", put(folder, text))
    assert (told.code, told.sums) == (0, (2, 1, 0, 1))
    assert ([row.text for row in rows(folder)], b"Secret" in bytes_of(folder)) == (["Here"], False)


@pytest.mark.parametrize("state", ["0", "post-trashed", "spam", "trash", "unknown"])
def test_what_wordpress_did_not_approve_is_not_shown(run: Run, folder: Path, state: str) -> None:
    text = wordpress(Said()).replace("_approved>1<", f"_approved>{state}<")
    assert run("import", put(folder, text)).code == 0
    assert [row for row in rows(folder) if row.status == "visible"] == []


def test_a_text_about_cdata_stays_what_it_is(run: Run, folder: Path) -> None:
    texts = ["a <![CDATA[ b &amp; c", "d ]]]]><![CDATA[> e &lt; f", "g & h"]
    said = several("text", [f"here{n}" for n in range(len(texts))])
    text = wordpress(*said)
    for n, each in enumerate(texts):
        text = text.replace(f"here{n}", f"<![CDATA[{each}]]>")
    assert run("import", put(folder, text)).sums == (3, 3, 0, 0)
    shown = [re.sub(r"<.*?>", "", row.text).strip() for row in rows(folder, "html")]
    assert shown == ["a &lt;![CDATA[ b &amp; c", "d ]]&gt; e &lt; f", "g &amp; h"]


def test_an_ampersand_that_wordpress_left_bare_breaks_nothing(run: Run, folder: Path) -> None:
    link = "https://ann.example/?a=1&amp;b=2"
    text = wordpress(Said(website="https://ann.example/?a=1&b=2"), Said("2", "Second"))
    assert link in text
    told = run("import", put(folder, text.replace(link, link.replace("&amp;", "&"))))
    assert (told.code, told.sums) == (0, (2, 2, 0, 0))
    assert {row.website for row in rows(folder)} == {"https://ann.example/?a=1&b=2", ""}


def test_a_wxr_made_for_disqus_is_read(run: Run, folder: Path) -> None:
    text = wordpress(Said()).replace(
        "<wp:post_id>", "<dsq:thread_identifier>post-1</dsq:thread_identifier><wp:post_id>"
    )
    text = text.replace('xmlns:wp="', 'xmlns:dsq="http://www.disqus.com/" xmlns:wp="', 1)
    text = text.replace("<wp:comment>", "<wp:comment><dsq:remote><dsq:id>u</dsq:id></dsq:remote>")
    told = run("import", put(folder, text))
    assert told.text.startswith("wordpress: 1 comments read, 1 new")
    assert [(row.page, row.text) for row in rows(folder)] == [("/a", "Hello")]


@pytest.mark.parametrize(("mode", "state"), [(1, "visible"), (2, "waiting"), (3, "waiting")])
def test_only_what_isso_shows_is_shown(run: Run, folder: Path, mode: int, state: str) -> None:
    path = made("isso", folder, Said())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE comments SET mode = ?", (mode,))
    assert run("import", path).code == 0
    assert [row.status for row in rows(folder)] == [state]


def test_the_ids_of_isso_json_are_kept_apart_by_page(run: Run, folder: Path) -> None:
    told = run("import", put(folder, isso_json(Said(), Said(page="/b/"))))
    assert (told.sums, len(rows(folder))) == ((2, 2, 0, 0), 2)


def test_isso_json_without_ids_comes_in_once(run: Run, folder: Path) -> None:
    file = put(folder, isso_json(Said("", "One"), Said("", "Two"), Said("", "Two")))
    assert run("import", file).sums[:2] == (3, 2)
    assert run("import", file).sums[:2] == (3, 0)
    assert sorted(row.text for row in rows(folder)) == ["One", "Two"]


def test_remark42_without_its_first_line_is_read(run: Run, folder: Path) -> None:
    whole = (MOVING / "remark42.jsonl").read_text("utf-8")
    told = run("import", put(folder, whole.partition("\n")[2]))
    assert (told.code, told.sums) == (0, (11, 8, 0, 3))
    assert pages(folder)["/2024/closed"] == (2, 0, 0)


def test_several_sites_in_remark42_are_told_by_their_hosts(run: Run, folder: Path) -> None:
    text = remark42(Said(), Said("2", "Other", page="/b/")).replace(
        f"{SITE}/b", "http://b.example/b"
    )
    told = run("import", put(folder, text), "--host", "blog.example")
    assert told.sums == (2, 1, 0, 1)
    assert [row.text for row in rows(folder)] == ["Hello"]


@pytest.mark.parametrize("zone", ["+08:00", "-06:30"])
def test_the_zone_of_a_time_is_heeded(run: Run, folder: Path, zone: str) -> None:
    text = remark42(Said()).replace("12:00:00Z", f"12:00:00.123456789{zone}")
    run("import", put(folder, text))
    sign, hours, minutes = zone[0], int(zone[1:3]), int(zone[4:])
    offset = (hours * 60 + minutes) * (1 if sign == "+" else -1)
    at = NOON - offset * 60
    assert [row.created for row in rows(folder)] == [moment(at)]


def test_the_page_of_commento_may_be_named_by_host_and_path(run: Run, folder: Path) -> None:
    data = json.loads(commento(Said()))
    said, author = data["comments"][0], data["commenters"][0]
    said["host"], said["path"] = said.pop("domain"), said.pop("url")
    author["websiteUrl"], author["avatarUrl"] = "https://ann.example/", author.pop("photo")
    del author["link"]
    assert run("import", put(folder, json.dumps(data))).code == 0
    assert [(row.page, row.website) for row in rows(folder)] == [("/a", "https://ann.example/")]


@pytest.mark.parametrize("title", ["", "A title"])
def test_a_page_of_cusdis_without_an_address_is_its_key(run: Run, folder: Path, title: str) -> None:
    path = made("cusdis", folder, Said())
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE pages SET url = ?, slug = 'my key', title = ?", (title and None, title))
    assert run("import", path).code == 0
    assert [row.page for row in rows(folder)] == ["my key"]


def test_cusdis_tables_that_came_by_csv_are_read(run: Run, folder: Path) -> None:
    """That is the way from PostgreSQL: nothing is null there, and a truth is a letter."""
    path = given("cusdis.sql", folder)
    with closing(sqlite3.connect(path)) as db, db:
        for table in ("projects", "pages", "comments"):
            names = [column[1] for column in db.execute(f"PRAGMA table_info({table})")]
            texts = ", ".join(f"CAST(coalesce({name}, '') AS TEXT) AS {name}" for name in names)
            db.execute(f"CREATE TABLE bare AS SELECT {texts} FROM {table}")
            db.execute(f"DROP TABLE {table}")
            db.execute(f"ALTER TABLE bare RENAME TO {table}")
        db.execute("UPDATE comments SET approved = CASE approved WHEN '1' THEN 't' ELSE 'f' END")
    assert run("import", path).code == 0
    assert rows(folder) == next(whole.rows for whole in WHOLE if whole.file == "cusdis.sql")


# Null, everywhere


def spoilt(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The record with each of its fields null, missing, or of another type."""
    for key, value in record.items():
        yield {k: v for k, v in record.items() if k != key}
        for instead in (None, -1, True, "", "x", 1e300, [], ["x"], {}, {"x": ["x"]}):
            yield {**record, key: instead}
        if isinstance(value, dict):
            yield from ({**record, key: less} for less in spoilt(value))


def with_spoilt(value: Any) -> Any:
    """The same data where each list has its records spoilt as well."""
    if isinstance(value, dict):
        return {key: with_spoilt(each) for key, each in value.items()}
    if isinstance(value, list):
        bad = [less for each in value if isinstance(each, dict) for less in spoilt(each)]
        return [*map(with_spoilt, value), None, 1, "x", [], {}, *bad]
    return value


@JSON
def test_any_field_may_be_null_or_missing_or_of_another_type(
    run: Run, folder: Path, product: str
) -> None:
    text = TEXTS[product](Said())
    if product == "remark42":
        first, *lines = map(json.loads, text.splitlines())
        text = "\n".join(map(json.dumps, [first, *with_spoilt(lines)]))
    else:
        text = json.dumps(with_spoilt(json.loads(text)))
    told = run("import", put(folder, text))
    assert (told.code, told.errors) == (0, "")
    assert told.sums[0] > 70
    assert Row("/a", "2024-01-01 12:00:00", "Ann", "Hello") in rows(folder)
    assert run("import", put(folder, text)).sums[1] == 0


@SQLITE
def test_any_column_may_be_null_or_of_another_type(run: Run, folder: Path, product: str) -> None:
    pages = "threads" if product == "isso" else "pages"
    for table in ("comments", pages):
        path = made(product, folder, Said())
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(f"CREATE TABLE bare AS SELECT * FROM {table}")  # that demands nothing
            db.execute(f"DROP TABLE {table}")
            db.execute(f"ALTER TABLE bare RENAME TO {table}")
            values = db.execute(f"SELECT * FROM {table}").fetchone()
            for at in range(len(values)):
                for instead in (None, "", "x", -1, 1e300, b"\xff"):
                    less = (*values[:at], instead, *values[at + 1 :])
                    db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(less))})", less)
        told = run("import", path)
        assert (told.code, told.errors) == (0, "")
        assert told.sums[0] >= (6 * len(values) + 1 if table == "comments" else 1)
        assert "Hello" in {row.text for row in rows(folder) if row.page == "/a"}


@XML
def test_any_element_may_be_empty_or_missing(run: Run, folder: Path, product: str) -> None:
    text = TEXTS[product](Said())
    tag = "post" if product == "disqus" else "wp:comment"
    (record,) = re.findall(rf"(?s)<{tag}[ >].*</{tag}>\n", text)
    found = re.findall(r"<([\w:]+)[^>]*>[^<]*</\1>|<([\w:]+)[^>]* />", record)
    names = [one or other for one, other in found]
    less = [
        re.sub(rf"<{name}\b[^>]*>[^<]*</{name}>|<{name}\b[^>]* />", instead, record)
        for name in names
        for instead in ("", f"<{name} />", f"<{name}>x</{name}>", f"<{name}><{name}/></{name}>")
    ]
    less += [re.sub(' dsq:id="[^"]*"', "", record), f"<{tag}></{tag}>\n", f"<{tag}>x</{tag}>\n"]
    told = run("import", put(folder, text.replace(record, record + "".join(less))))
    assert (told.code, told.errors) == (0, "")
    assert told.sums[0] == len(less) + 1 >= 40
    assert Row("/a", "2024-01-01 12:00:00", "Ann", "Hello") in rows(folder)


# XML that means harm


LAUGHS = "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "ha">' for n in range(20)
)


DOCTYPES = {
    '[<!ENTITY x SYSTEM "file:SECRET">]': "&x;",
    '[<!ENTITY x SYSTEM "SECRET">]': "&x;",
    '[<!ENTITY x PUBLIC "-//x" "http://127.0.0.1:9/x">]': "&x;",
    '[<!ENTITY % p SYSTEM "file:SECRET"> %p;]': "x",
    'SYSTEM "file:SECRET"': "x",
    'PUBLIC "-//x" "http://127.0.0.1:9/x.dtd"': "x",
    '[<!ENTITY x "in">]': "&x;",
    '[<!ATTLIST post secret CDATA "canary">]': "x",
    "": "x",
}


def declaring(product: str, doctype: str, entity: str) -> str:
    head, _, rest = TEXTS[product](Said(text="here"), Said("2", "x")).partition("\n")
    root = "disqus" if product == "disqus" else "rss"
    return f"{head}\n<!DOCTYPE {root} {doctype}>\n{rest.replace('>here<', f'>{entity}<')}"


@XML
@pytest.mark.parametrize("doctype", DOCTYPES)
def test_xml_with_a_doctype_is_refused_and_nothing_is_read(
    run: Run, folder: Path, product: str, doctype: str
) -> None:
    secret = folder / "secret.txt"
    secret.write_text("canary")
    text = declaring(product, doctype.replace("SECRET", str(secret)), DOCTYPES[doctype])
    told = run("import", put(folder, text))
    assert "declares a document type" in told.failure
    assert "canary" not in told.text
    assert nothing_in(folder)


@XML
@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<!-- <![CDATA[ -->", "<!-- ]]> -->"),
        ("<?x <![CDATA[ ?>", "<?x ]]> ?>"),
        ("<!-- <![CDATA[ -->", ""),
    ],
)
def test_no_mark_in_a_comment_hides_a_doctype(
    run: Run, folder: Path, product: str, opening: str, closing: str
) -> None:
    head, _, rest = declaring(product, '[<!ENTITY x "in">]', "&x;").partition("\n")
    told = run("import", put(folder, f"{head}\n{opening}{rest}{closing}"))
    assert "declares a document type" in told.failure
    assert nothing_in(folder)


@pytest.mark.parametrize("told", ["<!DOCTYPE html>", "&nbsp; AT&T", "<!-- wp:code -->", "<?php"])
def test_what_a_section_speaks_of_is_text_wherever_the_file_is_cut(told: str) -> None:
    head, said = "<rss><item><x>", f"a <!-- b --> {told} z"
    start = f"{head}</x><comment><content><![CDATA["
    for cut in range(len(said)):  # so much of it comes before the next 64 KiB are read
        blanks = " " * (65536 - len(start) - cut)
        text = f"{head}{blanks}{start[len(head) :]}{said}]]></content></comment></item></rss>"
        assert [r["content"] for _, r in xml_records(StringIO(text), ["comment"])] == [said], cut


@pytest.mark.slow
@XML
def test_a_billion_laughs_are_not_laughed(folder: Path, product: str) -> None:
    text = declaring(product, f"[{LAUGHS}]", "&l19;")
    told = child(folder, "import", put(folder, text), memory=50)
    assert "declares a document type" in told.failure
    assert nothing_in(folder)


@XML
def test_entities_that_xml_does_not_know_lose_no_comment(
    run: Run, folder: Path, product: str
) -> None:
    names = ["&nbsp;", "&unknown;", "&#0;", "&#xD800;", "&#7;", "& ", "&#x1F600;", "&amp;"]
    text = TEXTS[product](*several("text", [f"a{n}here{n}b" for n in range(len(names))]))
    for n, name in enumerate(names):
        text = text.replace(f"{n}here{n}", name)
    told = run("import", put(folder, text))
    assert (told.code, told.sums) == (0, (8, 8, 0, 0))
    texts = [row.text for row in rows(folder, "html")]
    assert texts[-2:] == ["<p>a😀b</p>\n", "<p>a&amp;b</p>\n"]
    assert all(text.startswith("<p>a") and text.endswith("b</p>\n") for text in texts)


@pytest.mark.slow
@XML
def test_elements_far_below_each_other_do_no_harm(folder: Path, product: str) -> None:
    text = TEXTS[product](Said(text="here")).replace(">here<", ">" + "<b>" * 200_000)
    assert child(folder, "import", put(folder, text), memory=300).failure


# Foreign databases


def untouched(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What lies in a folder, to the byte, and when it was changed."""
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


@SQLITE
@pytest.mark.parametrize("mode", ["delete", "wal", "wal left behind"])
def test_a_foreign_database_and_its_folder_stay_as_they_are(
    run: Run, folder: Path, tmp_path_factory: pytest.TempPathFactory, product: str, mode: str
) -> None:
    """A -wal is left behind where the other program was killed: what was written last is in it."""
    home, work = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    path = TABLES[product](work / "source.db", Said())
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {mode.split()[0]}")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        with db:
            values = db.execute("SELECT * FROM comments").fetchone()
            marks = ", ".join("?" * len(values))
            last = [2 if v in (1, "1") and i < 2 else v for i, v in enumerate(values)]
            last = [{"Hello": "Last"}.get(v, v) if isinstance(v, str) else v for v in last]
            last[0] = values[0] if product == "isso" else last[0]
            db.execute(f"INSERT INTO comments VALUES ({marks})", last)
        names = ["source.db", "source.db-wal"] if mode == "wal left behind" else ["source.db"]
        if mode == "wal left behind":
            for name in names:
                (home / name).write_bytes((work / name).read_bytes())
    if mode != "wal left behind":
        (home / "source.db").write_bytes(path.read_bytes())
    before = untouched(home)
    told = run("import", home / "source.db")
    assert (told.code, told.sums) == (0, (2, 2, 0, 0))
    assert sorted(row.text for row in rows(folder)) == ["Hello", "Last"]
    assert untouched(home) == before


@SQLITE
def test_a_database_that_is_in_use_is_read(run: Run, folder: Path, product: str) -> None:
    path = made(product, folder, Said())
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE comments SET likes = 0" if product == "isso" else "DELETE FROM users")
        assert run("import", path).sums == (1, 1, 0, 0)


ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


@SQLITE
@pytest.mark.parametrize("words", [(), ("--format",)])
def test_a_view_in_the_place_of_a_table_is_refused(
    run: Run, folder: Path, product: str, words: tuple[str, ...]
) -> None:
    for table in ("comments", "threads" if product == "isso" else "pages"):
        path = made(product, folder, Said())
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA legacy_alter_table = ON")
            db.execute(f"ALTER TABLE {table} RENAME TO real")
            db.execute(f"CREATE VIEW {table} AS SELECT * FROM real")
        told = run("import", path, *words, *([product] if words else []))
        assert told.failure
        assert nothing_in(folder)


@pytest.mark.slow
@SQLITE
def test_a_view_that_never_ends_is_not_waited_for(folder: Path, product: str) -> None:
    path = made(product, folder, Said())
    with closing(sqlite3.connect(path)) as db:
        db.execute("ALTER TABLE comments RENAME TO real")
        db.execute(f"CREATE VIEW comments AS SELECT real.* FROM real, ({ENDLESS} SELECT x FROM n)")
    assert child(folder, "import", path, "--format", product, seconds=20).failure


@SQLITE
def test_a_foreign_database_is_left_when_its_time_is_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch, product: str
) -> None:
    counted = ENDLESS.replace("FROM n)", "FROM n WHERE x < 3000000)")
    monkeypatch.setattr("commentd.HOUR", 0)
    with (
        pytest.raises(Fault, match="interrupted"),
        foreign(made(product, folder, Said())) as (db, _),
    ):
        db.execute(f"{counted} SELECT count(*) FROM n").fetchone()


@SQLITE
def test_the_schema_of_a_foreign_database_is_not_trusted(folder: Path, product: str) -> None:
    with foreign(made(product, folder, Said())) as (db, tables):
        assert db.execute("PRAGMA trusted_schema").fetchone()[0] == 0
        assert "comments" in tables


@SQLITE
def test_a_trigger_in_a_foreign_database_does_nothing(run: Run, folder: Path, product: str) -> None:
    path = made(product, folder, Said())
    with closing(sqlite3.connect(path)) as db:
        for event in ("INSERT", "UPDATE", "DELETE"):
            db.execute(
                f"CREATE TRIGGER t{event} AFTER {event} ON comments"
                " BEGIN SELECT raise(ABORT, 'no'); END"
            )
    before = path.read_bytes()
    assert run("import", path).sums == (1, 1, 0, 0)
    assert path.read_bytes() == before


@pytest.mark.slow
@SQLITE
@pytest.mark.parametrize("made_of", ["zeroblob(900000000)", "edit('x')"])
def test_a_column_that_is_computed_does_no_harm(folder: Path, product: str, made_of: str) -> None:
    path = made(product, folder, Said())
    name = "website" if product == "isso" else "by_email"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"ALTER TABLE comments DROP COLUMN {name}")
        db.execute("PRAGMA writable_schema = ON")
        sql = f", {name} TEXT GENERATED ALWAYS AS ({made_of}) VIRTUAL"
        (script,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'comments'").fetchone()
        end = script.index(", CONSTRAINT") if "CONSTRAINT" in script else script.rindex(")")
        with db:
            update = "UPDATE sqlite_schema SET sql = ? WHERE name = 'comments'"
            db.execute(update, (script[:end] + sql + script[end:],))
    told = child(folder, "import", path, memory=200)
    assert told.code == 0 or told.failure


@SQLITE
@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_a_damaged_database_is_told_of(run: Run, folder: Path, product: str, at: float) -> None:
    path = made(product, folder, *(Said(str(n), "word " * 99) for n in range(1, 200)))
    data = bytearray(path.read_bytes())
    data[int(len(data) * at) : int(len(data) * at) + 9000] = b"\xa5" * 9000
    path.write_bytes(data)
    told = run("import", path)
    assert told.failure


# What happened here meanwhile


@ALL
def test_what_was_changed_here_stays_so(run: Run, folder: Path, whole: Whole) -> None:
    file = given(whole.file, folder)
    run("import", file, *whole.words)
    with closing(Store(folder / "commentd.db")) as store, store.writing():
        ids = [row["id"] for row in store.rows("SELECT id FROM comment WHERE content <> ''")]
        store.edit_comment(ids[0], "edited here", "<p>edited here</p>", NOON)
        store.judge(ids[1], "spam", NOON)
        store.judge(ids[2], "deleted", NOON)
        store.erase_comment(ids[3])
        store.run("UPDATE comment SET pinned = 1 - pinned WHERE id = :id", id=ids[4])
        store.run("UPDATE page SET closed = 1 - closed")
        store.purge(NOON + 365 * 86400)
    before = dump("commentd.db")
    again = run("import", file, *whole.words)
    assert (again.code, again.sums[1]) == (0, 0)
    assert dump("commentd.db") == before


@ALL
@pytest.mark.parametrize("after", [1, 3])
def test_what_was_stopped_goes_on(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, whole: Whole, after: int
) -> None:
    file, add = given(whole.file, folder), Store.add_comment
    run("import", file, *whole.words)
    unbroken = rows(folder), pages(folder)
    for path in folder.glob("commentd.db*"):
        path.unlink()
    for number in (after, after + 1):  # twice, each time a little further on
        left = [number]

        def failing(store: Store, *words: Any, left: list[int] = left, **said: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return add(store, *words, **said)

        monkeypatch.setattr(Store, "add_comment", failing)
        assert run("import", file, *whole.words).code != 0
    monkeypatch.setattr(Store, "add_comment", add)
    assert run("import", file, *whole.words).code == 0
    assert (rows(folder), pages(folder)) == unbroken
    assert_whole(str(folder / "commentd.db"))


# Encodings and packings


MARKS = {"utf-8-sig": "", "utf-16": "", "utf-16-le": "\ufeff", "utf-16-be": "\ufeff"}


@pytest.mark.parametrize("product", TEXTS)
@pytest.mark.parametrize("encoding", MARKS)
def test_the_encoding_is_found_by_its_mark(
    run: Run, folder: Path, product: str, encoding: str
) -> None:
    text = TEXTS[product](Said(text="Ä 中 😀"), Said("2", "Second"))
    text = re.sub('encoding="utf-8"', f'encoding="{encoding[:6].strip("-")}"', text, flags=re.I)
    data = (MARKS[encoding] + text).encode(encoding)
    told = run("import", put(folder, data))
    assert (told.code, told.sums) == (0, (2, 2, 0, 0))
    assert sorted(row.text for row in rows(folder)) == ["Second", "Ä 中 😀"]


@XML
def test_xml_may_declare_its_encoding(run: Run, folder: Path, product: str) -> None:
    for n, name in enumerate(["ISO-8859-1", "windows-1252", "utf-16", "us-ascii"], 1):
        letter = "A" if name == "us-ascii" else "Ä"
        text = TEXTS[product](Said(str(n), f"{letter} {n}", time=NOON + n))
        text = re.sub('encoding="utf-8"', f'encoding="{name}"', text, flags=re.I)
        assert run("import", put(folder, text.encode(name))).sums == (1, 1, 0, 0)
    assert [row.text for row in rows(folder)] == ["Ä 1", "Ä 2", "Ä 3", "A 4"]


@XML
def test_an_encoding_that_is_none_does_no_harm(run: Run, folder: Path, product: str) -> None:
    for name in ("bogus", "utf-7", "hex", "rot13", "zip", "idna", "utf-8\\", "x" * 300):
        text = re.sub("utf-8", name.replace("\\", r"\\"), TEXTS[product](Said()), flags=re.I)
        told = run("import", put(folder, text))
        assert told.sums[0] == 1 if told.code == 0 else told.failure


@XML
@pytest.mark.parametrize("before", ["\n\n", "\ufeff", "\ufeff\n"])
def test_what_stands_before_the_xml_declaration_does_no_harm(
    run: Run, folder: Path, product: str, before: str
) -> None:
    """WordPress prints empty lines there, from plugins; editors add a mark."""
    told = run("import", put(folder, before + TEXTS[product](Said(), Said("2", "Second"))))
    assert (told.code, told.sums) == (0, (2, 2, 0, 0))


@pytest.mark.parametrize("product", TEXTS)
def test_bytes_that_are_no_text_lose_no_other_comment(run: Run, folder: Path, product: str) -> None:
    text = TEXTS[product](Said(text="befXore"), Said("2", "Second"))
    told = run("import", put(folder, text.encode().replace(b"befXore", b"bef\xff\xfeore")))
    assert (told.code, told.sums) == (0, (2, 2, 0, 0))
    assert sorted(re.sub("[\ufffd?]+", "", row.text) for row in rows(folder)) == [
        "Second",
        "before",
    ]


@EACH
def test_a_packed_file_is_read_whatever_its_name(run: Run, folder: Path, product: str) -> None:
    path = made(product, folder, Said())
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert run("import", path).sums == (1, 1, 0, 0)


@pytest.mark.parametrize("product", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("at", [0.5, 0.999])
def test_of_a_file_that_breaks_off_the_beginning_comes_in(
    run: Run, folder: Path, product: str, packed: bool, at: float
) -> None:
    said = [
        Said(str(n), f"text {n} {'word ' * 40}end", page=f"/{1000 + n // 8}/", time=NOON + n)
        for n in range(160)
    ]
    data = TEXTS[product](*said).encode()
    if packed:
        data = gzip.compress(data)
    told = run("import", put(folder, data[: int(len(data) * at)]))
    assert told.failure
    found = [row.text for row in rows(folder)]
    assert found == [each.text for each in said[: len(found)]]
    # The authors of these two stand at the end, without which nobody knows who wrote what.
    if product not in ("commento", "comentario"):
        assert len(found) > 20
    whole = run("import", put(folder, TEXTS[product](*said)))
    assert (whole.code, whole.sums) == (0, (160, 160 - len(found), len(found), 0))
    assert {row.nickname for row in rows(folder)} == {"Ann"}


@EACH
def test_a_packed_file_that_was_spoilt_is_told_of(run: Run, folder: Path, product: str) -> None:
    path = made(product, folder, *(Said(str(n), f"text {n}") for n in range(1, 50)))
    data = bytearray(gzip.compress(path.read_bytes()))
    data[-8] ^= 0xFF  # the sum of what it holds
    path.write_bytes(data)
    told = run("import", path)
    assert told.failure


def bomb(path: Path, head: bytes, filler: bytes, times: int, tail: bytes = b"") -> Path:
    """Much in a small file."""
    with gzip.open(path, "wb") as out:
        out.write(head)
        for _ in range(times):
            out.write(filler)
        out.write(tail)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("product", ["disqus", "remark42", "comentario"])
def test_a_bomb_is_read_piece_by_piece(folder: Path, product: str) -> None:
    head, tail = TEXTS[product](Said(text="MARK")).split("MARK")
    path = bomb(folder / "bomb.gz", head.encode(), b" " * (1 << 20), 300, tail.encode())
    assert path.stat().st_size < 2 << 20
    told = child(folder, "import", path, memory=200)
    assert "unpacks to more than 64 MB" in told.failure
    told = child(folder, "import", unpacked(path), memory=200)
    assert told.code == 0 or told.failure


def unpacked(path: Path) -> Path:
    plain = path.with_suffix("")
    with gzip.open(path) as packed, plain.open("wb") as out:
        shutil.copyfileobj(packed, out)
    return plain


@pytest.mark.slow
def test_a_packed_database_that_is_a_bomb_fills_no_memory(folder: Path) -> None:
    data = made("isso", folder, Said()).read_bytes()
    path = bomb(folder / "bomb.gz", data, b"\0" * (1 << 20), 100)
    told = child(folder, "import", path, memory=50)
    assert "unpacks to more than 64 MB" in told.failure
    told = child(folder, "import", unpacked(path), memory=50)
    assert told.code == 0 or told.failure


@pytest.mark.slow
@pytest.mark.parametrize("product", ["disqus", "wordpress"])
@pytest.mark.parametrize("shape", ["a{}b", "<pre>a{}b</pre>"])
def test_a_long_run_of_blanks_is_read_in_one_go(folder: Path, product: str, shape: str) -> None:
    """Tried from each blank anew, it would take minutes."""
    text = shape.format(" " * 250_000)
    told = child(folder, "import", put(folder, TEXTS[product](Said(text=text))))
    assert (told.code, told.sums) == (0, (1, 1, 0, 0))


@pytest.mark.slow
def test_a_large_file_that_is_packed_well_is_no_bomb(run: Run, folder: Path) -> None:
    said = [Said(str(n), f"text {n} {'word ' * 8000}", time=NOON + n) for n in range(1700)]
    data = remark42(*said).encode()
    packed = gzip.compress(data)
    assert len(data) > 64 << 20
    assert len(data) < 200 * len(packed)
    assert run("import", put(folder, packed), "--dry-run").sums == (1700, 1700, 0, 0)


@pytest.mark.slow
def test_many_comments_take_no_more_memory_than_few(folder: Path) -> None:
    said = [Said(str(n), f"text {n} {'word ' * 200}", time=NOON + n) for n in range(5_000)]
    told = child(folder, "import", put(folder, remark42(*said)), memory=60)
    assert (told.code, told.sums) == (0, (5_000, 5_000, 0, 0))


@pytest.mark.parametrize("product", ["remark42", "isso-json", "comentario", "commento"])
def test_what_a_file_says_can_not_forge_the_report(run: Run, folder: Path, product: str) -> None:
    """Ids, pages and hosts are told: not as lines of their own, nor as orders to a terminal."""
    forged = "1\n  forged\x1b[2J\x9b2J\r\u202e"
    said = Said(text="")
    text = TEXTS[product](said, Said("2", "Here")).replace('"1"', json.dumps(forged))
    for name in ("commentHex", "id"):
        text = text.replace(f'"{name}": "{said.id:0>64}"', f'"{name}": {json.dumps(forged)}')
        text = text.replace(f'"{name}": "{uuid(said.id)}"', f'"{name}": {json.dumps(forged)}')
        text = text.replace(f'"{name}": {said.id},', f'"{name}": {json.dumps(forged)},')
    assert "forged" in text
    told = run("import", put(folder, text))
    assert (told.code, told.sums) == (0, (2, 1, 0, 1))
    assert "forged" in told.text
    assert not [line for line in told.text.splitlines() if line.startswith("  forged")]
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", told.text)


# Files of something else


STRANGE = {
    "empty": b"",
    "blank": b" \n \n",
    "a mark alone": b"\xef\xbb\xbf",
    "text": b"Dear diary,\nnobody comments.\n",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40,
    "zeros": b"\0" * 5000,
    "html": b"<!DOCTYPE html><html><head><title>Not found</title></head><body></body></html>",
    "html without a doctype": b"<html><body>Not found</body></html>",
    "a feed": b'<?xml version="1.0"?><rss version="2.0"><channel><item/></channel></rss>',
    "other xml": b'<?xml version="1.0"?><comments><comment>x</comment></comments>',
    "broken xml": b"<disqus",
    "an object": b'{"a": 1}',
    "an empty object": b"{}",
    "an empty array": b"[]",
    "an array of numbers": b"[1, 2, 3]",
    "an array of objects": b'[{"a": 1}, {"b": 2}]',
    "a number": b"17",
    "a text in json": b'"comments"',
    "null": b"null",
    "broken json": b'{"version": 1, "comments": ',
    "another version": b'{"version": 9, "comments": [], "commenters": []}',
    "half a surrogate": b'{"\\ud800": "\\udfff"}',
    "deep json": b"[" * 100_000,
    "deeper objects": b'{"a":' * 100_000,
    "a long number": b'{"version": ' + b"1" * 100_000 + b"}",
    "an endless number": b'{"version": 1e999999999}',
    "csv": b"id,author,text\n1,Ann,Hello\n",
    "gzip of nothing": gzip.compress(b""),
    "gzip of text": gzip.compress(b"Dear diary"),
    "gzip of gzip": gzip.compress(gzip.compress(b"{}")),
    "gzip cut": gzip.compress(b"x" * 9999)[:15],
    "gzip's mark alone": b"\x1f\x8b",
    "sqlite's mark alone": b"SQLite format 3\0",
    "sqlite's mark and noise": b"SQLite format 3\0" + b"\xa5" * 5000,
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_file_of_no_known_format_is_refused_with_what_to_do(
    run: Run, folder: Path, what: str
) -> None:
    told = run("import", put(folder, STRANGE[what]))
    assert (told.code, told.text) == (1, "")
    assert re.search(r"source|database|file", told.failure)
    assert nothing_in(folder)


def test_what_can_be_read_is_named_where_a_format_is_not_known(run: Run, folder: Path) -> None:
    told = run("import", put(folder, STRANGE["text"]))
    for name in ("disqus", "wordpress", "isso", "remark42", "cusdis", "commento", "comentario"):
        assert re.search(rf"(?i)\b{name}\b", told.errors)
    assert "--format" in told.errors


def test_a_database_of_something_else_is_refused(run: Run, folder: Path) -> None:
    path = load("CREATE TABLE comments (id, text); CREATE TABLE posts (id);", folder / "x.db")
    told = run("import", path)
    assert (told.code, told.text) == (1, "")
    assert re.fullmatch(r"commentd: .*x\.db.*\n", told.errors)


@pytest.mark.parametrize("what", ["", "none.xml", "none/none.xml", "source/x"])
def test_a_file_that_can_not_be_opened_is_told_of(run: Run, folder: Path, what: str) -> None:
    put(folder, disqus(Said()))
    told = run("import", folder / what)
    assert (told.code, told.text) == (1, "")
    assert re.fullmatch(r"commentd: .*(directory|folder|file).*\n", told.errors)


@pytest.mark.slow
def test_a_file_without_an_end_is_refused(folder: Path) -> None:
    told = child(folder, "import", "/dev/zero", memory=300)
    assert (told.code, told.text) == (1, "")
    assert re.fullmatch(r"commentd: .*/dev/zero.*\n", told.errors)


@EACH
def test_of_another_format_nothing_comes_in(run: Run, folder: Path, product: str) -> None:
    for forced in {"disqus", "wordpress", "isso", "cusdis"} - {product}:
        told = run("import", made(product, folder, Said()), "--format", forced)
        assert told.sums[1] == 0 if told.code == 0 else told.failure
        assert nothing_in(folder)
    assert run("import", made(product, folder, Said()), "--format", product).sums == (1, 1, 0, 0)


@pytest.mark.parametrize(
    "words", ["", "x y", "x --format none", "x --format", "x --host", "--dry-run"]
)
def test_wrong_use_is_2(run: Run, folder: Path, words: str) -> None:
    told = run("import", *words.split())
    assert (told.code, told.text) == (2, "")
    assert told.errors.startswith(("usage: commentd", "commentd: "))
    assert not list(folder.iterdir())


@EACH
def test_a_file_without_a_comment_is_told_of(run: Run, folder: Path, product: str) -> None:
    told = run("import", made(product, folder), "--format", product)
    assert "no comment" in told.failure
