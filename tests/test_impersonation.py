"""Nobody writes as somebody else: the email addresses and names of accounts, in the hands of guests
and of other accounts."""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commentd import Config, World, make_app
from support import inside
from support.admin import do, moderate, queue
from support.client import CANARY, PAGE
from support.commands import run_here
from support.mail import MailServer
from support.mail import start_mail_server as start_mail_server  # a fixture
from support.notifications import (
    ANN,
    BLOG,
    DAY,
    EMAIL_TEXTS,
    LU,
    OWNER,
    TO_NOBODY,
    USUAL,
    Guest,
    Reader,
    StartApp,
    link_to,
    links_in,
    signed_in,
    text_of,
    words_of,
)
from support.notifications import ann as ann  # a fixture
from support.notifications import guest as guest  # a fixture
from support.notifications import owner as owner  # a fixture
from support.notifications import start_app as start_app  # a fixture
from support.world import FakeWorld, read

NOBODYS = "nobody@example.com"  # an email address without an account
HOLD_EMAIL = {**TO_NOBODY, "moderation_hold": "email"}
hold_email = pytest.mark.parametrize("settings", [HOLD_EMAIL])
protect_names = pytest.mark.parametrize("settings", [{**USUAL, "comments_protect_names": True}])
TAKEN = {"error": "这个昵称和别人账号的太像，请登录或换一个", "code": "nickname_of_account"}


@pytest.fixture
def settings() -> dict[str, Any]:
    return TO_NOBODY


def question(guest: Guest) -> str:
    """The text of the only email to Ann so far."""
    guest.deliver()
    (text,) = guest.texts(ANN)
    return text


def roles(guest: Guest) -> dict[str, tuple[Any, str]]:
    """The number and the role of the author of each comment that readers see, by its text."""
    listed = guest.listing(limit=100)["comments"]
    return {comment["content"]: (comment["user_id"], comment["role"]) for comment in listed}


# What a guest learns


HOLDS = ("none", "links", "email", "first", "all")


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "moderation_hold": each} for each in HOLDS])
def test_a_guest_learns_nothing_of_an_email_address_that_has_an_account(
    guest: Guest, ann: Reader, settings: dict[str, Any]
) -> None:
    responses = []
    done = []
    guest.comment(page_url="/first/")  # the index for searches reads its own settings once
    for number, email in enumerate((ANN, NOBODYS)):
        guest.fake_world.time += DAY
        fields = {"page_url": f"/{number}/", "nickname": f"Bea {number}", "content": "hi"}
        form = fields | {"email": email, "captcha_token": "x", "lang": "en"}
        with inside.statements(guest.served) as asked:
            posted = guest.post_json("/comments", form)
        done.append([re.sub(r"'[^']*'|\d+", "…", each) for each in asked])
        guest.deliver()
        path = f"/comments/{posted.json['comment']['id']}"
        token = {"edit_token": posted.json["edit_token"]}
        like = {"id": posted.json["comment"]["id"]}
        reply = {**form, "email": "", "content": "re", "parent_id": like["id"]}
        either = "*"  # 404 while it waits
        steps = [
            posted,
            guest.get("/comments", {"url": f"/{number}/", "view": "threads"}),
            guest.get("/feed.atom", {"url": f"/{number}/"}),
            guest.get("/thread", {"url": f"/{number}/"}),
            guest.get("/comments", {"url": f"/{number}/", "around": like["id"]}),
            guest.post_json("/comment/like", like, status=either),
            guest.post_json("/comments", reply, status=either),
            guest.post_json("/comments", form),
            guest.patch_json(path, {"content": "ho", **token}),
            guest.delete_json(path, token),
        ]
        responses.append([(step.status, *unlike_parts_left_out(step.text)) for step in steps])
    assert responses[0] == responses[1]
    assert done[0] == done[1]


def unlike_parts_left_out(text: str) -> list[str]:
    """The parts of a response without numbers, times and what is random."""
    return re.split(r"[0-9a-f]{32}|\d+", text)


def test_a_guests_comment_is_shown_with_the_email_address_of_an_account_but_without_its_tick(
    guest: Guest, ann: Reader
) -> None:
    guest.comment("typed", email=ANN)
    ann.comment("signed in")
    assert roles(guest) == {"typed": (None, ""), "signed in": (1, "user")}
    page = guest.get("/thread", {"url": PAGE}).text
    assert page.count('class="tick"') == 1
    assert 'aria-label="signed in"' in guest.get("/thread", {"url": PAGE, "lang": "en"}).text


def test_comments_that_a_new_account_claims_have_no_tick(guest: Guest) -> None:
    guest.comment("before", email=ANN)
    ann = guest.newcomer(ANN, "Ann")
    ann.comment("after")
    assert roles(guest) == {"before": (1, ""), "after": (1, "user")}
    guest.deliver()
    assert guest.texts(ANN) == []


# What the holder is asked


def test_the_holder_of_an_email_address_says_that_they_wrote_a_comment(
    guest: Guest, ann: Reader
) -> None:
    guest.comment("Two lines\n\nof hers", nickname="Annie", email=ANN)
    guest.deliver()
    ((message,), (text,)) = guest.arrived(ANN), guest.texts(ANN)
    yes, no, stop = links_in(text)
    assert message["Subject"] == "blog.example: was it you?"
    assert message["List-Unsubscribe"] == f"<{stop}>"
    assert text == (
        f"“Annie” wrote on “{PAGE}” and gave your email address, but wasn’t signed in\n\n"
        "> Two lines\n> \n> of hers\n\nWas it you?\n\n"
        f"Yes, publish it: {yes}\nNo, it is spam: {no}\n\n"
        "We ask once a day at most. If you sign in before you write, we don’t have to.\n\n"
        f"No more of these emails: {stop}\n"
    )
    assert guest.open(yes).contents[::3] == ("Did you write this comment?", "Yes, publish it")
    assert roles(guest) == {"Two lines\n\nof hers": (None, "")}  # a GET does nothing
    done = guest.press(yes)
    assert done.title == "Thank you. This comment is yours."
    assert done.next == ("View comments", BLOG + PAGE)
    assert roles(guest) == {"Two lines\n\nof hers": (1, "user")}
    assert guest.sql("SELECT action, subject FROM audit") == [("mine", "1")]
    assert guest.press(no).title == "Thank you. This comment is yours."  # there is no way back
    assert ann.get("/me").json["comments"] == 1
    ann.delete_json("/comments/1", {})
    assert guest.open(yes, status=404).title == "This comment no longer exists."


def test_the_holder_of_an_email_address_says_that_somebody_else_wrote_a_comment(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    guest.comment("not hers", email=ANN)
    text = question(guest)
    yes, no = link_to("mine", text), link_to("not_mine", text)
    page = guest.open(no)
    asked = ("Did somebody else write this comment?", "Ann · /2026/hello/", "not hers")
    assert page.contents == (*asked, "No, it is spam")
    assert guest.listing()["total"] == 1
    page = guest.press(no)
    assert page.title == "Thank you. Nobody sees this comment any more."
    assert (guest.status_of(1), guest.listing()["total"]) == ("spam", 0)
    (listed,) = queue(owner, status="spam")["comments"]
    assert (listed["held"], listed["learnt"]) == ("denied", "")
    entries = owner.get("/admin/audit").json["audit"]
    assert [entries[0][name] for name in ("who", "action", "subject")] == ["mail", "not_mine", "1"]
    assert guest.open(no).title == page.title
    assert guest.press(page.action).title == "Thank you. This comment is yours."  # a slip
    assert roles(guest) == {"not hers": (1, "user")}
    assert guest.open(yes).title == "Thank you. This comment is yours."


def test_the_filter_forgets_a_comment_that_its_holder_did_not_write(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    guest.comment("not hers", email=ANN)
    no = link_to("not_mine", question(guest))
    moderate(owner, [1], "waiting")
    moderate(owner, [1], "visible")
    assert queue(owner)["comments"][0]["learnt"] == "ham"
    assert guest.open(no).style == "danger"
    assert guest.press(no).style == "quiet"
    (listed,) = queue(owner, status="spam")["comments"]
    assert (listed["learnt"], queue(owner)["filter"]["ham"]) == ("", 0)


def test_a_comment_that_an_admin_has_removed_stays_so_whatever_the_holder_says(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    for content in ("spam", "deleted", "denied before"):
        guest.comment(content, email=ANN)
    text = question(guest)
    answers = [link for link in links_in(text) if "mine" in words_of(link)["do"]]
    guest.press(answers[5])
    moderate(owner, [3], "visible")
    moderate(owner, [1, 3], "spam")
    moderate(owner, [2], "deleted")
    for link in answers:
        guest.press(link, status=404)
    assert [guest.status_of(number) for number in (1, 2, 3)] == ["spam", "deleted", "spam"]


def test_a_holder_decides_on_the_text_that_they_have_read(guest: Guest, ann: Reader) -> None:
    posted = guest.say("fine", email=ANN, lang="en")
    yes = link_to("mine", question(guest))
    guest.edit(posted, "buy pills")
    page = guest.open(yes)
    assert page.title == "The text has changed since this email was sent. Please look again:"
    assert (page.text, page.button) == ("buy pills", "Yes, publish it")
    guest.press(yes, status=409)
    assert roles(guest) == {"buy pills": (None, "")}
    guest.press(page.action)
    assert roles(guest) == {"buy pills": (1, "user")}
    form = {"content": "changed again", "edit_token": posted["edit_token"]}
    guest.patch_json("/comments/1", form, status=404)  # who wrote it as a guest may edit no more


def test_a_yes_is_not_for_a_text_that_its_author_changes_at_the_same_moment(
    guest: Guest, ann: Reader
) -> None:
    posted = guest.say("fine", email=ANN, lang="en")
    yes = link_to("mine", question(guest))
    inside.just_before_it_writes(guest.served, lambda: guest.edit(posted, "buy pills"))
    guest.press(yes)
    assert roles(guest) == {"buy pills": (None, "")}
    assert guest.sql("SELECT action FROM audit") == []


def test_a_no_about_a_comment_that_an_admin_removes_at_the_same_moment_changes_nothing(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    guest.comment("not hers", email=ANN)
    no = link_to("not_mine", question(guest))
    inside.just_before_it_writes(guest.served, lambda: moderate(owner, [1], "spam"))
    guest.press(no)
    (listed,) = queue(owner, status="spam")["comments"]
    assert (listed["held"], listed["learnt"]) == ("", "spam")
    assert guest.sql("SELECT action FROM audit WHERE action = 'not_mine'") == []


def test_an_answer_is_for_the_holder_of_the_email_address_alone(guest: Guest, ann: Reader) -> None:
    guest.comment("of Ann", email=ANN)
    text = question(guest)
    yes, no = link_to("mine", text), link_to("not_mine", text)
    guest.comment("of Lu", email=LU)
    guest.press(yes.replace("do=mine", "do=not_mine"), status=403)
    guest.sql("UPDATE account SET blocked = 1")
    for link in (yes, no):
        guest.press(link, status=403)
    guest.sql("UPDATE account SET blocked = 0")
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})
    for link in (yes, no):
        guest.press(link, status=403)
    assert roles(guest) == {"of Ann": (None, ""), "of Lu": (None, "")}


def test_no_press_on_a_link_gives_a_comment_the_badge_of_an_admin(
    guest: Guest, owner: Reader
) -> None:
    guest.comment("typed by anybody", nickname="Bea", email=OWNER)
    guest.deliver()
    guest.press(link_to("mine", guest.texts(OWNER)[0]))
    assert roles(guest) == {"typed by anybody": (None, "")}


@pytest.mark.parametrize("settings", [{**USUAL, "notify_owner": (ANN,)}])
def test_an_owner_who_decides_on_all_comments_of_a_page_is_asked_nothing(
    guest: Guest, ann: Reader
) -> None:
    guest.comment("hi", email=ANN)
    guest.deliver()
    assert [message["Subject"] for message in guest.arrived(ANN)] == [
        f"New comment by “Ann” on “{PAGE}”"
    ]


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "server_public_url": ""}])
def test_nobody_is_asked_where_links_lead_nowhere(guest: Guest, ann: Reader) -> None:
    guest.comment("hi", email=ANN)
    guest.deliver()
    assert guest.recipients() == []


def test_a_blocked_account_and_what_a_block_made_spam_bring_no_question(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    do(owner, "blocks", kind="word", value="pills")
    guest.comment("pills", email=ANN)
    guest.deliver()
    guest.sql("UPDATE account SET blocked = 1 WHERE email = ?", ANN)
    guest.comment("hi", email=ANN)
    guest.deliver()
    assert guest.recipients() == []


def test_one_email_a_day_asks_about_all_that_waits_for_an_answer(guest: Guest, ann: Reader) -> None:
    guest.comment("one", email=ANN)
    guest.deliver()
    for content in ("two", "three"):
        guest.comment(content, email=ANN)
    guest.later(DAY // 2)
    assert guest.quotes(ANN) == [["one"]]
    guest.later(DAY // 2)
    assert guest.quotes(ANN) == [["one"], ["two", "three"]]
    guest.later(DAY, times=3)
    assert len(guest.recipients()) == 2


def test_an_email_asks_about_eight_comments_and_the_next_one_about_the_others(
    guest: Guest, ann: Reader
) -> None:
    for number in range(10):
        guest.comment(f"no. {number}", email=ANN)
    guest.deliver()
    guest.later(DAY)
    assert [len(quotes) for quotes in guest.quotes(ANN)] == [8, 2]


def test_one_press_ends_the_questions_for_good(guest: Guest, ann: Reader) -> None:
    guest.comment("one", email=ANN)
    stop = link_to("no_questions", question(guest))
    assert guest.open(stop).button == "Don’t ask me again"
    assert ann.get("/me").json["questions"] is True
    page = guest.press(stop)
    assert (page.title, page.button) == ("We won’t ask you again.", "Undo")
    assert ann.get("/me").json["questions"] is False
    assert ann.get("/me/export").json["account"]["questions"] is False
    guest.comment("two", email=ANN)
    guest.later(DAY, times=2)
    assert len(guest.recipients()) == 1
    guest.press(page.action)  # Undo
    guest.comment("three", email=ANN)
    guest.later(DAY)
    assert guest.quotes(ANN)[1:] == [["three"]]
    ann.patch_json("/me", {"questions": False})
    assert guest.press(stop, params="List-Unsubscribe=One-Click").title == page.title
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})
    assert guest.sql("SELECT * FROM no_question") == []


@pytest.mark.parametrize("language", sorted(EMAIL_TEXTS))
def test_a_holder_is_asked_in_the_language_of_their_account(
    guest: Guest, ann: Reader, language: str
) -> None:
    guest.sql("UPDATE account SET language = ?", language)
    guest.comment("hi", email=ANN, lang="de")
    text = question(guest)
    texts = EMAIL_TEXTS[language]
    yes, no, stop = links_in(text)
    line = texts["action_link"]
    answers = [
        line.format(label=texts["button_mine"], url=yes),
        line.format(label=texts["button_not_mine"], url=no),
    ]
    parts = [
        texts["holder_text"].format(nickname="Ann", page=PAGE),
        "> hi",
        texts["holder_question"],
        "\n".join(answers),
        texts["holder_end"],
        line.format(label=texts["holder_stop"], url=stop),
    ]
    assert text == "\n\n".join(parts) + "\n"
    assert guest.open(yes).title == texts["page_mine"]
    assert guest.press(no).title == texts["done_not_mine"]


def test_a_mail_server_gets_the_question_as_plain_text(
    config: Config,
    fake_world: FakeWorld,
    empty_database: Path,
    start_mail_server: Callable[..., MailServer],
) -> None:
    mail_server = start_mail_server(auth_require_tls=False)
    sending: dict[str, Any] = {
        "mail_host": "127.0.0.1",
        "mail_port": mail_server.port,
        "mail_security": "none",
        "mail_sender": "Blog <comments@blog.example>",
    }
    shutil.copy(empty_database, config.database_path)
    world = World(clock=lambda: fake_world.time)
    with closing(make_app(replace(config, **TO_NOBODY, **sending), world, rounds=1)) as app:
        inside.add_account(app, ANN, "Ann", CANARY)
        Guest(app, fake_world).comment("a line\n.\nQUIT", email=ANN)
        app.deliver()
    (envelope,) = mail_server.emails
    assert envelope.rcpt_tos == [ANN]
    message = read(envelope.content)
    assert message.get_content_type() == "multipart/alternative"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert "> a line\n> .\n> QUIT\n" in text_of(message)


# Where a blog holds comments


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "moderation_hold": "first"}])
def test_a_comment_that_a_holder_confirms_is_shown_if_one_of_theirs_would_be(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    guest.comment("one", email=ANN)
    guest.deliver()
    guest.comment("two", email=ANN)
    guest.later(DAY)
    first, second = (link_to("mine", text) for text in guest.texts(ANN))
    page = guest.press(first)
    assert page.title == "Thank you. This comment will appear once it is approved."
    assert [each["held"] for each in queue(owner)["comments"]] == ["first", "first"]
    moderate(owner, [1], "visible")
    assert guest.press(second).title == "Thank you. This comment is yours."
    assert roles(guest) == {"one": (1, "user"), "two": (1, "user")}


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "moderation_hold": "all"}])
def test_the_queue_names_the_account_whose_email_address_a_guest_gave(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    guest.comment("typed", email=ANN)
    guest.comment("typed, too", email=NOBODYS)
    ann.comment("signed in")
    holders = {each["content"]: each["holder"] for each in queue(owner)["comments"]}
    found = {"id": 1, "nickname": "Ann"}
    assert holders == {"typed": found, "typed, too": None, "signed in": None}


@hold_email
def test_a_comment_can_wait_for_the_holder_of_its_email_address(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    guest.comment("without one")
    ann.comment("signed in")
    guest.comment("by a reader", email=ANN)
    guest.comment("by a guest", email=NOBODYS)
    assert [*roles(guest)] == ["signed in", "without one"]
    assert {each["held"] for each in queue(owner, status="waiting")["comments"]} == {"email"}
    guest.deliver()
    (text,) = guest.texts(NOBODYS)
    yes, no, stop = links_in(text)
    assert text == (
        "Someone wrote a comment at blog.example and gave this email address. It stands on the "
        "page behind each link.\n\nWas it you?\n\n"
        f"Yes, publish it: {yes}\nNo, it is spam: {no}\n\n"
        "We ask once a day at most. If you sign in before you write, we don’t have to.\n\n"
        f"No more of these emails: {stop}\n"
    )
    assert guest.press(yes).title == "Thank you. This comment is yours."
    guest.press(link_to("mine", guest.texts(ANN)[0]))
    shown = roles(guest)
    assert (shown["by a reader"], shown["by a guest"]) == ((1, "user"), (None, ""))
    assert {each["held"] for each in queue(owner, status="visible")["comments"]} == {""}


@hold_email
def test_a_comment_that_no_holder_wants_to_be_asked_about_waits_for_an_admin(
    guest: Guest, owner: Reader
) -> None:
    guest.comment("one", email=NOBODYS)
    guest.deliver()
    guest.press(link_to("no_questions", guest.texts(NOBODYS)[0]))
    guest.comment("two", email=NOBODYS)
    guest.later(DAY, times=2)
    assert len(guest.recipients()) == 1
    moderate(owner, [2], "visible")
    assert roles(guest) == {"two": (None, "")}


@hold_email
def test_a_changed_text_waits_for_its_holder_again(guest: Guest) -> None:
    posted = guest.say("fine", email=NOBODYS, lang="en")
    guest.deliver()
    guest.press(link_to("mine", guest.texts(NOBODYS)[0]))
    assert guest.edit(posted, "buy pills") == "waiting"
    guest.later(DAY)
    guest.press(link_to("mine", guest.texts(NOBODYS)[1]))
    assert roles(guest) == {"buy pills": (None, "")}


@pytest.mark.parametrize("settings", [{**HOLD_EMAIL, "limits_enabled": True}])
def test_strangers_are_asked_within_a_limit_for_all_of_them(guest: Guest) -> None:
    inside.use_up(guest.served, "all_questions", 30)
    guest.comment("hi", email=NOBODYS)
    guest.deliver()
    assert guest.recipients() == []
    guest.later(DAY)
    assert guest.recipients() == [NOBODYS]


# Imports


def test_an_import_gives_no_comment_the_tick_of_an_account(
    start_app: StartApp, tmp_path: Path
) -> None:
    with start_app(**TO_NOBODY) as guest:
        ann = guest.newcomer(ANN, "Ann")
        ann.comment("hers")
    code, exported, _ = run_here(tmp_path, "export", "--emails")
    assert code == 0
    file = json.loads(exported)
    (comment,) = file["comments"]
    assert comment["email"] == ANN
    forged = {"id": 7, "content": "forged", "user_id": 1, "role": "admin", "shown": 1}
    file["comments"] = [comment | forged]
    (tmp_path / "file.json").write_text(json.dumps(file))
    assert run_here(tmp_path, "import", "file.json")[0] == 0
    with start_app(**TO_NOBODY) as guest:
        assert roles(guest) == {"hers": (1, "user"), "forged": (None, "")}
        guest.later(DAY)
        assert guest.texts(ANN) == []


# Names


@protect_names
def test_a_name_that_looks_like_an_accounts_is_refused_if_the_owner_wants_that(
    guest: Guest, ann: Reader
) -> None:
    bob = guest.newcomer("bob@example.com", "Bob")
    for nickname in ("Ann", "ANN", "Аnn", "Ann (Berlin)", "@nn", "Ann Admin"):
        assert guest.say("hi", nickname=nickname, status=409) == TAKEN, nickname
        assert bob.say("hi", nickname=nickname, status=409) == TAKEN, nickname
        assert bob.patch_json("/me", {"nickname": nickname}, status=409).json == TAKEN
    guest.say("hi", nickname="Anna")
    ann.say("hi", nickname="Ann")
    ann.say("hi there", nickname="Ann (Berlin)")
    ann.patch_json("/me", {"nickname": "Zoe"})
    guest.say("free again", nickname="Ann")
    assert guest.say("hi", nickname="Zoé", status=409) == TAKEN


@protect_names
def test_a_name_whose_signs_could_be_any_letters_counts_as_an_accounts(
    guest: Guest, ann: Reader
) -> None:
    """No list says what a sign of Cherokee or Armenian looks like in Latin, so it counts as any
    letter. `Aղn` is refused beside `Ann`, and `Bղn` is not."""
    for nickname in ("ᎪᏁᏁ", "Aղn"):
        assert guest.say("hi", nickname=nickname, status=409) == TAKEN, nickname
        ann.say("hi", nickname=nickname)
    for nickname in ("ᎪᏁᏁᎪ", "Bղn"):
        guest.say("hi", nickname=nickname)


@protect_names
def test_of_two_accounts_with_one_name_the_first_may_write_with_it(
    guest: Guest, ann: Reader
) -> None:
    guest.fake_world.time += DAY
    second = guest.newcomer("other@example.com", "Ann")
    assert second.say("hi", status=409) == TAKEN
    ann.patch_json("/me", {"nickname": "ann"})  # which looks the same: she had it first
    ann.say("hi", nickname="ann")
    second.patch_json("/me", {"nickname": "Other"})
    second.say("hello", nickname="Other")
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})
    second.patch_json("/me", {"nickname": "Ann"})
    second.say("mine now", nickname="Ann")


@protect_names
def test_an_admin_may_use_the_name_of_an_account(guest: Guest, ann: Reader, owner: Reader) -> None:
    signed_in(guest.served, OWNER).say("hi", nickname="Ann")


def test_names_of_accounts_are_free_unless_the_owner_protects_them(
    guest: Guest, ann: Reader
) -> None:
    guest.say("hi", nickname="Ann")
