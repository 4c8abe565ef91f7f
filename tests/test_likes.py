"""POST /comment/like and /page/like: one for each visitor, however often."""

import sqlite3
from typing import Any

import pytest

from commentd import App
from support import inside
from support.client import PAGE, Visitor
from support.comments import NO_LIMITS
from support.world import START, FakeWorld

BOTH = ("comment", "page")
TOO_MANY = {"error": "操作太频繁，请稍后再试", "code": "too_many"}


def body_of(target: str, **fields: Any) -> dict[str, Any]:
    return ({"id": 1} if target == "comment" else {"page_url": PAGE}) | fields


def like(visitor: Visitor, target: str = "comment", status: int = 200, **fields: Any) -> Any:
    return visitor.post_json(f"/{target}/like", body_of(target, **fields), status=status).json


def refusal(visitor: Visitor, target: str = "comment") -> tuple[Any, int]:
    """What a like beyond a limit is told, and after how many seconds to try again."""
    response = visitor.post_json(f"/{target}/like", body_of(target), status=429)
    return response.json, int(response.headers["Retry-After"])


def response(target: str, count: int, liked: bool = True) -> dict[str, Any]:
    return {
        "success": True,
        "likes" if target == "comment" else "page_likes": count,
        "liked": liked,
    }


def count_of(visitor: Visitor, target: str) -> Any:
    listing = visitor.listing()
    return listing["comments"][0]["likes"] if target == "comment" else listing["page_likes"]


@pytest.mark.parametrize("settings", [{}, {"limits_enabled": False}])
def test_a_visitor_likes_once_and_may_take_it_back(visitor: Visitor) -> None:
    visitor.say()
    for target in BOTH:
        for undo, count in [(True, 0), (False, 1), (False, 1), (True, 0), (False, 1)]:
            assert like(visitor, target, undo=undo) == response(target, count, not undo)
            assert count_of(visitor, target) == count
    assert "liked" not in visitor.listing()["comments"][0]


def test_accounts_and_guests_like_each_for_themselves(ann: Visitor, app: App) -> None:
    ann.say()
    for target in BOTH:
        assert like(ann, target) == response(target, 1)
    ann.extra_environ["REMOTE_ADDR"] = "198.51.100.1"
    ann.extra_environ["HTTP_USER_AGENT"] = "the account's other browser"
    guest = Visitor(app)
    for target in BOTH:
        assert like(ann, target) == response(target, 1)
        assert like(guest, target) == response(target, 2)
        assert like(Visitor(app, HTTP_USER_AGENT="another"), target) == response(target, 3)
        assert like(Visitor(app, "203.0.113.8"), target) == response(target, 4)
        assert like(guest, target, undo=True) == response(target, 3, False)
        assert count_of(ann, target) == 3
        headers = {"Authorization": "Bearer a.b.c"}  # an invalid token does not like
        guest.post_json(f"/{target}/like", body_of(target), headers=headers, status=401)


def test_likes_count_one_browser_in_one_household_as_one_visitor(
    visitor: Visitor, app: App
) -> None:
    visitor.say()
    for ip, count in [("2001:db8::1", 1), ("2001:db8::2", 1), ("2001:db8:0:1::1", 2)]:
        assert like(Visitor(app, ip)) == response("comment", count)
    names = {"x" * 512: 3, "x" * 512 + "y": 3, "x" * 9000: 3, "y" + "x" * 511: 4}
    for name, count in names.items():
        assert like(Visitor(app, HTTP_USER_AGENT=name)) == response("comment", count)


def test_a_like_keeps_no_ip_address_nor_browser(visitor: Visitor, db: sqlite3.Connection) -> None:
    visitor.say()
    visitor.extra_environ["HTTP_USER_AGENT"] = "Browser/1"
    for target in BOTH:
        like(visitor, target)
    kept = db.execute("SELECT visitor FROM comment_liker UNION SELECT visitor FROM page_liker")
    for (word,) in kept.fetchall():
        assert len(word) == 32
        assert int(word, 16)


@NO_LIMITS
def test_a_like_names_its_comment(visitor: Visitor) -> None:
    visitor.say()
    for form, code in (
        ({}, "id_missing"),
        ({"id": None}, "id_missing"),
        ({"id": 0}, "id_invalid"),
        ({"id": "1"}, "id_invalid"),
    ):
        assert visitor.post_json("/comment/like", form, status=400).json["code"] == code, form


def test_a_hidden_or_unknown_comment_can_not_be_liked(visitor: Visitor, app: App) -> None:
    visitor.say()
    like(visitor)
    visitor.say("reply", parent_id=1)  # so that a tombstone is shown
    gone = {"error": "评论不存在", "code": "comment_gone"}
    for hidden in ("waiting", "spam", "deleted"):
        inside.set_status(app, 1, hidden)
        for undo in (False, True):
            for number in (1, 99, 2**63 - 1):
                assert like(visitor, status=404, undo=undo, id=number) == gone


def test_a_page_is_liked_by_any_spelling_and_either_name(visitor: Visitor, app: App) -> None:
    assert like(visitor, "page", page_url="/new/?utm_source=x") == response("page", 1)
    other = Visitor(app, "203.0.113.8")
    liked = other.post_json("/page/like", {"url": "/new/index.html"})
    assert liked.json == response("page", 2)
    counts = {"page_url": "/new", "total": 0, "views": 0, "page_likes": 2}
    assert visitor.get("/pages", {"url": "/new"}).json == {"pages": [counts]}
    unknown = response("page", 0, False)
    assert like(visitor, "page", page_url="/unknown/", undo=True) == unknown


def test_a_visitor_may_like_ten_times_a_minute(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    visitor.say()
    for i in range(10):
        like(visitor, "comment" if i % 2 else "page", undo=i % 3 == 0)
    for target in BOTH:
        assert refusal(visitor, target) == (TOO_MANY, 60)
    like(Visitor(app, "203.0.113.8"))
    fake_world.time += 60
    like(visitor)


def test_one_ip_address_may_like_a_comment_twenty_times_a_day(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    visitor.say()
    visitor.say("two")
    for i in range(20):
        visitor.extra_environ["HTTP_USER_AGENT"] = f"Browser/{i}"  # it is free to choose
        assert like(visitor)["likes"] == i + 1
        fake_world.time += 60
    assert refusal(visitor) == (TOO_MANY, 86400 - 20 * 60)
    like(visitor, id=2)
    fake_world.time = START + 86400
    like(visitor)


def test_all_visitors_together_may_like_two_thousand_times_an_hour(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    visitor.say()
    inside.use_up(app, "all_likes", 1998)
    too_many = {"error": "点赞的人太多，请稍后再试", "code": "too_many"}
    for target in BOTH:
        like(visitor, target)
    for target in BOTH:
        assert refusal(Visitor(app, "198.51.100.1"), target) == (too_many, 3600)
    fake_world.time += 3600
    like(visitor)
