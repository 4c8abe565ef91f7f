"""Registration, codes, passwords, tokens, and how often each may be tried: who has an account, what
its token opens, and that nobody is told what is known of an email address."""

import base64
import functools
import hashlib
import hmac
import itertools
import json
import re
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import jwt
import pytest
import webtest

from commentd import App, Config, make_app
from support import inside
from support.client import CANARY, PAGE, Visitor
from support.database import cut_off, dump
from support.inside import database_path, sql, token_key, writer
from support.world import START, FakeWorld

Json = dict[str, Any]

ANN, BOB, CAROL = "ann@example.com", "bob@example.com", "carol@example.com"
SHA256 = hashlib.sha256(CANARY.encode()).hexdigest()
SUCCESS, FAILURE = "验证成功", "验证码错误或已过期"
WRONG = {"error": "邮箱或密码错误", "code": "wrong_credentials"}
UNVERIFIED = {"error": "邮箱未验证", "code": "email_unverified"}
TOKEN_INVALID = {"error": "登录已失效，请重新登录", "code": "token_invalid"}
TOO_MANY = {"error": "操作太频繁，请稍后再试", "code": "too_many"}
NO_LIMITS = {"limits_enabled": False}
unlimited = pytest.mark.parametrize("settings", [NO_LIMITS])
MINUTE, HOUR, DAY = 60, 3600, 86400


def body(**fields: Any) -> Json:
    """A whole body for /auth/register; what is given as `...` is left out."""
    usual = {"email": ANN, "nickname": "Ann", "password": CANARY, "captcha_token": "x"}
    return {name: value for name, value in (usual | fields).items() if value is not ...}


def stranger(app: App, number: int) -> Visitor:
    return Visitor(app, f"198.51.100.{number}")


def code_for(visitor: Visitor, fake_world: FakeWorld, **fields: Any) -> tuple[str, str]:
    """Registers; the code in the email, and the request."""
    request_id = visitor.register(**fields)["request_id"]
    visitor.served.deliver()
    return fake_world.code(), request_id


def new_account(visitor: Visitor, fake_world: FakeWorld, **fields: Any) -> None:
    visitor.verify(code_for(visitor, fake_world, **fields)[0], fields.get("email", ANN))


def another_code(code: str, step: int = 1) -> str:
    return f"{(int(code) + step) % 1_000_000:06d}"


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the rounds of each password that is hashed."""
    done: list[int] = []
    real = hashlib.pbkdf2_hmac

    def counted(name: str, password: bytes, salt: bytes, rounds: int) -> bytes:
        done.append(rounds)
        return real(name, password, salt, rounds)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted)
    return done


def refused(visitor: Visitor) -> None:
    """The visitor's token is no good any more."""
    response = visitor.get("/comments", {"url": PAGE}, status=401)
    assert response.json == TOKEN_INVALID
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert response.headers["Cache-Control"] == "no-store"


# The contract


def test_a_reader_registers_and_logs_in(app: App, visitor: Visitor, fake_world: FakeWorld) -> None:
    registered = visitor.post_json("/auth/register", body(nickname="  Ann  "))
    assert registered.json == {"success": True, "request_id": registered.json["request_id"]}
    assert re.fullmatch("[0-9a-f]{32}", registered.json["request_id"])
    assert visitor.login(status=401) == UNVERIFIED

    app.deliver()
    assert [email.recipient for email in fake_world.emails] == [ANN]
    verified = visitor.post_json("/auth/verify", {"email": ANN, "token": fake_world.code()})
    assert (verified.status_int, verified.text) == (200, SUCCESS)
    assert verified.headers["Content-Type"] == "text/plain; charset=utf-8"
    for response in (registered, verified):
        assert response.headers["Cache-Control"] == "no-store"
    assert visitor.verify(fake_world.code(), status=400) == FAILURE

    logged_in = visitor.login()
    assert logged_in == {"token": logged_in["token"], "nickname": "Ann", "role": "user"}
    assert visitor.login(password="other", status=401) == WRONG
    app.deliver()
    assert len(fake_world.emails) == 1


UNFIT: dict[str, list[Any]] = {  # beside what is of a wrong type, or too long
    "email_invalid": [f"{ANN}\nBcc: {BOB}", f"Ann <{ANN}>", "аnn@example.com"],
    "password_missing": [..., None, ""],
    "password_invalid": [12345678, "a\x00b"],
    "password_too_long": ["密" * 1025],
    "captcha_token_missing": [...],
    "nickname_invalid": [" \u3000 ", "a" * 65],
    "request_id_invalid": [7],
}


def test_a_wrong_field_of_a_registration_or_login_spends_no_hash_and_no_rate_limit(
    app: App, visitor: Visitor, hashes: list[int]
) -> None:
    for code, values in UNFIT.items():
        field = re.sub("_(missing|invalid|too_long)$", "", code)
        paths = ["/auth/register"]
        if field not in ("nickname", "request_id"):
            paths.append("/auth/login")
        for path, value in itertools.product(paths, values):
            response = visitor.post_json(path, body(**{field: value}), status=400).json
            assert response["code"] == code, (path, value)
    assert hashes == []
    assert sql(app, "SELECT * FROM rate_limit") == []


def test_a_registration_sets_no_role_id_or_other_field_of_an_account(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    code, _ = code_for(visitor, fake_world, id=77, role="admin", verified=True, version=9)
    assert visitor.login(role="admin", verified=True, status=401) == UNVERIFIED
    visitor.verify(code, role="admin", nickname="Eve", password="other")
    assert visitor.login(role="admin")["role"] == "user"
    rows = sql(app, "SELECT id, email, nickname, role, version FROM account")
    assert rows == [(1, ANN, "Ann", "user", 1)]


def test_all_spellings_of_an_email_address_are_one_account(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    for spelling in ("ANN@Example.COM", "  ann@example.com ", "aNN@eXAMPLE.cOM"):
        for email, nickname in ((spelling, "Ann"), (ANN, "Anna")):
            new_account(visitor, fake_world, email=email, nickname=nickname)
            assert fake_world.emails[-1].recipient == ANN
            assert visitor.login(spelling)["nickname"] == nickname
            fake_world.time += HOUR
            app.deliver()
    others = ["a.nn@example.com", "ann+a@example.com", "ann@a.example.com"]
    for other in others:  # dots and tags make another one
        new_account(visitor, fake_world, email=other)
    assert sql(app, "SELECT email FROM account ORDER BY id") == [(e,) for e in (ANN, *others)]


GOOD: Json = {"email": ANN, "token": "123456"}
BAD_BODIES: list[tuple[Any, Json, int]] = [
    *((junk, {}, 400) for junk in (b"{", b"", {"email": ANN}, {"token": "123456"})),
    *((GOOD | {"email": email}, {}, 400) for email in ("nobody@example.com", "no address")),
    *((GOOD | {"token": code}, {}, 400) for code in ("12345", "12345a", "①②③④⑤⑥", 123456)),
    (GOOD | {"token": "123456".rjust(65)}, {}, 400),
    (GOOD | {"request_id": 7}, {}, 400),
    (GOOD | {"more": "x" * 66_000}, {}, 413),
    (GOOD, {"Content-Type": "text/plain"}, 415),
    (GOOD, {"Origin": "https://evil.example"}, 400),
]


@pytest.mark.parametrize("settings", [{"site_origins": ("https://blog.example",)}])
def test_malformed_verifications_fail_alike_and_cost_no_try(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    code, _ = code_for(visitor, fake_world)
    for content, headers, status in BAD_BODIES:
        fake_world.time += 5
        sent = content if isinstance(content, bytes) else json.dumps(content).encode()
        headers = {"Content-Type": "application/json"} | headers
        response = visitor.post("/auth/verify", sent, headers=headers, status=status)
        assert response.text == FAILURE, (content, headers)
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert "WWW-Authenticate" not in response.headers
    assert sql(app, "SELECT tries FROM registration") == [(0,)]
    assert visitor.verify(code) == SUCCESS


def test_a_code_is_taken_however_it_was_pasted(visitor: Visitor, fake_world: FakeWorld) -> None:
    ways: list[Callable[[str], str]] = [
        lambda code: f" {code[:3]} {code[3:]}\n",
        lambda code: "\u200b" + code + "\ufeff",
        lambda code: "".join(chr(ord(digit) + 0xFEE0) for digit in code),  # full width
        lambda code: "\u3000".join(code),
        lambda code: code.rjust(64),
        lambda code: "".join(chr(ord(digit) + 0x630) for digit in code),  # Arabic
        lambda code: "".join(chr(ord(digit) + 0x6C0) for digit in code),  # Persian
    ]
    for number, way in enumerate(ways):
        fake_world.time += HOUR
        email = f"ann{number}@example.com"
        code, _ = code_for(visitor, fake_world, email=email)
        assert visitor.verify(way(code), email) == SUCCESS


# Signing in by a code


def sign_in_code(visitor: Visitor, fake_world: FakeWorld, email: str = ANN, **fields: Any) -> Json:
    """Asks for a code; the form that signs in with it."""
    visitor.served.deliver()  # what is sent before
    request_id = visitor.ask_for_code(email, **fields)
    visitor.served.deliver()
    return {"email": email, "code": fake_world.code(), "request_id": request_id}


def refused_code(visitor: Visitor, form: Json, status: int = 401, **fields: Any) -> str:
    return str(visitor.post_json("/auth/login", form | fields, status=status).json["code"])


def test_a_code_signs_in_and_changes_nothing(app: App, ann: Visitor, fake_world: FakeWorld) -> None:
    fake_world.time += HOUR
    before = sql(app, "SELECT * FROM account")
    phone = stranger(app, 1)
    form = sign_in_code(phone, fake_world, "ANN@example.com", lang="de")
    assert "Der Code meldet dich an. Gib ihn nicht weiter." in fake_world.text()
    assert "Das warst nicht du?" in fake_world.text()
    assert refused_code(phone, form, code=another_code(form["code"])) == "code_wrong"
    logged_in = phone.post_json("/auth/login", form | {"nickname": "Eve"}).json
    assert logged_in == {"token": logged_in["token"], "nickname": "Ann", "role": "user"}
    phone.authorization = ("Bearer", logged_in["token"])
    for visitor in (phone, ann):
        assert visitor.say(visitor.authorization[1][-9:])["comment"]["user_id"] == 1
    assert sql(app, "SELECT * FROM account") == before
    assert sql(app, "SELECT * FROM registration") == []
    assert refused_code(phone, form) == "code_wrong", "a code works once"
    app.deliver()
    assert len(fake_world.emails) == 2, "nobody is told of a change"


def test_a_code_makes_an_account_without_a_password(
    app: App, visitor: Visitor, fake_world: FakeWorld, hashes: list[int]
) -> None:
    inside.add_account(app, BOB, "Bob", CANARY, "admin")
    visitor.say("as a guest", email=ANN)
    hashes.clear()
    form = sign_in_code(visitor, fake_world)
    for number in range(6):  # the right code is no wrong try
        assert refused_code(visitor, form, 400) == "nickname_missing", number
    assert refused_code(visitor, form, 409, nickname="Bob") == "nickname_taken"
    logged_in = visitor.post_json("/auth/login", form | {"nickname": " Ann "}).json
    visitor.authorization = ("Bearer", logged_in["token"])
    assert logged_in["nickname"] == "Ann"
    assert {comment["user_id"] for comment in visitor.listing()["comments"]} == {2}
    assert visitor.get("/me").json["has_password"] is False
    assert hashes == []
    for email in (ANN, "nobody@example.com"):
        assert visitor.login(email, 401) == WRONG
    assert hashes == [1, 1]

    fake_world.time += HOUR
    form = sign_in_code(visitor, fake_world) | {"new_password": CANARY}
    for wrong in ({"code": another_code(form["code"])}, {"request_id": "0" * 32}):
        assert visitor.patch_json("/me", form | wrong, status=403).json["code"] == "code_wrong"
    visitor.patch_json("/me", form | {"nickname": "Bob"}, status=409)
    visitor.patch_json("/me", form | {"answers": "?"}, status=400)
    token = visitor.patch_json("/me", form).json["token"]
    refused(visitor)
    visitor.authorization = ("Bearer", token)
    assert visitor.get("/me").json["has_password"] is True
    assert visitor.login()["nickname"] == "Ann"

    fake_world.time += HOUR
    form = sign_in_code(visitor, fake_world) | {"comments": "keep"}
    assert visitor.delete_json("/me", form).json == {"success": True}
    assert visitor.login(status=401) == WRONG


def test_a_code_for_an_account_comes_in_its_language_unless_another_is_asked_for(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    sql(app, "UPDATE account SET language = 'de'")
    fake_world.time += HOUR
    sign_in_code(stranger(app, 1), fake_world)
    assert "Der Code meldet dich an" in fake_world.text()
    fake_world.time += MINUTE
    sign_in_code(stranger(app, 1), fake_world, lang="fr")
    assert "Votre code" in fake_world.text()
    fake_world.time += MINUTE
    new_account(ann, fake_world, password="a new passphrase")
    assert sql(app, "SELECT language FROM account") == [("de",)]


def test_a_code_is_not_used_up_while_others_sign_in(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    form = sign_in_code(ann, fake_world) | {"new_password": "another passphrase"}
    with inside.seats_taken(app, 8):
        ann.faults_allowed = True
        assert ann.patch_json("/me", form, status=503).json["code"] == "busy"
    assert ann.patch_json("/me", form).json["success"]
    assert ann.login(password="another passphrase")["nickname"] == "Ann"


@unlimited
def test_a_code_is_for_one_request_and_purpose(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    form = sign_in_code(ann, fake_world)
    code, request_id = code_for(stranger(app, 1), fake_world, password="evil")
    other = sign_in_code(stranger(app, 2), fake_world, BOB)
    for wrong in (
        {"request_id": request_id},
        {"request_id": other["request_id"]},
        {"code": code, "request_id": request_id},
        {"email": BOB},
        {"email": "nobody@example.com"},
    ):
        assert refused_code(ann, form, **wrong) == "code_wrong", wrong
    assert refused_code(ann, form, 400, code="12345") == "code_invalid"
    assert refused_code(ann, form, 400, request_id=None) == "request_id_missing"
    for named in ({}, {"request_id": form["request_id"]}):
        assert ann.verify(form["code"], status=400, **named) == FAILURE
    assert ann.post_json("/auth/login", form).json["role"] == "user"

    for wait, tries, status in ((599, 4, 200), (600, 0, 401), (0, 5, 401)):
        form = sign_in_code(ann, fake_world)
        for step in range(1, tries + 1):
            assert refused_code(ann, form, code=another_code(form["code"], step)) == "code_wrong"
        fake_world.time += wait
        ann.post_json("/auth/login", form, status=status)


def test_a_code_to_set_a_password_is_no_code_to_sign_in(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    form = sign_in_code(ann, fake_world)
    again = {"request_id": form["request_id"]}  # no second email is sent within a minute
    assert stranger(app, 1).register(password="evil", **again) != {"success": True, **again}
    assert stranger(app, 2).ask_for_code(**again) == form["request_id"]
    app.deliver()
    assert len(fake_world.emails) == 2
    assert ann.verify(form["code"], status=400, **again) == FAILURE
    assert ann.post_json("/auth/login", form).json["nickname"] == "Ann"


def test_an_admin_signs_in_with_the_password_and_not_with_a_code(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    form = sign_in_code(ann, fake_world)
    sql(app, "UPDATE account SET role = 'admin'")
    assert refused_code(ann, form, code=another_code(form["code"])) == "code_wrong"
    assert refused_code(ann, form, 403) == "password_required"
    for method, more in (("PATCH", {"new_password": "new " * 4}), ("DELETE", {"comments": "keep"})):
        response = ann.request(
            "/me",
            method=method,
            body=json.dumps(form | more).encode(),
            status=403,
            headers={"Content-Type": "application/json"},
        )
        assert response.json["code"] == "password_required"
    sql(app, "UPDATE account SET role = 'user', blocked = 1")
    assert refused_code(stranger(app, 1), form) == "code_wrong", "blocked since it was sent"


def test_a_client_asks_for_five_codes_an_hour(visitor: Visitor, fake_world: FakeWorld) -> None:
    forms = [{"email": f"{number}@example.com", "captcha_token": "x"} for number in range(7)]
    for form in forms[:5]:
        visitor.post_json("/auth/code", form)
    visitor.post_json("/auth/code", forms[5], status=429)
    fake_world.time += 3600
    visitor.post_json("/auth/code", forms[6])


def test_asking_for_a_code_gives_the_same_response_for_every_email_address(
    app: App, ann: Visitor, fake_world: FakeWorld, hashes: list[int]
) -> None:
    fake_world.time += HOUR
    stranger(app, 0).register(BOB)
    stranger(app, 1).ask_for_code(CAROL)
    inside.add_account(app, "dan@example.com", "Dan", CANARY)
    sql(app, "UPDATE account SET blocked = 1 WHERE nickname = 'Dan'")
    fake_world.time += HOUR
    app.deliver()
    before = len(fake_world.emails)
    hashes.clear()
    responses = []
    for number, name in enumerate(("ann", "bob", "carol", "dan", "new"), 10):
        fields = {"email": f"{name}@example.com", "captcha_token": "x"}
        response = stranger(app, number).post_json("/auth/code", fields)
        text = response.text.replace(response.json["request_id"], "")
        responses.append((*visible_parts(response)[:2], text, len(response.body)))
    assert responses == [responses[0]] * 5
    assert hashes == []
    app.deliver()
    sent = [email.recipient for email in fake_world.emails[before:]]
    assert sorted(sent) == [f"{name}@example.com" for name in ("ann", "bob", "carol", "new")]


# Registering again


def test_a_registration_changes_no_account_before_its_code_is_confirmed(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    sql(app, "UPDATE account SET role = 'admin'")
    ann.say("mine")
    app.deliver()
    before = dump(database_path(app))
    eve = stranger(app, 1)
    fake_world.time += HOUR
    code, _ = code_for(eve, fake_world, nickname="Eve", password="new")
    for kept in (CANARY, "Eve"):
        assert kept not in fake_world.emails[-1].message + fake_world.text()

    now = dump(database_path(app))
    assert {table for table in now if now[table] != before[table]} == {"registration"}
    assert ann.login()["nickname"] == "Ann"
    now = dump(database_path(app))
    assert eve.login(password="new", status=401) == UNVERIFIED
    eve.verify(another_code(code), status=400)
    assert dump(database_path(app)) == now
    assert ann.say("still mine")["comment"]["user_id"] == 1

    eve.verify(code)
    rows = sql(app, "SELECT id, email, nickname, role FROM account")
    assert rows == [(1, ANN, "Eve", "admin")]
    refused(ann)
    ann.authorization = None
    assert {c["user_id"] for c in ann.listing()["comments"]} == {1}
    assert eve.login(status=401) == WRONG
    assert eve.login(password="new")["role"] == "admin"
    eve.sign_in(password="new")
    assert eve.say("and mine")["comment"]["user_id"] == 1


def test_a_change_of_password_and_nickname_is_announced_by_email(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    code = code_for(ann, fake_world, nickname="Eve")[0]
    change = "密码和昵称会改为刚才填写的"
    assert [change in fake_world.text(number) for number in (0, 1)] == [False, True]
    ann.verify(code, "ANN@example.com")
    app.deliver()
    assert [email.recipient for email in fake_world.emails] == [ANN] * 3
    assert "密码" in fake_world.text(2)
    assert not re.search(r"Eve|\d{6}", fake_world.text(2))


def test_confirming_drops_other_registrations(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    others = []
    for number in (1, 2):
        others.append(code_for(stranger(app, number), fake_world, password=f"other {number}"))
        fake_world.time += MINUTE + 1
    mine, _ = code_for(visitor, fake_world)
    fake_world.mail_fails_with = OSError("down")
    visitor.verify(mine)
    for code, request_id in others:
        assert visitor.verify(code, status=400) == FAILURE
        assert visitor.verify(code, status=400, request_id=request_id) == FAILURE
    assert visitor.login(password="other 1", status=401) == WRONG
    assert sql(app, "SELECT 1 FROM registration UNION ALL SELECT 1 FROM outbox") == []
    assert visitor.login()["nickname"] == "Ann"


@unlimited
def test_a_confirmation_is_applied_as_a_whole_or_not_at_all(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    guest = stranger(app, 1)
    guest.say("under her email address", email=ANN)
    code, request_id = code_for(guest, fake_world, nickname="Anna", password="new")
    code_for(stranger(app, 2), fake_world)
    guest.faults_allowed = True  # and what a refusal changes, the visitor sees
    for last in itertools.count(5, 25):
        form = {"email": ANN, "token": code, "request_id": request_id}
        with cut_off(inside.writer(app), last):
            response = guest.post_json("/auth/verify", form, expect_errors=True)
        if response.status_int == 200:
            break
        assert (response.status_int, response.text) == (503, FAILURE)
    assert last > 50
    assert guest.login(password="new")["nickname"] == "Anna"
    assert [c["user_id"] for c in guest.listing()["comments"]] == [None]


# Which registration a code confirms


def test_a_code_confirms_its_own_registration(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    for email, named in ((ANN, True), (BOB, False)):  # or each that waits is tried
        fake_world.time += HOUR
        mine, my_request = code_for(visitor, fake_world, email=email)
        fake_world.time += MINUTE + 1
        fields = {"email": email, "nickname": "Eve", "password": "evil"}
        eves, eves_request = code_for(stranger(app, 1), fake_world, **fields)
        assert mine != eves
        for code, request_id in [(mine, eves_request), (eves, my_request), (mine, "f" * 32)]:
            assert visitor.verify(code, email, 400, request_id=request_id) == FAILURE
        assert visitor.verify(mine, CAROL, 400, request_id=my_request) == FAILURE
        own: dict[str, Any] = {"request_id": my_request} if named else {}
        assert stranger(app, 2).verify(mine, email, **own) == SUCCESS
        assert visitor.login(email)["nickname"] == "Ann"
        assert visitor.login(email, password="evil", status=401) == WRONG


def test_at_most_three_registrations_wait_for_one_email_address(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    codes = []
    for number in range(3):
        codes.append(code_for(stranger(app, number), fake_world, nickname=f"N{number}"))
        fake_world.time += MINUTE + 1
    waiting = dump(database_path(app))["registration"]
    assert set(visitor.register()) == {"success", "request_id"}
    app.deliver()
    assert len(fake_world.emails) == 3
    assert dump(database_path(app))["registration"] == waiting

    fake_world.time = START + 600  # the first has expired and gives way
    code, request_id = code_for(visitor, fake_world)
    wait = "SELECT nickname FROM registration WHERE expires_at > ? ORDER BY id"
    assert sql(app, wait, fake_world.time) == [("N1",), ("N2",), ("Ann",)]
    assert visitor.verify(codes[0][0], status=400) == FAILURE
    assert visitor.verify(code, request_id=request_id) == SUCCESS


@pytest.mark.parametrize("same_client", [True, False])
def test_a_second_registration_replaces_only_the_first_of_the_same_person(
    app: App, visitor: Visitor, fake_world: FakeWorld, same_client: bool
) -> None:
    code_for(stranger(app, 1), fake_world, nickname="Eve")
    fake_world.time += MINUTE + 1
    first, request_id = code_for(visitor, fake_world, password="first")
    fake_world.time += MINUTE + 1
    fields = {} if same_client else {"request_id": request_id}
    again = visitor if same_client else stranger(app, 2)
    second, _ = code_for(again, fake_world, password="second", **fields)
    assert visitor.verify(first, status=400, request_id=request_id) == FAILURE
    assert visitor.login(password="first", status=401) == WRONG
    assert visitor.login(password="second", status=401) == UNVERIFIED
    assert sql(app, "SELECT count(*) FROM registration") == [(2,)], "the other's stays"
    assert visitor.verify(second) == SUCCESS


def test_a_registration_beyond_the_limit_of_emails_keeps_the_code_sent_before(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    for _ in range(5):  # all that an email address gets in an hour
        code, request_id = code_for(visitor, fake_world)
        fake_world.time += 61
    late = stranger(visitor.served, 9)
    again = late.register(request_id=request_id, nickname="Anna", password="newer")
    assert again == {"success": True, "request_id": request_id}
    assert late.verify(code, request_id=request_id) == SUCCESS
    assert late.login(password="newer")["nickname"] == "Anna"


# The life of a code


def test_a_code_lives_for_ten_minutes(visitor: Visitor, fake_world: FakeWorld) -> None:
    cases = [(0, 200), (599, 200), (600, 400)]
    for number, (seconds, status) in enumerate(cases):
        fake_world.time = sent_at = START + number * 30 * DAY
        email = f"n{number}@example.com"
        code, request_id = code_for(visitor, fake_world, email=email)
        fake_world.time += seconds
        visitor.verify(code, email, status, request_id=request_id)
        visitor.verify(code, email, 400)
        fake_world.time = sent_at + 600
        assert visitor.verify(code, email, 400) == FAILURE, seconds


def test_a_login_says_for_a_day_that_the_email_address_is_unverified(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    code_for(visitor, fake_world)
    for seconds, refusal in [(601, UNVERIFIED), (DAY - 1, UNVERIFIED), (DAY + 61, WRONG)]:
        fake_world.time = START + seconds
        app.tick()
        assert visitor.login(status=401) == refusal
        assert visitor.login(password="other", status=401) == WRONG
        assert sql(app, "SELECT code FROM registration WHERE code <> ''") == []


def test_a_code_is_in_its_email_alone_and_not_in_the_database(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    code, _ = code_for(visitor, fake_world)
    visitor.register(BOB)
    (kept,) = sql(app, "SELECT * FROM registration WHERE email = ?", ANN)
    for known in (code, hashlib.sha256(code.encode()).hexdigest()):
        assert known not in str(kept)
    assert sql(app, "SELECT recipient FROM outbox") == [(BOB,)], "what was sent is gone"


# Tries


def test_five_wrong_tries_end_a_code(visitor: Visitor, fake_world: FakeWorld) -> None:
    code, request_id = code_for(visitor, fake_world)
    for step in range(1, 6):
        assert (
            visitor.verify(another_code(code, step), status=400, request_id=request_id) == FAILURE
        )
    for named in ({"request_id": request_id}, {}):
        assert visitor.verify(code, status=400, **named) == FAILURE
    fake_world.time += HOUR
    code, _ = code_for(visitor, fake_world)
    for step in range(1, 5):
        visitor.verify(another_code(code, step), status=400)
    assert visitor.verify(code) == SUCCESS


def guess(app: App, code: str, times: int) -> None:
    """Wrong guesses, each from an IP address of its own."""
    for step in range(times):
        stranger(app, step).verify(another_code(code, step + 1), status=400)


def test_an_email_address_allows_fifteen_wrong_codes_a_day(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    for _ in range(3):
        guess(app, code_for(visitor, fake_world)[0], 5)
        fake_world.time += HOUR
    code, request_id = code_for(visitor, fake_world)
    assert visitor.verify(code, status=400) == FAILURE
    guess(app, code, 15)
    assert visitor.verify(code, request_id=request_id) == SUCCESS, "burning them locks nobody out"
    fake_world.time = START + DAY
    assert visitor.verify(code_for(visitor, fake_world)[0]) == SUCCESS


def test_right_codes_do_not_count_as_wrong_ones(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    for named in (False, True):
        code, request_id = code_for(visitor, fake_world)
        guess(app, code, 4)
        own: dict[str, Any] = {"request_id": request_id} if named else {}
        assert visitor.verify(code, **own) == SUCCESS
        fake_world.time += HOUR
    assert sql(app, "SELECT used FROM rate_limit WHERE name = 'unnamed_wrong_code'") == [(8,)]


# Nobody is told what is known of an email address


def visible_parts(response: webtest.TestResponse) -> tuple[Any, ...]:
    """All that a client sees of a response."""
    return response.status, sorted(response.headers.items()), response.body


NAMES = ("ann", "bob", "carol", "nobody")  # with an account, some that wait, one, none


def test_registering_tells_and_does_the_same_for_every_email_address(
    app: App, ann: Visitor, fake_world: FakeWorld, hashes: list[int]
) -> None:
    fake_world.time += HOUR
    for number in range(5):
        stranger(app, number).register(CAROL if number == 4 else BOB)
        fake_world.time += MINUTE + 1
    hashes.clear()
    responses = []
    for number, name in enumerate(NAMES, 10):
        fields = body(email=f"{name}@example.com")
        response = stranger(app, number).post_json("/auth/register", fields)
        text = response.text.replace(response.json["request_id"], "")
        responses.append((*visible_parts(response)[:2], text, len(response.body)))
    assert responses == [responses[0]] * 4
    assert hashes == [1] * 4


def test_a_failed_login_tells_and_does_the_same_for_every_email_address(
    app: App, ann: Visitor, fake_world: FakeWorld, hashes: list[int]
) -> None:
    fake_world.time += HOUR
    for number in range(3):
        for email in (ANN, BOB):
            stranger(app, number).register(email, password=f"waits {number}")
        fake_world.time += MINUTE + 1
    stranger(app, 0).register(CAROL)
    hashes.clear()
    responses = []

    def fail(name: str, password: str = "wrong") -> None:
        form = body(email=f"{name}@example.com", password=password)
        responses.append(visible_parts(stranger(app, 9).post_json("/auth/login", form, status=401)))

    for name in NAMES:
        fail(name)
    for number in range(3):
        waits: dict[str, Any] = {"status": 401, "password": f"waits {number}"}
        assert stranger(app, 8).login(**waits) == UNVERIFIED
        assert stranger(app, 7).login(BOB, **waits) == UNVERIFIED
    sql(app, "UPDATE account SET blocked = 1")
    for password in (CANARY, "wrong"):
        fail("ann", password)
    assert responses == [responses[0]] * 6
    assert json.loads(responses[0][2]) == WRONG
    assert hashes == [1] * 12


def test_a_wrong_code_tells_nothing_of_an_account(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    code, _ = code_for(stranger(app, 1), fake_world, email=BOB)
    bodies = [{"email": f"{name}@example.com", "token": another_code(code)} for name in NAMES]
    responses = [visible_parts(ann.post_json("/auth/verify", each, status=400)) for each in bodies]
    assert responses == [responses[0]] * 4


@unlimited
def test_registrations_of_one_moment_share_a_salt(
    app: App, visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, overtaken = hashlib.pbkdf2_hmac, list[int]()

    def slow(*given: Any) -> bytes:
        if not overtaken:
            overtaken.append(1)
            stranger(app, 1).register(password="first")
        return real(*given)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", slow)
    visitor.register(password="second")
    assert sql(app, "SELECT count(*) FROM registration") == [(2,)]
    assert visitor.login(password="first", status=401) == UNVERIFIED
    assert visitor.login(password="second", status=401) == UNVERIFIED


# Passwords

FORMS: list[Callable[[str], str]] = [
    str,
    lambda password: hashlib.sha256(password.encode()).hexdigest(),
    lambda password: hashlib.sha256(password.encode()).hexdigest().upper(),
]


@unlimited
def test_a_password_and_its_sha256_are_the_same(visitor: Visitor, fake_world: FakeWorld) -> None:
    for number, first in enumerate(FORMS):
        again, email = FORMS[number - 1], f"n{number}@example.com"
        for password, form in ((CANARY, first), ("other", again)):
            code, _ = code_for(visitor, fake_world, email=email, password=form(password))
            waiting = FORMS[number - 2](password)
            assert visitor.login(email, 401, password=waiting) == UNVERIFIED
            visitor.verify(code, email)
            visitor.served.deliver()
            for shape in FORMS:
                assert visitor.login(email, password=shape(password))["role"] == "user"
        assert visitor.login(email, password=first(CANARY), status=401) == WRONG


ODD, LONG = " Pässword\u00e9 ", "x" * 1023 + "y"
ODD_HASH = hashlib.sha256(ODD.encode()).hexdigest()
NEARLY = {  # a password, and what is not the same
    ODD: [
        ODD.strip(),
        ODD + " ",
        ODD.upper(),
        ODD.casefold(),
        ODD + "\n",
        ODD.replace("\u00e9", "e\u0301"),
        ODD_HASH[:63],
        ODD_HASH + " ",
        hashlib.sha256(ODD_HASH.encode()).hexdigest(),
    ],
    LONG: [LONG[:-1], "x" * 1024, "y" + LONG[1:], LONG[:72]],
    # Short and common ones are taken.
    **{common: [common * 2] for common in ("1", "123456", "password", "  ")},
}


@unlimited
def test_the_bytes_of_a_password_count_exactly(visitor: Visitor, fake_world: FakeWorld) -> None:
    for number, (password, others) in enumerate(NEARLY.items()):
        email = f"n{number}@example.com"
        new_account(visitor, fake_world, email=email, password=password)
        for other in others:
            assert visitor.login(email, 401, password=other) == WRONG, other
        assert visitor.login(email, password=password)["role"] == "user"


def test_only_a_salted_iterated_hash_of_a_password_is_kept(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    ann.register(password="other")
    ann.register(BOB)
    kept = sql(app, "SELECT password FROM account UNION ALL SELECT password FROM registration")
    parts = [text.split("$") for (text,) in kept]
    assert [part[:2] for part in parts] == [["pbkdf2_sha256", "1"]] * 3
    salts = [bytes.fromhex(part[2]) for part in parts]
    assert {len(salt) for salt in salts} == {16}
    assert salts[0] == salts[1] != salts[2], "one salt an email address"
    derived = hashlib.pbkdf2_hmac("sha256", SHA256.encode(), salts[2], 1)
    assert parts[2][3] == derived.hex()
    app.close()
    content = Path(database_path(app)).read_bytes()
    assert [word for word in (CANARY, SHA256, SHA256.upper()) if word.encode() in content] == []


def test_a_service_hashes_with_600_000_rounds(config: Config, hashes: list[int]) -> None:
    with closing(make_app(config)) as app:
        Visitor(app).register()
    assert hashes == [600_000]


def test_a_login_rehashes_a_password_when_the_rounds_were_raised(
    config: Config, fake_world: FakeWorld, hashes: list[int]
) -> None:
    for rounds, done in [(2, []), (3, [2, 3]), (3, [3]), (2, [3])]:
        app = make_app(config, fake_world.world, rounds=rounds)
        visitor = Visitor(app)
        if not done:
            new_account(visitor, fake_world)
            token = ("Bearer", visitor.login()["token"])
        else:
            hashes.clear()
            assert visitor.login(password="other", status=401) == WRONG
            assert hashes == done[:1], "a wrong one changes nothing"
            hashes.clear()
            visitor.login(password=SHA256)
            assert hashes == done
        visitor.authorization = token
        assert visitor.say(f"as before {rounds}")["comment"]["user_id"] == 1
        ((stored,),) = sql(app, "SELECT password FROM account")
        assert stored.startswith(f"pbkdf2_sha256${max(2, rounds, *done)}$")
        app.close()


# Tokens


@pytest.mark.parametrize("settings", [{}, {"token_key": "a key that the owner chose, long enough"}])
def test_a_token_holds_the_claims_of_the_contract(app: App, ann: Visitor, settings: Json) -> None:
    key = settings.get("token_key", token_key(app).decode()).encode()
    claims = jwt.decode(
        ann.authorization[1],
        key,
        algorithms=["HS256"],
        options={
            "verify_exp": False,
            "verify_iat": False,
        },  # the clock of this test is not the real
    )
    times = {"exp": START + 7 * DAY, "iat": START}
    assert claims == {"id": 1, "email": ANN, "role": "user", **times, "use": "login", "ver": 1}
    assert all(type(claims[name]) is int for name in ("id", "exp", "iat", "ver"))


def test_a_token_lives_for_seven_days(ann: Visitor, fake_world: FakeWorld) -> None:
    for seconds, good in [(7 * DAY - 1, True), (7 * DAY, False), (-60, True), (-61, False)]:
        fake_world.time = START + seconds
        if good:
            ann.listing()
        else:
            refused(ann)


ENDS = (START, START - 1, START + 7 * DAY + 61, 2**70, START + 9.5, True, None, f"{START + 9}")
FORGED: dict[str, tuple[Any, ...]] = {
    "use": (..., "mail", "edit", "", None, 1, ["login"]),
    "exp": (..., *ENDS, [START + 9], -(2**70)),
    "iat": (...,),
    "id": (..., 0, -1, 2, 99, None, "1", True, 1.0, [1]),
    "ver": (..., 0, 2, "1", None, 2**70, True, 1.0),
}


def jwt_of(header: Json, claims: Any, key: bytes, algorithm: str = "sha256") -> str:
    """A token made by hand, since libraries refuse to make wrong ones."""

    def coded(part: bytes) -> bytes:
        return base64.urlsafe_b64encode(part).rstrip(b"=")

    signed = b".".join(coded(json.dumps(part).encode()) for part in (header, claims))
    return (signed + b"." + coded(hmac.digest(key, signed, algorithm))).decode()


def test_a_token_with_wrong_claims_is_refused(app: App, ann: Visitor) -> None:
    claims = {"id": 1, "email": ANN, "role": "admin", "use": "login", "ver": 1}
    claims |= {"iat": START, "exp": START + 100}
    ann.authorization = ("Bearer", jwt_of({"alg": "HS256"}, claims, token_key(app)))
    ann.listing()  # the pattern is good
    for name, value in ((name, value) for name, values in FORGED.items() for value in values):
        signed = {n: v for n, v in (claims | {name: value}).items() if v is not ...}
        ann.authorization = ("Bearer", jwt_of({"alg": "HS256"}, signed, token_key(app)))
        response = ann.get("/comments", {"url": PAGE}, expect_errors=True)
        assert (response.status_int, response.json) == (401, TOKEN_INVALID), (name, value)


def test_a_token_that_the_service_did_not_sign_is_refused(app: App, ann: Visitor) -> None:
    good, key = ann.authorization[1], token_key(app)
    head, payload, seal = good.split(".")
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    forged = [
        jwt_of({"alg": "HS256"}, claims, b"another key, also of thirty-two bytes"),
        jwt_of({"alg": "HS256"}, claims, b""),
        jwt_of({"alg": "HS512"}, claims, key, "sha512"),
        jwt_of({"alg": "none"}, claims, key),
        jwt_of({"alg": "HS256", "crit": ["x"], "x": 1}, claims, key),
        jwt_of({"alg": "HS256"}, [claims], key),
        f"{none}.{payload}.",
        f"{none}.{payload}.{seal}",
        f"{head}.{payload}.",
        f"{head}.{payload}",
        f"{head}.{payload}.{seal}=",
        f"{head}.{payload}.{seal}.{seal}",
        f"{head}.{payload}A.{seal}",
        f"{head}.{payload}.{seal[:-5]}",
        f"{good} {good}",
        "a.b.c",
        "a.b",
        "a.b.c.d",
        "..",
        "...",
        "x",
        "",
        "\xe9.\xe9.\xe9",
        "x" * 4097,
    ]
    ann.authorization = None
    for token in forged:
        headers = {"Authorization": f"Bearer {token}"}
        for method, path in (("GET", f"/comments?url={PAGE}"), ("POST", "/auth/logout")):
            response = ann.request(path, method=method, headers=headers, status=401)
            assert response.json == TOKEN_INVALID, token
            assert response.headers["WWW-Authenticate"] == "Bearer"
            assert response.headers["Cache-Control"] == "no-store"
    ann.say("not even as a guest", status=401, headers={"Authorization": "Bearer x"})
    assert ann.say("good", headers={"Authorization": f"bearer {good}"})["comment"]["user_id"] == 1


def test_a_token_does_not_name_its_key(ann: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[Any] = []  # nor is one asked for elsewhere
    monkeypatch.setattr(socket.socket, "connect", lambda *given: called.append(given))
    own = b"a key that whoever sends it knows well"
    coded = base64.urlsafe_b64encode(own).rstrip(b"=").decode()
    claims = {"id": 1, "use": "login", "ver": 1, "iat": START, "exp": START + 100}
    for field in (
        {"kid": own.decode()},
        {"kid": "../../dev/null"},
        {"jwk": {"kty": "oct", "k": coded}},
        {"jku": "http://127.0.0.1:1/keys"},
        {"x5u": "http://127.0.0.1:1/keys", "x5c": [coded]},
    ):
        head = {"alg": "HS256", **field}
        for forged in (own, coded.encode()):
            ann.authorization = ("Bearer", jwt_of(head, claims, forged))
            refused(ann)
    assert called == []


def test_to_log_out_ends_all_tokens_of_an_account(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    bob = stranger(app, 1)
    new_account(bob, fake_world, email=BOB)
    bob.sign_in(BOB)
    phone = ("Bearer", ann.login()["token"])
    assert ann.post_json("/auth/logout", {}).json == {"success": True}
    for token in (ann.authorization, phone):
        ann.authorization = token
        refused(ann)
        assert ann.post_json("/auth/logout", {}, status=401).json == TOKEN_INVALID
    assert bob.say()["comment"]["user_id"] == 2
    ann.sign_in()
    assert ann.say("again")["comment"]["user_id"] == 1
    ann.authorization = None
    refusal = {"error": "请先登录", "code": "login_required"}
    assert ann.post_json("/auth/logout", {}, status=401).json == refusal


def test_a_token_has_the_role_that_the_database_says(app: App, ann: Visitor) -> None:
    ann.say()
    for role, ip in (("admin", "203.0.113.7"), ("user", "203.0.113.0")):
        sql(app, "UPDATE account SET role = ?", role)
        assert ann.listing()["comments"][0]["ip"] == ip
        assert ann.login()["role"] == role


def test_a_token_counts_in_the_authorization_header_alone(ann: Visitor) -> None:
    token = ann.authorization[1]
    ann.authorization = None
    for header in ("Basic YW5uOnB3", f"Token {token}", f"Bearerx {token}", token, ""):
        comment = ann.say("hi", headers={"Authorization": header})
        assert comment["comment"]["user_id"] is None, header
    names = ("token", "access_token", "Authorization", "authorization")
    in_url = "&".join(f"{name}={value}" for name in names for value in (token, f"Bearer%20{token}"))
    comment = {"page_url": PAGE, "nickname": "Ann", "content": "hi", "captcha_token": "x"}
    for name in names:
        ann.set_cookie(name, token)
    fields = dict.fromkeys(names, token)
    posted = ann.post_json(f"/comments?{in_url}", comment | fields)
    assert posted.json["comment"]["user_id"] is None
    refusal = ann.post_json(f"/auth/logout?{in_url}", fields, status=401)
    assert refusal.json["code"] == "login_required"


def test_a_bad_token_is_ignored_on_routes_that_need_none(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    visitor.authorization = ("Bearer", "bad")
    new_account(visitor, fake_world)
    assert visitor.login()["role"] == "user"
    for path in ("/captcha", "/health", "/embed.js"):
        visitor.get(path, status=200)


def test_the_key_of_a_service_is_32_bytes_of_its_own(config: Config, tmp_path: Path) -> None:
    keys = []
    for name in ("other", "one", "one"):
        there = replace(config, database_path=str(tmp_path / f"{name}.db"))
        with closing(make_app(there, rounds=1)) as app:
            keys.append(token_key(app))
            inside.add_account(app, f"n{len(keys)}@example.com", "Ann", SHA256)
    assert re.fullmatch(b"[0-9a-f]{64}", keys[0])
    assert keys[0] != keys[1] == keys[2]
    for loss in ("UPDATE secret SET value = ''", "DELETE FROM secret"):
        sql(app, loss)
        with pytest.raises(Exception, match="has accounts but no key"):
            make_app(there)
    make_app(replace(there, token_key="k" * 32)).close()


# Rate limits


def request_of_its_own(client: webtest.TestApp, path: str, number: int) -> webtest.TestResponse:
    """A request for an email address of its own, so that only the limits of the client count."""
    fields = body(email=f"n{number}@example.com", token="123456")
    return client.post_json(path, fields, expect_errors=True)


LIMITED = [("/auth/register", 5, HOUR), ("/auth/verify", 10, 600), ("/auth/login", 10, 600)]
CLIENTS = [  # the IP addresses of one client
    ["203.0.113.7", "::ffff:203.0.113.7", "::ffff:cb00:7107"],
    ["localhost", "", "203.0.113.7, 203.0.113.8"],
    ["2001:db8:1:2::1", "2001:db8:1:2:ffff::", "2001:0DB8:1:2:0:0:0:3"],
]


def test_a_rate_limited_client_is_told_when_to_try_again(app: App, fake_world: FakeWorld) -> None:
    for addresses, (path, most, window) in zip(CLIENTS, LIMITED, strict=True):
        fake_world.time += DAY // HOUR * HOUR
        clients = itertools.cycle([Visitor(app, ip) for ip in addresses])
        for number in range(most):
            assert request_of_its_own(next(clients), path, number).status_int != 429, (
                addresses,
                path,
            )
            fake_world.time += 1
        late = request_of_its_own(next(clients), path, 99)
        assert late.status_int == 429, (addresses, path)
        assert late.headers["Retry-After"] == str(window - most)
        if path == "/auth/verify":
            assert (late.text, late.content_type) == (FAILURE, "text/plain")
        else:
            assert late.json == TOO_MANY
        for neighbour in ("203.0.113.8", "2001:db8:1:3::1"):
            assert request_of_its_own(Visitor(app, neighbour), path, 98).status_int != 429
        fake_world.time += window - most - 1
        assert request_of_its_own(next(clients), path, 97).headers["Retry-After"] == "1"
        fake_world.time += 1
        assert request_of_its_own(next(clients), path, 96).status_int != 429


def test_rate_limits_are_forgotten_in_time(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    for number, (path, *_) in enumerate(LIMITED):
        request_of_its_own(visitor, path, number)
    assert len(sql(app, "SELECT name FROM rate_limit")) > 6
    fake_world.time += DAY
    app.tick()
    assert sql(app, "SELECT name FROM rate_limit") == []


def test_rate_limits_lock_nobody_out_after_a_wrong_clock(app: App, fake_world: FakeWorld) -> None:
    fake_world.time += 30 * DAY
    client = Visitor(app)
    for number in range(11):
        response = request_of_its_own(client, "/auth/login", number)
    assert response.status_int == 429
    fake_world.time -= 30 * DAY
    assert request_of_its_own(client, "/auth/login", 12).status_int == 401


def test_a_second_code_is_refused_within_a_minute(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    visitor.register()
    fake_world.time += 20
    for path in ("/auth/register", "/auth/code"):
        late = visitor.post_json(path, body(email="ANN@example.com"), status=429)
        assert (late.json, late.headers["Retry-After"]) == (TOO_MANY, "40")
    stranger(app, 1).register()
    fake_world.time += 40
    visitor.register()


def test_five_wrong_passwords_make_a_client_wait(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    for number, email in enumerate((ANN, "nobody@example.com")):
        fake_world.time += HOUR
        client = stranger(app, number)
        for _ in range(5):
            assert client.login(email, 401, password="wrong") == WRONG
            fake_world.time += 1
        assert ann.login()["role"] == "user", "the owner is not locked out by others"
        late = client.post_json("/auth/login", body(email=email), status=429)
        assert (late.json, late.headers["Retry-After"]) == (TOO_MANY, "595")
        client.login("another@example.com", 401)
        fake_world.time += 595
        client.login(email, 200 if email == ANN else 401)
    for _ in range(4):
        ann.login(password="wrong", status=401)
    for _ in range(5):  # right ones are not counted
        ann.login()


def emails_of(app: App, fake_world: FakeWorld, times: int, seconds: int, email: str) -> int:
    """How many emails come of so many registrations, each of another client."""
    before = len(fake_world.emails)
    for number in range(times):
        ip = str(ip_address(10 << 24 | int(fake_world.time) % 2**24))
        client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": ip})
        assert client.post_json("/auth/register", body(email=email.format(number))).json["success"]
        app.deliver()
        fake_world.time += seconds
    return len(fake_world.emails) - before


def test_an_email_address_gets_five_emails_an_hour_and_ten_a_day(
    app: App, fake_world: FakeWorld
) -> None:
    for email, starts_at, times, every, sent in (
        (ANN, 0, 4, 15, 1),
        (ANN, 10 * HOUR, 12, 299, 5),
        (ANN, 12 * HOUR, 12, 700, 4),
        (ANN, DAY, 1, 0, 1),
        # What is not sent is not counted.
        (BOB, 2 * DAY, 6, 5, 1),
        (BOB, 2 * DAY + 11 * MINUTE, 4, 11 * MINUTE, 4),
        (BOB, 2 * DAY + HOUR - 1, 1, 1, 0),
        (BOB, 2 * DAY + HOUR, 1, 1, 1),
    ):
        fake_world.time = START + starts_at
        assert emails_of(app, fake_world, times, every, email) == sent, starts_at


@pytest.mark.slow
def test_all_email_addresses_together_get_two_hundred_emails_an_hour(
    app: App, fake_world: FakeWorld
) -> None:
    assert emails_of(app, fake_world, 202, 1, "n{}@example.com") == 200
    fake_world.time = START + HOUR
    assert emails_of(app, fake_world, 1, 0, ANN) == 1


def kinds_of(asked: list[str]) -> list[str]:
    """The statements, without their values."""
    return [re.sub(r"'[^']*'|\b\d+\b", "?", " ".join(statement.split())) for statement in asked]


def test_a_code_costs_the_same_work_whether_there_is_an_account_or_not(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    asked = {}
    for number, email in enumerate((ANN, BOB)):
        eve = stranger(app, number)
        form = {"email": email, "captcha_token": "x"}
        with inside.statements(app) as asking:
            request_id = eve.post_json("/auth/code", form).json["request_id"]
        guess = {"email": email, "code": "000000", "request_id": request_id}
        with inside.statements(app) as guessing:
            eve.post_json("/auth/login", guess, status=401)
        asked[email] = kinds_of(asking), kinds_of(guessing)
    assert asked[ANN] == asked[BOB]
    assert min(map(len, asked[ANN])) > 8


def ask_from_anywhere(app: App, fake_world: FakeWorld, times: int = 12) -> None:
    """Strangers ask for codes for Ann, from a new network each time, for a day."""
    for number in range(times):
        stranger(app, 100 + number).ask_for_code()
        fake_world.time += 10 * MINUTE
    app.deliver()
    fake_world.emails.clear()


def test_strangers_lock_no_account_out_of_a_network_it_has_signed_in_from(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    ask_from_anywhere(app, fake_world)
    form = sign_in_code(ann, fake_world)
    assert ann.post_json("/auth/login", form).json["nickname"] == "Ann"
    fake_world.time += MINUTE
    new_account(ann, fake_world, password="a new passphrase")
    assert ann.login(password="a new passphrase")["nickname"] == "Ann"
    # On another network nothing comes, and the response tells nothing of that.
    app.deliver()
    fake_world.emails.clear()
    elsewhere = stranger(app, 1).post_json("/auth/code", {"email": ANN, "captcha_token": "x"})
    nobody = stranger(app, 1).post_json("/auth/code", {"email": BOB, "captcha_token": "x"})
    assert visible_parts(elsewhere)[:2] == visible_parts(nobody)[:2]
    app.deliver()
    assert [email.recipient for email in fake_world.emails] == [BOB]
    # What is set aside is a part, too.
    for _ in range(8):
        fake_world.time += HOUR
        ann.ask_for_code()
        app.deliver()
    assert [email.recipient for email in fake_world.emails].count(ANN) == 3


def test_three_waiting_registrations_of_strangers_keep_no_reader_out(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    for number in range(3):
        stranger(app, number).register(password="evil")
        fake_world.time += MINUTE
    app.deliver()
    form = sign_in_code(ann, fake_world)
    assert ann.post_json("/auth/login", form).json["nickname"] == "Ann"


@pytest.mark.slow
def test_a_flood_of_registrations_stops_no_code_for_a_known_account(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    assert emails_of(app, fake_world, 202, 1, "n{}@example.com") == 200
    form = sign_in_code(ann, fake_world)
    assert ann.post_json("/auth/login", form).json["nickname"] == "Ann"


def test_a_signed_in_reader_gets_a_code_whatever_strangers_ask_for(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    sql(app, "DELETE FROM known_network")
    ask_from_anywhere(app, fake_world)
    asked = {"lang": "de"}
    request_id = ann.post_json("/me/code", asked).json["request_id"]
    late = ann.post_json("/me/code", asked, status=429)
    assert (late.json, late.headers["Retry-After"]) == (TOO_MANY, "60")
    app.deliver()
    assert "Der Code meldet dich an" in fake_world.text()
    form = {"code": fake_world.code(), "request_id": request_id, "new_password": "another one"}
    ann.authorization = ("Bearer", ann.patch_json("/me", form).json["token"])
    for _ in range(4):
        fake_world.time += HOUR
        ann.post_json("/me/code", {})
    fake_world.time += HOUR
    ann.post_json("/me/code", {}, status=429)
    sql(app, "UPDATE account SET role = 'admin'")
    assert ann.post_json("/me/code", {}, status=403).json["code"] == "password_required"
    ann.authorization = None
    ann.post_json("/me/code", {}, status=401)


def test_an_account_is_known_by_its_last_five_networks_for_ninety_days(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    for number in range(6):
        fake_world.time += HOUR
        stranger(app, number).login()
    ((kept,),) = sql(app, "SELECT count(*) FROM known_network")
    assert kept == 5
    assert len(ann.get("/me/export").json["sign_ins"]) == 5
    assert [
        row for row in sql(app, "SELECT network FROM known_network") if "198.51" in row[0]
    ] == []
    fake_world.time += 7 * DAY - HOUR
    stranger(app, 5).login()
    fake_world.time += 84 * DAY
    app.tick()
    assert sql(app, "SELECT count(*) FROM known_network") == [(1,)]
    new_account(stranger(app, 9), fake_world, password="a new passphrase")
    assert sql(app, "SELECT * FROM known_network") == []


def guess_codes(app: App, fake_world: FakeWorld, email: str, first: int, clients: int) -> int:
    """Wrong codes of so many clients, five for each code; how many were compared."""
    before = sql(app, "SELECT coalesce(sum(named_tries), 0) FROM registration")[0][0]
    for number in range(first, first + clients):
        client = Visitor(app, f"192.0.2.{number}")
        form = sign_in_code(client, fake_world, email)
        for step in range(1, 6):
            refused_code(client, form, code=another_code(form["code"], step))
    return int(sql(app, "SELECT sum(named_tries) FROM registration")[0][0] - before)


@pytest.mark.slow
def test_all_clients_together_guess_two_hundred_codes_a_day(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time += HOUR
    readers = [f"n{number}@example.com" for number in range(44)]
    for number, email in enumerate(readers):
        inside.add_account(app, email, f"N{number}", CANARY)
    compared = [
        guess_codes(app, fake_world, email, number, 1) for number, email in enumerate(readers)
    ]
    assert compared == [5] * 40 + [0] * 4
    # Nobody else gets into an account by a code until tomorrow, but for who is known there.
    form = sign_in_code(stranger(app, 1), fake_world, readers[0])
    assert refused_code(stranger(app, 1), form) == "code_wrong"
    form = sign_in_code(ann, fake_world)
    assert refused_code(ann, form, code=another_code(form["code"])) == "code_wrong"
    assert ann.post_json("/auth/login", form).json["nickname"] == "Ann"
    new_account(stranger(app, 2), fake_world, email="new@example.com")  # gets into no account
    fake_world.time += DAY
    form = sign_in_code(stranger(app, 1), fake_world, readers[0])
    assert stranger(app, 1).post_json("/auth/login", form).json["nickname"] == "N0"


def test_a_client_may_type_twenty_wrong_codes_a_day(
    app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    eve = stranger(app, 1)
    compared = 0
    for _ in range(6):
        fake_world.time += HOUR
        form = sign_in_code(eve, fake_world, BOB)
        for step in range(1, 6):
            refused_code(eve, form, code=another_code(form["code"], step))
        compared += sql(app, "SELECT named_tries FROM registration")[0][0]
    assert compared == 20


@unlimited
def test_only_tries_of_codes_are_limited_where_limits_are_off(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    for number in range(12):
        for path, *_ in LIMITED:
            assert request_of_its_own(visitor, path, number % 2).status_int != 429
    for _ in range(7):
        visitor.login(password="wrong", status=401)
    code, _ = code_for(visitor, fake_world)
    for step in range(5):
        visitor.verify(another_code(code, step + 1), status=400)
    assert visitor.verify(code, status=400) == FAILURE


def test_rate_limits_in_memory_start_again_when_too_many_clients_are_counted(app: App) -> None:
    inside.count_few_clients(app, 100)

    def preview(ip: str) -> int:
        client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": ip})
        return int(client.post_json("/comments/preview", {"content": "hi"}, status="*").status_int)

    busy = "192.0.2.1"
    assert {preview(busy) for _ in range(120)} == {200}
    for number in range(100):
        assert preview(busy) == 429
        assert preview(f"192.0.2.{number + 2}") == 200
    assert preview(busy) == 200
    assert {preview("2001:db8:1:2::1") for _ in range(1300)} == {200, 429}
    assert preview("2001:db8:1:3::1") == 200  # in the same /48


# Many at once, a restart, and a system that has little to give


def test_two_passwords_are_hashed_at_a_time_six_wait_and_the_next_is_refused(
    app: App, visitor: Visitor, hashes: list[int]
) -> None:
    busy = stranger(app, 1)  # who is beyond a rate limit, so that nothing is hashed for them
    for number in range(10):
        request_of_its_own(busy, "/auth/login", number)
    hashes.clear()
    assert request_of_its_own(busy, "/auth/login", 11).status_int == 429
    assert hashes == []
    with inside.seats_taken(app, 7):
        visitor.login(status=401)
    with inside.seats_taken(app, 8):
        visitor.faults_allowed = True
        for path in ("/auth/login", "/auth/register"):
            response = visitor.post_json(path, body(), status=503)
            assert response.json["code"] == "busy"
            assert int(response.headers["Retry-After"]) > 0
        assert request_of_its_own(busy, "/auth/login", 12).status_int == 429
        assert visitor.listing()["total"] == 0, "readers are served meanwhile"
    visitor.register()


def test_codes_tokens_and_limits_outlive_a_restart(config: Config, fake_world: FakeWorld) -> None:
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        visitor = Visitor(app)
        new_account(visitor, fake_world)
        token = visitor.login()["token"]
        for _ in range(5):
            visitor.login(password="wrong", status=401)
        code, request_id = code_for(visitor, fake_world, email=BOB)
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        visitor = Visitor(app)
        visitor.login(status=429)
        posted = visitor.say(headers={"Authorization": f"Bearer {token}"})
        assert posted["comment"]["user_id"] == 1
        assert visitor.verify(code, BOB, request_id=request_id) == SUCCESS


# What is known of an email address


def transactions_that_wrote(app: App, ask: Callable[[], object]) -> list[bool]:
    """Of each transaction, whether it wrote: only then its end waits for the disk."""
    connection, marks = writer(app), list[tuple[str, int]]()
    connection.set_trace_callback(lambda sql: marks.append((sql[:6], connection.total_changes)))
    ask()
    connection.set_trace_callback(None)
    ends = [rows for sql, rows in marks if sql in ("BEGIN ", "COMMIT", "ROLLBA")]
    return [after > before for before, after in zip(ends[::2], ends[1::2], strict=True)]


@pytest.mark.parametrize(
    ("path", "status", "writes"),
    [
        ("/auth/login", 401, [True]),
        ("/admin/login", 401, [True]),
        ("/auth/verify", 400, [True]),
        ("/auth/register", 200, [True, True]),
    ],
)
def test_sign_in_routes_write_as_much_for_known_and_unknown_email_addresses(
    visitor: Visitor,
    app: App,
    fake_world: FakeWorld,
    db: sqlite3.Connection,
    path: str,
    status: int,
    writes: list[bool],
) -> None:
    for email in (ANN, "blocked@example.com"):
        visitor.register(email)
        app.deliver()
        visitor.verify(fake_world.code(), email)
    db.execute("UPDATE account SET blocked = 1 WHERE email <> ?", (ANN,))
    for number in range(3):  # as many as may wait
        Visitor(app, ip=f"192.0.2.{number}").register("lu@example.cn")
    app.deliver()
    codes = [fake_world.code(number) for number in range(len(fake_world.emails))]
    assert "000000" not in codes
    form = {"nickname": "N", "password": "wrong one", "token": "000000", "captcha_token": "x"}
    known = {}
    for number, email in enumerate(
        (ANN, "blocked@example.com", "lu@example.cn", "nobody@example.com"), 10
    ):
        stranger = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": f"192.0.2.{number}"})
        body = {**form, "email": email}
        ask = functools.partial(stranger.post_json, path, body, status=status)
        known[email] = transactions_that_wrote(app, ask)
    assert known == dict.fromkeys(known, writes)
