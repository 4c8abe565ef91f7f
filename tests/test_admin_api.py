"""The admin's side of the API: who gets in, and all that an admin may do there."""

import hashlib
import html
import re
import sqlite3
import time
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import jwt
import pytest
import webtest

import commentd
from commentd import ROUTES, SETTINGS, App, Config, World, __version__, main, make_app
from support import inside
from support.admin import (
    BLOG,
    OWNER,
    audit,
    block,
    blocks,
    change,
    do,
    drop,
    ids,
    moderate,
    new_admin,
    new_owner,
    pages,
    pin,
    queue,
    rows,
    with_settings,
)
from support.admin import owner as owner  # a fixture
from support.client import CANARY, PAGE, Visitor, stranger
from support.commands import run, run_here
from support.comments import NO_LIMITS, SHOWN, at_once, solved
from support.database import assert_whole, dump
from support.faults import little_room
from support.inside import admin_link as link
from support.inside import token_of
from support.sources import MANUAL
from support.world import START, FakeWorld

MINUTE, HOUR, DAY = 60, 3600, 86400
GONE = {"error": "评论不存在", "code": "comment_gone"}
BAD_LINK = {"error": "链接已用过或已过期，请运行 commentd admin 再取一个", "code": "link_invalid"}
REFUSED = {"error": "邮箱或密码错误", "code": "wrong_credentials"}
UNSIGNED = {"error": "请先登录", "code": "login_required"}
INVALID = {"error": "登录已失效，请重新登录", "code": "token_invalid"}
NOT_ADMIN = {"error": "只有管理员可以这样做", "code": "not_admin"}
WRONG_PASSWORD = {"error": "密码不对", "code": "wrong_password"}
NOW = "2026-11-18 19:06:40"
ON_BLOG = pytest.mark.parametrize("settings", [{"site_origins": (BLOG,), "limits_enabled": False}])


def case(**changes: Any) -> dict[str, Any]:
    """What a moderator reads of a guest's comment."""
    added: dict[str, Any] = {
        "status": "visible",
        "held": "",
        "email": "",
        "holder": None,
        "known": 0,
        "trusted": False,
        "page_id": 1,
    }
    added |= {
        "page_title": "",
        "page_link": "",
        "foreign": False,
        "closed": False,
        "parent": None,
        "version": ANY,
    }
    added |= {"learnt": "", "spam": None, "reports": []}
    return {**SHOWN, "ip": "203.0.113.7", **added, **changes}


def status_of(db: sqlite3.Connection) -> dict[int, str]:
    return dict(db.execute("SELECT id, status FROM comment"))


# Who is let in

AT_ADMIN = ("MODERATOR", "ADMIN")
CLOSED = [r for r in ROUTES if r.permission.name in (*AT_ADMIN, "ADMIN_ON_BLOG")]
OPEN = {
    "GET /admin",
    "GET /admin/help",
    "GET /admin/captcha",
    "POST /admin/login",
    "POST /admin/link",
    "POST /admin/claim",
}


def name_of(route: Any) -> str:
    return f"{route.method} {route.path}"


def test_all_routes_below_admin_need_an_admin_but_for_the_ways_in() -> None:
    below = {
        name_of(r): r.permission.name
        for r in ROUTES
        if r.path == "/admin" or r.path.startswith("/admin/")
    }
    assert {name for name, rank in below.items() if rank not in AT_ADMIN} == OPEN
    assert {below[name] for name in OPEN} == {"PUBLIC"}
    assert {name for name, rank in below.items() if rank == "MODERATOR"} == {
        "GET /admin/comments",
        "POST /admin/comments",
        "POST /admin/logout",
    }
    admins = [r.path for r in ROUTES if r.permission.name in AT_ADMIN]
    assert all(path.startswith("/admin/") for path in admins)


@pytest.mark.parametrize("language", MANUAL)
def test_the_manual_is_a_page_for_each_topic(visitor: Visitor, language: str) -> None:
    topics = MANUAL[language]
    listed = visitor.get("/admin/help", {"lang": language}).text
    assert f'<html lang="{language}' in listed
    groups = re.findall("<h2>(.*?)</h2>", listed)
    assert groups == (
        ["Start", "Your blog", "Run", "Reference"]
        if language == "en"
        else ["开始", "你的博客", "日常", "参考"]
    )
    for name, text in topics.items():
        title = text.splitlines()[0].removeprefix("# ")
        assert title in html.unescape(listed)
        page = visitor.get("/admin/help", {"lang": language, "topic": name}).text
        assert f"<h1>{title}</h1>" in html.unescape(page)
        assert page.count("<table>") == len(re.findall(r"^\|[-|]+\|$", text, re.M)), name
        assert not re.search(r"<[^>]* style=", page)  # the policy of our pages refuses it
    for query in ({"topic": "dance"}, {"lang": "zh", "topic": "../en/api"}):
        visitor.get("/admin/help", query, status=404)
    assert visitor.get("/admin/help", {"lang": "de"}).text == visitor.get("/admin/help").text


def call(visitor: Visitor, route: Any, token: str, query: str = "?url=/") -> Any:
    path = re.sub(r"<\w+:id>", "1", route.path) + query
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if route.method == "GET":
        return visitor.get(path, headers=headers, expect_errors=True)
    write = getattr(visitor, f"{route.method.lower()}_json")
    return write(path, {}, headers=headers, expect_errors=True)


@with_settings()
def test_only_admins_may_use_the_routes_below_admin(
    app: App, ann: Visitor, db: sqlite3.Connection
) -> None:
    ann.say()
    ann.authorization = None
    for name in ("owner", "former", "blocked", "out"):
        new_admin(app, f"{name}@example.com", name)
    for route in CLOSED:
        db.execute("UPDATE account SET blocked = 0")
        db.execute("UPDATE account SET role = 'admin' WHERE nickname = 'former'")
        admins = route.permission.name in AT_ADMIN
        right, wrong = ("admin", "login") if admins else ("login", "admin")
        to_a_login = (401, INVALID) if admins else (403, NOT_ADMIN)
        former = token_of(app, "former@example.com", right)
        blocked, out = (token_of(app, f"{name}@example.com", right) for name in ("blocked", "out"))
        a_user = token_of(app, "ann@example.com", right)  # of another use none is ever given out
        db.execute("UPDATE account SET role = 'user' WHERE nickname = 'former'")
        db.execute("UPDATE account SET blocked = 1 WHERE nickname = 'blocked'")
        db.execute("UPDATE account SET version = version + 1 WHERE nickname = 'out'")
        good = token_of(app, OWNER, right)
        altered = good[:-3] + ("AAA" if good[-3:] != "AAA" else "BBB")
        claims = jwt.decode(good, options={"verify_signature": False})
        refusals = {
            "": (401, UNSIGNED),
            token_of(app, "ann@example.com", "login"): to_a_login,
            a_user: (403, NOT_ADMIN),
            former: (403, NOT_ADMIN),
            blocked: (401, INVALID),
            out: (401, INVALID),
            token_of(app, OWNER, wrong): (401, INVALID),
            token_of(app, OWNER, right, ago=7 * DAY): (401, INVALID),
            token_of(app, OWNER, right, ago=-DAY): (401, INVALID),
            altered: (401, INVALID),
            jwt.encode(claims, "k" * 32, "HS256"): (401, INVALID),
        }
        for token, (status, words) in refusals.items():
            answer = call(ann, route, token)
            assert (answer.status_int, answer.json) == (status, words), name_of(route)
            assert answer.headers.get("WWW-Authenticate") == ("Bearer" if status == 401 else None)
            assert not token or answer.headers["Cache-Control"] == "no-store"
        assert call(ann, route, "", f"?url=/&token={good}&access_token={good}").json == UNSIGNED
        db.execute("UPDATE account SET blocked = 1 WHERE nickname = 'Ann'")
        assert call(ann, route, a_user).json == INVALID, name_of(route)
        assert call(ann, route, good).status_int in (200, 400, 404)


@pytest.mark.parametrize("settings", [{"site_origins": (BLOG,)}], ids=["blog"])
def test_another_site_can_do_nothing_with_the_admins_token(owner: Visitor) -> None:
    writes = [r for r in ROUTES if r.path.startswith("/admin") and r.method != "GET"]
    for origin in (BLOG, "https://evil.example", "null", "http://localhost:81"):
        for route in writes:
            path = re.sub(r"<\w+:id>", "1", route.path)
            send = getattr(owner, f"{route.method.lower()}_json")
            answer = send(path, {}, headers={"Origin": origin}, status=403)
            assert answer.json["code"] == "origin_refused"
    for origin in ("http://localhost:80", "https://localhost:80"):  # its own, by TLS or not
        assert owner.post_json("/admin/logout", {}, headers={"Origin": origin}, status="*")
    assert owner.get("/admin/comments", status=401).json == INVALID


def test_the_token_of_the_admin_page_opens_nothing_else(owner: Visitor) -> None:
    assert owner.get("/comments?url=/", status=401).json == INVALID
    assert owner.post_json("/comments/preview", {"content": "hi"}, status=401).json == INVALID
    assert owner.post_json("/auth/logout", {}, status=401).json == INVALID
    assert owner.get("/comments/waiting?url=/", status=401).json == INVALID
    assert queue(owner)["more"] is False
    good = dict([owner.authorization])["Bearer"]
    owner.authorization = None
    assert owner.get("/admin/comments", headers={"Cookie": f"token={good}"}, status=401)
    assert do(owner, "logout", 401, token=good, access_token=good) == UNSIGNED


# How somebody becomes an admin


def claim(visitor: Visitor, link: str, status: int = 200, **fields: Any) -> Any:
    form = {"link": link, "email": OWNER, "nickname": "Owner", "password": CANARY}
    body = {name: value for name, value in {**form, **fields}.items() if value is not None}
    return visitor.post_json("/admin/claim", body, status=status).json


def enter(visitor: Visitor, token: str, status: int = 200) -> Any:
    headers = {"Authorization": f"Bearer {token}"}
    return visitor.get("/admin/comments", headers=headers, status=status).json


def test_the_link_of_the_start_makes_an_admin_once(visitor: Visitor, app: App) -> None:
    secret = link(app)
    assert re.fullmatch("[0-9a-f]{32}", secret)
    assert secret not in str(dump(inside.database_path(app)))
    response = claim(visitor, secret)
    token = response.pop("token")
    assert response == {"nickname": "Owner", "email": OWNER, "role": "admin"}
    assert enter(visitor, token)["comments"] == []
    assert visitor.login(OWNER)["role"] == "admin"
    assert claim(visitor, secret, 403, email="eve@example.com") == BAD_LINK
    assert visitor.post_json("/admin/link", {"link": secret}, status=403).json == BAD_LINK
    headers = {"Authorization": f"Bearer {token}"}
    lines = visitor.get("/admin/audit", headers=headers).json["audit"]
    line = {"id": 1, "created_at": NOW, "who": "Owner", "action": "claim"}
    assert lines == [{**line, "subject": "", "detail": "", "was": None}]


def test_the_start_prints_a_link_while_there_is_no_admin(
    visitor: Visitor, app: App, capsys: pytest.CaptureFixture[str]
) -> None:
    inside.greet(app, 8080)
    printed = r"http://127\.0\.0\.1:8080/admin#link=([0-9a-f]{32}) "
    (secret,) = re.findall(printed, capsys.readouterr().out)
    assert claim(visitor, secret)["email"] == OWNER
    inside.greet(app, 8080)
    assert "link=" not in capsys.readouterr().out


PUBLIC = {"server_public_url": "https://c.example"}
DEMO = PUBLIC | {"site_demo": True, "mail_host": "m"}
NO_EMAILS = "No mail server ([mail] host or provider): emails are printed here"


@pytest.mark.parametrize(
    ("settings", "url", "tries", "emails"),
    [
        ({}, "http://127.0.0.1:8080", ["Try it: http://127.0.0.1:8080/"], [NO_EMAILS]),
        (PUBLIC, "https://c.example", [], [f"{NO_EMAILS}, so readers can't register"]),
        (DEMO, "https://c.example", ["Try it: https://c.example/"], []),
    ],
    ids=["local", "public", "demo"],
)
def test_the_start_prints_the_next_steps_of_the_owner(
    visitor: Visitor,
    app: App,
    url: str,
    tries: list[str],
    emails: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LC_ALL", "C")
    served = f"serves {inside.database_path(app)} on http://127.0.0.1:8080"
    first = [f"commentd {__version__} {served}", *tries]

    inside.greet(app, 8080)
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    secret = re.findall("link=([0-9a-f]{32})", printed[len(first)])[0]
    admin = f"Become admin: {url}/admin#link={secret} (works once, within an hour)"
    assert printed == [*first, admin, *emails]

    claim(visitor, secret)
    inside.greet(app, 8080)
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert printed == [*first, f"Moderate: {url}/admin", *emails]


@pytest.mark.parametrize(
    ("listen", "here"), [("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]"), ("192.0.2.1", "192.0.2.1")]
)
def test_links_in_the_terminal_can_be_opened_where_the_service_listens_on_all_addresses(
    listen: str, here: str, app: App, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commentd.greet(app, f"http://{listen}:8080")
    printed = capsys.readouterr().out
    assert f" on http://{listen}:8080\n" in printed
    assert f"Become admin: http://{here}:8080/admin#link=" in printed
    environ = {
        "COMMENTD_SERVER_LISTEN": f"{listen}:8080",
        "COMMENTD_DATABASE_PATH": inside.database_path(app),
    }
    _, text, _ = run_here(tmp_path, "admin", "ann@example.com", **environ)
    assert f"\n  http://{here}:8080/admin#link=" in text


@pytest.mark.slow
def test_the_command_makes_a_link_beside_the_service(
    visitor: Visitor, app: App, fake_world: FakeWorld, tmp_path: Path
) -> None:
    there: dict[str, Any] = {"COMMENTD_DATABASE_PATH": inside.database_path(app)}
    there |= {"COMMENTD_SERVER_PUBLIC_URL": "https://c.example/talk"}
    code, text, errors = run(tmp_path, "admin", "Owner@Example.com", **there)
    (secret,) = re.findall(r" https://c\.example/talk/admin#link=([0-9a-f]{32})\n", text)
    assert (code, errors) == (0, "")
    fake_world.time = time.time()  # the command has the clock of the machine
    assert claim(visitor, secret, email=None)["email"] == OWNER
    code, text, errors = run(tmp_path, "admin", "no address", **there)
    assert (code, text, "no address" in errors) == (2, "", True)


def test_an_admin_link_says_its_purpose_and_looking_at_it_changes_nothing(
    ann: Visitor, app: App
) -> None:
    ann.authorization = None
    for email, known in (("", False), ("ann@example.com", True), ("new@example.com", False)):
        secret = link(app, email)
        before = dump(inside.database_path(app))
        for _ in range(3):
            ann.get("/admin", {"link": secret})
            ann.head("/admin", {"link": secret})
            ann.get("/admin/claim", {"link": secret}, status=405)
            ann.get("/admin/link", {"link": secret}, status=405)
            answer = ann.post_json("/admin/link", {"link": secret})
            purpose = {"email": email, "role": "admin", "known": known, "admin": False}
            assert answer.json == purpose
        assert dump(inside.database_path(app)) == before
        assert claim(ann, secret, email=email or OWNER)["token"]


def test_an_admin_link_is_good_for_an_hour(
    visitor: Visitor, app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    secret = link(app, OWNER)
    for seconds in (HOUR, HOUR + 1, 30 * DAY):
        fake_world.time = START + seconds
        assert claim(visitor, secret, 403) == BAD_LINK
        assert visitor.post_json("/admin/link", {"link": secret}, status=403).json == BAD_LINK
    fake_world.time = START + HOUR - 1
    assert claim(visitor, secret)["token"]
    link(app, OWNER)  # which nobody takes
    fake_world.time += HOUR
    app.tick()
    assert rows(db, "SELECT * FROM admin_link") == []


def test_an_admin_link_opens_with_its_own_secret_alone(visitor: Visitor, app: App) -> None:
    secret = link(app)
    hash = hashlib.sha256(secret.encode()).hexdigest()
    for wrong in (hash, secret[:-1], secret + "0", secret + " ", "x", "%", "\u2603" * 16, "0" * 32):
        assert claim(visitor, wrong, 403) == BAD_LINK
    assert claim(visitor, secret, 400, password=None)["code"] == "password_missing"
    assert claim(visitor, secret, 400, email=None)["code"] == "email_missing"
    assert claim(visitor, secret, 400, nickname=None)["code"] == "nickname_missing"
    assert claim(visitor, secret, 400, email="Owner <o@b.example>")["code"] == "email_invalid"
    assert claim(visitor, secret, 400, nickname="Ow\u202ener")["code"] == "nickname_invalid"
    assert claim(visitor, secret)["token"]


def test_an_admin_has_a_password_of_eight_characters(visitor: Visitor, app: App) -> None:
    secret = link(app)
    for short in ("abc", "七个字的密码啊"):
        assert claim(visitor, secret, 400, password=short)["code"] == "password_too_short"
    hashed = hashlib.sha256(b"abc").hexdigest()  # whose length only the page knows
    assert claim(visitor, secret, password=hashed)["token"]
    change = {"password": hashed, "new_password": "1234567"}
    visitor.authorization = ("Bearer", inside.token_of(app, OWNER))
    assert visitor.patch_json("/me", change, status=400).json["code"] == "password_too_short"
    assert visitor.patch_json("/me", change | {"new_password": "12345678"}).json["success"]
    inside.add_account(app, "ann@example.com", "Ann", CANARY)
    visitor.authorization = ("Bearer", inside.token_of(app, "ann@example.com"))
    change = {"password": CANARY, "new_password": "abc"}
    assert visitor.patch_json("/me", change).json["success"], "readers have any password"


def test_a_new_admin_link_for_an_email_address_ends_the_one_before(
    visitor: Visitor, app: App
) -> None:
    first, second = link(app, OWNER), link(app, OWNER)
    assert visitor.post_json("/admin/link", {"link": first}, status=403).json == BAD_LINK
    assert visitor.post_json("/admin/link", {"link": second}).json["email"] == OWNER
    assert 429 in {visitor.post_json("/admin/link", {}, status="*").status_int for _ in range(121)}


def test_links_for_any_email_address_are_good_beside_each_other(visitor: Visitor, app: App) -> None:
    """`commentd add` prints one, and the service another when it starts."""
    for each in (link(app), link(app)):
        assert visitor.post_json("/admin/link", {"link": each}).json["email"] == ""


@pytest.mark.parametrize("blocked", [0, 1])
def test_the_link_of_the_start_ends_when_there_is_an_admin(
    visitor: Visitor, app: App, db: sqlite3.Connection, blocked: int
) -> None:
    start = link(app)
    new_admin(app, "a@b.example", "A")
    db.execute("UPDATE account SET blocked = ?", (blocked,))
    assert claim(visitor, start, 403) == BAD_LINK
    assert claim(visitor, link(app), 403) == BAD_LINK
    assert claim(visitor, link(app, OWNER))["email"] == OWNER
    assert rows(db, "SELECT email FROM admin_link") == []


def test_an_admin_link_for_an_email_address_makes_no_other_admin(
    visitor: Visitor, app: App
) -> None:
    response = claim(visitor, link(app, OWNER), email="eve@example.com", nickname="Eve")
    assert (response["email"], response["nickname"]) == (OWNER, "Eve")
    assert visitor.login("eve@example.com", status=401) == REFUSED


@NO_LIMITS
def test_an_admin_link_for_an_account_sets_a_new_password_and_keeps_its_nickname(
    ann: Visitor, app: App, db: sqlite3.Connection
) -> None:
    ann.say()
    old = dict([ann.authorization])["Bearer"]
    ann.authorization = None
    db.execute("UPDATE account SET blocked = 1")
    secret = link(app, "ann@example.com")
    response = claim(ann, secret, email=None, nickname=None, password="another one")
    token = response.pop("token")
    assert response == {"nickname": "Ann", "email": "ann@example.com", "role": "admin"}
    assert enter(ann, token)["comments"][0]["user_id"] == 1
    assert ann.login(status=401) == REFUSED  # the password is another
    assert ann.login(password="another one")["role"] == "admin"
    headers = {"Authorization": f"Bearer {old}"}
    assert ann.post_json("/auth/logout", {}, headers=headers, status=401).json == INVALID


@NO_LIMITS
def test_an_admin_link_ends_older_registrations_of_the_email_address(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    visitor.register(OWNER, password="a stranger's")
    app.deliver()
    claim(visitor, link(app, OWNER))
    visitor.verify(fake_world.code(), OWNER, status=400)
    assert visitor.login(OWNER)["role"] == "admin"
    assert visitor.login(OWNER, password="a stranger's", status=401) == REFUSED


@NO_LIMITS
def test_the_first_to_register_is_a_user(ann: Visitor, db: sqlite3.Connection) -> None:
    ann.authorization = None
    assert ann.login()["role"] == "user"
    for fields in ({"role": "admin"}, {"verified": True, "id": 1, "is_admin": True}):
        ann.register("eve@example.com", **fields)
    assert {role for (role,) in rows(db, "SELECT role FROM account")} == {"user"}
    form = {"email": "ann@example.com", "password": CANARY, "captcha_token": "x"}
    assert do(ann, "login", 401, **form) == REFUSED


def log_in_as_admin(visitor: Visitor, email: str = OWNER, status: int = 200, **fields: Any) -> Any:
    form = {"email": email, "password": CANARY, "captcha_token": "x", **fields}
    return visitor.post_json("/admin/login", form, status=status).json


@NO_LIMITS
def test_only_an_admin_signs_in_at_the_admin_page(
    ann: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    ann.authorization = None
    response = log_in_as_admin(ann)
    assert enter(ann, response.pop("token"))["counts"]["visible"] == 0
    assert response == {"nickname": "Owner", "email": OWNER, "role": "admin"}
    assert log_in_as_admin(ann, password="wrong", status=401) == REFUSED
    assert log_in_as_admin(ann, "nobody@example.com", status=401) == REFUSED
    assert log_in_as_admin(ann, "ann@example.com", status=401) == REFUSED  # a user
    enter(ann, ann.login(OWNER)["token"], 401)  # what the blog's scripts can read
    assert audit(owner) == [("Owner", "sign_in", "", "")]
    db.execute("UPDATE account SET blocked = 1")
    assert log_in_as_admin(ann, status=401) == REFUSED


def test_guesses_at_the_admins_password_are_limited(owner: Visitor, visitor: Visitor) -> None:
    for _ in range(5):
        assert log_in_as_admin(visitor, password="wrong", status=401) == REFUSED
    form = {"email": OWNER, "password": CANARY, "captcha_token": "x"}
    answer = visitor.post_json("/admin/login", form, status=429)
    assert int(answer.headers["Retry-After"]) <= 600
    assert log_in_as_admin(Visitor(visitor.served, ip="192.0.2.1"))["email"] == OWNER
    for _ in range(5):
        change(owner, "users/1", 403, role="admin", password="wrong")
    assert change(owner, "users/1", 429, role="admin", password=CANARY)["code"] == "too_many"
    assert do(owner, "backup", 429, password=CANARY)["code"] == "too_many"


def test_signing_out_at_the_admin_page_ends_its_token_and_that_of_the_widget(
    owner: Visitor, app: App
) -> None:
    assert do(owner, "logout") == {"success": True}
    assert queue(owner, 401) == INVALID
    assert owner.widget.get("/comments/waiting?url=/", status=401).json == INVALID
    assert enter(Visitor(app), log_in_as_admin(Visitor(app))["token"])["more"] is False


@pytest.mark.parametrize("provider", ["altcha", "turnstile"])
def test_an_admin_signs_in_with_our_own_captcha(
    config: Any, fake_world: FakeWorld, provider: str
) -> None:
    def broken(*_: object, **__: object) -> tuple[int, bytes]:
        raise OSError("down")

    there = {"captcha_site_key": "k", "captcha_secret": "s", "site_origins": (BLOG,)}
    config = replace(config, captcha_provider=provider, **there)
    world = World(clock=lambda: fake_world.time, send_email=fake_world.send, fetch=broken)
    with closing(make_app(config, world, rounds=1)) as app:
        visitor = Visitor(app)
        new_admin(app)
        challenge = visitor.get("/admin/captcha").json
        assert set(challenge) == {"provider", "parameters", "signature"}
        token = solved(visitor, "/admin/captcha")
        assert log_in_as_admin(visitor, captcha_token="x", status=403)["code"] == "captcha_failed"
        assert log_in_as_admin(visitor, captcha_token=token)["email"] == OWNER
        assert log_in_as_admin(visitor, captcha_token=token, status=403)["code"] == "captcha_failed"


# The queue


@ON_BLOG
def test_a_moderator_reads_all_of_a_comment(ann: Visitor, owner: Visitor, app: App) -> None:
    Visitor(app).say(
        "from a guest", nickname="Lu", email="lu@example.cn", website="https://lu.example"
    )
    ann.say("an answer", parent_id=1, page_url=f"{BLOG}{PAGE}")
    found = queue(owner)
    guest = case(nickname="Lu", content="from a guest", html="<p>from a guest</p>\n")
    guest |= {"email": "lu@example.cn", "website": "https://lu.example"}
    guest |= {"page_link": f"{BLOG}{PAGE}"}
    above = {"id": 1, "nickname": "Lu", "content": "from a guest"}
    answer = case(id=2, content="an answer", html="<p>an answer</p>\n", parent_id=1, user_id=1)
    answer |= {"role": "user", "email": "ann@example.com", "page_link": f"{BLOG}{PAGE}"}
    answer |= {"parent": above}
    counts = {"waiting": 0, "spam": 0, "visible": 2, "deleted": 0, "reported": 0, "undelivered": 0}
    learnt = {"ham": 0, "spam": 0, "active": False}
    lists = {"comments": [answer, guest], "more": False}
    assert found == {**lists, "counts": counts, "filter": learnt, "blogs": []}
    assert queue(owner, comment=1) == {**found, "comments": [guest]}
    assert queue(owner, comment=99)["comments"] == []
    again = Visitor(app).say("once more", nickname="Lu", email="lu@example.cn")["comment"]["id"]
    assert {c["id"]: c["known"] for c in queue(owner)["comments"]} == {again: 1, 2: 0, 1: 1}


@ON_BLOG
def test_the_queue_links_web_urls_and_marks_foreign_hosts(visitor: Visitor, owner: Visitor) -> None:
    evil = "https://blog.example.evil.example/"
    for page_url, page_link, foreign in (
        ("/你好/", f"{BLOG}/%E4%BD%A0%E5%A5%BD/", False),
        (f"{BLOG}/a/", f"{BLOG}/a/", False),
        ("https://evil.example/a", "https://evil.example/a", True),
        ("https://blog.example@evil.example/", "", True),
        (evil, evil, True),
        ("//evil.example/b", "", False),
        ("javascript:alert(1)", "", False),
        ("/\\evil.example/", f"{BLOG}/%5Cevil.example/", False),
        ("https://evil.example:99999/", "", True),
        ('https://evil.example/"><script>', "https://evil.example/%22%3E%3Cscript%3E", True),
    ):
        visitor.say(f"on {page_url}", page_url=page_url)
        found = queue(owner)["comments"][0]
        shown = (found["page_url"], found["page_link"], found["foreign"])
        assert shown == (page_url, page_link, foreign)
        assert pages(owner)["pages"][0]["page_link"] == page_link, page_url


@NO_LIMITS
def test_the_queue_lists_the_comments_of_a_status_and_of_a_page(
    visitor: Visitor, owner: Visitor
) -> None:
    for number in range(1, 9):
        visitor.say(f"number {number}", page_url="/a/" if number % 2 else "/b/")
    for number, status in ((1, "waiting"), (2, "waiting"), (3, "spam"), (4, "deleted")):
        moderate(owner, [number], status)
    sums = {"waiting": 2, "spam": 1, "visible": 4, "deleted": 1, "reported": 0, "undelivered": 0}
    assert queue(owner)["counts"] == sums
    assert ids(queue(owner)) == ids(queue(owner, status="all")) == [8, 7, 6, 5, 4, 3, 2, 1]
    lists = {s: ids(queue(owner, status=s)) for s in ("waiting", "visible", "spam", "deleted")}
    assert lists == {"waiting": [2, 1], "visible": [8, 7, 6, 5], "spam": [3], "deleted": [4]}
    assert ids(queue(owner, page=1)) == [7, 5, 3, 1]
    assert ids(queue(owner, page=2, status="waiting")) == [2]
    assert ids(queue(owner, page=99)) == []


@NO_LIMITS
def test_the_queue_goes_on_below_an_id_whatever_is_added(visitor: Visitor, owner: Visitor) -> None:
    for number in range(7):
        visitor.say(f"number {number}")
    seen, before = [], 2**63 - 1
    while before:
        found = queue(owner, before=before, limit=3)
        visitor.say(f"meanwhile {before}")
        seen += ids(found)
        assert len(found["comments"]) <= 3
        before = seen[-1] if found["more"] else 0
    assert seen == [7, 6, 5, 4, 3, 2, 1]
    assert queue(owner, before=4, limit=3)["more"] is False  # exactly three are left
    assert len(queue(owner)["comments"]) == 10


@NO_LIMITS
def test_a_search_of_comments_looks_into_all_fields(ann: Visitor, owner: Visitor, app: App) -> None:
    ann.say("of an account")
    guest = Visitor(app, ip="45.33.32.156")
    guest.say("Where is Waldo?", nickname="Lu Xun", email="xun@example.cn", page_url="/wo/")
    looked = {"WALDO": [2], "lu x": [2], "xun@example": [2], "45.33.32.1": [2], "/wo/": [2]}
    looked |= {"ann@example.com": [1], PAGE: [1], "account": [1], "a": [2, 1], "nothing": []}
    assert {text: ids(queue(owner, q=text)) for text in looked} == looked
    assert ids(queue(owner, q="a", status="waiting")) == []


@NO_LIMITS
def test_a_search_takes_each_sign_literally(visitor: Visitor, owner: Visitor, app: App) -> None:
    texts = ["100% sure", "snake_case", "snakeXcase", "wow!", r"back\slash", "!%_", "plain [a-z]*"]
    for text in texts:
        visitor.say(text, page_url="/p/", nickname="N")
    expected = {"%": [6, 1], "_": [6, 2], "!": [6, 4], "\\": [5], "!%_": [6], "!_": [], "%%": []}
    expected |= {"e_c": [2], "?": [], "*": [7], "[a-z]": [7], "100%": [1], "%sure": [], "!!": []}
    assert {word: ids(queue(owner, q=word)) for word in expected} == expected
    for sign in "_x":
        new_admin(app, f"a{sign}b@example.com", f"N{sign}n")
        name, email, page_url = f"G{sign}g", f"c{sign}d@e.cn", f"/p{sign}q/"
        visitor.say("hi", nickname=name, email=email, page_url=page_url)
    assert [ids(queue(owner, q=word)) for word in ("G_g", "c_d", "p_q")] == [[8]] * 3
    assert [ids(users(owner, q=word), "users") for word in ("a_b", "N_n")] == [[2]] * 2
    assert ids(pages(owner, q="p_q"), "pages") == [2]


@NO_LIMITS
def test_a_comment_erased_by_its_author_is_in_no_list_of_the_admin(
    ann: Visitor, owner: Visitor
) -> None:
    ann.say("of ann")
    ann.say("an answer", parent_id=1)
    ann.say("another")
    for number in (1, 3):
        ann.delete_json(f"/comments/{number}", {})
    for status in ("all", "deleted", "visible", "spam", "waiting"):
        found = queue(owner, status=status)
        assert ids(found) == ([2] if status in ("all", "visible") else []), status
        sums = {
            "waiting": 0,
            "spam": 0,
            "visible": 1,
            "deleted": 0,
            "reported": 0,
            "undelivered": 0,
        }
        assert found["counts"] == sums
    assert moderate(owner, [1, 2, 3], "spam")["comments"] == [{"id": 2, "was": "visible"}]
    assert change(owner, "comments/1", 404, content="back") == GONE
    assert do(owner, "reply", 404, parent_id=1, content="hello?") == GONE
    spam = {"status": "spam"}
    assert owner.widget.post_json("/comments/1/moderate", spam, status=404).json == GONE


# Judging


@NO_LIMITS
def test_moderation_returns_the_former_status_so_that_each_can_be_undone(
    visitor: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    for number in range(1, 6):
        visitor.say(f"number {number}", parent_id=1 if number == 2 else None)
    before = {1: "visible", 2: "waiting", 3: "spam", 4: "deleted", 5: "visible"}
    for number, status in before.items():
        moderate(owner, [number], status)
    for status in ("spam", "deleted", "waiting", "visible"):
        response = moderate(owner, [3, 1, 2, 99, 4, 1, 5], status)
        was = [{"id": number, "was": before[number]} for number in (3, 1, 2, 4, 5)]
        assert response == {"success": True, "comments": was, "changed": []}
        assert set(status_of(db).values()) == {status}
        shown = [5, 4, 3, 2, 1] if status == "visible" else []
        assert ids(visitor.listing(limit=100)) == shown
        for each in response["comments"]:
            moderate(owner, [each["id"]], each["was"])
        assert status_of(db) == before
        assert ids(visitor.listing(limit=100)) == [5, 1]


BAD_JUDGEMENTS: list[tuple[dict[str, Any], str]] = [
    ({"ids": [], "status": "spam"}, "ids_invalid"),
    ({"ids": [*range(1, 102)], "status": "spam"}, "ids_invalid"),
    ({"ids": [1, "2"], "status": "spam"}, "ids_invalid"),
    ({"ids": [1, True], "status": "spam"}, "ids_invalid"),
    ({"ids": 1, "status": "spam"}, "ids_invalid"),
    ({"ids": [1]}, "status_missing"),
    ({"ids": [1], "status": "gone"}, "status_invalid"),
    ({"ids": [1], "pinned": "yes"}, "pinned_invalid"),
    ({"ids": [2], "pinned": True}, "pin_invalid"),
]


def test_a_malformed_moderation_request_is_refused_and_changes_nothing(
    visitor: Visitor, owner: Visitor
) -> None:
    visitor.say("root")
    visitor.say("leaf", parent_id=1)
    for form, code in BAD_JUDGEMENTS:
        refused = owner.post_json("/admin/comments", form, status=400)
        assert refused.json["code"] == code, form


def test_pinning_returns_the_former_state_and_ends_when_a_comment_is_hidden(
    visitor: Visitor, owner: Visitor
) -> None:
    visitor.say("root")
    was = {"success": True, "comments": [{"id": 1, "was": False}], "changed": []}
    assert pin(owner, [1]) == was
    assert pin(owner, [1])["comments"] == [{"id": 1, "was": True}]
    assert visitor.listing(view="threads")["comments"][0]["pinned"] is True
    assert queue(owner)["comments"][0]["pinned"] is True
    moderate(owner, [1], "spam")
    assert visitor.listing(view="threads")["comments"] == []
    moderate(owner, [1], "visible")
    assert visitor.listing(view="threads")["comments"][0]["pinned"] is False
    assert pin(owner, [1]) == was
    assert pin(owner, [1], False)["comments"] == [{"id": 1, "was": True}]
    lines = [line for line in audit(owner) if "pin" in line[1]]
    assert [action for _, action, *_ in lines] == ["pin", "pin", "unpin"]


def test_a_comment_names_the_page_that_an_admin_closes(visitor: Visitor, owner: Visitor) -> None:
    visitor.say("root")
    for was in (False, True):
        closed = do(owner, "comments", ids=[1], closed=True)
        assert closed["comments"] == [{"id": 1, "was": was}]
    assert visitor.listing(view="threads")["settings"]["closed"] is True
    for was in (True, False):
        again = owner.widget.post_json("/comments/1/moderate", {"closed": False}).json
        assert again["was"] is was
    assert visitor.listing(view="threads")["settings"]["closed"] is False
    lines = [(action, subject) for _, action, subject, _ in audit(owner) if subject == PAGE]
    assert lines == [("close", PAGE), ("reopen", PAGE)]


@NO_LIMITS
def test_an_admin_moderates_with_the_widgets_token(visitor: Visitor, owner: Visitor) -> None:
    for number in (1, 2, 3):
        visitor.say(f"number {number}")
    visitor.say("elsewhere", page_url="/other/")
    moderate(owner, [1, 3, 4], "waiting")
    blog = owner.widget
    found = blog.get("/comments/waiting", {"url": PAGE}).json["comments"]
    waits = {"status": "waiting", "held": "", "ip": "203.0.113.7", "version": ANY}
    assert found == [
        {**SHOWN, **waits, "id": n, "content": f"number {n}", "html": f"<p>number {n}</p>\n"}
        for n in (1, 3)
    ]
    response = blog.post_json("/comments/1/moderate", {"status": "visible"}).json
    shown = {**found[0], "status": "visible"}
    del shown["held"], shown["version"]
    assert response == {"success": True, "comment": shown, "was": "waiting"}
    response = blog.post_json("/comments/1/moderate", {"pinned": True}).json
    assert (response["comment"]["pinned"], response["was"]) == (True, False)
    assert ids(blog.get("/comments/waiting", {"url": PAGE}).json) == [3]
    assert blog.get("/comments/waiting", {"url": "/new/"}).json == {"comments": []}
    assert blog.get("/comments/waiting", status=400).json["code"] == "url_missing"
    for unknown in ("99", "9" * 18):
        path = f"/comments/{unknown}/moderate"
        assert blog.post_json(path, {"status": "spam"}, status=404).json == GONE
    assert blog.post_json("/comments/1/moderate", {}, status=400).json["code"] == "status_missing"
    assert audit(owner)[-2:] == [("Owner", "visible", "1", ""), ("Owner", "pin", "1", "")]


# Writing as the owner


def test_an_admin_corrects_a_comment(
    visitor: Visitor, owner: Visitor, fake_world: FakeWorld
) -> None:
    visitor.say("teh text", email="ann@example.org", website="https://a.example")
    fake_world.time += HOUR
    response = change(owner, "comments/1", content="*the* text")
    mended = case(content="*the* text", html="<p><em>the</em> text</p>\n", email="ann@example.org")
    mended |= {"website": "https://a.example", "edited": "2026-11-18 20:06:40"}
    assert response == {"success": True, "comment": mended}
    assert visitor.listing()["comments"][0]["content"] == "*the* text"
    response = change(owner, "comments/1", nickname=" Anna ", website="")
    assert response["comment"] == mended | {"nickname": "Anna", "website": ""}
    assert change(owner, "comments/1", website="https://b.example")["comment"]["nickname"] == "Anna"
    assert [line[:3] for line in audit(owner)] == [("Owner", "edit", "1")] * 3


@NO_LIMITS
def test_texts_of_an_admin_are_held_to_the_same_rules(visitor: Visitor, owner: Visitor) -> None:
    visitor.say()
    for field, value, code in (
        ("content", "", "content_missing"),
        ("content", " \u200b", "content_missing"),
        ("content", "a\0", "content_invalid"),
        ("content", "x" * 2001, "content_too_long"),
        ("nickname", "a\u202eb", "nickname_invalid"),
        ("website", "javascript:alert(1)", "website_invalid"),
        ("website", 'https://a.example/"onload=', "website_invalid"),
    ):
        assert change(owner, "comments/1", 400, **{field: value})["code"] == code
        if field == "content":
            assert do(owner, "reply", 400, parent_id=1, content=value)["code"] == code
    text = "<script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1))"
    shown = visitor.say(text)["comment"]["html"]
    assert change(owner, "comments/1", content=text)["comment"]["html"] == shown
    assert do(owner, "reply", parent_id=1, content=text)["comment"]["html"] == shown


LONGEST = [
    ("link", {}, "link", 64),
    ("app", {"factor": "1", "password": CANARY}, "key", 64),
    ("app", {"key": "A", "password": CANARY}, "factor", 64),
    ("blocks", {"kind": "word"}, "value", 254),
    ("blocks", {"kind": "word", "value": "casino"}, "note", 200),
    ("inspection", {}, "url", 2048),
]


@pytest.mark.parametrize(("path", "form", "field", "most"), LONGEST)
def test_each_text_of_an_admin_has_a_longest_length(
    owner: Visitor, path: str, form: dict[str, Any], field: str, most: int
) -> None:
    for length in (most, most + 1):
        response = owner.post_json(f"/admin/{path}", form | {field: "x" * length}, status="*")
        is_too_long = response.json.get("code") == f"{field}_too_long"
        assert is_too_long == (length > most), response.json


def test_a_reply_of_the_owner_approves_a_waiting_comment(visitor: Visitor, owner: Visitor) -> None:
    visitor.say("a question")
    moderate(owner, [1], "waiting")
    assert visitor.listing()["total"] == 0
    response = do(owner, "reply", parent_id=1, content="an answer")
    answer = case(id=2, nickname="Owner", content="an answer", html="<p>an answer</p>\n")
    answer |= {"parent_id": 1, "user_id": 1, "role": "admin", "ip": "198.51.100.7", "email": OWNER}
    answer |= {"parent": {"id": 1, "nickname": "Ann", "content": "a question"}}
    assert response == {"success": True, "comment": answer}
    assert ids(visitor.listing()) == [2, 1]
    lines = [("Owner", "waiting", "1", ""), ("Owner", "visible", "1", "")]
    assert audit(owner) == [*lines, ("Owner", "reply", "1", "")]
    assert do(owner, "reply", parent_id=1, content="an answer")["comment"]["id"] == 2  # a double
    for number in (99, 2**63 - 1):
        assert do(owner, "reply", 404, parent_id=number, content="hi") == GONE
    for status in ("spam", "deleted"):
        moderate(owner, [1], status)
        assert do(owner, "reply", 404, parent_id=1, content="hi")["code"] == "parent_gone"


@pytest.mark.parametrize("settings", [{"moderation_hold": "all", "moderation_words": ("answer",)}])
def test_the_owners_reply_passes_holds_and_closed_pages(visitor: Visitor, owner: Visitor) -> None:
    visitor.say("a question")
    change(owner, "pages/1", closed=True)
    do(owner, "blocks", kind="word", value="answer")
    response = do(owner, "reply", parent_id=1, content="an answer")["comment"]
    assert (response["status"], response["held"], response["closed"]) == ("visible", "", True)
    assert visitor.listing()["total"] == 2


# Pages


def page(**changes: Any) -> dict[str, Any]:
    sums = {"total": 1, "views": 0, "page_likes": 0}
    shown = {"id": 1, "page_url": PAGE, "page_title": "", "page_link": f"{BLOG}{PAGE}", **sums}
    return {**shown, "closed": False, "closed_by_age": False, **changes}


@ON_BLOG
def test_pages_are_listed_in_three_orders(visitor: Visitor, owner: Visitor, app: App) -> None:
    for url, comments, views in (("/a/", 1, 3), ("/b_/", 3, 1), ("/c/", 2, 2)):
        for number in range(comments):
            visitor.say(f"number {number}", page_url=url)
        for _ in range(views):
            visitor.listing(url=url)
    app.tick()
    order = {"latest": "cba"[::1], "views": "acb", "comments": "bca"}
    for sort, names in order.items():
        found = pages(owner, sort=sort)
        assert "".join(p["page_url"][1] for p in found["pages"]) == names
        assert found["more"] is False
    expected = page(page_url="/b_/", page_link=f"{BLOG}/b_/", id=2, total=3, views=1)
    assert pages(owner, q="_") == {"pages": [expected], "more": False}
    assert pages(owner, q="%")["pages"] == []
    assert pages(owner, limit=2)["more"] is True
    assert [p["id"] for p in pages(owner, skip=1, limit=1, sort="views")["pages"]] == [3]
    assert ids(pages(owner, skip=3), "pages") == []
    assert ids(pages(owner, skip=0), "pages") == [3, 2, 1]


@ON_BLOG
def test_a_page_is_closed_and_reopened(visitor: Visitor, owner: Visitor) -> None:
    visitor.say()
    response = change(owner, "pages/1", closed=True)
    assert response == {"success": True, "page": page(closed=True)}
    assert visitor.say("late", status=403)["code"] == "page_closed"
    assert visitor.listing(view="threads")["settings"]["closed"] is True
    assert queue(owner)["comments"][0]["closed"] is True
    assert change(owner, "pages/1", closed=False)["page"] == page(views=1)
    assert visitor.say("in time")["comment"]["status"] == "visible"
    assert audit(owner) == [("Owner", "close", PAGE, ""), ("Owner", "reopen", PAGE, "")]
    for number in ("99", "0", "9" * 18):
        answer = owner.patch_json(f"/admin/pages/{number}", {"closed": True}, status=404)
        assert answer.json == {"error": "页面不存在", "code": "page_gone"}


@ON_BLOG
def test_a_page_moves_with_all_that_it_has(visitor: Visitor, owner: Visitor) -> None:
    visitor.say()
    visitor.post_json("/page/like", {"page_url": PAGE})
    response = change(owner, "pages/1", page_url=f"{BLOG}/new/?utm_source=x#here", closed=True)
    moved = {"page_url": f"{BLOG}/new/", "page_link": f"{BLOG}/new/", "page_likes": 1}
    assert response == {"success": True, "page": page(**moved, closed=True)}
    assert visitor.listing(url="/new")["total"] == 1
    assert visitor.listing()["total"] == 0
    assert visitor.say("late", page_url="/new/index.html", status=403)["code"] == "page_closed"
    assert audit(owner)[-1] == ("Owner", "rename", PAGE, f"{BLOG}/new/")
    assert change(owner, "pages/1", page_url="/new/")["page"]["page_url"] == "/new/"
    odd: list[Any] = ["", "a\nb", "x" * 2049, 7]
    for wrong in odd:
        code = change(owner, "pages/1", 400, page_url=wrong)["code"]
        assert code.startswith("page_url_")


@ON_BLOG
def test_uncounted_views_move_with_their_page(visitor: Visitor, owner: Visitor, app: App) -> None:
    visitor.say()
    visitor.listing()
    change(owner, "pages/1", page_url="/new/")
    app.tick()
    assert [(p["page_url"], p["views"]) for p in pages(owner)["pages"]] == [("/new/", 1)]


@ON_BLOG
def test_a_page_takes_in_another_when_the_owner_says_so(
    visitor: Visitor, owner: Visitor, app: App, db: sqlite3.Connection
) -> None:
    second = Visitor(app, ip="203.0.113.8")
    for url in (PAGE, "/new/"):
        visitor.say("root", page_url=url)
        visitor.post_json("/page/like", {"page_url": url})  # likes both
        visitor.listing(url=url)
    visitor.say("leaf", parent_id=1)
    second.post_json("/page/like", {"page_url": PAGE})
    Visitor(app, ip="203.0.113.9").post_json("/page/like", {"page_url": "/new/"})
    pin(owner, [1])
    moderate(owner, [2], "waiting")
    app.tick()
    for who, page_id in (("both", 1), ("both", 2), ("old", 1), ("new", 2), ("all", 0)):
        db.execute("INSERT INTO subscription VALUES (?, ?, 'no')", (who, page_id))

    exists = {"error": "这个地址已有页面，是否合并？", "code": "page_exists"}
    for form in ({}, {"merge": False}):
        assert change(owner, "pages/1", 409, page_url="/new/", **form) == exists
    response = change(owner, "pages/1", page_url="/new", merge=True)
    sums = {"total": 2, "views": 2, "page_likes": 3}
    assert change(owner, "pages/1", 404, closed=True)["code"] == "page_gone"
    whole = page(id=2, page_url="/new/", page_link=f"{BLOG}/new/", **sums)
    assert response == {"success": True, "page": whole}
    assert pages(owner) == {"pages": [whole], "more": False}
    listing = visitor.listing(url="/new/", view="threads")
    (root,) = listing["comments"]
    assert (root["id"], root["pinned"], len(root["replies"])) == (1, True, 1)
    assert (listing["total"], listing["threads"]) == (2, 1)
    assert ids(owner.widget.get("/comments/waiting?url=/new/").json) == [2]
    assert visitor.listing()["total"] == 0
    assert rows(db, "SELECT subscriber, page_id FROM subscription ORDER BY 1") == [
        ("all", 0),
        ("both", 2),
        ("new", 2),
        ("old", 2),
    ]
    assert audit(owner)[-1] == ("Owner", "merge", PAGE, "/new")
    assert change(owner, "pages/2", page_url="/new/", merge=True)["page"]["total"] == 2


@ON_BLOG
def test_a_page_is_deleted_with_its_comments_which_can_be_put_back(
    visitor: Visitor, owner: Visitor, ann: Visitor, app: App, db: sqlite3.Connection
) -> None:
    for text in ("root", "waits", "spam"):
        visitor.say(text)
    visitor.say("leaf", parent_id=1)
    visitor.say("elsewhere", page_url="/b/")
    moderate(owner, [2], "waiting")
    moderate(owner, [3], "spam")
    visitor.post_json("/page/like", {"page_url": PAGE})
    ann.post_json("/page/follow", {"page_url": PAGE})
    visitor.listing()  # a view that is not counted yet
    deleted = drop(owner, "pages/1")
    before = {1: "visible", 4: "visible", 2: "waiting"}
    assert {entry["id"]: entry["was"] for entry in deleted["comments"]} == before
    app.tick()
    assert ids(pages(owner), "pages") == [2]
    assert ids(queue(owner, status="deleted")) == [4, 2, 1]
    assert ids(queue(owner, status="spam")) == [3]  # it was deleted in a way
    assert rows(db, "SELECT views, page_likes FROM page WHERE id = 1") == [(0, 0)]
    assert rows(db, "SELECT * FROM follow") == []
    listing = visitor.listing()
    assert (listing["comments"], listing["total"], listing["page_likes"]) == ([], 0, 0)
    assert audit(owner)[-1] == ("Owner", "delete_page", PAGE, "")

    moderate(owner, [1, 4], "visible")
    (back,) = [each for each in pages(owner)["pages"] if each["id"] == 1]
    assert (back["page_url"], back["total"]) == (PAGE, 2)
    assert ids(visitor.listing()) == [4, 1]


@ON_BLOG
def test_a_page_without_comments_is_deleted_for_good(
    visitor: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    visitor.post_json("/page/like", {"page_url": "/mistyped/"})
    assert ids(pages(owner), "pages") == [1]
    assert drop(owner, "pages/1") == {"success": True, "comments": []}
    assert rows(db, "SELECT * FROM page") == []
    assert drop(owner, "pages/1", 404)["code"] == "page_gone"
    visitor.post_json("/page/like", {"page_url": "/mistyped/"})
    assert [each["page_likes"] for each in pages(owner)["pages"]] == [1]


@ON_BLOG
def test_very_many_comments_of_a_page_are_deleted_at_once(
    visitor: Visitor, owner: Visitor, app: App
) -> None:
    visitor.say()
    inside.add_new_comments(app, 120, "one of many")
    visitor.say("elsewhere", page_url="/b/")
    assert len(drop(owner, "pages/1")["comments"]) == 121
    assert visitor.listing()["total"] == 0
    assert visitor.listing(url="/b/")["total"] == 1


# Users


def user(**changes: Any) -> dict[str, Any]:
    shown = {"id": 1, "email": "ann@example.com", "nickname": "Ann", "role": "user"}
    return {
        **shown,
        "blocked": False,
        "comments": 0,
        "created_at": NOW,
        "picture": "",
        "trusted": False,
        "you": False,
        **changes,
    }


def users(owner: Visitor, **query: Any) -> Any:
    return owner.get("/admin/users", query).json


@NO_LIMITS
def test_users_are_listed_and_looked_for(ann: Visitor, owner: Visitor) -> None:
    ann.say("one")
    ann.say("two")
    moderate(owner, [2], "spam")
    me = user(id=2, email=OWNER, nickname="Owner", role="admin", you=True)
    assert users(owner) == {"users": [me, user(comments=1)], "more": False}
    assert users(owner, limit=1) == {"users": [me], "more": True}
    assert users(owner, before=2) == {"users": [user(comments=1)], "more": False}
    looked = {"ANN@": [1], "wner": [2], "%": [], "_": [], "!": [], "example.com": [2, 1]}
    assert {word: ids(users(owner, q=word), "users") for word in looked} == looked
    assert [ids(users(owner, user=number), "users") for number in (1, 2, 3)] == [[1], [2], []]


@NO_LIMITS
def test_a_blocked_user_is_signed_out_for_good(ann: Visitor, owner: Visitor) -> None:
    assert change(owner, "users/1", blocked=True) == {"success": True}
    assert users(owner)["users"][1]["blocked"] is True
    signed = {"Authorization": str("Bearer " + dict([ann.authorization])["Bearer"])}
    ann.authorization = None
    assert ann.say(status=401, headers=signed) == INVALID
    assert ann.login(status=401) == REFUSED
    assert change(owner, "users/1", blocked=False) == {"success": True}
    assert ann.login()["nickname"] == "Ann"
    assert ann.say(status=401, headers=signed) == INVALID  # the token may be what was stolen
    assert audit(owner) == [("Owner", "block_user", "1", ""), ("Owner", "unblock_user", "1", "")]


@NO_LIMITS
@pytest.mark.parametrize("by", ["account", "email", "domain"])
def test_registration_and_login_do_not_reveal_that_an_account_is_blocked(
    ann: Visitor, owner: Visitor, app: App, fake_world: FakeWorld, by: str
) -> None:
    ann.authorization = None
    if by == "account":
        change(owner, "users/1", blocked=True)
    else:
        value = {"email": "Ann@Example.com", "domain": "example.com"}[by]
        do(owner, "blocks", kind=by, value=value)
    sent = len(fake_world.emails)
    fresh: dict[str, Any] = {"password": "fresh"}
    blocked, free = ann.register(**fresh), ann.register("lu@free.example", **fresh)
    assert set(blocked) == set(free) == {"success", "request_id"}
    assert len(blocked["request_id"]) == len(free["request_id"])
    app.deliver()
    assert [email.recipient for email in fake_world.emails[sent:]] == ["lu@free.example"]
    ann.verify("000000", request_id=blocked["request_id"], status=400)
    for email in ("ann@example.com", "lu@free.example"):
        assert ann.login(email, status=401, **fresh)["code"] == "email_unverified"
    if by == "account":
        assert ann.login(status=401) == ann.login(password="wrong", status=401) == REFUSED
        assert ann.login("nobody@example.org", status=401) == REFUSED


@NO_LIMITS
def test_a_code_from_before_a_block_does_not_lift_it(
    ann: Visitor, owner: Visitor, app: App, fake_world: FakeWorld
) -> None:
    ann.authorization = None
    ann.register(password="fresh")
    app.deliver()
    change(owner, "users/1", blocked=True)
    ann.verify(fake_world.code(), status="*")
    assert users(owner)["users"][1]["blocked"] is True
    assert ann.login(password="fresh", status=401)["code"] in ("wrong_credentials",)


@NO_LIMITS
def test_a_role_is_given_with_the_admins_password(ann: Visitor, owner: Visitor, app: App) -> None:
    assert change(owner, "users/1", 400, role="admin")["code"] == "password_missing"
    for wrong in ("wrong", CANARY + " ", CANARY.upper()):
        assert change(owner, "users/1", 403, role="admin", password=wrong) == WRONG_PASSWORD
    assert change(owner, "users/1", 400, role="owner", password=CANARY)["code"] == "role_invalid"
    assert change(owner, "users/1", role="admin", password=CANARY) == {"success": True}
    enter(Visitor(app), token_of(app, "ann@example.com", "admin"))
    digest = hashlib.sha256(CANARY.encode()).hexdigest()
    assert change(owner, "users/1", role="user", password=digest) == {"success": True}
    enter(Visitor(app), token_of(app, "ann@example.com", "admin"), 403)
    assert audit(owner) == [("Owner", "role", "1", "admin"), ("Owner", "role", "1", "user")]
    for number in ("99", "0", "9" * 18):
        answer = owner.patch_json(f"/admin/users/{number}", {"blocked": True}, status=404)
        assert answer.json == {"error": "用户不存在", "code": "user_gone"}


@NO_LIMITS
def test_a_new_admin_signs_in_anew_with_the_password(
    app: App, ann: Visitor, owner: Visitor, fake_world: FakeWorld
) -> None:
    """A token that an emailed code has given is not enough for an admin."""
    request_id = ann.ask_for_code()
    app.deliver()
    form = {"email": "ann@example.com", "code": fake_world.code(), "request_id": request_id}
    ann.authorization = ("Bearer", ann.post_json("/auth/login", form).json["token"])
    change(owner, "users/1", role="admin", password=CANARY)
    ann.get("/comments/waiting", {"url": PAGE}, status=401)
    ann.sign_in()
    ann.get("/comments/waiting", {"url": PAGE})


@NO_LIMITS
def test_the_last_admin_can_not_be_demoted_or_blocked(ann: Visitor, owner: Visitor) -> None:
    last = {"error": "至少要有一位管理员", "code": "last_admin"}
    demoted = {"role": "user", "password": CANARY}
    assert change(owner, "users/2", 409, **demoted) == last
    assert change(owner, "users/2", 409, blocked=True) == last
    change(owner, "users/1", role="admin", password=CANARY)
    kept = {"error": "不能屏蔽管理员：请先改为普通用户", "code": "is_admin"}
    for form in ({"blocked": True}, {"blocked": True, "role": "admin", "password": CANARY}):
        for number in (1, 2):
            assert change(owner, f"users/{number}", 409, **form) == kept
    change(owner, "users/1", role="user", password=CANARY, blocked=True)
    assert change(owner, "users/1", 409, role="admin", password=CANARY) == kept
    assert change(owner, "users/2", 409, **demoted) == last
    change(owner, "users/1", role="admin", password=CANARY, blocked=False)
    change(owner, "users/2", **demoted)
    assert queue(owner, 401)["code"] == "token_invalid"


@NO_LIMITS
def test_admins_who_demote_each_other_at_once_leave_one_admin(
    app: App, db: sqlite3.Connection
) -> None:
    for number in range(1, 9):
        new_admin(app, f"n{number}@example.com", f"N{number}")

    def one(number: int) -> Any:
        token = token_of(app, f"n{number}@example.com", "admin")
        client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": f"203.0.113.{number}"})
        client.authorization = ("Bearer", token)
        body = {"role": "user", "password": CANARY}
        path = f"/admin/users/{number % 8 + 1}"
        return lambda: client.patch_json(path, body, expect_errors=True).status_int

    assert set(at_once([one(number) for number in range(1, 9)])) <= {200, 401, 403, 409, 503}
    left = rows(db, "SELECT count(*) FROM account WHERE role = 'admin'")[0][0]
    assert left >= 1


# Blocks


def test_a_block_is_made_listed_and_lifted(owner: Visitor, fake_world: FakeWorld, app: App) -> None:
    response = block(owner, "address", "203.0.113.9/24", days=3, note="a flood")
    made = {"id": 1, "kind": "address", "value": "203.0.113.0/24", "note": "a flood"}
    made |= {"created_at": NOW, "expires_at": "2026-11-21 19:06:40"}
    assert response == {"success": True, "block": made}
    word = {"id": 2, "kind": "word", "value": "casino", "note": "", "created_at": NOW}
    assert block(owner, "word", " casino ")["block"] == {**word, "expires_at": None}
    assert blocks(owner) == [{**word, "expires_at": None}, made]
    fake_world.time += 3 * DAY
    app.tick()
    assert blocks(owner) == [{**word, "expires_at": None}]
    assert drop(owner, "blocks/2") == {"success": True}
    gone = {"error": "屏蔽规则不存在", "code": "block_gone"}
    for number in ("1", "2", "99", "9" * 18):
        assert drop(owner, f"blocks/{number}", 404) == gone
    assert audit(owner) == [
        ("Owner", "block", "203.0.113.0/24", "address"),
        ("Owner", "block", "casino", "word"),
        ("Owner", "unblock", "casino", "word"),
    ]


GOOD_BLOCKS = [
    ("address", " 203.0.113.9 ", "203.0.113.9"),
    ("address", "2001:DB8::1", "2001:db8::1"),
    ("address", "203.0.113.9/24", "203.0.113.0/24"),
    ("address", "2001:db8:0:0:ffff::/48", "2001:db8::/48"),
    ("address", "::ffff:203.0.113.9", "203.0.113.9"),
    ("address", "203.0.113.9:443", "203.0.113.9"),  # as logs have it
    ("email", " Eve@Example.COM ", "eve@example.com"),
    ("domain", "Evil.Example", "evil.example"),
    ("domain", "@evil.example", "evil.example"),
    ("domain", "https://evil.example/path?q", "evil.example"),
    ("word", " Free  Casino ", "Free  Casino"),
    ("word", "博彩", "博彩"),
]


@NO_LIMITS
def test_a_block_is_kept_in_one_spelling(owner: Visitor) -> None:
    for kind, value, kept in GOOD_BLOCKS:
        assert block(owner, kind, value)["block"]["value"] == kept


BAD_BLOCKS: list[tuple[str, list[Any]]] = [
    ("address", ["x", "203.0.113", "203.0.113.256", "010.0.0.1", "203.0.113.9/33"]),
    ("address", ["203.0.113.9-20", "203.0.113.*", "::1/129", "evil.example"]),
    ("address", ["203.0.113.9/24/3", "1", "0x7f000001", "203.0.113.9/", "/24", "\u0661.1.1.1"]),
    ("email", ["evil.example", "@evil.example", "a@b", "a@b@c.example", "é@b.example", "a b@c.d"]),
    ("domain", ["evil", "*.evil.example", "evil example", "https://", "-", "a..b", "."]),
    ("word", ["   ", "\u3000", "\t\n"]),
    ("name", ["Eve"]),
    ("Word", ["casino"]),
    ("word", ["a\0b", 7, True, ["a"], {"a": 1}, 1.5]),
]


@NO_LIMITS
def test_a_block_of_an_invalid_type_or_value_is_refused(owner: Visitor) -> None:
    for kind, values in BAD_BLOCKS:
        code = "kind_invalid" if kind in ("name", "Word") else "value_invalid"
        for value in values:
            assert block(owner, kind, value, 400)["code"] == code, value
    assert blocks(owner) == []


def test_a_block_lasts_a_whole_number_of_days(owner: Visitor) -> None:
    wrong: list[Any] = [0, -1, 3651, 1.5, "3", True, [], 10**30]
    for days in wrong:
        assert block(owner, "word", "x", 400, days=days)["code"] == "days_invalid"
    assert block(owner, "word", "xy", days=3650)["block"]["expires_at"] == "2036-11-15 19:06:40"
    assert block(owner, "word", "xy", days=None)["block"]["expires_at"] is None


# What was done


@NO_LIMITS
def test_the_audit_log_has_the_actions_of_admins_and_names_readers_by_number(
    visitor: Visitor, owner: Visitor
) -> None:
    for number in range(3):
        visitor.say(f"number {number}", nickname="Nemesis", email="n@example.org")
    for status in ("waiting", "spam", "deleted", "visible"):
        moderate(owner, [1], status)
    lines = owner.get("/admin/audit").json
    assert lines["more"] is False
    line = {"created_at": NOW, "who": "Owner", "subject": "1", "detail": "", "was": None}
    assert lines["audit"] == [
        {"id": id, **line, "action": action}
        for id, action in ((4, "visible"), (3, "deleted"), (2, "spam"), (1, "waiting"))
    ]
    assert ids(owner.get("/admin/audit?limit=3").json, "audit") == [4, 3, 2]
    assert owner.get("/admin/audit?limit=3").json["more"] is True
    assert ids(owner.get("/admin/audit?before=3&limit=3").json, "audit") == [2, 1]
    moderate(owner, [1], "visible")  # as it was: nothing to tell
    assert len(audit(owner)) == 4
    pin(owner, [1])
    change(owner, "comments/1", content="mended", nickname="Named")
    do(owner, "reply", parent_id=1, content="hi")
    assert audit(owner)[4:] == [("Owner", a, "1", "") for a in ("pin", "edit", "reply")]


def test_the_audit_log_forgets_after_four_hundred_days(
    owner: Visitor, fake_world: FakeWorld, app: App, db: sqlite3.Connection
) -> None:
    do(owner, "blocks", kind="word", value="xyz")
    fake_world.time += 400 * DAY
    app.tick()
    assert len(rows(db, "SELECT * FROM audit")) == 1
    fake_world.time += MINUTE + 1
    app.tick()
    assert rows(db, "SELECT * FROM audit") == []


# Emails that were not delivered


@NO_LIMITS
def test_emails_that_were_not_delivered_are_listed_tried_again_and_dropped(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld
) -> None:
    visitor.say("hello", page_url="/你好/")
    assert owner.get("/admin/outbox").json == {"emails": []}
    fake_world.mail_fails_with = ConnectionRefusedError(111, "Connection refused")
    app.deliver()
    (email,) = owner.get("/admin/outbox").json["emails"]
    failed = {"tries": 1, "failure": "ConnectionRefusedError Connection refused", "hint": ""}
    failed |= {"due_at": "2026-11-18 19:06:45", "can_retry": True}
    assert email == {"id": 1, "recipient": OWNER, "subject": email["subject"], **failed}
    assert "/你好/" in email["subject"]
    fake_world.time += DAY
    app.deliver()
    (email,) = owner.get("/admin/outbox").json["emails"]
    assert (email["due_at"], email["failure"]) == (None, failed["failure"])
    assert email["can_retry"]
    fake_world.mail_fails_with = None
    assert do(owner, "outbox/1") == {"success": True}
    app.deliver()
    assert [email.recipient for email in fake_world.emails] == [OWNER]
    assert owner.get("/admin/outbox").json == {"emails": []}
    gone = {"error": "邮件不存在", "code": "email_gone"}
    for number in ("1", "99", "9" * 18):
        assert do(owner, f"outbox/{number}", 404) == drop(owner, f"outbox/{number}", 404) == gone
    assert audit(owner) == [("Owner", "retry", "1", "")]


@NO_LIMITS
def test_all_that_was_not_delivered_is_counted_and_tried_again_or_dropped_at_once(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld
) -> None:
    def undelivered() -> int:
        return int(owner.get("/admin/comments").json["counts"]["undelivered"])

    inside.add_account(app, "second@example.com", "Second", "x", "admin")
    visitor.say("hello")
    assert undelivered() == 0
    fake_world.mail_fails_with = ConnectionRefusedError(111, "Connection refused")
    app.deliver()
    visitor.register("lu@example.cn")
    app.deliver()
    assert undelivered() == 3
    fake_world.time += DAY
    app.deliver()
    assert undelivered() == 3
    fake_world.mail_fails_with = None
    assert owner.post_json("/admin/outbox", {}).json == {"success": True}
    app.deliver()
    # A code has expired meanwhile.
    assert sorted(email.recipient for email in fake_world.emails) == [OWNER, "second@example.com"]
    assert undelivered() == 1
    assert owner.delete_json("/admin/outbox", {}).json == {"success": True}
    assert undelivered() == 0
    assert owner.get("/admin/outbox").json == {"emails": []}
    assert audit(owner) == [("Owner", "retry_all", "2", ""), ("Owner", "drop_all", "1", "")]


def test_the_outbox_sends_no_code_again(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld
) -> None:
    fake_world.mail_fails_with = ConnectionRefusedError(111, "Connection refused")
    visitor.register("lu@example.cn")
    app.deliver()
    fake_world.time += HOUR
    app.deliver()
    (email,) = owner.get("/admin/outbox").json["emails"]
    assert (email["recipient"], email["subject"]) == ("lu@example.cn", "")
    assert (email["due_at"], email["can_retry"]) == (None, False)
    assert do(owner, "outbox/1", 404)["code"] == "email_gone"
    assert drop(owner, "outbox/1") == {"success": True}
    assert owner.get("/admin/outbox").json == {"emails": []}
    assert audit(owner) == [("Owner", "drop", "1", "")]


# Settings, a copy, figures

SECRETS = {
    "token_key": "k3y" * 12,
    "mail_host": "mail.example",
    "mail_user": "me@blog.example",
    "mail_password": "mail-p4ssword",
    "captcha_secret": "captcha-s3cret",
}


@pytest.mark.parametrize("settings", [SECRETS | {"server_public_url": "https://c.example/talk"}])
def test_settings_are_shown_and_secrets_are_not(owner: Visitor, settings: dict[str, Any]) -> None:
    answer = owner.get("/admin/settings")
    shown = {(s["section"], s["key"]): s for s in answer.json["settings"]}
    for section, key in (("token", "key"), ("mail", "password"), ("captcha", "secret")):
        assert settings[f"{section}_{key}"] not in answer.text
        found = shown[section, key]
        assert (found["value"], found["changed"]) == ("(hidden)", True)
    empty = shown["webhook", "secret"]
    assert (empty["value"], empty["changed"]) == ("", False)
    assert shown["mail", "host"] == {
        "section": "mail",
        "key": "host",
        "value": "mail.example",
        "changed": True,
        "help": shown["mail", "host"]["help"],
        "written_in": "",
        "control": None,
    }
    assert shown["comments", "page_size"]["changed"] is False
    assert {*map("_".join, shown)} == {*SETTINGS}
    assert all(set(f) == {"level", "topic", "text"} for f in answer.json["findings"])
    assert {f["level"] for f in answer.json["findings"]} <= {"note", "warn", "fail"}
    chinese = owner.get("/admin/settings?lang=zh-TW").json
    for kind, key in (("settings", "help"), ("findings", "text")):
        english = [each[key] for each in answer.json[kind]]
        lacking = [each[key] for each in chinese[kind] if each[key].isascii()]
        assert not lacking, f"static/terminal/zh-tw.json lacks {lacking}"
        assert [text for text in english if not text.isascii()] == []
        assert len(english) == len(chinese[kind])


def test_a_downloaded_backup_is_a_whole_database_and_asks_for_the_password(
    visitor: Visitor, owner: Visitor, tmp_path: Path, app: App, config: Config
) -> None:
    visitor.say("to be kept")
    assert owner.post_json("/admin/backup", {}, status=400).json["code"] == "password_missing"
    response = owner.post_json("/admin/backup", {"password": "wrong"}, status=403)
    assert response.json == WRONG_PASSWORD
    assert audit(owner) == []
    before = {*tmp_path.iterdir()}
    answer = owner.post_json("/admin/backup", {"password": CANARY})
    name = 'attachment; filename="commentd-20261118-110640.db"'
    assert answer.headers["Content-Disposition"] == name
    assert answer.headers["Content-Type"] == "application/vnd.sqlite3"
    assert answer.headers["Cache-Control"] == "no-store"
    assert {*tmp_path.iterdir()} == before  # nothing is left beside the database
    copy = tmp_path / "copy.db"
    copy.write_bytes(answer.body)
    there = dump(inside.database_path(app))
    assert dump(str(copy)) == {**there, "audit": []}
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert audit(owner) == [("Owner", "backup", "", "")]
    with closing(make_app(replace(config, database_path=str(copy)), rounds=1)) as other:
        assert Visitor(other).listing()["comments"][0]["content"] == "to be kept"


def test_a_backup_that_the_disk_refuses_is_answered_with_503(
    owner: Visitor, app: App, tmp_path: Path
) -> None:
    client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "198.51.100.7"})
    client.authorization = owner.authorization
    aside = tmp_path.with_name(tmp_path.name + "-aside")
    tmp_path.rename(aside)  # as when the disk went away
    try:
        answer = client.post_json("/admin/backup", {"password": CANARY}, expect_errors=True)
    finally:
        aside.rename(tmp_path)
    assert (answer.status_int, answer.json["code"]) == (503, "storage")
    assert "Retry-After" in answer.headers


def test_a_backup_for_which_the_disk_has_no_room_is_answered_with_503(
    owner: Visitor, app: App, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = {*tmp_path.iterdir()}
    size = Path(inside.database_path(app)).stat().st_size
    owner.faults_allowed = True
    with little_room(size // 2):  # enough for what is noted of the request
        answer = owner.post_json("/admin/backup", {"password": CANARY}, status=503)
    assert answer.json["code"] == "storage"
    assert "Retry-After" in answer.headers
    assert "no backup to download" in caplog.text
    assert {*tmp_path.iterdir()} == before
    assert audit(owner) == []


@ON_BLOG
def test_the_statistics_have_a_row_for_each_day_without_gaps(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld
) -> None:
    visitor.say()
    visitor.listing()
    visitor.post_json("/comment/like", {"id": 1})
    fake_world.time = START + 2 * DAY  # from here on: the 20th in Beijing
    visitor.say("again")
    visitor.say("and again", page_url="/other/")
    visitor.post_json("/page/like", {"page_url": PAGE})
    visitor.post_json("/page/like", {"page_url": PAGE, "undo": True})
    fake_world.time = START + 2 * DAY + 4 * HOUR + 54 * MINUTE  # in Beijing another day has begun
    visitor.say("at midnight")
    app.tick()
    response = owner.get("/admin/figures").json
    figures = {"comments": 0, "views": 0, "likes": 0}
    assert len(response["periods"]) == 30
    assert response["periods"][-5:] == [
        {**counted_day("2026-11-17"), **figures},
        {**counted_day("2026-11-18"), "comments": 1, "views": 0, "likes": 1},
        {**counted_day("2026-11-19"), **figures},
        {**counted_day("2026-11-20"), **figures, "comments": 2},
        {**counted_day("2026-11-21"), "comments": 1, "views": 1, "likes": 0},
    ]
    both = [page(total=3, views=1), page(id=2, page_url="/other/", page_link=f"{BLOG}/other/")]
    assert response["by_comments"] == response["by_views"] == both


def counted_day(day: str) -> dict[str, str]:
    return {"first": day, "last": day}


def day_number(day: str) -> int:
    return date.fromisoformat(day).toordinal() - date(1970, 1, 1).toordinal()


@ON_BLOG
def test_the_statistics_add_days_up_to_weeks_months_and_years(owner: Visitor, app: App) -> None:
    # Today is Wednesday, 18 November 2026.
    for day, views in {
        "2024-12-31": 1,  # the year before the last: nothing in 2025
        "2026-01-01": 10,
        "2026-10-31": 100,
        "2026-11-15": 1_000,  # a Sunday
        "2026-11-16": 10_000,
        "2026-11-18": 100_000,
    }.items():
        inside.sql(app, "INSERT INTO day (day, views) VALUES (?, ?)", day_number(day), views)

    def periods(by: str) -> list[tuple[str, str, int]]:
        found = owner.get("/admin/figures", {"by": by}).json["periods"]
        return [(each["first"], each["last"], each["views"]) for each in found]

    assert periods("year") == [
        ("2024-01-01", "2024-12-31", 1),
        ("2025-01-01", "2025-12-31", 0),
        ("2026-01-01", "2026-11-18", 111_110),
    ]
    months = periods("month")
    assert len(months) == 24
    assert [each for each in months if each[2]] == [
        ("2024-12-01", "2024-12-31", 1),
        ("2026-01-01", "2026-01-31", 10),
        ("2026-10-01", "2026-10-31", 100),
        ("2026-11-01", "2026-11-18", 111_000),
    ]
    assert periods("week")[-2:] == [
        ("2026-11-09", "2026-11-15", 1_000),
        ("2026-11-16", "2026-11-18", 110_000),
    ]
    assert len(periods("week")) == 26
    assert periods("day")[-1] == ("2026-11-18", "2026-11-18", 100_000)
    assert owner.get("/admin/figures?by=hour", status=400).json["code"] == "by_invalid"


@ON_BLOG
def test_the_statistics_name_the_pages_that_grow_by_views_or_by_comments(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld
) -> None:
    def views(page_url: str, count: int) -> None:
        for _ in range(count):
            visitor.get("/comments", {"url": page_url})

    for page_url, count in {"/less/": 3, "/more/": 1, "/talk/": 1}.items():
        visitor.say("old", page_url=page_url)
        views(page_url, count)
    views("/same/", 1)
    app.tick()
    for day in (1, 2):  # the last day of the days before, and the first one of the last days
        fake_world.time = START + day * DAY
        views("/edge/", day)
        app.tick()
    fake_world.time = START + 31 * DAY
    for page_url, count in {"/less/": 1, "/more/": 3, "/same/": 1, "/talk/": 1}.items():
        views(page_url, count)
    visitor.say("new", page_url="/talk/")
    visitor.say("new", page_url="/quiet/")
    app.tick()

    def growing() -> list[tuple[str, int, int, int, int]]:
        owner.authorization = ("Bearer", token_of(app, OWNER, "admin"))  # for seven days
        names = ("views", "views_before", "comments", "comments_before")
        found = owner.get("/admin/figures").json["growing"]
        return [(each["page"]["page_url"], *(each[name] for name in names)) for each in found]

    quiet = ("/quiet/", 0, 0, 1, 0)
    by_views = [("/more/", 3, 1, 0, 1), ("/edge/", 2, 1, 0, 0)]
    assert growing() == [*by_views, quiet]
    visitor.say("another", page_url="/talk/")
    assert growing() == [*by_views, quiet, ("/talk/", 1, 1, 2, 1)]
    # What is merged into a page counts there.
    owner.patch_json("/admin/pages/2", {"page_url": "/talk/", "merge": True})
    assert growing() == [("/talk/", 4, 2, 2, 2), by_views[1], quiet]
    for number in range(10):
        views(f"/{number}/", 1)
    app.tick()
    assert [url for url, *_ in growing()] == ["/talk/", *(f"/{n}/" for n in range(9, 0, -1))]
    figures = owner.get("/admin/figures").json
    assert [len(figures[each]) for each in ("by_views", "by_comments")] == [10, 10]
    fake_world.time = START + 200 * DAY
    app.tick()
    assert growing() == []
    assert inside.sql(app, "SELECT count(*) FROM page_day") == [(0,)]


def test_pages_that_are_deleted_with_their_comments_do_not_grow(
    owner: Visitor, visitor: Visitor
) -> None:
    visitor.say("one")
    visitor.listing()
    drop(owner, "pages/1")
    assert owner.get("/admin/figures").json["growing"] == []


@pytest.mark.parametrize("counted", [False, True])
def test_countries_of_views_are_counted_only_where_the_owner_wants_that(
    config: Config, fake_world: FakeWorld, counted: bool
) -> None:
    config = replace(config, privacy_count_countries=counted)
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        owner = new_owner(app)
        for ip in ("8.8.8.8", "8.8.4.4", "223.5.5.5", "198.51.100.7"):
            Visitor(app, ip=ip).listing()
            app.tick()
        response = owner.get("/admin/figures").json
        assert response["counts_countries"] == counted
        found = {each["country"]: each["views"] for each in response["countries"]}
        assert found == ({"US": 2, "CN": 1, "": 1} if counted else {})
        # Nothing else of a reader is stored.
        stored = inside.sql(app, "SELECT * FROM country_day")
        assert len(stored) == len(found)


# Blocks that would meet many readers

WIDE = [
    ("address", "0.0.0.0/0", 20),
    ("address", "203.0.0.0/15", 20),
    ("address", "::/0", 0),
    ("address", "2001:db8::/31", 0),
    ("word", "e", 1),
    ("word", " Ｅ ", 1),
    ("word", "thank", 5),
    ("word", "谢", 6),
    ("domain", "mail.example", 7),
    ("domain", "qq.com", 0),
]
NARROW = [
    ("address", "203.0.0.0/16"),
    ("address", "203.0.113.7"),
    ("address", "2001:db8::/32"),
    ("email", "ann@mail.example"),
    ("word", "ee"),
    ("word", "赌"),
    ("word", "good"),
    ("domain", "spam.example"),
]


@NO_LIMITS
def test_a_block_that_would_meet_many_comments_is_made_only_when_confirmed(
    visitor: Visitor, owner: Visitor
) -> None:
    for number in range(20):  # which have much in common
        words = [
            "thank you" if number < 5 else "谢谢" if number < 11 else "yo",
            "deep" if number == 11 else "",
            "good" if 11 <= number < 15 else "",
        ]
        email = f"g{number}@mail.example" if number < 7 else ""
        visitor.say(f"{number} {' '.join(words)}", nickname="Jo", email=email)
    for kind, value in NARROW:
        drop(owner, f"blocks/{block(owner, kind, value)['block']['id']}")
    for kind, value, count in WIDE:
        question = f"这条屏蔽会命中最近 20 条评论中的 {count} 条，确定吗？"
        asked = {"error": question, "code": "block_wide", "count": count, "total": 20}
        assert block(owner, kind, value, 409) == asked
        assert block(owner, kind, value, 409, sure=False)["code"] == "block_wide"
        assert block(owner, kind, value, 400, sure="yes")["code"] == "sure_invalid"
        assert blocks(owner) == []
        drop(owner, f"blocks/{block(owner, kind, value, sure=True)['block']['id']}")
    moderate(owner, [*range(1, 6)], "spam")  # of which a block may meet as much as it likes
    assert block(owner, "word", "thank")["success"]


# Rights that were taken away, and who tries to sign in


@with_settings()
def test_a_link_for_an_admin_ends_with_the_role(visitor: Visitor, owner: Visitor, app: App) -> None:
    new_admin(app, "b@example.com", "Bo")
    admin, widget = (token_of(app, "b@example.com", use) for use in ("admin", "login"))
    secret = link(app, "b@example.com")
    change(owner, "users/2", role="user", password=CANARY)
    change(owner, "users/2", blocked=True)
    claim = {"link": secret, "nickname": "Bo", "password": CANARY}
    assert do(visitor, "claim", 403, **claim)["code"] == "link_invalid"
    change(owner, "users/2", blocked=False)
    change(owner, "users/2", role="admin", password=CANARY)
    for path, token in (("/admin/comments", admin), (f"/comments/waiting?url={PAGE}", widget)):
        headers = {"Authorization": f"Bearer {token}"}
        assert visitor.get(path, headers=headers, status=401).json["code"] == "token_invalid"


def test_a_restore_brings_back_neither_a_used_link_nor_the_token_of_a_lost_account(
    config: Config, fake_world: FakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy = Path(config.database_path), tmp_path / "copy.db"
    form = {"nickname": "Owner", "password": CANARY}
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        form["link"] = link(app, "owner@example.com")
        with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(copy)) as saved:
            db.backup(saved)
        bob = Visitor(app)
        bob.register()
        app.deliver()
        bob.verify(fake_world.code())
        token = bob.login()["token"]
        do(Visitor(app), "claim", **form)
    fake_world.time += HOUR
    monkeypatch.setenv("COMMENTD_DATABASE_PATH", str(path))
    assert main(["restore", str(copy)]) == 0
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        assert do(Visitor(app), "claim", 403, **form)["code"] == "link_invalid"
        new_admin(app, "eve@example.com")  # who gets the number of an account that was lost
        header = {"Authorization": f"Bearer {token}"}
        assert stranger(app).get("/me", headers=header, status=401).json["code"] == "token_invalid"
    assert_whole(str(path))


@with_settings()
def test_one_backup_is_downloaded_at_a_time_and_no_file_is_left(
    owner: Visitor, app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, again = commentd.back_up_to, list[Any]()
    before = {*tmp_path.iterdir()}

    def copied(*args: Any, **how: Any) -> Path:
        form = {"password": CANARY}
        second = stranger(app, owner).post_json("/admin/backup", form, status=503)
        again.append((second.status_int, second.json["code"]))
        return made(*args, **how)

    monkeypatch.setattr(commentd, "back_up_to", copied)
    for _ in range(2):
        owner.post_json("/admin/backup", {"password": CANARY})
    assert again == [(503, "storage")] * 2
    assert {*tmp_path.iterdir()} == before


def test_a_start_removes_files_that_a_kill_left_and_nothing_of_another_blog(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    left = [tmp_path / ".a.db.download", tmp_path / "..a.db.download.part"]
    others = [tmp_path / ".blog-a.db.download", tmp_path / "..blog-a.db.download.part"]
    for copy in (*left, *others):
        copy.write_bytes(b"half")
    make_app(Config(database_path=str(path)), rounds=1).close()
    assert [copy for copy in (*left, *others) if copy.exists()] == others


@with_settings()
def test_a_failed_sign_in_is_in_the_log(
    owner: Visitor, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    form = {"email": "owner@example.com", "password": "wrong", "captcha_token": "x"}
    stranger(app).post_json("/admin/login", form, status=401)
    assert [record.getMessage() for record in caplog.records] == [
        "a sign-in at /admin failed, from 203.0.113.0"
    ]
