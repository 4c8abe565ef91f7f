"""Whom the widget must not shut out: axe-core in each state, the keyboard, targets, contrast,
forced colours, reduced motion, and a page of 320 pixels, in a real Chromium."""

import json
import re
from collections.abc import Callable
from itertools import cycle, product
from typing import Any

import blog
import pytest
import test_writing as writing
import wcag
from axe_playwright_python.sync_playwright import Axe
from bench_widget import WATCH, nodes_of
from blog import say
from playwright.sync_api import Browser, Page, expect
from test_writing import (
    REFUSED,
    UNREACHED,
    Ground,
    article,
    button,
    keyboard,
    main,
    open_account,
    post,
    reach,
    said,
    settings_say,
)

pytestmark = pytest.mark.slow

browser, office, outside = writing.browser, writing.office, writing.outside
pages, address, config = writing.pages, writing.address, writing.config
settings, ground, account = writing.settings, writing.ground, writing.account

LONG_WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"
CODE = (
    "```\n" + "grid-template-columns: [full-start] minmax(1rem, 1fr) " * 6 + "\n```\n" + "`x`" * 60
)
WIDE = "W" * 64
LANGS = {"en": "en", "zh": "zh-CN", "rtl": "ar"}
LOOKS = ["essay", "code", "photo"]
SCHEMES = ["light", "dark"]


# States


def talk(app: blog.App) -> None:
    """A conversation, with what is hard to set."""
    blog.conversation(app)
    first = say(app, f"{LONG_WORD * 3} https://a.example/{'x' * 300}", WIDE, likes=1)
    parent = say(app, CODE, "Mateo Silva", parent_id=first)
    for number in range(5):
        parent = say(app, f"Deeper, {number}.", "Noor Rahman", parent_id=parent, hours=0.5)
    say(app, "With a site.", "Ann", website=f"https://{'a' * 50}.example/")


def press(page: Page, key: str) -> None:
    """The first button of this name."""
    page.get_by_role("button", name=said(key)).first.click()


def empty(page: Page) -> None:
    expect(page.get_by_text(said("none"))).to_be_visible()


def thread(page: Page) -> None:
    expect(page.locator("article .body").first).to_be_visible()


def open_form(page: Page) -> None:
    thread(page)
    main(page).fill("Half a thought")
    page.locator("summary").first.click()


def reply(page: Page) -> None:
    thread(page)
    page.locator(".reply").first.click()
    page.keyboard.insert_text("An answer")


def error(page: Page) -> None:
    open_form(page)
    page.locator("form .button").first.click()
    expect(page.locator(".error")).to_be_visible()


def preview(page: Page) -> None:
    open_form(page)
    main(page).fill(CODE)
    press(page, "preview")
    expect(page.locator("form .body")).to_be_visible()


def panel(page: Page) -> None:
    open_form(page)
    press(page, "signin")
    expect(page.locator(".panel")).to_be_visible()


def sign_in_error(page: Page) -> None:
    panel(page)
    page.locator(".panel .button").click()
    expect(page.locator(".error")).to_be_visible()


def registration(page: Page) -> None:
    panel(page)
    press(page, "register")


def renewal(page: Page) -> None:
    panel(page)
    press(page, "forgot")


def code(page: Page) -> None:
    registration(page)
    for name, value in {"nickname": "Ann", "email": writing.MAIL, "password": "x"}.items():
        page.locator(f".panel [name={name}]").fill(value)
    page.locator(".panel .button").click()
    expect(page.locator(".panel [name=token]")).to_be_focused()


def signed_in(page: Page) -> None:
    panel(page)
    page.locator(".panel [name=email]").fill(writing.MAIL)
    page.locator(".panel [name=password]").fill(writing.PASSWORD)
    page.locator(".panel .button").click()
    expect(page.get_by_text(said("as")).first).to_be_visible()


def own(page: Page) -> None:
    open_form(page)
    page.locator("[name=nickname]").fill("Ann")
    page.locator("form .button").first.click()
    expect(page.locator("[data-target]")).to_be_focused()
    expect(page.get_by_role("button", name=said("edit"))).to_be_visible()


def edit(page: Page) -> None:
    own(page)
    press(page, "edit")


def deleting(page: Page) -> None:
    own(page)
    press(page, "delete")


def collapsed(page: Page) -> None:
    thread(page)
    press(page, "hide")
    expect(page.locator(".line[aria-expanded=false]")).to_be_visible()


def unfolded(page: Page) -> None:
    thread(page)
    press(page, "fold")


def loading(page: Page) -> None:
    """Opened once more, but the list does not come."""
    page.route("**/comments?*", lambda route: None)
    page.reload()
    expect(page.locator(".wait")).to_be_visible()


def offline(page: Page) -> None:
    page.route("**/comments?*", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("alert")).to_be_visible()


def waits(environ: Any, status: str, head: dict[str, str], body: bytes) -> Any:
    if environ["PATH_INFO"] == "/comments" and environ["REQUEST_METHOD"] == "POST":
        comment = json.loads(body)["comment"]
        body = blog.changed_json(body, comment=comment | {"status": "waiting"})
    return settings_say(hold="all", policy_url="https://blog.example/p")(
        environ, status, head, body
    )


def login(page: Page) -> None:
    thread(page)
    main(page).click()


STATES: dict[str, Callable[[Page], None]] = {
    each.__name__: each
    for each in (
        *(thread, empty, open_form, reply, error, preview, panel, sign_in_error, registration),
        *(renewal, code, signed_in, own, edit, deleting, collapsed, unfolded, loading, offline),
    )
}
STATES |= {"closed": thread, "waiting": own, "login": login}
CHANGES = {
    "closed": settings_say(closed=True),
    "waiting": waits,
    "login": settings_say(login_required=True),
}
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
DESK = {"viewport": {"width": 1024, "height": 768}}


def stage(ground: Ground, state: str, lang: str = "en", look: str = "essay", **how: Any) -> Page:
    """A reader before the widget in this state."""
    ground.expected += [REFUSED, UNREACHED]
    if state in CHANGES:
        ground.answers(CHANGES[state])
    if state != "empty":
        talk(ground.app)
    page = ground.open(lang=LANGS[lang], look=look, **how)
    page.add_init_script(WATCH)
    page.evaluate(WATCH)
    STATES[state](page)
    return page


def prefer(page: Page, scheme: Any) -> None:
    """The system's scheme changes, and the widget's colours with those of the page."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.mouse.move(0, 0)
    page.wait_for_function(
        """() => {
          const probe = document.createElement('a')
          document.querySelector('commentd-thread').shadowRoot.append(probe)
          const tint = getComputedStyle(probe).color
          probe.remove()
          return tint === getComputedStyle(document.querySelector('footer a')).color
        }"""
    )


def assert_nobody_is_shut_out(page: Page, where: str) -> None:
    """Neither axe-core nor the contrast of any piece of text has a complaint."""
    faults = nodes_of(Axe().run(page, "commentd-thread", {}).response["violations"])
    assert (where, faults) == (where, [])
    low = [each for each in page.evaluate("bench.contrast()") if each[1] < 4.5]
    assert (where, low) == (where, [])


def assert_forced_colours_lose_nothing(page: Page) -> None:
    lost = page.evaluate(
        """() => [...document.querySelector('commentd-thread').shadowRoot.querySelectorAll(
          '.button, .more, input, textarea, .badge')].filter(e => e.checkVisibility())
          .map(e => [e.name || e.textContent, getComputedStyle(e)])
          .filter(([, {borderStyle, borderColor, backgroundColor}]) =>
            borderStyle === 'none' || borderColor === backgroundColor)
          .map(([name]) => name)"""
    )
    assert lost == []
    assert [stop for stop in stops(page) if not stop[2]] == []
    hearts = page.locator(".like")
    if hearts.count():
        color = hearts.first.evaluate(
            """e => [getComputedStyle(e, '::before').borderTopColor,
                     getComputedStyle(document.body).backgroundColor]"""
        )
        assert color[0] != color[1]


def assert_nothing_scrolls_sideways(page: Page) -> None:
    wide = page.evaluate(
        """() => [...document.querySelector('commentd-thread').shadowRoot.querySelectorAll('*')]
          .filter(e => e.checkVisibility() && !e.closest('pre *, .sr'))
          .map(e => [e.localName, e.className, e.getBoundingClientRect()])
          .filter(([,, {left, right}]) => right > innerWidth + .5 || left < -.5)
          .map(([tag, name, {left, right}]) => [tag, String(name), left, right])"""
    )
    assert wide == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 320


# Axe-core and contrast


SIZES = {"desk": DESK, "phone": PHONE}
# Each state once in the test command, and among them each language, look, scheme and size.
OFTEN_A_DESK = ("desk", "phone", "desk")
ONCE = {*zip(STATES, cycle(LANGS), cycle(LOOKS), cycle(SCHEMES), cycle(OFTEN_A_DESK), strict=False)}
FULL = {
    *product(STATES, LANGS, ["essay"], SCHEMES, SIZES),
    *product(("error", "own"), ["en"], LOOKS, SCHEMES, ["desk"]),
}


@pytest.mark.every_case
@pytest.mark.parametrize(("state", "lang", "look", "scheme", "size"), sorted(ONCE))
def test_a_state_shuts_nobody_out(
    ground: Ground, account: int, state: str, lang: str, look: str, scheme: str, size: str
) -> None:
    """For axe-core, for the keyboard, for a finger, in forced colours and at 400 percent."""
    page = stage(ground, state, lang, look, **SIZES[size])
    prefer(page, scheme)
    assert_nobody_is_shut_out(page, state)
    if look == "essay":  # a smaller font makes the link of a name lower, as WCAG 2.5.8 allows
        assert page.evaluate(TARGETS, 23.99 if size == "desk" else 43.99) == []
    if size == "desk":
        found = stops(page)
        assert found
        assert [stop for stop in found if not stop[1] or not stop[2]] == []
    page.emulate_media(forced_colors="active")
    assert_forced_colours_lose_nothing(page)
    page.emulate_media(forced_colors="none")
    page.set_viewport_size({"width": 320, "height": 640})  # 1280 pixels at 400 percent
    assert_nothing_scrolls_sideways(page)


@pytest.mark.long
@pytest.mark.parametrize(("state", "lang", "look", "scheme", "size"), sorted(FULL - ONCE))
def test_axe_finds_nothing_and_all_texts_have_contrast(
    ground: Ground, account: int, state: str, lang: str, look: str, scheme: str, size: str
) -> None:
    page = stage(ground, state, lang, look, **SIZES[size])
    prefer(page, scheme)
    assert_nobody_is_shut_out(page, state)
    assert page.evaluate(TARGETS, 23.99 if size == "desk" else 43.99) == []


# What the border of a field, and the ring of the focus, are in front of what is behind them.
EDGES = """
() => {
  const brush = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true})
  const over = (...colors) => {
    brush.clearRect(0, 0, 1, 1)
    for (const color of colors) {
      brush.fillStyle = color
      brush.fillRect(0, 0, 1, 1)
    }
    return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3)
  }
  const light = color => color.map(c => c / 255)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], .05)
  const ground = getComputedStyle(document.body).backgroundColor
  const root = document.querySelector('commentd-thread').shadowRoot
  const field = root.activeElement.matches('input, textarea') && root.activeElement
  const edge = e => getComputedStyle(e)[e.matches('.button') ? 'backgroundColor' : 'borderColor']
  const colors = [...root.querySelectorAll('input, textarea, .button')]
    .filter(e => e.checkVisibility()).map(e => [e.name || e.textContent, edge(e)])
  if (field) colors.push(['focus', getComputedStyle(field).outlineColor])
  return colors.map(([name, color]) => {
    const pair = [light(over(ground, color)), light(over(ground))]
    return [name, Math.max(...pair) / Math.min(...pair)]
  })
}
"""


@pytest.mark.parametrize("look", LOOKS)
def test_edges_of_fields_and_the_ring_of_the_focus_are_seen(ground: Ground, look: str) -> None:
    page = stage(ground, "error", look=look, **DESK)
    for scheme in ("light", "dark"):
        prefer(page, scheme)
        edges = page.evaluate(EDGES)
        assert {"content", "nickname", "Post", "focus"} <= {name for name, _ in edges}
        assert (scheme, [each for each in edges if each[1] < 3]) == (scheme, [])


# The keyboard

STOP = """
() => {
  let e = document.activeElement
  while (e.shadowRoot?.activeElement) e = e.shadowRoot.activeElement
  const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(e)
  const label = e.ariaLabel || e.labels?.[0]?.textContent || e.textContent
  const inside = e.getRootNode() !== document
  const clear = /^rgba.* 0\\)$|\\/ 0\\)$/.test(outlineColor)
  const seen = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2 && !clear
  return [inside ? e.localName : '', label.trim(), seen]
}
"""


def stops(page: Page) -> list[list[Any]]:
    """What Tab reaches of the widget: kind, name, and whether one sees that it has the focus."""
    page.locator("#comments").evaluate("e => { e.tabIndex = -1; e.focus() }")
    found = []
    while len(found) < 200:
        page.keyboard.press("Tab")
        stop = page.evaluate(STOP)
        if not stop[0]:
            break
        found.append(stop)
    return found


def test_the_text_is_the_first_stop_of_an_empty_widget(ground: Ground) -> None:
    page = ground.open()
    empty(page)
    page.locator("#comments").evaluate("e => { e.tabIndex = -1; e.focus() }")
    assert page.locator("form").get_by_role("button").filter(visible=True).count() == 0
    page.keyboard.press("Tab")
    expect(main(page)).to_be_focused()
    found = stops(page)
    assert [name for _, name, _ in found] == [
        *("Write a comment…", "Name", "Email, website (optional)"),
        *("Post", "Preview", "Sign in", "Like this page 0"),
    ]
    assert [stop for stop in found if not stop[2]] == []


def test_tab_goes_through_a_thread_as_one_reads_and_is_seen_everywhere(ground: Ground) -> None:
    say(ground.app, "Older.", "Bo", website="https://bo.example/", likes=1)
    first = say(ground.app, "[Newer](https://a.example/).", "Cy", hours=0.5)
    say(ground.app, "An answer.", "Di", hours=0.4, parent_id=first)
    page = ground.open()
    thread(page)
    found = stops(page)
    names = [name for _, name, _ in found]
    assert names[0] == "Write a comment…"
    rest = names[names.index("Like this page 0") :]
    assert [re.sub(r"\d+ minutes ago", "T", re.sub("1 hour ago", "T", name)) for name in rest] == [
        *("Like this page 0", "Sort by"),
        *("T", "Newer", "Like 0", "Reply to Cy", "Copy link", "Report"),
        *("Hide replies", "T", "Like 0", "Reply to Di", "Copy link", "Report"),
        *("Bo", "T", "Like 1", "Reply to Bo", "Copy link", "Report"),
    ]
    assert [stop for stop in found if not stop[2]] == []


def test_a_folded_text_and_hidden_replies_are_opened_by_keyboard(ground: Ground) -> None:
    talk(ground.app)
    page = ground.open()
    line = page.get_by_role("button", name="Hide replies").first
    reach(line)
    page.keyboard.press("Space")
    folded = page.get_by_role("button", name=re.compile("Show replies"))
    expect(folded).to_be_focused()
    expect(folded).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("Space")
    expect(folded).to_have_count(0)
    expect(line).to_be_focused()
    more = button(page, "Read more")
    reach(more)
    page.keyboard.press("Enter")
    expect(more).to_have_count(0)
    inside = page.evaluate(
        "() => document.querySelector('commentd-thread').shadowRoot.activeElement?.localName ?? ''"
    )
    assert inside, "the focus is lost with the button"


def test_what_is_folded_away_opens_for_the_focus(ground: Ground) -> None:
    say(ground.app, "A long text. " * 80 + "[last link](https://a.example/)")
    page = ground.open()
    thread(page)
    reach(page.get_by_role("link", name="last link"))
    expect(page.locator("article .body")).to_have_css("max-height", "none")


def test_more_comments_take_the_focus(ground: Ground) -> None:
    for number in range(12):
        say(ground.app, f"Number {number}.", hours=12 - number)
    page = ground.open()
    thread(page)
    keyboard(button(page, "Show more"))
    expect(article(page, "Number 1.")).to_be_focused()


def test_the_order_of_comments_is_chosen_by_keyboard(ground: Ground) -> None:
    for number in range(2):
        say(ground.app, f"Number {number}.", hours=2 - number)
    page = ground.open()
    order = page.get_by_role("combobox", name="Sort by")
    reach(order)
    with page.expect_response("**/comments?*sort=oldest*"):
        order.select_option("oldest")
    expect(page.locator("article .body").first).to_have_text("Number 0.")
    expect(page.get_by_role("combobox", name="Sort by")).to_be_focused()


# Announcements and names


def test_changes_are_announced(ground: Ground, account: int) -> None:
    page = ground.open()
    status = page.get_by_role("status").first
    expect(status).to_be_empty()
    mine = post(page, "First.")
    expect(status).to_have_text("Posted.")
    for name in ("Delete", "Delete it?"):
        button(mine, name).click()
    expect(status).to_have_text("This comment was removed.")
    open_account(page)
    writing.sign_in(page)
    expect(status).to_have_text("You are signed in.")
    main(page).fill("")
    button(page, "Post").click()
    expect(page.locator(".error")).to_have_text("Please write something first.")


def test_an_error_is_an_alert_only_where_the_focus_does_not_lead_to_it(ground: Ground) -> None:
    page = ground.open()
    main(page).fill("")
    button(page, "Post").click()
    expect(main(page)).to_be_focused()
    expect(main(page)).to_have_accessible_description("Please write something first.")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert")).to_have_text("Please write something first.")


def test_the_news_of_others_has_its_place_before_there_is_any(ground: Ground) -> None:
    page = ground.open()
    expect(page.locator(".fresh")).to_have_count(0)
    main(page).click()
    page.keyboard.press("Escape")
    page.locator(".head").click(position={"x": 1, "y": 1})
    expect(page.locator(".fresh")).to_have_role("status")
    expect(page.locator(".fresh")).to_be_empty()


def test_buttons_that_are_the_same_at_each_comment_say_whose_it_is(ground: Ground) -> None:
    say(ground.app, "Hers.", "Noor Rahman")
    page = ground.open()
    page.locator(".head").click(position={"x": 1, "y": 1})
    for name in ("Copy link", "Report"):
        expect(button(page, name)).to_have_accessible_description("Noor Rahman")


def test_the_same_news_twice_is_announced_twice(ground: Ground) -> None:
    page = ground.open()
    post(page, "First.")
    page.evaluate(
        """() => {
          const root = document.querySelector('commentd-thread').shadowRoot
          const told = root.querySelector('[role=status]')
          window.told = []
          new MutationObserver(() => window.told.push(told.textContent))
            .observe(told, {childList: true, characterData: true, subtree: true})
        }"""
    )
    post(page, "Second.")
    assert "Posted." in page.evaluate("() => window.told")


def test_the_parts_of_a_thread_say_what_they_are(ground: Ground) -> None:
    say(ground.app, "Hers.", likes=2)
    page = ground.open()
    thread(page)
    region = page.get_by_role("region", name="Comments")
    expect(region.get_by_role("list")).to_have_count(1)
    expect(region.get_by_role("listitem")).to_have_count(1)
    expect(region.get_by_role("article")).to_have_count(1)
    expect(button(region, "Like 2")).to_have_attribute("aria-pressed", "false")
    expect(page.locator("commentd-thread time")).to_have_attribute(
        "datetime", re.compile(r"^\d{4}-\d\d-\d\dT.*Z$")
    )
    expect(region.get_by_role("link", name=re.compile("ago"))).to_have_attribute(
        "title", re.compile(r"\d")
    )


# Targets


# What stands in the line of a name, and the line beside replies, has no room for a finger's width.
TARGETS = """
least => [...document.querySelector('commentd-thread').shadowRoot.querySelectorAll(
  'button, select, summary, input, textarea, .links a, .meta a')].filter(e => e.checkVisibility())
  .map(e => {
    const {width, height} = e.getBoundingClientRect()
    const need = e.matches('.meta a, .line') ? 24 : least
    return [e.ariaLabel || e.textContent || e.name, width, height, need - .01]
  }).filter(([, width, height, need]) => Math.min(width, height) < need)
"""


def test_a_finger_beside_the_line_still_meets_it(ground: Ground) -> None:
    talk(ground.app)
    page = ground.open(**PHONE)
    thread(page)
    page.evaluate(WATCH)
    _, _, small = page.evaluate("bench.targets()")
    assert [each for each in small if not each[2]] == []


# Forced colours, motion, zoom


def test_a_liked_heart_is_told_apart_in_forced_colours(ground: Ground) -> None:
    say(ground.app, "Hers.")
    page = ground.open(forced_colors="active")
    heart = article(page, "Hers.").locator(".like")
    shape = "e => getComputedStyle(e, '::before').clipPath"
    hollow = heart.evaluate(shape)
    heart.click()
    expect(heart).to_have_attribute("aria-pressed", "true")
    assert heart.evaluate(shape) != hollow


def test_forced_colours_that_go_leave_none_behind(ground: Ground) -> None:
    say(ground.app, "Hers: https://hers.example/")
    page = ground.open(forced_colors="active")
    hers = article(page, "Hers:").get_by_role("link", name="hers.example")
    own = "a => getComputedStyle(document.querySelector('commentd-thread > a')).color"
    forced = hers.evaluate("a => getComputedStyle(a).color")
    page.emulate_media(forced_colors="none")
    expect(hers).not_to_have_css("color", forced)
    expect(hers).to_have_css("color", hers.evaluate(own))


def test_reduced_motion_moves_nothing(ground: Ground) -> None:
    say(ground.app, "Hers.")
    page = ground.open(reduced_motion="reduce")
    thread(page)
    moving = page.evaluate(
        """() => [...document.querySelector('commentd-thread').shadowRoot.querySelectorAll('*')]
          .map(e => [e.localName, getComputedStyle(e)])
          .filter(([, s]) => s.scrollBehavior === 'smooth' || s.animationName !== 'none'
            || s.transitionDuration.split(',').some(t => parseFloat(t)))
          .map(([name]) => name)"""
    )
    assert moving == []


@pytest.mark.parametrize(("lang", "size"), [*product(LANGS, [24, 36])])
def test_larger_letters_fit_too(ground: Ground, lang: str, size: int) -> None:
    page = stage(ground, "error", lang, viewport={"width": 390, "height": 844})
    page.evaluate("size => document.body.style.fontSize = size + 'px'", size)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


@pytest.mark.long
def test_the_report_on_accessibility_finds_nothing_in_its_first_states(browser: Browser) -> None:
    assert wcag.faults(browser) == []
