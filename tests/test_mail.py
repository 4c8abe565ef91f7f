"""The way of an email: from the outbox to a mail server, by a real connection to one that keeps to
the rules or does not, and what no word of anybody makes of it."""

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
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from email.header import decode_header, make_header
from email.message import EmailMessage
from itertools import product
from pathlib import Path
from typing import Any

import inside
import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from conftest import START, Campaign, Outside, Visitor, assert_whole
from webtest import TestApp

from commentd import App, Config, World, load_config, make_app, proper_email

ANN = "ann@example.com"
MINUTE, HOUR, DAY = 60, 3600, 86400
HEADERS = [
    *("Message-ID", "From", "To", "Subject", "Date", "Auto-Submitted"),
    *("Content-Type", "Content-Transfer-Encoding", "MIME-Version"),
]
NEWS_HEADERS = [*HEADERS, "In-Reply-To", "References"]
UNSUBSCRIBE = ["List-Unsubscribe", "List-Unsubscribe-Post"]
Serve = Callable[..., App]


@pytest.fixture
def serve(config: Config, outside: Outside, empty_database: Path) -> Iterator[Serve]:
    """Starts the service with a mail server; the clock is the test's."""
    started: list[App] = []

    def start(port: int, **settings: Any) -> App:
        usual = {"mail_host": "127.0.0.1", "mail_port": port, "mail_security": "none"}
        usual |= {"mail_sender": "Blog <comments@blog.example>", "notify_owner": (ANN,)}
        changed = replace(config, **(usual | settings))
        if not Path(changed.database_path).exists():
            shutil.copy(empty_database, changed.database_path)
        started.append(make_app(changed, World(now=lambda: outside.time), rounds=1))
        return started[-1]

    yield start
    for app in started:
        app.close()
        assert_whole(inside.database_path(app))


def outbox(app: App) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(inside.database_path(app))) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute("SELECT * FROM outbox ORDER BY id")]


def read(message: str | bytes) -> EmailMessage:
    raw = message.encode() if isinstance(message, str) else message
    parsed = email.message_from_bytes(raw, policy=email.policy.default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def code_in(message: str | bytes) -> str:
    return re.findall(r"^ {4}(\d{6})\b", read(message).get_content(), re.M)[0]


# A mail server that keeps to the rules


class PostOffice(Controller):  # type: ignore[misc]
    """On a port that the system chose; keeps what it is handed, and how."""

    def __init__(self, **how: Any) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.emails: list[Any] = []
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
        self.emails.append(envelope)
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
def test_a_code_arrives_at_a_mail_server_and_verifies(
    serve: Serve,
    opened: Callable[..., PostOffice],
    certificates: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    certificate = certificates("IP:127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    ways: dict[str, dict[str, Any]] = {
        "none": {"auth_require_tls": False},
        "starttls": {"tls_context": tls(certificate), "require_starttls": True},
        "tls": {"ssl_context": tls(certificate), "auth_require_tls": False},
    }
    for security, login in product(ways, (LOGIN, {})):
        office = opened(**ways[security])
        path = str(tmp_path / f"{office.port}.db")
        app = serve(office.port, mail_security=security, database_path=path, **login)
        visitor = Visitor(app)
        visitor.register(" Ann@Example.COM ")
        app.deliver()
        (envelope,) = office.emails
        assert (envelope.mail_from, envelope.rcpt_tos) == ("comments@blog.example", [ANN])
        message = read(envelope.content)
        assert message.keys()[: len(HEADERS)] == HEADERS
        assert (message["To"], message["From"]) == (ANN, "Blog <comments@blog.example>")
        assert message["Auto-Submitted"] == "auto-generated"
        assert message.get_content_type() == "text/plain"
        assert message["Subject"].startswith(code_in(envelope.content) + " ")
        assert office.secure == [security == "starttls"]
        assert office.logins == ([(b"blog", b"geheim")] if login else [])
        assert outbox(app) == []
        assert visitor.verify(code_in(envelope.content)) == "验证成功"


@pytest.mark.slow
def test_nothing_is_told_to_a_server_with_a_wrong_certificate(
    serve: Serve,
    opened: Callable[..., PostOffice],
    certificates: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    contexts = {"starttls": "tls_context", "tls": "ssl_context"}
    for name, security in product(("IP:127.0.0.1", "DNS:other.example"), contexts):
        certificate = certificates(name)
        if name != "IP:127.0.0.1":  # trusted, but of another
            monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
        how = {contexts[security]: tls(certificate), "auth_require_tls": security == "starttls"}
        office = opened(**how)
        path = str(tmp_path / f"{office.port}.db")
        app = serve(office.port, mail_security=security, database_path=path, **LOGIN)
        Visitor(app).register()
        app.deliver()
        assert (office.emails, office.logins) == ([], []), (name, security)
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
                said = self.take_email()
            if not said or verb == "QUIT":
                return

    def usual(self, verb: str) -> str:
        if verb == "EHLO" and self.server.certificate:
            return "250-mail.example\r\n250-STARTTLS\r\n250 AUTH PLAIN"
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

    def take_email(self) -> str:
        lines = []
        while (line := self.rfile.readline()) not in (b"", b".\r\n"):
            lines.append(line)
        self.server.emails.append(b"".join(lines))
        return self.answer("DOT", "250 kept")

    def answer(self, step: str, usual: str, line: str = "") -> str:
        """What was said; "" when the conversation is over, which an empty reply ends too."""
        reply = self.server.script.get(step, usual)
        reply = reply(line) if callable(reply) else reply
        if reply in ("reset", "binary", "silence", "late"):
            return self.misbehave(reply, usual)
        self.wfile.write(f"{reply}\r\n".encode() if reply else b"")
        return "" if reply.startswith("421") else reply  # RFC 5321, 3.8: 421 hangs up

    def misbehave(self, how: str, usual: str) -> str:
        if how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())
        if how == "binary":
            self.wfile.write(bytes(range(255, -1, -1)) + b"\r\n")
        if how in ("silence", "late", "binary"):
            self.connection.recv(1)  # until the other side has had enough
        self.wfile.write(f"{usual}\r\n".encode() if how == "late" else b"")
        return ""

    def finish(self) -> None:
        super().finish()
        self.connection.close()  # which TLS made of the first


class Clerk(socketserver.ThreadingTCPServer):
    """A mail server with a script: what it replies at a step, else the usual."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Talk, bind_and_activate=False)
        self.server_bind()  # connections are refused until it listens
        self.port = self.server_address[1]
        self.script: dict[str, str | Callable[[str], str]] = {}
        self.calls, self.closing, self.is_open = 0, threading.Event(), False
        self.said: list[str] = []
        self.clear: list[str] = []  # of it, without TLS
        self.emails: list[bytes] = []
        self.certificate: tuple[str, str] | None = None  # it offers TLS, and then a login

    def open(self) -> None:
        self.server_activate()
        self.is_open = True
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.closing.set()
        if self.is_open:
            self.shutdown()
        self.server_close()

    def recipients(self) -> list[str]:
        return [str(read(each)["To"]) for each in self.emails]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side hung up."""


@pytest.fixture
def shut() -> Iterator[Clerk]:
    """A clerk who has not opened yet."""
    clerk = Clerk()
    yield clerk
    clerk.close()


@pytest.fixture
def clerk(shut: Clerk) -> Clerk:
    shut.open()
    return shut


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_what_shall_be_secret_is_never_said_in_clear(
    serve: Serve, clerk: Clerk, outside: Outside, security: str
) -> None:
    app = serve(clerk.port, mail_security=security, **LOGIN)
    Visitor(app).register()
    for tries, offer in enumerate(["250 ok", "250 AUTH PLAIN LOGIN", "250 STARTTLS"], 1):
        clerk.script = {"EHLO": f"250-mail.example\r\n{offer}", "STARTTLS": "454 not now"}
        app.deliver()
        (waiting,) = outbox(app)
        assert (clerk.emails, waiting["tries"]) == ([], tries), offer
        outside.time = waiting["due_at"]
    if security == "starttls":
        assert {line.split()[0].upper() for line in clerk.said} <= {"EHLO", "STARTTLS", "QUIT"}
    else:
        assert not [line for line in clerk.said if line.isascii() and line.isprintable()]


STEPS = ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "DOT"]


def said_at(step: str, reply: str) -> dict[str, Any]:
    if step == "CONNECT" and reply:  # RFC 5321, 3.1: then it waits for QUIT
        return {step: reply, "EHLO": "503 bad sequence", "HELO": "503 bad sequence"}
    return {step: reply, **({"HELO": reply} if step == "EHLO" else {})}


def test_an_email_that_meets_a_passing_trouble_is_sent_again(
    serve: Serve, outside: Outside, clerk: Clerk
) -> None:
    for number, (step, reply) in enumerate(product(STEPS, ("", "421 busy", "451 later"))):
        app = serve(clerk.port, limits_enabled=False)
        clerk.script, clerk.emails, begun = said_at(step, reply), [], outside.time
        Visitor(app).register(f"ann{number}@example.com")
        app.deliver()
        (waiting,) = outbox(app)
        assert waiting["tries"] == 1
        assert begun < waiting["due_at"] <= begun + MINUTE
        clerk.script, lost, calls = {}, len(clerk.emails), clerk.calls
        app.deliver()
        assert clerk.calls == calls, "not before its time"
        outside.time = waiting["due_at"]
        app.close()
        app = serve(clerk.port, limits_enabled=False)  # a restart loses nothing
        for _ in range(2):
            app.deliver()
        assert len(clerk.emails) == lost + 1
        assert lost == (step == "DOT"), "at most one is a double"
        ids = {read(email)["Message-ID"] for email in clerk.emails}
        assert ids == {read(waiting["message"])["Message-ID"]}
        assert outbox(app) == []
        assert Visitor(app).verify(code_in(clerk.emails[-1]), f"ann{number}@example.com")
        app.close()


def test_a_server_that_does_not_greet_is_told_nothing(
    serve: Serve, outside: Outside, clerk: Clerk
) -> None:
    app = serve(clerk.port)
    Visitor(app).register()
    for tries, greeting in enumerate(("250 ok", "354 go on", "421 busy", "554 no"), 1):
        clerk.script = {"CONNECT": greeting}  # whatever it would say to the rest
        app.deliver()
        assert (clerk.emails, clerk.said) == ([], []), greeting
        (waiting,) = outbox(app)
        assert (waiting["tries"], waiting["due_at"] is None) == (tries, greeting == "554 no")
        outside.time = waiting["due_at"] or outside.time


def test_an_email_that_is_refused_for_good_is_given_up_without_its_text(
    serve: Serve, outside: Outside, clerk: Clerk, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for step in STEPS:
        clerk.script = said_at(step, f"550 {ANN} is unknown here")
        app = serve(clerk.port, database_path=str(tmp_path / f"{step}.db"))
        Visitor(app).register()
        message = outbox(app)[0]["message"]
        app.deliver()
        (kept,) = outbox(app)
        assert (kept["message"], kept["due_at"]) == ("", None), step
        assert kept["failure"]
        told = kept["failure"] + caplog.text
        assert not [word for word in (ANN, "unknown", code_in(message)) if word in told]
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
    assert len(clerk.emails) == 1


def test_a_code_is_the_next_email_whatever_waits(serve: Serve, clerk: Clerk) -> None:
    owners = tuple(f"owner{number}@example.com" for number in range(25))
    app = serve(clerk.port, notify_owner=owners)
    Visitor(app).say()

    def register(line: str) -> str:
        if len(clerk.emails) in (2, 9):
            Visitor(app).register(f"ann{len(clerk.emails)}@example.com")
        return "250 kept"

    clerk.script = {"DOT": register}
    app.deliver()
    found = clerk.recipients()
    assert (found[2], found[9]) == ("ann2@example.com", "ann9@example.com")
    assert sorted(found) == sorted([*owners, found[2], found[9]])


@pytest.mark.parametrize("hours", [20, 24])
def test_an_email_outlives_hours_without_a_server_and_is_given_up_after_a_day(
    serve: Serve, outside: Outside, shut: Clerk, hours: int
) -> None:
    app = serve(shut.port)
    Visitor(app).say()
    waits = []
    while outside.time < START + hours * HOUR:
        app.deliver()
        (waiting,) = outbox(app)
        waits.append(waiting["due_at"] - outside.time)
        outside.time = waiting["due_at"]
    if hours < 24:
        assert waits == sorted(waits), "it backs off"
        assert waits[0] < MINUTE
        assert waits[-1] <= HOUR
        assert len(waits) < 40
        shut.open()
    app.deliver()
    assert shut.recipients() == [ANN] * (hours < 24)
    kept = [(row["due_at"], row["failure"], row["message"] != "") for row in outbox(app)]
    assert kept == ([(None, "expired", True)] if hours == 24 else []), "the owner may try again"


@pytest.mark.every_case
@pytest.mark.parametrize("end", ["used", "expired", "replaced"])
def test_a_code_is_wiped_everywhere_when_it_has_had_its_time(
    serve: Serve, outside: Outside, shut: Clerk, end: str
) -> None:
    app = serve(shut.port)
    visitor = Visitor(app)
    visitor.register()
    app.deliver()
    text = outbox(app)[0]["message"]
    ((sealed,),) = inside.sql(app, "SELECT code FROM registration")
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
        assert shut.emails == []
        assert outbox(app)[0]["message"] == ""
    app.close()
    content = Path(inside.database_path(app)).read_bytes()
    head, _, lines = text.partition("\r\n\r\n")
    subject = [line for line in head.splitlines() if line.startswith("Subject")]
    secrets = [sealed, *subject, lines.split()[0], read(text)["Message-ID"]]
    assert not [word for word in secrets if word.encode() in content]


SECURE = ["CONNECT", "EHLO", "STARTTLS", "HANDSHAKE", "AUTH", "MAIL", "RCPT", "DATA", "DOT"]
ABRUPT = ["", "421 busy", "451 later", "abc", "299 odd", "354 go on", "reset", "binary"]
SLOW = ["silence", "late"]
# Python closes a socket that was reset just before its handshake only when it forgets it.
forgotten = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def assert_ends(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(5)
    assert not thread.is_alive(), "it goes on for ever"


@pytest.mark.slow
def test_a_server_that_is_silent_is_left(
    serve: Serve, clerk: Clerk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endless = [*product((*STEPS, "QUIT"), ["silence"], ["none"])]
    for step, how, security in [("CONNECT", "silence", "tls"), *endless]:
        # An email must have been taken before QUIT, on a busy machine too.
        inside.set_mail_patience(monkeypatch, 1 if step == "QUIT" else 0.1)
        clerk.script = {step: how}
        path = str(tmp_path / f"{step} {how} {security}.db")
        app = serve(clerk.port, mail_security=security, database_path=path)
        Visitor(app).register()
        assert_ends(app.deliver)
        tries = [row["tries"] for row in outbox(app)]
        assert tries == ([] if step == "QUIT" else [1]), (step, how)


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
def test_no_row_of_troubles_loses_an_email_or_doubles_one_that_was_taken(
    serve: Serve,
    outside: Outside,
    strict: Clerk,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    campaign: Campaign,
) -> None:
    first = [(step, trouble) for trouble in (*ABRUPT, *SLOW) for step in SECURE[2:5]]
    for chance in campaign.rounds(5):
        strict.script, strict.emails = {}, []
        path = str(tmp_path / f"{campaign.last}.db")
        app = serve(strict.port, mail_security="starttls", database_path=path, **LOGIN)
        Visitor(app).register()
        dies_at, dots = outside.time + 600, 0  # after a dot that was not answered it is unsure
        for _ in range(chance.choice([1, 2, 4])):
            step, trouble = chance.choice(SECURE), chance.choice([*ABRUPT, *SLOW])
            if campaign.last < len(first):  # on the way to a secret
                step, trouble = first[campaign.last]
            inside.set_mail_patience(monkeypatch, 0.3 if trouble in SLOW else 30)
            strict.script = {step: trouble, **({"HELO": trouble} if step == "EHLO" else {})}
            assert_ends(app.deliver)
            campaign.figures["tries"] += 1
            if not (waiting := outbox(app)) or waiting[0]["due_at"] is None:
                break
            dots += step == "DOT"
            assert len(strict.emails) <= dots, "it is told what was taken"
            outside.time = waiting[0]["due_at"] + chance.choice([0, 0, 0, 700])
        inside.set_mail_patience(monkeypatch, 30)
        strict.script, in_time = {}, bool(outbox(app)) and outside.time < dies_at
        before = len(strict.emails)
        for _ in range(3):
            app.deliver()
            outside.time += HOUR
        after = len(strict.emails)
        assert before + in_time <= after <= max(before, dots) + in_time, "once, and in its time"
        campaign.figures["doubles"] += max(0, after - 1)
        assert len({read(email)["Message-ID"] for email in strict.emails}) <= 1
        assert not [row for row in outbox(app) if row["message"]]
        app.close()


def test_no_request_waits_for_the_mail_server_or_tells_of_its_failures(
    serve: Serve, clerk: Clerk
) -> None:
    clerk.script = {"RCPT": "550 no"}
    app = serve(clerk.port)
    replies = []
    for name in ("a", "b"):
        calls = clerk.calls
        body = {"email": f"{name}@example.com", "nickname": "A", "password": "p"}
        reply = Visitor(app).post_json("/auth/register", body | {"captcha_token": "x"})
        replies.append((reply.status, sorted(reply.headers.items()), set(reply.json)))
        assert clerk.calls == calls
        app.deliver()
    assert replies[0] == replies[1]


# What emails are made of

INJECTED = [  # two for each of the first rounds
    *["=?utf-8?q?a=0aBcc:_eve@evil.example?=", "=?utf-8?q?a?= =?utf-8?q?=0d=0aX:_y?="],
    "=\u00ad\u00ad?=\u00ad?utf-8?q?a=0d=0aX:_y?\u00ad=?\u00ad=",
    "=\u200b?utf-8?b?YQpCY2M6IGV2ZUBldmlsLmV4YW1wbGU=?\ue000=",
    *["a\r\nBcc: eve@evil.example\n\nbody", "a\u2028Bcc: x\u2029\x85\x0b\x0c\x1c\udcff"],
    *['Ann, Bob" <eve@evil.example>, "x', "{code} %s {0} {until.__class__}", '\u202e\u202ea"'],
    *["博客" * 60, "a" * 300, "a\nApprove: https://evil.example/\n\nSpam: x", "a\u2028Spam: x"],
]
SCRAPS = [
    *["\r", "\n", "\r\n", "\n\n", "\r\n ", "\n\t", "\x00", "\x0b", "\x0c", "\x1c", "\x1e", "\x7f"],
    *"\x85\xa0\u2028\u2029\u00ad\u200b\u200e\u202e\u2066\ufeff\ud83d\U000e0041\ue000\uffff",
    *["=?", "?=", "=?utf-8?", "q?", "b?", "=0a", "=0D=0A", "_", "?", "=", " ", "  ", "\t"],
    *["Bcc:", "To: ", "Subject: x", "Content-Type: text/html", "--", ".", "\r\n.\r\n", "> ", ">"],
    *["<", ">", "@", ",", ";", ":", '"', "\\", "(", ")", "eve@evil.example", "<eve@evil.example>"],
    *["{", "}", "{{", "{site}", "{0.__class__}", "%", "%s", "%(a)s", "$1", "Ann", "名", "é"],
    *["e\u0301", "👩‍💻", "مرحبا", "\U0010ffff", "x" * 80, "-" * 40],
    *["Approve: https://evil.example/", "Spam:    x", "“Bob” replied"],
]


def scrawl(chance: random.Random) -> str:
    """A text that would be more than a text."""
    pieces = chance.choices([*SCRAPS, *SCRAPS, *INJECTED], k=chance.choice([1, 1, 2, 3, 5, 8]))
    pieces += [chr(chance.choice([chance.randrange(0x3000), chance.randrange(0x110000)]))]
    return "".join(chance.sample(pieces, len(pieces))) * chance.choice([1] * 20 + [40])


def line_of(text: str) -> str:
    """The same, as a field takes it that takes no controls."""
    text = text.encode("utf-8", "replace").decode()
    kinds = ((sign, unicodedata.category(sign)) for sign in text)
    line = "".join(" " if kind in ("Cc", "Zl", "Zp") else sign for sign, kind in kinds)
    return " ".join(line.split()) or "x"


def address_of(chance: random.Random) -> str:
    """A strange one that is allowed."""
    signs = "ab09!#$%&'*+/=?^_`{|}~-"
    words = ["".join(chance.choices(signs, k=chance.choice([1, 2, 9, 30]))) for _ in range(2)]
    host = ".".join("a" * chance.choice([1, 9, 60]) for _ in range(chance.choice([1, 2, 3])))
    with contextlib.suppress(ValueError):
        return proper_email(f"{chance.choice(['.', '']).join(words)}@{host}.example")
    return f"{chance.randrange(999)}@example.com"


KINDS = [sorted(names) for names in (HEADERS, NEWS_HEADERS, [*NEWS_HEADERS, *UNSUBSCRIBE])]


def whole_email(raw: str, sender: str, to: str) -> str:
    """Its text, without what is quoted and links; it has our headers alone, one recipient, and a
    plain text."""
    assert raw.isascii()
    assert max(map(len, raw.split("\r\n"))) <= 998
    assert not re.search("[\r\n\0]", raw.replace("\r\n", ""))
    assert smtplib.quoteaddr(to) == f"<{to}>"
    old = email.message_from_string(raw)  # as many programs still read it
    message = read(raw)
    assert [*old.keys()] == [*message.keys()]
    assert sorted(message.keys()) in KINDS
    assert [a.addr_spec for a in message["To"].addresses] == [to]
    assert [a.addr_spec for a in message["From"].addresses] == [sender]
    for name, value in old.items():
        told = str(make_header(decode_header(re.sub(r"\r\n(?=[ \t])", "", value))))
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", told), (name, told)
    assert message["Auto-Submitted"] == "auto-generated"
    assert (message.get_content_type(), message.is_multipart()) == ("text/plain", False)
    assert message.defects == []
    lines = message.get_content().replace("\r\n", "\n").splitlines()
    links = r"https?://comments\.example/\S+|#comment-\d+"
    return "\n".join(re.sub(links, "", line) for line in lines if line[:2] != "> ")


@contextlib.contextmanager
def written(
    path: Path, empty_database: Path, outside: Outside, owner: str = "nobody", **settings: str
) -> Iterator[App]:
    """A service with settings as its owner writes them."""
    environ = {f"COMMENTD_{name.upper()}": value for name, value in settings.items()}
    environ |= {"COMMENTD_SERVER_PUBLIC_URL": "https://comments.example"}
    environ |= {"COMMENTD_SITE_ORIGINS": "https://blog.example"}
    environ |= {"COMMENTD_CAPTCHA_PROVIDER": "none", "COMMENTD_DATABASE_PATH": str(path)}
    config = load_config(None, environ | {"COMMENTD_NOTIFY_OWNER": owner})
    shutil.copy(empty_database, path)
    config = replace(config, limits_enabled=False)
    with closing(make_app(config, outside.world, rounds=1)) as app:
        yield app


def frames_around(
    app: App, outside: Outside, sender: str, page: str, to: dict[str, str], words: dict[str, str]
) -> tuple[str, list[str]]:
    """The name of a guest as it was taken, and what stands around their words in emails to all
    whom they concern."""
    outside.emails.clear()
    client = TestApp(app, {"REMOTE_ADDR": "203.0.113.7"})

    def post(path: str, account: str = "", **fields: str | int) -> Any:
        token = inside.token_of(app, to[account]) if account else ""
        client.authorization = ("Bearer", token) if token else None
        body = {"captcha_token": "x", "page_url": page, "lang": words["lang"], **fields}
        made = client.post_json(path, body, expect_errors=True)
        if made.status_int != 200:  # that is no name
            words["nickname"] = "Bob"
            made = client.post_json(path, {**body, "nickname": "Bob"})
        return made.json

    post("/page/follow", "follower")
    above = post("/comments", "author", content="mine")["comment"]["id"]
    asked = post("/comments", **words, email=to["guest"])["comment"]["id"]
    for parent in (above, asked):
        reply = post("/comments", **words, parent_id=parent)["comment"]
    post("/auth/register", email=to["newcomer"], nickname=words["nickname"], password="x")
    post("/auth/register", email=to["author"], nickname=words["nickname"], password="x")
    for _ in range(2):
        app.deliver()
        outside.time += HOUR
        post(f"/comments/{reply['id']}/report", reason=words["content"].replace("\n", " ")[:500])
    assert {each.recipient for each in outside.emails} == {*to.values()}
    # What people write is fenced at each line.
    quote = "\n".join(f"> {line}" for line in reply["content"].splitlines())
    texts = [read(each.message).get_content().replace("\r\n", "\n") for each in outside.emails]
    assert sum(quote in text for text in texts) >= 3
    lines = [whole_email(each.message, sender, each.recipient) for each in outside.emails]
    return reply["nickname"], lines


PEOPLE = ("owner", "author", "follower", "guest", "newcomer")


def test_no_words_make_another_email(
    tmp_path: Path, empty_database: Path, outside: Outside, campaign: Campaign
) -> None:
    # Whoever chose them: a reader, or the owner in the settings.
    for chance in campaign.rounds(len(INJECTED) // 2):
        known = INJECTED[2 * campaign.last :][:2] * 3
        site, *texts = known if len(known) == 6 else [scrawl(chance) for _ in range(6)]
        sender_name, *lines = texts[:1] + [line_of(text) for text in texts[1:]]
        text = texts[-1].encode("utf-8", "replace").decode()
        settings = {"site_name": re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", site)}
        sender, host = "commentd@localhost", chance.choice(["blog.example", "localhost"])
        with contextlib.suppress(ValueError):
            named = settings | {"mail_sender": f"{sender_name} <comments@{host}>"}
            load_config(None, {f"COMMENTD_{key.upper()}": text for key, text in named.items()})
            settings, sender = named, f"comments@{host}"
        words = {
            "nickname": lines[0][:64],
            "content": re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", " ", f"x {lines[1]}\n{text}")[
                :1900
            ],
            "website": chance.choice(["", "https://evil.example/"]),
            "lang": chance.choice(["en", "zh", "de", "ar", "ja"]),
        }
        page = (chance.choice(["/", "", "https://evil.example/"]) + lines[3])[:2048]
        to = {name: f"{number}{address_of(chance)}" for number, name in enumerate(PEOPLE)}
        path = tmp_path / f"{campaign.last}.db"
        with written(path, empty_database, outside, to["owner"], **settings) as app:
            for number, name in enumerate(("author", "follower")):
                inside.add_account(app, to[name], f"Account {number}", "x")
            nickname, found = frames_around(app, outside, sender, page, to, words)
            words |= {"nickname": "Nell", "content": "x", "website": ""}
            to |= {"guest": f"z{to['guest']}", "newcomer": f"z{to['newcomer']}"}
            _, plain = frames_around(app, outside, sender, page, to, words)
        plain = [each.replace("Nell", nickname) for each in plain]
        found, plain = (sorted(re.sub(r"\d+", "0", each) for each in of) for of in (found, plain))
        assert found == plain
        campaign.figures["emails"] += len(outside.emails) * 2
        path.unlink()


def test_an_email_with_a_code_says_what_it_is_for_and_nothing_that_a_stranger_typed(
    serve: Serve, clerk: Clerk
) -> None:
    app = serve(clerk.port, site_name="Ann's blog")
    fields = {"nickname": "Win at evil.example", "password": "and again", "website": "evil.example"}
    Visitor(app).register("bob@example.com", **fields, **{"Accept-Language": "evil"})
    Visitor(app, "192.0.2.1").register("carol@example.com", nickname="C")
    app.deliver()
    texts = [read(email).get_content() for email in clerk.emails]
    codes = [code_in(email) for email in clerk.emails]
    assert texts[0].replace(codes[0], "") == texts[1].replace(codes[1], "")
    assert "evil" not in clerk.emails[0].decode() + texts[0]
    assert "Ann's blog" in texts[0]
    assert "10 分钟内有效（北京时间 19:16 之前）" in texts[0]
    assert read(clerk.emails[0])["Date"].datetime.timestamp() == START
    assert len({read(email)["Message-ID"] for email in clerk.emails}) == 2


def test_emails_come_from_the_sender_that_is_set_and_a_long_name_stays_one(
    tmp_path: Path, empty_database: Path, outside: Outside
) -> None:
    long_name = 'Emails from the hills, about gardens and what is left: " of the summer (walks)'
    blog = "comments@blog.example"
    cases: list[tuple[dict[str, str], str, str]] = [
        ({"mail_sender": blog}, "blog.example", blog),
        ({"mail_sender": f'"评论, 博客" <{blog}>'}, "评论, 博客", blog),
        ({"site_name": long_name}, long_name, "commentd@localhost"),
    ]
    for number, (settings, name, sender) in enumerate(cases):
        with written(tmp_path / str(number), empty_database, outside, **settings) as app:
            Visitor(app).register()
            app.deliver()
        message = read(outside.emails[-1].message)
        (address,) = message["From"].addresses
        assert (address.display_name, address.addr_spec) == (name, sender)
        assert message["Message-ID"].endswith(sender.partition("@")[2] + ">")
    for wrong in ("a@例子.example", "a"):
        with pytest.raises(ValueError, match="must be an email address"):
            load_config(None, {"COMMENTD_MAIL_SENDER": wrong})


def test_without_a_mail_server_emails_are_printed(
    serve: Serve, capsys: pytest.CaptureFixture[str]
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
