"""Whom the widget must not shut out: each of its states as `support/accessibility.py` looks at it
(axe-core, names, contrast, the keyboard, targets, forced colours, small screens), what is
announced, and what does not move, in a real Chromium."""

import re
from collections.abc import Iterator
from itertools import cycle
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support import accessibility
from support.accessibility import focus_stops
from support.blog import WATCH, begin_to_read, say
from support.widget_states import STATES
from support.writing import (
    BlogSite,
    article,
    button,
    choices,
    choose,
    main,
    open_account,
    post,
    reach,
    sign_in,
)
from support.writing import account as account  # a fixture
from support.writing import address as address  # a fixture
from support.writing import blog_site as blog_site  # a fixture
from support.writing import config as config  # a fixture
from support.writing import fake_world as fake_world  # a fixture
from support.writing import mail_server as mail_server  # a fixture
from support.writing import pages as pages  # a fixture

pytestmark = pytest.mark.slow


# States

# In the test command, with each look, each scheme and both directions among them. The other states
# differ little from one of these: they are for the long tier, which takes each by itself.
SHOWN_ALWAYS = [
    "thread",
    "writing, with preview",
    "mail and website",
    "no name",
    "editing",
    "unfolded",
    "quoting",
    "new comments",
    "keyboard help",
    "latest comments",
    "closed",
    "refused site",
    "offline, posting",
    "sign in, refused",
    "register",
    "code",
    "account",
    "account, deleting",
    "admin's menu",
    "sign in, providers",
    "account, providers",
    "account, showing who one is",
    "lively",
    "stickers",  # in Arabic, whose search field is the widest
    "reacted",
    "stickers, none found",
    "picture asked for",
    "picture enlarged",
    "faces",
    "preview of all",
    "deleting",
]
DRESSES = cycle([("essay", "light"), ("code", "dark"), ("photo", "light"), ("essay", "forced")])
ONCE = [*zip(SHOWN_ALWAYS, cycle(["en", "zh-CN", "ar"]), DRESSES, strict=False)]
WALKED_ALWAYS = [
    "to like",
    "to fold and unfold",
    "to leave a menu",
    "to order",
    "to show more",
    "to use single keys",
]


@pytest.fixture(scope="module")
def examined_site(browser: Browser) -> Iterator[accessibility.ExaminedSite]:
    with accessibility.examined_site_running(browser) as made:
        yield made


@pytest.fixture
def report(examined_site: accessibility.ExaminedSite) -> accessibility.Report:
    examined_site.report = accessibility.Report()
    return examined_site.report


@pytest.mark.parametrize(("state", "lang", "dress"), ONCE)
def test_each_state_of_the_widget_is_accessible(
    examined_site: accessibility.ExaminedSite,
    report: accessibility.Report,
    state: str,
    lang: str,
    dress: accessibility.Dress,
) -> None:
    accessibility.examine(examined_site, state, lang, [dress], whole=True)
    assert accessibility.findings_of(report) == []
    assert report.checks["1.4.3"] > 0


@pytest.mark.parametrize("path", [*WALKED_ALWAYS, "to point"])
def test_each_path_through_the_widget_works_by_keys_alone_and_a_press_that_moves_away_does_nothing(
    examined_site: accessibility.ExaminedSite, report: accessibility.Report, path: str
) -> None:
    accessibility.walk_path(examined_site, path, "en")
    assert accessibility.findings_of(report) == []


@pytest.mark.long
@pytest.mark.parametrize("name", [*STATES, *accessibility.PATHS])
def test_each_state_of_the_widget_is_accessible_in_all_languages_looks_and_schemes(
    examined_site: accessibility.ExaminedSite, report: accessibility.Report, name: str
) -> None:
    accessibility.run(examined_site, [name], accessibility.LANGS, accessibility.SCHEMES)
    assert accessibility.findings_of(report) == []


# Where the keyboard stops


def watched(blog_site: BlogSite, **how: Any) -> Page:
    page = blog_site.open(**how)
    page.evaluate(WATCH)
    return page


def test_tab_goes_through_a_thread_as_one_reads_and_is_seen_everywhere(blog_site: BlogSite) -> None:
    say(blog_site.app, "Older.", "Bo", website="https://bo.example/", likes=1)
    first = say(blog_site.app, "[Newer](https://a.example/).", "Cy", hours=0.5)
    say(blog_site.app, "A reply.", "Di", hours=0.4, parent_id=first)
    page = watched(blog_site)
    expect(article(page, "Older.")).to_be_visible()
    begin_to_read(page)
    found = focus_stops(page)
    names = [re.sub(r"\d+ (minutes|hour) ago", "T", name) for _, name, _ in found]
    assert names[0] == "Write a comment…"
    assert names[names.index("Like this page 0") :] == [
        *("Like this page 0", "Sort by"),
        *("T", "Newer", "Like 0", "Reply to Cy", "More: Cy"),
        *("Hide replies", "T", "Like 0", "Reply to Di", "More: Di"),
        *("Bo", "T", "Like 1", "Reply to Bo", "More: Bo"),
    ]
    assert [stop for stop in found if not stop[2]] == []


def test_a_folded_text_opens_when_a_link_in_it_gets_the_focus(blog_site: BlogSite) -> None:
    say(blog_site.app, "A long text. " * 80 + "[last link](https://a.example/)")
    page = blog_site.open()
    reach(page.get_by_role("link", name="last link"))
    expect(page.locator("article .body")).to_have_css("max-height", "none")


# Announcements and names


def test_changes_are_announced_to_screen_readers_and_the_same_one_twice_too(
    blog_site: BlogSite, account: int
) -> None:
    page = watched(blog_site)
    status = page.get_by_role("status").first
    expect(status).to_be_empty()
    post(page, "First.")
    expect(status).to_have_text("Posted.")
    page.evaluate("watch.listen()")
    mine = post(page, "Second.")
    assert "Posted." in page.evaluate("watch.told")
    choose(mine, "Delete")
    button(page, "Delete it?").click()
    expect(status).to_have_text("This comment was removed.")
    open_account(page)
    sign_in(page)
    expect(status).to_have_text("You are signed in.")


def test_an_error_is_an_alert_only_where_the_focus_does_not_lead_to_it(blog_site: BlogSite) -> None:
    page = blog_site.open()
    main(page).fill("")
    button(page, "Post").click()
    expect(main(page)).to_be_focused()
    expect(main(page)).to_have_accessible_description("Please write something first.")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_have_text("Please write something first.")


def test_the_parts_of_a_thread_say_what_they_are_and_whose(blog_site: BlogSite) -> None:
    say(blog_site.app, "Hers.", "Noor Rahman", likes=2)
    page = blog_site.open()
    region = page.get_by_role("region", name="Comments")
    for role in ("list", "listitem", "article"):
        expect(region.get_by_role(role)).to_have_count(1)
    expect(button(region, "Like 2")).to_have_attribute("aria-pressed", "false")
    time = re.compile(r"^\d{4}-\d\d-\d\dT.*Z$")
    expect(page.locator("commentd-thread time")).to_have_attribute("datetime", time)
    expect(page.locator(".fresh")).to_have_count(0)
    begin_to_read(page)
    link = region.get_by_role("link", name=re.compile("ago"))
    expect(link).to_have_attribute("title", re.compile(r"\d"))
    page.locator(".head").click(position={"x": 1, "y": 1})
    menu = choices(article(page, "Hers."))
    expect(menu).to_have_accessible_name("More: Noor Rahman")
    expect(button(menu, "Copy link")).to_be_focused()
    page.mouse.click(5, 5)  # beside it
    expect(menu).to_have_count(0)
    expect(button(page, "More: Noor Rahman")).to_be_focused()
    # News of others has its place before there is any.
    expect(page.locator(".fresh")).to_have_role("status")
    expect(page.locator(".fresh")).to_be_empty()


# Forced colours and motion


def test_a_like_is_seen_in_forced_colours_which_leave_none_behind(blog_site: BlogSite) -> None:
    say(blog_site.app, "Hers: https://hers.example/")
    page = blog_site.open(forced_colors="active")
    heart = article(page, "Hers:").locator(".like")
    shape = "e => getComputedStyle(e, '::before').clipPath"
    hollow = heart.evaluate(shape)
    heart.click()
    expect(heart).to_have_attribute("aria-pressed", "true")
    assert heart.evaluate(shape) != hollow
    hers = article(page, "Hers:").get_by_role("link", name="hers.example")
    own = "a => getComputedStyle(document.querySelector('commentd-thread > a')).color"
    forced = hers.evaluate("a => getComputedStyle(a).color")
    page.emulate_media(forced_colors="none")
    expect(hers).not_to_have_css("color", forced)
    expect(hers).to_have_css("color", hers.evaluate(own))


def test_reduced_motion_moves_nothing_in_the_widget(blog_site: BlogSite) -> None:
    say(blog_site.app, "Hers.")
    page = blog_site.open(reduced_motion="reduce")
    expect(article(page, "Hers.")).to_be_visible()
    moving = page.evaluate(
        """() => [...document.querySelector('commentd-thread').shadowRoot.querySelectorAll('*')]
          .map(e => [e.localName, getComputedStyle(e)])
          .filter(([, s]) => s.scrollBehavior === 'smooth' || s.animationName !== 'none'
            || s.transitionDuration.split(',').some(t => parseFloat(t)))
          .map(([name]) => name)"""
    )
    assert moving == []
