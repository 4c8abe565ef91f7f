"""Formulas in TeX, which are shown as MathML where the owner wants that."""

import html
import logging
import re
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import webtest
from mistune import BlockState

from commentd import App, Config, TextFeatures, clean, make_app, safe_html, with_sources
from support import inside
from support.campaign import Campaign
from support.client import PAGE, Visitor
from support.commands import run_here
from support.hostile_text import ATTACKS, assert_allowed, writing
from support.world import FakeWorld, read, text_of

pytest.importorskip("latex2mathml")

FORMULAS = TextFeatures(formulas=True)
TABLES = TextFeatures(tables=True)
ALL_FEATURES = TextFeatures(formulas=True, tables=True)
with_formulas = pytest.mark.parametrize("settings", [{"comments_formulas": True}], ids=[""])


def shown(text: str) -> str:
    """What a formula looks like, in short: its characters, and `[…]` where one is."""
    markup = safe_html(text, FORMULAS)
    marked = re.sub(r"<math [^>]*>(.*?)</math>", r"[\1]", markup, flags=re.DOTALL)
    return re.sub("<[^>]*>|\n", "", marked)


def fraction(tex: str, display: str) -> str:
    return (
        f'<math alttext="{tex}" dir="ltr" display="{display}">'
        "<mrow><mfrac><mn>1</mn><mi>x</mi></mfrac></mrow></math>"
    )


def test_a_formula_stands_between_dollar_signs_or_in_a_block_called_math() -> None:
    tex = r"\frac1x"
    for written, markup in {
        f"a ${tex}$ b": f"<p>a {fraction(tex, 'inline')} b</p>\n",
        f"a $$ {tex} $$ b": f"<p>a {fraction(tex, 'block')} b</p>\n",
        f"$$\n{tex}\n$$": f"<p>{fraction(tex, 'block')}</p>\n",
        f"```math\n{tex}\n```": f"<p>{fraction(tex, 'block')}</p>\n",
    }.items():
        assert safe_html(written, FORMULAS) == markup
        assert "<math" not in safe_html(written)


def test_prices_code_and_variables_are_no_formulas() -> None:
    for text in (
        "$5 and $6",
        "it costs $5, now $6",
        "between $5-$10, or $5/$6",
        "US$5 or US$6",
        "5$ and 6$, 7 $ or 8 $",
        "$20 or 30$",
        "花了$5，又花了$6",
        "$20或30$",
        "$HOME/$USER and $PATH",
        "$ x $",
        "$x $ and $ y$",
        "$",
        "$$",
        "$$$",
        "$$$$",
        "one $\n\ntwo $ three",
    ):
        assert "[" not in shown(text), text
        assert shown(text) == re.sub("\n", "", text)
    assert safe_html("`$x$` \\$x$", FORMULAS) == "<p><code>$x$</code> $x$</p>\n"
    assert "<math" not in safe_html("```\n$x$\n$$\ny\n$$\n```\n\n    $x$", FORMULAS)


def test_a_formula_ends_where_people_mean_it() -> None:
    for written, expected in {
        "设$x$为": "设[x]为",
        "($x$), $y$.": "([x]), [y].",
        "**$a*b*c$** and ~~$d_e$~~": "[a*b*c] and [de]",
        "$x$-axis, $n$th": "[x]-axis, $n$th",
        "costs $5, and $x+1$": "costs $5, and [x+1]",
        r"$\$5$": "[$5]",
        r"$a\\b$": "[ab]",
        "[$x$](https://a.b)": "[x]",
        "- $x$\n- $$\n  y\n  $$\n\n> $$\n> - z\n> = z\n> $$": "[x][y][−z=z]",
        "# $x$": "[x]",
        "$x +\ny$": "[x+y]",
        "a\n$$\nx\n---\n$$\nb": "a[x−−−]b",
        f"${'x' * 2000}$": f"[{'x' * 2000}]",
    }.items():
        assert shown(written) == expected, written


def test_a_formula_that_cannot_be_shown_whole_stays_text() -> None:
    for tex in (
        r"\nosuchcommand",
        r"\frac{1",
        r"x}",
        r"\frac",
        r"a & b",
        r"\begin{nosuch}x\end{nosuch}",
        r"\cancel{x}",
        r"\text{<b>x</b>}",
        r"\text{</math>}",
        r"\text{<IMG src=x>}",
        "x^1^2",
        r"\def\a{b}\a",
        r"\newcommand{\a}{b}\a",
        "x" * 2001,
    ):
        assert shown(f"${tex}$") == html.escape(f"${tex}$"), tex


def test_tex_shows_as_people_know_it() -> None:
    for tex, markup in {
        r"\lim_{x \to 0} y": "<munder><mo>lim</mo><mrow><mi>x</mi><mo>→</mo><mn>0</mn></mrow>"
        "</munder><mi>y</mi>",
        r"\mathrm{d}x": "<mtext>d</mtext><mi>x</mi>",
        r"\begin{aligned}a&=b\end{aligned}": '<mtable displaystyle="true"><mtr>'
        '<mtd class="right"><mi>a</mi></mtd>'
        '<mtd class="left"><mi></mi><mo>=</mo><mi>b</mi></mtd></mtr></mtable>',
        r"\mathbb{R}": "<mi>ℝ</mi>",
        r"\mathchoice{a}{b}{c}{d}": "<mi>a</mi>",
    }.items():
        whole = safe_html(f"$${tex}$$", FORMULAS)
        assert f'display="block"><mrow>{markup}</mrow></math>' in whole
    assert "(1)" not in shown(r"$$\begin{align}a&=b\\c&=d\end{align}$$")


HOSTILE = [
    "{" * 1000 + "}" * 1000,
    "x^{" * 500 + "}" * 500,
    r"\frac{" * 300 + "}" * 300,
    r"\sqrt" * 390 + " x",
    r"\left(" * 390,
    r"\left(" * 190 + r"\right)" * 190,
    r"\begin{matrix}" * 190 + r"\end{matrix}" * 190,
    r"\bigl(" * 390,
    "(" * 1990,
    "'" * 1990,
    "&" * 1990,
    r"\\" * 990,
    r"\def\x{\x\x}\x",
    r"\newcommand{\x}{\x\x}\x",
    r"\let\x\y\x",
    r"\gdef\x#1{#1#1}" + r"\x{" * 20 + "x" + "}" * 20,
    r"\xLeftarrow " * 160,
    "x" * 1990,
    "x_" * 990,
    r"\text{" * 390,
]


def test_hostile_tex_is_refused_or_shown_within_bounds() -> None:
    for tex in HOSTILE:
        for text in (f"${tex}$", f"$$\n{tex}\n$$", f"```math\n{tex}\n```"):
            markup = safe_html(text, FORMULAS)
            assert len(markup) <= 30 * len(text) + 1000, tex[:40]
            depth = 0
            for end in re.findall(r"<(/?)m", markup):
                depth += -1 if end else 1
                assert depth <= 33, tex[:40]
    for tex in HOSTILE[:3] + HOSTILE[12:16]:
        assert "<math" not in safe_html(f"${tex}$", FORMULAS), tex[:40]


def test_many_formulas_do_not_make_a_text_much_longer() -> None:
    for text in ("$x$ " * 2500, "$\\frac12$" * 1100, "$$a_1^2$$ " * 1000):
        assert len(safe_html(text, FORMULAS)) <= 30 * len(text) + 1000
    assert shown("$x$ " * 20).strip() == "[x] " * 19 + "[x]"


# The lines that end with a row of more cells than the head are no table.
UNEVEN = {
    "a|b\n-|-\n1|2|3\n\nc": "<p>a|b<br>\n-|-<br>\n1|2|3</p>\n<p>c</p>\n",
    "> a|b\n> -|-\n> 1|2|3": "<blockquote>\n<p>a|b<br>\n-|-<br>\n1|2|3</p>\n</blockquote>\n",
    "a|b\n-|-|-\n1|2|3": "<p>a|b<br>\n-|-|-<br>\n1|2|3</p>\n",
}


def test_a_table_whose_rows_have_too_many_cells_is_text() -> None:
    for text, markup in UNEVEN.items():
        assert safe_html(text, TABLES) == markup
    next_to_it = "a|b\n-|-\n1|2|3\nc|d\n-|-\n5|6"
    assert safe_html(next_to_it, TABLES).count("<td>") == 2
    even = "1|2|3\n\na|b\n-|-\n1|2"
    assert safe_html(even, TABLES).count("<td>") == 2


def test_a_table_is_shown_once_with_and_without_bars_at_the_ends_of_its_lines() -> None:
    markup = safe_html("| a | b |\n|---|---|\n| 1 | 2 |\n\nc", TABLES)
    assert (markup.count("<table"), markup.count("<td>1</td>"), markup.count("<p>")) == (1, 1, 1)
    assert safe_html("a | b\n---|---\n1 | 2\n\nc", TABLES) == markup


@pytest.mark.parametrize("start", ["", "> ", "- "], ids=["text", "quote", "list"])
def test_a_table_that_is_none_is_read_once(start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    get_line = BlockState.get_line

    def counted(state: BlockState, start_pos: int) -> str:
        nonlocal read
        read += 1
        return get_line(state, start_pos)

    monkeypatch.setattr(BlockState, "get_line", counted)
    lines = 200
    indent = "> " if start == "> " else " " * len(start)
    text = start + f"-|-\n{indent}" * lines + "a|b|c"
    assert "<table" not in safe_html(text, TABLES)
    assert read < 10 * lines


def test_no_attack_leaves_more_than_text_formulas_and_tables() -> None:
    for attack in ATTACKS:
        for text in (attack, f"a {attack} b", f"> * {attack}\n\n{attack}", f"${attack}$"):
            markup, bare = safe_html(text, ALL_FEATURES), clean(text)
            assert_allowed(markup, bare, with_sources(markup))
            assert (clean(markup), clean(bare)) == (markup, bare)


def test_random_markdown_with_formulas_and_tables_stays_within_the_allow_list(
    campaign: Campaign,
) -> None:
    for chance in campaign.rounds(1500):
        text = writing(chance)
        markup, bare = safe_html(text, ALL_FEATURES), clean(text)
        campaign.figures["formulas"] += markup.count("<math ")
        campaign.figures["tables"] += markup.count("<table>")
        campaign.figures["characters"] += len(text)
        assert_allowed(markup, bare, clean(bare), with_sources(markup))
        assert clean(markup) == markup
        assert "<math" not in with_sources(markup)


@with_formulas
def test_a_wide_formula_on_the_thread_page_is_scrolled_by_keys_and_a_short_one_is_no_stop(
    visitor: Visitor,
) -> None:
    wide = " + ".join(f"x_{number}" for number in range(30))
    visitor.say(f"a wide one: ${wide}$\n\n- ${wide}$\n\nand\n\n$${wide}$$\n\n$x$ and **so** on")
    text = visitor.get("/thread", {"url": PAGE}).text
    assert text.count('<p tabindex="0">') == 2
    assert text.count('<li tabindex="0"><math') == 1
    assert "<p><math" in text


@with_formulas
def test_a_formula_is_shown_wherever_comments_are(app: App, visitor: Visitor) -> None:
    posted = visitor.say("so $x<y$ holds")
    markup = posted["comment"]["html"]
    assert 'alttext="x&lt;y"' in markup
    assert visitor.listing()["comments"][0]["html"] == markup
    assert (
        visitor.post_json("/comments/preview", {"content": "so $x<y$ holds"}).json["html"] == markup
    )
    client = webtest.TestApp(app)
    assert markup in client.get("/thread", {"url": posted["comment"]["page_url"]}).text
    assert markup in client.get("/fragment", {"url": posted["comment"]["page_url"]}).text
    # Programs that read feeds rarely show MathML.
    assert "so $x&amp;lt;y$ holds" in client.get("/feed.atom").text
    visitor.edit(posted, "now $z$")
    assert 'alttext="z"' in visitor.listing()["comments"][0]["html"]


@with_formulas
def test_an_email_shows_the_source_of_a_formula(app: App, fake_world: FakeWorld) -> None:
    inside.add_account(app, "owner@blog.example", "江屿", "secret", "admin")
    Visitor(app).say("so $x<y$ holds\n\n$$\n\\frac12\n$$")
    app.deliver()
    (email,) = fake_world.emails
    message = read(email.message)
    part = message.get_body(("html",))
    assert part
    markup = part.get_content()
    # Also in what lists of emails show behind the subject.
    assert markup.count("so $x&lt;y$ holds") == 2
    assert markup.count("$$\\frac12$$") == 2
    assert "<m" not in re.sub("<meta", "", markup)
    assert "so $x<y$ holds" in text_of(message)


@pytest.mark.parametrize("settings", [{"comments_tables": True}], ids=[""])
def test_an_email_shows_a_table_as_one(app: App, fake_world: FakeWorld) -> None:
    inside.add_account(app, "owner@blog.example", "江屿", "secret", "admin")
    Visitor(app).say("| first | x |\n|--|--|\n| second | <b>y</b> |")
    app.deliver()
    part = read(fake_world.emails[0].message).get_body(("html",))
    assert part
    cell = r"<t[hd] style=[^>]*>(first|x|second|&lt;b&gt;y&lt;/b&gt;)<"
    cells = re.findall(cell, part.get_content())
    assert cells == ["first", "x", "second", "&lt;b&gt;y&lt;/b&gt;"]


@pytest.mark.parametrize("settings", [{"comments_formulas": True, "moderation_words": ("casino",)}])
def test_a_formula_hides_no_word_that_holds_a_comment(visitor: Visitor) -> None:
    assert visitor.say(r"$\text{casino}$")["comment"]["status"] == "waiting"
    assert visitor.say(r"$\mathrm{c}\mathrm{a}$ $casino$")["comment"]["status"] == "waiting"
    assert visitor.say(r"$c$")["comment"]["status"] == "visible"


def test_the_source_of_a_formula_is_what_the_filter_learns() -> None:
    terms = inside.terms_of("Ann", "", safe_html(r"$\text{casino}^2$", FORMULAS))
    assert "casino" in terms
    assert "text" in terms


def test_a_formula_without_its_source_is_left_out_where_only_sources_are_shown() -> None:
    """Imported HTML can have one."""
    formula = clean("<math><mi>x</mi></math>")
    assert with_sources(f"<p>a {formula} b</p>") == "<p>a  b</p>"


def test_earlier_comments_follow_the_setting(
    config: Config, fake_world: FakeWorld, tmp_path: Path
) -> None:
    def html_with(**settings: Any) -> list[str]:
        app = make_app(replace(config, **settings), fake_world.world, rounds=1)
        app.tick()
        shown = [each["html"] for each in Visitor(app).listing()["comments"]]
        app.close()
        return shown

    app = make_app(config, fake_world.world, rounds=1)
    for text in ("$x$", "```math\ny\n```", "$5 and $6", "none"):
        Visitor(app).say(text)
    before = [each["html"] for each in Visitor(app).listing()["comments"]]
    app.close()
    after = html_with(comments_formulas=True)
    assert ["<math" in each for each in before] == [False] * 4
    assert ["<math" in each for each in after] == [False, False, True, True]
    assert html_with(comments_formulas=True) == after
    assert html_with() == before
    assert html_with() == before


def test_earlier_comments_have_tables_once_they_are_wanted(
    config: Config, fake_world: FakeWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        Visitor(app).say("a|b\n-|-\n1|2")
        Visitor(app).say("a|b")
        assert "<table" not in str(Visitor(app).listing())
    caplog.clear()
    for has_tables in (True, True, False, False):
        wanted = replace(config, comments_tables=has_tables)
        with closing(make_app(wanted, fake_world.world, rounds=1)) as app:
            app.tick()
            shown = [each["html"] for each in Visitor(app).listing()["comments"]]
            assert ["<table" in each for each in shown] == [False, has_tables]
    anew = [message for message in caplog.messages if "rendered anew" in message]
    assert anew == ["1 comments were rendered anew, as [comments] wants it"] * 2


def test_an_import_leaves_formulas_to_the_service(
    config: Config, fake_world: FakeWorld, tmp_path: Path
) -> None:
    app = make_app(replace(config, comments_formulas=True), fake_world.world, rounds=1)
    Visitor(app).say("$x$")
    app.tick()
    app.close()
    settings = tmp_path / "commentd.ini"
    settings.write_text(f"[database]\npath = {config.database_path}\n[comments]\nformulas = yes\n")
    code, exported, _ = run_here(tmp_path, "export")
    assert code == 0
    assert '"content": "$x$"' in exported
    assert "<math" not in exported
    (tmp_path / "export.json").write_text(
        exported.replace("$x$", "$z$").replace('"id": 1', '"id": 9')
    )
    assert run_here(tmp_path, "import", "export.json")[0] == 0
    app = make_app(replace(config, comments_formulas=True), fake_world.world, rounds=1)
    app.tick()
    listed = Visitor(app).listing()["comments"]
    app.close()
    assert {each["content"] for each in listed} == {"$x$", "$z$"}
    assert all("<math" in each["html"] for each in listed)


def test_formulas_without_their_package_are_refused_with_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "latex2mathml", None)
    (tmp_path / "commentd.ini").write_text("[comments]\nformulas = yes\n")
    for command in ("serve", "check"):
        code, output, errors = run_here(tmp_path, command)
        assert code == 2
        assert "[comments] formulas = yes needs latex2mathml: pip install latex2mathml" in (
            output + errors
        )
