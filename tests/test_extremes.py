"""The ends of what there can be: rows that another program spoilt, settings that make no sense,
threads without end. What is spoilt hurts itself alone; what is huge costs no more than its part."""

import configparser
import html
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
from test_commands import run_here

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
ADMIN = [
    "comments?limit=100", "comments?status=waiting", "comments?status=reported", "comments?q=a",
    "comments?status=spam", "pages", "pages?sort=views", "users", "users?q=o", "blocks", "audit",
    "outbox", "settings", "figures",
]  # fmt: skip


def world_of(outside: Outside) -> World:
    """Webhooks are taken by nobody."""
    return replace(outside.world, fetch=lambda *_, **__: (200, b""))


def new_admin(app: App, email: str = OWNER, nickname: str = "Owner") -> tuple[str, str]:
    """The login of a new admin."""
    inside.add_account(app, email, nickname, CANARY, "admin")
    return "Bearer", inside.token_of(app, email, "admin")


def exported(app: App, name: str) -> str:
    """What `commentd export FORMAT --emails` prints."""
    path = Path(inside.database_path(app))
    settings = {"COMMENTD_DATABASE_PATH": str(path), "COMMENTD_SITE_ORIGINS": BLOG}
    code, text, errors = run_here(path.parent, "export", name, "--emails", **settings)
    assert code == 0, errors
    return text


# Rows that are spoilt


def live(app: App, outside: Outside, owner: webtest.TestApp, name: str) -> None:
    """A little of all that leaves rows: a page, a reader with an account, a guest, moderators."""
    client = webtest.TestApp(app, {"REMOTE_ADDR": "203.0.113.7"})
    about = {"nickname": name, "captcha_token": "x", "lang": "en", "page_url": f"/{name}/"}
    login = {**about, "email": f"{name}@example.com", "password": CANARY}

    def say(content: str, **form: Any) -> int:
        said = client.post_json("/comments", {**about, "content": content, **form})
        number: int = said.json["comment"]["id"]
        return number

    def moderate(number: int, **wish: Any) -> None:
        owner.post_json("/admin/comments", {"ids": [number], **wish})

    guest = say("a guest's", email=f"guest-{name}@example.com")
    client.post_json("/auth/register", login)
    app.deliver()
    mine = [letter.recipient for letter in outside.letters].index(login["email"])
    client.post_json("/auth/verify", {"email": login["email"], "token": outside.code(mine)})
    client.authorization = ("Bearer", client.post_json("/auth/login", login).json["token"])
    first = say("a member's https://example.com/")
    say("a reply", parent_id=guest)
    say("another", parent_id=say("below", parent_id=first))
    for what in ("like", "follow"):
        client.post_json(f"/page/{what}", about)
    client.post_json("/comment/like", {"id": guest})
    client.post_json(f"/comments/{first}/report", {"reason": "rude"})
    client.authorization = None
    client.post_json("/comment/like", {"id": first})
    client.post_json("/auth/register", {**login, "email": f"new-{name}@example.com"})
    for number in range(12):
        moderate(
            say(f"buy pills and cheap {name} {number}"), status=("spam", "visible")[number % 2]
        )
    moderate(first, pinned=True)
    moderate(say("waits"), status="waiting")
    owner.post_json("/admin/blocks", {"kind": "word", "value": f"blocked {name}", "days": 9})
    app.deliver()
    outside.mail_fails_with = ConnectionRefusedError(111, "refused")
    outside.time += HOUR
    say("a late one", parent_id=first)
    app.deliver()
    app.tick()
    outside.mail_fails_with = None
    imported = "INSERT INTO import (product, product_id, comment_id, original)"
    inside.sql(app, f"{imported} VALUES ('isso', ?, ?, '')", name, first)


Key = dict[str, Any]
Cell = tuple[str, Key, str, Any]  # a table, the key of a row, a column, what it shall hold


def keys_of(path: Path, table: str) -> list[Key]:
    with closing(sqlite3.connect(path)) as db:
        columns = db.execute(f"PRAGMA table_info({table})").fetchall()
        key = [column[1] for column in columns if column[5]]
        rows = db.execute(f"SELECT {', '.join(key)} FROM {table} ORDER BY 1")
        return [dict(zip(key, row, strict=True)) for row in rows]


NUMBERS = [2**63 - 1, -(2**63), -1, 0, 1, 2, 3, 10**12, -(10**12)]
TEXTS: list[Any] = [
    "", "\0", "junk", SCRIPT, f'"><svg onload=alert(1)>{SCRIPT}', '{"', "{0.__class__} %s",
    "9" * 99, "a\r\nBcc: eve@evil.example", "javascript:alert(1)", "http://[", "=?utf-8?b?////?=",
    "名@例子.cn", "user 1", "\u202e\u0000\ufdd0", "pbkdf2_sha256$1$zz$00", "x" * 1_000_000,
    b"\xff", b"a\xed\xa0\x80b",
]  # fmt: skip


class Blog:
    """A database in which a good and a spoilt half live, and what of it belongs to the latter."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.path, self.outside, self.cells = folder / "commentd.db", Outside(), list[Cell]()
        with closing(self.opened(self.path)) as app:
            owner = webtest.TestApp(app)
            owner.authorization = self.owner = new_admin(app)
            live(app, self.outside, owner, "good")
            names = inside.sql(app, "SELECT name FROM sqlite_schema WHERE type = 'table'")
            tables = sorted({name for (name,) in names} - {"secret", "sqlite_sequence"})
            before = {table: keys_of(self.path, table) for table in tables}
            live(app, self.outside, owner, "spoilt")
            new_admin(app, "second@example.com", "Second")
            inside.admin_link(app, "third@example.com")
        for table in tables:
            shared = table in ("budget", "day", "token")
            keys = [k for k in keys_of(self.path, table) if shared or k not in before[table]]
            with closing(sqlite3.connect(self.path)) as db:
                columns = db.execute(f"PRAGMA table_info({table})").fetchall()
            for _, column, kind, never_null, _, place in columns:
                # Another number is another row; the greatest leaves SQLite none to give.
                if not (place and kind == "INTEGER"):
                    values = (NUMBERS if kind == "INTEGER" else TEXTS) + [None] * (not never_null)
                    self.cells += [(table, key, column, v) for key in keys for v in values]

    def opened(self, path: Path) -> App:
        folder = str(path.parent / "backups")
        config = Config(database_path=str(path), backup_folder=folder, **USUAL)
        app = make_app(config, world_of(self.outside), rounds=1)
        inside.writer(app).execute("PRAGMA synchronous = OFF")
        return app


def spoil(path: Path, table: str, key: Key, column: str, value: Any) -> bool:
    """Set one column to what does not belong there; False where SQLite will not have it."""
    cast = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
    where = " AND ".join(f"{name} IS ?" for name in key)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA ignore_check_constraints = ON")
        sql = f"UPDATE {table} SET {column} = {cast} WHERE {where}"
        try:
            db.execute(sql, (value, *key.values()))
        except sqlite3.Error:
            return False
    return True


READS = [
    *(f"/comments?url=/{half}/&view={view}&sort={sort}&limit=100" for half in ("good", "spoilt")
      for view in ("flat", "threads") for sort in ("newest", "likes")),
    *(f"{path}url=/{half}/" for half in ("good", "spoilt")
      for path in ("/comments?around=3&view=threads&", "/thread?", "/feed.atom?")),
    "/comments/latest?limit=30", "/feed.atom", "/metrics", "/pages?url=/good/&url=/spoilt/",
    *(f"/admin/{path}" for path in ADMIN),
]  # fmt: skip
GOOD = {"email": "good@example.com", "password": CANARY, "captcha_token": "x"}
FRESH = {**GOOD, "email": "fresh@example.com", "nickname": "Fresh"}
SAID = {"page_url": "/good/", "nickname": "Lu", "captcha_token": "x", "lang": "en"}
WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/comments", {**SAID, "content": "well said", "parent_id": 2}),
    ("POST", "/comments", {**SAID, "content": "is it?", "parent_id": 1}),
    ("POST", "/comment/like", {"id": 2}),
    ("POST", "/page/like", SAID),
    ("POST", "/comments/2/report", {"reason": "loud"}),
    ("POST", "/auth/register", FRESH),
    ("POST", "/admin/comments", {"ids": [3], "status": "spam"}),
    ("PATCH", "/admin/comments/2", {"nickname": "Corrected"}),
    ("PATCH", "/admin/pages/1", {"closed": True}),
    ("POST", "/admin/blocks", {"kind": "word", "value": "casino"}),
]


def look(blog: Blog, path: Path) -> tuple[list[str], dict[str, set[str]]]:
    """Does all that a blog has to do: the faults, and what of the good half was seen, by where."""
    faults, seen = list[str](), dict[str, set[str]]()
    app, letters = blog.opened(path), blog.outside.letters
    client = webtest.TestApp(app, {"REMOTE_ADDR": "198.51.100.9"})

    def ask(path: str, method: str = "GET", form: Any = None) -> Any:
        if "/admin" in path:
            client.authorization = blog.owner
        how = client.get if method == "GET" else getattr(client, f"{method.lower()}_json")
        answer = how(path, form, expect_errors=True)
        client.authorization = None
        text, name = answer.text, f"{method} {path}"
        if answer.status_int != 200:
            faults.append(f"{name}: {answer.status_int}")
        parts = re.findall('(?s)<content type="html">(.*?)</content>', text)
        markup = text if answer.content_type == "text/html" else html.unescape("".join(parts))
        if re.search(r"<script\b[^>]*>alert|<svg\b[^>]*onload=", markup):
            faults.append(f"{name}: a script")
        is_json = answer.content_type == "application/json"
        seen[name] = {*(good_in(answer.json) if is_json else re.findall(r"/good/#[\w-]+", text))}
        return answer

    def does(what: str, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:
            faults.append(f"{what}: {type(error).__name__} {str(error)[:80]}")

    letters.clear()
    for url in READS:
        ask(url)
    token = ask("/auth/login", "POST", GOOD).json.get("token", "")
    for url in ("/me?url=/good/", "/me/export"):
        client.authorization = ("Bearer", token)
        ask(url)
    for method, url, form in WRITES:
        client.authorization = ("Bearer", token) if form.get("parent_id") == 1 else None
        ask(url, method, form)
    for wait in (0, MINUTE, HOUR, DAY):
        blog.outside.time += wait
        does("tick", app.tick)
        does("deliver", app.deliver)
        assert len(letters) < 300, "the same email goes out again and again"
    whole = {"good@example.com", "fresh@example.com", OWNER}
    seen["emails"] = whole & {each.recipient for each in letters}
    does("keep", app.keep)
    for name in FORMATS:
        text = does(name, lambda name=name: exported(app, name)) or ""
        seen[name] = {*re.findall(r"pills and cheap good \d+", text)}
    does("close", app.close)
    return faults, seen


def good_in(value: Any) -> Iterator[str]:
    """The comments and pages of the good half, wherever they stand in a response."""
    if isinstance(value, dict) and value.get("page_url") == "/good/":
        # What others make of it: the spam filter learns from all.
        other = ("spam", "known", "replies", "id", "edited", "token", "edit_token", "total")
        yield str({name: each for name, each in value.items() if name not in other})
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from good_in(each)


def test_a_row_that_was_spoilt_hurts_itself_alone(tmp_path: Path, campaign: Campaign) -> None:
    blog = Blog(tmp_path / "blog")
    begun, path = blog.outside.time, tmp_path / "commentd.db"
    shutil.copy(blog.path, path)
    faults, usual = look(blog, path)
    assert faults == []
    assert usual["emails"] >= {"good@example.com", "fresh@example.com"}
    for chance in campaign.rounds(3):
        blog.outside.time = begun
        for file in tmp_path.glob("commentd.db*"):
            file.unlink()
        shutil.copy(blog.path, path)
        table, key, column, value = chance.choice(blog.cells)
        if not spoil(path, table, key, column, value):
            campaign.figures["refused by SQLite"] += 1
            continue
        campaign.figures["rows"] += 1
        faults, seen = look(blog, path)
        lost = {name: usual[name] - seen[name] for name in usual if "spoilt" not in name}
        lost = {name: what for name, what in lost.items() if what}
        assert (faults, lost) == ([], {}), f"{table}.{column} = {value!r:.99} of {key}"


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
        in_file = values if chance.random() < 0.5 else {}
        lines = [f"[{section}]\n{key} = {text}\n" for (section, key), text in in_file.items()]
        (tmp_path / "commentd.ini").write_text("".join(lines))
        usual = {("captcha", "provider"): "none", ("server", "listen"): "127.0.0.1:0"}
        with pytest.MonkeyPatch.context() as patch:
            for name, text in (usual | values).items():
                if name not in in_file:
                    patch.setenv(f"COMMENTD_{'_'.join(name)}".upper(), text.replace("\0", ""))
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
    for path in ("/", "/comments?url=/p/&view=threads", "/feed.atom", "/thread?url=/p/", "/admin"):
        if (status := client.get(path, expect_errors=True).status_int) not in (200, 404):
            yield f"GET {path}: {status}"
    client.authorization = new_admin(app)
    for path in ADMIN:
        if (status := client.get(f"/admin/{path}", expect_errors=True).status_int) != 200:
            yield f"GET /admin/{path}: {status}"
    app.tick()
    app.deliver()


# A thread without end


def grown(path: Path, n: int) -> None:
    """A page whose comments each reply to the last one, with likers; as many pages and emails."""
    rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :n)"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("INSERT INTO page (id, key, page_url, seen_at) VALUES (1, '/big', '/big/', 1)")
        for sql in (
            f"""INSERT INTO comment (id, page_id, parent_id, thread_id, nickname, email, website,
                       content, html, ip, country, location, status, created_at)
                {rows} SELECT i, 1, nullif(i - 1, 0), iif(i > 1, 1, NULL), 'Lu', '', '',
                       'text ' || i, '<p>text</p>', '', '', '', 'visible', {START} + i FROM n""",
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


def test_what_is_huge_is_answered_in_pieces(
    config: Config, outside: Outside, campaign: Campaign
) -> None:
    """Four times as much is no larger a response; none recurses."""
    most, sizes = 25_000 if campaign.seconds else 500, dict[str, list[int]]()
    for n in (most, 4 * most):
        path = Path(config.database_path).with_name(f"{n}.db")
        each = replace(config, **USUAL, database_path=str(path))
        make_app(each, world_of(outside), rounds=1).close()
        grown(path, n)
        with closing(make_app(each, world_of(outside), rounds=1)) as app:
            inside.recount(app)
            inside.writer(app).execute("PRAGMA synchronous = OFF")
            client, login = webtest.TestApp(app), new_admin(app)
            for url in HUGE:
                client.authorization = login if "/admin/" in url else None
                sizes.setdefault(url, []).append(len(client.get(url).body))
            client.authorization = None
            said = {"page_url": "/big/", "nickname": "Lu", "content": "last", "captcha_token": "x"}
            done = client.post_json("/comments", {**said, "parent_id": n}).json
            form = {"edit_token": done["edit_token"]}
            client.delete_json(f"/comments/{done['comment']['id']}", form)
            client.authorization = login
            for status in ("spam", "visible"):
                form = {"ids": [n, 1, n // 2], "status": status}
                client.post_json("/admin/comments", form)
            app.tick()
            for name in ("commentd", "artalk", "isso"):
                assert len(exported(app, name)) > n
            # Nor does an export wait for itself, while writers of the service wait for it.
            assert path.with_name(f"{n}.db-wal").stat().st_size == 0
        campaign.figures["rows"] += 6 * n
    for url, (size, more) in sizes.items():
        assert more < 1.2 * size + 2000, url


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
    config: Config, outside: Outside, kind: str
) -> None:
    """What is written at all limits at once is read, searched, mailed, moderated and exported."""
    letters = LETTERS[kind]
    name = (letters * 64)[: 256 // max(len(c.encode()) for c in letters)][:64].rstrip("\u200d")
    url = "/" + (letters * 2048)[:2046].rstrip("\u200d") + "/"
    text = (TURNED + letters * 10_000)[:10_000]
    more = {**USUAL, "comments_max_length": 10_000, "notify_owner": (OWNER,)}
    with closing(make_app(replace(config, **more), world_of(outside), rounds=1)) as app:
        visitor, login = Visitor(app), new_admin(app)
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
        owner.authorization = login
        found = owner.get("/admin/comments", {"q": text[3:67]}).json["comments"]
        assert [each["id"] for each in found] == [2, 1]
        for path in ("pages", "audit", "figures"):
            owner.get(f"/admin/{path}")
        for name in FORMATS:
            assert exported(app, name)
