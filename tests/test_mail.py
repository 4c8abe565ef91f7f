import contextlib
import email
import email.policy
import os
import random
import re
import shutil
import smtplib
import socket
import socketserver
import sqlite3
import ssl
import struct
import subprocess
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, fields, replace
from email.header import decode_header, make_header
from email.message import EmailMessage
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import inside
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from conftest import START, Campaign, Outside, Visitor, assert_whole

import commentd
from commentd import App, Config, Worker, World, make_app

ANN = "ann@example.com"
MINUTE, HOUR, DAY = 60, 3600, 86400
HEADERS = [
    *("Message-ID", "From", "To", "Subject", "Date", "Auto-Submitted"),
    *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
]
Serve = Callable[..., App]


@pytest.fixture
def serve(config: Config, outside: Outside) -> Iterator[Serve]:
    """Starts the service with a real post office; the clock is the test's."""
    started: list[App] = []

    def start(port: int, **settings: Any) -> App:
        usual = {"mail_host": "127.0.0.1", "mail_port": port, "mail_security": "none"}
        usual |= {"mail_sender": "Blog <comments@blog.example>"}
        world = World(now=lambda: outside.time)
        started.append(make_app(replace(config, **(usual | settings)), world, rounds=1))
        return started[-1]

    yield start
    for app in started:
        app.close()
        assert_whole(app.house.store.path)


def outbox(app: App) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(inside.database_path(app))) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute("SELECT * FROM outbox ORDER BY id")]


def read(letter: str | bytes) -> EmailMessage:
    raw = letter.encode() if isinstance(letter, str) else letter
    message = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(message, EmailMessage)
    return message


def code_in(letter: str | bytes) -> str:
    return re.findall(r"^ {4}(\d{6})\b", read(letter).get_content(), re.M)[0]


def change_password(app: App) -> None:
    """Leaves the letter in the outbox that tells of a change; it may take a day."""
    visitor = Visitor(app)
    for _ in range(2):
        visitor.register()
        visitor.verify(code_in(outbox(app)[0]["message"]))
        app.house.tally.minute = 0
        with app.house.store.writing():
            app.house.store.run("DELETE FROM budget")
    assert [row["registration_id"] for row in outbox(app)] == [None]


# A mail server that keeps to the rules


class PostOffice(Controller):  # type: ignore[misc]
    """On a port that the system chose; keeps what it is handed, and how."""

    def __init__(self, **how: Any) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.letters: list[Any] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.secure: list[bool] = []
        super().__init__(
            self,
            hostname="127.0.0.1",
            port=self.socket.getsockname()[1],
            server_hostname="mail.example",
            authenticator=self.authenticate,
            **how,
        )

    def _create_server(self) -> Any:
        return self.loop.create_server(
            self._factory_invoker, sock=self.socket, ssl=self.ssl_context
        )

    def authenticate(self, server: Any, session: Any, envelope: Any, kind: str, pair: Any) -> Any:
        self.logins.append((pair.login, pair.password))
        return AuthResult(success=pair.password == b"geheim")

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.letters.append(envelope)
        self.secure.append(session.ssl is not None)
        return "250 OK"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[str, str]]:
    """A self-signed certificate for a name, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not there to make a certificate")
    folder = tmp_path_factory.mktemp("certificates")

    def made(name: str) -> tuple[str, str]:
        paths = [str(folder / f"{name.replace(':', '-')}.{kind}") for kind in ("pem", "key")]
        if not Path(paths[0]).exists():
            form = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x"
            usage = "keyUsage=critical,digitalSignature,keyCertSign"
            files = ["-out", paths[0], "-keyout", paths[1]]
            names = ["-addext", f"subjectAltName={name}", "-addext", usage]
            command = [openssl, *form.split(), *files, *names]
            subprocess.run(command, check=True, capture_output=True)
        return paths[0], paths[1]

    return made


def tls(certificate: tuple[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture
def opened() -> Iterator[Callable[..., PostOffice]]:
    offices: list[PostOffice] = []

    def start(**how: Any) -> PostOffice:
        offices.append(PostOffice(**how))
        offices[-1].start()
        return offices[-1]

    yield start
    for office in offices:
        office.stop()


LOGIN = {"mail_user": "blog", "mail_password": "geheim"}


@pytest.mark.slow
@pytest.mark.parametrize("login", [{}, LOGIN], ids=["", "login"])
@pytest.mark.parametrize("security", ["none", "starttls", "tls"])
def test_a_code_arrives_at_a_mail_server_and_verifies(
    serve: Serve,
    opened: Callable[..., PostOffice],
    certificates: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    security: str,
    login: dict[str, str],
) -> None:
    certificate = certificates("IP:127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    how: dict[str, Any] = {
        "none": {"auth_require_tls": False},
        "starttls": {"tls_context": tls(certificate), "require_starttls": True},
        "tls": {"ssl_context": tls(certificate), "auth_require_tls": False},
    }[security]
    office = opened(**how)
    app = serve(office.port, mail_security=security, **login)
    visitor = Visitor(app)
    visitor.register(" Ann@Example.COM ")
    app.deliver()

    (envelope,) = office.letters
    assert (envelope.mail_from, envelope.rcpt_tos) == ("comments@blog.example", [ANN])
    message = read(envelope.content)
    assert message.keys()[: len(HEADERS)] == HEADERS
    assert (message["To"], message["From"]) == (ANN, "Blog <comments@blog.example>")
    assert message.get_content_type() == "text/plain"
    assert message["Subject"].startswith(code_in(envelope.content) + " ")
    assert office.secure == [security == "starttls"]
    assert office.logins == ([(b"blog", b"geheim")] if login else [])
    assert outbox(app) == []
    assert visitor.verify(code_in(envelope.content)) == "验证成功"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["IP:127.0.0.1", "DNS:other.example"])
@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_nothing_is_told_to_a_server_with_a_wrong_certificate(
    serve: Serve,
    opened: Callable[..., PostOffice],
    certificates: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    security: str,
    name: str,
) -> None:
    certificate = certificates(name)
    if name != "IP:127.0.0.1":  # trusted, but of another
        monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    context = {"starttls": "tls_context", "tls": "ssl_context"}[security]
    office = opened(**{context: tls(certificate)}, auth_require_tls=security == "starttls")
    app = serve(office.port, mail_security=security, **LOGIN)
    Visitor(app).register()
    app.deliver()
    assert (office.letters, office.logins) == ([], [])
    (waiting,) = outbox(app)
    assert waiting["tries"] == 1
    assert waiting["due_at"] > START


# A mail server that does what it is told, or worse


class Talk(socketserver.StreamRequestHandler):
    server: "Clerk"
    secure = False

    def handle(self) -> None:
        self.server.calls += 1
        if not self.answer("CONNECT", "220 mail.example"):
            return
        while line := self.rfile.readline().decode("latin-1").strip():
            self.server.said.append(line)
            self.server.clear += [] if self.secure else [line]
            verb = line.split()[0].upper()
            said = self.answer(verb, self.usual(verb), line)
            if verb == "STARTTLS" and said.startswith("220") and not self.secured():
                return
            if verb == "DATA" and said.startswith("354"):
                said = self.take_letter()
            if not said or verb == "QUIT":
                return

    def usual(self, verb: str) -> str:
        offer = "250-mail.example\r\n250-STARTTLS\r\n250 AUTH PLAIN"
        if verb == "EHLO" and self.server.certificate:
            return offer
        usual = {"DATA": "354 go on", "QUIT": "221 bye", "AUTH": "235 ok", "STARTTLS": "220 go"}
        return usual.get(verb, "250 ok")

    def secured(self) -> bool:
        """Whether the other side trusts us now; without a certificate nothing happens."""
        if "HANDSHAKE" in self.server.script and not self.answer("HANDSHAKE", ""):
            return False
        if self.server.certificate:
            context = tls(self.server.certificate)
            self.connection = context.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = (self.connection.makefile(m, 0) for m in ("rb", "wb"))
            self.secure = True
        return True

    def take_letter(self) -> str:
        lines = []
        while (line := self.rfile.readline()) not in (b"", b".\r\n"):
            lines.append(line)
        self.server.letters.append(b"".join(lines))
        return self.answer("DOT", "250 kept")

    def answer(self, step: str, usual: str, line: str = "") -> str:
        """What was said; "" when the conversation is over, which an empty reply ends too."""
        reply = self.server.script.get(step, usual)
        reply = reply(line) if callable(reply) else reply
        if reply in RUDE:
            return self.misbehave(reply, usual)
        while reply.endswith("..."):  # without end
            self.wfile.write(f"{reply[:3]}-x\r\n".encode())
            if self.server.closing.wait(0.01):
                return ""
        self.wfile.write(f"{reply}\r\n".encode() if reply else b"")
        return "" if reply.startswith("421") else reply  # RFC 5321, 3.8: 421 hangs up

    def misbehave(self, how: str, usual: str) -> str:
        if how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())
        if how == "binary":
            self.wfile.write(bytes(range(255, -1, -1)) + b"\r\n")
        while how == "drip" and not self.server.closing.wait(0.01):
            self.wfile.write(b"2")
        if how in ("silence", "late", "binary"):
            self.connection.recv(1)  # until the other side has had enough
        self.wfile.write(f"{usual}\r\n".encode() if how == "late" else b"")
        return ""

    def finish(self) -> None:
        super().finish()
        self.connection.close()  # which TLS made of the first


RUDE = ("reset", "binary", "silence", "late", "drip")


class Clerk(socketserver.ThreadingTCPServer):
    """A mail server with a script: what it replies at a step, else the usual."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Talk, bind_and_activate=False)
        self.server_bind()  # connections are refused until it listens
        self.port = self.server_address[1]
        self.script: dict[str, str | Callable[[str], str]] = {}
        self.calls, self.closing = 0, threading.Event()
        self.said: list[str] = []
        self.clear: list[str] = []  # of it, without TLS
        self.letters: list[bytes] = []
        self.certificate: tuple[str, str] | None = None  # it offers TLS, and then a login

    def open(self) -> "Clerk":
        self.server_activate()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side hung up."""


@pytest.fixture
def shut() -> Iterator[Clerk]:
    """A clerk who has not opened yet: connections are refused."""
    clerk = Clerk()
    clerk.opened = False  # type: ignore[attr-defined]
    yield clerk
    clerk.closing.set()
    if clerk.calls:
        clerk.shutdown()
    clerk.server_close()


@pytest.fixture
def clerk() -> Iterator[Clerk]:
    clerk = Clerk().open()
    yield clerk
    clerk.closing.set()
    clerk.shutdown()
    clerk.server_close()


@pytest.mark.parametrize("security", ["starttls", "tls"])
@pytest.mark.parametrize("offer", ["250 ok", "250 AUTH PLAIN LOGIN", "250 STARTTLS"])
def test_what_shall_be_secret_is_never_said_in_clear(
    serve: Serve, clerk: Clerk, security: str, offer: str
) -> None:
    clerk.script = {"EHLO": f"250-mail.example\r\n{offer}", "STARTTLS": "454 not now"}
    app = serve(clerk.port, mail_security=security, **LOGIN)
    Visitor(app).register()
    app.deliver()
    assert clerk.letters == []
    if security == "starttls":
        assert {line.split()[0].upper() for line in clerk.said} <= {"EHLO", "STARTTLS", "QUIT"}
    else:
        assert not [line for line in clerk.said if line.isascii() and line.isprintable()]
    (waiting,) = outbox(app)
    assert waiting["tries"] == 1
    assert code_in(waiting["message"])


STEPS = ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "DOT"]
LATER = [(step, reply) for step in STEPS for reply in ("", "421 busy", "451 later")]


def said_at(step: str, reply: str) -> dict[str, Any]:
    if step == "CONNECT" and reply:  # RFC 5321, 3.1: then it waits for QUIT
        return {step: reply, "EHLO": "503 bad sequence", "HELO": "503 bad sequence"}
    return {step: reply, **({"HELO": reply} if step == "EHLO" else {})}


@pytest.mark.parametrize(("step", "reply"), LATER)
def test_a_letter_that_meets_a_passing_trouble_is_sent_again(
    serve: Serve, outside: Outside, clerk: Clerk, step: str, reply: str
) -> None:
    clerk.script = said_at(step, reply)
    app = serve(clerk.port)
    visitor = Visitor(app)
    visitor.register()
    app.deliver()
    (waiting,) = outbox(app)
    assert waiting["tries"] == 1
    assert START < waiting["due_at"] <= START + MINUTE
    clerk.script, lost = {}, len(clerk.letters)
    calls = clerk.calls
    app.deliver()
    assert clerk.calls == calls, "not before its time"

    outside.time = waiting["due_at"]
    app.close()
    app = serve(clerk.port)  # a restart loses nothing
    app.deliver()
    app.deliver()
    assert len(clerk.letters) == lost + 1
    assert lost == (step == "DOT"), "at most one is a double"
    assert {read(letter)["Message-ID"] for letter in clerk.letters} == {
        read(waiting["message"])["Message-ID"]
    }
    assert outbox(app) == []
    assert Visitor(app).verify(code_in(clerk.letters[-1])) == "验证成功"


@pytest.mark.parametrize("step", STEPS)
def test_a_letter_that_is_refused_for_good_is_given_up_without_its_text(
    serve: Serve, outside: Outside, clerk: Clerk, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    clerk.script = said_at(step, f"550 {ANN} is unknown here")
    app = serve(clerk.port)
    Visitor(app).register()
    letter = outbox(app)[0]["message"]
    app.deliver()
    (kept,) = outbox(app)
    assert (kept["message"], kept["due_at"]) == ("", None)
    assert kept["failure"]
    told = kept["failure"] + caplog.text
    assert not [word for word in (ANN, "unknown", code_in(letter)) if word in told]
    calls = clerk.calls
    outside.time += HOUR
    app.deliver()
    assert clerk.calls == calls
    outside.time += 31 * DAY
    app.tick()
    assert outbox(app) == []


def test_a_server_that_hangs_up_after_the_last_word_gets_no_double(
    serve: Serve, outside: Outside, clerk: Clerk
) -> None:
    clerk.script = {"QUIT": ""}
    app = serve(clerk.port)
    Visitor(app).register()
    for _ in range(3):
        app.deliver()
        outside.time += 60  # its code is good for ten minutes
    assert len(clerk.letters) == 1


def test_an_email_that_comes_while_another_leaves_is_sent(
    serve: Serve, outside: Outside, clerk: Clerk
) -> None:
    """Even where that other one is not in the outbox any more when its sending ends."""
    app = serve(clerk.port)
    ann, bob = Visitor(app), Visitor(app, "203.0.113.8")

    def slow(line: str) -> str:
        clerk.script = {}
        ann.verify(code_in(clerk.letters[0]))
        bob.register("bob@example.com")
        return "221 bye"

    clerk.script = {"QUIT": slow}
    ann.register()
    app.deliver()
    assert [read(letter)["To"] for letter in clerk.letters] == [ANN, "bob@example.com"]


def test_a_try_that_fails_does_not_end_one_that_the_owner_asked_for_meanwhile(
    serve: Serve, outside: Outside, clerk: Clerk
) -> None:
    app = serve(clerk.port)
    change_password(app)
    (waiting,) = outbox(app)

    def refuse(line: str) -> str:
        clerk.script = {}
        with app.house.store.writing():
            assert app.house.store.retry_letter(waiting["id"], START)
        return "550 no"

    clerk.script = {"RCPT": refuse}
    app.deliver()
    assert [read(letter)["To"] for letter in clerk.letters] == [ANN]
    assert outbox(app) == []


@pytest.mark.slow
def test_a_code_is_the_next_email_whatever_waits(
    serve: Serve, outside: Outside, clerk: Clerk
) -> None:
    app = serve(clerk.port)
    with app.house.store.writing():
        for number in range(300):
            to = f"follower{number}@example.com"
            letter = commentd.compose(app.house.config, app.house.world, to, "hi", "hi", DAY)
            app.house.store.add_letter(**letter)
    outside.time += 1

    def register(line: str) -> str:
        if len(clerk.letters) == 2:
            Visitor(app).register()
        return "250 kept"

    clerk.script = {"DOT": register}
    app.deliver()
    assert [read(letter)["To"] for letter in clerk.letters[:4]] == [
        *("follower0@example.com", "follower1@example.com", ANN, "follower2@example.com")
    ]
    assert len(clerk.letters) == 301


def test_one_address_that_is_refused_holds_back_no_other(serve: Serve, clerk: Clerk) -> None:
    replies = {"a@": "550 no", "b@": "450 later", "c@": "250 ok"}
    clerk.script = {"RCPT": lambda line: replies[line.split("<")[1][:2]]}
    app = serve(clerk.port)
    for name in "abc":
        Visitor(app).register(f"{name}@example.com")
    app.deliver()
    assert [read(letter)["To"] for letter in clerk.letters] == ["c@example.com"]
    assert [(row["recipient"], row["due_at"] is None) for row in outbox(app)] == [
        ("a@example.com", True),
        ("b@example.com", False),
    ]


def test_a_letter_of_a_day_outlives_hours_without_a_server(
    serve: Serve, outside: Outside, shut: Clerk
) -> None:
    app = serve(shut.port)
    change_password(app)
    waits = []
    while outside.time < START + 20 * HOUR:
        app.deliver()
        (waiting,) = outbox(app)
        waits.append(waiting["due_at"] - outside.time)
        outside.time = waiting["due_at"]
    assert waits == sorted(waits), "it backs off"
    assert waits[0] < MINUTE
    assert waits[-1] <= HOUR
    assert len(waits) < 40
    shut.open()
    app.deliver()
    assert [read(letter)["To"] for letter in shut.letters] == [ANN]
    assert outbox(app) == []


def test_after_a_day_a_letter_is_given_up(serve: Serve, outside: Outside, shut: Clerk) -> None:
    app = serve(shut.port)
    change_password(app)
    while outside.time < START + DAY:
        app.deliver()
        outside.time = outbox(app)[0]["due_at"] or pytest.fail("given up too early")
    app.deliver()
    (kept,) = outbox(app)
    assert read(kept["message"])["To"] == ANN, "the owner may try again"
    assert (kept["due_at"], kept["failure"]) == (None, "expired")


@pytest.mark.parametrize("end", ["used", "expired", "replaced"])
def test_a_code_is_wiped_everywhere_when_it_has_had_its_time(
    serve: Serve, outside: Outside, shut: Clerk, end: str
) -> None:
    app = serve(shut.port)
    visitor = Visitor(app)
    visitor.register()
    app.deliver()
    text = outbox(app)[0]["message"]
    with closing(sqlite3.connect(app.house.store.path)) as db:
        (sealed,) = db.execute("SELECT code FROM registration").fetchone()
    if end == "used":
        visitor.verify(code_in(text))
    elif end == "replaced":
        outside.time += MINUTE + 1
        visitor.register()
    else:
        outside.time += 600
        app.deliver()
        app.tick()
        shut.open()
        outside.time += HOUR
        app.deliver()
        assert shut.letters == []
        assert outbox(app)[0]["message"] == ""
    app.close()
    content = Path(app.house.store.path).read_bytes()
    head, _, lines = text.partition("\r\n\r\n")
    secrets = [
        sealed,
        *[line for line in head.splitlines() if line.startswith("Subject")],
        lines.split()[0],
        read(text)["Message-ID"],
    ]
    assert not [word for word in secrets if word.encode() in content]


ENDLESS = [(step, silent, "none") for step in (*STEPS, "QUIT") for silent in (True, False)]


@pytest.mark.slow
@pytest.mark.parametrize(("step", "silent", "security"), [*ENDLESS, ("CONNECT", True, "tls")])
def test_a_server_that_is_silent_or_never_comes_to_an_end_is_left(
    serve: Serve,
    clerk: Clerk,
    step: str,
    silent: bool,
    security: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A letter must have been taken before QUIT, on a busy machine too.
    monkeypatch.setattr(commentd, "SMTP_PATIENCE", 2 if step == "QUIT" else 0.1)

    def nothing(line: str) -> str:
        clerk.closing.wait(60)
        return ""

    clerk.script = {step: nothing if silent else "250..."}
    app = serve(clerk.port, mail_security=security)
    Visitor(app).register()
    assert_ends(app.deliver)
    assert [row["tries"] for row in outbox(app)] == ([] if step == "QUIT" else [1])


@pytest.mark.slow
def test_a_server_that_dawdles_over_its_certificate_gets_no_more_time(
    serve: Serve,
    clerk: Clerk,
    certificates: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificate = certificates("IP:127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    monkeypatch.setattr(commentd, "SMTP_PATIENCE", 0.2)

    class Slow(Talk):
        def answer(self, step: str, usual: str, line: str = "") -> str:
            said = super().answer(step, usual, line)
            if step == "STARTTLS":
                self.server.closing.wait(0.6)  # the patience is over now
                self.connection = tls(certificate).wrap_socket(self.connection, server_side=True)
                self.rfile, self.wfile = (self.connection.makefile(m, 0) for m in ("rb", "wb"))
                self.server.script["EHLO"] = "250..."
            return said

    clerk.RequestHandlerClass = Slow
    clerk.script = {"EHLO": "250-mail.example\r\n250 STARTTLS", "STARTTLS": "220 go"}
    app = serve(clerk.port, mail_security="starttls")
    Visitor(app).register()
    assert_ends(app.deliver)
    assert [row["tries"] for row in outbox(app)] == [1]


SECURE = ["CONNECT", "EHLO", "STARTTLS", "HANDSHAKE", "AUTH", "MAIL", "RCPT", "DATA", "DOT"]
ABRUPT = ["", "421 busy", "451 later", "abc", "299 odd", "354 go on", "reset", "binary"]
SLOW = ["250...", "silence", "late", "drip"]
# Python closes a socket that was reset just before its handshake only when it forgets it.
forgotten = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def strict(
    clerk: Clerk, certificates: Callable[[str], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Clerk]:
    """One who offers TLS; who is told nothing of worth without it."""
    clerk.certificate = certificates("IP:127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", clerk.certificate[0])
    yield clerk
    said = "\n".join(clerk.clear)
    assert not re.search(r"(?im)^(AUTH|MAIL|RCPT|DATA)|geheim|Z2VoZWlt|@", said), said


@forgotten
@pytest.mark.parametrize("trouble", [*ABRUPT, *SLOW])
@pytest.mark.parametrize("step", SECURE[2:5])
def test_trouble_on_the_way_to_a_secret_neither_gives_it_away_nor_ends_a_letter(
    serve: Serve,
    outside: Outside,
    strict: Clerk,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    trouble: str,
) -> None:
    monkeypatch.setattr(commentd, "SMTP_PATIENCE", 0.3 if trouble in SLOW else 30)
    strict.script = {step: trouble}
    app = serve(strict.port, mail_security="starttls", **LOGIN)
    Visitor(app).register()
    assert_ends(app.deliver)
    (waiting,) = outbox(app)
    assert (waiting["tries"], strict.letters) == (1, [])
    monkeypatch.setattr(commentd, "SMTP_PATIENCE", 30)
    strict.script, outside.time = {}, waiting["due_at"]
    app.deliver()
    assert len(strict.letters) == 1
    assert outbox(app) == []


@forgotten
def test_no_row_of_troubles_loses_a_letter_or_doubles_one_that_was_taken(
    serve: Serve,
    outside: Outside,
    strict: Clerk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    campaign: Campaign,
) -> None:
    for chance in campaign.rounds(5):
        strict.script, strict.letters = {}, []
        path = str(tmp_path / f"{campaign.last}.db")
        app = serve(strict.port, mail_security="starttls", database_path=path, **LOGIN)
        Visitor(app).register()
        dies_at, dots = outside.time + 600, 0  # after a dot that was not answered it is unsure
        for _ in range(chance.choice([1, 2, 4])):
            step, trouble = chance.choice(SECURE), chance.choice([*ABRUPT, *SLOW])
            monkeypatch.setattr(commentd, "SMTP_PATIENCE", 0.3 if trouble in SLOW else 30)
            strict.script = {step: trouble, **({"HELO": trouble} if step == "EHLO" else {})}
            assert_ends(app.deliver)
            campaign.figures["tries"] += 1
            if not (waiting := outbox(app)) or waiting[0]["due_at"] is None:
                break
            dots += step == "DOT"
            assert len(strict.letters) <= dots, "it is told what was taken"
            outside.time = waiting[0]["due_at"] + chance.choice([0, 0, 0, 700])
        monkeypatch.setattr(commentd, "SMTP_PATIENCE", 30)
        strict.script, in_time = {}, bool(outbox(app)) and outside.time < dies_at
        before = len(strict.letters)
        for _ in range(3):
            app.deliver()
            outside.time += HOUR
        after = len(strict.letters)
        assert before + in_time <= after <= max(before, dots) + in_time, "once, and in its time"
        campaign.figures["doubles"] += max(0, after - 1)
        assert len({read(letter)["Message-ID"] for letter in strict.letters}) <= 1
        assert not [row for row in outbox(app) if row["message"]]
        app.close()


@pytest.mark.parametrize("step", [*STEPS, "RSET"])
@pytest.mark.parametrize("reply", ["250 " + "x" * 9000, "250-x\r\n" * 200_000, "999 x"])
def test_a_reply_that_is_none_is_no_refusal_for_good_and_takes_no_memory(
    serve: Serve, clerk: Clerk, step: str, reply: str
) -> None:
    clerk.script = {"RCPT": "450 later", step: reply, **({"HELO": reply} if step == "EHLO" else {})}
    app = serve(clerk.port)
    Visitor(app).register()
    tracemalloc.start()
    try:
        assert_ends(app.deliver)
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    (waiting,) = outbox(app)
    assert (waiting["tries"], waiting["due_at"] is None) == (1, False)
    assert taken < 16 << 20


def assert_ends(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "it goes on for ever"


# Who waits, and who does not


def test_no_request_waits_for_the_mail_server(serve: Serve, clerk: Clerk) -> None:
    clerk.script = {"CONNECT": "220..."}
    app = serve(clerk.port)
    visitor = Visitor(app)
    visitor.register()
    visitor.verify(code_in(outbox(app)[0]["message"]))
    assert clerk.calls == 0


def test_the_postman_goes_as_soon_as_there_is_a_letter(serve: Serve, clerk: Clerk) -> None:
    app = serve(clerk.port)
    rested = threading.Event()
    postman = Worker("postman", lambda: (app.deliver(), rested.set())[0], app.house.posted)
    postman.start()
    assert rested.wait(10)
    rested.clear()
    Visitor(app).register()
    assert rested.wait(10), "it would have slept for a minute"
    postman.stop()
    assert not postman.is_alive()
    assert [read(letter)["To"] for letter in clerk.letters] == [ANN]


def test_a_failure_of_mail_is_no_callers_to_learn(serve: Serve, clerk: Clerk) -> None:
    clerk.script = {"RCPT": "550 no"}
    app = serve(clerk.port)
    visitor = Visitor(app)
    replies = []
    for name in ("a", "b"):
        body = {"email": f"{name}@example.com", "nickname": "A", "password": "p"}
        reply = visitor.post_json("/auth/register", body | {"captcha_token": "x"})
        replies.append((reply.status, sorted(reply.headers.items()), set(reply.json)))
        app.deliver()
    assert replies[0] == replies[1]


# The letters

INJECTED = [
    "=?utf-8?q?a=0aBcc:_eve@evil.example?=", "=?utf-8?q?a?= =?utf-8?q?=0d=0aX:_y?=",
    "=\u00ad?utf-8?q?a=0aBcc:_eve@evil.example?\u00ad=", "=\u200b?utf-8?b?YQpCY2M6IGVAZQ==?=",
    "a\r\nBcc: eve@evil.example", "a\n\nbody", "Ann, Bob", 'a"', "a\u2028b\x85c",
    "{code} %s {0} {until.__class__}", 'Ann" <eve@evil.example>, "x', "博客" * 60, "\udcff",
]  # fmt: skip
SCRAPS = [
    *["\r", "\n", "\r\n", "\n\n", "\r\n ", "\n\t", "\x00", "\x0b", "\x0c", "\x1c", "\x1e", "\x7f"],
    *[
        "\x85",
        "\xa0",
        "\u2028",
        "\u2029",
        "\u00ad",
        "\u200b",
        "\u200e",
        "\u202e",
        "\u2066",
        "\ufeff",
    ],
    *[
        "=?",
        "?=",
        "=?utf-8?",
        "q?",
        "b?",
        "=0a",
        "=0D=0A",
        "_",
        "?",
        "=",
        " ",
        "  ",
        "\t",
        "\ud83d",
    ],
    *["Bcc:", "To: ", "Subject: x", "Content-Type: text/html", "--", ".", "\r\n.\r\n", "> ", ">"],
    *["<", ">", "@", ",", ";", ":", '"', "\\", "(", ")", "eve@evil.example", "<eve@evil.example>"],
    *[
        "{",
        "}",
        "{{",
        "{site}",
        "{0.__class__}",
        "%",
        "%s",
        "%(a)s",
        "$1",
        "Ann",
        "名",
        "é",
        "e\u0301",
    ],
    *["👩‍💻", "مرحبا", "\U000e0041", "\ue000", "\uffff", "\U0010ffff", "https://evil.example/ "],
    *["Approve: https://evil.example/", "Spam:    x", "“Bob” replied", "x" * 80, "-" * 40],
]


def scrawl(chance: random.Random) -> str:
    """A text that would be more than a text."""
    pieces = chance.choices([*SCRAPS, *SCRAPS, *INJECTED], k=chance.choice([1, 1, 2, 3, 5, 8]))
    pieces += [chr(chance.choice([chance.randrange(0x3000), chance.randrange(0x110000)]))]
    text = "".join(chance.sample(pieces, len(pieces))) * chance.choice([1] * 20 + [40])
    return text.encode("utf-8", "replace").decode() if chance.random() < 0.9 else text


def line_of(chance: random.Random) -> str:
    """The same, as a field takes it that takes no controls."""
    text = "".join(c if not commentd.has_controls(c) else " " for c in scrawl(chance))
    return " ".join(text.encode("utf-8", "replace").decode().split()) or "x"


def address_of(chance: random.Random) -> str:
    """A strange one that is allowed."""
    signs = "ab09!#$%&'*+/=?^_`{|}~-"
    words = ["".join(chance.choices(signs, k=chance.choice([1, 2, 9, 30]))) for _ in range(2)]
    host = ".".join("a" * chance.choice([1, 9, 60]) for _ in range(chance.choice([1, 2, 3])))
    with contextlib.suppress(ValueError):
        return commentd.proper_email(f"{chance.choice(['.', '']).join(words)}@{host}.example")
    return ANN


CASE = commentd.Case(
    **{each.name: 1 if "int" in str(each.type) else "" for each in fields(commentd.Case)}
)
ABOUT = ["In-Reply-To", "References"]
ENDED = [*ABOUT, "List-Unsubscribe", "List-Unsubscribe-Post"]
NAME, REASON = "NNAMEE", "RREASONN"


@dataclass
class Desk:
    """Writes a letter of each kind about the same comments."""

    config: Config
    to: str
    reasons: list[str]

    def letters(self, *cases: commentd.Case) -> dict[str, tuple[dict[str, Any], list[str]]]:
        rows = [{"reason": reason, "reported_at": START} for reason in self.reasons]
        store: Any = SimpleNamespace(reports=lambda number: [])
        office = commentd.Office(
            config=self.config, world=World(now=lambda: START), store=store, key=b"k" * 32
        )
        reported: Any = SimpleNamespace(reports=lambda number: rows)
        seen = [replace(case, status="visible") for case in cases]
        pairs = [(case, replace(case, id=5)) for case in cases]
        reader = commentd.Account(3, self.to, "Ann", "", "user", 1, START, 0)
        asked = replace(cases[0], id=5, email=self.to)
        plain = (self.config, office.world, self.to)
        return {
            "code": (commentd.code_letter(*plain, "123456", False), []),
            "known": (commentd.code_letter(*plain, "123456", True), []),
            "changed": (commentd.changed_letter(*plain), []),
            "asking": (commentd.asking_letter(office, asked), []),
            "waiting": (commentd.owner_letter(office, self.to, [*cases]), ABOUT),
            "visible": (commentd.owner_letter(office, self.to, seen), ABOUT),
            "reported": (
                commentd.owner_letter(replace(office, store=reported), self.to, [*cases]), ABOUT,
            ),
            "answer": (commentd.answer_letter(office, self.to, pairs), ENDED),
            "follower": (
                commentd.follower_letter(office, reader, cases[0].language, [*cases]), ENDED,
            ),
        }  # fmt: skip


def test_no_words_make_another_letter(campaign: Campaign) -> None:
    """Whoever chose them: a reader, or the owner in his settings."""
    for chance in campaign.rounds(20):
        environ = {"COMMENTD_SERVER_PUBLIC_URL": "https://comments.example"}
        environ |= {"COMMENTD_SITE_ORIGINS": "https://blog.example"}
        name = re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", scrawl(chance))  # controls are refused
        environ |= {"COMMENTD_SITE_NAME": name}
        sender, host = "commentd@localhost", chance.choice(["blog.example", "localhost"])
        with contextlib.suppress(commentd.SettingsFault):
            named = environ | {"COMMENTD_MAIL_SENDER": f"{scrawl(chance)} <comments@{host}>"}
            commentd.load_config(None, named)
            environ, sender = named, f"comments@{host}"
        page = chance.choice([f"/{line_of(chance)}", line_of(chance), scrawl(chance)])
        said = {
            "nickname": line_of(chance)[:64],
            "page_url": page.encode("utf-8", "replace").decode()[:2048],
            "content": "\n".join(line_of(chance) for _ in range(chance.choice([1, 3]))),
            "website": chance.choice(["", "https://evil.example/"]),
            "language": chance.choice([*commentd.all_words()]),
            "held": chance.choice(["all", "first", "links", "fast", "word: x"]),
        }
        case = replace(CASE, **said)
        config, reason = commentd.load_config(None, environ), line_of(chance)[:500]
        desk = Desk(config, address_of(chance), [reason])
        cases = [replace(case, id=7 + n) for n in range(chance.choice([1] * 9 + [2] * 9 + [22]))]
        config = replace(config, mail_sender="")  # of which nothing is in a text
        bare = Desk(config, desk.to, [REASON]).letters(
            *[replace(each, nickname=NAME, content="x", website="") for each in cases]
        )
        for kind, (letter, names) in desk.letters(*cases).items():
            text = assert_whole_letter(letter, sender, desk.to, [*HEADERS, *names])
            ours = "\n".join(frame(read(bare[kind][0]["message"]).get_content()))
            ours = ours.replace(NAME, case.nickname).replace(REASON, reason)
            assert without_links(frame(text)) == without_links(ours.split("\n")), kind
            campaign.figures["letters"] += 1


def frame(text: str) -> list[str]:
    """A letter without what is quoted in it."""
    return [line for line in text.splitlines() if line[:2] != "> "]


def without_links(lines: list[str]) -> list[str]:
    return [re.sub(r"https://comments.example/mail\S+", "", line) for line in lines]


def assert_whole_letter(letter: dict[str, Any], sender: str, to: str, names: list[str]) -> str:
    """It has these headers alone, one recipient, and a plain text."""
    raw = letter["message"]
    assert raw.isascii()
    assert max(map(len, raw.split("\r\n"))) <= 998
    assert not re.search("[\r\n\0]", raw.replace("\r\n", ""))
    assert letter["recipient"] == to
    assert smtplib.quoteaddr(to) == f"<{to}>"
    old = email.message_from_string(raw)  # as many programs still read it
    message = read(raw)
    assert [*old.keys()] == [*message.keys()]
    assert sorted(message.keys()) == sorted(names)
    assert [a.addr_spec for a in message["To"].addresses] == [to]
    assert [a.addr_spec for a in message["From"].addresses] == [sender]
    for name, value in old.items():
        told = str(make_header(decode_header(re.sub(r"\r\n(?=[ \t])", "", value))))
        assert not commentd.has_controls(told), (name, told)
    assert message["Auto-Submitted"] == "auto-generated"
    assert (message.get_content_type(), message.is_multipart()) == ("text/plain", False)
    assert message.defects == []
    text: str = message.get_content()
    return text.replace("\r\n", "\n")


def test_a_letter_with_a_code_says_what_it_is_for_and_nothing_that_a_stranger_typed(
    serve: Serve, outside: Outside, clerk: Clerk
) -> None:
    app = serve(clerk.port, site_name="Ann's blog")
    fields = {"nickname": "Win at evil.example", "password": "and again", "website": "evil.example"}
    Visitor(app).register("bob@example.com", **fields, **{"Accept-Language": "evil"})
    Visitor(app, "192.0.2.1").register("carol@example.com", nickname="C")
    app.deliver()
    texts = [read(letter).get_content() for letter in clerk.letters]
    codes = [code_in(letter) for letter in clerk.letters]
    assert texts[0].replace(codes[0], "") == texts[1].replace(codes[1], "")
    assert "evil" not in clerk.letters[0].decode() + texts[0]
    assert "Ann's blog" in texts[0]
    assert "10 分钟内有效（北京时间 19:16 之前）" in texts[0]
    assert read(clerk.letters[0])["Date"].datetime.timestamp() == START
    assert len({read(letter)["Message-ID"] for letter in clerk.letters}) == 2


@pytest.mark.parametrize(
    ("sender", "shown"),
    [
        ("comments@blog.example", "blog.example"),
        ("Ann <comments@blog.example>", "Ann"),
        ('"评论, 博客" <comments@blog.example>', "评论, 博客"),
    ],
)
def test_letters_come_from_the_sender_that_is_set(sender: str, shown: str) -> None:
    config = Config(mail_sender=commentd.mailbox(sender), site_origins=("https://blog.example",))
    message = read(commentd.changed_letter(config, World(), ANN)["message"])
    (address,) = message["From"].addresses
    assert (address.display_name, address.addr_spec) == (shown, "comments@blog.example")
    assert message["Message-ID"].endswith("@blog.example>")


@pytest.mark.parametrize(
    "tail",
    [", walks", ": walks", " (walks)", "; walks.", " <w@x.yz>", ' " walks', "\\", "，散步：(走)"],
)
def test_a_long_name_of_the_blog_stays_one_name(tail: str) -> None:
    name = f"Letters from the hills about gardens and what is left of the summer{tail}"
    message = read(commentd.changed_letter(Config(site_name=name), World(), ANN)["message"])
    (address,) = message["From"].addresses
    assert (address.display_name, address.addr_spec) == (name, "commentd@localhost")


@pytest.mark.parametrize("sender", ["a@例子.example", "名@blog.example", "a"])
def test_a_sender_that_can_write_no_letter_is_no_setting(sender: str) -> None:
    with pytest.raises(ValueError, match="must be an address"):
        commentd.mailbox(sender)


def test_without_a_mail_server_letters_are_printed(
    serve: Serve, outside: Outside, capsys: pytest.CaptureFixture[str]
) -> None:
    app = serve(0, mail_host="")
    visitor = Visitor(app)
    visitor.register()
    app.deliver()
    printed = capsys.readouterr().out
    assert f"To: {ANN}\n" in printed
    assert outbox(app) == []
    code = re.findall(r"^ {4}(\d{6})\b", printed, re.M)[0]
    assert f"Subject: {code} " in printed
    assert visitor.verify(code) == "验证成功"


def test_a_letter_that_failed_before_the_clock_went_back_is_tried_again_at_once(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    outside.time += 30 * DAY
    outside.mail_fails_with = ConnectionRefusedError()
    visitor.register()
    app.deliver()
    outside.time -= 30 * DAY
    outside.mail_fails_with = None
    app.tick()
    app.deliver()
    assert len(outside.letters) == 1
