"""The spam filter: which terms it reads of a comment, how it learns and forgets, what it holds, and
what it says and keeps of that."""

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import webtest

from commentd import App, Config, main, make_app, safe_html
from support import inside
from support.admin import (
    OWNER,
    block,
    change,
    do,
    held,
    moderate,
    new_owner,
    queue,
    rows,
    shown,
    with_settings,
)
from support.admin import owner as owner  # a fixture
from support.client import CANARY, PAGE, Visitor
from support.comments import solved
from support.products import ForeignComment, wordpress
from support.world import START, FakeWorld

ANN = "ann@example.com"
MINUTE, DAY = 60, 86400
SETTINGS: dict[str, Any] = {
    "limits_enabled": False,
    "server_public_url": "https://comments.example",
}
WITH_CAPTCHA = pytest.mark.parametrize("settings", [{"captcha_provider": "altcha"}], ids=["limits"])
Counts = dict[int, list[int]]


@pytest.fixture
def settings() -> dict[str, Any]:
    return SETTINGS


# What it reads of a comment


def words(text: str, nickname: str = "", website: str = "") -> set[str]:
    """What a comment is known by."""
    terms = inside.terms_of(nickname, website, safe_html(text))
    assert len({*terms}) == len(terms)
    return {*terms}


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


def test_the_filter_reads_words_however_they_are_spelt_and_pairs_where_no_blanks_part_them() -> (
    None
):
    for text, expected in WORDS.items():
        found = {term for term in words(text) if not term.startswith("links:")}
        assert found == {*expected.split()}, text
    assert words("hi", "Casino 加微信", "https://www.shop.example/x") == {
        "hi",
        "name:casino",
        "name:加微",
        "name:微信",
        "links:1",
        "link:www.shop.example",
        "link:shop.example",
    }
    for links in range(8):
        text = " ".join(f"https://{n}.example" for n in range(links))
        assert f"links:{min(5, links)}" in words(text)
    for host in (".".join(["a" * 60] * 4), "e\u202evil.example"):
        named = [term for term in words(f"http://{host}/") if term.startswith("link:")]
        assert 0 < max(map(len, named)) <= 85
        assert "\u202e" not in "".join(named)


def test_the_filter_scores_terms_by_their_counts_and_many_extreme_ones_do_not_overflow(
    app: App, owner: Visitor, visitor: Visitor, db: sqlite3.Connection
) -> None:
    bad, good = ([f"{kind}{n}" for n in range(70)] for kind in ("bad", "good"))
    learn = "INSERT INTO term VALUES (?, ?, ?, 1)"
    seen = {"once": (0, 1), "thrice": (1, 3), "never": (1, 0)}
    seen |= dict.fromkeys(bad, (0, 10**9)) | dict.fromkeys(good, (10**9, 0))
    db.execute(learn, (0, 10, 10))
    for term, (fine, spam) in seen.items():
        db.execute(learn, (inside.term_number(app, term), fine, spam))
    for text, least, most in (
        ("once", 0.71, 0.71),  # a single word says little
        ("once thrice never", 0.61, 0.61),
        (" ".join(bad), 0.99, 1),
        (" ".join(good), 0, 0.01),
        (" ".join([*bad, *good]), 0.49, 0.51),
    ):
        moderate(owner, [say(visitor, text)], "waiting")
        opinion = queue(owner)["comments"][0]["spam"]
        assert least <= opinion["score"] <= most, text
        assert opinion["score"] == round(opinion["score"], 2), text
        terms = opinion["tokens"]
        if text == "once thrice never":  # as Robinson has it
            found = {each["token"]: each["score"] for each in terms}
            expected = {"once": 1.225 / 1.45, "thrice": 3.225 / 4.45, "never": 0.225 / 1.45}
            assert found == pytest.approx(expected, abs=0.01)


# How it learns


def counts(db: sqlite3.Connection) -> Counts:
    """All that it knows, by numbers of terms: in how many good and bad comments; of 0, how many
    comments that was."""
    return {each: figures for each, *figures in rows(db, "SELECT hash, ham, spam FROM term")}


def recount(app: App, db: sqlite3.Connection) -> Counts:
    """What it should know, by what is noted at each comment."""
    known: dict[str, Counter[int]] = {"ham": Counter(), "spam": Counter()}
    sql = "SELECT learnt, nickname, website, html FROM comment WHERE learnt <> ''"
    for kind, *words in rows(db, sql):
        known[kind].update(
            [0, *(inside.term_number(app, term) for term in inside.terms_of(*words))]
        )
    terms = known["ham"] | known["spam"]
    return {each: [known["ham"][each], known["spam"][each]] for each in terms}


def figures(owner: Visitor) -> tuple[int, int, bool]:
    shown = queue(owner)["filter"]
    assert {*shown} == {"ham", "spam", "active"}
    return shown["ham"], shown["spam"], shown["active"]


def learnt(owner: Visitor) -> dict[int, str]:
    return {each["id"]: each["learnt"] for each in queue(owner, limit=100)["comments"]}


def say(visitor: Visitor, text: str, **fields: Any) -> int:
    number: int = visitor.say(text, **fields)["comment"]["id"]
    return number


def by_list(owner: Visitor, visitor: Visitor, number: int, status: str) -> None:
    moderate(owner, [number], status)


def by_widget(owner: Visitor, visitor: Visitor, number: int, status: str) -> None:
    owner.widget.post_json(f"/comments/{number}/moderate", {"status": status})


def by_email(owner: Visitor, visitor: Visitor, number: int, status: str) -> None:
    visitor.post(inside.moderation_link(visitor.served, number, status, OWNER))


WAYS = (by_list, by_widget, by_email)


def test_each_way_to_approve_and_to_mark_as_spam_teaches_the_filter_and_its_undo_takes_that_back(
    owner: Visitor, visitor: Visitor, db: sqlite3.Connection
) -> None:
    for number in range(3):
        moderate(owner, [say(visitor, f"Known {number}, and more")], "visible")
    number = say(visitor, "Words, some known", website="https://x.example")
    moderate(owner, [number], "waiting")
    before = rows(db, "SELECT * FROM term ORDER BY hash")
    for way in WAYS:
        for status, kind, comments in (("visible", "ham", [4, 0]), ("spam", "spam", [3, 1])):
            for _ in range(2):  # what is moderated twice is learnt once
                way(owner, visitor, number, status)
                assert learnt(owner)[number] == kind
                assert counts(db)[0] == comments
            way(owner, visitor, number, "waiting")
            assert learnt(owner)[number] == ""
            assert rows(db, "SELECT * FROM term ORDER BY hash") == before


def test_a_reply_teaches_the_filter_and_deleting_or_pinning_does_not(
    owner: Visitor, visitor: Visitor
) -> None:
    gone, top = say(visitor, "Off topic"), say(visitor, "On topic")
    moderate(owner, [gone], "deleted")
    do(owner, "comments", ids=[top], pinned=True)
    assert learnt(owner) == {gone: "", top: ""}
    moderate(owner, [gone], "spam")
    moderate(owner, [gone], "deleted")
    moderate(owner, [top], "waiting")
    do(owner, "reply", parent_id=top, content="It is.")
    assert learnt(owner) == {gone: "spam", top: "ham", top + 1: ""}


def test_the_author_of_spam_can_not_make_the_filter_forget(
    owner: Visitor, visitor: Visitor
) -> None:
    posted = visitor.say("Casino bonus")
    moderate(owner, [1], "spam")
    visitor.edit(posted, "Thank you")
    assert (learnt(owner), figures(owner)) == ({1: ""}, (0, 1, False))
    moderate(owner, [1], "visible")  # another text than the one that was spam
    assert figures(owner) == (1, 1, False)


def test_the_filter_learns_the_oldest_visible_comment_as_good_with_each_spam(
    owner: Visitor, visitor: Visitor
) -> None:
    hidden, first, second, third, bad, worse = (say(visitor, f"No {n}") for n in range(6))
    moderate(owner, [hidden], "waiting")
    moderate(owner, [second], "visible")
    moderate(owner, [bad], "spam")  # one of each is known already
    known = {hidden: "", first: "", second: "ham", third: "", bad: "spam", worse: ""}
    assert learnt(owner) == known
    moderate(owner, [worse], "spam")
    assert learnt(owner) == known | {first: "ham", worse: "spam"}
    assert figures(owner) == (2, 2, False)


def test_the_filter_learns_nothing_when_spam_that_it_knows_is_deleted(
    owner: Visitor, visitor: Visitor
) -> None:
    bad = say(visitor, "Casino")
    moderate(owner, [bad], "spam")
    good = say(visitor, "Thank you")
    moderate(owner, [bad], "deleted")
    assert learnt(owner) == {bad: "spam", good: ""}


def test_the_filter_relearns_spam_that_it_took_for_good(
    owner: Visitor, visitor: Visitor, db: sqlite3.Connection
) -> None:
    older, newer = say(visitor, "Casino one"), say(visitor, "Casino two")
    moderate(owner, [newer], "spam")
    assert learnt(owner) == {older: "ham", newer: "spam"}
    moderate(owner, [older], "spam")
    assert {ham for ham, _ in counts(db).values()} == {0}
    assert counts(db)[0] == [0, 2]
    moderate(owner, [older, newer], "visible")
    assert (learnt(owner), counts(db)) == ({older: "", newer: ""}, {})
    moderate(owner, [newer], "visible")  # the second click approves it
    assert learnt(owner) == {older: "", newer: "ham"}


def test_the_filter_learns_a_blocked_comment_only_once_it_is_moderated(
    owner: Visitor, visitor: Visitor
) -> None:
    block(owner, "word", "casino")
    one, other = say(visitor, "A casino"), say(visitor, "The casino")
    assert [*learnt(owner).values()] == ["", ""]
    moderate(owner, [one], "spam")  # which it was
    moderate(owner, [other], "visible")
    assert learnt(owner) == {one: "spam", other: "ham"}


def test_an_edit_makes_the_filter_forget_the_former_text(
    owner: Visitor, visitor: Visitor, db: sqlite3.Connection
) -> None:
    posted = visitor.say("Words")
    moderate(owner, [1], "visible")
    visitor.edit(posted, "Others")
    assert (learnt(owner), counts(db)) == ({1: ""}, {})
    for what in ("content", "nickname", "website"):
        moderate(owner, [1], "visible")
        moderate(owner, [1], "spam")
        assert figures(owner) == (0, 1, False)
        change(owner, "comments/1", **{what: "https://other.example"})
        assert (learnt(owner), counts(db)) == ({1: ""}, {}), what


def test_the_filter_forgets_good_comments_that_authors_delete_but_no_spam(
    owner: Visitor, visitor: Visitor, app: App
) -> None:
    inside.add_account(app, ANN, "Ann", CANARY)
    ann = Visitor(app)
    ann.authorization = ("Bearer", inside.token_of(app, ANN))
    written = [visitor.say("Words"), visitor.say("Casino"), ann.say("Others"), ann.say("Pills")]
    moderate(owner, [1, 3], "visible")
    moderate(owner, [2, 4], "spam")
    assert figures(owner) == (2, 2, False)
    for number, posted in enumerate(written[:2], 1):
        visitor.delete_json(f"/comments/{number}", {"edit_token": posted["edit_token"]})
    assert figures(owner) == (1, 2, False)
    ann.delete_json("/me", {"password": CANARY, "comments": "delete"})
    assert figures(owner) == (0, 2, False)


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


def teach(owner: Visitor, visitor: Visitor) -> None:
    """Twenty clicks."""
    for text in GOOD:
        moderate(owner, [say(visitor, text)], "visible")
    for number, text in enumerate(SPAM):
        moderate(owner, [say(visitor, text, nickname=f"Guest {number}")], "spam")


@pytest.fixture(scope="module")
def database_after_twenty_clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("taught") / "commentd.db"
    config = replace(Config(captcha_provider="none"), database_path=str(path), **SETTINGS)
    fake_world = FakeWorld()
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        teach(new_owner(app), Visitor(app))
        app.deliver()
        fake_world.time += DAY
        app.deliver()  # no email to the owner is left
    return path


@pytest.fixture
def taught_filter(database_after_twenty_clicks: Path, config: Config) -> None:
    """What the service starts with; to be named before whatever needs the service."""
    shutil.copy(database_after_twenty_clicks, config.database_path)


def assert_passes(owner: Visitor, visitor: Visitor, text: str) -> None:
    say(visitor, text, nickname="Lu")
    assert held(owner) == ("visible", ""), text


def test_the_filter_holds_spam_after_twenty_clicks_with_its_reason_and_good_comments_pass(
    taught_filter: None, owner: Visitor, visitor: Visitor
) -> None:
    assert figures(owner) == (10, 10, True)
    for text, reason in NEW_SPAM.items():
        posted = visitor.say(text, nickname="Lu")["comment"]
        status, why = held(owner)
        assert posted["status"] == status == "waiting", text
        named, score = why.removeprefix("learnt: ").rsplit(" ", 1)
        assert 0.9 <= float(score.strip("()")) <= 1
        assert reason in named.split(", ")
        assert 1 <= len(named.split(", ")) <= 5
        assert posted["id"] not in shown(visitor)
        # Readers and authors are told nothing of it.
        for public in (posted, *visitor.listing(limit=100)["comments"]):
            assert {"held", "learnt", "spam", "score", "reports"}.isdisjoint(public)
    for text in NEW_GOOD:
        assert_passes(owner, visitor, text)
    for text in NEW_SPAM:
        posted = owner.widget.say(text, nickname="")  # what an admin writes is never held
        assert posted["comment"]["status"] == "visible"


@pytest.mark.slow
@pytest.mark.parametrize(("good", "bad"), [(15, 5), (5, 15), (10, 9), (16, 4), (4, 16)])
def test_the_filter_starts_at_twenty_comments_with_five_of_each_sort(
    owner: Visitor, visitor: Visitor, good: int, bad: int
) -> None:
    active = good + bad >= 20 and min(good, bad) >= 5
    moderate(owner, [say(visitor, f"Good words {n}") for n in range(good)], "visible")
    for number in range(bad):
        assert_passes(owner, visitor, f"Casino bonus for all {number}")
        moderate(owner, [good + number + 1], "spam")
    assert figures(owner) == (good, bad, active)
    say(visitor, "Casino bonus for all of you", nickname="Lu")
    assert held(owner)[0] == ("waiting" if active else "visible")
    moderate(owner, [good + bad + 1], "waiting")
    newest = queue(owner)["comments"][0]
    assert (newest["spam"] is not None) == active
    if active:  # it stops when what it learnt is taken back
        moderate(owner, [*range(good + 1, good + bad + 1)], "waiting")
        assert figures(owner) == (good, 0, False)
        assert_passes(owner, visitor, "Casino bonus for all of us")


def test_the_owner_sees_the_score_of_the_filter_and_the_words_that_made_it(
    taught_filter: None, owner: Visitor, visitor: Visitor
) -> None:
    for status in ("visible", "spam"):
        moderate(owner, [say(visitor, "Both", nickname="Lu")], status)
    moderate(
        owner, [say(visitor, "Both: casino bonus, thank you, 加微信", nickname="Lu")], "waiting"
    )
    opinion = queue(owner)["comments"][0]["spam"]
    assert {*opinion} == {"score", "tokens"}
    assert 0 <= opinion["score"] <= 1
    found = {each["token"]: each["score"] for each in opinion["tokens"]}
    assert {"casino", "bonus", "微信"} <= {term for term, score in found.items() if score > 0.5}
    assert {"thank"} <= {term for term, score in found.items() if score < 0.5}
    far = [abs(score - 0.5) for score in found.values()]
    assert far == sorted(far, reverse=True)
    assert len(found) <= 10
    assert min(far) >= 0.1
    assert {"both", "lu", "name:lu"}.isdisjoint(found)  # which say neither
    # What only might be spam passes.
    number = say(visitor, "Real questions", nickname="Lu")
    assert held(owner) == ("visible", "")
    moderate(owner, [number], "waiting")
    assert 0.6 < queue(owner)["comments"][0]["spam"]["score"] < 0.9
    say(visitor, "Casino bonus: https://new.example", nickname="Max")
    assert held(owner)[1].split(" (")[0] == "learnt: bonus, casino"  # and nothing of its one link


def test_an_edit_into_spam_is_held_and_one_of_the_same_kind_as_before_is_not(
    taught_filter: None, owner: Visitor, visitor: Visitor
) -> None:
    posted = visitor.say(NEW_GOOD[0], nickname="Lu")
    assert visitor.edit(posted, NEW_GOOD[1]) == "visible"
    assert visitor.edit(posted, next(iter(NEW_SPAM))) == "waiting"
    assert held(owner)[1].startswith("learnt: ")
    assert posted["comment"]["id"] not in shown(visitor)
    # It does not come back by itself, but when the owner approves it.
    assert visitor.edit(posted, NEW_GOOD[0]) == "waiting"
    moderate(owner, [posted["comment"]["id"]], "visible")
    assert posted["comment"]["id"] in shown(visitor)


@with_settings(moderation_hold="all")
def test_the_filter_scores_comments_where_all_wait_and_a_block_counts_more(
    taught_filter: None,
    owner: Visitor,
    visitor: Visitor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bad = next(iter(NEW_SPAM))
    for text, is_bad in ((bad, True), (NEW_GOOD[0], False)):
        say(visitor, text, nickname="Lu")
        assert held(owner)[0] == "waiting"
        assert (queue(owner)["comments"][0]["spam"]["score"] >= 0.9) == is_bad
    block(owner, "word", "casino")
    say(visitor, bad, nickname="Max")
    assert held(owner) == ("spam", "block: casino")
    # What is imported is not held.
    (tmp_path / "export").write_bytes(wordpress([ForeignComment("1", START - DAY, text=bad)]))
    monkeypatch.setenv("COMMENTD_DATABASE_PATH", inside.database_path(owner.served))
    assert main(["import", str(tmp_path / "export")]) == 0
    newest = max(queue(owner)["comments"], key=lambda each: each["id"])
    assert (newest["status"], newest["learnt"]) == ("visible", "")


# What it keeps, and what that costs


def test_the_reason_a_comment_was_held_keeps_no_name_or_email_address_of_a_deleted_account(
    taught_filter: None, owner: Visitor, visitor: Visitor, ann: Visitor, db: sqlite3.Connection
) -> None:
    for number in range(3):
        moderate(owner, [say(visitor, f"Casino {number}", nickname="Zorro")], "spam")
    ann.say(next(iter(NEW_SPAM)), nickname="Zorro")
    assert "zorro" in held(owner)[1]
    block(owner, "email", "ann@example.com")
    ann.say("One more")
    assert held(owner)[1] == "block: …@example.com"
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})
    assert rows(db, "SELECT DISTINCT held FROM comment") == [("",)]


def test_the_filter_keeps_its_knowledge_when_spam_is_erased_and_holds_no_word_of_it(
    owner: Visitor, visitor: Visitor, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    moderate(owner, [say(visitor, text) for text in GOOD], "visible")
    moderate(owner, [say(visitor, text, nickname="Guest") for text in SPAM], "spam")
    fake_world.time += 31 * DAY  # when spam is erased
    for _ in range(2):
        fake_world.time += MINUTE
        visitor.served.tick()
    path = Path(inside.database_path(visitor.served))
    data = b"".join(file.read_bytes() for file in path.parent.glob(path.name + "*"))
    found = words(" ".join(SPAM)) - words(" ".join(GOOD)) - {"link:example"}
    long = [word for word in found if len(word.encode()) > 5]
    assert len(long) > 30
    assert [word for word in long if word.removeprefix("link:").encode() in data] == []
    assert {type(each) for row in rows(db, "SELECT * FROM term") for each in row} == {int}
    posted = visitor.say(next(iter(NEW_SPAM)), nickname="Lu")
    assert posted["comment"]["status"] == "waiting"


def test_the_filter_keeps_the_terms_learnt_last_and_the_number_of_comments(
    app: App, owner: Visitor, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    db.execute("INSERT INTO term VALUES (0, 70, 80, 1)")
    many = [(number, 1, 0, 100 + number) for number in range(1, 60_001)]
    db.execute("BEGIN")
    db.executemany("INSERT INTO term VALUES (?, ?, ?, ?)", many)
    db.execute("COMMIT")
    fake_world.time += MINUTE
    app.tick()
    left = [number for (number,) in rows(db, "SELECT hash FROM term ORDER BY hash")]
    assert left[0] == 0
    assert left[-1] == 60_000
    assert 50_000 <= len(left) - 1 <= 50_001
    assert left[1:] == [*range(left[1], 60_001)]
    assert figures(owner) == (70, 80, True)


# What changes while a comment is made ready


def late_client(app: App, act: Callable[[], object]) -> webtest.TestApp:
    """Its next request is overtaken by an act, after it was made ready to be written."""
    inside.just_before_it_writes(app, act)
    return webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})


Act = Callable[[Visitor, Visitor, str], object]


def four_more(owner: Visitor, visitor: Visitor, token: str) -> None:
    for number in range(4):
        visitor.say(f"number {number}", captcha_token=solved(visitor))


OVERTAKEN: dict[str, tuple[int, str, Act]] = {
    "the page closes": (403, "page_closed", lambda o, v, t: change(o, "pages/1", closed=True)),
    "its parent goes": (404, "parent_gone", lambda o, v, t: moderate(o, [1], "deleted")),
    "its captcha is spent": (403, "captcha_failed", lambda o, v, t: v.say("ho", captcha_token=t)),
    "a limit is used up": (429, "too_many", four_more),
    "an admin takes the name": (
        409,
        "nickname_taken",
        lambda o, v, t: o.widget.patch_json("/me", {"nickname": "Zoe"}),
    ),
}


@pytest.mark.slow
@WITH_CAPTCHA
@pytest.mark.parametrize("changed_condition", OVERTAKEN)
def test_a_comment_whose_conditions_changed_while_it_was_sent_is_refused(
    app: App, owner: Visitor, changed_condition: str
) -> None:
    status, code, act = OVERTAKEN[changed_condition]
    guest = Visitor(app)
    guest.say("first", captcha_token=solved(guest))
    token = solved(guest)
    late = late_client(app, lambda: act(owner, guest, token))
    form = {"page_url": PAGE, "nickname": "Zoe", "content": "late", "captcha_token": token}
    answer = late.post_json("/comments", {**form, "parent_id": 1}, status=status)
    assert answer.json["code"] == code
    assert "late" not in [each["content"] for each in queue(owner, limit=100)["comments"]]
