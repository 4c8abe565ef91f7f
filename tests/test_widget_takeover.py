"""Pages that have their comments in the HTML: what the loader and the widget do with them."""

import gzip
import io
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from PIL import Image, ImageChops, ImageDraw
from playwright.sync_api import Browser, Page, Route, expect

from commentd import App
from support import inside
from support.blog import OWNER, POST, article, begin_to_read, conversation, new_context, say
from support.client import Visitor
from support.serving import until
from support.sources import ROOT, STATIC
from support.widget import Site, service_with
from support.widget import fake_world as fake_world  # a fixture
from support.widget import settings as settings  # a fixture
from support.widget import site as site  # a fixture
from support.words import WORDS
from support.world import START
from support.writing import requests_held

pytestmark = pytest.mark.slow

# The place and size of each part that is no control, from the top of the thread.
PLACES = """() => {
  const thread = document.querySelector('commentd-thread')
  const {top} = thread.getBoundingClientRect()
  const nodes = thread.shadowRoot.querySelectorAll(
    'h2, .head b, .meta > *, .body, .body *, .avatar, .actions, li[data-id]')
  return [...nodes].map(node => {
    const {x, y, width, height} = node.getBoundingClientRect()
    return [node.classList[0], ...[x, y - top, width, height].map(Math.round)].join(' ')
  })
}"""
# The boxes of controls, of code, which a script colours, and of what has the colour of the page's
# links, which no style of a fragment can know.
CHANGING = """() => {
  const {shadowRoot} = document.querySelector('commentd-thread')
  const nodes = shadowRoot.querySelectorAll(
    '.form, .head, .actions, .line, pre, .body a, .admin, .owner .avatar')
  return [...nodes].map(node => {
    const {left, top, right, bottom} = node.getBoundingClientRect()
    return [left - 1, top - 1, right + 1, bottom + 1]
  })
}"""
# The top and bottom of each part of the form of a reply.
PARTS_OF_A_REPLY = """() => {
  const {shadowRoot} = document.querySelector('commentd-thread')
  return [...shadowRoot.querySelectorAll('article form > *')].map(node => {
    const {top, bottom} = node.getBoundingClientRect()
    return [Math.round(top), Math.round(bottom)]
  })
}"""
SHIFTS = """() => {
  window.shifts = []
  new PerformanceObserver(list => shifts.push(...list.getEntries().map(entry => entry.value)))
    .observe({type: 'layout-shift', buffered: true})
}"""


@pytest.fixture(
    params=[{"width": 390, "height": 700, "touch": True}, {"width": 1280, "height": 700}]
)
def page(request: Any, browser: Browser) -> Iterator[Page]:
    size = {name: request.param[name] for name in ("width", "height")}
    touch = "touch" in request.param
    context = new_context(browser, viewport=size, has_touch=touch, timezone_id="Asia/Shanghai")
    yield context.new_page()
    context.close()


def write_post(app: App, site: Site, service: str = "", **query: str) -> None:
    """Writes the post with its fragment and the loader: that of the service, or a copy on the blog
    that names a service."""
    html = Visitor(app).get("/fragment", {"url": POST, "lang": "en", **query}).text
    html = html.replace(' sort="newest"', "")  # as in an element of the page, after `render`
    tag = f'<script src="{site.service}/loader.js" async></script>'
    if service:
        loader = (STATIC / "loader.js").read_text("utf-8")
        site.pages["/loader.js"] = ({"Content-Type": "text/javascript"}, loader)
        tag = f'<script src="/loader.js" data-service="{service}" async></script>'
    site.pages.update(article(site.service, lang="en", tag=html + tag))


def requested_paths(page: Page, site: Site) -> list[str]:
    """The paths that the page asked the service for, as they come."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(site.service)))
    page.goto(site.address + POST, wait_until="networkidle")
    page.evaluate(SHIFTS)
    return asked


def of_service(asked: list[str]) -> list[str]:
    return [path.partition("?")[0] for path in asked if path.startswith("/")]


def texts(page: Page) -> list[str]:
    return [text.strip() for text in page.locator("commentd-thread .body").all_text_contents()]


def come_near(page: Page) -> None:
    page.locator("commentd-thread").evaluate("node => node.scrollIntoView()")


def settled(page: Page) -> None:
    page.wait_for_load_state("networkidle")
    page.evaluate("() => new Promise(requestAnimationFrame)")
    page.evaluate("() => new Promise(requestAnimationFrame)")


def test_the_loader_is_light(visitor: Visitor) -> None:
    script = visitor.get("/loader.js").body
    assert len(gzip.compress(script, 9)) <= 2000


# Styles of the widget and of all that readers use.
USED = "document.querySelector('commentd-thread').shadowRoot.adoptedStyleSheets.length > 3"


def test_a_comment_touched_before_the_widget_takes_over_gets_its_menu_and_keys(
    app: App, site: Site, page: Page
) -> None:
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    say(app, "One line.")
    write_post(app, site)
    comment = page.locator("commentd-thread article")
    with requests_held(page, "**/adopt.js*"):
        with page.expect_request("**/adopt.js*"):
            page.goto(site.address + POST)
            come_near(page)
        comment.focus()
        page.wait_for_function(USED)
    begin_to_read(page)
    expect(page.locator(".quiet")).to_have_count(1)
    comment.focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert faults == []


@pytest.mark.parametrize("way", ["by a link", "in an old browser", "at the end"])
def test_the_widget_takes_over_without_moving_anything(
    app: App, site: Site, page: Page, way: str
) -> None:
    conversation(app)
    for number in range(9):
        say(app, f"No. {number}", f"Guest {number}", hours=99 + number)
    write_post(app, site, heading="Talk")
    if way == "in an old browser":  # before Chrome 131, Firefox 133 and Safari 18
        headers, html = site.pages[POST]
        site.pages[POST] = (headers, html.replace("from currentColor", "of currentColor"))
    asked = requested_paths(page, site)
    assert of_service(asked) == ["/loader.js"]
    held: list[Route] = []
    page.route("**/embed.js", lambda route: held.append(route))
    if way == "at the end":
        page.evaluate("scrollTo(0, 1e6)")
    else:
        come_near(page)
    settled(page)
    until(lambda: page.title() and held)  # Playwright hears of requests while it is asked something
    before = page.evaluate(PLACES)
    held[0].continue_()
    page.locator("commentd-thread form").wait_for()
    settled(page)
    assert page.evaluate(PLACES) == before
    assert page.evaluate("shifts") == []
    assert [path for path in asked if path.startswith("/comments")] == [
        path for path in asked if "since=" in path
    ]
    assert page.locator("commentd-thread").count() == 1


def picture(page: Page, boxes: list[list[float]]) -> Image.Image:
    """The page, with these boxes painted over."""
    with Image.open(io.BytesIO(page.screenshot(animations="disabled"))) as shown:
        image = shown.convert("RGB")
    for box in boxes:
        ImageDraw.Draw(image).rectangle(box, fill="gray")
    return image


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_take_over_changes_no_pixel_but_of_controls_and_accents(
    app: App, site: Site, page: Page, scheme: Any
) -> None:
    conversation(app)
    inside.sql(app, "UPDATE comment SET pinned = 1 WHERE id = 1")
    write_post(app, site)
    page.emulate_media(color_scheme=scheme)
    width = page.evaluate("innerWidth")
    page.set_viewport_size({"width": width, "height": 5200})  # what is far is not drawn
    requested_paths(page, site)
    boxes = page.evaluate(CHANGING)
    before = picture(page, boxes)
    page.keyboard.press("Shift")
    page.locator("commentd-thread form").wait_for()
    settled(page)
    difference = ImageChops.difference(before, picture(page, boxes))
    assert max(difference.tobytes()) < 16  # of 255, as muted text


def test_a_script_that_is_there_before_its_fragment_shows_it(
    app: App, site: Site, browser: Browser
) -> None:
    conversation(app)
    inside.sql(app, "UPDATE comment SET created_at = ?", START)  # the 19th on that island
    fragment = Visitor(app).get("/fragment", {"url": POST, "lang": "en"}).text
    headers, html = article(site.service, lang="en", tag=fragment)[POST]
    script = f'<script src="{site.service}/embed.js"></script><main>'
    site.pages[POST] = (headers, html.replace("<main>", script))
    page = new_context(browser, timezone_id="Pacific/Kiritimati").new_page()
    requested_paths(page, site)
    expect(page.locator("commentd-thread time").first).to_have_text("Nov 19, 2026")
    for _ in range(2):
        expect(page.locator("commentd-thread form textarea")).to_be_visible()
        expect(page.locator("commentd-thread .body")).to_have_count(7)
        # As PJAX swaps pages: the fragment stays in its template.
        page.locator("commentd-thread").evaluate("(node, html) => node.outerHTML = html", fragment)
    page.route("**/slow.js", lambda _: None)  # for which no thread without a fragment waits
    html = html.replace(fragment, "<commentd-thread></commentd-thread>")
    site.pages[POST] = (headers, html + script + '<script defer src="/slow.js"></script>')
    page.goto(site.address + POST, wait_until="commit")
    expect(page.locator("commentd-thread form textarea")).to_be_visible()
    page.context.close()


def test_the_widget_shows_changes_since_a_fragment(app: App, site: Site, page: Page) -> None:
    first, second, third = (
        say(app, text, hours=hours) for text, hours in zip("abc", (9, 8, 7), strict=True)
    )
    reply = say(app, "reply", parent_id=second, hours=6)
    approved = say(app, "approved", hours=8.5)
    inside.set_status(app, approved, "waiting")
    write_post(app, site)
    inside.set_status(app, third, "spam")
    inside.set_status(app, reply, "deleted")
    inside.set_status(app, approved, "visible")
    say(app, "new reply", parent_id=first)
    say(app, "new")
    say(app, "imported", hours=99)
    requested_paths(page, site)
    assert texts(page) == ["c", "b", "reply", "a"]
    come_near(page)
    page.locator("commentd-thread form").wait_for()
    assert texts(page) == ["new", "b", "approved", "a", "new reply", "imported"]
    assert page.locator(".replies").count() == 1
    expect(page.locator(".head b")).to_have_text("6 comments")


@pytest.mark.parametrize(
    ("sort", "shown"),
    [
        ("newest", ["newer", "c", "b"]),
        ("oldest", ["older", "a", "b"]),
        ("likes", ["b", "newer", "c"]),
    ],
)
def test_comments_added_since_a_fragment_stand_where_the_list_has_them(
    app: App, site: Site, page: Page, sort: str, shown: list[str]
) -> None:
    for text, hours in zip("abc", (9, 8, 7), strict=True):
        say(app, text, hours=hours, likes=text == "b")
    write_post(app, site, sort=sort, limit="2")
    say(app, "newer")
    say(app, "older", hours=99)
    requested_paths(page, site)
    come_near(page)
    page.locator("commentd-thread form").wait_for()
    assert texts(page) == shown


def test_the_widget_acts_on_a_press_from_before_it_loaded(app: App, site: Site, page: Page) -> None:
    say(app, "hello", "Ann", hours=9)
    write_post(app, site)
    requested_paths(page, site)
    box = page.locator("commentd-thread .reply").bounding_box()
    assert box
    # The reader has not scrolled, since the page opens where they left it.
    width = page.evaluate("innerWidth")
    page.set_viewport_size({"width": width, "height": int(box["y"]) + 300})
    box = page.locator("commentd-thread .reply").bounding_box()
    assert box
    page.mouse.click(box["x"] + 5, box["y"] + 5)
    page.locator("commentd-thread article form").wait_for()


def test_a_reader_with_keys_stays_at_their_comment_when_the_widget_takes_over(
    app: App, site: Site, page: Page
) -> None:
    for number in range(3):
        say(app, f"No. {number}, [a link](https://example.com).", hours=number)
    write_post(app, site)
    with requests_held(page, "**/adopt.js*"):
        with page.expect_request("**/adopt.js*"):
            page.goto(site.address + POST)
            come_near(page)
        page.get_by_role("link", name="a link").nth(1).focus()
    expect(page.locator("commentd-thread[data-mark]")).to_have_count(0)
    expect(page.locator("commentd-thread article").nth(1)).to_be_focused()


def test_after_the_take_over_the_parts_of_a_form_stand_below_each_other(
    app: App, site: Site, page: Page
) -> None:
    conversation(app)
    write_post(app, site)
    requested_paths(page, site)
    come_near(page)
    page.get_by_role("button", name="Reply to").first.click()
    page.locator("commentd-thread article").get_by_role("button", name="Post").wait_for()
    tops_and_bottoms = page.evaluate(PARTS_OF_A_REPLY)
    assert len(tops_and_bottoms) > 1
    for (_, bottom), (top, _) in pairwise(tops_and_bottoms):
        assert bottom <= top + 1  # the format bar covers the border of the field


def test_with_the_service_down_comments_stay_and_the_form_says_so(
    app: App, site: Site, page: Page
) -> None:
    say(app, "hello", "Ann")
    write_post(app, site, service="http://127.0.0.1:9/")
    requested_paths(page, site)
    page.mouse.wheel(0, 9999)
    field = page.locator("commentd-thread textarea")
    expect(field).to_have_attribute("placeholder", widget_text("unreachable"))
    expect(field).to_be_visible()
    expect(page.locator("commentd-thread .body")).to_have_text("hello")


@service_with(site_origins=("https://blog.example",))
def test_a_blog_that_is_not_in_the_settings_keeps_its_comments_and_is_told(
    app: App, site: Site, page: Page
) -> None:
    say(app, "hello", "Ann")
    write_post(app, site)
    requested_paths(page, site)
    come_near(page)
    expect(page.get_by_role("alert")).to_contain_text("Comments are not enabled for this site.")
    expect(page.locator("commentd-thread .body")).to_have_text("hello")


COUNT = "<h1 style='margin-bottom: 2000px'><b data-commentd-count></b> "


def test_counts_on_a_page_leave_its_comments_until_the_reader_comes_near(
    app: App, site: Site, page: Page
) -> None:
    say(app, "hello", "Ann")
    write_post(app, site)
    headers, html = site.pages[POST]
    site.pages[POST] = (headers, html.replace("<h1>", COUNT))
    asked = requested_paths(page, site)
    expect(page.locator("[data-commentd-count]")).to_have_text("1")
    assert "/pages" in of_service(asked)
    assert not {"/comments", "/adopt.js"} & set(of_service(asked))
    come_near(page)
    expect(page.get_by_label("Write a comment…")).to_be_visible()
    assert "/comments" in of_service(asked)


def test_a_reader_is_told_and_can_try_again_when_changes_since_a_fragment_can_not_be_had(
    app: App, site: Site, page: Page
) -> None:
    say(app, "hello", "Ann")
    write_post(app, site)
    requested_paths(page, site)
    page.route("**/comments?*", lambda route: route.abort())
    come_near(page)
    expect(page.get_by_role("alert")).to_contain_text(widget_text("unreachable"))
    page.unroute("**/comments?*")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_label("Write a comment…")).to_be_visible()
    expect(page.locator("commentd-thread .body")).to_have_text("hello")


def test_without_scripts_a_text_says_that_writing_needs_them(
    app: App, site: Site, browser: Browser
) -> None:
    say(app, "hello", "Ann")
    write_post(app, site)
    page = new_context(browser, java_script_enabled=False).new_page()
    page.goto(site.address + POST)
    expect(page.locator("noscript p")).to_have_text(widget_text("script"))
    expect(page.locator("noscript p")).to_be_visible()
    expect(page.locator("commentd-thread textarea")).to_be_hidden()
    page.context.close()


def test_without_scripts_no_place_is_kept_for_the_buttons_that_they_bring(
    app: App, site: Site, browser: Browser
) -> None:
    say(app, "hello", "Ann", likes=1)
    say(app, "hi", "Bo")
    write_post(app, site)
    page = new_context(browser, java_script_enabled=False).new_page()
    page.goto(site.address + POST)
    kept = page.locator("commentd-thread [aria-hidden=true]:not(.line)")
    assert kept.count() > 4
    assert set(kept.evaluate_all("all => all.map(node => node.getClientRects().length)")) == {0}
    rows = page.locator("commentd-thread .actions")
    heights = rows.evaluate_all("all => all.map(node => node.offsetHeight > 0)")
    assert heights == [False, True]  # a number of likes stays
    page.context.close()


@pytest.mark.parametrize(("lang", "text"), [("en", "The comments"), ("zh-CN", "评论服务")])
def test_with_the_service_down_an_empty_thread_says_so_and_holds_no_height(
    app: App, site: Site, page: Page, lang: str, text: str
) -> None:
    write_post(app, site, service="http://127.0.0.1:9/")
    style = "<style>commentd-thread:not([style]) { display: block; height: 100vh }</style>"
    tag = '<script src="/loader.js" data-service="http://127.0.0.1:9/" async></script>'
    thread = f"{style}<commentd-thread></commentd-thread>{tag}"
    site.pages.update(article(site.service, lang=lang, tag=thread))
    requested_paths(page, site)
    expect(page.locator("commentd-thread")).to_contain_text(text)
    assert page.locator("commentd-thread").evaluate("thread => thread.clientHeight") < 100


def widget_text(key: str) -> str:
    return WORDS["en"][key]


@service_with(site_picture=str(ROOT / ".ci/admin.png"))
def test_the_widget_shows_the_picture_of_the_owner(app: App, site: Site, page: Page) -> None:
    say(app, "hello", OWNER)
    say(app, "hi", "Ann")
    write_post(app, site)
    asked = requested_paths(page, site)
    backgrounds = """() => [...document.querySelector('commentd-thread').shadowRoot
      .querySelectorAll('.avatar')].map(node => getComputedStyle(node).backgroundImage)"""
    picture = f'url("{site.service}/picture")'
    come_near(page)
    page.locator("commentd-thread form").wait_for()
    settled(page)
    assert sorted(page.evaluate(backgrounds)) == ["none", picture]
    assert "/picture" in asked
