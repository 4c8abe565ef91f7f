"""Emails about comments: who is told of what and when, the pages that their links lead to, and how
they end. `test_mail.py` has their way to the mail server, `test_me.py` followers and reports."""

import base64
import contextlib
import json
import re
import secrets
import shutil
import sqlite3
import string
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import blog
import inside
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import CANARY, PAGE, START, Outside, Visitor, assert_whole, dump
from test_mail import HEADERS, outbox, read

import commentd
from commentd import App, Config, make_app

MINUTE, HOUR, DAY = 60, 3600, 86400
BLOG, SERVICE = "https://blog.example", "https://comments.example"
OWNER, CO_OWNER, ANN, LU = "owner@blog.example", "co@blog.example", "ann@example.com", "lu@e.cn"
USUAL: dict[str, Any] = {
    "server_public_url": SERVICE,
    "site_origins": (BLOG,),
    "limits_enabled": False,
}
NAMED = {**USUAL, "notify_owner": (OWNER,)}
HELD = {**NAMED, "moderation_hold": "all"}
TO_NOBODY = {**USUAL, "notify_owner": ("nobody",)}
BUNDLED = 10 * MINUTE
STATUSES = ("visible", "spam", "deleted")
KINDS = (*STATUSES, "waiting", "confirm", "stop", "stop_all", "start", "start_all")
ANSWER_HEADERS = ["In-Reply-To", "References", "List-Unsubscribe", "List-Unsubscribe-Post"]

LETTERS = json.loads(
    Path(commentd.__file__).with_name("static").joinpath("letters.json").read_text()
)

named = pytest.mark.parametrize("settings", [NAMED])
held = pytest.mark.parametrize("settings", [HELD])
to_nobody = pytest.mark.parametrize("settings", [TO_NOBODY])


@pytest.fixture
def settings() -> dict[str, Any]:
    return USUAL


# The page of a link, and a reader who opens it

OURS = {
    "html": {"lang": "en|zh|de", "dir": "ltr"},
    "head": {},
    "meta": {"charset": ".*", "name": ".*", "content": ".*"},
    "title": {},
    "link": {"rel": "icon|stylesheet", "href": "data:,|home.css"},
    "body": {},
    "main": {"class": "link"},
    "h1": {},
    "p": {},
    "nav": {},
    "a": {"href": r"admin|https://blog\.example/.*"},
    "bdi": {},
    "pre": {"dir": "auto"},
    "form": {"method": "post", "action": r"\?[^\"]*"},
    "button": {"class": "quiet"},
}


class Shown(HTMLParser):
    """What the page of a link shows; raises for any markup that is not ours."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.seen: list[str] = []
        self.texts: dict[str, str] = {}
        self.action = ""
        self.feed(markup)
        self.close()
        assert self.opened == []
        shape = ["html", "head", "meta", "meta", "meta", "meta", "title", "link", "link"]
        assert self.seen[:12] == [*shape, "body", "main", "h1"]
        assert max(map(self.seen.count, ("form", "button", "pre", "h1"))) <= 1
        assert self.texts["title"] == self.texts["h1"]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in OURS, tag
        assert len(dict(attrs)) == len(attrs)
        for name, value in attrs:
            assert re.fullmatch(OURS[tag][name], value or ""), (tag, name, value)
        self.seen.append(tag)
        self.action = dict(attrs).get("action") or self.action
        if tag not in ("meta", "link"):
            self.opened.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in {*self.opened}:
            self.texts[tag] = self.texts.get(tag, "") + data

    def handle_decl(self, decl: str) -> None:
        assert (decl.lower(), self.seen) == ("doctype html", [])

    def refuse(self, data: str) -> None:
        raise AssertionError(data)

    handle_comment = handle_pi = unknown_decl = refuse

    @property
    def told(self) -> tuple[str, str, str, str]:
        """Title, who and where, text, button."""
        title, who, text, button = map(self.texts.get, ("h1", "p", "pre", "button"))
        return title or "", who or "", text or "", button or ""


class Reader(Visitor):
    """A visitor who opens links, too."""

    def judge(self, path: str, method: str, response: Any, status: int, text: str) -> None:
        if path != "/mail" or response.content_type != "text/html":
            super().judge(path, method, response, status, text)
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
            Shown(text)

    def open(self, link: str, status: int = 200) -> Shown:
        return Shown(self.get(path_of(link), status=status).text)

    def press(self, link: str, status: int = 200) -> Shown:
        return Shown(self.post(path_of(link), status=status).text)


class Here(Reader):
    """A guest, who also sees which emails go out."""

    outside: Outside

    def said(self, content: str = "hi", **fields: Any) -> int:
        return said(self, content, **fields)

    def deliver(self) -> float:
        return self.served.deliver()

    def tick(self) -> None:
        self.served.tick()

    def later(self, seconds: int = BUNDLED) -> None:
        later(self.served, self.outside, seconds)

    def wait_for_an_email(self) -> None:
        """Delivers as often as the service asks for it."""
        before = len(self.outside.letters)
        while wait := self.deliver() * (len(self.outside.letters) == before):
            assert wait <= MINUTE
            self.outside.time += wait

    def pages_told(self) -> list[str]:
        """On which of two pages Ann is told of replies now."""
        found = []
        for parent, page in ((1, "/one/"), (2, "/two/")):
            self.outside.letters.clear()
            self.said(f"again {self.outside.time}", parent_id=parent, page_url=page)
            self.later()
            found += [page] * bool(self.arrived(ANN))
        return found

    def arrived(self, to: str | None = None) -> list[EmailMessage]:
        return arrived(self.outside, to)

    def texts(self, to: str | None = None) -> list[str]:
        return texts(self.outside, to)

    def told(self, to: str | None = None) -> list[list[str]]:
        """What each email quotes."""
        return [quotes(text) for text in self.texts(to)]

    def recipients(self) -> list[str]:
        return [each.recipient for each in self.outside.letters]

    def outbox(self) -> list[dict[str, Any]]:
        return outbox(self.served)

    def sql(self, statement: str, *values: Any) -> list[Any]:
        return inside.sql(self.served, statement, *values)

    def status_of(self, number: int) -> str:
        return str(self.sql("SELECT status FROM comment WHERE id = ?", number)[0][0])

    def rows(self) -> dict[str, Any]:
        return dump(inside.database_path(self.served))


class PlainReader(Reader):
    """One of many at once, who can't compare the database before and after."""

    def do_request(self, req: Any, *args: Any, **kw: Any) -> Any:
        return super(Visitor, self).do_request(req, *args, **kw)


def path_of(link: str) -> str:
    """Without scheme and host; `?…`, the action of a form, is a link too."""
    url = urlsplit(link)
    assert link.startswith(("?", "/mail?", f"{SERVICE}/mail?"))
    return f"/mail?{url.query}"


@pytest.fixture
def visitor(app: App) -> Reader:
    return Reader(app)


@pytest.fixture
def here(app: App, outside: Outside) -> Here:
    guest = Here(app)
    guest.outside = outside
    return guest


@pytest.fixture
def owner(app: App, visitor: Reader, outside: Outside) -> Reader:
    """The owner, signed in on the admin page."""
    return claim(app, OWNER, "Owner")


def claim(app: App, email: str, nickname: str) -> Reader:
    admin = Reader(app)
    body = {"link": inside.admin_link(app, email), "nickname": nickname, "password": CANARY}
    admin.authorization = ("Bearer", admin.post_json("/admin/claim", body).json["token"])
    return admin


def signed_in(app: App, email: str) -> Reader:
    """Someone with an account, on the blog."""
    reader = Reader(app)
    reader.authorization = ("Bearer", reader.login(email)["token"])
    return reader


@pytest.fixture
def ann(app: App, outside: Outside) -> Reader:
    """A reader with an account."""
    reader = Reader(app)
    reader.register(ANN)
    app.deliver()
    reader.verify(outside.code(), ANN)
    outside.letters.clear()
    return signed_in(app, ANN)


Start = Callable[..., AbstractContextManager[App]]


@pytest.fixture
def start(config: Config, outside: Outside, empty_database: Path) -> Start:
    """Starts the service with these settings; it may be started again."""

    @contextmanager
    def started(**settings: Any) -> Iterator[App]:
        changed = replace(config, **{**USUAL, **settings})
        if not Path(changed.database_path).exists():
            shutil.copy(empty_database, changed.database_path)
        with closing(make_app(changed, outside.world, rounds=1)) as app:
            yield app
        assert_whole(changed.database_path)

    return started


def said(visitor: Visitor, content: str = "hi", **fields: Any) -> int:
    """The number of a comment that was just written."""
    number: int = visitor.say(content, **{"lang": "en", **fields})["comment"]["id"]
    return number


def moderate(owner: Visitor, number: int, status: str) -> None:
    owner.post_json("/admin/comments", {"ids": [number], "status": status})


def links_in(text: str) -> list[str]:
    return re.findall(r"https://comments\.example/mail\?\S+", text)


def words_of(link: str) -> dict[str, str]:
    pairs = parse_qsl(urlsplit(link).query, keep_blank_values=True, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def link_to(do: str, text: str) -> str:
    """The first link of an email that does this."""
    return next(link for link in links_in(text) if words_of(link)["do"] == do)


def arrived(outside: Outside, to: str | None = None) -> list[EmailMessage]:
    """The emails that went out, to someone."""
    return [read(x.message) for x in outside.letters if to in (None, x.recipient)]


def texts(outside: Outside, to: str | None = None) -> list[str]:
    return [content(message) for message in arrived(outside, to)]


def content(message: EmailMessage) -> str:
    text: str = message.get_content()
    return text.replace("\r\n", "\n")


def quotes(text: str) -> list[str]:
    return re.findall("^> (.*)", text, re.M)


def head_of(here: "Here") -> list[str]:
    """The lines of the head of the first email, as it is sent."""
    head = here.outside.letters[0].message.partition("\r\n\r\n")[0]
    return head.replace("\r\n ", " ").split("\r\n")


def later(app: App, outside: Outside, seconds: int = BUNDLED) -> None:
    outside.time += seconds
    app.deliver()


# To the owner


@held
def test_the_owner_moderates_by_the_links_of_an_email(here: Here) -> None:
    here.said("Two lines\n\n> of which\n> one is quoted", nickname="Lu")
    here.deliver()
    (message,) = here.arrived()
    assert here.recipients() == [OWNER]
    assert sorted(message.keys()) == sorted(HEADERS)
    assert message["Subject"] == f"blog.example: new comment on {PAGE}"
    text = content(message)
    links = links_in(text)
    assert [words_of(link)["do"] for link in links] == ["visible", "spam", "deleted"]
    approve, spam, delete = links
    assert text == (
        f"New comment on “{PAGE}” by “Lu”:\n\n"
        "> Two lines\n> \n> > of which\n> > one is quoted\n\n"
        "It waits for your approval: all comments do.\n\n"
        f"Approve: {approve}\nSpam:    {spam}\nDelete:  {delete}\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n\n"
        f"All comments: {SERVICE}/admin\n"
    )
    quote = "Two lines\n\n> of which\n> one is quoted"
    who = f"Lu · {PAGE}"
    assert here.open(approve).told == ("Approve this comment?", who, quote, "Approve")
    assert here.listing()["total"] == 0
    done = here.press(approve)
    assert done.told == ("Approved: everybody can read it.", who, quote, "Undo")
    assert [c["content"] for c in here.listing()["comments"]] == [quote]
    undone = here.press(done.action)
    assert undone.told == ("It waits, and nobody sees it.", who, quote, "Undo")
    assert here.listing()["total"] == 0
    assert here.press(undone.action).told[0] == "Approved: everybody can read it."
    assert here.press(spam).told[0] == "It is kept as spam, and nobody sees it."
    assert here.press(delete).told[0] == "Deleted: nobody sees it."
    assert here.status_of(1) == "deleted"


TOLD = [
    (
        "en",
        "",
        f"New comment on “{PAGE}” by “Lu”:\n\n> x\n\n"
        "Hide as spam: {spam}\nDelete:       {deleted}\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n\nAll comments: {SERVICE}/admin\n",
    ),
    (
        "zh",
        "",
        f"“Lu”在“{PAGE}”发表了评论：\n\n> x\n\n标为垃圾：{{spam}}\n删除：{{deleted}}\n\n"
        f"查看并回复：{BLOG}{PAGE}#comment-2\n\n所有评论：{SERVICE}/admin\n",
    ),
    (
        "zh",
        "https://casino.example/",
        f"“Lu”在“{PAGE}”发表了评论：\n\n> x\n> \n> https://casino.example/\n\n"
        f"这条评论等待审核（原因：{LETTERS['zh']['held_links']}）。\n\n"
        "通过：{visible}\n标为垃圾：{spam}\n删除：{deleted}\n\n"
        f"查看并回复：{BLOG}{PAGE}#comment-3\n\n所有评论：{SERVICE}/admin\n",
    ),
]


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "links"}])
def test_the_owner_is_told_at_once_and_why_a_comment_waits(here: Here) -> None:
    for number, (lang, website, text) in enumerate(TOLD):
        here.said("x", nickname="Lu", lang=lang, website=website)
        here.deliver()
        assert len(here.outside.letters) == number + 1
        found = here.texts(OWNER)[-1]
        assert found == text.format(**{words_of(link)["do"]: link for link in links_in(found)})
        here.outside.time += BUNDLED
    assert "casino.example" in here.get(path_of(link_to("visible", found))).text


@named
def test_an_email_speaks_as_the_widget_did_else_as_the_comment_does(here: Here) -> None:
    for lang, content, chinese in [
        ("zh", "Hello", True),
        ("en", "你好", False),
        ("xx", "Bonjour", False),
        (None, "你好", True),
        ("zh-CN", "Hello", True),
        ("en-GB", "你好", False),
        ("", "你好", True),
    ]:
        here.say(content, lang=lang)
        here.later()
        text = here.texts(OWNER)[-1]
        assert ("发表了评论" in text, "New comment" in text) == (chinese, not chinese), lang
        shown = here.get(path_of(link_to("spam", text))).text
        assert ('<html lang="zh" dir="ltr">' in shown) == chinese, lang
    for wrong in (["zh"], {}, 5, False):
        assert here.say("hi", lang=wrong, status=400)["code"] == "lang_invalid"


@pytest.mark.parametrize("settings", [{**NAMED, "notify_language": "zh"}])
def test_the_owner_reads_emails_in_their_language_and_readers_in_theirs(
    here: Here, ann: Reader
) -> None:
    first = said(ann, "A question", lang="en")
    here.said("An answer", lang="en", parent_id=first)
    here.deliver()
    owners, readers = here.texts(OWNER)[0], here.texts(ANN)[0]
    assert ("发表了评论" in owners, "replied to you" in readers) == (True, True)
    assert {words_of(link)["lang"] for link in links_in(owners)} == {"zh"}
    assert {words_of(link)["lang"] for link in links_in(readers)} == {"en"}


@named
def test_what_comes_soon_after_is_bundled_within_ten_minutes(here: Here) -> None:
    here.said("one")
    here.deliver()
    assert len(here.outside.letters) == 1
    here.outside.time += 1
    here.said("two")
    here.said("three", lang="zh", page_url="/other/")
    here.wait_for_an_email()
    assert START + 5 * MINUTE < here.outside.time <= START + BUNDLED
    message = here.arrived()[1]
    assert message["Subject"] == "blog.example: 2 new comments"
    text = content(message)
    assert [words_of(link)["id"] for link in links_in(text)] == ["2", "2", "3", "3"]
    assert quotes(text) == ["two", "three"]
    assert text.count(f"{SERVICE}/admin") == 1
    here.later(DAY)
    assert len(here.outside.letters) == 2
    here.said("after a quiet time")
    here.deliver()
    assert len(here.outside.letters) == 3
    here.outside.time -= 30 * DAY
    here.said("after the clock was set back")
    here.deliver()
    here.tick()
    here.deliver()
    assert len(here.outside.letters) == 4


@pytest.mark.slow
def test_more_comments_than_an_email_takes_are_all_told_of(here: Here, owner: Reader) -> None:
    visitor = PlainReader(here.served)
    said(visitor)
    here.deliver()
    for number in range(229):
        said(visitor, str(number))
    for _ in range(4):
        here.later()
    links = [len(links_in(text)) // 2 for text in here.texts()]
    more = [int(n) for text in here.texts() for n in re.findall("And ([0-9]+) more", text)]
    assert (links, more) == ([1, 20, 20], [180, 9])


def test_each_admin_has_an_email_of_their_own_and_none_of_their_own_comments(
    here: Here, owner: Reader
) -> None:
    claim(here.served, CO_OWNER, "Second")
    first = here.said("from a guest")
    here.deliver()
    assert sorted(here.recipients()) == [CO_OWNER, OWNER]
    assert len({message["Message-ID"] for message in here.arrived()}) == 2
    assert len({str(links_in(text)) for text in here.texts()}) == 2
    here.outside.letters.clear()
    owner.post_json("/admin/reply", {"parent_id": first, "content": "by Owner"})
    said(signed_in(here.served, CO_OWNER), "by Second", nickname="Second")
    here.later()
    assert here.told(OWNER) == [["by Second"]]
    assert here.told(CO_OWNER) == [["by Owner"]]


@pytest.mark.every_case
@pytest.mark.parametrize(
    ("settings", "whom"),
    [
        (USUAL, [OWNER]),
        ({**USUAL, "notify_owner": (CO_OWNER, LU)}, [CO_OWNER, LU]),
        (TO_NOBODY, []),
    ],
)
def test_whom_the_settings_name_is_told(here: Here, whom: list[str]) -> None:
    here.said("before there was an admin")
    here.deliver()
    claim(here.served, OWNER, "Owner")
    here.outside.letters.clear()
    here.later()
    assert here.outside.letters == []
    here.said()
    here.later()
    assert here.recipients() == whom
    assert here.outbox() == []


def test_an_address_that_a_guest_types_hides_nothing_from_its_owner(
    here: Here, owner: Reader, ann: Reader
) -> None:
    said(signed_in(here.served, OWNER), "nor does what the owner wrote", nickname="Owner")
    here.deliver()
    assert here.outside.letters == []
    here.said("Buy now", email=OWNER)
    first = said(ann)
    here.said("You can't see this, Ann", parent_id=first, email=ANN)
    here.deliver()
    assert here.told(OWNER) == [["Buy now", "hi", "You can't see this, Ann"]]
    assert here.told(ANN) == [["You can't see this, Ann", "hi"]]


@named
def test_what_is_spam_at_once_is_not_told_of(here: Here, owner: Reader, ann: Reader) -> None:
    first = said(ann, nickname="Ann")
    here.deliver()
    here.outside.letters.clear()
    owner.post_json("/admin/blocks", {"kind": "word", "value": "casino"})
    answer = here.said("Casino!", parent_id=first)
    assert here.status_of(answer) == "spam"
    here.later()
    assert here.outside.letters == []
    moderate(owner, answer, "visible")
    here.later()
    assert here.recipients() == [ANN], "who let it through knows of it"


@pytest.mark.parametrize("settings", [{**NAMED, "notify_owner": (OWNER, CO_OWNER)}])
def test_the_emails_of_a_thread_stay_together_in_a_mail_program(here: Here) -> None:
    first = here.said("one")
    here.deliver()
    second = here.said("two", parent_id=first)
    here.later()
    here.said("three", parent_id=second)
    here.later()
    here.said("four", page_url="/other/")
    here.later()
    chains = []
    for to in (OWNER, CO_OWNER):
        one, two, three, four = here.arrived(to)
        ids = [str(m["Message-ID"]) for m in (one, two, three, four)]
        assert all(re.fullmatch(r"<[\w.-]+@[\w.-]+>", each) for each in ids)
        assert [m["In-Reply-To"] for m in (one, two, three, four)] == [None, *ids[:2], None]
        assert one["References"] is four["References"] is None
        assert str(two["References"]).split() == [ids[0]]
        assert str(three["References"]).split() == ids[:2]
        chains += ids
    assert len({*chains}) == 8


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_words": ("casino",)}])
def test_an_edit_that_makes_a_comment_wait_is_another_email_of_its_thread(here: Here) -> None:
    made = here.say("fine", lang="en")
    here.deliver()
    body = {"content": "A Casino", "edit_token": made["edit_token"]}
    here.patch_json("/comments/1", body)
    here.later()
    first, second = here.arrived(OWNER)
    text = content(second)
    assert "> A Casino\n\nIt waits for your approval: the word “casino”.\n" in text
    assert first["Message-ID"] != second["Message-ID"], "a mail server drops it as a double"
    assert str(first["Message-ID"]) in str(second["References"])
    assert here.press(link_to("visible", text)).told[0] == "Approved: everybody can read it."


@pytest.mark.parametrize("settings", [{**USUAL, "notify_owner": (OWNER, CO_OWNER)}])
@pytest.mark.parametrize("who", ["owner", "author"])
def test_what_is_hidden_before_its_email_went_out_is_told_to_nobody_else_and_the_rest_once(
    here: Here, owner: Reader, who: str
) -> None:
    def refuse(letter: Any) -> None:
        if letter.recipient == CO_OWNER:
            raise ConnectionRefusedError

    here.outside.happens = refuse
    made = here.say("bad", lang="en")
    kept = here.said("good")
    here.deliver()
    assert here.recipients() == [OWNER]
    if who == "owner":
        here.press(link_to("spam", here.texts(OWNER)[0]))
    else:
        here.delete_json("/comments/1", {"edit_token": made["edit_token"]})
    here.outside.happens = lambda letter: None
    for _ in range(2):
        here.later()
    assert here.told(OWNER) == [["bad", "good"]]
    assert here.told(CO_OWNER) == [["good"]]
    assert {words_of(link)["id"] for link in links_in(here.texts(CO_OWNER)[0])} == {str(kept)}
    if who == "owner":
        moderate(owner, 1, "visible")
    here.later()
    assert len(here.outside.letters) == 2
    assert here.outbox() == []


@named
@pytest.mark.parametrize("how", ["DELETE", "PATCH"])
def test_of_what_its_author_takes_back_no_email_keeps_the_text(
    here: Here, ann: Reader, how: str
) -> None:
    mine = said(ann, "a root", nickname="Ann")
    here.deliver()
    here.outside.time += BUNDLED
    here.outside.letters.clear()
    here.outside.mail_fails_with = ConnectionRefusedError()
    made = here.say("CANARY words", lang="en", parent_id=mine)
    here.said("another")
    here.deliver()
    waiting = [read(row["message"]).get_content() for row in here.outbox()]
    assert ["CANARY" in text for text in waiting] == [True, True]
    ask = here.delete_json if how == "DELETE" else here.patch_json
    body = {"edit_token": made["edit_token"], "content": "other words"}
    ask(f"/comments/{made['comment']['id']}", body)
    assert here.outbox() == []
    here.outside.time += MINUTE
    here.tick()
    for suffix in ("", "-wal"):
        path = Path(f"{inside.database_path(here.served)}{suffix}")
        raw = path.read_bytes() if path.exists() else b""
        assert not [line for text in waiting for line in encoded(text) if line in raw]
        assert b"CANARY" not in raw
    here.outside.mail_fails_with = None
    here.later()
    edited = [["other words", "a root"], ["other words", "another"]]
    assert sorted(here.told()) == (edited if how == "PATCH" else [["another"]])


def encoded(text: str) -> list[bytes]:
    """The lines of a text as they stand in an email."""
    return base64.encodebytes(text.replace("\n", "\r\n").encode()).split()[:-1]


def test_what_its_author_changes_while_its_email_is_made_or_leaves_is_told_once(
    config: Config, outside: Outside
) -> None:
    edits: list[Callable[[], Any]] = []

    def chance(size: int) -> bytes:
        """Composing an email draws on it."""
        if edits:
            edits.pop()()
        return secrets.token_bytes(size)

    world = replace(outside.world, chance=chance)
    with closing(make_app(replace(config, **NAMED), world, rounds=1)) as app:
        here = PlainReader(app)
        made = here.say("CANARY words", lang="en")
        body = {"content": "other words", "edit_token": made["edit_token"]}
        said(here, "second")
        edits.append(lambda: here.patch_json("/comments/1", body))
        outside.happens = lambda letter: here.delete_json("/comments/1", body) and None
        app.deliver()
        assert edits == []
        outside.happens = lambda letter: None
        later(app, outside)
    assert [quotes(text) for text in texts(outside)] == [["other words", "second"]]


@pytest.mark.parametrize("settings", [{**NAMED, "server_public_url": ""}])
def test_without_a_public_url_no_email_has_a_link_to_us(here: Here, ann: Reader) -> None:
    first = said(ann, nickname="Ann")
    here.said("answer", parent_id=first)
    guest = here.said("guest", email=LU)
    here.said("to a guest", parent_id=guest)
    here.deliver()
    here.later()
    assert sorted({*here.recipients()}) == [ANN, OWNER]
    for message, text in zip(here.arrived(), here.texts(), strict=True):
        assert not [word for word in ("/mail", "/admin", "None") if word in text]
        assert message["List-Unsubscribe"] is message["List-Unsubscribe-Post"] is None
        found = re.findall(r"https?://\S+", text)
        assert all(url.startswith(f"{BLOG}{PAGE}#comment-") for url in found)


@pytest.mark.parametrize("settings", [{**NAMED, "server_public_url": "https://b.example/talk"}])
def test_links_keep_the_path_under_which_we_are_reached(here: Here) -> None:
    here.said()
    here.deliver()
    (text,) = here.texts()
    assert "https://b.example/talk/admin" in text
    found = re.findall(r"https://b\.example/talk(/mail\?\S+)", text)
    assert len(found) == 2
    assert 'href="home.css"' in here.get(found[0]).text


@named
def test_a_page_is_linked_where_it_can_be_opened_and_marked_where_it_is_not_the_blogs(
    here: Here,
) -> None:
    for page, link, foreign in [
        ("/a b/ü", f"{BLOG}/a%20b/%C3%BC", False),
        (f"{BLOG}/x/?a=1", f"{BLOG}/x/?a=1", False),
        ("https://evil.example/x/", "https://evil.example/x/", True),
        ("javascript:alert(1)", "", False),
        ("//evil.example/", "", None),
        ("some-key", "", False),
        ("https://me@evil.example/", "", None),
    ]:
        number = here.said(page_url=page)
        here.later()
        text = here.texts()[-1]
        found = re.findall(r"Read and reply: (\S+)", text)
        assert found == ([f"{link}#comment-{number}"] if link else []), page
        if foreign is not None:
            assert ("(not your blog)" in text) == foreign, page


# The pages of links: what they refuse, and what they leave alone


def links_of_each_kind(here: Here, owner: Reader, lang: str = "en") -> dict[str, str]:
    """All good: those of emails to the owner about comment 1, which waits, and to its author."""
    here.said("a question", email=LU, nickname="Lu", lang=lang)
    here.deliver()
    found = {words_of(link)["do"]: link for link in links_in(here.texts(OWNER)[-1])}
    found["waiting"] = here.press(found["visible"]).action
    owner.post_json("/admin/reply", {"parent_id": 1, "content": "an answer"})
    here.deliver()
    found["confirm"] = link_to("confirm", here.texts(LU)[-1])
    here.press(found["confirm"])
    here.later()
    for stop, start in (("stop", "start"), ("stop_all", "start_all")):
        found[stop] = link_to(stop, here.texts(LU)[-1])
        found[start] = here.press(found[stop]).action
        here.press(found[start])
    here.press(found["waiting"])
    here.outside.letters.clear()
    assert {*found} == {*KINDS}
    return found


@pytest.fixture
def links(here: Here, owner: Reader) -> dict[str, str]:
    return links_of_each_kind(here, owner)


@pytest.mark.parametrize("settings", [NAMED, HELD])
def test_what_a_link_did_can_be_undone(here: Here) -> None:
    here.said()
    here.deliver()
    was = here.status_of(1)
    for link in links_in(here.texts()[0]):
        do = words_of(link)["do"]
        done = here.press(link)
        assert here.status_of(1) == do
        assert here.open(done.action).texts["pre"] == "hi"
        assert here.status_of(1) == do
        undone = here.press(done.action)
        assert here.status_of(1) == was
        here.press(undone.action)
        assert here.status_of(1) == do
        here.press(done.action)


@held
def test_what_a_link_did_is_in_the_audit_log_once(
    here: Here, links: dict[str, str], owner: Reader
) -> None:
    def press(_: int) -> tuple[str, ...]:
        return Shown(PlainReader(here.served).post(path_of(links["visible"])).text).told[:3]

    before = len(owner.get("/admin/audit").json["audit"])
    with ThreadPoolExecutor(8) as pool:
        assert len({*pool.map(press, range(24))}) == 1
    PlainReader(here.served).press(links["spam"])
    lines = owner.get("/admin/audit").json["audit"]
    found = [(line["who"], line["action"], line["subject"], line["detail"]) for line in lines]
    assert found[:2] == [("mail", "spam", "1", ""), ("mail", "visible", "1", "")]
    assert len(lines) == before + 2


ANYBODY = [
    {"Authorization": "Bearer nonsense"},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Authorization": "Basic eA=="},
]


@held
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_link_asks_does_it_once_for_whoever_presses_and_speaks_as_its_email(
    here: Here, owner: Reader, lang: str
) -> None:
    links, words = links_of_each_kind(here, owner, lang), LETTERS[lang]
    for number, do in enumerate(KINDS):
        path, headers, before = path_of(links[do]), ANYBODY[number % 4], here.rows()
        # A mail scanner opens all links.
        shown = here.get(path, headers=headers)
        assert f'<html lang="{lang}" dir="ltr">' in shown.text
        asked = words[f"page_{do}"].format(site="blog.example"), words[f"button_{do}"]
        assert Shown(shown.text).told[::3] == asked, do
        assert here.head(path).headers["Content-Type"] == shown.headers["Content-Type"]
        here.options(path)
        for method in ("PUT", "PATCH", "DELETE"):
            here.request(path, method=method, status=405)
        assert here.rows() == before, do
        done = Shown(here.post(path, headers=headers).text)
        assert done.told[0] == words[f"done_{do}"], do
        assert done.told[3] == (words["undo"] if done.action else ""), do
        assert done.action or do not in (*STATUSES, "waiting", "stop", "stop_all")
        here.deliver()
        here.deliver()
        before = here.rows()
        here.outside.letters.clear()
        assert here.press(links[do]).told == done.told, do
        here.later()
        assert (here.rows(), here.outside.letters) == (before, []), do
        if do in (*STATUSES, "waiting"):
            assert here.open(links[do]).told[0] == done.told[0], do
    broken = here.get(f"/mail?lang={lang}", status=403).text
    assert Shown(broken).told[0] == words["bad"]
    assert f'<html lang="{lang}" dir="ltr">' in broken


@pytest.mark.parametrize("settings", [{**USUAL, "moderation_hold": "all"}])
def test_the_links_of_one_who_is_no_owner_any_more_do_nothing(here: Here, owner: Reader) -> None:
    here.said()
    here.deliver()
    link = link_to("visible", here.texts(OWNER)[0])
    here.sql("UPDATE account SET role = 'user'")
    here.open(link, status=403)
    here.press(link, status=403)
    assert here.status_of(1) == "waiting"
    here.sql("UPDATE account SET role = 'admin'")
    assert here.press(link).told[0] == LETTERS["en"]["done_visible"]


@held
@pytest.mark.parametrize("what", ["content", "nickname"])
def test_a_text_that_was_edited_since_is_shown_again(
    here: Here, owner: Reader, links: dict[str, str], what: str
) -> None:
    owner.patch_json("/admin/comments/1", {what: "Other"})
    title = "The text has changed since this email was sent. Please look again:"
    who = {"nickname": "Other", "content": "Lu"}[what]
    text = {"nickname": "a question", "content": "Other"}[what]
    for do, label in (("visible", "Approve"), ("spam", "It is spam"), ("deleted", "Delete")):
        before = here.rows()
        shown = here.open(links[do])
        again = here.press(links[do], status=409)
        assert shown.told == again.told == (title, f"{who} · {PAGE}", text, label)
        assert here.rows() == before
        here.press(again.action)
        assert here.status_of(1) == do
        here.press(links[do], status=409)


@pytest.mark.parametrize("settings", [{**HELD, "moderation_keep_days": 1}])
def test_links_about_what_is_gone_say_so_and_still_end_emails(
    here: Here, owner: Reader, links: dict[str, str]
) -> None:
    for number in (2, 1):
        moderate(owner, number, "deleted")
        here.outside.time += 2 * DAY
        here.tick()
    gone = ("This comment is gone.", "", "", "")
    for do in STATUSES:
        assert here.open(links[do], status=404).told == gone, do
        assert here.press(links[do], status=404).told == gone, do
    # Nobody knows its page any more.
    assert here.open(links["stop"]).told[0] == LETTERS["en"]["page_stop_all"]
    assert here.press(links["stop"]).told[0] == LETTERS["en"]["done_stop_all"]
    other = here.said("other", email=LU, page_url="/other/")
    moderate(owner, other, "visible")
    owner.post_json("/admin/reply", {"parent_id": other, "content": "an answer"})
    here.later()
    assert here.arrived(LU) == []


@held
def test_a_link_to_moderate_is_good_for_thirty_days(here: Here, links: dict[str, str]) -> None:
    here.outside.time = START + 30 * DAY - 1
    kinds = (*STATUSES, "waiting")
    for do in kinds:
        assert here.open(links[do]).texts["button"], do
    back = here.press(links["visible"]).action
    before = here.rows()
    here.outside.time += 1
    bad = (LETTERS["en"]["bad"], "", "", "")
    for link in (*(links[do] for do in kinds), back):
        assert here.open(link, status=403).told == bad
        assert here.press(link, status=403).told == bad
    assert here.rows() == before


def refused(here: Here, query: str, methods: tuple[str, ...] = ("GET", "POST")) -> None:
    """As a page, whichever way it is asked for; nothing changes, which the reader sees to."""
    for method in methods:
        reply = here.request(f"/mail?{query}", method=method, status=403)
        assert Shown(reply.text).told[1:] == ("", "", "")
        assert Shown(reply.text).told[0] in {each["bad"] for each in LETTERS.values()}


@held
@pytest.mark.parametrize("do", KINDS)
def test_a_link_with_any_word_changed_left_out_or_added_is_refused(
    here: Here, links: dict[str, str], do: str
) -> None:
    query, words = urlsplit(links[do]).query, words_of(links[do])
    here.open(links[do])
    other = {
        "do": [*{*KINDS, "undo", "pinned"} - {do}],
        "id": ["2", "0", "-1", "1.0", "01", "+1", "1 ", "x", "１", "9" * 30, "1e3", "None"],
        "was": ["visible", "spam", "stop", "pinned"],
        "who": ["0" * 32, ANN, "0"],
        "lang": ["zh", "xx", "en\0", "de"],
        "version": ["0" * 16, words.get("version", "a").upper() + "a"],
        "until": [str(START + 60 * DAY), "x", "9" * 30, "-1", "1e99", "inf"],
        "mac": ["0" * 32, words["mac"].upper() + "=", words["mac"][:-1], words["mac"] + "0", "é"],
    }
    for name, value in words.items():
        for changed in {*other[name], "", value + value, "\u2028", "'"} - {value}:
            refused(here, urlencode({**words, name: changed}), ("POST",))
        refused(here, urlencode({n: v for n, v in words.items() if n != name}))
        refused(here, urlencode({n.upper() if n == name else n: v for n, v in words.items()}))
        refused(here, f"{query}&{urlencode({name: value})}")
        refused(here, f"{name}=x&{query}")
    for extra in {"page", "who", "until", "undo", "x", "id", "status"} - {*words}:
        refused(here, urlencode({**words, extra: "1"}))
    for made_up in ("", "mac=" + words["mac"], "%3Cb%3E=1&%3Cb%3E=2", "do=", "do=stop&id=1&mac=x"):
        refused(here, made_up)
        assert here.head(f"/mail?{made_up}", status=403).body == b""
    for garbled in ("do=%ff", "%ff=1", "do=%ed%a0%80", "&".join("a" * 300)):
        assert 400 <= here.get(f"/mail?{garbled}", expect_errors=True).status_int < 500
        assert 400 <= here.post(f"/mail?{garbled}", expect_errors=True).status_int < 500


@held
def test_no_other_seal_or_secret_of_ours_opens_a_link(here: Here, links: dict[str, str]) -> None:
    words = {do: words_of(link) for do, link in links.items()}
    for one in KINDS:
        for other in KINDS:
            for mixed in (
                {**words[one], "mac": words[other]["mac"]},
                {**words[other], **words[one], "mac": words[other]["mac"]},
                {**words[one], "do": other},
            ):
                if mixed not in words.values():
                    refused(here, urlencode(mixed), ("POST",))
    bare = {name: value for name, value in words["spam"].items() if name != "mac"}
    pairs = [f"{name}={bare[name]}" for name in sorted(bare)]
    app, key = here.served, inside.token_key(here.served).decode()
    assert inside.seal(app, "link", *pairs)[:32] == words["spam"]["mac"]
    seals = [inside.seal(app, purpose, *pairs)[:32] for purpose in ("edit", "subscriber", "")]
    seals += [inside.seal(app, "link")[:32], inside.seal(app, "link", "&".join(pairs))[:32]]
    seals += [bare["who"], words["stop"]["who"], key, here.say("more")["edit_token"]]
    for seal in seals:
        refused(here, urlencode({**bare, "mac": seal}))
    refused(here, urlencode({"mac": inside.seal(app, "subscriber", LU)[:32]}))


HOSTILE = [
    "</pre><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "{{title}} {{body}} {{lang}} {{",
    "&lt;b&gt; &amp; &#x22; \" ' `",
    "</title></main></html><!-- ",
    "<![CDATA[x]]> <?x ?> <!doctype x>",
    "{links} {0} {} %s %(x)s \\n",
    "\u202eright to left\u202c \u2028 \u2029 \ufeff x\u0301",
    "مرحبا <b> 你好",
    '"></form><form action=https://evil.example>',
]


@named
def test_what_people_write_is_only_text_on_the_page_of_a_link(here: Here) -> None:
    for content in HOSTILE:
        page = "/" + content[:40].replace("\u2028", "").replace("\u2029", "").strip()
        nickname = re.sub("[^ -~\u0600-\u06ff]", "", content)[:64].strip()
        here.said(content, nickname=nickname, page_url=page)
        here.later()
        text = here.texts(OWNER)[-1]
        for do in ("spam", "deleted"):
            shown, done = here.open(link_to(do, text)), here.press(link_to(do, text))
            assert shown.texts["pre"] == done.texts["pre"] == content.strip()
            assert shown.texts["p"].startswith(f"{nickname} · /")
            # A name can't turn the line that it stands in.
            assert shown.texts["bdi"].startswith(nickname)


# To authors


@to_nobody
def test_who_has_an_account_is_told_of_a_reply_at_once(here: Here, ann: Reader) -> None:
    first = said(ann, "Why?\nWhy not?", nickname="Ann", lang="en")
    here.said("Because.", parent_id=first, nickname="Bob", lang="zh")
    here.deliver()
    (message,) = here.arrived(ANN)
    stop, stop_all = links_in(content(message))
    assert (words_of(stop)["do"], words_of(stop_all)["do"]) == ("stop", "stop_all")
    assert content(message) == (
        f"“Bob” replied to you at blog.example:\n\n> Because.\n\nYou wrote:\n\n"
        f"> Why?\n> Why not?\n\nRead and reply: {BLOG}{PAGE}#comment-2\n\n"
        f"No more emails about this page: {stop}\nNo more emails at all: {stop_all}\n"
    )
    assert message["Subject"] == "blog.example: a reply to you"
    assert sorted(message.keys()) == sorted([*HEADERS, *ANSWER_HEADERS])
    assert f"List-Unsubscribe: <{stop}>" in head_of(here)
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click" in head_of(here)


@pytest.mark.parametrize(
    "settings", [{**TO_NOBODY, "mail_sender": f"c@{'a-long-name-' * 5}.blog-of-somebody.example"}]
)
def test_a_long_address_of_the_sender_leaves_the_ids_of_emails_whole(
    here: Here, ann: Reader
) -> None:
    first = said(ann, nickname="Ann")
    second = said(ann, parent_id=first, nickname="Ann")
    here.said(parent_id=second)
    here.deliver()
    for name, count in (("Message-ID", 1), ("In-Reply-To", 1), ("References", 2)):
        (line,) = [line for line in head_of(here) if line.startswith(f"{name}: ")]
        assert len(re.findall(r"<comment-\d+-[0-9a-f]+@[a-z.-]+>", line)) == count, line
        assert "=?" not in line


def test_ten_minutes_lie_between_two_emails_about_a_page(here: Here, ann: Reader) -> None:
    first = said(ann, "mine")
    times = []
    for minute in range(25):
        here.said(str(minute), nickname="Bob", parent_id=first)
        before = len(here.outside.letters)
        here.deliver()
        times += [minute] * (len(here.outside.letters) - before)
        here.outside.time += 60
    assert times == [0, 9, 18]
    message = here.arrived(ANN)[1]
    assert message["Subject"] == "blog.example: 9 replies to you"
    assert here.told()[1] == [quote for n in range(1, 10) for quote in (str(n), "mine")]
    assert len(links_in(content(message))) == 2


@to_nobody
def test_replies_on_many_pages_are_few_emails_an_hour_and_none_is_lost(
    here: Here, ann: Reader
) -> None:
    for number in range(9):
        mine = said(ann, nickname="Ann", page_url=f"/{number}/")
        here.said(f"on {number}", parent_id=mine, page_url=f"/{number}/")
    for _ in range(50):
        here.deliver()
        here.outside.time += MINUTE
    assert len(here.outside.letters) == 6
    for _ in range(30):
        here.later(MINUTE)
    assert sorted(here.told(ANN)) == [[f"on {number}", "hi"] for number in range(9)]


@to_nobody
def test_a_guest_is_asked_once_and_not_before_there_is_a_reply(here: Here) -> None:
    for number in range(3):
        mine = here.said(f"question {number}", email=LU, page_url=f"/{number}/")
        here.later()
        assert len(here.outside.letters) == min(number, 1)
        for _ in range(2):
            here.said("answer", parent_id=mine, page_url=f"/{number}/")
        here.later()
    here.later(400 * DAY)
    here.tick()
    mine = here.said("a year later", email=LU)
    here.said("answer", parent_id=mine)
    here.later()
    assert here.recipients() == [LU]


@to_nobody
def test_the_email_that_asks_holds_nothing_that_a_stranger_typed(here: Here) -> None:
    for email, evil in ((LU, "x"), (ANN, "https://evil.example/?a=1")):
        fields = {"nickname": evil, "page_url": f"/{evil}", "website": "https://evil.example/"}
        mine = here.said(evil, email=email, **fields)
        here.said(evil, nickname=evil, page_url=f"/{evil}", parent_id=mine)
    here.deliver()
    found = []
    for message in here.arrived():
        (link,) = links_in(message.get_content())
        assert {*words_of(link)} <= {"do", "id", "who", "lang", "mac", "until"}
        found.append((message["Subject"], message.get_content().replace(link, "")))
        assert message["References"] is message["In-Reply-To"] is None
    assert len(found) == 2
    assert found[0] == found[1]
    assert "evil" not in here.outside.letters[0].message + here.outside.letters[1].message


@to_nobody
def test_who_confirms_gets_all_the_replies_that_waited_and_those_that_come(here: Here) -> None:
    one = here.said("one", email=LU, nickname="陆", lang="zh")
    two = here.said("two", email=LU, page_url="/other/", lang="zh")
    here.said("to one", parent_id=one)
    here.deliver()
    here.said("to two", parent_id=two, page_url="/other/")
    here.later()
    (message,) = here.arrived()
    assert message["Subject"] == "blog.example：有回复时要通知你吗？"
    (confirm,) = links_in(content(message))
    asked = ("有人在 blog.example 回复你时，要收到邮件吗？", "", "", "好，请通知我")
    assert here.open(confirm).told == asked
    for _ in range(3):
        assert here.press(confirm).told[0] == "有人回复你时，你会收到邮件。"
        here.later()
    assert sorted(here.told(LU)[1:]) == [["to one", "one"], ["to two", "two"]]
    there = here.said("there", email=LU, page_url="/third/", lang="zh")
    here.said("to there", parent_id=there, page_url="/third/")
    here.later()
    assert here.told(LU)[3:] == [["to there", "there"]]


@to_nobody
def test_a_reply_is_told_later_while_what_it_replies_to_waits_for_the_owner(
    here: Here, owner: Reader
) -> None:
    mine = here.said("mine", email=LU)
    here.said("first", parent_id=mine)
    here.deliver()
    here.press(link_to("confirm", here.outside.text()))
    here.later()
    here.outside.letters.clear()
    here.said("second", parent_id=mine)
    moderate(owner, mine, "waiting")
    here.later()
    assert here.texts(LU) == []
    moderate(owner, mine, "visible")
    here.later(HOUR)
    assert here.told(LU) == [["second", "mine"]]


@to_nobody
def test_to_confirm_is_the_right_of_the_one_address_that_was_asked(here: Here) -> None:
    mine = here.said(email=LU)
    here.said(parent_id=mine)
    here.deliver()
    confirm = link_to("confirm", here.outside.text())
    # A backup was restored, and the number given again.
    here.sql("UPDATE comment SET email = 'eve@example.com' WHERE id = ?", mine)
    here.press(confirm)
    answer = here.said("to Eve", parent_id=mine)
    here.later()
    assert [each for each in here.told("eve@example.com") if "to Eve" in each] == []
    assert here.status_of(answer) == "visible"


def test_nobody_is_told_of_their_own_reply(here: Here, owner: Reader, ann: Reader) -> None:
    mine = said(ann, "mine", nickname="Ann")
    said(ann, "and more", nickname="Ann", parent_id=mine)
    guests = here.said("a guest's", email=LU)
    here.said("and more", email=LU, parent_id=guests)
    before = here.said("before I signed in", email=ANN)
    said(ann, "and after", nickname="Ann", parent_id=before)
    owners = said(signed_in(here.served, OWNER), "the owner's", nickname="Owner")
    owner.post_json("/admin/reply", {"parent_id": owners, "content": "and more"})
    here.deliver()
    here.later()
    assert {*here.recipients()} == {OWNER}
    found = sorted(quote for each in here.told() for quote in each)
    guests_words = ["a guest's", "and after", "and more", "and more", "before I signed in"]
    assert found == [*guests_words, "mine"]


@pytest.mark.parametrize(
    ("settings", "kinds"),
    [(USUAL, {"spam", "deleted"}), ({**USUAL, "notify_owner": (CO_OWNER,)}, {"stop", "stop_all"})],
)
def test_a_reply_to_an_admin_is_told_once_as_owner_or_else_as_author(
    here: Here, owner: Reader, kinds: set[str]
) -> None:
    first = said(signed_in(here.served, OWNER), "mine", nickname="Owner")
    here.said("answer", parent_id=first)
    here.deliver()
    here.later()
    (text,) = here.texts(OWNER)
    assert {words_of(link)["do"] for link in links_in(text)} == kinds


@held
def test_a_reply_that_waits_is_told_when_it_is_approved_and_only_once(
    here: Here, owner: Reader, ann: Reader
) -> None:
    first = said(ann, "mine", nickname="Ann")
    moderate(owner, first, "visible")
    here.deliver()
    answers = []
    for number in range(2):
        answers.append(here.said(f"answer {number}", parent_id=first))
        here.later()
    assert here.arrived(ANN) == []
    here.press(link_to("visible", here.texts(OWNER)[-2]))
    here.deliver()
    moderate(owner, answers[1], "visible")
    here.later()
    for status in ("waiting", "visible"):
        moderate(owner, answers[1], status)
        here.later()
    assert here.told(ANN) == [["answer 0", "mine"], ["answer 1", "mine"]]


@to_nobody
def test_nothing_is_told_of_a_reply_when_it_or_what_it_replies_to_is_hidden(
    here: Here, owner: Reader, ann: Reader
) -> None:
    for status in ("spam", "deleted", "waiting"):
        first = said(ann, f"to be {status}")
        here.said("answer", parent_id=first)
        moderate(owner, first, status)
        here.later()
        assert here.outside.letters == [], status
    for hidden in (0, 1):
        # Hidden after the email was written, and before it left.
        first = said(ann, f"mine {hidden}")
        numbers = [first, here.said("answer", parent_id=first)]
        here.outside.mail_fails_with = ConnectionRefusedError()
        here.later()
        assert len(here.outbox()) == 1
        moderate(owner, numbers[hidden], "spam")
        here.outside.mail_fails_with = None
        here.later(HOUR)
        assert here.outside.letters == []
        moderate(owner, numbers[hidden], "visible")
        here.later(HOUR)
        assert here.recipients() == [ANN] * hidden


@to_nobody
def test_a_guest_who_was_hidden_before_they_were_asked_is_asked_when_shown_again(
    here: Here, owner: Reader
) -> None:
    mine = here.said(email=LU)
    here.said(parent_id=mine)
    here.outside.mail_fails_with = ConnectionRefusedError()
    here.deliver()
    moderate(owner, mine, "spam")
    here.outside.mail_fails_with = None
    here.later(HOUR)
    assert here.outside.letters == []
    moderate(owner, mine, "visible")
    here.said("one more", parent_id=mine)
    here.later(HOUR)
    assert here.recipients() == [LU]


# Unsubscribing

FORM = "application/x-www-form-urlencoded"
MULTIPART = (
    '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n'
)
ONE_CLICKS = [
    ("List-Unsubscribe=One-Click", FORM),
    (MULTIPART, "multipart/form-data; boundary=x"),
    ("", ""),
    ("", FORM),
    ("{}", "application/json"),
    ("\0\xff" * 100, "application/octet-stream"),
    ("do=visible&id=1&mac=x", FORM),
]


@pytest.fixture
def replied(here: Here, ann: Reader) -> str:
    """An email about a reply to Ann, who wrote on two pages."""
    mine = [said(ann, p, nickname="Ann", page_url=p) for p in ("/one/", "/two/")]
    assert mine == [1, 2]
    here.said("answer", parent_id=1, page_url="/one/")
    here.deliver()
    (text,) = here.texts(ANN)
    here.outside.letters.clear()
    return text


@to_nobody
def test_one_click_ends_the_emails_about_a_page(here: Here, replied: str) -> None:
    path = path_of(link_to("stop", replied))
    here.said("waits for its bundle", parent_id=1, page_url="/one/")
    here.deliver()
    for number, (body, kind) in enumerate(ONE_CLICKS):
        for origin in ("", "https://mail.example", "null"):
            headers = {"Origin": origin} if origin else {}
            headers |= {"Content-Type": kind} if kind else {}
            reply = here.request(path, method="POST", body=body.encode("latin-1"), headers=headers)
            done = Shown(reply.text)
            assert done.told[0] == "You won’t get any more emails about this page."
        here.later()
        assert here.outside.letters == []
        here.press(done.action)
        here.said(f"again {number}", parent_id=1, page_url="/one/")
        here.later()
        assert here.recipients() == [ANN]
        here.outside.letters.clear()
        here.said(f"waits {number}", parent_id=1, page_url="/one/")
        here.deliver()


@to_nobody
def test_unsubscribing_is_for_one_address_alone(here: Here, replied: str) -> None:
    lus = here.said(email=LU, page_url="/one/")
    here.said("to Lu", parent_id=lus, page_url="/one/")
    here.later()
    here.press(link_to("confirm", here.texts(LU)[-1]))
    here.later()
    for do in ("stop", "stop_all"):
        here.press(link_to(do, replied))
    here.outside.letters.clear()
    here.said("again to Lu", parent_id=lus, page_url="/one/")
    here.later()
    assert here.recipients() == [LU]
    # A guest who ends them is not asked again.
    here.press(link_to("stop_all", here.outside.text()))
    here.outside.letters.clear()
    other = here.said("other", email=LU, page_url="/other/")
    here.said("answer", parent_id=other, page_url="/other/")
    here.later()
    assert here.outside.letters == []


@to_nobody
def test_unsubscribing_can_be_undone(here: Here, replied: str) -> None:
    stop, stop_all = link_to("stop", replied), link_to("stop_all", replied)
    shown = here.open(stop_all)
    assert shown.told == ("No more emails about replies at all?", "", "", "No more emails at all")
    for link, pages in ((stop, ["/two/"]), (stop_all, [])):
        here.press(link)
        assert here.pages_told() == pages
        done = here.press(link)
        assert done.texts.get("button") == "Undo"
        here.press(done.action)
        assert here.pages_told() == ["/one/", "/two/"]
    # To undo one of two leaves the other.
    here.press(stop)
    here.press(here.press(stop_all).action)
    assert here.pages_told() == ["/two/"]
    here.press(stop_all)
    here.press(here.press(stop).action)
    assert here.pages_told() == []


@to_nobody
@pytest.mark.parametrize("when", ["before", "after"])
def test_unsubscribing_holds_when_the_page_gets_another_url(
    here: Here, owner: Reader, replied: str, when: str
) -> None:
    here.said("there first", page_url="/three/")
    if when == "after":
        here.press(link_to("stop", replied))
    owner.patch_json("/admin/pages/1", {"page_url": "/three/", "merge": True})
    if when == "before":
        here.press(link_to("stop", replied))
    here.later()
    here.tick()
    here.outside.letters.clear()
    here.said("again", parent_id=1, page_url="/three/")
    here.later()
    assert here.arrived(ANN) == []


@to_nobody
def test_a_subscription_holds_no_address(here: Here) -> None:
    mine = here.said(email=LU)
    here.said(parent_id=mine)
    here.deliver()
    here.press(link_to("confirm", here.outside.text()))
    here.later()
    for do in ("stop", "stop_all"):
        here.press(link_to(do, here.outside.text()))
    kept = here.rows()["subscription"]
    assert sorted((page, state) for _, page, state in kept) == [(0, "no"), (1, "no")]
    text = (" ".join(links_in(here.outside.text())) + json.dumps(kept)).replace(SERVICE, "")
    assert not [word for word in (LU, "lu@", "e.cn", "%40") if word in text]
    # Nor a hash that whoever knows an address finds without the key.
    assert {who for who, *_ in kept} == {inside.seal(here.served, "subscriber", LU)[:32]}


# What stands in emails


def frame(text: str) -> list[str]:
    """An email without what is quoted in it and without its links."""
    return [re.sub(r"https?://\S+", "", line) for line in text.splitlines() if line[:2] != "> "]


@pytest.mark.parametrize("settings", [{**NAMED, "comments_max_length": 9000}])
def test_a_long_text_is_cut_in_an_email_and_hides_no_website(here: Here, ann: Reader) -> None:
    long = "字" * 9000
    mine = said(ann, long)
    here.said(long, parent_id=mine, website="https://casino.example/")
    here.deliver()
    cut = "字" * 2000 + " …"
    assert here.told(OWNER) == [[cut, cut, "", "https://casino.example/"]]
    assert here.told(ANN) == [[cut, "字" * 300 + " …"]]


def test_emails_tell_no_address_and_no_place_of_a_comment(
    here: Here, owner: Reader, ann: Reader
) -> None:
    first = said(ann, "mine", nickname="Ann")
    said(Reader(here.served, "198.51.100.77"), "answer", parent_id=first, email=LU)
    here.deliver()
    assert len(here.outside.letters) == 2
    for letter, text in zip(here.outside.letters, here.texts(), strict=True):
        everything = letter.message.replace(f"To: {letter.recipient}", "") + text
        assert not [w for w in (LU, ANN, OWNER, "198.51.100", CANARY) if w in everything]


@held
def test_the_owner_reads_why_a_comment_waits(here: Here) -> None:
    reasons = ["all", "first", "links", "flood", "fast", "captcha_down"]
    for reason in [*reasons, "word: {x: y}", "block: 203.0.113.0/24"]:
        kind, _, value = reason.partition(": ")
        for lang in ("en", "zh"):
            number = here.said(f"{reason} {lang}", lang=lang)
            here.sql("UPDATE comment SET held = ? WHERE id = ?", reason, number)
            here.later()
            why = LETTERS[lang][f"held_{kind}"].replace("{value}", value)
            text = LETTERS[lang]["owner_waiting"].replace("{held}", why)
            assert text in here.texts()[-1], (reason, lang)


def test_each_language_has_the_same_strings_with_the_same_places() -> None:
    def places(text: str) -> list[str]:
        return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)

    english = {name: places(text) for name, text in LETTERS["en"].items()}
    for words in LETTERS.values():
        assert {name: places(text) for name, text in words.items()} == english
        assert list(words) == list(LETTERS["en"])
        assert all(text.strip() for text in words.values())
        # What a stranger chose can't be taken for a line of ours.
        starts = {name for name, text in words.items() if re.search(r"(?m)^\{(nick|page)", text)}
        assert starts <= {"thread_title"}
    for name, text in LETTERS["zh"].items():
        assert not re.search("[\u4e00-\u9fff] ?[,:;?!]|[,:;?!()] ?[\u4e00-\u9fff]", text), name


# What goes wrong


class Killed(BaseException):
    """As SIGKILL is: nothing is done any more."""


def test_what_was_written_but_not_sent_when_the_machine_went_down_is_sent_once(
    start: Start, outside: Outside
) -> None:
    ids = []

    def killed(letter: Any) -> None:
        ids.append(read(letter.message)["Message-ID"])
        raise Killed

    outside.happens = killed
    with start(**NAMED) as app:
        said(Reader(app))
        with pytest.raises(Killed):
            app.deliver()
    outside.happens = lambda letter: None
    for _ in range(2):
        with start(**NAMED) as app:
            later(app, outside)
    assert [message["Message-ID"] for message in arrived(outside)] == ids


FAILURES = {
    "the email": "CREATE TRIGGER broken BEFORE INSERT ON outbox",
    "the mark": "CREATE TRIGGER broken BEFORE UPDATE OF outbox_id ON notification",
    "the question": "CREATE TRIGGER broken BEFORE INSERT ON subscription",
    "the bundle": "CREATE TRIGGER broken BEFORE INSERT ON budget",
}


@named
@pytest.mark.parametrize("what", FAILURES)
def test_a_disk_that_fails_while_emails_are_written_neither_loses_nor_doubles_one(
    here: Here, ann: Reader, db: sqlite3.Connection, what: str
) -> None:
    first = said(ann, "Ann's", nickname="Ann")
    here.said("to Ann", parent_id=first)
    guests = here.said("Lu's", email=LU)
    here.said("to Lu", parent_id=guests)
    db.execute(f"{FAILURES[what]} BEGIN SELECT RAISE(ABORT, 'disk'); END")
    with contextlib.suppress(Exception):
        here.deliver()
    assert len(here.outside.letters) < 3
    db.execute("DROP TRIGGER broken")
    here.deliver()
    here.later()
    assert here.told(ANN) == [["to Ann", "Ann's"]]
    assert here.told(LU) == [[]]
    assert here.told(OWNER) == [["Ann's", "to Ann", "Lu's", "to Lu"]]


POISON = [
    ("email", "no address"),
    ("email", "a@b@c"),
    ("email", "名@例子.cn"),
    ("email", "a@example.com\nBcc: eve@evil.example"),
    ("nickname", "a\nBcc: eve@evil.example"),
    ("held", "{0.__class__}: {x}"),
    ("held", "word"),
    ("language", "xx"),
    ("content", "\0"),
]


@named
def test_a_poisoned_row_holds_up_no_other_email(here: Here, ann: Reader) -> None:
    for number, (column, value) in enumerate(POISON):
        poisoned = here.said(f"poisoned {number}", email=LU)
        here.said("to the poisoned", parent_id=poisoned)
        here.sql(f"UPDATE comment SET {column} = ? WHERE id = ?", value, poisoned)
    first = said(ann, "Ann's", nickname="Ann")
    here.said("to Ann", parent_id=first)
    here.register("new@example.com")
    with contextlib.suppress(Exception):
        here.deliver()
    here.later()
    assert {*here.recipients()} == {ANN, OWNER, LU, "new@example.com"}
    assert here.told(ANN) == [["to Ann", "Ann's"]]
    names = {name for message in here.arrived() for name in [*message]}
    assert names <= {*HEADERS, *ANSWER_HEADERS}


# In a browser


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1000, "light")])
def test_the_page_of_a_link_fits_and_its_button_works_in_a_browser(
    start: Start, outside: Outside, browser: Any, width: int, scheme: Any
) -> None:
    size = {"width": width, "height": 800}
    # A plain one: browsers complain of what is for https only.
    public = {"server_listen": "127.0.0.1:0", "server_public_url": "http://comments.test"}
    with (
        start(**{**HELD, **public}) as app,
        blog.service(app) as address,
        closing(browser.new_page(color_scheme=scheme, viewport=size)) as page,
    ):
        reader = Here(app)
        said(reader, f"{blog.LONG}\n{'x' * 300}\n<b>bold</b>", nickname="ليلى", lang="zh")
        app.deliver()
        (text,) = texts(outside)
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        (link,) = re.findall(r"http://comments\.test(/mail\?\S+do=visible\S+)", text)
        page.goto(address + link)
        fits = "document.documentElement.scrollWidth <= innerWidth"
        assert page.evaluate(fits)
        assert Axe().run(page).response["violations"] == []
        assert page.locator("pre b").count() == 0
        page.get_by_role("button", name="通过").click()
        page.get_by_role("heading", name="已通过，所有人都能看到。").wait_for()
        assert reader.status_of(1) == "visible"
        page.get_by_role("button", name="撤销").click()
        page.get_by_role("heading", name="已放回待审，别人看不到。").wait_for()
        assert page.evaluate(fits)
        assert (complaints, reader.status_of(1)) == ([], "waiting")
