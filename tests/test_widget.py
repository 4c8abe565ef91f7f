"""The widget in a real Chromium, on a page of another origin, over plain http: embedding, reading,
hostile texts, hostile pages, a bad network. `test_writing.py` has its forms."""

import json
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from blog import (
    OWNER,
    POST,
    Change,
    Json,
    Pages,
    answering,
    article,
    blog,
    changed_json,
    conversation,
    new_context,
    painted,
    say,
    service,
)
from conftest import Outside
from inside import add_account, moderate, sql, token_of
from playwright.sync_api import Browser, Locator, Page, Route, expect
from webob import Request
from webtest import TestApp

from commentd import App

pytestmark = pytest.mark.slow

STATIC = Path(__file__).parent.parent / "static"
EMBED = STATIC / "embed.js"
README = (STATIC.parent / "README.md").read_text("utf-8")
TAG = '<script src="SERVICE/embed.js" async></script>'
TAGS = [TAG, TAG.replace(" async", " defer"), TAG.replace(" async", "")]
QUERY = {"url": POST, "view": "threads", "sort": "newest", "limit": "10", "page": "1"}
TWO = f"""<commentd-thread page="/first/"></commentd-thread>
    <commentd-thread page="/second/"></commentd-thread>{TAG}"""


# Ground


@pytest.fixture
def outside() -> Outside:
    """The clock of the service stands still at the hour of the browser's."""
    made = Outside()
    made.time = int(time.time())
    return made


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"server_listen": "127.0.0.1:0", "limits_enabled": False}


@dataclass
class Site:
    """A blog whose pages a test writes, and the service of their comments."""

    pages: Pages
    address: str
    service: str

    def write(self, body: str, path: str = POST, *, head: str = "", lang: str = "zh-CN") -> None:
        self.pages[path] = ({}, self.html(body, head=head, lang=lang))

    def html(self, body: str, *, head: str = "", lang: str = "zh-CN") -> str:
        return f"""<!doctype html><html lang="{lang}"><meta charset="utf-8"><title>A post</title>
            <link rel="icon" href="data:,">{head}<body>{body}""".replace("SERVICE", self.service)


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    pages: Pages = {}
    with service(app) as address, blog(pages) as home:
        yield Site(pages, home, address)


@pytest.fixture
def options() -> dict[str, Any]:
    """The browser's; a test that wants others parametrizes this."""
    return {"locale": "zh-CN"}


@pytest.fixture
def faults() -> list[str]:
    """What the console and the page complained about. A test that expects some clears it."""
    return []


@pytest.fixture
def asked() -> list[str]:
    """Methods and addresses of all requests."""
    return []


@pytest.fixture
def page(
    site: Site, browser: Browser, options: dict[str, Any], faults: list[str], asked: list[str]
) -> Iterator[Page]:
    """It goes before the site does, so that what it asks for at the end finds somebody."""
    context = new_context(browser, **options)
    page = context.new_page()
    page.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(f"{error.name}: {error}"))
    page.on("dialog", lambda dialog: faults.append(dialog.message) or dialog.dismiss())
    page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    yield page
    context.close()
    assert faults == []


@pytest.fixture
def view(page: Page, site: Site) -> Callable[..., Page]:
    """Opens a page of the blog with this body, in which something is to be seen at once."""

    def view(body: str = TAG, path: str = POST, *, at: str = "", **more: str) -> Page:
        site.write(body, path, **more)
        if "#" in at:
            page.goto("about:blank")  # else the browser may stay on the page and only jump
        page.goto(site.address + path + at)
        return painted(page)

    return view


def lists(asked: list[str]) -> list[dict[str, str]]:
    """What was asked for of each list of comments."""
    targets = [urlsplit(line.split()[1]) for line in asked if line.startswith("GET ")]
    queries = [parse_qs(t.query, keep_blank_values=True) for t in targets if t.path == "/comments"]
    return [{name: values[0] for name, values in query.items()} for query in queries]


def comment(page: Page, text: str) -> Locator:
    """The article whose own text holds this."""
    return page.locator("commentd-thread article").filter(has_text=text)


def texts(page: Page, thread: str = "commentd-thread") -> list[str]:
    return page.locator(thread).locator("article .body").all_inner_texts()


def settled(page: Page) -> None:
    """All that was asked for is there."""
    page.wait_for_load_state("networkidle")


def fill(app: App, number: int, path: str = POST, **fields: Any) -> list[int]:
    """Comments that say "No. 1" and so on, the first the oldest; their ids."""
    return [
        say(app, f"No. {n}.", f"Guest {n}", page=path, hours=1000 - n, **fields)
        for n in range(1, number + 1)
    ]


def hold(page: Page, pattern: str) -> list[Route]:
    """Requests that wait from now on, until the test lets them go."""
    held: list[Route] = []
    page.route(re.compile(pattern), lambda route: held.append(route))
    return held


def jump(page: Page, number: int) -> None:
    """As a link on the page to a comment does."""
    page.evaluate("number => { location.hash = '#comment-' + number }", number)


def expect_target(page: Page, text: str) -> None:
    """The link in the address led to the comment with this text."""
    target = page.locator("[data-target]")
    expect(target).to_contain_text(text)
    expect(target).to_be_in_viewport()
    expect(target).to_be_focused()


@contextmanager
def altering(
    app: App, change: Callable[[list[Json]], None], path: str = "/comments"
) -> Iterator[None]:
    """Lets `change` alter the comments in each answer of the service to this path."""

    def altered(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] == path:
            comments = json.loads(body)["comments"]
            change(comments)
            body = changed_json(body, comments=comments)
        return status, headers, body

    with answering(app, altered):
        yield


def idle(page: Page) -> None:
    """What the page was about to ask for at once has been asked."""
    page.evaluate("() => new Promise(go => requestAnimationFrame(() => setTimeout(go)))")


# Embedding


def test_one_tag_puts_the_comments_of_the_page_behind_itself(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    conversation(app)
    for tag in TAGS:
        asked.clear()
        page = view(f"<h2>评论</h2>{tag}<footer>End</footer>")
        expect(comment(page, "一行")).to_have_count(1)
        expect(page.locator("article")).to_have_count(7)
        expect(page.locator("h2 + script + commentd-thread + footer")).to_have_count(1)
        assert lists(asked) == [QUERY], tag


ATTRIBUTES = [
    ('page="/other/"', {"url": "/other/"}),
    ('page="/某页/?n=1"', {"url": "/某页/?n=1"}),
    ('page=""', {"url": POST}),
    ('sort="oldest"', {"sort": "oldest"}),
    ('sort="likes"', {"sort": "likes"}),
    ('sort="best&amp;limit=99"', {"sort": "newest"}),
    ('sort="constructor"', {"sort": "newest"}),
    ('limit="3"', {"limit": "3"}),
    ('limit="1000"', {"limit": "100"}),
    ('limit="0"', {"limit": "10"}),
    ('limit="-5"', {"limit": "10"}),
    ('limit="many"', {"limit": "10"}),
    ('loading="sometimes"', {}),
]


def test_attributes_say_what_is_shown_and_bad_ones_are_as_none(
    view: Callable[..., Page], asked: list[str]
) -> None:
    threads = [f"<commentd-thread {attribute}></commentd-thread>" for attribute, _ in ATTRIBUTES]
    page = view("".join(threads) + TAG)
    expect(page.locator("commentd-thread .none")).to_have_count(len(ATTRIBUTES))
    assert lists(asked) == [QUERY | wanted for _, wanted in ATTRIBUTES]


NONE = {
    "en": "No comments yet.",
    "zh-CN": "还没有评论",
    "zh-TW": "還沒有",
    "fr": "commentaire",
    "de": "Kommentare",
}
SPOKEN = [  # the language around an element, its attribute, and what it speaks
    ("en", "", "en"),
    ("zh-CN", "", "zh-CN"),
    ("ZH", "", "zh-CN"),
    ("zh-Hans-HK", "", "zh-CN"),
    ("zh-Hant", "", "zh-TW"),
    ("en", "lang=zh-TW", "zh-TW"),
    ("fr-CA", "", "fr"),
    ("DE", "", "de"),
    ("sv", "", "en"),
    ("arn", "", "en"),
    ("zh-CN", "lang=en", "en"),
    ("zh-CN", "lang=xx-bad_tag", "en"),
    ("zh-CN", "lang", "zh-CN"),
]


@pytest.mark.parametrize("options", [{"locale": "zh-CN"}, {"locale": "de-DE"}], ids=["zh", "de"])
def test_the_language_is_the_nearest_one_else_that_of_the_browser(
    view: Callable[..., Page], options: Json
) -> None:
    body = "".join(
        f"<main lang={lang}><div><commentd-thread {attribute}></commentd-thread></div></main>"
        for lang, attribute, _ in SPOKEN
    )
    page = view(f"{body}<commentd-thread></commentd-thread>{TAG}", lang="")
    default = "zh-CN" if options["locale"] == "zh-CN" else "de"
    for number, wanted in enumerate([*(wanted for *_, wanted in SPOKEN), default]):
        thread = page.locator("commentd-thread").nth(number)
        expect(thread.locator(".none")).to_contain_text(NONE[wanted])
        expect(thread.locator("section")).to_have_attribute("lang", wanted)
    for lang, wanted in (("fr-CA", "fr"), ("zh-Hant", "zh-TW")):
        view(lang=lang)
        expect(page.locator(".none")).to_contain_text(NONE[wanted])


def test_a_browser_without_sheets_for_shadow_roots_gets_a_link_to_the_thread(
    app: App, page: Page, view: Callable[..., Page], site: Site, faults: list[str]
) -> None:
    fill(app, 1)
    page.add_init_script("""
        delete ShadowRoot.prototype.adoptedStyleSheets
        window.CSSStyleSheet = class { constructor() { throw new TypeError('Illegal') } }""")
    for lang, name in (("zh-CN", "评论"), ("de", "Comments")):
        view(lang=lang)
        expect(page.locator("commentd-thread")).to_have_count(0)
        assert faults == ["TypeError: Illegal"]
        faults.clear()
        page.get_by_role("link", name=name).click()
        assert page.url.startswith(f"{site.service}/thread?url=")
        expect(page.get_by_text("No. 1.")).to_be_visible()


def test_a_lazy_thread_waits_until_it_is_near_or_a_link_leads_into_it(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    number = fill(app, 3)[0]
    essay = f'<h2 id="part">One</h2><a href="#comment-{number}">See there</a>'
    far = '<div style="height: 9000px">An essay</div><commentd-thread loading=lazy>'
    body = f"{essay}{far}</commentd-thread>{TAG}"
    page = view(body)
    expect(page.locator("commentd-thread:defined")).to_have_count(1)
    for change in ("", "history.replaceState({scroll: 9}, '')", "location.hash = '#part'"):
        page.evaluate(f"() => {{ {change} }}")
        idle(page)
        idle(page)
        assert lists(asked) == [], change
    page.mouse.wheel(0, 9000)
    expect(comment(page, "No. 1.")).to_be_visible()
    assert len(lists(asked)) == 1
    view(body, at=f"#comment-{number}")
    expect(comment(page, "No. 1.")).to_be_in_viewport()
    view(body, at="#part")
    expect(page.locator("commentd-thread:defined")).to_have_count(1)
    page.get_by_text("See there").click()
    expect(comment(page, "No. 1.")).to_be_in_viewport()


def test_several_threads_of_one_page_are_each_their_own(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    fill(app, 25, "/first/")
    ids = fill(app, 25, "/second/")
    for name in ("first", "second"):
        say(app, f"Of the {name}.", page=f"/{name}/", hours=0)
    page = view(TWO)
    for name in ("first", "second"):
        expect(page.locator(f"[page='/{name}/'] .body").first).to_have_text(f"Of the {name}.")
    assert [query["url"] for query in lists(asked)] == ["/first/", "/second/"]
    view(TWO, at=f"#comment-{ids[0]}")
    first, second = page.locator("[page='/first/']"), page.locator("[page='/second/']")
    expect(second.locator("[data-target]")).to_contain_text("No. 1.")
    expect(second.locator("[data-target]")).to_be_in_viewport()
    expect(first.locator("article")).to_have_count(10)
    first.get_by_role("button", name="显示更多").click()
    expect(first.locator("article")).to_have_count(20)
    jump(page, ids[1])
    expect(second.locator("[data-target]")).to_contain_text("No. 2.")
    settled(page)
    expect(first.locator("article")).to_have_count(20)
    expect(first.locator("[data-target]")).to_have_count(0)
    assert page.evaluate("document.activeElement.getAttribute('page')") == "/second/"


def test_a_script_in_the_head_serves_the_element_in_the_body(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Hello.")
    for tag in (TAG, TAGS[2]):
        page = view("<commentd-thread></commentd-thread>", head=tag)
        expect(page.locator(".body")).to_have_text("Hello.")
        expect(page.locator("commentd-thread")).to_have_count(1)
    asked.clear()
    for body in ("<p>No element.</p>", "<form name=head>No element.</form>"):
        view(body, head=TAG)
        page.wait_for_function("() => !!customElements.get('commentd-thread')")
        idle(page)
        expect(page.locator("commentd-thread")).to_have_count(0)
    assert lists(asked) == []


def test_a_script_that_is_there_twice_makes_one_thread(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Hello.")
    for body in (
        TAG + TAG,
        f"<div>{TAG}</div><p>Between</p>{TAG}",
        f"<commentd-thread></commentd-thread>{TAG}{TAG}",
        TAGS[2] + TAGS[2],
        TAGS[2] + "<p>Between</p>" + TAG,
    ):
        asked.clear()
        page = view(body + "<i data-commentd-count=/2026/lines/></i>", head=TAG)
        expect(page.locator(".body")).to_have_text("Hello.")
        expect(page.locator("i")).to_have_text("1")
        settled(page)
        expect(page.locator("commentd-thread")).to_have_count(1)
        assert len(lists(asked)) == 1, body
        assert len([line for line in asked if "/pages?" in line]) == 1, body


def test_tags_and_elements_that_a_script_adds_make_their_threads(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Of the second.", page="/second/")
    say(app, "Hello.", page="/made/")
    page = view(f"<main>{TAG}</main>")
    expect(page.locator(".none")).to_be_visible()
    page.evaluate("""() => {
        const tag = document.createElement('script')
        tag.src = document.querySelector('script').src
        history.pushState(null, '', '/second/')
        document.querySelector('main').replaceChildren(tag)
    }""")
    expect(page.locator(".body")).to_have_text("Of the second.")
    page.evaluate("""() => {
        const thread = document.createElement('commentd-thread')
        thread.setAttribute('page', '/wrong/')
        thread.setAttribute('page', '/made/')
        thread.lang = 'en'
        document.querySelector('main').replaceChildren(thread)
    }""")
    expect(page.locator("main .body")).to_have_text("Hello.")
    expect(page.get_by_label("Write a comment…")).to_be_visible()
    assert [query["url"] for query in lists(asked)] == [POST, "/second/", "/made/"]


def test_a_changed_attribute_asks_once_and_replaces_what_was_there(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Of the first.", page="/first/")
    say(app, "Of the second.", page="/second/")
    page = view("<commentd-thread page=/first/ limit=5></commentd-thread>" + TAG)
    expect(page.locator(".body")).to_have_text("Of the first.")

    def change(**attributes: str) -> None:
        set_all = "(it, all) => { for (const [k, v] of Object.entries(all)) it.setAttribute(k, v) }"
        page.locator("commentd-thread").evaluate(set_all, attributes)

    for attributes, url, sort in (
        ({"page": "/second/"}, "/second/", "newest"),
        ({"sort": "oldest"}, "/second/", "oldest"),
        ({"lang": "en"}, "/second/", "oldest"),
        ({"page": "/first/", "sort": "newest"}, "/first/", "newest"),
    ):
        asked.clear()
        change(**attributes)
        text = "Of the second." if url == "/second/" else "Of the first."
        expect(page.locator(".body")).to_have_text(text)
        page.wait_for_function("() => !document.querySelector('commentd-thread').shadowRoot"
                               ".querySelector('.wait')")  # fmt: skip
        expect(page.locator("section")).to_have_count(1)
        settled(page)
        found = [(query["url"], query["sort"]) for query in lists(asked)]
        assert found == [(url, sort)], attributes
    change(page="/first/", limit="05", sort="newest")
    idle(page)
    assert len(lists(asked)) == 1


def test_a_theme_gives_the_text_its_colour(view: Callable[..., Page]) -> None:
    themes = ("light", "dark", "", "x")
    threads = [f"<commentd-thread theme='{theme}'></commentd-thread>" for theme in themes]
    page = view("".join(threads) + TAG)
    expect(page.get_by_text("还没有评论")).to_have_count(4)
    for number, theme in enumerate(themes):
        light = r"0\.[12]" if theme == "dark" else r"0 0 0\)$"
        colour = re.compile(r"^color\(xyz-d65 " + light)
        expect(page.locator("section").nth(number)).to_have_css("color", colour)


@pytest.mark.parametrize("end", ["continue", "abort"])
def test_an_answer_for_the_page_before_is_dropped(
    app: App, view: Callable[..., Page], page: Page, faults: list[str], end: str
) -> None:
    say(app, "Of the first.", page="/first/")
    say(app, "Of the second.", page="/second/")
    held = hold(page, r"comments\?url=%2Ffirst")
    view("<commentd-thread page=/first/></commentd-thread>" + TAG)
    expect(page.locator("commentd-thread")).to_have_js_property("language", "zh-CN")
    expect(page.locator(".wait")).to_be_attached()
    page.locator("commentd-thread").evaluate("it => it.setAttribute('page', '/second/')")
    expect(page.locator(".body")).to_have_text("Of the second.")
    if end == "continue":
        with page.expect_response(re.compile("first")):
            held[0].continue_()
    else:
        with page.expect_event("requestfailed"):
            held[0].abort()
    settled(page)
    assert texts(page) == ["Of the second."]
    expect(page.get_by_role("alert")).to_have_count(0)
    faults.clear()  # what the browser says of a request that failed


def test_an_element_is_moved_put_back_on_another_route_and_taken_away(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    ids = fill(app, 12)
    say(app, "Of the second.", page="/second/")
    page = view("<main></main><aside><commentd-thread limit=20></commentd-thread></aside>" + TAG)
    expect(page.locator("article")).to_have_count(12)
    page.evaluate("""() => {
        const thread = document.querySelector('commentd-thread')
        thread.remove()
        document.querySelector('main').append(thread)
        document.body.append(thread)
        document.querySelector('main').append(thread)
    }""")
    jump(page, ids[0])
    expect(page.locator("main [data-target]")).to_contain_text("No. 1.")
    comment(page, "No. 1.").get_by_role("button", name="赞 0").click()
    expect(comment(page, "No. 1.").get_by_role("button", name="赞 1")).to_be_visible()
    settled(page)
    assert len(lists(asked)) == 1
    assert len([line for line in asked if line.endswith("/comment/like")]) == 1
    assert page.locator("commentd-thread").evaluate("it => it.childElementCount") <= 1
    page.evaluate("""() => {
        const thread = document.querySelector('commentd-thread')
        thread.remove()
        history.pushState(null, '', '/second/')
        document.body.append(thread)
    }""")
    expect(page.locator(".body")).to_have_text("Of the second.")
    assert [query["url"] for query in lists(asked)] == [POST, "/second/"]
    asked.clear()
    page.locator("commentd-thread").evaluate("it => it.remove()")
    page.evaluate("location.hash = '#comment-99'")
    idle(page)
    assert [line for line in asked if "/comments" in line] == []


def test_an_element_that_goes_while_it_loads_leaves_nothing_behind(
    app: App, view: Callable[..., Page], page: Page, asked: list[str]
) -> None:
    number = fill(app, 2)[0]
    held = hold(page, r"/comments\?")
    view(at=f"#comment-{number}")
    expect(page.locator(".wait")).to_be_attached()
    page.locator("commentd-thread").evaluate("it => it.remove()")
    with page.expect_response(re.compile(r"/comments\?")):
        held[0].continue_()
    page.evaluate("location.hash = '#comment-99'")
    idle(page)
    assert len(lists(asked)) == 1


def test_the_page_is_that_of_the_canonical_link_else_that_of_the_address(
    view: Callable[..., Page], asked: list[str]
) -> None:
    for at, canonical, wanted in (
        ("", "", POST),
        ("?id=3&utm_source=feed", "", POST + "?id=3&utm_source=feed"),
        ("?id=3#top", "", POST + "?id=3"),
        ("?id=3", "/real/", "/real/"),
        ("", "https://blog.example/real/?n=2#top", "/real/?n=2"),
        ("", "../other/", "/2026/other/"),
        ("", "http://[broken/", POST),
        ("#/notes/1", "", POST + "#/notes/1"),
        ("#!/notes/1", "", POST + "#!/notes/1"),
    ):
        asked.clear()
        head = f'<link rel="canonical" href="{canonical}">' if canonical else ""
        page = view(head=head, at=at)
        expect(page.locator(".none")).to_be_visible()
        assert [query["url"] for query in lists(asked)] == [wanted], (at, canonical)


def test_a_chinese_path_is_one_page_however_it_is_spelt(
    app: App, view: Callable[..., Page]
) -> None:
    path = "/2026/%E4%B8%AD%E6%96%87/"
    say(app, "甲", page="/2026/中文/")
    say(app, "乙", page=path)
    counts = f'<i data-commentd-count="{path}"></i><i data-commentd-count="/2026/中文"></i>'
    page = view(counts + TAG, path)
    expect(page.locator(".body")).to_have_text(["乙", "甲"])
    expect(page.locator("i")).to_have_text(["2", "2"])


# Counts


def counted(asked: list[str]) -> list[list[str]]:
    """The pages in each request for counts."""
    lines = [line for line in asked if "/pages?" in line]
    for line in lines:
        target = urlsplit(line.split()[1])
        assert len(f"GET {target.path}?{target.query} HTTP/1.1") < 8192
    return [parse_qs(urlsplit(line).query, keep_blank_values=True)["url"] for line in lines]


def test_all_counts_of_a_page_come_by_one_request(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    fill(app, 3, "/three/")
    say(app, "Hello.", page="/one/")
    fill(app, 2, "/late/")
    wanted = ["/three/", "/one/", "/unknown/", "", "/three/"]
    marks = "".join(f'<i data-commentd-count="{path}">?</i>' for path in wanted)
    page = view(f"{marks}<main></main>", head=TAG)
    expect(page.locator("i")).to_have_text(["3", "1", "0", "0", "3"])
    settled(page)
    asked_for = [path or POST for path in wanted]
    assert counted(asked) == [asked_for]
    assert lists(asked) == []
    page.evaluate("""() => {
        const [item, mark] = ['p', 'i'].map(tag => document.createElement(tag))
        mark.dataset.commentdCount = '/late/'
        item.append(mark)
        document.querySelector('main').append(item)
    }""")
    expect(page.locator("main i")).to_have_text("2")
    settled(page)
    assert counted(asked) == [asked_for, ["/late/"]]


def test_many_counts_and_long_addresses_come_in_requests_that_every_proxy_passes(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    last = "/last/" + "字" * 300
    say(app, "Hello.", page=last)
    hundred = [f"/2026/{n}/" for n in range(130)]
    long = ("a" * 1980, "a" * 1980 + "a/" * 30, "字" * 300, "/" * 1980)
    for paths in (hundred, *([f"/{n}/" + letters for n in range(8)] for letters in long)):
        asked.clear()
        wanted = [*paths, last]
        page = view("".join(f'<i data-commentd-count="{path}"></i>' for path in wanted), head=TAG)
        expect(page.locator("i")).to_have_text(["0"] * len(paths) + ["1"])
        settled(page)
        requests = counted(asked)
        assert [path for paths in requests for path in paths] == wanted
        assert paths is not hundred or len(requests[0]) == 100


# Events

RECORD = """<script>window.events = []
for (const type of ['commentd:loaded', 'commentd:posted']) addEventListener(type, event => {
    events.push([type, event.bubbles, event.composed, event.target.localName, event.detail])
})</script>"""


def write_comment(page: Page, text: str, name: str = "林深") -> None:
    page.get_by_label("写下你的想法…").fill(text)
    page.get_by_label("昵称").fill(name)
    page.get_by_role("button", name="发表评论").click()


def test_the_page_is_told_when_comments_are_there_and_when_one_is_posted(
    app: App, view: Callable[..., Page]
) -> None:
    fill(app, 12)
    page = view(head=RECORD)
    expect(page.locator("article")).to_have_count(10)
    loaded = ["commentd:loaded", True, True, "commentd-thread", {"page_url": POST, "total": 12}]
    assert page.evaluate("events") == [loaded]
    write_comment(page, "Mine.")
    expect(comment(page, "Mine.")).to_be_focused()
    told = page.evaluate("events[1]")
    assert told[:4] == ["commentd:posted", True, True, "commentd-thread"]
    assert (told[4]["comment"]["content"], told[4]["comment"]["page_url"]) == ("Mine.", POST)
    assert "edit_token" not in json.dumps(told)


# Reading


def nested(app: App, number: int) -> list[int]:
    """Comments by A, B, C…, each an answer to the one before it; their ids."""
    ids: list[int] = []
    for n in range(number):
        parent = ids[-1] if ids else None
        name = "ABCDEFGH"[n]
        ids.append(say(app, f"Depth {n}.", name, hours=100 - n, parent_id=parent))
    return ids


def left_of(article: Locator) -> float:
    box = article.bounding_box()
    assert box
    return box["x"]


def test_answers_are_indented_twice_and_then_say_whom_they_answer(
    app: App, view: Callable[..., Page]
) -> None:
    ids = nested(app, 6)
    say(app, "Late.", "Z", hours=1, parent_id=ids[2])
    page = view()
    expect(page.locator("article .body")).to_have_text(
        [*(f"Depth {n}." for n in range(6)), "Late."]
    )
    metas = page.locator(".meta").all_inner_texts()
    assert [line.splitlines()[0] for line in metas] == [*"ABCDEF", "Z"]
    said = [re.findall(r"›\s*(\w)", line) for line in metas]
    assert said == [[], [], [], ["C"], ["D"], ["E"], ["C"]]
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 720})
        lefts = [left_of(article) for article in page.locator("article").all()]
        assert lefts[0] < lefts[1] < lefts[2], width
        assert {*lefts[2:]} == {lefts[2]}, width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


def test_an_answer_to_a_list_stands_beside_it_and_not_in_it(
    app: App, view: Callable[..., Page]
) -> None:
    listed = say(app, "1. first\n2. second\n\n- third", "A", hours=3)
    answer = say(app, "I prefer the second.", "B", hours=2, parent_id=listed)
    say(app, "1. so\n2. do\n3. I", "C", hours=1, parent_id=answer)
    page = view()
    expect(page.locator("article")).to_have_count(3)
    expect(page.locator(".body article")).to_have_count(0)
    page.get_by_role("button", name="收起回复").first.click()
    expect(page.get_by_role("button", name="展开 2 条回复")).to_be_visible()


def test_answers_are_folded_and_unfolded(app: App, view: Callable[..., Page]) -> None:
    nested(app, 4)
    page = view()
    line = page.locator(".line").first

    def press(how: str) -> None:
        if how == "mouse":
            line.click(position={"x": 12, "y": 20})
        else:
            line.focus()
            page.keyboard.press(how)

    for how in ("mouse", "Enter", "Space"):
        expect(line).to_have_attribute("aria-expanded", "true")
        expect(line).to_have_accessible_name("收起回复")
        press(how)
        expect(line).to_have_attribute("aria-expanded", "false")
        expect(line).to_have_accessible_name("展开 3 条回复")
        expect(comment(page, "Depth 0.")).to_be_visible()
        expect(comment(page, "Depth 1.")).to_be_hidden()
        expect(line).to_be_focused()
        press(how)
        expect(comment(page, "Depth 3.")).to_be_visible()
        expect(line).to_be_focused()


def test_more_comments_come_behind_those_that_are_there_in_the_order_chosen(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    fill(app, 25)
    page = view()
    more, order = page.get_by_role("button", name="显示更多"), page.get_by_label("排序")
    expect(order).to_have_value("newest")
    expect(page.locator("article")).to_have_count(10)
    more.click()
    expect(page.locator("article").nth(10)).to_be_focused()
    expect(page.locator("article")).to_have_count(20)
    more.press("Enter")
    expect(page.locator("article").nth(20)).to_be_focused()
    expect(more).to_have_count(0)
    assert texts(page) == [f"No. {n}." for n in range(25, 0, -1)]
    order.select_option("最早")
    expect(page.locator(".body").first).to_have_text("No. 1.")
    expect(order).to_have_value("oldest")
    more.click()
    expect(page.locator("article")).to_have_count(20)
    assert texts(page) == [f"No. {n}." for n in range(1, 21)]
    found = [(query["sort"], query["page"]) for query in lists(asked)]
    newest, oldest = [("newest", n) for n in "123"], [("oldest", n) for n in "12"]
    assert found == newest + oldest


def test_a_comment_that_comes_between_two_pages_makes_no_double(
    app: App, view: Callable[..., Page]
) -> None:
    fill(app, 25)
    page = view()
    expect(page.locator("article")).to_have_count(10)
    say(app, "Just now.")
    page.get_by_role("button", name="显示更多").click()
    expect(comment(page, "No. 7.")).to_have_count(1)
    assert texts(page) == [f"No. {n}." for n in range(25, 6, -1)]
    expect(comment(page, "No. 15.")).to_be_focused()


def test_the_order_that_was_chosen_last_is_shown_whatever_comes_last(
    app: App, view: Callable[..., Page], page: Page
) -> None:
    for hours, (text, likes) in enumerate((("Some.", 1), ("Most.", 3), ("None.", 0))):
        say(app, text, likes=likes, hours=9 - hours)
    view()
    page.get_by_label("排序").focus()
    page.keyboard.press("End")
    expect(page.locator(".body")).to_have_text(["Most.", "Some.", "None."])
    expect(page.get_by_label("排序")).to_be_focused()
    held = hold(page, "sort=likes")
    view()
    page.get_by_label("排序").select_option("最多赞")
    page.get_by_label("排序").select_option("最早")
    expect(page.locator(".body").first).to_have_text("Some.")
    with page.expect_response(re.compile("sort=likes")):
        held[0].continue_()
    settled(page)
    assert texts(page) == ["Some.", "Most.", "None."]
    expect(page.get_by_label("排序")).to_have_value("oldest")


def test_more_that_comes_when_the_order_has_changed_is_dropped(
    app: App, view: Callable[..., Page], page: Page
) -> None:
    fill(app, 25)
    held = hold(page, "sort=newest.*page=2")
    view()
    page.get_by_role("button", name="显示更多").click()
    page.get_by_label("排序").select_option("最早")
    expect(page.locator(".body").first).to_have_text("No. 1.")
    with page.expect_response(re.compile("sort=newest.*page=2")):
        held[0].continue_()
    settled(page)
    assert texts(page) == [f"No. {n}." for n in range(1, 11)]
    expect(page.get_by_role("button", name="显示更多")).to_have_count(1)


def answers(app: App, number: int, path: str = POST) -> list[int]:
    """A comment with so many answers; the ids of these."""
    top = say(app, "A question.", page=path, hours=2000)
    return [
        say(app, f"Answer {n}.", f"Guest {n}", page=path, hours=1000 - n, parent_id=top)
        for n in range(1, number + 1)
    ]


def test_a_thread_with_hundreds_of_answers_comes_in_hundreds_and_links_lead_into_it(
    app: App, view: Callable[..., Page]
) -> None:
    ids = answers(app, 230)
    page = view()
    more = page.get_by_role("button", name="显示更多")
    for there in (100, 200):
        expect(page.locator("article")).to_have_count(1 + there)
        more.click()
        expect(page.locator("article").nth(1 + there)).to_be_focused()
    expect(more).to_have_count(0)
    assert texts(page)[1:] == [f"Answer {n}." for n in range(1, 231)]
    for arrival in ("load", "hash"):
        view()
        for number in (42, 120, 205):
            if arrival == "load":
                view(at=f"#comment-{ids[number - 1]}")
            else:
                expect(page.locator("article").nth(100)).to_be_attached()
                jump(page, ids[number - 1])
            expect_target(page, f"Answer {number}.")
            assert texts(page)[1:][:100] == [f"Answer {n}." for n in range(1, 101)]


def test_a_link_to_a_comment_of_the_third_page_shows_that_page_and_on_the_page_adds_it(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    ids = fill(app, 25)
    page = view(at=f"#comment-{ids[2]}")
    expect_target(page, "No. 3.")
    settled(page)
    assert texts(page) == [f"No. {n}." for n in range(5, 0, -1)]
    assert len(lists(asked)) == 1
    page.get_by_role("button", name="显示全部").click()
    expect(page.locator("article")).to_have_count(10)
    expect(page.locator("article").first).to_be_focused()
    assert texts(page) == [f"No. {n}." for n in range(25, 15, -1)]
    expect(page.get_by_role("button", name="显示全部")).to_have_count(0)
    asked.clear()
    view()
    expect(page.locator("article")).to_have_count(10)
    jump(page, ids[2])
    expect_target(page, "No. 3.")
    more = page.get_by_role("button", name="显示更多")
    for there in (21, 25):
        more.click()
        expect(page.locator("article")).to_have_count(there)
    settled(page)
    assert sorted(texts(page)) == sorted(f"No. {n}." for n in range(1, 26))
    assert len(lists(asked)) == 4


def test_the_mark_of_a_link_moves_with_it_and_leaves_a_half_written_answer(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    ids = fill(app, 8)
    page = view(at=f"#comment-{ids[2]}")
    expect(page.locator("[data-target]")).to_contain_text("No. 3.")
    comment(page, "No. 7.").locator(".meta a").click()
    assert page.url.endswith(f"#comment-{ids[6]}")
    expect(page.locator("[data-target]")).to_contain_text("No. 7.")
    page.go_back()
    expect(page.locator("[data-target]")).to_contain_text("No. 3.")
    settled(page)
    assert len(lists(asked)) == 1
    comment(page, "No. 6.").get_by_role("button", name="回复").click()
    answer = page.get_by_role("textbox", name="回复 Guest 6")
    answer.fill("Half of a thought")
    jump(page, 987654321)
    settled(page)
    expect(answer).to_have_value("Half of a thought")
    jump(page, ids[5])
    expect(comment(page, "No. 6.")).to_have_attribute("data-target", "")
    expect(answer).to_have_value("Half of a thought")


def test_a_link_to_no_comment_does_nothing_bad(
    app: App, view: Callable[..., Page], page: Page, asked: list[str], faults: list[str]
) -> None:
    ids = answers(app, 130)
    elsewhere = say(app, "Elsewhere.", page="/other/")
    view(at="#comment-987654321")
    expect(page.locator("article").first).to_be_visible()
    settled(page)
    assert len(lists(asked)) <= 4
    numbers = ("987654322", f"{elsewhere}", "0", "1e3", "9" * 40)
    for word in (*(f"#comment-{number}" for number in numbers), "#x"):
        page.evaluate("word => { location.hash = word }", word)
    settled(page)
    expect(page.locator("[data-target]")).to_have_count(0)
    expect(page.locator("article").first).to_contain_text("A question.")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert len(lists(asked)) <= 12
    asked.clear()
    page.route(re.compile("thread="), lambda route: route.fulfill(status=503, body="{}"))
    with page.expect_response(re.compile("thread=")):
        view(at=f"#comment-{ids[-1]}")
    expect(page.locator("article")).to_have_count(101)
    settled(page)
    assert len(lists(asked)) <= 3
    assert [fault for fault in faults if "503" not in fault] == []
    faults.clear()


def test_badges_changes_and_avatars_are_shown_without_another_request(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    ids = fill(app, 3)
    say(app, "By me.", OWNER)
    names = ["陆知微", "顾砚秋", "Noor Rahman"]
    for name in (*names, "陆知微"):
        say(app, f"Of {name}.", name, hours=1)
    sql(app, "UPDATE comment SET pinned = 1 WHERE id = ?", ids[0])
    sql(app, "UPDATE comment SET edited_at = created_at + 60 WHERE id = ?", ids[1])
    page = view()
    expect(page.locator("article")).to_have_count(8)
    expect(page.locator(".badge")).to_have_count(2)
    expect(comment(page, "By me.").locator(".badge")).to_have_text("博主")
    expect(comment(page, "No. 1.").locator(".badge")).to_have_text("置顶")
    expect(comment(page, "No. 2.").locator(".meta")).to_contain_text("已修改")
    expect(comment(page, "No. 3.").locator(".meta")).not_to_contain_text("已修改")
    marks = {
        (article.locator("bdi").inner_text(), article.locator(".avatar").get_attribute("style"))
        for article in comment(page, "Of ").all()
    }
    assert sorted(name for name, _ in marks) == sorted(names)
    assert len({style for _, style in marks}) == 3
    assert page.locator("commentd-thread img").count() == 0
    assert len(asked) == 3


def test_what_was_deleted_leaves_its_place_to_its_answers(
    app: App, view: Callable[..., Page]
) -> None:
    top = nested(app, 2)[0]
    say(app, "Another.", hours=200)
    moderate(app, top, "deleted")
    page = view(at=f"#comment-{top}")
    expect(page.locator("article")).to_have_count(3)
    gone = page.locator("article").first
    expect(gone).to_have_text("该评论已删除。")
    expect(gone).to_have_attribute("data-target", "")
    expect(gone.get_by_role("button")).to_have_count(0)
    expect(comment(page, "Depth 1.")).to_be_visible()
    expect(page.locator(".head b")).to_have_text("2 条评论")


def test_places_are_named_in_the_language_of_the_reader(
    app: App, view: Callable[..., Page]
) -> None:
    say(app, "Nearby.", "陆知微", hours=1)
    say(app, "Far away.", "Mateo Silva", hours=2)
    imported = say(app, "Imported.", "Ann", hours=3)
    sql(app, "UPDATE comment SET country = 'FR', location = '' WHERE id = ?", imported)
    for lang, places in (
        ("zh-CN", ["浙江 杭州", "巴西", "法国"]),
        ("en", ["China", "Brazil", "France"]),
        ("de", ["China", "Brasilien", "Frankreich"]),
    ):
        page = view(lang=lang)
        for text, place in zip(("Nearby.", "Far away.", "Imported."), places, strict=True):
            expect(comment(page, text).locator(".meta")).to_contain_text(place)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (
            {"locale": "zh-CN", "timezone_id": "Asia/Shanghai"},
            ["现在", "30分钟前", "1小时前", "3小时前", "昨天", "前天", "3天前"],
        ),
        (
            {"locale": "en-GB", "timezone_id": "America/New_York"},
            [
                *("now", "30 minutes ago", "1 hour ago", "3 hours ago"),
                *("yesterday", "2 days ago", "3 days ago"),
            ],
        ),
    ],
    ids=["zh", "en"],
)
def test_a_comment_says_how_long_ago_and_on_demand_exactly_when(
    app: App, view: Callable[..., Page], page: Page, outside: Outside, told: list[str]
) -> None:
    ages = (0, 0.5, 1.2, 3.2, 25, 49, 72.5, 9000)
    for hours in ages:
        say(app, "Then.", hours=hours)
    page.clock.set_fixed_time(outside.time)
    view(lang="")
    expect(page.locator("article")).to_have_count(len(ages))
    lang = page.locator("section").get_attribute("lang")
    for number, hours in enumerate(ages):
        date, exact, at = page.evaluate(
            """([then, lang]) => {
                const date = new Date(then)
                const day = date.toLocaleDateString(lang, {dateStyle: 'medium'})
                return [day, date.toLocaleString(lang), date.toISOString()]
            }""",
            [int((outside.time - hours * 3600) * 1000), lang],
        )
        stamp = page.locator(".meta time").nth(number)
        expect(stamp).to_have_text([*told, date][number])
        expect(page.locator(".meta a:has(time)").nth(number)).to_have_attribute("title", exact)
        expect(stamp).to_have_attribute("datetime", at)


def test_likes_of_comments_and_of_the_page_are_given_remembered_and_taken_back(
    app: App, view: Callable[..., Page]
) -> None:
    conversation(app)
    page = view()
    head = page.locator("commentd-thread .head")
    expect(head).to_contain_text("7 条评论")
    expect(head).to_contain_text(re.compile(r"1,28\d 次阅读"))
    head.get_by_role("button", name="喜欢这篇文章 0").click()
    liked_page = head.get_by_role("button", name="喜欢这篇文章 1", pressed=True)
    expect(liked_page).to_be_visible()
    article = comment(page, "隔一个钟头再读")
    article.get_by_role("button", name="赞 5").click()
    liked = article.get_by_role("button", name="赞 6", pressed=True)
    expect(liked).to_be_visible()
    other = comment(page, "值得一起读").get_by_role("button", name="赞 2")
    expect(other).to_have_attribute("aria-pressed", "false")
    settled(page)
    page.reload()
    expect(liked_page).to_be_visible()
    liked.click()
    expect(article.get_by_role("button", name="赞 5", pressed=False)).to_be_visible()
    settled(page)
    page.reload()
    expect(article.get_by_role("button", name="赞 5", pressed=False)).to_be_visible()


def test_a_like_that_fails_is_taken_back_and_said(
    app: App, view: Callable[..., Page], faults: list[str]
) -> None:
    say(app, "Hello.", likes=2)
    gone = say(app, "Gone.", likes=2)
    page = view()
    heart = page.get_by_role("button", name="赞 2")
    expect(heart).to_have_count(2)
    moderate(app, gone, "deleted")
    heart.first.click()
    expect(page.get_by_text("该评论已删除。")).to_be_attached()
    expect(heart.first).to_have_attribute("aria-pressed", "false")
    view()
    expect(heart).to_have_count(1)
    page.context.set_offline(True)
    heart.click()
    expect(page.get_by_text("暂时连不上评论服务")).to_be_attached()
    expect(heart).to_have_attribute("aria-pressed", "false")
    page.context.set_offline(False)
    heart.click()
    expect(page.get_by_role("button", name="赞 3", pressed=True)).to_be_visible()
    assert [fault for fault in faults if not re.search("404|DISCONNECTED", fault)] == []
    faults.clear()


@pytest.mark.parametrize(
    ("lang", "number", "told"),
    [
        ("en", 1, ["1 comment", "Views: 1"]),
        ("en", 2, ["2 comments", "Views: 2"]),
        ("zh", 1, ["1 条评论", "1 次阅读"]),
        ("zh", 2, ["2 条评论", "2 次阅读"]),
    ],
)
def test_one_is_not_said_like_many(
    app: App, view: Callable[..., Page], lang: str, number: int, told: list[str]
) -> None:
    fill(app, number)
    sql(app, "UPDATE page SET views = ?", number - 1)
    page = view(lang=lang)
    for text in told:
        expect(page.locator("commentd-thread .head").get_by_text(text, exact=True)).to_be_visible()


def test_each_text_has_its_own_direction_and_names_are_set_apart(
    app: App, view: Callable[..., Page]
) -> None:
    say(app, "مرحبا، نص جميل (1)", "ليلى", hours=1)
    say(app, "Hello, a fine text (1)", "Ann", hours=2)
    page = view()
    expect(page.locator("article")).to_have_count(2)
    directions = "all => all.map(it => [it.dir, getComputedStyle(it).direction])"
    assert page.locator(".body").evaluate_all(directions) == [["auto", "rtl"], ["auto", "ltr"]]
    expect(page.locator(".meta bdi")).to_have_text(["ليلى", "Ann"])


def test_on_an_arabic_page_the_thread_runs_from_right_to_left(
    app: App, page: Page, site: Site
) -> None:
    say(app, "مرحبا، نص جميل (1)", "ليلى")
    conversation(app)
    site.pages.update(article(site.service, lang="ar"))
    page.goto(site.address + POST)
    expect(page.locator("commentd-thread article")).to_have_count(8)
    thread = page.locator(".replies").first
    line, answer = thread.locator(".line").first, thread.locator("article").first
    assert page.locator("section").get_attribute("dir") == "rtl"
    arabic = comment(page, "مرحبا").locator(".body")
    assert arabic.evaluate("it => getComputedStyle(it).direction") == "rtl"
    for width in (320, 1280):
        page.set_viewport_size({"width": width, "height": 720})
        assert left_of(line) > left_of(answer), width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


# Hostile texts

ALLOWED = {
    *("slot", "section", "form", "label", "span", "textarea", "div", "input", "details", "summary"),
    *("button", "svg", "path", "select", "option", "ol", "li", "article", "b", "bdi", "a", "time"),
    *("p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul"),
}
WEBSITE = "https://blog.example/?\"'><img src=x onerror=hit=1>"
NAMES = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "&lt;b&gt;&amp;quot;",
    "{n} $& $1",
    *("__proto__", "constructor", "toString", "hasOwnProperty", "'\"`><svg onload=alert(1)>"),
]
TEXTS = [
    "<script>hit = 1</script><img src=x onerror=hit=1><svg/onload=hit=1>",
    "[a](javascript:hit=1) [b](JaVaScRiPt:hit=1) <javascript:hit=1> [c](data:text/html,hit)",
    "![picture](https://evil.example/pixel.png) [d](//evil.example) [e](vbscript:hit)",
    "</article></section><style>*{display:none}</style><iframe src=//evil.example></iframe>",
    "\u202eright to left \u2066isolated, never ended \u202d",
    "`<img src=x onerror=hit=1>`\n\n    <img src=x onerror=hit=1>\n\n> <b onclick=hit=1>b</b>",
]
POLICY = "default-src 'none'; script-src SERVICE; connect-src SERVICE; style-src 'none'"


def strict(site: Site, body: str, policy: str = POLICY) -> None:
    """Writes a page of the blog under a strict policy."""
    header = {"Content-Security-Policy": policy.replace("SERVICE", site.service)}
    html = site.html(body).replace('<link rel="icon" href="data:,">', "")
    site.pages[POST] = (header, html)


def tags_inside(page: Page) -> set[str]:
    """The tags below the shadow roots."""
    return set(
        page.evaluate(
            """() => [...document.querySelectorAll('commentd-thread')].flatMap(
                it => [...it.shadowRoot.querySelectorAll('*')].map(node => node.localName))"""
        )
    )


def assert_harmless(page: Page, site: Site, asked: list[str]) -> None:
    assert tags_inside(page) <= ALLOWED
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


def test_names_websites_and_texts_are_only_ever_text(
    app: App, site: Site, page: Page, asked: list[str]
) -> None:
    for n, name in enumerate(NAMES):
        say(app, f"By name {n}.", name, hours=n)
    sql(app, "UPDATE comment SET website = ?", WEBSITE)
    for text in TEXTS:
        say(app, text, hours=100)
    strict(site, '<commentd-thread limit="100"></commentd-thread>' + TAG)
    page.goto(site.address + POST)
    expect(page.locator("article")).to_have_count(len(NAMES) + len(TEXTS))
    expect(page.locator(".meta bdi")).to_have_text(NAMES + ["陆知微"] * len(TEXTS))
    page.locator(".meta bdi").first.hover()
    assert_harmless(page, site, asked)
    for link in page.locator(".meta b a").all():
        assert (link.get_attribute("href") or "").startswith("https://blog.example/")


ANSWERS = [
    "<script>hit=1</script>",
    "<SCRIPT SRC=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=hit=1>",
    '<img src="https://evil.example/x.png" onerror="hit=1">',
    "<style>:host{display:none}*{display:none}</style>",
    '<link rel="stylesheet" href="//evil.example/x.css">',
    '<iframe srcdoc="&lt;script&gt;parent.hit=1&lt;/script&gt;"></iframe>',
    '<svg onload="hit=1"><a href="javascript:hit=1"><text>x</text></a></svg>',
    '<math><mtext><a href="javascript:hit=1">x</a></mtext></math>',
    '<p onclick="hit=1" style="position:fixed;inset:0" class="main" id="error">x</p>',
    "<p onmouseover=hit=1>x",
    '<a href="javascript:hit=1">x</a>',
    '<a href="JAVASCRIPT:hit=1">x</a>',
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


def test_nothing_comes_of_html_but_what_is_listed_whatever_a_service_sends(
    app: App, site: Site, page: Page, asked: list[str]
) -> None:
    ids = fill(app, len(ANSWERS))

    def change(comments: list[Json]) -> None:
        for each in comments:
            each["html"] = ANSWERS[ids.index(each["id"])] + "<p>Last.</p>"

    strict(site, '<commentd-thread limit="100"></commentd-thread>' + TAG)
    with altering(app, change):
        page.goto(site.address + POST)
        expect(page.locator("article")).to_have_count(len(ANSWERS))
    assert_harmless(page, site, asked)
    expect(page.get_by_label("写下你的想法…")).to_be_visible()
    bodies = dict(zip(ids[::-1], texts(page), strict=True))
    assert bodies[ids[24]].startswith("<script> &lt; ")
    good = page.locator('.body a[href="https://good.example/"]')
    assert good.count() <= 1


POISON = [
    *[("country", "<b>"), ("country", "constructor"), ("location", "<img src=x onerror=hit=1>")],
    *[("website", f"{scheme}hit=1") for scheme in ("javascript:", "https:javascript:")],
    *[("website", "data:text/html,x"), ("website", None)],
    *[("nickname", "<script>hit=1</script>"), ("role", "<b>"), ("html", ""), ("created_at", "<b>")],
]


def test_a_poisoned_comment_hurts_only_itself(
    app: App, view: Callable[..., Page], site: Site, asked: list[str]
) -> None:
    fill(app, 2 * len(POISON))

    def change(comments: list[Json]) -> None:
        for each, (field, value) in zip(comments[::2], POISON, strict=True):
            each |= {"location": "浙江", "country": "CN", field: value}

    with altering(app, change):
        page = view('<commentd-thread limit="100"></commentd-thread>' + TAG, lang="en")
        for number in range(1, 2 * len(POISON), 2):
            expect(comment(page, f"No. {number}.")).to_be_visible()
    assert_harmless(page, site, asked)
    for link in page.locator(".meta b a").all():
        assert (link.get_attribute("href") or "").startswith(("https:", "http:"))


@pytest.mark.parametrize(
    "settings",
    [{"server_listen": "127.0.0.1:0", "limits_enabled": False, "comments_max_length": 10_000}],
)
@pytest.mark.parametrize("options", [{"viewport": {"width": 320, "height": 640}}])
def test_a_word_of_ten_thousand_letters_stays_within_the_column(
    app: App, view: Callable[..., Page], options: Json
) -> None:
    say(app, "W" * 10_000, "W" * 64)
    say(app, "`" + "W" * 5000 + "`\n\n```\n" + "W" * 4000 + "\n```")
    page = view('<meta name=viewport content="width=device-width">' + TAG)
    expect(page.locator("article")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# Hostile pages

CLOBBERED = "".join(
    f"<form name={name}></form><a id={name}></a>"
    for name in (
        *("body", "head", "title", "readyState", "documentElement", "activeElement", "forms"),
        *("cookie", "hidden", "defaultView", "SERVICE", "WORDS", "Thread", "h", "ask", "start"),
        *("localStorage", "fetch", "location", "customElements", "error", "content", "comment-1"),
    )
)
EXTRAS = """<script>
    Array.prototype.last = function () { return this.at(-1) }
    Object.prototype.extra = function () {}
    Object.prototype.class = 'theirs'
    String.prototype.trimmed = 1
    Element.prototype.extra = 'x'
</script>"""


REPLACED = """<script>
    const real = {fetch, stringify: JSON.stringify, remove: Element.prototype.remove}
    window.fetch = function (...words) { return real.fetch.apply(window, words) }
    JSON.stringify = function (...words) { return real.stringify.apply(this, words) }
    Element.prototype.remove = function () { this.parentNode && real.remove.call(this) }
    Array.from = item => item == null ? [] : [item] // MooTools
    Array.prototype.toJSON = function () { return '[' + this + ']' } // Prototype
    String.prototype.toJSON = function () { return '"' + this + '"' }
    window.Promise = class extends Promise {}
    window.$ = window._ = window.h = window.ask = () => { throw Error('theirs') }
</script>"""


@pytest.mark.parametrize(
    "hostile", [CLOBBERED, EXTRAS, REPLACED], ids=["names", "prototypes", "replaced"]
)
def test_names_and_prototypes_of_the_page_disturb_nothing(
    app: App, view: Callable[..., Page], hostile: str
) -> None:
    ids = nested(app, 3)
    fill(app, 15)
    page = view(hostile + "<i data-commentd-count=/2026/lines/></i>" + TAG)
    expect(page.locator("article")).to_have_count(12)
    page.evaluate("""() => {
        const image = document.createElement('img')
        image.name = 'currentScript'
        document.querySelector('form, i').after(image)
    }""")
    expect(page.locator("i")).to_have_text("18")
    page.get_by_role("button", name="显示更多").click()
    expect(page.locator("article")).to_have_count(18)
    comment(page, "Depth 0.").first.get_by_role("button", name="赞 0").click()
    jump(page, ids[2])
    expect(page.locator("[data-target]")).to_contain_text("Depth 2.")
    write_comment(page, "Mine.")
    expect(comment(page, "Mine.")).to_be_focused()
    assert page.locator("commentd-thread").get_attribute("extra") is None
    expect(page.locator(".theirs")).to_have_count(0)


@pytest.mark.parametrize(
    "markup",
    [
        "<img name=currentScript src=EVIL>",
        "<img id=currentScript name=x src=EVIL>",
        "<embed name=currentScript src=EVIL>",
        "<object name=currentScript data=EVIL></object>",
        "<object id=currentScript data=EVIL></object>",
        "<iframe name=currentScript src=EVIL></iframe>",
        "<form name=currentScript><input name=src value=EVIL></form>",
        "<img name=currentScript src=EVIL><form name=currentScript></form>",
    ],
)
@pytest.mark.parametrize("tag", [TAG, TAG.replace(" async", "")], ids=["async", "plain"])
def test_markup_before_the_script_does_not_say_where_code_comes_from(
    app: App, view: Callable[..., Page], site: Site, asked: list[str], markup: str, tag: str
) -> None:
    fill(app, 1)
    before = markup.replace("EVIL", f"{site.address}/evil/x")
    site.pages["/evil/x"] = ({}, "")
    page = view(f"{before}<i data-commentd-count={POST}></i>{tag}")
    expect(page.locator("i")).to_have_text("1")
    comment(page, "No. 1.").get_by_role("button", name="赞 0").click()
    expect(comment(page, "No. 1.").get_by_role("button", name="赞 1")).to_be_visible()
    foreign = [line for line in asked if "/evil/" in line and not line.endswith("/evil/x")]
    assert foreign == []


FOREIGN = """
    window.name = JSON.stringify({token: 'a.b.c', nickname: 'Eve', service: 'https://evil.example/'})
"""
WISHES = "token=a.b.c&service=https://evil.example/&lang=de&limit=1&nickname=Eve"


def test_nothing_but_the_number_of_a_comment_comes_from_outside(
    app: App, view: Callable[..., Page], site: Site, page: Page, asked: list[str]
) -> None:
    ids, said = fill(app, 3), list[str]()
    page.on("request", lambda request: said.append(request.headers.get("authorization", "")))
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
    write_comment(page, "Mine.")
    expect(comment(page, "Mine.")).to_be_focused()
    comment(page, "Mine.").get_by_role("button", name="赞 0").click()
    expect(comment(page, "Mine.").get_by_role("button", name="赞 1")).to_be_visible()
    assert {*said} == {""}
    assert [line for line in asked if "evil" in line.partition("?")[0] or "a.b.c" in line] == [
        f"GET {site.address}{POST}?{WISHES}"
    ]
    assert "a.b.c" not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")


def test_what_the_service_sends_changes_no_built_in(app: App, view: Callable[..., Page]) -> None:
    fill(app, 2)
    poison = '{"__proto__": {"hit": 1}, "constructor": {"prototype": {"hit": 1}}, "hit": 1, '

    def change(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] == "/comments":
            body = body.replace(b'"settings":{', b'"settings":' + poison.encode())
            body = body.replace(b'{"comments"', poison.encode() + b'"comments"')
            body = body.replace(b'{"id":', poison.encode() + b'"id":')
        return status, headers, body

    with answering(app, change):
        page = view()
        expect(page.locator("article")).to_have_count(2)
        page.get_by_role("button", name="赞 0").first.click()
    assert page.evaluate("[{}.hit, [].hit, Object.hit, ''.hit]") == [None] * 4


def test_a_login_is_in_no_address_cookie_or_attribute_and_ends(
    app: App, view: Callable[..., Page], site: Site, page: Page, asked: list[str]
) -> None:
    fill(app, 2)
    add_account(app, "owner@example.com", "Owner", "a password", "admin")
    token = token_of(app, "owner@example.com")
    me = json.dumps({"nickname": "Owner", "token": token})
    site.write("An essay.", "/2026/empty/")
    page.goto(site.address + "/2026/empty/")
    page.evaluate("([key, me]) => localStorage.setItem(key, me)", [f"{site.service}/me", me])
    asked.clear()
    view(lang="en")
    page.get_by_label("Write a comment…").fill("Mine.")
    page.get_by_role("button", name="Post").click()
    expect(comment(page, "Mine.")).to_be_focused()
    everything = """() => [document, ...[...document.querySelectorAll('*')].map(e => e.shadowRoot)]
        .flatMap(root => root ? [...root.querySelectorAll('*')] : [])
        .flatMap(node => [...node.attributes].map(a => a.value)).join() + document.cookie"""
    assert token not in page.evaluate(everything)
    assert page.context.cookies() == []
    assert [line for line in asked if token in line] == []
    login = {"Authorization": f"Bearer {token}"}
    TestApp(app).get("/me", headers=login, status=200)
    page.get_by_label("Write a comment…").fill("Another.")
    with page.expect_response("**/auth/logout"):
        page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert token not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    TestApp(app).get("/me", headers=login, status=401)
    assert "scripts of that site can read it" in " ".join(README.split())


@pytest.mark.parametrize("options", [{"viewport": {"width": 800, "height": 600}}])
def test_the_style_of_the_page_hides_nothing(app: App, view: Callable[..., Page]) -> None:
    nested(app, 2)
    light = "it => [...it.children].map(e => [e.assignedSlot.parentNode.className, e.tabIndex])"
    for style in (
        "* { all: unset }",
        "div, article, section, form, ol, li, button, textarea, span, p { display: none }",
        "a { display: inline-block; padding: 1em; min-height: 44px }",
        "main > * { box-sizing: content-box; float: left }",
        "main { display: flex; flex-direction: column; align-items: center }",
        "main { display: flex; flex-wrap: wrap }",
        "main { display: grid; justify-items: start }",
        "[hidden] { display: block !important } .row, .head, .list, .body { display: none }",
    ):
        page = view('<main><b tabindex="0">Before</b>' + TAG, head=f"<style>{style}</style>")
        expect(page.locator("article")).to_have_count(2)
        field = page.get_by_label("写下你的想法…")
        for node in (*page.locator("article").all(), field):
            expect(node).to_be_visible()
        assert field.evaluate("it => it.clientWidth") > 200, style
        expect(page.get_by_label("昵称")).to_be_hidden()
        assert page.locator("commentd-thread").evaluate(light) == [["sr", -1]], style
        page.get_by_text("Before").focus()
        page.keyboard.press("Tab")
        expect(field).to_be_focused()


TYPES = "; require-trusted-types-for 'script'; trusted-types 'none'"


@pytest.mark.parametrize(
    "settings",
    [{"server_listen": "127.0.0.1:0", "limits_enabled": False, "captcha_provider": "altcha"}],
)
@pytest.mark.parametrize(
    "policy",
    [POLICY, POLICY + "; worker-src blob:", POLICY + TYPES, POLICY + "; worker-src blob:" + TYPES],
    ids=["strict", "worker", "types", "worker-types"],
)
def test_all_works_under_a_strict_policy(
    app: App, site: Site, page: Page, faults: list[str], policy: str
) -> None:
    strict(site, '<p>An essay.</p><i data-commentd-count="/2026/lines/"></i>' + TAG, policy)
    page.goto(site.address + POST)
    expect(page.locator(".none")).to_be_visible()
    expect(page.locator("i")).to_have_text("0")
    page.get_by_label("写下你的想法…").fill("**Mine.**")
    page.get_by_role("button", name="预览").click()
    expect(page.locator(".aside strong")).to_have_text("Mine.")
    page.get_by_role("button", name="登录").click()
    expect(page.get_by_label("密码")).to_be_visible()
    page.get_by_role("button", name="取消").click()
    page.get_by_label("昵称").fill("林深")
    page.get_by_role("button", name="发表评论").click()
    expect(comment(page, "Mine.")).to_be_focused(timeout=30_000)
    comment(page, "Mine.").get_by_role("button", name="赞 0").click()
    expect(comment(page, "Mine.").get_by_role("button", name="赞 1")).to_be_visible()
    refused = [fault for fault in faults if re.search("worker|'TrustedScriptURL'", fault, re.I)]
    assert faults == refused
    assert bool(refused) == (policy != POLICY + "; worker-src blob:")
    faults.clear()


BLOCKED = """for (const name of ['localStorage', 'sessionStorage', 'indexedDB', 'caches']) {
    Object.defineProperty(window, name, {get() { throw new DOMException(name, 'SecurityError') }})
}"""


def test_where_storage_is_blocked_memory_serves(
    app: App, page: Page, view: Callable[..., Page]
) -> None:
    number = say(app, "Hello.")
    page.add_init_script(BLOCKED)
    view(at=f"#comment-{number}")
    expect(page.locator("[data-target]")).to_contain_text("Hello.")
    page.get_by_role("button", name="赞 0").click()
    page.get_by_role("button", name="赞 1", pressed=True).click()
    expect(page.get_by_role("button", name="赞 0", pressed=False)).to_be_visible()
    write_comment(page, "Mine.")
    expect(comment(page, "Mine.")).to_be_focused()
    expect(comment(page, "Mine.").get_by_role("button", name="修改")).to_be_visible()
    page.get_by_label("写下你的想法…").fill("Another.")
    expect(page.get_by_label("昵称")).to_have_value("林深")
    page.get_by_role("button", name="发表评论").click()
    expect(comment(page, "Another.")).to_be_focused()


def test_a_first_view_asks_for_two_things_and_leaves_nothing(
    app: App, view: Callable[..., Page], site: Site, asked: list[str]
) -> None:
    conversation(app)
    page = view(
        "<script>names = [0, 'names', ...Object.getOwnPropertyNames(window)]</script>" + TAG
    )
    expect(page.locator("article")).to_have_count(7)
    settled(page)
    assert [line.partition("?")[0] for line in asked] == [
        f"GET {site.address}{POST}",
        f"GET {site.service}/embed.js",
        f"GET {site.service}/comments",
    ]
    added = "Object.getOwnPropertyNames(window).filter(name => !names.includes(name))"
    assert page.evaluate(added) == []
    assert page.context.cookies() == []
    assert page.evaluate("[document.cookie, localStorage.length, sessionStorage.length]") == [
        "",
        0,
        0,
    ]
    assert page.context.service_workers == []
    write_comment(page, "Mine.")
    expect(comment(page, "Mine.")).to_be_focused()
    settled(page)
    assert page.evaluate(added) == []
    assert page.context.cookies() == []
    home = (site.address + "/", site.service + "/")
    assert all(line.split()[1].startswith(home) for line in asked)
    assert [line for line in asked if re.search(r"account\.js|captcha\.js", line)] == []


# Promises


def test_the_widget_is_twelve_thousand_bytes_at_most(app: App, tmp_path: Path) -> None:
    zipped = Request.blank("/embed.js", headers={"Accept-Encoding": "gzip"}).get_response(app)
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert len(zipped.body) <= 12_000
    if tool := shutil.which("gzip"):
        (tmp_path / "embed.js").write_bytes(TestApp(app).get("/embed.js").body)
        again = subprocess.check_output([tool, "-9", "-n", "-c", tmp_path / "embed.js"])
        assert len(again) <= 12_000


@pytest.mark.parametrize(
    ("named", "source"),
    [(r"--commentd-[a-z]+", r"--commentd-[a-z]+"), (r"`commentd:([a-z]+)`", r"#emit\('([a-z]+)'")],
    ids=["variables", "events"],
)
def test_the_readme_names_what_a_theme_may_use(named: str, source: str) -> None:
    readme = README.split("## On your blog")[1].split("## For real")[0]
    assert set(re.findall(named, readme)) == set(re.findall(source, EMBED.read_text("utf-8")))


def parts() -> list[str]:
    """The parts that the README lists."""
    rows = re.findall(r"^\| (`.*?) \| (.*) \|$", README.split("| part |")[1].split("\n\n")[0], re.M)
    return re.findall("`([a-z]+)`", " ".join(" ".join(row) for row in rows))


def test_each_part_that_the_readme_names_can_be_styled(
    app: App, page: Page, view: Callable[..., Page]
) -> None:
    fill(app, 11)
    say(app, "Answered.", parent_id=say(app, "Asked.", OWNER, hours=0))
    assert len(parts()) == len(set(parts())) > 12
    rules = "".join(f"commentd-thread::part({part}) {{ --seen-{part}: yes }}" for part in parts())
    view(TAG, head=f"<style>{rules}</style>")
    expect(page.locator("article")).to_have_count(11)
    for part in parts():
        seen = page.locator(f".{part}").first
        assert seen.evaluate(f"it => getComputedStyle(it).getPropertyValue('--seen-{part}')"), part


# Network

SHIFTS = """window.shifts = []
new PerformanceObserver(list => shifts.push(...list.getEntries().map(it => it.value)))
    .observe({type: 'layout-shift', buffered: true})"""


@pytest.mark.parametrize(("at", "number"), [("top", 0), ("top", 1), ("top", 25), ("thread", 25)])
def test_a_slow_answer_moves_nothing(
    app: App, page: Page, site: Site, at: str, number: int
) -> None:
    fill(app, number)
    page.add_init_script(SHIFTS)
    held = hold(page, r"/comments\?")
    site.pages.update(article(site.service))
    page.goto(site.address + POST)
    wait = page.locator("commentd-thread .wait")
    expect(wait).to_be_visible()
    expect(page.get_by_label("写下你的想法…")).to_be_visible()
    if at == "thread":
        page.locator("h2").evaluate("it => it.scrollIntoView()")
        expect(wait).to_be_in_viewport()
    expect(page.locator("body > footer")).not_to_be_in_viewport()
    held[0].continue_()
    expect(page.locator("commentd-thread .head > *").first).to_be_visible()
    expect(wait).to_have_count(0)
    idle(page)
    idle(page)
    assert page.evaluate("shifts") == []


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_reader_who_is_offline_is_told_and_can_try_again(
    app: App, page: Page, view: Callable[..., Page], faults: list[str], lang: str
) -> None:
    say(app, "Hello.")
    view("<main>A post.</main>", head=TAG.replace(" async", ""), lang=lang)
    page.context.set_offline(True)
    page.locator("main").evaluate("it => it.append(document.createElement('commentd-thread'))")
    told = "暂时连不上评论服务" if lang == "zh" else "Comments can’t be reached"
    expect(page.get_by_role("alert")).to_contain_text(told)
    again = page.get_by_role("button", name="重试" if lang == "zh" else "Try again")
    with page.expect_request(re.compile("/health")):
        again.click()
    expect(page.get_by_role("alert")).to_contain_text(told)
    page.context.set_offline(False)
    page.wait_for_function("navigator.onLine")
    again.click()
    expect(page.locator(".body")).to_have_text("Hello.")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert [fault for fault in faults if "DISCONNECTED" not in fault] == []
    faults.clear()


NO_ANSWERS = [
    ("500 Internal Server Error", "json", '{"error": "服务出错了", "code": "internal"}'),
    ("502 Bad Gateway", "html", "<html><h1>502 Bad Gateway</h1></html>"),
    ("200 OK", "html", "<!doctype html><title>Sign in to the hotel</title>"),
    ("200 OK", "json", '{"comments": ['),
    ("200 OK", "json", "null"),
    ("200 OK", "json", "{}"),
    ("200 OK", "json", "[]"),
    ("404 Not Found", "json", '{"error": "没有这个网址", "code": "not_found"}'),
]


def no_answer(status: str, kind: str, body: str) -> Change:
    """To lists of comments, the service gives this answer instead."""
    types = {"json": "application/json", "html": "text/html"}

    def change(environ: Json, was: str, headers: dict[str, str], old: bytes) -> Any:
        if environ["PATH_INFO"] != "/comments":
            return was, headers, old
        return status, {**headers, "Content-Type": types[kind]}, body.encode()

    return change


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_an_answer_that_is_none_is_said_in_words_and_can_be_asked_for_again(
    app: App, page: Page, view: Callable[..., Page], faults: list[str], lang: str
) -> None:
    say(app, "Hello.")
    for status, kind, body in NO_ANSWERS:
        with answering(app, no_answer(status, kind, body)):
            view(lang=lang)
            expect(page.get_by_role("alert")).to_be_visible()
            said = page.locator("commentd-thread section").inner_text()
        assert not re.search(r"undefined|\[object", said), body
        assert bool(re.search(r"[一-鿿]", said)) == (lang == "zh"), body
        assert page.get_by_role("alert").inner_text().strip(), body
        page.get_by_role("button", name="重试" if lang == "zh" else "Try again").click()
        expect(page.locator(".body")).to_have_text("Hello.")
    assert [fault for fault in faults if not fault.startswith("Failed to load")] == []
    faults.clear()


@pytest.mark.parametrize(
    "settings",
    [
        {
            "server_listen": "127.0.0.1:0",
            "limits_enabled": False,
            "site_origins": ("https://blog.example",),
        }
    ],
)
def test_a_blog_that_may_not_use_the_service_is_told(
    view: Callable[..., Page], faults: list[str]
) -> None:
    page = view()
    expect(page.get_by_role("alert")).to_have_text("这个网站不能使用此评论服务。")
    assert [fault for fault in faults if "CORS" not in fault and "Failed" not in fault] == []
    faults.clear()


def test_a_service_that_goes_between_two_pages_is_asked_again(
    app: App, page: Page, view: Callable[..., Page], faults: list[str]
) -> None:
    fill(app, 25)
    view()
    page.get_by_label("排序").select_option("最早")
    expect(page.locator(".body").first).to_have_text("No. 1.")
    page.context.set_offline(True)
    page.get_by_role("button", name="显示更多").click()
    expect(page.get_by_role("alert")).to_contain_text("暂时连不上评论服务")
    assert texts(page) == [f"No. {n}." for n in range(1, 11)]
    page.context.set_offline(False)
    page.get_by_role("button", name="重试").click()
    expect(page.locator("article").nth(10)).to_be_focused()
    assert texts(page) == [f"No. {n}." for n in range(1, 21)]
    expect(page.get_by_role("alert")).to_have_count(0)
    faults.clear()
