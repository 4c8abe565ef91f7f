"""What all tests share: a world that stands still, a visitor, and the invariants.

Every request that a test makes through `Visitor` is judged: no 5xx unless the test injects a
fault, refusals are `{error, code}` and change nothing but budgets, no secret leaves, JSON is
strict. When a test ends, the database is whole and its counters equal recounted ones."""

import email
import email.policy
import itertools
import json
import os
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import webtest

import commentd
from commentd import App, Config, Letter, World, make_app

START = 1_795_000_000  # 2026-11-18 11:06:40 UTC
CANARY = "Canary-7Q9-passphrase"  # a password that must never be seen again
PAGE = "/2026/hello/"

# What a refused request may change: budgets, tries, spent captchas.
VOLATILE = {"budget", "spent_captcha", "sqlite_sequence"}


class Outside:
    """The clock and the post office of a test."""

    def __init__(self) -> None:
        self.time: float = START
        self.letters: list[Letter] = []
        self.mail_fails_with: Exception | None = None
        self.happens: Callable[[Letter], None] = lambda letter: None  # while one is sent

    def send(self, config: Config, letter: Letter) -> None:
        self.happens(letter)
        if self.mail_fails_with:
            raise self.mail_fails_with
        self.letters.append(letter)

    @property
    def world(self) -> World:
        return World(now=lambda: self.time, send=self.send)

    def text(self, number: int = -1) -> str:
        """The body of a letter that was sent."""
        message = email.message_from_string(
            self.letters[number].message, policy=email.policy.default
        )
        content: str = message.get_content()
        return content

    def code(self, number: int = -1) -> str:
        """The code in a letter that was sent."""
        return next(word for word in self.text(number).split() if len(word) == 6 and word.isdigit())


def dump(path: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the lasting tables. Tries of a code are a budget too."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        tables = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        rows = {t: db.execute(f"SELECT * FROM {t}").fetchall() for t in tables if t not in VOLATILE}
        names = [c[1] for c in db.execute("PRAGMA table_info(registration)")]
    lasting = [i for i, name in enumerate(names) if name not in ("tries", "named_tries")]
    rows["registration"] = [tuple(row[i] for i in lasting) for row in rows["registration"]]
    return rows


@contextmanager
def cut_off(writer: sqlite3.Connection, last: int) -> Iterator[None]:
    """SQLite is interrupted once, at its `last` step; not at the very end of a COMMIT, for what it
    wrote is kept by then."""
    steps, cuts = itertools.count(), [True]

    def cut() -> bool:
        return next(steps) >= last and writer.in_transaction and bool(cuts) and cuts.pop()

    writer.set_progress_handler(cut, 1)
    yield
    writer.set_progress_handler(None, 1)


def assert_whole(path: str) -> None:
    """The file is intact, no row points nowhere, every counter equals a recount."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        wrong = db.execute(
            """SELECT page.id FROM page WHERE total <> (SELECT count(*) FROM comment
                  WHERE page_id = page.id AND status = 'visible')
                OR threads <> (SELECT count(*) FROM comment
                  WHERE page_id = page.id AND shown = 1 AND parent_id IS NULL)
                OR page_likes <> (SELECT count(*) FROM page_liker WHERE page_id = page.id)"""
        ).fetchall()
        assert wrong == []
        wrong = db.execute(
            """SELECT c.id FROM comment AS c WHERE likes <> (SELECT count(*) FROM comment_liker
                  WHERE comment_id = c.id)
                OR replies <> (SELECT count(*) FROM comment AS r
                  WHERE r.parent_id = c.id AND r.shown = 1)
                OR shown <> (status = 'visible' OR replies > 0)"""
        ).fetchall()
        assert wrong == []


class Visitor(webtest.TestApp):  # type: ignore[misc]
    """A client whose every request is judged by the invariants."""

    def __init__(self, app: App, ip: str = "203.0.113.7", **environ: str) -> None:
        super().__init__(app, extra_environ={"REMOTE_ADDR": ip, **environ}, lint=True)
        self.served = app
        self.faults_allowed = False

    def do_request(self, req: Any, *args: Any, **kw: Any) -> Any:
        path = self.served.house.store.path
        asked, before = req.environ["PATH_INFO"], dump(path)  # Bottle decodes the path in place
        response = super().do_request(req, *args, **kw)
        strictly = "replace" if response.content_type == "application/vnd.sqlite3" else "strict"
        status, text = response.status_int, response.body.decode("utf-8", strictly)
        assert self.faults_allowed or status < 500, text
        if status >= 400:
            assert dump(path) == before, "a refusal changed the database"
        self.judge(asked, req.method, response, status, text)
        return response

    def judge(self, path: str, method: str, response: Any, status: int, text: str) -> None:
        secrets = [
            CANARY,
            self.served.house.key.decode(),
            "Traceback",
            "sqlite",
            "commentd.db",
            "SELECT ",
        ]
        everything = text + str(response.headers)
        if response.content_type in ("application/json", "text/plain"):
            assert not [word for word in secrets if word in everything]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "Server" not in response.headers
        if response.content_type == "application/json" and method != "HEAD":
            value = json.loads(text, parse_constant=lambda word: pytest.fail(f"not JSON: {word}"))
            if status >= 400:
                details = {"count", "total"} if value["code"] == "block_wide" else set()
                assert set(value) == {"error", "code"} | details
                assert value["error"]
                assert value["code"].replace("_", "").isalpha()
        elif status >= 400 and method != "HEAD":
            assert path in ("/auth/verify", "/mail"), "only the verification answers in plain text"

    # Small verbs

    def post(self, *args: Any, **kw: Any) -> Any:
        """webtest's, for bodies that are not JSON."""
        return super().post(*args, **kw)

    def say(self, content: str = "hi", status: int = 200, **fields: Any) -> Any:
        """Post a comment as a guest; the whole JSON of the reply."""
        body = {"page_url": PAGE, "nickname": "Ann", "content": content, "captcha_token": "x"}
        headers = fields.pop("headers", {})
        return self.post_json("/comments", body | fields, headers=headers, status=status).json

    def listing(self, **query: Any) -> Any:
        return self.get("/comments", {"url": PAGE, **query}).json

    def register(self, email: str = "ann@example.com", status: int = 200, **fields: Any) -> Any:
        body = {"email": email, "nickname": "Ann", "password": CANARY, "captcha_token": "x"}
        return self.post_json("/auth/register", body | fields, status=status).json

    def login(self, email: str = "ann@example.com", status: int = 200, **fields: Any) -> Any:
        body = {"email": email, "password": CANARY, "captcha_token": "x"}
        return self.post_json("/auth/login", body | fields, status=status).json

    def verify(
        self, token: str, email: str = "ann@example.com", status: int = 200, **f: Any
    ) -> str:
        body = {"email": email, "token": token, **f}
        text: str = self.post_json("/auth/verify", body, status=status).text
        return text


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The defaults, with a database of its own and no captcha to solve."""
    return Config(
        database_path=str(tmp_path / "commentd.db"),
        backup_folder=str(tmp_path / "backups"),
        captcha_provider="none",
    )


@pytest.fixture
def settings() -> dict[str, Any]:
    """What `app` sets beside `config`: a test that wants other settings parametrizes this."""
    return {}


@pytest.fixture
def app(config: Config, settings: dict[str, Any], outside: Outside) -> Iterator[App]:
    """The service, with one round of hashing, so that tests do not wait for it."""
    made = make_app(replace(config, **settings), outside.world, rounds=1)
    yield made
    made.close()
    assert_whole(made.house.store.path)


@pytest.fixture
def visitor(app: App) -> Visitor:
    return Visitor(app)


@pytest.fixture
def ann(app: App, visitor: Visitor, outside: Outside) -> Visitor:
    """A visitor with an account, signed in by its token."""
    visitor.register()
    app.deliver()
    visitor.verify(outside.code())
    visitor.authorization = ("Bearer", visitor.login()["token"])
    return visitor


@pytest.fixture
def db(app: App) -> Iterator[sqlite3.Connection]:
    """The file itself, for what the API does not show."""
    with closing(sqlite3.connect(app.house.store.path, isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        yield db


class Campaign:
    """Rounds of an attack: a few in the test command, as many as fit into `--seconds` by hand. Each
    has chance of its own, so that `--seed` and `--first` give any of them again."""

    def __init__(self, name: str, seed: int, first: int, seconds: float) -> None:
        self.name, self.seed, self.first, self.seconds = name, seed, first, seconds
        self.figures: Counter[str] = Counter()
        self.begun_at, self.last = time.monotonic(), first

    def rounds(self, usually: int) -> Iterator[random.Random]:
        for number in itertools.count(self.first):
            self.last = number
            yield random.Random(f"{self.seed} {self.name} {number}")
            self.figures["seconds"] = lasted = int(time.monotonic() - self.begun_at)
            if lasted >= self.seconds if self.seconds else number + 1 - self.first >= usually:
                return

    def __str__(self) -> str:
        figures = "".join(f", {number:,} {what}" for what, number in self.figures.items())
        rounds = f"--seed {self.seed}, rounds {self.first:,} to {self.last:,}"
        return f"{self.name}: {rounds}{figures}"


CAMPAIGNS = pytest.StashKey[list[Campaign]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("campaigns", "attacks that go on by chance")
    group.addoption("--seed", type=int, default=1, help="the chance of all campaigns")
    group.addoption("--first", type=int, default=0, help="the round that a campaign begins with")
    group.addoption("--seconds", type=float, default=0, help="how long each campaign goes on")


@pytest.fixture
def campaign(request: pytest.FixtureRequest) -> Campaign:
    options = [request.config.getoption(name) for name in ("seed", "first", "seconds")]
    made = Campaign(request.node.name, *options)
    request.config.stash.setdefault(CAMPAIGNS, []).append(made)
    return made


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """What the campaigns did, where they went on for a while; else those that failed say so."""
    campaigns = config.stash.get(CAMPAIGNS, [])
    if campaigns and config.getoption("seconds"):
        terminalreporter.section("campaigns")
        for made in campaigns:
            terminalreporter.line(str(made))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A skip says what the machine lacks; where CI is set, nothing may be lacking."""
    if os.environ.get("CI"):
        for item in items:
            item.user_properties.append(("skips_fail", True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.skipped and ("skips_fail", True) in item.user_properties:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    if report.failed and (made := getattr(item, "funcargs", {}).get("campaign")):
        report.sections.append(("campaign", str(made)))  # which round to begin with
    return report


assert commentd.__file__
