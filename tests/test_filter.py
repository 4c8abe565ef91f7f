"""The spam filter: what it reads of a comment, how it learns from clicks and forgets, what it holds
and what it says of that."""

import math
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
import test_admin
import webtest
from conftest import CANARY, PAGE, START, Outside, Visitor, assert_whole
from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st
from test_admin import (
    OWNER,
    Judge,
    block,
    change,
    claim,
    do,
    drop,
    judge,
    new_admin,
    pin,
    queue,
    rows,
)
from test_comments import at_once, solved
from test_import import Said, wordpress
from test_moderation import edit, held, settled, shown

import commentd
from commentd import (
    ROUTES,
    App,
    Comment,
    Config,
    Places,
    badness,
    chi_squared,
    hashes_of,
    judging_link,
    main,
    make_app,
    new_admin_link,
    safe_html,
    spam_score,
    token_hash,
    tokens_of,
)

owner, visitor = test_admin.owner, test_admin.visitor
MINUTE, DAY = 60, 86400
Tokens = dict[int, tuple[int, int]]


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"limits_enabled": False, "server_public_url": "https://comments.example"}


# What it reads of a comment


def words(text: str, nickname: str = "", website: str = "") -> set[str]:
    """What a comment is known by, but for the number of its links."""
    tokens = tokens_of(nickname, website, safe_html(text))
    assert len({*tokens}) == len(tokens)
    return {token for token in tokens if not token.startswith("links:")}


WORDS = {
    "Buy cheap pills": "buy cheap pills",
    "one two one ONE": "one two",
    "don't e-mail me": "don't e-mail me",
    "ＣＡＳＩＮＯ Ⅷ": "casino viii",
    "STRASSE Straße": "strasse",
    "caf\u00e9 cafe\u0301": "caf\u00e9",
    "ca\u00adsi\u200bno": "casino",
    "AT&T, 1 < 2": "at t 1 2",
    "<b>bold</b>": "b bold",
    "*so* **cheap**": "so cheap",
    "via**gra** [ca](https://x.example)si`no`": "viagra casino link:x.example",
    "one\ntwo\n\n> three": "one two three",
    "call 13800138000": "call 13800138000",
    "x" * 99: "x" * 40,
    "加微信": "加微 微信",
    "赌": "赌",
    "加-微-信": "加微 微信",
    "加 * 微 。信": "加微 微信",
    "加**微**[信](https://x.example)": "加微 微信 link:x.example",
    "加\u200b微\u2060信": "加微 微信",
    "我爱Python语言": "我爱 python 语言",
    "カ・ジ・ノ": "カジ ジノ",
    "ｶｼﾞﾉ": "カジ ジノ",
    "카지노": "카지 지노",
    "กขคง": "กข ขค คง",
    "ที่-นี้": "ที ี่ ่น นี ี้",
    "हिन्दी में": "हिन्दी में",
    "مُحَمَّد": "مُحَمَّد",
    "see https://x.example/buy-pills?a=b": "see link:x.example",
    "[see](https://WWW.Shop.example/buy) it": "see it link:www.shop.example link:shop.example",
    "https://例子.测试/ 好": "好 link:xn--fsqu00a.xn--0zwm56d",
    "😀 !!! — …": "",
}


@pytest.mark.parametrize("text", WORDS)
def test_words_are_read_however_they_are_spelt_and_pairs_where_no_blanks_part_them(
    text: str,
) -> None:
    assert words(text) == {*WORDS[text].split()}


def test_the_words_of_a_name_and_the_host_of_a_website_are_known_as_such() -> None:
    assert words("hi", "Casino 加微信", "https://www.shop.example/x") == {
        *("hi", "name:casino", "name:加微", "name:微信"),
        *("link:www.shop.example", "link:shop.example"),
    }


@pytest.mark.parametrize("host", [".".join(["a" * 60] * 4), "e\u202evil.example"])
def test_what_is_said_of_a_host_is_short_and_turns_no_line_around(host: str) -> None:
    links = {token for token in words(f"http://{host}/") if token.startswith("link:")}
    assert links
    assert max(map(len, links)) <= 85
    assert "\u202e" not in "".join(links)


@pytest.mark.parametrize("links", range(8))
@pytest.mark.parametrize("website", ["", "https://x.example"])
def test_links_are_counted_up_to_five(links: int, website: str) -> None:
    text = "<a " + " ".join(f"https://{n}.example" for n in range(links))
    tokens = tokens_of("", website, safe_html(text))
    count = min(5, links + bool(website))
    assert [token for token in tokens if token.startswith("links:")] == [f"links:{count}"]


@given(text=st.text(max_size=200), name=st.text(max_size=30), key=st.binary(max_size=100))
def test_anything_that_is_written_is_read_and_becomes_numbers_of_the_database(
    text: str, name: str, key: bytes
) -> None:
    tokens = tokens_of(name, "", safe_html(text))
    assert tokens == [*dict.fromkeys(tokens)]
    assert all(token and token == token.strip() for token in tokens)
    assert all(-(2**63) <= token_hash(key, token) < 2**63 for token in tokens)


def test_what_a_word_is_known_as_hangs_on_the_word_and_the_key() -> None:
    told = {
        token_hash(key, word) for key in (b"a" * 32, b"b" * 32) for word in ("x", "y", "name:x")
    }
    assert len(told) == 6
    assert token_hash(b"a" * 99, "x") == token_hash(b"a" * 99, "x")  # longer than a hash takes


# The figures


@pytest.mark.parametrize(
    ("seen", "all", "figure"),
    [
        ((0, 0), (10, 10), 0.5),
        ((0, 1), (10, 10), 1.225 / 1.45),
        ((1, 0), (10, 10), 0.225 / 1.45),
        ((1, 1), (10, 10), 0.5),
        ((10, 1), (100, 10), 0.5),  # as often in each, though not of each
        ((1, 3), (10, 10), (0.225 + 4 * 0.75) / 4.45),
        ((0, 9), (0, 9), 9.225 / 9.45),
        ((9, 0), (9, 0), 0.225 / 9.45),
    ],
)
def test_a_word_is_as_bad_as_robinson_has_it(
    seen: tuple[int, int], all: tuple[int, int], figure: float
) -> None:
    assert badness(seen, all) == pytest.approx(figure)


@given(st.tuples(*[st.integers(0, 10**9)] * 2), st.tuples(*[st.integers(5, 10**9)] * 2))
def test_no_word_is_certain(seen: tuple[int, int], all: tuple[int, int]) -> None:
    """Else one would have an infinite logarithm. The counts may be wrong: words are forgotten."""
    assert 0 < badness(seen, all) < 1


# The 5 % (and 50 %, 99 %) points of the table that each book of statistics has.
TABLE = [
    (2, 5.991465, 0.05),
    (2, 1.386294, 0.5),
    (4, 9.487729, 0.05),
    (10, 18.307038, 0.05),
    (10, 2.558212, 0.99),
    (20, 31.410433, 0.05),
    (30, 43.772972, 0.05),
    (50, 67.504807, 0.05),
    (100, 124.342113, 0.05),
    (100, 70.064895, 0.99),
]


@pytest.mark.parametrize(("freedom", "x", "share"), TABLE)
def test_chi_squared_is_that_of_the_tables(freedom: int, x: float, share: float) -> None:
    assert chi_squared(x, freedom // 2) == pytest.approx(share, rel=1e-5)


CLUE = st.floats(1e-12, 1 - 1e-12)
SOME = st.lists(CLUE, max_size=150)


@given(SOME)
def test_a_score_lies_between_its_bounds_and_its_opposite_mirrors_it(clues: list[float]) -> None:
    score = spam_score(clues)
    assert 0 <= score <= 1
    assert score + spam_score(1 - clue for clue in clues) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("end", [1e-12, 1e-300])
def test_as_many_extreme_clues_as_count_do_not_overflow(end: float) -> None:
    most = math.nextafter(1, 0)
    assert spam_score([most] * 150) == pytest.approx(1)
    assert spam_score([end] * 150) == pytest.approx(0)
    assert spam_score([1 - 1e-9] * 75 + [1e-9] * 75) == pytest.approx(0.5)


def test_no_clue_says_nothing_and_one_alone_not_enough() -> None:
    assert spam_score([]) == pytest.approx(0.5)
    assert 0.5 < spam_score([0.99]) < 0.9 < spam_score([0.99] * 3)


@given(SOME, CLUE)
def test_one_more_bad_word_makes_nothing_better(clues: list[float], clue: float) -> None:
    worse = [max(0.5, clue) if n == 0 else each for n, each in enumerate([0.5, *clues])]
    assert spam_score(worse) >= spam_score([0.5, *clues]) - 1e-9


# How it learns


def tokens(db: sqlite3.Connection) -> Tokens:
    """All that it knows; of 0, how many comments that was."""
    return {hash: (ham, spam) for hash, ham, spam in rows(db, "SELECT hash, ham, spam FROM token")}


def figures(owner: Visitor) -> tuple[int, int, bool]:
    told = queue(owner)["filter"]
    assert {*told} == {"ham", "spam", "active"}
    return told["ham"], told["spam"], told["active"]


def learnt(owner: Visitor) -> dict[int, str]:
    return {each["id"]: each["learnt"] for each in queue(owner, limit=100)["comments"]}


def say(visitor: Visitor, text: str, **fields: Any) -> int:
    number: int = visitor.say(text, **fields)["comment"]["id"]
    return number


def by_list(owner: Judge, visitor: Visitor, number: int, status: str) -> None:
    judge(owner, [number], status)


def by_widget(owner: Judge, visitor: Visitor, number: int, status: str) -> None:
    owner.widget.post_json(f"/comments/{number}/moderate", {"status": status})


def by_letter(owner: Judge, visitor: Visitor, number: int, status: str) -> None:
    house = visitor.served.house
    comment = house.store.comment(number)
    assert comment
    link = judging_link(house, comment, status, "en", OWNER)
    visitor.post("/mail?" + link.partition("?")[2])


Way = Callable[[Judge, Visitor, int, str], None]
WAYS = pytest.mark.parametrize("way", [by_list, by_widget, by_letter])


@WAYS
@pytest.mark.parametrize(("status", "kind"), [("visible", "ham"), ("spam", "spam")])
def test_each_way_to_approve_and_to_mark_as_spam_teaches_and_its_undo_takes_that_back(
    owner: Judge, visitor: Visitor, db: sqlite3.Connection, way: Way, status: str, kind: str
) -> None:
    for number in range(3):
        judge(owner, [say(visitor, f"Known {number}, and more")], "visible")
    number = say(visitor, "Words, some known", website="https://x.example")
    judge(owner, [number], "waiting")
    before = rows(db, "SELECT * FROM token ORDER BY hash")
    for _ in range(2):
        way(owner, visitor, number, status)
        assert learnt(owner)[number] == kind
        ham, spam = tokens(db)[0]
        assert (ham, spam) == ((4, 0) if kind == "ham" else (3, 1))
        way(owner, visitor, number, "waiting")
        assert learnt(owner)[number] == ""
        assert rows(db, "SELECT * FROM token ORDER BY hash") == before


@WAYS
def test_what_is_judged_twice_is_learnt_once(
    owner: Judge, visitor: Visitor, db: sqlite3.Connection, way: Way
) -> None:
    number = say(visitor, "Words")
    way(owner, visitor, number, "visible")  # which it was
    assert (learnt(owner), figures(owner)) == ({number: "ham"}, (1, 0, False))
    once = tokens(db)
    assert {*once.values()} == {(1, 0)}
    way(owner, visitor, number, "visible")
    assert tokens(db) == once


def test_an_answer_approves_what_it_answers(owner: Judge, visitor: Visitor) -> None:
    number = say(visitor, "Does it scale?")
    judge(owner, [number], "waiting")
    do(owner, "reply", parent_id=number, content="It does.")
    assert learnt(owner) == {number: "ham", number + 1: ""}


def test_what_is_only_deleted_or_pinned_teaches_nothing(
    owner: Judge, visitor: Visitor, db: sqlite3.Connection
) -> None:
    gone, top = say(visitor, "Off topic"), say(visitor, "On topic")
    judge(owner, [gone], "deleted")
    do(owner, "comments", ids=[top], pinned=True)
    assert (learnt(owner), tokens(db)) == ({gone: "", top: ""}, {})


def test_spam_that_is_deleted_after_all_stays_learnt(owner: Judge, visitor: Visitor) -> None:
    number = say(visitor, "Casino")
    judge(owner, [number], "spam")
    judge(owner, [number], "deleted")
    assert (learnt(owner), figures(owner)) == ({number: "spam"}, (0, 1, False))


def test_what_was_good_and_is_deleted_is_forgotten_and_its_undo_teaches_it_again(
    owner: Judge, visitor: Visitor, db: sqlite3.Connection
) -> None:
    older, newer = say(visitor, "Casino one"), say(visitor, "Casino two")
    judge(owner, [newer], "spam")  # with which the other is learnt, unseen
    judge(owner, [older], "deleted")
    assert learnt(owner) == {older: "", newer: "spam"}
    assert tokens(db) == recount(visitor.served, db)
    judge(owner, [older], "visible")
    assert learnt(owner) == {older: "ham", newer: "spam"}


def test_the_author_of_spam_cannot_make_it_forget(
    owner: Judge, visitor: Visitor, db: sqlite3.Connection
) -> None:
    said = visitor.say("Casino bonus")
    judge(owner, [1], "spam")
    known = tokens(db)
    edit(visitor, said, "Thank you")
    assert (learnt(owner), tokens(db)) == ({1: ""}, known)
    judge(owner, [1], "visible")  # which he did not write when it was spam
    assert figures(owner) == (1, 1, False)


def test_with_spam_the_oldest_that_readers_see_is_learnt_as_good(
    owner: Judge, visitor: Visitor
) -> None:
    hidden, first, second, third, bad, worse = (say(visitor, f"No {n}") for n in range(6))
    judge(owner, [hidden], "waiting")
    judge(owner, [second], "visible")
    judge(owner, [bad], "spam")  # one of each is known already
    assert learnt(owner) == {
        hidden: "",
        first: "",
        second: "ham",
        third: "",
        bad: "spam",
        worse: "",
    }
    judge(owner, [worse], "spam")
    assert learnt(owner)[first] == "ham"
    assert figures(owner) == (2, 2, False)


def test_with_what_is_good_nothing_else_is_learnt(owner: Judge, visitor: Visitor) -> None:
    bad, worse, good = (say(visitor, f"No {n}") for n in range(3))
    judge(owner, [bad, worse], "spam")
    other = say(visitor, "No 3")
    assert learnt(owner) == {bad: "spam", worse: "spam", good: "ham", other: ""}
    judge(owner, [good], "spam")
    judge(owner, [other], "waiting")
    last = say(visitor, "No 4")
    judge(owner, [other], "visible")  # three are bad, one is good
    assert learnt(owner) == {**dict.fromkeys((bad, worse, good), "spam"), other: "ham", last: ""}


def test_of_many_clicks_at_once_one_teaches(
    app: App, owner: Judge, visitor: Visitor, db: sqlite3.Connection
) -> None:
    number = say(visitor, "Casino")
    desk = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "198.51.100.7"})
    desk.authorization = owner.authorization
    form = {"ids": [number], "status": "spam"}
    at_once([lambda: desk.post_json("/admin/comments", form) for _ in range(8)])
    assert tokens(db) == recount(app, db)
    assert tokens(db)[0] == (0, 1)


def test_spam_that_was_learnt_as_good_unseen_is_learnt_anew(
    owner: Judge, visitor: Visitor, db: sqlite3.Connection
) -> None:
    older, newer = say(visitor, "Casino one"), say(visitor, "Casino two")
    judge(owner, [newer], "spam")
    assert learnt(owner) == {older: "ham", newer: "spam"}
    judge(owner, [older], "spam")
    assert learnt(owner) == {older: "spam", newer: "spam"}
    assert {ham for ham, _ in tokens(db).values()} == {0}
    assert tokens(db)[0] == (0, 2)


def test_spam_that_is_shown_after_all_is_forgotten_and_good_when_it_is_approved_again(
    owner: Judge, visitor: Visitor, db: sqlite3.Connection
) -> None:
    number = say(visitor, "Words")
    judge(owner, [number], "spam")
    judge(owner, [number], "visible")
    assert (learnt(owner), tokens(db)) == ({number: ""}, {})
    judge(owner, [number], "visible")
    assert learnt(owner) == {number: "ham"}


def test_what_a_block_met_is_learnt_when_it_is_judged_only(owner: Judge, visitor: Visitor) -> None:
    block(owner, "word", "casino")
    one, other = say(visitor, "A casino"), say(visitor, "The casino")
    assert [*learnt(owner).values()] == ["", ""]
    judge(owner, [one], "spam")  # which it was
    judge(owner, [other], "visible")
    assert learnt(owner) == {one: "spam", other: "ham"}


def test_an_edit_makes_it_forget_the_old_text(
    owner: Judge, visitor: Visitor, db: sqlite3.Connection
) -> None:
    said = visitor.say("Words")
    judge(owner, [1], "visible")
    edit(visitor, said, "Others")
    assert (learnt(owner), tokens(db)) == ({1: ""}, {})
    judge(owner, [1], "visible")
    assert tokens(db) == recount(visitor.served, db)


@pytest.mark.parametrize("what", ["content", "nickname", "website"])
def test_the_owners_correction_makes_it_forget_what_stood_there(
    owner: Judge, visitor: Visitor, db: sqlite3.Connection, what: str
) -> None:
    number = say(visitor, "Words", website="https://x.example")
    judge(owner, [number], "spam")
    change(owner, f"comments/{number}", **{what: "https://other.example"})
    assert (learnt(owner), tokens(db)) == ({number: ""}, {})


def recount(app: App, db: sqlite3.Connection) -> Tokens:
    """What the filter should know, by what is noted at each comment."""
    known: dict[str, Counter[int]] = {"ham": Counter(), "spam": Counter()}
    for number, kind in rows(db, "SELECT id, learnt FROM comment WHERE learnt <> ''"):
        comment = app.house.store.comment(number)
        assert comment
        known[kind].update([0, *hashes_of(app.house, comment)])
    return {
        hash: (known["ham"][hash], known["spam"][hash]) for hash in known["ham"] | known["spam"]
    }


TEXTS = ["Casino bonus", "加微信 casino", "Thanks for the bonus", "谢谢", "see https://x.example"]
ACTIONS = st.one_of(
    st.tuples(
        st.just("judge"),
        st.lists(st.integers(1, 5), min_size=1, max_size=5),
        st.sampled_from(["visible", "waiting", "spam", "deleted"]),
    ),
    st.tuples(st.just("correct"), st.integers(1, 5), st.sampled_from(TEXTS)),
    st.tuples(st.just("edit"), st.integers(1, 5), st.sampled_from(TEXTS)),
)


@given(actions=st.lists(ACTIONS, max_size=12))
@how(suppress_health_check=list(HealthCheck))
def test_after_any_judgements_it_knows_what_stands_and_when_all_are_undone_nothing(
    app: App, db: sqlite3.Connection, actions: list[Any]
) -> None:
    for table in ("token", "comment", "page", "sqlite_sequence"):
        db.execute(f"DELETE FROM {table}")
    desk, reader = webtest.TestApp(app), webtest.TestApp(app)
    desk.authorization = ("Bearer", new_admin(app)[0])
    tokens_to_edit = {}
    for number, text in enumerate(TEXTS, 1):
        body = {"page_url": "/", "nickname": "Ann", "captcha_token": "x", "content": text}
        said = reader.post_json("/comments", body).json
        assert said["comment"]["id"] == number
        tokens_to_edit[number] = said["edit_token"]
    for do_what, which, wish in actions:
        if do_what == "judge":
            desk.post_json("/admin/comments", {"ids": which, "status": wish})
        elif do_what == "correct":
            desk.patch_json(f"/admin/comments/{which}", {"content": wish})
        elif rows(db, f"SELECT 1 FROM comment WHERE id = {which} AND status <> 'spam'"):
            body = {"content": wish, "edit_token": tokens_to_edit[which]}
            reader.patch_json(f"/comments/{which}", body, expect_errors=True)
        assert tokens(db) == recount(app, db)
    desk.post_json("/admin/comments", {"ids": [1, 2, 3, 4, 5], "status": "waiting"})
    assert tokens(db) == {}


# What it holds

SPAM = [
    "Best online casino, free bonus at https://casino-1.example",
    "Win real money: casino bonus without deposit https://casino-2.example",
    "Cheap pills online, no prescription https://pills.example",
    "Earn money from home, 500 dollars a day https://earn.example",
    "Casino slots, free spins and bonus https://casino-3.example",
    "加微信 vx8899 领取红包，日赚五百",
    "兼职刷单，日赚三百，加微信 vx6677",
    "加QQ群领取免费资料，名额有限",
    "澳门赌场上线，首存送彩金，加微信领取",
    "代开发票，加微信 vx1234，价格优惠",
]
GOOD = [
    "Thank you, the part about locks and backups helped me a lot.",
    "Does this work with Hugo 0.120 too? My build fails.",
    "There is a typo in the third paragraph: databse.",
    "I disagree: a backup that was never restored is no backup.",
    "Nice write-up. How do you deploy it behind nginx?",
    "写得很好，请问评论数据怎么备份？",
    "博主你好，第三段的代码有个小错误。",
    "我在服务器上试了，可以运行，谢谢分享。",
    "这个主题很好看，是自己写的吗？",
    "请问支持从旧博客导入文章评论吗？",
]
NEW_SPAM = {
    "Free casino bonus for you: https://casino-9.example": "casino",
    "Casino spins and bonus, win real money": "casino",
    "日赚五百，加微信领取": "微信",
    "加-微-信 vx8899，日 赚 五 百": "微信",
    "刷单兼职，加微信领取红包": "微信",
}
NEW_GOOD = [
    "Thank you! How do I restore a backup?",
    "My build fails with Hugo behind nginx, is that a known typo?",
    "请问评论怎么导入？谢谢博主。",
    "第三段写得很好，可以分享代码吗？",
    "A question about something else altogether",
    "完全不同的话题：昨天下雨了",
]


def taught(owner: Judge, visitor: Visitor) -> None:
    """Twenty clicks."""
    for text in GOOD:
        judge(owner, [say(visitor, text)], "visible")
    for number, text in enumerate(SPAM):
        judge(owner, [say(visitor, text, nickname=f"Guest {number}")], "spam")


@pytest.mark.parametrize("text", NEW_SPAM)
def test_after_twenty_clicks_spam_of_that_kind_is_held_and_says_why(
    owner: Judge, visitor: Visitor, text: str
) -> None:
    taught(owner, visitor)
    assert figures(owner) == (10, 10, True)
    said = visitor.say(text, nickname="Lu")["comment"]
    assert said["status"] == "waiting"
    status, why = held(owner)
    assert status == "waiting"
    score, named = why.removeprefix("learnt: ").split(" ", 1)
    assert 0.9 <= float(score) <= 1
    assert NEW_SPAM[text] in named.split(", ")
    assert 1 <= len(named.split(", ")) <= 5
    said_of = {
        each["token"]: each["score"] for each in queue(owner)["comments"][0]["spam"]["tokens"]
    }
    for word in named.split(", "):
        assert max(said_of.get(kind + word, 0) for kind in ("", "name:", "link:")) > 0.5
    assert said["id"] not in shown(visitor)


@pytest.mark.parametrize("text", NEW_GOOD)
def test_after_twenty_clicks_what_is_good_passes(owner: Judge, visitor: Visitor, text: str) -> None:
    taught(owner, visitor)
    say(visitor, text, nickname="Lu")
    assert held(owner) == ("visible", "")


def test_an_owner_who_only_marks_spam_is_helped_too(owner: Judge, visitor: Visitor) -> None:
    for text in GOOD:
        say(visitor, text)
    for text in SPAM:
        judge(owner, [say(visitor, text)], "spam")
    assert figures(owner) == (10, 10, True)
    for text in NEW_SPAM:
        say(visitor, text, nickname="Lu")
        assert held(owner)[0] == "waiting"
    for text in NEW_GOOD:
        say(visitor, text, nickname="Lu")
        assert held(owner) == ("visible", "")


@pytest.mark.parametrize(
    ("good", "bad", "active"),
    [
        (10, 10, True),
        (15, 5, True),
        (5, 15, True),
        (10, 9, False),
        (16, 4, False),
        (4, 16, False),
        (20, 0, False),
    ],
)
def test_it_is_off_until_it_knows_twenty_with_five_of_each(
    owner: Judge, visitor: Visitor, good: int, bad: int, active: bool
) -> None:
    judge(owner, [say(visitor, f"Good words {n}") for n in range(good)], "visible")
    for number in range(bad):
        say(visitor, f"Casino bonus for all {number}")
        assert held(owner) == ("visible", "")
        judge(owner, [good + number + 1], "spam")
    assert figures(owner) == (good, bad, active)
    say(visitor, "Casino bonus for all of you")
    assert held(owner)[0] == ("waiting" if active else "visible")
    judge(owner, [good + bad + 1], "waiting")
    newest = queue(owner)["comments"][0]
    assert (newest["spam"] is not None) == active


def test_it_stops_when_what_it_learnt_is_taken_back(owner: Judge, visitor: Visitor) -> None:
    taught(owner, visitor)
    judge(owner, [20], "waiting")
    assert figures(owner) == (10, 9, False)
    say(visitor, next(iter(NEW_SPAM)))
    assert held(owner) == ("visible", "")


def test_the_owner_reads_the_score_and_the_words_that_made_it(
    owner: Judge, visitor: Visitor
) -> None:
    taught(owner, visitor)
    judge(owner, [say(visitor, "Casino bonus: thank you, 加微信", nickname="Lu")], "waiting")
    opinion = queue(owner)["comments"][0]["spam"]
    assert {*opinion} == {"score", "tokens"}
    assert 0 <= opinion["score"] <= 1
    found = {each["token"]: each["score"] for each in opinion["tokens"]}
    assert {"casino", "bonus", "微信"} <= {token for token, score in found.items() if score > 0.5}
    assert {"thank"} <= {token for token, score in found.items() if score < 0.5}
    far = [abs(score - 0.5) for score in found.values()]
    assert far == sorted(far, reverse=True)
    assert len(found) <= 10
    assert min(far) >= 0.1
    assert {"lu", "name:lu"}.isdisjoint(found)


def test_words_that_say_neither_are_not_named(owner: Judge, visitor: Visitor) -> None:
    taught(owner, visitor)
    for status in ("visible", "spam"):
        judge(owner, [say(visitor, "Both", nickname="Lu")], status)
    judge(owner, [say(visitor, "Both, thank, casino", nickname="Lu")], "waiting")
    found = {each["token"] for each in queue(owner)["comments"][0]["spam"]["tokens"]}
    assert found >= {"thank", "casino"}
    assert {"both", "name:lu"}.isdisjoint(found)
    judge(owner, [say(visitor, "Thank you, casino bonus, win real money", nickname="Lu")], "spam")
    say(visitor, "Thank you: casino bonus, win real money", nickname="Lu")
    assert held(owner)[1].split(" ", 2)[2] == "bonus, casino, money, real, win"
    say(visitor, "Casino bonus: https://new.example", nickname="Max")
    assert held(owner)[1].split(" ", 2)[2] == "bonus, casino"  # and nothing of its one link


def test_what_only_might_be_spam_passes(owner: Judge, visitor: Visitor) -> None:
    taught(owner, visitor)
    number = say(visitor, "Real questions", nickname="Lu")
    assert held(owner) == ("visible", "")
    judge(owner, [number], "waiting")
    assert 0.6 < queue(owner)["comments"][0]["spam"]["score"] < 0.9


def test_readers_and_authors_are_told_nothing_of_it(owner: Judge, visitor: Visitor) -> None:
    taught(owner, visitor)
    said = visitor.say(next(iter(NEW_SPAM)), nickname="Lu")
    assert said["comment"]["status"] == "waiting"
    for public in (said["comment"], *visitor.listing(limit=100)["comments"]):
        assert {"held", "learnt", "spam", "score", "reports"}.isdisjoint(public)
    assert "learnt" not in str(said)


def test_it_hides_nothing_that_readers_see_and_deletes_nothing(
    owner: Judge, visitor: Visitor
) -> None:
    seen = [say(visitor, text, nickname="Lu") for text in NEW_SPAM]
    taught(owner, visitor)
    visitor.served.tick()
    assert {*seen} <= {*shown(visitor)}
    assert "deleted" not in {each["status"] for each in queue(owner, limit=100)["comments"]}


def test_an_edit_into_spam_is_held_and_one_of_the_same_kind_as_before_is_not(
    owner: Judge, visitor: Visitor
) -> None:
    taught(owner, visitor)
    said = visitor.say(NEW_GOOD[0], nickname="Lu")
    assert edit(visitor, said, NEW_GOOD[1]) == "visible"
    assert edit(visitor, said, next(iter(NEW_SPAM))) == "waiting"
    assert held(owner)[1].startswith("learnt: ")
    assert said["comment"]["id"] not in shown(visitor)
    # It does not come back by itself, but by the owner's hand.
    assert edit(visitor, said, NEW_GOOD[0]) == "waiting"
    judge(owner, [said["comment"]["id"]], "visible")
    assert said["comment"]["id"] in shown(visitor)


def test_what_an_admin_writes_is_never_held(owner: Judge, visitor: Visitor) -> None:
    taught(owner, visitor)
    for text in NEW_SPAM:
        assert owner.widget.say(text, nickname="")["comment"]["status"] == "visible"


def test_a_block_counts_more(owner: Judge, visitor: Visitor) -> None:
    taught(owner, visitor)
    block(owner, "word", "casino")
    say(visitor, next(iter(NEW_SPAM)), nickname="Lu")
    assert held(owner) == ("spam", "block: casino")
    assert queue(owner)["comments"][0]["spam"]["score"] >= 0.9


@settled(moderation_hold="all")
def test_where_all_wait_the_queue_has_its_opinion_too(owner: Judge, visitor: Visitor) -> None:
    taught(owner, visitor)
    for text, verdict in ((next(iter(NEW_SPAM)), True), (NEW_GOOD[0], False)):
        say(visitor, text, nickname="Lu")
        assert held(owner)[0] == "waiting"
        assert (queue(owner)["comments"][0]["spam"]["score"] >= 0.9) == verdict


def test_what_is_imported_is_not_held(
    owner: Judge,
    visitor: Visitor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    taught(owner, visitor)
    text = next(iter(NEW_SPAM))
    assert queue(owner)["filter"]["active"]
    thread = [Said("1", START - DAY, text=text)]
    (tmp_path / "export").write_bytes(wordpress(thread))
    monkeypatch.setenv("COMMENTD_DATABASE_PATH", visitor.served.house.store.path)
    assert main(["import", str(tmp_path / "export")]) == 0, capsys.readouterr()
    (newest,) = [each for each in queue(owner)["comments"] if text.split(":")[0] in each["content"]]
    assert (newest["status"], newest["learnt"]) == ("visible", "")


# What it keeps, and what that costs


def test_no_name_and_no_address_of_an_account_is_left_in_why_its_comments_were_held(
    owner: Judge, visitor: Visitor, ann: Visitor, db: sqlite3.Connection
) -> None:
    taught(owner, visitor)
    for number in range(3):
        judge(owner, [say(visitor, f"Casino {number}", nickname="Zorro")], "spam")
    ann.say(next(iter(NEW_SPAM)), nickname="Zorro")
    assert "zorro" in held(owner)[1]
    block(owner, "email", "ann@example.com")
    ann.say("One more")
    assert held(owner)[1] == "block: example.com"
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})
    assert rows(db, "SELECT DISTINCT held FROM comment") == [("",)]


def test_what_it_learnt_outlives_the_comments_and_holds_no_word_of_them(
    owner: Judge, visitor: Visitor, outside: Outside, db: sqlite3.Connection
) -> None:
    taught(owner, visitor)
    store = visitor.served.house.store
    with store.writing():
        for number in range(1, 21):
            store.erase_comment(number)
    for _ in range(2):
        outside.time += MINUTE
        visitor.served.tick()
    path = Path(store.path)
    data = b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*"))
    found = {*words(" ".join([*GOOD, *SPAM]))} - {"link:example"}
    long = [word for word in found if len(word.encode()) > 5]
    assert len(long) > 100
    assert [word for word in long if word.removeprefix("link:").encode() in data] == []
    assert {type(each) for row in rows(db, "SELECT * FROM token") for each in row} == {int}
    say(visitor, next(iter(NEW_SPAM)), nickname="Lu")
    assert held(owner)[0] == "waiting"


def test_two_services_know_the_same_word_by_different_numbers(
    app: App, config: Config, outside: Outside, tmp_path: Path
) -> None:
    path = str(tmp_path / "other.db")
    with closing(make_app(replace(config, database_path=path), outside.world, rounds=1)) as other:
        keys = [each.house.key for each in (app, other)]
    assert token_hash(keys[0], "casino") != token_hash(keys[1], "casino")
    assert_whole(path)


def test_it_keeps_the_words_that_were_learnt_last_and_how_many_comments_there_were(
    app: App, owner: Judge, outside: Outside, db: sqlite3.Connection
) -> None:
    db.execute("INSERT INTO token VALUES (0, 70, 80, 1)")
    many = [(number, 1, 0, 100 + number) for number in range(1, 60_001)]
    db.execute("BEGIN")
    db.executemany("INSERT INTO token VALUES (?, ?, ?, ?)", many)
    db.execute("COMMIT")
    outside.time += MINUTE
    app.tick()
    left = [hash for (hash,) in rows(db, "SELECT hash FROM token ORDER BY hash")]
    assert left[0] == 0
    assert left[-1] == 60_000
    assert 50_000 <= len(left) - 1 <= 50_001
    assert left[1:] == [*range(left[1], 60_001)]
    assert figures(owner) == (70, 80, True)


LONGEST = "".join(chr(0x4E00 + number) for number in range(2000))


@contextmanager
def traced(app: App) -> Iterator[list[str]]:
    asked: list[str] = []
    store = app.house.store
    for connection in (store.writer, store.db):
        connection.set_trace_callback(asked.append)
    yield asked
    for connection in (store.writer, store.db):
        connection.set_trace_callback(None)


def test_the_longest_comment_is_looked_up_in_some_twenty_questions(
    app: App, owner: Judge, visitor: Visitor
) -> None:
    taught(owner, visitor)
    name = "".join(chr(0x6E00 + number) for number in range(64))
    with traced(app) as asked:
        say(visitor, LONGEST, nickname=name, website="https://x.example")
    questions = [sql for sql in asked if "token" in sql]
    assert 20 <= len(questions) <= 25
    assert {sql.split()[0] for sql in questions} == {"SELECT"}
    plans = [row[3] for sql in questions[:1] for row in explained(app, sql)]
    assert plans
    assert all("SEARCH" in plan for plan in plans)


def explained(app: App, sql: str) -> list[Any]:
    with closing(sqlite3.connect(app.house.store.path)) as db:
        return db.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()


def test_a_comment_costs_no_more_when_much_was_learnt(
    app: App, owner: Judge, visitor: Visitor, db: sqlite3.Connection
) -> None:
    taught(owner, visitor)

    def cost() -> int:
        with traced(app) as asked:
            say(visitor, f"One question more: {len(asked)}")
        return len(asked)

    before = cost()
    many = [(number, 1, 0, 100) for number in range(1, 20_001)]
    db.execute("BEGIN")
    db.executemany("INSERT INTO token VALUES (?, ?, ?, ?)", many)
    db.execute("COMMIT")
    assert cost() == before


def test_a_comment_is_read_by_what_it_shows(app: App, visitor: Visitor) -> None:
    number = say(visitor, "Words of *mine*", nickname="Lu", website="https://x.example")
    comment: Comment | None = app.house.store.comment(number)
    assert comment
    shown_words = tokens_of("Lu", "https://x.example", comment.html)
    known = [token_hash(app.house.key, word) for word in shown_words]
    assert sorted(hashes_of(app.house, comment)) == sorted(known)


# What takes long is done while others can write

COSTLY = (
    *("safe_html", "clean", "tokens_of", "hosts_in", "plain_host", "folded", "met"),
    *("verdict", "opinion", "hashes_of"),
)


class Watched:
    """The costly functions that ran, those of them that ran while others could not write, and the
    handlers that were called, as the interpreter saw them."""

    def __init__(self, app: App) -> None:
        self.store = app.house.store
        self.costly: dict[CodeType, str] = {Places.of.__code__: "places"}
        self.costly |= {getattr(commentd, name).__code__: name for name in COSTLY}
        self.handlers = {route.handler.__code__: route.handler.__name__ for route in ROUTES}
        self.ran: set[str] = set()
        self.held_others: list[tuple[str, str]] = []
        self.asked: list[str] = []

    def see(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        if handler := self.handlers.get(frame.f_code):
            self.asked.append(handler)
        if name := self.costly.get(frame.f_code):
            self.ran.add(name)
            if getattr(self.store.local, "writing", False):
                self.held_others.append((self.asked[-1], name))


@contextmanager
def watched(app: App) -> Iterator[Watched]:
    seen = Watched(app)
    sys.setprofile(seen.see)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def written_in_all_ways(app: App, owner: Judge, ann: Visitor, outside: Outside) -> None:
    """A request for each route that writes."""
    ann.register("bob@example.com")
    app.deliver()
    recipients = [letter.recipient for letter in outside.letters]
    ann.verify(outside.code(recipients.index("bob@example.com")), "bob@example.com")
    bob = Judge(app, ip="192.0.2.9")
    bob.authorization = ("Bearer", bob.login("bob@example.com")["token"])
    guest = Judge(app)
    said = guest.say("see https://x.example", website="https://y.example")
    number = said["comment"]["id"]
    guest.say("see https://x.example", website="https://y.example")  # a double click
    guest.post_json("/comments/preview", {"content": "hi"})
    guest.post_json("/comment/like", {"id": number})
    guest.post_json("/page/like", {"page_url": "/new/"})
    guest.post_json(f"/comments/{number}/report", {})
    for status in ("visible", "spam", "waiting", "visible"):
        by_list(owner, guest, number, status)
        by_widget(owner, guest, number, status)
        by_letter(owner, guest, number, status)
        edit(guest, said, f"https://x.example {status}")
        change(owner, f"comments/{number}", content=f"corrected {status}")
    pin(owner, [number])
    do(owner, "reply", parent_id=number, content="see https://x.example")
    guest.delete_json(f"/comments/{number}", {"edit_token": said["edit_token"]})
    bob.post_json("/page/follow", {"page_url": "/new/"})
    bob.patch_json("/me", {"nickname": "Bobby"})
    learnt = bob.say("see https://x.example", page_url="/new/")["comment"]["id"]
    by_list(owner, guest, learnt, "visible")
    bob.delete_json("/me", {"password": CANARY, "comments": "keep"})
    ann.post_json("/auth/logout", {})
    owner_writes(app, owner, outside)


def owner_writes(app: App, owner: Judge, outside: Outside) -> None:
    change(owner, "pages/1", closed=False)
    change(owner, "users/2", blocked=True)
    drop(owner, f"blocks/{block(owner, 'domain', 'other.example')['block']['id']}")
    outside.mail_fails_with = ConnectionRefusedError()
    Judge(app).register("lu@example.com")
    with app.house.store.writing():
        app.house.store.add_letter(
            recipient="x@example.com", message="Subject: x", created_at=1, due_at=1, expires_at=1
        )
    app.deliver()
    letters = [letter["id"] for letter in owner.get("/admin/outbox").json["letters"]]
    do(owner, f"outbox/{letters[0]}")
    app.deliver()
    drop(owner, f"outbox/{letters[0]}")
    owner.post_json("/admin/backup", {"password": CANARY})
    claim(owner, new_admin_link(app.house.store, app.house.world, OWNER))
    link = new_admin_link(app.house.store, app.house.world, OWNER)
    do(owner, "link", link=link)
    form = {"email": OWNER, "password": CANARY, "captcha_token": "x"}
    token = owner.post_json("/admin/login", form).json["token"]
    owner.authorization = ("Bearer", token)
    do(owner, "logout")


def test_no_route_keeps_others_from_writing_while_it_reads_a_text(
    app: App, owner: Judge, ann: Visitor, outside: Outside
) -> None:
    taught(owner, Judge(app))
    block(owner, "domain", "evil.example")
    block(owner, "address", "192.0.2.200")
    block(owner, "word", "casino")
    with watched(app) as seen:
        written_in_all_ways(app, owner, ann, outside)
    writing = {route.handler.__name__ for route in ROUTES if route.method != "GET"}
    assert writing - {*seen.asked} == set()
    assert seen.ran == {*COSTLY, "places"}
    assert seen.held_others == []


@pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}], ids=["limits"])
def test_for_who_is_beyond_a_limit_no_text_is_read(
    app: App, owner: Judge, outside: Outside
) -> None:
    guest = Judge(app)
    said = [guest.say(f"number {number}", captcha_token=solved(guest)) for number in range(5)]
    spare = solved(guest)
    with watched(app) as seen:
        guest.say("six", captcha_token=spare, status=429)
        form = {"content": "other", "edit_token": said[0]["edit_token"]}
        guest.patch_json("/comments/1", form, status=429)
    assert {"safe_html", "tokens_of", "places"} & seen.ran == set()
    outside.time += MINUTE
    for number in range(19):
        guest.post_json("/page/like", {"page_url": f"/{number}/"})
        outside.time += MINUTE
    with watched(app) as seen:
        guest.say("a new page", page_url="/21/", captcha_token=spare, status=429)
    assert {"safe_html", "tokens_of", "places"} & seen.ran == set()
    guest.say("a known page", captcha_token=spare)


@pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}], ids=["limits"])
def test_for_a_retry_no_text_is_read_and_no_limit_counts(app: App) -> None:
    guest = Judge(app)
    token = solved(guest)
    first = guest.say("number 0", captcha_token=token)
    for number in range(1, 5):
        guest.say(f"number {number}", captcha_token=solved(guest))
    with watched(app) as seen:
        assert guest.say("number 0", captcha_token=token) == first
    assert {"safe_html", "tokens_of", "places"} & seen.ran == set()


def before_it_writes(
    app: App, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]
) -> webtest.TestApp:
    """A client whose next request is overtaken by an act, after it was made ready to be written."""
    store = app.house.store
    writing = store.writing

    @contextmanager
    def held() -> Iterator[None]:
        monkeypatch.undo()
        act()
        with writing():
            yield

    monkeypatch.setattr(store, "writing", held)
    return webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})


@WAYS
@pytest.mark.parametrize("status", ["visible", "spam"])
def test_what_is_edited_just_before_it_is_judged_is_read_again(
    app: App,
    owner: Judge,
    visitor: Visitor,
    db: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
    way: Way,
    status: str,
) -> None:
    said = visitor.say("Words")
    link = judging_link(app.house, app.house.store.comment(1), status, "en", OWNER)
    late = before_it_writes(app, monkeypatch, lambda: edit(visitor, said, "Other words"))
    if way is by_letter:
        page = late.post("/mail?" + link.partition("?")[2], status=409)
        assert "Other words" in page.text
    elif way is by_widget:
        late.authorization = owner.widget.authorization
        answer = late.post_json("/comments/1/moderate", {"status": status}, status=409)
        assert answer.json["code"] == "text_changed"
    else:
        late.authorization = owner.authorization
        answer = late.post_json("/admin/comments", {"ids": [1], "status": status})
        assert (answer.json["comments"], answer.json["changed"]) == ([], [1])
    assert (learnt(owner), tokens(db)) == ({1: ""}, {})
    way(owner, visitor, 1, status)
    assert tokens(db) == recount(app, db)
    assert tokens(db)[0] != (0, 0)


def test_spam_is_marked_though_the_good_one_beside_it_was_just_edited(
    app: App,
    owner: Judge,
    visitor: Visitor,
    db: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = visitor.say("Good words")
    bad = say(visitor, "Casino")
    late = before_it_writes(app, monkeypatch, lambda: edit(visitor, good, "Better words"))
    late.authorization = owner.authorization
    late.post_json("/admin/comments", {"ids": [bad], "status": "spam"})
    assert learnt(owner) == {1: "", bad: "spam"}
    assert tokens(db) == recount(app, db)


def test_of_two_edits_in_one_moment_the_filter_keeps_neither(
    app: App,
    owner: Judge,
    visitor: Visitor,
    db: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = visitor.say("Words")
    judge(owner, [1], "visible")
    late = before_it_writes(app, monkeypatch, lambda: edit(visitor, said, "Others"))
    late.patch_json("/comments/1", {"content": "Last", "edit_token": said["edit_token"]})
    assert visitor.listing()["comments"][0]["content"] == "Last"
    assert (learnt(owner), tokens(db)) == ({1: ""}, {})


Act = Callable[[Judge, Visitor, str], object]


def four_more(owner: Judge, visitor: Visitor, token: str) -> None:
    for number in range(4):
        visitor.say(f"number {number}", captcha_token=solved(visitor))


OVERTAKEN: dict[str, tuple[int, str, Act]] = {
    "the page closes": (403, "page_closed", lambda o, v, t: change(o, "pages/1", closed=True)),
    "its parent goes": (404, "parent_gone", lambda o, v, t: judge(o, [1], "deleted")),
    "its captcha is spent": (403, "captcha_failed", lambda o, v, t: v.say("ho", captcha_token=t)),
    "a limit is used up": (429, "too_many", four_more),
    "an admin takes the name": (
        *(409, "nickname_taken"),
        lambda o, v, t: o.widget.patch_json("/me", {"nickname": "Zoe"}),
    ),
}


@pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}], ids=["limits"])
@pytest.mark.parametrize("what", OVERTAKEN)
def test_what_became_wrong_while_a_comment_was_made_ready_is_refused(
    app: App, owner: Judge, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    status, code, act = OVERTAKEN[what]
    guest = Judge(app)
    guest.say("first", captcha_token=solved(guest))
    token = solved(guest)
    late = before_it_writes(app, monkeypatch, lambda: act(owner, guest, token))
    form = {"page_url": PAGE, "nickname": "Zoe", "content": "late", "captcha_token": token}
    answer = late.post_json("/comments", {**form, "parent_id": 1}, status=status)
    assert answer.json["code"] == code
    assert "late" not in [each["content"] for each in queue(owner, limit=100)["comments"]]


@pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}], ids=["limits"])
def test_of_a_double_click_that_is_made_ready_twice_one_comment_comes(
    app: App, owner: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = Judge(app)
    said: list[Any] = []
    form = {"page_url": PAGE, "nickname": "Ann", "content": "hi", "captcha_token": solved(guest)}
    late = before_it_writes(app, monkeypatch, lambda: said.append(guest.say(**form)))
    assert late.post_json("/comments", form).json == said[0]
    assert len(queue(owner)["comments"]) == 1
