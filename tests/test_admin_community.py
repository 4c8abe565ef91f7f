"""What readers report, what the spam filter thinks, and webhooks, on the owner's page in a real
Chromium. `test_admin_page.py` has the rest of the page."""

import json
import re
from typing import Any

import pytest
import test_admin_page as admin
from blog import say
from playwright.sync_api import Page, expect
from test_admin_page import (
    BLOG,
    MAIL,
    PHONE,
    WINDOW,
    Act,
    Desk,
    assert_axe_is_content,
    expect_states,
    expect_texts,
    given,
    go,
    hand,
    judge,
    line,
    notes,
    nothing,
    refuse,
    row,
    run,
    settled,
    there,
    told,
)
from test_writing import REFUSED, Use, button, keyboard, mouse
from webtest import TestApp

from commentd import App, make_token

pytestmark = pytest.mark.slow

browser, use, act = admin.browser, admin.use, admin.act
outside, settings, desk = admin.outside, admin.settings, admin.desk

OPEN = settled(moderation_hold="none")
TAB = "main nav a"
admin.KEYS.update({"Keep": "a"})


# The ground


def report(app: App, comment_id: int, *reasons: str) -> None:
    """Each by a reader of his own."""
    for reason in reasons:
        [(number,)] = run(app, "SELECT count(*) FROM report")
        client = TestApp(app, {"REMOTE_ADDR": f"198.51.100.{number + 1}"})
        client.post_json(f"/comments/{comment_id}/report", {"reason": reason})


def reports(app: App) -> int:
    [(number,)] = run(app, "SELECT count(*) FROM report")
    return int(number)


def click(app: App, status: str, *ids: int) -> None:
    """Judge comments as the owner's clicks do."""
    owner = app.house.store.account_of(MAIL)
    assert owner
    client = TestApp(app)
    token = make_token(owner, app.house.key, int(app.house.world.now()), "admin")
    client.authorization = ("Bearer", token)
    client.post_json("/admin/comments", {"ids": list(ids), "status": status})


def taught(app: App, each: int = 10) -> None:
    """So many comments of both kinds, about backups and about casinos."""
    good = [say(app, f"Backup of SQLite {n}?", f"Reader {n}") for n in range(each)]
    bad = [
        say(app, f"Casino bonus 加微信 [a{n}](https://casino.example/{n})", f"Bot {n}")
        for n in range(each)
    ]
    click(app, "visible", *good)
    click(app, "spam", *bad)


@pytest.fixture
def two(desk: Desk) -> list[int]:
    """Comments that readers see, of which they reported two."""
    ids = given(desk.app, "Rude.", "An advert.", "Fine.")
    judge(desk.app, "visible", *ids)
    report(desk.app, ids[0], "Insults", "insults me", "")
    report(desk.app, ids[1], "Advert")
    return ids


def tabs(page: Page) -> list[str]:
    """Those of the queue that can be seen."""
    return [tab.inner_text().split()[0] for tab in page.locator(TAB).all() if tab.is_visible()]


# Reports


def test_the_tab_of_reports_is_there_when_there_are_some(desk: Desk) -> None:
    [comment] = given(desk.app, "Rude.")
    judge(desk.app, "visible", comment)
    page = desk.open()
    assert tabs(page) == ["Waiting", "Spam", "Deleted"]
    report(desk.app, comment, "Insults")
    page.reload()
    there(page)
    assert tabs(page) == ["Waiting", "Reported", "Spam", "Deleted"]
    expect(page.locator("header [href='#queue']")).to_have_text("Queue1")
    expect(page).to_have_title("(1) Queue · commentd")
    page.get_by_role("link", name="Reported 1").click()
    expect_texts(page, "Rude.")


def test_a_reported_comment_says_how_many_reported_it_and_why(desk: Desk, two: list[int]) -> None:
    report(desk.app, two[0], "Insults")
    page = desk.open("queue?status=reported")
    expect_texts(page, "Rude.", "An advert.")
    rude, advert = row(page, "Rude.").locator(".reports"), row(page, "An advert.")
    expect(rude).to_contain_text("Reported by 4 readers")
    expect(rude.locator("li")).to_have_text(["Insults (2 times)", "insults me"])
    expect(advert.locator(".reports")).to_contain_text("Reported by 1 reader")
    expect(advert.locator("dt", has_text="Why it waits")).to_have_count(0)


def test_more_than_three_reasons_are_folded(desk: Desk, two: list[int], use: Use) -> None:
    report(desk.app, two[1], "Again", "And again", "A fourth", "A fifth", "A fifth")
    page = desk.open("queue?status=reported")
    reasons = row(page, "An advert.").locator(".reports li")
    expect(reasons.filter(visible=True)).to_have_count(3)
    expect(reasons.first).to_have_text("A fifth (2 times)")
    use(page.get_by_text("2 more reasons"))
    expect(reasons.filter(visible=True)).to_have_count(5)


def test_what_is_kept_stays_and_its_reports_end(desk: Desk, two: list[int], act: Act) -> None:
    page = desk.open("queue?status=reported")
    expect(hand(page).locator(".body")).to_have_text("Rude.")
    act(page, "Keep")
    told(page, "Kept.")
    expect(button(page.locator(".bars"), "Undo")).to_have_count(0)
    expect_texts(page, "An advert.")
    expect(page.locator(TAB, has_text="Reported")).to_have_text("Reported1")
    act(page, "Keep")
    expect(nothing(page, "No reader reports anything.")).to_be_visible()
    admin.test_server.until(lambda: reports(desk.app) == 0)
    expect_states(desk.app, "visible")
    expect(page).to_have_title("Queue · commentd")
    go(page, "queue")
    assert tabs(page) == ["Waiting", "Spam", "Deleted"]


@pytest.mark.parametrize("word", ["Spam", "Delete"])
def test_what_is_reported_can_be_hidden_and_shown_again(
    desk: Desk, two: list[int], act: Act, word: str
) -> None:
    page = desk.open("queue?status=reported")
    expect(hand(page).locator(".body")).to_have_text("Rude.")
    act(page, word)
    told(page, admin.TOLD[word])
    expect_texts(page, "An advert.")
    expect_states(desk.app, **{"Rude.": admin.STATUS[word]})
    act(page, "Undo")
    told(page, "Undone.")
    expect_texts(page, "Rude.", "An advert.")
    expect_states(desk.app, "visible")
    expect(row(page, "Rude.")).to_contain_text("Reported by 3 readers")


def test_many_are_kept_at_once(desk: Desk, two: list[int]) -> None:
    page = desk.open("queue?status=reported")
    page.get_by_role("checkbox").first.check()
    bar = page.locator(".bars")
    button(bar, "Select all").click()
    button(bar, "Keep").click()
    told(page, "2 comments kept.")
    admin.test_server.until(lambda: reports(desk.app) == 0)
    expect_states(desk.app, "visible")


def test_what_could_not_be_kept_comes_back_with_its_reports(desk: Desk, two: list[int]) -> None:
    desk.expected.append(REFUSED)
    page = desk.open("queue?status=reported")
    refuse(page, "**/admin/comments", 503, "storage")
    button(hand(page), "Keep").click()
    told(page, "The service is busy. Please try again in a moment.")
    expect_texts(page, "Rude.", "An advert.")
    expect(row(page, "Rude.")).to_contain_text("Reported by 3 readers")
    expect(page.locator(TAB, has_text="Reported")).to_have_text("Reported2")


def test_who_is_answered_is_kept(desk: Desk, two: list[int], use: Use) -> None:
    page = desk.open("queue?status=reported")
    button(hand(page), "Reply").click()
    use(page.get_by_label("Reply to"), "Please stay calm.")
    use(button(page, "Send"))
    told(page, "Replied.")
    expect_texts(page, "An advert.")
    assert reports(desk.app) == 1


def test_an_empty_queue_tells_of_reports(desk: Desk, two: list[int], use: Use) -> None:
    page = desk.open()
    expect(nothing(page, "Nothing waits.")).to_be_visible()
    use(page.get_by_role("link", name="2 comments were reported."))
    expect_texts(page, "Rude.", "An advert.")


def test_reports_are_found_among_all_comments_too(desk: Desk, two: list[int]) -> None:
    page = desk.open("comments")
    expect_texts(page, "Rude.", "An advert.", "Fine.")
    expect(row(page, "Rude.")).to_contain_text("Reported by 3 readers")
    assert button(row(page, "Fine."), "Keep").count() == 0
    button(row(page, "Rude."), "Keep").click()
    told(page, "Kept.")
    expect(row(page, "Rude.").locator(".reports")).to_have_count(0)
    admin.test_server.until(lambda: reports(desk.app) == 1)
    page.get_by_label("Status").select_option("reported")
    expect_texts(page, "An advert.")


def test_a_reason_is_text_whatever_is_in_it(desk: Desk) -> None:
    [comment] = given(desk.app, "Fine.")
    judge(desk.app, "visible", comment)
    hostile = ["<img src=x onerror=alert(1)>", "__proto__", "\u202egnp.exe \u2066", "字" * 500]
    report(desk.app, comment, *hostile)
    page = desk.open("queue?status=reported", viewport={"width": 320, "height": 640})
    there(page)
    page.locator(".reports summary").click()
    assert page.locator(".reports li").count() == 4
    assert set(page.locator(".reports li").all_text_contents()) == set(hostile)
    assert page.locator(".reports img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 320


# The filter


def test_a_filter_that_has_learnt_little_says_when_it_starts(desk: Desk) -> None:
    ids = given(desk.app, "One", "Two", "Three", "Four")
    click(desk.app, "spam", *ids[:2])
    click(desk.app, "visible", ids[2])
    page = desk.open()
    expect(page.locator(".filter")).to_have_text(
        "The spam filter has learnt 2 spam, 1 good; it starts at 20 with 5 of each."
    )
    expect(page.locator("main .score")).to_have_count(0)
    go(page, "queue?status=spam")
    expect(page.locator(".filter")).to_be_visible()
    go(page, "queue?status=deleted")
    expect(page.locator(".filter")).to_have_count(0)


def test_beside_a_comment_stands_what_the_filter_thinks_and_why(desk: Desk) -> None:
    taught(desk.app)
    given(desk.app, "Casino bonus for you https://casino.example", "Backup of SQLite, how?")
    page = desk.open()
    bad, good = row(page, "Casino").locator(".score"), row(page, "how?").locator(".score")
    expect(bad).to_contain_text(re.compile(r"Looks like spam, \W?9\d%\W?: "))
    expect(bad).to_contain_text("casino.example")
    expect(bad).not_to_contain_text("link:")
    expect(good).to_contain_text(re.compile(r"Doesn’t look like spam, \W?\d%\W?: .*sqlite"))
    expect(good).not_to_contain_text("casino")
    assert bad.locator("bdi").first.get_attribute("dir") == "auto"
    expect(page.locator(".filter")).to_have_text("The spam filter has learnt 10 spam, 10 good.")
    button(row(page, "Casino"), "Spam").click()
    expect_states(desk.app, **{"Casino bonus for you https://casino.example": "spam"})
    go(page, "queue?status=spam")
    expect(row(page, "Casino bonus for you").locator(".score")).to_contain_text("Looks like spam")
    go(page, "comments")
    expect(page.locator("main .score")).to_have_count(12)
    button(row(page, "how?"), "Approve").click()
    expect(row(page, "how?").locator(".score")).to_have_count(0)
    expect_states(desk.app, **{"Backup of SQLite, how?": "visible"})


def test_chinese_words_are_shown_as_they_are_written(desk: Desk) -> None:
    taught(desk.app)
    given(desk.app, "请加微信领奖 [a](https://casino.example)", "加微信问 SQLite")
    page = desk.open(lang="zh-CN")
    score = row(page, "领奖").locator(".score")
    expect(score).to_contain_text(re.compile(r"像垃圾评论，\W?9\d%\W?：.*加微信、?"))
    expect(score.locator("bdi", has_text="微")).to_have_text(["加微信"])
    expect(row(page, "问").locator(".score")).to_contain_text(
        re.compile(r"拿不准，\W?\d+%\W?：加微信；正常：没有链接、sqlite")
    )
    expect(page.locator(".filter")).to_have_text(
        "垃圾过滤已从你的操作中学习：垃圾 10 条，正常 10 条。"
    )


@OPEN
def test_what_the_filter_held_says_so_in_words(desk: Desk) -> None:
    taught(desk.app)
    given(desk.app, "Casino bonus 加微信 https://casino.example/x")
    page = desk.open()
    expect(row(page, "Casino").locator(".held")).to_contain_text("Like spam that you marked")
    expect(row(page, "Casino").locator(".held")).not_to_contain_text("0.")
    button(hand(page), "Approve").click()
    expect(nothing(page, "Nothing waits.")).to_be_visible()


HOSTILE: list[Any] = [
    {"score": 0.99, "tokens": [{"token": "<img src=x onerror=alert(1)>", "score": 0.9}]},
    {"score": 0.99, "tokens": [{"token": {}, "score": []}, None, 7, {"score": 0.9}]},
    {"score": 0.99, "tokens": "casino"},
    {"score": "high", "tokens": []},
    {"score": None},
    [],
    "spam",
]


@pytest.mark.parametrize("spam", HOSTILE)
def test_a_strange_opinion_breaks_nothing(desk: Desk, spam: Any) -> None:
    given(desk.app, "Hers.")
    page = desk.new_page()
    comment = {"id": 1, "status": "waiting", "nickname": "Ann", "content": "Hers.", "html": "Hers."}
    answer = {"comments": [{**comment, "spam": spam, "reports": spam}], "filter": spam}
    page.route("**/admin/comments?*", lambda route: route.fulfill(body=json.dumps(answer)))
    page.goto(f"{desk.service}/admin#queue")
    there(page)
    expect_texts(page, "Hers.")
    assert page.locator("main img").count() == 0
    assert page.locator("main .filter").count() == 0
    assert "NaN" not in page.locator("main").inner_text()


# Webhooks


@pytest.fixture
def hooks(desk: Desk) -> None:
    """Two calls that failed, of which one was given up."""
    now = int(desk.app.house.world.now())
    sql = """INSERT INTO outbox (recipient, message, tries, due_at, expires_at, failure, event)
             VALUES ('webhook', ?, ?, ?, ?, 'WebhookRefused 404', 'reported')"""
    run(desk.app, sql, "Subject: hi", 3, now + 3600, now + 86400)
    run(desk.app, sql, "Subject: hi", 1, None, now + 86400)


def test_a_call_of_a_webhook_is_tried_again_or_dropped(desk: Desk, hooks: None, use: Use) -> None:
    page = desk.open("mail")
    expect(line(page, "Message about a comment")).to_have_count(2)
    expect(notes(page, "3 tries")).to_contain_text(
        ["Webhook", "3 tries", "WebhookRefused 404", "next"]
    )
    use(button(line(page, "given up"), "Drop"))
    expect(admin.dialog(page)).to_contain_text("Drop this message for good?")
    use(button(admin.dialog(page), "Drop"))
    told(page, "Dropped.")
    use(button(line(page, "3 tries"), "Try again"))
    told(page, "It is tried again.")
    now = int(desk.app.house.world.now())
    assert run(desk.app, "SELECT tries, due_at <= ? FROM outbox", now) == [(0, 1)]
    expect(nothing(page, "All letters were delivered.")).to_be_visible()


# For everybody


@pytest.mark.parametrize(
    ("lang", "how"), [("en-US", WINDOW), ("zh-CN", PHONE)], ids=["en-desk", "zh-phone"]
)
def test_axe_finds_nothing_in_what_readers_and_the_filter_say(
    desk: Desk, two: list[int], hooks: None, lang: str, how: dict[str, Any]
) -> None:
    report(desk.app, two[0], "A third", "A fourth")
    taught(desk.app)
    given(desk.app, "Casino bonus https://casino.example", "Backup of SQLite, how?")
    page = desk.open(lang=lang, **how)
    for view in ("queue", "queue?status=reported", "queue?status=spam", "mail"):
        go(page, view)
        assert_axe_is_content(page, view)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
    judge(desk.app, "visible", *[id for (id,) in run(desk.app, "SELECT id FROM comment")])
    report(desk.app, two[2], "Advert")
    go(page, "queue")
    expect(page.locator(".none a")).to_be_visible()
    assert_axe_is_content(page, "an empty queue")


def test_a_report_is_answered_by_keys_alone(desk: Desk, two: list[int]) -> None:
    page = desk.open()
    keyboard(page.locator(TAB, has_text="Reported"))
    expect_texts(page, "Rude.", "An advert.")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(hand(page).locator(".body")).to_have_text("An advert.")
    page.keyboard.press("s")
    expect_states(desk.app, **{"An advert.": "spam"})
    page.keyboard.press("a")
    told(page, "Kept.")
    expect(nothing(page, "No reader reports anything.")).to_be_focused()


def test_no_word_of_the_other_language_stands_in_the_new_places(
    desk: Desk, two: list[int], hooks: None
) -> None:
    page = desk.open("queue?status=reported", lang="zh-CN")
    expect(page.locator(".reports p").first).to_have_text("3 位读者举报")
    mouse(button(page.locator("footer"), "English"))
    there(page)
    expect(page.locator(".reports p").first).to_have_text("Reported by 3 readers")
    assert BLOG not in page.url
