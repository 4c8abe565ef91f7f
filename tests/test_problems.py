"""Refusals: every route, given what it does not want, answers `{error, code}` and changes nothing.

`Visitor` checks each response: never a 5xx, strict JSON, nothing changed in the database. The good
forms and queries that are spoilt here are those of test_openapi.py."""

import io
import json
import logging
import random
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import webtest

from commentd import App, Config, World, main, make_app
from support import inside
from support.api import NEED_TOKEN, OPERATIONS, ROUTES, Route
from support.client import CANARY, PAGE, Visitor
from support.database import dump
from support.full_service import FullService, fields_of, forms_of
from support.full_service import full_service as full_service  # a fixture
from support.full_service import reset as reset  # a fixture
from support.world import START

# What a link of an email opens: its rights are in the URL (test_notifications.py). What Telegram
# calls, with a secret in a header (test_telegram.py). What `check URL` asks (test_inspection.py).
SIGNED = ("/mail", "/chat/{name}", "/way-in")
GETS = [r for r in ROUTES if r.method == "GET" and r.path not in SIGNED]
WRITES = [r for r in ROUTES if r.method != "GET" and r.path not in SIGNED]
# Unless a setting says otherwise.
OFF = {"/metrics", "/picture", "/pictures/{name}", "/stickers/{file}"}
OFF |= {"/.well-known/security.txt"}
OFF |= {"/auth/with/{name}", "/auth/callback/{name}"}
VERIFY = "/auth/verify"
FAILURE = "验证码错误或已过期"


ODD = [[], [1], {}, {"a": 1}, 1.5, 1e300, "\ud800"]


WRONG: dict[type, list[Any]] = {
    str: [*ODD, True, 7, 10**30, "a\0b", "x" * 5000],
    int: [*ODD, True, "1", "", 0, -1, 1.0, 2**63, 10**30],
    bool: [*ODD, 0, 1, "yes", ""],
    list: [
        {},
        True,
        7,
        "1",
        "",
        [],
        [0],
        [-1],
        [2**63],
        ["1"],
        [""],
        [None],
        [True],
        [1.5],
        [1, True],
        [[1]],
        [{}],
        [1, [2]],
        [*range(1, 102)],
        {"1": 1},
        ["\ud800"],
    ],
    dict: [
        0,
        [],
        ["site_name"],
        "site_name",
        {},
        {"site_name": None},
        {"site_name": 1},
        {"site_name": ["A blog"]},
        {"site_name": "x" * 10_001},
        {"site_name": "\ud800"},
    ],
}


# What is not looked at in a good form: the link names an email address; nothing is to be merged.
# The settings that are changed need no password.
NOT_READ = [
    ("POST /admin/claim", "email"),
    ("PATCH /admin/pages/{page_id}", "merge"),
    ("PATCH /admin/settings", "password"),
]
no_limits = pytest.mark.parametrize("settings", [{"limits_enabled": False}], ids=["no limits"])


class Attacker(Visitor):
    """Somebody before a service that has one of everything; with the forms that are good there,
    and the tokens that each permission asks for."""

    full_service: FullService
    forms: dict[Route, dict[str, Any]]  # all that may be said
    required: dict[Route, list[str]]


@pytest.fixture
def attacker(full_service: FullService) -> Attacker:
    attacker = Attacker(full_service.app)
    attacker.full_service, attacker.forms, attacker.required = full_service, {}, {}
    for route in WRITES:
        forms = forms_of(OPERATIONS[str(route)])
        form: dict[str, Any] = forms[0] if forms else {"properties": {}}
        attacker.forms[route] = full_service.values(str(route), fields_of(form, whole=True))
        attacker.required[route] = [*fields_of(form, whole=False)]
    return attacker


def token_header(attacker: Attacker, route: Route) -> dict[str, str]:
    """For a route that wants a token, or that is about what is the account's."""
    wanted = route.needs_token or "{comment_id}" in route.path
    return (
        {"Authorization": f"Bearer {attacker.full_service.tokens[route.permission]}"}
        if wanted
        else {}
    )


JSON = "application/json"


def send(
    attacker: Attacker,
    route: Route,
    body: bytes | dict[str, Any],
    *,
    kind: str = JSON,
    **headers: str,
) -> Any:
    """Whatever the response is."""
    headers |= token_header(attacker, route)
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    write = getattr(attacker, route.method.lower())
    return write(route.url, data, content_type=kind, headers=headers, expect_errors=True)


def some(cases: list[Any], count: int, *about: object) -> list[Any]:
    """A few of many cases, others for each route and field, and the same at each run."""
    return random.Random(str([*map(str, about)])).sample(cases, count)


def assert_refused(route: Route, response: Any, status: int, codes: str, about: object) -> None:
    assert response.status_int == status, (str(route), about)
    if route.path == VERIFY:
        assert (response.text, response.content_type) == (FAILURE, "text/plain"), about
    else:
        assert re.fullmatch(codes, response.json["code"]), (str(route), about, response.json)


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"email=a@b.c",
    "half": b'{"n": 1',
    "two": b"{}{}",
    "list": b"[]",
    "null": b"null",
    "too deep": b'{"a":' + b"[" * 60_000,
    "double key": b'{"n": 1, "n": 1}',
    "double key inside": b'{"n": 1, "a": [{"b": 1, "b": 2}]}',
    "NaN": b'{"n": NaN}',
    "too large": b'{"n": 1e999}',
    "very long number": b'{"n": %s}' % (b"9" * 5000),
    "lone surrogate": b'{"a": "\\udc00"}',
    "Latin-1": '{"a": "é"}'.encode("latin-1"),
    "byte order mark": b'\xef\xbb\xbf{"a": 1}',
}


@pytest.mark.slow
def test_a_body_that_is_no_json_object_is_refused(attacker: Attacker) -> None:
    for route in WRITES:
        good = json.dumps(attacker.forms[route]).encode()
        for name, body in some([*BODIES.items()], 5, route):
            if body.startswith(b'{"') and body.endswith(b"}"):  # the form would do but for this
                body = good[:-1] + b", " * (good != b"{}") + body[1:]
            assert_refused(route, send(attacker, route, body), 400, "json_invalid", name)
        large = send(attacker, route, b" " * (64 * 1024 - 1) + b"{}")
        assert_refused(route, large, 413, "body_too_large", "64 KiB and 1")
    assert send(attacker, WRITES[0], b" " * (64 * 1024 - 2) + b"{}").status_int == 400


@pytest.mark.slow
def test_a_body_that_is_not_json_by_its_headers_is_refused(attacker: Attacker) -> None:
    kinds = [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=gbk",
        "application/jsonp",
        "text/json",
        "x",
    ]
    for route in WRITES:
        form = json.dumps(attacker.forms[route]).encode()
        for kind in some(kinds, 3, route):
            assert_refused(route, send(attacker, route, form, kind=kind), 415, "content_type", kind)


@pytest.mark.slow
@no_limits
def test_a_field_of_the_wrong_type_or_size_is_refused(attacker: Attacker) -> None:
    for route in WRITES:
        good = attacker.forms[route]
        for field, value in good.items():
            if (str(route), field) in NOT_READ or field == "versions":
                continue  # of versions, another is that of an edited comment
            codes = rf"({field}_(invalid|too_long|missing)|json_invalid|content_too_long)"
            for wrong in some(WRONG[type(value)], 3, route, field):
                response = send(attacker, route, good | {field: wrong})
                assert_refused(route, response, 400, codes, (field, wrong))
        for field in attacker.required[route]:
            left_out = {field}
            if "voucher" not in attacker.required[route]:
                left_out.add("voucher")  # it is a way of its own to sign in
            lacking = {name: value for name, value in good.items() if name not in left_out}
            for form in (lacking, lacking | {field: None}, lacking | {field: ""}):
                code = f"{field}_(missing|invalid)|status_missing"
                assert_refused(route, send(attacker, route, form), 400, code, field)
        if attacker.required[route]:
            for response in (send(attacker, route, {}), send(attacker, route, b"", kind="")):
                assert_refused(route, response, 400, r"\w+_missing|ids_invalid", "nothing")


# Queries, paths, methods, headers


QUERIES = """
    url url= url=%ff url=%00 url=a%0Ab url=a&url=b url=/&page=0 url=/&page=1.0 url=/&page=
    url=/&page=%D9%A1 url=/&page=1000001 url=/&page=99999999999999999999 url=/&page=1&page=1
    url=/&limit=101 url=/&limit=six url=/&view=tree url=/&sort=newest;DROP
    url=/&thread=-1 url=/&thread=9223372036854775808 url=/&around=x url=/&around=
""".split()  # noqa: SIM905


def test_a_query_that_is_wrong_is_refused(attacker: Attacker) -> None:
    for query in [*QUERIES, "url=" + "x" * 2049, "url=/&" + "a&" * 300]:
        code = attacker.get(f"/comments?{query}", status=400).json["code"]
        last = query.rpartition("&")[2].partition("=")[0]  # what is wrong stands last
        assert code in (f"{last}_invalid", "url_missing", "url_too_long", "url_invalid"), query
    attacker.get("/comments?url=/" + "&a" * 255)
    attacker.get("/comments?url=/" + "&a" * 256, status=400)
    for query in ("", "url=", "url=%ff", "url=%00", "&".join(["url=/"] * 101)):
        code = attacker.get(f"/pages?{query}", status=400).json["code"]
        assert code in ("url_missing", "url_invalid"), query


MORE = """
    admin=1 admin=true role=admin user_id=1 as=owner status=all status=waiting hidden=true all=1
    deleted=1 show_ip=full ip=full emails=1 email=eve@example.com include=email fields=* debug=1
    format=raw callback=hit jsonp=hit redirect=https://evil.example return_to=//evil.example next=//
""".split()  # noqa: SIM905


def test_no_parameter_of_a_query_shows_more(visitor: Visitor, app: App) -> None:
    visitor.say("seen", email="lu@example.cn")
    hidden = visitor.say("hidden")["comment"]["id"]
    inside.set_status(app, hidden, "waiting")
    robot = {"User-Agent": "a bot"}  # whose looking is no view
    lists = ["/comments", "/comments?view=threads", "/comments/latest", "/pages", "/feed.atom"]
    for path in [*lists, "/thread", "/me", "/captcha", "/health", "/home.js"]:
        asked = f"{path}{'&' if '?' in path else '?'}url={PAGE}"
        plain = visitor.get(asked, headers=robot, expect_errors=True)
        for word in MORE:
            answer = visitor.get(f"{asked}&{word}", headers=robot, expect_errors=True)
            assert (answer.status, answer.body) == (plain.status, plain.body), word
            assert sorted(answer.headers.items()) == sorted(plain.headers.items())


def test_settings_change_over_http_by_one_route_of_admins() -> None:
    changing = {r for r in ROUTES if "settings" in r.path and r.method != "GET"}
    assert {(r.method, r.permission) for r in changing} == {("PATCH", "admin")}
    assert [r.path for r in ROUTES if "export" in r.path] == ["/me/export"]
    names = {f.name for f in fields(Config)} - {"site_name", "webhook_url", "privacy_policy_url"}
    for label, operation in OPERATIONS.items():
        for form in forms_of(operation):
            assert names.isdisjoint(form["properties"]), label


def raw(visitor: Visitor, path: bytes, query: bytes = b"", method: str = "GET") -> Any:
    """A request whose path and query are these bytes, as waitress hands them on."""
    request = webtest.TestRequest.blank("/", method=method)
    request.environ["PATH_INFO"] = path.decode("latin-1")
    request.environ["QUERY_STRING"] = query.decode("latin-1")
    return visitor.do_request(request, expect_errors=True)


def test_a_query_in_utf8_without_escapes_is_understood(attacker: Attacker) -> None:
    attacker.say(page_url="/你好/")
    for url in ("/你好/".encode(), quote("/你好/").encode()):
        assert raw(attacker, b"/comments", b"url=" + url).json["total"] == 1
    for url in (b"/\xe9", b"/\xff", b"/\xed\xa0\x80"):
        answer = raw(attacker, b"/comments", b"url=" + url)
        assert (answer.status_int, answer.json["code"]) == (400, "url_invalid")


PATHS = """
    /nothing /comments/ /comments/1/x /auth /metrics /admin/ /admin/nothing /admin/../commentd.db
    /Admin /mail/ /link.html /emails.json /words/ /languages/de.json /words/../home.js
    /words/xx.json /static/home.js /static/places4.db /places4.db /commentd.py /commentd.db
    /home.html /home.js/ /.. /../../etc/passwd /home.js/../../commentd.py /..%2fcommentd.py
    /%2e%2e/commentd.py /..%5ccommentd.py /.git/config /%2fetc%2fpasswd /home.js%00 /%00
    /%0d%0aSet-Cookie:x /<name> /auth%2flogin%2f /%e4%bd%a0%e5%a5%bd
""".split()  # noqa: SIM905


def test_an_unknown_path_is_404(attacker: Attacker) -> None:
    for path in PATHS:
        for method in ("get", "post_json", "delete"):
            answer = getattr(attacker, method)(path, expect_errors=True)
            assert answer.status_int in ((404,) if method == "get" else (404, 405)), path
            if answer.status_int == 404:
                assert answer.json == {"error": "没有这个网址", "code": "not_found"}


def test_a_path_that_is_not_utf8_is_refused(attacker: Attacker) -> None:
    for path in (b"/\xff", b"/health\xff", b"/comm\xc3ents", b"/\xc0\xae", b"/\xed\xa0\x80"):
        response = raw(attacker, path, b"url=/")
        assert (response.status_int, response.json["code"]) == (400, "url_invalid"), path


def like(path: str) -> re.Pattern[str]:
    """The paths of a route."""
    return re.compile(re.sub("{.*?}", "[^/]+", re.sub("{[a-z]+_id}", "[0-9]+", path)))


@pytest.mark.slow
def test_a_method_that_a_path_does_not_have_is_405(attacker: Attacker) -> None:
    for route in ROUTES:
        allowed = {r.method for r in ROUTES if like(r.path).fullmatch(route.url)}
        others = {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"} - allowed
        for method in some(sorted(others), 2, route):
            answer = attacker.request(route.url, method=method, expect_errors=True)
            assert (answer.status_int, answer.json["code"]) == (405, "method_not_allowed")
            assert set(answer.headers["Allow"].split(",")) == allowed
    for header in ("X-HTTP-Method-Override", "X-HTTP-Method"):
        assert "ok" in attacker.get("/health", headers={header: "POST"}).json


def test_head_is_get_without_a_body_and_writes_nothing(attacker: Attacker, app: App) -> None:
    before = dump(inside.database_path(app))
    heads = {}
    for route in [*GETS, *WRITES]:
        path = route.url + "?url=/new/"
        heads[route] = attacker.head(
            path, headers=token_header(attacker, route), expect_errors=True
        )
        app.tick()
        assert dump(inside.database_path(app)) == before, path
    for route, head in heads.items():
        path = route.url + "?url=/new/"
        get = attacker.get(path, headers=token_header(attacker, route), expect_errors=True)
        there = {r.path: 404 if r.path in OFF else 200 for r in GETS}
        assert head.status_int == get.status_int == there.get(route.path, 405), path
        assert (head.body, head.content_type) == (b"", get.content_type)


HEARD = "x-Heard7"  # and never said again


@pytest.mark.slow
@no_limits
def test_a_refusal_repeats_nothing_that_was_sent(attacker: Attacker) -> None:
    own = ("User-Agent", "Referer", "Origin", "Host", "X-Forwarded-For", "Accept-Language")
    headers = dict.fromkeys(own, f"https://{HEARD}.example") | {"If-None-Match": HEARD}
    answers = [attacker.get(f"/{HEARD}/{HEARD}?{HEARD}={HEARD}", headers=headers, status=404)]
    for query in ("url=%ff", "url=/&page=", "url=/&sort=", "url=/&view=", "url=/&thread=", "url=&"):
        answers.append(attacker.get(f"/comments?{query}{HEARD}", headers=headers, status=400))
    for route, good in attacker.forms.items():
        form = dict.fromkeys(good, HEARD) | {HEARD: HEARD}
        for body in (form, form | {"email": f"{HEARD}\n@e.cn"}, json.dumps(HEARD).encode()):
            answers.append(send(attacker, route, body, **headers))
        for name, value in good.items():
            answers.append(send(attacker, route, good | {name: f"{HEARD}\0{value}"}))
        answers.append(send(attacker, route, form, kind=f"text/{HEARD}", **headers))
        answers.append(
            send(attacker, route, form, **{**headers, "Authorization": f"Bearer {HEARD}"})
        )
    assert len(answers) > 100
    for answer in answers:
        assert HEARD.lower() not in str(answer.headers).lower()
        if answer.status_int >= 400:
            assert HEARD.lower() not in answer.text.lower()


# Permissions


PERMISSIONS = {
    "admin": {"/admin/comments/{comment_id}", "/admin/reply"}
    | {"/admin/comments/{comment_id}/author"}
    | {"/admin/pages", "/admin/pages/{page_id}", "/admin/users", "/admin/users/{user_id}"}
    | {"/admin/users/{user_id}/picture"}
    | {"/admin/blocks", "/admin/blocks/{block_id}", "/admin/outbox", "/admin/outbox/{message_id}"}
    | {"/admin/audit", "/admin/settings", "/admin/figures", "/admin/backup"}
    | {"/admin/inspection"}
    | {"/admin/sign-in", "/admin/sessions/{session_id}", "/admin/app", "/admin/app/key"},
    "moderator": {"/admin/comments", "/admin/logout"},
    "admin_on_blog": {"/comments/waiting", "/comments/{comment_id}/moderate"},
    "user": {
        "/auth/logout",
        "/me",
        "/me/code",
        "/me/export",
        "/me/identities",
        "/me/picture",
        "/page/follow",
    },
    "anyone": {"/comments", "/comment/like", "/page/like", "/page/react", "/pages"}
    | {"/comments/{comment_id}/report"}
    | {"/comments/preview", "/comments/{comment_id}", "/comments/latest"},
    "public": {
        "/auth/register",
        "/auth/verify",
        "/auth/code",
        "/auth/login",
        "/auth/site",
        "/captcha",
        "/faces",
    }
    | {"/health", "/origin", "/way-in", "/"}
    | {"/{name}", "/admin_page/{name}", "/words/{name}", "/mail", "/feed.atom", "/thread", *OFF}
    | {"/fragment", "/fragment.css"}
    | {"/admin", "/admin/captcha", "/admin/login", "/admin/link", "/admin/claim"}
    | {"/admin/help", "/chat/{name}"},
}


def test_the_permission_of_every_route_is_listed_in_the_tests_too() -> None:
    found = {(name, label.split()[1]) for label, name in inside.permissions().items()}
    listed = {(name, path) for name, paths in PERMISSIONS.items() for path in paths}
    here = "tests/test_problems.py: PERMISSIONS"
    wrong = [f'{here}["{name}"] lacks "{path}"' for name, path in found - listed]
    wrong += [f'{here}["{name}"] has "{path}", commentd.py not' for name, path in listed - found]
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.slow
@no_limits
def test_every_route_refuses_permissions_below_it(
    attacker: Attacker, reset: Callable[[], object]
) -> None:
    for route in [*GETS, *(route for route in ROUTES if route not in GETS)]:
        if route.method != "GET":
            reset()
        permissions_of(attacker, route)


def permissions_of(attacker: Attacker, route: Route) -> None:
    def call(authorization: str) -> Any:
        headers = {"Authorization": authorization} if authorization else {}
        how: dict[str, Any] = {"headers": headers, "expect_errors": True}
        if route.method == "GET":
            return attacker.get(f"{route.url}?url=/", **how)
        return getattr(attacker, f"{route.method.lower()}_json")(f"{route.url}?url=/", {}, **how)

    def assert_401(response: Any, code: str) -> None:
        assert response.status_int == 401, str(route)
        assert response.json["code"] == code, str(route)
        assert response.headers["WWW-Authenticate"] == "Bearer"

    tokens, nobody = attacker.full_service.tokens, call("")
    if route.needs_token:
        assert_401(nobody, "login_required")
    else:
        assert nobody.status_int != 401, str(route)
    altered = f"Bearer {tokens['user']}x"
    for bad in some(["Bearer", "Bearer ", "Bearer x", "bearer a.b.c", altered], 2, route):
        response = call(bad)
        if route.permission == "public":
            assert response.status_int == nobody.status_int, str(route)
            assert "WWW-Authenticate" not in response.headers
        else:
            assert_401(response, "token_invalid")
    for weaker in NEED_TOKEN[: NEED_TOKEN.index(route.permission)] if route.needs_token else ():
        assert call(f"Bearer {tokens[weaker]}").status_int in (401, 403), (str(route), weaker)
    assert call("Basic eDp5").status_int == nobody.status_int
    response = call(f"Bearer {tokens[route.permission]}")
    if route.needs_token:
        assert response.status_int in (200, 400), str(route)
    else:
        own = route.method == "DELETE"  # the account's own comment
        assert response.status_int == (200 if own else nobody.status_int), str(route)


# A failure of our own


def test_a_failure_of_the_service_reveals_nothing_of_its_cause(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    broken = list[bool]()

    def now() -> float:
        if broken:
            raise RuntimeError(f"SELECT * FROM account -- {CANARY}")
        return START

    app = make_app(replace(config, token_key="k" * 32), World(clock=now))
    visitor = Visitor(app)
    visitor.faults_allowed = True
    broken.append(True)
    for route in ROUTES:
        caplog.clear()
        origin = "http://localhost:80" if route.url.startswith("/admin") else "https://blog.example"
        call = getattr(visitor, "get" if route.method == "GET" else f"{route.method.lower()}_json")
        body: list[Any] = [] if route.method == "GET" else [{}]
        response = call(route.url, *body, headers={"Origin": origin}, status=500)
        if route.path == VERIFY:
            assert response.text == FAILURE
        else:
            assert response.json == {"error": "服务出错了，请稍后再试", "code": "internal"}
        shared = None if route.path.startswith("/admin") else "*"  # other sites may not read those
        assert response.headers.get("Access-Control-Allow-Origin") == shared
        (record,) = caplog.records
        assert record.exc_info
        assert record.getMessage().endswith(" failed")
    broken.clear()
    app.close()


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger with the handler of the service, and what it writes."""
    written, logger = io.StringIO(), logging.getLogger("of this test")
    handler = inside.log_handler(written)
    logger.addHandler(handler)
    yield logger, written
    logger.removeHandler(handler)


def test_a_log_event_is_one_line_of_plain_text(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = log
    logger.warning("one %s", "a\nERROR b\r\x1b[2Jc\u2028d\u202ee\x85f")
    try:
        raise ValueError("\nINFO g\x1b]0;h\x07")
    except ValueError:
        logger.exception("two")
    lines = written.getvalue().split("\n")
    events = [line for line in lines if line and not line.startswith("    ")]
    assert events == ["WARNING one a", "ERROR two"]
    assert all(line.isprintable() for line in lines)


def test_repeated_log_events_are_a_line_a_minute(log: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = log
    events = [(0, "full")] * 1000 + [(1, "locked")] * 2 + [(59, "full"), (60, "full"), (61, "full")]
    events += [(-10, "full")]  # the clock was set back
    events += [(300, str(number)) for number in range(2000)]
    for seconds, text in events:
        record = logger.makeRecord("", logging.ERROR, "", 0, "failed: %s", (text,), None)
        record.created = START + seconds
        logger.handle(record)
    lines = written.getvalue().splitlines()
    assert lines[:4] == [
        "ERROR failed: full",
        "ERROR failed: locked",
        "ERROR failed: full",
        "ERROR failed: full",
    ]
    assert lines[4:] == [f"ERROR failed: {number}" for number in range(2000)]


def test_control_characters_from_a_mail_server_do_not_reach_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`check` shows what a mail server says, without its control characters."""
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            client, _ = listener.accept()
            with client:
                client.sendall("554 go\x1b[2J \u202eaway\x9b now\r\n".encode())

        thread = threading.Thread(target=refuse)
        thread.start()
        settings = {"HOST": "127.0.0.1", "PORT": str(listener.getsockname()[1])}
        settings |= {"SECURITY": "none", "SENDER": "blog@example.com"}
        for name, value in settings.items():
            monkeypatch.setenv(f"COMMENTD_MAIL_{name}", value)
        assert main(["check"]) == 1
        thread.join()
    printed = capsys.readouterr().out
    (line,) = [line for line in printed.splitlines() if "away" in line]
    assert line.isprintable()
