"""The widget on a page of a blog, for those who read."""

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, expect

from commentd import App
from support.blog import (
    POST,
    Json,
    Pages,
    answering,
    blog,
    changed_json,
    new_context,
    painted,
    say,
    service,
)
from support.world import FakeWorld

TAG = '<script src="SERVICE/embed.js" async></script>'


@pytest.fixture
def fake_world() -> FakeWorld:
    """The clock of the service stands still at the hour of the browser's."""
    made = FakeWorld()
    made.time = int(time.time())
    return made


SETTINGS = {"server_listen": "127.0.0.1:0", "limits_enabled": False}


@pytest.fixture
def settings() -> dict[str, Any]:
    return SETTINGS


def service_with(**values: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("settings", [SETTINGS | values], ids=[""])


@dataclass
class Site:
    """A blog whose pages a test writes, and the service of their comments."""

    pages: Pages
    address: str
    service: str

    def write(self, body: str, path: str = POST, *, head: str = "", lang: str = "zh-CN") -> None:
        self.pages[path] = ({}, self.html(body, head=head, lang=lang))

    def html(self, body: str, *, head: str = "", lang: str = "zh-CN") -> str:
        return f"""<!doctype html><html lang="{lang}"><meta charset="utf-8"><title>A post</title>
            <link rel="icon" href="data:,">{head}<body>{body}""".replace("SERVICE", self.service)


@pytest.fixture
def site(app: App) -> Iterator[Site]:
    pages: Pages = {}
    with service(app) as address, blog(pages) as home:
        yield Site(pages, home, address)


@pytest.fixture
def options() -> dict[str, Any]:
    """The browser's; a test that wants others parametrizes this."""
    return {"locale": "zh-CN"}


@pytest.fixture
def faults() -> list[str]:
    """What the console and the page complained about. A test that expects some clears it."""
    return []


@pytest.fixture
def asked() -> list[str]:
    """Methods and URLs of all requests."""
    return []


@pytest.fixture
def page(
    site: Site, browser: Browser, options: dict[str, Any], faults: list[str], asked: list[str]
) -> Iterator[Page]:
    """It goes before the site does, so that what it asks for at the end finds somebody."""
    context = new_context(browser, **options)
    page = context.new_page()
    page.on("console", lambda m: faults.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: faults.append(f"{error.name}: {error}"))

    def dismiss(dialog: Dialog) -> None:
        faults.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
    yield page
    context.close()
    assert faults == []


@dataclass
class View:
    """Opens a page of the blog with this body, in which something is to be seen at once."""

    app: App
    page: Page
    site: Site
    asked: list[str]
    faults: list[str]

    def __call__(self, body: str = TAG, path: str = POST, *, at: str = "", **more: str) -> Page:
        self.site.write(body, path, **more)
        if "#" in at:
            self.page.goto("about:blank")  # else the browser may stay on the page and only jump
        self.page.goto(self.site.address + path + at)
        return painted(self.page)


@pytest.fixture
def view(app: App, page: Page, site: Site, asked: list[str], faults: list[str]) -> View:
    return View(app, page, site, asked, faults)


def lists(asked: list[str]) -> list[dict[str, str]]:
    """What was asked for of each list of comments."""
    targets = [urlsplit(line.split()[1]) for line in asked if line.startswith("GET ")]
    queries = [parse_qs(t.query, keep_blank_values=True) for t in targets if t.path == "/comments"]
    return [{name: values[0] for name, values in query.items()} for query in queries]


def comment(page: Page, text: str) -> Locator:
    """The article whose own text holds this."""
    return page.locator("commentd-thread article").filter(has_text=text)


def button(page: Page | Locator, name: str, **how: Any) -> Locator:
    return page.get_by_role("button", name=name, **how)


def texts(page: Page, thread: str = "commentd-thread") -> list[str]:
    bodies = page.locator(thread).locator("article .body")
    # Far from the window, innerText is empty.
    return [text.strip() for text in bodies.all_text_contents()]


def settled(page: Page) -> None:
    """All that was asked for is there."""
    page.wait_for_load_state("networkidle")


def idle(page: Page) -> None:
    """What the page was about to ask for at once has been asked."""
    page.evaluate("() => new Promise(go => requestAnimationFrame(() => setTimeout(go)))")


def fill(app: App, number: int, path: str = POST, **fields: Any) -> list[int]:
    """Comments that say "No. 1" and so on, the first the oldest; their ids."""
    return [
        say(app, f"No. {n}.", f"Guest {n}", page=path, hours=1000 - n, **fields)
        for n in range(1, number + 1)
    ]


def nested(app: App, number: int) -> list[int]:
    """Comments by A, B, C…, each a reply to the one before it; their ids."""
    ids: list[int] = []
    for n in range(number):
        parent = ids[-1] if ids else None
        ids.append(say(app, f"Depth {n}.", "ABCDEFGH"[n], hours=100 - n, parent_id=parent))
    return ids


def jump(page: Page, number: int) -> None:
    """As a link on the page to a comment does."""
    page.evaluate("number => { location.hash = '#comment-' + number }", number)


def expect_target(page: Page, text: str) -> None:
    """The link in the address bar led to the comment with this text."""
    target = page.locator("[data-target]")
    expect(target).to_contain_text(text)
    expect(target).to_be_in_viewport()
    expect(target).to_be_focused()


def expect_only(faults: list[str], pattern: str) -> None:
    """Of what the browser complained about, only this was expected."""
    assert [fault for fault in faults if not re.search(pattern, fault)] == []
    faults.clear()


@contextmanager
def altering(
    app: App, change: Callable[[list[Json]], None], path: str = "/comments"
) -> Iterator[None]:
    """Lets `change` alter the comments in each response of the service to this path."""

    def altered(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] == path:
            comments = json.loads(body)["comments"]
            change(comments)
            body = changed_json(body, comments=comments)
        return status, headers, body

    with answering(app, altered):
        yield


def write_comment(page: Page, text: str, name: str = "林深") -> None:
    page.get_by_label("写下你的想法…").fill(text)
    page.get_by_label("昵称").fill(name)
    button(page, "发表评论").click()


def counted(asked: list[str]) -> list[list[str]]:
    """The pages in each request for counts."""
    lines = [line for line in asked if "/pages?" in line]
    for line in lines:
        assert "?&" not in line
        target = urlsplit(line.split()[1])
        assert len(f"GET {target.path}?{target.query} HTTP/1.1") < 8192
    return [parse_qs(urlsplit(line).query, keep_blank_values=True)["url"] for line in lines]


WEBSITE = "https://blog.example/?\"'><img src=x onerror=hit=1>"

NAMES = [
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "&lt;b&gt;&amp;quot;",
    "{n} $& $1",
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "'\"`><svg onload=alert(1)>",
]

TEXTS = [
    "<script>hit = 1</script><img src=x onerror=hit=1><svg/onload=hit=1>",
    "[a](javascript:hit=1) [b](JaVaScRiPt:hit=1) <javascript:hit=1> [c](data:text/html,hit)",
    "![picture](https://evil.example/pixel.png) [d](//evil.example) [e](vbscript:hit)",
    "</article></section><style>*{display:none}</style><iframe src=//evil.example></iframe>",
    "\u202eright to left \u2066isolated, never ended \u202d",
    "`<img src=x onerror=hit=1>`\n\n    <img src=x onerror=hit=1>\n\n> <b onclick=hit=1>b</b>",
]

POLICY = "default-src 'none'; script-src SERVICE; connect-src SERVICE; style-src 'none'"

CLOBBERED = "".join(
    f"<form name={name}></form><a id={name}></a>"
    for name in (
        "body",
        "head",
        "title",
        "readyState",
        "documentElement",
        "activeElement",
        "forms",
        "cookie",
        "hidden",
        "defaultView",
        "SERVICE",
        "WORDS",
        "Thread",
        "h",
        "ask",
        "start",
        "localStorage",
        "fetch",
        "location",
        "customElements",
        "error",
        "content",
        "comment-1",
    )
)

TYPES = "; require-trusted-types-for 'script'; trusted-types 'none'"

BLOCKED = """for (const name of ['localStorage', 'sessionStorage', 'indexedDB', 'caches']) {
    Object.defineProperty(window, name, {get() { throw new DOMException(name, 'SecurityError') }})
}"""
