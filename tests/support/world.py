"""The clock and the mail of a test."""

import email
import functools
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import EmailPolicy, default
from typing import Any

from commentd import MailServer, World

START = 1_795_000_000  # 2026-11-18 11:06:40 UTC


@functools.cache
def parsed_header(name: str, value: str) -> Any:
    return default.header_fetch_parse(name, value)


class OnceParsed(EmailPolicy):
    """Python's own, but it parses equal headers once: for one email, it is asked ten times what
    `text/plain; charset=utf-8` means."""

    def header_fetch_parse(self, name: str, value: str) -> Any:
        return parsed_header(name, value)


PARSING = OnceParsed()


def read(message: str | bytes) -> EmailMessage:
    raw = message.encode() if isinstance(message, str) else message
    parsed = email.message_from_bytes(raw, policy=PARSING)
    assert isinstance(parsed, EmailMessage)
    return parsed


def text_of(message: EmailMessage) -> str:
    """Its plain part."""
    return part_of(message, "plain")


def html_of(message: EmailMessage) -> str:
    return part_of(message, "html")


def part_of(message: EmailMessage, name: str) -> str:
    part = message.get_body((name,))
    assert isinstance(part, EmailMessage)
    content: str = part.get_content()
    return content.replace("\r\n", "\n")


@dataclass(frozen=True)
class SentEmail:
    """An email that was sent; `message` is its whole text as RFC 5322 has it."""

    recipient: str
    message: str


class FakeWorld:
    """The clock and the mail of a test."""

    def __init__(self) -> None:
        self.time: float = START
        self.emails: list[SentEmail] = []
        self.mail_fails_with: Exception | None = None
        self.happens: Callable[[SentEmail], None] = lambda email: None  # while one is sent

    def send(self, recipient: str, message: str, server: MailServer | None = None) -> None:
        sent = SentEmail(recipient, message)
        self.happens(sent)
        if self.mail_fails_with:
            raise self.mail_fails_with
        self.emails.append(sent)

    @property
    def world(self) -> World:
        return World(clock=lambda: self.time, send_email=self.send)

    def text(self, number: int = -1) -> str:
        """The plain part of an email that was sent."""
        return text_of(read(self.emails[number].message))

    def code(self, number: int = -1) -> str:
        """The code in an email that was sent."""
        return next(word for word in self.text(number).split() if len(word) == 6 and word.isdigit())
