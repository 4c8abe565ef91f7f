"""The widget on hostile blogs, in a real Chromium: scripts that replace what browsers have,
elements that hide the widget, storage that is full or spoilt, and policies. It works, or it leaves
the page alone. It never tells a secret and never asks a third party."""

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from commentd import App
from support.blog import POST, say
from support.campaign import Campaign
from support.hostile_text import MARKUP
from support.inside import add_account, set_status, sql, token_of
from support.patience import PATIENCE
from support.widget import BLOCKED, POLICY, TAG, TYPES, Site
from support.widget import fake_world as fake_world  # a fixture
from support.widget import settings as settings  # a fixture
from support.widget import site as site  # a fixture

pytestmark = pytest.mark.slow


MAIL = "canary@lu.example"

# What a script of the page did to the browser before ours came. The widget works all the same.
PATCHES = {
    "prototype.js": """
        Array.prototype.toJSON = function () { return '[' + this.join() + ']' }
        Array.prototype.entries = Array.prototype.toArray = function () { return [...this] }
        Array.prototype.include = Array.prototype.includes
        Array.from = it => [].slice.call(it)""",
    "text toJSON": "String.prototype.toJSON = function () { return this + '!' }",
    "setters": """for (const name of ['token', 'closed', 'captcha', 'nickname', 'edit_token', 'id'])
        Object.defineProperty(Object.prototype, name,
          {configurable: true, get() {}, set(value) { seen.push(value) }})""",
    "fetch": "{ const f = fetch; window.fetch = (...all) => f(...all).then(reply => reply) }",
    "then": """{ const t = Promise.prototype.then
        Promise.prototype.then = function (...all) { return t.apply(this, all) } }""",
    "storage blocked": BLOCKED,
    "storage full": "Storage.prototype.setItem = () => { throw new DOMException('x') }",
    "crypto": "Object.defineProperty(window, 'crypto', {value: undefined})",
    "worker gone": "window.Worker = URL.createObjectURL = undefined",
    "worker throws": "window.Worker = class { constructor() { throw new Error('mine') } }",
    "extras": """Array.prototype.last = Object.prototype.extra = function () {}
        Object.prototype.class = 'theirs'
        Element.prototype.extra = String.prototype.trimmed = 1""",
    "replaced": """{ const stringify = JSON.stringify, {remove} = Element.prototype
        JSON.stringify = function (...words) { return stringify.apply(this, words) }
        Element.prototype.remove = function () { this.parentNode && remove.call(this) } }
        Array.from = item => item == null ? [] : [item] // MooTools
        window.Promise = class extends Promise {}""",
    "others": "window.DISQUS = {}; window.Valine = window.commentd = class {}; window.h = 1",
}
# With these it can't work, but the page must.
BREAKS = {
    "object toJSON": "Object.prototype.toJSON = function () { return {} }",
    "parse": "JSON.parse = () => { throw new SyntaxError('mine') }",
    "no fetch": "window.fetch = undefined",
    "fetch for ever": "window.fetch = () => new Promise(() => 0)",
    "element taken": "customElements.define('commentd-thread', class extends HTMLElement {})",
    "no elements": "Object.defineProperty(window, 'customElements', {value: undefined})",
    "storage ill": """if (!localStorage.ill) { localStorage.ill = 1
        for (const name of ['me', 'own', 'likes', 'reports'])
          localStorage[SERVICE + name] = '{"token": ["x"], "email": 7, "1": null}' }""",
    "no Intl": "window.Intl = undefined",
    "no sheets": "window.CSSStyleSheet = undefined",
    "no time-out": "AbortSignal.timeout = undefined",
}
SECRET = """() => {
  const threads = [...document.querySelectorAll('commentd-thread')]
  const roots = [document.documentElement, ...threads.map(thread => thread.shadowRoot)]
  const shown = roots.map(root => root?.innerHTML + root?.textContent)
  return [...shown, document.title, location.href, name, told, seen].join()
}"""
GROUND = """
const [SERVICE, ME] = WORDS, say = JSON.stringify
window.seen = []
window.told = ''
for (const event of ['loaded', 'posted'])
  addEventListener('commentd:' + event, ({detail}) => { told += say(detail) })
addEventListener('load', () => { window.done = 1 })
try { localStorage[SERVICE + 'me'] ??= say(ME) } catch {}
"""


@dataclass
class Visit:
    """A reader on a page of such a blog. What must never happen is checked at the end."""

    page: Page
    site: Site
    me: dict[str, Any]
    asked: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(f"{error}\n{error.stack}"))

    def write(self, text: str) -> None:
        articles = self.page.locator("article")
        expect(articles.filter(has_text="Hello.")).to_be_visible()
        form = self.page.locator("commentd-thread form").first
        form.locator("textarea").fill(text)
        expect(form.locator(".button")).to_be_visible()  # the other fields come with it
        if form.locator("[name=nickname]").is_visible():
            form.locator("[name=nickname]").fill("林深")
        form.locator(".button").click()
        expect(articles.filter(has_text=text)).to_be_visible()

    def check(self) -> None:
        assert self.page.evaluate("window.done") == 1
        assert self.page.locator("footer").inner_text() == "End"
        homes = (f"{self.site.address}/", f"{self.site.service}/", "data:,", "blob:")
        assert [url for url in self.asked if not url.startswith(homes)] == []
        assert self.page.context.cookies() == []
        secrets = [word for word in (self.me.get("token"), MAIL) if word]
        visible = self.page.evaluate(SECRET) + "".join(self.asked + self.console)
        assert [word for word in (*secrets, "edit_token", "javascript:") if word in visible] == []


@dataclass
class Blogs:
    """Hostile blogs, each made by chance, and a reader who visits them."""

    app: App
    browser: Browser
    site: Site
    ann: int  # the reader's account

    def me(self, chance: random.Random) -> dict[str, Any]:
        """What the reader's browser keeps: often a login."""
        if chance.random() < 0.5:
            return {"nickname": "Ann", "email": MAIL}
        token = token_of(self.app, "ann@example.com")
        return {"nickname": "Ann", "token": token, "id": self.ann, "role": "user"}

    def write(self, chance: random.Random, names: list[str]) -> None:
        policy = chance.choice(["", "", POLICY, POLICY + TYPES])
        policy = policy.replace("SERVICE", self.site.service)
        headers = {"Content-Security-Policy": policy} if policy else {}
        markup = "".join(MARKUP[name] for name in names)
        html = self.site.html(f"<p>An essay.</p>{markup}{TAG}<footer>End</footer>")
        for (number,) in sql(self.app, "SELECT id FROM comment WHERE status = 'visible'"):
            set_status(self.app, number, "spam")
        say(self.app, "Hello.")
        self.site.pages[POST] = (headers, html)

    @contextmanager
    def visit(self, chance: random.Random, names: list[str], *scripts: str) -> Iterator[Visit]:
        """The page, on which these scripts run before all others."""
        context = self.browser.new_context(locale="zh-CN")
        context.set_default_timeout(1000 * PATIENCE)
        me, page = self.me(chance), context.new_page()
        words = json.dumps([f"{self.site.service}/", me])
        blocks = [f"try {{ {script} }} catch {{}}\n" for script in scripts]
        page.add_init_script(GROUND.replace("WORDS", words) + "".join(blocks))
        self.write(chance, names)
        visit = Visit(page, self.site, me)
        try:
            page.goto(self.site.address + POST)
            yield visit
            visit.check()
        except BaseException as fault:
            fault.add_note(f"{self.site.pages[POST]}, {names}, {me}\n{scripts}\n{visit.console}")
            raise
        context.close()


@pytest.fixture
def blogs(app: App, browser: Browser, site: Site) -> Blogs:
    return Blogs(app, browser, site, add_account(app, "ann@example.com", "Ann", "a password"))


def test_comments_are_read_and_written_on_a_hostile_blog(blogs: Blogs, campaign: Campaign) -> None:
    for chance in campaign.rounds(8):
        patches = chance.sample([*PATCHES], chance.choice([1, 2, 3, 5]))
        names = chance.sample([*MARKUP], chance.choice([0, 1, 2]))
        with blogs.visit(chance, names, *map(PATCHES.__getitem__, patches)) as visit:
            visit.write(f"No. {campaign.last}.")
        campaign.figures["blogs"] += 1


def test_setters_of_the_page_on_all_objects_stop_no_comment(blogs: Blogs) -> None:
    with blogs.visit(random.Random(1), [], PATCHES["setters"]) as visit:
        visit.write("No. 1.")


def test_the_widget_breaks_no_blog_on_which_it_can_not_work(
    blogs: Blogs, campaign: Campaign
) -> None:
    for chance in campaign.rounds(8):
        what = [*BREAKS][campaign.last % len(BREAKS)]
        names = chance.sample([*MARKUP], chance.choice([0, 1]))
        with blogs.visit(chance, names, BREAKS[what]) as visit:
            visit.page.wait_for_load_state("networkidle")
            visit.page.get_by_text("An essay.").click()
        campaign.figures["blogs"] += 1
