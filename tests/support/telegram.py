"""Telegram's Bot API, as core.telegram.org/bots/api describes it: a server of our own with one bot,
chats of people, and what they do there."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from support.chats import Answer, Call, ChatServer, answer, chat_server

TOKEN = "123456:SECRET-of-the-bot"
OWNER, STRANGER, GROUP = 42, 43, -100123


@dataclass
class Telegram(ChatServer):
    """What the bot has said in which chat, and the updates that wait for it."""

    kind: str = "telegram"
    messages: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    updates: list[dict[str, Any]] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)  # to buttons
    webhook: dict[str, Any] = field(default_factory=dict)
    new_ids: Iterator[int] = field(default_factory=lambda: itertools.count(100))
    arrived: threading.Event = field(default_factory=threading.Event)

    def answer(self, call: Call) -> Answer:
        self.calls.append(call)
        if self.script:
            return self.script.pop(0)
        start = f"/bot{TOKEN}/"
        if not call.path.startswith(start):
            return refuse(401, "Unauthorized")
        return self.method(call.path.removeprefix(start), call.json)

    def method(self, name: str, parameters: dict[str, Any]) -> Answer:
        if name == "sendMessage":
            message_id = next(self.new_ids)
            self.keep(message_id, parameters)
            return taken({"message_id": message_id, "chat": {"id": parameters["chat_id"]}})
        if name == "editMessageText":
            place = int(parameters["chat_id"]), parameters["message_id"]
            if place not in self.messages:
                return refuse(400, "Bad Request: message to edit not found")
            self.keep(parameters["message_id"], parameters)
            return taken(True)
        if name == "answerCallbackQuery":
            assert len(parameters["text"]) <= 200
            pressed = [each.get("callback_query", {}).get("id") for each in self.updates]
            assert parameters["callback_query_id"] in pressed
            self.answered.append(parameters["text"])
            return taken(True)
        if name == "setWebhook":
            assert 1 <= len(parameters["secret_token"]) <= 256
            self.webhook = parameters
            return taken(True)
        if name == "deleteWebhook":
            self.webhook = {}
            return taken(True)
        assert name == "getUpdates", name
        if self.webhook:
            return refuse(409, "Conflict: can't use getUpdates method while webhook is active")
        if not self.updates:
            self.arrived.wait(0.2)
        offset = parameters["offset"]
        waiting = [each for each in self.updates if each["update_id"] >= offset]
        return taken(waiting[: parameters["limit"]])

    def keep(self, message_id: int, parameters: dict[str, Any]) -> None:
        for row in parameters.get("reply_markup", {}).get("inline_keyboard", []):
            for button in row:
                assert {*button} in ({"text", "url"}, {"text", "callback_data"})
                assert len(button.get("callback_data", "").encode()) <= 64
        assert len(parameters["text"].encode("utf-16-le")) // 2 <= 4096
        self.messages[int(parameters["chat_id"]), message_id] = parameters

    # What the bot's messages show

    def last(self, chat: int = OWNER) -> int:
        """The number of the last message in a chat."""
        return max(message_id for at, message_id in self.messages if at == chat)

    def text(self, message_id: int, chat: int = OWNER) -> str:
        return str(self.messages[chat, message_id]["text"])

    def buttons(self, message_id: int, chat: int = OWNER) -> dict[str, str]:
        """What each button does, by its label."""
        rows = self.messages[chat, message_id].get("reply_markup", {}).get("inline_keyboard", [])
        return {
            button["text"]: button.get("callback_data", "url") for row in rows for button in row
        }

    def calls_of(self, method: str) -> list[dict[str, Any]]:
        """With which parameters the bot has called a method."""
        return [call.json for call in self.calls if call.path.endswith(f"/{method}")]

    # What people do

    def add(self, **update: Any) -> dict[str, Any]:
        whole = {"update_id": next(self.new_ids), **update}
        self.updates.append(whole)
        self.arrived.set()
        return whole

    def press(
        self, label: str, message_id: int, sender: int = OWNER, chat: int = OWNER, data: str = ""
    ) -> dict[str, Any]:
        pressed = {
            "id": str(next(self.new_ids)),
            "from": {"id": sender, "is_bot": False},
            "message": {"message_id": message_id, "chat": {"id": chat}},
            "data": data or self.buttons(message_id, chat)[label],
        }
        return self.add(callback_query=pressed)

    def reply(
        self, text: str | None, message_id: int, sender: int = OWNER, chat: int = OWNER
    ) -> dict[str, Any]:
        written: dict[str, Any] = {
            "message_id": next(self.new_ids),
            "from": {"id": sender, "is_bot": False},
            "chat": {"id": chat},
            "reply_to_message": {"message_id": message_id, "chat": {"id": chat}},
        }
        if text is None:
            written["sticker"] = {}
        else:
            written["text"] = text
        return self.add(message=written)


def taken(result: object) -> Answer:
    return answer(200, {"ok": True, "result": result})


def refuse(code: int, description: str) -> Answer:
    return answer(code, {"ok": False, "error_code": code, "description": description})


@contextmanager
def telegram_server() -> Iterator[Telegram]:
    with chat_server(Telegram()) as server:
        assert isinstance(server, Telegram)
        yield server
