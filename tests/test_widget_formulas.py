"""Formulas and tables in the widget, where the owner wants them."""

import pytest
from playwright.sync_api import expect

from commentd import Extras, TextFeatures, assets_with
from support import inside
from support.blog import Json, say
from support.widget import View, altering, lists, service_with, settled
from support.widget import asked as asked  # a fixture
from support.widget import fake_world as fake_world  # a fixture
from support.widget import faults as faults  # a fixture
from support.widget import options as options  # a fixture
from support.widget import page as page  # a fixture
from support.widget import settings as settings  # a fixture
from support.widget import site as site  # a fixture
from support.widget import view as view  # a fixture

pytest.importorskip("latex2mathml")

with_all = service_with(comments_formulas=True, comments_tables=True)
WIDE = " + ".join(f"a_{{{number}}}x^{{{number}}}" for number in range(60))
TABLE = "| a | $x$ |\n|:--|--:|\n| **b** | <i>c</i> |"
ELEMENTS = "node => [...node.querySelectorAll('*')].map(each => each.localName).join(' ')"
NAMESPACES = "node => new Set([...node.querySelectorAll('math *')].map(e => e.namespaceURI)).size"


def test_a_blog_without_formulas_and_tables_loads_no_byte_of_them() -> None:
    def script(**wanted: bool) -> bytes:
        return assets_with(Extras(features=TextFeatures(**wanted)))[0]["embed.js"].body

    names = ("inserts.js", "formula.js", "table.js")
    inserts, formula, table = ((inside.served_folder() / name).read_bytes() for name in names)
    assert inserts not in script()
    assert formula not in script()
    assert table not in script()
    assert b"mtable" not in script()
    assert script(formulas=True).endswith(inserts + formula + b"}\n")
    assert script(tables=True).endswith(inserts + table + b"}\n")
    assert script(formulas=True, tables=True).endswith(inserts + formula + table + b"}\n")


@with_all
def test_formulas_and_tables_are_drawn_at_once_with_their_source(view: View) -> None:
    say(view.app, r"so $\frac12$ and $$x^2$$ hold, for $5 and $6")
    say(view.app, f"before\n\n{TABLE}\n\nafter")
    page = view()
    texts = page.locator("article .body")
    expect(texts).to_have_count(2)
    table, formulas = texts.all()
    assert formulas.evaluate(ELEMENTS) == ("p math mrow mfrac mn mn math mrow msup mi mn")
    assert formulas.evaluate(NAMESPACES) == 1
    assert formulas.locator("math").first.get_attribute("alttext") == r"\frac12"
    expect(formulas).to_contain_text("hold, for $5 and $6")
    assert table.evaluate(ELEMENTS) == (
        "p div table thead tr th th math mrow mi tbody tr td strong td p"
    )
    assert table.locator("td").last.get_attribute("align") == "right"
    expect(table.locator("td").last).to_have_text("<i>c</i>")
    assert len(lists(view.asked)) == 1
    assert [line for line in view.asked if "formula" in line or "table" in line] == []


@with_all
@pytest.mark.parametrize("options", [{"viewport": {"width": 390, "height": 800}}])
def test_a_wide_formula_and_a_wide_table_are_scrolled_by_themselves(view: View) -> None:
    say(view.app, f"$${WIDE}$$\n\nand ${WIDE}$ in a line")
    say(view.app, "|" + "a long cell|" * 12 + "\n|" + "--|" * 12)
    page = view()
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for place in page.locator("article .body").locator(".wide, p").all():
        assert place.evaluate("node => node.scrollWidth > node.clientWidth + 100")
        assert place.evaluate("node => (node.scrollLeft = 50, node.scrollLeft)") == 50
    expect(page.locator("article .body").locator("[tabindex='0']")).to_have_count(3)
    page.locator(".wide").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "document.querySelector('commentd-thread').shadowRoot"
        ".querySelector('.wide').scrollLeft > 50"
    )


@with_all
@pytest.mark.parametrize("options", [{"viewport": {"width": 390, "height": 800}}])
def test_a_wide_formula_in_bold_text_or_a_link_is_scrolled_by_itself(view: View) -> None:
    texts = [
        f"**${WIDE}$**",
        f"~~*${WIDE}$*~~",
        f"[${WIDE}$](https://a.example)",
        f"> **${WIDE}$**",
    ]
    for text in texts:
        say(view.app, text)
    page = view()
    settled(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    expect(page.locator("article .body p[tabindex='0']")).to_have_count(len(texts))


@with_all
def test_an_item_that_begins_with_a_formula_has_its_number_within_what_is_scrolled(
    view: View,
) -> None:
    """Browsers draw none outside of it."""
    say(view.app, "1. $x$\n2. **$y$**\n3. z")
    page = view()
    settled(page)
    items = page.locator("article .body li")
    expect(items).to_have_count(3)
    places = items.evaluate_all("all => all.map(each => getComputedStyle(each).listStylePosition)")
    assert places == ["inside", "inside", "outside"]
    left, _, plain = items.evaluate_all("""all => all.map(each => {
        const text = document.createRange()
        text.selectNodeContents(each)
        return Math.round(text.getBoundingClientRect().left)
    })""")
    assert abs(left - plain) <= 8


HOSTILE = (
    '<p><math href="javascript:alert(1)" onclick="alert(1)" alttext="x" style="color:red">'
    '<mi onmouseover="alert(1)">x</mi><script>alert(1)</script><maction><mi>y</mi></maction>'
    '<mtext><img src="x" onerror="alert(1)"></mtext><annotation-xml><p>z</p></annotation-xml>'
    '</math></p><table><tr><td align="left"><img src=x><script>alert(1)</script>a</td>'
    '<td onclick="alert(1)">b</td><td align="x">c</td></tr></table>'
)


@with_all
def test_the_widget_draws_no_element_and_no_attribute_beyond_its_own_list(view: View) -> None:
    say(view.app, "hello")

    def change(comments: list[Json]) -> None:
        comments[0]["html"] = HOSTILE

    with altering(view.app, change):
        page = view()
        body = page.locator("article .body")
        assert body.evaluate(ELEMENTS) == "p math mi mi mtext div table thead tr td tbody"
        names = "node => [...node.querySelectorAll('*')].flatMap(each => each.getAttributeNames())"
        assert set(body.evaluate(names)) <= {"alttext", "align", "class", "part", "tabindex"}
