"""Telegram both ways: buttons and replies in a chat act, for the people in the settings alone.
The other side is a server of our own that speaks the Bot API."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from commentd import ChatSettings, languages
from support import inside
from support.client import Visitor
from support.notifications import SERVICE, Guest, StartApp
from support.notifications import start_app as start_app  # a fixture
from support.service import services
from support.serving import until
from support.telegram import GROUP, OWNER, STRANGER, TOKEN, Telegram, refuse, telegram_server

ADMIN, OTHER_ADMIN = "owner@blog.example", "other@blog.example"
HOUR, DAY = 3600, 86400


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with telegram_server() as server:
        yield server


StartWithTelegram = Callable[..., AbstractContextManager[Guest]]


@pytest.fixture
def start_with_telegram(start_app: StartApp, telegram: Telegram) -> StartWithTelegram:
    """Starts the service with a bot that acts, and one admin."""

    @contextmanager
    def started(config: dict[str, Any] | None = None, **settings: Any) -> Iterator[Guest]:
        usual = {"kind": "telegram", "url": telegram.url, "token": TOKEN, "to": str(OWNER)}
        section = ChatSettings("tg", **{**usual, "interactive": "polling", **settings})
        blog = {"notify_owner": ("nobody",), "notify_language": "en", "chat_sections": (section,)}
        with start_app(**blog, **(config or {})) as guest:
            inside.add_account(guest.served, ADMIN, "Owner", "x", "admin")
            yield guest

    return started


def listen(guest: Guest) -> None:
    """Does what the threads of the service do, once."""
    for work in guest.served.listeners():
        work()


def audit(guest: Guest) -> list[tuple[str, str, str]]:
    rows = guest.sql("SELECT who, action, subject FROM audit ORDER BY id")
    return [tuple(row) for row in rows]


def shown(guest: Guest) -> list[str]:
    return [each["content"] for each in guest.listing()["comments"]]


HOLD = {"moderation_hold": "all"}


def test_buttons_in_telegram_act_and_show_what_was_done(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(HOLD) as guest:
        number = guest.comment("hi *there*")
        guest.deliver()
        message = telegram.last()
        assert telegram.buttons(message) == {
            "Approve": "visible",
            "Mark as spam": "spam",
            "Delete": "deleted",
        }
        telegram.press("Approve", message)
        assert [work() for work in guest.served.listeners()] == [1]
        assert telegram.calls_of("getUpdates") == [
            {
                "offset": 1,
                "limit": 5,
                "timeout": 25,
                "allowed_updates": ["message", "callback_query"],
            }
        ]
        assert guest.status_of(number) == "visible"
        assert telegram.answered == ["Approved: everybody can read it."]
        assert telegram.text(message).endswith("Ann\n\nhi *there*\n\n➜ " + telegram.answered[0])
        assert telegram.buttons(message) == {"Undo": "waiting"}
        telegram.press("Undo", message)
        listen(guest)
        assert guest.status_of(number) == "waiting"
        assert telegram.buttons(message) == {"Undo": "visible"}
        assert audit(guest) == [
            ("Owner", "visible", str(number)),
            ("Owner", "waiting", str(number)),
        ]
        for data, status in (("spam", "spam"), ("deleted", "deleted")):
            telegram.press("", message, data=data)
            listen(guest)
            assert guest.status_of(number) == status


def test_buttons_in_telegram_need_no_public_url(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram({"server_public_url": "", "site_origins": ()}) as guest:
        number = guest.comment("hi")
        guest.deliver()
        telegram.press("Mark as spam", telegram.last())
        listen(guest)
        assert guest.status_of(number) == "spam"


def test_a_reply_in_telegram_is_posted_as_the_owners_reply(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(HOLD) as guest:
        number = guest.comment("a question")
        guest.deliver()
        message = telegram.last()
        update = telegram.reply("an **answer**", message)
        listen(guest)
        assert guest.status_of(number) == "visible"  # what is replied to
        reply, question = guest.listing()["comments"]
        assert (reply["content"], reply["parent_id"], reply["role"]) == (
            "an **answer**",
            number,
            "admin",
        )
        assert "<strong>answer</strong>" in reply["html"]
        assert question["content"] == "a question"
        assert telegram.messages[OWNER, telegram.last()] == {
            "chat_id": str(OWNER),
            "text": "Your reply is published.",
            "reply_parameters": {"message_id": update["message"]["message_id"]},
        }
        assert audit(guest) == [("Owner", "visible", str(number)), ("Owner", "reply", str(number))]
        # A reply to that reply goes on from there.
        telegram.reply("and more", update["message"]["message_id"])
        listen(guest)
        assert guest.listing()["comments"][0]["parent_id"] == reply["id"]
        guest.deliver()
        assert guest.outbox() == []


def test_replayed_updates_do_nothing(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(HOLD) as guest:
        number = guest.comment("hi")
        guest.deliver()
        message = telegram.last()
        approve = telegram.press("Approve", message)
        reply = telegram.reply("an answer", message)
        listen(guest)
        listener = inside.telegram_listener(guest.served)
        # Telegram numbers anew after a week, and an old message is not posted again.
        guest.fake_world.time += 8 * DAY
        listener.take({**reply, "update_id": 10_000_000_000})
        assert len(shown(guest)) == 2
        telegram.press("", message, data="spam")
        telegram.updates[-1]["update_id"] = 10_000_000_001
        listen(guest)
        before = guest.rows()
        for update in (approve, reply):
            listener.take({**update, "update_id": 10_000_000_001})
            listener.take({**update, "update_id": 9_999_999_999})
        after = guest.rows()
        before.pop("chat_update")
        after.pop("chat_update")
        assert after == before
        assert guest.status_of(number) == "spam"


@pytest.mark.parametrize("chat", [OWNER, GROUP])
def test_nobody_acts_whom_the_settings_do_not_name(
    start_with_telegram: StartWithTelegram, telegram: Telegram, chat: int
) -> None:
    group: dict[str, Any] = {"to": str(GROUP), "users": (str(OWNER),)}
    settings = group if chat == GROUP else {}
    with start_with_telegram(HOLD, **settings) as guest:
        number = guest.comment(f"hi {chat}")
        guest.deliver()
        message = telegram.last(chat)
        telegram.press("Approve", message, sender=STRANGER, chat=chat)
        telegram.reply("mine", message, sender=STRANGER, chat=chat)
        anonymous = 1087968824  # core.telegram.org/bots/api#message: an admin of the group
        telegram.press("Approve", message, sender=anonymous, chat=chat)
        if chat == GROUP:
            telegram.press("Approve", message, sender=GROUP, chat=chat)
        listen(guest)
        listen(guest)
        assert guest.status_of(number) == "waiting"
        assert shown(guest) == []
        assert {*telegram.answered} == {"Only the people named in the settings can do that here."}
        telegram.press("Approve", message, chat=chat)
        listen(guest)
        assert guest.status_of(number) == "visible"


def test_a_reply_in_the_chat_of_before_or_after_is_none_to_a_comment(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(to=str(GROUP), users=(str(OWNER),)) as guest:
        guest.comment("hi")
        guest.deliver()
    message = telegram.last(GROUP)
    # A group that becomes a supergroup has another number, and its messages have new ones, too.
    with start_with_telegram(to="-100999", users=(str(OWNER),)) as guest:
        telegram.reply("between us: she is ill", message, chat=-100999)
        listen(guest)
        assert shown(guest) == ["hi"]


def test_forged_and_foreign_updates_do_nothing(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(HOLD) as guest:
        first = guest.comment("one")
        guest.deliver()
        message = telegram.last()
        before = guest.rows()
        sender = {"id": OWNER}
        here = {"message_id": message, "chat": {"id": OWNER}}
        forged: list[Any] = [
            {"data": "visible", "from": sender, "message": {**here, "chat": {"id": STRANGER}}},
            {"data": "visible", "from": sender, "message": {**here, "message_id": message + 1}},
            {"data": "visible", "from": sender, "message": {"message_id": message}},
            {"data": "visible", "from": {"id": str(OWNER)}, "message": here},
            {"data": "visible", "from": {"id": True}, "message": here},
            {"data": "visible", "message": here},
            {"data": f"visible {first}", "from": sender, "message": here},
            {"data": "pin", "from": sender, "message": here},
            {"data": ["visible"], "from": sender, "message": here},
            {"from": sender, "message": here},
            {"inline_message_id": "x", "data": "visible", "from": sender},
            "visible",
        ]
        listener = inside.telegram_listener(guest.served)
        numbers = iter(range(1, 100))
        for pressed in forged:
            listener.take(
                {
                    "update_id": next(numbers),
                    "callback_query": {"id": "1", **pressed}
                    if isinstance(pressed, dict)
                    else pressed,
                }
            )
        for written in (
            {"text": "x", "from": sender, "chat": {"id": OWNER}, "message_id": 7},
            {"text": "x", "from": sender, "reply_to_message": here},
            {"text": "x", "reply_to_message": here, "chat": {"id": OWNER}, "message_id": 7},
            {
                "text": "x",
                "from": sender,
                "reply_to_message": here,
                "chat": {"id": STRANGER},
                "message_id": 7,
            },
            "x",
        ):
            listener.take({"update_id": next(numbers), "message": written})
        odd: list[Any] = [{}, [], "x", {"update_id": "5"}, {"update_id": next(numbers)}]
        for update in odd:
            listener.take(update)
        after = guest.rows()
        before.pop("chat_update")
        after.pop("chat_update")
        assert after == before


def test_a_text_that_has_changed_is_shown_again_before_it_is_approved(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(HOLD) as guest:
        made = guest.say("harmless", lang="en")
        guest.deliver()
        message = telegram.last()
        guest.edit(made, "spam https://evil.example")
        telegram.press("Approve", message)
        listen(guest)
        assert telegram.answered == ["The text has changed. Please read it again."]
        assert "spam https://evil.example" in telegram.text(message)
        assert "Approve" in telegram.buttons(message)
        number = made["comment"]["id"]
        guest.edit(made, "other spam")
        telegram.reply("welcome", message)
        listen(guest)
        assert telegram.text(telegram.last()) == telegram.answered[0]
        assert "other spam" in telegram.text(message)
        assert shown(guest) == []
        telegram.press("Approve", message)
        listen(guest)
        assert guest.status_of(number) == "visible"


def test_a_text_that_was_shown_again_is_approved(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(HOLD) as guest:
        made = guest.say("harmless", lang="en")
        guest.deliver()
        guest.edit(made, "as harmless")
        for _ in range(2):
            telegram.press("Approve", telegram.last())
            listen(guest)
        assert shown(guest) == ["as harmless"]


def deletion(guest: Guest) -> Callable[[], object]:
    """Posts a comment and sends the message about it. Returns a call by which its author deletes
    the comment."""
    made = guest.say("hi")
    guest.deliver()
    token = {"edit_token": made["edit_token"]}
    return lambda: guest.delete_json(f"/comments/{made['comment']['id']}", token)


def test_a_button_of_a_comment_that_is_deleted_meanwhile_says_that_it_is_gone(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(HOLD) as guest:
        delete = deletion(guest)

        def delete_before_the_next_write() -> None:
            inside.just_before_it_writes(guest.served, delete)

        # What is written first is that the update has come.
        inside.just_before_it_writes(guest.served, delete_before_the_next_write)
        telegram.press("Approve", telegram.last())
        listen(guest)
        assert telegram.answered == ["This comment no longer exists."]
        assert guest.sql("SELECT status FROM comment") == [("deleted",)]
        assert audit(guest) == []


def test_a_button_of_a_comment_that_its_author_has_deleted_says_that_it_is_gone(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(HOLD) as guest:
        delete = deletion(guest)
        telegram.press("Approve", telegram.last())
        delete()
        listen(guest)
        assert telegram.answered == ["This comment no longer exists."]


def test_telegram_is_heard_with_the_settings_that_were_changed_meanwhile(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram() as guest:
        guest.comment("hi")
        guest.deliver()
        listener = inside.telegram_listener(guest.served)
        owner = Visitor(guest.served)
        owner.authorization = ("Bearer", inside.token_of(guest.served, ADMIN, "admin"))
        owner.patch_json("/admin/settings", {"settings": {"comments_max_length": "20"}})
        telegram.reply("x" * 21, telegram.last())
        listener.listen()
        said = "Not published: write 1 to 20 characters of text."
        assert telegram.text(telegram.last()) == said


def test_a_reply_says_why_it_is_not_posted(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram({"comments_max_length": 20}) as guest:
        number = guest.comment("hi")
        guest.deliver()
        message = telegram.last()
        too_long = "Not published: write 1 to 20 characters of text."
        for text, said in (("x" * 21, too_long), (" \u200b", too_long), (None, too_long)):
            telegram.reply(text, message)
            listen(guest)
            assert telegram.text(telegram.last()) == said
        inside.add_account(guest.served, OTHER_ADMIN, "Other", "x", "admin")
        telegram.reply("hello", message)
        listen(guest)
        assert telegram.text(telegram.last()) == (
            "Not published: set admin in [chat.tg] to the email address of an admin."
        )
        inside.set_status(guest.served, number, "deleted")
        assert shown(guest) == []
    with start_with_telegram(admin=OTHER_ADMIN) as guest:
        telegram.reply("hello", message)
        listen(guest)
        assert telegram.text(telegram.last()) == "This comment no longer exists."
        guest.comment("again")
        guest.deliver()
        telegram.reply("hello", telegram.last())
        listen(guest)
        assert guest.listing()["comments"][0]["nickname"] == "Other"


def test_telegram_is_told_once_to_call_no_url(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram() as guest:
        for work in [*guest.served.listeners()] * 3:
            work()
    called = [call.path.rpartition("/")[2] for call in telegram.calls]
    assert called == ["deleteWebhook", "getUpdates", "getUpdates", "getUpdates"]


def test_the_notice_of_a_pressed_button_is_as_short_as_telegram_wants_it() -> None:
    for language in languages().values():
        for key, text in language.email_texts.items():
            if key in ("chat_stranger", "chat_changed", "gone") or key.startswith("done_"):
                assert len(text) <= 200, (language.tag, key)


def test_a_refusal_of_telegram_is_logged_without_the_token(
    start_with_telegram: StartWithTelegram, telegram: Telegram, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with start_with_telegram(HOLD) as guest:
        number = guest.comment("hi")
        guest.deliver()
        (work,) = guest.served.listeners()
        telegram.script = [refuse(409, f"Conflict at /bot{TOKEN}/")]
        assert work() == 60
        telegram.script = [refuse(429, "Too Many Requests: retry after 5")]
        assert work() == 60
        # What was asked for is done, though nobody can be told.
        pressed = telegram.press("Approve", telegram.last())
        telegram.script = [refuse(400, "Bad Request: message is not modified")]
        inside.telegram_listener(guest.served).take(pressed)
        assert guest.status_of(number) == "visible"
    assert "[chat.tg]: Refused 409" in caplog.text
    assert "SECRET" not in caplog.text


def test_calls_from_telegram_need_the_secret_that_it_was_given(
    start_with_telegram: StartWithTelegram, telegram: Telegram
) -> None:
    with start_with_telegram(HOLD, interactive="webhook") as guest:
        number = guest.comment("hi")
        guest.deliver()
        assert [work() for work in guest.served.listeners()] == [6 * HOUR]
        secret = telegram.webhook["secret_token"]
        assert telegram.webhook == {
            "url": f"{SERVICE}/chat/tg",
            "secret_token": secret,
            "allowed_updates": ["message", "callback_query"],
            "max_connections": 1,
        }
        update = telegram.press("Approve", telegram.last())
        header = "X-Telegram-Bot-Api-Secret-Token"
        caller = Visitor(guest.served, "149.154.167.220")
        for path, headers in (
            ("/chat/tg", {header: ""}),
            ("/chat/tg", {header: secret[:-1]}),
            ("/chat/tg", {header: TOKEN}),
            ("/chat/other", {header: secret}),
        ):
            caller.post_json(path, update, headers=headers, status=404)
        assert guest.status_of(number) == "waiting"
        assert caller.post_json("/chat/tg", update, headers={header: secret}).json == {
            "success": True
        }
        assert guest.status_of(number) == "visible"
    with start_with_telegram(HOLD) as guest:  # now it polls
        listen(guest)
        assert telegram.webhook == {}
        caller = Visitor(guest.served, "149.154.167.220")
        caller.post_json("/chat/tg", update, headers={header: secret}, status=404)


@pytest.mark.slow
def test_a_running_service_takes_what_is_pressed_in_telegram(
    tmp_path: Any, telegram: Telegram
) -> None:
    chat = {"kind": "telegram", "url": telegram.url, "token": TOKEN, "to": OWNER}
    with services(tmp_path) as start:
        service = start(**{"chat.tg": {**chat, "interactive": "polling"}})
        comment = {"nickname": "Ann", "captcha_token": "x", "page_url": "/", "content": "hi"}
        assert service.ask("POST", "/comments", body=comment).status == 200
        until(lambda: telegram.messages)
        telegram.press("Mark as spam", telegram.last())
        until(lambda: telegram.answered)
    assert TOKEN not in service.log.read_text()
