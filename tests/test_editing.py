"""Second thoughts: the preview of a comment, its edits, its deletion; pages that are closed."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import webtest
from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st

from commentd import App
from support import inside
from support.client import COMMENT, PAGE, Status, Visitor
from support.comments import NO_LIMITS, SHOWN, solved
from support.database import dump
from support.inside import database_path, sql
from support.world import START, FakeWorld

GONE = {"error": "评论不存在", "code": "comment_gone"}
LATE = {
    "edit": {"error": "已超过可修改的时间", "code": "edit_late"},
    "delete": {"error": "已超过可删除的时间", "code": "edit_late"},
}
CLOSED = {"error": "这里的评论已关闭", "code": "page_closed"}
TOO_MANY = {"error": "操作太频繁，请稍后再试", "code": "too_many"}
ALTCHA = pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}])


def edit_by_token(
    visitor: Visitor, token: str = "", content: str = "ho", status: Status = 200, of: object = 1
) -> Any:
    body = {"content": content, "edit_token": token}
    return visitor.patch_json(f"/comments/{of}", body, status=status).json


def delete(visitor: Visitor, token: str = "", status: int = 200, of: object = 1) -> Any:
    return visitor.delete_json(f"/comments/{of}", {"edit_token": token}, status=status).json


DO: dict[str, Callable[..., Any]] = {"edit": edit_by_token, "delete": delete}


def both(visitor: Visitor, token: str = "", status: int = 404, of: object = 1) -> None:
    """Neither an edit nor a deletion finds the comment."""
    for verb in DO.values():
        assert verb(visitor, token, status=status, of=of) == GONE, (token, of)


def preview(visitor: Visitor, content: str = "hi", status: Status = 200) -> Any:
    return visitor.post_json("/comments/preview", {"content": content}, status=status).json


def written(**changes: Any) -> dict[str, Any]:
    return {"success": True, "comment": {**SHOWN, "status": "visible", **changes}}


def stone(**changes: Any) -> dict[str, Any]:
    """What is left of a comment that was deleted."""
    texts = ("nickname", "content", "ip", "location", "html", "role", "website", "country")
    gone = {"edited": None, "pinned": False, "likes": 0, "user_id": None, "deleted": True}
    gone |= {"waiting": False}
    return {**SHOWN, **dict.fromkeys(texts, ""), **gone, **changes}


def row(app: App, number: int) -> dict[str, Any]:
    """All that is stored of a comment."""
    names = [column[1] for column in sql(app, "PRAGMA table_info(comment)")]
    (values,) = sql(app, "SELECT * FROM comment WHERE id = ?", number)
    return dict(zip(names, values, strict=True))


@pytest.fixture
def guest_token(visitor: Visitor) -> str:
    """The edit token of a first comment."""
    token: str = visitor.say()["edit_token"]
    return token


# Edits

HO = {"content": "**ho**", "html": "<p><strong>ho</strong></p>\n", "edited": "2026-11-18 19:07:40"}


def test_a_guest_edits_with_the_edit_token(
    visitor: Visitor, guest_token: str, fake_world: FakeWorld
) -> None:
    fake_world.time += 60
    assert edit_by_token(visitor, guest_token, " **ho**\r\n") == written(**HO)
    assert visitor.listing()["comments"] == [{**SHOWN, **HO}]
    (thread,) = visitor.listing(view="threads")["comments"]
    assert thread == {**SHOWN, **HO, "replies": [], "more_replies": 0}
    assert visitor.say()["comment"]["id"] == 2  # what was edited away may be said again
    assert "edit_token" not in visitor.say("**ho**")
    fake_world.time += 60
    assert edit_by_token(visitor, guest_token)["comment"]["edited"] == "2026-11-18 19:08:40"
    fake_world.time += 899 - 120  # the time is that of the comment, not of its last edit
    edit_by_token(visitor, guest_token, "oh")
    fake_world.time += 1
    for content in ("ah", "oh"):
        assert edit_by_token(visitor, guest_token, content, status=403) == LATE["edit"]


def test_an_account_edits_its_own_comments(ann: Visitor, fake_world: FakeWorld) -> None:
    account, ann.authorization = ann.authorization, None
    token = ann.say("as a guest, before signing in")["edit_token"]
    ann.authorization = account
    edit_by_token(ann, status=404)
    assert edit_by_token(ann, token)["comment"]["user_id"] is None
    assert "edit_token" not in ann.say()
    fake_world.time += 60
    ann.extra_environ["REMOTE_ADDR"] = "2001:db8::9"  # the phone has left the house
    assert edit_by_token(ann, content="**ho**", of=2) == written(id=2, user_id=1, role="user", **HO)
    assert edit_by_token(ann, "whatever", "oh", of=2)["comment"]["content"] == "oh"


def test_an_edit_changes_nothing_but_the_text(app: App, visitor: Visitor) -> None:
    visitor.say("root")
    posted = visitor.say(parent_id=1, email="ann@example.com", website="https://a.example")
    visitor.post_json("/comment/like", {"id": 2})
    before = row(app, 2)
    wishes = {
        "content": "ho",
        "edit_token": posted["edit_token"],
        "id": 1,
        "nickname": "Bob",
        "email": "b@example.com",
        "user_id": 1,
        "page_url": "/b",
        "parent_id": None,
        "likes": 9,
        "status": "waiting",
        "pinned": True,
        "website": "",
        "created_at": 1,
        "role": "admin",
    }
    visitor.patch_json("/comments/2?id=1&status=spam", wishes)
    after = row(app, 2)
    different = {name for name in before if before[name] != after[name]}
    assert different == {"content", "html", "edited_at", "mark"}


def test_an_old_comment_with_control_characters_can_be_edited(app: App, visitor: Visitor) -> None:
    posted = visitor.say("hi")
    old = "a\x18b\x0bc"
    inside.sql(app, "UPDATE comment SET content = ?", old)
    for text, kept in ((old, "ab\nc"), (old + " d", "ab\nc d")):
        body = {"content": text, "edit_token": posted["edit_token"]}
        edited = visitor.patch_json("/comments/1", body).json["comment"]
        assert edited["content"] == kept


BAD_TEXTS: dict[str, list[Any]] = {
    "content_missing": [None, "\n\t \r\n", "\u200b\u200d", *(c * 3 for c in "\u3164\u2800\u0301")],
    "content_invalid": [5, ["a"], "a\0b"],
    "content_too_long": ["x" * 2001],
}


def test_an_edit_and_a_preview_keep_the_rules_of_a_comment(
    visitor: Visitor, guest_token: str
) -> None:
    for code, contents in BAD_TEXTS.items():
        for content in contents:
            body = {"content": content, "edit_token": guest_token}
            refusals = [
                visitor.post_json("/comments", COMMENT | body, status=400).json,
                visitor.post_json("/comments/preview", body, status=400).json,
                visitor.patch_json("/comments/1", body, status=400).json,
            ]
            assert refusals == [refusals[0]] * 3, content
            assert refusals[0]["code"] == code, content


# When


@pytest.mark.parametrize(
    ("settings", "minutes"),
    [({}, 15), ({"comments_edit_minutes": 0}, 0), ({"comments_edit_minutes": 1}, 1)],
)
def test_a_guest_may_edit_and_delete_for_a_quarter_of_an_hour(
    visitor: Visitor, fake_world: FakeWorld, minutes: int
) -> None:
    assert visitor.listing(view="threads")["settings"]["edit_minutes"] == minutes
    end = minutes * 60
    for number, seconds in enumerate((0, end - 1, end, -1, 400 * 86400)):
        for verb, do in DO.items():
            fake_world.time = START + number * 3600
            made = visitor.say(f"{verb} {number}")
            fake_world.time += seconds
            status = 200 if 0 <= seconds < end else 403
            response = do(visitor, made["edit_token"], status=status, of=made["comment"]["id"])
            assert response == LATE[verb] if status == 403 else response["success"], seconds


def test_an_account_may_delete_its_comments_at_any_time(app: App, ann: Visitor) -> None:
    for number, (seconds, status) in enumerate(((899, 200), (900, 403), (400 * 86400, 403)), 1):
        ann.say(str(number))
        sql(app, "UPDATE comment SET created_at = created_at - ? WHERE id = ?", seconds, number)
        response = edit_by_token(ann, status=status, of=number)
        assert response == LATE["edit"] if status == 403 else response["success"], seconds
        assert delete(ann, of=number)["comment"]["deleted"]
        both(ann, of=number)


# Whose


def test_editing_a_comment_of_another_author_fails_as_if_it_were_missing(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    one, other = (visitor.say(text)["edit_token"] for text in ("hi", "oh"))
    for bad in ("", "x", other, one[:-1], one + "0", one.upper(), f" {one}", "é" * 32, "0" * 32):
        both(visitor, bad)
    for form in ({}, {"edit_token": None}):
        for write in (visitor.patch_json, visitor.delete_json):
            assert write("/comments/1", {"content": "ho"} | form, status=404).json == GONE
    for of in (2, 3, "0", "9" * 18):
        both(visitor, one, of=of)
    for of in ("-1", "1.0", "1e0", "+1", "%EF%BC%91", "%20", "1%20", "%00", "x", "1;2", "9" * 19):
        visitor.delete_json(f"/comments/{of}", {"edit_token": one}, status=404)
    fake_world.time += 3600  # nor is anybody told that it would be too late
    both(visitor, other)
    assert [c["content"] for c in visitor.listing()["comments"]] == ["oh", "hi"]
    inside.set_status(app, 1, "deleted")
    both(visitor, one)


def test_an_account_may_not_edit_comments_of_others(app: App, ann: Visitor) -> None:
    ann.say()
    account, ann.authorization = ann.authorization, None
    ann.say("by a guest")
    for token in ("", inside.seal(app, "edit", "1", str(START))[:32]):  # which nobody was given
        both(ann, token)
    inside.add_account(app, "bob@example.com", "Bob", "secret")
    ann.authorization = ("Bearer", inside.token_of(app, "bob@example.com"))
    for role in ("user", "admin"):
        sql(app, "UPDATE account SET role = ? WHERE id = 2", role)
        for number in (1, 2):
            both(ann, of=number)
    ann.say("by Bob")
    assert edit_by_token(ann, of=3)["success"]
    assert delete(ann, of=3)["success"]
    ann.authorization = account
    ann.post_json("/auth/logout", {})  # a login that ended is never silently anonymous
    for verb in DO.values():
        assert verb(ann, status=401)["code"] == "token_invalid"


def test_only_its_own_edit_token_opens_a_comment(app: App, ann: Visitor) -> None:
    account, ann.authorization = ann.authorization, None
    token = ann.say()["edit_token"]
    assert token == inside.seal(app, "edit", "1", str(START))[:32]
    words = [("visitor", "1"), ("client", "1"), ("code", "1"), ("salt", "1"), ("edit",)]
    for purpose, *more in [*words, ("edit", "1", "1"), ("edit", "1")]:
        for length in (32, None):
            both(ann, inside.seal(app, purpose, *more)[:length])
    for verb in DO.values():
        assert verb(ann, account[1], status=400)["code"] == "edit_token_too_long"
        ann.authorization = ("Bearer", token)  # nor is it one that signs in
        assert verb(ann, token, status=401)["code"] == "token_invalid"
        ann.authorization = None
        assert verb(ann, token)["success"]


def test_an_author_cannot_tell_spam_from_a_waiting_comment(app: App, visitor: Visitor) -> None:
    tokens = [visitor.say(text)["edit_token"] for text in ("one", "two")]
    inside.set_status(app, 1, "waiting")
    inside.set_status(app, 2, "spam")
    for do in DO.values():
        replies = [do(visitor, token, of=n)["comment"] for n, token in enumerate(tokens, 1)]
        assert replies[0] | {"id": 2} == replies[1]
        assert visitor.listing()["total"] == 0


# The edit token


def test_an_edit_token_is_not_good_for_a_later_comment_with_the_same_number(
    app: App, visitor: Visitor, guest_token: str, fake_world: FakeWorld
) -> None:
    sql(app, "DELETE FROM comment")  # as where a copy was put back
    sql(app, "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'comment'")
    sql(app, "UPDATE page SET total = 0, threads = 0")
    fake_world.time += 60
    assert visitor.say("another")["comment"]["id"] == 1
    both(visitor, guest_token)


def test_the_edit_token_is_in_no_response_but_that_to_its_author(visitor: Visitor) -> None:
    tokens = [visitor.say(str(n), parent_id=n or None)["edit_token"] for n in range(2)]
    assert len({*tokens}) == 2
    replies = [
        visitor.listing(),
        visitor.listing(view="threads"),
        visitor.listing(around=1),
        visitor.say("0"),
        visitor.post_json("/comment/like", {"id": 1}).json,
        preview(visitor),
        visitor.get("/pages", {"url": PAGE}).json,
        edit_by_token(visitor, tokens[0]),
        edit_by_token(visitor, "x", status=404),
        delete(visitor, tokens[0]),
        visitor.listing(),
    ]
    assert not [t for t in (*tokens, "edit_token") if t in json.dumps(replies)]


@ALTCHA
def test_a_repeat_with_another_captcha_token_gets_no_edit_token(app: App, visitor: Visitor) -> None:
    visitor.say(captcha_token=solved(visitor))
    spent_elsewhere, fresh = solved(visitor), solved(visitor)
    visitor.say("oh", captcha_token=spent_elsewhere)
    for captcha in (spent_elsewhere, fresh):
        assert visitor.say(captcha_token=captcha) == written()
    inside.add_account(app, "bob@example.com", "Bob", "secret")
    account = {"Authorization": f"Bearer {inside.token_of(app, 'bob@example.com')}"}
    captcha = solved(visitor)
    first = visitor.say("by Bob", captcha_token=captcha, headers=account)
    assert first.keys() == {"success", "comment"}
    for again in (captcha, solved(visitor)):
        posted = visitor.say("by Bob", captcha_token=again, headers=account)
        assert "edit_token" not in posted
        assert posted["comment"] == first["comment"]


# Preview

MARKDOWN = [
    "*a* **b** `c` ~~d~~",
    "# h\n\n- a\n- b\n\n1. c",
    "> a\n> > b",
    "<script>alert(1)</script>",
    "![x](https://e.example/x.png)",
    "[x](javascript:alert(1))",
    "[x](//e.example)",
    "<https://e.example>",
    "https://e.example/?a=b&c=d",
    "a\r\nb\r\n\r\nc",
    "```py\n<b>\n```",
    "&amp; < > \" '",
    "{0} %s \\",
    "\u202eright",
    "👩‍💻",
    "a | b\n--|--\n1 | 2",
    "  x  ",
]


@pytest.mark.slow
@NO_LIMITS
@how(suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(MARKDOWN)
    | st.lists(st.sampled_from(MARKDOWN), max_size=4).map("\n\n".join)
    | st.text(st.characters(codec="utf-8"), max_size=60)
    | st.text("*_`~[]()<>!#-+.:/&;|\\\n\t ab1", max_size=60)
)
def test_a_preview_and_an_edit_show_what_a_comment_would(visitor: Visitor, content: str) -> None:
    posted = visitor.say(content, status="*")
    shown = preview(visitor, content, status="*")
    other = visitor.say("another")
    number, token = other["comment"]["id"], other["edit_token"]
    edited = edit_by_token(visitor, token, content, of=number, status="*")
    if "error" in posted:
        assert posted == shown == edited
    else:
        html = posted["comment"]["html"]
        assert shown == {"html": html}
        assert edited["comment"]["html"] == html
        assert edited["comment"]["content"] == posted["comment"]["content"]
    delete(visitor, token, of=number)


@pytest.mark.parametrize("settings", [{"comments_login_required": True}])
def test_a_preview_writes_nothing_and_asks_for_no_account(app: App, visitor: Visitor) -> None:
    before = dump(database_path(app)), sql(app, "SELECT * FROM rate_limit")
    assert preview(visitor, "**hi**") == {"html": "<p><strong>hi</strong></p>\n"}
    assert preview(visitor, " ", status=400)["code"] == "content_missing"
    assert (dump(database_path(app)), sql(app, "SELECT * FROM rate_limit")) == before


def test_a_client_may_preview_120_times_a_minute(visitor: Visitor, fake_world: FakeWorld) -> None:
    client = webtest.TestApp(visitor.served, visitor.extra_environ)
    for _ in range(120):
        client.post_json("/comments/preview", {"content": "hi"})
    late = visitor.post_json("/comments/preview", {"content": "hi"}, status=429)
    assert late.json == TOO_MANY
    assert 0 < int(late.headers["Retry-After"]) <= 60
    visitor.get("/admin/help", status=429)  # which renders Markdown, too
    preview(Visitor(visitor.served, "203.0.113.8"))
    visitor.say("those of comments are others")
    fake_world.time += 60
    preview(visitor)


@NO_LIMITS
def test_an_owner_who_wants_no_limits_has_none_a_minute(visitor: Visitor) -> None:
    for _ in range(121):
        preview(visitor)


# How often


def test_edits_and_comments_share_a_rate_limit(
    visitor: Visitor, guest_token: str, fake_world: FakeWorld
) -> None:
    for number in range(4):
        edit_by_token(visitor, guest_token, str(number))
        edit_by_token(visitor, guest_token, " ", status=400)  # what is refused is not counted
        edit_by_token(visitor, "x", status=404)
    form = {"content": "x", "edit_token": guest_token}
    reply = visitor.patch_json("/comments/1", form, status=429)
    assert (reply.json, reply.headers["Retry-After"]) == (TOO_MANY, "60")
    visitor.say("six", status=429)
    assert edit_by_token(visitor, guest_token, "3")["success"]  # the same text is no edit
    fake_world.time += 60
    edit_by_token(visitor, guest_token, "x")
    fake_world.time += 899 - 60
    fresh = visitor.say("fresh")["edit_token"]
    fake_world.time += 1
    for number in range(4):
        edit_by_token(visitor, guest_token, f"late {number}", status=403)
        edit_by_token(visitor, fresh, str(number), of=2)


WAITS = {
    "content": "ho",
    "html": "<p>ho</p>\n",
    "edited": "2026-11-18 19:06:40",
    "status": "waiting",
}


def test_an_edited_comment_waits_while_a_flood_lasts(
    app: App, visitor: Visitor, guest_token: str, caplog: pytest.LogCaptureFixture
) -> None:
    visitor.say("reply", parent_id=1)
    inside.use_up(app, "all_comments", 298)
    assert edit_by_token(visitor, guest_token, "hi")["comment"]["status"] == "visible"  # no edit
    assert edit_by_token(visitor, guest_token) == written(**WAITS)
    (record,) = caplog.records
    assert record.getMessage() == "too many comments: further ones wait for approval"
    assert [c["id"] for c in visitor.listing()["comments"]] == [2]
    (thread,) = visitor.listing(view="threads")["comments"]
    assert thread["deleted"]
    assert "ho" not in json.dumps(thread)
    visitor.say("another", parent_id=1, status=404)
    assert edit_by_token(visitor, guest_token, "oh")["comment"]["status"] == "waiting"


# Deletion


def test_a_deleted_comment_without_replies_is_in_no_list(visitor: Visitor) -> None:
    visitor.say("first")
    token = visitor.say()["edit_token"]
    deleted = {"success": True, "comment": stone(id=2, status="deleted")}
    assert delete(visitor, token, of=2) == deleted
    for view in ("flat", "threads"):
        listing = visitor.listing(view=view)
        assert [c["id"] for c in listing["comments"]] == [1]
        assert listing["total"] == 1
    assert visitor.listing(view="threads")["threads"] == 1
    assert visitor.get("/pages", {"url": PAGE}).json["pages"][0]["total"] == 1


def test_a_deleted_comment_with_replies_is_a_tombstone_in_its_place(
    app: App, visitor: Visitor
) -> None:
    tokens = [visitor.say(str(n), parent_id=n or None)["edit_token"] for n in range(3)]
    edit_by_token(visitor, tokens[0])
    sql(app, "UPDATE comment SET pinned = 1 WHERE id = 1")
    assert delete(visitor, tokens[0]) == {"success": True, "comment": stone(status="deleted")}

    def places() -> list[tuple[int, bool]]:
        found = visitor.listing(view="threads")["comments"]
        each = [place for root in found for place in (root, *root["replies"])]
        return [(place["id"], place.get("deleted", False)) for place in each]

    shown = visitor.listing(view="threads")["comments"][0]
    assert shown | {"replies": []} == stone(replies=[], more_replies=0)
    assert places() == [(1, True), (2, False), (3, False)]
    assert visitor.listing()["total"] == 2
    delete(visitor, tokens[1], of=2)
    assert places() == [(1, True), (2, True), (3, False)]
    delete(visitor, tokens[2], of=3)
    assert places() == []
    assert visitor.listing(view="threads")["threads"] == 0


# Closed pages


def close(app: App, closed: bool = True) -> None:
    sql(app, "UPDATE page SET closed = ? WHERE id = 1", closed)


def test_a_closed_page_takes_no_comments_but_shows_what_it_has(app: App, ann: Visitor) -> None:
    ann.say()
    close(app)
    for _ in range(9):  # which takes nothing of the rate limit
        assert ann.say("oh", status=403) == CLOSED
    assert ann.say("reply", parent_id=1, status=403) == CLOSED
    ann.authorization = None
    assert ann.say("oh", page_url=PAGE + "index.html#top", status=403) == CLOSED
    listing = ann.listing(view="threads")
    assert [c["content"] for c in listing["comments"]] == ["hi"]
    assert listing["settings"]["closed"] is True
    ann.say("oh", page_url="/open/")
    close(app, False)
    ann.say("oh")


def test_a_closed_page_still_takes_likes_edits_and_deletions(app: App, ann: Visitor) -> None:
    ann.say("mine")
    account, ann.authorization = ann.authorization, None
    token = ann.say()["edit_token"]
    close(app)
    assert ann.post_json("/comment/like", {"id": 1}).json["likes"] == 1
    assert ann.post_json("/page/like", {"page_url": PAGE}).json["page_likes"] == 1
    for signed_in, key, of in ((None, token, 2), (account, "", 1)):
        ann.authorization = signed_in
        assert edit_by_token(ann, key, of=of)["comment"]["content"] == "ho"
        assert delete(ann, key, of=of)["comment"]["deleted"]


# At once
