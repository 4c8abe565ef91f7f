"""What a reader has of the widget beside the thread, in a real Chromium: news of others, quotes,
keys, links, print, numbers elsewhere on the page, pages that change without loading, the ground it
stands on, its languages, and what is folded. `test_widget.py` has the thread itself."""

import re
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from webtest import TestApp

from commentd import App
from support import blog
from support.blog import OWNER, POST, Change, Json, answering, say
from support.inside import set_status, sql
from support.sources import STATIC
from support.widget import (
    TAG,
    Site,
    altering,
    comment,
    counted,
    expect_only,
    expect_target,
    fill,
    idle,
    jump,
    lists,
    nested,
    settled,
    texts,
    write_comment,
)
from support.widget import asked as asked  # a fixture
from support.widget import fake_world as fake_world  # a fixture
from support.widget import faults as faults  # a fixture
from support.widget import options as options  # a fixture
from support.widget import page as page  # a fixture
from support.widget import settings as settings  # a fixture
from support.widget import site as site  # a fixture
from support.widget import view as view  # a fixture
from support.words import WORDS
from support.writing import reach, requests_held, requests_of

pytestmark = pytest.mark.slow


View = Callable[..., Page]
LANGUAGES = sorted(WORDS)


def words(language: str, key: str, n: int | None = None, form: str = "other") -> str:
    """What the widget says."""
    text: str = WORDS[language].get(key) or WORDS[language][f"{key}_{form}"]
    return text.replace("{n}", str(n))


def unreached(faults: list[str]) -> None:
    """The browser's own words on requests that failed, and no others."""
    known = ("Failed to load resource", "blocked by CORS policy")
    assert [fault for fault in faults if not any(word in fault for word in known)] == []
    faults.clear()


def ends(asked: list[str], part: str) -> list[str]:
    """The last segments of the requests that have this in their URLs."""
    return [line.rpartition("/")[2].partition("?")[0] for line in asked if part in line]


def box_of(target: Locator) -> Any:
    box = target.bounding_box()
    assert box
    return box


# News of others

# Each request of the page: when it was made, by the page's clock, and whether its reply was used.
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


def pass_time(page: Page, seconds: float) -> int:
    """Lets time go by; how often the widget has asked for news by then, when all is used."""
    page.clock.fast_forward(round(seconds * 1000))
    page.wait_for_function("() => asks.every(ask => ask.done)")
    asked: int = page.evaluate("asks.filter(ask => ask.url.includes('/pages?')).length")
    return asked


@pytest.fixture
def open_and_stay(page: Page, view: View) -> View:
    """Opens a page whose reader has touched the thread and stays; the page's clock is ours."""

    def open_and_stay(**more: str) -> Page:
        page.clock.install()
        page.add_init_script(WATCHED)
        view(**more)
        page.locator("commentd-thread .head > *").first.wait_for()
        page.locator("commentd-thread .head").click(position={"x": 1, "y": 1})
        page.wait_for_function("() => asks.some(ask => ask.url.includes('/words/') && ask.done)")
        sheets = "document.querySelector('commentd-thread').shadowRoot.adoptedStyleSheets"
        page.wait_for_function(f"() => {sheets}[1]")  # that of what came
        page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
        return page

    return open_and_stay


def fresh(page: Page) -> Locator:
    """The button that tells of new comments."""
    return page.locator("commentd-thread .fresh button")


TOLD = {
    "zh": {1: "1 条新评论"},
    "en": {1: "1 new comment", 2: "2 new comments"},
    "ru": {2: "2 новых комментария", 5: "5 новых комментариев"},
}


@pytest.mark.parametrize("lang", TOLD)
def test_a_reader_who_stays_is_told_of_new_comments(
    app: App, open_and_stay: View, asked: list[str], lang: str
) -> None:
    fill(app, 1)
    page = open_and_stay(lang=lang)
    there = 0
    for before, (number, text) in enumerate(TOLD[lang].items()):
        for n in range(there, number):
            say(app, f"New {n}.", hours=0)
        there = number
        asked.clear()
        assert pass_time(page, 55) == before
        with page.expect_response(re.compile("/pages")) as reply:
            assert pass_time(page, 6) == before + 1
        assert len(asked) == 1
        assert "/pages?url=%2F2026%2Flines%2F" in asked[0]
        assert len(reply.value.body()) < 120
        expect(fresh(page)).to_have_text(text)
        expect(page.locator(".fresh")).to_have_role("status")
        assert texts(page) == ["No. 1."]


def test_the_button_of_new_comments_keeps_the_focus_when_there_are_more(
    app: App, open_and_stay: View
) -> None:
    fill(app, 1)
    page = open_and_stay()
    for number in (1, 2):
        say(app, f"New {number}.", hours=0)
        pass_time(page, 61)
        expect(fresh(page)).to_have_text(f"{number} 条新评论")
        if number == 1:
            fresh(page).focus()
    expect(fresh(page)).to_be_focused()
    page.keyboard.press("Enter")
    expect(comment(page, "New 1.")).to_be_focused()
    expect(fresh(page)).to_have_count(0)


def test_new_comments_are_shown_in_their_place(app: App, open_and_stay: View) -> None:
    ids = fill(app, 12)
    page = open_and_stay()
    first = texts(page)
    say(app, "A reply.", hours=0, parent_id=ids[2])
    say(app, "A root.", hours=0)
    pass_time(page, 61)
    fresh(page).click()
    for text in ("A reply.", "A root."):
        expect(comment(page, text)).to_have_attribute("data-target", "")
    expect(page.locator("[data-target]")).to_have_count(2)
    expect(comment(page, "A reply.")).to_be_focused()
    expect(comment(page, "A reply.")).to_be_in_viewport()
    expect(page.locator(".head b")).to_have_text("14 条评论")
    expect(fresh(page)).to_have_count(0)
    assert texts(page) == ["A root.", *first, "A reply."]
    expect(page.locator(f"li[data-id='{ids[2]}'] > .replies")).to_contain_text("A reply.")
    say(app, "A late reply.", hours=0, parent_id=ids[0])
    pass_time(page, 61)
    fresh(page).click()
    expect(comment(page, "A late reply.")).to_be_focused()
    expect(comment(page, "No. 1.")).to_be_visible()
    expect(page.locator("[data-target]")).to_have_count(1)  # what was new before is so no more
    # A look for news is no view.
    expect(page.locator(".head")).to_contain_text("1 次阅读")


def test_news_are_not_asked_for_while_nobody_sees_the_page(app: App, open_and_stay: View) -> None:
    fill(app, 1)
    page = open_and_stay()
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
    page.evaluate(see, False)
    page.evaluate(see, True)
    assert pass_time(page, 0) == 1
    assert pass_time(page, 61) == 2


def test_deleted_comments_and_ones_own_are_no_news(app: App, open_and_stay: View) -> None:
    ids = fill(app, 3)
    page = open_and_stay()
    set_status(app, ids[0], "deleted")
    pass_time(page, 61)
    expect(page.locator(".fresh")).to_have_text("")
    say(app, "New.", hours=0)
    pass_time(page, 91)
    expect(fresh(page)).to_have_text("1 条新评论")
    set_status(app, ids[1], "deleted")
    pass_time(page, 61)
    expect(fresh(page)).to_have_count(0)
    write_comment(page, "Mine.")
    expect(comment(page, "Mine.")).to_be_focused()
    pass_time(page, 601)
    expect(page.locator(".fresh")).to_have_text("")


def saying(body: bytes) -> Change:
    """Replaces the body of each response."""
    return lambda environ, status, head, old: (status, head, body)


def test_a_failed_look_for_news_says_nothing(
    app: App, open_and_stay: View, faults: list[str]
) -> None:
    fill(app, 1)
    page = open_and_stay()
    for body in (b"<h1>Sign in to the hotel</h1>", b"{}"):
        with answering(app, saying(body)):
            pass_time(page, 601)
        expect(page.locator(".fresh")).to_have_text("")
        expect(page.get_by_role("alert")).to_have_count(0)
    say(app, "New.", hours=0)
    pass_time(page, 601)
    page.context.set_offline(True)
    fresh(page).click()
    expect(page.get_by_role("alert")).to_contain_text("连不上评论服务")
    page.context.set_offline(False)
    fresh(page).click()
    expect(comment(page, "New.")).to_be_focused()
    expect(page.get_by_role("alert")).to_have_count(0)
    unreached(faults)


# Quotes

# Selects from one text of the comments to another, by where they stand in the page, and waits: the
# page hears of it, and looks at what is selected when that rests for a tenth of a second.
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


def select(page: Page, start: str, end: str | None = None) -> None:
    page.evaluate(SELECT, [start, end or start])
    page.evaluate(blog.RESTED)


# What comes at the first touch is there: its style first, then its words.
ATTENDED = """() => [...document.querySelectorAll('commentd-thread')].every(
    it => it.shadowRoot.adoptedStyleSheets.length > 1 && it.decorators.reading
) && performance.getEntriesByType('resource').some(it => it.name.includes('/words/'))"""


@pytest.fixture
def open_and_touch(page: Page, view: View) -> View:
    """Opens a page whose reader has touched the thread, so that quotes and keys are there."""

    def open_and_touch(body: str = TAG, path: str = POST, **more: str) -> Page:
        view(body, path, **more)
        page.locator("commentd-thread .head > *").first.wait_for()
        page.locator("commentd-thread .head").click(position={"x": 1, "y": 1})
        page.wait_for_function(ATTENDED)
        idle(page)
        return page

    return open_and_touch


def quote(page: Page) -> Locator:
    return page.get_by_role("button", name="引用").and_(page.locator(".quote"))


def reply_to(page: Page, name: str = "") -> Locator:
    return page.get_by_role("textbox", name=re.compile(f"^回复 {name}"))


# As Safari 17 has it: the roots one by one, and nothing else.
OLD_RANGES = """{
  const plain = Selection.prototype.getComposedRanges
  Selection.prototype.getComposedRanges = function (...roots) {
    if (!roots.every(root => root instanceof ShadowRoot)) throw TypeError('no shadow root')
    return plain.call(this, {shadowRoots: roots})
  }
}"""


@pytest.mark.parametrize("without_ranges", [False, True])
def test_a_selected_passage_is_quoted_in_a_reply(
    app: App, page: Page, open_and_touch: View, without_ranges: bool
) -> None:
    say(app, "\n\n".join(f"Paragraph {n}." for n in range(8)))
    if without_ranges:
        page.add_init_script(OLD_RANGES)
    open_and_touch()
    proofs = requests_of(page, "/captcha")
    expect(quote(page)).to_have_count(0)
    for text in ("Paragraph 1.", "Paragraph 6."):
        select(page, text)
        passage, quote_button = box_of(page.get_by_text(text)), box_of(quote(page))
        assert 0 <= quote_button["y"] - passage["y"] - passage["height"] < 24
        expect(quote(page)).to_have_count(1)
    assert proofs == []
    if without_ranges:
        stop = "event => event.stopImmediatePropagation()"  # in a shadow root, WebKit tells nothing
        page.evaluate(f"() => document.addEventListener('selectionchange', {stop}, true)")
        expect(quote(page)).to_have_css("user-select", "none")
    with page.expect_response(re.compile("/captcha")):
        quote(page).click()
    assert len(proofs) == 1
    expect(reply_to(page)).to_be_focused()
    expect(reply_to(page)).to_have_value("> Paragraph 6.\n\n")
    expect(quote(page)).to_have_count(0)
    page.keyboard.type("And comes back.")
    page.get_by_label("昵称").last.fill("林深")
    page.locator("article form").get_by_role("button", name="发表评论").click()
    reply = comment(page, "And comes back.").last
    expect(reply).to_be_focused()
    expect(reply.locator("blockquote")).to_have_text("Paragraph 6.")
    expect(reply.locator(".body > p")).to_have_text("And comes back.")


@pytest.mark.parametrize("lang", ["zh-CN", "ar"])
def test_a_quote_is_offered_beside_the_actions_of_a_comment_and_not_on_them(
    app: App, open_and_touch: View, lang: str
) -> None:
    say(app, "One line.")
    page = open_and_touch(lang=lang)
    select(page, "One line.")
    offered = page.locator(".quote")
    expect(offered).to_be_visible()
    lies_on = """quote => {
      const one = quote.getBoundingClientRect()
      return [...quote.parentNode.querySelectorAll('.actions > *')].filter(action => {
        const other = action.getBoundingClientRect()
        return one.left < other.right && other.left < one.right
          && one.top < other.bottom && other.top < one.bottom
      }).map(action => action.className)
    }"""
    assert offered.evaluate(lies_on) == []


@pytest.mark.parametrize("lang", ["zh-CN", "ar"])
def test_a_quote_is_offered_below_the_end_of_the_selected_text(
    app: App, open_and_touch: View, lang: str
) -> None:
    say(app, "A line as long as half of the column.\n\nAnother one.")
    page = open_and_touch(lang=lang)
    select(page, "A line as long as half of the column.")
    ends = """quote => {
      const text = quote.getRootNode().querySelector('.body p')
      const range = document.createRange()
      range.selectNodeContents(text)
      const [line, box] = [range.getBoundingClientRect(), quote.getBoundingClientRect()]
      const em = parseFloat(getComputedStyle(quote).fontSize)
      return [line.left - box.left, box.right - line.right, em]
    }"""
    left, right, em = page.locator(".quote").evaluate(ends)
    # It begins five times the width of an m before that end.
    width = box_of(page.locator(".quote"))["width"]
    over = left if lang == "ar" else right
    assert abs(width - over - 5 * em) < 1


def test_a_passage_selected_while_the_script_loads_is_quoted(
    app: App, page: Page, view: View
) -> None:
    say(app, "Selected early.")
    view(TAG, POST)
    with requests_held(page, "**/reading.js*"):
        comment(page, "Selected early.").click()
        select(page, "Selected early.")
    expect(quote(page)).to_be_visible()


def test_no_quote_is_offered_for_a_selection_that_is_not_within_one_comment(
    app: App, open_and_touch: View
) -> None:
    fill(app, 2)
    alike = "<article><p class=body>Of the page.</p><a class=reply>Reply</a></article>"
    page = open_and_touch(f"<p>An essay.</p>{alike}{TAG}")
    select(page, "No. 1.")
    expect(quote(page)).to_be_visible()
    select(page, "No. 2.", "No. 1.")
    expect(quote(page)).to_have_count(0)
    for text in ("An essay.", "Guest 2", "回复", "2 条评论", "Of the page."):
        select(page, text)
        expect(quote(page)).to_have_count(0)
    select(page, "No. 1.")
    expect(quote(page)).to_be_visible()
    page.evaluate("getSelection().removeAllRanges()")
    expect(quote(page)).to_have_count(0)


QUOTED = [  # what is said, from where to where it is selected, and the quote
    ("A1.\n\nA2.\n\nA3.", "A1.", "A3.", "> A1.\n> A2.\n> A3."),
    ("B1.\nB2.", "B1.", "B2.", "> B1.\n> B2."),
    ("1. c1\n2. c2\n\nC3.", "c1", "C3.", "> c1\n> c2\n> C3."),
    ("- d1\n  - d2\n- d3", "d1", "d3", "> d1\n> d2\n> d3"),
    ("See:\n\n```\nif a:\n    b()\n```", "See:", "b()", "> See:\n> if a:\n>     b()"),
    ("> Old.\n\nNew.", "Old.", "New.", "> Old.\n> New."),
    ("The **bold** `word`!", "The ", "!", "> The bold word!"),
    ("Half of a sentence.", "of a", "of a", "> of a"),
    ("`<img src=x onerror=hit=1>`", "<img", "=1>", "> <img src=x onerror=hit=1>"),
]


@pytest.mark.long
def test_each_quoted_line_begins_with_its_mark(app: App, open_and_touch: View) -> None:
    for number, (content, *_) in enumerate(QUOTED):
        say(app, content, f"Guest {number}")
    page = open_and_touch()
    for number, (_, start, end, quoted) in enumerate(QUOTED):
        select(page, start, end)
        quote(page).click()
        name = f"Guest {number}"
        expect(reply_to(page, name)).to_have_value(quoted + "\n\n")
        form = page.locator("article form").filter(has=reply_to(page, name))
        form.get_by_role("button", name="预览").click()
        shown = form.locator(".preview blockquote").inner_text().splitlines()
        lines = [line.removeprefix("> ").strip() for line in quoted.splitlines()]
        assert [line.strip() for line in shown if line.strip()] == lines, quoted
        form.get_by_role("button", name="取消").click()
    assert page.evaluate("typeof hit") == "undefined"
    assert page.locator("commentd-thread img").count() == 0


def test_a_quote_comes_behind_the_text_already_written_and_is_kept(
    app: App, open_and_touch: View
) -> None:
    say(app, "One. Two.")
    page = open_and_touch()
    comment(page, "One.").get_by_role("button", name="回复").click()
    reply_to(page).fill("What I think.")
    select(page, "One.")
    quote(page).click()
    expect(reply_to(page)).to_have_value("What I think.\n\n> One.\n\n")
    select(page, "Two.")
    quote(page).click()
    value = re.compile(r"^What I think\.\n\n> One\.\n\n+> Two\.\n\n$")
    expect(reply_to(page)).to_have_value(value)
    page.reload()
    comment(page, "One.").get_by_role("button", name="回复").click()
    expect(reply_to(page)).to_have_value(value)


def test_words_are_quoted_as_the_mouse_or_the_keyboard_picks_them(
    app: App, open_and_touch: View
) -> None:
    say(app, "Typography", "Ann")
    say(app, "Orthography", "Bo")
    say(app, "A line is a promise.", "Cy")
    page = open_and_touch()
    for times, text, name in ((2, "Typography", "Ann"), (3, "Orthography", "Bo")):
        page.get_by_text(text).click(click_count=times, position={"x": 20, "y": 10})
        quote(page).click()
        expect(reply_to(page, name)).to_have_value(f"> {text}\n\n")
    comment(page, "A line").focus()
    select(page, "A")
    for _ in range(5):
        page.keyboard.press("Shift+ArrowRight")
    reach(quote(page))
    page.keyboard.press("Enter")
    expect(reply_to(page, "Cy")).to_have_value("> A line\n\n")
    expect(reply_to(page, "Cy")).to_be_focused()


# Keys


def press(page: Page, keys: Iterable[str]) -> None:
    for key in keys:
        page.keyboard.press(key)


def focused_text(page: Page) -> str:
    """Where the focus is, inside the thread."""
    where: str = page.evaluate("""() => {
        const at = document.activeElement?.shadowRoot?.activeElement
        return at?.querySelector?.(':scope > .body')?.innerText ?? at?.name ?? at?.localName ?? ''
    }""")
    return where


def test_keys_move_through_the_visible_comments(app: App, open_and_touch: View) -> None:
    nested(app, 3)
    fill(app, 1)
    page = open_and_touch()
    order = texts(page)
    assert order == ["Depth 0.", "Depth 1.", "Depth 2.", "No. 1."]
    comment(page, "Depth 0.").focus()
    for key, wanted in (("j", [*order[1:], "No. 1."]), ("k", [*order[-2::-1], "Depth 0."])):
        for each in wanted:
            page.keyboard.press(key)
            assert focused_text(page) == each
    page.locator(".line").first.click(position={"x": 12, "y": 20})
    expect(comment(page, "Depth 1.")).to_be_hidden()
    comment(page, "Depth 0.").focus()
    page.keyboard.press("j")
    assert focused_text(page) == "No. 1."
    page.keyboard.press("k")
    assert focused_text(page) == "Depth 0."


def test_keys_reply_like_and_begin_to_write(app: App, open_and_touch: View) -> None:
    fill(app, 2)
    page = open_and_touch()
    comment(page, "No. 1.").focus()
    page.keyboard.press("l")
    expect(comment(page, "No. 1.").get_by_role("button", name="赞 1", pressed=True)).to_be_visible()
    expect(comment(page, "No. 2.").get_by_role("button", name="赞 0")).to_be_visible()
    page.keyboard.press("r")
    expect(reply_to(page, "Guest 1")).to_be_focused()
    expect(reply_to(page, "Guest 1")).to_have_value("")
    comment(page, "No. 1.").focus()
    page.keyboard.press("c")
    expect(page.get_by_label("写下你的想法…")).to_be_focused()
    expect(page.get_by_label("写下你的想法…")).to_have_value("")
    page.locator(".head .like").focus()
    page.keyboard.press("l")
    expect(page.get_by_role("button", name="喜欢本页 1")).to_be_visible()
    page.keyboard.press("j")
    assert focused_text(page) == "No. 2."


def test_shortcut_letters_do_nothing_in_fields_and_with_modifier_keys(
    app: App, open_and_touch: View
) -> None:
    fill(app, 2)
    keys = """<script>keys = []
        addEventListener('keydown', e => keys.push([e.key, e.defaultPrevented]))</script>"""
    page = open_and_touch("<p tabindex=0>An essay.</p><input aria-label=Search>" + TAG, head=keys)
    for node in (page.get_by_text("An essay."), page.get_by_label("Search")):
        node.focus()
        press(page, "jrlc?")
        expect(node).to_be_focused()
    assert page.evaluate("keys") == [[key, False] for key in "jrlc?" * 2]
    for name in ("写下你的想法…", "昵称"):
        field = page.get_by_label(name)
        field.press_sequentially("jkrlc?")
        expect(field).to_have_value("jkrlc?")
    page.get_by_label("排序").focus()
    press(page, "jkrlc?")
    expect(page.get_by_label("排序")).to_be_focused()
    comment(page, "No. 2.").focus()
    for modifier in ("Control", "Alt", "Meta"):
        for key in "jrl":
            page.keyboard.press(f"{modifier}+{key}")
    expect(comment(page, "No. 2.")).to_be_focused()
    expect(page.locator("article form, dialog")).to_have_count(0)
    expect(comment(page, "No. 2.").get_by_role("button", name="赞 0")).to_be_visible()


def test_a_list_of_the_keys_opens_in_each_language_and_closes(
    app: App, open_and_touch: View
) -> None:
    fill(app, 1)
    page = open_and_touch()
    dialog = page.locator("dialog")
    for lang in LANGUAGES:
        page.locator("commentd-thread").evaluate("(it, lang) => { it.lang = lang }", lang)
        expect(page.get_by_label(words(lang, "write"))).to_be_visible()
        page.wait_for_function(ATTENDED)
        idle(page)
        comment(page, "No. 1.").focus()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name=words(lang, "keys"))).to_be_visible()
        for key in ("next", "previous", "like", "post", "keys"):
            expect(dialog.locator("dd").get_by_text(words(lang, key), exact=True)).to_be_visible()
        assert not re.search("undefined|[{}]", dialog.inner_text())
        page.get_by_role("button", name=words(lang, "close")).click()
        expect(dialog).to_have_count(0)
        expect(comment(page, "No. 1.")).to_be_focused()
    press(page, ["?", "Escape"])
    expect(dialog).to_have_count(0)


# Copy and print


def localhost(site: Site) -> str:
    """The blog where the browser takes it for safe, as it does an https one."""
    return site.address.replace("blog.test", "localhost")


def copy_link(page: Page, text: str) -> None:
    blog.begin_to_read(page)
    comment(page, text).locator(".quiet").click()
    page.get_by_role("button", name="复制链接").click()


def test_the_link_of_a_comment_is_copied_and_leads_to_it(app: App, site: Site, page: Page) -> None:
    ids = fill(app, 25)
    site.write(TAG)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    home = localhost(site) + POST
    page.goto(home)
    page.get_by_role("button", name="显示更多").click()
    copy_link(page, "No. 9.")
    expect(page.get_by_role("status").filter(has_text="链接已复制。")).to_be_visible()
    assert page.url == home
    link = page.evaluate("navigator.clipboard.readText()")
    assert link == f"{home}#comment-{ids[8]}"
    page.goto("about:blank")
    page.goto(link)
    expect_target(page, "No. 9.")


@pytest.mark.long
@pytest.mark.parametrize("copying", ["plain", "refused"])
def test_the_link_of_a_comment_is_put_into_the_address_bar_where_copying_fails(
    app: App, site: Site, page: Page, copying: str
) -> None:
    ids = fill(app, 3)
    site.write(TAG)
    if copying == "refused":
        page.add_init_script("navigator.clipboard.writeText = async () => { throw Error('no') }")
    page.goto((localhost(site) if copying == "refused" else site.address) + POST)
    copy_link(page, "No. 2.")
    expect(page.get_by_role("status").filter(has_text="链接已显示在地址栏。")).to_be_visible()
    assert page.url.endswith(POST + f"#comment-{ids[1]}")
    expect(page.locator("[data-target]")).to_contain_text("No. 2.")


def test_code_is_copied_by_a_button_where_there_is_a_clipboard(
    app: App, site: Site, page: Page
) -> None:
    say(app, "```\nfirst <b>\n  second\n```")
    site.write(TAG)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(localhost(site) + POST)
    blog.begin_to_read(page)
    copier = page.get_by_role("button", name="复制代码")
    expect(copier).to_have_css("opacity", "0")
    page.locator("pre").hover()
    expect(copier).to_have_css("opacity", "1")
    height = page.locator("article").bounding_box()
    copier.click()
    expect(page.get_by_role("button", name="已复制")).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="已复制")).to_have_count(1)
    assert page.evaluate("navigator.clipboard.readText()") == "first <b>\n  second\n"
    assert page.locator("article").bounding_box() == height
    page.goto(site.address + POST)
    blog.begin_to_read(page)
    expect(page.locator(".quiet")).to_be_visible()
    expect(page.locator(".copy")).to_have_count(0)


def test_a_printed_thread_has_the_texts_and_no_buttons(app: App, open_and_touch: View) -> None:
    say(app, "\n\n".join(f"Paragraph {n}." for n in range(60)), hours=3)
    nested(app, 2)
    page = open_and_touch()
    folded = page.locator(".folded")
    comment(page, "Depth 0.").first.get_by_role("button", name="回复").click()
    copy_link(page, "Depth 1.")
    expect(page.locator("[role=status]:not(:empty)")).to_be_visible()
    assert folded.evaluate("it => it.clientHeight < it.scrollHeight")
    page.emulate_media(media="print")
    expect(page.locator(".meta").first).to_have_css("break-after", "avoid")
    for what in ("form", "button", "select", "[role=status]", "textarea", "summary"):
        assert page.locator(f"commentd-thread {what}").count() > 0
        assert page.locator(f"commentd-thread {what}").filter(visible=True).count() == 0
    assert folded.evaluate("it => it.clientHeight === it.scrollHeight")
    expect(folded).to_have_css("mask-image", "none")
    for text in ("Paragraph 59.", "Depth 0.", "Depth 1.", "3 条评论", "陆知微"):
        expect(page.locator("commentd-thread").get_by_text(text).first).to_be_visible()
    page.emulate_media(media="screen")
    expect(page.get_by_role("textbox", name="回复 A")).to_be_visible()
    assert folded.evaluate("it => it.clientHeight < it.scrollHeight")


# Numbers and the latest

ANYWHERE = """<p lang=en>Views: <i data-commentd-views=/a/>many</i></p>
    <p lang=de><i data-commentd-views=/a/></i> <i data-commentd-count=/a/></i>
    <i data-commentd-likes=/a/></i></p>
    <p><i data-commentd-views></i> <i data-commentd-likes=/unknown/>none</i></p>"""


def test_counts_of_several_pages_take_one_request(app: App, view: View, asked: list[str]) -> None:
    fill(app, 2, "/a/")
    sql(app, "UPDATE page SET views = 12345")
    TestApp(app).post_json("/page/like", {"page_url": "/a/"})
    page = view(ANYWHERE, head=TAG)
    expect(page.locator("i")).to_have_text(["12,345", "12.345", "2", "1", "0", "0"])
    assert counted(asked) == [[*["/a/"] * 4, POST, "/unknown/"]]
    assert ends(asked, "counts.js") == ["counts.js"]


def test_elements_for_counts_stay_as_they_are_where_the_counts_fail(
    page: Page, view: View, faults: list[str]
) -> None:
    page.route(re.compile("/pages"), lambda route: route.fulfill(status=502, body="<h1>Bad</h1>"))
    with page.expect_response(re.compile("/pages")) as reply:
        view(ANYWHERE + TAG)
    reply.value.finished()
    idle(page)
    expect(page.locator("i")).to_have_text(["many", "", "", "", "", "none"])
    unreached(faults)


def latest(page: Page) -> Locator:
    return page.locator("[data-commentd-latest] > li")


def test_the_latest_comments_are_listed(app: App, view: View, site: Site, asked: list[str]) -> None:
    text = "The oldest, with **bold** & `<b>code</b>`."
    first = say(app, text, "Ann", page="/a/?x=1", hours=1000)
    fill(app, 4, "/b/")
    last = say(app, "Zuletzt.", "Bo", page="/c/", hours=3)
    site.write(TAG, "/c/")
    page = view("<ul lang=de data-commentd-latest=2></ul><ul data-commentd-latest></ul>", head=TAG)
    two, six = (page.locator("ul").nth(n) for n in range(2))
    expect(two.locator("a")).to_have_text(["Zuletzt.", "No. 4."])
    expect(two.locator("bdi")).to_have_text(["Bo", "Guest 4"])
    expect(two.locator("time").first).to_have_text("vor 3 Stunden")
    expect(six.locator("li")).to_have_count(6)
    old = six.locator("li").last
    expect(old.locator("a")).to_have_text("The oldest, with bold & <b>code</b>.")
    expect(old.locator("a")).to_have_attribute("href", f"{site.address}/a/?x=1#comment-{first}")
    assert page.locator("ul strong, ul b, ul code").count() == 0
    assert counted(asked) == []
    two.locator("a").first.click()
    expect(page).to_have_url(f"{site.address}/c/#comment-{last}")
    expect(comment(page, "Zuletzt.")).to_be_in_viewport()


def test_an_excerpt_of_a_latest_comment_is_text_of_eighty_characters(app: App, view: View) -> None:
    excerpts = {
        "长" * 80: "长" * 80,
        "短" * 81: "短" * 80 + "…",
        "\U0001f9c5" * 81: "\U0001f9c5" * 80 + "…",
        "<img src=x onerror=hit=1>": "<img src=x onerror=hit=1>",
    }
    for text in excerpts:
        say(app, text)
    numbers = ("", "31", "99", "0", "many", "-1")
    page = view("".join(f"<ul data-commentd-latest={n}></ul>" for n in numbers), head=TAG)
    expect(latest(page).locator("a")).to_have_text([*excerpts.values()][::-1] * len(numbers))
    assert page.evaluate("typeof hit") == "undefined"
    assert page.locator("img").count() == 0


BROKEN = [
    ("page_url", "https://evil.example/"),
    ("page_url", "//evil.example/x"),
    ("page_url", "javascript:hit=1"),
    ("page_url", "data:text/html,x"),
    ("page_url", "http://["),
    ("created_at", "never"),
    ("created_at", None),
    ("html", None),
]


def test_a_broken_latest_comment_is_not_listed_and_spoils_no_other(
    app: App, view: View, site: Site, faults: list[str]
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
    assert len(faults) == 1
    expect_only(faults, "^commentd: one of the latest comments can’t be shown")


def test_a_list_of_latest_comments_stays_as_it_is_where_there_are_none(
    view: View, page: Page, faults: list[str]
) -> None:
    headers = {"Access-Control-Allow-Origin": "*"}
    answers: list[Json] = [{"body": '{"comments": []}'}, {"body": "{}", "status": 502}]
    page.route(re.compile("/latest"), lambda route: route.fulfill(headers=headers, **answers[0]))
    while answers:
        with page.expect_response(re.compile("/latest")) as reply:
            view("<ul data-commentd-latest><li>Be the first.</ul>", head=TAG)
        reply.value.finished()
        idle(page)
        expect(latest(page)).to_have_text(["Be the first."])
        answers.pop(0)
    unreached(faults)


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
def three_pages(app: App, site: Site) -> None:
    for name in ("first", "second", "third"):
        say(app, f"Of the {name}.", page=f"/{name}/")


def urls(asked: list[str]) -> list[str]:
    return [query["url"] for query in lists(asked)]


def expect_shown(page: Page, name: str) -> None:
    expect(page.locator(".body")).to_have_text(f"Of the {name}.")


@pytest.mark.parametrize("order", ["address first", "element first"])
@pytest.mark.usefixtures("three_pages")
def test_the_url_says_which_page_of_comments_is_shown(
    app: App, view: View, asked: list[str], order: str
) -> None:
    page = view(ELEMENT, "/1/", head=OLD)
    expect_shown(page, "first")
    for name in ("second", "third", "first"):
        page.evaluate(ROUTE, [f"/{name}/", None, order])
        expect_shown(page, name)
    for address, name in (("/2/?from=list", "second"), ("/first/", "first")):
        page.evaluate(ROUTE, [address, f"https://blog.example/{name}/", order])
        expect_shown(page, name)
    wanted = ("first", "second", "third", "first", "second", "first")
    assert urls(asked) == [f"/{name}/" for name in wanted]
    # What is written goes to the page that is seen.
    page.evaluate(ROUTE, ["/second/", None, order])
    expect_shown(page, "second")
    write_comment(page, "Mine.")
    expect(comment(page, "Mine.")).to_be_focused()
    listed = TestApp(app).get("/comments?url=/second/").json["comments"]
    assert [each["content"] for each in listed] == ["Mine.", "Of the second."]


@pytest.mark.usefixtures("three_pages")
def test_an_element_that_stays_follows_the_url(view: View, asked: list[str]) -> None:
    page = view(ELEMENT, "/first/", head=TAG)
    expect_shown(page, "first")
    intercept = "navigation.addEventListener('navigate', e => e.intercept({async handler() {}}))"
    field = page.get_by_label("写下你的想法…")
    field.fill("Half a thought.")
    for name, change, draft in (
        ("second", "history.pushState(null, '', '/second/')", ""),
        ("third", "history.replaceState(null, '', '/third/')", ""),
        ("first", f"{intercept}; location.href = '/first/'", "Half a thought."),
    ):
        page.evaluate(f"() => {{ {change} }}")
        expect_shown(page, name)
        expect(field).to_have_value(draft)
    page.evaluate("history.replaceState({scroll: 9}, '')")
    page.evaluate("history.pushState(null, '', '#part')")
    idle(page)
    page.evaluate(ROUTE, ["/second/", None, "element first"])
    expect_shown(page, "second")
    settled(page)
    assert urls(asked) == ["/first/", "/second/", "/third/", "/first/", "/second/"]


# The background

# As the reader sees them: CSS lightness of text and link, and of the background named.
SEEN = """ground => {
    const root = document.querySelector('commentd-thread').shadowRoot
    const probe = document.body.appendChild(document.createElement('i'))
    const light = color => {
        probe.style.color = `lab(from ${color} l 0 0)`
        return Number(/^lab\\(([\\d.]+)/.exec(getComputedStyle(probe).color)[1])
    }
    const [text, link] = ['.head b', '.body a'].map(it =>
        getComputedStyle(root.querySelector(it)).color)
    const far = [text, link].map(color => Math.round(Math.abs(light(color) - light(ground))))
    probe.remove()
    return [text, ...far]
}"""


def seen_on(page: Page, background: str) -> tuple[str, int, int]:
    """The colour of the text; how far its lightness and that of links are from the background's."""
    text, text_far, link_far = page.evaluate(SEEN, background)
    return text, text_far, link_far


@pytest.fixture
def open_styled(app: App, view: View) -> View:
    """Opens a page with this style."""
    say(app, "See [there](https://a.example/).")

    def open_styled(style: str, body: str = TAG, head: str = "") -> Page:
        page = view(body, head=f"<style>{style}</style>{head}")
        expect(page.locator(".body a")).to_be_visible()
        idle(page)
        idle(page)
        return page

    return open_styled


BACKGROUNDS = [  # the page's style, its background, and the colour of a text that is left alone
    ("html { background: #303030 } body { background: #303030 }", "#303030", None),
    ("body { background: oklch(.98 .01 90); color: #fff }", "#f8f6f0", None),
    ("body { color: #eee }", "#fff", None),
    ("body { background: #111; color: #ccc }", "#111", "rgb(204, 204, 204)"),
    ("body { color: #000 } main { background: #222 }", "#222", None),
    (
        "body { background: #222; color: #eee } main { background: transparent }",
        "#222",
        "rgb(238, 238, 238)",
    ),
]
NOT_PLAIN = [
    ("body { background: linear-gradient(#111, #222); color: #eee }", "#181818"),
    ("body { color: #eee; background: url(data:image/svg+xml,%3Csvg/%3E) #0000 }", "#111"),
    ("main { background: rgb(0 0 0 / .85); color: #eee }", "#262626"),
    (
        "body { background: #111 } main { background: rgb(255 255 255 / .9); color: #222 }",
        "#e7e7e7",
    ),
    ("html { color-scheme: dark; background: linear-gradient(#111, #222) }", "#181818"),
]


def test_a_text_too_faint_on_its_background_is_changed_and_no_other(open_styled: View) -> None:
    for style, background, left_alone in BACKGROUNDS:
        page = open_styled("a { color: #888 }" + style, f"<main>{TAG}</main>")
        seen, far, linked = seen_on(page, background)
        assert far >= 45, style
        assert linked >= 35, style
        assert left_alone in (seen, None), style
    for style, background in NOT_PLAIN:
        page = open_styled("a { color: #888 }" + style, f"<main>{TAG}</main>")
        assert seen_on(page, background)[1] >= 45, style


NIGHTS = [  # the style of a page that is switched, and the colour of its text then
    ("a { color: #06c } html.night a { color: #9cf } html.night { color: #eee }", "238, 238, 238"),
    ("a { color: #06c } html.night a { color: #9cf } html { transition: all .2s }", ""),
    ("a { color: #1a73e8 } html.night { color: #ddd }", "221, 221, 221"),
]


def test_texts_stay_readable_after_a_switch_to_dark_and_back(open_styled: View) -> None:
    for style, own in NIGHTS:
        page = open_styled("html { background: #fff } html.night { background: #1b1b1b } " + style)
        assert seen_on(page, "#fff")[1] == 100
        page.evaluate("document.documentElement.className = 'night'")
        read = f"() => ({SEEN})('#1b1b1b')[1] >= 45"
        page.wait_for_function(read)
        page.evaluate("Promise.all(document.getAnimations().map(it => it.finished))")
        page.wait_for_function(read)
        assert own in seen_on(page, "#1b1b1b")[0]
        expect(page.locator("commentd-thread")).to_have_css("color-scheme", "dark")
        page.evaluate("document.documentElement.className = ''")
        page.wait_for_function(f"() => ({SEEN})('#fff')[1] === 100")
        expect(page.locator("commentd-thread")).to_have_css("color-scheme", "light")


def test_the_theme_attribute_sets_the_background_where_the_page_cannot(open_styled: View) -> None:
    for theme, other, own, background in (
        ("dark", "light", "#000", "#000"),
        ("light", "dark", "#fff", "#fff"),
    ):
        body = f"<commentd-thread theme={theme}></commentd-thread>{TAG}"
        page = open_styled(f"body {{ background: #777; color: {own} }}", body)
        page.wait_for_function(f"() => ({SEEN})('{background}')[1] >= 45")
        page.locator("commentd-thread").evaluate("(it, to) => it.setAttribute('theme', to)", other)
        page.wait_for_function(f"() => ({SEEN})('{own}')[1] === 0")


def test_colours_of_the_page_win_and_a_faint_link_is_mixed(open_styled: View) -> None:
    style = "body { background: #111; color: #222 } a { color: #222 }"
    page = open_styled(style + "commentd-thread { --commentd-text: #abc; --commentd-accent: #fed }")
    assert seen_on(page, "#111")[0] == "rgb(170, 187, 204)"
    expect(page.locator(".body a")).to_have_css("color", "rgb(255, 238, 221)")
    page = open_styled("body { background: #fff } a { color: #fd9 } .night a { color: #06c }")
    assert seen_on(page, "#fff")[2] >= 45
    page.evaluate("document.documentElement.className = 'night'")
    expect(page.locator(".body a")).to_have_css("color", "rgb(0, 102, 204)")


def test_the_line_above_the_thread_has_its_place_before_it_has_a_colour(view: View) -> None:
    page = view("<p>A post.</p>" + TAG)
    section = page.locator("commentd-thread section.apart")
    thread = page.locator("commentd-thread[style*=own]")
    thread.evaluate("node => node.style.removeProperty('--_own')")
    expect(section).to_have_css("border-top-width", "1px")


def test_the_button_that_posts_can_have_the_colour_of_the_theme(open_styled: View) -> None:
    page = open_styled("a { color: #222 } commentd-thread { --commentd-button: #49b1f5 }")
    page.locator("textarea").focus()
    post = page.locator("form .row .button").first
    expect(post).to_have_css("background-color", "rgb(73, 177, 245)")
    expect(post).to_have_css("color", "lch(0 0 0)")  # white would be too faint on it
    expect(page.locator(".body a")).to_have_css("color", "rgb(34, 34, 34)")


def test_no_colour_is_mixed_from_that_of_the_element_itself() -> None:
    # Safari 16.4 and 16.5 crash at that (WebKit bug 256171).
    for style in ("widget", "errors", "reading", "writing", "account", "code"):
        text = (STATIC / f"{style}.css").read_text("utf-8")
        assert re.findall(r"(?:--_\w+|color-mix\()[^;{]*currentColor", text) == []


# Names and languages


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
    field = page.get_by_role("textbox").first
    expect(field).to_have_css("direction", "rtl")
    field.fill("Hello")
    expect(field).to_have_css("direction", "ltr")


def test_each_language_is_spoken_whole(app: App, view: View, asked: list[str]) -> None:
    nested(app, 2)
    page = view()
    section = page.locator("commentd-thread section")
    expect(page.locator("article")).to_have_count(2)
    for lang in (*LANGUAGES, "de"):
        assert words(lang, "reply").lower() in words(lang, "replyto").lower()
        page.locator("commentd-thread").evaluate("(it, lang) => { it.lang = lang }", lang)
        expect(section).to_have_attribute("lang", lang)
        expect(section).to_have_css("direction", "rtl" if lang == "ar" else "ltr")
        expect(page.get_by_label(words(lang, "write"))).to_be_visible()
        expect(page.get_by_role("button", name=words(lang, "reply")).first).to_be_visible()
        form = page.evaluate("lang => new Intl.PluralRules(lang).select(2)", lang)
        count = words(lang, "count", 2, form)
        expect(page.locator(".head b")).to_have_text(count)
        texts = section.evaluate("""it => [it.innerText, ...[...it.querySelectorAll('*')].flatMap(
            node => [node.ariaLabel, node.title, node.placeholder])].join('\\n')""")
        assert not re.search(r"undefined|\[object|[{}]|null", texts)
    inline = {"en", "zh-CN"}  # these stand in the script
    wanted = [f"first-{lang}.json" for lang in LANGUAGES if lang not in inline]
    # Other texts come after ten seconds. On a busy machine this may take so long.
    assert sorted(name for name in ends(asked, "/words/") if name.startswith("first-")) == wanted


NAMED = ("menu", "hidereplies")  # of what reading.js adds to comments


def expect_names(page: Page, lang: str) -> None:
    expect(page.locator("commentd-thread section")).to_have_attribute("lang", lang)
    for key in NAMED:
        name = WORDS[lang][key].replace("{n}", "A")
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(1)
    tick = page.locator(".tick")
    expect(tick).to_have_accessible_name(words(lang, "signed"))
    expect(tick).to_have_attribute("title", words(lang, "signed"))


def speak(page: Page, lang: str) -> None:
    page.locator("commentd-thread").evaluate("(it, lang) => { it.lang = lang }", lang)


def a_talk(app: App) -> None:
    say(app, "By a guest.", "A", parent_id=None, hours=2)
    say(app, "By the owner.", OWNER, parent_id=1)


def test_buttons_at_a_comment_have_names_after_the_page_changes_its_language(
    app: App, page: Page, view: View
) -> None:
    a_talk(app)
    view()
    blog.begin_to_read(page)
    expect_names(page, "zh-CN")
    for lang in ("de", "ar", "en"):
        speak(page, lang)
        expect_names(page, lang)


def test_buttons_at_a_comment_have_names_where_the_language_changes_while_they_load(
    app: App, page: Page, view: View
) -> None:
    a_talk(app)
    view()
    page.locator("commentd-thread .head > *").first.wait_for()
    with requests_held(page, "**/reading.js*"):
        with page.expect_request("**/reading.js*"):
            page.locator("commentd-thread .head").click(position={"x": 1, "y": 1})
        speak(page, "de")
        expect(page.locator("commentd-thread section")).to_have_attribute("lang", "de")
        expect(page.locator("article")).to_have_count(2)
    expect_names(page, "de")


def test_a_language_whose_texts_do_not_come_can_be_tried_again(
    app: App, page: Page, view: View, faults: list[str]
) -> None:
    a_talk(app)
    view()
    blog.begin_to_read(page)
    page.route("**/words/en.json*", lambda route: route.abort())
    speak(page, "en")
    again = page.get_by_role("button", name=words("en", "retry"))
    expect(again).to_be_visible()
    page.unroute("**/words/en.json*")
    again.click()
    expect_names(page, "en")
    unreached(faults)


def test_the_widget_speaks_english_where_its_texts_fail_to_load(
    app: App, page: Page, view: View, faults: list[str]
) -> None:
    fill(app, 3)
    page.route(re.compile("/words/"), lambda route: route.abort())
    view(lang="ar")
    section = page.locator("commentd-thread section")
    expect(page.locator("article")).to_have_count(3)
    expect(page.get_by_label("Write a comment…")).to_be_visible()
    expect(section.locator(".head b")).to_have_text("3 comments")
    expect(section.get_by_role("button", name="Reply")).to_have_count(3)
    expect(section).to_have_attribute("lang", "en")
    expect(section).to_have_css("direction", "ltr")
    assert "undefined" not in section.inner_text()
    unreached(faults)


# Folded texts

FOLDED = ["\n".join(["ab"] * 60), "```\n" + "\n".join(["ab"] * 60) + "\n```", "长" * 1900]
WHOLE = ["The quick brown fox jumps. " * 26 + "And sleeps now all day", "\n".join(["ab"] * 14)]


@pytest.mark.parametrize("options", [{"viewport": {"width": 1024, "height": 768}}])
def test_only_what_is_much_higher_than_a_fold_is_folded(app: App, view: View) -> None:
    ids = [say(app, content, hours=n) for n, content in enumerate([*FOLDED, *WHOLE])]
    head = "<style>body { max-width: 720px; font: 18px/1.7 sans-serif }</style>"
    page = view(head=head)
    expect(page.locator(".body")).to_have_count(5)
    fold = page.get_by_role("button", name="展开全文")
    expect(fold).to_have_count(3)
    hidden = "it => it.scrollHeight - it.clientHeight"
    sizes = [body.evaluate(hidden) for body in page.locator(".body").all()]
    assert min(sizes[:3]) > 100
    assert sizes[3:] == [0, 0]
    expect(page.locator(".body").last).to_have_css("mask-image", "none")

    def assert_unfolded(number: int) -> None:
        """This comment is whole and has the focus."""
        article = page.locator("article").nth(number)
        expect(article).to_be_focused()
        assert article.locator(".body").evaluate(hidden) == 0, number

    fold.first.click()
    assert_unfolded(0)
    fold.first.press("Enter")
    assert_unfolded(1)
    jump(page, ids[2])
    assert_unfolded(2)
    view(head=head, at=f"#comment-{ids[1]}")
    expect(page.locator("[data-target]")).to_have_count(1)
    assert_unfolded(1)


# The place and the faces


def test_the_thread_begins_as_a_section_and_answers_to_comments(app: App, view: View) -> None:
    say(app, "Hello.", "ёлка")
    say(app, "By me.", OWNER)
    element = "<commentd-thread heading='What readers say'></commentd-thread>"
    page = view(f"<p style='height: 2000px'>An essay.</p>{element}{TAG}", at="#comments", lang="en")
    expect(page.get_by_role("heading", name="What readers say")).to_be_in_viewport()
    expect(page.get_by_role("heading", name="2 comments")).to_have_attribute("aria-level", "3")
    expect(page.locator("section")).to_have_css("border-top-width", "1px")
    faces = page.locator(".avatar")
    initials = "all => all.map(it => it.dataset.initial)"
    assert sorted(faces.evaluate_all(initials)) == sorted(["Ё", OWNER[0]])
    expect(page.locator(".owner")).to_contain_text("By me.")
    view(f"<p id=comments>Theirs.</p><h2>Talk</h2>{TAG}", lang="en")
    expect(page.locator(".body").first).to_be_visible()
    expect(page.locator("section")).to_have_css("border-top-width", "0px")
    expect(page.locator("#comments")).to_have_text("Theirs.")


PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.mark.parametrize("options", [PHONE], ids=[""])
def test_a_comment_of_one_line_is_as_low_as_elsewhere_on_a_phone(app: App, view: View) -> None:
    say(app, "One line.")
    page = view(head="<style>body { font-size: 18px }</style>")
    blog.begin_to_read(page)  # the menu is there, too
    height = box_of(page.locator(".list > li[data-id]"))["height"]
    assert height - 2 * 18 <= 90  # that of giscus, without the space around
