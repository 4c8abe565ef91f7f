"""The journey of a reader, with and without an account, and of an admin in the three engines that
browsers are made of, and what a browser shows that is older than the scripts need."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from webtest import TestApp

from commentd import App, Config, make_app
from support.blog import POST, Pages, article, blog, owner_token, service
from support.engines import Window, chromium, firefox, old_webkit, webkit
from support.inside import set_status, token_of
from support.mail import code_in
from support.widget import fake_world as fake_world  # a fixture
from support.widget import fill
from support.world import FakeWorld

pytestmark = pytest.mark.slow

# What the page itself hears of: errors of scripts, and what its policy refused.
WATCH = """<script>
faults = []
addEventListener('error', ({message}) => faults.push(message))
addEventListener('unhandledrejection', ({reason}) => faults.push(String(reason)))
</script>"""
POLICY = "default-src 'none'; script-src SERVICE; connect-src SERVICE; style-src BLOG"
ARABIC = "تعليق قصير من القاهرة"
THREAD = "const thread = document.querySelector('commentd-thread').shadowRoot\n"
# On which side a text stands closer to the edge.
GAPS = f"""{THREAD}
const bodies = [...thread.querySelectorAll('.body')]
const body = bodies.find(node => node.innerText.includes(arguments[0]))
const range = document.createRange()
range.selectNodeContents(body.querySelector('p'))
const [line, box] = [range, body].map(each => each.getBoundingClientRect())
return box.right - line.right < line.left - box.left ? 'right' : 'left'
"""
IS_DARK = f"""{THREAD}
const colorOf = selector => getComputedStyle(thread.querySelector(selector)).color
const isLight = color => color.match(/[\\d.]+/g).slice(0, 3).every(each => each > 128)
const colors = ['.body', 'textarea', '.name'].map(colorOf)
return getComputedStyle(thread.host).colorScheme === 'dark' && colors.every(isLight)
"""
WIDEST = f"""{THREAD}
const widths = [...thread.querySelectorAll('*')].map(node => node.getBoundingClientRect().width)
return Math.max(...widths)
"""
# Where the parts of comments were, in each frame since the reader scrolled.
FOLLOW = """<script>
places = []
framesWithForm = 0
addEventListener('scroll', function look() {
  const {shadowRoot} = document.querySelector('commentd-thread')
  const nodes = shadowRoot.querySelectorAll(
    'li, article, .avatar, .meta > *, .body, .body *, .actions')
  const boxes = [...nodes].map(node => node.getBoundingClientRect())
  const found = boxes.map(({x, y, width, height}) =>
    [x + scrollX, y + scrollY, width, height].map(Math.round)).join('; ')
  if (!places.includes(found)) places.push(found)
  if (shadowRoot.querySelector('form')) framesWithForm += 1
  requestAnimationFrame(look)
}, {once: true})
</script>"""
REMEMBER = "localStorage.setItem(...arguments)"
READER_EMAIL = "wren@example.com"
Engine = Callable[[str], AbstractContextManager[Window]]
OWNER_EMAIL = "owner@example.com"


@dataclass
class Site:
    """A blog and its service, under the names that every engine knows for this machine."""

    app: App
    fake_world: FakeWorld
    pages: Pages
    blog: str
    service: str

    def write(self, path: str = POST, *, lang: str = "en", policy: str = "", html: str = "") -> str:
        """Writes a page with comments, by the tag or other HTML; its URL."""
        tag = html or f'<script src="{self.service}/embed.js" async></script>'
        pages = article(self.service, path, lang=lang, tag=tag if policy else WATCH + tag)
        header = policy.replace("SERVICE", self.service).replace("BLOG", self.blog)
        if policy:
            pages[path][0]["Content-Security-Policy"] = header
        self.pages.update(pages)
        return self.blog + path


@pytest.fixture
def site(config: Config, fake_world: FakeWorld) -> Iterator[Site]:
    """With 23 comments, and from then on with a captcha."""
    open_to_all = replace(config, server_listen="127.0.0.1:0", limits_enabled=False)
    with closing(make_app(open_to_all, fake_world.world, rounds=1)) as app:
        first, second, *_ = fill(app, 23)
        set_status(app, first, "waiting")
        set_status(app, second, "waiting")
        owner_token(app)
    guarded = replace(open_to_all, captcha_provider="altcha", mail_host="mail.example")
    pages: Pages = {}
    with (
        closing(make_app(guarded, fake_world.world, rounds=1)) as app,
        service(app) as address,
        blog(pages) as home,
    ):
        home = home.replace("blog.test", "localhost")
        address = address.replace("comments.test", "127.0.0.1")
        yield Site(app, fake_world, pages, home, address)


# The journey


def take_over(window: Window, site: Site) -> None:
    """Comments are in the HTML, until the reader comes near and the widget shows them."""
    html = TestApp(site.app).get("/fragment", {"url": POST, "lang": "en"}).text
    html += f'<script src="{site.service}/loader.js" async></script>'
    window.go(site.write(html=WATCH + FOLLOW + html))
    window.see("article .body", "No. 14.")
    assert window.text("form") is None
    window.run("document.querySelector('#comments').scrollIntoView()")
    window.see("button", "Reply to Guest 14")
    window.wait(lambda: window.run("return framesWithForm > 2"), "frames")
    assert window.run("return [faults.length, places.length]") == [0, 1], "nothing moved"


def read_and_write(window: Window, site: Site) -> None:
    window.see("article .body", "No. 14.")
    window.click("button", "Show more")
    window.see("article .body", "No. 4.")

    window.write("textarea", "Write a comment", "Some *stress* here")
    window.write("[name=nickname]", "", "Wren")
    window.click("button", "Preview")
    window.see(".preview em", "stress")
    window.click(".button", "Post")
    window.see("article em", "stress")

    window.click("button", "Reply to Guest 23", near="No. 23.")
    window.write("article textarea", "Reply to Guest 23", "A reply", near="No. 23.")
    window.click(".button", "Post", near="No. 23.")
    window.see("article .body", "A reply")

    window.click("button", "Like", near="No. 22.")
    window.see(".like[aria-pressed=true]", "Like", near="No. 22.")

    window.click(".quiet", near="A reply")
    window.click(".menu button", "Edit")
    window.write("article textarea", "A reply", " that is longer", near="A reply")
    window.click(".button", "Save", near="A reply")
    window.see("article .body", "A reply that is longer")
    window.click(".quiet", near="A reply")
    window.click(".menu button", "Delete")
    window.click(".menu button", "Delete it?")
    window.see_gone("article .body", "A reply")

    window.write("textarea", "Write a comment", "Half a thought\nin two lines")
    window.go(site.blog + POST)
    window.run("document.querySelector('#comments').scrollIntoView()")
    window.see("textarea", "Half a thought\nin two lines")
    window.see("article em", "stress")
    window.click(".button", "Post")
    window.see("article .body", "Half a thought\nin two lines")
    assert window.run("return faults") == []


def look(window: Window, site: Site) -> None:
    """Dark, narrow, and from right to left."""
    say_arabic(window)
    assert window.run(GAPS, ARABIC) == "right"
    # The blog goes dark, but for its links.
    window.run("document.body.style.cssText = 'color: #d6dad8; background: #15191a'")
    window.wait(lambda: window.run(IS_DARK), "light letters on dark ground")
    window.run("document.body.style.width = '320px'")
    window.wait(lambda: window.run(WIDEST) <= 320, "a thread of 320 pixels")
    window.go(site.write("/ar/", lang="ar"))
    window.see(".none")
    assert window.colors("textarea") > 1  # its placeholder is seen
    say_arabic(window)
    assert window.run(GAPS, ARABIC) == "right"
    assert window.run("return faults") == []


def say_arabic(window: Window) -> None:
    window.write("textarea", "", ARABIC)
    window.click(".button")
    window.see("article .body", ARABIC)


def obey_policy(window: Window, site: Site) -> None:
    """A comment under a strict policy, without a worker for the captcha."""
    window.go(site.write("/strict/", policy=POLICY))
    window.write("textarea", "Write a comment", "Under a strict policy")
    window.click(".button", "Post")
    window.see("article .body", "Under a strict policy")


def sign_in(window: Window, site: Site) -> None:
    window.click("textarea")
    window.click("button", "Sign in")
    window.write(".panel [type=email]", "", READER_EMAIL)
    window.click(".panel button", "Email me a code")
    window.see(".panel [name=code]")
    site.app.deliver()
    sent = [mail.message for mail in site.fake_world.emails if mail.recipient == READER_EMAIL]
    window.write(".panel [name=code]", "", code_in(sent[-1]))


def have_an_account(window: Window, site: Site) -> None:
    window.go(site.write())
    sign_in(window, site)
    window.see("form", "Signed in as Wren")  # the name that they had as a guest
    window.click("button", "Sign out")
    sign_in(window, site)
    window.see("form", "Signed in as Wren")
    assert window.run("return faults") == []
    window.click("button", "Sign out")
    window.see("button", "Sign in")


def administrate(window: Window, site: Site) -> None:
    me = {"token": token_of(site.app, OWNER_EMAIL, "admin"), "email": OWNER_EMAIL}
    window.go(f"{site.service}/admin")
    window.run(REMEMBER, f"{site.service}/commentd admin", json.dumps(me))
    window.go(f"{site.service}/admin")
    window.click("button", "Approve", near="No. 1.")
    window.see_gone("article .body", "No. 1.")
    window.click("button", "Spam", near="No. 2.")
    window.see_gone("article .body", "No. 2.")
    window.click("header a", "Comments")
    window.click("button", "Reply", near="No. 23.")
    window.write("textarea", "", "From the owner", near="No. 23.")
    window.click("form button", "Send", near="No. 23.")
    window.see_gone("textarea", near="No. 23.")
    window.click("button", "Pin", near="No. 23.")
    window.see(".badge", "Pinned", near="No. 23.")
    window.go(site.blog + POST)
    window.see(".badge", "Pinned", near="No. 23.")
    window.see("article .body", "From the owner")


def journey(window: Window, site: Site) -> None:
    window.resize(1100, 900)
    window.go(site.write())
    read_and_write(window, site)
    look(window, site)
    obey_policy(window, site)
    have_an_account(window, site)
    administrate(window, site)


def test_readers_and_admins_find_everything_by_accessible_names(
    browser: Browser, site: Site
) -> None:
    with chromium(browser) as window:
        journey(window, site)


def test_a_press_that_a_moving_button_escapes_is_repeated(browser: Browser) -> None:
    moves = "<script>onmousedown = () => document.body.style.paddingTop = '99px'</script>"
    button = "<button onclick='this.textContent = 1'>Press</button>"
    with blog({"/": ({}, button + moves)}) as home, chromium(browser) as window:
        window.go(home)
        window.click("button", "Press")
        window.see("button", "1")


@pytest.mark.long
@pytest.mark.parametrize("engine", [firefox, webkit])
def test_readers_and_admins_find_everything_in_other_browser_engines(
    engine: Engine, site: Site, tmp_path: Path
) -> None:
    with engine(str(tmp_path)) as window:
        journey(window, site)


@pytest.mark.long
@pytest.mark.parametrize("engine", [firefox, webkit])
def test_the_widget_takes_over_in_other_browser_engines(
    engine: Engine, site: Site, tmp_path: Path
) -> None:
    with engine(str(tmp_path)) as window:
        window.resize(1100, 900)
        take_over(window, site)
        read_and_write(window, site)


# Older browsers


@pytest.fixture
def old_browser(tmp_path: Path) -> Iterator[Window]:
    with old_webkit(str(tmp_path)) as window:
        yield window


def test_an_old_browser_shows_a_link_to_the_plain_page_of_comments(
    old_browser: Window, site: Site
) -> None:
    old_browser.go(site.write())
    old_browser.click("a", "评论")
    old_browser.see("main", "No. 22.")


def test_an_old_browser_says_that_it_is_too_old_for_the_admin_page(
    old_browser: Window, site: Site
) -> None:
    old_browser.go(f"{site.service}/admin")
    old_browser.see("p", "at least Safari 16.4")
