"""The owner's own site signs readers in, with a token that it has signed."""

import hashlib
import json
from typing import Any

import jwt
import pytest

from commentd import RULES, App, Config
from support import inside
from support.client import CANARY, Visitor
from support.inside import sql
from support.world import FakeWorld

KEY, OTHER_KEY = "k" * 32, "o" * 32
SERVICE = "https://comments.example"
SECRET = "5e" * 32


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"login_site_key": KEY, "server_public_url": SERVICE}


def claims(world: FakeWorld, **changed: Any) -> dict[str, Any]:
    """Those of Ann on her first page."""
    now = int(world.time)
    usual = {"sub": "7", "aud": SERVICE, "iat": now, "exp": now + 600, "jti": "a"}
    ann = {"email": "ann@example.com", "email_verified": True, "name": "Ann"}
    return {name: value for name, value in {**usual, **ann, **changed}.items() if value is not None}


def signed(values: dict[str, Any], key: str = KEY, algorithm: str = "HS256") -> str:
    return jwt.encode(values, key, algorithm=algorithm)


def take(visitor: Visitor, token: str, status: int = 200) -> Any:
    form = {"site_token": token, "secret_hash": hashlib.sha256(SECRET.encode()).hexdigest()}
    return visitor.post_json("/auth/site", form, status=status).json


def enter(visitor: Visitor, token: str, status: int = 200, **form: str) -> Any:
    """Signs in with a token."""
    voucher = take(visitor, token)["voucher"]
    body = {"voucher": voucher, "voucher_secret": SECRET, **form}
    return visitor.post_json("/auth/login", body, status=status).json


def test_a_reader_of_the_site_is_signed_in_again_and_again(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    first = enter(visitor, signed(claims(fake_world)), nickname="Ann")
    assert (first["nickname"], first["role"]) == ("Ann", "user")
    enter(visitor, signed(claims(fake_world, jti="b", email="new@example.com")))
    assert sql(app, "SELECT email, nickname FROM account") == [("ann@example.com", "Ann")]


def test_a_name_is_offered_and_not_taken_without_a_word(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    asked = enter(visitor, signed(claims(fake_world)), 403)
    assert (asked["code"], asked["nickname"]) == ("provider_name", "Ann")


@pytest.mark.parametrize(
    "changed",
    [
        {"email_verified": False},
        {"email_verified": "yes"},
        {"email": None},
        {"email": "no address"},
    ],
    ids=str,
)
def test_an_address_that_the_site_has_not_confirmed_is_asked_for(
    visitor: Visitor, fake_world: FakeWorld, changed: dict[str, Any]
) -> None:
    asked = enter(visitor, signed(claims(fake_world, **changed)), 403, nickname="Ann")
    assert asked["code"] == "provider_email"


def test_an_address_of_an_account_is_confirmed_by_its_holder(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    inside.add_account(app, "ann@example.com", "Ann", CANARY)
    asked = enter(visitor, signed(claims(fake_world)), 403, nickname="Ann")
    assert asked["code"] == "provider_email"
    assert sql(app, "SELECT count(*) FROM joined_identity") == [(0,)]


def test_a_token_signs_in_once(visitor: Visitor, fake_world: FakeWorld) -> None:
    token = signed(claims(fake_world))
    enter(visitor, token, nickname="Ann")
    for minutes in (0, 9, 2):
        fake_world.time += 60 * minutes
        assert take(visitor, token, 401)["code"] == "provider_refused"


def test_tokens_are_taken_ten_times_in_ten_minutes(visitor: Visitor, fake_world: FakeWorld) -> None:
    tokens = [signed(claims(fake_world, jti=str(number))) for number in range(11)]
    for token in tokens[:10]:
        take(visitor, token)
    take(visitor, tokens[10], 429)
    fake_world.time += 600
    take(visitor, signed(claims(fake_world, jti="later")))


def test_a_token_brings_no_second_voucher_with_another_body(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    take(visitor, signed(claims(fake_world)))
    take(visitor, signed(claims(fake_world, sub="8")), 401)


WRONG: list[dict[str, Any]] = [
    {"aud": "https://other.example"},
    {"aud": f"{SERVICE}/"},
    {"aud": None},
    {"sub": None},
    {"sub": ""},
    {"sub": 7},
    {"sub": "x" * 256},
    {"sub": "\ud800"},
    {"jti": None},
    {"jti": ""},
    {"iat": None},
    {"exp": None},
    {"exp": "soon"},
    {"nbf": "soon"},
    {"nbf": 2.5},
]


@pytest.mark.parametrize("changed", WRONG, ids=str)
def test_a_token_with_wrong_claims_is_refused(
    visitor: Visitor, fake_world: FakeWorld, changed: dict[str, Any]
) -> None:
    body = {key: value for key, value in claims(fake_world, **changed).items() if key != "iat"}
    iat = {} if "iat" in changed else {"iat": int(fake_world.time)}
    # PyJWT refuses to sign some of them.
    token = jwt.PyJWS().encode(json.dumps(body | iat).encode(), KEY, algorithm="HS256")
    assert take(visitor, token, 401)["code"] == "provider_refused"


@pytest.mark.parametrize(
    ("begins", "ends", "is_good"),
    [
        (0, 600, True),
        (50, 650, True),
        (-550, 50, True),
        (-650, -50, True),
        (0, 601, False),
        (70, 600, False),
        (-700, -100, False),
        (-100, 10**9, False),
    ],
)
def test_a_token_lives_for_ten_minutes(
    visitor: Visitor, fake_world: FakeWorld, begins: int, ends: int, is_good: bool
) -> None:
    for now in (10**9, 4 * 10**9):  # of the clock of the service, not that of the machine
        fake_world.time = now
        token = signed(claims(fake_world, iat=now + begins, exp=now + ends, jti=str(now)))
        take(visitor, token, 200 if is_good else 401)


def test_a_token_is_good_from_the_time_that_it_may_name(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    fake_world.time = now = 4 * 10**9
    for begins in (0, 50, 70):
        token = signed(claims(fake_world, nbf=now + begins, jti=str(begins)))
        take(visitor, token, 200 if begins < 60 else 401)


def test_a_token_of_another_key_or_none_is_refused(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    body = claims(fake_world)
    tokens = [signed(body, OTHER_KEY), signed(body, KEY * 2, "HS512"), signed(body, "", "none")]
    inside.add_account(app, "ann@example.com", "Ann", CANARY)
    tokens += [inside.token_of(app, "ann@example.com"), "", "a.b.c", signed(body) + "x"]
    for token in tokens[:4] + tokens[5:]:
        assert take(visitor, token, 401)["code"] == "provider_refused"


def test_the_hash_of_a_secret_is_no_longer_than_one(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    form = {"site_token": signed(claims(fake_world)), "secret_hash": "0" * 65}
    refused = visitor.post_json("/auth/site", form, status=400).json
    assert refused["code"] == "secret_hash_too_long"


def test_a_voucher_is_worth_nothing_without_the_secret_of_its_page(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    voucher = take(visitor, signed(claims(fake_world)))["voucher"]
    body = {"voucher": voucher, "voucher_secret": "0" * 64, "nickname": "Ann"}
    assert visitor.post_json("/auth/login", body, status=401).json["code"] == "provider_refused"


def test_no_admin_is_signed_in_by_a_site(app: App, visitor: Visitor, fake_world: FakeWorld) -> None:
    enter(visitor, signed(claims(fake_world)), nickname="Ann")
    sql(app, "UPDATE account SET role = 'admin'")
    refused = enter(visitor, signed(claims(fake_world, jti="b")), 403)
    assert refused["code"] == "password_required"


def test_a_blocked_reader_stays_blocked(app: App, visitor: Visitor, fake_world: FakeWorld) -> None:
    enter(visitor, signed(claims(fake_world)), nickname="Ann")
    sql(app, "UPDATE account SET blocked = 1")
    enter(visitor, signed(claims(fake_world, jti="b")), 401)


@pytest.mark.parametrize("settings", [{"server_public_url": SERVICE}])
def test_without_a_key_nothing_is_there(visitor: Visitor, fake_world: FakeWorld) -> None:
    assert take(visitor, signed(claims(fake_world)), 404)["code"] == "not_found"


def test_the_key_needs_a_service_to_name_and_is_not_that_of_logins() -> None:
    def faults_of(config: Config) -> list[str]:
        return [fault for find in RULES for fault in find(config)]

    assert "[login] site_key needs [server] public_url: tokens are made for it" in faults_of(
        Config(login_site_key=KEY)
    )
    same = Config(login_site_key=KEY, token_key=KEY, server_public_url=SERVICE)
    assert "[login] site_key must not be [token] key: it would sign any login" in faults_of(same)


def test_an_identity_that_signs_in_is_listed_and_parted(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    token = enter(visitor, signed(claims(fake_world)), nickname="Ann")["token"]
    visitor.authorization = ("Bearer", token)
    [identity] = visitor.get("/me").json["identities"]
    assert identity["provider"] == "comments.example"
    assert visitor.delete_json("/me/identities", {"id": "x"}, status=404)
    # Without a mail server no code arrives, and without a password nothing else signs in.
    refused = visitor.delete_json("/me/identities", {"id": identity["id"]}, status=409)
    assert refused.json["code"] == "provider_last"
    stored = inside.stored_password(app, "ann@example.com", CANARY)
    sql(app, "UPDATE account SET password = ?", stored)
    parted = visitor.delete_json("/me/identities", {"id": identity["id"]}).json
    visitor.authorization = ("Bearer", parted["token"])
    assert visitor.get("/me").json["identities"] == []
    visitor.authorization = None
    asked = enter(visitor, signed(claims(fake_world, jti="b")), 403, nickname="Ann")
    assert asked["code"] == "provider_email"


def test_a_fresh_token_confirms_what_a_reader_wants_who_has_nothing_else(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    visitor.authorization = (
        "Bearer",
        enter(visitor, signed(claims(fake_world)), nickname="Ann")["token"],
    )
    form = {"site_token": signed(claims(fake_world, jti="b")), "confirms": True}
    form["secret_hash"] = hashlib.sha256(SECRET.encode()).hexdigest()
    voucher = visitor.post_json("/auth/site", form).json["voucher"]
    proof = {"voucher": voucher, "voucher_secret": SECRET}
    assert Visitor(app).post_json("/auth/login", proof, status=401)
    visitor.delete_json("/me", {**proof, "comments": "keep"})
    assert sql(app, "SELECT * FROM account") == []


def test_nobody_parts_the_identity_of_another(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    token = enter(visitor, signed(claims(fake_world)), nickname="Ann")["token"]
    visitor.authorization = ("Bearer", token)
    [identity] = visitor.get("/me").json["identities"]
    inside.add_account(app, "eve@example.com", "Eve", CANARY)
    eve = Visitor(app)
    eve.authorization = ("Bearer", inside.token_of(app, "eve@example.com"))
    eve.delete_json("/me/identities", {"id": identity["id"]}, status=404)
    assert len(visitor.get("/me").json["identities"]) == 1
