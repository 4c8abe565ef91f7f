"""What each released version left behind, in `tests/schemas/`: a database with rows in every table,
as SQL, and what readers, owners and exports saw of it, as JSON. `python tests/release.py` writes
both for this version, and test_upgrade.py brings each of them up to date."""

import contextlib
import json
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import webtest

from commentd import App, Config, __version__, make_app, zone_named
from support import inside
from support.admin import BLOG, OWNER, block, change, do, moderate, new_owner, pages, pin
from support.client import CANARY, Visitor
from support.commands import run_here
from support.database import drop_index, tables_in
from support.feed import Feed
from support.promises import promises
from support.sources import ROOT
from support.world import FakeWorld

FOLDER = ROOT / "tests" / "schemas"
DAY = 86400
PAGES = ["/2026/hello/", "/2026/日记/", "/about/"]
ANN = "ann@example.com"
SETTINGS: dict[str, Any] = {
    "captcha_provider": "none",
    "moderation_words": ("cheap",),
    "privacy_count_countries": True,
    "server_public_url": "https://comments.example",
    "site_name": "Lines",
    "site_origins": (BLOG,),
    "site_timezone": zone_named("Asia/Shanghai"),
    "webhook_url": "http://127.0.0.1:9/comments",  # where nobody listens
}
WALINE = {
    "type": "waline",
    "version": 1,
    "data": {
        "Comment": [
            {
                "objectId": 1,
                "nick": "Old Friend",
                "comment": "<p>From <u>before</u>.</p>",
                "url": "/about/",
                "mail": "friend@example.com",
                "insertedAt": "2024-05-06T07:08:09.000Z",
            }
        ],
        "Counter": [{"url": "/about/", "time": 321}],
    },
}
CODE = """How I do it:

```python
print("<b>")  # & more
```

| no | table |"""


def config_in(folder: Path) -> Config:
    return Config(
        database_path=str(folder / "commentd.db"), backup_folder=str(folder / "backups"), **SETTINGS
    )


# A database with rows in every table


def fill(folder: Path) -> FakeWorld:
    """Lets a blog have some lively days; the clock at their end."""
    fake_world = FakeWorld()
    (folder / "old.json").write_text(json.dumps(WALINE))
    with closing(make_app(config_in(folder), fake_world.world, rounds=1)) as app:
        write_comments(app, fake_world)
        moderate_comments(app, fake_world)
        leave_work_undone(app, fake_world)
    path = folder / "commentd.db"
    (folder / "commentd.ini").write_text(f"[database]\npath = {path}\n")
    assert run_here(folder, "import", "old.json")[0] == 0
    return fake_world


def write_comments(app: App, fake_world: FakeWorld) -> None:
    ann = Visitor(app, ip="203.0.113.7")
    ann.register()
    app.deliver()
    ann.verify(fake_world.code())
    ann.sign_in()
    first = ann.say("*First!* 第一条 🎉", website="https://ann.example")["comment"]["id"]
    ann.post_json("/page/follow", {"page_url": PAGES[0]})
    guest = Visitor(app, ip="223.5.5.5")
    fake_world.time += 3600
    reply = guest.say("回复一下", nickname="陆知微", email="lu@example.com", parent_id=first)
    fake_world.time += 700
    app.deliver()
    inner = ann.say(CODE, parent_id=reply["comment"]["id"])["comment"]["id"]
    app.deliver()  # the guest is asked whether they want emails about replies
    fake_world.time += DAY
    arab = Visitor(app, ip="2001:db8::7")
    arab.say("مرحبا بكم", nickname="نور", page_url=PAGES[1])
    edited = arab.say("It's -- ; 'quoted' \\ text", nickname="Zoë", page_url=PAGES[1])
    fake_world.time += 60
    arab.edit(edited, 'It\'s better; with -- "quotes" and a\nsecond line')
    for visitor in (ann, guest, arab):
        visitor.post_json("/comment/like", {"id": first})
    guest.post_json("/comment/like", {"id": inner})
    arab.post_json("/page/like", {"page_url": PAGES[0]})
    for path in (PAGES[0], PAGES[0], PAGES[1]):
        guest.listing(url=path)
    app.tick()
    fake_world.time += DAY


def moderate_comments(app: App, fake_world: FakeWorld) -> None:
    owner = new_owner(app)
    linked = Visitor(app, ip="198.51.100.20").say("Cheap: https://spam.example", nickname="Bo")
    waits = Visitor(app, ip="198.51.100.21").say("Is it cheap?", nickname="Cy")
    parent = Visitor(app, ip="198.51.100.22").say("To be deleted", nickname="Di")["comment"]["id"]
    Visitor(app, ip="198.51.100.23").say("A reply to it", nickname="Ed", parent_id=parent)
    moderate(owner, [linked["comment"]["id"]], "spam")
    moderate(owner, [parent], "deleted")
    moderate(owner, [1], "visible")
    assert waits["comment"]["status"] == "waiting"
    pin(owner, [1])
    do(owner, "reply", parent_id=2, content="Thanks, **all** of you.")
    block(owner, "word", "roulette", note="of a game")
    block(owner, "domain", "spam.example", days=3)
    numbers = {page["page_url"]: page["id"] for page in pages(owner)["pages"]}
    change(owner, f"pages/{numbers[PAGES[1]]}", closed=True)
    Visitor(app, ip="198.51.100.24").report(3, "rude")
    fake_world.time += 3600


# What other services, or a device of the owner, have a part in.
FROM_ELSEWHERE = [
    "INSERT INTO spent_captcha VALUES ('solved', 1, 1795999999)",
    "INSERT INTO joined_identity VALUES ('https://id.example', '7', 1, 1795000000)",
    "INSERT INTO recovery_code VALUES (2, 'a hash')",
    "INSERT INTO no_question VALUES ('another hash')",
    "INSERT INTO trusted VALUES ('a third hash')",
    "INSERT INTO chat_message VALUES ('chat.telegram', 7, 1, 'a hash')",
    "INSERT INTO chat_update VALUES ('chat.telegram', 70)",
    """INSERT INTO voucher VALUES ('a hash', 'a secret', 'a state', 'https://id.example', '8',
                                   'gil@example.com', 1, 'Gil', 'https://id.example/gil', 'en', 0,
                                   1795999999, 0)""",
    "INSERT INTO picture VALUES ('0123456789abcdef0123456789abcdef', 1, 'image/png', x'89', 1)",
    "UPDATE account SET picture = '0123456789abcdef0123456789abcdef' WHERE id = 1",
    "INSERT INTO face VALUES ('fedcba9876543210fedcba9876543210', 'image/png', x'89')",
    "UPDATE comment SET face = 'fedcba9876543210fedcba9876543210' WHERE id = 2",
    "INSERT INTO reaction VALUES (1, 1, '👍', 1)",
    "INSERT INTO reaction_liker VALUES (1, 'user 1', NULL)",
    "INSERT INTO setting VALUES ('moderation_keep_days', '40')",
]


def leave_work_undone(app: App, fake_world: FakeWorld) -> None:
    """An email that waits, one that failed, a code that was not entered, and a link not opened."""
    app.deliver()
    Visitor(app, ip="198.51.100.30").register("bob@example.com", nickname="Bob")
    Visitor(app, ip="198.51.100.31").say("The newest", nickname="Flo", email="flo@example.com")
    inside.admin_link(app, "second@example.com")
    for statement in FROM_ELSEWHERE:
        inside.sql(app, statement)
    app.tick()
    # A blog without these pictures drops it within a minute.
    inside.sql(app, "INSERT INTO avatar VALUES ('lu@example.com', '', 1)")


# As SQL, and back


def dumped(path: Path) -> str:
    """A database as SQL, with the two numbers that SQLite's own dump leaves out."""
    with closing(sqlite3.connect(path)) as db:
        drop_index(db)  # the next start makes it anew
        pragmas = [
            f"PRAGMA {name} = {db.execute(f'PRAGMA {name}').fetchone()[0]};"
            for name in ("application_id", "user_version")
        ]
        return "\n".join([*pragmas, *db.iterdump(), ""])


def put_database(sql: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(sql)


def empty_tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        tables = tables_in(db)
        return [t for t in tables if not db.execute(f"SELECT 1 FROM {t}").fetchone()]


@dataclass(frozen=True)
class Released:
    """A version, with what is kept of it in a folder."""

    version: str
    folder: Path = FOLDER

    def __str__(self) -> str:
        return self.version

    @property
    def sql(self) -> str:
        """Its database."""
        return (self.folder / f"{self.version}.sql").read_text("utf-8")

    @property
    def kept(self) -> dict[str, Any]:
        """The time of its database, what was seen of that, and what was promised."""
        text = (self.folder / f"{self.version}.json").read_text("utf-8")
        found: dict[str, Any] = json.loads(text)
        return found


# What is seen of it

READERS: list[tuple[str, dict[str, Any]]] = [
    *(("/comments", {"url": page, "sort": "oldest", "limit": 100}) for page in PAGES),
    *(("/comments", {"url": page, "view": "threads", "limit": 100}) for page in PAGES),
    ("/comments/latest", {"limit": 30}),
    ("/pages", {"url": PAGES}),
]
OWNERS: list[tuple[str, dict[str, Any]]] = [
    *(
        ("/admin/comments", {"status": status, "limit": 100})
        for status in ("visible", "waiting", "spam", "deleted", "reported")
    ),
    ("/admin/pages", {}),
    ("/admin/users", {}),
    ("/admin/blocks", {}),
    ("/admin/audit", {}),
    ("/admin/outbox", {}),
    ("/admin/figures", {}),
]
FORMATS = ("commentd", "wordpress", "artalk", "waline")


@dataclass
class Service:
    """A service on a database that is there already."""

    app: App
    folder: Path

    def seen(self) -> dict[str, Any]:
        """What readers, owners, a reader with an account, and exports see."""
        reader, owner = Visitor(self.app, ip="192.0.2.1"), Visitor(self.app, ip="192.0.2.2")
        owner.authorization = ("Bearer", inside.token_of(self.app, OWNER, "admin"))
        ann = Visitor(self.app, ip="192.0.2.3")
        ann.sign_in(ANN, password=CANARY)
        found: dict[str, Any] = {
            "readers": {label(*asked): answer(reader, *asked) for asked in READERS},
            "owners": {label(*asked): answer(owner, *asked) for asked in OWNERS},
            "accounts": {path: answer(ann, path, {}) for path in ("/me", "/me/export")},
            "feed": Feed(reader.get("/feed.atom")).entries,
            "feed_ids": [
                Feed(reader.get("/feed.atom", query)).id for query in ({}, {"url": PAGES[0]})
            ],
        }
        return found

    def fragment(self) -> str:
        """The comments of the first page, as a page of a blog has them."""
        reader = Visitor(self.app, ip="192.0.2.1")
        text: str = reader.get("/fragment", {"url": PAGES[0], "lang": "en"}).text
        return text

    def exported(self) -> dict[str, Any]:
        """The exports. The command reads the file while the service runs."""
        texts = {}
        for name in FORMATS:
            code, text, errors = run_here(self.folder, "export", name, "--emails")
            assert code == 0, errors
            texts[name] = text if name == "wordpress" else json.loads(text)
        sources = self.folder / "sources"
        sources.mkdir(exist_ok=True)
        code, _, errors = run_here(self.folder, "export", "data", "--to", str(sources))
        assert code == 0, errors
        texts["data"] = {path.name: json.loads(path.read_bytes()) for path in sources.iterdir()}
        return texts


def label(path: str, query: dict[str, Any]) -> str:
    return f"{path}?{urlencode(query, doseq=True)}" if query else path


def answer(visitor: webtest.TestApp, path: str, query: dict[str, Any]) -> Any:
    return visitor.get(label(path, query)).json


@contextlib.contextmanager
def served(
    release: Released, folder: Path, database: Path | None = None, **settings: Any
) -> Iterator[Service]:
    """A service on the database of a release, or on this one, at the time when it was kept."""
    folder.mkdir(exist_ok=True)
    path = database or folder / "commentd.db"
    if not database:
        put_database(release.sql, path)
    (folder / "commentd.ini").write_text(
        f"[database]\npath = {path}\n[site]\norigins = {BLOG}\ntimezone = Asia/Shanghai\n"
    )
    fake_world = FakeWorld()
    fake_world.time = release.kept["time"]
    config = replace(config_in(folder), database_path=str(path), **settings)
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        yield Service(app, folder)


def differences(before: Any, now: Any, place: str = "") -> list[str]:
    """What was there before and is not, or is something else. More may be there now."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            found
            for name in before
            for found in differences(before[name], now.get(name, "(nothing)"), f"{place}.{name}")
        ]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            found
            for number, pair in enumerate(zip(before, now, strict=True))
            for found in differences(*pair, f"{place}[{number}]")
        ]
    return [] if before == now else [f"{place}: {before!r} is now {now!r}"]


def releases(folder: Path = FOLDER) -> list[Released]:
    """All that are kept, the oldest first."""
    versions = [path.name.removesuffix(".sql") for path in folder.glob("*.sql")]
    return [Released(each, folder) for each in sorted(versions, key=numbers)]


def numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def keep(folder: Path) -> None:
    """Keeps this version."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        time = fill(Path(home)).time
        (folder / f"{__version__}.sql").write_text(dumped(Path(home) / "commentd.db"), "utf-8")
    kept: dict[str, Any] = {"time": time}
    file = folder / f"{__version__}.json"
    file.write_text(json.dumps(kept))
    with (
        tempfile.TemporaryDirectory() as home,
        served(Released(__version__, folder), Path(home)) as service,
    ):
        kept |= {"seen": service.seen(), "exports": service.exported(), **promises()}
        kept["fragment"] = service.fragment()
    file.write_text(json.dumps(kept, ensure_ascii=False, indent=1) + "\n", "utf-8")
