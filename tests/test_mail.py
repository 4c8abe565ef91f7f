"""The way of an email: from the outbox to a mail server, by a real connection to one that keeps to
the rules or does not, and what no word of anybody makes of it."""

import contextlib
import email
import email.policy
import re
import shutil
import smtplib
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from email.header import decode_header, make_header
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from webtest import TestApp

from commentd import App, Config, World, load_config, make_app
from support import inside
from support.client import Visitor
from support.database import assert_whole
from support.mail import (
    HEADERS,
    NEWS_HEADERS,
    UNSUBSCRIBE,
    MailServer,
    Script,
    ScriptedMailServer,
    code_in,
    code_of,
    outbox,
    tls,
)
from support.mail import certificates as certificates  # a fixture
from support.mail import start_mail_server as start_mail_server  # a fixture
from support.patience import PATIENCE
from support.world import START, FakeWorld, html_of, read, text_of

ANN = "ann@example.com"
MINUTE, HOUR, DAY = 60, 3600, 86400
StartService = Callable[..., App]


@pytest.fixture
def start_service(
    config: Config, fake_world: FakeWorld, empty_database: Path
) -> Iterator[StartService]:
    """Starts the service with a mail server; the clock is the test's."""
    started: list[App] = []

    def start(port: int, **settings: Any) -> App:
        usual = replace(
            config,
            mail_host="127.0.0.1",
            mail_port=port,
            mail_security="none",
            mail_sender="Blog <comments@blog.example>",
            notify_owner=(ANN,),
        )
        changed = replace(usual, **settings)
        if not Path(changed.database_path).exists():
            shutil.copy(empty_database, changed.database_path)
        started.append(make_app(changed, World(clock=lambda: fake_world.time), rounds=1))
        return started[-1]

    yield start
    for app in started:
        app.close()
        assert_whole(inside.database_path(app))


# A mail server that keeps to the rules


LOGIN = {"mail_user": "blog", "mail_password": "geheim"}


@pytest.mark.slow
def test_a_code_arrives_at_a_mail_server_and_verifies(
    start_service: StartService,
    start_mail_server: Callable[..., MailServer],
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
        mail_server = start_mail_server(**ways[security])
        path = str(tmp_path / f"{mail_server.port}.db")
        app = start_service(mail_server.port, mail_security=security, database_path=path, **login)
        visitor = Visitor(app)
        visitor.register(" Ann@Example.COM ")
        app.deliver()
        (envelope,) = mail_server.emails
        assert (envelope.mail_from, envelope.rcpt_tos) == ("comments@blog.example", [ANN])
        message = read(envelope.content)
        assert message.keys()[: len(HEADERS)] == HEADERS
        assert (message["To"], message["From"]) == (ANN, "Blog <comments@blog.example>")
        assert message["Auto-Submitted"] == "auto-generated"
        assert message.get_content_type() == "multipart/alternative"
        assert message["Subject"].startswith(code_in(envelope.content) + " ")
        assert mail_server.secure == [security == "starttls"]
        assert mail_server.logins == ([(b"blog", b"geheim")] if login else [])
        assert mail_server.goodbyes == 1  # RFC 5321, section 4.1.1.10
        assert outbox(app) == []
        assert visitor.verify(code_in(envelope.content)) == "验证成功"
        form = {"email": "bob@example.com", "nickname": "Bob"}
        form["request_id"] = visitor.ask_for_code(form["email"])
        app.deliver()
        form["code"] = code_in(mail_server.emails[-1].content)
        assert visitor.post_json("/auth/login", form).json["nickname"] == "Bob"


@pytest.mark.slow
def test_a_mail_server_with_a_wrong_certificate_is_sent_nothing(
    start_service: StartService,
    start_mail_server: Callable[..., MailServer],
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
        mail_server = start_mail_server(**how)
        path = str(tmp_path / f"{mail_server.port}.db")
        app = start_service(mail_server.port, mail_security=security, database_path=path, **LOGIN)
        Visitor(app).register()
        app.deliver()
        assert (mail_server.emails, mail_server.logins) == ([], []), (name, security)
        (waiting,) = outbox(app)
        assert waiting["tries"] == 1
        assert waiting["due_at"] > START


# A mail server that does what it is told, or worse


@pytest.fixture
def closed_server() -> Iterator[ScriptedMailServer]:
    """A server that does not listen yet."""
    scripted_server = ScriptedMailServer()
    yield scripted_server
    scripted_server.close()


@pytest.fixture
def scripted_server(closed_server: ScriptedMailServer) -> ScriptedMailServer:
    closed_server.open()
    return closed_server


@pytest.mark.parametrize("security", ["starttls", "tls"])
def test_mail_passwords_and_emails_are_sent_encrypted_only(
    start_service: StartService,
    scripted_server: ScriptedMailServer,
    fake_world: FakeWorld,
    security: str,
) -> None:
    app = start_service(scripted_server.port, mail_security=security, **LOGIN)
    Visitor(app).register()
    for tries, offer in enumerate(["250 ok", "250 AUTH PLAIN LOGIN", "250 STARTTLS"], 1):
        scripted_server.script = {"EHLO": f"250-mail.example\r\n{offer}", "STARTTLS": "454 not now"}
        app.deliver()
        (waiting,) = outbox(app)
        assert (scripted_server.emails, waiting["tries"]) == ([], tries), offer
        fake_world.time = waiting["due_at"]
    if security == "starttls":
        assert {line.split()[0].upper() for line in scripted_server.said} <= {
            "EHLO",
            "STARTTLS",
            "QUIT",
        }
    else:
        assert not [line for line in scripted_server.said if line.isascii() and line.isprintable()]


STEPS = ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "DOT"]


def reply_at(step: str, reply: str) -> dict[str, Any]:
    if step == "CONNECT" and reply:  # RFC 5321, 3.1: then it waits for QUIT
        return {step: reply, "EHLO": "503 bad sequence", "HELO": "503 bad sequence"}
    return {step: reply, **({"HELO": reply} if step == "EHLO" else {})}


@pytest.mark.slow
def test_an_email_is_sent_again_after_a_fault(
    start_service: StartService, fake_world: FakeWorld, scripted_server: ScriptedMailServer
) -> None:
    for number, (step, reply) in enumerate(product(STEPS, ("", "421 busy", "451 later"))):
        app = start_service(scripted_server.port, limits_enabled=False)
        scripted_server.script, scripted_server.emails, begun = (
            reply_at(step, reply),
            [],
            fake_world.time,
        )
        Visitor(app).register(f"ann{number}@example.com")
        app.deliver()
        (waiting,) = outbox(app)
        assert waiting["tries"] == 1
        assert begun < waiting["due_at"] <= begun + MINUTE
        scripted_server.script, lost, calls = {}, len(scripted_server.emails), scripted_server.calls
        app.deliver()
        assert scripted_server.calls == calls, "not before its time"
        fake_world.time = waiting["due_at"]
        app.close()
        app = start_service(scripted_server.port, limits_enabled=False)  # a restart loses nothing
        for _ in range(2):
            app.deliver()
        assert len(scripted_server.emails) == lost + 1
        assert lost == (step == "DOT"), "at most one is a double"
        ids = {read(email)["Message-ID"] for email in scripted_server.emails}
        assert len(ids) == 1
        assert outbox(app) == []
        assert Visitor(app).verify(code_in(scripted_server.emails[-1]), f"ann{number}@example.com")
        app.close()


def test_a_silent_mail_server_is_sent_nothing(
    start_service: StartService, fake_world: FakeWorld, scripted_server: ScriptedMailServer
) -> None:
    app = start_service(scripted_server.port)
    Visitor(app).register()
    for tries, greeting in enumerate(("250 ok", "354 go on", "421 busy", "554 no"), 1):
        scripted_server.script = {"CONNECT": greeting}  # whatever it would say to the rest
        app.deliver()
        assert (scripted_server.emails, scripted_server.said) == ([], []), greeting
        (waiting,) = outbox(app)
        assert waiting["tries"] == tries
        fake_world.time = waiting["due_at"]


def test_an_email_that_is_refused_for_good_is_given_up_without_its_text(
    start_service: StartService,
    fake_world: FakeWorld,
    scripted_server: ScriptedMailServer,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for step in ("RCPT", "DATA", "DOT"):
        scripted_server.script = reply_at(step, f"550 {ANN} is unknown here")
        app = start_service(scripted_server.port, database_path=str(tmp_path / f"{step}.db"))
        Visitor(app).register()
        text = outbox(app)[0]["text"]
        app.deliver()
        (kept,) = outbox(app)
        assert (kept["subject"], kept["text"], kept["due_at"]) == ("", "", None), step
        assert kept["failure"]
        logged = kept["failure"] + caplog.text
        assert kept["failure"] == "550 … is unknown here"
        assert not [word for word in (ANN, code_of(text)) if word in logged]
        calls = scripted_server.calls
        fake_world.time += HOUR
        app.deliver()
        assert scripted_server.calls == calls
        fake_world.time += 31 * DAY
        app.tick()
        assert outbox(app) == []


OFFERS_LOGIN: Script = {"EHLO": "250-mail.example\r\n250 AUTH PLAIN", "AUTH": "235 ok"}
QQ = "Login Fail. Please enter your authorization code to login."
IN_GBK = "535 请使用授权码登录。".encode("gbk").decode(errors="surrogateescape")
FAULTS_OF_SETTINGS: list[tuple[Script, str]] = [
    ({"CONNECT": "554 5.7.1 no"}, "554 5.7.1 no"),
    ({"EHLO": "550 no", "HELO": "550 Invalid name"}, "550 Invalid name"),
    (
        {"EHLO": "250 mail.example"},
        "SMTPNotSupportedError SMTP AUTH extension not supported by server. "
        "See [mail] security and user.",
    ),
    (
        {"EHLO": "250-mail.example\r\n250 AUTH XOAUTH2"},
        "SMTPException No suitable authentication method found.",
    ),
    ({"AUTH": f"535 {QQ}"}, f"535 {QQ}"),
    ({"AUTH": IN_GBK}, "535 请使用授权码登录。"),
    # It repeats what was sent: user and password, and the password alone.
    ({"AUTH": "535-bad\r\n535 AGJsb2cAZ2VoZWlt geheim Z2VoZWlt!"}, "535 bad … … …!"),
    (
        {"MAIL": "501 Mail from must equal <blog@163.com>\x1b[2J"},
        "501 Mail from must equal …\\x1b[2J",
    ),
    ({"MAIL": "553 " + "authorized user " * 40}, "553 " + ("authorized user " * 40)[:300] + " …"),
    ({"RCPT": f"554 5.7.1 <{ANN}>: Relay access denied"}, "554 5.7.1 … Relay access denied"),
    ({"RCPT": "550 relay not permitted for ann"}, "550 relay not permitted for …"),
    ({"RCPT": "550 relay not permitted for ANN at work"}, "550 relay not permitted for … at work"),
    ({"RCPT": "530 Authentication required"}, "530 Authentication required"),
    ({"DOT": "550-5.7.26 DMARC\r\n550 5.7.26 fails"}, "550 5.7.26 DMARC 5.7.26 fails"),
]


def test_an_email_waits_until_the_settings_are_right_and_says_what_the_server_said(
    start_service: StartService,
    fake_world: FakeWorld,
    scripted_server: ScriptedMailServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = start_service(scripted_server.port, **LOGIN)
    Visitor(app).register()
    inside.add_account(app, "owner@example.com", "Owner", "x", "admin")
    for script, failure in FAULTS_OF_SETTINGS:
        scripted_server.script = OFFERS_LOGIN | script
        ((expires_at,),) = inside.sql(app, "SELECT expires_at FROM outbox")
        inside.sql(app, "UPDATE outbox SET expires_at = ?", expires_at + DAY)  # longer than a code
        app.deliver()
        (waiting,) = outbox(app)
        assert waiting["failure"] == failure, script
        said, _, hint = caplog.messages[-1].partition(" (hint: ")
        assert said == f"email {waiting['id']}: {failure}"
        owner = Visitor(app)
        owner.authorization = ("Bearer", inside.token_of(app, "owner@example.com", "admin"))
        (shown,) = owner.get("/admin/outbox").json["emails"]
        assert shown["failure"] == failure
        assert shown["hint"] == hint.removesuffix(")")
        assert waiting["due_at"] is not None, script
        fake_world.time = waiting["due_at"]
    scripted_server.script = OFFERS_LOGIN
    scripted_server.emails.clear()
    app.deliver()
    assert scripted_server.recipients() == [ANN]


# What mail servers really say, by what is wrong, and what the owner is advised to do.
HINTS: list[tuple[Script, str]] = [
    (  # github.com/louislam/uptime-kuma/issues/3434
        {"AUTH": "535 Login Fail. Please enter your authorization code to login. More information "
                 "in http://service.mail.qq.com/cgi-bin/help?subtype=1&&id=28&&no=1001256"},
        "the authorization code (授权码)",
    ),
    ({"AUTH": "535 Error: authentication failed"}, "a code there that they make for programs"),
    ({"AUTH": "550 User has no permission"}, "switch on SMTP in the settings of the mailbox"),
    (  # support.google.com/a/answer/3726730
        {"AUTH": "534-5.7.9 Application-specific password required. For more information, go to\r\n"
                 "534 5.7.9 https://support.google.com/mail/?p=InvalidSecondFactor - gsmtp"},
        "https://myaccount.google.com/apppasswords",
    ),
    (
        {"AUTH": "535-5.7.8 Username and Password not accepted. For more information, go to\r\n"
                 "535 5.7.8  https://support.google.com/mail/?p=BadCredentials - gsmtp"},
        "https://myaccount.google.com/apppasswords",
    ),
    ({"AUTH": "535 5.7.8 Error: authentication failed"}, "a code there that they make"),
    (  # github.com/nodemailer/nodemailer/issues/1714
        {"AUTH": "535 5.7.139 Authentication unsuccessful, basic authentication is disabled. "
                 "[PN0PR01CA0024.INDPRD01.PROD.OUTLOOK.COM]"},
        "Outlook takes no password from programs",
    ),
    (  # 163 and 126
        {"MAIL": "553 Mail from must equal authorized user"},
        "write its own email address into [mail] sender",
    ),
    (  # github.com/DesertsP/Valine-Admin/issues/57: QQ
        {"MAIL": "501 mail from address must be same as authorization user."},
        "write its own email address into [mail] sender",
    ),
    (
        {"DOT": "554 DT:SPM 163 smtp7,C8CowAD3 https://mail.163.com/help/help_spam_16.htm?ip=1"},
        "163 takes the email for spam",
    ),
    (  # repost.aws/knowledge-center/ses-554-400-message-rejected-error
        {"DOT": "554 Message rejected: Email address is not verified. The following identities "
                "failed the check in region EU-WEST-1: comments@blog.example"},
        "have it verify the domain",
    ),
    (
        {"MAIL": "550 5.7.1 The from address does not match a verified Sender Identity"},
        "have it verify the domain",
    ),
    (
        {"RCPT": "550-5.7.26 This email has been blocked because the sender is unauthenticated.\r\n"
                 "550 5.7.26 DKIM = did not pass"},
        "set the SPF and DKIM records",
    ),
    ({"CONNECT": "421 4.7.0 Try again later, closing connection."}, "they are tried again"),
    ({"MAIL": "450 4.7.1 too many emails"}, "they are tried again"),
    (  # support.google.com/a/answer/3726730
        {"RCPT": "550 5.4.5 Daily user sending limit exceeded"}, "they are tried again"
    ),
    ({"DOT": "550 Connection frequency limited"}, "they are tried again"),
    ({"RCPT": "554 5.7.1 Relay access denied"}, "set [mail] user and password"),
    ({"EHLO": "250 mail.example"}, "a code there that they make for programs"),
]  # fmt: skip


def test_an_email_that_the_owner_can_help_waits_with_a_hint_in_plain_words(
    start_service: StartService,
    scripted_server: ScriptedMailServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = start_service(scripted_server.port, **LOGIN, limits_enabled=False)
    inside.add_account(app, "owner@example.com", "Owner", "x", "admin")
    owner = Visitor(app)
    owner.authorization = ("Bearer", inside.token_of(app, "owner@example.com", "admin"))
    for number, (script, advice) in enumerate(HINTS):
        Visitor(app).register(f"ann{number}@example.com")
        scripted_server.script = OFFERS_LOGIN | script
        app.deliver()
        (waiting,) = outbox(app)
        assert waiting["due_at"] is not None, script
        assert advice in caplog.messages[-1], script
        (shown,) = owner.get("/admin/outbox").json["emails"]
        assert advice in shown["hint"], script
        (shown,) = owner.get("/admin/outbox?lang=zh").json["emails"]
        assert not shown["hint"].isascii(), script
        inside.sql(app, "DELETE FROM outbox")


def test_a_mailbox_that_is_full_or_gone_is_told_from_a_limit_of_the_provider(
    start_service: StartService,
    scripted_server: ScriptedMailServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = start_service(scripted_server.port)
    for said, advice in (
        ("552 5.2.2 The mailbox is over quota", "the mailbox is full"),
        ("550 5.1.1 no such user here", "there is no such mailbox"),
    ):
        scripted_server.script = {"RCPT": said}
        Visitor(app).register(f"{said[:3]}@example.com")
        app.deliver()
        assert caplog.messages[-1].endswith(f"; given up (hint: {advice})")


def test_a_refusal_that_nobody_has_advice_for_has_no_hint(
    start_service: StartService,
    scripted_server: ScriptedMailServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scripted_server.script = {"RCPT": "553 5.1.3 odd name"}
    app = start_service(scripted_server.port)
    Visitor(app).register()
    app.deliver()
    assert caplog.messages[-1].endswith("553 5.1.3 odd name; given up")


def test_an_owner_whose_host_blocks_smtp_is_told_of_providers_by_https(
    start_service: StartService, closed_server: ScriptedMailServer, caplog: pytest.LogCaptureFixture
) -> None:
    app = start_service(closed_server.port)
    Visitor(app).register()
    app.deliver()
    assert "[mail] provider sends emails by HTTPS" in caplog.messages[-1]


def test_a_mail_login_beyond_ascii_is_sent_as_utf_8(
    start_service: StartService, start_mail_server: Callable[..., MailServer], tmp_path: Path
) -> None:
    for other, user in (("LOGIN", "блог"), ("PLAIN", "blog")):
        login = {"mail_user": user, "mail_password": "пароль-ü授权"}
        pair = (login["mail_user"].encode(), login["mail_password"].encode())
        mail_server = start_mail_server(auth_require_tls=False, auth_exclude_mechanism=[other])
        mail_server.password = pair[1]
        app = start_service(mail_server.port, database_path=str(tmp_path / f"{other}.db"), **login)
        Visitor(app).register()
        app.deliver()
        assert mail_server.logins == [pair]
        assert [envelope.rcpt_tos for envelope in mail_server.emails] == [[ANN]]
        mail_server.password = b"another"
        Visitor(app).register("bob@example.com")
        app.deliver()
        assert outbox(app)[0]["failure"].startswith("535 5.7.8 ")


def test_a_mail_login_beyond_ascii_needs_a_way_that_takes_utf_8(
    start_service: StartService, start_mail_server: Callable[..., MailServer]
) -> None:
    mail_server = start_mail_server(
        auth_require_tls=False, auth_exclude_mechanism=["LOGIN", "PLAIN"]
    )
    app = start_service(mail_server.port, mail_user="блог", mail_password="授权")
    Visitor(app).register()
    app.deliver()
    assert outbox(app)[0]["failure"] == (
        "SMTPNotSupportedError The server takes no login in UTF-8. See [mail] security and user."
    )
    assert (mail_server.logins, mail_server.emails) == ([], [])


@pytest.mark.slow
def test_a_code_is_the_next_email_whatever_waits(
    start_service: StartService, scripted_server: ScriptedMailServer
) -> None:
    owners = tuple(f"owner{number}@example.com" for number in range(25))
    app = start_service(scripted_server.port, notify_owner=owners)
    Visitor(app).say()

    def register(line: str) -> str:
        if len(scripted_server.emails) in (2, 9):
            Visitor(app).register(f"ann{len(scripted_server.emails)}@example.com")
        return "250 kept"

    scripted_server.script = {"DOT": register}
    app.deliver()
    found = scripted_server.recipients()
    assert (found[2], found[9]) == ("ann2@example.com", "ann9@example.com")
    assert sorted(found) == sorted([*owners, found[2], found[9]])


@pytest.mark.parametrize("hours", [20, 24])
def test_an_email_outlives_hours_without_a_server_and_is_given_up_after_a_day(
    start_service: StartService,
    fake_world: FakeWorld,
    closed_server: ScriptedMailServer,
    hours: int,
) -> None:
    app = start_service(closed_server.port)
    Visitor(app).say()
    waits = []
    while fake_world.time < START + hours * HOUR:
        app.deliver()
        (waiting,) = outbox(app)
        waits.append(waiting["due_at"] - fake_world.time)
        fake_world.time = waiting["due_at"]
    if hours < 24:
        assert waits == sorted(waits), "it backs off"
        assert waits[0] < MINUTE
        assert waits[-1] <= HOUR
        assert len(waits) < 40
        closed_server.open()
    app.deliver()
    assert closed_server.recipients() == [ANN] * (hours < 24)
    kept = [(row["due_at"], row["failure"], row["text"] != "") for row in outbox(app)]
    failure = "ConnectionRefusedError Connection refused"
    assert kept == ([(None, failure, True)] if hours == 24 else []), "the owner may try again"


@pytest.mark.parametrize("ended_by", ["used", "expired", "replaced"])
def test_a_code_is_wiped_everywhere_once_used_expired_or_replaced(
    start_service: StartService,
    fake_world: FakeWorld,
    closed_server: ScriptedMailServer,
    ended_by: str,
) -> None:
    app = start_service(closed_server.port)
    visitor = Visitor(app)
    visitor.register()
    app.deliver()
    email = outbox(app)[0]
    ((sealed,),) = inside.sql(app, "SELECT code FROM registration")
    if ended_by == "used":
        visitor.verify(code_of(email["text"]))
    elif ended_by == "replaced":
        fake_world.time += MINUTE + 1
        visitor.register()
    else:
        fake_world.time += 600
        app.deliver()
        app.tick()
        closed_server.open()
        fake_world.time += HOUR
        app.deliver()
        assert closed_server.emails == []
        assert outbox(app)[0]["text"] == ""
    app.close()
    content = Path(inside.database_path(app)).read_bytes()
    secrets = [sealed, email["subject"], code_of(email["text"])]
    assert not [word for word in secrets if word.encode() in content]


# Python closes a socket that was reset just before its handshake only when it forgets it.


def assert_ends(work: Callable[[], Any]) -> None:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it goes on for ever"


@pytest.mark.slow
def test_a_mail_server_that_falls_silent_is_left(
    start_service: StartService,
    scripted_server: ScriptedMailServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    endless = [*product((*STEPS, "QUIT"), ["silence"], ["none"])]
    # A server that hangs up at QUIT has taken the email. It gets the email once.
    for step, how, security in [("CONNECT", "silence", "tls"), ("QUIT", "", "none"), *endless]:
        # An email must have been taken before QUIT, on a busy machine too.
        inside.set_mail_patience(monkeypatch, 1 if step == "QUIT" else 0.1)
        scripted_server.script = {step: how}
        path = str(tmp_path / f"{step} {how} {security}.db")
        app = start_service(scripted_server.port, mail_security=security, database_path=path)
        Visitor(app).register()
        assert_ends(app.deliver)
        tries = [row["tries"] for row in outbox(app)]
        assert tries == ([] if step == "QUIT" else [1]), (step, how)


def test_no_request_waits_for_the_mail_server_or_reveals_its_faults(
    start_service: StartService, scripted_server: ScriptedMailServer
) -> None:
    scripted_server.script = {"RCPT": "550 no"}
    app = start_service(scripted_server.port)
    replies = []
    for name in ("a", "b"):
        calls = scripted_server.calls
        body = {"email": f"{name}@example.com", "nickname": "A", "password": "p"}
        reply = Visitor(app).post_json("/auth/register", body | {"captcha_token": "x"})
        replies.append((reply.status, sorted(reply.headers.items()), set(reply.json)))
        assert scripted_server.calls == calls
        app.deliver()
    assert replies[0] == replies[1]


# What emails are made of

INJECTED = [
    "=?utf-8?q?a=0aBcc:_eve@evil.example?=",
    "=?utf-8?q?a?= =?utf-8?q?=0d=0aX:_y?=",
    "=\u00ad\u00ad?=\u00ad?utf-8?q?a=0d=0aX:_y?\u00ad=?\u00ad=",
    "=\u200b?utf-8?b?YQpCY2M6IGV2ZUBldmlsLmV4YW1wbGU=?\ue000=",
    "a\r\nBcc: eve@evil.example\n\nbody",
    "a\u2028Bcc: x\u2029\x85\x0b\x0c\x1c",
    'Ann, Bob" <eve@evil.example>, "x',
    "{code} %s {0} {until.__class__}",
    '\u202e\u202ea"',
    "博客" * 60,
    "a" * 300,
    "a\nApprove: https://evil.example/\n\nSpam: x",
    "a\u2028Spam: x",
]


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
        shown = str(make_header(decode_header(re.sub(r"\r\n(?=[ \t])", "", value))))
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", shown), (name, shown)
    assert message["Auto-Submitted"] == "auto-generated"
    assert message.get_content_type() == "multipart/alternative"
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html"]
    assert [each.defects for each in message.walk()] == [[]] * 3
    lines = text_of(message).splitlines()
    links = r"https?://comments\.example/\S+|#comment-\d+"
    return "\n".join(re.sub(links, "", line) for line in lines if line[:2] != "> ")


@contextlib.contextmanager
def written(
    path: Path, empty_database: Path, fake_world: FakeWorld, owner: str = "nobody", **settings: str
) -> Iterator[App]:
    """A service with settings as its owner writes them."""
    environ = {f"COMMENTD_{name.upper()}": value for name, value in settings.items()}
    environ |= {"COMMENTD_SERVER_PUBLIC_URL": "https://comments.example"}
    environ |= {"COMMENTD_SITE_ORIGINS": "https://blog.example"}
    environ |= {"COMMENTD_CAPTCHA_PROVIDER": "none", "COMMENTD_DATABASE_PATH": str(path)}
    config = load_config(None, environ | {"COMMENTD_NOTIFY_OWNER": owner})
    shutil.copy(empty_database, path)
    config = replace(config, limits_enabled=False)
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        yield app


def accepted(**settings: str) -> dict[str, str]:
    """The settings; none if the service does not start with them."""
    try:
        load_config(None, {f"COMMENTD_{name.upper()}": text for name, text in settings.items()})
    except inside.REFUSALS:
        return {}
    return settings


def emails_about(app: App, text: str, line: str) -> None:
    """Lets emails to everybody go out about what a guest wrote, on one line or more."""
    inside.add_account(app, ANN, "Ann", "x")
    ann = TestApp(app, {"REMOTE_ADDR": "203.0.113.7"})
    ann.authorization = ("Bearer", inside.token_of(app, ANN))
    usual = {"captcha_token": "x", "page_url": f"/{line}", "lang": "en"}
    mine = ann.post_json("/comments", {**usual, "content": "mine"}).json["comment"]["id"]
    ann.post_json("/page/follow", usual)
    guest = TestApp(app, {"REMOTE_ADDR": "198.51.100.9"})
    words = {**usual, "content": f"x {text}", "nickname": line[:64], "email": "guest@example.com"}
    reply = guest.post_json("/comments", {**words, "parent_id": mine}, expect_errors=True)
    if reply.status_int != 200:  # that is no name
        words["nickname"] = "Bob"
        reply = guest.post_json("/comments", {**words, "parent_id": mine})
    guest.post_json("/comments", {**words, "parent_id": reply.json["comment"]["id"], "email": ""})
    guest.post_json("/auth/register", {**words, "email": "new@example.com", "password": "x"})
    app.deliver()


@pytest.mark.slow
def test_no_text_of_a_reader_adds_an_email_or_a_header(
    tmp_path: Path, empty_database: Path, fake_world: FakeWorld
) -> None:
    # Whoever chose them: a reader, or the owner in the settings.
    frames = []
    for number, text in enumerate(["plain", *INJECTED]):
        fake_world.emails.clear()
        text = re.sub(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", " ", text)
        line = " ".join(re.sub("[\n\u2028\u2029]", " ", text).split())
        settings = accepted(mail_sender=f"{line} <commentd@localhost>") | {"site_name": line}
        path = tmp_path / f"{number}.db"
        with written(path, empty_database, fake_world, "owner@blog.example", **settings) as app:
            emails_about(app, text, line)
        assert {email.recipient for email in fake_world.emails} >= {ANN, "owner@blog.example"}
        lines = [
            whole_email(e.message, "commentd@localhost", e.recipient) for e in fake_world.emails
        ]
        frames.append(sorted(len(each.splitlines()) for each in lines))
    assert frames == [frames[0]] * len(frames)


def test_an_email_with_a_code_holds_nothing_a_stranger_typed(
    start_service: StartService, scripted_server: ScriptedMailServer
) -> None:
    app = start_service(scripted_server.port, site_name="Ann's blog")
    fields: dict[str, Any] = {"nickname": "Win at evil.example", "password": "and again"}
    fields |= {"website": "evil.example", "Accept-Language": "evil"}
    Visitor(app).register("bob@example.com", **fields)
    Visitor(app, "192.0.2.1").register("carol@example.com", nickname="C")
    for number, name in enumerate(("dan", "eve"), 2):
        Visitor(app, f"192.0.2.{number}").ask_for_code(f"{name}@example.com", nickname="evil")
    app.deliver()
    texts = [text_of(read(email)) for email in scripted_server.emails]
    codes = [code_in(email) for email in scripted_server.emails]
    for one, other in ((0, 1), (2, 3)):
        assert texts[one].replace(codes[one], "") == texts[other].replace(codes[other], "")
    assert "evil" not in texts[2]
    shown = texts[0] + html_of(read(scripted_server.emails[0]))
    assert "evil" not in scripted_server.emails[0].decode() + shown
    assert "Ann's blog" in texts[0]
    assert "，10 分钟内有效。\n" in texts[0]
    assert read(scripted_server.emails[0])["Date"].datetime.timestamp() == START
    assert len({read(email)["Message-ID"] for email in scripted_server.emails}) == 4


def test_emails_come_from_the_sender_that_is_set_and_a_long_name_stays_one(
    tmp_path: Path, empty_database: Path, fake_world: FakeWorld
) -> None:
    long_name = 'Emails from the hills, about gardens and what is left: " of the summer (walks)'
    blog = "comments@blog.example"
    cases: list[tuple[dict[str, str], str, str]] = [
        ({"mail_sender": blog}, "blog.example", blog),
        ({"mail_sender": f'"评论, 博客" <{blog}>'}, "评论, 博客", blog),
        ({"site_name": long_name}, long_name, "commentd@localhost"),
    ]
    for number, (settings, name, sender) in enumerate(cases):
        with written(tmp_path / str(number), empty_database, fake_world, **settings) as app:
            Visitor(app).register()
            app.deliver()
        message = read(fake_world.emails[-1].message)
        (address,) = message["From"].addresses
        assert (address.display_name, address.addr_spec) == (name, sender)
        assert message["Message-ID"].endswith(sender.partition("@")[2] + ">")
    for wrong in ("a@例子.example", "a"):
        with pytest.raises(inside.REFUSALS, match="must be an email address"):
            load_config(None, {"COMMENTD_MAIL_SENDER": wrong})


def test_a_strangers_text_gives_the_terminal_no_orders(
    start_service: StartService, capsys: pytest.CaptureFixture[str]
) -> None:
    app = start_service(0, mail_host="", notify_owner=(ANN,))
    visitor = Visitor(app)
    visitor.say("hi")
    # As an import of former times may have left it.
    inside.sql(app, "UPDATE comment SET content = 'a\x1b[2J\r\x9bb' || char(10) || 'c'")
    reason = "\x1b]0;pwned\x07rude\x0bword"
    visitor.post_json("/comments/1/report", {"reason": reason})
    app.deliver()
    printed = capsys.readouterr().out
    assert not re.search("[\0-\x09\x0b-\x1f\x7f-\x9f]", printed)
    assert "]0;pwnedrude word" in printed
    assert r"> a\x1b[2J" in printed
    assert r"> \x9bb" in printed


def test_emails_are_printed_where_no_mail_host_is_set(
    start_service: StartService, capsys: pytest.CaptureFixture[str]
) -> None:
    app = start_service(0, mail_host="")
    visitor = Visitor(app)
    visitor.register()
    app.deliver()
    printed = capsys.readouterr().out
    assert f"To: {ANN}\n" in printed
    assert outbox(app) == []
    code = re.findall(r"^ {4}(\d{6})\b", printed, re.M)[0]
    assert f"Subject: {code} " in printed
    assert visitor.verify(code) == "验证成功"
