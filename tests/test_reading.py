"""What a reader has of the widget beside the thread, in a real Chromium: company, quotes, keys,
links, print, numbers elsewhere on the page, pages that change without loading, the ground it
stands on, its languages, and what is folded. `test_widget.py` has the thread itself."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import test_widget as widget
from blog import POST, Json, answering, say
from inside import moderate, sql
from playwright.sync_api import Locator, Page, Route, expect
from test_widget import (
    TAG,
    TWO,
    TYPES,
    Site,
    altering,
    comment,
    fill,
    hold,
    idle,
    jump,
    lists,
    nested,
    strict,
    texts,
    write_comment,
)
from test_words import FILES, WORDS
from test_writing import reach, requests_of
from webtest import TestApp

from commentd import App

pytestmark = pytest.mark.slow

outside, settings = widget.outside, widget.settings
site, options, faults, asked = widget.site, widget.options, widget.faults, widget.asked
page, view = widget.page, widget.view

View = Callable[..., Page]
LANGUAGES = sorted(FILES)


def words(language: str, key: str, n: int | None = None, form: str = "other") -> str:
    """What the widget says."""
    text = WORDS[language].get(key) or WORDS[language][f"{key}_{form}"]
    return text.replace("{n}", str(n))


def unreached(faults: list[str], *expected: str) -> None:
    """The browser's own words on requests that failed, and no others."""
    known = ("Failed to load resource", "blocked by CORS policy", *expected)
    assert [fault for fault in faults if not any(word in fault for word in known)] == []
    faults.clear()


# Company

# Each request of the page: when it was made, by the page's clock, and whether its answer was used.
WATCHED = """
window.asks = []
const plain = window.fetch
window.fetch = async (to, how) => {
  const ask = {at: Date.now(), url: String(to), done: false}
  asks.push(ask)
  const done = () => {
    const {port1, port2} = new MessageChannel()
    port1.onmessage = () => ask.done = true
    port2.postMessage(0)
  }
  try {
    const reply = await plain(to, how)
    const text = reply.text.bind(reply)
    reply.text = () => text().finally(done)
    return reply
  } catch (error) {
    done()
    throw error
  }
}
"""


def stop_clock(page: Page) -> None:
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)


def looks(page: Page) -> list[float]:
    """When the widget asked whether others wrote, in seconds; all answers have been used."""
    page.wait_for_function("() => asks.every(ask => ask.done)")
    times: list[float] = page.evaluate(
        "() => asks.filter(ask => ask.url.includes('/pages?')).map(ask => ask.at / 1000)"
    )
    return times


def pass_time(page: Page, seconds: float) -> int:
    """Lets time go by; how often the widget has asked by then."""
    page.clock.fast_forward(round(seconds * 1000))
    return len(looks(page))


@pytest.fixture
def stay(page: Page, view: View) -> View:
    """Opens a page whose reader stays: who has touched the thread, and the page's clock is ours."""

    def stay(body: str = TAG, path: str = POST, **more: str) -> Page:
        page.clock.install()
        page.add_init_script(WATCHED)
        view(body, path, **more)
        for head in page.locator("commentd-thread .head").all():
            head.locator("> *").first.wait_for()
            head.click(position={"x": 1, "y": 1})
        page.wait_for_function("() => asks.some(ask => ask.url.includes('/words/') && ask.done)")
        dressed = "[...document.querySelectorAll('commentd-thread')].every(it => it.shadowRoot"
        page.wait_for_function(f"() => {dressed}.adoptedStyleSheets[1])")  # more.js attends
        stop_clock(page)
        return page

    return stay


def fresh(page: Page) -> Locator:
    """The button that tells of new comments."""
    return page.locator("commentd-thread .fresh button")


@pytest.mark.parametrize(
    ("lang", "told"),
    [
        ("zh", {1: "1 条新评论"}),
        ("en", {1: "1 new comment", 2: "2 new comments"}),
        ("ru", {2: "2 новых комментария", 5: "5 новых комментариев"}),
        ("ar", {2: "تعليقان جديدان"}),
        ("de", {1: "1 neuer Kommentar"}),
    ],
    ids=["zh", "en", "ru", "ar", "de"],
)
def test_who_stays_is_told_after_a_minute_how_many_wrote_meanwhile(
    app: App, stay: View, asked: list[str], lang: str, told: dict[int, str]
) -> None:
    fill(app, 1)
    page = stay(lang=lang)
    there = 0
    for looks_made, (number, text) in enumerate(told.items()):
        for n in range(there, number):
            say(app, f"New {n}.", hours=0)
        there, before = number, len(asked)
        assert pass_time(page, 55) == looks_made
        with page.expect_response(re.compile("/pages")) as answer:
            assert pass_time(page, 6) == looks_made + 1
        requests = [line.rpartition("/")[2] for line in asked[before:]]
        assert requests == ["pages?url=%2F2026%2Flines%2F"]
        assert len(answer.value.body()) < 120
        expect(fresh(page)).to_have_text(text)
        expect(page.locator(".fresh")).to_have_role("status")
        assert texts(page) == ["No. 1."]


def test_who_touches_nothing_is_told_too(app: App, page: Page, view: View) -> None:
    fill(app, 1)
    page.clock.install()
    page.add_init_script(WATCHED)
    view()
    expect(page.locator("article")).to_have_count(1)
    say(app, "New.", hours=0)
    stop_clock(page)
    with page.expect_response(re.compile("/words/")):
        page.clock.fast_forward(60_000)
    page.wait_for_function("() => asks.every(ask => ask.done)")
    assert pass_time(page, 61) == 1
    expect(fresh(page)).to_have_text("1 条新评论")


def test_what_is_new_is_shown_in_its_place_marked_and_counted(
    app: App, stay: View, asked: list[str]
) -> None:
    ids = fill(app, 12)
    page = stay()
    first = texts(page)
    say(app, "An answer.", hours=0, parent_id=ids[2])
    say(app, "A root.", hours=0)
    pass_time(page, 61)
    fresh(page).click()
    answer, root = comment(page, "An answer."), comment(page, "A root.")
    expect(answer).to_have_attribute("data-target", "")
    expect(root).to_have_attribute("data-target", "")
    expect(page.locator("[data-target]")).to_have_count(2)
    expect(answer).to_be_focused()
    expect(answer).to_be_in_viewport()
    expect(page.locator(".head b")).to_have_text("14 条评论")
    expect(fresh(page)).to_have_count(0)
    assert texts(page) == ["A root.", *first, "An answer."]
    expect(page.locator(f"li[data-id='{ids[2]}'] > .replies")).to_contain_text("An answer.")
    assert pass_time(page, 61) == 2
    expect(fresh(page)).to_have_count(0)
    second = say(app, "Another root.", hours=0)
    say(app, "And its answer.", hours=0, parent_id=second)
    pass_time(page, 91)
    fresh(page).click()
    for text in ("Another root.", "And its answer."):
        expect(comment(page, text)).to_have_attribute("data-target", "")
    expect(page.locator("[data-target]")).to_have_count(2)  # what was new before is so no more
    expect(page.locator(".head b")).to_have_text("16 条评论")
    assert texts(page)[:3] == ["Another root.", "And its answer.", "A root."]
    expect(comment(page, "Another root.")).to_be_focused()
    say(app, "A late answer.", hours=0, parent_id=ids[0])
    pass_time(page, 61)
    fresh(page).click()
    expect(comment(page, "A late answer.")).to_be_focused()
    expect(comment(page, "No. 1.")).to_be_visible()
    expect(page.locator(".head")).to_contain_text("1 次阅读")
    assert len(lists(asked)) == 5
    page.clock.resume()
    page.reload()
    expect(page.locator(".head")).to_contain_text("2 次阅读")


def test_nothing_is_asked_while_nobody_sees_the_page_and_at_once_when_somebody_is_back(
    app: App, stay: View
) -> None:
    fill(app, 1)
    page = stay()
    see = """seen => {
        Object.defineProperty(document, 'hidden', {value: !seen, configurable: true})
        document.dispatchEvent(new Event('visibilitychange'))
    }"""
    page.evaluate(see, False)
    say(app, "New.", hours=0)
    for _ in range(3):
        assert pass_time(page, 3600) == 0
    page.evaluate(see, True)
    expect(fresh(page)).to_have_text("1 条新评论")
    assert len(looks(page)) == 1
    page.evaluate(see, False)
    page.evaluate(see, True)
    assert len(looks(page)) == 1
    assert pass_time(page, 61) == 2


def test_each_look_that_finds_nothing_makes_the_next_half_as_late_again_down_to_ten_minutes(
    app: App, stay: View
) -> None:
    fill(app, 1)
    page = stay()
    assert pass_time(page, 61) == 1
    pauses = [90, 135, 202.5, 303.75, 455.625, 600, 600]
    for number, pause in enumerate(pauses, 1):
        assert pass_time(page, pause - 0.1) == number
        assert pass_time(page, 0.1) == number + 1
    say(app, "New.", hours=0)
    pass_time(page, 600)
    expect(fresh(page)).to_have_text("1 条新评论")
    assert pass_time(page, 59.9) == len(pauses) + 2
    assert pass_time(page, 0.1) == len(pauses) + 3


def test_comments_that_went_and_those_of_ones_own_are_no_news(app: App, stay: View) -> None:
    ids = fill(app, 4)
    page = stay()
    moderate(app, ids[0], "deleted")
    moderate(app, ids[1], "deleted")
    pass_time(page, 61)
    expect(page.locator(".fresh")).to_have_text("")
    say(app, "New.", hours=0)
    pass_time(page, 91)
    expect(fresh(page)).to_have_text("1 条新评论")
    moderate(app, ids[2], "deleted")
    pass_time(page, 61)
    expect(fresh(page)).to_have_count(0)
    page.get_by_label("排序").select_option("最早")
    expect(page.locator(".body")).to_have_text(["No. 4.", "New."])
    page.get_by_label("排序").select_option("最新")
    expect(page.locator(".body")).to_have_text(["New.", "No. 4."])
    write_comment(page, "Mine.")
    expect(comment(page, "Mine.")).to_be_focused()
    pass_time(page, 601)
    expect(page.locator(".fresh")).to_have_text("")
    say(app, "Newer.", hours=0)
    pass_time(page, 601)
    expect(fresh(page)).to_have_text("1 条新评论")
    page.get_by_label("排序").select_option("最早")
    expect(page.locator(".body")).to_have_text(["No. 4.", "New.", "Mine.", "Newer."])
    expect(fresh(page)).to_have_count(0)


def test_an_element_that_was_moved_tells_what_is_new_once_and_taken_away_asks_no_more(
    app: App, stay: View
) -> None:
    fill(app, 1)
    page = stay(TAG + "<main></main>")
    say(app, "New.", hours=0)
    pass_time(page, 61)
    expect(fresh(page)).to_have_count(1)
    page.evaluate(
        "document.querySelector('main').append(document.querySelector('commentd-thread'))"
    )
    page.locator(".head").click(position={"x": 1, "y": 1})
    while pass_time(page, 61) < 3:
        pass  # the look after the move begins when its script is there
    expect(fresh(page)).to_have_count(1)
    page.locator("commentd-thread").evaluate("it => it.remove()")
    made = len(looks(page))
    for _ in range(3):
        assert pass_time(page, 700) == made
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert len(looks(page)) == made


def test_offline_nothing_is_said_and_what_was_told_stays(
    app: App, stay: View, faults: list[str]
) -> None:
    fill(app, 1)
    page = stay()
    page.context.set_offline(True)
    pass_time(page, 61)
    expect(page.locator(".fresh")).to_have_text("")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.context.set_offline(False)
    say(app, "New.", hours=0)
    pass_time(page, 91)
    expect(fresh(page)).to_be_visible()
    page.context.set_offline(True)
    pass_time(page, 61)
    expect(fresh(page)).to_be_visible()
    fresh(page).click()
    expect(page.get_by_role("alert")).to_contain_text("暂时连不上评论服务")
    page.context.set_offline(False)
    fresh(page).click()
    expect(comment(page, "New.")).to_be_focused()
    expect(page.get_by_role("alert")).to_have_count(0)
    unreached(faults)


def test_an_answer_that_is_none_is_no_news_and_ends_nothing(app: App, stay: View) -> None:
    fill(app, 1)
    page = stay()
    bodies = ["<h1>Sign in to the hotel</h1>", "null", "{}", '{"pages": []}']

    def change(environ: Json, status: str, headers: dict[str, str], old: bytes) -> Any:
        body = bodies[0].encode() if environ["PATH_INFO"] == "/pages" else old
        return status, headers, body

    while bodies:
        with answering(app, change):
            pass_time(page, 601)
        expect(page.locator("commentd-thread article")).to_have_count(1)
        expect(page.locator(".fresh")).to_have_text("")
        bodies.pop(0)
    say(app, "New.", hours=0)
    assert pass_time(page, 601) == 5
    expect(fresh(page)).to_have_text("1 条新评论")


def test_each_of_several_threads_tells_of_its_own(app: App, stay: View, asked: list[str]) -> None:
    say(app, "Of the first.", page="/first/")
    say(app, "Of the second.", page="/second/")
    page = stay(TWO)
    say(app, "New.", page="/second/", hours=0)
    assert pass_time(page, 61) == 2
    first, second = page.locator("[page='/first/']"), page.locator("[page='/second/']")
    expect(second.locator(".fresh button")).to_be_visible()
    expect(first.locator(".fresh button")).to_have_count(0)
    fresh(page).click()
    expect(comment(page, "New.")).to_be_focused()
    assert texts(page, "[page='/first/']") == ["Of the first."]
    assert texts(page, "[page='/second/']") == ["New.", "Of the second."]


@pytest.mark.parametrize(
    "settings",
    [{"server_listen": "127.0.0.1:0", "limits_enabled": False, "moderation_hold": "all"}],
)
def test_on_a_closed_page_what_was_let_through_is_told_and_not_to_be_answered(
    app: App, stay: View
) -> None:
    shown, held = fill(app, 2)
    moderate(app, shown, "visible")
    sql(app, "UPDATE page SET closed = 1")
    page = stay()
    expect(page.locator("article")).to_have_count(1)
    moderate(app, held, "visible")
    pass_time(page, 61)
    fresh(page).click()
    expect(comment(page, "No. 2.")).to_be_focused()
    expect(page.locator(".reply")).to_have_count(0)
    expect(page.locator(".head")).to_contain_text("评论已关闭。")


def test_a_page_that_changes_under_the_element_is_the_one_that_is_looked_at(
    app: App, stay: View
) -> None:
    say(app, "Of the first.", page="/first/")
    fill(app, 4, "/second/")
    page = stay("<commentd-thread page=/first/></commentd-thread>" + TAG)
    page.locator("commentd-thread").evaluate("it => it.setAttribute('page', '/second/')")
    page.clock.fast_forward(0)
    expect(page.locator("article")).to_have_count(4)
    pass_time(page, 61)
    expect(page.locator(".fresh")).to_have_text("")
    assert "second" in page.evaluate("asks.at(-1).url")


def test_without_the_script_for_it_nothing_is_asked_and_nothing_said(
    app: App, page: Page, view: View, faults: list[str]
) -> None:
    fill(app, 1)
    page.clock.install()
    page.add_init_script(WATCHED)
    page.route(re.compile("more.js"), lambda route: route.abort())
    view()
    expect(page.locator("article")).to_have_count(1)
    stop_clock(page)
    with page.expect_event("requestfailed", lambda request: "more.js" in request.url):
        page.clock.fast_forward(60_000)
    for _ in range(3):  # the clock stands still, so what is said stays
        page.evaluate("() => fetch(location).then(reply => reply.text())")
        assert page.locator("[role=status]:not(:empty), [role=alert]").count() == 0
    for _ in range(3):
        assert pass_time(page, 600) == 0
    unreached(faults)


# Quotes

# Selects from one text of the comments to another, by where they stand in the page.
SELECT = """([from, to]) => {
    const root = document.querySelector('commentd-thread').shadowRoot
    const find = text => {
        for (const roots of [root, document.body]) {
            const walker = document.createTreeWalker(roots, NodeFilter.SHOW_TEXT)
            while (walker.nextNode()) {
                const at = walker.currentNode.data.indexOf(text)
                if (at >= 0) return [walker.currentNode, at]
            }
        }
    }
    const [start, at] = find(from), [end, last] = find(to)
    getSelection().setBaseAndExtent(start, at, end, last + to.length)
}"""
# The page hears of it, and looks at what is selected when that rests for a tenth of a second.
RESTED = "() => new Promise(go => setTimeout(go, 150))"


def select(page: Page, start: str, end: str | None = None) -> None:
    page.evaluate(SELECT, [start, end or start])
    page.evaluate(RESTED)


def drag(page: Page, start: Locator, end: Locator) -> None:
    """Selects as a hand does."""
    here, there = start.bounding_box(), end.bounding_box()
    assert here
    assert there
    page.mouse.move(here["x"] + 2, here["y"] + here["height"] / 2)
    page.mouse.down()
    page.mouse.move(there["x"] + 20, there["y"] + there["height"] / 2, steps=4)
    page.mouse.up()
    page.evaluate(RESTED)


# What comes at the first touch is there: its style first, then its words.
ATTENDED = """() => [...document.querySelectorAll('commentd-thread')].every(
    it => it.shadowRoot.adoptedStyleSheets.length > 1
) && performance.getEntriesByType('resource').some(it => it.name.includes('/words/'))"""


@pytest.fixture
def touch(page: Page, view: View) -> View:
    """Opens a page whose reader has touched the thread, so that quotes and keys are there."""

    def touch(body: str = TAG, path: str = POST, **more: str) -> Page:
        view(body, path, **more)
        page.locator("commentd-thread .head > *").first.wait_for()
        page.locator("commentd-thread .head").click(position={"x": 1, "y": 1})
        page.wait_for_function(ATTENDED)
        idle(page)
        return page

    return touch


def quote(page: Page) -> Locator:
    return page.get_by_role("button", name="引用")


def answer_of(page: Page) -> Locator:
    return page.get_by_role("textbox", name=re.compile("^回复 "))


def test_what_is_selected_in_a_comment_begins_the_answer_and_is_posted_as_a_quote(
    app: App, touch: View
) -> None:
    say(app, "\n\n".join(f"Paragraph {n}." for n in range(8)))
    page = touch()
    proofs = requests_of(page, "/captcha")
    expect(quote(page)).to_have_count(0)
    for text in ("Paragraph 1.", "Paragraph 6."):
        select(page, text)
        there = page.get_by_text(text).bounding_box()
        here = quote(page).bounding_box()
        assert there
        assert here
        assert 0 <= here["y"] - there["y"] - there["height"] < 24
        expect(quote(page)).to_have_count(1)
    assert proofs == []
    with page.expect_response(re.compile("/captcha")):
        quote(page).click()
    assert len(proofs) == 1
    expect(answer_of(page)).to_be_focused()
    expect(answer_of(page)).to_have_value("> Paragraph 6.\n\n")
    expect(quote(page)).to_have_count(0)
    page.keyboard.type("And comes back.")
    page.get_by_label("昵称").last.fill("林深")
    page.locator("article form").get_by_role("button", name="发表评论").click()
    answer = comment(page, "And comes back.").last
    expect(answer).to_be_focused()
    expect(answer.locator("blockquote")).to_have_text("Paragraph 6.")
    expect(answer.locator(".body > p")).to_have_text("And comes back.")


def test_nothing_is_offered_for_what_is_not_of_one_comment(app: App, touch: View) -> None:
    fill(app, 2)
    alike = "<article><p class=body>Of the page.</p><a class=reply>Reply</a></article>"
    page = touch(f"<p>An essay.</p>{alike}{TAG}")
    select(page, "No. 1.")
    expect(quote(page)).to_be_visible()
    select(page, "No. 2.", "No. 1.")
    expect(quote(page)).to_have_count(0)
    for text in ("An essay.", "Guest 2", "回复", "2 条评论", "Of the page."):
        select(page, text)
        expect(quote(page)).to_have_count(0)
    essay, said = page.get_by_text("An essay."), page.get_by_text("No. 1.")
    for start, end in ((essay, said), (said, essay)):
        drag(page, start, end)
        expect(quote(page)).to_have_count(0)
    select(page, "No. 1.")
    expect(quote(page)).to_be_visible()
    page.evaluate("getSelection().removeAllRanges()")
    expect(quote(page)).to_have_count(0)
    field = page.get_by_label("写下你的想法…")
    field.fill("Of my own.")
    page.get_by_role("button", name="预览").click()
    expect(page.locator(".preview")).to_have_text("Of my own.")
    select(page, "Of my own.")
    expect(quote(page)).to_have_count(0)
    field.select_text()
    page.evaluate(RESTED)
    expect(quote(page)).to_have_count(0)


# As Safari 17 has it: the roots one by one, and nothing else.
OLD_RANGES = """{
  const plain = Selection.prototype.getComposedRanges
  Selection.prototype.getComposedRanges = function (...roots) {
    if (!roots.every(root => root instanceof ShadowRoot)) throw TypeError('no shadow root')
    return plain.call(this, {shadowRoots: roots})
  }
}"""


def test_what_is_selected_is_quoted_where_the_browser_has_the_old_ways(
    app: App, page: Page, touch: View
) -> None:
    fill(app, 1)
    page.add_init_script(OLD_RANGES)
    touch()
    select(page, "No. 1.")
    stop = "event => event.stopImmediatePropagation()"  # in a shadow root, WebKit tells nothing
    page.evaluate(f"() => document.addEventListener('selectionchange', {stop}, true)")
    expect(quote(page)).to_have_css("user-select", "none")
    quote(page).click()
    expect(answer_of(page)).to_have_value("> No. 1.\n\n")
    expect(quote(page)).to_have_count(0)


MEASURED = """{
  window.measured = 0
  const plain = Selection.prototype.getComposedRanges
  Selection.prototype.getComposedRanges = function (how) {
    measured++
    return plain.call(this, how)
  }
}"""
DRAGGED = """async text => {
  for (let length = 1; length <= text.length; length++) {
    const heard = new Promise(go => document.addEventListener('selectionchange', go, {once: true}))
    getSelection().modify('extend', 'forward', 'character')
    await heard
  }
}"""


def test_a_selection_is_measured_when_it_rests(app: App, page: Page, stay: View) -> None:
    fill(app, 1)
    page.add_init_script(MEASURED)
    stay()
    page.evaluate(SELECT, ["N", "N"])
    page.evaluate(DRAGGED, "o. 1.")
    assert page.evaluate("measured") == 0
    page.clock.run_for(100)
    expect(quote(page)).to_be_visible()
    assert page.evaluate("measured") == 1


@pytest.mark.parametrize(
    "options", [{"locale": "zh-CN", "viewport": {"width": 390, "height": 800}}]
)
def test_on_a_closed_page_nothing_is_offered_for_writing(app: App, touch: View) -> None:
    fill(app, 3)
    sql(app, "UPDATE page SET closed = 1")
    page = touch(lang="en")
    expect(page.get_by_text("Comments are closed.")).to_be_visible()
    count = page.locator(".head b").bounding_box()
    order = page.locator(".head select").bounding_box()
    assert count
    assert order
    assert order["y"] < count["y"] + count["height"]
    select(page, "No. 1.")
    expect(page.get_by_role("button", name="Quote")).to_have_count(0)
    comment(page, "No. 1.").focus()
    for key in "rc":
        page.keyboard.press(key)
    expect(comment(page, "No. 1.")).to_be_focused()


@pytest.mark.parametrize(
    "settings",
    [{"server_listen": "127.0.0.1:0", "limits_enabled": False, "moderation_hold": "all"}],
)
def test_nothing_is_offered_in_a_comment_that_waits(app: App, touch: View) -> None:
    moderate(app, say(app, "Shown."), "visible")
    page = touch()
    page.get_by_label("写下你的想法…").fill("Held.")
    page.get_by_label("昵称").fill("林深")
    page.get_by_role("button", name="提交审核").click()
    expect(comment(page, "Held.")).to_be_focused()
    select(page, "Held.")
    expect(quote(page)).to_have_count(0)
    select(page, "Shown.")
    expect(quote(page)).to_be_visible()


QUOTED = [  # what is said, from where to where it is selected, and the quote
    ("One.\n\nTwo.\n\nThree.", "One.", "Three.", "> One.\n> Two.\n> Three."),
    ("One.\nTwo.", "One.", "Two.", "> One.\n> Two."),
    ("1. one\n2. two\n\nEnd.", "one", "End.", "> one\n> two\n> End."),
    ("- one\n  - two\n- three", "one", "three", "> one\n> two\n> three"),
    ("See:\n\n```\nif a:\n    b()\n```", "See:", "b()", "> See:\n> if a:\n>     b()"),
    ("> Old.\n\nNew.", "Old.", "New.", "> Old.\n> New."),
    ("A **bold** `word`.", "A ", ".", "> A bold word."),
    ("Half of a sentence.", "of a", "of a", "> of a"),
    ("`<img src=x onerror=hit=1>`", "<img", "=1>", "> <img src=x onerror=hit=1>"),
]


def test_each_line_that_is_quoted_begins_with_its_mark(app: App, touch: View) -> None:
    for number, (content, start, end, quoted) in enumerate(QUOTED):
        say(app, content, page=f"/{number}/")
        page = touch(path=f"/{number}/")
        select(page, start, end)
        quote(page).click()
        expect(answer_of(page)).to_have_value(quoted + "\n\n")
        form = page.locator("article form")
        form.get_by_role("button", name="预览").click()
        shown = form.locator(".preview blockquote").inner_text().splitlines()
        lines = [line.removeprefix("> ").strip() for line in quoted.splitlines()]
        assert [line.strip() for line in shown if line.strip()] == lines, content
        assert page.evaluate("typeof hit") == "undefined"
        assert page.locator("commentd-thread img").count() == 0


def test_a_quote_comes_behind_what_was_written_before_and_is_kept_as_a_draft(
    app: App, touch: View
) -> None:
    say(app, "One. Two.")
    page = touch()
    comment(page, "One.").get_by_role("button", name="回复").click()
    answer_of(page).fill("What I think.")
    select(page, "One.")
    quote(page).click()
    expect(answer_of(page)).to_have_value("What I think.\n\n> One.\n\n")
    select(page, "Two.")
    quote(page).click()
    value = re.compile(r"^What I think\.\n\n> One\.\n\n+> Two\.\n\n$")
    expect(answer_of(page)).to_have_value(value)
    expect(answer_of(page)).to_have_count(1)
    page.reload()
    comment(page, "One.").get_by_role("button", name="回复").click()
    expect(answer_of(page)).to_have_value(value)


def test_words_and_paragraphs_are_quoted_as_the_mouse_picks_them(app: App, touch: View) -> None:
    say(app, "Typography", "Ann")
    say(app, "Orthography", "Bo")
    page = touch()
    for times, text, name in ((2, "Typography", "Ann"), (3, "Orthography", "Bo")):
        page.get_by_text(text).click(click_count=times, position={"x": 20, "y": 10})
        quote(page).click()
        answer = page.get_by_role("textbox", name=f"回复 {name}")
        expect(answer).to_have_value(f"> {text}\n\n")


def test_a_selection_is_made_and_quoted_by_keyboard_alone(app: App, touch: View) -> None:
    say(app, "A line is a promise.")
    page = touch()
    comment(page, "A line").focus()
    select(page, "A")
    for _ in range(5):
        page.keyboard.press("Shift+ArrowRight")
    expect(quote(page)).to_be_visible()
    reach(quote(page))
    page.keyboard.press("Enter")
    expect(answer_of(page)).to_have_value("> A line\n\n")
    expect(answer_of(page)).to_be_focused()


@pytest.mark.parametrize(
    "options",
    [{"locale": "zh-CN", "has_touch": True, "is_mobile": True,
      "viewport": {"width": 390, "height": 844}}],
)  # fmt: skip
def test_a_finger_quotes_too(app: App, touch: View) -> None:
    say(app, "A line is a promise.")
    page = touch("<meta name=viewport content='width=device-width'>" + TAG)
    select(page, "a promise")
    box = quote(page).bounding_box()
    assert box
    assert min(box["width"], box["height"]) >= 44
    quote(page).tap()
    expect(answer_of(page)).to_have_value("> a promise\n\n")


# Keys


def here(page: Page) -> str:
    """Where the focus is, inside the thread."""
    where: str = page.evaluate("""() => {
        const at = document.activeElement?.shadowRoot?.activeElement
        return at?.querySelector?.(':scope > .body')?.innerText ?? at?.name ?? at?.localName ?? ''
    }""")
    return where


def test_keys_move_through_the_comments_that_are_seen(app: App, touch: View) -> None:
    nested(app, 3)
    fill(app, 1)
    page = touch()
    order = texts(page)
    assert order == ["Depth 0.", "Depth 1.", "Depth 2.", "No. 1."]
    comment(page, "Depth 0.").focus()
    seen = [here(page)]
    for _ in range(4):
        page.keyboard.press("j")
        seen.append(here(page))
    assert seen == [*order, "No. 1."]
    for wanted in (*order[-2::-1], "Depth 0."):
        page.keyboard.press("k")
        assert here(page) == wanted
    page.locator(".line").first.click(position={"x": 12, "y": 20})
    expect(comment(page, "Depth 1.")).to_be_hidden()
    comment(page, "Depth 0.").focus()
    page.keyboard.press("j")
    assert here(page) == "No. 1."
    page.keyboard.press("k")
    assert here(page) == "Depth 0."


def test_keys_move_in_browsers_that_cannot_say_what_is_visible(
    app: App, page: Page, touch: View
) -> None:
    fill(app, 2)
    page.add_init_script("delete Element.prototype.checkVisibility")  # Safari 17.3
    touch()
    comment(page, "No. 2.").focus()
    page.keyboard.press("j")
    expect(comment(page, "No. 1.")).to_be_focused()


def test_keys_answer_like_and_begin_to_write(app: App, touch: View) -> None:
    fill(app, 2)
    page = touch()
    comment(page, "No. 1.").focus()
    page.keyboard.press("l")
    expect(comment(page, "No. 1.").get_by_role("button", name="赞 1", pressed=True)).to_be_visible()
    expect(comment(page, "No. 2.").get_by_role("button", name="赞 0")).to_be_visible()
    page.keyboard.press("r")
    expect(answer_of(page)).to_be_focused()
    expect(answer_of(page)).to_have_value("")
    expect(answer_of(page)).to_have_accessible_name("回复 Guest 1")
    comment(page, "No. 1.").focus()
    page.keyboard.press("c")
    expect(page.get_by_label("写下你的想法…")).to_be_focused()
    expect(page.get_by_label("写下你的想法…")).to_have_value("")
    page.locator(".head .like").focus()
    page.keyboard.press("l")
    expect(page.get_by_role("button", name="喜欢这篇文章 1")).to_be_visible()
    page.keyboard.press("j")
    assert here(page) == "No. 2."


def test_in_fields_and_choices_and_with_other_keys_held_a_letter_is_a_letter(
    app: App, touch: View
) -> None:
    fill(app, 2)
    page = touch()
    field = page.get_by_label("写下你的想法…")
    field.press_sequentially("jkrlc?")
    expect(field).to_have_value("jkrlc?")
    name = page.get_by_label("昵称")
    name.press_sequentially("jkrlc?")
    expect(name).to_have_value("jkrlc?")
    page.get_by_label("排序").focus()
    for key in "jkrlc?":
        page.keyboard.press(key)
    expect(page.get_by_label("排序")).to_be_focused()
    comment(page, "No. 2.").focus()
    for held in ("Control", "Alt", "Meta"):
        for key in "jrl":
            page.keyboard.press(f"{held}+{key}")
    expect(comment(page, "No. 2.")).to_be_focused()
    expect(page.locator("article form")).to_have_count(0)
    expect(comment(page, "No. 2.").get_by_role("button", name="赞 0")).to_be_visible()
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("j")
    expect(comment(page, "No. 1.")).to_be_focused()


def test_keys_of_the_page_are_left_to_the_page(app: App, touch: View) -> None:
    fill(app, 2)
    keys = """<script>keys = []
        addEventListener('keydown', e => keys.push([e.key, e.defaultPrevented]))"""
    page = touch(
        "<p tabindex=0>An essay.</p><input aria-label=Search>" + TAG, head=keys + "</script>"
    )
    for node in (page.get_by_text("An essay."), page.get_by_label("Search")):
        node.focus()
        for key in "jrlc?":
            page.keyboard.press(key)
        expect(node).to_be_focused()
    expect(page.get_by_label("Search")).to_have_value("jrlc?")
    comment(page, "No. 2.").focus()
    page.keyboard.press("x")
    page.keyboard.press("j")
    assert page.evaluate("keys") == [*([k, False] for k in "jrlc?" * 2), ["x", False], ["j", True]]
    expect(page.locator("dialog")).to_have_count(0)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_list_of_the_keys_opens_in_the_language_and_closes_to_where_it_was(
    app: App, touch: View, lang: str
) -> None:
    fill(app, 1)
    page = touch(lang=lang)
    comment(page, "No. 1.").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name=words(lang, "keys"))
    expect(dialog).to_be_visible()
    for key in ("next", "previous", "like", "post", "keys"):
        expect(dialog.locator("dd").get_by_text(words(lang, key), exact=True)).to_be_visible()
    assert not re.search("undefined|[{}]", dialog.inner_text())
    assert len(dialog.locator("dd").all()) == len(dialog.locator("dt").all()) == 7
    for key in "jl?":
        page.keyboard.press(key)
    expect(page.locator("dialog")).to_have_count(1)
    expect(comment(page, "No. 1.").locator(".like")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    expect(comment(page, "No. 1.")).to_be_focused()
    page.keyboard.press("?")
    page.get_by_role("button", name=words(lang, "close")).click()
    expect(page.locator("dialog")).to_have_count(0)
    expect(comment(page, "No. 1.")).to_be_focused()


# Copy


def localhost(site: Site) -> str:
    """The blog where the browser takes it for safe, as it does an https one."""
    return site.address.replace("blog.test", "localhost")


def copy_of(page: Page, text: str) -> Locator:
    return comment(page, text).get_by_role("button", name="复制链接")


def test_the_link_of_a_comment_is_copied_told_and_leads_to_it(
    app: App, site: Site, page: Page
) -> None:
    ids = fill(app, 25)
    site.write(TAG)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(localhost(site) + POST)
    page.get_by_role("button", name="显示更多").click()
    copy_of(page, "No. 9.").click()
    expect(page.get_by_role("status").filter(has_text="链接已复制。")).to_be_visible()
    assert page.url == localhost(site) + POST
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == localhost(site) + POST + f"#comment-{ids[8]}"
    page.goto("about:blank")
    page.goto(link)
    expect(page.locator("[data-target]")).to_contain_text("No. 9.")
    expect(comment(page, "No. 9.")).to_be_focused()
    expect(comment(page, "No. 9.")).to_be_in_viewport()


@pytest.mark.parametrize("how", ["plain", "refused"])
def test_where_nothing_may_be_copied_the_link_is_in_the_address_bar(
    app: App, site: Site, page: Page, how: str
) -> None:
    ids = fill(app, 3)
    site.write(TAG)
    if how == "refused":
        page.add_init_script("navigator.clipboard.writeText = async () => { throw Error('no') }")
    page.goto((localhost(site) if how == "refused" else site.address) + POST)
    copy_of(page, "No. 2.").click()
    expect(page.get_by_role("status").filter(has_text="链接已显示在地址栏。")).to_be_visible()
    assert page.url.endswith(POST + f"#comment-{ids[1]}")
    expect(page.locator("[data-target]")).to_contain_text("No. 2.")


# Print


def test_print_has_the_words_and_nothing_to_press(app: App, touch: View) -> None:
    say(app, "\n\n".join(f"Paragraph {n}." for n in range(60)), hours=3)
    nested(app, 2)
    page = touch()
    expect(page.locator(".folded")).to_have_count(1)
    comment(page, "Depth 0.").first.get_by_role("button", name="回复").click()
    copy_of(page, "Depth 1.").click()
    expect(page.locator("[role=status]:not(:empty)")).to_be_visible()
    folded = page.locator(".folded")
    assert folded.evaluate("it => it.clientHeight < it.scrollHeight")
    page.emulate_media(media="print")
    expect(page.locator(".meta").first).to_have_css("break-after", "avoid")
    for what in ("form", "button", "select", "[role=status]", "textarea", "summary"):
        assert page.locator(f"commentd-thread {what}").count() > 0
        assert page.locator(f"commentd-thread {what}").filter(visible=True).count() == 0
    assert folded.evaluate("it => it.clientHeight === it.scrollHeight")
    expect(folded).to_have_css("mask-image", "none")
    expect(page.get_by_text("Paragraph 59.")).to_be_visible()
    for text in ("Depth 0.", "Depth 1.", "3 条评论", "陆知微"):
        expect(page.locator("commentd-thread").get_by_text(text).first).to_be_visible()
    page.emulate_media(media="screen")
    expect(page.get_by_role("textbox", name="回复 A")).to_be_visible()
    assert folded.evaluate("it => it.clientHeight < it.scrollHeight")


# Numbers and the latest

ANYWHERE = """<p lang=en>Views: <i data-commentd-views=/a/>many</i></p>
    <p lang=de><i data-commentd-views=/a/></i> <i data-commentd-count=/a/></i>
    <i data-commentd-likes=/a/></i></p>
    <p><i data-commentd-views></i> <i data-commentd-likes=/unknown/>none</i></p>"""


def test_views_likes_and_comments_of_several_pages_come_in_one_request(
    app: App, view: View, asked: list[str]
) -> None:
    fill(app, 2, "/a/")
    sql(app, "UPDATE page SET views = 12345")
    TestApp(app).post_json("/page/like", {"page_url": "/a/"})
    page = view(ANYWHERE, head=TAG)
    expect(page.locator("i")).to_have_text(["12,345", "12.345", "2", "1", "0", "0"])
    assert widget.counted(asked) == [[*["/a/"] * 4, POST, "/unknown/"]]
    assert len([line for line in asked if "counts.js" in line]) == 1


def test_numbers_that_cannot_be_had_leave_what_stands_there(
    page: Page, view: View, faults: list[str]
) -> None:
    page.route(re.compile("/pages"), lambda route: route.abort())
    with page.expect_event("requestfailed", lambda request: "/pages" in request.url):
        view(ANYWHERE + TAG)
    expect(page.locator("commentd-thread .none")).to_be_visible()
    idle(page)
    expect(page.locator("i")).to_have_text(["many", "", "", "", "", "none"])
    page.unroute_all()
    page.route(re.compile("/pages"), lambda route: route.fulfill(status=502, body="<h1>Bad</h1>"))
    with page.expect_response(re.compile("/pages")) as told:
        view(ANYWHERE + TAG)
    told.value.finished()
    idle(page)
    expect(page.locator("i")).to_have_text(["many", "", "", "", "", "none"])
    unreached(faults)


def latest(page: Page) -> Locator:
    return page.locator("[data-commentd-latest] > li")


def test_what_was_written_last_is_listed_with_links_into_its_pages(
    app: App, view: View, page: Page, site: Site, asked: list[str]
) -> None:
    first = say(app, "The oldest, with **bold** & `<b>code</b>`.", "Ann", page="/a/?x=1")
    fill(app, 4, "/b/")
    last = say(app, "Zuletzt.", "Bo", page="/c/", hours=3)
    site.write(TAG, "/c/")
    view("<ul lang=de data-commentd-latest=2></ul><ul data-commentd-latest></ul>", head=TAG)
    two, six = (page.locator("ul").nth(n) for n in range(2))
    expect(two.locator("a")).to_have_text(["Zuletzt.", "No. 4."])
    expect(two.locator("bdi")).to_have_text(["Bo", "Guest 4"])
    expect(two.locator("time").first).to_have_text("vor 3 Stunden")
    expect(six.locator("li")).to_have_count(6)
    old = six.locator("li").last
    expect(old.locator("a")).to_have_text("The oldest, with bold & <b>code</b>.")
    expect(old.locator("a")).to_have_attribute("href", f"{site.address}/a/?x=1#comment-{first}")
    assert page.locator("ul strong, ul b, ul code").count() == 0
    assert widget.counted(asked) == []
    two.locator("a").first.click()
    expect(page).to_have_url(f"{site.address}/c/#comment-{last}")
    expect(comment(page, "Zuletzt.")).to_be_in_viewport()


def test_an_excerpt_is_text_of_eighty_characters(app: App, view: View) -> None:
    excerpts = {
        "长" * 80: "长" * 80,
        "短" * 81: "短" * 80 + "…",
        "\U0001f9c5" * 81: "\U0001f9c5" * 80 + "…",
        "<img src=x onerror=hit=1>": "<img src=x onerror=hit=1>",
    }
    for text in excerpts:
        say(app, text)
    page = view("<ul data-commentd-latest></ul>", head=TAG)
    expect(latest(page).locator("a")).to_have_text([*excerpts.values()][::-1])
    assert page.evaluate("typeof hit") == "undefined"
    assert page.locator("img").count() == 0


BROKEN = [
    *[("page_url", url) for url in ("https://evil.example/", "//evil.example/x")],
    *[("page_url", url) for url in ("javascript:hit=1", "data:text/html,x", "http://[")],
    *[("created_at", "never"), ("created_at", None), ("html", None)],
]


def test_an_item_that_leads_elsewhere_or_is_broken_is_none_and_spoils_no_other(
    app: App, view: View, site: Site
) -> None:
    fill(app, 2 * len(BROKEN))

    def change(comments: list[Json]) -> None:
        for each, (field, value) in zip(comments[::2], BROKEN, strict=True):
            each[field] = value

    with altering(app, change, "/comments/latest"):
        page = view("<ul data-commentd-latest=30></ul>", head=TAG)
        sound = [f"No. {n}." for n in range(2 * len(BROKEN) - 1, 0, -2)]
        expect(latest(page).locator("a")).to_have_text(sound)
    for link in latest(page).locator("a").all():
        assert (link.get_attribute("href") or "").startswith(site.address + POST + "#comment-")


def test_a_list_that_is_added_later_is_filled_once(app: App, view: View, asked: list[str]) -> None:
    fill(app, 2)
    page = view("<main>A post.</main>", head=TAG)
    page.wait_for_function("() => !!customElements.get('commentd-thread')")
    page.evaluate("""() => {
        const list = document.createElement('ul')
        list.dataset.commentdLatest = '1'
        document.querySelector('main').append(list)
    }""")
    expect(latest(page)).to_have_count(1)
    page.evaluate("document.querySelector('main').append(document.createElement('hr'))")
    idle(page)
    assert [line.rpartition("/")[2] for line in asked if "latest" in line] == ["latest?limit=1"]


@pytest.mark.parametrize("how", ["empty", "foreign", "refused", "none"])
def test_where_there_is_nothing_to_list_what_stands_there_stays(
    app: App, view: View, page: Page, faults: list[str], how: str
) -> None:
    if how != "empty":
        say(app, "Hello.")

    def change(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] != "/comments/latest" or how == "empty":
            return status, headers, body
        body = (
            body.replace(b"/2026/lines/", b"https://evil.example/") if how == "foreign" else b"{}"
        )
        return "502 Bad Gateway" if how == "refused" else status, headers, body

    with answering(app, change), page.expect_response(re.compile("/latest")) as told:
        view("<ul data-commentd-latest><li>Be the first.</ul>", head=TAG)
    told.value.finished()
    idle(page)
    expect(latest(page)).to_have_text(["Be the first."])
    unreached(faults)


def test_a_number_that_the_service_does_not_give_lists_what_it_does(app: App, view: View) -> None:
    fill(app, 2)
    numbers = ("31", "99", "0", "many", "-1")
    lists = "".join(f"<ul data-commentd-latest={number}></ul>" for number in numbers)
    page = view(lists, head=TAG)
    expect(latest(page)).to_have_count(2 * len(numbers))


def test_numbers_and_lists_are_filled_under_a_strict_policy(
    app: App, site: Site, page: Page, faults: list[str]
) -> None:
    say(app, "Hello.")
    policy = widget.POLICY + "; worker-src blob:" + TYPES
    strict(
        site, "<i data-commentd-count=/2026/lines/></i><ul data-commentd-latest></ul>" + TAG, policy
    )
    page.goto(site.address + POST)
    expect(latest(page)).to_have_count(1)
    expect(page.locator("i")).to_have_text("1")
    expect(comment(page, "Hello.")).to_be_visible()
    refused = [fault for fault in faults if "TrustedScriptURL" in fault]
    assert faults == refused
    faults.clear()


# Where pages change without loading

ELEMENT = "<main><commentd-thread></commentd-thread></main>"
OLD = '<link rel=canonical href="https://blog.example/first/">' + TAG.replace(" async", "")
ROUTE = """([to, canonical, order]) => {
    const main = document.querySelector('main')
    const change = [() => history.pushState(null, '', to),
        () => main.replaceChildren(document.createElement('commentd-thread'))]
    if (canonical) document.querySelector('link[rel=canonical]').href = canonical
    for (const step of order === 'element first' ? change.reverse() : change) step()
}"""


@pytest.fixture
def routes(app: App, site: Site) -> None:
    for name in ("first", "second", "third"):
        say(app, f"Of the {name}.", page=f"/{name}/")


def urls(asked: list[str]) -> list[str]:
    return [query["url"] for query in lists(asked)]


@pytest.mark.parametrize("order", ["address first", "element first"])
@pytest.mark.usefixtures("routes")
def test_where_the_canonical_link_stays_behind_the_address_says_which_page(
    view: View, asked: list[str], order: str
) -> None:
    page = view(ELEMENT, "/first/", head=OLD)
    expect(page.locator(".body")).to_have_text("Of the first.")
    for name in ("second", "third", "first"):
        page.evaluate(ROUTE, [f"/{name}/", None, order])
        expect(page.locator(".body")).to_have_text(f"Of the {name}.")
    page.evaluate(ROUTE, ["/2/?from=list", "https://blog.example/second/", order])
    expect(page.locator(".body")).to_have_text("Of the second.")
    page.evaluate(ROUTE, ["/first/", "https://blog.example/first/", order])
    expect(page.locator(".body")).to_have_text("Of the first.")
    wanted = ("first", "second", "third", "first", "second", "first")
    assert urls(asked) == [f"/{name}/" for name in wanted]


@pytest.mark.usefixtures("routes")
def test_what_is_written_goes_to_the_page_that_is_seen(
    app: App, view: View, asked: list[str]
) -> None:
    page = view(ELEMENT, "/1/", head=OLD)
    expect(page.locator(".body")).to_have_text("Of the first.")
    page.evaluate(ROUTE, ["/second/", None, ""])
    expect(page.locator(".body")).to_have_text("Of the second.")
    write_comment(page, "Mine.")
    expect(comment(page, "Mine.")).to_be_focused()
    listed = TestApp(app).get("/comments?url=/second/").json["comments"]
    assert [each["content"] for each in listed] == ["Mine.", "Of the second."]
    page.go_back()
    expect(page.locator(".body")).to_have_text("Of the first.")
    assert urls(asked) == ["/first/", "/second/", "/first/"]


@pytest.mark.parametrize("body", ["<main>A list of posts.</main>", "lazy"])
@pytest.mark.usefixtures("routes")
def test_who_comes_from_a_page_without_comments_sees_those_of_the_next_page(
    view: View, asked: list[str], body: str
) -> None:
    lazy = (
        "<div style='height: 9000px'>A post.</div><commentd-thread loading=lazy></commentd-thread>"
    )
    page = view(f"<main>{lazy}</main>" if body == "lazy" else body, "/first/", head=OLD)
    page.wait_for_function("() => !!customElements.get('commentd-thread')")
    idle(page)
    page.evaluate(ROUTE, ["/second/", None, ""])
    expect(page.locator(".body")).to_have_text("Of the second.")
    assert urls(asked) == ["/second/"]


@pytest.mark.usefixtures("routes")
def test_an_element_that_stays_follows_the_address(view: View, asked: list[str]) -> None:
    page = view(ELEMENT, "/first/", head=TAG)
    expect(page.locator(".body")).to_have_text("Of the first.")
    intercept = "navigation.addEventListener('navigate', e => e.intercept({async handler() {}}))"
    field = page.get_by_label("写下你的想法…")
    field.fill("Half a thought.")
    for name, change, draft in (
        ("second", "history.pushState(null, '', '/second/')", ""),
        ("third", "history.replaceState(null, '', '/third/')", ""),
        ("first", f"{intercept}; location.href = '/first/'", "Half a thought."),
    ):
        page.evaluate(f"() => {{ {change} }}")
        expect(page.locator(".body")).to_have_text(f"Of the {name}.")
        expect(field).to_have_value(draft)
    page.evaluate("history.replaceState({scroll: 9}, '')")
    page.evaluate("history.pushState(null, '', '#part')")
    idle(page)
    page.evaluate("""() => {
        document.querySelector('main').innerHTML = '<commentd-thread></commentd-thread>'
        history.pushState(null, '', '/second/')
    }""")
    expect(page.locator(".body")).to_have_text("Of the second.")
    widget.settled(page)
    assert urls(asked) == ["/first/", "/second/", "/third/", "/first/", "/second/"]
    asked.clear()
    view("<commentd-thread page=/third/></commentd-thread>" + TAG, "/first/")
    expect(page.locator(".body")).to_have_text("Of the third.")
    page.evaluate("history.pushState(null, '', '/second/')")
    idle(page)
    assert urls(asked) == ["/third/"]


def test_a_lazy_thread_that_is_not_near_looks_for_nothing_new(
    page: Page, view: View, asked: list[str]
) -> None:
    page.clock.install()
    lazy = "<commentd-thread loading=lazy></commentd-thread>"
    view("<div style='height: 9000px'>An essay</div>" + lazy + TAG)
    expect(page.locator("commentd-thread:defined")).to_have_count(1)
    with page.expect_response("**/words/**"):
        page.clock.fast_forward(60_000)
    idle(page)
    page.clock.fast_forward(180_000)
    idle(page)
    assert [line for line in asked if "/pages" in line] == []


# The ground

# As the reader sees them: CSS lightness of text and link, and of the ground that the test names.
SEEN = """ground => {
    const root = document.querySelector('commentd-thread').shadowRoot
    const probe = document.body.appendChild(document.createElement('i'))
    const light = color => {
        probe.style.color = `lab(from ${color} l 0 0)`
        return Number(/^lab\\(([\\d.]+)/.exec(getComputedStyle(probe).color)[1])
    }
    const colour = it => getComputedStyle(root.querySelector(it)).color
    const [text, link] = ['.head b', '.body a'].map(colour)
    const far = [text, link].map(color => Math.round(Math.abs(light(color) - light(ground))))
    probe.remove()
    return [text, ...far]
}"""


def seen_on(page: Page, ground: str) -> tuple[str, int, int]:
    """The colour of the text, and how far its lightness and that of links are from the ground's."""
    text, text_far, link_far = page.evaluate(SEEN, ground)
    return text, text_far, link_far


@pytest.fixture
def dressed(app: App, view: View) -> View:
    """Opens a page with this style."""
    say(app, "See [there](https://a.example/).")

    def dressed(style: str, body: str = TAG, head: str = "") -> Page:
        page = view(body, head=f"<style>{style}</style>{head}")
        expect(page.locator(".body a")).to_be_visible()
        idle(page)
        idle(page)
        return page

    return dressed


GROUNDS = [  # the page's style, its ground, and the colour of a text that is left alone
    ("html { background: #303030 } body { background: #303030 }", "#303030", None),
    ("body { background: #111; color: #333 }", "#111", None),
    ("body { background: oklch(.98 .01 90); color: #fff }", "#f8f6f0", None),
    ("body { color: #eee }", "#fff", None),
    ("body { background: #111; color: #ccc }", "#111", "rgb(204, 204, 204)"),
    ("body { background: #fff; color: #555 }", "#fff", "rgb(85, 85, 85)"),
    ("body { color: #000 } main { background: #222 }", "#222", None),
    ("body { background: #222; color: #eee } main { background: transparent }", "#222",
     "rgb(238, 238, 238)"),
]  # fmt: skip
NOT_PLAIN = [
    ("body { background: linear-gradient(#111, #222); color: #eee }", "#181818"),
    ("body { color: #eee; background: url(data:image/svg+xml,%3Csvg/%3E) #0000 }", "#111"),
    ("main { background: rgb(0 0 0 / .85); color: #eee }", "#262626"),
    ("body { background: #111 } main { background: rgb(255 255 255 / .9); color: #222 }",
     "#e7e7e7"),
    ("html { color-scheme: dark; background: linear-gradient(#111, #222) }", "#181818"),
]  # fmt: skip


def test_a_text_too_faint_on_its_ground_is_mended_and_no_other(dressed: View) -> None:
    for style, ground, text in GROUNDS:
        page = dressed("a { color: #888 }" + style, f"<main>{TAG}</main>")
        seen, far, linked = seen_on(page, ground)
        assert text in (seen, None), style
        assert far >= 45, style
        assert linked >= 35, style
    for style, ground in NOT_PLAIN:
        page = dressed("a { color: #888 }" + style, f"<main>{TAG}</main>")
        assert seen_on(page, ground)[1] >= 45, style


NIGHT = "html { background: #fff } html.night { background: #1b1b1b } "


@pytest.mark.parametrize(
    "style",
    [
        "a { color: #06c } html.night a { color: #9cf }",
        "a { color: #06c } html.night a { color: #9cf } html { transition: background-color .2s }",
    ],
    ids=["links too", "slowly"],
)
@pytest.mark.parametrize("text", ["black", "own"])
def test_a_text_can_be_read_after_the_page_is_switched_and_back(
    dressed: View, style: str, text: str
) -> None:
    own = "html.night { color: #eee }" if text == "own" else ""
    page = dressed(NIGHT + style + own)
    assert seen_on(page, "#fff")[1] == 100
    page.evaluate("document.documentElement.className = 'night'")
    read = f"() => ({SEEN})('#1b1b1b')[1] >= 45"
    page.wait_for_function(read)
    page.evaluate("Promise.all(document.getAnimations().map(it => it.finished))")
    page.wait_for_function(read)
    if own:
        assert seen_on(page, "#1b1b1b")[0] == "rgb(238, 238, 238)"
    page.evaluate("document.documentElement.className = ''")
    page.wait_for_function(f"() => ({SEEN})('#fff')[1] === 100")


@pytest.mark.parametrize("start", ["light", "dark"])
def test_a_page_without_colours_of_its_own_is_read_in_both_schemes(
    dressed: View, page: Page, start: str
) -> None:
    page.emulate_media(color_scheme=start)
    dressed("html { color-scheme: light dark }")
    for scheme in (start, *({"light", "dark"} - {start}), start):
        page.emulate_media(color_scheme=scheme)
        idle(page)
        idle(page)
        assert seen_on(page, "#fff" if scheme == "light" else "#121212")[1] >= 45


@pytest.mark.parametrize(
    ("theme", "own", "ground"),
    [("dark", "rgb(0, 0, 0)", "#000"), ("light", "rgb(255, 255, 255)", "#fff")],
)
def test_the_attribute_says_the_ground_where_the_page_cannot(
    dressed: View, theme: str, own: str, ground: str
) -> None:
    body = f"<commentd-thread theme={theme}></commentd-thread>{TAG}"
    page = dressed(f"body {{ background: #777; color: {own} }}", body)
    page.wait_for_function(f"() => ({SEEN})('{ground}')[1] >= 45")
    other = "light" if theme == "dark" else "dark"
    page.locator("commentd-thread").evaluate(
        "(it, theme) => it.setAttribute('theme', theme)", other
    )
    page.wait_for_function(f"() => ({SEEN})('{own}')[1] === 0")


def test_colours_that_the_page_sets_for_the_comments_win(dressed: View) -> None:
    style = "body { background: #111; color: #222 } a { color: #222 }"
    own = "commentd-thread { --commentd-text: #abc; --commentd-accent: #fed }"
    page = dressed(style + own)
    text, *_ = seen_on(page, "#111")
    assert text == "rgb(170, 187, 204)"
    expect(page.locator(".body a")).to_have_css("color", "rgb(255, 238, 221)")


def test_a_link_too_faint_is_mixed_with_the_text_and_no_other(dressed: View) -> None:
    page = dressed("body { background: #fff } a { color: #fd9 } .night a { color: #06c }")
    assert seen_on(page, "#fff")[2] >= 45
    page.evaluate("document.documentElement.className = 'night'")
    expect(page.locator(".body a")).to_have_css("color", "rgb(0, 102, 204)")


# Two dozen threads on one page, whose links go round the wheel of colours; what stands out how far.
WHEEL = """async ({ground, text, lightness}) => {
  const brush = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true})
  const over = (...colors) => {
    for (const color of colors) {
      brush.fillStyle = color
      brush.fillRect(0, 0, 1, 1)
    }
    return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3)
  }
  const light = color => color.map(c => c / 255)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], .05)
  const contrast = (back, color) => {
    const pair = [light(over(...back)), light(over(...back, color))]
    return Math.max(...pair) / Math.min(...pair)
  }
  for (const [name, value] of Object.entries({ground, text, lightness})) {
    document.documentElement.style.setProperty('--' + name, value)
  }
  await new Promise(go => requestAnimationFrame(go))
  await Promise.all(document.getAnimations().map(each => each.finished.catch(() => 0)))
  await new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))
  const low = []
  const threads = [...document.querySelectorAll('commentd-thread')]
  for (const [number, {shadowRoot}] of threads.entries()) {
    const style = (selector, pseudo) => getComputedStyle(shadowRoot.querySelector(selector), pseudo)
    const button = style('.form .button')
    const marked = getComputedStyle(shadowRoot.querySelector('[data-target]')).backgroundColor
    const ratios = {
      text: [4.5, contrast([ground], style('.head b').color)],
      link: [4.5, contrast([ground], style('.body a').color)],
      'marked link': [4.5, contrast([ground, marked], style('.body a').color)],
      'marked time': [4.5, contrast([ground, marked], style('time').color)],
      reply: [4.5, contrast([ground], style('.reply').color)],
      placeholder: [4.5, contrast([ground], style('textarea', '::placeholder').color)],
      error: [4.5, contrast([ground], style('.error').color)],
      field: [3, contrast([ground], style('textarea').borderTopColor)],
      button: [3, contrast([ground], button.backgroundColor)],
      'its word': [4.5, contrast([button.backgroundColor], button.color)],
    }
    for (const [name, [least, ratio]] of Object.entries(ratios)) {
      if (!(ratio >= least)) low.push([number * 15, lightness, name, ratio])
    }
  }
  return low
}"""


@pytest.mark.parametrize(
    ("ground", "texts"),
    [
        ("#ffffff", ["#333333", "#999999", "#49b1f5"]),
        ("#0d1b2a", ["#e0e1dd", "#415a77"]),
        pytest.param("#ffffff", ["#000000", "#555555", "#707070"], marks=pytest.mark.long),
        pytest.param("#f4ecd8", ["#433422", "#8a7a5c", "#f4ecd8"], marks=pytest.mark.long),
        pytest.param("#808080", ["#111111", "#eeeeee"], marks=pytest.mark.long),
        pytest.param("#4a4a4a", ["#bbbbbb", "#777777"], marks=pytest.mark.long),
        pytest.param("#0d1b2a", ["#778da9"], marks=pytest.mark.long),
        pytest.param("#000000", ["#ffffff", "#888888", "#222222"], marks=pytest.mark.long),
    ],
)
def test_all_can_be_read_whatever_colours_the_blog_has(
    app: App, view: View, ground: str, texts: list[str]
) -> None:
    say(app, "See [there](https://a.example/).")
    threads = "".join(
        f"<div style='--hue: {hue}'><commentd-thread></commentd-thread></div>"
        for hue in range(0, 360, 15)
    )
    style = """<style>
        html { color-scheme: light dark }
        body { background: var(--ground, #fff); color: var(--text, #222) }
        a { color: hsl(var(--hue) 85% var(--lightness, 50%)) }</style>"""
    page = view(threads + TAG, head=style)
    expect(page.locator("article")).to_have_count(24)
    for thread in page.locator("commentd-thread").all():
        thread.locator(".form .button").evaluate("e => e.form.requestSubmit()")
    expect(page.locator(".error")).to_have_count(24)
    page.evaluate("""() => document.querySelectorAll('commentd-thread').forEach(
        ({shadowRoot}) => shadowRoot.querySelector('article').setAttribute('data-target', ''))""")
    low = [
        [text, *each]
        for text in texts
        for lightness in ("20%", "40%", "60%", "80%")
        for each in page.evaluate(WHEEL, {"ground": ground, "text": text, "lightness": lightness})
    ]
    assert low == []


def test_the_button_can_be_read_on_blogs_with_light_links(dressed: View) -> None:
    for link, ground, text in (
        ("#49b1f5", "#ffffff", "#4c4948"),
        ("#357edd", "#ffffff", "#333333"),
        ("#e8590c", "#ffffff", "#333333"),
        ("#1abc9c", "#ffffff", "#555555"),
        ("#30a9de", "#252d38", "#c4c6c9"),
    ):
        page = dressed(f"body {{ background: {ground}; color: {text} }} a {{ color: {link} }}")
        page.get_by_label("写下你的想法…").click()
        ratio = page.locator("commentd-thread .button").first.evaluate("""button => {
            const {color, backgroundColor} = getComputedStyle(button)
            const probe = document.body.appendChild(document.createElement('i'))
            const [one, two] = [color, backgroundColor].map(each => {
                probe.style.color = `color(from ${each} xyz x y z)`
                return Number(getComputedStyle(probe).color.split(' ')[2]) + .05
            })
            probe.remove()
            return Math.max(one / two, two / one)
        }""")
        assert ratio >= 4.5, link


def test_a_theme_that_keeps_the_colour_of_links_is_noticed(dressed: View) -> None:
    style = """a { color: #1a73e8 } body { background: #fff; color: #222 }
        body.night { background: #111; color: #ddd }"""
    page = dressed(style)
    thread = page.locator("commentd-thread")
    expect(thread).to_have_css("color-scheme", "light")
    page.evaluate("document.body.className = 'night'")
    expect(thread).to_have_css("color-scheme", "dark")
    expect(page.locator(".head b")).to_have_css("color", "rgb(221, 221, 221)")
    page.evaluate("document.body.className = ''")
    expect(thread).to_have_css("color-scheme", "light")
    expect(page.locator(".head b")).to_have_css("color", "rgb(34, 34, 34)")


def test_no_colour_is_mixed_from_that_of_the_element_itself(page: Page, view: View) -> None:
    # Safari 16.4 and 16.5 crash at that (WebKit bug 256171).
    page.add_init_script("""
        const sheets = Object.getOwnPropertyDescriptor(ShadowRoot.prototype, 'adoptedStyleSheets')
        Object.defineProperty(ShadowRoot.prototype, 'adoptedStyleSheets', {...sheets, set(list) {
          window.before = this.host.style.getPropertyValue('--_own')
          sheets.set.call(this, list)
        }})""")
    view("<style>body { color: #123456 }</style>" + TAG)
    expect(page.locator(".none")).to_be_visible()
    assert page.evaluate("before") == "rgb(18, 52, 86)"
    for script in ("embed.js", "more.js", "account.js"):
        text = (widget.STATIC / script).read_text("utf-8")
        assert re.findall(r"(?:--_\w+|color-mix\()[^;{]*currentColor", text) == []


REST = "() => new Promise(go => setTimeout(go, 150))"
COUNTED = """<script>ends = 0
addEventListener('transitionend', () => ends++, true)</script>"""


@pytest.mark.parametrize(
    "style",
    [
        "",
        "html { color-scheme: light dark }",
        "html { color-scheme: dark } body { background: #fff }",
        "body { background: #111 }",
        "a { color: currentColor } body { background: #111; color: #111 }",
        "commentd-thread a { color: inherit } body { background: #111 }",
        "a { color: light-dark(#00f, #8cf) } html { color-scheme: dark } body { background: #fff }",
        "* { transition: all .02s }",
    ],
)
@pytest.mark.parametrize("options", [{"locale": "zh-CN", "color_scheme": "dark"}])
def test_mending_comes_to_an_end(dressed: View, style: str) -> None:
    page = dressed(style, head=COUNTED)
    page.evaluate(REST)
    before = page.evaluate("ends")
    page.evaluate(REST)
    assert page.evaluate("ends") == before < 8
    page.evaluate("document.documentElement.style.setProperty('color-scheme', 'light')")
    page.evaluate(REST)
    before = page.evaluate("ends")
    page.evaluate(REST)
    assert page.evaluate("ends") == before < 16


def test_in_an_element_of_the_page_the_ground_is_that_of_the_element(app: App, view: View) -> None:
    say(app, "Hello.")
    make = """<style>body { background: #111; color: #eee }</style><div id=frame></div><script>
        frame.attachShadow({mode: 'open'}).append(document.createElement('commentd-thread'))
        </script>"""
    page = view(make, head=TAG)
    expect(page.locator(".body")).to_be_visible()
    idle(page)
    idle(page)
    expect(page.locator(".head b")).to_have_css("color", "rgb(238, 238, 238)")


# Names and places


def test_each_thing_says_what_it_belongs_to(app: App, view: View) -> None:
    say(app, "Hello.", "Ann")
    page = view(TAG, lang="en")
    section = page.get_by_role("region", name="Comments")
    expect(section.get_by_role("heading", name="1 comment")).to_be_visible()
    expect(section.get_by_role("article", name="Ann")).to_contain_text("Hello.")
    section.get_by_role("button", name="Reply to Ann").click()
    expect(section.get_by_role("textbox", name="Reply to Ann")).to_be_focused()


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_name_of_the_reply_button_holds_the_word_that_it_shows(lang: str) -> None:
    assert words(lang, "reply").lower() in words(lang, "replyto").lower()


def test_a_text_of_the_other_direction_begins_at_its_own_side(app: App, view: View) -> None:
    say(app, "شكرا جزيلا لك.", page="/en/")
    say(app, "Thank you.", page="/ar/")
    for lang, sides in (("en", (True, False)), ("ar", (False, True))):
        page = view(path=f"/{lang}/", lang=lang)
        expect(page.locator(".body p")).to_be_visible()
        left, right = page.locator(".body p").evaluate("""p => {
            const range = document.createRange()
            range.selectNodeContents(p)
            const [box, line] = [p.getBoundingClientRect(), range.getBoundingClientRect()]
            return [line.left - box.left, box.right - line.right]
        }""")
        assert (left > 100, right > 100) == sides
    box = page.get_by_role("textbox").first
    expect(box).to_have_css("direction", "rtl")
    box.fill("Hello")
    expect(box).to_have_css("direction", "ltr")


# Languages


@pytest.mark.parametrize("lang", LANGUAGES)
def test_each_language_is_there_whole_and_in_its_direction(
    app: App, view: View, asked: list[str], lang: str
) -> None:
    nested(app, 2)
    page = view(lang=lang)
    expect(page.locator("article")).to_have_count(2)
    section = page.locator("commentd-thread section")
    expect(section).to_have_attribute("lang", lang)
    expect(section).to_have_css("direction", "rtl" if lang == "ar" else "ltr")
    expect(page.get_by_label(words(lang, "write"))).to_be_visible()
    expect(page.get_by_role("button", name=words(lang, "reply")).first).to_be_visible()
    said = section.evaluate("""it => [it.innerText, ...[...it.querySelectorAll('*')].flatMap(
        node => [node.ariaLabel, node.title, node.placeholder])].join('\\n')""")
    assert not re.search(r"undefined|\[object|[{}]|null", said)
    mine = [line for line in asked if "/words/" in line]
    inline = lang in ("en", "zh-CN")
    assert [line.rpartition("/")[2] for line in mine] == ([] if inline else [f"{lang}.json"])


def test_words_are_asked_for_beside_the_comments_and_not_after_them(
    app: App, page: Page, view: View, asked: list[str]
) -> None:
    fill(app, 1)
    held = hold(page, r"/comments\?")
    with page.expect_response(re.compile("/words/de")):
        view(TWO.replace("></c", " lang=de></c"), lang="de")
    expect(page.get_by_label(words("de", "write")).first).to_be_visible()
    assert len(held) == 2
    for route in held:
        route.continue_()
    expect(page.locator(".none")).to_have_count(2)
    assert len([line for line in asked if "/words/" in line]) == 1


@pytest.mark.parametrize("lang", ["ar", "de", "ja", "ru"])
@pytest.mark.parametrize("how", ["gone", "refused", "broken"])
def test_where_words_cannot_be_had_all_is_there_in_english(
    app: App, page: Page, view: View, faults: list[str], lang: str, how: str
) -> None:
    fill(app, 3)
    headers = {"Access-Control-Allow-Origin": "*"}
    answers: Json = {"refused": {"status": 503, "body": "{}"}, "broken": {"body": "<h1>Hotel</h1>"}}

    def fulfil(route: Route) -> None:
        route.abort() if how == "gone" else route.fulfill(headers=headers, **answers[how])

    page.route(re.compile("/words/"), fulfil)
    view(lang=lang)
    expect(page.locator("article")).to_have_count(3)
    section = page.locator("commentd-thread section")
    expect(page.get_by_label("Write a comment…")).to_be_visible()
    expect(section.locator(".head b")).to_have_text("3 comments")
    expect(section.get_by_role("button", name="Reply")).to_have_count(3)
    expect(section).to_have_attribute("lang", "en")
    expect(section).to_have_css("direction", "ltr")
    assert "undefined" not in section.inner_text()
    unreached(faults)


def test_where_the_further_words_cannot_be_had_nothing_without_a_name_appears(
    app: App, page: Page, view: View, faults: list[str]
) -> None:
    fill(app, 2)
    page.route(re.compile("/words/"), lambda route: route.abort())
    view()
    with page.expect_event("requestfailed", lambda request: "/words/" in request.url):
        comment(page, "No. 1.").click()
    idle(page)
    select(page, "No. 1.")
    comment(page, "No. 1.").focus()
    page.keyboard.press("?")
    assert [b for b in page.locator("commentd-thread button:visible").all() if not b.text_content()
            and not b.get_attribute("aria-label")] == []  # fmt: skip
    expect(page.locator("dialog")).to_have_count(0)
    unreached(faults)


def test_another_language_is_spoken_as_soon_as_the_element_says_so(
    app: App, view: View, asked: list[str]
) -> None:
    fill(app, 2)
    page = view()
    expect(page.locator(".head b")).to_have_text("2 条评论")
    thread = page.locator("commentd-thread")
    for lang in ("de", "ar", "en", "de"):
        thread.evaluate("(it, lang) => { it.lang = lang }", lang)
        expect(page.locator("section")).to_have_attribute("lang", lang)
        expect(page.get_by_label(words(lang, "write"))).to_be_visible()
        count = words(lang, "count", 2, "two" if lang == "ar" else "other")
        expect(page.locator(".head b")).to_have_text(count)
        expect(page.locator("section")).to_have_count(1)
        direction = "rtl" if lang == "ar" else "ltr"
        expect(page.locator("section")).to_have_css("direction", direction)
    assert sorted(line.rpartition("/")[2] for line in asked if "/words/" in line) == [
        *("ar.json", "de.json")
    ]


# Folded texts


FOLDED = ["\n".join(["ab"] * 60), "```\n" + "\n".join(["ab"] * 60) + "\n```", "长" * 1900]
WHOLE = [
    "The quick brown fox jumps. " * 26 + "And sleeps now all day",
    "One.",
    "\n".join(["ab"] * 14),
]


@pytest.mark.parametrize("options", [{"viewport": {"width": 1024, "height": 768}}])
def test_only_what_is_much_higher_than_a_fold_is_folded(app: App, view: View) -> None:
    ids = [say(app, content, hours=n) for n, content in enumerate([*FOLDED, *WHOLE])]
    head = "<style>body { max-width: 720px; font: 18px/1.7 sans-serif }</style>"
    page = view(head=head)
    expect(page.locator(".body")).to_have_count(6)
    fold = page.get_by_role("button", name="展开全文")
    expect(fold).to_have_count(3)
    for number, body in enumerate(page.locator(".body").all()):
        whole, seen = body.evaluate("it => [it.scrollHeight, it.clientHeight]")
        if number < len(FOLDED):
            assert whole > seen + 100, number
        else:
            assert whole == seen, number
            expect(body).to_have_css("mask-image", "none")

    def assert_unfolded(number: int) -> None:
        """This comment is whole and has the focus."""
        article = page.locator("article").nth(number)
        expect(article).to_be_focused()
        whole = "it => it.clientHeight === it.scrollHeight"
        assert article.locator(".body").evaluate(whole), number

    fold.first.click()
    assert_unfolded(0)
    fold.first.press("Enter")
    assert_unfolded(1)
    jump(page, ids[2])
    assert_unfolded(2)
    view(head=head, at=f"#comment-{ids[1]}")
    expect(page.locator("[data-target]")).to_have_count(1)
    assert_unfolded(1)
