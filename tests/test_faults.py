"""Every operation, with a fault of the machine at its n-th step, or killed there: it is done as a
whole or not at all, and the same operation succeeds afterwards.

Steps are SQL statements, calls of the file system, emails and calls over HTTP."""

import errno
import os
import random
import re
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest
import webtest

import commentd
from commentd import COMMANDS, ROUTES, App, Config, World, make_app
from support.campaign import Campaign
from support.client import CANARY, COMMENT, PAGE, Visitor, registration, stranger
from support.commands import run_here
from support.database import assert_whole, dump
from support.faults import in_a_fork
from support.inside import REFUSALS, add_account, admin_link, really_migrate, token_of
from support.second_factor import app_code
from support.world import START, FakeWorld

pytestmark = pytest.mark.slow

MINUTE, DAY = 60, 86400

# The machine


class Killed(BaseException):
    """The process was to be killed, and is not dead yet."""


class Bug(Exception):
    """What no machine does: the program itself fails."""


def sql_fault(code: int, kind: type[sqlite3.Error] = sqlite3.OperationalError) -> Exception:
    error = kind("disk I/O error")
    error.sqlite_errorcode = code
    return error


# What may happen at a step of each kind.
FAULTS: dict[str, dict[str, Any]] = {
    "sql": {
        "busy": lambda: sql_fault(sqlite3.SQLITE_BUSY),
        "full": lambda: sql_fault(sqlite3.SQLITE_FULL),
        "input/output": lambda: sql_fault(sqlite3.SQLITE_IOERR_WRITE),
        "corrupt": lambda: sql_fault(sqlite3.SQLITE_CORRUPT, sqlite3.DatabaseError),
        "memory": MemoryError,
        "bug": Bug,
        "kill": Killed,
    },
    "system": {
        "full": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        "input/output": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
        "kill": Killed,
    },
    "world": {
        "refused": lambda: ConnectionRefusedError(111, "refused"),
        "bug": Bug,
        "kill": Killed,
    },
    "end": {"kill": Killed},
}
SYSTEM = ("fsync", "open", "replace", "link", "rename", "mkdir", "unlink")


class Machine:
    """Counts the steps while it is on, and fails at one of them."""

    def __init__(self, at: int = -1, fault: str = "") -> None:
        self.at = at
        self.fault = fault
        self.on = False
        self.steps: list[tuple[str, str]] = []
        self.each: Callable[[], object] = lambda: None  # called after each transaction

    def __enter__(self) -> None:
        self.on = True

    def __exit__(self, *_: object) -> None:
        self.on = False

    def step(self, kind: str, what: str = "") -> None:
        if not self.on:
            return
        self.on = False  # whatever is done about it is no step
        if self.steps and self.steps[-1][1] in ("COMMIT", "replace", "link"):
            self.each()
        self.steps.append((kind, what))
        fails = len(self.steps) - 1 == self.at
        if fails and FAULTS[kind][self.fault] is Killed:
            os.kill(os.getpid(), 9)
        self.on = True
        if fails:
            raise FAULTS[kind][self.fault]()


class WatchedConnection(sqlite3.Connection):
    """A connection whose statements and commits are steps."""

    machine: Machine

    def execute(self, *words: Any) -> sqlite3.Cursor:
        self.machine.step("sql", " ".join(words[0].split())[:60])
        return super().execute(*words)

    def __exit__(self, kind: Any, *how: Any) -> Any:
        try:
            if kind is None:
                self.machine.step("sql", "COMMIT")
        except BaseException as error:
            super().__exit__(type(error), error, None)
            raise
        return super().__exit__(kind, *how)


def watch_all(machine: Machine) -> None:
    """For good: this is a process that was made for it."""

    def watched(name: str) -> Callable[..., Any]:
        does = getattr(os, name)

        def call(*args: Any, **options: Any) -> Any:
            machine.step("system", name)
            return does(*args, **options)

        return call

    commentd.migrate = really_migrate  # its statements are steps of the first start
    WatchedConnection.machine = machine
    sqlite3.connect = partial(sqlite3.connect, factory=WatchedConnection)  # type: ignore[assignment]
    for name in SYSTEM:
        setattr(os, name, watched(name))


# The service: a database with something of all

OWNER, ANN, GUEST = "owner@example.com", "ann@example.com", "guest@example.com"
SITE: dict[str, Any] = {
    "server_public_url": "https://comments.example",
    "server_metrics": True,
    "site_demo": True,
    "site_contact": OWNER,
    "comments_reactions": ("👍",),
    "webhook_url": "http://127.0.0.1:9/",
    "privacy_keep_ip_days": 7,
    "moderation_keep_days": 7,
    "backup_every": 1,
    "captcha_provider": "none",
    "site_picture": str(Path(__file__).parent.parent / ".ci" / "admin.png"),
}
NOW = START + 4000


class Client(Visitor):
    """A client during whose requests the machine may fail."""

    def __init__(self, app: App, machine: Machine) -> None:
        super().__init__(app, "203.0.113.8", HTTP_USER_AGENT="Mozilla/5.0")
        self.machine = machine

    def do_request(self, req: Any, *args: Any, **how: Any) -> Any:
        asked = req.environ["PATH_INFO"]
        with self.machine:
            response = webtest.TestApp.do_request(self, req, *args, expect_errors=True)
            text = response.body.decode("utf-8", "replace")
        if asked != "/admin/settings":  # where an admin may read where the database is
            self.check_response(asked, req.method, response, response.status_int, text)
        return response


@dataclass
class FaultyService:
    config: Config
    machine: Machine
    facts: dict[str, Any]
    fake_world: FakeWorld = field(default_factory=FakeWorld)

    def __post_init__(self) -> None:
        self.fake_world.time = NOW
        self.chance = random.Random(7)

    @property
    def path(self) -> Path:
        return Path(self.config.database_path)

    @property
    def world(self) -> World:
        def send(*email: Any) -> None:
            self.machine.step("world", "send")
            self.fake_world.send(*email)

        def fetch(*_: Any, **how: Any) -> tuple[int, bytes]:
            self.machine.step("world", "fetch")
            return 200, b'{"success": true}'

        def chance(size: int) -> bytes:
            return self.chance.randbytes(size)

        return World(
            clock=lambda: self.fake_world.time, random_bytes=chance, send_email=send, fetch=fetch
        )

    @cached_property
    def app(self) -> App:
        return make_app(self.config, self.world, rounds=1)

    def ask(self, name: str, who: str, **form: Any) -> Any:
        """A request, named by its route. In paths and forms stand facts of that database."""
        method, path = name.partition(",")[0].split()
        path = PATHS.get(path, path) if method == "GET" else path
        path = re.sub("<(\\w+)(?::id)?>", lambda found: str(self.facts[found[1]]), path)
        form = {k: v.format(**self.facts) if isinstance(v, str) else v for k, v in form.items()}
        client = Client(self.app, self.machine)
        if "/mail" in path:  # the link in an email
            link = form["link"]
            return client.get(link) if method == "GET" else client.post(link)
        if who:
            use = "admin" if path.startswith("/admin") else "login"
            client.authorization = ("Bearer", self.facts[f"{use} token of {who}"])
        if method == "GET":
            return client.get(path)
        return getattr(client, f"{method.lower()}_json")(path, form)

    def does(self, work: Callable[[], Any], later: float = 0) -> None:
        self.fake_world.time += later
        with self.machine:
            work()

    def command(self, *words: str) -> None:
        """A command beside, which is another process."""
        commentd.World = lambda: self.world  # type: ignore[assignment,misc]
        names = ("database_path", "backup_folder")
        environ = {f"COMMENTD_{name.upper()}": getattr(self.config, name) for name in names}
        with self.machine:
            code, _, errors = run_here(self.path.parent, *words, **environ)
        if code:
            assert re.fullmatch(r"([A-Z]+ .+\n)*commentd: .+\n", errors), errors
            raise REFUSALS[0](errors.strip().splitlines()[-1])


APP_KEY = "A" * 32  # of an authenticator app
# Requests: the account that sends them, and the form.
CODE = {"token": "{code}"}
SAFE = {"password": CANARY}
NEW = {**COMMENT, "page_url": "/new/"}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "POST /auth/register": ("", registration("new@example.com")),
    "POST /auth/register, again": ("", registration(ANN)),
    "POST /auth/verify": ("", registration() | CODE),
    "POST /auth/code": ("", registration("new@example.com")),
    "POST /auth/login": ("", registration(ANN)),
    "POST /auth/logout": (ANN, {}),
    "POST /comments": ("", NEW),
    "POST /comments, a reply": ("", {**COMMENT, "email": ANN, "parent_id": 1}),
    "POST /comments, of an account": (ANN, NEW),
    "POST /comments/preview": ("", {"content": "hi"}),
    "PATCH /comments/<comment_id:id>": ("", {"content": "new", "edit_token": "{edit_token}"}),
    "DELETE /comments/<comment_id:id>": ("", {"edit_token": "{edit_token}"}),
    "POST /comment/like": ("", {"id": 2}),
    "POST /comment/like, taken back": ("", {"id": 1, "undo": True}),
    "POST /page/like": ("", {"page_url": "/new/"}),
    "POST /page/like, taken back": ("", {"page_url": PAGE, "undo": True}),
    "POST /page/react": ("", {"page_url": "/new/", "emoji": "👍"}),
    "POST /page/react, taken back": ("", {"page_url": PAGE, "emoji": "👍", "undo": True}),
    "POST /page/follow": (ANN, {"page_url": "/new/"}),
    "POST /page/follow, no more": (ANN, {"page_url": PAGE, "undo": True}),
    "POST /comments/<comment_id:id>/report": ("", {"reason": "rude"}),
    "PATCH /me": (ANN, {"nickname": "Anna", "answers": False}),
    "PATCH /me, a password": (ANN, {"new_password": "another one", **SAFE}),
    "POST /me/code": (ANN, {}),
    "DELETE /me": (ANN, {"comments": "keep", **SAFE}),
    "DELETE /me, and all": (ANN, {"comments": "delete", **SAFE}),
    "POST /admin/login": ("", registration(OWNER)),
    "POST /admin/link": ("", {"link": "{link}"}),
    "POST /admin/claim": ("", registration("dan@example.com") | {"link": "{link}"}),
    "POST /admin/logout": (OWNER, {}),
    "POST /admin/comments": (OWNER, {"ids": [1, 2, 3], "status": "spam"}),
    "POST /admin/comments, a pin": (OWNER, {"ids": [2], "pinned": True}),
    "POST /admin/comments, erased": (OWNER, {"ids": [1], "status": "deleted"}),
    "PATCH /admin/comments/<comment_id:id>": (OWNER, {"content": "new"}),
    "POST /admin/reply": (OWNER, {"parent_id": 1, "content": "indeed"}),
    "PATCH /admin/pages/<page_id:id>": (OWNER, {"closed": True}),
    "PATCH /admin/pages/<page_id:id>, renamed": (OWNER, {"page_url": "/moved/"}),
    "PATCH /admin/pages/<page_id:id>, merged": (OWNER, {"page_url": "/other/", "merge": True}),
    "DELETE /admin/pages/<page_id:id>": (OWNER, {}),
    "PATCH /admin/users/<user_id:id>": (OWNER, {"blocked": True}),
    "PATCH /admin/users/<user_id:id>, a role": (OWNER, {"role": "admin", **SAFE}),
    "DELETE /admin/users/<user_id:id>/picture": (OWNER, {}),
    "POST /admin/blocks": (OWNER, {"kind": "word", "value": "pills"}),
    "DELETE /admin/blocks/<block_id:id>": (OWNER, {}),
    "POST /admin/outbox": (OWNER, {}),
    "DELETE /admin/outbox": (OWNER, {}),
    "DELETE /admin/outbox/<message_id:id>": (OWNER, {}),
    "POST /admin/outbox/<message_id:id>": (OWNER, {}),
    "PATCH /admin/settings": (OWNER, {"settings": {"site_name": "A blog"}}),
    "POST /admin/backup": (OWNER, SAFE),
    "POST /admin/inspection": (OWNER, {"url": "https://none.example/"}),
    "DELETE /admin/sessions/<session_id:id>": (OWNER, {}),
    "POST /admin/app/key": (OWNER, {}),
    "POST /admin/app": (OWNER, {"key": APP_KEY, "factor": "{factor}", **SAFE}),
    "DELETE /admin/app": (OWNER, SAFE),
    "POST /comments/<comment_id:id>/moderate": (OWNER, {"status": "spam"}),
    "GET /mail": ("", {"link": "{moderates}"}),
    "POST /mail": ("", {"link": "{moderates}"}),
    "POST /mail, a subscription": ("", {"link": "{confirms}"}),
    "POST /mail, an answer": ("", {"link": "{answers}"}),
    "POST /mail, a denial": ("", {"link": "{denies}"}),
}
PATHS = {
    "/comments": f"/comments?url={PAGE}&view=threads",
    "/pages": f"/pages?url={PAGE}&url=/none/",
    "/thread": f"/thread?url={PAGE}",
    "/fragment": f"/fragment?url={PAGE}",
    "/<name>": "/embed.js",
    "/admin_page/<name>": "/admin_page/start.js",
    "/words/<name>": "/words/de.json",
    "/comments/waiting": f"/comments/waiting?url={PAGE}",
}
READERS = {"/me": ANN, "/me/export": ANN, "/comments/waiting": OWNER}
# They need an identity provider, which test_login.py has, or a site that knows its readers, as in
# test_site_token.py, or Telegram, as in test_telegram.py, or stickers, as in test_images.py: here
# they are left out. So is what only `commentd check URL` asks, which is signed and reads no row.
LEFT_OUT = (
    "/way-in",
    *("/auth/with/<name>", "/auth/callback/<name>", "/auth/site", "/chat/<name>"),
    *("/me/identities", "/me/picture", "/pictures/<name>", "/stickers/<file>"),
)
for route in ROUTES:
    if route.method == "GET" and route.path not in ("/mail", *LEFT_OUT):
        admin = OWNER if route.path.startswith("/admin/") else ""
        REQUESTS[f"GET {route.path}"] = READERS.get(route.path, admin), {}

Operation = Callable[[FaultyService], Any]
OPERATIONS: dict[str, Operation] = {
    **{
        name: lambda faulty_service, name=name, who=who, form=form: faulty_service.ask(
            name, who, **form
        )  # type: ignore[misc]
        for name, (who, form) in REQUESTS.items()
    },
    # By itself
    "views": lambda faulty_service: faulty_service.does(faulty_service.app.tick),
    "a tick": lambda faulty_service: faulty_service.does(faulty_service.app.tick, MINUTE),
    "a tick, days later": lambda faulty_service: faulty_service.does(
        faulty_service.app.tick, 100 * DAY
    ),
    "emails": lambda faulty_service: faulty_service.does(faulty_service.app.deliver),
    "a copy": lambda faulty_service: faulty_service.does(faulty_service.app.back_up_if_due),
    "a stop": lambda faulty_service: faulty_service.does(faulty_service.app.close),
    # Without a service
    "a start": lambda faulty_service: faulty_service.does(lambda: faulty_service.app),
    "the first start": lambda faulty_service: faulty_service.does(lambda: faulty_service.app),
    "commentd admin": lambda faulty_service: faulty_service.command("admin", "eve@example.com"),
    "commentd moderator": lambda faulty_service: faulty_service.command(
        "moderator", "eve@example.com"
    ),
    "commentd backup": lambda faulty_service: faulty_service.command("backup"),
    "commentd restore": lambda faulty_service: faulty_service.command(
        "restore", faulty_service.facts["copy"]
    ),
    "commentd recount": lambda faulty_service: faulty_service.command("recount"),
    "commentd move": lambda faulty_service: faulty_service.command("move", PAGE, "/moved/"),
    "commentd import": lambda faulty_service: faulty_service.command(
        "import", faulty_service.facts["export"]
    ),
    "commentd export": lambda faulty_service: faulty_service.command("export"),
}
# What is done without a service, or begins with none.
ALONE = [name for name in OPERATIONS if name.startswith(("a start", "the first", "commentd "))]
# In more than one transaction, and why that is right.
IN_STEPS = {
    "views": "views, then what has had its time",
    "a tick, days later": "what has had its time, then the -wal",
    "emails": "each email",
    "POST /admin/comments": "each comment",
    "DELETE /admin/pages/<page_id:id>": "fifty comments, then the page",
    "POST /comments/<comment_id:id>/moderate": "the change, then what is shown of it",
    "commentd import": "fifty records",
    "commentd restore": "the file, then its name on the disk",
    "the first start": "the tables, then the key",
}
# Nobody may have two codes in a minute.
A_MINUTE_LATER = {
    name for name in OPERATIONS if name.startswith(("POST /auth/register", "POST /auth/code"))
}


@pytest.fixture(scope="module")
def faulty_service(tmp_path_factory: pytest.TempPathFactory) -> FaultyService:
    """A database with something of all, closed cleanly, and what one has to know of it."""
    home = tmp_path_factory.mktemp("town")
    fake_world = FakeWorld()
    facts: dict[str, Any] = {"page_id": 1, "user_id": 1, "block_id": 1}
    config = Config(
        database_path=str(home / "commentd.db"), backup_folder=str(home / "backups"), **SITE
    )
    chance = random.Random(1)
    world = replace(
        fake_world.world, random_bytes=chance.randbytes, fetch=lambda *_, **how: (200, b"{}")
    )
    with closing(make_app(config, world, rounds=1)) as app:
        for email in (ANN, "cat@example.com"):
            add_account(app, email, email[:3].title(), CANARY)
        add_account(app, OWNER, "Owner", CANARY, "admin")
        web = Visitor(app, "203.0.113.8", HTTP_USER_AGENT="Mozilla/5.0")
        for number in range(3):
            web.say(f"{number} " + "long " * 300, email=GUEST)
        web.say("signed with her email address", nickname="Kit", email="cat@example.com")
        fake_world.time += 61
        ann = Visitor(app, "203.0.113.9")
        ann.authorization = ("Bearer", token_of(app, ANN))
        for words in ({}, {"parent_id": 1}, {"page_url": "/other/"}):
            ann.say(f"of ann {words}", **words)
        ann.post_json("/page/follow", {"page_url": PAGE})
        owner = Visitor(app, "198.51.100.7")
        owner.authorization = ("Bearer", token_of(app, OWNER, "admin"))
        for status in ("waiting", "spam"):
            ids = [web.say(status, nickname="Eve")["comment"]["id"]]
            owner.post_json("/admin/comments", {"ids": ids, "status": status})
        owner.post_json("/admin/blocks", {"kind": "word", "value": "casino"})
        web.post_json("/comment/like", {"id": 1})
        web.post_json("/page/like", {"page_url": PAGE})
        web.post_json("/page/react", {"page_url": PAGE, "emoji": "👍"})
        web.post_json("/comments/3/report", {"reason": "?"})
        for _ in range(4):
            fake_world.time += 600
            app.tick()
            app.deliver()
        texts = "\n".join(fake_world.text(number) for number in range(len(fake_world.emails)))
        links_by_name = {
            "moderates": "do=spam",
            "confirms": "do=confirm",
            "answers": "do=mine",
            "denies": "do=not_mine",
        }
        for name, what in links_by_name.items():
            links = re.findall(rf"https://comments\.example(/mail\?\S*{what}\S*)", texts)
            facts[name] = links[0]
        facts["link"] = admin_link(app, "dan@example.com")
        fake_world.time = NOW - 400
        posted = web.say("mine")
        facts |= {"comment_id": posted["comment"]["id"], "edit_token": posted["edit_token"]}
        web.register("bob@example.com")
        app.deliver()
        (number,) = [n for n, email in enumerate(fake_world.emails) if "bob@" in email.recipient]
        facts["code"] = fake_world.code(number)
        fake_world.time = NOW - 61
        web.register("cid@example.com")
        ann.patch_json("/me", {"new_password": CANARY, **SAFE})  # which an email tells
        fake_world.mail_fails_with = OSError("down")
        app.deliver()
        fake_world.time = NOW
        web.say("told to nobody yet", parent_id=1)
        owner.authorization = ("Bearer", token_of(app, OWNER, "admin"))
        emails = owner.get("/admin/outbox").json["emails"]
        facts |= {"session_id": 1, "factor": app_code(APP_KEY, int(NOW) // 30)}
        # To sign in is no part of what is tried.
        for email, use in ((OWNER, "admin"), (OWNER, "login"), (ANN, "login")):
            facts[f"{use} token of {email}"] = token_of(app, email, use)
        facts["message_id"] = next(email["id"] for email in emails if email["can_retry"])
    code, text, _ = run_here(home, "export")
    assert code == 0
    (home / "export.json").write_text(text)
    facts |= {"export": str(home / "export.json"), "copy": str(home / "copy.db")}
    shutil.copy(config.database_path, facts["copy"])
    return FaultyService(config, Machine(), facts)


# What is left

State = dict[str, str]


def state(path: Path) -> State:
    """All that lasts. When an email is due, and which try that will be, is a rate limit too."""
    if not path.exists() or not path.stat().st_size:
        return {}
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        if not db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            return {}
        rows: dict[str, Any] = dict(dump(str(path)))
        if not rows["account"]:  # it is the first start
            rows["secret"] = [name for name, _ in rows["secret"]]  # the key is chance
        rows["outbox"] = db.execute("SELECT id, recipient, subject, text FROM outbox").fetchall()
        rows["version"] = db.execute("PRAGMA user_version").fetchall()
    return {table: re.sub("past -?[0-9]+", "past", repr(found)) for table, found in rows.items()}


def attempt(work: Callable[[], Any], fault: str) -> str:
    """How it went: done, refused (later, in a sentence), failed by a bug."""
    try:
        answer = work()
    except MemoryError:  # its worker thread goes on
        return "refused"
    except (OSError, *REFUSALS) as refusal:  # which `main` says
        return "refused" if re.fullmatch(".+", str(refusal)) else f"refused: {refusal!r}"
    except Bug:
        return "failed"
    if answer is None or answer.status_int == 200:
        return "done"
    if answer.status_int == 503 and int(answer.headers["Retry-After"]) > 0:
        return "refused"
    return "failed" if answer.status_int == 500 and fault == "bug" else str(answer)


@dataclass
class Outcome:
    """What a process tells of an operation."""

    how: str
    states: list[State]  # before, after each transaction
    steps: list[tuple[str, str]]
    again: str
    last: State
    files: set[str]


def play(faulty_service: FaultyService, name: str) -> Outcome:
    machine, states = faulty_service.machine, list[State]()

    def see() -> None:
        if (now := state(faulty_service.path)) not in states:
            states.append(now)

    watch_all(machine)
    if name not in ALONE:
        _ = faulty_service.app
        if name == "views":
            stranger(faulty_service.app).get("/comments?url=/seen/")
    see()
    if machine.at < 0:
        machine.each = see
    faulty_service.chance.seed(2)
    how = attempt(lambda: OPERATIONS[name](faulty_service), machine.fault)
    machine.each = lambda: None
    steps = machine.steps[:]
    with machine:
        machine.step("end")
    see()
    again = go_on(faulty_service, name, how) if machine.at >= 0 else ""
    files = {path.name for path in faulty_service.path.parent.rglob("*")}
    return Outcome(how, states, steps, again, state(faulty_service.path), files)


def go_on(faulty_service: FaultyService, name: str, how: str) -> str:
    """The machine works again: how the same operation goes now, if it did not."""
    faulty_service.fake_world.time = NOW + (MINUTE if name in A_MINUTE_LATER else 0)
    if name not in ALONE and name != "a stop":
        health = stranger(faulty_service.app).get("/health", expect_errors=True)
        if faulty_service.machine.fault == "corrupt" and health.status_int == 503:
            # Where it sees damage it writes no more, until it is started again.
            faulty_service.app.close()
            del faulty_service.app
        stranger(faulty_service.app).get("/health", status=200)
    faulty_service.chance.seed(2)
    again = "" if how == "done" else attempt(lambda: OPERATIONS[name](faulty_service), "")
    if "app" in vars(faulty_service):
        faulty_service.app.close()
    assert_whole(str(faulty_service.path))
    return again


def in_a_child(
    faulty_service: FaultyService, name: str, folder: Path, at: int = -1, fault: str = ""
) -> Outcome | None:
    """Do it in a process of its own, on a copy or on what is there; None when it died."""
    path = folder / "commentd.db"
    config = replace(
        faulty_service.config, database_path=str(path), backup_folder=str(folder / "copies")
    )
    if not folder.exists():
        folder.mkdir()
        if name != "the first start":
            shutil.copy(faulty_service.path, path)
    theirs = FaultyService(config, Machine(at, fault), faulty_service.facts)
    result: Outcome | None = in_a_fork(lambda: play(theirs, name))
    return result


Case = tuple[int, str]


def cases_of(result: Outcome, seed: str) -> list[Case]:
    """All that may happen, at each step and after the last, in an order of chance."""
    steps = [*result.steps, ("end", "")]
    cases = [(at, fault) for at, (of, _) in enumerate(steps) for fault in FAULTS[of]]
    random.Random(seed).shuffle(cases)
    return cases


def assert_all_or_nothing(
    faulty_service: FaultyService, name: str, folder: Path, usual: Outcome, case: Case
) -> str:
    """How it went."""
    after, which = usual.states[-1], f"{name}, {case[1]} at {case[0]}"
    which += f": {[*usual.steps, 'the end'][case[0]]}"
    result = in_a_child(faulty_service, name, folder, *case)
    if result is None:  # it died
        config = replace(faulty_service.config, database_path=str(folder / "commentd.db"))
        make_app(config, replace(faulty_service.world, clock=lambda: NOW), rounds=1).close()
        assert_whole(config.database_path)
        left = state(Path(config.database_path))
        assert left in usual.states, which
        assert left == after or case[0] < len(usual.steps), which
        return "died"
    assert all(each in usual.states for each in result.states), which
    assert result.how in ("done", "refused", "failed"), f"{which}: {result.how}"
    late = result.how != "done" and result.states[-1] == after != result.states[0]
    assert not late or name in IN_STEPS, which
    assert late or result.again in ("", "done"), f"{which}: {result.again}"
    # Again is not the same where a part is done, nor a minute later; views come later.
    if name not in {*IN_STEPS, *A_MINUTE_LATER} and not name.startswith("GET "):
        assert result.last == after, which
    assert result.files <= usual.files, which
    return result.how


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_an_operation_that_fails_anywhere_is_done_as_a_whole_or_not_at_all(
    faulty_service: FaultyService, tmp_path: Path, campaign: Campaign
) -> None:
    usual, cases = dict[str, Outcome](), dict[str, list[Case]]()
    names = [*OPERATIONS]
    random.Random(campaign.seed).shuffle(names)
    for _ in campaign.rounds(len(names) // 4):
        turn, number = divmod(campaign.last, len(names))
        name, folder = names[number], tmp_path / "x"
        shutil.rmtree(folder, ignore_errors=True)
        if name not in usual:
            result = in_a_child(faulty_service, name, folder)
            shutil.rmtree(folder)
            assert result
            assert result.how == "done", name
            usual[name] = result
            assert len(result.states) <= 2 or name in IN_STEPS
            cases[name] = cases_of(result, f"{campaign.seed} {name}")
            if name in ALONE:  # a command without memory, or with a bug, just ends
                cases[name] = [case for case in cases[name] if case[1] not in ("memory", "bug")]
            campaign.measured("cases in all", sum(map(len, cases.values())))
        if turn < len(cases[name]):
            how = assert_all_or_nothing(
                faulty_service, name, folder, usual[name], cases[name][turn]
            )
            campaign.figures[how] += 1
        elif len(cases) == len(names) and turn >= max(map(len, cases.values())):
            break  # all of them


def test_every_route_that_writes_is_tried_with_faults() -> None:
    among = {name.partition(",")[0] for name in OPERATIONS}
    routes = {f"{route.method} {route.path}" for route in ROUTES if route.path not in LEFT_OUT}
    assert routes <= among
    # A service is a start, ticks, emails, copies and a stop; `add` makes a database of its own, and
    # at last the file that names it; the others change nothing.
    others = {
        f"commentd {name}"
        for name in ("serve", "add", "check", "example", "help", "render", "demo", "update")
    }
    assert {f"commentd {name}" for name in COMMANDS} - among == others
