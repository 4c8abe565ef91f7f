"""Emails about comments: who is told of what and when, the pages that their links lead to, and how
they end. `test_mail.py` has their way to the mail server, `test_account_api.py` followers and
reports."""

import base64
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

import commentd
from commentd import App, Config, load_config, make_app
from support import blog, inside
from support.admin import moderate
from support.client import CANARY, PAGE, Visitor
from support.database import assert_whole, dump
from support.mail import NEWS_HEADERS, UNSUBSCRIBE, outbox, read
from support.world import START, Outside

MINUTE, HOUR, DAY = 60, 3600, 86400
BLOG, SERVICE = "https://blog.example", "https://comments.example"
OWNER, CO_OWNER, ANN, LU = "owner@blog.example", "co@blog.example", "ann@example.com", "lu@e.cn"
USUAL: dict[str, Any] = {"server_public_url": SERVICE, "site_origins": (BLOG,)}
USUAL["limits_enabled"] = False
NAMED = {**USUAL, "notify_owner": (OWNER,)}
HELD = {**NAMED, "moderation_hold": "all"}
TO_NOBODY = {**USUAL, "notify_owner": ("nobody",)}
BUNDLED = 10 * MINUTE
STATUSES = ("visible", "spam", "deleted")
KINDS = (*STATUSES, "waiting", "confirm", "stop", "stop_all", "start", "start_all")

EMAIL_TEXTS = json.loads(
    Path(commentd.__file__).with_name("static").joinpath("emails.json").read_text()
)
BILINGUAL = EMAIL_TEXTS.pop("zh+en")  # where the language is unknown

named = pytest.mark.parametrize("settings", [NAMED])
held = pytest.mark.parametrize("settings", [HELD])
to_nobody = pytest.mark.parametrize("settings", [TO_NOBODY])


@pytest.fixture
def settings() -> dict[str, Any]:
    """Admins have emails; there is none but where a test has an `owner`."""
    return USUAL


# The page of a link, and a reader who opens it

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


class Shown(HTMLParser):
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
        link = self.attributes.get("a", {"href": "admin"})["href"]
        assert re.fullmatch("admin|https://blog\\.example/.*", link)

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
    def told(self) -> tuple[str, str, str, str]:
        return self.title, self.who, self.text, self.button


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

    def said(self, content: str = "hi", **fields: Any) -> int:
        """The number of a comment that was just written."""
        number: int = self.say(content, **{"lang": "en", **fields})["comment"]["id"]
        return number

    def open(self, link: str, status: int = 200) -> Shown:
        return Shown(self.get(path_of(link), status=status).text)

    def press(self, link: str, status: int = 200, **how: Any) -> Shown:
        return Shown(self.post(path_of(link), status=status, **how).text)


class PlainReader(Reader):
    """One of many at once, who can't compare the database before and after."""

    def do_request(self, req: Any, *args: Any, **kw: Any) -> Any:
        return super(Visitor, self).do_request(req, *args, **kw)


class Here(Reader):
    """A guest, who also sees which emails go out."""

    def __init__(self, app: App, outside: Outside) -> None:
        super().__init__(app)
        self.outside = outside

    def deliver(self) -> float:
        return self.served.deliver()

    def later(self, seconds: int = BUNDLED, times: int = 1) -> None:
        for _ in range(times):
            self.outside.time += seconds
            self.deliver()

    def fail_mail(self, fails: bool = True) -> None:
        self.outside.mail_fails_with = ConnectionRefusedError() if fails else None

    def forget(self) -> None:
        """The emails until now."""
        self.outside.emails.clear()

    def arrived(self, to: str | None = None) -> list[EmailMessage]:
        """The emails that went out, to someone."""
        return [read(x.message) for x in self.outside.emails if to in (None, x.recipient)]

    def texts(self, to: str | None = None) -> list[str]:
        return [content(message) for message in self.arrived(to)]

    def told(self, to: str | None = None) -> list[list[str]]:
        """What each email quotes."""
        return [re.findall("^> (.*)", text, re.M) for text in self.texts(to)]

    def recipients(self) -> list[str]:
        return [each.recipient for each in self.outside.emails]

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
        reader.verify(self.outside.code(), email)
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
def here(app: App, outside: Outside) -> Here:
    return Here(app, outside)


@pytest.fixture
def owner(app: App) -> Reader:
    """The owner, signed in on the admin page."""
    return claim(app, OWNER, "Owner")


@pytest.fixture
def ann(here: Here) -> Reader:
    """A reader with an account."""
    return here.newcomer(ANN, "Ann")


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


Start = Callable[..., AbstractContextManager[Here]]


@pytest.fixture
def start(config: Config, outside: Outside, empty_database: Path) -> Start:
    """Starts the service with these settings; it may be started again."""

    @contextmanager
    def started(**settings: Any) -> Iterator[Here]:
        changed = replace(config, **{**USUAL, **settings})
        if not Path(changed.database_path).exists():
            shutil.copy(empty_database, changed.database_path)
        with closing(make_app(changed, outside.world, rounds=1)) as app:
            yield Here(app, outside)
        assert_whole(changed.database_path)

    return started


def links_in(text: str) -> list[str]:
    return re.findall(r"https://comments\.example/mail\?\S+", text)


def words_of(link: str) -> dict[str, str]:
    pairs = parse_qsl(urlsplit(link).query, keep_blank_values=True, strict_parsing=True)
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def link_to(do: str, text: str) -> str:
    """The first link of an email that does this."""
    return next(link for link in links_in(text) if words_of(link)["do"] == do)


def content(message: EmailMessage) -> str:
    text: str = message.get_content()
    return text.replace("\r\n", "\n")


# To the owner


@held
def test_an_email_shows_the_url_of_a_page_decoded(here: Here) -> None:
    here.said("hi", nickname="Lu", page_url="/%E4%BD%A0%E5%A5%BD/")
    here.deliver()
    ((message,), (text,)) = here.arrived(OWNER), here.texts()
    assert message["Subject"] == "blog.example: new comment on /你好/"
    assert "New comment on “/你好/” by" in text
    assert "/你好/" in here.open(links_in(text)[0]).who


@held
def test_the_owner_moderates_by_the_links_of_an_email(here: Here) -> None:
    quote, who = "Two lines\n\n> of which\n> one is quoted", f"Lu · {PAGE}"
    here.said(quote, nickname="Lu")
    here.deliver()
    ((message,), (text,)) = here.arrived(OWNER), here.texts()
    assert sorted(message.keys()) == sorted(NEWS_HEADERS)
    assert message["Subject"] == f"blog.example: new comment on {PAGE}"
    approve, spam, delete = links_in(text)
    assert text == (
        f"New comment on “{PAGE}” by “Lu”:\n\n"
        "> Two lines\n> \n> > of which\n> > one is quoted\n\n"
        "It’s waiting for your approval: every comment needs it.\n\n"
        f"Approve: {approve}\nSpam:    {spam}\nDelete:  {delete}\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n\n"
        f"All comments: {SERVICE}/admin\n"
    )
    assert here.open(approve).told == ("Approve this comment?", who, quote, "Approve")
    assert here.listing()["total"] == 0
    assert here.press(approve).told == ("Approved: everybody can read it.", who, quote, "Undo")
    assert [c["content"] for c in here.listing()["comments"]] == [quote]
    assert here.press(spam).title == "Marked as spam. It is not public."
    assert here.press(delete).title == "Deleted: nobody sees it."
    assert here.status_of(1) == "deleted"


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "links"}])
def test_the_owner_gets_an_email_at_once_with_the_reason_a_comment_waits(here: Here) -> None:
    here.said("x", nickname="Lu")
    here.deliver()
    (text,) = here.texts(OWNER)
    spam, delete = links_in(text)
    assert text == (
        f"New comment on “{PAGE}” by “Lu”:\n\n> x\n\n"
        f"Hide as spam: {spam}\nDelete:       {delete}\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n\nAll comments: {SERVICE}/admin\n"
    )
    here.outside.time += BUNDLED
    here.said("x", nickname="Lu", lang="zh", website="https://casino.example/")
    here.deliver()
    text = here.texts(OWNER)[1]
    approve, spam, delete = links_in(text)
    assert text == (
        f"“Lu”在“{PAGE}”发表了评论：\n\n> x\n> \n> https://casino.example/\n\n"
        f"这条评论等待审核（原因：{EMAIL_TEXTS['zh']['held_links']}）。\n\n"
        f"通过：{approve}\n标为垃圾评论：{spam}\n删除：{delete}\n\n"
        f"查看并回复：{BLOG}{PAGE}#comment-2\n\n所有评论：{SERVICE}/admin\n"
    )
    assert "casino.example" in here.open(approve).who


CHINESE, ENGLISH = "发表了评论", "New comment"


def signs_in_at_admin(here: Here, email: str, lang: str) -> None:
    body = {"email": email, "password": CANARY, "captcha_token": "x", "lang": lang}
    here.post_json("/admin/login", body)


def test_an_admin_gets_emails_in_the_language_of_the_admin_page(here: Here, owner: Reader) -> None:
    claim(here.served, CO_OWNER, "Co")
    signs_in_at_admin(here, OWNER, "en-GB")
    signs_in_at_admin(here, CO_OWNER, "zh-CN")
    chinese_browser = {"Accept-Language": "zh-CN"}
    for comment, lang in (("Hello", "en"), ("你好", "zh-CN"), ("Bonjour", "fr")):
        here.forget()
        here.say(comment, lang=lang)
        here.later()
        (english,), (chinese,) = here.texts(OWNER), here.texts(CO_OWNER)
        assert (ENGLISH in english, CHINESE in chinese) == (True, True), lang
        # The browser does not change the language of a link, nor of what a press leads to.
        link = path_of(link_to("spam", english))
        page = here.get(link, headers=chinese_browser).text
        assert '<html lang="en"' in page
        assert "Is this comment spam?" in page
        assert here.open(link_to("spam", chinese)).lang == "zh"
    signs_in_at_admin(here, OWNER, "de")
    here.forget()
    here.say("again", lang="en")
    here.later()
    assert "Neuer Kommentar" in here.texts(OWNER)[0]
    # Of a link that was cut, only the browser tells who reads it.
    cut = here.get("/mail?do=spam", headers=chinese_browser, status=403).text
    assert '<html lang="zh"' in cut


def test_an_email_address_without_an_account_gets_the_language_of_the_first_admin(
    start: Start,
) -> None:
    with start(notify_owner=(LU,)) as here:
        for lang in (None, "zh-CN"):
            here.say("你好", lang=lang)
            here.later()
            assert CHINESE in here.texts(LU)[-1], "nobody has a language yet"
        claim(here.served, OWNER, "Owner")
        signs_in_at_admin(here, OWNER, "en")
        here.say("你们好", lang="zh-CN")
        here.later()
        assert ENGLISH in here.texts(LU)[-1]


def test_an_admin_made_by_a_link_has_the_language_of_its_page(here: Here) -> None:
    body = {"link": inside.admin_link(here.served), "email": OWNER, "nickname": "Owner"}
    here.post_json("/admin/claim", {**body, "password": CANARY, "lang": "ja"})
    here.say("Hello", lang="en")
    here.deliver()
    assert "コメントがありました" in here.texts(OWNER)[0]


@pytest.mark.parametrize("to", [ANN, LU])
def test_emails_about_an_imported_comment_come_in_the_language_of_the_account_or_the_blog(
    here: Here, owner: Reader, to: str
) -> None:
    signs_in_at_admin(here, OWNER, "de")
    ann = here.newcomer(ANN, "Ann")
    here.sql("UPDATE account SET language = 'ja' WHERE email = ?", ANN)
    number = ann.said("Hello") if to == ANN else here.said("Hello", email=LU)
    here.sql("UPDATE comment SET language = ''")
    here.said("A reply", parent_id=number)
    here.later()
    (message,) = here.arrived(to)
    expected = (
        EMAIL_TEXTS["ja"]["author_subject"] if to == ANN else EMAIL_TEXTS["de"]["ask_subject"]
    )
    assert message["Subject"] == expected.format(site="blog.example")


LONG_PATH = "/" + "a-long-title-of-a-page-" * 9


@named
def test_no_url_in_an_email_runs_into_the_text_behind_it(here: Here) -> None:
    pages = [
        "/a/",
        f"{BLOG}/b/%E4%BD%A0/",
        BLOG + LONG_PATH,
        LONG_PATH,
        f"https://evil.example{LONG_PATH}",
        "https://evil.example/x",
    ]
    for language in EMAIL_TEXTS:
        inside.sql(here.served, "DELETE FROM account")
        claim(here.served, OWNER, "Owner")
        signs_in_at_admin(here, OWNER, language)
        for page in pages:
            here.forget()
            number = here.say(f"in {language}", page_url=page)["comment"]["id"]
            inside.set_status(here.served, number, "waiting" if page == pages[0] else "visible")
            here.later()
            (message,), (text,) = here.arrived(OWNER), here.texts(OWNER)
            for url in re.findall(r"https?://\S*", text):
                assert re.fullmatch(r"[!-~]+", url), (language, url)
            shown = text.split("\n\n")[0]
            assert "https://blog.example" not in shown
            assert ("…" in shown) == (len(page) > 150), (language, page)
            assert ("…" in message["Subject"]) == (LONG_PATH in page and "evil" not in page)


@pytest.mark.parametrize("settings", [{**NAMED, "notify_language": "zh"}])
def test_owner_and_readers_get_emails_in_their_languages(here: Here, ann: Reader) -> None:
    here.said("A reply", parent_id=ann.said("A question"))
    here.deliver()
    owners, readers = here.texts(OWNER)[0], here.texts(ANN)[0]
    assert ("发表了评论" in owners, "replied to you" in readers) == (True, True)
    assert {words_of(link)["lang"] for link in links_in(owners)} == {"zh"}
    assert {words_of(link)["lang"] for link in links_in(readers)} == {"en"}


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "links"}])
def test_comments_soon_after_an_email_are_bundled_within_ten_minutes(here: Here) -> None:
    here.said("one")
    here.deliver()
    assert len(here.arrived()) == 1
    here.outside.time += 1
    here.said("two", lang="zh")
    here.said("three, which waits: https://a.example", page_url="/other/")
    while (wait := here.deliver()) and len(here.arrived()) == 1:
        assert wait <= MINUTE
        here.outside.time += wait
    assert START + 5 * MINUTE < here.outside.time <= START + BUNDLED
    message = here.arrived()[1]
    assert message["Subject"] == "blog.example: 2 new comments"
    text = content(message)
    assert [words_of(link)["id"] for link in links_in(text)] == ["3", "3", "3", "2", "2"]
    assert here.told()[1] == ["three, which waits: https://a.example", "two"]
    assert text.count(f"{SERVICE}/admin") == 1
    here.later(DAY)
    assert len(here.arrived()) == 2
    here.said("after a quiet time")
    here.deliver()
    assert len(here.arrived()) == 3
    here.outside.time -= 30 * DAY
    here.said("after the clock was set back")
    here.deliver()
    assert len(here.arrived()) == 4


@named
@pytest.mark.slow
def test_more_comments_than_an_email_takes_are_all_announced(here: Here) -> None:
    visitor = PlainReader(here.served)
    visitor.said()
    here.deliver()
    for number in range(229):
        visitor.said(str(number))
    here.later(times=4)
    links = [len(links_in(text)) // 2 for text in here.texts()]
    more = [int(n) for text in here.texts() for n in re.findall("And ([0-9]+) more", text)]
    assert (links, more) == ([1, 20, 20], [180, 9])


def test_each_admin_has_an_email_and_none_of_own_comments(here: Here, owner: Reader) -> None:
    claim(here.served, CO_OWNER, "Second")
    first = here.said("from a guest")
    here.deliver()
    assert sorted(here.recipients()) == [CO_OWNER, OWNER]
    assert len({message["Message-ID"] for message in here.arrived()}) == 2
    assert len({str(links_in(text)) for text in here.texts()}) == 2
    link = link_to("spam", here.texts(CO_OWNER)[0])
    here.forget()
    owner.post_json("/admin/reply", {"parent_id": first, "content": "by Owner"})
    signed_in(here.served, CO_OWNER).said("by Second", nickname="Second")
    here.later()
    assert here.told(OWNER) == [["by Second"]]
    assert here.told(CO_OWNER) == [["by Owner"]]
    for role, status in (("user", 403), ("admin", 200)):  # links are good for an admin alone
        here.sql("UPDATE account SET role = ? WHERE email = ?", role, CO_OWNER)
        here.open(link, status)
        here.press(link, status)
        assert here.status_of(first) == ("spam" if role == "admin" else "visible")


def test_the_owners_that_the_settings_name_get_the_emails(start: Start) -> None:
    for wish, whom in (
        ("", [OWNER]),  # who is the only admin
        ("Owner@BLOG.Example", [OWNER]),
        (f"{CO_OWNER}, {LU}", [CO_OWNER, LU]),
        ("nobody", []),
    ):
        config = load_config(None, {"COMMENTD_NOTIFY_OWNER": wish})
        with start(notify_owner=config.notify_owner) as here:
            if not wish:
                claim(here.served, OWNER, "Owner")
            mine = signed_in(here.served, OWNER).said(f"mine {wish}", nickname="Owner")
            here.later()
            assert here.recipients() == [to for to in whom if to != OWNER]
            here.said(f"to the owner {wish}", parent_id=mine)
            here.forget()
            here.later()
            # The owner has one email of a reply: with links to moderate, where they are named.
            assert here.recipients() == ([*whom] if OWNER in whom else [*whom, OWNER])
            does = {words_of(link)["do"] for link in links_in(here.texts(OWNER)[0])}
            assert does == ({"spam", "deleted"} if OWNER in whom else {"stop", "stop_all"})
            here.forget()


def test_an_email_address_that_a_guest_types_hides_no_comment_from_its_holder(
    here: Here, owner: Reader, ann: Reader
) -> None:
    here.said("Buy now", email=OWNER)
    here.said("You can't see this, Ann", parent_id=ann.said(), email=ANN)
    here.deliver()
    assert here.told(OWNER) == [["Buy now", "hi", "You can't see this, Ann"]]
    assert here.told(ANN) == [["You can't see this, Ann", "hi"]]


LONG_NAME = f"c@{'a-long-name-' * 5}.blog-of-somebody.example"


@pytest.mark.parametrize("settings", [{**NAMED, "mail_sender": LONG_NAME}])
def test_the_emails_of_a_thread_stay_together_in_a_mail_program(here: Here) -> None:
    first = here.said("one")
    here.deliver()
    here.said("two", parent_id=first)
    here.later()
    here.said("three", page_url="/other/")
    here.later()
    one, two, three = here.arrived()
    assert one["References"] == one["In-Reply-To"] == two["References"] != three["References"]
    # However long the name of the host is, no id is cut or encoded.
    for email in here.outside.emails:
        ids = r"^(?:Message-ID|In-Reply-To|References): <[\w-]+@[a-z.-]+>\r$"
        assert len(re.findall(ids, email.message, re.M)) == 3


@pytest.mark.parametrize("settings", [{**USUAL, "notify_owner": (OWNER, CO_OWNER)}])
def test_a_comment_hidden_before_its_email_is_sent_to_nobody_else(
    here: Here, owner: Reader
) -> None:
    def refuse(email: Any) -> None:
        if email.recipient == CO_OWNER:
            raise ConnectionRefusedError

    here.outside.happens = refuse
    bad, good = here.said("bad"), here.said("good")
    here.deliver()
    assert here.recipients() == [OWNER]
    here.press(link_to("spam", here.texts(OWNER)[0]))
    here.outside.happens = lambda email: None
    here.later(times=2)
    assert here.told(OWNER) == [["bad", "good"]]
    assert here.told(CO_OWNER) == [["good"]]
    assert {words_of(link)["id"] for link in links_in(here.texts(CO_OWNER)[0])} == {str(good)}
    moderate(owner, [bad], "visible")
    here.later()
    assert len(here.arrived()) == 2
    assert here.outbox() == []


@named
@pytest.mark.parametrize("how", ["DELETE", "PATCH"])
def test_no_waiting_email_keeps_the_text_of_a_deleted_comment(
    here: Here, ann: Reader, how: str
) -> None:
    mine = ann.said("a root", nickname="Ann")
    here.later()
    here.forget()
    here.outside.time += BUNDLED
    here.fail_mail()
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
    here.served.tick()
    path = Path(inside.database_path(here.served))
    raw = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    # Nor its lines as they stand in an email.
    encoded = [base64.encodebytes(text.replace("\n", "\r\n").encode()) for text in waiting]
    assert not [line for text in encoded for line in text.split()[:-1] if line in raw]
    assert b"CANARY" not in raw


@pytest.mark.parametrize("settings", [NAMED])
def test_a_comment_deleted_while_its_email_is_sent_is_announced_once(here: Here) -> None:
    guest = PlainReader(here.served)
    body = {"edit_token": guest.say("first", lang="en")["edit_token"]}
    guest.said("second")
    here.outside.happens = lambda email: guest.delete_json("/comments/1", body) and None
    here.deliver()
    here.outside.happens = lambda email: None
    here.later()
    assert here.told() == [["first", "second"]]


@pytest.mark.parametrize("settings", [{**NAMED, "server_public_url": ""}])
def test_without_a_public_url_no_email_has_a_link_to_us(here: Here, ann: Reader) -> None:
    here.said("reply", parent_id=ann.said(nickname="Ann"))
    ann.post_json("/page/follow", {"page_url": PAGE, "lang": "en"})
    here.said("to a guest", parent_id=here.said("guest", email=LU))
    here.deliver()
    here.later()
    assert {*here.recipients()} == {ANN, OWNER}
    assert "to a guest" in str(here.told(ANN))
    for message, text in zip(here.arrived(), here.texts(), strict=True):
        assert not [word for word in ("/mail", "/admin", "None", "No more") if word in text]
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
    here.open(found[0])  # its own links are relative


@named
def test_a_page_is_linked_where_it_opens_and_marked_where_it_is_not_the_blogs(here: Here) -> None:
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
    owner.post_json("/admin/reply", {"parent_id": 1, "content": "a reply"})
    here.deliver()
    found["confirm"] = link_to("confirm", here.texts(LU)[-1])
    here.press(found["confirm"])
    here.later()
    for stop, start in (("stop", "start"), ("stop_all", "start_all")):
        found[stop] = link_to(stop, here.texts(LU)[-1])
        found[start] = here.press(found[stop]).action
        here.press(found[start])
    here.press(found["waiting"])
    here.forget()
    assert {*found} == {*KINDS}
    return found


@pytest.fixture
def links(here: Here, owner: Reader) -> dict[str, str]:
    return links_of_each_kind(here, owner)


@pytest.mark.parametrize("settings", [NAMED, HELD])
def test_the_action_of_an_email_link_can_be_undone(here: Here) -> None:
    here.said()
    here.deliver()
    was = here.status_of(1)
    for link in links_in(here.texts()[0]):
        do = words_of(link)["do"]
        done = here.press(link)
        assert here.status_of(1) == do
        assert here.open(done.action).text == "hi"
        assert here.status_of(1) == do
        undone = here.press(done.action)
        assert here.status_of(1) == was
        here.press(undone.action)
        assert here.status_of(1) == do
        here.press(done.action)


@held
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_email_link_acts_once_whoever_presses_its_button(
    here: Here, owner: Reader, lang: str
) -> None:
    links, words = links_of_each_kind(here, owner, lang), EMAIL_TEXTS[lang]
    anybody = [
        {"Authorization": "Bearer nonsense"},
        {"Authorization": "Basic eA=="},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ]
    logged = len(owner.get("/admin/audit").json["audit"])
    for number, do in enumerate(KINDS):
        path, headers, before = path_of(links[do]), anybody[number % 4], here.rows()
        # A mail scanner opens all links.
        reply = here.get(path, headers=headers)
        shown = Shown(reply.text)
        asked = words[f"page_{do}"].format(site="blog.example"), words[f"button_{do}"]
        assert (shown.lang, shown.title, shown.button) == (lang, *asked), do
        assert here.head(path).headers["Content-Type"] == reply.headers["Content-Type"]
        here.options(path)
        for method in ("PUT", "PATCH", "DELETE"):
            here.request(path, method=method, status=405)
        assert here.rows() == before, do
        done = here.press(links[do], headers=headers)
        assert done.title == words[f"done_{do}"], do
        assert done.button == (words["undo"] if done.action else ""), do
        assert done.action or do not in (*STATUSES, "waiting", "stop", "stop_all")
        here.later(0, times=2)
        here.forget()
        before = here.rows()
        assert here.press(links[do]).told == done.told, do
        here.later()
        assert (here.rows(), here.arrived()) == (before, []), do
        if do in (*STATUSES, "waiting"):
            assert here.open(links[do]).title == done.title, do
    lines = owner.get("/admin/audit").json["audit"][:-logged]
    found = [(line["who"], line["action"], line["subject"], line["detail"]) for line in lines]
    assert found == [("mail", do, "1", "") for do in ("waiting", *reversed(STATUSES))]
    broken = here.open(f"/mail?lang={lang}", 403)
    assert (broken.lang, broken.title) == (lang, words["bad"])


@held
def test_an_email_link_to_an_edited_comment_shows_its_new_text_first(
    here: Here, owner: Reader, links: dict[str, str]
) -> None:
    title = "The text has changed since this email was sent. Please look again:"
    labels = {"visible": "Approve", "spam": "Mark as spam", "deleted": "Delete"}
    for changes, who, text in (
        ({"content": "Other"}, "Lu", "Other"),
        ({"content": "a question", "nickname": "Other"}, "Other", "a question"),
    ):
        owner.patch_json("/admin/comments/1", changes)
        for do, label in labels.items():
            before = here.rows()
            shown = here.open(links[do])
            again = here.press(links[do], status=409)
            assert shown.told == again.told == (title, f"{who} · {PAGE}", text, label)
            assert here.rows() == before
            here.press(again.action)
            assert here.status_of(1) == do
            here.press(links[do], status=409)
        moderate(owner, [1], "waiting")


@pytest.mark.parametrize("settings", [{**HELD, "moderation_keep_days": 1}])
def test_email_links_about_a_deleted_comment_say_so(
    here: Here, owner: Reader, links: dict[str, str]
) -> None:
    for number in (2, 1):
        moderate(owner, [number], "deleted")
        here.outside.time += 2 * DAY
        here.served.tick()
    gone = ("This comment no longer exists.", "", "", "")
    for do in STATUSES:
        assert here.open(links[do], status=404).told == gone, do
        assert here.press(links[do], status=404).told == gone, do
    # Nobody knows its page any more.
    assert here.open(links["stop"]).title == EMAIL_TEXTS["en"]["page_stop_all"]
    assert here.press(links["stop"]).title == EMAIL_TEXTS["en"]["done_stop_all"]


@held
def test_an_email_link_to_moderate_is_good_for_thirty_days(
    here: Here, links: dict[str, str]
) -> None:
    here.outside.time = START + 30 * DAY - 1
    kinds = (*STATUSES, "waiting")
    for do in kinds:
        assert here.open(links[do]).button, do
    back = here.press(links["visible"]).action
    here.outside.time += 1
    bad = (EMAIL_TEXTS["en"]["bad"], "", "", "")
    for link in (*(links[do] for do in kinds), back):
        assert here.open(link, status=403).told == bad
        assert here.press(link, status=403).told == bad


def assert_refused(here: Here, *queries: str) -> None:
    """Each as a page, whichever way it is asked for, and nothing changes."""
    eve, before = PlainReader(here.served), here.rows()
    for query in queries:
        assert eve.head(f"/mail?{query}", status=403).body == b""
        for shown in (eve.open(f"/mail?{query}", 403), eve.press(f"/mail?{query}", 403)):
            assert shown.told[1:] == ("", "", ""), query
            assert shown.title in {each["bad"] for each in EMAIL_TEXTS.values()}
    assert here.rows() == before


@pytest.mark.slow
@held
def test_an_email_link_with_any_parameter_altered_is_refused(
    here: Here, links: dict[str, str]
) -> None:
    for do, link in links.items():
        query, words = urlsplit(link).query, words_of(link)
        mac = words["mac"]
        other = {"who": ["0" * 32, ANN], "lang": ["zh", "xx"], "version": ["0" * 16]}
        other |= {"do": [*{*KINDS, "undo", "pinned"} - {do}], "was": ["visible", "stop"]}
        other |= {"id": ["2", "-1", "01", "1 ", "１", "9" * 30]}
        other |= {"until": [str(START + 60 * DAY), "x", "9" * 30, "inf"]}
        other |= {"mac": ["0" * 32, mac.upper() + "=", mac[:-1], "é"]}
        for name, value in words.items():
            wrong = {*other[name], "", value + value, "\u2028", "'"} - {value}
            assert_refused(
                here,
                *[urlencode({**words, name: each}) for each in wrong],
                urlencode({n: v for n, v in words.items() if n != name}),
                urlencode({n.upper() if n == name else n: v for n, v in words.items()}),
                f"{query}&{urlencode({name: value})}",
                f"{name}=x&{query}",
            )
        more = {"page", "who", "until", "undo", "x", "id", "status"} - {*words}
        assert_refused(here, *[urlencode({**words, extra: "1"}) for extra in more])
        here.open(link)
    assert_refused(here, "", f"mac={mac}", "%3Cb%3E=1&%3Cb%3E=2", "do=", "do=stop&id=1&mac=x")
    for garbled in ("do=%ff", "%ff=1", "do=%ed%a0%80", "&".join("a" * 300)):
        assert 400 <= here.get(f"/mail?{garbled}", expect_errors=True).status_int < 500
        assert 400 <= here.post(f"/mail?{garbled}", expect_errors=True).status_int < 500


@held
def test_no_other_signature_or_secret_of_ours_opens_an_email_link(
    here: Here, links: dict[str, str]
) -> None:
    words = [words_of(link) for link in links.values()]
    mixed = [{**own, "mac": other["mac"]} for own in words for other in words]
    mixed += [{**own, "do": other["do"]} for own in words for other in words]
    assert_refused(here, *{urlencode(each) for each in mixed if each not in words})
    spam, stop = words_of(links["spam"]), words_of(links["stop"])
    bare = {name: value for name, value in spam.items() if name != "mac"}
    pairs = [f"{name}={bare[name]}" for name in sorted(bare)]
    app, key = here.served, inside.token_key(here.served).decode()
    assert inside.seal(app, "link", *pairs)[:32] == spam["mac"]
    seals = [inside.seal(app, purpose, *pairs)[:32] for purpose in ("edit", "subscriber", "")]
    seals += [bare["who"], stop["who"], key, here.say("more")["edit_token"]]
    assert_refused(here, *[urlencode({**bare, "mac": seal}) for seal in seals])
    assert_refused(here, urlencode({"mac": inside.seal(app, "subscriber", LU)[:32]}))


HOSTILE = [
    "</pre><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "مرحبا <b> 你好",
    "{{title}} {{body}} {{lang}} {{ {links} {0} {} %s",
    "&lt;b&gt; &amp; &#x22; \" ' `",
    "</title></main></html><!-- ",
    "\u202eright to left\u202c \u2028 \u2029 \ufeff x\u0301",
    '"></form><form action=https://evil.example>',
]


@named
def test_texts_of_readers_are_only_text_on_the_page_of_an_email_link(here: Here) -> None:
    for content in HOSTILE:
        page = "/" + content[:40].replace("\u2028", "").replace("\u2029", "").strip()
        nickname = re.sub("[^ -~\u0600-\u06ff]", "", content)[:64].strip()
        here.said(content, nickname=nickname, page_url=page)
        here.later()
        text = here.texts(OWNER)[-1]
        for do in ("spam", "deleted"):
            shown, done = here.open(link_to(do, text)), here.press(link_to(do, text))
            assert shown.text == done.text == commentd.bare_content(content)
            assert shown.who.startswith(f"{nickname} · /")


# To authors


def test_an_author_with_an_account_gets_an_email_about_a_reply_at_once(
    here: Here, ann: Reader
) -> None:
    first = ann.said("Why?\nWhy not?", nickname="Ann")
    here.said("Because.", parent_id=first, nickname="Bob", lang="zh")
    here.deliver()
    ((message,), (text,)) = here.arrived(ANN), here.texts(ANN)
    stop, stop_all = links_in(text)
    assert (words_of(stop)["do"], words_of(stop_all)["do"]) == ("stop", "stop_all")
    assert text == (
        f"“Bob” replied to you at blog.example:\n\n> Because.\n\nYou wrote:\n\n"
        f"> Why?\n> Why not?\n\nRead and reply: {BLOG}{PAGE}#comment-2\n\n"
        f"No more emails about this page: {stop}\nNo more emails at all: {stop_all}\n"
    )
    assert message["Subject"] == "blog.example: new reply to your comment"
    assert sorted(message.keys()) == sorted([*NEWS_HEADERS, *UNSUBSCRIBE])
    assert message["List-Unsubscribe"] == f"<{stop}>"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def test_ten_minutes_lie_between_two_emails_about_a_page(here: Here, ann: Reader) -> None:
    first = ann.said("mine")
    times = []
    for minute in range(25):
        here.said(str(minute), parent_id=first)
        before = len(here.arrived())
        here.deliver()
        times += [minute] * (len(here.arrived()) - before)
        here.outside.time += MINUTE
    assert times == [0, 10, 20]
    assert here.arrived(ANN)[1]["Subject"] == "blog.example: 10 new replies to your comments"
    assert here.told()[1] == [quote for n in range(1, 11) for quote in (str(n), "mine")]
    assert len(links_in(here.texts(ANN)[1])) == 2


def test_replies_on_many_pages_are_few_emails_and_none_is_lost(here: Here, ann: Reader) -> None:
    for number in range(9):
        mine = ann.said(nickname="Ann", page_url=f"/{number}/")
        here.said(f"on {number}", parent_id=mine, page_url=f"/{number}/")
    here.deliver()
    here.later(MINUTE, times=49)
    assert len(here.arrived()) == 6
    here.later(MINUTE, times=31)
    assert sorted(here.told(ANN)) == [[f"on {number}", "hi"] for number in range(9)]


@to_nobody
@pytest.mark.parametrize("damaged", ["the reply", "what it answers"])
def test_an_email_about_a_damaged_row_waits_and_holds_up_no_other(
    here: Here, ann: Reader, damaged: str
) -> None:
    mine = ann.said(nickname="Ann")
    here.said("one", parent_id=mine)
    here.deliver()
    reply = here.said("two", parent_id=mine)
    here.deliver()  # the recipient is looked up; the email waits
    writer = inside.writer(here.served)
    writer.executescript("PRAGMA foreign_keys = OFF; DROP TRIGGER count_change")
    number = reply if damaged == "the reply" else mine
    writer.execute("UPDATE comment SET page_id = page_id + 9 WHERE id = ?", [number])
    other = ann.said(nickname="Ann", page_url="/other/")
    here.said("three", parent_id=other, page_url="/other/")
    here.later(times=2)
    assert here.told(ANN) == [["one", "hi"], ["three", "hi"]]
    writer.execute("UPDATE comment SET page_id = page_id - 9 WHERE id = ?", [number])
    here.later()
    assert here.told(ANN) == [["one", "hi"], ["three", "hi"], ["two", "hi"]]


@to_nobody
def test_a_guest_is_asked_to_confirm_once_and_not_before_there_is_a_reply(
    here: Here, owner: Reader
) -> None:
    mine = here.said("question", email=LU)
    here.later()
    assert here.arrived() == []
    for page_url in (PAGE, "/1/", "/2/"):
        if page_url != PAGE:
            mine = here.said("question", email=LU, page_url=page_url)
        for _ in range(2):
            here.said("reply", parent_id=mine, page_url=page_url)
        here.later(HOUR)
    here.later(400 * DAY)
    here.served.tick()
    here.said("reply", parent_id=here.said("a year later", email=LU))
    here.later()
    assert here.recipients() == [LU]


def test_the_email_that_asks_to_confirm_holds_nothing_that_a_stranger_typed(here: Here) -> None:
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
        assert message["References"] is None
    first, second = found
    assert first == second
    assert "evil" not in here.outside.emails[0].message + here.outside.emails[1].message


@to_nobody
def test_a_guest_who_confirms_gets_the_waiting_and_the_coming_replies(
    here: Here, owner: Reader
) -> None:
    one = here.said("one", email=LU, nickname="陆", lang="zh")
    two = here.said("two", email=LU, page_url="/other/", lang="zh")
    here.said("to one", parent_id=one)
    here.deliver()
    here.said("to two", parent_id=two, page_url="/other/")
    here.later()
    ((message,), (text,)) = here.arrived(), here.texts()
    assert message["Subject"] == "blog.example：有回复时要通知你吗？"
    (confirm,) = links_in(text)
    asked = ("有人在“blog.example”回复你时，要收到邮件吗？", "", "", "好，请通知我")
    assert here.open(confirm).told == asked
    for _ in range(3):
        assert here.press(confirm).title == "有人回复你时，你会收到邮件。"
        here.later()
    assert sorted(here.told(LU)[1:]) == [["to one", "one"], ["to two", "two"]]
    here.forget()
    # While what it replies to waits for the owner, a reply waits too.
    here.said("to one again", parent_id=one)
    moderate(owner, [one], "waiting")
    here.later()
    assert here.arrived() == []
    moderate(owner, [one], "visible")
    here.later(HOUR)
    assert here.told(LU) == [["to one again", "one"]]


def test_a_confirmation_link_is_good_for_the_email_address_that_was_asked_alone(here: Here) -> None:
    mine = here.said(email=LU)
    here.said(parent_id=mine)
    here.deliver()
    confirm = link_to("confirm", here.outside.text())
    # A backup was restored, and the number given again.
    here.sql("UPDATE comment SET email = 'eve@example.com' WHERE id = ?", mine)
    here.press(confirm)
    here.said("to Eve", parent_id=mine)
    here.later()
    assert [each for each in here.told("eve@example.com") if "to Eve" in each] == []


def test_an_author_gets_no_email_about_their_own_reply(
    here: Here, owner: Reader, ann: Reader
) -> None:
    ann.said("and more", nickname="Ann", parent_id=ann.said("mine", nickname="Ann"))
    here.said("and more", email=LU, parent_id=here.said("a guest's", email=LU))
    before = here.said("before I signed in", email=ANN)
    ann.said("and after", nickname="Ann", parent_id=before)
    owners = signed_in(here.served, OWNER).said("the owner's", nickname="Owner")
    owner.post_json("/admin/reply", {"parent_id": owners, "content": "and more"})
    here.deliver()
    here.later()
    assert {*here.recipients()} == {OWNER}
    found = sorted(quote for each in here.told() for quote in each)
    guests_words = ["a guest's", "and after", "and more", "and more", "before I signed in"]
    assert found == [*guests_words, "mine"]


@held
def test_a_waiting_reply_is_announced_once_approved(here: Here, owner: Reader, ann: Reader) -> None:
    first = ann.said("mine", nickname="Ann")
    moderate(owner, [first], "visible")
    here.deliver()
    replies = []
    for number in range(2):
        replies.append(here.said(f"reply {number}", parent_id=first))
        here.later()
    assert here.arrived(ANN) == []
    here.press(link_to("visible", here.texts(OWNER)[-2]))
    here.deliver()
    for status in ("visible", "waiting", "visible"):
        moderate(owner, [replies[1]], status)
        here.later()
    assert here.told(ANN) == [["reply 0", "mine"], ["reply 1", "mine"]]


@to_nobody
def test_hidden_replies_are_announced_to_nobody(here: Here, owner: Reader, ann: Reader) -> None:
    for status in ("spam", "deleted", "waiting"):
        first = ann.said(f"to be {status}")
        here.said("reply", parent_id=first)
        moderate(owner, [first], status)
        here.later()
        assert here.arrived() == [], status
    for hidden in (0, 1):
        # Hidden after the email was written, and before it left.
        first = ann.said(f"mine {hidden}")
        numbers = [first, here.said("reply", parent_id=first)]
        here.fail_mail()
        here.later()
        assert len(here.outbox()) == 1
        moderate(owner, [numbers[hidden]], "spam")
        here.fail_mail(False)
        here.later(HOUR)
        assert here.arrived() == []
        moderate(owner, [numbers[hidden]], "visible")
        here.later(HOUR)
        assert here.recipients() == [ANN] * hidden


# Unsubscribing

FORM = "application/x-www-form-urlencoded"
MULTIPART = (
    '--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n'
)
ONE_CLICKS = [
    ("List-Unsubscribe=One-Click", FORM, ""),
    (MULTIPART, "multipart/form-data; boundary=x", "https://mail.example"),
    ("\0\xff" * 100, "application/octet-stream", "null"),
    ("do=visible&id=1&mac=x", FORM, ""),
]


@pytest.fixture
def replied(here: Here, ann: Reader) -> str:
    """An email about a reply to Ann, who wrote on two pages."""
    assert [ann.said(p, nickname="Ann", page_url=p) for p in ("/one/", "/two/")] == [1, 2]
    here.said("reply", parent_id=1, page_url="/one/")
    here.deliver()
    (text,) = here.texts(ANN)
    here.forget()
    return text


def test_one_click_unsubscribe_ends_the_emails_about_a_page(here: Here, replied: str) -> None:
    path = path_of(link_to("stop", replied))
    for number, (body, kind, origin) in enumerate(ONE_CLICKS):
        here.said(f"waits for its bundle {number}", parent_id=1, page_url="/one/")
        here.deliver()
        headers = {"Content-Type": kind, **({"Origin": origin} if origin else {})}
        reply = here.request(path, method="POST", body=body.encode("latin-1"), headers=headers)
        done = Shown(reply.text)
        assert done.title == "You won’t get any more emails about this page."
        here.later()
        assert here.arrived() == []
        here.press(done.action)
        here.said(f"again {number}", parent_id=1, page_url="/one/")
        here.later()
        assert here.recipients() == [ANN]
        here.forget()


def test_unsubscribing_is_for_one_email_address_alone(here: Here, replied: str) -> None:
    lus = here.said(email=LU, page_url="/one/")
    here.said("to Lu", parent_id=lus, page_url="/one/")
    here.later()
    here.press(link_to("confirm", here.texts(LU)[-1]))
    here.later()
    for do in ("stop", "stop_all"):
        here.press(link_to(do, replied))
    here.forget()
    here.said("again to Lu", parent_id=lus, page_url="/one/")
    here.later()
    assert here.recipients() == [LU]
    # A guest who ends them is not asked again.
    here.press(link_to("stop_all", here.outside.text()))
    here.forget()
    other = here.said("other", email=LU, page_url="/other/")
    here.said("reply", parent_id=other, page_url="/other/")
    here.later()
    assert here.arrived() == []


def test_a_subscription_holds_no_email_address(here: Here, replied: str) -> None:
    for do in ("stop", "stop_all"):
        here.press(link_to(do, replied))
    kept = here.rows()["subscription"]
    assert sorted((page, state) for _, page, state in kept) == [(0, "no"), (1, "no")]
    text = (" ".join(links_in(replied)) + json.dumps(kept)).replace(SERVICE, "")
    assert not [word for word in (ANN, "ann@", "example.com", "%40") if word in text]
    # Nor a hash that whoever knows an address finds without the key.
    assert {who for who, *_ in kept} == {inside.seal(here.served, "subscriber", ANN)[:32]}


def test_unsubscribing_can_be_undone(here: Here, replied: str) -> None:
    def pages_told() -> list[str]:
        here.forget()
        for parent, page in ((1, "/one/"), (2, "/two/")):
            here.said(f"again {here.outside.time}", parent_id=parent, page_url=page)
        here.later(HOUR)
        return [page for page in ("/one/", "/two/") if f"{BLOG}{page}" in str(here.texts(ANN))]

    stop, stop_all = link_to("stop", replied), link_to("stop_all", replied)
    asked = ("Stop all reply emails?", "", "", "Stop all of them")
    assert here.open(stop_all).told == asked
    for link, pages in ((stop, ["/two/"]), (stop_all, [])):
        here.press(link)
        assert pages_told() == pages
        done = here.press(link)
        assert done.button == "Undo"
        here.press(done.action)
        assert pages_told() == ["/one/", "/two/"]
    # To undo one of two leaves the other.
    here.press(stop)
    here.press(here.press(stop_all).action)
    assert pages_told() == ["/two/"]
    here.press(stop_all)
    here.press(here.press(stop).action)
    assert pages_told() == []


@to_nobody
def test_unsubscribing_holds_on_a_renamed_page(here: Here, owner: Reader, replied: str) -> None:
    here.said("there first", page_url="/three/")
    here.press(link_to("stop", replied))
    for page in (1, 2):
        owner.patch_json(f"/admin/pages/{page}", {"page_url": "/three/", "merge": True})
    here.press(link_to("stop", replied))
    here.later()
    here.served.tick()
    here.forget()
    for parent_id in (1, 2):
        here.said("again", parent_id=parent_id, page_url="/three/")
    here.later()
    assert here.arrived(ANN) == []


# What stands in emails


@pytest.mark.parametrize("settings", [{**NAMED, "comments_max_length": 9000}])
def test_a_cut_in_an_email_leaves_no_half_of_a_url(here: Here, ann: Reader) -> None:
    url = "https://example.com/a/long/path"
    mine = ann.said("字" * 290 + url)
    here.said(f"{'字' * 1990} {url}", parent_id=mine)
    here.deliver()
    assert here.told(ANN) == [["字" * 1990 + " …", "字" * 290 + " …"]]
    here.forget()
    whole = "字" * (300 - len(url)) + url
    here.said("好", parent_id=ann.said(f"{whole} 字", page_url="/2/"), page_url="/2/")
    here.later()
    assert ["好", f"{whole} …"] in here.told(ANN)


@pytest.mark.parametrize("settings", [{**NAMED, "comments_max_length": 9000}])
def test_a_long_text_is_cut_in_an_email_and_hides_no_website(here: Here, ann: Reader) -> None:
    long, cut = "字" * 9000, "字" * 2000 + " …"
    here.said(long, parent_id=ann.said(long), website="https://casino.example/")
    here.deliver()
    assert here.told(OWNER) == [[cut, cut, "", "https://casino.example/"]]
    assert here.told(ANN) == [[cut, "字" * 300 + " …"]]


def test_emails_hold_no_ip_address_and_no_location(here: Here, owner: Reader, ann: Reader) -> None:
    first = ann.said("mine", nickname="Ann")
    Reader(here.served, "198.51.100.77").said("reply", parent_id=first, email=LU)
    here.deliver()
    assert len(here.arrived()) == 2
    for email, text in zip(here.outside.emails, here.texts(), strict=True):
        everything = email.message.replace(f"To: {email.recipient}", "") + text
        assert not [w for w in (LU, ANN, OWNER, "198.51.100", CANARY) if w in everything]


@held
def test_the_owner_reads_why_a_comment_waits(here: Here) -> None:
    learnt = "learnt: casino, cheap (0.97)"
    for reason in ("all", "captcha_down", "word: {x: y}", "block: 203.0.113.0/24", learnt):
        kind, _, value = reason.partition(": ")
        for lang in ("en", "zh"):
            number = here.said(f"{reason} {lang}", lang=lang)
            here.sql("UPDATE comment SET held = ? WHERE id = ?", reason, number)
            here.later()
            why = EMAIL_TEXTS[lang][f"held_{kind}"].replace("{value}", value)
            lines = EMAIL_TEXTS[lang]["owner_waiting_text"].splitlines()
            [line] = [line for line in lines if "{held}" in line]
            assert line.replace("{held}", why) in here.texts()[-1], (reason, lang)


def test_no_string_begins_a_line_with_what_a_stranger_chose() -> None:
    for words in EMAIL_TEXTS.values():
        assert all(text.strip() for text in words.values())
        starts = {name for name, text in words.items() if re.search(r"(?m)^\{(nick|page)", text)}
        assert starts <= {"thread_title"}
    for name, text in EMAIL_TEXTS["zh"].items():
        assert not re.search("[\u4e00-\u9fff] ?[,:;?!]|[,:;?!()] ?[\u4e00-\u9fff]", text), name


def test_the_page_of_an_email_link_fits_a_phone_and_its_button_works(
    start: Start, browser: Any
) -> None:
    public = {"server_listen": "127.0.0.1:0", "server_public_url": "http://comments.test"}
    with (
        start(**{**HELD, **public}) as here,
        blog.service(here.served) as address,
        closing(browser.new_page(viewport={"width": 390, "height": 800})) as page,
    ):
        here.said(f"{blog.LONG}\n{'x' * 300}\n<b>bold</b>", nickname="ليلى", lang="zh")
        here.deliver()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        (link,) = re.findall(r"http://comments\.test(/mail\?\S*do=visible\S+)", here.texts()[0])
        page.goto(address + link)
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert Axe().run(page).response["violations"] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="通过").click()
        page.get_by_role("heading", name="已通过，所有人都能看到。").wait_for()
        assert here.status_of(1) == "visible"
        assert complaints == []
