"""The role of a moderator: the queue at /admin, and nothing else."""

import re
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from commentd import App
from support import inside
from support.admin import (
    OWNER,
    audit,
    block,
    change,
    do,
    ids,
    moderate,
    pin,
    queue,
    rows,
    with_settings,
)
from support.admin import owner as owner  # a fixture
from support.client import CANARY, Visitor
from support.commands import run_here
from support.inside import token_of
from support.world import FakeWorld

MO = "mo@example.com"
NOT_ADMIN = {"error": "只有管理员可以这样做", "code": "not_admin"}


@pytest.fixture
def mo(app: App) -> Visitor:
    """A moderator on the admin page."""
    inside.add_account(app, MO, "Mo", CANARY, "moderator")
    mo = Visitor(app, ip="198.51.100.9")
    mo.authorization = ("Bearer", token_of(app, MO, "admin"))
    return mo


def sign_in(app: App, **more: Any) -> Any:
    form = {"email": MO, "password": CANARY, "captcha_token": "x", **more}
    return Visitor(app).post_json("/admin/login", form, status="*")


@with_settings(moderation_hold="all")
def test_a_moderator_works_through_the_queue(
    mo: Visitor, owner: Visitor, visitor: Visitor, db: sqlite3.Connection
) -> None:
    for number in range(3):
        visitor.say(f"No. {number}")
    assert ids(queue(mo, status="waiting")) == [3, 2, 1]
    moderate(mo, [1], "visible")
    moderate(mo, [2], "spam")
    moderate(mo, [3], "deleted")
    pin(mo, [1])
    do(mo, "comments", ids=[1], closed=True)
    assert rows(db, "SELECT id, status, pinned FROM comment") == [
        (1, "visible", 1),
        (2, "spam", 0),
        (3, "deleted", 0),
    ]
    assert [line[:2] for line in audit(owner)] == [
        ("Mo", "visible"),
        ("Mo", "spam"),
        ("Mo", "deleted"),
        ("Mo", "pin"),
        ("Mo", "close"),
    ]


@with_settings(moderation_hold="all", privacy_show_location=False)
def test_a_moderator_sees_no_email_address_and_no_more_of_an_ip_address_than_readers(
    mo: Visitor, visitor: Visitor, ann: Visitor, owner: Visitor
) -> None:
    visitor.authorization = None
    visitor.say("I am Ann", email="ann@example.com")
    [shown] = queue(mo)["comments"]
    assert (shown["email"], shown["holder"], shown["ip"]) == ("", None, "203.0.113.0")
    assert (shown["country"], shown["location"]) == ("", "")
    whole = str(queue(mo))
    assert "@example.com" not in whole
    assert "203.0.113.7" not in whole
    assert "203.0.113.7" in str(queue(owner))


@with_settings()
def test_a_moderator_cannot_find_email_addresses_by_a_search(mo: Visitor, visitor: Visitor) -> None:
    visitor.say("one", email="ann@example.com")
    for query in ({"q": "ann@"}, {"author": "ann@"}, {"q": ""}):
        assert queue(mo, 403, **query) == NOT_ADMIN


@with_settings(moderation_words=["email: ann@ex", "casino"])
def test_a_moderator_is_not_told_by_the_reason_of_a_hold_what_an_email_or_ip_address_is(
    mo: Visitor, owner: Visitor, app: App
) -> None:
    block(owner, "email", "bob@example.com")
    block(owner, "word", "Email：carl@")
    block(owner, "domain", "mail.example")
    block(owner, "address", "198.51.100.77")
    for number, email in enumerate(["ann", "bob", "carl", "dora"], 1):
        host = "mail.example" if email == "dora" else "example.com"
        Visitor(app, ip=f"198.51.100.{number}").say(f"no. {number}", email=f"{email}@{host}")
    Visitor(app, ip="198.51.100.77").say("no. 5")
    Visitor(app, ip="198.51.100.5").say("a casino")
    shown = [each["held"] for each in reversed(queue(mo)["comments"])]
    assert shown == [
        "word: email: …",
        "block: …",
        "block: …",
        "block: …",
        "block: …",
        "word: casino",
    ]
    reasons = [each["held"] for each in reversed(queue(owner)["comments"])]
    assert reasons[0] == "word: email: ann@ex"
    assert reasons[1] == "block: …@example.com"


FORBIDDEN: list[dict[str, Any]] = [{"trusted": True}, {"banned": True}, {"banned": False}]


@with_settings()
@pytest.mark.parametrize("form", FORBIDDEN)
def test_a_moderator_neither_trusts_nor_blocks(
    mo: Visitor, visitor: Visitor, form: dict[str, Any], db: sqlite3.Connection
) -> None:
    visitor.say("one", email="ann@example.com")
    assert do(mo, "comments", 400, ids=[1], **form)["code"] == "status_missing"
    assert rows(db, "SELECT status FROM comment") == [("visible",)]


def test_a_moderator_has_no_right_on_the_blog_and_no_badge(app: App, mo: Visitor) -> None:
    widget = Visitor(app)
    widget.authorization = ("Bearer", token_of(app, MO))
    widget.say("hello", nickname="")
    assert widget.listing()["comments"][0]["role"] == "user"
    assert widget.listing()["comments"][0]["ip"] == "203.0.113.0"
    refused = widget.post_json("/comments/1/moderate", {"status": "spam"}, status=403)
    assert refused.json == NOT_ADMIN


def test_a_moderator_signs_in_at_the_admin_page_by_password(app: App, mo: Visitor) -> None:
    admitted = sign_in(app).json
    assert (admitted["nickname"], admitted["role"]) == ("Mo", "moderator")
    assert sign_in(app, password="wrong").json["code"] == "wrong_credentials"


def test_an_admin_makes_a_moderator_and_takes_the_role_back(
    app: App, ann: Visitor, owner: Visitor
) -> None:
    [user] = [each for each in owner.get("/admin/users").json["users"] if each["nickname"] == "Ann"]
    path = f"users/{user['id']}"
    change(owner, path, 403, role="moderator", password="wrong")
    change(owner, path, role="moderator", password=CANARY)
    at_admin = Visitor(app)
    at_admin.authorization = ("Bearer", token_of(app, "ann@example.com", "admin"))
    queue(at_admin)
    at_admin.get("/admin/users", status=403)
    change(owner, path, role="user", password=CANARY)
    assert queue(at_admin, 401)["code"] == "token_invalid"
    assert [line[1:] for line in audit(owner)] == [
        ("role", str(user["id"]), "moderator"),
        ("role", str(user["id"]), "user"),
    ]


def test_a_command_prints_a_link_that_makes_a_moderator(
    app: App,
    owner: Visitor,
    visitor: Visitor,
    db: sqlite3.Connection,
    fake_world: FakeWorld,
    tmp_path: Path,
) -> None:
    there: dict[str, Any] = {"COMMENTD_DATABASE_PATH": inside.database_path(app)}
    code, printed, errors = run_here(tmp_path, "moderator", MO, **there)
    assert (code, errors) == (0, "")
    fake_world.time = time.time()  # the command has the clock of the machine
    [link] = re.findall(r"/admin#link=([0-9a-f]{32})", printed)
    found = visitor.post_json("/admin/link", {"link": link}).json
    assert found == {"email": MO, "role": "moderator", "known": False, "admin": False}
    form = {"link": link, "nickname": "0wner", "password": CANARY}
    refused = visitor.post_json("/admin/claim", form, status=409)  # it looks like the admin's
    assert refused.json["code"] == "nickname_taken"
    form = {"link": link, "nickname": "Mo", "password": CANARY}
    admitted = visitor.post_json("/admin/claim", form).json
    assert admitted["role"] == "moderator"
    assert rows(db, "SELECT who, action FROM audit") == [("Mo", "join")]
    visitor.post_json("/admin/claim", form, status=403)
    code, _, errors = run_here(tmp_path, "moderator", OWNER, **there)
    assert (code, "is an admin" in errors) == (1, True)
