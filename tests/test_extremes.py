"""The ends of what there can be: rows that another program spoilt, settings that make no sense,
threads without end. What is spoilt hurts itself alone; what is huge costs no more than its part."""

import configparser
import json
import os
import re
import shutil
import sqlite3
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import inside
import pytest
import webtest
from conftest import CANARY, START, Campaign, Outside, Visitor
from serving import instead_of_serving
from test_admin import Judge

from commentd import App, Config, World, example_config, main, make_app

pytestmark = pytest.mark.slow

MINUTE, HOUR, DAY = 60, 3600, 86400
BLOG = "https://blog.example"
USUAL: dict[str, Any] = {
    "captcha_provider": "none",
    "limits_enabled": False,
    "server_metrics": True,
    "server_public_url": "https://comments.example",
    "site_origins": (BLOG,),
    "webhook_url": f"{BLOG}/hook",
}
SCRIPT = "<script>alert(1)</script>"


OWNER = "owner@example.com"
FORMATS = ["commentd", "waline", "artalk", "isso", "wordpress"]


def world_of(outside: Outside) -> World:
    """Webhooks are taken by nobody."""
    return replace(outside.world, fetch=lambda *_, **__: (200, b""))


def new_admin(app: App, email: str = OWNER, nickname: str = "Owner") -> str:
    """The token of a new admin."""
    inside.add_account(app, email, nickname, CANARY, "admin")
    return inside.token_of(app, email, "admin")


@pytest.fixture
def exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> Callable[[App, str], bytes]:
    """What `commentd export FORMAT --emails` prints."""

    def export(app: App, name: str) -> bytes:
        monkeypatch.setenv("COMMENTD_DATABASE_PATH", inside.database_path(app))
        monkeypatch.setenv("COMMENTD_SITE_ORIGINS", BLOG)
        capsysbinary.readouterr()
        code = main(["export", name, "--emails"])
        printed, errors = capsysbinary.readouterr()
        assert code == 0, errors
        return printed

    return export


# Rows that are spoilt


class Half:
    """One half of a blog: a page, a reader with an account, a guest, what moderators did there."""

    def __init__(self, app: App, outside: Outside, owner: webtest.TestApp, name: str) -> None:
        self.app, self.outside, self.owner, self.name = app, outside, owner, name
        self.url, self.email = f"/{name}/", f"{name}@example.com"
        self.client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})

    def post(self, path: str, **form: Any) -> Any:
        return self.client.post_json(path, form)

    def say(self, content: str, **form: Any) -> int:
        said = {"page_url": self.url, "nickname": self.name, "captcha_token": "x", "lang": "en"}
        answer = self.post("/comments", **said, content=content, **form)
        number: int = answer.json["comment"]["id"]
        return number

    def words(self, email: str = "") -> dict[str, str]:
        words = {"email": email or self.email, "nickname": self.name, "password": CANARY}
        return {**words, "captcha_token": "x"}

    def sign_in(self) -> None:
        self.client.authorization = (
            "Bearer",
            self.post("/auth/login", **self.words()).json["token"],
        )

    def judge(self, number: int, **wish: Any) -> None:
        self.owner.post_json("/admin/comments", {"ids": [number], **wish})

    def live(self) -> None:
        """A little of all that leaves rows."""
        guest = self.say("a guest's", email=f"guest-{self.name}@example.com")
        self.post("/auth/register", **self.words())
        self.app.deliver()
        mine = [letter.recipient for letter in self.outside.letters].index(self.email)
        self.post("/auth/verify", email=self.email, token=self.outside.code(mine))
        self.sign_in()
        first = self.say("a member's https://example.com/")
        self.say("an answer", parent_id=guest)
        self.say("another", parent_id=self.say("below", parent_id=first))
        for what in ("like", "follow"):
            self.post(f"/page/{what}", page_url=self.url)
        self.post("/comment/like", id=guest)
        self.post(f"/comments/{first}/report", reason="rude")
        self.client.authorization = None
        self.post("/comment/like", id=first)
        self.post("/auth/register", **self.words(f"new-{self.name}@example.com"))
        for number in range(12):
            said = self.say(f"buy pills and cheap {self.name} {number}")
            self.judge(said, status=("spam", "visible")[number % 2])
        self.judge(first, pinned=True)
        self.judge(self.say("waits"), status="waiting")
        block = {"kind": "word", "value": f"blocked {self.name}", "days": 9}
        self.owner.post_json("/admin/blocks", block)
        self.app.deliver()
        self.outside.mail_fails_with = ConnectionRefusedError(111, "refused")
        self.outside.time += HOUR
        self.say("a late one", parent_id=first)
        self.app.deliver()
        self.app.tick()
        self.outside.mail_fails_with = None
        imported = "INSERT INTO import (product, product_id, comment_id, original)"
        inside.sql(self.app, f"{imported} VALUES ('isso', ?, ?, '')", self.name, first)


Key = dict[str, Any]


def rows_of(path: Path) -> list[tuple[str, Key]]:
    """The tables and keys of all rows but the key of the whole."""
    found = []
    with closing(sqlite3.connect(path)) as db:
        names = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        for table in set(names) - {"secret", "sqlite_sequence"}:
            columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            key = [column[1] for column in columns if column[5]]
            for row in db.execute(f"SELECT {', '.join(key)} FROM {table} ORDER BY 1"):
                found.append((table, dict(zip(key, row, strict=True))))
    return sorted(found, key=str)


class Blog:
    """A database in which two halves live, and what of it belongs to the one that is spoilt."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.path, self.outside = folder / "commentd.db", Outside()
        with closing(self.opened(self.path)) as app:
            token = new_admin(app)
            self.owner = {"Authorization": f"Bearer {token}"}
            owner = webtest.TestApp(app)
            owner.authorization = ("Bearer", token)
            Half(app, self.outside, owner, "good").live()
            before = rows_of(self.path)
            Half(app, self.outside, owner, "spoilt").live()
            new_admin(app, "second@example.com", "Second")
            inside.admin_link(app, "third@example.com")
        shared = ("budget", "day", "token")
        rows = [(t, key) for t, key in rows_of(self.path) if t in shared or (t, key) not in before]
        self.cells = []
        with closing(sqlite3.connect(self.path)) as db:
            for table in sorted({table for table, _ in rows}):
                keys = [key for t, key in rows if t == table]
                for _, column, kind, never_null, _, place in db.execute(
                    f"PRAGMA table_info({table})"
                ):
                    # Another number is another row; the greatest leaves SQLite none to give.
                    if not (place and kind == "INTEGER"):
                        values = (NUMBERS if kind == "INTEGER" else TEXTS) + [None] * (
                            not never_null
                        )
                        self.cells.append((table, keys, column, values))

    def opened(self, path: Path) -> App:
        folder = str(path.parent / "backups")
        config = Config(database_path=str(path), backup_folder=folder, **USUAL)
        app = make_app(config, world_of(self.outside), rounds=1)
        inside.connections(app)[0].execute("PRAGMA synchronous = OFF")
        return app


NUMBERS = [2**63 - 1, -(2**63), -1, 0, 1, 2, 3, 10**12, -(10**12)]
TEXTS: list[Any] = [
    "", "\0", "junk", SCRIPT, f'"><svg onload=alert(1)>{SCRIPT}', '{"', "{0.__class__} %s",
    "9" * 99, "a\r\nBcc: eve@evil.example", "javascript:alert(1)", "http://[", "=?utf-8?b?////?=",
    "名@例子.cn", "user 1", "\u202e\u0000\ufdd0", "pbkdf2_sha256$1$zz$00", "x" * 1_000_000,
    b"\xff", b"a\xed\xa0\x80b",
]  # fmt: skip


def spoil(path: Path, table: str, key: Key, column: str, value: Any) -> bool:
    """Set one column to what does not belong there; False where SQLite will not have it."""
    cast = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
    where = " AND ".join(f"{name} IS ?" for name in key)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        try:
            db.execute(
                f"UPDATE {table} SET {column} = {cast} WHERE {where}", (value, *key.values())
            )
        except sqlite3.Error:
            return False
    return True


class Look:
    """All that a blog still has to do when a row was spoilt; `faults` is what it did not."""

    def __init__(self, app: App, blog: Blog, export: Callable[[App, str], bytes]) -> None:
        self.app, self.blog, self.export, self.faults = app, blog, export, list[str]()
        self.client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "198.51.100.9"})
        self.seen: dict[str, set[str]] = {}  # of the good half, by what was asked

    def ask(self, path: str, method: str = "GET", headers: Any = None, **form: Any) -> Any:
        ask = self.client.get if method == "GET" else getattr(self.client, f"{method.lower()}_json")
        more = {} if method == "GET" else {"params": form}
        answer = ask(path, headers=headers, expect_errors=True, **more)
        name, kind = f"{method} {path}", answer.content_type
        if answer.status_int != 200:
            self.faults.append(f"{name}: {answer.status_int}")
        markup = answer.text if kind == "text/html" else "".join(CONTENT.findall(answer.text))
        if re.search(r"(<|&lt;)(script|svg)\b[^&>]*(>|&gt;)alert|onload=", markup):
            self.faults.append(f"{name}: a script")
        value = answer.json if kind == "application/json" else None
        links = re.findall(r"/good/#comment-[0-9]+", answer.text)
        self.seen[name] = {*(good_in(value) if value else links)}
        return value

    def does(self, what: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            self.faults.append(f"{what}: {type(error).__name__} {str(error)[:80]}")

    def look(self) -> None:
        letters = self.blog.outside.letters
        letters.clear()
        for url in ("/good/", "/spoilt/"):
            for view in ("flat", "threads"):
                for sort in ("newest", "likes"):
                    self.ask(f"/comments?url={url}&view={view}&sort={sort}&limit=100")
            self.ask(f"/comments?url={url}&around=3&view=threads")
            self.ask(f"/thread?url={url}")
            self.ask(f"/feed.atom?url={url}")
        for path in ("/comments/latest?limit=30", "/feed.atom", "/metrics"):
            self.ask(path)
        self.ask("/pages?url=/good/&url=/spoilt/")
        for path in ADMIN:
            self.ask(f"/admin/{path}", headers=self.blog.owner)
        self.work()
        for wait in (0, MINUTE, HOUR, DAY):
            self.blog.outside.time += wait
            self.does("tick", self.app.tick)
            self.does("deliver", self.app.deliver)
            assert len(letters) < 300, "the same email goes out again and again"
        whole = {"good@example.com", "fresh@example.com", "owner@example.com"}
        self.seen["letters"] = whole & {each.recipient for each in letters}
        self.does("keep", self.app.keep)
        for name in FORMATS:
            text = self.does(name, lambda name=name: self.export(self.app, name))
            found = re.findall(rb"pills and cheap good [0-9]+", text or b"")
            self.seen[name] = {each.decode() for each in found}
        self.does("close", self.app.close)

    def work(self) -> None:
        """What readers of the good half, and the owner, do."""
        words = {"email": "good@example.com", "password": CANARY, "captcha_token": "x"}
        login = self.ask("/auth/login", "POST", **words)
        mine = {"Authorization": f"Bearer {login['token']}"} if "token" in login else {}
        said = {"page_url": "/good/", "nickname": "Lu", "captcha_token": "x", "lang": "en"}
        self.ask("/comments", "POST", **said, content="well said", parent_id=2)
        self.ask("/comments", "POST", mine, **said, content="is it?", parent_id=1)
        self.ask("/comment/like", "POST", id=2)
        self.ask("/page/like", "POST", page_url="/good/")
        self.ask("/comments/2/report", "POST", reason="loud")
        for path in ("/me?url=/good/", "/me/export"):
            self.ask(path, headers=mine)
        words = {**words, "email": "fresh@example.com", "nickname": "Fresh"}
        self.ask("/auth/register", "POST", **words)
        self.ask("/admin/comments", "POST", self.blog.owner, ids=[3], status="spam")
        self.ask("/admin/comments/2", "PATCH", self.blog.owner, nickname="Corrected")
        self.ask("/admin/pages/1", "PATCH", self.blog.owner, closed=True)
        self.ask("/admin/blocks", "POST", self.blog.owner, kind="word", value="casino")


CONTENT = re.compile('(?s)<content type="html">(.*?)</content>')


def good_in(value: Any) -> Iterator[str]:
    """The comments and pages of the good half, wherever they stand in an answer."""
    if isinstance(value, dict) and value.get("page_url") == "/good/":
        # What others make of it: the spam filter learns from all.
        other = ("spam", "known", "replies", "id", "edited", "token", "edit_token", "total")
        yield str({name: each for name, each in value.items() if name not in other})
    for each in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from good_in(each)


ADMIN = [
    "comments?limit=100", "comments?status=waiting", "comments?status=reported", "comments?q=a",
    "comments?status=spam", "pages", "pages?sort=views", "users", "users?q=o", "blocks", "audit",
    "outbox", "settings", "figures",
]  # fmt: skip


def test_a_row_that_was_spoilt_hurts_itself_alone(
    tmp_path: Path, campaign: Campaign, exported: Callable[[App, str], bytes]
) -> None:
    blog = Blog(tmp_path / "blog")
    begun, path = blog.outside.time, tmp_path / "commentd.db"

    def looked() -> Look:
        blog.outside.time = begun
        look = Look(blog.opened(path), blog, exported)
        look.look()
        return look

    shutil.copy(blog.path, path)
    usual = looked()
    assert usual.faults == []
    assert usual.seen["letters"] >= {"good@example.com", "fresh@example.com"}
    for chance in campaign.rounds(3):
        table, keys, column, values = chance.choice(blog.cells)
        key, value = chance.choice(keys), chance.choice(values)
        for file in tmp_path.glob("commentd.db*"):
            file.unlink()
        shutil.copy(blog.path, path)
        if not spoil(path, table, key, column, value):
            campaign.figures["refused by SQLite"] += 1
            continue
        campaign.figures["rows"] += 1
        look = looked()
        lost = {name: usual.seen[name] - look.seen[name] for name in usual.seen}
        lost = {name: what for name, what in lost.items() if what and "spoilt" not in name}
        assert (look.faults, lost) == ([], {}), f"{table}.{column} = {value!r:.99} of {key}"


# Settings that make no sense

WORDS = [
    "", " ", "\0", "a\0b", "\x1b[2J", "%", "%(x)s", "${x}", "{}", "{0.__class__}", "١٢٣", "１２",
    "²", "½", "9" * 400, "-1", "0", "1", "1e9", "0x10", "1_000", "+1", "1\n2", "yes\nno", "a\n b",
    "\u2028", "名", "ｙｅｓ", "İ", "x" * 5000, SCRIPT, "=?utf-8?b?////?=", "https://[", "https://a:b@c",
    "http://x:99999", "http://例子/", "https://x.example", "https://x.example/a b", "unix:", "unix",
    "HTTPS://X.EXAMPLE:443", "unix:/nowhere/at/all", "unix:/" + "x" * 300, "none", "a@b", "a@b.de",
    "a..b@c.de", ".@c.de", "A <a@b.de>", "<a@b.de>", '"A" <a@b.de>', "a@b\r\nBcc: c@d.de", "a@-",
    "127.0.0.1:0", "[::1]:0", "[::]:", "0.0.0.0/0", "::/0", "1.2.3.4/99", "fe80::1%x", "whsec_!!",
    "whsec_", "whsec_YWJj", "*", "/* = ", "/* = a@b.de", "a = b@c.de, nobody", "= nobody", "[x",
    "\ufeff", "#x", ";", "[x]", "=", "nobody", "altcha", "hcaptcha", "telegram", "first", "all",
    "yes", "no", "NO", "65535", "65536", "2147483648", "de", "tls", "full",
]  # fmt: skip
KEPT = "Canary-in-the-settings"  # in each secret


PLACES = {("database", "path"), ("backup", "folder"), ("server", "listen")}
SECRETS = {("token", "key"), ("mail", "password"), ("captcha", "secret")}
SECRETS |= {("webhook", "url"), ("webhook", "secret")}


def all_settings() -> list[tuple[str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(re.sub(r"(?m)^#(\w+ =)", r"\1", example_config()))
    return [(section, key) for section in parser.sections() for key in parser[section]]


def test_any_settings_are_served_or_refused_in_a_sentence(
    tmp_path: Path,
    campaign: Campaign,
    outside: Outside,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    faults: list[str] = []
    instead_of_serving(monkeypatch, world_of(outside), lambda app: faults.extend(misused(app)))
    known = all_settings()
    assert {*known} >= SECRETS | PLACES
    for name in [name for name in os.environ if name.startswith("COMMENTD_")]:
        monkeypatch.delenv(name)
    for chance in campaign.rounds(20):
        told = chance.sample(known, chance.choice([1, 1, 2]))
        values = {name: chance.choice(WORDS) for name in told}
        for name in told:
            if name in SECRETS:
                values[name] = chance.choice(["", "https://x.example/"]) + KEPT + values[name]
        file, environ = tmp_path / "commentd.ini", {"COMMENTD_CAPTCHA_PROVIDER": "none"}
        environ["COMMENTD_SERVER_LISTEN"] = "127.0.0.1:0"
        if chance.random() < 0.5:
            lines = [f"[{section}]\n{key} = {text}\n" for (section, key), text in values.items()]
            file.write_text("".join(lines))
            environ = {k: v for k, v in environ.items() if k[9:] not in map(spelt, values)}
        else:
            environ |= {f"COMMENTD_{spelt(k)}": v.replace("\0", "") for k, v in values.items()}
        with pytest.MonkeyPatch.context() as patch:
            for name, text in environ.items():
                patch.setenv(name, text)
            code = main([])
        printed, sentence = capfd.readouterr()
        campaign.figures[f"exit code {code}"] += 1
        assert faults == [], values
        assert KEPT not in printed + sentence, values
        assert "Traceback" not in sentence, values
        # 1: what it names is not there, or can't be written.
        assert code in (0, 1, 2), values
        assert code != 1 or {*values} & PLACES, (values, sentence)
        assert not code or re.match("(commentd: .*\n)+\\Z", sentence), (values, sentence)
        for left in tmp_path.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()


def spelt(name: tuple[str, str]) -> str:
    return "_".join(name).upper()


def misused(app: App) -> Iterator[str]:
    """What does not work of a service that has started."""
    client = webtest.TestApp(app)
    provider = client.get("/captcha").json["provider"]
    words = {"email": "ann@example.com", "nickname": "Ann", "password": CANARY}
    said = {**words, "page_url": "/p/", "content": "hi https://a.example/", "captcha_token": "x"}
    for path in ("/comments", "/auth/register", "/auth/login", "/comments"):
        status = client.post_json(path, said, expect_errors=True).status_int
        if status >= 500 and not (status == 503 and provider == "hcaptcha"):
            yield f"POST {path}: {status}"
    token = new_admin(app)
    for path in ("/", "/comments?url=/p/&view=threads", "/feed.atom", "/thread?url=/p/", "/admin"):
        if (status := client.get(path, expect_errors=True).status_int) not in (200, 404):
            yield f"GET {path}: {status}"
    for path in ADMIN:
        headers = {"Authorization": f"Bearer {token}"}
        status = client.get(f"/admin/{path}", headers=headers, expect_errors=True).status_int
        if status != 200:
            yield f"GET /admin/{path}: {status}"
    for work in (app.tick, app.deliver):
        work()


# Threads without end

SHAPES = {
    # The parent of the i-th comment, and the thread that it is in.
    "deep": ("CASE i WHEN 1 THEN NULL ELSE i - 1 END", "CASE i WHEN 1 THEN NULL ELSE 1 END"),
    "wide": ("CASE i WHEN 1 THEN NULL ELSE 1 END", "CASE i WHEN 1 THEN NULL ELSE 1 END"),
    "flat": ("NULL", "NULL"),
    "in circles": ("i % :n + 1", "1"),
}


def grown(path: Path, shape: str, n: int) -> None:
    """A page with so many comments, likers, blocks, followers, letters; and as many other pages."""
    parent, thread = SHAPES[shape]
    rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :n)"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO page (id, key, page_url, seen_at) VALUES (1, '/big', '/big/', 1)")
        for sql in (
            f"""INSERT INTO comment (id, page_id, parent_id, thread_id, nickname, email, website,
                       content, html, ip, country, location, status, created_at)
                {rows} SELECT i, 1, {parent}, {thread}, 'Lu', '', '', 'text ' || i, '<p>text</p>',
                       '', '', '', 'visible', {START} + i FROM n""",
            f"INSERT INTO comment_liker (comment_id, visitor) {rows} SELECT 1, 'v' || i FROM n",
            f"INSERT INTO page_liker (page_id, visitor) {rows} SELECT 1, 'v' || i FROM n",
            f"""INSERT INTO page (key, page_url, seen_at) {rows}
                SELECT '/p' || i, '/p' || i, {START} FROM n""",
            f"""INSERT INTO outbox (recipient, message, tries, due_at, expires_at) {rows}
                SELECT 'a@example.com', 'Subject: x', 1, 2 * {START}, 2 * {START} FROM n""",
            f"""INSERT INTO audit (created_at, who, action, subject, detail) {rows}
                SELECT {START}, 'x', 'spam', i, '' FROM n""",
        ):
            db.execute(sql, {"n": n})


HUGE = [
    "/comments?url=/big/", "/comments?url=/big/&limit=100",
    "/comments?url=/big/&view=threads&limit=100",
    "/comments?url=/big/&page=7&sort=likes", "/comments?url=/big/&around=99&view=threads",
    "/thread?url=/big/", "/feed.atom?url=/big/", "/comments/latest?limit=30",
    *(f"/admin/{path}" for path in ("comments", "pages", "users", "outbox", "audit", "figures")),
]  # fmt: skip


@pytest.mark.parametrize(
    "shape",
    ["deep", "in circles", *(pytest.param(s, marks=pytest.mark.long) for s in ("wide", "flat"))],
)
def test_what_is_huge_is_answered_in_pieces(
    config: Config,
    outside: Outside,
    campaign: Campaign,
    shape: str,
    exported: Callable[[App, str], bytes],
) -> None:
    """Four times as much is no larger an answer, and no more statements; none recurses."""
    most = 25_000 if campaign.seconds else 250
    told: dict[str, list[tuple[int, int]]] = {}
    for n in (most, 4 * most):
        path = Path(config.database_path).with_name(f"{n}.db")
        each = replace(config, **USUAL, database_path=str(path))
        make_app(each, world_of(outside), rounds=1).close()
        grown(path, shape, n)
        with closing(make_app(each, world_of(outside), rounds=1)) as app:
            inside.recount(app)
            token = new_admin(app)
            client = webtest.TestApp(app)
            client.get("/health")
            asked: list[str] = []
            writer, reader = inside.connections(app)
            writer.execute("PRAGMA synchronous = OFF")
            reader.set_trace_callback(asked.append)
            for path_ in HUGE:
                client.authorization = ("Bearer", token) if "/admin/" in path_ else None
                asked.clear()
                answer = client.get(path_)
                told.setdefault(path_, []).append((len(answer.body), len(asked)))
            client.authorization = None
            parent = {"parent_id": n} if shape != "in circles" else {}
            said = {"page_url": "/big/", "nickname": "Lu", "content": "the last", **parent}
            for _ in range(2):
                asked.clear()
                writer.set_trace_callback(asked.append)
                done = client.post_json("/comments", {**said, "captcha_token": "x"}).json
                writer.set_trace_callback(None)
            told.setdefault("write", []).append((0, len(asked)))
            form = {"edit_token": done["edit_token"]}
            client.delete_json(f"/comments/{done['comment']['id']}", form)
            form = {"ids": [n, 1, n // 2], "status": "spam"}
            client.authorization = ("Bearer", token)
            client.post_json("/admin/comments", form)
            client.post_json("/admin/comments", {**form, "status": "visible"})
            app.tick()
            for name in ("commentd", "artalk", "isso"):
                assert len(exported(app, name)) > n
        campaign.figures["rows"] += 6 * n
    for path_, ((size, count), (more, counted)) in told.items():
        assert more < 1.2 * size + 2000, path_
        assert counted <= count + 2, path_


# The longest of everything

LETTERS = {
    "wide": "\ufdfd\U0001242b",
    "piled up": "a\u0301\u0302\u0303",
    "turned": "\u05d0\u0627",
    "in full": "𝕬𝔫",
    "joined": "👩\u200d💻",
    "marked": "<&>*_`[!]('\"{}%",
}
TURNED = "\u202e\u2066\u202b"  # only a comment may hold them


@pytest.mark.parametrize("kind", LETTERS)
def test_the_longest_of_everything_goes_everywhere(
    config: Config, outside: Outside, kind: str, exported: Callable[[App, str], bytes]
) -> None:
    """What is written at all limits at once is read, searched, mailed, judged and exported."""
    letters = LETTERS[kind]
    name = (letters * 64)[: 256 // max(len(c.encode()) for c in letters)][:64].rstrip("\u200d")
    url = "/" + (letters * 2048)[:2046].rstrip("\u200d") + "/"
    text = (TURNED + letters * 10_000)[:10_000]
    more = {**USUAL, "comments_max_length": 10_000, "notify_owner": (OWNER,)}
    with closing(make_app(replace(config, **more), world_of(outside), rounds=1)) as app:
        visitor, token = Visitor(app), new_admin(app)
        email = f"{'e' * 64}@{'h' * 62}.{'h' * 62}.{'h' * 60}.cn"
        said = {"page_url": url, "nickname": name, "email": email, "content": text}
        said["website"] = "https://example.com/" + "x" * 2028
        assert len(email) == 254

        def say(**fields: Any) -> Any:
            # As browsers do: WebTest would write each letter in six bytes.
            body = json.dumps({**said, "captcha_token": "x", **fields}, ensure_ascii=False)
            kind = "application/json"
            return visitor.post("/comments", body.encode(), content_type=kind).json["comment"]

        first = say()
        say(parent_id=first["id"], email="")
        visitor.post_json(f"/comments/{first['id']}/report", {"reason": (letters * 500)[:500]})
        app.deliver()
        assert {letter.recipient for letter in outside.letters} == {OWNER, email}
        query = {"url": url}
        for path in ("/comments", "/thread", "/feed.atom", "/pages"):
            if len(urllib.parse.urlencode(query)) < 8000:
                assert visitor.get(path, query).status_int == 200
        found = visitor.get("/comments/latest").json["comments"]
        assert [each["content"] for each in found] == [first["content"]] * 2
        owner = Judge(app)
        owner.authorization = ("Bearer", token)
        found = owner.get("/admin/comments", {"q": text[3:67]}).json["comments"]
        assert [each["id"] for each in found] == [2, 1]
        for path in ("pages", "audit", "figures"):
            owner.get(f"/admin/{path}")
        for name in FORMATS:
            assert exported(app, name)


def test_an_export_does_not_wait_for_itself_when_it_ends(
    app: App, visitor: Visitor, exported: Callable[[App, str], bytes]
) -> None:
    """It would keep the writers of the service waiting, whose turn it holds meanwhile."""
    visitor.say()
    assert b"hi" in exported(app, "commentd")
    assert Path(inside.database_path(app) + "-wal").stat().st_size == 0
