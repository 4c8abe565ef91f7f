"""Captchas of others: Turnstile, hCaptcha, reCAPTCHA 2 and 3, checked at a server of our own that
speaks as theirs do, or as none should. Each reply goes over a real connection."""

import gzip
import json
import logging
import os
import select
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
import test_mail
import webtest
from conftest import CANARY, PAGE, Outside, Visitor
from test_comments import at_once
from test_mail import tls
from test_server import Start, services, until

import commentd
from commentd import ANSWER_LIMIT, App, SettingsFault, load_config

HOST, ORIGIN = "blog.example", "https://blog.example"
SECRET, SITE_KEY = "0xSecretOfTheBlog-5581", "site-key-of-the-blog"
DAY = 86400
FAILED = {"error": "人机验证失败，请重试", "code": "captcha_failed"}
SPENT = {"error": "人机验证已用过，请重试", "code": "captcha_failed"}
DOWN = {"error": "人机验证服务暂时没有响应，请稍后再试", "code": "captcha_down"}
# A kind: its provider, what it says of a token beside the host, how it words that one is spent.
KINDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "turnstile": (
        "turnstile",
        {"error-codes": [], "action": "commentd", "cdata": "", "metadata": {"interactive": False}},
        "timeout-or-duplicate",
    ),
    "hcaptcha": ("hcaptcha", {"credit": False}, "already-seen-response"),
    "recaptcha 2": ("recaptcha", {}, "timeout-or-duplicate"),
    "recaptcha 3": ("recaptcha", {"score": 0.9, "action": "commentd"}, "timeout-or-duplicate"),
}
all_kinds = pytest.mark.parametrize("kind", KINDS)
USER = {"email": "ann@example.com", "password": CANARY}
BODIES: dict[str, dict[str, Any]] = {
    "/comments": {"page_url": PAGE, "nickname": "Ann", "content": "hi"},
    "/auth/register": {**USER, "nickname": "Ann"},
    "/auth/login": USER,
}
certificates = test_mail.certificates


class Siteverify(ThreadingHTTPServer):
    """The provider: it issues tokens, and tells once whether one is good."""

    daemon_threads = False  # so that closing waits for all that it does
    PATH = "/api/siteverify"

    def __init__(self, kind: str, certificate: tuple[str, str] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Desk)
        if certificate:
            self.socket = tls(certificate).wrap_socket(self.socket, server_side=True)
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server_address[1]}{self.PATH}"
        self.kind, self.secret, self.site_key = kind, SECRET, SITE_KEY
        self.issued: dict[str, dict[str, Any]] = {}
        self.used: set[str] = set()
        self.forgets = False  # says yes to a token again and again
        self.asked: list[dict[str, str]] = []
        self.connections = self.sent = self.busy = 0
        # What is said to a token, or to all, instead: the parts, and the pause after each.
        self.script: dict[str, tuple[list[bytes], float]] = {}
        self.lock, self.gate = threading.Lock(), threading.Event()
        self.gate.set()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self) -> None:
        self.gate.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        self.connections += 1
        return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self.lock:
            self.busy += 1
        super().process_request_thread(request, client_address)
        with self.lock:
            self.busy -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side hung up."""

    def issue(self, **wishes: Any) -> str:
        """A token that was solved, with what the provider knows of it; `...` is not said."""
        known = {"challenge_ts": "2026-11-18T11:06:30Z", "hostname": HOST, **KINDS[self.kind][1]}
        token = f"token-{len(self.issued)}-of-a-reader"
        self.issued[token] = {k: v for k, v in (known | wishes).items() if v is not ...}
        return token

    def verdict(self, form: dict[str, str]) -> dict[str, Any]:
        token, error = form.get("response", ""), ""
        with self.lock:
            if form.get("secret") != self.secret:
                error = "invalid-input-secret" if form.get("secret") else "missing-input-secret"
            elif not token:
                error = "missing-input-response"
            elif form.get("sitekey", self.site_key) != self.site_key:
                error = "sitekey-secret-mismatch"
            elif token not in self.issued:
                error = "invalid-input-response"
            elif token in self.used and not self.forgets:
                error = KINDS[self.kind][2]
            self.used.add(token)
        if error:
            return {"success": False, "error-codes": [error]}
        return {"success": True, **self.issued[token]}


class Desk(BaseHTTPRequestHandler):
    server: Siteverify
    timeout = 20

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode("ascii")
        fields = parse_qs(body, keep_blank_values=True, strict_parsing=True)
        form = {name: value for name, (value,) in fields.items()}
        kind = self.headers["Content-Type"]
        if self.path != Siteverify.PATH or kind != "application/x-www-form-urlencoded":
            self.send_error(400)
            return
        self.server.asked.append(form)
        while not self.server.gate.wait(0.5):
            self.connection.sendall(CONTINUE)  # silence would end it
        script = self.server.script.get(form["response"]) or self.server.script.get("all")
        parts, pause = script or ([reply(self.server.verdict(form))], 0)
        for part in parts:
            self.connection.sendall(part)
            self.server.sent += len(part)
            if pause and select.select([self.connection], [], [], pause)[0]:
                return  # nothing more is expected of them: they hung up


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def reply(body: Any, *headers: str, status: str = "200 OK", chunked: bool = False) -> bytes:
    """An answer as it goes over the wire."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    size = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(text)}"
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", size, *headers, "", ""]
    return "\r\n".join(lines).encode() + text


# Whoever reads one of these too kindly lets the visitor in.
PASSES = {"success": True, "hostname": HOST, "action": "commentd"}
GOOD = json.dumps(PASSES).encode()


@pytest.fixture
def kind() -> str:
    return "turnstile"


@pytest.fixture
def named() -> str:
    """Whom the certificate of the provider names; nobody: there is no TLS."""
    return ""


@pytest.fixture
def siteverify(kind: str, named: str, request: pytest.FixtureRequest) -> Iterator[Siteverify]:
    certificate = request.getfixturevalue("certificates")(named) if named else None
    server = Siteverify(kind, certificate)
    yield server
    server.stop()


@pytest.fixture
def bystander() -> Iterator[Siteverify]:
    """A server that nobody is to speak to, and that says yes to all."""
    server = Siteverify("turnstile")
    server.script["all"] = [reply(GOOD)], 0
    yield server
    server.stop()


@pytest.fixture
def more() -> dict[str, Any]:
    """Further settings of a test."""
    return {}


@pytest.fixture
def settings(siteverify: Siteverify, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "captcha_provider": KINDS[siteverify.kind][0],
        "captcha_site_key": SITE_KEY,
        "captcha_secret": SECRET,
        "captcha_verify_url": siteverify.url,
        "site_origins": (ORIGIN, "http://localhost:4000"),
        **more,
    }


@pytest.fixture
def failing(visitor: Visitor) -> Visitor:
    visitor.faults_allowed = True
    return visitor


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with services(tmp_path) as start:
        yield start


def asker(app: App, path: str, **fields: Any) -> Callable[[], Any]:
    """A request for another thread, which the invariants can't judge while others write."""
    client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})
    return lambda: client.post_json(path, BODIES[path] | fields, expect_errors=True)


def assert_down(visitor: Visitor, token: str = "x") -> None:
    """Nobody gets in without a verdict, and what is written waits."""
    for path in ("/auth/register", "/auth/login"):
        told = visitor.post_json(path, BODIES[path] | {"captcha_token": token}, status=503)
        assert (told.json, told.headers["Retry-After"]) == (DOWN, "30")
    assert visitor.say(captcha_token=token)["comment"]["status"] == "waiting"
    listed = visitor.listing()
    assert (listed["comments"], listed["total"]) == ([], 0)


# A verdict


@all_kinds
def test_a_good_token_opens_each_door_once(
    visitor: Visitor, app: App, outside: Outside, siteverify: Siteverify, kind: str
) -> None:
    tokens = [siteverify.issue() for _ in range(3)]
    assert visitor.say(captcha_token=tokens[0])["comment"]["status"] == "visible"
    visitor.register(captcha_token=tokens[1])
    app.deliver()
    visitor.verify(outside.code())
    assert visitor.login(captcha_token=tokens[2])["token"]
    # Nothing of the reader but the token is told: no address.
    own = {"secret": SECRET} | ({"sitekey": SITE_KEY} if kind == "hcaptcha" else {})
    assert siteverify.asked == [{**own, "response": token} for token in tokens]
    for token in tokens:
        assert visitor.login(captcha_token=token, status=403) == SPENT
        assert visitor.register("bob@example.com", captcha_token=token, status=403) == SPENT
        assert visitor.say("again", captcha_token=token, status=403) == SPENT
    assert len(siteverify.asked) == 3


@all_kinds
def test_a_token_that_was_not_issued_or_is_spent_there_opens_none(
    visitor: Visitor, siteverify: Siteverify, caplog: pytest.LogCaptureFixture
) -> None:
    spent, odd = siteverify.issue(), "&secret=x&é 验证 %00+\r\nX: y"
    siteverify.used.add(spent)
    for token in ("x" * 2048, spent, odd):
        assert visitor.say(captcha_token=token, status=403) == FAILED
        assert visitor.register(captcha_token=token, status=403) == FAILED
        assert visitor.login(captcha_token=token, status=403) == FAILED
    assert [form["response"] for form in siteverify.asked[-2:]] == [odd, odd]
    assert {form["secret"] for form in siteverify.asked} == {SECRET}
    assert caplog.messages == []


def test_a_comment_sent_again_with_its_token_is_the_one_that_is_there(
    visitor: Visitor, outside: Outside, siteverify: Siteverify
) -> None:
    token = siteverify.issue()
    first = visitor.say(captcha_token=token)
    outside.time += 120  # beyond the minute of doubles
    assert visitor.say(captcha_token=token) == first
    for other in ({"content": "ho"}, {"nickname": "Bob"}, {"page_url": "/b"}, {"parent_id": 1}):
        assert visitor.say(captcha_token=token, status=403, **other) == SPENT
    outside.time += 2 * DAY  # by now it is forgotten here, but not there
    visitor.served.tick()
    assert visitor.say("ho", captcha_token=token, status=403)
    assert visitor.listing()["total"] == 1


@pytest.mark.parametrize("more", [{"limits_enabled": False}])
@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("path", BODIES)
def test_one_token_in_fifty_hands_opens_one_door(
    app: App, siteverify: Siteverify, path: str, forgets: bool
) -> None:
    siteverify.forgets = forgets  # then the single use is ours to see to
    token = siteverify.issue()
    numbered = [{"content": str(n)} if path == "/comments" else {} for n in range(50)]
    told = at_once([asker(app, path, captcha_token=token, **each) for each in numbered])
    done = 401 if path == "/auth/login" else 200  # there is no such account
    assert {t.status_int for t in told} <= {done, 403, 503}
    passed = [t for t in told if t.status_int == done and '"waiting"' not in t.text]
    assert len(passed) == 1


OURS: list[tuple[str, dict[str, Any]]] = [
    ("turnstile", {"hostname": "localhost"}),
    ("turnstile", {"hostname": "comments.example"}),  # the page of the service itself
    ("turnstile", {"challenge_ts": ...}),
    ("hcaptcha", {"score": 0.1}),  # there, the higher the worse
    ("hcaptcha", {"score": 0.9}),
    ("recaptcha 2", {"apk_package_name": None}),
    *[("recaptcha 3", {"score": score}) for score in (0.5, 1, 1.0)],
]
HOSTS = ["evil.example", f"x.{HOST}", f"{HOST}.evil.example", ORIGIN, "", None, 1, True, {}, [HOST]]
ACTIONS = ["login", "Commentd", "", None, 1, True, {}, ["commentd"], ...]
SCORES = [0.49, 0, -1, None, "0.9", True, {}, [0.9]]
FOREIGN: list[tuple[str, dict[str, Any]]] = [
    *[(kind, {"hostname": host}) for kind in ("hcaptcha", "recaptcha 3") for host in HOSTS],
    *[(kind, {"hostname": ...}) for kind in KINDS],
    *[(kind, {"hostname": "evil.example"}) for kind in KINDS],
    *[(kind, {"action": a}) for kind in ("turnstile", "recaptcha 3") for a in ACTIONS],
    *[("recaptcha 3", {"score": score}) for score in SCORES],
    ("recaptcha 3", {"score": ..., "action": "login"}),
]


@pytest.mark.parametrize("more", [{"server_public_url": "https://comments.example"}])
@pytest.mark.parametrize(("kind", "known"), OURS)
def test_what_was_solved_on_our_pages_passes(
    visitor: Visitor, siteverify: Siteverify, known: dict[str, Any]
) -> None:
    told = visitor.say(captcha_token=siteverify.issue(**known))
    assert told["comment"]["status"] == "visible"


@pytest.mark.parametrize("more", [{"limits_enabled": False}])
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_solved_elsewhere_for_other_ends_or_by_machines_is_refused(
    failing: Visitor, siteverify: Siteverify, kind: str
) -> None:
    body = BODIES["/comments"]
    told = {}
    for each, known in FOREIGN:
        if each == kind:
            sent = body | {"captcha_token": siteverify.issue(**known)}
            told[str(known)] = failing.post_json("/comments", sent, expect_errors=True).status_int
    assert {known: status for known, status in told.items() if status != 403} == {}


TRIAL = [
    *[("turnstile", f"{n}x0000000000000000000000000000000AA", "example.com") for n in (1, 2, 3)],
    ("hcaptcha", "0x0000000000000000000000000000000000000000", "dummy-key-pass"),
    ("recaptcha 2", "6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe", "testkey.google.com"),
]


@pytest.mark.parametrize(
    ("kind", "more", "host"), [(k, {"captcha_secret": s}, host) for k, s, host in TRIAL]
)
def test_with_a_public_trial_secret_the_host_is_not_looked_at(
    visitor: Visitor, siteverify: Siteverify, more: dict[str, str], host: str
) -> None:
    siteverify.secret = more["captcha_secret"]
    visitor.say(captcha_token=siteverify.issue(hostname=host, action=...))
    visitor.say("ho", captcha_token="x", status=403)


# No verdict


def spaced(size: int) -> bytes:
    return GOOD + b" " * (size - len(GOOD))


def chunk(size: str, data: bytes = GOOD, end: str = "\r\n0\r\n\r\n") -> bytes:
    return reply(size.encode() + b"\r\n" + data + end.encode(), chunked=True)


NO_VERDICT: dict[str, bytes] = {
    "success is a text": reply(PASSES | {"success": "true"}),
    "success is 1": reply(PASSES | {"success": 1}),
    "success is null": reply(PASSES | {"success": None}),
    "success is a list": reply(PASSES | {"success": [True]}),
    "success is not there": reply({"hostname": HOST, "action": "commentd"}),
    "it is in a list": reply([PASSES]),
    "true alone": reply(b"true"),
    "nothing": reply(b""),
    "a page": reply(b"<!doctype html><title>just a moment</title>"),
    "NaN": reply(GOOD[:-1] + b', "score": NaN}'),
    "infinity": reply(GOOD[:-1] + b', "score": 1e999}'),
    "a key twice": reply(b'{"success": false, ' + GOOD[1:]),
    "nested deep": reply(GOOD[:-1] + b', "x": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "not UTF-8": reply(GOOD[:-1] + b', "cdata": "\xff"}'),
    "UTF-16": reply(GOOD.decode().encode("utf-16")),
    "cut off": reply(GOOD[:-1]),
    "compressed": reply(gzip.compress(GOOD), "Content-Encoding: gzip"),
    "a byte too much": reply(spaced(ANSWER_LIMIT + 1)),
    "a byte too much, of no stated length": b"HTTP/1.0 200 OK\r\n\r\n" + spaced(ANSWER_LIMIT + 1),
    **{
        f"status {status}": reply(GOOD, status=f"{status} Word")
        for status in (201, 202, 203, 204, 206, 300, 304, 400, 401, 403, 404, 429, 500, 502, 503)
    },
    "its own fault": reply({"success": False, "error-codes": ["internal-error"]}),
    "secret is missing": reply({"success": False, "error-codes": ["missing-input-secret"]}),
    "secret is wrong": reply(
        {"success": False, "error-codes": ["invalid-input-secret"]}, status="400 Bad Request"
    ),
    "secret is wrong, yet a yes": reply(PASSES | {"error-codes": ["invalid-input-secret"]}),
    "no word": b"",
    "no HTTP": b"220 mail.example ESMTP\r\n",
    "HTTP of a later day": reply(GOOD).replace(b"HTTP/1.1", b"HTTP/3.0"),
    "no number as status": reply(GOOD, status="OK 200"),
    "a number of five digits as status": reply(GOOD, status="20000 OK"),
    "too many headers": reply(GOOD, *[f"X-{n}: x" for n in range(200)]),
    "a header without end": reply(GOOD, "X: " + "x" * 70_000),
    "a chunk of no size": chunk("x"),
    "a chunk below nothing": chunk("-5"),
    "a chunk cut off": chunk("ffff", end=""),
    "no last chunk": chunk(f"{len(GOOD):x}", end=""),
}


@pytest.mark.parametrize("said", NO_VERDICT)
def test_without_a_verdict_nobody_gets_in_and_comments_wait(
    failing: Visitor, siteverify: Siteverify, caplog: pytest.LogCaptureFixture, said: str
) -> None:
    siteverify.script["all"] = [NO_VERDICT[said]], 0
    assert_down(failing)
    assert len(siteverify.asked) == 3
    (waiting,) = failing.served.house.store.cases("waiting", "", 0, 99, 9)
    assert waiting.held == "captcha_down"
    assert sum("[captcha] turnstile gives no verdict: " in line for line in caplog.messages) == 3
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "whole",
    [
        reply(spaced(ANSWER_LIMIT)),
        b"HTTP/1.0 200 OK\r\n\r\n" + spaced(ANSWER_LIMIT),
        CONTINUE + reply(GOOD),
        chunk(f"{len(GOOD):x}"),
    ],
    ids=["the longest", "of no stated length", "after a 100", "in a chunk"],
)
def test_an_answer_may_take_any_shape_that_is_http(
    visitor: Visitor, siteverify: Siteverify, whole: bytes
) -> None:
    siteverify.script["all"] = [whole], 0
    assert visitor.say()["comment"]["status"] == "visible"


@all_kinds
@pytest.mark.parametrize("more", [{"captcha_secret": "0xAnotherSecret-7713"}])
def test_a_wrong_secret_is_the_owners_fault_and_is_not_in_the_log(
    failing: Visitor, siteverify: Siteverify, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert_down(failing, siteverify.issue())
    reason = f"[captcha] {KINDS[kind][0]} gives no verdict: it refuses [captcha] secret"
    assert caplog.messages.count(reason) == 3
    assert "0xAnotherSecret-7713" not in caplog.text


def test_a_provider_that_is_not_there_is_down(failing: Visitor, siteverify: Siteverify) -> None:
    siteverify.stop()
    assert_down(failing)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(
    failing: Visitor, siteverify: Siteverify, bystander: Siteverify, status: int
) -> None:
    away = reply(GOOD, f"Location: {bystander.url}", status=f"{status} Elsewhere")
    siteverify.script["all"] = [away], 0
    assert_down(failing)
    assert (len(siteverify.asked), bystander.connections) == (3, 0)


def test_a_proxy_of_the_environment_hears_nothing(
    visitor: Visitor, siteverify: Siteverify, bystander: Siteverify, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, bystander.url.removesuffix(Siteverify.PATH))
        monkeypatch.setenv(name.upper(), bystander.url.removesuffix(Siteverify.PATH))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert visitor.say(captcha_token=siteverify.issue())["comment"]["status"] == "visible"
    assert (siteverify.connections, bystander.connections) == (1, 0)


@pytest.mark.parametrize(
    ("named", "trusted"),
    [
        ("IP:127.0.0.1", True),
        ("IP:127.0.0.1", False),
        ("IP:127.0.0.2", True),
        ("DNS:other.example", True),
    ],
)
def test_the_secret_is_told_only_to_whom_a_trusted_certificate_names(
    failing: Visitor,
    siteverify: Siteverify,
    named: str,
    trusted: bool,
    certificates: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", certificates(named)[0])
    token = siteverify.issue()
    if trusted and named == "IP:127.0.0.1":
        assert failing.say(captcha_token=token)["comment"]["status"] == "visible"
        assert len(siteverify.asked) == 1
    else:
        assert_down(failing, token)
        assert siteverify.asked == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hcaptcha"])
def test_who_drips_or_is_silent_is_hung_up_on(app: App, siteverify: Siteverify) -> None:
    """Each would pass in the end: after 12 seconds, or 20."""
    head, _, body = reply(PASSES).partition(b"\r\n\r\n")
    drip = b"X: " + b"x" * 120 + b"\r\n\r\n"
    siteverify.script |= {
        "silent": ([b"", reply(PASSES)], 20),
        "drips in the head": ([head + b"\r\n", *[bytes([b]) for b in drip], body], 0.1),
        "drips in the body": ([head + b"\r\n\r\n", *[b" "] * 120, body], 0.1),
        "goes on for ever": ([CONTINUE] * 120 + [reply(PASSES)], 0.1),
    }
    said = [asker(app, "/comments", captcha_token=t, content=t) for t in siteverify.script]
    told = at_once(said)
    assert [t.json["comment"]["status"] for t in told] == ["waiting"] * 4


ENDLESS = {
    "body": b"HTTP/1.1 200 OK\r\n\r\n",
    "head": b"HTTP/1.1 200 OK\r\nX: ",
    "chunk": reply(b"", chunked=True) + b"ffffffff\r\n",
    "chunk of -1": reply(b"", chunked=True) + b"-1\r\n",  # which http.client reads to its end
}


@pytest.mark.parametrize("where", ENDLESS)
def test_who_never_ends_is_hung_up_on_at_the_limit(
    failing: Visitor, siteverify: Siteverify, where: str
) -> None:
    part = b" " * 65_536
    siteverify.script["x"] = [ENDLESS[where], *[part] * 1000], 0
    failing.login(status=503)
    until(lambda: not siteverify.busy, 10)  # they hung up, and keep no connection
    assert siteverify.sent < 500 * len(part)  # what the buffers of the system hold


@pytest.mark.parametrize(
    "more",
    [
        {"captcha_verify_url": f"http://{place}/siteverify"}
        for place in ("127.0.0.1:99999", "127.0.0.1:x", "127.0.0.1:1:2", "a..b", "a" * 64)
    ],
)
def test_an_address_that_leads_nowhere_stops_the_start_or_is_down(
    failing: Visitor, more: dict[str, str]
) -> None:
    try:
        load_config(None, {"COMMENTD_CAPTCHA_VERIFY_URL": more["captcha_verify_url"]})
    except SettingsFault:
        return
    assert_down(failing)


# Rest and crowds


def test_after_five_failures_in_a_row_nobody_asks_for_half_a_minute(
    failing: Visitor, outside: Outside, siteverify: Siteverify
) -> None:
    siteverify.script["all"] = [b""], 0
    for _ in range(5):
        failing.login(status=503)
    assert_down(failing)
    outside.time += 29
    assert failing.login(status=503) == DOWN
    assert len(siteverify.asked) == 5
    outside.time += 1
    failing.login(status=503)  # one tries, and nothing is better
    failing.login(status=503)
    assert len(siteverify.asked) == 6
    outside.time += 30
    siteverify.script.clear()
    failing.login(captcha_token=siteverify.issue(), status=401)
    failing.login(captcha_token=siteverify.issue(), status=401)
    assert len(siteverify.asked) == 8


@pytest.mark.parametrize(("token", "status"), [("good", 401), ("junk", 403)])
def test_any_verdict_ends_the_row(
    failing: Visitor, siteverify: Siteverify, token: str, status: int
) -> None:
    siteverify.script["x"] = [b""], 0
    for _ in range(2):
        for _ in range(4):
            failing.login(status=503)
        failing.login(captcha_token=siteverify.issue() if token == "good" else token, status=status)
    assert len(siteverify.asked) == 10


def test_a_clock_set_back_does_not_keep_it_at_rest(
    failing: Visitor, outside: Outside, siteverify: Siteverify
) -> None:
    siteverify.script["x"] = [b""], 0
    for _ in range(6):
        failing.login(status=503)
    outside.time -= DAY
    failing.login(captcha_token=siteverify.issue(), status=401)
    assert len(siteverify.asked) == 6


def test_visitors_with_bad_tokens_bring_nobody_down(
    visitor: Visitor, siteverify: Siteverify
) -> None:
    mismatch = {"success": False, "error-codes": ["sitekey-secret-mismatch"]}  # of hCaptcha
    siteverify.script["of another site"] = [reply(mismatch)], 0
    elsewhere = [siteverify.issue(hostname="evil.example") for _ in range(4)]
    bad = {"success": False, "error-codes": ["invalid-input-response"]}
    siteverify.script["malformed"] = [reply(bad, status="400 Bad Request")], 0
    for token in ["x"] * 4 + ["of another site"] * 4 + elsewhere + ["malformed"] * 5:
        visitor.login(captcha_token=token, status=403)
    visitor.login(captcha_token=siteverify.issue(), status=401)


def test_whoever_has_twenty_tokens_checked_in_a_minute_waits(
    app: App, visitor: Visitor, outside: Outside, siteverify: Siteverify
) -> None:
    for path in ["/auth/login"] * 10 + ["/comments"] * 10:
        visitor.post_json(path, BODIES[path] | {"captcha_token": "x"}, status=403)
    token = siteverify.issue()
    for path, body in BODIES.items():
        told = visitor.post_json(path, body | {"captcha_token": token}, status=429)
        assert 1 <= int(told.headers["Retry-After"]) <= 60
    assert len(siteverify.asked) == 20
    neighbour = Visitor(app, "198.51.100.9")
    neighbour.login(captcha_token=siteverify.issue(), status=401)
    outside.time += 60
    visitor.login(captcha_token=token, status=401)


def test_four_ask_at_a_time_and_the_others_do_not_wait_long(
    app: App, siteverify: Siteverify
) -> None:
    siteverify.gate.clear()
    over: list[Any] = []

    def asks(number: int) -> None:
        text = {"content": str(number), "captcha_token": siteverify.issue()}
        over.append(asker(app, "/comments", **text)().json["comment"]["status"])

    threads = [threading.Thread(target=asks, args=(n,)) for n in range(5)]
    for thread in threads:
        thread.start()
    until(lambda: over)
    asked = len(siteverify.asked)
    siteverify.gate.set()
    for thread in threads:
        thread.join()
    assert (asked, over) == (4, ["waiting", *["visible"] * 4])


# Order


def wrong(path: str, **fields: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(path, {name: value}) for name, values in fields.items() for value in values]


MALFORMED = [
    *wrong("/comments", page_url=["", "a\0"], nickname=["", "x" * 65, 1], content=["", "x" * 2001]),
    *wrong("/comments", parent_id=["1", 0], email=["a"], website=["javascript:x"]),
    *wrong("/auth/register", email=["", "a", 1], nickname=["", "x" * 65, "\u202e", 1]),
    *wrong("/auth/register", password=["", "密" * 400, 1], request_id=[1, "x" * 65]),
    *wrong("/auth/login", email=["", "a", 1], password=["", "密" * 400, 1]),
    *[(path, {"captcha_token": token}) for path in BODIES for token in ("", 1, "x" * 4097, "\0")],
]


def test_a_slip_of_the_keyboard_never_reaches_the_provider(
    visitor: Visitor, siteverify: Siteverify
) -> None:
    token = siteverify.issue()
    told = {}
    for path, slip in MALFORMED:
        body = BODIES[path] | {"captcha_token": token} | slip
        status = visitor.post_json(path, body, expect_errors=True).status_int
        told[f"{path} {slip}"] = status, len(siteverify.asked)
        siteverify.asked.clear()
    assert {slip: seen for slip, seen in told.items() if seen != (400, 0)} == {}


def test_a_slip_of_the_keyboard_costs_neither_a_hash_nor_a_question(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = {"email": "ann@example.com", "token": "123456"}
    bodies = {**BODIES, "/auth/verify": user, "/comment/like": {"id": 1}}
    slips = [*MALFORMED, *wrong("/auth/verify", email=["", "a", 1], request_id=[1, "x" * 65])]
    slips += wrong("/auth/verify", token=["", 123456, "12345", "１２３４５６", "12345\n"])
    slips += wrong("/comment/like", id=["1", True, 1.0, 0, -1, 2**63, None, [1]], undo=[1, "yes"])
    work: list[str] = []
    for owner, name in ((commentd, "hashed"), (commentd.Store, "run"), (commentd.Store, "turn")):
        usual = getattr(owner, name)

        def watched(*args: Any, usual: Any = usual, name: str = name, **how: Any) -> Any:
            work.append(name)
            return usual(*args, **how)

        monkeypatch.setattr(owner, name, watched)
    for path, slip in slips:
        body = bodies[path] | {"captcha_token": "x"} | slip
        assert visitor.post_json(path, body, status=400)
        assert work == [], f"{path} {slip}"
    visitor.login(captcha_token="x", status=403)
    assert {"run", "turn"} >= {*work} > set()  # so the test knows how to look


def test_a_refusal_for_another_reason_leaves_the_token_good(
    visitor: Visitor, outside: Outside, siteverify: Siteverify
) -> None:
    for number in range(4):
        visitor.say(str(number), captcha_token=siteverify.issue())
    token = siteverify.issue()
    visitor.say("reply", captcha_token=token, parent_id=9, status=404)
    visitor.say("said after all", captcha_token=token)
    token = siteverify.issue()
    visitor.say("beyond the limit", captcha_token=token, status=429)
    outside.time += 60
    visitor.say("a minute later", captcha_token=token)


@pytest.mark.parametrize("more", [{"comments_login_required": True}])
def test_whom_the_door_is_closed_to_is_not_checked(
    visitor: Visitor, siteverify: Siteverify
) -> None:
    evil, plain = {"Origin": "https://evil.example"}, {"Content-Type": "text/plain"}
    for path, body in BODIES.items():
        sent = body | {"captcha_token": siteverify.issue()}
        visitor.post_json(path, sent, headers=evil, status=403)
        visitor.post(path, json.dumps(sent), headers=plain, status=415)
        visitor.post_json(path, sent | {"x": "x" * 65_536}, status=413)
    visitor.say(status=401)
    visitor.say(headers={"Authorization": "Bearer x"}, status=401)
    assert siteverify.asked == []


# What is told, what is needed


@all_kinds
def test_pages_are_told_the_provider_and_the_site_key_and_no_secret(
    visitor: Visitor, kind: str
) -> None:
    told = visitor.get("/captcha")
    provider = KINDS[kind][0]
    assert told.json == {"provider": provider, "site_key": SITE_KEY, "action": "commentd"}
    listed = visitor.get("/comments", {"url": PAGE, "view": "threads"})
    shown = listed.json["settings"]
    assert (shown["captcha"], shown["site_key"]) == (provider, SITE_KEY)
    assert SECRET not in told.text + listed.text


NEEDED = {
    "COMMENTD_CAPTCHA_SITE_KEY": (SITE_KEY, "[captcha] site_key"),
    "COMMENTD_CAPTCHA_SECRET": (SECRET, "[captcha] secret"),
    "COMMENTD_SITE_ORIGINS": (ORIGIN, "[site] origins"),
}


@pytest.mark.parametrize("provider", ["turnstile", "hcaptcha", "recaptcha"])
@pytest.mark.parametrize("lacking", NEEDED)
def test_a_provider_lacks_what_is_not_set(provider: str, lacking: str) -> None:
    environ = {"COMMENTD_CAPTCHA_PROVIDER": provider} | {k: v for k, (v, _) in NEEDED.items()}
    assert load_config(None, environ).captcha_provider == provider
    for nothing in ({lacking: ""}, {}):
        left = {k: v for k, v in environ.items() if k != lacking} | nothing
        with pytest.raises(SettingsFault) as fault:
            load_config(None, left)
        assert str(fault.value) == f"[captcha] provider = {provider} needs {NEEDED[lacking][1]}"


@pytest.mark.slow
def test_the_program_does_not_start_without_a_secret_and_says_why(start: Start) -> None:
    service = start(waits=False, captcha={"provider": "hcaptcha"})
    assert service.process.wait(20) == 2
    for _, name in NEEDED.values():
        assert f"[captcha] provider = hcaptcha needs {name}" in service.said


@pytest.mark.slow
def test_the_program_asks_the_provider_and_keeps_the_secret(
    start: Start, siteverify: Siteverify, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    keys = {"site_key": SITE_KEY, "secret": SECRET, "verify_url": siteverify.url}
    service = start(captcha={"provider": "turnstile", **keys}, site={"origins": ORIGIN})
    body, statuses = BODIES["/comments"], []
    for token in (siteverify.issue(), "x", siteverify.issue()):
        told = service.ask("POST", "/comments", body=body | {"captcha_token": token})
        statuses.append((told.status, told.json.get("comment", {}).get("status")))
        siteverify.secret = SECRET if token != "x" else "0xAnother"
    assert statuses == [(200, "visible"), (403, None), (200, "waiting")]
    assert "it refuses [captcha] secret" in service.said
    assert "verify_url is not https: secrets go in clear" in service.said
    assert not [word for word in (SECRET, *siteverify.issued) if word in service.said]
    command = Path(f"/proc/{service.process.pid}/cmdline")
    assert not command.exists() or SECRET not in os.fsdecode(command.read_bytes())
