import base64
import functools
import hashlib
import hmac
import json
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import altcha
import pytest
import webtest
from conftest import PAGE, START, Outside, Visitor
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import commentd
from commentd import Account, App, Forbidden, Json, Unauthorized

KEY = b"k" * 32
ALTCHA_KEY = hmac.digest(KEY, b"captcha", "sha256")  # what `KEY` is to the proof of work
NOW = int(time.time())  # the oracle has only the real clock
HOUR = 3600
ANN = "ann@example.com"
ACCOUNT = Account(1, ANN, "Ann", "x", "user", 3, START, 0)
CAPTCHA_FAILED = {"error": "人机验证失败，请重试", "code": "captcha_failed"}
many = settings(deadline=None, max_examples=150)
texts = st.text(max_size=30)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def chance(number: int) -> Callable[[int], bytes]:
    """A source of chance that always says the same."""
    return lambda size: number.to_bytes(size)


# Passwords, codes, seals


@many
@given(texts)
@example("a" * 64)
@example("0" * 63 + "G")
@example("密码")
def test_a_password_is_hashed_as_the_standard_library_does_it(password: str) -> None:
    scheme = commentd.password_scheme(2, KEY, ANN)
    stored = commentd.hashed(password, scheme)
    assert commentd.scheme_of(stored) == scheme
    sha256 = hashlib.sha256(password.encode()).hexdigest()
    if not re.fullmatch("[0-9A-Fa-f]{64}", password):
        assert commentd.hashed(sha256, scheme) == commentd.hashed(sha256.upper(), scheme) == stored
    else:
        sha256 = password.lower()
    salt = bytes.fromhex(scheme.removeprefix("pbkdf2_sha256$2$"))
    derived = hashlib.pbkdf2_hmac("sha256", sha256.encode(), salt, 2).hex()
    assert stored == f"{scheme}${derived}"


def test_every_address_has_a_salt_of_its_own_in_every_service() -> None:
    schemes = [
        commentd.password_scheme(1, key, email)
        for key in (KEY, KEY[1:] + b"x")
        for email in (ANN, "bob@example.com")
    ]
    assert len(set(schemes)) == 4
    assert all(re.fullmatch(r"pbkdf2_sha256\$1\$[0-9a-f]{32}", scheme) for scheme in schemes)


@many
@given(texts, texts)
@example("a", "a ")
@example("\u00e9", "e\u0301")
@example("0" * 64, "\uff10" * 64)
def test_different_passwords_have_different_hashes(one: str, other: str) -> None:
    assume(one.lower() != other.lower() or not re.fullmatch("[0-9A-Fa-f]{64}", one))
    scheme = commentd.password_scheme(1, KEY, ANN)
    assert (commentd.hashed(one, scheme) == commentd.hashed(other, scheme)) == (one == other)


def test_chance_is_that_of_the_system() -> None:
    assert commentd.World().chance is secrets.token_bytes


@many
@given(st.integers(0, 2**64 - 1))
@example(0)
@example(999_999)
@example(2**64 - 1)
def test_a_code_is_always_six_digits(number: int) -> None:
    code = commentd.new_code(chance(number))
    assert re.fullmatch("[0-9]{6}", code)
    assert int(code) == number % 1_000_000


@many
@given(st.lists(texts, min_size=1, max_size=4), st.lists(texts, min_size=1, max_size=4))
@example(["a", "b"], ["a b"])
@example(["a", ""], ["a"])
@example(['a", "b'], ["a", "b"])
def test_no_seal_for_one_purpose_passes_for_another(one: list[str], other: list[str]) -> None:
    equal = commentd.mac(KEY, *one) == commentd.mac(KEY, *other)
    assert equal == (one == other)
    assert commentd.mac(KEY, *one) != commentd.mac(KEY[1:], *one)


@given(texts, texts)
@example("é", "e")
def test_equal_texts_are_the_same_and_no_others(one: str, other: str) -> None:
    assert commentd.same(one, one)
    assert commentd.same(one, other) == (one == other)


# Tokens


@many
@given(st.integers(0, 2**62), st.integers(1, 2**63 - 1), st.integers(0, 2**62))
def test_a_token_is_read_back_for_seven_days(now: int, user_id: int, version: int) -> None:
    account = Account(user_id, ANN, "Ann", "x", "user", version, START, 0)
    token = commentd.make_token(account, KEY, now)
    for at in (now, now + 7 * 24 * HOUR - 1, now - 60):
        assert commentd.read_token(token, KEY, at) == (user_id, version)
    for at in (now + 7 * 24 * HOUR, now - 61):
        with pytest.raises(Unauthorized):
            commentd.read_token(token, KEY, at)


@many
@given(st.integers(0, 1), st.data())
def test_a_token_with_one_changed_letter_is_refused(part: int, data: st.DataObject) -> None:
    parts = commentd.make_token(ACCOUNT, KEY, START).split(".")
    at = data.draw(st.integers(0, len(parts[part]) - 1))
    letter = data.draw(st.sampled_from("Aa0-_.= é\n").filter(lambda c: c != parts[part][at]))
    parts[part] = parts[part][:at] + letter + parts[part][at + 1 :]
    with pytest.raises(Unauthorized):
        commentd.read_token(".".join(parts), KEY, START)


@many
@given(texts | st.from_regex(r"[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*", fullmatch=True))
def test_no_junk_is_a_token(junk: str) -> None:
    with pytest.raises(Unauthorized):
        commentd.read_token(junk, KEY, START)


@many
@given(
    st.dictionaries(st.sampled_from(["id", "exp", "iat", "use", "ver", "x"]), json_values),
    json_values,
)
def test_no_signed_junk_is_a_token(claims: Json, header: Any) -> None:
    first = header if isinstance(header, dict) else {"alg": "HS256", "typ": header}
    parts = [base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=") for p in (first, claims)]
    seal = base64.urlsafe_b64encode(hmac.digest(KEY, b".".join(parts), "sha256")).rstrip(b"=")
    with pytest.raises(Unauthorized):
        commentd.read_token(b".".join([*parts, seal]).decode(), KEY, START)


# The proof of work, with the `altcha` package as oracle


@functools.cache
def solved(number: int = 5) -> Json:
    """A payload that passes, as the oracle solves what the service asks."""
    challenge = commentd.new_challenge(KEY, NOW, chance(number))
    found = altcha.solve_challenge(altcha.Challenge.from_dict(challenge), counter_start=20_000)
    assert found is not None
    return {"challenge": challenge, "solution": found.to_dict()}


def packed(payload: Any) -> str:
    return base64.b64encode(json.dumps(payload).encode()).decode()


def test_what_the_oracle_solves_passes_here_and_there() -> None:
    payload = solved()
    captcha = commentd.solved_captcha(packed(payload), KEY, NOW)
    assert captcha == commentd.Captcha(payload["challenge"]["signature"], NOW + HOUR, NOW)
    assert altcha.verify_solution(packed(payload), ALTCHA_KEY).verified
    assert not altcha.verify_solution(packed(payload), KEY).verified, "the key is of this purpose"


@pytest.mark.parametrize("more", [{}, {"data": {"a": "b"}}, {"key_prefix_length": 3}])
def test_what_the_oracle_makes_with_our_key_passes_here(more: Json) -> None:
    made = altcha.create_challenge(
        "SHA-256", 1, counter=321, expires_at=NOW + HOUR, hmac_secret=ALTCHA_KEY, **more
    )
    found = altcha.solve_challenge(made)
    token = altcha.Payload(made, found).to_base64()
    assert commentd.solved_captcha(token, KEY, NOW).signature == made.signature
    with pytest.raises(Forbidden):
        commentd.solved_captcha(token, KEY[1:] + b"x", NOW)


@pytest.mark.parametrize(
    ("number", "counter"), [(0, 20_000), (130_000, 150_000), (130_001, 20_000), (1, 20_001)]
)
def test_no_one_works_longer_than_the_bound(number: int, counter: int) -> None:
    challenge = commentd.new_challenge(KEY, NOW, chance(number))
    token = packed({"challenge": challenge, "solution": answer(challenge, counter)})
    assert commentd.solved_captcha(token, KEY, NOW)
    assert altcha.verify_solution(token, ALTCHA_KEY).verified


def answer(challenge: Json, counter: int) -> Json:
    """What a reader sends who says that this counter is the solution."""
    nonce, salt = (bytes.fromhex(challenge["parameters"][name]) for name in ("nonce", "salt"))
    derived = hashlib.sha256(salt + nonce + counter.to_bytes(4)).hexdigest()
    return {"counter": counter, "derivedKey": derived}


@many
@given(st.integers(0, 2**32 - 1))
def test_without_the_work_there_is_no_solution(counter: int) -> None:
    assume(counter != solved()["solution"]["counter"])
    payload = solved() | {"solution": answer(solved()["challenge"], counter)}
    with pytest.raises(Forbidden):
        commentd.solved_captcha(packed(payload), KEY, NOW)


def test_a_challenge_is_in_the_wire_format() -> None:
    challenge = commentd.new_challenge(KEY, NOW, chance(5))
    parameters = challenge["parameters"]
    prefix = parameters.pop("keyPrefix")
    assert re.fullmatch("[0-9a-f]{32}", prefix)
    assert parameters == {
        "algorithm": "SHA-256",
        "cost": 1,
        "expiresAt": NOW + HOUR,
        "keyLength": 32,
        "nonce": "0" * 31 + "5",
        "salt": "0" * 31 + "5",
    }
    assert challenge == {"parameters": parameters, "signature": challenge["signature"]}


@pytest.mark.parametrize(("seconds", "passes"), [(-HOUR, True), (HOUR - 1, True), (HOUR, False)])
def test_a_challenge_expires(seconds: int, passes: bool) -> None:
    if passes:
        assert commentd.solved_captcha(packed(solved()), KEY, NOW + seconds)
    else:
        with pytest.raises(Forbidden):
            commentd.solved_captcha(packed(solved()), KEY, NOW + seconds)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to each value inside, and to the whole."""
    inner = (
        [p for key in value for p in places(value[key], (*path, key))]
        if isinstance(value, dict)
        else []
    )
    return [path, *inner]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy with another value at that place; without it where that is `...`."""
    if not path:
        return new
    copy = dict(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return {k: v for k, v in copy.items() if v is not ...}


WAYS = [path for path in places(solved()) if path[-1:] != ("time",)]


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(WAYS), json_values | st.sampled_from([..., 0, "00", 2**31, NOW * 2]))
@example(("challenge", "parameters", "expiresAt"), NOW + 2 * HOUR)
@example(("challenge", "parameters", "keyPrefix"), "")
@example(("challenge", "parameters", "keyLength"), 32.0)
@example(("challenge", "signature"), "é")
@example(("challenge", "signature"), "\ud800")
@example(("solution", "counter"), 2**32)
@example(("solution", "counter"), -1)
@example(("solution", "counter"), True)
@example(("solution", "counter"), 10**300)
@example(("solution", "derivedKey"), None)
@example((), [])
@example((), None)
def test_a_solution_with_anything_changed_is_refused(path: tuple[Any, ...], new: Any) -> None:
    token = packed(changed(solved(), path, new) if path or new is not ... else {})
    assume(token != packed(solved()))
    with pytest.raises(Forbidden):
        commentd.solved_captcha(token, KEY, NOW)


@many
@given(st.binary(max_size=60), st.booleans())
@example(b"[" * 5000, True)
@example(b'{"challenge": 1e999}', True)
@example(b'{"challenge": {"parameters": {}, "signature": "", "signature": ""}}', True)
@example(b"9" * 5000, True)
@example(b"\xff", False)
def test_junk_is_refused_and_never_an_exception(junk: bytes, encoded: bool) -> None:
    token = base64.b64encode(junk).decode() if encoded else junk.decode("latin-1")
    with pytest.raises(Forbidden):
        commentd.solved_captcha(token, KEY, NOW)


# Through the API

ALTCHA = {"captcha_provider": "altcha"}


def solution_for(visitor: Visitor) -> str:
    """A captcha, asked for and solved."""
    challenge = visitor.get("/captcha").json
    made = altcha.Challenge.from_dict(challenge)
    found = altcha.solve_challenge(made, counter_start=20_000)
    return packed({"challenge": challenge, "solution": found.to_dict()})


@pytest.mark.parametrize("settings", [ALTCHA])
def test_every_reader_gets_a_challenge_of_his_own(visitor: Visitor) -> None:
    first, second = (visitor.get("/captcha") for _ in range(2))
    assert set(first.json) == {"provider", "parameters", "signature"}
    assert first.json["provider"] == "altcha"
    assert first.json["parameters"]["expiresAt"] == START + HOUR
    for name in ("nonce", "salt", "keyPrefix"):
        assert first.json["parameters"][name] != second.json["parameters"][name]


def test_without_a_captcha_there_is_nothing_to_solve(visitor: Visitor) -> None:
    assert visitor.get("/captcha").json == {"provider": "none"}


@pytest.mark.parametrize("settings", [ALTCHA])
def test_a_client_gets_a_hundred_and_twenty_challenges_a_minute(
    app: App, visitor: Visitor, outside: Outside
) -> None:
    outside.time = START // 60 * 60
    for _ in range(120):
        visitor.get("/captcha")
    refused = visitor.get("/captcha", status=429)
    assert refused.json["code"] == "too_many"
    assert int(refused.headers["Retry-After"]) <= 60
    Visitor(app, "203.0.113.8").get("/captcha")
    outside.time += 60
    visitor.get("/captcha")


REQUESTS: dict[str, Json] = {
    "/auth/register": {"email": ANN, "nickname": "Ann", "password": "pw"},
    "/auth/login": {"email": ANN, "password": "pw"},
    "/comments": {"page_url": PAGE, "nickname": "Ann", "content": "hi"},
}


@pytest.mark.parametrize("settings", [ALTCHA])
@pytest.mark.parametrize("path", REQUESTS)
def test_each_request_needs_a_captcha_of_its_own(
    app: App, visitor: Visitor, outside: Outside, path: str
) -> None:
    done = 401 if path == "/auth/login" else 200
    for junk in ("x", packed(solved()), packed({})):
        sent = REQUESTS[path] | {"captcha_token": junk}
        assert visitor.post_json(path, sent, status=403).json == CAPTCHA_FAILED
    token = solution_for(visitor)
    visitor.post_json(path, REQUESTS[path] | {"captcha_token": token}, status=done)
    for number, (other, fields) in enumerate(REQUESTS.items()):
        client = Visitor(app, f"192.0.2.{number}")
        fresh = {name: f"{name[:1]}{value}" for name, value in fields.items()}
        spent = client.post_json(other, fresh | {"captcha_token": token}, status=403).json
        assert spent == {"error": "人机验证已用过，请重试", "code": "captcha_failed"}
    late = solution_for(visitor)
    outside.time += HOUR
    refused = Visitor(app, "192.0.2.9").post_json(
        path, REQUESTS[path] | {"captcha_token": late}, status=403
    )
    assert refused.json == CAPTCHA_FAILED


@pytest.mark.parametrize("settings", [ALTCHA | {"limits_enabled": False}])
@pytest.mark.parametrize("path", REQUESTS)
def test_of_thirty_uses_at_once_one_passes(app: App, visitor: Visitor, path: str) -> None:
    app.house.hashing.seats = threading.Semaphore(30)
    token, gate = solution_for(visitor), threading.Barrier(30)
    own = {"/comments": "content"}.get(path, "email")

    def use(number: int) -> int:
        client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": f"192.0.2.{number}"})
        fields = REQUESTS[path] | {own: f"n{number}@example.com", "captcha_token": token}
        gate.wait(10)
        status: int = client.post_json(path, fields, expect_errors=True).status_int
        return status

    with ThreadPoolExecutor(30) as pool:
        found = sorted(pool.map(use, range(30)))
    assert found == sorted([401 if path == "/auth/login" else 200] + [403] * 29)


@pytest.mark.parametrize("settings", [ALTCHA])
def test_a_slip_of_the_keyboard_spends_no_captcha(visitor: Visitor) -> None:
    token = solution_for(visitor)
    for path, fields in REQUESTS.items():
        for name in fields:
            visitor.post_json(path, fields | {name: "", "captcha_token": token}, status=400)
    fields = REQUESTS["/auth/register"] | {"captcha_token": token}
    assert visitor.post_json("/auth/register", fields).json["success"]


@pytest.mark.parametrize("settings", [ALTCHA])
def test_a_request_that_is_refused_for_its_rate_spends_no_captcha(
    app: App, visitor: Visitor
) -> None:
    fields = REQUESTS["/auth/register"]
    visitor.post_json("/auth/register", fields | {"captcha_token": solution_for(visitor)})
    token = solution_for(visitor)
    visitor.post_json("/auth/register", fields | {"captcha_token": token}, status=429)
    Visitor(app, "192.0.2.1").post_json("/auth/register", fields | {"captcha_token": token})


@pytest.mark.parametrize("settings", [ALTCHA])
def test_a_verification_asks_for_no_captcha(app: App, visitor: Visitor, outside: Outside) -> None:
    visitor.register(captcha_token=solution_for(visitor))
    app.deliver()
    assert visitor.verify(outside.code()) == "验证成功"


@pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}])
def test_a_challenge_that_nobody_solves_leaves_no_row(app: App, visitor: Visitor) -> None:
    def rows() -> dict[str, int]:
        with closing(sqlite3.connect(app.house.store.path)) as db:
            tables = [r[0] for r in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
            return {t: db.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}

    before = rows()
    for _ in range(5):
        visitor.get("/captcha")
    assert rows() == before
