"""What readers have of their own: the account, the pages they follow, what they report, all that
is kept of them; and that nothing of it is left when they go."""

import hashlib
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from commentd import App, Config, load_config, make_app
from support import inside
from support.admin import block, moderate
from support.client import CANARY, PAGE, Visitor
from support.comments import SHOWN
from support.database import assert_whole
from support.emails import Markup
from support.mail import NEWS_HEADERS, UNSUBSCRIBE
from support.notifications import (
    ANN,
    BILINGUAL,
    BLOG,
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
    PlainReader,
    Reader,
    claim,
    link_to,
    links_in,
    named,
    path_of,
    signed_in,
    words_of,
)
from support.notifications import ann as ann  # a fixture
from support.notifications import guest as guest  # a fixture
from support.notifications import owner as owner  # a fixture
from support.notifications import visitor as visitor  # a fixture
from support.world import FakeWorld

BEA = "bea@example.com"
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


def export(reader: Visitor) -> Any:
    return reader.get("/me/export").json


def followers(guest: Guest) -> set[tuple[str, str]]:
    """Who follows which page."""
    joined = "follow JOIN account ON account.id = user_id JOIN page ON page.id = page_id"
    return {*guest.sql(f"SELECT email, key FROM {joined}")}


def reported(owner: Reader) -> Any:
    return owner.get("/admin/comments", {"status": "reported"}).json


# What an account is told of itself


def test_an_account_reads_its_own_data(ann: Reader) -> None:
    shown: dict[str, Any] = {"email": ANN, "nickname": "Ann", "role": "user", "language": ""}
    shown |= {"created_at": AT, "comments": 0, "answers": True, "follows": [], "has_password": True}
    shown["questions"] = True
    assert me(ann) == shown
    assert me(ann, url=PAGE) == {**shown, "following": False}
    follow(ann)
    follow(ann, "https://elsewhere.example/p")
    follows = [
        {"page_url": "https://elsewhere.example/p", "page_title": "", "page_link": ""},
        {"page_url": PAGE, "page_title": "", "page_link": BLOG + PAGE},
    ]
    assert me(ann, url=PAGE) == {**shown, "follows": follows, "following": True}
    assert me(ann, url="/other/")["following"] is False
    spelled = f"{BLOG}{PAGE}index.html?utm_source=x#top"
    assert me(ann, url=spelled)["following"]
    follow(ann, spelled, undo=True)
    assert not me(ann, url=PAGE)["following"]


def test_unfollowing_a_page_that_is_not_known_leaves_the_others(ann: Reader) -> None:
    follow(ann)
    follow(ann, "/unknown/", undo=True)
    assert me(ann, url=PAGE)["following"]


@LIMITS
def test_an_account_is_exported_sixty_times_a_minute(guest: Guest, ann: Reader) -> None:
    for _ in range(60):
        export(ann)
    refused = ann.get("/me/export", status=429)
    assert (refused.json["code"], refused.headers["Retry-After"]) == ("too_many", "60")
    guest.fake_world.time += MINUTE
    export(ann)


def test_an_account_reads_nothing_of_another_account(guest: Guest, ann: Reader) -> None:
    bea = guest.newcomer(BEA, "Bea")
    bea.comment()
    follow(bea)
    bea.post_json("/comment/like", {"id": 1})
    bea.report(1, "mine")
    mine, everything = me(ann, url=PAGE), export(ann)
    assert (mine["comments"], mine["follows"], mine["following"]) == (0, [], False)
    assert everything.pop("account")["email"] == ANN
    kept = {"identities", "comments", "follows", "muted", "likes", "page_likes"}
    kept |= {"reactions", "reports"}
    assert everything.pop("sign_ins") == [AT]
    assert everything.pop("picture") is None
    assert everything == {name: [] for name in kept}


# The nickname and the password


def test_a_new_nickname_holds_for_what_is_written_from_now_on(guest: Guest, ann: Reader) -> None:
    body = {"page_url": PAGE, "captcha_token": "x"}
    ann.post_json("/comments", {**body, "content": "before"})
    assert change(ann, nickname="  Annette ") == {"success": True, "nickname": "Annette"}
    # Of two wishes of one moment both are kept.
    inside.just_before_it_writes(guest.served, lambda: change(ann, nickname="Anna"))
    change(ann, answers=False)
    ann.post_json("/comments", {**body, "content": "after"})
    names = {c["content"]: c["nickname"] for c in ann.listing()["comments"]}
    assert names == {"before": "Ann", "after": "Anna"}
    assert me(ann)["nickname"] == ann.login()["nickname"] == "Anna"
    assert me(ann)["answers"] is False


def test_no_account_takes_a_nickname_like_the_owners(
    guest: Guest, owner: Reader, ann: Reader
) -> None:
    for nickname in ("Owner", "OWNER", "0wner", "Оwner", "o w n e r"):
        for more in ({}, {"new_password": NEW, "password": CANARY, "answers": False}):
            assert change(ann, 409, nickname=nickname, **more)["code"] == "nickname_taken"
    assert (me(ann)["nickname"], me(ann)["answers"]) == ("Ann", True)
    ann.login()
    blog = signed_in(guest.served, OWNER)  # the owner may look like the owner
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


def test_no_other_field_of_an_account_can_be_changed(guest: Guest, ann: Reader) -> None:
    before = guest.sql("SELECT * FROM account")
    wishes: dict[str, Any] = {"role": "admin", "id": 9, "email": "eve@example.com"}
    wishes |= {"blocked": 0, "version": 0, "verified": True, "user_id": 9, "created_at": 1}
    assert change(ann, **wishes)["success"]
    assert change(ann, password="wrong", nickname="")["nickname"] == "Ann"
    assert guest.sql("SELECT * FROM account") == before


def test_a_new_password_ends_all_older_logins_but_this(guest: Guest, owner: Reader) -> None:
    ann = guest.newcomer(ANN, "Ann")
    phone = signed_in(guest.served, ANN)
    old, new = (hashlib.sha256(word.encode()).hexdigest() for word in (CANARY, NEW))
    fresh = change(ann, new_password=new.upper(), password=old, nickname="Annette")
    assert fresh.keys() == {"success", "nickname", "token"}
    for reader in (ann, phone):
        assert me(reader, 401)["code"] == "token_invalid"
    ann.authorization = ("Bearer", fresh["token"])
    assert me(ann)["nickname"] == "Annette"
    assert export(ann)["sign_ins"] == [AT], "this network stays known"
    assert guest.login(ANN, 401)["code"] == "wrong_credentials"
    assert guest.login(ANN, password=NEW)["nickname"] == "Annette"
    guest.deliver()
    (message,) = guest.arrived()
    assert message["To"] == ANN
    assert message["Subject"] == "blog.example：密码已修改 / password changed"
    assert leave(ann, password=new) == {"success": True}
    # So it is on the admin page.
    change(signed_in(guest.served, OWNER), new_password=NEW, password=CANARY)
    owner.get("/admin/comments", status=401)
    body = {"email": OWNER, "password": NEW, "captcha_token": "x"}
    assert guest.post_json("/admin/login", body).json["nickname"] == "Owner"


@pytest.mark.slow
def test_emails_about_an_account_are_in_its_readers_language(guest: Guest) -> None:
    chosen: list[tuple[Any, Any]] = [(None, ""), ("xx", ""), ("zh-CN", "zh"), ("pt-BR", "pt")]
    for number, (lang, language) in enumerate(chosen + [(each, each) for each in EMAIL_TEXTS]):
        words = EMAIL_TEXTS[language] if language else BILINGUAL
        guest.register(ANN, lang=lang)
        guest.deliver()
        guest.verify(guest.fake_world.code(), ANN)
        ann = signed_in(guest.served, ANN)
        assert export(ann)["account"]["language"] == language
        change(ann, new_password=NEW, password=CANARY)
        guest.deliver()
        subjects = [message["Subject"] for message in guest.arrived(ANN)]
        values = {"site": "blog.example", "code": guest.fake_world.code(0)}
        kinds = ["code", "changed", "changed"] if number else ["code", "changed"]
        expected = [words[f"{kind}_subject"].format(**values) for kind in kinds]
        assert subjects == [" ".join(subject.split()) for subject in expected], lang
        parts = ["code_enter", *["code_warning"][:number], "code_end"]
        said = [words["code_text"], f"    {values['code']}", *[words[name] for name in parts]]
        bodies = {"code": "\n\n".join(said), "changed": words["changed_text"]}
        assert guest.texts(ANN) == [f"{bodies[kind].format(**values)}\n" for kind in kinds]
        guest.forget()


def test_a_wrong_password_allows_no_grave_change_of_an_account(guest: Guest, ann: Reader) -> None:
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
    guest.deliver()
    assert guest.arrived() == []


@LIMITS
def test_a_stolen_token_does_not_help_to_guess_the_password(guest: Guest, ann: Reader) -> None:
    guesses = [{"new_password": NEW, "password": f"guess {number}"} for number in range(7)]
    replies = [ann.patch_json("/me", guess, expect_errors=True) for guess in guesses]
    codes = [reply.json["code"] for reply in replies]
    assert codes == ["wrong_password"] * 5 + ["too_many"] * 2
    reply = ann.delete_json("/me", {"password": CANARY, "comments": "keep"}, status=429)
    assert int(reply.headers["Retry-After"]) > 0
    guest.fake_world.time += 10 * MINUTE
    assert leave(ann)["success"]


# Emails about replies, and following a page


def test_emails_about_replies_can_be_switched_off_and_on(guest: Guest, ann: Reader) -> None:
    first = ann.comment()
    for answers, emails in ((False, 0), (False, 0), (True, 1)):
        assert change(ann, answers=answers)["success"]
        assert me(ann)["answers"] is answers
        guest.forget()
        guest.comment(f"{guest.fake_world.time}", parent_id=first)
        guest.later()
        assert len(guest.arrived(ANN)) == emails
    # What a link in an email ends is seen in the account.
    follow(ann)
    (text,) = guest.texts(ANN)
    guest.press(link_to("stop", text))
    assert me(ann)["answers"]  # it ends emails about this page alone
    guest.press(link_to("stop_all", text))
    assert not me(ann)["answers"]
    assert followers(guest) == set()


def test_a_follower_gets_an_email_about_new_comments(guest: Guest, ann: Reader) -> None:
    guest.comment("from before")
    guest.deliver()
    for _ in range(2):
        assert follow(ann) == {"success": True, "following": True}
    guest.comment("Hello\n\nthere", nickname="Bob")
    guest.comment("elsewhere", page_url="/other/")
    ann.comment("mine", nickname="Ann")
    guest.deliver()
    ((message,), (text,)) = guest.arrived(), guest.texts(ANN)
    (stop,) = links_in(text)
    assert text == (
        f"New comment by “Bob” on “{PAGE}”\n\n> Hello\n> \n> there\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-2\n\nYou follow this page at blog.example.\n\n"
        f"No more emails about this page: {stop}\n"
    )
    assert message["Subject"] == f"New comment by “Bob” on “{PAGE}”"
    assert sorted(message.keys()) == sorted([*NEWS_HEADERS, *UNSUBSCRIBE])
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert Markup(message).preview.strip() == "Hello there"
    assert words_of(stop)["do"] == "unfollow"
    assert ANN not in stop
    assert follow(ann, undo=True) == {"success": True, "following": False}
    guest.comment("unheard")
    follow(ann)
    guest.comment("unheard as well")
    guest.deliver()  # too soon after the last email
    for page_url in (PAGE, "/unknown/"):
        assert follow(ann, page_url, undo=True) == {"success": True, "following": False}
    guest.later(HOUR)
    assert len(guest.arrived()) == 1


def test_a_followers_emails_and_links_are_in_the_language_chosen(guest: Guest, ann: Reader) -> None:
    change(ann, nickname="小安")
    cases = [("de", "de"), ("en", "en"), ("xx", "zh"), (None, "zh")]  # the nickname is Chinese
    for number, (chosen, lang) in enumerate(cases):
        page_url, texts = f"/{number}/", EMAIL_TEXTS[lang]
        follow(ann, page_url, lang="ja")
        follow(ann, page_url, lang=chosen)  # the last choice counts
        guest.comment("Bonjour", lang="fr", page_url=page_url)
        guest.later(HOUR)
        (link,) = links_in(guest.texts(ANN)[-1])
        shown, done = guest.open(link), guest.press(link)
        assert (shown.lang, shown.title) == (lang, texts["page_unfollow"]), chosen
        assert (done.lang, done.title) == (lang, texts["done_unfollow"])
    assert guest.arrived(ANN)[-1]["Subject"] == "“Ann”在“/3/”发表了评论"
    for page_url, lang in {"/0/": "de", "/1/": "en"}.items():
        follow(ann, page_url, lang=lang)
        guest.comment("Encore", page_url=page_url)
    guest.later(HOUR)
    links = links_in(guest.texts(ANN)[-1])
    assert [guest.open(link).lang for link in links] == ["de", "de"]  # one email is in one language


def test_followers_get_one_email_and_none_if_blocked(
    guest: Guest, owner: Reader, ann: Reader
) -> None:
    follow(ann)
    first = ann.comment("mine")
    guest.comment("a reply", parent_id=first)
    guest.later()
    (message,) = guest.arrived()
    assert message["Subject"] == f"“Ann” replied to you on “{PAGE}”"
    change(ann, answers=False)  # then it is one new comment of the page
    guest.forget()
    guest.comment("another reply", parent_id=first)
    guest.later()
    assert guest.quotes() == [["another reply"]]
    assert "follow" in guest.texts()[0]
    (user,) = [u["id"] for u in owner.get("/admin/users").json["users"] if u["email"] == ANN]
    owner.patch_json(f"/admin/users/{user}", {"blocked": True})
    guest.comment("unheard")
    guest.later(HOUR)
    assert len(guest.arrived()) == 1


def test_news_of_many_pages_are_one_email_with_a_way_to_end_each(guest: Guest, ann: Reader) -> None:
    for number in range(22):
        follow(ann, f"/{number // 11}/")
        guest.comment(f"number {number}", page_url=f"/{number // 11}/")
    guest.deliver()
    ((message,), (text,)) = guest.arrived(), guest.texts()
    assert message["Subject"] == "blog.example: 22 new comments"
    assert guest.quotes() == [[f"number {number}" for number in range(20)]]
    assert "And 2 more.\n" in text
    (_, second) = links_in(text)
    guest.press(second)
    assert followers(guest) == {(ANN, "/0")}
    guest.press(message["List-Unsubscribe"].strip("<>"))
    assert followers(guest) == set()


TO_NOBODY_OF_ANY_PAGE = {
    **USUAL,
    "notify_pages": load_config(None, {"COMMENTD_NOTIFY_PAGES": "* = nobody"}).notify_pages,
}


@pytest.mark.parametrize("settings", [NAMED, TO_NOBODY_OF_ANY_PAGE])
def test_the_owner_who_follows_has_one_email(
    guest: Guest, owner: Reader, settings: dict[str, Any]
) -> None:
    follow(signed_in(guest.served, OWNER))
    guest.comment()
    guest.deliver()
    assert guest.quotes(OWNER) == [["hi"]]
    can_moderate = "spam" in {words_of(link)["do"] for link in links_in(guest.texts()[0])}
    assert can_moderate == ("notify_owner" in settings)


def test_a_follower_who_confirmed_as_a_guest_has_one_email(guest: Guest, ann: Reader) -> None:
    follow(ann)
    mine = guest.comment("mine", email=ANN)
    guest.comment("before", parent_id=mine)
    guest.later(HOUR)
    guest.press(link_to("confirm", "".join(guest.texts(ANN))))
    guest.later(HOUR)
    guest.forget()
    guest.comment("after", parent_id=mine)
    guest.later(HOUR, 2)
    assert guest.quotes(ANN) == [["after", "mine"]]


def test_a_follower_hears_of_a_reply_to_their_hidden_comment(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    follow(ann)
    mine = ann.comment("mine")
    guest.comment("a reply", parent_id=mine)
    moderate(owner, [mine], "spam")
    guest.later(HOUR)
    assert guest.quotes(ANN) == [["a reply"]]


@pytest.mark.parametrize("hidden_by", ["spam", "deleted by its author"])
def test_a_comment_hidden_before_its_email_leaves_the_others_in_it(
    guest: Guest, ann: Reader, owner: Reader, hidden_by: str
) -> None:
    follow(ann)
    made = guest.say("to be hidden", lang="en")
    guest.comment("to be told")
    guest.fail_mail()
    guest.deliver()
    if hidden_by == "spam":
        moderate(owner, [1], "spam")
    else:
        guest.delete_json("/comments/1", {"edit_token": made["edit_token"]})
    guest.fail_mail(False)
    guest.later(times=3)
    assert guest.quotes(ANN) == [["to be told"]]


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "moderation_hold": "all"}])
def test_followers_get_what_waited_once_approved(guest: Guest, owner: Reader, ann: Reader) -> None:
    follow(ann)
    for content in ("good", "bad", "gone", "kept waiting"):
        guest.comment(content)
    guest.deliver()
    assert guest.arrived() == []
    for number, status in enumerate(("visible", "spam", "deleted"), 1):
        moderate(owner, [number], status)
    guest.later()
    assert guest.quotes() == [["good"]]


# A link that ends it


@pytest.fixture
def unfollow_link(guest: Guest, ann: Reader) -> str:
    """In an email to Ann, who follows two pages, as Bea does: to end those about one."""
    bea = guest.newcomer(BEA, "Bea")
    for reader, page in product((ann, bea), (PAGE, "/two/")):
        follow(reader, page)
    guest.comment("news")
    guest.deliver()
    (text,) = guest.texts(ANN)
    guest.forget()
    return link_to("unfollow", text)


TWO = {(who, page) for who in (ANN, BEA) for page in (PAGE[:-1], "/two")}
ONE_ENDED = TWO - {(ANN, PAGE[:-1])}


def test_a_link_asks_before_it_ends_emails_about_a_page(guest: Guest, unfollow_link: str) -> None:
    for _ in range(2):
        question = ("Stop following this page?", "", "", "Stop following")
        assert guest.open(unfollow_link).contents == question
        guest.head(path_of(unfollow_link))
    assert followers(guest) == TWO
    for _ in range(2):
        done = guest.press(unfollow_link)
        title = "You won’t get any more emails about new comments on this page."
        assert done.contents == (title, "", "", "Undo")
    assert followers(guest) == ONE_ENDED
    assert guest.open(done.action).contents[::3] == ("Follow this page again?", "Yes, please")
    again = guest.press(done.action)
    assert again.title == "You’ll get emails about new comments on this page."
    assert followers(guest) == TWO
    one_click = {"List-Unsubscribe": "One-Click"}
    ended = guest.press(unfollow_link, headers={"Origin": "https://mail.example"}, params=one_click)
    assert ended.contents == done.contents
    assert followers(guest) == ONE_ENDED
    for gone in ("comment", "follow WHERE page_id = 1", "page WHERE id = 1"):
        guest.sql(f"DELETE FROM {gone}")
    guest.press(ended.action)  # nobody follows a page that is gone
    assert followers(guest) == {(who, "/two") for who in (ANN, BEA)}


def test_a_link_works_once_its_page_moved_or_merged(
    guest: Guest, owner: Reader, unfollow_link: str
) -> None:
    guest.comment(page_url="/moved/")
    (page,) = [p["id"] for p in owner.get("/admin/pages").json["pages"] if p["page_url"] == PAGE]
    owner.patch_json(f"/admin/pages/{page}", {"page_url": "/moved/", "merge": True})
    assert followers(guest) == {(who, page) for who in (ANN, BEA) for page in ("/moved", "/two")}
    guest.press(unfollow_link)
    assert followers(guest) == {(ANN, "/two"), (BEA, "/moved"), (BEA, "/two")}


def test_an_unfollow_link_is_for_its_page_and_person(
    guest: Guest, ann: Reader, unfollow_link: str
) -> None:
    for do in ("stop", "stop_all", "visible", ""):
        guest.press(unfollow_link.replace("do=unfollow", f"do={do}"), 403)
    assert followers(guest) == TWO
    # It brings nothing back of an account that is gone, nor is it for another reader who has its
    # number since a backup was restored.
    undo = guest.press(unfollow_link).action
    leave(ann)
    guest.press(undo)
    guest.newcomer(LU, "Lu")
    guest.sql("DELETE FROM known_network")
    guest.sql("DELETE FROM taken_look")
    guest.sql("UPDATE account SET id = 1 WHERE email = ?", LU)
    guest.press(undo)
    assert {who for who, _ in followers(guest)} == {BEA}


# Reports


def test_a_report_is_seen_by_the_owner_alone(visitor: Reader, owner: Reader, ann: Reader) -> None:
    ann.comment("well")
    ann.comment("ill")
    before = visitor.listing(), visitor.listing(view="threads")
    for again in ("", "once more "):  # each visitor is heard once
        assert visitor.report(2, f"  {again}Ugly\n\tand\u2028loud ") == {"success": True}
        assert ann.report(2, again) == {"success": True}
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


def test_only_what_readers_see_can_be_reported_and_for_a_short_reason(guest: Guest) -> None:
    guest.comment()
    assert guest.report(1, "x" * 501, 400)["code"] == "reason_too_long"
    no_text: list[Any] = [5, ["a"], {}, True, "a\0b"]
    for reason in no_text:
        assert guest.report(1, reason, 400)["code"] == "reason_invalid", reason
    for status in ("waiting", "spam", "deleted"):
        inside.set_status(guest.served, 1, status)
        assert guest.report(1, status=404) == GONE, status
    assert guest.report(2, status=404) == GONE
    assert guest.report(guest.comment("again"), "字" * 500)["success"]


def test_a_report_of_a_blocked_client_goes_unheard_and_does_not_say_so(
    visitor: Reader, owner: Reader, ann: Reader
) -> None:
    ann.comment("well")
    block(owner, "address", "203.0.113.99")
    blocked = Reader(visitor.served, "203.0.113.99")
    assert blocked.report(1, "Ugly") == {"success": True}
    assert reported(owner)["comments"] == []
    assert visitor.report(1, "Ugly") == {"success": True}
    assert len(reported(owner)["comments"]) == 1


@LIMITS
def test_a_client_reports_five_an_hour_and_twenty_a_day(guest: Guest) -> None:
    ids: list[int] = []
    for number in range(31):
        guest.fake_world.time += MINUTE
        ids.append(Reader(guest.served, f"203.0.113.{number}").comment(str(number)))
    done = []
    for _ in range(6):
        statuses = [0]
        while statuses[-1] != 429:
            reply = guest.post_json(f"/comments/{ids.pop(0)}/report", {}, expect_errors=True)
            statuses.append(reply.status_int)
        done.append(statuses.count(200))
        guest.fake_world.time += HOUR
    assert done == [5, 5, 5, 5, 0, 0]
    Reader(guest.served, "203.0.113.200").report()


@LIMITS
def test_a_client_follows_pages_thirty_times_an_hour(guest: Guest, ann: Reader) -> None:
    for number in range(30):
        follow(ann, undo=number % 2 == 1)
    follow(ann, status=429)
    guest.fake_world.time += HOUR
    follow(ann)


@LIMITS
def test_all_clients_together_report_sixty_times_an_hour(guest: Guest) -> None:
    guest.comment("hi")
    inside.use_up(guest.served, "all_reports", 59)
    Reader(guest.served, "203.0.113.1").report()
    refused = Reader(guest.served, "203.0.113.2").report(status=429)
    assert refused == {"error": "举报的人太多，请稍后再试", "code": "too_many"}
    guest.fake_world.time += HOUR
    Reader(guest.served, "203.0.113.2").report()


@named
def test_moderation_ends_the_reports_of_a_comment(guest: Guest, owner: Reader) -> None:
    for number in (1, 2, 3):
        guest.comment(str(number))
        guest.report(number, "ugly")
    blog = signed_in(guest.served, OWNER)
    blog.post_json("/comments/1/moderate", {"status": "visible"})
    moderate(owner, [2], "spam")
    assert [c["id"] for c in reported(owner)["comments"]] == [3]
    guest.later()
    links = links_in(guest.texts(OWNER)[-1])
    guest.press(next(link for link in links if words_of(link)["do"] == "visible"))
    assert (reported(owner)["comments"], reported(owner)["counts"]["reported"]) == ([], 0)
    assert guest.listing()["total"] == 2
    log = owner.get("/admin/audit").json["audit"]
    assert [entry["action"] for entry in log].count("keep") == 2
    guest.report(1, "still ugly")  # it may be said again
    guest.later()
    assert "Reported by readers (1):\n\n> still ugly\n" in guest.texts(OWNER)[-1]


@named
def test_the_owner_is_told_of_a_report_with_the_reasons(guest: Guest, ann: Reader) -> None:
    follow(ann)
    guest.comment("ugly")
    guest.deliver()
    guest.later()
    guest.report(1, "It is\nugly")
    guest.fake_world.time += 1
    ann.report()
    guest.deliver()
    (first, second), text = guest.arrived(OWNER), guest.texts(OWNER)[1]
    links = {words_of(link)["do"]: link for link in links_in(text)}
    assert text == (
        f"The comment by “Ann” on “{PAGE}” was reported\n\n> ugly\n\n"
        "Reported by readers (2):\n\n> It is ugly\n> no reason given\n\n"
        f"Keep: {links['visible']}\nMark as spam: {links['spam']}\nDelete: {links['deleted']}\n\n"
        f"Read and reply: {BLOG}{PAGE}#comment-1\n\nAll comments: {SERVICE}/admin\n"
    )
    assert second["Subject"] == f"The comment by “Ann” on “{PAGE}” was reported"
    # Another email of the same thread: none that a mail program takes for the first.
    assert second["Message-ID"] != first["Message-ID"]
    assert second["References"] == first["References"]
    assert len(guest.arrived(ANN)) == 1  # readers are told nothing of it


@named
def test_an_email_with_a_report_calls_no_old_comment_new(guest: Guest) -> None:
    guest.comment("ugly")
    guest.deliver()
    guest.later()
    guest.report()
    guest.comment("a good one")
    guest.later(HOUR)
    message = guest.arrived(OWNER)[-1]
    assert guest.quotes(OWNER)[-1] == ["ugly", "no reason given", "a good one"]
    assert message["Subject"] == "blog.example: 2 comments to review"


@named
def test_the_link_to_keep_a_reported_comment_has_its_own_page_and_no_undo(guest: Guest) -> None:
    guest.comment("ugly")
    guest.deliver()
    guest.later()
    guest.report()
    guest.deliver()
    links = {words_of(link)["do"]: link for link in links_in(guest.texts(OWNER)[-1])}
    page = guest.open(links["visible"])
    assert (page.title, page.button) == ("Keep this comment?", "Keep")
    for done in (guest.press(links["visible"]), guest.open(links["visible"])):
        assert (done.title, done.button) == ("Kept: everybody can still read it.", "")


@pytest.mark.parametrize("settings", [{**USUAL, "privacy_keep_ip_days": days} for days in (0, 30)])
def test_a_report_forgets_who_sent_it(guest: Guest, settings: dict[str, Any]) -> None:
    guest.comment()
    guest.report(1, "ugly")
    of_report = "SELECT visitor, comment_id, reason, reported_at FROM report"
    ((whose, *rest),) = guest.sql(of_report)
    assert "203.0.113" not in whose
    guest.fake_world.time += max(HOUR, settings["privacy_keep_ip_days"] * DAY)
    guest.served.tick()
    assert guest.sql(of_report)[0][0] == whose
    guest.fake_world.time += MINUTE
    for _ in range(2):
        guest.served.tick()
    ((nobody, *left),) = guest.sql(of_report)
    assert nobody.startswith("past ")
    assert left == rest


# What was written before there was an account


def test_a_new_account_gets_the_guest_comments_with_its_email_address(guest: Guest) -> None:
    guest.comment("mine", email="Ann@Example.COM")
    guest.comment("another's", nickname="Lu", email=LU)
    guest.comment("nobody's", nickname="Bob")
    guest.comment("Buy pills", nickname="Eve", email=ANN)
    guest.comment("waits", nickname="Bob", email=ANN)
    inside.set_status(guest.served, 5, "waiting")
    guest.register(ANN, nickname="Annette")
    guest.deliver()
    owners = "SELECT user_id, email FROM comment ORDER BY id"
    before = [(None, ANN), (None, LU), (None, ""), (None, ANN), (None, ANN)]
    assert guest.sql(owners) == before
    guest.verify("000000", ANN, 400)
    assert guest.sql(owners) == before
    guest.verify(guest.fake_world.code(), ANN)
    assert guest.sql(owners) == [(1, ANN), (None, LU), (None, ""), (1, ANN), (1, ANN)]
    ann = signed_in(guest.served, ANN)
    assert me(ann)["comments"] == 3
    (mine,) = [c for c in ann.listing()["comments"] if c["id"] == 1]
    shown = {"content": "mine", "html": "<p>mine</p>\n", "user_id": 1, "role": ""}
    assert mine == {**SHOWN, **shown}
    given_out = [(c["nickname"], c["content"]) for c in export(ann)["comments"]]
    assert given_out == [("Ann", "mine"), ("Eve", "Buy pills"), ("Bob", "waits")]
    guest.later(HOUR)
    guest.forget()
    guest.comment("a reply", parent_id=1)  # which is told without a question
    guest.later()
    assert guest.quotes() == [["a reply", "mine"]]
    ann.delete_json("/comments/2", {}, status=404)
    for number in (1, 4):
        ann.delete_json(f"/comments/{number}", {})


def test_guest_comments_with_the_email_address_of_an_account_do_not_become_its_own(
    guest: Guest, ann: Reader
) -> None:
    guest.comment("Buy pills", email=ANN)
    ann.login()
    assert me(ann)["comments"] == 0
    again = guest.newcomer(ANN, "Ann")
    assert me(again)["comments"] == 0
    change(again, new_password=NEW, password=CANARY)
    assert guest.listing()["comments"][0]["user_id"] is None


def test_no_comment_of_a_stranger_becomes_an_admins(guest: Guest, owner: Reader) -> None:
    ways = ("role", "link", "owner")
    emails = {way: f"{way}@example.com" for way in ways} | {"owner": OWNER}
    for way in ways:
        guest.comment(f"pills by {way}", nickname="Boss", email=emails[way])
    for way in ways[:2]:  # first they are readers, who have what was written under their address
        reader = guest.newcomer(emails[way], f"Bea by {way}")
        reader.comment(f"mine by {way}", nickname=f"Bea by {way}")
        assert me(reader)["comments"] == 2
    users = {u["email"]: u["id"] for u in owner.get("/admin/users").json["users"]}
    wish = {"role": "admin", "password": CANARY}
    owner.patch_json(f"/admin/users/{users['role@example.com']}", wish)
    claim(guest.served, "link@example.com", "")
    assert me(guest.newcomer(OWNER, "Owner"))["role"] == "admin"
    listed = guest.listing()["comments"]
    assert {c["content"]: (c["user_id"], c["role"]) for c in listed} == {
        **{f"mine by {way}": (users[emails[way]], "admin") for way in ways[:2]},
        **{f"pills by {way}": (None, "") for way in ways},
    }


# To go


@pytest.fixture
def active_reader(guest: Guest, ann: Reader) -> Reader:
    """Ann, who has written, liked, followed and reported."""
    ann.comment("a root of Ann", website="https://ann.example")  # 1
    guest.comment("a reply of Bob", nickname="Bob", parent_id=1)  # 2
    ann.comment("a leaf of Ann", parent_id=2)  # 3
    ann.comment("on another page", page_url="/two/")  # 4
    ann.comment("it waits")  # 5
    inside.set_status(guest.served, 5, "waiting")
    for number in (1, 2):
        ann.post_json("/comment/like", {"id": number})
    ann.post_json("/page/like", {"page_url": PAGE})
    guest.post_json("/comment/like", {"id": 1})
    follow(ann)
    ann.report(2, "rude")
    guest.deliver()
    return ann


def test_the_export_of_an_account_has_all_that_is_kept_of_it(
    guest: Guest, active_reader: Reader, owner: Reader
) -> None:
    guest.post_json("/comment/like", {"id": 3})
    active_reader.delete_json(f"/comments/{active_reader.comment('mine to delete')}", {})
    everything = export(active_reader)
    kept = {"comments", "follows", "muted", "likes", "page_likes", "reactions", "reports"}
    assert everything.keys() == {"account", "sign_ins", "identities", "picture", *kept}
    switches = ("answers", "questions")
    names = ("email", "nickname", "role", "language", "created_at", "has_password", *switches)
    assert everything["account"] == {name: me(active_reader)[name] for name in names}
    contents = ["a root of Ann", "a leaf of Ann", "on another page", "it waits"]
    assert [c["content"] for c in everything["comments"]] == contents
    assert me(active_reader)["comments"] == 4
    assert [c["status"] for c in everything["comments"]] == ["visible"] * 3 + ["waiting"]
    expected = {**SHOWN, "user_id": 1, "role": "user", "likes": 2, "status": "visible"}
    expected |= {"content": "a root of Ann", "html": "<p>a root of Ann</p>\n"}
    assert everything["comments"][0] == expected | {"website": "https://ann.example"}
    page = [{"page_url": PAGE, "page_title": "", "page_link": BLOG + PAGE}]
    assert (everything["follows"], everything["muted"]) == (page, [])
    assert sorted(like["id"] for like in everything["likes"]) == [1, 2]
    assert everything["page_likes"] == [{"page_url": PAGE}]
    assert everything["reports"] == [{"id": 2, "reason": "rude", "reported_at": AT}]
    stopped = guest.press(link_to("stop", guest.texts(ANN)[-1]))
    assert (export(active_reader)["follows"], export(active_reader)["muted"]) == ([], page)
    guest.press(stopped.action)
    assert export(active_reader)["muted"] == []
    moderate(owner, [3], "spam")  # what moderators think is not given out
    statuses = [c["status"] for c in export(active_reader)["comments"]]
    assert statuses == ["visible", "waiting", "visible", "waiting"]


def test_a_deleted_account_that_leaves_its_comments_leaves_no_name_on_them(
    guest: Guest, active_reader: Reader
) -> None:
    before = guest.listing(view="threads", sort="oldest")
    assert leave(active_reader, "keep") == {"success": True}
    after = guest.listing(view="threads", sort="oldest")
    assert after["total"] == before["total"] == 3
    (root,), (then,) = after["comments"], before["comments"]
    gone = {**NO_NAME, "user_id": None}
    assert root["replies"] == [then["replies"][0], {**then["replies"][1], **gone}]
    assert {**root, "replies": []} == {**then, **gone, "replies": []}
    assert (root["likes"], after["page_likes"]) == (2, 1)


def test_a_deleted_account_that_takes_its_comments_leaves_tombstones(
    guest: Guest, active_reader: Reader, owner: Reader
) -> None:
    moderate(owner, [5], "visible")
    assert guest.sql("SELECT * FROM term") != []
    assert leave(active_reader, "delete") == {"success": True}
    listed = guest.listing(view="threads")
    (root,) = listed["comments"]
    assert (listed["total"], root["deleted"], root["content"], root["likes"]) == (1, True, "", 0)
    assert [c["content"] for c in root["replies"]] == ["a reply of Bob"]
    assert guest.listing(url="/two/")["total"] == 0
    assert listed["page_likes"] == 1
    assert [c["id"] for c in owner.get("/admin/comments").json["comments"]] == [2]
    assert {*guest.sql("SELECT content FROM comment")} == {("",), ("a reply of Bob",)}
    assert guest.sql("SELECT * FROM term") == []


@ENDS
def test_a_deleted_account_leaves_no_row_no_token_and_no_way_back(
    guest: Guest, active_reader: Reader, comments: str
) -> None:
    guest.comment("as a guest", email=ANN)
    phone, stranger = signed_in(guest.served, ANN), Reader(guest.served)
    stranger.register(ANN, password=NEW)  # one more that waits for its code
    change(active_reader, answers=False)
    leave(active_reader, comments)
    for reader in (active_reader, phone):
        for path in ("/me", "/me/export"):
            assert reader.get(path, status=401).json["code"] == "token_invalid"
        reader.say(status=401)
    unknown = stranger.login("nobody@example.com", 401)
    for password in (CANARY, NEW):
        assert stranger.login(ANN, 401, password=password) == unknown
    for table in ("account", "follow", "known_network", "registration", "subscription"):
        assert guest.sql(f"SELECT * FROM {table}") == []
    likers = guest.sql("SELECT visitor FROM comment_liker UNION ALL SELECT visitor FROM page_liker")
    assert [who for (who,) in likers if who.startswith("user ")] == []
    assert guest.sql("SELECT substr(visitor, 1, 5), reason FROM report") == [("past ", "")]
    # An address that a guest gave goes with the account that has it.
    assert {*guest.sql("SELECT email FROM comment")} == {("",)}
    assert guest.listing()["comments"][0]["content"] == "as a guest"
    guest.deliver()
    guest.forget()
    guest.comment("news", parent_id=2)
    guest.later()
    assert guest.arrived(ANN) == []
    # Who comes back is another.
    back = guest.newcomer(ANN, "Ann")
    me(active_reader, 401)
    fresh = me(back)
    assert (fresh["comments"], fresh["follows"], fresh["answers"]) == (0, [], True)
    assert all(
        not rows for name, rows in export(back).items() if name not in ("account", "sign_ins")
    )
    back.delete_json("/comments/1", {}, status=404)
    if comments == "keep":  # the likes of before are nobody's now
        assert back.post_json("/comment/like", {"id": 1}).json["likes"] == 3


def test_the_last_admin_can_not_delete_the_account(guest: Guest, owner: Reader) -> None:
    first = signed_in(guest.served, OWNER)
    assert leave(first, status=409)["code"] == "last_admin"
    assert leave(first, status=403, password="wrong")["code"] == "wrong_password"
    claim(guest.served, CO_OWNER, "Co")
    assert leave(first)["success"]
    owner.get("/admin/comments", status=401)
    other = signed_in(guest.served, CO_OWNER)
    assert leave(other, status=409)["code"] == "last_admin"
    # Of two who go at one time one stays.
    claim(guest.served, OWNER, "Owner")
    first = PlainReader(guest.served)
    first.authorization = signed_in(guest.served, OWNER).authorization
    inside.just_before_it_writes(guest.served, lambda: leave(other))
    assert leave(first, status=409)["code"] == "last_admin"
    assert me(first)["role"] == "admin"


def test_undelivered_emails_are_deleted_with_the_account(
    guest: Guest, active_reader: Reader
) -> None:
    guest.fail_mail()
    guest.comment("a reply", parent_id=1)
    guest.comment("news")
    guest.later(HOUR, times=30)
    rows = guest.sql("SELECT recipient FROM outbox WHERE due_at IS NULL")
    assert rows == [(ANN,)] * 2
    active_reader.authorization = ("Bearer", active_reader.login()["token"])
    leave(active_reader)
    assert guest.sql("SELECT * FROM outbox") == []


@named
@ENDS
def test_the_outbox_holds_nothing_of_a_deleted_account(
    guest: Guest, ann: Reader, comments: str
) -> None:
    bea = guest.newcomer(BEA, "Bea")
    follow(bea)
    bea.comment("a root", nickname="Bea")
    guest.comment("one more", nickname="Lu", email=LU)
    guest.fail_mail()
    ann.comment("what Ann wrote", nickname="Annabella", parent_id=1)
    ann.comment("to a guest", nickname="Annabella", parent_id=2)
    guest.deliver()
    assert {*guest.sql("SELECT recipient FROM outbox")} == {(OWNER,), (BEA,), (LU,)}
    leave(ann, comments)
    guest.fail_mail(False)
    guest.later(HOUR, times=3)
    assert "Annabella" not in str(guest.texts())
    assert ("what Ann wrote" in str(guest.texts(OWNER))) == (comments == "keep")
    assert guest.quotes(OWNER)[0][:2] == ["a root", "one more"]  # which was in the same email
    # A guest is asked though who replied to them went; else when somebody else replies.
    assert len(guest.arrived(LU)) == (comments == "keep")
    guest.comment("therefore", parent_id=2)
    guest.later()
    assert len(guest.arrived(LU)) == 1


WRITES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/comments", {**COMMENT, "content": "too late"}),
    ("POST", "/comment/like", {"id": 1}),
    ("POST", "/comments/1/report", {}),
    ("POST", "/page/like", {"page_url": PAGE}),
    ("POST", "/page/follow", {"page_url": PAGE}),
    ("PATCH", "/me", {"nickname": "Late", "answers": False}),
    ("PATCH", "/me", {"new_password": NEW, "password": CANARY}),
    ("PATCH", "/comments/{}", {"content": "too late"}),
    ("DELETE", "/comments/{}", {}),
    ("DELETE", "/me", {"password": CANARY, "comments": "delete"}),
]


def test_an_account_deleted_while_it_writes_writes_nothing_more(guest: Guest) -> None:
    # The request was let in, and waits for its turn to write while the account goes.
    guest.comment("of a guest")
    for number, (method, path, body) in enumerate(WRITES):
        reader = guest.newcomer(f"n{number}@example.com", f"Bea {number}")
        path = path.format(reader.comment(f"mine {number}"))
        late, after = PlainReader(guest.served), dict[str, Any]()
        late.authorization = reader.authorization

        def go(reader: Reader = reader, after: dict[str, Any] = after) -> None:
            leave(reader)
            after |= guest.rows()

        inside.just_before_it_writes(guest.served, go)
        send = getattr(late, f"{method.lower()}_json")
        assert send(path, body, expect_errors=True).status_int in (401, 403, 404), (method, path)
        assert guest.rows() == after, (method, path)


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


def secrets_in_files(path: Path, secrets: dict[str, str]) -> set[str]:
    """What the database, its -wal, or what else lies beside them tells."""
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    assert path in files
    raw = b"".join(file.read_bytes() for file in files).lower()
    return {name for name, text in secrets.items() if text.lower().encode() in raw}


@pytest.mark.parametrize("stop", [False, True], ids=["running", "stopped"])
@ENDS
def test_a_minute_after_an_account_was_deleted_no_byte_of_it_is_left(
    config: Config, fake_world: FakeWorld, comments: str, stop: bool
) -> None:
    # Nor as soon as the service has stopped.
    path, email = Path(config.database_path), f"{SECRETS['address']}@example.com"
    mine = {"nickname": SECRETS["name"], "website": f"https://{SECRETS['website']}.example"}
    with closing(make_app(replace(config, **TO_NOBODY), fake_world.world, rounds=1)) as app:
        guest = Guest(app, fake_world)
        ann = guest.newcomer(email, SECRETS["name"])
        ann.comment(SECRETS["edited"], **mine)
        ann.patch_json("/comments/1", {"content": SECRETS["root"]})
        guest.comment("of a guest", parent_id=1)
        ann.comment(SECRETS["leaf"], parent_id=2, **mine)
        ann.comment(SECRETS["draft"], page_url="/2", **mine)
        follow(ann)
        ann.post_json("/comment/like", {"id": 2})
        guest.register(email, nickname=SECRETS["name"], password=NEW)
        guest.deliver()
        ((password,),) = guest.sql("SELECT password FROM account")
        secrets = SECRETS | {"hash": password.rpartition("$")[2], "visitor": "user 1"}
        assert secrets_in_files(path, secrets) == secrets.keys()  # so the test knows how to look
        guest.later()
        leave(ann, comments)
        if stop:
            app.close()
        for _ in range(0 if stop else 2):
            guest.later(MINUTE)
            app.tick()
        assert secrets_in_files(path, secrets) == (WRITTEN if comments == "keep" else set())
    assert_whole(config.database_path)


def test_a_waiting_password_confirms_nothing(app: App, ann: Visitor, fake_world: FakeWorld) -> None:
    """Otherwise a stolen token takes the account: register its address with another password."""
    fake_world.time += 120
    Visitor(app, "198.51.100.9").register(password="a stranger's own")
    body = {"new_password": "taken over", "password": "a stranger's own"}
    assert ann.patch_json("/me", body, status=403).json["code"] == "wrong_password"
    body = {"comments": "delete", "password": "a stranger's own"}
    assert ann.delete_json("/me", body, status=403).json["code"] == "wrong_password"
