"""Comments that move in from real products, and back into them; run by hand:
`python tests/moving.py FOLDER`, with `--only NAME`, `--count N` for other numbers of comments.
FOLDER keeps the products, which the first run takes from PyPI and npm as bench_weight.py does,
and in `moved` what was moved.

Isso and Waline are started as their manuals say, filled through their own API by readers and by an
owner who approves, deletes and pins, and give their data out as an owner gets it: Isso its file,
Waline the export of its admin page. Only the times are set in their databases, and Isso's comments
that wait are read there, since its API hides them. Then `commentd import` reads it, dry, for real
and once more, and what is said here is compared with what the product says, field by field. At
last `commentd export` writes files for new, empty ones of both, which read them by their own
importers, or take them as their database. What is lost on that way is counted; it is a fault where
the file could have carried it.

`--keep FOLDER` copies what the products gave out to real_isso.sql and real_waline.json."""

import argparse
import html
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from email.message import Message
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen

from webtest import TestApp

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import bench_weight
import blog
from bench_weight import AGENT, installed, running
from blog import OWNER, Json
from conftest import dump

from commentd import Config, make_app, make_token

PROGRAM = Path(__file__).resolve().parent.parent / "commentd.py"

# The comments


class Told(NamedTuple):
    """A comment as it is told by a product or here; `parent` is an id there."""

    page: str
    name: str
    text: str
    at: int
    parent: Any = None
    mail: str = ""
    website: str = ""
    likes: int = 0
    state: str = "visible"
    edited: int | None = None
    pinned: bool = False


PAGES = ("/2026/lines/", "/notes?id=7", "/日志/第一天/", "/", "/long-thread.html")
QUIET = "/read-by-many/"  # a page with views alone
START, STEP = 1706718600, 12_345  # 2024-01-31 16:30 UTC: in China it is another day and month
EDITED = 600  # seconds later
MAIL = {
    "陆知微": "lu@example.com",
    OWNER: "owner@example.com",
    "Tom & Jerry <b>": "tom@example.com",
}
SITE = {
    "Mateo Silva": "https://mateo.example/?a=1&b=2",
    "Noor Rahman": "example.com",
    OWNER: "https://blog.example",
}
NESTED = """1. 先把正文读一遍
   - 哪里累，记下来
   - 哪里顺，也记下来
2. then change **one** thing

两个空格结尾{}
换行；反斜杠 \\* 不是强调，a < b && c > d。""".format("  ")
PICTURE = '<img src="https://blog.example/x.png" alt="a picture" onerror=alert(1)>'
RAW = f"""<b>Bold?</b> <script>alert("x")</script> &amp; {PICTURE}.

| 甲 | 乙 |
|---|---|
| 1 | 2 |"""
EMOJI = '<img class="wl-emoji" src="https://unpkg.com/weibo/weibo_heart.png" alt="weibo_heart">'
LISTED = """> 一篇文章的开头应该是一句话，而不是一张脸。

* one
* two, see <https://blog.example/a_b_c> and [a link](https://blog.example/x?y=1&z=2 "title")

    indented = code"""
# Who, how many comments back what it answers is, likes, what becomes of it, text.
TURNS = [
    ("陆知微", 0, 5, "", blog.CONVERSATION[0][4]),
    (OWNER, 1, 3, "", blog.CONVERSATION[1][4] + " [更多](https://blog.example/fonts)"),
    ("陆知微", 1, 0, "", f"{EMOJI} 谢谢！**周末**就去试试 👍🏽👨‍👩‍👧"),
    ("Mateo Silva", 0, 8, "edited", blog.CODE),
    ("Tom & Jerry <b>", 1, 1, "", LISTED),
    ("Noor Rahman", 1, 0, "", RAW),
    ("顾砚秋", 0, 2, "pinned", blog.LONG),
    ("Mateo Silva", 1, 0, "waiting", "Waits for the *owner*."),
    ("buy now", 0, 0, "spam", "Cheap [watches](https://spam.example)!"),
    ("陆知微", 0, 4, "deleted", "这句话要收回。"),
    ("Tom & Jerry <b>", 1, 0, "", "Too late: I have `<img src=read.png>` it."),
    ("顾砚秋", 1, 0, "edited", NESTED),
]
LATER = {0: 13, 3: 13, 6: 13, 11: 17}


def told(number: int) -> Told:
    """Three to a page, then three to the next; those of later rounds answer the round before as
    well, so that threads get deep and long."""
    turn = number % len(TURNS)
    name, back, likes, what, text = TURNS[turn]
    late = number >= 4 * len(TURNS)
    back = LATER.get(turn, back) if late else back
    at = START + number * STEP
    return Told(
        page=PAGES[number // 3 % len(PAGES)],
        name=name,
        text=f"{text}\n\n№ {number}",
        at=at,
        parent=number - back if back else None,
        mail=MAIL.get(name, ""),
        website=SITE.get(name, ""),
        likes=likes,
        state=what if what in ("waiting", "spam", "deleted") else "visible",
        edited=at + EDITED if what == "edited" else None,
        pinned=what == "pinned" and not late,
    )


def number_of(each: Told) -> int:
    """A comment is known by its text, and by its time when that is gone."""
    found = re.search(r"№ (\d+)", each.text)
    return int(found[1]) if found else (each.at - START) // STEP


def by_number(found: dict[Any, Told]) -> dict[int, Told]:
    """What is told, without the ids; of a deleted one only its place counts."""
    numbers = {made: number_of(each) for made, each in found.items()}
    assert len(set(numbers.values())) == len(found), "a comment is told twice"
    told = {}
    for made, each in found.items():
        each = each._replace(parent=numbers.get(each.parent, each.parent))
        if each.state == "deleted":
            each = Told(each.page, "", "", each.at, each.parent, state="deleted")
        told[numbers[made]] = each
    return told


# The products


def ask(port: int, method: str, path: str, body: Any = None, **headers: str) -> tuple[Any, Message]:
    headers = {name.replace("_", "-"): text for name, text in headers.items()}
    headers |= {"Content-Type": "application/json", "User-Agent": AGENT}
    sent = None if body is None else json.dumps(body).encode()
    asked = Request(f"http://127.0.0.1:{port}{path}", sent, headers, method=method)
    with urlopen(asked, timeout=60) as answer:
        return json.load(answer), answer.headers


class Isso(bench_weight.Isso):
    """Marks nothing as spam and pins nothing; an answer to an answer stands below the first."""

    moderated = False

    def command(self) -> list[str | Path]:
        words = super().command()
        with (self.data / "isso.cfg").open("a") as settings:
            settings.write(f"[moderation]\nenabled = {'yes' if self.moderated else 'no'}\n")
        return words

    def fill(self, story: list[Told]) -> None:
        made: dict[Any, int] = {}
        cookies: dict[int, str] = {}
        for self.moderated in (False, True):
            with running(self.data, self.port, self.command()):
                for number, turn in enumerate(story):
                    if (turn.state in ("waiting", "spam")) == self.moderated:
                        made[number], cookies[number] = self.write(turn, made.get(turn.parent))
        self.moderated = False
        with running(self.data, self.port, self.command()):
            for number, turn in enumerate(story):
                if turn.state == "deleted":
                    mine = f"/id/{made[number]}"
                    ask(self.port, "DELETE", mine, Cookie=f"{made[number]}={cookies[number]}")
        with closing(sqlite3.connect(self.data / "db")) as db, db:
            for number, turn in enumerate(story):
                values = turn.at + 0.25, turn.edited and turn.edited + 0.75, made[number]
                sql = "UPDATE comments SET created = ?, modified = ? WHERE id = ?"
                db.execute(sql, values)

    def write(self, turn: Told, parent: int | None) -> tuple[int, str]:
        """The comment's id and the cookie that may change it."""
        body: Json = {"author": turn.name, "email": turn.mail or None, "parent": parent}
        body |= {"website": turn.website or None, "title": f"Page {turn.page}", "text": turn.text}
        path = f"/new?uri={quote(spelt(turn.page))}"
        draft = body | {"text": "A draft."} if turn.edited else body
        said, headers = ask(self.port, "POST", path, draft, X_Forwarded_For="203.0.113.9")
        made: int = said["id"]
        cookie = cookie_of(headers)
        if turn.edited:
            mine = f"{made}={cookie}"
            said, headers = ask(self.port, "PUT", f"/id/{made}", body, Cookie=mine)
            cookie = cookie_of(headers)
        for reader in range(turn.likes):
            ask(self.port, "POST", f"/id/{made}/like", {}, X_Forwarded_For=f"198.51.{reader}.7")
        return made, cookie

    def says(self) -> dict[Any, Told]:
        said = {}
        with running(self.data, self.port, self.command()):
            for page in PAGES:
                path = f"/?uri={quote(spelt(page))}&plain=1"
                for top in ask(self.port, "GET", path)[0]["replies"]:
                    several = [top, *top["replies"]]
                    said |= {each["id"]: told_by_isso(page, each) for each in several}
        with closing(sqlite3.connect(self.data / "db")) as db:
            db.row_factory = sqlite3.Row
            mails = dict(db.execute("SELECT id, email FROM comments"))
            rows = "SELECT c.*, uri FROM comments c JOIN threads t ON t.id = tid WHERE mode = 2"
            said |= {
                each["id"]: told_by_isso(unquote(each["uri"]), each) for each in db.execute(rows)
            }
        mails = {made: re.sub(".*[.]invalid$", "", mail or "") for made, mail in mails.items()}
        return {made: each._replace(mail=mails[made]) for made, each in said.items()}

    def views(self) -> dict[str, int]:
        return {}

    def out(self, folder: Path) -> Path:
        return shutil.copy(self.data / "db", folder / "comments.db")

    def back(self, name: str, file: Path) -> None:
        words = [*self.command()[:-1], "import", "-t", name, file]
        environ = os.environ | {"TZ": "UTC"}
        subprocess.run(words, check=True, env=environ, cwd=self.data, capture_output=True)


def spelt(page: str) -> str:
    """As the address of a page is spelt by browsers, and kept by Isso."""
    return quote(page, safe="/?=")


def cookie_of(headers: Message) -> str:
    return headers["Set-Cookie"].partition(";")[0].partition("=")[2]


def told_by_isso(page: str, each: Any) -> Told:
    """Its names and addresses are HTML."""
    name, website = (html.unescape(each[field] or "") for field in ("author", "website"))
    state = {1: "visible", 2: "waiting", 4: "deleted"}[each["mode"]]
    edited = int(each["modified"]) if each["modified"] else None
    shown = name, each["text"], int(each["created"]), each["parent"]
    return Told(page, *shown, "", website, each["likes"], state, edited)


class Waline(bench_weight.Waline):
    """Keeps no times of edits, and deletes answers with what they answer, so nothing is deleted.
    Its manual's server lives in China's time, and says so in the times that it gives out."""

    words: list[str | Path] | None = None

    def command(self) -> list[str | Path]:
        if not self.words:
            self.words = super().command()
            self.words[1:1] = ["TZ=Asia/Shanghai", "AKISMET_KEY=false"]
            self.change("waline.sqlite", "DELETE FROM wl_Users")
        return self.words

    def fill(self, story: list[Told]) -> None:
        made: dict[Any, int] = {}
        roots: dict[int, int] = {}
        with running(self.data, self.port, self.command()):
            self.call("POST", "/user", {"display_name": OWNER, **LOGIN, "url": SITE[OWNER]})
            for number, turn in enumerate(story):
                above = made.get(turn.parent)
                roots[number] = roots.get(turn.parent, 0) or above or 0
                made[number] = self.write(turn, above, roots[number] or None)
            for page in [*dict.fromkeys(turn.page for turn in story), QUIET]:
                for _ in range(len(page)):
                    self.call("POST", "/article", {"path": page, "type": "time"})
                self.call("POST", "/article", {"path": page, "type": "reaction0"})
        with closing(sqlite3.connect(self.data / "waline.sqlite")) as db, db:
            for number, turn in enumerate(story):
                at = datetime.fromtimestamp(turn.at, CHINA).strftime("%F %T")
                db.execute("UPDATE wl_Comment SET insertedAt = ? WHERE id = ?", (at, made[number]))

    def write(self, turn: Told, parent: int | None, root: int | None) -> int:
        body: Json = {"nick": turn.name, "mail": turn.mail, "link": turn.website, "ua": AGENT}
        body |= {"comment": turn.text, "url": turn.page, "pid": parent, "rid": root, "at": "x"}
        owner = turn.name == OWNER
        made: int = self.call("POST", "/comment", body, owner=owner)["objectId"]
        for _ in range(turn.likes):
            self.call("PUT", f"/comment/{made}", {"like": True}, owner=False)
        if turn.state in ("waiting", "spam"):
            self.call("PUT", f"/comment/{made}", {"status": turn.state})
        if turn.pinned:
            self.call("PUT", f"/comment/{made}", {"sticky": 1})
        return made

    token = ""

    def call(self, method: str, path: str, body: Any = None, *, owner: bool = True) -> Any:
        if path == "/user":
            ask(self.port, method, f"/api{path}", body)
            said, _ = ask(self.port, "POST", "/api/token", LOGIN)
            self.token = said["data"]["token"]
            return None
        headers = {"Authorization": f"Bearer {self.token}"} if owner else {}
        headers["X_Forwarded_For"] = "203.0.113.9"
        said, _ = ask(self.port, method, f"/api{path}", body, **headers)
        assert not said["errno"], said
        return said["data"]

    def says(self) -> dict[Any, Told]:
        said: dict[Any, Told] = {}
        with running(self.data, self.port, self.command()):
            for page in PAGES:
                for number in count(1):
                    path = f"/comment?path={quote(page)}&pageSize=100&page={number}"
                    found = self.call("GET", path)
                    for top in found["data"]:
                        several = [top, *top["children"]]
                        said |= {each["objectId"]: told_by_waline(page, each) for each in several}
                    if number >= found["totalPages"]:
                        break
        return said

    def views(self) -> dict[str, int]:
        with running(self.data, self.port, self.command()):
            ask_for = [*PAGES, QUIET]
            path = f"/article?path={quote(','.join(ask_for))}&type=time"
            found = self.call("GET", path)
        return {page: each["time"] for page, each in zip(ask_for, found, strict=True)}

    def out(self, folder: Path) -> Path:
        """As its admin page saves it."""
        with running(self.data, self.port, self.command()):
            whole = self.call("GET", "/db")
        file = folder / "waline.json"
        file.write_text(json.dumps(whole, ensure_ascii=False, indent="\t"), "utf-8")
        return file

    def back(self, name: str, file: Path) -> None:
        """What its admin page does with a file: each table is emptied, each row is sent, then the
        rows are told which is above which."""
        whole = json.loads(file.read_text("utf-8"))
        assert whole["type"] == "waline"
        ids: dict[str, dict[Any, Any]] = {"Users": {}}
        with running(self.data, self.port, self.command()):
            self.call("POST", "/user", {"display_name": OWNER, **LOGIN, "url": ""})
            for table in whole["tables"]:
                if table != "Users":
                    self.call("DELETE", f"/db?table={table}")
                ids[table] = {
                    row["objectId"]: self.add(table, row) for row in whole["data"].get(table, [])
                }
            for row in whole["data"]["Comment"]:
                above = {name: ids["Comment"].get(row.get(name)) for name in ("pid", "rid")}
                above["user_id"] = ids["Users"].get(row.get("user_id"))
                if change := {name: made for name, made in above.items() if made}:
                    mine = f"/db?table=Comment&objectId={ids['Comment'][row['objectId']]}"
                    self.call("PUT", mine, change)

    def add(self, table: str, row: Json) -> Any:
        kept = {name: value for name, value in row.items() if value is not None}
        if table == "Comment":
            kept = {"status": "approved"} | kept
            kept = {name: kept[name] for name in kept if name not in ("pid", "rid", "user_id")}
        return self.call("POST", f"/db?table={table}", kept)["objectId"]


CHINA = timezone(timedelta(hours=8))
LOGIN = {"email": MAIL[OWNER], "password": "the owner's password"}
# Waline goes by the types of its columns, which bench_weight.py can do without.
TYPES = {"insertedAt": "DATETIME", "user_id": "INTEGER", "sticky": "NUMERIC", "time": "INTEGER"}
TYPES |= {"reaction0": "INTEGER", "status": "TEXT NOT NULL"}
for column, kind in TYPES.items():
    bench_weight.WALINE = bench_weight.WALINE.replace(f" {column},", f" {column} {kind},")
bench_weight.WALINE = bench_weight.WALINE.replace("datetime()", "datetime('now', 'localtime')")


def told_by_waline(page: str, each: Json) -> Told:
    state = each["status"].replace("approved", "visible")
    shown = each["nick"], each["orig"], each["time"] // 1000, each["pid"], each["mail"]
    likes, pinned = each["like"], bool(each["sticky"])
    return as_read(Told(page, *shown, each["link"], likes, state, None, pinned))


def as_read(each: Told) -> Told:
    """Waline's texts, whose pictures are tags: stickers are words here, others links to them."""
    text = each.text.replace(EMOJI, "weibo_heart")
    text = text.replace(PICTURE, "[a picture](<https://blog.example/x.png>)")
    return each._replace(text=text, website=re.sub(r"^(?=\w[^:]*$)", "http://", each.website))


# What is said here


def here(database: Path) -> tuple[dict[Any, Told], dict[str, int]]:
    """All comments, and the views of pages, as readers see them; the rest as the owner does."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(database, Path(folder) / "copy.db")  # an admin would change it
        config = Config(database_path=str(copy), backup_folder=folder, limits_enabled=False)
        with closing(make_app(config, rounds=1)) as app:
            client = TestApp(app)
            pages = client.get("/pages", [("url", page) for page in (*PAGES, QUIET)]).json["pages"]
            found = {each["id"]: each for page in PAGES for each in shown(client, page)}
            blog.owner_token(app)
            account, now = app.services.store.account_with_email(MAIL[OWNER]), int(time.time())
            token = make_token(account.claims, app.services.key, now, "admin")
            client.authorization = ("Bearer", token)
            for each in listed(client):
                found[each["id"]] = each | found.get(each["id"], {})
    said = {made: told_here(each) for made, each in found.items()}
    return said, {unquote(each["page_url"]): each["views"] for each in pages}


def shown(client: TestApp, page: str) -> Iterator[Json]:
    for number in count(1):
        query = {"url": page, "view": "threads", "limit": 100, "page": number}
        threads = client.get("/comments", query).json["comments"]
        for top in threads:
            yield top
            if top["more_replies"]:
                for further in count(1):
                    query = {"url": page, "view": "threads", "limit": 100}
                    query |= {"thread": top["id"], "page": further}
                    replies = client.get("/comments", query).json["comments"]
                    yield from replies
                    if len(replies) < 100:
                        break
            else:
                yield from top["replies"]
        if len(threads) < 100:
            return


def listed(client: TestApp) -> Iterator[Json]:
    before = ""
    while True:
        query = {"status": "all", "limit": 100} | ({"before": before} if before else {})
        found = client.get("/admin/comments", query).json
        yield from found["comments"]
        if not found["more"]:
            return
        before = found["comments"][-1]["id"]


def told_here(each: Json) -> Told:
    edited = utc(each["edited"]) if each["edited"] else None
    state = "deleted" if each.get("deleted") else each.get("status", "visible")
    above = utc(each["created_at"]), each["parent_id"], each.get("email", ""), each["website"]
    said = unquote(each["page_url"]), each["nickname"], each["content"]
    return Told(*said, *above, each["likes"], state, edited, each["pinned"])


def utc(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+08:00").timestamp())


# The move


def commentd(database: Path, *words: str | Path, out: Path | None = None) -> tuple[str, float]:
    """What the program says, and its seconds."""
    environ = {name: text for name, text in os.environ.items() if not name.startswith("COMMENTD_")}
    environ["COMMENTD_DATABASE_PATH"] = str(database)
    before = time.perf_counter()
    command = [sys.executable, PROGRAM, *words]
    done = subprocess.run(command, env=environ, cwd=database.parent, capture_output=True)
    seconds = time.perf_counter() - before
    if out:
        out.write_bytes(done.stdout)
    said = ("" if out else done.stdout.decode()) + done.stderr.decode()
    if done.returncode:
        sys.exit(f"commentd {words[0]} ends with {done.returncode}: {said}")
    return said, seconds


def compare(
    there: dict[int, Told], here: dict[int, Told], fields: Iterable[str] = Told._fields
) -> Counter[str]:
    """How many comments are not here, and how many differ in which field; the first of each kind
    is shown."""
    wrong: Counter[str] = Counter()
    for number in sorted(there.keys() | here.keys()):
        one, other = there.get(number), here.get(number)
        kinds = [field for field in fields if getattr(one, field, 0) != getattr(other, field, 0)]
        if one is None or other is None:
            kinds = ["missing" if one else "extra"]
        for kind in kinds:
            wrong[kind] += 1
            if wrong[kind] == 1:
                was, became = (repr(getattr(each, kind, each))[:80] for each in (one, other))
                print(f"    {kind}, № {number}: {was} -> {became}")
    return wrong


def keep(file: Path, folder: Path) -> None:
    """A small one for the tests, as text."""
    if file.suffix == ".json":
        rows = re.sub(r"\n\t{4}|\n\t{3}(?=\})", "", file.read_text("utf-8"))  # a line each
        (folder / "real_waline.json").write_text(rows, "utf-8")
        return
    with closing(sqlite3.connect(file)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        lines = [f"PRAGMA user_version = {version};", *db.iterdump(), ""]
        (folder / "real_isso.sql").write_text("\n".join(lines), "utf-8")


class Row(NamedTuple):
    """What became of the comments on a way; `wrong` is what nothing excuses."""

    way: str
    comments: int
    seconds: float
    lost: Counter[str]
    wrong: Counter[str]


def move(name: str, home: Path, folder: Path, number: int, kept: Path | None) -> Iterator[Row]:
    folder.mkdir(parents=True)
    with blog.blog({"/oauth": ({}, '{"services": []}')}) as address:
        product = fresh(name, home, folder / "old", address)
        before = time.perf_counter()
        product.fill([told(each) for each in range(number)])
        print(f"{name}: {number} comments written in {time.perf_counter() - before:.0f} s")
        truth = by_number(product.says())
        file = product.out(folder)
        if kept:
            keep(file, kept)
        views = product.views()
        yield from moved_in(name, truth, views, file, folder / "commentd.db")
        for form, (reader, *_) in FORMS.items():
            if (home.parent / reader).exists():
                empty = fresh(reader, home.parent / reader, folder / form, address)
                yield moved_out(name, form, truth, views, empty, folder)


class Form(NamedTuple):
    """Who reads it, and the fields and states that it can hold; texts are HTML in WXR, which Isso
    does not turn back."""

    reader: str
    fields: set[str]
    states: set[str]


BASE = {"page", "name", "at", "website", "mail"}
FORMS = {
    "wordpress": Form("isso", BASE | {"parent", "state"}, {"visible", "waiting"}),
    "waline": Form("waline", {*Told._fields} - {"edited"}, {"visible", "waiting", "spam"}),
}


def fresh(name: str, home: Path, data: Path, address: str) -> Isso | Waline:
    data.mkdir(parents=True)
    return PRODUCTS[name](home, data, address)


def moved_in(
    name: str, truth: dict[int, Told], views: dict[str, int], file: Path, database: Path
) -> Iterator[Row]:
    size, states = file.stat().st_size, Counter(each.state for each in truth.values())
    print(f"  {file.name}: {size / 1e6:.2f} MB, {len(truth)} comments: {dict(states)}")
    for words, new in ((["--dry-run"], len(truth)), ([], len(truth)), ([], 0)):
        before = dump(str(database)) if database.exists() else {}
        report, seconds = commentd(database, "import", file, *words)
        print("".join(f"    {line}\n" for line in report.splitlines()), end="")
        wrong: Counter[str] = Counter()
        if f": {len(truth)} comments read, {new} new, {len(truth) - new} already" not in report:
            wrong["report"] += 1
        if (words or not new) and database.exists() and dump(str(database)) != before:
            wrong["changed"] += 1
        if new and not words:
            said, viewed = here(database)
            wrong += compare(truth, by_number(said)) + differing(views, viewed)
        way = f"{name} -> here {'again' if not new else ' '.join(words)}"
        yield Row(way, len(truth), seconds, wrong, wrong)


def differing(there: dict[str, int], here: dict[str, int]) -> Counter[str]:
    return Counter(views=sum(here.get(page) != number for page, number in there.items()))


def tell(wrong: Counter[str]) -> str:
    return ", ".join(f"{what} {number}" for what, number in wrong.items()) or "-"


def moved_out(
    name: str,
    form: str,
    truth: dict[int, Told],
    views: dict[str, int],
    product: Isso | Waline,
    folder: Path,
) -> Row:
    """What a product reads of this form."""
    reader, fields, states = FORMS[form]
    file = folder / f"export.{form}"
    notes, seconds = commentd(folder / "commentd.db", "export", form, "--emails", out=file)
    print(f"  {file.name}: {file.stat().st_size / 1e6:.2f} MB")
    print("".join(f"    {line}\n" for line in notes.splitlines()), end="")
    product.back(form, file)
    back = by_number(product.says())
    truth = as_told_by(reader, truth)
    lost = compare(truth, back)
    held = {number: each for number, each in truth.items() if each.state in states}
    wrong = compare(held, {number: each for number, each in back.items() if number in held}, fields)
    wrong += differing(views if reader == "waline" else {}, product.views())
    return Row(f"{name} -> here -> {reader} ({form})", len(back), seconds, lost, wrong)


def as_told_by(reader: str, truth: dict[int, Told]) -> dict[int, Told]:
    """The same in the words of the product: Isso puts each answer below the first comment."""
    if reader == "waline":
        return {number: as_read(each) for number, each in truth.items()}
    tops: dict[Any, int] = {}
    for number, each in sorted(truth.items()):
        tops[number] = tops.get(each.parent, number)
    return {
        number: each._replace(parent=None if tops[number] == number else tops[number])
        for number, each in truth.items()
    }


PRODUCTS: dict[str, type[Isso] | type[Waline]] = {"isso": Isso, "waline": Waline}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=PRODUCTS, metavar="NAME")
    parser.add_argument("--count", type=int, default=1000, metavar="N")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    asked = parser.parse_args()
    rows: list[Row] = []
    for name in asked.only or PRODUCTS:
        home = asked.folder.resolve() / name
        if not installed(home, PRODUCTS[name].packages):
            continue
        moved = asked.folder.resolve() / "moved" / name
        shutil.rmtree(moved, ignore_errors=True)
        rows += move(name, home, moved, asked.count, asked.keep)
    print(f"\n{'':40}{'read':>6}{'seconds':>9}  not the same | a fault")
    for row in rows:
        print(f"{row.way:40}{row.comments:6}{row.seconds:9.2f}  ", end="")
        print(f"{tell(row.lost)} | {tell(row.wrong)}")
    sys.exit(any(row.wrong for row in rows) or not rows)


if __name__ == "__main__":
    main()
