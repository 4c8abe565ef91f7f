"""POST /comments: what may be written, by whom, how often, and what is kept of it."""

import json
import logging
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
import webtest

from commentd import App, Config, make_app, masked
from support import inside
from support.client import PAGE, Visitor
from support.comments import NO_LIMITS, SHOWN, at_once, solved
from support.world import START, FakeWorld

BODY = {"page_url": PAGE, "nickname": "Ann", "content": "hi", "captcha_token": "x"}


WITH_CAPTCHA = pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}])
NEW = {"success": True, "comment": {**SHOWN, "status": "visible"}}


def poster(app: App, ip: str = "203.0.113.7", **fields: Any) -> Callable[[], Any]:
    """A request for another thread, which the invariants can't judge while others write."""
    client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": ip})
    return lambda: client.post_json("/comments", BODY | fields, expect_errors=True)


# What is written is what is read


def test_a_guests_comment_is_answered_and_listed_with_these_fields(visitor: Visitor) -> None:
    posted = visitor.say()
    assert re.fullmatch("[0-9a-f]{32}", posted.pop("edit_token"))
    assert posted == NEW
    assert visitor.listing()["comments"] == [SHOWN]


def test_a_signed_in_author_may_leave_out_the_nickname(ann: Visitor) -> None:
    body = {name: value for name, value in BODY.items() if name != "nickname"}
    mine = {**SHOWN, "user_id": 1, "role": "user"}
    response = ann.post_json("/comments", body).json
    assert response == {"success": True, "comment": {**mine, "status": "visible"}}
    ann.say("hi again", nickname="Annie")
    assert [c["nickname"] for c in ann.listing()["comments"]] == ["Annie", "Ann"]
    ann.authorization = None
    ann.post_json("/comments", body | {"content": "me too"}, status=400)


def test_fields_of_a_comment_that_nobody_may_set_are_ignored(visitor: Visitor) -> None:
    wishes = BODY | {
        "id": 99,
        "user_id": 1,
        "role": "admin",
        "status": "waiting",
        "likes": 9,
        "ip": "8.8.8.8",
        "location": "北京",
        "country": "CN",
        "created_at": "2001-01-01 00:00:00",
        "html": "<b>",
        "pinned": True,
        "thread_id": 7,
        "deleted": True,
        "verified": True,
        "page_id": 3,
        "edited": "2001-01-01 00:00:00",
        "edited_at": 1,
        "edit_token": "x",
        "closed": True,
    }
    response = visitor.post_json("/comments?status=spam&user_id=1&role=admin", wishes).json
    assert response.pop("edit_token") != "x"
    assert response == {"success": True, "comment": {**SHOWN, "status": "visible"}}


def test_the_email_of_a_guest_never_leaves(visitor: Visitor, db: sqlite3.Connection) -> None:
    posted = visitor.say(email=" Ann@Example.COM ", website=" https://ann.example/me?a=b#c ")
    shown = {**SHOWN, "website": "https://ann.example/me?a=b#c"}
    assert posted["comment"] == {**shown, "status": "visible"}
    assert db.execute("SELECT email FROM comment").fetchall() == [("ann@example.com",)]
    for view in ("flat", "threads"):
        assert "@" not in json.dumps(visitor.listing(view=view))


@NO_LIMITS
def test_the_text_of_a_comment_is_kept_but_for_blanks_around_it(visitor: Visitor) -> None:
    cases = {
        "  hi \n": "hi",
        "a\r\nb\tc\n\nd": "a\nb\tc\n\nd",
        "𝄞" * 2000: "𝄞" * 2000,
        " \r\n" + "x" * 2000 + "\r\n ": "x" * 2000,
        "a\r\n" * 1000: ("a\n" * 1000).strip(),
        "\n \n    code\n": "    code",
        "\tcode": "\tcode",
        "   hi": "hi",
        "\u3000\u3000hi\u3000": "hi",
        # What PowerPoint, Word, PDF viewers and old systems leave.
        "a\x0bb\x0cc\rd\x85e\u2028f\u2029g": "a\nb\nc\nd\ne\nf\ng",
        "a\x01b\x08c\x18d\x1b[31me\x7ff\x9fg": "abcd[31mefg",
        "\x0b\x02hi\x1f\x0c": "hi",
    }
    same = ("{0} %s \\ \" ' & <b>", "\u202eright\u200b", "👩‍💻")
    for sent, kept in [*cases.items(), *((text, text) for text in same)]:
        assert visitor.say(sent)["comment"]["content"] == kept


@pytest.mark.parametrize("settings", [{"comments_max_length": 3}])
def test_the_length_of_a_comment_counts_characters_after_trimming(visitor: Visitor) -> None:
    assert visitor.listing()["max_comment_length"] == 3
    for fits in (" 三个字\r\n", "a\r\nb", "🏳🌈👩"):
        visitor.say(fits)
    refusal = {"error": "评论内容过长", "code": "content_too_long"}
    for text in ("四个字了", "x" * 60_000):
        assert visitor.say(text, status=400) == refusal


def test_control_characters_are_removed_from_a_nickname(visitor: Visitor) -> None:
    names = {
        "Ann\x0bLee": "Ann Lee",
        "\u200fAnn\x1b\u200e": "Ann",
        "محمد\u200cعلی": "محمد\u200cعلی",
    }
    for sent, kept in names.items():
        assert visitor.say(nickname=sent)["comment"]["nickname"] == kept
    for name in ("nickname", "content"):
        fields: dict[str, Any] = {name: "a\0b"}
        assert visitor.say(status=400, **fields)["code"] == f"{name}_invalid"


UNFIT: dict[str, list[Any]] = {  # beside what is of a wrong type, missing or too long
    "page_url_invalid": [f"/a{c}b" for c in "\0\n\x7f\x85\u2028"],
    "nickname_invalid": ["  ", "\u200b\x1b", "x" * 65, "a\u202eb"],
    "parent_id_invalid": [0, 1.0, True, "1", 2**63],
    "email_invalid": ["ann@localhost", "ann@exаmple.com", "a b@c.de", "a\n@b.cd"],
    "email_too_long": ["a" * 250 + "@b.cd"],
    "website_invalid": ["ann", "//ann.example", "javascript:alert(1)", "http://a@b.cd"],
}


def test_a_refused_comment_has_a_code_and_does_not_count(visitor: Visitor) -> None:
    for code, values in UNFIT.items():
        name = re.sub("_(invalid|too_long)$", "", code)
        for value in values:
            refusal = visitor.post_json("/comments", BODY | {name: value}, status=400)
            assert refusal.json["code"] == code, value
            visitor.say("reply", parent_id=9, status=404)
    for name in BODY:
        body = {other: value for other, value in BODY.items() if other != name}
        refusal = visitor.post_json("/comments", body, status=400)
        assert refusal.json["code"] == f"{name}_missing"
    for number, empty in enumerate((None, "", None, "", None), 1):  # which may be left out
        posted = visitor.say(str(number), email=empty, website=empty, parent_id=None)["comment"]
        assert posted["id"] == number


# Whom it replies to, and where


def test_a_reply_must_be_on_the_same_page(visitor: Visitor) -> None:
    visitor.say("root")
    gone = {"error": "要回复的评论不存在", "code": "parent_gone"}
    assert visitor.say("reply", page_url="/other", parent_id=1, status=404) == gone
    assert visitor.say("reply", parent_id=2**63 - 1, status=404) == gone
    reply = visitor.say("reply", page_url=PAGE + "index.html?utm_source=x#end", parent_id=1)
    assert reply["comment"]["parent_id"] == 1


@NO_LIMITS
def test_a_reply_to_a_hidden_comment_is_refused(visitor: Visitor, app: App) -> None:
    for status in ("waiting", "spam", "deleted"):
        root = visitor.say(f"root {status}")["comment"]["id"]
        reply = visitor.say("reply", parent_id=root)["comment"]["id"]
        inside.set_status(app, root, status)
        visitor.say("another", parent_id=root, status=404)
        deeper = visitor.say("deeper", parent_id=reply)["comment"]
        assert deeper["parent_id"] == reply


def test_a_hidden_reply_without_replies_leaves_no_tombstone(visitor: Visitor, app: App) -> None:
    visitor.say("root")
    for text in ("hidden", "seen"):
        visitor.say(text, parent_id=1)
    for status in ("waiting", "spam", "deleted"):
        inside.set_status(app, 2, status)
        (root,) = visitor.listing(view="threads")["comments"]
        assert [reply["id"] for reply in root["replies"]] == [3]
        assert root["more_replies"] == 0
        for query in ({"thread": 1}, {"thread": 1, "around": 2}, {"thread": 1, "limit": 1}):
            assert [c["id"] for c in visitor.listing(**query)["comments"]] == [3]
        assert not re.search('id="comment-2"|canonical', visitor.get("/thread", {"url": PAGE}).text)


def test_spellings_of_a_page_share_its_comments_under_the_first(visitor: Visitor) -> None:
    spellings = [
        "https://blog.example/caf%C3%A9+1/?utm_source=a&b=1&fbclid=2#top",
        "/café%2b1/index.html?b=1",
        "HTTPS://Blog.Example:443/cafe\u0301+1?b=1&spm=x",
    ]
    for spelling in spellings:
        origin = {"Origin": "https://blog.example"}
        posted = visitor.say(spelling, page_url=spelling, headers=origin)["comment"]
        assert posted["page_url"] == "https://blog.example/caf%C3%A9+1/?b=1"
    assert visitor.listing(url="/café+1?b=1")["total"] == 3


# Who writes


@pytest.mark.parametrize("settings", [{"comments_login_required": True}])
def test_comments_without_an_account_are_refused_where_the_owner_requires_one(
    ann: Visitor, app: App
) -> None:
    ann.say("with an account")
    refusal = Visitor(app).say("without", status=401)
    assert refusal == {"error": "请先登录再评论", "code": "login_required"}


def test_guests_may_not_look_like_an_admin(
    visitor: Visitor, app: App, db: sqlite3.Connection
) -> None:
    db.execute(
        """INSERT INTO account (email, nickname, password, role, created_at)
           VALUES ('o@example.com', 'Pavel Ilin', 'x', 'admin', 0),
                  ('h@example.com', '山间', 'x', 'admin', 0),
                  ('e@example.com', 'Emma', 'x', 'admin', 0),
                  ('u@example.com', 'Maria', 'x', 'user', 0)"""
    )
    taken = {"error": "这个昵称和管理员的太像，请换一个", "code": "nickname_taken"}
    for name in ("Pavel Ilin", " Pavel_ilin ", "Рavel I1in", "Pavel Ilin (Author)", "𝐏𝐚𝐯𝐞𝐥 Ilin"):
        assert visitor.say(name, nickname=name, status=409) == taken, name
    for name in ("山间博主", "管理员山间", "Ernrna"):
        assert visitor.say(name, nickname=name, status=409) == taken, name
    for name in ("Pavel", "Pavel Ilina", "Maria", "Павел Ильин", "Paul (Ilin)"):
        visitor.say(name, nickname=name)
    Visitor(app, "198.51.100.9").say(nickname="山間")  # `help security` says so


def test_guests_may_not_take_the_nickname_of_an_admin_and_admins_see_ip_addresses(
    ann: Visitor, app: App, db: sqlite3.Connection
) -> None:
    db.execute("UPDATE account SET role = 'admin'")
    mine = {**SHOWN, "user_id": 1, "role": "admin"}
    assert ann.say()["comment"] == {**mine, "ip": "203.0.113.7", "status": "visible"}
    guest = Visitor(app, "198.51.100.9")
    guest.say("I am Ann", status=409)
    guest.say("I am not", nickname="Bob")
    assert [c["ip"] for c in ann.listing()["comments"]] == ["198.51.100.9", "203.0.113.7"]
    masked_ips = ["198.51.100.0", "203.0.113.0"]
    assert [c["ip"] for c in guest.listing()["comments"]] == masked_ips
    db.execute("UPDATE account SET role = 'user'")  # the token still says admin
    assert [c["ip"] for c in ann.listing()["comments"]] == masked_ips


# Once more


def test_the_same_comment_again_within_a_minute_is_the_first(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    first = visitor.say()
    del first["edit_token"]  # it is not for whoever says the same
    fake_world.time += 59
    for _ in range(9):  # which takes nothing of the rate limit
        assert visitor.say(" hi\r\n") == first
    for number, seconds in enumerate((2, -3600), 2):  # a clock that is set back makes none
        fake_world.time += seconds
        assert visitor.say()["comment"]["id"] == number
    assert visitor.listing()["total"] == 3


def test_a_comment_that_differs_in_any_field_is_another_comment(ann: Visitor, app: App) -> None:
    first = ann.say("of an account")
    ann.extra_environ["REMOTE_ADDR"] = "2001:db8::9"  # the phone has left the house
    assert ann.say("of an account") == first
    visitor = Visitor(app, "198.51.100.8")
    visitor.say()
    differing: list[dict[str, Any]] = [
        {"content": "ho"},
        {"nickname": "Bob"},
        {"page_url": "/other"},
        {"parent_id": 2},
    ]
    for number, other in enumerate(differing, 3):
        assert visitor.say(**other)["comment"]["id"] == number
    assert Visitor(app, "198.51.100.9").say()["comment"]["id"] == 7  # another guest of the name


@pytest.mark.parametrize(
    "settings",
    [{"captcha_provider": "altcha"}, {"captcha_provider": "altcha", "limits_enabled": False}],
)
def test_a_retry_with_a_spent_captcha_token_finds_its_comment(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    visitor.say(captcha_token="x", status=403)
    token = solved(visitor)
    visitor.say("reply", captcha_token=token, parent_id=9, status=404)  # spends nothing
    first = visitor.say(captcha_token=token)
    fake_world.time += 120  # beyond the minute of doubles
    assert visitor.say(captcha_token=token) == first
    failed = {"error": "人机验证已用过，请重试", "code": "captcha_failed"}
    for other in ({"content": "ho"}, {"nickname": "Bob"}, {"page_url": "/b"}, {"parent_id": 1}):
        assert visitor.say(captcha_token=token, status=403, **other) == failed
    form, late = {"edit_token": first["edit_token"]}, solved(visitor)
    visitor.delete_json("/comments/1", form)
    assert visitor.say(captcha_token=token, status=403)["code"] == "captcha_failed"
    inside.sql(app, "UPDATE page SET closed = 1")
    assert visitor.say(captcha_token=late, status=403)["code"] == "page_closed"
    assert visitor.say(captcha_token=late, page_url="/open/")["success"]  # it was not spent


@WITH_CAPTCHA
def test_a_retry_does_not_reveal_the_status_of_a_comment(visitor: Visitor, app: App) -> None:
    token = solved(visitor)
    visitor.say(captcha_token=token)
    inside.set_status(app, 1, "spam")
    assert "spam" not in json.dumps(visitor.say(captcha_token=token, status="*"))
    double = visitor.say(captcha_token=solved(visitor))
    assert double["comment"]["id"] == 1


# Whence

PLACES = {
    **dict.fromkeys(("223.5.5.5", "::ffff:223.5.5.5"), ("223.5.5.0", "CN", "浙江 杭州")),
    "2001:4860:4860::8888": ("2001:4860:4860::", "US", "美国"),
    "192.168.1.20": ("192.168.1.0", "", ""),
    "fe80::1%eth0": ("fe80::", "", ""),
    "localhost": ("", "", ""),
}


@pytest.mark.parametrize("settings", [{}, {"privacy_show_location": False}])
def test_a_comment_has_the_location_of_its_ip_address(app: App, settings: dict[str, Any]) -> None:
    for number, (ip, (seen, country, location)) in enumerate(PLACES.items(), 1):
        there = {"id": number, "ip": seen, "country": country, "location": location}
        if settings:
            there |= {"country": "", "location": ""}
        visitor = Visitor(app, ip)
        posted = visitor.say(f"{number}")["comment"]
        written = {**SHOWN, **there, "content": f"{number}", "html": f"<p>{number}</p>\n"}
        assert posted == {**written, "status": "visible"}, ip
        assert visitor.listing()["comments"][0] == written


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({}, {"203.0.113.0", "2001:db8:12::"}),
        ({"privacy_show_ip": "full"}, {"203.0.113.7", "2001:db8:12:34::1"}),
        ({"privacy_show_ip": "none"}, {""}),
    ],
)
def test_readers_see_as_much_of_an_ip_address_as_the_owner_sets(
    visitor: Visitor, seen: set[str]
) -> None:
    visitor.say()
    visitor.extra_environ["REMOTE_ADDR"] = "2001:db8:12:34::1"
    visitor.say("six")
    assert {c["ip"] for c in visitor.listing()["comments"]} == seen


# Which proxies are named, who connects, and whom X-Forwarded-For means.
PROXIES: dict[tuple[str, ...], list[tuple[str, str, str]]] = {
    ("10.0.0.1/32",): [("203.0.113.7", "198.51.100.1", "203.0.113.7")],
    ("127.0.0.1/32",): [
        ("::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "1.1.1.1, 8.8.8.8,198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "[2001:DB8:0::1]:4711", "2001:db8::1"),
        ("127.0.0.1", "198.51.100.1, junk", ""),
        ("127.0.0.1", "", "6.6.6.6"),  # it said X-Real-IP
    ],
    ("127.0.0.1/32", "10.0.0.0/8"): [
        ("127.0.0.1", "1.1.1.1, 198.51.100.1, 10.0.0.3", "198.51.100.1")
    ],
}


def test_only_a_trusted_proxy_says_the_ip_address_of_a_client(
    config: Config, fake_world: FakeWorld
) -> None:
    others = ("X-Real-IP", "CF-Connecting-IP", "True-Client-IP", "Client-IP")
    headers = dict.fromkeys(others, "6.6.6.6") | {"Forwarded": "for=6.6.6.6"}
    shown = replace(config, privacy_show_ip="full", limits_enabled=False)
    walks = [(config.server_listen, *each) for each in PROXIES.items()]
    for named, ip in ((("unix",), "198.51.100.1"), ((), "")):  # behind a socket file
        walks.append(("unix:/run/c", named, [("localhost", "198.51.100.1", ip)]))
    for listen, proxies, cases in walks:
        there = replace(shown, server_trusted_proxy=proxies, server_listen=listen)
        with closing(make_app(there, fake_world.world, rounds=1)) as app:
            for peer, forwarded, ip in cases:
                posted = Visitor(app, peer).say(headers=headers | {"X-Forwarded-For": forwarded})
                assert posted["comment"]["ip"] == ip, (proxies, peer, forwarded)


@pytest.mark.parametrize(
    ("peer", "named", "each"),
    [
        ("127.0.0.1", "127.0.0.1", 5),
        ("172.17.0.1", "172.17.0.1, if that is yours", 1),
        ("100.64.0.1", "100.64.0.1, if that is yours", 1),
        ("fe80::1", "fe80::1, if that is yours", 1),
    ],
)
def test_visitors_behind_an_unnamed_proxy_share_loose_limits_and_the_log_says_so_once(
    app: App, caplog: pytest.LogCaptureFixture, peer: str, named: str, each: int
) -> None:
    """Twenty clients write `each` comments. If these are not all that they may write in a minute,
    the rest is counted without comments."""
    proxy = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": peer})
    assert '"trusted_proxy"' not in proxy.get("/").text
    for i in range(20):
        headers = {"X-Forwarded-For": f"6.6.6.6, 198.51.100.{i}"}
        for n in range(each):
            body = BODY | {"content": f"{i} {n}", "page_url": f"/{i}"}
            posted = proxy.post_json("/comments", body, headers=headers)
    inside.sql(app, "UPDATE rate_limit SET used = used * 5 / ? WHERE name = 'comment'", each)
    assert posted.json["comment"]["ip"] == masked(peer)
    invented = {"X-Real-IP": "198.51.100.99"}
    Visitor(app, peer).say("a reader who makes up IP addresses", headers=invented, status=429)
    assert '"trusted_proxy"' in proxy.get("/").text
    lines = [r for r in caplog.records if "trusted_proxy" in r.getMessage()]
    assert [r.levelno for r in lines] == [logging.WARNING]
    assert lines[0].getMessage().endswith(f"set [server] trusted_proxy = {named}")


@pytest.mark.parametrize(
    "settings", [{"server_trusted_proxy": (proxy,)} for proxy in ("10.0.0.1", "unix")]
)
def test_where_a_proxy_is_named_no_other_one_in_the_network_stands_for_many(app: App) -> None:
    reader = Visitor(app, "172.17.0.1")
    for number in range(6):
        headers = {"X-Forwarded-For": f"198.51.100.{number}"}
        reader.say(f"{number}", headers=headers, status=200 if number < 5 else 429)


def test_an_unnamed_proxy_is_noted_once_an_hour_for_the_check(
    app: App, fake_world: FakeWorld
) -> None:
    def noted() -> list[Any]:
        return inside.sql(app, "SELECT time FROM state WHERE name = 'unnamed_proxy'")

    proxy = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "127.0.0.1"})
    app.tick()
    assert noted() == []
    proxy.get("/comments?url=/", headers={"X-Forwarded-For": "198.51.100.1"})
    app.tick()
    first = inside.now(app)
    fake_world.time += 3599
    app.tick()
    assert noted() == [(first,)]
    fake_world.time += 1
    app.tick()
    assert noted() == [(first + 3600,)]


def test_without_a_forwarding_header_a_peer_is_a_client_like_others(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    visitor = Visitor(app, "127.0.0.1")
    for i in range(5):
        visitor.say(str(i))
    visitor.say("the sixth", status=429)
    assert [r for r in caplog.records if "trusted_proxy" in r.getMessage()] == []


# How often


def test_a_client_may_write_five_comments_a_minute_and_sixty_an_hour(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    def refusal() -> tuple[Any, int]:
        late = visitor.post_json("/comments", BODY, status=429)
        return late.json, int(late.headers["Retry-After"])

    too_many = {"error": "操作太频繁，请稍后再试", "code": "too_many"}
    for i in range(60):
        if i == 5:
            assert refusal() == (too_many, 60)
            assert visitor.say("4")["comment"]["id"] == 5  # a double is none more
            Visitor(visitor.served, "203.0.113.8").say("the neighbour")
            fake_world.time += 59
            assert refusal() == (too_many, 1)
            fake_world.time += 1
        elif i and i % 5 == 0:
            fake_world.time += 60
        visitor.say(f"{i}")
    fake_world.time += 60
    assert refusal() == (too_many, 3600 - 12 * 60)
    fake_world.time = START + 3600
    visitor.say()


def test_an_owner_who_switches_limits_off_frees_those_who_wait(
    visitor: Visitor, config: Config, fake_world: FakeWorld
) -> None:
    for number in range(5):
        visitor.say(f"{number}")
    visitor.say("a sixth", status=429)
    visitor.served.close()
    unlimited = replace(config, limits_enabled=False)
    with closing(make_app(unlimited, fake_world.world, rounds=1)) as app:
        Visitor(app).say("a sixth")


def test_an_ipv6_household_is_one_client_and_a_provider_counts_as_ten(app: App) -> None:
    at = [f"2001:db8:12:{net:x}::{host}" for net in range(10) for host in range(1, 6)]
    for i, ip in enumerate(at):
        Visitor(app, ip).say(str(i))
    Visitor(app, "2001:db8:12:9:ffff::6").say("a sixth of one house", status=429)
    Visitor(app, "2001:db8:12:a::1").say("the 51st of one provider", status=429)
    Visitor(app, "2001:db8:13::1").say("another provider")
    for i in range(5):
        Visitor(app, "203.0.113.7").say(str(i))
    Visitor(app, "::ffff:203.0.113.7").say("a mapped address is the same client", status=429)


def test_the_limit_of_five_comments_a_minute_holds_however_many_come_at_once(
    visitor: Visitor, app: App
) -> None:
    replies = at_once([poster(app, content=str(i)) for i in range(20)])
    assert Counter(r.status_int for r in replies) == {200: 5, 429: 15}
    assert visitor.listing()["total"] == 5
