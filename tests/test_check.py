"""`commentd check` beside real servers of mail and captchas, and the page at / that shows the same
while there is no admin."""

import ast
import errno
import http.server
import json
import re
import shutil
import socket
import sqlite3
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product, zip_longest
from pathlib import Path
from typing import Any, NoReturn

import pytest

from commentd import (
    MIGRATIONS,
    SETTINGS,
    App,
    Config,
    World,
    __version__,
    check_mail,
    make_app,
    translated,
)
from support.client import CANARY, Visitor
from support.commands import run_here
from support.database import dump
from support.faults import make_database
from support.inside import (
    add_account,
    chat_hints,
    database_path,
    mail_hints,
    set_mail_patience,
    set_mail_ports,
    sql,
)
from support.mail import MailServer, ScriptedMailServer, tls
from support.mail import certificates as certificates  # a fixture
from support.provider import CLIENT_ID, CLIENT_SECRET, Provider
from support.service import services
from support.sources import ROOT, Function, functions, nodes_in, source_of, whole_tree
from support.world import FakeWorld

# What Cloudflare, hCaptcha and Google give for tests.
TRIAL_SECRETS = [
    f"1x{'0' * 31}AA",
    f"2x{'0' * 31}AA",
    f"3x{'0' * 31}AA",
    "0x" + "0" * 40,
    "6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe",
]
LINE = re.compile(r"^  (ok|note|warn|fail) +(\w+) +(\S.*)$", re.M)
HOUR, DAY = 3600, 86400


@dataclass(frozen=True)
class Report:
    code: int
    text: str
    errors: str

    @property
    def found(self) -> list[tuple[str, str, str]]:
        """Level, topic and text of each finding."""
        return LINE.findall(self.text)

    def of(self, topic: str) -> list[str]:
        return [level for level, name, _ in self.found if name == topic]

    def hint(self, topic: str) -> str:
        """What is advised below the worst finding of a topic."""
        found = re.search(rf"^  \w+ +{topic} .*\n +-> (.*)", self.text, re.M)
        return found[1] if found else ""

    def words(self, topic: str) -> str:
        return "\n".join(words for _, name, words in self.found if name == topic)


def check(folder: Path, *words: str, **settings: object) -> Report:
    """`commentd check` in that folder; `mail_port=25` is COMMENTD_MAIL_PORT."""
    variables = {f"COMMENTD_{name.upper()}": str(value) for name, value in settings.items()}
    report = Report(*run_here(folder, "check", *words, **variables))
    assert "\x1b" not in report.text
    assert "Exception" not in report.errors
    # The exit code follows from the findings, of which the worst come first, above the settings.
    levels = [level for level, _, _ in report.found]
    assert levels == sorted(levels, key=["fail", "warn", "note", "ok"].index)
    assert not LINE.search(report.text.partition("settings: -v")[2])
    assert report.code == (2 if not report.text else int("fail" in levels))
    return report


def beside(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def used_folder(tmp_path: Path) -> Path:
    """A folder with a database of one comment, after a clean stop."""
    make_database(tmp_path / "commentd.db", "hi", 1)
    return tmp_path


def change(folder: Path, *script: str) -> None:
    with closing(sqlite3.connect(folder / "commentd.db")) as db, db:
        for statement in script:
            db.execute(statement)


# What is set


def settings_of(report: Report) -> dict[tuple[str, str], tuple[str, str]]:
    """Value and source of each setting."""
    lines = re.findall(r"^  \[(\w+)\] (\w+) +(.*?) *(\S+)$", report.text, re.M)
    assert len(lines) == len({line[:2] for line in lines})
    return {(section, key): (value, source) for section, key, value, source in lines}


def test_check_prints_every_setting_with_its_source(tmp_path: Path) -> None:
    text = "[site]\nname = My blog\ndemo = yes\norigins = https://a.example\n https://b.example\n"
    (tmp_path / "own.ini").write_text(text)
    words, changed = ("--config", "own.ini"), {"site_name": "Other", "backup_every": 12}
    reported = settings_of(check(tmp_path, *words, "-v", **changed))
    assert [*map("_".join, reported)] == [*SETTINGS]
    shown = settings_of(check(tmp_path, *words, **changed))
    keys = [("site", "origins"), ("site", "name"), ("site", "demo"), ("backup", "every")]
    assert shown == {key: reported[key] for key in keys}
    assert f"no commentd.ini in {tmp_path} " in check(tmp_path).words("settings")
    assert reported["site", "name"] == ("Other", "COMMENTD_SITE_NAME")
    assert reported["site", "demo"] == ("yes", "own.ini")
    assert reported["site", "origins"] == ("https://a.example, https://b.example", "own.ini")
    assert reported["backup", "every"] == ("12", "COMMENTD_BACKUP_EVERY")
    assert reported["mail", "security"] == ("starttls", "default")
    assert reported["mail", "host"] == ("", "default")


def test_check_prints_no_secret(tmp_path: Path) -> None:
    keys = [("token", "key"), ("mail", "password"), ("captcha", "secret")]
    text = "".join(f"[{section}]\n{key} = {CANARY * 2}\n" for section, key in keys)
    (tmp_path / "commentd.ini").write_text(text)
    (tmp_path / "commentd.ini").chmod(0o644)
    variables = {"_".join(key): f"{CANARY}-{CANARY}" for key in keys}
    for source, settings in (("commentd.ini", {}), ("COMMENTD", variables)):
        report = check(tmp_path, **settings)
        assert CANARY not in report.text + report.errors
        assert (report.text + report.errors).count("chmod 600") == 1
        for key in keys:
            value, reported = settings_of(report)[key]
            assert (value, reported.split("_")[0]) == ("(hidden)", source)


def test_wrong_settings_end_check_with_2(tmp_path: Path) -> None:
    report = check(tmp_path, mail_port="x", site_demo="x")
    assert (report.code, report.text) == (2, "")
    assert report.errors.count("commentd: COMMENTD_") == 2


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.mark.slow
def test_unsafe_settings_of_a_public_service_are_warned_about(tmp_path: Path) -> None:
    nobody = f"127.0.0.1:{closed_port()}"
    public = {"server_public_url": "https://comments.example", "server_trusted_proxy": "127.0.0.1"}
    mail = {"mail_host": "127.0.0.1", "mail_port": nobody.partition(":")[2], "mail_sender": "a@b.c"}
    safe = {**public, **mail, "mail_security": "none", "site_origins": "https://blog.example"}
    keys = {"captcha_provider": "turnstile", "captcha_site_key": "k", "captcha_secret": "s"}
    asked = {**safe, **keys, "captcha_verify_url": f"https://{nobody}"}
    cases: list[tuple[dict[str, str], set[tuple[str, str]]]] = [
        ({}, {("note", "mail"), ("note", "origins"), ("note", "public_url")}),
        (public, {("warn", "mail"), ("warn", "origins")}),
        (safe, set()),
        (safe | {"server_public_url": "http://c.example"}, {("warn", "public_url")}),
        (safe | {"server_trusted_proxy": ""}, {("warn", "trusted_proxy")}),
        (safe | {"server_trusted_proxy": "", "server_listen": "0.0.0.0:80"}, set()),
        # Who tries it on their own machine sends nothing through a network or a proxy.
        (safe | {"server_trusted_proxy": "", "server_public_url": f"http://{nobody}"}, set()),
        (safe | {"captcha_provider": "none"}, {("warn", "captcha")}),
        (safe | {"limits_enabled": "no"}, {("warn", "limits")}),
        (safe | {"webhook_url": "https://hook.example/x"}, set()),
        (safe | {"webhook_url": "https://10.0.0.8/x"}, set()),
        (safe | {"webhook_url": "http://hook.example/x"}, {("warn", "webhook")}),
        (asked, set()),
        (asked | {"captcha_verify_url": f"http://{nobody}"}, {("warn", "captcha")}),
        *((asked | {"captcha_secret": secret}, {("warn", "captcha")}) for secret in TRIAL_SECRETS),
    ]
    topics = {"mail", "origins", "public_url", "trusted_proxy", "captcha", "limits", "webhook"}
    for settings, wanted in cases:
        reported = {
            (level, topic)
            for level, topic, text in check(tmp_path, **settings).found
            if topic in topics and level in ("note", "warn") and not text.startswith("port ")
        }
        assert reported == wanted, settings


def test_check_names_what_the_settings_lack_of_a_proxy_on_this_machine(tmp_path: Path) -> None:
    public = {"server_public_url": "https://comments.example"}
    for listen, proxy in {
        "127.0.0.1:8080": "127.0.0.1",
        "localhost:8080": "127.0.0.1",
        "[::1]:8080": "127.0.0.1",
        "unix:/run/commentd/socket": "unix",
    }.items():
        found = check(tmp_path, **public, server_listen=listen).words("trusted_proxy")
        assert found == (
            f"set [server] trusted_proxy = {proxy}: otherwise all readers appear to have the same "
            "IP address"
        )


# What is tried: mail, captcha, the way in


@contextmanager
def post_office() -> Iterator[MailServer]:
    mail_server = MailServer(auth_require_tls=False)
    mail_server.start()
    with ExitStack() as stack:
        stack.callback(mail_server.stop)
        yield mail_server


def mail(port: int, security: str = "none", password: str = "geheim") -> dict[str, object]:
    usual = {"mail_host": "127.0.0.1", "mail_sender": "Blog <blog@blog.example>"}
    login = {"mail_user": "blog", "mail_password": password}
    return usual | {"mail_port": port, "mail_security": security} | login


def test_check_logs_in_to_the_mail_server_and_sends_a_test_email(tmp_path: Path) -> None:
    with post_office() as mail_server:
        report = check(tmp_path, **mail(mail_server.port))
        assert (report.of("mail"), mail_server.emails) == (["ok"], [])
        stranger = check(tmp_path, **mail(mail_server.port) | NO_LOGIN)
        assert stranger.words("mail").endswith(" is reachable")
        report = check(tmp_path, "--mail", "Owner@Blog.example", **mail(mail_server.port))
    assert report.of("mail") == ["ok", "ok"]
    assert "owner@blog.example" in report.words("mail").lower()
    assert mail_server.logins == [(b"blog", b"geheim")] * 3
    (email,) = mail_server.emails
    assert (email.mail_from, email.rcpt_tos) == ("blog@blog.example", ["owner@blog.example"])
    assert b"\r\nSubject: commentd: test\r\n" in email.content
    printed = check(tmp_path, "--mail", "owner@blog.example").text
    assert "\nTo: owner@blog.example\nSubject: commentd: test\n" in printed
    assert "the email to owner@blog.example is printed here\n" in printed


def test_check_explains_mail_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_mail_ports(monkeypatch, (closed_port(), "tls"))
    with post_office() as mail_server:
        refused = check(tmp_path, **mail(mail_server.port, password=CANARY))
        clear = check(tmp_path, **mail(mail_server.port, "starttls"))
        garbled = check(tmp_path, **mail(mail_server.port, "tls"))
        assert mail_server.emails == []
    closed = check(tmp_path, "--mail", "a@blog.example", **mail(mail_server.port))
    for report, word, hint in (
        (refused, "(535)", "correct [mail] user and password; many providers want a code"),
        (clear, "STARTTLS", "may want [mail] security = tls, or none"),
        (garbled, "SSL", "try [mail] security = starttls"),
        (closed, f"127.0.0.1:{mail_server.port}: [Errno 111] Connection refused", "no port of it"),
    ):
        assert report.of("mail")[0] == "fail"
        assert "has taken" not in report.text  # no email is tried
        assert word in report.words("mail")
        assert hint in report.hint("mail")
        assert CANARY not in report.text + report.errors
        assert not re.search(r"b'|\(\d+, |^(\w+Error) \(\1\)", report.words("mail")), report.text
    for address in ("owner", "a@blog.example\nb"):
        code, text, errors = run_here(tmp_path, "check", "--mail", address)
        assert (code, text, "address" in errors) == (2, "", True), address


def test_check_says_that_an_email_could_not_be_printed() -> None:
    world = FakeWorld()
    world.mail_fails_with = BrokenPipeError(errno.EPIPE, "Broken pipe")
    [finding] = check_mail(Config(), world.world, ["owner@blog.example"])
    assert (finding.level.word, finding.text) == ("fail", "terminal: BrokenPipeError Broken pipe")


def test_check_says_what_the_mail_server_said_but_no_secret_that_it_repeats(tmp_path: Path) -> None:
    said = "Login Fail. Please enter your authorization code to login."  # as QQ Mail does
    with closing(ScriptedMailServer()) as scripted_server:
        scripted_server.open()
        scripted_server.script = {"EHLO": "250-mail.example\r\n250 AUTH PLAIN"}
        scripted_server.script["AUTH"] = f"535 {said} <ann@blog.example> {CANARY}"
        report = check(tmp_path, **mail(scripted_server.port, password=CANARY))
        assert f"{said} … … (535)" in report.words("mail")
        assert "the authorization code (授权码)" in report.hint("mail")
        scripted_server.script = {"MAIL": "553 Mail from must equal authorized user"}
        report = check(
            tmp_path, "--mail", "ann@blog.example", **mail(scripted_server.port) | NO_LOGIN
        )
        assert "Mail from must equal authorized user (553)" in report.words("mail")
        assert "write its own email address into [mail] sender" in report.hint("mail")
        server = f"127.0.0.1:{scripted_server.port}"
        assert f"{server}: Mail from" in report.words("mail")


@pytest.mark.slow
def test_check_names_the_port_and_the_security_of_a_mail_server_that_work(
    tmp_path: Path, certificates: Callable[[str], tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = certificates("IP:127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    with ExitStack() as stack:

        def opened(**how: Any) -> MailServer:
            server = MailServer(**how)
            server.start()
            stack.callback(server.stop)
            return server

        by_tls = opened(ssl_context=tls(certificate), auth_require_tls=False)
        by_starttls = opened(tls_context=tls(certificate))
        without_login = opened(tls_context=tls(certificate), auth_exclude_mechanism=EVERY_LOGIN)
        in_clear = opened(auth_require_tls=False)
        refusing = stack.enter_context(closing(ScriptedMailServer()))
        refusing.open()
        refusing.script = {"CONNECT": "554 no emails from dialup"}
        closed = closed_port()
        ways = [
            (closed, "starttls"),
            (in_clear.port, "starttls"),
            (without_login.port, "starttls"),
            (refusing.port, "starttls"),
            (by_tls.port, "tls"),
            (by_starttls.port, "starttls"),
        ]
        set_mail_ports(monkeypatch, *ways)
        report = check(tmp_path, "--mail", "owner@blog.example", **mail(closed_port(), "starttls"))
        port, security = by_tls.port, "tls"
        assert report.hint("mail") == f"write into [mail]: port = {port} and security = {security}"
        found = report.words("mail")
        for (port, security), outcome in zip(
            ways,
            (
                "is closed",
                "has no TLS",
                "takes no login",
                "does not work: no emails from dialup (554)",
                "works",
                "works",
            ),
            strict=True,
        ):
            assert f"port {port} with security = {security} {outcome}" in found
        # The password is sent to one port alone.
        assert (by_tls.logins, by_starttls.logins) == ([(b"blog", b"geheim")], [])
        assert in_clear.logins == []
        wrong = check(tmp_path, **mail(closed_port(), "starttls", CANARY))
        assert f"port {by_tls.port} with security = tls refuses the login" in wrong.words("mail")
        assert "correct [mail] user and password" in wrong.text
        # A login that is refused is no fault of the port.
        refused = check(tmp_path, **mail(by_starttls.port, "starttls", CANARY))
        assert "with security" not in refused.text


@contextmanager
def blocked_port() -> Iterator[int]:
    """A port that nothing comes back from, since its queue is full."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, ExitStack() as stack:
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield int(server.getsockname()[1])


def test_check_says_to_send_by_https_where_no_port_of_a_mail_server_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_mail_patience(monkeypatch, 0.2)
    with closing(ScriptedMailServer()) as silent, blocked_port() as blocked:
        silent.open()
        silent.script = {"CONNECT": "silence"}
        ports = [(closed_port(), "tls"), (silent.port, "starttls"), (blocked, "tls")]
        set_mail_ports(monkeypatch, *ports)
        report = check(tmp_path, **mail(closed_port()))
    assert "if its host blocks SMTP, set [mail] provider" in report.hint("mail")
    found = report.words("mail")
    assert f"port {silent.port} with security = starttls says nothing" in found
    blocks = "does not respond: it is probably blocked"
    assert f"port {blocked} with security = tls {blocks}" in found


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENETUNREACH, "Network is unreachable"), (errno.EHOSTUNREACH, "No route to host")],
)
def test_check_says_to_send_by_https_where_no_network_leads_to_a_mail_server(
    number: int, said: str
) -> None:
    def fail(server: object) -> NoReturn:
        raise OSError(number, said)

    world = World(try_login=fail, offers_login=fail)
    config = Config(mail_host="mail.example", mail_sender="blog@blog.example")
    fault, *ports = check_mail(config, world, [])
    assert "if its host blocks SMTP, set [mail] provider" in fault.hint
    assert len(ports) == 4
    faults = {port.text.partition(" does not work: ")[2] for port in ports}
    assert faults == {f"[Errno {number}] {said} (OSError)"}


def test_check_tries_port_25_without_tls_on_the_same_machine_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with post_office() as mail_server:
        set_mail_ports(monkeypatch, (mail_server.port, "none"))
        report = check(tmp_path, **mail(closed_port(), "starttls"))
        assert f"port = {mail_server.port} and security = none" in report.hint("mail")
        unknown = mail(closed_port(), "starttls") | {"mail_host": "mail.invalid"}
        assert "with security" not in check(tmp_path, **unknown).text
        # This machine under an IP address that can be that of another one.
        elsewhere = mail(closed_port(), "starttls") | {"mail_host": "0.0.0.0"}
        set_mail_ports(monkeypatch, (closed_port(), "tls"), (mail_server.port, "none"))
        found = check(tmp_path, **elsewhere).words("mail")
        assert ("with security = tls" in found, "with security = none" in found) == (True, False)


def test_check_sends_a_test_message_in_each_way_and_says_of_each_whether_it_was_taken(
    used_folder: Path,
) -> None:
    make_admin = (
        "INSERT INTO account (email, nickname, password, role, created_at) VALUES (?, ?, ?, ?, 1)"
    )
    with closing(sqlite3.connect(used_folder / "commentd.db")) as db, db:
        db.execute(make_admin, ("ann@blog.example", "Ann", "x", "admin"))
        db.execute(make_admin, ("reader@blog.example", "Bob", "x", "user"))
    with (
        post_office() as mail_server,
        answering("ok") as (slack, told_slack),
        answering('{"code": 19021, "msg": "sign match fail"}') as (feishu, told_feishu),
    ):
        chats = {
            "webhook_url": slack,
            "webhook_kind": "slack",
            "webhook_rebuild_url": f"{slack}/build",
            "chat_family_kind": "feishu",
            "chat_family_url": feishu,
        }
        settings = mail(mail_server.port) | chats
        quiet = check(used_folder, **settings)
        assert (mail_server.emails, told_slack, told_feishu) == ([], [], [])
        assert quiet.of("chat") == []
        report = check(used_folder, "--messages", **settings)
        assert [email.rcpt_tos for email in mail_server.emails] == [["ann@blog.example"]]
        assert (len(told_slack), len(told_feishu)) == (1, 1)
        server = f"127.0.0.1:{mail_server.port}"
        taken = f"{server} has taken the email to ann@blog.example: look there, and into spam"
        assert taken in report.words("mail")
        assert report.of("chat") == ["fail", "note", "ok"]
        failed, note, slack_line = report.words("chat").split("\n")
        assert failed.startswith("[chat.family] feishu does not work: ")
        assert "19021" in failed
        assert note == "[webhook] rebuild_url is not called: that would build your site"
        assert slack_line.startswith("[webhook] slack has taken a test message")
        mail_server.emails.clear()
        named = {"notify_owner": "bob@blog.example", "notify_pages": "/x/* = cid@blog.example"}
        check(
            used_folder,
            "--messages",
            "--mail",
            "bob@blog.example",
            **mail(mail_server.port),
            **named,
        )
        recipients = [email.rcpt_tos for email in mail_server.emails]
        assert recipients == [["bob@blog.example"], ["cid@blog.example"]]


NO_LOGIN = {"mail_user": "", "mail_password": ""}
EVERY_LOGIN = ["LOGIN", "PLAIN"]


@contextmanager
def answering(body: str, status: int = 200) -> Iterator[tuple[str, list[str]]]:
    """The URL of a web server with one response for all requests, and these requests."""
    asked: list[str] = []

    class Talk(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            asked.append(f"{self.command} {self.path} {self.rfile.read(length).decode()}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET

        def log_message(self, *words: object) -> None:
            """Nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Talk) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def check_provider(folder: Path, server: Provider, **changed: str) -> tuple[str, str]:
    """Level and words of what `check` finds about the section `[login.home]`."""
    section = {
        "login_home_kind": "oidc",
        "login_home_client_id": CLIENT_ID,
        "login_home_client_secret": CLIENT_SECRET,
        "login_home_issuer": server.issuer,
        "server_public_url": "https://comments.example",
        "site_origins": "https://blog.example",
    }
    report = check(folder, **section | changed)
    # The worst stands first. Beside what is tried, there may be advice.
    level, *_ = [each for each in report.of("login") if each != "warn"]
    assert changed.get("login_home_client_secret", CLIENT_SECRET) not in report.text
    return level, report.words("login")


def test_check_says_what_is_wrong_with_an_identity_provider(tmp_path: Path) -> None:
    redirect_url = "https://comments.example/auth/callback/home"
    with closing(Provider(redirect_url)) as server:
        fine = ("ok", "[login.home] Home accepts the secret")
        assert check_provider(tmp_path, server) == fine
        for kind in ("github", "mastodon"):
            level, words = check_provider(tmp_path, server, login_home_kind=kind)
            assert (level, "accepts the secret" in words) == ("ok", True), kind
        mastodon = words
        assert "without [mail] host" in mastodon
        wrong = "[login.home] the provider does not accept client_id and client_secret"
        for kind in ("oidc", "github", "mastodon"):
            changed = {"login_home_kind": kind, "login_home_client_secret": CANARY}
            level, words = check_provider(tmp_path, server, **changed)
            assert (level, wrong in words.splitlines()) == ("fail", True), kind
        slash = {"login_home_issuer": server.issuer + "/"}
        itself = f"[login.home] it calls itself {server.issuer}: write that as issuer"
        assert check_provider(tmp_path, server, **slash) == ("fail", itself)
        server.redirect_url = "https://comments.example/auth/callback/other"
        told = f"[login.home] tell the provider this redirect URL: {redirect_url}"
        assert check_provider(tmp_path, server) == ("fail", told)
        server.redirect_url = redirect_url
        server.lies["/token"] = {"error": "redirect_uri_mismatch"}
        assert check_provider(tmp_path, server) == ("fail", told)
        for error, shown in (("server_error", " server_error"), (..., ""), ("<b>", "")):
            server.lies["/token"] = {"error": error}
            silent = f"[login.home] the provider says nothing of the secret: status 400{shown}"
            assert check_provider(tmp_path, server) == ("fail", silent)
        server.raw["/.well-known/openid-configuration"] = [b"HTTP/1.1 200 OK\r\n\r\n<html>"], 0
        nonsense = check_provider(tmp_path, server)
        assert nonsense == ("fail", "[login.home] it sends no JSON")
        issuer = server.issuer
    level, words = check_provider(tmp_path, server)
    assert (level, f"[login.home] {issuer} can't be reached: " in words) == ("fail", True)
    for text in (fine[1], *mastodon.splitlines(), wrong, itself, told, silent, nonsense[1], words):
        for language in ("zh", "zh-tw"):
            assert translated(text, language) != text, f"static/terminal/{language}.json: {text}"


def test_check_tries_the_captcha_secret(tmp_path: Path) -> None:
    def verdict(error: str) -> str:
        return json.dumps({"success": False, "error-codes": [error]})

    asked_well = verdict("invalid-input-response")
    for provider, body, status, level, word in [
        ("turnstile", asked_well, 200, "ok", "secret"),
        ("hcaptcha", asked_well, 200, "ok", "secret"),
        ("recaptcha", asked_well, 200, "ok", "secret"),
        ("turnstile", verdict("invalid-input-secret"), 200, "fail", "secret"),
        ("turnstile", verdict("internal-error"), 200, "fail", "no verdict"),
        ("turnstile", "<html>", 502, "fail", "502"),
    ]:
        keys = {"captcha_site_key": "k", "captcha_secret": CANARY}
        site = {"site_origins": "https://blog.example", "captcha_provider": provider}
        with answering(body, status) as (url, asked):
            report = check(tmp_path, captcha_verify_url=f"{url}/siteverify", **keys, **site)
        assert report.of("captcha") == sorted(["warn", level], key="fail warn ok".index)  # http:
        assert [f"secret={CANARY}" in line for line in asked] == [True]
        expected = (level, "captcha")
        (line,) = [words for each, topic, words in report.found if (each, topic) == expected]
        assert (word in line, line.isascii()) == (True, True), (body, line)
        assert CANARY not in report.text + report.errors


@pytest.mark.usefixtures("app")
def test_check_tries_the_public_url(tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{closed_port()}"
    assert check(tmp_path, server_public_url=nobody).of("public_url") == ["fail"]
    wrong = ("<html>ok", '{"status": "ok"}', '{"ok": false}', '["ok"]', "")
    for body in ('{"ok":true}', *wrong):
        with answering(body) as (url, asked):
            report = check(tmp_path, server_public_url=f"{url}/comments")
        assert report.of("public_url") == ["fail" if body in wrong else "ok"], body
        assert [line.split()[:2] for line in asked] == [["GET", "/comments/health"]]
    for status, said in {
        404: "this is not commentd",
        502: "the proxy can't reach commentd",
        503: "commentd can't write to its disk; see its log",
    }.items():
        with answering('{"ok":true}', status) as (url, _):
            report = check(tmp_path, server_public_url=url)
        assert report.words("public_url") == f"{url}/health: HTTP {status}: {said} (OSError)"


# Files, rights, room


def test_check_reports_a_nearly_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for free, level in [(1, "fail"), (15, "fail"), (20, "warn"), (65, "ok")]:
        usage = shutil.disk_usage("/")._replace(free=free * 1024 * 1024)
        monkeypatch.setattr(shutil, "disk_usage", lambda path, usage=usage: usage)
        report = check(tmp_path)
        assert report.of("disk") == [level]
        assert f"{free} MB" in report.words("disk")


def test_check_names_files_that_others_can_read(
    used_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (used_folder / "backups").mkdir()
    names = ("commentd.db", "backups/commentd-20260101-000000.db")
    (used_folder / names[1]).touch(0o600)
    assert check(used_folder).of("rights") == []
    for name in names:
        (used_folder / name).chmod(0o640)
    assert check(used_folder).of("rights") == ["warn"] * len(names)
    (used_folder / "commentd.db-wal").write_bytes(b"")
    (used_folder / "commentd.db-wal").chmod(0o604)
    report = check(used_folder)
    for name in (*names, "commentd.db-wal"):
        assert f"{name}: run chmod 600" in report.words("rights")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    report = check(used_folder)
    assert (report.of("rights")[0], report.of("backup")[0]) == ("fail", "fail")
    assert "backups is not writable: create it or change its owner" in report.words("backup")


# The database


def test_check_leaves_the_database_as_it_was(used_folder: Path) -> None:
    whole = (used_folder / "commentd.db").read_bytes()
    (used_folder / "empty.db").touch()
    (used_folder / "text.db").write_text(
        "not a database, though long enough to be read as one " * 99
    )
    (used_folder / "cut.db").write_bytes(whole[: len(whole) // 2 + 99])
    for name, pragma in [
        ("newer", f"user_version = {len(MIGRATIONS) + 1}"),
        ("older", f"user_version = {len(MIGRATIONS) - 1}"),
        ("foreign", "application_id = 7"),
    ]:
        (used_folder / f"{name}.db").write_bytes(whole)
        with closing(sqlite3.connect(used_folder / f"{name}.db")) as db:
            db.execute(f"PRAGMA {pragma}")
    for path, level, word in [
        ("fresh.db", "note", "first start"),
        ("empty.db", "note", "first start"),
        ("none/c.db", "fail", "no such folder"),
        (".", "fail", "can't be opened"),
        ("text.db", "fail", "damaged"),
        ("cut.db", "fail", "damaged"),
        ("newer.db", "fail", "newer commentd"),
        ("older.db", "fail", "start the service once"),
        ("foreign.db", "fail", "another program"),
    ]:
        before = beside(used_folder)
        report = check(used_folder, database_path=path)
        assert report.of("database") == [level], path
        assert word in report.words("database")
        new = {name for name, data in beside(used_folder).items() if before.get(name) != data}
        assert new <= {f"{path}-write", f"{path}-lock"}, path
    assert not (used_folder / "fresh.db-write").exists()
    assert not (used_folder / "none").exists()


def test_check_finds_a_sound_database_ok(used_folder: Path) -> None:
    before = beside(used_folder)
    report = check(used_folder)
    assert (report.code, report.of("database")) == (0, ["ok"])
    bad = {"clock", "counters", "outbox", "rights", "trusted_proxy"}
    assert not bad & {topic for _, topic, _ in report.found}
    assert "comments: 1, accounts: 0" in report.words("database")
    no_admin = "no admin yet: open the link printed at start, or run `commentd admin EMAIL`"
    assert ("note", "admin", no_admin) in report.found
    assert beside(used_folder) == before


EMAIL = "INSERT INTO outbox (recipient, text, expires_at, {}) VALUES ('a@example.com', {}, {})"


def test_check_reports_problems_in_the_database(used_folder: Path) -> None:
    whole = (used_folder / "commentd.db").read_bytes()
    for script, topic, level, word in [
        ("UPDATE comment SET created_at = created_at + 3600", "clock", "fail", "behind"),
        ("UPDATE page SET total = 7", "counters", "fail", "1 counters are wrong; run"),
        (EMAIL.format("failure", "''", f"{2**40}, 'x 554'"), "outbox", "warn", "failed: 1"),
        (EMAIL.format("due_at", "'x'", f"{2**40}, 1"), "outbox", "warn", "delayed: 1"),
    ]:
        (used_folder / "commentd.db").write_bytes(whole)
        change(used_folder, script)
        report = check(used_folder)
        assert report.of(topic) == [level], script
        assert word in report.words(topic)
        assert "example.com" not in report.text


def test_check_reports_the_age_of_the_last_backup(used_folder: Path) -> None:
    (used_folder / "backups").mkdir()
    assert check(used_folder, backup_every=24).of("backup") == ["note"]
    ages = [(300, "warn", "300 h ago"), (49, "warn", "49 h ago"), (47, "ok", "47 h ago")]
    for hours, level, words in [*ages, (1, "ok", "1 h ago")]:
        made = datetime.fromtimestamp(time.time() - hours * HOUR - 60, UTC)
        (used_folder / f"backups/commentd-{made:%Y%m%d-%H%M%S}.db").touch(0o600)
        report = check(used_folder, backup_every=24)
        assert (report.of("backup"), words in report.words("backup")) == ([level], True), hours
    assert check(used_folder, backup_every=0).of("backup") == ["note"]


@pytest.mark.slow
def test_check_finds_a_wrong_clock(used_folder: Path) -> None:
    change(used_folder, "UPDATE comment SET created_at = strftime('%s', 'now') + 3600")
    with services(used_folder) as start:
        assert "clock: the system clock is wrong" in start().output


def test_check_works_after_a_crash(tmp_path: Path) -> None:
    make_database(tmp_path / "commentd.db", "hi", 1, killed=True)
    assert (tmp_path / "commentd.db-wal").stat().st_size
    before = beside(tmp_path)
    report = check(tmp_path)
    assert (report.code, report.of("database")) == (0, ["ok"])
    assert "comments: 1" in report.words("database")
    after = beside(tmp_path)
    assert {name for name in before if after.get(name) != before[name]} <= {"commentd.db-shm"}


def test_check_neither_waits_nor_writes_beside_a_service(
    app: App, visitor: Visitor, db: sqlite3.Connection, tmp_path: Path
) -> None:
    visitor.say()
    sql(app, "UPDATE comment SET created_at = 0")
    before = dump(database_path(app))
    db.execute("BEGIN IMMEDIATE")  # a writer who takes its time
    report = check(tmp_path)
    db.execute("ROLLBACK")
    assert report.of("database") == ["ok"]
    assert dump(database_path(app)) == before
    visitor.say("goes on")


# In Chinese

TEMPLATES = {
    language: json.loads((ROOT / f"static/terminal/{language.lower()}.json").read_text("utf-8"))
    for language in ("zh", "zh-TW")
}
# Whose errors become findings.
CHECKED = {"read_only", "check_database_file", "figures_of"}
# What they return is one.
RETURNING = {"no_such_setting", "reading_error", "readiness", "advice_on_ports"}


def texts_of(node: ast.expr, assigned: list[ast.Assign]) -> list[str]:
    """What an expression can be, with 7 for values. A name is what was last assigned to it."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Name(id=name):
            for each in reversed(assigned):
                if each.lineno < node.lineno and ast.unparse(each.targets[0]) == name:
                    return texts_of(each.value, assigned)
        case ast.FormattedValue(value=value):
            return texts_of(value, assigned)
        case ast.JoinedStr(values=values):
            parts = [texts_of(value, assigned) for value in values]
            return ["".join(each) for each in product(*parts)]
        case ast.BinOp(left=left, right=right):
            pairs = product(texts_of(left, assigned), texts_of(right, assigned))
            return ["".join(each) for each in pairs]
        case ast.IfExp(body=body, orelse=orelse):
            return texts_of(body, assigned) + texts_of(orelse, assigned)
    return ["7"]


def may_say_one(function: Function) -> bool:
    """Most of the program says none, and it takes long to look through it."""
    called = r"\b(?:ValueError|Finding|run_check|SchemaError)\("
    is_named = function.name in CHECKED | RETURNING or function.name.endswith("faults")
    return is_named or bool(re.search(called, source_of(function)))


def findings() -> Iterator[str]:
    """The texts that findings can have, but for those that are a value as a whole."""
    for function in functions(whole_tree()):
        if not may_say_one(function):
            continue
        nodes = sorted(nodes_in(function), key=lambda node: getattr(node, "lineno", 0))
        assigned = [node for node in nodes if isinstance(node, ast.Assign)]
        texts: list[ast.expr] = []
        for node in nodes:
            match node:
                case ast.Call(func=ast.Name(id="ValueError"), args=[text]):
                    # Those of settings.
                    is_parser = function.name.startswith("parse") or function.name == "zone_named"
                    texts += [text] * is_parser
                case ast.Return(value=ast.Constant(value=str()) | ast.JoinedStr() as text):
                    texts += [text] * (function.name in RETURNING)
                case ast.Yield(value=ast.Constant() | ast.JoinedStr() as text):
                    texts += [text] * function.name.endswith("faults")
                case ast.Call(func=ast.Name(id="Finding"), args=[_, _, text, *_]):
                    texts.append(text)
                case ast.Call(func=ast.Name(id="run_check"), args=[_, text, _]):
                    texts.append(text)
                case ast.Call(func=ast.Name(id="SchemaError"), args=[text]):
                    texts += [text] * (function.name in CHECKED)
                case ast.Return(value=ast.JoinedStr() as text):
                    texts += [text] * (function.name in CHECKED)
        for text in texts:
            yield from {*texts_of(text, assigned)} - {"", "7", "7: 7"}
    yield from mail_hints()
    yield from chat_hints()


def test_each_finding_of_check_has_a_chinese_text_and_none_is_left_over() -> None:
    texts = {*findings()}
    assert len(texts) > 40
    lacking = [
        f"static/terminal/{language.lower()}.json lacks {json.dumps(text)}"
        + " (for 7 write {})" * ("7" in text)
        for language in TEMPLATES
        for text in sorted(texts)
        if translated(text, language).isascii()
    ]
    assert not lacking, "\n".join(lacking)
    strings = [node.value for node in nodes_in(whole_tree()) if isinstance(node, ast.Constant)]
    said = "\n".join([*texts, *(text for text in strings if isinstance(text, str))])
    for number, keys in enumerate(zip_longest(*TEMPLATES.values()), 1):
        same = keys[0] == keys[1]
        assert same, f"static/terminal/zh.json and zh-tw.json: entry {number} differs: {keys}"
    for language, templates in TEMPLATES.items():
        for english, chinese in templates.items():
            entry = f"static/terminal/{language.lower()}.json: {json.dumps(english)}"
            assert translated(english, language) == chinese, f"{entry}: an earlier key matches it"
            assert english.count("{}") == chinese.count("{}"), f"{entry}: write each {{}} there"
            for part in re.split("[{}():]+", english):
                assert part.strip() in said, f"{entry}: commentd.py does not say it: delete it"


def test_check_is_chinese_where_the_terminal_is(used_folder: Path) -> None:
    settings = {"mail_host": "127.0.0.1", "mail_port": closed_port(), "mail_sender": "a@b.c"}
    language = {"LC_ALL": "", "LC_MESSAGES": "", "LANG": "zh_CN.UTF-8"}
    variables = {f"COMMENTD_{name.upper()}": str(value) for name, value in settings.items()}
    code, text, errors = run_here(used_folder, "check", **variables, **language)
    assert (code, errors) == (1, "")
    lines = [words for _, _, words in LINE.findall(text)]
    assert len(lines) > 5
    assert [line for line in lines if line.isascii()] == []
    assert "commentd.db：评论 1 条，账号 0 个" in text
    assert "已设置的（加 -v 显示全部设置）：" in text
    assert "错误：1，警告：" in text
    assert "用 `systemctl start commentd` 启动" in text
    for taiwan in ("zh_TW.UTF-8", "zh_HK", "zh-Hant"):
        text = run_here(used_folder, "check", **variables, **language | {"LANG": taiwan})[1]
        assert "commentd.db：留言 1 則，帳號 0 個" in text


# Versions


def test_check_reports_a_package_with_known_vulnerabilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    floors = dict(re.findall(r"([a-z0-9]+)>=([0-9.]+)", "\n".join(needed)))
    del floors["segno"]  # no version of it has had one
    assert len(floors) == 5
    versions: dict[str, str] = {}
    monkeypatch.setattr("importlib.metadata.version", lambda name: versions[name])

    def warned() -> list[str]:
        found = check(tmp_path).found
        return [words for level, topic, words in found if (level, topic) == ("warn", "versions")]

    for name, floor in floors.items():
        versions.update(dict.fromkeys(floors, "10.0"))
        assert warned() == []
        versions[name] = floor
        assert warned() == []
        versions[name] = "0.3.6" if name == "nh3" else "0.13.3"
        (text,) = warned()
        assert f"{name} {versions[name]}" in text
        assert floor in text


# The page at /


def state(page: Any) -> Any:
    return json.loads(re.findall(r'<script[^>]+id="state">(.*?)</script>', page.text)[0])


def test_the_home_page_shows_only_topics_and_levels_of_check(
    visitor: Visitor, tmp_path: Path
) -> None:
    (tmp_path / "commentd.db").chmod(0o644)
    page = visitor.get("/")
    shown = state(page)
    assert shown.items() >= {"mail": "note", "origins": "note", "rights": "warn"}.items()
    assert set(shown.values()) <= {"note", "warn", "fail"}
    script = (ROOT / "static/home.js").read_text("utf-8")
    for topic in shown:
        assert re.fullmatch("[a-z_]+", topic)
        assert len(re.findall(rf"\b{topic}: '", script)) >= 2, topic  # in each language
    telling = ["127.0.0.1", "commentd.db", str(tmp_path), __version__, CANARY]
    assert [word for word in telling if word in page.text] == []


def test_the_home_page_hides_the_findings_of_check_from_the_public(
    config: Config, app: App, visitor: Visitor, fake_world: FakeWorld, tmp_path: Path
) -> None:
    nothing = {"public": True}
    assert state(visitor.get("/")) != nothing
    add_account(app, "owner@example.com", "Owner", CANARY)
    assert state(visitor.get("/")) != nothing
    sql(app, "UPDATE account SET role = 'admin'")
    assert state(visitor.get("/")) == nothing
    public = replace(config, server_public_url="https://comments.example", site_demo=True)
    public = replace(public, database_path=str(tmp_path / "other.db"))
    with closing(make_app(public, fake_world.world, rounds=1)) as other:
        assert state(Visitor(other).get("/")) == nothing


PNG = b"\x89PNG\r\n\x1a\n" + bytes(500)


PICTURES: list[tuple[bytes | None, list[str]]] = [
    (None, ["warn"]),
    (b"<svg>", ["warn"]),
    (PNG * 200, ["warn"]),
    (PNG, []),
    (b"RIFF0000WEBP", []),
]


@pytest.mark.usefixtures("app")
def test_check_warns_if_the_picture_of_the_owner_is_not_served(tmp_path: Path) -> None:
    file = tmp_path / "me"
    config = Config(database_path=str(tmp_path / "other.db"), site_picture=str(file))
    for content, levels in PICTURES:
        if content:
            file.write_bytes(content)
        assert check(tmp_path, site_picture=file).of("picture") == levels, content
        with closing(make_app(config)) as app:
            response = Visitor(app).get("/picture", expect_errors=True)
            assert response.status_int == (404 if levels else 200), content
            if not levels:
                assert (response.body, response.content_type[:6]) == (content, "image/")
                assert "url(SERVICE/picture)" in Visitor(app).get("/embed.js").text
