import contextlib
import email
import email.policy
import re
import shutil
import socket
import socketserver
import sqlite3
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from conftest import START, Outside, Visitor, assert_whole
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

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
    with closing(sqlite3.connect(app.house.store.path)) as db:
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

    def handle(self) -> None:
        self.server.calls += 1
        if not self.answer("CONNECT", "220 mail.example"):
            return
        while line := self.rfile.readline().decode("latin-1").strip():
            self.server.said.append(line)
            verb = line.split()[0].upper()
            usual = {"DATA": "354 go on", "QUIT": "221 bye"}.get(verb, "250 ok")
            said = self.answer(verb, usual, line)
            if not said or verb == "QUIT" or (said.startswith("354") and not self.take_letter()):
                return

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
        while reply.endswith("..."):  # without end
            self.wfile.write(f"{reply[:3]}-x\r\n".encode())
            if self.server.closing.wait(0.01):
                return ""
        self.wfile.write(f"{reply}\r\n".encode() if reply else b"")
        return "" if reply.startswith("421") else reply  # RFC 5321, 3.8: 421 hangs up


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
        self.letters: list[bytes] = []

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
        outside.time += HOUR
    assert len(clerk.letters) == 1


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

        def finish(self) -> None:
            self.connection.close()

    clerk.RequestHandlerClass = Slow
    clerk.script = {"EHLO": "250-mail.example\r\n250 STARTTLS", "STARTTLS": "220 go"}
    app = serve(clerk.port, mail_security="starttls")
    Visitor(app).register()
    assert_ends(app.deliver)
    assert [row["tries"] for row in outbox(app)] == [1]


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


@hypothesis_settings(deadline=None, max_examples=150)
@given(st.text(max_size=60) | st.text("\r\n\t =?utf-8QB:a_", max_size=60), st.booleans())
@example("=?utf-8?q?a=0aBcc:_eve@evil.example?=", True)
@example("=?utf-8?q?a?= =?utf-8?q?=0d=0aX:_y?=", True)
@example("a\r\nBcc: eve@evil.example", True)
@example("a\n\nbody", True)
@example("Ann, Bob", True)
@example('a"', True)
@example("a\u2028b\x85c", True)
@example("{code} %s {0} {until.__class__}", True)
@example('Ann" <eve@evil.example>, "x', True)
@example("博客" * 60, True)
@example("\udcff", True)
def test_no_name_makes_another_letter(name: str, known: bool) -> None:
    assert_letters_are_whole({"COMMENTD_SITE_NAME": name}, "commentd@localhost", known)
    environ = {"COMMENTD_MAIL_SENDER": f"{name} <comments@blog.example>"}
    with contextlib.suppress(commentd.SettingsFault):
        assert_letters_are_whole(environ, "comments@blog.example", known)


def assert_letters_are_whole(environ: dict[str, str], sender: str, known: bool) -> None:
    config, world = commentd.load_config(None, environ), World(now=lambda: START)
    for letter in (
        commentd.code_letter(config, world, ANN, "123456", known),
        commentd.changed_letter(config, world, ANN),
    ):
        text = letter["message"]
        assert text.isascii()
        assert max(map(len, text.split("\r\n"))) <= 998
        assert "\n" not in text.replace("\r\n", "")
        message = read(text)
        assert message.keys() == HEADERS
        assert [a.addr_spec for a in message["To"].addresses] == [ANN]
        assert [a.addr_spec for a in message["From"].addresses] == [sender]
        assert message["Auto-Submitted"] == "auto-generated"
        assert not message.is_multipart()


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
