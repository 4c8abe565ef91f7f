"""Second thoughts: the preview of a comment, its edits, its deletion; pages that are closed."""

import json
import logging
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import inside
import pytest
from conftest import PAGE, START, Outside, Visitor, dump
from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st
from test_comments import NO_LIMITS, SHOWN, hide, solved
from test_server import BLOG, COMMENT, FOREIGN, TWO_BLOGS, services

from commentd import App, budget, edit_token, mac

GONE = {"error": "评论不存在", "code": "comment_gone"}
LATE = {
    "edit": {"error": "已超过可修改的时间", "code": "edit_late"},
    "delete": {"error": "已超过可删除的时间", "code": "edit_late"},
}
CLOSED = {"error": "这里的评论已关闭", "code": "page_closed"}
ALTCHA = pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}])
VERBS = pytest.mark.parametrize("verb", ["edit", "delete"])


def edit(
    visitor: Visitor, token: str = "", content: str = "ho", status: int = 200, of: object = 1
) -> Any:
    body = {"content": content, "edit_token": token}
    return visitor.patch_json(f"/comments/{of}", body, status=status).json


def delete(visitor: Visitor, token: str = "", status: int = 200, of: object = 1) -> Any:
    return visitor.delete_json(f"/comments/{of}", {"edit_token": token}, status=status).json


DO: dict[str, Callable[..., Any]] = {"edit": edit, "delete": delete}


def preview(visitor: Visitor, content: str = "hi", status: int = 200) -> Any:
    return visitor.post_json("/comments/preview", {"content": content}, status=status).json


def written(**changes: Any) -> dict[str, Any]:
    return {"success": True, "comment": {**SHOWN, "status": "visible", **changes}}


def stone(**changes: Any) -> dict[str, Any]:
    """What is left of a comment that was deleted."""
    texts = ("nickname", "content", "ip", "location", "html", "role", "website", "country")
    gone = {"edited": None, "pinned": False, "likes": 0, "user_id": None, "deleted": True}
    return {**SHOWN, **dict.fromkeys(texts, ""), **gone, **changes}


def another(visitor: Visitor, outside: Outside, email: str) -> str:
    """The token of one more account, as a header has it."""
    mine, visitor.authorization = visitor.authorization, None
    visitor.register(email)
    visitor.served.deliver()
    visitor.verify(outside.code(), email)
    token = visitor.login(email)["token"]
    visitor.authorization = mine
    return f"Bearer {token}"


def stamp(db: sqlite3.Connection) -> int:
    """A number that another connection's next write changes."""
    number: int = db.execute("PRAGMA data_version").fetchone()[0]
    return number


# Edits


HO = {"content": "**ho**", "html": "<p><strong>ho</strong></p>\n", "edited": "2026-11-18 19:07:40"}


def test_a_guest_edits_with_the_token_that_came_with_the_comment(
    visitor: Visitor, outside: Outside
) -> None:
    token = visitor.say()["edit_token"]
    outside.time += 60
    assert edit(visitor, token, " **ho**\r\n") == written(**HO)
    assert visitor.listing()["comments"] == [{**SHOWN, **HO}]
    (thread,) = visitor.listing(view="threads")["comments"]
    assert thread == {**SHOWN, **HO, "replies": [], "more_replies": 0}
    outside.time += 60
    assert edit(visitor, token)["comment"]["edited"] == "2026-11-18 19:08:40"


def test_an_account_edits_what_it_wrote(ann: Visitor, outside: Outside) -> None:
    assert "edit_token" not in ann.say()
    outside.time += 60
    ann.extra_environ["REMOTE_ADDR"] = "2001:db8::9"  # the phone has left the house
    assert edit(ann, content="**ho**") == written(user_id=1, role="user", **HO)
    assert edit(ann, "whatever", "oh")["comment"]["content"] == "oh"


def test_a_guest_who_has_signed_in_since_edits_with_the_token(ann: Visitor) -> None:
    account, ann.authorization = ann.authorization, None
    token = ann.say()["edit_token"]
    ann.authorization = account
    edit(ann, status=404)
    assert edit(ann, token)["comment"]["user_id"] is None


def test_an_edit_changes_nothing_but_the_text(visitor: Visitor, db: sqlite3.Connection) -> None:
    visitor.say("root")
    token = visitor.say(parent_id=1, email="ann@example.com", website="https://a.example")
    visitor.post_json("/comment/like", {"id": 2})
    before = db.execute("SELECT * FROM comment WHERE id = 2").fetchone()
    wishes = {
        "content": "hi", "edit_token": token["edit_token"], "id": 1, "nickname": "Bob",
        "email": "b@example.com", "user_id": 1, "page_url": "/b", "parent_id": None, "likes": 9,
        "status": "waiting", "pinned": True, "website": "", "created_at": 1, "role": "admin",
    }  # fmt: skip
    visitor.patch_json("/comments/2?id=1&status=spam", {**wishes, "content": "ho"})
    after = db.execute("SELECT * FROM comment WHERE id = 2").fetchone()
    names = [column[1] for column in db.execute("PRAGMA table_info(comment)")]
    different = {name for name, old, new in zip(names, before, after, strict=True) if old != new}
    assert different == {"content", "html", "edited_at"}


@pytest.mark.parametrize("same", ["hi", " hi\r\n"])
def test_the_same_text_is_no_edit(visitor: Visitor, db: sqlite3.Connection, same: str) -> None:
    token, before = visitor.say()["edit_token"], stamp(db)
    for _ in range(9):  # which takes nothing of the budget
        assert edit(visitor, token, same) == written()
    assert stamp(db) == before


def test_what_was_edited_away_may_be_said_again(visitor: Visitor) -> None:
    edit(visitor, visitor.say()["edit_token"])
    assert visitor.say()["comment"]["id"] == 2
    double = visitor.say("ho")
    assert double["comment"]["id"] == 1
    assert "edit_token" not in double


@pytest.mark.parametrize(
    ("content", "code"),
    [
        *[(bad, "content_missing") for bad in (None, "", " ", "\n\t \r\n", "\u200b\u200d")],
        *[(filler * 3, "content_missing") for filler in "\u3164\u2800\u3000\u0301"],
        *[(bad, "content_invalid") for bad in (5, True, ["a"], {}, 1.5)],
        *[(f"a{c}b", "content_invalid") for c in "\0\x07\x0b\x1b\x7f\x85\r"],
        ("x" * 2001, "content_too_long"),
    ],
)
def test_an_edit_and_a_preview_keep_the_rules_of_a_comment(
    visitor: Visitor, content: Any, code: str
) -> None:
    token = visitor.say()["edit_token"]
    body = {"content": content, "edit_token": token}
    answers = [
        visitor.post_json("/comments", COMMENT | body, status=400).json,
        visitor.post_json("/comments/preview", body, status=400).json,
        visitor.patch_json("/comments/1", body, status=400).json,
    ]
    assert answers == [answers[0]] * 3
    assert answers[0]["code"] == code


# When


def late(minutes: int) -> list[tuple[dict[str, int], int, int]]:
    """Settings, the seconds that pass, and what an author is told."""
    settings = {"comments_edit_minutes": minutes} if minutes != 15 else {}
    end = minutes * 60
    return [(settings, seconds, 200 if 0 <= seconds < end else 403) for seconds in (end - 1, end)]


WINDOW = pytest.mark.parametrize(
    ("settings", "seconds", "status"),
    [*late(0), *late(1), *late(15), ({}, 0, 200), ({}, -1, 403), ({}, 400 * 86400, 403)],
)


@WINDOW
@VERBS
def test_a_guest_has_a_quarter_of_an_hour(
    visitor: Visitor, outside: Outside, verb: str, seconds: int, status: int
) -> None:
    token = visitor.say()["edit_token"]
    outside.time += seconds
    told = DO[verb](visitor, token, status=status)
    assert told == LATE[verb] if status == 403 else told["success"]


@WINDOW
def test_an_account_edits_as_long_and_deletes_at_any_time(
    ann: Visitor, outside: Outside, db: sqlite3.Connection, seconds: int, status: int
) -> None:
    ann.say()
    db.execute("UPDATE comment SET created_at = created_at - :seconds", {"seconds": seconds})
    told = edit(ann, status=status)
    assert told == LATE["edit"] if status == 403 else told["success"]
    assert delete(ann)["comment"]["deleted"]


def test_the_time_is_that_of_the_comment_not_of_its_last_edit(
    visitor: Visitor, outside: Outside
) -> None:
    token = visitor.say()["edit_token"]
    outside.time += 899
    edit(visitor, token)
    outside.time += 1
    assert edit(visitor, token, "oh", status=403) == LATE["edit"]
    assert edit(visitor, token, "ho", status=403) == LATE["edit"]  # the same text, too


@pytest.mark.parametrize(
    ("settings", "minutes"), [({}, 15), *[({"comments_edit_minutes": n}, n) for n in (0, 60)]]
)
def test_a_widget_is_told_how_long(visitor: Visitor, minutes: int) -> None:
    assert visitor.listing(view="threads")["settings"]["edit_minutes"] == minutes


# Whose


@VERBS
def test_what_is_anothers_is_as_missing(
    visitor: Visitor, app: App, outside: Outside, verb: str
) -> None:
    one, other = (visitor.say(text)["edit_token"] for text in ("hi", "oh"))
    for bad in ("", "x", other, one[:-1], one + "0", one.upper(), f" {one}", "é" * 32, "0" * 32):
        assert DO[verb](visitor, bad, status=404) == GONE
    path = "/comments/1"
    write = visitor.patch_json if verb == "edit" else visitor.delete_json
    for form in ({}, {"edit_token": None}):
        assert write(path, {"content": "ho"} | form, status=404).json == GONE
    assert DO[verb](visitor, one, of=2, status=404) == GONE
    assert DO[verb](visitor, one, of=3, status=404) == GONE
    outside.time += 3600  # nor is anybody told that it would be too late
    assert DO[verb](visitor, other, status=404) == GONE
    assert [c["content"] for c in visitor.listing()["comments"]] == ["oh", "hi"]


@VERBS
def test_an_account_has_no_right_to_what_others_wrote(
    ann: Visitor, app: App, outside: Outside, verb: str
) -> None:
    ann.say()
    bob = another(ann, outside, "bob@example.com")
    ann.say("by Bob", headers={"Authorization": bob})
    ann.authorization = None
    ann.say("by a guest")
    hers = app.house.store.comment(1)
    assert hers
    for token in ("", edit_token(app.house, hers)):  # which nobody was given
        assert DO[verb](ann, token, status=404) == GONE
    ann.authorization = ("Bearer", bob.removeprefix("Bearer "))
    for comment in (1, 3):
        assert DO[verb](ann, of=comment, status=404) == GONE
    DO[verb](ann, of=2)


@VERBS
def test_an_admin_has_no_right_to_what_others_wrote_either(
    ann: Visitor, db: sqlite3.Connection, verb: str
) -> None:
    account, ann.authorization = ann.authorization, None
    ann.say()
    db.execute("UPDATE account SET role = 'admin'")
    ann.authorization = account
    assert DO[verb](ann, status=404) == GONE


@VERBS
def test_no_other_key_opens_a_comment(ann: Visitor, app: App, verb: str) -> None:
    account, ann.authorization = ann.authorization, None
    token, key = ann.say()["edit_token"], inside.token_key(app)
    words = [("visitor", 1), ("client", 1), ("code", 1), ("salt", 1), ("edit",), ("edit", 1, 1)]
    for bad in [mac(key, *map(str, each))[:32] for each in words] + [mac(key, "edit", 1)]:
        assert DO[verb](ann, bad, status=404) == GONE
    assert DO[verb](ann, account[1], status=400)["code"] == "edit_token_too_long"
    ann.authorization = ("Bearer", token)  # nor is it one that signs in
    assert DO[verb](ann, token, status=401)["code"] == "token_invalid"
    ann.authorization = None
    DO[verb](ann, token)


@VERBS
def test_a_login_that_ended_is_never_silently_anonymous(ann: Visitor, verb: str) -> None:
    ann.say()
    ann.post_json("/auth/logout", {})
    assert DO[verb](ann, status=401)["code"] == "token_invalid"


@pytest.mark.parametrize(
    "odd",
    [
        "0",
        "-1",
        "1.0",
        "1e0",
        "+1",
        "%EF%BC%91",
        "%20",
        "1%20",
        "1%0a",
        "%00",
        "x",
        "preview",
        "1;2",
    ]
    + ["9" * n for n in (18, 19, 40)],
)
def test_an_odd_number_is_no_comment(visitor: Visitor, odd: str) -> None:
    token = visitor.say()["edit_token"]
    assert edit(visitor, token, of=odd, status=404) == GONE
    assert delete(visitor, token, of=odd, status=404) == GONE


@VERBS
def test_what_is_deleted_is_as_missing(visitor: Visitor, app: App, verb: str) -> None:
    token = visitor.say()["edit_token"]
    hide(app, 1, "deleted")
    assert DO[verb](visitor, token, status=404) == GONE


@VERBS
def test_an_author_cannot_tell_spam_from_what_waits(visitor: Visitor, app: App, verb: str) -> None:
    tokens = [visitor.say(text)["edit_token"] for text in ("one", "two")]
    hide(app, 1, "waiting")
    hide(app, 2, "spam")
    replies = [DO[verb](visitor, token, of=n)["comment"] for n, token in enumerate(tokens, 1)]
    assert replies[0] | {"id": 2} == replies[1]
    assert visitor.listing()["total"] == 0


# The token


def test_a_token_is_of_one_comment_though_its_number_is_given_again(
    visitor: Visitor, db: sqlite3.Connection, outside: Outside
) -> None:
    token = visitor.say()["edit_token"]
    db.execute("DELETE FROM comment")  # as where a copy was put back
    db.execute("UPDATE sqlite_sequence SET seq = 0 WHERE name = 'comment'")
    db.execute("UPDATE page SET total = 0, threads = 0")
    outside.time += 60
    assert visitor.say("another")["comment"]["id"] == 1
    assert edit(visitor, token, status=404) == GONE


def test_the_token_is_in_no_other_reply(visitor: Visitor) -> None:
    tokens = [visitor.say(str(n), parent_id=n or None)["edit_token"] for n in range(2)]
    assert len({*tokens}) == 2
    replies = [
        visitor.listing(), visitor.listing(view="threads"), visitor.listing(around=1),
        visitor.say("0"), visitor.post_json("/comment/like", {"id": 1}).json, preview(visitor),
        visitor.get("/pages", {"url": PAGE}).json, edit(visitor, tokens[0]),
        edit(visitor, "x", status=404), delete(visitor, tokens[0]), visitor.listing(),
    ]  # fmt: skip
    assert not [t for t in (*tokens, "edit_token") if t in json.dumps(replies)]


def test_the_file_holds_no_token(visitor: Visitor, app: App) -> None:
    token = visitor.say()["edit_token"]
    edit(visitor, token)
    assert token.encode() not in file_of(app)
    assert token not in repr(dump(inside.database_path(app)))


@pytest.mark.parametrize(
    "settings",
    [{"captcha_provider": "altcha"}, {"captcha_provider": "altcha", "limits_enabled": False}],
)
def test_a_retry_that_has_the_captcha_is_given_the_token_too(
    visitor: Visitor, outside: Outside
) -> None:
    captcha = solved(visitor)
    first = visitor.say(captcha_token=captcha)
    for _ in range(2):
        assert visitor.say(captcha_token=captcha) == first
        outside.time += 120  # beyond the minute of doubles
    visitor.post_json("/comment/like", {"id": 1})
    assert visitor.say(captcha_token=captcha)["edit_token"] == first["edit_token"]


@ALTCHA
def test_who_says_the_same_with_another_captcha_is_not_given_it(visitor: Visitor) -> None:
    visitor.say(captcha_token=solved(visitor))
    spent_elsewhere, fresh = solved(visitor), solved(visitor)
    visitor.say("oh", captcha_token=spent_elsewhere)
    for captcha in (spent_elsewhere, fresh):
        assert visitor.say(captcha_token=captcha) == written()


@ALTCHA
def test_a_retry_by_an_account_is_given_no_token(visitor: Visitor, app: App, member: str) -> None:
    headers, captcha = {"Authorization": member}, solved(visitor)
    first = visitor.say(captcha_token=captcha, headers=headers)
    assert visitor.say(captcha_token=captcha, headers=headers) == first
    assert first.keys() == {"success", "comment"}
    assert "edit_token" not in visitor.say(captcha_token=solved(visitor), headers=headers)


@pytest.fixture
def member(visitor: Visitor, app: App, outside: Outside) -> str:
    """The header of an account that was made behind a captcha."""
    visitor.register(captcha_token=solved(visitor))
    app.deliver()
    visitor.verify(outside.code())
    return f"Bearer {visitor.login(captcha_token=solved(visitor))['token']}"


# Preview


MARKDOWN = [
    "*a* **b** `c` ~~d~~", "# h\n\n- a\n- b\n\n1. c", "> a\n> > b", "<script>alert(1)</script>",
    "![x](https://e.example/x.png)", "[x](javascript:alert(1))", "[x](//e.example)",
    "<https://e.example>", "https://e.example/?a=b&c=d", "a\r\nb\r\n\r\nc", "```py\n<b>\n```",
    "&amp; < > \" '", "{0} %s \\", "\u202eright", "👩‍💻", "a | b\n--|--\n1 | 2", "  x  ",
]  # fmt: skip


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
    edited = edit(visitor, token, content, of=number, status="*")
    if "error" in posted:
        assert posted == shown == edited
    else:
        html = posted["comment"]["html"]
        assert shown == {"html": html}
        assert edited["comment"]["html"] == html
        assert edited["comment"]["content"] == posted["comment"]["content"]
    delete(visitor, token, of=number)


def test_a_preview_writes_nothing(visitor: Visitor, app: App, db: sqlite3.Connection) -> None:
    before = stamp(db)
    assert preview(visitor, "**hi**") == {"html": "<p><strong>hi</strong></p>\n"}
    assert preview(visitor, " ", status=400)["code"] == "content_missing"
    assert stamp(db) == before
    assert app.house.views.pending == {}


def test_a_client_previews_120_times_a_minute(visitor: Visitor, outside: Outside) -> None:
    for _ in range(120):
        preview(visitor)
    r = visitor.post_json("/comments/preview", {"content": "hi"}, status=429)
    assert r.json == {"error": "操作太频繁，请稍后再试", "code": "too_many"}
    assert 0 < int(r.headers["Retry-After"]) <= 60
    preview(Visitor(visitor.served, "203.0.113.8"))
    for n in range(5):  # those of comments are others
        visitor.say(str(n))
    outside.time += 60
    preview(visitor)


@NO_LIMITS
def test_without_limits_previews_have_none(visitor: Visitor) -> None:
    for _ in range(130):
        preview(visitor)


@pytest.mark.parametrize("settings", [{"comments_login_required": True}])
def test_a_guest_may_look_before_signing_in(visitor: Visitor) -> None:
    preview(visitor)


# How often


def test_edits_and_comments_share_a_budget(visitor: Visitor, outside: Outside) -> None:
    token = visitor.say()["edit_token"]
    for n in range(4):
        edit(visitor, token, str(n))
    r = visitor.patch_json("/comments/1", {"content": "x", "edit_token": token}, status=429)
    assert r.json == {"error": "操作太频繁，请稍后再试", "code": "too_many"}
    assert r.headers["Retry-After"] == "60"
    visitor.say("six", status=429)
    assert edit(visitor, token, "3")["success"]  # the same text is no edit
    outside.time += 60
    edit(visitor, token, "x")
    outside.time += 60
    delete(visitor, token)


def test_edits_that_are_refused_are_not_counted(visitor: Visitor, outside: Outside) -> None:
    old = visitor.say()["edit_token"]
    outside.time += 900
    token = visitor.say("new")["edit_token"]
    for _ in range(9):
        edit(visitor, old, status=403)
        edit(visitor, old, of=2, status=404)
        edit(visitor, token, " ", of=2, status=400)
    for n in range(4):
        edit(visitor, token, str(n), of=2)


def test_a_comment_may_be_deleted_beyond_the_limit(visitor: Visitor) -> None:
    tokens = [visitor.say(str(n))["edit_token"] for n in range(5)]
    visitor.say("six", status=429)
    for n, token in enumerate(tokens):
        delete(visitor, token, of=n + 1)
    visitor.say("six", status=429)  # which gives nothing back


def flood(app: App) -> None:
    with app.house.store.writing():
        for _ in range(300):
            budget(app.house, START, ("comments", "", 1))


def test_in_a_flood_what_is_edited_waits(
    visitor: Visitor, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    token = visitor.say()["edit_token"]
    visitor.say("reply", parent_id=1)
    flood(app)
    assert edit(visitor, token, "hi")["comment"]["status"] == "visible"  # no edit
    ho = {"content": "ho", "html": "<p>ho</p>\n", "edited": "2026-11-18 19:06:40"}
    assert edit(visitor, token) == written(**ho, status="waiting")
    assert [(r.levelno, r.getMessage()) for r in caplog.records] == [
        (logging.WARNING, "more than 300 comments in an hour: further ones wait for approval")
    ]
    assert [c["id"] for c in visitor.listing()["comments"]] == [2]
    threads = visitor.listing(view="threads")
    assert (threads["total"], threads["threads"]) == (1, 1)
    assert threads["comments"][0]["deleted"]
    assert "ho" not in json.dumps(threads["comments"])
    visitor.say("another", parent_id=1, status=404)
    assert edit(visitor, token, "oh")["comment"]["status"] == "waiting"


def test_what_waits_is_edited_and_goes_on_waiting(
    visitor: Visitor, app: App, db: sqlite3.Connection
) -> None:
    token = visitor.say()["edit_token"]
    hide(app, 1, "waiting")
    ho = {"content": "ho", "html": "<p>ho</p>\n", "edited": "2026-11-18 19:06:40"}
    assert edit(visitor, token) == written(**ho, status="waiting")
    assert edit(visitor, token)["comment"]["status"] == "waiting"
    assert visitor.listing()["total"] == 0
    delete(visitor, token)
    assert db.execute("SELECT status FROM comment").fetchall() == [("deleted",)]


# Deletion


def test_what_is_deleted_without_answers_is_in_no_list(visitor: Visitor) -> None:
    visitor.say("first")
    token = visitor.say()["edit_token"]
    told = {"success": True, "comment": stone(id=2, status="deleted")}
    assert delete(visitor, token, of=2) == told
    for view in ("flat", "threads"):
        listing = visitor.listing(view=view)
        assert [c["id"] for c in listing["comments"]] == [1]
        assert listing["total"] == 1
    assert visitor.listing(view="threads")["threads"] == 1
    assert visitor.get("/pages", {"url": PAGE}).json["pages"][0]["total"] == 1


def test_what_is_deleted_keeps_its_place_among_answers(
    visitor: Visitor, db: sqlite3.Connection
) -> None:
    tokens = [visitor.say(str(n), parent_id=n or None)["edit_token"] for n in range(3)]
    edit(visitor, tokens[0])
    db.execute("UPDATE comment SET pinned = 1 WHERE id = 1")
    assert delete(visitor, tokens[0]) == {"success": True, "comment": stone(status="deleted")}

    def places() -> list[tuple[int, bool]]:
        found = visitor.listing(view="threads")["comments"]
        each = [place for root in found for place in (root, *root["replies"])]
        return [(place["id"], place.get("deleted", False)) for place in each]

    assert visitor.listing(view="threads")["comments"][0] | {"replies": []} == stone(
        replies=[], more_replies=0
    )
    assert places() == [(1, True), (2, False), (3, False)]
    assert visitor.listing()["total"] == 2
    delete(visitor, tokens[1], of=2)
    assert places() == [(1, True), (2, True), (3, False)]
    delete(visitor, tokens[2], of=3)
    assert places() == []
    assert visitor.listing(view="threads")["threads"] == 0


def test_what_is_deleted_is_gone_for_good(visitor: Visitor) -> None:
    token = visitor.say()["edit_token"]
    visitor.say("reply", parent_id=1)
    delete(visitor, token)
    assert delete(visitor, token, status=404) == GONE
    assert edit(visitor, token, status=404) == GONE
    visitor.post_json("/comment/like", {"id": 1}, status=404)
    visitor.say("another", parent_id=1, status=404)
    visitor.say("deeper", parent_id=2)
    assert visitor.say()["comment"]["id"] == 4  # it is no double of what is gone


def test_an_account_deletes_twice_in_vain(ann: Visitor) -> None:
    ann.say()
    gone = stone(status="deleted")
    assert delete(ann) == {"success": True, "comment": gone}
    assert delete(ann, status=404) == GONE


@ALTCHA
def test_the_captcha_of_what_is_deleted_is_spent(visitor: Visitor) -> None:
    captcha = solved(visitor)
    delete(visitor, visitor.say(captcha_token=captcha)["edit_token"])
    assert visitor.say(captcha_token=captcha, status=403)["code"] == "captcha_failed"


def test_likes_survive_an_edit_and_end_with_the_comment(visitor: Visitor) -> None:
    token = visitor.say()["edit_token"]
    visitor.say("reply", parent_id=1)
    visitor.post_json("/comment/like", {"id": 1})
    assert edit(visitor, token)["comment"]["likes"] == 1
    assert delete(visitor, token)["comment"]["likes"] == 0
    visitor.post_json("/comment/like", {"id": 1, "undo": True}, status=404)
    assert visitor.listing(view="threads", sort="likes")["comments"][0]["likes"] == 0


PERSON = {
    "nickname": "Nick-canary", "email": "mail-canary@example.com", "website": "https://web-canary/",
}  # fmt: skip
SECRETS = [*PERSON.values(), "old-canary", "new-canary", "223.5.5.77", "杭州"]


def file_of(app: App) -> bytes:
    """All bytes of the database, once what was written has gone into the file."""
    with closing(sqlite3.connect(inside.database_path(app))) as db:
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    return Path(inside.database_path(app)).read_bytes()


def found_in(app: App) -> list[str]:
    held = file_of(app)
    return [text for text in SECRETS if text.encode() in held]


@NO_LIMITS
@pytest.mark.parametrize("length", [1, 40, 140])
def test_what_is_edited_away_or_deleted_leaves_the_file(app: App, length: int) -> None:
    guest, other = Visitor(app, "223.5.5.77"), Visitor(app)
    said = [other.say("x" * (n * 37 % 900 + 1), page_url=f"/{n % 3}") for n in range(30)]
    token = guest.say("old-canary 很久 " * length, **PERSON)["edit_token"]
    said += [other.say("x" * (n * 53 % 900 + 1), parent_id=31) for n in range(30)]
    assert found_in(app) == [text for text in SECRETS if text != "new-canary"]
    edit(guest, token, "new-canary", of=31)
    assert found_in(app) == [text for text in SECRETS if text != "old-canary"]
    for each in said[::2]:  # neighbours that come and go
        delete(other, each["edit_token"], of=each["comment"]["id"])
    delete(guest, token, of=31)
    assert found_in(app) == []


@pytest.mark.slow
def test_a_minute_later_what_was_erased_is_in_no_file_of_a_running_service(
    visitor: Visitor, app: App, outside: Outside
) -> None:
    token = visitor.say("Trinkgeldverordnung", nickname="Kunigunde")["edit_token"]
    delete(visitor, token)
    outside.time += 61
    app.tick()
    files = [*Path(inside.database_path(app)).parent.glob("commentd.db*")]
    # By another process: whoever opens and closes a database drops its locks.
    held = subprocess.run(["cat", *files], capture_output=True, check=True).stdout
    assert [word for word in (b"Trinkgeld", b"Kunigunde") if word in held] == []


def test_of_a_deleted_comment_its_place_and_time_are_left(
    ann: Visitor, db: sqlite3.Connection
) -> None:
    ann.extra_environ["REMOTE_ADDR"] = "223.5.5.77"
    ann.say("root", website="https://a.example")
    ann.say(parent_id=1, website="https://a.example")
    edit(ann, of=2)
    ann.post_json("/comment/like", {"id": 2})
    db.execute("UPDATE comment SET pinned = 1 WHERE id = 2")
    delete(ann, of=2)
    assert db.execute("SELECT count(*) FROM comment_liker").fetchone() == (0,)
    names = [column[1] for column in db.execute("PRAGMA table_info(comment)")]
    row = dict(zip(names, db.execute("SELECT * FROM comment WHERE id = 2").fetchone(), strict=True))
    left = {name: value for name, value in row.items() if value not in ("", 0, None)}
    place = {"id": 2, "page_id": 1, "parent_id": 1, "thread_id": 1}
    assert left == {**place, "status": "deleted", "masked": 1, "created_at": START}


# Closed pages, pinned comments


def test_a_closed_page_takes_no_comments_but_shows_what_it_has(
    ann: Visitor, db: sqlite3.Connection
) -> None:
    ann.say()
    db.execute("UPDATE page SET closed = 1")
    for _ in range(9):  # which takes nothing of the budget
        assert ann.say("oh", status=403) == CLOSED
    assert ann.say("reply", parent_id=1, status=403) == CLOSED
    assert ann.say("oh", page_url=PAGE + "index.html#top", status=403) == CLOSED
    ann.authorization = None
    assert ann.say("oh", status=403) == CLOSED
    listing = ann.listing(view="threads")
    assert [c["content"] for c in listing["comments"]] == ["hi"]
    assert listing["settings"]["closed"] is True
    assert ann.listing()["total"] == 1
    assert ann.listing(view="threads", url="/open/")["settings"]["closed"] is False
    ann.say("oh", page_url="/open/")
    db.execute("UPDATE page SET closed = 0")
    ann.say("oh")


def test_on_a_closed_page_likes_edits_and_deletions_go_on(
    ann: Visitor, db: sqlite3.Connection
) -> None:
    ann.say("mine")
    account, ann.authorization = ann.authorization, None
    token = ann.say()["edit_token"]
    db.execute("UPDATE page SET closed = 1")
    assert ann.post_json("/comment/like", {"id": 1}).json["likes"] == 1
    assert ann.post_json("/page/like", {"page_url": PAGE}).json["page_likes"] == 1
    assert edit(ann, token, of=2)["comment"]["content"] == "ho"
    assert delete(ann, token, of=2)["comment"]["deleted"]
    ann.authorization = account
    assert edit(ann)["comment"]["content"] == "ho"
    assert delete(ann)["comment"]["deleted"]


@ALTCHA
def test_a_retry_is_answered_though_the_page_was_closed_meanwhile(
    visitor: Visitor, db: sqlite3.Connection
) -> None:
    token = solved(visitor)
    made = visitor.say(captcha_token=token)
    db.execute("UPDATE page SET closed = 1")
    assert visitor.say(captcha_token=token) == made


@ALTCHA
def test_a_closed_page_spends_no_captcha(visitor: Visitor, db: sqlite3.Connection) -> None:
    visitor.say(captcha_token=solved(visitor))
    db.execute("UPDATE page SET closed = 1")
    captcha = solved(visitor)
    visitor.say("oh", captcha_token=captcha, status=403)
    visitor.say("oh", captcha_token=captcha, page_url="/open/")


def test_a_pinned_comment_says_so_wherever_it_is_shown(
    visitor: Visitor, db: sqlite3.Connection
) -> None:
    tokens = [visitor.say(str(n), parent_id=n or None)["edit_token"] for n in range(3)]
    db.execute("UPDATE comment SET pinned = 1 WHERE id = 2")
    flat = visitor.listing(sort="oldest")["comments"]
    assert [c["pinned"] for c in flat] == [False, True, False]
    (root,) = visitor.listing(view="threads")["comments"]
    assert [c["pinned"] for c in (root, *root["replies"])] == [False, True, False]
    assert edit(visitor, tokens[1], of=2)["comment"]["pinned"] is True


# From where


@pytest.mark.parametrize("settings", [TWO_BLOGS])
@VERBS
def test_pages_of_other_sites_edit_and_delete_nothing(visitor: Visitor, verb: str) -> None:
    body = {"content": "ho", "edit_token": visitor.say()["edit_token"]}
    write = visitor.patch_json if verb == "edit" else visitor.delete_json
    for origin in (FOREIGN, "null", BLOG + ".evil.example"):
        r = write("/comments/1", body, headers={"Origin": origin}, status=403)
        assert r.json["code"] == "origin_refused"
        assert "Access-Control-Allow-Origin" not in r.headers
    r = write("/comments/1", body, headers={"Origin": BLOG})
    assert r.headers["Access-Control-Allow-Origin"] == BLOG


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("settings", "origin", "allowed"),
    [({}, FOREIGN, "*"), (TWO_BLOGS, BLOG, BLOG), (TWO_BLOGS, FOREIGN, None)],
)
def test_browsers_are_told_that_they_may_ask_for_it(
    visitor: Visitor, origin: str, allowed: str | None, method: str
) -> None:
    asks = {"Origin": origin, "Access-Control-Request-Method": method}
    reply = visitor.options("/comments/1", headers=asks, status=204)
    assert reply.headers.get("Access-Control-Allow-Origin") == allowed
    assert method in reply.headers["Access-Control-Allow-Methods"].split(", ")


# At once


@pytest.mark.slow
def test_of_edits_and_deletions_at_once_each_is_whole(tmp_path: Path) -> None:
    with services(tmp_path) as start, ThreadPoolExecutor(16) as threads:
        service = start()

        def ask(method: str, content: str = "", of: int = 1) -> Any:
            body = {"content": content, "edit_token": tokens[of]}
            return service.ask(method, f"/comments/{of}", body=body)

        def said(content: str) -> str:
            token: str = service.ask("POST", "/comments", body=COMMENT | {"content": content}).json[
                "edit_token"
            ]
            return token

        tokens = {n: said(str(n)) for n in (1, 2, 3)}
        texts = [f"text {n} " * (n + 1) for n in range(16)]
        edits = list(threads.map(lambda text: ask("PATCH", text), texts))
        assert [answer.json["comment"]["content"] for answer in edits] == [t.strip() for t in texts]
        shown = service.ask("GET", f"/comments?url={PAGE}&sort=oldest").json["comments"][0]
        assert shown in [
            {name: value for name, value in answer.json["comment"].items() if name != "status"}
            for answer in edits
        ]
        deletions = list(threads.map(lambda _: ask("DELETE", of=2), range(16)))
        assert Counter(answer.status for answer in deletions) == {200: 1, 404: 15}
        mixed = list(threads.map(lambda n: ask(("PATCH", "DELETE")[n == 7], f"{n}", 3), range(16)))
        assert {answer.status for answer in mixed} <= {200, 404}
        assert mixed[7].status == 200
        listing = service.ask("GET", f"/comments?url={PAGE}").json
        assert (listing["total"], [c["id"] for c in listing["comments"]]) == (1, [1])
        with closing(sqlite3.connect(service.path)) as db:
            sql = "SELECT DISTINCT content || html || nickname FROM comment WHERE id > 1"
            assert db.execute(sql).fetchall() == [("",)]
