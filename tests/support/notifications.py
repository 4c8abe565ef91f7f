"""Readers who get emails and open the links in them."""

import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from email.message import EmailMessage
from functools import cache, partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from commentd import App, Config, make_app
from support import inside
from support.client import CANARY, Visitor
from support.database import assert_whole, dump
from support.languages import LANGUAGES
from support.mail import outbox
from support.words import EMAILS
from support.world import FakeWorld, read
from support.world import text_of as text_of

MINUTE, HOUR, DAY = 60, 3600, 86400
BLOG, SERVICE = "https://blog.example", "https://comments.example"
OWNER, CO_OWNER, ANN, LU = "owner@blog.example", "co@blog.example", "ann@example.com", "lu@e.cn"
USUAL: dict[str, Any] = {"server_public_url": SERVICE, "site_origins": (BLOG,)}

USUAL["limits_enabled"] = False

NAMED = {**USUAL, "notify_owner": (OWNER,)}
TO_NOBODY = {**USUAL, "notify_owner": ("nobody",)}
BUNDLED = 10 * MINUTE

# By the names of languages in emails.
EMAIL_TEXTS = {{"zh-CN": "zh"}.get(tag, tag.lower()): texts for tag, texts in EMAILS.items()}

BILINGUAL = LANGUAGES["zh-CN"]["emails_with_english"]  # where the language is unknown

named = pytest.mark.parametrize("settings", [NAMED])


# What may stand in what, each with its attributes, so that nobody's words can be more than text.
MARKUP = {
    "html": {"head": "", "body": ""},
    "head": {"meta": "charset name content", "title": "", "link": "rel href"},
    "body": {"main": "class"},
    "main": {"h1": "", "p": "", "pre": "dir", "form": "method action", "nav": ""},
    "p": {"bdi": ""},
    "form": {"button": "class"},
    "nav": {"a": "href"},
}


class LinkPage(HTMLParser):
    """What the page of a link shows; there is none with any markup that is not ours."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open_elements: list[str] = []
        self.attributes: dict[str, dict[str, str]] = {}
        self.texts: dict[str, str] = defaultdict(str)
        self.feed(markup)
        self.close()
        assert self.open_elements == []
        self.title, self.text, self.button = (self.texts[tag] for tag in ("h1", "pre", "button"))
        # Each name is kept apart from the line that it stands in, which it could else turn.
        self.who = self.texts["p"]
        self.lang = self.attributes["html"]["lang"]
        self.action = self.attributes.get("form", {}).get("action", "")
        assert self.texts["title"] == self.title
        assert self.attributes["html"]["dir"] in ("ltr", "rtl")
        assert self.attributes.get("pre", {"dir": "auto"}) == {"dir": "auto"}
        assert self.attributes.get("form", {"method": "post"})["method"] == "post"
        assert re.fullmatch(r"(\?[^<>]*)?", self.action)
        self.style = self.attributes.get("button", {}).get("class", "")
        self.next = self.texts["a"], self.attributes.get("a", {}).get("href", "")
        assert re.fullmatch("(admin|https://blog\\.example/.*)?", self.next[1])

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if self.open_elements:
            inside = MARKUP.get(self.open_elements[-1], {})
            assert tag in inside, self.rawdata
            assert {name for name, _ in attributes} <= {*inside[tag].split()}, self.rawdata
        if tag in ("meta", "link"):
            return
        assert tag == "bdi" or tag not in self.attributes, f"a second {tag}: {self.rawdata}"
        self.attributes[tag] = {name: value or "" for name, value in attributes}
        self.open_elements.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open_elements.pop(), self.rawdata

    def handle_data(self, data: str) -> None:
        place = "p" if "p" in self.open_elements else (self.open_elements or [""])[-1]
        if place in ("", *MARKUP) and place != "p":
            assert data.isspace(), self.rawdata
        self.texts[place] += data

    @property
    def contents(self) -> tuple[str, str, str, str]:
        return self.title, self.who, self.text, self.button


@cache
def link_page(markup: str) -> LinkPage:
    """Refusals are the same page again and again."""
    return LinkPage(markup)


class Reader(Visitor):
    """A visitor who opens links, too."""

    def check_response(self, path: str, method: str, response: Any, status: int, text: str) -> None:
        if path != "/mail" or response.content_type != "text/html":
            super().check_response(path, method, response, status, text)
            return
        assert status in (200, 403, 404, 409)
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        policy = response.headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "form-action 'self'"} <= {*policy}
        assert {"frame-ancestors 'none'", "base-uri 'none'"} <= {*policy}
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert not [word for word in (CANARY, OWNER, ANN, LU) if word in text]
        if method != "HEAD":
            link_page(text)

    def comment(self, content: str = "hi", **fields: Any) -> int:
        """The number of a comment that was just written."""
        number: int = self.say(content, **{"lang": "en", **fields})["comment"]["id"]
        return number

    def open(self, link: str, status: int = 200) -> LinkPage:
        return link_page(self.get(path_of(link), status=status).text)

    def press(self, link: str, status: int = 200, **how: Any) -> LinkPage:
        return link_page(self.post(path_of(link), status=status, **how).text)


class PlainReader(Reader):
    """One of many at once, who can't compare the database before and after."""

    def do_request(self, req: Any, *args: Any, **kw: Any) -> Any:
        return super(Visitor, self).do_request(req, *args, **kw)


class Guest(Reader):
    """A guest, who also sees which emails go out."""

    def __init__(self, app: App, fake_world: FakeWorld) -> None:
        super().__init__(app)
        self.fake_world = fake_world

    def deliver(self) -> float:
        return self.served.deliver()

    def later(self, seconds: int = BUNDLED, times: int = 1) -> None:
        for _ in range(times):
            self.fake_world.time += seconds
            self.deliver()

    def fail_mail(self, fails: bool = True) -> None:
        self.fake_world.mail_fails_with = ConnectionRefusedError() if fails else None

    def forget(self) -> None:
        """The emails until now."""
        self.fake_world.emails.clear()

    def arrived(self, to: str | None = None) -> list[EmailMessage]:
        """The emails that went out, to someone."""
        return [read(x.message) for x in self.fake_world.emails if to in (None, x.recipient)]

    def texts(self, to: str | None = None) -> list[str]:
        return [text_of(message) for message in self.arrived(to)]

    def quotes(self, to: str | None = None) -> list[list[str]]:
        """What each email quotes."""
        return [re.findall("^> (.*)", text, re.M) for text in self.texts(to)]

    def recipients(self) -> list[str]:
        return [each.recipient for each in self.fake_world.emails]

    def outbox(self) -> list[dict[str, Any]]:
        return outbox(self.served)

    def sql(self, statement: str, *values: Any) -> list[Any]:
        return inside.sql(self.served, statement, *values)

    def status_of(self, number: int) -> str:
        return str(self.sql("SELECT status FROM comment WHERE id = ?", number)[0][0])

    def rows(self) -> dict[str, Any]:
        return dump(inside.database_path(self.served))

    def newcomer(self, email: str, nickname: str) -> Reader:
        """One more reader with an account."""
        reader = Reader(self.served)
        self.deliver()  # so that the next email is the one with the code
        reader.register(email, nickname=nickname)
        self.deliver()
        reader.verify(self.fake_world.code(), email)
        self.forget()
        return signed_in(self.served, email)


def path_of(link: str) -> str:
    """Without scheme and host; `?…`, the action of a form, is a link too."""
    assert link.startswith(("?", "/mail?", f"{SERVICE}/mail?"))
    return f"/mail?{urlsplit(link).query}"


@pytest.fixture
def visitor(app: App) -> Reader:
    return Reader(app)


@pytest.fixture
def guest(app: App, fake_world: FakeWorld) -> Guest:
    return Guest(app, fake_world)


@pytest.fixture
def owner(app: App) -> Reader:
    """The owner, signed in on the admin page."""
    return claim(app, OWNER, "Owner")


@pytest.fixture
def ann(guest: Guest) -> Reader:
    """A reader with an account."""
    return guest.newcomer(ANN, "Ann")


def claim(app: App, email: str, nickname: str) -> Reader:
    admin = Reader(app)
    body = {"link": inside.admin_link(app, email), "nickname": nickname, "password": CANARY}
    admin.authorization = ("Bearer", admin.post_json("/admin/claim", body).json["token"])
    return admin


def signed_in(app: App, email: str) -> Reader:
    """Someone with an account, on the blog."""
    reader = Reader(app)
    reader.sign_in(email)
    return reader


StartApp = Callable[..., AbstractContextManager[Guest]]


@contextmanager
def started(
    config: Config, fake_world: FakeWorld, empty_database: Path, **settings: Any
) -> Iterator[Guest]:
    """The service with these settings. It begins with a copy of the empty database, unless it was
    there before."""
    changed = replace(config, **{**USUAL, **settings})
    if not Path(changed.database_path).exists():
        shutil.copy(empty_database, changed.database_path)
    with closing(make_app(changed, fake_world.world, rounds=1)) as app:
        yield Guest(app, fake_world)
    assert_whole(changed.database_path)


@pytest.fixture
def start_app(config: Config, fake_world: FakeWorld, empty_database: Path) -> StartApp:
    """Starts the service with these settings; it may be started again."""
    return partial(started, config, fake_world, empty_database)


def links_in(text: str) -> list[str]:
    return re.findall(r"https://comments\.example/mail\?\S+", text)


def words_of(link: str) -> dict[str, str]:
    pairs = parse_qsl(urlsplit(link).query, keep_blank_values=True, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def link_to(do: str, text: str) -> str:
    """The first link of an email that does this."""
    return next(link for link in links_in(text) if words_of(link)["do"] == do)
