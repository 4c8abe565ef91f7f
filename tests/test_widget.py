"""The widget in a real Chromium, on a page of another origin, over plain http: embedding, reading,
hostile texts, hostile pages, a bad network. `test_writing.py` has its forms."""

import json
import re
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
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
    conversation,
    new_context,
    painted,
    say,
    service,
)
from conftest import Outside
from playwright.sync_api import Browser, Locator, Page, Route, expect
from test_admin import OWNER as OWNER_OF_SITE
from test_admin import new_admin

from commentd import App, assets_in

pytestmark = pytest.mark.slow

STATIC = Path(__file__).parent.parent / "static"
EMBED = STATIC / "embed.js"
README = (STATIC.parent / "README.md").read_text("utf-8")
TAG = '<script src="SERVICE/embed.js" async></script>'
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
    view: Callable[..., Page], asked: list[str], attribute: str, wanted: dict[str, str]
) -> None:
    page = view(f"<commentd-thread {attribute}></commentd-thread>{TAG}")
    expect(page.locator("commentd-thread .none")).to_be_visible()
    query = {"url": POST, "view": "threads", "sort": "newest", "limit": "10", "page": "1"}
    assert lists(asked) == [query | wanted]


@pytest.mark.parametrize("options", [{"locale": "zh-CN"}, {"locale": "de-DE"}], ids=["zh", "de"])
@pytest.mark.parametrize(
    ("lang", "attribute", "words"),
    [
        ("en", "", "No comments yet."),
        ("zh-CN", "", "还没有评论"),
        ("ZH", "", "还没有评论"),
        ("zh-Hans-HK", "", "还没有评论"),
        ("zh-Hant", "", "還沒有"),
        ("en", "lang=zh-TW", "還沒有"),
        ("fr-CA", "", "commentaire"),
        ("DE", "", "Kommentare"),
        ("sv", "", "No comments yet."),
        ("arn", "", "No comments yet."),
        ("zh-CN", "lang=en", "No comments yet."),
        ("zh-CN", "lang=xx-bad_tag", "No comments yet."),
        ("zh-CN", "lang", "还没有评论"),
        ("", "", None),
    ],
)
def test_the_language_is_of_the_element_else_of_the_page_else_of_the_browser(
    view: Callable[..., Page], options: Json, lang: str, attribute: str, words: str | None
) -> None:
    page = view(f"<commentd-thread {attribute}></commentd-thread>{TAG}", lang=lang)
    default = "还没有评论" if options["locale"] == "zh-CN" else "Kommentare"
    expect(page.locator(".none")).to_contain_text(words or default)
    languages = {"还": "zh-CN", "還": "zh-TW", "N": "en", "c": "fr", "K": "de"}
    expect(page.locator("section")).to_have_attribute("lang", languages[(words or default)[0]])


@pytest.mark.parametrize(("lang", "name"), [("zh-CN", "评论"), ("de", "Comments")])
def test_a_browser_without_sheets_for_shadow_roots_gets_a_link_to_the_thread(
    app: App,
    page: Page,
    view: Callable[..., Page],
    site: Site,
    faults: list[str],
    lang: str,
    name: str,
) -> None:
    fill(app, 1)
    page.add_init_script("""
        delete ShadowRoot.prototype.adoptedStyleSheets
        window.CSSStyleSheet = class { constructor() { throw new TypeError('Illegal') } }""")
    view(TAG, lang=lang)
    expect(page.locator("commentd-thread")).to_have_count(0)
    assert faults == ["TypeError: Illegal"]
    faults.clear()
    page.get_by_role("link", name=name).click()
    assert page.url.startswith(f"{site.service}/thread?url=")
    expect(page.get_by_text("No. 1.")).to_be_visible()


def test_the_nearest_language_counts_where_a_page_has_two(view: Callable[..., Page]) -> None:
    page = view(f"<main lang=zh><div>{TAG}</div></main>", lang="en")
    expect(page.locator(".none")).to_contain_text("还没有评论")


def test_a_lazy_thread_waits_until_it_is_near(view: Callable[..., Page], asked: list[str]) -> None:
    essay = '<div style="height: 9000px">An essay</div>'
    page = view(essay + "<commentd-thread loading=lazy></commentd-thread>" + TAG)
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
    expect(page.locator("commentd-thread:defined")).to_have_count(1)
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


@pytest.mark.parametrize("body", ["<p>Hello.</p>", "<form name=head>Hello.</form>"])
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
    page = view("<main>A post.</main>", head=TAG.replace(" async", ""))
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


@pytest.mark.parametrize(
    ("theme", "colour"),
    [
        ("light", r"^color\(xyz-d65 0 0 0\)$"),
        ("dark", r"^color\(xyz-d65 0\.[12]"),
        ("", r"^color\(xyz-d65 0 0 0\)$"),
        ("x", r"^color\(xyz-d65 0 0 0\)$"),
    ],
)
def test_a_theme_gives_the_text_its_colour(
    view: Callable[..., Page], theme: str, colour: str
) -> None:
    page = view(f"<commentd-thread theme='{theme}'></commentd-thread>" + TAG)
    expect(page.get_by_text("还没有评论")).to_be_visible()
    expect(page.locator("section")).to_have_css("color", re.compile(colour))


@pytest.mark.parametrize("end", ["continue", "abort"])
def test_an_answer_for_the_page_before_is_dropped(
    app: App, view: Callable[..., Page], page: Page, faults: list[str], end: str
) -> None:
    say(app, "Of the first.", page="/first/")
    say(app, "Of the second.", page="/second/")
    held: list[Route] = []
    page.route(re.compile(r"comments\?url=%2Ffirst"), lambda route: held.append(route))
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


def test_an_element_that_was_taken_away_follows_no_links(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    fill(app, 2)
    page = view()
    expect(page.locator("article")).to_have_count(2)
    page.locator("commentd-thread").evaluate("it => it.remove()")
    page.evaluate("location.hash = '#comment-99'")
    settled(page)
    assert len(lists(asked)) == 1
    assert [line for line in asked if "more.js" in line] == []


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


@pytest.mark.parametrize(
    "options", [{"viewport": {"width": w, "height": 720}} for w in (320, 1280)]
)
def test_answers_are_indented_twice_and_then_say_whom_they_answer(
    app: App, view: Callable[..., Page]
) -> None:
    ids = nested(app, 6)
    say(app, "Late.", "Z", hours=1, parent_id=ids[2])
    page = view()
    expect(page.locator("article .body")).to_have_text(
        [*(f"Depth {n}." for n in range(6)), "Late."]
    )
    lefts = [left_of(article) for article in page.locator("article").all()]
    assert lefts[0] < lefts[1] < lefts[2] == lefts[3] == lefts[4] == lefts[5] == lefts[6]
    names = [line.splitlines()[0] for line in page.locator(".meta").all_inner_texts()]
    assert names == [*"ABCDEF", "Z"]
    said = [re.findall(r"›\s*(\w)", line) for line in page.locator(".meta").all_inner_texts()]
    assert said == [[], [], [], ["C"], ["D"], ["E"], ["C"]]
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


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


@pytest.mark.parametrize("how", ["mouse", "Enter", "Space"])
def test_answers_are_folded_and_unfolded(app: App, view: Callable[..., Page], how: str) -> None:
    nested(app, 4)
    page = view()
    line = page.locator(".line").first
    expect(line).to_have_attribute("aria-expanded", "true")
    expect(line).to_have_accessible_name("收起回复")

    def press() -> None:
        if how == "mouse":
            line.click(position={"x": 12, "y": 20})
        else:
            line.focus()
            page.keyboard.press(how)

    press()
    expect(line).to_have_attribute("aria-expanded", "false")
    expect(line).to_have_accessible_name("展开 3 条回复")
    expect(comment(page, "Depth 0.")).to_be_visible()
    expect(comment(page, "Depth 1.")).to_be_hidden()
    expect(line).to_be_focused()
    press()
    expect(line).to_have_attribute("aria-expanded", "true")
    expect(comment(page, "Depth 3.")).to_be_visible()
    expect(line).to_be_focused()


@pytest.mark.parametrize("how", ["mouse", "Enter"])
def test_more_comments_come_behind_those_that_are_there(
    app: App, view: Callable[..., Page], asked: list[str], how: str
) -> None:
    fill(app, 25)
    page = view()
    more = page.get_by_role("button", name="显示更多")
    for there in (10, 20):
        expect(page.locator("article")).to_have_count(there)
        more.click() if how == "mouse" else more.press(how)
        expect(page.locator("article").nth(there)).to_be_focused()
    expect(more).to_have_count(0)
    assert texts(page) == [f"No. {n}." for n in range(25, 0, -1)]
    assert [query["page"] for query in lists(asked)] == ["1", "2", "3"]


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


def test_more_is_in_the_order_that_was_chosen(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    fill(app, 25)
    page = view()
    order = page.get_by_label("排序")
    expect(order).to_have_value("newest")
    order.select_option("最早")
    expect(page.locator(".body").first).to_have_text("No. 1.")
    expect(order).to_have_value("oldest")
    page.get_by_role("button", name="显示更多").click()
    expect(page.locator("article")).to_have_count(20)
    assert texts(page) == [f"No. {n}." for n in range(1, 21)]
    assert [(q["sort"], q["page"]) for q in lists(asked)] == [
        ("newest", "1"),
        ("oldest", "1"),
        ("oldest", "2"),
    ]


def test_the_most_liked_come_first_where_a_reader_wants_them(
    app: App, view: Callable[..., Page]
) -> None:
    for text, likes in (("Some.", 1), ("Most.", 3), ("None.", 0)):
        say(app, text, likes=likes)
    page = view()
    page.get_by_label("排序").focus()
    page.keyboard.press("End")
    expect(page.locator(".body")).to_have_text(["Most.", "Some.", "None."])
    expect(page.get_by_label("排序")).to_be_focused()


def test_the_order_that_was_chosen_last_is_shown_whatever_comes_last(
    app: App, view: Callable[..., Page], page: Page
) -> None:
    fill(app, 3)
    held: list[Route] = []
    page.route(re.compile("sort=likes"), lambda route: held.append(route))
    view()
    page.get_by_label("排序").select_option("最多赞")
    page.get_by_label("排序").select_option("最早")
    expect(page.locator(".body").first).to_have_text("No. 1.")
    with page.expect_response(re.compile("sort=likes")):
        held[0].continue_()
    settled(page)
    assert texts(page) == ["No. 1.", "No. 2.", "No. 3."]
    expect(page.get_by_label("排序")).to_have_value("oldest")


def test_more_that_comes_when_the_order_has_changed_is_dropped(
    app: App, view: Callable[..., Page], page: Page
) -> None:
    fill(app, 25)
    held: list[Route] = []
    page.route(re.compile("sort=newest.*page=2"), lambda route: held.append(route))
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


def test_a_thread_with_hundreds_of_answers_comes_in_hundreds(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    answers(app, 230)
    page = view()
    more = page.get_by_role("button", name="显示更多")
    for there in (100, 200):
        expect(page.locator("article")).to_have_count(1 + there)
        more.click()
        expect(page.locator("article").nth(1 + there)).to_be_focused()
    expect(more).to_have_count(0)
    assert texts(page)[1:] == [f"Answer {n}." for n in range(1, 231)]


def test_a_link_to_a_comment_of_the_third_page_shows_that_page(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    ids = fill(app, 25)
    page = view(at=f"#comment-{ids[2]}")
    target = page.locator("[data-target]")
    expect(target).to_contain_text("No. 3.")
    expect(target).to_be_in_viewport()
    expect(target).to_be_focused()
    settled(page)
    assert texts(page) == [f"No. {n}." for n in range(5, 0, -1)]
    assert len(lists(asked)) == 1
    page.get_by_role("button", name="显示全部").click()
    expect(page.locator("article")).to_have_count(10)
    expect(page.locator("article").first).to_be_focused()
    assert texts(page) == [f"No. {n}." for n in range(25, 15, -1)]
    expect(page.get_by_role("button", name="显示全部")).to_have_count(0)


def test_a_link_on_the_page_to_a_comment_that_is_not_shown_adds_it(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    ids = fill(app, 25)
    page = view()
    expect(page.locator("article")).to_have_count(10)
    page.evaluate("id => { location.hash = '#comment-' + id }", ids[2])
    target = page.locator("[data-target]")
    expect(target).to_contain_text("No. 3.")
    expect(target).to_be_in_viewport()
    expect(target).to_be_focused()
    more = page.get_by_role("button", name="显示更多")
    for there in (20, 25):
        more.click()
        expect(page.locator("article")).to_have_count(there + (there == 20))
    settled(page)
    assert sorted(texts(page)) == sorted(f"No. {n}." for n in range(1, 26))
    assert len(lists(asked)) == 4


def test_the_mark_of_a_link_moves_with_it(
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


@pytest.mark.parametrize("arrival", ["load", "hash"])
@pytest.mark.parametrize("number", [42, 120, 205])
def test_a_link_leads_to_an_answer_beyond_the_first_hundred(
    app: App, view: Callable[..., Page], arrival: str, number: int
) -> None:
    ids = answers(app, 210)
    page = view(at=f"#comment-{ids[number - 1]}" if arrival == "load" else "")
    if arrival == "hash":
        expect(page.locator("article")).to_have_count(101)
        page.evaluate("id => { location.hash = '#comment-' + id }", ids[number - 1])
    target = page.locator("[data-target]")
    expect(target).to_contain_text(f"Answer {number}.")
    expect(target).to_be_in_viewport()
    expect(target).to_be_focused()
    assert texts(page)[1:][:100] == [f"Answer {n}." for n in range(1, 101)]


@pytest.mark.parametrize("arrival", ["load", "hash"])
def test_a_link_to_no_comment_does_nothing_bad(
    app: App, view: Callable[..., Page], asked: list[str], arrival: str
) -> None:
    answers(app, 130)
    elsewhere = say(app, "Elsewhere.", page="/other/")
    page = view(at="#comment-987654321" if arrival == "load" else "")
    expect(page.locator("article").first).to_be_visible()
    if arrival == "hash":
        page.evaluate("location.hash = '#comment-987654321'")
    settled(page)
    assert len(lists(asked)) <= 4
    for word in (
        f"#comment-{elsewhere}",
        "#comment-0",
        "#comment-1e3",
        "#comment-" + "9" * 40,
        "#x",
    ):
        page.evaluate("word => { location.hash = word }", word)
    settled(page)
    expect(page.locator("[data-target]")).to_have_count(0)
    expect(page.locator("article").first).to_contain_text("A question.")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert len(lists(asked)) <= 12


def test_looking_for_a_comment_ends_when_the_service_does_not_answer(
    app: App, view: Callable[..., Page], page: Page, asked: list[str], faults: list[str]
) -> None:
    ids = answers(app, 130)
    page.route(re.compile("thread="), lambda route: route.fulfill(status=503, body="{}"))
    with page.expect_response(re.compile("thread=")):
        view(at=f"#comment-{ids[-1]}")
    expect(page.locator("article")).to_have_count(101)
    settled(page)
    assert len(lists(asked)) <= 3
    assert [fault for fault in faults if "503" not in fault] == []
    faults.clear()


def test_a_half_written_answer_survives_a_link_to_another_comment(
    app: App, view: Callable[..., Page]
) -> None:
    ids = fill(app, 25)
    page = view()
    comment(page, "No. 24.").get_by_role("button", name="回复").click()
    page.get_by_role("textbox", name="回复 Guest 24").fill("Half of a thought")
    page.evaluate("location.hash = '#comment-987654321'")
    settled(page)
    expect(page.get_by_role("textbox", name="回复 Guest 24")).to_have_value("Half of a thought")
    page.evaluate("id => { location.hash = '#comment-' + id }", ids[23])
    expect(comment(page, "No. 24.")).to_have_attribute("data-target", "")
    expect(page.get_by_role("textbox", name="回复 Guest 24")).to_have_value("Half of a thought")


def test_owner_and_pinned_are_said(app: App, view: Callable[..., Page]) -> None:
    ids = fill(app, 3)
    say(app, "By me.", OWNER)
    run(app, "UPDATE comment SET pinned = 1 WHERE id = ?", ids[0])
    page = view()
    expect(page.locator(".body")).to_have_count(4)
    expect(page.locator(".badge")).to_have_count(2)
    expect(comment(page, "By me.").locator(".badge")).to_have_text("博主")
    expect(comment(page, "No. 1.").locator(".badge")).to_have_text("置顶")


def test_what_was_deleted_leaves_its_place_to_its_answers(
    app: App, view: Callable[..., Page]
) -> None:
    top = nested(app, 2)[0]
    say(app, "Another.", hours=200)
    run(app, "UPDATE comment SET status = 'deleted' WHERE id = ?", top)
    run(app, "UPDATE page SET total = total - 1")
    page = view(at=f"#comment-{top}")
    expect(page.locator("article")).to_have_count(3)
    gone = page.locator("article").first
    expect(gone).to_have_text("该评论已删除。")
    expect(gone).to_have_attribute("data-target", "")
    expect(gone.get_by_role("button")).to_have_count(0)
    expect(comment(page, "Depth 1.")).to_be_visible()
    expect(page.locator(".head b")).to_have_text("2 条评论")


def test_avatars_differ_by_name_and_are_made_on_the_spot(
    app: App, view: Callable[..., Page], asked: list[str]
) -> None:
    for name in ("陆知微", "顾砚秋", "Noor Rahman", "陆知微"):
        say(app, f"Of {name}.", name, hours=1)
    say(app, "Again.", "陆知微")
    page = view()
    expect(page.locator("article")).to_have_count(5)
    marks = {
        article.locator("bdi").inner_text(): article.locator(".avatar").get_attribute("style")
        for article in page.locator("article").all()
    }
    assert len(marks) == len(set(marks.values())) == 3
    assert page.locator("commentd-thread img").count() == 0
    assert len(asked) == 3


@pytest.mark.parametrize(
    ("options", "places"),
    [({"locale": "zh-CN"}, ["浙江 杭州", "巴西"]), ({"locale": "en-GB"}, ["China", "Brazil"])],
    ids=["zh", "en"],
)
def test_places_are_named_in_the_language_of_the_reader(
    app: App, view: Callable[..., Page], places: list[str]
) -> None:
    say(app, "Here.", "陆知微", hours=1)
    say(app, "There.", "Mateo Silva", hours=2)
    page = view(lang="")
    for line, name in zip(page.locator(".meta").all(), places, strict=False):
        expect(line).to_contain_text(name)


@pytest.mark.parametrize(
    ("options", "hours", "told"),
    [
        ({"locale": "zh-CN", "timezone_id": "Asia/Shanghai"}, 0, "现在"),
        ({"locale": "zh-CN", "timezone_id": "Asia/Shanghai"}, 3.2, "3小时前"),
        ({"locale": "zh-CN", "timezone_id": "Asia/Shanghai"}, 25, "昨天"),
        ({"locale": "zh-CN", "timezone_id": "Europe/Berlin"}, 72.5, "3天前"),
        ({"locale": "en-GB", "timezone_id": "Europe/Berlin"}, 0.5, "30 minutes ago"),
        ({"locale": "en-GB", "timezone_id": "Europe/Berlin"}, 1.2, "1 hour ago"),
        ({"locale": "en-GB", "timezone_id": "Europe/Berlin"}, 49, "2 days ago"),
        ({"locale": "en-GB", "timezone_id": "America/New_York"}, 9000, None),
    ],
)
def test_a_comment_says_how_long_ago_and_on_demand_exactly_when(
    app: App,
    view: Callable[..., Page],
    page: Page,
    outside: Outside,
    hours: float,
    told: str | None,
) -> None:
    say(app, "Then.", hours=hours)
    page.clock.set_fixed_time(outside.time)
    view(lang="")
    then = int((outside.time - hours * 3600) * 1000)
    lang = page.locator("section").get_attribute("lang")
    date = page.evaluate(
        "([t, lang]) => new Date(t).toLocaleDateString(lang, {dateStyle: 'medium'})", [then, lang]
    )
    stamp = page.locator(".meta time")
    expect(stamp).to_have_text(told or date)
    exact = page.evaluate("([t, lang]) => new Date(t).toLocaleString(lang)", [then, lang])
    expect(page.locator(".meta a:has(time)")).to_have_attribute("title", exact)
    at = page.evaluate("t => new Date(t).toISOString()", then)
    expect(stamp).to_have_attribute("datetime", at)


def test_a_comment_that_was_changed_says_so(app: App, view: Callable[..., Page]) -> None:
    changed = fill(app, 2)[0]
    run(app, "UPDATE comment SET edited_at = created_at + 60 WHERE id = ?", changed)
    page = view()
    expect(comment(page, "No. 1.").locator(".meta")).to_contain_text("已修改")
    expect(comment(page, "No. 2.").locator(".meta")).not_to_contain_text("已修改")


@pytest.mark.parametrize("how", ["mouse", "Enter"])
def test_a_long_comment_is_folded_until_it_is_wanted(
    app: App, view: Callable[..., Page], how: str
) -> None:
    say(app, "\n\n".join(f"Paragraph {n}. " + "长" * 150 for n in range(9)))
    page = view()
    body = page.locator(".body")
    expect(body).to_have_js_property("scrollHeight", body.evaluate("it => it.scrollHeight"))
    assert body.evaluate("it => it.clientHeight < it.scrollHeight")
    fold = page.get_by_role("button", name="展开全文")
    fold.click() if how == "mouse" else fold.press(how)
    expect(fold).to_have_count(0)
    assert body.evaluate("it => it.clientHeight === it.scrollHeight")
    expect(page.locator("article")).to_be_focused()


def test_likes_are_given_remembered_and_taken_back(app: App, view: Callable[..., Page]) -> None:
    conversation(app)
    page = view()
    article = comment(page, "隔一个钟头再读")
    article.get_by_role("button", name="赞 5").click()
    liked = article.get_by_role("button", name="赞 6", pressed=True)
    expect(liked).to_be_visible()
    expect(comment(page, "值得一起读").get_by_role("button", name="赞 2")).to_have_attribute(
        "aria-pressed", "false"
    )
    settled(page)
    page.reload()
    liked.click()
    expect(article.get_by_role("button", name="赞 5", pressed=False)).to_be_visible()
    settled(page)
    page.reload()
    expect(article.get_by_role("button", name="赞 5", pressed=False)).to_be_visible()


def test_a_like_that_fails_is_taken_back_and_said(
    app: App, view: Callable[..., Page], faults: list[str]
) -> None:
    number = say(app, "Hello.", likes=2)
    page = view()
    heart = page.get_by_role("button", name="赞 2")
    expect(heart).to_be_visible()
    run(app, "UPDATE comment SET status = 'deleted', shown = 0 WHERE id = ?", number)
    run(app, "UPDATE page SET total = 0, threads = 0")
    heart.click()
    expect(page.get_by_text("该评论已删除。")).to_be_attached()
    expect(heart).to_have_attribute("aria-pressed", "false")
    assert [fault for fault in faults if "404" not in fault] == []
    faults.clear()


def test_a_like_without_a_network_is_taken_back_and_said(
    app: App, view: Callable[..., Page], faults: list[str]
) -> None:
    say(app, "Hello.", likes=2)
    page = view()
    heart = page.get_by_role("button", name="赞 2")
    expect(heart).to_be_visible()
    page.context.set_offline(True)
    heart.click()
    expect(page.get_by_text("暂时连不上评论服务")).to_be_attached()
    expect(heart).to_have_attribute("aria-pressed", "false")
    page.context.set_offline(False)
    heart.click()
    expect(page.get_by_role("button", name="赞 3", pressed=True)).to_be_visible()
    assert [fault for fault in faults if "DISCONNECTED" not in fault] == []
    faults.clear()


def test_the_head_counts_comments_and_views_and_takes_likes_of_the_page(
    app: App, view: Callable[..., Page]
) -> None:
    conversation(app)
    page = view()
    head = page.locator("commentd-thread .head")
    expect(head).to_contain_text("7 条评论")
    expect(head).to_contain_text(re.compile(r"1,28\d 次阅读"))
    head.get_by_role("button", name="喜欢这篇文章 0").click()
    liked = head.get_by_role("button", name="喜欢这篇文章 1", pressed=True)
    expect(liked).to_be_visible()
    settled(page)
    page.reload()
    expect(liked).to_be_visible()


@pytest.mark.parametrize(
    ("lang", "number", "views", "wanted"),
    [
        ("en", 1, 0, ["1 comment", "Views: 1"]),
        ("en", 2, 4, ["2 comments", "Views: 5"]),
        ("zh", 1, 0, ["1 条评论", "1 次阅读"]),
        ("zh", 2, 4, ["2 条评论", "5 次阅读"]),
    ],
)
def test_one_is_not_said_like_many(
    app: App, view: Callable[..., Page], lang: str, number: int, views: int, wanted: list[str]
) -> None:
    fill(app, number)
    run(app, "UPDATE page SET views = ?", views)
    page = view(lang=lang)
    for text in wanted:
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


@pytest.mark.parametrize(
    "options", [{"viewport": {"width": w, "height": 720}} for w in (320, 1280)]
)
def test_on_an_arabic_page_the_thread_runs_from_right_to_left(
    app: App, page: Page, site: Site, options: Json
) -> None:
    say(app, "مرحبا، نص جميل (1)", "ليلى")
    conversation(app)
    site.pages.update(article(site.service, lang="ar"))
    page.goto(site.address + POST)
    expect(page.locator("commentd-thread article")).to_have_count(8)
    thread = page.locator(".replies").first
    line, answer = thread.locator(".line").first, thread.locator("article").first
    assert left_of(line) > left_of(answer)
    assert page.locator("section").get_attribute("dir") == "rtl"
    arabic = comment(page, "مرحبا").locator(".body")
    assert arabic.evaluate("it => getComputedStyle(it).direction") == "rtl"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# Hostile texts

ALLOWED = {
    *("slot", "section", "form", "label", "span", "textarea", "div", "input", "details", "summary"),
    *("button", "svg", "path", "select", "option", "ol", "li", "article", "b", "bdi", "a", "time"),
    *("p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul"),
}
WEBSITE = "https://blog.example/?\"'><img src=x onerror=hit=1>"
NAMES = [
    *(
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        "&lt;b&gt;&amp;quot;",
        "{n} $& $1",
    ),
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


def strict(site: Site, body: str, policy: str = POLICY, path: str = POST) -> None:
    """A page of the blog under a strict policy."""
    html = (
        f'<!doctype html><html lang="zh-CN"><meta charset="utf-8"><title>A post</title><body>{body}'
    )
    header = {"Content-Security-Policy": policy.replace("SERVICE", site.service)}
    site.pages[path] = (header, html.replace("SERVICE", site.service))


def inside(page: Page) -> set[str]:
    """The tags below the shadow roots."""
    return set(
        page.evaluate(
            """() => [...document.querySelectorAll('commentd-thread')].flatMap(
                it => [...it.shadowRoot.querySelectorAll('*')].map(node => node.localName))"""
        )
    )


def assert_harmless(page: Page, site: Site, asked: list[str]) -> None:
    assert inside(page) <= ALLOWED
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
    run(app, "UPDATE comment SET website = ?", WEBSITE)
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

    def change(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] == "/comments":
            comments = json.loads(body)["comments"]
            for each in comments:
                each["html"] = ANSWERS[ids.index(each["id"])] + "<p>Last.</p>"
            body = changed_json(body, comments=comments)
        return status, headers, body

    strict(site, '<commentd-thread limit="100"></commentd-thread>' + TAG)
    with answering(app, change):
        page.goto(site.address + POST)
        expect(page.locator("article")).to_have_count(len(ANSWERS))
    assert_harmless(page, site, asked)
    expect(page.get_by_label("写下你的想法…")).to_be_visible()
    bodies = dict(zip(ids[::-1], texts(page), strict=True))
    assert bodies[ids[24]].startswith("<script> &lt; ")
    good = page.locator('.body a[href="https://good.example/"]')
    assert good.count() <= 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
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
    ],
)
def test_a_poisoned_comment_hurts_only_itself(
    app: App, view: Callable[..., Page], site: Site, asked: list[str], field: str, value: Any
) -> None:
    fill(app, 3)

    def change(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] == "/comments":
            comments = json.loads(body)["comments"]
            comments[1] |= {"location": "浙江", "country": "CN", field: value}
            body = changed_json(body, comments=comments)
        return status, headers, body

    with answering(app, change):
        page = view(lang="en")
        expect(comment(page, "No. 1.")).to_be_visible()
    expect(comment(page, "No. 3.")).to_be_visible()
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
    page.evaluate("id => { location.hash = '#comment-' + id }", ids[2])
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
    _, token = new_admin(app)
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
    page.get_by_label("Write a comment…").fill("Another.")
    with page.expect_response("**/auth/logout"):
        page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert token not in page.evaluate("JSON.stringify([localStorage, sessionStorage])")
    account = app.house.store.account_of(OWNER_OF_SITE)
    assert account
    assert account.version == 2
    assert "scripts of that site can read it" in " ".join(README.split())


@pytest.mark.parametrize("options", [{"viewport": {"width": 800, "height": 600}}])
@pytest.mark.parametrize(
    "style",
    [
        "* { all: unset }",
        "div, article, section, form, ol, li, button, textarea, span, p { display: none }",
        "a { display: inline-block; padding: 1em; min-height: 44px }",
        "main > * { box-sizing: content-box; float: left }",
        "main { display: flex; flex-direction: column; align-items: center }",
        "main { display: flex; flex-wrap: wrap }",
        "main { display: grid; justify-items: start }",
        "[hidden] { display: block !important } .row, .head, .list, .body { display: none }",
    ],
)
def test_the_style_of_the_page_hides_nothing(
    app: App, view: Callable[..., Page], style: str
) -> None:
    nested(app, 2)
    page = view('<main><b tabindex="0">Before</b>' + TAG, head=f"<style>{style}</style>")
    expect(page.locator("article")).to_have_count(2)
    field = page.get_by_label("写下你的想法…")
    for node in (*page.locator("article").all(), field):
        expect(node).to_be_visible()
    assert field.evaluate("it => it.clientWidth") > 200
    expect(page.get_by_label("昵称")).to_be_hidden()
    light = "it => [...it.children].map(e => [e.assignedSlot.parentNode.className, e.tabIndex])"
    assert page.locator("commentd-thread").evaluate(light) == [["sr", -1]]
    page.get_by_text("Before").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_label("写下你的想法…")).to_be_focused()


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


def test_the_widget_is_twelve_thousand_bytes_at_most(tmp_path: Path) -> None:
    served = assets_in(STATIC)["embed.js"]
    assert len(served.zipped()) <= 12_000
    if tool := shutil.which("gzip"):
        (tmp_path / "embed.js").write_bytes(served.body)
        zipped = subprocess.check_output([tool, "-9", "-n", "-c", tmp_path / "embed.js"])
        assert len(zipped) <= 12_000


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
    held: list[Route] = []
    page.add_init_script(SHIFTS)
    page.route(re.compile(r"/comments\?"), lambda route: held.append(route))
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


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (
            "500 Internal Server Error",
            "application/json",
            '{"error": "服务出错了", "code": "internal"}',
        ),
        ("502 Bad Gateway", "text/html", "<html><h1>502 Bad Gateway</h1></html>"),
        ("200 OK", "text/html", "<!doctype html><title>Sign in to the hotel</title>"),
        ("200 OK", "application/json", '{"comments": ['),
        ("200 OK", "application/json", "null"),
        ("200 OK", "application/json", "{}"),
        ("200 OK", "application/json", "[]"),
        ("404 Not Found", "application/json", '{"error": "没有这个网址", "code": "not_found"}'),
    ],
)
def test_an_answer_that_is_none_is_said_in_words_and_can_be_asked_for_again(
    app: App,
    page: Page,
    view: Callable[..., Page],
    faults: list[str],
    lang: str,
    status: str,
    kind: str,
    body: str,
) -> None:
    say(app, "Hello.")

    def change(environ: Json, was: str, headers: dict[str, str], old: bytes) -> Any:
        if environ["PATH_INFO"] != "/comments":
            return was, headers, old
        return status, {**headers, "Content-Type": kind}, body.encode()

    with answering(app, change):
        view(lang=lang)
        expect(page.get_by_role("alert")).to_be_visible()
        said = page.locator("commentd-thread section").inner_text()
    assert "undefined" not in said
    assert "[object" not in said
    assert bool(re.search(r"[一-鿿]", said)) == (lang == "zh")
    assert page.get_by_role("alert").inner_text().strip()
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
