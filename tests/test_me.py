"""What readers have of their own: the account, the pages they follow, what they report, all that
is kept of them; and that nothing of it is left when they go."""

import hashlib
import html
import itertools
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import inside
import pytest
import test_notifications as notifications
from conftest import CANARY, PAGE, Outside, Visitor, assert_whole, cut_off, dump
from test_comments import SHOWN, hide
from test_mail import HEADERS
from test_notifications import (
    ANN,
    BLOG,
    DAY,
    HOUR,
    LETTERS,
    LU,
    MINUTE,
    OWNER,
    SERVICE,
    TO_NOBODY,
    USUAL,
    Reader,
    Shown,
    claim,
    link_to,
    links_in,
    moderate,
    path_of,
    said,
    signed_in,
    words_of,
)
from test_server import BLOG as BLOG_ORIGIN
from test_server import COMMENT, FOREIGN
from webtest import TestApp

from commentd import App, Config, make_app

visitor, owner, ann, named = (
    notifications.visitor,
    notifications.owner,
    notifications.ann,
    notifications.named,
)

BEA = "bea@example.com"
NEW = "another passphrase"
GONE = {"error": "评论不存在", "code": "comment_gone"}
ANONYMOUS = {"nickname": "", "website": "", "ip": "", "location": "", "country": "", "role": ""}
LIMITS = pytest.mark.parametrize("settings", [{**USUAL, "limits_enabled": True}])
ENDS = pytest.mark.parametrize("comments", ["keep", "delete"])


@pytest.fixture
def settings() -> dict[str, Any]:
    """The owner has no emails but where a test says so."""
    return TO_NOBODY


@dataclass
class Here:
    """The service, its clock and its post office."""

    app: App
    outside: Outside
    visitor: Reader

    def bob(self, content: str = "hi", **fields: Any) -> int:
        """A guest, Bob, writes."""
        return said(self.visitor, content, **{"nickname": "Bob", **fields})

    def deliver(self) -> None:
        self.app.deliver()

    def later(self, seconds: int = 10 * MINUTE, times: int = 1) -> None:
        for _ in range(times):
            notifications.later(self.app, self.outside, seconds)

    def fail_mail(self, fails: bool = True) -> None:
        self.outside.mail_fails_with = ConnectionRefusedError() if fails else None

    def arrived(self, to: str | None = None) -> Any:
        """The emails that went out, to someone."""
        return notifications.arrived(self.outside, to)

    def texts(self, to: str | None = None) -> list[str]:
        return notifications.texts(self.outside, to)

    def told(self, to: str = ANN) -> list[list[str]]:
        """The first lines of the comments in each email to someone."""
        return [re.findall("^> (.*)", text, re.M) for text in self.texts(to)]

    def forget(self) -> None:
        self.outside.letters.clear()

    def sql(self, statement: str, *values: Any) -> list[Any]:
        return inside.sql(self.app, statement, *values)

    def newcomer(self, email: str = BEA, nickname: str = "Bea") -> Reader:
        """One more reader with an account."""
        reader = Reader(self.app)
        self.deliver()  # so that the next email is the one with the code
        reader.register(email, nickname=nickname)
        self.deliver()
        reader.verify(self.outside.code(), email)
        self.forget()
        return signed_in(self.app, email)

    def other(self, number: int = 200) -> Reader:
        """A visitor at another IP address."""
        return Reader(self.app, f"203.0.113.{number}")

    def followers(self) -> set[tuple[str, str]]:
        return {*self.sql(FOLLOWERS)}


FOLLOWERS = """SELECT email, key FROM follow JOIN account ON account.id = user_id
                 JOIN page ON page.id = page_id"""


@pytest.fixture
def here(app: App, outside: Outside, visitor: Reader) -> Here:
    return Here(app, outside, visitor)


def me(reader: Visitor, status: int = 200, **query: Any) -> Any:
    return reader.get("/me", query, status=status).json


def change(reader: Visitor, status: int = 200, **fields: Any) -> Any:
    return reader.patch_json("/me", fields, status=status).json


def leave(reader: Visitor, comments: Any = "keep", status: int = 200, **fields: Any) -> Any:
    body = {"password": CANARY, "comments": comments, **fields}
    return reader.delete_json("/me", body, status=status).json


def follow(reader: Visitor, page_url: object = PAGE, status: int = 200, **fields: Any) -> Any:
    body = {"page_url": page_url, "lang": "en", **fields}
    return reader.post_json("/page/follow", body, status=status).json


def report(reader: Visitor, number: int = 1, reason: object = "", status: int = 200) -> Any:
    path = f"/comments/{number}/report"
    return reader.post_json(path, {"reason": reason}, status=status).json


def export(reader: Visitor, status: int = 200) -> Any:
    return reader.get("/me/export", status=status).json


def renewed(reader: Visitor, token: str) -> None:
    reader.authorization = ("Bearer", token)


def page_id(owner: Reader, page_url: str) -> int:
    pages = owner.get("/admin/pages").json["pages"]
    return next(int(page["id"]) for page in pages if page["page_url"] == page_url)


# What an account is told of itself


def test_an_account_reads_what_is_its_own(ann: Reader) -> None:
    shown = {
        "email": ANN,
        "nickname": "Ann",
        "role": "user",
        "created_at": "2026-11-18 19:06:40",
        "comments": 0,
        "answers": True,
        "follows": [],
    }
    assert me(ann) == shown
    assert me(ann, url=PAGE) == {**shown, "following": False}
    follow(ann)
    follow(ann, "https://elsewhere.example/p")
    follows = [
        {"page_url": "https://elsewhere.example/p", "page_link": ""},
        {"page_url": PAGE, "page_link": BLOG + PAGE},
    ]
    assert me(ann, url=PAGE) == {**shown, "follows": follows, "following": True}
    assert me(ann, url="/other/")["following"] is False
    for query in ("url=", "url=%ff", "url=%00", "url=/a&url=/b"):
        code = ann.get(f"/me?{query}", status=400).json["code"]
        assert code.startswith(("url_", "query_")), query


def test_a_page_is_followed_however_it_is_spelled(ann: Reader) -> None:
    for spelled in (PAGE, BLOG + PAGE, f"{PAGE}index.html", PAGE[:-1], f"{PAGE}?utm_source=x#top"):
        follow(ann, spelled)
        assert me(ann, url=PAGE)["following"]
        assert len(me(ann)["follows"]) == 1
        assert me(ann, url=spelled)["following"]
        follow(ann, undo=True)
        assert not me(ann, url=spelled)["following"]


def test_an_account_counts_what_is_kept_of_what_it_wrote(here: Here, ann: Reader) -> None:
    for number, status in enumerate(["visible", "waiting", "spam", "deleted"], 1):
        said(ann, status)
        hide(here.app, number, status)
    said(ann, "mine to delete")
    ann.delete_json("/comments/5", {})
    here.bob("another's")
    assert me(ann)["comments"] == len(export(ann)["comments"]) == 4


def test_of_another_account_nothing_is_told(here: Here, ann: Reader) -> None:
    bea = here.newcomer()
    said(bea)
    follow(bea)
    bea.post_json("/comment/like", {"id": 1})
    report(bea, 1, "mine")
    mine, everything = me(ann, url=PAGE), export(ann)
    assert (mine["comments"], mine["follows"], mine["following"]) == (0, [], False)
    assert everything.pop("account")["email"] == ANN
    kept = ("comments", "follows", "muted", "likes", "page_likes", "reports")
    assert everything == {name: [] for name in kept}


def test_without_a_token_there_is_no_account(visitor: Reader) -> None:
    body = {"password": CANARY, "comments": "keep", "page_url": PAGE, "nickname": "Eve"}
    for headers in ({}, {"Authorization": "Bearer x.y.z"}):
        how: dict[str, Any] = {"headers": headers, "status": 401}
        for reply in (
            visitor.get("/me", **how),
            visitor.get("/me/export", **how),
            visitor.patch_json("/me", body, **how),
            visitor.delete_json("/me", body, **how),
            visitor.post_json("/page/follow", body, **how),
        ):
            assert reply.headers["WWW-Authenticate"] == "Bearer"


def test_no_cache_keeps_what_is_an_accounts(ann: Reader) -> None:
    for path in ("/me", f"/me?url={PAGE}", "/me/export"):
        headers = ann.get(path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Vary"] == "Accept-Encoding, Origin, Authorization"


def test_only_the_blog_may_change_an_account(ann: Reader) -> None:
    for method, path in (("PATCH", "/me"), ("DELETE", "/me"), ("POST", "/page/follow")):
        asked = {"Access-Control-Request-Method": method, "Origin": BLOG_ORIGIN}
        preflight = ann.options(path, headers=asked, status=204).headers
        assert method in preflight["Access-Control-Allow-Methods"]
    gone = {"password": CANARY, "comments": "keep"}
    for origin, status in ((FOREIGN, 403), ("null", 403), (BLOG_ORIGIN, 200)):
        how: dict[str, Any] = {"headers": {"Origin": origin}, "status": status}
        ann.post_json("/page/follow", {"page_url": PAGE}, **how)
        ann.patch_json("/me", {"answers": False}, **how)
        ann.delete_json("/me", gone, **how)


# The nickname


def test_a_new_nickname_holds_for_what_is_written_from_now_on(ann: Reader) -> None:
    body = {"page_url": PAGE, "captcha_token": "x"}
    ann.post_json("/comments", {**body, "content": "before"})
    assert change(ann, nickname="  Annette ") == {"success": True, "nickname": "Annette"}
    ann.post_json("/comments", {**body, "content": "after"})
    names = {c["content"]: c["nickname"] for c in ann.listing()["comments"]}
    assert names == {"before": "Ann", "after": "Annette"}
    assert me(ann)["nickname"] == ann.login()["nickname"] == "Annette"


def test_nobody_takes_a_nickname_like_the_owners(here: Here, owner: Reader, ann: Reader) -> None:
    for nickname in ("Owner", "OWNER", "0wner", "Оwner", "o w n e r"):
        for more in ({}, {"new_password": NEW, "password": CANARY, "answers": False}):
            assert change(ann, 409, nickname=nickname, **more)["code"] == "nickname_taken"
    assert (me(ann)["nickname"], me(ann)["answers"]) == ("Ann", True)
    ann.login()
    blog = signed_in(here.app, OWNER)  # the owner may look like the owner
    for nickname in ("The Owner", "Owner"):
        assert change(blog, nickname=nickname)["nickname"] == nickname


BAD_CHANGES: dict[str, list[dict[str, Any]]] = {
    "nickname_invalid": [
        {"nickname": bad} for bad in (5, [], {}, True, " ", "a\nb", "\u202e", "x" * 65)
    ],
    "nickname_too_long": [{"nickname": "x" * 257}],
    "answers_invalid": [{"answers": bad} for bad in (1, "yes", None, [])],
    "new_password_missing": [{"new_password": bad, "password": CANARY} for bad in ("", None)],
    "new_password_invalid": [{"new_password": bad, "password": CANARY} for bad in (5, ["a"])],
    "new_password_too_long": [{"new_password": "é" * 600, "password": CANARY}],
    "password_missing": [{"new_password": NEW}, {"new_password": NEW, "password": ""}],
    "password_invalid": [{"new_password": NEW, "password": 7}],
}


def test_what_is_no_nickname_wish_or_password_changes_nothing(ann: Reader) -> None:
    before = me(ann)
    for code, bodies in BAD_CHANGES.items():
        for fields in bodies:
            refused = change(ann, 400, **{"nickname": "Annette", **fields})
            assert refused["code"] == code, fields
    assert me(ann) == before
    ann.login()


def test_nothing_else_of_an_account_can_be_changed(here: Here, ann: Reader) -> None:
    before = here.sql("SELECT * FROM account")
    wishes = {"role": "admin", "id": 9, "email": "eve@example.com", "blocked": 0, "version": 0}
    assert change(ann, **wishes, verified=True, user_id=9, created_at=1)["success"]
    assert change(ann, password="wrong", nickname="")["nickname"] == "Ann"
    assert here.sql("SELECT * FROM account") == before


# The password


def test_a_new_password_ends_all_older_logins_but_this(here: Here, ann: Reader) -> None:
    phone = signed_in(here.app, ANN)
    old, new = (hashlib.sha256(word.encode()).hexdigest() for word in (CANARY, NEW))
    fresh = change(ann, new_password=new.upper(), password=old, nickname="Annette")
    assert fresh.keys() == {"success", "nickname", "token"}
    for reader in (ann, phone):
        assert me(reader, 401)["code"] == "token_invalid"
    renewed(ann, fresh["token"])
    assert me(ann)["nickname"] == "Annette"
    assert here.visitor.login(ANN, 401)["code"] == "wrong_credentials"
    assert here.visitor.login(ANN, password=NEW)["nickname"] == "Annette"
    here.deliver()
    (message,) = here.arrived()
    assert message["To"] == ANN
    assert message["Subject"] == "blog.example：密码已修改 / password changed"
    assert leave(ann, password=new) == {"success": True}


def test_the_owner_with_a_new_password_signs_in_anew_everywhere(here: Here, owner: Reader) -> None:
    change(signed_in(here.app, OWNER), new_password=NEW, password=CANARY)
    owner.get("/admin/comments", status=401)
    body = {"email": OWNER, "password": NEW, "captcha_token": "x"}
    assert here.visitor.post_json("/admin/login", body).json["nickname"] == "Owner"


def test_with_a_wrong_password_nothing_grave_is_done(here: Here, ann: Reader) -> None:
    for wrong in ("wrong", CANARY + " ", CANARY.lower(), "x" * 64):
        for refused in (
            change(ann, 403, new_password=NEW, password=wrong, nickname="Eve"),
            leave(ann, "delete", 403, password=wrong),
        ):
            assert refused["code"] == "wrong_password", wrong
    assert leave(ann, "delete", 400, password="")["code"] == "password_missing"
    assert me(ann)["nickname"] == "Ann"
    ann.login()
    here.deliver()
    assert here.arrived() == []


@LIMITS
def test_with_a_stolen_token_nobody_guesses_the_password(here: Here, ann: Reader) -> None:
    guesses = [{"new_password": NEW, "password": f"guess {number}"} for number in range(7)]
    replies = [ann.patch_json("/me", guess, expect_errors=True) for guess in guesses]
    codes = [reply.json["code"] for reply in replies]
    assert codes == ["wrong_password"] * 5 + ["too_many"] * 2
    reply = ann.delete_json("/me", {"password": CANARY, "comments": "keep"}, status=429)
    assert int(reply.headers["Retry-After"]) > 0
    here.outside.time += 10 * MINUTE
    assert leave(ann)["success"]


# Emails about replies


def test_letters_about_answers_end_and_begin_again(here: Here, ann: Reader) -> None:
    first = said(ann)
    for answers, emails in ((False, 0), (False, 0), (True, 1)):
        assert change(ann, answers=answers)["success"]
        assert me(ann)["answers"] is answers
        here.forget()
        here.bob(f"{here.outside.time}", parent_id=first)
        here.later()
        assert len(here.arrived(ANN)) == emails


def test_what_a_link_in_a_letter_ended_is_seen_in_the_account(here: Here, ann: Reader) -> None:
    follow(ann)
    follow(ann, "/two/")
    here.bob(parent_id=said(ann))
    here.deliver()
    (text,) = here.texts(ANN)
    here.visitor.press(link_to("stop", text))
    assert me(ann)["answers"]  # it is this page alone, and that page is followed no more
    assert here.followers() == {(ANN, "/two")}
    here.visitor.press(link_to("stop_all", text))
    assert not me(ann)["answers"]
    assert not export(ann)["account"]["answers"]
    assert here.followers() == set()


# Following a page


def test_a_follower_is_told_what_is_new(here: Here, ann: Reader) -> None:
    here.bob("from before")
    here.deliver()
    for _ in range(2):
        assert follow(ann) == {"success": True, "following": True}
    here.bob("Hello\n\nthere")
    here.bob("elsewhere", page_url="/other/")
    here.deliver()
    ((message,), (text,)) = here.arrived(), here.texts(ANN)
    (stop,) = links_in(text)
    assert text == (
        "“Bob” wrote on a page that you follow at blog.example:\n\n> Hello\n> \n> there\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-2\n\nNo more emails about this page: {stop}\n"
    )
    assert message["To"] == ANN
    assert message["Subject"] == f"blog.example: new comment on {PAGE}"
    assert sorted(message.keys()) == sorted([*HEADERS, "List-Unsubscribe", "List-Unsubscribe-Post"])
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert words_of(stop)["do"] == "unfollow"
    assert ANN not in stop
    here.later()
    for _ in range(2):
        assert follow(ann, undo=True) == {"success": True, "following": False}
    here.bob("unheard")
    here.later()
    assert len(here.arrived()) == 1


def test_to_follow_begins_a_page_and_to_end_it_does_not(here: Here, ann: Reader) -> None:
    assert follow(ann, "/new/", undo=True)["following"] is False
    assert here.sql("SELECT * FROM page") == []
    follow(ann, "/new/")
    follow(ann, "/other/")
    follow(ann, "/other/", undo=True)
    assert ann.listing(url="/new/")["total"] == 0
    here.app.tick()  # which writes the view
    here.outside.time += 91 * DAY
    here.app.tick()
    assert here.sql("SELECT key FROM page") == [("/new",)]
    renewed(ann, ann.login()["token"])
    assert [page["page_url"] for page in me(ann)["follows"]] == ["/new/"]


def test_what_is_no_page_can_not_be_followed(ann: Reader) -> None:
    for code, values in {
        "page_url_missing": ["", None],
        "page_url_invalid": [5, [PAGE], "a\nb", "\0"],
        "page_url_too_long": ["x" * 2049],
    }.items():
        for page_url in values:
            assert follow(ann, page_url, 400)["code"] == code, page_url
    for undo in (1, "true", None):
        assert follow(ann, PAGE, 400, undo=undo)["code"] == "undo_invalid"


@LIMITS
def test_thirty_pages_an_hour_can_be_followed(here: Here, ann: Reader) -> None:
    for number in range(30):
        follow(ann, f"/{number % 20}/", undo=number >= 20)
    assert follow(ann, "/0/", 429)["code"] == "too_many"
    here.outside.time += HOUR
    follow(ann, "/0/")


def test_letters_to_a_follower_and_their_links_speak_the_language_that_was_chosen(
    here: Here, ann: Reader
) -> None:
    cases = [(lang, "Ann", lang) for lang in LETTERS]
    cases += [("en", "小安", "en"), ("xx", "小安", "zh"), (None, "Ann", "en")]
    for number, (chosen, nickname, lang) in enumerate(cases):
        page_url, words = f"/{number}/", LETTERS[lang]
        change(ann, nickname=nickname)
        follow(ann, page_url, lang="ja")
        follow(ann, page_url, lang=chosen)  # the last word counts
        here.bob("Bonjour", lang="fr", page_url=page_url)
        here.later(HOUR)
        (link,) = links_in(here.texts(ANN)[-1])
        client, path = TestApp(here.app), path_of(link)
        shown = {"page_unfollow": client.get(path), "done_unfollow": client.post(path)}
        for word, page in shown.items():
            assert f'<html lang="{lang}"' in page.text, (chosen, nickname)
            assert html.escape(words[word]) in page.text
    subjects = [message["Subject"] for message in here.arrived(ANN)[-3:]]
    assert subjects[0] == f"blog.example: new comment on /{len(LETTERS)}/"
    assert subjects[1] == f"blog.example：/{len(LETTERS) + 1}/ 有新评论"


def test_a_follower_is_not_told_of_what_is_their_own_nor_when_blocked(
    here: Here, owner: Reader, ann: Reader
) -> None:
    follow(ann)
    said(ann, "mine")
    here.deliver()
    assert here.arrived() == []
    here.bob("another's")
    here.later(0)
    assert here.told() == [["another's"]]
    (user,) = [u["id"] for u in owner.get("/admin/users").json["users"] if u["email"] == ANN]
    owner.patch_json(f"/admin/users/{user}", {"blocked": True})
    here.bob("unheard")
    here.later(HOUR)
    assert len(here.arrived()) == 1


def test_an_answer_to_a_follower_is_told_once(here: Here, ann: Reader) -> None:
    follow(ann)
    here.bob("an answer", parent_id=said(ann, "mine"))
    here.deliver()
    assert [message["Subject"] for message in here.arrived()] == ["blog.example: a reply to you"]
    change(ann, answers=False)  # then it is one new comment of the page
    here.forget()
    here.bob("another answer", parent_id=1)
    here.later()
    assert here.told() == [["another answer"]]
    assert "follow" in here.texts()[0]


@pytest.mark.parametrize(
    "settings",
    [notifications.NAMED, {**USUAL, "notify_pages": ("* = nobody",)}],
    ids=["told", "untold"],
)
def test_the_owner_who_follows_has_one_letter(
    here: Here, owner: Reader, settings: dict[str, Any]
) -> None:
    follow(signed_in(here.app, OWNER))
    here.bob()
    here.deliver()
    assert here.told(OWNER) == [["hi"]]
    can_moderate = "spam" in {words_of(link)["do"] for link in links_in(here.texts()[0])}
    assert can_moderate == ("notify_owner" in settings)


def test_what_comes_soon_after_is_one_letter_to_each_follower(here: Here, ann: Reader) -> None:
    bea = here.newcomer()
    for reader in (ann, bea):
        follow(reader)
    for content in ("one", "two", "three"):
        here.bob(content)
        here.deliver()
        here.outside.time += MINUTE
    said(bea, "of Bea", nickname="Bea")
    here.later(MINUTE, times=20)
    assert here.told() == [["one"], ["two", "three", "of Bea"]]
    assert here.told(BEA) == [["one"], ["two", "three"]]
    message, text = here.arrived(ANN)[1], here.texts(ANN)[1]
    assert message["Subject"] == f"blog.example: 3 new comments on {PAGE}"
    assert links_in(text)[0] in message["List-Unsubscribe"]


def test_news_of_many_pages_are_one_letter_with_a_way_to_end_each(here: Here, ann: Reader) -> None:
    pages = [f"/{number}/" for number in range(12)]
    for page in pages:
        follow(ann, page)
    for turn, page in itertools.product(range(3), pages):
        if page == "/0/":
            here.later()
        here.bob(f"{page} {turn}", page_url=page)
    here.later()
    assert len(here.arrived(ANN)) == 3
    assert here.arrived(ANN)[0]["Subject"] == "blog.example: 12 new comments"
    assert here.told()[0] == [f"{page} 0" for page in pages]
    links = links_in(here.texts(ANN)[0])
    assert len(links) == len(pages)
    here.visitor.press(links[3])
    assert here.followers() == {(ANN, page[:-1]) for page in pages if page != "/3/"}
    here.visitor.press(here.arrived(ANN)[0]["List-Unsubscribe"].strip("<>"))
    assert here.followers() == set()


def test_a_letter_to_a_follower_quotes_twenty_and_counts_the_rest(here: Here, ann: Reader) -> None:
    follow(ann)
    for number in range(23):
        here.bob(f"number {number}")
    here.deliver()
    (text,) = here.texts()
    assert here.told() == [[f"number {number}" for number in range(20)]]
    assert "And 3 more.\n" in text
    assert len(links_in(text)) == 1
    here.later()
    assert len(here.arrived()) == 1


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "moderation_hold": "all"}])
def test_followers_are_told_of_what_waits_when_it_is_approved(
    here: Here, owner: Reader, ann: Reader
) -> None:
    follow(ann)
    for content in ("good", "bad", "gone", "kept waiting"):
        here.bob(content)
    here.deliver()
    assert here.arrived() == []
    for number, status in enumerate(("visible", "spam", "deleted"), 1):
        moderate(owner, number, status)
    here.later()
    assert here.told() == [["good"]]
    moderate(owner, 4, "visible")
    moderate(owner, 1, "visible")
    here.later()
    assert here.told() == [["good"], ["kept waiting"]]


@pytest.mark.parametrize("how", ["spam", "deleted by its author"])
def test_a_follower_hears_of_the_rest_when_one_comment_of_an_email_was_hidden(
    here: Here, ann: Reader, owner: Reader, how: str
) -> None:
    bea = here.newcomer()
    follow(ann), follow(bea)
    made = here.visitor.say("to be hidden", lang="en", nickname="Lu")
    here.bob("to be told")

    def refuse(letter: Any) -> None:
        if letter.recipient == BEA:
            raise ConnectionRefusedError

    here.outside.happens = refuse
    here.deliver()
    if how == "spam":
        moderate(owner, 1, "spam")
    else:
        here.visitor.delete_json("/comments/1", {"edit_token": made["edit_token"]})
    here.outside.happens = lambda letter: None
    here.later(times=3)
    assert here.told() == [["to be hidden", "to be told"]]
    assert here.told(BEA) == [["to be told"]]


def followed_by(here: Here, many: int) -> None:
    """So many accounts follow the page."""
    here.sql(
        """WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
           INSERT INTO account (email, nickname, password, created_at)
           SELECT 'f' || n || '@example.com', 'F' || n, '', 0 FROM n""",
        many,
    )
    here.sql(
        """INSERT INTO follow (user_id, page_id, language)
           SELECT account.id, page.id, 'en' FROM account, page WHERE password = ''"""
    )


@pytest.mark.slow
def test_many_followers_are_told_in_short_transactions_and_codes_go_first(here: Here) -> None:
    here.bob("a root")
    here.bob("before")
    here.deliver()
    followed_by(here, 250)
    with inside.statements(here.app) as asked:
        here.bob("news")
    assert len([statement for statement in asked if "INSERT" in statement]) < 10
    here.bob("more news")
    waiting: list[int] = []

    def register(letter: Any) -> None:
        ((count,),) = here.sql("SELECT count(*) FROM outbox")
        waiting.append(count)
        if len(here.outside.letters) == 99:
            here.other().register("new@example.com")

    here.outside.happens = register
    with inside.statements(here.app) as asked:
        here.deliver()
    begun = [number for number, statement in enumerate(asked) if statement.startswith("BEGIN")]
    rows = [
        sum("INSERT INTO outbox" in statement for statement in asked[first:last])
        for first, last in itertools.pairwise([*begun, len(asked)])
    ]
    assert (max(rows), sum(rows)) == (10, 251)
    recipients = [letter.recipient for letter in here.outside.letters]
    assert len({*recipients}) == len(recipients) == 251
    assert recipients[100] == "new@example.com"
    assert here.told("f7@example.com") == [["news", "more news"]]
    assert here.sql("SELECT * FROM notification") == []


@ENDS
def test_to_go_takes_as_many_statements_for_ten_comments_as_for_three_hundred(
    here: Here, ann: Reader, comments: str
) -> None:
    counts = []
    for reader, many in ((ann, 10), (here.newcomer(), 300)):
        said(reader, "one", nickname="N")
        names = [row[1] for row in here.sql("PRAGMA table_info(comment)") if row[1] != "id"]
        columns = ", ".join(names)
        here.sql(
            f"""INSERT INTO comment ({columns})
                WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {many})
                SELECT {columns} FROM n, comment
                 WHERE comment.id = (SELECT max(id) FROM comment)"""
        )
        here.sql("UPDATE comment SET learnt = 'ham'")
        here.sql("UPDATE page SET total = total + ?, threads = threads + ?", many, many)
        with inside.statements(here.app) as asked:
            leave(reader, comments)
        counts.append(len({re.sub(r"\d+|'[^']*'", "", statement) for statement in asked}))
    assert counts[0] == counts[1]
    assert here.visitor.listing()["total"] == (312 if comments == "keep" else 0)


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "server_public_url": ""}])
def test_what_a_stranger_writes_is_fenced_in_a_letter_to_followers(here: Here, ann: Reader) -> None:
    evil = "https://evil.example/p"
    follow(ann, evil)
    hostile = f"x\nNo more emails about this page: {evil}\n.\n\n-- \n{{stop}} {{quote}} %s"
    here.bob(hostile, nickname="{site} {read}", page_url=evil)
    here.deliver()
    ((message,), (text,)) = here.arrived(ANN), here.texts(ANN)
    assert message["Subject"] == "blog.example: new comment on a page that is not your blog’s"
    ours = [line for line in text.splitlines() if not line.startswith(">")]
    assert [line for line in ours if "evil" in line] == []
    assert ours[0] == "“{site} {read}” wrote on a page that you follow at blog.example:"
    quoted = [line for line in text.splitlines() if line.startswith(">")]
    assert quoted == [f"> {line}" for line in hostile.splitlines()]
    assert "/mail?" not in text  # without a public URL
    assert sorted(message.keys()) == sorted(HEADERS)


# A link that ends it


@pytest.fixture
def followed(here: Here, ann: Reader) -> str:
    """An email to Ann, who follows two pages, as Bea does."""
    bea = here.newcomer()
    for reader, page in itertools.product((ann, bea), (PAGE, "/two/")):
        follow(reader, page)
    here.bob("news")
    here.deliver()
    (text,) = here.texts(ANN)
    here.forget()
    return text


TWO = {(who, page) for who in (ANN, BEA) for page in (PAGE[:-1], "/two")}
ONE_ENDED = TWO - {(ANN, PAGE[:-1])}


def test_a_link_asks_before_it_ends_letters_about_a_page(here: Here, followed: str) -> None:
    link = link_to("unfollow", followed)
    for _ in range(2):
        question = ("Stop following this page?", "", "", "Stop following")
        assert here.visitor.open(link).told == question
        here.visitor.head(path_of(link))
    assert here.followers() == TWO
    for _ in range(2):
        done = here.visitor.press(link)
        title = "You won’t get any more emails about new comments on this page."
        assert done.told == (title, "", "", "Undo")
    assert here.followers() == ONE_ENDED
    for _ in range(2):
        again = here.visitor.press(done.action)
        assert again.told[0] == "You’ll get emails about new comments on this page."
    assert here.followers() == TWO
    assert here.visitor.open(done.action).told[::3] == ("Follow this page again?", "Yes, please")
    headers = {"Origin": "https://mail.example"}
    one_click = {"List-Unsubscribe": "One-Click"}
    assert (
        Shown(here.visitor.post(path_of(link), one_click, headers=headers).text).told == done.told
    )
    assert here.followers() == ONE_ENDED


def test_a_link_that_ends_it_is_good_for_its_page_and_person_alone(
    here: Here, followed: str
) -> None:
    link = link_to("unfollow", followed)
    for old, new in (("do=unfollow", "do=follow"), ("user=1", "user=2"), ("lang=en", "lang=de")):
        assert old in link
        here.visitor.press(link.replace(old, new), 403)
    here.visitor.press(re.sub(r"&?user=1", "", link), 403)
    assert here.followers() == TWO


def test_a_link_works_when_its_comment_was_deleted_and_its_page_moved(
    here: Here, owner: Reader, followed: str
) -> None:
    owner.patch_json(f"/admin/pages/{page_id(owner, PAGE)}", {"page_url": "/moved/"})
    moderate(owner, 1, "deleted")
    here.visitor.press(link_to("unfollow", followed))
    assert here.followers() == {(ANN, "/two"), (BEA, "/moved"), (BEA, "/two")}


def test_a_link_of_an_account_that_is_gone_brings_nothing_back(
    here: Here, ann: Reader, followed: str
) -> None:
    link = link_to("unfollow", followed)
    undo = here.visitor.press(link).action
    leave(ann)
    for each in (link, undo):
        here.visitor.press(each)
    assert {who for who, _ in here.followers()} == {BEA}


def test_a_link_whose_comment_was_purged_ends_its_page_alone(
    here: Here, owner: Reader, followed: str
) -> None:
    moderate(owner, 1, "spam")
    here.later(40 * DAY)
    for _ in range(2):
        here.app.tick()
    assert here.sql("SELECT * FROM comment") == []
    done = here.visitor.press(link_to("unfollow", followed))
    assert here.followers() == ONE_ENDED
    here.visitor.press(done.action)
    assert here.followers() == TWO


def test_a_page_that_is_moved_keeps_its_followers(here: Here, owner: Reader, ann: Reader) -> None:
    bea = here.newcomer()
    follow(ann, "/old/", lang="en")
    follow(bea, "/old/", lang="en")
    follow(bea, "/new/", lang="zh")
    form = {"page_url": "/new/", "merge": True}
    owner.patch_json(f"/admin/pages/{page_id(owner, '/old/')}", form)
    assert here.followers() == {(ANN, "/new"), (BEA, "/new")}
    here.bob("news", page_url="/new/")
    here.deliver()
    assert len(here.arrived(BEA)) == 1
    assert "new comment" in here.arrived(ANN)[0]["Subject"]
    assert "新评论" in here.arrived(BEA)[0]["Subject"]  # the language that was set there
    assert [page["page_url"] for page in me(ann)["follows"]] == ["/new/"]


# Reports


def reported(owner: Reader, **query: str) -> Any:
    return owner.get("/admin/comments", {"status": "reported", **query}).json


def test_a_report_is_seen_by_the_owner_alone(visitor: Reader, owner: Reader, ann: Reader) -> None:
    said(ann, "well")
    said(ann, "ill")
    before = visitor.listing(), visitor.listing(view="threads")
    assert report(visitor, 2, "  Ugly\n\tand\u2028loud ") == {"success": True}
    assert report(ann, 2) == {"success": True}
    after = visitor.listing(), visitor.listing(view="threads")
    for old, new in zip(before, after, strict=True):
        assert {**old, "views": 0} == {**new, "views": 0}
    found = reported(owner)
    (case,) = found["comments"]
    at = "2026-11-18 19:06:40"
    reasons = sorted((each["reason"], each["reported_at"]) for each in case["reports"])
    assert reasons == [("", at), ("Ugly and loud", at)]
    assert (case["id"], case["status"]) == (2, "visible")
    assert found["counts"]["reported"] == 1
    every = owner.get("/admin/comments").json
    assert [len(c["reports"]) for c in every["comments"]] == [2, 0]
    assert every["counts"]["visible"] == 2


def test_a_visitor_is_heard_once(here: Here, owner: Reader, ann: Reader) -> None:
    said(ann)
    for reason in ("first", "second"):
        assert report(here.visitor, 1, reason)["success"]
        report(ann, 1, f"{reason} of Ann")
    report(here.other(), 1, "of another")
    (case,) = reported(owner)["comments"]
    assert sorted(r["reason"] for r in case["reports"]) == ["first", "first of Ann", "of another"]


def test_a_reason_is_a_short_text(visitor: Reader) -> None:
    said(visitor)
    assert report(visitor, 1, "x" * 501, 400)["code"] == "reason_too_long"
    for reason in (5, ["a"], {}, True, "a\0b"):
        assert report(visitor, 1, reason, 400)["code"] == "reason_invalid", reason
    assert report(visitor, 1, "字" * 500)["success"]


def test_only_what_readers_see_can_be_reported(here: Here) -> None:
    here.bob()
    for status in ("waiting", "spam", "deleted"):
        hide(here.app, 1, status)
        assert report(here.visitor, 1, status=404) == GONE, status
    assert report(here.visitor, 2, status=404) == GONE


@LIMITS
def test_a_client_reports_five_an_hour_and_twenty_a_day(here: Here) -> None:
    ids: list[int] = []
    for number in range(31):
        here.outside.time += MINUTE
        ids.append(said(here.other(number), str(number)))
    done = []
    for _ in range(6):
        taken = 0
        while True:
            path = f"/comments/{ids.pop(0)}/report"
            reply = here.visitor.post_json(path, {}, expect_errors=True)
            if reply.status_int != 200:
                break
            taken += 1
        assert reply.status_int == 429
        done.append(taken)
        here.outside.time += HOUR
    assert done == [5, 5, 5, 5, 0, 0]
    report(here.other())


@named
def test_a_judgement_ends_the_reports(here: Here, owner: Reader) -> None:
    blog = signed_in(here.app, OWNER)

    def by_email(number: int) -> None:
        links = links_in(here.texts(OWNER)[-1])
        keep = {words_of(link)["id"]: link for link in links if words_of(link)["do"] == "visible"}
        blog.post(path_of(keep[str(number)]))

    ways: list[Callable[[int], object]] = [
        lambda number: moderate(owner, number, "visible"),
        lambda number: moderate(owner, number, "spam"),
        lambda number: blog.post_json(f"/comments/{number}/moderate", {"status": "visible"}),
        by_email,
    ]
    for number in range(1, 6):
        here.bob(str(number))
    here.deliver()
    for number in range(1, 6):
        report(here.visitor, number, "ugly")
    here.later()
    for number, way in enumerate(ways, 1):
        way(number)
        way(number)
        assert [c["id"] for c in reported(owner)["comments"]] == [*range(5, number, -1)]
        assert reported(owner)["counts"]["reported"] == 5 - number
    assert here.visitor.listing()["total"] == 4
    log = owner.get("/admin/audit").json["audit"]
    assert [entry["action"] for entry in log].count("keep") == 3
    report(here.visitor, 1, "still ugly")  # it may be said again
    assert len(reported(owner)["comments"]) == 2
    here.later()
    assert "Reported by readers (1):\n> still ugly\n" in here.texts(OWNER)[-1]


def test_a_pin_leaves_a_report_and_its_author_ends_it(owner: Reader, ann: Reader) -> None:
    said(ann)
    report(ann)
    owner.post_json("/admin/comments", {"ids": [1], "pinned": True})
    assert reported(owner)["counts"]["reported"] == 1
    ann.delete_json("/comments/1", {})
    assert (reported(owner)["comments"], reported(owner)["counts"]["reported"]) == ([], 0)


@named
def test_the_owner_is_told_of_a_report_with_the_reasons(here: Here) -> None:
    said(here.visitor, "ugly")
    here.deliver()
    here.later()
    report(here.visitor, 1, "It is\nugly")
    here.outside.time += 1
    report(here.other())
    here.deliver()
    (first, second), text = here.arrived(), here.texts(OWNER)[1]
    links = {words_of(link)["do"]: link for link in links_in(text)}
    assert text == (
        f"The comment on “{PAGE}” by “Ann” was reported:\n\n> ugly\n\n"
        "Reported by readers (2):\n> It is ugly\n> no reason given\n\n"
        f"Keep:   {links['visible']}\nSpam:   {links['spam']}\nDelete: {links['deleted']}\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n\nAll comments: {SERVICE}/admin\n"
    )
    assert second["Subject"] == f"blog.example: a comment on {PAGE} was reported"
    # Another email of the same thread: none that a mail program takes for the first.
    assert second["Message-ID"] != first["Message-ID"] == second["In-Reply-To"]


@named
def test_reports_that_come_soon_after_are_one_letter(here: Here) -> None:
    for number in (1, 2, 3):
        here.bob(str(number))
    here.deliver()
    for second, number in enumerate((1, 2, 1)):
        report(here.other(second), number, f"bad {second}")
        here.deliver()
        here.outside.time += 1
    assert len(here.arrived()) == 1
    here.later()
    assert here.told(OWNER)[1] == ["1", "bad 0", "bad 2", "2", "bad 1"]
    counts = re.findall(r"Reported by readers \((\d)\):", here.texts(OWNER)[1])
    assert counts == ["2", "1"]


@named
def test_a_letter_to_the_owner_begins_with_what_it_asks(here: Here) -> None:
    for number in range(1, 23):
        here.bob(f"number {number}")
    report(here.visitor, 22, "It is ugly")
    here.deliver()
    (text,) = here.texts(OWNER)
    assert text.index("number 22") < text.index("number 1\n")
    assert "And 2 more." in text


@named
def test_a_letter_to_a_reader_tells_nothing_of_reports(here: Here, ann: Reader) -> None:
    follow(ann)
    here.bob("ugly")
    report(here.visitor, 1, "bad")
    here.deliver()
    (message,) = here.arrived(ANN)
    assert re.fullmatch(r"<comment-1-[0-9a-f]+@\S+>", message["Message-ID"])
    assert message["In-Reply-To"] is None


@pytest.mark.parametrize("settings", [{**USUAL, "privacy_keep_ip_days": days} for days in (0, 30)])
def test_a_report_forgets_whose_it_is(here: Here, settings: dict[str, Any]) -> None:
    here.bob()
    report(here.visitor, 1, "ugly")
    ((_, whose, *rest),) = here.sql("SELECT * FROM report")
    assert "203.0.113" not in whose
    here.outside.time += max(HOUR, settings["privacy_keep_ip_days"] * DAY)
    here.app.tick()
    assert here.sql("SELECT * FROM report")[0][1] == whose
    here.outside.time += MINUTE
    here.app.tick()
    ((_, nobody, *left),) = here.sql("SELECT * FROM report")
    assert nobody.startswith("past ")
    assert left == rest
    here.app.tick()
    assert here.sql("SELECT * FROM report")[0][1] == nobody


# What was written before there was an account


def test_who_proves_an_address_has_what_was_written_under_it(here: Here) -> None:
    said(here.visitor, "mine", email="Ann@Example.COM")
    said(here.visitor, "another's", nickname="Lu", email=LU)
    here.bob("nobody's")
    here.bob("Buy pills", nickname="Eve", email=ANN)
    here.bob("waits", email=ANN)
    hide(here.app, 5, "waiting")
    here.visitor.register(ANN, nickname="Annette")
    here.deliver()
    owners = "SELECT user_id, email FROM comment ORDER BY id"
    before = [(None, ANN), (None, LU), (None, ""), (None, ANN), (None, ANN)]
    assert here.sql(owners) == before
    here.visitor.verify("000000", ANN, 400)
    assert here.sql(owners) == before
    here.visitor.verify(here.outside.code(), ANN)
    assert here.sql(owners) == [(1, ANN), (None, LU), (None, ""), (1, ANN), (1, ANN)]
    ann = signed_in(here.app, ANN)
    assert me(ann)["comments"] == 3
    (mine,) = [c for c in ann.listing()["comments"] if c["id"] == 1]
    shown = {"content": "mine", "html": "<p>mine</p>\n", "user_id": 1, "role": "user"}
    assert mine == {**SHOWN, **shown}
    given_out = [(c["nickname"], c["content"]) for c in export(ann)["comments"]]
    assert given_out == [("Ann", "mine"), ("Eve", "Buy pills"), ("Bob", "waits")]
    here.later(HOUR)
    here.forget()
    here.bob("an answer", parent_id=1)  # which is told without a question
    here.later()
    assert here.told() == [["an answer", "mine"]]
    ann.delete_json("/comments/2", {}, status=404)
    for number in (1, 4):
        ann.delete_json(f"/comments/{number}", {})


def test_what_guests_write_under_the_address_of_an_account_never_becomes_its_own(
    here: Here, ann: Reader
) -> None:
    here.bob("Buy pills", email=ANN)
    ann.login()
    assert me(ann)["comments"] == 0
    again = here.newcomer(ANN, "Ann")
    assert me(again)["comments"] == 0
    change(again, new_password=NEW, password=CANARY)
    assert here.visitor.listing()["comments"][0]["user_id"] is None


def test_nothing_that_a_stranger_wrote_becomes_the_owners(here: Here, owner: Reader) -> None:
    here.bob("Buy pills", nickname="Boss", email=OWNER)
    here.deliver()
    here.visitor.register(OWNER, nickname="Owner")
    here.deliver()
    here.visitor.verify(here.outside.code(), OWNER)
    assert me(signed_in(here.app, OWNER))["role"] == "admin"
    (comment,) = here.visitor.listing()["comments"]
    assert (comment["user_id"], comment["role"]) == (None, "")


def test_what_was_claimed_belongs_to_no_account_that_becomes_the_owners(
    here: Here, owner: Reader
) -> None:
    ways = ("role", "link")
    for way in ways:
        here.bob(f"pills by {way}", nickname="Boss", email=f"{way}@example.com")
    for way in ways:
        reader = here.newcomer(f"{way}@example.com", f"Bea by {way}")
        said(reader, f"mine by {way}", nickname=f"Bea by {way}")
        assert me(reader)["comments"] == 2
    users = {u["email"]: u["id"] for u in owner.get("/admin/users").json["users"]}
    wish = {"role": "admin", "password": CANARY}
    owner.patch_json(f"/admin/users/{users['role@example.com']}", wish)
    claim(here.app, "link@example.com", "")
    listed = here.visitor.listing()["comments"]
    assert {c["content"]: (c["user_id"], c["role"]) for c in listed} == {
        **{f"mine by {way}": (users[f"{way}@example.com"], "admin") for way in ways},
        **{f"pills by {way}": (None, "") for way in ways},
    }


# To go


@pytest.fixture
def lived(here: Here, ann: Reader) -> Reader:
    """Ann, who has written, liked, followed and reported."""
    said(ann, "a root of Ann", website="https://ann.example")  # 1
    here.bob("an answer of Bob", parent_id=1)  # 2
    said(ann, "a leaf of Ann", parent_id=2)  # 3
    said(ann, "on another page", page_url="/two/")  # 4
    said(ann, "it waits")  # 5
    hide(here.app, 5, "waiting")
    for number in (1, 2):
        ann.post_json("/comment/like", {"id": number})
    ann.post_json("/page/like", {"page_url": PAGE})
    here.visitor.post_json("/comment/like", {"id": 1})
    follow(ann)
    report(ann, 2, "rude")
    here.deliver()
    return ann


def test_all_that_is_kept_is_given_out(here: Here, lived: Reader, owner: Reader) -> None:
    here.visitor.post_json("/comment/like", {"id": 3})
    everything = export(lived)
    kept = {"comments", "follows", "muted", "likes", "page_likes", "reports"}
    assert everything.keys() == {"account", *kept}
    names = ("email", "nickname", "role", "created_at", "answers")
    assert everything["account"] == {name: me(lived)[name] for name in names}
    contents = ["a root of Ann", "a leaf of Ann", "on another page", "it waits"]
    assert [c["content"] for c in everything["comments"]] == contents
    assert [c["status"] for c in everything["comments"]] == ["visible"] * 3 + ["waiting"]
    expected = {**SHOWN, "user_id": 1, "role": "user", "likes": 2, "status": "visible"}
    expected |= {"content": "a root of Ann", "html": "<p>a root of Ann</p>\n"}
    assert everything["comments"][0] == expected | {"website": "https://ann.example"}
    page = [{"page_url": PAGE, "page_link": BLOG + PAGE}]
    assert (everything["follows"], everything["muted"]) == (page, [])
    assert sorted(like["id"] for like in everything["likes"]) == [1, 2]
    assert everything["page_likes"] == [{"page_url": PAGE}]
    at = "2026-11-18 19:06:40"
    assert everything["reports"] == [{"id": 2, "reason": "rude", "reported_at": at}]
    here.visitor.press(link_to("stop", here.texts(ANN)[-1]))
    assert (export(lived)["follows"], export(lived)["muted"]) == ([], page)
    moderate(owner, 3, "spam")  # what moderators think is not given out
    statuses = [c["status"] for c in export(lived)["comments"]]
    assert statuses == ["visible", "waiting", "visible", "waiting"]


def test_who_goes_and_leaves_what_he_wrote_has_no_name_any_more(here: Here, lived: Reader) -> None:
    before = here.visitor.listing(view="threads", sort="oldest")
    assert leave(lived, "keep") == {"success": True}
    after = here.visitor.listing(view="threads", sort="oldest")
    assert after["total"] == before["total"] == 3
    (root,), (then,) = after["comments"], before["comments"]
    gone = {**ANONYMOUS, "user_id": None}
    assert root["replies"] == [then["replies"][0], {**then["replies"][1], **gone}]
    assert {**root, "replies": []} == {**then, **gone, "replies": []}
    assert root["likes"] == 2
    assert after["page_likes"] == 1


def test_who_goes_with_all_they_wrote_leaves_the_place_of_replies(
    here: Here, lived: Reader, owner: Reader
) -> None:
    assert leave(lived, "delete") == {"success": True}
    listed = here.visitor.listing(view="threads")
    (root,) = listed["comments"]
    assert (listed["total"], root["deleted"], root["content"], root["likes"]) == (1, True, "", 0)
    assert [c["content"] for c in root["replies"]] == ["an answer of Bob"]
    assert here.visitor.listing(url="/two/")["total"] == 0
    assert listed["page_likes"] == 1
    assert [c["id"] for c in owner.get("/admin/comments").json["comments"]] == [2]
    assert {*here.sql("SELECT content FROM comment")} == {("",), ("an answer of Bob",)}


@ENDS
def test_who_goes_is_gone(here: Here, lived: Reader, comments: str) -> None:
    phone, stranger = signed_in(here.app, ANN), Reader(here.app)
    stranger.register(ANN, password=NEW)  # one more that waits for its code
    change(lived, answers=False)
    leave(lived, comments)
    for reader in (lived, phone):
        for path in ("/me", "/me/export"):
            assert reader.get(path, status=401).json["code"] == "token_invalid"
        reader.say(status=401)
    unknown = stranger.login("nobody@example.com", 401)
    for password in (CANARY, NEW):
        assert stranger.login(ANN, 401, password=password) == unknown
    for table in ("account", "follow", "registration", "subscription"):
        assert here.sql(f"SELECT * FROM {table}") == []
    likers = here.sql("SELECT visitor FROM comment_liker UNION ALL SELECT visitor FROM page_liker")
    assert [who for (who,) in likers if who.startswith("user ")] == []
    assert here.sql("SELECT substr(visitor, 1, 5), reason FROM report") == [("past ", "")]
    here.deliver()
    here.forget()
    here.bob("news", parent_id=2)
    here.later()
    assert here.arrived(ANN) == []


@ENDS
def test_who_comes_back_is_another(here: Here, lived: Reader, comments: str) -> None:
    leave(lived, comments)
    back = here.newcomer(ANN)
    me(lived, 401)
    fresh = me(back)
    assert (fresh["comments"], fresh["follows"], fresh["answers"]) == (0, [], True)
    assert all(not rows for name, rows in export(back).items() if name != "account")
    back.delete_json("/comments/1", {}, status=404)
    # The likes of before are nobody's now.
    if comments == "keep":
        assert back.post_json("/comment/like", {"id": 1}).json["likes"] == 3


def test_who_goes_has_to_say_what_becomes_of_their_comments(ann: Reader) -> None:
    for comments in ("", None, "all", "Keep", 1, True, ["keep"], {}):
        refused = leave(ann, comments, 400)
        assert refused["code"] in ("comments_missing", "comments_invalid", "comments_too_long")
    assert me(ann)["email"] == ANN


def test_the_last_admin_stays(here: Here, owner: Reader) -> None:
    first = signed_in(here.app, OWNER)
    assert leave(first, status=409)["code"] == "last_admin"
    assert leave(first, status=403, password="wrong")["code"] == "wrong_password"
    other = claim(here.app, "co@blog.example", "Co")
    assert leave(first)["success"]
    owner.get("/admin/comments", status=401)
    assert leave(signed_in(here.app, "co@blog.example"), status=409)["code"] == "last_admin"
    assert other.get("/admin/comments").json["comments"] == []


def plain(app: App, reader: Reader) -> TestApp:
    """A client for requests that others overtake."""
    client = TestApp(app, {"REMOTE_ADDR": "203.0.113.7"})
    client.authorization = reader.authorization
    return client


def test_of_two_admins_who_go_at_one_time_one_stays(here: Here, owner: Reader) -> None:
    claim(here.app, "co@blog.example", "Co")
    first, other = signed_in(here.app, OWNER), signed_in(here.app, "co@blog.example")
    inside.just_before_it_writes(here.app, lambda: leave(other))
    body = {"password": CANARY, "comments": "keep"}
    refused = plain(here.app, first).delete_json("/me", body, status=409)
    assert refused.json["code"] == "last_admin"
    assert me(first)["role"] == "admin"


@pytest.mark.parametrize("parent", [{"parent_id": 1}, {}], ids=["reply", "news"])
def test_letters_that_were_given_up_go_with_the_account(
    here: Here, lived: Reader, parent: dict[str, int]
) -> None:
    here.fail_mail()
    here.bob("an answer, or news", **parent)
    here.later(HOUR, times=30)
    assert here.sql("SELECT recipient FROM outbox WHERE due_at IS NULL") == [(ANN,)]
    renewed(lived, lived.login()["token"])
    leave(lived)
    assert here.sql("SELECT * FROM outbox") == []


@ENDS
def test_a_guests_address_goes_with_the_account_that_has_it(
    here: Here, ann: Reader, comments: str
) -> None:
    here.bob("as a guest", email=ANN)
    leave(ann, comments)
    assert here.sql("SELECT content, email FROM comment") == [("as a guest", "")]


@named
@ENDS
def test_what_waits_in_the_outbox_tells_nothing_of_who_went(
    here: Here, ann: Reader, comments: str
) -> None:
    bea = here.newcomer()
    follow(bea)
    said(bea, "a root", nickname="Bea")
    here.bob("one more", nickname="Lu")
    here.fail_mail()
    said(ann, "what Ann wrote", nickname="Annabella", parent_id=1)
    here.deliver()
    assert {*here.sql("SELECT recipient FROM outbox")} == {(OWNER,), (BEA,)}
    leave(ann, comments)
    here.fail_mail(False)
    here.later(HOUR, times=3)
    assert "Annabella" not in str(here.texts())
    assert ("what Ann wrote" in str(here.texts(OWNER))) == (comments == "keep")
    assert here.told(OWNER)[0][:2] == ["a root", "one more"]  # which was in the same email


@ENDS
def test_a_guest_is_asked_though_who_replied_to_them_went(
    here: Here, ann: Reader, comments: str
) -> None:
    here.bob("why?", nickname="Lu", email=LU)
    here.fail_mail()
    said(ann, "because", parent_id=1)
    here.deliver()
    leave(ann, comments)
    here.fail_mail(False)
    here.later(HOUR, times=3)
    assert len(here.arrived(LU)) == (comments == "keep")
    here.bob("therefore", parent_id=1)
    here.later()
    assert len(here.arrived(LU)) == 1


WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/comments", {**COMMENT, "content": "too late"}),
    ("POST", "/comment/like", {"id": 1}),
    ("POST", "/page/like", {"page_url": PAGE}),
    ("POST", "/page/follow", {"page_url": PAGE}),
    ("POST", "/comments/1/report", {}),
    ("PATCH", "/me", {"nickname": "Late", "answers": False}),
    ("PATCH", "/me", {"new_password": NEW, "password": CANARY}),
    ("PATCH", "/comments/{}", {"content": "too late"}),
    ("DELETE", "/comments/{}", {}),
    ("DELETE", "/me", {"password": CANARY, "comments": "delete"}),
]


def test_who_goes_while_they_write_is_gone(here: Here) -> None:
    """The request was let in, and waits for its turn to write while the account goes."""
    here.bob("of a guest")
    path = inside.database_path(here.app)
    for number, (method, target, body) in enumerate(WRITES):
        reader = here.newcomer(f"n{number}@example.com", f"Bea {number}")
        target = target.format(said(reader, f"mine {number}"))
        web, after = plain(here.app, reader), dict[str, Any]()

        def go(reader: Reader = reader, after: dict[str, Any] = after) -> None:
            leave(reader)
            after |= dump(path)

        inside.just_before_it_writes(here.app, go)
        send = {"POST": web.post_json, "PATCH": web.patch_json, "DELETE": web.delete_json}[method]
        reply = send(target, body, expect_errors=True)
        assert reply.status_int in (401, 403, 404), (method, target)
        assert dump(path) == after, (method, target)


def test_wishes_of_one_moment_are_all_kept(here: Here, ann: Reader) -> None:
    inside.just_before_it_writes(here.app, lambda: change(ann, nickname="Annette"))
    change(ann, answers=False)
    assert (me(ann)["nickname"], me(ann)["answers"]) == ("Annette", False)


# What is left in the file

SECRETS = {
    "address": "ann.secret-mailbox",
    "name": "Annabella-Q7-Nickname",
    "website": "annabella-website-z4",
    "root": "canary text of the root 8841",
    "leaf": "canary text of the leaf 5523",
    "edited": "canary text that was edited away 1290",
    "draft": "canary text that waits 6617",
}
WRITTEN = {"root", "leaf", "draft"}


def seen(path: Path, secrets: dict[str, str]) -> set[str]:
    """What the database, its -wal, or what else lies beside them tells."""
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    assert path in files
    raw = b"".join(file.read_bytes() for file in files).lower()
    return {name for name, text in secrets.items() if text.lower().encode() in raw}


def live(app: App, outside: Outside) -> TestApp:
    """Ann's life with a service; the browser in which Ann is signed in."""
    guest, ann = (TestApp(app, {"REMOTE_ADDR": f"203.0.113.{n}"}) for n in (7, 8))
    email = f"{SECRETS['address']}@example.com"
    account = {"email": email, "nickname": SECRETS["name"], "password": CANARY}
    account["captcha_token"] = "x"
    guest.post_json("/auth/register", account)
    app.deliver()
    guest.post_json("/auth/verify", {**account, "token": outside.code()})
    ann.authorization = ("Bearer", guest.post_json("/auth/login", account).json["token"])
    mine = {**COMMENT, "nickname": SECRETS["name"]}
    mine |= {"website": f"https://{SECRETS['website']}.example"}
    ann.post_json("/comments", {**mine, "content": SECRETS["edited"]})
    ann.patch_json("/comments/1", {"content": SECRETS["root"]})
    guest.post_json("/comments", {**COMMENT, "content": "of a guest", "parent_id": 1})
    ann.post_json("/comments", {**mine, "content": SECRETS["leaf"], "parent_id": 2})
    ann.post_json("/comments", {**mine, "content": SECRETS["draft"], "page_url": "/2"})
    ann.post_json("/page/follow", {"page_url": PAGE})
    ann.post_json("/comment/like", {"id": 2})
    guest.post_json("/auth/register", {**account, "password": NEW})
    app.deliver()
    return ann


@pytest.mark.every_case
@pytest.mark.parametrize("stop", [False, True], ids=["running", "stopped"])
@ENDS
def test_a_minute_after_an_account_went_no_byte_tells_of_it(
    config: Config, outside: Outside, comments: str, stop: bool
) -> None:
    """Nor as soon as the service has stopped."""
    path = Path(config.database_path)
    with closing(make_app(replace(config, **TO_NOBODY), outside.world, rounds=1)) as app:
        ann = live(app, outside)
        ((password,),) = inside.sql(app, "SELECT password FROM account")
        secrets = SECRETS | {"hash": password.rpartition("$")[2], "visitor": "user 1"}
        assert seen(path, secrets) == secrets.keys()  # so the test knows how to look
        notifications.later(app, outside)
        ann.delete_json("/me", {"password": CANARY, "comments": comments})
        if stop:
            app.close()
        else:
            for _ in range(2):
                notifications.later(app, outside, MINUTE)
                app.tick()
        assert seen(path, secrets) == (WRITTEN if comments == "keep" else set())
    assert_whole(config.database_path)


# All or nothing


def logical(path: str) -> dict[str, Any]:
    """What the file says; whose a like was that is nobody's now is chance."""
    rows = dump(path)
    for name in ("comment_liker", "page_liker", "report"):
        rows[name] = sorted(
            tuple("past" if str(value).startswith("past ") else value for value in row)
            for row in rows[name]
        )
    return rows


@pytest.mark.every_case
@pytest.mark.parametrize("step", [40, pytest.param(1, marks=pytest.mark.long)])
@ENDS
def test_a_leave_that_is_cut_off_anywhere_leaves_the_account_whole_or_gone(
    here: Here, lived: Reader, comments: str, step: int
) -> None:
    path, web = inside.database_path(here.app), plain(here.app, lived)
    before = logical(path)
    for last in itertools.count(5, step):
        with cut_off(inside.writer(here.app), last):
            body = {"password": CANARY, "comments": comments}
            reply = web.delete_json("/me", body, expect_errors=True)
        if reply.status_int == 200:
            break
        assert reply.status_int == 503
        assert logical(path) == before
    assert last > 300
    assert here.sql("SELECT * FROM account") == []
