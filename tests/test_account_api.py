"""What readers have of their own: the account, the pages they follow, what they report, all that
is kept of them; and that nothing of it is left when they go."""

import hashlib
import re
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import test_notifications as mail
from commentd import Config, make_app
from support import inside
from support.admin import moderate
from support.client import CANARY, PAGE, Visitor
from support.comments import SHOWN
from support.database import assert_whole
from support.mail import NEWS_HEADERS, UNSUBSCRIBE
from support.world import Outside
from test_notifications import (
    ANN,
    BILINGUAL,
    BLOG,
    DAY,
    EMAIL_TEXTS,
    HOUR,
    LU,
    MINUTE,
    OWNER,
    SERVICE,
    TO_NOBODY,
    USUAL,
    Here,
    PlainReader,
    Reader,
    claim,
    link_to,
    links_in,
    path_of,
    signed_in,
    words_of,
)

visitor, here, owner, ann, named = mail.visitor, mail.here, mail.owner, mail.ann, mail.named

BEA, CO_OWNER = "bea@example.com", mail.CO_OWNER
NEW = "another passphrase"
GONE = {"error": "评论不存在", "code": "comment_gone"}
NO_NAME = {"nickname": "", "website": "", "ip": "", "location": "", "country": "", "role": ""}
AT = "2026-11-18 19:06:40"
LIMITS = pytest.mark.parametrize("settings", [{**USUAL, "limits_enabled": True}])
ENDS = pytest.mark.parametrize("comments", ["keep", "delete"])
COMMENT = {"page_url": PAGE, "nickname": "Ann", "content": "hi", "captcha_token": "x"}


@pytest.fixture
def settings() -> dict[str, Any]:
    """The owner has no emails but where a test says so."""
    return TO_NOBODY


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
    return reader.post_json(f"/comments/{number}/report", {"reason": reason}, status=status).json


def export(reader: Visitor) -> Any:
    return reader.get("/me/export").json


def followers(here: Here) -> set[tuple[str, str]]:
    """Who follows which page."""
    joined = "follow JOIN account ON account.id = user_id JOIN page ON page.id = page_id"
    return {*here.sql(f"SELECT email, key FROM {joined}")}


def reported(owner: Reader) -> Any:
    return owner.get("/admin/comments", {"status": "reported"}).json


# What an account is told of itself


def test_an_account_reads_its_own_data(ann: Reader) -> None:
    shown: dict[str, Any] = {"email": ANN, "nickname": "Ann", "role": "user", "language": ""}
    shown |= {"created_at": AT, "comments": 0, "answers": True, "follows": [], "has_password": True}
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
    spelled = f"{BLOG}{PAGE}index.html?utm_source=x#top"
    assert me(ann, url=spelled)["following"]
    follow(ann, spelled, undo=True)
    assert not me(ann, url=PAGE)["following"]


def test_an_account_reads_nothing_of_another_account(here: Here, ann: Reader) -> None:
    bea = here.newcomer(BEA, "Bea")
    bea.said()
    follow(bea)
    bea.post_json("/comment/like", {"id": 1})
    report(bea, 1, "mine")
    mine, everything = me(ann, url=PAGE), export(ann)
    assert (mine["comments"], mine["follows"], mine["following"]) == (0, [], False)
    assert everything.pop("account")["email"] == ANN
    kept = ("comments", "follows", "muted", "likes", "page_likes", "reports")
    assert everything.pop("sign_ins") == [AT]
    assert everything == {name: [] for name in kept}


# The nickname and the password


def test_a_new_nickname_holds_for_what_is_written_from_now_on(here: Here, ann: Reader) -> None:
    body = {"page_url": PAGE, "captcha_token": "x"}
    ann.post_json("/comments", {**body, "content": "before"})
    assert change(ann, nickname="  Annette ") == {"success": True, "nickname": "Annette"}
    # Of two wishes of one moment both are kept.
    inside.just_before_it_writes(here.served, lambda: change(ann, nickname="Anna"))
    change(ann, answers=False)
    ann.post_json("/comments", {**body, "content": "after"})
    names = {c["content"]: c["nickname"] for c in ann.listing()["comments"]}
    assert names == {"before": "Ann", "after": "Anna"}
    assert me(ann)["nickname"] == ann.login()["nickname"] == "Anna"
    assert me(ann)["answers"] is False


def test_no_account_takes_a_nickname_like_the_owners(
    here: Here, owner: Reader, ann: Reader
) -> None:
    for nickname in ("Owner", "OWNER", "0wner", "Оwner", "o w n e r"):
        for more in ({}, {"new_password": NEW, "password": CANARY, "answers": False}):
            assert change(ann, 409, nickname=nickname, **more)["code"] == "nickname_taken"
    assert (me(ann)["nickname"], me(ann)["answers"]) == ("Ann", True)
    ann.login()
    blog = signed_in(here.served, OWNER)  # the owner may look like the owner
    for nickname in ("The Owner", "Owner"):
        assert change(blog, nickname=nickname)["nickname"] == nickname


BAD_CHANGES: dict[str, list[dict[str, Any]]] = {
    "nickname_invalid": [{"nickname": bad} for bad in (5, " ", "a\u202eb", "\u202e", "x" * 65)],
    "answers_invalid": [{"answers": bad} for bad in (1, "yes", None)],
    "new_password_missing": [{"new_password": bad, "password": CANARY} for bad in ("", None)],
    "new_password_too_long": [{"new_password": "é" * 1025, "password": CANARY}],
    "password_missing": [{"new_password": NEW}, {"new_password": NEW, "password": ""}],
}


def test_a_malformed_change_of_an_account_is_refused_and_changes_nothing(ann: Reader) -> None:
    for code, bodies in BAD_CHANGES.items():
        for fields in bodies:
            refused = change(ann, 400, **{"nickname": "Annette", **fields})
            assert refused["code"] == code, fields
    ann.login()


def test_no_other_field_of_an_account_can_be_changed(here: Here, ann: Reader) -> None:
    before = here.sql("SELECT * FROM account")
    wishes: dict[str, Any] = {"role": "admin", "id": 9, "email": "eve@example.com"}
    wishes |= {"blocked": 0, "version": 0, "verified": True, "user_id": 9, "created_at": 1}
    assert change(ann, **wishes)["success"]
    assert change(ann, password="wrong", nickname="")["nickname"] == "Ann"
    assert here.sql("SELECT * FROM account") == before


def test_a_new_password_ends_all_older_logins_but_this(here: Here, owner: Reader) -> None:
    ann = here.newcomer(ANN, "Ann")
    phone = signed_in(here.served, ANN)
    old, new = (hashlib.sha256(word.encode()).hexdigest() for word in (CANARY, NEW))
    fresh = change(ann, new_password=new.upper(), password=old, nickname="Annette")
    assert fresh.keys() == {"success", "nickname", "token"}
    for reader in (ann, phone):
        assert me(reader, 401)["code"] == "token_invalid"
    ann.authorization = ("Bearer", fresh["token"])
    assert me(ann)["nickname"] == "Annette"
    assert here.login(ANN, 401)["code"] == "wrong_credentials"
    assert here.login(ANN, password=NEW)["nickname"] == "Annette"
    here.deliver()
    (message,) = here.arrived()
    assert message["To"] == ANN
    assert message["Subject"] == "blog.example：密码已修改 / password changed"
    assert leave(ann, password=new) == {"success": True}
    # So it is on the admin page.
    change(signed_in(here.served, OWNER), new_password=NEW, password=CANARY)
    owner.get("/admin/comments", status=401)
    body = {"email": OWNER, "password": NEW, "captcha_token": "x"}
    assert here.post_json("/admin/login", body).json["nickname"] == "Owner"


@pytest.mark.slow
def test_emails_about_an_account_are_in_its_readers_language(here: Here) -> None:
    chosen: list[tuple[Any, Any]] = [(None, ""), ("xx", ""), ("zh-CN", "zh"), ("pt-BR", "pt")]
    for number, (lang, language) in enumerate(chosen + [(each, each) for each in EMAIL_TEXTS]):
        words = EMAIL_TEXTS[language] if language else BILINGUAL
        here.register(ANN, lang=lang)
        here.deliver()
        here.verify(here.outside.code(), ANN)
        ann = signed_in(here.served, ANN)
        assert export(ann)["account"]["language"] == language
        change(ann, new_password=NEW, password=CANARY)
        here.deliver()
        subjects = [message["Subject"] for message in here.arrived(ANN)]
        values = {"site": "blog.example", "code": here.outside.code(0)}
        values["warning"] = words["code_warning"] if number else ""
        kinds = ["code", "changed", "changed"] if number else ["code", "changed"]
        expected = [words[f"{kind}_subject"].format(**values) for kind in kinds]
        assert subjects == [" ".join(subject.split()) for subject in expected], lang
        assert here.texts(ANN) == [words[f"{kind}_text"].format(**values) for kind in kinds]
        here.forget()


def test_a_wrong_password_allows_no_grave_change_of_an_account(here: Here, ann: Reader) -> None:
    for wrong in ("wrong", CANARY + " ", CANARY.lower(), "x" * 64):
        for refused in (
            change(ann, 403, new_password=NEW, password=wrong, nickname="Eve"),
            leave(ann, "delete", 403, password=wrong),
        ):
            assert refused["code"] == "wrong_password", wrong
    assert leave(ann, "delete", 400, password="")["code"] == "password_missing"
    no_choice: list[Any] = ["", None, "all", "Keep", 1, True, ["keep"], {}]
    for comments in no_choice:
        refused = leave(ann, comments, 400)
        assert refused["code"] in ("comments_missing", "comments_invalid", "comments_too_long")
    assert me(ann)["nickname"] == "Ann"
    ann.login()
    here.deliver()
    assert here.arrived() == []


@LIMITS
def test_a_stolen_token_does_not_help_to_guess_the_password(here: Here, ann: Reader) -> None:
    guesses = [{"new_password": NEW, "password": f"guess {number}"} for number in range(7)]
    replies = [ann.patch_json("/me", guess, expect_errors=True) for guess in guesses]
    codes = [reply.json["code"] for reply in replies]
    assert codes == ["wrong_password"] * 5 + ["too_many"] * 2
    reply = ann.delete_json("/me", {"password": CANARY, "comments": "keep"}, status=429)
    assert int(reply.headers["Retry-After"]) > 0
    here.outside.time += 10 * MINUTE
    assert leave(ann)["success"]


# Emails about replies, and following a page


def test_emails_about_replies_can_be_switched_off_and_on(here: Here, ann: Reader) -> None:
    first = ann.said()
    for answers, emails in ((False, 0), (False, 0), (True, 1)):
        assert change(ann, answers=answers)["success"]
        assert me(ann)["answers"] is answers
        here.forget()
        here.said(f"{here.outside.time}", parent_id=first)
        here.later()
        assert len(here.arrived(ANN)) == emails
    # What a link in an email ends is seen in the account.
    follow(ann)
    (text,) = here.texts(ANN)
    here.press(link_to("stop", text))
    assert me(ann)["answers"]  # it ends emails about this page alone
    here.press(link_to("stop_all", text))
    assert not me(ann)["answers"]
    assert followers(here) == set()


def test_a_follower_gets_an_email_about_new_comments(here: Here, ann: Reader) -> None:
    here.said("from before")
    here.deliver()
    for _ in range(2):
        assert follow(ann) == {"success": True, "following": True}
    here.said("Hello\n\nthere", nickname="Bob")
    here.said("elsewhere", page_url="/other/")
    ann.said("mine", nickname="Ann")
    here.deliver()
    ((message,), (text,)) = here.arrived(), here.texts(ANN)
    (stop,) = links_in(text)
    assert text == (
        "“Bob” wrote on a page that you follow at blog.example:\n\n> Hello\n> \n> there\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-2\n\nNo more emails about this page: {stop}\n"
    )
    assert message["Subject"] == f"blog.example: new comment on {PAGE}"
    assert sorted(message.keys()) == sorted([*NEWS_HEADERS, *UNSUBSCRIBE])
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert words_of(stop)["do"] == "unfollow"
    assert ANN not in stop
    assert follow(ann, undo=True) == {"success": True, "following": False}
    here.said("unheard")
    follow(ann)
    here.said("unheard as well")
    here.deliver()  # too soon after the last email
    for page_url in (PAGE, "/unknown/"):
        assert follow(ann, page_url, undo=True) == {"success": True, "following": False}
    here.later(HOUR)
    assert len(here.arrived()) == 1


def test_a_followers_emails_and_links_are_in_the_language_chosen(here: Here, ann: Reader) -> None:
    change(ann, nickname="小安")
    cases = [("de", "de"), ("en", "en"), ("xx", "zh"), (None, "zh")]  # the nickname is Chinese
    for number, (chosen, lang) in enumerate(cases):
        page_url, texts = f"/{number}/", EMAIL_TEXTS[lang]
        follow(ann, page_url, lang="ja")
        follow(ann, page_url, lang=chosen)  # the last choice counts
        here.said("Bonjour", lang="fr", page_url=page_url)
        here.later(HOUR)
        (link,) = links_in(here.texts(ANN)[-1])
        shown, done = here.open(link), here.press(link)
        assert (shown.lang, shown.title) == (lang, texts["page_unfollow"]), chosen
        assert (done.lang, done.title) == (lang, texts["done_unfollow"])
    assert here.arrived(ANN)[-1]["Subject"] == "blog.example：/3/ 有新评论"
    for page_url, lang in {"/0/": "de", "/1/": "en"}.items():
        follow(ann, page_url, lang=lang)
        here.said("Encore", page_url=page_url)
    here.later(HOUR)
    links = links_in(here.texts(ANN)[-1])
    assert [here.open(link).lang for link in links] == ["de", "de"]  # one email is in one language


def test_followers_get_one_email_and_none_if_blocked(
    here: Here, owner: Reader, ann: Reader
) -> None:
    follow(ann)
    first = ann.said("mine")
    here.said("a reply", parent_id=first)
    here.later()
    (message,) = here.arrived()
    assert message["Subject"] == "blog.example: new reply to your comment"
    change(ann, answers=False)  # then it is one new comment of the page
    here.forget()
    here.said("another reply", parent_id=first)
    here.later()
    assert here.told() == [["another reply"]]
    assert "follow" in here.texts()[0]
    (user,) = [u["id"] for u in owner.get("/admin/users").json["users"] if u["email"] == ANN]
    owner.patch_json(f"/admin/users/{user}", {"blocked": True})
    here.said("unheard")
    here.later(HOUR)
    assert len(here.arrived()) == 1


def test_news_of_many_pages_are_one_email_with_a_way_to_end_each(here: Here, ann: Reader) -> None:
    for number in range(22):
        follow(ann, f"/{number // 11}/")
        here.said(f"number {number}", page_url=f"/{number // 11}/")
    here.deliver()
    ((message,), (text,)) = here.arrived(), here.texts()
    assert message["Subject"] == "blog.example: 22 new comments"
    assert here.told() == [[f"number {number}" for number in range(20)]]
    assert "And 2 more.\n" in text
    (_, second) = links_in(text)
    here.press(second)
    assert followers(here) == {(ANN, "/0")}
    here.press(message["List-Unsubscribe"].strip("<>"))
    assert followers(here) == set()


@pytest.mark.parametrize("settings", [mail.NAMED, {**USUAL, "notify_pages": ("* = nobody",)}])
def test_the_owner_who_follows_has_one_email(
    here: Here, owner: Reader, settings: dict[str, Any]
) -> None:
    follow(signed_in(here.served, OWNER))
    here.said()
    here.deliver()
    assert here.told(OWNER) == [["hi"]]
    can_moderate = "spam" in {words_of(link)["do"] for link in links_in(here.texts()[0])}
    assert can_moderate == ("notify_owner" in settings)


def test_a_follower_who_confirmed_as_a_guest_has_one_email(here: Here, ann: Reader) -> None:
    follow(ann)
    mine = here.said("mine", email=ANN)
    here.said("before", parent_id=mine)
    here.later(HOUR)
    here.press(link_to("confirm", "".join(here.texts(ANN))))
    here.later(HOUR)
    here.forget()
    here.said("after", parent_id=mine)
    here.later(HOUR, 2)
    assert here.told(ANN) == [["after", "mine"]]


@pytest.mark.parametrize("how", ["spam", "deleted by its author"])
def test_a_comment_hidden_before_its_email_leaves_the_others_in_it(
    here: Here, ann: Reader, owner: Reader, how: str
) -> None:
    follow(ann)
    made = here.say("to be hidden", lang="en")
    here.said("to be told")
    here.fail_mail()
    here.deliver()
    if how == "spam":
        moderate(owner, [1], "spam")
    else:
        here.delete_json("/comments/1", {"edit_token": made["edit_token"]})
    here.fail_mail(False)
    here.later(times=3)
    assert here.told(ANN) == [["to be told"]]


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "moderation_hold": "all"}])
def test_followers_get_what_waited_once_approved(here: Here, owner: Reader, ann: Reader) -> None:
    follow(ann)
    for content in ("good", "bad", "gone", "kept waiting"):
        here.said(content)
    here.deliver()
    assert here.arrived() == []
    for number, status in enumerate(("visible", "spam", "deleted"), 1):
        moderate(owner, [number], status)
    here.later()
    assert here.told() == [["good"]]


# A link that ends it


@pytest.fixture
def link(here: Here, ann: Reader) -> str:
    """In an email to Ann, who follows two pages, as Bea does: to end those about one."""
    bea = here.newcomer(BEA, "Bea")
    for reader, page in product((ann, bea), (PAGE, "/two/")):
        follow(reader, page)
    here.said("news")
    here.deliver()
    (text,) = here.texts(ANN)
    here.forget()
    return link_to("unfollow", text)


TWO = {(who, page) for who in (ANN, BEA) for page in (PAGE[:-1], "/two")}
ONE_ENDED = TWO - {(ANN, PAGE[:-1])}


def test_a_link_asks_before_it_ends_emails_about_a_page(here: Here, link: str) -> None:
    for _ in range(2):
        question = ("Stop following this page?", "", "", "Stop following")
        assert here.open(link).told == question
        here.head(path_of(link))
    assert followers(here) == TWO
    for _ in range(2):
        done = here.press(link)
        title = "You won’t get any more emails about new comments on this page."
        assert done.told == (title, "", "", "Undo")
    assert followers(here) == ONE_ENDED
    assert here.open(done.action).told[::3] == ("Follow this page again?", "Yes, please")
    again = here.press(done.action)
    assert again.title == "You’ll get emails about new comments on this page."
    assert followers(here) == TWO
    one_click = {"List-Unsubscribe": "One-Click"}
    ended = here.press(link, headers={"Origin": "https://mail.example"}, params=one_click)
    assert ended.told == done.told
    assert followers(here) == ONE_ENDED
    for gone in ("comment", "follow WHERE page_id = 1", "page WHERE id = 1"):
        here.sql(f"DELETE FROM {gone}")
    here.press(ended.action)  # nobody follows a page that is gone
    assert followers(here) == {(who, "/two") for who in (ANN, BEA)}


def test_a_link_works_once_its_page_moved_or_merged(here: Here, owner: Reader, link: str) -> None:
    here.said(page_url="/moved/")
    (page,) = [p["id"] for p in owner.get("/admin/pages").json["pages"] if p["page_url"] == PAGE]
    owner.patch_json(f"/admin/pages/{page}", {"page_url": "/moved/", "merge": True})
    assert followers(here) == {(who, page) for who in (ANN, BEA) for page in ("/moved", "/two")}
    here.press(link)
    assert followers(here) == {(ANN, "/two"), (BEA, "/moved"), (BEA, "/two")}


def test_an_unfollow_link_is_for_its_page_and_person(here: Here, ann: Reader, link: str) -> None:
    for old, new in (("do=unfollow", "do=follow"), ("user=1", "user=2"), ("lang=en", "lang=de")):
        assert old in link
        here.press(link.replace(old, new), 403)
    here.press(re.sub(r"&?user=1", "", link), 403)
    assert followers(here) == TWO
    # It brings nothing back of an account that is gone, nor is it for another reader who has its
    # number since a backup was restored.
    undo = here.press(link).action
    leave(ann)
    here.press(undo)
    here.newcomer(LU, "Lu")
    here.sql("DELETE FROM known_network")
    here.sql("UPDATE account SET id = 1 WHERE email = ?", LU)
    here.press(undo)
    assert {who for who, _ in followers(here)} == {BEA}


# Reports


def test_a_report_is_seen_by_the_owner_alone(visitor: Reader, owner: Reader, ann: Reader) -> None:
    ann.said("well")
    ann.said("ill")
    before = visitor.listing(), visitor.listing(view="threads")
    for again in ("", "once more "):  # each visitor is heard once
        assert report(visitor, 2, f"  {again}Ugly\n\tand\u2028loud ") == {"success": True}
        assert report(ann, 2, again) == {"success": True}
    after = visitor.listing(), visitor.listing(view="threads")
    for old, new in zip(before, after, strict=True):
        assert {**old, "views": 0} == {**new, "views": 0}
    found = reported(owner)
    (case,) = found["comments"]
    reasons = sorted((each["reason"], each["reported_at"]) for each in case["reports"])
    assert reasons == [("", AT), ("Ugly and loud", AT)]
    assert (case["id"], case["status"], found["counts"]["reported"]) == (2, "visible", 1)
    every = owner.get("/admin/comments").json
    assert [len(c["reports"]) for c in every["comments"]] == [2, 0]
    assert every["counts"]["visible"] == 2
    ann.delete_json("/comments/2", {})
    assert (reported(owner)["comments"], reported(owner)["counts"]["reported"]) == ([], 0)


def test_only_what_readers_see_can_be_reported_and_for_a_short_reason(here: Here) -> None:
    here.said()
    assert report(here, 1, "x" * 501, 400)["code"] == "reason_too_long"
    no_text: list[Any] = [5, ["a"], {}, True, "a\0b"]
    for reason in no_text:
        assert report(here, 1, reason, 400)["code"] == "reason_invalid", reason
    for status in ("waiting", "spam", "deleted"):
        inside.set_status(here.served, 1, status)
        assert report(here, 1, status=404) == GONE, status
    assert report(here, 2, status=404) == GONE
    assert report(here, here.said("again"), "字" * 500)["success"]


@LIMITS
def test_a_client_reports_five_an_hour_and_twenty_a_day(here: Here) -> None:
    ids: list[int] = []
    for number in range(31):
        here.outside.time += MINUTE
        ids.append(Reader(here.served, f"203.0.113.{number}").said(str(number)))
    done = []
    for _ in range(6):
        statuses = [0]
        while statuses[-1] != 429:
            reply = here.post_json(f"/comments/{ids.pop(0)}/report", {}, expect_errors=True)
            statuses.append(reply.status_int)
        done.append(statuses.count(200))
        here.outside.time += HOUR
    assert done == [5, 5, 5, 5, 0, 0]
    report(Reader(here.served, "203.0.113.200"))


@named
def test_moderation_ends_the_reports_of_a_comment(here: Here, owner: Reader) -> None:
    for number in (1, 2, 3):
        here.said(str(number))
        report(here, number, "ugly")
    blog = signed_in(here.served, OWNER)
    blog.post_json("/comments/1/moderate", {"status": "visible"})
    moderate(owner, [2], "spam")
    assert [c["id"] for c in reported(owner)["comments"]] == [3]
    here.later()
    links = links_in(here.texts(OWNER)[-1])
    here.press(next(link for link in links if words_of(link)["do"] == "visible"))
    assert (reported(owner)["comments"], reported(owner)["counts"]["reported"]) == ([], 0)
    assert here.listing()["total"] == 2
    log = owner.get("/admin/audit").json["audit"]
    assert [entry["action"] for entry in log].count("keep") == 2
    report(here, 1, "still ugly")  # it may be said again
    here.later()
    assert "Reported by readers (1):\n> still ugly\n" in here.texts(OWNER)[-1]


@named
def test_the_owner_is_told_of_a_report_with_the_reasons(here: Here, ann: Reader) -> None:
    follow(ann)
    here.said("ugly")
    here.deliver()
    here.later()
    report(here, 1, "It is\nugly")
    here.outside.time += 1
    report(ann)
    here.deliver()
    (first, second), text = here.arrived(OWNER), here.texts(OWNER)[1]
    links = {words_of(link)["do"]: link for link in links_in(text)}
    assert text == (
        f"The comment on “{PAGE}” by “Ann” was reported:\n\n> ugly\n\n"
        "Reported by readers (2):\n> It is ugly\n> no reason given\n\n"
        f"Keep:   {links['visible']}\nSpam:   {links['spam']}\nDelete: {links['deleted']}\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n\nAll comments: {SERVICE}/admin\n"
    )
    assert second["Subject"] == f"blog.example: a comment on {PAGE} was reported"
    # Another email of the same thread: none that a mail program takes for the first.
    assert second["Message-ID"] != first["Message-ID"]
    assert second["References"] == first["References"]
    assert len(here.arrived(ANN)) == 1  # readers are told nothing of it


@named
def test_an_email_with_a_report_calls_no_old_comment_new(here: Here) -> None:
    here.said("ugly")
    here.deliver()
    here.later()
    report(here)
    here.said("a good one")
    here.later(HOUR)
    message = here.arrived(OWNER)[-1]
    assert here.told(OWNER)[-1] == ["ugly", "no reason given", "a good one"]
    assert message["Subject"] == "blog.example: 2 comments to review"


@named
def test_the_link_to_keep_a_reported_comment_has_its_own_page_and_no_undo(here: Here) -> None:
    here.said("ugly")
    here.deliver()
    here.later()
    report(here)
    here.deliver()
    links = {words_of(link)["do"]: link for link in links_in(here.texts(OWNER)[-1])}
    page = here.open(links["visible"])
    assert (page.title, page.button) == ("Keep this comment?", "Keep")
    for done in (here.press(links["visible"]), here.open(links["visible"])):
        assert (done.title, done.button) == ("Kept: everybody can still read it.", "")


@pytest.mark.parametrize("settings", [{**USUAL, "privacy_keep_ip_days": days} for days in (0, 30)])
def test_a_report_forgets_who_sent_it(here: Here, settings: dict[str, Any]) -> None:
    here.said()
    report(here, 1, "ugly")
    of_report = "SELECT visitor, comment_id, reason, reported_at FROM report"
    ((whose, *rest),) = here.sql(of_report)
    assert "203.0.113" not in whose
    here.outside.time += max(HOUR, settings["privacy_keep_ip_days"] * DAY)
    here.served.tick()
    assert here.sql(of_report)[0][0] == whose
    here.outside.time += MINUTE
    for _ in range(2):
        here.served.tick()
    ((nobody, *left),) = here.sql(of_report)
    assert nobody.startswith("past ")
    assert left == rest


# What was written before there was an account


def test_a_new_account_gets_the_guest_comments_with_its_email_address(here: Here) -> None:
    here.said("mine", email="Ann@Example.COM")
    here.said("another's", nickname="Lu", email=LU)
    here.said("nobody's", nickname="Bob")
    here.said("Buy pills", nickname="Eve", email=ANN)
    here.said("waits", nickname="Bob", email=ANN)
    inside.set_status(here.served, 5, "waiting")
    here.register(ANN, nickname="Annette")
    here.deliver()
    owners = "SELECT user_id, email FROM comment ORDER BY id"
    before = [(None, ANN), (None, LU), (None, ""), (None, ANN), (None, ANN)]
    assert here.sql(owners) == before
    here.verify("000000", ANN, 400)
    assert here.sql(owners) == before
    here.verify(here.outside.code(), ANN)
    assert here.sql(owners) == [(1, ANN), (None, LU), (None, ""), (1, ANN), (1, ANN)]
    ann = signed_in(here.served, ANN)
    assert me(ann)["comments"] == 3
    (mine,) = [c for c in ann.listing()["comments"] if c["id"] == 1]
    shown = {"content": "mine", "html": "<p>mine</p>\n", "user_id": 1, "role": "user"}
    assert mine == {**SHOWN, **shown}
    given_out = [(c["nickname"], c["content"]) for c in export(ann)["comments"]]
    assert given_out == [("Ann", "mine"), ("Eve", "Buy pills"), ("Bob", "waits")]
    here.later(HOUR)
    here.forget()
    here.said("a reply", parent_id=1)  # which is told without a question
    here.later()
    assert here.told() == [["a reply", "mine"]]
    ann.delete_json("/comments/2", {}, status=404)
    for number in (1, 4):
        ann.delete_json(f"/comments/{number}", {})


def test_guest_comments_with_the_email_address_of_an_account_do_not_become_its_own(
    here: Here, ann: Reader
) -> None:
    here.said("Buy pills", email=ANN)
    ann.login()
    assert me(ann)["comments"] == 0
    again = here.newcomer(ANN, "Ann")
    assert me(again)["comments"] == 0
    change(again, new_password=NEW, password=CANARY)
    assert here.listing()["comments"][0]["user_id"] is None


def test_no_comment_of_a_stranger_becomes_an_admins(here: Here, owner: Reader) -> None:
    ways = ("role", "link", "owner")
    emails = {way: f"{way}@example.com" for way in ways} | {"owner": OWNER}
    for way in ways:
        here.said(f"pills by {way}", nickname="Boss", email=emails[way])
    for way in ways[:2]:  # first they are readers, who have what was written under their address
        reader = here.newcomer(emails[way], f"Bea by {way}")
        reader.said(f"mine by {way}", nickname=f"Bea by {way}")
        assert me(reader)["comments"] == 2
    users = {u["email"]: u["id"] for u in owner.get("/admin/users").json["users"]}
    wish = {"role": "admin", "password": CANARY}
    owner.patch_json(f"/admin/users/{users['role@example.com']}", wish)
    claim(here.served, "link@example.com", "")
    assert me(here.newcomer(OWNER, "Owner"))["role"] == "admin"
    listed = here.listing()["comments"]
    assert {c["content"]: (c["user_id"], c["role"]) for c in listed} == {
        **{f"mine by {way}": (users[emails[way]], "admin") for way in ways[:2]},
        **{f"pills by {way}": (None, "") for way in ways},
    }


# To go


@pytest.fixture
def lived(here: Here, ann: Reader) -> Reader:
    """Ann, who has written, liked, followed and reported."""
    ann.said("a root of Ann", website="https://ann.example")  # 1
    here.said("a reply of Bob", nickname="Bob", parent_id=1)  # 2
    ann.said("a leaf of Ann", parent_id=2)  # 3
    ann.said("on another page", page_url="/two/")  # 4
    ann.said("it waits")  # 5
    inside.set_status(here.served, 5, "waiting")
    for number in (1, 2):
        ann.post_json("/comment/like", {"id": number})
    ann.post_json("/page/like", {"page_url": PAGE})
    here.post_json("/comment/like", {"id": 1})
    follow(ann)
    report(ann, 2, "rude")
    here.deliver()
    return ann


def test_the_export_of_an_account_has_all_that_is_kept_of_it(
    here: Here, lived: Reader, owner: Reader
) -> None:
    here.post_json("/comment/like", {"id": 3})
    lived.delete_json(f"/comments/{lived.said('mine to delete')}", {})
    everything = export(lived)
    kept = {"sign_ins", "comments", "follows", "muted", "likes", "page_likes", "reports"}
    assert everything.keys() == {"account", *kept}
    names = ("email", "nickname", "role", "language", "created_at", "has_password", "answers")
    assert everything["account"] == {name: me(lived)[name] for name in names}
    contents = ["a root of Ann", "a leaf of Ann", "on another page", "it waits"]
    assert [c["content"] for c in everything["comments"]] == contents
    assert me(lived)["comments"] == 4
    assert [c["status"] for c in everything["comments"]] == ["visible"] * 3 + ["waiting"]
    expected = {**SHOWN, "user_id": 1, "role": "user", "likes": 2, "status": "visible"}
    expected |= {"content": "a root of Ann", "html": "<p>a root of Ann</p>\n"}
    assert everything["comments"][0] == expected | {"website": "https://ann.example"}
    page = [{"page_url": PAGE, "page_link": BLOG + PAGE}]
    assert (everything["follows"], everything["muted"]) == (page, [])
    assert sorted(like["id"] for like in everything["likes"]) == [1, 2]
    assert everything["page_likes"] == [{"page_url": PAGE}]
    assert everything["reports"] == [{"id": 2, "reason": "rude", "reported_at": AT}]
    stopped = here.press(link_to("stop", here.texts(ANN)[-1]))
    assert (export(lived)["follows"], export(lived)["muted"]) == ([], page)
    here.press(stopped.action)
    assert export(lived)["muted"] == []
    moderate(owner, [3], "spam")  # what moderators think is not given out
    statuses = [c["status"] for c in export(lived)["comments"]]
    assert statuses == ["visible", "waiting", "visible", "waiting"]


def test_a_deleted_account_that_leaves_its_comments_leaves_no_name_on_them(
    here: Here, lived: Reader
) -> None:
    before = here.listing(view="threads", sort="oldest")
    assert leave(lived, "keep") == {"success": True}
    after = here.listing(view="threads", sort="oldest")
    assert after["total"] == before["total"] == 3
    (root,), (then,) = after["comments"], before["comments"]
    gone = {**NO_NAME, "user_id": None}
    assert root["replies"] == [then["replies"][0], {**then["replies"][1], **gone}]
    assert {**root, "replies": []} == {**then, **gone, "replies": []}
    assert (root["likes"], after["page_likes"]) == (2, 1)


def test_a_deleted_account_that_takes_its_comments_leaves_tombstones(
    here: Here, lived: Reader, owner: Reader
) -> None:
    moderate(owner, [5], "visible")
    assert here.sql("SELECT * FROM term") != []
    assert leave(lived, "delete") == {"success": True}
    listed = here.listing(view="threads")
    (root,) = listed["comments"]
    assert (listed["total"], root["deleted"], root["content"], root["likes"]) == (1, True, "", 0)
    assert [c["content"] for c in root["replies"]] == ["a reply of Bob"]
    assert here.listing(url="/two/")["total"] == 0
    assert listed["page_likes"] == 1
    assert [c["id"] for c in owner.get("/admin/comments").json["comments"]] == [2]
    assert {*here.sql("SELECT content FROM comment")} == {("",), ("a reply of Bob",)}
    assert here.sql("SELECT * FROM term") == []


@ENDS
def test_a_deleted_account_leaves_no_row_no_token_and_no_way_back(
    here: Here, lived: Reader, comments: str
) -> None:
    here.said("as a guest", email=ANN)
    phone, stranger = signed_in(here.served, ANN), Reader(here.served)
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
    for table in ("account", "follow", "known_network", "registration", "subscription"):
        assert here.sql(f"SELECT * FROM {table}") == []
    likers = here.sql("SELECT visitor FROM comment_liker UNION ALL SELECT visitor FROM page_liker")
    assert [who for (who,) in likers if who.startswith("user ")] == []
    assert here.sql("SELECT substr(visitor, 1, 5), reason FROM report") == [("past ", "")]
    # An address that a guest gave goes with the account that has it.
    assert {*here.sql("SELECT email FROM comment")} == {("",)}
    assert here.listing()["comments"][0]["content"] == "as a guest"
    here.deliver()
    here.forget()
    here.said("news", parent_id=2)
    here.later()
    assert here.arrived(ANN) == []
    # Who comes back is another.
    back = here.newcomer(ANN, "Ann")
    me(lived, 401)
    fresh = me(back)
    assert (fresh["comments"], fresh["follows"], fresh["answers"]) == (0, [], True)
    assert all(
        not rows for name, rows in export(back).items() if name not in ("account", "sign_ins")
    )
    back.delete_json("/comments/1", {}, status=404)
    if comments == "keep":  # the likes of before are nobody's now
        assert back.post_json("/comment/like", {"id": 1}).json["likes"] == 3


def test_the_last_admin_can_not_delete_the_account(here: Here, owner: Reader) -> None:
    first = signed_in(here.served, OWNER)
    assert leave(first, status=409)["code"] == "last_admin"
    assert leave(first, status=403, password="wrong")["code"] == "wrong_password"
    claim(here.served, CO_OWNER, "Co")
    assert leave(first)["success"]
    owner.get("/admin/comments", status=401)
    other = signed_in(here.served, CO_OWNER)
    assert leave(other, status=409)["code"] == "last_admin"
    # Of two who go at one time one stays.
    claim(here.served, OWNER, "Owner")
    first = PlainReader(here.served)
    first.authorization = signed_in(here.served, OWNER).authorization
    inside.just_before_it_writes(here.served, lambda: leave(other))
    assert leave(first, status=409)["code"] == "last_admin"
    assert me(first)["role"] == "admin"


def test_undelivered_emails_are_deleted_with_the_account(here: Here, lived: Reader) -> None:
    here.fail_mail()
    here.said("a reply", parent_id=1)
    here.said("news")
    here.later(HOUR, times=30)
    rows = here.sql("SELECT recipient FROM outbox WHERE due_at IS NULL")
    assert rows == [(ANN,)] * 2
    lived.authorization = ("Bearer", lived.login()["token"])
    leave(lived)
    assert here.sql("SELECT * FROM outbox") == []


@named
@ENDS
def test_the_outbox_holds_nothing_of_a_deleted_account(
    here: Here, ann: Reader, comments: str
) -> None:
    bea = here.newcomer(BEA, "Bea")
    follow(bea)
    bea.said("a root", nickname="Bea")
    here.said("one more", nickname="Lu", email=LU)
    here.fail_mail()
    ann.said("what Ann wrote", nickname="Annabella", parent_id=1)
    ann.said("to a guest", nickname="Annabella", parent_id=2)
    here.deliver()
    assert {*here.sql("SELECT recipient FROM outbox")} == {(OWNER,), (BEA,), (LU,)}
    leave(ann, comments)
    here.fail_mail(False)
    here.later(HOUR, times=3)
    assert "Annabella" not in str(here.texts())
    assert ("what Ann wrote" in str(here.texts(OWNER))) == (comments == "keep")
    assert here.told(OWNER)[0][:2] == ["a root", "one more"]  # which was in the same email
    # A guest is asked though who replied to them went; else when somebody else replies.
    assert len(here.arrived(LU)) == (comments == "keep")
    here.said("therefore", parent_id=2)
    here.later()
    assert len(here.arrived(LU)) == 1


WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/comments", {**COMMENT, "content": "too late"}),
    ("POST", "/comment/like", {"id": 1}),
    ("POST", "/comments/1/report", {}),
    *[("POST", f"/page/{word}", {"page_url": PAGE}) for word in ("like", "follow")],
    ("PATCH", "/me", {"nickname": "Late", "answers": False}),
    ("PATCH", "/me", {"new_password": NEW, "password": CANARY}),
    ("PATCH", "/comments/{}", {"content": "too late"}),
    ("DELETE", "/comments/{}", {}),
    ("DELETE", "/me", {"password": CANARY, "comments": "delete"}),
]


def test_an_account_deleted_while_it_writes_writes_nothing_more(here: Here) -> None:
    # The request was let in, and waits for its turn to write while the account goes.
    here.said("of a guest")
    for number, (method, path, body) in enumerate(WRITES):
        reader = here.newcomer(f"n{number}@example.com", f"Bea {number}")
        path = path.format(reader.said(f"mine {number}"))
        late, after = PlainReader(here.served), dict[str, Any]()
        late.authorization = reader.authorization

        def go(reader: Reader = reader, after: dict[str, Any] = after) -> None:
            leave(reader)
            after |= here.rows()

        inside.just_before_it_writes(here.served, go)
        send = getattr(late, f"{method.lower()}_json")
        assert send(path, body, expect_errors=True).status_int in (401, 403, 404), (method, path)
        assert here.rows() == after, (method, path)


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


@pytest.mark.parametrize("stop", [False, True], ids=["running", "stopped"])
@ENDS
def test_a_minute_after_an_account_was_deleted_no_byte_of_it_is_left(
    config: Config, outside: Outside, comments: str, stop: bool
) -> None:
    # Nor as soon as the service has stopped.
    path, email = Path(config.database_path), f"{SECRETS['address']}@example.com"
    mine = {"nickname": SECRETS["name"], "website": f"https://{SECRETS['website']}.example"}
    with closing(make_app(replace(config, **TO_NOBODY), outside.world, rounds=1)) as app:
        here = Here(app, outside)
        ann = here.newcomer(email, SECRETS["name"])
        ann.said(SECRETS["edited"], **mine)
        ann.patch_json("/comments/1", {"content": SECRETS["root"]})
        here.said("of a guest", parent_id=1)
        ann.said(SECRETS["leaf"], parent_id=2, **mine)
        ann.said(SECRETS["draft"], page_url="/2", **mine)
        follow(ann)
        ann.post_json("/comment/like", {"id": 2})
        here.register(email, nickname=SECRETS["name"], password=NEW)
        here.deliver()
        ((password,),) = here.sql("SELECT password FROM account")
        secrets = SECRETS | {"hash": password.rpartition("$")[2], "visitor": "user 1"}
        assert seen(path, secrets) == secrets.keys()  # so the test knows how to look
        here.later()
        leave(ann, comments)
        if stop:
            app.close()
        for _ in range(0 if stop else 2):
            here.later(MINUTE)
            app.tick()
        assert seen(path, secrets) == (WRITTEN if comments == "keep" else set())
    assert_whole(config.database_path)
