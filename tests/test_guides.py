"""The guides for generators and themes, each followed on a real blog: see support/sites.py."""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from commentd import App
from support import blog, inside, sites
from support.sites import EXAMPLE, MUTE, PATH, QUIET, SITES

SCHEMES: tuple[Any, ...] = ("light", "dark")
OF_THEMES = r"DIV\.back-to-top|NAV\."  # what they show or hide while one scrolls
FRAMES = "() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))"
TOPS = """element => {
  window.tops = new Set()
  const look = () => {
    tops.add(Math.round(element.getBoundingClientRect().top))
    requestAnimationFrame(look)
  }
  look()
}"""
HEIGHT = "thread => thread.clientHeight"
PLACE = """([slot, after]) => {
  const host = document.querySelector('commentd-thread')
  const last = [...document.querySelectorAll(after)].at(-1)
  return {
    matches: host.matches(slot),
    follows: Boolean(last?.compareDocumentPosition(host) & Node.DOCUMENT_POSITION_FOLLOWING),
    fits: document.documentElement.scrollWidth <= innerWidth,
  }
}"""


@pytest.fixture(scope="module")
def app() -> Iterator[App]:
    with blog.own_app() as app:
        blog.conversation(app, PATH)
        yield app


@pytest.fixture(scope="module")
def service(app: App) -> Iterator[str]:
    with blog.service(app) as url:
        yield url


@pytest.fixture(scope="module")
def folder(pytestconfig: pytest.Config) -> Path:
    """Keeps what generators and themes need from one run to the next."""
    return pytestconfig.cache.mkdir("sites")


def shifts_at_the_end(page: Page, site: sites.Site, url: str) -> list[Any]:
    """What moves for a reader who went to the end before the script and the list were there."""
    held: list[Route] = []
    for part in ("**/embed.js", "**/comments?*"):
        page.route(part, lambda route: held.append(route))
    page.goto(url, wait_until="domcontentloaded")
    page.evaluate("document.fonts.ready")
    blog.settle(page)
    page.evaluate("scrollTo({top: 1e6, behavior: 'instant'})")
    blog.settle(page)
    before = page.evaluate("watch.shifts.length")
    if site.stays:
        page.locator(site.stays).evaluate(TOPS)
    held[0].fallback()
    page.locator("commentd-thread .wait").wait_for(state="attached")
    while len(held) < 2:
        page.evaluate(FRAMES)
    page.evaluate(FRAMES)
    held[1].fallback()
    page.locator("commentd-thread article").first.wait_for(state="attached")
    blog.settle(page)
    if site.stays:
        return list(page.evaluate("[...tops].slice(1)"))
    return moved(page, before)


def moved(page: Page, before: int = 0) -> list[str]:
    """What moved in the page. Bars and buttons that a theme shows while one scrolls are its own."""
    shifts = page.evaluate("before => watch.shifts.slice(before)", before)
    parts = [part for _, _, sources in shifts for part in sources.split(" | ")]
    return [part for part in parts if not re.match(OF_THEMES, part)]


def look(page: Page, site: sites.Site, url: str) -> dict[str, Any]:
    """Opened at the top: where the comments are, what moved, which texts are faint."""
    page.goto(url)
    blog.settle(page)
    threads = page.locator("commentd-thread")
    found = {
        "comments": (threads.count(), threads.locator("article").count()),
        "place": page.evaluate(PLACE, [site.slot, site.after]),
        "moved": moved(page),
    }
    threads.first.locator("textarea").focus()
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        blog.settle(page)
        texts = page.evaluate("watch.texts()")
        assert len(texts) > 50
        found[f"faint in {scheme}"] = [each for each in texts if each[1] < 4.5]
    return found


def follow_a_link(page: Page) -> tuple[int, int]:
    """The threads and comments after a link to the other post."""
    page.locator(f'a[href="{QUIET}"]').first.evaluate("link => link.click()")
    page.wait_for_url(f"**{QUIET}")
    blog.settle(page)
    threads = page.locator("commentd-thread")
    return threads.count(), threads.locator("article").count()


@pytest.mark.long
@pytest.mark.parametrize("name", SITES)
def test_a_theme_has_the_comments_in_its_own_place(
    browser: Browser, service: str, folder: Path, name: str
) -> None:
    site = SITES[name]
    try:
        built = sites.make(folder, name, service)
    except sites.NotHere as error:
        pytest.skip(f"{name} can't be had: {error}")
    packages = folder / "packages" / site.generator
    whole = {"matches": True, "follows": True, "fits": True}
    fine = {"comments": (1, len(blog.CONVERSATION)), "place": whole, "moved": []}
    fine |= {f"faint in {scheme}": [] for scheme in SCHEMES}
    with sites.served(built) as url:
        for width in (390, 1280):
            page = sites.opened(browser, packages, width)
            assert (width, look(page, site, url + PATH)) == (width, fine)
            if name == "hexo-next":
                count = page.locator(f'a[data-commentd-count="{PATH}"]')
                expect(count).to_have_text(str(len(blog.CONVERSATION)))
            if site.swaps:
                assert (width, follow_a_link(page)) == (width, (1, 0))
            if site.generator == "hexo":
                page.goto(url + MUTE)
                assert page.locator("commentd-thread, [data-commentd-count]").count() == 0
            page.context.close()
            page = sites.opened(browser, packages, width)
            assert (width, shifts_at_the_end(page, site, url + PATH)) == (width, [])
            page.context.close()
        page = sites.opened(browser, packages, 390, java_script_enabled=False)
        page.goto(url + PATH)
        assert page.locator("commentd-thread").evaluate(HEIGHT) < 100
        page.context.close()


KEPT = """() => {
  watch.thread = document.querySelector('.commentd')
  return {
    fits: document.documentElement.scrollWidth <= innerWidth,
    faint: watch.texts().filter(each => each[1] < 4.5),
    texts: watch.texts().length,
  }
}"""


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in SITES if name != "vitepress"])
def test_a_theme_shows_the_comments_in_its_sources_without_the_service(
    browser: Browser, app: App, folder: Path, name: str
) -> None:
    site = SITES[name]
    try:
        built = sites.make(folder, name, EXAMPLE, inside.database_path(app))
    except sites.NotHere as error:
        pytest.skip(f"{name} can't be had: {error}")
    with sites.served(built) as url:
        for width, scheme in product((390, 1280), SCHEMES):
            page = sites.opened(browser, folder / "packages" / site.generator, width, scheme)
            page.goto(url + PATH)
            blog.settle(page)
            assert page.locator(".commentd [role=article]").count() == len(blog.CONVERSATION)
            assert page.locator("commentd-thread").count() == 0
            found = page.evaluate(KEPT)
            assert found.pop("texts") > 30
            assert (width, scheme, found) == (width, scheme, {"fits": True, "faint": []})
            page.goto(url + QUIET)
            assert page.locator(".commentd").count() == 0
            page.context.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["en/astro", "zh/hexo", "en/hugo", "zh/jekyll"])
def test_the_guides_hold_no_height_where_no_script_runs_and_not_for_ever_where_none_comes(
    browser: Browser, name: str
) -> None:
    text = (sites.ROOT / f"static/help/{name}.md").read_text("utf-8")
    blocks = re.findall(r"```\w+\n(.*?)```", text, re.DOTALL)
    held = [block for block in blocks if "14em) } }</style>" in block]
    assert held
    for block in held:
        for scripted in (False, True):
            page = browser.new_context(java_script_enabled=scripted).new_page()
            page.set_content(block + "<commentd-thread></commentd-thread>")
            thread = page.locator("commentd-thread").last
            assert (thread.evaluate(HEIGHT) > 100) == scripted
            if scripted:
                page.evaluate("document.getAnimations().forEach(each => each.finish())")
                assert thread.evaluate(HEIGHT) < 100
            page.context.close()


@pytest.mark.parametrize("topic", ["astro", "hexo", "hugo", "jekyll"])
def test_the_guides_say_the_same_in_both_languages(topic: str) -> None:
    code = []
    for language in ("en", "zh"):
        text = (sites.ROOT / f"static/help/{language}/{topic}.md").read_text("utf-8")
        text = text.replace("评论数：", "Comments: ").replace("查看评论", "Read the comments")
        blocks = re.findall(r"```.*?```", text, re.DOTALL)
        spans = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
        code.append((blocks, sorted(spans)))
    assert code[0] == code[1]


# An element of the widget in a guide, or what makes one: HTML, Pug, Vue.
MADE = re.compile(r"<commentd-thread[^>]*>|post-comment: commentd-thread.*|h\('comm.*")


@pytest.mark.parametrize("topic", ["astro", "hexo", "hugo", "jekyll"])
def test_links_to_the_comments_find_their_place_before_any_script_is_there(topic: str) -> None:
    for language in ("en", "zh"):
        text = (sites.ROOT / f"static/help/{language}/{topic}.md").read_text("utf-8")
        for block in re.findall(r"```.*?```", text, re.DOTALL):
            if MADE.search(block):
                assert re.search(r"""id="comments"|id: 'comments'|thread#comments""", block), block
