"""The widget against WCAG 2.2, level A and AA, in a real Chromium with the real service.

Every state is opened in every language: axe-core looks at it, contrasts are computed against what
is painted behind, Tab walks through, names are read from the browser's accessibility tree, and the
widget is made narrow, large and widely spaced. Then whole paths are walked by keys alone, and what
is announced meanwhile is noted. `tests/wcag.py` does all of it, the tests a part."""

import contextlib
import json
import re
import sys
import tempfile
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, product, zip_longest
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Error, Page

from commentd import App
from support import blog, lively
from support.blog import WATCH, Json, nodes_of
from support.inside import sql
from support.mail import code_of
from support.patience import PATIENCE
from support.widget_states import (
    FIELD,
    LAST,
    MAIL,
    MAIN,
    ME,
    MENU,
    NAME,
    OTHERS,
    POST,
    PREVIEW,
    SECOND,
    SIGN_IN,
    STATES,
    TEXT,
    Act,
    State,
    empty,
    hold,
    key,
    long_text,
    mine,
    offline,
    post,
    short,
    twelve,
    typed,
    waiting,
)
from support.words import WORDS
from support.writing import keyboard

ROOT = Path(__file__).resolve().parents[2]
LANGS = ["en", "zh-CN", *sorted(WORDS.keys() - {"en", "zh-CN"})]
SCHEMES = ["light", "dark", "forced"]
THEMES = re.findall(
    r"\*\*(essay|code|photo)\*\*.*?```css\n(.*?)```",
    (ROOT / "static/help/en/theme.md").read_text("utf-8"),
    re.S,
)
LOOKS = {name: css + blog.COMMON for name, css in blog.LOOKS.items()} | {
    f"{name} of the manual": blog.LOOKS[name] + blog.COMMON + css for name, css in THEMES
}
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Letters of which each name in a language has one. There are none for those of Latin letters, which
# are compared with the English names.
LETTERS = {
    tag: {
        letter
        for letter in "".join(words.values())
        if letter.isalpha() and "LATIN" not in unicodedata.name(letter)
    }
    for tag, words in WORDS.items()
}
FULL = ("en", "ar")  # one of each direction; in the others, what words and their lengths change
NO_CONTRAST = {"color-contrast": {"enabled": False}}
Dress = tuple[str, str]  # a look and a scheme
Places = dict[tuple[str, ...], None]  # in the order in which they were seen
CONTROLS = ("button", "link", "textbox", "combobox", "DisclosureTriangle", "checkbox", "radio")

# What is told stays to be looked at; what comes after long comes at once by `hurry()`.
HURRY = """{
  const later = setTimeout
  const slow = []
  window.setTimeout = (act, ms, ...rest) => {
    if (ms > 1e4) slow.push(act)
    return ms === 5000 ? 0 : later(act, ms, ...rest)
  }
  window.hurry = () => slow.splice(0).forEach(act => act())
}"""


# The service and the blog that are examined


@dataclass
class Report:
    """What was looked at, how often, and what was found where."""

    checks: Counter[str] = field(default_factory=Counter)
    found: dict[tuple[str, str], Places] = field(default_factory=lambda: defaultdict(dict))
    unsure: dict[str, Places] = field(default_factory=lambda: defaultdict(dict))
    large: list[int] = field(default_factory=lambda: [0, 0])

    def check(self, criterion: str, good: Any, what: str, *where: str) -> None:
        self.checks[criterion] += 1
        if not good:
            self.found[criterion, what][where] = None

    def none(self, criterion: str, faults: list[str], what: str, *where: str) -> None:
        self.check(criterion, not faults, f"{what} {', '.join(faults)}", *where)

    def ratios(self, criterion: str, pairs: list[Any], least: float, *where: str) -> None:
        for spot, ratio in pairs:
            self.check(criterion, ratio >= least, f"`{spot}` has less than {least} : 1", *where)

    def wonder(self, what: str, *where: str) -> None:
        self.unsure[what][where] = None


@dataclass
class ExaminedSite:
    app: App
    browser: Browser
    service: str
    address: str
    pages: blog.Pages
    lively: tuple[App, str]  # a service with everything on, and its address
    report: Report = field(default_factory=Report)
    english: dict[str, set[str]] = field(default_factory=dict)

    @contextmanager
    def opened(
        self, state: State, *where: str, look: str = "essay", **browser: Any
    ) -> Iterator[Page]:
        """The page in this state, by default on a desk and in light colours."""
        path, lang = f"/{len(self.pages)}/", where[1]
        app, service = self.lively if state.is_lively else (self.app, self.service)
        sql(app, "DELETE FROM term")  # what other states taught the spam filter
        state.fill(app, path)
        self.pages |= blog.article(service, path, lang=lang)
        self.pages["/essay.css"] = ({"Content-Type": "text/css; charset=utf-8"}, LOOKS[look])
        browser = {"viewport": {"width": 1024, "height": 768}, **browser}
        with contextlib.ExitStack() as stack:
            context = blog.new_context(self.browser, locale=lang, **browser)
            stack.callback(context.close)
            page = context.new_page()
            fault = partial(self.report.check, "script", False)
            page.on("pageerror", lambda error: fault(str(error), *where))
            page.add_init_script(WATCH + HURRY)
            if state.is_lively:
                lively.show_pictures(page)
            if state.role:
                token = blog.owner_token(app)
                me = {"nickname": blog.OWNER, "token": token, "role": state.role, "id": 1}
                words = json.dumps([f"{service}/me", json.dumps(me)])
                page.add_init_script(f"localStorage.setItem(...{words})")
            if state.change:
                stack.enter_context(blog.answering(app, state.change))
            if state.before:
                state.before(page, app)
            page.goto(self.address + path)
            if state.before is not hold:
                blog.wait_until(page, READY)
            if state.role == "admin":
                blog.wait_until(page, MODERATES)
            if state.before is None:
                blog.begin_to_read(page)
            page.evaluate("watch.listen()")
            state.act(page)
            until_drawn(page)
            yield page
            page.unroute_all(behavior="ignoreErrors")


READY = """() => {
  const root = document.querySelector('commentd-thread')?.shadowRoot
  return Boolean(root?.querySelector('section')) && !root.querySelector('.wait')
}"""
MODERATES = "() => Boolean(document.querySelector('commentd-thread').menus.moderate)"
WEAR = """async css => {
  document.querySelector('link[rel=stylesheet], #look').outerHTML = `<style id=look>${css}</style>`
  const host = document.querySelector('commentd-thread')
  for (let i = 0; i < 60; i++) {
    await new Promise(requestAnimationFrame)
    const link = getComputedStyle(document.querySelector('footer a')).color
    const forced = matchMedia('(forced-colors: active)').matches // then no accent is seen
    if (host.style.getPropertyValue('--_link') === link || (forced && i > 2)) return true
  }
}"""


# What is looked at in a state


def examine(
    examined_site: ExaminedSite, name: str, lang: str, dresses: list[Dress], *, whole: bool
) -> None:
    """In these looks and schemes; `whole` is with the focus at each stop."""
    report, where = examined_site.report, (name, lang)
    with examined_site.opened(STATES[name], *where) as page:
        axe(page, report, *where)
        found = set(names(page, report, examined_site.english.get(name, set()), *where))
        if lang == "en":
            examined_site.english[name] = found
        for dress in dresses:
            wear(page, report, dress, *where)
            report.ratios("1.4.3", page.evaluate("watch.texts()"), 4.5, *where, *dress)
            report.ratios("1.4.11", page.evaluate("watch.edges()"), 3, *where, *dress)
            if "forced" in dress:
                bare = page.evaluate("watch.bare()")
                report.none("1.4.11", bare, "in forced colours no border is seen of", *where)
        if whole:
            walk(page, report, *where)
            for dress in dresses:
                wear(page, report, dress, *where)
                rings = [[f"focus of {e}", ring] for e, ring in page.evaluate("watch.rings()")]
                report.ratios("1.4.11", rings, 3, *where, *dress)
        wear(page, report, ("essay", "light"), *where)
        targets(page, report, *where)
        room(page, report, *where)


def axe(page: Page, report: Report, *where: str) -> None:
    """All but contrast, which is dear and computed here for each text."""
    only = {"runOnly": {"type": "tag", "values": TAGS}, "rules": NO_CONTRAST}
    answer = run_axe(page, "commentd-thread, [data-commentd-latest]", only)
    report.checks["axe"] += answer["passes"] + len(answer["violations"])
    for kind, rule in ((k, r) for k in ("violations", "incomplete") for r in answer[k]):
        numbers = [re.fullmatch(r"wcag(\d)(\d)(\d+)", tag) for tag in rule["tags"]]
        criterion = next((".".join(n.groups()) for n in numbers if n), "best practice")
        for node in rule["nodes"]:
            tag = re.match("<[^>]{0,60}", node["html"])
            what = f"axe {rule['id']}: {rule['help']}: `{tag and tag[0]}>`"
            if kind == "violations":
                report.check(criterion, False, what, *where)
            else:
                report.wonder(what, *where)


def run_axe(page: Page, where: str, options: Json) -> Json:
    """What axe-core found, and how many rules passed. Which elements passed each rule is not asked
    for: to describe hundreds of them and to bring them here takes longer than to look at them."""
    page.evaluate(AXE_SCRIPT)
    few = {**options, "resultTypes": ["violations", "incomplete"], "selectors": False}
    found: Json = json.loads(page.evaluate(RUN_AXE, [where, few]))
    return found


RUN_AXE = """([where, options]) => axe.run(where, options).then(
  ({passes, violations, incomplete}) =>
    JSON.stringify({passes: passes.length, violations, incomplete}))"""


def names(page: Page, report: Report, english: set[str], *where: str) -> Iterator[str]:
    """What controls are called, in the accessibility tree that a screen reader is given."""
    lang = page.locator("commentd-thread section[lang]").get_attribute("lang") or ""
    fine = lang == where[1] or where[0] == "offline"  # where words can't be had
    report.check("3.1.2", fine, f"the widget says that it is in {lang or 'no language'}", *where)
    letters = LETTERS.get(lang, set())
    report.none(
        "2.5.3", page.evaluate("watch.misnamed()"), "the name lacks what is read on", *where
    )
    written = set(page.locator("commentd-thread :is(.body a, b a, kbd)").all_text_contents())
    written |= set(page.locator("commentd-thread").evaluate(GIVEN_NAMES))
    chosen = WORDS.get(lang, {}).values()
    for node in tree(page):
        role, name = node["role"]["value"], node.get("name", {}).get("value", "").strip()
        if role in CONTROLS:
            report.check("4.1.2", name, f"a {role} has no name", *where)
        if role not in (*CONTROLS, "region", "form", "dialog") or not name or name in written:
            continue
        yield name
        if name in chosen and letters and letters.isdisjoint(name):
            report.wonder(f"`{name}` is {lang} by its words", *where)
        elif letters:
            fine = not letters.isdisjoint(name)
            report.check("3.1.2", fine, f"`{name}` is not in the widget's language", *where)
        elif lang != "en" and name in english:
            report.wonder(f"the name `{name}` is the English one", *where)


# What readers and the owner called their pictures.
GIVEN_NAMES = """thread => [...thread.shadowRoot.querySelectorAll('img, .face, .packs *, .large')]
  .map(each => each.alt || each.ariaLabel)"""


def tree(page: Page) -> list[Json]:
    cdp = page.context.new_cdp_session(page)
    section = "document.querySelector('commentd-thread').shadowRoot.querySelector('section')"
    object_id = cdp.send("Runtime.evaluate", {"expression": section})["result"]["objectId"]
    found = cdp.send("Accessibility.queryAXTree", {"objectId": object_id})
    cdp.detach()
    return [node for node in found["nodes"] if not node["ignored"]]


def dresses_of(lang: str, schemes: list[str]) -> list[Dress]:
    """Colours know no language, so one stands for all; forced ones are the system's, so one look
    does; `photo` is dark in both schemes; and the other languages change words and lengths."""
    if lang not in FULL:
        return [("essay", scheme) for scheme in schemes[:1]]
    looks = LOOKS if lang == LANGS[0] else ["essay"]
    return [
        (look, scheme)
        for look, scheme in product(looks, schemes)
        if scheme == "light" or look == "essay" or (scheme == "dark" and look[:5] != "photo")
    ]


def wear(page: Page, report: Report, dress: Dress, *where: str) -> None:
    look, scheme = dress
    forced: Any = "active" if scheme == "forced" else "none"
    colours: Any = "dark" if scheme == "dark" else "light"
    page.emulate_media(color_scheme=colours, forced_colors=forced)
    follows = page.evaluate(WEAR, LOOKS[look])
    report.check("look", follows, "the accent is not the page's", *where, *dress)


# What helps to write comes when a field gets the focus, or why it does not.
EQUIPPED = """() => {
  const {shadowRoot, settings} = document.querySelector('commentd-thread')
  const field = shadowRoot.activeElement
  if (!field?.matches('.form > .field')) return true
  const isThere = name => field.form.querySelector(name)
  const comes = ['.tools button']
  if (settings.stickers) comes.push('.smile')
  if (settings.faces && isThere('.guest:not([hidden]) [name=nickname]')) comes.push('.chosen')
  return Boolean(isThere('.failed')) || comes.every(isThere)
}"""


def stops(page: Page) -> Iterator[Json]:
    """Where Tab stops in the widget, from the heading before it."""
    seen: list[Json] = []
    if not page.evaluate("watch.start()"):
        for key in ("Tab", "Shift+Tab"):  # in a dialog; a mouse that opened it leaves no ring
            page.keyboard.press(key)
        seen.append(page.evaluate("watch.stop()"))
        yield seen[0]
    while len(seen) < 200:
        page.keyboard.press("Tab")
        stop = page.evaluate("watch.stop()")
        if not stop or stop in seen:
            return
        seen.append(stop)
        blog.wait_until(page, EQUIPPED)
        yield stop


def walk(page: Page, report: Report, *where: str) -> None:
    """Tab from the heading through all of the widget and out of it, and a step back in."""
    address, found = page.url, list(stops(page))
    for stop in found:
        spot = f"`{stop['spot']}`"
        report.check("2.4.7", stop["ring"] > 1.1, f"{spot} shows no focus", *where)
        report.check("2.4.11", not stop["covered"], f"{spot} is covered when focused", *where)
    report.check("3.2.1", page.url == address, "the focus alone leads to another page", *where)
    report.none("2.1.1", page.evaluate("watch.missed()"), "Tab does not reach", *where)
    for one, two in pairwise(found):
        row = min(one["bottom"], two["bottom"]) - max(one["top"], two["top"])
        back = (one["x"] - two["x"]) * (-1 if two["rtl"] else 1) > 0
        # The button for a quote floats below the selected text, maybe over the row of actions.
        beside = row > 8 and back and not one["floats"] and not two["floats"]
        what = f"Tab goes back from `{one['spot']}` to `{two['spot']}`"
        report.check("2.4.3", not beside and two["bottom"] > one["top"] + 2, what, *where)
    if page.evaluate("watch.modal()"):
        return
    report.check(
        "2.1.2", not page.evaluate("watch.stop()"), "Tab does not leave the widget", *where
    )
    if found:
        page.keyboard.press("Shift+Tab")
        last = page.evaluate("watch.stop()?.spot") == found[-1]["spot"]
        report.check("2.1.2", last, "Shift+Tab does not lead back in", *where)


def targets(page: Page, report: Report, *where: str) -> None:
    """With a mouse on a desk, and with a finger on a phone."""
    cdp = page.context.new_cdp_session(page)
    for by in ("mouse", "finger"):
        if by == "finger":
            page.set_viewport_size({"width": 390, "height": 844})
            cdp.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
        count, large, small = page.evaluate("watch.targets()")
        report.checks["2.5.8"] += count
        for what in small:
            report.check("2.5.8", False, f"{what} ({by})", *where)
    low = page.evaluate("watch.low(43.98)")
    report.none("best practice", low, "less than 44 px for a finger:", *where)
    report.large = [report.large[0] + large, report.large[1] + count]
    cdp.send("Emulation.setTouchEmulationEnabled", {"enabled": False})


SPACED = """
const sheet = new CSSStyleSheet()
sheet.replaceSync(`* { line-height: 1.5 !important; letter-spacing: .12em !important;
  word-spacing: .16em !important } p { margin-bottom: 2em !important }`)
const root = document.querySelector('commentd-thread').shadowRoot
root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet]
document.adoptedStyleSheets = [sheet]"""
LARGE = "document.body.style.fontSize = '36px'"
SIZES = {
    "an upright phone": ("1.3.4", 390, 844, ""),
    "a phone on its side": ("1.3.4", 844, 390, ""),
    "200 %": ("1.4.4", 640, 384, ""),
    "letters at 200 % on a phone": ("1.4.4", 390, 844, LARGE),
    "letters at 200 %": ("1.4.4", 1024, 768, LARGE),
    "320 px, 400 %": ("1.4.10", 320, 640, "document.body.style.fontSize = ''"),
    "text spacing": ("1.4.12", 1024, 768, SPACED),
    "text spacing, 320 px": ("1.4.12", 320, 640, ""),
}
LOOK_AT = """async () => {
  { CHANGE }
  for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame)
  return [[...watch.wide(), ...watch.cut()], watch.controls()]
}"""


def room(page: Page, report: Report, *where: str) -> None:
    page.evaluate(blog.RESTED)  # with the focus in a field, no quote is offered any more
    counts = set()
    for size, (criterion, width, height, change) in SIZES.items():
        page.set_viewport_size({"width": width, "height": height})
        faults, count = page.evaluate(LOOK_AT.replace("CHANGE", change))
        report.checks[criterion] += 1
        for fault in faults:
            report.check(criterion, False, f"{fault} ({size})", *where)
        counts.add(count)
    report.check("1.3.4", len(counts) == 1, "controls come and go with the size", *where)
    report.none("1.4.5", page.evaluate("watch.media()"), "images or media:", *where)
    moving = page.evaluate("watch.moving()")
    report.check("2.2.2", not moving, "something moves by itself", *where)


# Whole paths, by keys alone


@dataclass
class KeyboardUser:
    """Somebody without a mouse."""

    page: Page
    app: App
    report: Report
    where: tuple[str, ...]

    def check(self, criterion: str, good: Any, what: str) -> None:
        self.report.check(criterion, good, what, *self.where)

    def becomes(self, expression: str) -> bool:
        try:
            self.page.wait_for_function(expression, timeout=1000 * PATIENCE)
        except Error:
            return False
        return True


Step = Callable[[KeyboardUser], object]


def use(selector: str, text: str | None = None) -> Step:
    """Tab until it is there; then Enter, or this text in place of what it holds."""

    def step(user: KeyboardUser) -> None:
        user.page.evaluate("watch.told.length = 0")
        reached = True
        try:
            keyboard(user.page.locator(selector).first, text)
        except (pytest.fail.Exception, AssertionError):
            reached = False
        user.check("2.1.1", reached, f"Tab does not reach `{selector}`")

    return step


def do(act: Act) -> Step:
    return lambda user: act(user.page)


def focus(selector: str, after: str) -> Step:
    is_there = f"watch.at({json.dumps(selector)})"
    return lambda h: h.check("2.4.3", h.becomes(is_there), f"the focus is lost after {after}")


def told_of(what: str) -> Step:
    heard = "watch.told.length > 0"
    return lambda h: h.check("4.1.3", h.becomes(heard), f"nothing is announced: {what}")


def says(criterion: str, selector: str, what: str) -> Step:
    return lambda h: h.check(criterion, h.becomes(f"watch.has({json.dumps(selector)})"), what)


def keeps(selector: str, value: str, after: str) -> Step:
    def step(user: KeyboardUser) -> None:
        kept = user.page.locator(selector).input_value() == value
        user.check("3.3.7", kept, f"`{selector}` is lost by {after}")

    return step


def pastes(selector: str) -> Step:
    def step(user: KeyboardUser) -> None:
        fields = user.page.locator(selector)
        allowed = fields.evaluate_all("all => all.every(e => e.dispatchEvent(" + PASTE + "))")
        user.check("3.3.8", allowed, f"nothing can be pasted into `{selector}`")
        purposes = fields.evaluate_all("all => all.every(e => e.autocomplete)")
        user.check("1.3.5", purposes, f"`{selector}` does not say its purpose")

    return step


PASTE = "new ClipboardEvent('paste', {bubbles: true, cancelable: true, composed: true})"


def again(page: Page) -> None:
    page.reload()
    blog.wait_until(page, READY)


def until_drawn(page: Page) -> None:
    """Until what scripts have changed by now is on the screen."""
    page.evaluate("new Promise(go => requestAnimationFrame(() => requestAnimationFrame(go)))")


def type_the_code(user: KeyboardUser) -> None:
    field = user.page.locator(".panel [name=code]")
    hint = field.evaluate("e => e.ariaDescribedByElements?.map(d => d.textContent).join() ?? ''")
    [(text,), *_] = sql(user.app, "SELECT text FROM outbox ORDER BY id DESC")
    user.page.keyboard.insert_text(code_of(text))
    if user.becomes("!watch.has('.panel [name=code]')"):
        user.report.wonder(f"3.2.2: the last digit sends the code, after “{hint}”", *user.where)


def letters_outside(user: KeyboardUser) -> None:
    root = "document.querySelector('commentd-thread').shadowRoot"
    look = f"[watch.stop(), scrollY, {root}.innerHTML]"
    user.page.evaluate("document.activeElement.blur()")
    user.page.keyboard.press("Shift")  # reading.js comes when the reader moves
    user.page.wait_for_function(f"{root}.querySelector('.fresh')")
    before = user.page.evaluate(look)
    key(*"abcdefghijklmnopqrstuvwxyz0123456789?/.,[]")(user.page)
    until_drawn(user.page)
    user.check("2.1.4", before == user.page.evaluate(look), "a letter acts outside the widget")


def press_and_move_away(user: KeyboardUser) -> None:
    for selector in ("article .like", ".reply", ".quiet", ".line"):
        for target in user.page.locator(selector).all()[:1]:
            target.hover(position={"x": 5, "y": 8})
            user.page.mouse.down()
            user.page.mouse.move(1, 1)
            user.page.mouse.up()
    done = user.page.locator(
        "[aria-pressed=true], .line[aria-expanded=false], article form, dialog"
    ).count()
    user.check("2.5.2", not done, "a press acts before it ends")
    for target in user.page.locator("article").all():
        target.hover()
        faults = user.page.evaluate("watch.cut()")
        user.check("1.4.13", not faults, f"what hovering shows covers something: {faults}")


PREVIEW_SHOWN = f"{PREVIEW}:is([aria-expanded=true], [aria-pressed=true])"
# A state, and the steps from there.
PATHS: dict[str, tuple[Any, ...]] = {
    "to post": (
        empty(),
        use(FIELD, TEXT),
        use(NAME, ME),
        use(POST),
        told_of("posted"),
        focus("article", "posting"),
        do(again),
        use(FIELD, TEXT),  # the other fields come with it
        keeps(NAME, ME, "posting"),
    ),
    "to preview": (
        empty(),
        use(FIELD, TEXT),
        use(PREVIEW),
        says("2.1.1", ".preview", "no preview by keys"),
        says("4.1.2", PREVIEW_SHOWN, "the button does not say that the preview is shown"),
    ),
    "to answer and cancel": (
        State(),
        use(".reply"),
        focus("article textarea", "pressing Reply"),
        do(typed(TEXT)),
        use(f"article {MAIN} + button + button"),
        focus("article, article button", "cancelling an answer"),
    ),
    "to like": (
        short(),
        use("article .like"),
        says("4.1.2", ".like[aria-pressed=true]", "a like does not say that it is set"),
        focus(".like", "a like"),
    ),
    "to fold and unfold": (
        State(fill=long_text),
        use(".line"),
        focus(".line[aria-expanded=false]", "hiding replies"),
        do(key("Space")),
        focus(".line[aria-expanded=true]", "showing replies"),
        use("article > button"),
        focus("article", "unfolding a text"),
    ),
    "to copy a link": (short(), use(".quiet"), use(MENU), told_of("the link is copied")),
    "to order": (
        State(fill=twelve),
        use("select", ""),
        do(key("ArrowDown", "Enter")),
        says("2.1.1", "select:has(option:checked:not(:first-child))", "no other order by keys"),
        focus("select", "choosing another order"),
    ),
    # The first of what came has the focus, so it is read.
    "to show more": (State(fill=twelve), use(".more"), focus("article", "more comments")),
    "to edit and delete": (
        State(mine),
        use(SECOND),
        focus("article textarea", "pressing Edit"),
        do(typed(" More.")),
        use(f"article {MAIN}"),
        focus("article", "editing"),
        use(".quiet"),
        use(LAST),
        says("3.3.4", MENU, "one press deletes"),
        do(key("Enter")),
        told_of("deleted"),
        focus("article, textarea", "deleting"),
    ),
    "to register, sign out and in": (
        empty(),
        use(FIELD, TEXT),
        use(SIGN_IN),
        focus(".panel input", "opening the panel"),
        use(OTHERS),
        use(f"{OTHERS} + button"),
        use(".panel [name=nickname]", "Ann"),
        use(".panel [name=email]", MAIL),
        use(".panel [name=password]", "a long secret"),
        pastes(".panel input"),
        use(f".panel {MAIN}"),
        focus(".panel [name=code]", "sending a code"),
        pastes(".panel input"),
        type_the_code,
        told_of("signed in"),
        focus(FIELD, "signing in"),
        keeps(FIELD, TEXT, "signing in"),
        use(".guest .account + button"),
        told_of("signed out"),
        focus(FIELD, "signing out"),
        use(SIGN_IN),
        use(OTHERS),
        use(".panel [name=email]", MAIL),
        use(".panel [name=password]", "a long secret"),
        use(f".panel {MAIN}"),
        told_of("signed in"),
        focus(FIELD, "signing in"),
    ),
    "to be refused": (
        empty(),
        use(FIELD, TEXT),
        use(POST),
        focus(f"{NAME}[aria-describedby]", "a refusal"),
        says("3.3.1", f"{NAME}[aria-invalid=true]", "the field at fault is not marked"),
    ),
    "to post offline": (
        empty(),
        use(FIELD, TEXT),
        use(NAME, ME),
        do(offline),
        use(POST),
        told_of("offline"),
        keeps(FIELD, TEXT, "being offline"),
    ),
    "to wait for approval": (empty(change=waiting), do(post), told_of("it waits")),
    "to moderate": (
        State(role="admin"),
        use(".quiet"),
        says("4.1.2", ".quiet[aria-expanded=true]", "the menu does not say it is open"),
        use(SECOND),
        focus("article p.row button", "marking as spam"),
        do(key("Enter")),
        focus(".quiet", "undoing"),
    ),
    "to leave a menu": (
        short(),
        use(".quiet"),
        focus(MENU, "opening a menu"),
        says("4.1.2", ".quiet[aria-expanded=true]", "the menu does not say it is open"),
        do(key("ArrowDown")),
        focus(SECOND, "an arrow"),
        do(key("Escape")),
        focus(".quiet", "Escape"),
    ),
    "to use single keys": (
        short(),
        letters_outside,
        use("article .like"),
        do(key("j")),
        focus("article", "j"),
        do(key("?")),
        focus("dialog *", "?"),
        do(key("Escape")),
        focus("article", "Escape"),
    ),
    "to point": (short(), press_and_move_away),
}


def walk_path(examined_site: ExaminedSite, *where: str) -> None:
    state, *steps = PATHS[where[0]]
    with examined_site.opened(state, *where) as page:
        for step in steps:
            step(KeyboardUser(page, examined_site.app, examined_site.report, where))


# The report


def findings_of(report: Report) -> list[str]:
    return [
        f"- {number}: {what} ({brief(p)})" for (number, what), p in sorted(report.found.items())
    ]


def brief(places: Places) -> str:
    """Where it was found: states, languages, looks and schemes, three of each."""
    columns = [list(dict.fromkeys(filter(None, c))) for c in zip_longest(*places)]
    return "; ".join(
        ", ".join(c[:3]) + f" and {len(c) - 3} more" * (len(c) > 3) for c in columns if c
    )


# Running


@contextmanager
def examined_site_running(browser: Browser) -> Iterator[ExaminedSite]:
    pages: blog.Pages = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        blog.own_app() as app,
        blog.own_app(**lively.settings(Path(folder))) as lively_app,
        blog.service(app) as service,
        blog.service(lively_app) as lively_service,
        blog.blog(pages) as address,
    ):
        with_all = (lively_app, lively_service)
        yield ExaminedSite(app, browser, service, address, pages, with_all)


def run(examined_site: ExaminedSite, only: list[str], langs: list[str], schemes: list[str]) -> None:
    for lang, name in product(langs, only):
        print(f"{lang}: {name}", file=sys.stderr, flush=True)
        for last in (False, True):  # a machine that gets stuck once says nothing of the widget
            try:
                if name in STATES:
                    examine(
                        examined_site, name, lang, dresses_of(lang, schemes), whole=lang in FULL
                    )
                elif lang in FULL or lang == langs[0]:
                    walk_path(examined_site, name, lang)
                break
            except (Error, AssertionError) as error:
                what = f"the machine got stuck: {str(error).splitlines()[0]}"
                examined_site.report.check("stuck", not last, what, name, lang)


# What tests of other files ask of a page


PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
DESK: dict[str, Any] = {"viewport": {"width": 1024, "height": 768}}
TARGETS = "least => watch.low(least)"


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
    """axe-core finds no fault, and every text has contrast in light and in dark."""
    found = run_axe(page, "commentd-thread", {"rules": NO_CONTRAST})
    assert (where, nodes_of(found["violations"])) == (where, [])
    for scheme in ("light", "dark"):
        prefer(page, scheme)
        low = [each for each in page.evaluate("watch.texts()") if each[1] < 4.5]
        assert (where, scheme, low) == (where, scheme, [])


def focus_stops(page: Page) -> list[tuple[str, str, bool]]:
    """What Tab reaches of the widget: kind, name, and whether one sees that it has the focus."""
    return [(stop["tag"], stop["name"], stop["ring"] > 1.1) for stop in stops(page)]
