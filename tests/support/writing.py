"""The widget on a page of a blog, for those who write and sign in."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, Request, Route, expect
from webtest import TestApp

from commentd import App, Config, World
from support import blog, inside
from support.blog import POST
from support.inside import sql
from support.mail import MailServer, code_in
from support.words import WORDS
from support.world import FakeWorld

Operate = Callable[..., None]
MAIL, PASSWORD = "ann@example.com", "Tränen, 眼泪 & \U0001f9c5"

# Once, when the first page opens: quicker than Playwright's `storage_state`.
REMEMBER = """{
  const [origin, key, value] = %s
  if (location.origin === origin && !sessionStorage.begun) {
    sessionStorage.begun = 1
    localStorage.setItem(key, value)
  }
}"""

# What a browser writes to its console for each refusal, and for a request that got no answer.
REFUSED, UNREACHED = "Failed to load resource: the server", "Failed to load resource: net::"


class BrowserWorld(FakeWorld):
    """The clock goes with the browser's and may be set ahead; emails leave by SMTP."""

    ahead = 0

    @property
    def world(self) -> World:
        return World(clock=lambda: time.time() + self.ahead)


@pytest.fixture(scope="module")
def mail_server() -> Iterator[MailServer]:
    mail_server = MailServer()
    mail_server.start()
    yield mail_server
    mail_server.stop()


@pytest.fixture
def fake_world() -> BrowserWorld:
    return BrowserWorld()


@pytest.fixture
def pages() -> blog.Pages:
    return {}


@pytest.fixture
def address(pages: blog.Pages) -> Iterator[str]:
    with blog.blog(pages) as address:
        yield address


@pytest.fixture
def config(config: Config, address: str, mail_server: MailServer) -> Config:
    mail_server.emails.clear()
    return replace(
        config,
        server_listen="127.0.0.1:0",
        site_origins=(address,),
        mail_host="127.0.0.1",
        mail_port=mail_server.port,
        mail_security="none",
        mail_sender="Blog <comments@blog.example>",
        limits_enabled=False,
    )


@dataclass
class BlogSite:
    """The blog, the service, and the browser between them."""

    app: App
    mail_server: MailServer
    browser: Browser
    service: str
    address: str
    pages: blog.Pages
    stack: ExitStack
    expected: list[str] = field(default_factory=list)  # in the console
    console: list[str] = field(default_factory=list)

    def reader(self, lang: str = "en", faults: str = "", **how: Any) -> Page:
        """The empty page of a new browser, whose console may tell of these faults."""
        self.expected += [faults] if faults else []
        context = blog.new_context(self.browser, locale=lang, **how)
        self.stack.callback(context.close)
        return context.new_page()

    def open(self, path: str = POST, lang: str = "en", look: str = "essay", **how: Any) -> Page:
        """A new reader before the page."""
        return self.go(self.reader(lang, **how), path, lang, look)

    def go(self, page: Page, path: str = POST, lang: str = "en", look: str = "essay") -> Page:
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(f"{error}\n{error.stack}"))
        key = path.partition("?")[0]
        self.pages |= blog.article(self.service, key, lang=lang, look=look)
        with page.expect_response(lambda answer: "/comments?" in answer.url):
            page.goto(self.address + path)
        expect(page.locator(".wait")).to_have_count(0)
        return blog.painted(page)

    def answers(self, change: blog.Change) -> None:
        self.stack.enter_context(blog.answering(self.app, change))

    def code(self, page: Page) -> str:
        """The code of the last email that arrived, for the field that waits for it."""
        expect(code_field(page)).to_be_focused()
        self.app.deliver()
        return code_in(self.mail_server.emails[-1].content)


@pytest.fixture
def blog_site(
    app: App, browser: Browser, address: str, pages: blog.Pages, mail_server: MailServer
) -> Iterator[BlogSite]:
    with blog.service(app) as service, ExitStack() as stack:
        blog_site = BlogSite(app, mail_server, browser, service, address, pages, stack)
        yield blog_site
        stack.close()
        assert [s for s in blog_site.console if not any(e in s for e in blog_site.expected)] == []


def signed_in(
    blog_site: BlogSite, email: str = MAIL, path: str = POST, lang: str = "en", **how: Any
) -> Page:
    """A page of somebody who signed in some time ago."""
    found = sql(blog_site.app, "SELECT id, nickname, role FROM account WHERE email = ?", email)
    me = dict(zip(("id", "nickname", "role"), found[0], strict=True))
    me |= {"email": email, "token": inside.token_of(blog_site.app, email)}
    page = blog_site.reader(lang, **how)
    kept = [blog_site.address, f"{blog_site.service}/me", json.dumps(me)]
    page.add_init_script(REMEMBER % json.dumps(kept))
    return blog_site.go(page, path, lang)


def mouse(target: Locator, text: str | None = None) -> None:
    target.click()
    if text is not None:
        target.page.keyboard.press("Control+a")
        target.page.keyboard.insert_text(text)


def keyboard(target: Locator, text: str | None = None) -> None:
    reach(target)
    if text is None:
        target.page.keyboard.press("Enter")
    else:
        target.page.keyboard.press("Control+a")
        target.page.keyboard.insert_text(text)


def reach(target: Locator) -> None:
    """Tab, until it has the focus."""
    expect(target).to_be_visible()
    for _ in range(90):
        if target.evaluate("e => e.getRootNode().activeElement === e"):
            return
        target.page.keyboard.press("Tab")
    pytest.fail(f"Tab does not reach {target}")


@pytest.fixture(
    params=[keyboard, pytest.param(mouse, marks=pytest.mark.long)], ids=["keyboard", "mouse"]
)
def operate(request: pytest.FixtureRequest) -> Operate:
    """How a reader presses a control, or fills one in."""
    operate: Operate = request.param
    return operate


def in_any_language(key: str) -> re.Pattern[str]:
    """A word of the widget, in whichever language it speaks."""
    texts = sorted({re.escape(words[key]) for words in WORDS.values()})
    return re.compile(f"^({'|'.join(texts)})$".replace(r"\{n\}", ".+"))


def button(page: Page | Locator, name: str | re.Pattern[str]) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def textbox(page: Page | Locator, name: str) -> Locator:
    return page.get_by_role("textbox", name=name)


def main(page: Page) -> Locator:
    """The field at the top."""
    box = page.get_by_role("textbox", name=in_any_language("write"))
    return page.locator("section > form").and_(page.locator(".form")).locator(box)


def article(page: Page, text: str) -> Locator:
    """The comment with this text. The post of the blog is an article, too."""
    return page.locator("commentd-thread").get_by_role("article").filter(has_text=text)


def choices(place: Locator, operate: Operate = mouse) -> Locator:
    """The menu of a comment, which is opened."""
    blog.begin_to_read(place.page)
    operate(place.locator(".quiet").first)
    menu = place.page.get_by_role("dialog")
    expect(menu).to_be_visible()
    return menu


def choose(place: Locator, word: str, operate: Operate = mouse) -> None:
    operate(button(choices(place, operate), word))


def words_of(place: Locator) -> list[str]:
    """What the menu of a comment offers."""
    words = choices(place).get_by_role("button").all_text_contents()
    place.page.keyboard.press("Escape")
    return words


def write(page: Page, text: str = "First.", name: str = "Ann", operate: Operate = mouse) -> None:
    operate(main(page), text)
    operate(textbox(page, "Name"), name)


def post(page: Page, text: str = "First.", name: str = "Ann", operate: Operate = mouse) -> Locator:
    """The article of a comment that was posted."""
    write(page, text, name, operate)
    operate(button(page, "Post"))
    expect(main(page)).to_have_value("")
    expect(article(page, text)).to_be_focused()
    return article(page, text)


def open_account(page: Page, operate: Operate = mouse) -> Locator:
    """The panel in which one signs in."""
    operate(main(page), main(page).input_value())
    operate(button(page, "Sign in").first)
    panel = page.get_by_role("form", name="Sign in")
    expect(panel).to_be_visible()
    return panel


def code_field(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Code")


def sign_in(
    page: Page, operate: Operate = mouse, password: str = PASSWORD, email: str = MAIL
) -> None:
    """By the panel that is open, with a password."""
    panel = page.get_by_role("form", name="Sign in")
    expect(panel).to_be_visible()
    if instead := button(panel, "Use a password instead").all():
        operate(instead[0])
    operate(textbox(panel, "Email"), email)
    operate(panel.get_by_label("Password"), password)
    operate(button(panel, "Sign in"))


@pytest.fixture
def account(app: App) -> int:
    """The id of Ann's account."""
    return inside.add_account(app, MAIL, "Ann", hashlib.sha256(PASSWORD.encode()).hexdigest())


def end_logins(app: App) -> None:
    sql(app, "UPDATE account SET version = version + 1")


def owner_moderates(app: App, status: str, *ids: int) -> None:
    """What the owner decides."""
    owner = TestApp(app, {"REMOTE_ADDR": "192.0.2.1"})
    owner.authorization = ("Bearer", blog.owner_token(app))
    for each in ids:
        owner.post_json(f"/comments/{each}/moderate", {"status": status})


def comments(app: App) -> list[tuple[str, str]]:
    """Who wrote what, in order."""
    return sql(app, "SELECT nickname, content FROM comment WHERE status <> 'deleted' ORDER BY id")


@contextmanager
def requests_held(page: Page, url: str | re.Pattern[str]) -> Iterator[list[Route]]:
    """Requests there wait until the block ends, then they go on."""
    waiting: list[Route] = []
    page.route(url, lambda route: waiting.append(route))
    yield waiting
    for route in waiting:
        route.continue_()
    page.unroute(url)


def requests_of(page: Page, path: str) -> list[Request]:
    """The requests from now on whose path ends so; preflights left out."""
    seen: list[Request] = []

    def note(request: Request) -> None:
        if urlsplit(request.url).path.endswith(path) and request.method != "OPTIONS":
            seen.append(request)

    page.on("request", note)
    return seen


def refuse(page: Page, path: str, code: str, status: int = 503) -> None:
    """What is written there from now on is refused."""
    headers = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}
    answer = {"error": "不行", "code": code}

    def fulfil(route: Route) -> None:
        route.fulfill(headers={**headers, "Retry-After": "40"}, status=status, json=answer)

    page.route(f"**{path}", fulfil)


def settings_say(**values: Any) -> blog.Change:
    def change(environ: Any, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] == "/comments" and environ["REQUEST_METHOD"] == "GET":
            body = blog.changed_json(body, settings=json.loads(body)["settings"] | values)
        return status, headers, body

    return change


def assert_told(page: Page, field: Locator | None, words: str) -> None:
    """The words stand beside the field, which has the focus; all go when it is typed into."""
    alert = page.locator(".error")
    expect(alert).to_have_text(re.compile(words))
    expect(alert).to_be_visible()
    if field is None:
        return
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile(words))
    beside = field.evaluate(
        """e => {
          const below = e.getRootNode().querySelector('.error').getBoundingClientRect().top
          const bar = e.name === 'content' && e.nextSibling // hangs at the field
          return below - (bar || e).getBoundingClientRect().bottom
        }"""
    )
    assert 0 <= beside < 16
    page.keyboard.press("x")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    expect(alert).to_have_count(0)
