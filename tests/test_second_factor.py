"""The second factor of admins, and the list of where they are signed in."""

import base64
import re
from typing import Any
from urllib.parse import quote

import pytest

import commentd
from commentd import App
from support import inside
from support.admin import OWNER, change, do, new_owner, queue
from support.client import CANARY, Visitor
from support.second_factor import app_code
from support.world import FakeWorld

PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15"
    " (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
)


class App6238:
    """An admin's authenticator app, and the recovery codes that came with it."""

    def __init__(self, owner: Visitor, world: FakeWorld) -> None:
        self.world = world
        self.key = do(owner, "app/key")["key"]
        added = do(owner, "app", key=self.key, factor=self.code(), password=CANARY)
        self.recovery = added["recovery_codes"]
        owner.authorization = ("Bearer", added["token"])  # all other sessions have ended

    def code(self, ahead: int = 0) -> str:
        return app_code(self.key, int(self.world.time) // 30 + ahead)


@pytest.fixture
def owner(app: App) -> Visitor:
    return new_owner(app)


@pytest.fixture
def authenticator(owner: Visitor, fake_world: FakeWorld) -> App6238:
    made = App6238(owner, fake_world)
    fake_world.time += 60  # the code that added it is used up
    return made


def sign_in(
    app: App, factor: str = "", status: int = 200, browser: str = "", ip: str = "192.0.2.44"
) -> Any:
    """At /admin, with the right password, from a new place."""
    form = {"email": OWNER, "password": CANARY, "captcha_token": "x", "factor": factor}
    visitor = Visitor(app, ip=ip)
    headers = {"User-Agent": browser}
    return visitor.post_json("/admin/login", form, status=status, headers=headers).json


def test_codes_are_those_of_rfc_6238() -> None:
    # Appendix B, of whose eight digits apps show the last six.
    key = base64.b32encode(b"12345678901234567890").decode()
    for seconds, code in [(59, "287082"), (1111111109, "081804"), (20000000000, "353130")]:
        assert commentd.app_code(key, seconds // 30) == code
        assert app_code(key, seconds // 30) == code


def test_an_admin_without_an_app_signs_in_with_the_password(app: App, owner: Visitor) -> None:
    assert sign_in(app)["token"]
    assert owner.get("/admin/sign-in").json["has_app"] is False


def test_a_sign_in_needs_a_code_of_the_app(app: App, authenticator: App6238) -> None:
    assert sign_in(app, status=403)["code"] == "factor_needed"
    assert sign_in(app, "000000", status=403)["code"] == "factor_wrong"
    assert sign_in(app, authenticator.code())["token"]


def test_clocks_may_differ_by_one_code(
    app: App, authenticator: App6238, fake_world: FakeWorld
) -> None:
    assert sign_in(app, authenticator.code(-1))["token"]
    fake_world.time += 90
    assert sign_in(app, authenticator.code(1))["token"]
    fake_world.time += 90
    for other in (-2, 2):
        assert sign_in(app, authenticator.code(other), status=403)["code"] == "factor_wrong"


def test_a_code_works_once(app: App, authenticator: App6238) -> None:
    code = authenticator.code()
    assert sign_in(app, code)["token"]
    assert sign_in(app, code, status=403)["code"] == "factor_wrong"
    assert sign_in(app, authenticator.code(-1), status=403)["code"] == "factor_wrong"


def test_the_code_that_added_an_app_opens_nothing_more(
    app: App, owner: Visitor, fake_world: FakeWorld
) -> None:
    authenticator = App6238(owner, fake_world)
    assert sign_in(app, authenticator.code(), status=403)["code"] == "factor_wrong"


def test_a_recovery_code_works_once_however_it_is_typed(
    app: App, owner: Visitor, authenticator: App6238
) -> None:
    first, second, *others = authenticator.recovery
    assert len({first, second, *others}) == 10
    assert re.fullmatch("([a-z2-7]{4}-){5}[a-z2-7]{4}", first)
    assert sign_in(app, first.upper().replace("-", " "))["token"]
    assert sign_in(app, first, status=403)["code"] == "factor_wrong"
    assert sign_in(app, second)["token"]
    assert owner.get("/admin/sign-in").json["recovery_codes"] == 8


def test_a_wrong_password_says_nothing_of_an_app(app: App, authenticator: App6238) -> None:
    form = {"email": OWNER, "password": "0" * 64, "captcha_token": "x"}
    for factor in ("", authenticator.code()):
        visitor = Visitor(app, ip="192.0.2.45")
        reply = visitor.post_json("/admin/login", form | {"factor": factor}, status=401)
        assert reply.json["code"] == "wrong_credentials"


def test_wrong_codes_are_limited_and_right_ones_are_not(
    app: App, authenticator: App6238, fake_world: FakeWorld
) -> None:
    for _ in range(8):
        assert sign_in(app, authenticator.code())["token"]
        fake_world.time += 120
    for _ in range(5):
        sign_in(app, "000000", status=403)
    assert sign_in(app, authenticator.code(), status=429)["code"] == "too_many"
    fake_world.time += 600
    assert sign_in(app, authenticator.code())["token"]


@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_wrong_codes_are_limited_whatever_the_settings(
    app: App, authenticator: App6238, fake_world: FakeWorld
) -> None:
    """Three of a million codes are right at a time, and no wrong one ends them."""
    for _ in range(5):
        assert sign_in(app, "000000", status=403)["code"] == "factor_wrong"
    assert sign_in(app, authenticator.code(), status=429)["code"] == "too_many"
    fake_world.time += 600
    assert sign_in(app, authenticator.code())["token"]


def test_the_log_says_that_somebody_knows_the_password(
    app: App, authenticator: App6238, caplog: pytest.LogCaptureFixture
) -> None:
    sign_in(app, status=403)
    assert caplog.messages == []
    sign_in(app, "000000", status=403)
    [line] = caplog.messages
    assert line.endswith("from 192.0.2.0")
    assert "000000" not in line


def test_the_widget_needs_the_code_too(app: App, authenticator: App6238) -> None:
    visitor = Visitor(app, ip="192.0.2.46")
    form = {"email": OWNER, "password": CANARY, "captcha_token": "x"}
    refused = visitor.post_json("/auth/login", form, status=403).json
    assert refused["code"] == "factor_needed"
    form["factor"] = authenticator.code()
    assert visitor.post_json("/auth/login", form).json["role"] == "admin"


def test_an_app_is_added_only_with_its_code_and_the_password(
    app: App, owner: Visitor, fake_world: FakeWorld
) -> None:
    key = do(owner, "app/key")["key"]
    code = app_code(key, int(fake_world.time) // 30)
    refused = do(owner, "app", 403, key=key, factor="000000", password=CANARY)
    assert refused["code"] == "factor_wrong"
    refused = do(owner, "app", 403, key=key, factor=code, password="0" * 64)
    assert refused["code"] == "wrong_password"
    for weak in ("A", "a" * 32, "A" * 31 + "1"):
        refused = do(owner, "app", 403, key=weak, factor=code, password=CANARY)
        assert refused["code"] == "factor_wrong"
    assert owner.get("/admin/sign-in").json["has_app"] is False
    assert sign_in(app)["token"]


def test_each_offered_key_is_new_and_its_link_is_one_for_apps(owner: Visitor) -> None:
    first, second = do(owner, "app/key"), do(owner, "app/key")
    assert first["key"] != second["key"]
    query = f"secret={first['key']}&issuer=commentd"
    assert first["link"] == f"otpauth://totp/commentd%3A{quote(OWNER)}?{query}"
    assert first["picture"].startswith("data:image/svg+xml")
    assert "%23fff" in first["picture"]  # a code with a dark ground is not read by all apps


@pytest.mark.parametrize("settings", [{"server_public_url": "https://comments.example:8443/x"}])
def test_an_app_shows_the_host_of_the_service(owner: Visitor) -> None:
    offered = do(owner, "app/key")
    query = f"secret={offered['key']}&issuer=comments.example"
    assert offered["link"] == f"otpauth://totp/comments.example%3A{quote(OWNER)}?{query}"


def test_an_app_is_removed_only_with_a_code_and_the_password(
    app: App, owner: Visitor, authenticator: App6238
) -> None:
    for form, code in [
        ({"password": CANARY}, "factor_needed"),
        ({"password": CANARY, "factor": "000000"}, "factor_wrong"),
        ({"password": "0" * 64, "factor": authenticator.code()}, "wrong_password"),
    ]:
        assert owner.delete_json("/admin/app", form, status=403).json["code"] == code
    form = {"password": CANARY, "factor": authenticator.code()}
    owner.authorization = ("Bearer", owner.delete_json("/admin/app", form).json["token"])
    assert sign_in(app)["token"]
    assert owner.get("/admin/sign-in").json["recovery_codes"] == 0


def test_an_app_is_replaced_only_after_it_was_removed(
    app: App, owner: Visitor, authenticator: App6238, fake_world: FakeWorld
) -> None:
    """Otherwise who has a session and the password could put an app of their own in its place,
    without a code of the one that is there."""
    key = do(owner, "app/key")["key"]
    code = app_code(key, int(fake_world.time) // 30)
    refused = do(owner, "app", 403, key=key, factor=code, password=CANARY)
    assert refused["code"] == "factor_needed"
    assert sign_in(app, authenticator.code())["token"]
    assert owner.get("/admin/sign-in").json["recovery_codes"] == 10


def test_a_one_time_link_is_the_way_back_without_phone_and_codes(
    app: App, authenticator: App6238
) -> None:
    link = inside.admin_link(app, OWNER)
    Visitor(app).post_json("/admin/claim", {"link": link, "password": CANARY})
    assert sign_in(app)["token"]


def test_sessions_are_listed_with_device_place_and_last_use(
    app: App, owner: Visitor, fake_world: FakeWorld
) -> None:
    sign_in(app, browser=PHONE, ip="223.5.5.5")
    fake_world.time += 3600
    queue(owner)
    sessions = owner.get("/admin/sign-in").json["sessions"]
    phone, mine = sorted(sessions, key=lambda session: session["this"])
    at = "2026-11-18 19:06:40"
    assert phone == {
        "id": 2,
        "device": "Safari, iPhone",
        "ip": "223.5.5.0",
        "country": "CN",
        "created_at": at,
        "seen_at": at,
        "this": False,
    }
    assert (mine["created_at"], mine["seen_at"]) == (at, "2026-11-18 20:06:40")


def test_the_last_use_is_stored(app: App, owner: Visitor, fake_world: FakeWorld) -> None:
    fake_world.time += 3600
    queue(owner)
    app.tick()
    [(seen_at,)] = inside.sql(app, "SELECT seen_at FROM admin_session")
    assert seen_at == fake_world.time


def test_a_session_that_is_ended_opens_nothing(app: App, owner: Visitor) -> None:
    phone = Visitor(app)
    phone.authorization = ("Bearer", sign_in(app, browser=PHONE)["token"])
    queue(phone)
    [other] = [each for each in owner.get("/admin/sign-in").json["sessions"] if not each["this"]]
    assert owner.delete(f"/admin/sessions/{other['id']}").json == {"success": True}
    last = owner.get("/admin/audit").json["audit"][0]
    assert (last["who"], last["action"], last["detail"]) == (
        "Owner",
        "end_session",
        "Safari, iPhone",
    )
    assert queue(phone, 401)["code"] == "token_invalid"
    queue(owner)
    assert len(owner.get("/admin/sign-in").json["sessions"]) == 1


def test_nobody_ends_the_session_of_another_admin(app: App, owner: Visitor) -> None:
    inside.add_account(app, "other@example.com", "Other", CANARY, "admin")
    other = Visitor(app)
    other.authorization = ("Bearer", inside.token_of(app, "other@example.com", "admin"))
    [session] = owner.get("/admin/sign-in").json["sessions"]
    other.delete(f"/admin/sessions/{session['id']}", status=404)
    queue(owner)


def test_signing_out_and_losing_the_role_end_all_sessions(app: App, owner: Visitor) -> None:
    phone = Visitor(app)
    phone.authorization = ("Bearer", sign_in(app)["token"])
    do(owner, "logout")
    queue(phone, 401)
    assert inside.sql(app, "SELECT count(*) FROM admin_session") == [(0,)]


def test_a_password_that_an_emailed_code_confirms_ends_all_sessions(
    app: App, owner: Visitor, fake_world: FakeWorld
) -> None:
    sign_in(app)
    visitor = Visitor(app, ip="192.0.2.47")
    visitor.register(OWNER, password="another one")
    app.deliver()
    visitor.verify(fake_world.code(), OWNER)
    queue(owner, 401)
    assert inside.sql(app, "SELECT count(*) FROM admin_session") == [(0,)]


def test_old_sessions_are_forgotten(app: App, owner: Visitor, fake_world: FakeWorld) -> None:
    fake_world.time += 8 * 86400
    app.tick()
    assert inside.sql(app, "SELECT count(*) FROM admin_session") == [(0,)]


def test_the_log_says_what_happened_to_the_sign_in(
    app: App, owner: Visitor, authenticator: App6238
) -> None:
    form = {"password": CANARY, "factor": authenticator.code()}
    owner.authorization = ("Bearer", owner.delete_json("/admin/app", form).json["token"])
    done = [each["action"] for each in owner.get("/admin/audit").json["audit"]]
    assert done[:2] == ["remove_app", "add_app"]


def test_an_admin_hears_of_an_app_that_is_added_or_removed_and_other_sessions_end(
    app: App, owner: Visitor, fake_world: FakeWorld
) -> None:
    """They may have begun without a code, or with one of a phone that was lost."""
    inside.set_settings(app, mail_host="mail.example", mail_sender="c@example.com")
    laptop, blog = Visitor(app), Visitor(app)
    laptop.authorization = ("Bearer", sign_in(app)["token"])
    blog.authorization = ("Bearer", inside.token_of(app, OWNER))
    authenticator = App6238(owner, fake_world)
    app.deliver()
    assert "you also need a code" in fake_world.text()
    assert f"commentd admin {OWNER}" in fake_world.text()
    queue(owner)
    queue(laptop, 401)
    blog.get("/me", status=401)
    fake_world.time += 60
    laptop.authorization = ("Bearer", sign_in(app, authenticator.code())["token"])
    fake_world.time += 60
    form = {"password": CANARY, "factor": authenticator.code()}
    token = owner.delete_json("/admin/app", form).json["token"]
    app.deliver()
    assert "no longer need a code" in fake_world.text()
    queue(laptop, 401)
    owner.authorization = ("Bearer", token)
    assert len(owner.get("/admin/sign-in").json["sessions"]) == 1


def test_an_admin_hears_that_a_one_time_link_removed_the_app(
    app: App, authenticator: App6238, fake_world: FakeWorld
) -> None:
    inside.set_settings(app, mail_host="mail.example", mail_sender="c@example.com")
    link = inside.admin_link(app, OWNER)
    Visitor(app).post_json("/admin/claim", {"link": link, "password": CANARY})
    app.deliver()
    assert "no longer need a code" in fake_world.text()


def test_a_lost_role_ends_the_sessions(app: App, owner: Visitor) -> None:
    number = inside.add_account(app, "other@example.com", "Other", CANARY, "admin")
    other = Visitor(app)
    other.authorization = ("Bearer", inside.token_of(app, "other@example.com", "admin"))
    change(owner, f"users/{number}", role="user", password=CANARY)
    queue(other, 401)


def test_no_key_and_no_code_is_in_any_response(
    app: App, owner: Visitor, authenticator: App6238
) -> None:
    for path in ("/admin/sign-in", "/admin/users", "/admin/settings", "/admin/audit"):
        text = owner.get(path).text
        assert authenticator.key not in text
        assert not any(code in text for code in authenticator.recovery)
