"""The widget in a real Chromium, on a page of another origin, over plain http: embedding, reading,
hostile texts, hostile pages, a bad network. `test_writing.py` has its forms."""

import gzip
import json
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from blog import (
    OWNER,
    POST,
    Json,
    Pages,
    answering,
    article,
    blog,
    changed_json,
    chromium,
    conversation,
    say,
    service,
)
from conftest import Outside
from playwright.sync_api import Browser, Locator, Page, Request, Route, expect

from commentd import App

STATIC = Path(__file__).parent.parent / "static"
EMBED = STATIC / "embed.js"
TAG = '<script src="SERVICE/embed.js" async></script>'
TWO = f"""<commentd-thread page="/first/"></commentd-thread>
    <commentd-thread page="/second/"></commentd-thread>{TAG}"""


# Ground


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


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
    browser: Browser, options: dict[str, Any], faults: list[str], asked: list[str]
) -> Iterator[Page]:
    context = browser.new_context(**options)
    context.set_default_timeout(10_000)
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
    """Opens a page of the blog with this body."""

    def view(body: str = TAG, path: str = POST, *, at: str = "", **more: str) -> Page:
        site.write(body, path, **more)
        page.goto(site.address + path + at)
        return page

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


def run(app: App, sql: str, *values: Any) -> None:
    with sqlite3.connect(app.house.store.path) as db:
        db.execute(sql, values)
    db.close()


def idle(page: Page) -> None:
    """What the page was about to ask for at once has been asked."""
    page.evaluate("() => new Promise(go => requestAnimationFrame(() => setTimeout(go)))")


# Embedding


@pytest.mark.parametrize("tag", [TAG, TAG.replace(" async", " defer"), TAG.replace(" async", "")])
def test_one_tag_puts_the_comments_of_the_page_behind_itself(
    app: App, view: Callable[..., Page], asked: list[str], tag: str
) -> None:
    conversation(app)
    page = view(f"<h2>评论</h2>{tag}<footer>End</footer>")
    expect(comment(page, "一行")).to_have_count(1)
    expect(page.locator("article")).to_have_count(7)
    expect(page.locator("h2 + script + commentd-thread + footer")).to_have_count(1)
    query = {"url": POST, "view": "threads", "sort": "newest", "limit": "10", "page": "1"}
    assert lists(asked) == [query]


@pytest.mark.parametrize("place", ["element", "script"])
@pytest.mark.parametrize(
    ("attribute", "wanted"),
    [
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
    ],
)
def test_attributes_say_what_is_shown_and_bad_ones_are_as_none(
    view: Callable[..., Page], asked: list[str], place: str, attribute: str, wanted: dict[str, str]
) -> None:
    if place == "element":
        page = view(f"<commentd-thread {attribute}></commentd-thread>{TAG}")
    else:
        page = view(TAG.replace("async", f"data-{attribute}"))
    expect(page.locator("commentd-thread .none")).to_be_visible()
    query = {"url": POST, "view": "threads", "sort": "newest", "limit": "10", "page": "1"}
    assert lists(asked) == [query | wanted]


@pytest.mark.parametrize("options", [{"locale": "zh-CN"}, {"locale": "de-DE"}], ids=["zh", "de"])
@pytest.mark.parametrize(
    ("lang", "attribute", "words"),
    [
        ("en", "", "No comments yet."),
        ("zh-CN", "", "还没有评论"),
        ("zh-Hant-TW", "", "还没有评论"),
        ("ZH", "", "还没有评论"),
        ("fr", "", "No comments yet."),
        ("zh-CN", "lang=en", "No comments yet."),
        ("en", "lang=zh-TW", "还没有评论"),
        ("zh-CN", "lang=xx-bad_tag", "No comments yet."),
        ("", "", None),
    ],
)
def test_the_language_is_of_the_element_else_of_the_page_else_of_the_browser(
    view: Callable[..., Page], options: Json, lang: str, attribute: str, words: str | None
) -> None:
    page = view(f"<commentd-thread {attribute}></commentd-thread>{TAG}", lang=lang)
    default = "还没有评论" if options["locale"] == "zh-CN" else "No comments yet."
    expect(page.locator(".none")).to_contain_text(words or default)
    expect(page.locator("section")).to_have_attribute(
        "lang", "zh-CN" if (words or default).startswith("还") else "en"
    )


def test_the_nearest_language_counts_where_a_page_has_two(view: Callable[..., Page]) -> None:
    page = view(f"<main lang=zh><div>{TAG}</div></main>", lang="en")
    expect(page.locator(".none")).to_contain_text("还没有评论")


@pytest.mark.parametrize(
    "thread",
    [
        "<commentd-thread loading=lazy></commentd-thread>" + TAG,
        TAG.replace("async", "data-loading=lazy"),
    ],
    ids=["element", "script"],
)
def test_a_lazy_thread_waits_until_it_is_near(
    view: Callable[..., Page], asked: list[str], thread: str
) -> None:
    page = view('<div style="height: 9000px">An essay</div>' + thread)
    expect(page.locator("commentd-thread")).to_have_count(1)
    idle(page)
    assert lists(asked) == []
    page.mouse.wheel(0, 9000)
    expect(page.locator(".none")).to_be_visible()
    assert len(lists(asked)) == 1


def test_a_lazy_thread_that_a_link_leads_into_comes_at_once(
    app: App, view: Callable[..., Page]
) -> None:
    number = fill(app, 3)[0]
    body = '<div style="height: 9000px">An essay</div><commentd-thread loading=lazy>'
    page = view(body + "</commentd-thread>" + TAG, at=f"#comment-{number}")
    expect(comment(page, "No. 1.")).to_be_in_viewport()


def test_a_lazy_thread_comes_when_a_link_on_the_page_leads_into_it(
    app: App, view: Callable[..., Page]
) -> None:
    number = fill(app, 3)[0]
    body = f'<a href="#comment-{number}">See there</a><div style="height: 9000px">An essay</div>'
    page = view(body + "<commentd-thread loading=lazy></commentd-thread>" + TAG)
    expect(page.locator("commentd-thread")).to_have_js_property("zh", True)  # upgraded
    page.get_by_text("See there").click()
    expect(comment(page, "No. 1.")).to_be_in_viewport()


def test_several_threads_of_one_page_are_each_their_own(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Of the first.", page="/first/")
    say(app, "Of the second.", page="/second/")
    threads = "".join(
        f"<commentd-thread page=/{p}/></commentd-thread>" for p in ("first", "second")
    )
    page = view(threads + TAG)
    expect(page.locator("commentd-thread")).to_have_count(2)
    for name in ("first", "second"):
        expect(page.locator(f"[page='/{name}/'] .body")).to_have_text(f"Of the {name}.")
    assert [query["url"] for query in lists(asked)] == ["/first/", "/second/"]


def test_a_link_to_a_comment_goes_to_its_thread_and_leaves_the_other_alone(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    fill(app, 25, "/first/")
    ids = fill(app, 25, "/second/")
    threads = "".join(
        f"<commentd-thread page=/{p}/></commentd-thread>" for p in ("first", "second")
    )
    page = view(threads + TAG, at=f"#comment-{ids[0]}")
    first, second = page.locator("[page='/first/']"), page.locator("[page='/second/']")
    expect(second.locator("[data-target]")).to_contain_text("No. 1.")
    expect(second.locator("[data-target]")).to_be_in_viewport()
    expect(first.locator("article")).to_have_count(10)
    first.get_by_role("button", name="显示更多").click()
    expect(first.locator("article")).to_have_count(20)
    page.evaluate("id => { location.hash = '#comment-' + id }", ids[1])
    expect(second.locator("[data-target]")).to_contain_text("No. 2.")
    settled(page)
    expect(first.locator("article")).to_have_count(20)
    expect(first.locator("[data-target]")).to_have_count(0)
    assert page.evaluate("document.activeElement.getAttribute('page')") == "/second/"


@pytest.mark.parametrize("tag", [TAG, TAG.replace(" async", "")])
def test_a_script_in_the_head_serves_the_element_in_the_body(
    app: App, view: Callable[..., Page], tag: str
) -> None:
    say(app, "Hello.")
    page = view("<commentd-thread></commentd-thread>", head=tag)
    expect(page.locator(".body")).to_have_text("Hello.")
    expect(page.locator("commentd-thread")).to_have_count(1)


@pytest.mark.parametrize("body", ["<p>Hello.</p>", "<form name=head></form>"])
def test_a_script_in_the_head_of_a_page_without_an_element_does_nothing(
    app: App, view: Callable[..., Page], asked: list[str], body: str
) -> None:
    page = view(body, head=TAG)
    page.wait_for_function("() => !!customElements.get('commentd-thread')")
    idle(page)
    expect(page.locator("commentd-thread")).to_have_count(0)
    assert lists(asked) == []


@pytest.mark.parametrize(
    "body",
    [
        TAG + TAG,
        f"<div>{TAG}</div><p>Between</p>{TAG}",
        f"<commentd-thread></commentd-thread>{TAG}{TAG}",
        TAG.replace(" async", "") * 2,
        TAG.replace(" async", "") + "<p>Between</p>" + TAG,
    ],
)
def test_a_script_that_is_there_twice_makes_one_thread(
    app: App, view: Callable[..., Page], asked: list[str], body: str
) -> None:
    say(app, "Hello.")
    page = view(body + "<i data-commentd-count=/2026/lines/></i>", head=TAG)
    expect(page.locator(".body")).to_have_text("Hello.")
    expect(page.locator("i")).to_have_text("1")
    settled(page)
    expect(page.locator("commentd-thread")).to_have_count(1)
    assert len(lists(asked)) == 1
    assert len([line for line in asked if "/pages?" in line]) == 1


def test_a_tag_that_comes_with_a_page_swapped_by_script_makes_its_thread(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Of the second.", page="/second/")
    page = view(f"<main>{TAG}</main>")
    expect(page.locator(".none")).to_be_visible()
    page.evaluate("""() => {
        const tag = document.createElement('script')
        tag.src = document.querySelector('script').src
        history.pushState(null, '', '/second/')
        document.querySelector('main').replaceChildren(tag)
    }""")
    expect(page.locator(".body")).to_have_text("Of the second.")
    assert [query["url"] for query in lists(asked)] == [POST, "/second/"]


def test_an_element_made_by_a_script_works_wherever_it_appears(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Hello.", page="/made/")
    page = view("<main></main>", head=TAG.replace(" async", ""))
    page.evaluate("""() => {
        const thread = document.createElement('commentd-thread')
        thread.setAttribute('page', '/wrong/')
        thread.setAttribute('page', '/made/')
        thread.lang = 'en'
        document.querySelector('main').append(thread)
    }""")
    expect(page.locator("main .body")).to_have_text("Hello.")
    expect(page.get_by_label("Write a comment…")).to_be_visible()
    assert [query["url"] for query in lists(asked)] == ["/made/"]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ("thread.setAttribute('page', '/second/')", {"url": "/second/", "sort": "newest"}),
        ("thread.setAttribute('sort', 'oldest')", {"url": "/first/", "sort": "oldest"}),
        ("thread.lang = 'en'", {"url": "/first/", "sort": "newest"}),
        (
            "thread.setAttribute('page', '/second/'); thread.setAttribute('sort', 'oldest')",
            {"url": "/second/", "sort": "oldest"},
        ),
    ],
)
def test_a_changed_attribute_asks_once_and_replaces_what_was_there(
    app: App, view: Callable[..., Page], asked: list[str], change: str, wanted: dict[str, str]
) -> None:
    say(app, "Of the first.", page="/first/")
    say(app, "Of the second.", page="/second/")
    page = view("<commentd-thread page=/first/></commentd-thread>" + TAG)
    expect(page.locator(".body")).to_have_text("Of the first.")
    page.evaluate(f"() => {{ const thread = document.querySelector('commentd-thread'); {change} }}")
    text = "Of the second." if wanted["url"] == "/second/" else "Of the first."
    expect(page.locator(".body")).to_have_text(text)
    expect(page.locator("section")).to_have_count(1)
    settled(page)
    assert [{k: query[k] for k in wanted} for query in lists(asked)[1:]] == [wanted]


def test_an_attribute_set_to_what_it_is_asks_for_nothing(
    view: Callable[..., Page], asked: list[str]
) -> None:
    page = view("<commentd-thread page=/first/ limit=5></commentd-thread>" + TAG)
    expect(page.locator(".none")).to_be_visible()
    page.locator("commentd-thread").evaluate("""thread => {
        thread.setAttribute('page', '/first/')
        thread.setAttribute('limit', '05')
        thread.setAttribute('sort', 'newest')
    }""")
    idle(page)
    assert len(lists(asked)) == 1


@pytest.mark.parametrize("end", ["continue", "abort"])
def test_an_answer_for_the_page_before_is_dropped(
    app: App, view: Callable[..., Page], page: Page, faults: list[str], end: str
) -> None:
    say(app, "Of the first.", page="/first/")
    say(app, "Of the second.", page="/second/")
    held: list[Route] = []
    page.route(re.compile(r"comments\?url=%2Ffirst"), lambda route: held.append(route))
    view("<commentd-thread page=/first/></commentd-thread>" + TAG)
    expect(page.locator("commentd-thread")).to_have_js_property("zh", True)
    expect(page.locator(".wait")).to_be_attached()
    page.locator("commentd-thread").evaluate("it => it.setAttribute('page', '/second/')")
    expect(page.locator(".body")).to_have_text("Of the second.")
    if end == "continue":
        with page.expect_response(re.compile("first")):
            held[0].continue_()
    else:
        with page.expect_request(re.compile("/health")):
            held[0].abort()
    settled(page)
    assert texts(page) == ["Of the second."]
    expect(page.get_by_role("alert")).to_have_count(0)
    faults.clear()  # the browser's own word on a request that failed


def test_an_element_that_is_moved_asks_for_nothing_again_and_still_works(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    ids = fill(app, 12)
    page = view("<main></main><aside><commentd-thread limit=20></commentd-thread></aside>" + TAG)
    expect(page.locator("article")).to_have_count(12)
    page.evaluate("""() => {
        const thread = document.querySelector('commentd-thread')
        thread.remove()
        document.querySelector('main').append(thread)
        document.body.append(thread)
        document.querySelector('main').append(thread)
    }""")
    page.evaluate("id => { location.hash = '#comment-' + id }", ids[0])
    expect(page.locator("main [data-target]")).to_contain_text("No. 1.")
    heart = comment(page, "No. 1.").get_by_role("button", name="赞 0")
    heart.click()
    expect(comment(page, "No. 1.").get_by_role("button", name="赞 1")).to_be_visible()
    settled(page)
    assert len(lists(asked)) == 1
    assert len([line for line in asked if line.endswith("/comment/like")]) == 1
    assert page.locator("commentd-thread").evaluate("it => it.childElementCount") <= 1


def test_an_element_that_is_put_back_on_another_route_shows_that_one(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Of the second.", page="/second/")
    page = view("<commentd-thread></commentd-thread>" + TAG)
    expect(page.locator(".none")).to_be_visible()
    page.evaluate("""() => {
        const thread = document.querySelector('commentd-thread')
        thread.remove()
        history.pushState(null, '', '/second/')
        document.body.append(thread)
    }""")
    expect(page.locator(".body")).to_have_text("Of the second.")
    assert [query["url"] for query in lists(asked)] == [POST, "/second/"]


def test_an_element_that_goes_while_it_loads_leaves_nothing_behind(
    app: App, view: Callable[..., Page], page: Page, asked: list[str]
) -> None:
    number = fill(app, 2)[0]
    held: list[Route] = []
    page.route(re.compile(r"/comments\?"), lambda route: held.append(route))
    view(at=f"#comment-{number}")
    expect(page.locator(".wait")).to_be_attached()
    page.locator("commentd-thread").evaluate("it => it.remove()")
    with page.expect_response(re.compile(r"/comments\?")):
        held[0].continue_()
    page.evaluate("location.hash = '#comment-99'")
    idle(page)
    assert len(lists(asked)) == 1


@pytest.mark.parametrize(
    ("at", "canonical", "wanted"),
    [
        ("", "", POST),
        ("?id=3&utm_source=feed", "", POST + "?id=3&utm_source=feed"),
        ("?id=3#top", "", POST + "?id=3"),
        ("?id=3", "/real/", "/real/"),
        ("", "https://blog.example/real/?n=2#top", "/real/?n=2"),
        ("", "../other/", "/2026/other/"),
        ("", "http://[broken/", POST),
        ("#/notes/1", "", POST + "#/notes/1"),
        ("#!/notes/1", "", POST + "#!/notes/1"),
    ],
)
def test_the_page_is_that_of_the_canonical_link_else_that_of_the_address(
    view: Callable[..., Page], asked: list[str], at: str, canonical: str, wanted: str
) -> None:
    head = f'<link rel="canonical" href="{canonical}">' if canonical else ""
    page = view(head=head, at=at)
    expect(page.locator(".none")).to_be_visible()
    assert [query["url"] for query in lists(asked)] == [wanted]


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
    wanted = ["/three/", "/one/", "/unknown/", "/three/"]
    page = view("".join(f'<i data-commentd-count="{path}">?</i>' for path in wanted), head=TAG)
    expect(page.locator("i")).to_have_text(["3", "1", "0", "3"])
    settled(page)
    assert counted(asked) == [wanted]
    assert lists(asked) == []


def test_more_than_a_hundred_counts_come_in_as_few_requests_as_they_fit(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Hello.", page="/last/")
    wanted = [*(f"/2026/{n}/" for n in range(130)), "/last/"]
    page = view("".join(f'<i data-commentd-count="{path}"></i>' for path in wanted), head=TAG)
    expect(page.locator("i")).to_have_text(["0"] * 130 + ["1"])
    settled(page)
    assert counted(asked) == [wanted[:100], wanted[100:]]


@pytest.mark.parametrize("letters", ["a" * 1980, "a" * 1980 + "a/" * 30, "字" * 300, "/" * 1980])
def test_long_addresses_are_counted_in_requests_that_every_proxy_passes(
    app: App, view: Callable[..., Page], asked: list[str], letters: str
) -> None:
    wanted = [f"/{n}/" + letters for n in range(8)]
    wanted.append("/9/" + "字" * 300)
    say(app, "Hello.", page=wanted[-1])
    page = view("".join(f'<i data-commentd-count="{path}"></i>' for path in wanted), head=TAG)
    expect(page.locator("i")).to_have_text(["0"] * 8 + ["1"])
    settled(page)
    assert [path for paths in counted(asked) for path in paths] == wanted


def test_a_count_that_is_added_later_is_asked_for_alone(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    fill(app, 2, "/late/")
    page = view("<i data-commentd-count=/first/></i><main></main>", head=TAG)
    expect(page.locator("i")).to_have_text("0")
    page.evaluate("""() => {
        const [item, mark] = ['p', 'i'].map(tag => document.createElement(tag))
        mark.dataset.commentdCount = '/late/'
        item.append(mark)
        document.querySelector('main').append(item)
    }""")
    expect(page.locator("main i")).to_have_text("2")
    settled(page)
    assert counted(asked) == [["/first/"], ["/late/"]]


def test_an_empty_count_spoils_no_other(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    say(app, "Hello.", page="/one/")
    page = view("<i data-commentd-count></i><i data-commentd-count=/one/></i>", head=TAG)
    expect(page.locator("i").nth(1)).to_have_text("1")
    settled(page)
    assert len(counted(asked)) <= 2


def test_counts_that_cannot_be_had_leave_what_the_page_says(
    app: App, page: Page, view: Callable[..., Page], faults: list[str]
) -> None:
    page.route(re.compile("/pages"), lambda route: route.fulfill(status=502, body="<h1>Bad</h1>"))
    with page.expect_response(re.compile("/pages")):
        view("<i data-commentd-count=/one/>some</i>" + TAG)
    expect(page.locator(".none")).to_be_visible()
    settled(page)
    expect(page.locator("i")).to_have_text("some")
    assert [fault for fault in faults if "502" not in fault] == []
    faults.clear()


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
