"""The widget in a real Chromium, on a page of another origin, over plain http: embedding, reading,
hostile texts, hostile pages, a bad network. `test_widget_writing.py` has its forms."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from webtest import TestApp

from commentd import App
from support.blog import OWNER, POST, Json, answering, article, begin_to_read, conversation, say
from support.inside import add_account, set_status, sql, token_of
from support.sources import MANUAL
from support.widget import (
    NAMES,
    POLICY,
    TAG,
    TEXTS,
    TYPES,
    WEBSITE,
    Site,
    View,
    altering,
    button,
    comment,
    counted,
    expect_only,
    expect_target,
    fill,
    idle,
    jump,
    lists,
    nested,
    service_with,
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
from support.world import FakeWorld
from support.writing import requests_held

pytestmark = pytest.mark.slow

PLAIN_TAG = TAG.replace(" async", "")
QUERY = {"url": POST, "view": "threads", "sort": "newest", "limit": "10", "page": "1"}
TWO = f"""<commentd-thread page="/first/"></commentd-thread>
    <commentd-thread page="/second/"></commentd-thread>{TAG}"""


def urls(asked: list[str]) -> list[str]:
    """The pages whose lists were asked for."""
    return [query["url"] for query in lists(asked)]


def nos(first: int, last: int) -> list[str]:
    """What those comments say, in this order, which may fall."""
    step = 1 if last >= first else -1
    return [f"No. {n}." for n in range(first, last + step, step)]


THEME = re.findall("```css\n(.*?)```", MANUAL["en"]["theme"], re.DOTALL)
HELD = next(f"<style>body {{ margin: 0 }}{css}</style>" for css in THEME if "100vh" in css)


def hold(page: Page, pattern: str) -> list[Route]:
    """Requests that wait from now on, until the test lets them go."""
    held: list[Route] = []
    page.route(re.compile(pattern), lambda route: held.append(route))
    return held


def release(page: Page, held: Route) -> None:
    """One of those goes on, and its response is there."""
    with page.expect_response(lambda response: response.url == held.request.url):
        held.continue_()


def expect_posted(page: Page, text: str, name: str = "林深") -> Locator:
    write_comment(page, text, name)
    expect(comment(page, text)).to_be_focused()
    return comment(page, text)


def like(place: Locator) -> None:
    """A first like, which counts."""
    button(place, "赞 0").click()
    expect(button(place, "赞 1", pressed=True)).to_be_visible()


# Embedding


def test_one_script_tag_puts_the_comments_of_the_page_behind_itself(view: View) -> None:
    conversation(view.app)
    for tag in (TAG, TAG.replace(" async", " defer"), PLAIN_TAG):
        view.asked.clear()
        page = view(f"<h2>评论</h2>{tag}<footer>End</footer>")
        expect(comment(page, "一行")).to_have_count(1)
        expect(page.locator("article")).to_have_count(7)
        expect(page.locator("h2 + script + commentd-thread + footer")).to_have_count(1)
        assert lists(view.asked) == [QUERY], tag


ATTRIBUTES = {
    'page="/某页/?n=1"': {"url": "/某页/?n=1"},
    'page=""': {},
    'loading="sometimes"': {},
    'sort="oldest"': {"sort": "oldest"},
    'sort="likes"': {"sort": "likes"},
    'sort="best&amp;limit=99"': {},
    'limit="3"': {"limit": "3"},
    'limit="1000"': {"limit": "100"},
    'limit="-5"': {},
    'limit="many"': {},
}


def test_attributes_of_the_widget_say_what_is_shown_and_bad_ones_are_ignored(view: View) -> None:
    threads = [f"<commentd-thread {attribute}></commentd-thread>" for attribute in ATTRIBUTES]
    page = view("".join(threads) + TAG)
    expect(page.locator("commentd-thread .none")).to_have_count(len(ATTRIBUTES))
    assert lists(view.asked) == [QUERY | wanted for wanted in ATTRIBUTES.values()]


SPOKEN = [  # the language around an element, its attribute, and what it speaks
    ("ZH", "", "zh-CN"),
    ("zh-Hant", "", "zh-TW"),
    ("zh-Hans-HK", "", "zh-CN"),
    ("en", "lang=zh-TW", "zh-TW"),
    ("fr-CA", "", "fr"),
    ("DE", "", "de"),
    ("sv", "", "en"),
    ("arn", "", "en"),
    ("zh-CN", "lang=en", "en"),
    ("zh-CN", "lang=xx-bad_tag", "en"),
    ("zh-CN", "lang", "zh-CN"),
    ('""', "", "de"),
    *((language, "", language) for language in WORDS),
]


@pytest.mark.parametrize("options", [{"locale": "de-DE"}], ids=["de"])
def test_the_widget_speaks_the_nearest_language_of_the_page_else_that_of_the_browser(
    view: View,
) -> None:
    markup = "<main lang={}><div><commentd-thread {}></commentd-thread></div></main>"
    threads = [markup.format(lang, attribute) for lang, attribute, _ in SPOKEN]
    page = view("".join(threads) + TAG, lang="")
    for number, (*_, wanted) in enumerate(SPOKEN):
        thread = page.locator("commentd-thread").nth(number)
        expect(thread.locator(".none")).to_have_text(WORDS[wanted]["none"])
        expect(thread.locator("section")).to_have_attribute("lang", wanted)


def test_a_browser_that_is_too_old_gets_a_link_to_the_thread(view: View) -> None:
    page = view.page
    fill(view.app, 1)
    page.add_init_script("""
        delete String.prototype.isWellFormed
        window.CSSStyleSheet = class { constructor() { throw new TypeError('Illegal') } }""")
    view()
    expect(page.locator("commentd-thread")).to_have_count(0)
    assert view.faults == ["Uncaught Error: commentd: this browser is too old"]
    view.faults.clear()
    view(TAG + HELD + "<commentd-thread></commentd-thread>")
    assert page.locator("commentd-thread").evaluate("node => node.clientHeight") < 100
    view.faults.clear()
    page.get_by_role("link", name="评论").click()
    assert page.url.startswith(f"{view.site.service}/thread?url=")
    expect(page.get_by_text("No. 1.")).to_be_visible()


def test_a_lazy_thread_waits_until_it_is_near_or_a_link_leads_into_it(view: View) -> None:
    number = fill(view.app, 3)[0]
    essay = f'<h2 id="part">One</h2><a href="#comment-{number}">See there</a>'
    far = '<div style="height: 9000px">An essay</div><commentd-thread loading=lazy>'
    body = f"{essay}{far}</commentd-thread>{TAG}"
    page = view(body)
    expect(page.locator("commentd-thread:defined")).to_have_count(1)
    for change in ("", "history.replaceState({scroll: 9}, '')", "location.hash = '#part'"):
        page.evaluate(f"() => {{ {change} }}")
        idle(page)
        idle(page)
        assert lists(view.asked) == [], change
    page.get_by_text("See there").click()
    expect(comment(page, "No. 1.")).to_be_in_viewport()
    assert len(lists(view.asked)) == 1
    view(body, at=f"#comment-{number}")
    expect(comment(page, "No. 1.")).to_be_in_viewport()
    view(body, at="#part")
    page.mouse.wheel(0, 9000)
    expect(comment(page, "No. 1.")).to_be_visible()


def scripts(asked: list[str]) -> list[str]:
    """The scripts that were loaded for what readers do."""
    return [line for line in asked if "reading.js" in line]


@pytest.mark.parametrize("attribute", ["loading=lazy", ""])
def test_a_reader_who_never_comes_near_a_lazy_thread_loads_nothing_for_it(
    view: View, attribute: str
) -> None:
    fill(view.app, 3)
    page = view.page
    page.clock.install()
    view(
        '<div style="height: 9000px">An essay</div>'
        f"<commentd-thread {attribute}></commentd-thread>{TAG}"
    )
    expect(page.locator("commentd-thread:defined")).to_have_count(1)
    settled(page)
    page.clock.fast_forward(120_000)
    settled(page)
    assert scripts(view.asked) == []
    page.mouse.wheel(0, 9000)
    expect(page.locator("commentd-thread")).to_be_in_viewport()
    expect(comment(page, "No. 1.")).to_be_visible()
    page.mouse.move(200, 300)
    page.clock.run_for(1000)  # idle
    styles = "document.querySelector('commentd-thread').shadowRoot.adoptedStyleSheets"
    page.wait_for_function(f"() => {styles}.length === 4")  # errors, reading and writing came too
    assert len(scripts(view.asked)) == 1


def test_a_thread_that_was_taken_away_loads_nothing_later(view: View) -> None:
    fill(view.app, 1)
    page = view.page
    page.clock.install()
    view()
    expect(comment(page, "No. 1.")).to_be_visible()
    page.locator("commentd-thread").evaluate("thread => thread.remove()")
    page.clock.fast_forward(120_000)
    settled(page)
    assert scripts(view.asked) == []


# Counts what is there of what a thread may leave on the page: {listeners, observers, clocks}.
COUNT_LEFT = """{
  const left = window.left = {listeners: 0, observers: 0, clocks: 0}
  const listen = EventTarget.prototype.addEventListener
  EventTarget.prototype.addEventListener = function (type, act, how) {
    const outlives = this === window || this === document || this === window.navigation
    if (outlives && !how?.signal?.aborted) {
      left.listeners++
      if (how?.signal) listen.call(how.signal, 'abort', () => left.listeners--, {once: true})
    }
    return listen.call(this, type, act, how)
  }
  for (const name of ['IntersectionObserver', 'MutationObserver', 'ResizeObserver']) {
    const {prototype} = window[name]
    const {observe, unobserve, disconnect} = prototype
    const observed = new Map()
    const count = (observer, change) => {
      const before = observed.get(observer)?.size ?? 0
      if (!before) observed.set(observer, new Set())
      change(observed.get(observer))
      left.observers += observed.get(observer).size - before
    }
    prototype.observe = function (node, ...how) {
      count(this, nodes => nodes.add(node))
      return observe.call(this, node, ...how)
    }
    if (unobserve) prototype.unobserve = function (node) {
      count(this, nodes => nodes.delete(node))
      return unobserve.call(this, node)
    }
    prototype.disconnect = function () {
      count(this, nodes => nodes.clear())
      return disconnect.call(this)
    }
  }
  const {setInterval, clearInterval} = window
  window.setInterval = (...how) => {
    left.clocks++
    return setInterval(...how)
  }
  window.clearInterval = id => {
    left.clocks--
    return clearInterval(id)
  }
}"""


def test_a_thread_that_goes_takes_its_listeners_observers_and_clocks_along(view: View) -> None:
    fill(view.app, 60)
    say(view.app, "A long text.\n\n" * 60)
    page = view.page
    page.add_init_script(COUNT_LEFT)
    view('<commentd-thread limit="61"></commentd-thread>' + TAG)
    thread = page.locator("commentd-thread")
    texts = thread.locator(".body")
    expect(texts).to_have_count(61)
    # On a busy machine, the list is whole before its first frame, in which all texts are measured,
    # and none is left to observe. When the thread comes back, it observes them all.
    thread.evaluate("thread => document.body.prepend(thread)")
    counts: list[Json] = []
    for _ in range(3):
        thread.locator("textarea").first.click()
        expect(button(page, "预览")).to_have_count(1)
        settled(page)
        expect(button(page, "展开全文")).to_have_count(1)
        page.wait_for_function("() => left.observers > 20")  # those far from the window
        with_thread = page.evaluate("({...left})")
        held = page.evaluate_handle("document.querySelector('commentd-thread')")
        page.evaluate("thread => thread.remove()", held)
        counts.append(page.evaluate("({...left})"))
        assert with_thread["listeners"] > counts[-1]["listeners"]
        assert with_thread["clocks"] > counts[-1]["clocks"] == 0
        page.evaluate("thread => document.body.prepend(thread)", held)
    assert counts[0]["observers"] < 3  # of counters that a page adds, and Playwright's
    assert counts[1:] == counts[:-1]


def test_several_threads_of_one_page_are_each_their_own(view: View) -> None:
    fill(view.app, 25, "/first/")
    ids = fill(view.app, 15, "/second/")
    page = view(TWO, at=f"#comment-{ids[0]}")
    first, second = page.locator("[page='/first/']"), page.locator("[page='/second/']")
    expect(second.locator("[data-target]")).to_contain_text("No. 1.")
    expect(second.locator("[data-target]")).to_be_in_viewport()
    assert {*urls(view.asked)} == {"/first/", "/second/"}
    expect(first.locator("article")).to_have_count(10)
    button(first, "显示更多").click()
    expect(first.locator("article")).to_have_count(20)
    jump(page, ids[1])
    expect(second.locator("[data-target]")).to_contain_text("No. 2.")
    settled(page)
    expect(first.locator("article")).to_have_count(20)
    expect(first.locator("[data-target]")).to_have_count(0)
    assert page.evaluate("document.activeElement.getAttribute('page')") == "/second/"


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (TAG, "<commentd-thread></commentd-thread>"),
        (PLAIN_TAG, f"<commentd-thread></commentd-thread>{TAG}{TAG}"),
        (TAG, f"{PLAIN_TAG}<div>{TAG}</div><p>Between</p>{PLAIN_TAG}"),
    ],
    ids=["element", "thrice", "behind-itself"],
)
def test_one_thread_is_shown_however_often_the_script_is_there(
    view: View, head: str, body: str
) -> None:
    say(view.app, "Hello.")
    page = view(body + "<i data-commentd-count=/2026/lines/></i>", head=head)
    expect(page.locator(".body")).to_have_text("Hello.")
    expect(page.locator("i")).to_have_text("1")
    settled(page)
    expect(page.locator("commentd-thread")).to_have_count(1)
    assert len(lists(view.asked)) == len(counted(view.asked)) == 1


def test_a_tag_that_a_script_adds_makes_its_thread(view: View) -> None:
    say(view.app, "Of the second.", page="/second/")
    page = view("<form name=head>No element.</form><main></main>", head=TAG)
    page.wait_for_function("() => !!customElements.get('commentd-thread')")
    idle(page)
    assert lists(view.asked) == []
    page.evaluate("""() => {
        const tag = document.createElement('script')
        tag.src = document.querySelector('script').src
        history.pushState(null, '', '/second/')
        document.querySelector('main').replaceChildren(tag)
    }""")
    expect(page.locator(".body")).to_have_text("Of the second.")
    assert urls(view.asked) == ["/second/"]


def set_attributes(shown: Page, attributes: dict[str, str]) -> None:
    shown.locator("commentd-thread").evaluate(
        "(it, all) => { for (const [k, v] of Object.entries(all)) it.setAttribute(k, v) }",
        attributes,
    )


def test_a_changed_attribute_asks_once_and_what_comes_too_late_is_dropped(view: View) -> None:
    for name in ("first", "second"):
        say(view.app, f"Of the {name}.", page=f"/{name}/")
    page = view("<commentd-thread page=/second/ limit=5></commentd-thread>" + TAG)
    expect(page.locator(".body")).to_have_text("Of the second.")
    set_attributes(page, {"page": "/first/", "sort": "oldest"})
    expect(page.locator(".body")).to_have_text("Of the first.")
    set_attributes(page, {"page": "/first/", "limit": "05", "sort": "oldest"})
    expect(page.locator("section")).to_have_count(1)
    settled(page)
    asked = [(query["url"], query["sort"]) for query in lists(view.asked)]
    assert asked == [("/second/", "newest"), ("/first/", "oldest")]
    held = hold(page, r"comments\?url=%2Ffirst")
    set_attributes(page, {"page": "/first/", "sort": "newest"})
    expect(page.locator(".wait")).to_be_attached()
    set_attributes(page, {"page": "/second/"})
    expect(page.locator(".body")).to_have_text("Of the second.")
    release(page, held.pop())
    settled(page)
    assert texts(page) == ["Of the second."]
    expect(page.get_by_role("alert")).to_have_count(0)


def test_an_element_is_moved_put_back_on_another_route_and_taken_away(view: View) -> None:
    number = fill(view.app, 1)[0]
    say(view.app, "Of the second.", page="/second/")
    page = view("<main></main><aside><commentd-thread></commentd-thread></aside>" + TAG)
    expect(page.locator("article")).to_have_count(1)
    page.evaluate("""() => {
        const thread = document.querySelector('commentd-thread')
        thread.remove()
        for (const name of ['main', 'body', 'main']) document.querySelector(name).append(thread)
    }""")
    jump(page, number)
    expect(page.locator("main [data-target]")).to_contain_text("No. 1.")
    like(comment(page, "No. 1."))
    settled(page)
    assert len([line for line in view.asked if line.endswith("/comment/like")]) == 1
    page.evaluate("""() => {
        const thread = document.querySelector('commentd-thread')
        thread.remove()
        history.pushState(null, '', '/second/')
        document.body.append(thread)
    }""")
    expect(page.locator(".body")).to_have_text("Of the second.")
    assert urls(view.asked) == [POST, "/second/"]


def test_the_page_is_that_of_the_canonical_link_else_that_of_the_address_bar(view: View) -> None:
    for at, canonical, wanted in (
        ("?id=3&utm_source=feed#top", "", POST + "?id=3&utm_source=feed"),
        ("?id=3", "https://blog.example/real/?n=2#top", "/real/?n=2"),
        ("", "../other/", "/2026/other/"),
        ("", "http://[broken/", POST),
        ("#/notes/1", "", POST + "#/notes/1"),
        ("#!/notes/1", "", POST + "#!/notes/1"),
        ("#/notes?id=heading", "", POST + "#/notes"),
        ("#/notes?id=7", "", POST + "#/notes?id=7"),
    ):
        view.asked.clear()
        head = f'<link rel="canonical" href="{canonical}">' if canonical else ""
        page = view(head=head, at=at)
        expect(page.locator(".none")).to_be_visible()
        assert urls(view.asked) == [wanted], (at, canonical)


def test_headings_and_what_others_add_to_a_url_keep_the_thread(view: View) -> None:
    say(view.app, "Of the guide.", page=POST + "#/guide")
    say(view.app, "Of C++.", page="/C++/")
    latest = "<ul data-commentd-latest></ul>"
    page = view(TAG + latest, at="#/guide")
    expect(page.locator(".body")).to_have_text("Of the guide.")
    # The router of the page knows no `#comment-1`.
    assert page.locator("a:has(time)").get_attribute("href") == page.url
    expect(page.locator("ul a").last).to_have_attribute("href", page.url)
    page.locator("textarea").fill("A draft")
    page.evaluate("location.hash = '#/guide?id=heading'")
    page.evaluate("location.hash = '#/guide?id=_1-next'")
    expect(page.locator("textarea")).to_have_value("A draft")
    for url, text in (
        (POST + "?from=timeline&isappinstalled=0#/guide/", "Of the guide."),
        ("/C%2B%2B/?_=1796000517531", "Of C++."),
        (POST + "?t=1796000517531#/guide?id=heading", "Of the guide."),
        ("/C++/?nsukey=a%2Fb&from=groupmessage", "Of C++."),
    ):
        page.evaluate("url => history.pushState(null, '', url)", url)
        expect(page.locator(".body")).to_have_text(text)


# Counts


@pytest.mark.long
def test_many_counts_and_long_paths_come_in_requests_that_every_proxy_passes(view: View) -> None:
    last = "/last/" + "字" * 300
    say(view.app, "Hello.", page=last)
    hundred = [f"/2026/{n}/" for n in range(130)]
    for paths in (
        hundred,
        *([f"/{n}/" + long for n in range(8)] for long in ("字" * 300, "/" * 1980)),
    ):
        view.asked.clear()
        wanted = [*paths, last]
        page = view("".join(f'<i data-commentd-count="{path}"></i>' for path in wanted), head=TAG)
        expect(page.locator("i")).to_have_text(["0"] * len(paths) + ["1"])
        settled(page)
        requests = counted(view.asked)
        assert [path for paths in requests for path in paths] == wanted
        assert paths is not hundred or len(requests[0]) == 100


# Events

RECORD = """<script>window.events = []
for (const type of ['commentd:loaded', 'commentd:posted']) addEventListener(type, event => {
    events.push([type, event.bubbles, event.composed, event.target.localName, event.detail])
})</script>"""


def test_the_page_is_told_when_comments_are_there_and_when_one_is_posted(view: View) -> None:
    fill(view.app, 12)
    page = view(head=RECORD)
    expect(page.locator("article")).to_have_count(10)
    loaded = ["commentd:loaded", True, True, "commentd-thread", {"page_url": POST, "total": 12}]
    assert page.evaluate("events") == [loaded]
    expect_posted(page, "Mine.")
    event = page.evaluate("events[1]")
    assert event[:4] == ["commentd:posted", True, True, "commentd-thread"]
    assert (event[4]["comment"]["content"], event[4]["comment"]["page_url"]) == ("Mine.", POST)
    assert "edit_token" not in json.dumps(event)


# Reading


def left_of(article: Locator) -> float:
    box = article.bounding_box()
    assert box
    return box["x"]


def test_replies_are_indented_twice_and_then_say_to_whom(view: View) -> None:
    ids = nested(view.app, 6)
    say(view.app, "Late.", "Z", hours=1, parent_id=ids[2])
    above = None
    for name in "LMN":  # what replies to a list stands beside it and not in it
        above = say(view.app, "1. one\n2. two\n\n- three", name, hours=200, parent_id=above)
    page = view()
    bodies: list[str | re.Pattern[str]] = [f"Depth {n}." for n in range(6)]
    bodies += ["Late.", *[re.compile("one")] * 3]
    expect(page.locator("article .body")).to_have_text(bodies)
    expect(page.locator(".body article")).to_have_count(0)
    metas = page.locator(".meta").all_inner_texts()
    assert [line.splitlines()[0] for line in metas] == [*"ABCDEFZLMN"]
    whom = [re.findall(r"›\s*(\w)", line) for line in metas]
    assert whom == [[], [], [], ["C"], ["D"], ["E"], ["C"], [], [], []]
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 720})
        lefts = [left_of(article) for article in page.locator("article").all()[:7]]
        assert lefts[0] < lefts[1] < lefts[2], width
        assert {*lefts[2:]} == {lefts[2]}, width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


@pytest.mark.parametrize("options", [{"locale": "zh-CN", "has_touch": True}])
def test_a_thumb_on_the_line_beside_replies_hides_them_only_at_its_beginning(view: View) -> None:
    nested(view.app, 2)
    page = view()
    page.set_viewport_size({"width": 390, "height": 844})
    reply = comment(page, "Depth 1.")
    expect(reply).to_be_visible()
    begin_to_read(page)
    box = page.locator(".line").first.bounding_box()
    assert box
    page.touchscreen.tap(box["x"] + 12, box["y"] + box["height"] - 10)
    idle(page)
    expect(reply).to_be_visible()
    page.touchscreen.tap(box["x"] + 12, box["y"] + 20)
    expect(reply).to_be_hidden()


def test_texts_of_both_directions_end_at_the_same_edges_in_a_wide_column(view: View) -> None:
    say(view.app, "A line of text is a promise. " * 20, "Ann")
    say(view.app, "هذا نص عربي طويل بما يكفي ليكسر السطر. " * 20, "Noor")
    page = view()
    page.set_viewport_size({"width": 1600, "height": 900})
    expect(page.locator("article")).to_have_count(2)
    edges = "nodes => nodes.map(node => [node.getBoundingClientRect()].map(it => [it.x, it.right]))"
    first, second = page.locator("article .body p").evaluate_all(edges)
    assert first == second


def test_the_order_of_the_list_has_no_box_of_the_engine(view: View) -> None:
    fill(view.app, 2)
    page = view()
    order = page.get_by_label("排序")
    assert order.evaluate("node => getComputedStyle(node).appearance") == "none"


def test_replies_are_folded_and_unfolded(view: View) -> None:
    nested(view.app, 4)
    page = view()
    begin_to_read(page)
    line = page.locator(".line").first
    ways: list[Callable[[], None]] = [
        lambda: line.click(position={"x": 12, "y": 20}),
        lambda: line.press("Enter"),
    ]
    for press in ways:
        for name, hidden in (("收起回复", False), ("展开 3 条回复", True)):
            expect(line).to_have_accessible_name(name)
            expect(line).to_have_attribute("aria-expanded", str(not hidden).lower())
            expect(comment(page, "Depth 1.")).to_be_visible(visible=not hidden)
            expect(comment(page, "Depth 0.")).to_be_visible()
            press()
            expect(line).to_be_focused()


def test_more_comments_come_behind_those_that_are_there_in_the_order_chosen(view: View) -> None:
    fill(view.app, 25)
    page = view()
    more, order = button(page, "显示更多"), page.get_by_label("排序")
    expect(order).to_have_value("newest")
    expect(page.locator("article")).to_have_count(10)
    say(view.app, "Just now.", hours=0)  # which moves all others down
    more.click()
    expect(comment(page, "No. 15.")).to_be_focused()
    assert texts(page) == nos(25, 7)
    more.press("Enter")
    expect(page.locator("article").nth(19)).to_be_focused()
    expect(more).to_have_count(0)
    assert texts(page) == nos(25, 1)
    order.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".body").first).to_have_text("No. 1.")
    expect(order).to_have_value("oldest")
    expect(order).to_be_focused()
    more.click()
    expect(page.locator("article")).to_have_count(20)
    assert texts(page) == nos(1, 20)
    found = [(query["sort"], query["page"]) for query in lists(view.asked)]
    assert found == [*(("newest", n) for n in "123"), *(("oldest", n) for n in "12")]


def replies(app: App, number: int) -> list[int]:
    """A comment with so many replies; the ids of these."""
    top = say(app, "A question.", hours=2000)
    return [
        say(app, f"Reply {n}.", f"Guest {n}", hours=1000 - n, parent_id=top)
        for n in range(1, number + 1)
    ]


def test_a_thread_with_many_replies_comes_in_hundreds_and_links_lead_into_it(view: View) -> None:
    ids = replies(view.app, 200)  # none is left after the second hundred
    bodies = [f"Reply {n}." for n in range(1, 201)]
    page = view()
    expect(page.locator("article")).to_have_count(101)
    button(page, "显示更多").click()
    expect(page.locator("article").nth(101)).to_be_focused()
    expect(button(page, "显示更多")).to_have_count(0)
    assert texts(page)[1:] == bodies
    for first, then in ((42, 120), (120, 42)):
        view(at=f"#comment-{ids[first - 1]}")
        expect_target(page, f"Reply {first}.")
        jump(page, ids[then - 1])
        expect_target(page, f"Reply {then}.")
        assert texts(page)[1:101] == bodies[:100]


def test_replies_that_failed_to_come_are_asked_for_again_and_no_error_stays(view: View) -> None:
    replies(view.app, 101)
    page = view()
    begin_to_read(page)
    settled(page)
    page.context.set_offline(True)
    button(page, "显示更多").press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_have_count(1)
    expect(button(page, "显示更多")).to_be_focused()
    page.context.set_offline(False)
    page.wait_for_function("navigator.onLine")
    page.keyboard.press("Enter")
    expect(page.locator("article").nth(101)).to_be_focused()
    expect(alert).to_have_count(0)
    expect_only(view.faults, "DISCONNECTED")


def test_a_link_to_a_comment_shows_its_page_and_on_the_page_adds_it(view: View) -> None:
    ids = fill(view.app, 25)
    page = view(at=f"#comment-{ids[2]}")
    expect_target(page, "No. 3.")
    settled(page)
    assert texts(page) == nos(5, 1)
    assert len(lists(view.asked)) == 1
    button(page, "显示全部").click()
    expect(page.locator("article")).to_have_count(10)
    expect(page.locator("article").first).to_be_focused()
    assert texts(page) == nos(25, 16)
    expect(button(page, "显示全部")).to_have_count(0)
    jump(page, ids[3])
    expect_target(page, "No. 4.")
    for there in (21, 25):
        button(page, "显示更多").click()
        expect(page.locator("article")).to_have_count(there)
    settled(page)
    assert sorted(texts(page)) == sorted(nos(1, 25))
    assert len(lists(view.asked)) == 5


@pytest.mark.parametrize("word", ["显示更多", "排序"])
def test_a_reader_who_went_on_keeps_the_focus_when_the_list_comes(view: View, word: str) -> None:
    replies(view.app, 101)
    fill(view.app, 25)
    page = view()
    settled(page)
    field = page.get_by_label("写下你的想法…")
    with requests_held(page, "**/comments?*"):
        with page.expect_request("**/comments?*"):
            if word == "排序":
                page.get_by_label(word).select_option("oldest")
            else:
                button(page, word).last.press("Enter")
        field.click()
    expect(page.locator("article").nth(11)).to_be_visible()
    settled(page)
    expect(field).to_be_focused()


def test_all_comments_that_failed_to_come_can_be_asked_for_again_by_keys(view: View) -> None:
    ids = fill(view.app, 25)
    page = view(at=f"#comment-{ids[2]}")
    expect_target(page, "No. 3.")
    settled(page)
    page.context.set_offline(True)
    button(page, "显示全部").press("Enter")
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(button(page, "重试")).to_be_focused()
    page.context.set_offline(False)
    page.wait_for_function("navigator.onLine")
    page.keyboard.press("Enter")
    expect(comment(page, "No. 25.")).to_be_focused()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect_only(view.faults, "DISCONNECTED")


@pytest.mark.long
def test_a_link_to_an_unknown_comment_does_no_harm(view: View) -> None:
    replies(view.app, 101)
    elsewhere = say(view.app, "Elsewhere.", page="/other/")
    page = view(at="#comment-987654321")
    expect(page.locator("article").first).to_be_visible()
    settled(page)
    assert len(lists(view.asked)) <= 4
    numbers = ("987654322", f"{elsewhere}", "0", "1e3", "9" * 40)
    for word in (*(f"#comment-{number}" for number in numbers), "#x"):
        page.evaluate("word => { location.hash = word }", word)
    settled(page)
    expect(page.locator("[data-target]")).to_have_count(0)
    expect(page.locator("article").first).to_contain_text("A question.")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert len(lists(view.asked)) <= 12


def test_a_deleted_comment_leaves_a_tombstone_above_its_replies(view: View) -> None:
    top = nested(view.app, 2)[0]
    say(view.app, "Another.", hours=200)
    set_status(view.app, top, "deleted")
    sql(view.app, "UPDATE page SET views = 1286")
    page = view(at=f"#comment-{top}")
    expect(page.locator("article")).to_have_count(3)
    gone = page.locator("article").first
    expect(gone).to_have_text("评论已移除。")
    expect(gone).to_have_attribute("data-target", "")
    expect(gone.get_by_role("button")).to_have_count(0)
    expect(comment(page, "Depth 1.")).to_be_visible()
    expect(page.locator(".head b")).to_have_text("2 条评论")
    expect(page.locator(".head .views")).to_have_text(re.compile(r"1,28\d 次阅读"))
    set_status(view.app, top + 1, "deleted")
    page = view(lang="en")
    expect(page.locator(".head b")).to_have_text("1 comment")


def test_the_tombstone_of_a_waiting_comment_does_not_say_removed(view: View) -> None:
    top = nested(view.app, 2)[0]
    set_status(view.app, top, "waiting")
    page = view()
    expect(page.locator("article").first).to_have_text("该评论正在等待审核。")
    expect(comment(page, "Depth 1.")).to_be_visible()
    set_status(view.app, top, "spam")
    page = view()
    expect(page.locator("article").first).to_have_text("评论已移除。")


def test_lists_code_and_menus_show_what_they_are(view: View) -> None:
    wide = "x = 1 + " * 60
    lists = "- one\n  - deep\n\n1. first\n\n2024) a good year"
    say(view.app, f"{lists}\n\n```\n{wide}\n```\n\n```\nshort\n```")
    page = view()
    ordered = page.locator(".body ol")
    expect(ordered).to_have_count(2)
    assert ordered.evaluate_all("all => all.map(list => list.start)") == [1, 2024]
    style = "(node, name) => getComputedStyle(node)[name]"
    for selector, wanted in (("ul", "disc"), ("ul ul", "circle"), ("ol", "decimal")):
        shown = page.locator(f".body {selector}").first
        assert shown.evaluate(style, "listStyleType") == wanted, selector
    expect(page.locator("pre").first).not_to_have_css("mask-image", "none")  # code.js brings it
    expect(page.locator("pre").last).to_have_css("mask-image", "none")
    begin_to_read(page)
    page.mouse.move(0, 0)
    assert float(page.locator(".quiet").evaluate(style, "opacity")) >= 0.6


def in_languages(*languages: str) -> str:
    """The thread of the page in each of them."""
    return "".join(f"<commentd-thread lang={lang}></commentd-thread>" for lang in languages) + TAG


def test_locations_are_named_in_the_language_of_the_reader(view: View) -> None:
    imported = say(view.app, "Imported.", "Ann", hours=3)
    say(view.app, "Far away.", "Mateo Silva", hours=2)
    say(view.app, "Nearby.", "陆知微", hours=1)
    sql(view.app, "UPDATE comment SET country = 'FR', location = '' WHERE id = ?", imported)
    places = {
        "zh-CN": ["浙江 杭州", "巴西", "法国"],
        "en": ["China", "Brazil", "France"],
        "de": ["China", "Brasilien", "Frankreich"],
    }
    page = view(in_languages(*places))
    for lang, named in places.items():
        metas = page.locator(f"commentd-thread[lang={lang}] .meta")
        expect(metas).to_have_text([re.compile(place) for place in named])


AGO = {
    "zh-CN": ["刚刚", "30分钟前", "1小时前", "3小时前", "昨天", "前天", "3天前"],
    "en": [
        "now",
        "30 minutes ago",
        "1 hour ago",
        "3 hours ago",
        "yesterday",
        "2 days ago",
        "3 days ago",
    ],
}


@pytest.mark.parametrize("options", [{"timezone_id": "America/New_York"}], ids=[""])
def test_a_comment_says_how_long_ago_and_exactly_when(view: View, fake_world: FakeWorld) -> None:
    ages = (0, 0.5, 1.2, 3.2, 25, 49, 72.5, 9000)
    for hours in ages:
        say(view.app, "Then.", hours=hours)
    view.page.clock.set_fixed_time(fake_world.time)
    page = view(in_languages(*AGO))
    for lang, names in AGO.items():
        begin_to_read(page, f"commentd-thread[lang={lang}]")
        links = page.locator(f"commentd-thread[lang={lang}] .meta a:has(time)")
        expect(links).to_have_count(len(ages))
        exact = page.evaluate(
            """([times, lang]) => times.map(at => new Date(at)).map(date => [
                date.toLocaleDateString(lang, {dateStyle: 'medium'}), date.toLocaleString(lang),
                date.toISOString()])""",
            [[int(fake_world.time - hours * 3600) * 1000 for hours in ages], lang],
        )
        assert links.all_text_contents() == [*names, exact[-1][0]]
        seen = "all => all.map(it => [it.title, it.firstChild.dateTime])"
        assert links.evaluate_all(seen) == [[title, at] for _, title, at in exact]


def test_each_text_has_its_own_direction_and_names_are_set_apart(view: View) -> None:
    page = view.page
    english = say(view.app, "Hello, a fine text (1)", "Ann", hours=2)
    say(view.app, "A reply.", "Ann", hours=2, parent_id=english)
    say(view.app, "مرحبا، نص جميل (1)", "ليلى", hours=1)
    view.site.pages.update(article(view.site.service, lang="ar"))
    page.goto(view.site.address + POST)
    begin_to_read(page)  # the line beside replies
    expect(page.locator(".meta bdi")).to_have_text(["ليلى", "Ann", "Ann"])
    directions = "all => all.map(it => [it.dir, getComputedStyle(it).direction])"
    found = page.locator(".body").evaluate_all(directions)
    assert found == [["auto", "rtl"], ["auto", "ltr"], ["auto", "ltr"]]
    for width in (320, 1280):  # on an Arabic page, the thread runs from right to left
        page.set_viewport_size({"width": width, "height": 720})
        assert left_of(page.locator(".line")) > left_of(page.locator(".replies article")), width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


# Hostile texts

ALLOWED = {
    "slot",
    "section",
    "form",
    "label",
    "span",
    "textarea",
    "div",
    "input",
    "details",
    "summary",
    "button",
    "svg",
    "path",
    "select",
    "option",
    "ol",
    "li",
    "article",
    "b",
    "bdi",
    "a",
    "time",
    "p",
    "br",
    "hr",
    "em",
    "strong",
    "del",
    "code",
    "pre",
    "blockquote",
    "ul",
}
ALL = '<commentd-thread limit="100"></commentd-thread>' + TAG


def strict(site: Site, body: str, policy: str = POLICY) -> None:
    """Writes a page of the blog under a strict policy."""
    header = {"Content-Security-Policy": policy.replace("SERVICE", site.service)}
    html = site.html(body).replace('<link rel="icon" href="data:,">', "")
    site.pages[POST] = (header, html)


def assert_harmless(page: Page, site: Site, asked: list[str]) -> None:
    tags = page.evaluate(
        """() => [...document.querySelectorAll('commentd-thread')].flatMap(
            it => [...it.shadowRoot.querySelectorAll('*')].map(node => node.localName))"""
    )
    assert set(tags) <= ALLOWED
    assert page.evaluate("typeof hit") == "undefined"
    hosts = (site.address + "/", site.service + "/")
    assert [line for line in asked if not line.split()[1].startswith(hosts)] == []
    attributes = page.locator(".body *").evaluate_all(
        "all => [...new Set(all.flatMap(node => node.getAttributeNames()))]"
    )
    assert set(attributes) <= {"href", "rel", "tabindex"}
    for link in page.locator(".body a[href]").all():
        assert re.match("https?://|mailto:", link.get_attribute("href") or "")
        assert link.get_attribute("rel") == "nofollow ugc noopener noreferrer"


def test_names_websites_and_texts_are_only_ever_text(view: View) -> None:
    page = view.page
    for n, name in enumerate(NAMES):
        say(view.app, f"By name {n}.", name, hours=n)
    sql(view.app, "UPDATE comment SET website = ?", WEBSITE)
    for text in TEXTS:
        say(view.app, text, hours=100)
    strict(view.site, ALL)
    page.goto(view.site.address + POST)
    expect(page.locator("article")).to_have_count(len(NAMES) + len(TEXTS))
    expect(page.locator(".meta bdi")).to_have_text(NAMES + ["陆知微"] * len(TEXTS))
    page.locator(".meta bdi").first.hover()
    assert_harmless(page, view.site, view.asked)
    for link in page.locator(".meta b a").all():
        assert (link.get_attribute("href") or "").startswith("https://blog.example/")


RESPONSES = [
    "<script>hit=1</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=hit=1>",
    "<style>:host{display:none}*{display:none}</style>",
    '<link rel="stylesheet" href="//evil.example/x.css">',
    '<iframe srcdoc="&lt;script&gt;parent.hit=1&lt;/script&gt;"></iframe>',
    '<svg onload="hit=1"><a href="javascript:hit=1"><text>x</text></a></svg>',
    '<p onclick="hit=1" style="position:fixed;inset:0" class="main" id="error">x</p>',
    '<a href="javascript:hit=1">x</a>',
    '<a href=" javascript:hit=1">x</a>',
    '<a href="java&#10;script:hit=1">x</a>',
    '<a href="&#106;avascript:hit=1">x</a>',
    '<a href="data:text/html,x">x</a><a href="//evil.example">x</a><a href="/local">x</a>',
    '<a href="https://good.example/" href="javascript:hit=1" onclick="hit=1" target="_top">x</a>',
    '<a title="> href="javascript:hit=1"" href="javascript:hit=1">x</a>',
    '<a  href="https://good.example/?a=1&amp;b=2">x</a>',
    "</p></div></article></li></ol></section><form action='//evil.example'><input name=x></form>",
    "<ul><li>one<li>two</ul></li><p><em><strong>x</em></strong></p></code>",
    "<!-- <script>hit=1</script> --><![CDATA[<script>hit=1</script>]]>",
    "<constructor>x</constructor><slot name=link>x</slot><template><script>hit=1</script>",
    "&lt;script&gt; &amp;lt; &#60;img&#62; &unknown; &constructor; &__proto__; a < b && c > d",
    "<blockquote>" * 300,
    "<" * 5000,
    "<a " + 'href="' * 3000,
]


def test_the_widget_shows_only_allowed_html_whatever_the_service_sends(view: View) -> None:
    page = view.page
    ids = fill(view.app, len(RESPONSES))

    def change(comments: list[Json]) -> None:
        for each in comments:
            each["html"] = RESPONSES[ids.index(each["id"])] + "<p>Last.</p>"

    strict(view.site, ALL)
    with altering(view.app, change):
        page.goto(view.site.address + POST)
        expect(page.locator("article")).to_have_count(len(RESPONSES))
    assert_harmless(page, view.site, view.asked)
    expect(page.get_by_label("写下你的想法…")).to_be_visible()
    bodies = dict(zip(ids[::-1], texts(page), strict=True))
    assert bodies[ids[20]].startswith("<script> &lt; ")
    assert page.locator('.body a[href="https://good.example/"]').count() <= 1


POISON = [
    ("country", "<b>"),
    ("country", "constructor"),
    ("location", "<img src=x onerror=hit=1>"),
    ("website", "javascript:hit=1"),
    ("website", "https:javascript:hit=1"),
    ("website", "data:text/html,x"),
    ("website", None),
    ("nickname", "<script>hit=1</script>"),
    ("role", "<b>"),
    ("html", ""),
    ("created_at", "<b>"),
]


def test_a_poisoned_comment_hurts_only_itself(view: View) -> None:
    fill(view.app, 2 * len(POISON))

    def change(comments: list[Json]) -> None:
        for each, (field, value) in zip(comments[::2], POISON, strict=True):
            each |= {"location": "浙江", "country": "CN", field: value}

    with altering(view.app, change):
        page = view(ALL, lang="en")
        for number in range(1, 2 * len(POISON), 2):
            expect(comment(page, f"No. {number}.")).to_be_visible()
    assert_harmless(page, view.site, view.asked)
    for link in page.locator(".meta b a").all():
        assert (link.get_attribute("href") or "").startswith(("https:", "http:"))
    assert len(view.faults) == 1
    expect_only(view.faults, "^commentd: a comment can’t be shown")


# Hostile pages


EVIL = [
    "<img id=currentScript name=x src=EVIL>",
    "<object name=currentScript data=EVIL></object>",
    "<iframe name=currentScript src=EVIL></iframe>",
    "<form name=currentScript><input name=src value=EVIL></form>",
    "<img name=currentScript src=EVIL><form name=currentScript></form>",
]


@pytest.mark.parametrize("markup", EVIL)
@pytest.mark.parametrize("tag", [TAG, PLAIN_TAG], ids=["async", "plain"])
def test_markup_before_the_script_names_no_origin(view: View, markup: str, tag: str) -> None:
    fill(view.app, 1)
    before = markup.replace("EVIL", f"{view.site.address}/evil/x")
    view.site.pages["/evil/x"] = ({}, "")
    page = view(f"{before}<i data-commentd-count={POST}></i>{tag}")
    expect(page.locator("i")).to_have_text("1")
    like(comment(page, "No. 1."))
    assert [line for line in view.asked if "/evil/" in line and not line.endswith("/evil/x")] == []


FOREIGN = """
    window.name = JSON.stringify({token: 'a.b.c', nickname: 'Eve', service: 'https://evil.example/'})
"""
WISHES = "token=a.b.c&service=https://evil.example/&lang=de&limit=1&nickname=Eve"


def test_the_widget_takes_only_the_number_of_a_comment_from_the_url(view: View) -> None:
    page = view.page
    ids, sent = fill(view.app, 3), list[str]()
    page.on("request", lambda request: sent.append(request.headers.get("authorization", "")))
    page.add_init_script(FOREIGN)
    view('<link rel="canonical" href="/2026/lines/">' + TAG, at=f"?{WISHES}#comment-{ids[1]}")
    expect(page.locator("[data-target]")).to_contain_text("No. 2.")
    expect(page.locator("article")).to_have_count(3)
    page.evaluate(
        """async () => {
            for (const data of ['token=a.b.c', {token: 'a.b.c'}]) postMessage(data, '*')
            location.hash = '#token=a.b.c&comment-1'
            dispatchEvent(new StorageEvent('storage', {key: 'me', newValue: '{"token": "a.b.c"}'}))
            await new Promise(done => setTimeout(done))
        }"""
    )
    like(expect_posted(page, "Mine."))
    assert {*sent} == {""}
    assert [line for line in view.asked if "evil" in line.partition("?")[0] or "a.b.c" in line] == [
        f"GET {view.site.address}{POST}?{WISHES}"
    ]
    assert "a.b.c" not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")


def test_responses_of_the_service_change_no_built_in_object(view: View) -> None:
    fill(view.app, 2)
    poison = b'{"__proto__": {"hit": 1}, "constructor": {"prototype": {"hit": 1}}, "hit": 1, '

    def change(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] == "/comments":
            for before, after in ((b'"settings":', b""), (b"", b'"comments"'), (b"", b'"id":')):
                body = body.replace(before + b"{" + after, before + poison + after)
        return status, headers, body

    with answering(view.app, change):
        page = view()
        expect(page.locator("article")).to_have_count(2)
        button(page, "赞 0").first.click()
    assert page.evaluate("[{}.hit, [].hit, Object.hit, ''.hit]") == [None] * 4


def test_a_login_is_in_no_url_cookie_or_attribute_and_ends(view: View) -> None:
    page = view.page
    fill(view.app, 2)
    add_account(view.app, "owner@example.com", "Owner", "a password", "admin")
    token = token_of(view.app, "owner@example.com")
    me = json.dumps({"nickname": "Owner", "token": token})
    view.site.write("An essay.", "/2026/empty/")
    page.goto(view.site.address + "/2026/empty/")
    page.evaluate("([key, me]) => localStorage.setItem(key, me)", [f"{view.site.service}/me", me])
    view.asked.clear()
    view(lang="en")
    page.get_by_label("Write a comment…").fill("Mine.")
    button(page, "Post").click()
    expect(comment(page, "Mine.")).to_be_focused()
    everything = """() => [document, ...[...document.querySelectorAll('*')].map(e => e.shadowRoot)]
        .flatMap(root => root ? [...root.querySelectorAll('*')] : [])
        .flatMap(node => [...node.attributes].map(a => a.value)).join() + document.cookie"""
    assert token not in page.evaluate(everything)
    assert page.context.cookies() == []
    assert [line for line in view.asked if token in line] == []
    login = {"Authorization": f"Bearer {token}"}
    TestApp(view.app).get("/me", headers=login, status=200)
    page.get_by_label("Write a comment…").fill("Another.")
    with page.expect_response("**/auth/logout"):
        button(page, "Sign out").click()
    expect(button(page, "Sign in")).to_be_visible()
    assert token not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    TestApp(view.app).get("/me", headers=login, status=401)
    assert "scripts of that site can read it" in " ".join(MANUAL["en"]["privacy"].split())


STYLES = [
    "* { all: unset }",
    "div, article, section, form, ol, li, button, textarea, span, p { display: none }",
    "a { display: inline-block; padding: 1em; min-height: 44px }",
    "main > * { box-sizing: content-box; float: left }",
    "main { display: flex; flex-direction: column; align-items: center }",
    "main { display: grid; justify-items: start }",
    "[hidden] { display: block !important } .row, .head, .list, .body { display: none }",
]


@pytest.mark.parametrize("options", [{"viewport": {"width": 800, "height": 600}}], ids=[""])
def test_the_style_of_the_page_hides_nothing_of_the_widget(view: View) -> None:
    nested(view.app, 2)
    page = view('<main><b tabindex="0">Before</b>' + TAG, head="<style></style>", lang="zh-CN")
    expect(page.locator("article")).to_have_count(2)
    light = "it => [...it.children].map(e => [e.assignedSlot.parentNode.className, e.tabIndex])"
    field = page.get_by_label("写下你的想法…")
    for style in STYLES:
        page.evaluate("style => { document.querySelector('style').textContent = style }", style)
        for node in (*page.locator("article").all(), field):
            expect(node).to_be_visible()
        assert field.evaluate("it => it.clientWidth") > 200, style
        expect(page.get_by_label("昵称")).to_be_hidden()
        assert page.locator("commentd-thread").evaluate(light) == [["sr", -1]], style
        page.get_by_text("Before").focus()
        page.keyboard.press("Tab")
        expect(field).to_be_focused()
        field.evaluate("it => { it.blur(); it.form.classList.remove('open') }")


COUNT_TURNS = """{
    const later = setTimeout
    window.turns = 0
    window.setTimeout = (...words) => later(...words, window.turns += words.length === 1)
}"""


@service_with(captcha_provider="altcha")
@pytest.mark.parametrize(
    "policy", [POLICY, POLICY + "; worker-src blob:" + TYPES], ids=["strict", "types"]
)
def test_the_widget_works_under_a_strict_content_security_policy(view: View, policy: str) -> None:
    page = view.page
    page.add_init_script(COUNT_TURNS)
    strict(view.site, '<p>An essay.</p><i data-commentd-count="/2026/lines/"></i>' + TAG, policy)
    page.goto(view.site.address + POST)
    expect(page.locator(".none")).to_be_visible()
    expect(page.locator("i")).to_have_text("0")
    page.get_by_label("写下你的想法…").fill("**Mine.**")
    button(page, "预览").click()
    expect(page.locator(".aside strong")).to_have_text("Mine.")
    button(page, "登录").click()
    expect(page.get_by_role("form", name="登录")).to_be_visible()
    button(page, "取消").click()
    page.get_by_label("昵称").fill("林深")
    button(page, "发表评论").click()
    expect(comment(page, "Mine.")).to_be_focused()
    like(comment(page, "Mine."))
    refused = [
        fault for fault in view.faults if re.search("worker|'TrustedScriptURL'", fault, re.I)
    ]
    assert view.faults == refused
    assert refused  # so the proof was made in slices: 20 000 tries at least, 2 000 at a time
    assert page.evaluate("turns") >= 9
    view.faults.clear()


def test_a_first_view_asks_for_two_things_and_leaves_nothing(view: View) -> None:
    fill(view.app, 7)  # without code, for whose colours another script is loaded
    page = view(
        "<script>names = [0, 'names', ...Object.getOwnPropertyNames(window)]</script>" + TAG
    )
    expect(page.locator("article")).to_have_count(7)
    settled(page)
    assert [line.partition("?")[0] for line in view.asked] == [
        f"GET {view.site.address}{POST}",
        f"GET {view.site.service}/embed.js",
        f"GET {view.site.service}/comments",
    ]
    added = "Object.getOwnPropertyNames(window).filter(name => !names.includes(name))"
    assert page.evaluate(added) == []
    assert page.context.cookies() == []
    kept = page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]")
    assert kept == ["", 0, 0]
    assert page.context.service_workers == []
    expect_posted(page, "Mine.")
    settled(page)
    assert page.evaluate(added) == []
    assert page.context.cookies() == []
    home = (view.site.address + "/", view.site.service + "/")
    assert all(line.split()[1].startswith(home) for line in view.asked)
    assert [line for line in view.asked if re.search(r"account\.js|captcha\.js", line)] == []


# Promises


def test_each_part_that_the_manual_names_can_be_styled(view: View) -> None:
    page = view.page
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", MANUAL["en"]["theme"], re.M)
    parts = re.findall("`([a-z]+)`", " ".join(" ".join(row) for row in rows))
    assert len(parts) == len(set(parts)) > 12
    fill(view.app, 11)
    say(view.app, "Answered.", parent_id=say(view.app, "Asked.", OWNER, hours=0))
    rules = "".join(f"commentd-thread::part({part}) {{ --seen-{part}: yes }}" for part in parts)
    view(TAG, head=f"<style>{rules}</style>")
    expect(page.locator("article")).to_have_count(11)
    page.locator("textarea").first.focus()  # the rest of the form comes then
    for part in parts:
        seen = page.locator(f".{part}").first
        assert seen.evaluate(f"it => getComputedStyle(it).getPropertyValue('--seen-{part}')"), part


def test_the_mark_of_the_order_leaves_room_for_its_text_in_narrow_columns(view: View) -> None:
    fill(view.app, 2)
    page = view(TAG)
    for width in (320, 1024):
        page.set_viewport_size({"width": width, "height": 700})
        order = page.locator("commentd-thread select")
        room = order.evaluate("node => parseFloat(getComputedStyle(node).paddingInlineEnd)")
        mark = order.evaluate("node => parseFloat(getComputedStyle(node).backgroundSize)")
        assert room > mark + 4


# Network

SHIFTS = """window.shifts = []
new PerformanceObserver(list => shifts.push(...list.getEntries().map(it => it.value)))
    .observe({type: 'layout-shift', buffered: true})"""


@pytest.mark.parametrize(("at", "number"), [("top", 0), ("top", 25), ("thread", 25), ("end", 25)])
def test_a_slow_response_moves_nothing(view: View, at: str, number: int) -> None:
    page = view.page
    fill(view.app, number)
    page.add_init_script(SHIFTS)
    held = hold(page, r"/comments\?")
    view.site.pages.update(article(view.site.service))
    page.goto(view.site.address + POST)
    wait = page.locator("commentd-thread .wait")
    expect(wait).to_be_visible()
    expect(page.get_by_label("写下你的想法…")).to_be_visible()
    if at == "thread":
        page.locator("h2").evaluate("it => it.scrollIntoView()")
        expect(wait).to_be_in_viewport()
    footer = page.locator("body > footer")
    if at == "end":
        page.evaluate("scrollTo(0, 1e6)")
        expect(footer).to_be_in_viewport()
        idle(page)  # drawn there: only then, the browser holds the page at what is seen
    else:
        expect(footer).not_to_be_in_viewport()
    held[0].continue_()
    expect(page.locator("commentd-thread .head > *").first).to_be_visible()
    expect(wait).to_have_count(0)
    idle(page)
    idle(page)
    assert page.evaluate("shifts") == []


FOOTER = "<footer style='height: 120px'>The end.</footer>"
TOP = "node => node.getBoundingClientRect().top"


@pytest.mark.parametrize("number", [0, 1, 100])
@pytest.mark.parametrize("at", ["", "#comments"])
def test_few_comments_bring_up_nothing_that_follows_them(view: View, number: int, at: str) -> None:
    page = view.page
    fill(view.app, number)
    page.add_init_script(SHIFTS)
    held = hold(page, r"/comments\?")
    thread = f"<p>A short post.</p>{HELD}<commentd-thread></commentd-thread>{FOOTER}"
    view(TAG + thread, at=at)
    expect(page.locator("commentd-thread .wait")).to_be_visible()
    footer = page.locator("footer")
    expect(footer).not_to_be_in_viewport()
    while not held:
        idle(page)
    held[0].continue_()
    expect(page.locator("commentd-thread .head > *").first).to_be_visible()
    idle(page)
    idle(page)
    assert page.evaluate("shifts") == []
    expect(footer).not_to_be_in_viewport()


def test_a_place_that_few_comments_do_not_fill_goes_where_nobody_sees_it(view: View) -> None:
    page = view.page
    post = "<p style='height: 1200px'>A post.</p>"
    view(f"{TAG}{post}{HELD}<commentd-thread></commentd-thread>{FOOTER}", at="#comments")
    expect(page.locator("commentd-thread .none")).to_be_visible()
    thread = page.locator("commentd-thread")
    height = "node => node.clientHeight"
    assert thread.evaluate(height) > 600
    page.mouse.wheel(0, -300)
    page.wait_for_function("document.querySelector('commentd-thread').clientHeight < 500")
    page.mouse.wheel(0, -900)
    page.wait_for_function("document.querySelector('commentd-thread').clientHeight < 200")


ENTRANCE = """<style>
  @keyframes enter { from { transform: translateY(40px) } }
  main { animation: enter 1s }
  header { position: fixed; inset: 0 0 auto; height: 60px; background: #ccc }
</style>"""


@pytest.mark.parametrize("header", ["<header>A header.</header>", ""])
def test_a_link_to_the_comments_leaves_the_field_uncovered(view: View, header: str) -> None:
    post = "<p style='height: 1200px'>A post.</p>"
    thread = f"{ENTRANCE}{HELD}<main>{post}<commentd-thread></commentd-thread></main>"
    page = view(f"{TAG}{header}{thread}", at="#comments")
    expect(page.locator("commentd-thread .none")).to_be_visible()
    least = 60 if header else -1
    place = f"({TOP})(document.querySelector('commentd-thread'))"
    entered = "document.getAnimations().length === 0"
    page.wait_for_function(f"() => {entered} && {place} >= {least} && {place} < {least} + 20")


def test_comments_that_a_page_was_opened_at_stay_at_the_top_of_the_window(view: View) -> None:
    view.page.add_init_script("performance.now = () => 0")  # the page is watched all the time
    still = "<style>body { overflow-anchor: none }</style>"
    post = f"{still}<p style='height: 1200px'>A post.</p>"
    body = f"{TAG}{post}{HELD}<commentd-thread></commentd-thread>{FOOTER}"
    page = view(body, at="#comments")
    thread = page.locator("commentd-thread")
    expect(thread.locator(".none")).to_be_visible()
    place = f"({TOP})(document.querySelector('commentd-thread'))"
    page.wait_for_function(f"() => Math.abs({place}) < 2")
    grow = "(post, height) => { post.style.height = height }"
    page.locator("p").first.evaluate(grow, "1600px")
    assert thread.evaluate(TOP) > 300
    page.evaluate("scrollBy(0, 1)")
    idle(page)
    page.locator("p").first.evaluate(grow, "1200px")
    idle(page)
    assert abs(thread.evaluate(TOP)) < 2


def test_a_style_that_comes_after_the_widget_leaves_readers_at_the_comments(view: View) -> None:
    page = view.page
    held = hold(page, "/late.css")
    late = {"Content-Type": "text/css"}
    view.site.pages["/late.css"] = (late, "p { height: 1200px }")
    head = "<link rel='stylesheet' href='/late.css'>"
    thread = f"<p>A post.</p>{HELD}<commentd-thread id='comments'></commentd-thread>{FOOTER}"
    view.site.write(TAG + thread, head=head)
    page.goto(f"{view.site.address}{POST}#comments", wait_until="commit")
    drawn = "document.querySelector('commentd-thread')?.shadowRoot?.querySelector('.none')"
    page.wait_for_function(drawn, polling=100)  # nothing is painted yet
    held[0].continue_()
    page.wait_for_load_state()
    place = f"({TOP})(document.querySelector('commentd-thread'))"
    page.wait_for_function(f"() => Math.abs({place}) < 2 && scrollY > 1000")


def test_a_reader_who_scrolls_on_is_not_taken_back_to_the_field(view: View) -> None:
    fill(view.app, 20)
    post = "<p style='height: 1200px'>A post.</p>"
    thread = f"<header>A header.</header>{ENTRANCE}{HELD}{post}<commentd-thread></commentd-thread>"
    page = view(TAG + thread, at="#comments")
    place = f"({TOP})(document.querySelector('commentd-thread'))"
    page.wait_for_function(f"() => {place} >= 60")
    page.mouse.move(200, 300)
    page.mouse.wheel(0, 60)
    page.wait_for_function(f"() => {place} < 30")
    idle(page)
    idle(page)
    assert page.evaluate(place) < 30


def test_a_link_is_there_until_the_widget_is_and_for_good_where_it_cannot_load(view: View) -> None:
    link = "<a href='SERVICE/thread?url=/2026/lines/'>Read the comments</a>"
    body = f"{TAG}{HELD}<commentd-thread>{link}</commentd-thread>"
    page = view.page
    page.route("**/embed.js", lambda route: route.fulfill(status=404))
    view(body)
    thread, to_comments = page.locator("commentd-thread"), page.get_by_role("link")
    expect(to_comments).to_be_visible()
    height = "node => node.clientHeight"
    assert thread.evaluate(height) > 600
    page.evaluate("document.getAnimations().forEach(each => each.finish())")  # in 20 seconds
    assert thread.evaluate(height) < 100
    page.unroute("**/embed.js")
    view(body)
    expect(thread.locator("textarea")).to_be_visible()
    expect(to_comments).to_have_count(0)
    expect_only(view.faults, "Failed to load")


def test_a_reader_who_is_offline_is_told_and_can_try_again(view: View) -> None:
    page = view.page
    fill(view.app, 15)
    view("<main>A post.</main>", head=PLAIN_TAG)
    page.context.set_offline(True)
    page.locator("main").evaluate("it => it.append(document.createElement('commentd-thread'))")
    alert, again = page.get_by_role("alert"), button(page, "重试")
    expect(alert).to_contain_text("连不上评论服务")
    with page.expect_event("requestfailed"):
        again.press("Enter")
    expect(again).to_be_focused()
    page.context.set_offline(False)
    page.wait_for_function("navigator.onLine")
    page.keyboard.press("Enter")
    expect(page.locator("article").first).to_be_focused()
    expect(page.locator("article")).to_have_count(10)
    begin_to_read(page)
    page.context.set_offline(True)
    more = button(page, "显示更多")
    more.click()
    expect(alert).to_contain_text("连不上评论服务")
    assert texts(page) == nos(15, 6)
    page.context.set_offline(False)
    more.click()
    expect(page.locator("article").nth(10)).to_be_focused()
    assert texts(page) == nos(15, 1)
    expect(alert).to_have_count(0)
    expect_only(view.faults, "DISCONNECTED|could not be loaded")


# Each of its tasks begins as soon as the one before it ends.
BUSY = """<script>
const {port1, port2} = new MessageChannel()
port1.onmessage = () => {
  const end = performance.now() + 20
  while (performance.now() < end);
  port2.postMessage('')
}
port2.postMessage('')
</script>"""


def test_menus_and_keys_come_on_a_page_that_is_never_idle(app: App, view: View) -> None:
    say(app, "First.")
    page = view(TAG + BUSY)
    begin_to_read(page)
    expect(page.locator(".quiet")).to_have_count(1)


NO_COMMENTS = [
    (500, '{"error": "服务出错了", "code": "internal"}'),
    (502, "<html><h1>502 Bad Gateway</h1></html>"),
    (200, "<!doctype html><title>Sign in to the hotel</title>"),
    (200, '{"comments": ['),
    (200, "{}"),
    (404, '{"error": "没有这个网址", "code": "not_found"}'),
]


def test_a_response_without_comments_is_said_and_can_be_asked_for_again(view: View) -> None:
    say(view.app, "Hello.")
    page, alert = view(lang="en"), view.page.get_by_role("alert")
    instead: Json = {"headers": {"Access-Control-Allow-Origin": "*"}}

    def respond(route: Route) -> None:
        route.fulfill(**instead)

    for number, (status, body) in enumerate(NO_COMMENTS, 1):
        expect(page.locator(".body")).to_have_text("Hello.")
        kind = "text/html" if body[0] == "<" else "application/json"
        instead.update(status=status, body=body, content_type=kind)
        page.route("**/comments?*", respond, times=1)
        set_attributes(page, {"limit": f"{number}"})
        is_away = status == 502
        text = (
            "Comments can’t be reached. What you write is kept."
            if is_away
            else "Comments can’t be shown."
        )
        expect(alert).to_contain_text(text)
        shown = page.locator("commentd-thread section").inner_text()
        assert not re.search(r"undefined|\[object|[一-鿿]", shown), body
        button(page, "Try again").click()
    expect(page.locator(".body")).to_have_text("Hello.")
    assert len([fault for fault in view.faults if "sent no list of comments" in fault]) == 1
    expect_only(view.faults, "^Failed to load|sent no list of comments")


@service_with(site_origins=("https://blog.example",))
def test_a_blog_that_may_not_use_the_service_is_told(view: View) -> None:
    page = view()
    expect(page.get_by_role("alert")).to_have_text("此网站未开通评论服务。")
    expect_only(view.faults, "CORS|Failed")


def test_an_ad_blocker_is_not_taken_for_a_missing_setting(view: View) -> None:
    view.page.route("**/comments?*", lambda route: route.abort("blockedbyclient"))
    page = view()
    expect(page.get_by_role("alert")).to_contain_text("连不上评论服务")
    expect_only(view.faults, "^Failed to load")


def test_a_fault_of_the_script_is_not_taken_for_a_missing_setting(view: View) -> None:
    say(view.app, "A secret.")
    # The number of comments is written when the list is there.
    break_it = "Number.prototype.toLocaleString = () => { throw new TypeError('broken') }"
    page = view(f"<script>{break_it}</script>{TAG}")
    expect(page.get_by_role("alert")).to_have_text("评论无法显示。")
    assert "A secret." not in "".join(view.faults)
    assert [fault for fault in view.faults if "the comments can’t be shown" in fault]
    expect_only(view.faults, "TypeError: broken")
