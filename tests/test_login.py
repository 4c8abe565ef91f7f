"""Signing in by an identity provider: OpenID Connect, GitHub and Mastodon, spoken by a server of
our own that also lies, dawdles and attacks."""

import hashlib
import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import jwt
import pytest

import commentd
from commentd import App, Config, make_app
from support import inside
from support.admin import owner as owner  # a fixture
from support.client import CANARY, PAGE, Visitor, stranger
from support.comments import at_once
from support.database import dump
from support.inside import sql
from support.login import BLOG, SECRET, SERVICE, Reader, Refusing, attribute, section
from support.provider import ANN, CLIENT_ID, CLIENT_SECRET, Provider, encoded
from support.shared import shared_app
from support.world import FakeWorld

COOKIE = "__Secure-commentd-login"
PROVIDER_REFUSED = {"error": "登录没有完成，请再试一次", "code": "provider_refused"}


@pytest.fixture
def provider(fake_world: FakeWorld) -> Iterator[Provider]:
    with closing(Provider()) as server:
        server.now = int(fake_world.time)
        yield server


@pytest.fixture
def other() -> Iterator[Provider]:
    """A second provider in the settings, whom an attacker runs."""
    with closing(Provider()) as server:
        yield server


@pytest.fixture
def mail() -> dict[str, Any]:
    """How the service sends email; a test without that parametrizes this."""
    return {"mail_host": "mail.example", "mail_sender": "c@example.com"}


@pytest.fixture
def settings(provider: Provider, other: Provider, mail: dict[str, Any]) -> dict[str, Any]:
    return {**settings_with(provider, other), **mail}


def settings_with(provider: Provider, other: Provider) -> dict[str, Any]:
    providers = (
        section("own", provider),
        section("github", provider, "github"),
        section("toot", provider, "mastodon"),
        section("other", other),
    )
    return {
        "login_providers": providers,
        "server_public_url": SERVICE,
        "site_origins": (BLOG, "http://localhost:4000"),
        "limits_enabled": False,
    }


@pytest.fixture
def reader(app: App) -> Reader:
    return Reader(app)


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, empty_database: Path
) -> Iterator[tuple[App, Provider, FakeWorld]]:
    world = FakeWorld()
    with closing(Provider()) as provider:
        folder = tmp_path_factory.mktemp("shared")
        settings = settings_with(provider, other=provider)
        with shared_app(folder, empty_database, world, **settings) as app:
            yield app, provider, world


@pytest.fixture
def refusing(shared: tuple[App, Provider, FakeWorld]) -> Refusing:
    """An hour after the case before, when all that was found out about the provider is asked anew,
    and with another browser."""
    app, provider, world = shared
    provider.start_anew()
    world.time += 3600
    provider.now = int(world.time)
    for table in ("voucher", "account", "registration", "outbox"):
        sql(app, f"DELETE FROM {table}")
    return Refusing(app, Reader(app), provider)


def accounts(app: App) -> list[tuple[Any, ...]]:
    return sql(app, "SELECT id, email, nickname, role FROM account ORDER BY id")


def code_from(app: App, fake_world: FakeWorld, visitor: Visitor, email: str) -> dict[str, str]:
    """The fields of a form with a mailed code."""
    request_id = visitor.ask_for_code(email)
    app.deliver()
    return {"email": email, "code": fake_world.code(), "request_id": request_id}


# The way there and back


def test_a_reader_whom_a_provider_names_gets_an_account_and_finds_it_again(
    app: App, reader: Reader, provider: Provider
) -> None:
    voucher = reader.fetch_voucher(provider)
    wanted = reader.log_in(voucher, 403)
    offered = {"nickname": "Ann", "picture": False}
    assert wanted == {"error": "请填写昵称", "code": "provider_name", **offered}
    first = reader.log_in(voucher, nickname="Anna")
    assert (first["nickname"], first["role"]) == ("Anna", "user")
    assert accounts(app) == [(1, "ann@example.com", "Anna", "user")]
    again = Reader(app).sign_in(provider)
    assert again["nickname"] == "Anna"
    assert len(accounts(app)) == 1
    # Another name and email address at the provider change nothing here.
    provider.person |= {"email": "new@example.com", "name": "Other"}
    assert Reader(app).sign_in(provider)["nickname"] == "Anna"
    assert accounts(app) == [(1, "ann@example.com", "Anna", "user")]


def test_a_browser_is_sent_to_the_provider_with_state_nonce_and_a_challenge(
    reader: Reader, provider: Provider
) -> None:
    location = reader.begin()
    assert location.startswith(f"{provider.issuer}/authorize?")
    query = dict(parse_qsl(urlsplit(location).query))
    fresh = {name: query.pop(name) for name in ("state", "nonce", "code_challenge")}
    assert query == {
        "response_type": "code",
        "client_id": CLIENT_ID,
        "scope": "openid email profile",
        "redirect_uri": f"{SERVICE}/auth/callback/own",
        "code_challenge_method": "S256",
    }
    again = dict(parse_qsl(urlsplit(reader.begin()).query))
    assert not {*fresh.values()} & {*again.values()}
    assert len(fresh["state"]) == len(fresh["nonce"]) == 64


@pytest.mark.parametrize(
    ("name", "path", "scope"),
    [
        ("own", "/authorize", "openid email profile"),
        ("github", "/login/oauth/authorize", "user:email"),
        ("toot", "/oauth/authorize", "read:accounts"),
    ],
)
def test_a_provider_is_asked_for_no_more_than_a_sign_in_needs(
    reader: Reader, provider: Provider, name: str, path: str, scope: str
) -> None:
    where, _, query = reader.begin(name).partition("?")
    assert where == f"{provider.issuer}{path}"
    assert dict(parse_qsl(query))["scope"] == scope


@pytest.mark.parametrize(
    "came_from", ["", "https://evil.example/", f"{BLOG}.evil.example/", "http://blog.example/", "x"]
)
def test_a_sign_in_begins_on_a_page_of_the_blog_alone(refusing: Refusing, came_from: str) -> None:
    """A link elsewhere could lead to a page of the blog that forwards the voucher."""
    reader = refusing.reader
    query = urlencode({"page": BLOG, "secret_hash": "0" * 64, "way": "page"})
    response = reader.get(f"/auth/with/own?{query}", 303, came_from)
    assert response.headers["Location"] == f"{BLOG}#commentd-refusal=provider_refused"
    assert reader.cookies.get("__Secure-commentd-own", "") == ""


def test_a_client_goes_to_providers_and_comes_back_thirty_times_a_minute(
    app: App, reader: Reader, fake_world: FakeWorld
) -> None:
    inside.set_settings(app, limits_enabled=True)
    for _ in range(30):
        reader.begin()
    reader.begin(status=429)
    fake_world.time += 60
    for _ in range(30):
        assert reader.come_back(state="x", code="x").response.status_int == 400
    assert reader.come_back(state="x", code="x").response.status_int == 429


def test_the_cookie_of_a_sign_in_is_for_its_way_back_alone(reader: Reader) -> None:
    secret_hash = "0" * 64
    query = urlencode({"page": BLOG, "secret_hash": secret_hash})
    cookie = reader.get(f"/auth/with/own?{query}", 303).headers["Set-Cookie"]
    assert cookie.split("; ")[1:] == [
        "Path=/talk/auth/callback/own",
        "Max-Age=600",
        "HttpOnly",
        "SameSite=Lax",
        "Secure",
    ]
    assert cookie.startswith(f"{COOKIE}=")
    # It ends with the way back.
    back = reader.come_back(state="x", code="x")
    assert back.response.status_int == 400


def test_a_window_hands_the_voucher_to_the_page_that_opened_it_and_to_no_other_origin(
    reader: Reader, provider: Provider
) -> None:
    came = reader.come_back(**provider.approve(reader.begin()))
    page = came.response.text
    assert attribute(page, "data-origin") == BLOG
    assert attribute(page, "data-page") == f"{BLOG}{PAGE}?a=b"
    assert attribute(page, "data-fragment") == f"commentd-voucher={came.voucher}"
    assert attribute(page, "lang") == "de"
    headers = came.response.headers
    assert "Cross-Origin-Opener-Policy" not in headers  # it would cut the window off
    assert headers["Cache-Control"] == "no-store"
    assert "Max-Age=0" in headers["Set-Cookie"]


def test_a_page_without_windows_gets_the_voucher_in_its_fragment(
    reader: Reader, provider: Provider
) -> None:
    came = reader.come_back(**provider.approve(reader.begin(way="page")))
    assert came.response.status_int == 303
    location = came.response.headers["Location"]
    assert location == f"{BLOG}{PAGE}?a=b#commentd-voucher={came.voucher}"
    assert reader.log_in(came.voucher, nickname="Ann")["token"]


def test_a_page_of_no_blog_is_led_nowhere(reader: Reader) -> None:
    """No open redirect, and no message to a page of another origin."""
    foreign = [
        "https://evil.example/",
        "https://blog.example.evil.example/",
        "https://blog.example@evil.example/",
        "https://blog.example\\@evil.example/",
        "https://evil.example\\@blog.example/",
        "https://blog.example:444/",
        "http://blog.example/",
        "https://blog.examples/",
        "//blog.example/",
        "/post/",
        "javascript:alert(1)//https://blog.example/",
        "https://blog.example/#https://evil.example",
        "https://blog.example/\r\nLocation: https://evil.example",
        "https://blog.example /",
        "HTTPS://BLOG.EXAMPLE/",
        "null",
    ]
    for page in foreign:
        for way in ("window", "page"):
            refused = json.loads(reader.begin(page=page, way=way, status=403))
            assert refused["code"] == "origin_refused", page
    for page in ("", f"{BLOG}/".ljust(2049, "x")):
        reader.begin(page=page, status=400)
    assert reader.cookies == {}
    reader.begin(page=f"{BLOG}/".ljust(2048, "x"))


def test_a_sign_in_needs_the_hash_of_a_secret_and_a_provider_of_the_settings(
    reader: Reader,
) -> None:
    for secret_hash in ("", "x", "0" * 63, "0" * 65, "A" * 64, "0" * 63 + "\n"):
        refused = json.loads(reader.begin(secret_hash=secret_hash, status=400))
        assert refused["code"].startswith("secret_hash_")
    reader.begin(way="elsewhere", status=400)
    for name in ("none", "OWN", "own%00", "%2e%2e"):
        reader.begin(name, status=404)
        reader.visitor.get(f"/auth/callback/{name}?code=x&state=x", status=404)


def test_a_reader_who_says_no_at_the_provider_is_told_so(
    app: App, reader: Reader, provider: Provider
) -> None:
    provider.lies["back"] = {"code": ..., "error": "access_denied", "error_description": "<b>"}
    came = reader.come_back(**provider.approve(reader.begin()))
    assert came.refusal == "provider_refused"
    assert "<b>" not in came.response.text
    assert sql(app, "SELECT * FROM voucher") == []


# Whose browser it is


def test_a_way_back_that_another_browser_began_opens_nothing(
    app: App, reader: Reader, provider: Provider
) -> None:
    """Otherwise an attacker could sign a reader in as the attacker."""
    back = provider.approve(reader.begin())
    victim = Reader(app)
    german = {"Accept-Language": "de"}
    path = f"/auth/callback/own?{urlencode(back)}"
    without_cookie = victim.visitor.get(path, headers=german, status=400)
    assert attribute(without_cookie.text, "lang") == "de"
    victim.begin()
    assert victim.come_back(**back).response.status_int == 400  # that of another state
    for state in ("", "x", back["state"].upper(), back["state"] + "0"):
        assert reader.come_back(**{**back, "state": state}).response.status_int == 400
    assert sql(app, "SELECT * FROM voucher") == []
    assert reader.come_back(**back).voucher


def test_a_state_brings_one_voucher_though_the_provider_takes_its_code_again(
    app: App, reader: Reader, provider: Provider
) -> None:
    provider.repeats_codes = True
    back = provider.approve(reader.begin())
    kept = dict(reader.cookies)
    voucher = reader.come_back(**back).voucher
    assert voucher
    assert reader.come_back(**back).response.status_int == 400  # the cookie is gone
    reader.cookies = dict(kept)
    assert reader.come_back(**back).refusal == "provider_refused"
    assert reader.log_in(voucher, nickname="Ann")["token"]
    reader.cookies = dict(kept)
    assert reader.come_back(**back).refusal == "provider_refused"
    assert len(sql(app, "SELECT * FROM voucher")) == 1


def test_a_code_counts_once(reader: Reader, provider: Provider) -> None:
    back = provider.approve(reader.begin())
    assert reader.come_back(**back).voucher
    # The attacker begins anew, with the code that they saw.
    stolen = {**provider.approve(reader.begin()), "code": back["code"]}
    assert reader.come_back(**stolen).refusal == "provider_down"


def test_a_stolen_code_is_worth_nothing_in_another_browser(
    app: App, reader: Reader, provider: Provider
) -> None:
    """PKCE and the nonce bind it to who began."""
    back = provider.approve(reader.begin())
    thief = Reader(app)
    own = provider.approve(thief.begin())
    assert thief.come_back(**{**own, "code": back["code"]}).refusal == "provider_down"
    assert sql(app, "SELECT * FROM voucher") == []


def test_a_stolen_voucher_is_worth_nothing_without_the_secret_of_the_widget(
    app: App, reader: Reader, provider: Provider
) -> None:
    voucher = reader.fetch_voucher(provider)
    thief = Reader(app)
    for secret in ("t" * 43, hashlib.sha256(SECRET.encode()).hexdigest(), SECRET + "s"):
        refused = thief.log_in(voucher, 401, voucher_secret=secret, nickname="Thief")
        assert refused == PROVIDER_REFUSED
    for missing in ("", None, 7, ["x"], "x" * 129):
        thief.log_in(voucher, 400, voucher_secret=missing, nickname="Thief")
    assert accounts(app) == []
    assert reader.log_in(voucher, nickname="Ann")["token"]


def test_a_voucher_opens_an_account_once_and_for_ten_minutes(
    app: App, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    voucher = reader.fetch_voucher(provider)
    reader.log_in(voucher, nickname="Ann")
    assert reader.log_in(voucher, 401) == PROVIDER_REFUSED
    late = reader.fetch_voucher(provider)
    fake_world.time += 600
    assert reader.log_in(late, 401) == PROVIDER_REFUSED
    app.tick()
    assert sql(app, "SELECT * FROM voucher") == []
    late_back = provider.approve(reader.begin())
    fake_world.time += 600
    assert reader.come_back(**late_back).response.status_int == 400


@pytest.mark.parametrize("mail", [{}], ids=[""])
@pytest.mark.parametrize("way", ["signs in", "confirms", "brings a picture"])
def test_vouchers_are_tried_ten_times_in_ten_minutes(
    app: App, reader: Reader, provider: Provider, fake_world: FakeWorld, way: str
) -> None:
    ann = signed_in(app, reader.sign_in(provider, nickname="Ann")["token"])
    inside.set_settings(app, limits_enabled=True)
    guess = {"voucher": "0" * 32, "voucher_secret": SECRET}

    def status() -> int:
        if way == "signs in":
            tried = ann.post_json("/auth/login", guess, status="*")
        elif way == "confirms":
            tried = ann.delete_json("/me", {**guess, "comments": "keep"}, status="*")
        else:
            tried = ann.post_json("/me/picture", guess, status="*")
        return int(tried.status_int)

    statuses = [status() for _ in range(12)]
    assert statuses[:10] == [statuses[0]] * 10
    assert statuses[0] in (401, 403)
    assert statuses[10:] == [429, 429]
    fake_world.time += 600
    assert status() == statuses[0]


def test_a_used_voucher_joins_nothing_to_an_account(
    app: App, ann: Visitor, reader: Reader, provider: Provider
) -> None:
    provider.person |= {"sub": "Bob-2", "email": "bob@example.com"}
    voucher = reader.fetch_voucher(provider)
    reader.log_in(voucher, nickname="Bob")
    password = {"email": "ann@example.com", "password": CANARY, "captcha_token": "x"}
    assert reader.log_in(voucher, 401, **password) == PROVIDER_REFUSED
    assert ann.get("/me").json["identities"] == []
    assert sql(app, "SELECT subject FROM joined_identity") == [("Bob-2",)]


def test_a_voucher_that_is_sent_many_times_at_once_signs_in_once(
    app: App, reader: Reader, provider: Provider
) -> None:
    reader.sign_in(provider, nickname="Ann")
    form = {"voucher": reader.fetch_voucher(provider), "voucher_secret": SECRET}

    def ask() -> Any:
        return stranger(app).post_json("/auth/login", form, expect_errors=True)

    statuses = [response.status_int for response in at_once([ask] * 20)]
    assert sorted(statuses) == [200] + [401] * 19


def test_cookie_token_and_voucher_do_not_pass_as_one_another(
    app: App, reader: Reader, provider: Provider
) -> None:
    """One key signs them."""
    token = reader.sign_in(provider, nickname="Ann")["token"]
    back = provider.approve(reader.begin())
    cookie = reader.cookies[COOKIE]
    for bearer in (cookie, "x"):
        headers = {"Authorization": f"Bearer {bearer}"}
        reader.visitor.get("/me", headers=headers, status=401)
    reader.log_in(token, 400, nickname="Ann")  # too long for a voucher
    claims = jwt.decode(cookie, options={"verify_signature": False})
    forged = [
        token,
        jwt.encode(claims, "another key, of thirty-two bytes", "HS256"),
        f"{encoded({'alg': 'none', 'typ': 'JWT'})}.{cookie.split('.')[1]}.",
        jwt.encode({**claims, "use": "login"}, inside.token_key(app), "HS256"),
        jwt.encode({**claims, "exp": claims["exp"] + 10**6}, inside.token_key(app), "HS256"),
        cookie[:-2],
        "",
    ]
    for text in forged:
        reader.cookies[COOKIE] = text
        assert reader.come_back(**back).response.status_int == 400
    reader.cookies[COOKIE] = cookie
    assert reader.come_back(**back).voucher


def test_tokens_and_names_that_a_browser_brings_beside_the_code_count_nothing(
    app: App, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    """A token that a browser brings is anybody's."""
    reader.sign_in(provider, nickname="Ann")
    begun = dict(parse_qsl(urlsplit(reader.begin()).query))
    id_token = provider.id_token(begun, int(fake_world.time))
    came = reader.come_back(state=begun["state"], iss=provider.issuer, id_token=id_token)
    assert came.refusal == "code_missing"
    back = {**provider.approve(reader.begin()), "id_token": id_token, "sub": "root"}
    assert reader.log_in(reader.come_back(**back).voucher)["nickname"] == "Ann"


# Whom the provider names


def test_a_provider_that_passes_for_another_one_is_refused(
    app: App, reader: Reader, provider: Provider, other: Provider
) -> None:
    """Mix-up: the attacker's provider has codes of an honest one sent to itself, or the way back of
    one brought to the other."""
    back = provider.approve(reader.begin("own"))
    assert reader.come_back("other", **back).response.status_int == 400  # each has its own cookie
    began = reader.begin("other")
    mixed = {**other.approve(began), "code": back["code"], "iss": provider.issuer}
    assert reader.come_back("other", **mixed).refusal == "provider_refused"
    assert [path for path, _ in other.asked if path == "/token"] == []
    for iss in (other.issuer, "", provider.issuer + "/", provider.issuer.upper()):
        honest = {**provider.approve(reader.begin("own")), "iss": iss}
        assert reader.come_back("own", **honest).refusal == "provider_refused", iss
    missing = provider.approve(reader.begin("own"))
    del missing["iss"]
    assert reader.come_back("own", **missing).refusal == "provider_refused"
    assert sql(app, "SELECT * FROM voucher") == []


@pytest.mark.parametrize(
    "lie",
    [
        {"iss": "https://accounts.google.com"},
        {"iss": ...},
        {"aud": "another-client"},
        {"aud": ["another-client"]},
        {"aud": [CLIENT_ID, "another-client"]},
        {"aud": ...},
        {"aud": CLIENT_ID, "azp": "another-client"},
        {"exp": 1},
        {"exp": ...},
        {"exp": True},
        {"exp": "9999999999"},
        {"nonce": "of another sign-in"},
        {"nonce": ...},
        {"nonce": 7},
        {"nonce": "\ud800"},
        {"sub": ...},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
        {"sub": "a\nb"},
        {"sub": "Änn"},
        {"sub": ["Ann-1"]},
    ],
    ids=str,
)
def test_an_id_token_that_is_not_about_this_sign_in_names_nobody(
    refusing: Refusing, lie: dict[str, Any]
) -> None:
    app, reader, provider = refusing
    provider.lies["id_token"] = lie
    came = reader.come_back(**provider.approve(reader.begin()))
    assert came.refusal == "provider_down"
    assert sql(app, "SELECT * FROM voucher") == []


def test_an_id_token_for_several_clients_must_name_ours(reader: Reader, provider: Provider) -> None:
    provider.lies["id_token"] = {"aud": [CLIENT_ID, "another"], "azp": CLIENT_ID}
    assert reader.fetch_voucher(provider)


def test_an_id_token_is_good_for_a_minute_after_its_end_as_clocks_differ(
    reader: Reader, provider: Provider
) -> None:
    provider.lies["id_token"] = {"exp": provider.now - 59}
    assert reader.fetch_voucher(provider)
    provider.lies["id_token"] = {"exp": provider.now - 60}
    assert reader.come_back(**provider.approve(reader.begin())).refusal == "provider_down"


def test_claims_that_an_id_token_lacks_come_from_the_user_info(
    app: App, reader: Reader, provider: Provider
) -> None:
    provider.lies["id_token"] = {"name": ..., "email": ..., "email_verified": ...}
    assert reader.sign_in(provider, nickname="Ann")["token"]
    assert accounts(app)[0][1] == "ann@example.com"
    # It must be about the same person.
    provider.lies["/userinfo"] = {"sub": "Bob-2"}
    assert reader.come_back(**provider.approve(reader.begin())).refusal == "provider_down"


def test_a_subject_in_other_letters_is_another_person(
    app: App, reader: Reader, provider: Provider
) -> None:
    reader.sign_in(provider, nickname="Ann")
    for number, subject in enumerate(("ann-1", "ANN-1", "Ann-1 ", " Ann-1", "Ann-10"), 2):
        provider.person |= {"sub": subject, "email": f"ann{number}@example.com"}
        assert Reader(app).sign_in(provider, nickname="Ann")["token"]
        assert len(accounts(app)) == number


def test_the_same_subject_at_another_provider_is_another_person(
    app: App, reader: Reader, provider: Provider, other: Provider, fake_world: FakeWorld
) -> None:
    reader.sign_in(provider, nickname="Ann")
    other.now = int(fake_world.time)
    other.person |= {"email": "mallory@example.com"}
    reader.sign_in(other, "other", nickname="Mallory")
    assert [email for _, email, *_ in accounts(app)] == ["ann@example.com", "mallory@example.com"]


# Whose email address it is


def test_an_address_that_has_an_account_joins_it_only_by_a_mailed_code_or_the_password(
    app: App, ann: Visitor, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    voucher = reader.fetch_voucher(provider)
    wanted = reader.log_in(voucher, 403, nickname="Mallory")
    email = "ann@example.com"
    told = {"email": email, "picture": False}
    assert wanted == {"error": "请用邮件验证码确认邮箱", "code": "provider_email", **told}
    assert sql(app, "SELECT * FROM joined_identity") == []
    wrong = {"email": email, "password": "wrong", "captcha_token": "x"}
    assert reader.log_in(voucher, 401, **wrong)["code"] == "wrong_credentials"
    fake_world.time += 60
    code = code_from(app, fake_world, reader.visitor, email)
    assert reader.log_in(voucher, 401, **code | {"code": "000000"})["code"] == "code_wrong"
    assert sql(app, "SELECT * FROM joined_identity") == []
    assert reader.log_in(voucher, **code)["nickname"] == "Ann"
    app.deliver()
    assert "new way to sign in" in fake_world.emails[-1].message
    assert fake_world.emails[-1].recipient == email
    assert Reader(app).sign_in(provider)["nickname"] == "Ann"
    assert len(accounts(app)) == 1
    # The same with the password, for another identity.
    provider.person["sub"] = "Ann-2"
    second = reader.fetch_voucher(provider)
    password = {"email": email, "password": CANARY, "captcha_token": "x"}
    assert reader.log_in(second, **password)["nickname"] == "Ann"
    assert len(sql(app, "SELECT * FROM joined_identity")) == 2


@pytest.mark.parametrize(
    "lie",
    [
        {"email_verified": False},
        {"email_verified": ...},
        {"email_verified": "true"},
        {"email_verified": 1},
        {"email": ...},
        {"email": None},
        {"email": 7},
        {"email": "no address"},
        {"email": "a" * 250 + "@example.com"},
    ],
    ids=str,
)
@pytest.mark.parametrize("has_account", [True, False])
def test_an_address_that_the_provider_does_not_vouch_for_opens_nothing_and_tells_nothing(
    shared: tuple[App, Provider, FakeWorld],
    refusing: Refusing,
    lie: dict[str, Any],
    has_account: bool,
) -> None:
    """The response is the same whether the address has an account."""
    app, reader, provider = refusing
    fake_world = shared[-1]
    if has_account:
        reader.visitor.register()
        app.deliver()
        reader.visitor.verify(fake_world.code())
        fake_world.time += 60
    provider.now = int(fake_world.time)
    provider.lies["id_token"] = lie
    provider.lies["/userinfo"] = lie
    voucher = reader.fetch_voucher(provider)
    wanted = reader.log_in(voucher, 403, nickname="Mallory")
    usable = ANN["email"] if "email_verified" in lie else ""
    assert (wanted["code"], wanted["email"]) == ("provider_email", usable)
    # With an address of their own, they get an account of their own.
    code = code_from(app, fake_world, reader.visitor, "mallory@example.com")
    assert reader.log_in(voucher, **code, nickname="Mallory")["token"]
    assert Reader(app).sign_in(provider)["nickname"] == "Mallory"


def test_a_blocked_account_stays_blocked_by_every_provider(
    app: App, owner: Visitor, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    provider.now = int(fake_world.time)
    token = reader.sign_in(provider, nickname="Ann")["token"]
    (number,) = (row[0] for row in accounts(app) if row[1] == "ann@example.com")
    owner.patch_json(f"/admin/users/{number}", {"blocked": True})
    headers = {"Authorization": f"Bearer {token}"}
    reader.visitor.get("/me", headers=headers, status=401)
    assert Reader(app).sign_in(provider) == PROVIDER_REFUSED
    # By another identity with the same address, it asks for a code, which never comes.
    provider.person["sub"] = "Ann-2"
    assert Reader(app).sign_in(provider, nickname="A")["code"] == "provider_email"
    sent = len(fake_world.emails)
    reader.visitor.ask_for_code("ann@example.com")
    app.deliver()
    assert len(fake_world.emails) == sent


def test_a_blocked_domain_gets_no_account_by_a_provider(
    app: App, owner: Visitor, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    provider.now = int(fake_world.time)
    owner.post_json("/admin/blocks", {"kind": "domain", "value": "example.com"})
    assert reader.sign_in(provider, nickname="Ann") == PROVIDER_REFUSED
    assert sql(app, "SELECT * FROM joined_identity") == []


def test_an_admin_is_made_and_signed_in_by_no_provider(
    app: App, owner: Visitor, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    provider.now = int(fake_world.time)
    (email,) = (row[1] for row in accounts(app) if row[3] == "admin")
    provider.person |= {"email": email, "role": "admin", "groups": ["admin"], "is_admin": True}
    voucher = reader.fetch_voucher(provider)
    assert reader.log_in(voucher, 403, nickname="A")["code"] == "provider_email"
    code = code_from(app, fake_world, reader.visitor, email)
    assert reader.log_in(voucher, 403, **code)["code"] == "password_required"
    password = {"email": email, "password": CANARY, "captcha_token": "x"}
    assert reader.log_in(voucher, **password)["role"] == "admin"
    assert sql(app, "SELECT * FROM joined_identity") == []
    # Who becomes an admin later signs in with the password.
    provider.person["email"] = "bob@example.com"
    signed_in = reader.sign_in(provider, nickname="Bob")
    assert signed_in["role"] == "user"
    sql(app, "UPDATE account SET role = 'admin' WHERE email = 'bob@example.com'")
    assert Reader(app).sign_in(provider)["code"] == "password_required"


def test_an_identity_belongs_to_one_account(
    app: App, ann: Visitor, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    provider.person |= {"email": "bob@example.com"}
    reader.sign_in(provider, nickname="Bob")
    password = {"email": "ann@example.com", "password": CANARY, "captcha_token": "x"}
    taken = reader.log_in(reader.fetch_voucher(provider), 409, **password)
    assert taken["code"] == "provider_taken"
    assert Reader(app).sign_in(provider)["nickname"] == "Bob"


def test_a_new_password_parts_all_identities(
    app: App, ann: Visitor, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    """Somebody else may have joined one, who knew the old password."""
    password = {"email": "ann@example.com", "password": CANARY, "captcha_token": "x"}
    reader.log_in(reader.fetch_voucher(provider), **password)
    ann.patch_json("/me", {"new_password": CANARY + "2", "password": CANARY})
    assert Reader(app).sign_in(provider, nickname="A")["code"] == "provider_email"


def test_the_link_of_a_new_admin_parts_all_identities(
    app: App, ann: Visitor, reader: Reader, provider: Provider
) -> None:
    """It sets a new password, too. Who had joined an identity of theirs would get in again when the
    role is taken back."""
    password = {"email": "ann@example.com", "password": CANARY, "captcha_token": "x"}
    reader.log_in(reader.fetch_voucher(provider), **password)
    link = inside.admin_link(app, "ann@example.com")
    Visitor(app).post_json("/admin/claim", {"link": link, "password": CANARY + "2"})
    sql(app, "UPDATE account SET role = 'user' WHERE email = 'ann@example.com'")
    assert Reader(app).sign_in(provider, nickname="A")["code"] == "provider_email"


def test_identities_are_exported_and_deleted_with_the_account(
    app: App, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    token = reader.sign_in(provider, nickname="Ann")["token"]
    headers = {"Authorization": f"Bearer {token}"}
    exported = reader.visitor.get("/me/export", headers=headers).json
    assert exported["identities"] == [
        {"issuer": provider.issuer, "subject": "Ann-1", "joined_at": "2026-11-18 19:06:40"}
    ]
    request_id = reader.visitor.post_json("/me/code", {}, headers=headers).json["request_id"]
    app.deliver()
    # A voucher confirms nothing here.
    other = {"voucher": reader.fetch_voucher(provider), "voucher_secret": SECRET}
    form = {"comments": "keep", **other}
    reader.visitor.delete_json("/me", form, headers=headers, status=403)
    code = {"code": fake_world.code(), "request_id": request_id, "comments": "keep"}
    reader.visitor.delete_json("/me", code, headers=headers)
    assert sql(app, "SELECT * FROM joined_identity") == []
    kept = "\n".join(map(str, dump(inside.database_path(app))))
    assert "Ann-1" not in kept


def signed_in(app: App, token: str) -> Visitor:
    visitor = Visitor(app)
    visitor.authorization = ("Bearer", token)
    return visitor


def test_the_holder_hears_of_a_provider_that_is_parted_and_other_devices_are_signed_out(
    app: App, ann: Visitor, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    password = {"email": "ann@example.com", "password": CANARY, "captcha_token": "x"}
    phone = signed_in(app, reader.log_in(reader.fetch_voucher(provider), **password)["token"])
    app.deliver()
    assert "From now on, an account of yours" in fake_world.text()
    phone.get("/me")  # joining has signed nobody out
    ann.get("/me")
    (identity,) = ann.get("/me").json["identities"]
    token = ann.delete_json("/me/identities", {"id": identity["id"]}).json["token"]
    app.deliver()
    assert "no longer opens your comment account" in fake_world.text()
    for visitor in (phone, ann):
        visitor.get("/me", status=401)
    assert signed_in(app, token).get("/me").json["identities"] == []


def test_an_identity_of_a_provider_that_the_owner_has_ended_is_called_by_its_host(
    app: App, ann: Visitor, reader: Reader, provider: Provider
) -> None:
    password = {"email": "ann@example.com", "password": CANARY, "captcha_token": "x"}
    reader.log_in(reader.fetch_voucher(provider), **password)
    (joined,) = ann.get("/me").json["identities"]
    assert (joined["provider"], joined["name"]) == ("Own", "own")
    others = tuple(each for each in app.site.config.login_providers if each.name == "other")
    inside.set_settings(app, login_providers=others)
    (ended,) = ann.get("/me").json["identities"]
    assert (ended["provider"], ended["name"]) == ("127.0.0.1", "")
    token = ann.delete_json("/me/identities", {"id": ended["id"]}).json["token"]
    assert signed_in(app, token).get("/me").json["identities"] == []


# A reader who has neither a password nor a mailed code shows with the provider who they are

without_mail = pytest.mark.parametrize("mail", [{}], ids=[""])


def fresh_voucher(app: App, provider: Provider, name: str = "own") -> dict[str, str]:
    """The fields of a form, by a browser that has signed in with the provider once more."""
    reader = Reader(app)
    came = reader.come_back(name, **provider.approve(reader.begin(name, confirm="yes")))
    assert came.voucher, came.refusal
    return {"voucher": came.voucher, "voucher_secret": SECRET}


@without_mail
def test_an_account_that_only_a_provider_opens_is_deleted_after_another_sign_in_there(
    app: App, reader: Reader, provider: Provider
) -> None:
    ann = signed_in(app, reader.sign_in(provider, nickname="Ann")["token"])
    proof = fresh_voucher(app, provider)
    ann.delete_json("/me", {**proof, "comments": "keep"})
    assert accounts(app) == []


@without_mail
def test_an_account_that_only_a_provider_opens_gets_a_password_after_another_sign_in_there(
    app: App, reader: Reader, provider: Provider
) -> None:
    ann = signed_in(app, reader.sign_in(provider, nickname="Ann")["token"])
    changed = ann.patch_json("/me", {"new_password": CANARY, **fresh_voucher(app, provider)}).json
    ann = signed_in(app, changed["token"])
    assert ann.get("/me").json["has_password"]
    # From now on the password confirms, and nothing else.
    form = {**fresh_voucher(app, provider), "comments": "keep"}
    assert ann.delete_json("/me", form, status=403).json["code"] == "password_required"
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})


@without_mail
def test_a_voucher_confirms_once_what_its_own_person_wants(
    app: App, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    ann = signed_in(app, reader.sign_in(provider, nickname="Ann")["token"])

    def confirm(proof: dict[str, str]) -> Any:
        form = {"new_password": CANARY, **proof}
        return ann.patch_json("/me", form, expect_errors=True).json.get("code")

    # One that signs in, another browser's, one that is too old, and that of another person.
    assert confirm({"voucher": reader.fetch_voucher(provider), "voucher_secret": SECRET}) == (
        "provider_refused"
    )
    proof = fresh_voucher(app, provider)
    assert confirm(proof | {"voucher_secret": "t" * 43}) == "provider_refused"
    fake_world.time += 601
    provider.now = int(fake_world.time)
    assert confirm(proof) == "provider_refused"
    provider.person = {**ANN, "sub": "Bob-2", "email": "bob@example.com"}
    assert Reader(app).sign_in(provider, nickname="Bob")["token"]
    assert confirm(fresh_voucher(app, provider)) == "provider_refused"
    provider.person = dict(ANN)
    proof = fresh_voucher(app, provider)
    assert confirm(proof) is None
    assert sql(app, "SELECT count(*) FROM voucher WHERE used = 1 AND confirms = 1") == [(1,)]


def test_a_voucher_that_confirms_signs_nobody_in(
    app: App, reader: Reader, provider: Provider
) -> None:
    reader.sign_in(provider, nickname="Ann")
    proof = fresh_voucher(app, provider)
    refused = Visitor(app).post_json("/auth/login", proof, status=401)
    assert refused.json == PROVIDER_REFUSED


def test_where_a_code_can_be_mailed_no_voucher_confirms(
    app: App, reader: Reader, provider: Provider
) -> None:
    """A script of the blog, which can read a token, could have one made with one press."""
    ann = signed_in(app, reader.sign_in(provider, nickname="Ann")["token"])
    form = {**fresh_voucher(app, provider), "comments": "keep"}
    assert ann.delete_json("/me", form, status=403).json["code"] == "password_required"


@pytest.mark.parametrize(
    ("name", "asks"),
    [
        ("own", ("prompt", "login")),
        ("github", ("prompt", "select_account")),
        ("toot", ("force_login", "true")),
    ],
)
def test_a_provider_is_told_to_ask_again_who_somebody_is(
    reader: Reader, name: str, asks: tuple[str, str]
) -> None:
    first = dict(parse_qsl(urlsplit(reader.begin(name)).query))
    again = dict(parse_qsl(urlsplit(reader.begin(name, confirm="yes")).query))
    assert again.keys() - first.keys() == {asks[0]}
    assert again[asks[0]] == asks[1]


# Providers that are slow, endless or wrong


DISCOVERY = "/.well-known/openid-configuration"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (path, parts)
        for path in (DISCOVERY, "/token", "/userinfo")
        for parts in (
            [b""],
            [b"no HTTP\r\n\r\n"],
            [HEAD, b"Content-Length: 3\r\n\r\n[1]"],
            [HEAD, b"Content-Length: 4\r\n\r\nnull"],
            [HEAD, b"Content-Length: 900\r\n\r\n{"],
            [HEAD, b"\r\n", b'{"a":"' + b"x" * 100_000],
            [HEAD, b"\r\n", b"[" * 60_000],
            [HEAD, b"Transfer-Encoding: chunked\r\n\r\n", b"-1\r\n"],
            [b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"],
            [b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\n{}"],
            [b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 2000],
        )
    ],
    ids=lambda value: value if isinstance(value, str) else repr(b"".join(value)[:60]),
)
def test_a_provider_that_sends_nonsense_names_nobody(
    refusing: Refusing, path: str, parts: list[bytes]
) -> None:
    app, reader, provider = refusing
    provider.lies["id_token"] = {"email": ...}
    provider.raw[path] = parts, 0
    location = reader.begin(status=200) if path == DISCOVERY else reader.begin()
    if path == DISCOVERY:
        assert "provider_down" in location
    else:
        assert reader.come_back(**provider.approve(location)).refusal == "provider_down"
    assert sql(app, "SELECT * FROM voucher") == []
    del provider.raw[path]
    assert reader.fetch_voucher(provider)


@pytest.mark.parametrize(
    "token", ["of it\r\nX: y", "ключ", "x" * 4097], ids=["lines", "ru", "long"]
)
def test_an_access_token_that_no_header_can_hold_names_nobody(
    refusing: Refusing, token: str
) -> None:
    _, reader, provider = refusing
    provider.lies["/token"] = {"access_token": token}
    assert reader.come_back(**provider.approve(reader.begin())).refusal == "provider_down"
    assert provider.asked[-1][0] == "/token"


@pytest.mark.parametrize(
    "lie",
    [
        {"issuer": "https://accounts.google.com"},
        {"issuer": ...},
        {"token_endpoint": "http://192.0.2.1/token"},
        {"token_endpoint": "file:///etc/passwd"},
        {"token_endpoint": "ftp://127.0.0.1/"},
        {"token_endpoint": "//127.0.0.1/token"},
        {"token_endpoint": "http://[::1"},
        {"token_endpoint": "http://127.0.0.1:http/"},
        {"token_endpoint": "http://127.0.0.1:99999/"},
        {"token_endpoint": "http://a:b@127.0.0.1/"},
        {"token_endpoint": ...},
        {"token_endpoint": 7},
        {"userinfo_endpoint": "http://localhost.evil.example/"},
        {"userinfo_endpoint": "http://127.0.0.1.evil.example/"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "https://provider.example/\r\nX: y"},
        {"authorization_endpoint": "http://provider.example/"},
    ],
    ids=str,
)
def test_a_provider_that_names_odd_endpoints_is_not_asked_there(
    refusing: Refusing, lie: dict[str, Any]
) -> None:
    _, reader, provider = refusing
    provider.lies[DISCOVERY] = lie
    assert "provider_down" in reader.begin(status=200)
    assert [path for path, _ in provider.asked] == [DISCOVERY]


def test_parameters_that_a_provider_has_in_its_url_stay_there(
    reader: Reader, provider: Provider
) -> None:
    """Azure AD B2C names its policy so."""
    url = f"{provider.issuer}/authorize?p=b2c_1_sign_in"
    provider.lies[DISCOVERY] = {"authorization_endpoint": url}
    location = reader.begin()
    assert location.startswith(f"{url}&")
    query = dict(parse_qsl(urlsplit(location).query))
    assert (query["p"], query["client_id"]) == ("b2c_1_sign_in", CLIENT_ID)
    assert reader.come_back(**provider.approve(location)).voucher


def test_a_provider_that_drips_is_cut_off(
    reader: Reader, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes within the limit of silence, and the last one never, even if all is there.
    The clock that runs holds no stop of the service up."""
    inside.set_most_fetch_seconds(monkeypatch, 0.3)
    whole = json.dumps(provider.discovery()).encode()
    clocks: list[threading.Thread] = []

    def drip(begun: bytes) -> Iterator[bytes]:
        for piece in itertools.chain([HEAD, b"\r\n", begun], itertools.repeat(b" ")):
            clocks.extend(
                each for each in threading.enumerate() if isinstance(each, threading.Timer)
            )
            yield piece

    for begun in (b"", whole):
        provider.raw[DISCOVERY] = drip(begun), 0.05
        assert "provider_down" in reader.begin(status=200)
    assert {clock.daemon for clock in clocks} == {True}


def test_where_a_provider_is_reached_is_asked_once_an_hour(
    reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    def count() -> int:
        return [path for path, _ in provider.asked].count(DISCOVERY)

    reader.begin()
    reader.begin()
    assert count() == 1
    fake_world.time += 3600
    reader.begin()
    assert count() == 2


def test_the_secret_goes_as_the_provider_wants_it(reader: Reader, provider: Provider) -> None:
    reader.fetch_voucher(provider)
    assert "client_secret" not in provider.asked[-1][1]


@pytest.mark.parametrize("client_id", ["a blog/1", "a+b", "a%2Fb", "a:b"])
def test_any_client_id_may_go_into_a_header(
    app: App, reader: Reader, provider: Provider, client_id: str
) -> None:
    provider.client_id = client_id
    inside.set_settings(app, login_providers=(section("own", provider),))
    reader.fetch_voucher(provider)


def test_the_secret_goes_into_the_form_where_the_provider_takes_no_header(
    reader: Reader, provider: Provider
) -> None:
    methods = ["client_secret_post"]
    provider.lies[DISCOVERY] = {"token_endpoint_auth_methods_supported": methods}
    reader.fetch_voucher(provider)
    assert provider.asked[-1][1]["client_secret"] == CLIENT_SECRET


# GitHub and Mastodon


def github(provider: Provider, **user: Any) -> None:
    provider.person = {"id": 583231, "login": "octocat", "name": "The Octocat", **user}
    provider.emails = [
        {"email": "old@example.com", "primary": False, "verified": True},
        {"email": "octo@example.com", "primary": True, "verified": True},
    ]


def test_github_names_its_people_by_number_and_by_the_address_they_use(
    app: App, reader: Reader, provider: Provider
) -> None:
    github(provider)
    assert "nonce=" not in reader.begin("github")
    voucher = reader.fetch_voucher(provider, "github")
    assert reader.log_in(voucher, 403)["nickname"] == "The Octocat"
    reader.log_in(voucher, nickname="Octo")
    assert accounts(app) == [(1, "octo@example.com", "Octo", "user")]
    # Names at GitHub change hands.
    github(provider, login="hubot", name=None)
    assert reader.sign_in(provider, "github")["nickname"] == "Octo"
    github(provider, id=7)
    assert reader.sign_in(provider, "github", nickname="Thief")["code"] == "provider_email"


def test_github_without_a_url_in_the_settings_is_github_com(
    config: Config, provider: Provider, fake_world: FakeWorld
) -> None:
    asked = []

    def fetch(url: str, *more: Any, **how: Any) -> tuple[int, bytes]:
        asked.append(url)
        at_api = url.replace("https://api.github.com", f"{provider.issuer}/api/v3")
        return commentd.fetch(at_api.replace("https://github.com", provider.issuer), *more, **how)

    github(provider)
    usual = replace(section("github", provider, "github"), issuer="")
    settings = settings_with(provider, provider) | {"login_providers": (usual,)}
    world = replace(fake_world.world, fetch=fetch)
    with closing(make_app(replace(config, **settings), world, rounds=1)) as app:
        reader = Reader(app)
        assert reader.begin("github").startswith("https://github.com/login/oauth/authorize?")
        assert reader.sign_in(provider, "github", nickname="Octo")["nickname"] == "Octo"
    assert asked == [
        "https://github.com/login/oauth/access_token",
        "https://api.github.com/user",
        "https://api.github.com/user/emails",
    ]


@pytest.mark.parametrize(
    "emails",
    [
        [],
        [{"email": "octo@example.com", "primary": True, "verified": False}],
        [{"email": "octo@example.com", "primary": False, "verified": True}],
        [{"email": "octo@example.com", "primary": True}],
        [{"email": 7, "primary": True, "verified": True}],
        ["octo@example.com"],
        {"email": "octo@example.com", "primary": True, "verified": True},
    ],
    ids=str,
)
def test_an_address_that_github_does_not_vouch_for_opens_nothing(
    refusing: Refusing, emails: Any
) -> None:
    _, reader, provider = refusing
    github(provider, email="octo@example.com")
    provider.emails = emails
    wanted = reader.sign_in(provider, "github", nickname="Octo")
    assert (wanted["code"], wanted["email"]) == ("provider_email", "")


@pytest.mark.parametrize("number", [None, "583231", True, 1.5, [1]], ids=str)
def test_a_github_that_sends_no_number_names_nobody(refusing: Refusing, number: Any) -> None:
    _, reader, provider = refusing
    github(provider, id=number)
    came = reader.come_back("github", **provider.approve(reader.begin("github")))
    assert came.refusal == "provider_down"


@pytest.mark.parametrize("token", [..., None, "", 7], ids=str)
def test_without_an_access_token_github_is_not_asked_who_somebody_is(
    refusing: Refusing, token: Any
) -> None:
    _, reader, provider = refusing
    github(provider)
    provider.lies["/token"] = {"access_token": token}
    came = reader.come_back("github", **provider.approve(reader.begin("github")))
    assert came.refusal == "provider_down"
    assert provider.asked[-1][0] == "/login/oauth/access_token"


@pytest.mark.parametrize(
    ("name", "logged"),
    [("own", "status 400 invalid_grant"), ("github", "status 200 bad_verification_code")],
)
def test_a_provider_that_refuses_a_code_names_nobody_and_the_log_says_why(
    reader: Reader, provider: Provider, caplog: pytest.LogCaptureFixture, name: str, logged: str
) -> None:
    """GitHub does so with the status 200."""
    back = {**provider.approve(reader.begin(name)), "code": "wrong"}
    assert reader.come_back(name, **back).refusal == "provider_down"
    assert caplog.messages == [f"[login.{name}] it refuses the code: {logged}"]


def test_a_status_of_an_error_counts_more_than_the_token_beside_it(
    reader: Reader, provider: Provider
) -> None:
    token = b'{"access_token": "of-x"}'
    head = b"HTTP/1.1 400 No\r\nContent-Length: %d\r\n\r\n" % len(token)
    provider.person = {"id": "109", "username": "ann"}
    provider.raw["/oauth/token"] = [head, token], 0
    assert reader.come_back("toot", **provider.approve(reader.begin("toot"))).refusal == (
        "provider_down"
    )


def test_github_may_say_who_it_is(reader: Reader, provider: Provider) -> None:
    github(provider)
    back = {**provider.approve(reader.begin("github")), "iss": "https://github.com/login/oauth"}
    assert reader.come_back("github", **back).voucher


def test_mastodon_names_no_address_so_the_reader_confirms_one(
    app: App, reader: Reader, provider: Provider, fake_world: FakeWorld
) -> None:
    provider.person = {"id": "109", "username": "ann", "display_name": "", "email": "x@y.example"}
    voucher = reader.fetch_voucher(provider, "toot")
    assert reader.log_in(voucher, 403)["email"] == ""
    code = code_from(app, fake_world, reader.visitor, "ann@example.com")
    assert reader.log_in(voucher, **code, nickname="Ann")["token"]
    assert reader.sign_in(provider, "toot")["nickname"] == "Ann"


# Off by default


@pytest.mark.parametrize("settings", [{"site_origins": (BLOG,)}])
def test_without_a_provider_nothing_is_offered_and_no_table_is_read(
    app: App, visitor: Visitor
) -> None:
    assert "providers" not in visitor.listing(view="threads")["settings"]
    visitor.get("/auth/with/github?page=x&secret_hash=x", status=404)
    visitor.get("/auth/callback/github?code=x&state=x", status=404)
    refused = visitor.post_json(
        "/auth/login", {"voucher": "x", "voucher_secret": "y"}, status=401
    ).json
    assert refused == PROVIDER_REFUSED


def test_the_widget_is_told_which_buttons_to_show(reader: Reader) -> None:
    shown = reader.visitor.listing(view="threads")["settings"]["providers"]
    assert shown == [
        {"name": "own", "label": "Own"},
        {"name": "github", "label": "GitHub"},
        {"name": "toot", "label": "Toot"},
        {"name": "other", "label": "Other"},
    ]
