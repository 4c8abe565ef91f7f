"""Export files as a dozen products write them, and a folder in which `commentd` reads and
writes them. Texts go into the files as they are, whether a product takes them for Markdown or for
HTML."""

import contextlib
import html
import io
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

import commentd
from commentd import Config, main, make_app
from support.client import Visitor
from support.database import assert_whole, dump, raw_bytes
from support.world import START, FakeWorld

MINUTE, HOUR, DAY = 60, 3600, 86400
NOON = START - 300 * DAY
BLOG = "https://blog.example"
MOVING = Path(__file__).parents[1] / "moving"
Row = dict[str, Any]


@dataclass(frozen=True)
class ForeignComment:
    """A comment as any product has it. `at` is in seconds, or what stands in its place."""

    id: Any = "1"
    at: Any = NOON
    parent: Any = ""
    page: Any = "/a/"
    text: Any = "hi"
    nickname: Any = "Ann"
    email: Any = ""
    website: Any = ""
    ip: Any = "203.0.113.77"
    status: str = "visible"
    likes: int = 0


Thread = Iterable[ForeignComment]


def moment(at: Any, form: str = "%Y-%m-%dT%H:%M:%SZ") -> Any:
    return datetime.fromtimestamp(at, UTC).strftime(form) if is_seconds(at) else at


def is_seconds(at: Any) -> bool:
    """Whether it is no shape that a test gives a time."""
    return type(at) is int and abs(at) < 10**12


def pages_of(thread: Thread) -> list[str]:
    return list(dict.fromkeys(comment.page for comment in thread))


# The Chinese family: rows of JSON


def unhtml(value: Any) -> Any:
    """A text as products write it that keep names as HTML."""
    return html.escape(value, quote=False) if isinstance(value, str) else value


def valine_row(comment: ForeignComment) -> Row:
    return {
        "objectId": comment.id,
        "comment": comment.text,
        "nick": unhtml(comment.nickname),
        "mail": unhtml(comment.email),
        "link": unhtml(comment.website),
        "ip": comment.ip,
        "url": comment.page,
        "pid": comment.parent,
        "ua": "Mozilla/5.0",
        "insertedAt": moment(comment.at),
    }


def waline_row(comment: ForeignComment) -> Row:
    status = "approved" if comment.status == "visible" else comment.status
    names = {"nick": comment.nickname, "mail": comment.email, "link": comment.website}
    return {**valine_row(comment), **names, "like": comment.likes, "status": status}


def twikoo_row(comment: ForeignComment) -> Row:
    return {
        "_id": comment.id,
        "comment": comment.text,
        "nick": comment.nickname,
        "mail": comment.email,
        "link": comment.website,
        "ip": comment.ip,
        "url": comment.page,
        "pid": comment.parent or None,
        "isSpam": comment.status != "visible",
        "created": comment.at * 1000 if is_seconds(comment.at) else comment.at,
        "like": [f"{number:032x}" for number in range(comment.likes)],
    }


def artalk_row(comment: ForeignComment) -> Row:
    return {
        "id": comment.id,
        "rid": comment.parent or "0",
        "content": comment.text,
        "nick": comment.nickname,
        "email": comment.email,
        "link": comment.website,
        "ip": comment.ip,
        "page_key": comment.page,
        "vote_up": str(comment.likes),
        "is_pending": str(comment.status != "visible").lower(),
        "created_at": moment(comment.at, "%Y-%m-%d %H:%M:%S +0000"),
    }


ROWS = {"valine": valine_row, "waline": waline_row, "twikoo": twikoo_row, "artalk": artalk_row}


def file_of(product: str, rows: list[Any], **tables: Any) -> bytes:
    """A file with these rows; `tables` are others of Waline."""
    if product == "twikoo":
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    data = {"Comment": rows, "Counter": [], "Users": [], **tables}
    whole: dict[str, Any] = {
        "valine": {"results": rows},
        "waline": {"type": "waline", "version": 1, "data": data},
        "artalk": rows,
    }
    return json.dumps(whole[product]).encode()


def waline(thread: Thread, **tables: Any) -> bytes:
    return file_of("waline", [waline_row(comment) for comment in thread], **tables)


def of_rows(product: str) -> Callable[[Thread], bytes]:
    return lambda thread: file_of(product, [ROWS[product](comment) for comment in thread])


# The western family


def tags(fields: Row) -> str:
    return "".join(f"<{name}>{escape(str(text))}</{name}>" for name, text in fields.items())


def disqus(thread: Thread) -> bytes:
    listed = [*thread]
    pages = pages_of(listed)
    threads = "".join(
        f'<thread dsq:id="9{number}"><id /><link>{escape(page)}</link><title>T</title>'
        "<createdAt>2024-01-01T00:00:00Z</createdAt><isClosed>false</isClosed>"
        "<isDeleted>false</isDeleted></thread>\n"
        for number, page in enumerate(pages)
    )
    posts = "".join(
        f'<post dsq:id="{each.id}"><id /><message>{escape(each.text)}</message>'
        f"<createdAt>{moment(each.at)}</createdAt>"
        f"<isDeleted>{str(each.status == 'deleted').lower()}</isDeleted>"
        f"<isSpam>{str(each.status == 'spam').lower()}</isSpam>"
        f"<isApproved>{str(each.status != 'waiting').lower()}</isApproved>"
        f"<author><email>{escape(each.email)}</email><name>{escape(each.nickname)}</name>"
        f"<isAnonymous>true</isAnonymous></author><ipAddress>{each.ip}</ipAddress>"
        f'<thread dsq:id="9{pages.index(each.page)}" />'
        + (f'<parent dsq:id="{each.parent}" />' if each.parent else "")
        + "</post>\n"
        for each in listed
    )
    head = 'xmlns="http://disqus.com" xmlns:dsq="http://disqus.com/disqus-internals"'
    body = f"<disqus {head}>\n{threads}{posts}</disqus>\n"
    return f'<?xml version="1.0" encoding="utf-8"?>\n{body}'.encode()


WXR_STATES = {"visible": "1", "waiting": "0", "spam": "spam", "deleted": "trash"}


def wordpress_comment(comment: ForeignComment) -> str:
    fields = {
        "wp:comment_id": comment.id,
        "wp:comment_author": comment.nickname,
        "wp:comment_author_email": comment.email,
        "wp:comment_author_url": comment.website,
        "wp:comment_author_IP": comment.ip,
        "wp:comment_content": comment.text,
        "wp:comment_date_gmt": moment(comment.at, "%Y-%m-%d %H:%M:%S"),
        "wp:comment_approved": WXR_STATES[comment.status],
        "wp:comment_type": "comment",
        "wp:comment_parent": comment.parent or "0",
    }
    return f"<wp:comment>{tags(fields)}</wp:comment>\n"


def wordpress(thread: Thread, closed: tuple[str, ...] = ()) -> bytes:
    listed = [*thread]
    items = ""
    for page in pages_of(listed):
        state = "closed" if page in closed else "open"
        comments = "".join(wordpress_comment(each) for each in listed if each.page == page)
        head = f"<link>{escape(page)}</link><wp:comment_status>{state}</wp:comment_status>"
        items += f"<item>{head}{comments}</item>\n"
    space = 'version="2.0" xmlns:wp="http://wordpress.org/export/1.2/"'
    body = f"<rss {space}><channel>\n{items}</channel></rss>\n"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}'.encode()


def remark42(thread: Thread) -> bytes:
    lines: list[Any] = [{"version": 1, "users": [], "posts": []}]
    lines += [
        {
            "id": each.id,
            "pid": each.parent,
            "text": "",
            "orig": each.text,
            "user": {"name": each.nickname, "id": "anonymous_1", "picture": "", "admin": False},
            "locator": {"site": "blog", "url": each.page},
            "score": each.likes,
            "time": moment(each.at),
            "delete": each.status == "deleted",
        }
        for each in thread
    ]
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def commento(thread: Thread) -> bytes:
    listed = [*thread]
    comments = [
        {
            "commentHex": f"{each.id:0>64}",
            "domain": "",
            "url": each.page,
            "commenterHex": f"c{number}",
            "markdown": each.text,
            "html": "",
            "parentHex": f"{each.parent:0>64}" if each.parent else "root",
            "score": each.likes,
            "state": "approved" if each.status == "visible" else "unapproved",
            "creationDate": moment(each.at),
            "direction": 0,
            "deleted": False,
        }
        for number, each in enumerate(listed)
    ]
    people = [
        {
            "commenterHex": f"c{number}",
            "email": each.email,
            "name": each.nickname,
            "link": each.website,
            "photo": "undefined",
            "provider": "commento",
            "isModerator": False,
        }
        for number, each in enumerate(listed)
    ]
    return json.dumps({"version": 1, "comments": comments, "commenters": people}).encode()


def uuid(number: object) -> str:
    return f"00000000-0000-4000-8000-{number:0>12}"


def comentario(thread: Thread) -> bytes:
    listed = [*thread]
    places = pages_of(listed)
    pages = [
        {"id": uuid(9000 + number), "domainId": uuid(1), "path": page, "isReadonly": False}
        for number, page in enumerate(places)
    ]
    comments = [
        {
            "id": uuid(each.id),
            "parentId": uuid(each.parent) if each.parent else "",
            "pageId": uuid(9000 + places.index(each.page)),
            "markdown": each.text,
            "html": "",
            "isApproved": each.status == "visible",
            "isPending": each.status == "waiting",
            "isDeleted": each.status == "deleted",
            "isSticky": False,
            "score": each.likes,
            "createdTime": moment(each.at),
            "userCreated": uuid(8_000_000 + number),
            "authorIP": each.ip,
            "url": each.page,
        }
        for number, each in enumerate(listed)
    ]
    people = [
        {
            "id": uuid(8_000_000 + number),
            "email": each.email,
            "name": each.nickname,
            "websiteUrl": each.website,
        }
        for number, each in enumerate(listed)
    ]
    data = {"version": 3, "pages": pages, "comments": comments, "commenters": people}
    return json.dumps(data).encode()


def loaded(name: str, rows: dict[str, list[tuple[Any, ...]]]) -> bytes:
    """A database with the tables of one of the files beside this one, and these rows."""
    script = (MOVING / name).read_text("utf-8")
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript("\n".join(re.findall(r"^CREATE TABLE.*?;$", script, re.M | re.S)))
        for table, values in rows.items():
            for row in values:
                marks = ", ".join("?" * len(row))
                db.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)
        db.commit()
        return db.serialize()


ISSO_MODES = {"visible": 1, "waiting": 2, "spam": 2, "deleted": 4}


def isso(thread: Thread) -> bytes:
    listed = [*thread]
    places = pages_of(listed)
    threads: list[Any] = [(number, page, "T") for number, page in enumerate(places)]
    comments: list[Any] = [
        (
            places.index(each.page),
            each.id,
            each.parent or None,
            each.at,
            None,
            ISSO_MODES[each.status],
            each.ip,
            each.text,
            unhtml(each.nickname),
            unhtml(each.email),
            unhtml(each.website),
            each.likes,
            0,
            b"\0",
            0,
        )
        for each in listed
    ]
    return loaded("isso.sql", {"threads": threads, "comments": comments})


def cusdis(thread: Thread) -> bytes:
    listed = [*thread]
    at = NOON * 1000
    pages: list[Any] = [(page, page, page, "T", at, at, "p") for page in pages_of(listed)]
    comments: list[Any] = [
        (
            each.id,
            each.page,
            each.at * 1000 if is_seconds(each.at) else each.at,
            at,
            at if each.status == "deleted" else None,
            None,
            each.email,
            each.nickname,
            each.text,
            int(each.status == "visible"),
            each.parent or None,
        )
        for each in listed
    ]
    project = ("p", "T", at, at, None, "u", None, None, None, None, None)
    return loaded("cusdis.sql", {"projects": [project], "pages": pages, "comments": comments})


MAKERS: dict[str, Callable[..., bytes]] = {
    "waline": waline,
    "twikoo": of_rows("twikoo"),
    "wordpress": wordpress,
    "isso": isso,
    "valine": of_rows("valine"),
    "artalk": of_rows("artalk"),
    "disqus": disqus,
    "remark42": remark42,
    "commento": commento,
    "comentario": comentario,
    "cusdis": cusdis,
}
SQLITE = ("isso", "cusdis")
XML = ("disqus", "wordpress")


def blog(count: int = 12) -> list[ForeignComment]:
    """Three pages of threads, some of which wait. The first comment is of somebody with an email
    address, and stands on the page /0/ like the third, which answers it."""
    return [
        ForeignComment(
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


# The program, and what it leaves

# What tests compare of a comment. Its HTML is only there where it is not that of its Markdown.
COMMENTS = """
    SELECT comment.id, comment.parent_id, page.key AS page_key, comment.nickname, comment.email,
           comment.website, comment.content, iif(comment.own_html, comment.html, '') AS html,
           comment.ip, comment.country, comment.location, comment.language, comment.likes,
           comment.pinned, comment.status, comment.held, comment.created_at, comment.edited_at
      FROM comment JOIN page ON page.id = comment.page_id
     ORDER BY page.key, comment.created_at, comment.id"""
PAGES = "SELECT key AS page_key, page_url, title, views, page_likes, closed FROM page ORDER BY key"


@dataclass(frozen=True)
class Result:
    """What the program printed."""

    code: int
    data: bytes
    errors: str

    @property
    def text(self) -> str:
        return self.data.decode()

    @property
    def counts(self) -> tuple[int, ...]:
        """Comments read, new, already here, skipped. Each that was read is one of the others."""
        found = re.search(r"(\d+) read, (\d+) new, (\d+) already here, (\d+) ", self.text)
        assert found, self
        read, *parts = map(int, found.groups())
        assert read == sum(parts)
        return read, *parts

    def named(self, word: str) -> list[str]:
        """What is listed in the lines with that word."""
        lines = [line for line in self.text.splitlines() if re.search(word, line)]
        listed = [line.rpartition(": ")[2].removesuffix(" …") for line in lines]
        return [name for names in listed for name in names.split(", ")]

    def number(self, word: str) -> int:
        """The number in the line with that word; 0 where there is no such line."""
        found = re.search(rf"{word}.*?(?: \((\d+)\):|: (\d+)$)", self.text, re.M)
        return int(found[1] or found[2]) if found else 0

    @property
    def failure(self) -> str:
        """What went wrong, in one sentence."""
        assert self.code == 1, self
        assert (self.data, self.errors.count("\n")) == (b"", 1)
        assert self.errors.startswith("commentd: ")
        return self.errors.removeprefix("commentd: ")


class Importer:
    """A folder with settings and databases, and the program, which runs in this process: that is
    many times faster."""

    def __init__(self, folder: Path, template: Path | None = None, origins: str = "") -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.template, self.origins = folder, template, origins
        self.paths: list[Path] = []
        self.use_database("commentd.db")

    def use_database(self, name: str, *, made: bool = False) -> None:
        """From now on another database, which is made already or not: to import into a new one
        takes less time."""
        self.path = self.folder / name
        self.paths.append(self.path)
        if made and self.template:
            shutil.copy(self.template, self.path)
        self.settings = self.folder / "commentd.ini"
        sections = f"[database]\npath = {self.path}\n[site]\norigins = {self.origins}\n"
        self.settings.write_text(sections)

    def ask(self, *words: object) -> Result:
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(["--config", str(self.settings), *map(str, words)])
            except SystemExit as ended:
                code = int(str(ended.code))
        printed = []
        for stream in (out, err):
            stream.flush()
            stream.seek(0)
            printed.append(stream.detach().read())
        result = Result(code, printed[0], printed[1].decode())
        assert "Traceback" not in result.errors, result.errors
        return result

    def file(self, data: bytes | str, name: str = "export") -> Path:
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
        return path

    def import_file(self, data: bytes | str | Path, *words: object) -> Result:
        return self.ask("import", data if isinstance(data, Path) else self.file(data), *words)

    def export(self, *words: str) -> bytes:
        result = self.ask("export", *words)
        assert result.code == 0, result
        return result.data

    def full_export(self) -> Row:
        """All that our own export holds."""
        found: Row = json.loads(self.export("--emails"))
        return found

    def rows(self, sql: str) -> list[Row]:
        """Read from the database itself: to export them takes ten times as long."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=rw", uri=True)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql)]

    @property
    def comments(self) -> list[Row]:
        """By page and time, with what each answers as `above`."""
        if not self.path.exists():
            return []
        rows = {row["id"]: row for row in self.rows(COMMENTS)}
        return [{**row, "above": rows.get(row["parent_id"])} for row in rows.values()]

    @property
    def comments_by_time(self) -> dict[int, Row]:
        """The comments by their times, with the time of what they answer as `above`."""
        found = self.comments
        above = [row["above"] and row["above"]["created_at"] for row in found]
        rows = zip(found, above, strict=True)
        return {row["created_at"]: {**row, "above": at} for row, at in rows}

    @property
    def texts(self) -> list[str]:
        return [row["content"] for row in self.comments]

    @property
    def pages(self) -> dict[str, Row]:
        return {page["page_key"]: page for page in self.rows(PAGES)}

    def only_comment(self) -> Row:
        (found,) = self.comments
        return found

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        return dump(str(self.path))

    @property
    def raw(self) -> bytes:
        """All bytes of the database and of what lies beside it."""
        return raw_bytes(self.path)

    @contextlib.contextmanager
    def served(self, fake_world: FakeWorld, **settings: Any) -> Iterator[Visitor]:
        """A reader of the service on this database."""
        config = Config(
            database_path=str(self.path),
            backup_folder=str(self.folder),
            captcha_provider="none",
            **settings,
        )
        with closing(make_app(config, fake_world.world, rounds=1)) as app:
            yield Visitor(app)

    def close(self) -> None:
        for path in self.paths:
            if path.exists():
                assert_whole(str(path))


@pytest.fixture
def importer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake_world: FakeWorld, empty_database: Path
) -> Iterator[Importer]:
    """In the folder of the fixture `app`, and with its clock."""
    for name in [name for name in os.environ if name.startswith("COMMENTD_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(commentd, "World", lambda: fake_world.world)
    importer = Importer(tmp_path, empty_database)
    yield importer
    importer.close()
