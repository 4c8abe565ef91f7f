"""What readers report and what the spam filter thinks, on the owner's page in a real Chromium.
`test_admin_page.py` has the rest of the page."""

import re

import pytest
import test_admin_page as admin
from blog import say
from inside import sql, token_of
from playwright.sync_api import Page, expect
from serving import until
from test_admin_page import (
    MAIL,
    Desk,
    by_keys,
    by_mouse,
    expect_texts,
    given,
    go,
    hand,
    moderate,
    nothing,
    refuse,
    row,
    settled,
    there,
    told,
)
from test_writing import REFUSED, button, keyboard, mouse
from webtest import TestApp

from commentd import App

pytestmark = pytest.mark.slow

browser, outside, settings, desk = admin.browser, admin.outside, admin.settings, admin.desk

TAB = "main nav a"


def report(app: App, comment_id: int, *reasons: str) -> None:
    """Each by another reader."""
    for reason in reasons:
        client = TestApp(app, {"REMOTE_ADDR": f"198.51.100.{reports(app) + 1}"})
        client.post_json(f"/comments/{comment_id}/report", {"reason": reason})


def reports(app: App) -> int:
    return int(sql(app, "SELECT count(*) FROM report")[0][0])


def click(app: App, status: str, *ids: int) -> None:
    """Moderate comments as the owner's clicks do."""
    client = TestApp(app)
    client.authorization = ("Bearer", token_of(app, MAIL, "admin"))
    client.post_json("/admin/comments", {"ids": list(ids), "status": status})


def taught(app: App) -> None:
    """Ten comments of either kind, about backups and about casinos."""
    good = [say(app, f"Backup of SQLite {n}?", f"Reader {n}") for n in range(10)]
    link = "Casino bonus 加微信 [a{0}](https://casino.example/{0})"
    bad = [say(app, link.format(n), f"Bot {n}") for n in range(10)]
    click(app, "visible", *good)
    click(app, "spam", *bad)


@pytest.fixture
def two(desk: Desk) -> list[int]:
    """Comments that readers see, of which they reported two."""
    ids = given(desk.app, "Rude.", "An advert.", "Fine.")
    moderate(desk.app, "visible", *ids)
    report(desk.app, ids[0], "Insults", "insults me", "")
    report(desk.app, ids[1], "Advert")
    return ids


def tabs(page: Page) -> list[str]:
    """Those of the queue that can be seen."""
    return [tab.inner_text().split()[0] for tab in page.locator(TAB).all() if tab.is_visible()]


def expect_reported(page: Page, number: str) -> None:
    expect(page.locator(TAB, has_text="Reported")).to_have_text(f"Reported{number}")


# Reports


def test_an_empty_queue_leads_to_what_was_reported_how_often_and_why(desk: Desk) -> None:
    rude, advert = given(desk.app, "Rude.", "An advert.")
    moderate(desk.app, "visible", rude, advert)
    page = desk.open()
    assert tabs(page) == ["Waiting", "Spam", "Deleted"]
    report(desk.app, rude, "Insults", "insults me", "", "Insults")
    hostile = ["<img src=x onerror=alert(1)>", "__proto__", "\u202egnp.exe \u2066", "字" * 500]
    report(desk.app, advert, *hostile, "Twice", "Twice")
    page.set_viewport_size({"width": 320, "height": 640})
    page.reload()
    there(page)
    assert tabs(page) == ["Waiting", "Reported", "Spam", "Deleted"]
    expect(page.locator("header [href='#queue']")).to_have_text("Queue2")
    expect(page).to_have_title("(2) Queue · commentd")
    expect_reported(page, "2")
    expect(nothing(page, "All done.")).to_be_visible()
    keyboard(page.get_by_role("link", name="2 comments were reported."))
    expect_texts(page, "Rude.", "An advert.")
    first, second = (row(page, text).locator(".reports") for text in ("Rude.", "An advert."))
    expect(first).to_contain_text("Reported by 4 readers")
    expect(first.locator("li")).to_have_text(["Insults (2 times)", "insults me"])
    expect(row(page, "Rude.").locator("dt", has_text="Held because")).to_have_count(0)
    reasons = second.locator("li")
    expect(reasons.filter(visible=True)).to_have_count(3)
    expect(reasons.first).to_have_text("Twice (2 times)")
    mouse(page.get_by_text("2 more reasons"))
    expect(reasons.filter(visible=True)).to_have_count(5)
    assert {*reasons.all_text_contents()} == {*hostile, "Twice (2 times)"}
    assert second.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_what_is_reported_is_hidden_shown_again_and_kept(desk: Desk, two: list[int]) -> None:
    desk.expected.append(REFUSED)
    page = desk.open()
    keyboard(page.locator(TAB, has_text="Reported"))
    expect(hand(page).locator(".body")).to_have_text("Rude.")
    refuse(page, "**/admin/comments", 503, "storage")
    button(hand(page), "Keep").click()
    told(page, "The service is busy. Please try again in a moment.")
    page.unroute_all()
    expect_texts(page, "Rude.", "An advert.")
    expect(row(page, "Rude.")).to_contain_text("Reported by 3 readers")
    expect_reported(page, "2")
    by_mouse(page, "Spam")
    told(page, "Marked as spam.")
    expect_texts(page, "An advert.")
    desk.expect_states(**{"Rude.": "spam"})
    expect_reported(page, "1")
    by_keys(page, "Undo")
    told(page, "Undone.")
    expect_texts(page, "Rude.", "An advert.")
    desk.expect_states("visible")
    # To moderate has ended its reports, and to undo that brings none back.
    expect(row(page, "Rude.")).not_to_contain_text("Reported by")
    expect_reported(page, "1")
    page.reload()
    expect_texts(page, "An advert.")
    button(hand(page), "Reply").click()  # who is replied to is kept
    keyboard(page.get_by_label("Reply to"), "Please stay calm.")
    keyboard(button(page, "Send"))
    told(page, "Replied.")
    expect(nothing(page, "No open reports.")).to_be_visible()
    until(lambda: reports(desk.app) == 0)
    desk.expect_states("visible")
    expect(page).to_have_title("Queue · commentd")
    go(page, "queue")
    assert tabs(page) == ["Waiting", "Spam", "Deleted"]


def test_reports_are_found_and_many_are_kept_at_once(desk: Desk, two: list[int]) -> None:
    page = desk.open("comments")
    expect_texts(page, "Rude.", "An advert.", "Fine.")
    assert button(row(page, "Fine."), "Keep").count() == 0
    button(row(page, "Rude."), "Keep").click()
    told(page, "Kept.")
    expect(row(page, "Rude.").locator(".reports")).to_have_count(0)
    until(lambda: reports(desk.app) == 1)
    report(desk.app, two[2], "Dull")
    page.get_by_label("Status").select_option("reported")
    expect_texts(page, "An advert.", "Fine.")
    page.get_by_role("checkbox").first.check()
    button(page.locator(".bars"), "Select all").click()
    button(page.locator(".bars"), "Keep").click()
    told(page, "2 comments kept.")
    until(lambda: reports(desk.app) == 0)
    desk.expect_states("visible")


# The filter


def test_a_filter_that_has_learnt_little_says_when_it_starts(desk: Desk) -> None:
    ids = given(desk.app, "One", "Two", "Three", "Four")
    click(desk.app, "spam", *ids[:2])
    click(desk.app, "visible", ids[2])
    page = desk.open()
    trained = "Spam filter: trained on 2 spam and 1 good comments. It starts at 20"
    expect(page.locator(".filter")).to_contain_text(trained)
    expect(page.locator("main .score")).to_have_count(0)
    go(page, "queue?status=spam")
    expect(page.locator(".filter")).to_be_visible()
    go(page, "queue?status=deleted")
    expect(page.locator(".filter")).to_have_count(0)


@settled(moderation_hold="none")
def test_beside_a_comment_stands_what_the_filter_thinks_and_why(desk: Desk) -> None:
    taught(desk.app)
    fine, mixed = given(desk.app, "Backup of SQLite, how?", "加微信问 SQLite")
    moderate(desk.app, "waiting", fine, mixed)
    given(desk.app, "Casino bonus for you https://casino.example")
    page = desk.open(lang="zh-CN")
    score = row(page, "问").locator(".score")
    expect(score).to_contain_text(re.compile(r"拿不准，\W?\d+%\W?：加微信；正常词：没有链接"))
    expect(score.locator("bdi", has_text="微")).to_have_text(["加微信"])
    learnt = "垃圾过滤已从你的操作中学习：垃圾 10 条，正常 10 条。"
    expect(page.locator(".filter")).to_have_text(learnt)
    page.get_by_label("语言").select_option("English")
    there(page)
    bad, good = row(page, "Casino"), row(page, "how?")
    expect(bad.locator(".score")).to_contain_text(re.compile(r"Looks like spam, \W?9\d%\W?: "))
    expect(bad.locator(".score")).to_contain_text("casino.example")
    expect(bad.locator(".score")).not_to_contain_text("link:")
    expect(bad.locator(".held")).to_contain_text("Looks like spam you marked")
    expect(bad.locator(".held")).not_to_contain_text("0.")
    sure = re.compile(r"Doesn’t look like spam, \W?\d%\W?: .*sqlite")
    expect(good.locator(".score")).to_contain_text(sure)
    expect(good.locator(".score")).not_to_contain_text("casino")
    assert bad.locator(".score bdi").first.get_attribute("dir") == "auto"
    expect(page.locator(".filter")).to_have_text(
        "Spam filter: trained on 10 spam and 10 good comments."
    )
    button(bad, "Spam").click()
    told(page, "Marked as spam.")
    go(page, "comments")
    expect(page.locator("main .score")).to_have_count(13)
    button(good, "Approve").click()
    expect(good.locator(".score")).to_have_count(0)
