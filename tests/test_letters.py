"""Letters about comments, through a mail server where the way counts, and the pages that their
links lead to."""

import base64
import contextlib
import json
import re
import socket
import sqlite3
import string
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import blog
import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import CANARY, PAGE, START, Outside, Visitor, assert_whole, dump
from hypothesis import HealthCheck, example, given
from hypothesis import settings as how
from hypothesis import strategies as st
from test_mail import HEADERS, PostOffice, outbox, read

import commentd
from commentd import App, Config, World, mac, make_app

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
JUDGEMENTS = ("visible", "spam", "deleted")
KINDS = (*JUDGEMENTS, "waiting", "confirm", "stop", "stop_all", "start", "start_all")

LETTERS = json.loads(
    Path(commentd.__file__).with_name("static").joinpath("letters.json").read_text()
)

named = pytest.mark.parametrize("settings", [NAMED])
held = pytest.mark.parametrize("settings", [HELD])
to_nobody = pytest.mark.parametrize("settings", [TO_NOBODY])


@pytest.fixture
def settings() -> dict[str, Any]:
    return USUAL


# The page of a link, and a reader who judges it

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
        assert response.headers["Content-Security-Policy"] == commentd.PAGE_POLICY
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


def path_of(link: str) -> str:
    """Without scheme and host; `?…`, the action of a form, is a link too."""
    url = urlsplit(link)
    assert link.startswith(("?", "/mail?", f"{SERVICE}/mail?"))
    return f"/mail?{url.query}"


@pytest.fixture
def visitor(app: App) -> Reader:
    return Reader(app)


@pytest.fixture
def owner(app: App, visitor: Reader, outside: Outside) -> Reader:
    """The owner, signed in on the admin page."""
    return claim(app, OWNER, "Owner")


def claim(app: App, email: str, nickname: str) -> Reader:
    link = commentd.new_admin_link(app.house.store, app.house.world, email)
    admin = Reader(app)
    body = {"link": link, "nickname": nickname, "password": CANARY}
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


def said(visitor: Visitor, content: str = "hi", **fields: Any) -> int:
    """The number of a comment that was just written."""
    number: int = visitor.say(content, **{"lang": "en", **fields})["comment"]["id"]
    return number


def judge(owner: Reader, number: int, status: str) -> None:
    owner.post_json("/admin/comments", {"ids": [number], "status": status})


def links_in(text: str) -> list[str]:
    return re.findall(r"https://comments\.example/mail\?\S+", text)


def words_of(link: str) -> dict[str, str]:
    pairs = parse_qsl(urlsplit(link).query, keep_blank_values=True, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def link_to(do: str, text: str) -> str:
    """The first link of a letter that does this."""
    return next(link for link in links_in(text) if words_of(link)["do"] == do)


def arrived(outside: Outside, to: str | None = None) -> list[EmailMessage]:
    """The letters that went out, to someone."""
    return [read(x.message) for x in outside.letters if to in (None, x.recipient)]


def texts(outside: Outside, to: str | None = None) -> list[str]:
    return [content(message) for message in arrived(outside, to)]


def content(message: EmailMessage) -> str:
    text: str = message.get_content()
    return text.replace("\r\n", "\n")


def later(app: App, outside: Outside, seconds: int = BUNDLED) -> None:
    outside.time += seconds
    app.deliver()


def status_of(app: App, number: int) -> str:
    comment = app.house.store.comment(number)
    return comment.status if comment else ""


def rows(app: App) -> dict[str, Any]:
    return dump(app.house.store.path)


# Through a mail server


@pytest.fixture
def office() -> Iterator[PostOffice]:
    office = PostOffice(auth_require_tls=False)
    office.start()
    yield office
    office.stop()


@pytest.fixture
def start(config: Config, outside: Outside) -> Iterator[Callable[..., App]]:
    """Starts the service with a mail server; the clock is the test's."""
    started: list[App] = []

    def serve(port: int, **settings: Any) -> App:
        usual: dict[str, Any] = {
            "mail_host": "127.0.0.1",
            "mail_port": port,
            "mail_security": "none",
        }
        usual |= {"mail_sender": "Blog <comments@blog.example>", **NAMED}
        made = make_app(
            replace(config, **(usual | settings)), World(now=lambda: outside.time), rounds=1
        )
        started.append(made)
        return made

    yield serve
    for app in started:
        app.close()
        assert_whole(app.house.store.path)


def test_the_owner_judges_a_comment_by_the_links_that_arrived(
    start: Callable[..., App], office: PostOffice
) -> None:
    app = start(office.port, moderation_hold="all")
    visitor = Reader(app)
    said(visitor, "Two lines\n\n> of which\n> one is quoted", nickname="Lu")
    app.deliver()
    (envelope,) = office.letters
    assert (envelope.mail_from, envelope.rcpt_tos) == ("comments@blog.example", [OWNER])
    message = read(envelope.content)
    assert {*HEADERS} <= {*message.keys()}
    assert message["Subject"] == f"blog.example: new comment on {PAGE}"
    assert message["Auto-Submitted"] == "auto-generated"
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
    assert visitor.open(approve).told == ("Approve this comment?", who, quote, "Approve")
    assert visitor.listing()["total"] == 0
    done = visitor.press(approve)
    assert done.told == ("Approved: everybody can read it.", who, quote, "Undo")
    assert [c["content"] for c in visitor.listing()["comments"]] == [quote]
    undone = visitor.press(done.action)
    assert undone.told == ("It waits, and nobody sees it.", who, quote, "Undo")
    assert visitor.listing()["total"] == 0
    assert visitor.press(undone.action).told[0] == "Approved: everybody can read it."
    assert visitor.press(spam).told[0] == "It is kept as spam, and nobody sees it."
    assert visitor.press(delete).told[0] == "Deleted: nobody sees it."
    assert status_of(app, 1) == "deleted"


def test_a_guest_who_confirms_gets_the_answer_that_waited_and_can_end_it(
    start: Callable[..., App], office: PostOffice, outside: Outside
) -> None:
    app = start(office.port, notify_owner=("nobody",))
    visitor = Reader(app)
    first = said(visitor, "我的问题", email=LU, nickname="陆", lang="zh")
    said(visitor, "An answer", nickname="Bob", parent_id=first)
    app.deliver()
    (asked,) = office.letters
    assert asked.rcpt_tos == [LU]
    message = read(asked.content)
    assert message["Subject"] == "blog.example：有回复时要通知你吗？"
    (confirm,) = links_in(message.get_content())
    assert visitor.open(confirm).told == (
        "有人在 blog.example 回复你时，要收到邮件吗？",
        "",
        "",
        "好，请通知我",
    )
    assert visitor.press(confirm).told[0] == "有人回复你时，你会收到邮件。"
    app.deliver()
    answer = office.letters[1]
    message, raw = read(answer.content), answer.content.decode()
    assert answer.rcpt_tos == [LU]
    assert message["Subject"] == "blog.example：有人回复了你"
    text = content(message)
    stop, stop_all = links_in(text)
    assert text == (
        f"“Bob”在 blog.example 回复了你：\n\n> An answer\n\n你写的是：\n\n> 我的问题\n\n"
        f"查看并回复：{BLOG}{PAGE}#comment-2\n\n"
        f"不再接收这个页面的邮件：{stop}\n不再接收任何回复邮件：{stop_all}\n"
    )
    assert f"\r\nList-Unsubscribe: <{stop}>\r\n" in raw.replace("\r\n ", " ")
    assert "\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in raw
    visitor.post(path_of(stop), "List-Unsubscribe=One-Click")
    said(visitor, "Another", nickname="Bob", parent_id=first)
    later(app, outside)
    assert len(office.letters) == 2


def test_a_letter_that_was_refused_for_now_goes_out_once_with_the_same_message_id(
    start: Callable[..., App], outside: Outside, office: PostOffice
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as shut:
        port = shut.getsockname()[1]  # and closed: connections are refused
    app = start(port)
    said(Reader(app))
    app.deliver()
    (waiting,) = outbox(app)
    assert (waiting["tries"], waiting["recipient"]) == (1, OWNER)
    app.close()
    app = start(office.port)
    outside.time += HOUR
    app.deliver()
    app.deliver()
    (envelope,) = office.letters
    assert read(envelope.content)["Message-ID"] == read(waiting["message"])["Message-ID"]
    assert outbox(app) == []


# To the owner


@pytest.mark.parametrize(
    ("lang", "state", "text"),
    [
        (
            "en",
            "none",
            f"New comment on “{PAGE}” by “Lu”:\n\n> x\n\n"
            "Hide as spam: {spam}\nDelete:       {deleted}\n\n"
            f"Read and reply: {BLOG}{PAGE}#comment-1\n\nAll comments: {SERVICE}/admin\n",
        ),
        (
            "zh",
            "none",
            f"“Lu”在“{PAGE}”发表了评论：\n\n> x\n\n标为垃圾：{{spam}}\n删除：{{deleted}}\n\n"
            f"查看并回复：{BLOG}{PAGE}#comment-1\n\n所有评论：{SERVICE}/admin\n",
        ),
        (
            "zh",
            "first",
            f"“Lu”在“{PAGE}”发表了评论：\n\n> x\n\n"
            "这条评论等待审核（原因：该作者的第一条评论）。\n\n"
            "通过：{visible}\n标为垃圾：{spam}\n删除：{deleted}\n\n"
            f"查看并回复：{BLOG}{PAGE}#comment-1\n\n所有评论：{SERVICE}/admin\n",
        ),
    ],
)
def test_the_owner_is_told_at_once(
    config: Config, outside: Outside, lang: str, state: str, text: str
) -> None:
    settings = {**NAMED, "moderation_hold": state}
    with closing(make_app(replace(config, **settings), outside.world, rounds=1)) as app:
        said(Reader(app), "x", nickname="Lu", lang=lang)
        app.deliver()
    (told,) = texts(outside, OWNER)
    links = {words_of(link)["do"]: link for link in links_in(told)}
    assert told == text.format(**links)


@pytest.mark.parametrize("lang", [["zh"], {}, 5, False])
def test_a_language_is_a_text(visitor: Reader, ann: Reader, lang: object) -> None:
    assert visitor.say("hi", lang=lang, status=400)["code"] == "lang_invalid"
    follow = {"page_url": PAGE, "lang": lang}
    assert ann.post_json("/page/follow", follow, status=400).json["code"] == "lang_invalid"


@named
@pytest.mark.parametrize(
    ("lang", "content", "chinese"),
    [
        ("zh", "Hello", True),
        ("en", "你好", False),
        ("xx", "Bonjour", False),
        (None, "你好", True),
        ("zh-CN", "Hello", True),
        ("en-GB", "你好", False),
        ("", "你好", True),
    ],
)
def test_a_letter_speaks_as_the_widget_did_else_as_the_comment_does(
    app: App, visitor: Reader, outside: Outside, lang: object, content: str, chinese: bool
) -> None:
    visitor.say(content, lang=lang)
    app.deliver()
    (text,) = texts(outside, OWNER)
    assert ("发表了评论" in text, "New comment" in text) == (chinese, not chinese)
    shown = visitor.get(path_of(link_to("spam", text))).text
    assert ('<html lang="zh" dir="ltr">' in shown) == chinese


@named
def test_what_comes_soon_after_is_bundled_within_ten_minutes(
    app: App, visitor: Reader, outside: Outside
) -> None:
    said(visitor, "one")
    app.deliver()
    assert len(outside.letters) == 1
    outside.time += 1
    said(visitor, "two")
    said(visitor, "three", lang="zh", page_url="/other/")
    while len(outside.letters) == 1:
        wait = app.deliver()
        assert 0 < wait <= MINUTE
        outside.time += wait
    assert START + 5 * MINUTE < outside.time - wait <= START + BUNDLED
    message = arrived(outside)[1]
    assert message["Subject"] == "blog.example: 2 new comments"
    text = content(message)
    assert [words_of(link)["id"] for link in links_in(text)] == ["2", "2", "3", "3"]
    assert re.findall("^> (.*)", text, re.M) == ["two", "three"]
    assert text.count(f"{SERVICE}/admin") == 1
    later(app, outside, DAY)
    assert len(outside.letters) == 2


@named
def test_after_ten_quiet_minutes_the_next_is_told_at_once(
    app: App, visitor: Reader, outside: Outside
) -> None:
    for number in range(3):
        said(visitor, str(number))
        app.deliver()
        assert len(outside.letters) == number + 1
        outside.time += BUNDLED


@named
def test_a_clock_that_was_set_back_holds_no_letter(
    app: App, visitor: Reader, outside: Outside
) -> None:
    said(visitor, "one")
    app.deliver()
    outside.time -= 30 * DAY
    said(visitor, "two")
    app.deliver()
    app.tick()
    app.deliver()
    assert len(outside.letters) == 2


def test_more_comments_than_a_letter_takes_are_all_told_of(
    app: App, visitor: Reader, outside: Outside, owner: Reader, db: sqlite3.Connection
) -> None:
    said(visitor)
    app.deliver()
    columns = ", ".join(r[1] for r in db.execute("PRAGMA table_info(comment)") if r[1] != "id")
    for _ in range(450):
        db.execute(f"INSERT INTO comment ({columns}) SELECT {columns} FROM comment WHERE id = 1")
    db.execute(
        "INSERT INTO notification (comment_id, kind, recipient, due_at)"
        " SELECT id, 'owner', '', 1 FROM comment WHERE id > 1"
    )
    db.execute("UPDATE page SET total = 451, threads = 451")
    for _ in range(4):
        later(app, outside)
    told = [len(links_in(text)) // 2 for text in texts(outside)]
    more = [int(n) for text in texts(outside) for n in re.findall("And ([0-9]+) more", text)]
    assert (told, more) == ([1, 20, 20, 20], [180, 180, 30])
    assert db.execute("SELECT DISTINCT kind FROM notification").fetchall() == []


def test_each_admin_has_a_letter_of_his_own_and_none_of_his_own_comments(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    claim(app, CO_OWNER, "Second")
    first = said(visitor, "from a guest")
    app.deliver()
    assert sorted(x.recipient for x in outside.letters) == [CO_OWNER, OWNER]
    assert len({message["Message-ID"] for message in arrived(outside)}) == 2
    assert len({str(links_in(text)) for text in texts(outside)}) == 2
    outside.letters.clear()
    owner.post_json("/admin/reply", {"parent_id": first, "content": "by Owner"})
    said(signed_in(app, CO_OWNER), "by Second", nickname="Second")
    later(app, outside)
    told = {x.recipient: re.findall("^> (.*)", texts(outside)[n], re.M)
            for n, x in enumerate(outside.letters)}  # fmt: skip
    assert told == {OWNER: ["by Second"], CO_OWNER: ["by Owner"]}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        (USUAL, [OWNER]),
        ({**USUAL, "notify_owner": (CO_OWNER, LU)}, [CO_OWNER, LU]),
        (TO_NOBODY, []),
    ],
)
def test_whom_the_settings_name_is_told(
    app: App, visitor: Reader, outside: Outside, owner: Reader, told: list[str]
) -> None:
    said(visitor)
    app.deliver()
    assert [x.recipient for x in outside.letters] == told
    assert outbox(app) == []


def test_before_there_is_an_admin_nobody_is_told_and_nothing_piles_up(
    app: App, visitor: Reader, outside: Outside
) -> None:
    said(visitor)
    app.deliver()
    claim(app, OWNER, "Owner")
    later(app, outside)
    assert outside.letters == []


def test_an_address_is_the_same_however_the_settings_spell_it(
    config: Config, outside: Outside, tmp_path: Path
) -> None:
    environ = {
        "COMMENTD_DATABASE_PATH": config.database_path,
        "COMMENTD_CAPTCHA_PROVIDER": "none",
        "COMMENTD_NOTIFY_OWNER": "Owner@Blog.Example",
        "COMMENTD_SERVER_PUBLIC_URL": SERVICE,
    }
    loaded = commentd.load_config(None, environ)
    with closing(make_app(loaded, outside.world, rounds=1)) as app:
        claim(app, OWNER, "Owner")
        said(signed_in(app, OWNER), nickname="Owner")
        app.deliver()
    assert outside.letters == []


def test_a_comment_of_the_owners_does_not_delay_the_letter_about_the_next_one(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    said(signed_in(app, OWNER), "mine", nickname="Owner")
    app.deliver()
    assert outside.letters == []
    outside.time += 1
    said(visitor, "of a reader")
    app.deliver()
    assert len(outside.letters) == 1


def test_a_guest_who_types_the_owners_address_does_not_hide_from_him(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    said(visitor, "Buy now", email=OWNER)
    app.deliver()
    assert [x.recipient for x in outside.letters] == [OWNER]


@named
def test_what_is_spam_at_once_is_not_told_of(
    app: App, visitor: Reader, outside: Outside, owner: Reader, ann: Reader
) -> None:
    first = said(ann, nickname="Ann")
    app.deliver()
    outside.letters.clear()
    owner.post_json("/admin/blocks", {"kind": "word", "value": "casino"})
    answer = said(visitor, "Casino!", parent_id=first)
    assert status_of(app, answer) == "spam"
    later(app, outside)
    assert outside.letters == []
    judge(owner, answer, "visible")
    later(app, outside)
    assert [x.recipient for x in outside.letters] == [ANN], "who let it through knows of it"


@pytest.mark.parametrize("settings", [{**NAMED, "notify_owner": (OWNER, CO_OWNER)}])
def test_the_letters_of_a_thread_stay_together_in_a_mail_program(
    app: App, visitor: Reader, outside: Outside
) -> None:
    first = said(visitor, "one")
    app.deliver()
    second = said(visitor, "two", parent_id=first)
    later(app, outside)
    said(visitor, "three", parent_id=second)
    later(app, outside)
    said(visitor, "four", page_url="/other/")
    later(app, outside)
    chains = []
    for to in (OWNER, CO_OWNER):
        one, two, three, four = arrived(outside, to)
        ids = [str(m["Message-ID"]) for m in (one, two, three, four)]
        assert all(re.fullmatch(r"<[\w.-]+@[\w.-]+>", each) for each in ids)
        assert [m["In-Reply-To"] for m in (one, two, three, four)] == [None, *ids[:2], None]
        assert one["References"] is four["References"] is None
        assert str(two["References"]).split() == [ids[0]]
        assert str(three["References"]).split() == ids[:2]
        chains += ids
    assert len({*chains}) == 8


@named
def test_a_second_letter_about_a_comment_is_another_letter_of_the_same_thread(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    made = visitor.say("fine", lang="en")
    app.deliver()
    with app.house.store.writing():
        app.house.store.judge(made["comment"]["id"], "waiting", START, "all")
        app.house.store.edit_comment(made["comment"]["id"], "not so fine", "", START)
        app.house.store.notify(made["comment"]["id"], ["owner"], START)
    later(app, outside)
    first, second = arrived(outside, OWNER)
    assert "> not so fine" in content(second)
    assert first["Message-ID"] != second["Message-ID"], "a mail server drops it as a double"
    assert str(first["Message-ID"]) in str(second["References"])


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_words": ("casino",)}])
def test_an_edit_that_makes_a_comment_wait_is_told_with_the_new_text(
    app: App, visitor: Reader, outside: Outside
) -> None:
    made = visitor.say("fine", lang="en")
    app.deliver()
    body = {"content": "A Casino", "edit_token": made["edit_token"]}
    visitor.patch_json("/comments/1", body)
    later(app, outside)
    text = texts(outside, OWNER)[1]
    assert "> A Casino\n\nIt waits for your approval: the word “casino”.\n" in text
    assert visitor.press(link_to("visible", text)).told[0] == "Approved: everybody can read it."


@named
@pytest.mark.parametrize("who", ["owner", "author"])
def test_what_is_hidden_before_its_letter_went_out_is_not_told_of(
    app: App, visitor: Reader, outside: Outside, owner: Reader, who: str
) -> None:
    outside.mail_fails_with = ConnectionRefusedError()
    made = visitor.say("to be hidden", lang="en")
    kept = said(visitor, "to be told")
    app.deliver()
    assert [row["tries"] for row in outbox(app)] == [1]
    if who == "owner":
        judge(owner, 1, "spam")
    else:
        visitor.delete_json("/comments/1", {"edit_token": made["edit_token"]})
    outside.mail_fails_with = None
    later(app, outside)
    (text,) = texts(outside, OWNER)
    assert re.findall("^> (.*)", text, re.M) == ["to be told"]
    assert {words_of(link)["id"] for link in links_in(text)} == {str(kept)}
    if who == "owner":  # he knows of what he judged
        judge(owner, 1, "visible")
    later(app, outside)
    assert len(outside.letters) == 1


@pytest.mark.parametrize("settings", [{**USUAL, "notify_owner": (OWNER, CO_OWNER)}])
def test_what_one_owner_hides_is_told_to_nobody_else_and_the_rest_to_each_once(
    app: App, visitor: Reader, outside: Outside
) -> None:
    def refuse(letter: Any) -> None:
        if letter.recipient == CO_OWNER:
            raise ConnectionRefusedError

    outside.happens = refuse
    for content in ("good", "bad"):
        said(visitor, content)
    app.deliver()
    assert [x.recipient for x in outside.letters] == [OWNER]
    visitor.press(link_to("spam", texts(outside, OWNER)[0].partition("> bad")[2]))
    outside.happens = lambda letter: None
    for _ in range(3):
        later(app, outside)
    told = {to: [re.findall("^> (.*)", text, re.M) for text in texts(outside, to)]
            for to in (OWNER, CO_OWNER)}  # fmt: skip
    assert told == {OWNER: [["good", "bad"]], CO_OWNER: [["good"]]}
    assert outbox(app) == []


@named
@pytest.mark.parametrize("how", ["DELETE", "PATCH"])
def test_of_what_its_author_takes_back_no_email_keeps_the_text(
    app: App, visitor: Reader, outside: Outside, ann: Reader, how: str
) -> None:
    mine = said(ann, "a root", nickname="Ann")
    app.deliver()
    outside.time += BUNDLED
    outside.letters.clear()
    outside.mail_fails_with = ConnectionRefusedError()
    made = visitor.say("CANARY words", lang="en", parent_id=mine)
    said(visitor, "another")
    app.deliver()
    waiting = [read(row["message"]).get_content() for row in outbox(app)]
    assert ["CANARY" in text for text in waiting] == [True, True]
    ask = visitor.delete_json if how == "DELETE" else visitor.patch_json
    body = {"edit_token": made["edit_token"], "content": "other words"}
    ask(f"/comments/{made['comment']['id']}", body)
    assert outbox(app) == []
    outside.time += MINUTE
    app.tick()
    for suffix in ("", "-wal"):
        path = Path(f"{app.house.store.path}{suffix}")
        raw = path.read_bytes() if path.exists() else b""
        assert not [line for text in waiting for line in encoded(text) if line in raw]
        assert b"CANARY" not in raw
    outside.mail_fails_with = None
    later(app, outside)
    told = sorted(re.findall("^> (.*)", text, re.M) for text in texts(outside))
    edited = [["other words", "a root"], ["other words", "another"]]
    assert told == (edited if how == "PATCH" else [["another"]])


def encoded(text: str) -> list[bytes]:
    """The lines of a text as they stand in an email."""
    return base64.encodebytes(text.replace("\n", "\r\n").encode()).split()[:-1]


@named
def test_what_is_edited_while_its_email_is_composed_is_told_as_it_is_then(
    app: App, visitor: Reader, outside: Outside
) -> None:
    made = visitor.say("CANARY words", lang="en")
    while commentd.find_recipients(app.house):
        pass
    drafts = [*commentd.owner_drafts(app.house, OWNER, START)]
    assert [draft.email is not None for draft in drafts] == [True]
    body = {"content": "other words", "edit_token": made["edit_token"]}
    visitor.patch_json("/comments/1", body)
    commentd.write_drafts(app.house.store, drafts, START)
    assert outbox(app) == []
    app.deliver()
    assert [re.findall("^> (.*)", text, re.M) for text in texts(outside)] == [["other words"]]


@named
def test_what_its_author_deletes_while_an_email_leaves_doubles_nothing(
    app: App, visitor: Reader, outside: Outside
) -> None:
    made = visitor.say("first", lang="en")
    said(visitor, "second")
    body = {"edit_token": made["edit_token"]}
    outside.happens = lambda letter: visitor.delete_json("/comments/1", body) and None
    app.deliver()
    outside.happens = lambda letter: None
    later(app, outside)
    assert [re.findall("^> (.*)", text, re.M) for text in texts(outside)] == [["first", "second"]]


@named
def test_hiding_comment_one_holds_no_letter_about_comment_eleven(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    for number in range(10):
        said(visitor, str(number))
    app.deliver()
    outside.mail_fails_with = ConnectionRefusedError()
    said(visitor, "eleven")
    later(app, outside)
    (waiting,) = outbox(app)
    judge(owner, 1, "spam")
    assert outbox(app) == [waiting]


@pytest.mark.parametrize("settings", [{**NAMED, "server_public_url": ""}])
def test_without_a_public_address_no_letter_has_a_link_to_us(
    app: App, visitor: Reader, outside: Outside, ann: Reader
) -> None:
    first = said(ann, nickname="Ann")
    said(visitor, "answer", parent_id=first)
    guest = said(visitor, "guest", email=LU)
    said(visitor, "to a guest", parent_id=guest)
    app.deliver()
    later(app, outside)
    assert sorted({x.recipient for x in outside.letters}) == [ANN, OWNER]
    for message, text in zip(arrived(outside), texts(outside), strict=True):
        assert "/mail" not in text
        assert "/admin" not in text
        assert "None" not in text
        assert message["List-Unsubscribe"] is message["List-Unsubscribe-Post"] is None
        found = re.findall(r"https?://\S+", text)
        assert all(url.startswith(f"{BLOG}{PAGE}#comment-") for url in found)


@pytest.mark.parametrize("settings", [{**NAMED, "server_public_url": "https://b.example/talk"}])
def test_links_keep_the_path_under_which_we_are_reached(
    app: App, visitor: Reader, outside: Outside
) -> None:
    said(visitor)
    app.deliver()
    (text,) = texts(outside)
    assert "https://b.example/talk/admin" in text
    found = re.findall(r"https://b\.example/talk(/mail\?\S+)", text)
    assert len(found) == 2
    assert 'href="home.css"' in visitor.get(found[0]).text


@named
@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("/a b/ü", f"{BLOG}/a%20b/%C3%BC"),
        (f"{BLOG}/x/?a=1", f"{BLOG}/x/?a=1"),
        ("javascript:alert(1)", ""),
        ("//evil.example/", ""),
        ("some-key", ""),
        ("https://me@evil.example/", ""),
    ],
)
def test_a_page_is_linked_only_where_it_can_be_opened(
    app: App, visitor: Reader, outside: Outside, page: str, link: str
) -> None:
    said(visitor, page_url=page)
    app.deliver()
    (text,) = texts(outside)
    found = re.findall(r"Read and reply: (\S+)", text)
    assert found == ([f"{link}#comment-1"] if link else [])


@named
def test_a_page_on_a_host_that_is_not_the_blogs_is_marked(
    app: App, visitor: Reader, outside: Outside
) -> None:
    said(visitor, page_url=f"{BLOG}/x/")
    app.deliver()
    said(visitor, page_url="https://evil.example/x/")
    later(app, outside)
    ours, foreign = (re.sub(r"https://\S+", "", text) for text in texts(outside))
    assert ours != foreign


# The pages of links: what they refuse, and what they leave alone


@pytest.fixture
def links(app: App, visitor: Reader, outside: Outside) -> dict[str, str]:
    """A link of each kind, all good: three about a comment that waits, the one that undoes,
    those of an asking letter and of an answer. Letters hold the others."""
    first = said(visitor, "a question", email=LU, nickname="Lu")
    found = {}
    with app.house.store.writing():
        app.house.store.judge(first, "visible", START)
    said(visitor, "an answer", parent_id=first, nickname="Bob")
    app.deliver()
    (asked,) = texts(outside, LU)
    found["confirm"] = link_to("confirm", asked)
    case = app.house.store.case(first)
    assert case
    answer = commentd.answer_letter(app.house, LU, [(case, case)])
    for do in ("stop", "stop_all"):
        found[do] = link_to(do, read(answer["message"]).get_content())
    stop = {n: w for n, w in words_of(found["stop"]).items() if n not in ("mac", "lang")}
    for do in ("start", "start_all"):
        found[do] = commentd.signed_link(app.house, "en", **{**stop, "do": do})
    with app.house.store.writing():
        app.house.store.judge(first, "waiting", START)
    for do in (*JUDGEMENTS, "waiting"):
        found[do] = commentd.judging_link(app.house, replace(case, status="waiting"), do, to=OWNER)
    outside.letters.clear()
    return found


@named
@pytest.mark.parametrize("do", KINDS)
def test_a_mail_scanner_that_opens_a_link_changes_nothing(
    app: App, visitor: Reader, links: dict[str, str], do: str
) -> None:
    before = rows(app)
    shown = visitor.get(path_of(links[do]))
    assert Shown(shown.text).texts["button"]
    head = visitor.head(path_of(links[do]))
    assert (head.status_int, head.body) == (200, b"")
    assert head.headers["Content-Type"] == shown.headers["Content-Type"]
    visitor.options(path_of(links[do]))
    assert rows(app) == before
    for method in ("PUT", "PATCH", "DELETE"):
        visitor.request(path_of(links[do]), method=method, status=405)


@named
@pytest.mark.parametrize("do", KINDS)
def test_pressing_twice_is_as_good_as_once(
    app: App, visitor: Reader, outside: Outside, links: dict[str, str], do: str
) -> None:
    first = visitor.press(links[do])
    app.deliver()
    app.deliver()
    outside.letters.clear()
    before = rows(app)
    assert visitor.press(links[do]).told[:3] == first.told[:3]
    later(app, outside)
    assert rows(app) == before
    assert outside.letters == []


@named
@pytest.mark.parametrize("was", ["waiting", "visible", "spam", "deleted"])
@pytest.mark.parametrize("do", JUDGEMENTS)
def test_what_a_link_did_can_be_undone(
    app: App, visitor: Reader, links: dict[str, str], do: str, was: str
) -> None:
    with app.house.store.writing():
        app.house.store.judge(1, was, START)
    comment = app.house.store.comment(1)
    assert comment
    link = commentd.judging_link(app.house, comment, do, to=OWNER)
    done = visitor.press(link)
    assert status_of(app, 1) == do
    assert visitor.open(done.action).texts["pre"] == "a question"
    assert status_of(app, 1) == do
    undone = visitor.press(done.action)
    assert status_of(app, 1) == was
    visitor.press(undone.action)
    assert status_of(app, 1) == do


@named
def test_after_a_double_click_the_way_back_is_still_there(
    app: App, visitor: Reader, links: dict[str, str]
) -> None:
    visitor.press(links["deleted"])
    assert visitor.press(links["deleted"]).texts.get("button") == "Undo"


@named
def test_what_a_link_did_is_in_the_audit_log_once(
    visitor: Reader, owner: Reader, links: dict[str, str]
) -> None:
    for do in ("visible", "visible", "spam"):
        visitor.press(links[do])
    lines = owner.get("/admin/audit").json["audit"]
    told = [(line["who"], line["action"], line["subject"], line["detail"]) for line in lines]
    assert told[:2] == [("mail", "spam", "1", ""), ("mail", "visible", "1", "")]
    assert [line["who"] for line in lines].count("mail") == 2


@named
def test_many_who_press_at_once_are_as_good_as_one(
    app: App, links: dict[str, str], owner: Reader
) -> None:
    def press(_: int) -> tuple[str, ...]:
        return Shown(PlainReader(app).post(path_of(links["visible"])).text).told[:3]

    with ThreadPoolExecutor(8) as pool:
        assert len({*pool.map(press, range(40))}) == 1
    lines = owner.get("/admin/audit").json["audit"]
    assert [line["who"] for line in lines].count("mail") == 1


class PlainReader(Reader):
    """One of many at once, who can't compare the database before and after."""

    def do_request(self, req: Any, *args: Any, **kw: Any) -> Any:
        return super(Visitor, self).do_request(req, *args, **kw)


@named
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("do", KINDS)
def test_the_page_of_a_link_speaks_the_language_of_its_letter(
    app: App, visitor: Reader, links: dict[str, str], do: str, lang: str
) -> None:
    words = {n: w for n, w in words_of(links[do]).items() if n not in ("mac", "lang")}
    link = commentd.signed_link(app.house, lang, **words)
    shown, done = visitor.open(link), visitor.press(link)
    asked, button = LETTERS[lang][f"page_{do}"], LETTERS[lang][f"button_{do}"]
    if do == "waiting":  # as it does already
        asked, button = LETTERS[lang]["done_waiting"], LETTERS[lang]["undo"]
    assert (shown.told[0], shown.told[3]) == (asked.format(site="blog.example"), button)
    assert done.told[0] == LETTERS[lang][f"done_{do}"]
    if done.action:
        assert done.told[3] == LETTERS[lang]["undo"]
    broken = visitor.get(f"/mail?lang={lang}", status=403).text
    assert Shown(broken).told[0] == LETTERS[lang]["bad"]
    for text in (broken, visitor.get(path_of(link)).text):
        assert f'<html lang="{lang}" dir="ltr">' in text


@pytest.mark.parametrize("settings", [{**USUAL, "moderation_hold": "all"}])
def test_the_links_of_one_who_is_no_owner_any_more_do_nothing(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    said(visitor)
    app.deliver()
    link = link_to("visible", texts(outside, OWNER)[0])
    with closing(sqlite3.connect(app.house.store.path, isolation_level=None)) as db:
        db.execute("UPDATE account SET role = 'user'")
        visitor.get(path_of(link), status=403), visitor.post(path_of(link), status=403)
        assert status_of(app, 1) == "waiting"
        db.execute("UPDATE account SET role = 'admin'")
    assert visitor.press(link).told[0] == LETTERS["en"]["done_visible"]


@named
def test_what_is_erased_while_its_link_is_pressed_is_gone(
    app: App, visitor: Reader, links: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = commentd.judged

    def judged_late(cx: Any, number: int, *words: Any, **more: Any) -> Any:
        cx.store.erase_comment(number)  # by another, whose turn to write came first
        return real(cx, number, *words, **more)

    monkeypatch.setattr(commentd, "judged", judged_late)
    reply = Shown(PlainReader(app).post(path_of(links["visible"]), expect_errors=True).text)
    assert reply.told == ("This comment is gone.", "", "", "")


@named
@pytest.mark.parametrize("do", JUDGEMENTS)
@pytest.mark.parametrize("what", ["content", "nickname"])
def test_a_text_that_was_edited_since_is_shown_again(
    app: App, visitor: Reader, owner: Reader, links: dict[str, str], do: str, what: str
) -> None:
    owner.patch_json("/admin/comments/1", {what: "Other"})
    shown = visitor.open(links[do])
    before = rows(app)
    again = visitor.press(links[do], status=409)
    assert shown.told == again.told
    title = "The text has changed since this email was sent. Please look again:"
    who = {"nickname": "Other", "content": "Lu"}[what]
    text = {"nickname": "a question", "content": "Other"}[what]
    label = {"visible": "Approve", "spam": "It is spam", "deleted": "Delete"}[do]
    assert again.told == (title, f"{who} · {PAGE}", text, label)
    assert rows(app) == before
    visitor.press(again.action)
    assert status_of(app, 1) == do
    visitor.press(links[do], status=409)


@named
@pytest.mark.parametrize("do", JUDGEMENTS)
def test_what_is_gone_can_not_be_judged(
    app: App, visitor: Reader, links: dict[str, str], do: str
) -> None:
    with app.house.store.writing():
        app.house.store.erase_comment(1)
    gone = ("This comment is gone.", "", "", "")
    assert visitor.open(links[do], status=404).told == gone
    assert visitor.press(links[do], status=404).told == gone


BAD = "This link is incomplete or too old. Please use the one in the newest email."


@named
@pytest.mark.parametrize("do", [*JUDGEMENTS, "waiting"])
def test_a_link_to_judge_is_good_for_thirty_days(
    app: App, visitor: Reader, outside: Outside, links: dict[str, str], do: str
) -> None:
    outside.time = START + 30 * DAY - 1
    assert visitor.open(links[do]).texts["button"]
    back = visitor.press(links["visible"]).action
    before = rows(app)
    outside.time += 1
    for link in (links[do], back):
        assert visitor.open(link, status=403).told == (BAD, "", "", "")
        assert visitor.press(link, status=403).told == (BAD, "", "", "")
    assert rows(app) == before


def refused(visitor: Reader, query: str) -> None:
    """As a page, whichever way it is asked for; nothing changes, which the reader sees to."""
    for method in ("GET", "POST"):
        reply = visitor.request(f"/mail?{query}", method=method, status=403)
        assert Shown(reply.text).told[1:] == ("", "", "")
        assert Shown(reply.text).told[0] in {each["bad"] for each in LETTERS.values()}
    assert visitor.head(f"/mail?{query}", status=403).body == b""


@named
@pytest.mark.parametrize("do", KINDS)
def test_a_link_with_any_word_changed_left_out_or_added_is_refused(
    visitor: Reader, links: dict[str, str], do: str
) -> None:
    words = words_of(links[do])
    visitor.open(links[do])
    other = {
        "do": [*{*KINDS, "undo", "pinned"} - {do}],
        "id": ["2", "0", "-1", "1.0", "01", "+1", "1 ", "x", "１", "9" * 30, "1e3", "None"],
        "was": ["visible", "spam", "stop", "pinned"],
        "who": [mac(b"x" * 32, "subscriber", ANN)[:32], ANN, "0"],
        "lang": ["zh", "xx", "en\0", "de"],
        "version": ["0" * 16, words.get("version", "a").upper() + "a"],
        "until": [str(START + 60 * DAY), "x", "9" * 30, "-1", "1e99", "inf"],
        "mac": ["0" * 32, words["mac"].upper() + "=", words["mac"][:-1], words["mac"] + "0", "é"],
    }
    for name, value in words.items():
        for changed in [*other[name], "", value + value, "\u2028", "\U0001f600", "'"]:
            refused(visitor, urlencode({**words, name: changed}))
        refused(visitor, urlencode({n: v for n, v in words.items() if n != name}))
        refused(visitor, urlencode({n.upper() if n == name else n: v for n, v in words.items()}))
    for extra in ("page", "who", "until", "undo", "x", "id", "status"):
        if extra not in words:
            refused(visitor, urlencode({**words, extra: "1"}))
    refused(visitor, "")
    refused(visitor, "mac=" + words["mac"])


@named
@pytest.mark.parametrize("do", KINDS)
def test_a_link_with_a_word_twice_is_refused(
    visitor: Reader, links: dict[str, str], do: str
) -> None:
    query = urlsplit(links[do]).query
    for name, value in words_of(links[do]).items():
        refused(visitor, f"{query}&{urlencode({name: value})}")
        refused(visitor, f"{name}=x&{query}")
    refused(visitor, "%3Cb%3E=1&%3Cb%3E=2")


@pytest.mark.slow
@named
def test_no_words_pass_under_the_seal_of_another_link(
    app: App, visitor: Reader, links: dict[str, str]
) -> None:
    said_in = {do: words_of(link) for do, link in links.items()}
    for one in KINDS:
        for other in KINDS:
            if one != other:
                for words in (
                    {**said_in[one], "mac": said_in[other]["mac"]},
                    {**said_in[other], **said_in[one], "mac": said_in[other]["mac"]},
                    {**said_in[one], "do": other},
                ):
                    if words != said_in[one]:
                        refused(visitor, urlencode(words))


@named
def test_no_other_secret_of_ours_seals_a_link(
    app: App, visitor: Reader, links: dict[str, str]
) -> None:
    key = app.house.key
    words = words_of(links["spam"])
    bare = {name: value for name, value in words.items() if name != "mac"}
    pairs = [f"{name}={bare[name]}" for name in sorted(bare)]
    comment = app.house.store.comment(1)
    assert comment
    seals = [mac(key, purpose, *pairs)[:32] for purpose in ("edit", "subscriber", "message", "")]
    seals += [mac(key, "edit", 1, comment.created_at, comment.nickname)[:32]]
    seals += [mac(key, "link")[:32], mac(b"another key" * 3, "link", *pairs)[:32]]
    seals += [mac(key, "link", "&".join(pairs))[:32], commentd.subscriber_of(key, LU), key.decode()]
    for seal in seals:
        refused(visitor, urlencode({**bare, "mac": seal}))
    refused(visitor, urlencode({"mac": mac(key, "subscriber", LU)[:32]}))


QUERIES = st.lists(
    st.tuples(
        st.sampled_from(["do", "id", "page", "who", "lang", "version", "until", "mac", "x", ""]),
        st.text(max_size=12) | st.sampled_from([*KINDS, "1", "-1", "en", "zh", "9" * 25]),
    ),
    max_size=9,
)


@named
@how(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(QUERIES)
@example([("do", "")])
@example([("lang", "zh"), ("lang", "en")])
def test_no_query_that_was_made_up_does_anything(
    visitor: Reader, pairs: list[tuple[str, str]]
) -> None:
    query = urlencode([(n, v.encode("utf-8", "replace").decode()) for n, v in pairs])
    for method in ("GET", "POST"):
        reply = visitor.request(f"/mail?{query}", method=method, expect_errors=True)
        assert reply.status_int == 403


@named
@pytest.mark.parametrize("query", ["do=%ff", "%ff=1", "do=%ed%a0%80", "&".join("a" * 300)])
def test_a_query_that_is_no_query_is_refused(visitor: Reader, query: str) -> None:
    for method in ("GET", "POST"):
        reply = visitor.request(f"/mail?{query}", method=method, expect_errors=True)
        assert 400 <= reply.status_int < 500


@named
def test_words_of_a_language_that_anybody_makes_up_take_no_memory(visitor: Reader) -> None:
    for number in range(50):
        visitor.get(f"/mail?lang=x{number}", status=403)
    kept = {id(commentd.letter_words(f"x{number}")) for number in range(50)}
    assert kept == {id(commentd.letter_words("en"))}


@named
def test_a_link_asks_neither_for_a_token_nor_for_an_origin(
    app: App, visitor: Reader, links: dict[str, str]
) -> None:
    for headers in (
        {"Authorization": "Bearer nonsense"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Authorization": "Basic eA=="},
    ):
        visitor.get(path_of(links["spam"]), headers=headers)
        visitor.post(path_of(links["visible"]), headers=headers)


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
@pytest.mark.parametrize("content", HOSTILE)
def test_what_people_write_is_only_text_on_the_page_of_a_link(
    app: App, visitor: Reader, outside: Outside, content: str
) -> None:
    page = "/" + content[:40].replace("\u2028", "").replace("\u2029", "").strip()
    nickname = re.sub("[^ -~\u0600-\u06ff]", "", content)[:64].strip()
    said(visitor, content, nickname=nickname, page_url=page)
    app.deliver()
    (text,) = texts(outside, OWNER)
    for do in ("spam", "deleted"):
        shown = visitor.open(link_to(do, text))
        assert shown.texts["pre"] == content.strip()
        assert shown.texts["p"].startswith(f"{nickname} · /")
        done = visitor.press(link_to(do, text))
        assert done.texts["pre"] == content.strip()


WRITTEN = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80)


@named
@how(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WRITTEN, WRITTEN, WRITTEN)
def test_whatever_a_row_holds_the_page_of_its_link_has_our_markup_only(
    app: App, visitor: Reader, links: dict[str, str], content: str, nickname: str, page: str
) -> None:
    with app.house.store.writing():
        store = app.house.store
        store.run("UPDATE comment SET content = :c, nickname = :n WHERE id = 1",
                  c=content, n=nickname)  # fmt: skip
        store.run("UPDATE page SET page_url = :p", p=page)
    shown = visitor.open(links["visible"])
    assert shown.texts["pre"] == content
    assert shown.texts["p"] == f"{nickname} · {page}"


@named
def test_a_name_can_not_turn_the_line_that_it_stands_in(
    visitor: Reader, owner: Reader, links: dict[str, str]
) -> None:
    owner.patch_json("/admin/comments/1", {"nickname": "ليلى"})
    assert visitor.open(links["visible"]).texts.get("bdi", "").startswith("ليلى")


# Answers to authors


@to_nobody
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_who_has_an_account_is_told_of_an_answer_at_once(
    app: App, visitor: Reader, outside: Outside, ann: Reader, lang: str
) -> None:
    first = said(ann, "Why?\nWhy not?", nickname="Ann", lang=lang)
    said(visitor, "Because.", parent_id=first, nickname="Bob", lang="zh" if lang == "en" else "en")
    app.deliver()
    (letter,) = outside.letters
    (text,) = texts(outside, ANN)
    stop, stop_all = links_in(text)
    assert (words_of(stop)["do"], words_of(stop_all)["do"]) == ("stop", "stop_all")
    link = f"{BLOG}{PAGE}#comment-2"
    expected = {
        "en": f"“Bob” replied to you at blog.example:\n\n> Because.\n\nYou wrote:\n\n"
        f"> Why?\n> Why not?\n\nRead and reply: {link}\n\n"
        f"No more emails about this page: {stop}\nNo more emails at all: {stop_all}\n",
        "zh": f"“Bob”在 blog.example 回复了你：\n\n> Because.\n\n你写的是：\n\n"
        f"> Why?\n> Why not?\n\n查看并回复：{link}\n\n"
        f"不再接收这个页面的邮件：{stop}\n不再接收任何回复邮件：{stop_all}\n",
    }
    assert text == expected[lang]
    (message,) = arrived(outside)
    subject = {"en": "blog.example: a reply to you", "zh": "blog.example：有人回复了你"}
    assert message["Subject"] == subject[lang]
    assert sorted(message.keys()) == sorted([*HEADERS, *ANSWER_HEADERS])
    assert "\r\n\r\n" in letter.message


ANSWER_HEADERS = ["In-Reply-To", "References", "List-Unsubscribe", "List-Unsubscribe-Post"]


@to_nobody
def test_the_header_to_unsubscribe_is_an_address_as_it_is(
    app: App, visitor: Reader, outside: Outside, ann: Reader
) -> None:
    first = said(ann, nickname="Ann")
    said(visitor, parent_id=first)
    app.deliver()
    (text,) = texts(outside)
    head = outside.letters[0].message.partition("\r\n\r\n")[0].replace("\r\n ", " ").split("\r\n")
    assert f"List-Unsubscribe: <{link_to('stop', text)}>" in head
    assert "List-Unsubscribe-Post: List-Unsubscribe=One-Click" in head


@pytest.mark.parametrize(
    "settings", [{**TO_NOBODY, "mail_sender": f"c@{'a-long-name-' * 5}.blog-of-somebody.example"}]
)
def test_a_long_address_of_the_sender_leaves_the_names_of_letters_whole(
    app: App, visitor: Reader, outside: Outside, ann: Reader
) -> None:
    first = said(ann, nickname="Ann")
    second = said(ann, parent_id=first, nickname="Ann")
    said(visitor, parent_id=second)
    app.deliver()
    head = outside.letters[0].message.partition("\r\n\r\n")[0].replace("\r\n ", " ").split("\r\n")
    for name, count in (("Message-ID", 1), ("In-Reply-To", 1), ("References", 2)):
        (line,) = [line for line in head if line.startswith(f"{name}: ")]
        assert len(re.findall(r"<comment-\d+-[0-9a-f]+@[a-z.-]+>", line)) == count, line
        assert "=?" not in line


@to_nobody
def test_answers_that_come_soon_after_are_bundled(
    app: App, visitor: Reader, outside: Outside, ann: Reader
) -> None:
    first = said(ann, "mine", nickname="Ann")
    said(visitor, "one", parent_id=first)
    app.deliver()
    outside.time += 1
    said(visitor, "two", parent_id=first)
    said(visitor, "three", parent_id=first)
    while len(outside.letters) == 1:
        wait = app.deliver()
        assert 0 < wait <= MINUTE
        outside.time += wait
    assert outside.time - wait <= START + BUNDLED
    message = arrived(outside, ANN)[1]
    assert message["Subject"] == "blog.example: 2 replies to you"
    quotes = re.findall("^> (.*)", content(message), re.M)
    assert quotes == ["two", "mine", "three", "mine"]
    assert len(links_in(message.get_content())) == 2
    later(app, outside, DAY)
    assert len(outside.letters) == 2


@to_nobody
def test_letters_about_two_pages_can_be_ended_for_each(
    app: App, visitor: Reader, outside: Outside, ann: Reader
) -> None:
    pages = ["/one/", "/two/"]
    mine = {page: said(ann, page, nickname="Ann", page_url=page) for page in pages}
    for page in pages:
        said(visitor, parent_id=mine[page], page_url=page)
    app.deliver()
    for link in links_in("\n".join(texts(outside))):
        if words_of(link)["do"] == "stop":
            visitor.press(link)
    outside.letters.clear()
    for page in pages:
        said(visitor, "more", parent_id=mine[page], page_url=page)
    later(app, outside)
    assert outside.letters == []


@to_nobody
def test_answers_on_many_pages_are_few_letters_an_hour_and_none_is_lost(
    app: App, visitor: Reader, outside: Outside, ann: Reader
) -> None:
    for number in range(9):
        mine = said(ann, nickname="Ann", page_url=f"/{number}/")
        said(visitor, f"on {number}", parent_id=mine, page_url=f"/{number}/")
    for _ in range(50):
        app.deliver()
        outside.time += MINUTE
    assert len(outside.letters) == 6
    for _ in range(30):
        later(app, outside, MINUTE)
    told = [re.findall("^> (on .*)", text, re.M) for text in texts(outside, ANN)]
    assert sorted(told) == [[f"on {number}"] for number in range(9)]


@to_nobody
def test_nobody_else_pays_for_one_who_is_bundled(
    app: App, visitor: Reader, outside: Outside, ann: Reader
) -> None:
    anns = said(ann, "Ann's", nickname="Ann")
    lus = said(visitor, "Lu's", email=LU)
    said(visitor, "to Ann", parent_id=anns)
    app.deliver()
    outside.letters.clear()
    said(visitor, "to Ann again", parent_id=anns)
    said(visitor, "to Lu", parent_id=lus)
    app.deliver()
    assert [x.recipient for x in outside.letters] == [LU]


@to_nobody
def test_a_guest_is_asked_once(app: App, visitor: Reader, outside: Outside) -> None:
    for number in range(3):
        mine = said(visitor, f"question {number}", email=LU, page_url=f"/{number}/")
        for _ in range(2):
            said(visitor, "answer", parent_id=mine, page_url=f"/{number}/")
        later(app, outside)
    later(app, outside, 400 * DAY)
    app.tick()
    mine = said(visitor, "a year later", email=LU)
    said(visitor, "answer", parent_id=mine)
    later(app, outside)
    assert len(arrived(outside, LU)) == 1
    assert len(outside.letters) == 1


@to_nobody
def test_a_guest_is_not_asked_before_there_is_an_answer(
    app: App, visitor: Reader, outside: Outside
) -> None:
    said(visitor, email=LU)
    later(app, outside, DAY)
    assert outside.letters == []


@to_nobody
def test_the_letter_that_asks_holds_nothing_that_a_stranger_typed(
    app: App, visitor: Reader, outside: Outside
) -> None:
    for email, evil in ((LU, "x"), (ANN, "https://evil.example/?a=1")):
        fields = {"nickname": evil, "page_url": f"/{evil}", "website": "https://evil.example/"}
        mine = said(visitor, evil, email=email, **fields)
        said(visitor, evil, nickname=evil, page_url=f"/{evil}", parent_id=mine)
    app.deliver()
    told = []
    for message in arrived(outside):
        (link,) = links_in(message.get_content())
        assert {*words_of(link)} <= {"do", "id", "who", "lang", "mac", "until"}
        told.append((message["Subject"], message.get_content().replace(link, "")))
        assert message["References"] is message["In-Reply-To"] is None
    assert len(told) == 2
    assert told[0] == told[1]
    assert "evil" not in outside.letters[0].message + outside.letters[1].message


@to_nobody
def test_who_confirms_gets_all_the_answers_that_waited(
    app: App, visitor: Reader, outside: Outside
) -> None:
    one = said(visitor, "one", email=LU)
    two = said(visitor, "two", email=LU, page_url="/other/")
    said(visitor, "to one", parent_id=one)
    app.deliver()
    said(visitor, "to two", parent_id=two, page_url="/other/")
    later(app, outside)
    (asked,) = texts(outside, LU)
    visitor.press(link_to("confirm", asked))
    later(app, outside)
    later(app, outside)
    told = [quote for text in texts(outside, LU) for quote in re.findall("^> (.*)", text, re.M)]
    assert sorted(told) == ["one", "to one", "to two", "two"]


@to_nobody
def test_who_confirms_again_is_not_told_again(app: App, visitor: Reader, outside: Outside) -> None:
    mine = said(visitor, "mine", email=LU)
    said(visitor, "answer", parent_id=mine)
    app.deliver()
    confirm = link_to("confirm", outside.text())
    for _ in range(3):
        visitor.press(confirm)
        later(app, outside)
    assert len(arrived(outside, LU)) == 2, "one that asked, one that told"


@to_nobody
def test_a_reply_is_told_later_while_what_it_replies_to_waits_for_the_owner(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    mine = said(visitor, "mine", email=LU)
    said(visitor, "first", parent_id=mine)
    app.deliver()
    visitor.press(link_to("confirm", outside.text()))
    later(app, outside)
    outside.letters.clear()
    said(visitor, "second", parent_id=mine)
    judge(owner, mine, "waiting")
    later(app, outside)
    assert texts(outside, LU) == []
    judge(owner, mine, "visible")
    later(app, outside, HOUR)
    assert [re.findall("^> (.*)", text, re.M) for text in texts(outside, LU)] == [
        ["second", "mine"]
    ]


@to_nobody
def test_who_confirmed_is_told_of_what_comes_on_other_pages(
    app: App, visitor: Reader, outside: Outside
) -> None:
    mine = said(visitor, email=LU)
    said(visitor, parent_id=mine)
    app.deliver()
    visitor.press(link_to("confirm", outside.text()))
    later(app, outside)
    other = said(visitor, "other", email=LU, page_url="/other/")
    said(visitor, "there", parent_id=other, page_url="/other/")
    later(app, outside)
    assert [re.findall("^> (.*)", text, re.M) for text in texts(outside, LU)[1:]] == [
        ["hi", "hi"],
        ["there", "other"],
    ]


@to_nobody
def test_to_confirm_is_the_right_of_the_one_address_that_was_asked(
    app: App, visitor: Reader, outside: Outside, db: sqlite3.Connection
) -> None:
    mine = said(visitor, email=LU)
    said(visitor, parent_id=mine)
    app.deliver()
    confirm = link_to("confirm", outside.text())
    # A backup was restored, and the number given again.
    db.execute("UPDATE comment SET email = 'eve@example.com' WHERE id = ?", (mine,))
    visitor.press(confirm)
    answer = said(visitor, "to Eve", parent_id=mine)
    later(app, outside)
    letters = [text for text in texts(outside, "eve@example.com") if "> to Eve" in text]
    assert (letters, status_of(app, answer)) == ([], "visible")


def test_nobody_is_told_of_his_own_answer(
    app: App, visitor: Reader, outside: Outside, owner: Reader, ann: Reader
) -> None:
    mine = said(ann, "mine", nickname="Ann")
    said(ann, "and more", nickname="Ann", parent_id=mine)
    guests = said(visitor, "a guest's", email=LU)
    said(visitor, "and more", email=LU, parent_id=guests)
    owners = said(signed_in(app, OWNER), "the owner's", nickname="Owner")
    owner.post_json("/admin/reply", {"parent_id": owners, "content": "and more"})
    app.deliver()
    later(app, outside)
    assert {x.recipient for x in outside.letters} == {OWNER}
    told = [quote for text in texts(outside) for quote in re.findall("^> (.*)", text, re.M)]
    assert sorted(told) == ["a guest's", "and more", "and more", "mine"]


def test_an_answer_to_the_owner_is_told_once_with_the_links_to_judge_it(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    first = said(signed_in(app, OWNER), "mine", nickname="Owner")
    said(visitor, "answer", parent_id=first)
    app.deliver()
    later(app, outside)
    (text,) = texts(outside, OWNER)
    assert {words_of(link)["do"] for link in links_in(text)} == {"spam", "deleted"}


@pytest.mark.parametrize("settings", [{**USUAL, "notify_owner": (CO_OWNER,)}])
def test_an_admin_who_is_not_told_of_comments_is_told_of_answers(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    first = said(signed_in(app, OWNER), "mine", nickname="Owner")
    said(visitor, "answer", parent_id=first)
    app.deliver()
    (text,) = texts(outside, OWNER)
    assert {words_of(link)["do"] for link in links_in(text)} == {"stop", "stop_all"}


@to_nobody
def test_an_address_that_a_guest_types_holds_back_no_answer_to_its_owner(
    app: App, visitor: Reader, outside: Outside, ann: Reader
) -> None:
    first = said(ann, nickname="Ann")
    said(visitor, "You can't see this, Ann", parent_id=first, email=ANN)
    app.deliver()
    assert [x.recipient for x in outside.letters] == [ANN]


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "moderation_hold": "all"}])
def test_an_answer_that_waits_is_told_when_it_is_approved(
    app: App, visitor: Reader, outside: Outside, owner: Reader, ann: Reader
) -> None:
    first = said(ann, "mine", nickname="Ann")
    judge(owner, first, "visible")
    answer = said(visitor, "answer", parent_id=first)
    later(app, outside)
    assert outside.letters == []
    judge(owner, answer, "visible")
    app.deliver()
    assert [x.recipient for x in outside.letters] == [ANN]
    judge(owner, answer, "waiting")
    judge(owner, answer, "visible")
    later(app, outside)
    assert len(outside.letters) == 1


@held
def test_an_answer_is_told_when_it_is_approved_by_a_link(
    app: App, visitor: Reader, outside: Outside, owner: Reader, ann: Reader
) -> None:
    first = said(ann, "mine", nickname="Ann")
    judge(owner, first, "visible")
    app.deliver()
    said(visitor, "answer", parent_id=first)
    later(app, outside)
    assert arrived(outside, ANN) == []
    app.house.posted.clear()
    visitor.press(link_to("visible", texts(outside, OWNER)[-1]))
    assert app.house.posted.is_set(), "the postman is not called"
    app.deliver()
    assert len(arrived(outside, ANN)) == 1


@to_nobody
@pytest.mark.parametrize("status", ["spam", "deleted", "waiting"])
def test_nothing_is_told_about_an_answer_to_what_is_hidden(
    app: App, visitor: Reader, outside: Outside, owner: Reader, ann: Reader, status: str
) -> None:
    first = said(ann, "mine", nickname="Ann")
    said(visitor, "answer", parent_id=first)
    judge(owner, first, status)
    later(app, outside)
    assert outside.letters == []


@to_nobody
@pytest.mark.parametrize("which", ["answer", "above"])
def test_an_answer_is_not_told_when_it_or_what_it_answers_was_hidden_before_the_letter_left(
    app: App, visitor: Reader, outside: Outside, owner: Reader, ann: Reader, which: str
) -> None:
    first = said(ann, "mine", nickname="Ann")
    answer = said(visitor, "answer", parent_id=first)
    outside.mail_fails_with = ConnectionRefusedError()
    app.deliver()
    assert len(outbox(app)) == 1
    judge(owner, answer if which == "answer" else first, "spam")
    outside.mail_fails_with = None
    later(app, outside, HOUR)
    assert outside.letters == []
    judge(owner, answer if which == "answer" else first, "visible")
    later(app, outside, HOUR)
    assert [x.recipient for x in outside.letters] == [ANN] * (which == "answer")


@to_nobody
def test_a_guest_who_is_hidden_before_he_was_asked_is_not_asked(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    mine = said(visitor, email=LU)
    said(visitor, parent_id=mine)
    outside.mail_fails_with = ConnectionRefusedError()
    app.deliver()
    judge(owner, mine, "spam")
    outside.mail_fails_with = None
    later(app, outside, HOUR)
    assert outside.letters == []


@to_nobody
def test_a_guest_whose_question_was_dropped_is_asked_when_he_is_shown_again(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    mine = said(visitor, email=LU)
    said(visitor, parent_id=mine)
    outside.mail_fails_with = ConnectionRefusedError()
    app.deliver()
    judge(owner, mine, "waiting")
    outside.mail_fails_with = None
    later(app, outside, HOUR)
    assert outside.letters == []
    judge(owner, mine, "visible")
    said(visitor, "one more", parent_id=mine)
    later(app, outside, HOUR)
    assert [x.recipient for x in outside.letters] == [LU]


@to_nobody
def test_nobody_is_asked_about_an_answer_of_his_own_with_his_account(
    app: App, visitor: Reader, outside: Outside, ann: Reader
) -> None:
    guests = said(visitor, "before I signed in", email=ANN)
    said(ann, "and after", nickname="Ann", parent_id=guests)
    app.deliver()
    assert outside.letters == []


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
def answered(app: App, visitor: Reader, outside: Outside, ann: Reader) -> str:
    """A letter about an answer to Ann, who wrote on two pages."""
    mine = [said(ann, p, nickname="Ann", page_url=p) for p in ("/one/", "/two/")]
    assert mine == [1, 2]
    said(visitor, "answer", parent_id=1, page_url="/one/")
    app.deliver()
    (text,) = texts(outside, ANN)
    outside.letters.clear()
    return text


def answers_arrive(app: App, visitor: Reader, outside: Outside) -> list[str]:
    """On which pages Ann is told of answers now."""
    outside.letters.clear()
    told = []
    for parent, page in ((1, "/one/"), (2, "/two/")):
        said(visitor, f"again {outside.time}", parent_id=parent, page_url=page)
        later(app, outside)
        told += [page] * bool(arrived(outside, ANN))
        outside.letters.clear()
    return told


@to_nobody
@pytest.mark.parametrize(("body", "kind"), ONE_CLICKS)
@pytest.mark.parametrize("origin", ["", "https://mail.example", "null"])
def test_one_click_ends_the_letters_about_a_page(
    app: App, visitor: Reader, outside: Outside, answered: str, body: str, kind: str, origin: str
) -> None:
    headers = {"Origin": origin} if origin else {}
    if kind:
        headers["Content-Type"] = kind
    for _ in range(3):
        reply = visitor.request(
            path_of(link_to("stop", answered)),
            method="POST",
            body=body.encode("latin-1"),
            headers=headers,
        )
        assert Shown(reply.text).told[0] == "You won’t get any more emails about this page."
    assert answers_arrive(app, visitor, outside) == ["/two/"]


@to_nobody
def test_all_letters_can_be_ended(
    app: App, visitor: Reader, outside: Outside, answered: str
) -> None:
    stop_all = link_to("stop_all", answered)
    shown = visitor.open(stop_all)
    assert shown.told == ("No more emails about replies at all?", "", "", "No more emails at all")
    assert answers_arrive(app, visitor, outside) == ["/one/", "/two/"]
    for _ in range(2):
        assert visitor.press(stop_all).told[0] == "You won’t get any more emails about replies."
    assert answers_arrive(app, visitor, outside) == []


@to_nobody
def test_unsubscribing_is_for_one_address_alone(
    app: App, visitor: Reader, outside: Outside, answered: str
) -> None:
    lus = said(visitor, email=LU, page_url="/one/")
    said(visitor, "to Lu", parent_id=lus, page_url="/one/")
    later(app, outside)
    visitor.press(link_to("confirm", texts(outside, LU)[-1]))
    later(app, outside)
    for do in ("stop", "stop_all"):
        visitor.press(link_to(do, answered))
    outside.letters.clear()
    said(visitor, "again to Lu", parent_id=lus, page_url="/one/")
    later(app, outside)
    assert [x.recipient for x in outside.letters] == [LU]


@to_nobody
def test_what_waits_for_its_bundle_is_not_told_to_one_who_has_had_enough(
    app: App, visitor: Reader, outside: Outside, answered: str
) -> None:
    said(visitor, "soon after", parent_id=1, page_url="/one/")
    app.deliver()
    visitor.press(link_to("stop", answered))
    later(app, outside)
    assert outside.letters == []


@to_nobody
def test_who_ended_letters_as_a_guest_is_not_asked_again(
    app: App, visitor: Reader, outside: Outside
) -> None:
    mine = said(visitor, email=LU)
    said(visitor, parent_id=mine)
    app.deliver()
    visitor.press(link_to("confirm", outside.text()))
    later(app, outside)
    visitor.press(link_to("stop_all", outside.text()))
    outside.letters.clear()
    other = said(visitor, "other", email=LU, page_url="/other/")
    said(visitor, "answer", parent_id=other, page_url="/other/")
    later(app, outside)
    assert outside.letters == []


@to_nobody
@pytest.mark.parametrize("do", ["stop", "stop_all"])
def test_unsubscribing_can_be_undone(
    app: App, visitor: Reader, outside: Outside, answered: str, do: str
) -> None:
    done = visitor.press(link_to(do, answered))
    assert done.texts.get("button") == "Undo"
    visitor.press(done.action)
    assert answers_arrive(app, visitor, outside) == ["/one/", "/two/"]


@to_nobody
@pytest.mark.parametrize(
    ("first", "then", "told"), [("stop_all", "stop", []), ("stop", "stop_all", ["/two/"])]
)
def test_to_undo_one_of_two_leaves_the_other(
    app: App,
    visitor: Reader,
    outside: Outside,
    answered: str,
    first: str,
    then: str,
    told: list[str],
) -> None:
    visitor.press(link_to(first, answered))
    visitor.press(visitor.press(link_to(then, answered)).action)
    assert answers_arrive(app, visitor, outside) == told


@to_nobody
@pytest.mark.parametrize("when", ["before", "after"])
def test_unsubscribing_holds_when_the_page_gets_another_address(
    app: App, visitor: Reader, outside: Outside, owner: Reader, answered: str, when: str
) -> None:
    said(visitor, "there first", page_url="/three/")
    if when == "after":
        visitor.press(link_to("stop", answered))
    owner.patch_json("/admin/pages/1", {"page_url": "/three/", "merge": True})
    if when == "before":
        visitor.press(link_to("stop", answered))
    later(app, outside)
    app.tick()
    outside.letters.clear()
    said(visitor, "again", parent_id=1, page_url="/three/")
    later(app, outside)
    assert arrived(outside, ANN) == []


@to_nobody
def test_a_subscription_holds_no_address(
    app: App, visitor: Reader, outside: Outside, answered: str
) -> None:
    mine = said(visitor, email=LU)
    said(visitor, parent_id=mine)
    later(app, outside)
    visitor.press(link_to("confirm", texts(outside, LU)[-1]))
    for do in ("stop", "stop_all"):
        visitor.press(link_to(do, answered))
    kept = rows(app)["subscription"]
    assert [(page, state) for _, page, state in kept] in (
        [(0, "no"), (1, "no"), (0, "yes")],
        [(0, "yes"), (0, "no"), (1, "no")],
    )
    assert all(re.fullmatch("[0-9a-f]{32}", who) for who, *_ in kept)
    text = " ".join(links_in(answered)) + json.dumps(kept)
    assert not [
        word for word in (ANN, LU, "ann", "example", "%40") if word in text.replace(SERVICE, "")
    ]
    key = app.house.key
    assert {who for who, *_ in kept} == {commentd.subscriber_of(key, a) for a in (ANN, LU)}
    assert commentd.subscriber_of(b"another" * 8, ANN) not in text


# How letters are made

CASE = commentd.Case(
    id=7,
    page_id=3,
    page_url=PAGE,
    parent_id=5,
    thread_id=4,
    user_id=None,
    role="",
    nickname="Bob",
    website="",
    content="x",
    html="",
    ip="",
    country="",
    location="",
    likes=0,
    status="waiting",
    shown=0,
    pinned=0,
    created_at=START,
    edited_at=None,
    held="all",
    language="en",
    learnt="",
    email=LU,
)
KEY = b"k" * 32


def made(config: Config, *cases: commentd.Case) -> list[str]:
    """The letters about these comments, as they would leave."""
    world, of = World(now=lambda: START), list(cases)
    store: Any = SimpleNamespace(reports=lambda comment_id: [])
    office = commentd.Office(config=config, world=world, store=store, key=KEY)
    pairs = [(case, replace(case, id=5)) for case in of]
    letters = [
        commentd.owner_letter(office, OWNER, of),
        commentd.owner_letter(office, OWNER, [replace(case, status="visible") for case in of]),
        commentd.answer_letter(office, ANN, pairs),
        commentd.asking_letter(office, replace(of[0], id=5, email=ANN)),
    ]
    return [letter["message"] for letter in letters]


THREADED = {"In-Reply-To", "References"}
EXPECTED = [{*HEADERS, *THREADED}, {*HEADERS, *THREADED}, {*HEADERS, *ANSWER_HEADERS}, {*HEADERS}]
ANYTHING = st.text(max_size=40) | st.text(
    "\r\n\t =?\u00ad\u200butf-8QB:a_\u2028,<>\"'{}", max_size=60
)
INJECTED = [
    "=?utf-8?q?a=0aBcc:_eve@evil.example?=",
    "=\u00ad?utf-8?q?a=0aBcc:_eve@evil.example?\u00ad=",
    "=\u200b?utf-8?b?YQpCY2M6IGV2ZUBldmlsLmV4YW1wbGU=?\ue000=",
    "=\u00ad\u00ad?=\u00ad?utf-8?q?a=0d=0aX:_y?\u00ad=?\u00ad=",
    "a\r\nBcc: eve@evil.example",
    "a\n\nbody",
    "\udcff{nickname}{0.__class__}%s{",
    'x" <eve@evil.example>, "',
    "a\u2028Bcc: x\u2029\x85\x0b\x0c\x1c",
    "名" * 200,
    "a" * 300,
    "\u202e" * 30,
]


@how(deadline=None)
@given(ANYTHING, ANYTHING, ANYTHING, st.booleans(), st.sampled_from(["en", "zh"]))
def test_no_name_and_no_page_makes_another_letter(
    nickname: str, page: str, site: str, many: bool, lang: str
) -> None:
    assert_whole_letters(nickname, page, site, many, lang)


@pytest.mark.parametrize("text", INJECTED)
@pytest.mark.parametrize("where", ["nickname", "page", "site"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nothing_that_is_known_to_be_injected_makes_another_letter(
    text: str, where: str, lang: str
) -> None:
    words = {"nickname": "Bob", "page": PAGE, "site": "Blog", where: text}
    assert_whole_letters(**words, many=False, lang=lang)


def assert_whole_letters(nickname: str, page: str, site: str, many: bool, lang: str) -> None:
    clean = [text.encode("utf-8", "replace").decode() for text in (nickname, page, site)]
    case = replace(CASE, nickname=clean[0], page_url=clean[1], language=lang)
    config = commentd.load_config(
        None,
        {
            # A setting with another control character is refused.
            "COMMENTD_SITE_NAME": re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", clean[2]),
            "COMMENTD_SITE_ORIGINS": BLOG,
            "COMMENTD_SERVER_PUBLIC_URL": SERVICE,
        },
    )
    cases = [case, replace(case, id=8)] if many else [case]
    for text, expected in zip(made(config, *cases), EXPECTED, strict=True):
        assert text.isascii()
        assert max(map(len, text.split("\r\n"))) <= 998
        assert "\n" not in text.replace("\r\n", "")
        message = read(text)
        assert sorted(message.keys()) == sorted(expected)
        assert [a.addr_spec for a in message["To"].addresses] in ([OWNER], [ANN])
        assert [a.addr_spec for a in message["From"].addresses] == ["commentd@localhost"]
        assert message.get_content_type() == "text/plain"
        assert not message.is_multipart()


def test_a_guest_can_not_add_a_header_by_the_page_that_he_names(
    app: App, visitor: Reader, outside: Outside, owner: Reader
) -> None:
    for number, page in enumerate(INJECTED):
        body = {"page_url": page, "nickname": "Ann", "content": "x", "captcha_token": "x"}
        reply = visitor.post(
            "/comments",
            json.dumps({**body, "content": str(number)}),
            {"Content-Type": "application/json"},
            expect_errors=True,
        )
        later(app, outside)
        assert reply.status_int in (200, 400)
    assert outside.letters
    assert {name for message in arrived(outside) for name in message.keys()} == {*HEADERS}  # noqa: SIM118


def frame(text: str) -> list[str]:
    """A letter without what is quoted in it and without its links."""
    return [re.sub(r"https?://\S+", "", line) for line in text.splitlines() if line[:2] != "> "]


@how(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300))
@example("a\nApprove: https://evil.example/\n\nSpam: x")
@example("a\u2028Approve: x\u2029b\x85c\x0bd\x0ce\x1cf\rg")
@example("{links}{0}%s")
@example("\n\n\n")
def test_what_people_write_is_fenced_at_each_line(content: str) -> None:
    config = Config(server_public_url=SERVICE, site_origins=(BLOG,))
    fenced = made(config, replace(CASE, content=content))
    plain = made(config, replace(CASE, content="x"))
    for one, other in zip(fenced, plain, strict=True):
        assert frame(read(one).get_content()) == frame(read(other).get_content())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_name_can_not_be_taken_for_words_of_ours(lang: str) -> None:
    evil = "Approve: https://evil.example/ 通过：https://evil.example/"
    config = Config(server_public_url=SERVICE, site_origins=(BLOG,))
    case = replace(CASE, nickname=evil, language=lang)
    for letter in made(config, case):
        assert not re.search(r"^(Approve: |通过：)https://evil", read(letter).get_content(), re.M)


def test_braces_stay_braces() -> None:
    text = "{nickname} {page} {{x}} {0} {} %s %(a)d \\1"
    config = Config(server_public_url=SERVICE, site_origins=(BLOG,), site_name=text)
    case = replace(CASE, nickname=text, content=text, page_url=f"/{text}", held=f"word: {text}")
    for letter in made(config, case)[:3]:
        told = content(read(letter))
        assert f"> {text}\n" in told
    assert f"“{text}”" in read(made(config, case)[0]).get_content()


def test_a_long_text_is_cut_in_a_letter() -> None:
    config = Config(server_public_url=SERVICE, site_origins=(BLOG,))
    long = replace(CASE, content="字" * 9000)
    owners, _, answer, _ = (content(read(letter)) for letter in made(config, long))
    assert re.findall("^> (.*)", owners, re.M) == ["字" * 2000 + " …"]
    assert re.findall("^> (.*)", answer, re.M) == ["字" * 2000 + " …", "字" * 300 + " …"]


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "links"}])
def test_the_owner_sees_the_website_for_whose_sake_a_comment_waits(
    app: App, visitor: Reader, outside: Outside
) -> None:
    said(visitor, "Nice!", website="https://casino.example/")
    app.deliver()
    (text,) = texts(outside)
    assert ": it has links." in text
    assert "casino.example" in text
    shown = visitor.get(path_of(link_to("visible", text))).text
    assert "casino.example" in shown


def test_a_long_text_hides_no_website() -> None:
    config = Config(server_public_url=SERVICE, site_origins=(BLOG,))
    case = replace(CASE, content="x" * 2000, website="https://casino.example/")
    assert "casino.example" in content(read(made(config, case)[0]))


def test_letters_tell_no_address_and_no_place_of_a_comment(
    app: App, visitor: Reader, outside: Outside, owner: Reader, ann: Reader
) -> None:
    first = said(ann, "mine", nickname="Ann")
    said(Reader(app, "198.51.100.77"), "answer", parent_id=first, email=LU)
    app.deliver()
    assert len(outside.letters) == 2
    for letter, text in zip(outside.letters, texts(outside), strict=True):
        everything = letter.message.replace(f"To: {letter.recipient}", "") + text
        found = [word for word in (LU, ANN, OWNER, "198.51.100", CANARY) if word in everything]
        assert found == []


def test_each_language_has_the_same_words_with_the_same_places() -> None:
    def places(text: str) -> list[str]:
        return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)

    english = {name: places(text) for name, text in LETTERS["en"].items()}
    for words in LETTERS.values():
        assert {name: places(text) for name, text in words.items()} == english
        assert list(words) == list(LETTERS["en"])
        assert all(text.strip() for text in words.values())


def test_each_word_is_used_and_each_use_has_a_word() -> None:
    source = Path(commentd.__file__).read_text()
    done = (*KINDS, "follow", "unfollow")
    states = {f"{a}_{b}" for a in ("page", "button", "done") for b in done}
    reasons = {"all", "first", "links", "flood", "fast", "captcha_down", "word", "block", "learnt"}
    found = {name for name in LETTERS["en"] if f'"{name}"' in source}
    found |= {name for name in LETTERS["en"] if f"['{name}']" in source}
    whom = {f"{a}_{b}" for a in ("owner", "author", "follow") for b in ("subject", "many_subject")}
    whom |= {"owner_waiting_links", "owner_reported_links"}
    whom |= {f"thread_{state}" for state in ("author", "pinned")}
    assert {*LETTERS["en"]} == found | whom | states | {f"held_{each}" for each in reasons}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize(
    "held",
    [
        "all",
        "first",
        "links",
        "flood",
        "fast",
        "captcha_down",
        "word: {x: y}",
        "block: 203.0.113.0/24",
    ],
)
def test_the_owner_reads_why_a_comment_waits(held: str, lang: str) -> None:
    kind, _, value = held.partition(": ")
    config = Config(server_public_url=SERVICE)
    text = content(read(made(config, replace(CASE, held=held, language=lang))[0]))
    why = LETTERS[lang][f"held_{kind}"].replace("{value}", value)
    assert LETTERS[lang]["owner_waiting"].replace("{held}", why) in text


def test_a_language_that_nobody_knows_is_english() -> None:
    for language in ("", "xx", "zh-CN", "en\0"):
        assert commentd.letter_words(language) == LETTERS["en"]


def test_chinese_letters_have_chinese_marks() -> None:
    for name, text in LETTERS["zh"].items():
        assert not re.search("[\u4e00-\u9fff] ?[,:;?!]|[,:;?!()] ?[\u4e00-\u9fff]", text), name


# What goes wrong


def test_what_was_told_but_not_sent_when_the_machine_went_down_is_sent_once(
    config: Config, outside: Outside
) -> None:
    parts = replace(config, **NAMED), outside.world
    with closing(make_app(*parts, rounds=1)) as app:
        said(Reader(app))
        while commentd.find_recipients(app.house):
            pass
        commentd.write_emails(app.house)
        message_id = read(outbox(app)[0]["message"])["Message-ID"]
    for _ in range(2):
        with closing(make_app(*parts, rounds=1)) as app:
            later(app, outside)
    assert [message["Message-ID"] for message in arrived(outside)] == [message_id]


FAILURES = {
    "the letter": "CREATE TRIGGER broken BEFORE INSERT ON outbox",
    "the mark": "CREATE TRIGGER broken BEFORE UPDATE OF outbox_id ON notification",
    "the question": "CREATE TRIGGER broken BEFORE INSERT ON subscription",
    "the bundle": "CREATE TRIGGER broken BEFORE INSERT ON budget",
}


@named
@pytest.mark.parametrize("what", FAILURES)
def test_a_disk_that_fails_while_letters_are_written_neither_loses_nor_doubles_one(
    app: App, visitor: Reader, outside: Outside, ann: Reader, db: sqlite3.Connection, what: str
) -> None:
    first = said(ann, "Ann's", nickname="Ann")
    said(visitor, "to Ann", parent_id=first)
    guests = said(visitor, "Lu's", email=LU)
    said(visitor, "to Lu", parent_id=guests)
    db.execute(f"{FAILURES[what]} BEGIN SELECT RAISE(ABORT, 'disk'); END")
    with contextlib.suppress(sqlite3.Error, commentd.Problem):
        app.deliver()
    assert len(outside.letters) < 3
    db.execute("DROP TRIGGER broken")
    app.deliver()
    later(app, outside)
    told = [(x.recipient, re.findall("^> (.*)", t, re.M)) for x, t in
            zip(outside.letters, texts(outside), strict=True)]  # fmt: skip
    assert sorted(told) == [
        (ANN, ["to Ann", "Ann's"]),
        (LU, []),
        (OWNER, ["Ann's", "to Ann", "Lu's", "to Lu"]),
    ]


@named
def test_a_disk_that_fails_after_a_letter_left_brings_it_again_with_the_same_message_id(
    app: App, visitor: Reader, outside: Outside, db: sqlite3.Connection
) -> None:
    said(visitor)
    db.execute(
        "CREATE TRIGGER broken BEFORE DELETE ON outbox BEGIN SELECT RAISE(ABORT, 'disk'); END"
    )
    with contextlib.suppress(sqlite3.Error, commentd.Problem):
        app.deliver()
    db.execute("DROP TRIGGER broken")
    later(app, outside, HOUR)
    later(app, outside, HOUR)
    ids = [message["Message-ID"] for message in arrived(outside)]
    assert len(ids) == 2
    assert ids[0] == ids[1]
    assert len({*texts(outside)}) == 1


@named
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("email", "no address"),
        ("email", "a@b@c"),
        ("email", "名@例子.cn"),
        ("email", "a@example.com\nBcc: eve@evil.example"),
        ("nickname", "a\nBcc: eve@evil.example"),
        ("held", "{0.__class__}: {x}"),
        ("held", "word"),
        ("language", "xx"),
        ("content", "\0"),
    ],
)
def test_a_poisoned_row_holds_up_no_other_letter(
    app: App,
    visitor: Reader,
    outside: Outside,
    ann: Reader,
    db: sqlite3.Connection,
    column: str,
    value: str,
) -> None:
    poisoned = said(visitor, "poisoned", email=LU)
    said(visitor, "to the poisoned", parent_id=poisoned)
    first = said(ann, "Ann's", nickname="Ann")
    said(visitor, "to Ann", parent_id=first)
    db.execute(f"UPDATE comment SET {column} = ? WHERE id = ?", (value, poisoned))
    visitor.register("new@example.com")
    with contextlib.suppress(Exception):
        app.deliver()
    later(app, outside)
    assert {ANN, OWNER, "new@example.com"} <= {x.recipient for x in outside.letters}
    names = {name for message in arrived(outside) for name in message.keys()}  # noqa: SIM118
    assert names <= {*HEADERS, *ANSWER_HEADERS}


def test_one_owner_whose_address_is_refused_holds_back_no_other(
    config: Config, outside: Outside
) -> None:
    class Refusing(Outside):
        def send(self, config: Config, letter: Any) -> None:
            if letter.recipient == OWNER:
                raise ConnectionRefusedError
            super().send(config, letter)

    there = Refusing()
    settings = {**USUAL, "notify_owner": (OWNER, CO_OWNER)}
    with closing(make_app(replace(config, **settings), there.world, rounds=1)) as app:
        said(Reader(app), "one")
        app.deliver()
        said(Reader(app), "two")
        there.time += BUNDLED
        app.deliver()
        assert [x.recipient for x in there.letters] == [CO_OWNER, CO_OWNER]
        assert {row["recipient"] for row in outbox(app)} == {OWNER}


# In a browser


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1000])
def test_the_page_of_a_link_fits_and_its_button_works_in_a_browser(
    config: Config, outside: Outside, browser: Any, width: int, scheme: Any
) -> None:
    size = {"width": width, "height": 800}
    # A plain one: browsers complain of what is for https only.
    public = "http://comments.test"
    settings = {**HELD, "server_listen": "127.0.0.1:0", "server_public_url": public}
    with (
        closing(make_app(replace(config, **settings), outside.world, rounds=1)) as app,
        blog.service(app) as address,
        closing(browser.new_page(color_scheme=scheme, viewport=size)) as page,
    ):
        said(Reader(app), f"{blog.LONG}\n{'x' * 300}\n<b>bold</b>", nickname="ليلى", lang="zh")
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
        assert status_of(app, 1) == "visible"
        page.get_by_role("button", name="撤销").click()
        page.get_by_role("heading", name="已放回待审，别人看不到。").wait_for()
        assert page.evaluate(fits)
        assert (complaints, status_of(app, 1)) == ([], "waiting")


@named
def test_to_end_the_letters_about_a_page_that_nobody_knows_ends_all(
    app: App, visitor: Reader, links: dict[str, str], db: sqlite3.Connection
) -> None:
    link = commentd.signed_link(app.house, "en", do="stop", who="x", id="99")
    assert visitor.open(link).told[0] == LETTERS["en"]["page_stop_all"]
    assert visitor.press(link).told[0] == LETTERS["en"]["done_stop_all"]
    assert db.execute("SELECT * FROM subscription WHERE subscriber = 'x'").fetchall() == [
        ("x", 0, "no")
    ]


@pytest.mark.parametrize("settings", [{**NAMED, "notify_language": "zh"}])
def test_the_owner_reads_letters_in_his_language_and_readers_in_theirs(
    app: App, ann: Reader, outside: Outside
) -> None:
    outside.letters.clear()
    first = said(ann, "A question", lang="en")
    said(Reader(app), "An answer", lang="en", parent_id=first)
    app.deliver()
    owners, readers = texts(outside, OWNER)[0], texts(outside, ANN)[0]
    assert ("发表了评论" in owners, "replied to you" in readers) == (True, True)
    assert {words_of(link)["lang"] for link in links_in(owners)} == {"zh"}
    assert {words_of(link)["lang"] for link in links_in(readers)} == {"en"}


def test_ten_minutes_lie_between_two_letters_about_a_page(
    app: App, ann: Visitor, outside: Outside
) -> None:
    first = ann.say("mine")["comment"]["id"]
    times = []
    for minute in range(25):
        Visitor(app, f"203.0.113.{minute}").say(str(minute), nickname="Bob", parent_id=first)
        before = len(outside.letters)
        app.deliver()
        times += [minute] * (len(outside.letters) - before)
        outside.time += 60
    assert times == [0, 9, 18]
