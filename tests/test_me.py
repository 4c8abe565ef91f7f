"""What readers have of their own: the account, the pages they follow, what they report, all that
is kept of them; and that nothing of it is left when they go."""

import contextlib
import hashlib
import html
import itertools
import os
import re
import shutil
import sqlite3
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
import test_letters as letters
from conftest import CANARY, PAGE, START, Outside, Visitor, assert_whole, dump
from test_comments import SHOWN, hide
from test_letters import (
    ANN,
    BLOG,
    DAY,
    HOUR,
    LU,
    MINUTE,
    ONE_CLICKS,
    OWNER,
    SERVICE,
    USUAL,
    Reader,
    Shown,
    arrived,
    claim,
    judge,
    later,
    link_to,
    links_in,
    path_of,
    said,
    signed_in,
    texts,
    words_of,
)
from test_mail import HEADERS
from test_server import BLOG as BLOG_ORIGIN
from test_server import COMMENT, FOREIGN, Service, services, until
from webtest import TestApp

import commentd
from commentd import App, Config, make_app, subscriber_of

visitor, owner, ann, settings = letters.visitor, letters.owner, letters.ann, letters.settings

NEW = "another passphrase"
GONE = {"error": "评论不存在", "code": "comment_gone"}
ANONYMOUS = {"nickname": "", "website": "", "ip": "", "location": "", "country": "", "role": ""}
named, to_nobody = letters.named, letters.to_nobody
LIMITS = pytest.mark.parametrize("settings", [{**USUAL, "limits_enabled": True}])
ENDS = pytest.mark.parametrize("comments", ["keep", "delete"])


def me(reader: Visitor, status: int = 200, **query: Any) -> Any:
    return reader.get("/me", query, status=status).json


def change(reader: Visitor, status: int = 200, **fields: Any) -> Any:
    return reader.patch_json("/me", fields, status=status).json


def leave(reader: Visitor, comments: str = "keep", status: int = 200, **fields: Any) -> Any:
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


def newcomer(app: App, outside: Outside, email: str, nickname: str = "Bea", **how: str) -> Reader:
    """One more reader with an account."""
    reader = Reader(app, **how)
    app.deliver()  # so that the next letter is the one with the code
    reader.register(email, nickname=nickname)
    app.deliver()
    reader.verify(outside.code(), email)
    outside.letters.clear()
    return signed_in(app, email)


def renewed(reader: Visitor, token: str) -> None:
    reader.authorization = ("Bearer", token)


def told(outside: Outside, to: str = ANN) -> list[list[str]]:
    """The first lines of the comments in each letter to someone."""
    return [re.findall("^> (.*)", text, re.M) for text in texts(outside, to)]


def tables(db: sqlite3.Connection, name: str) -> list[tuple[Any, ...]]:
    return db.execute(f"SELECT * FROM {name}").fetchall()


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


@pytest.mark.parametrize(
    "spelled", [PAGE, BLOG + PAGE, f"{PAGE}index.html", PAGE[:-1], f"{PAGE}?utm_source=x#top"]
)
def test_a_page_is_followed_however_it_is_spelled(ann: Reader, spelled: str) -> None:
    follow(ann, spelled)
    assert me(ann, url=PAGE)["following"]
    assert len(me(ann)["follows"]) == 1
    assert me(ann, url=spelled)["following"]
    follow(ann, undo=True)
    assert not me(ann, url=spelled)["following"]


def test_an_account_counts_what_is_kept_of_what_it_wrote(app: App, ann: Reader) -> None:
    for number, status in enumerate(["visible", "waiting", "spam", "deleted"], 1):
        said(ann, status)
        hide(app, number, status)
    said(ann, "mine to delete")
    ann.delete_json("/comments/5", {})
    said(Reader(app), "another's", nickname="Bob")
    assert me(ann)["comments"] == len(export(ann)["comments"]) == 4


def test_of_another_account_nothing_is_told(app: App, ann: Reader, outside: Outside) -> None:
    bea = newcomer(app, outside, "bea@example.com")
    said(bea)
    follow(bea)
    bea.post_json("/comment/like", {"id": 1})
    report(bea, 1, "mine")
    mine, all = me(ann, url=PAGE), export(ann)
    assert (mine["comments"], mine["follows"], mine["following"]) == (0, [], False)
    assert all.pop("account")["email"] == ANN
    kept = ("comments", "follows", "muted", "likes", "page_likes", "reports")
    assert all == {name: [] for name in kept}


ROUTES = [("GET", "/me"), ("PATCH", "/me"), ("DELETE", "/me"), ("GET", "/me/export")]


@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("POST", "/page/follow")])
@pytest.mark.parametrize("token", ["", "x.y.z"])
def test_without_a_token_there_is_no_account(
    visitor: Reader, method: str, path: str, token: str
) -> None:
    body = {"password": CANARY, "comments": "keep", "page_url": PAGE, "nickname": "Eve"}
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    how: dict[str, Any] = {"headers": headers, "status": 401}
    if method == "GET":
        reply = visitor.get(path, **how)
    else:
        send = {"PATCH": visitor.patch_json, "DELETE": visitor.delete_json}
        reply = send.get(method, visitor.post_json)(path, body, **how)
    assert reply.headers["WWW-Authenticate"] == "Bearer"


def test_no_cache_keeps_what_is_an_accounts(ann: Reader) -> None:
    for path in ("/me", f"/me?url={PAGE}", "/me/export"):
        headers = ann.get(path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["Vary"] == "Accept-Encoding, Origin, Authorization"


@pytest.mark.parametrize("query", ["url=", "url=%ff", "url=%00", "url=/a&url=/b"])
def test_a_page_that_is_none_is_refused(ann: Reader, query: str) -> None:
    assert ann.get(f"/me?{query}", status=400).json["code"].startswith(("url_", "query_"))


@pytest.mark.parametrize(
    ("origin", "status"), [("", 200), (BLOG_ORIGIN, 200), (FOREIGN, 403), ("null", 403)]
)
def test_only_the_blog_may_change_an_account(ann: Reader, origin: str, status: int) -> None:
    headers = {"Origin": origin} if origin else {}
    for method, path in [*ROUTES[1:3], ("POST", "/page/follow")]:
        asked = {"Access-Control-Request-Method": method, **headers}
        preflight = ann.options(path, headers=asked, status=204).headers
        if origin == BLOG_ORIGIN:
            assert method in preflight["Access-Control-Allow-Methods"]
    follow_reply = ann.post_json("/page/follow", {"page_url": PAGE}, headers=headers, status=status)
    patched = ann.patch_json("/me", {"answers": False}, headers=headers, status=status)
    gone = {"password": CANARY, "comments": "keep"}
    deleted = ann.delete_json("/me", gone, headers=headers, status=status)
    assert {r.status_int for r in (follow_reply, patched, deleted)} == {status}


# The nickname


def test_a_new_nickname_holds_for_what_is_written_from_now_on(ann: Reader) -> None:
    body = {"page_url": PAGE, "captcha_token": "x"}
    ann.post_json("/comments", {**body, "content": "before"})
    assert change(ann, nickname="  Annette ") == {"success": True, "nickname": "Annette"}
    ann.post_json("/comments", {**body, "content": "after"})
    names = {c["content"]: c["nickname"] for c in ann.listing()["comments"]}
    assert names == {"before": "Ann", "after": "Annette"}
    assert me(ann)["nickname"] == ann.login()["nickname"] == "Annette"


@pytest.mark.parametrize("nickname", ["Owner", "OWNER", "0wner", "Оwner", "o w n e r"])
def test_nobody_takes_a_nickname_like_the_owners(owner: Reader, ann: Reader, nickname: str) -> None:
    assert change(ann, 409, nickname=nickname)["code"] == "nickname_taken"
    refused = change(ann, 409, nickname=nickname, new_password=NEW, password=CANARY, answers=False)
    assert refused["code"] == "nickname_taken"
    assert (me(ann)["nickname"], me(ann)["answers"]) == ("Ann", True)
    ann.login()


def test_the_owner_may_look_like_himself(owner: Reader, app: App) -> None:
    him = signed_in(app, OWNER)
    assert change(him, nickname="The Owner")["nickname"] == "The Owner"
    assert change(him, nickname="Owner")["nickname"] == "Owner"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        *[
            ({"nickname": bad}, "nickname_invalid")
            for bad in (5, [], {}, True, " ", "a\nb", "\u202e")
        ],
        ({"nickname": "x" * 65}, "nickname_invalid"),
        ({"nickname": "x" * 257}, "nickname_too_long"),
        *[({"answers": bad}, "answers_invalid") for bad in (1, "yes", None, [])],
        *[
            ({"new_password": bad, "password": CANARY}, "new_password_missing")
            for bad in ("", None)
        ],
        *[({"new_password": b, "password": CANARY}, "new_password_invalid") for b in (5, ["a"])],
        ({"new_password": "é" * 600, "password": CANARY}, "new_password_too_long"),
        ({"new_password": NEW}, "password_missing"),
        ({"new_password": NEW, "password": 7}, "password_invalid"),
    ],
)
def test_what_is_no_nickname_wish_or_password_changes_nothing(
    ann: Reader, fields: dict[str, Any], code: str
) -> None:
    before = me(ann)
    assert change(ann, 400, **{"nickname": "Annette", **fields})["code"] == code
    assert me(ann) == before
    ann.login()


def test_nothing_else_of_an_account_can_be_changed(ann: Reader, db: sqlite3.Connection) -> None:
    before = tables(db, "account")
    wishes = {"role": "admin", "id": 9, "email": "eve@example.com", "blocked": 0, "version": 0}
    assert change(ann, **wishes, verified=True, user_id=9, created_at=1)["success"]
    assert change(ann, password="wrong", nickname="")["nickname"] == "Ann"
    assert tables(db, "account") == before


# The password


def test_a_new_password_ends_all_older_logins_but_this(
    app: App, ann: Reader, outside: Outside
) -> None:
    phone = signed_in(app, ANN)
    fresh = change(ann, new_password=NEW, password=CANARY, nickname="Annette")
    assert fresh.keys() == {"success", "nickname", "token"}
    for old in (ann, phone):
        assert me(old, 401)["code"] == "token_invalid"
    renewed(ann, fresh["token"])
    assert me(ann)["nickname"] == "Annette"
    assert Reader(app).login(ANN, 401)["code"] == "wrong_credentials"
    assert Reader(app).login(ANN, password=NEW)["nickname"] == "Annette"
    app.deliver()
    (message,) = arrived(outside)
    assert message["To"] == ANN
    assert message["Subject"] == "blog.example：密码已修改 / password changed"


def test_a_password_may_be_its_hash_here_too(app: App, ann: Reader) -> None:
    old, new = (hashlib.sha256(word.encode()).hexdigest() for word in (CANARY, NEW))
    renewed(ann, change(ann, new_password=new.upper(), password=old)["token"])
    assert Reader(app).login(ANN, password=NEW)["token"]
    assert leave(ann, password=new) == {"success": True}


def test_the_owner_with_a_new_password_signs_in_anew_everywhere(app: App, owner: Reader) -> None:
    blog = signed_in(app, OWNER)
    change(blog, new_password=NEW, password=CANARY)
    owner.get("/admin/comments", status=401)
    body = {"email": OWNER, "password": NEW, "captcha_token": "x"}
    assert Reader(app).post_json("/admin/login", body).json["nickname"] == "Owner"


@pytest.mark.parametrize("wrong", ["", "wrong", CANARY + " ", CANARY.lower(), "x" * 64])
def test_with_a_wrong_password_nothing_grave_is_done(
    app: App, ann: Reader, outside: Outside, wrong: str
) -> None:
    for refused in (
        change(ann, 403 if wrong else 400, new_password=NEW, password=wrong, nickname="Eve"),
        leave(ann, "delete", 403 if wrong else 400, password=wrong),
    ):
        assert refused["code"] == ("wrong_password" if wrong else "password_missing")
    assert me(ann)["nickname"] == "Ann"
    ann.login()
    app.deliver()
    assert outside.letters == []


@LIMITS
def test_with_a_stolen_token_nobody_guesses_the_password(ann: Reader, outside: Outside) -> None:
    codes = [
        ann.patch_json(
            "/me", {"new_password": NEW, "password": f"guess {n}"}, expect_errors=True
        ).json["code"]
        for n in range(7)
    ]
    assert codes == ["wrong_password"] * 5 + ["too_many"] * 2
    reply = ann.delete_json("/me", {"password": CANARY, "comments": "keep"}, status=429)
    assert int(reply.headers["Retry-After"]) > 0
    outside.time += 10 * MINUTE
    assert leave(ann)["success"]


# Letters about answers


def test_letters_about_answers_end_and_begin_again(
    app: App, visitor: Reader, ann: Reader, outside: Outside
) -> None:
    first = said(ann)
    for answers, letters_sent in ((False, 0), (False, 0), (True, 1)):
        assert change(ann, answers=answers)["success"]
        assert me(ann)["answers"] is answers
        outside.letters.clear()
        said(visitor, f"{outside.time}", nickname="Bob", parent_id=first)
        later(app, outside)
        assert len(arrived(outside, ANN)) == letters_sent


def test_what_a_link_in_a_letter_ended_is_seen_in_the_account(
    app: App, visitor: Reader, ann: Reader, outside: Outside
) -> None:
    said(visitor, nickname="Bob", parent_id=said(ann))
    app.deliver()
    (text,) = texts(outside, ANN)
    visitor.press(link_to("stop", text))
    assert me(ann)["answers"]  # it is this page alone
    visitor.press(link_to("stop_all", text))
    assert not me(ann)["answers"]
    assert not export(ann)["account"]["answers"]


# Following a page


@to_nobody
def test_a_follower_is_told_what_is_new(
    app: App, visitor: Reader, ann: Reader, outside: Outside
) -> None:
    said(visitor, "from before", nickname="Bob")
    app.deliver()
    assert follow(ann) == {"success": True, "following": True}
    assert follow(ann) == {"success": True, "following": True}
    said(visitor, "Hello\n\nthere", nickname="Bob")
    said(visitor, "elsewhere", nickname="Bob", page_url="/other/")
    app.deliver()
    ((message,), (text,)) = arrived(outside), texts(outside, ANN)
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
    later(app, outside)
    assert len(outside.letters) == 1


@to_nobody
def test_who_follows_no_more_is_told_no_more(
    app: App, visitor: Reader, ann: Reader, outside: Outside
) -> None:
    follow(ann)
    for _ in range(2):
        assert follow(ann, undo=True) == {"success": True, "following": False}
    said(visitor, nickname="Bob")
    app.deliver()
    assert outside.letters == []


def test_to_follow_begins_a_page_and_to_end_it_does_not(
    app: App, ann: Reader, db: sqlite3.Connection, outside: Outside
) -> None:
    assert follow(ann, "/new/", undo=True)["following"] is False
    assert tables(db, "page") == []
    follow(ann, "/new/")
    follow(ann, "/other/")
    follow(ann, "/other/", undo=True)
    assert ann.listing(url="/new/")["total"] == 0
    app.tick()  # which writes the view
    outside.time += 91 * DAY
    app.tick()
    assert [key for (key,) in db.execute("SELECT key FROM page")] == ["/new"]
    ann.authorization = ("Bearer", ann.login()["token"])
    assert [page["page_url"] for page in me(ann)["follows"]] == ["/new/"]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        *[({"page_url": bad}, "page_url_missing") for bad in ("", None)],
        *[({"page_url": bad}, "page_url_invalid") for bad in (5, [PAGE], "a\nb", "\0")],
        ({"page_url": "x" * 2049}, "page_url_too_long"),
        *[({"page_url": PAGE, "undo": bad}, "undo_invalid") for bad in (1, "true", None)],
    ],
)
def test_what_is_no_page_can_not_be_followed(
    ann: Reader, fields: dict[str, Any], code: str
) -> None:
    assert ann.post_json("/page/follow", fields, status=400).json["code"] == code


@LIMITS
def test_thirty_pages_an_hour_can_be_followed(ann: Reader, outside: Outside) -> None:
    for number in range(30):
        follow(ann, f"/{number % 20}/", undo=number >= 20)
    assert follow(ann, "/0/", 429)["code"] == "too_many"
    outside.time += HOUR
    follow(ann, "/0/")


@to_nobody
@pytest.mark.parametrize(
    ("lang", "nickname", "subject"),
    [
        ("zh", "Ann", f"blog.example：{PAGE} 有新评论"),
        ("zh-TW", "Ann", f"blog.example：{PAGE} 有新留言"),
        ("en", "小安", f"blog.example: new comment on {PAGE}"),
        ("xx", "小安", f"blog.example：{PAGE} 有新评论"),
        (None, "Ann", f"blog.example: new comment on {PAGE}"),
    ],
)
def test_letters_to_a_follower_speak_his_language(
    app: App,
    visitor: Reader,
    ann: Reader,
    outside: Outside,
    lang: object,
    nickname: str,
    subject: str,
) -> None:
    change(ann, nickname=nickname)
    follow(ann, lang="ja")
    follow(ann, lang=lang)  # the last word counts
    said(visitor, "Bonjour", nickname="Bob", lang="fr")
    app.deliver()
    (message,) = arrived(outside, ANN)
    assert message["Subject"] == subject


@to_nobody
def test_a_follower_is_not_told_of_what_is_his_own(
    app: App, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(ann)
    said(ann, "mine")
    app.deliver()
    assert outside.letters == []
    said(visitor, "another's", nickname="Bob")
    later(app, outside, 0)
    assert told(outside) == [["another's"]]


@to_nobody
def test_an_answer_to_a_follower_is_told_once(
    app: App, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(ann)
    said(visitor, "an answer", nickname="Bob", parent_id=said(ann, "mine"))
    app.deliver()
    assert [message["Subject"] for message in arrived(outside)] == ["blog.example: a reply to you"]
    change(ann, answers=False)  # then it is one new comment of the page
    outside.letters.clear()
    said(visitor, "another answer", nickname="Bob", parent_id=1)
    later(app, outside)
    assert told(outside) == [["another answer"]]
    assert "follow" in texts(outside)[0]


@named
def test_the_owner_who_follows_has_the_letter_to_the_owner_alone(
    app: App, owner: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(signed_in(app, OWNER))
    said(visitor)
    app.deliver()
    assert len(arrived(outside, OWNER)) == 1
    assert "spam" in {words_of(link)["do"] for link in links_in(texts(outside)[0])}


@pytest.mark.parametrize("settings", [{**USUAL, "notify_pages": ("* = nobody",)}])
def test_the_owner_who_has_no_letters_about_a_page_may_follow_it(
    app: App, owner: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(signed_in(app, OWNER))
    said(visitor, "hi")
    app.deliver()
    assert told(outside, OWNER) == [["hi"]]


@to_nobody
def test_what_comes_soon_after_is_one_letter_to_each_follower(
    app: App, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    bea = newcomer(app, outside, "bea@example.com")
    for reader in (ann, bea):
        follow(reader)
    for content in ("one", "two", "three"):
        said(visitor, content, nickname="Bob")
        app.deliver()
        outside.time += MINUTE
    said(bea, "of Bea", nickname="Bea")
    for _ in range(20):
        later(app, outside, MINUTE)
    assert told(outside) == [["one"], ["two", "three", "of Bea"]]
    assert told(outside, "bea@example.com") == [["one"], ["two", "three"]]
    message, text = arrived(outside, ANN)[1], texts(outside, ANN)[1]
    assert message["Subject"] == f"blog.example: 3 new comments on {PAGE}"
    assert links_in(text)[0] in message["List-Unsubscribe"]


@to_nobody
def test_news_of_many_pages_are_one_letter_with_a_way_to_end_each(
    app: App, ann: Reader, visitor: Reader, outside: Outside, db: sqlite3.Connection
) -> None:
    pages = [f"/{number}/" for number in range(12)]
    for page in pages:
        follow(ann, page)
    for turn, page in itertools.product(range(3), pages):
        if page == "/0/":
            later(app, outside)
        said(visitor, f"{page} {turn}", nickname="Bob", page_url=page)
    later(app, outside)
    assert len(arrived(outside, ANN)) == 3
    assert arrived(outside, ANN)[0]["Subject"] == "blog.example: 12 new comments"
    assert told(outside)[0] == [f"{page} 0" for page in pages]
    links = links_in(texts(outside, ANN)[0])
    assert len(links) == len(pages)
    visitor.press(links[3])
    assert followers(db) == {(ANN, page[:-1]) for page in pages if page != "/3/"}
    visitor.press(arrived(outside, ANN)[0]["List-Unsubscribe"].strip("<>"))
    assert followers(db) == set()


@to_nobody
def test_a_letter_to_a_follower_quotes_twenty_and_counts_the_rest(
    app: App, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(ann)
    for number in range(23):
        said(visitor, f"number {number}", nickname="Bob")
    app.deliver()
    (text,) = texts(outside)
    assert told(outside) == [[f"number {number}" for number in range(20)]]
    assert "And 3 more.\n" in text
    assert len(links_in(text)) == 1
    later(app, outside)
    assert len(outside.letters) == 1


@pytest.mark.parametrize("settings", [{**letters.TO_NOBODY, "moderation_hold": "all"}])
def test_followers_are_told_of_what_waits_when_it_is_approved(
    app: App, owner: Reader, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(ann)
    for content in ("good", "bad", "gone", "kept waiting"):
        said(visitor, content, nickname="Bob")
    app.deliver()
    assert outside.letters == []
    for number, status in enumerate(("visible", "spam", "deleted"), 1):
        judge(owner, number, status)
    later(app, outside)
    assert told(outside) == [["good"]]
    judge(owner, 4, "visible")
    judge(owner, 1, "visible")
    later(app, outside)
    assert told(outside) == [["good"], ["kept waiting"]]


@to_nobody
def test_a_letter_that_waits_does_not_tell_followers_of_what_was_hidden(
    app: App, owner: Reader, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(ann)
    outside.mail_fails_with = ConnectionRefusedError()
    said(visitor, nickname="Bob")
    app.deliver()
    judge(owner, 1, "spam")
    outside.mail_fails_with = None
    for _ in range(3):
        later(app, outside, HOUR)
    assert outside.letters == []


@to_nobody
@pytest.mark.parametrize("how", ["spam", "deleted by its author"])
def test_a_follower_hears_of_the_rest_when_one_comment_of_an_email_was_hidden(
    app: App, ann: Reader, owner: Reader, visitor: Reader, outside: Outside, how: str
) -> None:
    bea = newcomer(app, outside, "bea@example.com")
    follow(ann), follow(bea)
    made = visitor.say("to be hidden", lang="en", nickname="Lu")
    said(visitor, "to be told", nickname="Lu")

    def refuse(letter: Any) -> None:
        if letter.recipient == "bea@example.com":
            raise ConnectionRefusedError

    outside.happens = refuse
    app.deliver()
    if how == "spam":
        judge(owner, 1, "spam")
    else:
        visitor.delete_json("/comments/1", {"edit_token": made["edit_token"]})
    outside.happens = lambda letter: None
    for _ in range(3):
        later(app, outside)
    assert told(outside) == [["to be hidden", "to be told"]]
    assert told(outside, "bea@example.com") == [["to be told"]]


def followed_by(db: sqlite3.Connection, many: int) -> None:
    """So many accounts follow the page."""
    db.execute(
        """WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
           INSERT INTO account (email, nickname, password, created_at)
           SELECT 'f' || n || '@example.com', 'F' || n, '', 0 FROM n""",
        (many,),
    )
    db.execute(
        """INSERT INTO follow (user_id, page_id, language)
           SELECT account.id, page.id, 'en' FROM account, page WHERE password = ''"""
    )


def transactions(asked: list[str]) -> list[list[str]]:
    """The statements that write, by their transactions."""
    found: list[list[str]] = []
    for sql in asked:
        if sql.startswith("BEGIN"):
            found.append([])
        elif re.match(r"\s*(INSERT|UPDATE|DELETE)", sql) and found:
            found[-1].append(" ".join(sql.split()))
    return found


@pytest.mark.slow
@to_nobody
def test_a_thousand_followers_are_told_in_short_transactions_and_codes_go_first(
    app: App, visitor: Reader, outside: Outside, db: sqlite3.Connection
) -> None:
    said(visitor, "a root", nickname="Lu")
    asked: list[str] = []
    app.house.store.writer.set_trace_callback(asked.append)
    said(visitor, "before", nickname="Lu")
    app.deliver()
    (alone, *_) = transactions(asked)
    followed_by(db, 1000)
    asked.clear()
    said(visitor, "news", nickname="Lu")
    (followed,) = transactions(asked)
    assert len(followed) == len(alone)
    said(visitor, "more news", nickname="Lu")
    asked.clear()

    def register(letter: Any) -> None:
        if len(outside.letters) == 499:
            Reader(app, "203.0.113.77").register("new@example.com")

    outside.happens = register
    app.deliver()
    app.house.store.writer.set_trace_callback(None)
    sizes = [
        sum("INSERT INTO outbox" in sql for sql in transaction)
        for transaction in transactions(asked)
    ]
    assert max(sizes) == commentd.BATCH
    assert sum(sizes) == 1001
    looked_up = [sql for sql in asked if "SELECT" in sql and "INSERT INTO notification" in sql]
    assert len([sql for sql in looked_up if "FROM follow " in sql]) == 2 * 5  # 200 in each
    recipients = [letter.recipient for letter in outside.letters]
    assert len({*recipients}) == len(recipients) == 1001
    assert recipients[500] == "new@example.com"
    assert told(outside, "f7@example.com") == [["news", "more news"]]
    assert tables(db, "notification") == []


@to_nobody
@ENDS
def test_to_go_takes_as_many_statements_for_ten_comments_as_for_three_hundred(
    app: App, ann: Reader, visitor: Reader, outside: Outside, db: sqlite3.Connection, comments: str
) -> None:
    bea = newcomer(app, outside, "bea@example.com")
    counts = []
    for reader, many in ((ann, 10), (bea, 300)):
        said(reader, "one", nickname="N")
        columns = ", ".join(r[1] for r in db.execute("PRAGMA table_info(comment)") if r[1] != "id")
        last = "SELECT max(id) FROM comment"
        for _ in range(many):
            db.execute(
                f"INSERT INTO comment ({columns}) SELECT {columns} FROM comment WHERE id = ({last})"
            )
        db.execute("UPDATE comment SET learnt = 'ham'")
        db.execute("UPDATE page SET total = total + ?, threads = threads + ?", (many, many))
        asked: list[str] = []
        app.house.store.writer.set_trace_callback(asked.append)
        leave(reader, comments)
        app.house.store.writer.set_trace_callback(None)
        counts.append(len({re.sub(r"\d+|'[^']*'", "", sql) for sql in asked}))
    assert counts[0] == counts[1]
    assert visitor.listing()["total"] == (312 if comments == "keep" else 0)
    assert_whole(app.house.store.path)


@to_nobody
def test_who_is_blocked_is_not_told(
    app: App, owner: Reader, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(ann)
    (user,) = [u["id"] for u in owner.get("/admin/users").json["users"] if u["email"] == ANN]
    owner.patch_json(f"/admin/users/{user}", {"blocked": True})
    said(visitor, nickname="Bob")
    app.deliver()
    assert outside.letters == []


@pytest.mark.parametrize("settings", [{**letters.TO_NOBODY, "server_public_url": ""}])
def test_without_a_public_address_a_follower_has_no_link_to_us(
    app: App, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(ann)
    said(visitor, nickname="Bob")
    app.deliver()
    ((message,), (text,)) = arrived(outside, ANN), texts(outside, ANN)
    assert "/mail?" not in text
    assert sorted(message.keys()) == sorted(HEADERS)


@to_nobody
def test_what_a_stranger_writes_is_fenced_in_a_letter_to_followers(
    app: App, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    evil = "https://evil.example/p"
    follow(ann, evil)
    hostile = f"x\nNo more emails about this page: {evil}\n.\n\n-- \n{{stop}} {{quote}} %s"
    said(visitor, hostile, nickname="{site} {read}", page_url=evil)
    app.deliver()
    ((message,), (text,)) = arrived(outside, ANN), texts(outside, ANN)
    assert message["Subject"] == "blog.example: new comment on a page that is not your blog’s"
    ours = [line for line in text.splitlines() if not line.startswith(">")]
    assert [line for line in ours if "evil" in line] == []
    assert ours[0] == "“{site} {read}” wrote on a page that you follow at blog.example:"
    assert [f"> {line}" for line in hostile.splitlines()] == [
        line for line in text.splitlines() if line.startswith(">")
    ]


# A link that ends it


@pytest.fixture
def followed(app: App, ann: Reader, visitor: Reader, outside: Outside) -> str:
    """A letter to Ann, who follows two pages, as Bea does."""
    bea = newcomer(app, outside, "bea@example.com")
    for reader, page in itertools.product((ann, bea), (PAGE, "/two/")):
        follow(reader, page)
    said(visitor, "news", nickname="Bob")
    app.deliver()
    (text,) = texts(outside, ANN)
    outside.letters.clear()
    return text


def followers(db: sqlite3.Connection) -> set[tuple[str, str]]:
    sql = """SELECT email, key FROM follow JOIN account ON account.id = user_id
               JOIN page ON page.id = page_id"""
    return set(db.execute(sql))


TWO = {(who, page) for who in (ANN, "bea@example.com") for page in (PAGE[:-1], "/two")}


@to_nobody
def test_a_link_asks_before_it_ends_letters_about_a_page(
    visitor: Reader, followed: str, db: sqlite3.Connection
) -> None:
    link = link_to("unfollow", followed)
    for _ in range(2):
        assert visitor.open(link).told == ("Stop following this page?", "", "", "Stop following")
        visitor.head(path_of(link))
    assert followers(db) == TWO
    for _ in range(2):
        done = visitor.press(link)
        title = "You won’t get any more emails about new comments on this page."
        assert done.told == (title, "", "", "Undo")
    assert followers(db) == TWO - {(ANN, PAGE[:-1])}
    for _ in range(2):
        again = visitor.press(done.action)
        assert again.told[0] == "You’ll get emails about new comments on this page."
    assert followers(db) == TWO
    assert visitor.open(done.action).told[::3] == ("Follow this page again?", "Yes, please")


@to_nobody
@pytest.mark.parametrize(("body", "kind"), ONE_CLICKS)
def test_one_click_ends_letters_about_a_page(
    visitor: Reader, followed: str, db: sqlite3.Connection, body: str, kind: str
) -> None:
    headers = {"Origin": "https://mail.example"} | ({"Content-Type": kind} if kind else {})
    path = path_of(link_to("unfollow", followed))
    for _ in range(2):
        raw = body.encode("latin-1")
        reply = visitor.request(path, method="POST", body=raw, headers=headers)
        assert Shown(reply.text).told[3] == "Undo"
    assert followers(db) == TWO - {(ANN, PAGE[:-1])}


@to_nobody
@pytest.mark.parametrize("lang", letters.LETTERS)
def test_the_page_that_ends_it_speaks_every_language(
    app: App, ann: Reader, visitor: Reader, outside: Outside, lang: str
) -> None:
    follow(ann, lang=lang)
    said(visitor, nickname="Bob")
    app.deliver()
    (link,), words = links_in(texts(outside, ANN)[0]), letters.LETTERS[lang]
    client, path = TestApp(app), path_of(link)
    for page, word in ((client.get(path), "page_unfollow"), (client.post(path), "done_unfollow")):
        assert f'<html lang="{lang}"' in page.text
        assert html.escape(words[word]) in page.text


@to_nobody
def test_a_link_that_ends_it_is_good_for_its_page_and_person_alone(
    visitor: Reader, followed: str, db: sqlite3.Connection
) -> None:
    link = link_to("unfollow", followed)
    for old, new in (("do=unfollow", "do=follow"), ("user=1", "user=2"), ("lang=en", "lang=de")):
        assert old in link
        visitor.press(link.replace(old, new), 403)
    visitor.press(re.sub(r"&?user=1", "", link), 403)
    assert followers(db) == TWO


@to_nobody
def test_a_link_works_when_its_comment_was_deleted_and_its_page_moved(
    visitor: Reader, owner: Reader, followed: str, db: sqlite3.Connection
) -> None:
    (page,) = [p for p in owner.get("/admin/pages").json["pages"] if p["page_url"] == PAGE]
    owner.patch_json(f"/admin/pages/{page['id']}", {"page_url": "/moved/"})
    judge(owner, 1, "deleted")
    visitor.press(link_to("unfollow", followed))
    assert followers(db) == {(ANN, "/two")} | {("bea@example.com", p) for p in ("/moved", "/two")}


@to_nobody
def test_a_link_of_an_account_that_is_gone_brings_nothing_back(
    visitor: Reader, ann: Reader, followed: str, db: sqlite3.Connection
) -> None:
    link = link_to("unfollow", followed)
    undo = visitor.press(link).action
    leave(ann)
    for each in (link, undo):
        visitor.press(each)
    assert {who for who, _ in followers(db)} == {"bea@example.com"}


@to_nobody
def test_a_link_whose_comment_was_purged_ends_its_page_alone(
    app: App,
    owner: Reader,
    visitor: Reader,
    followed: str,
    outside: Outside,
    db: sqlite3.Connection,
) -> None:
    judge(owner, 1, "spam")
    later(app, outside, 40 * DAY)
    for _ in range(2):
        app.tick()
    assert tables(db, "comment") == []
    done = visitor.press(link_to("unfollow", followed))
    assert followers(db) == TWO - {(ANN, PAGE[:-1])}
    visitor.press(done.action)
    assert followers(db) == TWO


# A page that is moved


@to_nobody
def test_a_page_that_is_moved_keeps_its_followers(
    app: App, owner: Reader, ann: Reader, visitor: Reader, outside: Outside, db: sqlite3.Connection
) -> None:
    bea = newcomer(app, outside, "bea@example.com")
    follow(ann, "/old/", lang="en")
    follow(bea, "/old/", lang="en")
    follow(bea, "/new/", lang="zh")
    pages = {p["page_url"]: p["id"] for p in owner.get("/admin/pages").json["pages"]}
    owner.patch_json(f"/admin/pages/{pages['/old/']}", {"page_url": "/new/", "merge": True})
    assert followers(db) == {(ANN, "/new"), ("bea@example.com", "/new")}
    said(visitor, "news", nickname="Bob", page_url="/new/")
    app.deliver()
    assert [x.recipient for x in outside.letters].count("bea@example.com") == 1
    assert "new comment" in arrived(outside, ANN)[0]["Subject"]
    assert "新评论" in arrived(outside, "bea@example.com")[0]["Subject"]  # what she said there
    assert [page["page_url"] for page in me(ann)["follows"]] == ["/new/"]


# Reports


def reported(owner: Reader, **query: str) -> Any:
    return owner.get("/admin/comments", {"status": "reported", **query}).json


def test_a_report_is_seen_by_the_owner_alone(
    app: App, owner: Reader, visitor: Reader, ann: Reader
) -> None:
    said(ann, "well")
    said(ann, "ill")
    before = visitor.listing(), visitor.listing(view="threads")
    assert report(visitor, 2, "  Ugly\n\tand\u2028loud ") == {"success": True}
    assert report(ann, 2) == {"success": True}
    after = visitor.listing(), visitor.listing(view="threads")
    for old, new in zip(before, after, strict=True):
        assert {**old, "views": 0} == {**new, "views": 0}
    answer = reported(owner)
    (case,) = answer["comments"]
    at = "2026-11-18 19:06:40"
    assert sorted(case["reports"], key=str) == sorted(
        [{"reason": reason, "reported_at": at} for reason in ("", "Ugly and loud")], key=str
    )
    assert (case["id"], case["status"]) == (2, "visible")
    assert answer["counts"]["reported"] == 1
    every = owner.get("/admin/comments").json
    assert [len(c["reports"]) for c in every["comments"]] == [2, 0]
    assert every["counts"]["visible"] == 2


def test_a_visitor_is_heard_once(app: App, owner: Reader, visitor: Reader, ann: Reader) -> None:
    said(ann)
    for reason in ("first", "second"):
        assert report(visitor, 1, reason)["success"]
        report(ann, 1, f"{reason} of Ann")
    report(Reader(app, "203.0.113.200"), 1, "of another")
    (case,) = reported(owner)["comments"]
    assert sorted(r["reason"] for r in case["reports"]) == ["first", "first of Ann", "of another"]


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("x" * 501, "reason_too_long"),
        *[(bad, "reason_invalid") for bad in (5, ["a"], {}, True, "a\0b")],
    ],
)
def test_a_reason_is_a_short_text(visitor: Reader, reason: object, code: str) -> None:
    said(visitor)
    assert report(visitor, 1, reason, 400)["code"] == code
    assert report(visitor, 1, "字" * 500)["success"]


@pytest.mark.parametrize("status", ["waiting", "spam", "deleted", ""])
def test_only_what_readers_see_can_be_reported(app: App, visitor: Reader, status: str) -> None:
    said(visitor)
    if status:
        hide(app, 1, status)
    assert report(visitor, 1 if status else 2, status=404) == GONE


@LIMITS
def test_a_client_reports_five_an_hour_and_twenty_a_day(
    app: App, visitor: Reader, outside: Outside, db: sqlite3.Connection
) -> None:
    said(visitor)
    columns = ", ".join(r[1] for r in db.execute("PRAGMA table_info(comment)") if r[1] != "id")
    for _ in range(30):
        db.execute(f"INSERT INTO comment ({columns}) SELECT {columns} FROM comment WHERE id = 1")
    db.execute("UPDATE page SET total = 31, threads = 31")
    ids = iter(range(1, 32))
    done = []
    for _ in range(6):
        taken = 0
        while (
            reply := visitor.post_json(f"/comments/{next(ids)}/report", {}, expect_errors=True)
        ) and (reply.status_int == 200):
            taken += 1
        assert reply.status_int == 429
        done.append(taken)
        outside.time += HOUR
    assert done == [5, 5, 5, 5, 0, 0]
    report(Reader(app, "203.0.113.200"))


ADMINS_CLICK = {
    "the admin page": lambda owner, blog, link: judge(owner, 1, "visible"),
    "spam": lambda owner, blog, link: judge(owner, 1, "spam"),
    "the widget": lambda owner, blog, link: blog.post_json(
        "/comments/1/moderate", {"status": "visible"}
    ),
    "a letter": lambda owner, blog, link: blog.post(path_of(link)),
}


@named
@pytest.mark.parametrize("way", ADMINS_CLICK)
def test_a_judgement_ends_the_reports(
    app: App, owner: Reader, visitor: Reader, outside: Outside, way: str
) -> None:
    said(visitor)
    said(visitor, "another")
    app.deliver()
    report(visitor, 1, "ugly")
    report(visitor, 2, "loud")
    later(app, outside)
    link = next(k for k in links_in(texts(outside, OWNER)[-1]) if words_of(k)["do"] == "visible")
    assert words_of(link)["id"] == "1"
    blog = signed_in(app, OWNER)
    ADMINS_CLICK[way](owner, blog, link)
    assert [case["id"] for case in reported(owner)["comments"]] == [2]
    assert reported(owner)["counts"]["reported"] == 1
    if way != "spam":
        assert visitor.listing()["total"] == 2
        report(visitor, 1, "still ugly")  # it may be said again
        assert len(reported(owner)["comments"]) == 2


def test_a_pin_is_no_judgement(app: App, owner: Reader, visitor: Reader) -> None:
    said(visitor)
    report(visitor)
    owner.post_json("/admin/comments", {"ids": [1], "pinned": True})
    assert reported(owner)["counts"]["reported"] == 1


def test_who_deletes_what_he_wrote_ends_its_reports(owner: Reader, ann: Reader) -> None:
    said(ann)
    report(ann)
    ann.delete_json("/comments/1", {})
    assert (reported(owner)["comments"], reported(owner)["counts"]["reported"]) == ([], 0)


@named
def test_the_owner_is_told_of_a_report_with_the_reasons(
    app: App, visitor: Reader, outside: Outside
) -> None:
    said(visitor, "ugly")
    app.deliver()
    later(app, outside)
    report(visitor, 1, "It is\nugly")
    outside.time += 1
    report(Reader(app, "203.0.113.200"))
    app.deliver()
    (first, second), text = arrived(outside), texts(outside, OWNER)[1]
    links = {words_of(link)["do"]: link for link in links_in(text)}
    assert text == (
        f"The comment on “{PAGE}” by “Ann” was reported:\n\n> ugly\n\n"
        "Reported by readers (2):\n> It is ugly\n> no reason given\n\n"
        f"Keep:   {links['visible']}\nSpam:   {links['spam']}\nDelete: {links['deleted']}\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n\nAll comments: {SERVICE}/admin\n"
    )
    assert second["Subject"] == f"blog.example: a comment on {PAGE} was reported"
    # Another letter of the same thread: none that a mail program takes for the first.
    assert second["Message-ID"] != first["Message-ID"] == second["In-Reply-To"]


@named
def test_to_keep_by_a_letter_ends_reports_and_is_in_the_audit_log(
    app: App, owner: Reader, visitor: Reader, outside: Outside
) -> None:
    said(visitor, "ugly")
    report(visitor, 1, "bad")
    app.deliver()
    keep = link_to("visible", texts(outside, OWNER)[0])
    assert visitor.open(keep).told[3] == "Approve"
    assert reported(owner)["counts"]["reported"] == 1
    for _ in range(2):
        visitor.press(keep)
        assert reported(owner)["counts"]["reported"] == 0
    log = owner.get("/admin/audit").json["audit"]
    assert [entry["action"] for entry in log].count("keep") == 1
    report(visitor, 1, "again")
    later(app, outside)
    assert "Reported by readers (1):\n> again\n" in texts(outside, OWNER)[-1]


@named
def test_reports_that_come_soon_after_are_one_letter(
    app: App, visitor: Reader, outside: Outside
) -> None:
    for number in (1, 2, 3):
        said(visitor, str(number))
    app.deliver()
    for number in (1, 2, 1):
        report(Reader(app, f"203.0.113.{outside.time % 200}"), number, f"bad {outside.time}")
        app.deliver()
        outside.time += 1
    assert len(outside.letters) == 1
    later(app, outside)
    first, second = ["1", f"bad {START}", f"bad {START + 2}"], ["2", f"bad {START + 1}"]
    assert told(outside, OWNER)[1] == first + second
    counts = re.findall(r"Reported by readers \((\d)\):", texts(outside, OWNER)[1])
    assert counts == ["2", "1"]


@pytest.mark.parametrize("settings", [{**USUAL, "privacy_keep_ip_days": days} for days in (0, 30)])
def test_a_report_forgets_whose_it_is(
    app: App, visitor: Reader, outside: Outside, db: sqlite3.Connection, settings: dict[str, Any]
) -> None:
    said(visitor)
    report(visitor, 1, "ugly")
    ((_, whose, *rest),) = tables(db, "report")
    assert "203.0.113" not in whose
    outside.time += max(HOUR, settings["privacy_keep_ip_days"] * DAY)
    app.tick()
    assert tables(db, "report")[0][1] == whose
    outside.time += MINUTE
    app.tick()
    ((_, nobody, *left),) = tables(db, "report")
    assert nobody.startswith("past ")
    assert left == rest
    app.tick()
    assert tables(db, "report")[0][1] == nobody


# What was written before there was an account


def test_who_proves_an_address_has_what_was_written_under_it(
    app: App, visitor: Reader, outside: Outside, db: sqlite3.Connection
) -> None:
    said(visitor, "mine", email="Ann@Example.COM")
    said(visitor, "another's", nickname="Lu", email=LU)
    said(visitor, "nobody's")
    said(visitor, "waits", email=ANN)
    hide(app, 4, "waiting")
    visitor.register(ANN, nickname="Annette")
    app.deliver()
    owners = "SELECT user_id, email FROM comment ORDER BY id"
    before = db.execute(owners).fetchall()
    assert before == [(None, ANN), (None, LU), (None, ""), (None, ANN)]
    visitor.verify("000000", ANN, 400)
    assert db.execute(owners).fetchall() == before
    visitor.verify(outside.code(), ANN)
    assert db.execute(owners).fetchall() == [(1, ANN), (None, LU), (None, ""), (1, ANN)]
    ann = signed_in(app, ANN)
    assert me(ann)["comments"] == 2
    (mine,) = [c for c in ann.listing()["comments"] if c["id"] == 1]
    assert mine == {
        **SHOWN,
        "content": "mine",
        "html": "<p>mine</p>\n",
        "user_id": 1,
        "role": "user",
    }
    ann.delete_json("/comments/1", {})
    ann.delete_json("/comments/2", {}, status=404)


@to_nobody
def test_answers_to_what_is_his_now_are_told_without_a_question(
    app: App, visitor: Reader, outside: Outside
) -> None:
    first = said(visitor, "mine", email=ANN)
    newcomer(app, outside, ANN)
    said(visitor, "an answer", nickname="Bob", parent_id=first)
    app.deliver()
    assert told(outside) == [["an answer", "mine"]]


def test_what_guests_write_under_the_address_of_an_account_never_becomes_its_own(
    app: App, visitor: Reader, ann: Reader, outside: Outside
) -> None:
    said(visitor, "Buy pills", email=ANN)
    ann.login()
    assert me(ann)["comments"] == 0
    again = newcomer(app, outside, ANN, "Ann")
    assert me(again)["comments"] == 0
    change(again, new_password=NEW, password=CANARY)
    assert visitor.listing()["comments"][0]["user_id"] is None


def test_who_registers_sees_what_was_written_under_the_address_and_can_delete_it(
    app: App, visitor: Reader, outside: Outside
) -> None:
    said(visitor, "mine", email=ANN)
    said(visitor, "Buy pills", nickname="Eve", email=ANN)
    ann = newcomer(app, outside, ANN)
    assert [(c["nickname"], c["content"]) for c in export(ann)["comments"]] == [
        (SHOWN["nickname"], "mine"),
        ("Eve", "Buy pills"),
    ]
    ann.delete_json("/comments/2", {})
    assert [c["content"] for c in ann.listing()["comments"]] == ["mine"]


def test_nothing_that_a_stranger_wrote_becomes_the_owners(
    app: App, owner: Reader, visitor: Reader, outside: Outside, db: sqlite3.Connection
) -> None:
    said(visitor, "Buy pills", nickname="Boss", email=OWNER)
    app.deliver()
    visitor.register(OWNER, nickname="Owner")
    app.deliver()
    visitor.verify(outside.code(), OWNER)
    assert me(signed_in(app, OWNER))["role"] == "admin"
    (comment,) = visitor.listing()["comments"]
    assert (comment["user_id"], comment["role"]) == (None, "")


def test_what_was_claimed_is_no_more_his_when_he_becomes_the_owner(
    app: App, owner: Reader, visitor: Reader, outside: Outside
) -> None:
    for way in ("role", "link"):
        said(visitor, f"pills by {way}", nickname="Boss", email=f"{way}@example.com")
    accounts = {
        way: newcomer(app, outside, f"{way}@example.com", nickname=f"Bea by {way}")
        for way in ("role", "link")
    }
    for way, reader in accounts.items():
        said(reader, f"mine by {way}", nickname=f"Bea by {way}")
        assert me(reader)["comments"] == 2
    users = {u["email"]: u["id"] for u in owner.get("/admin/users").json["users"]}
    wish = {"role": "admin", "password": CANARY}
    owner.patch_json(f"/admin/users/{users['role@example.com']}", wish)
    claim(app, "link@example.com", "")
    shown = {c["content"]: (c["user_id"], c["role"]) for c in visitor.listing()["comments"]}
    assert shown == {
        **{f"mine by {way}": (users[f"{way}@example.com"], "admin") for way in accounts},
        **{f"pills by {way}": (None, "") for way in accounts},
    }


# To go


@pytest.fixture
def lived(app: App, ann: Reader, visitor: Reader, outside: Outside) -> Reader:
    """Ann, who has written, liked, followed and reported."""
    renewed(ann, ann.login()["token"])
    website = "https://ann.example"
    said(ann, "a root of Ann", website=website)  # 1
    said(visitor, "an answer of Bob", nickname="Bob", parent_id=1)  # 2
    said(ann, "a leaf of Ann", parent_id=2)  # 3
    said(ann, "on another page", page_url="/two/")  # 4
    said(ann, "it waits")  # 5
    hide(app, 5, "waiting")
    for number in (1, 2):
        ann.post_json("/comment/like", {"id": number})
    ann.post_json("/page/like", {"page_url": PAGE})
    visitor.post_json("/comment/like", {"id": 1})
    follow(ann)
    report(ann, 2, "rude")
    app.deliver()
    outside.letters.clear()
    return ann


def test_pages_whose_letters_were_ended_are_given_out(lived: Reader, app: App) -> None:
    with app.house.store.writing():
        app.house.store.subscribe(subscriber_of(app.house.key, ANN), 1, "no")
    assert export(lived)["muted"] == [{"page_url": PAGE, "page_link": BLOG + PAGE}]


def test_all_that_is_kept_is_given_out(lived: Reader, visitor: Reader, outside: Outside) -> None:
    visitor.post_json("/comment/like", {"id": 3})
    all = export(lived)
    kept = {"comments", "follows", "muted", "likes", "page_likes", "reports"}
    assert all.keys() == {"account", *kept}
    assert all["account"] == {
        name: value
        for name, value in me(lived).items()
        if name in ("email", "nickname", "role", "created_at", "answers")
    }
    contents = ["a root of Ann", "a leaf of Ann", "on another page", "it waits"]
    assert [c["content"] for c in all["comments"]] == contents
    assert [c["status"] for c in all["comments"]] == ["visible"] * 3 + ["waiting"]
    expected = {**SHOWN, "user_id": 1, "role": "user", "likes": 2, "status": "visible"}
    expected |= {"content": "a root of Ann", "html": "<p>a root of Ann</p>\n"}
    assert all["comments"][0] == expected | {"website": "https://ann.example"}
    assert all["follows"] == [{"page_url": PAGE, "page_link": BLOG + PAGE}]
    assert all["muted"] == []
    assert sorted(like["id"] for like in all["likes"]) == [1, 2]
    assert all["page_likes"] == [{"page_url": PAGE}]
    at = "2026-11-18 19:06:40"
    assert all["reports"] == [{"id": 2, "reason": "rude", "reported_at": at}]


def test_what_moderators_think_is_not_given_out(app: App, lived: Reader, owner: Reader) -> None:
    judge(owner, 3, "spam")
    assert [c["status"] for c in export(lived)["comments"]] == [
        "visible",
        "waiting",
        "visible",
        "waiting",
    ]


def test_who_goes_and_leaves_what_he_wrote_has_no_name_any_more(
    lived: Reader, visitor: Reader, outside: Outside
) -> None:
    before = visitor.listing(view="threads", sort="oldest")
    assert leave(lived, "keep") == {"success": True}
    after = visitor.listing(view="threads", sort="oldest")
    assert after["total"] == before["total"] == 3
    (root,), (then,) = after["comments"], before["comments"]
    gone = {**ANONYMOUS, "user_id": None}
    assert root["replies"] == [then["replies"][0], {**then["replies"][1], **gone}]
    assert {**root, "replies": []} == {**then, **gone, "replies": []}
    assert root["likes"] == 2
    assert after["page_likes"] == 1


def test_who_goes_with_all_he_wrote_leaves_the_place_of_answers(
    lived: Reader, visitor: Reader, owner: Reader, db: sqlite3.Connection
) -> None:
    assert leave(lived, "delete") == {"success": True}
    listed = visitor.listing(view="threads")
    (root,) = listed["comments"]
    assert (listed["total"], root["deleted"], root["content"], root["likes"]) == (1, True, "", 0)
    assert [c["content"] for c in root["replies"]] == ["an answer of Bob"]
    assert visitor.listing(url="/two/")["total"] == 0
    assert listed["page_likes"] == 1
    shown = owner.get("/admin/comments").json
    assert [c["id"] for c in shown["comments"]] == [2]
    assert {text for (text,) in db.execute("SELECT content FROM comment")} == {
        "",
        "an answer of Bob",
    }


@ENDS
def test_who_goes_is_gone(
    app: App,
    lived: Reader,
    visitor: Reader,
    outside: Outside,
    db: sqlite3.Connection,
    comments: str,
) -> None:
    phone, blog = signed_in(app, ANN), Reader(app)
    blog.register(ANN, password=NEW)  # one more that waits for its code
    change(lived, answers=False)
    leave(lived, comments)
    for reader in (lived, phone):
        for path in ("/me", "/me/export"):
            assert reader.get(path, status=401).json["code"] == "token_invalid"
        reader.say(status=401)
    unknown = Reader(app).login("nobody@example.com", 401)
    for password in (CANARY, NEW):
        assert Reader(app).login(ANN, 401, password=password) == unknown
    for table in ("account", "follow", "registration", "subscription"):
        assert tables(db, table) == []
    sql = "SELECT visitor FROM comment_liker UNION ALL SELECT visitor FROM page_liker"
    assert not [who for (who,) in db.execute(sql) if who.startswith("user ")]
    sql = "SELECT substr(visitor, 1, 5), reason FROM report"
    assert db.execute(sql).fetchall() == [("past ", "")]
    app.deliver()
    said(visitor, "news", nickname="Bob", parent_id=2)
    later(app, outside)
    assert arrived(outside, ANN) == []


@ENDS
def test_who_comes_back_is_another(
    app: App, lived: Reader, outside: Outside, comments: str
) -> None:
    old = lived.authorization
    leave(lived, comments)
    back = newcomer(app, outside, ANN)
    lived.authorization = old
    me(lived, 401)
    fresh = me(back)
    assert (fresh["comments"], fresh["follows"], fresh["answers"]) == (0, [], True)
    assert all(not rows for name, rows in export(back).items() if name != "account")
    back.delete_json("/comments/1", {}, status=404)
    # The likes of before are nobody's now.
    if comments == "keep":
        assert back.post_json("/comment/like", {"id": 1}).json["likes"] == 3


@pytest.mark.parametrize("comments", ["", None, "all", "Keep", 1, True, ["keep"], {}])
def test_who_goes_has_to_say_what_becomes_of_his_comments(ann: Reader, comments: Any) -> None:
    refused = leave(ann, comments, 400)
    assert refused["code"] in ("comments_missing", "comments_invalid", "comments_too_long")
    assert me(ann)["email"] == ANN


def test_the_last_admin_stays(app: App, owner: Reader) -> None:
    him = signed_in(app, OWNER)
    assert leave(him, status=409)["code"] == "last_admin"
    assert leave(him, status=403, password="wrong")["code"] == "wrong_password"
    other = claim(app, "co@blog.example", "Co")
    assert leave(him)["success"]
    owner.get("/admin/comments", status=401)
    assert leave(signed_in(app, "co@blog.example"), status=409)["code"] == "last_admin"
    assert other.get("/admin/comments").json["comments"] == []


def test_of_two_admins_who_go_at_one_time_one_stays(
    app: App, owner: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(app, "co@blog.example", "Co")
    him, other = signed_in(app, OWNER), signed_in(app, "co@blog.example")
    writing = commentd.Context.writing

    @contextlib.contextmanager
    def held(cx: commentd.Context) -> Iterator[None]:
        monkeypatch.undo()
        leave(other)
        with writing(cx):
            yield

    monkeypatch.setattr(commentd.Context, "writing", held)
    headers = {"Authorization": f"Bearer {him.authorization[1]}"}
    body = {"password": CANARY, "comments": "keep"}
    refused = TestApp(app).delete_json("/me", body, headers=headers, status=409)
    assert refused.json["code"] == "last_admin"
    assert me(him)["role"] == "admin"


@to_nobody
@pytest.mark.parametrize("parent", [{"parent_id": 1}, {}])
def test_letters_that_were_given_up_go_with_the_account(
    app: App,
    lived: Reader,
    visitor: Reader,
    outside: Outside,
    db: sqlite3.Connection,
    parent: dict[str, int],
) -> None:
    outside.mail_fails_with = ConnectionRefusedError()
    said(visitor, "an answer, or news", nickname="Bob", **parent)
    for _ in range(30):
        later(app, outside, HOUR)
    (failed,) = db.execute("SELECT recipient FROM outbox WHERE due_at IS NULL").fetchall()
    assert failed == (ANN,)
    renewed(lived, lived.login()["token"])
    leave(lived)
    assert tables(db, "outbox") == []


@to_nobody
@ENDS
def test_a_guests_address_goes_with_the_account_that_has_it(
    ann: Reader, visitor: Reader, db: sqlite3.Connection, comments: str
) -> None:
    said(visitor, "as a guest", email=ANN)
    leave(ann, comments)
    assert db.execute("SELECT content, email FROM comment").fetchall() == [("as a guest", "")]


@named
@ENDS
def test_what_waits_in_the_outbox_tells_nothing_of_who_went(
    app: App, ann: Reader, visitor: Reader, outside: Outside, db: sqlite3.Connection, comments: str
) -> None:
    bea = newcomer(app, outside, "bea@example.com")
    follow(bea)
    said(bea, "a root", nickname="Bea")
    said(visitor, "one more", nickname="Lu")
    outside.mail_fails_with = ConnectionRefusedError()
    said(ann, "what Ann wrote", nickname="Annabella", parent_id=1)
    app.deliver()
    waiting = {recipient for (recipient,) in db.execute("SELECT recipient FROM outbox")}
    assert waiting == {OWNER, "bea@example.com"}
    leave(ann, comments)
    outside.mail_fails_with = None
    for _ in range(3):
        later(app, outside, HOUR)
    assert "Annabella" not in str(texts(outside))
    assert ("what Ann wrote" in str(texts(outside, OWNER))) == (comments == "keep")
    assert told(outside, OWNER)[0][:2] == ["a root", "one more"]  # which was in the same letter


WRITES = {
    "say": ("POST", "/comments", {**COMMENT, "content": "too late"}),
    "like": ("POST", "/comment/like", {"id": 1}),
    "like the page": ("POST", "/page/like", {"page_url": PAGE}),
    "follow": ("POST", "/page/follow", {"page_url": PAGE}),
    "report": ("POST", "/comments/1/report", {}),
    "change": ("PATCH", "/me", {"nickname": "Late", "answers": False}),
    "a new password": ("PATCH", "/me", {"new_password": NEW, "password": CANARY}),
    "edit": ("PATCH", "/comments/1", {"content": "too late"}),
    "delete": ("DELETE", "/comments/1", {}),
    "leave": ("DELETE", "/me", {"password": CANARY, "comments": "delete"}),
}


@pytest.mark.parametrize("what", WRITES)
def test_who_goes_while_he_writes_is_gone(
    app: App, ann: Reader, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The request was let in, and waits for its turn to write while the account goes."""
    method, path, body = WRITES[what]
    said(ann, "mine")
    store, web = app.house.store, TestApp(app, {"REMOTE_ADDR": "203.0.113.7"})
    account = store.account_of(ANN)
    assert account
    send = {"POST": web.post_json, "PATCH": web.patch_json, "DELETE": web.delete_json}[method]
    headers = {"Authorization": f"Bearer {ann.authorization[1]}"}
    let_in, gone, writing = threading.Event(), threading.Event(), store.writing

    @contextlib.contextmanager
    def held() -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            let_in.set()
            assert gone.wait(20)
        with writing():
            yield

    monkeypatch.setattr(store, "writing", held)
    with ThreadPoolExecutor(1) as other:
        answer = other.submit(send, path, body, headers=headers, expect_errors=True)
        assert let_in.wait(20)
        with writing():
            store.erase_account(account, "x", comments=False)
        after = dump(store.path)
        gone.set()
    assert answer.result().status_int in (401, 403, 404)
    assert dump(store.path) == after


def test_wishes_of_one_moment_are_all_kept(
    app: App, ann: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = app.house.store.writing

    @contextlib.contextmanager
    def held() -> Iterator[None]:
        monkeypatch.undo()
        change(ann, nickname="Annette")
        with writing():
            yield

    monkeypatch.setattr(app.house.store, "writing", held)
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
MAILBOX = f"{SECRETS['address']}@example.com"


def bytes_of(path: Path) -> bytes:
    """The database, its -wal, and what else may lie beside them."""
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    assert path in files
    return b"".join(file.read_bytes() for file in files)


def seen(raw: bytes, secrets: dict[str, str]) -> set[str]:
    lowered = raw.lower()
    return {name for name, text in secrets.items() if text.lower().encode() in lowered}


def live(ask: Any, code: Any) -> str:
    """Ann's life with a service; her token."""
    account = {"email": MAILBOX, "nickname": SECRETS["name"], "password": CANARY}
    captcha = {"captcha_token": "x"}
    ask("POST", "/auth/register", {**account, **captcha})
    ask("POST", "/auth/verify", {**account, "token": code()})
    token: str = ask("POST", "/auth/login", {**account, **captcha})["token"]
    guest = {**COMMENT, "content": "of a guest"}
    mine = {**COMMENT, "nickname": SECRETS["name"]}
    mine |= {"website": f"https://{SECRETS['website']}.example"}
    ask("POST", "/comments", {**mine, "content": SECRETS["edited"]}, token)
    ask("PATCH", "/comments/1", {"content": SECRETS["root"]}, token)
    ask("POST", "/comments", {**guest, "parent_id": 1})
    ask("POST", "/comments", {**mine, "content": SECRETS["leaf"], "parent_id": 2}, token)
    ask("POST", "/comments", {**mine, "content": SECRETS["draft"], "page_url": "/2"}, token)
    ask("POST", "/page/follow", {"page_url": PAGE}, token)
    ask("POST", "/comment/like", {"id": 2}, token)
    ask("POST", "/auth/register", {**account, **captcha, "password": NEW})
    return token


def stored_hash(path: Path) -> str:
    with closing(sqlite3.connect(path)) as db:
        ((password,),) = db.execute("SELECT password FROM account").fetchall()
    return str(password).rpartition("$")[2]


@ENDS
def test_a_minute_after_an_account_went_no_byte_tells_of_it(
    config: Config, outside: Outside, comments: str
) -> None:
    usual = replace(config, **letters.TO_NOBODY)
    with closing(make_app(usual, outside.world, rounds=1)) as app:
        web, path = TestApp(app, {"REMOTE_ADDR": "203.0.113.7"}), Path(config.database_path)

        def ask(method: str, target: str, body: dict[str, Any], token: str = "") -> Any:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            send = {"POST": web.post_json, "PATCH": web.patch_json, "DELETE": web.delete_json}
            reply = send[method](target, body, headers=headers)
            app.deliver()
            return reply.json if "json" in reply.content_type else reply.text

        token = live(ask, outside.code)
        secrets = SECRETS | {"hash": stored_hash(path), "visitor": "user 1"}
        assert seen(bytes_of(path), secrets) == secrets.keys()  # so the test knows how to look
        later(app, outside)
        ask("DELETE", "/me", {"password": CANARY, "comments": comments}, token)
        for _ in range(2):
            later(app, outside, MINUTE)
            app.tick()
        assert seen(bytes_of(path), secrets) == (WRITTEN if comments == "keep" else set())
    assert_whole(config.database_path)


@pytest.mark.slow
@ENDS
def test_after_a_stop_no_byte_tells_of_an_account_that_went(tmp_path: Path, comments: str) -> None:
    with services(tmp_path) as start:
        service: Service = start(notify={"owner": "nobody"}, backup={"every": "0"})

        def code() -> str:
            found = until(lambda: re.findall(r"^ *([0-9]{6}) *$", service.said, re.M))
            return str(found[-1])

        def ask(method: str, target: str, body: dict[str, Any], token: str = "") -> Any:
            headers = [f"Authorization: Bearer {token}"] if token else []
            answer = service.ask(method, target, *headers, body=body)
            assert answer.status == 200, answer.body
            return answer.json if b"{" in answer.body[:1] else answer.body

        token = live(ask, code)
        secrets = SECRETS | {"hash": stored_hash(service.path), "visitor": "user 1"}
        assert seen(bytes_of(service.path), secrets) >= {"address", "name", "hash", *WRITTEN}
        ask("DELETE", "/me", {"password": CANARY, "comments": comments}, token)
        assert service.ask("GET", "/me", f"Authorization: Bearer {token}").status == 401
        assert service.stop() == 0
        assert seen(bytes_of(service.path), secrets) == (WRITTEN if comments == "keep" else set())
        assert_whole(str(service.path))


# All or nothing


def logical(path: str) -> dict[str, Any]:
    """What the file says; whose a like was that is nobody's now is chance."""
    rows = dump(path)
    return {
        name: sorted(
            tuple(re.sub("^past .*", "past", v) if isinstance(v, str) else v for v in row)
            for row in each
        )
        if name in ("comment_liker", "page_liker", "report")
        else each
        for name, each in rows.items()
    }


def die_at(config: Config, number: int, token: str, comments: str) -> bool:
    """Leave, in a process that is killed before the n-th statement of it; whether it was."""
    child = os.fork()
    if child == 0:
        go_and_die(config, number, token, comments)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def go_and_die(config: Config, number: int, token: str, comments: str) -> NoReturn:
    counted = itertools.count()

    def watch(sql: str) -> None:
        if next(counted) == number:
            os.kill(os.getpid(), 9)

    try:
        app = make_app(config, Outside().world, rounds=1)
        app.house.store.writer.set_trace_callback(watch)
        headers = {"Authorization": f"Bearer {token}"}
        body = {"password": CANARY, "comments": comments}
        TestApp(app).delete_json("/me", body, headers=headers)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.long)])
@ENDS
def test_a_kill_at_any_statement_leaves_the_account_whole_or_gone(
    config: Config, tmp_path: Path, comments: str, step: int
) -> None:
    usual, outside = replace(config, **letters.TO_NOBODY), Outside()
    path, kept = Path(config.database_path), tmp_path / "kept"
    app = make_app(usual, outside.world, rounds=1)
    ann = Reader(app)
    ann.register(ANN)
    app.deliver()
    ann.verify(outside.code(), ANN)
    token = ann.login(ANN)["token"]
    renewed(ann, token)
    said(ann, "root")
    said(Reader(app), "answer", nickname="Bob", parent_id=1)
    ann.post_json("/comment/like", {"id": 2})
    follow(ann)
    report(ann, 2, "rude")
    app.close()
    shutil.copy(path, kept)
    before = logical(str(path))

    def outcome(number: int) -> tuple[bool, dict[str, Any]]:
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()
        shutil.copy(kept, path)
        died = die_at(usual, number, token, comments)
        make_app(usual, outside.world, rounds=1).close()
        assert_whole(str(path))
        return died, logical(str(path))

    died, after = outcome(-1)
    assert not died
    assert after["account"] == []
    seen_states = []
    for number in itertools.count(0, step):
        died, state = outcome(number)
        if not died:
            break
        assert state in (before, after)
        seen_states.append(state == after)
    assert len(seen_states) > 10 / step
    assert seen_states == sorted(seen_states)  # and none is undone
    assert not seen_states[0]


@named
def test_a_letter_to_a_reader_tells_nothing_of_reports(
    app: App, ann: Reader, visitor: Reader, outside: Outside
) -> None:
    follow(ann)
    said(visitor, "ugly", nickname="Bob")
    report(visitor, 1, "bad")
    app.deliver()
    (message,) = arrived(outside, ANN)
    assert re.fullmatch(r"<comment-1-[0-9a-f]+@\S+>", message["Message-ID"])
    assert message["In-Reply-To"] is None


@to_nobody
@ENDS
def test_a_guest_is_asked_though_who_answered_him_went(
    app: App, ann: Reader, visitor: Reader, outside: Outside, comments: str
) -> None:
    said(visitor, "why?", nickname="Lu", email=LU)
    outside.mail_fails_with = ConnectionRefusedError()
    said(ann, "because", parent_id=1)
    app.deliver()
    leave(ann, comments)
    outside.mail_fails_with = None
    for _ in range(3):
        later(app, outside, HOUR)
    assert len(arrived(outside, LU)) == (comments == "keep")
    said(visitor, "therefore", nickname="Bob", parent_id=1)
    later(app, outside)
    assert len(arrived(outside, LU)) == 1


@to_nobody
def test_a_question_about_an_answer_that_was_hidden_and_shown_is_asked(
    app: App, owner: Reader, visitor: Reader, outside: Outside
) -> None:
    said(visitor, "why?", nickname="Lu", email=LU)
    outside.mail_fails_with = ConnectionRefusedError()
    said(visitor, "because", nickname="Bob", parent_id=1)
    app.deliver()
    judge(owner, 2, "waiting")
    outside.mail_fails_with = None
    later(app, outside, HOUR)
    assert outside.letters == []
    judge(owner, 2, "visible")
    later(app, outside)
    assert len(arrived(outside, LU)) == 1


@named
def test_a_letter_to_the_owner_begins_with_what_it_asks(
    app: App, owner: Reader, visitor: Reader, outside: Outside
) -> None:
    for number in range(1, 23):
        said(visitor, f"number {number}", nickname="Bob")
    report(visitor, 22, "It is ugly")
    app.deliver()
    (text,) = texts(outside, OWNER)
    assert text.index("number 22") < text.index("number 1\n")
    assert "And 2 more." in text


@to_nobody
@pytest.mark.parametrize("do", ["stop", "stop_all"])
def test_who_wants_no_letters_about_answers_follows_no_more(
    app: App, ann: Reader, visitor: Reader, outside: Outside, db: sqlite3.Connection, do: str
) -> None:
    follow(ann)
    follow(ann, "/two/")
    said(ann, "why?")
    said(visitor, "because", nickname="Bob", parent_id=1)
    app.deliver()
    (text,) = texts(outside, ANN)
    links = {words_of(link)["do"]: link for link in links_in(text)}
    visitor.press(links[do])
    assert followers(db) == ({(ANN, "/two")} if do == "stop" else set())
