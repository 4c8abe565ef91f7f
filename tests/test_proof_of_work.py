"""The proof of work: what passes, what is refused, and how often.

The `altcha` package solves and verifies what the service asks for, as the oracle of the format."""

import base64
import hashlib
import json
import re
import secrets
from contextlib import closing
from dataclasses import replace
from itertools import product
from typing import Any

import altcha
import pytest
import webtest

from commentd import App, Config, World, make_app
from support import inside
from support.client import PAGE, Visitor
from support.database import dump
from support.world import START, FakeWorld

HOUR = 3600
ANN = "ann@example.com"
CAPTCHA_FAILED = {"error": "人机验证失败，请重试", "code": "captcha_failed"}
ALTCHA = {"captcha_provider": "altcha"}
REQUESTS: dict[str, dict[str, Any]] = {
    "/auth/register": {"email": ANN, "nickname": "Ann", "password": "pw"},
    "/auth/code": {"email": "bob@example.com"},
    "/auth/login": {"email": ANN, "password": "pw"},
    "/comments": {"page_url": PAGE, "nickname": "Ann", "content": "hi"},
}
with_altcha = pytest.mark.parametrize("settings", [ALTCHA], ids=["altcha"])
unlimited = pytest.mark.parametrize("settings", [ALTCHA | {"limits_enabled": False}], ids=["free"])


def test_random_bytes_come_from_the_operating_system() -> None:
    assert World().random_bytes is secrets.token_bytes


# The proof of work


def packed(payload: Any) -> str:
    return base64.b64encode(json.dumps(payload).encode()).decode()


def solved(visitor: Visitor) -> dict[str, Any]:
    """A payload that passes, as the oracle solves what the service asks."""
    challenge = visitor.get("/captcha").json
    solution = altcha.solve_challenge(altcha.Challenge.from_dict(challenge), counter_start=20_000)
    assert solution is not None
    return {"challenge": challenge, "solution": solution.to_dict()}


def comment(visitor: Visitor, payload: Any, status: int = 200, text: str = "hi") -> Any:
    return visitor.say(text, captcha_token=packed(payload), status=status)


@pytest.mark.parametrize(
    ("number", "counter"), [(0, 20_000), (130_000, 150_000), (130_001, 20_000)], ids=str
)
def test_a_challenge_needs_20_000_to_150_000_tries(
    config: Config, fake_world: FakeWorld, number: int, counter: int
) -> None:
    world = replace(fake_world.world, random_bytes=lambda size: number.to_bytes(size))
    how = replace(config, captcha_provider="altcha")
    with closing(make_app(how, world, rounds=1)) as app:
        asked = Visitor(app).get("/captcha").json["parameters"]
    begin = bytes.fromhex(asked["salt"] + asked["nonce"])
    assert hashlib.sha256(begin + counter.to_bytes(4)).hexdigest()[:32] == asked["keyPrefix"]


@pytest.mark.slow
@unlimited
def test_a_solution_of_the_altcha_library_passes_only_for_our_own_challenge(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    for number in range(3):
        payload = solved(visitor)
        assert 20_000 <= payload["solution"]["counter"] <= 150_000, "nobody works longer"
        comment(visitor, payload, text=str(number))
    # What somebody solved who made the challenge themselves.
    ends = int(fake_world.time + HOUR)
    for secret in (inside.token_key(app), b"x" * 32):
        challenge = altcha.create_challenge(
            "SHA-256", 1, hmac_secret=secret, counter=321, expires_at=ends
        )
        solution = altcha.solve_challenge(challenge)
        assert solution
        made = altcha.Payload(challenge, solution).to_base64()
        assert visitor.say("of others", captcha_token=str(made), status=403) == CAPTCHA_FAILED


@with_altcha
def test_a_challenge_is_in_the_altcha_format_and_for_one_reader(visitor: Visitor) -> None:
    first, second = (visitor.get("/captcha").json for _ in range(2))
    for name in ("nonce", "salt", "keyPrefix"):
        assert first["parameters"][name] != second["parameters"][name]
        assert re.fullmatch("[0-9a-f]{32}", first["parameters"].pop(name)), name
    assert re.fullmatch("[0-9a-f]{64}", first.pop("signature"))
    assert first == {
        "provider": "altcha",
        "parameters": {
            "algorithm": "SHA-256",
            "cost": 1,
            "expiresAt": START + HOUR,
            "keyLength": 32,
        },
    }


@pytest.mark.slow
@unlimited
def test_a_guessed_solution_of_the_proof_of_work_is_refused(visitor: Visitor) -> None:
    payload = solved(visitor)
    parameters = payload["challenge"]["parameters"]
    begin = bytes.fromhex(parameters["salt"] + parameters["nonce"])
    for counter in (0, 1, payload["solution"]["counter"] - 1, payload["solution"]["counter"] + 1):
        derived = hashlib.sha256(begin + counter.to_bytes(4)).hexdigest()
        guess = {"counter": counter, "derivedKey": derived}
        assert comment(visitor, payload | {"solution": guess}, 403) == CAPTCHA_FAILED


def places(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The way to each value inside, and to the whole."""
    if not isinstance(value, dict):
        return [path]
    return [path, *(place for key in value for place in places(value[key], (*path, key)))]


def changed(value: Any, path: tuple[str, ...], new: Any) -> Any:
    """A copy with another value at that place; without it where that is `...`."""
    if not path:
        return new
    copy = dict(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return {k: v for k, v in copy.items() if v is not ...}


@pytest.mark.slow
@unlimited
def test_a_solution_of_the_proof_of_work_with_anything_changed_is_refused(visitor: Visitor) -> None:
    payload = solved(visitor)
    free = [("time",), ("provider",), ("derivedKey",)]  # which the service finds by itself
    ways = [path for path in places(payload) if path[-1:] not in free]
    odd: list[Any] = [..., None, 0, True, -1, 1.5, 2**32, 10**300, "", "00", "é", "\ud800", [], {}]
    client = webtest.TestApp(visitor.served)
    for path, new in product(ways, odd):
        sent = changed(payload, path, new) if path or new is not ... else {}
        body = {"page_url": PAGE, "nickname": "Ann", "content": "hi", "captcha_token": packed(sent)}
        if packed(sent) != packed(payload):
            response = client.post_json("/comments", body, status=403).json
            assert response == CAPTCHA_FAILED, (path, new)
    comment(visitor, payload)


@with_altcha
def test_junk_in_place_of_a_solution_is_refused_and_never_an_exception(visitor: Visitor) -> None:
    twice = b'{"challenge": {"parameters": {}, "signature": "", "signature": ""}}'
    for junk in (b"[" * 2000, b'{"challenge": 1e999}', twice, b"9" * 2000, b"\xff", b"{}"):
        token = base64.b64encode(junk).decode()
        assert visitor.say(captcha_token=token, status=403) == CAPTCHA_FAILED
    for token in ("\xff", "=", "x" * 4000, "\u0131", f"!{packed(solved(visitor))}"):
        assert visitor.say(captcha_token=token, status=403) == CAPTCHA_FAILED


@with_altcha
def test_a_client_gets_120_challenges_a_minute(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time = START // 60 * 60
    before = dump(inside.database_path(app))
    for _ in range(120):
        webtest.TestApp(app, extra_environ=visitor.extra_environ).get("/captcha")
    late = visitor.get("/captcha", status=429)
    assert late.json["code"] == "too_many"
    assert int(late.headers["Retry-After"]) <= 60
    Visitor(app, "203.0.113.8").get("/captcha")
    fake_world.time += 60
    visitor.get("/captcha")
    # What nobody solves leaves no row.
    assert dump(inside.database_path(app)) == before
    assert inside.sql(app, "SELECT count(*) FROM spent_captcha") == [(0,)]


@pytest.mark.slow
@with_altcha
@pytest.mark.parametrize("path", REQUESTS)
def test_each_request_needs_its_own_captcha(
    app: App, visitor: Visitor, fake_world: FakeWorld, path: str
) -> None:
    done = 401 if path == "/auth/login" else 200
    sent = REQUESTS[path] | {"captcha_token": "x"}
    assert visitor.post_json(path, sent, status=403).json == CAPTCHA_FAILED
    token = packed(solved(visitor))
    visitor.post_json(path, REQUESTS[path] | {"captcha_token": token}, status=done)
    for number, (other, fields) in enumerate(REQUESTS.items()):
        client = Visitor(app, f"192.0.2.{number}")
        fresh = {name: f"{name[:1]}{value}" for name, value in fields.items()}
        spent = client.post_json(other, fresh | {"captcha_token": token}, status=403).json
        assert spent == {"error": "人机验证已用过，请重试", "code": "captcha_failed"}
    early, late = packed(solved(visitor)), packed(solved(visitor))
    fake_world.time += HOUR - 1
    client = Visitor(app, "192.0.2.9")
    client.post_json(path, REQUESTS[path] | {"captcha_token": early}, status=done)
    fake_world.time += 1
    refused = client.post_json(path, REQUESTS[path] | {"captcha_token": late}, status=403)
    assert refused.json == CAPTCHA_FAILED


@with_altcha
def test_other_refusals_spend_no_captcha_token(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    token = packed(solved(visitor))
    for path, fields in REQUESTS.items():
        for name in fields:
            visitor.post_json(path, fields | {name: "", "captcha_token": token}, status=400)
    visitor.register(captcha_token=token)
    app.deliver()
    token = packed(solved(visitor))
    visitor.register(captcha_token=token, status=429)
    Visitor(app, "192.0.2.1").register(captcha_token=token)
    assert visitor.verify(fake_world.code()) == "验证成功"  # which asks for none


@pytest.mark.parametrize("number", [0, 999_999, 1_000_000, 2**64 - 1])
def test_a_code_is_always_six_digits(config: Config, fake_world: FakeWorld, number: int) -> None:
    world = replace(fake_world.world, random_bytes=lambda size: number.to_bytes(size))
    with closing(make_app(config, world, rounds=1)) as app:
        Visitor(app).register()
        app.deliver()
        assert fake_world.code() == f"{number % 1_000_000:06}"
        Visitor(app).verify(fake_world.code())
