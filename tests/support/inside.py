"""What tests need from the inside of commentd: the one place that knows how it is built.

Every other test meets the program through HTTP, the command line, its files, email or a browser.
When the inside of `commentd.py` changes, only this file has to follow."""

import atexit
import functools
import io
import logging
import os
import re
import runpy
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pytest

import commentd
from commentd import (
    CHATS,
    MEMORY_LIMITS,
    PRODUCTS,
    RATE_LIMITS,
    ROUTES,
    App,
    Config,
    LogLine,
    hash_password,
    keyed_hash,
    make_app,
    make_token,
    new_admin_link,
    once_a_minute,
    page_name,
    password_scheme,
    term_hash,
)
from support.patience import PATIENCE
from support.sources import ROOT, STATIC

# What the program raises, with a sentence for users, where it can't do what was asked.
REFUSALS = (commentd.OperatorError, commentd.Unavailable)


# The program, to which Ctrl-C comes when it has committed, and not yet released the lock.
INTERRUPTED = """
import signal, sys
import commentd
commit = commentd.Database.commit
def commit_and_be_interrupted(self):
    commit(self)
    commentd.Turns.release = lambda self: signal.raise_signal(signal.SIGINT)
commentd.Database.commit = commit_and_be_interrupted
sys.exit(commentd.main())
"""


def share_what_never_changes() -> None:
    """Lets all apps of a run share what they read of static/, more than half of making an app, and
    what SQLite can do; all commands the parser of their arguments, which takes longer to make than
    many of them run; and all new databases the work of the migrations."""
    commentd.assets_with = functools.cache(commentd.assets_with)
    commentd.style_in = functools.cache(commentd.style_in)
    commentd.argument_parser = functools.cache(commentd.argument_parser)
    commentd.can_index = functools.cache(commentd.can_index)
    commentd.migrate = migrate_by_copying


def serve_small_files(folder: Path) -> None:
    """From now on, apps serve the scripts and styles that a wheel has, from a copy of static/."""
    shutil.copytree(STATIC, folder, copy_function=os.symlink, dirs_exist_ok=True)
    for name, text in small_files(STATIC).items():
        (folder / name).unlink()
        (folder / name).write_text(text, "utf-8")
    commentd.static_folder = functools.cache(lambda: folder)


def served_folder() -> Path:
    """That of the scripts and styles which apps serve: static/, or its copy with small files."""
    return commentd.static_folder()


def small_files(static: Path) -> dict[str, str]:
    """As the build of a wheel makes them."""
    program = runpy.run_path(str(ROOT / ".ci" / "small_files.py"))
    made: dict[str, str] = program["small_files"](static)
    return made


def files_without_comments(static: Path) -> dict[str, str]:
    """As the build of a wheel makes them where there is no minifier."""
    program = runpy.run_path(str(ROOT / ".ci" / "small_files.py"))
    made: dict[str, str] = program["files_without_comments"](static)
    return made


really_migrate = commentd.migrate


@functools.cache
def migrated(migrations: tuple[commentd.Migration, ...]) -> sqlite3.Connection:
    """An empty database after these migrations."""
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    atexit.register(db.close)
    really_migrate(db, [*migrations])
    return db


def migrate_by_copying(
    db: sqlite3.Connection, migrations: list[commentd.Migration] = commentd.MIGRATIONS
) -> None:
    """What was never migrated becomes a copy of what was: that takes a tenth of the time. Other
    processes, and what has rows, are migrated for real."""
    if commentd.schema_version(db) == 0 and commentd.count_tables(db) == 0:
        migrated(tuple(migrations)).backup(db)
    else:
        really_migrate(db, migrations)


def app_on_copy(empty_database: Path, config: Config, world: commentd.World) -> App:
    """The service, with one round of hashing, so that tests do not wait for it. Its file is a copy
    of one that was checked: that would take a fifth of the time."""
    shutil.copy(empty_database, config.database_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commentd, "check_database_file", lambda path: None)
        return make_app(config, world, rounds=1)


@dataclass(frozen=True)
class Fields:
    """The names of the fields of a comment: all, and those that are handled as something."""

    all: set[str]
    public: tuple[str, ...]
    personal: tuple[str, ...]
    moderation: tuple[str, ...]


def comment_fields() -> Fields:
    return Fields(
        {each.name for each in fields(commentd.FullComment)},
        commentd.PUBLIC_FIELDS,
        commentd.PERSONAL_FIELDS,
        commentd.MODERATION_FIELDS,
    )


def plural_forms(language: str, numbers: Iterable[int]) -> list[str]:
    """Those that the service chooses, by the name of a language in emails."""
    locale = commentd.locales()[language]
    return [locale.plural_form(n) for n in numbers]


def chats() -> set[str]:
    """The chats that the settings take, without the one for the owner's own program."""
    return {*CHATS} - {"json"}


def codes() -> set[str]:
    """Those of refusals, but for those that are made of the name of a field."""
    return {*commentd.Code}


def faults() -> set[str]:
    """The ends of the codes that are made of the name of a field."""
    return {*commentd.Fault}


def mail_server(config: Config) -> tuple[str, int]:
    """Host and port of the mail server that the settings name."""
    server = commentd.SmtpMailer(config, commentd.World()).server
    return server.host, server.port


def mail_hints() -> set[str]:
    """What the owner is advised to do about an email that did not leave."""
    return {*commentd.SMTP_HINTS.values(), *commentd.API_HINTS.values()}


def chat_hints() -> set[str]:
    """What the owner is advised to do about a message that a chat did not take."""
    return {hint for _, _, hint in commentd.CHAT_HINTS}


def products() -> set[str]:
    """Whose files the import reads."""
    return {*PRODUCTS}


def database_path(app: App) -> str:
    return str(app.site.store.path)


def token_key(app: App) -> bytes:
    """The key that signs tokens and links. No response may contain it."""
    return app.site.key


def set_settings(app: App, **settings: Any) -> None:
    """Changes settings of a service that runs, such as the URL that it got only then."""
    object.__setattr__(app.site, "config", replace(app.site.config, **settings))


def set_mail_patience(monkeypatch: Any, seconds: float) -> None:
    """How long a mail server may take for an email."""
    monkeypatch.setattr(commentd, "SMTP_SECONDS", seconds)


def set_mail_ports(monkeypatch: Any, *ports: tuple[int, str]) -> None:
    """Where `check` looks for a mail server, with the security there."""
    monkeypatch.setattr(commentd, "MAIL_PORTS", ports)


def set_most_stickers(monkeypatch: Any, most: int) -> None:
    """How many stickers a service has at most."""
    monkeypatch.setattr(commentd, "MOST_STICKERS", most)


def set_inspection_seconds(monkeypatch: Any, seconds: float) -> None:
    """In which `check` may begin to ask for something of a page."""
    monkeypatch.setattr(commentd, "INSPECTION_SECONDS", seconds)


def set_most_fetch_seconds(monkeypatch: Any, seconds: float) -> None:
    """How long a response of another service may take."""
    monkeypatch.setattr(commentd, "MOST_FETCH_SECONDS", seconds)


def seal(app: App, purpose: str, *words: str) -> str:
    """What the service signs these words with for a purpose."""
    return keyed_hash(app.site.key, purpose, *words)


def now(app: App) -> int:
    """What the service takes for the time, in seconds since 1970."""
    return app.site.now()


def writer(app: App) -> sqlite3.Connection:
    """The connection that writes, for faults of the machine."""
    return app.site.store.writer


def rows_written(app: App) -> int:
    """How many rows the service has added, changed or deleted so far."""
    return writer(app).total_changes


def of_one_owner(app: App, other: App) -> None:
    """The other blog is of the same owner, as one that `commentd add` made is."""
    app.site = replace(app.site, others_of_owner=lambda: [other.site])


def sql(app: App, statement: str, *values: Any) -> list[Any]:
    """The rows of one statement on the database file, committed."""
    with closing(sqlite3.connect(database_path(app))) as db, db:
        db.execute("PRAGMA foreign_keys = ON")
        return db.execute(statement, values).fetchall()


def stored_password(app: App, email: str, password: str) -> str:
    """What the database keeps of a password; `password` as it is sent."""
    return hash_password(password, password_scheme(app.site.rounds, app.site.key, email))


def add_account(app: App, email: str, nickname: str, password: str, role: str = "user") -> int:
    """The id of a verified account that was made without emails; `password` as it is sent."""
    stored = stored_password(app, email, password)
    with app.site.store.writing():
        app.site.store.make_admin(email, nickname, stored, now(app))
    sql(app, "UPDATE account SET role = ? WHERE email = ?", role, email)
    return int(sql(app, "SELECT id FROM account WHERE email = ?", email)[0][0])


def token_of(app: App, email: str, use: str = "login", ago: int = 0) -> str:
    """A token as a login of `ago` seconds ago gave it; `use` is `login` or `admin`."""
    account = app.site.store.account_with_email(email)
    assert account
    began_at = now(app) - ago
    session = 0
    if use == "admin":
        with app.site.store.writing():
            session = app.site.store.add_admin_session(account.id, "a test", "", "", began_at)
    return make_token(account.claims, app.site.key, began_at, use, session)


def admin_link(app: App, email: str = "") -> str:
    """The secret of the one-time link that `commentd admin EMAIL` prints."""
    return new_admin_link(app.site.store, app.site.world, email)


def greet(app: App, port: int) -> None:
    """Prints what a start says, on this port."""
    commentd.greet(app, f"http://127.0.0.1:{port}")


@contextmanager
def writes_held_up(app: App) -> Iterator[None]:
    """Another process writes for as long as this goes on."""
    path = Path(database_path(app))
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as db,
        closing(sqlite3.connect(f"{path}-write", isolation_level=None)) as lock,
    ):
        lock.execute("BEGIN EXCLUSIVE")
        db.execute("BEGIN IMMEDIATE")
        yield
        db.rollback()
        lock.rollback()


def quick_paths() -> set[str]:
    """What the event loop responds to, as in `routes`."""
    return {label_of(route) for route in ROUTES if route.pace is commentd.Pace.QUICK}


def label_of(route: commentd.Route) -> str:
    return re.sub("<([a-z_]+)(:id)?>", r"{\1}", f"{route.method} {route.path}")


def permissions() -> dict[str, str]:
    """What the service answers, such as `GET /comments/{comment_id}`, and who may ask."""
    return {label_of(route): route.permission.name.lower() for route in ROUTES}


def routes() -> set[str]:
    return set(permissions())


def public_paths() -> set[str]:
    """The paths of responses that are the same for all readers, and cached."""
    return {label_of(route).split()[1] for route in ROUTES if route.public}


@contextmanager
def refusing_with(status: int, *, quietly: bool = True) -> Iterator[None]:
    """Makes every route refuse with this status, whatever it is asked; 0 leaves all as it is.
    `quietly`: nothing is logged."""
    if not status:
        yield
        return
    wait = {429: 60, 503: 5}.get(status, 0)
    refusal = commentd.Problem("refused", commentd.Code.BUSY, retry_after=wait)
    refusal.status = status

    def refuse(*_: Any) -> Any:
        raise RuntimeError("a fault of ours") if status == 500 else refusal

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commentd, "request_of", refuse)
        patch.setattr(commentd.log, "disabled", quietly)
        yield


def log_handler(stream: TextIO) -> logging.Handler:
    """A handler such as the service writes its log with, before it serves a blog."""
    # A test of several blogs in this thread leaves the name of the last one.
    commentd.BLOG_IN_LOG.set("")
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogLine("%(levelname)s %(message)s"))
    handler.addFilter(once_a_minute())
    return handler


def set_status(app: App, comment_id: int, status: str) -> None:
    """Gives a comment a status, as an admin would."""
    with app.site.store.writing():
        app.site.store.change_status(comment_id, status, now(app))


def moderation_link(app: App, comment_id: int, status: str, email: str) -> str:
    """The path of a link that emails to an admin hold."""
    comment = app.site.store.comment(comment_id)
    assert comment
    recipient = commentd.Recipient(app.site, email, "en")
    with app.site.store.writing():
        link = recipient.action_link(status, comment, now(app))
    return "/mail?" + link.partition("?")[2]


def in_its_thread(work: Callable[[], float]) -> None:
    """Does some regular work once, as the thread does that goes on after any fault."""
    stopping = threading.Event()

    def work_once() -> float:
        stopping.set()
        return work()

    commentd.repeat(work_once, stopping)


def just_before_it_writes(app: App, act: Callable[[], object]) -> None:
    """Lets `act` overtake the next request that writes, when all is ready to be written."""
    patch = pytest.MonkeyPatch()
    store = app.site.store
    writing = store.writing

    @contextmanager
    def held() -> Iterator[None]:
        patch.undo()
        act()
        with writing():
            yield

    patch.setattr(store, "writing", held)


@contextmanager
def statements(app: App) -> Iterator[list[str]]:
    """The SQL that the service runs meanwhile."""
    asked: list[str] = []
    for connection in (app.site.store.writer, app.site.store.db):
        connection.set_trace_callback(asked.append)
    yield asked
    for connection in (app.site.store.writer, app.site.store.db):
        connection.set_trace_callback(None)


@contextmanager
def writers_held(app: App, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Who wants to write meanwhile has to wait, however long."""
    patch.setattr(commentd, "LOCK_SECONDS", PATIENCE)
    turns = app.site.store.turns
    turns.acquire(timeout=-1)
    try:
        yield
    finally:
        turns.release()


def serve_newer_scripts(app: App) -> None:
    """From now on the service has the scripts of a newer program, as after an update and a restart.
    What they share has other names, so that none of them works together with one of today."""
    old, new = app.site.assets_version, "00000000"
    assets = {}
    for name, asset in app.site.assets.items():
        body = asset.body.replace(old.encode(), new.encode())
        body = body.replace(b"relativeTime", b"sinceWhen").replace(b"formatted", b"asNodes")
        assets[name] = commentd.Asset((body,), asset.content_type)
    app.site = replace(app.site, assets=assets, assets_version=new)
    forget_cached_responses(app)


def forget_cached_responses(app: App) -> None:
    """For what was written by another connection, which the service does not notice."""
    app.site.store.changes.note_all()


def recount(app: App) -> None:
    """Counts anew what comments and pages have, after rows were written past the service."""
    with app.site.store.writing():
        app.site.store.fix_counters()


def seat(app: App, many: int) -> None:
    """So many may hash passwords at once."""
    app.site.hasher.seats = threading.Semaphore(many)


@contextmanager
def seats_taken(app: App, many: int) -> Iterator[None]:
    """So many passwords are being hashed, or wait for it."""
    with ExitStack() as stack:
        for _ in range(many):
            stack.enter_context(app.site.hasher.seat())
        yield


def connections(app: App) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    """Those on which the service writes, and reads for this thread."""
    return app.site.store.writer, app.site.store.db


def terms_of(nickname: str, website: str, markup: str) -> list[str]:
    """What the spam filter reads of a comment."""
    written: Any = SimpleNamespace(nickname=nickname, website=website, html=markup)
    return [*dict.fromkeys(commentd.terms_in(written))]


def term_number(app: App, term: str) -> int:
    """What the database knows a term of the spam filter as."""
    return term_hash(app.site.key, term)


def teach_filter(app: App, term: str, *, spam: int, fine: int) -> None:
    """Lets the spam filter have seen a term in so many comments of each kind, as many as it saw."""
    statement = "INSERT INTO term (hash, ham, spam, learnt_at) VALUES (?, ?, ?, ?)"
    sql(app, statement, 0, fine, spam, now(app))
    sql(app, statement, term_hash(app.site.key, term), 0, spam, now(app))


def use_up(app: App, limit: str, times: int) -> None:
    """Counts so many requests of all clients together against a rate limit."""
    with app.site.store.writing():
        for _ in range(times):
            assert commentd.take_uses(app.site, commentd.Use(limit))


def rate_limits() -> set[int]:
    """How often a client may do things, in all their spans of time. What only costs the same work
    as a limit is left out."""
    limits = [limit for name, limit in RATE_LIMITS.items() if name != "all_wrong_codes_for_nobody"]
    return {most for limit in limits for most in limit.values()} | {*MEMORY_LIMITS.values()}


def count_few_clients(app: App, most: int) -> None:
    """How many clients are counted in memory, before counting starts again."""
    app.site.minute_counter.MOST = most


@contextmanager
def writing_store(path: Path) -> Iterator[commentd.Store]:
    """The store on a database file, which is made if there is none, in a transaction."""
    with closing(commentd.Store(path)) as store, store.writing():
        yield store


def add_stored_comment(
    store: commentd.Store, status: str, created_at: int, **values: Any
) -> commentd.Comment:
    """Adds a comment with these columns past all rules."""
    new = commentd.FullComment(created_at=created_at, **values)
    return store.insert_comment(new, status, created_at)


def add_new_comments(app: App, count: int, content: str) -> None:
    """Adds visible comments to the first page, as the service does, in one transaction."""
    store = app.site.store
    with store.writing():
        for _ in range(count):
            new = commentd.FullComment(created_at=now(app), page_id=1, content=content)
            store.insert_comment(new, "visible", now(app))


def add_many_comments(
    path: Path, page_urls: list[str], count: int, *, content: str = "text", nested: bool = False
) -> None:
    """Adds visible comments to new pages in turn, in one statement, since the way of the service
    takes a minute for as many. If they are nested, each replies to the one before it."""
    now = int(time.time())
    with writing_store(path) as store:
        pages = [store.add_page(page_name(url, ()).key, url, now) for url in page_urls]
        assert [page.id for page in pages] == list(range(1, len(pages) + 1))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            """WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
               INSERT INTO comment (id, page_id, parent_id, thread_id, nickname, email, website,
                                    content, html, ip, country, location, replies, shown, status,
                                    created_at, masked)
               SELECT i, 1 + i % :pages, iif(:nested AND i > 1, i - 1, NULL),
                      iif(:nested AND i > 1, 1, NULL), 'Ann', '', '', :content || ' ' || i,
                      '<p>' || :content || ' ' || i || '</p>', '8.8.8.0', '', '',
                      iif(:nested AND i < :count, 1, 0), 1, 'visible', :first + i, 1 FROM n""",
            {
                "count": count,
                "pages": len(page_urls),
                "nested": nested,
                "content": content,
                "first": now - count,
            },
        )
        db.execute(
            """UPDATE page SET
                   total = (SELECT count(*) FROM comment WHERE page_id = page.id),
                   threads = (SELECT count(*) FROM comment
                               WHERE page_id = page.id AND parent_id IS NULL)"""
        )


class InPieces(io.StringIO):
    """A file that is read in pieces of at most `size` characters."""

    def __init__(self, text: str, size: int) -> None:
        super().__init__(text)
        self.size = size

    def read(self, size: int | None = -1, /) -> str:
        return super().read(self.size)


def records_of_xml(product: str, text: str, size: int) -> list[object]:
    """The records in a text of XML that is read in pieces of `size` characters."""
    tables = PRODUCTS[product]
    file = InPieces(text, size)
    return [*commentd.XmlReader(file, tables.pages.name, tables.comments.name).records()]


@contextmanager
def foreign_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Another program's database, as an import opens it."""
    with commentd.open_foreign_copy(path) as (db, _):
        yield db


def url_of_chat(settings: commentd.ChatSettings) -> str:
    return commentd.chat_for(settings, Config(), commentd.World()).url


def chat_findings(*sections: commentd.ChatSettings) -> list[tuple[str, str, str]]:
    """What `check` says of these chats: the level, the sentence and the hint of each."""
    config = Config(chat_sections=sections)
    return [
        (finding.level.word, finding.text, finding.hint)
        for finding in commentd.check_chats(config, commentd.World())
    ]


def telegram_listener(app: App) -> commentd.TelegramListener:
    """What takes the updates of the one chat that acts."""
    (settings,) = app.site.config.chat_sections
    return commentd.TelegramListener(app.current_site, settings)


def hint_of_chat(kind: str, reason: str) -> str:
    """What is advised where a chat refuses for that reason."""
    settings = commentd.ChatSettings("x", kind=kind)
    return commentd.chat_for(settings, Config(), commentd.World()).hint_for(reason)
