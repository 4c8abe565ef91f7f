import base64
import hashlib
import hmac
import itertools
import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import jwt
import pytest
import webtest
from conftest import CANARY, PAGE, START, Outside, Visitor, cut_off, dump

import commentd
from commentd import App, Config, Json, make_app

ANN = "ann@example.com"
SHA256 = hashlib.sha256(CANARY.encode()).hexdigest()
SUCCESS, FAILURE = "验证成功", "验证码错误或已过期"
WRONG = {"error": "邮箱或密码错误", "code": "wrong_credentials"}
UNVERIFIED = {"error": "邮箱未验证", "code": "email_unverified"}
TOKEN_INVALID = {"error": "登录已失效，请重新登录", "code": "token_invalid"}
NO_LIMITS = {"limits_enabled": False}
MINUTE, HOUR, DAY = 60, 3600, 86400


def body(**fields: Any) -> Json:
    """A whole body for /auth/register; what is given as `...` is left out."""
    usual = {"email": ANN, "nickname": "Ann", "password": CANARY, "captcha_token": "x"}
    return {name: value for name, value in (usual | fields).items() if value is not ...}


def dump_of(visitor: Visitor, table: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(visitor.served.house.store.path)) as db:
        return db.execute(f"SELECT * FROM {table}").fetchall()


def stranger(app: App, number: int) -> Visitor:
    return Visitor(app, f"198.51.100.{number}")


def code_for(visitor: Visitor, outside: Outside, **fields: Any) -> tuple[str, str]:
    """Register: the code in the letter, and the request."""
    request_id = visitor.register(**fields)["request_id"]
    visitor.served.deliver()
    return outside.code(), request_id


def not_the(code: str, step: int = 1) -> str:
    return f"{(int(code) + step) % 1_000_000:06d}"


def all_at_once(
    app: App, path: str, bodies: list[Json], ip: str = "192.0.2.{}"
) -> list[webtest.TestResponse]:
    """All in the same moment, each from an address of its own where nothing else is said."""
    gate = threading.Barrier(len(bodies))

    def ask(number: int) -> webtest.TestResponse:
        client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": ip.format(number)})
        gate.wait(10)
        return client.post_json(path, bodies[number], expect_errors=True)

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(ask, range(len(bodies))))


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


# The contract


def test_a_reader_registers_confirms_the_code_and_logs_in(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    reply = visitor.post_json("/auth/register", body(nickname="  Ann  "))
    assert reply.json == {"success": True, "request_id": reply.json["request_id"]}
    assert re.fullmatch("[0-9a-f]{32}", reply.json["request_id"])
    assert reply.headers["Cache-Control"] == "no-store"
    assert visitor.login(status=401) == UNVERIFIED

    app.deliver()
    assert [letter.recipient for letter in outside.letters] == [ANN]
    reply = visitor.post_json("/auth/verify", {"email": ANN, "token": outside.code()})
    assert (reply.status_int, reply.text) == (200, SUCCESS)
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert reply.headers["Cache-Control"] == "no-store"
    assert visitor.verify(outside.code(), status=400) == FAILURE

    reply = visitor.login()
    assert reply == {"token": reply["token"], "nickname": "Ann", "role": "user"}
    assert visitor.login(password="other", status=401) == WRONG
    app.deliver()
    assert len(outside.letters) == 1


FIELDS = [
    ("email", ..., "email_missing"),
    ("email", None, "email_missing"),
    ("email", "", "email_missing"),
    ("email", 7, "email_invalid"),
    ("email", [ANN], "email_invalid"),
    ("email", "ann", "email_invalid"),
    ("email", "ann@localhost", "email_invalid"),
    ("email", "ann@example.com\n", "email_invalid"),
    ("email", "ann@example.com\nBcc: bob@example.com", "email_invalid"),
    ("email", "Ann <ann@example.com>", "email_invalid"),
    ("email", "ａnn@example.com", "email_invalid"),
    ("email", "аnn@example.com", "email_invalid"),
    ("email", "ann@例子.com", "email_invalid"),
    ("email", "\u212aate@example.com", "email_invalid"),
    ("email", "a" * 65 + "@example.com", "email_invalid"),
    ("email", "a@" + "b." * 125 + "com", "email_too_long"),
    ("nickname", ..., "nickname_missing"),
    ("nickname", "", "nickname_missing"),
    ("nickname", 7, "nickname_invalid"),
    ("nickname", " \u3000 ", "nickname_invalid"),
    ("nickname", "a" * 65, "nickname_invalid"),
    ("nickname", "a" * 257, "nickname_too_long"),
    ("nickname", "a\x00b", "nickname_invalid"),
    ("password", ..., "password_missing"),
    ("password", None, "password_missing"),
    ("password", "", "password_missing"),
    ("password", 12345678, "password_invalid"),
    ("password", {"a": 1}, "password_invalid"),
    ("password", "a\x00b", "password_invalid"),
    ("password", "a" * 1025, "password_too_long"),
    ("password", "密" * 342, "password_too_long"),
    ("captcha_token", ..., "captcha_token_missing"),
    ("captcha_token", "", "captcha_token_missing"),
    ("captcha_token", True, "captcha_token_invalid"),
    ("captcha_token", "x" * 4097, "captcha_token_too_long"),
    ("request_id", 7, "request_id_invalid"),
]


@pytest.mark.parametrize(
    ("path", "field", "value", "code"),
    [
        (path, *row)
        for path in ("/auth/register", "/auth/login")
        for row in FIELDS
        if path == "/auth/register" or row[0] not in ("nickname", "request_id")
    ],
)
def test_a_field_that_is_wrong_is_named_before_anything_is_spent(
    visitor: Visitor, hashes: list[int], path: str, field: str, value: Any, code: str
) -> None:
    reply = visitor.post_json(path, body(**{field: value}), status=400)
    assert reply.json["code"] == code
    assert hashes == []
    assert dump_of(visitor, "budget") == []


def test_the_longest_fields_pass(visitor: Visitor, outside: Outside) -> None:
    fields = {
        "email": "a" * 64 + "@" + "b" * 63 + "." + "c" * 63 + "." + "d" * 57 + ".com",
        "password": "密" * 341 + "p",
    }
    assert len(fields["email"]) == 254
    code, _ = code_for(visitor, outside, nickname="名" * 64, **fields)
    assert visitor.verify(code, fields["email"]) == SUCCESS
    assert visitor.login(**fields)["nickname"] == "名" * 64


def test_fields_that_are_not_the_callers_to_set_are_ignored(
    visitor: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    code, _ = code_for(visitor, outside, id=77, role="admin", verified=True, version=9)
    assert visitor.login(role="admin", verified=True, status=401) == UNVERIFIED
    visitor.verify(code, role="admin", nickname="Eve", password="other")
    assert visitor.login(role="admin")["role"] == "user"
    rows = db.execute("SELECT id, email, nickname, role, version FROM account").fetchall()
    assert rows == [(1, ANN, "Ann", "user", 1)]


@pytest.mark.parametrize("spelling", ["ANN@Example.COM", "  ann@example.com ", "aNN@eXAMPLE.cOM"])
def test_all_spellings_of_an_address_are_one_account(
    app: App, visitor: Visitor, outside: Outside, spelling: str, db: sqlite3.Connection
) -> None:
    code, _ = code_for(visitor, outside, email=spelling)
    assert outside.letters[0].recipient == ANN
    visitor.verify(code)
    assert visitor.login(spelling)["role"] == "user"
    outside.time += HOUR
    code, _ = code_for(visitor, outside, nickname="Anna")
    visitor.verify(code, spelling)
    assert db.execute("SELECT email, nickname FROM account").fetchall() == [(ANN, "Anna")]


@pytest.mark.parametrize("other", ["a.nn@example.com", "ann+a@example.com", "ann@a.example.com"])
def test_dots_and_tags_make_another_address(
    ann: Visitor, outside: Outside, other: str, db: sqlite3.Connection
) -> None:
    ann.verify(code_for(ann, outside, email=other)[0], other)
    assert db.execute("SELECT email FROM account ORDER BY id").fetchall() == [(ANN,), (other,)]


BAD_CODES: list[Any] = [
    "",
    "12345",
    "1234567",
    " 12345",
    "12345\n",
    "１２３４５６",
    "12345a",
    "+12345",
]
BAD_CODES += [123456, 123456.0, None, True, [*"123456"]]
BAD_BODIES: list[tuple[Any, Json, int]] = [
    (b"{", {}, 400),
    (b"[]", {}, 400),
    (b"", {}, 400),
    (b'{"email": "ann@example.com", "token": "\xff"}', {}, 400),
    (b'{"email": "ann@example.com", "email": "ann@example.com", "token": "123456"}', {}, 400),
    ({"email": ANN}, {}, 400),
    ({"token": "123456"}, {}, 400),
    ({"email": "nobody@example.com", "token": "123456"}, {}, 400),
    ({"email": "no address", "token": "123456"}, {}, 400),
    ({"email": [ANN], "token": "123456"}, {}, 400),
    *(({"email": ANN, "token": code}, {}, 400) for code in BAD_CODES),
    ({"email": ANN, "token": "123456", "request_id": 7}, {}, 400),
    ({"email": ANN, "token": "123456", "request_id": "x" * 65}, {}, 400),
    ({"email": ANN, "token": "123456", "more": "x" * 66_000}, {}, 413),
    (b"email=ann@example.com", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ({"email": ANN, "token": "123456"}, {"Content-Type": "text/plain"}, 415),
    ({"email": ANN, "token": "123456"}, {"Content-Type": "application/json; charset=gbk"}, 415),
    ({"email": ANN, "token": "123456"}, {"Content-Encoding": "gzip"}, 415),
    ({"email": ANN, "token": "123456"}, {"Origin": "https://evil.example"}, 400),
]


@pytest.mark.parametrize("settings", [{"site_origins": ("https://blog.example",)}])
def test_a_verification_fails_with_the_same_text_and_slips_spend_no_try(
    visitor: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    code, _ = code_for(visitor, outside)
    for content, headers, status in BAD_BODIES:
        outside.time += 5
        sent = content if isinstance(content, bytes) else json.dumps(content).encode()
        headers = {"Content-Type": "application/json"} | headers
        reply = visitor.post("/auth/verify", sent, headers=headers, status=status)
        assert reply.text == FAILURE, (content, headers)
        assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert "WWW-Authenticate" not in reply.headers
    assert db.execute("SELECT tries FROM registration").fetchall() == [(0,)]
    assert visitor.verify(code) == SUCCESS


# Registering again


def test_nothing_of_a_live_account_changes_before_the_code(
    app: App, ann: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    db.execute("UPDATE account SET role = 'admin'")
    ann.say("mine")
    app.deliver()
    before = dump(app.house.store.path)
    eve = stranger(app, 1)
    outside.time += HOUR
    code, _ = code_for(eve, outside, nickname="Eve", password="new")
    assert CANARY not in outside.text()
    assert "Eve" not in outside.letters[-1].message + outside.text()

    now = dump(app.house.store.path)
    assert {t for t in now if now[t] != before[t]} == {"registration"}
    assert eve.login()["nickname"] == "Ann"
    assert eve.login(password="new", status=401) == UNVERIFIED
    eve.verify(not_the(code), status=400)
    assert dump(app.house.store.path) == now
    assert ann.say("still mine")["comment"]["user_id"] == 1

    eve.verify(code)
    rows = db.execute("SELECT id, email, nickname, role FROM account").fetchall()
    assert rows == [(1, ANN, "Eve", "admin")]
    assert ann.get("/comments", {"url": PAGE}, status=401).json == TOKEN_INVALID
    ann.authorization = None
    assert {c["user_id"] for c in ann.listing()["comments"]} == {1}
    assert eve.login(status=401) == WRONG
    assert eve.login(password="new")["role"] == "admin"
    eve.authorization = ("Bearer", eve.login(password="new")["token"])
    assert eve.say("and mine")["comment"]["user_id"] == 1


def test_a_change_is_told_by_mail_to_the_address_of_the_account(
    app: App, ann: Visitor, outside: Outside
) -> None:
    outside.time += HOUR
    first, second = outside.text(0), code_for(ann, outside, nickname="Eve")[0]
    change = "账号：确认后，密码和昵称会改为"
    assert (change in first, change in outside.text(1)) == (False, True)
    ann.verify(second, "ANN@example.com")
    app.deliver()
    assert [letter.recipient for letter in outside.letters] == [ANN] * 3
    assert "密码" in outside.text(2)
    assert not re.search(r"Eve|\d{6}", outside.text(2))


def test_confirming_one_registration_drops_the_others_and_their_letters(
    app: App, visitor: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    others = []
    for i in (1, 2):
        others.append(code_for(stranger(app, i), outside, password=f"other {i}"))
        outside.time += MINUTE + 1
    mine, _ = code_for(visitor, outside)
    outside.mail_fails_with = OSError("down")
    visitor.verify(mine)
    for code, request_id in others:
        assert visitor.verify(code, status=400) == FAILURE
        assert visitor.verify(code, status=400, request_id=request_id) == FAILURE
    assert visitor.login(password="other 1", status=401) == WRONG
    assert db.execute("SELECT count(*) FROM registration").fetchone() == (0,)
    assert db.execute("SELECT count(*) FROM outbox").fetchone() == (0,)
    assert visitor.login()["nickname"] == "Ann"


@pytest.mark.parametrize("settings", [NO_LIMITS])
def test_a_confirmation_that_is_cut_off_anywhere_leaves_nothing(
    app: App, ann: Visitor, outside: Outside
) -> None:
    outside.time += HOUR
    guest = stranger(app, 1)
    guest.say("under her address", email=ANN)
    code, request_id = code_for(guest, outside, nickname="Anna", password="new")
    code_for(stranger(app, 2), outside)
    guest.faults_allowed = True  # and what a refusal changes, the visitor sees
    writer = app.house.store.writer
    for last in itertools.count(5, 25):
        form = {"email": ANN, "token": code, "request_id": request_id}
        with cut_off(writer, last):
            reply = guest.post_json("/auth/verify", form, expect_errors=True)
        if reply.status_int == 200:
            break
        assert (reply.status_int, reply.text) == (503, FAILURE)
    assert last > 50
    assert guest.login(password="new")["nickname"] == "Anna"
    assert [c["user_id"] for c in guest.listing()["comments"]] == [None]


# Which registration a code confirms


def test_a_code_confirms_only_its_own_registration(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    mine, my_request = code_for(visitor, outside)
    outside.time += MINUTE + 1
    eves, eves_request = code_for(stranger(app, 1), outside, nickname="Eve", password="evil")
    assert mine != eves
    for code, request_id in [(mine, eves_request), (eves, my_request), (mine, "f" * 32)]:
        assert visitor.verify(code, status=400, request_id=request_id) == FAILURE
    assert visitor.verify(mine, "bob@example.com", 400, request_id=my_request) == FAILURE
    assert visitor.verify(mine, request_id=my_request) == SUCCESS
    assert visitor.login()["nickname"] == "Ann"
    assert visitor.login(password="evil", status=401) == WRONG


def test_without_a_request_each_code_that_waits_is_tried(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    code, _ = code_for(visitor, outside, nickname="First")
    outside.time += MINUTE + 1
    code_for(stranger(app, 1), outside, nickname="Second")
    assert stranger(app, 2).verify(code) == SUCCESS
    assert visitor.login()["nickname"] == "First"


def test_at_most_three_wait_and_a_fourth_drives_none_of_them_out(
    app: App, visitor: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    codes = []
    for i in range(3):
        codes.append(code_for(stranger(app, i), outside, nickname=f"N{i}"))
        outside.time += MINUTE + 1
    waiting = dump(app.house.store.path)["registration"]
    assert set(visitor.register()) == {"success", "request_id"}
    app.deliver()
    assert len(outside.letters) == 3
    assert dump(app.house.store.path)["registration"] == waiting

    outside.time = START + 600  # the first has expired and gives way
    code, request_id = code_for(visitor, outside)
    sql = "SELECT nickname FROM registration WHERE expires_at > ? ORDER BY id"
    assert [row[0] for row in db.execute(sql, (outside.time,))] == ["N1", "N2", "Ann"]
    assert visitor.verify(codes[0][0], status=400) == FAILURE
    assert visitor.verify(code, request_id=request_id) == SUCCESS


@pytest.mark.parametrize("same_client", [True, False])
def test_who_registers_again_replaces_his_own(
    app: App, visitor: Visitor, outside: Outside, same_client: bool
) -> None:
    code_for(stranger(app, 1), outside, nickname="Eve")
    outside.time += MINUTE + 1
    first, request_id = code_for(visitor, outside, password="first")
    outside.time += MINUTE + 1
    fields = {} if same_client else {"request_id": request_id}
    again = visitor if same_client else stranger(app, 2)
    second, _ = code_for(again, outside, password="second", **fields)
    assert visitor.verify(first, status=400, request_id=request_id) == FAILURE
    assert visitor.login(password="first", status=401) == WRONG
    assert visitor.login(password="second", status=401) == UNVERIFIED
    assert len(dump_of(visitor, "registration")) == 2, "the other's stays"
    assert visitor.verify(second) == SUCCESS


def test_a_request_of_another_address_replaces_nothing(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    code, request_id = code_for(visitor, outside)
    stranger(app, 1).register("eve@example.com", request_id=request_id)
    assert visitor.verify(code, request_id=request_id) == SUCCESS


def test_a_registration_that_gets_no_letter_leaves_the_older_one(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    code, request_id = code_for(visitor, outside)
    outside.time += MINUTE
    stranger(app, 1).register()  # has taken the letter of this minute
    outside.time += 1
    visitor.register()
    assert visitor.verify(code, request_id=request_id) == SUCCESS


# The life of a code


@pytest.mark.parametrize(
    ("seconds", "status"), [(0, 200), (599, 200), (600, 400), (-1, 400), (-DAY, 400)]
)
def test_a_code_lives_for_ten_minutes_whatever_the_clock_does(
    visitor: Visitor, outside: Outside, seconds: int, status: int
) -> None:
    code, request_id = code_for(visitor, outside)
    outside.time += seconds
    visitor.verify(code, status=status, request_id=request_id)
    visitor.verify(code, status=400)
    outside.time = START + 600
    assert visitor.verify(code, status=400) == FAILURE


def test_an_expired_registration_still_says_unverified_for_a_day(
    app: App, visitor: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    code_for(visitor, outside)
    for seconds, said in [(601, UNVERIFIED), (DAY - 1, UNVERIFIED), (DAY + 61, WRONG)]:
        outside.time = START + seconds
        app.tick()
        assert visitor.login(status=401) == said
        assert visitor.login(password="other", status=401) == WRONG
        assert db.execute("SELECT code FROM registration WHERE code <> ''").fetchall() == []


def test_the_file_holds_no_code_but_in_its_letter(
    app: App, visitor: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    code, request_id = code_for(visitor, outside)
    visitor.register("bob@example.com")
    (kept,) = db.execute("SELECT * FROM registration WHERE email = ?", (ANN,)).fetchall()
    assert code not in [str(value) for value in kept]
    assert commentd.mac(app.house.key, "code", request_id, code) in kept
    recipients = db.execute("SELECT recipient FROM outbox").fetchall()
    assert recipients == [("bob@example.com",)], "what was sent is gone"


# Tries


def test_five_wrong_tries_end_a_code(visitor: Visitor, outside: Outside) -> None:
    code, request_id = code_for(visitor, outside)
    for step in range(1, 6):
        assert visitor.verify(not_the(code, step), status=400, request_id=request_id) == FAILURE
    assert visitor.verify(code, status=400, request_id=request_id) == FAILURE
    assert visitor.verify(code, status=400) == FAILURE
    outside.time += HOUR
    code, _ = code_for(visitor, outside)
    for step in range(1, 5):
        visitor.verify(not_the(code, step), status=400)
    assert visitor.verify(code) == SUCCESS


@pytest.mark.parametrize("settings", [{}, NO_LIMITS])
@pytest.mark.parametrize("named", [True, False])
def test_of_forty_tries_at_once_five_are_judged(
    app: App, visitor: Visitor, outside: Outside, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, request_id = code_for(visitor, outside)
    judged = []
    real = commentd.same
    monkeypatch.setattr(commentd, "same", lambda a, b: judged.append(1) or real(a, b))
    named_by = {"request_id": request_id} if named else {}
    bodies = [{"email": ANN, "token": not_the(code, i + 1), **named_by} for i in range(40)]
    assert {r.status_int for r in all_at_once(app, "/auth/verify", bodies)} == {400}
    assert len(judged) == 5


def guess(app: App, code: str, times: int, **fields: Any) -> None:
    """Wrong guesses, each from an address of its own."""
    for step in range(times):
        stranger(app, step).verify(not_the(code, step + 1), status=400, **fields)


def burn_all_guesses(app: App, visitor: Visitor, outside: Outside) -> None:
    for _ in range(3):
        guess(app, code_for(visitor, outside)[0], 5)
        outside.time += HOUR


def test_fifteen_wrong_guesses_an_address_a_day_and_a_new_code_resets_none(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    burn_all_guesses(app, visitor, outside)
    code, request_id = code_for(visitor, outside)
    assert visitor.verify(code, status=400) == FAILURE
    assert visitor.verify(code, request_id=request_id) == SUCCESS, "burning them locks nobody out"
    outside.time = START + DAY
    assert visitor.verify(code_for(visitor, outside)[0]) == SUCCESS


def test_right_codes_take_none_of_the_fifteen_and_give_none_back(
    app: App, visitor: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    for named in (False, True):
        code, request_id = code_for(visitor, outside)
        guess(app, code, 4)
        assert visitor.verify(code, **({"request_id": request_id} if named else {})) == SUCCESS
        outside.time += HOUR
    assert db.execute("SELECT used FROM budget WHERE name LIKE 'guess/%'").fetchall() == [(8,)]


def test_guesses_of_strangers_lock_nobody_out_who_names_his_request(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    code, request_id = code_for(visitor, outside)
    guess(app, code, 15)
    assert visitor.verify(code, request_id=request_id) == SUCCESS


# Nobody is told what is known of an address


def test_registering_tells_and_does_the_same_for_every_address(
    app: App, ann: Visitor, outside: Outside, hashes: list[int]
) -> None:
    outside.time += HOUR
    for i in range(4):  # three wait at bob's, one at carol's
        stranger(app, i).register("bob@example.com")
        outside.time += MINUTE + 1
    stranger(app, 5).register("carol@example.com")
    outside.time += MINUTE + 1
    hashes.clear()
    replies = []
    for i, name in enumerate(["ann", "bob", "carol", "nobody"]):
        email = f"{name}@example.com"
        asked = stranger(app, 10 + i).post_json("/auth/register", body(email=email))
        text = asked.text.replace(asked.json["request_id"], "")
        replies.append((asked.status, sorted(asked.headers.items()), text, len(asked.body)))
    assert replies == [replies[0]] * 4
    assert hashes == [1] * 4


def test_a_login_that_fails_tells_and_does_the_same_for_every_address(
    app: App, ann: Visitor, outside: Outside, hashes: list[int]
) -> None:
    outside.time += HOUR
    for i in range(3):
        for name in ("ann", "bob"):  # with an account, and without
            stranger(app, i).register(f"{name}@example.com", password=f"waits {i}")
        outside.time += MINUTE + 1
    stranger(app, 0).register("carol@example.com")
    hashes.clear()
    replies = []
    for name in ("ann", "bob", "carol", "nobody"):
        fields = body(email=f"{name}@example.com", password="wrong")
        asked = stranger(app, 9).post_json("/auth/login", fields, status=401)
        replies.append((asked.status, sorted(asked.headers.items()), asked.body))
    assert replies == [replies[0]] * 4
    assert hashes == [1] * 4
    for i in range(3):
        assert stranger(app, 8).login(password=f"waits {i}", status=401) == UNVERIFIED
        assert stranger(app, 7).login("bob@example.com", 401, password=f"waits {i}") == UNVERIFIED


def test_a_blocked_account_fails_to_log_in_like_an_unknown_one(
    app: App, ann: Visitor, hashes: list[int], db: sqlite3.Connection
) -> None:
    db.execute("UPDATE account SET blocked = 1")
    hashes.clear()
    replies = []
    for email, password in ((ANN, CANARY), (ANN, "wrong"), ("nobody@example.com", CANARY)):
        fields = body(email=email, password=password)
        asked = stranger(app, 9).post_json("/auth/login", fields, status=401)
        replies.append((asked.status, sorted(asked.headers.items()), asked.json))
    assert replies == [replies[0]] * 3
    assert replies[0][2] == WRONG
    assert hashes == [1] * 3


def test_a_verification_that_fails_tells_the_same_for_every_address(
    app: App, ann: Visitor, outside: Outside
) -> None:
    outside.time += HOUR
    code, _ = code_for(stranger(app, 1), outside, email="bob@example.com")
    replies = []
    for name in ("ann", "bob", "nobody"):
        fields = {"email": f"{name}@example.com", "token": not_the(code)}
        asked = ann.post_json("/auth/verify", fields, status=400)
        replies.append((asked.status, sorted(asked.headers.items()), asked.body))
    assert replies == [replies[0]] * 3


@pytest.mark.parametrize("settings", [NO_LIMITS])
def test_registrations_of_one_moment_share_a_salt(
    app: App, visitor: Visitor, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = commentd.hashed
    inside: list[int] = []

    def slow(password: str, scheme: str) -> str:
        if not inside:
            inside.append(1)
            stranger(app, 1).register(password="first")
        return real(password, scheme)

    monkeypatch.setattr(commentd, "hashed", slow)
    visitor.register(password="second")
    assert len(dump_of(visitor, "registration")) == 2
    assert visitor.login(password="first", status=401) == UNVERIFIED
    assert visitor.login(password="second", status=401) == UNVERIFIED


# Passwords

FORMS: dict[str, Callable[[str], str]] = {
    "raw": str,
    "hashed": lambda password: hashlib.sha256(password.encode()).hexdigest(),
    "upper": lambda password: hashlib.sha256(password.encode()).hexdigest().upper(),
}


@pytest.mark.parametrize(("first", "again"), list(itertools.product(FORMS, FORMS)))
def test_a_password_and_its_sha256_are_the_same(
    visitor: Visitor, outside: Outside, first: str, again: str
) -> None:
    for password, form in ((CANARY, first), ("other", again)):
        outside.time += HOUR
        code, _ = code_for(visitor, outside, password=FORMS[form](password))
        assert visitor.login(password=FORMS[again](password), status=401) == UNVERIFIED
        visitor.verify(code)
        for shape in FORMS.values():
            assert visitor.login(password=shape(password))["role"] == "user"
    assert visitor.login(password=FORMS[first](CANARY), status=401) == WRONG


@pytest.mark.parametrize("settings", [NO_LIMITS])
def test_the_bytes_of_a_password_count_exactly(visitor: Visitor, outside: Outside) -> None:
    password = " Pässword\u00e9 "
    visitor.verify(code_for(visitor, outside, password=password)[0])
    others = [
        password.strip(),
        password + " ",
        password.upper(),
        password.casefold(),
        password.replace("\u00e9", "e\u0301"),
        password + "\n",
        hashlib.sha256(password.encode()).hexdigest()[:63],
        hashlib.sha256(password.encode()).hexdigest() + " ",
        hashlib.sha256(hashlib.sha256(password.encode()).hexdigest().encode()).hexdigest(),
    ]
    for other in others:
        assert visitor.login(password=other, status=401) == WRONG
    assert visitor.login(password=password)["role"] == "user"


@pytest.mark.parametrize("settings", [NO_LIMITS])
@pytest.mark.parametrize("password", ["1", "123456", "password", "  "])
def test_a_short_and_common_password_is_taken(
    visitor: Visitor, outside: Outside, password: str
) -> None:
    visitor.verify(code_for(visitor, outside, password=password)[0])
    assert visitor.login(password=password)["role"] == "user"
    assert visitor.login(password=password * 2, status=401) == WRONG


@pytest.mark.parametrize("settings", [NO_LIMITS])
def test_every_byte_of_a_long_password_counts(visitor: Visitor, outside: Outside) -> None:
    password = "x" * 1023 + "y"
    visitor.verify(code_for(visitor, outside, password=password)[0])
    for other in (password[:-1], "x" * 1024, "y" + password[1:], password[:72]):
        assert visitor.login(password=other, status=401) == WRONG
    assert visitor.login(password=password)["role"] == "user"


def test_only_a_salted_iterated_hash_is_kept(
    app: App, ann: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    outside.time += HOUR
    ann.register(password="other")
    ann.register("bob@example.com")
    sql = "SELECT password FROM account UNION ALL SELECT password FROM registration"
    kept = [row[0] for row in db.execute(sql)]
    shapes = [re.fullmatch(r"pbkdf2_sha256\$1\$([0-9a-f]{32})\$([0-9a-f]{64})", k) for k in kept]
    assert len(shapes) == 3
    assert all(shapes)
    salts = [shape[1] for shape in shapes if shape]
    assert salts[0] == salts[1] != salts[2], "one salt an address"
    app.close()
    content = Path(app.house.store.path).read_bytes()
    for secret in (CANARY, SHA256, SHA256.upper()):
        assert secret.encode() not in content


def test_a_service_hashes_with_six_hundred_thousand_rounds(config: Config) -> None:
    app = make_app(config)
    assert app.house.rounds == 600_000
    app.close()


def test_a_password_is_hashed_anew_when_the_rounds_rise(
    config: Config, outside: Outside, hashes: list[int]
) -> None:
    for rounds, done in [(2, []), (3, [2, 3]), (3, [3]), (2, [3])]:
        app = make_app(config, outside.world, rounds=rounds)
        visitor = Visitor(app)
        if not done:
            visitor.verify(code_for(visitor, outside)[0])
            visitor.authorization = ("Bearer", visitor.login()["token"])
            token = visitor.authorization
        else:
            hashes.clear()
            assert visitor.login(password="other", status=401) == WRONG
            assert hashes == done[:1], "a wrong one changes nothing"
            hashes.clear()
            visitor.login(password=SHA256)
            assert hashes == done
        visitor.authorization = token
        assert visitor.say(f"as before {rounds}")["comment"]["user_id"] == 1
        rows = dump_of(visitor, "account")
        assert rows[0][3].startswith(f"pbkdf2_sha256${max(2, rounds, *done)}$")
        app.close()


# Tokens


@pytest.mark.parametrize("settings", [{}, {"token_key": "a key that the owner chose, long enough"}])
def test_a_token_holds_the_claims_of_the_contract_for_whoever_has_the_key(
    app: App, ann: Visitor, settings: Json
) -> None:
    token = ann.authorization[1]
    if settings:
        assert app.house.key == settings["token_key"].encode()
    options = {"verify_exp": False, "verify_iat": False}  # the clock of this test is not the real
    claims = jwt.decode(token, app.house.key, algorithms=["HS256"], options=options)
    assert claims == {
        "id": 1,
        "email": ANN,
        "role": "user",
        "exp": START + 7 * DAY,
        "iat": START,
        "use": "login",
        "ver": 1,
    }
    assert all(type(claims[name]) is int for name in ("id", "exp", "iat", "ver"))


@pytest.mark.parametrize(
    ("seconds", "status"), [(7 * DAY - 1, 200), (7 * DAY, 401), (-60, 200), (-61, 401)]
)
def test_a_token_lives_for_seven_days(
    ann: Visitor, outside: Outside, seconds: int, status: int
) -> None:
    outside.time += seconds
    reply = ann.get("/comments", {"url": PAGE}, status=status)
    if status == 401:
        assert reply.json == TOKEN_INVALID
        assert reply.headers["WWW-Authenticate"] == "Bearer"


FORGED: list[Json] = [
    {"use": ...},
    *({"use": use} for use in ("mail", "edit", "", None, 1, ["login"])),
    {"exp": ...},
    *({"exp": e} for e in (START, START - 1, START + 7 * DAY + 61, 2**70, START + 9.5, True, None)),
    *({"exp": e} for e in (f"{START + 9}", [START + 9], -(2**70))),
    {"iat": ...},
    {"id": ...},
    *({"id": i} for i in (0, -1, 2, 99, "1", 1.0, True, None, [1], 2**63, 2**70, 10**400)),
    {"ver": ...},
    *({"ver": v} for v in (0, 2, "1", 1.0, True, None, 2**70)),
]


@pytest.mark.parametrize("change", FORGED, ids=str)
def test_a_token_with_wrong_claims_is_refused(app: App, ann: Visitor, change: Json) -> None:
    claims = {"id": 1, "email": ANN, "role": "admin", "use": "login", "ver": 1}
    claims |= {"iat": START, "exp": START + 100}
    signed = {name: v for name, v in (claims | change).items() if v is not ...}
    ann.authorization = ("Bearer", jwt_of({"alg": "HS256"}, claims, app.house.key))
    ann.listing()  # the pattern is good
    ann.authorization = ("Bearer", jwt_of({"alg": "HS256"}, signed, app.house.key))
    assert ann.get("/comments", {"url": PAGE}, status=401).json == TOKEN_INVALID


def jwt_of(header: Json, claims: Any, key: bytes, algorithm: str = "sha256") -> str:
    """A token made by hand, since libraries refuse to make wrong ones."""

    def coded(part: bytes) -> bytes:
        return base64.urlsafe_b64encode(part).rstrip(b"=")

    signed = b".".join(coded(json.dumps(part).encode()) for part in (header, claims))
    return (signed + b"." + coded(hmac.digest(key, signed, algorithm))).decode()


def test_a_token_that_the_service_did_not_sign_is_refused(app: App, ann: Visitor) -> None:
    good, key = ann.authorization[1], app.house.key
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
        jwt_of({"alg": "HS256"}, claims | {"pad": "x" * 4096}, key),
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
        "...",
        "x",
        "",
        "\xe9.\xe9.\xe9",
    ]
    for token in forged:
        ann.authorization = None
        headers = {"Authorization": f"Bearer {token}"}
        for method, path in (("GET", f"/comments?url={PAGE}"), ("POST", "/auth/logout")):
            reply = ann.request(path, method=method, headers=headers, status=401)
            assert reply.json == TOKEN_INVALID, token
            assert reply.headers["WWW-Authenticate"] == "Bearer"
            assert reply.headers["Cache-Control"] == "no-store"
    ann.say("not even as a guest", status=401, headers={"Authorization": "Bearer x"})
    assert ann.say("good", headers={"Authorization": f"bearer {good}"})["comment"]["user_id"] == 1


def test_no_field_of_its_header_lets_a_token_name_its_key(
    app: App, ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commentd, "dialled", None)  # nor is one asked for elsewhere
    own, key = b"a key that whoever sends it knows well", app.house.key
    coded = base64.urlsafe_b64encode(own).rstrip(b"=").decode()
    claims = {"id": 1, "use": "login", "ver": 1, "iat": START, "exp": START + 100}
    for field in (
        {"kid": own.decode()},
        {"kid": "../../dev/null"},
        {"kid": "' UNION SELECT 'x"},
        {"jwk": {"kty": "oct", "k": coded}},
        {"jku": "http://127.0.0.1:1/keys"},
        {"x5u": "http://127.0.0.1:1/keys", "x5c": [coded]},
        {"typ": "other", "cty": "JWT"},
    ):
        head = {"alg": "HS256", **field}
        for forged in (own, b"", b"x", coded.encode()):
            ann.authorization = ("Bearer", jwt_of(head, claims, forged))
            assert ann.get("/comments", {"url": PAGE}, status=401).json == TOKEN_INVALID
        ann.authorization = ("Bearer", jwt_of(head, claims, key))
        ann.listing()


def test_logging_out_ends_all_tokens_of_the_account_and_no_others(
    app: App, ann: Visitor, outside: Outside
) -> None:
    bob = stranger(app, 1)
    bob.verify(code_for(bob, outside, email="bob@example.com")[0], "bob@example.com")
    bob.authorization = ("Bearer", bob.login("bob@example.com")["token"])
    phone = ("Bearer", ann.login()["token"])
    assert ann.post_json("/auth/logout", {}).json == {"success": True}
    for token in (ann.authorization, phone):
        ann.authorization = token
        assert ann.get("/comments", {"url": PAGE}, status=401).json == TOKEN_INVALID
        assert ann.post_json("/auth/logout", {}, status=401).json == TOKEN_INVALID
    assert bob.say()["comment"]["user_id"] == 2
    ann.authorization = ("Bearer", ann.login()["token"])
    assert ann.say("again")["comment"]["user_id"] == 1
    ann.authorization = None
    reply = ann.post_json("/auth/logout", {}, status=401)
    assert reply.json == {"error": "请先登录", "code": "login_required"}


def test_a_deleted_account_has_no_tokens(ann: Visitor, db: sqlite3.Connection) -> None:
    db.execute("DELETE FROM account")
    assert ann.get("/comments", {"url": PAGE}, status=401).json == TOKEN_INVALID


def test_the_role_is_the_one_of_the_database(ann: Visitor, db: sqlite3.Connection) -> None:
    ann.say()
    for role, ip in (("admin", "203.0.113.7"), ("user", "203.0.113.0")):
        db.execute("UPDATE account SET role = ?", (role,))
        assert ann.listing()["comments"][0]["ip"] == ip
        assert ann.login()["role"] == role


def test_a_token_counts_in_the_header_alone(ann: Visitor) -> None:
    token = ann.authorization[1]
    ann.authorization = None
    names = ("token", "access_token", "Authorization", "authorization")
    in_url = "&".join(f"{name}={value}" for name in names for value in (token, f"Bearer%20{token}"))
    said = {"page_url": PAGE, "nickname": "Ann", "content": "hi", "captcha_token": "x"}
    for name in names:
        ann.set_cookie(name, token)
    fields = dict.fromkeys(names, token)
    reply = ann.post_json(f"/comments?{in_url}", said | fields)
    assert reply.json["comment"]["user_id"] is None
    assert ann.post_json(f"/auth/logout?{in_url}", fields, status=401).json["code"] == (
        "login_required"
    )


@pytest.mark.parametrize("header", ["Basic YW5uOnB3", "Digest x", "Token x", "Bearerx y", "x", ""])
def test_other_schemes_are_ignored(visitor: Visitor, header: str) -> None:
    assert visitor.say(headers={"Authorization": header})["comment"]["user_id"] is None


def test_where_no_account_is_asked_for_the_header_is_ignored(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    visitor.authorization = ("Bearer", "bad")
    visitor.verify(code_for(visitor, outside)[0])
    assert visitor.login()["role"] == "user"
    for path in ("/captcha", "/health", f"/{next(iter(app.house.assets))}"):
        assert visitor.get(path, status="*").status_int != 401


def test_accounts_without_a_key_stop_the_start(ann: Visitor, config: Config) -> None:
    ann.served.close()
    with closing(sqlite3.connect(config.database_path)) as db, db:
        db.execute("DELETE FROM secret")
    with pytest.raises(commentd.Fault, match="key"):
        make_app(config)
    make_app(replace(config, token_key="k" * 32)).close()


def test_the_key_of_a_service_is_32_bytes_of_its_own(tmp_path: Path) -> None:
    keys = []
    for name in ("one", "other", "one"):
        with closing(make_app(Config(database_path=str(tmp_path / f"{name}.db")))) as app:
            keys.append(app.house.key)
    assert re.fullmatch(b"[0-9a-f]{64}", keys[0])
    assert keys[0] == keys[2] != keys[1]


# Limits


def knock(client: Visitor, path: str, number: int) -> webtest.TestResponse:
    """A request at an address of its own, so that only the limits of the client count."""
    fields = body(email=f"n{number}@example.com", token="123456")
    return client.post_json(path, fields, expect_errors=True)


LIMITED = [("register", 5, HOUR), ("verify", 10, 600), ("login", 10, 600)]
CLIENTS = {
    "IPv4": ["203.0.113.7"],
    "mapped": ["203.0.113.7", "::ffff:203.0.113.7", "::ffff:cb00:7107"],
    "unreadable": ["localhost", "", "203.0.113.7, 203.0.113.8"],
    "a /64": ["2001:db8:1:2::1", "2001:db8:1:2:ffff::", "2001:0DB8:1:2:0:0:0:3"],
}


@pytest.mark.parametrize("addresses", list(CLIENTS.values()), ids=list(CLIENTS))
@pytest.mark.parametrize(("name", "most", "window"), LIMITED)
def test_a_client_has_its_share_and_is_told_when_it_may_come_again(
    app: App, outside: Outside, name: str, most: int, window: int, addresses: list[str]
) -> None:
    path = f"/auth/{name}"
    clients = itertools.cycle([Visitor(app, ip) for ip in addresses])
    for number in range(most):
        assert knock(next(clients), path, number).status_int != 429
        outside.time += 1
    refused = knock(next(clients), path, 99)
    assert refused.status_int == 429
    assert refused.headers["Retry-After"] == str(window - most)
    if name == "verify":
        assert (refused.text, refused.content_type) == (FAILURE, "text/plain")
    else:
        assert refused.json == {"error": "操作太频繁，请稍后再试", "code": "too_many"}
    for neighbour in ("203.0.113.8", "2001:db8:1:3::1"):
        assert knock(Visitor(app, neighbour), path, 98).status_int != 429
    outside.time += window - most - 1
    assert knock(next(clients), path, 97).headers["Retry-After"] == "1"
    outside.time += 1
    assert knock(next(clients), path, 96).status_int != 429


def test_a_48_has_ten_shares(app: App) -> None:
    for number in range(50):
        subnet = Visitor(app, f"2001:db8:1:{number:x}::1")
        assert knock(subnet, "/auth/register", number).status_int == 200
    assert knock(Visitor(app, "2001:db8:1:ffff::1"), "/auth/register", 99).status_int == 429
    assert knock(Visitor(app, "2001:db8:2::1"), "/auth/register", 98).status_int == 200


def test_budgets_are_forgotten_when_they_have_had_their_time(
    app: App, visitor: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    for number, path in enumerate(("/auth/register", "/auth/verify", "/auth/login")):
        knock(visitor, path, number)
    assert db.execute("SELECT count(*) FROM budget").fetchone()[0] > 6
    outside.time += DAY
    app.tick()
    assert db.execute("SELECT name FROM budget").fetchall() == [("purge",)]


def test_nobody_is_locked_out_by_a_clock_that_went_wrong(app: App, outside: Outside) -> None:
    outside.time += 30 * DAY
    client = Visitor(app)
    for number in range(11):
        reply = knock(client, "/auth/login", number)
    assert reply.status_int == 429
    outside.time -= 30 * DAY
    assert knock(client, "/auth/login", 12).status_int == 401


def test_a_second_code_within_a_minute_is_refused_to_the_same_client(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    visitor.register()
    outside.time += 20
    refused = visitor.post_json("/auth/register", body(email="ANN@example.com"), status=429)
    assert refused.json["code"] == "too_many"
    assert refused.headers["Retry-After"] == "40"
    stranger(app, 1).register()
    outside.time += 40
    visitor.register()


@pytest.mark.parametrize("email", [ANN, "nobody@example.com"])
def test_five_wrong_passwords_at_an_address_make_a_client_wait(
    app: App, ann: Visitor, outside: Outside, email: str
) -> None:
    outside.time += 600
    client = stranger(app, 1)
    for _ in range(5):
        assert client.login(email, 401, password="wrong") == WRONG
        outside.time += 1
    refused = client.post_json("/auth/login", body(email=email), status=429)
    assert refused.headers["Retry-After"] == "595"
    assert refused.json == {"error": "操作太频繁，请稍后再试", "code": "too_many"}
    client.login("another@example.com", 401)
    assert ann.login()["role"] == "user", "the owner is not locked out by others"
    outside.time += 595
    client.login(email, 200 if email == ANN else 401)


def test_right_passwords_are_not_counted_as_wrong(ann: Visitor, outside: Outside) -> None:
    outside.time += 600
    for _ in range(4):
        ann.login(password="wrong", status=401)
    for _ in range(5):
        ann.login()


def letters_in(app: App, outside: Outside, times: int, seconds: int, email: str) -> int:
    """How many letters come of so many registrations, each of another client."""
    before = len(outside.letters)
    for number in range(times):
        client = Visitor(app, str(ip_address(10 << 24 | int(outside.time) % 2**24)))
        assert client.register(email.format(number))["success"]
        app.deliver()
        outside.time += seconds
    return len(outside.letters) - before


def test_an_address_gets_a_letter_a_minute_five_an_hour_ten_a_day(
    app: App, outside: Outside
) -> None:
    assert letters_in(app, outside, 4, 15, ANN) == 1
    outside.time = START + 10 * HOUR
    assert letters_in(app, outside, 12, 299, ANN) == 5
    assert letters_in(app, outside, 12, 700, ANN) == 4
    outside.time = START + DAY
    assert letters_in(app, outside, 1, 0, ANN) == 1


def test_a_letter_that_is_not_sent_is_not_counted(app: App, outside: Outside) -> None:
    assert letters_in(app, outside, 6, 5, ANN) == 1
    outside.time = START + 11 * MINUTE
    assert letters_in(app, outside, 4, 11 * MINUTE, ANN) == 4
    outside.time = START + HOUR - 1
    assert letters_in(app, outside, 1, 1, ANN) == 0
    assert letters_in(app, outside, 1, 1, ANN) == 1


@pytest.mark.slow
def test_all_together_get_two_hundred_letters_an_hour(app: App, outside: Outside) -> None:
    assert letters_in(app, outside, 202, 1, "n{}@example.com") == 200
    outside.time = START + HOUR
    assert letters_in(app, outside, 1, 0, ANN) == 1


@pytest.mark.parametrize("settings", [NO_LIMITS])
def test_without_limits_nobody_waits_but_tries_stay(visitor: Visitor, outside: Outside) -> None:
    for number in range(12):
        for path in ("/auth/register", "/auth/verify", "/auth/login"):
            assert knock(visitor, path, number % 2).status_int != 429
    for _ in range(7):
        visitor.login(password="wrong", status=401)
    code, _ = code_for(visitor, outside)
    for step in range(5):
        visitor.verify(not_the(code, step + 1), status=400)
    assert visitor.verify(code, status=400) == FAILURE


# Races


def test_of_fifty_right_codes_at_once_one_succeeds(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    code, _ = code_for(visitor, outside)
    replies = all_at_once(app, "/auth/verify", [{"email": ANN, "token": code}] * 50)
    assert sorted(r.status_int for r in replies) == [200] + [400] * 49
    assert {r.text for r in replies} == {SUCCESS, FAILURE}
    assert len(dump_of(visitor, "account")) == 1


def test_of_a_burst_of_one_client_its_share_passes(app: App, outside: Outside) -> None:
    app.house.hashing.seats = threading.Semaphore(40)
    bodies = [body(email=f"n{number}@example.com") for number in range(40)]
    replies = all_at_once(app, "/auth/register", bodies, "203.0.113.7")
    assert sorted(r.status_int for r in replies) == [200] * 5 + [429] * 35
    app.deliver()
    assert len(outside.letters) == 5


@pytest.mark.parametrize("settings", [NO_LIMITS])
def test_of_fifty_registrations_at_once_three_wait_and_one_account_comes(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    app.house.hashing.seats = threading.Semaphore(50)
    replies = all_at_once(app, "/auth/register", [body(nickname=f"N{i}") for i in range(50)])
    assert {r.status_int for r in replies} == {200}
    assert len({r.json["request_id"] for r in replies}) == 50
    app.deliver()
    assert len(outside.letters) == 3
    codes = {outside.code(i) for i in range(3)}
    bodies = [{"email": ANN, "token": code} for code in codes]
    replies = all_at_once(app, "/auth/verify", bodies)
    assert sorted(r.status_int for r in replies) == [200] + [400] * (len(codes) - 1)
    assert len(dump_of(visitor, "account")) == 1


@contextmanager
def crowd_of_hashers(app: App, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Eight logins that do not come to an end; which of them are hashing."""
    hashing: list[int] = []
    go_on = threading.Event()
    real = commentd.hashed

    def slow(password: str, scheme: str) -> str:
        hashing.append(1)
        assert go_on.wait(20)
        return real(password, scheme)

    monkeypatch.setattr(commentd, "hashed", slow)
    with ThreadPoolExecutor(8) as pool:
        for number in range(8):
            client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": f"192.0.2.{number}"})
            pool.submit(client.post_json, "/auth/login", body(email=ANN), status=401)
        try:
            wait_for(lambda: len(hashing) >= 2 and not app.house.hashing.seats._value)
            yield hashing
        finally:
            go_on.set()
            monkeypatch.setattr(commentd, "hashed", real)


def wait_for(condition: Callable[[], bool]) -> None:
    idle, ends = threading.Event(), 1000
    while not condition():
        ends -= 1
        assert ends, "it never came to be"
        idle.wait(0.01)


@pytest.mark.parametrize("path", ["/auth/login", "/auth/register"])
def test_two_hash_six_wait_and_the_ninth_is_sent_away(
    app: App, visitor: Visitor, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    with crowd_of_hashers(app, monkeypatch) as hashing:
        visitor.faults_allowed = True
        refused = visitor.post_json(path, body(), status=503)
        assert refused.json["code"] == "busy"
        assert int(refused.headers["Retry-After"]) > 0
        assert len(hashing) == 2
        assert visitor.listing()["total"] == 0, "readers are served meanwhile"
    assert len(hashing) >= 2
    visitor.post_json(path, body(), status=200 if path == "/auth/register" else 401)


def test_who_has_had_his_share_is_told_so_before_anything_is_hashed(
    app: App, visitor: Visitor, hashes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        knock(visitor, "/auth/login", number)
    hashes.clear()
    assert knock(visitor, "/auth/login", 11).status_int == 429
    assert hashes == []
    with crowd_of_hashers(app, monkeypatch):
        visitor.faults_allowed = True
        assert knock(visitor, "/auth/login", 12).status_int == 429


def test_codes_tokens_and_limits_outlive_a_restart(config: Config, outside: Outside) -> None:
    app = make_app(config, outside.world, rounds=1)
    visitor = Visitor(app)
    visitor.verify(code_for(visitor, outside)[0])
    token = visitor.login()["token"]
    for _ in range(5):
        visitor.login(password="wrong", status=401)
    code, request_id = code_for(visitor, outside, email="bob@example.com")
    app.close()

    app = make_app(config, outside.world, rounds=1)
    visitor = Visitor(app)
    visitor.login(status=429)
    said = visitor.say(headers={"Authorization": f"Bearer {token}"})
    assert said["comment"]["user_id"] == 1
    assert visitor.verify(code, "bob@example.com", request_id=request_id) == SUCCESS
    app.close()


def test_asking_again_when_no_letter_may_go_keeps_the_code_that_was_sent(
    visitor: Visitor, outside: Outside
) -> None:
    code, request_id = "", ""
    for _ in range(5):  # all that an address gets in an hour
        code, request_id = code_for(visitor, outside)
        outside.time += 61
    late = Visitor(visitor.served, "198.51.100.9")
    again = late.register(request_id=request_id, nickname="Anna", password="newer")
    assert again == {"success": True, "request_id": request_id}
    assert late.verify(code, request_id=request_id) == SUCCESS
    assert late.login(password="newer")["nickname"] == "Anna"


def test_a_code_that_saw_the_clock_go_back_is_no_code_any_more(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    visitor.register()
    app.deliver()
    outside.time -= DAY
    app.tick()
    outside.time += DAY  # a moment later by the clock, and who knows how long after
    visitor.verify(outside.code(), status=400)


def test_passwords_are_hashed_where_no_thread_may_stand_back(
    ann: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*given: int) -> None:
        raise PermissionError(1, "Operation not permitted")  # as a filter of system calls does

    monkeypatch.setattr(os, "setpriority", refused)
    assert ann.login()["token"]
    assert ann.get("/health").json == {"ok": True}


def test_where_the_system_gives_no_thread_no_password_is_hashed_until_it_does(
    app: App, visitor: Visitor, outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    visitor.faults_allowed = True
    with monkeypatch.context() as crowded:
        crowded.setattr(threading.Thread, "start", refused)
        for path in ("/auth/register", "/auth/login"):
            reply = visitor.post_json(path, body(), status=503)
            assert reply.json["code"] == "busy"
            assert int(reply.headers["Retry-After"]) > 0
        assert visitor.get("/health", status=503).json["code"] == "busy"
    visitor.faults_allowed = False
    outside.time += MINUTE
    assert visitor.get("/health").json == {"ok": True}
    visitor.verify(code_for(visitor, outside)[0])
    assert visitor.login()["token"]


def test_a_pool_that_is_gone_is_a_503_and_no_failure(app: App, visitor: Visitor) -> None:
    app.house.hashing.hands.shutdown()
    visitor.faults_allowed = True
    assert visitor.login(status=503)["code"] == "busy"
    assert visitor.get("/health", status=503).json["code"] == "busy"


def test_clients_counted_in_memory_are_bounded_and_the_busiest_are_kept(
    app: App, visitor: Visitor
) -> None:
    tally = app.house.tally
    for number in range(3 * tally.MOST):
        tally.take("preview", f"2001:db8:{number:x}::/64", 1, START)
        if number % 1000 == 0:
            tally.take("preview", "busy", 1, START)
        if number % 100 == 0:
            tally.take("challenge", "flood", 1, START)
    assert len(tally.counts) == tally.MOST
    assert tally.counts["preview", "busy"] == 30
    assert not tally.take("challenge", "flood", 1, START)
    assert tally.take("challenge", "flood", 1, START + MINUTE)
