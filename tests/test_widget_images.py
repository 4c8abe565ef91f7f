"""Stickers and pictures in the widget."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, Route, expect

from support import blog
from support.accessibility import NO_CONTRAST, run_axe
from support.blog import POST, say
from support.serving import until
from support.writing import UNREACHED, BlogSite, button, main, requests_of, write
from support.writing import address as address  # a fixture
from support.writing import blog_site as blog_site  # a fixture
from support.writing import config as config  # a fixture
from support.writing import fake_world as fake_world  # a fixture
from support.writing import mail_server as mail_server  # a fixture
from support.writing import pages as pages  # a fixture

PICTURE = "https://i.example/cat.png"


def file_of(path: Path, width: int = 64, height: int = 64) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (width, height), (200, 80, 0)).save(path)


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "stickers"
    for number in range(1, 31):
        file_of(folder / "cats" / f"cat{number:02}.png")
    file_of(folder / "dogs" / "happy.png", 128, 64)
    (folder / "dogs" / "drawn.svg").write_text(
        '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40">'
        '<style>circle { fill: #080 }</style><circle cx="20" cy="20" r="20"/></svg>',
        "utf-8",
    )
    return {
        "stickers_folder": str(folder),
        "comments_picture_hosts": ("https://i.example",),
        "limits_enabled": False,
    }


@pytest.fixture
def host(blog_site: BlogSite, tmp_path: Path) -> list[dict[str, str]]:
    """The headers of each request to the host of the pictures."""
    asked: list[dict[str, str]] = []
    file_of(tmp_path / "cat.png", 800, 400)
    body = (tmp_path / "cat.png").read_bytes()

    def respond(route: Route) -> None:
        asked.append(route.request.headers)
        route.fulfill(body=body, content_type="image/png")

    opened = blog_site.reader

    def reader(*args: Any, **how: Any) -> Page:
        page = opened(*args, **how)
        page.route("https://i.example/**", respond)
        return page

    blog_site.reader = reader  # type: ignore[method-assign]
    return asked


def chooser(page: Page, language: str = "en") -> Locator:
    """The stickers, opened."""
    main(page).focus()
    opener = page.locator(".smile")
    opener.click()
    dialog = page.locator(".chooser")
    expect(dialog).to_be_visible()
    return dialog


def is_drawn(image: Locator) -> bool:
    return bool(image.evaluate("image => image.decode().then(() => image.naturalWidth > 0)"))


# Stickers


def test_a_sticker_is_chosen_by_keyboard_posted_and_seen(blog_site: BlogSite) -> None:
    page = blog_site.open()
    write(page, "Look")
    modules = requests_of(page, "/stickers.js")
    opener = page.get_by_role("button", name="Stickers")
    expect(opener).to_be_visible()
    assert modules == []
    opener.focus()
    page.keyboard.press("Enter")
    search = page.get_by_role("searchbox", name="Search stickers")
    expect(search).to_be_focused()
    assert len(modules) == 1
    page.keyboard.type("HAPPY")
    expect(page.locator(".packs button:visible")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("button", name="happy")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".chooser")).to_have_count(0)
    expect(main(page)).to_be_focused()
    expect(main(page)).to_have_value("Look:dogs_happy:")
    button(page, "Post").click()
    sticker = page.get_by_role("article").get_by_role("img", name="happy")
    expect(sticker).to_be_visible()
    assert is_drawn(sticker)
    box = sticker.bounding_box()
    assert box is not None
    assert box["width"] == pytest.approx(2 * box["height"])


def test_stickers_that_do_not_come_are_told_and_can_be_asked_for_again(blog_site: BlogSite) -> None:
    page = blog_site.open(faults=UNREACHED)
    blog_site.expected.append("stickers.json could not be loaded")
    page.route("**/stickers.json*", lambda route: route.abort())
    main(page).focus()
    opener = page.locator(".smile")
    opener.press("Enter")
    expect(page.get_by_role("alert")).to_have_text(re.compile("can’t be reached"))
    expect(opener).to_be_focused()
    page.unroute("**/stickers.json*")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").locator("img").first).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_an_svg_sticker_is_drawn_with_its_style(blog_site: BlogSite) -> None:
    say(blog_site.app, "A :dogs_drawn: one")
    page = blog_site.open()
    sticker = page.get_by_role("img", name="drawn")
    assert is_drawn(sticker)
    with Image.open(io.BytesIO(sticker.screenshot())) as seen:
        middle = seen.convert("RGB").getpixel((seen.width // 2, seen.height // 2))
    assert middle == (0, 136, 0)


def test_arrow_keys_go_through_the_stickers_in_rows(blog_site: BlogSite) -> None:
    page = blog_site.open()
    dialog = chooser(page)
    focused = dialog.locator("button:focus")
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_accessible_name("cat01")
    page.keyboard.press("ArrowRight")
    expect(focused).to_have_accessible_name("cat02")
    page.keyboard.press("ArrowDown")
    name = re.compile(r"cat(0[3-9]|1\d)")
    expect(focused).to_have_accessible_name(name)
    page.keyboard.press("ArrowUp")
    expect(focused).to_have_accessible_name("cat02")
    page.keyboard.press("End")
    expect(focused).to_have_accessible_name("happy")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.press("Tab")
    expect(focused).to_have_accessible_name("cat01")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator(".smile")).to_be_focused()


def test_the_stickers_chosen_last_stand_first(blog_site: BlogSite) -> None:
    page = blog_site.open()
    for name in ("cat05", "happy", "cat05"):
        chooser(page).get_by_role("button", name=name).last.click()
    dialog = chooser(page)
    group = dialog.get_by_role("group").first
    expect(group).to_have_accessible_name("Used last")
    expect(group.get_by_role("button")).to_have_count(2)
    expect(group.get_by_role("button").first).to_have_accessible_name("cat05")


def test_a_search_without_a_match_says_so(blog_site: BlogSite) -> None:
    page = blog_site.open()
    dialog = chooser(page)
    page.keyboard.type("zebra")
    expect(dialog.get_by_role("status")).to_have_text("No sticker has that name.")
    expect(dialog.locator(".packs button:visible")).to_have_count(0)
    page.mouse.click(5, 5)
    expect(dialog).to_have_count(0)


def test_stickers_are_chosen_by_touch_without_a_keyboard_over_them(blog_site: BlogSite) -> None:
    page = blog_site.open(lang="zh-CN", has_touch=True, is_mobile=True, viewport=PHONE)
    main(page).tap()
    page.locator(".smile").tap()
    dialog = page.locator(".chooser")
    expect(dialog.locator("button:focus")).to_have_count(1)
    box = dialog.bounding_box()
    assert box is not None
    assert (box["x"], box["width"]) == (0, PHONE["width"])
    assert box["y"] + box["height"] == PHONE["height"]
    dialog.get_by_role("button", name="cat03").tap()
    expect(main(page)).to_have_value(":cats_cat03:")


PHONE = {"width": 390, "height": 800}


@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("width", [320, 1280])
def test_the_stickers_lie_within_the_window(blog_site: BlogSite, language: str, width: int) -> None:
    page = blog_site.open(lang=language, viewport={"width": width, "height": 600})
    box = chooser(page).bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["x"] + box["width"] <= width
    assert box["y"] + box["height"] <= 600
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_axe_finds_nothing_in_stickers_and_pictures(
    blog_site: BlogSite, host: list[dict[str, str]]
) -> None:
    say(blog_site.app, f":cats_cat01: ![a cat]({PICTURE})")
    for look in ("light", "dark"):
        page = blog_site.open(color_scheme=look, forced_colors="none")
        expect(page.get_by_role("img", name="a cat")).to_be_visible()
        assert violations(page) == []
        chooser(page)
        assert violations(page) == []
        page.keyboard.press("Escape")
        page.locator(".picture").click()
        expect(page.locator(".large")).to_be_visible()
        assert violations(page) == []


def violations(page: Page) -> list[str]:
    found = run_axe(page, "commentd-thread", {"rules": NO_CONTRAST})
    return blog.nodes_of(found["violations"])


# Pictures


def test_a_picture_is_shown_and_its_host_learns_no_page(
    blog_site: BlogSite, host: list[dict[str, str]]
) -> None:
    say(blog_site.app, f"![a cat]({PICTURE})")
    page = blog_site.open()
    image = page.get_by_role("img", name="a cat")
    image.scroll_into_view_if_needed()
    assert is_drawn(image)
    assert len(host) == 1
    assert "referer" not in host[0]
    assert "cookie" not in host[0]
    expect(image).to_have_attribute("loading", "lazy")


def test_a_picture_moves_nothing_when_it_comes(
    blog_site: BlogSite, host: list[dict[str, str]]
) -> None:
    say(blog_site.app, "Below it.")
    say(blog_site.app, f"![a cat]({PICTURE})")
    page = blog_site.reader()
    held: list[Route] = []
    page.route("https://i.example/**", lambda route: held.append(route))
    blog_site.go(page)
    image = page.get_by_role("img", name="a cat")
    image.scroll_into_view_if_needed()
    expect(page.get_by_text("Below it.")).to_be_visible()
    before = page.get_by_text("Below it.").bounding_box()
    for route in held:
        route.fallback()
    assert is_drawn(image)
    assert page.get_by_text("Below it.").bounding_box() == before


def test_a_lost_picture_in_sight_keeps_its_room_and_further_down_is_a_link(
    blog_site: BlogSite,
) -> None:
    say(blog_site.app, f"![far below]({PICTURE}?below)", hours=3)
    for number in range(9):
        say(blog_site.app, f"Comment {number}.", hours=2)
    say(blog_site.app, f"![a cat]({PICTURE})")
    blog_site.expected.append("ERR_FAILED")
    page = blog_site.reader()
    held: list[Route] = []
    page.route("https://i.example/**", lambda route: held.append(route))
    blog_site.go(page)
    page.get_by_role("button", name=re.compile("more")).click()
    expect(page.locator("article").last).to_be_focused()
    in_sight = page.get_by_role("link", name="a cat")
    in_sight.scroll_into_view_if_needed()
    # Playwright hears of requests while it is asked something, and not while this thread sleeps.
    until(lambda: page.title() and len(held) == 2)
    before = page.get_by_text("Comment 8.").bounding_box()
    for route in held:
        route.abort()
    expect(in_sight).to_have_text("a cat")
    assert page.get_by_text("Comment 8.").bounding_box() == before
    below = page.get_by_role("link", name="far below")
    expect(below).to_have_text("far below")
    expect(below).to_have_css("display", "inline")


def test_a_press_opens_a_picture_large_and_the_focus_comes_back(
    blog_site: BlogSite, host: list[dict[str, str]]
) -> None:
    say(blog_site.app, f"![a cat]({PICTURE})")
    page = blog_site.open()
    link = page.get_by_role("link", name="a cat")
    modules = requests_of(page, "/enlarge.js")
    link.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="a cat")
    expect(dialog).to_be_visible()
    assert len(modules) == 1
    box = dialog.get_by_role("img").bounding_box()
    assert box is not None
    assert box["width"] > 700
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(link).to_be_focused()
    link.click()
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)
    link.click()
    dialog.get_by_role("img").click()
    expect(dialog).to_have_count(0)
    assert page.url.endswith(POST)


def test_a_picture_without_a_description_is_asked_for_one_once(
    blog_site: BlogSite, host: list[dict[str, str]]
) -> None:
    page = blog_site.open()
    write(page, f"Look: ![]({PICTURE})")
    sent = requests_of(page, "/comments")
    button(page, "Post").click()
    expect(page.get_by_role("alert")).to_contain_text("square brackets")
    expect(main(page)).to_be_focused()
    assert main(page).evaluate("field => field.selectionStart") == len("Look: ![")
    assert [each for each in sent if each.method == "POST"] == []
    page.keyboard.type("a cat")
    button(page, "Post").click()
    expect(page.get_by_role("article").get_by_role("img", name="a cat")).to_be_visible()

    write(page, f"Again: ![]({PICTURE})")
    button(page, "Post").click()
    expect(page.get_by_role("alert")).to_contain_text("square brackets")
    button(page, "Post").click()
    expect(page.get_by_role("article").filter(has_text="Again:")).to_have_count(1)


def test_a_picture_of_another_host_is_a_link(blog_site: BlogSite) -> None:
    say(blog_site.app, "![a cat](https://other.example/cat.png)")
    page = blog_site.open()
    expect(page.get_by_role("link", name="a cat")).to_be_visible()
    expect(page.locator(".body img")).to_have_count(0)


@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_a_blog_without_images_asks_for_no_file_of_theirs(blog_site: BlogSite) -> None:
    say(blog_site.app, f":cats_cat01: ![a cat]({PICTURE})")
    page = blog_site.reader()
    asked = requests_of(page, "")
    blog_site.go(page)
    write(page, f"![]({PICTURE})")
    button(page, "Post").click()
    expect(page.get_by_role("article").get_by_role("link", name=PICTURE)).to_be_visible()
    names = " ".join(each.url for each in asked)
    assert not re.search("sticker|image|enlarge|i.example", names)
    expect(page.locator(".smile")).to_have_count(0)


def test_the_preview_and_the_latest_comments_know_stickers(blog_site: BlogSite) -> None:
    page = blog_site.open()
    write(page, "So :dogs_happy: am I")
    button(page, "Preview").click()
    expect(page.locator(".preview").get_by_role("img", name="happy")).to_be_visible()
