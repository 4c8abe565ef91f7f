"""What all tests share: the three tiers, a clock that stands still, a client and the invariants.

Every request that a test makes through `Visitor` is checked: no 5xx unless the test injects a
fault, refusals are `{error, code}` and change nothing but rate limits, no secret leaves, JSON is
strict. When a test ends, the database is whole and its counters equal recounted ones.

The tiers:
  pytest --fast         what needs no browser and no other process, and what reads the source
  pytest                that, and what needs them
  pytest --seconds 60   the long tier: what is marked `long`, and each campaign for that long
"""

import email
import email.policy
import itertools
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hypothesis
import inside
import pytest
import webtest

from commentd import App, Config, World, make_app, zone_named

inside.share_what_never_changes()

START = 1_795_000_000  # 2026-11-18 11:06:40 UTC
CANARY = "Canary-7Q9-passphrase"  # a password that must never be seen again
PAGE = "/2026/hello/"

Status = int | str  # the status of a response that a test expects; "*" is any

# What a refused request may change: budgets, tries, spent captchas.
VOLATILE = {"rate_limit", "spent_captcha", "sqlite_sequence"}


@dataclass(frozen=True)
class SentEmail:
    """What a test's post office took; `message` is its whole text as RFC 5322 has it."""

    recipient: str
    message: str


class Outside:
    """The clock and the post office of a test."""

    def __init__(self) -> None:
        self.time: float = START
        self.emails: list[SentEmail] = []
        self.mail_fails_with: Exception | None = None
        self.happens: Callable[[SentEmail], None] = lambda email: None  # while one is sent

    def send(self, recipient: str, message: str, **server: Any) -> None:
        sent = SentEmail(recipient, message)
        self.happens(sent)
        if self.mail_fails_with:
            raise self.mail_fails_with
        self.emails.append(sent)

    @property
    def world(self) -> World:
        return World(clock=lambda: self.time, send=self.send)

    def text(self, number: int = -1) -> str:
        """The body of an email that was sent."""
        message = email.message_from_string(
            self.emails[number].message, policy=email.policy.default
        )
        content: str = message.get_content()
        return content

    def code(self, number: int = -1) -> str:
        """The code in an email that was sent."""
        return next(word for word in self.text(number).split() if len(word) == 6 and word.isdigit())


def dump(path: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of the lasting tables of a database."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return rows_of(db)


def rows_of(db: sqlite3.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """The same from a connection. Tries of a code are left out: they are a rate limit too."""
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
        asked = req.environ["PATH_INFO"]  # Bottle decodes the path in place
        path = inside.database_path(self.served)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as before:
            # A read transaction keeps seeing the database as it is before the request. It begins
            # with anything that is read of the file; this needs no table.
            before.execute("BEGIN")
            before.execute("PRAGMA user_version").fetchone()
            written = inside.rows_written(self.served)
            response = super().do_request(req, *args, **kw)
            if response.status_int >= 400 and inside.rows_written(self.served) != written:
                assert dump(path) == rows_of(before), "a refusal changed the database"
        binary = response.content_type in ("application/vnd.sqlite3", "image/png")
        strictly = "replace" if binary else "strict"
        status, text = response.status_int, response.body.decode("utf-8", strictly)
        assert self.faults_allowed or status < 500, text
        self.judge(asked, req.method, response, status, text)
        return response

    def judge(self, path: str, method: str, response: Any, status: int, text: str) -> None:
        secrets = [
            CANARY,
            inside.token_key(self.served).decode(),
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
        elif status == 404 and response.content_type == "text/html":
            pass  # a browser that opens an unknown URL
        elif status >= 400 and method != "HEAD":
            assert path in ("/auth/verify", "/mail"), "only the verification answers in plain text"

    # Small verbs

    def post(self, *args: Any, **kw: Any) -> Any:
        """webtest's, for bodies that are not JSON."""
        return super().post(*args, **kw)

    def say(self, content: str = "hi", status: Status = 200, **fields: Any) -> Any:
        """Post a comment as a guest; the whole JSON of the reply."""
        body = {"page_url": PAGE, "nickname": "Ann", "content": content, "captcha_token": "x"}
        headers = fields.pop("headers", {})
        return self.post_json("/comments", body | fields, headers=headers, status=status).json

    def listing(self, **query: Any) -> Any:
        return self.get("/comments", {"url": PAGE, **query}).json

    def register(self, email: str = "ann@example.com", status: Status = 200, **fields: Any) -> Any:
        body = {"email": email, "nickname": "Ann", "password": CANARY, "captcha_token": "x"}
        return self.post_json("/auth/register", body | fields, status=status).json

    def login(self, email: str = "ann@example.com", status: Status = 200, **fields: Any) -> Any:
        body = {"email": email, "password": CANARY, "captcha_token": "x"}
        return self.post_json("/auth/login", body | fields, status=status).json

    def ask_for_code(self, email: str = "ann@example.com", **fields: Any) -> str:
        """A code to sign in with; the request."""
        body = {"email": email, "captcha_token": "x"}
        request_id: str = self.post_json("/auth/code", body | fields).json["request_id"]
        return request_id

    def verify(
        self, token: str, email: str = "ann@example.com", status: Status = 200, **f: Any
    ) -> str:
        body = {"email": email, "token": token, **f}
        text: str = self.post_json("/auth/verify", body, status=status).text
        return text


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database right after its migrations, which take longer than most tests."""
    path = tmp_path_factory.mktemp("empty") / "commentd.db"
    make_app(Config(database_path=str(path)), Outside().world, rounds=1).close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM rate_limit")  # what closing the app took
    return path


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The defaults, with a database of its own and no captcha to solve."""
    return Config(
        database_path=str(tmp_path / "commentd.db"),
        backup_folder=str(tmp_path / "backups"),
        captcha_provider="none",
        site_timezone=zone_named("Asia/Shanghai"),
    )


@pytest.fixture
def settings() -> dict[str, Any]:
    """What `app` sets beside `config`: a test that wants other settings parametrizes this."""
    return {}


@pytest.fixture
def app(
    config: Config, settings: dict[str, Any], outside: Outside, empty_database: Path
) -> Iterator[App]:
    """The service, with one round of hashing, so that tests do not wait for it."""
    changed = replace(config, **settings)
    if not Path(changed.database_path).exists():
        shutil.copy(empty_database, changed.database_path)
    made = make_app(changed, outside.world, rounds=1)
    yield made
    made.close()
    assert_whole(inside.database_path(made))


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
    with closing(sqlite3.connect(inside.database_path(app), isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        yield db


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests of a worker. Each test takes a context of its own."""
    from blog import chromium

    with chromium() as running:
        yield running


class Campaign:
    """Rounds of an attack: a few in the test command, as many as fit into `--seconds` in the long
    tier. Each has chance of its own, so that `--seed` and `--first` give any of them again."""

    def __init__(self, name: str, seed: int, first: int, seconds: float | None) -> None:
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


@pytest.fixture
def campaign(request: pytest.FixtureRequest) -> Campaign:
    seed, first, seconds = map(request.config.getoption, ("seed", "first", "seconds"))
    return Campaign(request.node.name, seed, first, seconds)


# -- The three tiers


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers", "which tests run, and for how long")
    group.addoption("--fast", action="store_true", help="only what needs no browser or process")
    group.addoption("--seconds", type=float, help="the long tier: how long each campaign goes on")
    group.addoption("--seed", type=int, default=1, help="the chance of all campaigns")
    group.addoption("--first", type=int, default=0, help="the round that a campaign begins with")


def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores: tests wait for browsers, processes and the disk."""
    return (os.cpu_count() or 1) + 2


def pytest_configure(config: pytest.Config) -> None:
    # Started in the background, a shell's child ignores Ctrl-C, and so would services under test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    memory = Path("/dev/shm")
    if config.getoption("fast") and memory.is_dir() and shutil.disk_usage(memory).free > 1e9:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))  # no test waits for a disk
    if sys.dont_write_bytecode:
        # To rewrite the asserts of all files takes a process 15 seconds of CPU.
        sys.dont_write_bytecode = False
        sys.pycache_prefix = str(config.rootpath / ".pytest_cache" / "bytecode")
    hypothesis.settings.register_profile(
        "short", max_examples=15, deadline=None, derandomize=True, database=None
    )
    hypothesis.settings.register_profile("long", max_examples=1000, deadline=None, database=None)
    hypothesis.settings.load_profile("long" if config.getoption("seconds") else "short")


SLOW_FIXTURES = {"browser", "campaign"}


def fixtures_of(item: pytest.Item) -> set[str]:
    return set(item.fixturenames) if isinstance(item, pytest.Function) else set()


def is_slow(item: pytest.Item) -> bool:
    return bool(item.get_closest_marker("slow") or SLOW_FIXTURES & fixtures_of(item))


def is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None


def goes_on(item: pytest.Item) -> bool:
    """Whether more time lets it try more: a campaign, or examples that hypothesis makes."""
    function = item.function if isinstance(item, pytest.Function) else None
    return "campaign" in fixtures_of(item) or hasattr(function, "hypothesis")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The fast tier does not even read a file in which all tests are slow, unless it is named."""
    if not config.getoption("fast") or collection_path.suffix != ".py":
        return None
    folder = config.invocation_params.dir
    named = {(folder / argument.split("::")[0]).resolve() for argument in config.args}
    if collection_path not in named:
        return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text("utf-8") or None
    return None


SELECTED = pytest.StashKey[int]()
LEFT_TO_THE_LONG_TIER = pytest.StashKey[int]()
LEFT_TO_ROOT = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        leave_to_root(config, items)
    if any("::" in argument for argument in config.args):
        return  # what is named runs, all of it
    long = {item for item in items if is_long(item)}
    if config.getoption("seconds"):
        wanted = [item for item in items if item in long or goes_on(item)]
    elif config.getoption("fast"):
        wanted = [item for item in items if not is_slow(item) and item not in long]
    else:
        wanted = [item for item in items if item not in long]
        config.stash[LEFT_TO_THE_LONG_TIER] = len(long)
    config.stash[SELECTED] = len(wanted)
    config.hook.pytest_deselected(items=[item for item in items if item not in set(wanted)])
    items[:] = wanted


def leave_to_root(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [item for item in items if item.get_closest_marker("root")]
    config.stash[LEFT_TO_ROOT] = len(left)
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist tells the process that prints the summary what it left out."""
    if hasattr(session.config, "workeroutput"):
        stash = session.config.stash
        session.config.workeroutput["selected"] = stash.get(SELECTED, None)
        session.config.workeroutput["left"] = stash.get(LEFT_TO_THE_LONG_TIER, None)
        session.config.workeroutput["left_to_root"] = stash.get(LEFT_TO_ROOT, None)


def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})  # a worker that crashed has none
    if output.get("selected") is not None:
        node.config.stash[SELECTED] = output["selected"]
    if output.get("left") is not None:
        node.config.stash[LEFT_TO_THE_LONG_TIER] = output["left"]
    if output.get("left_to_root") is not None:
        node.config.stash[LEFT_TO_ROOT] = output["left_to_root"]


FAST: list[str] = []  # the fast test that is running, if one is


def forbid_processes(event: str, arguments: tuple[Any, ...]) -> None:
    if FAST and event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        raise RuntimeError(f"{FAST[0]} starts a process: mark it with pytest.mark.slow")


sys.addaudithook(forbid_processes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    of_its_own = item.get_closest_marker("reads_the_source")
    if not is_slow(item) and not is_long(item) and not of_its_own:
        FAST.append(item.nodeid)
    try:
        return (yield)
    finally:
        FAST.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    if made := getattr(item, "funcargs", {}).get("campaign"):
        report.user_properties.append(("campaign", str(made)))
        report.sections.append(("campaign", str(made)))  # which round to begin with
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """What was left out; and what the campaigns did, where they went on for a while."""
    if left := config.stash.get(LEFT_TO_THE_LONG_TIER, 0):
        terminalreporter.line(f"{left} cases were left to the long tier (pytest --seconds 60)")
    if left := config.stash.get(LEFT_TO_ROOT, 0):
        terminalreporter.line(f"{left} tests need root (sudo .venv/bin/pytest -m root)")
    if config.getoption("fast") and config.stash.get(SELECTED, 1) == 0:
        terminalreporter.line("nothing here is fast: run it without --fast")
    if not config.getoption("seconds"):
        return
    terminalreporter.section("campaigns")
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, text in report.user_properties:
            if name == "campaign" and report.when == "call":
                terminalreporter.line(text)
