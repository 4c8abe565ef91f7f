"""commentd: comments for a static site, in one module and one SQLite file.

Run it with `python commentd.py`. The module reads from top to bottom: each part uses only what
stands above it.

    Problems      errors: for the owner, and for clients as `{error, code}`
    Languages     what commentd says in each language, from `static/languages/`
    Text          strict JSON, numbers, times, and what characters show: pure functions
    Names         nicknames, and those that look like an admin's
    Addresses     the one spelling of email addresses, hosts, IP addresses and page keys
    Markdown      comments as safe HTML
    Translations  the texts that are printed, in the language of the owner's terminal
    Templates     HTML, XML and other texts from `static/`, with values in them
    Settings      every setting with its default and help; the loader; the sample file
    Schema        the tables, and the migrations that bring a database up to date
    Database      the file: opening, locks, transactions, backups, restoring
    Wiping        overwrites in the file what SQLite leaves of deleted rows
    Store         rows as dataclasses, and all SQL that reads or writes them
    Places        the location of an IP address
    Keys          pure functions: passwords, codes, tokens, links, the proof of work
    World         clock, randomness, HTTP and SMTP; a test brings its own
    Clients       whose request it is, and what is counted of clients in memory
    Site          one blog while it is served: its settings, store, key, world and counters
    Limits        rate limits, and the views of pages
    Moderation    the spam filter, blocks, and the status of a new text
    Emails        what an email says, as plain text and as HTML
    Mail          recipients, and the emails to them
    Mailers       what sends emails: SMTP, providers by HTTPS, the terminal
    Chats         what takes messages by HTTP: chats, push services, the owner's own program
    Outbox        writes what is due, sends it, and tries again
    Web           `Request`, routes, permissions, forms, responses and HTML pages
    Captchas      the proof of work, and the captchas of providers
    Providers     asks identity providers, such as GitHub, who somebody is
    Sign-in       passwords, codes, providers, and the reader's own account
    Comments      handlers that list, write, edit, like and report
    Pages         the feed, and comments as HTML: on a page of their own, and as a fragment
    Assets        the files that browsers load, put together from `static/`
    Render        puts comments into the pages of a built site
    Admins        handlers for the admin page, and for the links in emails
    Telegram      buttons and replies in a chat of Telegram
    Manual        its topics, for the terminal and as pages
    Application   `make_app`: mounts the routes, adds headers, and does the regular work
    Doctor        what `check` finds
    Status        what the service tells of itself: `/`, `/health`, `/origin`, `/metrics`
    Markup        the HTML and the Markdown of other products, as our Markdown
    Foreign       files of other products: tables of fields, and readers
    Import        stages the records of a file, arranges them, and adds what is new
    Export        our own format and those of others
    Moves         gives pages new URLs
    Serving       waitress, the response cache, fairness among clients, a clean stop
    Demo          a made-up blog with comments and a mailbox, for whoever wants to try it all
    Commands      `serve`, `demo`, `check`, `backup`, `import` and the others; `main`
"""

import abc
import argparse
import base64
import codecs
import configparser
import contextlib
import contextvars
import copy
import enum
import errno
import fcntl
import fnmatch
import functools
import gc
import glob
import gzip
import hashlib
import hmac
import html
import html.parser
import http.client
import io
import ipaddress
import itertools
import json
import logging
import math
import operator
import os
import pwd
import queue
import re
import secrets
import selectors
import shlex
import shutil
import signal
import smtplib
import socket
import sqlite3
import ssl
import stat
import struct
import sys
import tarfile
import tempfile
import threading
import time
import unicodedata
import urllib.parse
import zlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from email import message_from_string
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import IO, Any, ClassVar, Literal, NamedTuple, Protocol, Self, TextIO, TypeVar, cast
from zoneinfo import ZoneInfo, available_timezones

try:
    import bottle
    import mistune
    import nh3
    import waitress
except ModuleNotFoundError as missing:  # pragma: no cover - coverage is not there either
    if __name__ != "__main__":
        raise
    sys.exit(f"commentd needs the package {missing.name}: run `pip install .` where this file is")

# What Serving takes from the inside of waitress (see `KNOWN_WAITRESS`). Without it, the stock
# server serves, and nothing that is built on these is used.
try:
    from waitress.buffers import ReadOnlyFileBasedBuffer
    from waitress.channel import HTTPChannel
    from waitress.parser import HTTPRequestParser, ParsingError, TransferEncodingNotImplemented
    from waitress.task import ErrorTask, WSGITask
except ImportError:
    HTTPChannel = HTTPRequestParser = ErrorTask = WSGITask = object  # bases of classes

__version__ = "0.1.0"

log = logging.getLogger("commentd")
# Where one process serves several blogs: the one that the work at hand is about.
BLOG_IN_LOG: contextvars.ContextVar[str] = contextvars.ContextVar("blog", default="")

Json = dict[str, Any]
Strings = tuple[str, ...]
RandomBytes = Callable[[int], bytes]
Progress = Callable[[int, int], object]  # called with what is left, and with the total

MINUTE = 60
HOUR = 3600
DAY = 86400
MEGA = 1024 * 1024

# -- Problems -----------------------------------------------------------------


class OperatorError(Exception):
    """A fault that the owner must fix. It ends the program with one sentence."""


class SettingsError(OperatorError):
    """All that is wrong with the settings or the command line, one line each."""


class SchemaError(OperatorError):
    """The file is not a database that this program can serve."""


class NewerDatabase(SchemaError):
    """The file was made or changed by a newer program."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} was made by a newer commentd: install that one again")
        self.path = path


class Code(enum.StrEnum):
    """What a refusal is about, for programs: `not_found` is the code of `NOT_FOUND`. The widget or
    the admin page has a text for each that people can cause; tests/test_words.py says which lacks
    one. `BadField` makes further codes from the names of fields."""

    # The request cannot be read.
    HTTP_INVALID = enum.auto()
    URL_INVALID = enum.auto()
    JSON_INVALID = enum.auto()
    CONTENT_TYPE = enum.auto()
    LENGTH_REQUIRED = enum.auto()
    BODY_TOO_LARGE = enum.auto()
    HEADERS_TOO_LARGE = enum.auto()
    METHOD_NOT_ALLOWED = enum.auto()
    HOST_UNKNOWN = enum.auto()
    # Who asks may not do this.
    ORIGIN_REFUSED = enum.auto()
    LOGIN_REQUIRED = enum.auto()
    TOKEN_INVALID = enum.auto()
    NOT_ADMIN = enum.auto()
    TOO_MANY = enum.auto()
    # Nothing shows who somebody is.
    PROVIDER_EMAIL = enum.auto()
    PROVIDER_LAST = enum.auto()
    PROVIDER_NAME = enum.auto()
    PROVIDER_REFUSED = enum.auto()
    PROVIDER_TAKEN = enum.auto()
    CAPTCHA_FAILED = enum.auto()
    CODE_WRONG = enum.auto()
    FACTOR_NEEDED = enum.auto()
    FACTOR_WRONG = enum.auto()
    EMAIL_UNVERIFIED = enum.auto()
    LINK_INVALID = enum.auto()
    PASSWORD_REQUIRED = enum.auto()
    WRONG_CREDENTIALS = enum.auto()
    WRONG_PASSWORD = enum.auto()
    # What is asked for does not exist.
    NOT_FOUND = enum.auto()
    BLOCK_GONE = enum.auto()
    COMMENT_GONE = enum.auto()
    EMAIL_GONE = enum.auto()
    PAGE_GONE = enum.auto()
    PARENT_GONE = enum.auto()
    USER_GONE = enum.auto()
    VERSION_GONE = enum.auto()
    # It does not go together with what is there.
    BLOCK_WIDE = enum.auto()
    EDIT_LATE = enum.auto()
    IS_ADMIN = enum.auto()
    LAST_ADMIN = enum.auto()
    NICKNAME_TAKEN = enum.auto()
    NICKNAME_OF_ACCOUNT = enum.auto()
    PAGE_CLOSED = enum.auto()
    PAGE_EXISTS = enum.auto()
    PIN_INVALID = enum.auto()
    TEXT_CHANGED = enum.auto()
    # The service cannot do it now.
    BUSY = enum.auto()
    CAPTCHA_DOWN = enum.auto()
    PROVIDER_DOWN = enum.auto()
    INTERNAL = enum.auto()
    STORAGE = enum.auto()


class Fault(enum.StrEnum):
    """What is wrong with a parameter or field: the end of its code, `missing` for `MISSING`."""

    MISSING = enum.auto()
    INVALID = enum.auto()
    TOO_LONG = enum.auto()
    TOO_SHORT = enum.auto()


class FieldCode(str):
    """The code of a refusal of one parameter or field. `Code` can list none of these: they are made
    of the names of all fields."""


class Problem(Exception):
    """A refusal that the client may read: it is sent as `{error, code}`, with `details` beside.
    Each status has a class of its own."""

    status: int
    # Seconds after which the client may try again, if the refusal names no others. 0: nobody knows.
    usual_retry_after = 0

    def __init__(
        self, text: str, code: Code | FieldCode, retry_after: int = 0, **details: int | str
    ) -> None:
        super().__init__(text)
        self.code = code
        self.retry_after = retry_after or self.usual_retry_after
        self.details = details


class BadRequest(Problem):
    status = 400


class BadField(BadRequest):
    """One parameter of the URL or one field of the form is wrong. The code holds its name:
    `nickname_missing`. The widget shows the text beside the field of that name."""

    def __init__(self, text: str, name: str, fault: Fault) -> None:
        super().__init__(text, FieldCode(f"{name}_{fault}"))


class Unauthorized(Problem):
    status = 401


class Forbidden(Problem):
    status = 403


class NotFound(Problem):
    status = 404


class MethodNotAllowed(Problem):
    status = 405


class Conflict(Problem):
    status = 409


class TextChanged(Conflict):
    """The text of a comment is not the one that the client has read."""

    def __init__(self) -> None:
        super().__init__("评论内容改过，请再看一遍", Code.TEXT_CHANGED)


class LengthRequired(Problem):
    status = 411


class BodyTooLarge(Problem):
    status = 413


class WrongContentType(Problem):
    status = 415


class WrongHost(Problem):
    status = 421


class TooManyRequests(Problem):
    status = 429


class HeadersTooLarge(Problem):
    status = 431


class InternalError(Problem):
    status = 500


class Unavailable(Problem):
    status = 503
    usual_retry_after = 5


class CaptchaDown(Unavailable):
    """The captcha provider has not said whether a captcha token is good."""

    def __init__(self) -> None:
        text = "人机验证服务暂时没有响应，请稍后再试"
        super().__init__(text, Code.CAPTCHA_DOWN, retry_after=30)


# -- Languages ----------------------------------------------------------------


@functools.cache
def static_folder() -> Path:
    """`static/` beside the module, or where a wheel puts it."""
    here = Path(__file__).resolve().parent
    installed = here / "commentd_static"
    return installed if installed.is_dir() else here / "static"


@dataclass(frozen=True)
class Language:
    """All that commentd says in a language: a file of `static/languages/`, which is found by
    itself. What it lacks is said in English."""

    tag: str  # as the widget calls it
    letters: tuple[range, ...]  # the code points that show a text to be in this language
    titles: tuple[str, ...]  # words for an admin, which no reader may add to an admin's name
    articles: tuple[str, ...]  # words that may stand before a title
    widget_texts: Mapping[str, str]
    admin_texts: Mapping[str, str]
    email_texts: Mapping[str, str]
    forms: Json  # how browsers write dates, numbers and countries


def language_files() -> dict[str, Path]:
    """The file of each language, by its name in emails, settings and the database."""
    names_of_tags = {"zh-CN": "zh"}
    return {
        names_of_tags.get(path.stem, path.stem.lower()): path
        for path in sorted((static_folder() / "languages").iterdir())
    }


@functools.cache
def languages() -> dict[str, Language]:
    files = language_files()
    english = json.loads(files["en"].read_bytes())
    return {name: read_language(file, english) for name, file in files.items()}


def read_language(file: Path, english: Json) -> Language:
    own = json.loads(file.read_bytes())
    forms = own["forms"]
    dir_text = {"dir": forms["direction"]}
    plural_forms = (*forms["plural_numbers"], "other")
    texts = {
        section: dir_text | with_english(own.get(section, {}), english[section], plural_forms)
        for section in ("widget", "admin", "emails")
    }
    return Language(
        tag=file.stem,
        letters=letters_in(own.get("letters", "")),
        titles=phrases_in(own.get("titles", "")),
        articles=phrases_in(own.get("articles", "")),
        widget_texts=texts["widget"],
        admin_texts=texts["admin"],
        email_texts=texts["emails"],
        forms=forms,
    )


def phrases_in(list_of_them: str) -> tuple[str, ...]:
    return tuple(phrase for phrase in list_of_them.split(", ") if phrase)


def letters_in(ranges: str) -> tuple[range, ...]:
    """The code points that `а-я і` stands for: a range, and one more."""
    return tuple(range(ord(each[0]), ord(each[-1]) + 1) for each in ranges.split())


def with_english(
    own: dict[str, str], english: dict[str, str], plural_forms: Sequence[str]
) -> dict[str, str]:
    """The texts of a language, in English where it has none. A counted text has a key for each
    plural form of its language, such as `count_one` and `count_other`, or one for all: `count`."""
    counted = {key.removesuffix("_other") for key in english if key.endswith("_other")}
    texts = dict(own)
    for key, text in english.items():
        if key.rpartition("_")[0] not in counted:
            texts.setdefault(key, text)
    for key in counted:
        if key in own:  # one text for all numbers: it needs no forms
            continue
        several = own.get(f"{key}_other", english[f"{key}_other"])
        for form in plural_forms:
            texts.setdefault(f"{key}_{form}", several)
    return texts


@functools.cache
def languages_by_letters() -> list[str]:
    """The languages that have characters of their own, those with the fewest first: Japanese text
    also has Chinese characters, and Ukrainian text has Russian ones."""
    with_letters = [name for name, language in languages().items() if language.letters]
    return sorted(with_letters, key=lambda name: sum(map(len, languages()[name].letters)))


def known_language(requested: str) -> str:
    """The language that was requested (`pt-BR` gives `pt`). "" for an unknown one."""
    language, *subtags = re.split("[^a-z]+", requested.lower())
    # Traditional characters, which a tag asks for by the script or by where they are written.
    is_traditional = "hans" not in subtags and {"hant", "tw", "hk", "mo"} & {*subtags}
    if language == "zh" and is_traditional:
        return "zh-tw"
    return language if language in languages() else ""


def language_of(requested: str, text: str) -> str:
    """The language that was requested. Without one, the language whose characters the text has."""
    if language := known_language(requested):
        return language
    if text.isascii():  # as most English text, and quick to see
        return "en"
    code_points = {ord(character) for character in text}
    for language in languages_by_letters():
        for letters in languages()[language].letters:
            if any(code_point in letters for code_point in code_points):
                return language
    return "en"


UNKNOWN_LANGUAGE = "zh+en"  # of an account: Chinese and English stand side by side


def texts_in(language: str) -> Mapping[str, str]:
    """The texts of emails, and of the pages that their links open. English for an unknown one."""
    if language == UNKNOWN_LANGUAGE:
        return bilingual_texts()
    known = languages()
    return known.get(language, known["en"]).email_texts


@functools.cache
def bilingual_texts() -> dict[str, str]:
    """The texts of the emails to accounts whose language is unknown."""
    chinese = json.loads(language_files()["zh"].read_bytes())
    return dict(chinese["emails_with_english"])


# -- Text ---------------------------------------------------------------------


def strict_json(body: bytes) -> Json:
    """The JSON object in a body. `ValueError` for other values, for what parsers read in different
    ways (a name twice, NaN, lone surrogates), and for what is nested too deep."""
    try:
        value = json.loads(body.decode(), object_pairs_hook=unique_names)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def unique_names(pairs: list[tuple[str, Any]]) -> Json:
    """The members of a JSON object. `ValueError` if a name stands twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name stands twice")
    return members


def value_or_empty(parse: Callable[[str], str], text: str) -> str:
    """A text in the one spelling that `parse` gives. "" if it raises `ValueError`."""
    with contextlib.suppress(ValueError):
        return parse(text)
    return ""


def sha256_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def equal_in_constant_time(one: str, other: str) -> bool:
    """Compares secrets. The time tells nothing of how much is right."""
    return hmac.compare_digest(one.encode(), other.encode())


# Numbers


def count_in(text: str, most: int) -> int:
    """The number that a text says, brought into the range from 0 to `most`. 0 if it says none."""
    with contextlib.suppress(ValueError, OverflowError):
        return max(0, min(most, int(float(text))))
    return 0


# Times

BEIJING = timezone(timedelta(hours=8))
YEAR_9999 = 253_402_214_400


def possible_time(seconds: float) -> float:
    """A stored time. An impossible value is moved into the range, so that no row breaks a list."""
    return max(0, min(seconds, YEAR_9999))


def time_of(seconds: float, zone: tzinfo | None = UTC) -> datetime:
    """A stored time. Without a zone, it is in that of this machine."""
    return datetime.fromtimestamp(possible_time(seconds), UTC).astimezone(zone)


def moment_on(day: date, minute: int, zone: tzinfo | None) -> int:
    """When clocks of a zone show a time on a day, in UTC seconds: the first time where they show it
    twice, and an hour later where summer time leaves it out."""
    return int(datetime(day.year, day.month, day.day, *divmod(minute, 60), tzinfo=zone).timestamp())


def last_moment_at(minute: int, now: int, zone: tzinfo | None) -> int:
    """When clocks of a zone showed a time of the day last."""
    today = time_of(now, zone).date()
    moments = [moment_on(today - timedelta(days=days), minute, zone) for days in (0, 1, 2)]
    return next(moment for moment in moments if moment <= now)


def next_moment_at(minute: int, now: int, zone: tzinfo | None) -> int:
    """When clocks of a zone show a time of the day next."""
    today = time_of(now, zone).date()
    moments = [moment_on(today + timedelta(days=days), minute, zone) for days in (0, 1, 2)]
    return next(moment for moment in moments if moment > now)


def is_recent(then: float, now: float, seconds: float) -> bool:
    """Whether it is less than that many seconds ago. A time in the future is not recent: it was
    noted while the clock was wrong, and could hold up what waits for it for years."""
    return 0 <= now - then < seconds


# These two are written for each comment of a list: with `strftime`, they took twice as long.


def rfc3339(seconds: float) -> str:
    at = datetime.fromtimestamp(possible_time(seconds), UTC)
    return f"{at.isoformat()[:19]}Z"


def beijing_time(seconds: int | None) -> str | None:
    """`YYYY-MM-DD HH:MM:SS` in Beijing, the form of the contract."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(possible_time(seconds), BEIJING).isoformat(" ")[:19]


# Characters

# Characters that show nothing and are not control characters: fillers, variation selectors.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)

# Scripts without spaces between words: Han, kana, Hangul, Thai, Lao, Khmer, Burmese.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7af"
)


# Control characters, and the separators of lines and paragraphs.
CONTROLS = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029]")


def has_controls(text: str) -> bool:
    return bool(CONTROLS.search(text))


# As Word, PowerPoint, PDF viewers and old systems write them: VT, FF, NEL, a lone CR and so on.
OTHER_LINE_BREAKS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
STRAY_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")


def without_controls(text: str) -> str:
    """A pasted text: each line break is a line feed, and no control character is left but these
    and tabs. Nobody sees such characters, so nobody could remove them."""
    return STRAY_CONTROLS.sub("", OTHER_LINE_BREAKS.sub("\n", text))


def bare_content(text: str) -> str:
    """The text of a comment without control characters, and without space around it. Four spaces
    or a tab before the first line stay: they mark it as code."""
    text = re.sub(r"\A\s*\n", "", without_controls(text)).rstrip()
    is_code = re.match(r" {4}| {0,3}\t", text)
    return text if is_code else text.lstrip()


def is_blank(text: str) -> bool:
    """Whether there is nothing to see: only spaces, controls, marks and invisible characters."""
    rest = INVISIBLE.sub("", text)
    return all(unicodedata.category(character)[0] in "CMZ" for character in rest)


def printable(line: str) -> str:
    """A text without control characters, which could steer the terminal, and bidi characters, which
    would turn the line around."""
    characters = [char if char.isprintable() else repr(char)[1:-1] for char in line]
    return "".join(characters)


def shortened(text: str, most: int) -> str:
    """The first `most` characters, and an ellipsis if there are more. A URL at the cut goes, unless
    it is the whole text: half of one opens another page."""
    if len(text) <= most:
        return text
    cut = text[:most]
    without_url = cut if text[most].isspace() else re.sub(r"(?i)https?://\S*\Z", "", cut)
    return f"{without_url.rstrip() or cut} …"


def without_middle(text: str, most: int) -> str:
    """A text of `most` characters at most. A longer one has an ellipsis in its middle."""
    if len(text) <= most:
        return text
    end = most // 3
    return f"{text[: most - end - 1]}…{text[-end:]}"


def one_line(text: str) -> str:
    """A text for an email header: one line of at most 120 characters, without hidden characters
    and without encoded words (RFC 2047), which some programs read as new headers. Bidi isolates go
    too: the cut could part a pair, and the rest of a list of subjects would turn around."""
    spaced = CONTROLS.sub(" ", unicodedata.normalize("NFC", text))
    shown = "".join(each for each in spaced if unicodedata.category(each)[0] != "C")
    line = " ".join(shown.split())
    # This comes last: a dropped character may have stood between `=` and `?`.
    line = re.sub(r"=(?=\?)|\?(?==)", r"\g<0> ", line)
    return shortened(line, 118)


def terminal_line(text: str) -> str:
    """A printable text on one line of about 300 characters at most."""
    return shortened(printable(" ".join(text.split())), 300)


def folded(text: str) -> str:
    """Normalised so that texts which differ only in case, width, spaces or invisible characters
    compare equal."""
    shown = text if text.isascii() else without_format_and_piles(INVISIBLE.sub("", text))
    normalized = unicodedata.normalize("NFKC", shown).casefold()
    return " ".join(normalized.split())


MOST_MARKS = 30  # on one character: Unicode's stream-safe format (UAX 15, section 13)


def without_format_and_piles(text: str) -> str:
    """A text without format characters, and with at most `MOST_MARKS` marks on one character:
    normalising sorts a run of marks, in time that grows with the square of its length."""
    categories = {unicodedata.category(character) for character in {*text}}
    if not categories & {"Cf", "Mn", "Mc", "Me"}:
        return text
    shown = ""
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        if category == "Cf":
            continue
        marks = marks + 1 if category[0] == "M" else 0
        if marks <= MOST_MARKS:
            shown += character
    return shown


# -- Names --------------------------------------------------------------------

EMOJI = r"\u2190-\u2bff\U0001f000-\U0001faff"
HAN = r"\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
MONGOLIAN = r"\u1820-\u18aa"
# Scripts whose characters take their shapes from their neighbours, and that write words with
# joiners (Unicode core specification, section 23.2): Arabic, Syriac, N'Ko and others; those of
# India, Sri Lanka, Burma, Cambodia, Mongolia and Java.
JOINING = "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u1820-\u18aa\ua980-\ua9df"
JOINERS = rf"(?<=[{JOINING}])[\u200c\u200d]+"
# What is invisible by itself and has a meaning where it stands: emoji, and words of many scripts,
# are written with it. The order of the alternatives has no meaning.
NEEDED_INVISIBLES = re.compile(
    rf"""(?x)
    # The selector of a symbol, as text or in colours, and of a keycap.
    (?<= [^\w\s] ) [\ufe0e\ufe0f]
    | (?<= \u2139 ) [\ufe0e\ufe0f]
    | \ufe0f (?= \u20e3 )
    # The joiner between two emoji, as in a family.
    | (?<= [{EMOJI}\ufe0f] ) \u200d (?= [{EMOJI}] )
    # What makes a black flag that of a region, such as England's.
    | (?<= \U0001f3f4 ) [\U000e0030-\U000e007a]+ \U000e007f
    # The selector of a variant of a Han character (UTS 37).
    | (?<= [{HAN}] ) [\ufe00-\ufe02\U000e0100-\U000e01ef]
    # The selector of a variant of a Mongolian character, and what parts a vowel from its word.
    | (?<= [{MONGOLIAN}] ) [\u180b-\u180d\u180f]
    | (?<= [{MONGOLIAN}] ) \u180e (?= [{MONGOLIAN}] )
    # The joiners of such scripts.
    | {JOINERS}
    """
)
# What separates the words of scripts without spaces, so that lines can break there: the space bar
# of Khmer keyboards types it.
WORD_BREAKS = re.compile("(?<=[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff])[\u200b\u2060]+")
# Radicals: they look like Han characters, and nobody types them in a name.
NOT_IN_NAMES = re.compile("[\u2e80-\u2eff]")


def proper_nickname(text: str) -> str:
    """Composed (NFC), on one line, and without what is invisible at the ends of its words.
    `ValueError` says why a name is refused."""
    if "\0" in text:
        raise ValueError("has a null character")
    spaced = re.sub("[\n\t]", " ", without_controls(text))
    name = unicodedata.normalize("NFC", spaced)
    name = re.sub(JOINERS, needed_joiner, name)
    name = WORD_BREAKS.sub("", name)
    name = re.sub(r"\S+", lambda word: trimmed(word[0]), name)
    name = trimmed(name)
    check_nickname_shows(name)
    return name


def check_nickname_shows(name: str) -> None:
    """Raises `ValueError` for a name with more or less in it than people see."""
    if is_blank(name):
        raise ValueError("is empty")
    if len(name) > 64:
        raise ValueError("is longer than 64 characters")
    rest = NEEDED_INVISIBLES.sub("", name)
    categories = "".join(unicodedata.category(character)[0] for character in rest)
    if "C" in categories or INVISIBLE.search(rest):
        raise ValueError("has invisible characters: two names could look the same")
    if "MMMM" in categories:
        raise ValueError("has four marks in a row")
    if NOT_IN_NAMES.search(rest):
        raise ValueError("has a radical in place of a Han character")


def needed_joiner(match: re.Match[str]) -> str:
    """One joiner within a word. At its end there is one after a sign that mutes the vowel, as in
    Malayalam. Others are gone."""
    before = match.string[match.start() - 1]
    after = match.string[match.end() :]
    is_within = re.match(f"[{JOINING}]", after)
    mutes_vowel = unicodedata.combining(before) == 9
    joiner = match[0][0]
    return joiner if is_within or (mutes_vowel and joiner == "\u200d") else ""


def trimmed(text: str) -> str:
    """A text without space and invisible characters at its ends: they come along when a text is
    copied."""
    needed = needed_invisibles(text)
    shown = [
        position
        for position, character in enumerate(text)
        if position in needed or not is_invisible(character)
    ]
    if not shown:
        return ""
    return text[shown[0] : shown[-1] + 1]


def needed_invisibles(text: str) -> set[int]:
    """Where invisible characters stand that have a meaning there."""
    needed: set[int] = set()
    for match in NEEDED_INVISIBLES.finditer(text):
        needed.update(range(match.start(), match.end()))
    return needed


def is_invisible(character: str) -> bool:
    if character.isspace() or INVISIBLE.match(character):
        return True
    return unicodedata.category(character) in ("Cc", "Cf")


# Titles of pages

MOST_OF_TITLE = 200  # characters
# What stands between the title of a page and the name of the blog: `Trains | Ann's blog`.
BEFORE_BLOG_NAME = r"(?:\s+[-–—:·•»/_~]+\s*|\s*[|｜]\s*)"


def proper_title(text: str, blog_name: str) -> str:
    """The title of a page as it is stored: composed (NFC), on one line of at most 200 characters,
    without what nobody sees or what turns a line around, and without the name of the blog at its
    end. "" if there is nothing to see. A URL says no more than the path, which stands beside it."""
    # Normalising takes time that grows faster than the text.
    composed = unicodedata.normalize("NFC", text[: 5 * MOST_OF_TITLE])
    spaced = re.sub(r"\s", " ", CONTROLS.sub(" ", composed))
    needed = needed_invisibles(spaced)
    shown = [
        character
        for position, character in enumerate(spaced)
        if position in needed or character == " " or is_plain_visible(character)
    ]
    title = " ".join("".join(shown).split())
    title = re.sub(rf"(?i){BEFORE_BLOG_NAME}{re.escape(blog_name)}\Z", "", title) or title
    if is_blank(title) or re.fullmatch(r"(?i)(?:https?:/)?/\S*", title):
        return ""
    return shortened(title, MOST_OF_TITLE - 2)


def is_plain_visible(character: str) -> bool:
    return unicodedata.category(character)[0] != "C" and not INVISIBLE.match(character)


# Names that look like an admin's

# The skeleton of a name is what it looks like in Latin characters: `Вoss` with a Cyrillic В has the
# one of `Boss`. Two names look alike if they have the same skeleton.

# Cyrillic and Greek characters, and digits, that look Latin (from Unicode's confusables.txt), and
# digits that people write for Latin characters.
LOOK_ALIKES = {
    "a": "АаΑα4",
    "b": "ВвьΒβ8",
    "c": "Ссς",
    "d": "ԁ",
    "e": "ЕеΕε3",
    "g": "9",
    "h": "НнһΗ",
    "i": "ІӀіΙι",
    "j": "Јј",
    "k": "КкΚκ",
    "l": "ӏ1",
    "m": "МмΜ",
    "n": "пΝη",
    "o": "ОоΟο0",
    "p": "РрΡρ",
    "q": "ԛ",
    "s": "Ѕѕ5",
    "t": "ТтΤτ7",
    "u": "υ",
    "v": "Ѵѵν",
    "w": "ԝω",
    "x": "ХхΧχ",
    "y": "УҮуүΥγ",
    "z": "Ζ",
}
LOOK_LATIN = {ord(each): latin for latin, alike in LOOK_ALIKES.items() for each in alike}
SIGNS_LOOK_LATIN = str.maketrans("$@€£", "sael")
LATIN_NAME = re.compile(r".*LATIN .*(?:LETTER|CAPITAL) ([A-Z])(?: WITH .*)?")
# Scripts with so many Latin shapes that a whole name can be forged in them.
FORGEABLE = {"LATIN", "CHEROKEE", "COPTIC", "LISU", "CANADIAN", "DESERET", "OSAGE"}
# Scripts that stand beside Latin in many honest names.
BESIDE_LATIN = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "DIGIT"}
# In a skeleton: a character that could look like any Latin one. A list of all look-alikes would be
# endless.
UNKNOWN_LOOK = "\0"


def script_of(character: str) -> str:
    return re.split("[ -]", unicodedata.name(character, ""))[0]


def is_drawn(character: str) -> bool:
    """Whether a character is alphanumeric, or drawn like one that is."""
    # The tags of flags are invisible, and named after Latin characters.
    if script_of(character) in ("MODIFIER", "TAG"):
        return False
    return character.isalnum() or latin_base(character) != ""


def latin_base(character: str) -> str:
    """The character from a to z in the Unicode name of a Latin character. "" for all others."""
    name = unicodedata.name(character, "")
    match = LATIN_NAME.fullmatch(name)
    return match[1].lower() if match else ""


def look_of(character: str, *, mixed: bool) -> str:
    """The Latin character that a character looks like. `UNKNOWN_LOOK` if that is not known, in a
    name that mixes scripts or in a script of Latin shapes; else the character itself."""
    look = latin_base(character) or character.translate(LOOK_LATIN).casefold()
    script = script_of(character)
    if look.isascii() or script in BESIDE_LATIN:
        return look
    return UNKNOWN_LOOK if mixed or script in FORGEABLE else look


def skeleton(text: str) -> str:
    """A name or a word, with each character replaced by its Latin look-alike."""
    # `|` looks like an l, but is not alphanumeric: it would not count as drawn.
    decomposed = unicodedata.normalize("NFKD", text).replace("|", "l")
    characters = [*filter(is_drawn, decomposed)]
    scripts = {*map(script_of, characters)} - BESIDE_LATIN
    mixed = len(scripts) > 1
    looks = "".join(look_of(character, mixed=mixed) for character in characters)
    # Side by side, r and n look like m. An l looks like a capital i.
    looks = looks.replace("rn", "m").replace("l", "i")
    # A name of signs alone, such as `???`, has no Latin look.
    return looks or folded(text)


@functools.cache
def title_skeletons() -> set[str]:
    """The skeletons of the words for an admin, in all languages."""
    titles = itertools.chain.from_iterable(each.titles for each in languages().values())
    return {*map(skeleton, titles)}


@functools.cache
def only_titles() -> re.Pattern[str]:
    """Matches the skeleton of titles that are written together: `官方认证`."""
    return re.compile(f"(?:{'|'.join(map(re.escape, title_skeletons()))})+")


@functools.cache
def articles() -> set[str]:
    return {*itertools.chain.from_iterable(each.articles for each in languages().values())}


def title_length(words: list[str]) -> int:
    """How many words at the beginning are a title, such as `quản trị viên`. 0 if none. The words
    are skeletons."""
    for length in range(min(len(words), 3), 0, -1):
        if only_titles().fullmatch("".join(words[:length])):
            return length
    return 0


def without_titles(nickname: str) -> str:
    """The other words of a nickname. A title may be of another script: `Boss Админ`. Its article
    goes with it: `Boss the author`."""
    words = re.findall(r"\w+", nickname)
    word_skeletons = [skeleton(word) for word in words]
    others = []
    position = 0
    while position < len(words):
        length = title_length(word_skeletons[position:])
        if length:
            position += length
        else:
            others.append(words[position])
            position += 1
    has_title = len(others) < len(words)
    without_articles = [word for word in others if word.lower() not in articles()]
    if has_title and without_articles:
        others = without_articles
    return " ".join(others)


IN_BRACKETS = re.compile(r"[(<[{【〔〈《「『〖].*?(?:[])>}】〕〉》」』〗]|$)")


def skeletons(name: str) -> set[str]:
    """The skeletons of a name: with and without what stands in brackets, and with signs read as
    Latin characters (`bo$$`)."""
    outside_brackets = IN_BRACKETS.sub("", unicodedata.normalize("NFKC", name))
    texts = {name, outside_brackets, name.translate(SIGNS_LOOK_LATIN)}
    return {skeleton(text) for text in texts if text.strip()}


def protected_skeletons(admin: str) -> set[str]:
    """The skeletons of an admin's name, alone and with each title before or behind it."""
    names = skeletons(admin)
    protected = {*names}
    for name, title in itertools.product(names, title_skeletons()):
        protected |= {name + title, title + name}
    return protected


def could_be(unclear: str, known: str) -> bool:
    """Whether a skeleton with `UNKNOWN_LOOK` in it may be one that is known."""
    if len(unclear) != len(known):
        return False
    pairs = zip(unclear, known, strict=True)
    return all(look == other or (look == UNKNOWN_LOOK and other.isascii()) for look, other in pairs)


def possible_skeletons(nickname: str) -> set[str]:
    """The skeletons of a name that somebody chooses, with and without what may be a title."""
    return skeletons(nickname) | skeletons(without_titles(nickname))


def looks_like(nickname: str, admin: str) -> bool:
    """Whether readers could take a nickname for an admin's, alone or with a title: `Boss 博主`.
    What stands in brackets is ignored: `Boss (Berlin)` looks like `Boss` too."""
    protected = protected_skeletons(admin)
    own = possible_skeletons(nickname)
    if own & protected:
        return True
    unclear = [each for each in own if UNKNOWN_LOOK in each]
    return any(could_be(each, known) for each in unclear for known in protected)


# -- Addresses ----------------------------------------------------------------

# Email addresses, hosts and IP addresses. A function `proper_…` raises `ValueError` for what is not
# valid. `plain_…` gives one of several spellings, "" if there is none.

EMAIL_CHARACTERS = "[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
HOST_LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
EMAIL = re.compile(
    r"(?=.{3,254}\Z)(?=[^@]{1,64}@)"  # RFC 5321, section 4.5.3.1
    # `=?` begins an encoded word (RFC 2047): mail programs would read another address.
    r"(?!.*=\?)"
    rf"{EMAIL_CHARACTERS}(?:\.{EMAIL_CHARACTERS})*@(?:{HOST_LABEL}\.)+{HOST_LABEL}"
)


# The full-width forms of ASCII, and the Chinese full stop (also the half-width one of Japanese), as
# input methods leave them. No other look-alike of an ASCII character is read as one.
FULL_WIDTH = {code + 0xFEE0: chr(code) for code in range(0x21, 0x7F)} | {0x3002: ".", 0xFF61: "."}


def proper_email(text: str) -> str:
    """The one spelling of an email address: plain ASCII, lower case, without what came along when
    it was pasted. `ValueError` for others."""
    pasted = trimmed(text).rstrip("、").translate(FULL_WIDTH).strip("<>")
    # Asked before `lower`, which makes a k of the Kelvin sign.
    is_ascii = pasted.isascii()
    email_address = re.sub(" *@ *", "@", pasted.lower())
    email_address = email_address.removeprefix("mailto:").strip(" ").rstrip(".,;")
    if not is_ascii or not EMAIL.fullmatch(email_address):
        raise ValueError("must be an email address, such as ann@example.com")
    return email_address


# A host without a scheme, as people type it: the last part is no number and no file.
WITHOUT_SCHEME = re.compile(
    r"""(?x)
    (?: [^\W_] [\w-]* \. )+
    (?: [^\W\d_]{2,} | xn--[\w-]+ )
    (?: :[0-9]+ )?
    (?: [/?\#] .* )?
    """
)

SCHEME_AND_HOST = re.compile("(?i)(?:[hｈ][tｔ][tｔ][pｐ][sｓ]?[:：][/／]{2})?[^/?#／]+")


def proper_website(text: str) -> str:
    """An http(s) URL with a host and without a user. `ValueError` for any other. Without a scheme
    it gets `https://`. Input methods leave full-width characters before the path."""
    url = trimmed(text).rstrip("。，、；！").strip("<>")
    if start := SCHEME_AND_HOST.match(url):
        url = start[0].translate(FULL_WIDTH) + url[start.end() :]
    if WITHOUT_SCHEME.fullmatch(url):
        url = f"https://{url}"
    parts = urllib.parse.urlsplit(url)
    is_web = re.fullmatch(r"(?i)https?://[^\s<>\"'`\\]+", url) and parts.hostname
    port = parts.port  # itself raises `ValueError` for what is no number up to 65535
    if not is_web or "@" in parts.netloc or port == 0 or has_controls(url):
        raise ValueError("must be the address of a website, such as https://ann.example")
    return url


def host_of(origin: str) -> str:
    """Host and port as browsers spell them: lower case, in ASCII, without the usual port of the
    scheme. `//host` has none. A text without slashes names no host."""
    scheme, _, host = origin.lower().rstrip("/").partition("//")
    usual_port = ":443" if scheme == "https:" else ":80"
    return ascii_host(host.removesuffix(usual_port))


def ascii_host(host: str) -> str:
    """A host as browsers send it: `xn--9krq6q.cn` for `博客.cn`; with its port, if it has one."""
    name, colon, port = host.partition(":")
    labels = [
        label if label.isascii() or len(label) > 63 else f"xn--{label.encode('punycode').decode()}"
        for label in name.split(".")
    ]
    return ".".join(labels) + colon + port


MOST_HOSTS = 30  # looked up in one comment; a comment with more of them waits
# The host behind `https://` and perhaps a user name, or behind the @ of an email address.
WRITTEN_HOST = re.compile(r"(?i)(?:https?://(?:[^/?#@\s\"]*@)?|@)([^/?#:@\s\"<>]+)")


def plain_host(text: str) -> str:
    """One spelling of a host, as browsers look it up (RFC 3490). "" for what is too long (RFC 1035,
    section 2.3.4)."""
    host = folded(text).strip(".")
    # Measured before the conversion, whose time grows with the square of the length.
    if len(host) > 253:
        return ""
    with contextlib.suppress(UnicodeError):
        host = host.encode("idna").decode()
    return host.strip(".")


def written_hosts(*texts: str) -> list[str]:
    """The hosts of the links and email addresses in some texts, each spelling once."""
    hosts = WRITTEN_HOST.findall(" ".join(texts))
    return [*dict.fromkeys(map(urllib.parse.unquote, hosts))]


def hosts_in(*texts: str) -> set[str]:
    """The first `MOST_HOSTS` of these hosts, in one spelling each."""
    hosts = written_hosts(*texts)[:MOST_HOSTS]
    return {*map(plain_host, hosts)} - {""}


def plain_ip(text: str) -> str:
    """One spelling of an IP address: no port, no zone, IPv4 in IPv6 unwrapped. "" if invalid."""
    text = text.strip().split("%")[0]
    if match := re.fullmatch(r"\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+", text):
        text = match[1] or match[2]
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return ""
    return str(getattr(ip, "ipv4_mapped", None) or ip)


def masked(ip: str) -> str:
    """The network of an IP address: `203.0.113.0`, `2001:db8:12::`. "" for an invalid one."""
    # Parsing each IPv4 address would take a sixth of the time that a list takes.
    if not re.fullmatch(r"(\d{1,3}\.){3}\d{1,3}", ip):
        ip = plain_ip(ip)  # another program may have written it
    if ":" in ip:
        return network_of(ip, 48).partition("/")[0]
    network = ip.rpartition(".")[0]
    return f"{network}.0" if network else ""


def network_of(ip: str, prefix: int) -> str:
    return str(ipaddress.ip_network(f"{ip}/{prefix}", strict=False))


@dataclass(frozen=True)
class Network:
    """What counts as one client: it has `factor` times the rate limits of one."""

    name: str
    factor: int


def networks_of(ip: str) -> list[Network]:
    """The networks that an IP address counts for. An IPv4 address is a network of its own. An IPv6
    address is in the /64 of a household, and in a /48 that has ten times the limits."""
    if ":" not in ip:
        return [Network(ip, 1)]
    return [Network(network_of(ip, 64), 1), Network(network_of(ip, 48), 10)]


# Page keys

# Parameters that say where a reader came from. None of them is a part of the page. The lines are
# those of search engines and advertisers, of programs that count or send emails, of social
# networks, and of Alibaba, Bilibili and WeChat; `from` with the values that WeChat gives it, since
# others may name a page; and a cache buster with milliseconds (pjax#189).
TRACKING = re.compile(
    r"""(?x)
    (?:
        utm_[^=]* | _ga | _gl | gclid | dclid | gbraid | wbraid | gad_source | srsltid
        | mtm_[^=]* | _hsenc | _hsmi | mc_[ce]id | mkt_tok
        | fbclid | igshid | igsh | twclid | ttclid | li_fat_id | msclkid | yclid | ysclid
        | spm | vd_source | isappinstalled | nsukey
    ) (?: = | \Z )
    | from= (?: timeline | singlemessage | groupmessage ) \Z
    | (?: t | _ | _t ) =1[0-9]{12} \Z
    """
)
# What may stand in a path raw or encoded (RFC 3986, section 3.3), and browsers leave as it is.
SUB_DELIMITERS = re.compile("(?i)%(21|24|2[6-9a-c]|3a|3b|3d|40)")
RESERVED = ":/?#[]@!$&'()*+,;=%"  # RFC 3986, section 2.2, and the percent sign itself


@dataclass(frozen=True)
class PageName:
    """`key`: the same for all spellings of a page. `page_url`: as sent, without tracking."""

    key: str
    page_url: str


def page_name(text: str, own_origins: Iterable[str]) -> PageName:
    """The page that a path, an http(s) URL or any other page key names."""
    page_url = without_tracking(text) or "/"
    key = unicodedata.normalize("NFC", unquoted(page_url))
    # Again: the name of a parameter may have been encoded.
    key = without_tracking(key)
    key = without_own_host(key, own_origins)
    key = with_sub_delimiters(key)
    key = without_index(key)
    return PageName(key, page_url)


def without_own_host(key: str, own_origins: Iterable[str]) -> str:
    """A page of the blog by its path alone, another one by `//host/path`. What is no http(s) URL
    stays as it is."""
    match = re.fullmatch("(?is)(https?:)?//([^/?#]*)(.*)", key)
    if not match:
        return key
    scheme, written_host, path = match.groups()
    host = host_of(f"{scheme or ''}//{written_host}")
    if host in map(host_of, own_origins):
        return "/" + path.lstrip("/")
    return f"//{host}{path or '/'}"


def without_tracking(url: str) -> str:
    """A URL without tracking parameters, and without the fragment unless it is a route (`#/`,
    `#!`). A route loses the heading that docsify adds: `#/guide?id=section`."""
    base, _, fragment = url.partition("#")
    url = without_parameters(base, is_tracking)
    if fragment.startswith("/"):
        return f"{url}#{without_parameters(fragment, is_heading)}"
    return f"{url}#{fragment}" if fragment.startswith("!") else url


def without_parameters(url: str, goes: Callable[[str], bool]) -> str:
    path, _, query = url.partition("?")
    kept = [each for each in query.split("&") if each and not goes(each)]
    return f"{path}?{'&'.join(kept)}" if kept else path


def is_tracking(parameter: str) -> bool:
    return TRACKING.match(parameter) is not None


def is_heading(parameter: str) -> bool:
    """Whether it names a heading within a route of docsify, and not the id of a page, such as
    `#/post?id=7`. `embed.js` has the same rules as one pattern."""
    if not parameter.startswith("id="):
        return False
    value = parameter.removeprefix("id=")
    if value[:1].isdigit():  # docsify puts `_` before one
        return False
    is_long_number = re.fullmatch("[0-9a-f-]{16,}", value) and re.search("[0-9]", value)
    if is_long_number:  # in hexadecimal, such as a UUID
        return False
    # docsify makes headings lower-case. Bytes that are encoded in hexadecimal may have upper case.
    return re.fullmatch("(?s)(?:%[0-9A-Fa-f]{2}|[^%A-Z])*", value) is not None


def unquoted(text: str) -> str:
    """Percent-decoded where that gives UTF-8. Reserved and control characters stay encoded. A `%`
    that encodes nothing becomes `%25`: otherwise it could encode with what follows it."""

    def decode(match: re.Match[str]) -> str:
        decoded = urllib.parse.unquote(match[0], errors="surrogateescape")
        return "".join(map(encode_reserved, decoded))

    return re.sub(r"(?:%[0-9A-Fa-f]{2})+|%", decode, text)


def encode_reserved(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte that is no UTF-8
        return f"%{ord(character) - 0xDC00:02X}"
    if character in RESERVED or has_controls(character):
        return urllib.parse.quote(character, safe="")
    return character


def quoted_url(page_url: str) -> str:
    """A URL as browsers send it. Brackets stay as they are, though RFC 3986 allows none: browsers
    keep them, and the widget would take `%5B` for another page."""
    return urllib.parse.quote(page_url, safe=RESERVED)


def with_sub_delimiters(key: str) -> str:
    """A URL with `!$&'()*+,:;=@` as such in its path, where their encoded forms mean the same."""
    path, rest = split_path(key)
    if not path.startswith("/"):
        return key
    found = re.match("//[^/]*", path)
    host = found[0] if found else ""
    decoded = SUB_DELIMITERS.sub(lambda code: urllib.parse.unquote(code[0]), path[len(host) :])
    return host + decoded + rest


def without_index(key: str) -> str:
    """A URL without `index.html` and slashes at the end of the path, and slashes at the end of a
    route of docsify. The root is `/`."""
    path, rest = split_path(key)
    while path.endswith(("/", "/index.html")):
        path = path.removesuffix("/index.html").rstrip("/")
    query, mark, docsify_route = rest.partition("#/")
    if mark:
        route_path, route_query = split_path(docsify_route)
        docsify_route = route_path.rstrip("/") + route_query
        rest = f"{query}#/{docsify_route}" if docsify_route else query
    return (path or "/") + rest


def split_path(url: str) -> tuple[str, str]:
    """The path, and the query and fragment with their marks."""
    path = re.split(r"[?#]", url, maxsplit=1)[0]
    return path, url[len(path) :]


def page_link(page_url: str, origins: Strings) -> str:
    """The URL that opens a page. "" if there is none."""
    if origins and re.match("/(?!/)", page_url):
        page_url = origins[0] + page_url
    return value_or_empty(proper_website, quoted_url(page_url))


def is_foreign(page_url: str, origins: Strings) -> bool:
    """Whether a page is on a host that the owner did not name."""
    origin = re.match("(?i)https?://[^/?#]*", page_url)
    return origin is not None and host_of(origin[0]) not in map(host_of, origins)


def readable_page(page_url: str, origins: Strings, most: int) -> str:
    """The path of a page as people read it, a long one without its middle. Of a page elsewhere, the
    URL."""
    shown = unquoted(page_url)
    if is_foreign(page_url, origins):
        return shortened(shown, most)
    path = re.sub("(?i)^https?://[^/?#]*", "", shown) or "/"
    return without_middle(path, most)


def name_of_page(title: str, page_url: str, origins: Strings, most: int = 120) -> str:
    """What a page is called in a sentence: its title, or its path if it has none."""
    return shortened(title, most) if title else readable_page(page_url, origins, most)


def own_link(page_url: str, origins: Strings) -> str:
    """The same as `page_link`, for the owner's pages alone: readers are sent nowhere else."""
    if is_foreign(page_url, origins):
        return ""
    return page_link(page_url, origins)


def comment_link(link: str, comment_id: int) -> str:
    """The URL of a comment on its page. "" if nothing opens that. A page that is itself a fragment
    route stays as it is."""
    if not link or "#" in link:
        return link
    return f"{link}#comment-{comment_id}"


# -- Markdown -----------------------------------------------------------------

# Punctuation beyond ASCII that ends a bare URL: quotes, brackets, full-width and CJK marks, and
# those of Arabic, Hindi, Thai and other languages; also hidden marks, and symbols such as emoji.
# Hyphens, middle dots and joiners may stand within a URL, since they stand within words.
ENDS_URL = (
    "\xa1\xa6-\xa9\xab\xac\xae-\xb1\xb4\xb6\xbb\xbf\u037e\u0589\u05c0\u05c3\u060c\u061b-\u061f"
    "\u06d4\u0964\u0965\u0e4f\u0e5a\u0e5b\u104a\u104b\u1362-\u1368\u17d4-\u17d6\u200b"
    "\u200e\u200f\u2014-\u203e\u2041-\u206f\u2190-\u2bff\u2e00-\u2e7f\u3001-\u3004"
    "\u3008-\u3020\u3030\u303d\ufd3e\ufd3f\ufe10-\ufe19\ufe30-\ufe6f\ufeff-\uff0f\uff1a-\uff20"
    "\uff3b-\uff40\uff5b-\uff65\uffe0-\uffff\U0001f000-\U0001faff"
)
# What no URL holds, within a class of characters.
NOT_IN_URL = rf"\s<>\"`\[\]{ENDS_URL}"
# Before text of another script. A soft hyphen is none: pages that hyphenate leave them within URLs.
BEFORE_TEXT = r"(?= [^\0-\x7f\xad] )"
# A host that text follows without a space, as in Chinese: the URL ends with it.
HOST_BEFORE_TEXT = rf"""
    [^/?\#{NOT_IN_URL}]*?
    (?:
        # Behind a top-level domain or an IPv4 address, unless one more label comes:
        # `https://github.com是`, but not `https://github.com是.cn`.
        \. (?: [A-Za-z]{{2,}} | [0-9]{{1,3}} ) {BEFORE_TEXT}
        (?! [^\s/?\#.{ENDS_URL}]*+ \. [^\W_] )
    |
        # Behind a port: `http://localhost:80是`.
        : [0-9]{{1,5}} {BEFORE_TEXT}
    )
"""
# All else behind the scheme: it goes on for as long as there are characters of URLs.
HOST_AND_PATH = rf"""
    (?:
        [^{NOT_IN_URL},;!*')]
    |
        # These end it before text: `(https://example.com)好`.
        [,;!*')] (?! [^\0-\x7f] )
    |
        # A bracket belongs to it together with its partner: `?x[]=1`.
        \[ [^{NOT_IN_URL}]* \]
    )+
"""
# In (?x:…), so that these two can stand within other patterns.
AFTER_SCHEME = rf"(?x: (?= [^\W_] ) (?: {HOST_BEFORE_TEXT} | {HOST_AND_PATH} ) )"
URL_IN_TEXT = rf"(?x: (?<! [A-Za-z0-9] ) [Hh][Tt][Tt][Pp][Ss]?:// {AFTER_SCHEME} )"
# Not part of a URL at its end, though it may stand within one.
AFTER_URL = "?!.,:;*_~'\\\xad\u200c\u200d\u2010\u2011\u2012\u2013\xb7\u30fb"
ENTITY_AT_END = re.compile(r"&[A-Za-z0-9]{1,32};\Z")


def parse_bare_url(
    inline: mistune.InlineParser, match: re.Match[str], state: mistune.InlineState
) -> int:
    """A rule of mistune for a URL without brackets. It adds a node to those that mistune has found
    (mistune calls them tokens), and returns where the rest of the text begins."""
    url = bare_url(match)
    if state.in_link or state.depth >= inline.max_nested_level:
        inline.process_text(url, state)
    else:
        node = {
            "type": "link",
            "children": [{"type": "text", "raw": url}],
            "attrs": {"url": mistune.util.escape_url(url)},
            # What mistune shows in its place where it turns out to stand in the text of a link.
            "_autolink": url,
        }
        state.append_token(node)
    return match.start() + len(url)


def bare_url(match: re.Match[str]) -> str:
    """The URL where a pattern for one has matched. It ends as GitHub Flavored Markdown has it, but
    also where text follows that has no spaces between words, as in Chinese."""
    url = match[0]
    # The pattern stops at a bracket before another script, but it may close one of the URL.
    if match.string.startswith(")", match.end()) and url.count("(") > url.count(")"):
        url += ")"
    return url_alone(url)


def url_alone(text: str) -> str:
    """A URL without the punctuation that only follows it: `/a).` is `/a`, `/a_(b)` stays."""
    unmatched = text.count(")") - text.count("(")
    end = len(text)
    while end:
        last = text[end - 1]
        if entity := ENTITY_AT_END.search(text, max(0, end - 34), end):
            end = entity.start()
        elif last == ")" and unmatched > 0:
            unmatched -= 1
            end -= 1
        elif last in AFTER_URL:
            end -= 1
        else:
            break
    return text[:end]


# Characters of Chinese, Japanese and Korean with their punctuation, and selectors of variants.
CJK = (
    "\u1100-\u11ff\u2e80-\u303e\u3040-\ua4cf\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe6f"
    "\uff01-\uffee\U0001aff0-\U0001b16f\U00020000-\U0003ffff\U000e0100-\U000e01ef"
)
# CommonMark decides by the characters beside asterisks whether these begin or end emphasis, and
# expects a space behind punctuation. Chinese has none. In `**你好。**世界`, the second asterisks
# stand between a full stop and a character of a word. There CommonMark lets them end no emphasis.
# Between two characters of words they end it. So this character, which counts as one of a word, is
# put between the full stop and the asterisks before mistune looks for emphasis, and taken out
# afterwards. It is an Egyptian hieroglyph that no comment needs.
SILENT_CHARACTER = "\U00013428"
ASTERISKS = re.compile(r"\*+")


class CommentInline(mistune.InlineParser):
    """Links bare URLs, and finds bold and italic text also beside the punctuation of Chinese,
    Japanese and Korean: these languages have no spaces there, which CommonMark expects
    (commonmark-spec#650)."""

    def __init__(self, *, finds_urls: bool) -> None:
        super().__init__()
        if finds_urls:
            self.register("bare_url", URL_IN_TEXT, parse_bare_url, start_chars=["H", "h"])

    def finalize_tokens(self, nodes: list[Json], depth: int) -> list[Json]:
        """Lets mistune find the emphasis in a paragraph (mistune's own name for that). Meanwhile,
        the text has silent characters where the rules of markdown-cjk-friendly need them."""
        text = "".join(map(text_of_node, nodes))
        if "*" not in text or text.isascii() or SILENT_CHARACTER in text:
            return super().finalize_tokens(nodes, depth)
        start = 0
        for node in nodes:
            end = start + len(text_of_node(node))
            # mistune says `_emphasis: False` where a backslash took the meaning of asterisks.
            if node["type"] == "text" and node.get("_emphasis", True):
                node["raw"] = with_silent_characters(text, start, end)
            start = end
        nodes = super().finalize_tokens(nodes, depth)
        remove_silent_characters(nodes)
        return nodes


def text_of_node(node: Json) -> str:
    """The text of a node, or one character for what is no text."""
    if node["type"] == "text":
        return str(node["raw"])
    return "\n" if node["type"] in ("softbreak", "linebreak") else "\ufffc"


def with_silent_characters(text: str, start: int, end: int) -> str:
    """`text[start:end]`, with a silent character beside each asterisk that needs one."""
    written = ""
    position = start
    for asterisks in ASTERISKS.finditer(text, start, end):
        before = text[asterisks.start() - 1 : asterisks.start()] or "\n"
        after = text[asterisks.end() : asterisks.end() + 1] or "\n"
        near_cjk = bool(re.search(f"[{CJK}]", before + after))
        written += text[position : asterisks.start()]
        written += silent_character(before, near_cjk)
        written += asterisks[0]
        written += silent_character(after, near_cjk)
        position = asterisks.end()
    return written + text[position:end]


def silent_character(neighbour: str, near_cjk: bool) -> str:
    """What stands between asterisks and the character beside them."""
    if neighbour.isalnum() or neighbour.isspace():
        return ""
    # Vowel signs and other marks are no punctuation, but mistune takes them for such: `**नमस्ते**जी`.
    is_punctuation = unicodedata.category(neighbour)[0] in "PS"
    return SILENT_CHARACTER if near_cjk or not is_punctuation else ""


def remove_silent_characters(nodes: list[Json]) -> None:
    """Removes silent characters from the nodes themselves, and from what is emphasised in them."""
    left = [*nodes]
    while left:
        node = left.pop()
        if node["type"] == "text":
            node["raw"] = node["raw"].replace(SILENT_CHARACTER, "")
        elif node["type"] in ("emphasis", "strong"):
            left += node["children"]


class CommentRenderer(mistune.HTMLRenderer):
    """Renders headings, images and nested links as text that reads well, since the allow-list of
    `clean` would drop them."""

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        return f"<p><strong>{text}</strong></p>\n"

    def softbreak(self) -> str:
        return "<br>\n"  # people press Enter where they mean it

    def link(self, text: str, url: str, title: str | None = None) -> str:
        # An image in a link has become a link in a link.
        bare = re.sub(r"</?a\b[^>]*>", "", text)
        return super().link(bare, with_decoded_host(url))

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return self.link(text or html.escape(url), url)

    def block_code(self, code: str, info: str | None = None) -> str:
        # mistune fails on a space that was written as an entity.
        return super().block_code(code, html.unescape(info or "").strip())


def with_decoded_host(url: str) -> str:
    """A URL whose host is written as people write it: `https://中文.example`, which mistune has
    percent-encoded. Many programs cannot read a host that is encoded so."""
    match = re.match(r"(?i)(https?://)([^/?#]+)(.*)", url)
    if not match:
        return url
    scheme, host, rest = match.groups()
    decoded = re.sub("(?i)(?:%[89a-f][0-9a-f])+", lambda found: unquoted(found[0]), host)
    return f"{scheme}{decoded}{rest}"


def markdown_with(inline: mistune.InlineParser) -> mistune.Markdown:
    return mistune.Markdown(
        renderer=CommentRenderer(escape=True),
        inline=inline,
        plugins=[mistune.plugins.import_plugin("strikethrough")],
    )


MARKDOWN = markdown_with(CommentInline(finds_urls=True))
# The other one stops at each h, to see whether a URL begins there.
MARKDOWN_WITHOUT_URLS = markdown_with(CommentInline(finds_urls=False))
# Lines of characters that have no meaning in Markdown. `_` and `://` can have one: see `is_plain`.
# `*+` and `++` never go back, so the time grows with the length of the text alone.
PLAIN_LINES = re.compile(
    r"""(?x)
    (?:
        # No digit at the beginning, nor a hyphen: they could begin a list.
        (?! [\d_] ) [\w"'(“‘《（「]
        [\w ,.!?'"():;/%@+=\-，。！？、：；“”‘’《》（）「」…—～]*+
        # Two spaces at the end would break the line.
        (?<! [ ] )
        # At most one empty line, and none after the last line.
        (?: \n{1,2} (?= . ) | \Z )
    )++
    """
)


def is_plain(content: str) -> bool:
    """Whether nothing in a text has a meaning in Markdown."""
    may_have_meaning = "_" in content or "://" in content
    return not may_have_meaning and PLAIN_LINES.fullmatch(content) is not None


def safe_html(content: str) -> str:
    """Markdown to HTML that can only look like text: no images, no styles, no ids, absolute links.
    It never fails: text that the renderer cannot handle is escaped."""
    if is_plain(content):
        # What the renderer makes of it. Half of all comments are such, and this takes a twentieth
        # of the time.
        paragraphs = [each.replace("\n", "<br>\n") for each in content.split("\n\n")]
        return "".join(f"<p>{each}</p>\n" for each in paragraphs)
    try:
        render = MARKDOWN if "://" in content else MARKDOWN_WITHOUT_URLS
        markup = clean(str(render(content)))
    except Exception:
        log.exception("Markdown could not be rendered, so it is shown as text")
        return plain_html(content)
    # Nested quotes make 17 characters of HTML from one: a list of them would fill the memory.
    if len(markup) > 10 * len(content) + 1000:
        return plain_html(content)
    return markup


def plain_html(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")


LANGUAGE_OF_CODE = re.compile(r"(?ai)(?<!\S)lang(?:uage)?-([a-z0-9][a-z0-9+#-]{0,19})(?!\S)")


def safe_attribute(tag: str, attribute: str, value: str) -> str | None:
    """An absolute link, the language of code (other products add further classes), or the number
    that a list begins with."""
    if attribute == "class":
        language = LANGUAGE_OF_CODE.search(value)
        return f"language-{language[1].lower()}" if language else None
    # `http:x` has a scheme and is relative all the same.
    is_absolute = re.match(r"(?i)https?://[^/\s]|mailto:", value)
    if attribute == "href" and not is_absolute:
        return None
    if attribute == "start" and not re.fullmatch("[0-9]{1,9}", value):
        return None
    return value


TAGS = {"p", "br", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "hr"}


@functools.cache
def cleaner() -> nh3.Cleaner:
    """Made once: that takes longer than to clean a comment."""
    return nh3.Cleaner(
        tags=TAGS,
        attributes={"a": {"href"}, "code": {"class"}, "ol": {"start"}, "*": set()},
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        attribute_filter=safe_attribute,
        link_rel="nofollow ugc noopener noreferrer",
    )


def clean(markup: str) -> str:
    """HTML reduced to what can only look like text. Rows are cleaned when they are written. The
    feed and the thread page clean them again, since an older nh3 may have let something pass then.
    The widget has an allow-list of its own."""
    return cleaner().clean(markup)


# -- Translations -------------------------------------------------------------

# The code says what it prints, logs and raises in English. `static/terminal/` has the translations.


def terminal_language(environ: Mapping[str, str]) -> str:
    names = ("LC_ALL", "LC_MESSAGES", "LANG")  # in the order that POSIX gives them
    return next(filter(None, map(environ.get, names)), "")


@dataclass(frozen=True)
class Translation:
    """The translation of a text such as `commentd {} serves {} on {}`, where each `{}` stands for a
    value."""

    english: str
    translation: str  # with `{}` for each value, in the same order

    def of(self, text: str) -> str | None:
        """The translation of that text with any values; None for another text."""
        # To compile a pattern takes long: most texts begin in another way.
        if not text.startswith(self.english.partition("{}")[0]):
            return None
        pattern = re.escape(self.english).replace(re.escape("{}"), "(.*)")
        match = re.fullmatch(pattern, text)
        return self.translation.format(*match.groups()) if match else None


@functools.cache
def translations() -> dict[str, list[Translation]]:
    """All translations to each language."""
    found = {}
    for file in (static_folder() / "terminal").iterdir():
        texts: dict[str, str] = json.loads(file.read_bytes())
        found[file.stem] = [Translation(*pair) for pair in texts.items()]
    return found


def translated(text: str, language: str) -> str:
    """An English text in Chinese, for `zh` and its variants; as it is for other languages. It comes
    with its values in it: so what is raised, logged or tested is plain English, and no part needs
    to know who reads it."""
    for each in translations().get(known_language(language), []):
        if translation := each.of(text):
            return translation
    return text


# -- Templates ----------------------------------------------------------------


def escaped_value(text: str) -> str:
    """A value in a template, as HTML or XML. It holds no brace: what a blog puts into its pages
    goes through template engines such as Caddy's, which would run a text in braces."""
    return str(bottle.html_escape(text)).replace("{", "&#123;")


@functools.cache
def templates() -> dict[str, bottle.SimpleTemplate]:
    """The templates in `static/`, which escape their variables, by name."""
    return {
        path.name: template_in(path)
        for path in static_folder().iterdir()
        if path.suffix in (".html", ".txt", ".xml")
    }


def template_in(path: Path) -> bottle.SimpleTemplate:
    """The template in a file, which may name others in the same folder."""
    text = path.read_text("utf-8")
    return bottle.SimpleTemplate(text, lookup=[path.parent], escape_func=escaped_value)


def filled_template(name: str, **values: Any) -> str:
    """The text of a template in `static/` that is no HTML, so that nothing is escaped."""
    template = bottle.SimpleTemplate(name=name, lookup=[static_folder()], noescape=True)
    return str(template.render(values))


# -- Settings -----------------------------------------------------------------

# A parser takes the text of a setting and returns its value, or raises `ValueError` with the rule
# that the text breaks.
Parser = Callable[[str], Any]


def without_quotes(text: str) -> str:
    """The text without quotes around it, which a file of settings does not need."""
    found = re.fullmatch(r"""(?s)"([^"]*)"|'([^']*)'|“([^“”]*)”|‘([^‘’]*)’|「([^「」]*)」""", text)
    return text[1:-1].strip() if found else text


def narrow(text: str) -> str:
    """A text with ASCII in place of the full-width letters, digits and signs that Chinese keyboards
    type: `https：／／` becomes `https://`."""
    return unicodedata.normalize("NFKC", text).replace("。", ".")


def whole_number(least: int, most: int) -> Parser:
    def parse(text: str) -> int:
        text = narrow(text)
        if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return parse


def one_of(*choices: str) -> Parser:
    def parse(text: str) -> str:
        choice = narrow(text).lower()
        if choice not in choices:
            raise ValueError(f"must be one of: {', '.join(choices)}")
        return choice

    return parse


def parse_language_or_account(text: str) -> str:
    """Reads the names of the languages when it is called: nothing reads files at import."""
    parse = one_of("account", *sorted(language_files()))
    return str(parse(text))


def parse_choice(text: str) -> str:
    """The name in lower case. Which chats there are is known further below."""
    return narrow(text).lower()


def parse_yes_or_no(text: str) -> bool:
    states = configparser.ConfigParser.BOOLEAN_STATES  # also 1, true and on
    answer = narrow(text).lower()
    if answer not in states:
        raise ValueError("must be yes or no")
    return states[answer]


def list_of(parse_item: Parser, separator: str = r"[\s,，、]") -> Parser:
    """Items between what `separator` matches: commas, Chinese ones too, or white space."""

    def parse(text: str) -> tuple[Any, ...]:
        items = map(str.strip, re.split(separator, text))
        return tuple(parse_item(without_quotes(item)) for item in items if item)

    return parse


def with_ascii_host(url: str) -> str:
    """The URL with its host as browsers send it: `https://xn--9krq6q.cn` for `https://博客.cn`."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}://{ascii_host(host.lower())}{slash}{path}"


def parse_origin(text: str) -> str:
    """Where a blog lives, as a browser names it in the header Origin: `https://blog.example`. Of a
    URL with a path only that is taken."""
    url = narrow(text)
    scheme, _, rest = url.partition("://")
    host = re.split("[/?#]", rest, maxsplit=1)[0]
    without_path = with_ascii_host(f"{scheme}://{host}")
    if not re.fullmatch(r"(?a)https?://([\w.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?", without_path):
        raise ValueError(f"{text}: write it as {probable_url(url) or 'https://blog.example'}")
    return f"{scheme.lower()}://{host_of(without_path)}"


def probable_url(text: str) -> str:
    """What somebody meant who left out the scheme. "" if that is no host."""
    is_host = re.fullmatch(r"([\w-]+\.)+[^\W\d_]{2,}(:[0-9]{1,5})?(/.*)?", text)
    return with_ascii_host(f"https://{text.partition('/')[0]}") if is_host else ""


def parse_base_url(text: str) -> str:
    url = narrow(text)
    if not url:
        return url
    url = with_ascii_host(url) if "://" in url else url
    if not re.fullmatch(r"(?a)https?://[\w.:\[\]-]+(/[\w.~%-]*)*", url):
        meant = probable_url(url) or "https://comments.example"
        raise ValueError(f"must be a URL such as {meant}")
    return parse_web_page(url).rstrip("/")


def parse_web_page(text: str) -> str:
    if not text:
        return text
    is_whole = value_or_empty(proper_website, text) == text  # with its scheme
    if not is_whole or not re.fullmatch("https?://[^/?#]+([/?#][!-~]*)?", text):
        raise ValueError("must be a URL such as https://blog.example/privacy/")
    return text


def parse_network(text: str) -> str:
    """An IP address, a network, or `unix` for whatever connects through the socket file."""
    try:
        proxy = narrow(text)
        return proxy if proxy == "unix" else str(ipaddress.ip_network(proxy))
    except ValueError:
        raise ValueError(
            f"{text}: write an IP address (127.0.0.1), a network (10.0.0.0/8), or unix"
        ) from None


def parse_listen(text: str) -> str:
    pattern = r"unix:/[\w./@+-]+|(?:\[[0-9A-Fa-f:]+\]|[^:\[\]\s]+):([0-9]{1,5})"
    listen = narrow(text).removeprefix("http://").rstrip("/")
    found = re.fullmatch(pattern, listen)
    if not found or int(found[1] or 0) > 65535:
        raise ValueError("must be host:port, such as 127.0.0.1:8080 (up to 65535), or unix:/path")
    return listen


def host_and_port(text: str) -> tuple[str, int]:
    """The port is 0 if there is none."""
    found = re.fullmatch(r"\[([^\]]*)\](?::(\d+))?|([^:]*)(?::(\d+))?", text)
    if not found:  # an IPv6 address without brackets
        return text, 0
    return found[1] or found[3] or "", int(found[2] or found[4] or 0)


def reached_at(place: str) -> str:
    """The host and port, or the URL, at which this machine reaches what listens on that one. What
    listens on all IP addresses has none of its own."""
    place = re.sub(r"^(http://)?0\.0\.0\.0(?=:)", r"\g<1>127.0.0.1", place)
    return re.sub(r"^(http://)?\[::\](?=:)", r"\g<1>[::1]", place)


def parse_smtp_host(text: str) -> str:
    """A host, with a port if the owner wrote it here: `smtp.example.com` or `[::1]:25`."""
    host = re.sub(r"(?i)^(https?|smtps?|ssl|tls)://", "", narrow(text)).rstrip("/")
    name, _ = host_and_port(host)
    if not re.fullmatch(r"[\w.-]*|[0-9a-fA-F:.]+", name):
        raise ValueError("must be a host, such as smtp.example.com")
    return host


def parse_signing_key(text: str) -> str:
    # RFC 7518, section 3.2: a key for HS256 has at least the size of the hash.
    if text and len(text.encode()) < 32:
        raise ValueError("must have at least 32 bytes; `openssl rand -hex 32` makes one")
    return text


# Names of China's time that the time zone database does not have.
CHINESE_TIME = {
    *("beijing", "asia/beijing", "beijing time", "peking", "china", "china standard time"),
    *("北京", "北京时间", "中国", "中国标准时间", "东八区", "上海"),
    *("北京時間", "中國", "中國標準時間", "東八區"),
}


def zone_named(text: str) -> tzinfo | None:
    """A zone of the system's time zone database, whose name may lack its continent (Berlin), or an
    offset (UTC+8). None stands for the zone of this machine."""
    name = narrow(text)
    if not name:
        return None
    if name.lower() in CHINESE_TIME:
        return ZoneInfo("Asia/Shanghai")
    return zone_with_offset(name) or zone_in_database(name)


def zone_with_offset(name: str) -> tzinfo | None:
    """The zone that `UTC+8`, `GMT -3:30` or `+0800` names. None for another text."""
    offset = re.fullmatch(r"(?i)(?:utc|gmt)? ?([+-])(\d{1,2})(?::?(\d\d))?", name)
    if not offset:
        return None
    minutes = 60 * int(offset[2]) + int(offset[3] or 0)
    if minutes >= 24 * 60:
        return None
    return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))


def zone_in_database(name: str) -> ZoneInfo:
    with contextlib.suppress(KeyError, ValueError, OSError):
        return ZoneInfo(name)
    wanted = name.lower().replace(" ", "_")
    for known in sorted(available_timezones()):
        city = known.rpartition("/")[2]
        if wanted in (known.lower(), city.lower()):
            return ZoneInfo(known)
    raise ValueError("must be a time zone such as Europe/Berlin or Asia/Shanghai")


MAILBOX = re.compile(
    r"(?ai)([^<>]*<)?[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@([\w-]+\.)*[\w-]+>?"
)


def parse_mailbox(text: str) -> str:
    """`comments@example.com`, or `Name <comments@example.com>`."""
    text = one_line(text)
    if text and not MAILBOX.fullmatch(text):
        raise ValueError("must be an email address, such as comments@example.com")
    return text


def parse_contact(text: str) -> str:
    """An email address, or an https page, as a URI (RFC 9116, section 2.5.3)."""
    if text.startswith("https://") or not text:
        return parse_web_page(text)
    return "mailto:" + proper_email(text.removeprefix("mailto:"))


def parse_recipient(text: str) -> str:
    """An email address, or `nobody`."""
    return text if text == "nobody" else proper_email(text)


def parse_owner(text: str) -> str:
    return proper_email(text) if text else text


parse_recipients = list_of(parse_recipient)


@dataclass(frozen=True)
class PageRule:
    """Who gets the emails about some pages in place of those who get all others."""

    pattern: str  # of the URLs of these pages; `*` stands for any text
    recipients: Strings

    def __str__(self) -> str:
        return f"{self.pattern} = {', '.join(self.recipients)}"


def parse_page_rule(text: str) -> PageRule:
    pattern, _, names = text.rpartition("=")
    recipients = parse_recipients(names)
    if not pattern.strip() or not recipients:
        raise ValueError(f"{text}: write it as /photos/* = ann@example.com, or = nobody")
    return PageRule(pattern.strip(), recipients)


def minute_of_day(text: str) -> int:
    """`18:30` as minutes after midnight."""
    found = re.fullmatch(r"([01]?[0-9]|2[0-3]):([0-5][0-9])", text)
    if not found:
        raise ValueError(f"{text}: write a time such as 18:30")
    return 60 * int(found[1]) + int(found[2])


def clock_time(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


@dataclass(frozen=True)
class Digest:
    """The time of the one email a day about all comments, in minutes after midnight."""

    minute: int

    def __str__(self) -> str:
        return f"daily {clock_time(self.minute)}"


def parse_digest(text: str) -> Digest | None:
    """`daily 18:00`. None for no digest."""
    time_text = narrow(text).lower()
    if time_text in ("", "no"):
        return None
    return Digest(minute_of_day(time_text.removeprefix("daily").strip()))


@dataclass(frozen=True)
class QuietHours:
    """When the owner wants no messages, in minutes after midnight. The end may be in the morning
    of the next day."""

    begin: int
    end: int

    def __str__(self) -> str:
        return f"{clock_time(self.begin)}-{clock_time(self.end)}"

    def hold(self, minute: int) -> bool:
        if self.begin < self.end:
            return self.begin <= minute < self.end
        return minute >= self.begin or minute < self.end


def parse_quiet_hours(text: str) -> QuietHours | None:
    """`22:00-08:00`. None for no quiet hours."""
    if not text:
        return None
    begin, *rest = re.split(" *[-–—~至] *", narrow(text))
    if len(rest) != 1 or begin == rest[0]:
        raise ValueError(f"{text}: write it as 22:00-08:00")
    return QuietHours(minute_of_day(begin), minute_of_day(rest[0]))


def parse_webhook_secret(text: str) -> str:
    """A text, or `whsec_` and base64 as Standard Webhooks has it."""
    if not text:
        return text
    try:
        key = webhook_key(text)
    except ValueError:
        key = b""
    if not key:
        raise ValueError("must be base64 after whsec_")
    return text


def webhook_key(secret: str) -> bytes:
    """What messages are signed with: the bytes that the setting stands for."""
    if secret.startswith("whsec_"):
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    return secret.encode()


LOOPBACK_HOST = re.compile(r"(?i)localhost|127(\.\d{1,3}){3}|::1")


def is_loopback(host: str) -> bool:
    """Whether a host of the settings is this machine."""
    return LOOPBACK_HOST.fullmatch(host) is not None


def is_safe_for_secrets(url: str) -> bool:
    """Whether a secret may go there: by https, or within this machine, where owners try things."""
    try:
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port  # `ValueError` for one that no server can have
    except ValueError:
        return False
    is_inside = parts.scheme == "http" and is_loopback(host)
    has_user = "@" in parts.netloc  # whose name nothing here sends
    return bool(host) and not has_user and (parts.scheme == "https" or is_inside)


def parse_issuer(text: str) -> str:
    """The URL of an identity provider, as the provider itself writes it: some end in a slash."""
    url = narrow(text)
    if not url:
        return url
    url = with_ascii_host(url) if "://" in url else url
    is_url = re.fullmatch(r"(?a)https?://([\w.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?(/[\w.~%/-]*)?", url)
    if not is_url or not is_safe_for_secrets(url):
        meant = probable_url(url) or "https://accounts.google.com"
        raise ValueError(f"must be an https URL such as {meant}")
    return url


def setting(help_text: str, parse: Parser = str, default: str = "", *, secret: bool = False) -> Any:
    """A field of `Config`. `default` is written as in the file."""
    return field(
        default=parse(default), metadata={"help": help_text, "parse": parse, "secret": secret}
    )


@dataclass(frozen=True)
class LoginProvider:
    """A service that says who a reader is, such as GitHub. Each has a section `[login.NAME]`, and
    its `client_id` is COMMENTD_LOGIN_NAME_CLIENT_ID in the environment."""

    name: str
    kind: str = setting(
        "What the provider speaks: github, mastodon, or oidc (OpenID Connect: Google, GitLab,\n"
        "Microsoft, your own server). NAME is a word of your choice. The provider's redirect URL\n"
        "is public_url, then /auth/callback/NAME. `commentd help login` has each step.",
        one_of("oidc", "github", "mastodon"),
        "oidc",
    )
    client_id: str = setting("What the provider calls your service.")
    client_secret: str = setting("The secret that it gave you with that.", secret=True)
    issuer: str = setting(
        "The URL of the provider, as it writes it itself: https://accounts.google.com.\n"
        "For github, only where GitHub is your own.",
        parse_issuer,
    )
    label: str = setting("The name on the button. Empty: GitHub for github, else NAME.", one_line)

    @property
    def shown_name(self) -> str:
        if self.label:
            return self.label
        return "GitHub" if self.kind == "github" else self.name.capitalize()


def parse_lines(text: str) -> str:
    """Lines as they are written."""
    return text


@dataclass(frozen=True)
class ChatSettings:
    """A chat or push service that gets messages about comments. Each has a section `[chat.NAME]`,
    and its `token` is COMMENTD_CHAT_NAME_TOKEN in the environment. The section `[webhook]` is one
    without a name."""

    name: str
    kind: str = setting(
        "The service: bark, dingtalk, discord, feishu, gotify, lark, matrix, mattermost, ntfy,\n"
        "pushplus, rocketchat, serverchan, slack, telegram or wecom; template (you write what is\n"
        "sent); or json. NAME is a word of your choice. `commentd help chats` has each step.",
        parse_choice,
    )
    url: str = setting(
        "The URL that the service gave you, or that of your own server. For ntfy it ends in the\n"
        "topic. Not needed for pushplus, serverchan and telegram, nor for bark with its own app.",
        parse_web_page,
        secret=True,
    )
    token: str = setting(
        "The key that the service gave you: bark, gotify, matrix, pushplus, serverchan, telegram;\n"
        "ntfy if the topic needs one.",
        secret=True,
    )
    to: str = setting(
        "Where messages go there: the number of the chat for telegram, the room for matrix, the\n"
        "code of a group for pushplus (empty: you)."
    )
    secret: str = setting(
        "The key that signs messages: dingtalk, feishu and lark if the robot has one; json.",
        parse_webhook_secret,
        secret=True,
    )
    keyword: str = setting(
        "A word that the robot wants in each message: dingtalk, feishu and lark, if you set one.",
        one_line,
    )
    interactive: str = setting(
        "For telegram: buttons act without opening a page, and your reply to a message is posted.\n"
        "no; polling (this service asks Telegram); or webhook (Telegram calls public_url).",
        one_of("no", "polling", "webhook"),
        "no",
    )
    users: Strings = setting(
        "Who may press the buttons and reply: the numbers of Telegram users. Needed in a group;\n"
        "in a chat with the bot alone, it is you.",
        list_of(str),
    )
    admin: str = setting(
        "The admin in whose name replies are posted: an email address. Empty: the only admin.",
        parse_owner,
    )
    method: str = setting("For template: POST, PUT or GET.", one_of("post", "put", "get"), "post")
    headers: str = setting(
        "For template: headers, one a line: Authorization: Bearer KEY.", parse_lines, secret=True
    )
    body: str = setting(
        "For template: what is sent. Here and in url, these words in braces stand for what they\n"
        "say, escaped as JSON, a form or a URL has it: title, text, author, page, link, approve,\n"
        "spam, delete.",
        parse_lines,
        secret=True,
    )
    success: str = setting(
        'For template: what the response holds if the message was taken, such as "code":0.\n'
        "Empty: its status says so.",
        parse_lines,
    )

    @property
    def section(self) -> str:
        return f"[chat.{self.name}]" if self.name else "[webhook]"

    @property
    def recipient(self) -> str:
        """What stands in the place of an email address."""
        return f"chat.{self.name}" if self.name else "webhook"


# The settings of a section `[login.NAME]`, and of a section `[chat.NAME]`.
LOGIN_SETTINGS = {each.name: each for each in fields(LoginProvider) if each.metadata}
CHAT_SETTINGS = {each.name: each for each in fields(ChatSettings) if each.metadata}
# By the first word of such sections.
SETTINGS_OF_SECTIONS = {"login": LOGIN_SETTINGS, "chat": CHAT_SETTINGS}


@dataclass(frozen=True)
class Config:
    """Every setting. `mail_host` is `host` under `[mail]`, and COMMENTD_MAIL_HOST, which wins.
    After a change, run `LANG=C commentd example > commentd.example.ini`."""

    server_listen: str = setting(
        "Where to listen: host:port, or unix:/path for a socket file.",
        parse_listen,
        "127.0.0.1:8080",
    )
    server_public_url: str = setting(
        "The URL under which readers reach this service, such as https://comments.example.\n"
        "When it is set, the page at / is off (see demo).",
        parse_base_url,
    )
    server_trusted_proxy: Strings = setting(
        "The proxy in front, whose X-Forwarded-For is believed: its IP address as this service\n"
        "sees it (127.0.0.1 for nginx or Caddy on the same machine), networks, or unix.",
        list_of(parse_network),
    )
    server_fast: bool = setting(
        "Cache public responses for some seconds, and use the inside of waitress to be fast. no:\n"
        "slower, and nothing is cached. Slow clients and odd requests are refused all the same.",
        parse_yes_or_no,
        "yes",
    )
    server_metrics: bool = setting(
        "Show counts at /metrics, for Prometheus.", parse_yes_or_no, "no"
    )
    database_path: str = setting(
        "The database file; relative to this file's folder.", default="commentd.db"
    )
    site_origins: Strings = setting(
        "The blogs that may embed comments, one a line: https://blog.example. Empty: any.",
        list_of(parse_origin),
    )
    site_name: str = setting("The name of the blog, for emails. Empty: its host.", one_line)
    site_timezone: tzinfo | None = setting(
        "The time zone of statistics, and of dates where no script knows that of the reader:\n"
        "Europe/Berlin, for instance. Empty: that of this machine.",
        zone_named,
    )
    site_demo: bool = setting(
        "Keep the demo at / although public_url is set.", parse_yes_or_no, "no"
    )
    site_picture: str = setting(
        "A picture of you for the comments of admins: a PNG, JPEG or WebP file of at most 100 kB."
    )
    site_contact: str = setting(
        "The security contact in /.well-known/security.txt: an email address or an https page.",
        parse_contact,
    )
    token_key: str = setting(
        "The key that signs logins, 32 bytes or more. Empty: made at the first start and kept in\n"
        "the database. Set here, it is in no backup; each service needs its own.",
        parse_signing_key,
        secret=True,
    )
    mail_provider: str = setting(
        "How emails leave: smtp; or by HTTPS, where a host blocks SMTP: resend, postmark, brevo,\n"
        "mailgun, sendgrid, ses or webhook (a program of your own).",
        parse_choice,
        "smtp",
    )
    mail_api_key: str = setting(
        "The key that the provider gave you for its API. For ses, the secret access key.",
        secret=True,
    )
    mail_api_url: str = setting(
        "Where emails go by HTTPS. Empty: the provider's usual URL. For mailgun in the EU:\n"
        "https://api.eu.mailgun.net. For ses: https://email.REGION.amazonaws.com. For webhook:\n"
        "that of your program.",
        parse_web_page,
    )
    mail_host: str = setting(
        "The mail server (SMTP). Empty: emails are printed to the terminal.", parse_smtp_host
    )
    mail_port: int = setting(
        "Its port. 0: 587; 465 for tls; 25 for none.", whole_number(0, 65535), "0"
    )
    mail_security: str = setting(
        "How the connection is protected: starttls, tls or none. Never falls back to plain text.",
        one_of("starttls", "tls", "none"),
        "starttls",
    )
    mail_user: str = setting(
        "The user name at the mail server. Empty: no login. For ses, the access key ID."
    )
    mail_password: str = setting("The password there.", secret=True)
    mail_sender: str = setting(
        "The sender: an email address, or Name <address>. Empty: the user.", parse_mailbox
    )
    captcha_provider: str = setting(
        "The captcha: altcha (a proof of work that this service checks by itself);\n"
        "turnstile, hcaptcha or recaptcha (v2 and v3; readers and this service then talk to that\n"
        "company); or none (any non-empty token passes).",
        one_of("altcha", "turnstile", "hcaptcha", "recaptcha", "none"),
        "altcha",
    )
    captcha_site_key: str = setting("The site key that the captcha's provider gave you.")
    captcha_secret: str = setting("The secret key that belongs to it.", secret=True)
    captcha_verify_url: str = setting(
        "Where tokens are checked. Empty: the provider's usual URL. In China, reCAPTCHA is at\n"
        "https://www.recaptcha.net/recaptcha/api/siteverify.",
        parse_web_page,
    )
    comments_max_length: int = setting(
        "Characters a comment may have.", whole_number(1, 10_000), "2000"
    )
    comments_page_size: int = setting(
        "Comments on a page of the API's lists, without `limit`. The widget has its own `limit`.",
        whole_number(1, 100),
        "6",
    )
    comments_login_required: bool = setting("Only accounts may comment.", parse_yes_or_no, "no")
    comments_protect_names: bool = setting(
        "Refuse names that look like an account's, as those that look like an admin's always are.",
        parse_yes_or_no,
        "no",
    )
    comments_edit_minutes: int = setting(
        "Minutes in which authors may edit their comments. 0: never.",
        whole_number(0, 525_600),
        "15",
    )
    comments_close_after_days: int = setting(
        "Days after which a page takes no more comments, counted from when it was first seen or\n"
        "last reopened. 0: never.",
        whole_number(0, 36_500),
        "0",
    )
    moderation_hold: str = setting(
        "Which comments wait for your approval: none; links (with a link, or from an author who\n"
        "gave a website); email (of a guest who gave an email address, until its holder says by a\n"
        "link in an email that they wrote it); first (the first of each author); all.",
        one_of("none", "links", "email", "first", "all"),
        "none",
    )
    moderation_words: Strings = setting(
        "Comments with one of these words or phrases wait; separated by commas or newlines.",
        list_of(str, "[\n,，、]"),
    )
    moderation_keep_days: int = setting(
        "Days for which spam and deleted comments are kept, so that you can restore them.",
        whole_number(1, 36_500),
        "30",
    )
    notify_language: str = setting(
        "The language of emails and messages to you, such as de or zh-tw, or\n"
        "account (that in which the recipient last signed in at /admin).",
        parse_language_or_account,
        "account",
    )
    notify_owner: Strings = setting(
        "Who gets an email about new comments: email addresses, or nobody. Empty: all admins.",
        parse_recipients,
    )
    notify_pages: tuple[PageRule, ...] = setting(
        "Other recipients for some pages, one line each; the first that matches counts:\n"
        "/photos/* = ann@example.com, bob@example.com, or = nobody.",
        list_of(parse_page_rule, "\n"),
    )
    notify_digest: Digest | None = setting(
        "daily 18:00: one email a day to you, at that time of [site] timezone, with all comments\n"
        "that wait and what is new. No email on a day without comments. Empty: emails at once.",
        parse_digest,
    )
    notify_quiet: QuietHours | None = setting(
        "22:00-08:00: no email and no message about comments comes to you in these hours. What\n"
        "came meanwhile follows at their end.",
        parse_quiet_hours,
    )
    webhook_url: str = setting(
        "The URL that gets each new comment, and each report of one, at once. Slack, Discord and\n"
        "Feishu give you one for a webhook. For Telegram, it is\n"
        "https://api.telegram.org/botTOKEN/sendMessage?chat_id=NUMBER with your bot's token.",
        parse_web_page,
        secret=True,
    )
    webhook_kind: str = setting(
        "The format: json (for programs of your own), or that of slack, discord, telegram, feishu\n"
        "and others. For several at once, there are sections [chat.NAME].",
        parse_choice,
        "json",
    )
    webhook_secret: str = setting(
        "The key that signs it, for feishu and json. For json, make one as Standard Webhooks\n"
        "wants it: `echo whsec_$(openssl rand -base64 32)`. Empty: no signature.",
        parse_webhook_secret,
        secret=True,
    )
    webhook_rebuild_url: str = setting(
        "The URL that has your site built again, such as a build hook of Netlify or Cloudflare\n"
        "Pages: for sites that have the comments in their files. It is called after changes.",
        parse_web_page,
        secret=True,
    )
    webhook_rebuild_minutes: int = setting(
        "How many minutes pass from a change to that call, and between two calls at least.",
        whole_number(1, 1440),
        "10",
    )
    privacy_show_ip: str = setting(
        "An author's IP address in the API: masked, full or none. The widget never shows it, and\n"
        "admins see all of it.",
        one_of("masked", "full", "none"),
        "masked",
    )
    privacy_show_location: bool = setting(
        "Look up and show the place of an author (country; in China the city).",
        parse_yes_or_no,
        "yes",
    )
    privacy_keep_ip_days: int = setting(
        "Days after which IP addresses are masked in the database too, and likes are anonymised.\n"
        "0: after an hour.",
        whole_number(0, 36_500),
        "30",
    )
    privacy_policy_url: str = setting(
        "The URL of your privacy policy, shown where comments are written.", parse_web_page
    )
    geo_file: str = setting(
        "A file of your own with better location data, in MaxMind's format (.mmdb). It needs\n"
        "`pip install maxminddb`."
    )
    limits_enabled: bool = setting(
        "Limit how often a client may write, and treat a repeated comment as the same one.",
        parse_yes_or_no,
        "yes",
    )
    backup_folder: str = setting(
        "Where backups are kept; relative to this file's folder.", default="backups"
    )
    backup_every: int = setting(
        "Hours between two backups that the service makes by itself. 0: none.",
        whole_number(0, 8760),
        "24",
    )
    backup_keep: int = setting(
        "How many are kept; the oldest are deleted first.", whole_number(1, 1000), "7"
    )
    login_site_key: str = setting(
        "The key with which your own site signs its readers in, 32 bytes or more. Empty: it does\n"
        "not. `commentd help login` has an example.",
        parse_signing_key,
        secret=True,
    )
    login_providers: tuple[LoginProvider, ...] = ()  # the sections `[login.NAME]`
    chat_sections: tuple[ChatSettings, ...] = ()  # the sections `[chat.NAME]`

    @property
    def database(self) -> Path:
        """The file itself, also where the path in the settings leads through symbolic links: the
        locks and the -wal stand beside the file, so all who use it must name it the same."""
        return Path(self.database_path).resolve()

    @property
    def chats(self) -> list[ChatSettings]:
        """All that get messages: the section `[webhook]` if it has a URL, and the others."""
        webhook = ChatSettings(
            "", kind=self.webhook_kind, url=self.webhook_url, secret=self.webhook_secret
        )
        return [*([webhook] if self.webhook_url else []), *self.chat_sections]

    @property
    def knows_others(self) -> bool:
        """Whether identity providers, or the owner's own site, sign readers in."""
        return bool(self.login_providers or self.login_site_key)

    @property
    def blog_name(self) -> str:
        """`[site] name`. The host of the blog if the owner set none."""
        if self.site_name:
            return self.site_name
        url = self.site_origins[0] if self.site_origins else self.server_public_url
        return urllib.parse.urlsplit(url).netloc or "commentd"

    @property
    def sender(self) -> Address:
        """Who emails come from. Without a mail server, there may be no address yet."""
        text = self.mail_sender or self.mail_user
        if not MAILBOX.fullmatch(text):
            text = "commentd@localhost"
        name, _, address = text.rpartition("<")
        shown = name.strip('" ') or self.blog_name
        return Address(shown, addr_spec=address.rstrip("> "))

    @property
    def listens_on_file(self) -> bool:
        return self.server_listen.startswith("unix:")

    @property
    def public_host(self) -> str:
        """The host of `public_url`, which tells several blogs of one process apart."""
        parts = urllib.parse.urlsplit(self.server_public_url)
        return host_of(f"{parts.scheme}://{parts.netloc}")

    @property
    def service_url(self) -> str:
        """Where readers reach the service. "" if only a proxy knows."""
        if self.server_public_url or self.listens_on_file:
            return self.server_public_url
        return f"http://{reached_at(self.server_listen)}"


SETTINGS = {each.name: each for each in fields(Config) if each.metadata}


def setting_named(name: str) -> Field[Any] | None:
    """The setting that an entry is about. None if there is none."""
    section, _, key = name.partition("_")
    sort, dot, _ = section.partition(".")
    if dot:
        return SETTINGS_OF_SECTIONS.get(sort, {}).get(key)
    return SETTINGS.get(name)


# What the parts demand of settings that are valid one by one: each rule yields what is wrong.
RULES: list[Callable[[Config], Iterator[str]]] = []


def rule(find_faults: Callable[[Config], Iterator[str]]) -> Callable[[Config], Iterator[str]]:
    """Has `load_config` ask a function what is wrong."""
    RULES.append(find_faults)
    return find_faults


def name_in_file(name: str) -> str:
    """A setting as the file has it: `[mail] host` for `mail_host`."""
    section, _, key = name.partition("_")
    return f"[{section}] {key}"


@dataclass(frozen=True)
class Entry:
    """A setting that the owner has written. `name`: `mail_host`, or `login.NAME_client_id`."""

    name: str
    text: str
    file: Path | None  # None: it stands in the environment
    spelling: str  # as it is named there: `[section] key`, or the variable

    @property
    def source(self) -> str:
        return f"{self.file}: {self.spelling}" if self.file else self.spelling


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The settings of the file and the environment. `SettingsError` lists all that is wrong."""
    language = terminal_language(environ)
    in_file = [*file_entries(path, language)]
    values, errors = values_and_errors([*in_file, *environment_entries(environ)], language)
    config = Config(**values)
    for find_faults in RULES:
        errors += [translated(fault, language) for fault in find_faults(config)]
    if errors:
        raise SettingsError("\n".join(errors))
    if path:
        warn_if_others_can_read(path, in_file)
    return with_paths_in(path.parent if path else Path(), config)


def values_and_errors(entries: list[Entry], language: str) -> tuple[Json, list[str]]:
    """The values by the names of the settings, and what is wrong with the other texts."""
    values: Json = {}
    errors: list[str] = []
    for entry in entries:
        try:
            values[entry.name] = parsed(entry.name, entry.text)
        except ValueError as error:
            reason = translated(str(error), language)
            if " #" in entry.text:
                reason += translated(" (a comment needs a line of its own)", language)
            errors.append(f"{entry.source}: {reason}")
    providers = sections_in(values, "login.")
    values["login_providers"] = tuple(LoginProvider(name, **keys) for name, keys in providers)
    chats = sections_in(values, "chat.")
    values["chat_sections"] = tuple(ChatSettings(name, **keys) for name, keys in chats)
    return values, errors


def sections_in(values: Json, start: str) -> list[tuple[str, Json]]:
    """Takes the settings of the sections such as `[login.NAME]` out of all values, in their order:
    the names, each with its settings."""
    sections: dict[str, Json] = {}
    for entry_name in [*values]:
        if entry_name.startswith(start):
            section, _, key = entry_name.partition("_")
            sections.setdefault(section, {})[key] = values.pop(entry_name)
    return [(section.removeprefix(start), keys) for section, keys in sections.items()]


def warn_if_others_can_read(path: Path, entries: list[Entry]) -> None:
    settings = [setting_named(entry.name) for entry in entries]
    has_secret = any(each and each.metadata["secret"] for each in settings)
    if has_secret and path.stat().st_mode & 0o077:
        log.warning("%s holds a secret and others can read it: run chmod 600 on it", path)


def with_paths_in(folder: Path, config: Config) -> Config:
    """The settings, with relative paths read from a folder."""
    paths: Json = {}
    for name in ("database_path", "backup_folder", "geo_file", "site_picture"):
        if file := getattr(config, name):
            paths[name] = str(folder / file)
    return replace(config, **paths)


def parsed(name: str, text: str) -> Any:
    """The value of a setting. `ValueError` if there is no such setting, or if the text is wrong.
    Control characters would steer the terminal of `check`, and add lines to what `example systemd`
    prints, which root runs in part."""
    setting_field = setting_named(name)
    if setting_field is None:
        raise ValueError(no_such_setting(name))
    parse = setting_field.metadata["parse"]
    is_free_text = parse is str  # such as a path or a password: nothing else looks at it
    # Elsewhere the parser says what a line break or a tab means: a list may have an item a line.
    checked = text if is_free_text else re.sub(r"[\n\t]", " ", text)
    if has_controls(checked):
        raise ValueError("must be one line, without control characters")
    # A password may have quotes.
    is_password = is_free_text and setting_field.metadata["secret"]
    return parse(text if is_password else without_quotes(text))


def file_entries(path: Path | None, language: str = "en") -> Iterator[Entry]:
    parser = configparser.ConfigParser(interpolation=None, default_section="\0")
    try:
        text = path.read_text("utf-8-sig") if path else ""
        parser.read_string(text, source=str(path))
    except (OSError, UnicodeError, configparser.Error) as error:
        reason = translated(reading_error(error), language)
        raise SettingsError(f"{path}: {reason}") from None
    for section in parser.sections():
        for key, text in parser.items(section):
            yield Entry(f"{section}_{key}", text, path, f"[{section}] {key}")


def reading_error(error: Exception) -> str:
    """Why a file could not be read, without its lines, which may hold secrets."""
    if isinstance(error, configparser.DuplicateSectionError):
        return f"line {error.lineno}: [{error.section}] is there twice: write each section once"
    if isinstance(error, configparser.DuplicateOptionError):
        return f"line {error.lineno}: [{error.section}] {error.option} is there twice"
    if isinstance(error, configparser.MissingSectionHeaderError):
        return f"line {error.lineno}: a [section] must come first"
    if isinstance(error, configparser.ParsingError):
        return f"line {error.errors[0][0]}: write key = value"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8: save it in that encoding"
    return getattr(error, "strerror", None) or " ".join(str(error).split())


# In a cluster with a Service that is called commentd, Kubernetes gives each container these, too
# (kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
OF_KUBERNETES = re.compile(
    r"COMMENTD_(\w+_)?(SERVICE_HOST=[0-9a-f.:]+|SERVICE_PORT(_\w+)?=\d+"
    r"|PORT(_\d+_(TCP|UDP|SCTP))?=(tcp|udp|sctp)://\S+"
    r"|PORT_\d+_(TCP|UDP|SCTP)_(PROTO=\w+|PORT=\d+|ADDR=[0-9a-f.:]+))"
)


def environment_entries(environ: Mapping[str, str]) -> Iterator[Entry]:
    for variable, text in environ.items():
        is_setting = variable.startswith("COMMENTD_")
        if is_setting and not OF_KUBERNETES.fullmatch(f"{variable}={text}"):
            name = variable.removeprefix("COMMENTD_").lower()
            # No key of a section `[login.NAME]` ends like another one, so NAME may hold a `_`.
            for sort, keys in SETTINGS_OF_SECTIONS.items():
                for key in keys:
                    name = re.sub(f"^{sort}_(.+)_{key}$", rf"{sort}.\1_{key}", name)
            yield Entry(name, text.strip(), None, variable)


def no_such_setting(name: str) -> str:
    """An error message that names the setting which was probably meant."""
    import difflib  # here, as only a wrong setting needs it

    if name.endswith(("_http", "_https")):
        return "there is no such setting; does it go on from the line before? Then indent it"
    section = name.partition("_")[0]
    sort, dot, _ = section.partition(".")
    known = [*SETTINGS]
    if dot:
        known = [f"{section}_{key}" for key in SETTINGS_OF_SECTIONS.get(sort, {})]
    nearest = difflib.get_close_matches(name, known, 1)
    if nearest:
        return f"there is no such setting; did you mean {name_in_file(nearest[0])}?"
    return "there is no such setting; `commentd example` prints them all"


@rule
def digest_faults(config: Config) -> Iterator[str]:
    digest = config.notify_digest
    if digest and config.notify_quiet and config.notify_quiet.hold(digest.minute):
        yield "[notify] digest is in the hours of [notify] quiet: choose another time"


@rule
def site_key_faults(config: Config) -> Iterator[str]:
    if config.login_site_key and not config.server_public_url:
        yield "[login] site_key needs [server] public_url: tokens are made for it"
    if config.login_site_key and equal_in_constant_time(config.login_site_key, config.token_key):
        yield "[login] site_key must not be [token] key: it would sign any login"


@rule
def proxy_faults(config: Config) -> Iterator[str]:
    proxies = config.server_trusted_proxy
    if {"0.0.0.0/0", "::/0"} & {*proxies}:
        yield "[server] trusted_proxy trusts everyone: name the proxy"
    if proxies and ("unix" in proxies) != config.listens_on_file:
        yield "[server] trusted_proxy must be unix where listen is unix:…, and only there"


SECTION_NAME = re.compile("[a-z0-9-]{1,32}")


@rule
def login_faults(config: Config) -> Iterator[str]:
    for provider in config.login_providers:
        name = provider.name
        if not SECTION_NAME.fullmatch(name):
            rule_of_names = "write a name of small letters and digits, such as [login.github]"
            yield f"[login.{name}]: {rule_of_names}"
        needed = ["client_id", "client_secret"]
        if provider.kind != "github":
            needed.append("issuer")
        for key in needed:
            if not getattr(provider, key):
                yield f"[login.{name}] needs {key}"
        for other in ("server_public_url", "site_origins"):
            if not getattr(config, other):
                yield f"[login.{name}] needs {name_in_file(other)}"


def example_config(language: str) -> str:
    """The text of `commentd.example.ini`: every setting with its help and its default."""
    title = "Settings of commentd. Copy to commentd.ini and take the # from what you change."
    lines = [f"# {translated(title, language)}"]
    example = replace(
        Config(), login_providers=(LoginProvider("NAME"),), chat_sections=(ChatSettings("NAME"),)
    )
    for each in settings_in_effect(example, language):
        section = f"[{each.section}]"
        if section not in lines:
            lines += ["", section]
        help_text = each.help_text.replace("\n", "\n# ")
        lines += [f"# {help_text}", f"#{each.key} = {each.text}".rstrip()]
    return "\n".join(lines) + "\n"


def ini_text(value: Any) -> str:
    """The value of a setting as the file has it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)


@dataclass(frozen=True)
class SettingInEffect:
    """A setting as the owner sees it."""

    section: str
    key: str
    text: str  # its value as the file has it; a secret is hidden
    changed: bool  # whether it is not the default
    help_text: str

    def for_admins(self) -> Json:
        return {
            "section": self.section,
            "key": self.key,
            "value": self.text,
            "changed": self.changed,
            "help": self.help_text,
        }


def settings_in_effect(config: Config, language: str) -> Iterator[SettingInEffect]:
    for name, setting_field in SETTINGS.items():
        section, _, key = name.partition("_")
        yield setting_in_effect(section, key, getattr(config, name), setting_field, language)
    for provider in config.login_providers:
        section = f"login.{provider.name}"
        for key, setting_field in LOGIN_SETTINGS.items():
            yield setting_in_effect(section, key, getattr(provider, key), setting_field, language)
    for chat in config.chat_sections:
        section = f"chat.{chat.name}"
        for key, setting_field in CHAT_SETTINGS.items():
            yield setting_in_effect(section, key, getattr(chat, key), setting_field, language)


def setting_in_effect(
    section: str, key: str, value: Any, setting_field: Field[Any], language: str
) -> SettingInEffect:
    text = ini_text(value)
    if text and setting_field.metadata["secret"]:
        text = translated("(hidden)", language)
    changed = value != setting_field.default
    help_text = translated(setting_field.metadata["help"], language)
    return SettingInEffect(section, key, text, changed, help_text)


# Several blogs in one process


@dataclass(frozen=True)
class BlogSettings:
    """What a settings file and the environment say of a blog. Without a file, that is all from the
    environment."""

    file: Path | None
    config: Config


SETTINGS_OF_PROCESS = ("server_listen", "server_trusted_proxy", "server_fast")
# What one environment variable would give to all blogs.
SETTINGS_OF_ONE_BLOG = ("server_public_url", "database_path", "token_key")


def as_one_process(blogs: list[BlogSettings], environ: Mapping[str, str]) -> list[BlogSettings]:
    """The settings of several blogs in one process: those of the process are the first one's.
    `SettingsError` lists what is wrong."""
    errors = [
        f"{entry.spelling}: each of several blogs needs its own {name_in_file(entry.name)}: "
        "write it in its file"
        for entry in environment_entries(environ)
        if entry.name in SETTINGS_OF_ONE_BLOG
    ]
    if not errors:  # with such a variable, the blogs would also be the same
        errors = [*errors_of_blogs(blogs)]
    if errors:
        raise SettingsError("\n".join(errors))
    first = blogs[0].config
    of_process = {key: getattr(first, key) for key in SETTINGS_OF_PROCESS}
    return [BlogSettings(blog.file, replace(blog.config, **of_process)) for blog in blogs]


def errors_of_blogs(blogs: list[BlogSettings]) -> Iterator[str]:
    first = blogs[0].config
    for number, blog in enumerate(blogs):
        if not blog.config.server_public_url:
            yield f"{blog.file}: of several blogs, each needs its [server] public_url"
        for other in blogs[:number]:
            yield from errors_of_two(blog, other)
        for key in SETTINGS_OF_PROCESS:
            if getattr(blog.config, key) not in (getattr(first, key), getattr(Config(), key)):
                text = f"{name_in_file(key)} is for all blogs: write it in the first file only"
                yield f"{blog.file}: {text}"


def errors_of_two(blog: BlogSettings, other: BlogSettings) -> Iterator[str]:
    """What two blogs in one process cannot both have."""
    config = blog.config
    if config.server_public_url and config.public_host == other.config.public_host:
        yield f"{blog.file}: [server] public_url has the same host as in {other.file}"
    if config.database == other.config.database:
        yield f"{blog.file}: [database] path is the same as in {other.file}"
    key = config.token_key
    if key and equal_in_constant_time(key, other.config.token_key):
        yield f"{blog.file}: [token] key is the same as in {other.file}"


# -- Schema -------------------------------------------------------------------

# In the header of the file (sqlite.org/pragma.html#pragma_application_id): "cmnd".
APPLICATION_ID = 0x636D6E64

# SQL, or a function where rows are repaired.
Migration = str | Callable[[sqlite3.Connection], None]

# The first N of these make version N of the schema. A released migration is never edited; the first
# one is released with 0.1.0. A new column needs a field in the class of its rows, in Store.
MIGRATIONS: list[Migration] = [
    f"""
    PRAGMA application_id = {APPLICATION_ID};

    CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;

    -- When the service last did or saw something that it must know after a restart, or that
    -- `commentd check` asks for.
    CREATE TABLE state (
        name TEXT PRIMARY KEY,
        time INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE account (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        email      TEXT NOT NULL UNIQUE,
        nickname   TEXT NOT NULL,
        password   TEXT NOT NULL,
        role       TEXT NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'admin')),
        version    INTEGER NOT NULL DEFAULT 1,
        created_at INTEGER NOT NULL,
        blocked    INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1)),
        language   TEXT NOT NULL DEFAULT '',
        -- What an admin's authenticator app makes its codes from. Empty if they have none.
        app_key    TEXT NOT NULL DEFAULT '',
        -- The time step of the last of these codes: each is good once.
        app_step   INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX account_role ON account (role, nickname);

    -- Codes that an admin keeps for the day on which the authenticator app is lost, as hashes.
    CREATE TABLE recovery_code (
        user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        hash    TEXT NOT NULL,
        PRIMARY KEY (user_id, hash)
    ) STRICT, WITHOUT ROWID;

    -- Where admins are signed in. A token for /admin names its row, and is void if that is gone.
    CREATE TABLE admin_session (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        user_id    INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        device     TEXT NOT NULL,
        ip         TEXT NOT NULL,
        country    TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        seen_at    INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX admin_session_of_user ON admin_session (user_id);
    CREATE INDEX admin_session_seen ON admin_session (seen_at);

    -- What the nicknames of accounts look like: all that `skeletons` gives for them. Who took a
    -- look first has the lowest id.
    CREATE TABLE taken_look (
        id       INTEGER PRIMARY KEY AUTOINCREMENT,
        skeleton TEXT NOT NULL,
        user_id  INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX taken_look_skeleton ON taken_look (skeleton, id);
    CREATE INDEX taken_look_length ON taken_look (length(skeleton));
    CREATE INDEX taken_look_user ON taken_look (user_id);

    -- The networks that an account signed in from last, as keyed hashes.
    CREATE TABLE known_network (
        user_id INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        network TEXT NOT NULL,
        seen_at INTEGER NOT NULL,
        PRIMARY KEY (user_id, network)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX known_network_seen ON known_network (seen_at);

    -- As whom identity providers know the holder of an account. `issuer`: the provider's URL.
    CREATE TABLE joined_identity (
        issuer    TEXT NOT NULL,
        subject   TEXT NOT NULL,
        user_id   INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        joined_at INTEGER NOT NULL,
        PRIMARY KEY (issuer, subject)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX joined_identity_of_user ON joined_identity (user_id);

    -- Whom a provider has just named, until the widget fetches that. Stored are the hashes of the
    -- voucher, of the secret that the widget made, and of the state that began this.
    CREATE TABLE voucher (
        hash       TEXT PRIMARY KEY,
        secret     TEXT NOT NULL,
        state      TEXT NOT NULL UNIQUE,
        issuer     TEXT NOT NULL,
        subject    TEXT NOT NULL,
        email      TEXT NOT NULL,
        verified   INTEGER NOT NULL CHECK (verified IN (0, 1)),
        nickname   TEXT NOT NULL,
        language   TEXT NOT NULL,
        expires_at INTEGER NOT NULL,
        used       INTEGER NOT NULL DEFAULT 0 CHECK (used IN (0, 1))
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX voucher_expires ON voucher (expires_at);

    CREATE TABLE registration (
        id          INTEGER PRIMARY KEY,
        request_id  TEXT NOT NULL UNIQUE,
        email       TEXT NOT NULL,
        nickname    TEXT NOT NULL,
        password    TEXT NOT NULL,
        code        TEXT NOT NULL,
        client      TEXT NOT NULL,
        tries       INTEGER NOT NULL DEFAULT 0,
        named_tries INTEGER NOT NULL DEFAULT 0,
        language    TEXT NOT NULL DEFAULT '',
        created_at  INTEGER NOT NULL,
        expires_at  INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX registration_email ON registration (email);
    CREATE INDEX registration_created ON registration (created_at);
    CREATE INDEX registration_expires ON registration (expires_at);

    CREATE TABLE page (
        id         INTEGER PRIMARY KEY,
        key        TEXT NOT NULL UNIQUE,
        page_url   TEXT NOT NULL,
        title      TEXT NOT NULL DEFAULT '',
        -- Who said so: see TITLE_SOURCES.
        title_source TEXT NOT NULL DEFAULT ''
                   CHECK (title_source IN ('', 'held', 'comment', 'import', 'owner')),
        -- The comment that the title came with.
        title_comment_id INTEGER,
        -- Its comments that are visible.
        total      INTEGER NOT NULL DEFAULT 0,
        -- Its top-level comments that are shown.
        threads    INTEGER NOT NULL DEFAULT 0,
        views      INTEGER NOT NULL DEFAULT 0,
        page_likes INTEGER NOT NULL DEFAULT 0,
        seen_at    INTEGER NOT NULL,
        closed     INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),
        -- The page's age counts from here.
        opened_at  INTEGER NOT NULL DEFAULT 0,
        -- Raised with each change of its comments that readers could see.
        mark       INTEGER NOT NULL DEFAULT 0,
        -- The mark with which the newest of its deleted rows changed last.
        gone_mark  INTEGER NOT NULL DEFAULT 0,
        -- Whether the site must be built again, since more than likes has changed.
        needs_rebuild INTEGER NOT NULL DEFAULT 0 CHECK (needs_rebuild IN (0, 1))
    ) STRICT;
    CREATE INDEX page_needs_rebuild ON page (needs_rebuild) WHERE needs_rebuild = 1;
    CREATE INDEX page_seen ON page (seen_at);
    CREATE INDEX page_by_total ON page (total);
    CREATE INDEX page_by_views ON page (views);

    CREATE TABLE comment (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        page_id    INTEGER NOT NULL REFERENCES page (id),
        parent_id  INTEGER REFERENCES comment (id),
        -- The top-level comment above it. Null for one of these.
        thread_id  INTEGER REFERENCES comment (id),
        user_id    INTEGER REFERENCES account (id),
        nickname   TEXT NOT NULL,
        email      TEXT NOT NULL,
        website    TEXT NOT NULL,
        content    TEXT NOT NULL,
        html       TEXT NOT NULL,
        -- Whether an import brought HTML that says more than Markdown can.
        own_html   INTEGER NOT NULL DEFAULT 0 CHECK (own_html IN (0, 1)),
        ip         TEXT NOT NULL,
        country    TEXT NOT NULL,
        location   TEXT NOT NULL,
        likes      INTEGER NOT NULL DEFAULT 0,
        -- Its direct replies that are shown.
        replies    INTEGER NOT NULL DEFAULT 0,
        -- Whether it stands in lists: when it is visible, or as a tombstone above its replies.
        shown      INTEGER NOT NULL DEFAULT 0 CHECK (shown IN (0, 1)),
        status     TEXT NOT NULL CHECK (status IN ('visible', 'waiting', 'spam', 'deleted')),
        created_at INTEGER NOT NULL,
        -- Whether the IP address was shortened.
        masked     INTEGER NOT NULL DEFAULT 0 CHECK (masked IN (0, 1)),
        edited_at  INTEGER,
        pinned     INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
        -- Why it waits.
        held       TEXT NOT NULL DEFAULT '',
        language   TEXT NOT NULL DEFAULT '',
        -- When it became spam or was deleted.
        hidden_at  INTEGER,
        -- As what the spam filter learnt it.
        learnt     TEXT NOT NULL DEFAULT '' CHECK (learnt IN ('', 'ham', 'spam')),
        -- That of its page when readers last saw it change.
        mark       INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX comment_by_mark ON comment (page_id, mark);
    CREATE INDEX comment_by_time ON comment (page_id, status, created_at, id);
    CREATE INDEX comment_by_likes ON comment (page_id, status, likes, created_at, id);
    CREATE INDEX comment_by_status ON comment (status, id);
    CREATE INDEX comment_latest ON comment (status, created_at, id);
    CREATE INDEX comment_by_nickname ON comment (nickname, ip, status);
    CREATE INDEX comment_by_email ON comment (email) WHERE email <> '';
    CREATE INDEX comment_top_newest ON comment (page_id, shown, pinned, created_at, id)
        WHERE parent_id IS NULL;
    CREATE INDEX comment_top_oldest ON comment (page_id, shown, pinned DESC, created_at, id)
        WHERE parent_id IS NULL;
    CREATE INDEX comment_top_by_likes ON comment (page_id, shown, pinned, likes, created_at, id)
        WHERE parent_id IS NULL;
    CREATE INDEX comment_of_thread ON comment (thread_id, shown, created_at, id);
    CREATE INDEX comment_of_parent ON comment (parent_id) WHERE parent_id IS NOT NULL;
    CREATE INDEX comment_of_user ON comment (user_id) WHERE user_id IS NOT NULL;
    CREATE INDEX comment_unmasked ON comment (created_at) WHERE masked = 0;
    CREATE INDEX comment_hidden ON comment (hidden_at) WHERE hidden_at IS NOT NULL;
    CREATE INDEX comment_unlearnt ON comment (id) WHERE learnt = '' AND status = 'visible';

    -- Readers see these change, and the site must be built again.
    CREATE TRIGGER raise_mark
        AFTER UPDATE OF page_id, user_id, nickname, website, html, country, location, shown,
                        status, edited_at, pinned ON comment
        WHEN OLD.shown OR NEW.shown
    BEGIN
        UPDATE page SET mark = mark + 1, needs_rebuild = 1 WHERE id = NEW.page_id;
        UPDATE comment SET mark = (SELECT mark FROM page WHERE id = NEW.page_id) WHERE id = NEW.id;
    END;
    -- For likes alone, it is not built again.
    CREATE TRIGGER raise_mark_for_likes
        AFTER UPDATE OF likes ON comment
        WHEN OLD.shown OR NEW.shown
    BEGIN
        UPDATE page SET mark = mark + 1 WHERE id = NEW.page_id;
        UPDATE comment SET mark = (SELECT mark FROM page WHERE id = NEW.page_id) WHERE id = NEW.id;
    END;
    CREATE TRIGGER note_gone_mark AFTER DELETE ON comment WHEN OLD.mark > 0
    BEGIN
        UPDATE page SET gone_mark = max(gone_mark, OLD.mark) WHERE id = OLD.page_id;
    END;
    -- The badge of an author is the role of their account. The assignment changes nothing, but it
    -- runs the triggers above for each of their comments.
    CREATE TRIGGER change_badge AFTER UPDATE OF role ON account WHEN OLD.role <> NEW.role
    BEGIN
        UPDATE comment SET user_id = user_id WHERE user_id = NEW.id;
    END;

    -- `liked_at` is null for a like of an account, and for one that was anonymised.
    CREATE TABLE comment_liker (
        comment_id INTEGER NOT NULL REFERENCES comment (id),
        visitor    TEXT NOT NULL,
        liked_at   INTEGER,
        PRIMARY KEY (comment_id, visitor)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX comment_liker_time ON comment_liker (liked_at) WHERE liked_at IS NOT NULL;

    CREATE TABLE page_liker (
        page_id  INTEGER NOT NULL REFERENCES page (id),
        visitor  TEXT NOT NULL,
        liked_at INTEGER,
        PRIMARY KEY (page_id, visitor)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX page_liker_time ON page_liker (liked_at) WHERE liked_at IS NOT NULL;

    -- How often a subject used something in the time that ends then and is so many seconds long.
    CREATE TABLE rate_limit (
        name    TEXT NOT NULL,
        subject TEXT NOT NULL,
        seconds INTEGER NOT NULL,
        used    INTEGER NOT NULL,
        ends_at INTEGER NOT NULL,
        PRIMARY KEY (name, subject, seconds)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX rate_limit_ends ON rate_limit (ends_at);

    CREATE TABLE spent_captcha (
        signature  TEXT PRIMARY KEY,
        comment_id INTEGER REFERENCES comment (id),
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX spent_captcha_expires ON spent_captcha (expires_at);
    CREATE INDEX spent_captcha_comment ON spent_captcha (comment_id) WHERE comment_id IS NOT NULL;

    -- A row is an email or a webhook. A webhook has an event and, except for a rebuild, a comment.
    -- The reason of a report is looked up when its webhook is sent. `subscriber` is set for an
    -- email that asks a guest whether they want emails. An email that cannot be delivered stays
    -- for a while, so that the owner sees it. An id is never used again: whoever deletes one row
    -- must not delete another.
    CREATE TABLE outbox (
        id              INTEGER PRIMARY KEY AUTOINCREMENT,
        registration_id INTEGER REFERENCES registration (id) ON DELETE CASCADE,
        comment_id      INTEGER REFERENCES comment (id) ON DELETE CASCADE,
        report_id       INTEGER REFERENCES report (id) ON DELETE SET NULL,
        event           TEXT NOT NULL DEFAULT ''
                        CHECK (event IN ('', 'created', 'reported', 'rebuild')),
        subscriber      TEXT NOT NULL DEFAULT '',
        recipient       TEXT NOT NULL,
        subject         TEXT NOT NULL DEFAULT '',
        text            TEXT NOT NULL DEFAULT '',
        html            TEXT NOT NULL DEFAULT '',
        headers         TEXT NOT NULL DEFAULT '{{}}',
        created_at      INTEGER NOT NULL DEFAULT 0,
        tries           INTEGER NOT NULL DEFAULT 0,
        due_at          INTEGER,
        expires_at      INTEGER NOT NULL,
        failure         TEXT NOT NULL DEFAULT ''
    ) STRICT;
    CREATE INDEX outbox_due ON outbox (due_at);
    CREATE INDEX outbox_code_due ON outbox (due_at) WHERE registration_id IS NOT NULL;
    CREATE INDEX outbox_expires ON outbox (expires_at);
    CREATE INDEX outbox_registration ON outbox (registration_id);
    CREATE INDEX outbox_comment ON outbox (comment_id) WHERE comment_id IS NOT NULL;
    CREATE INDEX outbox_report ON outbox (report_id) WHERE report_id IS NOT NULL;

    -- News of one comment for one recipient. A row without a recipient stands for all of its
    -- audience until they are looked up. `outbox_id` is the email that carries the notification
    -- until it is sent.
    CREATE TABLE notification (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        comment_id INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        audience   TEXT NOT NULL CHECK (audience IN ('owner', 'author', 'holder', 'follower')),
        recipient  TEXT NOT NULL,
        due_at     INTEGER NOT NULL,
        outbox_id  INTEGER REFERENCES outbox (id) ON DELETE CASCADE
    ) STRICT;
    CREATE UNIQUE INDEX notification_pending ON notification (recipient, audience, comment_id)
        WHERE outbox_id IS NULL;
    CREATE INDEX notification_comment ON notification (comment_id);
    CREATE INDEX notification_outbox ON notification (outbox_id) WHERE outbox_id IS NOT NULL;

    -- A message in a chat that acts, about a comment whose text had that version. The owner's own
    -- replies there are such messages, too.
    CREATE TABLE chat_message (
        chat       TEXT NOT NULL,
        message_id INTEGER NOT NULL,
        comment_id INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        version    TEXT NOT NULL,
        PRIMARY KEY (chat, message_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX chat_message_comment ON chat_message (comment_id);

    -- The last thing that a chat has told the service, so that nothing is done twice.
    CREATE TABLE chat_update (
        chat      TEXT PRIMARY KEY,
        update_id INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- `subscriber` is the keyed hash of an email address; `page_id` 0 stands for all pages.
    CREATE TABLE subscription (
        subscriber TEXT NOT NULL,
        page_id    INTEGER NOT NULL,
        state      TEXT NOT NULL CHECK (state IN ('asked', 'yes', 'no')),
        PRIMARY KEY (subscriber, page_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX subscription_page ON subscription (page_id);

    -- Whose email address, as a keyed hash, gets no more questions about comments of guests.
    CREATE TABLE no_question (
        subscriber TEXT PRIMARY KEY
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE follow (
        user_id  INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        page_id  INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
        language TEXT NOT NULL,
        PRIMARY KEY (user_id, page_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX follow_page ON follow (page_id);

    CREATE TABLE report (
        id          INTEGER PRIMARY KEY,
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        UNIQUE (comment_id, visitor)
    ) STRICT;
    CREATE INDEX report_of_visitor ON report (visitor);
    CREATE INDEX report_of_comment ON report (comment_id, reported_at);

    CREATE TABLE block (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        kind       TEXT NOT NULL CHECK (kind IN ('address', 'email', 'domain', 'word')),
        value      TEXT NOT NULL,
        note       TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER,
        UNIQUE (kind, value)
    ) STRICT;

    -- What the spam filter has learnt: the keyed hash of a term, and in how many good (ham) and
    -- spam comments it was. The row with hash 0 counts the comments themselves.
    CREATE TABLE term (
        hash      INTEGER PRIMARY KEY,
        ham       INTEGER NOT NULL DEFAULT 0,
        spam      INTEGER NOT NULL DEFAULT 0,
        learnt_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX term_learnt ON term (learnt_at);

    CREATE TABLE audit (
        id         INTEGER PRIMARY KEY,
        created_at INTEGER NOT NULL,
        who        TEXT NOT NULL,
        action     TEXT NOT NULL,
        subject    TEXT NOT NULL,
        detail     TEXT NOT NULL
    ) STRICT;
    CREATE INDEX audit_created ON audit (created_at);

    CREATE TABLE admin_link (
        hash       TEXT PRIMARY KEY,
        email      TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    -- What a link in an email or a chat may do, and for which recipient: `subscriber` is the keyed
    -- hash of an email address. Stored is the keyed hash of the secret that stands in the link.
    CREATE TABLE short_link (
        hash       TEXT PRIMARY KEY,
        action     TEXT NOT NULL,
        undo       TEXT NOT NULL,
        comment_id INTEGER NOT NULL,
        version    TEXT NOT NULL,
        page_id    INTEGER NOT NULL,
        user_id    INTEGER NOT NULL,
        subscriber TEXT NOT NULL,
        language   TEXT NOT NULL,
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX short_link_expires ON short_link (expires_at);

    CREATE TABLE day (
        day      INTEGER PRIMARY KEY,
        comments INTEGER NOT NULL DEFAULT 0,
        views    INTEGER NOT NULL DEFAULT 0,
        likes    INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    -- Where an imported comment came from, so that it is not imported twice, even after it was
    -- deleted here. `comment_id` is 0 for a page.
    CREATE TABLE import (
        product    TEXT NOT NULL,
        product_id TEXT NOT NULL,
        comment_id INTEGER NOT NULL,
        PRIMARY KEY (product, product_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX import_comment ON import (comment_id);
    """
]


# Bringing a database up to date


def schema_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def run_statements(db: sqlite3.Connection, script: str, **values: Any) -> None:
    """Runs statements with the same values. Unlike `executescript`, it commits nothing."""
    statement = ""
    for piece in script.split(";"):
        statement += piece + ";"
        # A `;` within a string or a trigger ends no statement.
        if sqlite3.complete_statement(statement):
            db.execute(statement, values)
            statement = ""


def migrate(db: sqlite3.Connection, migrations: list[Migration] = MIGRATIONS) -> None:
    """Brings the database up to date, as a whole or not at all."""
    if schema_version(db) >= len(migrations):
        return
    # A migration may rebuild a table: with foreign keys on, dropping the old one would delete the
    # rows that refer to it. Inside a transaction this pragma does nothing.
    db.execute("PRAGMA foreign_keys = OFF")
    with db:
        db.execute("BEGIN IMMEDIATE")
        for version in range(schema_version(db), len(migrations)):
            migration = migrations[version]
            if isinstance(migration, str):
                run_statements(db, migration)
            else:
                migration(db)
            if db.execute("PRAGMA foreign_key_check").fetchone():
                raise SchemaError(f"migration {version + 1} leaves rows that point nowhere")
            db.execute(f"PRAGMA user_version = {version + 1}")
    db.execute("PRAGMA foreign_keys = ON")


# -- Database -----------------------------------------------------------------

# All that happens to the file: how it is opened and checked, locks between processes, backups and
# how they are restored, and `Database`, which is the file as a running program has it.

# Opening a file

PRAGMAS = (
    "busy_timeout = 5000",  # first: the next ones may have to wait
    "journal_mode = WAL",
    # FULL: what was acknowledged survives a power cut, not only a crash of the process.
    "synchronous = FULL",
    "journal_size_limit = 67108864",
    "secure_delete = ON",
    "trusted_schema = OFF",
    "foreign_keys = ON",
)


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode: a transaction begins with BEGIN. `Store` makes sure that no
    two threads use one at once."""
    # `rw`: a missing file is an error. An empty one would look like a blog without comments.
    uri = f"{path.absolute().as_uri()}?mode=rw"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        for pragma in PRAGMAS:
            db.execute(f"PRAGMA {pragma}")
    except BaseException:  # the file is no database
        db.close()
        raise
    db.row_factory = sqlite3.Row
    # One text with invalid UTF-8 must not make whole rows unreadable.
    db.text_factory = decoded
    return db


def count_tables(db: sqlite3.Connection) -> int:
    """The number of tables, indexes and triggers."""
    return int(db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0])


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextlib.contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that leaves the file as it is. `SchemaError` if the file cannot be read."""
    if size_of(Path(f"{path}-journal")):
        # Power was cut while SQLite changed the file without a -wal, as it does when the file is
        # new. The page that it was writing may hold anything: SQLite writes the old one back first.
        how = "mode=rw"
    elif is_running(path) or size_of(Path(f"{path}-wal")):
        how = "mode=ro"
    else:
        # This leaves no trace beside the file. But it does not see what is only in the -wal, nor
        # that somebody writes.
        how = "mode=ro&immutable=1"
    try:
        uri = f"{path.absolute().as_uri()}?{how}"
        with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
            yield db
    except sqlite3.OperationalError as error:
        raise SchemaError(
            f"{path} can't be opened: {str(error)!r}: may this user read it?"
        ) from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # the latter in a damaged schema
        raise SchemaError(
            f"{path} is damaged, or of another program ({str(error)!r}):"
            " restore a backup, or name another"
        ) from None


def is_empty(path: Path) -> bool:
    """Whether there is no database yet: no file, or one that was cut off while it was made."""
    if not size_of(path):
        return True
    with read_only(path) as db:
        return schema_version(db) == 0 and count_tables(db) == 0


def check_database_file(path: Path, *, thoroughly: bool = False) -> None:
    """`SchemaError`, without touching the file, if it is not a commentd database, is damaged, or
    was written by a newer version. A missing or empty file is fine. `thoroughly` takes longer: it
    compares each index with its table."""
    if not path.parent.is_dir():
        raise SchemaError(f"{path.parent}: there is no such folder for the database")
    if not size_of(path):
        return
    with read_only(path) as db:
        # These pragmas need no schema: a newer one may be beyond this version of SQLite.
        is_ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        page_size = db.execute("PRAGMA page_size").fetchone()[0]
        if not is_ours and db.execute("SELECT 1 FROM sqlite_schema").fetchone():
            raise SchemaError(
                f"{path} is a database of another program, or of commentd before 0.1.0:"
                " name another file, and import what the older commentd exports"
            )
        # A crash can cut the file while the -wal is emptied into it: the -wal still has the page.
        if size_of(path) % page_size and not size_of(Path(f"{path}-wal")):
            raise sqlite3.DatabaseError("its last page is cut")
        if schema_version(db) > len(MIGRATIONS):
            raise NewerDatabase(path)
        if thoroughly:
            result = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        else:
            result = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if result != "ok":
            raise sqlite3.DatabaseError(result)


def version_that_serves(path: Path) -> str:
    """The version of the program that serves a database, or did so last, as
    `Store.note_version` stored it; "" if none has. The file may be older or newer than this
    program."""
    with read_only(path) as db:
        row = db.execute("SELECT name FROM state WHERE name LIKE 'version %'").fetchone()
    return str(row[0]).removeprefix("version ") if row else ""


# Locks between processes


def open_lock_file(path: Path, suffix: str) -> sqlite3.Connection:
    """An empty file beside the database, which SQLite locks with BEGIN EXCLUSIVE. That works
    wherever SQLite does, and the system releases the lock when the process dies."""
    try:
        Path(f"{path}{suffix}").touch(0o600)
    except OSError as error:
        raise SchemaError(
            f"{path.absolute().parent} can't be written ({error.strerror}):"
            " the user who runs commentd must own it"
        ) from None
    return sqlite3.connect(f"{path}{suffix}", check_same_thread=False, isolation_level=None)


def is_running(path: Path) -> bool:
    """Whether a service holds its lock on the database. The lock is neither made nor taken."""
    uri = f"{path.absolute().as_uri()}-lock?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(uri, timeout=0, uri=True)) as db:
            db.execute("SELECT 1 FROM sqlite_schema")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    return False


def process_that_serves(path: Path) -> int:
    """The id of the process of the service, which holds its lock; 0 if that is not to be seen, as
    where the service is in a container or the system is not Linux."""
    try:
        inode = os.stat(f"{path}-lock").st_ino
        locks = Path("/proc/locks").read_text("ascii")
    except OSError:
        return 0
    # `1: POSIX  ADVISORY  WRITE 2021 fd:01:1311 1073741826 1073742335`
    for process, file in re.findall(r"POSIX +ADVISORY +WRITE (\d+) \w+:\w+:(\d+) ", locks):
        if int(file) == inode:
            return int(process)
    return 0


@contextlib.contextmanager
def file_lock(path: Path, suffix: str) -> Iterator[None]:
    """Holds a lock: `-lock` keeps a second service from the same file, and `-write` is that of
    `Database.write_lock`."""
    with contextlib.closing(open_lock_file(path, suffix)) as db:
        try:
            db.execute("PRAGMA busy_timeout = 0")
            db.execute("PRAGMA journal_mode = MEMORY")  # else there is one more file
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise SchemaError(f"another commentd is running on {path}: stop it first") from None
        yield


# Backups

STAMP = "%Y%m%d-%H%M%S"


def show_nothing(left: int, total: int) -> None:
    """The progress of what nobody watches."""


def copy_database(
    db: sqlite3.Connection, target: Path, progress: Progress = show_nothing, first_name: str = ""
) -> None:
    """Copies one moment of a database, which may be in use. The copy has another name at first:
    `first_name`, or one that is made of its own. When it is written, checked and synced, it gets
    its own. Nobody else can read it."""
    unfinished = target.with_name(first_name or f".{target.name}.part")
    try:
        unfinished.unlink(missing_ok=True)
        unfinished.touch(0o600, exist_ok=False)
        with contextlib.closing(sqlite3.connect(unfinished, isolation_level=None)) as written:
            written.execute("PRAGMA journal_mode = OFF")
            db.execute("BEGIN")
            # From this read on, the connection sees one moment.
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            db.backup(written, pages=4096, progress=lambda _, left, total: progress(left, total))
            db.execute("COMMIT")
        check_database_file(unfinished, thoroughly=True)
        sync(unfinished)
        unfinished.replace(target)
        sync(target.parent)
    except SchemaError:
        raise OperatorError(f"{target} was not written: the database is damaged") from None
    except (OSError, sqlite3.Error) as error:
        raise OperatorError(f"{target} could not be written: {error}") from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()


def sync(path: Path) -> None:
    """Waits until the content of a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def back_up_to(
    path: Path, target: Path, progress: Progress = show_nothing, first_name: str = ""
) -> Path:
    """A backup under a name of its own; the rest is as in `copy_database`."""
    try:
        with contextlib.closing(connect(path)) as db:
            copy_database(db, target, progress, first_name)
    except sqlite3.Error as error:
        raise OperatorError(f"{path} can't be read: {error}") from None
    return target


def backup_stem(path: Path, folder: Path) -> str:
    """How the names of the backups of a database begin. In a folder that is not beside it there may
    be those of another database of the same name, and neither may delete the other's."""
    database = path.resolve()
    if folder.resolve().parent == database.parent:
        return path.stem
    return f"{path.stem}-{sha256_of(str(database))[:8]}"


def back_up(
    path: Path,
    folder: Path,
    now: float,
    label: str = "",
    progress: Progress = show_nothing,
    first_name: str = "",
) -> Path:
    """A backup in the folder, named for its time (UTC). The rest is as in `copy_database`."""
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o700, exist_ok=True)
            sync(folder.parent)  # else a power cut could take it away, with the backup in it
    except OSError as error:
        raise OperatorError(f"{folder} can't be made: {error.strerror}") from None
    name = f"{backup_stem(path, folder)}-{datetime.fromtimestamp(now, UTC):{STAMP}}{label}.db"
    return back_up_to(path, folder / name, progress, first_name)


def backups_in(path: Path, folder: Path, label: str) -> list[Path]:
    """The backups of a database with this label, the oldest first."""
    stamp = f"{'[0-9]' * 8}-{'[0-9]' * 6}"
    stem = glob.escape(backup_stem(path, folder))
    return sorted(folder.glob(f"{stem}-{stamp}{label}.db"))


def backup_before_update(path: Path, folder: Path) -> Path | None:
    """The newest backup that a newer program made before it changed the database, of those that
    this program can restore."""
    for backup in reversed(backups_in(path, folder, "-schema[0-9]*")):
        if int(backup.stem.rpartition("schema")[2]) <= len(MIGRATIONS):
            return backup
    return None


def way_back(error: NewerDatabase, folder: Path) -> str:
    """The text of the error and, if there is one, the backup to restore. `folder`: that of the
    backups."""
    backup = backup_before_update(error.path, folder)
    if backup is None:
        return str(error)
    return (
        f"{error.path} was made by a newer commentd: install that one again, or go back to the "
        f"moment before its update: commentd restore {backup}"
    )


def regular_backups(path: Path, folder: Path) -> dict[Path, float]:
    """The backups in the folder and their times, the oldest first. Backups that were made before a
    migration are left out: the owner deletes those."""
    times = {}
    for backup in backups_in(path, folder, ""):
        with contextlib.suppress(ValueError):
            made_at = datetime.fromisoformat(f"{backup.stem[-15:]}Z")
            times[backup] = made_at.timestamp()
    return times


def delete_old_backups(path: Path, folder: Path, keep: int, now: float) -> None:
    """Deletes backups of the future first, which a wrong clock has made, then the oldest."""
    times = regular_backups(path, folder)
    ordered = sorted(times, key=lambda backup: times[backup] <= now)
    for backup in ordered[:-keep]:
        backup.unlink(missing_ok=True)


def restore(path: Path, source: Path, now: int) -> Path | None:
    """Puts a backup in the place of the database and returns the new name of what was there, if
    there was anything. All tokens are revoked: otherwise those that were revoked since the backup
    would become valid again."""
    if not source.is_file():
        raise OperatorError(f"{source}: there is no such file")
    if not size_of(source):
        raise OperatorError(f"{source} is no backup: name a file that `commentd backup` made")
    check_database_file(source, thoroughly=True)
    restored = path.with_name(f"{path.name}.restored")
    replaced = path.with_name(f"{path.name}.{datetime.fromtimestamp(now, UTC):{STAMP}}")
    with file_lock(path, "-lock"), file_lock(path, "-write"):
        try:
            for suffix in ("-wal", "-shm"):  # left by a restore that was interrupted
                Path(f"{restored}{suffix}").unlink(missing_ok=True)
            with read_only(source) as db:
                copy_database(db, restored)
            with contextlib.closing(connect(restored)) as db:
                revoke_everything(db, now)
            keep_as(replaced, path)
            # Else a power cut could leave the new file without the old one, or beside its -wal.
            sync(path.parent)
            restored.replace(path)
            sync(path.parent)
        except (OSError, sqlite3.Error) as error:
            raise OperatorError(f"{path} could not be replaced: {error}") from None
        finally:
            restored.unlink(missing_ok=True)
    return replaced if replaced.exists() else None


def revoke_everything(db: sqlite3.Connection, now: int) -> None:
    """Makes every token and one-time link void that was ever given out, also after the backup."""
    # A version or a mark grows by one with each change. Nothing changes a thousand times a second,
    # so a thousand times the time is above all that were given out. (Fragments with a mark that is
    # older than `gone_mark` read the whole list.) A new account must not get the id of one that was
    # made after the backup, since tokens hold the id.
    sql = """
        UPDATE account SET version = max(version + 1, 1000 * :now);
        UPDATE page SET mark = max(mark + 1, 1000 * :now);
        UPDATE page SET gone_mark = mark;
        DELETE FROM sqlite_sequence WHERE name = 'account';
        INSERT INTO sqlite_sequence (name, seq)
        SELECT 'account', max(:now, coalesce(max(id), 0)) FROM account;
        DELETE FROM admin_link;
        DELETE FROM admin_session;
        DELETE FROM voucher"""
    run_statements(db, sql, now=now)


def keep_as(new_name: Path, path: Path) -> None:
    """Keeps what the database holds under a new name, before another file takes its place. Nobody
    else may have it open: a command would go on writing to the old file, and SQLite would write its
    -wal into the new one."""
    if path.exists():
        put_wal_into_file(path)
        new_name.touch(0o600)
        shutil.copyfile(path, new_name)
        sync(new_name)
    for suffix in ("-wal", "-shm"):  # still there when the file is damaged or missing
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{new_name}{suffix}")


def put_wal_into_file(path: Path) -> None:
    """Ends WAL mode, so that all is in the file, unless the file is damaged. `OperatorError` if
    another program has it open: SQLite finds that out when it ends WAL mode."""
    try:
        # An error about a damaged schema may quote bytes that are no UTF-8.
        with contextlib.suppress(UnicodeDecodeError), contextlib.closing(connect(path)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.Error as error:
        code = error.sqlite_errorcode & 0xFF
        if code == sqlite3.SQLITE_BUSY:
            raise OperatorError(f"another program has {path} open: stop it first") from None
        # The disk is full or fails, or the file is another user's.
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
            raise


# The database of a running program: one connection that writes, and one for each thread that reads

DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# What SQLite reports when the machine is at fault, not the program (sqlite.org/rescode.html).
MACHINE_FAULTS = DAMAGE | {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
LOCK_SECONDS = 5  # that a thread waits until it may write


def cannot_save() -> Unavailable:
    return Unavailable("暂时无法保存，请稍后再试", Code.STORAGE)


@contextlib.contextmanager
def holding(lock: Any, wait: float, late: Problem) -> Iterator[None]:
    """Holds a lock or semaphore; raises `late` if it is not free within `wait` seconds."""
    if not lock.acquire(timeout=wait):
        raise late
    try:
        yield
    finally:
        lock.release()


# Each transaction lists the pages that it changes for readers, by page key, in a table of the
# connection that writes. Triggers fill it, so that no method has to. They watch pages alone: a
# change of a comment that readers see raises the mark of its page. Views do not count.
CHANGED_PAGES = """
    CREATE TEMP TABLE changed_page (key TEXT NOT NULL);
    CREATE TEMP TRIGGER note_added_page AFTER INSERT ON main.page
    BEGIN
        INSERT INTO changed_page VALUES (NEW.key);
    END;
    CREATE TEMP TRIGGER note_changed_page
        AFTER UPDATE OF key, page_url, title, title_source, total, threads, page_likes, closed,
                        opened_at, mark, gone_mark ON main.page
    BEGIN
        INSERT INTO changed_page VALUES (OLD.key), (NEW.key);
    END;
    CREATE TEMP TRIGGER note_deleted_page AFTER DELETE ON main.page
    BEGIN
        INSERT INTO changed_page VALUES (OLD.key);
    END;"""


class Changes:
    """The changes that readers can see, numbered as they are committed. Whoever keeps what was read
    notes the number of the last change first, and asks later whether there was another one."""

    MOST_PAGES = 10_000  # that are told apart

    def __init__(self) -> None:
        self.last = 0  # the number of the last change
        self.of_all_pages = 0  # of the last one that can be on any page
        self.by_page: dict[str, int] = {}  # of the last one of each page, by page key

    def note(self, page_keys: Collection[str]) -> None:
        """These pages have changed. The rows are committed: what is read from now on is new."""
        if not page_keys:
            return
        self.last += 1
        self.by_page.update(dict.fromkeys(page_keys, self.last))
        if len(self.by_page) > self.MOST_PAGES:
            self.of_all_pages = self.last
            self.by_page.clear()

    def note_all(self) -> None:
        """Notes that any page can have changed."""
        self.last += 1
        self.of_all_pages = self.last

    def came_after(self, number: int, page_keys: Collection[str] | None) -> bool:
        """Whether one of these pages has changed since the change with that number; None stands for
        all pages."""
        if self.last == number:
            return False
        if page_keys is None or self.of_all_pages > number:
            return True
        return any(self.by_page.get(key, 0) > number for key in page_keys)


@dataclass(eq=False)
class Turn:
    """A thread that waits for `Turns`."""

    thread: int
    has_come: threading.Lock  # held until then


class Turns:
    """A lock that threads get in the order in which they ask for it. One of `threading` goes to
    whoever is fastest, and others may wait for long."""

    def __init__(self) -> None:
        self.lock = threading.Lock()  # of what follows
        self.holder: int | None = None  # the thread that has the lock
        self.waiting: deque[Turn] = deque()

    def acquire(self, timeout: float = -1) -> bool:
        """Does what `acquire` of a lock does."""
        thread = threading.get_ident()
        with self.lock:
            if self.holder is None:
                self.holder = thread
                return True
            turn = Turn(thread, threading.Lock())
            turn.has_come.acquire()
            self.waiting.append(turn)
        if turn.has_come.acquire(timeout=timeout):
            return True
        with self.lock:
            if turn not in self.waiting:  # it has come in this very moment
                return True
            self.waiting.remove(turn)
            return False

    def release(self) -> None:
        with self.lock:
            self.holder = None
            if self.waiting:
                turn = self.waiting.popleft()
                self.holder = turn.thread
                turn.has_come.release()


class ThreadState(threading.local):
    """What each thread has of a database."""

    is_writing = False  # it is inside `writing()`
    is_in_shared_transaction = False  # it is inside `in_shared_transaction()`
    reader: sqlite3.Connection | None = None  # its connection for reads


class Database:
    """One database file: a connection that writes, one for each thread that reads, and the locks
    that keep writers apart."""

    def __init__(
        self,
        path: Path,
        make_backup: Callable[[str], Path] | None = None,
        *,
        as_command: bool = False,
    ) -> None:
        """`make_backup` is called before a migration, with a label for the file. `as_command`: the
        service may be running on the same file."""
        check_database_file(path)
        if as_command and not path.exists():
            raise SchemaError(
                f"there is no {path}: go to the folder of commentd.ini, and start the service once"
            )
        self.path = path
        self.as_command = as_command
        self.turns = Turns()  # of the threads that use the writer
        self.process_lock = open_lock_file(path, "-write")
        self.local = ThreadState()
        self.readers: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self.changes = Changes()
        # What is wrong with the file
        self.damaged = False
        self.moved = False  # it is not where it was
        self.inodes: list[int] = []  # of the file and its -wal; none until they are open
        try:
            self.open_file(make_backup)
        except (OSError, sqlite3.Error) as error:
            raise SchemaError(f"{path} can't be written: {error}") from None

    def open_file(self, make_backup: Callable[[str], Path] | None) -> None:
        """Takes the lock of the service, opens the file, and brings it up to date. If anything
        fails, what was opened until then is closed again."""
        with contextlib.ExitStack() as opened:
            opened.callback(self.process_lock.close)
            # With the journal in memory, taking the lock costs 11 µs instead of 47.
            self.process_lock.execute("PRAGMA journal_mode = MEMORY")
            if not self.as_command:
                opened.enter_context(file_lock(self.path, "-lock"))
            self.path.touch(0o600)
            # While `restore` has the write lock, a command would open the file that it replaces.
            with self.write_lock():
                # For `Wiper`. It is closed after the connections: earlier, that would release their
                # locks (sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled).
                self.raw_file = opened.enter_context(open(self.path, "r+b", buffering=0))
                self.writer = connect(self.path)
            opened.callback(self.close_writer)
            self.bring_up_to_date(make_backup)
            self.tables = count_tables(self.writer)
            run_statements(self.writer, CHANGED_PAGES)
            self.seen_data_version = self.data_version()
            self.inodes = self.inodes_now()
            self.opened = opened.pop_all()  # `close` closes it, in the opposite order

    def bring_up_to_date(self, make_backup: Callable[[str], Path] | None) -> None:
        version = schema_version(self.writer)
        if self.as_command and version < len(MIGRATIONS):
            raise SchemaError(f"{self.path} is of an older commentd: start the service once")
        backup = None
        if make_backup and 0 < version < len(MIGRATIONS):
            backup = make_backup(f"-schema{version}")
            log.info("the database is brought up to date; before that, it was saved in %s", backup)
        try:
            migrate(self.writer)
        except Exception:
            # A supervisor starts the service again and again: one backup of each try is too many.
            if backup:
                backup.unlink()
            raise

    @property
    def db(self) -> sqlite3.Connection:
        """The writer inside `writing()`, else the reader of this thread."""
        if self.local.is_writing:
            return self.writer
        reader = self.local.reader
        if reader is None:
            reader = self.local.reader = connect(self.path)
            reader.execute("PRAGMA query_only = ON")
            # Each thread has one: caches of the usual size would hold 32 MB.
            reader.execute("PRAGMA cache_size = -256")
            self.readers.append((threading.current_thread(), reader))
        return reader

    # All that writes rows is inside `writing()`. Usually, that is one transaction with one fsync:
    #
    #     writing():
    #         transaction(): BEGIN, then what is written, then COMMIT
    #
    # Serving saves most of these, since one COMMIT does for several requests. A thread of its own
    # (`SharedTransaction`) begins and commits; in between, the event loop alone uses the writer:
    #
    #     that thread                  the event loop
    #     transaction(): BEGIN
    #                                  in_shared_transaction():
    #                                      writing():
    #                                          savepoint(): what one request writes
    #                                      writing():
    #                                          savepoint(): what the next one writes
    #                    COMMIT
    #
    # A savepoint that fails is undone, and the others stay.

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """What is written in here is durable at the end or, in a shared transaction, at the end of
        that. `Unavailable` when the machine fails."""
        if self.local.is_in_shared_transaction:
            all_or_nothing = self.savepoint()
        else:
            all_or_nothing = self.transaction()
        with all_or_nothing:
            self.local.is_writing = True
            try:
                yield
            finally:
                self.local.is_writing = False

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """One transaction of SQLite, which is durable at the end."""
        # The lock comes first: while this thread waits for it, the file may be replaced.
        with self.write_lock(), self.machine_faults():
            if self.damaged:
                raise Unavailable("数据库已损坏，请联系管理员", Code.STORAGE)
            # A deferred transaction that reads and then writes fails at once when another has
            # written in between.
            self.writer.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.commit()
            except BaseException:
                self.writer.rollback()
                raise

    @contextlib.contextmanager
    def in_shared_transaction(self) -> Iterator[None]:
        """In here, this thread writes in the `transaction()` that another thread holds open, waits
        with, and will commit."""
        self.local.is_in_shared_transaction = True
        try:
            yield
        finally:
            self.local.is_in_shared_transaction = False

    @property
    def is_in_shared_transaction(self) -> bool:
        """Whether this thread is inside `in_shared_transaction()`."""
        return self.local.is_in_shared_transaction

    @contextlib.contextmanager
    def savepoint(self) -> Iterator[None]:
        """If what is written in here fails, the shared transaction is as it was before."""
        with self.machine_faults():
            self.check_transaction()
            self.writer.execute("SAVEPOINT one_request")
            try:
                yield
                self.writer.execute("RELEASE one_request")
            except BaseException:
                self.undo_savepoint()
                raise

    def undo_savepoint(self) -> None:
        """If even that fails, the whole transaction is undone: `check_transaction` then refuses the
        savepoints after it, and the COMMIT."""
        try:
            self.writer.execute("ROLLBACK TO one_request")
            self.writer.execute("RELEASE one_request")
        except (sqlite3.Error, MemoryError):
            self.writer.rollback()

    def check_transaction(self) -> None:
        """`Unavailable` if SQLite has undone the transaction, as it does after some faults."""
        if not self.writer.in_transaction:
            raise cannot_save()

    def commit(self) -> None:
        self.check_transaction()
        changed_pages: set[str] = set()
        try:
            rows = self.writer.execute("DELETE FROM changed_page RETURNING key")
            changed_pages = {key for (key,) in rows}
            self.writer.execute("COMMIT")
        finally:
            # Also after a COMMIT that failed: to forget what was read does no harm.
            self.changes.note(changed_pages)

    def data_version(self) -> int:
        """A number that changes when another process has written."""
        return int(self.writer.execute("PRAGMA data_version").fetchone()[0])

    def notice_commands(self) -> None:
        """Looks whether a command has written, which may change any page."""
        with holding(self.turns, LOCK_SECONDS, cannot_save()), self.machine_faults():
            version = self.data_version()
            if version != self.seen_data_version:
                self.seen_data_version = version
                self.changes.note_all()

    @contextlib.contextmanager
    def write_lock(self) -> Iterator[None]:
        """The lock of the one writer. A thread waits for it as long as SQLite waits for a lock of
        another process."""
        with holding(self.turns, LOCK_SECONDS, cannot_save()):
            with self.machine_faults():
                self.lock_out_processes()
            try:
                yield
            finally:
                self.process_lock.rollback()

    def lock_out_processes(self) -> None:
        """Commands may write while the service runs: before SQLite 3.51.3, two writers at once can
        corrupt a WAL database (sqlite.org/wal.html#walresetbug)."""
        self.process_lock.execute("BEGIN EXCLUSIVE")

    def inodes_now(self) -> list[int]:
        """What tells the file and its -wal from others of the same names; 0 stands for none."""
        inodes = []
        # Each read and write asks: with `Path.exists`, this took three times as long.
        for path in (self.path, f"{self.path}-wal"):
            try:
                inodes.append(os.stat(path).st_ino)
            except OSError:
                inodes.append(0)
        return inodes

    def check_place(self) -> None:
        """`Unavailable` if the file was moved, deleted or replaced since it was opened. What is
        written then is lost, and a new connection reads another file. SQLite does the same check,
        but not in WAL mode."""
        if not self.inodes:  # it is not open yet
            return
        moved = self.inodes_now() != self.inodes
        if moved and not self.moved:
            log.critical(
                "%s or its -wal was moved, deleted or replaced: nothing is read or written until it"
                " is back, or the service is restarted",
                self.path,
            )
        elif self.moved and not moved:
            log.info("%s is back", self.path)
        self.moved = moved
        if moved:
            raise Unavailable("数据库文件不在原处，请联系管理员", Code.STORAGE)

    def check_tables(self) -> None:
        """`Unavailable` if another program has dropped a table."""
        if count_tables(self.db) != self.tables:
            log.error("%s lacks tables that it had at the start: restore a backup", self.path)
            raise Unavailable("数据库不完整，请联系管理员", Code.STORAGE)

    @contextlib.contextmanager
    def machine_faults(self) -> Iterator[None]:
        """Raises `Unavailable` when the file is not in its place at the start, and when the disk is
        full, another program holds a lock, or the file is damaged."""
        self.check_place()
        try:
            yield
        except (sqlite3.Error, MemoryError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code not in MACHINE_FAULTS and not isinstance(error, MemoryError):
                raise
            if code in DAMAGE and not self.damaged:
                self.damaged = True
                log.critical("the database is damaged, so nothing is written any more: %s", error)
            log.error("the database failed: %s", error)
            raise cannot_save() from None

    def close(self) -> None:
        """Closes the readers first: the -wal cannot be emptied while one of them reads. Then come
        the writer, the file and the locks. Calling it twice is fine."""
        if self.turns.holder == threading.get_ident():
            # Ctrl-C has stopped this thread, that of a command, before it released the lock.
            self.close_all()
            return
        with holding(self.turns, -1, cannot_save()):
            self.close_all()

    def close_all(self) -> None:
        for thread, reader in self.readers:
            # Closing a connection that another thread uses would crash the process.
            is_own = thread is threading.current_thread()
            if is_own or not thread.is_alive():  # pragma: no branch - a request that hangs
                reader.close()
        self.readers.clear()
        self.opened.close()

    def close_writer(self) -> None:
        """Empties the -wal into the file. Closing alone would not: a command may have it open."""
        with contextlib.closing(self.writer), contextlib.suppress(sqlite3.Error, MemoryError):
            if self.as_command:  # a command does not wait for the service
                self.writer.execute("PRAGMA busy_timeout = 0")
            self.process_lock.execute("BEGIN EXCLUSIVE")
            self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def open_backup(self) -> IO[bytes]:
        """A backup as an open file without a name, which is gone when it is closed. One at a time:
        the file always has the same name at first, so that a crash leaves no more than one."""
        target = self.path.with_name(f".{self.path.name}.download")
        back_up_to(self.path, target)
        file = target.open("rb")
        target.unlink()
        return file

    def delete_leftovers(self) -> None:
        """Deletes what a crash left of such a backup."""
        backup = f".{self.path.name}.download"
        for name in (backup, f".{backup}.part"):
            self.path.with_name(name).unlink(missing_ok=True)


# -- Wiping -------------------------------------------------------------------

# Authors may rely on it: what was deleted is soon in no file but the backups. SQLite overwrites
# deleted rows (`secure_delete`), but leaves their bytes in two places:
#
# - The -wal holds older versions of pages. It is emptied within minutes.
# - When a row moves to another page of the file, its bytes stay in the old one. Once a day, the
#   whole file is looked through, some pages a second.
#
# For the latter, `Wiper` writes to the file beside SQLite. Four things make that safe:
#
# 1. The write lock is held, and a transaction is open: nobody else writes to the file.
# 2. The -wal is empty: the file has the newest version of each page.
# 3. What is overwritten stands in no row, so SQLite never reads it. A crash in between does no
#    harm.
# 4. The file must be one in which the first byte of a page tells whether it holds rows. Another one
#    is left to SQLite (VACUUM).

WIPED_AT_ONCE = 2048  # pages of the file, of 4 kB

# The size of the header of a page that holds rows or entries of an index, by its first byte.
PAGE_HEADERS = {
    2: 12,  # an inner page of an index
    5: 12,  # an inner page of a table
    10: 8,  # a leaf of an index
    13: 8,  # a leaf of a table
}


def unused_bytes(page: bytes, number: int) -> tuple[int, int]:
    """Where the unused bytes of a page begin and end: between the list of its rows and the first
    row (sqlite.org/fileformat2.html#b_tree_pages). Both are 0 if the page holds no rows, or is
    damaged."""
    start = 100 if number == 1 else 0  # the first page begins with the header of the file
    header_size = PAGE_HEADERS.get(page[start])
    if header_size is None:
        return 0, 0
    first_free, count, rows_at = struct.unpack_from(">HHH", page, start + 1)
    rows_at = rows_at or 65536
    list_at = start + header_size
    list_end = list_at + 2 * count
    if not list_end <= rows_at <= len(page):
        return 0, 0
    offsets = struct.unpack_from(f">{count}H", page, list_at)
    first_used = min(first_free or rows_at, *offsets, rows_at)
    if first_used < rows_at:  # the page is damaged
        return 0, 0
    return list_end, rows_at


class RawPages:
    """The pages of a database file, beside SQLite. They are numbered from 1."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def header(self) -> bytes:
        """See sqlite.org/fileformat2.html#the_database_header."""
        self.file.seek(0)
        return self.file.read(100)

    def page_size(self) -> int:
        size = int.from_bytes(self.header()[16:18])
        return 65536 if size == 1 else size

    def count_pages(self) -> int:
        return os.fstat(self.file.fileno()).st_size // self.page_size()

    def show_what_they_hold(self) -> bool:
        """Whether only pages with rows begin with one of `PAGE_HEADERS`."""
        header = self.header()
        has_checksums = header[20] != 0  # at the end of each page
        # With `auto_vacuum`, some pages are maps of pages, and begin with 1 to 5.
        has_maps = any(header[52:56])
        # All others begin with the number of a page: the first of its four bytes is 0 or 1.
        return not has_checksums and not has_maps and self.count_pages() < 2 << 24

    def read_pages(self, first: int, count: int) -> bytes:
        """Some pages, fewer at the end of the file."""
        size = self.page_size()
        self.file.seek((first - 1) * size)
        return self.file.read(count * size)

    def to_wipe(self, first: int, count: int) -> list[int]:
        """The numbers of those of some pages that have something in their unused bytes."""
        size = self.page_size()
        content = self.read_pages(first, count)
        found = []
        for offset in range(0, len(content) - size + 1, size):
            number = first + offset // size
            page = content[offset : offset + size]
            begin, end = unused_bytes(page, number)
            if page[begin:end].strip(b"\0"):
                found.append(number)
        return found

    def wipe_one(self, number: int) -> None:
        """Overwrites the unused bytes of a page."""
        begin, end = unused_bytes(self.read_pages(number, 1), number)
        self.file.seek((number - 1) * self.page_size() + begin)
        self.file.write(bytes(end - begin))

    def flush(self) -> None:
        """Waits until what was written is on the disk."""
        os.fsync(self.file.fileno())


class Wiper:
    """Empties the -wal when something was erased, and looks through the file for what moved rows
    have left, some pages at each call."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.raw_pages = RawPages(database.raw_file)
        self.must_empty_wal = False  # it has erased data
        self.next_page: int | None = None  # to be looked at; None if no look through the file is on

    def note_erased(self) -> None:
        self.must_empty_wal = True

    def empty_wal_if_needed(self) -> None:
        """This does not wait for readers: the next call will do."""
        if self.must_empty_wal:
            with self.database.write_lock(), self.database.machine_faults():
                self.must_empty_wal = not self.empty_wal()

    def empty_wal(self) -> bool:
        """Whether the -wal is empty now. The caller has the write lock."""
        writer = self.database.writer
        writer.execute("PRAGMA busy_timeout = 0")
        try:
            busy, *_ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            writer.execute("PRAGMA busy_timeout = 5000")
        return not busy

    def begin_file(self) -> None:
        """From now on, each call of `wipe_some` does the next pages of the file, until all are
        done."""
        self.must_empty_wal = True  # what the -wal has must be in the file first
        self.next_page = 1

    def wipe_some(self) -> None:
        """Overwrites what rows that moved have left in the next pages of the file. VACUUM would do
        that too, but it keeps all writers waiting while it rewrites a large file."""
        if self.next_page is None or self.must_empty_wal:
            return
        if not self.raw_pages.show_what_they_hold():
            self.next_page = None
            self.vacuum()
            return
        # What is found here may be out of date: `wipe_pages` reads it again.
        found = self.raw_pages.to_wipe(self.next_page, WIPED_AT_ONCE)
        if found and not self.wipe_pages(found):
            return
        self.next_page += WIPED_AT_ONCE
        if self.next_page > self.raw_pages.count_pages():
            self.next_page = None

    def wipe_pages(self, numbers: list[int]) -> bool:
        """Overwrites what rows have left in these pages. False if a reader is in the way. What
        makes this safe is said above."""
        database = self.database
        with database.write_lock(), database.machine_faults():
            if not self.empty_wal():
                return False
            database.writer.execute("BEGIN IMMEDIATE")
            try:
                # Another program may have been faster. It may even have changed `auto_vacuum`.
                wal_is_empty = not size_of(Path(f"{database.path}-wal"))
                if not wal_is_empty or not self.raw_pages.show_what_they_hold():
                    return False
                for number in numbers:
                    self.raw_pages.wipe_one(number)
            finally:
                database.writer.rollback()
                # The cache has the pages as they were, and would write them again.
                database.writer.execute("PRAGMA shrink_memory")
        self.raw_pages.flush()  # authors do not wait for it
        return True

    def vacuum(self) -> None:
        """Has SQLite rewrite the file, where pages do not show what they hold."""
        with self.database.write_lock(), self.database.machine_faults():
            self.must_empty_wal = True  # even if it fails: what it wrote is in the -wal
            self.database.writer.execute("VACUUM")


# -- Store --------------------------------------------------------------------

Row = TypeVar("Row")
CommentRow = TypeVar("CommentRow", bound="Comment")


@dataclass(frozen=True)
class Account:
    """`version` is raised to revoke all tokens of the account. `language`: of the emails about the
    account, "" if unknown. `app_key`: of an admin's authenticator app, "" without one."""

    id: int
    email: str
    nickname: str
    password: str
    role: str
    version: int
    created_at: int
    blocked: int
    language: str
    app_key: str = ""
    app_step: int = 0

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever changed that revokes tokens."""
        return self.version == 1

    @property
    def claims(self) -> Json:
        """The fields that a token holds."""
        return {"id": self.id, "email": self.email, "role": self.role, "ver": self.version}


@dataclass(frozen=True)
class AdminSession:
    """Where an admin is signed in. `ip` is a network, and `seen_at` the last use."""

    id: int
    user_id: int
    device: str
    ip: str
    country: str
    created_at: int
    seen_at: int


@dataclass(frozen=True)
class AccountSummary:
    """An account as the admin page lists it. `comments` counts the visible ones."""

    id: int
    email: str
    nickname: str
    role: str
    blocked: int
    created_at: int
    comments: int


@dataclass(frozen=True)
class Registration:
    """A new account, or new values for one, until the code is confirmed. Without a password: a code
    to sign in with, and no nickname yet."""

    request_id: str
    email: str
    nickname: str
    password: str
    code: str
    client: str  # the keyed hash of the network that it came from
    language: str
    created_at: int
    expires_at: int
    tries: int = 0  # guesses that named no request
    named_tries: int = 0  # guesses that named this one

    @property
    def is_sign_in(self) -> bool:
        return not self.password


@dataclass(frozen=True)
class Voucher:
    """A row of the table `voucher`: a person that a provider has named. `email` is "" if it gave
    none that we can use; `verified`: it says that the person has that mailbox. `nickname`: what it
    calls them, or ""."""

    hash: str
    secret: str
    state: str
    issuer: str
    subject: str
    email: str
    verified: int
    nickname: str
    language: str
    expires_at: int
    used: int = 0


@dataclass(frozen=True)
class JoinedIdentity:
    """A row of the table `joined_identity`."""

    issuer: str
    subject: str
    user_id: int
    joined_at: int


# Where the title of a page comes from. A later one of these replaces an earlier one, so that what
# the owner wrote stays. `comment`: its widget sent it along with a comment. `held`: so it did, but
# that comment is not visible. Then readers see no title, and the next one replaces it.
TITLE_SOURCES = ("", "held", "comment", "import", "owner")


@dataclass(frozen=True)
class Page:
    """A row of the table `page`: each of its columns needs a field here."""

    id: int
    key: str
    page_url: str
    title: str = ""
    title_source: str = ""
    title_comment_id: int | None = None
    total: int = 0
    threads: int = 0
    views: int = 0
    page_likes: int = 0
    seen_at: int = 0
    closed: int = 0
    opened_at: int = 0
    mark: int = 0
    gone_mark: int = 0
    needs_rebuild: int = 0

    def is_closed(self, config: Config, now: int) -> bool:
        """Whether it takes no more comments: closed by an admin, or too old."""
        days = config.comments_close_after_days
        is_old = days > 0 and 0 < self.opened_at <= now - days * DAY
        return bool(self.closed) or is_old

    @property
    def public_title(self) -> str:
        """The title that readers may see."""
        return "" if self.title_source == "held" else self.title

    def takes_title_of(self, source: str) -> bool:
        """Whether a title from there replaces the one that the page has."""
        if self.title_source == "held":
            return True
        return TITLE_SOURCES.index(source) > TITLE_SOURCES.index(self.title_source)


STATUSES = ("visible", "waiting", "spam", "deleted")  # of a comment

# What the fields of a comment are. To read, store, erase, import and export them follows the class
# below and these tuples. A new field needs, besides,
#   1. a migration in Schema, which also adds it to the trigger `raise_mark` if readers see it,
#   2. `for_readers`, `json_body` in Chats, and `ShownComment` with fragment.html where it shows:
#      nothing is published by itself,
#   3. `new_comment` and `edit_comment` if its author writes it,
#   4. `Import.fill`, and `Product` in Foreign if other products have it.
# `tests/test_fields.py` names what it lacks.

# What readers see, each as `for_readers` writes it. Only that test reads this tuple.
PUBLIC_FIELDS = (
    "id",
    "page_url",
    "parent_id",
    "user_id",
    "role",
    "nickname",
    "website",
    "content",
    "html",
    "ip",
    "country",
    "location",
    "likes",
    "pinned",
    "created_at",
    "edited_at",
)
# What its author wrote: the filter and blocks look at it, and an edit may change it.
WRITTEN_FIELDS = ("nickname", "website", "content")
# What tells of the author, and goes with the account, though the text may stay.
PERSONAL_FIELDS = (
    "user_id",
    "nickname",
    "website",
    "email",
    "ip",
    "country",
    "location",
    "language",
    "held",
    "learnt",
)
# What else admins see. Only that test reads it, too.
MODERATION_FIELDS = ("status", "held", "hidden_at", "learnt")
# What our own export holds as it is stored. It also has `html` and the times, in other forms.
EXPORTED_FIELDS = (
    "id",
    "parent_id",
    "nickname",
    "website",
    "content",
    "ip",
    "country",
    "location",
    "likes",
    "pinned",
    "status",
    "held",
    "language",
    "email",
)


# Not frozen, as other rows are: making those of a list would take twice as long.
@dataclass
class Comment:
    """A comment with the URL and the title of its page and the role of its author's account. What
    has been erased has its default.

    `role`: "" unless its author was signed in, or has said since that they wrote it. `own_html`:
    whether `html` came with an import and says what Markdown cannot. The content is then Markdown
    that comes near it. In all other comments, `html` is the content as rendered. `masked`: whether
    the IP address was shortened. `held`: why the comment waits. `hidden_at`: when it became spam or
    was deleted. `learnt`: `ham` or `spam`, as which the spam filter learnt it.
    """

    created_at: int
    id: int = 0  # 0 while it is not stored
    page_id: int = 0
    page_url: str = ""
    page_title: str = ""
    parent_id: int | None = None
    thread_id: int | None = None  # None for a top-level comment
    shown: int = 0
    status: str = "waiting"
    user_id: int | None = None
    role: str = ""
    nickname: str = ""
    website: str = ""
    content: str = ""
    html: str = ""
    own_html: int = 0
    ip: str = ""
    masked: int = 0
    country: str = ""
    location: str = ""
    likes: int = 0
    pinned: int = 0
    edited_at: int | None = None
    hidden_at: int | None = None
    held: str = ""
    language: str = ""
    learnt: str = ""

    @property
    def texts(self) -> list[str]:
        """What its author wrote."""
        return [getattr(self, name) for name in WRITTEN_FIELDS]

    @property
    def version(self) -> str:
        """Identifies the texts that an admin has read. It is not shortened, since an author could
        look for two texts that are alike."""
        return sha256_of("\n".join(self.texts))

    def says_the_same(self, other: "Comment") -> bool:
        """Whether another comment has this author, text and place."""
        return (
            self.page_id == other.page_id
            and self.parent_id == other.parent_id
            and self.user_id == other.user_id
            and self.nickname == other.nickname
            and self.content == other.content
        )

    def for_readers(self, config: Config, *, is_admin: bool = False) -> Json:
        """The public fields. An admin sees the whole IP address."""
        ip = ""
        if is_admin or config.privacy_show_ip == "full":
            ip = self.ip
        elif config.privacy_show_ip == "masked":
            ip = self.ip if self.masked else masked(self.ip)
        shows_location = config.privacy_show_location
        return {
            "id": self.id,
            "page_url": self.page_url,
            "parent_id": self.parent_id,
            "user_id": self.user_id,
            "role": self.role,
            "nickname": self.nickname,
            "website": self.website,
            "content": self.content,
            "html": self.html,
            "ip": ip,
            "country": self.country if shows_location else "",
            "location": self.location if shows_location else "",
            "likes": self.likes,
            "pinned": bool(self.pinned),
            "created_at": beijing_time(self.created_at),
            "edited": beijing_time(self.edited_at),
        }

    def in_list(self, config: Config, *, is_admin: bool = False) -> Json:
        """The comment as it stands in a list for readers: a tombstone unless it is visible."""
        if self.status == "visible":
            return self.for_readers(config, is_admin=is_admin)
        return self.tombstone(config)

    def tombstone(self, config: Config) -> Json:
        """What keeps the place of a hidden or deleted comment for the replies. One that waits for
        approval says so: nobody removed it."""
        return {
            **self.erased().for_readers(config),
            "deleted": True,
            "waiting": self.status == "waiting",
        }

    def erased(self) -> Self:
        """What is left of it: its place among the others, and its time."""
        return type(self)(
            created_at=self.created_at,
            id=self.id,
            page_id=self.page_id,
            page_url=self.page_url,
            parent_id=self.parent_id,
            thread_id=self.thread_id,
            shown=self.shown,
            status="deleted",
            masked=1,
        )


@dataclass
class FullComment(Comment):
    """A comment with its author's email address, which is left out of the lists for readers. A new
    comment is one, too."""

    email: str = ""


@dataclass
class ExportedComment(FullComment):
    """A comment with what the export says of its page."""

    page_key: str = ""
    public_title: str = ""
    closed: int = 0
    opened_at: int = 0

    def erased(self) -> Self:
        return replace(
            super().erased(),
            page_key=self.page_key,
            public_title=self.public_title,
            closed=self.closed,
            opened_at=self.opened_at,
        )


@dataclass(frozen=True)
class Report:
    """A reader's report of a comment."""

    reason: str
    reported_at: int


@dataclass(frozen=True)
class OwnReport:
    """A report as its author sees it."""

    comment_id: int
    reason: str
    reported_at: int


@dataclass(frozen=True)
class Block:
    """Who or what is kept out."""

    id: int
    kind: str  # address (an IP address or a network), email, domain or word
    value: str
    note: str
    created_at: int
    expires_at: int | None


@dataclass(frozen=True)
class Email:
    """What an email says, as plain text and as HTML. `headers` are those beside To, Subject and
    what every email has."""

    recipient: str
    subject: str
    text: str
    html: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Message:
    """A row of the outbox: an email, or a webhook, which has an event instead of a text. An email
    with a code has a registration. `headers` is JSON. `due_at` is None when there are no more
    tries."""

    id: int
    registration_id: int | None
    comment_id: int | None
    event: str
    recipient: str
    subject: str
    text: str
    html: str
    headers: str
    created_at: int
    tries: int
    due_at: int | None
    expires_at: int
    failure: str

    @property
    def is_for_chat(self) -> bool:
        return self.event in ("created", "reported")

    @property
    def email(self) -> Email:
        headers = json.loads(self.headers)
        return Email(self.recipient, self.subject, self.text, self.html, headers)


@dataclass(frozen=True, kw_only=True)
class ShortLink:
    """What a link in an email or a chat may do, for one recipient. What does not matter to its
    action has the default."""

    action: str  # the name of one in `ACTIONS`, or what is done with the recipient's own emails
    undo: str = ""  # the action that undoes it, which the link may do, too
    comment_id: int = 0
    version: str = ""  # of the comment's text, when the link was made
    page_id: int = 0
    user_id: int = 0
    subscriber: str = ""  # what stands for the recipient's email address
    language: str = ""  # of the recipient
    expires_at: int = 0

    @property
    def keeps(self) -> bool:
        """Whether the comment stays as it is: what readers have reported is kept, not approved
        anew."""
        return self.action == self.undo

    @property
    def undone(self) -> "ShortLink":
        return replace(self, action=self.undo, undo=self.action)

    def to_do(self, action: str) -> "ShortLink | None":
        """The same link for one of the two things that it may do. None for anything else."""
        if action == self.action:
            return self
        return self.undone if action and action == self.undo else None


@dataclass(frozen=True)
class AboutComment:
    """What a message in a chat is about: a comment, whose text had that version."""

    comment_id: int
    version: str


@dataclass(frozen=True)
class AuditEntry:
    id: int
    created_at: int
    who: str
    action: str
    subject: str
    detail: str


@dataclass(frozen=True)
class Day:
    """The counts of one day, such as 2026-11-01."""

    day: str
    comments: int
    views: int
    likes: int


@dataclass(frozen=True)
class Usage:
    """How often a subject used something in so many seconds, which end at `ends_at`."""

    seconds: int
    used: int
    ends_at: int


@dataclass(frozen=True)
class Imported:
    """The comment that an imported record became. `id` is 0 when it is gone, or for a page."""

    id: int
    page_id: int | None
    parent_id: int | None


@dataclass(frozen=True)
class SimilarComment:
    """A comment that may be the same as one of a file."""

    id: int
    page_id: int
    page_key: str
    parent_id: int | None
    nickname: str
    content: str
    created_at: int

    @property
    def imported(self) -> Imported:
        return Imported(self.id, self.page_id, self.parent_id)


@dataclass(frozen=True)
class OutboxCount:
    """How many messages of one sort the outbox has: those that were given up, those that are tried
    again, and those that should have been tried ten minutes ago."""

    event: str
    recipient: str
    failed: int
    retried: int
    late: int


@dataclass(frozen=True)
class Figures:
    """Numbers about the whole database, for `check` and /metrics; none of them is about a person.
    `newest`: the time of the newest comment. `late` and `failed`: messages of the outbox."""

    comments: int
    accounts: int
    pages: int
    views: int
    newest: int
    failed: int
    late: int
    admins: int
    unnamed_proxy: int


# Where the fields of a comment come from that are not columns of its table.
OTHER_COLUMNS = {
    "page_url": "page.page_url",
    # A title that is held is seen beside comments that readers do not see.
    "page_title": "iif(page.title_source = 'held' AND comment.status = 'visible', '', page.title)",
    "page_key": "page.key",
    "public_title": "iif(page.title_source = 'held', '', page.title)",
    "closed": "page.closed",
    "opened_at": "page.opened_at",
    # A comment that was written by a guest has none, also when an account with its email address
    # has claimed it: readers see a tick by the role, and anybody can have typed that address.
    "role": "iif(comment.email = '', coalesce(account.role, ''), '')",
    "email": "coalesce(account.email, comment.email)",
}


def select_comments(row_type: type[Comment]) -> str:
    """Reads comments. The columns have the order of the fields."""
    names = [each.name for each in fields(row_type)]
    columns = [OTHER_COLUMNS.get(name, f"comment.{name}") for name in names]
    return f"""
        SELECT {", ".join(columns)}
          FROM comment
          JOIN page ON page.id = comment.page_id
          LEFT JOIN account ON account.id = comment.user_id
"""


def assignments(names: Iterable[str]) -> str:
    """What an UPDATE sets: `nickname = :nickname, website = :website`."""
    return ", ".join(f"{name} = :{name}" for name in names)


def values_of(comment: Comment, names: Iterable[str]) -> Json:
    """The values of a statement, by the names of fields."""
    return {name: getattr(comment, name) for name in names}


SELECT_COMMENTS = {
    row_type: select_comments(row_type) for row_type in (Comment, FullComment, ExportedComment)
}
# The columns of the table.
JOINED_FIELDS = ("page_url", "page_title", "role")  # these stand in other tables
STORED_FIELDS = [each.name for each in fields(FullComment) if each.name not in JOINED_FIELDS]
INSERT_COMMENT = f"""
    INSERT INTO comment ({", ".join(STORED_FIELDS)}, mark)
    VALUES (:{", :".join(STORED_FIELDS)}, :mark)"""
# What is left of a comment that was erased, besides its place and its time.
BLANK_COMMENT = FullComment(created_at=0).erased()
BLANK_FIELDS = [
    name
    for name in STORED_FIELDS
    if name not in ("id", "page_id", "parent_id", "thread_id", "shown", "created_at")
]


# The orders of a list of comments.
SORTS = {
    "newest": "comment.created_at DESC, comment.id DESC",
    "oldest": "comment.created_at, comment.id",
    "likes": "comment.likes DESC, comment.created_at DESC, comment.id DESC",
}
# What an admin can look for: `all` that is not erased, what readers `reported`, or a status.
SEARCHES = ("all", "reported", *STATUSES)
PAGE_SORTS = {
    "latest": "id DESC",
    "views": "views DESC, id DESC",
    "comments": "total DESC, id DESC",
}
# A notification waits until it is due. Then an email carries it, whose id is its `outbox_id`, and
# both go when that is sent or withdrawn. One for a whole audience has no recipient at first: when
# it is due, each of them gets one of their own.
# These are due: no email carries them yet, and their recipients may read the comment. The author of
# a comment hears of replies only while the comment itself does not wait: an edit may have it held.
IS_DUE = """
    outbox_id IS NULL AND due_at <= :now
       AND (comment.status = 'visible'
            OR (comment.status = 'waiting' AND audience IN ('owner', 'holder')))
       AND NOT (audience = 'author' AND EXISTS
                (SELECT 1 FROM comment AS parent
                  WHERE parent.id = comment.parent_id AND parent.status = 'waiting'))"""
SELECT_MESSAGES = """
    SELECT id, registration_id, comment_id, event, recipient, subject, text, html, headers,
           created_at, tries, due_at, expires_at, failure
      FROM outbox"""


@dataclass(frozen=True)
class LikeTable:
    """Where the likes of comments, or of pages, are stored and counted."""

    name: str
    liked_id: str  # its column: what is liked
    counted_in: str  # the table of that
    counter: str  # its column: the number of likes


Likeable = Literal["comment", "page"]
LIKE_TABLES: dict[Likeable, LikeTable] = {
    "comment": LikeTable("comment_liker", "comment_id", counted_in="comment", counter="likes"),
    "page": LikeTable("page_liker", "page_id", counted_in="page", counter="page_likes"),
}
# What each counter counts. Replies come before the comments that they reply to.
COUNTERS = {
    ("comment", "likes"): "SELECT count(*) FROM comment_liker WHERE comment_id = comment.id",
    ("comment", "replies"): """SELECT count(*) FROM comment AS reply
        WHERE reply.parent_id = comment.id AND reply.shown = 1""",
    ("comment", "shown"): "(status = 'visible' OR replies > 0)",
    ("page", "total"): """SELECT count(*) FROM comment
        WHERE page_id = page.id AND status = 'visible'""",
    ("page", "threads"): """SELECT count(*) FROM comment
        WHERE page_id = page.id AND shown = 1 AND parent_id IS NULL""",
    ("page", "page_likes"): "SELECT count(*) FROM page_liker WHERE page_id = page.id",
}
MISCOUNTS = [
    f"SELECT count(*) FROM {table} WHERE {counter} <> ({count})"
    for (table, counter), count in COUNTERS.items()
]
RECOUNTS = [
    f"UPDATE {table} SET {counter} = ({count}) WHERE {counter} <> ({count})"
    for (table, counter), count in COUNTERS.items()
]
FIGURES = """
    SELECT (SELECT count(*) FROM comment) AS comments,
           (SELECT count(*) FROM account) AS accounts,
           (SELECT count(*) FROM page) AS pages,
           (SELECT coalesce(sum(views), 0) FROM page) AS views,
           (SELECT coalesce(max(created_at), 0) FROM comment) AS newest,
           (SELECT count(*) FROM outbox WHERE due_at IS NULL) AS failed,
           (SELECT count(*) FROM outbox WHERE due_at <= :now - 600) AS late,
           (SELECT count(*) FROM account WHERE role = 'admin') AS admins,
           (SELECT count(*) FROM state
             WHERE name = 'unnamed_proxy' AND time > :now - 86400) AS unnamed_proxy"""

NO_END = 2**63 - 1  # an id above all others
MOST_TERMS = 50_000  # that the spam filter remembers, about 2 MB
FIRST_DAY = date(1970, 1, 1).toordinal()  # of statistics


# Reading and writing rows


def account_as_visitor(user_id: int) -> str:
    """What is stored of an account that likes or reports. For others it is the hash of a client;
    `past …` after the link to a person was deleted; `import …` for imported likes."""
    return f"user {user_id}"


def like_time(visitor: str, now: int) -> int | None:
    """What is stored as the time of a like. That of an account has none, so it is never made
    anonymous: it can be taken back years later."""
    return None if visitor.startswith("user ") else now


class Store(Database):
    """All rows. Methods that are named with a noun read. Methods that are named with a verb write,
    and must run inside `writing()`."""

    def __init__(
        self,
        path: Path,
        make_backup: Callable[[str], Path] | None = None,
        *,
        zone: tzinfo | None = None,
        as_command: bool = False,
    ) -> None:
        """`zone`: the time zone of statistics. The others are as for `Database`."""
        self.zone = zone
        super().__init__(path, make_backup, as_command=as_command)
        self.wiper = Wiper(self)

    # Statements

    def run(self, sql: str, *values: Any, **named: Any) -> sqlite3.Cursor:
        """Runs a statement. Its values stand in order (`?`) or, where they are many, by name."""
        return self.db.execute(sql, named or values)

    def run_script(self, sql: str, **named: Any) -> None:
        """Runs several statements with the same values."""
        run_statements(self.db, sql, **named)

    def all(self, row_type: type[Row], sql: str, *values: Any, **named: Any) -> list[Row]:
        """All rows of a statement; a cursor that is left open would hold back the checkpoint."""
        rows = self.run(sql, *values, **named)
        names = [column[0] for column in rows.description]
        # `dict(row)` would search for each name: a list took 5 % longer.
        return [row_type(**dict(zip(names, row, strict=True))) for row in rows]

    def one(self, row_type: type[Row], sql: str, *values: Any, **named: Any) -> Row | None:
        """The first row. None if there is none."""
        rows = self.all(row_type, sql, *values, **named)
        return rows[0] if rows else None

    def values(self, sql: str, *values: Any, **named: Any) -> list[Any]:
        """The first column of all rows."""
        return [row[0] for row in self.run(sql, *values, **named)]

    def value(self, sql: str, *values: Any, **named: Any) -> Any:
        """The first column of the first row. None if there is no row."""
        rows = self.run(sql, *values, **named).fetchall()
        return rows[0][0] if rows else None

    # The key, the state of the service, rate limits, captchas

    def token_key(self, new: str) -> str:
        """The key in the database, which is `new` in a new database."""
        with self.writing():
            key = self.value("SELECT value FROM secret WHERE name = 'token_key'")
            if key is None and self.value("SELECT 1 FROM account") is None:
                key = new
                self.run("INSERT INTO secret (name, value) VALUES ('token_key', ?)", key)
        if not key:
            raise SchemaError(f"{self.path} has accounts but no key: set [token] key")
        return str(key)

    def last_time(self, name: str) -> int:
        """When something of that name last happened, as `note_time` stored it. 0 for never."""
        return int(self.value("SELECT time FROM state WHERE name = ?", name) or 0)

    def note_time(self, name: str, now: int) -> None:
        """Stores that something of that name happens now."""
        self.run("INSERT OR REPLACE INTO state (name, time) VALUES (?, ?)", name, now)

    def note_version(self, version: str, now: int) -> None:
        """Stores which version of the program serves the database from now on."""
        self.run("DELETE FROM state WHERE name LIKE 'version %'")
        self.note_time(f"version {version}", now)

    def usage(self, name: str, subject: str) -> dict[int, Usage]:
        """What a subject has used of a rate limit, by the number of seconds. Some may be over."""
        sql = "SELECT seconds, used, ends_at FROM rate_limit WHERE name = ? AND subject = ?"
        return {usage.seconds: usage for usage in self.all(Usage, sql, name, subject)}

    def keep_usage(self, name: str, subject: str, usage: Usage) -> None:
        sql = """
            INSERT OR REPLACE INTO rate_limit (name, subject, seconds, used, ends_at)
            VALUES (?, ?, ?, ?, ?)"""
        self.run(sql, name, subject, usage.seconds, usage.used, usage.ends_at)

    def return_use(self, name: str, subject: str) -> None:
        """Takes back one use that was counted in advance."""
        sql = """
            UPDATE rate_limit SET used = used - 1
             WHERE name = ? AND subject = ? AND used > 0"""
        self.run(sql, name, subject)

    def note_spent_captcha(
        self, signature: str, expires_at: int, comment_id: int | None = None
    ) -> bool:
        """Spends a captcha, perhaps on a comment. False if it was spent before."""
        sql = """
            INSERT INTO spent_captcha (signature, expires_at, comment_id) VALUES (?, ?, ?)
                ON CONFLICT (signature) DO NOTHING"""
        return self.run(sql, signature, expires_at, comment_id).rowcount == 1

    def spent_on(self, signature: str) -> int | None:
        """The id of the comment on which a captcha was spent, 0 if it was spent on something else.
        None if it was not spent."""
        sql = "SELECT coalesce(comment_id, 0) FROM spent_captcha WHERE signature = ?"
        comment_id: int | None = self.value(sql, signature)
        return comment_id

    # Accounts and registrations

    def account(self, user_id: int) -> Account | None:
        return self.one(Account, "SELECT * FROM account WHERE id = ?", user_id)

    def account_with_email(self, email: str) -> Account | None:
        return self.one(Account, "SELECT * FROM account WHERE email = ?", email)

    def admins(self) -> list[Account]:
        """All admins, the oldest account first."""
        sql = "SELECT * FROM account WHERE role = 'admin' AND blocked = 0 ORDER BY id"
        return self.all(Account, sql)

    def accounts(self, pattern: str, before: int, limit: int) -> list[AccountSummary]:
        """The newest first, with an id below `before`; `pattern` is one for LIKE, or ""."""
        sql = """
            SELECT account.id, email, nickname, role, blocked, created_at,
                   (SELECT count(*) FROM comment
                     WHERE comment.user_id = account.id AND status = 'visible') AS comments
              FROM account WHERE account.id < :before"""
        if pattern:
            sql += " AND (email LIKE :pattern ESCAPE '!' OR nickname LIKE :pattern ESCAPE '!')"
        sql += " ORDER BY account.id DESC LIMIT :limit"
        return self.all(AccountSummary, sql, pattern=pattern, before=before, limit=limit)

    def set_rights(self, account: Account, *, revoke: bool) -> None:
        """Stores its role, and whether it is blocked. `revoke` also makes tokens and one-time links
        void, so that lost rights can't be used. An admin loses claimed comments."""
        sql = "UPDATE account SET role = ?, blocked = ? WHERE id = ?"
        self.run(sql, account.role, account.blocked, account.id)
        if account.role == "admin":
            self.lose_claimed(account.id)
        if revoke:
            self.revoke_tokens(account.id)
            sql = """
                DELETE FROM admin_link
                 WHERE email = (SELECT email FROM account WHERE id = ?)"""
            self.run(sql, account.id)

    def add_admin_link(self, link: str, email: str, expires_at: int) -> None:
        """Replaces older links for the same email address. "" stands for any. Only the hash of the
        link is stored."""
        sql = """
            DELETE FROM admin_link WHERE email = :email;
            INSERT INTO admin_link (hash, email, expires_at) VALUES (:hash, :email, :expires_at)"""
        self.run_script(sql, hash=sha256_of(link), email=email, expires_at=expires_at)

    def admin_link_email(self, link: str, now: int) -> str | None:
        """The email address that a one-time link is for. None if the link is not valid. A link for
        any email address ends when there is an admin."""
        sql = """
            SELECT email FROM admin_link
             WHERE hash = ? AND expires_at > ?
               AND (email <> '' OR NOT EXISTS (SELECT 1 FROM account WHERE role = 'admin'))"""
        email: str | None = self.value(sql, sha256_of(link), now)
        return email

    def make_admin(self, email: str, nickname: str, password: str, now: int) -> Account:
        """Makes the account, or gives an existing one the role and the password. Its tokens are
        revoked, the links for this email address or for any end, it loses claimed comments, and
        it needs no authenticator app: that may be what was lost."""
        sql = """
            DELETE FROM registration WHERE email = :email;
            DELETE FROM admin_link WHERE email IN ('', :email)"""
        self.run_script(sql, email=email)
        account = self.account_with_email(email)
        if account is None:
            sql = """
                INSERT INTO account (email, nickname, password, role, created_at)
                VALUES (?, ?, ?, 'admin', ?)"""
            user_id = cast(int, self.run(sql, email, nickname, password, now).lastrowid)
            self.take_look(user_id, nickname)
        else:
            sql = "UPDATE account SET password = ?, role = 'admin', blocked = 0 WHERE id = ?"
            self.run(sql, password, account.id)
            self.revoke_tokens(account.id)
            self.forget_sign_ins(account.id)
            self.lose_claimed(account.id)
            self.set_app_key(account.id, "", [])
        return cast(Account, self.account_with_email(email))

    def lose_claimed(self, user_id: int) -> None:
        """An account loses the comments that guests wrote with its email address: anybody can have
        written them, and they would look like an admin's."""
        self.run("UPDATE comment SET user_id = NULL WHERE user_id = ? AND email <> ''", user_id)

    def set_language(self, user_id: int, language: str) -> None:
        self.run("UPDATE account SET language = ? WHERE id = ?", language, user_id)

    def revoke_tokens(self, user_id: int) -> None:
        self.run("UPDATE account SET version = version + 1 WHERE id = ?", user_id)
        self.run("DELETE FROM admin_session WHERE user_id = ?", user_id)

    # An admin's second factor, and sessions

    def set_app_key(self, user_id: int, app_key: str, code_hashes: list[str]) -> None:
        """What the codes of an authenticator app are compared with from now on, with recovery
        codes. "" and none: an app is not needed any more."""
        self.run("UPDATE account SET app_key = ?, app_step = 0 WHERE id = ?", app_key, user_id)
        self.run("DELETE FROM recovery_code WHERE user_id = ?", user_id)
        for code_hash in code_hashes:
            sql = "INSERT INTO recovery_code (user_id, hash) VALUES (?, ?)"
            self.run(sql, user_id, code_hash)

    def note_app_step(self, user_id: int, step: int) -> None:
        """The code of that time step, and those before it, are used up."""
        self.run("UPDATE account SET app_step = ? WHERE id = ?", step, user_id)

    def recovery_codes(self, user_id: int) -> list[str]:
        """Their hashes, as far as none was used."""
        return self.values("SELECT hash FROM recovery_code WHERE user_id = ?", user_id)

    def drop_recovery_code(self, user_id: int, code_hash: str) -> None:
        self.run("DELETE FROM recovery_code WHERE user_id = ? AND hash = ?", user_id, code_hash)

    def add_admin_session(self, user_id: int, device: str, ip: str, country: str, now: int) -> int:
        """Returns its id."""
        sql = """
            INSERT INTO admin_session (user_id, device, ip, country, created_at, seen_at)
            VALUES (?, ?, ?, ?, ?, ?)"""
        return cast(int, self.run(sql, user_id, device, ip, country, now, now).lastrowid)

    def admin_session(self, session_id: int) -> AdminSession | None:
        return self.one(AdminSession, "SELECT * FROM admin_session WHERE id = ?", session_id)

    def admin_sessions(self, user_id: int) -> list[AdminSession]:
        """Those of an admin, the last used first."""
        sql = "SELECT * FROM admin_session WHERE user_id = ? ORDER BY seen_at DESC, id DESC"
        return self.all(AdminSession, sql, user_id)

    def note_admin_sessions(self, seen_at: dict[int, int]) -> None:
        """Stores when sessions were last used."""
        for session_id, seconds in seen_at.items():
            self.run("UPDATE admin_session SET seen_at = ? WHERE id = ?", seconds, session_id)

    def end_admin_session(self, session_id: int) -> None:
        self.run("DELETE FROM admin_session WHERE id = ?", session_id)

    def strengthen_password(self, account: Account, password: str) -> None:
        """Stores the same password, hashed again, unless it has changed: tokens stay valid."""
        sql = "UPDATE account SET password = ? WHERE id = ? AND password = ?"
        self.run(sql, password, account.id, account.password)

    def registrations(self, email: str) -> list[Registration]:
        """All that wait for the email address, also with a code that has expired."""
        sql = """
            SELECT request_id, email, nickname, password, code, client, language, created_at,
                   expires_at, tries, named_tries
              FROM registration WHERE email = ? ORDER BY id"""
        return self.all(Registration, sql, email)

    def remember_network(self, user_id: int, network: str, now: int) -> None:
        """Stores that the account has signed in from this network. The last five are kept."""
        sql = """
            INSERT INTO known_network (user_id, network, seen_at)
            VALUES (:user_id, :network, :now)
                ON CONFLICT (user_id, network) DO UPDATE SET seen_at = excluded.seen_at;
            DELETE FROM known_network WHERE user_id = :user_id AND network NOT IN
                   (SELECT network FROM known_network WHERE user_id = :user_id
                     ORDER BY seen_at DESC LIMIT 5)"""
        self.run_script(sql, user_id=user_id, network=network, now=now)

    def knows_network(self, user_id: int, network: str) -> bool:
        sql = "SELECT 1 FROM known_network WHERE user_id = ? AND network = ?"
        return self.value(sql, user_id, network) is not None

    def sign_in_times(self, user_id: int) -> list[int]:
        """When the account last signed in from each known network, the newest first."""
        sql = "SELECT seen_at FROM known_network WHERE user_id = ? ORDER BY seen_at DESC"
        return self.values(sql, user_id)

    def add_registration(self, new: Registration, replaced: str) -> int:
        """Replaces the client's own registration for the email address, and the one with the
        request id `replaced`. Returns its id."""
        sql = """
            DELETE FROM registration
             WHERE email = :email AND (client = :client OR request_id = :replaced)"""
        self.run(sql, email=new.email, client=new.client, replaced=replaced)
        sql = """
            INSERT INTO registration
                   (request_id, email, nickname, password, code, client, language, created_at,
                    expires_at, tries, named_tries)
            VALUES (:request_id, :email, :nickname, :password, :code, :client, :language,
                    :created_at, :expires_at, :tries, :named_tries)
            RETURNING id"""
        registration_id = self.value(
            sql,
            request_id=new.request_id,
            email=new.email,
            nickname=new.nickname,
            password=new.password,
            code=new.code,
            client=new.client,
            language=new.language,
            created_at=new.created_at,
            expires_at=new.expires_at,
            tries=new.tries,
            named_tries=new.named_tries,
        )
        return int(registration_id)

    def revise_registration(self, request_id: str, nickname: str, password: str) -> None:
        """Changes what a registration will make. Its code stays."""
        sql = "UPDATE registration SET nickname = ?, password = ? WHERE request_id = ?"
        self.run(sql, nickname, password, request_id)

    def drop_registration(self, request_id: str) -> bool:
        """Drops a registration. False if it does not wait any more."""
        sql = "DELETE FROM registration WHERE request_id = ?"
        return self.run(sql, request_id).rowcount == 1

    def count_try(self, request_id: str) -> None:
        """Counts a guess that named no request and was compared with the code of this one."""
        self.run("UPDATE registration SET tries = tries + 1 WHERE request_id = ?", request_id)

    def count_named_try(self, request_id: str) -> None:
        """Counts a guess that named this request."""
        sql = "UPDATE registration SET named_tries = named_tries + 1 WHERE request_id = ?"
        self.run(sql, request_id)

    def return_named_try(self, request_id: str) -> None:
        """Takes back the last guess that named this request: it was right."""
        sql = "UPDATE registration SET named_tries = named_tries - 1 WHERE request_id = ?"
        self.run(sql, request_id)

    def confirm(self, registration: Registration, now: int) -> Account:
        """Makes the account, or gives it the new nickname, password and language and revokes its
        tokens. All that waits for the email address is dropped, emails with codes included."""
        account = self.account_with_email(registration.email)
        if account is None:
            return self.make_account(
                registration.email,
                nickname=registration.nickname,
                password=registration.password,
                language=registration.language,
                now=now,
            )
        self.run("DELETE FROM registration WHERE email = ?", account.email)
        sql = "UPDATE account SET nickname = ?, password = ?, language = ? WHERE id = ?"
        changed = (registration.nickname, registration.password, registration.language)
        self.run(sql, *changed, account.id)
        self.take_look(account.id, registration.nickname)
        self.revoke_tokens(account.id)
        self.forget_sign_ins(account.id)
        return cast(Account, self.account(account.id))

    def make_account(
        self, email: str, *, nickname: str, password: str, language: str, now: int
    ) -> Account:
        """A new account. All that waits for the email address is dropped.

        It gets the comments that guests wrote with its email address. Anybody can have written
        them, so an account that exists and an admin get none. Claimed comments keep the email
        address: it shows which ones an account loses when it becomes an admin's."""
        self.run("DELETE FROM registration WHERE email = ?", email)
        sql = """
            INSERT INTO account (email, nickname, password, language, created_at)
            VALUES (?, ?, ?, ?, ?)"""
        self.run(sql, email, nickname, password, language, now)
        account = cast(Account, self.account_with_email(email))
        self.take_look(account.id, nickname)
        sql = "UPDATE comment SET user_id = ? WHERE email = ? AND user_id IS NULL"
        self.run(sql, account.id, email)
        return account

    def forget_sign_ins(self, user_id: int) -> None:
        """Nobody is known any more after a new password: somebody else may have signed in with the
        old one. They may also have joined an identity of theirs."""
        self.run("DELETE FROM known_network WHERE user_id = ?", user_id)
        self.run("DELETE FROM joined_identity WHERE user_id = ?", user_id)

    def add_voucher(self, new: Voucher) -> bool:
        """False if there was one for the same state."""
        sql = """
            INSERT INTO voucher (hash, secret, state, issuer, subject, email, verified, nickname,
                                 language, expires_at)
            VALUES (:hash, :secret, :state, :issuer, :subject, :email, :verified, :nickname,
                    :language, :expires_at)
                ON CONFLICT DO NOTHING"""
        added = self.run(
            sql,
            hash=new.hash,
            secret=new.secret,
            state=new.state,
            issuer=new.issuer,
            subject=new.subject,
            email=new.email,
            verified=new.verified,
            nickname=new.nickname,
            language=new.language,
            expires_at=new.expires_at,
        )
        return added.rowcount == 1

    def voucher(self, voucher_hash: str, now: int) -> Voucher | None:
        """None if there is none, or no longer. Whether it was used, `use_voucher` tells."""
        sql = "SELECT * FROM voucher WHERE hash = ? AND expires_at > ?"
        return self.one(Voucher, sql, voucher_hash, now)

    def use_voucher(self, voucher_hash: str) -> bool:
        """False if it was used. Until it expires, its row keeps the state from bringing another."""
        sql = """
            UPDATE voucher SET used = 1, issuer = '', subject = '', email = '', nickname = ''
             WHERE hash = ? AND used = 0"""
        return self.run(sql, voucher_hash).rowcount == 1

    def account_of_identity(self, issuer: str, subject: str) -> Account | None:
        sql = """
            SELECT account.* FROM joined_identity
              JOIN account ON account.id = joined_identity.user_id
             WHERE issuer = ? AND subject = ?"""
        return self.one(Account, sql, issuer, subject)

    def join_identity(self, issuer: str, subject: str, user_id: int, now: int) -> None:
        sql = """
            INSERT INTO joined_identity (issuer, subject, user_id, joined_at)
            VALUES (?, ?, ?, ?)"""
        self.run(sql, issuer, subject, user_id, now)

    def identities_of(self, user_id: int) -> list[JoinedIdentity]:
        """The oldest first."""
        sql = "SELECT * FROM joined_identity WHERE user_id = ? ORDER BY joined_at, issuer, subject"
        return self.all(JoinedIdentity, sql, user_id)

    def part_identity(self, identity: JoinedIdentity) -> None:
        sql = "DELETE FROM joined_identity WHERE issuer = ? AND subject = ?"
        self.run(sql, identity.issuer, identity.subject)

    def set_nickname(self, user_id: int, nickname: str) -> None:
        """Sets the nickname of new comments."""
        self.run("UPDATE account SET nickname = ? WHERE id = ?", nickname, user_id)
        self.take_look(user_id, nickname)

    def take_look(self, user_id: int, nickname: str) -> None:
        """Stores what the nickname of an account looks like. If that has not changed, it stays as
        old as it is."""
        looks = skeletons(nickname)
        sql = "SELECT skeleton FROM taken_look WHERE user_id = ?"
        if looks == {*self.values(sql, user_id)}:
            return
        self.run("DELETE FROM taken_look WHERE user_id = ?", user_id)
        for look in sorted(looks):
            sql = "INSERT INTO taken_look (skeleton, user_id) VALUES (?, ?)"
            self.run(sql, look, user_id)

    def has_taken_look(self, nickname: str, user_id: int) -> bool:
        """Whether a nickname looks like that of another account than this one (0: of any). Where
        two accounts have such a name, only for the one that took it later."""
        looks = possible_skeletons(nickname)
        before = self.own_look_since(looks, user_id)
        return any(self.is_look_taken(look, user_id, before) for look in looks)

    def is_look_taken(self, look: str, user_id: int, before: int) -> bool:
        """Whether another account has this look, with an id below `before`."""
        if UNKNOWN_LOOK not in look:
            sql = "SELECT 1 FROM taken_look WHERE skeleton = ? AND user_id <> ? AND id < ?"
            return self.value(sql, look, user_id, before) is not None
        # Few names have a character that could be any. Of such a name the length is known.
        sql = """
            SELECT skeleton FROM taken_look
             WHERE length(skeleton) = ? AND user_id <> ? AND id < ?"""
        known = self.values(sql, len(look), user_id, before)
        return any(could_be(look, each) for each in known)

    def own_look_since(self, looks: Collection[str], user_id: int) -> int:
        """The id with which an account took the first of these looks. `NO_END` if it has none."""
        sql = """
            SELECT min(id) FROM taken_look
             WHERE user_id = ? AND skeleton IN (SELECT value FROM json_each(?))"""
        return self.value(sql, user_id, json.dumps([*looks])) or NO_END

    def set_password(self, user_id: int, password: str) -> None:
        """Stores a new password, which revokes the tokens."""
        self.run("UPDATE account SET password = ? WHERE id = ?", password, user_id)
        self.revoke_tokens(user_id)
        self.forget_sign_ins(user_id)

    def erase_account(self, account: Account, subscriber: str, *, comments: bool) -> None:
        """Deletes an account and what is stored of it. Its comments keep their text, without an
        author; with `comments` they are erased too."""
        visitor = account_as_visitor(account.id)
        ids = self.values("SELECT id FROM comment WHERE user_id = ?", account.id)
        # Emails to owners hold the reasons of reports.
        reported = self.values("SELECT comment_id FROM report WHERE visitor = ?", visitor)
        for comment_id in [*ids, *reported]:
            self.withdraw(comment_id)
        if comments:
            self.erase_comments(ids)
        sql = """
            UPDATE comment_liker SET visitor = 'past ' || random() WHERE visitor = :visitor;
            UPDATE page_liker SET visitor = 'past ' || random() WHERE visitor = :visitor;
            UPDATE report SET visitor = 'past ' || random(), reason = '' WHERE visitor = :visitor;
            UPDATE comment SET email = '' WHERE email = :email AND email <> '';
            DELETE FROM registration WHERE email = :email;
            DELETE FROM voucher WHERE email = :email;
            DELETE FROM admin_link WHERE email = :email;
            DELETE FROM outbox WHERE recipient = :email;
            DELETE FROM notification WHERE recipient = :email AND outbox_id IS NULL;
            DELETE FROM subscription WHERE subscriber = :subscriber;
            DELETE FROM no_question WHERE subscriber = :subscriber"""
        self.run_script(sql, email=account.email, visitor=visitor, subscriber=subscriber)
        sql = f"UPDATE comment SET {assignments(PERSONAL_FIELDS)}, masked = 1 WHERE user_id = :id"
        self.run(sql, id=account.id, **values_of(BLANK_COMMENT, PERSONAL_FIELDS))
        self.run("DELETE FROM account WHERE id = ?", account.id)

    # Pages

    def page(self, key: str) -> Page | None:
        return self.one(Page, "SELECT * FROM page WHERE key = ?", key)

    def pages_with_keys(self, keys: list[str]) -> dict[str, Page]:
        """The pages that are there, by key."""
        sql = "SELECT * FROM page WHERE key IN (SELECT value FROM json_each(?))"
        return {page.key: page for page in self.all(Page, sql, json.dumps(keys))}

    def page_named(self, name: PageName) -> Page:
        """The page. One with the id 0 if nobody has written on it or seen it."""
        return self.page(name.key) or Page(0, name.key, name.page_url)

    def page_by_id(self, page_id: int) -> Page | None:
        return self.one(Page, "SELECT * FROM page WHERE id = ?", page_id)

    def pages(self, sort: str, pattern: str, offset: int, limit: int) -> list[Page]:
        """The pages whose URL or title matches the LIKE `pattern`. "" stands for all."""
        sql = "SELECT * FROM page"
        if pattern:
            sql += " WHERE page_url LIKE :pattern ESCAPE '!' OR title LIKE :pattern ESCAPE '!'"
        sql += f" ORDER BY {PAGE_SORTS[sort]} LIMIT :limit OFFSET :offset"
        return self.all(Page, sql, pattern=pattern, offset=offset, limit=limit)

    def all_pages(self) -> list[Page]:
        return self.all(Page, "SELECT * FROM page ORDER BY key")

    def add_page(self, key: str, page_url: str, now: int, opened_at: int | None = None) -> Page:
        """Adds a page. Without `opened_at`, its age counts from now."""
        sql = "INSERT INTO page (key, page_url, seen_at, opened_at) VALUES (?, ?, ?, ?) RETURNING *"
        opened_at = now if opened_at is None else opened_at
        return self.all(Page, sql, key, page_url, now, opened_at)[0]

    def set_title(
        self, page_id: int, title: str, source: str, comment_id: int | None = None
    ) -> None:
        """Gives a page a title. Without one, it has none, and takes the next one from anywhere."""
        sql = "UPDATE page SET title = ?, title_source = ?, title_comment_id = ? WHERE id = ?"
        self.run(sql, title, source if title else "", comment_id, page_id)

    def hold_title(self, comment_id: int) -> None:
        """A comment is not visible any more: nor is the title that came with it."""
        sql = """
            UPDATE page SET title_source = 'held'
             WHERE title_comment_id = :id AND title_source = 'comment'
               AND id = (SELECT page_id FROM comment WHERE id = :id)"""
        self.run(sql, id=comment_id)

    def show_title(self, comment_id: int) -> None:
        """A comment is visible now, and with it the title that came with it."""
        sql = """
            UPDATE page SET title_source = 'comment'
             WHERE title_comment_id = :id AND title_source = 'held'
               AND id = (SELECT page_id FROM comment WHERE id = :id)"""
        self.run(sql, id=comment_id)

    def set_closed(self, page_id: int, closed: bool, now: int) -> None:
        """Closes or reopens a page. The age of a page that is reopened begins anew."""
        sql = "UPDATE page SET closed = ?, opened_at = ? WHERE id = ?"
        self.run(sql, closed, now, page_id)

    def move_page(self, page_id: int, key: str, page_url: str) -> int:
        """Gives a page another key. If another page has it, that one takes in all of this one, and
        a visitor who liked both counts once. It keeps its title, unless that of this one comes from
        a better source. Returns the id of the page that has the key."""
        other = self.page(key)
        if other is None or other.id == page_id:
            self.run("UPDATE page SET key = ?, page_url = ? WHERE id = ?", key, page_url, page_id)
            return page_id
        page = self.page_by_id(page_id)
        if page and page.title and other.takes_title_of(page.title_source):
            self.set_title(other.id, page.title, page.title_source, page.title_comment_id)
        sql = """
            UPDATE comment SET page_id = :new WHERE page_id = :old;

            INSERT INTO page_liker (page_id, visitor, liked_at)
            SELECT :new, visitor, liked_at FROM page_liker WHERE page_id = :old
                ON CONFLICT DO NOTHING;
            DELETE FROM page_liker WHERE page_id = :old;

            INSERT INTO subscription (subscriber, page_id, state)
            SELECT subscriber, :new, state FROM subscription WHERE page_id = :old
                ON CONFLICT DO NOTHING;
            DELETE FROM subscription WHERE page_id = :old;

            INSERT INTO follow (user_id, page_id, language)
            SELECT user_id, :new, language FROM follow WHERE page_id = :old
                ON CONFLICT DO NOTHING;
            DELETE FROM follow WHERE page_id = :old;

            UPDATE page AS p SET total = p.total + o.total, threads = p.threads + o.threads,
                   views = p.views + o.views,
                   page_likes = (SELECT count(*) FROM page_liker WHERE page_id = :new)
              FROM page AS o WHERE p.id = :new AND o.id = :old;
            DELETE FROM page WHERE id = :old;"""
        self.run_script(sql, old=page_id, new=other.id)
        return other.id

    def unknown_pages(self, keys: list[str]) -> list[str]:
        """The page keys among these that have no page."""
        return [key for key in keys if self.page(key) is None]

    def add_views(self, counts: dict[str, int], now: int) -> None:
        """Adds to the views of pages, by page key."""
        sql = "UPDATE page SET views = views + ?, seen_at = ? WHERE key = ?"
        for key, count in counts.items():
            self.run(sql, count, now, key)
        self.add_to_day(now, views=sum(counts.values()))

    def add_to_day(self, now: int, *, comments: int = 0, views: int = 0, likes: int = 0) -> None:
        """Adds to the counts of the day. `likes` may be less than zero."""
        sql = """
            INSERT INTO day AS d (day, comments, views, likes)
            VALUES (?, ?, ?, ?)
                ON CONFLICT (day) DO UPDATE
               SET comments = d.comments + excluded.comments, views = d.views + excluded.views,
                   likes = d.likes + excluded.likes"""
        self.run(sql, self.day_of(now), comments, views, likes)

    def day_of(self, seconds: float) -> int:
        """The number of a day, counted from 1970."""
        return time_of(seconds, self.zone).toordinal() - FIRST_DAY

    # Comments

    def comments_where(
        self, row_type: type[CommentRow], condition: str, *values: Any, **named: Any
    ) -> list[CommentRow]:
        """`condition` begins with WHERE, and may say the order. Values are given to the row by
        their place: by name, a list took a third longer."""
        rows = self.run(SELECT_COMMENTS[row_type] + condition, *values, **named)
        return [row_type(*row) for row in rows]

    def comment(self, comment_id: int | None) -> FullComment | None:
        found = self.comments_where(FullComment, " WHERE comment.id = ?", comment_id)
        return found[0] if found else None

    def existing_comment(self, comment_id: int) -> FullComment:
        """`LookupError` if there is none: the caller has seen it in this transaction."""
        comment = self.comment(comment_id)
        if comment is None:
            raise LookupError(f"there is no comment {comment_id}")
        return comment

    def longest_waiting(self, limit: int) -> list[FullComment]:
        sql = """
             WHERE comment.id IN (SELECT id FROM comment
                                   WHERE status = 'waiting' ORDER BY id LIMIT ?)
             ORDER BY comment.id"""
        return self.comments_where(FullComment, sql, limit)

    # The lists of comments. In each, the inner statement reads the ids from an index alone, so
    # that a deep page costs little more than the first.

    def visible_comments(self, page_id: int, sort: str, offset: int, limit: int) -> list[Comment]:
        """A part of the flat list of a page."""
        order = SORTS[sort]
        sql = f"""
             WHERE comment.id IN (SELECT id FROM comment
                                   WHERE page_id = ? AND status = 'visible'
                                   ORDER BY {order} LIMIT ? OFFSET ?)
             ORDER BY {order}"""
        return self.comments_where(Comment, sql, page_id, limit, offset)

    def visible_before(self, page_id: int, sort: str, comment_id: int) -> int:
        """How many comments of that list come before one. 0 if it does not hold that one."""
        # With the LIMIT, SQLite numbers no comments behind this one. It is mostly one of the first:
        # links in emails lead to new comments.
        sql = f"""
            SELECT position FROM (
                SELECT id, row_number() OVER (ORDER BY {SORTS[sort]}) - 1 AS position
                  FROM comment WHERE page_id = ? AND status = 'visible')
             WHERE id = ? LIMIT 1"""
        return self.value(sql, page_id, comment_id) or 0

    def top_level_comments(self, page_id: int, sort: str, offset: int, limit: int) -> list[Comment]:
        """A part of the threads of a page: their top-level comments, the pinned ones first."""
        order = f"comment.pinned DESC, {SORTS[sort]}"
        sql = f"""
             WHERE comment.id IN (SELECT id FROM comment
                                   WHERE page_id = ? AND shown = 1 AND parent_id IS NULL
                                   ORDER BY {order} LIMIT ? OFFSET ?)
             ORDER BY {order}"""
        return self.comments_where(Comment, sql, page_id, limit, offset)

    def threads_before(self, page_id: int, sort: str, comment_id: int) -> int:
        """How many threads of that list come before that of a comment. 0 if it does not hold it."""
        order = f"comment.pinned DESC, {SORTS[sort]}"
        sql = f"""
            SELECT position FROM (
                SELECT id, row_number() OVER (ORDER BY {order}) - 1 AS position
                  FROM comment WHERE page_id = ? AND shown = 1 AND parent_id IS NULL)
             WHERE id = (SELECT coalesce(thread_id, id) FROM comment WHERE id = ? AND shown = 1)
             LIMIT 1"""
        return self.value(sql, page_id, comment_id) or 0

    def replies(self, thread_id: int, offset: int, limit: int) -> list[Comment]:
        """A part of the replies of a thread, the oldest first."""
        sql = """
             WHERE comment.id IN (SELECT id FROM comment WHERE thread_id = ? AND shown = 1
                                   ORDER BY created_at, id LIMIT ? OFFSET ?)
             ORDER BY comment.created_at, comment.id"""
        return self.comments_where(Comment, sql, thread_id, limit, offset)

    def replies_before(self, thread_id: int, comment_id: int) -> int:
        """How many replies of that list come before one. 0 if it does not hold that one."""
        sql = """
            SELECT count(*) FROM comment
             WHERE thread_id = :thread_id AND shown = 1 AND (created_at, id) <
                   (SELECT created_at, id FROM comment
                     WHERE id = :id AND thread_id = :thread_id AND shown = 1)"""
        return int(self.value(sql, thread_id=thread_id, id=comment_id))

    def first_replies(self, thread_ids: list[int], most: int) -> dict[int, list[Comment]]:
        """The oldest replies of each thread, at most so many of each, by the id of the thread."""
        # In one statement: one for each thread took three times as long. CROSS: SQLite would begin
        # with all comments.
        sql = """
             WHERE comment.id IN
                   (SELECT reply.id
                      FROM json_each(:threads) AS thread
                     CROSS JOIN comment AS reply ON reply.id IN
                           (SELECT id FROM comment WHERE thread_id = thread.value AND shown = 1
                             ORDER BY created_at, id LIMIT :most))
             ORDER BY comment.created_at, comment.id"""
        threads = json.dumps(thread_ids)
        replies: dict[int, list[Comment]] = {thread_id: [] for thread_id in thread_ids}
        for reply in self.comments_where(Comment, sql, threads=threads, most=most):
            replies[cast(int, reply.thread_id)].append(reply)
        return replies

    def changed_comments(self, page_id: int, mark: int, limit: int) -> list[Comment]:
        """The comments that readers saw change after the page had that mark, also those that are
        not shown any more; the oldest comment first."""
        sql = """
             WHERE comment.id IN (SELECT id FROM comment WHERE page_id = ? AND mark > ?
                                   ORDER BY mark LIMIT ?)
             ORDER BY comment.created_at, comment.id"""
        return self.comments_where(Comment, sql, page_id, mark, limit)

    def count_replies(self, thread_id: int) -> int:
        sql = "SELECT count(*) FROM comment WHERE thread_id = ? AND shown = 1"
        return int(self.value(sql, thread_id))

    def latest_comments(self, limit: int) -> list[Comment]:
        """The latest comments on the pages of the blog: the keys of pages on other hosts begin with
        two slashes."""
        sql = """
             WHERE comment.status = 'visible' AND page.key LIKE '/%' AND page.key NOT LIKE '//%'
             ORDER BY comment.created_at DESC, comment.id DESC LIMIT ?"""
        return self.comments_where(Comment, sql, limit)

    def same_comment(self, new: FullComment) -> Comment | None:
        """A comment of the minute before, of the same author with the same text in the same
        place."""
        sql = """
             WHERE comment.page_id = :page_id AND comment.status IN ('visible', 'waiting', 'spam')
               AND comment.created_at BETWEEN :now - 60 AND :now AND comment.content = :content
               AND comment.parent_id IS :parent_id AND comment.user_id IS :user_id
               AND comment.nickname = :nickname
               AND (comment.ip = :ip OR comment.user_id IS NOT NULL)"""
        found = self.comments_where(
            Comment,
            sql,
            page_id=new.page_id,
            now=new.created_at,
            content=new.content,
            parent_id=new.parent_id,
            user_id=new.user_id,
            nickname=new.nickname,
            ip=new.ip,
        )
        return found[0] if found else None

    def comments_of(self, user_id: int) -> list[Comment]:
        sql = """
             WHERE comment.user_id = ? AND comment.content <> ''
             ORDER BY comment.id"""
        return self.comments_where(Comment, sql, user_id)

    def count_comments_of(self, user_id: int) -> int:
        sql = "SELECT count(*) FROM comment WHERE user_id = ? AND content <> ''"
        return int(self.value(sql, user_id))

    def search_comments(
        self, search: str, pattern: str, page_id: int | None, before: int, limit: int
    ) -> list[FullComment]:
        """What an admin looks for, the newest first. `search` is one of `SEARCHES`, `pattern` is
        one for LIKE or "", and `page_id` None stands for all pages."""
        sql = " WHERE comment.content <> '' AND comment.id < :before"
        if search == "reported":
            sql += " AND comment.id IN (SELECT comment_id FROM report)"
        elif search != "all":
            sql += " AND comment.status = :search"
        if page_id is not None:
            sql += " AND comment.page_id = :page_id"
        if pattern:
            sql += """
                AND (comment.content LIKE :pattern ESCAPE '!'
                     OR comment.nickname LIKE :pattern ESCAPE '!'
                     OR comment.email LIKE :pattern ESCAPE '!'
                     OR account.email LIKE :pattern ESCAPE '!'
                     OR comment.ip LIKE :pattern ESCAPE '!'
                     OR page.page_url LIKE :pattern ESCAPE '!'
                     OR page.title LIKE :pattern ESCAPE '!')"""
        sql += " ORDER BY comment.id DESC LIMIT :limit"
        return self.comments_where(
            FullComment,
            sql,
            search=search,
            pattern=pattern,
            page_id=page_id,
            before=before,
            limit=limit,
        )

    def count_known(self, comment: FullComment) -> int:
        """How many other visible comments the author of a comment has, up to a hundred. A guest is
        known by nickname together with IP address, or its network where that was masked since; an
        email address proves nothing."""
        if comment.user_id is not None:
            sql = """
                SELECT count(*) FROM (SELECT id FROM comment
                                       WHERE user_id = ? AND status = 'visible' AND id <> ?
                                       LIMIT 100)"""
            return int(self.value(sql, comment.user_id, comment.id))
        sql = """
            SELECT count(*) FROM (SELECT id FROM comment
                                   WHERE nickname = :nickname AND ip IN (:ip, :network)
                                     AND status = 'visible' AND user_id IS NULL AND id <> :id
                                   LIMIT 100)"""
        network = masked(comment.ip)
        values = {"nickname": comment.nickname, "ip": comment.ip}
        return int(self.value(sql, **values, network=network, id=comment.id))

    def count_statuses(self) -> dict[str, int]:
        """The number of comments by status, without erased ones, and of those `reported`."""
        # The index is enough, except for deleted comments: those that were erased do not count.
        sql = """
            SELECT status, count(*) FROM comment WHERE status <> 'deleted' GROUP BY status
             UNION ALL
            SELECT 'deleted', count(*) FROM comment WHERE status = 'deleted' AND content <> ''
             UNION ALL
            SELECT 'reported', count(DISTINCT comment_id) FROM report"""
        return dict.fromkeys(STATUSES, 0) | dict(self.run(sql))

    # What the counters count, and which method keeps them. `add_comment_row` sets all for a new
    # row, and `COUNTERS` has the same as SQL, for `recount`.
    # - `page.total`: visible comments. `show`, `take_from_total`
    # - `comment.shown`: 1 if visible, or above a shown reply. `update_shown`
    # - `comment.replies`: shown replies. `page.threads`: shown top-level comments. `update_shown`

    def insert_comment(self, new: FullComment, status: str, now: int) -> Comment:
        return self.existing_comment(self.add_comment_row(new, status, now))

    def add_comment_row(self, new: FullComment, status: str, now: int) -> int:
        """The counts of its page and its parents follow. A comment of our own export keeps its id
        if no other comment has it. Returns the id."""
        comment_id = new.id or None  # None for the next one
        if comment_id and self.value("SELECT 1 FROM comment WHERE id = ?", comment_id):
            comment_id = None
        thread_id = None
        if new.parent_id is not None:
            sql = "SELECT coalesce(thread_id, id) FROM comment WHERE id = ?"
            thread_id = self.value(sql, new.parent_id)
        is_visible = status == "visible"
        mark = 0
        if is_visible:
            sql = """
                UPDATE page
                   SET total = total + 1, threads = threads + ?, mark = mark + 1, needs_rebuild = 1
                 WHERE id = ? RETURNING mark"""
            mark = self.value(sql, new.parent_id is None, new.page_id)
        # All is as it stays, since each change of a row changes many indexes.
        values = {
            **values_of(new, STORED_FIELDS),
            "id": comment_id,
            "thread_id": thread_id,
            "pinned": int(is_visible and new.pinned),
            "status": status,
            "shown": int(is_visible),
            "hidden_at": now if status in ("spam", "deleted") else None,
            "mark": mark,
        }
        # With RETURNING, this statement takes half as long again.
        comment_id = cast(int, self.run(INSERT_COMMENT, **values).lastrowid)
        if is_visible and new.parent_id is not None:
            sql = "UPDATE comment SET replies = replies + 1 WHERE id = ?"
            self.run(sql, new.parent_id)
            self.update_shown(new.parent_id)
        self.add_to_day(new.created_at, comments=1)
        return comment_id

    def update_comment(self, edited: Comment, now: int) -> None:
        """Stores what its author wrote, as it was changed. The filter may learn it again. As long
        as the content is the same, so is its HTML, which may have been imported."""
        old = self.existing_comment(edited.id)
        if edited.content != old.content:
            edited = replace(edited, own_html=0, edited_at=now)
        names = (*WRITTEN_FIELDS, "html", "own_html", "edited_at")
        sql = f"UPDATE comment SET {assignments(names)}, learnt = '' WHERE id = :id"
        self.run(sql, id=edited.id, **values_of(edited, names))
        self.withdraw(edited.id)

    def set_pinned(self, comment_id: int, pinned: bool) -> None:
        self.run("UPDATE comment SET pinned = ? WHERE id = ?", pinned, comment_id)

    def set_held(self, comment_id: int, held: str) -> None:
        self.run("UPDATE comment SET held = ? WHERE id = ?", held, comment_id)

    def give_to_account(self, comment_id: int, user_id: int) -> None:
        """Makes a guest's comment one that the account wrote, as if it had been signed in."""
        self.run("UPDATE comment SET user_id = ?, email = '' WHERE id = ?", user_id, comment_id)

    def change_status(self, comment_id: int, status: str, now: int) -> None:
        """The counts of its page and its parents follow."""
        if status == "visible":
            self.show(comment_id)
        else:
            self.hide(comment_id, status, now)

    def show(self, comment_id: int) -> None:
        comment = self.existing_comment(comment_id)
        if comment.status != "visible":
            self.run("UPDATE page SET total = total + 1 WHERE id = ?", comment.page_id)
        sql = "UPDATE comment SET status = 'visible', hidden_at = NULL WHERE id = ?"
        self.run(sql, comment_id)
        self.update_shown(comment_id)
        self.show_title(comment_id)

    def hide(self, comment_id: int, status: str, now: int) -> None:
        """Hides a comment. Spam and deleted comments are erased later."""
        self.take_from_total(comment_id)
        is_refused = status in ("spam", "deleted")
        sql = "UPDATE comment SET status = ?, hidden_at = ?, pinned = 0 WHERE id = ?"
        self.run(sql, status, now if is_refused else None, comment_id)
        self.update_shown(comment_id)
        self.hold_title(comment_id)
        self.withdraw(comment_id, from_owners=is_refused)
        if is_refused:
            self.run("DELETE FROM outbox WHERE comment_id = ?", comment_id)  # its webhooks

    def take_from_total(self, comment_id: int) -> None:
        """Takes a comment out of the counts before it is hidden or erased, if it is visible now."""
        comment = self.existing_comment(comment_id)
        if comment.status == "visible":
            self.run("UPDATE page SET total = total - 1 WHERE id = ?", comment.page_id)

    def erase_comments(self, ids: list[int]) -> None:
        """Erases comments and what they tell of their authors. Replies to them keep their place."""
        for comment_id in ids:
            self.withdraw(comment_id)
            self.erase_comment(comment_id)
            self.update_shown(comment_id)

    def erase_comment(self, comment_id: int) -> None:
        self.take_from_total(comment_id)
        self.hold_title(comment_id)
        sql = f"UPDATE comment SET {assignments(BLANK_FIELDS)} WHERE id = :id"
        self.run(sql, id=comment_id, **values_of(BLANK_COMMENT, BLANK_FIELDS))
        sql = """
            DELETE FROM comment_liker WHERE comment_id = :id;
            DELETE FROM report WHERE comment_id = :id;
            UPDATE spent_captcha SET comment_id = NULL WHERE comment_id = :id;
            DELETE FROM outbox WHERE comment_id = :id;
            DELETE FROM chat_message WHERE comment_id = :id;
            DELETE FROM notification WHERE comment_id = :id;
            -- Emails about replies quote what they reply to.
            DELETE FROM notification WHERE audience = 'author' AND comment_id IN
                   (SELECT id FROM comment WHERE parent_id = :id)"""
        self.run_script(sql, id=comment_id)

    def erase_hidden(self, before: int) -> None:
        """Erases some of the comments that were hidden before that time. The rows of comments that
        were erased, now or by their authors, go when no reply needs them, some at once."""
        sql = "SELECT id FROM comment WHERE hidden_at < ? ORDER BY hidden_at LIMIT 200"
        self.erase_comments(self.values(sql, before))
        sql = """
            DELETE FROM comment WHERE id IN
                   (SELECT id FROM comment
                     WHERE status = 'deleted' AND content = '' AND hidden_at IS NULL
                       AND NOT EXISTS (SELECT 1 FROM comment AS reply
                                        WHERE reply.parent_id = comment.id
                                           OR reply.thread_id = comment.id)
                     LIMIT 200)"""
        self.run(sql)

    def update_shown(self, comment_id: int) -> None:
        """Recomputes `shown` of a comment, and what depends on it: the number of replies of the
        comment above, whether that one is shown, and so on up to where nothing changes."""
        has_replies = "SELECT replies > 0 FROM comment WHERE id = ?"
        next_id: int | None = comment_id
        while next_id is not None:
            comment = self.existing_comment(next_id)
            shown = int(comment.status == "visible" or self.value(has_replies, next_id))
            if shown == comment.shown:
                return
            self.run("UPDATE comment SET shown = ? WHERE id = ?", shown, next_id)
            more = 1 if shown else -1
            next_id = comment.parent_id
            if next_id is None:
                sql = "UPDATE page SET threads = threads + ? WHERE id = ?"
                self.run(sql, more, comment.page_id)
            else:
                self.run("UPDATE comment SET replies = replies + ? WHERE id = ?", more, next_id)

    # Likes

    # `liked` says what a visitor likes: the comment or the page with that id.

    def add_like(self, liked: Likeable, liked_id: int, visitor: str, now: int) -> int:
        """Adds the like of a visitor, unless it is there. Returns the number of likes."""
        table = LIKE_TABLES[liked]
        sql = f"""
            INSERT INTO {table.name} ({table.liked_id}, visitor, liked_at)
            VALUES (?, ?, ?) ON CONFLICT DO NOTHING"""
        added = self.run(sql, liked_id, visitor, like_time(visitor, now)).rowcount
        self.add_to_day(now, likes=added)
        return self.count_likes(liked, liked_id)

    def remove_like(self, liked: Likeable, liked_id: int, visitor: str, now: int) -> int:
        """Takes the like back, if it is there. Returns the number of likes."""
        table = LIKE_TABLES[liked]
        sql = f"DELETE FROM {table.name} WHERE {table.liked_id} = ? AND visitor = ?"
        taken = self.run(sql, liked_id, visitor).rowcount
        self.add_to_day(now, likes=-taken)
        return self.count_likes(liked, liked_id)

    def count_likes(self, liked: Likeable, liked_id: int) -> int:
        """Stores the number of likes, and returns it. 0 if there is no such comment or page."""
        table = LIKE_TABLES[liked]
        sql = f"""
            UPDATE {table.counted_in}
               SET {table.counter} =
                   (SELECT count(*) FROM {table.name} WHERE {table.liked_id} = :id)
             WHERE id = :id RETURNING {table.counter}"""
        return self.value(sql, id=liked_id) or 0

    def add_past_likes(self, liked: Likeable, liked_id: int, count: int) -> None:
        """Adds likes of unknown visitors, for imports. They are numbered, and each call goes on
        with the next number. Those of a page that was merged into this one have the id of that
        page in their names."""
        table = LIKE_TABLES[liked]
        sql = f"""
            SELECT count(*) FROM {table.name}
             WHERE {table.liked_id} = :id AND visitor LIKE 'import ' || :id || ' %'"""
        before = self.value(sql, id=liked_id)
        sql = f"INSERT INTO {table.name} ({table.liked_id}, visitor) VALUES (?, ?)"
        for number in range(before + 1, before + count + 1):
            self.run(sql, liked_id, f"import {liked_id} {number}")
        self.count_likes(liked, liked_id)

    # Outbox

    def add_email(
        self,
        now: int,
        email: Email,
        *,
        life: int = DAY,
        registration_id: int | None = None,
        subscriber: str = "",
    ) -> int:
        """Adds an email, which is due at once and given up after `life` seconds; returns its id.
        `subscriber`: whom it asks whether they want emails."""
        sql = """
            INSERT INTO outbox (registration_id, subscriber, recipient, subject, text, html,
                                headers, created_at, due_at, expires_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            RETURNING id"""
        headers = json.dumps(email.headers)
        said = (email.recipient, email.subject, email.text, email.html, headers)
        return int(self.value(sql, registration_id, subscriber, *said, now, now, now + life))

    def add_webhook(
        self,
        now: int,
        due_at: int,
        event: str,
        recipient: str,
        comment_id: int,
        report_id: int | None,
    ) -> None:
        """Adds a webhook about a comment, which is given up a day after it is due."""
        sql = """
            INSERT INTO outbox (comment_id, report_id, event, recipient, created_at, due_at,
                                expires_at)
            VALUES (?, ?, ?, ?, ?, ?, ?)"""
        self.run(sql, comment_id, report_id, event, recipient, now, due_at, due_at + DAY)

    def add_rebuild(self, now: int, wait: int, recipient: str) -> None:
        """If readers could see changes, adds the webhook that has the site built again, unless
        one waits."""
        has_changed = self.value("SELECT EXISTS (SELECT 1 FROM page WHERE needs_rebuild = 1)")
        waiting = """
            SELECT EXISTS (SELECT 1 FROM outbox WHERE due_at IS NOT NULL AND event = 'rebuild')"""
        if not has_changed or self.value(waiting):
            return
        sql = """
            INSERT INTO outbox (event, recipient, created_at, due_at, expires_at)
            VALUES ('rebuild', ?, ?, ?, ?)"""
        due_at = now + wait
        self.run(sql, recipient, now, due_at, due_at + DAY)

    def due_message(self, now: int) -> Message | None:
        """The one that has waited longest of those that are due, codes first."""
        sql = " WHERE due_at <= ? ORDER BY registration_id IS NULL, due_at LIMIT 1"
        return self.one(Message, SELECT_MESSAGES + sql, now)

    def delay_message(self, message_id: int, due_at: int) -> None:
        """Has a message wait until then at least."""
        sql = "UPDATE outbox SET due_at = max(due_at, ?) WHERE id = ? AND due_at IS NOT NULL"
        self.run(sql, due_at, message_id)

    def begin_try(self, message: Message, due_at: int) -> list[int] | None:
        """Counts a try, and stores when the next is due. Returns the ids of the notifications that
        the message carries. None if it is gone or has changed."""
        sql = """
            UPDATE outbox SET tries = tries + 1, due_at = ?
             WHERE id = ? AND tries = ? AND due_at IS NOT NULL"""
        if not self.run(sql, due_at, message.id, message.tries).rowcount:
            return None
        if message.event == "rebuild":  # the site is being built from what is here now
            self.run("UPDATE page SET needs_rebuild = 0 WHERE needs_rebuild = 1")
        return self.values("SELECT id FROM notification WHERE outbox_id = ?", message.id)

    def end_message(self, message_id: int, carried: Iterable[int]) -> None:
        """The message was sent. The notifications that it carried are done, also those that were
        withdrawn while it was on its way."""
        self.run("DELETE FROM outbox WHERE id = ?", message_id)
        self.drop_notifications(carried)

    def note_failure(self, message: Message, reason: str) -> bool:
        """Stores why this try failed. False if the owner asked for another one meanwhile."""
        sql = "UPDATE outbox SET failure = ? WHERE id = ? AND tries = ?"
        return self.run(sql, reason, message.id, message.tries + 1).rowcount == 1

    def give_up(self, message: Message, now: int) -> None:
        """No more tries. The message stays for a month, and the owner may try it again. A code
        is of no use any more, and goes."""
        sql = "UPDATE outbox SET due_at = NULL, expires_at = ? WHERE id = ?"
        self.run(sql, now + 30 * DAY, message.id)
        if message.registration_id is not None:
            self.run(
                "UPDATE outbox SET subject = '', text = '', html = '' WHERE id = ?", message.id
            )

    def keep_chat_message(self, chat: str, message_id: int, comment_id: int, version: str) -> None:
        """Stores which comment a message in a chat is about, and the version of its text there."""
        sql = """
            INSERT OR REPLACE INTO chat_message (chat, message_id, comment_id, version)
            VALUES (?, ?, ?, ?)"""
        self.run(sql, chat, message_id, comment_id, version)

    def last_update(self, chat: str) -> int:
        """The number of the last update that came from a chat. 0 if there was none."""
        sql = "SELECT update_id FROM chat_update WHERE chat = ?"
        return int(self.value(sql, chat) or 0)

    def note_update(self, chat: str, update_id: int) -> None:
        sql = "INSERT OR REPLACE INTO chat_update (chat, update_id) VALUES (?, ?)"
        self.run(sql, chat, update_id)

    def chat_message(self, chat: str, message_id: int) -> AboutComment | None:
        sql = "SELECT comment_id, version FROM chat_message WHERE chat = ? AND message_id = ?"
        return self.one(AboutComment, sql, chat, message_id)

    def stuck_messages(self) -> list[Message]:
        """The latest ones that could not be delivered so far."""
        return self.all(Message, SELECT_MESSAGES + " WHERE tries > 0 ORDER BY id DESC LIMIT 200")

    def retry_message(self, message_id: int, now: int) -> bool:
        """Has a message sent again. False if it is not there, was not tried yet, or is a code."""
        sql = """
            UPDATE outbox SET due_at = ?, tries = 0, failure = '', expires_at = ?
             WHERE id = ? AND tries > 0 AND registration_id IS NULL"""
        return self.run(sql, now, now + DAY, message_id).rowcount == 1

    def retry_all_messages(self, now: int) -> int:
        """Has all of them sent again, but for codes; returns how many."""
        sql = """
            UPDATE outbox SET due_at = ?, tries = 0, failure = '', expires_at = ?
             WHERE tries > 0 AND registration_id IS NULL"""
        return self.run(sql, now, now + DAY).rowcount

    def drop_all_messages(self) -> int:
        return self.run("DELETE FROM outbox WHERE tries > 0").rowcount

    def count_outbox(self, now: int) -> list[OutboxCount]:
        """The numbers of messages, by what they are and for which chat. All emails are counted
        together."""
        sql = """
            SELECT event, iif(event = '', '', recipient) AS recipient,
                   count(*) FILTER (WHERE due_at IS NULL) AS failed,
                   count(*) FILTER (WHERE due_at > 0 AND tries > 0) AS retried,
                   count(*) FILTER (WHERE due_at <= :now - 600) AS late
              FROM outbox GROUP BY 1, 2"""
        return self.all(OutboxCount, sql, now=now)

    def count_stuck(self) -> int:
        """The number of messages that could not be delivered so far."""
        return int(self.value("SELECT count(*) FROM outbox WHERE tries > 0"))

    def drop_message(self, message_id: int) -> bool:
        """Drops a message that was tried in vain, with the notifications that it carries."""
        return self.run("DELETE FROM outbox WHERE id = ? AND tries > 0", message_id).rowcount == 1

    # Notifications

    def notify(self, comment: Comment, now: int) -> None:
        """Adds news of a new comment. The recipients are looked up later, since there may be many.
        News of spam are never due."""
        self.add_notification(comment.id, "owner", now)
        self.add_notification(comment.id, "follower", now)
        if comment.parent_id is not None:
            self.add_notification(comment.id, "author", now)

    def notify_owner(self, comment_id: int, now: int) -> None:
        """Adds news of a comment that end when an admin decides on it."""
        self.add_notification(comment_id, "owner", now)

    def remind_owner(self, to: str, comment_id: int, now: int) -> int:
        """Adds news for one owner of a comment that still waits; returns their id."""
        # Such news may be there already, due later.
        sql = """
            INSERT INTO notification (comment_id, audience, recipient, due_at)
            VALUES (?, 'owner', ?, ?)
                ON CONFLICT (recipient, audience, comment_id) WHERE outbox_id IS NULL
                DO UPDATE SET due_at = excluded.due_at
            RETURNING id"""
        return int(self.value(sql, comment_id, to, now))

    def notify_holder(self, comment_id: int, now: int) -> None:
        """Has the holder of the email address that a guest gave asked whether they wrote the
        comment. Whether they are to be asked is looked up later, so that the response to the guest
        takes the same time for each email address."""
        self.add_notification(comment_id, "holder", now)

    def add_notification(self, comment_id: int, audience: str, now: int) -> None:
        sql = """
            INSERT INTO notification (comment_id, audience, recipient, due_at)
            VALUES (?, ?, '', ?) ON CONFLICT DO NOTHING"""
        self.run(sql, comment_id, audience, now)

    def notify_again(self, email: str, subscriber: str, since: int) -> None:
        """Adds notifications of the replies that came after an email has asked a guest whether they
        want them. The caller stores that they do, after this."""
        if self.subscriptions(subscriber).get(0) != "asked":
            return
        sql = """
            INSERT INTO notification (comment_id, audience, recipient, due_at)
            SELECT reply.id, 'author', :email, 1
              FROM comment CROSS JOIN comment AS reply ON reply.parent_id = comment.id
             WHERE comment.email = :email AND comment.email <> '' AND comment.user_id IS NULL
               AND reply.status = 'visible' AND reply.created_at > :since
                ON CONFLICT DO NOTHING"""
        self.run(sql, email=email, since=since)

    def author_above(self, reply: Comment) -> list[str]:
        """The email address of the author who is replied to. "" if they gave none."""
        sql = """
            SELECT coalesce(account.email, comment.email)
              FROM comment LEFT JOIN account ON account.id = user_id WHERE comment.id = ?"""
        return self.values(sql, reply.parent_id)

    def followers(self, page_id: int) -> list[str]:
        """The email addresses of the readers who follow a page."""
        sql = """
            SELECT account.email FROM follow JOIN account ON account.id = follow.user_id
             WHERE page_id = ?"""
        return self.values(sql, page_id)

    def set_recipients(self, notification_id: int, recipients: list[str]) -> None:
        """Replaces a notification without a recipient, if it is still there, by one for each
        recipient."""
        sql = """
            INSERT INTO notification (comment_id, audience, recipient, due_at)
            SELECT comment_id, audience, ?, due_at FROM notification
             WHERE id = ? ON CONFLICT DO NOTHING"""
        for recipient in recipients:
            self.run(sql, recipient, notification_id)
        self.run("DELETE FROM notification WHERE id = ?", notification_id)

    def due_recipients(self, audience: str, now: int) -> list[str]:
        """Ten of those who are due by now, so that the outbox is sent in between."""
        # CROSS: SQLite would begin with all comments.
        sql = f"""
            SELECT DISTINCT recipient
              FROM notification CROSS JOIN comment ON comment.id = comment_id
             WHERE audience = :audience AND recipient > '' AND {IS_DUE}
             ORDER BY recipient LIMIT 10"""
        return self.values(sql, audience=audience, now=now)

    def due_notifications(self, audience: str, recipient: str, now: int) -> dict[int, int]:
        """The id of the comment by the id of each notification: the oldest ones of a recipient, at
        most what one email takes. With "", those that have no recipient yet."""
        sql = f"""
            WITH due AS (
                SELECT notification.id, comment_id,
                       (comment.status = 'waiting'
                        OR comment_id IN (SELECT comment_id FROM report)) AS is_undecided
                  FROM notification JOIN comment ON comment.id = comment_id
                 WHERE audience = :audience AND recipient = :recipient AND {IS_DUE})
            SELECT id, comment_id FROM due"""
        if audience == "owner":  # what they should decide on comes first
            sql += " ORDER BY is_undecided DESC, comment_id LIMIT 1000"
        else:
            sql += " ORDER BY comment_id LIMIT 200"
        return dict(self.run(sql, audience=audience, recipient=recipient, now=now))

    def postpone(self, ids: Iterable[int], due_at: int) -> None:
        for notification_id in ids:
            self.run("UPDATE notification SET due_at = ? WHERE id = ?", due_at, notification_id)

    def carry(self, ids: Iterable[int], message_id: int) -> None:
        """An email in the outbox carries these notifications."""
        sql = "UPDATE notification SET outbox_id = ? WHERE id = ?"
        for notification_id in ids:
            self.run(sql, message_id, notification_id)

    def drop_notifications(self, ids: Iterable[int]) -> None:
        for notification_id in ids:
            self.run("DELETE FROM notification WHERE id = ?", notification_id)

    def withdraw(self, comment_id: int, *, from_owners: bool = True) -> None:
        """Takes emails about a comment, or that quote it above a reply, out of the outbox.
        `from_owners`: also those to the owner. Its text is to be wiped from the -wal, too."""
        sql = """
            SELECT outbox_id FROM notification
             WHERE comment_id = :id AND audience <> 'owner' AND outbox_id IS NOT NULL
             UNION -- Emails about replies quote what they reply to.
            SELECT outbox_id FROM comment JOIN notification ON comment_id = comment.id
             WHERE parent_id = :id AND audience = 'author' AND outbox_id IS NOT NULL"""
        messages = self.values(sql, id=comment_id)
        if from_owners:
            sql = """
                SELECT outbox_id FROM notification
                 WHERE comment_id = ? AND audience = 'owner' AND outbox_id IS NOT NULL"""
            messages += self.values(sql, comment_id)
        for message_id in messages:
            self.unsend(message_id)
        self.wiper.note_erased()

    def unsend(self, message_id: int) -> None:
        """Takes an email out of the outbox. Its notifications wait again."""
        # A guest whom it asked whether they want emails may be asked again.
        sql = """
            DELETE FROM subscription WHERE state = 'asked' AND subscriber =
                   (SELECT subscriber FROM outbox WHERE id = ?)"""
        self.run(sql, message_id)
        # Where another notification of the same comment waits already, one is enough.
        sql = "UPDATE OR REPLACE notification SET outbox_id = NULL WHERE outbox_id = ?"
        self.run(sql, message_id)
        self.run("DELETE FROM outbox WHERE id = ?", message_id)

    # Subscriptions and followed pages

    def subscriptions(self, subscriber: str) -> dict[int, str]:
        """The answer (yes, no, or asked) by page id. 0 stands for all pages."""
        sql = "SELECT page_id, state FROM subscription WHERE subscriber = ?"
        return dict(self.run(sql, subscriber))

    def muted(self, subscriber: str) -> list[Page]:
        """The pages for which a subscriber has switched off emails about replies."""
        sql = """
            SELECT page.* FROM subscription JOIN page ON page.id = subscription.page_id
             WHERE subscriber = ? AND state = 'no' ORDER BY page.key"""
        return self.all(Page, sql, subscriber)

    def subscribe(self, subscriber: str, page_id: int, state: str) -> None:
        sql = """
            INSERT INTO subscription (subscriber, page_id, state)
            VALUES (?, ?, ?)
                ON CONFLICT (subscriber, page_id) DO UPDATE SET state = excluded.state"""
        self.run(sql, subscriber, page_id, state)

    def wants_questions(self, subscriber: str) -> bool:
        """Whether somebody may be asked whether they wrote what a guest signed with their email
        address."""
        return self.value("SELECT 1 FROM no_question WHERE subscriber = ?", subscriber) is None

    def set_questions(self, subscriber: str, wanted: bool) -> None:
        if wanted:
            self.run("DELETE FROM no_question WHERE subscriber = ?", subscriber)
        else:
            sql = "INSERT INTO no_question (subscriber) VALUES (?) ON CONFLICT DO NOTHING"
            self.run(sql, subscriber)

    def follow(self, user_id: int, page_id: int, language: str) -> None:
        """Follows a page, unless it is gone."""
        sql = """
            INSERT INTO follow (user_id, page_id, language)
            SELECT ?, id, ? FROM page WHERE id = ?
                ON CONFLICT (user_id, page_id) DO UPDATE SET language = excluded.language"""
        self.run(sql, user_id, language, page_id)

    def unfollow(self, email: str, page_id: int) -> None:
        """`page_id` 0 stands for all pages."""
        sql = "DELETE FROM follow WHERE user_id = (SELECT id FROM account WHERE email = :email)"
        if page_id:
            sql += " AND page_id = :page_id"
        self.run(sql, email=email, page_id=page_id)

    def followed(self, user_id: int) -> list[Page]:
        sql = """
            SELECT page.* FROM follow JOIN page ON page.id = follow.page_id
             WHERE follow.user_id = ? ORDER BY page.key"""
        return self.all(Page, sql, user_id)

    def follow_languages(self, email: str) -> dict[int, str]:
        """The language of the emails about each page that a reader follows, by page id. A blocked
        reader gets none."""
        sql = """
            SELECT page_id, follow.language FROM follow JOIN account ON account.id = user_id
             WHERE email = ? AND blocked = 0"""
        return dict(self.run(sql, email))

    # Links in emails and chats

    def add_link(self, link_hash: str, link: ShortLink) -> None:
        """Keeps what a link may do. One that was made before is good for as long as the last."""
        sql = """
            INSERT INTO short_link (hash, action, undo, comment_id, version, page_id, user_id,
                                    subscriber, language, expires_at)
            VALUES (:hash, :action, :undo, :comment_id, :version, :page_id, :user_id,
                    :subscriber, :language, :expires_at)
                ON CONFLICT (hash) DO UPDATE SET expires_at = excluded.expires_at"""
        self.run(
            sql,
            hash=link_hash,
            action=link.action,
            undo=link.undo,
            comment_id=link.comment_id,
            version=link.version,
            page_id=link.page_id,
            user_id=link.user_id,
            subscriber=link.subscriber,
            language=link.language,
            expires_at=link.expires_at,
        )

    def link(self, link_hash: str, now: int) -> ShortLink | None:
        """What a link may do. None if there is no such link, or not any more."""
        sql = """
            SELECT action, undo, comment_id, version, page_id, user_id, subscriber, language,
                   expires_at
              FROM short_link WHERE hash = ? AND expires_at > ?"""
        return self.one(ShortLink, sql, link_hash, now)

    # Moderation

    def blocks(self, now: int) -> list[Block]:
        sql = "SELECT * FROM block WHERE expires_at IS NULL OR expires_at > ? ORDER BY id DESC"
        return self.all(Block, sql, now)

    def insert_block(
        self, *, kind: str, value: str, note: str, created_at: int, expires_at: int | None
    ) -> Block:
        """An older block of the same value gets the new note and expiry."""
        sql = """
            INSERT INTO block (kind, value, note, created_at, expires_at)
            VALUES (:kind, :value, :note, :created_at, :expires_at)
                ON CONFLICT (kind, value) DO UPDATE
               SET note = excluded.note, expires_at = excluded.expires_at
            RETURNING *"""
        return self.all(
            Block,
            sql,
            kind=kind,
            value=value,
            note=note,
            created_at=created_at,
            expires_at=expires_at,
        )[0]

    def delete_block(self, block_id: int) -> Block | None:
        return self.one(Block, "DELETE FROM block WHERE id = ? RETURNING *", block_id)

    def add_report(self, comment_id: int, visitor: str, reason: str, now: int) -> int | None:
        """The id of the report. None if this visitor has reported the comment before."""
        sql = """
            INSERT INTO report (comment_id, visitor, reason, reported_at)
            VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING
            RETURNING id"""
        report_id: int | None = self.value(sql, comment_id, visitor, reason, now)
        return report_id

    def report_reason(self, message: Message) -> str:
        """The reason of the report that a webhook is about. "" if there is none any more."""
        sql = """
            SELECT reason FROM outbox JOIN report ON report.id = outbox.report_id
             WHERE outbox.id = ?"""
        return str(self.value(sql, message.id) or "")

    def reports(self, comment_id: int) -> list[Report]:
        """The last twenty reports, the oldest first."""
        sql = """
            SELECT * FROM (SELECT reason, reported_at FROM report
                            WHERE comment_id = ? ORDER BY reported_at DESC LIMIT 20)
             ORDER BY reported_at"""
        return self.all(Report, sql, comment_id)

    def end_reports(self, comment_id: int) -> None:
        """An admin has decided on the comment, so owners get no more emails about it. Emails that
        are in the outbox are sent all the same."""
        sql = """
            DELETE FROM report WHERE comment_id = :id;
            DELETE FROM notification
             WHERE comment_id = :id AND audience = 'owner' AND outbox_id IS NULL"""
        self.run_script(sql, id=comment_id)

    def term_counts(self, hashes: list[int]) -> dict[int, tuple[int, int]]:
        """The numbers of good and of spam comments that each term was in. For the hash 0: how many
        comments of either sort the filter has learnt."""
        sql = """
            SELECT hash, ham, spam FROM term
             WHERE hash IN (SELECT value FROM json_each(?))"""
        rows = self.run(sql, json.dumps(hashes))
        return {term: (ham, spam) for term, ham, spam in rows}

    def learn(self, comment: Comment, learnt: str, hashes: list[int], now: int) -> None:
        """Counts the terms of a comment, which the filter does not know yet, as `ham` or `spam`."""
        sql = """
            INSERT INTO term AS t (hash, ham, spam, learnt_at)
            VALUES (:hash, :ham, :spam, :now)
                ON CONFLICT (hash) DO UPDATE
               SET ham = t.ham + excluded.ham, spam = t.spam + excluded.spam,
                   learnt_at = excluded.learnt_at"""
        ham, spam = (1, 0) if learnt == "ham" else (0, 1)
        for term in [0, *hashes]:
            self.run(sql, hash=term, ham=ham, spam=spam, now=now)
        self.run("UPDATE comment SET learnt = ? WHERE id = ?", learnt, comment.id)

    def unlearn(self, comment: Comment, hashes: list[int]) -> None:
        """Counts the terms of a comment no longer as what the filter has learnt them as."""
        if comment.learnt == "ham":
            sql = "UPDATE term SET ham = ham - 1 WHERE hash = ? AND ham > 0"
        else:
            sql = "UPDATE term SET spam = spam - 1 WHERE hash = ? AND spam > 0"
        for term in [0, *hashes]:
            self.run(sql, term)
            self.run("DELETE FROM term WHERE hash = ? AND ham = 0 AND spam = 0", term)
        self.run("UPDATE comment SET learnt = '' WHERE id = ?", comment.id)

    def oldest_unlearnt(self) -> Comment | None:
        """The visible comment that the filter could learn next as ham."""
        sql = """
             WHERE comment.id =
                   (SELECT min(id) FROM comment
                     WHERE learnt = '' AND status = 'visible')"""
        found = self.comments_where(Comment, sql)
        return found[0] if found else None

    # What an account and the owner can see of the past

    def liked_comments(self, visitor: str) -> list[int]:
        """The ids of the comments that a visitor likes."""
        return self.values("SELECT comment_id FROM comment_liker WHERE visitor = ?", visitor)

    def liked_pages(self, visitor: str) -> list[str]:
        """The URLs of the pages that a visitor likes."""
        sql = """
            SELECT page.page_url FROM page_liker JOIN page ON page.id = page_liker.page_id
             WHERE visitor = ?"""
        return self.values(sql, visitor)

    def reports_of(self, visitor: str) -> list[OwnReport]:
        sql = "SELECT comment_id, reason, reported_at FROM report WHERE visitor = ?"
        return self.all(OwnReport, sql, visitor)

    def add_audit_entry(self, now: int, who: str, action: str, subject: str, detail: str) -> None:
        sql = """
            INSERT INTO audit (created_at, who, action, subject, detail)
            VALUES (:now, :who, :action, :subject, :detail)"""
        self.run(sql, now=now, who=who, action=action, subject=subject, detail=detail)

    def audit_entries(self, before: int, limit: int) -> list[AuditEntry]:
        sql = "SELECT * FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?"
        return self.all(AuditEntry, sql, before, limit)

    def days(self, first: int, last: int) -> list[Day]:
        """The counts of each of these days (as in `day_of`), zeros if nothing happened. On a day,
        more likes may be taken back than given: that is zero too."""
        sql = "SELECT day, comments, views, likes FROM day WHERE day BETWEEN ? AND ?"
        found = {day: counts for day, *counts in self.run(sql, first, last)}
        days = []
        for number in range(first, last + 1):
            comments, views, likes = found.get(number, (0, 0, 0))
            day = date.fromordinal(FIRST_DAY + number).isoformat()
            days.append(Day(day, comments, views, max(0, likes)))
        return days

    def figures(self, now: int) -> Figures:
        return self.all(Figures, FIGURES, now=now)[0]

    # Imports and exports

    def imported(self, product: str, product_ids: list[str]) -> dict[str, Imported]:
        """What was imported under some of these ids, by id."""
        sql = """
            SELECT product_id, coalesce(comment.id, 0), comment.page_id, comment.parent_id
              FROM import LEFT JOIN comment ON comment.id = import.comment_id
             WHERE product = ? AND product_id IN (SELECT value FROM json_each(?))"""
        rows = self.run(sql, product, json.dumps(product_ids))
        return {product_id: Imported(*comment) for product_id, *comment in rows}

    def similar_comments(self, ids: list[int], texts: list[Json]) -> list[SimilarComment]:
        """The comments with these ids, and those with one of these texts: page (by its key), time,
        author and content. The oldest rows come first."""
        # The condition on the status is always true: it lets SQLite use the index
        # `comment_by_time`. CROSS JOIN keeps the order of the tables.
        sql = """
            SELECT comment.id, comment.page_id, page.key AS page_key, comment.parent_id,
                   comment.nickname, comment.content, comment.created_at
              FROM comment JOIN page ON page.id = comment.page_id
             WHERE comment.id IN (
                   SELECT value FROM json_each(:ids)
                    UNION
                   SELECT same.id
                     FROM json_each(:texts) AS text
                     JOIN page ON page.key = json_extract(text.value, '$.page_key')
                    CROSS JOIN comment AS same ON same.page_id = page.id
                      AND same.status IN ('visible', 'waiting', 'spam', 'deleted')
                      AND same.created_at = json_extract(text.value, '$.created_at')
                      AND same.nickname = json_extract(text.value, '$.nickname')
                      AND same.content = json_extract(text.value, '$.content'))
             ORDER BY comment.id"""
        return self.all(SimilarComment, sql, ids=json.dumps(ids), texts=json.dumps(texts))

    def note_import(self, product: str, product_id: str, comment_id: int) -> None:
        sql = """
            INSERT INTO import (product, product_id, comment_id)
            VALUES (?, ?, ?) ON CONFLICT DO NOTHING"""
        self.run(sql, product, product_id, comment_id)

    def put_below(self, comment_id: int, parent_id: int) -> bool:
        """Makes a top-level comment a reply, with all replies to it. Returns whether that was
        possible: the parent may be one of these."""
        child = self.comment(comment_id)
        parent = self.comment(parent_id)
        if child is None or parent is None or child.parent_id is not None:
            return False
        thread_id = parent.thread_id or parent.id
        if thread_id == child.id:
            return False
        sql = "UPDATE comment SET parent_id = ?, thread_id = ? WHERE id = ?"
        self.run(sql, parent_id, thread_id, comment_id)
        self.run("UPDATE comment SET thread_id = ? WHERE thread_id = ?", thread_id, comment_id)
        if child.shown:
            # Readers who have an older list load it anew.
            sql = """
                UPDATE page SET threads = threads - 1, needs_rebuild = 1, mark = mark + 1,
                       gone_mark = mark + 1
                 WHERE id = ?"""
            self.run(sql, child.page_id)
            self.run("UPDATE comment SET replies = replies + 1 WHERE id = ?", parent_id)
            self.update_shown(parent_id)
        return True

    def raise_page(self, page_id: int, closed: int, views: int, page_likes: int) -> None:
        """Gives a page the counts that it had elsewhere. None falls, and no page is opened."""
        sql = """
            UPDATE page SET closed = max(closed, :closed),
                   views = max(views, :views)
             WHERE id = :id RETURNING page_likes"""
        likes = self.value(sql, id=page_id, closed=closed, views=views)
        self.add_past_likes("page", page_id, page_likes - likes)

    def exported_pages(self) -> list[Page]:
        """All pages. From here on, until the store is closed, this thread reads one moment."""
        self.run("BEGIN")
        return self.all_pages()

    def exported_comments(self) -> Iterator[ExportedComment]:
        """Each comment with its page, page by page, the oldest first. A deleted comment is among
        them if there is one below it that was not deleted."""
        sql = f"""
            WITH RECURSIVE needed (id) AS (
                SELECT parent_id FROM comment WHERE status <> 'deleted' AND parent_id IS NOT NULL
                 UNION
                SELECT comment.parent_id FROM needed JOIN comment ON comment.id = needed.id
                 WHERE comment.parent_id IS NOT NULL)
            {SELECT_COMMENTS[ExportedComment]}
             WHERE comment.status <> 'deleted' OR comment.id IN (SELECT id FROM needed)
             ORDER BY page.key, comment.created_at, comment.id"""
        for row in self.run(sql):
            yield ExportedComment(*row)

    # Housekeeping

    def purge(self, now: int) -> None:
        """Deletes what has expired. A code is wiped when it expires. Its registration stays for a
        day: until then, a login with its password says that the email address is not confirmed yet.
        Of the terms, those that were learnt last stay."""
        sql = """
            UPDATE registration SET code = '', expires_at = 0
             WHERE expires_at BETWEEN 1 AND :now;
            DELETE FROM registration WHERE created_at < :day_ago;
            DELETE FROM known_network WHERE seen_at < :quarter_ago;
            DELETE FROM spent_captcha WHERE expires_at <= :day_ago;
            DELETE FROM rate_limit WHERE ends_at <= :now;
            DELETE FROM outbox WHERE expires_at <= :now AND due_at IS NULL;
            DELETE FROM block WHERE expires_at <= :now;
            DELETE FROM admin_link WHERE expires_at <= :now;
            DELETE FROM short_link WHERE expires_at <= :now;
            DELETE FROM admin_session WHERE created_at < :session_from;
            DELETE FROM voucher WHERE expires_at <= :now;
            DELETE FROM audit WHERE created_at < :audit_from;
            DELETE FROM page WHERE seen_at < :quarter_ago AND page_likes = 0 AND closed = 0
               AND NOT EXISTS (SELECT 1 FROM comment WHERE comment.page_id = page.id)
               AND NOT EXISTS (SELECT 1 FROM follow WHERE follow.page_id = page.id);
            DELETE FROM term WHERE hash <> 0 AND learnt_at <
                   (SELECT learnt_at FROM term ORDER BY learnt_at DESC LIMIT 1 OFFSET :most_terms);
            DELETE FROM subscription WHERE page_id > 0
               AND NOT EXISTS (SELECT 1 FROM page WHERE page.id = subscription.page_id);"""
        self.run_script(
            sql,
            now=now,
            day_ago=now - DAY,
            session_from=now - 7 * DAY,  # its token is valid no longer
            quarter_ago=now - 90 * DAY,
            audit_from=now - 400 * DAY,
            most_terms=MOST_TERMS,
        )

    def forget(self, before: int) -> None:
        """Makes reports that are older than that time anonymous, and of the likes and IP addresses
        500 each: a long stop, or a shorter time in the settings, may leave very many."""
        sql = """
            UPDATE comment_liker SET visitor = 'past ' || random(), liked_at = NULL
             WHERE (comment_id, visitor) IN
                   (SELECT comment_id, visitor FROM comment_liker
                     WHERE liked_at < :before ORDER BY liked_at LIMIT 500);
            UPDATE page_liker SET visitor = 'past ' || random(), liked_at = NULL
             WHERE (page_id, visitor) IN
                   (SELECT page_id, visitor FROM page_liker
                     WHERE liked_at < :before ORDER BY liked_at LIMIT 500);
            UPDATE report SET visitor = 'past ' || random()
             WHERE reported_at < :before
               AND visitor NOT LIKE 'past %' AND visitor NOT LIKE 'user %';"""
        self.run_script(sql, before=before)
        sql = """
            SELECT id, ip FROM comment
             WHERE masked = 0 AND created_at < ? ORDER BY created_at LIMIT 500"""
        unmasked = self.run(sql, before).fetchall()
        for comment_id, ip in unmasked:
            self.run("UPDATE comment SET ip = ?, masked = 1 WHERE id = ?", masked(ip), comment_id)
            self.wiper.note_erased()

    def count_wrong_counters(self) -> int:
        return wrong_counters(self.db)

    def fix_counters(self) -> int:
        """Fixes the counters. Returns how many were wrong. A parent is right when its replies
        are, so this repeats. It ends even where replies go round, in a damaged file."""
        fixed = 0
        for _ in range(1000):  # pragma: no branch
            wrong = sum(self.run(sql).rowcount for sql in RECOUNTS)
            if not wrong:
                break
            fixed += wrong
        return fixed


def wrong_counters(db: sqlite3.Connection) -> int:
    """How many counters do not equal what they count."""
    return sum(db.execute(sql).fetchone()[0] for sql in MISCOUNTS)


def admins_of(path: Path) -> list[str]:
    """The email addresses of the admins in a file that is left as it is."""
    with read_only(path) as db:
        sql = "SELECT email FROM account WHERE role = 'admin' ORDER BY id"
        return [email for (email,) in db.execute(sql)]


def figures_of(path: Path, now: int) -> tuple[Figures, int]:
    """The figures of a file that is left as it is, and how many of its counters are wrong."""
    with read_only(path) as db:
        if schema_version(db) < len(MIGRATIONS):
            raise SchemaError(f"{path} is of an older commentd: start the service once")
        db.row_factory = sqlite3.Row
        row = db.execute(FIGURES, {"now": now}).fetchone()
        return Figures(**dict(row)), wrong_counters(db)


# -- Places -------------------------------------------------------------------


# Endings of Chinese names that the shipped tables leave out too.
PEOPLES = "壮|回|藏|羌|彝|苗|侗|布依|土家|蒙古|傣|白|朝鲜|哈尼|傈僳|景颇|哈萨克|柯尔克孜|维吾尔"
ENDING = re.compile(f"(?<=..)(省|市|地区|盟|特别行政区|(({PEOPLES})族?)*自治[区州])$")
MUNICIPALITIES = {"北京", "上海", "天津", "重庆"}
# Regions that some files name as provinces of China, with their own country codes.
REGIONS = {"香港": "HK", "澳门": "MO", "台湾": "TW"}


class Place(NamedTuple):
    """Where an IP address is used: `CN` and `浙江 杭州`, for instance."""

    country: str  # its code (ISO 3166); "" if it is unknown
    location: str  # "" if it is unknown


NOWHERE = Place("", "")


def place_in_file(reader: Any, ip: str) -> Place | None:
    """The place that the owner's file names, with a location in China alone. None if the country is
    unknown."""
    if ":" in ip and reader.metadata().ip_version == 4:
        return None  # its error would put the reader's IP address into the log
    record: Json = reader.get(ip) or {}
    country = country_in(record)
    if not re.fullmatch("[A-Z]{2}", country):
        return None
    if country != "CN":
        return Place(country, "")
    names = chinese_names_in(record)
    province = names[0] if names else ""
    if province in REGIONS:
        return Place(REGIONS[province], "")
    if province in MUNICIPALITIES:
        return Place(country, province)
    return Place(country, " ".join(names))


def country_in(record: Json) -> str:
    """The code of the country. The records of IPinfo are flat; others nest it, with its names."""
    country: Json | str = record.get("country", {})
    code: str
    if isinstance(country, str):
        code = record.get("country_code", country)
    else:
        code = country.get("iso_code", "")
    return code


def chinese_names_in(record: Json) -> list[str]:
    """The Chinese names of the province and the city, as far as they are known."""
    provinces: list[Json] = record.get("subdivisions", [])[:1]
    city: Json = record.get("city", {})
    names = [each.get("names", {}).get("zh-CN") for each in [*provinces, city]]
    return [ENDING.sub("", name) for name in names if name]


def open_own_file(file: str) -> Any:
    """A reader of the owner's file. None if there is none, which is logged."""
    try:
        import maxminddb
    except ImportError:
        hint = "it needs maxminddb: pip install maxminddb"
        log.warning("can't read %s (%s); using the bundled tables", file, hint)
        return None
    try:
        # Not mapped into memory: a file that is replaced in place would kill the process.
        return maxminddb.open_database(file, maxminddb.MODE_FILE)
    except Exception as error:  # of a damaged file, any
        log.warning("can't read %s (%s); using the bundled tables", file, error)
        return None


class Places:
    """Looks up the place of an IP address in the owner's file, as MaxMind, DB-IP and IPinfo write
    them (.mmdb), else in the two bundled tables. A source that cannot be read is logged and
    skipped."""

    def __init__(self, folder: Path, file: str = "") -> None:
        """`folder` holds the bundled tables."""
        self.folder = folder
        self.tables: dict[str, sqlite3.Connection] = {}
        self.lock = threading.Lock()  # all threads share the connections
        self.own = open_own_file(file) if file else None

    def of(self, ip: str) -> Place:
        if not ip:
            return NOWHERE
        parsed_ip = ipaddress.ip_address(ip)
        place = self.from_own_file(ip) if self.own and parsed_ip.is_global else None
        return place or self.from_bundled_table(parsed_ip) or NOWHERE

    def from_bundled_table(self, ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> Place | None:
        number = int(ip)
        if ip.version == 6:
            # This table has the upper half, moved into the range of a signed number.
            number = (number >> 64) - 2**63
        sql = """
            SELECT country, location FROM range JOIN place ON place.id = range.place
             WHERE start <= ? ORDER BY start DESC LIMIT 1"""
        return self.query(ip.version, sql, number)

    def from_own_file(self, ip: str) -> Place | None:
        try:
            place = place_in_file(self.own, ip)
        except Exception as error:
            log.warning("[geo] file fails (%s); using the bundled tables", error)
            return None
        if place is None or place.location:
            return place
        # The file has the code of the country only. The bundled tables have its name. The table of
        # IPv6 is asked, since it has each country once.
        sql = "SELECT country, location FROM place WHERE country = ?"
        return self.query(6, sql, place.country) or place

    def query(self, ip_version: int, sql: str, value: int | str) -> Place | None:
        """The place in the bundled table for that IP version. None if it has none."""
        name = f"places{ip_version}.db"
        try:
            with self.lock:
                row = self.table(name).execute(sql, (value,)).fetchone()
        except sqlite3.Error as error:
            log.warning("can't read %s, so locations are missing: %s", name, error)
            return None
        return Place(*row) if row else None

    def table(self, name: str) -> sqlite3.Connection:
        """A connection to a bundled table. It stays open: to open it took longer than a query."""
        if name not in self.tables:
            uri = f"{(self.folder / name).absolute().as_uri()}?mode=ro&immutable=1"
            self.tables[name] = sqlite3.connect(uri, uri=True, check_same_thread=False)
        return self.tables[name]

    def close(self) -> None:
        """Closes the tables. Calling it twice is fine."""
        with self.lock:
            for table in self.tables.values():
                table.close()
            self.tables.clear()
        if self.own:
            self.own.close()


# -- Keys ---------------------------------------------------------------------


ROUNDS = 600_000  # of PBKDF2-HMAC-SHA256: OWASP Password Storage Cheat Sheet
TOKEN_LIFE = 7 * DAY
CODE_LIFE = 10 * MINUTE
CHALLENGE_LIFE = HOUR  # a long comment takes time to write
LINK_LIFE = 30 * DAY  # of the links in an email that do something with a comment
# Of those that end emails: people look for the last email, and mail programs for its header.
UNSUBSCRIBE_LIFE = 365 * DAY


def keyed_hash(key: bytes, purpose: str, *parts: object) -> str:
    """HMAC-SHA256 in hex. A hash for one purpose is not valid for another."""
    message = json.dumps([purpose, *map(str, parts)])
    return hmac.new(key, message.encode(), "sha256").hexdigest()


def short_hash(key: bytes, purpose: str, *parts: object) -> str:
    """The first half of `keyed_hash`: 128 bits, which nobody can guess."""
    return keyed_hash(key, purpose, *parts)[:32]


# Passwords and codes


def password_scheme(rounds: int, key: bytes, email_address: str) -> str:
    """How a new password is hashed: the stored text without the hash.

    Several registrations may wait for one email address, each with a password, beside its account.
    Who signs in sends one password, which is compared with all of them. To hash it is the costly
    part, so all share one salt (16 bytes), which comes from key and email address."""
    salt = short_hash(key, "salt", email_address)
    return f"pbkdf2_sha256${rounds}${salt}"


def hash_password(password: str, scheme: str) -> str:
    """`pbkdf2_sha256$rounds$salt$hash`. A password of 64 hex digits stands for its own SHA-256: a
    browser may send either."""
    if not re.fullmatch("[0-9A-Fa-f]{64}", password):
        password = hashlib.sha256(password.encode()).hexdigest()
    _, rounds, salt = scheme.split("$")
    digest = password.lower().encode()
    salt_bytes = bytes.fromhex(salt)
    stretched = hashlib.pbkdf2_hmac("sha256", digest, salt_bytes, int(rounds))
    return f"{scheme}${stretched.hex()}"


def new_code(random_bytes: RandomBytes) -> str:
    """Six digits. The remainder of 2^64 favours none by more than 1 in 10^13."""
    number = int.from_bytes(random_bytes(8)) % 1_000_000
    return f"{number:06d}"


# Authenticator apps, which show a new code each half minute (RFC 6238)

APP_STEP = 30  # seconds


def new_app_key(random_bytes: RandomBytes) -> str:
    """160 bits (RFC 4226, section 4), in base32, as an app takes it."""
    return base64.b32encode(random_bytes(20)).decode()


def app_code(app_key: str, step: int) -> str:
    """The six digits that an app shows in the time step of that number (RFC 4226, section 5.3)."""
    digest = hmac.digest(base64.b32decode(app_key), step.to_bytes(8), "sha1")
    start = digest[-1] & 0x0F
    number = int.from_bytes(digest[start : start + 4]) & 0x7FFF_FFFF
    return f"{number % 1_000_000:06d}"


def step_of_app_code(app_key: str, code: str, now: int) -> int:
    """The time step in which the app shows a code: this one, or one beside it, since clocks differ
    (RFC 6238, section 5.2). 0 if the code is wrong."""
    this_step = now // APP_STEP
    for step in (this_step, this_step - 1, this_step + 1):
        if equal_in_constant_time(app_code(app_key, step), code):
            return step
    return 0


def new_recovery_code(random_bytes: RandomBytes) -> str:
    """120 bits, to be written down in six groups of four. So long a secret needs no slow hash."""
    letters = base64.b32encode(random_bytes(16)).decode().lower()
    return "-".join(letters[start : start + 4] for start in range(0, 24, 4))


# Tokens


@dataclass(frozen=True)
class Claims:
    """What a valid token says. `session`: of an admin, 0 for a token that opens no /admin."""

    user_id: int
    version: int
    session: int


def signed(claims: Json, key: bytes) -> str:
    """A JWT with these claims (HS256)."""
    import jwt  # here, as it takes memory, and many blogs have no accounts but the admin's

    return jwt.encode(claims, key, algorithm="HS256")


def claims_of_jwt(
    token: str, key: bytes | str, required: Sequence[str], audience: str | None = None
) -> Json | None:
    """The claims of a JWT. None unless it has this key and all that is `required`, and is for this
    audience, or for none. The caller looks at them: the times are compared with the clock that
    tests can set."""
    import jwt

    options: Any = {
        "require": required,
        "verify_exp": False,
        "verify_iat": False,
        "verify_sub": False,
        "verify_jti": False,
    }
    try:
        return jwt.decode(token, key, algorithms=["HS256"], audience=audience, options=options)
    except Exception:  # some broken texts raise other errors than PyJWTError
        return None


def unsigned_claims(token: str) -> Json | None:
    """The claims of a JWT, whoever made it. None if it is none."""
    import jwt

    try:
        return jwt.decode(token, options={"verify_signature": False})
    except Exception:  # some broken texts raise other errors than PyJWTError
        return None


def make_token(
    account_claims: Json, key: bytes, now: int, use: str = "login", session: int = 0
) -> str:
    """A JWT with the claims `id`, `email`, `role` and `ver` of an account, and `iat`, `exp`, `use`;
    one for /admin also has `session`. A token for one use is not valid for another."""
    claims = {**account_claims, "iat": now, "exp": now + TOKEN_LIFE, "use": use}
    if session:
        claims["session"] = session
    return signed(claims, key)


def read_token(token: str, key: bytes, now: int, use: str) -> Claims | None:
    """None if it is not valid for this use."""
    claims = claims_of_jwt(token, key, ["id", "ver", "iat", "exp", "use"])
    if claims is None:
        return None
    user_id = claims["id"]
    version = claims["ver"]
    expires_at = claims["exp"]
    session = claims.get("session", 0)
    # SQLite would also find the account 1 for "1" and for true.
    if any(type(value) is not int for value in (user_id, version, expires_at, session)):
        return None
    is_current = now < expires_at <= now + TOKEN_LIFE + MINUTE
    is_altered = "=" in token  # PyJWT ignores it at the end
    if not is_current or is_altered or claims["use"] != use:
        return None
    return Claims(user_id, version, session)


# Links in emails and chats


def secret_of_link(key: bytes, link: ShortLink) -> str:
    """What stands in the URL of a link, which gives the right to do what it says: 128 bits. The
    same link has the same secret each time, so that a message which is sent again does not change,
    and each further email about a page does not add another link that ends such emails."""
    return short_hash(
        key,
        "link",
        link.action,
        link.undo,
        link.comment_id,
        link.version,
        link.page_id,
        link.user_id,
        link.subscriber,
        link.language,
    )


def hash_of_secret(key: bytes, secret: str) -> str:
    """What is stored of the secret of a link. With another key, no link is good any more."""
    return keyed_hash(key, "stored link", secret)


def subscriber_of(key: bytes, email_address: str) -> str:
    """The hash that stands for an email address in subscriptions. They hold no address."""
    return short_hash(key, "subscriber", email_address)


# Captchas: the proof of work in the wire format of ALTCHA, version 2


@dataclass(frozen=True)
class Captcha:
    """A captcha that was solved. It is spent once, under its signature."""

    signature: str
    expires_at: int
    made_at: int | None = None  # when the reader got it; providers do not say


def new_challenge(key: bytes, now: int, random_bytes: RandomBytes) -> Json:
    """`{parameters, signature}`. The counter is chosen here, so that nobody needs more than
    150 000 tries."""
    counter = 20_000 + int.from_bytes(random_bytes(8)) % 130_001
    parameters = {
        "algorithm": "SHA-256",
        "cost": 1,
        "expiresAt": now + CHALLENGE_LIFE,
        "keyLength": 32,
        "nonce": random_bytes(16).hex(),
        "salt": random_bytes(16).hex(),
    }
    parameters["keyPrefix"] = proof(parameters, counter)[:32]
    return {"parameters": parameters, "signature": challenge_signature(parameters, key)}


def proof(parameters: Json, counter: int) -> str:
    start = bytes.fromhex(parameters["salt"] + parameters["nonce"])
    return hashlib.sha256(start + counter.to_bytes(4)).hexdigest()


def challenge_signature(parameters: Json, key: bytes) -> str:
    return keyed_hash(key, "captcha", json.dumps(parameters, sort_keys=True))


@dataclass(frozen=True)
class Solution:
    """A challenge, and the counter that somebody found for it. It may be forged."""

    parameters: Json
    signature: str
    counter: int


def read_solution(captcha_token: str) -> Solution:
    """`ValueError` for a token of another form."""
    payload = strict_json(base64.b64decode(captcha_token, validate=True))
    try:
        parameters = payload["challenge"]["parameters"]
        signature = payload["challenge"]["signature"]
        counter = payload["solution"]["counter"]
    except (KeyError, TypeError):
        raise ValueError("a part is missing") from None
    # To JSON, true is no number.
    has_counter = type(counter) is int and 0 <= counter < 2**32
    if not isinstance(parameters, dict) or not isinstance(signature, str) or not has_counter:
        raise ValueError("a part has another type")
    return Solution(parameters, signature, counter)


def solved_captcha(captcha_token: str, key: bytes, now: int) -> Captcha | None:
    """The captcha whose solution a token holds. None if it is not a solution of our challenges."""
    try:
        solution = read_solution(captcha_token)
    except ValueError:
        return None
    parameters = solution.parameters
    if not equal_in_constant_time(solution.signature, challenge_signature(parameters, key)):
        return None
    # What we signed is as `new_challenge` made it.
    is_solved = proof(parameters, solution.counter).startswith(parameters["keyPrefix"])
    expires_at: int = parameters["expiresAt"]
    if not is_solved or now >= expires_at:
        return None
    return Captcha(solution.signature, expires_at, expires_at - CHALLENGE_LIFE)


# -- World --------------------------------------------------------------------

RESPONSE_LIMIT = 64 * 1024  # bytes of a webhook's or a captcha provider's response
FETCH_SECONDS = 5  # of silence
MOST_FETCH_SECONDS = 10  # from the connection to the end of the response
SMTP_SECONDS = 10  # for each step


@dataclass(frozen=True)
class HttpRequest:
    """What another server is asked. The body is JSON if no header says otherwise."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


@dataclass(frozen=True)
class HttpResponse:
    """What another server responds. `retry_after`: the seconds that it asks to wait, 0 if it asks
    for none."""

    status: int
    body: bytes
    retry_after: int = 0


def exchange(
    request: HttpRequest, most: int = RESPONSE_LIMIT, silence: int = FETCH_SECONDS
) -> HttpResponse:
    """Asks a URL of the settings. The response has the first `most` bytes of the body. `silence`:
    the seconds in which the other side may say nothing. `OSError` for all that is no response. No
    redirect and no proxy of the environment is followed; TLS is verified."""
    parts = urllib.parse.urlsplit(request.url)
    path = parts.path or "/"
    target = f"{path}?{parts.query}" if parts.query else path
    headers = {
        "connection": "close",
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": "commentd",
        **request.headers,
    }
    is_https = parts.scheme == "https"
    connection_type = http.client.HTTPSConnection if is_https else http.client.HTTPConnection
    whole_time = silence + MOST_FETCH_SECONDS - FETCH_SECONDS
    with contextlib.closing(connection_type(parts.netloc, timeout=silence)) as client:
        try:
            client.connect()
            with ended_after(whole_time, client.sock):
                client.request(request.method, target, request.body, headers)
                # readinto() reads no more than fits. read() would read without end where a server
                # says that a chunk has -1 bytes.
                with client.getresponse() as response:
                    body = bytearray(most)
                    size = response.readinto(body)
                    wait = response.getheader("Retry-After", "")
                    seconds = int(wait) if re.fullmatch("[0-9]{1,6}", wait) else 0
                    return HttpResponse(response.status, bytes(body[:size]), seconds)
        except http.client.HTTPException as error:
            raise OSError(type(error).__name__) from None


def fetch(
    url: str,
    message: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    most: int = RESPONSE_LIMIT,
) -> tuple[int, bytes]:
    """GET of a URL, or POST of a message. Returns status and body, as `exchange` does."""
    method = "GET" if message is None else "POST"
    response = exchange(HttpRequest(method, url, headers or {}, message), most)
    return response.status, response.body


@contextlib.contextmanager
def ended_after(seconds: float, connection: socket.socket) -> Iterator[None]:
    """Ends a connection that takes longer: a server that sends a byte now and then never runs into
    the limit of silence. `OSError` then."""
    ends_at = time.monotonic() + seconds
    timer = threading.Timer(seconds, end_connection, [connection])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if time.monotonic() >= ends_at:
        raise TimeoutError("the response takes too long")


def end_connection(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it has ended by itself
        connection.shutdown(socket.SHUT_RDWR)


@dataclass(frozen=True)
class MailServer:
    """Where emails are handed in. `security` is starttls, tls or none."""

    host: str
    port: int
    security: str
    user: str
    password: str
    sender: str


def send_email(recipient: str, message: str, server: MailServer | None) -> None:
    """Hands an email to the mail server, or prints it if there is none. `OSError` (as
    `smtplib.SMTPException` is) if the server does not take it."""
    if server is None:
        print_email(message)
        return
    with logged_in(server) as client:
        client.sendmail(server.sender, [recipient], message.encode())


def try_login(server: MailServer) -> None:
    """`OSError` if the mail server does not take the login."""
    with logged_in(server):
        pass


def offers_login(server: MailServer) -> bool:
    """Whether a mail server takes logins. It is sent none. `OSError` if it cannot be reached."""
    with connected(server) as client:
        client.ehlo_or_helo_if_needed()
        return client.esmtp_features.get("auth", "").strip() != ""


@contextlib.contextmanager
def logged_in(server: MailServer) -> Iterator[smtplib.SMTP]:
    """A connection to the mail server that takes emails."""
    with connected(server) as client:
        if server.user:
            log_in(client, server.user, server.password)
        yield client


@contextlib.contextmanager
def connected(server: MailServer) -> Iterator[smtplib.SMTP]:
    """A connection to the mail server, protected as it says."""
    # A context reads the certificates of all authorities, for some 20 ms: only where it is needed.
    if server.security == "tls":
        tls = ssl.create_default_context()
        client: smtplib.SMTP = smtplib.SMTP_SSL(
            server.host, server.port, timeout=SMTP_SECONDS, context=tls
        )
    else:
        client = smtplib.SMTP(server.host, server.port, timeout=SMTP_SECONDS)
    with contextlib.closing(client):
        if server.security == "starttls":
            client.starttls(context=ssl.create_default_context())
        yield client
        with contextlib.suppress(OSError):
            client.quit()  # the message is accepted, whatever happens now


def log_in(client: smtplib.SMTP, user: str, password: str) -> None:
    """Logs in as `smtplib` does, which sends ASCII alone (cpython#73936). All else goes as UTF-8
    (RFC 4616, section 2)."""
    if user.isascii() and password.isascii():
        client.login(user, password)
        return

    def in_base64(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    client.ehlo_or_helo_if_needed()
    offered = client.esmtp_features.get("auth", "").upper().split()
    if "PLAIN" in offered:
        credentials = in_base64(f"\0{user}\0{password}")
        status, response = client.docmd("AUTH", f"PLAIN {credentials}")
    elif "LOGIN" in offered:
        status, response = client.docmd("AUTH", "LOGIN")
        for text in (user, password):
            if status == 334:  # the server asks for the next one
                status, response = client.docmd(in_base64(text))
    else:
        raise smtplib.SMTPNotSupportedError("The server takes no login in UTF-8.")
    if status != 235:
        raise smtplib.SMTPAuthenticationError(status, response)


def plain_part(email: EmailMessage) -> str:
    """The text of an email, which also has HTML."""
    text: str = cast(EmailMessage, email.get_body(("plain",))).get_content()
    return text.replace("\r\n", "\n")


def print_email(message: str) -> None:
    shown_email = message_from_string(message, policy=SMTP_POLICY)
    text = plain_part(shown_email)
    frame = "-" * 72
    head = f"To: {shown_email['To']}\nSubject: {shown_email['Subject']}\n"
    # A terminal would obey an escape sequence in the text of a stranger.
    shown = STRAY_CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", f"{head}\n{text}")
    print(f"{frame}\n{shown}{frame}", flush=True)


class Fetch(Protocol):
    """What the function `fetch` does."""

    def __call__(
        self,
        url: str,
        message: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        /,
        most: int = RESPONSE_LIMIT,
    ) -> tuple[int, bytes]: ...


class Exchange(Protocol):
    """What the function `exchange` does."""

    def __call__(
        self, request: HttpRequest, /, most: int = RESPONSE_LIMIT, silence: int = FETCH_SECONDS
    ) -> HttpResponse: ...


@dataclass(frozen=True)
class World:
    """The clock, randomness, email and HTTP. A test passes its own functions."""

    clock: Callable[[], float] = time.time
    random_bytes: RandomBytes = secrets.token_bytes
    send_email: Callable[[str, str, MailServer | None], None] = send_email
    try_login: Callable[[MailServer], None] = try_login
    offers_login: Callable[[MailServer], bool] = offers_login
    fetch: Fetch = fetch
    exchange: Exchange = exchange

    def now(self) -> int:
        """UTC seconds."""
        return int(self.clock())


# -- Clients ------------------------------------------------------------------


class MinuteCounter:
    """Counts uses by client and minute in memory: they are too many for rows."""

    MOST = 50_000  # clients and networks in a minute: with more of them, counting starts again

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.minute = 0
        self.counts: Counter[tuple[str, str]] = Counter()

    def take(self, name: str, most: int, networks: list[Network], now: int) -> bool:
        """Counts one use by a client, of `most` in a minute. False if they are used up for one of
        its networks."""
        with self.lock:
            if now // MINUTE != self.minute or len(self.counts) > self.MOST:
                self.minute = now // MINUTE
                self.counts.clear()
            for network in networks:
                if self.counts[name, network.name] >= most * network.factor:
                    return False
            self.counts.update((name, network.name) for network in networks)
            return True


# All visitors who come through a proxy that the settings do not name look like one client. Together
# they have so many times the rate limits of one.
CROWD = 20


@dataclass(frozen=True)
class Client:
    """The network side of a request. `ip` is "" if it cannot be read. `networks` are as in
    `networks_of`. `is_crowd`: it stands for many visitors, as above."""

    ip: str
    networks: list[Network]
    is_crowd: bool = False

    @property
    def network(self) -> str:
        """What tells one client from another. "" if nothing does."""
        return "" if self.is_crowd else self.networks[0].name


class Clients:
    """Finds the client of a request: the peer, or the client that a trusted proxy names."""

    def __init__(self, trusted_proxies: Iterable[str]) -> None:
        self.trusted = [ipaddress.ip_network(ip) for ip in trusted_proxies if ip != "unix"]
        self.trusts_file = "unix" in trusted_proxies
        self.saw_unnamed_proxy = False
        # Each request asks three times, and to find out takes a twentieth of what a list takes.
        self.recently_found = functools.lru_cache(500)(self.find)

    def of(self, environ: Json) -> Client:
        hops = environ.get("HTTP_X_FORWARDED_FOR") or environ.get("HTTP_X_REAL_IP", "")
        is_forwarded = bool(hops or environ.get("HTTP_FORWARDED"))
        return self.recently_found(environ.get("REMOTE_ADDR", ""), hops, is_forwarded)

    def find(self, peer: str, hops: str, is_forwarded: bool) -> Client:
        """`hops`: the IP addresses that proxies name, the nearest last."""
        peer = plain_ip(peer)  # "" behind a socket file
        is_trusted = self.trusts(peer) if peer else self.trusts_file
        if is_trusted and hops:
            ip = self.visitor_behind(peer, hops)
            return Client(ip, networks_of(ip))
        if is_forwarded and not is_trusted and self.may_be_proxy(peer):
            self.note_unnamed_proxy(peer)
            return crowd_behind(peer)
        return Client(peer, networks_of(peer))

    def visitor_behind(self, proxy: str, hops: str) -> str:
        """The last hop that is no trusted proxy: whatever stands before it, anybody can write. ""
        if it is no IP address."""
        for hop in reversed(hops.split(",")):
            ip = plain_ip(hop)
            if not self.trusts(ip):
                return ip
        return proxy

    def of_peer(self, peer: str) -> str:
        """The network of a peer that has sent nothing yet. "" for a trusted proxy."""
        ip = plain_ip(peer)
        return "" if self.trusts(ip) else networks_of(ip)[0].name

    def trusts(self, ip: str) -> bool:
        if not ip or not self.trusted:
            return False
        address = ipaddress.ip_address(ip)
        return any(address in network for network in self.trusted)

    def may_be_proxy(self, peer: str) -> bool:
        """Whether a peer that sends a forwarding header is probably the owner's proxy: on this
        machine or, while the settings name none, in the local network, where containers are too.
        A reader in that network can write the header, too, and then has the limits of a crowd."""
        if is_this_machine(peer):
            return True
        names_one = bool(self.trusted or self.trusts_file)
        return not names_one and not ipaddress.ip_address(peer).is_global

    def note_unnamed_proxy(self, peer: str) -> None:
        if not self.saw_unnamed_proxy:
            log.warning(
                "a proxy that is not named passes requests on, so visitors can't be told apart: "
                "set [server] trusted_proxy = %s%s",
                peer or "unix",
                "" if is_this_machine(peer) else ", if that is yours",
            )
        self.saw_unnamed_proxy = True


def crowd_behind(peer: str) -> Client:
    """All visitors of a proxy that the settings do not name."""
    networks = [Network(each.name, each.factor * CROWD) for each in networks_of(peer)]
    return Client(peer, networks, is_crowd=True)


def is_this_machine(peer: str) -> bool:
    """Whether a peer is on this machine; "" is one that connects through the socket file."""
    return not peer or ipaddress.ip_address(peer).is_loopback


# Views


@dataclass
class PageViews:
    """Views of a page since they were last written. If the page is not known yet, it is added, and
    counts as the one that `client` has added: the first who viewed it."""

    page_url: str
    client: Client
    count: int = 0


class ViewCounter:
    """The views since they were last written, by page key."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pending: dict[str, PageViews] = {}

    def add(self, name: PageName, client: Client) -> None:
        with self.lock:
            views = self.pending.get(name.key)
            if views is None:
                views = self.pending[name.key] = PageViews(name.page_url, client)
            views.count += 1

    def waiting(self, key: str) -> int:
        views = self.pending.get(key)
        return views.count if views else 0

    def take(self) -> dict[str, PageViews]:
        """Forgets the views, which the caller writes."""
        with self.lock:
            pending = self.pending
            self.pending = {}
        return pending


# -- Site ---------------------------------------------------------------------


class PasswordHasher:
    """Hashes two passwords at a time while six wait, and refuses more."""

    def __init__(self) -> None:
        self.seats = threading.Semaphore(8)
        self.at_work = threading.Semaphore(2)

    def hash(self, password: str, scheme: str) -> str:
        """The hash of a password. The caller has a seat."""
        with self.at_work:
            return hash_password(password, scheme)

    def seat(self) -> contextlib.AbstractContextManager[None]:
        """A place in the queue. `Unavailable` if there is none."""
        busy = Unavailable("现在登录的人太多，请稍后再试", Code.BUSY, retry_after=2)
        return holding(self.seats, 0, busy)


class ChatPace:
    """When a chat takes the next message: it has a limit for a minute, and rests after a failure
    that is not about one message."""

    def __init__(self) -> None:
        self.sent_at: deque[int] = deque()  # in the last minute
        self.rests_until = 0

    def seconds_to_wait(self, most_a_minute: int, now: int) -> int:
        while self.sent_at and not is_recent(self.sent_at[0], now, MINUTE):
            self.sent_at.popleft()
        wait = 0
        if most_a_minute and len(self.sent_at) >= most_a_minute:
            wait = self.sent_at[0] + MINUTE - now
        return max(wait, self.rests_until - now, 0)


class PassedCaptchas:
    """The captcha tokens that a provider accepted in the last minutes: it accepts each only
    once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.passed_at: dict[str, int] = {}  # by captcha token

    def add(self, captcha_token: str, now: int) -> None:
        with self.lock:
            for token in [*self.passed_at]:
                if not self.has(token, now):
                    del self.passed_at[token]
            self.passed_at[captcha_token] = now

    def has(self, captcha_token: str, now: int) -> bool:
        passed_at = self.passed_at.get(captcha_token)
        return passed_at is not None and is_recent(passed_at, now, 5 * MINUTE)


@dataclass(frozen=True, kw_only=True)
class Site:
    """One blog while it is served: what its requests and its regular work share. Whatever is not
    a pure function takes a site or a request."""

    config: Config
    store: Store
    key: bytes  # signs tokens and links
    world: World
    mailer: "Mailer"
    places: Places
    assets: Mapping[str, "Asset"]  # the files of `static/`, by name
    assets_version: str  # changes with any of them
    fragment_style: str  # of all fragments, but for the colours of their avatars
    clients: Clients
    rounds: int = ROUNDS  # of the password hash
    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    # Four requests at a time ask a captcha provider, so that the others are served while it is
    # slow.
    captcha_seats: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(4))
    passed_captchas: PassedCaptchas = field(default_factory=PassedCaptchas)
    login_seats: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(2))
    # Where identity providers are reached, by the names in the settings, and when each said so.
    found_endpoints: dict[str, tuple[int, "Endpoints"]] = field(default_factory=dict)
    minute_counter: MinuteCounter = field(default_factory=MinuteCounter)
    views: ViewCounter = field(default_factory=ViewCounter)
    download_lock: threading.Lock = field(default_factory=threading.Lock)  # of a backup
    chat_paces: dict[str, ChatPace] = field(default_factory=lambda: defaultdict(ChatPace))
    # When sessions of admins were last used, by their id, as far as it is not written yet.
    seen_sessions: dict[int, int] = field(default_factory=dict)

    def now(self) -> int:
        """UTC seconds."""
        return self.world.now()


# -- Limits -------------------------------------------------------------------


# Rate limits: `{HOUR: 5}` means five uses in an hour.
RATE_LIMITS = {
    # Of a client, which comes in the form of one or more networks.
    "register": {HOUR: 5},
    "verify": {10 * MINUTE: 10},
    "login": {10 * MINUTE: 10},
    "comment": {MINUTE: 5, HOUR: 60},
    "like": {MINUTE: 10, HOUR: 100},
    "new_page": {HOUR: 20},
    "follow": {HOUR: 30},
    "report": {HOUR: 5, DAY: 20},
    # Of a client, for one email address or one comment.
    "code_for_email": {MINUTE: 1},
    "wrong_password": {10 * MINUTE: 5},
    "like_of_comment": {DAY: 20},
    # Of an admin's account, after the right password: strangers cannot use them up.
    "wrong_factor": {10 * MINUTE: 5, DAY: 20},
    # Emails with codes. What anybody asks for counts on the first two.
    "code_email": {MINUTE: 1, HOUR: 5, DAY: 10},  # to one email address
    "all_code_emails": {HOUR: 200},
    # Strangers cannot use these up. They are for a client from a network that the account signed in
    # from, when the first two are used up, and for the holder, signed in.
    "known_code_email": {MINUTE: 1, DAY: 5},
    "own_code_email": {MINUTE: 1, DAY: 5},
    # Wrong codes. `guess_uses` says which of these a guess counts on.
    "wrong_code": {DAY: 20},  # of a client
    "unnamed_wrong_code": {DAY: 15},  # for an email address, by clients that name no request
    "known_wrong_code": {DAY: 15},  # for an email address, by clients that its account knows
    "all_wrong_codes": {DAY: 200},  # for all accounts, by clients that they do not know
    # For an email address without an account. It is never used up: it costs the same work as
    # `all_wrong_codes`, so that the time of the response does not tell who has an account.
    "all_wrong_codes_for_nobody": {DAY: 10**9},
    # Of an email address: emails about comments, and about replies alone.
    "notification": {10 * MINUTE: 1},
    "reply_email": {HOUR: 6},
    # Of an email address: emails that ask whether its holder wrote what a guest signed with it.
    "question": {DAY: 1},
    # Of all clients together.
    "all_comments": {HOUR: 300},
    "all_likes": {HOUR: 2000},
    "all_new_pages": {HOUR: 300, DAY: 1000},  # by views and likes: each takes 10 kB for 90 days
    "all_reports": {HOUR: 60},
    "all_questions": {HOUR: 30},  # to guests: whether they want emails
}
# These hold also for an owner who wants no rate limits: those of emails to people who wrote here,
# and that of a second factor. No wrong guess ends it, as it ends an emailed code, so that it would
# be found within hours.
ALWAYS_LIMITED = {"notification", "reply_email", "question", "all_questions", "wrong_factor"}

# Rate limits that are counted in memory: the uses of a client in a minute.
MEMORY_LIMITS = {
    "challenge": 120,
    "preview": 120,
    "siteverify": 20,
    "provider": 30,
    "view": 60,
    "link": 120,
    "export": 60,
}


@dataclass(frozen=True)
class Use:
    """One use of a rate limit by a subject: the hash of a client or of an email address, or "" for
    all clients together. The limit is `factor` times as high for it."""

    name: str
    subject: str = ""
    factor: int = 1


@dataclass(frozen=True)
class Period:
    """One of the periods of a rate limit: what its subject has used of it, and the most it may."""

    use: Use
    usage: Usage
    most: int

    @property
    def is_used_up(self) -> bool:
        return self.usage.used >= self.most


def periods_of(site: Site, uses: Iterable[Use]) -> list[Period]:
    """All periods of the rate limits, without those limits that the owner does not want."""
    now = site.now()
    periods = []
    for use in uses:
        if not site.config.limits_enabled and use.name not in ALWAYS_LIMITED:
            continue
        usages = site.store.usage(use.name, use.subject)
        for seconds, most in RATE_LIMITS[use.name].items():
            usage = usages.get(seconds)
            # What ends further ahead than it is long was stored with a wrong clock.
            if usage is None or not now < usage.ends_at <= now + seconds:
                usage = Usage(seconds, used=0, ends_at=now + seconds)
            periods.append(Period(use, usage, most * use.factor))
    return periods


def seconds_to_wait(site: Site, *uses: Use) -> int:
    """How long it takes until none of these rate limits is used up, 0 if none is now."""
    now = site.now()
    ends = [period.usage.ends_at for period in periods_of(site, uses) if period.is_used_up]
    return max(ends, default=now) - now


def take_uses(site: Site, *uses: Use) -> bool:
    """Counts one use of each rate limit. False if one is used up: then none is counted."""
    periods = periods_of(site, uses)
    if any(period.is_used_up for period in periods):
        return False
    for period in periods:
        one_more = replace(period.usage, used=period.usage.used + 1)
        site.store.keep_usage(period.use.name, period.use.subject, one_more)
    return True


def return_uses(site: Site, *uses: Use) -> None:
    """Undoes `take_uses`: what was counted in advance was not used."""
    for use in uses:
        site.store.return_use(use.name, use.subject)


def client_uses(site: Site, client: Client, name: str, *parts: object) -> list[Use]:
    """One use of a rate limit by each network of a client, or by network and `parts` together."""
    return [
        Use(name, keyed_hash(site.key, "client", network.name, *parts), network.factor)
        for network in client.networks
    ]


def take_use_in_memory(site: Site, client: Client, name: str) -> bool:
    """Counts one use of one of the `MEMORY_LIMITS`. False if it is used up."""
    if not site.config.limits_enabled:
        return True
    return site.minute_counter.take(name, MEMORY_LIMITS[name], client.networks, site.now())


TOO_OFTEN = "操作太频繁，请稍后再试"


def too_many(wait: int, text: str = TOO_OFTEN) -> TooManyRequests:
    """The refusal of whoever has to wait so many seconds."""
    return TooManyRequests(text, Code.TOO_MANY, retry_after=wait)


def take_uses_or_refuse(site: Site, *uses: Use, text: str = TOO_OFTEN) -> None:
    """Counts one use of each rate limit. Refuses the request if one is used up: then none is
    counted."""
    if not take_uses(site, *uses):
        raise too_many(seconds_to_wait(site, *uses), text)


def refuse_if_used_up(site: Site, *uses: Use) -> None:
    """Refuses the request if a rate limit is used up. It counts nothing, so that costly work can
    be done between this and the transaction that counts."""
    wait = seconds_to_wait(site, *uses)
    if wait:
        raise too_many(wait)


# Views


def flush_views(site: Site) -> None:
    """Writes all views. A page that is not known yet is added if its client may add one. If the
    disk refuses, these views are lost."""
    pending = site.views.take()
    if not pending:
        return
    store = site.store
    now = site.now()
    with store.writing():
        for key in store.unknown_pages([*pending]):
            views = pending[key]
            uses_of_client = client_uses(site, views.client, "new_page")
            if take_uses(site, Use("all_new_pages"), *uses_of_client):
                store.add_page(key, views.page_url, now)
            else:
                del pending[key]
        store.add_views({key: views.count for key, views in pending.items()}, now)


BOTS = re.compile(
    r"(?<!cu)bots?\b|crawl|spider|slurp|preview|externalhit|prerender|lighthouse", re.I
)


def is_real_view(environ: Json) -> bool:
    """Whether a person looks: not a bot and not a prefetch."""
    is_prefetch = "prefetch" in environ.get("HTTP_SEC_PURPOSE", "")
    is_bot = BOTS.search(environ.get("HTTP_USER_AGENT", "")) is not None
    return environ["REQUEST_METHOD"] == "GET" and not is_prefetch and not is_bot


def count_view(site: Site, client: Client, name: PageName) -> None:
    """Counts a view, unless the client has used up its views."""
    if take_use_in_memory(site, client, "view"):
        site.views.add(name, client)


# -- Moderation ---------------------------------------------------------------


# The spam filter

# It follows Gary Robinson, "A Statistical Approach to the Spam Problem", Linux Journal 107 (2003),
# after Paul Graham's "A Plan for Spam". Each term gets a badness from the comments that it was in,
# from 0 (only good ones) to 1 (only spam), and Fisher's method makes one score of the worst and the
# best terms. The constants are those of SpamBayes (Options.py).
STRENGTH = 0.45  # how much the badness of an unknown term weighs
UNKNOWN = 0.5  # that badness: between good and bad
MOST_CLUES = 150  # terms that count
LEAST_DISTANCE = 0.1  # of a clue from the middle
LEAST_CLUES = 3  # where there are fewer, unknown terms are added
SPAM_SCORE = 0.9  # from here on a comment is held
LEAST_LEARNT = 20  # comments that the filter must know before it holds any
LEAST_OF_EACH = 5  # good ones, and as many that are spam

# Vowel signs and tones, which `re` does not count as letters: Hindi would fall into consonants.
MARKS = "".join(
    char for char in map(chr, range(0x300, 0x1B00)) if unicodedata.category(char)[0] == "M"
)
LETTER = rf"(?:[^\W_{UNSPACED}][{MARKS}]*)"
# Compiled when the first comment is read: that takes as long as importing eight modules.
WORD = rf"[{UNSPACED}]+|{LETTER}+(?:['’-]{LETTER}+)*"
# Signs between characters that hide a word: 加-微-信.
BETWEEN = rf"(?<=[{UNSPACED}])(?:(?![{UNSPACED}])[\W_])+(?=[{UNSPACED}])"


def terms_in(written: Comment) -> Iterator[str]:
    """The terms of a comment: words (pairs of characters in scripts without spaces), `link:HOST`
    for each host, `links:N` for their number, and `name:WORD` for the nickname."""
    yield from words_in(plain_text(written.html))
    for word in words_in(folded(written.nickname)):
        yield f"name:{word}"
    markup = html.unescape(written.html)
    for host in hosts_in(markup, written.website):
        domain = ".".join(host.split(".")[-2:])
        yield f"link:{host[:80]}"
        yield f"link:{domain[:80]}"
    count = written.html.count("<a ") + bool(written.website)
    yield f"links:{min(5, count)}"


def plain_text(markup: str) -> str:
    """HTML as the filter reads it: without tags and URLs, whose hosts are terms of their own."""
    text = re.sub(r"</?(?:a|em|strong|del|code)\b[^>]*>", "", markup)  # via**gra** is one word
    text = re.sub(r"<[^>]*>", " ", text)
    # Before it is folded: that makes the full-width comma behind a URL a part of it.
    text = re.sub(URL_IN_TEXT, " ", html.unescape(text))
    return re.sub(BETWEEN, "", folded(text))


def words_in(text: str) -> Iterator[str]:
    for word in re.findall(WORD, text):
        if not re.match(f"[{UNSPACED}]", word):
            yield word[:40]
        elif len(word) == 1:
            yield word
        else:
            yield from map("".join, itertools.pairwise(word))


def term_hash(key: bytes, term: str) -> int:
    """The signed 64-bit number that stands for a term in the database, which holds no words."""
    digest = hashlib.blake2b(term.encode(), digest_size=8, key=key[:64]).digest()
    return int.from_bytes(digest, signed=True)


def terms_by_hash(site: Site, comment: Comment) -> dict[int, str]:
    """The terms of a comment, by what stands for them in the database."""
    return {term_hash(site.key, term): term for term in terms_in(comment)}


def badness(counts: tuple[int, int], totals: tuple[int, int]) -> float:
    """Robinson's f(w): `counts` are the good and spam comments with the term, `totals` all good and
    all spam comments."""
    ham, spam = counts
    all_ham, all_spam = totals
    seen = ham + spam
    good = ham / all_ham
    bad = spam / all_spam
    share = bad / (good + bad)
    return (STRENGTH * UNKNOWN + seen * share) / (STRENGTH + seen)


def spam_score(badnesses: list[float]) -> float:
    """0 (good) to 1 (spam) from the badness of terms. 0.5 if these say nothing, or both."""
    missing = max(0, LEAST_CLUES - len(badnesses))
    padded = [*badnesses, *[UNKNOWN] * missing]
    could_be_spam = combined(padded)  # near 0 if hardly any term is bad
    could_be_ham = combined([1 - each for each in padded])
    return (1 + could_be_spam - could_be_ham) / 2


def combined(chances: list[float]) -> float:
    """Fisher's method: the probability that luck alone gives chances as low as these. It is that of
    a chi-squared value of 2 · `half` with two degrees of freedom for each chance."""
    half = -sum(map(math.log, chances))
    # The first parts of the series of e to the power of `half`, over the whole.
    part = math.exp(-half)
    total = part
    for number in range(1, len(chances)):
        part *= half / number
        total += part
    return min(total, 1.0)


def learnt_counts(store: Store) -> tuple[int, int]:
    """How many good and spam comments the filter has learnt. They stand as a term, of hash 0."""
    return store.term_counts([0]).get(0, (0, 0))


def has_learnt_enough(ham: int, spam: int) -> bool:
    return ham + spam >= LEAST_LEARNT and min(ham, spam) >= LEAST_OF_EACH


@dataclass(frozen=True)
class Opinion:
    """What the spam filter says of a comment."""

    score: float  # 0 (good) to 1 (spam), rounded: admins see what was compared with `SPAM_SCORE`
    clues: dict[str, float]  # the terms that say most, with their badness; the strongest first

    def for_admins(self) -> Json:
        tokens = [{"token": term, "score": round(bad, 2)} for term, bad in self.clues.items()]
        return {"score": self.score, "tokens": tokens}

    def summary(self) -> str:
        """The score and the terms that speak most for spam."""
        words = []
        for term, bad in self.clues.items():
            prefix, _, word = term.rpartition(":")
            if bad > UNKNOWN and prefix != "links" and word not in words:
                words.append(word)
        return f"{', '.join(words[:5])} ({self.score:.2f})"


def filter_opinion(site: Site, written: Comment) -> Opinion | None:
    """None until the filter has learnt enough."""
    totals = learnt_counts(site.store)
    if not has_learnt_enough(*totals):
        return None
    terms = terms_by_hash(site, written)
    clues = {}
    for number, counts in site.store.term_counts([*terms]).items():
        bad = badness(counts, totals)
        if abs(bad - UNKNOWN) >= LEAST_DISTANCE:
            clues[terms[number]] = bad
    strongest = sorted(clues, key=lambda term: (-abs(clues[term] - UNKNOWN), term))
    score = spam_score([clues[term] for term in strongest[:MOST_CLUES]])
    return Opinion(round(score, 2), {term: clues[term] for term in strongest[:10]})


# Blocks


@dataclass(frozen=True)
class Target:
    """What blocks are compared with. `text` is folded. `hosts` are those it links to."""

    ip: str = ""
    email: str = ""
    text: str = ""
    hosts: Collection[str] = ()


def target_of(written: FullComment) -> Target:
    shown = shown_text(written)
    text = " ".join([*written.texts, shown])
    hosts = hosts_in(written.email, written.website, written.html) | hosts_in(shown)
    return Target(written.ip, written.email, folded(text), hosts)


def shown_text(written: Comment) -> str:
    """What readers see and may copy: `via**gra**` is one word, and `https://evil。example` one URL,
    though the link ends within it."""
    return html.unescape(re.sub(r"<[^>]*>", "", written.html))


LATEST_COMMENTS = 100  # on which a new block is tried
LEAST_MATCHES = 5  # of these: fewer say nothing of how many readers a block is about


@dataclass(frozen=True)
class Reach:
    """How many of the latest comments a new block would match."""

    count: int
    total: int  # on which it was tried

    @property
    def is_frequent(self) -> bool:
        return self.count >= LEAST_MATCHES and self.count / self.total >= 0.1


class BlockType(abc.ABC):
    """What a block is about. Its name in `BLOCK_TYPES` is the `kind` of a block."""

    @abc.abstractmethod
    def proper(self, text: str) -> str:
        """The one spelling of a value to block. `ValueError` if it cannot be blocked."""

    @abc.abstractmethod
    def matches(self, value: str, target: Target) -> bool:
        """Whether a block with that value is about the target."""

    @abc.abstractmethod
    def is_wide(self, value: str, reach: Reach) -> bool:
        """Whether a block with that value would match many readers."""

    def summary(self, value: str) -> str:
        """The value as the reason why a comment was held: neither an IP nor an email address."""
        return value


# A wider network belongs to several providers: of IPv6 each is given at least a /32 (RIPE-738,
# section 5.1.2), and few have more than a /16 of IPv4.
WIDEST_NETWORK = {4: 16, 6: 32}


class NetworkBlock(BlockType):
    """Blocks an IP address, or a network."""

    def proper(self, text: str) -> str:
        text = plain_ip(text) or text.strip()
        blocked = ipaddress.ip_network(text, strict=False)
        is_one_ip = blocked.num_addresses == 1
        return str(blocked.network_address if is_one_ip else blocked)

    def matches(self, value: str, target: Target) -> bool:
        with contextlib.suppress(ValueError):  # an unreadable row is about nobody
            return ipaddress.ip_address(target.ip) in ipaddress.ip_network(value)
        return False

    def is_wide(self, value: str, reach: Reach) -> bool:
        blocked = ipaddress.ip_network(value)
        return blocked.prefixlen < WIDEST_NETWORK[blocked.version]

    def summary(self, value: str) -> str:
        return masked(value.partition("/")[0])


class EmailBlock(BlockType):
    """Blocks one email address."""

    def proper(self, text: str) -> str:
        return proper_email(text)

    def matches(self, value: str, target: Target) -> bool:
        return target.email == value

    def is_wide(self, value: str, reach: Reach) -> bool:
        return False

    def summary(self, value: str) -> str:
        return f"…@{value.rpartition('@')[2]}"


# Many readers have their email there, though few may have commented yet.
MAIL_PROVIDERS = re.compile(
    r"(126|163|aol|foxmail|gmail|hotmail|icloud|live|naver|outlook|qq|sina|sohu|yahoo)\.com|"
    r"gmx\.(de|net)|proton(mail)?\.(me|com)|(mail|yandex)\.ru|web\.de|yeah\.net"
)


class DomainBlock(BlockType):
    """Blocks a host and all below it, in links and in email addresses."""

    def proper(self, text: str) -> str:
        host = plain_host(re.sub(r"^(https?://|@)|[/?#].*$", "", text.strip().lower()))
        if not re.fullmatch(r"([a-z0-9-]+\.)+[a-z0-9-]+", host):
            raise ValueError
        return host

    def matches(self, value: str, target: Target) -> bool:
        return any(f".{host}".endswith(f".{value}") for host in target.hosts)

    def is_wide(self, value: str, reach: Reach) -> bool:
        return reach.is_frequent or MAIL_PROVIDERS.fullmatch(value) is not None


class WordBlock(BlockType):
    """Blocks a word or a phrase in what a comment says."""

    def proper(self, text: str) -> str:
        if not folded(text):
            raise ValueError
        return text.strip()

    def matches(self, value: str, target: Target) -> bool:
        return folded(value) in target.text

    def is_wide(self, value: str, reach: Reach) -> bool:
        # Most texts hold any given character of an alphabet. A single Chinese character is a word.
        is_one_letter = re.fullmatch(f"[^{UNSPACED}]", folded(value)) is not None
        return reach.is_frequent or is_one_letter


BLOCK_TYPES: dict[str, BlockType] = {
    "address": NetworkBlock(),
    "email": EmailBlock(),
    "domain": DomainBlock(),
    "word": WordBlock(),
}


def matching_block(site: Site, target: Target) -> Block | None:
    for block in site.store.blocks(site.now()):
        if BLOCK_TYPES[block.kind].matches(block.value, target):
            return block
    return None


def reach_of_block(store: Store, block_type: BlockType, value: str) -> Reach:
    latest = store.search_comments("visible", "", None, NO_END, LATEST_COMMENTS)
    count = sum(block_type.matches(value, target_of(comment)) for comment in latest)
    return Reach(count, len(latest))


def is_blocked_email(site: Site, email_address: str) -> bool:
    """Whether an email address has a blocked account, or is blocked itself or by its domain."""
    account = site.store.account_with_email(email_address)
    if account and account.blocked:
        return True
    target = Target(email=email_address, hosts=hosts_in(email_address))
    return matching_block(site, target) is not None


# The status of a new text


def came_too_fast(captcha: Captcha | None, text: str, now: int) -> bool:
    """Whether a text came sooner than a person types or pastes it. The widget asks for the
    challenge when the reader comes to the field. A long text needs three seconds, twenty characters
    none."""
    if captcha is None or captcha.made_at is None:
        return False
    typing_time = min(3, len(text) // 20)
    return is_recent(captcha.made_at, now, typing_time)


@dataclass(frozen=True)
class Verdict:
    """The status of a text, and the reason (`held`) if it is not shown."""

    status: str
    held: str


def moderate_text(site: Site, written: FullComment, doubt: str) -> Verdict:
    """Decides on the status of a comment. It is costly, so it runs outside of transactions. Nothing
    is dropped: what is blocked is kept as spam, for the owner to see. `doubt`: what was wrong with
    the captcha: `fast`, if the comment came sooner than a person types, or `captcha_down`, if it
    could not be checked. Else ""."""
    config = site.config
    target = target_of(written)
    block = matching_block(site, target)
    if block:
        summary = BLOCK_TYPES[block.kind].summary(block.value)
        return Verdict("spam", f"block: {summary}")
    if config.moderation_hold == "all":
        return Verdict("waiting", "all")
    for phrase in config.moderation_words:
        if folded(phrase) in target.text:
            return Verdict("waiting", f"word: {phrase}")
    held = suspicion(site, written, doubt)
    if held:
        return Verdict("waiting", held)
    return Verdict("visible", "")


def suspicion(site: Site, written: FullComment, doubt: str) -> str:
    """Why a comment waits that has none of the owner's phrases. "" if it does not wait."""
    hold = site.config.moderation_hold
    opinion = filter_opinion(site, written)
    if opinion and opinion.score >= SPAM_SCORE:
        return f"learnt: {opinion.summary()}"
    if doubt:
        return doubt
    if hold == "links" and (written.website or "<a " in written.html):
        return "links"
    # Of very many links, blocks were compared with the first hosts alone: see `hosts_in`.
    if any(len(written_hosts(text)) > MOST_HOSTS for text in (written.html, shown_text(written))):
        return "links"
    if hold == "first" and not site.store.count_known(written):
        return "first"
    # Whether an account has the address does not matter: guests would learn that.
    if hold == "email" and written.user_id is None and written.email:
        return "email"
    return ""


# What the filter learns


def unteach(site: Site, comment: Comment) -> None:
    """Makes the filter forget a comment, before its text changes."""
    if comment.learnt:
        site.store.unlearn(comment, [*terms_by_hash(site, comment)])


def unteach_ham(site: Site, comment: Comment) -> None:
    """Makes the filter forget a good comment before its author edits or deletes it, or leaves. Good
    comments teach the filter only while readers can see them, as when an admin deletes one. Spam
    stays learnt: otherwise its author could make the filter forget it."""
    if comment.learnt == "ham":
        unteach(site, comment)


def lesson_of(status: str, learnt: str) -> str:
    """As what the filter should know a comment that gets a status: `ham`, `spam`, or "" for not at
    all. `learnt`: as what it knows the comment."""
    if status == "spam":
        return "spam"
    if status == "deleted":  # spam stays learnt when it is cleared away
        return "spam" if learnt == "spam" else ""
    if status == "visible":  # one that was taken for spam is a doubtful example of a good one
        return "" if learnt == "spam" else "ham"
    return ""  # it waits again


def teach(site: Site, comment: Comment, status: str) -> None:
    """Approving and marking as spam teach the filter, and it forgets what is taken back."""
    lesson = lesson_of(status, comment.learnt)
    if lesson == comment.learnt:
        return
    unteach(site, comment)
    if lesson:
        learn(site, comment, lesson)
    if lesson == "spam":
        learn_good_in_turn(site)


def learn(site: Site, comment: Comment, lesson: str) -> None:
    site.store.learn(comment, lesson, [*terms_by_hash(site, comment)], site.now())


def learn_good_in_turn(site: Site) -> None:
    """Makes the filter learn a good comment with each spam: an owner who holds nothing approves
    nothing, and the filter would know spam only."""
    ham, spam = learnt_counts(site.store)
    good = site.store.oldest_unlearnt() if ham < spam else None
    if good:
        learn(site, good, "ham")


# What a moderator can do


class Action(abc.ABC):
    """Something that a moderator can do with a comment: at /admin, in the widget, and by a link in
    an email or a chat. Its name in `ACTIONS` is in the links and in the audit log. The API says it
    as `field: value`."""

    field: str
    value: str | bool
    checks_text = False  # whether it is refused if the text is not the one that was read
    for_moderators = False  # whether the token suffices that scripts of the blog can read

    @abc.abstractmethod
    def value_before(self, site: Site, comment: FullComment) -> str | bool:
        """What the comment has now where the action puts its value: to send that undoes it."""

    @abc.abstractmethod
    def apply(self, site: Site, comment: FullComment) -> str:
        """Does it, in the caller's transaction. Returns what the audit log says, "" if nothing has
        changed. `Problem` if it cannot be done."""

    def undo(self, site: Site, comment: FullComment) -> str:
        """The name of the action that gives the comment back what it has now. It stands in a link,
        so that the page which opens after it is followed can offer it."""
        return ACTION_NAMES[self.field, self.value_before(site, comment)]

    def subject(self, comment: FullComment) -> int | str:
        """What the audit log says that the action was done with."""
        return comment.id

    def is_offered(self, comment: FullComment, *, is_reported: bool) -> bool:
        """Whether emails and chats have a link for it."""
        return False


class GiveStatus(Action):
    """Gives a comment a status and teaches the filter. What readers have reported is decided."""

    field = "status"
    for_moderators = True
    value: str

    def __init__(self, status: str) -> None:
        self.value = status
        self.checks_text = status == "visible"

    def value_before(self, site: Site, comment: FullComment) -> str:
        return comment.status

    def apply(self, site: Site, comment: FullComment) -> str:
        store = site.store
        teach(site, comment, self.value)
        done = ""
        if self.value != comment.status:
            store.change_status(comment.id, self.value, site.now())
            done = self.value
        elif store.reports(comment.id):
            done = "keep"
        store.end_reports(comment.id)
        return done

    def is_offered(self, comment: FullComment, *, is_reported: bool) -> bool:
        if self.value == "visible":
            return is_reported or comment.status == "waiting"
        return self.value in ("spam", "deleted")


class Pin(Action):
    """Shows a top-level comment above the others, or among them again."""

    field = "pinned"
    for_moderators = True
    value: bool

    def __init__(self, pinned: bool) -> None:
        self.value = pinned

    def value_before(self, site: Site, comment: FullComment) -> bool:
        return bool(comment.pinned)

    def apply(self, site: Site, comment: FullComment) -> str:
        if self.value == bool(comment.pinned):
            return ""
        if comment.parent_id or comment.status != "visible":
            raise BadRequest("只有公开的主评论可以置顶", Code.PIN_INVALID)
        site.store.set_pinned(comment.id, self.value)
        return "pin" if self.value else "unpin"


class ClosePage(Action):
    """Ends or admits new comments on the page of a comment."""

    field = "closed"
    for_moderators = True
    value: bool

    def __init__(self, closed: bool) -> None:
        self.value = closed

    def value_before(self, site: Site, comment: FullComment) -> bool:
        page = site.store.page_by_id(comment.page_id)
        return page is not None and page.is_closed(site.config, site.now())

    def apply(self, site: Site, comment: FullComment) -> str:
        page = site.store.page_by_id(comment.page_id)
        return set_page_closed(site, page, self.value) if page else ""

    def subject(self, comment: FullComment) -> str:
        return comment.page_url


def set_page_closed(site: Site, page: Page, closed: bool) -> str:
    """Ends or admits new comments on a page, in the caller's transaction. Returns what the audit
    log says, "" if nothing has changed."""
    # An admin may also close a page that is too old for comments: then it stays closed whatever
    # the settings say. To reopen it lets its age begin anew.
    was_closed = bool(page.closed) if closed else page.is_closed(site.config, site.now())
    if closed == was_closed:
        return ""
    site.store.set_closed(page.id, closed, site.now())
    return "close" if closed else "reopen"


# Each has another one that undoes it.
ACTIONS: dict[str, Action] = {
    "visible": GiveStatus("visible"),
    "waiting": GiveStatus("waiting"),
    "spam": GiveStatus("spam"),
    "deleted": GiveStatus("deleted"),
    "pin": Pin(True),
    "unpin": Pin(False),
    "close": ClosePage(True),
    "reopen": ClosePage(False),
}


# What a moderator's token can do, which is weaker than an admin's.
ACTIONS_FOR_MODERATORS = [action for action in ACTIONS.values() if action.for_moderators]

# By what the API calls them: a field and its value.
ACTION_NAMES = {(action.field, action.value): name for name, action in ACTIONS.items()}


# -- Emails -------------------------------------------------------------------

# An email has sections, such as one for each comment, and a section has pieces. Each piece says the
# same in the plain part and in `email_piece.html`, which decides how it looks. `email.html` is all
# around them. What they rely on: clients such as Gmail take the head and the body element away, and
# Outlook for Windows draws with Word. So each style stands beside its element, buttons are cells of
# tables, and no picture is needed. The style sheet has only the colours of a dark page.

# Gmail hides what is behind 102 kB. Most of it would be style, and phones load it by radio.
MOST_HTML = 30_000  # bytes


@dataclass(frozen=True)
class LabelledLink:
    """A link with what it says. `style`: of the button, which is primary, danger or quiet."""

    label: str
    url: str
    style: str = "quiet"


class EmailPiece(abc.ABC):
    """A piece of an email. `shape` is its name in `email_piece.html`."""

    shape: ClassVar[str]

    @abc.abstractmethod
    def plain(self, texts: Mapping[str, str]) -> str:
        """What the plain part says, in the language of these texts."""


@dataclass(frozen=True)
class Heading(EmailPiece):
    """What a section is about, in one sentence."""

    shape = "heading"
    text: str

    def plain(self, texts: Mapping[str, str]) -> str:
        return self.text


@dataclass(frozen=True)
class Title(EmailPiece):
    """What several sections are about."""

    shape = "title"
    text: str

    def plain(self, texts: Mapping[str, str]) -> str:
        return self.text


@dataclass(frozen=True)
class Paragraph(EmailPiece):
    """Some lines. An empty line parts two paragraphs."""

    shape = "paragraph"
    text: str
    is_small: bool = False

    def plain(self, texts: Mapping[str, str]) -> str:
        return self.text


@dataclass(frozen=True)
class ShownCode(EmailPiece):
    """The digits that somebody has to type."""

    shape = "code"
    code: str

    def plain(self, texts: Mapping[str, str]) -> str:
        return f"    {self.code}"


@dataclass(frozen=True)
class Quote(EmailPiece):
    """What a reader wrote. `html` is safe. `read_on`: where the rest is, if it is cut there."""

    shape = "quote"
    text: str
    html: str
    website: str = ""
    is_small: bool = False
    read_on: LabelledLink | None = None

    def plain(self, texts: Mapping[str, str]) -> str:
        return quoted(f"{self.text}\n\n{self.website}" if self.website else self.text)


@dataclass(frozen=True)
class Links(EmailPiece):
    """Links, one below the other."""

    shape = "links"
    links: Sequence[LabelledLink]

    def plain(self, texts: Mapping[str, str]) -> str:
        lines = [texts["action_link"].format(label=each.label, url=each.url) for each in self.links]
        return "\n".join(lines)


@dataclass(frozen=True)
class Buttons(Links):
    """Links to press, of which at most one is primary."""

    shape = "buttons"


Section = Sequence[EmailPiece]


def quoted(text: str) -> str:
    """Each line behind `> `, so that none passes for a text of ours."""
    return "\n".join(f"> {line}" for line in text.splitlines())


def composed_email(
    config: Config,
    to: str,
    language: str,
    subject: str,
    sections: Sequence[Section],
    *,
    preview: str = "",
    more: int = 0,
    footer: Section = (),
    headers: Mapping[str, str] | None = None,
) -> Email:
    """An email in both forms. `preview`: what lists of emails show behind the subject. `more`: how
    many comments it has no room for. `footer`: what stands below all sections."""
    texts = texts_in(language)
    parts = [plain_section(section, texts) for section in sections]
    if more:
        parts.append(texts["owner_more"].format(n=more))
    line = "-" * 40
    text = f"\n\n{line}\n\n".join(parts)
    if footer:
        text += f"\n\n{plain_section(footer, texts)}"
    shown_subject = one_line(subject)
    markup = email_html(config, language, shown_subject, sections, preview, more, footer)
    return Email(to, shown_subject, f"{text}\n", markup, headers or {})


def plain_section(section: Section, texts: Mapping[str, str]) -> str:
    return "\n\n".join(piece.plain(texts) for piece in section)


def email_html(
    config: Config,
    language: str,
    subject: str,
    sections: Sequence[Section],
    preview: str,
    more: int,
    footer: Section,
) -> str:
    """The HTML of an email, with as many sections as it may hold."""
    texts = texts_in(language)
    is_rtl = texts.get("dir") == "rtl"
    known = languages().get(language)
    for count in range(len(sections), 0, -1):
        shown = [*sections[:count]]
        hidden = more + len(sections) - count
        if hidden:
            shown.append([Paragraph(texts["owner_more"].format(n=hidden))])
        markup = templates()["email.html"].render(
            lang=known.tag if known else "zh-CN",  # that of texts in two languages
            dir="rtl" if is_rtl else "ltr",
            start="right" if is_rtl else "left",
            end="left" if is_rtl else "right",
            subject=subject,
            preview=preview,
            blog_name=config.blog_name,
            sections=shown,
            footer=footer,
        )
        if len(markup.encode()) <= MOST_HTML:
            break
    return str(markup)


# The HTML of a comment in an email

QUOTE_STYLES = {
    "p": "margin:0 0 10px",
    "ul": "margin:0 0 10px;padding:0 24px",
    "ol": "margin:0 0 10px;padding:0 24px",
    "blockquote": "margin:0 0 10px;padding:0 12px;border-left:2px solid #c9cdd1",
    "pre": "margin:0 0 10px;padding:8px 10px;border-radius:6px;background:#eeefed;"
    "font-family:Menlo,Consolas,monospace;font-size:14px;line-height:20px;white-space:pre-wrap",
    "code": "padding:1px 4px;border-radius:4px;background:#eeefed;"
    "font-family:Menlo,Consolas,monospace;font-size:14px",
}
QUOTE_CLASSES = {"pre": "code", "code": "code", "blockquote": "line"}  # for dark colours


class QuoteWriter(html.parser.HTMLParser):
    """Writes the HTML of a comment anew, for an email: with the style of each element, without
    links and pictures, and with no more than `most` bytes. What it does not know is text, so
    nothing that a stranger wrote can look like a part of the email."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.size = 0
        self.is_cut = False
        self.written: list[str] = []
        self.open_tags: list[str] = []
        self.link_url = ""
        self.link_text = ""

    def write(self, markup: str) -> None:
        self.written.append(markup)
        self.size += len(markup.encode())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if self.is_cut:
            return
        if tag == "a":
            self.link_url = values.get("href", "")
            self.link_text = ""
        elif tag == "img":
            self.handle_data(values.get("alt", ""))
        elif tag in ("br", "hr"):
            self.write(f"<{tag}>")
        elif tag in TAGS:
            self.open_tags.append(tag)
            self.write(f"<{tag}{self.attributes_of(tag, values)}>")

    def attributes_of(self, tag: str, values: Mapping[str, str]) -> str:
        is_styled = tag in QUOTE_STYLES and "pre" not in self.open_tags[:-1]
        written = f' style="{QUOTE_STYLES[tag]}"' if is_styled else ""
        if is_styled and tag in QUOTE_CLASSES:
            written += f' class="{QUOTE_CLASSES[tag]}"'
        if tag == "ol" and values.get("start", "").isdecimal():
            written += f' start="{int(values["start"])}"'
        return written

    def handle_endtag(self, tag: str) -> None:
        if self.is_cut:
            return
        if tag == "a":
            self.say_where_link_leads()
        elif self.open_tags and tag == self.open_tags[-1]:
            self.open_tags.pop()
            self.write(f"</{tag}>")

    def say_where_link_leads(self) -> None:
        """Programs make a link of each URL that they see. So the whole URL stands there, and leads
        to what it says."""
        url = self.link_url.removeprefix("mailto:")
        is_said = unquoted(url) == unquoted(self.link_text.strip())
        self.link_url = ""
        if url and not is_said:
            self.handle_data(f" ({url})")

    def handle_data(self, data: str) -> None:
        if self.is_cut:
            return
        self.link_text += data
        room = max(0, self.most - self.size)
        markup = html.escape(data, quote=False)
        if len(markup.encode()) > room:
            self.is_cut = True
            markup = html.escape(shortened(data, room // 3), quote=False)
        self.write(markup)

    def finished(self) -> str:
        self.close()
        ends = [f"</{tag}>" for tag in reversed(self.open_tags)]
        return "".join([*self.written, *ends])


def quote_of(
    comment: Comment,
    *,
    most: int,
    most_bytes: int,
    read_on: LabelledLink | None = None,
    is_small: bool = False,
    has_website: bool = False,
) -> Quote:
    """A comment as an email shows it: at most so many characters in the plain part, and so many
    bytes of HTML. `read_on` leads to the rest."""
    writer = QuoteWriter(most_bytes)
    writer.feed(comment.html)
    markup = writer.finished()
    return Quote(
        text=shortened(comment.content, most),
        html=markup,
        website=comment.website if has_website else "",
        is_small=is_small,
        read_on=read_on if writer.is_cut else None,
    )


def quote_of_text(text: str) -> Quote:
    """Some lines of readers that are no Markdown."""
    return Quote(text=text, html=plain_html(text), is_small=True)


# -- Mail ---------------------------------------------------------------------


# Composing


MOST_QUOTED = 20  # comments in one email
MOST_ASKED = 8  # in one that asks about each, so that the HTML has room for all


def name_of(texts: Mapping[str, str], comment: Comment) -> str:
    """The author's name, or the word for anonymous if they deleted their account."""
    return comment.nickname or texts["thread_anonymous"]


# The names of the texts that say why a comment waits, by the reason of its verdict.
HELD_TEXTS = {
    "all": "held_all",
    "first": "held_first",
    "links": "held_links",
    "email": "held_email",
    "flood": "held_flood",
    "fast": "held_fast",
    "captcha_down": "held_captcha_down",
    "word": "held_word",
    "block": "held_block",
    "learnt": "held_learnt",
    "denied": "held_denied",
}


@dataclass(frozen=True)
class Recipient:
    """Who gets an email or a webhook, in which language. Links are signed for them alone."""

    site: Site
    to: str
    language: str
    is_owner: bool = False

    @property
    def texts(self) -> Mapping[str, str]:
        return texts_in(self.language)

    def text(self, name: str, **values: object) -> str:
        blog_name = self.site.config.blog_name
        return self.texts[name].format(site=blog_name, **values)

    # Links

    def short_link(self, link: ShortLink) -> str:
        """The URL of a link for this recipient, in the caller's transaction. "" if readers cannot
        reach the service. Opening it changes nothing: its page has a button."""
        site = self.site
        public_url = site.config.server_public_url
        if not public_url:
            return ""
        link = replace(link, subscriber=subscriber_of(site.key, self.to), language=self.language)
        secret = secret_of_link(site.key, link)
        site.store.add_link(hash_of_secret(site.key, secret), link)
        return f"{public_url}/mail?do={link.action}&k={secret}"

    def action_link(self, name: str, comment: FullComment, made_at: int) -> str:
        """A link that does something with a comment, while its text and the recipient's role stay.
        "" if readers cannot reach the service."""
        return self.short_link(
            ShortLink(
                action=name,
                undo=ACTIONS[name].undo(self.site, comment),
                comment_id=comment.id,
                version=comment.version,
                expires_at=made_at + LINK_LIFE,
            )
        )

    def end_link(
        self, action: str, undo: str, *, comment_id: int = 0, page_id: int = 0, user_id: int = 0
    ) -> str:
        """A link that ends emails to this recipient. `undo`: the action that lets them go on."""
        return self.short_link(
            ShortLink(
                action=action,
                undo=undo,
                comment_id=comment_id,
                page_id=page_id,
                user_id=user_id,
                expires_at=self.site.now() + UNSUBSCRIBE_LIFE,
            )
        )

    def action_label(self, name: str, comment: FullComment) -> str:
        """The name of an action on a button. What a reader reported is kept, not approved anew."""
        action = ACTIONS[name]
        if action.value_before(self.site, comment) == action.value:
            name = "keep"
        return self.texts[f"button_{name}"]

    def action_links(
        self, comment: FullComment, made_at: int, *, is_reported: bool
    ) -> dict[str, str]:
        """The links of the actions that are offered for a comment, by name. There are none if
        readers cannot reach the service."""
        if not self.site.config.server_public_url:
            return {}
        return {
            name: self.action_link(name, comment, made_at)
            for name, action in ACTIONS.items()
            if action.is_offered(comment, is_reported=is_reported)
        }

    def link_to(self, comment: Comment) -> str:
        """The URL of a comment on its page. "" if nothing opens that. Readers are sent to the
        owner's pages alone."""
        find = page_link if self.is_owner else own_link
        page = find(comment.page_url, self.site.config.site_origins)
        return comment_link(page, comment.id)

    def link_to_read(self, comment: Comment, label: str = "read") -> LabelledLink | None:
        """A link to a comment on its page. `label`: the name of a text."""
        url = self.link_to(comment)
        return LabelledLink(self.texts[label], url, "primary") if url else None

    # What an email says of a comment

    def about(self, name: str, comment: Comment) -> str:
        """The sentence of that name, for a subject: whose comment it is, and on which page."""
        page = self.page_in_subject(comment)
        return self.text(name, nickname=name_of(self.texts, comment), page=page)

    def opening(self, name: str, comment: Comment) -> list[EmailPiece]:
        """The same as the beginning of a section. A title may say anything, so the path of the page
        stands below it."""
        nickname = name_of(self.texts, comment)
        if not self.may_name_page(comment):
            return [Heading(self.text(name, nickname=nickname, page=self.site.config.blog_name))]
        path = self.page_path(comment)
        title = shortened(comment.page_title, 120)
        heading = Heading(self.text(name, nickname=nickname, page=title or path))
        return [heading, Paragraph(path, is_small=True)] if title else [heading]

    def subject(self, name: str, many_name: str, comments: Sequence[Comment]) -> str:
        """The subject of an email about these comments: the text `name` for one, the text
        `many_name` for several. It names the page of the first one."""
        if len(comments) == 1:
            return self.about(name, comments[0])
        page = self.page_in_subject(comments[0])
        return self.text(many_name, page=page, n=len(comments))

    def page_in_subject(self, comment: Comment) -> str:
        """The page of a comment by its title, or by its path if it has none. Of a page elsewhere,
        only that it is elsewhere."""
        origins = self.site.config.site_origins
        if not self.may_name_page(comment):
            return self.site.config.blog_name
        if is_foreign(comment.page_url, origins):
            return self.texts["elsewhere"]
        return name_of_page(comment.page_title, comment.page_url, origins, 60)

    def page_path(self, comment: Comment, most: int = 120) -> str:
        """The path of a page as people read it; of a page elsewhere its URL, with a note. There is
        a space between them: mail programs would take the note for a part of the URL."""
        origins = self.site.config.site_origins
        path = readable_page(comment.page_url, origins, most)
        if is_foreign(comment.page_url, origins):
            note = self.texts["foreign"].strip()
            return f"{path} {note}"
        return path

    def may_name_page(self, comment: Comment) -> bool:
        """Whether an email may call a page by its name. Anybody can comment on a page that is not
        there, so that its name says something to a reader, such as a URL."""
        if self.is_owner:
            return True
        origins = self.site.config.site_origins
        path = readable_page(comment.page_url, origins, 2000)
        is_plain = not re.search(r"\s|:", path) and "://" not in comment.page_title
        return is_plain and not is_foreign(comment.page_url, origins)

    def quote(self, comment: Comment, among: int = 1, *, has_website: bool = False) -> Quote:
        """What a comment says, as one of several in an email."""
        return quote_of(
            comment,
            most=2000,
            most_bytes=min(8000, 16_000 // among),
            has_website=has_website,
            read_on=self.link_to_read(comment, "read_on"),
        )

    def why_held(self, comment: Comment) -> str:
        """Why a comment waits, in words."""
        reason, _, value = comment.held.partition(": ")
        if reason in HELD_TEXTS:
            return self.texts[HELD_TEXTS[reason]].format(value=value)
        return comment.held

    # Emails

    def email(self, subject: str, sections: Sequence[Section], **how: Any) -> Email:
        """An email to this recipient. `how`: what else `composed_email` takes."""
        return composed_email(self.site.config, self.to, self.language, subject, sections, **how)

    def comments_email(
        self,
        subject: str,
        comments: Sequence[FullComment],
        sections: Sequence[Section],
        *,
        preview: str = "",
        footer: Section = (),
        unsubscribe: str = "",
    ) -> Email:
        """An email about comments. `sections` show the first ones. `unsubscribe` is the link that
        ends such emails."""
        first = comments[0]
        # These headers name a message that is never sent, so that mail programs keep the emails
        # about a thread together (RFC 5322, section 3.6.4).
        thread_id = first.thread_id or first.id
        secret = short_hash(self.site.key, "thread", self.to, thread_id)
        root = f"<{secret}@{self.site.config.sender.domain}>"
        headers = {"In-Reply-To": root, "References": root}
        if unsubscribe:  # a button of the mail program (RFC 8058)
            headers["List-Unsubscribe"] = f"<{unsubscribe}>"
            headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        return self.email(
            subject,
            sections,
            preview=preview,
            more=len(comments) - len(sections),
            footer=footer,
            headers=headers,
        )


def code_email(site: Site, to: str, language: str, code: str, warning: str) -> Email:
    """The email with a code. It holds nothing that a stranger typed. `warning` names the text that
    says what the code does, or is ""."""
    reader = Recipient(site, to, language or UNKNOWN_LANGUAGE)
    enter = reader.text("code_enter")
    pieces: list[EmailPiece] = [
        Paragraph(reader.text("code_text")),
        ShownCode(code),
        Paragraph(enter),
    ]
    if warning:
        pieces.append(Paragraph(reader.text(warning)))
    subject = reader.text("code_subject", code=code)
    footer = [Paragraph(reader.text("code_end"))]
    return reader.email(subject, [pieces], preview=one_line(enter), footer=footer)


def changed_email(site: Site, account: Account) -> Email:
    """The email to the holder of an account whose password was changed."""
    holder = Recipient(site, account.email, account.language or UNKNOWN_LANGUAGE)
    text = Paragraph(holder.text("changed_text"))
    return holder.email(holder.text("changed_subject"), [[text]])


def joined_email(site: Site, account: Account) -> Email:
    """The email to the holder of an account that an identity provider opens from now on."""
    holder = Recipient(site, account.email, account.language or UNKNOWN_LANGUAGE)
    text = Paragraph(holder.text("joined_text"))
    return holder.email(holder.text("joined_subject"), [[text]])


def owner_as_recipient(site: Site, to: str, comment: Comment) -> Recipient:
    """The owner gets emails and webhooks in the language that is set, else in their own; in that of
    the comment if no admin has one yet."""
    language = site.config.notify_language
    if language == "account":
        language = usual_language(site, to) or comment.language
    return Recipient(site, to, language, is_owner=True)


def usual_language(site: Site, to: str) -> str:
    """The language of the account with that email address; that of the first admin for a chat, an
    email address without an account, and an account whose language is unknown. "" if no admin has
    one."""
    account = site.store.account_with_email(to)
    for each in (account, *site.store.admins()):
        if each and each.language:
            return each.language
    return ""


# Notifications


News = dict[int, FullComment]  # by the id of the notification


@dataclass(frozen=True)
class Audience:
    """Those who get emails about a comment for one reason. `name` is that in notifications.
    `recipients`: their email addresses, found when the comment is new. `is_for`: whether one of
    them still gets an email about the comment when it is due. `write_to` adds emails about all
    comments that are due to one. `until`: what came later waits."""

    name: str
    recipients: Callable[[Site, FullComment], list[str]]
    is_for: Callable[[Site, str, FullComment], bool]
    write_to: Callable[[Site, str, News], None]
    until: Callable[[Site], int] = Site.now


def add_email(
    site: Site, notification_ids: Collection[int], email: Email, *uses: Use, subscriber: str = ""
) -> None:
    """Adds an email to the outbox, which carries some notifications. They wait if it would be one
    use too many of a rate limit. `subscriber`: whom it asks whether they want emails."""
    store = site.store
    now = site.now()
    if not take_uses(site, *uses):
        store.postpone(notification_ids, now + seconds_to_wait(site, *uses))
        return
    message_id = store.add_email(now, email, subscriber=subscriber)
    store.carry(notification_ids, message_id)


def email_use(site: Site, limit: str, to: str, purpose: object) -> Use:
    """One use of a rate limit for emails to an email address, which counts for each purpose."""
    return Use(limit, f"{purpose} {subscriber_of(site.key, to)}")


def has_written(email: str, comment: FullComment) -> bool:
    """Whether the account with that email address wrote the comment."""
    return comment.user_id is not None and comment.email == email


# Notifications to owners


def owner_recipients(site: Site, comment: Comment) -> list[str]:
    """The email addresses that get notifications about all comments on a page."""
    config = site.config
    key = page_name(comment.page_url, config.site_origins).key
    for page_rule in config.notify_pages:
        pattern = glob.escape(page_name(page_rule.pattern, config.site_origins).key)
        # The only wildcard is `*`. For several, `re` alone would try each way to split the key. A
        # page may be written with or without the last slash.
        if fnmatch.filter([key, f"{key}/"], pattern.replace("[*]", "*")):
            return [*page_rule.recipients]
    if config.notify_owner:
        return [*config.notify_owner]
    return [admin.email for admin in site.store.admins()]


def is_for_owner(site: Site, to: str, comment: FullComment) -> bool:
    return to in owner_recipients(site, comment) and not has_written(to, comment)


# What the owner is told, and when, depends on the clock alone: not on what was sent, or on what is
# stored. So a restart, a change of the settings or of the clock loses no news and doubles none.


def quiet_hours_now(site: Site) -> QuietHours | None:
    """The quiet hours, if it is one of them."""
    quiet = site.config.notify_quiet
    local = time_of(site.now(), site.config.site_timezone)
    return quiet if quiet and quiet.hold(60 * local.hour + local.minute) else None


def owners_news_until(site: Site) -> int:
    """What came after the time of the last digest waits for the next one, if the owner wants
    digests. In quiet hours, all waits."""
    config = site.config
    if quiet_hours_now(site):
        return 0
    if config.notify_digest:
        return last_moment_at(config.notify_digest.minute, site.now(), config.site_timezone) - 1
    return site.now()


def write_to_owner(site: Site, to: str, news: News) -> None:
    """One email about all that is new. The digest is at most one a day by itself."""
    if site.config.notify_digest:
        all_news = news | older_waiting(site, to, news)
        add_email(site, all_news, digest_email(site, to, [*all_news.values()]))
        return
    comments = [*news.values()]
    owner = owner_as_recipient(site, to, comments[0])
    reports = {comment.id: site.store.reports(comment.id) for comment in comments}
    shown = comments[:MOST_QUOTED]
    sections = [owner_section(owner, comment, reports[comment.id], len(shown)) for comment in shown]
    if any(reports.values()):
        subject = owner.subject("comment_reported", "owner_reported_many_subject", comments)
    else:
        subject = owner.subject("comment_new", "owner_many_subject", comments)
    email = owner.comments_email(
        subject, comments, sections, preview=preview_of(comments), footer=owner_footer(owner)
    )
    add_email(site, news, email, email_use(site, "notification", to, "owner"))


def preview_of(comments: Sequence[Comment]) -> str:
    """What lists of emails show behind the subject: what the first comment says."""
    in_lines = re.sub("<(br|/p|/li|/pre)>", " ", comments[0].html)
    return one_line(html.unescape(re.sub("<[^>]*>", "", in_lines)))


def owner_footer(owner: Recipient) -> Section:
    public_url = owner.site.config.server_public_url
    if not public_url:
        return ()
    return [Links([LabelledLink(owner.texts["more"], f"{public_url}/admin")])]


def older_waiting(site: Site, to: str, news: News) -> News:
    """Comments that an earlier email told of, and that nobody has decided on."""
    told = {comment.id for comment in news.values()}
    waiting = [
        comment
        for comment in site.store.longest_waiting(MOST_QUOTED)
        if comment.id not in told and is_for_owner(site, to, comment)
    ]
    return {site.store.remind_owner(to, comment.id, site.now()): comment for comment in waiting}


def digest_email(site: Site, to: str, comments: list[FullComment]) -> Email:
    """The email about a day: first what waits for a decision, then what is published."""
    reports = {comment.id: site.store.reports(comment.id) for comment in comments}
    undecided = [each for each in comments if each.status == "waiting" or reports[each.id]]
    published = [each for each in comments if each not in undecided]
    in_order = undecided + published
    owner = owner_as_recipient(site, to, in_order[0])
    shown = in_order[:MOST_QUOTED]
    sections = [owner_section(owner, each, reports[each.id], len(shown)) for each in shown]
    if undecided:
        title = Title(owner.text("digest_waiting", n=len(undecided)))
        sections[0] = [title, *sections[0]]
    if published and len(undecided) < len(shown):
        title = Title(owner.text("digest_published", n=len(published)))
        sections[len(undecided)] = [title, *sections[len(undecided)]]
    return owner.comments_email(
        owner.text("digest_subject", n=len(in_order)),
        in_order,
        sections,
        preview=preview_of(in_order),
        footer=owner_footer(owner),
    )


def owner_section(
    owner: Recipient, comment: FullComment, reports: list[Report], among: int
) -> Section:
    """A comment as its owner reads it: what is new about it, and links that decide on it."""
    pieces: list[EmailPiece] = [
        *owner.opening("comment_reported" if reports else "comment_new", comment),
        owner.quote(comment, among, has_website=True),
    ]
    if reports:
        pieces.append(Paragraph(owner.text("reports", n=len(reports))))
        pieces.append(quote_of_text(reasons_given(owner, reports)))
    elif comment.status == "waiting":
        pieces.append(Paragraph(owner.text("comment_waits", held=owner.why_held(comment))))
    return [*pieces, *owner_buttons(owner, comment, is_reported=bool(reports))]


def owner_buttons(owner: Recipient, comment: FullComment, *, is_reported: bool) -> Section:
    """The actions that are offered for a comment, and a link to it. One of these is primary."""
    urls = owner.action_links(comment, owner.site.now(), is_reported=is_reported)
    actions = [
        LabelledLink(owner.action_label(name, comment), url, style_of_button(name))
        for name, url in urls.items()
    ]
    read = owner.link_to_read(comment)
    if read is None:
        return [Buttons(actions)] if actions else []
    if any(each.style == "primary" for each in actions):
        return [Buttons(actions), Links([read])]
    return [Buttons([read, *actions])]


def style_of_button(action: str) -> str:
    if action in ("visible", "mine", "confirm"):
        return "primary"
    return "danger" if action in ("spam", "deleted", "not_mine") else "quiet"


def reasons_given(owner: Recipient, reports: list[Report]) -> str:
    """The first reasons that readers gave, each once."""
    no_reason = owner.texts["report_none"]
    reasons = [shortened(one_line(report.reason) or no_reason, 200) for report in reports]
    each_once = [*dict.fromkeys(reasons)]
    return "\n".join(each_once[:5])


# Notifications to the author of what is replied to


def author_recipients(site: Site, comment: Comment) -> list[str]:
    """The email address of the author who is replied to. "" if they gave none."""
    return site.store.author_above(comment)


def is_for_author(site: Site, to: str, reply: FullComment) -> bool:
    """Whether an author may get an email about a reply, or a question whether they want to."""
    parent = site.store.comment(reply.parent_id)
    if parent is None or parent.status != "visible" or parent.email != to:
        return False
    is_own = has_written(to, reply) if parent.user_id else reply.email == to
    if is_own or to in owner_recipients(site, parent):
        return False
    # Somebody may have ended these emails, on that page or on all.
    consents = site.store.subscriptions(subscriber_of(site.key, to))
    return "no" not in (consents.get(0), consents.get(parent.page_id))


def gets_reply_email(site: Site, to: str, reply: FullComment) -> bool:
    """Whether an author gets an email about a reply, and not only a question."""
    if not is_for_author(site, to, reply):
        return False
    return comment_above(site, reply).user_id is not None or has_confirmed(site, to)


def comment_above(site: Site, reply: Comment) -> FullComment:
    """The comment that is replied to. `LookupError` if it is gone."""
    return site.store.existing_comment(cast(int, reply.parent_id))


def has_confirmed(site: Site, to: str) -> bool:
    """Whether a guest has said yes to emails about replies."""
    return site.store.subscriptions(subscriber_of(site.key, to)).get(0) == "yes"


def write_to_author(site: Site, to: str, news: News) -> None:
    """An email about the replies on each page. A guest is asked first: the email address may be
    another person's."""
    consent = site.store.subscriptions(subscriber_of(site.key, to)).get(0, "")
    news_by_page: dict[int, News] = defaultdict(dict)
    unasked: News = {}  # replies to a guest who has not confirmed the email address
    for notification_id, reply in news.items():
        if comment_above(site, reply).user_id or consent == "yes":
            news_by_page[reply.page_id][notification_id] = reply
        else:
            unasked[notification_id] = reply
    for page_id, page_news in news_by_page.items():
        add_email(
            site,
            page_news,
            author_email(site, to, [*page_news.values()]),
            email_use(site, "notification", to, page_id),
            email_use(site, "reply_email", to, "author"),
        )
    if unasked:
        ask_guest(site, to, unasked, consent)


def author_email(site: Site, to: str, replies: list[FullComment]) -> Email:
    """Replies on one page, to the author of what they reply to, who can end such emails."""
    parent = comment_above(site, replies[0])
    # An imported comment has no language.
    author = Recipient(site, to, parent.language or usual_language(site, to))
    shown = replies[:MOST_QUOTED]
    sections = [author_section(author, reply, len(shown)) for reply in shown]
    footer: list[EmailPiece] = []
    stop = author.end_link("stop", "start", comment_id=parent.id)
    if stop:
        stop_all = author.end_link("stop_all", "start_all", comment_id=parent.id)
        ends = {"end_page": stop, "end_all": stop_all}
        links = [LabelledLink(author.texts[name], url) for name, url in ends.items()]
        footer.append(Links(links))
    return author.comments_email(
        author.subject("reply_new", "author_many_subject", replies),
        replies,
        sections,
        preview=preview_of(replies),
        footer=footer,
        unsubscribe=stop,
    )


def author_section(author: Recipient, reply: FullComment, among: int) -> Section:
    """A reply, above what it replies to."""
    own = quote_of(comment_above(author.site, reply), most=300, most_bytes=900, is_small=True)
    pieces: list[EmailPiece] = [
        *author.opening("reply_new", reply),
        author.quote(reply, among),
        Paragraph(author.text("reply_own"), is_small=True),
        own,
    ]
    read = author.link_to_read(reply)
    if read:
        pieces.append(Buttons([read]))
    return pieces


def ask_guest(site: Site, to: str, unasked: News, consent: str) -> None:
    """An email that asks a guest, once, whether they want emails about replies to their comments.
    Nothing in it was typed by a stranger. They are limited in all, since a comment may name a
    stranger's email address. Without an email, the notifications are dropped."""
    store = site.store
    may_ask = site.config.server_public_url and not consent
    if not may_ask or not take_uses(site, Use("all_questions")):
        store.drop_notifications(unasked)
        return
    first, *_ = unasked.values()
    parent = comment_above(site, first)
    guest = Recipient(site, to, parent.language or usual_language(site, to))
    confirm = guest.short_link(
        ShortLink(action="confirm", comment_id=parent.id, expires_at=site.now() + LINK_LIFE)
    )
    pieces = [
        Paragraph(guest.text("ask_text")),
        Paragraph(guest.text("ask_question")),
        Buttons([LabelledLink(guest.texts["button_confirm"], confirm, "primary")]),
    ]
    footer = [Paragraph(guest.text("ask_end"))]
    email = guest.email(guest.text("ask_subject"), [pieces], footer=footer)
    subscriber = subscriber_of(site.key, to)
    store.subscribe(subscriber, 0, "asked")
    add_email(site, unasked, email, subscriber=subscriber)


# Questions to the holder of the email address that a guest gave


@rule
def question_faults(config: Config) -> Iterator[str]:
    if config.moderation_hold == "email" and not config.server_public_url:
        yield "[moderation] hold = email sends links, so set [server] public_url"


# A guest who types the email address of an account is not that account: their comment has no tick,
# and the holder is asked. The guest must not learn that there is an account. So what anybody else
# can see never depends on that: neither the response, nor its time, nor whether the comment is
# shown. If a blog that shows guests' comments at once let just this one wait, it would be in no
# list, and nobody could like it. That would tell the guest all, and would keep nobody from writing
# the same without the email address, which readers do not see. An owner who wants such comments to
# wait sets `hold = email`: then those with any other email address wait too.


def holder_recipients(site: Site, comment: FullComment) -> list[str]:
    """The email address that a guest gave, if it has an account or the comment waits for it."""
    has_account = site.store.account_with_email(comment.email) is not None
    return [comment.email] if has_account or comment.held == "email" else []


def is_for_holder(site: Site, to: str, comment: FullComment) -> bool:
    """Whether the holder of an email address may be asked about a guest's comment."""
    if comment.user_id is not None or comment.email != to or not site.config.server_public_url:
        return False
    if to in owner_recipients(site, comment):  # who decides on it anyway
        return False
    if is_blocked_email(site, to):
        return False
    return site.store.wants_questions(subscriber_of(site.key, to))


def write_to_holder(site: Site, to: str, news: News) -> None:
    """One email a day, with links to say of each comment whether the holder wrote it. What one
    email cannot hold waits for the next."""
    asked = dict([*news.items()][:MOST_ASKED])
    comments = [*asked.values()]
    account = site.store.account_with_email(to)
    language = account.language if account else ""
    holder = Recipient(site, to, language or comments[0].language)
    uses = [email_use(site, "question", to, "holder")]
    if account is None:  # they are limited in all
        uses.append(Use("all_questions"))
    sections = [
        holder_section(holder, comment, len(comments), is_known=account is not None)
        for comment in comments
    ]
    stop = holder.end_link("no_questions", "questions")
    footer = [
        Paragraph(holder.text("holder_end")),
        Links([LabelledLink(holder.texts["holder_stop"], stop)]),
    ]
    email = holder.comments_email(
        holder.text("holder_subject"), comments, sections, footer=footer, unsubscribe=stop
    )
    add_email(site, asked, email, *uses)


def holder_section(
    holder: Recipient, comment: FullComment, among: int, *, is_known: bool
) -> Section:
    """A comment, with links to say whether the holder wrote it. Whom nobody knows here gets
    nothing that a stranger typed."""
    pieces: list[EmailPiece] = [Paragraph(holder.text("holder_blank_text"))]
    if is_known:
        pieces = [*holder.opening("holder_text", comment), holder.quote(comment, among)]
    answers = [
        LabelledLink(
            holder.texts[f"button_{name}"],
            answer_link(holder, name, comment),
            style_of_button(name),
        )
        for name in ("mine", "not_mine")
    ]
    return [*pieces, Paragraph(holder.text("holder_question")), Buttons(answers)]


def answer_link(holder: Recipient, action: str, comment: FullComment) -> str:
    """A link with which a holder says whether they wrote a comment, while its text stays."""
    return holder.short_link(
        ShortLink(
            action=action,
            undo="mine",  # a no by mistake
            comment_id=comment.id,
            version=comment.version,
            expires_at=holder.site.now() + LINK_LIFE,
        )
    )


# Notifications to readers who follow a page


def follower_recipients(site: Site, comment: Comment) -> list[str]:
    return site.store.followers(comment.page_id)


def is_for_follower(site: Site, to: str, comment: FullComment) -> bool:
    """Whether a reader follows the page, did not write the comment, and gets no other email about
    it."""
    follows = comment.page_id in site.store.follow_languages(to)
    if not follows or has_written(to, comment) or to in owner_recipients(site, comment):
        return False
    return not gets_reply_email(site, to, comment)


def unfollow_link(follower: Recipient, reader: Account, page_id: int, comment_id: int) -> str:
    """The link that ends emails about a page; about all pages if `page_id` is 0. `comment_id` is
    one that the emails were about, or 0."""
    return follower.end_link(
        "unfollow", "follow", comment_id=comment_id, page_id=page_id, user_id=reader.id
    )


def followed_sections(
    follower: Recipient, reader: Account, comments: list[FullComment], among: int
) -> list[list[EmailPiece]]:
    """What is new on one page, with a link that ends such emails below."""
    sections: list[list[EmailPiece]] = []
    for comment in comments:
        pieces: list[EmailPiece] = [
            *follower.opening("comment_new", comment),
            follower.quote(comment, among),
        ]
        read = follower.link_to_read(comment)
        if read:
            pieces.append(Buttons([read]))
        sections.append(pieces)
    last = comments[-1]
    stop = unfollow_link(follower, reader, last.page_id, last.id)
    sections[-1].append(Paragraph(follower.text("follow_why"), is_small=True))
    if stop:
        sections[-1].append(Links([LabelledLink(follower.texts["end_page"], stop)]))
    return sections


def write_to_follower(site: Site, to: str, news: News) -> None:
    """One email about what is new on the pages that a reader follows, page by page, in the language
    of the first page."""
    comments = sorted(news.values(), key=lambda comment: comment.page_id)
    first = comments[0]
    follower = Recipient(site, to, site.store.follow_languages(to)[first.page_id])
    # `is_for_follower` has found it.
    reader = cast(Account, site.store.account_with_email(to))
    sections: list[Section] = []
    shown = comments[:MOST_QUOTED]
    for _, on_page in itertools.groupby(shown, key=lambda comment: comment.page_id):
        sections += followed_sections(follower, reader, [*on_page], len(shown))
    is_one_page = comments[-1].page_id == first.page_id
    if is_one_page:
        subject = follower.subject("comment_new", "follow_many_subject", comments)
        stop = unfollow_link(follower, reader, first.page_id, first.id)
    else:
        subject = follower.text("follow_pages_subject", n=len(comments))
        # One click ends all that this email is about, and more.
        stop = unfollow_link(follower, reader, 0, 0)
    email = follower.comments_email(
        subject, comments, sections, preview=preview_of(comments), unsubscribe=stop
    )
    add_email(site, news, email, email_use(site, "notification", to, "follower"))


# Audiences

# A new audience has an entry here, a migration that rebuilds `notification` for its name and, if
# its emails quote the comment above, a case in `Store.withdraw`. The first ones get their emails
# first. A reader gets one email about a comment, so `is_for` of the last audience knows the others.
# A guest's address gets none before it is confirmed (`ask_guest`).
AUDIENCES = (
    Audience("owner", owner_recipients, is_for_owner, write_to_owner, owners_news_until),
    Audience("author", author_recipients, is_for_author, write_to_author),
    Audience("holder", holder_recipients, is_for_holder, write_to_holder),
    Audience("follower", follower_recipients, is_for_follower, write_to_follower),
)


# -- Mailers ------------------------------------------------------------------

# What sends emails: a mail server, a provider by HTTPS, or the terminal.


class NotSent(Exception):
    """Why a message was not taken: briefly for the log and the outbox, and as `check` explains it.
    `is_final`: no further try can help. `rest`: the seconds in which its chat takes no other
    either, 0 if it does not say how many; None if this message alone was refused."""

    def __init__(
        self, reason: str, explained: str = "", *, is_final: bool = False, rest: int | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.explained = explained or reason
        self.is_final = is_final
        self.rest = rest


class Mailer(abc.ABC):
    """What sends the emails of a site. Each provider is a class of its own in `MAILERS`."""

    delivers = True  # to mailboxes; otherwise emails are only shown on this machine

    def __init__(self, config: Config, world: World) -> None:
        self.config = config
        self.world = world

    @staticmethod
    def faults(config: Config) -> Iterator[str]:
        """What is wrong with its settings."""
        yield from ()

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """Where emails go, for `check` and the log."""

    @property
    def readiness(self) -> str:
        """What `check` says of it where `log_in` does not fail."""
        return f"{self.name} is reachable"

    @abc.abstractmethod
    def send(self, email: Email, message_id: str) -> None:
        """Hands an email over. `NotSent` if it is not taken. `message_id` is the same in each try,
        without angle brackets."""

    @abc.abstractmethod
    def log_in(self) -> None:
        """Tries what sending needs, and sends nothing. `NotSent` if that fails."""

    def hint_for(self, reason: str) -> str:
        """What the reason of a `NotSent` probably means, and what the owner can do. "" if that is
        not known."""
        return ""


def reason_of(error: Exception) -> str:
    """What failed at the network or on this machine, without anything that was sent."""
    detail = getattr(error, "strerror", None) or ""
    return f"{type(error).__name__} {detail}".strip()


def post(world: World, url: str, content: bytes, headers: Mapping[str, str]) -> bytes:
    """Sends a webhook, or an email to a provider, and returns the response. `NotSent` unless its
    status is one of success."""
    try:
        status, response = world.fetch(url, content, headers)
    except (OSError, ValueError) as error:
        raise NotSent(reason_of(error)) from error
    if not 200 <= status < 300:
        raise NotSent(f"Refused {status}")
    return response


# Mail servers


def rfc5322_message(config: Config, email: Email, message_id: str, sent_at: float) -> str:
    """An email as a mail server takes it (RFC 5322). Only its parts may hold line breaks."""
    sender = config.sender
    message = EmailMessage(policy=SMTP_POLICY)
    # These headers are written by hand. Python makes encoded words of long ones, where they are
    # not allowed (RFC 2047, section 5), and drops the quotes of a long name unless it encodes it.
    by_hand = {"Message-ID": f"<{message_id}@{sender.domain}>", **email.headers}
    if sender.display_name.isascii():
        by_hand["From"] = str(sender)
    else:
        message["From"] = sender
    message["To"] = email.recipient
    message["Subject"] = email.subject
    message["Date"] = datetime.fromtimestamp(sent_at, UTC)
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: suppresses out-of-office replies
    # In short lines of ASCII, for any mail server. Programs show the last part that they can show.
    message.set_content(email.text, cte="base64")
    message.add_alternative(email.html, subtype="html", cte="base64")
    message.set_boundary(f"part-{message_id}")  # base64 has no hyphen
    head = "".join(f"{name}: {value}\r\n" for name, value in by_hand.items())
    return head + message.as_bytes().decode("ascii")


def smtp_reply(error: Exception) -> tuple[int, str]:
    """The code and the text of a mail server's reply; (0, "") for an error that holds none."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        [(code, reply)] = error.recipients.values()
        return code, reply_text(reply)
    if isinstance(error, smtplib.SMTPResponseException):
        text = error.smtp_error
        return error.smtp_code, text if isinstance(text, str) else reply_text(text)
    return 0, ""


def reply_text(reply: bytes) -> str:
    """UTF-8, or else GBK: mail servers in China say in it what they need."""
    with contextlib.suppress(UnicodeDecodeError):
        return reply.decode()
    return reply.decode("gb18030", errors="replace")


def without_secrets(said: str, to: str, user: str, password: str) -> str:
    """What a mail server said, without email addresses and passwords: servers repeat what they
    were sent."""
    if password:
        sent = (f"\0{user}\0{password}", password)
        in_base64 = [base64.b64encode(text.encode()).decode() for text in sent]
        for secret in (*in_base64, password):
            said = said.replace(secret, "…")
    said = re.sub("[!-~]*(@|%40)[!-~]+", "…", said)
    local_part = to.partition("@")[0]
    for name in (local_part, local_part.partition("+")[0]):  # `ann+blog`, and the mailbox `ann`
        if name:
            said = re.sub(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", "…", said)
    return terminal_line(said)


# Where a server refuses a recipient or an email, but its sentence blames who sends: a login is
# missing, the domain does not allow this server, too much was sent, and the like (RFC 3463, X.7,
# X.1.7 to 8 and X.4.5; 163 has codes such as `DT:SPM`).
BLAMES_SENDER = re.compile(
    r"""(?xi)
    \b 5\. ( 7\.\d | 1\.[78] \b | 4\.5 \b ) | relay | authent | sender | spf | dkim | dmarc
    | verif | frequency | sending .* (limit|quota) | \b (DT|HL|MI|RP): [A-Z]
    """
)


def is_refused_for_good(error: Exception) -> bool:
    """Whether a mail server refused this recipient or this email for good (RFC 5321, section
    4.2.1). What it says before that is about the settings, which the owner can correct meanwhile:
    at the connection, the login and the sender."""
    if not isinstance(error, smtplib.SMTPRecipientsRefused | smtplib.SMTPDataError):
        return False
    code, said = smtp_reply(error)
    return code >= 500 and not BLAMES_SENDER.search(said)


# A pattern finds the reason of a failure: a status and what the server said, or the name of an
# error. The first one counts.
NOT_REACHED = "^(TimeoutError|ConnectionRefused|OSError .*(unreachable|no route))"
SMTP_HINTS = {
    # The connection.
    "^gaierror": "there is no such host: correct [mail] host",
    NOT_REACHED: (
        "nothing responds there: many hosts block SMTP. `commentd check` tries the other ports, "
        "and [mail] provider sends emails by HTTPS"
    ),
    "WRONG_VERSION": "the server does not speak TLS at that port: try [mail] security = starttls",
    "unexpectedly closed: timed out": "the server may want [mail] security = tls",
    "STARTTLS extension": (
        "the server may want [mail] security = tls, or none on the same machine"
    ),
    "CERTIFICATE_VERIFY": (
        "the server's certificate is for another name: write that name into [mail] host"
    ),
    # The login. What Microsoft, Google, QQ Mail and NetEase (163, 126) say first.
    r"^535 .*(5\.7\.139|basic auth)": (
        "Outlook takes no password from programs: send by another provider (`commentd help mail`)"
    ),
    "^53[45] .*(gsmtp|google|application-specific)": (
        "Gmail wants an app password in [mail] password: "
        "https://myaccount.google.com/apppasswords makes one"
    ),
    r"^535 .*(authorization code|授权码|mail\.qq\.com)": (
        "write the authorization code (授权码) that the settings of the mailbox show into "
        "[mail] password, not the password of the mailbox"
    ),
    "^550 .*user has no permission": (
        "switch on SMTP in the settings of the mailbox, and write the authorization code (授权码) "
        "that they show into [mail] password"
    ),
    # The sender.
    r"authori[sz](ed|ation) user|DT:SUM|5\.7\.60|SendAsDenied|not owned by": (
        "this mailbox may send as itself only: write its own email address into [mail] sender"
    ),
    "^554 .*(DT|HL|MI|RP):[A-Z]": (
        "163 takes the email for spam, most often since [mail] sender is not the mailbox that "
        "logs in"
    ),
    r"5\.7\.26|\b(spf|dkim|dmarc)\b": (
        "the domain of [mail] sender must name this server: set the SPF and DKIM records that the "
        "mail provider asks for"
    ),
    r"^(?!.*recipient)\d+ .*verif": (
        "the provider does not know the sender: have it verify the domain, or the email address, "
        "in [mail] sender"
    ),
    # Limits.
    r"5\.2\.2|mailbox .*full|over ?quota": "the mailbox is full",
    r"^421|^45\d .*4\.7|too many|\brate\b|frequency|quota|limit": (
        "the provider limits how many emails leave; they are tried again"
    ),
    # All others.
    "relay": "the server sends for those alone who log in: set [mail] user and password",
    "^53[0458]|authenti|no suitable|AUTH extension": (
        "correct [mail] user and password; many providers want a code there that they make for "
        "programs, not the password of the mailbox"
    ),
    r"5\.1\.1\b|unknown|no such|not exist|not found": "there is no such mailbox",
}


def smtp_hint(reason: str) -> str:
    for sign, hint in SMTP_HINTS.items():
        if re.search(sign, reason, re.IGNORECASE):
            return hint
    return ""


class SmtpMailer(Mailer):
    """A mail server, by SMTP."""

    @staticmethod
    def faults(config: Config) -> Iterator[str]:
        if not (config.mail_sender or MAILBOX.fullmatch(config.mail_user)):
            yield "[mail] host is set, so set [mail] sender too: the address emails come from"
        host, port = host_and_port(config.mail_host)
        if port and config.mail_port not in (0, port):
            yield "[mail] host and [mail] port name different ports"
        if config.mail_user and config.mail_security == "none" and not is_loopback(host):
            yield "[mail] security = none would send [mail] password in clear: use starttls"

    @property
    def server(self) -> MailServer:
        config = self.config
        usual_port = {"starttls": 587, "tls": 465, "none": 25}[config.mail_security]
        host, port = host_and_port(config.mail_host)
        return MailServer(
            host=host,
            port=config.mail_port or port or usual_port,
            security=config.mail_security,
            user=config.mail_user,
            password=config.mail_password,
            sender=config.sender.addr_spec,
        )

    @property
    def name(self) -> str:
        return f"{self.server.host}:{self.server.port}"

    @property
    def readiness(self) -> str:
        if self.config.mail_user:
            return f"{self.name} login ok"
        return f"{self.name} is reachable"

    def send(self, email: Email, message_id: str) -> None:
        message = rfc5322_message(self.config, email, message_id, self.world.clock())
        try:
            self.world.send_email(email.recipient, message, self.server)
        except (OSError, ValueError) as error:
            raise self.not_sent(error, email.recipient) from error

    def log_in(self) -> None:
        try:
            self.world.try_login(self.server)
        except (OSError, ValueError) as error:
            raise self.not_sent(error, to="") from error

    def hint_for(self, reason: str) -> str:
        return smtp_hint(reason)

    def not_sent(self, error: Exception, to: str) -> NotSent:
        """What went wrong, in the words of the mail server if it refused."""
        name = type(error).__name__
        code, said = smtp_reply(error)
        if code:
            said = without_secrets(said, to, self.config.mail_user, self.config.mail_password)
            reason, explained = f"{code} {said}", f"{said} ({code})"
        else:
            reason, explained = short_reason(error), f"{terminal_line(str(error))} ({name})"
        return NotSent(reason, explained, is_final=is_refused_for_good(error))


def short_reason(error: Exception) -> str:
    """What went wrong before the mail server said anything."""
    name = type(error).__name__
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return f"{name} {error} See [mail] security and user."
    if isinstance(error, smtplib.SMTPException):
        return f"{name} {error}"  # this text is smtplib's own
    return reason_of(error)


class TerminalMailer(Mailer):
    """No mail server: what it would get is printed, so that the first code can be read there."""

    delivers = False

    @property
    def name(self) -> str:
        return "terminal"

    def send(self, email: Email, message_id: str) -> None:
        message = rfc5322_message(self.config, email, message_id, self.world.clock())
        try:
            self.world.send_email(email.recipient, message, None)
        except (OSError, ValueError) as error:
            raise NotSent(reason_of(error)) from error

    def log_in(self) -> None:
        """There is nothing to try."""


# Providers that take emails by HTTPS


API_HINTS = {
    "^(TimeoutError|ConnectionRefused|OSError|gaierror)": (
        "nothing responds at the provider: correct [mail] api_url, if it is set"
    ),
    "^402|credit|pending|suspend": "the account at the provider has no credit, or is not active",
    "verif|sender signature|sender .*not valid|not allowed to send": (
        "the provider does not know the sender: have it verify the domain, or the email address, "
        "in [mail] sender"
    ),
    "^429|quota|limit": "the provider limits how many emails leave; they are tried again",
    "^404": "the provider does not know the domain of [mail] sender, or [mail] api_url is wrong",
    "^(401|403)": "the provider does not take the key: correct [mail] api_key",
    "inactive|suppress": (
        "the provider sends nothing there since an earlier email came back; it can be allowed "
        "again there"
    ),
    "address": "there is no such mailbox",
}


def api_hint(reason: str) -> str:
    for sign, hint in API_HINTS.items():
        if re.search(sign, reason, re.IGNORECASE):
            return hint
    return ""


class ApiMailer(Mailer):
    """A provider that takes emails by HTTPS. Each is a class of its own, which says what the
    provider wants to be sent."""

    provider = ""
    usual_url = ""

    @classmethod
    def faults(cls, config: Config) -> Iterator[str]:
        named = f"[mail] provider = {cls.provider}"
        if not config.mail_api_key:
            yield f"{named} needs [mail] api_key"
        if not config.mail_sender:
            yield f"{named} needs [mail] sender: the address emails come from"
        if not (config.mail_api_url or cls.usual_url):
            yield f"{named} needs [mail] api_url"
        if config.mail_api_url.startswith("http:"):
            host = urllib.parse.urlsplit(config.mail_api_url).hostname or ""
            if not is_loopback(host):
                yield "[mail] api_url must begin with https: it is sent the key"

    @property
    def url(self) -> str:
        return (self.config.mail_api_url or self.usual_url).rstrip("/")

    @property
    def name(self) -> str:
        return f"{self.provider} ({urllib.parse.urlsplit(self.url).netloc})"

    @property
    def readiness(self) -> str:
        return f"{self.name} takes the key"

    @property
    def path(self) -> str:
        return ""

    @abc.abstractmethod
    def body(self, email: Email, message_id: str) -> bytes:
        """What the provider is sent."""

    def headers(self, body: bytes) -> dict[str, str]:
        """What shows the provider who sends it."""
        return {"authorization": f"Bearer {self.config.mail_api_key}"}

    def send(self, email: Email, message_id: str) -> None:
        status, response = self.call(self.body(email, message_id), message_id)
        if not 200 <= status < 300:
            raise self.not_sent(status, response, email.recipient)

    def log_in(self) -> None:
        """Sends nothing that could be an email: the provider looks at the key first, and then says
        what is missing."""
        status, response = self.call(b"")
        if status in (401, 403) or status >= 500:
            raise self.not_sent(status, response, "")

    def call(self, body: bytes, message_id: str = "") -> tuple[int, bytes]:
        headers = self.headers(body)
        if message_id:  # for Resend: an email that is sent again goes out once
            headers["idempotency-key"] = message_id
        try:
            return self.world.fetch(self.url + self.path, body, headers)
        except (OSError, ValueError) as error:
            raise NotSent(reason_of(error)) from error

    def hint_for(self, reason: str) -> str:
        return api_hint(reason)

    def not_sent(self, status: int, response: bytes, to: str) -> NotSent:
        said = without_secrets(
            sentence_of(response), to, self.config.mail_user, self.config.mail_api_key
        )
        # What is wrong with the account, the sender or the limits, the owner can correct meanwhile.
        blames_recipient = status in (400, 413, 422) and not BLAMES_ACCOUNT.search(said)
        explained = f"{said} ({status})"
        return NotSent(f"{status} {said}".strip(), explained, is_final=blames_recipient)


# Where a provider's sentence is about what the owner has set up there, not about one email.
BLAMES_ACCOUNT = re.compile(
    r"""(?xi)
    sender | from | domain | verif | signature | \bkey\b | token | account | credit | quota | limit
    | plan | pending | paused | suspend | authent | authoriz | permission | allowed
    """
)


def sentence_of(response: bytes) -> str:
    """What a provider says of an email that it refuses, in the words of its JSON or as a text."""
    text = response.decode("utf-8", "replace")
    try:
        said = strict_json(response)
    except ValueError:
        return terminal_line(text)
    errors = said.get("errors")  # SendGrid
    if isinstance(errors, list) and errors and isinstance(errors[0], dict):
        said = errors[0]
    return terminal_line(str(said.get("message") or said.get("Message") or text))


def json_bytes(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


class ResendMailer(ApiMailer):
    """https://resend.com/docs/api-reference/emails/send-email"""

    provider = "resend"
    usual_url = "https://api.resend.com"
    path = "/emails"

    def body(self, email: Email, message_id: str) -> bytes:
        return json_bytes(
            {
                "from": str(self.config.sender),
                "to": [email.recipient],
                "subject": email.subject,
                "text": email.text,
                "html": email.html,
                "headers": sent_headers(email),
            }
        )


class PostmarkMailer(ApiMailer):
    """https://postmarkapp.com/developer/api/email-api"""

    provider = "postmark"
    usual_url = "https://api.postmarkapp.com"
    path = "/email"

    def headers(self, body: bytes) -> dict[str, str]:
        return {"x-postmark-server-token": self.config.mail_api_key}

    def body(self, email: Email, message_id: str) -> bytes:
        own_id = {"Message-ID": f"<{message_id}@{self.config.sender.domain}>"}
        headers = {**sent_headers(email), **own_id, "X-PM-KeepID": "true"}
        return json_bytes(
            {
                "From": str(self.config.sender),
                "To": email.recipient,
                "Subject": email.subject,
                "TextBody": email.text,
                "HtmlBody": email.html,
                "Headers": [{"Name": name, "Value": value} for name, value in headers.items()],
                "MessageStream": "outbound",
            }
        )


class BrevoMailer(ApiMailer):
    """https://developers.brevo.com/reference/sendtransacemail"""

    provider = "brevo"
    usual_url = "https://api.brevo.com"
    path = "/v3/smtp/email"

    def headers(self, body: bytes) -> dict[str, str]:
        return {"api-key": self.config.mail_api_key}

    def body(self, email: Email, message_id: str) -> bytes:
        sender = self.config.sender
        return json_bytes(
            {
                "sender": {"name": sender.display_name, "email": sender.addr_spec},
                "to": [{"email": email.recipient}],
                "subject": email.subject,
                "textContent": email.text,
                "htmlContent": email.html,
                "headers": sent_headers(email),
            }
        )


class MailgunMailer(ApiMailer):
    """https://documentation.mailgun.com/docs/mailgun/api-reference/send/mailgun/messages"""

    provider = "mailgun"
    usual_url = "https://api.mailgun.net"

    @property
    def path(self) -> str:
        return f"/v3/{self.config.sender.domain}/messages"

    def headers(self, body: bytes) -> dict[str, str]:
        credentials = base64.b64encode(f"api:{self.config.mail_api_key}".encode()).decode()
        return {
            "authorization": f"Basic {credentials}",
            "content-type": "application/x-www-form-urlencoded",
        }

    def body(self, email: Email, message_id: str) -> bytes:
        own_id = {"Message-Id": f"<{message_id}@{self.config.sender.domain}>"}
        headers = {**sent_headers(email), **own_id}
        form = {
            "from": str(self.config.sender),
            "to": email.recipient,
            "subject": email.subject,
            "text": email.text,
            "html": email.html,
            **{f"h:{name}": value for name, value in headers.items()},
        }
        return urllib.parse.urlencode(form).encode()


class SendGridMailer(ApiMailer):
    """https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send"""

    provider = "sendgrid"
    usual_url = "https://api.sendgrid.com"
    path = "/v3/mail/send"

    def body(self, email: Email, message_id: str) -> bytes:
        sender = self.config.sender
        return json_bytes(
            {
                "personalizations": [{"to": [{"email": email.recipient}]}],
                "from": {"email": sender.addr_spec, "name": sender.display_name},
                "subject": email.subject,
                "content": [
                    {"type": "text/plain", "value": email.text},
                    {"type": "text/html", "value": email.html},
                ],
                "headers": sent_headers(email),
            }
        )


class SesMailer(ApiMailer):
    """https://docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html"""

    provider = "ses"
    path = "/v2/email/outbound-emails"

    @classmethod
    def faults(cls, config: Config) -> Iterator[str]:
        yield from super().faults(config)
        if not config.mail_user:
            yield "[mail] provider = ses needs [mail] user: the access key ID"

    def body(self, email: Email, message_id: str) -> bytes:
        message = rfc5322_message(self.config, email, message_id, self.world.clock())
        return json_bytes(
            {
                "FromEmailAddress": str(self.config.sender),
                "Destination": {"ToAddresses": [email.recipient]},
                "Content": {"Raw": {"Data": base64.b64encode(message.encode()).decode()}},
            }
        )

    def headers(self, body: bytes) -> dict[str, str]:
        host = urllib.parse.urlsplit(self.url).netloc
        region = re.search(r"^email\.([a-z0-9-]+)\.", host)
        return aws_headers(
            access_key=self.config.mail_user,
            secret_key=self.config.mail_api_key,
            service="ses",
            region=region[1] if region else "us-east-1",
            host=host,
            path=self.path,
            body=body,
            at=datetime.fromtimestamp(self.world.clock(), UTC),
        )


def aws_headers(
    *,
    access_key: str,
    secret_key: str,
    service: str,
    region: str,
    host: str,
    path: str,
    body: bytes,
    at: datetime,
) -> dict[str, str]:
    """The headers that sign a POST for AWS (Signature Version 4,
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html)."""
    time_text = at.strftime("%Y%m%dT%H%M%SZ")
    day = time_text[:8]
    content_hash = hashlib.sha256(body).hexdigest()
    signed = {"host": host, "x-amz-date": time_text}
    canonical = "\n".join(
        [
            "POST",
            path,
            "",  # no query
            *(f"{name}:{value}" for name, value in signed.items()),
            "",
            ";".join(signed),
            content_hash,
        ]
    )
    scope = f"{day}/{region}/{service}/aws4_request"
    to_sign = f"AWS4-HMAC-SHA256\n{time_text}\n{scope}\n{sha256_of(canonical)}"
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, to_sign.encode(), "sha256").hexdigest()
    return {
        "x-amz-date": time_text,
        "authorization": f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, "
        f"SignedHeaders={';'.join(signed)}, Signature={signature}",
    }


class WebhookMailer(ApiMailer):
    """A program of the owner's own, which sends the email."""

    provider = "webhook"

    @property
    def readiness(self) -> str:
        return f"{self.name} is set up"

    def body(self, email: Email, message_id: str) -> bytes:
        return json_bytes(
            {
                "id": message_id,
                "from": str(self.config.sender),
                "to": email.recipient,
                "subject": email.subject,
                "text": email.text,
                "html": email.html,
                "headers": sent_headers(email),
            }
        )

    def log_in(self) -> None:
        """There is nothing to try: the program may not expect less than an email."""


def sent_headers(email: Email) -> dict[str, str]:
    """The headers that an email has besides those which a provider writes."""
    return {**email.headers, "Auto-Submitted": "auto-generated"}


# By the names that `[mail] provider` has for them.
MAILERS: dict[str, type[Mailer]] = {
    "smtp": SmtpMailer,
    "resend": ResendMailer,
    "postmark": PostmarkMailer,
    "brevo": BrevoMailer,
    "mailgun": MailgunMailer,
    "sendgrid": SendGridMailer,
    "ses": SesMailer,
    "webhook": WebhookMailer,
}


def mailer_type(config: Config) -> type[Mailer]:
    if config.mail_provider == "smtp" and not config.mail_host:
        return TerminalMailer
    return MAILERS[config.mail_provider]


@rule
def mail_faults(config: Config) -> Iterator[str]:
    if config.mail_provider not in MAILERS:
        yield f"[mail] provider must be one of: {', '.join(MAILERS)}"
        return
    if config.mail_provider == "smtp" and config.mail_user and not config.mail_password:
        yield "[mail] user is set, so set [mail] password too"
    yield from mailer_type(config).faults(config)


# -- Chats --------------------------------------------------------------------

# What takes messages about comments by HTTP: chats, push services, and the owner's own program.


@dataclass(frozen=True)
class ChatButton:
    """A link below a message. `action` is its name in `ACTIONS`, or `page` for the comment on its
    page. `url` is "" where readers cannot reach the service."""

    action: str
    label: str
    url: str


@dataclass(frozen=True)
class ChatMessage:
    """What a chat is told. It holds neither a full IP address nor an email address. `id` is the
    same at each try. `event` is created, reported, or test for a message about no comment.
    `report_reason` says why a reader reported the comment, "" if none did. `link` opens it, "" if
    nothing does. `text` begins with its author."""

    id: str
    created_at: int
    event: str
    title: str
    text: str
    comment: FullComment | None = None
    report_reason: str = ""
    author: str = ""
    page: str = ""
    link: str = ""
    buttons: Sequence[ChatButton] = ()

    @property
    def links(self) -> list[ChatButton]:
        """The buttons that open something."""
        return [button for button in self.buttons if button.url]

    @property
    def action_links(self) -> dict[str, str]:
        return {button.action: button.url for button in self.links if button.action != "page"}


def chat_message(
    owner: Recipient, message_id: str, event: str, at: int, comment: FullComment, reason: str = ""
) -> ChatMessage:
    """The message about a comment, made at that time. It is the same at each try unless the comment
    has changed. `reason`: why a reader reported it. It is made in the caller's transaction, since
    its links are kept."""
    is_report = event == "reported"
    links = owner.action_links(comment, at, is_reported=is_report)
    buttons = [
        ChatButton(name, owner.action_label(name, comment), links.get(name, ""))
        for name, action in ACTIONS.items()
        if action.is_offered(comment, is_reported=is_report)
    ]
    link = owner.link_to(comment)
    if 0 < len(link) < 500:  # a longer one would take the room of the text
        buttons.append(ChatButton("page", owner.texts["page"], link))
    heading = author_and_page(owner, comment)
    title_name = "chat_new"
    if is_report:
        given = reason or owner.texts["report_none"]
        heading += "\n" + owner.text("hook_reported", reason=given)
        title_name = "chat_reported"
    elif comment.status == "waiting":
        heading += "\n" + owner.text("hook_waiting", held=owner.why_held(comment))
    return ChatMessage(
        id=message_id,
        created_at=at,
        event=event,
        title=owner.text(title_name, page=owner.page_in_subject(comment)),
        # Slack takes 3000 characters. Discord takes 4096, escapes and links included.
        text=f"{heading}\n\n{shortened(comment.content, 1000)}",
        comment=comment,
        report_reason=reason,
        author=name_of(owner.texts, comment),
        page=owner.page_in_subject(comment),
        link=link,
        buttons=buttons,
    )


def author_and_page(owner: Recipient, comment: FullComment) -> str:
    """The first line of a message about a comment. Where the title of the message names the page by
    its title, which may say anything, the path stands here."""
    author = name_of(owner.texts, comment)
    return f"{author} · {owner.page_path(comment)}" if comment.page_title else author


def test_message(now: int, message_id: str) -> ChatMessage:
    """What `check` sends. Nobody has said yet in which language."""
    text = "Messages about new comments arrive here.\n有新评论时，消息会发到这里。"
    return ChatMessage(f"msg_{now}_{message_id}", now, "test", "commentd: test", text)


# Texts of strangers, as no chat takes them for markup


def with_backslashes(text: str) -> str:
    """Markdown that shows a text as it is: each mark is escaped, so that no text is a link, a
    mention or an emphasis."""
    return re.sub(r"([\\*_~`|<>\[\]()#@:-])", r"\\\1", text)


def without_mentions(text: str) -> str:
    """A text with a joiner, which nobody sees, after each `@`: where a server looks for names, it
    finds none."""
    return text.replace("@", "@\u2060")


def with_entities(text: str) -> str:
    """Markdown that shows a text as it is, where it becomes HTML: a character reference is never
    markup (spec.commonmark.org, section 2.5). Each line is a paragraph."""
    written = re.sub(r"[!-/:-@\[-`{-~]", lambda found: f"&#{ord(found[0])};", text)
    lines = [line.strip() for line in written.split("\n")]
    return "\n\n".join(line for line in lines if line)


# DingTalk's Markdown has no documented escapes. What else could be markup there only lays out.
WIDE_MARKS = str.maketrans({mark: chr(ord(mark) + 0xFEE0) for mark in "\\`*~[]<>#"})


def with_wide_marks(text: str) -> str:
    """A text with full-width twins of what could be markup, where nothing escapes it. Two spaces
    before a line break keep it."""
    return text.translate(WIDE_MARKS).replace("\n", "  \n")


def markdown_links(buttons: Iterable[ChatButton], between: str = " · ") -> str:
    """Links in Markdown. A bracket would end their URL."""
    escapes = str.maketrans({"(": "%28", ")": "%29"})
    return between.join(f"[{each.label}]({each.url.translate(escapes)})" for each in buttons)


def plain_links(buttons: Iterable[ChatButton]) -> str:
    """Links where only URLs are links."""
    return "\n".join(f"{each.label}: {each.url}" for each in buttons)


def first_bytes(text: str, most: int) -> str:
    """The beginning of a text, with an ellipsis if not all of it fits into so many bytes."""
    if len(text.encode()) <= most:
        return text
    cut = text.encode()[: most - len(" …".encode())].decode(errors="ignore")
    return f"{cut.rstrip()} …"


# What all of them have in common


class Chat(abc.ABC):
    """What takes messages by HTTP. Each service is a class of its own in `CHATS`, whose docstring
    names the documentation that it follows."""

    needs: ClassVar[Strings] = ("url",)  # what the settings must have
    usual_url = ""
    most_a_minute = 0  # messages that the service takes, 0 if it does not say
    # The names of a number and of a sentence in its responses, and what the number is where the
    # message was taken. "" if the status says all.
    number_name = ""
    good_number: object = 0
    sentence_name = ""
    # Seconds in which it takes nothing more after a refusal with that number.
    rests: ClassVar[Mapping[int, int]] = {}

    def __init__(self, settings: ChatSettings, config: Config, world: World) -> None:
        self.settings = settings
        self.config = config
        self.world = world

    @classmethod
    def faults(cls, settings: ChatSettings) -> Iterator[str]:
        """What is wrong with its settings."""
        for key in cls.needs:
            if not getattr(settings, key):
                yield f"{settings.section} kind = {settings.kind} needs {key}"

    @property
    def url(self) -> str:
        return (self.settings.url or self.usual_url).rstrip("/")

    @abc.abstractmethod
    def body(self, message: ChatMessage) -> Json:
        """What the service is sent."""

    def headers(self, message: ChatMessage, body: bytes) -> dict[str, str]:
        """What is sent beside the usual headers."""
        return {}

    def request(self, message: ChatMessage) -> HttpRequest:
        body = json_bytes(self.body(message))
        return HttpRequest("POST", self.url, self.headers(message, body), body)

    def title(self, message: ChatMessage) -> str:
        """The title, with the word that a robot wants in each message."""
        keyword = self.settings.keyword
        if keyword in message.title:
            return message.title
        return f"{keyword} {message.title}"

    def send(self, message: ChatMessage) -> Json:
        """One try. Returns what the service says. `NotSent` unless it took the message."""
        return self.ask(self.request(message))

    def ask(
        self, request: HttpRequest, silence: int = FETCH_SECONDS, most: int = RESPONSE_LIMIT
    ) -> Json:
        try:
            response = self.world.exchange(request, most=most, silence=silence)
        except (OSError, ValueError) as error:
            raise NotSent(reason_of(error), rest=0) from error
        said = json_or_empty(response.body)
        if not 200 <= response.status < 300 or self.refuses(response, said):
            raise self.not_sent(response, said)
        return said

    def refuses(self, response: HttpResponse, said: Json) -> bool:
        """Whether a response with a status of success refuses the message."""
        return bool(self.number_name) and said.get(self.number_name) != self.good_number

    def not_sent(self, response: HttpResponse, said: Json) -> NotSent:
        number = said.get(self.number_name, "")
        if isinstance(number, bool) or number == response.status:
            number = ""
        sentence = terminal_line(self.without_keys(self.sentence(response, said)))
        reason = " ".join(f"Refused {response.status} {number} {sentence}".split())
        return NotSent(reason, rest=self.rest_after(response, said))

    def sentence(self, response: HttpResponse, said: Json) -> str:
        """Why the service refuses, in its words."""
        return str(said.get(self.sentence_name, ""))

    def without_keys(self, sentence: str) -> str:
        """What a service says, without what the settings hide: some repeat what they were sent."""
        settings = self.settings
        hidden = re.findall("[^/?&=: ]{8,}", f"{settings.url} {settings.token} {settings.headers}")
        for secret in (settings.secret, settings.token, *hidden):
            if secret:
                sentence = sentence.replace(secret, "…")
        return sentence

    def rest_after(self, response: HttpResponse, said: Json) -> int | None:
        """The `rest` after a refusal."""
        asked = min(response.retry_after or self.seconds_asked(said), DAY)
        if response.status == 429:
            return asked or MINUTE
        if response.status >= 500:
            return asked
        number = said.get(self.number_name)
        return self.rests.get(number) if isinstance(number, int) else None

    def seconds_asked(self, said: Json) -> int:
        """How long the service asks to wait, in its own words. 0 if it does not say."""
        return 0


def inside(value: Any, *names: str) -> Any:
    """What stands at the end of this path of names. None if there is no such path."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def seconds_in(value: Any) -> int:
    """A number of seconds that a service writes. 0 for anything else."""
    return math.ceil(value) if isinstance(value, int | float) else 0


def json_or_empty(body: bytes) -> Json:
    try:
        return strict_json(body)
    except ValueError:
        return {}


# The owner's own program


class OwnProgram(Chat):
    """A program of the owner's: no chat, but it is told in the same way. Its messages are signed as
    github.com/standard-webhooks/standard-webhooks has it."""

    def body(self, message: ChatMessage) -> Json:
        """The body as the manual documents it."""
        comment = message.comment
        if comment is None:
            return webhook_body("test", message.created_at)
        data = {
            "id": comment.id,
            "page_url": comment.page_url,
            "page_title": comment.page_title,
            "parent_id": comment.parent_id,
            "nickname": comment.nickname,
            "website": comment.website,
            "content": comment.content,
            "html": comment.html,
            "country": comment.country,
            "location": comment.location,
            "status": comment.status,
            "held": comment.held,
            "user_id": comment.user_id,
            "language": comment.language,
            "ip": masked(comment.ip),
            "created_at": rfc3339(comment.created_at),
            "reason": message.report_reason,
            "link": message.link,
            "links": message.action_links,
        }
        return webhook_body(f"comment.{message.event}", message.created_at) | {"data": data}

    def headers(self, message: ChatMessage, body: bytes) -> dict[str, str]:
        return signed_headers(self.settings.secret, message.id, self.world.now(), body)


def webhook_body(event: str, created_at: int) -> Json:
    return {"type": event, "timestamp": rfc3339(created_at)}


def webhook_signature(key: bytes, message: bytes) -> str:
    digest = hmac.digest(key, message, "sha256")
    return base64.b64encode(digest).decode()


def signed_headers(secret: str, message_id: str, now: int, body: bytes) -> dict[str, str]:
    """The headers of Standard Webhooks. The id is the same in each try, the time is not."""
    headers = {"webhook-id": message_id, "webhook-timestamp": str(now)}
    key = webhook_key(secret)
    if key:
        signed = f"{message_id}.{now}.".encode() + body
        headers["webhook-signature"] = f"v1,{webhook_signature(key, signed)}"
    return headers


# Chats of teams


class Slack(Chat):
    """docs.slack.dev/messaging/sending-messages-using-incoming-webhooks"""

    most_a_minute = 60

    def body(self, message: ChatMessage) -> Json:
        plain = {"type": "plain_text", "text": f"{message.title}\n{message.text}"}
        blocks: list[Json] = [{"type": "section", "text": plain}]
        links = [f"<{html.escape(each.url, quote=False)}|{each.label}>" for each in message.links]
        if links:
            markup = {"type": "mrkdwn", "text": " · ".join(links)}
            blocks.append({"type": "section", "text": markup})
        return {"text": html.escape(message.title, quote=False), "blocks": blocks}

    def sentence(self, response: HttpResponse, said: Json) -> str:
        """Slack says one word, such as `no_service`, as plain text."""
        text = response.body.decode("utf-8", "replace")
        return text if re.fullmatch("[a-z_]{1,60}", text) else ""


class Discord(Chat):
    """docs.discord.com/developers/resources/webhook, and docs.discord.com/developers/topics/
    rate-limits, which says to heed the 429. A stranger's text cannot mention anybody."""

    sentence_name = "message"

    def body(self, message: ChatMessage) -> Json:
        last_line = markdown_links(message.links)
        most = (4094 - len(last_line)) // 2  # each character may become two
        text = with_backslashes(message.text[:most])
        embed = {"title": message.title[:256], "description": f"{text}\n\n{last_line}"}
        return {"embeds": [embed], "allowed_mentions": {"parse": []}}

    def seconds_asked(self, said: Json) -> int:
        return seconds_in(said.get("retry_after"))


class Mattermost(Chat):
    """developers.mattermost.com/integrate/webhooks/incoming. It takes Slack's messages, but not
    their blocks."""

    sentence_name = "message"

    def body(self, message: ChatMessage) -> Json:
        text = without_mentions(with_backslashes(f"{message.title}\n{message.text}"))
        return {"text": f"{text}\n\n{markdown_links(message.links)}".rstrip()}


class RocketChat(Mattermost):
    """docs.rocket.chat/docs/integrations: an incoming webhook."""

    number_name = "success"
    good_number = True
    sentence_name = "error"


class Matrix(Chat):
    """spec.matrix.org/latest/client-server-api/#put_matrixclientv3roomsroomidsendeventtypetxnid.
    The id of the message is that of the transaction: a try that is made again shows nothing anew.
    """

    needs = ("url", "token", "to")
    number_name = "errcode"
    good_number = None
    sentence_name = "error"

    def body(self, message: ChatMessage) -> Json:
        links = [f"{each.label}: {each.url}" for each in message.links]
        plain = "\n".join([message.title, "", message.text, "", *links]).rstrip()
        anchors = [
            f'<a href="{html.escape(each.url)}">{html.escape(each.label)}</a>'
            for each in message.links
        ]
        text = html.escape(message.text).replace("\n", "<br>")
        markup = f"<p><strong>{html.escape(message.title)}</strong></p><p>{text}</p>"
        if anchors:
            markup += f"<p>{' · '.join(anchors)}</p>"
        return {
            "msgtype": "m.text",
            "body": plain,
            "format": "org.matrix.custom.html",
            "formatted_body": markup,
            "m.mentions": {},
        }

    def headers(self, message: ChatMessage, body: bytes) -> dict[str, str]:
        return {"authorization": f"Bearer {self.settings.token}"}

    def request(self, message: ChatMessage) -> HttpRequest:
        room = urllib.parse.quote(self.settings.to, safe="")
        path = f"/_matrix/client/v3/rooms/{room}/send/m.room.message/{message.id}"
        body = json_bytes(self.body(message))
        return HttpRequest("PUT", self.url + path, self.headers(message, body), body)

    def seconds_asked(self, said: Json) -> int:
        return math.ceil(seconds_in(said.get("retry_after_ms")) / 1000)


# Chats of teams in China


class Feishu(Chat):
    """open.feishu.cn/document/client-docs/bot-v3/add-custom-bot: a post."""

    most_a_minute = 100
    number_name = "code"
    sentence_name = "msg"
    rests: ClassVar[Mapping[int, int]] = {11232: MINUTE}

    def body(self, message: ChatMessage) -> Json:
        lines: list[list[Json]] = [[{"tag": "text", "text": message.text}]]
        links = [{"tag": "a", "text": f"{each.label} ", "href": each.url} for each in message.links]
        if links:
            lines.append(links)
        translations = {"zh_cn": {"title": self.title(message), "content": lines}}
        body: Json = {"msg_type": "post", "content": {"post": translations}}
        secret = self.settings.secret
        if secret:
            now = str(self.world.now())
            # The signature of nothing, with time and secret as the key.
            signature = webhook_signature(f"{now}\n{secret}".encode(), b"")
            body |= {"timestamp": now, "sign": signature}
        return body


class Lark(Feishu):
    """open.larksuite.com/document/client-docs/bot-v3/add-custom-bot: Feishu outside of China."""


class WeCom(Chat):
    """developer.work.weixin.qq.com/document/path/91770. Plain text, which phones show in WeChat,
    too: it takes 2048 bytes."""

    most_a_minute = 20
    number_name = "errcode"
    sentence_name = "errmsg"
    rests: ClassVar[Mapping[int, int]] = {45009: MINUTE}

    def body(self, message: ChatMessage) -> Json:
        links = plain_links(message.links)
        room = 2048 - len(links.encode()) - 2
        text = first_bytes(f"{message.title}\n\n{message.text}", room)
        return {"msgtype": "text", "text": {"content": f"{text}\n\n{links}".rstrip()}}


class DingTalk(Chat):
    """open.dingtalk.com/document/robots/custom-robot-access: a card with buttons."""

    most_a_minute = 20
    number_name = "errcode"
    sentence_name = "errmsg"
    rests: ClassVar[Mapping[int, int]] = {130101: 10 * MINUTE}

    def body(self, message: ChatMessage) -> Json:
        title = self.title(message)
        if not message.links:  # a card needs a button
            return {"msgtype": "text", "text": {"content": f"{title}\n\n{message.text}"}}
        heading = with_wide_marks(title)
        card = {
            "title": title,
            "text": f"### {heading}\n\n{with_wide_marks(message.text)}",
            "btnOrientation": "0",
            "btns": [{"title": each.label, "actionURL": each.url} for each in message.links],
        }
        return {"msgtype": "actionCard", "actionCard": card}

    @property
    def url(self) -> str:
        """With the signature of the time in milliseconds, if the robot has a key."""
        secret = self.settings.secret
        if not secret:
            return self.settings.url
        now = str(self.world.now() * 1000)
        sign = webhook_signature(secret.encode(), f"{now}\n{secret}".encode())
        query = urllib.parse.urlencode({"timestamp": now, "sign": sign})
        return f"{self.settings.url}&{query}"


# Push services


class Bark(Chat):
    """github.com/Finb/bark-server/blob/master/docs/API_V2.md. A tap opens one URL. Apple takes 4096
    bytes in all."""

    needs = ("token",)
    usual_url = "https://api.day.app"
    number_name = "code"
    good_number = 200
    sentence_name = "message"

    def body(self, message: ChatMessage) -> Json:
        body: Json = {
            "device_key": self.settings.token,
            "title": first_bytes(message.title, 300),
            "body": first_bytes(message.text, 1400),
            "group": self.config.blog_name,
        }
        if message.links:
            body["url"] = message.links[0].url
        return body

    def request(self, message: ChatMessage) -> HttpRequest:
        return replace(super().request(message), url=f"{self.url}/push")


class Ntfy(Chat):
    """docs.ntfy.sh/publish: publishing as JSON, with three buttons that act at once. A message has
    4096 bytes."""

    sentence_name = "error"

    @classmethod
    def faults(cls, settings: ChatSettings) -> Iterator[str]:
        yield from super().faults(settings)
        path = urllib.parse.urlsplit(settings.url).path
        if settings.url and not path.strip("/"):
            yield f"{settings.section} url must end in the topic: https://ntfy.sh/my-topic"

    def body(self, message: ChatMessage) -> Json:
        actions = [
            {
                "action": "http",
                "label": each.label,
                "url": each.url,
                "method": "POST",
                "clear": True,
            }
            for each in message.links
            if each.action != "page"
        ]
        body: Json = {
            "topic": self.url.rpartition("/")[2],
            "title": message.title,
            "message": first_bytes(message.text, 4000),
            "actions": actions[:3],
        }
        if message.link:
            body["click"] = message.link
        return body

    def headers(self, message: ChatMessage, body: bytes) -> dict[str, str]:
        token = self.settings.token
        return {"authorization": f"Bearer {token}"} if token else {}

    def request(self, message: ChatMessage) -> HttpRequest:
        return replace(super().request(message), url=self.url.rpartition("/")[0])


class Gotify(Chat):
    """gotify.net/docs/pushmsg and gotify.net/docs/msgextras. Plain text, as advised there for texts
    of others."""

    needs = ("url", "token")
    sentence_name = "errorDescription"

    def body(self, message: ChatMessage) -> Json:
        extras: Json = {"client::display": {"contentType": "text/plain"}}
        if message.links:
            extras["client::notification"] = {"click": {"url": message.links[0].url}}
        text = f"{message.text}\n\n{plain_links(message.links)}".rstrip()
        return {"title": message.title, "message": text, "priority": 5, "extras": extras}

    def headers(self, message: ChatMessage, body: bytes) -> dict[str, str]:
        return {"x-gotify-key": self.settings.token}

    def request(self, message: ChatMessage) -> HttpRequest:
        return replace(super().request(message), url=f"{self.url}/message")


class PushPlus(Chat):
    """www.pushplus.plus/doc and its table of codes: HTML, in WeChat. 900 means that the day's
    messages are used up."""

    needs = ("token",)
    usual_url = "https://www.pushplus.plus/send"
    number_name = "code"
    good_number = 200
    sentence_name = "msg"
    rests: ClassVar[Mapping[int, int]] = {900: 6 * HOUR}

    def body(self, message: ChatMessage) -> Json:
        text = html.escape(message.text).replace("\n", "<br>")
        links = [
            f'<p><a href="{html.escape(each.url)}">{html.escape(each.label)}</a></p>'
            for each in message.links
        ]
        body: Json = {
            "token": self.settings.token,
            "title": shortened(message.title, 98),
            "content": f"<p>{text}</p>{''.join(links)}",
            "template": "html",
        }
        if self.settings.to:
            body["topic"] = self.settings.to
        return body


class ServerChan(Chat):
    """sct.ftqq.com for a key that begins with SCT; doc.sc3.ft07.com for one that begins with sctp.
    Markdown, and a title of 32 characters."""

    needs = ("token",)
    number_name = "code"
    sentence_name = "message"

    @property
    def url(self) -> str:
        key = self.settings.token
        if self.settings.url:
            return self.settings.url
        if found := re.match("sctp([0-9]+)t", key):
            return f"https://{found[1]}.push.ft07.com/send/{key}.send"
        return f"https://sctapi.ftqq.com/{key}.send"

    def body(self, message: ChatMessage) -> Json:
        heading = with_entities(message.title)
        text = with_entities(message.text)
        links = markdown_links(message.links, between="\n\n")
        return {
            "title": shortened(message.title, 30),
            "desp": f"{heading}\n\n{text}\n\n{links}".rstrip(),
            "short": shortened(" ".join(message.text.split()), 62),
        }


# Telegram


class Telegram(Chat):
    """core.telegram.org/bots/api. Plain text, so that nothing in it is markup."""

    needs = ("token", "to")
    usual_url = "https://api.telegram.org"
    most_a_minute = 20  # in a group: core.telegram.org/bots/faq#broadcasting-to-users
    number_name = "error_code"
    good_number = None
    sentence_name = "description"

    @classmethod
    def faults(cls, settings: ChatSettings) -> Iterator[str]:
        acts = settings.interactive != "no"
        if "/sendMessage" in settings.url and not acts:
            if not telegram_chat_id(settings.url):
                yield f"{settings.section} kind = telegram needs a url that ends in ?chat_id=NUMBER"
        elif settings.name:
            yield from super().faults(settings)
        else:
            yield "[webhook] kind = telegram needs a url that ends in /sendMessage?chat_id=NUMBER"
        if acts and not re.fullmatch("-?[0-9]+", settings.to):
            yield f"{settings.section} interactive needs the number of the chat in to"
        if acts and settings.to.startswith("-") and not settings.users:
            yield f"{settings.section} interactive needs users: who of the group may act"

    @property
    def acts(self) -> bool:
        """Whether buttons act without opening a page."""
        return self.settings.interactive != "no"

    def request(self, message: ChatMessage) -> HttpRequest:
        url = self.settings.url
        if "/sendMessage" not in url:
            url = self.url_of("sendMessage")
        return HttpRequest("POST", url, {}, json_bytes(self.body(message)))

    def url_of(self, method: str) -> str:
        return f"{self.url}/bot{self.settings.token}/{method}"

    def call(
        self,
        method: str,
        parameters: Json,
        silence: int = FETCH_SECONDS,
        most: int = RESPONSE_LIMIT,
    ) -> Any:
        """The result of a method of the Bot API. `NotSent` if it is refused."""
        request = HttpRequest("POST", self.url_of(method), {}, json_bytes(parameters))
        return self.ask(request, silence, most).get("result")

    def body(self, message: ChatMessage) -> Json:
        # Telegram refuses the whole message for one button URL that it does not like, such as a
        # host without a dot (github.com/rubenlagus/TelegramBots/issues/302). So only our own links
        # are buttons. In the text, any URL is fine.
        public_url = self.config.server_public_url
        host = urllib.parse.urlsplit(public_url).netloc
        lines = [f"{message.title}\n\n{message.text}"]
        keyboard = []
        for each in message.buttons:
            if self.acts and each.action != "page":
                keyboard.append([{"text": each.label, "callback_data": each.action}])
            elif "." in host and each.url.startswith(f"{public_url}/"):
                keyboard.append([{"text": each.label, "url": each.url}])
            elif each.url:
                lines.append(f"\n{each.label}\n{each.url}")
        body: Json = {
            "chat_id": self.settings.to or telegram_chat_id(self.settings.url),
            "text": "\n".join(lines),
            "link_preview_options": {"is_disabled": True},
        }
        if keyboard:
            body["reply_markup"] = {"inline_keyboard": keyboard}
        return body

    def refuses(self, response: HttpResponse, said: Json) -> bool:
        return said.get("ok") is not True

    def seconds_asked(self, said: Json) -> int:
        return seconds_in(inside(said, "parameters", "retry_after"))


def telegram_chat_id(url: str) -> str:
    """The chat that the URL of a message names. "" if it names none."""
    query = urllib.parse.urlsplit(url).query
    return urllib.parse.parse_qs(query).get("chat_id", [""])[0]


# What the owner writes


NAME_IN_BRACES = r"\{(title|text|link|approve|spam|delete|author|page)\}"


class Template(Chat):
    """A service that the owner describes: the URL and the body with names in braces, and what is
    said in their place."""

    @classmethod
    def faults(cls, settings: ChatSettings) -> Iterator[str]:
        yield from super().faults(settings)
        if settings.method != "get" and not settings.body:
            yield f"{settings.section} kind = template needs body, or method = get"
        for line in settings.headers.splitlines():
            if not re.fullmatch("[!#$%&'*+.0-9A-Z^_`a-z|~-]+:[ -~]+", line.strip()):
                yield f"{settings.section} headers: write each as Name: value"
        if "json" in content_type_of(settings):
            sample = re.sub(NAME_IN_BRACES, "x", settings.body)
            try:
                json.loads(sample)
            except ValueError as error:
                yield f"{settings.section} body is no JSON: {error}"

    def values_for(self, message: ChatMessage) -> dict[str, str]:
        """What stands for the names in braces."""
        links = message.action_links
        return {
            "title": message.title,
            "text": message.text,
            "link": message.link,
            "approve": links.get("visible", ""),
            "spam": links.get("spam", ""),
            "delete": links.get("deleted", ""),
            "author": message.author,
            "page": message.page,
        }

    def body(self, message: ChatMessage) -> Json:  # pragma: no cover - `request` writes it
        raise NotImplementedError

    def request(self, message: ChatMessage) -> HttpRequest:
        settings = self.settings
        values = self.values_for(message)
        url = filled(settings.url, values, as_in_url)
        if settings.method == "get":
            return HttpRequest("GET", url, headers_in(settings.headers))
        content_type = content_type_of(settings)
        body = filled(settings.body, values, escape_for(content_type))
        headers = {"content-type": content_type, **headers_in(settings.headers)}
        return HttpRequest(settings.method.upper(), url, headers, body.encode())

    def refuses(self, response: HttpResponse, said: Json) -> bool:
        return self.settings.success not in response.body.decode("utf-8", "replace")


def headers_in(text: str) -> dict[str, str]:
    """Headers, one a line, by their names in small letters."""
    headers = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return headers


def content_type_of(settings: ChatSettings) -> str:
    """What the body of a template is: as its headers say, else as it looks."""
    named = headers_in(settings.headers).get("content-type")
    if named:
        return named
    is_text = re.match(rf"\s*{NAME_IN_BRACES}", settings.body)
    if re.match(r"\s*[{\[]", settings.body) and not is_text:
        return "application/json"
    if re.match("[a-zA-Z_]+=", settings.body):
        return "application/x-www-form-urlencoded"
    return "text/plain; charset=utf-8"


def filled(template: str, values: Mapping[str, str], escape: Callable[[str], str]) -> str:
    """A template with values for the names in braces. What a value says is not looked at again."""
    return re.sub(NAME_IN_BRACES, lambda found: escape(values[found[1]]), template)


def as_in_json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def as_in_url(text: str) -> str:
    return urllib.parse.quote(text, safe="")


def as_it_is(text: str) -> str:
    return text


def escape_for(content_type: str) -> Callable[[str], str]:
    if "json" in content_type:
        return as_in_json
    if "form-urlencoded" in content_type:
        return as_in_url
    return as_it_is


# By the names that `kind` has for them.
CHATS: dict[str, type[Chat]] = {
    "json": OwnProgram,
    "slack": Slack,
    "discord": Discord,
    "telegram": Telegram,
    "feishu": Feishu,
    "lark": Lark,
    "wecom": WeCom,
    "dingtalk": DingTalk,
    "bark": Bark,
    "ntfy": Ntfy,
    "gotify": Gotify,
    "pushplus": PushPlus,
    "serverchan": ServerChan,
    "mattermost": Mattermost,
    "rocketchat": RocketChat,
    "matrix": Matrix,
    "template": Template,
}


@rule
def chat_faults(config: Config) -> Iterator[str]:
    if config.webhook_kind not in CHATS:
        yield f"[webhook] kind must be one of: {', '.join(CHATS)}"
    for settings in config.chats:
        if settings.name and not SECTION_NAME.fullmatch(settings.name):
            rule_of_names = "write a name of small letters and digits, such as [chat.family]"
            yield f"{settings.section}: {rule_of_names}"
        if settings.kind in CHATS:
            yield from CHATS[settings.kind].faults(settings)
        elif settings.name:
            yield f"{settings.section} kind must be one of: {', '.join(CHATS)}"
        if settings.interactive != "no" and settings.kind != "telegram":
            yield f"{settings.section} interactive is for kind = telegram alone"
        if settings.interactive == "webhook" and not config.server_public_url:
            yield f"{settings.section} interactive = webhook needs [server] public_url"
    bots = [settings.token for settings in config.chats if settings.interactive != "no"]
    if len({*bots}) < len(bots):
        yield "each [chat.NAME] that is interactive needs a bot of its own"


def chat_for(settings: ChatSettings, config: Config, world: World) -> Chat:
    return CHATS[settings.kind](settings, config, world)


def chat_of(site: Site, recipient: str) -> Chat | None:
    """The chat that a message is for. None if its section is gone."""
    for settings in site.config.chats:
        if settings.recipient == recipient:
            return chat_for(settings, site.config, site.world)
    return None


# Sending


def tell_chats(site: Site, comment_id: int, event: str, report_id: int | None = None) -> None:
    """Tells the owner's programs and chats of a comment. `event` is created or reported. What they
    are sent is made when it is sent."""
    config = site.config
    now = site.now()
    for settings in config.chats:
        due_at = now
        # A program does not sleep.
        if settings.kind != "json" and (quiet := quiet_hours_now(site)):
            due_at = next_moment_at(quiet.end, now, config.site_timezone)
        site.store.add_webhook(now, due_at, event, settings.recipient, comment_id, report_id)


WEBHOOK = "webhook"  # the recipient of what asks for a rebuild, in place of an email address


def add_rebuild(site: Site) -> None:
    """Has the blog built again in some minutes, if readers could see changes since the last
    time."""
    config = site.config
    if config.webhook_rebuild_url:
        wait = config.webhook_rebuild_minutes * MINUTE
        site.store.add_rebuild(site.now(), wait, WEBHOOK)


def id_for_chats(webhook: Message) -> str:
    return f"msg_{webhook.created_at}_{webhook.id}"


def send_webhook(site: Site, webhook: Message) -> None:
    """One try. `NotSent` unless it was taken. What is about a comment or for a chat that is gone
    ends."""
    if webhook.event == "rebuild":
        ask_for_rebuild(site, webhook)
        return
    chat = chat_of(site, webhook.recipient)
    comment = site.store.comment(webhook.comment_id)
    if chat is None or comment is None:
        return
    reason = site.store.report_reason(webhook) if webhook.event == "reported" else ""
    with site.store.writing():  # its links
        message = chat_message(
            owner_as_recipient(site, webhook.recipient, comment),
            id_for_chats(webhook),
            webhook.event,
            webhook.created_at,
            comment,
            reason,
        )
    said = chat.send(message)
    message_id = inside(said, "result", "message_id")
    if isinstance(chat, Telegram) and chat.acts and isinstance(message_id, int):
        with site.store.writing():
            site.store.keep_chat_message(webhook.recipient, message_id, comment.id, comment.version)


def ask_for_rebuild(site: Site, webhook: Message) -> None:
    config = site.config
    content = json_bytes(webhook_body("comments.changed", webhook.created_at))
    headers: dict[str, str] = {}
    # What builds the blog is another company than a chat, whose token it must not get.
    if config.webhook_kind == "json":
        headers = signed_headers(config.webhook_secret, id_for_chats(webhook), site.now(), content)
    post(site.world, config.webhook_rebuild_url, content, headers)


def try_chat(settings: ChatSettings, config: Config, world: World) -> str:
    """Sends a test message. Returns a sentence that says it was taken. `NotSent` if it was not."""
    chat = chat_for(settings, config, world)
    chat.send(test_message(world.now(), world.random_bytes(16).hex()))
    return f"{settings.section} {settings.kind} has taken a test message: look there"


# -- Outbox -------------------------------------------------------------------


def deliver_due(site: Site) -> None:
    """Writes and sends the emails and webhooks that are due. Codes go first each time."""
    send_due(site)
    for audience in AUDIENCES:
        find_recipients(site, audience)
    for audience in AUDIENCES:
        write_emails(site, audience)


def find_recipients(site: Site, audience: Audience) -> None:
    """Finds the recipients of the notifications for an audience that are due. Codes are sent in
    between."""
    store = site.store
    due = [*store.due_notifications(audience.name, "", site.now()).items()]
    # A commit for each would be most of the work. One for all would keep writers waiting.
    for first in range(0, len(due), 20):
        with store.writing():
            for notification_id, comment_id in due[first : first + 20]:
                comment = store.comment(comment_id)
                recipients = audience.recipients(site, comment) if comment else []
                # `[notify] owner` may say `nobody`, and an author may have given nothing.
                email_addresses = [each for each in recipients if EMAIL.fullmatch(each)]
                store.set_recipients(notification_id, email_addresses)
        send_due(site)


def write_emails(site: Site, audience: Audience) -> None:
    """Adds emails about all that is due to an audience to the outbox, which is sent in between."""
    store = site.store
    while recipients := store.due_recipients(audience.name, audience.until(site)):
        for to in recipients:
            with store.writing():
                write_news(site, audience, to)
        send_due(site)


def write_news(site: Site, audience: Audience, to: str) -> None:
    """Adds emails about the notifications that are due to a recipient. What they get no more is
    dropped."""
    store = site.store
    due = store.due_notifications(audience.name, to, audience.until(site))
    news: News = {}
    for notification_id, comment_id in due.items():
        comment = store.comment(comment_id)
        if comment and audience.is_for(site, to, comment):
            news[notification_id] = comment
    store.drop_notifications(due.keys() - news)
    if news:
        audience.write_to(site, to, news)


# Sending


def send_due(site: Site) -> None:
    while message := site.store.due_message(site.now()):
        send(site, message)


# Seconds from one try to the next one, by the number of those before it; an hour after these.
PAUSES = (5, 15, 45, 135, 405, 1215)


def seconds_until_free(site: Site, message: Message) -> int:
    """How long a message waits for its chat, so that the chat's limits are kept and one that is
    down holds up no other. 0 for an email, and for what has waited for too long."""
    chat = chat_of(site, message.recipient) if message.is_for_chat else None
    now = site.now()
    if chat is None or now >= message.expires_at:
        return 0
    return site.chat_paces[message.recipient].seconds_to_wait(chat.most_a_minute, now)


def send(site: Site, message: Message) -> None:
    """One try. The next try is stored first: if the disk fills up in between, the message is not
    sent in a loop. After a crash it is sent once more, with the same Message-ID."""
    store = site.store
    now = site.now()
    wait = seconds_until_free(site, message)
    if wait:
        with store.writing():
            store.delay_message(message.id, min(now + wait, message.expires_at))
        return
    pause = PAUSES[message.tries] if message.tries < len(PAUSES) else HOUR
    next_try = min(now + pause, message.expires_at)
    with store.writing():
        carried = store.begin_try(message, next_try)
    if carried is None:  # pragma: no cover - a race
        return  # a comment in it was hidden or changed since the message was looked up
    try:
        if now >= message.expires_at:
            raise NotSent(message.failure or "expired", is_final=True)
        if message.event:
            if message.is_for_chat:
                site.chat_paces[message.recipient].sent_at.append(now)
            send_webhook(site, message)
        else:
            secret = short_hash(site.key, "message", message.id, message.created_at)
            site.mailer.send(message.email, message_id=secret)
    except NotSent as failure:
        name = "webhook" if message.event else "email"
        end = "; given up" if failure.is_final else ""
        hint = "" if message.event else site.mailer.hint_for(failure.reason)
        advice = f" (hint: {hint})" if hint else ""
        log.warning("%s %d: %s%s%s", name, message.id, failure.reason, end, advice)
        with store.writing():
            if store.note_failure(message, failure.reason):
                if failure.is_final:
                    store.give_up(message, now)
                elif message.is_for_chat and failure.rest is not None:
                    rest = failure.rest or min(pause, MINUTE)
                    site.chat_paces[message.recipient].rests_until = now + rest
                    store.delay_message(message.id, min(now + rest, message.expires_at))
    else:
        with store.writing():
            store.end_message(message.id, carried)


# -- Web ----------------------------------------------------------------------


BODY_LIMIT = 64 * 1024
CACHEABLE_BYTES = 128 * 1024  # of a response: longer ones would hold up the event loop


# Where handlers run

# | what the handler of a route does            | its pace   | where it runs                     |
# |---------------------------------------------|------------|-----------------------------------|
# | it reads some rows, in a few milliseconds   | `QUICK`    | in the event loop, at once        |
# | it writes some rows, as fast; it waits for  | `WRITING`  | in the event loop, in one         |
# | nothing, and changes nothing else           |            | transaction with other requests   |
# | it reads or computes for longer             | `LONG`     | in a worker thread                |
# | it may wait: for the write lock, a file,    | `WAITING`, | in a worker thread, of those that |
# | the hash of a password, another server      | the usual  | wait most of the time             |
#
# A handler that is quick or writing may find out that this call takes longer. It then calls
# `Request.leave_event_loop`, and a worker thread calls it again from the start. So it must not have
# counted or changed anything before.


class Pace(enum.Enum):
    """How long the handler of a route takes, as the table says."""

    QUICK = enum.auto()
    WRITING = enum.auto()
    LONG = enum.auto()
    WAITING = enum.auto()


class NeedsWorker(BaseException):
    """Ends a call of the app in the event loop: a worker thread makes that call again. It is no
    `Exception`, so that nothing on its way takes it for a fault."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.pace = pace


class NeedsTransaction(BaseException):
    """Ends a call of the app in the event loop, which makes that call again when a transaction of
    this store is open for it."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.store = store


# More than that takes longer than the event loop has for one request.
LONG_LIST = 50  # comments
LONG_TEXT = 2000  # characters of Markdown


def is_in_event_loop(environ: Json) -> bool:
    """Whether the event loop makes this response, so that all others wait for it."""
    return bool(environ.get("commentd.in_event_loop"))


# What handlers are given


@dataclass(frozen=True)
class Response:
    """A response that is neither JSON nor plain text. `body` is bytes, or a file, which is closed
    after it was sent."""

    body: Any
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    gzipped: bytes = b""  # of files, made once


@dataclass
class CacheEntry:
    """What the response cache keeps of a public response. It is made with the request, before the
    handler reads anything. A handler may set `page_keys` and `viewed`. The server sets the rest and
    keeps the entry when it has sent the response."""

    site: Site
    # From before the handler read anything: the time, and the number of the last change.
    last_change: int
    made_at: float
    page_keys: Collection[str] | None = None  # the response depends on these; None for all
    viewed: PageName | None = None  # each request for the response is a view of this page
    response: bytes = b""  # with its headers, as it was sent
    expires_at: float = 0  # when it must not be sent any longer

    @property
    def is_outdated(self) -> bool:
        """Whether something has changed that the response depends on."""
        return self.site.store.changes.came_after(self.last_change, self.page_keys)


def valid_account(store: Store, user_id: int, version: int) -> Account:
    """The account. `Unauthorized` if it is deleted or blocked, or if its tokens were revoked."""
    account = store.account(user_id)
    if account is None or account.version != version or account.blocked:
        raise Unauthorized("登录已失效，请重新登录", Code.TOKEN_INVALID)
    return account


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a handler is given."""

    site: Site
    now: int
    environ: Json
    query: dict[str, list[str]]
    form: Json
    client: Client
    caller: Account | None
    cache_entry: CacheEntry

    @property
    def me(self) -> Account:
        """The caller, where the permission of the route demands one."""
        return cast(Account, self.caller)

    @property
    def subscriber(self) -> str:
        """What stands for the caller's email address in subscriptions."""
        return subscriber_of(self.site.key, self.me.email)

    @property
    def is_admin(self) -> bool:
        return self.caller is not None and self.caller.role == "admin"

    @property
    def is_post(self) -> bool:
        return bool(self.environ["REQUEST_METHOD"] == "POST")

    def depends_only_on(self, *pages: PageName) -> None:
        """The response changes only when one of these pages changes. If a handler does not say
        this, a public response is dropped from the cache when any page changes."""
        self.cache_entry.page_keys = {page.key for page in pages}

    def leave_event_loop(self, pace: Pace) -> None:
        """In the event loop, this ends the call, and a worker thread calls the handler again from
        the start. So nothing may be counted or changed before."""
        if is_in_event_loop(self.environ):
            raise NeedsWorker(pace)

    def limit(self, name: str, *parts: object) -> None:
        """Counts one use of a rate limit by this client. `Problem` if it is used up. With
        `parts`, such as an email address, the limit is for client and parts together."""
        if name in MEMORY_LIMITS:
            if not take_use_in_memory(self.site, self.client, name):
                raise too_many(MINUTE)
        else:
            take_uses_or_refuse(self.site, *self.uses(name, *parts))

    def check_limit(self, name: str) -> None:
        """A `Problem` if this client has used up a rate limit. Nothing is counted."""
        refuse_if_used_up(self.site, *self.uses(name))

    def uses(self, name: str, *parts: object) -> list[Use]:
        """One use of a rate limit for each network of this client."""
        return client_uses(self.site, self.client, name, *parts)

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction. `Unauthorized` if the caller's token was revoked meanwhile."""
        store = self.site.store
        with store.writing():
            if self.caller:
                valid_account(store, self.caller.id, self.caller.version)
            yield


def visitor_of(request: Request) -> str:
    """Who likes or reports: an account or, for a time, a hash of network and browser."""
    if request.caller:
        return account_as_visitor(request.caller.id)
    browser = request.environ.get("HTTP_USER_AGENT", "")
    return short_hash(request.site.key, "visitor", request.client.network, browser[:512])


# What pages of other origins may do, and the headers that say so to browsers

# | paths       | which other origins may use them    | what browsers and proxies keep       |
# |-------------|-------------------------------------|--------------------------------------|
# | /admin…     | none                                | nothing                              |
# | /auth, /me  | the blog's                          | nothing                              |
# | /mail       | all: the link's secret decides      | nothing                              |
# | all others  | the blog's                          | nothing if a token was sent; else    |
# |             |                                     | all, to ask each time if it is valid |
#
# The handlers of files let them be kept for a time without asking (`cached_for`). The path /mail is
# in the open area like all others: its routes are `by_link`, so that no origin counts, and
# `html_page` says that nothing is kept.


@dataclass(frozen=True)
class Area:
    """The paths that begin alike. What it says also holds where no route is: for preflights, and
    for refusals of a path or a method."""

    own_pages_only: bool  # no page of another origin may use these paths
    is_private: bool  # responses are about one person, so nothing keeps them


OPEN_AREA = Area(own_pages_only=False, is_private=False)
PERSONAL_AREA = Area(own_pages_only=False, is_private=True)
ADMIN_AREA = Area(own_pages_only=True, is_private=True)

# By the first word of a path. All other paths are in the open area.
AREAS = {"admin": ADMIN_AREA, "admin_page": ADMIN_AREA, "auth": PERSONAL_AREA, "me": PERSONAL_AREA}


def area_of(path: str) -> Area:
    first_segment = path.removeprefix("/").partition("/")[0]
    first_word = first_segment.partition(".")[0]  # /admin.css is in the area of /admin
    return AREAS.get(first_word, OPEN_AREA)


def is_open_to(site: Site, area: Area, origin: str) -> bool:
    """Whether pages of another origin may use an area. If the owner sets no `[site] origins`, all
    may use what is not for our own pages only."""
    if area.own_pages_only:
        return False
    origins = site.config.site_origins
    return not origins or origin in origins


def is_own_origin(site: Site, origin: str, host: str) -> bool:
    """Whether an origin is that of the service itself: of its public URL, or of the URL that was
    asked for, whose header Host this is."""
    scheme, _, host_of_origin = origin.partition("://")
    public_host = urllib.parse.urlsplit(site.config.server_public_url).netloc
    return scheme in ("http", "https") and host_of_origin in (public_host, host)


def may_write(site: Site, area: Area, environ: Json) -> bool:
    """Whether the page that sends a request may write in an area."""
    origin = environ.get("HTTP_ORIGIN", "")
    if not origin:
        return True  # no browser sends it: they name the origin of each request that may write
    is_own = is_own_origin(site, origin, environ.get("HTTP_HOST", ""))
    return is_own or is_open_to(site, area, origin)


def headers_for(site: Site, path: str, origin: str, *, has_token: bool) -> dict[str, str]:
    """The headers of every response to a path, unless its handler sets them. `origin` is that of
    the request."""
    config = site.config
    area = area_of(path)
    headers = headers_of_area(area, has_token=has_token)
    if is_open_to(site, area, origin):
        headers["Access-Control-Allow-Origin"] = origin if config.site_origins else "*"
        headers["Access-Control-Expose-Headers"] = "Retry-After"
    # Under a path, the host is not ours alone.
    public_url = urllib.parse.urlsplit(config.server_public_url)
    if public_url.scheme == "https" and not public_url.path:
        headers["Strict-Transport-Security"] = "max-age=31536000"
    return headers


def headers_of_area(area: Area, *, has_token: bool) -> dict[str, str]:
    """The headers that do not depend on the blog. With them alone, pages of other origins may not
    read the response."""
    return {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; "
        "base-uri 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin" if area.own_pages_only else "cross-origin",
        "Cache-Control": "no-store" if area.is_private or has_token else "no-cache",
        "Vary": "Accept-Encoding, Origin, Authorization",
    }


# Routes


class Permission(enum.Enum):
    """Who may call a route."""

    PUBLIC = "everybody; the header Authorization is ignored"
    ANYONE = "everybody; a token that is sent must be valid"
    USER = "an account"
    MODERATOR = "an admin's account, signed in on the blog"
    ADMIN = "an admin's account, signed in on the admin page"


Handler = Callable[..., Json | str | Response]


@dataclass(frozen=True)
class Route:
    """A path that the service has. `route` registers it with its handler."""

    method: str
    path: str
    permission: Permission
    handler: Handler
    one_refusal: str  # the text of every refusal, where the contract wants just one; else ""
    by_link: bool  # the secret in the URL gives the right: body and origin are not looked at
    public: bool  # all readers without a token get the same response, and it is cached
    pace: Pace

    @property
    def area(self) -> Area:
        return area_of(self.path)


ROUTES: list[Route] = []


def route(
    method: str,
    path: str,
    permission: Permission,
    *,
    one_refusal: str = "",
    by_link: bool = False,
    public: bool = False,
    pace: Pace = Pace.WAITING,
) -> Callable[[Handler], Handler]:
    """Registers a handler. The permission has no default, so that it can't be forgotten. What the
    others mean is said at `Route` and `Pace`."""

    def register(handler: Handler) -> Handler:
        ROUTES.append(Route(method, path, permission, handler, one_refusal, by_link, public, pace))
        return handler

    return register


# From a request to its response


def respond(route: Route, **segments: Any) -> bottle.HTTPResponse:
    """Makes a response, whatever happens. Handlers never see Bottle's request."""
    environ = bottle.request.environ
    site = environ["commentd.site"]
    if is_in_event_loop(environ):
        leave_event_loop_if_needed(route.pace, site.store)
    try:
        response = handled(route, site, environ, segments)
    except Problem as problem:
        response = refusal(problem, route.one_refusal)
        if problem.status == 404 and opens_page(environ):
            response = missing_page(site, environ)
    except Exception:
        log.exception("%s %s failed", route.method, route.path)
        response = refusal(INTERNAL, route.one_refusal)
    return for_bottle(response)


def leave_event_loop_if_needed(pace: Pace, store: Store) -> None:
    """Ends a call in the event loop if its handler must not run there, or not yet."""
    if pace in (Pace.LONG, Pace.WAITING):
        raise NeedsWorker(pace)
    if pace is Pace.WRITING and not store.is_in_shared_transaction:
        raise NeedsTransaction(store)


def handled(route: Route, site: Site, environ: Json, segments: Json) -> Response:
    """The response that the handler of a route makes. `Problem` if it refuses the request."""
    with site.store.machine_faults():
        request = request_of(route, site, environ)
        response = response_of(route.handler(request, **segments))
    is_public = route.public and request.caller is None
    if is_public and len(response.body) <= CACHEABLE_BYTES:
        environ["commentd.cache_entry"] = request.cache_entry  # the server finds it there
    return compressed(response, environ) if is_public else response


def for_bottle(response: Response) -> bottle.HTTPResponse:
    headers = {"Content-Type": response.content_type, **response.headers}
    return bottle.HTTPResponse(response.body, response.status, headers)


def request_of(route: Route, site: Site, environ: Json) -> Request:
    # An email service posts a form of its own to a link in an email (RFC 8058).
    has_form = route.method != "GET" and not route.by_link
    if has_form and not may_write(site, route.area, environ):
        text = "这个网站不能在此评论：请管理员把它加入 [site] origins"
        raise Forbidden(text, Code.ORIGIN_REFUSED)
    now = site.now()
    return Request(
        site=site,
        now=now,
        environ=environ,
        query=read_query(environ),
        form=read_form(environ) if has_form else {},
        client=site.clients.of(environ),
        caller=caller_of(route.permission, site, environ, now),
        cache_entry=CacheEntry(site, site.store.changes.last, site.world.clock()),
    )


def read_query(environ: Json) -> dict[str, list[str]]:
    """The parameters of the URL. `BadRequest` if the URL is not UTF-8."""
    # WSGI gives the bytes of a URL as characters of Latin-1. What is not UTF-8 in a path, Bottle
    # leaves out, so that it would be the path of another route.
    path: str = environ["bottle.raw_path"]
    query: str = environ.get("QUERY_STRING", "")
    try:
        path.encode("latin-1").decode()
        return urllib.parse.parse_qs(
            query.encode("latin-1").decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=256,
        )
    except ValueError:
        raise BadRequest("网址不是有效的 UTF-8", Code.URL_INVALID) from None


JSON_TYPE = re.compile(r'application/json\s*(;\s*(charset=("?)utf-8\3)?)?', re.I)


def read_form(environ: Json) -> Json:
    """The JSON object in the body. An empty one if there is no body."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > BODY_LIMIT:
        raise BodyTooLarge("请求内容太大", Code.BODY_TOO_LARGE)
    body = environ["wsgi.input"].read(length)
    content_type = environ.get("CONTENT_TYPE", "").strip()
    if not body and not content_type:
        return {}
    if not JSON_TYPE.fullmatch(content_type):
        text = "请求必须是 application/json，UTF-8 编码，不压缩"
        raise WrongContentType(text, Code.CONTENT_TYPE)
    try:
        return strict_json(body)
    except ValueError:
        raise BadRequest("请求内容不是有效的 JSON 对象", Code.JSON_INVALID) from None


def caller_of(permission: Permission, site: Site, environ: Json, now: int) -> Account | None:
    """The account whose token was sent, where the permission looks at one. A `Problem` if it
    demands another."""
    if permission is Permission.PUBLIC:
        return None
    use = "admin" if permission is Permission.ADMIN else "login"
    account = account_of_token(site, environ, now, use)
    if permission is Permission.ANYONE:
        return account
    if account is None:
        raise Unauthorized("请先登录", Code.LOGIN_REQUIRED)
    if permission is not Permission.USER and account.role != "admin":
        raise Forbidden("只有管理员可以这样做", Code.NOT_ADMIN)
    return account


def account_of_token(site: Site, environ: Json, now: int, use: str) -> Account | None:
    """None if no token was sent. `Unauthorized` if one is not valid for this use. Role, revocation
    and the sessions of admins are read from the database."""
    claims = claims_of_token(site, environ, now, use)
    if claims is None:
        return None
    account = valid_account(site.store, claims.user_id, claims.version)
    if use == "admin":
        if site.store.admin_session(claims.session) is None:
            raise Unauthorized("登录已失效，请重新登录", Code.TOKEN_INVALID)
        site.seen_sessions[claims.session] = now
    return account


def claims_of_token(site: Site, environ: Json, now: int, use: str) -> Claims | None:
    """None if no token was sent. `Unauthorized` if one is not valid for this use."""
    scheme, _, token = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer":
        return None
    claims = read_token(token.strip(), site.key, now, use)
    if claims is None:
        raise Unauthorized("登录已失效，请重新登录", Code.TOKEN_INVALID)
    return claims


# Responses


# What the client reads of an error whose details stay in the log.
INTERNAL = InternalError("服务出错了，请稍后再试", Code.INTERNAL)


def response_of(result: Json | str | Response) -> Response:
    if isinstance(result, Response):
        return result
    if isinstance(result, str):
        return Response(result.encode(), "text/plain; charset=utf-8")
    body = json.dumps(result, ensure_ascii=False, separators=(",", ":"))
    return Response(body.encode(), "application/json; charset=utf-8")


GZIP_NAMES = ("gzip", "x-gzip", "*")  # the last one stands for any encoding
WEIGHT_OF_ZERO = re.compile(r"q=0(\.0*)?")


def accepts_gzip(accept_encoding: str) -> bool:
    """Whether that header names gzip, and does not refuse it: with a weight of 0."""
    for encoding in accept_encoding.lower().split(","):
        name, _, weight = encoding.partition(";")
        if name.strip() in GZIP_NAMES and not WEIGHT_OF_ZERO.fullmatch(weight.strip()):
            return True
    return False


def compressed(response: Response, environ: Json) -> Response:
    """Adds an ETag, compresses where the client accepts that, and sends nothing that the client
    has. Never for authenticated responses: the compressed size could leak secrets (BREACH,
    breachattack.com)."""
    body = response.body
    is_gzipped = len(body) > 200 and accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING", ""))
    suffix = "-gzip" if is_gzipped else ""  # other bytes need another tag (RFC 9110, 8.8.3.3)
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}{suffix}"'
    headers = {**response.headers, "ETag": etag}
    if etag in environ.get("HTTP_IF_NONE_MATCH", ""):
        return Response(b"", response.content_type, headers, 304)
    if is_gzipped:
        body = response.gzipped or gzip.compress(body, 5, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return replace(response, body=body, headers=headers)


def refusal(problem: Problem, one_refusal: str = "") -> Response:
    """The response for a problem. `one_refusal`: the text that stands for all refusals, else ""."""
    headers = {}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.retry_after:
        headers["Retry-After"] = str(problem.retry_after)
    if one_refusal:
        # The contract knows no 403 there.
        status = 400 if problem.status == 403 else problem.status
        return replace(response_of(one_refusal), headers=headers, status=status)
    body = {"error": str(problem), "code": problem.code, **problem.details}
    return replace(response_of(body), headers=headers, status=problem.status)


def cached_for(seconds: int) -> dict[str, str]:
    """The headers that let caches keep a response for so long."""
    return {"Cache-Control": f"public, max-age={seconds}"}


# HTML pages, and other texts from templates

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "worker-src blob:; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)


def policy_with(inline_script: str) -> str:
    """`PAGE_POLICY`, which also allows one script in the HTML of the page: this very text."""
    digest = hashlib.sha256(inline_script.encode()).digest()
    source = f"'sha256-{base64.b64encode(digest).decode()}'"
    return PAGE_POLICY.replace("script-src 'self'", f"script-src 'self' {source}")


def html_page(
    site: Site, template: str, *, policy: str = PAGE_POLICY, **variables: Any
) -> Response:
    """A page from a template in `static/`."""
    return html_response(site, templates()[template].render(**variables), policy)


def html_response(site: Site, text: str, policy: str = PAGE_POLICY) -> Response:
    """A page with this HTML."""
    headers = {
        "Content-Security-Policy": policy,
        "Cache-Control": "no-store",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if site.config.server_public_url.startswith("https:"):  # elsewhere browsers warn of it
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return Response(text.encode(), "text/html; charset=utf-8", headers)


def translated_page(site: Site, template: str, language: str, **variables: Any) -> Response:
    """The same as `html_page`, with the texts of a language. English for an unknown one."""
    if language not in languages():
        language = "en"
    texts = texts_in(language)
    variables |= {"lang": language, "dir": texts["dir"], "texts": texts}
    return html_page(site, template, **variables)


def opens_page(environ: Json) -> bool:
    """Whether a browser opens a URL as a page. Scripts and programs do not ask for HTML."""
    is_read = environ["REQUEST_METHOD"] in ("GET", "HEAD")
    return is_read and "text/html" in environ.get("HTTP_ACCEPT", "")


def preferred_language(accepted: str) -> str:
    """The first language of an `Accept-Language` header that there are texts in. "" for none.
    Browsers write the languages in the order of preference."""
    known = (known_language(tag.strip()) for tag in accepted.split(","))
    return next(filter(None, known), "")


def missing_page(site: Site, environ: Json) -> Response:
    """What a person sees at a URL that does not exist. It tells nothing about the service."""
    language = preferred_language(environ.get("HTTP_ACCEPT_LANGUAGE", ""))
    # Relative, since a proxy may serve all of it below a path of its own.
    root = "../" * (environ["PATH_INFO"].count("/") - 1)
    page = translated_page(site, "missing.html", language, root=root)
    return replace(page, status=404)


def json_in_html(data: Json) -> str:
    """JSON that can stand in a `<script>` element."""
    return re.sub("[<>&]", lambda mark: f"\\u{ord(mark[0]):04x}", json.dumps(data))


def cookies_named(environ: Json, name: str) -> list[str]:
    """The values of all cookies of that name: browsers send one for each path that fits."""
    parts = [part.strip().partition("=") for part in environ.get("HTTP_COOKIE", "").split(";")]
    return [value for part_name, _, value in parts if part_name == name]


def no_such_url() -> NotFound:
    return NotFound("没有这个网址", Code.NOT_FOUND)


# Refusals before a handler is called, by the status that Bottle or waitress gives them.
REFUSALS = {
    400: BadRequest("请求不是有效的 HTTP", Code.HTTP_INVALID),
    404: no_such_url(),
    405: MethodNotAllowed("这个网址不接受这种请求方法", Code.METHOD_NOT_ALLOWED),
    413: BodyTooLarge("请求内容太大", Code.BODY_TOO_LARGE),
    # Of several blogs, the host is that of none (RFC 9110, section 15.5.20).
    421: WrongHost("这个域名没有评论服务", Code.HOST_UNKNOWN),
    431: HeadersTooLarge("请求头太大", Code.HEADERS_TOO_LARGE),
    # waitress gives 501 to a Transfer-Encoding, and we 411: a client can send the length instead.
    501: LengthRequired("请求必须带 Content-Length", Code.LENGTH_REQUIRED),
    503: cannot_save(),
}


# Forms and queries. `valid_…` check a value, whose name is for the refusal. The others take a
# request and read a value of its form or its query.


def valid_text(name: str, value: object, most: int) -> str:
    """A value that must be a text of 1 to `most` characters."""
    if value in (None, ""):
        raise BadField(f"缺少参数 {name}", name, Fault.MISSING)
    if not isinstance(value, str):
        raise BadField(f"参数 {name} 必须是文本", name, Fault.INVALID)
    if "\0" in value:
        raise BadField(f"参数 {name} 不能含有控制字符", name, Fault.INVALID)
    if len(value) > most:
        raise BadField(f"参数 {name} 不能超过 {most} 个字符", name, Fault.TOO_LONG)
    return value


def valid_number(name: str, value: object, most: int = NO_END) -> int:
    """A value that must be a number from 1 to `most`."""
    if type(value) is not int or not 1 <= value <= most:
        raise BadField(f"参数 {name} 必须是 1 到 {most} 的整数", name, Fault.INVALID)
    return value


def valid_choice(name: str, value: object, choices: Collection[str]) -> str:
    """A value that must be one of the choices."""
    text = valid_text(name, value, 64)
    if text not in choices:
        raise BadField(f"参数 {name} 必须是 {'、'.join(choices)} 之一", name, Fault.INVALID)
    return text


def valid_page(request: Request, name: str, value: object) -> PageName:
    """A value that must name a page of the blog."""
    text = valid_text(name, value, 2048)
    if has_controls(text):
        raise BadField(f"参数 {name} 不能含有控制字符", name, Fault.INVALID)
    # While the owner names no blog, the page that sends the request is of the blog. Whoever can
    # write another origin into the header could as well send the path alone.
    own_origins = request.site.config.site_origins or [request.environ.get("HTTP_ORIGIN", "")]
    return page_name(text, own_origins)


def text_field(request: Request, name: str, most: int, *, optional: bool = False) -> str:
    """A text of 1 to `most` characters. "" if it is optional and missing."""
    value = request.form.get(name)
    if optional and value in (None, ""):
        return ""
    return valid_text(name, value, most)


def optional_field(request: Request, name: str) -> str:
    """A text of at most 64 characters. "" if it is missing."""
    return text_field(request, name, 64, optional=True)


def proper_field(
    request: Request, name: str, most: int, spell: Callable[[str], str], *, optional: bool = False
) -> str:
    """A text in the one spelling that `spell` gives. `BadRequest` if it raises `ValueError`."""
    text = text_field(request, name, most, optional=optional)
    try:
        return spell(text) if text else ""
    except ValueError:
        raise BadField(f"参数 {name} 的格式不对", name, Fault.INVALID) from None


def nickname_field(request: Request, *, optional: bool = False) -> str:
    return proper_field(request, "nickname", 256, proper_nickname, optional=optional)


def email_field(request: Request, *, optional: bool = False) -> str:
    return proper_field(request, "email", 254, proper_email, optional=optional)


def website_field(request: Request) -> str:
    return proper_field(request, "website", 2048, proper_website, optional=True)


def line_field(request: Request, name: str, most: int) -> str:
    """An optional text on one line, without control characters."""
    text = text_field(request, name, most, optional=True)
    return " ".join(without_controls(text).split())


def code_field(request: Request, name: str) -> str:
    """Six digits, of any script: Arabic keyboards have their own. Emails and input methods add
    spaces."""
    text = text_field(request, name, 64)
    shown = (character for character in text if not is_invisible(character))
    code = "".join(str(unicodedata.decimal(character, character)) for character in shown)
    if not re.fullmatch("[0-9]{6}", code):
        raise BadField("验证码是 6 位数字", name, Fault.INVALID)
    return code


def content_field(request: Request) -> str:
    text = bare_content(text_field(request, "content", BODY_LIMIT))
    if len(text) > request.site.config.comments_max_length:
        raise BadField("评论内容过长", "content", Fault.TOO_LONG)
    if is_blank(text):
        raise BadField("请填写评论内容", "content", Fault.MISSING)
    return text


def number_field(request: Request, name: str, most: int = NO_END, *, optional: bool = False) -> int:
    """A number from 1 to `most`. 0 if it is optional and missing."""
    value = request.form.get(name)
    if value is None and optional:
        return 0
    if value is None:
        raise BadField(f"缺少参数 {name}", name, Fault.MISSING)
    return valid_number(name, value, most)


def flag_field(request: Request, name: str) -> bool:
    """True or false. False if it is missing."""
    value = request.form.get(name, False)
    if not isinstance(value, bool):
        raise BadField(f"参数 {name} 必须是 true 或 false", name, Fault.INVALID)
    return value


def choice_field(request: Request, name: str, choices: Collection[str]) -> str:
    return valid_choice(name, request.form.get(name), choices)


def page_field(request: Request, name: str) -> PageName:
    """The page that a field of the form names."""
    return valid_page(request, name, request.form.get(name))


def query_text(request: Request, name: str) -> str:
    """A query parameter, which may stand once."""
    values = request.query.get(name, [""])
    if len(values) > 1:
        raise BadField(f"参数 {name} 只能出现一次", name, Fault.INVALID)
    return values[0]


def query_choice(request: Request, name: str, choices: Sequence[str]) -> str:
    """One of the choices. The first one if the parameter is missing."""
    if name not in request.query:
        return choices[0]
    return valid_choice(name, query_text(request, name), choices)


def query_number(request: Request, name: str, default: int, most: int, least: int = 1) -> int:
    if name not in request.query:
        return default
    text = query_text(request, name)
    if not re.fullmatch("[0-9]{1,19}", text) or not least <= int(text) <= most:
        raise BadField(f"参数 {name} 必须是 {least} 到 {most} 的整数", name, Fault.INVALID)
    return int(text)


def query_page(request: Request) -> PageName:
    """The page that the query parameter `url` names."""
    return valid_page(request, "url", query_text(request, "url"))


# -- Captchas -----------------------------------------------------------------


# Hosted captchas


@dataclass(frozen=True)
class HostedCaptcha:
    """A captcha of a company. All of them check a captcha token in the same way ("siteverify")."""

    verify_url: str
    wants_site_key: bool = False  # with each captcha token
    names_action: bool = False  # in each verdict: what the captcha was solved for
    scores: bool = False  # how human a visitor is. hCaptcha has a score that means the opposite.


HOSTED_CAPTCHAS = {
    "turnstile": HostedCaptcha(
        "https://challenges.cloudflare.com/turnstile/v0/siteverify", names_action=True
    ),
    "hcaptcha": HostedCaptcha("https://api.hcaptcha.com/siteverify", wants_site_key=True),
    "recaptcha": HostedCaptcha("https://www.google.com/recaptcha/api/siteverify", scores=True),
}

# Keys for tests, which the providers publish: their verdicts do not depend on the token, and name
# neither the blog nor what the captcha was for.
TEST_SECRETS = (
    # developers.cloudflare.com/turnstile/troubleshooting/testing
    "1x0000000000000000000000000000000AA",
    "2x0000000000000000000000000000000AA",
    "3x0000000000000000000000000000000AA",
    # docs.hcaptcha.com, "Integration Testing: Test Keys"
    "0x0000000000000000000000000000000000000000",
    # developers.google.com/recaptcha/docs/faq
    "6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe",
)

CAPTCHA_ACTION = "commentd"  # what the widget names as its action, where the provider has actions


@rule
def captcha_faults(config: Config) -> Iterator[str]:
    if config.captcha_provider in HOSTED_CAPTCHAS:
        for name in ("captcha_site_key", "captcha_secret", "site_origins"):
            if not getattr(config, name):
                yield f"[captcha] provider = {config.captcha_provider} needs {name_in_file(name)}"


class NoVerdict(Exception):
    """Why a captcha provider has not said whether a captcha token is good."""


def provider_accepts(config: Config, world: World, captcha_token: str) -> bool:
    """Whether the provider accepts a captcha token. `NoVerdict` or `OSError` if it does not say, or
    if the fault is not the visitor's."""
    hosted = HOSTED_CAPTCHAS[config.captcha_provider]
    status, verdict = ask_siteverify(config, hosted, world, captcha_token)
    errors = error_codes(verdict)
    if any(error.endswith("-input-secret") for error in errors):  # missing or invalid
        raise NoVerdict("it refuses [captcha] secret")
    if 400 <= status < 500 and any(error.endswith("-input-response") for error in errors):
        return False  # the token is at fault; `NoVerdict` would shut all other visitors out
    success = verdict.get("success")
    if status != 200 or type(success) is not bool or "internal-error" in errors:
        raise NoVerdict(f"status {status}, and no verdict")
    is_test = config.captcha_secret in TEST_SECRETS
    return success and (is_test or was_solved_here(config, hosted, verdict))


def error_codes(verdict: Json) -> list[str]:
    """What the provider finds wrong; [] if it says nothing."""
    errors = verdict.get("error-codes")
    return [str(error) for error in errors] if isinstance(errors, list) else []


def ask_siteverify(
    config: Config, hosted: HostedCaptcha, world: World, captcha_token: str
) -> tuple[int, Json]:
    """The status of the provider's response, and the JSON in it, {} if it holds none."""
    form = {"secret": config.captcha_secret, "response": captcha_token}
    if hosted.wants_site_key:
        form["sitekey"] = config.captcha_site_key
    url = config.captcha_verify_url or hosted.verify_url
    headers = {"content-type": "application/x-www-form-urlencoded"}
    status, body = world.fetch(url, urllib.parse.urlencode(form).encode(), headers)
    try:
        return status, strict_json(body)
    except ValueError:
        return status, {}


def was_solved_here(config: Config, hosted: HostedCaptcha, verdict: Json) -> bool:
    """Whether the captcha was solved by a person, on the blog, and for this purpose."""
    pages = (*config.site_origins, config.server_public_url)
    hosts = [urllib.parse.urlsplit(page).hostname for page in pages if page]
    is_on_blog = verdict.get("hostname") in hosts
    return is_on_blog and is_person(hosted, verdict) and is_for_us(hosted, verdict)


def has_score(hosted: HostedCaptcha, verdict: Json) -> bool:
    return hosted.scores and "score" in verdict  # version 3 of reCAPTCHA; version 2 has none


def is_person(hosted: HostedCaptcha, verdict: Json) -> bool:
    if not has_score(hosted, verdict):
        return True
    score = verdict["score"]
    return type(score) in (int, float) and score >= 0.5  # as reCAPTCHA suggests


def is_for_us(hosted: HostedCaptcha, verdict: Json) -> bool:
    """Whether it was solved for commentd, where the verdict names a purpose or must name one."""
    if hosted.names_action or has_score(hosted, verdict) or "action" in verdict:
        return verdict.get("action") == CAPTCHA_ACTION
    return True


def passes_provider(request: Request, captcha_token: str) -> bool:
    """Whether a captcha token passes at the provider, or has passed in the last minutes."""
    passed = request.site.passed_captchas
    if passed.has(captcha_token, request.now):
        return True
    if ask_provider(request, captcha_token):
        passed.add(captcha_token, request.now)
        return True
    # After a double click, the provider refuses one of two requests: then the other has passed.
    return passed.has(captcha_token, request.now)


def ask_provider(request: Request, captcha_token: str) -> bool:
    """Does the same as `provider_accepts`, for a few requests at a time. `CaptchaDown` if there is
    no verdict."""
    site = request.site
    with holding(site.captcha_seats, 0.2, CaptchaDown()):
        try:
            return provider_accepts(site.config, site.world, captcha_token)
        except (OSError, NoVerdict) as error:
            provider = site.config.captcha_provider
            log.error("[captcha] %s gives no verdict: %s", provider, error)
            raise CaptchaDown from None


# Captchas of forms


def captcha_field(request: Request, *, own: bool = False) -> Captcha | None:
    """The captcha of the form, solved. None if none is needed. `own`: always the proof of work."""
    provider = request.site.config.captcha_provider
    captcha_token = text_field(request, "captcha_token", 4096)
    if provider == "none":
        return None
    if own or provider == "altcha":
        captcha = solved_captcha(captcha_token, request.site.key, request.now)
    else:
        request.leave_event_loop(Pace.WAITING)
        captcha = captcha_of_provider(request, captcha_token)
    if captcha is None:
        raise Forbidden("人机验证失败，请重试", Code.CAPTCHA_FAILED)
    return captcha


def captcha_of_provider(request: Request, captcha_token: str) -> Captcha | None:
    """The captcha that a provider says is solved; else None."""
    signature = sha256_of(captcha_token)
    # A provider accepts a token once. What a repeated one was spent on decides about it.
    if request.site.store.spent_on(signature) is None:
        request.limit("siteverify")
        if not passes_provider(request, captcha_token):
            return None
    return Captcha(signature, request.now + HOUR)


def own_captcha(request: Request) -> Json:
    """A proof of work, or none if the owner wants none."""
    if request.site.config.captcha_provider == "none":
        return {"provider": "none"}
    request.limit("challenge")
    challenge = new_challenge(request.site.key, request.now, request.site.world.random_bytes)
    return {"provider": "altcha", **challenge}


@route("GET", "/captcha", Permission.PUBLIC, pace=Pace.QUICK)
def get_captcha(request: Request) -> Json:
    """The captcha to solve before registering, logging in and commenting."""
    config = request.site.config
    provider = config.captcha_provider
    if provider not in HOSTED_CAPTCHAS:
        return own_captcha(request)
    site_key = config.captcha_site_key
    return {"provider": provider, "site_key": site_key, "action": CAPTCHA_ACTION}


def spend_captcha(request: Request, captcha: Captcha | None) -> None:
    """`Forbidden` if it was used before."""
    if captcha and not request.site.store.note_spent_captcha(captcha.signature, captcha.expires_at):
        raise Forbidden("人机验证已用过，请重试", Code.CAPTCHA_FAILED)


# -- Providers ----------------------------------------------------------------

# Identity providers, the sections `[login.NAME]`, say who a reader is. A browser goes to one and
# comes back with a code (RFC 6749, section 4.1, with PKCE of RFC 7636). Here, the provider is asked
# which person that code stands for.


@dataclass(frozen=True)
class Endpoints:
    """The URLs at which a provider is reached, and how.

    `issuer`: what the provider calls itself, by which its people are known. `posts_secret`: our
    secret goes into the form, not into a header. `names_itself`: browsers come back with the
    parameter `iss` (RFC 9207)."""

    issuer: str
    authorization: str
    token: str
    person: str  # says more of the person; "" if nothing does
    posts_secret: bool = True
    names_itself: bool = False


@dataclass(frozen=True)
class Person:
    """Whom a provider has named, who is `subject` there. `email`: "" if it named none that we can
    use. `is_verified`: the provider says that they have that mailbox. `nickname`: "" for none."""

    issuer: str
    subject: str
    email: str
    is_verified: bool
    nickname: str


class ProviderFault(Exception):
    """Why a provider has not said who somebody is."""


class ProviderDown(Unavailable):
    """The same, for the client."""

    def __init__(self) -> None:
        super().__init__("登录服务暂时没有响应，请稍后再试", Code.PROVIDER_DOWN)


def json_value(body: bytes) -> Any:
    """Any JSON value, read as strictly as an object. `ProviderFault` for what is none."""
    try:
        return strict_json(b'{"value":' + body + b"}")["value"]
    except ValueError:
        raise ProviderFault("it sends no JSON") from None


def object_from(world: World, url: str, access_token: str = "") -> Json:
    """The JSON object at a URL. `ProviderFault` or `OSError` if there is none."""
    headers = {"authorization": f"Bearer {access_token}"} if access_token else {}
    status, body = world.fetch(url, None, headers)
    value = json_value(body) if status == 200 else None
    if not isinstance(value, dict):
        raise ProviderFault(f"{url} gives status {status} and no JSON object")
    return value


def text_in(claims: Json, name: str) -> str:
    """A text that a provider sends. "" if it is missing, or no text."""
    value = claims.get(name)
    return value if isinstance(value, str) else ""


# Where a provider is reached


def find_endpoints(provider: LoginProvider, world: World) -> Endpoints:
    """`ProviderFault` or `OSError` if the provider does not say."""
    issuer = provider.issuer.rstrip("/")
    if provider.kind == "github":
        site = issuer or "https://github.com"
        # Servers of one's own have the API below their own host.
        api = f"{site}/api/v3" if issuer else "https://api.github.com"
        authorize = f"{site}/login/oauth/authorize"
        return Endpoints(site, authorize, f"{site}/login/oauth/access_token", f"{api}/user")
    if provider.kind == "mastodon":
        return Endpoints(
            issuer,
            f"{issuer}/oauth/authorize",
            f"{issuer}/oauth/token",
            f"{issuer}/api/v1/accounts/verify_credentials",
        )
    return discover(provider, world)


def discover(provider: LoginProvider, world: World) -> Endpoints:
    """What the provider itself says (OpenID Connect Discovery 1.0, section 4)."""
    url = f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration"
    found = object_from(world, url)
    issuer = text_in(found, "issuer")
    if issuer != provider.issuer:
        raise ProviderFault(f"it calls itself {terminal_line(issuer)[:200]}: write that as issuer")
    methods = found.get("token_endpoint_auth_methods_supported")
    takes_header = not isinstance(methods, list) or "client_secret_basic" in methods
    return Endpoints(
        issuer,
        endpoint_in(found, "authorization_endpoint", provider),
        endpoint_in(found, "token_endpoint", provider),
        endpoint_in(found, "userinfo_endpoint", provider) if "userinfo_endpoint" in found else "",
        posts_secret=not takes_header,
        names_itself=found.get("authorization_response_iss_parameter_supported") is True,
    )


def endpoint_in(found: Json, name: str, provider: LoginProvider) -> str:
    """A URL that a provider names. It must be as well protected as the issuer's."""
    url = text_in(found, name)
    is_plain = url.startswith("http:") and provider.issuer.startswith("https:")
    if not is_safe_for_secrets(url) or not re.fullmatch("[!-~]{1,2048}", url) or is_plain:
        raise ProviderFault(f"its {name} is no https URL")
    return url


def authorization_url(
    provider: LoginProvider, endpoints: Endpoints, parameters: Mapping[str, str]
) -> str:
    """Where a browser is sent, with parameters that are ours."""
    scopes = {"oidc": "openid email profile", "github": "user:email", "mastodon": "read:accounts"}
    query = urllib.parse.urlencode(
        {
            "response_type": "code",
            "client_id": provider.client_id,
            "scope": scopes[provider.kind],
            **parameters,
        }
    )
    separator = "&" if "?" in endpoints.authorization else "?"
    return f"{endpoints.authorization}{separator}{query}"


def redirect_url(config: Config, provider: LoginProvider) -> str:
    """Where the provider sends browsers back. Each provider has its own, so that none can pass for
    another one (RFC 9700, section 4.4.2.2)."""
    return f"{config.server_public_url}/auth/callback/{provider.name}"


# Whom a code stands for


def ask_token_endpoint(
    provider: LoginProvider, endpoints: Endpoints, world: World, form: Mapping[str, str]
) -> tuple[int, Json]:
    """The status of the response, and the JSON object in it, {} if it holds none."""
    headers = {"content-type": "application/x-www-form-urlencoded"}
    fields = {"grant_type": "authorization_code", **form}
    if endpoints.posts_secret:
        fields |= {"client_id": provider.client_id, "client_secret": provider.client_secret}
    else:
        # Both are encoded first (RFC 6749, section 2.3.1).
        name = urllib.parse.quote_plus(provider.client_id)
        secret = urllib.parse.quote_plus(provider.client_secret)
        credentials = base64.b64encode(f"{name}:{secret}".encode()).decode()
        headers["authorization"] = f"Basic {credentials}"
    message = urllib.parse.urlencode(fields).encode()
    status, body = world.fetch(endpoints.token, message, headers)
    try:
        return status, strict_json(body)
    except ValueError:
        return status, {}


def error_word(response: Json) -> str:
    """The error that a token endpoint names, such as `invalid_client`. "" for none."""
    error = text_in(response, "error")
    return error if re.fullmatch("[a-z_]{1,64}", error) else ""


def person_of_code(
    provider: LoginProvider, endpoints: Endpoints, world: World, form: Mapping[str, str], nonce: str
) -> Person:
    """`form`: the code, and what shows that it was given to us. `ProviderFault` or `OSError` if the
    provider does not say which person it stands for."""
    status, response = ask_token_endpoint(provider, endpoints, world, form)
    # GitHub sends the status 200 with its errors.
    if status != 200 or "error" in response:
        raise ProviderFault(f"it refuses the code: status {status} {error_word(response)}")
    access_token = text_in(response, "access_token")
    if not re.fullmatch("[!-~]{0,4096}", access_token):  # it goes into a header
        raise ProviderFault("its access token is none")
    if provider.kind == "oidc":
        id_token = text_in(response, "id_token")
        claims = id_token_claims(id_token, provider, endpoints, world.now(), nonce)
        return person_of_claims(claims, endpoints, world, access_token)
    if not access_token:
        raise ProviderFault("it sends no access token")
    user = object_from(world, endpoints.person, access_token)
    if provider.kind == "github":
        return person_of_github(user, endpoints, world, access_token)
    names = ("display_name", "username")
    return person(endpoints.issuer, text_in(user, "id"), user, names, email="", is_verified=False)


def person(
    issuer: str, subject: str, user: Json, names: Iterable[str], *, email: object, is_verified: bool
) -> Person:
    """`names`: where a name may stand in `user`, the best first."""
    # OpenID Connect Core 1.0, section 2: at most 255 ASCII characters, compared as they are.
    if not re.fullmatch("[ -~]{1,255}", subject):
        raise ProviderFault("it names nobody")
    nicknames = [value_or_empty(proper_nickname, text_in(user, name)[:256]) for name in names]
    usable_email = ""
    if isinstance(email, str) and len(email) <= 254:
        usable_email = value_or_empty(proper_email, email)
    nickname = next(filter(None, nicknames), "")
    return Person(issuer, subject, usable_email, is_verified and usable_email != "", nickname)


# OpenID Connect


def id_token_claims(
    id_token: str, provider: LoginProvider, endpoints: Endpoints, now: int, nonce: str
) -> Json:
    """The claims of an ID token. `ProviderFault` unless it is about this sign-in (OpenID Connect
    Core 1.0, section 3.1.3.7). Its signature is not looked at: it comes from the token endpoint
    itself, over TLS (the same section, 6)."""
    claims = unsigned_claims(id_token)
    if claims is None:
        raise ProviderFault("it sends no ID token")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    # Who it was made for, where that may be several.
    party = claims.get("azp", provider.client_id if len(audiences) == 1 else None)
    expires_at = claims.get("exp")
    is_number = type(expires_at) in (int, float)
    checks = {
        "iss": claims.get("iss") == endpoints.issuer,
        "aud": provider.client_id in audiences,
        "azp": party == provider.client_id,
        "exp": is_number and cast(float, expires_at) > now - MINUTE,
        "nonce": equal_in_constant_time(text_in(claims, "nonce"), nonce),
    }
    for name, is_right in checks.items():
        if not is_right:
            raise ProviderFault(f"the claim {name} of its ID token is wrong")
    return claims


def person_of_claims(claims: Json, endpoints: Endpoints, world: World, access_token: str) -> Person:
    """Many providers say name and email address only at a URL of their own."""
    subject = text_in(claims, "sub")
    is_whole = "email" in claims and "email_verified" in claims
    if not is_whole and endpoints.person and access_token:
        more = object_from(world, endpoints.person, access_token)
        if more.get("sub") != subject:  # Core 1.0, section 5.3.2: it may be about another person
            raise ProviderFault("its user info is about another person")
        claims = {**claims, **more}
    return person(
        endpoints.issuer,
        subject,
        claims,
        ("name", "nickname", "preferred_username"),
        email=claims.get("email"),
        is_verified=claims.get("email_verified") is True,
    )


# GitHub


def person_of_github(user: Json, endpoints: Endpoints, world: World, access_token: str) -> Person:
    """The number stays when somebody changes the name of their account there, and the old name may
    become another person's."""
    number = user.get("id")
    subject = str(number) if type(number) is int else ""
    status, body = world.fetch(
        f"{endpoints.person}/emails", None, {"authorization": f"Bearer {access_token}"}
    )
    emails = json_value(body) if status == 200 else []
    email = primary_email(emails if isinstance(emails, list) else [])
    return person(endpoints.issuer, subject, user, ("name", "login"), email=email, is_verified=True)


def primary_email(emails: list[Any]) -> object:
    """The email address that somebody uses at GitHub, if they have confirmed it there."""
    for entry in emails:
        if isinstance(entry, dict) and entry.get("primary") is True:
            return entry.get("email") if entry.get("verified") is True else None
    return None


# -- Sign-in ------------------------------------------------------------------


# Passwords and nicknames


def password_field(request: Request, name: str = "password") -> str:
    return text_field(request, name, 1024)


def new_password_field(request: Request, name: str, *, of_admin: bool) -> str:
    """A password that somebody chooses. A reader may have any, but an admin's opens everything. A
    hash does not tell its length: the pages look at that before they hash it."""
    password = password_field(request, name)
    if of_admin and len(password) < 8:
        raise BadField("管理员的密码至少要 8 个字符", "password", Fault.TOO_SHORT)
    return password


def hash_of(site: Site, email_address: str, password: str) -> str:
    """The hash of a password, as it is stored from now on. `Unavailable` if too many are being
    hashed."""
    scheme = password_scheme(site.rounds, site.key, email_address)
    with site.hasher.seat():
        return site.hasher.hash(password, scheme)


def scheme_for(site: Site, email_address: str) -> str:
    """How to hash a password that is compared with what is stored for an email address. All that is
    stored for one has the same salt, so that a login needs one hash for the account and for all
    waiting registrations."""
    account = site.store.account_with_email(email_address)
    # Read in any case, so that the work is the same.
    waiting = site.store.registrations(email_address)
    for holder in (account, *waiting):
        if holder and holder.password:
            return holder.password.rpartition("$")[0]
    return password_scheme(site.rounds, site.key, email_address)


def hash_within_limits(
    request: Request, email_address: str, password: str, captcha: Captcha | None, uses: list[Use]
) -> str:
    """The hash of a password that somebody sends who has not shown who they are. In this order:

    1. Who is beyond a rate limit is refused, however many passwords are being hashed.
    2. Where there are too many, all others are refused, too. Nothing is counted until here, and
       the captcha stays good.
    3. One transaction counts the uses and spends the captcha.
    4. The hash takes long, so it is made after that."""
    site = request.site
    refuse_if_used_up(site, *uses)
    with site.hasher.seat():
        with request.writing():
            take_uses_or_refuse(site, *uses)
            spend_captcha(request, captcha)
        return site.hasher.hash(password, scheme_for(site, email_address))


def wrong_credentials() -> Unauthorized:
    return Unauthorized("邮箱或密码错误", Code.WRONG_CREDENTIALS)


def authenticated(
    request: Request, email_address: str, password: str, captcha: Captcha | None
) -> Account:
    """The account with this password. `Unauthorized` for all else, after the same work."""
    store = request.site.store
    # The password counts as wrong until it proves right.
    uses_if_wrong = request.uses("wrong_password", email_address)
    uses = [*request.uses("login"), *uses_if_wrong]
    stored = hash_within_limits(request, email_address, password, captcha, uses)
    account = store.account_with_email(email_address)
    if account is None or account.blocked or not equal_in_constant_time(account.password, stored):
        # Who has registered, but has not sent the code yet, is told so.
        waiting = store.registrations(email_address)
        if any(equal_in_constant_time(each.password, stored) for each in waiting):
            raise Unauthorized("邮箱未验证", Code.EMAIL_UNVERIFIED)
        raise wrong_credentials()
    with request.writing():
        return_uses(request.site, *uses_if_wrong)
    with contextlib.suppress(Unavailable):  # the next login can do it
        strengthen(request.site, account, password)
    return account


def factor_field(request: Request) -> str:
    """A code of an authenticator app, or a recovery code, however it is typed. "" if missing."""
    return re.sub("[^a-z0-9]", "", optional_field(request, "factor").lower())


def check_second_factor(request: Request, account: Account, code: str) -> None:
    """Uses up a code of the admin's authenticator app, or a recovery code. `Forbidden` for another
    one. The password has proved right before: a wrong code tells strangers nothing, and the tries
    are of the account alone."""
    if not account.app_key:
        return
    if not code:
        raise Forbidden("请输入身份验证器的动态码", Code.FACTOR_NEEDED)
    use = Use("wrong_factor", str(account.id))
    with request.writing():
        take_uses_or_refuse(request.site, use)
        is_right = use_up_factor(request, account, code)
        if is_right:
            return_uses(request.site, use)
    if not is_right:  # after the transaction, which has counted the try
        # Somebody knows the password. The limit bounds how often this line is written.
        place = masked(request.client.ip) or "somewhere"
        log.warning("a sign-in of an admin had a wrong code of the app, from %s", place)
        raise Forbidden("动态码不对或已用过", Code.FACTOR_WRONG)


def use_up_factor(request: Request, account: Account, code: str) -> bool:
    """Whether a second factor is right and was not used before. The caller holds the
    transaction."""
    store = request.site.store
    account = store.account(account.id) or account  # another request may have used the code
    step = step_of_app_code(account.app_key, code, request.now)
    if step > account.app_step:
        store.note_app_step(account.id, step)
        return True
    code_hash = sha256_of(code)
    if code_hash not in store.recovery_codes(account.id):
        return False
    store.drop_recovery_code(account.id, code_hash)
    return True


def strengthen(site: Site, account: Account, password: str) -> None:
    """Hashes the password again if the number of rounds was raised since it was stored."""
    rounds = int(account.password.split("$")[1])
    if rounds >= site.rounds:
        return
    stored = hash_of(site, account.email, password)
    with site.store.writing():
        site.store.strengthen_password(account, stored)


def check_nickname(request: Request, nickname: str) -> None:
    """Only an admin may have a name like an admin's, and if the owner wants that, only an account
    one like its own."""
    if request.is_admin:
        return
    store = request.site.store
    for admin in store.admins():
        if looks_like(nickname, admin.nickname):
            raise Conflict("这个昵称和管理员的太像，请换一个", Code.NICKNAME_TAKEN)
    user_id = request.caller.id if request.caller else 0
    if request.site.config.comments_protect_names and store.has_taken_look(nickname, user_id):
        raise Conflict("这个昵称和别人账号的太像，请登录或换一个", Code.NICKNAME_OF_ACCOUNT)


# Codes that are emailed: to register, to sign in, and to confirm what the caller wants


# Registrations of other clients that may wait for an email address.
MOST_WAITING = 3
MOST_WAITING_KNOWN = 6  # for a client from a network that the account signed in from


@dataclass(frozen=True)
class CodeForm:
    """What a form says that asks for a code. `replaced`: the request id of an earlier code, whose
    place the new one takes, or ""."""

    email: str
    language: str
    replaced: str


def code_form(request: Request, email_address: str) -> CodeForm:
    return CodeForm(
        email=email_address,
        language=known_language(optional_field(request, "lang")),
        replaced=optional_field(request, "request_id"),
    )


@route("POST", "/auth/register", Permission.PUBLIC)
def register(request: Request) -> Json:
    """Emails a code, which makes the account or changes the existing one.

    `{email, nickname, password, captcha_token, request_id?, lang?}` to `{success, request_id}`.
    Response and work do not depend on whether the email address has an account or is blocked."""
    form = code_form(request, email_field(request))
    nickname = nickname_field(request)
    password = password_field(request)
    captcha = captcha_field(request)
    uses = [*request.uses("register"), *request.uses("code_for_email", form.email)]
    stored = hash_within_limits(request, form.email, password, captcha, uses)
    has_account = request.site.store.account_with_email(form.email) is not None
    warning = "code_warning" if has_account else ""
    new = new_code_email(request, form, warning, nickname=nickname, password=stored)
    return {"success": True, "request_id": send_code(request, new)}


@route("POST", "/auth/code", Permission.PUBLIC)
def request_code(request: Request) -> Json:
    """Emails a code to sign in with, to a known or a new email address.

    `{email, captcha_token, request_id?, lang?}` to `{success, request_id}`. Response and work do
    not depend on whether the email address has an account or is blocked."""
    form = code_form(request, email_field(request))
    captcha = captcha_field(request)
    with request.writing():
        request.limit("register")
        request.limit("code_for_email", form.email)
        spend_captcha(request, captcha)
    new = new_code_email(request, form, "code_signin")
    return {"success": True, "request_id": send_code(request, new)}


@route("POST", "/me/code", Permission.USER)
def request_own_code(request: Request) -> Json:
    """Emails a code to the caller, which confirms a new password or the end of the account.

    `{request_id?, lang?}` to `{success, request_id}`. Strangers cannot use up its rate limit."""
    if request.is_admin:
        raise Forbidden("管理员请用密码登录", Code.PASSWORD_REQUIRED)
    form = code_form(request, request.me.email)
    new = new_code_email(request, form, "code_signin")
    with request.writing():
        take_uses_or_refuse(request.site, Use("own_code_email", email_subject(request, form.email)))
        add_code_email(request, new)
    return {"success": True, "request_id": new.registration.request_id}


@dataclass(frozen=True)
class CodeEmail:
    """An email with a new code, and what the code will confirm: a registration, which without a
    password is a wish to sign in. Nothing of it is stored yet. `replaced` as in `CodeForm`."""

    registration: Registration
    email: Email | None  # None for a blocked email address, for which no code is right either
    replaced: str


def new_code_email(
    request: Request, form: CodeForm, warning: str, *, nickname: str = "", password: str = ""
) -> CodeEmail:
    """`warning`: the key of the text that says what the code does, or ""."""
    site = request.site
    request_id = site.world.random_bytes(16).hex()
    code = new_code(site.world.random_bytes)
    code_hash = keyed_hash(site.key, "code", request_id, code)
    account = site.store.account_with_email(form.email)
    language = form.language or (account.language if account else "")
    # Made for a blocked email address too, so that the time of the response tells nothing.
    email_with_code = code_email(site, form.email, language, code, warning)
    is_blocked = is_blocked_email(site, form.email)
    registration = Registration(
        request_id=request_id,
        email=form.email,
        nickname=nickname,
        password=password,
        code="" if is_blocked else code_hash,
        client=keyed_hash(site.key, "client", request.client.network or request_id),
        language=language,
        created_at=request.now,
        expires_at=request.now + CODE_LIFE,
    )
    return CodeEmail(registration, None if is_blocked else email_with_code, form.replaced)


# What becomes of the wish for a code. The response looks the same in all cases.
#
# | case                                           | what is done                              |
# |------------------------------------------------|-------------------------------------------|
# | the email address may get one more code        | a new code is emailed, and replaces the   |
# |                                                | last one of the client                    |
# | else: the form names a code that waits for the | no email; that code confirms what is      |
# | same purpose, to sign in or to register        | wanted now                                |
# | else                                           | no email, and no code                     |
#
# An email address may get one more if few other clients' registrations wait for it, and within
# rate limits. Strangers could use both up, to lock the holder out. So a client that the account
# knows has more room, and a rate limit of its own.


def send_code(request: Request, new: CodeEmail) -> str:
    """Does what the table says. Returns the request id with which the client sends the code."""
    store = request.site.store
    email_address = new.registration.email
    with request.writing():
        # Something is written in any case, so that the time of the response tells nothing.
        store.note_time("code_asked", request.now)
        is_known = is_known_client(request, email_address)
        most_waiting = MOST_WAITING_KNOWN if is_known else MOST_WAITING
        has_room = count_waiting_of_others(request, new) < most_waiting
        if has_room and count_code_email(request, email_address, is_known=is_known):
            add_code_email(request, new)
        elif reuse_last_code(request, new):
            return new.replaced
    return new.registration.request_id


def count_waiting_of_others(request: Request, new: CodeEmail) -> int:
    """How many registrations wait for the email address and stay when one more is added. A client's
    own is replaced, none of another client is dropped."""
    others = [
        waiting
        for waiting in request.site.store.registrations(new.registration.email)
        if waiting.expires_at > request.now
        and waiting.client != new.registration.client
        and waiting.request_id != new.replaced
    ]
    return len(others)


def email_subject(request: Request, email_address: str) -> str:
    """The subject of rate limits on the emails that an email address gets."""
    return keyed_hash(request.site.key, "mail", email_address)


def count_code_email(request: Request, email_address: str, *, is_known: bool) -> bool:
    """Counts one more email with a code. False if the rate limits are used up. For a client that
    the account knows, some are set aside: otherwise strangers who ask for codes could lock its
    holder out."""
    subject = email_subject(request, email_address)
    if take_uses(request.site, Use("code_email", subject), Use("all_code_emails")):
        return True
    return is_known and take_uses(request.site, Use("known_code_email", subject))


def reuse_last_code(request: Request, new: CodeEmail) -> bool:
    """Lets the last code confirm what is wanted now. False if there is none. A code to sign in
    cannot set a password, since its email does not mention one."""
    wanted = new.registration
    store = request.site.store
    for waiting in store.registrations(wanted.email):
        is_last = waiting.request_id == new.replaced
        if is_last and waiting.is_sign_in == wanted.is_sign_in:
            store.revise_registration(waiting.request_id, wanted.nickname, wanted.password)
            return True
    return False


def add_code_email(request: Request, new: CodeEmail) -> None:
    store = request.site.store
    registration_id = store.add_registration(new.registration, new.replaced)
    if new.email:
        store.add_email(request.now, new.email, life=CODE_LIFE, registration_id=registration_id)


@route("POST", "/auth/verify", Permission.PUBLIC, one_refusal="验证码错误或已过期")
def verify(request: Request) -> str:
    """`{email, token, request_id?}` to the success text: the account is made or changed."""
    store = request.site.store
    email_address = email_field(request)
    code = code_field(request, "token")
    request_id = optional_field(request, "request_id")
    with request.writing():
        confirmed = registration_with_code(
            request, email_address, code, request_id, is_sign_in=False
        )
        if confirmed:
            account = store.confirm(confirmed, request.now)
            if not account.is_new:
                store.add_email(request.now, changed_email(request.site, account))
    if not confirmed:  # after the transaction, which has counted the try
        raise BadField("验证码错误或已过期", "token", Fault.INVALID)

    return "验证成功"


def registration_with_code(
    request: Request, email_address: str, code: str, request_id: str, *, is_sign_in: bool
) -> Registration | None:
    """What waits for the code, to sign in or otherwise. Each comparison uses up a try. A client
    that knows the request id has five tries of its own. Without one (""), it shares the tries of
    the email address with strangers."""
    site = request.site
    request.limit("verify")
    # The code counts as wrong until it proves right.
    uses_if_wrong = guess_uses(request, email_address, request_id)
    if not take_uses(site, *uses_if_wrong):
        return None
    waiting = [
        each
        for each in site.store.registrations(email_address)
        if each.expires_at > request.now and each.is_sign_in == is_sign_in
    ]
    compared = with_tries_left(waiting, request_id)
    confirmed = matching(site, compared, code)
    for registration in compared:
        if request_id:
            site.store.count_named_try(registration.request_id)
        else:
            site.store.count_try(registration.request_id)
    if confirmed or not compared:  # what was compared with nothing was no guess
        return_uses(site, *uses_if_wrong)
    return confirmed


def matching(site: Site, registrations: list[Registration], code: str) -> Registration | None:
    """The registration whose code this is. All are compared, so that the time tells nothing."""
    found = None
    for registration in registrations:
        code_hash = keyed_hash(site.key, "code", registration.request_id, code)
        if equal_in_constant_time(registration.code, code_hash):
            found = registration
    return found


MOST_TRIES = 5  # of a code


def with_tries_left(waiting: list[Registration], request_id: str) -> list[Registration]:
    """The registrations that a guess is compared with. Tries that name the request are counted
    apart: otherwise strangers could use them up."""
    if request_id:
        return [
            each
            for each in waiting
            if each.request_id == request_id and each.named_tries < MOST_TRIES
        ]
    return [each for each in waiting if each.tries + each.named_tries < MOST_TRIES]


def guess_uses(request: Request, email_address: str, request_id: str) -> list[Use]:
    """The rate limits on which a wrong code counts:

    - that of the client
    - that of the email address, if the guess names no request
    - for an account, one of all clients together: otherwise who tries a few codes on each of many
      accounts would get into one. Strangers can use it up, so a client that the account knows has
      another instead"""
    subject = keyed_hash(request.site.key, "guess", email_address)
    uses = request.uses("wrong_code")
    if not request_id:
        uses.append(Use("unnamed_wrong_code", subject))
    if is_known_client(request, email_address):
        uses.append(Use("known_wrong_code", subject))
    elif request.site.store.account_with_email(email_address):
        uses.append(Use("all_wrong_codes"))
    else:
        uses.append(Use("all_wrong_codes_for_nobody"))  # the time of the response tells nothing
    return uses


# Known clients


def network_of_account(request: Request, user_id: int) -> str:
    """The hash that stands for the client's network among those of one account."""
    return short_hash(request.site.key, "known", user_id, request.client.network)


def is_known_client(request: Request, email_address: str) -> bool:
    """Whether the account with that email address has signed in from the client's network."""
    store = request.site.store
    account = store.account_with_email(email_address)
    user_id = account.id if account else 0  # no account has it; the work is the same
    is_known = store.knows_network(user_id, network_of_account(request, user_id))
    return is_known and bool(request.client.network)


def remember_client(request: Request, account: Account) -> None:
    """Who signs in is known from now on. The caller holds the transaction: where it fails, nothing
    is done, and a code or a link can be used again."""
    if request.client.network:
        known = network_of_account(request, account.id)
        request.site.store.remember_network(account.id, known, request.now)


# Going to an identity provider, and coming back. A window of its own does that, or the page itself
# where the browser opens no windows:
#
# 1. The widget makes a secret, and opens `/auth/with/NAME` with the hash of it.
# 2. A cookie notes what has begun, for the way back alone. The provider gets the state in it.
# 3. The provider sends the browser to `/auth/callback/NAME`, with a code and the state. The service
#    asks the provider which person the code stands for, and keeps that under a voucher.
# 4. The blog's page gets the voucher, and nobody else. With the secret, the widget fetches a token
#    (see `by_voucher`).
#
# So a code or voucher that somebody has stolen, or slips to another browser, is worth nothing.


@dataclass(frozen=True)
class Attempt:
    """What the cookie says of a sign-in that has begun.

    `secret_hash`: of what the widget keeps. `page`: that of the blog to which it leads back, as a
    URL without a fragment. `way`: `window` or `page`."""

    state: str
    name: str  # of the provider
    secret_hash: str
    page: str
    way: str
    language: str

    @property
    def origin(self) -> str:
        return origin_of_page(self.page)

    def nonce(self, key: bytes) -> str:
        """What the ID token must hold."""
        return keyed_hash(key, "nonce", self.state)

    def code_verifier(self, key: bytes) -> str:
        """What shows the provider that who sends the code has begun this (RFC 7636)."""
        return keyed_hash(key, "code verifier", self.state)


def origin_of_page(page: str) -> str:
    """The origin of a URL, as browsers write both. "" for all else, such as a URL with a user name,
    or with a backslash, which browsers read as a slash."""
    found = re.fullmatch(r"(https?://[a-z0-9._:\[\]-]+)([/?][!-~]*)?", page)
    return found[1] if found and "#" not in page else ""


def provider_named(site: Site, name: str) -> LoginProvider:
    for provider in site.config.login_providers:
        if provider.name == name:
            return provider
    raise no_such_url()


def provider_refused() -> Unauthorized:
    return Unauthorized("登录没有完成，请再试一次", Code.PROVIDER_REFUSED)


@contextlib.contextmanager
def asking_provider(site: Site, provider: LoginProvider) -> Iterator[None]:
    """A few requests at a time ask providers, so that the others are served while one is slow.
    `ProviderDown` if it does not say what is asked."""
    with holding(site.login_seats, 0.2, ProviderDown()):
        try:
            yield
        except (OSError, ValueError, ProviderFault) as error:
            log.error("[login.%s] %s", provider.name, terminal_line(str(error)))
            raise ProviderDown from None


def known_endpoints(site: Site, provider: LoginProvider) -> Endpoints:
    """Where the provider is reached. It is asked once an hour."""
    now = site.now()
    found_at, endpoints = site.found_endpoints.get(provider.name, (0, None))
    if endpoints and is_recent(found_at, now, HOUR):
        return endpoints
    with asking_provider(site, provider):
        endpoints = find_endpoints(provider, site.world)
    site.found_endpoints[provider.name] = now, endpoints
    return endpoints


@route("GET", "/auth/with/<name>", Permission.PUBLIC)
def begin_login(request: Request, name: str) -> Response:
    """Sends a browser to an identity provider: `?page=&secret_hash=&way=&lang=`."""
    site = request.site
    provider = provider_named(site, name)
    attempt = new_attempt(request, provider)
    if not was_pressed_there(request, attempt.page):
        return back_to_page(request, attempt, f"commentd-refusal={Code.PROVIDER_REFUSED}")
    request.limit("provider")
    try:
        endpoints = known_endpoints(site, provider)
    except ProviderDown as problem:
        return back_to_page(request, attempt, f"commentd-refusal={problem.code}")
    code_verifier = attempt.code_verifier(site.key)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(code_verifier.encode()).digest())
    parameters = {
        "redirect_uri": redirect_url(site.config, provider),
        "state": attempt.state,
        "code_challenge": challenge.decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    if provider.kind == "oidc":
        parameters["nonce"] = attempt.nonce(site.key)
    headers = {
        "Location": authorization_url(provider, endpoints, parameters),
        "Set-Cookie": login_cookie(site, name, sealed(site, attempt, request.now), CODE_LIFE),
    }
    return Response(b"", "text/plain; charset=utf-8", headers, 303)


def was_pressed_there(request: Request, page: str) -> bool:
    """Whether a browser comes from the blog of that page. From elsewhere, somebody could send it
    here with a secret of their own, and to a page that forwards what it gets to them."""
    return origin_of_page(request.environ.get("HTTP_REFERER", "")) == origin_of_page(page)


def new_attempt(request: Request, provider: LoginProvider) -> Attempt:
    secret_hash = valid_text("secret_hash", query_text(request, "secret_hash"), 64)
    if not re.fullmatch("[0-9a-f]{64}", secret_hash):
        raise BadField("参数 secret_hash 的格式不对", "secret_hash", Fault.INVALID)
    page = valid_text("page", query_text(request, "page"), 2048)
    if origin_of_page(page) not in request.site.config.site_origins:
        text = "这个网站不能在此评论：请管理员把它加入 [site] origins"
        raise Forbidden(text, Code.ORIGIN_REFUSED)
    return Attempt(
        state=request.site.world.random_bytes(32).hex(),
        name=provider.name,
        secret_hash=secret_hash,
        page=page,
        way=query_choice(request, "way", ("window", "page")),
        language=known_language(query_text(request, "lang")),
    )


def sealed(site: Site, attempt: Attempt, now: int) -> str:
    """The text of the cookie. Nobody else can make one, and it is no token."""
    claims = {
        "use": "provider",
        "exp": now + CODE_LIFE,
        "state": attempt.state,
        "name": attempt.name,
        "secret_hash": attempt.secret_hash,
        "page": attempt.page,
        "way": attempt.way,
        "language": attempt.language,
    }
    return signed(claims, site.key)


def unsealed(site: Site, text: str, now: int) -> Attempt | None:
    """None for a text that `sealed` has not made, or too long ago."""
    claims = claims_of_jwt(text, site.key, ["use", "exp"])
    if claims is None:
        return None
    if claims["use"] != "provider" or not now < claims["exp"] <= now + CODE_LIFE:
        return None
    return Attempt(
        state=claims["state"],
        name=claims["name"],
        secret_hash=claims["secret_hash"],
        page=claims["page"],
        way=claims["way"],
        language=claims["language"],
    )


def login_cookie(site: Site, name: str, text: str, seconds: int) -> str:
    """A header that sets or, with 0 seconds, drops the cookie of a sign-in that has begun. Only the
    way back from this provider gets it, also when another site leads there."""
    public_url = urllib.parse.urlsplit(site.config.server_public_url)
    path = f"{public_url.path}/auth/callback/{name}"
    secure = "; Secure" if public_url.scheme == "https" else ""
    cookie = f"{login_cookie_name(site)}={text}"
    return f"{cookie}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def login_cookie_name(site: Site) -> str:
    is_https = site.config.server_public_url.startswith("https:")
    # Browsers take this beginning from an https page alone.
    return "__Secure-commentd-login" if is_https else "commentd-login"


@route("GET", "/auth/callback/<name>", Permission.PUBLIC)
def end_login(request: Request, name: str) -> Response:
    """Where an identity provider sends a browser back: `?code=&state=&iss=`."""
    provider = provider_named(request.site, name)
    request.limit("provider")
    attempt = begun_attempt(request, name)
    if attempt is None:
        language = preferred_language(request.environ.get("HTTP_ACCEPT_LANGUAGE", ""))
        page = translated_page(request.site, "login.html", language, failed=True)
        return replace(page, status=400)
    try:
        voucher = new_voucher(request, provider, attempt)
    except Problem as problem:
        return back_to_page(request, attempt, f"commentd-refusal={problem.code}")
    return back_to_page(request, attempt, f"commentd-voucher={voucher}")


def begun_attempt(request: Request, name: str) -> Attempt | None:
    """What this browser has begun with this provider and this state. None if it has not."""
    state = " ".join(request.query.get("state", []))
    for text in cookies_named(request.environ, login_cookie_name(request.site)):
        attempt = unsealed(request.site, text, request.now)
        if attempt and attempt.name == name and equal_in_constant_time(attempt.state, state):
            return attempt
    return None


def new_voucher(request: Request, provider: LoginProvider, attempt: Attempt) -> str:
    """A voucher for the person that the provider names. A `Problem` if it names nobody."""
    site = request.site
    if "error" in request.query:  # such as access_denied
        raise provider_refused()
    code = valid_text("code", query_text(request, "code"), 4096)
    endpoints = known_endpoints(site, provider)
    check_issuer(request, provider, endpoints)
    form = {
        "code": code,
        "redirect_uri": redirect_url(site.config, provider),
        "code_verifier": attempt.code_verifier(site.key),
    }
    nonce = attempt.nonce(site.key)
    with asking_provider(site, provider):
        named = person_of_code(provider, endpoints, site.world, form, nonce)
    voucher = site.world.random_bytes(16).hex()
    kept = Voucher(
        hash=sha256_of(voucher),
        secret=attempt.secret_hash,
        state=sha256_of(attempt.state),
        issuer=named.issuer,
        subject=named.subject,
        email=named.email,
        verified=int(named.is_verified),
        nickname=named.nickname,
        language=attempt.language,
        expires_at=site.now() + CODE_LIFE,
    )
    with request.writing():
        if not site.store.add_voucher(kept):
            raise provider_refused()  # the same way back, a second time
    return voucher


def check_issuer(request: Request, provider: LoginProvider, endpoints: Endpoints) -> None:
    """The provider may say itself who it is: otherwise another one could pass its codes on as its
    own (RFC 9207)."""
    if provider.kind != "oidc":
        return
    is_named = endpoints.names_itself or "iss" in request.query
    if is_named and query_text(request, "iss") != endpoints.issuer:
        log.error("[login.%s] the way back is from another provider", provider.name)
        raise provider_refused()


def back_to_page(request: Request, attempt: Attempt, fragment: str) -> Response:
    """Brings what came of it to the page of the blog. A window sends it as a message. Where that
    can't be, the page is opened with it in the fragment of its URL."""
    site = request.site
    headers = {"Set-Cookie": login_cookie(site, attempt.name, "", 0)}
    if attempt.way == "page":
        headers["Location"] = f"{attempt.page}#{fragment}"
        return Response(b"", "text/plain; charset=utf-8", headers, 303)
    page = translated_page(
        site, "login.html", attempt.language, failed=False, attempt=attempt, fragment=fragment
    )
    headers = {**page.headers, **headers}
    # It would part this window from the page that opened it.
    headers.pop("Cross-Origin-Opener-Policy", None)
    return replace(page, headers=headers)


# What the owner's own site says of its readers

SITE_TOKEN_LIFE = 10 * MINUTE  # at most
OWN_SITE = "site"  # the issuer: no provider is called so, since each is a URL


@dataclass(frozen=True)
class SiteClaims:
    """What the owner's own site says of somebody. `email` is "" without one that we can use."""

    subject: str
    token_id: str
    email: str
    is_verified: bool
    nickname: str


def site_claims(config: Config, token: str, now: int) -> SiteClaims | None:
    """None for a token that the site has not signed (HS256), or not for this service or this time.
    It needs `sub`, `aud` (`[server] public_url`), `iat`, `exp` at most ten minutes later, and
    `jti`, which no other token has (RFC 7519, section 4.1)."""
    required = ["sub", "aud", "iat", "exp", "jti"]
    claims = claims_of_jwt(token, config.login_site_key, required, config.server_public_url)
    if claims is None:
        return None
    begins_at, ends_at = claims["iat"], claims["exp"]
    if type(begins_at) is not int or type(ends_at) is not int:
        return None
    # Two clocks may differ by a minute.
    is_current = begins_at <= now + MINUTE and now < ends_at + MINUTE
    if not is_current or ends_at > begins_at + SITE_TOKEN_LIFE:
        return None
    subject, token_id = claims["sub"], claims["jti"]
    if not all(isinstance(each, str) and 0 < len(each) <= 255 for each in (subject, token_id)):
        return None
    if not subject.isprintable():  # half a character, as JavaScript has them, can't be stored
        return None
    email = value_or_empty(proper_email, str(claims.get("email", "")))
    return SiteClaims(
        subject=subject,
        token_id=token_id,
        email=email,
        is_verified=bool(email) and claims.get("email_verified") is True,
        nickname=value_or_empty(proper_nickname, str(claims.get("name", ""))),
    )


@route("POST", "/auth/site", Permission.PUBLIC)
def take_site_token(request: Request) -> Json:
    """`{site_token, secret_hash, lang?}` to `{voucher}`: what the owner's own site says of its
    reader, to sign in with once. `secret_hash` is the SHA-256 of the `voucher_secret` that
    `/auth/login` gets."""
    site = request.site
    token = text_field(request, "site_token", 4096)
    secret_hash = text_field(request, "secret_hash", 64)
    language = known_language(optional_field(request, "lang"))
    if not site.config.login_site_key:
        raise NotFound("没有这个地址", Code.NOT_FOUND)
    named = site_claims(site.config, token, request.now)
    if named is None:
        raise provider_refused()
    voucher = site.world.random_bytes(16).hex()
    kept = Voucher(
        hash=sha256_of(voucher),
        secret=secret_hash,
        state=short_hash(site.key, "site token", named.token_id),
        issuer=OWN_SITE,
        subject=named.subject,
        email=named.email,
        verified=int(named.is_verified),
        nickname=named.nickname,
        language=language,
        # Its row outlives the token, so that each token brings one voucher.
        expires_at=request.now + SITE_TOKEN_LIFE + 3 * MINUTE,
    )
    with request.writing():
        request.limit("login")
        if not site.store.add_voucher(kept):
            raise provider_refused()
    return {"voucher": voucher}


# What a voucher opens


def voucher_in(request: Request) -> Voucher:
    """The voucher of the form, `{voucher, voucher_secret}`. `Unauthorized` if it is not good, or
    another browser's."""
    voucher = text_field(request, "voucher", 64)
    secret_hash = sha256_of(text_field(request, "voucher_secret", 128))
    kept = request.site.store.voucher(sha256_of(voucher), request.now)
    if kept is None or not equal_in_constant_time(kept.secret, secret_hash):
        raise provider_refused()
    return kept


# Signing in. Each way shows who somebody is. `account_for` alone decides what that opens.


def nothing_to_use_up() -> bool:
    """The `use_up` of a secret that works again and again, as a password does."""
    return True


@dataclass(frozen=True)
class Identity:
    """Who a way to sign in says that somebody is. With `account`, they know a secret of it. With a
    `voucher`, a provider has named them. Else they hold the email address.

    `refusal`: what is raised where that opens nothing. `use_up` makes what showed it useless, in
    the transaction of what it opens. False if another request has done so. `language` is that of
    a new account."""

    email: str
    refusal: Problem
    account: Account | None = None
    use_up: Callable[[], bool] = nothing_to_use_up
    language: str = ""
    voucher: Voucher | None = None


def by_code(request: Request) -> Identity:
    """`{email, code, request_id}`, or a caller's `{code, request_id}`. A captcha was solved when
    the code was asked for."""
    store = request.site.store
    caller = request.caller
    email_address = caller.email if caller else email_field(request)
    code = code_field(request, "code")
    request_id = text_field(request, "request_id", 64)
    with request.writing():
        confirmed = registration_with_code(
            request, email_address, code, request_id, is_sign_in=True
        )
        if confirmed:
            # This try was no guess. The code is used up only when it opens an account: the form may
            # lack the nickname of a new one, and then sends the code again.
            store.return_named_try(request_id)

    # A 401 would say that the caller's token is not valid.
    refusal_type = Forbidden if caller else Unauthorized
    refusal = refusal_type("验证码错误或已过期", Code.CODE_WRONG)
    if confirmed is None:  # after the transaction, which has counted the try
        raise refusal
    return Identity(
        email_address,
        refusal,
        use_up=functools.partial(store.drop_registration, request_id),
        language=confirmed.language,
    )


def by_password(request: Request) -> Identity:
    """`{email, password, captcha_token, factor?}`, or a caller's `{password}`."""
    if request.caller:
        return by_own_password(request)
    email_address = email_field(request)
    password = password_field(request)
    factor = factor_field(request)
    captcha = captcha_field(request)
    account = authenticated(request, email_address, password, captcha)
    check_second_factor(request, account, factor)
    return Identity(account.email, wrong_credentials(), account)


def by_own_password(request: Request) -> Identity:
    """The caller's `{password}`."""
    # A 401 would say that the caller's token is not valid.
    refusal = Forbidden("密码不对", Code.WRONG_PASSWORD)
    try:
        account = authenticated(request, request.me.email, password_field(request), captcha=None)
    except Unauthorized:
        raise refusal from None
    return Identity(account.email, refusal, account)


def by_voucher(request: Request) -> Identity:
    """`{voucher, voucher_secret}`: an identity provider has named somebody."""
    refusal = provider_refused()
    if request.caller:  # it signs in, and confirms nothing
        raise Forbidden("请用密码或邮件验证码确认", Code.PASSWORD_REQUIRED)
    store = request.site.store
    with request.writing():
        request.limit("login")
    voucher = voucher_in(request)
    return Identity(
        voucher.email,
        refusal,
        use_up=functools.partial(store.use_voucher, voucher.hash),
        language=voucher.language,
        voucher=voucher,
    )


def codes_for_widget(site: Site) -> Json:
    """`registration`: whether codes reach their readers, in a mailbox or on the owner's screen."""
    return {"registration": site.mailer.delivers or not site.config.server_public_url}


def providers_for_widget(site: Site) -> Json:
    """`providers`: the buttons. Without any, nothing."""
    buttons = [
        {"name": provider.name, "label": provider.shown_name}
        for provider in site.config.login_providers
    ]
    return {"providers": buttons} if buttons else {}


def nothing_for_widget(site: Site) -> Json:
    return {}


@dataclass(frozen=True)
class SignInWay:
    """A way to show who somebody is. `identify` reads the form, and raises a `Problem` if that does
    not show it. `for_widget`: what the settings in a list say of the way."""

    identify: Callable[[Request], Identity]
    for_widget: Callable[[Site], Json] = nothing_for_widget


# A form that has the field of this name takes this way.
SIGN_IN_WAYS = {
    "code": SignInWay(by_code, for_widget=codes_for_widget),
    "password": SignInWay(by_password),
    "voucher": SignInWay(by_voucher, for_widget=providers_for_widget),
}


def identity_in(request: Request) -> Identity:
    """Who the form shows somebody to be, by the first way whose field it has. Without any, the
    refusal is about the password."""
    for name, way in SIGN_IN_WAYS.items():
        if name in request.form:
            return way.identify(request)
    return by_password(request)


def account_for(request: Request, identity: Identity) -> Account:
    """The account that an identity opens, which may be a new one without a password. The caller
    holds the transaction: if a problem is raised, nothing is done, and nothing is used up."""
    if not identity.use_up():
        raise identity.refusal
    if identity.account:
        # It may have been changed since its secret was checked.
        account = valid_account(request.site.store, identity.account.id, identity.account.version)
    elif identity.voucher:
        account = account_of_person(request, identity, identity.voucher)
    else:
        account = account_of_holder(request, identity)
    remember_client(request, account)
    return account


def account_of_holder(request: Request, identity: Identity) -> Account:
    """The account with an email address, for its holder, or a new one.

    An admin needs the password. With the email address alone, somebody who gets into the mailbox
    could act as the admin unnoticed. To set a new password revokes the admin's tokens and sends an
    email."""
    if is_blocked_email(request.site, identity.email):
        raise identity.refusal
    account = request.site.store.account_with_email(identity.email)
    if account is None:
        return new_account(request, identity)
    if account.role == "admin":
        raise Forbidden("管理员请用密码登录", Code.PASSWORD_REQUIRED)
    return account


def account_of_person(request: Request, identity: Identity, voucher: Voucher) -> Account:
    """The account of a person that a provider has named, or a new one. It is found by issuer and
    subject, never by the email address alone."""
    account = request.site.store.account_of_identity(voucher.issuer, voucher.subject)
    if account is None:
        return new_account_of_person(request, identity, voucher)
    if is_blocked_email(request.site, account.email):
        raise identity.refusal
    if account.role == "admin":  # as in `account_of_holder`
        raise Forbidden("管理员请用密码登录", Code.PASSWORD_REQUIRED)
    return account


def new_account_of_person(request: Request, identity: Identity, voucher: Voucher) -> Account:
    """A new account with the email address that the provider vouches for. Where it vouches for
    none, or where the address has an account, its holder confirms that first: by code or password,
    with the voucher in the same form."""
    store = request.site.store
    if not voucher.verified or store.account_with_email(voucher.email):
        raise Forbidden("请用邮件验证码确认邮箱", Code.PROVIDER_EMAIL, email=voucher.email)
    if is_blocked_email(request.site, voucher.email):
        raise identity.refusal
    if not nickname_field(request, optional=True):
        # What the provider calls them is offered, never taken without a word.
        raise Forbidden("请填写昵称", Code.PROVIDER_NAME, nickname=voucher.nickname)
    account = new_account(request, identity)
    store.join_identity(voucher.issuer, voucher.subject, account.id, request.now)
    return account


def join_voucher(request: Request, account: Account) -> None:
    """Joins the identity of the form's voucher to an account. Its holder has just signed in by code
    or password. Admins sign in by password alone. The caller holds the transaction."""
    if account.role == "admin":
        return
    store = request.site.store
    voucher = voucher_in(request)
    owner = store.account_of_identity(voucher.issuer, voucher.subject)
    if owner and owner.id != account.id:
        raise Conflict("这个身份已经属于另一个账号", Code.PROVIDER_TAKEN)
    if not store.use_voucher(voucher.hash):
        raise provider_refused()
    if owner is None:
        store.join_identity(voucher.issuer, voucher.subject, account.id, request.now)
        store.add_email(request.now, joined_email(request.site, account))


def new_account(request: Request, identity: Identity) -> Account:
    nickname = nickname_field(request)
    check_nickname(request, nickname)
    return request.site.store.make_account(
        identity.email, nickname=nickname, password="", language=identity.language, now=request.now
    )


@route("POST", "/auth/login", Permission.PUBLIC)
def login(request: Request) -> Json:
    """The fields of a way to sign in, and `{nickname?}`, to `{token, nickname, role}`. A nickname
    is needed for a new account. With code or password, a voucher joins its identity to the
    account."""
    identity = identity_in(request)
    with request.writing():
        account = account_for(request, identity)
        if "voucher" in request.form and identity.voucher is None:
            join_voucher(request, account)
    token = make_token(account.claims, request.site.key, request.now)
    return {"token": token, "nickname": account.nickname, "role": account.role}


def holder_in(request: Request) -> Identity:
    """Does the same as `identity_in`, for a caller. `Forbidden` unless they hold the account. A
    token alone, which scripts of the blog can read, is not enough for what needs this. In the
    transaction of what is confirmed, `account_for` looks at the identity again, and uses up a
    code."""
    identity = identity_in(request)
    if identity.email != request.me.email:
        raise identity.refusal
    return identity


@route("POST", "/auth/logout", Permission.USER)
@route("POST", "/admin/logout", Permission.ADMIN)
def logout(request: Request) -> Json:
    """Revokes every token of the account, on all devices."""
    with request.writing():
        request.site.store.revoke_tokens(request.me.id)
    return {"success": True}


# The reader's own account


@route("GET", "/me", Permission.USER, pace=Pace.QUICK)
def get_me(request: Request) -> Json:
    """`?url=` to `{email, nickname, role, language, created_at, has_password, comments, answers,
    questions, follows, following?, identities?}`. `answers`: emails about replies are sent.
    `questions`: the caller is asked about comments that guests sign with their email address.
    `following`: emails about that page are sent. `identities`: what else signs the caller in."""
    store = request.site.store
    followed = store.followed(request.me.id)
    response = {
        **account_fields(request),
        "comments": store.count_comments_of(request.me.id),
        "follows": linked_pages(request, followed),
    }
    if "url" in request.query:
        response["following"] = query_page(request).key in [page.key for page in followed]
    if request.site.config.knows_others:
        response["identities"] = [
            {"id": identity_id(request.site, each), "provider": provider_of(request.site, each)}
            for each in store.identities_of(request.me.id)
        ]
    return response


def identity_id(site: Site, identity: JoinedIdentity) -> str:
    return short_hash(site.key, "identity", identity.issuer, identity.subject)


def provider_of(site: Site, identity: JoinedIdentity) -> str:
    """What a provider is called: as its button is, or by its host if the owner has ended it."""
    if identity.issuer == OWN_SITE:
        return site.config.blog_name
    for provider in site.config.login_providers:
        if provider.issuer.rstrip("/") == identity.issuer.rstrip("/"):
            return provider.shown_name
    return urllib.parse.urlsplit(identity.issuer).hostname or identity.issuer


@route("DELETE", "/me/identities", Permission.USER)
def part_identity(request: Request) -> Json:
    """`{id}` to `{success}`: one of `/me`, which no longer signs the caller in. `Conflict` if it is
    the last way: without a password, where no code arrives."""
    site = request.site
    wanted = text_field(request, "id", 64)
    with request.writing():
        joined = site.store.identities_of(request.me.id)
        found = [each for each in joined if identity_id(site, each) == wanted]
        if not found:
            raise NotFound("没有这个身份", Code.NOT_FOUND)
        has_another = len(joined) > 1 or request.me.password or site.mailer.delivers
        if not has_another:
            raise Conflict("这是最后一种登录方式，请先设置密码", Code.PROVIDER_LAST)
        site.store.part_identity(found[0])
    return {"success": True}


def account_fields(request: Request) -> Json:
    me = request.me
    subscriptions = request.site.store.subscriptions(request.subscriber)
    return {
        "email": me.email,
        "nickname": me.nickname,
        "role": me.role,
        "language": me.language,
        "created_at": beijing_time(me.created_at),
        "has_password": bool(me.password),
        "answers": subscriptions.get(0) != "no",
        "questions": request.site.store.wants_questions(request.subscriber),
    }


def linked_pages(request: Request, pages: Iterable[Page]) -> list[Json]:
    """`{page_url, page_link}` of each page."""
    origins = request.site.config.site_origins
    return [
        {"page_url": page.page_url, "page_link": own_link(page.page_url, origins)} for page in pages
    ]


@route("PATCH", "/me", Permission.USER)
def change_me(request: Request) -> Json:
    """`{nickname?, answers?, questions?}` or `{new_password, password}` to `{success, nickname,
    token?}`. A nickname is used for new comments. A new password revokes all older tokens. `code`
    and `request_id` can stand for the password."""
    me = request.me
    store = request.site.store
    nickname = nickname_field(request, optional=True)
    # The other fields are checked first, so that an invalid one uses up no code.
    if nickname not in ("", me.nickname):
        check_nickname(request, nickname)
    wants_emails = ""  # about replies
    if "answers" in request.form:
        wants_emails = "yes" if flag_field(request, "answers") else "no"
    wants_questions = None
    if "questions" in request.form:
        wants_questions = flag_field(request, "questions")
    new_password = None
    if "new_password" in request.form:
        new_password = confirmed_password(request)
    with request.writing():
        if nickname:
            store.set_nickname(me.id, nickname)
        if wants_emails:
            store.subscribe(request.subscriber, 0, wants_emails)
        if wants_questions is not None:
            store.set_questions(request.subscriber, wants_questions)
        if new_password:
            set_own_password(request, new_password)
        changed = store.account(me.id) or me
    response = {"success": True, "nickname": changed.nickname}
    if new_password:
        response["token"] = make_token(changed.claims, request.site.key, request.now)
    return response


@dataclass(frozen=True)
class NewPassword:
    """The hash of a password that the caller chose, and what shows that the caller is the holder
    of the account."""

    stored: str
    confirmed_by: Identity


def confirmed_password(request: Request) -> NewPassword:
    """The new password of the form. `Forbidden` unless the form shows that the caller is the
    holder."""
    password = new_password_field(request, "new_password", of_admin=request.is_admin)
    holder = holder_in(request)
    return NewPassword(hash_of(request.site, request.me.email, password), holder)


def set_own_password(request: Request, new_password: NewPassword) -> None:
    """Sets the caller's password, and tells them by email. The caller holds the transaction."""
    store = request.site.store
    account = account_for(request, new_password.confirmed_by)
    store.set_password(account.id, new_password.stored)
    remember_client(request, account)  # again: a new password makes the account forget all others
    store.add_email(request.now, changed_email(request.site, account))


@route("DELETE", "/me", Permission.USER)
def delete_me(request: Request) -> Json:
    """`{password, comments}` to `{success}`. `code` and `request_id` can stand for the password.
    `comments` is `keep` (without a name) or `delete`."""
    store = request.site.store
    me = request.me
    comments = choice_field(request, "comments", ("keep", "delete"))
    holder = holder_in(request)
    with request.writing():
        account_for(request, holder)
        if request.is_admin and len(store.admins()) == 1:
            raise Conflict("至少要有一位管理员", Code.LAST_ADMIN)
        for comment in store.comments_of(me.id):
            unteach_ham(request.site, comment)
        store.erase_account(me, request.subscriber, comments=comments == "delete")
    return {"success": True}


# -- Comments -----------------------------------------------------------------


# What several handlers need


def page_counts(site: Site, page: Page) -> Json:
    """`{total, views, page_likes}`, with the views that are not written yet."""
    return {
        "total": page.total,
        "views": page.views + site.views.waiting(page.key),
        "page_likes": page.page_likes,
    }


def full_comment(request: Request, comment_id: int) -> FullComment:
    """A comment of any status. `NotFound` if it was erased."""
    comment = request.site.store.comment(comment_id)
    if comment is None or not comment.content:
        raise NotFound("评论不存在", Code.COMMENT_GONE)
    return comment


def check_visible(request: Request, comment_id: int) -> None:
    """`NotFound` if readers cannot see the comment."""
    comment = request.site.store.comment(comment_id)
    if comment is None or comment.status != "visible":
        raise NotFound("评论不存在", Code.COMMENT_GONE)


# Reading


@route("GET", "/comments", Permission.ANYONE, public=True, pace=Pace.QUICK)
def get_comments(request: Request) -> Json:
    """`?url=` to comments of that page, and to its counts. Which ones:

    - `view=flat`, the default: all, as a flat list
    - `view=threads`: all, by threads
    - `thread=ID`: the replies of one thread
    - `since=MARK`: what has changed since a fragment was made

    Of the first three, `page` and `limit`, or `around`, choose a part, and `sort` the order of the
    first two."""
    name = query_page(request)
    request.depends_only_on(name)
    page = request.site.store.page_named(name)
    if "since" in request.query:
        return changes_since(request, name, page)
    thread_id = query_number(request, "thread", 0, NO_END)
    if thread_id:
        return replies_in_thread(request, page, thread_id)
    view = query_choice(request, "view", ("flat", "threads"))
    sort = query_choice(request, "sort", tuple(SORTS))
    if view == "threads":
        return list_of_threads(request, name, page, sort)
    return flat_list(request, name, page, sort)


def flat_list(request: Request, name: PageName, page: Page, sort: str) -> Json:
    """The visible comments of a page."""
    store = request.site.store
    part = part_asked_for(request, functools.partial(store.visible_before, page.id, sort))
    comments = store.visible_comments(page.id, sort, part.offset, part.limit)
    if part.is_view:
        note_view(request, name)
    return {
        "comments": in_list(request, comments),
        "page": part.number,
        "max_comment_length": request.site.config.comments_max_length,
        **page_counts(request.site, page),
    }


def list_of_threads(request: Request, name: PageName, page: Page, sort: str) -> Json:
    """The top-level comments of a page, each with its first replies."""
    store = request.site.store
    part = part_asked_for(request, functools.partial(store.threads_before, page.id, sort))
    roots = store.top_level_comments(page.id, sort, part.offset, part.limit)
    threads = threads_in_list(store, roots, part.limit)
    if sum(len(thread.comments) for thread in threads) > LONG_LIST:
        request.leave_event_loop(Pace.LONG)
    comments = in_list(request, roots)
    for comment, thread in zip(comments, threads, strict=True):
        comment["replies"] = in_list(request, thread.replies)
        comment["more_replies"] = thread.more_replies
    if part.is_view:
        note_view(request, name)
    return {
        "comments": comments,
        "page": part.number,
        "max_comment_length": request.site.config.comments_max_length,
        "threads": page.threads,
        "settings": list_settings(request, page),
        **page_counts(request.site, page),
    }


def replies_in_thread(request: Request, page: Page, thread_id: int) -> Json:
    """The replies of a thread, the oldest first. This is no view of the page, which was seen
    before."""
    store = request.site.store
    root = store.comment(thread_id)
    if root is None or root.page_id != page.id or root.parent_id or not root.shown:
        raise NotFound("评论不存在", Code.COMMENT_GONE)
    part = part_asked_for(request, functools.partial(store.replies_before, thread_id))
    replies = store.replies(thread_id, part.offset, part.limit)
    return {
        "comments": in_list(request, replies),
        "page": part.number,
        "max_comment_length": request.site.config.comments_max_length,
        **page_counts(request.site, page),
    }


MOST_CHANGES = 100  # since a fragment was made; of more, the list is read again


def changes_since(request: Request, name: PageName, page: Page) -> Json:
    """What readers could see change since a fragment was made that has this mark: comments that
    were added or changed, and the ids of those that are gone. With `reload`, the whole list must be
    read: too much has changed, or more than is known."""
    since = query_number(request, "since", 0, NO_END, least=0)
    changed = request.site.store.changed_comments(page.id, since, MOST_CHANGES + 1)
    is_known = page.gone_mark <= since <= page.mark
    reload = not is_known or len(changed) > MOST_CHANGES
    if len(changed) > LONG_LIST:
        request.leave_event_loop(Pace.LONG)
    if reload:
        changed = []
    else:  # otherwise the request for the list counts the view
        note_view(request, name)
    return {
        "comments": in_list(request, [comment for comment in changed if comment.shown]),
        "removed": [comment.id for comment in changed if not comment.shown],
        "mark": page.mark,
        "reload": reload,
        "max_comment_length": request.site.config.comments_max_length,
        "threads": page.threads,
        "settings": list_settings(request, page),
        **page_counts(request.site, page),
    }


@dataclass(frozen=True)
class ListPart:
    """A part of a list: its number, how many comments it can hold, and how many stand before it.
    `is_view`: whether somebody who asks for it has opened the page."""

    number: int
    limit: int
    offset: int
    is_view: bool


def part_asked_for(request: Request, count_before: Callable[[int], int]) -> ListPart:
    """The part of a list that the query names, by its number or by the id of a comment that stands
    there. `count_before`: how many comments of the list come before that one."""
    limit = query_number(request, "limit", request.site.config.comments_page_size, 100)
    number = query_number(request, "page", 1, 1_000_000)
    around = query_number(request, "around", 0, NO_END)
    # To count what stands before a comment takes long, too.
    if around or limit > LONG_LIST:
        request.leave_event_loop(Pace.LONG)
    if around:
        number = count_before(around) // limit + 1
    offset = (number - 1) * limit
    return ListPart(number, limit, offset, is_view=number == 1 and not around)


def in_list(request: Request, comments: Iterable[Comment]) -> list[Json]:
    """Comments as the caller may see them, tombstones included."""
    config = request.site.config
    is_admin = request.is_admin
    return [comment.in_list(config, is_admin=is_admin) for comment in comments]


def note_view(request: Request, name: PageName) -> None:
    """Counts a view of the page. `send_cached` counts one each time it sends this response from
    the cache."""
    request.cache_entry.viewed = name
    if is_real_view(request.environ):
        count_view(request.site, request.client, name)


MOST_REPLIES = 100  # of a thread in a list
MOST_REPLIES_IN_LIST = 1000
REPLY_CHARACTERS = 300_000  # of all replies in a list


@dataclass(frozen=True)
class Thread:
    """A thread in a list: its top-level comment, its first replies, and how many more there are."""

    root: Comment
    replies: list[Comment]
    more_replies: int

    @property
    def comments(self) -> list[Comment]:
        return [self.root, *self.replies]


def threads_in_list(store: Store, roots: list[Comment], limit: int) -> list[Thread]:
    """The threads of these top-level comments. A list of `limit` threads must have neither too many
    replies nor too much text, but each thread shows one."""
    most = min(MOST_REPLIES, MOST_REPLIES_IN_LIST // limit)
    by_thread = store.first_replies([root.id for root in roots], most + 1)
    threads = []
    for root in roots:
        replies = by_thread[root.id]
        shown: list[Comment] = []
        characters = 0
        for reply in replies[:most]:
            characters += len(reply.html)
            if shown and characters > REPLY_CHARACTERS // limit:
                break
            shown.append(reply)
        more_replies = 0
        if len(shown) < len(replies):
            more_replies = store.count_replies(root.id) - len(shown)
        threads.append(Thread(root, shown, more_replies))
    return threads


def list_settings(request: Request, page: Page) -> Json:
    """What the widget needs to know before it shows a form."""
    config = request.site.config
    settings = {
        "captcha": config.captcha_provider,
        "site_key": config.captcha_site_key,
        "login_required": config.comments_login_required,
        "hold": config.moderation_hold,
        "closed": page.is_closed(config, request.now),
        "edit_minutes": config.comments_edit_minutes,
        "policy_url": config.privacy_policy_url,
    }
    for way in SIGN_IN_WAYS.values():
        settings |= way.for_widget(request.site)
    return settings


@route("GET", "/pages", Permission.ANYONE, public=True, pace=Pace.QUICK)
def get_pages(request: Request) -> Json:
    """`?url=…&url=…`, up to 100, to the counts of these pages in the same order."""
    urls = request.query.get("url", [])
    if not 1 <= len(urls) <= 100:
        fault = Fault.INVALID if urls else Fault.MISSING
        raise BadField("请给出 1 到 100 个 url 参数", "url", fault)
    names = [valid_page(request, "url", url) for url in urls]
    request.depends_only_on(*names)
    pages = []
    for name in names:
        page = request.site.store.page_named(name)
        pages.append({"page_url": name.page_url, **page_counts(request.site, page)})
    return {"pages": pages}


@route("GET", "/comments/latest", Permission.ANYONE, public=True, pace=Pace.QUICK)
def get_latest(request: Request) -> Json:
    """`?limit=6`, up to 30, to the latest comments of the blog, each with its `page_title`."""
    latest = request.site.store.latest_comments(query_number(request, "limit", 6, 30))
    comments = in_list(request, latest)
    for shown, comment in zip(comments, latest, strict=True):
        shown["page_title"] = comment.page_title
    return {"comments": comments}


# Writing


def new_comment(request: Request) -> FullComment:
    """The comment in the form. Its page and its HTML are not known yet."""
    caller = request.caller
    if caller is None and request.site.config.comments_login_required:
        raise Unauthorized("请先登录再评论", Code.LOGIN_REQUIRED)
    email_address = email_field(request, optional=True)
    nickname = nickname_field(request, optional=caller is not None)
    if caller:
        nickname = nickname or caller.nickname
        email_address = ""  # it stands with the account
    website = website_field(request)
    content = content_field(request)
    parent_id = number_field(request, "parent_id", optional=True)
    country, location = location_of(request)
    return FullComment(
        parent_id=parent_id or None,
        user_id=caller.id if caller else None,
        nickname=nickname,
        email=email_address,
        website=website,
        content=content,
        ip=request.client.ip,
        country=country,
        location=location,
        created_at=request.now,
        language=language_of(optional_field(request, "lang"), nickname + content),
    )


def location_of(request: Request) -> Place:
    """Where the client is, as far as readers may see it."""
    if not request.site.config.privacy_show_location:
        return NOWHERE
    return request.site.places.of(request.client.ip)


@route("POST", "/comments", Permission.ANYONE, pace=Pace.WRITING)
def post_comment(request: Request) -> Json:
    """`{page_url, nickname, content, captcha_token, parent_id?, email?, website?, lang?,
    page_title?}` to `{success, comment, edit_token?}`: guests may edit with the edit token."""
    store = request.site.store
    name = page_field(request, "page_url")
    title = title_field(request, name)
    new = new_comment(request)
    if len(new.content) > LONG_TEXT:
        request.leave_event_loop(Pace.WAITING)
    check_nickname(request, new.nickname)
    captcha, doubt = captcha_of_comment(request, new.content)

    # What may stand in the way is looked at twice: before the costly work, which must not be done
    # in the transaction, and in it. Meanwhile, another request may have closed the page, hidden the
    # parent, made the same comment, or given an admin this nickname.
    _, earlier = page_and_earlier(request, name, new, captcha)
    if earlier:
        return posted(request, earlier.comment, may_edit=earlier.is_same_author)
    request.check_limit("comment")
    new = replace(new, html=safe_html(new.content))
    verdict = verdict_on(request, new, doubt)

    with request.writing():
        check_nickname(request, new.nickname)
        page, earlier = page_and_earlier(request, name, new, captcha)
        if earlier:
            return posted(request, earlier.comment, may_edit=earlier.is_same_author)
        if not page.id:
            page = add_page(request, name)
        verdict = within_limits(request, verdict)
        new = replace(new, page_id=page.id, held=verdict.held)
        comment = store.insert_comment(new, verdict.status, request.now)
        keep_title(store, page, title, comment)
        if captcha:
            store.note_spent_captcha(captcha.signature, captcha.expires_at, comment.id)
        store.notify(comment, request.now)
        if new.email:
            store.notify_holder(comment.id, request.now)
        if verdict.status != "spam" and not request.is_admin:
            tell_chats(request.site, comment.id, "created")
        return posted(request, comment, may_edit=True)


def title_field(request: Request, name: PageName) -> str:
    """The title of the page that a comment was written on, as that page says it. "" unless the page
    is the blog's own: others may say anything."""
    text = text_field(request, "page_title", BODY_LIMIT, optional=True)
    config = request.site.config
    sender = request.environ.get("HTTP_ORIGIN", "")
    if sender not in config.site_origins or is_foreign(name.page_url, config.site_origins):
        return ""
    return proper_title(text, config.blog_name)


def keep_title(store: Store, page: Page, title: str, comment: Comment) -> None:
    """Gives a page the title that came with a comment, unless it has one. Anybody can forge a
    title, so readers see it only while they see the comment, and moderators judge both."""
    source = "comment" if comment.status == "visible" else "held"
    if title and comment.status != "spam" and page.takes_title_of(source):
        store.set_title(page.id, title, source, comment.id)


@dataclass(frozen=True)
class EarlierComment:
    """The comment that the same request made before: after a double click, or when its response was
    lost."""

    comment: Comment
    # Its captcha was spent on that comment. Otherwise it may be of anybody: what a guest wrote can
    # be repeated.
    is_same_author: bool


def captcha_of_comment(request: Request, content: str) -> tuple[Captcha | None, str]:
    """The captcha of the form, and the doubt about it, as `moderate_text` takes it."""
    try:
        captcha = captcha_field(request)
    except CaptchaDown:
        return None, "captcha_down"
    is_too_fast = came_too_fast(captcha, content, request.now)
    return captcha, "fast" if is_too_fast else ""


def page_and_earlier(
    request: Request, name: PageName, new: FullComment, captcha: Captcha | None
) -> tuple[Page, EarlierComment | None]:
    """The page of a new comment, and what the same request made before, None if this is the first
    time. `Problem` if the comment cannot be written there."""
    page = request.site.store.page_named(name)
    check_parent(request, page, new.parent_id)
    earlier = earlier_comment(request, replace(new, page_id=page.id), captcha)
    # On a page that was closed meanwhile, the same request still finds what it has made.
    if earlier is None and page.is_closed(request.site.config, request.now):
        raise Forbidden("这里的评论已关闭", Code.PAGE_CLOSED)
    return page, earlier


def check_parent(request: Request, page: Page, parent_id: int | None) -> None:
    """`NotFound` if readers of the page cannot see the comment that is replied to."""
    if parent_id is None:
        return
    parent = request.site.store.comment(parent_id)
    if parent is None or parent.page_id != page.id or parent.status != "visible":
        raise NotFound("要回复的评论不存在", Code.PARENT_GONE)


def earlier_comment(
    request: Request, new: FullComment, captcha: Captcha | None
) -> EarlierComment | None:
    """The comment that the same request made before. `Forbidden` if its captcha was spent on
    another comment."""
    store = request.site.store
    spent_on = store.spent_on(captcha.signature) if captcha else None
    if request.site.config.limits_enabled:
        same = store.same_comment(new)
        if same:
            return EarlierComment(same, is_same_author=same.id == spent_on)
    if spent_on is None:
        return None
    comment = store.comment(spent_on)
    if comment is None or not new.says_the_same(comment):
        raise Forbidden("人机验证已用过，请重试", Code.CAPTCHA_FAILED)
    return EarlierComment(comment, is_same_author=True)


def verdict_on(request: Request, comment: FullComment, doubt: str = "") -> Verdict:
    """The verdict on a text. An admin's is always visible."""
    if request.is_admin:
        return Verdict("visible", "")
    if request.caller:
        comment = replace(comment, email=request.caller.email)
    return moderate_text(request.site, comment, doubt)


def add_page(request: Request, name: PageName) -> Page:
    """Adds a page within the client's rate limit."""
    request.limit("new_page")
    return request.site.store.add_page(name.key, name.page_url, request.now)


def within_limits(request: Request, verdict: Verdict) -> Verdict:
    """Counts a text against the rate limits. `Problem` if the client's is used up. In a flood,
    when that of all clients is used up, what would be shown waits."""
    request.limit("comment")
    is_flood = not take_uses(request.site, Use("all_comments"))
    if is_flood and verdict.status == "visible" and not request.is_admin:
        log.warning("too many comments: further ones wait for approval")
        return replace(verdict, status="waiting", held="flood")
    return verdict


def posted(request: Request, comment: Comment, *, may_edit: bool) -> Json:
    """The response to a new comment, or to one that was there. `may_edit`: a guest gets a token."""
    response = as_author_sees(request, comment)
    if may_edit and request.caller is None:
        response["edit_token"] = edit_token(request, comment)
    return response


def as_author_sees(request: Request, comment: Comment) -> Json:
    """`{success, comment}`. Authors see `waiting` instead of `spam`, so that spammers learn
    nothing."""
    status = comment.status if comment.status == "visible" else "waiting"
    shown = comment.for_readers(request.site.config, is_admin=request.is_admin)
    return {"success": True, "comment": {**shown, "status": status}}


def edit_token(request: Request, comment: Comment) -> str:
    """The token depends on the key, so a backup without the key gives no right to edit. It also
    depends on the time, since an id can be used again after `restore`."""
    return short_hash(request.site.key, "edit", comment.id, comment.created_at)


@route("POST", "/comments/preview", Permission.ANYONE)
def preview(request: Request) -> Json:
    """`{content}` to the `{html}` that it would be shown as."""
    content = content_field(request)
    request.limit("preview")
    return {"html": safe_html(content)}


@route("PATCH", "/comments/<comment_id:id>", Permission.ANYONE)
def edit_comment(request: Request, comment_id: int) -> Json:
    """`{content, edit_token?}` to `{success, comment}`, within `edit_minutes`."""
    store = request.site.store
    content = content_field(request)
    comment = editable_comment(request, comment_id)
    if content == comment.content:
        return as_author_sees(request, comment)
    request.check_limit("comment")
    markup = safe_html(content)
    verdict = verdict_on(request, replace(comment, content=content, html=markup))

    with request.writing():
        # Meanwhile, the comment may have been moderated or deleted.
        comment = editable_comment(request, comment_id)
        verdict = verdict_after_edit(comment, within_limits(request, verdict))
        unteach_ham(request.site, comment)
        store.update_comment(replace(comment, content=content, html=markup), request.now)
        if comment.status != "spam":
            store.change_status(comment.id, verdict.status, request.now)
            store.set_held(comment.id, verdict.held)
        # The owner looks at what waits. About a visible comment, there was an email before.
        if verdict.status == "waiting":
            store.notify_owner(comment.id, request.now)
            tell_chats(request.site, comment.id, "created")
            if comment.user_id is None and comment.email:
                store.notify_holder(comment.id, request.now)
        return as_author_sees(request, full_comment(request, comment_id))


def verdict_after_edit(comment: FullComment, verdict: Verdict) -> Verdict:
    """`verdict` is that on the new text. An edit may hide a comment, and never shows it. Spam stays
    spam."""
    if comment.status == "spam" or verdict.status == "visible":
        return Verdict(comment.status, comment.held)
    return verdict


def editable_comment(request: Request, comment_id: int) -> FullComment:
    """A comment that the caller may edit now."""
    comment = own_comment(request, comment_id)
    if is_too_late(request, comment):
        raise Forbidden("已超过可修改的时间", Code.EDIT_LATE)
    return comment


def own_comment(request: Request, comment_id: int) -> FullComment:
    """A comment that the caller may change. `NotFound` for all others."""
    token = optional_field(request, "edit_token")
    comment = full_comment(request, comment_id)
    if comment.user_id is None:
        may_change = equal_in_constant_time(token, edit_token(request, comment))
    else:
        may_change = request.caller is not None and comment.user_id == request.caller.id
    if comment.status == "deleted" or not may_change:
        raise NotFound("评论不存在", Code.COMMENT_GONE)
    return comment


def is_too_late(request: Request, comment: Comment) -> bool:
    """Whether the time to edit a comment is over."""
    seconds = request.site.config.comments_edit_minutes * MINUTE
    return not is_recent(comment.created_at, request.now, seconds)


@route("DELETE", "/comments/<comment_id:id>", Permission.ANYONE)
def delete_comment(request: Request, comment_id: int) -> Json:
    """`{edit_token?}` to `{success, comment}`. An account may delete its comments at any time."""
    store = request.site.store
    with request.writing():
        comment = own_comment(request, comment_id)
        if is_too_late(request, comment) and comment.user_id is None:
            raise Forbidden("已超过可删除的时间", Code.EDIT_LATE)
        unteach_ham(request.site, comment)
        store.erase_comments([comment.id])
    gone = replace(comment, status="deleted")
    return {
        "success": True,
        "comment": {**gone.tombstone(request.site.config), "status": "deleted"},
    }


# Liking, following, reporting


@route("POST", "/comment/like", Permission.ANYONE, pace=Pace.WRITING)
def like_comment(request: Request) -> Json:
    """`{id, undo?}` to `{success, likes, liked}`. A second like changes nothing."""
    store = request.site.store
    comment_id = number_field(request, "id")
    undo = flag_field(request, "undo")
    with request.writing():
        check_visible(request, comment_id)
        request.limit("like_of_comment", comment_id)
        check_like_limits(request)
        visitor = visitor_of(request)
        if undo:
            likes = store.remove_like("comment", comment_id, visitor, request.now)
        else:
            likes = store.add_like("comment", comment_id, visitor, request.now)
    return {"success": True, "likes": likes, "liked": not undo}


@route("POST", "/page/like", Permission.ANYONE, pace=Pace.WRITING)
def like_page(request: Request) -> Json:
    """`{page_url, undo?}`, or `url` for `page_url`, to `{success, page_likes, liked}`."""
    store = request.site.store
    url_field = "url" if "url" in request.form else "page_url"
    name = page_field(request, url_field)
    undo = flag_field(request, "undo")
    with request.writing():
        page = store.page_named(name)
        if not page.id and not undo:
            page = add_page(request, name)
            take_uses_or_refuse(request.site, Use("all_new_pages"))
        check_like_limits(request)
        visitor = visitor_of(request)
        if undo:
            likes = store.remove_like("page", page.id, visitor, request.now)
        else:
            likes = store.add_like("page", page.id, visitor, request.now)
    return {"success": True, "page_likes": likes, "liked": not undo}


def check_like_limits(request: Request) -> None:
    """Counts a like that is added or taken back. `Problem` if a rate limit is used up."""
    request.limit("like")
    take_uses_or_refuse(request.site, Use("all_likes"), text="点赞的人太多，请稍后再试")


@route("POST", "/page/follow", Permission.USER)
def follow_page(request: Request) -> Json:
    """`{page_url, undo?, lang?}` to `{success, following}`: emails about new comments there."""
    store = request.site.store
    name = page_field(request, "page_url")
    undo = flag_field(request, "undo")
    language = language_of(optional_field(request, "lang"), request.me.nickname)
    with request.writing():
        request.limit("follow")
        page = store.page_named(name)
        if not undo:
            if not page.id:
                page = add_page(request, name)
            store.follow(request.me.id, page.id, language)
        elif page.id:  # 0 would stand for all pages
            store.unfollow(request.me.email, page.id)
    return {"success": True, "following": not undo}


@route("POST", "/comments/<comment_id:id>/report", Permission.ANYONE)
def report_comment(request: Request, comment_id: int) -> Json:
    """`{reason?}` to `{success}`: asks the owner to look at the comment again."""
    store = request.site.store
    reason = line_field(request, "reason", 500)
    block = matching_block(request.site, Target(ip=request.client.ip))
    with request.writing():
        check_visible(request, comment_id)
        request.limit("report")
        take_uses_or_refuse(request.site, Use("all_reports"), text="举报的人太多，请稍后再试")
        visitor = visitor_of(request)
        if block:
            return {"success": True}
        report_id = store.add_report(comment_id, visitor, reason, request.now)
        if report_id:
            store.notify_owner(comment_id, request.now)
            tell_chats(request.site, comment_id, "reported", report_id)
    return {"success": True}


# What is stored of a reader


@route("GET", "/me/export", Permission.USER, pace=Pace.LONG)
def export_me(request: Request) -> Json:
    """All that is stored: `{account, sign_ins, identities, comments, follows, muted, likes,
    page_likes, reports}`. `sign_ins`: when the account last signed in from each network that it is
    known by. `identities`: under which names identity providers know the holder."""
    request.limit("export")
    store = request.site.store
    me = request.me
    comments = store.comments_of(me.id)
    visitor = account_as_visitor(me.id)
    return {
        "account": account_fields(request),
        "sign_ins": [beijing_time(seen_at) for seen_at in store.sign_in_times(me.id)],
        "identities": [
            {
                "issuer": identity.issuer,
                "subject": identity.subject,
                "joined_at": beijing_time(identity.joined_at),
            }
            for identity in store.identities_of(me.id)
        ],
        "comments": [as_author_sees(request, comment)["comment"] for comment in comments],
        "follows": linked_pages(request, store.followed(me.id)),
        "muted": linked_pages(request, store.muted(request.subscriber)),
        "likes": [{"id": comment_id} for comment_id in store.liked_comments(visitor)],
        "page_likes": [{"page_url": page_url} for page_url in store.liked_pages(visitor)],
        "reports": [
            {
                "id": report.comment_id,
                "reason": report.reason,
                "reported_at": beijing_time(report.reported_at),
            }
            for report in store.reports_of(visitor)
        ],
    }


# -- Pages --------------------------------------------------------------------


# How browsers write in a language


@dataclass(frozen=True)
class Locale:
    """What the widget says in a language, and how browsers write dates, numbers and countries
    there."""

    tag: str
    texts: Mapping[str, str]
    country_names: Mapping[str, str]
    months: list[str]
    day_format: str
    day_and_time_format: str
    thousands_separator: str
    least_separated: int  # the smallest number in which it stands
    # By plural form: its numbers below 200, such as `2-4 22-24`. Above, the last two digits decide.
    plural_numbers: Mapping[str, str]

    def count(self, n: int) -> str:
        """How many comments there are, such as `1 comment`."""
        text = self.texts.get("count") or self.texts[f"count_{self.plural_form(n)}"]
        return text.replace("{n}", self.number(n))

    def plural_form(self, n: int) -> str:
        representative = n if n < 200 else 100 + n % 100
        for form, numbers in self.plural_numbers.items():
            if representative in numbers_in(numbers):
                return form
        return "other"

    def more(self, n: int) -> str:
        """How many more there are, such as `5 more`. "" for none."""
        return self.texts["more"].replace("{n}", self.number(n)) if n else ""

    def number(self, n: int) -> str:
        if n < self.least_separated:
            return str(n)
        return f"{n:,}".replace(",", self.thousands_separator)

    def day(self, at: datetime) -> str:
        return self.day_format.format(day=at.day, month=self.months[at.month - 1], year=at.year)

    def day_and_time(self, at: datetime) -> str:
        """The time with its zone: a page without scripts has readers anywhere."""
        shown_time = f"{at.hour:02}:{at.minute:02} {offset_of(at)}"
        return self.day_and_time_format.format(day=self.day(at), time=shown_time)

    def place(self, comment: Comment) -> str:
        """Where a comment was written, in this language. The database has it in Chinese."""
        if self.tag == "zh-CN" and comment.location:
            return comment.location
        return self.country_names.get(comment.country, comment.location)


def offset_of(at: datetime) -> str:
    """The zone of a time, such as UTC, UTC+8 or UTC-3:30."""
    offset = cast(timedelta, at.utcoffset())
    sign = "-" if offset < timedelta(0) else "+"
    hours, minutes = divmod(abs(offset) // timedelta(minutes=1), 60)
    if not offset:
        return "UTC"
    if not minutes:
        return f"UTC{sign}{hours}"
    return f"UTC{sign}{hours}:{minutes:02}"


def numbers_in(ranges: str) -> set[int]:
    """The numbers of `1 21-24`."""
    numbers: set[int] = set()
    for each in ranges.split():
        first, _, last = each.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


@functools.cache
def locales() -> dict[str, Locale]:
    """The locale of each language, by its name in `languages`."""
    return {name: locale_of(language) for name, language in languages().items()}


def locale_of(language: Language) -> Locale:
    forms = language.forms
    return Locale(
        tag=language.tag,
        texts=language.widget_texts,
        country_names=forms["country_names"],
        months=forms["months"],
        day_format=forms["day_format"],
        day_and_time_format=forms["day_and_time_format"],
        thousands_separator=forms["thousands_separator"],
        least_separated=forms["least_separated"],
        plural_numbers=forms["plural_numbers"],
    )


def page_language(request: Request, comments: list[Comment]) -> str:
    """The language that the blog's page or the link asks for; else that of most comments."""
    requested = query_text(request, "lang")
    if requested:
        return known_language(requested) or "en"
    counts = Counter(language_of(comment.language, comment.content) for comment in comments)
    most_common = counts.most_common(1)
    return most_common[0][0] if most_common else "en"


# The feed


# In XML 1.0. What there may be instead takes a hundred times as long to compile.
NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def with_query(path: str, **query: object) -> str:
    """A URL relative to that of the service."""
    return f"{path}?{urllib.parse.urlencode(query)}"


FEED_LENGTH = 50  # comments


@dataclass(frozen=True)
class Feed:
    """The newest comments of a page, or of all pages of the blog."""

    title: str
    feed_id: str
    path: str  # of the feed itself
    link: str  # opens the page, or the blog; "" if nothing does
    comments: Sequence[Comment]


def public_name(site: Site, page: Page) -> str:
    """What readers see a page called."""
    return name_of_page(page.public_title, page.page_url, site.config.site_origins)


def feed_of_page(site: Site, name: PageName) -> Feed:
    page = site.store.page_named(name)
    return Feed(
        title=f"{site.config.blog_name} · {public_name(site, page)}",
        feed_id=lasting_id(site.key, "page", page.key),
        path=with_query("feed.atom", url=page.page_url),
        link=own_link(page.page_url, site.config.site_origins),
        comments=site.store.visible_comments(page.id, "newest", 0, FEED_LENGTH),
    )


def feed_of_blog(site: Site) -> Feed:
    origins = site.config.site_origins
    return Feed(
        title=site.config.blog_name,
        feed_id=lasting_id(site.key, "site"),
        path="feed.atom",
        link=origins[0] if origins else "",
        comments=site.store.latest_comments(FEED_LENGTH),
    )


@route("GET", "/feed.atom", Permission.PUBLIC, public=True, pace=Pace.QUICK)
def get_feed(request: Request) -> Response:
    """`?url=` to the newest comments of a page, or of all pages of the blog (RFC 4287)."""
    site = request.site
    if "url" in request.query:
        name = query_page(request)
        request.depends_only_on(name)
        feed = feed_of_page(site, name)
    else:
        feed = feed_of_blog(site)
    changed_at = max([each.edited_at or each.created_at for each in feed.comments], default=0)
    text = templates()["feed.xml"].render(
        title=feed.title,
        feed_id=feed.feed_id,
        own_url=f"{site.config.server_public_url}/{feed.path}",
        link=feed.link,
        updated=rfc3339(changed_at),
        entries=[feed_entry(site, comment) for comment in feed.comments],
    )
    body = NOT_XML.sub("", text).encode()
    return Response(body, "application/atom+xml; charset=utf-8", cached_for(5 * MINUTE))


@dataclass(frozen=True)
class FeedEntry:
    """A comment as the feed shows it. `link` is "" if nothing opens its page."""

    entry_id: str
    author: str
    page: str
    link: str
    published: str
    updated: str
    markup: str


def feed_entry(site: Site, comment: Comment) -> FeedEntry:
    url = own_link(comment.page_url, site.config.site_origins)
    return FeedEntry(
        # With the time, since a number can be used again after `restore`.
        entry_id=lasting_id(site.key, "comment", comment.id, comment.created_at),
        author=name_of(texts_in(comment.language), comment),
        page=name_of_page(comment.page_title, comment.page_url, site.config.site_origins),
        link=comment_link(url, comment.id),
        published=rfc3339(comment.created_at),
        updated=rfc3339(comment.edited_at or comment.created_at),
        markup=clean(comment.html),
    )


def lasting_id(key: bytes, *parts: object) -> str:
    """An id that stays when `public_url` changes (RFC 4287, section 4.2.6)."""
    return f"urn:commentd:{short_hash(key, 'feed', *parts)}"


# Comments as they are shown: on the thread page and in a fragment


@dataclass(frozen=True)
class Display:
    """How comments are shown. `page_link` opens their page. It is "" if nothing does."""

    config: Config
    locale: Locale
    page_link: str

    def author(self, comment: Comment) -> str:
        """The name that is shown. Nobody's if the comment is not visible."""
        nickname = comment.nickname if comment.status == "visible" else ""
        return nickname or self.locale.texts["nobody"]

    def gone(self, comment: Comment) -> str:
        """What stands in the place of a comment that is not visible. "" for one that is."""
        if comment.status == "visible":
            return ""
        return self.locale.texts["unapproved" if comment.status == "waiting" else "comment"]


class ShownComment:
    """A comment as thread.html and fragment.html show it. What `#article` of embed.js shows stands
    in fragment.html too: the widget takes the comments over, and nothing may move then."""

    def __init__(self, display: Display, row: Comment, replied_to: str = "") -> None:
        """`replied_to` is the name of the author above, where its place does not show that."""
        self.display = display
        self.row = row
        self.replied_to = replied_to
        self.replies: list[ShownComment] = []  # that stand below it in a fragment
        self.more_replies = 0  # how many of them are left out
        self.gone = display.gone(row)
        self.comment = row.erased() if self.gone else row  # what readers may see of it
        self.author = display.author(row)
        self.at = time_of(row.created_at, display.config.site_timezone)

    @property
    def website(self) -> str:
        website = self.comment.website
        return website if website.startswith(("http:", "https:")) else ""

    @property
    def place(self) -> str:
        is_shown = self.display.config.privacy_show_location
        return self.display.locale.place(self.comment) if is_shown else ""

    @property
    def initial(self) -> str:
        return initial_of(self.author)

    @property
    def face(self) -> int:
        return face_of(self.author)

    @property
    def link(self) -> str:
        return comment_link(self.display.page_link, self.row.id) or f"#comment-{self.row.id}"

    @property
    def written_at(self) -> str:
        return rfc3339(self.row.created_at)

    @property
    def day(self) -> str:
        return self.display.locale.day(self.at)

    @property
    def day_and_time(self) -> str:
        return self.display.locale.day_and_time(self.at)

    @property
    def markup(self) -> str:
        return clean(self.comment.html)

    @property
    def markup_for_blog(self) -> str:
        """The HTML as a part of the blog's own page: keyboards can scroll code there, and a
        template engine such as Caddy's would run what is in braces."""
        return self.markup.replace("<pre>", '<pre tabindex="0">').replace("{", "&#123;")

    @property
    def more_label(self) -> str:
        """Says how many replies are left out. "" for none."""
        return self.display.locale.more(self.more_replies)

    @property
    def json_data(self) -> str:
        """What readers get of it, as JSON for the widget: without its Markdown and HTML, and
        without the IP address, since a fragment is kept outside of the service."""
        values = {"deleted": False, "waiting": False, **self.row.in_list(self.display.config)}
        for name in ("ip", "content", "html"):
            del values[name]
        return json.dumps(values, ensure_ascii=False)


def face_of(name: str) -> int:
    """The number from which an avatar has its colour. `embed.js` computes the same."""
    face = 7
    for character in name:
        face = (face * 31 + ord(character)) % 9973
    return face


def initial_of(name: str) -> str:
    """The text of an avatar: the first alphanumeric of a name, in upper case, with its accents.
    "" if it has none."""
    categories = "".join(unicodedata.category(character)[0] for character in name)
    found = re.search("[LN]M*", categories)
    return name[found.start() : found.end()].upper() if found else ""


# The thread page

THREADS_ON_PAGE = 20  # of the thread page
REPLIES_ON_PAGE = 10  # of each thread


@route("GET", "/thread", Permission.PUBLIC, public=True, pace=Pace.QUICK)
def get_thread(request: Request) -> Response:
    """`?url=&page=&lang=` to the comments of a page as HTML, the oldest first, for readers without
    JavaScript and for search engines."""
    config = request.site.config
    store = request.site.store
    name = query_page(request)
    request.depends_only_on(name)
    page = store.page_named(name)
    number = query_number(request, "page", 1, 1_000_000)
    offset = (number - 1) * THREADS_ON_PAGE
    roots = store.top_level_comments(page.id, "oldest", offset, THREADS_ON_PAGE)
    replies = store.first_replies([root.id for root in roots], REPLIES_ON_PAGE + 1)
    comments = [comment for root in roots for comment in (root, *replies[root.id])]
    if len(comments) > LONG_LIST:
        request.leave_event_loop(Pace.LONG)

    language = page_language(request, comments)
    url = page.page_url
    link = own_link(url, config.site_origins)
    display = Display(config, locales()[language], link)
    has_newer = number * THREADS_ON_PAGE < page.threads
    response = translated_page(
        request.site,
        "thread.html",
        language,
        title=texts_in(language)["thread_title"].format(page=public_name(request.site, page)),
        canonical=link or public_thread_link(config, url, number),
        back=link,
        older=thread_path(url, number - 1, language) if number > 1 else "",
        newer=thread_path(url, number + 1, language) if has_newer else "",
        feed=with_query("feed.atom", url=url),
        is_indexed=page.total > 0,  # anybody can link to a page without comments
        json_ld=linked_data(link or url, page, comments),
        widget_texts=display.locale.texts,
        threads=[plain_thread(display, root, replies[root.id]) for root in roots],
    )
    return replace(response, headers={**response.headers, **cached_for(5 * MINUTE)})


def thread_path(page_url: str, number: int, language: str) -> str:
    return with_query("thread", url=page_url, page=number, lang=language)


def public_thread_link(config: Config, page_url: str, number: int) -> str:
    """The URL of a thread page. "" where only a proxy knows that of the service."""
    if not config.server_public_url:
        return ""
    path = with_query("thread", url=page_url, page=number)
    return f"{config.server_public_url}/{path}"


@dataclass(frozen=True)
class PlainThread:
    """A thread as the thread page shows it: all replies stand in one list below its top-level
    comment."""

    root: ShownComment
    replies: list[ShownComment]
    has_more: bool  # whether not all replies are on that page
    link: str  # to where they are; "" if nothing opens that


def plain_thread(display: Display, root: Comment, replies: list[Comment]) -> PlainThread:
    """A thread with its first replies. `replies` may hold one more, which is not shown."""
    shown = replies[:REPLIES_ON_PAGE]
    return PlainThread(
        root=ShownComment(display, root),
        replies=[ShownComment(display, reply) for reply in shown],
        has_more=len(replies) > len(shown),
        link=comment_link(display.page_link, root.id),
    )


def linked_data(url: str, page: Page, comments: list[Comment]) -> str:
    """The comments of the page at that URL for search engines, as schema.org in JSON-LD."""
    shown = [
        {
            "@type": "Comment",
            "url": comment_link(url, comment.id),
            "text": comment.content,
            "datePublished": rfc3339(comment.created_at),
            "author": {"@type": "Person", "name": comment.nickname or "Anonymous"},
            "upvoteCount": comment.likes,
        }
        for comment in comments
        if comment.status == "visible"
    ]
    return json_in_html(
        {
            "@context": "https://schema.org",
            "@type": "WebPage",
            "@id": url,
            "url": url,
            **({"name": page.public_title} if page.public_title else {}),
            "commentCount": page.total,
            "comment": shown,
        }
    )


# The fragment: a thread as the widget shows it, as a part of the blog's HTML


# With the five minutes while a proxy renews it, what was deleted is gone after ten. While the
# service is down, nothing can be deleted.
FRAGMENT_CACHING = (
    "public, max-age=60, s-maxage=300, stale-while-revalidate=300, stale-if-error=604800"
)


def nested_thread(display: Display, thread: Thread) -> ShownComment:
    """The top-level comment of a thread with its first replies, nested as the widget does it. The
    third level is the deepest: replies to a comment on it stand beside that, and name its author.
    Where 2 and 5 reply to 1, and in a chain 3 replies to 2 and 4 to 3:

        1
            2
                3
                4  (names the author of 3)
            5
    """
    root = ShownComment(display, thread.root)
    root.more_replies = thread.more_replies
    shown = {thread.root.id: root}
    second_level: dict[int, ShownComment] = {}  # by the id of a third-level comment: the one above
    for row in thread.replies:
        # The parent may be left out: then the top-level comment stands for it.
        parent = shown.get(row.parent_id or 0, root)
        above = second_level.get(parent.row.id, parent)
        reply = ShownComment(display, row, replied_to="" if above is parent else parent.author)
        above.replies.append(reply)
        shown[row.id] = reply
        if above is not root:
            second_level[row.id] = above
    return root


def faces_in(display: Display, comments: list[Comment]) -> list[int]:
    """The faces of the avatars that are shown."""
    visible = [comment for comment in comments if comment.status == "visible"]
    return sorted({face_of(display.author(comment)) for comment in visible})


def with_faces(style: str, faces: Iterable[int]) -> str:
    """The style of a fragment with the colours of these avatars."""
    for face in faces:
        style += f".avatar[data-face='{face}'] {{ background-color: oklch(.52 .08 {face}) }}\n"
    return style


@route("GET", "/fragment.css", Permission.PUBLIC, public=True, pace=Pace.QUICK)
def get_fragment_css(request: Request) -> Response:
    """`?faces=`, numbers with dots between them, to the style of a fragment."""
    request.depends_only_on()
    faces = re.findall("[0-9]{1,4}", query_text(request, "faces"))[:1000]
    style = with_faces(request.site.fragment_style, map(int, faces))
    return Response(style.encode(), "text/css; charset=utf-8", cached_for(HOUR))


@dataclass(frozen=True)
class FragmentQuery:
    """What a request wants of a fragment."""

    sort: str
    limit: int
    heading: str | None  # "" asks for the usual one, None for none
    has_inline_style: bool


def query_fragment(request: Request) -> FragmentQuery:
    return FragmentQuery(
        sort=query_choice(request, "sort", tuple(SORTS)),
        limit=query_number(request, "limit", 10, 100),
        heading=query_text(request, "heading") if "heading" in request.query else None,
        has_inline_style=query_choice(request, "style", ("inline", "link")) == "inline",
    )


@route("GET", "/fragment", Permission.PUBLIC, public=True, pace=Pace.QUICK)
def get_fragment(request: Request) -> Response:
    """`?url=&lang=&sort=&limit=&style=&heading=` to the comments of a page as a part of its HTML.
    `heading`: as the widget's."""
    config = request.site.config
    store = request.site.store
    name = query_page(request)
    request.depends_only_on(name)
    asked = query_fragment(request)
    if asked.limit > LONG_LIST:
        request.leave_event_loop(Pace.LONG)
    # Read before its comments, so that the mark is not newer than they are.
    page = store.page_named(name)
    roots = store.top_level_comments(page.id, asked.sort, 0, asked.limit)
    threads = threads_in_list(store, roots, asked.limit)
    comments = [comment for thread in threads for comment in thread.comments]
    if len(comments) > LONG_LIST:
        request.leave_event_loop(Pace.LONG)

    locale = locales()[page_language(request, comments)]
    display = Display(config, locale, own_link(page.page_url, config.site_origins))
    faces = faces_in(display, comments)
    face_names = ".".join(str(face) for face in faces)
    inline_style = ""
    if asked.has_inline_style:
        inline_style = f"<style>{with_faces(request.site.fragment_style, faces)}</style>"
    service = config.service_url  # "" where only a proxy knows it
    text = templates()["fragment.html"].render(
        page_url=name.page_url,
        page=page,
        is_closed=page.is_closed(config, request.now),
        locale=locale,
        texts=locale.texts,
        asked=asked,
        inline_style=inline_style,
        style_url=f"{service}/fragment.css?faces={face_names}",
        thread_url=f"{service}/{with_query('thread', url=name.page_url)}" if service else "",
        threads=[nested_thread(display, thread) for thread in threads],
        more=locale.more(max(0, page.threads - asked.limit)),
    )
    headers = {"Cache-Control": FRAGMENT_CACHING, "X-Robots-Tag": "noindex"}
    return Response(text.encode(), "text/html; charset=utf-8", headers)


# -- Assets -------------------------------------------------------------------


# For zlib: its largest window, and the head of a gzip file.
GZIP_BITS = zlib.MAX_WBITS + 16


@dataclass(frozen=True)
class Asset:
    """A file of `static/`, as it is served."""

    parts: Sequence[bytes]
    content_type: str

    @functools.cached_property
    def body(self) -> bytes:
        return b"".join(self.parts)

    @functools.cached_property
    def gzipped(self) -> bytes:
        """Made when a browser first asks: of all files it would take half of the start. Each part
        is coded by itself: a style, the texts of a language and a script have other letters."""
        packer = zlib.compressobj(zlib.Z_BEST_COMPRESSION, wbits=GZIP_BITS)
        packed = [packer.compress(part) + packer.flush(zlib.Z_BLOCK) for part in self.parts]
        return b"".join(packed) + packer.flush()


MIME = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
}

# What some served files are put together from, in order. All others are served as they lie in
# `static/`. A script finds a style that it has as a part in the constant MODULE_STYLE.
PARTS_OF = {
    "account.js": ("account.css", "account.js"),
    "code.js": ("code.css", "code.js"),
    "errors.js": ("errors.css", "errors.js"),
    "login.js": ("login.css", "login.js"),
    "reading.js": ("reading.css", "reading.js"),
    "writing.js": ("writing.css", "writing.js"),
    "admin.css": ("palette.css", "admin.css"),
    "home.css": ("palette.css", "home.css"),
    "thread.css": ("palette.css", "thread.css"),
}
# What is not served by itself: parts of others, with those of `embed.js` and of fragments.
NOT_SERVED = {
    *{part for parts in PARTS_OF.values() for part in parts} - PARTS_OF.keys(),
    *("widget.css", "picture.css", "fragment.css", "first_texts.json"),
}
FOLDERS_NOT_SERVED = ("languages", "terminal", "demo")
# The languages whose first texts stand in embed.js. The others cost a reader one request more.
TEXTS_AT_ONCE = ("en", "zh-CN")


def assets_with(picture: str) -> tuple[dict[str, Asset], str]:
    """The files that are served, by name, and their version. They are read once, so that no request
    names a file. `picture`: as in the settings; the widget shows it unless it is ""."""
    bodies = files_of_static() | files_of_texts()
    # By this, scripts and the admin page ask for others, so that nobody mixes two versions of the
    # program: see `check_asked_version`. What only embed.js gets is not in it: pages ask for that
    # without a version.
    version = hashlib.sha256(b"".join(bodies.values())).hexdigest()[:8]
    assets = {name: Asset([body], MIME[Path(name).suffix]) for name, body in bodies.items()}
    # Two of embed.js on a page would be refused if it defined its constants for the whole page.
    begin = b"'use strict'\n{\n" + constants(
        WIDGET_STYLE=widget_style(picture),
        # All languages. Those that get no texts here are loaded from a file.
        TEXTS={language.tag: None for language in languages().values()},
        ASSETS_VERSION=version,
    )
    parts = [begin, *texts_at_once(), bodies["embed.js"] + b"}\n"]
    assets["embed.js"] = Asset(parts, MIME[".js"])
    return assets, version


def admin_import_map(site: Site) -> str:
    """The import map of the admin page. By it, a browser that finds `from './texts.js'` in one of
    its modules asks for `texts.js?VERSION`."""
    modules = [name for name in site.assets if name.startswith("admin_page/")]
    urls = {f"./{name}": f"./{name}?{site.assets_version}" for name in modules}
    return packed_json({"imports": urls})


def files_of_static() -> dict[str, bytes]:
    """The files of `static/`, as browsers load them. What embed.js needs is not in it yet."""
    bodies = {}
    folder = static_folder()
    for path in sorted(folder.rglob("*")):
        is_served = path.name not in NOT_SERVED and path.parent.name not in FOLDERS_NOT_SERVED
        if path.suffix in MIME and is_served:
            name = path.relative_to(folder).as_posix()
            bodies[name] = b"".join(part_in(name, part) for part in PARTS_OF.get(name, (name,)))
    return bodies


def part_in(served_file: str, part: str) -> bytes:
    """A part as it stands in a served file."""
    if served_file.endswith(".js") and part.endswith(".css"):
        return constants(MODULE_STYLE=style_in(part))
    return (static_folder() / part).read_bytes()


def constants(**values: Any) -> bytes:
    """A line of a script for each constant that the script uses and does not define."""
    lines = [f"const {name} = {packed_json(value)}\n" for name, value in values.items()]
    return "".join(lines).encode()


def files_of_texts() -> dict[str, bytes]:
    """What the widget and the admin page say, in the files in which they load that."""
    bodies = {}
    for language in languages().values():
        first = first_texts(language)
        if language.tag not in TEXTS_AT_ONCE:
            bodies[f"words/first-{language.tag}.json"] = packed_json(first).encode()
        of_providers = provider_texts(language)
        bodies[f"words/provider-{language.tag}.json"] = packed_json(of_providers).encode()
        apart = first | of_providers
        later = {key: text for key, text in language.widget_texts.items() if key not in apart}
        bodies[f"words/{language.tag}.json"] = packed_json(later).encode()
        bodies[f"words/admin-{language.tag}.json"] = packed_json(language.admin_texts).encode()
    return bodies


def texts_at_once() -> Iterator[bytes]:
    """The lines of embed.js with the texts that stand in it, a part for each language."""
    for language in languages().values():
        if language.tag in TEXTS_AT_ONCE:
            texts = packed_json(first_texts(language))
            yield f"TEXTS[{packed_json(language.tag)}] = {texts}\n".encode()


def first_texts(language: Language) -> dict[str, str]:
    """What the widget says in a language before a reader does anything."""
    return {
        key: text
        for key, text in language.widget_texts.items()
        # A text with a number has one form or more: `count_one`, `count_other`.
        if key in first_keys() or key.rpartition("_")[0] in first_keys()
    }


def provider_texts(language: Language) -> dict[str, str]:
    """What the widget says about identity providers, which few blogs have."""
    return {key: text for key, text in language.widget_texts.items() if key.startswith("provider_")}


@functools.cache
def first_keys() -> set[str]:
    return {*json.loads((static_folder() / "first_texts.json").read_bytes())}


def packed_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def widget_style(picture: str) -> str:
    """The style of the widget, in which `SERVICE/` stands for the URL of the service."""
    style = style_in("widget.css")
    return style + style_in("picture.css") if picture else style


def fragment_style(config: Config) -> str:
    style = widget_style(config.site_picture) + style_in("fragment.css")
    return style.replace("SERVICE/", f"{config.service_url}/")


def style_in(file: str) -> str:
    return (static_folder() / file).read_text("utf-8")


@route("GET", "/<name>", Permission.PUBLIC, public=True, pace=Pace.QUICK)
def get_asset(request: Request, name: str) -> Response:
    return asset_response(request, name)


@route("GET", "/admin_page/<name>", Permission.PUBLIC, public=True, pace=Pace.QUICK)
def get_admin_module(request: Request, name: str) -> Response:
    return asset_response(request, f"admin_page/{name}")


@route("GET", "/words/<name>", Permission.PUBLIC, public=True, pace=Pace.QUICK)
def get_texts(request: Request, name: str) -> Response:
    return asset_response(request, f"words/{name}")


def asset_response(request: Request, name: str) -> Response:
    request.depends_only_on()
    asset = request.site.assets.get(name)
    if asset is None:
        raise no_such_url()
    if name not in FOR_ANY_VERSION:
        check_asked_version(request)
    # Every page can read it, so that the widget can say that the page may not show comments.
    headers = {**cached_for(HOUR), "Access-Control-Allow-Origin": "*"}
    if not asked_version(request):
        # After an update it is another file. A browser that kept it finds out: see embed.js.
        headers["Cache-Control"] += ", s-maxage=60"
    return Response(asset.body, asset.content_type, headers, gzipped=asset.gzipped)


# Pages of blogs load the first two, with any query that their owners like, and a widget of another
# version loads the last one.
FOR_ANY_VERSION = ("embed.js", "loader.js", "outdated.js")


def asked_version(request: Request) -> str:
    """The version that a script asks for another file by; "" if none. Where that failed once, a
    number follows: see `load` in embed.js."""
    query = re.fullmatch(r"([0-9a-f]{8})(?:-\d+)?", request.environ["QUERY_STRING"])
    return query[1] if query else ""


def check_asked_version(request: Request) -> None:
    """`NotFound` for a file of another version of the program: the page was opened before an
    update, or has embed.js from a cache. With a file of today, its scripts might fail in odd ways.
    Refused, they ask the reader to load the page again."""
    if asked_version(request) not in ("", request.site.assets_version):
        raise NotFound("评论服务已更新，请重新加载页面", Code.VERSION_GONE)


# The media types of pictures, by their first bytes. SVG is not among them, since it may hold
# scripts.
PICTURES = {
    rb"\x89PNG\r\n": "image/png",
    rb"\xff\xd8\xff": "image/jpeg",
    rb"(?s)RIFF....WEBP": "image/webp",
}
MOST_PICTURE_BYTES = 100_000


def read_picture(file: str) -> tuple[bytes, str]:
    """The bytes of a picture and its media type."""
    body = Path(file).read_bytes()
    if len(body) <= MOST_PICTURE_BYTES:
        for pattern, media_type in PICTURES.items():
            if re.match(pattern, body):
                return body, media_type
    raise ValueError("no PNG, JPEG or WebP of at most 100 kB")


@route("GET", "/picture", Permission.PUBLIC, public=True)
def get_picture(request: Request) -> Response:
    """The picture of `[site] picture`."""
    request.depends_only_on()
    try:
        body, content_type = read_picture(request.site.config.site_picture)
    except (OSError, ValueError):  # there is none, or `check` says why
        raise no_such_url() from None
    return Response(body, content_type, cached_for(HOUR))


# -- Render -------------------------------------------------------------------

# Comments in the HTML of a page

# A name and, after `=`, a value in one of three spellings.
ATTRIBUTE = re.compile(
    r"""(?sx)
    (?P<name> [^\s=>"'/]+ )
    (?:
        \s*=\s*
        (?: "(?P<double_quoted> [^"]* )" | '(?P<single_quoted> [^']* )' | (?P<bare> [^\s"'>]+ ) )
    )?
    """
)
# An HTML comment or an opening tag. What is never closed goes on to the end of the page. The regex
# never goes back (`*+`), so its time grows no faster than the page.
PIECE = re.compile(
    r"""(?isx)
    <!-- .*? (?: --> | \Z )
    |
    < (?P<tag> [a-z][^\s/>]*+ )
    (?:
        [^>=]++
        # As HTML has it, a quote means something after `=` only.
        | = \s*+ (?: "[^"]*+(?:"|\Z) | '[^']*+(?:'|\Z) | [^\s>]*+ )
    )*+
    (?: > | \Z )
    """
)
WIDGET_ELEMENT = "commentd-thread"
# Elements whose content is text, is not shown, or is ours: there are no tags in it.
OPAQUE = ("script", "style", "textarea", "title", "noscript", "template", WIDGET_ELEMENT)
CLOSING_TAGS = {name: re.compile(rf"(?i)</{name}\s*>") for name in OPAQUE}
# The line with which nginx or Caddy puts the comments in.
INCLUDE = re.compile(r'<!--# (?:include|httpInclude) .*"/commentd-fragment')
OLD_MARK = re.compile(r"""(?i)\sdata-mark\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""")


@dataclass(frozen=True)
class Piece:
    """An HTML comment in a page, or an opening tag. That of an opaque element stands for the whole
    element."""

    start: int
    end: int
    text: str  # the comment or the tag, as the page has it
    tag: str  # its name in lower case; "" for a comment
    is_closed: bool = True  # false for an opaque element that has no end


def pieces_of(content: str) -> Iterator[Piece]:
    end = 0
    while found := PIECE.search(content, end):
        end = found.end()
        tag = (found["tag"] or "").lower()
        is_closed = True
        if tag in CLOSING_TAGS:
            closing_tag = CLOSING_TAGS[tag].search(content, end)
            is_closed = closing_tag is not None
            end = closing_tag.end() if closing_tag else len(content)
        yield Piece(found.start(), end, found[0], tag, is_closed)


def attributes_in(tag: str) -> dict[str, str]:
    """The attributes of a tag, by name in lower case. The first one of a name counts."""
    values: dict[str, str] = {}
    for attribute in ATTRIBUTE.finditer(tag):
        value = attribute["double_quoted"] or attribute["single_quoted"] or attribute["bare"] or ""
        values.setdefault(attribute["name"].lower(), html.unescape(value))
    return values


@dataclass(frozen=True)
class Slot:
    """Where a page has its comments, or is to have them."""

    start: int
    end: int
    opening_tag: str = ""  # of the `<commentd-thread>` that stands there, if one does


@dataclass(frozen=True)
class BuiltPage:
    """A page of a built site."""

    content: str
    language: str  # of its first tag
    canonical: str  # its canonical link
    slots: list[Slot]  # in their order


def read_built_page(content: str, script_urls: Strings) -> BuiltPage:
    """Finds what decides on the comments of a page. `script_urls`: how the URLs of the widget's
    scripts end. `ValueError` if an element for comments has no end."""
    pieces = [*pieces_of(content)]
    return BuiltPage(
        content=content,
        language=language_in(pieces),
        canonical=canonical_in(pieces),
        slots=slots_in(pieces) or slots_behind_script(content, pieces, script_urls),
    )


def language_in(pieces: list[Piece]) -> str:
    tags = [piece.text for piece in pieces if piece.tag == "html"]
    return attributes_in(tags[0]).get("lang", "") if tags else ""


def canonical_in(pieces: list[Piece]) -> str:
    for piece in pieces:
        if piece.tag == "link":
            attributes = attributes_in(piece.text)
            if attributes.get("rel", "").lower() == "canonical":
                return attributes.get("href", "")
    return ""


def slots_in(pieces: list[Piece]) -> list[Slot]:
    """The elements for comments, and the lines with which nginx or Caddy would put them in."""
    slots = []
    for piece in pieces:
        if piece.tag == WIDGET_ELEMENT:
            if not piece.is_closed:
                raise ValueError("<commentd-thread> is not closed")
            slots.append(Slot(piece.start, piece.end, piece.text))
        elif INCLUDE.match(piece.text):
            slots.append(Slot(piece.start, piece.end))
    return slots


def slots_behind_script(content: str, pieces: list[Piece], script_urls: Strings) -> list[Slot]:
    """One slot, behind the widget's first script: there the widget shows comments if the page has
    no element for them. None if that script is in the head."""
    for piece in pieces:
        if piece.tag == "script":
            url = attributes_in(piece.text).get("src", "")
            if url.partition("?")[0].endswith(script_urls):
                is_in_head = re.search(r"(?i)</head>|<body", content[piece.end :])
                return [] if is_in_head else [Slot(piece.end, piece.end)]
    return []


def query_of_element(attributes: dict[str, str]) -> dict[str, str]:
    """What the attributes of a `<commentd-thread>` ask of its fragment, without values that the
    service would refuse."""
    query = {}
    if attributes.get("page"):
        query["url"] = attributes["page"]
    if "lang" in attributes:
        query["lang"] = attributes["lang"]
    if attributes.get("sort") in SORTS:
        query["sort"] = attributes["sort"]
    if re.fullmatch("[1-9][0-9]?|100", attributes.get("limit", "")):
        query["limit"] = attributes["limit"]
    if "heading" in attributes:
        query["heading"] = attributes["heading"]
    return query


def with_fragment(opening_tag: str, fragment: str) -> str:
    """The element of a page with the mark and the content of a fragment. All other attributes stay
    as the page has set them. A page without an element gets that of the fragment."""
    if not opening_tag:
        return fragment
    fragment_tag = next(pieces_of(fragment)).text
    mark = attributes_in(fragment_tag).get("data-mark", "")
    content = fragment.removeprefix(fragment_tag)
    own_attributes = OLD_MARK.sub("", opening_tag).removesuffix(">")
    return f'{own_attributes} data-mark="{mark}">{content}'


# The files of a built site


class Rendering(enum.Enum):
    """How a file was left that could be read."""

    CHANGED = enum.auto()  # in a dry run: would have been
    UNCHANGED = enum.auto()
    WITHOUT_SLOT = enum.auto()


@dataclass
class RenderingReport:
    counts: Counter[Rendering] = field(default_factory=Counter)
    skipped: list[str] = field(default_factory=list)  # a line for each file, which says why


class EndOfRendering(OperatorError):
    """The service or the disk failed, so the other pages would fail too."""


NOT_WRITABLE = (
    "this user can't write here (run it with --from as the user who owns the pages, in another "
    "folder than that of commentd.ini)"
)


@dataclass(frozen=True)
class BuiltSite:
    """The pages that a generator has made, into which comments are put."""

    folder: Path
    script_urls: tuple[str, ...]  # how the URLs of the widget's scripts end
    style: str  # as `GET /fragment` takes it
    fragment_of: Callable[[str], bytes]  # what `GET /fragment` responds to a query
    dry_run: bool

    def render(self) -> RenderingReport:
        report = RenderingReport()
        for path in self.pages():
            try:
                report.counts[self.render_file(path)] += 1
            except EndOfRendering as error:
                report.skipped.append(f"{path}: {error}; the pages after it stay as they are")
                break
            except (OSError, ValueError) as error:
                report.skipped.append(f"{path}: {getattr(error, 'strerror', None) or error}")
        return report

    def pages(self) -> list[Path]:
        """The HTML files. A page that has several names, by symbolic links, counts once: under its
        own name if that is in the folder too."""
        files = filter(Path.is_file, self.folder.rglob("*.html"))  # a folder may have such a name
        names: dict[Path, Path] = {}
        for path in sorted(files, key=lambda path: (path.is_symlink(), path)):
            names.setdefault(path.resolve(), path)
        return sorted(names.values())

    def render_file(self, path: Path) -> Rendering:
        """Puts the comments into a file. `OSError` or `ValueError` if it is skipped."""
        content = path.read_bytes()
        page = read_built_page(content.decode(errors="surrogateescape"), self.script_urls)
        if not page.slots:
            return Rendering.WITHOUT_SLOT
        content.decode()  # raises unless the page is UTF-8, as the fragment is
        rendered = self.with_comments(page, self.url_of(page, path))
        if rendered == page.content:
            return Rendering.UNCHANGED
        target = path.resolve()
        if not target.is_relative_to(self.folder.resolve()):
            raise ValueError(f"it is a link to {target}, which is outside of the folder")
        if not os.access(target.parent, os.W_OK):  # asked first, so that a dry run says it too
            raise ValueError(NOT_WRITABLE)
        if not self.dry_run:
            replace_file(target, rendered.encode())
        return Rendering.CHANGED

    def url_of(self, page: BuiltPage, path: Path) -> str:
        """What readers find the page at: its canonical link, or its place in the folder."""
        name = path.relative_to(self.folder).as_posix().removesuffix("index.html")
        own_url = f"http://page/{quoted_url(name)}"
        url = urllib.parse.urlsplit(urllib.parse.urljoin(own_url, page.canonical))
        return url._replace(scheme="", netloc="").geturl()

    def with_comments(self, page: BuiltPage, url: str) -> str:
        """The content of a page with its comments. `ValueError` if the service has none for it."""
        content = page.content
        for slot in reversed(page.slots):  # so that those before stay where they are
            query = {"url": url, "lang": page.language, "style": self.style}
            query |= query_of_element(attributes_in(slot.opening_tag))
            fragment = self.fragment_of(urllib.parse.urlencode(query)).decode().rstrip()
            is_whole = fragment.endswith(f"</{WIDGET_ELEMENT}>")
            if not (is_whole and fragment.startswith(f"<{WIDGET_ELEMENT} ")):
                raise ValueError(f"no fragment for {query['url']}: {fragment[:200]}")
            element = with_fragment(slot.opening_tag, fragment)
            content = content[: slot.start] + element + content[slot.end :]
        return content


@contextlib.contextmanager
def only_render_in(folder: Path, note_wait: Callable[[], object]) -> Iterator[None]:
    """Waits until no other `render` writes into the folder; `note_wait` is called if one does. The
    lock is on the folder itself, so that no file is added to what readers can download."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            note_wait()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


PART_PREFIX = ".commentd-"
PART_SUFFIX = ".part"


def delete_parts(folder: Path, now: float) -> None:
    """Deletes what a run left that was killed. What is young may be of a run in another folder,
    above or below this one."""
    for part in folder.rglob(f"{PART_PREFIX}*{PART_SUFFIX}"):
        with contextlib.suppress(OSError):
            if part.lstat().st_mtime < now - HOUR:
                part.unlink()


def replace_file(path: Path, content: bytes) -> None:
    """Gives a file another content, with the same rights and, if this user may, the same owner.
    Readers get the old one or the new one, never a part. The file that is written has a random
    name and is new, so that nobody can lead the bytes elsewhere by a link of that name."""
    kept = path.stat()
    descriptor, name = tempfile.mkstemp(PART_SUFFIX, PART_PREFIX, path.parent)
    part = Path(name)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
        with contextlib.suppress(PermissionError):
            os.chown(part, kept.st_uid, kept.st_gid)
        part.chmod(stat.S_IMODE(kept.st_mode))
        part.replace(path)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise EndOfRendering(error.strerror) from error
        raise
    finally:
        part.unlink(missing_ok=True)


# -- Admins -------------------------------------------------------------------


@route("GET", "/admin", Permission.PUBLIC, pace=Pace.QUICK)
def admin_page(request: Request) -> Response:
    site = request.site
    import_map = admin_import_map(site)
    return html_page(
        site,
        "admin.html",
        policy=policy_with(import_map),
        import_map=import_map,
        version=site.assets_version,
    )


# Signing in

RECOVERY_CODES = 10  # that an admin gets with an authenticator app


@route("GET", "/admin/captcha", Permission.PUBLIC, pace=Pace.QUICK)
def admin_captcha(request: Request) -> Json:
    """Always the proof of work, so that the owner gets in while the readers' captcha is down."""
    return own_captcha(request)


@route("POST", "/admin/login", Permission.PUBLIC)
def admin_login(request: Request) -> Json:
    """`{email, password, captcha_token, factor?, lang?}` to `{token, nickname, email}`. It opens
    /admin. The token of `/auth/login`, which scripts of the blog can read, does not."""
    email_address = email_field(request)
    password = password_field(request)
    factor = factor_field(request)
    captcha = captcha_field(request, own=True)
    try:
        account = authenticated(request, email_address, password, captcha)
        if account.role != "admin":
            raise wrong_credentials()
    except Unauthorized:  # rate limits bound how often a stranger writes this line
        place = masked(request.client.ip) or "somewhere"
        log.warning("a sign-in at /admin failed, from %s", place)
        raise
    check_second_factor(request, account, factor)
    with request.writing():
        note_admin(request, account)
        audit(request, "sign_in", by=account)
        return begin_admin_session(request, account)


def note_admin(request: Request, account: Account) -> None:
    """Who signs in at /admin is known from now on, and gets emails in the language of that page.
    The caller holds the transaction, as for `remember_client`."""
    remember_client(request, account)
    language = known_language(optional_field(request, "lang"))
    if language:
        request.site.store.set_language(account.id, language)


def begin_admin_session(request: Request, account: Account) -> Json:
    """The caller holds the transaction."""
    site = request.site
    device = device_of(request.environ.get("HTTP_USER_AGENT", ""))
    ip = masked(request.client.ip)
    country = site.places.of(request.client.ip).country
    session = site.store.add_admin_session(account.id, device, ip, country, request.now)
    token = make_token(account.claims, site.key, request.now, "admin", session)
    return {"token": token, "nickname": account.nickname, "email": account.email}


# What a User-Agent header calls them, and what people do. The first that it has counts: Edge also
# says that it is Chrome and Safari.
BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser": "Samsung Internet",
    "Firefox": "Firefox",
    "FxiOS": "Firefox",
    "CriOS": "Chrome",
    "Chrome": "Chrome",
    "Safari": "Safari",
}
SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "CrOS": "ChromeOS",
    "Mac OS X": "Mac",
    "Linux": "Linux",
}


def device_of(user_agent: str) -> str:
    """The browser and the system, as people call them: `Firefox, Windows`. "" for an unknown
    one."""
    browser = next((name for sign, name in BROWSERS.items() if sign in user_agent), "")
    system = next((name for sign, name in SYSTEMS.items() if sign in user_agent), "")
    return ", ".join(filter(None, [browser, system]))


def audit(
    request: Request,
    action: str,
    subject: object = "",
    detail: str = "",
    *,
    by: Account | None = None,
) -> None:
    """Adds a line to the audit log. Readers are in it by number only. `by`: an admin who signs in
    with this request. Without an account, the request comes from a link in an email."""
    admin_account = by or request.caller
    who = admin_account.nickname if admin_account else "mail"
    request.site.store.add_audit_entry(
        now=request.now, who=who, action=action, subject=str(subject), detail=detail
    )


def email_of_link(request: Request) -> str:
    """The email address that the one-time link in the form is for, "" if for any. `Forbidden` if
    the link is not valid."""
    link = text_field(request, "link", 64)
    email_address = request.site.store.admin_link_email(link, request.now)
    if email_address is None:
        raise Forbidden("链接已用过或已过期，请运行 commentd admin 再取一个", Code.LINK_INVALID)
    return email_address


@route("POST", "/admin/link", Permission.PUBLIC)
def admin_link(request: Request) -> Json:
    """`{link}` to `{email, known, admin}`: the email address of a one-time link, and whether it has
    an account and is an admin's."""
    request.limit("link")
    email_address = email_of_link(request)
    account = request.site.store.account_with_email(email_address)
    is_admin = account is not None and account.role == "admin"
    return {"email": email_address, "known": account is not None, "admin": is_admin}


@route("POST", "/admin/claim", Permission.PUBLIC)
def claim(request: Request) -> Json:
    """`{link, email, nickname, password, lang?}` to `{token, nickname, email}`: makes the account
    an admin's, with this password. A link for one email address needs no `email`, an existing
    account no `nickname`."""
    store = request.site.store
    email_address = email_of_link(request) or email_field(request)
    password = new_password_field(request, "password", of_admin=True)
    has_account = store.account_with_email(email_address) is not None
    nickname = nickname_field(request, optional=has_account)
    stored = hash_within_limits(request, email_address, password, None, request.uses("login"))
    with request.writing():
        email_of_link(request)  # the link may have been used meanwhile
        account = store.make_admin(email_address, nickname, stored, request.now)
        note_admin(request, account)
        audit(request, "claim", by=account)
        return begin_admin_session(request, account)


# The admin's own sign-in


@route("GET", "/admin/sign-in", Permission.ADMIN)
def get_own_sign_in(request: Request) -> Json:
    """`{sessions, has_app, recovery_codes}`: where the admin is signed in, whether an authenticator
    app is needed for that, and how many recovery codes are left. `this` marks the session of the
    request."""
    store = request.site.store
    claims = claims_of_token(request.site, request.environ, request.now, "admin")
    sessions = [
        {
            "id": session.id,
            "device": session.device,
            "ip": session.ip,
            "country": session.country,
            "created_at": beijing_time(session.created_at),
            "seen_at": beijing_time(request.site.seen_sessions.get(session.id, session.seen_at)),
            "this": claims is not None and session.id == claims.session,
        }
        for session in store.admin_sessions(request.me.id)
    ]
    return {
        "sessions": sessions,
        "has_app": bool(request.me.app_key),
        "recovery_codes": len(store.recovery_codes(request.me.id)),
    }


@route("DELETE", "/admin/sessions/<session_id:id>", Permission.ADMIN)
def end_session(request: Request, session_id: int) -> Json:
    """Ends one session of the caller."""
    store = request.site.store
    with request.writing():
        session = store.admin_session(session_id)
        if session is None or session.user_id != request.me.id:
            raise NotFound("登录记录不存在", Code.NOT_FOUND)
        store.end_admin_session(session.id)
        audit(request, "end_session", detail=session.device)
    return {"success": True}


@route("POST", "/admin/app/key", Permission.ADMIN)
def offer_app_key(request: Request) -> Json:
    """Gives `{key, link, picture}`: a key for an authenticator app, as a link that such an app
    opens, and as a QR code of that (a `data:` URL). Nothing is stored yet."""
    import segno  # hardly anybody needs it, and it takes memory

    app_key = new_app_key(request.site.world.random_bytes)
    issuer = urllib.parse.urlsplit(request.site.config.server_public_url).hostname or "commentd"
    label = urllib.parse.quote(f"{issuer}:{request.me.email}")
    query = urllib.parse.urlencode({"secret": app_key, "issuer": issuer})
    link = f"otpauth://totp/{label}?{query}"
    picture = segno.make(link, error="m").svg_data_uri(scale=4, border=4, light="#fff")
    return {"key": app_key, "link": link, "picture": picture}


@route("POST", "/admin/app", Permission.ADMIN)
def add_app(request: Request) -> Json:
    """`{key, factor, password}` to `{recovery_codes}`: from now on a sign-in needs a code of the
    authenticator app that has this key and shows this code now. Who has an app removes it first,
    which needs a code of it: otherwise the password alone would put another one in its place."""
    app_key = text_field(request, "key", 64)
    code = re.sub("[^0-9]", "", text_field(request, "factor", 64))
    is_key = re.fullmatch("[A-Z2-7]{32}", app_key)
    step = step_of_app_code(app_key, code, request.now) if is_key else 0
    if not step:
        raise Forbidden("动态码不对或已用过", Code.FACTOR_WRONG)
    holder = by_own_password(request)
    random_bytes = request.site.world.random_bytes
    codes = [new_recovery_code(random_bytes) for _ in range(RECOVERY_CODES)]
    store = request.site.store
    with request.writing():
        account = account_for(request, holder)
        if account.app_key:
            raise Forbidden("请先移除现在的身份验证器", Code.FACTOR_NEEDED)
        hashes = [sha256_of(each.replace("-", "")) for each in codes]
        store.set_app_key(account.id, app_key, hashes)
        store.note_app_step(account.id, step)
        audit(request, "add_app")
    return {"recovery_codes": codes}


@route("DELETE", "/admin/app", Permission.ADMIN)
def remove_app(request: Request) -> Json:
    """`{password, factor}` to `{success}`: a sign-in needs no authenticator app any more."""
    factor = factor_field(request)
    holder = by_own_password(request)
    check_second_factor(request, request.me, factor)
    with request.writing():
        account = account_for(request, holder)
        request.site.store.set_app_key(account.id, "", [])
        audit(request, "remove_app")
    return {"success": True}


# Lists


def search_pattern(request: Request) -> str:
    """The query parameter `q` as a pattern for LIKE. "" for everything."""
    text = query_text(request, "q")[:64]
    literal = re.sub("[!%_]", r"!\g<0>", text)
    return f"%{literal}%" if text else ""


def rows_before(request: Request, find: Callable[[int, int], list[Row]]) -> tuple[list[Row], bool]:
    """`?before=&limit=`: rows with an id below `before`, and whether there are more. `find` takes
    these two numbers."""
    limit = query_number(request, "limit", 30, 100)
    rows = find(query_number(request, "before", NO_END, NO_END), limit + 1)
    return rows[:limit], len(rows) > limit


@route("GET", "/admin/comments", Permission.ADMIN, pace=Pace.LONG)
def admin_comments(request: Request) -> Json:
    """`?status=&q=&page=&before=&limit=` to comments, the newest first, and counts by status.
    `?comment=` to that one, if it is still there."""
    store = request.site.store
    if "comment" in request.query:
        comments, more = one_comment(request)
    else:
        status = query_choice(request, "status", SEARCHES)
        page_id = query_number(request, "page", 0, NO_END) or None
        find = functools.partial(store.search_comments, status, search_pattern(request), page_id)
        comments, more = rows_before(request, find)
    ham, spam = learnt_counts(store)
    return {
        "comments": [comment_for_admin(request, comment) for comment in comments],
        "more": more,
        "counts": {**store.count_statuses(), "undelivered": store.count_stuck()},
        "filter": {"ham": ham, "spam": spam, "active": has_learnt_enough(ham, spam)},
    }


def one_comment(request: Request) -> tuple[list[FullComment], bool]:
    """The comment that the query names, as a list without more."""
    comment = request.site.store.comment(query_number(request, "comment", 0, NO_END))
    return [comment] if comment and comment.content else [], False


def comment_for_admin(request: Request, comment: FullComment) -> Json:
    """A comment with all that an admin may know of it and of its author."""
    store = request.site.store
    origins = request.site.config.site_origins
    page = store.page_by_id(comment.page_id)
    parent = store.comment(comment.parent_id)
    opinion = None
    if comment.status in ("waiting", "spam"):
        opinion = filter_opinion(request.site, comment)
    parent_shown = None
    if parent:
        parent_shown = {"id": parent.id, "nickname": parent.nickname, "content": parent.content}
    reports = [
        {"reason": report.reason, "reported_at": beijing_time(report.reported_at)}
        for report in store.reports(comment.id)
    ]
    return {
        **comment.for_readers(request.site.config, is_admin=True),
        "page_title": comment.page_title,
        "location": comment.location,
        "country": comment.country,
        "status": comment.status,
        "held": comment.held,
        "email": comment.email,
        "holder": holder_for_admin(request, comment),
        "page_id": comment.page_id,
        "learnt": comment.learnt,
        "version": comment.version,
        "spam": opinion.for_admins() if opinion else None,
        "reports": reports,
        "known": store.count_known(comment),
        "page_link": page_link(comment.page_url, origins),
        "foreign": is_foreign(comment.page_url, origins),
        "closed": page and page.is_closed(request.site.config, request.now),
        "parent": parent_shown,
    }


def holder_for_admin(request: Request, comment: FullComment) -> Json | None:
    """`{id, nickname}` of the account whose email address a guest gave. None for all others."""
    holder = None
    if comment.user_id is None:
        holder = request.site.store.account_with_email(comment.email)
    return {"id": holder.id, "nickname": holder.nickname} if holder else None


# Moderating


@route("POST", "/admin/comments", Permission.ADMIN)
def moderate_comments(request: Request) -> Json:
    """`{ids, status, versions?}`, `{ids, pinned}` or `{ids, closed}` to `{success, comments,
    changed}`. `comments` holds what each was before: posting that again undoes it. A comment that
    was edited since its `version` was read is `changed`, and not approved."""
    name = action_in(request, [*ACTIONS.values()])
    comments = []
    changed = []
    # One transaction each: all in one would keep others from writing for too long.
    for comment_id, version in versions_by_id(request.form).items():
        try:
            before = act(request, name, comment_id, version)
            comments.append({"id": comment_id, "was": before})
        except TextChanged:
            changed.append(comment_id)
        except NotFound:
            pass
    return {"success": True, "comments": comments, "changed": changed}


def versions_by_id(form: Json) -> dict[int, str]:
    """The ids of the form, each with the version of the text that was read. "" if it names none."""
    ids = form.get("ids")
    if not isinstance(ids, list) or not 1 <= len(ids) <= 100:
        raise BadField("参数 ids 必须是 1 到 100 个编号", "ids", Fault.INVALID)
    versions = form.get("versions") or [None] * len(ids)
    if not isinstance(versions, list) or len(versions) != len(ids):
        raise BadField("参数 versions 不对", "versions", Fault.INVALID)
    comment_ids = [valid_number("ids", each) for each in ids]
    return dict(zip(comment_ids, [str(each or "") for each in versions], strict=True))


def action_in(request: Request, allowed: list[Action]) -> str:
    """The name of the action that the form asks for: by a status, or by a flag."""
    if "status" not in request.form:
        for action in allowed:
            if action.field in request.form:
                return ACTION_NAMES[action.field, flag_field(request, action.field)]
    return ACTION_NAMES["status", choice_field(request, "status", STATUSES)]


def act(request: Request, name: str, comment_id: int, version: str) -> str | bool:
    """Does the action of that name with a comment. Returns what the comment had before, which
    undoes it. `version`: as for `check_version`, where the action asks for it."""
    action = ACTIONS[name]
    with request.writing():
        comment = full_comment(request, comment_id)
        if action.checks_text:
            check_version(comment, version)
        before = action.value_before(request.site, comment)
        entry = action.apply(request.site, comment)
        if entry:
            audit(request, entry, action.subject(comment))
    return before


def check_version(comment: Comment, version: str) -> None:
    """`TextChanged` if the text of a comment is not the `version` that was read. With "" it does
    not matter."""
    if version and version != comment.version:
        raise TextChanged


@route("PATCH", "/admin/comments/<comment_id:id>", Permission.ADMIN)
def rewrite_comment(request: Request, comment_id: int) -> Json:
    """`{content?, nickname?, website?, version?}` to `{success, comment}`."""
    form = request.form
    content = content_field(request) if "content" in form else None
    markup = safe_html(content) if content is not None else ""
    nickname = nickname_field(request, optional=True)
    website = website_field(request) if "website" in form else None
    with request.writing():
        comment = full_comment(request, comment_id)
        check_version(comment, optional_field(request, "version"))
        unteach(request.site, comment)
        edited = comment
        if content is not None:
            edited = replace(edited, content=content, html=markup)
        if nickname:
            edited = replace(edited, nickname=nickname)
        if website is not None:
            edited = replace(edited, website=website)
        request.site.store.update_comment(edited, request.now)
        audit(request, "edit", comment.id)
        shown = comment_for_admin(request, full_comment(request, comment_id))
        return {"success": True, "comment": shown}


@route("POST", "/admin/reply", Permission.ADMIN)
def reply_as_owner(request: Request) -> Json:
    """`{parent_id, content, version?}` to `{success, comment}`. A waiting parent is approved."""
    content = content_field(request)
    place = location_of(request)
    with request.writing():
        parent = full_comment(request, number_field(request, "parent_id"))
        check_version(parent, optional_field(request, "version"))
        if parent.status not in ("visible", "waiting"):
            raise NotFound("要回复的评论不存在", Code.PARENT_GONE)
        reply = add_owner_reply(request.site, request.me, parent, content, request.client.ip, place)
        shown = comment_for_admin(request, full_comment(request, reply.id))
        return {"success": True, "comment": shown}


def add_owner_reply(
    site: Site,
    author: Account,
    parent: FullComment,
    content: str,
    ip: str = "",
    place: Place = NOWHERE,
) -> Comment:
    """Adds an admin's reply, in the caller's transaction. A waiting parent is approved."""
    store = site.store
    now = site.now()
    entries = [ACTIONS["visible"].apply(site, parent)]
    new = FullComment(
        page_id=parent.page_id,
        parent_id=parent.id,
        user_id=author.id,
        nickname=author.nickname,
        content=content,
        html=safe_html(content),
        ip=ip,
        country=place.country,
        location=place.location,
        created_at=now,
        language=parent.language,
    )
    # After a double click, the reply is there already.
    reply = store.same_comment(new)
    if reply is None:
        reply = store.insert_comment(new, "visible", now)
        store.notify(reply, now)
        entries.append("reply")
    for entry in filter(None, entries):
        store.add_audit_entry(
            now=now, who=author.nickname, action=entry, subject=str(parent.id), detail=""
        )
    return reply


@route("GET", "/comments/waiting", Permission.MODERATOR, pace=Pace.LONG)
def waiting_comments(request: Request) -> Json:
    """`?url=` to the waiting comments of a page, the oldest first, with `held` and `version`."""
    store = request.site.store
    page = store.page_named(query_page(request))
    waiting = store.search_comments("waiting", "", page.id, NO_END, 100)
    comments = [
        {
            **comment.for_readers(request.site.config, is_admin=True),
            "status": comment.status,
            "held": comment.held,
            "version": comment.version,
        }
        for comment in reversed(waiting)
    ]
    return {"comments": comments}


@route("POST", "/comments/<comment_id:id>/moderate", Permission.MODERATOR)
def moderate(request: Request, comment_id: int) -> Json:
    """`{status, version?}`, `{pinned}` or `{closed}` to `{success, comment, was}`: all that an
    admin may do with the token that the widget stores on the blog. /admin can undo it."""
    name = action_in(request, ACTIONS_FOR_MODERATORS)
    before = act(request, name, comment_id, optional_field(request, "version"))
    comment = full_comment(request, comment_id)
    shown = {**comment.for_readers(request.site.config, is_admin=True), "status": comment.status}
    return {"success": True, "comment": shown, "was": before}


# Pages


def page_for_admin(request: Request, page: Page) -> Json:
    closed = page.is_closed(request.site.config, request.now)
    return {
        "id": page.id,
        "page_url": page.page_url,
        "page_title": page.title,
        "page_link": page_link(page.page_url, request.site.config.site_origins),
        **page_counts(request.site, page),
        "closed": closed,
        "closed_by_age": closed and not page.closed,
    }


@route("GET", "/admin/pages", Permission.ADMIN, pace=Pace.LONG)
def admin_pages(request: Request) -> Json:
    """`?q=&sort=&skip=&limit=` to pages and their counts."""
    sort = query_choice(request, "sort", tuple(PAGE_SORTS))
    pattern = search_pattern(request)
    offset = query_number(request, "skip", 0, 1_000_000, least=0)
    limit = query_number(request, "limit", 30, 100)
    pages = request.site.store.pages(sort, pattern, offset, limit + 1)
    shown = [page_for_admin(request, page) for page in pages[:limit]]
    return {"pages": shown, "more": len(pages) > limit}


@route("PATCH", "/admin/pages/<page_id:id>", Permission.ADMIN)
def change_page(request: Request, page_id: int) -> Json:
    """`{closed?, page_title?, page_url?, merge?}` to `{success, page}`. With the title "", the page
    has none, and takes the next one that comes."""
    store = request.site.store
    flush_views(request.site)  # the views of the old URL go to the new one
    with request.writing():
        page = store.page_by_id(page_id)
        if page is None:
            raise NotFound("页面不存在", Code.PAGE_GONE)
        if "closed" in request.form:
            entry = set_page_closed(request.site, page, flag_field(request, "closed"))
            if entry:
                audit(request, entry, page.page_url)
        if "page_title" in request.form:
            change_title(request, page)
        if "page_url" in request.form:
            page_id = rename_page(request, page)
        changed = page_for_admin(request, store.page_by_id(page_id) or page)
        return {"success": True, "page": changed}


def change_title(request: Request, page: Page) -> None:
    """Gives a page the title in the form, which nothing but another one of an admin replaces."""
    text = text_field(request, "page_title", BODY_LIMIT, optional=True)
    title = proper_title(text, request.site.config.blog_name)
    if title != page.title:
        audit(request, "title", page.page_url, title)
    request.site.store.set_title(page.id, title, "owner")


def rename_page(request: Request, page: Page) -> int:
    """Gives a page the URL in the form. If another page has it, the two are merged, if the caller
    wants that. Returns the id of the page that has the URL now."""
    store = request.site.store
    name = page_field(request, "page_url")
    other = store.page(name.key)
    merges = other is not None and other.id != page.id
    if merges and not flag_field(request, "merge"):
        raise Conflict("这个地址已有页面，是否合并？", Code.PAGE_EXISTS)
    audit(request, "merge" if merges else "rename", page.page_url, name.page_url)
    return store.move_page(page.id, name.key, name.page_url)


# Users and blocks


@route("GET", "/admin/users", Permission.ADMIN, pace=Pace.LONG)
def admin_users(request: Request) -> Json:
    """`?q=&before=&limit=` to accounts, the newest first."""
    find = functools.partial(request.site.store.accounts, search_pattern(request))
    accounts, more = rows_before(request, find)
    users = [
        {
            "id": account.id,
            "email": account.email,
            "nickname": account.nickname,
            "role": account.role,
            "blocked": bool(account.blocked),
            "created_at": beijing_time(account.created_at),
            "comments": account.comments,
            "you": account.id == request.me.id,
        }
        for account in accounts
    ]
    return {"users": users, "more": more}


@route("PATCH", "/admin/users/<user_id:id>", Permission.ADMIN)
def change_user(request: Request, user_id: int) -> Json:
    """`{blocked?}`, `{role, password}` (the caller's own password) or all three to `{success}`."""
    store = request.site.store
    if "role" in request.form:
        by_own_password(request)
    with request.writing():
        user = store.account(user_id)
        if user is None:
            raise NotFound("用户不存在", Code.USER_GONE)
        changed = with_rights(request, user)
        loses_admin = user.role == "admin" and (changed.role != "admin" or changed.blocked)
        if loses_admin and len(store.admins()) == 1:
            raise Conflict("至少要有一位管理员", Code.LAST_ADMIN)
        if changed.role == "admin" and changed.blocked:
            raise Conflict("不能屏蔽管理员：请先改为普通用户", Code.IS_ADMIN)
        store.set_rights(changed, revoke=bool(loses_admin or changed.blocked))
        if changed.role == "admin" != user.role:
            # An admin signs in by password. A code or a provider may have given these.
            store.revoke_tokens(user.id)
        if changed.blocked != user.blocked:
            audit(request, "block_user" if changed.blocked else "unblock_user", user.id)
        if changed.role != user.role:
            audit(request, "role", user.id, changed.role)
    return {"success": True}


def with_rights(request: Request, user: Account) -> Account:
    """An account with the role that the form gives it, and blocked if the form says so."""
    changed = user
    if "role" in request.form:
        changed = replace(changed, role=choice_field(request, "role", ("user", "admin")))
    if "blocked" in request.form:
        changed = replace(changed, blocked=flag_field(request, "blocked"))
    return changed


def block_for_admin(block: Block) -> Json:
    return {
        "id": block.id,
        "kind": block.kind,
        "value": block.value,
        "note": block.note,
        "created_at": beijing_time(block.created_at),
        "expires_at": beijing_time(block.expires_at),
    }


@route("GET", "/admin/blocks", Permission.ADMIN, pace=Pace.LONG)
def admin_blocks(request: Request) -> Json:
    return {"blocks": [block_for_admin(block) for block in request.site.store.blocks(request.now)]}


@route("POST", "/admin/blocks", Permission.ADMIN)
def add_block(request: Request) -> Json:
    """`{kind, value, days?, note?, sure?}` to `{success, block}`. Without `days` it never expires.
    A block that would match many readers is refused unless the caller is `sure`."""
    store = request.site.store
    kind = choice_field(request, "kind", tuple(BLOCK_TYPES))
    block_type = BLOCK_TYPES[kind]
    value = proper_field(request, "value", 254, block_type.proper)
    days = number_field(request, "days", 3650, optional=True)
    note = line_field(request, "note", 200)
    if not flag_field(request, "sure"):
        reach = reach_of_block(store, block_type, value)
        if block_type.is_wide(value, reach):
            text = f"这条屏蔽会命中最近 {reach.total} 条评论中的 {reach.count} 条，确定吗？"
            raise Conflict(text, Code.BLOCK_WIDE, count=reach.count, total=reach.total)
    expires_at = request.now + days * DAY if days else None
    with request.writing():
        block = store.insert_block(
            kind=kind, value=value, note=note, created_at=request.now, expires_at=expires_at
        )
        audit(request, "block", value, kind)
    return {"success": True, "block": block_for_admin(block)}


@route("DELETE", "/admin/blocks/<block_id:id>", Permission.ADMIN)
def drop_block(request: Request, block_id: int) -> Json:
    with request.writing():
        block = request.site.store.delete_block(block_id)
        if block is None:
            raise NotFound("屏蔽规则不存在", Code.BLOCK_GONE)
        audit(request, "unblock", block.value, block.kind)
    return {"success": True}


# What has happened


@route("GET", "/admin/audit", Permission.ADMIN, pace=Pace.LONG)
def admin_audit(request: Request) -> Json:
    """`?before=&limit=` to who did what, the newest first."""
    entries, more = rows_before(request, request.site.store.audit_entries)
    shown = [
        {
            "id": entry.id,
            "created_at": beijing_time(entry.created_at),
            "who": entry.who,
            "action": entry.action,
            "subject": entry.subject,
            "detail": entry.detail,
        }
        for entry in entries
    ]
    return {"audit": shown, "more": more}


@route("GET", "/admin/outbox", Permission.ADMIN, pace=Pace.LONG)
def admin_outbox(request: Request) -> Json:
    """`?lang=zh` to the emails and webhooks that could not be delivered, with a hint each where one
    is known."""
    language = query_text(request, "lang")
    shown = []
    for stuck in request.site.store.stuck_messages():
        is_code = stuck.registration_id is not None
        hint = "" if stuck.event else request.site.mailer.hint_for(stuck.failure)
        shown.append(
            {
                "id": stuck.id,
                "recipient": stuck.recipient,
                "tries": stuck.tries,
                "failure": stuck.failure,
                "hint": translated(hint, language),
                "due_at": beijing_time(stuck.due_at),
                "can_retry": not is_code,
                "subject": "" if is_code else stuck.subject,  # it would show the code
            }
        )
    return {"emails": shown}


@route("POST", "/admin/outbox", Permission.ADMIN)
def retry_messages(request: Request) -> Json:
    """Sends all messages again, but for codes."""
    with request.writing():
        count = request.site.store.retry_all_messages(request.now)
        audit(request, "retry_all", count)
    return {"success": True}


@route("DELETE", "/admin/outbox", Permission.ADMIN)
def drop_messages(request: Request) -> Json:
    with request.writing():
        count = request.site.store.drop_all_messages()
        audit(request, "drop_all", count)
    return {"success": True}


@route("POST", "/admin/outbox/<message_id:id>", Permission.ADMIN)
def retry_message(request: Request, message_id: int) -> Json:
    """Sends a message again."""
    with request.writing():
        if not request.site.store.retry_message(message_id, request.now):
            raise NotFound("邮件不存在", Code.EMAIL_GONE)
        audit(request, "retry", message_id)
    return {"success": True}


@route("DELETE", "/admin/outbox/<message_id:id>", Permission.ADMIN)
def drop_message(request: Request, message_id: int) -> Json:
    with request.writing():
        if not request.site.store.drop_message(message_id):
            raise NotFound("邮件不存在", Code.EMAIL_GONE)
        audit(request, "drop", message_id)
    return {"success": True}


@route("POST", "/admin/backup", Permission.ADMIN)
def download_backup(request: Request) -> Response:
    """`{password}`, the caller's own, to a backup of the database, which holds all keys."""
    by_own_password(request)
    busy = Unavailable("暂时无法备份，请稍后再试", Code.STORAGE)
    try:
        with holding(request.site.download_lock, 0, busy):
            backup = request.site.store.open_backup()
    except (OperatorError, OSError) as error:
        log.error("no backup to download: %s", error)
        raise busy from None
    with request.writing():
        audit(request, "backup")
    name = f"commentd-{datetime.fromtimestamp(request.now, UTC):%Y%m%d-%H%M%S}.db"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(backup, "application/vnd.sqlite3", headers)


@route("GET", "/admin/figures", Permission.ADMIN, pace=Pace.LONG)
def admin_figures(request: Request) -> Json:
    """`?days=` to the counts of each day, and the pages with most views and comments."""
    store = request.site.store
    today = store.day_of(request.now)
    first = today - query_number(request, "days", 30, 366) + 1
    return {
        "days": [
            {"day": day.day, "comments": day.comments, "views": day.views, "likes": day.likes}
            for day in store.days(first, today)
        ],
        "by_views": top_pages(request, "views"),
        "by_comments": top_pages(request, "comments"),
    }


def top_pages(request: Request, sort: str) -> list[Json]:
    return [page_for_admin(request, page) for page in request.site.store.pages(sort, "", 0, 10)]


# Links in emails


def may_moderate_by_link(site: Site, subscriber: str, comment: Comment) -> bool:
    """Whether the recipient of a moderation link still gets notifications about that page."""
    recipients = owner_recipients(site, comment)
    recipients += [chat.recipient for chat in site.config.chats]
    return subscriber in [subscriber_of(site.key, each) for each in recipients]


@route("GET", "/mail", Permission.PUBLIC, by_link=True)
@route("POST", "/mail", Permission.PUBLIC, by_link=True)
def open_link(request: Request) -> Response:
    """A page that asks whether to do what a link says. A POST does it: from the button on that
    page, or from the one click of a mail program (RFC 8058)."""
    link = opened_link(request)
    if link is None:
        return link_page(request, None, "bad", status=403)
    if link.action in EMAIL_CHOICES:
        return subscription_page(request, link)
    try:
        if link.action in HOLDER_ANSWERS:
            return holder_page(request, link)
        return moderation_page(request, link)
    except NotFound:
        return link_page(request, link, "gone", status=404)


def opened_link(request: Request) -> ShortLink | None:
    """What the URL asks for, if it is one of the two things that its secret gives the right to.
    `version`: that of a text which was edited since, and which the page of the link has shown."""
    names = ("k", "do", "version")
    # What stands there twice is nothing that we have made.
    secret, action, version = (" ".join(request.query.get(name, [])) for name in names)
    link_hash = hash_of_secret(request.site.key, secret)
    link = request.site.store.link(link_hash, request.now)
    asked = link.to_do(action) if link else None
    return replace(asked, version=version) if asked and version else asked


@dataclass(frozen=True)
class LinkButton:
    """The button on the page of a link: it does what the link says, or undoes that."""

    link: ShortLink
    label: str  # the name of a text
    style: str = ""  # as home.css has it

    def query(self, secret: str) -> str:
        """Of the URL that it posts to."""
        parameters = {"do": self.link.action, "k": secret}
        if self.link.version:
            parameters["version"] = self.link.version
        return urllib.parse.urlencode(parameters)

    @staticmethod
    def to_do(link: ShortLink, name: str) -> "LinkButton":
        """One that is named for an action. `name` is that of its text."""
        style = "danger" if link.action in ("spam", "deleted", "not_mine") else ""
        return LinkButton(link, f"button_{name}", style)

    @staticmethod
    def to_undo(link: ShortLink) -> "LinkButton":
        return LinkButton(link.undone, "undo", "quiet")


def link_page(
    request: Request,
    link: ShortLink | None,
    title: str,
    button: LinkButton | None = None,
    *,
    comment: Comment | None = None,
    next_url: str = "",
    next_label: str = "",
    status: int = 200,
) -> Response:
    """The page that a link opens. `title` and `next_label`, that of a link below, are names of
    texts."""
    # The page is in the language of the email. For a link that is not good, nobody knows that.
    accepted = request.environ.get("HTTP_ACCEPT_LANGUAGE", "")
    secret = request.query.get("k", [""])[0]
    page = translated_page(
        request.site,
        "link.html",
        link.language if link else preferred_language(accepted),
        title=title,
        blog_name=request.site.config.blog_name,
        comment=comment,
        button=button,
        action=f"?{button.query(secret)}" if button else "",
        next_url=next_url,
        next_label=next_label,
        unquoted=unquoted,
    )
    return replace(page, status=status)


def moderation_page(request: Request, link: ShortLink) -> Response:
    """What a link about a comment opens:

    - "bad" if its recipient is no longer told of that page
    - "changed" if the text was edited after the email: it is shown again, with the button
    - "done" after the button was pressed, or if it would change nothing
    - else the question whether to do it, with the button"""
    site = request.site
    comment = full_comment(request, link.comment_id)
    if not may_moderate_by_link(site, link.subscriber, comment):
        return link_page(request, link, "bad", status=403)
    if link.version != comment.version:
        button = LinkButton.to_do(replace(link, version=comment.version), text_name(link))
        status = 409 if request.is_post else 200
        return link_page(request, link, "changed", button, comment=comment, status=status)
    if request.is_post:
        act(request, link.action, comment.id, comment.version)
        return moderated_page(request, link, comment)
    if is_decided(site, ACTIONS[link.action], comment):
        return moderated_page(request, link, comment)
    name = text_name(link)
    button = LinkButton.to_do(link, name)
    return link_page(request, link, f"page_{name}", button, comment=comment)


def text_name(link: ShortLink) -> str:
    """The end of the names of the texts about an action."""
    return "keep" if link.keeps else link.action


def moderated_page(request: Request, link: ShortLink, comment: FullComment) -> Response:
    """What was done with a comment, and the button that undoes it. Where the comment stays as it
    was, there is nothing to undo."""
    undo = None
    if not link.keeps:
        undo = LinkButton.to_undo(link)
    title = f"done_{text_name(link)}"
    return link_page(
        request, link, title, undo, comment=comment, next_url="admin", next_label="more"
    )


def is_decided(site: Site, action: Action, comment: FullComment) -> bool:
    """Whether a comment is as the action makes it, and no reader has reported it since."""
    return action.value_before(site, comment) == action.value and not site.store.reports(comment.id)


# Whether the holder of an email address wrote what a guest signed with it


def holder_page(request: Request, link: ShortLink) -> Response:
    """What a link about a guest's comment opens for the holder of the email address. The pages are
    those of `moderation_page`."""
    comment = full_comment(request, link.comment_id)
    if not may_answer(request.site, link, comment):
        return link_page(request, link, "bad", status=403)
    if comment.user_id is not None:  # they have said yes
        return answered_page(request, link, comment)
    if not is_open_to_holder(comment):
        raise NotFound("评论不存在", Code.COMMENT_GONE)
    if link.version != comment.version:
        button = LinkButton.to_do(replace(link, version=comment.version), link.action)
        status = 409 if request.is_post else 200
        return link_page(request, link, "changed", button, comment=comment, status=status)
    if request.is_post:
        answer = HOLDER_ANSWERS[link.action]
        return answered_page(request, link, answer(request, comment))
    if comment.status == "spam" and link.action == "not_mine":
        return answered_page(request, link, comment)
    button = LinkButton.to_do(link, link.action)
    return link_page(request, link, f"page_{link.action}", button, comment=comment)


def may_answer(site: Site, link: ShortLink, comment: FullComment) -> bool:
    """Whether the recipient of a link still holds the email address of the comment, and is not
    blocked."""
    is_holder = subscriber_of(site.key, comment.email) == link.subscriber
    return is_holder and not is_blocked_email(site, comment.email)


def is_open_to_holder(comment: FullComment) -> bool:
    """Whether a holder may still decide on a comment: until an admin has removed it. Who has said
    no may say yes."""
    is_denied = comment.status == "spam" and comment.held == "denied" and not comment.learnt
    return is_denied or comment.status in ("visible", "waiting")


def answered_page(request: Request, link: ShortLink, comment: FullComment) -> Response:
    """What the holder's answer did. Who has said no by mistake can say yes."""
    if comment.status == "spam":
        yes = LinkButton(replace(link, action="mine"), "button_mine", "quiet")
        return link_page(request, link, "done_not_mine", yes, comment=comment)
    title = "done_mine" if comment.status == "visible" else "done_mine_waiting"
    url = own_link(comment.page_url, request.site.config.site_origins)
    return link_page(request, link, title, comment=comment, next_url=url, next_label="page")


def accept_as_own(request: Request, comment: FullComment) -> FullComment:
    """The holder wrote the comment. Its status is now the one that it would have if they had been
    signed in, and a visible one stays visible.

    It goes to their account, if they have one, and gets the tick. An admin's does not: a link in an
    email takes the place of no password, and readers would see an admin's badge."""
    site = request.site
    store = site.store
    account = store.account_with_email(comment.email)
    gets_tick = account is not None and account.role != "admin"
    as_theirs = replace(comment, user_id=account.id) if account and gets_tick else comment
    verdict = moderate_text(site, as_theirs, doubt="")
    if verdict.held == "email":  # which is shown by now to be theirs
        verdict = Verdict("visible", "")
    with request.writing():
        current = full_comment(request, comment.id)
        if current.version != comment.version or not is_open_to_holder(current):
            return current  # pragma: no cover - a race
        if account and gets_tick:
            store.give_to_account(comment.id, account.id)
        if current.status != "visible":
            store.change_status(comment.id, verdict.status, request.now)
            store.set_held(comment.id, verdict.held)
        audit(request, "mine", comment.id)
        return full_comment(request, comment.id)


def deny_as_own(request: Request, comment: FullComment) -> FullComment:
    """The holder did not write the comment: it is spam. The filter does not learn that, since it
    learns from admins alone. Otherwise anybody could sign good comments with their own email
    address, and teach it that these are spam."""
    store = request.site.store
    with request.writing():
        current = full_comment(request, comment.id)
        if not is_open_to_holder(current):
            return current  # pragma: no cover - a race
        unteach_ham(request.site, current)
        store.change_status(comment.id, "spam", request.now)
        store.set_held(comment.id, "denied")
        audit(request, "not_mine", comment.id)
        return full_comment(request, comment.id)


HOLDER_ANSWERS: dict[str, Callable[[Request, FullComment], FullComment]] = {
    "mine": accept_as_own,
    "not_mine": deny_as_own,
}


# Whether somebody wants further emails


def subscription_page(request: Request, link: ShortLink) -> Response:
    """A button that begins or ends emails about replies or about a page. After that, one that
    undoes it."""
    comment = request.site.store.comment(link.comment_id)
    choice = link.action
    if comment is None:  # nobody knows its page any more
        if choice == "start":
            return link_page(request, link, "gone", status=404)
        if choice == "stop":
            choice = "stop_all"
    if not request.is_post:
        return link_page(request, link, f"page_{choice}", LinkButton(link, f"button_{choice}"))
    with request.writing():
        EMAIL_CHOICES[choice](request, link, comment)
    undo = LinkButton.to_undo(link) if link.undo and choice == link.action else None
    url = own_link(comment.page_url, request.site.config.site_origins) if comment else ""
    return link_page(request, link, f"done_{choice}", undo, next_url=url, next_label="page")


# What the recipient of an email chooses about further ones. `comment` is the one that the link
# names, None if it is gone.


def follow_again(request: Request, link: ShortLink, comment: FullComment | None) -> None:
    reader = account_of_recipient(request, link)
    if reader:
        page_id = comment.page_id if comment else link.page_id  # the page may have moved
        request.site.store.follow(reader.id, page_id, link.language)


def unfollow(request: Request, link: ShortLink, comment: FullComment | None) -> None:
    reader = account_of_recipient(request, link)
    if reader:
        page_id = comment.page_id if comment else link.page_id
        request.site.store.unfollow(reader.email, page_id)


def account_of_recipient(request: Request, link: ShortLink) -> Account | None:
    """The account that a link names, if it is the recipient's: after `restore`, its number may be
    another reader's."""
    account = request.site.store.account(link.user_id)
    if account is None or subscriber_of(request.site.key, account.email) != link.subscriber:
        return None
    return account


def confirm_replies(request: Request, link: ShortLink, comment: FullComment | None) -> None:
    """A guest wants emails about replies, those included that came before they were asked."""
    store = request.site.store
    email_address = email_of_recipient(request, link, comment)
    if email_address:
        store.notify_again(email_address, link.subscriber, request.now - LINK_LIFE)
    store.subscribe(link.subscriber, 0, "yes")


def start_on_page(request: Request, link: ShortLink, comment: FullComment | None) -> None:
    if comment:
        request.site.store.subscribe(link.subscriber, comment.page_id, "yes")


def start_everywhere(request: Request, link: ShortLink, comment: FullComment | None) -> None:
    request.site.store.subscribe(link.subscriber, 0, "yes")


def stop_on_page(request: Request, link: ShortLink, comment: FullComment | None) -> None:
    if comment:
        stop_replies(request, link, comment, comment.page_id)


def stop_everywhere(request: Request, link: ShortLink, comment: FullComment | None) -> None:
    stop_replies(request, link, comment, 0)


def stop_replies(
    request: Request, link: ShortLink, comment: FullComment | None, page_id: int
) -> None:
    """Ends emails about replies on a page, on all with 0. Emails about what else is new there end
    too."""
    store = request.site.store
    email_address = email_of_recipient(request, link, comment)
    if email_address:
        store.unfollow(email_address, page_id)
    store.subscribe(link.subscriber, page_id, "no")


def ask_no_more(request: Request, link: ShortLink, comment: FullComment | None) -> None:
    request.site.store.set_questions(link.subscriber, wanted=False)


def ask_again(request: Request, link: ShortLink, comment: FullComment | None) -> None:
    request.site.store.set_questions(link.subscriber, wanted=True)


def email_of_recipient(request: Request, link: ShortLink, comment: FullComment | None) -> str:
    """The recipient's email address, if the comment still has it; else "". A deleted comment does,
    an erased one does not."""
    if comment and subscriber_of(request.site.key, comment.email) == link.subscriber:
        return comment.email
    return ""


# What a link in an email does with further emails.
EMAIL_CHOICES: dict[str, Callable[[Request, ShortLink, FullComment | None], None]] = {
    "confirm": confirm_replies,
    "stop": stop_on_page,
    "start": start_on_page,
    "stop_all": stop_everywhere,
    "start_all": start_everywhere,
    "unfollow": unfollow,
    "follow": follow_again,
    "no_questions": ask_no_more,
    "questions": ask_again,
}


# -- Telegram -----------------------------------------------------------------

# What people do with the messages in a chat of Telegram, where the owner has switched that on
# (`interactive`): they press buttons, and reply. Each update from Telegram is looked at once. One
# that is not from a person whom the settings name, about a message that this service has sent to
# the chat of the settings, changes nothing.

POLL_SECONDS = 25  # that Telegram keeps a request open while nothing happens
UPDATES = ["message", "callback_query"]  # the kinds of updates that are asked for
# An update whose number is up to so much smaller than the last one is a repetition. After a quiet
# week Telegram begins anew at any number (core.telegram.org/bots/api#update).
REPETITIONS = 100_000


class TelegramListener:
    """Takes the updates of the bot of one section."""

    def __init__(self, site: Site, settings: ChatSettings) -> None:
        self.site = site
        self.store = site.store
        self.settings = settings
        self.chat = Telegram(settings, site.config, site.world)
        self.may_poll = False

    # Where updates come from

    def listen(self) -> float:
        """Asks for updates, and does what they say; or has Telegram send them. Returns the seconds
        until it wants to be called again."""
        try:
            if self.settings.interactive == "webhook":
                self.ask_for_calls()
                return 6 * HOUR
            updates = self.new_updates()
        except NotSent as failure:
            log.warning("%s: %s", self.settings.section, failure.reason)
            return failure.rest or MINUTE
        with self.store.machine_faults():
            for update in updates if isinstance(updates, list) else []:
                self.take(update)
        return 1

    def ask_for_calls(self) -> None:
        """Has Telegram call this service, with a secret that it shows."""
        url = f"{self.site.config.server_public_url}/chat/{self.settings.name}"
        secret = secret_of_calls(self.site, self.settings)
        self.chat.call(
            "setWebhook", {"url": url, "secret_token": secret, "allowed_updates": UPDATES}
        )

    def new_updates(self) -> Any:
        if not self.may_poll:  # Telegram refuses while it has a URL to call
            self.chat.call("deleteWebhook", {})
            self.may_poll = True
        parameters = {
            "offset": self.store.last_update(self.settings.recipient) + 1,
            "limit": 5,  # so that the response is not longer than what is read of one
            "timeout": POLL_SECONDS,
            "allowed_updates": UPDATES,
        }
        return self.chat.call("getUpdates", parameters, silence=POLL_SECONDS + 10, most=MEGA)

    def take(self, update: Any) -> None:
        """Does what an update says, unless it has come before."""
        number = inside(update, "update_id")
        if not isinstance(number, int):
            return
        with self.store.writing():
            last = self.store.last_update(self.settings.recipient)
            if last - REPETITIONS < number <= last:
                return
            self.store.note_update(self.settings.recipient, number)
        try:
            if pressed := inside(update, "callback_query"):
                self.press(pressed)
            elif written := inside(update, "message"):
                self.reply(written)
        except NotSent as failure:  # what was asked for is done; only nobody could be told
            log.warning("%s: %s", self.settings.section, failure.reason)

    # Who and what

    def may_act(self, sender: Any) -> bool:
        """Whether the settings name a sender. In a chat with the bot alone, its number is that of
        the person."""
        named = self.settings.users or (self.settings.to,)
        number = inside(sender, "id")
        return isinstance(number, int) and number > 0 and str(number) in named

    def id_here(self, message: Any) -> int | None:
        """The number of a message in the chat of the settings. None for any other."""
        number = inside(message, "message_id")
        is_here = str(inside(message, "chat", "id")) == self.settings.to
        return number if is_here and isinstance(number, int) else None

    def about(self, message_id: int | None) -> AboutComment | None:
        """What a message in the chat is about. None if this service does not know it."""
        if message_id is None:
            return None
        return self.store.chat_message(self.settings.recipient, message_id)

    def admin(self) -> Account | None:
        """In whose name replies are posted. None if the settings name no admin of several, or one
        who is none."""
        admins = self.store.admins()
        if self.settings.admin:
            admins = [each for each in admins if each.email == self.settings.admin]
        return admins[0] if len(admins) == 1 else None

    def owner(self, comment: Comment | None) -> Recipient:
        """Whose language is that of the messages."""
        return owner_as_recipient(self.site, self.settings.recipient, comment or BLANK_COMMENT)

    def audit(self, action: str, comment_id: int) -> None:
        admin = self.admin()
        self.store.add_audit_entry(
            now=self.site.now(),
            who=admin.nickname if admin else "Telegram",
            action=action,
            subject=str(comment_id),
            detail=self.settings.section,
        )

    # Buttons

    def press(self, pressed: Any) -> None:
        """Does what a button says, shows in the message that it is done, and offers to undo it."""
        message_id = self.id_here(inside(pressed, "message"))
        about = self.about(message_id)
        action_name = inside(pressed, "data")
        if message_id is None or about is None or action_name not in STATUS_ACTIONS:
            return
        if self.may_act(inside(pressed, "from")):
            answer = self.act(action_name, about.comment_id, about.version, message_id)
        else:
            answer = self.owner(None).texts["chat_stranger"]
        parameters = {"callback_query_id": inside(pressed, "id"), "text": answer[:200]}
        self.chat.call("answerCallbackQuery", parameters)

    def act(self, action_name: str, comment_id: int, version: str, message_id: int) -> str:
        """Does an action, if the text of the comment is still that version, where that matters.
        Returns a sentence that says what was done."""
        action = ACTIONS[action_name]
        with self.store.writing():
            comment = self.store.comment(comment_id)
            owner = self.owner(comment)
            if comment is None or not comment.content:
                return owner.texts["gone"]
            undo = action.undo(self.site, comment)
            has_changed = action.checks_text and version != comment.version
            if has_changed:
                recipient = self.settings.recipient
                self.store.keep_chat_message(recipient, message_id, comment_id, comment.version)
            else:
                entry = action.apply(self.site, comment)
                if entry:
                    self.audit(entry, comment_id)
            current = self.store.existing_comment(comment_id)
        if has_changed:  # it is shown again, with its buttons
            self.show(owner, current, message_id)
            return owner.texts["chat_changed"]
        is_kept = undo == action_name
        done = owner.texts["done_keep" if is_kept else f"done_{action_name}"]
        undo_button = ChatButton(undo, owner.texts["undo"], "")
        self.show(owner, current, message_id, done, [] if is_kept else [undo_button])
        return done

    def show(
        self,
        owner: Recipient,
        comment: FullComment,
        message_id: int,
        done: str = "",
        buttons: list[ChatButton] | None = None,
    ) -> None:
        """Writes a message anew. `done` says what was done with the comment, whose `buttons` are
        then other ones."""
        with self.store.writing():  # its links
            message = chat_message(owner, "", "created", self.site.now(), comment)
        if done:
            # `hook_waiting` would say once more that it waits.
            heading = author_and_page(owner, comment)
            text = f"{heading}\n\n{shortened(comment.content, 1000)}"
            message = replace(message, text=f"{text}\n\n➜ {done}", buttons=buttons or [])
        body = {**self.chat.body(message), "message_id": message_id}
        self.chat.call("editMessageText", body)

    # Replies

    def reply(self, written: Any) -> None:
        """Posts what the owner writes in reply to a message about a comment."""
        message_id = self.id_here(inside(written, "reply_to_message"))
        about = self.about(message_id)
        own_id = self.id_here(written)
        if message_id is None or about is None or own_id is None:
            return
        if not self.may_act(inside(written, "from")) or self.about(own_id):  # it is posted already
            return
        if self.shows_again(about, message_id):
            answer = self.owner(None).texts["chat_changed"]
        else:
            answer = self.post(about, own_id, inside(written, "text"))
        parameters = {
            "chat_id": self.settings.to,
            "text": answer,
            "reply_parameters": {"message_id": own_id},
        }
        self.chat.call("sendMessage", parameters)

    def shows_again(self, about: AboutComment, message_id: int) -> bool:
        """Shows a comment anew that waits, and whose text is not the one that the owner has read: a
        reply would approve it. False if there is no need."""
        with self.store.writing():
            comment = self.store.comment(about.comment_id)
            if comment is None or comment.status != "waiting" or comment.version == about.version:
                return False
            recipient = self.settings.recipient
            self.store.keep_chat_message(recipient, message_id, comment.id, comment.version)
        self.show(self.owner(comment), comment, message_id)
        return True

    def post(self, about: AboutComment, own_id: int, text: Any) -> str:
        """Posts a reply. Returns a sentence that says whether it is published."""
        content = bare_content(text) if isinstance(text, str) else ""
        most = self.site.config.comments_max_length
        with self.store.writing():
            parent = self.store.comment(about.comment_id)
            owner = self.owner(parent)
            author = self.admin()
            if author is None:
                return owner.text("chat_nobody", section=self.settings.section)
            if is_blank(content) or len(content) > most:
                return owner.text("chat_length", n=most)
            if parent is None or parent.status not in ("visible", "waiting"):
                return owner.texts["gone"]
            reply = add_owner_reply(self.site, author, parent, content)
            self.store.keep_chat_message(self.settings.recipient, own_id, reply.id, reply.version)
            return owner.texts["chat_replied"]


# What buttons in a chat do.
STATUS_ACTIONS = ("visible", "waiting", "spam", "deleted")


def secret_of_calls(site: Site, settings: ChatSettings) -> str:
    """What Telegram shows when it calls. It is made of the site's key, so nobody sets it."""
    return keyed_hash(site.key, "telegram", settings.name, settings.token)


@route("POST", "/chat/<name>", Permission.PUBLIC)
def take_update(request: Request, name: str) -> Json:
    """An update from Telegram, where `interactive` is webhook."""
    shown = request.environ.get("HTTP_X_TELEGRAM_BOT_API_SECRET_TOKEN", "")
    for settings in request.site.config.chat_sections:
        is_called = settings.name == name and settings.interactive == "webhook"
        if is_called and equal_in_constant_time(shown, secret_of_calls(request.site, settings)):
            TelegramListener(request.site, settings).take(request.form)
            return {"success": True}
    raise no_such_url()


# -- Manual -------------------------------------------------------------------

# The topics of the manual in the order in which a blog owner meets them. Each group has a title in
# English and in Chinese.
MANUAL = (
    ("Start", "开始", ("deploy", "mail", "import", "leancloud")),
    (
        "Your blog",
        "你的博客",
        ("embed", "hugo", "hexo", "jekyll", "astro", "theme", "fragment", "include"),
    ),
    (
        "Run",
        "日常",
        (
            *("moderation", "chats", "webhooks", "login", "backup", "versions", "move", "export"),
            "privacy",
        ),
    ),
    ("Reference", "参考", ("security", "limits", "speed", "api")),
)


@dataclass(frozen=True)
class Topic:
    """A topic of the manual, as Markdown."""

    name: str
    text: str

    @property
    def title(self) -> str:
        """The first line, which says what the topic is about."""
        return self.text.partition("\n")[0].removeprefix("# ")

    def html(self) -> str:
        """It is ours, so it may have headings and tables. Browsers would show a space where a line
        of Chinese ends."""
        unbroken = re.sub("(?<=[、-鿿！-～])\n *(?=[、-鿿！-～])", "", self.text)
        return str(mistune.create_markdown(plugins=["table"])(unbroken))


@dataclass(frozen=True)
class TopicGroup:
    title: str
    topics: list[Topic]


def manual(language: str) -> list[TopicGroup]:
    """The manual in Chinese for `zh` and its variants, else in English."""
    is_chinese = language.startswith("zh")
    folder = static_folder() / "help" / ("zh" if is_chinese else "en")
    groups = []
    for english, chinese, names in MANUAL:
        topics = [Topic(name, (folder / f"{name}.md").read_text("utf-8")) for name in names]
        groups.append(TopicGroup(chinese if is_chinese else english, topics))
    return groups


def topic_named(groups: list[TopicGroup], name: str) -> Topic | None:
    topics = [topic for group in groups for topic in group.topics]
    return next((topic for topic in topics if topic.name == name), None)


@route("GET", "/admin/help", Permission.PUBLIC, pace=Pace.LONG)
def manual_page(request: Request) -> Response:
    """A topic of the manual, or the list of topics."""
    request.limit("preview")  # which renders Markdown, too
    language = query_text(request, "lang")
    name = query_text(request, "topic")
    groups = manual(language)
    topic = topic_named(groups, name)
    if name and topic is None:
        raise no_such_url()
    chinese = language.startswith("zh")
    return html_page(request.site, "help.html", chinese=chinese, groups=groups, topic=topic)


# -- Application --------------------------------------------------------------

# One blog

PREFLIGHT = [
    ("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE"),
    ("Access-Control-Allow-Headers", "Authorization, Content-Type"),
    ("Access-Control-Max-Age", "7200"),
]


@dataclass(eq=False)
class App:
    """The WSGI application. It starts no thread and opens no socket. `tick`, `deliver` and
    `back_up_if_due` do the regular work: somebody has to call them. Each returns the seconds until
    it wants to be called again."""

    site: Site
    routes: Callable[..., Iterable[bytes]]
    minute_began: int = 0  # when `tick` last did what it does once a minute

    def __call__(self, environ: Json, start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Adds CORS and security headers to every response, those to preflights included."""
        added = headers_for(
            self.site,
            environ.get("PATH_INFO", ""),
            environ.get("HTTP_ORIGIN", ""),
            has_token="HTTP_AUTHORIZATION" in environ,
        )

        def start_with_headers(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Any:
            all_headers = added | dict(headers)
            return start_response(status, list(all_headers.items()), exc_info)

        if environ["REQUEST_METHOD"] == "OPTIONS":
            start_with_headers("204 No Content", PREFLIGHT)
            return [b""]
        environ["commentd.site"] = self.site
        return self.routes(environ, start_with_headers)

    def tick(self) -> float:
        """Writes views, notices what a command wrote, wipes a part of the file if it is being
        wiped, and once a minute does what is due."""
        store = self.site.store
        with store.machine_faults():
            flush_views(self.site)
            store.notice_commands()
            if not is_recent(self.minute_began, self.site.now(), MINUTE):
                self.every_minute()
            store.wiper.wipe_some()
        return 1

    def every_minute(self) -> None:
        """Drops what has expired, and what the settings do not keep any longer. Asks for a rebuild
        of the blog, if one is due."""
        config = self.site.config
        store = self.site.store
        now = self.site.now()
        with store.writing():
            store.purge(now)
            store.forget(now - max(HOUR, config.privacy_keep_ip_days * DAY))
            store.erase_hidden(now - config.moderation_keep_days * DAY)
            store.note_admin_sessions(self.site.seen_sessions)
            add_rebuild(self.site)
            self.note_unnamed_proxy(now)
        self.site.seen_sessions.clear()
        self.minute_began = now
        self.begin_wiping_if_due(now)
        store.wiper.empty_wal_if_needed()

    def note_unnamed_proxy(self, now: int) -> None:
        """Stores once an hour that there is such a proxy, for `check` to see."""
        store = self.site.store
        if self.site.clients.saw_unnamed_proxy and now - store.last_time("unnamed_proxy") >= HOUR:
            store.note_time("unnamed_proxy", now)

    def begin_wiping_if_due(self, now: int) -> None:
        """Once a day, what erased data has left in the file is wiped."""
        store = self.site.store
        with store.writing():
            if is_recent(store.last_time("wipe"), now, DAY):
                return
            store.note_time("wipe", now)
        store.wiper.begin_file()

    def deliver(self) -> float:
        """Writes and sends the emails and webhooks that are due."""
        with self.site.store.machine_faults():
            deliver_due(self.site)
        return 1

    def listeners(self) -> list[Callable[[], float]]:
        """What takes the updates of chats that act: work to repeat, each in a thread of its own,
        since it waits for long."""
        chats = self.site.config.chat_sections
        return [
            TelegramListener(self.site, settings).listen
            for settings in chats
            if settings.interactive != "no"
        ]

    def back_up_if_due(self) -> float:
        """Makes a backup when the last one is old, and deletes the oldest."""
        config = self.site.config
        now = self.site.world.clock()
        database = config.database
        folder = Path(config.backup_folder)
        if not self.needs_backup(now):
            return MINUTE
        try:
            first_name = f".{database.name}.part"  # always the same: a crash leaves only one
            back_up(database, folder, now, first_name=first_name)
        except OperatorError as error:
            log.error("no backup: %s", error)
            return 10 * MINUTE
        delete_old_backups(database, folder, config.backup_keep, now)
        return MINUTE

    def needs_backup(self, now: float) -> bool:
        config = self.site.config
        if not config.backup_every:
            return False
        times = regular_backups(config.database, Path(config.backup_folder)).values()
        if any(is_recent(made_at, now, config.backup_every * HOUR) for made_at in times):
            return False
        # Backups of a database that was lost and begun anew would drive out those of the old one.
        with self.site.store.machine_faults():
            return self.site.store.figures(int(now)).comments > 0

    def close(self) -> None:
        """Writes the views and closes all files. Calling it twice is fine."""
        try:
            with contextlib.suppress(Unavailable, sqlite3.ProgrammingError):
                flush_views(self.site)
        finally:
            self.site.store.close()
            self.site.places.close()


def make_app(
    config: Config,
    world: World | None = None,
    *,
    clients: Clients | None = None,
    rounds: int = ROUNDS,
) -> App:
    """The whole service as a WSGI application. `clients`: those of the process, which several blogs
    share. `rounds`: of the password hash, fewer in tests. `OperatorError` or `Unavailable` if the
    database cannot be served."""
    world = world or World()
    store = open_store(config, world)
    try:
        store.delete_leftovers()
        return app_on(store, config, world, clients=clients, rounds=rounds)
    except BaseException:
        store.close()  # else its lock would refuse the next start
        raise


def open_store(config: Config, world: World) -> Store:
    path = config.database
    folder = Path(config.backup_folder)

    def make_backup(label: str) -> Path:
        return back_up(path, folder, world.clock(), label)

    return Store(path, make_backup, zone=config.site_timezone)


def app_on(
    store: Store,
    config: Config,
    world: World,
    *,
    clients: Clients | None = None,
    rounds: int = ROUNDS,
) -> App:
    """The app on an open store."""
    key = config.token_key or store.token_key(world.random_bytes(32).hex())
    places = places_of(config)
    templates()  # read now: an upgrade replaces the files while this program still runs
    assets, assets_version = assets_with(config.site_picture)
    site = Site(
        config=config,
        store=store,
        key=key.encode(),
        world=world,
        mailer=mailer_type(config)(config, world),
        places=places,
        assets=assets,
        assets_version=assets_version,
        fragment_style=fragment_style(config),
        clients=clients or Clients(config.server_trusted_proxy),
        rounds=rounds,
    )
    return App(site, all_routes())


def places_of(config: Config) -> Places:
    return Places(static_folder(), config.geo_file)


@functools.cache
def all_routes() -> bottle.Bottle:
    """The routes, mounted. They are the same for all blogs: whose request it is stands in the
    request."""
    return mounted(ROUTES)


def mounted(routes: Iterable[Route]) -> bottle.Bottle:
    """What finds the handler of a request. Of two routes with the same path, which has no
    parameters, the last one counts."""
    found = bottle.Bottle()
    found.default_error_handler = bottle_refusal
    found.router.add_filter("id", lambda _: ("[0-9]{1,18}", int, str))
    for each in routes:
        found.route(each.path, each.method, functools.partial(respond, each))
    return found


def bottle_refusal(error: bottle.HTTPError) -> Any:
    """The response for a request that no route takes."""
    environ = bottle.request.environ
    if error.status_code == 404 and opens_page(environ):
        return for_bottle(missing_page(environ["commentd.site"], environ))
    bottle.response.content_type = "application/json; charset=utf-8"
    return refusal(REFUSALS.get(error.status_code, INTERNAL)).body


# Several blogs in one process


@contextlib.contextmanager
def logging_about(blog: str) -> Iterator[None]:
    """Lines of the log begin with the name of that blog meanwhile."""
    token = BLOG_IN_LOG.set(blog)
    try:
        yield
    finally:
        BLOG_IN_LOG.reset(token)


def requested_host(environ: Json) -> str:
    """The host that a request is for: that of a whole URL in its first line, else that of its
    header Host (RFC 9112, section 3.2.2). A cache in front may go by either."""
    url = re.match("(?i)https?://([^/?#]*)", environ.get("REQUEST_URI", ""))
    return url[1] if url else environ.get("HTTP_HOST", "")


def send_response(
    response: Response, environ: Json, start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Sends a response that is of no blog. No other origin may read it."""
    headers = headers_of_area(area_of(environ.get("PATH_INFO", "")), has_token=True)
    headers["Content-Type"] = response.content_type
    headers["Content-Length"] = str(len(response.body))
    status = HTTPStatus(response.status)
    start_response(f"{status.value} {status.phrase}", [*headers.items()])
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [response.body]


class Sites:
    """One blog, or several in one process, as one WSGI application. The host of a request tells
    which blog it is for. They share the process and the `[server]` settings of the first one, and
    nothing else: no row, no cache entry, no token, no limit."""

    def __init__(self, apps: list[App]) -> None:
        """`OperatorError` if a token of one blog would be valid on another."""
        self.apps = apps
        self.only_app = apps[0] if len(apps) == 1 else None  # which takes requests for any host
        self.by_host = {app.site.config.public_host: app for app in apps}
        databases: dict[bytes, Path] = {}
        for app in apps:
            site = app.site
            other = databases.setdefault(site.key, site.config.database)
            if other != site.config.database:
                raise OperatorError(
                    f"{site.config.database} has the key of {other}, as a copy has: set a "
                    "[token] key for this blog"
                )

    @property
    def first(self) -> Site:
        return self.apps[0].site

    def app_for(self, host: str) -> App | None:
        """The app for a Host header. None if it is that of none of several blogs."""
        return self.only_app or self.by_host.get(re.sub(":(80|443)$", "", host.lower()))

    def name_of(self, app: App) -> str:
        """What stands before the lines of a blog in the log. "" if there is one blog only."""
        return "" if self.only_app else app.site.config.public_host

    def __call__(self, environ: Json, start_response: Callable[..., Any]) -> Iterable[bytes]:
        app = self.app_for(requested_host(environ))
        if app is None:
            return send_response(self.without_blog(environ), environ, start_response)
        BLOG_IN_LOG.set(self.name_of(app))
        return app(environ, start_response)

    def without_blog(self, environ: Json) -> Response:
        """The response to a request for no blog: a refusal, but for `/health`, with which a monitor
        on the machine itself asks for all blogs at once."""
        is_read = environ["REQUEST_METHOD"] in ("GET", "HEAD")
        if is_read and environ.get("PATH_INFO") == "/health":
            return self.health_of_all(environ)
        return refusal(REFUSALS[421])

    def health_of_all(self, environ: Json) -> Response:
        """The health of the first blog that is not well; else that of the first."""
        responses = [self.response_of(app, environ) for app in self.apps]
        return next((each for each in responses if each.status != 200), responses[0])

    def response_of(self, app: App, environ: Json) -> Response:
        """What an app responds to a request, as JSON. Each app gets a request of its own, since it
        notes in that what it does."""
        statuses: list[str] = []
        own_environ = {**environ, "REQUEST_METHOD": "GET"}
        with logging_about(self.name_of(app)):
            body = b"".join(app(own_environ, lambda status, *_: statuses.append(status)))
        return Response(body, "application/json; charset=utf-8", status=int(statuses[0][:3]))

    def close(self) -> None:
        for app in self.apps:
            app.close()


# The regular work


def repeat(work: Callable[[], float], stopping: threading.Event, blog: str = "") -> None:
    """Does some work of the app again and again. The work returns the seconds to rest."""
    BLOG_IN_LOG.set(blog)
    while not stopping.is_set():
        seconds = 5.0
        try:
            seconds = work()
        except Unavailable:  # which the store has logged
            pass
        except Exception:
            log.exception("%s failed, and goes on", work.__name__)
        stopping.wait(seconds)


@contextlib.contextmanager
def regular_work(sites: Sites, stopping: threading.Event) -> Iterator[None]:
    """Threads do the regular work of each app meanwhile."""
    threads = []
    for app in sites.apps:
        for work in (app.deliver, app.tick, app.back_up_if_due, *app.listeners()):
            arguments = (work, stopping, sites.name_of(app))
            thread = threading.Thread(target=repeat, args=arguments, daemon=True)
            thread.start()
            threads.append(thread)
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join(2)


# -- Doctor -------------------------------------------------------------------

# 2026-11-01: a clock that says less is wrong. It need not be exact, so not each release changes it.
RELEASED = 1_793_491_200
# Older versions have known vulnerabilities.
LEAST_VERSIONS = {
    "bottle": "0.13.4",
    "waitress": "3.0.2",
    "pyjwt": "2.13",
    "mistune": "3.4",
    "nh3": "0.3.7",
}


class Level(enum.IntEnum):
    """How bad a finding is."""

    OK = 0  # as expected
    NOTE = 1  # good to know
    WARN = 2  # should be fixed
    FAIL = 3  # does not work

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True)
class Finding:
    level: Level
    topic: str
    text: str
    hint: str = ""  # what to do about it, where that depends on what was tried


def check_settings(config: Config) -> Iterator[Finding]:
    """What a public service should not leave as it is."""
    public_url = config.server_public_url
    # While the owner only tries the service out, some settings need not be right yet.
    warn_if_public = Level.WARN if public_url else Level.NOTE
    if not mailer_type(config).delivers:
        text = "no mail server: emails are printed to the terminal; set [mail] host or provider"
        yield Finding(warn_if_public, "mail", text)
        for provider in config.login_providers:
            if provider.kind == "mastodon":
                text = "Mastodon names no email address, and without [mail] host none is confirmed"
                yield Finding(Level.WARN, "login", f"[login.{provider.name}] {text}")
    if not config.site_origins:
        text = "any site can use this service; set [site] origins to your blog"
        yield Finding(warn_if_public, "origins", text)
    if not public_url:
        yield Finding(Level.NOTE, "public_url", "set [server] public_url before going live")
    elif not public_url.startswith("https:"):
        text = "public_url is not https: passwords are sent unencrypted"
        yield Finding(Level.WARN, "public_url", text)
    local = ("127.", "localhost:", "[::1]:", "unix:")
    behind_proxy = public_url and config.server_listen.startswith(local)
    if behind_proxy and not config.server_trusted_proxy:
        name = "unix" if config.listens_on_file else "127.0.0.1"
        effect = "otherwise all readers appear to have the same IP address"
        text = f"set [server] trusted_proxy = {name}: {effect}"
        yield Finding(Level.WARN, "trusted_proxy", text)
    if config.captcha_provider == "none":
        text = "[captcha] provider = none: no protection against bots"
        yield Finding(warn_if_public, "captcha", text)
    elif config.captcha_secret in TEST_SECRETS:
        yield Finding(Level.WARN, "captcha", "[captcha] secret is a public test key")
    if config.captcha_verify_url.startswith("http:"):
        text = "[captcha] verify_url is not https: secrets are sent unencrypted"
        yield Finding(Level.WARN, "captcha", text)
    for chat in config.chats:
        if chat.url.startswith("http:") and not is_safe_for_secrets(chat.url):
            text = f"{chat.section} url is not https: comments are sent unencrypted"
            yield Finding(Level.WARN, "webhook", text)
    if not config.limits_enabled:
        text = "[limits] enabled = no: there are no rate limits"
        yield Finding(warn_if_public, "limits", text)


def check_files(config: Config) -> Iterator[Finding]:
    path = config.database
    folder = Path(config.backup_folder).absolute()
    if path.parent.is_dir():
        yield from check_disk(path)
    for file in [path, Path(f"{path}-wal"), *regular_backups(path, folder)]:
        if file.exists() and file.stat().st_mode & 0o077:
            yield Finding(Level.WARN, "rights", f"others can read {file}: run chmod 600 on it")
    existing_folder = folder if folder.exists() else folder.parent
    if config.backup_every and not os.access(existing_folder, os.W_OK):
        yield Finding(
            Level.FAIL, "backup", f"{folder} is not writable: create it or change its owner"
        )
    if config.site_picture:
        yield from check_picture(config.site_picture)
    if config.geo_file and not os.access(config.geo_file, os.R_OK):
        text = f"can't read {config.geo_file}: the bundled tables are used"
        yield Finding(Level.WARN, "rights", text)


def check_picture(file: str) -> Iterator[Finding]:
    try:
        read_picture(file)
    except OSError:
        yield Finding(Level.WARN, "picture", f"can't read {file}: readers see no picture")
    except ValueError:
        text = f"{file} is no PNG, JPEG or WebP of at most 100 kB: readers see no picture"
        yield Finding(Level.WARN, "picture", text)


def check_disk(path: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(path.parent).free
    size = size_of(path) + size_of(Path(f"{path}-wal"))
    if free < 16 * MEGA:
        level = Level.FAIL
    elif free < max(64 * MEGA, 2 * size):
        level = Level.WARN
    else:
        level = Level.OK
    yield Finding(level, "disk", f"{free // MEGA} MB free; database {size / MEGA:.1f} MB")
    if not os.access(path.parent, os.W_OK):
        yield Finding(Level.FAIL, "rights", f"this user can't write to {path.parent}")


def check_figures(config: Config, figures: Figures, now: int) -> Iterator[Finding]:
    """What the database tells of the past."""
    text = f"{config.database_path}: comments: {figures.comments}, accounts: {figures.accounts}"
    yield Finding(Level.OK, "database", text)
    if not figures.admins:
        text = "no admin yet: open the link printed at start, or run `commentd admin EMAIL`"
        yield Finding(Level.NOTE, "admin", text)
    if max(figures.newest, RELEASED) > now + MINUTE:
        text = "the system clock is wrong: it is behind the newest comment or this release"
        yield Finding(Level.FAIL, "clock", text)
    if figures.unnamed_proxy and not config.server_trusted_proxy:
        text = "requests come through a proxy that is not trusted: set [server] trusted_proxy"
        yield Finding(Level.WARN, "trusted_proxy", text)
    if figures.failed or figures.late:
        text = f"emails that failed: {figures.failed}, delayed: {figures.late}"
        yield Finding(Level.WARN, "outbox", text)
    yield from check_backups(config, figures, now)


def check_backups(config: Config, figures: Figures, now: int) -> Iterator[Finding]:
    path = config.database
    times = regular_backups(path, Path(config.backup_folder)).values()
    if not config.backup_every:
        yield Finding(Level.NOTE, "backup", "[backup] every = 0: the service makes no backups")
    elif times:
        hours = int((now - max(times)) // HOUR)
        level = Level.OK if 0 <= hours < 2 * config.backup_every else Level.WARN
        yield Finding(level, "backup", f"last backup {hours} h ago")
    elif figures.comments:
        yield Finding(Level.NOTE, "backup", "no backup yet")


def check_versions() -> Iterator[Finding]:
    import importlib.metadata  # here, as it takes long and most commands do without

    for name, least in LEAST_VERSIONS.items():
        with contextlib.suppress(ImportError):  # unknown, or not readable for the owner
            installed = importlib.metadata.version(name)
            if version_numbers(installed) < version_numbers(least):
                text = f"{name} {installed} has known vulnerabilities: upgrade to {least}"
                yield Finding(Level.WARN, "versions", text)


def version_numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall("[0-9]+", version)]


def check_database(config: Config, now: int) -> Iterator[Finding]:
    path = config.database
    try:
        check_database_file(path)
        if not size_of(path):
            yield Finding(Level.NOTE, "database", f"{path} is made by the first start")
            return
        figures, wrong_count = figures_of(path, now)
        yield from check_figures(config, figures, now)
        if wrong_count:
            text = f"{wrong_count} counters are wrong; run `commentd recount`"
            yield Finding(Level.FAIL, "counters", text)
    except NewerDatabase as error:
        yield Finding(Level.FAIL, "database", way_back(error, Path(config.backup_folder)))
    except OperatorError as error:
        yield Finding(Level.FAIL, "database", str(error))


@dataclass(frozen=True)
class TrialMessages:
    """What `check` sends. `to`: where a test email goes, if it is not "". `to_owner`: whether the
    owner gets one in each way in which they hear of comments."""

    to: str = ""
    to_owner: bool = False


def check_outside(config: Config, world: World, messages: TrialMessages) -> Iterator[Finding]:
    """What only a try can show."""
    recipients = [messages.to] if messages.to else []
    if messages.to_owner:
        recipients += owners_of(config)
    yield from check_mail(config, world, dict.fromkeys(recipients))
    if messages.to_owner:
        yield from check_chats(config, world)
    yield from check_captcha(config, world)
    for provider in config.login_providers:
        yield check_provider(provider, config, world)
    yield from check_running(config, world)


def owners_of(config: Config) -> list[str]:
    """Who gets emails about comments."""
    owners = [*config.notify_owner]
    for page_rule in config.notify_pages:
        owners += page_rule.recipients
    if not config.notify_owner and size_of(config.database):
        owners += admins_of(config.database)
    return [owner for owner in owners if owner != "nobody"]


def check_mail(config: Config, world: World, recipients: Iterable[str]) -> Iterator[Finding]:
    """`recipients` get a test email."""
    mailer = mailer_type(config)(config, world)
    if mailer.delivers:
        try:
            mailer.log_in()
        except NotSent as error:
            yield from findings_of_fault(mailer, error)
            return
        yield Finding(Level.OK, "mail", mailer.readiness)
    for to in recipients:
        yield try_test_email(mailer, to)


def findings_of_fault(mailer: Mailer, error: NotSent) -> Iterator[Finding]:
    """Why nothing can be sent, and at which other port of a mail server it can."""
    hint = mailer.hint_for(error.reason)
    ports: list[TriedPort] = []
    # After a refused login, or without such a host, another port is of no use.
    if isinstance(mailer, SmtpMailer) and not re.match("53|gaierror", error.reason):
        ports = try_ports(mailer)
        hint = advice_on_ports(ports, error) or hint
    yield Finding(Level.FAIL, "mail", f"{mailer.name}: {error.explained}", hint)
    for port in ports:
        yield port.finding


# Where mail servers take emails, with the usual security. Many hosts block 25, some block all. The
# last one is for a mail server on the same machine.
MAIL_PORTS = ((587, "starttls"), (465, "tls"), (2525, "starttls"), (25, "starttls"), (25, "none"))


@dataclass(frozen=True)
class TriedPort:
    """A port of the mail server, and what it is good for."""

    server: MailServer
    finding: Finding
    is_reached: bool = True

    @property
    def works(self) -> bool:
        return self.finding.level == Level.OK


def try_ports(mailer: SmtpMailer) -> list[TriedPort]:
    """What each usual port is good for. The first one that works is tried with the login, no other:
    servers lock a mailbox after some wrong passwords."""
    import concurrent.futures  # here, as it takes long and is rarely needed

    servers = [
        replace(mailer.server, port=port, security=security)
        for port, security in MAIL_PORTS
        if security != "none" or is_loopback(mailer.server.host)
    ]
    with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
        ports = [*pool.map(functools.partial(try_port, mailer), servers)]
    for number, port in enumerate(ports):
        if port.works:
            ports[number] = try_login_at(mailer, port.server)
            break
    return ports


def try_port(mailer: SmtpMailer, server: MailServer) -> TriedPort:
    """Whether a port of the mail server takes emails. No password is sent."""
    at = f"port {server.port} with security = {server.security}"
    is_reached = True
    try:
        offers_login = mailer.world.offers_login(server)
    except ConnectionRefusedError:
        is_reached = False
        finding = Finding(Level.NOTE, "mail", f"{at} is closed")
    except TimeoutError:
        is_reached = False
        finding = Finding(Level.NOTE, "mail", f"{at} does not respond: it is probably blocked")
    except smtplib.SMTPNotSupportedError:
        finding = Finding(Level.NOTE, "mail", f"{at} has no TLS")
    except smtplib.SMTPServerDisconnected:
        is_reached = False
        finding = Finding(Level.NOTE, "mail", f"{at} says nothing")
    except (OSError, ValueError) as error:
        is_reached = getattr(error, "errno", None) not in (errno.ENETUNREACH, errno.EHOSTUNREACH)
        explained = mailer.not_sent(error, to="").explained
        finding = Finding(Level.NOTE, "mail", f"{at} does not work: {explained}")
    else:
        if mailer.config.mail_user and not offers_login:
            finding = Finding(Level.NOTE, "mail", f"{at} takes no login")
        else:
            finding = Finding(Level.OK, "mail", f"{at} works")
    return TriedPort(server, finding, is_reached)


def try_login_at(mailer: SmtpMailer, server: MailServer) -> TriedPort:
    """Whether a port that works takes the login."""
    at = f"port {server.port} with security = {server.security}"
    try:
        mailer.world.try_login(server)
    except (OSError, ValueError) as error:
        fault = mailer.not_sent(error, to="")
        text = f"{at} refuses the login: {fault.explained}"
        hint = mailer.hint_for(fault.reason)
        return TriedPort(server, Finding(Level.NOTE, "mail", text, hint))
    return TriedPort(server, Finding(Level.OK, "mail", f"{at} works"))


def advice_on_ports(ports: list[TriedPort], error: NotSent) -> str:
    """What to write into the settings, if the ports tell. "" if they do not."""
    for port in ports:
        if port.works:
            server = port.server
            return f"write into [mail]: port = {server.port} and security = {server.security}"
    is_reached = any(port.is_reached for port in ports)
    if not is_reached and re.search(NOT_REACHED, error.reason, re.IGNORECASE):
        return (
            "no port of it can be reached from this machine: if its host blocks SMTP, set "
            "[mail] provider, which sends by HTTPS (`commentd help mail`)"
        )
    return ""


def try_test_email(mailer: Mailer, to: str) -> Finding:
    """Whether a test email is taken. Whether it reaches an inbox, only the inbox can tell."""
    try:
        send_test_email(mailer, to)
    except NotSent as error:
        text = f"{mailer.name}: {error.explained}"
        return Finding(Level.FAIL, "mail", text, mailer.hint_for(error.reason))
    if not mailer.delivers:
        return Finding(Level.OK, "mail", f"the email to {to} is printed here")
    text = f"{mailer.name} has taken the email to {to}: look there, and into spam"
    return Finding(Level.OK, "mail", text)


def check_chats(config: Config, world: World) -> Iterator[Finding]:
    """Whether a test message arrives in each chat: a line for each."""
    for settings in config.chats:
        try:
            yield Finding(Level.OK, "chat", try_chat(settings, config, world))
        except NotSent as failure:
            text = f"{settings.section} {settings.kind} does not work: {failure.explained}"
            yield Finding(Level.FAIL, "chat", text)
    if config.webhook_rebuild_url:
        text = "[webhook] rebuild_url is not called: that would build your site"
        yield Finding(Level.NOTE, "chat", text)


def check_captcha(config: Config, world: World) -> Iterator[Finding]:
    provider = config.captcha_provider
    if provider in HOSTED_CAPTCHAS:
        attempt = functools.partial(provider_accepts, config, world, "check")
        yield run_check("captcha", f"{provider} accepts the secret", attempt, subject=provider)


def check_provider(provider: LoginProvider, config: Config, world: World) -> Finding:
    section = f"[login.{provider.name}]"
    try:
        endpoints = find_endpoints(provider, world)
        fault = fault_of_secret(provider, endpoints, config, world)
        fault = fault or fault_of_redirect_url(provider, endpoints, config, world)
    except ProviderFault as error:
        fault = str(error)
    except (OSError, ValueError) as error:
        fault = f"{provider.issuer or 'GitHub'} can't be reached: {terminal_line(str(error))}"
    if fault:
        return Finding(Level.FAIL, "login", f"{section} {fault}")
    return Finding(Level.OK, "login", f"{section} {provider.shown_name} accepts the secret")


def fault_of_secret(
    provider: LoginProvider, endpoints: Endpoints, config: Config, world: World
) -> str:
    """What a provider says to a code that nobody has got. It looks at the secret first. "" if that
    is right."""
    form = {
        "code": "check",
        "redirect_uri": redirect_url(config, provider),
        "code_verifier": "0" * 64,
    }
    status, response = ask_token_endpoint(provider, endpoints, world, form)
    error = error_word(response)
    if error == "redirect_uri_mismatch":
        return wrong_redirect_url(config, provider)
    # GitHub says 404 of an id that it does not know.
    wrong = ("invalid_client", "incorrect_client_credentials", "unauthorized_client")
    if error in wrong or status in (401, 404):
        return "the provider does not accept client_id and client_secret"
    if error in ("invalid_grant", "bad_verification_code", "invalid_request"):
        return ""
    return f"the provider says nothing of the secret: status {status} {error}".rstrip()


def fault_of_redirect_url(
    provider: LoginProvider, endpoints: Endpoints, config: Config, world: World
) -> str:
    """Some providers tell a browser with the status 400 that they do not know the redirect URL.
    Others let it sign in first, so that nothing is known here. "" then."""
    parameters = {
        "redirect_uri": redirect_url(config, provider),
        "state": "check",
        "nonce": "check",
        "code_challenge": base64.urlsafe_b64encode(bytes(32)).decode().rstrip("="),
        "code_challenge_method": "S256",
    }
    url = authorization_url(provider, endpoints, parameters)
    status, _ = world.fetch(url, None, {"accept": "text/html"})
    return wrong_redirect_url(config, provider) if status == 400 else ""


def wrong_redirect_url(config: Config, provider: LoginProvider) -> str:
    return f"tell the provider this redirect URL: {redirect_url(config, provider)}"


def check_running(config: Config, world: World) -> Iterator[Finding]:
    if not is_running(config.database):
        text = "not running; it is started by `systemctl start commentd`, or `commentd` here"
        yield Finding(Level.NOTE, "service", text)
    elif config.server_public_url:
        url = f"{config.server_public_url}/health"
        attempt = functools.partial(check_health_url, world, url)
        yield run_check("public_url", f"{url} is reachable", attempt, subject=url)


def send_test_email(mailer: Mailer, to: str) -> None:
    text = "这封邮件能送到，评论服务的邮件设置就是对的。\nYour comment service can send email."
    pieces = [Paragraph(text)]
    email = composed_email(mailer.config, to, UNKNOWN_LANGUAGE, "commentd: test", [pieces])
    mailer.send(email, mailer.world.random_bytes(16).hex())


def check_health_url(world: World, url: str) -> None:
    """`OSError` if the public URL does not lead to a healthy service."""
    status, body = world.fetch(url)
    if (status, body) != (200, b'{"ok":true}'):
        reasons = {
            502: "the proxy can't reach commentd",
            503: "commentd can't write to its disk; see its log",
        }
        raise OSError(f"HTTP {status}: {reasons.get(status, 'this is not commentd')}")


def run_check(topic: str, success: str, attempt: Callable[[], object], *, subject: str) -> Finding:
    """`success` as a finding, or that the `subject` failed, and why, if the attempt raises."""
    try:
        attempt()
    except (OSError, ValueError, NoVerdict) as error:
        detail = terminal_line(str(error))
        return Finding(Level.FAIL, topic, f"{subject}: {detail} ({type(error).__name__})")
    return Finding(Level.OK, topic, success)


def check_all(config: Config, world: World, messages: TrialMessages) -> Iterator[Finding]:
    """All that the command `check` finds."""
    yield from check_settings(config)
    yield from check_files(config)
    yield from check_versions()
    yield from check_database(config, world.now())
    yield from check_outside(config, world, messages)


def check_service(site: Site) -> Iterator[Finding]:
    """What a service finds out about itself when it starts."""
    config = site.config
    now = site.now()
    yield from check_settings(config)
    yield from check_files(config)
    yield from check_figures(config, site.store.figures(now), now)


def findings_inside(site: Site) -> list[Finding]:
    """What a running service finds wrong about itself, the worst last."""
    findings = [*check_service(site), *check_versions()]
    wrong = [finding for finding in findings if finding.level > Level.OK]
    return sorted(wrong, key=lambda finding: finding.level)


# -- Status -------------------------------------------------------------------

# What the service tells of itself: whether it works, what it counts, and what is to be set up.


@route("GET", "/health", Permission.PUBLIC)
def health(request: Request) -> Json:
    """`{ok}`; 503 if nothing can be written, which is tried every five seconds, or if the database
    is not what it was at the start."""
    store = request.site.store
    store.check_tables()
    with request.writing():
        if not is_recent(store.last_time("health"), request.now, 5):
            store.note_time("health", request.now)
    return {"ok": True}


@route("GET", "/origin", Permission.PUBLIC, pace=Pace.QUICK)
def get_origin(request: Request) -> Response:
    """`{allowed}`: whether the page that asks may show comments. Every page can read this, so that
    the widget can tell a missing `[site] origins` from a network that fails and from an ad blocker:
    a browser reports all three alike."""
    response = response_of({"allowed": may_write(request.site, OPEN_AREA, request.environ)})
    return replace(response, headers={"Access-Control-Allow-Origin": "*"})


def delivery_name(config: Config, count: OutboxCount) -> str:
    """What messages are, for those who look at /metrics."""
    if not count.event:
        return "email"
    if count.event == "rebuild":
        return "rebuild"
    programs = [chat.recipient for chat in config.chats if chat.kind == "json"]
    return "webhook" if count.recipient in programs else "chat"


def outbox_sums(request: Request) -> dict[tuple[str, str], int]:
    """The numbers of undelivered messages by what they are and how they are, also those of none."""
    sums = dict.fromkeys(
        itertools.product(("email", "chat", "webhook", "rebuild"), ("failed", "retried", "late")), 0
    )
    for count in request.site.store.count_outbox(request.now):
        name = delivery_name(request.site.config, count)
        sums[name, "failed"] += count.failed
        sums[name, "retried"] += count.retried
        sums[name, "late"] += count.late
    return sums


@route("GET", "/metrics", Permission.PUBLIC, pace=Pace.LONG)
def get_metrics(request: Request) -> Response:
    """Counts in the text format of Prometheus, if `[server] metrics` is on."""
    store = request.site.store
    if not request.site.config.server_metrics:
        raise no_such_url()
    ham, spam = learnt_counts(store)
    text = templates()["metrics.txt"].render(
        statuses=STATUSES,
        counts=store.count_statuses(),
        figures=store.figures(request.now),
        outbox=outbox_sums(request),
        ham=ham,
        spam=spam,
    )
    return Response(text.encode(), "text/plain; version=0.0.4; charset=utf-8")


@route("GET", "/.well-known/security.txt", Permission.PUBLIC, pace=Pace.QUICK)
def get_security_txt(request: Request) -> str:
    """The security contact (RFC 9116), if `[site] contact` is set."""
    contact = request.site.config.site_contact
    if not contact:
        raise no_such_url()
    expires = rfc3339(request.now + 30 * DAY)
    return f"Contact: {contact}\nExpires: {expires}\n"


@route("GET", "/", Permission.PUBLIC, pace=Pace.QUICK)
def home(request: Request) -> Response:
    """The set-up page for a new owner: the tag to paste, a live widget and a checklist."""
    config = request.site.config
    if config.server_public_url and not config.site_demo:
        raise no_such_url()
    state: Json = {"public": True}
    if not config.server_public_url and not request.site.store.admins():
        # Only topics and levels: nothing that tells of the machine.
        state = {each.topic: each.level.word for each in findings_inside(request.site)}
        if request.site.clients.saw_unnamed_proxy:
            state["trusted_proxy"] = Level.WARN.word
    return html_page(request.site, "home.html", state=json_in_html(state))


@route("GET", "/admin/settings", Permission.ADMIN, pace=Pace.LONG)
def admin_settings(request: Request) -> Json:
    """`?lang=zh` to the settings in effect, with secrets hidden, and what is wrong, the worst
    first."""
    language = query_text(request, "lang")
    return {
        "version": __version__,
        "settings": [
            each.for_admins() for each in settings_in_effect(request.site.config, language)
        ],
        "findings": [
            {
                "level": finding.level.word,
                "topic": finding.topic,
                "text": translated(finding.text, language),
            }
            for finding in reversed(findings_inside(request.site))
        ],
    }


# -- Markup -------------------------------------------------------------------

# Pure functions that make our Markdown of the texts of other products, which are HTML, Markdown or
# a mixture of both. HTML takes two steps: first it becomes HTML with our elements alone, and then
# Markdown. Where no Markdown looks the same, the HTML is kept.

# For HTML and Markdown alike

WEB = re.compile("https?://")
# A URL that needs no angle brackets in a link of Markdown.
PLAIN_TARGET = re.compile(r"(?:[^\s()<>\\]|\([^\s()<>\\]*\))+")


def html_link(text: str, url: str) -> str:
    return f'<a href="{html.escape(url)}">{html.escape(text)}</a>' if url else html.escape(text)


def markdown_link(text: str, url: str) -> str:
    """A link to a URL without spaces."""
    target = url if PLAIN_TARGET.fullmatch(url) else f"<{url}>"
    return f"[{text}]({target})" if url else text


LINK_OR_IMAGE = re.compile(r"(?i)<(?P<name>/?a|img)\b(?P<attributes>[^<>]*)>")
STICKER = re.compile("(?i)(?<![a-z])(v?emo(ji|t)|smil[ei]|owo|sticker|tv_)")


def images_as_links(text: str, link: Callable[[str, str], str]) -> str:
    """The text with a link for each `<img>` element, which `link` makes of a name and a URL. The
    URL is "" for a sticker, and for an image in a link, where a click leads elsewhere."""
    written = ""
    position = 0
    in_link = False
    for tag in LINK_OR_IMAGE.finditer(text):
        attributes = attributes_in(tag["attributes"])
        if tag["name"].lower() != "img":
            in_link = bool(WEB.match(attributes.get("href", "")))
            continue
        url = attributes.get("src", "")
        file_name = url.rpartition("/")[2]
        name = attributes.get("alt") or attributes.get("atk-emoticon") or file_name
        is_link = WEB.match(url) and not in_link and not STICKER.search(tag["attributes"])
        written += text[position : tag.start()] + link(name, url if is_link else "")
        position = tag.end()
    return written + text[position:]


def with_references_read(text: str) -> str:
    """A text with characters in the place of references such as `&amp;` and `&nbsp;`. A bare `&`
    stays."""
    if "&" not in text:
        return text
    return re.sub(r"&#?\w+;", lambda reference: html.unescape(reference[0]), text)


def outside(pattern: re.Pattern[str], text: str, change: Callable[[str], str]) -> str:
    """A text with all changed that a pattern does not match. The pattern has one group, which stays
    of each match."""
    pieces = pattern.split(text)
    # The first piece, the third and so on are what it does not match. Between them are the groups.
    pieces[::2] = map(change, pieces[::2])
    return "".join(pieces)


# HTML of others as HTML with our elements

MARKUP_LIMIT = 256 * 1024  # of characters, most of them tags: the text is cut at a quarter
END_OF_CELL = re.compile(r"(?i)</t[dh]\s*>")
QUOTATION_TAG = re.compile(r"(?i)</?q(\s[^<>]*)?>")
# Our element for each one of others that means the same, or comes near.
OUR_TAGS = {
    "b": "strong",
    **dict.fromkeys(("i", "cite", "dfn", "var"), "em"),
    **dict.fromkeys(("s", "strike"), "del"),
    **dict.fromkeys(("kbd", "samp", "tt"), "code"),
    **dict.fromkeys(("div", "section", "article", "h1", "h2", "h3", "h4", "h5", "h6"), "p"),
    **dict.fromkeys(("table", "caption", "tr", "dl", "dt", "dd", "details", "summary"), "p"),
    **dict.fromkeys(("figure", "figcaption"), "p"),
}
OTHER_TAG = re.compile(rf"(?i)<(?P<slash>/?)(?P<name>{'|'.join(OUR_TAGS)})\b[^<>]*>")
BLOCK_AT_START = re.compile(r"(?i)\s*<(p|pre|blockquote|ul|ol)\b")
EMPTY_PARAGRAPH = re.compile(r"<p>(?:\s|&nbsp;)*</p>")
# What `clean` leaves of a link whose URL it takes away.
DEAD_LINK = re.compile(r'(?s)<a rel="[^"]*">(?P<text>.*?)</a>')


def html_in(markup: str) -> str:
    """Another product's HTML as ours."""
    # `clean` drops all elements but ours. So before, the others become what readers see of them.
    markup = images_as_links(markup[:MARKUP_LIMIT], html_link)
    markup = media_as_links(markup)
    markup = END_OF_CELL.sub(" ", markup)  # the words of two cells do not become one
    markup = QUOTATION_TAG.sub('"', markup)
    markup = OTHER_TAG.sub(our_tag, markup)
    # Text that stands before all blocks is a paragraph.
    if not BLOCK_AT_START.match(markup):
        markup = f"<p>{markup}"
    markup = clean_foreign(markup)
    # Afterwards goes what nobody sees: also control characters, as which `clean` reads `&#7;`.
    markup = without_controls(markup)
    markup = EMPTY_PARAGRAPH.sub("", markup).strip()
    return DEAD_LINK.sub(r"\g<text>", markup)


MEDIUM = re.compile(
    r"(?i)<(?P<name>iframe|embed|object|param|video|audio|source)\b(?P<attributes>[^<>]*)>"
)


def media_as_links(markup: str) -> str:
    """The HTML with a link for each film, sound, frame or other object."""
    linked = set[str]()  # a film stands in several elements, for old and for new browsers

    def link_to(tag: re.Match[str]) -> str:
        url = medium_url(tag["name"].lower(), attributes_in(tag["attributes"]))
        if url in linked or not WEB.match(url):
            return ""
        linked.add(url)
        return html_link(url, url)

    return MEDIUM.sub(link_to, markup)


def medium_url(tag_name: str, attributes: dict[str, str]) -> str:
    """The URL of what an element shows. "" if it names none."""
    if tag_name == "param" and attributes.get("name", "").lower() in ("movie", "src"):
        url = attributes.get("value", "")
    else:
        url = attributes.get("src") or attributes.get("data") or ""
    return re.sub("^//", "https://", url)


def our_tag(tag: re.Match[str]) -> str:
    return f"<{tag['slash']}{OUR_TAGS[tag['name'].lower()]}>"


def clean_foreign(markup: str) -> str:
    """`clean`, twice. Within an element that it drops, such as `<button>`, a paragraph may begin in
    a paragraph and a link in a link. The second time, one ends where the next one begins."""
    cleaned = clean(markup)
    return cleaned if cleaned == markup else clean(cleaned)


# Links in Disqus lead to a URL with the target and a hash, and a URL as their text is cut:
# `<a href="https://disq.us/url?url=https%3A%2F%2Fb.example%3AQpX_0&amp;cuid=1">https://b...</a>`.
DISQUS_LINK = re.compile(
    r"""(?x)
    <a\ href="https?://disq\.us/url\?url= (?P<target> [^"&]+ ) %3A[\w-]+ (?: &[^"]* )?"
    (?P<cut_text> [^<>]*> https?://[^<]* \.\.\. (?=</a>) )?
    """
)


def direct_link(link: re.Match[str]) -> str:
    """A link of Disqus as one to its target, which is also its text if that was cut."""
    url = html.escape(without_controls(urllib.parse.unquote(link["target"])).strip())
    text = f">{url}" if link["cut_text"] else ""
    return f'<a href="{url}"{text}'


PREFORMATTED = re.compile(r"(?is)\n?(<pre\b.*?</pre>)\n?")


def paragraphs_of(text: str) -> str:
    """HTML in which breaks and paragraphs have tags, of HTML in which the end of a line is a break
    and an empty line ends a paragraph, as in WordPress. In code they stay."""
    inner = outside(PREFORMATTED, text.strip().replace("\r", ""), with_breaks)
    return f"<p>{inner}</p>"


def with_breaks(text: str) -> str:
    if "\n" not in text:
        return text
    text = re.sub(r"\n\s*\n\s*", "</p><p>", text)
    # Beside a break or a block, the end of a line is no other break.
    text = re.sub(r"(?i)<br\s*/?>\n", "\n", text)
    text = re.sub(r"(?i)\n?(</?(?:p|[uo]l|li|blockquote|hr)\b[^<>]*>)\n?", r"\1", text)
    return text.replace("\n", "<br>")


TAG_LINK_OR_CODE = re.compile(r"(?is)(<(?:a|code|pre)\b.*?</(?:a|code|pre)>|<[^>]*>)")


@functools.cache
def wordpress_url() -> re.Pattern[str]:
    """Matches the bare URLs of which WordPress makes links when it shows a comment: not those in
    links and code. To compile it takes 3 ms."""
    return re.compile(rf"{URL_IN_TEXT}|(?<![\w/.@-])www\.{AFTER_SCHEME}")


def with_links(markup: str) -> str:
    """Our HTML with links for its bare URLs."""
    if "://" not in markup and "www." not in markup:
        return markup
    return clean(outside(TAG_LINK_OR_CODE, markup, text_with_links))


def text_with_links(markup: str) -> str:
    """HTML without tags, with links for its bare URLs."""
    text = html.unescape(markup)
    linked = ""
    position = 0
    for match in wordpress_url().finditer(text):
        url = bare_url(match)
        target = url if "://" in url else f"http://{url}"
        linked += html.escape(text[position : match.start()]) + html_link(url, target)
        position = match.start() + len(url)
    return linked + html.escape(text[position:])


# Markdown of others as ours

# What no text has that is Markdown alone, and nothing that we read in another way.
MAY_BE_HTML = re.compile(r"[<&]|\[@")
MARKDOWN_CODE = re.compile(r"(?s)(```.*?(?:```|\Z)|`[^`]+`)")
AT_ANCHOR = re.compile(r"\[(@[^\[\]]*)\]\(#[^()]*\)")  # how replies of Waline begin
LINK_TAG = re.compile(r"(?i)<a\s(?P<attributes>[^<>]*)>(?P<text>[^<>]*)</a>")
# Tags that people write within Markdown, each with what takes its place. Others are shown as text.
TAGS_IN_MARKDOWN = {
    re.compile(r"(?i)<(b|strong)>([^\s<](?:[^<]*[^\s<])?)</\1>"): r"**\2**",
    re.compile(r"(?i)<(i|em)>([^\s<](?:[^<]*[^\s<])?)</\1>"): r"*\2*",
    re.compile(r"(?i)<(s|del|strike)>([^\s<](?:[^<]*[^\s<])?)</\1>"): r"~~\2~~",
    re.compile(r"(?i)<(code|kbd|samp|tt)>([^<`]+)</\1>"): r"`\2`",
    re.compile(r"(?i)<(u|ins|mark|small|big|sub|sup|font|span)(?:\s[^<>]*)?>([^<]*)</\1>"): r"\2",
    re.compile(r"(?i)<(p|div|center)(?:\s[^<>]*)?>([^<]*)</\1>"): "\n\n\\2\n\n",
    re.compile(r"(?i)<br\s*/?>\n?"): "\n",
}


def markdown_in(text: str) -> str:
    """Another product's Markdown as ours. In it may stand HTML, such as images."""
    if not MAY_BE_HTML.search(text):
        return text
    return without_controls(outside(MARKDOWN_CODE, text, prose_in)).strip()


def prose_in(text: str) -> str:
    """Another product's Markdown as ours, where it is no code."""
    text = images_as_links(text, markdown_link)
    # Each pattern finds the innermost tags. So the second time, those around them are found.
    for _ in range(3):
        text = LINK_TAG.sub(link_in_markdown, text)
        for tag, markdown in TAGS_IN_MARKDOWN.items():
            text = tag.sub(markdown, text)
    text = with_references_read(text)  # which our Markdown keeps as they are: `&lt;`
    return AT_ANCHOR.sub(r"\1", text)


def link_in_markdown(tag: re.Match[str]) -> str:
    """Markdown for an `<a>` element. If it leads to no website, this is its text alone."""
    url = attributes_in(tag["attributes"]).get("href", "").strip()
    text = " ".join(tag["text"].split())
    if not WEB.match(url) or re.search(r"[\s<>]", url):
        return text
    if text in ("", url):
        return f"<{url}>"
    return markdown_link(re.sub(r"[\[\]\\]", r"\\\g<0>", text), url)


# Our HTML as a tree

MOST_NESTED = 30
BLOCK_TAGS = ("p", "pre", "blockquote", "ul", "ol", "li", "hr")
EMPHASIS = {"em": "*", "strong": "**", "del": "~~"}
WHITE = " \t\r\n\f"  # HTML shows any number of them as one space; others, such as U+00A0, stay
SPACES = re.compile(f"[{WHITE}]+")
# A tag of our HTML, which `clean` has written. The value of an attribute may hold `>`.
OUR_TAG = re.compile(r'<(?P<slash>/?)(?P<name>[a-z]+)(?P<attributes>(?: [a-z]+="[^"]*")*)>')


@dataclass
class Element:
    """An element of our HTML. `children` are elements and texts."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list["Element | str"] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text of the element, with breaks as ends of lines."""
        if self.tag == "br":
            return "\n"
        return "".join(each if isinstance(each, str) else each.text for each in self.children)

    @property
    def blocks(self) -> list["Element"]:
        """The blocks in it. What stands between them is a paragraph."""
        blocks: list[Element] = []
        paragraph: Element | None = None
        for child in self.children:
            if isinstance(child, Element) and child.tag in BLOCK_TAGS:
                blocks.append(child)
                paragraph = None
            elif paragraph is not None:
                paragraph.children.append(child)
            elif isinstance(child, Element) or child.strip(WHITE):
                paragraph = Element("p", children=[child])
                blocks.append(paragraph)
        return blocks

    @property
    def first_number(self) -> int:
        """The number that a list begins with."""
        return count_in(self.attributes.get("start", "1"), 10**8)

    @property
    def code_class(self) -> str:
        """`language-js` for a block of such code. If it names no language, this is ""."""
        inner = self.children[0] if self.children else ""
        return inner.attributes.get("class", "") if isinstance(inner, Element) else ""


def element_of(markup: str) -> Element | None:
    """Our HTML as an element. If it is nested deeper than anyone writes, this is None."""
    whole = Element("")
    # For each tag that has not ended: the element that what follows is in, the innermost last.
    open_elements = [whole]
    position = 0
    for tag in OUR_TAG.finditer(markup):
        add_text(markup[position : tag.start()], open_elements)
        position = tag.end()
        if tag["slash"]:
            open_elements.pop()
        elif tag["name"] in ("br", "hr"):
            open_elements[-1].children.append(Element(tag["name"]))
        elif len(open_elements) == MOST_NESTED:
            return None
        else:
            open_elements.append(opened_element(tag, open_elements))
    add_text(markup[position:], open_elements)
    return whole


def add_text(markup: str, open_elements: list[Element]) -> None:
    """Adds what stands between two tags to the innermost element."""
    if markup:
        is_code_block = any(element.tag == "pre" for element in open_elements)
        text = html.unescape(markup)
        open_elements[-1].children.append(text if is_code_block else SPACES.sub(" ", text))


def opened_element(tag: re.Match[str], open_elements: list[Element]) -> Element:
    """The element that a tag opens. It is a new one, but for emphasis that shows no difference:
    what is in that belongs to an element that is there already."""
    name = tag["name"]
    innermost = open_elements[-1]
    if name in EMPHASIS:
        # Emphasis within the same emphasis shows nothing: `<em>a <em>b</em></em>` is one.
        if any(element.tag == name for element in open_elements):
            return innermost
        # Markdown would not tell them apart: `<em>a</em><em>b</em>` is one.
        last = innermost.children[-1] if innermost.children else ""
        if isinstance(last, Element) and last.tag == name:
            return last
    element = Element(name, attributes_in(tag["attributes"]))
    innermost.children.append(element)
    return element


# The tree as Markdown

# What has a meaning in Markdown, anywhere.
SPECIAL = re.compile(r"[\\`*_\[\]<~]|:(?=//)")
# What has one at the start of a line: it gets a backslash, and the number of a list gets it behind.
SPECIAL_AT_START = re.compile(
    r"""(?xm)
    ^ (?:
        (?= \#{1,6} (?:[ ]|$) )  # a heading
        | (?= [-+] (?:[ ]|$) )  # an item of a list
        | (?= [-=]+ [ ]* $ )  # a line below a heading
        | (?= > )  # a quote
        | (?P<number> \d+ ) (?= [.)] )  # an item of a numbered list
    )
    """
)
LIST_START = re.compile(r"[-*] |\d+[.)] ")


@dataclass(frozen=True)
class MarkdownWriter:
    """Writes our HTML as Markdown."""

    # Whether all is escaped that may have a meaning in Markdown. Most texts read the same without,
    # and are plainer to edit.
    escapes: bool

    def blocks(self, element: Element) -> list[str]:
        texts: list[str] = []
        previous = ""
        for block in element.blocks:
            # Two lists in a row have different marks: with the same they would be one.
            is_second = block.tag == previous
            if text := self.block(block, is_second=is_second):
                texts.append(text)
                previous = "" if is_second else block.tag
        return texts

    def block(self, element: Element, *, is_second: bool) -> str:
        if element.tag == "pre":
            return self.code_block(element)
        if element.tag == "hr":
            return "***"  # in a list, `---` would end it
        if element.tag == "blockquote":
            lines = "\n\n".join(self.blocks(element)).split("\n")
            return "\n".join(f"> {line}" if line else ">" for line in lines)
        if element.tag in ("ul", "ol"):
            return self.list_items(element, is_second=is_second)
        return self.paragraph(element)

    def code_block(self, element: Element) -> str:
        code = element.text.removeprefix("\n").removesuffix("\n")
        fence = "`" * max(3, longest_run(code) + 1)
        language = element.code_class.removeprefix("language-")
        return f"{fence}{language}\n{code}\n{fence}"

    def list_items(self, element: Element, *, is_second: bool) -> str:
        """Each item behind its mark, and what follows in it indented, with an empty line before all
        but a list:

            1. The first
               - with a list in it
            2. The second
        """
        items: list[str] = []
        separator = "\n"
        for number, item in enumerate(element.blocks, element.first_number):
            blocks = self.blocks(item) or [""]
            if all(LIST_START.match(block) for block in blocks[1:]):
                text = "\n".join(blocks)
            else:
                text = "\n\n".join(blocks)
                separator = "\n\n"
            mark = list_mark(element.tag, number, is_second=is_second)
            indentation = " " * (len(mark) + 1)
            text = re.sub(r"\n(?=[^\n])", f"\n{indentation}", text)
            items.append(f"{mark} {text}".rstrip(" "))
        return separator.join(items)

    def paragraph(self, element: Element) -> str:
        """Two breaks in a row end a paragraph."""
        lines = [line.strip(" ") for line in self.inline(element).split("\n")]
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
        if self.escapes:
            text = SPECIAL_AT_START.sub(r"\g<number>\\", text)
        return text

    def inline(self, element: Element) -> str:
        """What is in a paragraph, or in a part of one."""
        text = ""
        for child in element.children:
            if isinstance(child, str):
                text += SPECIAL.sub(r"\\\g<0>", child) if self.escapes else child
            elif child.tag == "br":
                text += "\n"
            elif child.tag == "code":
                text += "\n".join(map(code_span, child.text.split("\n")))
            else:
                text += self.link_or_emphasis(child)
        return text

    def link_or_emphasis(self, element: Element) -> str:
        text = self.inline(element)
        # Emphasis neither begins nor ends with a space of any kind.
        inner = text.strip()
        if not inner:
            return text
        before, after = text.split(inner, 1)
        # An empty line would end the paragraph.
        inner = re.sub(r"\n(?= *\n)", r"\n\\", inner)
        if element.tag == "a":
            inner = self.link(element, inner)
        mark = EMPHASIS.get(element.tag, "")
        return f"{before}{mark}{inner}{mark}{after}"

    def link(self, element: Element, text: str) -> str:
        url = element.attributes.get("href", "")
        shown = element.text
        if shown in (url, url.removeprefix("mailto:")) and html.unescape(url) == url:
            is_web = WEB.match(url)
            return shown if is_web and not self.escapes else f"<{shown}>"
        if not PLAIN_TARGET.fullmatch(url):
            url = url.replace("<", "%3C").replace(">", "%3E").replace("\\", "%5C")
            url = f"<{url}>"
        return f"[{text}]({url})"


def list_mark(tag: str, number: int, *, is_second: bool) -> str:
    """The mark of an item. A list that follows another one has other marks."""
    if tag == "ol":
        return f"{number})" if is_second else f"{number}."
    return "*" if is_second else "-"


def longest_run(code: str) -> int:
    """The number of back-ticks in the longest run of them."""
    return max(map(len, re.findall("`+", code)), default=0)


def code_span(code: str) -> str:
    code = code.strip(" ")
    if not code:
        return ""
    fence = "`" * (longest_run(code) + 1)
    padding = " " if "`" in (code[0], code[-1]) else ""
    return f"{fence}{padding}{code}{padding}{fence}"


# How the tree looks

# What readers see of an element, in order: texts, code, and marks where a list, an item, a quote or
# a rule begins and ends. It is equal for two elements that look the same, however these are
# written. For `<p>a<br>b <em>c</em></p><ul><li>d</li></ul>` it is
#
#     [StyledText("a\nb "), StyledText("c", {"em"}), "ul 1", "li 1", StyledText("d"), "/li", "/ul"]
#
# Paragraphs have no marks: `<p>a</p><p>b</p>` is the text "a\n\nb", as is `<p>a<br><br>b</p>`.

Styles = frozenset[str]
NO_STYLE: Styles = frozenset()
GAP = re.compile("([ \n\xa0\u3000]+)")


@dataclass(frozen=True)
class StyledText:
    """Text that looks the same throughout."""

    text: str
    styles: Styles = NO_STYLE  # the elements that it is in: `em`, or for a link `a URL`


@dataclass(frozen=True)
class SeenCode:
    """A block of code. It shows each space that is in it, but not the ends of lines around it."""

    language: str  # its class
    text: str
    is_plain: bool  # whether nothing in it is emphasised, linked, or a block of its own


Seen = StyledText | SeenCode | str  # a string is a mark


def appearance(element: Element) -> list[Seen]:
    seen: list[Seen] = []
    texts: list[StyledText] = []  # since the last mark or code
    for piece in seen_pieces(element, NO_STYLE):
        if isinstance(piece, StyledText):
            texts.append(piece)
        else:
            seen += with_plain_gaps(texts)
            texts = []
            seen.append(piece)
    return seen + with_plain_gaps(texts)


def seen_pieces(element: Element, styles: Styles) -> Iterator[Seen]:
    """What is in an element, one after the other. `styles` are those of the elements around it.
    Some texts may have the same styles, and gaps between words may be written in several ways."""
    for child in element.children:
        if isinstance(child, str):
            yield StyledText(child, styles)
        elif child.tag == "br":
            yield StyledText("\n")
        elif child.tag == "p":
            yield StyledText("\n\n")
            yield from seen_pieces(child, styles)
            yield StyledText("\n\n")
        elif child.tag == "pre":
            yield seen_code(child)
        elif child.tag in BLOCK_TAGS:
            yield f"{child.tag} {child.first_number}"
            yield from seen_pieces(child, styles)
            yield f"/{child.tag}"
        elif child.tag == "a":
            url = urllib.parse.unquote(child.attributes.get("href", ""))
            yield from seen_pieces(child, styles | {f"a {url}"})
        else:
            yield from seen_pieces(child, styles | {child.tag})


def seen_code(element: Element) -> SeenCode:
    pieces = [*seen_pieces(element, NO_STYLE)]
    texts = [piece for piece in pieces if isinstance(piece, StyledText)]
    code = "".join(piece.text for piece in texts)
    return SeenCode(
        element.code_class,
        code.removeprefix("\n").removesuffix("\n"),
        is_plain=len(texts) == len(pieces) and all(piece.styles <= {"code"} for piece in texts),
    )


def with_plain_gaps(texts: list[StyledText]) -> list[StyledText]:
    """The texts with one spelling of each gap between words. A gap has no style, since readers
    don't see whether a space is bold, and none stands at the beginning or the end."""
    pieces = [
        StyledText(text, NO_STYLE if GAP.fullmatch(text) else styled.styles)
        for styled in texts
        for text in GAP.split(styled.text)
        if text
    ]
    seen = []
    for styled in joined(pieces):
        text = re.sub(" *\n *", "\n", styled.text)
        text = re.sub(" {2,}", " ", text)
        text = re.sub("\n{2,}", "\n\n", text)
        seen.append(StyledText(text, styled.styles))
    if seen:
        seen[0] = StyledText(seen[0].text.lstrip(" \n"), seen[0].styles)
        seen[-1] = StyledText(seen[-1].text.rstrip(" \n"), seen[-1].styles)
    return [styled for styled in seen if styled.text]


def joined(texts: list[StyledText]) -> list[StyledText]:
    """The texts, with those one that stand side by side in the same styles."""
    groups = itertools.groupby(texts, operator.attrgetter("styles"))
    return [StyledText("".join(each.text for each in group), styles) for styles, group in groups]


def is_shown_alike(shown: str, element: Element, markup: str) -> bool:
    """Whether readers see the same of the HTML `shown` and of an element. `markup` is the HTML of
    that element."""
    # Most HTML differs in the ends of lines alone, if at all, which is seen sooner.
    if re.sub("(?<=>)\n", "", shown) == re.sub("(?<=>)\n", "", markup):
        return True
    shown_element = element_of(shown)
    return shown_element is not None and appearance(shown_element) == appearance(element)


# The text of a comment


@dataclass(frozen=True)
class Content:
    """The text of a comment as we store it: Markdown, and how it is shown."""

    markdown: str
    html: str
    own_html: bool = False  # whether the HTML is shown though the Markdown would look otherwise


# How HTML begins, as others make it of the Markdown that a reader wrote.
HTML_START = re.compile(
    r"(?i)\s*<(p|pre|blockquote|[uod]l|h\d|div|section|article|table|hr|details|figure|center)\b"
    r"|\s*<a class="
)


def content_of_markdown(text: str) -> Content:
    return Content(text, safe_html(text))


def content_of_either(text: str) -> Content:
    """The text of a product that shows Markdown, and has kept the HTML of what it imported
    itself."""
    if HTML_START.match(text):
        return content_of_html(html_in(text))
    return content_of_markdown(markdown_in(text))


def content_of_disqus(text: str) -> Content:
    return content_of_html(html_in(DISQUS_LINK.sub(direct_link, text)))


def content_of_lines(text: str) -> Content:
    return content_of_html(with_links(html_in(paragraphs_of(text))))


def content_of_html(markup: str) -> Content:
    """Our HTML as Markdown that looks the same, or as it is if there is no such Markdown."""
    element = element_of(markup)
    if element is None:
        return Content(text_of(markup), markup, own_html=True)
    markdown = ""
    for escapes in (False, True):
        markdown = "\n\n".join(MarkdownWriter(escapes).blocks(element)).strip()
        shown = safe_html(markdown)
        if is_shown_alike(shown, element, markup):
            return Content(markdown, shown)
    return Content(markdown, markup, own_html=True)


def text_of(markup: str) -> str:
    """What a reader sees of our HTML, as plain text."""
    text = re.sub(r"<br>\n?|</li>", "\n", markup)
    text = re.sub(r"</(p|pre|blockquote|ul|ol)>", "\n\n", text)
    text = html.unescape(re.sub(r"<[^>]*>", "", text))
    return re.sub(r"\n{3,}", "\n\n", text).strip()


# -- Foreign ------------------------------------------------------------------

# Files of other products, and our own export: which product they are of, how they are read (also
# when they are damaged), and where each record has its fields. What comes out are texts by the
# names of our fields. Nothing here knows the store.

# What a product's file looks like

Paths = dict[str, str]  # where a record has what: the path of a value, by what it is


@dataclass(frozen=True)
class Table:
    """Records of one sort, and where they have our fields.

    In a path, `user.name` is a value inside of another. Of `a|b`, the first is taken that is there.
    So with `{"id": "id", "nickname": "user.name|nick"}`, the record `{"id": 7, "user": {"name":
    "Ann"}}` has the fields `id` 7 and `nickname` Ann.

    A record of XML has its attributes and the elements in it by their names: `parent.@id` is the
    attribute `id` of the element `parent`. Besides, `in` is the number of the page that it stands
    in."""

    # Of the list, table or element in the file that the records stand in; "" if it has no name.
    name: str
    fields: Paths


NO_TABLE = Table("", {})


@dataclass(frozen=True)
class Product:
    """How the file of a product is recognised and read.

    The fields that a comment can have:

        id          of the comment, in the product
        parent      the id of the comment that it replies to
        thread      the id of its top-level comment, used where the parent is missing
        type        what it is: others than "comment" are left out
        page        the URL of its page, or the `id` of the page if pages have one
        title       of its page
        closed      whether its page takes no more comments
        site        the name of its blog
        author      the `id` of its author, whose fields win over those of the comment
        nickname, email, website, ip
        likes       their number, or a list of those who like it
        pinned
        created_at, edited_at

    Its text is in one of these:

        markdown    as we write it
        html
        lines       HTML in which the end of a line is a break
        disqus      HTML whose links go through Disqus
        either      Markdown, or HTML that the product has imported itself
        own_html    HTML that is shown in the place of `markdown`, which it has besides

    The fields that a page can have:

        id          of the page, in the product
        page        its URL
        title
        views, page_likes
        closed      whether it takes no more comments
        opened_at   when it was made
        gone        whether it was deleted: then it is left out

    The fields that an author can have: id, nickname, email, website."""

    # A pattern for the beginning of the file; for SQLite, for the names of its tables.
    sign: str
    comments: Table
    pages: Table = NO_TABLE
    authors: Table = NO_TABLE
    # The status of a comment, by the path of a value that is true, or that is false. The first that
    # applies counts.
    status_if_true: dict[str, str] = field(default_factory=dict)
    status_if_false: dict[str, str] = field(default_factory=dict)
    # Where none applies: the path of a value, and the status by that value in lower case. Without a
    # value, a comment is visible. With one that is not listed, it waits.
    status_path: str = ""
    statuses: dict[str, str] = field(default_factory=dict)
    # What means that a page takes no more comments; "" if that is true or false.
    closed_value: str = ""
    # What an import leaves out, with its path. The report counts it.
    lost: Paths = field(default_factory=dict)
    zone: str = ""  # of times that name none; UTC if this is ""
    names_are_html: bool = False  # whether `&amp;` in names and URLs stands for `&`
    sql: str = ""  # what reads the comments, if the file is an SQLite database

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.comments, self.pages, self.authors)


WALINE_COMMENTS = Table(
    "Comment",
    {
        "id": "objectId",
        "parent": "pid",
        "thread": "rid",
        "page": "url",
        "author": "user_id",
        "nickname": "nick",
        "email": "mail",
        "website": "link",
        "either": "comment",
        "ip": "ip",
        "likes": "like",
        "pinned": "sticky",
        "created_at": "insertedAt|createdAt",
    },
)
WALINE_VIEWS = Table("Counter", {"page": "url", "title": "title", "views": "time"})
WALINE_STATUSES = {"approved": "visible", "spam": "spam"}

# The first whose sign is found in a file reads it. So Waline stands before Valine, whose sign is in
# its files too, and commentd before Artalk.
PRODUCTS = {
    "commentd": Product(
        sign=r'\{"format": "commentd"',
        comments=Table(
            "comments",
            {
                **{name: name for name in EXPORTED_FIELDS},
                "parent": "parent_id",
                "page": "page_key",
                "markdown": "content",
                "own_html": "html",
                "created_at": "created_at",
                "edited_at": "edited_at",
            },
        ),
        pages=Table(
            "pages",
            {
                "id": "page_key",
                "page": "page_url",
                "title": "title",
                "views": "views",
                "page_likes": "page_likes",
                "closed": "closed",
                "opened_at": "opened_at",
            },
        ),
        status_path="status",
        statuses={status: status for status in STATUSES},
    ),
    "waline": Product(
        sign=r'(?s).*"type"\s*:\s*"waline"|.*"objectId".*"(like|sticky|status)"\s*:',
        comments=WALINE_COMMENTS,
        pages=WALINE_VIEWS,
        authors=Table(
            "Users",
            {"id": "objectId", "nickname": "display_name", "email": "email", "website": "url"},
        ),
        status_if_true={"isSpam": "spam"},
        status_path="status",
        statuses=WALINE_STATUSES,
        lost={
            "reactions": "|".join(f"reaction{number}" for number in range(9)),
            "user agents": "ua",
            "avatars": "avatar",
            "labels of authors": "label",
        },
        zone="+08:00",  # that of its image, for storages other than LeanCloud
    ),
    "twikoo": Product(
        sign=r'(?s)(?=.*"_id"\s*:).*"(nick|comment|time)"\s*:',
        comments=Table(
            "comment",
            {
                "id": "_id",
                "parent": "pid",
                "thread": "rid",
                "page": "url|href",
                "nickname": "nick",
                "email": "mail",
                "website": "link",
                "html": "comment",
                "ip": "ip",
                "likes": "ups|like",
                "pinned": "top",
                "created_at": "created",
            },
        ),
        pages=WALINE_VIEWS,
        status_if_true={"isSpam": "waiting"},
        lost={
            "user agents": "ua",
            "downvotes": "downs",
            "avatars": "avatar",
            "marks of the admin": "master",
        },
    ),
    "valine": Product(
        sign=r'(?s)#filetype:JSON-streaming|.*"objectId"\s*:',
        comments=WALINE_COMMENTS,
        pages=WALINE_VIEWS,
        status_if_true={"isSpam": "spam"},
        status_path="status",
        statuses=WALINE_STATUSES,
        lost={"user agents": "ua"},
        names_are_html=True,
    ),
    "cusdis": Product(
        sign=r".*\bcomments\b.*\bpages\b.*\bprojects\b",
        comments=Table(
            "",
            {
                "id": "id",
                "parent": "parentId",
                "page": "url|slug",
                "title": "title",
                "nickname": "by_nickname",
                "email": "by_email",
                "either": "content",
                "created_at": "created_at",
            },
        ),
        status_if_true={"deletedAt": "deleted"},
        status_if_false={"approved": "waiting"},
        lost={"marks of the admin": "moderatorId"},
        sql="""
            SELECT comments.*, pages.slug, pages.url, pages.title
              FROM comments LEFT JOIN (pages JOIN projects ON projects.id = pages.projectId
                   AND coalesce(projects.deleted_at, '') = '') ON pages.id = comments.pageId""",
    ),
    "disqus": Product(
        sign=r"""(?s)\s*<.*\sxmlns(:\w+)?=["']http://disqus\.com""",
        comments=Table(
            "post",
            {
                "id": "@id",
                "parent": "parent.@id",
                "page": "thread.@id",
                "disqus": "message",
                "email": "author.email",
                "nickname": "author.name|author.username",
                "ip": "ipAddress",
                "created_at": "createdAt",
            },
        ),
        pages=Table(
            "thread",
            {
                "id": "@id",
                "page": "link|id",
                "title": "title",
                "closed": "isClosed",
                "gone": "isDeleted",
                "opened_at": "createdAt",
            },
        ),
        status_if_true={"isDeleted": "deleted", "isSpam": "spam"},
        status_if_false={"isApproved": "waiting"},
    ),
    "wordpress": Product(
        sign=r"""(?s)\s*<.*\sxmlns(:\w+)?=["']https?://wordpress\.org/export/""",
        comments=Table(
            "comment",
            {
                "id": "comment_id",
                "parent": "comment_parent",
                "page": "in",
                "nickname": "comment_author",
                "email": "comment_author_email",
                "website": "comment_author_url",
                "ip": "comment_author_IP",
                "lines": "comment_content",
                "created_at": "comment_date_gmt|comment_date",
                "type": "comment_type",
            },
        ),
        pages=Table(
            "item",
            {
                "id": "in",
                "page": "link",
                "title": "title",
                "closed": "comment_status",
                "opened_at": "post_date_gmt",
            },
        ),
        status_path="comment_approved",
        statuses={"1": "visible", "spam": "spam", "trash": "deleted"},
        closed_value="closed",
        lost={"fields of plugins": "commentmeta"},
        names_are_html=True,
    ),
    "isso": Product(
        sign=r".*\bcomments\b.*\bthreads\b",
        comments=Table(
            "",
            {
                "id": "id",
                "parent": "parent",
                "page": "uri",
                "title": "title",
                "nickname": "author",
                "email": "email",
                "website": "website",
                "either": "text",
                "ip": "remote_addr",
                "likes": "likes",
                "created_at": "created",
                "edited_at": "modified",
            },
        ),
        status_path="mode",
        statuses={"1": "visible", "4": "deleted"},
        lost={"downvotes": "dislikes", "subscriptions to replies": "notification"},
        names_are_html=True,
        sql="""
            SELECT comments.*, threads.uri, threads.title
              FROM comments LEFT JOIN threads ON threads.id = tid""",
    ),
    "remark42": Product(
        sign=r'(?s)\s*\{"version":\s*1,\s*"(users|posts)|.*"locator"\s*:',
        comments=Table(
            "",
            {
                "id": "id",
                "parent": "pid",
                "page": "locator.url",
                "title": "title",
                "nickname": "user.name",
                "either": "orig",
                "html": "text",
                "likes": "score",
                "pinned": "pin",
                "created_at": "time",
                "edited_at": "edit.time",
            },
        ),
        pages=Table("posts", {"page": "url", "closed": "read_only"}),
        status_if_true={"delete": "deleted"},
        lost={"downvotes (subtracted from the likes)": "votes", "avatars": "user.picture"},
    ),
    "artalk": Product(
        sign=r'(?s).*"page_key"\s*:',
        comments=Table(
            "",
            {
                "id": "id",
                "parent": "rid",
                "page": "page_key",
                "title": "page_title",
                "site": "site_name",
                "nickname": "nick",
                "email": "email",
                "website": "link",
                "either": "content",
                "ip": "ip",
                "likes": "vote_up",
                "pinned": "is_pinned",
                "closed": "page_admin_only",
                "created_at": "created_at",
            },
        ),
        status_if_true={"is_pending": "waiting"},
        lost={"user agents": "ua", "downvotes": "vote_down", "badges": "badge_name"},
    ),
    "commento": Product(
        sign=r'(?s).*"commentHex"\s*:',
        comments=Table(
            "comments",
            {
                "id": "commentHex",
                "parent": "parentHex",
                "page": "url|path",
                "author": "commenterHex",
                "either": "markdown",
                "likes": "score",
                "created_at": "creationDate",
            },
        ),
        authors=Table(
            "commenters",
            {
                "id": "commenterHex",
                "nickname": "name",
                "email": "email",
                "website": "link|websiteUrl",
            },
        ),
        status_if_true={"deleted": "deleted"},
        status_path="state",
        statuses={"approved": "visible"},
        lost={"avatars": "photo", "marks of the admin": "isModerator"},
    ),
    "comentario": Product(
        sign=r'(?s).*"(domainId|pageId|domainPageId)"\s*:',
        comments=Table(
            "comments",
            {
                "id": "id",
                "parent": "parentId",
                "page": "url",
                "author": "userCreated",
                "nickname": "authorName",
                "ip": "authorIP",
                "either": "markdown",
                "html": "html",
                "likes": "score",
                "pinned": "isSticky",
                "created_at": "createdTime",
                "edited_at": "editedTime",
            },
        ),
        pages=Table(
            "pages",
            {"page": "path", "title": "title", "closed": "isReadonly", "views": "countViews"},
        ),
        authors=Table(
            "commenters",
            {"id": "id", "nickname": "name", "email": "email", "website": "websiteUrl"},
        ),
        status_if_true={"isDeleted": "deleted", "isPending": "waiting"},
        status_if_false={"isApproved": "spam"},
        lost={"countries": "authorCountry", "marks of the admin": "isModerator"},
    ),
}
# What means no, in lower case.
FALSE = {
    "",
    "0",  # SQLite (Cusdis), and commentd
    "false",  # all others in JSON, Disqus in XML
    "undefined",  # Commento: the author has no picture
    "0001-01-01t00:00:00z",  # programs in Go, such as Comentario: this never happened
    # What converters write, and databases such as PostgreSQL
    *("f", "no", "none", "null"),
}
UNKNOWN_IP = "192.0.2.0"  # given to nobody (RFC 5737), for formats that need an IP address
YEAR_1990 = 631152000


def pick(record: Any, path: str) -> Any:
    """The value at a path, as in `Table`. If there is none, this is None."""
    for alternative in path.split("|"):
        value = record
        for name in alternative.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value not in (None, "", [], {}):
            return value
    return None


class Values(dict[str, str]):
    """The fields of a record, by name; "" for one that is not there."""

    def __missing__(self, name: str) -> str:
        return ""


def fields_in(record: Any, table: Table) -> Values:
    """The fields of a record that are not empty."""
    texts = Values()
    for name, path in table.fields.items():
        value = pick(record, path)
        if value is None:
            continue
        if name == "likes" and str(value).startswith("["):  # a list, or one as text
            value = len(re.findall(r"[^\[\], ]+", str(value)))
        text = as_text(value)
        if text:
            texts[name] = text
    return texts


def as_text(value: Any) -> str:
    """A value as text, without control characters. MongoDB and LeanCloud wrap some values."""
    while isinstance(value, dict):
        value = pick(value, "$oid|$numberLong|$numberInt|$numberDouble|$date|iso")
    text = str(value) if isinstance(value, str | int | float) else ""
    if not text.isprintable():
        # JSON may have halves of characters.
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
        text = without_controls(text)
    return text.strip()


def is_true(value: Any) -> bool:
    return as_text(value).lower() not in FALSE


def is_there(value: Any) -> bool:
    """Whether a field that an import leaves out has something to lose."""
    if isinstance(value, dict) and {*map(type, value.values())} == {bool}:
        # The votes of Remark42, by their voters. Those for the comment are its likes.
        return False in value.values()
    return isinstance(value, list | dict) or is_true(value)


def status_in(record: Json, product: Product) -> str:
    for path, status in product.status_if_true.items():
        if is_true(pick(record, path)):
            return status
    for path, status in product.status_if_false.items():
        value = pick(record, path)
        if value is not None and not is_true(value):
            return status
    written = as_text(pick(record, product.status_path)).lower()
    return product.statuses.get(written, "waiting") if written else "visible"


# The text of a comment

# How the text of a comment is read, by the field that has it. The first that has one counts.
CONTENT_READERS: dict[str, Callable[[str], Content]] = {
    "markdown": content_of_markdown,
    "either": content_of_either,
    "disqus": content_of_disqus,
    "html": lambda text: content_of_html(html_in(text)),
    "lines": content_of_lines,
}


def content_of(values: Values) -> Content:
    """The text of a comment, from the field that has it."""
    if values["own_html"]:
        return Content(values["markdown"], clean_foreign(values["own_html"]), own_html=True)
    for name, reader in CONTENT_READERS.items():
        if values[name]:
            return reader(values[name])
    return Content("", "")


# What a file consists of


@dataclass(frozen=True, slots=True)
class Record:
    table: str  # the name of the table, list or element that it stands in
    values: Json


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What stands in the place of a record, but is none."""

    table: str
    where: str  # what stands there, or where that is, such as the line


@dataclass(frozen=True, slots=True)
class BreaksOff:
    """What comes last, if the file has no end."""

    where: str


Found = Record | Unreadable | BreaksOff


# How a file is written

# Python loads a codec at its first use, which may fail when root has given up its rights.
for encoding_name in ("utf-8-sig", "utf-16", "gb18030", "cp1252"):
    codecs.lookup(encoding_name)
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# As browsers do: many files name the smaller one and use the larger.
LARGER_ENCODINGS = {"ascii": "cp1252", "iso8859-1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030"}
XML_ENCODING = re.compile(rb"""\s*<\?xml[^>]*\sencoding\s*=\s*["']([\w.:-]+)["']""")


def encoding_of(path: Path) -> str:
    """The encoding of a file, by what says it first: its mark; its characters, if most are UTF-8;
    its XML declaration. Else it is UTF-8, GB 18030 or Windows-1252, whichever is the first in which
    nothing is damaged."""
    with path.open("rb") as file:
        start = file.read(256)
    if start.startswith(b"SQLite format 3\0"):
        return "utf-8"
    for mark, name in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return name
    whole, broken = utf_8_characters(path)
    declared = declared_encoding(start)
    if whole > broken:
        return "utf-8"  # perhaps with some damage
    if declared:
        return declared
    if broken == 0:
        return "utf-8"
    for name in ("gb18030", "cp1252"):
        if can_be(path, name):
            return name
    return "utf-8"


def utf_8_characters(path: Path) -> tuple[int, int]:
    """How many characters beyond ASCII there are in a file that is read as UTF-8, and how many
    places in it are no UTF-8."""
    beyond_ascii = 0
    broken = 0
    with path.open(encoding="utf-8", errors="replace") as file:
        while text := file.read(MEGA):
            beyond_ascii += len(text) - len(text.encode("ascii", "ignore"))
            broken += text.count("\ufffd")
    return beyond_ascii - broken, broken


def declared_encoding(start: bytes) -> str:
    """The encoding in the XML declaration. This is "" if it says UTF-8, an unknown one, or one that
    it can't be in itself, such as UTF-16."""
    declaration = XML_ENCODING.match(start)
    if declaration:
        name = declaration[1].decode()
        with contextlib.suppress(LookupError, UnicodeError):
            known = codecs.lookup(name).name
            if known != "utf-8" and "<?xml".encode(known).startswith(b"<?xml"):
                return LARGER_ENCODINGS.get(known, known)
    return ""


def can_be(path: Path, encoding: str) -> bool:
    """Whether a file has that encoding."""
    with path.open("rb") as file:
        # No text in these encodings has the byte FF: it stands in broken UTF-16.
        if any(b"\xff" in chunk for chunk in iter(functools.partial(file.read, MEGA), b"")):
            return False
    with contextlib.suppress(UnicodeDecodeError), path.open(encoding=encoding) as text:
        while text.read(MEGA):
            pass
        return True
    return False


def open_text(path: Path) -> TextIO:
    return path.open(encoding=encoding_of(path), errors="replace")


def beginning(path: Path) -> str:
    with open_text(path) as text:
        return text.read(MEGA).lstrip()


# JSON

# Names of lists that say nothing of what is in them: a file or an API may put one around records.
WRAPPERS = ("", "results", "result", "data", "list", "rows", "items", "docs", "comment", "comments")
JSON_LIMIT = 64 * MEGA


def has_record_lines(start: str) -> bool:
    """Whether each line of a JSON file is a record."""
    line = start.partition("\n")[0]
    try:
        first = json.loads(line.rstrip(", \r"))
    except (ValueError, RecursionError):
        return line.startswith("#filetype")
    if not isinstance(first, dict) or first.keys() & {"format", "collections"}:
        return False
    wrapped = [first.get(name) for name in WRAPPERS]
    return not any(isinstance(value, list | dict) for value in wrapped)


def line_records(text: TextIO) -> Iterator[Found]:
    """The records of a file with one in each line. Lines of LeanCloud stand below the name of their
    class, and the first line of Remark42 lists pages."""
    table = ""
    for number, line in enumerate(text, 1):
        if line.startswith("#filetype"):
            # LeanCloud names the class. The class of comments has any name.
            class_name = re.search(r'"class"\s*:\s*"(_\w*|Counter|Users)"', line)
            table = class_name[1] if class_name else ""
        elif line_text := line.strip():
            try:
                record = json.loads(line_text.rstrip(","), strict=False)
            except (ValueError, RecursionError):
                yield Unreadable(table, f"line {number}")
                continue
            if isinstance(record, dict) and "posts" in record:  # how Remark42 begins
                yield from items_of_lists("", record)
            else:
                yield json_item(table, record)


def json_records(text: TextIO) -> Iterator[Found]:
    """The records of a file that is one piece of JSON. Where it breaks off, these are those before:
    the product may be gone, and nobody have another file."""
    content = text.read()
    fault = ""
    try:
        try:
            data = json.loads(content, strict=False)  # control characters are cleaned later
        except json.JSONDecodeError as error:
            fault = f"line {error.lineno} ({error.msg})"
            data = json.loads(whole_part(content, error.pos), strict=False)
    except (ValueError, RecursionError) as error:
        raise OperatorError(f"the file breaks off, or is no JSON ({error})") from None
    yield from items_of_lists("", data)
    if fault:
        yield BreaksOff(fault)


# A text in JSON, or a bracket. A quotation mark alone begins a text that has no end.
JSON_MARK = re.compile(r'(?s)"(?:[^"\\]|\\.)*+"|["\[\]{}]')


def whole_part(content: str, end: int) -> str:
    """JSON up to the last object or list that is whole before the position `end`, with the brackets
    closed that are open there: `{"a": [{"b": 1}]}` of `{"a": [{"b": 1}, {"b": "`."""
    open_brackets: list[str] = []
    whole_end = 0
    open_there: list[str] = []  # the brackets that are open at `whole_end`
    for mark in JSON_MARK.finditer(content, 0, end):
        if mark[0] == '"':
            break
        if mark[0] in ("[", "{"):
            open_brackets.append(mark[0])
        elif mark[0] in ("]", "}"):
            open_brackets.pop()
            whole_end = mark.end()
            open_there = open_brackets.copy()
    closing = ["]" if bracket == "[" else "}" for bracket in reversed(open_there)]
    return content[:whole_end] + "".join(closing)


def items_of_lists(name: str, data: Any) -> Iterator[Found]:
    """The items of all lists in some JSON that are not in a list themselves. `name` is that of the
    JSON, if it is a list itself."""
    if isinstance(data, list):
        for item in data:
            # LokiJS, in which Twikoo keeps its comments, lists its tables.
            if name == "collections" and isinstance(item, dict):
                yield from items_of_lists(as_text(item.get("name")), item.get("data"))
            else:
                yield json_item(name, item)
    elif isinstance(data, dict):
        for key, value in data.items():
            yield from items_of_lists(key, value)


def json_item(table: str, item: Any) -> Found:
    return Record(table, item) if isinstance(item, dict) else Unreadable(table, as_text(item))


# XML

# No parser of XML reads the files of Disqus and WordPress, since much of it is not well-formed. In
# posts of WordPress, scripts have CDATA sections that stand in those of the file, and plugins print
# empty lines before its declaration. Values of both hold control characters and, where a converter
# made the file, a bare `<` or `&`, or `&nbsp;`.

XML_NAME = r"[A-Za-z_][\w:.-]*+"
START_TAG = re.compile(rf"<(?P<name>{XML_NAME})(?P<attributes>[^<>]*)>")
END_TAG = re.compile(rf"</(?P<name>{XML_NAME})\s*>")
MARKUP_AHEAD = re.compile("<(?=[A-Za-z_/!?])")  # `a < b` and `<3` are text
# The end of a CDATA section that fills an element, with what follows up to the end of the element.
SECTION_END = re.compile(rf"\]\]>(?P<after>[^<\]]*)</(?P<name>{XML_NAME})\s*>")
END_OR_OTHER_TAG = re.compile("[<>]")
# What says nothing where it stands between elements, with what ends it.
SECTION_START = "<![CDATA["
SKIPPED_XML = {"<!--": "-->", "<?": "?>", SECTION_START: "]]>"}


class XmlLeaf(NamedTuple):
    """An element without others in it."""

    name: str
    attributes: str
    text: str


class XmlStart(NamedTuple):
    """The beginning of an element with others in it."""

    name: str
    attributes: str


class XmlEnd(NamedTuple):
    """The end of one."""

    name: str


class XmlScanner:
    """Cuts a file into its elements. What is none of these, such as the space between them, is
    skipped. The file is read in chunks: what goes on behind one is looked at again together with
    the next one."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.text = ""  # what is kept of the file
        self.position = 0  # in the text: all before it is done
        self.lines_before = 0  # the text

    @property
    def line(self) -> int:
        """That at the position."""
        return 1 + self.lines_before + self.text.count("\n", 0, self.position)

    def pieces(self) -> Iterator[XmlLeaf | XmlStart | XmlEnd]:
        while chunk := self.file.read(MEGA):
            self.lines_before += self.text.count("\n", 0, self.position)
            self.text = self.text[self.position :] + chunk
            self.position = 0
            while piece := self.next_piece():
                yield piece
        self.position = len(self.text)

    def next_piece(self) -> XmlLeaf | XmlStart | XmlEnd | None:
        """None if what was read holds no other one, or only the beginning of one."""
        while (start := self.text.find("<", self.position)) >= 0:
            self.position = start
            if start_tag := START_TAG.match(self.text, start):
                return self.element(start_tag)
            if end_tag := END_TAG.match(self.text, start):
                self.position = end_tag.end()
                return XmlEnd(end_tag["name"])
            end = self.end_of_skipped(start)
            if end is None:
                return None
            self.position = end
        self.position = len(self.text)
        return None

    def element(self, start_tag: re.Match[str]) -> XmlLeaf | XmlStart | None:
        """The element that begins with a tag, if there are no others in it, else its beginning."""
        name, attributes = start_tag.group("name", "attributes")
        if attributes.endswith("/"):
            self.position = start_tag.end()
            return XmlLeaf(name, attributes.removesuffix("/"), "")
        markup = MARKUP_AHEAD.search(self.text, start_tag.end())
        if not markup:
            return None
        text = self.text[start_tag.end() : markup.start()]
        if self.text.startswith(SECTION_START, markup.start()):
            return self.element_with_section(name, attributes, text, markup.start())
        end_tag = END_TAG.match(self.text, markup.start())
        if end_tag and end_tag["name"] == name:
            self.position = end_tag.end()
            return XmlLeaf(name, attributes, with_references_read(text))
        if self.may_go_on(markup.start()):
            return None
        self.position = start_tag.end()
        return XmlStart(name, attributes)

    def element_with_section(
        self, name: str, attributes: str, text_before: str, start: int
    ) -> XmlLeaf | None:
        """An element whose text is a CDATA section that starts there, with what stands beside it.
        The section ends where the end of the element follows: scripts in it have others."""
        start += len(SECTION_START)
        for end in SECTION_END.finditer(self.text, start):
            if end["name"] == name:
                self.position = end.end()
                section = self.text[start : end.start()]
                # `]]>` in a text ends a section and begins another one.
                section = section.replace("]]><![CDATA[", "")
                text_after = with_references_read(end["after"])
                return XmlLeaf(
                    name, attributes, with_references_read(text_before) + section + text_after
                )
        return None

    def end_of_skipped(self, start: int) -> int | None:
        """Where that ends which begins at a position and is no tag. None if it may go on."""
        if self.text[start : start + 9].upper() == "<!DOCTYPE":
            # It may define entities, and texts would come without what these stand for.
            reason = "the file declares a document type, which no export does"
            raise OperatorError(f"{reason}: it is not imported")
        for opening, closing in SKIPPED_XML.items():
            if self.text.startswith(opening, start):
                end = self.text.find(closing, start + len(opening))
                return None if end < 0 else end + len(closing)
        return None if self.may_go_on(start) else start + 1

    def may_go_on(self, start: int) -> bool:
        """Whether a tag that begins at a position may end behind what was read."""
        return END_OR_OTHER_TAG.search(self.text, start + 1) is None


@dataclass
class XmlElement:
    """An element of a file that has not ended yet. `values`: its attributes, as `@id`, and the
    elements in it, by their names without prefix, which a file may choose."""

    name: str
    values: Json = field(default_factory=dict)
    is_damaged: bool = False  # whether a tag in it has no counterpart


class XmlReader:
    """Reads the pages and comments of a file as dictionaries of what is in them. `in` is the number
    of the page whose element a comment stands in, as in WordPress.

    Where the tags of a comment do not match, its text is not all there: it is left out. Of a page,
    whatever is read is good for the comments on it."""

    def __init__(self, file: TextIO, page_name: str, comment_name: str) -> None:
        self.scanner = XmlScanner(file)
        self.page_name = page_name
        self.comment_name = comment_name
        self.pages = 0
        self.open = [XmlElement("")]  # the file, and in it the elements that have not ended

    def records(self) -> Iterator[Found]:
        for piece in self.scanner.pieces():
            if isinstance(piece, XmlLeaf):
                self.open[-1].values[local_name(piece.name)] = leaf_value(piece)
            elif isinstance(piece, XmlStart):
                yield from self.start(piece)
            else:
                yield from self.end(piece.name)
        if len(self.open) > 1:
            yield BreaksOff(f"line {self.scanner.line} (the file breaks off)")
            for element in self.open:
                if local_name(element.name) == self.page_name:
                    yield self.record(element)

    def start(self, piece: XmlStart) -> Iterator[Found]:
        """Begins an element. A page or a comment in which another one begins has no end."""
        name = local_name(piece.name)
        if name in (self.page_name, self.comment_name) and self.is_open(piece.name):
            self.open[-1].is_damaged = True
            yield from self.end(piece.name)
        self.open.append(XmlElement(piece.name, xml_attributes(piece.attributes)))
        if name == self.page_name:
            self.pages += 1

    def end(self, name: str) -> Iterator[Found]:
        """Ends an element, and those in it that have no end of their own."""
        if self.open[-1].name != name:
            for element in self.open:
                element.is_damaged = True
        while self.is_open(name):
            element = self.open.pop()
            short_name = local_name(element.name)
            if short_name == self.comment_name and element.is_damaged:
                where = f"line {self.scanner.line} (its tags do not match)"
                yield Unreadable(self.comment_name, where)
            elif short_name in (self.page_name, self.comment_name):
                yield self.record(element)
            self.open[-1].values[short_name] = element.values
            if element.name == name:
                return

    def is_open(self, name: str) -> bool:
        return any(element.name == name for element in self.open)

    def record(self, element: XmlElement) -> Record:
        return Record(local_name(element.name), {**element.values, "in": str(self.pages)})


def local_name(name: str) -> str:
    return name.rpartition(":")[2]


def xml_attributes(attributes: str) -> Json:
    if not attributes:
        return {}
    return {f"@{local_name(name)}": value for name, value in attributes_in(attributes).items()}


def leaf_value(leaf: XmlLeaf) -> Json | str:
    """What an element without others in it says: its attributes, or its text."""
    return xml_attributes(leaf.attributes) or leaf.text


# Databases


@contextlib.contextmanager
def open_foreign_copy(path: Path) -> Iterator[tuple[sqlite3.Connection, str]]:
    """A copy of another program's database, and the names of its tables in their order. The file
    and its folder are left as they are."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "copy.db"
        for suffix in ("", "-wal"):
            if Path(f"{path}{suffix}").exists():
                shutil.copyfile(f"{path}{suffix}", f"{copied}{suffix}")
        try:
            with contextlib.closing(connect(copied)) as db:
                # No text of any product has a thousandth of it.
                db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 16 * MEGA)
                sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
                yield db, " ".join(name for (name,) in db.execute(sql))
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter in a damaged schema
            reason = f"the database can't be read from there on ({error})"
            raise OperatorError(reason) from None


def database_records(path: Path, product: Product) -> Iterator[Found]:
    with open_foreign_copy(path) as (db, tables):
        if not re.match(product.sign, tables):
            raise OperatorError("the file is no database of that product")
        result = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if result != "ok":
            raise OperatorError(f"the database is damaged ({one_line(result)})")
        for row in db.execute(product.sql):
            yield Record(product.comments.name, dict(row))


# All formats


def read_file(path: Path, product: Product, show: Progress) -> Iterator[Found]:
    size = path.stat().st_size
    start = beginning(path)
    with open_text(path) as text:
        if product.sql:
            all_found = database_records(path, product)
        elif start.startswith("<"):
            all_found = XmlReader(text, product.pages.name, product.comments.name).records()
        elif has_record_lines(start):
            all_found = line_records(text)
        elif size > JSON_LIMIT:
            raise OperatorError("the file is larger than 64 MB: split it, and import each part")
        else:
            all_found = json_records(text)
        for number, found in enumerate(all_found):
            if number % 500 == 0:
                show(size - text.buffer.tell(), size)
            yield found
        show(0, size)


# Which product a file is of

# What an owner can do with a file that no importer reads. The first that fits is said.
HINTS = {
    r"PK\x03\x04": "it is a ZIP archive: unpack it, and import each file in it",
    r"(?i)<(!doctype )?html\b": "it is a web page: save the export itself",
    r".{,16}[\x02\x07]_id\0": (
        "it is a backup for MongoDB (BSON): export as JSON, which LeanCloud calls 数据导出"
    ),
    "SQLite format 3": "it is a database that is damaged, or not all of it",
    r"(?s)(<\?xml.*?\?>)?\s*<(feed|rss|rdf:RDF)\b": (
        "it is a feed, which holds only the newest: export the comments where they were written"
    ),
    r"(?s).*\btypecho_": (
        "Typecho is not read yet: copy its comments to WordPress, and import what that exports"
    ),
    r"(?s).*\bcomment_post_ID\b": (
        "it is a database of WordPress: choose Tools, Export there, and import that XML"
    ),
    r"PRAGMA foreign_keys": (
        "it is a dump of an SQLite database: make one of it with `sqlite3 new.db < FILE`, and"
        " import new.db"
    ),
    r"(?is)(--|/\*|BEGIN |CREATE |INSERT |SET |DROP ).*\b(CREATE TABLE|INSERT INTO)\b": (
        "it is an SQL dump: import what the product itself exports (commentd help import)"
    ),
    r'(?s).*"wm-(id|property|source)"': "webmentions are not read yet",
    r'(?s).*"generator"\s*:\s*"duoshuo"': (
        "the JSON of Duoshuo is not read: convert it to the XML of Disqus or WordPress"
    ),
    r'(?s)\{\s*"filename"\s*:.*"collections"\s*:': (
        "its records are in the files beside it whose names end in .0, .1 and so on: import these"
    ),
    r'(?s)(?=.*"_id"\s*:).*"message"\s*:|(---\s+|- |#.*\n)*\w+: ': (
        "comments in data files of a site, as Staticman writes them, are not read yet"
    ),
}


def sign_of(path: Path) -> tuple[bool, str]:
    """Whether a file is a database, and what shows its product: its beginning, or its tables."""
    start = beginning(path)
    has_tables = start.startswith("SQLite format 3\0")
    if has_tables:
        with contextlib.suppress(OperatorError), open_foreign_copy(path) as (_, tables):
            start = tables
    return has_tables, start


def products_like(path: Path) -> list[str]:
    """The names of the products that a file may be from, by how it begins. The likeliest is the
    first."""
    has_tables, start = sign_of(path)
    return [
        name
        for name, product in PRODUCTS.items()
        if has_tables == bool(product.sql) and re.match(product.sign, start)
    ]


def product_of(path: Path) -> str:
    """The name of the product that a file is from."""
    names = products_like(path)
    if names:
        return names[0]
    _, start = sign_of(path)
    hints = [hint for pattern, hint in HINTS.items() if re.match(pattern, start)]
    advice = hints[0] if hints else f"name one with --format ({', '.join(PRODUCTS)})"
    raise OperatorError(f"the file is of no known product: {advice}")


# Compressed files

UNPACKED_LIMIT = 200  # times its size: texts unpack to ten times theirs, a bomb to a thousand times


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[tuple[Path, str]]:
    """The file, or what is in it if it is compressed or LeanCloud's archive. Besides, an error if
    that breaks off, else ""."""
    limit = max(64 * MEGA, UNPACKED_LIMIT * path.stat().st_size)
    fault = ""
    with path.open("rb") as file, tempfile.NamedTemporaryFile() as plain:
        try:
            if tarfile.is_tarfile(path):
                unpack_archive(path, plain, limit)
            elif file.read(2) == b"\x1f\x8b":
                with gzip.open(path) as packed:
                    copy_within_limit(packed, plain, limit)
        except (gzip.BadGzipFile, EOFError, zlib.error, tarfile.TarError) as error:
            fault = one_line(str(error))
            if not plain.tell():
                raise OperatorError(f"the file breaks off, or is damaged ({fault})") from None
        plain.flush()
        yield (Path(plain.name) if plain.tell() else path), fault


def unpack_archive(path: Path, target: IO[bytes], limit: int) -> None:
    """The comments, views and users of LeanCloud's archive, one after the other."""
    with tarfile.open(path) as archive:
        for member in archive:
            name = Path(member.name).name
            if member.isfile() and re.match("(?i)comment|counter|users", name):
                copy_within_limit(archive.extractfile(member), target, limit)
                target.write(b"\n")


def copy_within_limit(source: Any, target: IO[bytes], limit: int) -> None:
    while chunk := source.read1(16384):  # of what breaks off, all that can be had
        target.write(chunk)
        if target.tell() > limit:
            raise OperatorError(
                f"the file unpacks to more than {limit // MEGA} MB, which no export of its size"
                " does: unpack it yourself"
            )


# -- Import -------------------------------------------------------------------

# A file goes through three hands. `Staging` takes in its records and says what is wrong with them.
# `Arrangement` finds the parents and puts all in the order of time. `Adding` writes what the store
# does not have yet.


@dataclass(frozen=True)
class PageRef:
    """The page of a record. `key` and `page_url` are as in `PageName`."""

    blog: str  # its name as the product has it, or its host
    key: str
    page_url: str


@dataclass
class StagedPage:
    """A page of the file, or all that the file says of one."""

    ref: PageRef
    title: str = ""
    closed: bool = False
    views: int = 0
    page_likes: int = 0
    opened_at: int = 0  # as the file says it; 0 if it does not
    first_comment_at: int = 0  # 0 if it has no comments


@dataclass(slots=True, kw_only=True)
class StagedComment:
    """A comment of the file on its way into the store.

    `Staging` makes it, with a row that has all but its place. `Arrangement` corrects the parent,
    and sets the depth, and the time where that is 0. `Adding` sets the ids in the row: its page,
    its parent, and its own if that is known."""

    # Ids of the product
    id: str
    parent: str
    thread: str
    page: PageRef
    stamp: str  # what the import remembers of it, so that a later one knows it
    row: FullComment
    likes: int  # by unknown visitors, who are added one by one
    depth: int = -1  # -1 until it is known

    @property
    def id_as_ours(self) -> int:
        """The id of the record if that can be one of ours, else 0."""
        return int(self.id) if re.fullmatch("[1-9][0-9]{0,11}", self.id) else 0


TEXT_LIMIT = 64 * 1024  # of characters in a comment
UNREADABLE = "skipped: it can't be read"
UNKNOWN_CHARACTERS = "unreadable characters: {}, each shown as �"
NAMES_IN_REPORT = 8  # of the comments that a line of the report is about
HOST = re.compile(r"(?i)\A(?:https?:)?//([^/?#]*)")
# How products write that a comment is no reply.
NO_PARENT = ("0", "root", "null", "00000000-0000-0000-0000-000000000000")
MOST_VIEWS = 10**12  # of a page: a file may hold any number, a column may not
IMPORT_STEP = 250  # pages or comments in one transaction
IMPORT_SECONDS = 0.5  # after which there is a pause, in which the service can write
PAUSE_SECONDS = 0.11  # SQLite looks for a lock every 100 ms


def import_nickname(text: str) -> str:
    """A nickname by the rule for comments here, or as much of it as keeps the rule."""
    nickname = value_or_empty(proper_nickname, text)
    shown = one_line(INVISIBLE.sub("", text))
    return nickname or value_or_empty(proper_nickname, shown[:64]) or "Anonymous"


def import_email(text: str) -> str:
    return value_or_empty(proper_email, text)


def import_website(text: str) -> str:
    return value_or_empty(proper_website, text) if len(text) <= 2048 else ""


def import_parent(text: str) -> str:
    """The id of a parent or a top-level comment, or "" if there is none."""
    parent = text.rpartition(",")[2]  # some converters write all above it
    return "" if parent in NO_PARENT else parent


def page_at(url: str, blog_name: str) -> PageRef | None:
    """The page of a blog with that URL. Its host is left out, since it is the blog's."""
    if not url or len(url) > 2048 or has_controls(url):
        return None
    # A path may begin with two slashes: hosts have a dot or a port.
    url = re.sub(r"\A//(?=[^.:/]*(?:/|\Z))", "/", url)
    written_host = HOST.match(url)
    host = host_of(f"//{written_host[1]}") if written_host else ""
    blog = one_line(blog_name) or host.removeprefix("www.")
    name = page_name(url, {f"//{host}"})
    return PageRef(blog, name.key, HOST.sub("", name.page_url) or "/")


def name_in_report(values: Values) -> str:
    return values["id"] or f"{values['nickname']} {values['created_at']}"


def time_zone(text: str) -> tzinfo | None:
    return datetime.fromisoformat(f"2000-01-01T00:00{text}").tzinfo


@dataclass
class ImportReport:
    """What an import did, and how it reads the file."""

    product_name: str
    zone: tzinfo | None  # of times without one
    encoding: str = ""  # of the file
    read: int = 0  # comments in the file
    done: int = 0  # of these, how many are here now
    new: int = 0  # of these, how many were not here before
    new_by_status: Counter[str] = field(default_factory=Counter)
    new_pages: int = 0
    closed_pages: int = 0
    titles_added: int = 0
    views_added: int = 0
    page_likes_added: int = 0
    unreadable: int = 0  # characters
    # The names of the records with each event.
    names: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    lost: Counter[str] = field(default_factory=Counter)  # records with what an import leaves out

    @property
    def is_ours(self) -> bool:
        """Whether the file is an export of commentd. Then all is as it was there."""
        return self.product_name == "commentd"

    def note(self, event: str, record_name: str) -> None:
        """Keeps the name of a record that the report is to list under an event."""
        self.names[event].append(one_line(record_name)[:64])

    def text(self, language: str) -> str:
        """The report, in Chinese for `zh` and its variants."""
        say = functools.partial(translated, language=language)
        product = PRODUCTS[self.product_name]
        there = self.done - self.new
        skipped = self.read - self.done
        totals = f"{self.new} new, {there} already here, {skipped} skipped"
        lines = [say(f"{self.product_name}: {self.read} read, {totals}")]
        for event, names in self.names.items():
            shown = ", ".join(names[:NAMES_IN_REPORT])
            more = " …" if len(names) > NAMES_IN_REPORT else ""
            event = say(event.replace("{}", str(self.unreadable)))
            lines.append(f"  {event} ({len(names)}): {shown}{more}")
        statuses = [
            f"{self.new_by_status[status]} {say(status)}"
            for status in STATUSES
            if self.new_by_status[status]
        ]
        if statuses:
            lines.append("  " + say(f"new: {', '.join(statuses)}"))
        lines.append("  " + say(f"new pages: {self.new_pages}"))
        if self.closed_pages:
            lines.append("  " + say(f"closed pages: {self.closed_pages}"))
        if self.titles_added:
            lines.append("  " + say(f"titles of pages added: {self.titles_added}"))
        if self.views_added:
            lines.append("  " + say(f"views added: {self.views_added}"))
        if self.page_likes_added:
            lines.append("  " + say(f"likes of pages added: {self.page_likes_added}"))
        if not self.encoding.startswith("utf"):
            lines.append("  " + say(f"text is read as {self.encoding}"))
        if self.read and product.zone:
            lines.append("  " + say(f"times without a time zone are read as {self.zone} (--zone)"))
        lost = [f"{say(what)} ({self.lost[what]})" for what in product.lost if self.lost[what]]
        if lost:
            lines.append("  " + say(f"not carried: {', '.join(lost)}"))
        return "\n".join(lines)


class Staging:
    """Reads one file, and makes of its records what is stored: by the rules for comments here, but
    of any length. Pages and authors may stand after their comments."""

    def __init__(
        self,
        report: ImportReport,
        place_of: Callable[[str], Place] | None,  # None if no location is wanted
        blog_name: str,
        now: int,
    ) -> None:
        self.report = report
        self.blog_name = blog_name
        self.product = PRODUCTS[report.product_name]
        self.now = now
        self.tables = {table.name.lower(): table for table in self.product.tables if table.name}
        self.breaks_off_at = ""  # where in the file, if it has no end
        self.records = deque[Values]()  # of comments, until all pages and authors are known
        self.authors: dict[str, Values] = {}  # by id
        self.pages_by_id: dict[str, PageRef] = {}
        self.pages: list[StagedPage] = []  # that the file lists
        self.titles: dict[PageRef, str] = {}
        self.comments: dict[str, StagedComment] = {}  # by id
        # Authors write many comments, and pages have many. So these functions are not run again for
        # what they were given before.
        kept = functools.lru_cache(maxsize=10_000)
        self.nickname_of = kept(import_nickname)
        self.email_of = kept(import_email)
        self.website_of = kept(import_website)
        self.title_of = kept(self.find_title)
        self.ip_and_place_of = kept(self.find_ip_and_place)
        self.place_of = kept(place_of) if place_of else None
        self.page_at = kept(page_at)

    def read(self, path: Path, show: Progress) -> None:
        """Stages all that can be read."""
        self.report.encoding = encoding_of(path)
        for found in read_file(path, self.product, show):
            if isinstance(found, Record):
                self.stage_record(found)
            elif isinstance(found, BreaksOff):
                self.breaks_off_at = found.where
                self.note_unreadable(found.where)
            elif self.table_of(found) is self.product.comments:
                self.note_unreadable(found.where)
        if not self.records and not self.pages:
            self.refuse_unless_empty(path)
        if self.breaks_off_at and any(map(self.lacks_author, self.records)):
            # They would come without names, and get none from the whole file later.
            reason = "the file breaks off before the names of all authors"
            raise OperatorError(f"{reason} ({self.breaks_off_at})")
        while self.records:
            self.stage_comment(self.records.popleft())

    def refuse_unless_empty(self, path: Path) -> None:
        """Refuses a file that gave no record. An empty file of a known product is no error."""
        product_name = self.report.product_name
        unreadable = self.report.names.get(UNREADABLE)
        if unreadable:
            raise OperatorError(f"nothing in the file can be read ({unreadable[0]})")
        if product_name not in products_like(path):
            raise OperatorError(f"there is no comment and no page of {product_name} in it")

    def stage_record(self, record: Record) -> None:
        """Keeps a page or an author. A comment waits until all of these are known."""
        product = self.product
        table = self.table_of(record)
        self.count_lost(record.values)
        if table is None:
            return
        values = fields_in(record.values, table)
        if table is product.comments:
            self.report.read += 1
            values["status"] = status_in(record.values, product)
            self.records.append(values)
        elif table is product.pages:
            self.stage_page(values)
        elif "id" in values:
            self.authors[values.pop("id")] = values

    def note_unreadable(self, where: str) -> None:
        self.report.read += 1
        self.report.note(UNREADABLE, where)

    def table_of(self, found: Record | Unreadable) -> Table | None:
        """Of which table a record is. None if records of that name are not imported."""
        table = self.tables.get(found.table.lower())
        if table or found.table not in WRAPPERS:
            return table
        is_page = isinstance(found, Record) and self.has_all_of_a_page(found.values)
        return self.product.pages if is_page else self.product.comments

    def has_all_of_a_page(self, values: Json) -> bool:
        """Whether a record has all fields of a page but perhaps a title. No comment has them."""
        table = self.product.pages
        needed = table.fields.keys() - {"title"}
        return table is not NO_TABLE and needed <= fields_in(values, table).keys()

    def count_lost(self, values: Json) -> None:
        for what, path in self.product.lost.items():
            value = pick(values, path)
            if value is not None:
                self.report.lost[what] += is_there(value)

    def lacks_author(self, values: Values) -> bool:
        """Whether a comment has no name, and its author is not known."""
        author = values["author"]
        return author != "" and author not in self.authors and not values["nickname"]

    def stage_page(self, values: Values) -> None:
        ref = self.page_named_in(values)
        if ref is None or is_true(values["gone"]):
            return
        if values["id"]:
            self.pages_by_id.setdefault(values["id"], ref)
        self.note_title(ref, values["title"])
        self.pages.append(
            StagedPage(
                ref,
                closed=self.is_closed(values),
                views=count_in(values["views"], MOST_VIEWS),
                page_likes=count_in(values["page_likes"], 100_000),
                opened_at=self.time_in(values["opened_at"]),
            )
        )

    def note_title(self, ref: PageRef, text: str) -> None:
        title = self.title_of(text)
        # Some products have the URL there, if a page has no title.
        if title and title != ref.page_url:
            self.titles.setdefault(ref, title)

    def find_title(self, text: str) -> str:
        plain = html.unescape(text) if self.product.names_are_html else text
        return proper_title(plain, self.blog_name)

    def is_closed(self, values: Values) -> bool:
        if self.product.closed_value:
            return values["closed"] == self.product.closed_value
        return is_true(values["closed"])

    def page_named_in(self, values: Values) -> PageRef | None:
        """The page that a record names by its URL."""
        if not self.report.is_ours:
            return self.page_at(values["page"], values["site"])
        return PageRef("", values["id"], values["page"]) if values["id"] else None

    def time_in(self, text: str) -> int:
        """UTC seconds of a date, or of a number of seconds or milliseconds. What is before 1990, or
        more than a day ahead, is 0: some clocks were wrong."""
        text = text[:64]
        try:
            seconds = float(text)  # some numbers look like dates
        except ValueError:
            seconds = self.seconds_of_date(text)
        if seconds > 1e11:
            seconds /= 1000
        is_plausible = YEAR_1990 <= seconds <= self.now + DAY
        return min(int(seconds), self.now) if is_plausible else 0

    def seconds_of_date(self, text: str) -> float:
        with contextlib.suppress(ValueError, OverflowError):
            moment = datetime.fromisoformat(re.sub(r"\s+(?=[+-])", "", text))
            return moment.replace(tzinfo=moment.tzinfo or self.report.zone).timestamp()
        return 0

    def stage_comment(self, values: Values) -> None:
        values |= self.authors.get(values["author"], {})
        name = name_in_report(values)
        record_type = values["type"] or "comment"
        if record_type != "comment":
            self.report.note(f"skipped: it is a {record_type}", name)
            return
        page = self.page_of(values)
        if page is None:
            self.report.note("skipped: no page", name)
            return
        comment = self.comment_of(values, page)
        unreadable = "".join(values.values()).count("\ufffd")
        if unreadable:
            self.report.unreadable += unreadable
            self.report.note(UNKNOWN_CHARACTERS, name)
        if comment.id in self.comments:
            self.report.note("skipped: it is there twice", comment.id)
        else:
            self.comments[comment.id] = comment
        self.note_title(page, values["title"])
        if self.is_closed(values):
            self.stage_page(values)

    def page_of(self, values: Values) -> PageRef | None:
        """The page of a comment, which names the id of its page if pages have one, else the URL."""
        if "id" in self.product.pages.fields:
            return self.pages_by_id.get(values["page"])
        return self.page_named_in(values)

    def comment_of(self, values: Values, page: PageRef) -> StagedComment:
        content = self.content_in(values)
        is_gone = (
            values["status"] == "deleted"
            or is_blank(content.markdown)
            or self.says_deleted(content.markdown)
        )
        written_time = values["created_at"]
        written_id = values["id"]
        if not written_id:
            markdown = "" if is_gone else content.markdown
            identity = (page.key, written_time, values["nickname"], markdown)
            written_id = sha256_of(repr(identity))
        if is_gone:
            row = FullComment(created_at=self.time_in(written_time), status="deleted", masked=1)
        else:
            row = self.row_of(values, content)
        return StagedComment(
            id=written_id,
            parent=import_parent(values["parent"]),
            thread=import_parent(values["thread"]),
            page=page,
            stamp=f"{written_id} {written_time}",  # the same whatever zone the owner names
            row=row,
            likes=0 if is_gone else count_in(values["likes"], 10_000),
        )

    def says_deleted(self, markdown: str) -> bool:
        """Whether a text is what other products, such as Commento, put in the place of a deleted
        one. In Markdown its brackets may be escaped. Here a reader may have written it."""
        return not self.report.is_ours and markdown.replace("\\", "") == "[deleted]"

    def content_in(self, values: Values) -> Content:
        name = name_in_report(values)
        content = content_of(values)
        if len(content.markdown) > TEXT_LIMIT:
            self.report.note("cut after 65 536 characters", name)
            text = content.markdown[:TEXT_LIMIT].strip()
            return Content(text, clean(plain_html(text)), own_html=True)
        if content.own_html and not self.report.is_ours:
            self.report.note("kept as HTML, since Markdown can't say it", name)
        return content

    def row_of(self, values: Values, content: Content) -> FullComment:
        """What is stored of a comment, but for its place."""
        name = name_in_report(values)
        plain = html.unescape if self.product.names_are_html else str
        email_address = self.email_of(plain(values["email"]))
        if values["email"] and not email_address:
            self.report.note("without an email address, since what is there is none", name)
        if email_address.endswith(".invalid"):  # exports make these up
            email_address = ""
        website = self.website_of(plain(values["website"]))
        if values["website"] not in ("", "http://", "https://") and not website:
            self.report.note("without a website, since what is there is no URL", name)
        ip, country, location = self.ip_and_place_of(values["ip"])
        if self.report.is_ours or not self.place_of:
            country = values["country"]
            location = values["location"][:256]
        if not re.fullmatch("[A-Z]{2}", country):  # the widget could not show it
            country = ""
        return FullComment(
            nickname=self.nickname_of(plain(values["nickname"])),
            email=email_address,
            website=website,
            content=content.markdown,
            html=content.html,
            own_html=int(content.own_html),
            ip=ip,
            masked=1,
            country=country,
            location=location,
            language=known_language(values["language"]),
            status=values["status"],
            held=values["held"][:256],
            pinned=int(is_true(values["pinned"])),
            created_at=self.time_in(values["created_at"]),
            edited_at=self.time_in(values["edited_at"]) or None,
        )

    def find_ip_and_place(self, written_ip: str) -> tuple[str, str, str]:
        """The masked IP address, with its country and location as we know them."""
        ip = masked(plain_ip(written_ip)).replace(UNKNOWN_IP, "")
        country, location = self.place_of(ip) if self.place_of else ("", "")
        return ip, country, location


class Arrangement:
    """Puts what was staged in order: drops what is of other blogs, finds the parent of each reply,
    a time for each comment, and what the file says of each page."""

    def __init__(self, staging: Staging) -> None:
        self.report = staging.report
        self.comments = staging.comments
        self.listed_pages = staging.pages
        self.titles = staging.titles
        self.now = staging.now
        self.pages: dict[str, StagedPage] = {}  # by key

    def arrange(self, blog: str, origins: Iterable[str]) -> None:
        """`blog`: the name of the one to import. "" for that with these origins."""
        self.choose_blog(blog, origins)
        self.drop_missing_parents()
        self.set_depths()
        self.drop_childless()
        self.set_times()
        self.gather_pages()

    def choose_blog(self, wanted: str, origins: Iterable[str]) -> None:
        """Keeps one blog: the wanted one, or that of the settings, or the only one. Comments that
        name none belong to each."""
        blogs = Counter(comment.page.blog for comment in self.comments.values())
        if not blogs:
            blogs.update({page.ref.blog: 0 for page in self.listed_pages})
        del blogs[""]
        chosen = blogs.keys() & blog_names(wanted, origins)
        if not chosen:
            if not wanted and len(blogs) <= 1:
                return
            counts = [f"{blog} ({count})" for blog, count in sorted(blogs.items())]
            choices = ", ".join(counts) or "none has a name, so leave it out"
            raise OperatorError(f"name a blog of the file with --host: {choices}")
        kept = {"", *chosen}
        for comment in [*self.comments.values()]:
            blog = comment.page.blog
            if blog not in kept:
                event = f"skipped: of {blog}: add --host {shlex.quote(blog)} to import them"
                self.report.note(event, comment.id)
                del self.comments[comment.id]
        self.listed_pages = [page for page in self.listed_pages if page.ref.blog in kept]

    def drop_missing_parents(self) -> None:
        """A reply whose parent is missing goes below its top-level comment, or to the top."""
        for comment in self.comments.values():
            if comment.thread not in ("", comment.id) and not self.has_parent(comment):
                comment.parent = comment.thread
            if comment.parent and not self.has_parent(comment):
                comment.parent = ""
                event = "at the top, since what they reply to is not there"
                self.report.note(event, comment.id)

    def has_parent(self, comment: StagedComment) -> bool:
        """Whether what a comment replies to is in the file, and on the same page."""
        parent = self.comments.get(comment.parent)
        return parent is not None and parent.page.key == comment.page.key

    def set_depths(self) -> None:
        """Gives each comment its depth, from the top down. What is not reached from there replies
        to itself, perhaps through others. It is put at the top."""
        replies = defaultdict[str, list[StagedComment]](list)  # by the id of their parent
        for comment in self.comments.values():
            replies[comment.parent].append(comment)
        depth = 0
        level = replies[""]
        while level:
            for comment in level:
                comment.depth = depth
            level = [reply for comment in level for reply in replies.get(comment.id, [])]
            depth += 1
        for comment in self.comments.values():
            if comment.depth < 0:
                comment.parent = ""
                comment.depth = 0
                self.report.note("at the top, since they reply to each other", comment.id)

    def drop_childless(self) -> None:
        """A deleted comment stays where one below it was not deleted."""
        needed = set[str]()
        deepest_first = sorted(self.comments.values(), key=lambda each: each.depth, reverse=True)
        for comment in deepest_first:
            if comment.row.status != "deleted" or comment.id in needed:
                needed.add(comment.id)
                needed.add(comment.parent)
        for comment_id in [*self.comments]:
            if comment_id not in needed:
                del self.comments[comment_id]
                self.report.note("skipped: deleted, or no text", comment_id)

    def set_times(self) -> None:
        """A comment without a time gets that of its parent, or of the oldest on its page."""
        oldest: dict[str, int] = {}  # by the key of the page
        for comment in self.comments.values():
            written_at = comment.row.created_at
            if written_at:
                key = comment.page.key
                oldest[key] = min(written_at, oldest.get(key, written_at))
        # Parents come before their replies.
        for comment in sorted(self.comments.values(), key=lambda each: each.depth):
            if comment.row.created_at:
                continue
            parent = self.comments.get(comment.parent)
            if parent:
                comment.row.created_at = parent.row.created_at
            else:
                comment.row.created_at = oldest.get(comment.page.key, self.now)
            self.report.note("without a valid time", comment.id)

    def gather_pages(self) -> None:
        """One page for each key, with all that the file says of it. It has the URL of its first
        comment, if it has comments."""
        for comment in sorted(self.comments.values(), key=lambda each: each.row.created_at):
            key = comment.page.key
            if key not in self.pages:
                self.pages[key] = StagedPage(comment.page, first_comment_at=comment.row.created_at)
            page = self.pages[key]
            page.title = page.title or self.titles.get(comment.page, "")
        for listed in self.listed_pages:
            page = self.pages.setdefault(listed.ref.key, StagedPage(listed.ref))
            page.title = page.title or self.titles.get(listed.ref, "")
            page.closed = page.closed or listed.closed
            page.views = min(page.views + listed.views, MOST_VIEWS)
            page.page_likes = max(page.page_likes, listed.page_likes)
            known = [at for at in (page.opened_at, listed.opened_at) if at]
            page.opened_at = min(known, default=0)


def blog_names(wanted: str, origins: Iterable[str]) -> set[str]:
    """The spellings of the wanted blog. If none is named, these are those of the hosts in the
    settings."""
    if wanted:
        return {wanted, wanted.lower().removeprefix("www.")}
    names: set[str] = set()
    for host in map(host_of, origins):
        # The settings may also name the preview of the blog.
        if not re.match(r"localhost\b|127\.", host):
            bare = host.removeprefix("www.")
            names |= {bare, bare.partition(":")[0]}
    return names


@dataclass
class FoundHere:
    """What the store has of some comments of the file."""

    imported: dict[str, Imported]  # that came by this or an earlier import, by their stamps
    pages: dict[str, Page]  # by their keys
    similar: list[SimilarComment]  # comments that may be the same


class Adding:
    """Adds what is new to a blog, some comments in each transaction. A transaction also notes what
    it has imported. So an import that was stopped goes on later where it was."""

    def __init__(self, store: Store, arrangement: Arrangement) -> None:
        self.store = store
        self.report = arrangement.report
        self.product_name = self.report.product_name
        self.now = arrangement.now
        self.pages = arrangement.pages
        self.comments = arrangement.comments
        self.matched = set[int | None]()  # our comments that are a record of the file
        self.paused_at = time.monotonic()

    def add_all(self, show: Progress) -> None:
        pages = [page for page in self.pages.values() if self.adds_something(page)]
        for start in range(0, len(pages), IMPORT_STEP):
            with self.step():
                for page in pages[start : start + IMPORT_STEP]:
                    self.add_page(page)
        # Parents come before their replies.
        comments = sorted(
            self.comments.values(), key=lambda each: (each.depth, each.row.created_at, each.id)
        )
        for start in range(0, len(comments), IMPORT_STEP):
            with self.step():
                self.add_comments(comments[start : start + IMPORT_STEP])
            show(len(comments) - self.report.done, len(comments))

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """A transaction, and perhaps a pause."""
        with self.store.writing():
            yield
        if time.monotonic() - self.paused_at > IMPORT_SECONDS:
            threading.Event().wait(PAUSE_SECONDS)
            self.paused_at = time.monotonic()

    # Pages

    def adds_something(self, page: StagedPage) -> bool:
        """Whether something is to be added to a page besides its comments."""
        says_more = page.closed or page.title
        is_commented = page.first_comment_at > 0
        counts = page.views or page.page_likes
        return bool(self.report.is_ours or counts or (says_more and is_commented))

    def add_page(self, staged: StagedPage) -> None:
        closed = int(staged.closed)
        counts = f"{staged.views} {staged.page_likes}"
        stamp = f"page {staged.ref.key} {closed} {counts} {staged.title}"
        if self.store.imported(self.product_name, [stamp]):
            return
        page = self.store.page(staged.ref.key) or self.new_page(staged)
        if page.total:  # the owner may have reopened it here
            closed = 0
        self.store.note_import(self.product_name, stamp, 0)
        self.store.raise_page(page.id, closed, staged.views, staged.page_likes)
        if staged.title and page.takes_title_of("import"):
            self.store.set_title(page.id, staged.title, "import")
            self.report.titles_added += 1
        if closed and not page.closed:
            self.report.closed_pages += 1
        self.report.views_added += max(0, staged.views - page.views)
        self.report.page_likes_added += max(0, staged.page_likes - page.page_likes)

    def new_page(self, staged: StagedPage) -> Page:
        self.report.new_pages += 1
        opened_at = staged.opened_at or staged.first_comment_at or None
        return self.store.add_page(staged.ref.key, staged.ref.page_url, self.now, opened_at)

    # Comments

    def add_comments(self, comments: list[StagedComment]) -> None:
        """Adds those that are not here yet. Their parents are here, as far as the file has them."""
        here = self.look_up(comments)
        for comment in comments:
            parent = None
            if comment.parent:
                parent = here.imported.get(self.comments[comment.parent].stamp)
            imported = here.imported.get(comment.stamp)
            if imported and parent:
                self.put_below_late_parent(comment, imported, parent)
            if imported is None:
                imported = self.same_comment(comment, here)
                if imported is None:
                    imported = self.add_comment(comment, here, parent)
                self.store.note_import(self.product_name, comment.stamp, imported.id)
                here.imported[comment.stamp] = imported
            self.matched.add(imported.id)
            self.report.done += 1

    def look_up(self, comments: list[StagedComment]) -> FoundHere:
        """What the store has of them. It is asked once for all, which is faster."""
        parents = [self.comments[each.parent] for each in comments if each.parent]
        stamps = [each.stamp for each in (*comments, *parents)]
        ids = [each.id_as_ours for each in comments if each.id_as_ours]
        texts = [
            {
                "page_key": each.page.key,
                "created_at": each.row.created_at,
                "nickname": each.row.nickname,
                "content": each.row.content,
            }
            for each in comments
        ]
        return FoundHere(
            imported=self.store.imported(self.product_name, stamps),
            pages=self.store.pages_with_keys([each.page.key for each in comments]),
            similar=self.store.similar_comments(ids, texts),
        )

    def same_comment(self, staged: StagedComment, here: FoundHere) -> Imported | None:
        """The comment here that is this one. It has the same time, and either the same id or the
        same text, author and page. It is no other record of the file, which may have the same text.
        """
        row = staged.row
        candidates = [
            each
            for each in here.similar
            if each.created_at == row.created_at and each.id not in self.matched
        ]
        for each in candidates:
            if each.id == staged.id_as_ours:
                return each.imported
        for each in candidates:
            has_same_text = each.nickname == row.nickname and each.content == row.content
            if has_same_text and each.page_key == staged.page.key:
                return each.imported
        return None

    def add_comment(
        self, staged: StagedComment, here: FoundHere, parent: Imported | None
    ) -> Imported:
        """`parent`: what the comment replies to, if that has come."""
        row = staged.row
        self.report.new += 1
        self.report.new_by_status[row.status] += 1
        key = staged.page.key
        if key not in here.pages:
            here.pages[key] = self.new_page(self.pages[key])
        row.page_id = here.pages[key].id
        row.parent_id = parent.id if parent and parent.page_id == row.page_id else None
        row.id = staged.id_as_ours if self.report.is_ours else 0  # so that links to it stay valid
        comment_id = self.store.add_comment_row(row, row.status, self.now)
        if staged.likes:
            self.store.add_past_likes("comment", comment_id, staged.likes)
        return Imported(comment_id, row.page_id, row.parent_id)

    def put_below_late_parent(
        self, staged: StagedComment, comment: Imported, parent: Imported
    ) -> None:
        """Puts a comment that came without its parent below it: an earlier import may have been of
        a part of the file."""
        is_lonely = comment.id and comment.parent_id is None
        if not is_lonely or not parent.id or parent.page_id != comment.page_id:
            return
        if self.store.put_below(comment.id, parent.id):
            self.report.note("now below what they reply to", staged.id)


# -- Export -------------------------------------------------------------------

UTC_FORMAT = "%Y-%m-%d %H:%M:%S"  # of a time as WordPress and Artalk have it


def list_items(records: Iterable[Json]) -> Iterator[str]:
    """The items of a JSON list, one line each."""
    separator = ""
    for record in records:
        yield separator + json.dumps(record, ensure_ascii=False)
        separator = ",\n"


@dataclass(frozen=True)
class Export:
    """What is exported: all comments, with or without email addresses."""

    store: Store
    config: Config
    emails: bool

    def comments(self) -> Iterator[ExportedComment]:
        """All comments. One that was deleted, while others below it were not, has no text."""
        for comment in self.store.exported_comments():
            shown = comment.erased() if comment.status == "deleted" else comment
            email_address = shown.email if self.emails else ""
            yield replace(shown, ip=masked(shown.ip), email=email_address)

    def comments_for_others(self) -> Iterator[ExportedComment]:
        """All comments for a product without tombstones: there, one is a comment with this text."""
        for comment in self.comments():
            if comment.status == "deleted":
                yield replace(comment, nickname="-", content="[deleted]", status="visible")
            else:
                yield comment


def as_commentd(export: Export) -> Iterator[str]:
    """Our own format, as the manual documents it. It is equal for equal comments."""
    yield '{"format": "commentd", "version": 1, "pages": [\n'
    yield from list_items(
        {
            "page_key": page.key,
            "page_url": page.page_url,
            "title": page.public_title,
            "views": page.views,
            "page_likes": page.page_likes,
            "closed": page.closed,
            "opened_at": rfc3339(page.opened_at),
        }
        for page in export.store.exported_pages()
    )
    yield '\n], "comments": [\n'
    yield from list_items(
        {
            "page_key": comment.page_key,
            **values_of(comment, EXPORTED_FIELDS),
            "html": comment.html if comment.own_html else "",
            "created_at": rfc3339(comment.created_at),
            "edited_at": rfc3339_or_none(comment.edited_at),
        }
        for comment in export.comments()
    )
    yield "\n]}\n"


def rfc3339_or_none(seconds: int | None) -> str | None:
    return rfc3339(seconds) if seconds else None


def as_data(export: Export) -> Iterator[str]:
    """What readers see of the comments, by page key: for the templates of a site's generator."""
    shown = (comment for comment in export.comments() if comment.shown)
    yield "{\n"
    separator = ""
    for key, comments in itertools.groupby(shown, operator.attrgetter("page_key")):
        yield f"{separator}{json.dumps(key)}: [\n"
        yield from list_items(seen_by_readers(comment, export.config) for comment in comments)
        yield "\n]"
        separator = ",\n"
    yield "\n}\n"


def seen_by_readers(comment: ExportedComment, config: Config) -> Json:
    """A comment as readers see it: a tombstone if it is not visible. `html` stands for its text."""
    seen = {"deleted": False, "waiting": False, **comment.in_list(config)}
    for name in ("page_url", "user_id", "content", "ip", "edited"):
        del seen[name]
    return {
        **seen,
        "html": clean(seen["html"]),
        "created_at": rfc3339(comment.created_at),
        "edited_at": None if seen["deleted"] else rfc3339_or_none(comment.edited_at),
    }


# What other products take for HTML, and readers here see as it was typed: tags and references.
TYPED_HTML = re.compile(r"(?i)<[a-z/!?]|&#?\w+;")


def markdown_or_html(comment: ExportedComment) -> str:
    """The text of a comment for a product that shows Markdown, and HTML that stands in it."""
    prose = MARKDOWN_CODE.split(comment.content)[::2]
    if not comment.own_html and not any(map(TYPED_HTML.search, prose)):
        return comment.content
    return comment.html if HTML_START.match(comment.html) else f"<p>{comment.html}</p>"


def as_waline(export: Export) -> Iterator[str]:
    yield '{"type": "waline", "version": 1, "tables": ["Comment", "Counter", "Users"],\n'
    yield '"data": {"Users": [], "Counter": [\n'
    yield from list_items(
        {"objectId": page.id, "time": page.views, "url": unquoted(page.page_url)}
        for page in export.store.exported_pages()
    )
    yield '\n], "Comment": [\n'
    yield from list_items(
        {
            "objectId": comment.id,
            "pid": comment.parent_id,
            "rid": comment.thread_id,
            "nick": comment.nickname,
            "mail": comment.email,
            "link": comment.website,
            "ip": comment.ip,
            "like": comment.likes,
            "sticky": comment.pinned,
            "insertedAt": rfc3339(comment.created_at),
            "createdAt": rfc3339(comment.created_at),
            "updatedAt": rfc3339(comment.edited_at or comment.created_at),
            "comment": markdown_or_html(comment),
            "url": unquoted(comment.page_url),  # as its widget asks for it
            "status": "approved" if comment.status == "visible" else comment.status,
        }
        for comment in export.comments_for_others()
    )
    yield "\n]}}\n"


def as_artalk(export: Export) -> Iterator[str]:
    """An export for Artalk, where all values are texts."""
    yield "[\n"
    yield from list_items(
        {
            "id": str(comment.id),
            "ip": comment.ip,
            "nick": comment.nickname,
            "email": comment.email,
            "link": comment.website,
            "vote_up": str(comment.likes),
            "page_title": comment.public_title or comment.page_url,
            "created_at": artalk_time(comment.created_at),
            "updated_at": artalk_time(comment.edited_at or comment.created_at),
            "content": markdown_or_html(comment),
            "is_pinned": "true" if comment.pinned else "false",
            "page_admin_only": "true" if comment.closed else "false",
            "is_pending": "true" if comment.status == "waiting" else "false",
            "rid": str(comment.parent_id or 0),
            "page_key": quoted_url(comment.page_url),
            "site_name": export.config.blog_name,
            "site_urls": ",".join(export.config.site_origins),
            "is_collapsed": "false",
            "vote_down": "0",
            "ua": "",
            "password": "",
            "badge_name": "",
            "badge_color": "",
        }
        for comment in export.comments_for_others()
        if comment.status != "spam"
    )
    yield "\n]\n"


def artalk_time(seconds: int) -> str:
    return time_of(seconds).strftime(f"{UTC_FORMAT} +0000")


WXR = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dsq="http://www.disqus.com/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:wp="http://wordpress.org/export/1.2/">
<channel>
<wp:wxr_version>1.2</wp:wxr_version>
"""
WXR_ITEM = """<item>
<title>{title}</title>
<link>{link}</link>
<content:encoded></content:encoded>
<dsq:thread_identifier>{page_url}</dsq:thread_identifier>
<wp:post_id>{page_id}</wp:post_id>
<wp:post_date_gmt>{opened_at}</wp:post_date_gmt>
<wp:status>publish</wp:status>
<wp:post_type>post</wp:post_type>
<wp:comment_status>{comment_status}</wp:comment_status>
"""
WXR_COMMENT = """<wp:comment>
<wp:comment_id>{id}</wp:comment_id>
<wp:comment_author>{nickname}</wp:comment_author>
<wp:comment_author_email>{email}</wp:comment_author_email>
<wp:comment_author_url>{website}</wp:comment_author_url>
<wp:comment_author_IP>{ip}</wp:comment_author_IP>
<wp:comment_date>{created_at}</wp:comment_date>
<wp:comment_date_gmt>{created_at}</wp:comment_date_gmt>
<wp:comment_content>{html}</wp:comment_content>
<wp:comment_approved>{approved}</wp:comment_approved>
<wp:comment_type>comment</wp:comment_type>
<wp:comment_parent>{parent_id}</wp:comment_parent>
</wp:comment>
"""
WXR_STATUSES = {"visible": "1", "waiting": "0", "spam": "spam"}


def as_wordpress(export: Export) -> Iterator[str]:
    """WXR 1.2, which Disqus reads too."""
    yield WXR
    comments = export.comments_for_others()
    for _, group in itertools.groupby(comments, operator.attrgetter("page_id")):
        comments_of_page = [*group]
        yield wxr_item(comments_of_page[0], export.config.site_origins)
        yield from map(wxr_comment, comments_of_page)
        yield "</item>\n"
    yield "</channel>\n</rss>\n"


def wxr_item(comment: ExportedComment, origins: Strings) -> str:
    """The beginning of the page of a comment."""
    page_url = comment.page_url
    item = {
        "page_id": comment.page_id,
        "page_url": page_url,
        "title": comment.public_title or page_url,
        "link": page_link(page_url, origins) or quoted_url(page_url),
        "opened_at": time_of(comment.opened_at).strftime(UTC_FORMAT),
        "comment_status": "closed" if comment.closed else "open",
    }
    return filled_xml(WXR_ITEM, item)


def wxr_comment(comment: ExportedComment) -> str:
    # Disqus wants an email address, and takes authors with the same one for one person.
    author = sha256_of(comment.nickname)[:12]
    shows_text = not is_blank(text_of(comment.html))
    values = {
        "id": comment.id,
        # WordPress keeps names and websites as HTML.
        "nickname": html.escape(comment.nickname, quote=False),
        "website": html.escape(comment.website, quote=False),
        "email": comment.email or f"{author}@commenter.invalid",
        "ip": comment.ip or UNKNOWN_IP,  # Isso's importer fails without one
        "created_at": time_of(comment.created_at).strftime(UTC_FORMAT),
        "html": comment.html if shows_text else html.escape(comment.content),
        "approved": WXR_STATUSES[comment.status],
        "parent_id": comment.parent_id or 0,
    }
    return filled_xml(WXR_COMMENT, values)


# What no XML may hold.
XML_CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def filled_xml(form: str, values: Json) -> str:
    """XML with values in the place of their names."""
    escaped_values = {name: html.escape(str(value)) for name, value in values.items()}
    return XML_CONTROL.sub("", form.format_map(escaped_values))


@dataclass(frozen=True)
class Exporter:
    """`write` yields the file in parts. `lost`: what it cannot hold."""

    write: Callable[[Export], Iterator[str]]
    lost: str


EXPORTERS = {
    "commentd": Exporter(
        as_commentd, lost="accounts, who liked what, settings (`commentd backup` has them)"
    ),
    "data": Exporter(
        as_data, lost="what readers do not see, views (it is for the templates of a site)"
    ),
    "wordpress": Exporter(as_wordpress, lost="likes, views, edits, pins"),
    "artalk": Exporter(as_artalk, lost="spam, edits, views, likes of pages"),
    "waline": Exporter(as_waline, lost="edits, closed pages, likes of pages"),
}


# -- Moves --------------------------------------------------------------------


# A page moves by its key. Where the owner writes `/old/*`, the beginning of the key does, and what
# stands in the place of the `*` follows as people wrote it, which the key no longer tells: it has
# lost slashes and `index.html` at the end of a path.


def rest_of_page(page: Page, start: str) -> str | None:
    """What follows `start` in the URL of a page. None if its key begins otherwise. With the start
    `/old/` and the page `/old/a/?x=1`, it is `a/?x=1`; with `/20` and `/2026/`, it is `26`."""
    is_on_same_host = page.key.startswith("//") == start.startswith("//")
    if not is_on_same_host:
        return None
    # The page `/old/` has the key `/old`, and is one of those that begin with `/old/`.
    path, query = split_path(page.key)
    spellings = (page.key, f"{path}/{query}")
    key = next((each for each in spellings if each.startswith(start)), None)
    if key is None:
        return None
    if start.endswith("/"):
        written = rest_as_written(page.page_url, start)
        if written is not None:
            return written
    return key.removeprefix(start)


def rest_as_written(page_url: str, start: str) -> str | None:
    """What follows in a URL behind as many slashes as `start` has. None if it has fewer."""
    path, query = split_path(HOST.sub("", page_url))
    slashes = HOST.sub("", start).count("/")
    segments = path.split("/", slashes)
    return segments[slashes] + query if len(segments) > slashes else None


def new_page_url(page: Page, old: str, new: str) -> str:
    """The new URL of a page, if `old` is its key, or a beginning of that with a `*`; else ""."""
    if not old.endswith("*"):
        return new if page.key == old else ""
    rest = rest_of_page(page, old.removesuffix("*"))
    return "" if rest is None else new.removesuffix("*") + rest


def move_pages(store: Store, old: str, new: str, origins: Iterable[str]) -> list[str]:
    """Gives pages a new URL. Returns a line for each one that has another."""
    moves_many = old.endswith("*")
    if new.endswith("*") != moves_many:
        raise SettingsError("end both URLs with *, or neither")
    old_key = page_name(old, origins).key
    # The keys of pages that were made by older rules may be none that these rules make.
    if any(page.key == old for page in store.all_pages()):
        old_key = old
    # In an order in which no page moves twice: of `/a` and `/x/a`, which become `/x/a` and
    # `/x/x/a`, the longer one is first. Where keys become shorter, the shorter one is.
    keys_grow = len(page_name(new, origins).key) > len(old_key)
    lines = []
    with store.writing():
        pages = sorted(store.all_pages(), key=lambda page: len(page.key), reverse=keys_grow)
        for page in pages:
            url = new_page_url(page, old_key, new)
            if not url:
                continue
            name = page_name(url, origins)
            if moves_many and name.key == page.key:
                continue
            page_id = store.move_page(page.id, name.key, name.page_url)
            merged = "" if page_id == page.id else " (merged)"
            lines.append(f"{page.page_url} -> {name.page_url}{merged}")
    return lines


# -- Serving ------------------------------------------------------------------

# How a request runs:
# 1. The event loop (`EventLoop.turn`) waits until sockets can be read or written, and accepts
#    connections. Each is a `FastConnection`.
# 2. Bytes arrive in `received`. If they are one plain GET whose response is cached, that is sent,
#    and the request is done.
# 3. Otherwise `StrictParser` reads one request. What was sent after it waits in `bytes_ahead`.
# 4. When all that arrived is read, the event loop responds to what only reads: clients take turns,
#    for a few milliseconds. The rest waits for the next turn.
# 5. What writes a few rows (`NeedsTransaction`) waits for `SharedTransaction`: the event loop runs
#    many such handlers in one transaction, and sends their responses after its COMMIT, for which a
#    thread waits.
# 6. What takes longer, or waits for more (`NeedsWorker`), gets a thread of `Workers`, in one of two
#    lanes, so that neither reading nor waiting holds up the other.
# 7. In each case an `OneSendTask` calls `Sites`, sends the response, and adds it to the
#    `ResponseCache` if the app made a cache entry for it.
# 8. The event loop sends what the client did not take at once. Then the next request begins.
# Beside that, `Sweeper` closes connections that do not get on, and makes room for others.
#
# A client is known by its `network` (`Client.network`), "" if nothing tells it from others. What is
# a connection here, waitress calls a channel.
#
# There are three clocks:
# - `wall_clock`, that of the World: responses expire and connections get stuck by it, since
#   waitress notes the time so.
# - `time.monotonic`: how long something waits.
# - `time.thread_time`: how long a thread has computed.

# Limits of connections
CONNECTIONS = 1000
REQUEST_SECONDS = 20  # for a whole request to arrive
RESPONSE_SECONDS = 60  # for a whole response to be read
UNREAD_BYTES = 256 * MEGA  # of all responses
UNREAD_BYTES_OF_ONE = 16 * MEGA  # of all responses to one client, unless it is a single one
SWEEP_SECONDS = 0.25
# Worker threads
READING_THREADS = 2  # more would take the interpreter lock from each other and the event loop
READING_THREADS_OF_ONE = 1  # of one client at once
WAITING_THREADS = 6  # four may wait for a captcha provider, and two are left to write
WAITING_THREADS_OF_ONE = 2
QUEUE_SECONDS = 5  # that a write waits for a thread
CROWD_SECONDS = 0.1  # that a thread pauses at most while more events come than a turn takes
# A turn of the event loop
EVENTS_OF_ONE = 64  # of one client in a turn
TURN_SECONDS = 0.03  # of CPU time, for responses
SPAN_SECONDS_OF_ONE = 0.025  # of CPU time for one client in a span, while there are others
SPAN_SECONDS = 1
# The response cache
CACHE_BYTES = 16 * MEGA
CACHE_SECONDS = 10
KNOWN_HEADERS = 4096  # how many, for the cache
KNOWN_HEADER_BYTES = 2048  # of the longest


# Which waitress is installed

# Serving builds on internals of waitress: what the imports at the top name, what these classes
# override, and of the server `asyncore`, `_map`, `active_channels`, and what its `handle_accept`
# does, which `accept_waiting` replaces. Read what changed in a new version of waitress before you
# write its digest here.
KNOWN_WAITRESS = "a04ce61748ea636c"  # 3.0.2
# What `Connection` and `Sweeper` use. A waitress that has these names serves with their protection.
NAMES_THAT_PROTECT = (
    "active_channels",
    "channel_class",
    "close_when_flushed",
    "creation_time",
    "error_task_class",
    "handle_close",
    "last_activity",
    "maintenance",
    "outbufs",
    "parser_class",
    "received",
    "total_outbufs_len",
    "will_close",
)


class Waitress(enum.Enum):
    """What this program knows of the waitress that is installed."""

    KNOWN = "its inside is the one that Serving was written for"
    SIMILAR = "it has the names that protect: connections are guarded, and nothing is cached"
    STRANGE = "it lacks one of them: it serves as it is"


def installed_waitress() -> Waitress:
    files = Path(waitress.__file__).parent.glob("*.py")
    source = b"".join(file.read_bytes() for file in sorted(files))
    if hashlib.sha256(source).hexdigest().startswith(KNOWN_WAITRESS):
        return Waitress.KNOWN
    names = set(re.findall(r"\w+", source.decode(errors="replace")))
    if HTTPChannel is object or not names.issuperset(NAMES_THAT_PROTECT):
        return Waitress.STRANGE
    return Waitress.SIMILAR


# Parsing a request, and sending a response

# waitress comes without types: that is why each class that is built on one of its own has a
# `type: ignore`. What they take from it is declared at the top of each.


class ParsedRequest(Protocol):
    """A request as the parser of waitress has read it. A `Request` is what the app makes of it."""

    error: Any  # why the parser refuses it, or None; then the rest may be missing
    headers: dict[str, str]  # by names such as ACCEPT_ENCODING
    command: str  # the method
    path: str
    completed: bool  # it has arrived whole
    empty: bool  # it was nothing but line breaks

    def received(self, data: bytes) -> int:
        """Takes the next data, and returns how many bytes were of this request."""

    def close(self) -> None:
        """Frees its body. Nothing is done with it any more."""


REQUEST_LINE = re.compile(rb"[!-~]+ [!-~\x80-\xff]+ HTTP/1\.[01]")


class StrictParser(HTTPRequestParser):  # type: ignore[misc]
    """Refuses requests that a proxy could read differently (RFC 9112, sections 3, 5.2 and 6.1)."""

    version: str  # of HTTP: "1.0" or "1.1"

    def parse_header(self, header_plus: bytes) -> None:
        """Reads the request line and the headers, which are whole."""
        first_line, *lines = header_plus.split(b"\r\n")
        names = [line.partition(b":")[0].lower() for line in lines]
        if b"transfer-encoding" in names:
            raise TransferEncodingNotImplemented("chunked")
        if re.search(rb"\n[ \t]", header_plus):
            raise ParsingError("a header on two lines")
        if not REQUEST_LINE.fullmatch(first_line):
            raise ParsingError("no request line")
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # of an odd URL, or a number that is too long
            raise ParsingError("unreadable") from error
        if names.count(b"host") > 1:
            raise ParsingError("two hosts")
        if b"host" not in names and self.version != "1.0":
            raise ParsingError("no host")
        if names.count(b"content-length") > 1:
            raise ParsingError("two lengths")


class RefusalTask(ErrorTask):  # type: ignore[misc]
    """Refuses in our format what the parser does not accept."""

    channel: "Connection"
    request: ParsedRequest
    response_headers: list[tuple[str, str]]

    def execute(self) -> None:
        """Makes the response and sends it."""
        app = self.channel.loop.sites.app_for(self.request.headers.get("HOST", ""))
        sender = self.request.headers.get("ORIGIN", "")
        path = getattr(self.request, "path", "")
        headers = headers_of_area(area_of(path), has_token=True)
        if app:
            headers = headers_for(app.site, path, sender, has_token=True)
        response = refusal(REFUSALS.get(self.request.error.code, INTERNAL))
        self.status = f"{response.status} {HTTPStatus(response.status).phrase}"
        self.response_headers.append(("Content-Type", response.content_type))
        self.response_headers.extend({**headers, **response.headers}.items())
        self.set_close_on_finish()
        self.content_length = len(response.body)
        self.write(response.body)


class OneSendTask(WSGITask):  # type: ignore[misc]
    """Calls the app. Sends head and body at once, which saves a packet, and caches these bytes."""

    channel: "FastConnection"
    request: ParsedRequest
    environ: Json  # what the app was called with
    complete: bool  # whether the app has said status and headers
    content_length: int | None  # what the header says; None if there is none
    wrote_header: bool  # whether the head was sent

    def get_environment(self) -> Json:
        environ: Json = super().get_environment()
        environ["commentd.in_event_loop"] = threading.get_ident() == self.channel.loop.thread
        environ["wsgi.input"].seek(0)  # a call in the event loop may have read it
        return environ

    def write(self, data: bytes) -> None:
        """Sends a part of the body: all of it, unless it is a file."""
        if not self.is_whole(data) or self.wrote_header or not self.complete:
            super().write(data)
            return
        response = self.build_response_header() + data
        self.wrote_header = True
        self.content_bytes_written = len(data)
        self.channel.write_soon(response)
        key = self.channel.cache_key
        if key and "commentd.cache_entry" in self.environ:
            entry = self.environ["commentd.cache_entry"]
            entry.response = response
            self.channel.loop.cache.add(key, entry)

    def is_whole(self, data: bytes) -> bool:
        """Whether that is the whole body of the response."""
        if self.has_body:
            return self.content_length == len(data)
        return not data

    def set_close_on_finish(self) -> None:
        """Keeps the connection after a 204 and a 304, where waitress closes it (RFC 9110, 8.6)."""
        connection = self.request.headers.get("CONNECTION", "").lower()
        if self.has_body or self.version == "1.0" or connection == "close":
            super().set_close_on_finish()


class UnsentResponse(NamedTuple):
    """A response that is sent after the COMMIT of what it reports."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


class UnsentResponseTask(OneSendTask):
    """Sends such a response, in place of calling the app."""

    complete = True

    def __init__(
        self, unsent: UnsentResponse, channel: "FastConnection", request: ParsedRequest
    ) -> None:
        super().__init__(channel, request)
        self.unsent = unsent

    def execute(self) -> None:
        self.status = self.unsent.status
        self.response_headers = self.unsent.headers
        self.content_length = len(self.unsent.body)
        self.write(self.unsent.body)


def environ_of(parsed: ParsedRequest, ip: str) -> Json:
    """A WSGI environment with as much of a request as tells whose it is."""
    environ: Json = {f"HTTP_{name}": value for name, value in parsed.headers.items()}
    environ["REMOTE_ADDR"] = ip
    return environ


# The response cache

RawGet = tuple[bytes, bytes]  # the target of a GET, and its headers, as they were sent


def raw_get(data: bytes) -> RawGet | None:
    """None if the data do not begin with a GET, or are long. Whether another request comes behind
    it, only the parser knows."""
    first_line, _, headers = data.partition(b"\r\n")
    if len(headers) > KNOWN_HEADER_BYTES:
        return None
    if first_line.startswith(b"GET /") and first_line.endswith(b" HTTP/1.1"):
        return first_line[len(b"GET ") : -len(b" HTTP/1.1")], headers
    return None


@dataclass(frozen=True)
class KnownHeaders:
    """What the cache has to know of the headers of a GET. The caller is not signed in, and the
    connection stays open."""

    variant: bytes  # the headers that a public response depends on, as the end of a cache key
    viewer: Client | None  # whose view the request is; None if no person looks


class KnownGet(NamedTuple):
    """A GET whose headers the cache knows."""

    key: bytes  # of its response in the cache
    viewer: Client | None  # whose view it is; None if no person looks


class ResponseCache:
    """Public responses as the bytes that were sent, by path, query and the headers that they depend
    on. A change of a page outdates those that depend on it. All expire every ten seconds, each at a
    moment of its own, so counts of views may be that old."""

    def __init__(self, sites: Sites) -> None:
        self.clients = sites.first.clients
        self.wall_clock = sites.first.world.clock
        self.lock = threading.Lock()  # of what follows, for those that add
        self.entries: dict[bytes, CacheEntry] = {}  # the oldest first
        self.size = 0
        # By the bytes of the headers and the IP address that sent them, the oldest first. To parse
        # takes longest, and most requests repeat the headers of another. Only the event loop adds.
        self.known_headers: dict[tuple[bytes, str], KnownHeaders] = {}

    def known_get(self, get: RawGet, ip: str) -> KnownGet | None:
        """None if such headers did not come before, or if the response is not for the cache."""
        target, raw_headers = get
        headers = self.known_headers.get((raw_headers, ip))
        if headers is None:
            return None
        return KnownGet(target + b"\n" + headers.variant, headers.viewer)

    def learn_headers(self, get: RawGet, ip: str, parsed: ParsedRequest) -> KnownGet | None:
        """Remembers what the headers of a request mean, and returns what `known_get` says of them
        from now on. None if its response is not for the cache. No other request stands behind
        it."""
        _, raw_headers = get
        headers = parsed.headers
        is_kept = headers.get("CONNECTION", "").lower() in ("", "keep-alive")
        if parsed.error or not is_kept or "AUTHORIZATION" in headers:
            return None
        is_gzipped = accepts_gzip(headers.get("ACCEPT_ENCODING", ""))
        others = [headers.get(name) for name in ("HOST", "ORIGIN", "IF_NONE_MATCH")]
        variant = repr((is_gzipped, *others)).encode()
        environ = environ_of(parsed, ip) | {"REQUEST_METHOD": "GET"}
        viewer = self.clients.of(environ) if is_real_view(environ) else None
        if len(self.known_headers) >= KNOWN_HEADERS:
            del self.known_headers[next(iter(self.known_headers))]
        self.known_headers[raw_headers, ip] = KnownHeaders(variant, viewer)
        return self.known_get(get, ip)

    def fresh_entry(self, key: bytes) -> CacheEntry | None:
        """An entry that can be sent as it is."""
        entry = self.entries.get(key)
        if entry is None or entry.is_outdated:
            return None
        return entry if entry.made_at <= self.wall_clock() < entry.expires_at else None

    def add(self, key: bytes, entry: CacheEntry) -> None:
        entry.expires_at = next_expiry(key, entry.made_at)
        with self.lock:
            self.drop(key)
            self.entries[key] = entry
            self.size += size_in_cache(key, entry)
            while self.size > CACHE_BYTES:
                self.drop(next(iter(self.entries)))

    def drop(self, key: bytes) -> None:
        entry = self.entries.pop(key, None)
        if entry:
            self.size -= size_in_cache(key, entry)


def next_expiry(key: bytes, made_at: float) -> float:
    """When a response expires. That happens to each key every ten seconds, but not to all at the
    same moment: all that was cached at once would have to be made again at once."""
    offset = hash(key) % 1000 / 1000 * CACHE_SECONDS
    seconds_since_last_expiry = (made_at + offset) % CACHE_SECONDS
    return made_at + CACHE_SECONDS - seconds_since_last_expiry


def size_in_cache(key: bytes, entry: CacheEntry) -> int:
    """The page keys are a part of the key. 1000 is for the objects around it."""
    return len(entry.response) + 2 * len(key) + 1000


# Connections


class Connection(HTTPChannel):  # type: ignore[misc]
    """A connection that no client can misuse for long: it parses strictly, belongs to a client, and
    `Sweeper` sees whether it gets on.

    waitress calls `received` with what has arrived, asks `readable` and `writable` what to wait
    for, and closes with `handle_close`. `service` has a task (`task_class`) respond to the request,
    which is done then. `send` hands bytes to the system and returns how many it took; `write_soon`
    keeps them in a buffer."""

    parser_class = StrictParser
    error_task_class = RefusalTask

    # What waitress keeps in a connection
    server: Any
    adj: Any  # the settings of waitress
    addr: tuple[str, int]  # the IP address and port of the other side
    connected: bool  # False when the other side has left
    _fileno: int | None  # of the socket; None when it is closed
    request: ParsedRequest | None  # the one that is still arriving
    requests: list[ParsedRequest]  # to be responded to; a `FastConnection` has one at most
    requests_lock: threading.Lock  # of these two
    outbufs: list[Any]  # buffers of what the other side has not taken; the first one is sent next
    total_outbufs_len: int  # the bytes in them
    close_when_flushed: bool  # it closes when they are sent
    will_close: bool  # it closes in the next turn
    creation_time: float  # by the wall clock, as the next one
    last_activity: float  # when the last bytes came or went

    network = ""  # of the client whose connection this is; "" for a proxy that sent nothing yet
    # What the client is sending or reading, and when `Sweeper` saw it first: the request that is
    # still arriving, or a buffer with a part of the response. When it finds another object there,
    # the connection has got on.
    unfinished: Any = None
    unfinished_since = 0.0

    def __init__(
        self,
        loop: "EventLoop",
        server: Any,
        sock: socket.socket,
        addr: Any,
        *rest: Any,
        **named: Any,
    ) -> None:
        self.loop = loop
        super().__init__(server, sock, addr, *rest, **named)
        self.join(loop.clients.of_peer(addr[0]))

    def del_channel(self, map: Any = None) -> None:
        """waitress calls this when the connection closes."""
        super().del_channel(map)
        self.loop.connections.remove(self)

    def join(self, network: str) -> None:
        """Notes whose connection this is, and closes one if that client has too many now."""
        self.loop.connections.remove(self)
        self.network = network
        self.loop.connections.add(self)
        excess = self.loop.connections.excess(self)
        if excess:
            excess.handle_close()

    def received(self, data: bytes) -> bool:
        is_open = bool(super().received(data))
        requests = [*self.requests]  # a worker may be done with them already
        if requests:
            self.join_client_of(requests[0])
        return is_open

    def join_client_of(self, parsed: ParsedRequest) -> None:
        """A proxy tells whose connection this is only with a request."""
        network = self.loop.clients.of(environ_of(parsed, self.addr[0])).network
        if network != self.network:
            self.join(network)

    def writable(self) -> bool:
        """While a worker thread responds, it also sends. The event loop would spin over the same
        connection and keep the interpreter lock from the worker: 128 connections stood still."""
        return bool(self.will_close if self.requests else super().writable())

    @property
    def is_busy(self) -> bool:
        return bool(self.requests or self.total_outbufs_len)

    @property
    def is_download(self) -> bool:
        """Whether it sends a file."""
        return isinstance(self.outbufs[0], ReadOnlyFileBasedBuffer)

    def note_progress(self, now: float) -> None:
        """Notes since when the client has been sending this request, or reading this response."""
        unfinished = self.outbufs[0] if self.total_outbufs_len else self.request
        if unfinished is not self.unfinished:
            self.unfinished = unfinished
            self.unfinished_since = now

    def is_stuck(self, now: float) -> bool:
        """Whether the client takes too long for that."""
        seconds = RESPONSE_SECONDS if self.total_outbufs_len else REQUEST_SECONDS
        return self.unfinished is not None and now - self.unfinished_since > seconds

    @property
    def last_progress(self) -> float:
        """When the connection last got on. A byte of an unfinished request does not count."""
        if self.unfinished is not None and not self.requests:
            return self.unfinished_since
        return self.last_activity


class FastConnection(Connection):
    """A connection whose responses come from the cache, from the event loop or from a worker
    thread, whichever is fastest."""

    bytes_ahead = b""  # of the next requests, which wait until this response is read
    cache_key = b""  # of the response that is being made; b"" if it cannot be cached
    unsent: UnsentResponse | None = None  # it waits for a COMMIT

    @property
    def task_class(self) -> Callable[..., OneSendTask]:
        """What `service` responds with."""
        if self.unsent:
            return functools.partial(UnsentResponseTask, self.unsent)
        return OneSendTask

    def del_channel(self, map: Any = None) -> None:
        self.bytes_ahead = b""  # no request begins on a closed connection
        if self._fileno is not None:
            self.loop.forget(self._fileno)
        super().del_channel(map)

    def begin_next(self) -> None:
        """Begins the request that was sent ahead, once the response to the last one is read."""
        if self.bytes_ahead and not self.is_busy:
            data = self.bytes_ahead
            self.bytes_ahead = b""
            self.received(data)

    def received(self, data: bytes) -> bool:
        """Takes one request out of the data, and responds from the cache or lets it begin."""
        if self.will_close or self.close_when_flushed:
            return False
        get = None if self.request else raw_get(data)
        known = self.loop.cache.known_get(get, self.addr[0]) if get else None
        if known and self.send_cached(known):
            return True
        self.parse(data)
        if self.requests:  # it has arrived whole
            self.begin(get, known)
        return True

    def begin(self, get: RawGet | None, known: KnownGet | None) -> None:
        """Responds from the cache if such headers came for the first time, else queues the
        request."""
        parsed = self.requests[0]
        if get and not known and not self.bytes_ahead:
            known = self.loop.cache.learn_headers(get, self.addr[0], parsed)
            if known and self.send_cached(known):
                parsed.close()
                self.requests = []
                return
        self.cache_key = known.key if known else b""
        self.join_client_of(parsed)
        self.loop.queue_request(self)

    def send_cached(self, known: KnownGet) -> bool:
        """False if the response is not cached."""
        entry = self.loop.cache.fresh_entry(known.key)
        if entry is None:
            return False
        if entry.viewed and known.viewer:
            count_view(entry.site, known.viewer, entry.viewed)
        sent = self.send(entry.response)
        if sent < len(entry.response) and self.connected:
            self.write_soon(entry.response[sent:])
            self.loop.in_motion[self] = None
        return True

    def parse(self, data: bytes) -> None:
        """Reads one request; what was sent after it waits. waitress would parse all that were sent
        ahead, and send `100 Continue`: bodies are small, and clients that wait for it go on after a
        second."""
        # A worker that has just made a response looks at `request`, too.
        with self.requests_lock:
            while data and not self.requests:
                if self.request is None:
                    self.request = self.parser_class(self.adj)
                data = data[self.request.received(data) :]
                if self.request.completed:
                    if not self.request.empty:
                        self.requests = [self.request]
                    self.request = None
            self.bytes_ahead = data

    def call_app(self) -> None:
        """Calls the app for a request that writes, and keeps the response until the COMMIT.
        `NeedsWorker` if a worker has to."""
        environ = OneSendTask(self, self.requests[0]).get_environment()
        started: list[Any] = []
        body = b"".join(self.server.application(environ, lambda *said: started.append(said)))
        status, headers, *_ = started[-1]
        self.unsent = UnsentResponse(status, headers, body)

    def send_or_refuse(self, *, is_durable: bool) -> None:
        """Sends the response that was kept, or refuses the request if nothing was saved."""
        if not is_durable:
            self.unsent = None
            self.requests[0].error = Overloaded()
        self.service()
        self.unsent = None


class Connections:
    """All open connections, by the network of their client, the oldest first."""

    def __init__(self, adj: Any) -> None:
        self.adj = adj  # the settings of waitress
        self.by_network: dict[str, dict[Connection, None]] = {}

    def add(self, connection: Connection) -> None:
        self.by_network.setdefault(connection.network, {})[connection] = None

    def remove(self, connection: Connection) -> None:
        own = self.by_network.get(connection.network, {})
        own.pop(connection, None)
        if not own:  # else each client ever seen would take memory
            self.by_network.pop(connection.network, None)

    def excess(self, newest: Connection) -> Connection | None:
        """The connection to close if the client of the newest one has more than half of all that
        there may be: an idle one of its oldest, else the newest. A search through all would be most
        of the work in a flood."""
        own = self.by_network[newest.network]
        if not newest.network or len(own) <= self.adj.connection_limit // 2:
            return None
        oldest = itertools.islice(own, 16)
        return next((each for each in oldest if not each.is_busy), newest)


# Closing connections


class Sweeper:
    """Closes connections that do not get on, and makes room for others."""

    def __init__(self, server: Any) -> None:
        self.server = server

    def sweep(self, now: float) -> None:
        """Looks at all of them, some times a second. `now` is by the wall clock."""
        self.close_stuck(now)
        self.close_unread()
        self.close_excess(now)

    def connections(self) -> list[Connection]:
        """All but downloads, which may take long."""
        return [each for each in self.server.active_channels.values() if not each.is_download]

    def close_stuck(self, now: float) -> None:
        """Closes connections whose request or response does not end. waitress only closes silent
        ones: a client that sends a byte now and then would stay."""
        for connection in self.connections():
            if connection.requests:
                continue
            connection.note_progress(now)
            if connection.is_stuck(now):
                connection.handle_close()

    def close_unread(self) -> None:
        """Closes connections of clients that leave too much unread, by themselves or all
        together."""
        connections = [each for each in self.connections() if each.total_outbufs_len]
        unread = sum(each.total_outbufs_len for each in connections)
        for candidate in in_closing_order(connections, lambda each: each.total_outbufs_len):
            connection = candidate.connection
            own = connection.total_outbufs_len
            # A single response may be of any length. "" stands for many clients.
            is_one_of_several = bool(connection.network) and candidate.client_has > own
            is_too_much = is_one_of_several and candidate.client_has > UNREAD_BYTES_OF_ONE
            if is_too_much or unread > UNREAD_BYTES:
                unread -= own
                connection.handle_close()

    def close_excess(self, now: float) -> None:
        """Closes some connections if there are nearly as many as there may be."""
        limit = self.server.adj.connection_limit
        excess = len(self.server.active_channels) - limit * 9 // 10
        if excess <= 0:
            return
        # Of a new connection, it is not known yet whose it is: a proxy may have opened it.
        known = [
            each for each in self.connections() if each.network or now - each.creation_time > 1
        ]
        for candidate in in_closing_order(known, lambda connection: 1)[:excess]:
            candidate.connection.handle_close()


@dataclass
class ClosingCandidate:
    """A connection that may be closed to make room. Of the connections of one client, those that
    have got on least recently close first."""

    connection: Connection
    client_has: int  # what its client still has when those before it are closed


def in_closing_order(
    connections: list[Connection], measure: Callable[[Connection], int]
) -> list[ClosingCandidate]:
    """Connections in the order in which they close: always one of the client that has most then.
    So that of a client with a single one comes last. `measure` says what a connection has."""
    client_has: Counter[str] = Counter()
    candidates = []
    by_progress = sorted(connections, key=lambda each: each.last_progress)
    for connection in reversed(by_progress):
        client_has[connection.network] += measure(connection)
        candidates.append(ClosingCandidate(connection, client_has[connection.network]))
    candidates.sort(key=lambda each: (-each.client_has, each.connection.last_progress))
    return candidates


# Requests that wait for a thread


@dataclass
class QueuedRequest:
    """A request that waits until a thread has time to respond to it."""

    network: str  # of its client
    connection: Any  # one of waitress itself, where it runs its own event loop
    since: float  # by `time.monotonic`


class FairQueue:
    """Requests that wait. Clients take turns, each with one request."""

    def __init__(self) -> None:
        # First comes the client whose turn is next.
        self.by_network: dict[str, deque[QueuedRequest]] = {}
        self.size = 0

    def add(self, queued: QueuedRequest) -> None:
        self.by_network.setdefault(queued.network, deque()).append(queued)
        self.size += 1

    def take(self, but: Collection[str] = ()) -> QueuedRequest | None:
        """What waits longest of the next client that is not among `but`."""
        network = next((each for each in self.by_network if each not in but), None)
        if network is None:
            return None
        own = self.by_network.pop(network)
        queued = own.popleft()
        self.size -= 1
        if own:
            self.by_network[network] = own  # now the last one
        return queued


class Overloaded:
    """The error of a request that waited too long. A waitress that this program does not know asks
    it for a response."""

    code = 503

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        response = refusal(REFUSALS[self.code])
        headers = {"Content-Type": response.content_type, **response.headers}
        return "503 Service Unavailable", [*headers.items()], response.body


# Worker threads


class Lane:
    """Requests that wait for a thread, and the threads, which start when they are needed. One
    client never has all of them, so that the others need not wait for it."""

    def __init__(
        self,
        most_threads: int,
        most_of_one: int,
        calm: threading.Event,
        queue_seconds: float = math.inf,
    ) -> None:
        """`most_of_one`: how many threads one client has at most. `calm`: see `Workers`. After
        `queue_seconds` in the queue, a request is refused."""
        self.most_threads = most_threads
        self.most_of_one = most_of_one
        self.calm = calm
        self.queue_seconds = queue_seconds
        self.changed = threading.Condition()
        self.threads: list[threading.Thread] = []
        self.idle = 0
        self.is_closed = False
        self.queue = FairQueue()
        self.at_work: Counter[str] = Counter()  # how many threads a client has, by network

    def add(self, queued: QueuedRequest) -> None:
        with self.changed:
            self.queue.add(queued)
            if self.queue.size > self.idle and len(self.threads) < self.most_threads:
                thread = threading.Thread(target=self.work, daemon=True)
                thread.start()
                self.threads.append(thread)
            else:
                self.changed.notify()

    def work(self) -> None:
        """What each thread does."""
        while queued := self.next():
            is_late = time.monotonic() - queued.since > self.queue_seconds
            if is_late and queued.connection.requests:
                queued.connection.requests[0].error = Overloaded()
            self.calm.wait(CROWD_SECONDS)
            try:
                queued.connection.service()
            except Exception:
                log.exception("a response failed")
            BLOG_IN_LOG.set("")
            with self.changed:
                self.at_work[queued.network] -= 1
                if not self.at_work[queued.network]:
                    del self.at_work[queued.network]

    def next(self) -> QueuedRequest | None:
        """Waits for a request of the client whose turn it is; None when the lane is closed."""
        with self.changed:
            while (queued := self.queue.take(self.busy_clients())) is None:
                if self.is_closed:
                    return None
                self.idle += 1
                self.changed.wait()
                self.idle -= 1
            self.at_work[queued.network] += 1
            return queued

    def busy_clients(self) -> list[str]:
        """Those that have as many threads as one client may have. "" stands for many clients."""
        return [each for each, count in self.at_work.items() if each and count >= self.most_of_one]

    def close(self, ends_at: float) -> None:
        """Waits until that time for the requests that are there."""
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()
        for thread in self.threads:
            thread.join(max(0, ends_at - time.monotonic()))


class Workers:
    """Threads that respond to requests, in place of those of waitress (its `task_dispatcher`)."""

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        # Set unless more arrives than one turn of the event loop can take. Then threads begin
        # nothing for a moment (`CROWD_SECONDS`), so that it has the interpreter lock alone.
        self.calm = threading.Event()
        self.calm.set()
        self.reading = Lane(READING_THREADS, READING_THREADS_OF_ONE, self.calm)
        self.waiting = Lane(WAITING_THREADS, WAITING_THREADS_OF_ONE, self.calm, QUEUE_SECONDS)

    def add(self, queued: QueuedRequest, pace: Pace) -> None:
        lane = self.waiting if pace is Pace.WAITING else self.reading
        lane.add(queued)

    def add_task(self, channel: Any) -> None:
        """What waitress calls where no event loop of ours chooses: nothing is known of the pace."""
        parsed = channel.requests[0]
        network = self.clients.of(environ_of(parsed, channel.addr[0])).network
        self.add(QueuedRequest(network, channel, time.monotonic()), likely_pace(parsed))

    def shutdown(self, timeout: float = 5) -> None:
        ends_at = time.monotonic() + timeout
        self.reading.close(ends_at)
        self.waiting.close(ends_at)


def likely_pace(parsed: ParsedRequest) -> Pace:
    """The pace of a request, as far as its method tells; `/health` tries to write."""
    if parsed.error:  # so there may be no method
        return Pace.LONG
    is_read = parsed.command in ("GET", "HEAD", "OPTIONS") and parsed.path != "/health"
    return Pace.LONG if is_read else Pace.WAITING


# Many writes in one transaction


class TransactionResult(NamedTuple):
    """What has become of a shared transaction."""

    has_begun: bool
    is_durable: bool  # it was committed
    connections: list[FastConnection]  # those whose responses wait for that


class SharedTransaction:
    """A transaction of SQLite for many writes to one blog, and the next one after it. The event
    loop runs the handlers, since threads in each other's way cost more than the writes themselves,
    and runs them together, since a COMMIT takes longer than all of them. It must not wait itself,
    so a thread does: that begins the transaction, lets the event loop run the handlers, and
    commits. Only then are the responses sent."""

    # What the two threads tell each other, in this order:
    # 1. event loop: `add` queues a request and sets `is_needed`
    # 2. thread: BEGIN, `may_run` = True, wake
    # 3. event loop: `run_handlers` sets `may_run` = False, runs the handlers, and puts into
    #    `handed_back` the connections whose responses wait for the COMMIT
    # 4. thread: COMMIT, puts into `results` whether that worked, wake
    # 5. event loop: `send_committed` sends the responses, or refusals in their place
    # If BEGIN fails, the thread goes on at 4. In 5, the requests that wait then go to workers.

    def __init__(self, store: Store, blog: str, wake: Callable[[], None]) -> None:
        """`blog`: its name in the log."""
        self.store = store
        self.blog = blog
        self.wake_event_loop = wake
        self.thread: threading.Thread | None = None  # which starts when it is needed
        self.is_closed = False
        self.waiting = FairQueue()  # requests that write; only the event loop uses it
        self.is_needed = threading.Event()  # set while some wait
        self.may_run = False  # a transaction is open, in which the event loop has to run handlers
        self.handed_back: queue.SimpleQueue[list[FastConnection]] = queue.SimpleQueue()
        self.results: queue.SimpleQueue[TransactionResult] = queue.SimpleQueue()

    def add(self, queued: QueuedRequest) -> None:
        if self.thread is None:
            thread = threading.Thread(target=self.work, daemon=True)
            thread.start()
            self.thread = thread
        self.waiting.add(queued)
        self.is_needed.set()

    def work(self) -> None:
        """What the thread does."""
        BLOG_IN_LOG.set(self.blog)
        while self.is_needed.wait() and not self.is_closed:
            result = self.transact()
            if not result.has_begun:
                self.is_needed.clear()  # those that wait are sent elsewhere
            self.results.put(result)
            self.wake_event_loop()

    def transact(self) -> TransactionResult:
        """One transaction, in which the event loop runs handlers."""
        has_begun = False
        connections: list[FastConnection] = []
        try:
            with self.store.transaction():
                has_begun = True
                self.may_run = True
                self.wake_event_loop()
                connections = self.handed_back.get()
            return TransactionResult(has_begun, True, connections)
        except Unavailable:  # which the store has logged
            pass
        except Exception:
            log.exception("a transaction failed")
        return TransactionResult(has_begun, False, connections)

    @property
    def has_news(self) -> bool:
        """Whether the event loop has to do something."""
        return self.may_run or not self.results.empty()

    def close(self, ends_at: float) -> None:
        self.is_closed = True
        self.is_needed.set()
        self.handed_back.put([])  # if it waits for the event loop, which does not turn any more
        if self.thread:
            self.thread.join(max(0, ends_at - time.monotonic()))


# The event loop

Event = tuple[selectors.SelectorKey, int]  # of a connection, and what it is: read or write


def in_turns(events: list[Event]) -> list[Event]:
    """Events in the order in which they are handled: a second one of a client after the first ones
    of all. A client with many leaves some to the next turn of the loop."""
    if len(events) <= EVENTS_OF_ONE:  # the usual case: the order makes no difference
        return events
    # The server and what wakes it have no activity and no client: they come first.
    events.sort(key=lambda event: getattr(event[0].data, "last_activity", 0))
    by_network = defaultdict(list)
    for event in events:
        network = getattr(event[0].data, "network", "the server itself")
        by_network[network].append(event)
    rounds = itertools.zip_longest(*(own[:EVENTS_OF_ONE] for own in by_network.values()))
    return [event for each_round in rounds for event in each_round if event]


@contextlib.contextmanager
def closing_on_failure(connection: FastConnection) -> Iterator[None]:
    """If its response fails, this connection ends. The event loop goes on with the others."""
    try:
        yield
    except Exception:
        log.exception("a response failed")
        connection.handle_close()
    finally:
        BLOG_IN_LOG.set("")


class EventLoop:
    """The one thread that reads and writes all sockets, what it serves, and what it remembers of
    connections. It runs all handlers that take a few milliseconds. The event loop of a waitress
    that this program does not know runs by itself; then this only guards its connections."""

    def __init__(self, server: Any, sites: Sites, known: Waitress) -> None:
        self.server = server
        self.known = known
        self.sites = sites
        self.clients = sites.first.clients
        self.wall_clock = sites.first.world.clock
        self.cache = ResponseCache(sites)
        self.workers = Workers(self.clients)
        self.shared = {
            app.site.store: SharedTransaction(app.site.store, sites.name_of(app), self.wake)
            for app in sites.apps
        }
        self.connections = Connections(server.adj)
        self.sweeper = Sweeper(server)
        self.thread = 0  # the one that turns this loop
        self.queue = FairQueue()  # of requests to which this thread will respond
        self.span_ends_at = 0.0
        # The CPU time that clients have used in this span, by network.
        self.seconds_of: defaultdict[str, float] = defaultdict(float)
        self.is_crowded = False  # whether more came than this turn takes
        self.selector = selectors.DefaultSelector()
        self.awaited: dict[int, int] = {}  # the events that the selector was asked for
        # Connections with a request or a response under way: each turn looks what they wait for.
        # All others, which are most, wait for their next request and cost nothing.
        self.in_motion: dict[FastConnection, None] = {}
        self.is_asleep = False  # or about to be, so that a worker has to wake this thread
        self.mark_silent = server.maintenance  # says which connections are to be closed
        server.task_dispatcher.set_thread_count(0)
        server.task_dispatcher = self.workers
        if known is Waitress.KNOWN:
            server.channel_class = functools.partial(FastConnection, self)
            server.handle_accept = self.accept_waiting
            server.maintenance = self.close_silent
            server.pull_trigger = self.wake
            self.await_event(server.trigger, selectors.EVENT_READ)
        elif known is Waitress.SIMILAR:
            server.channel_class = functools.partial(Connection, self)
            server.maintenance = self.guard
            server.adj.cleanup_interval = SWEEP_SECONDS  # how often waitress calls it

    # What waitress calls

    def guard(self, now: float) -> None:
        """Is called from time to time, where waitress runs its own event loop."""
        self.mark_silent(now)
        self.sweeper.sweep(now)

    def close_silent(self, now: float) -> None:
        """Is called from time to time. A connection that is marked closes in the next turn."""
        self.mark_silent(now)
        self.in_motion |= dict.fromkeys(self.server.active_channels.values())

    def wake(self) -> None:
        """Is called when a response is made, or not taken at once."""
        if self.is_asleep:
            self.server.trigger.pull_trigger()

    def accept_waiting(self) -> None:
        """Accepts some of the waiting connections. waitress accepts one a turn, which is slow."""
        server = self.server
        for _ in range(EVENTS_OF_ONE):
            if len(server._map) >= server.adj.connection_limit:
                return
            try:
                accepted = server.accept()
                if accepted is None:
                    return
                sock, peer = accepted
                server.set_socket_options(sock)
            except OSError:  # the client has left already
                continue
            peer = server.fix_addr(peer)
            connection = server.channel_class(server, sock, peer, server.adj, map=server._map)
            self.in_motion[connection] = None
        self.is_crowded = True

    # From start to end

    def run(self, stopping: threading.Event) -> None:
        """Serves until the event is set, and then completes the requests in flight."""
        if self.known is not Waitress.KNOWN:
            self.server.run()
            return
        sys.setswitchinterval(0.0005)  # worker threads give way to the event loop sooner
        try:
            self.turn_until(stopping)
            self.drain()
        finally:
            # If this thread fails, a transaction that stays open would keep the process from
            # ending, and so from being started again.
            self.end_threads()

    def turn_until(self, stopping: threading.Event) -> None:
        sweeps_at = time.monotonic()
        while not stopping.is_set():
            self.turn(1)
            is_full = len(self.server._map) >= self.server.adj.connection_limit
            if is_full or time.monotonic() >= sweeps_at:
                self.sweeper.sweep(self.wall_clock())
                sweeps_at = time.monotonic() + SWEEP_SECONDS

    def drain(self, seconds: float = 10) -> None:
        """Accepts no more connections, and responds to what was sent."""
        self.turn(0)  # the connections that wait are accepted first
        self.forget(self.server._fileno)
        self.server.accepting = False
        self.server.del_channel(self.server._map)
        self.server.socket.close()
        ends_at = time.monotonic() + seconds
        quiet_turns = 0
        # After a response, one more request may already have arrived on its connection.
        while quiet_turns < 3 and time.monotonic() < ends_at:
            self.turn(0.02)
            connections = self.server.active_channels.values()
            is_busy = any(each.is_busy or each.bytes_ahead for each in connections)
            quiet_turns = 0 if is_busy else quiet_turns + 1

    def end_threads(self) -> None:
        """Waits a moment for what they are at, and for its responses."""
        for shared in self.shared.values():
            shared.close(time.monotonic() + 1)
        self.send_committed()
        self.workers.shutdown(timeout=1)

    # One turn

    def turn(self, seconds: float) -> None:
        """One round of the event loop. It waits at most so long until there is something to do."""
        self.thread = threading.get_ident()
        # From now on, other threads wake this one. So it misses nothing that comes while it looks.
        self.is_asleep = True
        self.await_new_connections()
        for connection in [*self.in_motion]:
            self.go_on(connection)
        events = self.selector.select(0 if self.has_work else seconds)
        self.is_asleep = False
        handled = in_turns(events)
        self.is_crowded = len(handled) < len(events)
        # All that has arrived is read before anything is responded to.
        for event in handled:
            self.handle(event)
        self.send_committed()
        self.serve_queue()
        for shared in self.shared.values():
            if shared.may_run:
                self.run_handlers(shared)
        self.pace_workers()

    def await_new_connections(self) -> None:
        """Asks for them, unless there are as many as there may be."""
        if self.server.accepting:
            # In here, waitress also calls `close_silent` when it is time.
            may_accept = self.server.readable()
            self.await_event(self.server, selectors.EVENT_READ if may_accept else 0)

    def go_on(self, connection: FastConnection) -> None:
        """Begins a request that was sent ahead, and awaits what the connection needs to go on."""
        connection.begin_next()
        if connection._fileno is None:  # it is closed
            del self.in_motion[connection]
        elif connection.readable():
            del self.in_motion[connection]
            self.await_event(connection, selectors.EVENT_READ)
        elif connection.writable():
            self.await_event(connection, selectors.EVENT_WRITE)
        else:  # its response is being made
            self.await_event(connection, 0)

    @property
    def has_work(self) -> bool:
        """Whether there is something to do besides events."""
        return self.queue.size > 0 or any(shared.has_news for shared in self.shared.values())

    def handle(self, event: Event) -> None:
        """Lets waitress read, accept or send."""
        key, ready_for = event
        if key.data._fileno != key.fd:  # it was closed in this turn
            return
        if ready_for & selectors.EVENT_READ:
            self.server.asyncore.read(key.data)
        else:
            self.server.asyncore.write(key.data)

    def send_committed(self) -> None:
        """Responds to those whose handlers have run in transactions that are over now."""
        for shared in self.shared.values():
            while not shared.results.empty():
                self.end_transaction(shared, shared.results.get())

    def end_transaction(self, shared: SharedTransaction, result: TransactionResult) -> None:
        """Sends the responses, or refusals if nothing was saved."""
        for connection in result.connections:
            with closing_on_failure(connection):
                connection.send_or_refuse(is_durable=result.is_durable)
        if not result.has_begun:  # workers will say why
            while queued := shared.waiting.take():
                self.workers.add(queued, Pace.WAITING)

    def serve_queue(self) -> None:
        """Responds to what waits for this thread, as far as the time of a turn allows."""
        if not self.queue.size:
            return
        if time.monotonic() > self.span_ends_at:
            self.span_ends_at = time.monotonic() + SPAN_SECONDS
            self.seconds_of.clear()
        # Each client gets one response in a turn, so that new requests of others are read soon.
        most = self.queue.size if self.has_one_client else len(self.queue.by_network)
        for queued in self.taken_in_turn(self.queue, most):
            with closing_on_failure(queued.connection):
                self.serve(queued)

    def serve(self, queued: QueuedRequest) -> None:
        """Responds now, unless a worker has to, or a transaction is needed."""
        if self.has_used_its_time(queued.network):
            self.workers.add(queued, likely_pace(queued.connection.requests[0]))
            return
        try:
            queued.connection.service()
        except NeedsTransaction as needed:
            self.shared[needed.store].add(queued)
        except NeedsWorker as needed:
            self.workers.add(queued, needed.pace)

    def run_handlers(self, shared: SharedTransaction) -> None:
        """Runs handlers that write, in the transaction that is open for them, as far as the time of
        a turn allows. Then the thread may commit."""
        shared.may_run = False
        connections: list[FastConnection] = []
        try:
            with shared.store.in_shared_transaction():
                for queued in self.taken_in_turn(shared.waiting, shared.waiting.size):
                    with closing_on_failure(queued.connection):
                        if self.run_handler(queued):
                            connections.append(queued.connection)
        finally:
            if not shared.waiting.size:
                shared.is_needed.clear()
            shared.handed_back.put(connections)

    def run_handler(self, queued: QueuedRequest) -> bool:
        """False if a worker has to run it."""
        # While the transaction was not open, the same client may have queued many more.
        if self.has_used_its_time(queued.network):
            self.workers.add(queued, Pace.WAITING)
            return False
        try:
            queued.connection.call_app()
        except NeedsWorker as needed:
            self.workers.add(queued, needed.pace)
            return False
        return True

    def pace_workers(self) -> None:
        """Workers pause while there is more to read."""
        if self.is_crowded:
            self.workers.calm.clear()
        elif not self.workers.calm.is_set():
            self.workers.calm.set()

    # Events of connections

    def queue_request(self, connection: FastConnection) -> None:
        """Queues the request of a connection, which has arrived whole."""
        if not connection.connected:  # its client had too many
            return
        self.in_motion[connection] = None  # it reads no more until the response is made
        self.queue.add(QueuedRequest(connection.network, connection, time.monotonic()))

    def await_event(self, each: Any, event: int) -> None:
        """Asks the selector for an event of a connection or of the server. 0 for none."""
        descriptor = each._fileno
        before = self.awaited.get(descriptor, 0)
        if event == before:
            return
        self.awaited[descriptor] = event
        if not before:
            self.selector.register(descriptor, event, each)
        elif not event:
            self.selector.unregister(descriptor)
        else:
            self.selector.modify(descriptor, event, each)

    def forget(self, descriptor: int) -> None:
        """Forgets a connection that closes."""
        if self.awaited.pop(descriptor, 0):
            self.selector.unregister(descriptor)

    # The time of a turn, and of clients

    def taken_in_turn(self, waiting: FairQueue, most: int) -> Iterator[QueuedRequest]:
        """The next requests, while the turn has CPU time. What each takes counts for its client."""
        began_at = time.thread_time()
        turn_ends_at = began_at + TURN_SECONDS
        for _ in range(most):
            queued = waiting.take() if began_at <= turn_ends_at else None
            if queued is None:
                return
            yield queued
            ended_at = time.thread_time()
            self.seconds_of[queued.network] += ended_at - began_at
            began_at = ended_at

    @property
    def has_one_client(self) -> bool:
        return len(self.connections.by_network) == 1

    def has_used_its_time(self, network: str) -> bool:
        """Whether a client leaves this thread to the others, until the span ends."""
        if not network or self.has_one_client:  # "" stands for many clients
            return False
        return self.seconds_of[network] > SPAN_SECONDS_OF_ONE


# Start and stop


def refuse_if_taken(path: str) -> None:
    """`OSError` if a program listens on this socket file, which waitress would replace."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            probe.connect(path)
            raise OSError("Address already in use")


WAITRESS_SETTINGS: Json = {
    "threads": 1,  # `Workers` takes its place
    "asyncore_use_poll": True,
    "channel_request_lookahead": 0,  # CVE-2024-49768
    "outbuf_high_watermark": 1 << 40,  # never reached: no thread waits for a slow client
    "max_request_header_size": 16 * 1024,
    "max_request_body_size": 2 * BODY_LIMIT,
    "clear_untrusted_proxy_headers": False,  # `Clients` reads them
    "ident": None,
}


def listening_waitress(app: Callable[..., Any], sites: Sites) -> Any:
    """A server of waitress that listens. `OSError` if it cannot."""
    listen = sites.first.config.server_listen
    # The others are for the databases (three a thread) and for responses on the disk.
    others = 400 + 80 * (len(sites.apps) - 1)
    limit = max(64, min(CONNECTIONS, os.sysconf("SC_OPEN_MAX") - others))
    settings = {**WAITRESS_SETTINGS, "connection_limit": limit}
    try:
        if listen.startswith("unix:"):
            # What listens replaces a file of that name, and would replace a symbolic link to it.
            path = os.path.realpath(listen.removeprefix("unix:"))
            refuse_if_taken(path)
            settings |= {"unix_socket": path, "unix_socket_perms": "660"}
        else:
            place = host_and_port(listen)
            family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
            settings["sockets"] = [socket.create_server(place, family=family, backlog=1024)]
        return waitress.create_server(app, **settings)
    except OSError as error:
        cause = os.strerror(error.errno) if error.errno else error
        raise OSError(f"can't listen on {listen} ({cause}): change [server] listen") from None


def make_event_loop(app: Callable[..., Any], sites: Sites, known: Waitress) -> EventLoop:
    """What serves the app. It listens already. `OSError` if it cannot."""
    return EventLoop(listening_waitress(app, sites), sites, known)


@contextlib.contextmanager
def stopping_on_signals(loop: EventLoop) -> Iterator[threading.Event]:
    """An event that SIGTERM or Ctrl-C sets."""
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()
        if loop.known is not Waitress.KNOWN:
            raise SystemExit  # ends the loop of waitress
        loop.server.trigger.pull_trigger()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    with contextlib.suppress(SystemExit):
        yield stopping


# -- Demo ---------------------------------------------------------------------

# A blog that is made up, with comments and a mailbox, to try commentd. It has a
# database of its own, which is deleted at the end, and no settings. A service that runs for real
# loads nothing of this.

DEMO_HOST = "127.0.0.1"
# Not that of a service: browsers keep drafts and logins by the port, too.
DEMO_PORT = 8088
DEMO_OWNER = "owner@blog.example"
# The word that the moderation of the demo looks for.
DEMO_WORDS = ("casino", "博彩")


def free_place() -> str:
    """Where the demo can listen: at its own port or, if that is taken, at another one."""
    try:
        found = socket.create_server((DEMO_HOST, DEMO_PORT))
    except OSError:
        found = socket.create_server((DEMO_HOST, 0))
    with found:
        return f"{DEMO_HOST}:{found.getsockname()[1]}"


# What it tells


@dataclass(frozen=True, kw_only=True)
class DemoPost:
    """A post of the blog. `text` is Markdown."""

    path: str
    title: str
    text: str
    days_ago: int
    views: int
    likes: int

    def html(self) -> str:
        return str(mistune.html(self.text))


@dataclass(frozen=True, kw_only=True)
class DemoComment:
    """A comment on a post. Without a nickname, it is the owner's. `id`: a name for replies."""

    post: str
    text: str
    hours_ago: float
    id: str = ""
    reply_to: str = ""
    nickname: str = ""
    website: str = ""
    ip: str = ""
    likes: int = 0
    pinned: bool = False
    status: str = "visible"


@dataclass(frozen=True, kw_only=True)
class DemoStory:
    """All that the demo tells in a language: a file in `static/demo/`. `texts`: what its pages say.
    `views`: those of the last days, today first."""

    language: str
    tag: str  # of the language, as browsers know it
    name: str  # of the blog
    about: str
    owner: str
    texts: Mapping[str, str]
    views: list[int]
    posts: list[DemoPost]  # the newest first
    comments: list[DemoComment]  # the oldest first


def demo_folder() -> Path:
    return static_folder() / "demo"


def read_story(language: str) -> DemoStory:
    """The story in Chinese for `zh` and its variants, else in English."""
    import tomllib  # here, as only the demo needs it

    name = "zh" if language.startswith("zh") else "en"
    told = tomllib.loads((demo_folder() / f"{name}.toml").read_text("utf-8"))
    posts = [DemoPost(**post) for post in told.pop("posts")]
    comments = [DemoComment(**comment) for comment in told.pop("comments")]
    comments.sort(key=lambda comment: -comment.hours_ago)
    return DemoStory(posts=posts, comments=comments, **told)


# The mailbox


@dataclass(frozen=True)
class CaughtEmail:
    """An email that the demo would have sent."""

    number: int
    recipient: str
    subject: str
    text: str
    sent_at: datetime

    @property
    def pieces(self) -> list[str]:
        """The text, in which each second piece is a URL."""
        return re.split(r"(https?://[^\s<>()]*[^\s<>().,;:])", self.text)


# The demo


class Demo:
    """The made-up blog while it is served. `app` is its comment service, which has the pages of the
    blog besides its own."""

    def __init__(self, folder: Path, place: str, language: str) -> None:
        """`folder`: of its own, for the database. `place`: the host and the port."""
        self.story = read_story(language)
        self.emails: list[CaughtEmail] = []  # the oldest first
        world = World(send_email=self.catch_email, try_login=lambda server: None)
        app = make_app(demo_config(folder, place, self.story), world)
        site = replace(app.site, assets={**app.site.assets, **demo_assets()})
        self.app = App(site, mounted([*ROUTES, *self.routes()]))

    def catch_email(self, recipient: str, message: str, server: MailServer | None) -> None:
        """Keeps an email, in place of a mail server."""
        email = message_from_string(message, policy=SMTP_POLICY)
        text = plain_part(email)
        sent_at = time_of(self.app.site.now(), None)
        number = len(self.emails) + 1
        self.emails.append(CaughtEmail(number, recipient, email["Subject"], text, sent_at))

    # What is there from the start

    def fill(self) -> None:
        """Writes the comments of the story, as if they had come in the last days."""
        site = self.app.site
        store = site.store
        now = site.now()
        with store.writing():
            owner = store.make_admin(DEMO_OWNER, self.story.owner, "", now)
            store.set_language(owner.id, self.story.language)
            for days_ago, views in enumerate(self.story.views):
                store.add_to_day(now - days_ago * DAY, views=views)
            pages = {post.path: self.add_page(post) for post in self.story.posts}
            ids: dict[str, int] = {}
            for told in self.story.comments:
                parent_id = ids[told.reply_to] if told.reply_to else None
                new = self.comment_of(told, pages[told.post], parent_id, owner)
                ids[told.id] = self.add_comment(new, told)

    def add_page(self, post: DemoPost) -> Page:
        store = self.app.site.store
        now = self.app.site.now()
        name = page_name(post.path, self.app.site.config.site_origins)
        page = store.add_page(name.key, name.page_url, now, now - post.days_ago * DAY)
        store.raise_page(page.id, 0, post.views, post.likes)
        store.set_title(page.id, post.title, "owner")
        return page

    def comment_of(
        self, told: DemoComment, page: Page, parent_id: int | None, owner: Account
    ) -> FullComment:
        country, location = self.app.site.places.of(told.ip)
        content = told.text.strip()
        return FullComment(
            created_at=self.app.site.now() - int(told.hours_ago * HOUR),
            page_id=page.id,
            parent_id=parent_id,
            user_id=None if told.nickname else owner.id,
            nickname=told.nickname or owner.nickname,
            website=told.website,
            content=content,
            html=safe_html(content),
            ip=told.ip,
            country=country,
            location=location,
            pinned=int(told.pinned),
            language=language_of("", content),
        )

    def add_comment(self, new: FullComment, told: DemoComment) -> int:
        """Writes a comment. The spam filter learns what became of it. Of one that waits, the owner
        gets an email, as usual."""
        site = self.app.site
        if told.status == "waiting":
            new.held = moderate_text(site, new, "").held
        comment = site.store.insert_comment(new, told.status, site.now())
        site.store.add_past_likes("comment", comment.id, told.likes)
        teach(site, comment, told.status)
        if told.status == "waiting":
            site.store.notify_owner(comment.id, site.now())
        return comment.id

    # Its pages

    def routes(self) -> Iterator[Route]:
        yield demo_route("GET", "/", self.blog_page)
        for post in self.story.posts:
            yield demo_route("GET", post.path, functools.partial(self.post_page, post))
        yield demo_route("GET", "/admin", self.admin_page)
        yield demo_route("GET", "/demo/mailbox", self.mailbox_page)
        yield demo_route("GET", "/demo/admin", self.door_page)
        yield demo_route("POST", "/demo/admin", enter_by_link, Pace.WAITING)
        yield demo_route("GET", "/demo/<name>", get_demo_asset)

    def blog_page(self, request: Request) -> Response:
        return self.page(request, "blog.html", posts=self.story.posts)

    def post_page(self, post: DemoPost, request: Request) -> Response:
        return self.page(request, "post.html", post=post)

    def admin_page(self, request: Request) -> Response:
        """That of every service. It says, too, that all is made up."""
        response = response_of(admin_page(request))
        texts = self.story.texts
        notice = escaped_value(texts["demo"] + texts["colon"] + texts["made_up"])
        body = response.body.replace(b"<html", f'<html data-demo="{notice}"'.encode(), 1)
        style = b'<link rel="stylesheet" href="/demo/notice.css">'
        return replace(response, body=body.replace(b"</head>", style + b"</head>", 1))

    def mailbox_page(self, request: Request) -> Response:
        return self.page(request, "mailbox.html", emails=[*reversed(self.emails)])

    def door_page(self, request: Request) -> Response:
        """Where the link to the admin page leads first."""
        return self.page(request, "door.html")

    def page(self, request: Request, template: str, **variables: Any) -> Response:
        site = request.site
        text = template_in(demo_folder() / template).render(
            story=self.story,
            texts=self.story.texts,
            version=short_hash(site.key, "demo"),
            url=site.config.server_public_url,
            day_of=lambda post: time_of(request.now - post.days_ago * DAY, None),
            **variables,
        )
        return html_response(site, text)


def demo_config(folder: Path, place: str, story: DemoStory) -> Config:
    """Settings under which all can be tried: the mail server takes all emails, and comments with a
    link wait."""
    url = f"http://{place}"
    return Config(
        server_listen=place,
        server_public_url=url,
        database_path=str(folder / "commentd.db"),
        site_origins=(url,),
        site_name=f"{story.name} · {story.texts['demo']}",  # emails show it
        mail_host="localhost",
        mail_sender="comments@blog.example",
        moderation_hold="links",
        moderation_words=DEMO_WORDS,
        backup_every=0,
    )


def demo_assets() -> dict[str, Asset]:
    """The scripts and the style of its pages, by name."""
    assets = {}
    for path in demo_folder().iterdir():
        if path.suffix in MIME:
            palette = style_in("palette.css").encode() if path.name == "demo.css" else b""
            assets[f"demo/{path.name}"] = Asset([palette + path.read_bytes()], MIME[path.suffix])
    return assets


def get_demo_asset(request: Request, name: str) -> Response:
    return asset_response(request, f"demo/{name}")


def demo_route(method: str, path: str, handler: Handler, pace: Pace = Pace.QUICK) -> Route:
    return Route(
        method=method,
        path=path,
        permission=Permission.PUBLIC,
        handler=handler,
        one_refusal="",
        by_link=False,
        public=False,
        pace=pace,
    )


def enter_by_link(request: Request) -> Json:
    """`{link}` to `{token, nickname, email}`: what /admin/claim does, without a password."""
    with request.writing():
        email_address = email_of_link(request)
        account = request.site.store.make_admin(email_address, "", "", request.now)
        audit(request, "claim", by=account)
        return begin_admin_session(request, account)


# -- Commands -----------------------------------------------------------------

# What the command line says


@dataclass(kw_only=True)
class Arguments:
    """The command line, and the settings that it names. A command with more words and options has a
    class of its own beside it, with their defaults."""

    command: str
    config_file: Path | None = None  # that of --config
    named: Strings = ()  # the settings files and folders after the command
    blogs: list[BlogSettings] = field(default_factory=list)  # read when all else is known

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        """Declares the words and options of the command."""

    @property
    def needs_settings(self) -> bool:
        """Whether the command reads them. If not, it also runs where they are wrong."""
        return True

    @property
    def config(self) -> Config:
        """The settings of the first blog, which is the only one for all commands but a few."""
        return self.blogs[0].config

    @property
    def settings_file(self) -> Path | None:
        """The settings file of the first blog."""
        return self.blogs[0].file


def add_settings_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("named", metavar="FILES", nargs="*")


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would happen, change nothing"
    )


def email_argument(text: str) -> str:
    """An email address on the command line."""
    try:
        return proper_email(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text}: {error}") from None


def tell(text: str, output: TextIO | None = None) -> None:
    """Prints a text in the language of the terminal."""
    print(translated(text, terminal_language(os.environ)), file=output)


@contextlib.contextmanager
def command_store(
    config: Config, *, is_new: bool = False, dry_run: bool = False
) -> Iterator[Store]:
    """The store for a command; for a dry run, of a copy that is deleted. Unless it `is_new`, the
    service may be running on the same file."""
    path = config.database
    with contextlib.ExitStack() as resources:
        if dry_run:
            folder = resources.enter_context(tempfile.TemporaryDirectory())
            copied = Path(folder) / path.name
            if size_of(path):
                with read_only(path) as db:
                    copy_database(db, copied)
            path = copied
        store = Store(path, zone=config.site_timezone, as_command=not is_new)
        yield resources.enter_context(contextlib.closing(store))


def new_admin_link(store: Store, world: World, email_address: str) -> str:
    """The secret of a one-time link. Within an hour it makes an admin of that email address or,
    with "" and while there is no admin, of any."""
    link = world.random_bytes(16).hex()
    with store.writing():
        store.add_admin_link(link, email_address, world.now() + HOUR)
    return link


# Serving


class ServeArguments(Arguments):
    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        add_settings_files(parser)


def serve_command(arguments: ServeArguments) -> int:
    """Serves one blog, or several."""
    with contextlib.ExitStack() as resources:
        clients = Clients(arguments.config.server_trusted_proxy)
        apps = [
            resources.enter_context(contextlib.closing(make_app(blog.config, clients=clients)))
            for blog in arguments.blogs
        ]
        serve_until_stopped(Sites(apps), greet_owners)
    log.info("stopped; every acknowledged write is saved")
    return 0


def serve_until_stopped(sites: Sites, greet: Callable[[Sites, str], None]) -> None:
    """Serves until SIGTERM or Ctrl-C. When it listens, `greet` is called with the URL, or with the
    path of the socket file."""
    config = sites.first.config
    loop = make_event_loop(sites, sites, waitress_to_use(config))
    # Garbage collection would look through all loaded modules, and stop everything for 10 ms.
    gc.freeze()
    with stopping_on_signals(loop) as stopping:
        listen = config.server_listen
        if not config.listens_on_file:
            listen = f"http://{listen.rpartition(':')[0]}:{loop.server.effective_port}"
        greet(sites, listen)
        with regular_work(sites, stopping):
            loop.run(stopping)


def waitress_to_use(config: Config) -> Waitress:
    """What is used of the inside of waitress. The log says so if it is not all."""
    known = installed_waitress()
    if known is Waitress.KNOWN:
        return Waitress.KNOWN if config.server_fast else Waitress.SIMILAR
    log.warning(
        "this waitress is not the version that commentd was written for: it serves as with "
        "[server] fast = no%s, until there is a commentd that knows it",
        "" if known is Waitress.SIMILAR else ", and leaves slow clients to a proxy",
    )
    return known


def log_findings(app: App) -> None:
    for finding in check_service(app.site):
        if finding.level >= Level.WARN:
            log.warning("%s: %s", finding.topic, finding.text)


def greet_owners(sites: Sites, listen: str) -> None:
    """Logs what is wrong with the blogs, and prints where they are."""
    for app in sites.apps:
        with logging_about(sites.name_of(app)):
            log_findings(app)
    for app in sites.apps:
        note_version(app.site)
        greet(app, listen)


def note_version(site: Site) -> None:
    """Stores which version serves the blog, for `update --check`."""
    # With a full disk, the service still shows comments.
    with contextlib.suppress(Unavailable), site.store.writing():
        site.store.note_version(__version__, site.now())


def greet(app: App, listen: str) -> None:
    """Prints where a blog is served and what the owner can do next."""
    site = app.site
    config = site.config
    store = site.store
    url = config.server_public_url or reached_at(listen)
    lines = [f"commentd {__version__} serves {config.database_path} on {listen}"]
    if not config.server_public_url or config.site_demo:
        lines.append(f"Try it: {url}/")
    if store.admins():
        lines.append(f"Moderate: {url}/admin")
    else:
        link = new_admin_link(store, site.world, "")
        lines.append(f"Become admin: {url}/admin#link={link} (works once, within an hour)")
    if not site.mailer.delivers and config.server_public_url:
        effect = "emails are printed here, so readers can't register"
        lines.append(f"No mail server ([mail] host or provider): {effect}")
    elif not site.mailer.delivers:
        lines.append("No mail server ([mail] host or provider): emails are printed here")
    language = terminal_language(os.environ)
    print("\n  ".join(translated(line, language) for line in lines), flush=True)


# A demo


class DemoArguments(Arguments):
    @property
    def needs_settings(self) -> bool:
        return False


def demo_command(arguments: DemoArguments) -> int:
    """Serves a made-up blog, and deletes it at the end."""
    # Also where these come before it serves, or when the terminal is closed, nothing is left.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    language = terminal_language(os.environ)
    with contextlib.ExitStack() as resources:
        folder = resources.enter_context(tempfile.TemporaryDirectory(prefix="commentd-demo-"))
        demo = Demo(Path(folder), free_place(), language)
        resources.enter_context(contextlib.closing(demo.app))
        demo.fill()
        serve_until_stopped(Sites([demo.app]), greet_visitor)
    tell("The demo has ended, and all of it is deleted.")
    return 0


def greet_visitor(sites: Sites, url: str) -> None:
    """Prints where the demo is."""
    link = new_admin_link(sites.first.store, sites.first.world, DEMO_OWNER)
    tell("commentd demo: a made-up blog, on this machine alone. Ctrl-C ends it and deletes all.")
    print()
    tell(f"  The blog:        {url}/")
    tell(f"  The admin page:  {url}/demo/admin#link={link} (signs you in, once)")
    tell(f"  The mailbox:     {url}/demo/mailbox (all emails come here, and leave nowhere)")
    if "SSH_CONNECTION" in os.environ:
        port = url.rpartition(":")[2]
        print()
        tell(f"To open them, run this on your own machine: ssh -L {port}:127.0.0.1:{port} SERVER")
    sys.stdout.flush()


# Looking what is wrong


@dataclass(kw_only=True)
class CheckArguments(Arguments):
    mail: str = ""
    messages: bool = False
    verbose: bool = False

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        add_settings_files(parser)
        parser.add_argument(
            "--mail", type=email_argument, metavar="EMAIL", help="send a test email there"
        )
        parser.add_argument(
            "--messages",
            action="store_true",
            help="send a test message in each way in which you hear of comments",
        )
        parser.add_argument(
            "-v", "--verbose", action="store_true", help="show all settings, also the defaults"
        )


def check_command(arguments: CheckArguments) -> int:
    """Prints what is found of each blog; 1 if something does not work."""
    works = True
    for blog in arguments.blogs:
        if len(arguments.blogs) > 1:
            print(f"\n{blog.file}\n")
        messages = TrialMessages(arguments.mail, arguments.messages)
        findings = [*check_all(blog.config, World(), messages)]
        if not blog.file:
            missing = f"no commentd.ini in {Path.cwd()} (is this its folder?)"
            text = f"{missing}: defaults and the environment are used"
            findings.append(Finding(Level.NOTE, "settings", text))
        print_findings(findings)
        print_settings(blog, everything=arguments.verbose)
        works = works and all(finding.level < Level.FAIL for finding in findings)
    return 0 if works else 1


def print_findings(findings: list[Finding]) -> None:
    """Prints the findings, the worst first."""
    language = terminal_language(os.environ)
    counts = Counter(finding.level for finding in findings)
    total = f"Errors: {counts[Level.FAIL]}, warnings: {counts[Level.WARN]}."
    print(f"commentd {__version__}. {translated(total, language)}\n")
    for finding in sorted(findings, key=lambda each: each.level, reverse=True):
        print(f"  {finding.level.word:5} {finding.topic:14} {translated(finding.text, language)}")
        if finding.hint:
            print(f"{'':23}-> {translated(finding.hint, language)}")


def print_settings(blog: BlogSettings, *, everything: bool) -> None:
    """The settings with their sources: all, or those that are set."""
    language = terminal_language(os.environ)
    entries = [*file_entries(blog.file), *environment_entries(os.environ)]
    sources = {entry.name: str(entry.file or entry.spelling) for entry in entries}
    title = "All settings:" if everything else "What is set (all settings: -v):"
    print(f"\n{translated(title, language)}\n")
    for each in settings_in_effect(blog.config, language):
        name = f"{each.section}_{each.key}"
        if name in sources or everything:
            source = translated(sources.get(name, "default"), language)
            print(f"  {name_in_file(name):27} {each.text:35} {source}")


# Looking whether an update is in use

# The exit code of `update --check` where the service must be restarted.
RESTART_DUE = 3


@dataclass(kw_only=True)
class UpdateArguments(Arguments):
    is_check: bool = True  # there is nothing else that it can do

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        add_settings_files(parser)
        parser.add_argument(
            "--check",
            dest="is_check",
            action="store_true",
            required=True,
            help="say whether the service runs the version that is installed",
        )


def update_command(arguments: UpdateArguments) -> int:
    """Compares the version of this program with those that serve the blogs. Nothing is asked of any
    network."""
    is_due = False
    for blog in arguments.blogs:
        is_due = tell_version(blog.config.database) or is_due
    return RESTART_DUE if is_due else 0


def tell_version(path: Path) -> bool:
    """Prints which version serves a database. Returns whether another one is installed."""
    if not is_running(path):
        tell(f"commentd {__version__} is installed, and no service runs on {path}")
        return False
    version = version_that_serves(path) or "(unknown)"
    if version == __version__:
        tell(f"commentd {__version__} is installed, and serves {path}")
        return False
    process = process_that_serves(path)
    if version_numbers(version) > version_numbers(__version__):
        tell(f"commentd {version} serves {path}; an older one is installed: {__version__}")
        tell("Before you restart it, read the way back: commentd help backup")
    else:
        tell(f"commentd {version} serves {path}; a newer one is installed: {__version__}")
        tell(how_to_restart(process))
    return True


def how_to_restart(process: int) -> str:
    """What the owner does next to have a process replaced by one of the installed program."""
    if process == 1:
        return "To use it, restart the container."
    with contextlib.suppress(OSError):
        groups = Path(f"/proc/{process}/cgroup").read_text()
        # `0::/system.slice/commentd.service`; a unit of a user's own stands in another one:
        # `0::/user.slice/user-1000.slice/user@1000.service/app.slice/commentd.service`
        if unit := re.search(r"[^/]*commentd[^/]*\.service$", groups, re.M):
            whose = " --user" if "/user@" in groups else ""
            return f"To use it: systemctl{whose} restart {unit[0]}"
    return "To use it, stop the service and start it again."


# Backups, admins and counters


def progress_line(done: str) -> Progress:
    """A line that counts up, if there is a terminal."""

    def show(left: int, total: int) -> None:
        if sys.stderr.isatty():
            end = "" if left else "\n"
            print(f"\r{100 * (total - left) // max(1, total)} % {done}", end=end, file=sys.stderr)

    return show


@dataclass(kw_only=True)
class BackupArguments(Arguments):
    target: str = ""

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("target", metavar="FILE", nargs="?")


def backup_command(arguments: BackupArguments) -> int:
    config = arguments.config
    path = config.database
    now = World().clock()
    show = progress_line("copied")
    if not path.exists():
        raise OperatorError(f"{path.absolute()}: there is no such database")
    check_database_file(path)
    target = Path(arguments.target or config.backup_folder)
    if not arguments.target or target.is_dir():
        target = back_up(path, target, now, progress=show)
    elif target.exists():
        raise OperatorError(f"{target} is there already: name another file")
    else:
        back_up_to(path, target, progress=show)
    tell(f"Backup written to {target} ({size_of(target) / MEGA:.1f} MB, verified)")
    return 0


@dataclass(kw_only=True)
class RestoreArguments(Arguments):
    backup: str

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("backup", metavar="FILE")


def restore_command(arguments: RestoreArguments) -> int:
    now = World().now()
    replaced = restore(arguments.config.database, Path(arguments.backup), now)
    tell(f"Restored {arguments.backup}. All sessions were ended.")
    if replaced:
        tell(f"The old database is kept as {replaced}")
    return 0


@dataclass(kw_only=True)
class AdminArguments(Arguments):
    email_address: str

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("email_address", metavar="EMAIL", type=email_argument)


def admin_command(arguments: AdminArguments) -> int:
    config = arguments.config
    email_address = arguments.email_address
    with command_store(config) as store:
        link = new_admin_link(store, World(), email_address)
    tell(f"Open this link within an hour to make {email_address} an admin and set a password:")
    print(f"\n  {config.service_url}/admin#link={link}\n")
    tell("It works once.")
    return 0


def recount_command(arguments: Arguments) -> int:
    config = arguments.config
    corrected = 0
    with command_store(config) as store:
        # Counting takes seconds in a large file: authors wait for it only if it is needed.
        if store.count_wrong_counters():
            with store.writing():
                corrected = store.fix_counters()
    tell(f"{corrected} counters corrected" if corrected else "all counters were correct")
    return 0


# Comments from elsewhere, to elsewhere, and on other pages


@dataclass(kw_only=True)
class ImportArguments(Arguments):
    source: str
    dry_run: bool = False
    product: str = ""
    host: str = ""
    zone: tzinfo | None = None

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("source", metavar="FILE")
        add_dry_run(parser)
        parser.add_argument(
            "--format",
            dest="product",
            choices=PRODUCTS,
            metavar="PRODUCT",
            help=f"product that wrote the file: {', '.join(PRODUCTS)}",
        )
        parser.add_argument("--host", metavar="NAME", help="import only the pages of this site")
        parser.add_argument(
            "--zone", type=time_zone, metavar="+08:00", help="time zone of times that have none"
        )


def import_command(arguments: ImportArguments) -> int:
    config = arguments.config
    language = terminal_language(os.environ)
    staging = staged_file(arguments)
    arrangement = Arrangement(staging)
    arrangement.arrange(arguments.host, config.site_origins)
    is_new = is_empty(config.database)
    with command_store(config, is_new=is_new, dry_run=arguments.dry_run) as store:
        adding = Adding(store, arrangement)
        adding.add_all(progress_line(translated("imported", language)))
    print(staging.report.text(language))
    if is_new:  # the owner may run the import in the wrong folder
        reason = f" (there is no commentd.ini in {Path.cwd()})"
        note = f"the database is a new one: {config.database}"
        tell(note if arguments.settings_file else f"{note}{reason}")
    if arguments.dry_run:
        tell("this was a dry run: nothing is written")
    return 0


def staged_file(arguments: ImportArguments) -> Staging:
    """What is in the file, and the report on it."""
    config = arguments.config
    source = Path(arguments.source)
    if not source.is_file():
        raise OperatorError(f"{source}: there is no such file")
    with contextlib.closing(places_of(config)) as places, unpacked(source) as (plain, fault):
        product_name = arguments.product or product_of(plain)
        zone = arguments.zone or time_zone(PRODUCTS[product_name].zone or "Z")
        report = ImportReport(product_name, zone)
        if fault:
            report.note("the file breaks off: what follows is not in it", fault)
        place_of = places.of if config.privacy_show_location else None
        staging = Staging(report, place_of, config.blog_name, World().now())
        show = progress_line(translated("read", terminal_language(os.environ)))
        staging.read(plain, show)
    return staging


@dataclass(kw_only=True)
class ExportArguments(Arguments):
    format: str = "commentd"
    emails: bool = False

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("format", metavar="FORMAT", nargs="?")
        parser.add_argument(
            "--emails", action="store_true", help="include the email addresses of authors"
        )


def export_command(arguments: ExportArguments) -> int:
    config = arguments.config
    name = arguments.format
    if name not in EXPORTERS:
        raise SettingsError(f"exports are: {', '.join(EXPORTERS)}")
    exporter = EXPORTERS[name]
    language = terminal_language(os.environ)
    # Not straight to the output: while its reader stalls, the -wal could not be emptied.
    with tempfile.TemporaryFile() as exported:
        with command_store(config) as store:
            export = Export(store, config, arguments.emails)
            exported.writelines(part.encode() for part in exporter.write(export))
        exported.seek(0)
        shutil.copyfileobj(exported, sys.stdout.buffer)
        sys.stdout.flush()
    lost = translated(exporter.lost, language)
    if arguments.emails:
        tell(f"Not exported: {lost}", sys.stderr)
    else:
        tell(f"Not exported: {lost}, email addresses (--emails)", sys.stderr)
    return 0


@dataclass(kw_only=True)
class RenderArguments(Arguments):
    folder: str
    dry_run: bool = False
    service: str = ""
    style: str = "inline"

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("folder", metavar="FOLDER")
        add_dry_run(parser)
        parser.add_argument(
            "--from",
            dest="service",
            metavar="URL",
            help="ask the service at this URL instead of reading the database",
        )
        parser.add_argument(
            "--style",
            choices=("inline", "link"),
            help="inline, or link where the pages' policy allows no style in them",
        )


def render_command(arguments: RenderArguments) -> int:
    config = arguments.config
    folder = Path(arguments.folder)
    if not folder.is_dir():
        raise OperatorError(f"{folder}: there is no such folder")
    service = (arguments.service or config.service_url).rstrip("/")
    service_path = re.sub("^https?:", "", service)
    script_urls = (f"{service_path}/embed.js", f"{service_path}/loader.js")
    with contextlib.ExitStack() as resources:
        fragment_of = resources.enter_context(fragment_source(arguments))
        if not arguments.dry_run:
            waiting = f"commentd: another render writes into {folder}: waiting"
            note_wait = functools.partial(tell, waiting, sys.stderr)
            resources.enter_context(only_render_in(folder, note_wait))
            delete_parts(folder, World().clock())
        built = BuiltSite(folder, script_urls, arguments.style, fragment_of, arguments.dry_run)
        report = built.render()
    for line in report.skipped:
        print(line, file=sys.stderr)
    tell(f"pages rendered: {report.counts[Rendering.CHANGED]}")
    tell(f"pages unchanged: {report.counts[Rendering.UNCHANGED]}")
    tell(f"pages without a thread: {report.counts[Rendering.WITHOUT_SLOT]}")
    tell(f"pages skipped: {len(report.skipped)}")
    if arguments.dry_run:
        tell("this was a dry run: nothing is written")
    return 1 if report.skipped else 0


@contextlib.contextmanager
def fragment_source(arguments: RenderArguments) -> Iterator[Callable[[str], bytes]]:
    """What returns the response to `GET /fragment` with a query: that of the service at the URL of
    --from, or of this program on the database."""
    if arguments.service:
        yield functools.partial(fetched_fragment, arguments.service.rstrip("/"))
        return
    with command_store(arguments.config) as store:
        app = app_on(store, arguments.config, World())
        with contextlib.closing(app.site.places):
            yield functools.partial(own_fragment, app)


def own_fragment(app: App, query: str) -> bytes:
    """The response of this program to `GET /fragment`."""
    environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/fragment", "QUERY_STRING": query}
    return b"".join(app(environ, lambda *head: None))


def fetched_fragment(service: str, query: str) -> bytes:
    try:
        return World().fetch(f"{service}/fragment?{query}", most=8 * MEGA)[1]
    except OSError as error:
        raise EndOfRendering(f"{service}: {error}") from error


@dataclass(kw_only=True)
class MoveArguments(Arguments):
    old: str
    new: str
    dry_run: bool = False

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("old", metavar="OLD")
        parser.add_argument("new", metavar="NEW")
        add_dry_run(parser)


def move_command(arguments: MoveArguments) -> int:
    config = arguments.config
    if not (arguments.old and arguments.new):
        raise SettingsError("a URL is empty")
    with command_store(config, dry_run=arguments.dry_run) as store:
        lines = move_pages(store, arguments.old, arguments.new, config.site_origins)
    for line in lines:
        print(line)
    if not lines:
        tell("pages that moved: 0; the URLs of all pages are at /admin")
    elif arguments.dry_run:
        tell(f"pages that would move: {len(lines)}")
    else:
        tell(f"pages that moved: {len(lines)}")
    return 0


# The manual, and files for servers


@dataclass(kw_only=True)
class HelpArguments(Arguments):
    topic: str = ""

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("topic", metavar="TOPIC", nargs="?")

    @property
    def needs_settings(self) -> bool:
        return False


def help_command(arguments: HelpArguments) -> int:
    """Prints a topic of the manual, or the list of topics, in the language of the terminal."""
    groups = manual(terminal_language(os.environ))
    wanted = arguments.topic
    if not wanted:
        print(f"commentd help TOPIC\n\n{listed_topics(groups)}")
        return 0
    topic = topic_named(groups, wanted)
    if topic is None:
        tell(f"commentd: there is no topic {wanted}; the topics are:", sys.stderr)
        print(f"\n{listed_topics(groups)}", file=sys.stderr)
        return 2
    print(topic.text, end="")
    return 0


def listed_topics(groups: list[TopicGroup]) -> str:
    listed = []
    for group in groups:
        lines = [f"  {topic.name:12}{topic.title}" for topic in group.topics]
        listed.append("\n".join([group.title, *lines]))
    return "\n\n".join(listed)


@dataclass(kw_only=True)
class ExampleArguments(Arguments):
    example: str = ""  # "" for a sample commentd.ini

    @classmethod
    def declare(cls, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("example", metavar="KIND", nargs="?")
        add_settings_files(parser)

    @property
    def needs_settings(self) -> bool:
        return bool(self.example)


def example_language() -> str:
    """The language of the terminal. English where the file would not be UTF-8, as settings are
    read."""
    is_utf8 = str(sys.stdout.encoding).lower() == "utf-8"
    return terminal_language(os.environ) if is_utf8 else "en"


def is_chinese_example() -> bool:
    return example_language().startswith("zh")


def container_file(_arguments: ExampleArguments) -> str:
    return filled_template("Containerfile", chinese=is_chinese_example())


def compose_file(arguments: ExampleArguments) -> str:
    return filled_template(
        "compose.yaml",
        printed_by=f"commentd example {arguments.example}",
        chinese=is_chinese_example(),
        litestream=arguments.example == "compose-litestream",
    )


def own_command(file: Path | None = None) -> list[str]:
    """The command that starts this program again, with these settings."""
    program = os.path.abspath(sys.argv[0])
    command = [program]
    if not os.access(program, os.X_OK):
        command = [sys.executable, program]
    if file:
        command += ["--config", str(file.absolute())]
    return command


def example_again(arguments: ExampleArguments) -> str:
    """The command that prints this example, for a shell in any folder."""
    named = [*map(os.path.abspath, arguments.named)]
    command = own_command(None if named else arguments.settings_file)
    return shlex.join([*command, "example", arguments.example, *named])


def caddy_settings(arguments: ExampleArguments) -> str:
    config = arguments.config
    upstream = reached_at(config.server_listen)
    if config.listens_on_file:
        upstream = f"unix/{upstream.removeprefix('unix:')}"
    return proxy_settings(arguments, upstream)


def nginx_settings(arguments: ExampleArguments) -> str:
    upstream = reached_at(arguments.config.server_listen)
    if arguments.config.listens_on_file:
        upstream += ":"
    return proxy_settings(
        arguments,
        upstream,
        # Another process may have a file of its own.
        zone=f"commentd-{urls_of(arguments)[0].hostname}",
        http2_is_directive=nginx_version() >= (1, 25, 1),
    )


def urls_of(arguments: ExampleArguments) -> list[urllib.parse.SplitResult]:
    public_urls = [blog.config.server_public_url for blog in arguments.blogs]
    return [urllib.parse.urlsplit(url or "https://comments.example") for url in public_urls]


def proxy_settings(arguments: ExampleArguments, upstream: str, **more: object) -> str:
    """Whole servers, and blocks for what is below a path. `more`: what templates of this proxy have
    beside what all have."""
    proxy = arguments.example
    values = {
        "printed_by": example_again(arguments),
        "chinese": is_chinese_example(),
        "upstream": upstream,
        **more,
    }
    urls = urls_of(arguments)
    whole = [url for url in urls if not url.path]
    text = filled_template(f"{proxy}.conf", urls=whole, **values) if whole else ""
    for url in urls:
        if url.path:
            text += filled_template(f"{proxy}-prefix.conf", url=url, **values)
    return text


def nginx_version() -> tuple[int, ...]:
    """The version of the nginx on this machine; () if there is none. It is read from the program,
    which holds it as a text, since commentd starts no other programs."""
    program = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        return ()
    found = re.search(rb"nginx/(\d+)\.(\d+)\.(\d+)", Path(program).read_bytes())
    return tuple(map(int, found.groups())) if found else ()


# Units for systemd. A path is written as systemd reads it: what it replaces begins with `%`, and
# `%%` stands for a percent sign, also in a path that stands alone (systemd.exec).


def systemd_unit(arguments: ExampleArguments) -> str:
    """One process with the settings that are named."""
    files = [blog.file.absolute() for blog in arguments.blogs if blog.file]
    if not files:
        raise SettingsError("go to the folder of commentd.ini, or name it: --config FILE")
    command = own_command(arguments.config_file)
    if arguments.named:
        command = [*own_command(), "serve", *map(os.path.abspath, arguments.named)]
    folders = [*dict.fromkeys(str(file.parent) for file in files)]
    elsewhere = []
    for blog in arguments.blogs:
        for used in (blog.config.database.parent, blog.config.backup_folder):
            path = os.path.abspath(used)
            if not any(Path(path).is_relative_to(folder) for folder in folders):
                # "-": if it is missing, systemd starts the service, which logs what is wrong.
                elsewhere.append(f"-{path}")
    return filled_unit(
        arguments,
        folders=[*map(with_percent_signs, folders)],
        elsewhere=[*map(with_percent_signs, dict.fromkeys(elsewhere))],
        command=command,
    )


def systemd_template(arguments: ExampleArguments) -> str:
    """Many processes, one a blog. For `%i`, systemd puts the name of the blog."""
    return filled_unit(
        arguments, folders=["/srv/commentd/%i"], command=own_command(), is_template=True
    )


def filled_unit(
    arguments: ExampleArguments,
    *,
    folders: list[str],
    elsewhere: Iterable[str] = (),
    command: list[str],
    is_template: bool = False,
) -> str:
    """`folders`: those of the settings. `elsewhere`: what else may be written to."""
    # systemd.service: with a colon in front, `$` has no meaning.
    colon = ":" if "$" in "".join(command) else ""
    needed = [*folders, *command, sys.executable, sys.base_prefix]
    return filled_template(
        "commentd.service",
        printed_by=example_again(arguments),
        chinese=is_chinese_example(),
        is_template=is_template,
        folders=folders,
        writable=" ".join(map(unit_word, [*folders, *elsewhere])),
        command=colon + " ".join(map(unit_word, map(with_percent_signs, command))),
        in_home=any(re.match("/(home|root)/", path) for path in needed),
    )


def with_percent_signs(text: str) -> str:
    return text.replace("%", "%%")


def unit_word(word: str) -> str:
    """A word in a list, quoted where systemd.syntax asks for it."""
    literal = word.replace("\\", "\\\\").replace('"', '\\"')
    return literal if re.fullmatch(r"[\w@%+=:,./-]+", literal) else f'"{literal}"'


EXAMPLES: dict[str, Callable[[ExampleArguments], str]] = {
    "systemd": systemd_unit,
    "systemd@": systemd_template,
    "caddy": caddy_settings,
    "nginx": nginx_settings,
    "container": container_file,
    "compose": compose_file,
    "compose-litestream": compose_file,
}


def example_command(arguments: ExampleArguments) -> int:
    wanted = arguments.example
    if not wanted:
        text = example_config(example_language())
    elif wanted in EXAMPLES:
        text = EXAMPLES[wanted](arguments)
    else:
        raise SettingsError(f"the examples are: {', '.join(EXAMPLES)}")
    print(text, end="")
    return 0


# The command line


@dataclass(frozen=True)
class Command:
    """What can be done from a terminal. `run` takes the `arguments`, and returns an exit code.
    `epilog`: what its --help says below the options."""

    run: Callable[[Any], int]
    summary: str
    arguments: type[Arguments] = Arguments
    epilog: str = ""


COMMANDS = {
    "serve": Command(
        serve_command,
        "run the service (what happens without a command)",
        ServeArguments,
        "FILES are settings files, or folders with settings files (*.ini), one for each blog that\n"
        "the process serves. Its host tells which blog a request is for: commentd help deploy",
    ),
    "demo": Command(
        demo_command,
        "try it all on a made-up blog, which is deleted when you stop it",
        DemoArguments,
    ),
    "check": Command(check_command, "look for what is wrong, and show what is set", CheckArguments),
    "backup": Command(
        backup_command, "back up the database (works while the service runs)", BackupArguments
    ),
    "restore": Command(
        restore_command, "restore a backup (stop the service first)", RestoreArguments
    ),
    "update": Command(
        update_command,
        "say whether the service runs the version that is installed",
        UpdateArguments,
        "FILES are settings files, or folders with some, as for `commentd serve`. No network is\n"
        "asked for newer versions: install them as you installed this one. Exit codes: 0 the\n"
        "service runs the installed version, or there is none; 3 another version is installed:\n"
        "restart the service. More: commentd help versions",
    ),
    "admin": Command(
        admin_command, "print a one-time link to become admin or set a new password", AdminArguments
    ),
    "import": Command(
        import_command,
        "import comments from another product or a commentd export",
        ImportArguments,
        "FILE is what the product exports, also compressed (.gz, .tar.gz), or the SQLite file\n"
        "of Isso or Cusdis. Where to get it: commentd help import",
    ),
    "export": Command(
        export_command,
        f"export all comments; FORMAT: {', '.join(EXPORTERS)}",
        ExportArguments,
        "commentd (the default) is for another commentd. data is JSON of what readers see, by\n"
        "page, for the templates of a site. The others are for other products.",
    ),
    "render": Command(
        render_command, "put the comments into the HTML of a built site", RenderArguments
    ),
    "move": Command(
        move_command,
        "give pages a new URL; * at the end of both stands for the rest",
        MoveArguments,
    ),
    "recount": Command(recount_command, "recalculate the counts of comments, replies and likes"),
    "example": Command(
        example_command,
        "print a sample commentd.ini; or a file for systemd, systemd@, caddy, nginx, container,\n"
        "compose or compose-litestream",
        ExampleArguments,
        "FILES are settings files of several blogs, or their folder, as for `commentd serve`.",
    ),
    "help": Command(help_command, "print the manual: its topics, or one of them", HelpArguments),
}


class ShowVersions(argparse.Action):
    """Prints the version, and those of what it runs on: whoever helps asks for them first."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import importlib.metadata  # here, as it takes long and most commands do without

        python = sys.version.split()[0]
        waitress_version = "of unknown version"
        with contextlib.suppress(ImportError):  # not readable for this user
            waitress_version = importlib.metadata.version("waitress")
        beside = f"Python {python}, SQLite {sqlite3.sqlite_version}, waitress {waitress_version}"
        print(f"commentd {__version__} ({beside})")
        parser.exit()


def argument_parser() -> argparse.ArgumentParser:
    # The classes of the arguments have the defaults.
    common = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    common.add_argument(
        "--config",
        dest="config_file",
        type=Path,
        metavar="FILE",
        help="settings file (default: ./commentd.ini, else /etc/commentd/commentd.ini)",
    )
    parser = argparse.ArgumentParser(
        prog="commentd",
        description="Comments for a static site: one program, one SQLite file, no third party.",
        epilog="More on a command: commentd COMMAND --help. The manual: commentd help",
        parents=[common],
    )
    parser.add_argument(
        "--version",
        action=ShowVersions,
        nargs=0,
        default=argparse.SUPPRESS,  # it is no value of `Arguments`
        help="print the version, and those of Python, SQLite and waitress",
    )
    commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND")
    for name, command in COMMANDS.items():
        subparser = commands.add_parser(
            name,
            help=command.summary,
            description=command.summary,
            epilog=command.epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[common],
            argument_default=argparse.SUPPRESS,
        )
        command.arguments.declare(subparser)
    return parser


def parse_arguments(argv: list[str] | None) -> Arguments:
    """The command and its arguments; `blogs` are not read yet. Wrong use ends the program with exit
    code 2."""
    words = argument_parser().parse_args(argv, argparse.Namespace(command="serve"))
    arguments = COMMANDS[words.command].arguments(**vars(words))
    if arguments.named and arguments.config_file:
        raise SettingsError("name the settings with --config or after the command, not both")
    return arguments


def settings_files(arguments: Arguments) -> list[Path | None]:
    """The settings files that the command line stands for; [None] if there is no file."""
    if arguments.named:
        # A file that is named twice counts once.
        return [*dict.fromkeys(files_named(arguments.named))]
    if arguments.config_file:
        return [arguments.config_file]
    # The second is that of Debian's package, whose commands can be run in any folder.
    for usual in (Path("commentd.ini"), Path("/etc/commentd/commentd.ini")):
        if usual.exists():
            return [usual]
    return [None]


def files_named(named: Iterable[str]) -> Iterator[Path]:
    """The settings files, and those in the folders, that stand after the command."""
    for path in map(Path, named):
        if path.is_dir():
            found = sorted(path.glob("*.ini"))
            if not found:
                raise SettingsError(f"{path}: there is no settings file (*.ini) in this folder")
            yield from found
        else:
            yield path


# The rights and the log of the program


def give_up_root(path: Path) -> None:
    """Root takes the rights of the owner of a file, or of its folder if the file is root's.
    Otherwise the service could not open what a command makes, and a symbolic link there, or a path
    in the settings, could misuse root."""
    if os.geteuid() != 0:  # pragma: no cover - the user of the tests
        return
    for owned in (path, path.absolute().parent):
        if not os.path.lexists(owned):
            continue
        owner = os.lstat(owned)
        if owner.st_uid:
            name = str(owner.st_uid)
            with contextlib.suppress(KeyError):
                name = pwd.getpwuid(owner.st_uid).pw_name
            text = f"root takes the rights of the owner of {owned} (user {name})"
            print(f"commentd: {text}", file=sys.stderr)
            os.setgroups([])
            os.setgid(owner.st_gid)
            os.setuid(owner.st_uid)
            return


def once_a_minute() -> Callable[[logging.LogRecord], bool]:
    """A filter that drops lines which were written in the last minute. Otherwise a client that
    repeats a failing request could fill the disk."""
    written_at: dict[tuple[str, str], float] = {}  # by blog and line

    def is_new(record: logging.LogRecord) -> bool:
        line = (BLOG_IN_LOG.get(), record.getMessage())
        seconds = record.created - written_at.get(line, 0)
        if 0 <= seconds < MINUTE:
            return False
        if len(written_at) >= 1000:
            written_at.clear()
        written_at[line] = record.created
        return True

    return is_new


class LogLine(logging.Formatter):
    """Indents the lines of a traceback, so that each event begins a line."""

    def format(self, record: logging.LogRecord) -> str:
        blog = BLOG_IN_LOG.get()
        if blog:
            record = copy.copy(record)
            record.msg = f"[{blog}] {record.getMessage()}"
            record.args = ()
        lines = super().format(record).splitlines()
        return "\n    ".join(map(printable, lines))


def set_up_output() -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):  # pragma: no branch - pytest may replace it
        sys.stdout.reconfigure(errors="backslashreplace")  # for terminals without UTF-8
    handler = logging.StreamHandler()
    handler.addFilter(once_a_minute())
    handler.setFormatter(LogLine("%(asctime)s %(levelname)s %(message)s", "%F %T%z"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    # Otherwise clients could fill the log.
    logging.getLogger("waitress").setLevel(logging.ERROR)


def read_settings(file: Path | None, *, as_root: bool) -> BlogSettings:
    """Unless it reads them `as_root`, root takes the rights of their owner first."""
    if file and not as_root:
        give_up_root(file)
    config = load_config(file, os.environ)
    if not as_root:
        # First as it is written: a symbolic link of another user must not lead root to its target.
        give_up_root(Path(config.database_path))
        give_up_root(config.database)
    return BlogSettings(file, config)


# From the command line to an exit code


def blogs_of(arguments: Arguments) -> list[BlogSettings]:
    # An example makes no file: root may keep its rights.
    as_root = isinstance(arguments, ExampleArguments)
    blogs = [read_settings(file, as_root=as_root) for file in settings_files(arguments)]
    return as_one_process(blogs, os.environ) if len(blogs) > 1 else blogs


@contextlib.contextmanager
def naming_way_back(blogs: list[BlogSettings]) -> Iterator[None]:
    """Adds the backup that leads back to the error that the database of a blog is too new."""
    try:
        yield
    except NewerDatabase as error:
        for blog in blogs:
            if blog.config.database == error.path:
                folder = Path(blog.config.backup_folder)
                raise SchemaError(way_back(error, folder)) from None
        raise


def run_command(argv: list[str] | None) -> int:
    """Does what the command line says. What was printed is written in any case, so that `main` is
    told if nobody reads it."""
    try:
        arguments = parse_arguments(argv)
        set_up_output()
        if arguments.needs_settings:
            arguments.blogs = blogs_of(arguments)
        with naming_way_back(arguments.blogs):
            return COMMANDS[arguments.command].run(arguments)
    finally:
        sys.stdout.flush()


def main(argv: list[str] | None = None) -> int:
    """Runs a command and prints errors in plain words, without a traceback. Exit codes: 0 done,
    1 failed, 2 wrong use or settings."""
    try:
        return run_command(argv)
    except BrokenPipeError:  # such as `| head`
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        return 1
    except (OperatorError, OSError, sqlite3.Error, Unavailable, KeyboardInterrupt) as error:
        for line in explained(error).splitlines():
            print(f"commentd: {translated(line, terminal_language(os.environ))}", file=sys.stderr)
        return 2 if isinstance(error, SettingsError) else 1


def explained(error: BaseException) -> str:
    """What an error means to an owner."""
    if isinstance(error, PermissionError) and error.filename:
        return (
            f"{error.filename}: the user of the service may not use it. Put it into the folder of "
            "commentd.ini, or change its owner or rights (chown, chmod)"
        )
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; run an import again to continue it"
    if isinstance(error, Unavailable):  # the store has logged why
        return "the database is busy or read-only: try again"
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
