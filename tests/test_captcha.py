"""Captchas of others: Turnstile, hCaptcha, reCAPTCHA 2 and 3, checked at a server of our own that
speaks as theirs do, or as none should. Each reply goes over a real connection."""

import gzip
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import webtest

from commentd import App, Config, PassedCaptchas, load_config, main, make_app
from support import inside
from support.captcha import CONTINUE, HOST, KINDS, ORIGIN, SECRET, SITE_KEY, Siteverify, reply
from support.client import CANARY, PAGE, Visitor
from support.comments import at_once
from support.mail import certificates as certificates  # a fixture
from support.service import request, services
from support.serving import RunningServer, next_response, until
from support.world import FakeWorld

DAY = 86400
FAILED = {"error": "人机验证失败，请重试", "code": "captcha_failed"}
SPENT = {"error": "人机验证已用过，请重试", "code": "captcha_failed"}
DOWN = {"error": "人机验证服务暂时没有响应，请稍后再试", "code": "captcha_down"}
USER = {"email": "ann@example.com", "password": CANARY}
BODIES: dict[str, dict[str, Any]] = {
    "/comments": {"page_url": PAGE, "nickname": "Ann", "content": "hi"},
    "/auth/register": {**USER, "nickname": "Ann"},
    "/auth/code": {"email": "bob@example.com"},
    "/auth/login": USER,
}


# Whoever reads one of these too kindly lets the visitor in.
PASSES = {"success": True, "hostname": HOST, "action": "commentd"}
GOOD = json.dumps(PASSES).encode()


def settings_of(siteverify: Siteverify) -> dict[str, Any]:
    return {
        "captcha_provider": KINDS[siteverify.kind][0],
        "captcha_site_key": SITE_KEY,
        "captcha_secret": SECRET,
        "captcha_verify_url": siteverify.url,
        "site_origins": (ORIGIN, "http://localhost:4000"),
    }


@pytest.fixture
def siteverify() -> Iterator[Siteverify]:
    server = Siteverify("turnstile")
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
def settings(siteverify: Siteverify) -> dict[str, Any]:
    return settings_of(siteverify)


StartWithProvider = Callable[..., AbstractContextManager[tuple[Visitor, Siteverify]]]


@pytest.fixture
def start_with_provider(
    config: Config, fake_world: FakeWorld, empty_database: Path, tmp_path: Path
) -> StartWithProvider:
    """Starts a service of its own with a provider of a kind; limits are off."""
    numbers = itertools.count()

    @contextmanager
    def started(
        kind: str = "turnstile", certificate: tuple[str, str] | None = None, **settings: Any
    ) -> Iterator[tuple[Visitor, Siteverify]]:
        path = shutil.copy(empty_database, tmp_path / f"{next(numbers)}.db")
        with closing(Siteverify(kind, certificate)) as server:
            usual = {**settings_of(server), "limits_enabled": False, "database_path": str(path)}
            changed = replace(config, **{**usual, **settings})
            with closing(make_app(changed, fake_world.world, rounds=1)) as app:
                visitor = Visitor(app)
                visitor.faults_allowed = True
                yield visitor, server

    return started


def asker(app: App, path: str, **fields: Any) -> Callable[[], Any]:
    """A request for another thread, which the invariants can't check while others write."""
    client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})
    return lambda: client.post_json(path, BODIES[path] | fields, expect_errors=True)


def assert_down(visitor: Visitor, token: str = "x") -> None:
    """Nobody gets in without a verdict, and what is written waits."""
    for path in ("/auth/register", "/auth/login"):
        response = visitor.post_json(path, BODIES[path] | {"captcha_token": token}, status=503)
        assert (response.json, response.headers["Retry-After"]) == (DOWN, "30")
    assert visitor.say(captcha_token=token)["comment"]["status"] == "waiting"
    listed = visitor.listing()
    assert (listed["comments"], listed["total"]) == ([], 0)


# A verdict


def test_a_good_captcha_token_passes_once_for_comments_registration_and_login(
    start_with_provider: StartWithProvider, fake_world: FakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    for kind in KINDS:
        with start_with_provider(kind) as (visitor, siteverify):
            tokens = [siteverify.issue() for _ in range(3)]
            assert visitor.say(captcha_token=tokens[0])["comment"]["status"] == "visible"
            visitor.register(captcha_token=tokens[1])
            visitor.served.deliver()
            visitor.verify(fake_world.code())
            assert visitor.login(captcha_token=tokens[2])["token"]
            # Nothing of the reader but the token is told: no address.
            own = {"secret": SECRET} | ({"sitekey": SITE_KEY} if kind == "hcaptcha" else {})
            assert siteverify.asked == [{**own, "response": token} for token in tokens]
            # Those that are spent here are not asked about again.
            spent, odd = siteverify.issue(), "&secret=x&é 验证 %00+\r\nX: y"
            siteverify.used.add(spent)
            wrong = [(token, SPENT) for token in tokens]
            wrong += [(token, FAILED) for token in ("x" * 2048, spent, odd)]
            for token, refusal in wrong:
                assert visitor.login(captcha_token=token, status=403) == refusal
                assert visitor.register("b@example.com", captcha_token=token, status=403) == refusal
                assert visitor.say("again", captcha_token=token, status=403) == refusal
            assert len(siteverify.asked) == 12
            assert {form["secret"] for form in siteverify.asked} == {SECRET}
            assert siteverify.asked[-1]["response"] == odd
    assert caplog.messages == []


def test_a_comment_with_the_nickname_of_an_admin_uses_up_no_captcha_token(
    app: App, visitor: Visitor, siteverify: Siteverify
) -> None:
    inside.add_account(app, "owner@example.com", "Owner", CANARY, "admin")
    token = siteverify.issue()
    refused = visitor.say(nickname="0wner", captcha_token=token, status=409)
    assert (refused["code"], siteverify.asked) == ("nickname_taken", [])
    assert visitor.say(nickname="Ann", captcha_token=token)["success"]


def test_a_client_has_twenty_captcha_tokens_checked_in_a_minute(
    app: App, visitor: Visitor, siteverify: Siteverify, fake_world: FakeWorld
) -> None:
    for number in range(20):
        assert visitor.login(captcha_token=f"wrong {number}", status=403) == FAILED
    assert visitor.login(captcha_token="wrong", status=429)["code"] == "too_many"
    assert len(siteverify.asked) == 20
    assert Visitor(app, "203.0.113.8").say(captcha_token=siteverify.issue())["success"]
    fake_world.time += 60
    assert visitor.say(captcha_token=siteverify.issue())["success"]


def test_a_captcha_token_that_has_passed_is_remembered_for_five_minutes() -> None:
    passed = PassedCaptchas()
    passed.add("first", 1000)
    passed.add("second", 1200)
    assert passed.has("first", 1200)
    assert not passed.has("third", 1200)
    passed.add("third", 1400)
    assert passed.passed_at == {"second": 1200, "third": 1400}


def test_a_captcha_token_sent_fifty_times_at_once_passes_once(
    start_with_provider: StartWithProvider,
) -> None:
    for path, forgets in itertools.product(BODIES, (False, True)):
        with start_with_provider() as (visitor, siteverify):
            siteverify.forgets = forgets  # then the single use is ours to see to
            token, app = siteverify.issue(), visitor.served
            numbered = [{"content": str(n)} if path == "/comments" else {} for n in range(50)]
            calls = [asker(app, path, captcha_token=token, **each) for each in numbered]
            responses = at_once(calls)
        done = 401 if path == "/auth/login" else 200  # there is no such account
        assert {t.status_int for t in responses} <= {done, 403, 503}, path
        passed = [t for t in responses if t.status_int == done and '"waiting"' not in t.text]
        assert len(passed) <= 1, (path, forgets)  # 0 if the database is busy after it was spent


OURS: list[tuple[str, dict[str, Any]]] = [
    ("turnstile", {"hostname": "localhost"}),
    ("turnstile", {"hostname": "comments.example"}),  # the page of the service itself
    ("hcaptcha", {"score": 0.9}),  # there, the higher the worse
    ("recaptcha 3", {"score": 0.5}),
    ("recaptcha 3", {"score": 1}),
]
FOREIGN: list[tuple[str, dict[str, Any]]] = [
    ("hcaptcha", {"hostname": f"x.{HOST}"}),
    ("hcaptcha", {"hostname": f"{HOST}.evil.example"}),
    ("hcaptcha", {"hostname": ORIGIN}),
    ("hcaptcha", {"hostname": ""}),
    ("hcaptcha", {"hostname": None}),
    ("hcaptcha", {"hostname": True}),
    ("hcaptcha", {"hostname": [HOST]}),
    ("recaptcha 3", {"hostname": f"x.{HOST}"}),
    ("recaptcha 3", {"hostname": f"{HOST}.evil.example"}),
    ("recaptcha 3", {"hostname": ORIGIN}),
    ("recaptcha 3", {"hostname": ""}),
    ("recaptcha 3", {"hostname": None}),
    ("recaptcha 3", {"hostname": True}),
    ("recaptcha 3", {"hostname": [HOST]}),
    ("turnstile", {"hostname": ...}),
    ("hcaptcha", {"hostname": ...}),
    ("recaptcha 2", {"hostname": ...}),
    ("recaptcha 3", {"hostname": ...}),
    ("turnstile", {"hostname": "evil.example"}),
    ("hcaptcha", {"hostname": "evil.example"}),
    ("recaptcha 2", {"hostname": "evil.example"}),
    ("recaptcha 3", {"hostname": "evil.example"}),
    ("turnstile", {"action": "login"}),
    ("turnstile", {"action": "Commentd"}),
    ("turnstile", {"action": ""}),
    ("turnstile", {"action": None}),
    ("turnstile", {"action": ["commentd"]}),
    ("turnstile", {"action": ...}),
    ("recaptcha 3", {"action": "login"}),
    ("recaptcha 3", {"action": "Commentd"}),
    ("recaptcha 3", {"action": ""}),
    ("recaptcha 3", {"action": None}),
    ("recaptcha 3", {"action": ["commentd"]}),
    ("recaptcha 3", {"action": ...}),
    ("recaptcha 3", {"score": 0.49}),
    ("recaptcha 3", {"score": -1}),
    ("recaptcha 3", {"score": None}),
    ("recaptcha 3", {"score": "0.9"}),
    ("recaptcha 3", {"score": True}),
    ("recaptcha 3", {"score": [0.9]}),
    ("recaptcha 3", {"score": ..., "action": "login"}),
]


TRIAL = [
    ("turnstile", "1x0000000000000000000000000000000AA", "example.com"),
    ("turnstile", "2x0000000000000000000000000000000AA", "example.com"),
    ("turnstile", "3x0000000000000000000000000000000AA", "example.com"),
    ("hcaptcha", "0x0000000000000000000000000000000000000000", "dummy-key-pass"),
    ("recaptcha 2", "6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe", "testkey.google.com"),
]


def test_a_captcha_passes_only_if_solved_on_our_pages_for_us_and_by_people(
    start_with_provider: StartWithProvider,
) -> None:
    for kind in KINDS:
        with start_with_provider(kind, server_public_url="https://comments.example") as (
            visitor,
            siteverify,
        ):
            client = webtest.TestApp(visitor.served)
            for cases, wanted in ((OURS, 200), (FOREIGN, 403)):
                for number, known in enumerate(k for each, k in cases if each == kind):
                    body = {"captcha_token": siteverify.issue(**known), "content": str(number)}
                    sent = BODIES["/comments"] | body
                    response = client.post_json("/comments", sent, expect_errors=True)
                    assert response.status_int == wanted, (kind, known)
                    assert wanted == 403 or response.json["comment"]["status"] == "visible"
    for kind, secret, host in TRIAL:  # public secrets, for which no host is looked at
        with start_with_provider(kind, captcha_secret=secret) as (visitor, siteverify):
            siteverify.secret = secret
            visitor.say(captcha_token=siteverify.issue(hostname=host, action=...))
            visitor.say("ho", captcha_token="x", status=403)


# No verdict

LIMIT = 65_536  # bytes that an answer may have


def spaced(size: int) -> bytes:
    return GOOD + b" " * (size - len(GOOD))


def chunk(size: str, data: bytes = GOOD, end: str = "\r\n0\r\n\r\n") -> bytes:
    return reply(size.encode() + b"\r\n" + data + end.encode(), chunked=True)


NO_VERDICT: dict[str, bytes] = {
    "success is a text": reply(PASSES | {"success": "true"}),
    "success is 1": reply(PASSES | {"success": 1}),
    "success is not there": reply({"hostname": HOST, "action": "commentd"}),
    "it is in a list": reply([PASSES]),
    "nothing": reply(b""),
    "cut off": reply(GOOD[:-1]),
    "nested deep": reply(GOOD[:-1] + b', "x": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "compressed": reply(gzip.compress(GOOD), "Content-Encoding: gzip"),
    **{
        f"status {status}": reply(GOOD, status=f"{status} Word")
        for status in (201, 204, 304, 400, 403, 429, 500)
    },
    **{
        f"it complains: {error}": reply({"success": False, "error-codes": [error]})
        for error in ("internal-error", "missing-input-secret")
    },
    "a fault of its own, with the token to blame": reply(
        {"success": False, "error-codes": ["invalid-input-response"]}, status="500 Word"
    ),
    "secret is wrong": reply(
        {"success": False, "error-codes": ["invalid-input-secret"]}, status="400 Bad Request"
    ),
    "secret is wrong, yet a yes": reply(PASSES | {"error-codes": ["invalid-input-secret"]}),
    "no word": b"",
    "no HTTP": b"220 mail.example ESMTP\r\n",
    "no number as status": reply(GOOD, status="OK 200"),
    "too many headers": reply(GOOD, *[f"X-{n}: x" for n in range(200)]),
    "a header without end": reply(GOOD, "X: " + "x" * 70_000),
    "a chunk below nothing": chunk("-5"),
    "no last chunk": chunk(f"{len(GOOD):x}", end=""),
}


YES = {
    "the longest": reply(spaced(LIMIT)),
    "of no stated length": b"HTTP/1.0 200 OK\r\n\r\n" + spaced(LIMIT),
    "after a 100": CONTINUE + reply(GOOD),
    "in a chunk": chunk(f"{len(GOOD):x}"),
}


@pytest.mark.slow
def test_comments_wait_where_the_captcha_provider_gives_no_verdict(
    start_with_provider: StartWithProvider, caplog: pytest.LogCaptureFixture
) -> None:
    with start_with_provider() as (visitor, siteverify):
        for name, verdict in NO_VERDICT.items():
            caplog.clear()
            siteverify.script["all"] = [verdict], 0
            siteverify.asked.clear()
            body = BODIES["/auth/login"] | {"captcha_token": "x"}
            response = visitor.post_json("/auth/login", body, status=503)
            assert (response.json, response.headers["Retry-After"]) == (DOWN, "30"), name
            assert visitor.register(status=503) == DOWN, name
            assert visitor.say(name)["comment"]["status"] == "waiting", name
            assert len(siteverify.asked) == 3, name
            failures = [line for line in caplog.messages if "turnstile gives no verdict: " in line]
            assert len(failures) == 3, name
            assert SECRET not in caplog.text
            siteverify.script.clear()
            visitor.login(captcha_token=siteverify.issue(), status=401)  # a verdict ends the row
        assert visitor.listing()["total"] == 0
        held = inside.sql(visitor.served, "SELECT DISTINCT held FROM comment")
        assert held == [("captcha_down",)]
        for name, verdict in YES.items():
            siteverify.script["all"] = [verdict], 0
            assert visitor.say(name, captcha_token=name)["comment"]["status"] == "visible", name


def test_a_wrong_captcha_secret_is_not_in_the_log(
    start_with_provider: StartWithProvider, caplog: pytest.LogCaptureFixture
) -> None:
    for kind in KINDS:
        caplog.clear()
        with start_with_provider(kind, captcha_secret="0xAnotherSecret-7713") as (
            visitor,
            siteverify,
        ):
            assert_down(visitor, siteverify.issue())
        reason = f"[captcha] {KINDS[kind][0]} gives no verdict: it refuses [captcha] secret"
        assert caplog.messages.count(reason) == 3
        assert "0xAnotherSecret-7713" not in caplog.text


def test_a_captcha_provider_that_can_not_be_reached_counts_as_down(
    start_with_provider: StartWithProvider,
) -> None:
    with start_with_provider() as (visitor, siteverify):
        siteverify.stop()
        assert_down(visitor)


def test_a_redirect_of_the_captcha_provider_is_not_followed(
    visitor: Visitor, siteverify: Siteverify, bystander: Siteverify
) -> None:
    visitor.faults_allowed = True
    for status in (301, 307):
        away = reply(GOOD, f"Location: {bystander.url}", status=f"{status} Elsewhere")
        siteverify.script["x"] = [away], 0
        assert visitor.login(status=503) == DOWN
    assert (len(siteverify.asked), bystander.connections) == (2, 0)


def test_captcha_requests_use_no_proxy_of_the_environment(
    visitor: Visitor, siteverify: Siteverify, bystander: Siteverify, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, bystander.url.removesuffix(Siteverify.PATH))
        monkeypatch.setenv(name.upper(), bystander.url.removesuffix(Siteverify.PATH))
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert visitor.say(captcha_token=siteverify.issue())["comment"]["status"] == "visible"
    assert (siteverify.connections, bystander.connections) == (1, 0)


@pytest.mark.slow
def test_the_captcha_secret_is_sent_only_to_a_host_that_a_trusted_certificate_names(
    start_with_provider: StartWithProvider,
    certificates: Callable[[str], tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for named, trusted in [
        ("IP:127.0.0.1", False),
        ("IP:127.0.0.1", True),
        ("IP:127.0.0.2", True),
        ("DNS:other.example", True),
    ]:
        certificate = certificates(named)
        if trusted:
            monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
        with start_with_provider(certificate=certificate) as (visitor, siteverify):
            token = siteverify.issue()
            if trusted and named == "IP:127.0.0.1":
                assert visitor.say(captcha_token=token)["comment"]["status"] == "visible"
                assert len(siteverify.asked) == 1
            else:
                assert_down(visitor, token)
                assert siteverify.asked == []


@pytest.mark.slow
def test_a_silent_captcha_provider_is_left_after_a_deadline(
    start_with_provider: StartWithProvider,
) -> None:
    with start_with_provider("hcaptcha") as (visitor, siteverify):
        siteverify.script |= {"silent": ([b"", reply(PASSES)], 20)}
        app = visitor.served
        calls = [asker(app, "/comments", captcha_token=t, content=t) for t in siteverify.script]
        responses = at_once(calls)
    assert [t.json["comment"]["status"] for t in responses] == ["waiting"]


ENDLESS = {
    "body": b"HTTP/1.1 200 OK\r\n\r\n",
    "head": b"HTTP/1.1 200 OK\r\nX: ",
    "chunk": reply(b"", chunked=True) + b"ffffffff\r\n",
    "chunk of -1": reply(b"", chunked=True) + b"-1\r\n",  # which http.client reads to its end
}


def test_an_endless_response_of_the_captcha_provider_is_cut_at_the_limit(
    visitor: Visitor, siteverify: Siteverify
) -> None:
    visitor.faults_allowed = True
    part = b" " * 65_536
    for where, start in ENDLESS.items():
        siteverify.sent = 0
        siteverify.script["x"] = [start, *[part] * 1000], 0
        visitor.login(status=503)
        until(lambda: not siteverify.busy)  # they hung up, and keep no connection
        assert siteverify.sent < 500 * len(part), where  # what the buffers of the system hold


# Rest and crowds


def test_bad_captcha_tokens_do_not_make_the_provider_count_as_down(
    visitor: Visitor, siteverify: Siteverify
) -> None:
    for token, error, status in (
        ("of another site", "sitekey-secret-mismatch", "200 OK"),  # of hCaptcha
        ("malformed", "invalid-input-response", "400 Bad Request"),
    ):
        bad = reply({"success": False, "error-codes": [error]}, status=status)
        siteverify.script[token] = [bad], 0
    elsewhere = [siteverify.issue(hostname="evil.example") for _ in range(4)]
    for token in ["x"] * 4 + ["of another site"] * 4 + elsewhere + ["malformed"] * 5:
        visitor.login(captcha_token=token, status=403)
    visitor.login(captcha_token=siteverify.issue(), status=401)


@pytest.mark.slow
def test_a_client_has_twenty_captcha_tokens_checked_a_minute(
    app: App, visitor: Visitor, fake_world: FakeWorld, siteverify: Siteverify
) -> None:
    for path in ["/auth/login"] * 10 + ["/comments"] * 10:
        visitor.post_json(path, BODIES[path] | {"captcha_token": "x"}, status=403)
    token = siteverify.issue()
    for path, body in BODIES.items():
        response = visitor.post_json(path, body | {"captcha_token": token}, status=429)
        assert 1 <= int(response.headers["Retry-After"]) <= 60
    assert len(siteverify.asked) == 20
    neighbour = Visitor(app, "198.51.100.9")
    neighbour.login(captcha_token=siteverify.issue(), status=401)
    fake_world.time += 60
    visitor.login(captcha_token=token, status=401)


def test_four_requests_ask_the_captcha_provider_at_a_time_and_others_wait_shortly(
    app: App, siteverify: Siteverify
) -> None:
    siteverify.gate.clear()
    texts = [{"content": str(n), "captcha_token": siteverify.issue()} for n in range(5)]
    with ThreadPoolExecutor(5) as threads:
        asks = [threads.submit(asker(app, "/comments", **text)) for text in texts]
        until(lambda: len(siteverify.asked) == 4 and any(ask.done() for ask in asks))
        over = [ask for ask in asks if ask.done()]
        siteverify.gate.set()
    assert len(over) == 1
    statuses = {ask: ask.result().json["comment"]["status"] for ask in asks}
    assert statuses.pop(over[0]) == "waiting"
    assert {*statuses.values()} == {"visible"}


@pytest.mark.parametrize("path", ["/auth/login", "/auth/register"])
def test_a_slow_captcha_provider_keeps_nobody_from_a_password(
    app: App, siteverify: Siteverify, path: str
) -> None:
    siteverify.gate.clear()
    with ThreadPoolExecutor(1) as threads, ExitStack() as answering:
        answering.callback(siteverify.gate.set)
        asked = threads.submit(asker(app, path, captcha_token=siteverify.issue()))
        until(lambda: len(siteverify.asked) == 1)
        with inside.seats_taken(app, 8):
            assert not asked.done(), "no seat for hashing is taken while the provider is asked"
    assert asked.result().status_int == {"/auth/login": 401, "/auth/register": 200}[path]


def test_a_slow_captcha_provider_keeps_nobody_from_reading(
    app: App, siteverify: Siteverify
) -> None:
    siteverify.gate.clear()
    body = BODIES["/comments"] | {"captcha_token": siteverify.issue()}
    with closing(RunningServer(app, fast=True)) as server, ExitStack() as answering:
        answering.callback(siteverify.gate.set)
        writer, reader = server.connect(), server.connect()
        writer.sendall(request("POST", "/comments", body=body))
        until(lambda: len(siteverify.asked) == 1)
        reader.sendall(request("GET", f"/comments?url={PAGE}"))
        assert next_response(reader).startswith(b"HTTP/1.1 200 OK\r\n")
        siteverify.gate.set()
        assert b'"status":"visible"' in next_response(writer), "the provider was asked in vain"


# Order


# What is wrong is seen before the provider is asked.
MALFORMED: dict[str, list[dict[str, Any]]] = {
    "/comments": [{"page_url": ""}, {"nickname": "x" * 65}, {"content": 1}, {"parent_id": "1"}],
    "/auth/register": [{"email": "a"}, {"nickname": "\u202e"}, {"password": ""}, {"request_id": 1}],
    "/auth/code": [{"email": "a"}, {"request_id": 1}],
    "/auth/login": [{"email": "a"}, {"password": "密" * 1025}],
}
BAD_TOKENS = [{"captcha_token": token} for token in ("", 1, "x" * 4097, "\0")]


def test_a_malformed_request_reaches_no_captcha_provider_and_spends_nothing(
    visitor: Visitor, siteverify: Siteverify
) -> None:
    token = siteverify.issue()
    for path, slips in MALFORMED.items():
        for slip in (*slips, *BAD_TOKENS):
            visitor.post_json(path, BODIES[path] | {"captcha_token": token} | slip, status=400)
            assert siteverify.asked == [], f"{path} {slip}"
    # Neither the token nor how often one may do this.
    visitor.say(captcha_token=token)
    visitor.register(captcha_token=siteverify.issue())
    visitor.login(captcha_token=siteverify.issue(), status=401)


def test_a_refusal_for_another_reason_leaves_the_captcha_token_good(
    visitor: Visitor, fake_world: FakeWorld, siteverify: Siteverify
) -> None:
    for number in range(4):
        visitor.say(str(number), captcha_token=siteverify.issue())
    token = siteverify.issue()
    visitor.say("reply", captcha_token=token, parent_id=9, status=404)
    visitor.say("said after all", captcha_token=token)
    token = siteverify.issue()
    visitor.say("beyond the limit", captcha_token=token, status=429)
    fake_world.time += 60
    visitor.say("a minute later", captcha_token=token)
    token = siteverify.issue()
    visitor.say("reply", captcha_token=token, parent_id=9, status=404)
    fake_world.time += 300
    visitor.say("after five minutes", captcha_token=token, status=403)


# What is told, what is needed


def test_pages_are_told_the_captcha_provider_and_the_site_key_and_no_secret(
    start_with_provider: StartWithProvider,
) -> None:
    for kind, (provider, *_) in KINDS.items():
        with start_with_provider(kind) as (visitor, _):
            response = visitor.get("/captcha")
            expected = {"provider": provider, "site_key": SITE_KEY, "action": "commentd"}
            assert response.json == expected
            listed = visitor.get("/comments", {"url": PAGE, "view": "threads"})
            shown = listed.json["settings"]
            assert (shown["captcha"], shown["site_key"]) == (provider, SITE_KEY)
            assert SECRET not in response.text + listed.text


NEEDED = {
    "COMMENTD_CAPTCHA_SITE_KEY": (SITE_KEY, "[captcha] site_key"),
    "COMMENTD_CAPTCHA_SECRET": (SECRET, "[captcha] secret"),
    "COMMENTD_SITE_ORIGINS": (ORIGIN, "[site] origins"),
}


def test_a_captcha_provider_needs_its_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for provider in ("turnstile", "hcaptcha", "recaptcha"):
        environ = {"COMMENTD_CAPTCHA_PROVIDER": provider} | {k: v for k, (v, _) in NEEDED.items()}
        assert load_config(None, environ).captcha_provider == provider
        for lacking, (_, name) in NEEDED.items():
            with pytest.raises(inside.REFUSALS, match="needs ") as error:
                load_config(None, environ | {lacking: ""})
            assert str(error.value) == f"[captcha] provider = {provider} needs {name}"
    path = tmp_path / "commentd.ini"
    path.write_text("[captcha]\nprovider = hcaptcha\n")
    assert main(["--config", str(path)]) == 2
    errors = capsys.readouterr().err
    for _, name in NEEDED.values():
        assert f"[captcha] provider = hcaptcha needs {name}" in errors


@pytest.mark.slow
def test_the_captcha_secret_is_in_no_log_command_line_or_response(
    tmp_path: Path, siteverify: Siteverify
) -> None:
    keys = {"site_key": SITE_KEY, "secret": SECRET, "verify_url": siteverify.url}
    with services(tmp_path) as start:
        service = start(captcha={"provider": "turnstile", **keys}, site={"origins": ORIGIN})
        statuses = []
        for token in (siteverify.issue(), "x", siteverify.issue()):
            body = BODIES["/comments"] | {"captcha_token": token}
            response = service.ask("POST", "/comments", body=body)
            statuses.append((response.status, response.json.get("comment", {}).get("status")))
            siteverify.secret = SECRET if token != "x" else "0xAnother"
        assert statuses == [(200, "visible"), (403, None), (200, "waiting")]
        command = Path(f"/proc/{service.process.pid}/cmdline")
        assert not command.exists() or SECRET not in os.fsdecode(command.read_bytes())
    assert "it refuses [captcha] secret" in service.output
    assert "verify_url is not https: secrets are sent unencrypted" in service.output
    assert not [word for word in (SECRET, *siteverify.issued) if word in service.output]
