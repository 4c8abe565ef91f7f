"""What is held, blocked, closed, pinned and purged, and how little of it readers can tell."""

import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import webtest

from commentd import App, Config, main, make_app, masked
from support import inside
from support.admin import (
    OWNER,
    block,
    change,
    do,
    drop,
    held,
    ids,
    moderate,
    new_admin,
    pages,
    pin,
    queue,
    rows,
    shown,
    with_settings,
)
from support.admin import owner as owner  # a fixture
from support.client import CANARY, PAGE, Visitor, stranger
from support.comments import solved
from support.world import START, FakeWorld

MINUTE, HOUR, DAY = 60, 3600, 86400
CLOSED = {"error": "这里的评论已关闭", "code": "page_closed"}
STATES = ("waiting", "spam", "deleted")
MOST_HOSTS = 30  # whose names are looked up


# What waits


@with_settings(moderation_hold="none")
def test_no_comment_waits_by_default(visitor: Visitor, owner: Visitor) -> None:
    posted = visitor.say("see https://x.example", website="https://y.example")
    assert (posted["comment"]["status"], held(owner)) == ("visible", ("visible", ""))


@with_settings(moderation_hold="all")
def test_all_comments_but_those_of_admins_wait_if_the_owner_wants(
    ann: Visitor, owner: Visitor, app: App
) -> None:
    for who in (ann, Visitor(app)):
        posted = who.say(f"by {who}")
        assert posted["comment"]["status"] == "waiting"
        assert held(owner) == ("waiting", "all")
    assert shown(ann) == []
    assert owner.widget.say("mine", nickname="")["comment"]["status"] == "visible"
    assert shown(ann) == [3]
    moderate(owner, [1, 2], "visible")
    assert shown(ann) == [3, 2, 1]
    assert ann.listing(view="threads")["settings"]["hold"] == "all"


LINKS = [
    ("see https://x.example", "links"),
    ("[x](http://x.example/)", "links"),
    ("<https://x.example>", "links"),
    ("![picture](https://x.example/a.png)", "links"),
    ("[write](mailto:a@x.example)", "links"),
    ("[x][1]\n\n[1]: https://x.example", "links"),
    ("no link: x.example, `https://x.example`, <a href='https://x.example'>", ""),
    ("1 <a 2", ""),
]


@with_settings(moderation_hold="links")
def test_comments_with_links_wait_if_the_owner_wants(ann: Visitor, owner: Visitor) -> None:
    for text, why in LINKS:
        ann.say(text)
        assert held(owner) == ("waiting" if why else "visible", why), text
    ann.say("hi", website="https://x.example")  # a website is a link too
    assert held(owner) == ("waiting", "links")
    ann.say("ho")
    assert held(owner) == ("visible", "")


@with_settings(moderation_hold="first")
def test_the_first_comment_of_each_author_waits_if_the_owner_wants(
    ann: Visitor, owner: Visitor, app: App
) -> None:
    home, train = Visitor(app, ip="192.0.2.1"), Visitor(app, ip="192.0.2.2")
    number = 0

    def says(who: Visitor, **fields: Any) -> str:
        nonlocal number
        number += 1
        who.say(f"number {number}", **fields)
        return held(owner)[1]

    lu = {"nickname": "Lu", "email": "lu@example.cn"}
    assert says(home, **lu) == "first"
    assert says(home, **lu) == "first"  # the one that waits does not count
    moderate(owner, [1], "spam")
    assert says(home, **lu) == "first"
    moderate(owner, [2], "visible")
    assert says(home, **lu) == ""
    assert says(home, nickname="Lu") == ""  # by name and address
    assert says(train, **lu) == "first"  # anybody may type an e-mail
    assert says(Visitor(app, ip="192.0.2.3"), nickname="Lu") == "first"
    assert says(home, nickname="Xun") == "first"
    assert says(home, nickname="Xun", email="lu@example.cn") == "first"
    assert says(ann, nickname="Lu") == "first"  # an account is not the guest of that name
    moderate(owner, [10], "visible")
    assert says(ann, nickname="Another") == ""
    moderate(owner, [10, 11], "deleted")
    assert says(ann) == "first"


WORDS = [
    ({"content": "a CASINO here"}, "word: Casino"),
    ({"content": "ｃａｓｉｎｏ"}, "word: Casino"),
    ({"content": "casinos"}, "word: Casino"),
    ({"nickname": "casino-1"}, "word: Casino"),
    ({"website": "https://Casino.example/"}, "word: Casino"),
    ({"content": "weight\n\tLOSS"}, "word: Weight  loss"),
    ({"content": "ＶＩＡＧＲＡ"}, "word: viagra"),
    ({"content": "STRASSE"}, "word: Straße"),
    ({"content": "免费送"}, "word: 免费送"),
    ({"content": "cas ino"}, ""),
    ({"content": "weightloss"}, ""),
    ({"content": "免费 送"}, ""),
]


@with_settings(moderation_words=("Casino", "Weight  loss", "viagra", "Straße", "免费送"))
def test_comments_with_a_word_wait_in_any_case_and_width(visitor: Visitor, owner: Visitor) -> None:
    for number, (fields, why) in enumerate(WORDS):
        comment: dict[str, Any] = {"content": f"No. {number}", **fields}
        visitor.say(**comment)
        assert held(owner) == ("waiting" if why else "visible", why), fields


OF_FIELDS = ("name: vip", "website: .example", "Email：@spam.cn", "text: hello", "page: /guests/")
BY_FIELD = [
    ({"nickname": "V.I.P. vip-1"}, "word: name: vip"),
    ({"content": "a vip", "email": "vip@ok.cn", "website": "https://vip.cn"}, ""),
    ({"website": "https://shop.EXAMPLE"}, "word: website: .example"),
    ({"content": "see shop.example", "nickname": "a.example"}, ""),
    ({"email": "bob@spam.cn"}, "word: Email：@spam.cn"),
    ({"content": "bob@spam.cn", "nickname": "@spam.cn"}, ""),
    ({"content": "why, HEL**LO**"}, "word: text: hello"),
    ({"nickname": "Hello", "website": "https://hello.cn"}, ""),
    ({"page_url": "/guests"}, "word: page: /guests/"),
    ({"page_url": "https://blog.example/guest%73/?utm_source=x"}, "word: page: /guests/"),
    ({"content": "at /guests/", "page_url": "/about/"}, ""),
]


@with_settings(moderation_words=OF_FIELDS)
def test_a_word_of_one_field_holds_by_that_field_alone(visitor: Visitor, owner: Visitor) -> None:
    for number, (fields, why) in enumerate(BY_FIELD):
        comment: dict[str, Any] = {"content": f"No. {number}", "nickname": f"Bo {number}", **fields}
        visitor.say(**comment)
        assert held(owner) == ("waiting" if why else "visible", why), fields


def test_a_blocked_word_of_one_field_blocks_by_that_field_alone(
    visitor: Visitor, owner: Visitor
) -> None:
    block(owner, "word", "name: casino")
    visitor.say("the casino")
    assert held(owner) == ("visible", "")
    visitor.say("hello", nickname="CASINO")
    assert held(owner) == ("spam", "block: name: casino")
    block(owner, "word", "name: x", 409)


def test_more_than_three_hundred_comments_in_an_hour_wait(
    visitor: Visitor, owner: Visitor, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    db.execute("INSERT INTO rate_limit VALUES ('all_comments', '', 3600, 299, ?)", (START + HOUR,))
    visitor.say("the last one")
    assert held(owner) == ("visible", "")
    visitor.say("one too many")
    assert held(owner) == ("waiting", "flood")
    owner.widget.say("the owner's are shown", nickname="")
    assert held(owner) == ("visible", "")
    fake_world.time += HOUR
    visitor.say("a quiet hour")
    assert held(owner) == ("visible", "")


PACE = [
    (19, 0, ""),
    (20, 0, "fast"),
    (20, 1, ""),
    (40, 1, "fast"),
    (40, 2, ""),
    (59, 2, ""),
    (60, 2, "fast"),
    (60, 3, ""),
    (2000, 2, "fast"),
    (2000, 3, ""),
    (2000, -1, ""),
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"captcha_provider": "altcha", "limits_enabled": False}])
def test_a_comment_typed_too_fast_waits(
    visitor: Visitor, owner: Visitor, fake_world: FakeWorld
) -> None:
    for number, (length, seconds, why) in enumerate(PACE):
        token = solved(visitor)
        fake_world.time += seconds
        posted = visitor.say(f"{number}".rjust(length, "x"), captcha_token=token)
        assert posted["comment"]["status"] == ("waiting" if why else "visible")
        assert held(owner) == ("waiting" if why else "visible", why), (length, seconds)
    for start in (0.0, 0.3, 0.5, 0.999):  # who waits as long as the rule asks is never too fast
        fake_world.time = START + HOUR + start
        token = solved(visitor)
        fake_world.time += 3.0
        visitor.say(f"{start}".rjust(60, "x"), captcha_token=token)
        assert held(owner) == ("visible", "")


@with_settings()
def test_a_comment_with_more_hosts_than_are_looked_up_waits(
    visitor: Visitor, owner: Visitor
) -> None:
    block(owner, "domain", "evil.example")
    many = [f"https://{number}.example" for number in range(MOST_HOSTS)]
    visitor.say(" ".join(many))
    assert held(owner) == ("visible", "")
    visitor.say(" ".join([*many[1:], "https://evil.example"]))
    assert held(owner) == ("spam", "block: evil.example")
    visitor.say(" ".join([*many, "https://evil.example"]))
    assert held(owner) == ("waiting", "links")
    visitor.say(" ".join(many), website="https://evil.example")
    assert held(owner) == ("spam", "block: evil.example")


# Blocks

MAIL = {"email": "lu@evil.example"}
MEETINGS: list[tuple[str, str, str, dict[str, str], bool]] = [
    ("address", "203.0.113.9", "203.0.113.9", {}, True),
    ("address", "203.0.113.9", "203.0.113.90", {}, False),
    ("address", "203.0.113.0/24", "203.0.113.255", {}, True),
    ("address", "203.0.113.0/24", "203.0.114.0", {}, False),
    ("address", "203.0.113.9", "::ffff:203.0.113.9", {}, True),
    ("address", "::ffff:203.0.113.9", "203.0.113.9", {}, True),
    ("address", "2001:db8::/32", "2001:db8:ffff::1", {}, True),
    ("address", "2001:DB8:0::1", "2001:db8::1", {}, True),
    ("address", "0.0.0.0/0", "unknown", {}, False),
    ("email", "LU@Evil.example", "192.0.2.1", MAIL, True),
    ("email", "lu@evil.example", "192.0.2.1", {"email": "LU@evil.Example"}, True),
    ("email", "lu@evil.example", "192.0.2.1", {"email": "lu+1@evil.example"}, False),
    ("domain", "evil.example", "192.0.2.1", MAIL, True),
    ("domain", "evil.example", "192.0.2.1", {"email": "lu@notevil.example"}, False),
    ("domain", "evil.example", "192.0.2.1", {"website": "https://www.evil.example/x"}, True),
    ("domain", "evil.example", "192.0.2.1", {"website": "https://evil.example.org"}, False),
    ("word", "casino", "192.0.2.1", {"content": "Ｃａｓｉｎｏ!"}, True),
    ("word", "Free Casino", "192.0.2.1", {"content": "free\n\ncasino"}, True),
    ("word", "casino", "192.0.2.1", {"nickname": "CasinoBot"}, True),
    ("word", "casino", "192.0.2.1", {"website": "https://casino.example"}, True),
    ("word", "casino", "192.0.2.1", {"content": "cas-ino"}, False),
    ("word", ".*", "192.0.2.1", {"content": "anything"}, False),
]
BLOCKED_LINKS = [
    "https://EVIL.example/x",
    "https://evil.example:8443/",
    "https://user:pw@evil.example/",
    "https://evil.example./",
    "[x](HTTPS://Evil.Example)",
    "[x](mailto:x@evil.example)",
    # What browsers open as the same host (WHATWG URL, 3.5).
    "https://ｅｖｉｌ.example/",
    "https://evil。example/",
    "https://evil%2Eexample/",
    "https://ev\u00adil.example/",
]
FREE_LINKS = ["https://notevil.example", "https://evil.example.org/evil.example"]
for _text in BLOCKED_LINKS + FREE_LINKS:
    _case = ("domain", "evil.example", "192.0.2.1", {"content": _text}, _text in BLOCKED_LINKS)
    MEETINGS.append(_case)
PUNYCODE = "xn--e1afmkfd.xn--p1ai"
for _text in (f"https://{PUNYCODE}/", "https://пример.рф/", "[x](https://ПРИМЕР.рф)"):
    MEETINGS.append(("domain", PUNYCODE, "192.0.2.1", {"content": _text}, True))


@with_settings()
def test_a_comment_that_meets_a_block_is_kept_as_spam(
    app: App, owner: Visitor, fake_world: FakeWorld
) -> None:
    for kind, value, ip, fields, meets in MEETINGS:
        fake_world.time += HOUR  # later, the same text is another comment
        made = block(owner, kind, value, sure=True)["block"]
        kept = made["value"]
        if kind in ("address", "email"):  # the reason shows no more than readers see
            name, _, domain = kept.partition("@")
            kept = f"…@{domain}" if kind == "email" else masked(name.partition("/")[0])
        Visitor(app, ip=ip).say(**fields)
        expected = ("spam", f"block: {kept}") if meets else ("visible", "")
        assert held(owner) == expected, (kind, value, fields)
        drop(owner, f"blocks/{made['id']}")


@with_settings()
def test_a_block_meets_an_account_by_its_email_address_and_never_an_admin(
    ann: Visitor, owner: Visitor
) -> None:
    made = block(owner, "email", "ann@example.com")["block"]["id"]
    ann.say("one")
    assert held(owner) == ("spam", "block: …@example.com")
    drop(owner, f"blocks/{made}")
    block(owner, "domain", "example.com")
    ann.say("two")
    assert held(owner) == ("spam", "block: example.com")
    for what in (("address", "0.0.0.0/0"), ("email", "owner@example.com"), ("word", "mine")):
        block(owner, *what, sure=True)
    owner.widget.say("mine", nickname="")
    assert held(owner) == ("visible", "")


@with_settings()
def test_a_block_ends_or_is_lifted(visitor: Visitor, owner: Visitor, fake_world: FakeWorld) -> None:
    block(owner, "word", "casino", days=1)
    block(owner, "word", "roulette")
    for seconds, word, status in (
        (0, "casino", "spam"),
        (DAY - 1, "casino", "spam"),
        (DAY, "casino", "visible"),
        (DAY, "roulette", "spam"),
    ):
        fake_world.time = START + seconds
        visitor.say(f"{word} after {seconds}")
        assert held(owner)[0] == status
    drop(owner, "blocks/2")
    visitor.say("roulette once more")
    assert held(owner)[0] == "visible"
    assert queue(owner)["counts"]["spam"] == 3  # what it caught stays where it is


# Edits


@with_settings(moderation_words=("casino",), moderation_hold="links")
def test_an_edit_is_moderated_like_a_new_comment(visitor: Visitor, owner: Visitor) -> None:
    block(owner, "word", "roulette")
    for number, (text, status, why) in enumerate(
        (
            ("a casino", "waiting", "word: casino"),
            ("see https://x.example", "waiting", "links"),
            ("a roulette", "spam", "block: roulette"),
            ("harmless too", "visible", ""),
        )
    ):
        posted = visitor.say(f"harmless {number}")
        assert posted["comment"]["status"] == "visible"
        assert visitor.edit(posted, text) == ("visible" if status == "visible" else "waiting")
        assert held(owner) == (status, why)
        assert (posted["comment"]["id"] in shown(visitor)) == (status == "visible")
        assert queue(owner)["comments"][0]["content"] == text


@with_settings(moderation_words=("casino",))
def test_an_edit_does_not_show_a_hidden_comment(visitor: Visitor, owner: Visitor) -> None:
    posted = visitor.say("a casino")
    assert visitor.edit(posted, "harmless") == "waiting"
    assert held(owner) == ("waiting", "word: casino")
    moderate(owner, [1], "spam")
    assert visitor.edit(posted, "harmless again") == "waiting"
    assert held(owner)[0] == "spam"
    moderate(owner, [1], "visible")
    assert visitor.edit(posted, "as good as before") == "visible"
    assert visitor.edit(posted, "a casino") == "waiting"
    assert shown(visitor) == []
    moderate(owner, [1], "deleted")
    form = {"content": "x", "edit_token": posted["edit_token"]}
    assert visitor.patch_json("/comments/1", form, status=404).json["code"] == "comment_gone"


@with_settings(moderation_hold="first")
def test_an_approved_first_comment_waits_again_if_edited(visitor: Visitor, owner: Visitor) -> None:
    first = visitor.say("something nice")
    moderate(owner, [1], "visible")
    assert visitor.edit(first, "something nice") == "visible"  # nothing is changed
    assert visitor.edit(first, "something else") == "waiting"
    assert held(owner) == ("waiting", "first")
    moderate(owner, [1], "visible")
    visitor.say("the second")
    assert visitor.edit(first, "known by the second") == "visible"


@with_settings(moderation_hold="all")
def test_an_edit_that_waits_ends_a_pin_and_an_admins_edit_passes(
    visitor: Visitor, owner: Visitor
) -> None:
    posted = visitor.say("something nice")
    moderate(owner, [1], "visible")
    pin(owner, [1])
    assert change(owner, "comments/1", content="something nicer")["comment"]["status"] == "visible"
    assert visitor.listing(view="threads")["comments"][0]["pinned"] is True
    visitor.edit(posted, "an advertisement")
    assert held(owner) == ("waiting", "all")
    assert visitor.listing(view="threads")["comments"] == []
    mine = owner.widget.say("mine", nickname="")
    assert owner.widget.edit(mine, "mine, better") == "visible"


# Pages that are closed

AGE = with_settings(comments_close_after_days=30)


@AGE
def test_a_page_closes_after_its_days_and_opens_again(
    visitor: Visitor, owner: Visitor, fake_world: FakeWorld
) -> None:
    posted = visitor.say("young")
    fake_world.time = START + 30 * DAY - 1
    visitor.say("just in time")
    (before,) = pages(fresh(owner))["pages"]
    assert (before["closed"], before["closed_by_age"]) == (False, False)
    fake_world.time += 1
    assert visitor.say("too late", status=403) == CLOSED
    assert visitor.listing(view="threads")["settings"]["closed"] is True
    assert queue(owner)["comments"][0]["closed"] is True
    (page,) = pages(owner)["pages"]
    assert (page["closed"], page["closed_by_age"]) == (True, True)
    assert visitor.post_json("/comment/like", {"id": 1}).json["likes"] == 1
    assert visitor.say("elsewhere", page_url="/new/")["comment"]["status"] == "visible"
    assert do(owner, "reply", parent_id=1, content="from the owner")["success"] is True

    page = change(owner, "pages/1", closed=False)["page"]
    assert (page["closed"], page["closed_by_age"]) == (False, False)
    visitor.say("open again")
    fake_world.time += 30 * DAY - 1
    visitor.say("open still")
    change(fresh(owner), "pages/1", closed=False)  # it is open, and gets no younger
    fake_world.time += 1
    assert visitor.say("closed again", status=403) == CLOSED
    page = change(fresh(owner), "pages/1", closed=True)["page"]
    assert (page["closed"], page["closed_by_age"]) == (True, False)
    assert "edit_token" in posted


@with_settings(comments_close_after_days=1)
def test_a_page_that_is_too_old_opens_again_from_the_widget(
    visitor: Visitor, owner: Visitor, fake_world: FakeWorld
) -> None:
    visitor.say("young")
    fake_world.time += DAY
    assert visitor.say("too late", status=403) == CLOSED
    widget = owner.widget
    response = widget.post_json("/comments/1/moderate", {"closed": False}).json
    assert response["was"] is True
    visitor.say("open again")
    response = widget.post_json("/comments/1/moderate", {"closed": response["was"]}).json
    assert response["was"] is False
    assert visitor.say("closed again", status=403) == CLOSED


@pytest.mark.parametrize("settings", [{"comments_close_after_days": 1}])
def test_a_retry_on_a_closed_page_finds_the_comment(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    visitor.say("opens the page")
    fake_world.time += DAY - 30
    first = visitor.say("in time")["comment"]
    fake_world.time += 40
    assert visitor.say("in time")["comment"] == first
    assert visitor.say("not in time", status=403) == CLOSED


@with_settings(comments_close_after_days=30)
def test_the_age_of_a_page_begins_when_it_is_first_seen(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    visitor.listing()
    app.tick()
    fake_world.time += 30 * DAY - 1
    visitor.say("the first word on it")
    fake_world.time += 1
    assert visitor.say("too late", status=403) == CLOSED


@with_settings(comments_close_after_days=0)
def test_no_page_closes_by_itself_where_no_days_are_set(
    visitor: Visitor, fake_world: FakeWorld
) -> None:
    visitor.say("one")
    fake_world.time += 3000 * DAY
    assert visitor.say("two")["comment"]["status"] == "visible"


# Pins


def walk(visitor: Visitor, limit: int, **query: Any) -> list[list[int]]:
    """All pages of a list, up to the first empty one."""
    found, number = [], 1
    while page := ids(visitor.listing(view="threads", limit=limit, page=number, **query)):
        found.append(page)
        number += 1
    return found


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["newest", "oldest", "likes"])
@with_settings()
def test_pinned_comments_stand_first_and_pages_of_a_list_are_full(
    visitor: Visitor, owner: Visitor, sort: str
) -> None:
    for number in range(1, 10):
        visitor.say(f"number {number}", parent_id=3 if number == 4 else None)
    for number in (7, 2):
        visitor.post_json("/comment/like", {"id": number})
    orders = {
        "newest": [9, 8, 7, 6, 5, 3, 2, 1],
        "oldest": [1, 2, 3, 5, 6, 7, 8, 9],
        "likes": [7, 2, 9, 8, 6, 5, 3, 1],
    }
    for pinned in ([], [3], [1, 3, 7], [2, 9], [1, 2, 3, 5, 6, 7, 8, 9]):
        if pinned:
            pin(owner, pinned)
        first = [number for number in orders[sort] if number in pinned]
        expected = first + [number for number in orders[sort] if number not in pinned]
        for limit in (1, 3, 8, 100):
            whole = [expected[i : i + limit] for i in range(0, 8, limit)]
            assert walk(visitor, limit, sort=sort) == whole, (pinned, limit)
            for number in (*expected, 4):  # the answer is found with its thread
                found = visitor.listing(view="threads", limit=limit, sort=sort, around=number)
                page = next(p for p in whole if (3 if number == 4 else number) in p)
                assert (ids(found), found["page"]) == (page, whole.index(page) + 1)
            assert found["threads"] == 8
        assert shown(visitor, sort="oldest") == [*range(1, 10)]  # flat: as they were written
        if pinned:
            pin(owner, pinned, False)


@with_settings()
def test_a_hidden_pinned_comment_is_a_tombstone_in_its_usual_place(
    visitor: Visitor, owner: Visitor
) -> None:
    first = visitor.say("one")
    visitor.say("a reply", parent_id=1)
    visitor.say("three")

    def threads() -> list[Any]:
        shown = visitor.listing(view="threads")["comments"]
        return [(c["id"], c["pinned"], "deleted" in c) for c in shown]

    pin(owner, [1])
    assert threads() == [(1, True, False), (3, False, False)]
    moderate(owner, [1], "spam")
    assert threads() == [(3, False, False), (1, False, True)]
    for limit in (1, 2):
        assert [number for page in walk(visitor, limit) for number in page] == [3, 1]
    moderate(owner, [1], "visible")
    assert threads() == [(3, False, False), (1, False, False)]
    pin(owner, [1])
    visitor.delete_json("/comments/1", {"edit_token": first["edit_token"]})
    assert threads() == [(3, False, False), (1, False, True)]


@with_settings()
def test_a_pinned_comment_stands_first_on_its_own_page_alone(
    visitor: Visitor, owner: Visitor
) -> None:
    for url in ("/a/", "/b/", "/a/", "/b/"):
        visitor.say(f"on {url}", page_url=url)
    visitor.say("again on /a/", page_url="/a/")
    pin(owner, [1, 2])
    assert ids(visitor.listing(url="/a/", view="threads")) == [1, 5, 3]
    assert ids(visitor.listing(url="/b/", view="threads")) == [2, 4]


# What is purged

TRACES: dict[str, Any] = {
    "nickname": "Nemesis-of-Kos",
    "content": "wording-that-was-spam",
    "email": "trace@evil-mail.example",
    "website": "https://evil-site.example/trace",
}


def in_the_file(app: App) -> list[str]:
    """Which traces can be read in the files of the database."""
    path = Path(inside.database_path(app))
    data = b"".join(f.read_bytes() for f in path.parent.glob(path.name + "*") if f.is_file())
    traces = [*TRACES.values(), "198.18.7.77", "sharper-wording"]
    return [trace for trace in traces if trace.encode() in data]


@with_settings(moderation_keep_days=10, privacy_keep_ip_days=365)
def test_spam_and_deleted_comments_are_erased_after_the_days_set_with_all_their_traces(
    app: App, visitor: Visitor, owner: Visitor, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    visitor.say("stays")
    author = Visitor(app, ip="198.18.7.77")
    for text in ("spam", "deleted"):
        author.say(**TRACES | {"content": f"{TRACES['content']} {text}"})
    author.say(**TRACES | {"content": "sharper-wording"})
    change(owner, "comments/4", content="corrected")  # keeps no old words in the end
    visitor.post_json("/comment/like", {"id": 2})
    moderate(owner, [2, 3, 4], "waiting")
    fake_world.time += 5 * DAY
    moderate(owner, [2], "spam")
    moderate(owner, [3, 4], "deleted")
    app.deliver()
    assert {*in_the_file(app)} >= {*TRACES.values(), "198.18.7.77"}
    fake_world.time += 10 * DAY
    app.tick()
    assert ids(queue(fresh(owner), status="spam")) == [2]
    assert ids(queue(owner, status="deleted")) == [4, 3]
    fake_world.time += 1
    app.tick()
    fake_world.time += MINUTE
    app.tick()
    assert rows(db, "SELECT id FROM comment") == [(1,)]
    assert in_the_file(app) == []


@with_settings(privacy_keep_ip_days=365)
def test_a_comment_deleted_by_its_author_leaves_no_trace_of_edits_and_moderation(
    app: App, owner: Visitor, fake_world: FakeWorld
) -> None:
    author = Visitor(app, ip="198.18.7.77")
    posted = author.say(**TRACES)
    author.edit(posted, "sharper-wording")
    moderate(owner, [1], "waiting")
    moderate(owner, [1], "visible")
    author.delete_json("/comments/1", {"edit_token": posted["edit_token"]})
    app.deliver()
    fake_world.time += MINUTE
    app.tick()
    assert in_the_file(app) == []


def test_a_comment_deleted_by_its_author_leaves_no_row_and_no_page(
    visitor: Visitor, app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    posted = [visitor.say(f"No. {number}", page_url="/gone/") for number in range(2)]
    for number, parent in enumerate((1, 3)):
        posted.append(visitor.say(f"reply {number}", page_url="/gone/", parent_id=parent))
    for number in (1, 3, 2):
        token = posted[number - 1]["edit_token"]
        visitor.delete_json(f"/comments/{number}", {"edit_token": token})
    assert visitor.listing(url="/gone/", view="threads")["threads"] == 1
    fake_world.time += MINUTE
    app.tick()
    assert rows(db, "SELECT id FROM comment ORDER BY id") == [(1,), (3,), (4,)]
    visitor.delete_json("/comments/4", {"edit_token": posted[3]["edit_token"]})
    for _ in range(3):  # the rows above go one after the other
        fake_world.time += MINUTE
        app.tick()
    assert rows(db, "SELECT id FROM comment") == []
    fake_world.time += 91 * DAY
    app.tick()
    assert rows(db, "SELECT id FROM page") == []


def test_a_page_that_was_closed_stays_closed_though_nobody_reads_it(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld
) -> None:
    visitor.listing(url="/closed/")
    app.tick()
    (page,) = owner.get("/admin/pages").json["pages"]
    owner.patch_json(f"/admin/pages/{page['id']}", {"closed": True})
    fake_world.time += 200 * DAY
    app.tick()
    assert visitor.listing(url="/closed/", view="threads")["settings"]["closed"] is True


def fresh(owner: Visitor) -> Visitor:
    """The admin with a token of now."""
    token = inside.token_of(owner.served, OWNER, "admin")
    owner.authorization = ("Bearer", token)
    return owner


@with_settings(moderation_keep_days=10)
def test_waiting_and_restored_comments_are_not_erased(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    for number in range(1, 5):
        visitor.say(f"number {number}")
    moderate(owner, [1], "waiting")
    moderate(owner, [2, 3, 4], "spam")
    moderate(owner, [2], "visible")
    fake_world.time += 6 * DAY
    moderate(owner, [4], "deleted")  # counts from now on
    fake_world.time += 6 * DAY
    app.tick()
    assert rows(db, "SELECT id, status FROM comment ORDER BY id") == [
        (1, "waiting"),
        (2, "visible"),
        (4, "deleted"),
    ]


@with_settings(moderation_keep_days=10)
def test_an_erased_comment_keeps_the_place_of_its_replies(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    for parent in (None, 1, 2, None, 4):
        visitor.say(f"under {parent}", parent_id=parent)
    moderate(owner, [1, 2, 4, 5], "spam")
    fake_world.time += 10 * DAY + 1
    app.tick()
    assert rows(db, "SELECT id, content, status FROM comment WHERE id < 4") == [
        (1, "", "deleted"),
        (2, "", "deleted"),
        (3, "under 2", "visible"),
    ]
    assert not rows(db, "SELECT * FROM comment WHERE id > 3 AND content <> ''")
    (root,) = visitor.listing(view="threads")["comments"]
    assert [(r["id"], r.get("deleted", False)) for r in root["replies"]] == [(2, True), (3, False)]
    assert ids(queue(fresh(owner))) == [3]


# Rows that were spoilt

NOT_UTF8, MARKUP = "CAST(x'61ffeda08062' AS TEXT)", "'<script>{}%s{{x}}' || char(0, 8238)"
MOST = 2**63 - 1
LARGE = 2**53  # the largest number that JavaScript counts to
OUTBOX = "INSERT INTO outbox (id, recipient, subject, text, tries, due_at, expires_at) VALUES "
# Each is what one comment, page or account is changed to, or a row that is added.
SPOILT_COMMENTS = [
    *(
        f"{column} = {value}"
        for column in ("nickname", "content", "html", "ip", "website", "held")
        for value in (NOT_UTF8, MARKUP)
    ),
    *(f"{column} = {MOST}" for column in ("created_at", "edited_at")),
    f"created_at = {-MOST}",
    f"hidden_at = {-MOST}, status = 'spam'",
    "country = '??', location = char(0), language = 'tlh'",
    "parent_id = id, thread_id = id",
    "(parent_id, thread_id) = (SELECT max(id), max(id) FROM comment)",
    f"likes = {-MOST}, replies = -5",
    "content = '', nickname = ''",
]
SPOILT_PAGES = [
    f"page_url = {NOT_UTF8}",
    "page_url = 'http://[', key = 'http://['",
    f"views = {LARGE}, total = -3, opened_at = -1",
]
SPOILT_ACCOUNTS = [f"nickname = {NOT_UTF8}", f"email = 'no address', created_at = {MOST}"]
SPOILT_ROWS = [
    "INSERT INTO block VALUES (7, 'address', 'junk', '', 1, NULL)",
    f"INSERT INTO block VALUES (8, 'word', {NOT_UTF8}, '', 1, NULL)",
    f"INSERT INTO block VALUES (9, 'domain', '', '', 1, {MOST})",
    f"INSERT INTO audit VALUES (9, {MOST}, CAST(x'ff' AS TEXT), 'nonsense', '', '<b>', NULL)",
    f"INSERT INTO day VALUES ({MOST}, 1, 1, 1)",
    f"INSERT OR REPLACE INTO day VALUES (20775, {LARGE}, {LARGE}, {LARGE})",
    f"{OUTBOX} (8, 'x', {NOT_UTF8}, {NOT_UTF8}, 3, {MOST}, {MOST})",
    f"{OUTBOX} (9, '', char(10) || 'a', char(0), 1 << 40, -1, 1)",
]
# What is spoilt is on these pages, the whole comments are on PAGE.
OTHER_PAGES = ["/other/", *(f"/other-{number}/" for number, _ in enumerate(SPOILT_PAGES))]
ADMIN_LISTS = [
    "comments?limit=100",
    "comments?status=visible&limit=100",
    "comments?q=a&limit=100",
    "pages",
    "pages?sort=views",
    "users",
    "users?q=a",
    "blocks",
    "audit",
    "outbox",
    "settings",
    "figures",
]
PUBLIC = [
    "/comments?limit=100&url=",
    "/comments?view=threads&limit=100&url=",
    "/comments?sort=likes&limit=100&url=",
    "/thread?url=",
    "/feed.atom?url=",
    "/fragment?url=",
]


def spoiling_statements(db: sqlite3.Connection) -> list[str]:
    """All of the above in SQL, on one row each."""
    statements = list(SPOILT_ROWS)
    for table, which, changes in (
        ("comment", "page_id = 2", SPOILT_COMMENTS),
        ("page", "id > 2", SPOILT_PAGES),
        ("account", "id > 1", SPOILT_ACCOUNTS),
    ):
        numbers = rows(db, f"SELECT id FROM {table} WHERE {which} ORDER BY id")
        for (number,), spoilt in zip(numbers, changes, strict=True):
            statements.append(f"UPDATE {table} SET {spoilt} WHERE id = {number}")
    return statements


@pytest.fixture(scope="module")
def before_poison(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Path:
    """A database with an admin, two whole comments, and what is spoilt later."""
    path = tmp_path_factory.mktemp("poison") / "commentd.db"
    shutil.copy(empty_database, path)
    config = Config(database_path=str(path), captcha_provider="none", limits_enabled=False)
    with closing(make_app(config, FakeWorld().world, rounds=1)) as app:
        new_admin(app)
        for number, _ in enumerate(SPOILT_ACCOUNTS):
            new_admin(app, f"other-{number}@example.com", f"Other {number}")
        on_page_2 = ["/other/"] * len(SPOILT_COMMENTS)
        for url in (PAGE, *on_page_2, *OTHER_PAGES[1:], PAGE):
            Visitor(app).say(f"on {url}", page_url=url)
    return path


def assert_whole_rows_are_served(
    config: Config, world: FakeWorld, spoilt: list[str], capture: pytest.CaptureFixture[bytes]
) -> None:
    """With a plain client, since the checks of a visitor fail on some of these rows."""
    with closing(make_app(config, world.world, rounds=1)) as app:
        admin = inside.token_of(app, OWNER, "admin")
        client = webtest.TestApp(app)
        with closing(sqlite3.connect(config.database_path, isolation_level=None)) as db:
            whole = {number for (number,) in db.execute("SELECT id FROM comment WHERE page_id = 1")}
            for statement in spoilt:
                db.execute(statement)
        for path in PUBLIC:
            assert f"on {PAGE}" in client.get(path + PAGE).text
            for page in OTHER_PAGES:
                response = client.get(path + page)
                assert "<script>{" not in response.text or response.content_type != "text/html"
        urls = "&url=".join([PAGE, *OTHER_PAGES])
        for path in ("/comments/latest?limit=30", "/feed.atom", f"/pages?url={urls}"):
            client.get(path)
        for name in ("commentd", "waline", "artalk", "wordpress"):
            assert main(["export", name, "--emails"]) == 0
            assert f"on {PAGE}".encode() in capture.readouterr().out
        headers = {"Authorization": f"Bearer {admin}"}
        for path in ADMIN_LISTS:
            response = client.get(f"/admin/{path}", headers=headers)
            assert path != ADMIN_LISTS[0] or whole <= {*ids(response.json)}
        body = {"page_url": PAGE, "nickname": "Lu", "content": "hi https://a.example"}
        client.post_json("/comments", {**body, "captcha_token": "x"})
        client.post_json("/page/like", {"page_url": PAGE})
        client.post_json("/comment/like", {"id": 1})
        for work in (app.tick, app.deliver, app.back_up_if_due):
            work()
        assert client.get(f"/pages?url={PAGE}").json["pages"][0]["views"] > 0
        form = {"ids": [*range(1, max(whole) + 1)], "status": "deleted"}
        client.post_json("/admin/comments", form, headers=headers)


def test_a_poisoned_row_in_the_queue_hurts_only_itself(
    config: Config,
    before_poison: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setenv("COMMENTD_DATABASE_PATH", config.database_path)
    config = replace(config, limits_enabled=False)
    with closing(sqlite3.connect(before_poison)) as db:
        statements = spoiling_statements(db)

    def try_with(spoilt: list[str]) -> None:
        shutil.copy(before_poison, config.database_path)
        assert_whole_rows_are_served(config, FakeWorld(), spoilt, capsysbinary)

    try:
        try_with(statements)
    except Exception:
        for statement in statements:  # which of them is it?
            try_with([statement])
        raise


# What readers see


def outputs(visitor: Visitor, number: int) -> list[str]:
    """What a reader can get about a comment, by whatever way."""
    texts = []
    queries: list[dict[str, Any]] = [
        {},
        {"sort": "oldest"},
        {"sort": "likes"},
        {"thread": 1},
        {"view": "threads"},
        {"around": number},
        {"view": "threads", "around": number},
        {"thread": number},
        {"limit": 100, "status": "waiting", "hidden": "true"},
    ]
    for query in queries:
        answer = visitor.get("/comments", {"url": PAGE, **query}, expect_errors=True)
        texts.append(answer.text)
    texts.append(visitor.get("/pages", {"url": PAGE}).text)
    for path, form in (
        ("/comment/like", {"id": number}),
        ("/comment/like", {"id": number, "undo": True}),
    ):
        answer = visitor.post_json(path, form, status=404)
        texts.append(answer.text)
    texts.append(str(visitor.say(f"to {number}", parent_id=number, status=404)))
    texts.append(visitor.patch_json(f"/comments/{number}", {"content": "x"}, status=404).text)
    texts.append(visitor.delete_json(f"/comments/{number}", {}, status=404).text)
    for method, path in (("get", "/comments/waiting?url=" + PAGE), ("get", "/admin/comments")):
        texts.append(getattr(visitor, method)(path, status="4*", expect_errors=True).text)
    return texts


@pytest.mark.parametrize("status", STATES)
@with_settings(privacy_show_ip="full")
def test_readers_learn_nothing_of_hidden_comments(
    app: App, ann: Visitor, owner: Visitor, status: str
) -> None:
    ann.say("a root")
    Visitor(app, ip="198.18.7.77").say(**TRACES, parent_id=1)
    Visitor(app, ip="198.18.7.77").say("an answer to it", parent_id=2, nickname="Lu")
    moderate(owner, [2], status)
    reader = Visitor(app, ip="192.0.2.9")
    for visitor in (reader, ann):
        texts = outputs(visitor, 2)
        for trace in TRACES.values():
            assert not [text for text in texts if trace in text]
        for word in ("held", "spam", '"status"', "judged"):
            assert not [text for text in texts if word in text], word
        assert visitor.listing()["total"] == visitor.listing(view="threads")["total"] == 2
        (root,) = visitor.listing(view="threads")["comments"]
        assert [(r["id"], r.get("deleted")) for r in root["replies"]] == [(2, True), (3, None)]
    unknown = [reader.post_json("/comment/like", {"id": n}, status=404).json for n in (2, 99)]
    assert unknown[0] == unknown[1]


@pytest.mark.parametrize("status", STATES)
@with_settings()
def test_a_hidden_comment_with_replies_leaves_one_tombstone_without_its_data(
    visitor: Visitor, owner: Visitor, status: str
) -> None:
    visitor.say("hidden", website="https://x.example")
    visitor.say("an answer", parent_id=1)
    visitor.post_json("/comment/like", {"id": 1})
    moderate(owner, [1], status)
    (stone,) = visitor.listing(view="threads")["comments"]
    del stone["replies"], stone["more_replies"]
    texts = ("nickname", "content", "ip", "location", "html", "role", "website", "country")
    gone: dict[str, Any] = {"id": 1, "page_url": PAGE, "parent_id": None, "user_id": None}
    gone |= {"likes": 0, "edited": None, "pinned": False, "deleted": True}
    gone |= {"waiting": status == "waiting"}
    assert stone == {**gone, **dict.fromkeys(texts, ""), "created_at": "2026-11-18 19:06:40"}


@with_settings(moderation_hold="all")
def test_authors_read_of_their_own_spam_that_it_waits(visitor: Visitor, owner: Visitor) -> None:
    posted = visitor.say("mine")
    for status in ("waiting", "spam"):
        moderate(owner, [1], status)
        assert visitor.edit(posted, f"mine, {status}") == "waiting"
        assert visitor.say(f"mine, {status}")["comment"]["status"] == "waiting"
    assert CANARY not in str(posted)


@with_settings(moderation_hold="all")
def test_a_waiting_comment_edited_to_meet_a_block_is_spam(visitor: Visitor, owner: Visitor) -> None:
    posted = visitor.say("fine")
    block(owner, "word", "casino")
    assert visitor.edit(posted, "a casino") == "waiting"
    assert held(owner)[0] == "spam"


# What is moderated is what was read


@with_settings()
def test_an_edit_or_deletion_by_the_author_stays_while_the_owner_corrects_the_comment(
    visitor: Visitor, owner: Visitor, app: App, db: sqlite3.Connection
) -> None:
    posted = [visitor.say(text, website="https://lu.example/") for text in ("hello", "one", "two")]
    erase, edit, later = ({"edit_token": each["edit_token"]} for each in posted)
    inside.just_before_it_writes(app, lambda: stranger(app).delete_json("/comments/1", erase))
    form = {"content": "better", "nickname": "Lu", "website": "https://lu.example/"}
    answer = stranger(app, owner).patch_json("/admin/comments/1", form, status=404)
    assert answer.json["code"] == "comment_gone"
    row = "SELECT status, nickname, content, html, website, ip FROM comment WHERE id = 1"
    assert db.execute(row).fetchall() == [("deleted", *[""] * 5)]
    form = {"content": "hello, world", **edit}
    inside.just_before_it_writes(app, lambda: stranger(app).patch_json("/comments/2", form))
    stranger(app, owner).patch_json("/admin/comments/2", {"nickname": "Lu"})
    (_, found) = visitor.listing()["comments"]
    assert (found["nickname"], found["content"]) == ("Lu", "hello, world")
    change(owner, "comments/3", nickname="Bobby")  # its author may still edit and delete
    edited = visitor.patch_json("/comments/3", {**later, "content": "three"}).json["comment"]
    assert (edited["nickname"], edited["content"]) == ("Bobby", "three")
    visitor.delete_json("/comments/3", later)
    assert ids(visitor.listing()) == [2]


@with_settings(moderation_hold="all")
def test_a_comment_edited_since_the_owner_read_it_is_not_approved(
    visitor: Visitor, owner: Visitor
) -> None:
    mine = [visitor.say(text) for text in ("one", "two")]
    read = {c["id"]: c["version"] for c in queue(owner, status="waiting")["comments"]}
    blogs = owner.widget.get("/comments/waiting", {"url": PAGE}).json["comments"]
    assert {c["id"]: c["version"] for c in blogs} == read
    evil = {"content": "https://casino.example/", "edit_token": mine[0]["edit_token"]}
    visitor.patch_json("/comments/1", evil)
    form = {"status": "visible", "version": read[1]}
    refused = owner.widget.post_json("/comments/1/moderate", form, status=409)
    assert refused.json["code"] == "text_changed"
    form = {"content": "one, corrected", "version": read[1]}
    refused = owner.patch_json("/admin/comments/1", form, status=409)
    assert refused.json["code"] == "text_changed"
    reply = {"parent_id": 1, "content": "I agree", "version": read[1]}
    assert do(owner, "reply", 409, **reply)["code"] == "text_changed"
    versions = {"ids": [1, 2], "versions": [read[1], read[2]]}
    response = do(owner, "comments", **versions, status="visible")
    assert (response["changed"], ids(response)) == ([1], [2])
    assert ids(visitor.listing()) == [2]
    response = do(owner, "comments", **versions, status="spam")  # whatever it says now
    assert (response["changed"], ids(response)) == ([], [1, 2])
    for wrong in ([read[2]], {"1": read[1], "2": read[2]}, "12"):
        form = {"ids": [1, 2], "versions": wrong, "status": "visible"}
        refused = owner.post_json("/admin/comments", form, status=400).json
        assert refused["code"] == "versions_invalid"
    (fresh,) = (c["version"] for c in queue(owner)["comments"] if c["id"] == 1)
    do(owner, "comments", ids=[1], versions=[fresh], status="visible")
    assert ids(visitor.listing()) == [1]


@pytest.mark.parametrize(
    "text", ["via\u034fgra", "via\ufe0fgra", "via\u115fgra", "via**gr**a", "via[gr](https://x.cn)a"]
)
@with_settings(moderation_words=("casino",))
def test_blocked_words_are_found_as_readers_read_them(
    visitor: Visitor, owner: Visitor, text: str
) -> None:
    block(owner, "word", "viagra")
    visitor.say(text)
    visitor.say(
        text.replace("via", "ca").replace("gr", "sin").replace("a", "o").replace("co", "ca")
    )
    found = [(c["status"], c["held"]) for c in queue(owner)["comments"]]
    assert found == [("waiting", "word: casino"), ("spam", "block: viagra")]


@with_settings(webhook_url="https://hook.example/")
@pytest.mark.parametrize(
    ("kind", "value"),
    [("address", "198.51.100.9"), ("address", "198.51.100.8/30"), ("email", "lu@example.cn")],
)
def test_the_reason_a_comment_was_held_reveals_no_email_or_ip_address(
    visitor: Visitor,
    owner: Visitor,
    app: App,
    db: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    value: str,
) -> None:
    block(owner, kind, value)
    number = Visitor(app, "198.51.100.9").say("hi", email="lu@example.cn")["comment"]["id"]
    do(owner, "comments", ids=[number], status="visible")
    visitor.post_json(f"/comments/{number}/report", {"reason": "rude"})
    (call,) = db.execute("SELECT text FROM outbox WHERE recipient = 'webhook'").fetchone()
    monkeypatch.setenv("COMMENTD_DATABASE_PATH", inside.database_path(app))
    assert main(["export", "commentd"]) == 0
    printed = capsys.readouterr().out + call
    assert "hi" in printed
    (held,) = db.execute("SELECT held FROM comment").fetchone()
    assert held.startswith("block: ")
    for word in ("198.51.100.8", "198.51.100.9", "lu@example.cn"):
        assert word not in printed + held


@with_settings()
def test_the_version_of_a_comment_is_all_of_its_hash(visitor: Visitor, owner: Visitor) -> None:
    """Of a part of it, an author could look for two texts that have the same, and have the one
    approved that nobody read."""
    visitor.say()
    (comment,) = queue(owner)["comments"]
    assert len(comment["version"]) * 4 == 256
