"""Emails about comments: who is told of what and when, the pages that their links lead to, and how
they end. `test_mail.py` has their way to the mail server, `test_account_api.py` followers and
reports."""

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe

import commentd
from commentd import load_config
from support import blog, inside
from support.admin import moderate
from support.client import CANARY, PAGE
from support.database import dump, raw_bytes
from support.emails import Markup
from support.mail import NEWS_HEADERS, UNSUBSCRIBE
from support.notifications import (
    ANN,
    BLOG,
    BUNDLED,
    CO_OWNER,
    DAY,
    EMAIL_TEXTS,
    HOUR,
    LU,
    MINUTE,
    NAMED,
    OWNER,
    SERVICE,
    TO_NOBODY,
    USUAL,
    Guest,
    LinkPage,
    PlainReader,
    Reader,
    StartApp,
    claim,
    link_to,
    links_in,
    named,
    path_of,
    signed_in,
    text_of,
    words_of,
)
from support.notifications import ann as ann  # a fixture
from support.notifications import guest as guest  # a fixture
from support.notifications import owner as owner  # a fixture
from support.notifications import start_app as start_app  # a fixture
from support.notifications import visitor as visitor  # a fixture
from support.world import START, html_of

HELD = {**NAMED, "moderation_hold": "all"}
STATUSES = ("visible", "spam", "deleted")
KINDS = (*STATUSES, "waiting", "confirm", "stop", "stop_all", "start", "start_all")

held = pytest.mark.parametrize("settings", [HELD])
to_nobody = pytest.mark.parametrize("settings", [TO_NOBODY])


@pytest.fixture
def settings() -> dict[str, Any]:
    """Admins have emails; there is none but where a test has an `owner`."""
    return USUAL


# To the owner


@held
def test_an_email_shows_the_url_of_a_page_decoded(guest: Guest) -> None:
    guest.comment("hi", nickname="Lu", page_url="/%E4%BD%A0%E5%A5%BD/")
    guest.deliver()
    ((message,), (text,)) = guest.arrived(OWNER), guest.texts()
    assert message["Subject"] == "New comment by “Lu” on “/你好/”"
    assert "on “/你好/”" in text
    assert "/你好/" in guest.open(links_in(text)[0]).who


@held
def test_the_owner_moderates_by_the_links_of_an_email(guest: Guest) -> None:
    quote, who = "Two lines\n\n> of which\n> one is quoted", f"Lu · {PAGE}"
    guest.comment(quote, nickname="Lu")
    guest.deliver()
    ((message,), (text,)) = guest.arrived(OWNER), guest.texts()
    assert sorted(message.keys()) == sorted(NEWS_HEADERS)
    assert message["Subject"] == f"New comment by “Lu” on “{PAGE}”"
    approve, spam, delete = links_in(text)
    assert text == (
        f"New comment by “Lu” on “{PAGE}”\n\n"
        "> Two lines\n> \n> > of which\n> > one is quoted\n\n"
        "It’s waiting for your approval: every comment needs it.\n\n"
        f"Approve: {approve}\nMark as spam: {spam}\nDelete: {delete}\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n\n"
        f"All comments: {SERVICE}/admin\n"
    )
    assert guest.open(approve).contents == ("Approve this comment?", who, quote, "Approve")
    styles = [guest.open(link).style for link in (approve, spam, delete)]
    assert styles == ["", "danger", "danger"]
    assert guest.listing()["total"] == 0
    done = guest.press(approve)
    assert done.contents == ("Approved: everybody can read it.", who, quote, "Undo")
    assert (done.style, done.next) == ("quiet", ("All comments", "admin"))
    assert [c["content"] for c in guest.listing()["comments"]] == [quote]
    assert guest.press(spam).title == "Marked as spam. It is not public."
    assert guest.press(delete).title == "Deleted: nobody sees it."
    assert guest.status_of(1) == "deleted"


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "links"}])
def test_the_owner_gets_an_email_at_once_with_the_reason_a_comment_waits(guest: Guest) -> None:
    guest.comment("x", nickname="Lu")
    guest.deliver()
    (text,) = guest.texts(OWNER)
    spam, delete = links_in(text)
    assert text == (
        f"New comment by “Lu” on “{PAGE}”\n\n> x\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n"
        f"Mark as spam: {spam}\nDelete: {delete}\n\n"
        f"All comments: {SERVICE}/admin\n"
    )
    guest.fake_world.time += BUNDLED
    guest.comment("x", nickname="Lu", lang="zh", website="https://casino.example/")
    guest.deliver()
    text = guest.texts(OWNER)[1]
    approve, spam, delete = links_in(text)
    assert text == (
        f"“Lu”在“{PAGE}”发表了评论\n\n> x\n> \n> https://casino.example/\n\n"
        f"这条评论等待审核（原因：{EMAIL_TEXTS['zh']['held_links']}）。\n\n"
        f"通过：{approve}\n标为垃圾评论：{spam}\n删除：{delete}\n\n"
        f"查看并回复：{BLOG}{PAGE}#comment-2\n\n管理所有评论：{SERVICE}/admin\n"
    )
    assert "casino.example" in guest.open(approve).who


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "links"}])
def test_the_owner_hears_of_an_edit_that_makes_a_comment_wait(guest: Guest) -> None:
    posted = guest.say("hi", nickname="Ann")
    guest.deliver()
    guest.forget()
    assert guest.edit(posted, "more") == "visible"
    guest.later()
    assert guest.arrived() == []
    assert guest.edit(posted, "https://a.example") == "waiting"
    guest.later()
    (text,) = guest.texts(OWNER)
    assert "> https://a.example" in text


CHINESE, ENGLISH = "发表了评论", "New comment"


def signs_in_at_admin(guest: Guest, email: str, lang: str) -> None:
    body = {"email": email, "password": CANARY, "captcha_token": "x", "lang": lang}
    guest.post_json("/admin/login", body)


def test_an_admin_gets_emails_in_the_language_of_the_admin_page(
    guest: Guest, owner: Reader
) -> None:
    claim(guest.served, CO_OWNER, "Co")
    signs_in_at_admin(guest, OWNER, "en-GB")
    signs_in_at_admin(guest, CO_OWNER, "zh-CN")
    chinese_browser = {"Accept-Language": "zh-CN"}
    for comment, lang in (("Hello", "en"), ("你好", "zh-CN"), ("Bonjour", "fr")):
        guest.forget()
        guest.say(comment, lang=lang)
        guest.later()
        (english,), (chinese,) = guest.texts(OWNER), guest.texts(CO_OWNER)
        assert (ENGLISH in english, CHINESE in chinese) == (True, True), lang
        # The browser does not change the language of a link, nor of what a press leads to.
        link = path_of(link_to("spam", english))
        page = guest.get(link, headers=chinese_browser).text
        assert '<html lang="en"' in page
        assert "Is this comment spam?" in page
        assert guest.open(link_to("spam", chinese)).lang == "zh"
    signs_in_at_admin(guest, OWNER, "de")
    guest.forget()
    guest.say("again", lang="en")
    guest.later()
    assert "Neuer Kommentar" in guest.texts(OWNER)[0]
    # Of a link that was cut, only the browser tells who reads it.
    cut = guest.get("/mail?do=spam", headers=chinese_browser, status=403).text
    assert '<html lang="zh"' in cut


def test_an_email_address_without_an_account_gets_the_language_of_the_first_admin(
    start_app: StartApp,
) -> None:
    with start_app(notify_owner=(LU,)) as guest:
        for lang in (None, "zh-CN"):
            guest.say("你好", lang=lang)
            guest.later()
            assert CHINESE in guest.texts(LU)[-1], "nobody has a language yet"
        claim(guest.served, OWNER, "Owner")
        signs_in_at_admin(guest, OWNER, "en")
        guest.say("你们好", lang="zh-CN")
        guest.later()
        assert ENGLISH in guest.texts(LU)[-1]


def test_an_admin_made_by_a_link_has_the_language_of_its_page(guest: Guest) -> None:
    body = {"link": inside.admin_link(guest.served), "email": OWNER, "nickname": "Owner"}
    guest.post_json("/admin/claim", {**body, "password": CANARY, "lang": "ja"})
    guest.say("Hello", lang="en")
    guest.deliver()
    assert "コメントしました" in guest.texts(OWNER)[0]


@pytest.mark.parametrize("to", [ANN, LU])
def test_emails_about_an_imported_comment_come_in_the_language_of_the_account_or_the_blog(
    guest: Guest, owner: Reader, to: str
) -> None:
    signs_in_at_admin(guest, OWNER, "de")
    ann = guest.newcomer(ANN, "Ann")
    guest.sql("UPDATE account SET language = 'ja' WHERE email = ?", ANN)
    number = ann.comment("Hello") if to == ANN else guest.comment("Hello", email=LU)
    guest.sql("UPDATE comment SET language = ''")
    guest.comment("A reply", parent_id=number)
    guest.later()
    (message,) = guest.arrived(to)
    if to == ANN:
        expected = EMAIL_TEXTS["ja"]["reply_new"].format(nickname="Ann", page=PAGE)
    else:
        expected = EMAIL_TEXTS["de"]["ask_subject"].format(site="blog.example")
    assert message["Subject"] == expected


LONG_PATH = "/" + "a-long-title-of-a-page-" * 9


def test_no_url_in_an_email_runs_into_the_text_behind_it(guest: Guest) -> None:
    # Each comment is told to an admin of each language.
    admins = {language: f"{language}@blog.example" for language in EMAIL_TEXTS}
    for language, email in admins.items():
        claim(guest.served, email, f"Owner {language}")
        signs_in_at_admin(guest, email, language)
    pages = [
        "/a/",
        f"{BLOG}/b/%E4%BD%A0/",
        BLOG + LONG_PATH,
        LONG_PATH,
        f"https://evil.example{LONG_PATH}",
        "https://evil.example/x",
    ]
    for page in pages:
        guest.forget()
        number = guest.say("hello", page_url=page)["comment"]["id"]
        inside.set_status(guest.served, number, "waiting" if page == pages[0] else "visible")
        guest.later()
        for language, email in admins.items():
            (message,), (text,) = guest.arrived(email), guest.texts(email)
            assert EMAIL_TEXTS[language]["more"] in text
            for url in re.findall(r"https?://\S*", text):
                assert re.fullmatch(r"[!-~]+", url), (language, url)
            shown = text.split("\n\n")[0]
            assert "https://blog.example" not in shown
            assert ("…" in shown) == (len(page) > 150), (language, page)
            is_long = LONG_PATH in page and "evil" not in page
            assert (f"{LONG_PATH[:79]}…{LONG_PATH[-40:]}" in shown) == is_long, (language, page)
            assert ("…" in message["Subject"]) == is_long


@pytest.mark.parametrize("settings", [{**NAMED, "notify_language": "zh"}])
def test_owner_and_readers_get_emails_in_their_languages(guest: Guest, ann: Reader) -> None:
    guest.comment("A reply", parent_id=ann.comment("A question"))
    guest.deliver()
    owners, readers = guest.texts(OWNER)[0], guest.texts(ANN)[0]
    assert ("发表了评论" in owners, "replied to you" in readers) == (True, True)
    assert {guest.open(link).lang for link in links_in(owners)} == {"zh"}
    assert {guest.open(link).lang for link in links_in(readers)} == {"en"}


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "links"}])
def test_comments_soon_after_an_email_are_bundled_within_ten_minutes(guest: Guest) -> None:
    guest.comment("one")
    guest.deliver()
    assert len(guest.arrived()) == 1
    guest.fake_world.time += 1
    guest.comment("two", lang="zh")
    guest.comment("three, which waits: https://a.example", page_url="/other/")
    while (wait := guest.deliver()) and len(guest.arrived()) == 1:
        assert wait <= MINUTE
        guest.fake_world.time += wait
    assert START + 5 * MINUTE < guest.fake_world.time <= START + BUNDLED
    message = guest.arrived()[1]
    assert message["Subject"] == "blog.example: 2 new comments"
    text = text_of(message)
    waiting = "three, which waits: https://a.example"
    assert [guest.open(link).text for link in links_in(text)] == [waiting] * 3 + ["two"] * 2
    assert guest.quotes()[1] == [waiting, "two"]
    assert text.count(f"{SERVICE}/admin") == 1
    guest.later(DAY)
    assert len(guest.arrived()) == 2
    guest.comment("after a quiet time")
    guest.deliver()
    assert len(guest.arrived()) == 3
    guest.fake_world.time -= 30 * DAY
    guest.comment("after the clock was set back")
    guest.deliver()
    assert len(guest.arrived()) == 4


@named
@pytest.mark.slow
def test_more_comments_than_an_email_takes_are_all_announced(guest: Guest) -> None:
    visitor = PlainReader(guest.served)
    visitor.comment()
    guest.deliver()
    for number in range(229):
        visitor.comment(str(number))
    guest.later(times=4)
    links = [len(links_in(text)) // 2 for text in guest.texts()]
    more = [int(n) for text in guest.texts() for n in re.findall("And ([0-9]+) more", text)]
    assert (links, more) == ([1, 20], [209])


def test_each_admin_has_an_email_and_none_of_own_comments(guest: Guest, owner: Reader) -> None:
    claim(guest.served, CO_OWNER, "Second")
    first = guest.comment("from a guest")
    guest.deliver()
    assert sorted(guest.recipients()) == [CO_OWNER, OWNER]
    assert len({message["Message-ID"] for message in guest.arrived()}) == 2
    assert len({str(links_in(text)) for text in guest.texts()}) == 2
    link = link_to("spam", guest.texts(CO_OWNER)[0])
    guest.forget()
    owner.post_json("/admin/reply", {"parent_id": first, "content": "by Owner"})
    signed_in(guest.served, CO_OWNER).comment("by Second", nickname="Second")
    guest.later()
    assert guest.quotes(OWNER) == [["by Second"]]
    assert guest.quotes(CO_OWNER) == [["by Owner"]]
    for role, status in (("user", 403), ("admin", 200)):  # links are good for an admin alone
        guest.sql("UPDATE account SET role = ? WHERE email = ?", role, CO_OWNER)
        guest.open(link, status)
        guest.press(link, status)
        assert guest.status_of(first) == ("spam" if role == "admin" else "visible")


def test_the_owners_that_the_settings_name_get_the_emails(start_app: StartApp) -> None:
    for wish, whom in (
        ("", [OWNER]),  # who is the only admin
        ("Owner@BLOG.Example", [OWNER]),
        (f"{CO_OWNER}, {LU}", [CO_OWNER, LU]),
        ("nobody", []),
    ):
        config = load_config(None, {"COMMENTD_NOTIFY_OWNER": wish})
        with start_app(notify_owner=config.notify_owner) as guest:
            if not wish:
                claim(guest.served, OWNER, "Owner")
            mine = signed_in(guest.served, OWNER).comment(f"mine {wish}", nickname="Owner")
            guest.later()
            assert guest.recipients() == [to for to in whom if to != OWNER]
            guest.comment(f"to the owner {wish}", parent_id=mine)
            guest.forget()
            guest.later()
            # The owner has one email of a reply: with links to moderate, where they are named.
            assert guest.recipients() == ([*whom] if OWNER in whom else [*whom, OWNER])
            does = {words_of(link)["do"] for link in links_in(guest.texts(OWNER)[0])}
            assert does == ({"spam", "deleted"} if OWNER in whom else {"stop", "stop_all"})
            guest.forget()


def test_an_email_address_that_a_guest_types_hides_no_comment_from_its_holder(
    guest: Guest, owner: Reader, ann: Reader
) -> None:
    guest.comment("Buy now", email=OWNER)
    guest.comment("You can't see this, Ann", parent_id=ann.comment(), email=ANN)
    guest.deliver()
    assert guest.quotes(OWNER) == [["Buy now", "hi", "You can't see this, Ann"]]
    # She also gets the question whether she wrote it.
    assert guest.quotes(ANN) == [["You can't see this, Ann", "hi"], ["You can't see this, Ann"]]


LONG_NAME = f"c@{'a-long-name-' * 5}.blog-of-somebody.example"


@pytest.mark.parametrize("settings", [{**NAMED, "mail_sender": LONG_NAME}])
def test_the_emails_of_a_thread_stay_together_in_a_mail_program(guest: Guest) -> None:
    first = guest.comment("one")
    guest.deliver()
    guest.comment("two", parent_id=first)
    guest.later()
    guest.comment("three", page_url="/other/")
    guest.later()
    one, two, three = guest.arrived()
    assert one["References"] == one["In-Reply-To"] == two["References"] != three["References"]
    # However long the name of the host is, no id is cut or encoded.
    for email in guest.fake_world.emails:
        ids = r"^(?:Message-ID|In-Reply-To|References): <[\w-]+@[a-z.-]+>\r$"
        assert len(re.findall(ids, email.message, re.M)) == 3


@pytest.mark.parametrize("settings", [{**USUAL, "notify_owner": (OWNER, CO_OWNER)}])
def test_a_comment_hidden_before_its_email_is_sent_to_nobody_else(
    guest: Guest, owner: Reader
) -> None:
    def refuse(email: Any) -> None:
        if email.recipient == CO_OWNER:
            raise ConnectionRefusedError

    guest.fake_world.happens = refuse
    bad = guest.comment("bad")
    guest.comment("good")
    guest.deliver()
    assert guest.recipients() == [OWNER]
    guest.press(link_to("spam", guest.texts(OWNER)[0]))
    guest.fake_world.happens = lambda email: None
    guest.later(times=2)
    assert guest.quotes(OWNER) == [["bad", "good"]]
    assert guest.quotes(CO_OWNER) == [["good"]]
    assert {guest.open(link).text for link in links_in(guest.texts(CO_OWNER)[0])} == {"good"}
    moderate(owner, [bad], "visible")
    guest.later()
    assert len(guest.arrived()) == 2
    assert guest.outbox() == []


@named
@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
def test_no_waiting_email_keeps_the_text_of_a_deleted_comment(
    guest: Guest, ann: Reader, method: str
) -> None:
    mine = ann.comment("a root", nickname="Ann")
    guest.later()
    guest.forget()
    guest.fake_world.time += BUNDLED
    guest.fail_mail()
    made = guest.say("CANARY words", lang="en", parent_id=mine)
    guest.comment("another")
    guest.deliver()
    waiting = [row["text"] for row in guest.outbox()]
    assert ["CANARY" in text for text in waiting] == [True, True]
    ask = guest.delete_json if method == "DELETE" else guest.patch_json
    body = {"edit_token": made["edit_token"], "content": "other words"}
    ask(f"/comments/{made['comment']['id']}", body)
    assert guest.outbox() == []
    guest.fake_world.time += MINUTE
    guest.served.tick()
    assert b"CANARY" not in raw_bytes(Path(inside.database_path(guest.served)))


@pytest.mark.parametrize("settings", [NAMED])
def test_a_comment_deleted_while_its_email_is_sent_is_announced_once(guest: Guest) -> None:
    author = PlainReader(guest.served)
    body = {"edit_token": author.say("first", lang="en")["edit_token"]}
    author.comment("second")
    guest.fake_world.happens = lambda email: author.delete_json("/comments/1", body) and None
    guest.deliver()
    guest.fake_world.happens = lambda email: None
    guest.later()
    assert guest.quotes() == [["first", "second"]]


@pytest.mark.parametrize("settings", [{**NAMED, "server_public_url": ""}])
def test_without_a_public_url_no_email_has_a_link_to_us(guest: Guest, ann: Reader) -> None:
    guest.comment("reply", parent_id=ann.comment(nickname="Ann"))
    ann.post_json("/page/follow", {"page_url": PAGE, "lang": "en"})
    guest.comment("to a guest", parent_id=guest.comment("guest", email=LU))
    guest.deliver()
    guest.later()
    assert {*guest.recipients()} == {ANN, OWNER}
    assert "to a guest" in str(guest.quotes(ANN))
    for message, text in zip(guest.arrived(), guest.texts(), strict=True):
        assert not [word for word in ("/mail", "/admin", "None", "No more") if word in text]
        assert message["List-Unsubscribe"] is message["List-Unsubscribe-Post"] is None
        found = re.findall(r"https?://\S+", text)
        shown = [url for _, url in Markup(message).links]
        assert all(url.startswith(f"{BLOG}{PAGE}#comment-") for url in [*found, *shown])


@pytest.mark.parametrize("settings", [{**NAMED, "server_public_url": "https://b.example/talk"}])
def test_links_keep_the_path_under_which_we_are_reached(guest: Guest) -> None:
    guest.comment()
    guest.deliver()
    (text,) = guest.texts()
    assert "https://b.example/talk/admin" in text
    found = re.findall(r"https://b\.example/talk(/mail\?\S+)", text)
    assert len(found) == 2
    guest.open(found[0])  # its own links are relative


@named
def test_a_page_is_linked_where_it_opens_and_marked_where_it_is_not_the_blogs(guest: Guest) -> None:
    for page, link, foreign in [
        ("/a b/ü", f"{BLOG}/a%20b/%C3%BC", False),
        (f"{BLOG}/x/?a=1", f"{BLOG}/x/?a=1", False),
        ("https://evil.example/x/", "https://evil.example/x/", True),
        ("javascript:alert(1)", "", False),
        ("//evil.example/", "", None),
        ("some-key", "", False),
        ("https://me@evil.example/", "", None),
    ]:
        number = guest.comment(page_url=page)
        guest.later()
        text = guest.texts()[-1]
        found = re.findall(r"Read and reply: (\S+)", text)
        assert found == ([f"{link}#comment-{number}"] if link else []), page
        if foreign is not None:
            assert ("(not your blog)" in text) == foreign, page


# The pages of links: what they refuse, and what they leave alone


def links_of_each_kind(guest: Guest, owner: Reader, lang: str = "en") -> dict[str, str]:
    """All good: those of emails to the owner about comment 1, which waits, and to its author."""
    guest.comment("a question", email=LU, nickname="Lu", lang=lang)
    guest.deliver()
    found = {words_of(link)["do"]: link for link in links_in(guest.texts(OWNER)[-1])}
    found["waiting"] = guest.press(found["visible"]).action
    owner.post_json("/admin/reply", {"parent_id": 1, "content": "a reply"})
    guest.deliver()
    found["confirm"] = link_to("confirm", guest.texts(LU)[-1])
    guest.press(found["confirm"])
    guest.later()
    for stop, start in (("stop", "start"), ("stop_all", "start_all")):
        found[stop] = link_to(stop, guest.texts(LU)[-1])
        found[start] = guest.press(found[stop]).action
        guest.press(found[start])
    guest.press(found["waiting"])
    guest.forget()
    assert {*found} == {*KINDS}
    return found


@pytest.fixture
def links(guest: Guest, owner: Reader) -> dict[str, str]:
    return links_of_each_kind(guest, owner)


@pytest.mark.parametrize("settings", [NAMED, HELD])
def test_the_action_of_an_email_link_can_be_undone(guest: Guest) -> None:
    guest.comment()
    guest.deliver()
    was = guest.status_of(1)
    for link in links_in(guest.texts()[0]):
        do = words_of(link)["do"]
        done = guest.press(link)
        assert guest.status_of(1) == do
        assert guest.open(done.action).text == "hi"
        assert guest.status_of(1) == do
        undone = guest.press(done.action)
        assert guest.status_of(1) == was
        guest.press(undone.action)
        assert guest.status_of(1) == do
        guest.press(done.action)


@held
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_email_link_acts_once_whoever_presses_its_button(
    guest: Guest, owner: Reader, lang: str
) -> None:
    links, words = links_of_each_kind(guest, owner, lang), EMAIL_TEXTS[lang]
    anybody = [
        {"Authorization": "Bearer nonsense"},
        {"Authorization": "Basic eA=="},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ]
    logged = len(owner.get("/admin/audit").json["audit"])
    for number, do in enumerate(KINDS):
        path, headers, before = path_of(links[do]), anybody[number % 4], guest.rows()
        # A mail scanner opens all links.
        reply = guest.get(path, headers=headers)
        shown = LinkPage(reply.text)
        asked = words[f"page_{do}"].format(site="blog.example"), words[f"button_{do}"]
        assert (shown.lang, shown.title, shown.button) == (lang, *asked), do
        assert guest.head(path).headers["Content-Type"] == reply.headers["Content-Type"]
        guest.options(path)
        for method in ("PUT", "PATCH", "DELETE"):
            guest.request(path, method=method, status=405)
        assert guest.rows() == before, do
        done = guest.press(links[do], headers=headers)
        assert done.title == words[f"done_{do}"], do
        assert done.button == (words["undo"] if done.action else ""), do
        assert done.action or do not in (*STATUSES, "waiting", "stop", "stop_all")
        guest.later(0, times=2)
        guest.forget()
        before = guest.rows()
        assert guest.press(links[do]).contents == done.contents, do
        guest.later()
        assert (guest.rows(), guest.arrived()) == (before, []), do
        if do in (*STATUSES, "waiting"):
            assert guest.open(links[do]).title == done.title, do
    lines = owner.get("/admin/audit").json["audit"][:-logged]
    found = [(line["who"], line["action"], line["subject"], line["detail"]) for line in lines]
    assert found == [("mail", do, "1", "") for do in ("waiting", *reversed(STATUSES))]
    broken = LinkPage(guest.get("/mail", headers={"Accept-Language": lang}, status=403).text)
    assert (broken.lang, broken.title) == (lang, words["bad"])


@held
def test_an_email_link_to_an_edited_comment_shows_its_new_text_first(
    guest: Guest, owner: Reader, links: dict[str, str]
) -> None:
    title = "The text has changed since this email was sent. Please look again:"
    labels = {"visible": "Approve", "spam": "Mark as spam", "deleted": "Delete"}
    for changes, who, text in (
        ({"content": "Other"}, "Lu", "Other"),
        ({"content": "a question", "nickname": "Other"}, "Other", "a question"),
    ):
        owner.patch_json("/admin/comments/1", changes)
        for do, label in labels.items():
            before = guest.rows()
            shown = guest.open(links[do])
            again = guest.press(links[do], status=409)
            assert shown.contents == again.contents == (title, f"{who} · {PAGE}", text, label)
            assert guest.rows() == before
            guest.press(again.action)
            assert guest.status_of(1) == do
            guest.press(links[do], status=409)
        moderate(owner, [1], "waiting")


@pytest.mark.parametrize("settings", [{**HELD, "moderation_keep_days": 1}])
def test_email_links_about_a_deleted_comment_say_so(
    guest: Guest, owner: Reader, links: dict[str, str]
) -> None:
    for number in (2, 1):
        moderate(owner, [number], "deleted")
        guest.fake_world.time += 2 * DAY
        guest.served.tick()
    gone = ("This comment no longer exists.", "", "", "")
    for do in STATUSES:
        assert guest.open(links[do], status=404).contents == gone, do
        assert guest.press(links[do], status=404).contents == gone, do
    # Nobody knows its page any more: a link for that page does nothing, and none for all pages.
    before = guest.rows()
    assert guest.open(links["start"], status=404).contents == gone
    assert guest.press(links["start"], status=404).contents == gone
    assert guest.rows() == before
    assert guest.open(links["stop"]).title == EMAIL_TEXTS["en"]["page_stop_all"]
    assert guest.press(links["stop"]).title == EMAIL_TEXTS["en"]["done_stop_all"]


@held
def test_an_email_link_to_moderate_is_good_for_thirty_days(
    guest: Guest, links: dict[str, str]
) -> None:
    guest.fake_world.time = START + 30 * DAY - 1
    kinds = (*STATUSES, "waiting")
    for do in kinds:
        assert guest.open(links[do]).button, do
    back = guest.press(links["visible"]).action
    guest.fake_world.time += 1
    bad = (EMAIL_TEXTS["en"]["bad"], "", "", "")
    for link in (*(links[do] for do in kinds), back):
        assert guest.open(link, status=403).contents == bad
        assert guest.press(link, status=403).contents == bad


def assert_refused(guest: Guest, *queries: str) -> None:
    """Each as a page, whichever way it is asked for, and nothing changes."""
    eve, before = PlainReader(guest.served), guest.rows()
    for query in queries:
        assert eve.head(f"/mail?{query}", status=403).body == b""
        for shown in (eve.open(f"/mail?{query}", 403), eve.press(f"/mail?{query}", 403)):
            assert shown.contents[1:] == ("", "", ""), query
            assert shown.title in {each["bad"] for each in EMAIL_TEXTS.values()}
    assert guest.rows() == before


@held
def test_an_email_link_with_any_parameter_altered_is_refused(
    guest: Guest, links: dict[str, str]
) -> None:
    for link in links.values():
        query, words = urlsplit(link).query, words_of(link)
        secret = words["k"]
        assert guest.open(link).button
        dos = {*KINDS, "undo", "pin", "close", "pinned", "", " ", "\u2028", "'"}
        for name, wrong in {
            "do": {f"{words['do']} ", words["do"].upper(), words["do"] * 2, *dos - {*KINDS}},
            "k": {"0" * 32, secret.upper() + "=", secret[:-1], secret + "0", "é", "", "%"},
        }.items():
            assert_refused(
                guest,
                *[urlencode({**words, name: each}) for each in wrong],
                urlencode({n: v for n, v in words.items() if n != name}),
                urlencode({n.upper() if n == name else n: v for n, v in words.items()}),
                f"{query}&{urlencode({name: words[name]})}",
                f"{name}=x&{query}",
            )
    assert_refused(guest, "", f"k={secret}", "%3Cb%3E=1&%3Cb%3E=2", "do=", "do=stop&id=1&k=x")
    for garbled in ("do=%ff", "%ff=1", "do=%ed%a0%80", "&".join("a" * 300)):
        assert 400 <= guest.get(f"/mail?{garbled}", expect_errors=True).status_int < 500
        assert 400 <= guest.post(f"/mail?{garbled}", expect_errors=True).status_int < 500


# What the secret of a link gives the right to: what it was made for, and to undo that.
RIGHTS = {
    **{do: {do, "waiting"} for do in (*STATUSES, "waiting")},
    "waiting": {"waiting", "visible"},
    "confirm": {"confirm"},
    "stop": {"stop", "start"},
    "start": {"stop", "start"},
    "stop_all": {"stop_all", "start_all"},
    "start_all": {"stop_all", "start_all"},
}


@held
def test_the_secret_of_an_email_link_is_good_for_its_action_and_what_undoes_it(
    guest: Guest, links: dict[str, str]
) -> None:
    secrets = {do: words_of(link)["k"] for do, link in links.items()}
    for own, secret in secrets.items():
        others = {*KINDS, *commentd.ACTIONS, "mine", "not_mine", "unfollow"} - RIGHTS[own]
        assert_refused(guest, *[urlencode({"do": other, "k": secret}) for other in others])


@held
def test_no_other_secret_of_ours_opens_an_email_link(guest: Guest, links: dict[str, str]) -> None:
    (subscriber,) = {subscriber for subscriber, *_ in guest.rows()["subscription"]}
    key = inside.token_key(guest.served).decode()
    secrets = {subscriber, key, guest.say("more")["edit_token"]}
    # What is in the database opens nothing.
    secrets |= {value for row in guest.rows()["short_link"] for value in row if value}
    assert_refused(guest, *[urlencode({"do": do, "k": each}) for each in secrets for do in links])
    kept = dump(inside.database_path(guest.served))
    assert not [do for do, link in links.items() if words_of(link)["k"] in str(kept)]


@held
def test_links_in_emails_are_short_and_each_has_a_secret_of_128_bits(links: dict[str, str]) -> None:
    urls = [link for link in links.values() if link.startswith("http")]
    assert len(urls) > 5
    for url in urls:
        assert len(url) <= 90
        assert re.fullmatch("[0-9a-f]{32}", words_of(url)["k"])
    assert len({words_of(url)["k"] for url in urls}) == len({*urls})


@named
def test_expired_links_are_forgotten(guest: Guest, reply_email: str) -> None:
    def kept() -> set[str]:
        guest.served.tick()
        return {action for _, action, *_ in guest.rows()["short_link"]}

    assert kept() == {"spam", "deleted", "stop", "stop_all"}
    guest.fake_world.time += 30 * DAY
    assert kept() == {"stop", "stop_all"}
    # Each further email lets them be good for another year.
    guest.comment("again", parent_id=1, page_url="/one/")
    guest.later(HOUR)
    guest.fake_world.time += 364 * DAY
    assert {"stop", "stop_all"} <= kept()
    for link in links_in(reply_email):
        guest.open(link)
    guest.fake_world.time += 2 * DAY
    assert kept() == set()
    for link in links_in(reply_email):
        guest.open(link, status=403)


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
def test_texts_of_readers_are_only_text_on_the_page_of_an_email_link(guest: Guest) -> None:
    for content in HOSTILE:
        page = "/" + content[:40].replace("\u2028", "").replace("\u2029", "").strip()
        nickname = re.sub("[^ -~\u0600-\u06ff]", "", content)[:64].strip()
        guest.comment(content, nickname=nickname, page_url=page)
        guest.later()
        text = guest.texts(OWNER)[-1]
        for do in ("spam", "deleted"):
            shown, done = guest.open(link_to(do, text)), guest.press(link_to(do, text))
            assert shown.text == done.text == commentd.bare_content(content)
            assert shown.who.startswith(f"{nickname} · /")


# To authors


def test_an_author_with_an_account_gets_an_email_about_a_reply_at_once(
    guest: Guest, ann: Reader
) -> None:
    first = ann.comment("Why?\nWhy not?", nickname="Ann")
    guest.comment("Because.", parent_id=first, nickname="Bob", lang="zh")
    guest.deliver()
    ((message,), (text,)) = guest.arrived(ANN), guest.texts(ANN)
    stop, stop_all = links_in(text)
    assert (words_of(stop)["do"], words_of(stop_all)["do"]) == ("stop", "stop_all")
    assert text == (
        f"“Bob” replied to you on “{PAGE}”\n\n> Because.\n\nYou wrote:\n\n"
        f"> Why?\n> Why not?\n\nRead and reply: {BLOG}{PAGE}#comment-2\n\n"
        f"No more emails about this page: {stop}\nNo more emails at all: {stop_all}\n"
    )
    assert message["Subject"] == f"“Bob” replied to you on “{PAGE}”"
    assert Markup(message).preview.strip() == "Because."
    assert sorted(message.keys()) == sorted([*NEWS_HEADERS, *UNSUBSCRIBE])
    assert message["List-Unsubscribe"] == f"<{stop}>"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


@pytest.mark.parametrize("page", ["https://evil.example/x/", "/call: 555", "/free%20money/"])
def test_an_email_to_a_reader_calls_no_page_by_what_a_stranger_made_its_name(
    guest: Guest, ann: Reader, page: str
) -> None:
    first = ann.comment("mine", page_url=page, nickname="Ann")
    guest.comment("reply", parent_id=first, page_url=page, nickname="Bob")
    guest.deliver()
    ((message,), (text,)) = guest.arrived(ANN), guest.texts(ANN)
    assert message["Subject"] == "“Bob” replied to you on “blog.example”"
    assert text.startswith(f"{message['Subject']}\n\n> reply\n\n")


def test_ten_minutes_lie_between_two_emails_about_a_page(guest: Guest, ann: Reader) -> None:
    first = ann.comment("mine")
    times = []
    for minute in range(25):
        guest.comment(str(minute), parent_id=first)
        before = len(guest.arrived())
        guest.deliver()
        times += [minute] * (len(guest.arrived()) - before)
        guest.fake_world.time += MINUTE
    assert times == [0, 10, 20]
    assert guest.arrived(ANN)[1]["Subject"] == "blog.example: 10 new replies to your comments"
    assert guest.quotes()[1] == [quote for n in range(1, 11) for quote in (str(n), "mine")]
    assert len(links_in(guest.texts(ANN)[1])) == 2


def test_an_email_is_about_the_two_hundred_oldest_replies_and_the_next_about_the_rest(
    guest: Guest, ann: Reader
) -> None:
    first = ann.comment("mine")
    for number in range(203):
        guest.comment(str(number), parent_id=first)
    guest.deliver()
    guest.later(MINUTE, times=11)
    subjects = [email["Subject"] for email in guest.arrived(ANN)]
    assert [re.findall(r"\d+ new", subject) for subject in subjects] == [["200 new"], ["3 new"]]
    assert guest.quotes()[1] == [quote for n in (200, 201, 202) for quote in (str(n), "mine")]


def test_replies_on_many_pages_are_few_emails_and_none_is_lost(guest: Guest, ann: Reader) -> None:
    for number in range(9):
        mine = ann.comment(nickname="Ann", page_url=f"/{number}/")
        guest.comment(f"on {number}", parent_id=mine, page_url=f"/{number}/")
    guest.deliver()
    guest.later(MINUTE, times=49)
    assert len(guest.arrived()) == 6
    guest.later(MINUTE, times=31)
    assert sorted(guest.quotes(ANN)) == [[f"on {number}", "hi"] for number in range(9)]


@to_nobody
@pytest.mark.parametrize("damaged", ["the reply", "what it answers"])
def test_an_email_about_a_damaged_row_holds_up_no_other(
    guest: Guest, ann: Reader, damaged: str
) -> None:
    mine = ann.comment(nickname="Ann")
    guest.comment("one", parent_id=mine)
    guest.deliver()
    reply = guest.comment("two", parent_id=mine)
    guest.deliver()  # the recipient is looked up; the email waits
    writer = inside.writer(guest.served)
    writer.executescript("PRAGMA foreign_keys = OFF; DROP TRIGGER raise_mark")
    number = reply if damaged == "the reply" else mine
    writer.execute("UPDATE comment SET page_id = page_id + 9 WHERE id = ?", [number])
    other = ann.comment(nickname="Ann", page_url="/other/")
    guest.comment("three", parent_id=other, page_url="/other/")
    guest.later(times=2)
    assert guest.quotes(ANN) == [["one", "hi"], ["three", "hi"]]
    writer.execute("UPDATE comment SET page_id = page_id - 9 WHERE id = ?", [number])


@to_nobody
def test_a_guest_is_asked_to_confirm_once_and_not_before_there_is_a_reply(
    guest: Guest, owner: Reader
) -> None:
    mine = guest.comment("question", email=LU)
    guest.later()
    assert guest.arrived() == []
    for page_url in (PAGE, "/1/", "/2/"):
        if page_url != PAGE:
            mine = guest.comment("question", email=LU, page_url=page_url)
        for _ in range(2):
            guest.comment("reply", parent_id=mine, page_url=page_url)
        guest.later(HOUR)
    guest.later(400 * DAY)
    guest.served.tick()
    guest.comment("reply", parent_id=guest.comment("a year later", email=LU))
    guest.later()
    assert guest.recipients() == [LU]


def test_the_email_that_asks_to_confirm_holds_nothing_that_a_stranger_typed(guest: Guest) -> None:
    for email, evil in ((LU, "x"), (ANN, "https://evil.example/?a=1")):
        fields = {"nickname": evil, "page_url": f"/{evil}", "website": "https://evil.example/"}
        mine = guest.comment(evil, email=email, **fields)
        guest.comment(evil, nickname=evil, page_url=f"/{evil}", parent_id=mine)
    guest.deliver()
    found = []
    for message in guest.arrived():
        (link,) = links_in(text_of(message))
        assert {*words_of(link)} == {"do", "k"}
        found.append((message["Subject"], text_of(message).replace(link, "")))
        assert message["References"] is None
    first, second = found
    assert first == second
    for message in guest.arrived():
        assert "evil" not in f"{message.items()} {text_of(message)} {html_of(message)}"


@to_nobody
def test_a_guest_who_confirms_gets_the_waiting_and_the_coming_replies(
    guest: Guest, owner: Reader
) -> None:
    one = guest.comment("one", email=LU, nickname="陆", lang="zh")
    two = guest.comment("two", email=LU, page_url="/other/", lang="zh")
    guest.comment("to one", parent_id=one)
    guest.deliver()
    guest.comment("to two", parent_id=two, page_url="/other/")
    guest.later()
    ((message,), (text,)) = guest.arrived(), guest.texts()
    assert message["Subject"] == "blog.example：有回复时要通知你吗？"
    (confirm,) = links_in(text)
    asked = ("有人在“blog.example”回复你时，要收到邮件吗？", "", "", "好，请通知我")
    assert guest.open(confirm).contents == asked
    for _ in range(3):
        assert guest.press(confirm).title == "有人回复你时，你会收到邮件。"
        guest.later()
    assert sorted(guest.quotes(LU)[1:]) == [["to one", "one"], ["to two", "two"]]
    guest.forget()
    # While what it replies to waits for the owner, a reply waits too.
    guest.comment("to one again", parent_id=one)
    moderate(owner, [one], "waiting")
    guest.later()
    assert guest.arrived() == []
    moderate(owner, [one], "visible")
    guest.later(HOUR)
    assert guest.quotes(LU) == [["to one again", "one"]]


def test_a_confirmation_link_is_good_for_the_email_address_that_was_asked_alone(
    guest: Guest,
) -> None:
    mine = guest.comment(email=LU)
    guest.comment(parent_id=mine)
    guest.deliver()
    confirm = link_to("confirm", guest.fake_world.text())
    # A backup was restored, and the number given again.
    guest.sql("UPDATE comment SET email = 'eve@example.com' WHERE id = ?", mine)
    guest.press(confirm)
    guest.comment("to Eve", parent_id=mine)
    guest.later()
    assert [each for each in guest.quotes("eve@example.com") if "to Eve" in each] == []


def test_an_author_gets_no_email_about_their_own_reply(
    guest: Guest, owner: Reader, ann: Reader
) -> None:
    ann.comment("and more", nickname="Ann", parent_id=ann.comment("mine", nickname="Ann"))
    guest.comment("and more", email=LU, parent_id=guest.comment("a guest's", email=LU))
    before = guest.comment("before I signed in", email=ANN)
    ann.comment("and after", nickname="Ann", parent_id=before)
    owners = signed_in(guest.served, OWNER).comment("the owner's", nickname="Owner")
    owner.post_json("/admin/reply", {"parent_id": owners, "content": "and more"})
    guest.deliver()
    guest.later()
    assert {*guest.recipients()} == {OWNER, ANN}
    assert guest.quotes(ANN) == [["before I signed in"]]  # the question whether she wrote that
    found = sorted(quote for each in guest.quotes(OWNER) for quote in each)
    guests_words = ["a guest's", "and after", "and more", "and more", "before I signed in"]
    assert found == [*guests_words, "mine"]


@held
def test_a_waiting_reply_is_announced_once_approved(
    guest: Guest, owner: Reader, ann: Reader
) -> None:
    first = ann.comment("mine", nickname="Ann")
    moderate(owner, [first], "visible")
    guest.deliver()
    replies = []
    for number in range(2):
        replies.append(guest.comment(f"reply {number}", parent_id=first))
        guest.later()
    assert guest.arrived(ANN) == []
    guest.press(link_to("visible", guest.texts(OWNER)[-2]))
    guest.deliver()
    for status in ("visible", "waiting", "visible"):
        moderate(owner, [replies[1]], status)
        guest.later()
    assert guest.quotes(ANN) == [["reply 0", "mine"], ["reply 1", "mine"]]


@to_nobody
def test_hidden_replies_are_announced_to_nobody(guest: Guest, owner: Reader, ann: Reader) -> None:
    for status in ("spam", "deleted", "waiting"):
        first = ann.comment(f"to be {status}")
        guest.comment("reply", parent_id=first)
        moderate(owner, [first], status)
        guest.later()
        assert guest.arrived() == [], status
    for hidden in (0, 1):
        # Hidden after the email was written, and before it left.
        first = ann.comment(f"mine {hidden}")
        numbers = [first, guest.comment("reply", parent_id=first)]
        guest.fail_mail()
        guest.later()
        assert len(guest.outbox()) == 1
        moderate(owner, [numbers[hidden]], "spam")
        guest.fail_mail(False)
        guest.later(HOUR)
        assert guest.arrived() == []
        moderate(owner, [numbers[hidden]], "visible")
        guest.later(HOUR)
        assert guest.recipients() == [ANN] * hidden


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
def reply_email(guest: Guest, ann: Reader) -> str:
    """An email about a reply to Ann, who wrote on two pages."""
    assert [ann.comment(p, nickname="Ann", page_url=p) for p in ("/one/", "/two/")] == [1, 2]
    guest.comment("reply", parent_id=1, page_url="/one/")
    guest.deliver()
    (text,) = guest.texts(ANN)
    guest.forget()
    return text


def test_one_click_unsubscribe_ends_the_emails_about_a_page(guest: Guest, reply_email: str) -> None:
    path = path_of(link_to("stop", reply_email))
    for number, (body, kind, origin) in enumerate(ONE_CLICKS):
        guest.comment(f"waits for its bundle {number}", parent_id=1, page_url="/one/")
        guest.deliver()
        headers = {"Content-Type": kind, **({"Origin": origin} if origin else {})}
        reply = guest.request(path, method="POST", body=body.encode("latin-1"), headers=headers)
        done = LinkPage(reply.text)
        assert done.title == "You won’t get any more emails about this page."
        guest.later()
        assert guest.arrived() == []
        guest.press(done.action)
        guest.comment(f"again {number}", parent_id=1, page_url="/one/")
        guest.later()
        assert guest.recipients() == [ANN]
        guest.forget()


def test_unsubscribing_is_for_one_email_address_alone(guest: Guest, reply_email: str) -> None:
    lus = guest.comment(email=LU, page_url="/one/")
    guest.comment("to Lu", parent_id=lus, page_url="/one/")
    guest.later()
    guest.press(link_to("confirm", guest.texts(LU)[-1]))
    guest.later()
    for do in ("stop", "stop_all"):
        guest.press(link_to(do, reply_email))
    guest.forget()
    guest.comment("again to Lu", parent_id=lus, page_url="/one/")
    guest.later()
    assert guest.recipients() == [LU]
    # A guest who ends them is not asked again.
    guest.press(link_to("stop_all", guest.fake_world.text()))
    guest.forget()
    other = guest.comment("other", email=LU, page_url="/other/")
    guest.comment("reply", parent_id=other, page_url="/other/")
    guest.later()
    assert guest.arrived() == []


def test_a_subscription_holds_no_email_address(guest: Guest, reply_email: str) -> None:
    for do in ("stop", "stop_all"):
        guest.press(link_to(do, reply_email))
    kept = guest.rows()["subscription"]
    assert sorted((page, state) for _, page, state in kept) == [(0, "no"), (1, "no")]
    text = (" ".join(links_in(reply_email)) + json.dumps(kept)).replace(SERVICE, "")
    assert not [word for word in (ANN, "ann@", "example.com", "%40") if word in text]
    # Nor a hash that whoever knows an address finds without the key.
    assert {who for who, *_ in kept} == {inside.seal(guest.served, "subscriber", ANN)[:32]}


def test_unsubscribing_can_be_undone(guest: Guest, reply_email: str) -> None:
    def pages_told() -> list[str]:
        guest.forget()
        for parent, page in ((1, "/one/"), (2, "/two/")):
            guest.comment(f"again {guest.fake_world.time}", parent_id=parent, page_url=page)
        guest.later(HOUR)
        return [page for page in ("/one/", "/two/") if f"{BLOG}{page}" in str(guest.texts(ANN))]

    stop, stop_all = link_to("stop", reply_email), link_to("stop_all", reply_email)
    asked = ("Stop all reply emails?", "", "", "Stop all of them")
    assert guest.open(stop_all).contents == asked
    for link, pages in ((stop, ["/two/"]), (stop_all, [])):
        guest.press(link)
        assert pages_told() == pages
        done = guest.press(link)
        assert done.button == "Undo"
        assert done.next == ("View comments", f"{BLOG}/one/")
        guest.press(done.action)
        assert pages_told() == ["/one/", "/two/"]
    # To undo one of two leaves the other.
    guest.press(stop)
    guest.press(guest.press(stop_all).action)
    assert pages_told() == ["/two/"]
    guest.press(stop_all)
    guest.press(guest.press(stop).action)
    assert pages_told() == []


@to_nobody
def test_unsubscribing_holds_on_a_renamed_page(
    guest: Guest, owner: Reader, reply_email: str
) -> None:
    guest.comment("there first", page_url="/three/")
    guest.press(link_to("stop", reply_email))
    for page in (1, 2):
        owner.patch_json(f"/admin/pages/{page}", {"page_url": "/three/", "merge": True})
    guest.press(link_to("stop", reply_email))
    guest.later()
    guest.served.tick()
    guest.forget()
    for parent_id in (1, 2):
        guest.comment("again", parent_id=parent_id, page_url="/three/")
    guest.later()
    assert guest.arrived(ANN) == []


# What stands in emails


@pytest.mark.parametrize("settings", [{**NAMED, "comments_max_length": 9000}])
def test_a_cut_in_an_email_leaves_no_half_of_a_url(guest: Guest, ann: Reader) -> None:
    url = "https://example.com/a/long/path"
    mine = ann.comment("字" * 290 + url)
    guest.comment(f"{'字' * 1990} {url}", parent_id=mine)
    guest.deliver()
    assert guest.quotes(ANN) == [["字" * 1990 + " …", "字" * 290 + " …"]]
    guest.forget()
    whole = "字" * (300 - len(url)) + url
    guest.comment("好", parent_id=ann.comment(f"{whole} 字", page_url="/2/"), page_url="/2/")
    guest.later()
    assert ["好", f"{whole} …"] in guest.quotes(ANN)


@pytest.mark.parametrize("settings", [NAMED])
def test_the_owner_reads_five_reasons_of_reports_and_the_beginning_of_each(guest: Guest) -> None:
    number = guest.comment("rude")
    guest.later()
    guest.forget()
    for reader, reason in enumerate(["x" * 300, "", "rude", "rude", "c", "d", "e"]):
        Reader(guest.served, f"198.51.100.{reader}").report(number, reason)
        guest.fake_world.time += 1
    guest.later()
    [text] = guest.texts(OWNER)
    reasons = [f"{'x' * 118} …", EMAIL_TEXTS["en"]["report_none"], "rude", "c", "d"]
    assert "\n\n" + "\n".join(f"> {each}" for each in reasons) + "\n\n" in text


@pytest.mark.parametrize("settings", [{**NAMED, "comments_max_length": 9000}])
def test_a_long_text_is_cut_in_an_email_and_hides_no_website(guest: Guest, ann: Reader) -> None:
    long, cut = "字" * 9000, "字" * 2000 + " …"
    guest.comment(long, parent_id=ann.comment(long), website="https://casino.example/")
    guest.deliver()
    assert guest.quotes(OWNER) == [[cut, cut, "", "https://casino.example/"]]
    assert guest.quotes(ANN) == [[cut, "字" * 300 + " …"]]


def test_emails_hold_no_ip_address_and_no_location(
    guest: Guest, owner: Reader, ann: Reader
) -> None:
    first = ann.comment("mine", nickname="Ann")
    Reader(guest.served, "198.51.100.77").comment("reply", parent_id=first, email=LU)
    guest.deliver()
    assert len(guest.arrived()) == 2
    for email, text in zip(guest.fake_world.emails, guest.texts(), strict=True):
        everything = email.message.replace(f"To: {email.recipient}", "") + text
        assert not [w for w in (LU, ANN, OWNER, "198.51.100", CANARY) if w in everything]


@held
def test_the_owner_reads_why_a_comment_waits(guest: Guest) -> None:
    learnt = "learnt: casino, cheap (0.97)"
    for reason in ("all", "captcha_down", "word: {x: y}", "block: 203.0.113.0/24", learnt):
        kind, _, value = reason.partition(": ")
        for lang in ("en", "zh"):
            number = guest.comment(f"{reason} {lang}", lang=lang)
            guest.sql("UPDATE comment SET held = ? WHERE id = ?", reason, number)
            guest.later()
            why = EMAIL_TEXTS[lang][f"held_{kind}"].replace("{value}", value)
            line = EMAIL_TEXTS[lang]["comment_waits"]
            assert line.replace("{held}", why) in guest.texts()[-1], (reason, lang)


def test_no_string_begins_a_line_with_what_a_stranger_chose() -> None:
    for words in EMAIL_TEXTS.values():
        assert all(text.strip() for text in words.values())
        starts = {name for name, text in words.items() if re.search(r"(?m)^\{(nick|page)", text)}
        assert starts <= {"thread_title"}
    for name, text in EMAIL_TEXTS["zh"].items():
        assert not re.search("[\u4e00-\u9fff] ?[,:;?!]|[,:;?!()] ?[\u4e00-\u9fff]", text), name


def test_the_page_of_an_email_link_fits_a_phone_and_its_button_works(
    start_app: StartApp, browser: Any
) -> None:
    public = {"server_listen": "127.0.0.1:0", "server_public_url": "http://comments.test"}
    with (
        start_app(**{**HELD, **public}) as guest,
        blog.service(guest.served) as address,
        closing(browser.new_page(viewport={"width": 390, "height": 800})) as page,
    ):
        guest.comment(f"{blog.LONG}\n{'x' * 300}\n<b>bold</b>", nickname="ليلى", lang="zh")
        guest.deliver()
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        (link,) = re.findall(r"http://comments\.test(/mail\?\S*do=visible\S+)", guest.texts()[0])
        page.goto(address + link)
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert Axe().run(page).response["violations"] == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.get_by_role("button", name="通过").click()
        page.get_by_role("heading", name="已通过，所有人都能看到。").wait_for()
        assert guest.status_of(1) == "visible"
        assert complaints == []


# Who gets the emails about a page

RULES = f"""
/photos/* = ann@example.com, bob@example.com
/photos/private/* = carl@example.com
/quiet = nobody
*.pdf?v=* = dora@example.com
/日记/* = Emil@Example.com
{"*/" * 30}x = ann@example.com
"""
BOTH = ["ann@example.com", "bob@example.com"]
TO = {
    **dict.fromkeys(("/photos/1", "/photos/", "/photos/private/2", "/photos"), BOTH),
    "/old/photos/1": [OWNER],
    "/quiet": [],
    "/a/b.pdf?v=2": ["dora@example.com"],
    "/a/bxpdf?v=2": [OWNER],
    "/日记/x": ["emil@example.com"],
    # Whoever comments first chooses the spelling.
    "https://blog.example/photos/1": BOTH,
    "//BLOG.example/%70hotos/1/#x": BOTH,
    "https://other.example/photos/1": [OWNER],
    "/quiet/index.html?utm_source=x": [],
    "/a" * 1000: [OWNER],  # a rule that took steps back would not come to an end
}


def test_emails_about_a_page_go_to_whom_the_first_rule_names(
    start_app: StartApp, tmp_path: Path
) -> None:
    path = tmp_path / "commentd.ini"
    lines = "\n".join(f"  {line}" for line in RULES.strip().splitlines())
    path.write_text(f"[notify]\npages =\n{lines}")
    rules = load_config(path, {}).notify_pages
    assert rules == load_config(None, {"COMMENTD_NOTIFY_PAGES": RULES}).notify_pages
    with start_app(notify_owner=(OWNER,), notify_pages=rules) as guest:
        for page_url, to in TO.items():
            guest.forget()
            guest.comment("hi", page_url=page_url)
            guest.later()
            assert guest.recipients() == to, page_url
            for text in guest.texts():
                guest.open(link_to("spam", text))
        # One email about many pages holds for each what is theirs.
        guest.forget()
        for page_url, content in (("/photos/1", "a photo"), ("/x", "a text"), ("/quiet", "hush")):
            guest.comment(content, page_url=page_url)
        guest.later()
        assert guest.quotes(OWNER) == [["a text"]]
        assert guest.quotes(BOTH[0]) == guest.quotes(BOTH[1]) == [["a photo"]]
        link = link_to("deleted", guest.texts(OWNER)[0])
    # Who is not named for a page any more can't moderate there by an older email.
    rules = load_config(None, {"COMMENTD_NOTIFY_PAGES": "/x = ann@example.com"}).notify_pages
    with start_app(notify_owner=(OWNER,), notify_pages=rules) as guest:
        guest.press(link, status=403)
        assert guest.listing(url="/x")["total"] == 1


def test_a_rule_that_cannot_work_stops_the_start() -> None:
    for line in ("/photos/*", "= ann@example.com", "/x =", "/x = ann", "/x = a b"):
        with pytest.raises(inside.REFUSALS, match=r"(?i)pages") as fault:
            load_config(None, {"COMMENTD_NOTIFY_PAGES": f"/a = ann@example.com\n  {line}\n"})
        assert "\n" not in str(fault.value), line
