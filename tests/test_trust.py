"""Trusted authors, and authors who are blocked with all that they wrote."""

import sqlite3
from typing import Any

import pytest

from commentd import App
from support.admin import (
    BLOG,
    audit,
    block,
    blocks,
    change,
    do,
    held,
    moderate,
    queue,
    with_settings,
)
from support.admin import owner as owner  # a fixture
from support.client import CANARY, Visitor
from support.inside import token_of

HELD_ALL = {"limits_enabled": False, "moderation_hold": "all"}
hold_all = with_settings(moderation_hold="all")


def trust(owner: Visitor, number: int, trusted: bool = True, code: int = 200) -> Any:
    return do(owner, "comments", code, ids=[number], trusted=trusted)


def ban(owner: Visitor, number: int, code: int = 200) -> Any:
    return do(owner, "comments", code, ids=[number], banned=True)


def unban(owner: Visitor, number: int) -> Any:
    return do(owner, "comments", ids=[number], banned=False)


def author(owner: Visitor, number: int) -> Any:
    return owner.get(f"/admin/comments/{number}/author").json


def statuses(db: sqlite3.Connection) -> dict[int, str]:
    return dict(db.execute("SELECT id, status FROM comment ORDER BY id"))


def listed(owner: Visitor, number: int) -> Any:
    [found] = queue(owner, comment=number)["comments"]
    return found


# Trust


@hold_all
def test_comments_of_a_trusted_account_no_longer_wait(
    ann: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    ann.say("one", nickname="")
    ann.say("two", nickname="")
    assert trust(owner, 1)["comments"] == [{"id": 1, "was": False}]
    assert statuses(db) == {1: "visible", 2: "waiting"}
    assert [listed(owner, number)["trusted"] for number in (1, 2)] == [True, True]
    ann.say("three", nickname="", website="https://a.example")
    assert held(owner) == ("visible", "")
    assert trust(owner, 1, False)["comments"] == [{"id": 1, "was": True}]
    ann.say("four", nickname="")
    assert held(owner) == ("waiting", "all")
    assert statuses(db)[1] == "visible"
    assert [line[:3] for line in audit(owner)] == [
        ("Owner", "trust", "1"),
        ("Owner", "distrust", "1"),
    ]


@hold_all
def test_a_further_comment_of_a_trusted_account_is_approved_without_trusting_it_again(
    ann: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    ann.say("one", nickname="")
    ann.say("two", nickname="")
    trust(owner, 1)
    assert trust(owner, 2)["comments"] == [{"id": 2, "was": True}]
    assert statuses(db) == {1: "visible", 2: "visible"}
    trust(owner, 2)
    assert [line[:3] for line in audit(owner)] == [
        ("Owner", "trust", "1"),
        ("Owner", "visible", "2"),
    ]


@hold_all
@pytest.mark.parametrize(
    ("before", "trusted", "after"),
    [
        ("waiting", True, "visible"),
        ("spam", True, "spam"),
        ("deleted", True, "deleted"),
        ("waiting", False, "waiting"),
        ("spam", False, "spam"),
    ],
)
def test_trust_approves_what_waits_and_nothing_else(
    ann: Visitor, owner: Visitor, db: sqlite3.Connection, before: str, trusted: bool, after: str
) -> None:
    ann.say("one", nickname="")
    if not trusted:
        trust(owner, 1)
    moderate(owner, [1], before)
    trust(owner, 1, trusted)
    assert statuses(db) == {1: after}


@hold_all
def test_a_trusted_author_is_still_blocked_by_what_is_blocked(ann: Visitor, owner: Visitor) -> None:
    ann.say("one", nickname="")
    trust(owner, 1)
    block(owner, "word", "casino")
    ann.say("casino", nickname="")
    assert held(owner) == ("spam", "block: casino")


@hold_all
def test_a_guest_without_an_email_address_cannot_be_trusted(
    visitor: Visitor, owner: Visitor
) -> None:
    visitor.say("one")
    refused = trust(owner, 1, code=409)
    assert refused["code"] == "author_unknown"
    assert listed(owner, 1)["trusted"] is False
    assert listed(owner, 1)["status"] == "waiting"


@hold_all
def test_a_trusted_email_address_that_a_guest_typed_waits_for_its_holder(
    visitor: Visitor, owner: Visitor
) -> None:
    visitor.say("one", email="bea@example.com")
    trust(owner, 1)
    Visitor(visitor.app, ip="198.51.100.24").say("I am Bea", email="bea@example.com")
    assert held(owner) == ("waiting", "email")
    visitor.say("three", email="else@example.com")
    assert held(owner) == ("waiting", "all")


def test_a_trusted_email_address_does_not_hold_what_would_be_shown_anyway(
    visitor: Visitor, owner: Visitor
) -> None:
    visitor.say("one", email="bea@example.com")
    trust(owner, 1)
    visitor.say("two", email="bea@example.com")
    assert held(owner) == ("visible", "")


@hold_all
def test_trust_ends_with_the_account(ann: Visitor, owner: Visitor, db: sqlite3.Connection) -> None:
    ann.say("one", nickname="")
    trust(owner, 1)
    assert db.execute("SELECT count(*) FROM trusted").fetchone() == (1,)
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})
    assert db.execute("SELECT count(*) FROM trusted").fetchone() == (0,)


@hold_all
def test_a_text_that_was_edited_since_it_was_read_is_not_approved_by_trust(
    ann: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    ann.say("one", nickname="")
    read = listed(owner, 1)["version"]
    ann.patch_json("/comments/1", {"content": "other"})
    answer = do(owner, "comments", ids=[1], versions=[read], trusted=True)
    assert answer["changed"] == [1]
    assert statuses(db) == {1: "waiting"}
    assert listed(owner, 1)["trusted"] is False


@hold_all
def test_users_show_whom_the_owner_trusts(ann: Visitor, owner: Visitor) -> None:
    ann.say("one", nickname="")
    trust(owner, 1)
    users = owner.get("/admin/users").json["users"]
    assert {user["nickname"]: user["trusted"] for user in users} == {"Ann": True, "Owner": False}


@pytest.mark.parametrize("settings", [{**HELD_ALL, "site_origins": (BLOG,)}])
def test_trust_and_blocks_need_a_sign_in_at_the_admin_page(ann: Visitor, owner: Visitor) -> None:
    ann.say("one", nickname="")
    for form in ({"trusted": True}, {"banned": True}):
        answer = owner.widget.post_json("/comments/1/moderate", form, status=400)
        assert answer.json["code"] == "status_missing"


# Blocked with all comments


@with_settings()
def test_an_author_is_blocked_with_all_comments_and_all_is_put_back(
    ann: Visitor, owner: Visitor, db: sqlite3.Connection, app: App
) -> None:
    for number in range(3):
        ann.say(f"ann {number}", nickname="")
    Visitor(app, ip="198.51.100.24").say("somebody else")
    moderate(owner, [2], "waiting")
    before = statuses(db)
    known = ["ann@example.com", "203.0.113.7"]
    assert author(owner, 1) == {"comments": 3, "blocks": known, "staff": False}
    assert statuses(db) == before
    assert blocks(owner) == []
    ban(owner, 1)
    assert statuses(db) == {1: "spam", 2: "spam", 3: "spam", 4: "visible"}
    assert {(each["kind"], each["value"]) for each in blocks(owner)} == {
        ("email", "ann@example.com"),
        ("address", "203.0.113.7"),
    }
    assert [each["expires_at"] is None for each in blocks(owner) if each["kind"] == "email"] == [
        True
    ]
    ann.get("/me", status=401)
    assert audit(owner)[-1] == ("Owner", "ban", "1", "3")
    unban(owner, 1)
    assert statuses(db) == before
    assert blocks(owner) == []
    assert audit(owner)[-1] == ("Owner", "unban", "1", "3")
    ann.authorization = ("Bearer", token_of(app, "ann@example.com"))
    ann.say("back", nickname="")
    assert held(owner) == ("visible", "")


@with_settings()
def test_a_guest_is_blocked_with_what_they_wrote_under_one_name_or_email_address(
    visitor: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    visitor.say("one", nickname="Bo", email="bo@example.com")
    visitor.say("two", nickname="Bo")
    elsewhere = Visitor(visitor.app, ip="198.51.100.24")
    elsewhere.say("three", nickname="Bobby", email="bo@example.com")
    elsewhere.say("of another Bo", nickname="Bo")
    assert author(owner, 1)["comments"] == 3
    ban(owner, 1)
    assert statuses(db) == {1: "spam", 2: "spam", 3: "spam", 4: "visible"}
    visitor.say("again", nickname="Bo")
    assert held(owner) == ("spam", "block: 203.0.113.0")


@with_settings()
def test_an_account_is_not_blocked_for_what_a_guest_wrote_with_its_email_address(
    ann: Visitor, owner: Visitor, app: App
) -> None:
    Visitor(app, ip="198.51.100.24").say("I am Ann", email="ann@example.com")
    assert author(owner, 1)["blocks"] == ["198.51.100.24"]
    ban(owner, 1)
    ann.say("I am", nickname="")
    assert held(owner) == ("visible", "")


@with_settings()
def test_a_decision_after_a_block_stays_when_the_block_is_undone(
    visitor: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    visitor.say("one")
    visitor.say("two")
    block(owner, "address", "203.0.113.7")
    ban(owner, 2)
    moderate(owner, [1], "deleted")
    assert unban(owner, 2)["comments"] == [{"id": 2, "was": True}]
    assert statuses(db) == {1: "deleted", 2: "visible"}
    assert [each["value"] for each in blocks(owner)] == ["203.0.113.7"]
    assert unban(owner, 2)["comments"] == [{"id": 2, "was": False}]  # nothing more to undo
    assert len([line for line in audit(owner) if line[1] == "unban"]) == 1


@with_settings()
def test_comments_without_an_ip_address_are_not_blocked_for_one_of_the_same_name(
    owner: Visitor, app: App, db: sqlite3.Connection
) -> None:
    for number in range(3):
        Visitor(app, ip=f"198.51.100.{number}").say(f"no. {number}", nickname="匿名")
    db.execute("UPDATE comment SET ip = ''")  # as of an import
    assert author(owner, 2) == {"comments": 1, "blocks": [], "staff": False}
    ban(owner, 2)
    assert statuses(db) == {1: "visible", 2: "spam", 3: "visible"}


@with_settings()
def test_an_author_with_nothing_left_to_block_is_not_blocked_again(
    visitor: Visitor, owner: Visitor
) -> None:
    visitor.say("one")
    moderate(owner, [1], "spam")
    block(owner, "address", "203.0.113.7")
    before = audit(owner)
    assert ban(owner, 1)["comments"] == [{"id": 1, "was": False}]
    assert audit(owner) == before
    assert len(blocks(owner)) == 1


@with_settings()
def test_a_text_that_was_edited_after_a_block_waits_when_the_block_is_undone(
    visitor: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    read = visitor.say("nice")
    visitor.say("fine")
    ban(owner, 1)
    visitor.edit(read, "buy pills")
    unban(owner, 1)
    assert statuses(db) == {1: "waiting", 2: "visible"}


@with_settings()
def test_spam_that_was_marked_by_hand_stays_spam_when_a_block_is_undone(
    visitor: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    visitor.say("one")
    visitor.say("two")
    ban(owner, 1)
    moderate(owner, [2], "visible")
    moderate(owner, [2], "spam")
    unban(owner, 1)
    assert statuses(db) == {1: "visible", 2: "spam"}


@with_settings()
def test_blocks_that_were_made_again_by_hand_stay_when_a_block_of_an_author_is_undone(
    ann: Visitor, owner: Visitor
) -> None:
    ann.say("hello", nickname="")
    ban(owner, 1)
    block(owner, "address", "203.0.113.7", note="for good")
    [user] = [each for each in owner.get("/admin/users").json["users"] if each["nickname"] == "Ann"]
    change(owner, f"users/{user['id']}", blocked=False)
    change(owner, f"users/{user['id']}", blocked=True)
    unban(owner, 1)
    assert [each["note"] for each in blocks(owner)] == ["for good"]
    ann.get("/me", status=401)
    [user] = [each for each in owner.get("/admin/users").json["users"] if each["nickname"] == "Ann"]
    assert user["blocked"] is True


@with_settings()
def test_an_ip_address_is_blocked_for_thirty_days_and_not_at_all_once_it_is_masked(
    visitor: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    visitor.say("one")
    db.execute("UPDATE comment SET masked = 1, ip = '203.0.113.0'")
    assert author(owner, 1)["blocks"] == []
    ban(owner, 1)
    assert blocks(owner) == []
    visitor.say("two", nickname="Else")
    ban(owner, 2)
    lasts = db.execute("SELECT (expires_at - created_at) / 86400 FROM block").fetchall()
    assert lasts == [(30,)]


@with_settings()
def test_an_admin_cannot_be_blocked_with_all_comments(
    owner: Visitor, db: sqlite3.Connection
) -> None:
    owner.widget.say("mine", nickname="")
    assert author(owner, 1)["staff"] is True
    assert ban(owner, 1, 409)["code"] == "is_admin"
    assert statuses(db) == {1: "visible"}


@with_settings()
def test_the_spam_filter_learns_from_a_block_and_forgets_with_the_undo(
    visitor: Visitor, owner: Visitor
) -> None:
    visitor.say("cheap pills")
    ban(owner, 1)
    assert queue(owner)["filter"]["spam"] == 1
    unban(owner, 1)
    assert queue(owner)["filter"]["spam"] == 0


@with_settings()
@pytest.mark.parametrize("proxy", ["127.0.0.1", "::1", "172.17.0.1"])
def test_the_ip_address_of_a_proxy_that_is_not_named_is_not_blocked(
    owner: Visitor, app: App, proxy: str
) -> None:
    """All readers have it."""
    visitor = Visitor(app, ip=proxy, HTTP_X_FORWARDED_FOR="203.0.113.7")
    visitor.say("one", email="bo@example.com")
    assert author(owner, 1)["blocks"] == ["bo@example.com"]
    ban(owner, 1)
    assert [each["value"] for each in blocks(owner)] == ["bo@example.com"]
    visitor.say("of a reader", nickname="Al")
    assert held(owner) == ("visible", "")


@with_settings()
def test_a_block_is_undone_although_its_author_has_deleted_the_comment(
    visitor: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    made = visitor.say("one", email="bo@example.com")
    visitor.say("two", email="bo@example.com")
    ban(owner, 1)
    visitor.delete_json("/comments/1", {"edit_token": made["edit_token"]})
    unban(owner, 1)
    assert statuses(db)[2] == "visible"
    assert blocks(owner) == []
    assert audit(owner)[-1] == ("Owner", "unban", "1", "1")
