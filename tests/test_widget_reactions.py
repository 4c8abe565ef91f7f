"""The buttons with which readers react to a page, in a real Chromium."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from commentd import App
from support.blog import POST, answering
from support.inside import sql
from support.widget import SETTINGS, View, fill, settled
from support.widget import asked as asked  # a fixture
from support.widget import fake_world as fake_world  # a fixture
from support.widget import faults as faults  # a fixture
from support.widget import options as options  # a fixture
from support.widget import page as page  # a fixture
from support.widget import site as site  # a fixture
from support.widget import view as view  # a fixture
from support.words import WORDS

pytestmark = pytest.mark.slow

THUMB, PARTY = "👍", "🎉"
ON = {**SETTINGS, "comments_reactions": (THUMB, PARTY)}
ENGLISH = {"lang": "en"}


@pytest.fixture
def settings() -> dict[str, Any]:
    return ON


def reaction(page: Page, emoji: str = THUMB, language: str = "en") -> Locator:
    label = WORDS[language]["react"].replace("{n}", emoji)
    return page.get_by_role("button", name=label)


def expect_reaction(target: Locator, count: int, *, pressed: bool) -> None:
    expect(target).to_have_attribute("aria-pressed", str(pressed).lower())
    expect(target.locator("b")).to_have_text(str(count or ""))
    expect(target).to_have_accessible_name(f"{EN_REACT.replace('{n}', THUMB)} {count}")


EN_REACT = WORDS["en"]["react"]


def test_a_reader_reacts_and_takes_it_back_with_the_same_button(app: App, view: View) -> None:
    fill(app, 2)
    page = view(**ENGLISH)
    group = page.get_by_role("group", name=WORDS["en"]["reactions"])
    expect(group.get_by_role("button")).to_have_count(2)
    expect_reaction(reaction(page), 0, pressed=False)
    reaction(page).click()
    expect_reaction(reaction(page), 1, pressed=True)
    settled(page)
    page.reload()
    expect_reaction(reaction(page), 1, pressed=True)
    expect(reaction(page, PARTY)).to_have_attribute("aria-pressed", "false")
    reaction(page).focus()
    page.keyboard.press("Enter")
    expect_reaction(reaction(page), 0, pressed=False)
    settled(page)
    assert sql(app, "SELECT count FROM reaction") == [(0,)]


def test_a_reaction_that_is_refused_is_undone_and_says_why(
    app: App, view: View, faults: list[str]
) -> None:
    page = view(**ENGLISH)
    settled(page)

    def refuse(environ: Any, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] == "/page/react" and environ["REQUEST_METHOD"] == "POST":
            return "429 Too Many Requests", headers, b'{"error": "x", "code": "too_many"}'
        return status, headers, body

    with answering(app, refuse):
        reaction(page).click()
        expect(page.get_by_role("alert")).to_be_visible()
        expect_reaction(reaction(page), 0, pressed=False)
    faults.clear()


SHIFTS = """window.shifts = []
new PerformanceObserver(list => shifts.push(...list.getEntries().map(it => it.value)))
    .observe({type: 'layout-shift', buffered: true})"""


@pytest.mark.parametrize("options", [{"viewport": {"width": 390, "height": 800}}])
def test_nothing_moves_when_the_numbers_of_reactions_come(app: App, view: View) -> None:
    fill(app, 3)
    sql(app, "INSERT INTO reaction (page_id, emoji, count) SELECT id, '👍', 98 FROM page")
    for number in range(98):
        sql(app, "INSERT INTO reaction_liker VALUES (1, ?, NULL)", f"visitor {number}")
    view.page.add_init_script(SHIFTS)
    page = view(**ENGLISH)
    expect(reaction(page).locator("b")).to_have_text("98")
    settled(page)
    assert page.evaluate("shifts") == []


def test_reactions_cost_no_request_before_somebody_reacts(
    app: App, view: View, asked: list[str]
) -> None:
    view(**ENGLISH)
    settled(view.page)
    assert [line.rpartition("/")[2].partition("?")[0] for line in asked] == [
        POST.rpartition("/")[2],
        "embed.js",
        "comments",
    ]


def test_reactions_are_named_in_the_language_of_the_page(view: View) -> None:
    for language in ("ar", "de"):
        page = view(lang=language)
        group = page.get_by_role("group", name=WORDS[language]["reactions"])
        expect(group).to_be_visible()
        expect(reaction(page, language=language)).to_be_visible()
