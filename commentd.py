"""commentd: comments for a static site, in one module and one SQLite file.

Run it with `python commentd.py`. The whole service is this file, read from the top: each part
uses only what stands above it.

    Settings      every setting, its default, its help; the loader; the sample file
    Problems      the refusals that a caller may read
    Schema        the migrations, the connection, what a file must be to be ours, its copies
    Store         all SQL: one writer behind a lock, a reader a thread
    Text          pure: strict JSON, names, addresses, page keys, Markdown to safe HTML
    Keys          pure: passwords, codes, tokens, the proof of work
    Filter        pure: the words of a comment, and how spammy they make it
    World         the clock, chance and the post office; tests bring their own
    Mail          the letters, the webhooks, and the work of the postman
    Plumbing      what a handler is given: routes, ranks, limits, forms, replies
    Doctor        what is wrong with settings, files and the world around
    Readers       the handlers for those who read and write comments
    Admins        the handlers for the owner, and for the links in letters
    Application   `make_app`: the routes, mounted; headers for every reply
    Moving        importers, as tables from record to fields; exporters; pages that move
    Serving       waitress, calm under load; the workers; stopping without loss
    Commands      `serve`, `check`, `admin`, `backup`, `import` and the others; `main`
"""

import argparse
import base64
import codecs
import configparser
import contextlib
import difflib
import email.headerregistry
import email.message
import email.policy
import enum
import errno
import fnmatch
import functools
import gc
import glob
import gzip
import hashlib
import hmac
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
import re
import secrets
import select
import shlex
import shutil
import signal
import smtplib
import socket
import sqlite3
import ssl
import sys
import tarfile
import tempfile
import textwrap
import threading
import time
import unicodedata
import urllib.parse
import zlib
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import IO, Any, ClassVar, TextIO, TypeVar
from xml.etree import ElementTree
from xml.parsers import expat

try:
    import bottle
    import jwt
    import mistune
    import nh3
    import waitress
except ModuleNotFoundError as missing:
    if __name__ != "__main__":
        raise
    sys.exit(f"commentd needs the package {missing.name}: run `pip install .` where this file is")

# What Serving takes from the inside of waitress. Where one of these is missing, the stock server
# serves (see `strange_files`), and what is built on these is not used.
try:
    from waitress.buffers import ReadOnlyFileBasedBuffer as FileBuffer
    from waitress.channel import HTTPChannel
    from waitress.parser import HTTPRequestParser, ParsingError
    from waitress.receiver import ChunkedReceiver
    from waitress.task import ErrorTask, ThreadedTaskDispatcher, WSGITask
    from waitress.utilities import BadRequest as WrongRequest
    from waitress.utilities import build_http_date
    from waitress.wasyncore import readwrite
except ImportError:
    FileBuffer = HTTPChannel = HTTPRequestParser = ChunkedReceiver = object
    ErrorTask = ThreadedTaskDispatcher = WSGITask = object
    ParsingError = WrongRequest = build_http_date = readwrite = None

__version__ = "0.1.0"

log = logging.getLogger("commentd")

Json = dict[str, Any]

MINUTE, HOUR, DAY = 60, 3600, 86400

# -- Settings -----------------------------------------------------------------


def whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return parse


def one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"must be one of: {', '.join(words)}")
        return text.lower()

    return parse


def yes_or_no(text: str) -> bool:
    words = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
    if text.lower() not in words:
        raise ValueError("must be yes or no")
    return words[text.lower()]


def origins(text: str) -> tuple[str, ...]:
    """Where blogs live: `https://blog.example`, as a browser names it in `Origin`."""
    found = []
    for word in text.replace(",", " ").split():
        if not re.fullmatch(r"(?ai)https?://([\w.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?/?", word):
            raise ValueError(f"{word}: write it as https://blog.example, without a path")
        found.append(f"{word.lower().partition(':')[0]}://{host_of(word)}")
    return tuple(found)


def host_of(origin: str) -> str:
    """Host and port as browsers spell them: lower case, the port only where it is unusual."""
    scheme, _, host = origin.lower().rstrip("/").partition("://")
    return host.removesuffix({"http": ":80", "https": ":443"}.get(scheme, "/"))


def web_address(text: str) -> str:
    if not re.fullmatch(r"(?a)(https?://[\w.:\[\]-]+(/[\w.~%-]*)*)?", text):
        raise ValueError("must be a web address such as https://comments.example")
    return web_page(text).rstrip("/")


def web_page(text: str) -> str:
    with contextlib.suppress(ValueError):  # of an odd port or host
        place = urllib.parse.urlsplit(text)
        place.port, (place.hostname or "").encode("idna")
        if re.fullmatch(r"(https?://[^\s/?#@]+([/?#][!-~]*)?)?", text):
            return text
    raise ValueError("must be a web address such as https://blog.example/privacy/")


def networks(text: str) -> tuple[str, ...]:
    """Addresses and networks, or the word `unix` for whatever speaks through the socket file."""
    found = []
    for word in text.replace(",", " ").split():
        try:
            found.append(word if word == "unix" else str(ipaddress.ip_network(word)))
        except ValueError:
            wanted = "an address (127.0.0.1), a network (10.0.0.0/8), or unix"
            raise ValueError(f"{word}: write {wanted}") from None
    return tuple(found)


def listening(text: str) -> str:
    if not re.fullmatch(r"unix:/[\w./@+-]+|(\[[0-9A-Fa-f:]+\]|[^:\[\]\s]+):[0-9]{1,5}", text):
        raise ValueError("must be host:port, such as 127.0.0.1:8080, or unix:/path")
    if not text.startswith("unix:") and int(text.rpartition(":")[2]) > 65535:
        raise ValueError("the port must be from 0 to 65535")
    return text


def signing_key(text: str) -> str:
    # RFC 7518, 3.2: a key for HS256 has at least the size of the hash.
    if text and len(text.encode()) < 32:
        raise ValueError("must have at least 32 bytes; `openssl rand -hex 32` makes one")
    return text


def one_line(text: str) -> str:
    """A text that can stand in a mail header without becoming another: one line, nothing hidden,
    and no encoded word (RFC 2047), which some programs read as new headers."""
    text = unicodedata.normalize("NFC", text)
    kinds = ((c, unicodedata.category(c)) for c in text)
    seen = "".join(c if k[0] != "C" else " " * (k == "Cc") for c, k in kinds)
    # Last: what is dropped may have stood between the two.
    return re.sub(r"=(?=\?)|\?(?==)", r"\g<0> ", " ".join(seen.split()))[:120]


MAILBOX = re.compile(
    r"(?ai)([^<>]*<)?[\w!#$%&'*+/=?^`{|}~-]+(\.[\w!#$%&'*+/=?^`{|}~-]+)*@([\w-]+\.)*[\w-]+>?"
)


def mailbox(text: str) -> str:
    text = one_line(text)
    if text and not MAILBOX.fullmatch(text):
        raise ValueError("must be an address, such as comments@example.com")
    return text


EMAIL = re.compile(
    r"(?=.{3,254}\Z)(?=[^@]{1,64}@)[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
)


def proper_email(text: str) -> str:
    """The one spelling of an address: plain ASCII, lower case; `ValueError` for any other."""
    address = text.strip(" ").lower()
    # `=?` begins an encoded word (RFC 2047): mail programs would read another address.
    if not text.isascii() or not EMAIL.fullmatch(address) or "=?" in address:
        raise ValueError("must be an address, such as ann@example.com")
    return address


def contact(text: str) -> str:
    """An address, or a page that browsers reach by https, as a URI (RFC 9116, section 2.5.3)."""
    if text.startswith("https://") or not text:
        return web_page(text)
    with contextlib.suppress(ValueError):
        return "mailto:" + proper_email(text.removeprefix("mailto:"))
    raise ValueError("must be an address such as ann@example.com, or a page such as https://…")


def mailboxes(text: str) -> tuple[str, ...]:
    """Plain addresses, or the word `nobody`."""
    words = text.replace(",", " ").split()
    return tuple(word if word == "nobody" else proper_email(word) for word in words)


def page_rules(text: str) -> tuple[str, ...]:
    """Lines `PATTERN = addresses`, where `*` stands for anything."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        pattern, mark, named = line.rpartition("=")
        if not mark or not pattern.strip() or not mailboxes(named):
            raise ValueError(f"{line}: write it as /photos/* = ann@example.com, or = nobody")
        found.append(f"{pattern.strip()} = {', '.join(mailboxes(named))}")
    return tuple(found)


def word_list(text: str) -> tuple[str, ...]:
    return tuple(word for part in re.split("[\n,，、]", text) if (word := part.strip()))


def webhook_key(text: str) -> str:
    """A text, or `whsec_` and base64 as Standard Webhooks has it."""
    with contextlib.suppress(ValueError):
        if key_of_webhook(text) or not text:
            return text
    raise ValueError("must be base64 after whsec_")


def key_of_webhook(text: str) -> bytes:
    if text.startswith("whsec_"):
        return base64.b64decode(text.removeprefix("whsec_"), validate=True)
    return text.encode()


def name_and_address(mailbox: str) -> tuple[str, str]:
    name, _, address = mailbox.rpartition("<")
    return name.strip('" '), address.rstrip("> ")


def setting(
    help: str, parse: Callable[[str], Any] = str, default: str = "", *, secret: bool = False
) -> Any:
    """`default` is written, and read, as in the file."""
    return field(default=parse(default), metadata={"help": help, "parse": parse, "secret": secret})


# The captchas of others, and where they tell whether a token is good.
SITEVERIFY = {
    "turnstile": "https://challenges.cloudflare.com/turnstile/v0/siteverify",
    "hcaptcha": "https://api.hcaptcha.com/siteverify",
    "recaptcha": "https://www.google.com/recaptcha/api/siteverify",
}


@dataclass(frozen=True)
class Config:
    """Every setting. `mail_host` is `host` under `[mail]`, and COMMENTD_MAIL_HOST, which wins."""

    server_listen: str = setting(
        "Where to listen: host:port, or unix:/path for a socket file.", listening, "127.0.0.1:8080"
    )
    server_public_url: str = setting(
        "The address under which readers reach this service, such as https://comments.example.\n"
        "When it is set, the page at / is off (see demo).",
        web_address,
    )
    server_trusted_proxy: tuple[str, ...] = setting(
        "The proxy in front, whose X-Forwarded-For is believed: its address as this service sees\n"
        "it (127.0.0.1 for nginx or Caddy on the same machine), networks, or unix.",
        networks,
    )
    server_fast: bool = setting(
        "Answer what all readers get alike where it is read, by epoll. no: the stock waitress,\n"
        "which is slower, keeps no answers, and leaves slow peers to the proxy in front of it.",
        yes_or_no,
        "yes",
    )
    server_metrics: bool = setting("Show sums at /metrics, for Prometheus.", yes_or_no, "no")
    database_path: str = setting(
        "The one file that keeps all; relative to this file's folder.", default="commentd.db"
    )
    site_origins: tuple[str, ...] = setting(
        "The blogs that may embed comments, one a line: https://blog.example. Empty: any.", origins
    )
    site_name: str = setting("The name of the blog, for letters. Empty: its address.", one_line)
    site_demo: bool = setting("Keep the demo at / although public_url is set.", yes_or_no, "no")
    site_contact: str = setting(
        "Whom to tell of a hole, in /.well-known/security.txt: an address, or an https page.",
        contact,
    )
    token_key: str = setting(
        "The key that signs logins, 32 bytes or more. Empty: made at the first start and kept in\n"
        "the database. Set here, it is in no copy of the database; each service needs its own.",
        signing_key,
        secret=True,
    )
    mail_host: str = setting("The mail server (SMTP). Empty: letters are printed to the terminal.")
    mail_port: int = setting("Its port. 0: 587; 465 for tls; 25 for none.", whole(0, 65535), "0")
    mail_security: str = setting(
        "How the connection is protected: starttls, tls or none. It never falls back to clear.",
        one_of("starttls", "tls", "none"),
        "starttls",
    )
    mail_user: str = setting("The user name at the mail server. Empty: no login.")
    mail_password: str = setting("The password there.", secret=True)
    mail_sender: str = setting("Who sends: an address or Name <address>. Empty: the user.", mailbox)
    captcha_provider: str = setting(
        "What keeps robots out: altcha (a proof of work that this service checks by itself);\n"
        "turnstile, hcaptcha or recaptcha (v2 and v3; readers and this service then talk to that\n"
        "company); or none (any non-empty token passes).",
        one_of("altcha", *SITEVERIFY, "none"),
        "altcha",
    )
    captcha_site_key: str = setting("The site key that the captcha's provider gave you.")
    captcha_secret: str = setting("The secret key that belongs to it.", secret=True)
    captcha_verify_url: str = setting(
        "Where tokens are checked. Empty: the provider's usual address. In China, reCAPTCHA is at\n"
        "https://www.recaptcha.net/recaptcha/api/siteverify.",
        web_page,
    )
    comments_max_length: int = setting("Characters a comment may have.", whole(1, 10_000), "2000")
    comments_page_size: int = setting("Comments a page unless asked otherwise.", whole(1, 100), "6")
    comments_login_required: bool = setting("Only accounts may comment.", yes_or_no, "no")
    comments_edit_minutes: int = setting(
        "Minutes in which authors may edit what they wrote. 0: never.", whole(0, 525_600), "15"
    )
    comments_close_after_days: int = setting(
        "Days after which a page takes no more comments, counted from when it was first seen or\n"
        "last reopened. 0: never.",
        whole(0, 36_500),
        "0",
    )
    moderation_hold: str = setting(
        "What waits for your approval: none; links (comments that have some); first (the first of\n"
        "each author); all.",
        one_of("none", "links", "first", "all"),
        "none",
    )
    moderation_words: tuple[str, ...] = setting(
        "Comments with one of these words or phrases wait; parted by commas or lines.", word_list
    )
    moderation_keep_days: int = setting(
        "Days for which spam, and what you deleted, is kept to be looked at again.",
        whole(1, 36_500),
        "30",
    )
    notify_language: str = setting(
        "The language of letters to the owner: ar, de, en, es, fr, ja, ko, pt, ru, zh, zh-tw, or "
        "comment (that of the first comment).",
        one_of("comment", "ar", "de", "en", "es", "fr", "ja", "ko", "pt", "ru", "zh", "zh-tw"),
        "comment",
    )
    notify_owner: tuple[str, ...] = setting(
        "Who gets a letter about new comments: addresses, or nobody. Empty: all admins.", mailboxes
    )
    notify_pages: tuple[str, ...] = setting(
        "Who gets them instead for some pages, a line each; the first that fits:\n"
        "/photos/* = ann@example.com, bob@example.com, or = nobody.",
        page_rules,
    )
    webhook_url: str = setting(
        "Where each new comment, and each report of one, is sent at once. Of Slack, Discord and\n"
        "Feishu, the address that they give you for a webhook; of Telegram, it is\n"
        "https://api.telegram.org/botTOKEN/sendMessage?chat_id=NUMBER with your bot's token.",
        web_page,
        secret=True,
    )
    webhook_kind: str = setting(
        "What it understands: json (for programs of your own), slack, discord, telegram or feishu.",
        one_of("json", "slack", "discord", "telegram", "feishu"),
        "json",
    )
    webhook_secret: str = setting(
        "The key that signs it, for feishu, and for json, where Standard Webhooks wants it as\n"
        "`echo whsec_$(openssl rand -base64 32)` makes one. Empty: no signature.",
        webhook_key,
        secret=True,
    )
    privacy_show_ip: str = setting(
        "What readers see of an author's address: masked, full or none. Admins see all of it.",
        one_of("masked", "full", "none"),
        "masked",
    )
    privacy_show_location: bool = setting(
        "Look up and show the place of an author (country; in China the city).", yes_or_no, "yes"
    )
    privacy_keep_ip_days: int = setting(
        "Days after which addresses are masked in the database too, and likes forget whose they\n"
        "are. 0: after an hour.",
        whole(0, 36_500),
        "30",
    )
    privacy_policy_url: str = setting(
        "The address of your privacy policy, shown where comments are written.", web_page
    )
    geo_file: str = setting(
        "A file of your own that knows places better: .mmdb (MaxMind and others) or .xdb\n"
        "(ip2region). It needs `pip install maxminddb py-ip2region`."
    )
    limits_enabled: bool = setting(
        "Limit how often a client may write, and answer a double with the first.", yes_or_no, "yes"
    )
    backup_folder: str = setting(
        "Where copies are kept; relative to this file's folder. Each blog needs its own.",
        default="backups",
    )
    backup_every: int = setting(
        "Hours between two copies that the service makes by itself. 0: none.", whole(0, 8760), "24"
    )
    backup_keep: int = setting("How many are kept; the oldest go first.", whole(1, 1000), "7")


SETTINGS = {tuple(f.name.split("_", 1)): f for f in fields(Config)}


class Fault(Exception):
    """What the person who runs the service must mend; ends the program with a sentence."""

    exit_code = 1


class SettingsFault(Fault):
    """All that is wrong with the settings, a line each."""

    exit_code = 2


def load_config(path: Path | None, environ: Mapping[str, str]) -> Config:
    """The settings of the file and the environment; a `SettingsFault` names all that is wrong."""
    faults: list[str] = []
    values: Json = {}
    told = [*from_file(path, faults)]
    secret = any(SETTINGS[s, k].metadata["secret"] for s, k, *_ in told if (s, k) in SETTINGS)
    if path and secret and path.stat().st_mode & 0o077:
        log.warning("%s holds a secret and others can read it: run chmod 600 on it", path)
    for section, key, text, source in [*told, *from_environment(environ)]:
        try:
            parse = SETTINGS[section, key].metadata["parse"]
            refuse_controls(text, lines=parse is not str)
            values[f"{section}_{key}"] = parse(text)
        except KeyError:
            faults.append(f"{source}: there is no such setting{hint(section, key)}")
        except ValueError as error:
            faults.append(f"{source}: {error}")
    config = Config(**values)
    if faults := [*faults, *contradictions(config)]:
        raise SettingsFault("\n".join(faults))
    folder = path.parent if path else Path()
    files = ("database_path", "backup_folder", "geo_file")
    placed: Json = {n: str(folder / getattr(config, n)) for n in files if getattr(config, n)}
    return replace(config, **placed)


def refuse_controls(text: str, *, lines: bool) -> None:
    """They would steer the terminal of `check`, and add lines to what `example systemd` prints,
    part of which root runs."""
    if any(unicodedata.category(c) == "Cc" and not (lines and c in "\n\t") for c in text):
        raise ValueError("must be one line" if "\n" in text else "holds a control character")


def from_file(path: Path | None, faults: list[str]) -> Iterator[tuple[str, str, str, str]]:
    """Section, key, text and source of each line of the file, if there is one."""
    parser = configparser.ConfigParser(interpolation=None, default_section="\0")
    try:
        parser.read_string(path.read_text("utf-8-sig") if path else "", source=str(path))
    except (OSError, UnicodeError, configparser.Error) as error:
        faults.append(f"{path}: {misread(error)}")
        return
    for section in parser.sections():
        for key, text in parser.items(section):
            yield section, key, text, f"{path}: [{section}] {key}"


def misread(error: Exception) -> str:
    """Why a file could not be read, without its lines, which may hold secrets."""
    if isinstance(error, configparser.MissingSectionHeaderError):
        return f"line {error.lineno}: a [section] must come first"
    if isinstance(error, configparser.ParsingError):
        return f"line {error.errors[0][0]}: write key = value"
    return getattr(error, "strerror", None) or " ".join(str(error).split())


def from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str, str]]:
    """Section, key, text and source of each COMMENTD_… variable."""
    for variable, text in environ.items():
        section, _, key = variable.removeprefix("COMMENTD_").lower().partition("_")
        if variable.startswith("COMMENTD_"):
            yield section, key, text.strip(), variable


def hint(section: str, key: str) -> str:
    """The setting that was meant, if one is near."""
    if key in ("http", "https"):
        return "; does it go on from the line before? Then indent it"
    same = [name for part, name in SETTINGS if part == section]
    if near := difflib.get_close_matches(key, same, 1, 0.5):
        return f"; did you mean {near[0]}?"
    if elsewhere := [part for part, name in SETTINGS if name == key]:
        return f"; did you mean [{elsewhere[0]}] {key}?"
    return "; `commentd example` prints them all"


def contradictions(config: Config) -> Iterator[str]:
    """What single settings allow and together makes no sense."""
    if config.mail_host and not (config.mail_sender or MAILBOX.fullmatch(config.mail_user)):
        yield "[mail] host is set, so set [mail] sender too: the address letters come from"
    if config.mail_user and not config.mail_password:
        yield "[mail] user is set, so set [mail] password too"
    here = config.mail_host in ("", "localhost", "127.0.0.1", "::1")
    if config.mail_user and config.mail_security == "none" and not here:
        yield "[mail] security = none would send [mail] password in clear: use starttls"
    if config.captcha_provider in SITEVERIFY:
        for section, key in (("captcha", "site_key"), ("captcha", "secret"), ("site", "origins")):
            if not getattr(config, f"{section}_{key}"):
                yield f"[captcha] provider = {config.captcha_provider} needs [{section}] {key}"
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(config.webhook_url).query)
    if config.webhook_kind == "telegram" and config.webhook_url and "chat_id" not in query:
        yield "[webhook] kind = telegram needs a [webhook] url that ends in ?chat_id=NUMBER"
    proxies = config.server_trusted_proxy
    if {"0.0.0.0/0", "::/0"} & {*proxies}:
        yield "[server] trusted_proxy trusts everyone: name the proxy"
    file = config.server_listen.startswith("unix:")
    if proxies and ("unix" not in proxies if file else {*proxies} == {"unix"}):
        yield "[server] trusted_proxy must be unix where listen is unix:…, and only there"


def example_config() -> str:
    """The text of `commentd.example.ini`: every setting with its help and its default."""
    parts = ["# Settings of commentd. Copy to commentd.ini and take the # from what you change."]
    for (section, key), setting_field in SETTINGS.items():
        if f"[{section}]" not in parts:
            parts += ["", f"[{section}]"]
        parts += ["# " + line for line in setting_field.metadata["help"].splitlines()]
        parts += [f"#{key} = {ini_text(setting_field.default)}".rstrip()]
    return "\n".join(parts) + "\n"


def ini_text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = ", ".join(value) if isinstance(value, tuple) else str(value)
    return text.encode(errors="replace").decode()  # a path may be no UTF-8


def in_force(config: Config) -> Iterator[Json]:
    """Every setting as it is, secrets hidden."""
    for (section, key), each in SETTINGS.items():
        value = ini_text(getattr(config, each.name))
        shown = "(hidden)" if value and each.metadata["secret"] else value
        changed, help = getattr(config, each.name) != each.default, each.metadata["help"]
        told = {"value": shown, "changed": changed, "help": help}
        yield {"section": section, "key": key, **told}


# -- Problems -----------------------------------------------------------------


class Problem(Exception):
    """A refusal that the caller may read; it leaves as `{error, code}`, with what stands in
    `details` beside them. `retry_after`: seconds until it may be tried again."""

    status, code, retry_after = 400, "bad_request", 0

    def __init__(self, text: str, code: str = "", status: int = 0, retry_after: int = 0) -> None:
        super().__init__(text)
        self.code, self.status = code or self.code, status or self.status
        self.retry_after = retry_after or self.retry_after
        self.details: Json = {}


class BadRequest(Problem):
    pass


class Unauthorized(Problem):
    status, code = 401, "unauthorized"


class Forbidden(Problem):
    status, code = 403, "forbidden"


class NotFound(Problem):
    status, code = 404, "not_found"


class TextChanged(Problem):
    """A comment is not what it was when it was read."""

    status, code = 409, "text_changed"


class WideBlock(Problem):
    """A block would meet many readers: `count` of the `total` latest comments are of them."""

    status, code = 409, "block_wide"

    def __init__(self, count: int, total: int) -> None:
        super().__init__(f"这条屏蔽会命中最近 {total} 条评论中的 {count} 条，确定吗？")
        self.details = {"count": count, "total": total}


class TooMany(Problem):
    status, code, retry_after = 429, "too_many", MINUTE


class Unavailable(Problem):
    status, code, retry_after = 503, "unavailable", 5


# -- Schema -------------------------------------------------------------------

# In the header of the file (sqlite.org/pragma.html#pragma_application_id): "cmnd".
APPLICATION_ID = 0x636D6E64

# Version N of the schema is what the first N of these make. What was released is never edited;
# `statements` runs each one.
MIGRATIONS = [
    f"""
    PRAGMA application_id = {APPLICATION_ID};

    CREATE TABLE secret (
        name  TEXT PRIMARY KEY,
        value TEXT NOT NULL
    ) STRICT;

    CREATE TABLE account (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        email      TEXT NOT NULL UNIQUE,
        nickname   TEXT NOT NULL,
        password   TEXT NOT NULL,
        role       TEXT NOT NULL DEFAULT 'user' CHECK (role IN ('user', 'admin')),
        version    INTEGER NOT NULL DEFAULT 1,
        created_at INTEGER NOT NULL,
        blocked    INTEGER NOT NULL DEFAULT 0 CHECK (blocked IN (0, 1))
    ) STRICT;
    CREATE INDEX account_role ON account (role, nickname);

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
        created_at  INTEGER NOT NULL,
        expires_at  INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX registration_email ON registration (email);
    CREATE INDEX registration_created ON registration (created_at);
    CREATE INDEX registration_expires ON registration (expires_at);

    -- `opened_at`: from when on the page's age counts.
    CREATE TABLE page (
        id         INTEGER PRIMARY KEY,
        key        TEXT NOT NULL UNIQUE,
        page_url   TEXT NOT NULL,
        total      INTEGER NOT NULL DEFAULT 0,
        threads    INTEGER NOT NULL DEFAULT 0,
        views      INTEGER NOT NULL DEFAULT 0,
        page_likes INTEGER NOT NULL DEFAULT 0,
        seen_at    INTEGER NOT NULL,
        closed     INTEGER NOT NULL DEFAULT 0 CHECK (closed IN (0, 1)),
        opened_at  INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX page_seen ON page (seen_at);
    CREATE INDEX page_by_total ON page (total);
    CREATE INDEX page_by_views ON page (views);

    -- `replies` counts the direct replies that are shown. A comment is shown when it is visible,
    -- or as a tombstone when `replies` is not zero.
    -- `masked`: its IP address was shortened. `held`: why it waits. `judged_at`: when a moderator
    -- hid it. `learnt`: as what the spam filter learnt it.
    CREATE TABLE comment (
        id         INTEGER PRIMARY KEY AUTOINCREMENT,
        page_id    INTEGER NOT NULL REFERENCES page (id),
        parent_id  INTEGER REFERENCES comment (id),
        thread_id  INTEGER REFERENCES comment (id),
        user_id    INTEGER REFERENCES account (id),
        nickname   TEXT NOT NULL,
        email      TEXT NOT NULL,
        website    TEXT NOT NULL,
        content    TEXT NOT NULL,
        html       TEXT NOT NULL,
        ip         TEXT NOT NULL,
        country    TEXT NOT NULL,
        location   TEXT NOT NULL,
        likes      INTEGER NOT NULL DEFAULT 0,
        replies    INTEGER NOT NULL DEFAULT 0,
        shown      INTEGER NOT NULL DEFAULT 0 CHECK (shown IN (0, 1)),
        status     TEXT NOT NULL CHECK (status IN ('visible', 'waiting', 'spam', 'deleted')),
        created_at INTEGER NOT NULL,
        masked     INTEGER NOT NULL DEFAULT 0 CHECK (masked IN (0, 1)),
        edited_at  INTEGER,
        pinned     INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
        held       TEXT NOT NULL DEFAULT '',
        language   TEXT NOT NULL DEFAULT '',
        judged_at  INTEGER,
        learnt     TEXT NOT NULL DEFAULT '' CHECK (learnt IN ('', 'ham', 'spam'))
    ) STRICT;
    CREATE INDEX comment_by_time ON comment (page_id, status, created_at, id);
    CREATE INDEX comment_by_likes ON comment (page_id, status, likes, created_at, id);
    CREATE INDEX comment_by_status ON comment (status, id);
    CREATE INDEX comment_by_nickname ON comment (nickname, ip, status);
    CREATE INDEX comment_by_email ON comment (email) WHERE email <> '';
    CREATE INDEX comment_top_by_time ON comment (page_id, shown, created_at, id)
        WHERE parent_id IS NULL AND pinned = 0;
    CREATE INDEX comment_top_by_likes ON comment (page_id, shown, likes, created_at, id)
        WHERE parent_id IS NULL AND pinned = 0;
    CREATE INDEX comment_pinned ON comment (page_id, id) WHERE pinned = 1;
    CREATE INDEX comment_of_thread ON comment (thread_id, shown, created_at, id);
    CREATE INDEX comment_of_parent ON comment (parent_id) WHERE parent_id IS NOT NULL;
    CREATE INDEX comment_of_user ON comment (user_id) WHERE user_id IS NOT NULL;
    CREATE INDEX comment_unmasked ON comment (created_at) WHERE masked = 0;
    CREATE INDEX comment_judged ON comment (judged_at) WHERE judged_at IS NOT NULL;
    CREATE INDEX comment_unlearnt ON comment (id) WHERE learnt = '' AND status = 'visible';

    -- `liked_at` is null where a like is an account's, or no longer says whose it is.
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

    CREATE TABLE budget (
        name    TEXT NOT NULL,
        subject TEXT NOT NULL,
        used    INTEGER NOT NULL,
        ends_at INTEGER NOT NULL,
        PRIMARY KEY (name, subject)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX budget_ends ON budget (ends_at);

    CREATE TABLE spent_captcha (
        signature  TEXT PRIMARY KEY,
        comment_id INTEGER REFERENCES comment (id),
        expires_at INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX spent_captcha_expires ON spent_captcha (expires_at);
    CREATE INDEX spent_captcha_comment ON spent_captcha (comment_id) WHERE comment_id IS NOT NULL;

    -- An email that cannot be delivered stays, without its text, so that the owner learns of it.
    -- `subscriber` belongs to an email that asks a guest whether they want emails. A webhook names
    -- a comment and an event; its `message` is the reason of a report. Ids are never used again:
    -- who deletes one row must not delete another.
    CREATE TABLE outbox (
        id              INTEGER PRIMARY KEY AUTOINCREMENT,
        registration_id INTEGER REFERENCES registration (id) ON DELETE CASCADE,
        comment_id      INTEGER REFERENCES comment (id) ON DELETE CASCADE,
        event           TEXT NOT NULL DEFAULT '' CHECK (event IN ('', 'created', 'reported')),
        subscriber      TEXT NOT NULL DEFAULT '',
        recipient       TEXT NOT NULL,
        message         TEXT NOT NULL,
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

    -- A notification tells one recipient of one comment. A row without a recipient means that
    -- nobody has looked up the recipients yet. Followers whose account is at most `last_user_id`
    -- have rows of their own. `outbox_id` is the email that carries the notification until it is
    -- sent.
    CREATE TABLE notification (
        id           INTEGER PRIMARY KEY AUTOINCREMENT,
        comment_id   INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        kind         TEXT NOT NULL CHECK (kind IN ('owner', 'author', 'follower')),
        recipient    TEXT NOT NULL,
        due_at       INTEGER NOT NULL,
        last_user_id INTEGER NOT NULL DEFAULT 0,
        outbox_id    INTEGER REFERENCES outbox (id) ON DELETE CASCADE
    ) STRICT;
    CREATE UNIQUE INDEX notification_pending ON notification (kind, recipient, comment_id)
        WHERE outbox_id IS NULL;
    CREATE INDEX notification_comment ON notification (comment_id);
    CREATE INDEX notification_outbox ON notification (outbox_id) WHERE outbox_id IS NOT NULL;

    -- `subscriber` is the keyed hash of an email address; `page_id` 0 stands for all pages.
    CREATE TABLE subscription (
        subscriber TEXT NOT NULL,
        page_id    INTEGER NOT NULL,
        state      TEXT NOT NULL CHECK (state IN ('asked', 'yes', 'no')),
        PRIMARY KEY (subscriber, page_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX subscription_page ON subscription (page_id);

    CREATE TABLE follow (
        user_id  INTEGER NOT NULL REFERENCES account (id) ON DELETE CASCADE,
        page_id  INTEGER NOT NULL REFERENCES page (id) ON DELETE CASCADE,
        language TEXT NOT NULL,
        PRIMARY KEY (user_id, page_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX follow_page ON follow (page_id);

    CREATE TABLE report (
        comment_id  INTEGER NOT NULL REFERENCES comment (id) ON DELETE CASCADE,
        visitor     TEXT NOT NULL,
        reason      TEXT NOT NULL,
        reported_at INTEGER NOT NULL,
        PRIMARY KEY (comment_id, visitor)
    ) STRICT, WITHOUT ROWID;
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

    -- What the spam filter has learnt: the keyed hash of a word, and in how many good and bad
    -- comments it was. The row of hash 0 counts the comments themselves.
    CREATE TABLE token (
        hash      INTEGER PRIMARY KEY,
        ham       INTEGER NOT NULL DEFAULT 0,
        spam      INTEGER NOT NULL DEFAULT 0,
        learnt_at INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX token_learnt ON token (learnt_at);

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

    CREATE TABLE day (
        day      INTEGER PRIMARY KEY,
        comments INTEGER NOT NULL DEFAULT 0,
        views    INTEGER NOT NULL DEFAULT 0,
        likes    INTEGER NOT NULL DEFAULT 0
    ) STRICT;

    -- Where an imported comment came from, so that it does not come twice, even after it was
    -- deleted here. `original` is the HTML that its text was made of.
    CREATE TABLE import (
        product    TEXT NOT NULL,
        product_id TEXT NOT NULL,
        comment_id INTEGER NOT NULL,
        original   TEXT NOT NULL,
        PRIMARY KEY (product, product_id)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX import_comment ON import (comment_id);
    """
]


class SchemaFault(Fault):
    """The file is not a database that this program can serve."""


def connect(path: str) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are opened by name. `Store` sees to it that
    no two threads use one at once, and closes those of other threads."""
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA busy_timeout = 5000")  # first of all: the next ones may have to wait
        db.execute("PRAGMA journal_mode = WAL")
        # FULL: what was acknowledged survives a power cut, not only a crash of the process.
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA journal_size_limit = 67108864")
        db.execute("PRAGMA secure_delete = ON")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("PRAGMA foreign_keys = ON")
    except BaseException:  # it is no database
        db.close()
        raise
    db.row_factory = sqlite3.Row
    # A text that another program spoilt shall not hide the rows around it.
    db.text_factory = functools.partial(str, encoding="utf-8", errors="replace")
    return db


def version_of(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextlib.contextmanager
def peek(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that leaves the file as it is; a `SchemaFault` where it can't be read."""
    # Immutable leaves no trace beside the file, but does not see what is in the -wal only, nor
    # that somebody writes.
    live = is_running(path) or size_of(Path(f"{path}-wal"))
    try:
        uri = f"{path.absolute().as_uri()}?mode=ro{'' if live else '&immutable=1'}"
        with contextlib.closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
            yield db
    except sqlite3.OperationalError as error:
        raise SchemaFault(f"{path} can't be opened: {one_line(str(error))}") from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # of names in a damaged schema
        what = f"{path} is damaged, or of another program ({one_line(str(error))})"
        raise SchemaFault(f"{what}: restore a backup, or name another") from None


def inspect(path: Path, sql: str = "PRAGMA quick_check(1)") -> None:
    """Refuse, untouched, a file that is not ours, damaged, or of a newer program."""
    if not path.parent.is_dir():
        raise SchemaFault(f"{path.parent}: there is no such folder for the database")
    if not size_of(path):
        return
    with peek(path) as db:
        ours = db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID
        if not ours and db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
            whose = "another program, or of commentd before 0.1.0"
            ways = "name another file, and import what the older commentd exports"
            raise SchemaFault(f"{path} is a database of {whose}: {ways}")
        # While the -wal was being emptied it may have been cut: then that has the page.
        size = 0 if size_of(Path(f"{path}-wal")) else path.stat().st_size
        if size % db.execute("PRAGMA page_size").fetchone()[0]:
            raise sqlite3.DatabaseError("its last page is cut")
        if version_of(db) > len(MIGRATIONS):
            ways = "install that one, or restore the copy that it kept"
            raise SchemaFault(f"{path} was made by a newer commentd: {ways}")
        if (verdict := db.execute(sql).fetchone()[0]) != "ok":
            raise sqlite3.DatabaseError(verdict)


def is_database(path: Path) -> bool:
    """Whether a file is a database of ours. SQLite has to look: a process that opens and closes
    the file by itself drops all its locks on it (sqlite.org/howtocorrupt.html, 2.2)."""
    try:
        with peek(path) as db:
            return bool(db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID)
    except SchemaFault:
        return False


WHOLE_CHECK = "PRAGMA integrity_check(1)"  # slow: indexes are held against their tables


def statements(script: str) -> Iterator[str]:
    """The statements of a script; a `;` in a text or a trigger does not end one."""
    collected = ""
    for piece in script.split(";"):
        collected += piece + ";"
        if sqlite3.complete_statement(collected):
            if collected.strip(" \n;"):
                yield collected
            collected = ""


def migrate(db: sqlite3.Connection, migrations: list[str] = MIGRATIONS) -> None:
    """Bring the database up to date, wholly or not at all: where it fails, the older
    program can go on."""
    if version_of(db) >= len(migrations):
        return
    # A migration may rebuild a table: with foreign keys on, dropping the old one would
    # delete its children. Inside a transaction this pragma does nothing.
    db.execute("PRAGMA foreign_keys = OFF")
    with db:
        db.execute("BEGIN IMMEDIATE")
        for version in range(version_of(db), len(migrations)):
            for statement in statements(migrations[version]):
                db.execute(statement)
            if db.execute("PRAGMA foreign_key_check").fetchone():
                raise SchemaFault(f"migration {version + 1} leaves rows that point nowhere")
            db.execute(f"PRAGMA user_version = {version + 1}")
    db.execute("PRAGMA foreign_keys = ON")


def lock_beside(path: Path, suffix: str) -> sqlite3.Connection:
    """An empty file beside the database, for SQLite to lock with BEGIN EXCLUSIVE: that works
    wherever SQLite does, and the system lets go of it when the process dies."""
    try:
        os.close(os.open(f"{path}{suffix}", os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        what = f"{path.absolute().parent} can't be written ({error.strerror})"
        raise SchemaFault(f"{what}: the user who runs commentd must own it") from None
    return sqlite3.connect(f"{path}{suffix}", check_same_thread=False, isolation_level=None)


def is_running(path: Path) -> bool:
    """Whether a service holds the lock; it is neither made nor taken."""
    uri = f"{path.absolute().as_uri()}-lock?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(uri, timeout=0, uri=True)) as db:
            db.execute("SELECT 1 FROM sqlite_schema")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    return False


def alone(path: Path) -> sqlite3.Connection:
    """The lock that keeps a second service from the same file; held until it is closed."""
    db = lock_beside(path, "-lock")
    try:
        db.execute("PRAGMA busy_timeout = 0")
        db.execute("PRAGMA journal_mode = MEMORY")
        db.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        db.close()
        raise SchemaFault(f"another commentd is running on {path}: stop it first") from None
    return db


def turn_beside(path: Path) -> sqlite3.Connection:
    """The turn to write (see `Store.turn`); held until it is closed."""
    db = lock_beside(path, "-turn")
    try:
        db.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError:
        db.close()
        raise SchemaFault(f"a command writes to {path} now: wait for its end") from None
    return db


Progress = Callable[[int, int], None]  # pages that are left, and in all


def copy_database(
    db: sqlite3.Connection, target: Path, progress: Progress | None = None, part: str = ""
) -> None:
    """A copy of one moment, of a database in use too. It is written aside (to `part`), checked,
    synced, and only then gets its name; nobody else can read it."""
    aside = target.with_name(part or f".{target.name}.part")
    try:
        if not version_of(db):
            raise Fault(f"{target} is not made: there is nothing to copy")
        aside.unlink(missing_ok=True)
        os.close(os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with contextlib.closing(sqlite3.connect(aside, isolation_level=None)) as copy:
            copy.execute("PRAGMA synchronous = OFF")  # synced below, as a whole
            copy.execute("PRAGMA journal_mode = OFF")
            db.execute("BEGIN")
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()  # from here on: one moment
            pages = 4096 if progress else -1
            db.backup(copy, pages=pages, progress=progress and (lambda _, *of: progress(*of)))
            db.execute("COMMIT")
        inspect(aside, WHOLE_CHECK)
        sync(aside)
        aside.replace(target)
        sync(target.parent)
    except SchemaFault:
        raise Fault(f"{target} is not made: what it copies is damaged") from None
    except (OSError, sqlite3.Error) as error:
        raise Fault(f"{target} could not be written: {error}") from None
    finally:
        with contextlib.suppress(OSError):
            aside.unlink()


def sync(path: Path) -> None:
    """What was written to a file, or the names in a folder, are on the disk after this."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def back_up(path: Path, folder: Path, now: float, label: str = "", **how: Any) -> Path:
    """A copy in the folder, named for its time (UTC)."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Fault(f"{folder} can't be made: {error.strerror}") from None
    name = f"{path.stem}-{datetime.fromtimestamp(now, UTC):{STAMP}}{label}.db"
    return copy_to(path, folder / name, **how)


def copy_to(path: Path, target: Path, **how: Any) -> Path:
    try:
        with contextlib.closing(connect(str(path))) as db:
            copy_database(db, target, **how)
    except sqlite3.Error as error:
        raise Fault(f"{path} can't be read: {error}") from None
    return target


STAMP = "%Y%m%d-%H%M%S"
MADE = f"{'[0-9]' * 8}-{'[0-9]' * 6}"  # a stamp, for glob


def backups_of(path: Path, folder: Path) -> dict[Path, float]:
    """The copies that are in the folder, and their times, the oldest first. Those that were made
    before a migration are not among them: they are the owner's to delete. Of a folder that another
    database claims, none."""
    found: dict[Path, float] = {}
    if other_claim(path, folder):
        return found
    for copy in sorted(folder.glob(f"{glob.escape(path.stem)}-{MADE}.db")):
        with contextlib.suppress(ValueError):
            day, time_ = copy.stem.split("-")[-2:]
            found[copy] = datetime.fromisoformat(f"{day}T{time_}Z").timestamp()
    return found


def other_claim(path: Path, folder: Path) -> str:
    """A sentence where the folder keeps the copies of another database of that name, which is still
    there: each would delete the other's. Else ""."""
    try:
        claimed_by = Path(claim_of(path, folder).read_text("utf-8")).resolve()
    except (OSError, ValueError):  # nobody's yet
        return ""
    is_other = claimed_by != path.resolve() and claimed_by.exists()
    what = f"{folder} keeps the copies of {claimed_by}: name another [backup] folder"
    return what if is_other else ""


def claim_of(path: Path, folder: Path) -> Path:
    """The file in a backup folder that names the database whose backups are there."""
    return folder / f".{path.stem}-of"


def back_up_in_turn(path: Path, folder: Path, now: float, **how: Any) -> Path:
    """A copy in the folder that the settings name; it is claimed for this database."""
    if other := other_claim(path, folder):
        raise Fault(other)
    copy = back_up(path, folder, now, **how)
    try:
        claim_of(path, folder).write_text(str(path.resolve()), "utf-8")
    except OSError as error:
        raise Fault(f"{folder} can't be written: {error.strerror}") from None
    return copy


def rotate(path: Path, folder: Path, keep: int, now: float) -> None:
    times = backups_of(path, folder)
    # First those of a time to come: a clock was wrong.
    for copy in sorted(times, key=lambda copy: (times[copy] <= now, times[copy]))[:-keep]:
        copy.unlink(missing_ok=True)


def restore(path: Path, source: Path, now: int) -> Path | None:
    """Put a copy in the place of the database; what was there is kept under the name that is
    returned. Tokens end: else those that were revoked since the copy was made would live again."""
    if not source.is_file():
        raise Fault(f"{source}: there is no such file")
    if not source.stat().st_size or (path.exists() and source.samefile(path)):
        raise Fault(f"{source} is no backup: name a file that `commentd backup` made")
    inspect(source, WHOLE_CHECK)
    fresh = path.with_name(f"{path.name}.restored")
    kept = path.with_name(f"{path.name}.{datetime.fromtimestamp(now, UTC):{STAMP}}")
    with contextlib.closing(alone(path)), contextlib.closing(turn_beside(path)):
        try:
            for suffix in ("-wal", "-shm"):  # of a restore that was cut off
                Path(f"{fresh}{suffix}").unlink(missing_ok=True)
            with peek(source) as db:
                copy_database(db, fresh)
            with contextlib.closing(connect(str(fresh))) as db:
                # Versions grow by one at a time: none that was given out is above the time.
                sql = "UPDATE account SET version = max(version + 1, 1000 * :now)"
                db.execute(sql, {"now": now})
                # Nor is a number given again that an account had which is lost now.
                db.execute("DELETE FROM sqlite_sequence WHERE name = 'account'")
                sql = """
                    INSERT INTO sqlite_sequence (name, seq)
                    SELECT 'account', max(:now, coalesce(max(id), 0)) FROM account"""
                db.execute(sql, {"now": now})
                tables = {name for (name,) in db.execute("SELECT name FROM sqlite_schema")}
                if "admin_link" in tables:  # each is used once, whatever is put back
                    db.execute("DELETE FROM admin_link")
            sync(fresh)
            set_aside(path, kept)
            fresh.replace(path)
            sync(path.parent)
        except (OSError, sqlite3.Error) as error:
            raise Fault(f"{path} could not be replaced: {error}") from None
        finally:
            fresh.unlink(missing_ok=True)
    return kept if kept.exists() else None


def set_aside(path: Path, kept: Path) -> None:
    """Give a database another name too. Nobody else may have it open: a command would go on writing
    to the old file, and SQLite would write its -wal into the new one."""
    if path.exists():
        empty_alone(path)
        try:
            kept.hardlink_to(path)
        except OSError:  # some file systems, such as exFAT, have no such links
            part = kept.with_name(f".{kept.name}.part")
            part.unlink(missing_ok=True)
            part.touch(0o600, exist_ok=False)
            shutil.copyfile(path, part)
            sync(part)
            part.replace(kept)
    for suffix in ("-wal", "-shm"):  # still there when the file is damaged or gone
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{kept}{suffix}")


def empty_alone(path: Path) -> None:
    """Write the -wal into the file, if it can be read; a `Fault` where another program has it
    open, which SQLite finds out when the file leaves the mode with a -wal."""
    try:
        with contextlib.closing(connect(str(path))) as db:
            db.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
            raise Fault(f"another program has {path} open: stop it first") from None
    except sqlite3.Error:  # it is damaged
        pass


# -- Store --------------------------------------------------------------------


@dataclass(frozen=True)
class Account:
    id: int
    email: str
    nickname: str
    password: str
    role: str
    version: int
    created_at: int
    blocked: int


@dataclass(frozen=True)
class Registration:
    """An account to be, or a new password for one, until its code is confirmed."""

    id: int
    request_id: str
    email: str
    nickname: str
    password: str
    code: str
    client: str
    tries: int
    named_tries: int
    created_at: int
    expires_at: int


@dataclass(frozen=True)
class Page:
    id: int
    key: str
    page_url: str
    total: int
    threads: int
    views: int
    page_likes: int
    seen_at: int
    closed: int
    opened_at: int


STATES = ("visible", "waiting", "spam", "deleted")  # of a comment


@dataclass(frozen=True)
class Comment:
    """A comment with what its page and its author's account add; `email` is not part of it."""

    id: int
    page_id: int
    page_url: str
    parent_id: int | None
    thread_id: int | None
    user_id: int | None
    role: str
    nickname: str
    website: str
    content: str
    html: str
    ip: str
    country: str
    location: str
    likes: int
    status: str
    shown: int
    pinned: int
    created_at: int
    edited_at: int | None
    held: str
    language: str
    learnt: str


@dataclass(frozen=True)
class Case(Comment):
    """A comment with what only moderators and the post office may know."""

    email: str


@dataclass(frozen=True)
class Block:
    """Who or what is kept out: `kind` is address (or network), email, domain or word."""

    id: int
    kind: str
    value: str
    note: str
    created_at: int
    expires_at: int | None


@dataclass(frozen=True)
class Letter:
    """An email in the outbox, whose `message` is its whole text as RFC 5322 has it; or a webhook,
    which has an event instead."""

    id: int
    recipient: str
    message: str
    tries: int
    expires_at: int
    created_at: int = 0
    comment_id: int | None = None
    event: str = ""


@dataclass(frozen=True)
class Notification:
    """News of one comment for one recipient; "" is whomever it concerns."""

    id: int
    comment_id: int
    kind: str  # owner, author (of the comment above), or follower of the page
    recipient: str
    due_at: int
    last_user_id: int
    outbox_id: int | None


COLUMNS = [f"comment.{f.name}" for f in fields(Comment) if f.name not in ("page_url", "role")]
COMMENT = f"""
    SELECT {", ".join(COLUMNS)}, page.page_url, coalesce(account.role, '') AS role
      FROM comment
      JOIN page ON page.id = comment.page_id
      LEFT JOIN account ON account.id = comment.user_id
"""
CASE = COMMENT.replace("AS role", "AS role, coalesce(account.email, comment.email) AS email", 1)

# What moderators look through, the newest first.
CASES = {
    which: f"""{CASE}
     WHERE {listed} AND comment.content <> '' AND comment.id < :before
       AND (:page_id = 0 OR comment.page_id = :page_id)
       AND (:like = '' OR comment.content LIKE :like ESCAPE '!'
            OR comment.nickname LIKE :like ESCAPE '!' OR comment.email LIKE :like ESCAPE '!'
            OR account.email LIKE :like ESCAPE '!' OR comment.ip LIKE :like ESCAPE '!'
            OR page.page_url LIKE :like ESCAPE '!')
     ORDER BY comment.id DESC LIMIT :limit"""
    for which, listed in {
        "all": "true",
        "reported": "comment.id IN (SELECT comment_id FROM report)",
        **dict.fromkeys(STATES, "comment.status = :status"),
    }.items()
}
# Notifications that wait for no email, of comments that their recipients may read. None waits for
# longer than an hour: where it seems so, the clock was ahead.
DUE = f"""
    outbox_id IS NULL AND due_at NOT BETWEEN :now + 1 AND :now + {HOUR}
       AND (comment.status = 'visible' OR (comment.status = 'waiting' AND kind = 'owner'))"""
# The visible comments of an author, up to a hundred. A guest is known by his name together with
# his address, or its network where that was masked since; an e-mail proves nothing.
KNOWN = """
    SELECT count(*) FROM (
        SELECT id FROM comment
         WHERE user_id = :user_id AND status = 'visible' AND id <> :id
        UNION ALL
        SELECT id FROM comment
         WHERE nickname = :nickname AND status = 'visible' AND id <> :id
           AND user_id IS NULL AND :user_id IS NULL
           AND ip IN (:ip, :network)
         LIMIT 100
    ) AS known"""
PAGES = {
    sort: f"""
    SELECT * FROM page WHERE :like = '' OR page_url LIKE :like ESCAPE '!'
     ORDER BY {order} LIMIT :limit OFFSET :skip"""
    for sort, order in {
        "latest": "id DESC",
        "views": "views DESC, id DESC",
        "comments": "total DESC, id DESC",
    }.items()
}
# No number grows beyond what JavaScript can count to (2^53): where a file was spoilt, the next sum
# would be none that SQLite can keep.
COUNTED = {
    what: f"""
    INSERT INTO day AS d (day, {what}) VALUES ((:now + 28800) / 86400, :more)
        ON CONFLICT (day) DO UPDATE SET {what} = d.{what} + excluded.{what}
     WHERE d.{what} BETWEEN -9007199254740992 AND 9007199254740992"""
    for what in ("comments", "views", "likes")
}
LIKE = {
    what: f"""
    INSERT INTO {what}_liker ({what}_id, visitor, liked_at) VALUES (:id, :visitor, :liked_at)
        ON CONFLICT DO NOTHING"""
    for what in ("comment", "page")
}
UNLIKE = {w: f"DELETE FROM {w}_liker WHERE {w}_id = :id AND visitor = :visitor" for w in LIKE}
LIKED = {
    "comment": "UPDATE comment SET likes = likes + :more WHERE id = :id RETURNING likes",
    "page": """
    UPDATE page SET page_likes = page_likes + :more, seen_at = :now
     WHERE id = :id RETURNING page_likes""",
}

# What a list holds, the order of each sort, and what stands before a given comment in it.
LISTED = {
    "flat": "page_id = :of AND status = 'visible'",
    "threads": "page_id = :of AND shown = 1 AND parent_id IS NULL AND pinned = 0",
    "thread": "thread_id = :of AND shown = 1",
}
ORDER = {
    "newest": ("comment.created_at DESC, comment.id DESC", "(created_at, id) > (:created_at, :id)"),
    "oldest": ("comment.created_at, comment.id", "(created_at, id) < (:created_at, :id)"),
    "likes": (
        "comment.likes DESC, comment.created_at DESC, comment.id DESC",
        "(likes, created_at, id) > (:likes, :created_at, :id)",
    ),
}
# What stands behind a given comment in it, and what is behind none.
BEHIND = {sort: before.translate(str.maketrans("<>", "><")) for sort, (_, before) in ORDER.items()}
FIRST = {"newest": 2**63 - 1, "oldest": -(2**63), "likes": 2**63 - 1}
# The ids come from an index alone, and from a step near by, so that what a deep page skips is
# neither read nor counted.
STEP = 500
LISTS = {
    (view, sort): f"""{COMMENT} WHERE comment.id IN (
        SELECT id FROM comment WHERE {listed} AND {BEHIND[sort]}
         ORDER BY {order} LIMIT :limit OFFSET :skip
    ) ORDER BY {order}"""
    for view, listed in LISTED.items()
    for sort, (order, _) in ORDER.items()
}
STEPS = {
    (view, sort): f"""
    SELECT likes, created_at, id FROM comment WHERE {listed} AND {BEHIND[sort]}
     ORDER BY {order} LIMIT 1 OFFSET {STEP - 1}"""
    for view, listed in LISTED.items()
    for sort, (order, _) in ORDER.items()
}
BEFORE = {
    (view, sort): f"SELECT count(*) FROM comment WHERE {listed} AND {before}"
    for view, listed in LISTED.items()
    for sort, (_, before) in ORDER.items()
}

Row = TypeVar("Row")

# What SQLite says when the machine is at fault, not the program (sqlite.org/rescode.html):
# busy, locked, out of memory, read-only, interrupted, input/output, corrupt, full, can't open,
# protocol, not a database.
MACHINE_FAULTS = {5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 26}
DAMAGE = {11, 26}
# SQLITE_FULL, and SQLITE_IOERR, which some file systems give instead.
NO_ROOM = {13, 10}
ROOM = 64 * 1024  # bytes that a write may need: as long as a request can be


@contextlib.contextmanager
def holding(seat: Any, wait: float, late: Problem) -> Iterator[None]:
    """A lock, or a seat of a semaphore, if it is had within so many seconds."""
    if not seat.acquire(timeout=wait):
        raise late
    try:
        yield
    finally:
        seat.release()


SEARCH_SECONDS = 2  # that a search may take


class Store:
    """All that is kept. Questions are nouns, orders are verbs; orders need `writing()`."""

    def __init__(
        self, path: Path, keep: Callable[[str], Path] | None = None, *, beside: bool = False
    ) -> None:
        """`keep` makes a copy before a migration. `beside`: for a command, which may work on the
        file while the service does."""
        inspect(path)
        if beside and not path.exists():
            raise SchemaFault(f"{path}: there is no such database yet; the first start makes it")
        self.path, self.damaged, self.beside = str(path), False, beside
        self.stale = False  # whether something that was erased is still in the -wal
        self.cramped = False  # whether a write was refused for want of room
        self.lock, self.local = threading.Lock(), threading.local()
        self.seats = threading.Semaphore(8)
        # The number of writes after which readers may see something else, views aside.
        self.changes = 0
        self.data_version = 0
        self.steps: dict[tuple[str, str, int], tuple[int, list[Json]]] = {}
        self.opened: list[sqlite3.Connection] = []
        self.turns = lock_beside(path, "-turn")
        self.locks = [self.turns]
        try:
            # 11 µs a turn; where SQLite has to look for a journal it is 47.
            self.turns.execute("PRAGMA journal_mode = MEMORY")
            if not beside:
                self.locks.append(alone(path))
            if not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            # While `restore` has the turn, a command would open the file that it replaces.
            with self.turn() if beside else contextlib.nullcontext():
                self.opened.append(connect(self.path))
            self.writer = self.opened[0]
            self.bring_up_to_date(keep, beside)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | sqlite3.Error):
                raise SchemaFault(f"{path} can't be written: {one_line(str(error))}") from None
            raise

    def bring_up_to_date(self, keep: Callable[[str], Path] | None, beside: bool) -> None:
        version = version_of(self.writer)
        if beside and version < len(MIGRATIONS):
            raise SchemaFault(f"{self.path} is of an older commentd: start the service once")
        copy = keep(f"-schema{version}") if keep and 0 < version < len(MIGRATIONS) else None
        if copy:
            log.info("the database is brought up to date; as it was, it is kept in %s", copy)
        try:
            migrate(self.writer)
        except BaseException:
            with contextlib.suppress(OSError, sqlite3.Error):
                # Whoever keeps the service running starts it again and again.
                if copy and version_of(self.writer) == version:
                    copy.unlink()
            raise

    @property
    def db(self) -> sqlite3.Connection:
        """The writer inside `writing()`, else this thread's own reader."""
        if getattr(self.local, "writing", False):
            return self.writer
        if not hasattr(self.local, "reader"):
            self.local.reader = connect(self.path)
            self.local.reader.execute("PRAGMA query_only = ON")
            # One a thread: usual caches would hold 32 MB of what the system has in memory anyway.
            self.local.reader.execute("PRAGMA cache_size = -256")
            self.opened.append(self.local.reader)
        reader: sqlite3.Connection = self.local.reader
        return reader

    @contextlib.contextmanager
    def writing(self, *, only_views: bool = False) -> Iterator[None]:
        """One transaction. IMMEDIATE, since a deferred one that reads and then writes fails
        at once when another has written in between. `Unavailable` when the machine fails.
        `only_views`: what it changes is no change to readers, who may see it later."""
        with self.turn(), self.machine_faults():
            if self.damaged:
                raise Unavailable("数据库已损坏，请联系站长", "storage")
            rows_before = self.writer.total_changes
            try:
                with self.writer:
                    self.writer.execute("BEGIN IMMEDIATE")
                    self.local.writing = True
                    self.look_for_others()
                    yield
            finally:
                self.local.writing = False
                # After the commit: a response with the new number is made of the new rows.
                if self.writer.total_changes > rows_before and not only_views:
                    self.changes += 1

    def look_for_others(self) -> None:
        """A command may have written beside the service: asked with each write, and so each
        second (sqlite.org/pragma.html#pragma_data_version)."""
        version = self.writer.execute("PRAGMA data_version").fetchone()[0]
        if version != self.data_version:
            self.changes += 1
        self.data_version = version

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """A turn of the writer. Eight may wait for one, so that the others are soon told to come
        later when another program holds the file; nobody waits longer than SQLite does."""
        late = Unavailable("暂时无法保存，请稍后再试", "storage")
        with holding(self.seats, 1, late), holding(self.lock, 5, late):
            with self.machine_faults():
                # Commands may write beside the service: two writers at one moment can spoil a
                # WAL database before SQLite 3.51.3 (sqlite.org/wal.html#walresetbug).
                self.turns.execute("BEGIN EXCLUSIVE")
            try:
                yield
            finally:
                self.turns.rollback()

    @contextlib.contextmanager
    def machine_faults(self) -> Iterator[None]:
        """A full disk, a lock that is held, damage: the caller may try again later."""
        try:
            yield
        except (sqlite3.Error, MemoryError) as error:
            unnamed = sqlite3.SQLITE_NOMEM if isinstance(error, MemoryError) else 1
            code = getattr(error, "sqlite_errorcode", unnamed) & 0xFF
            if code not in MACHINE_FAULTS:
                raise
            if code in DAMAGE and not self.damaged:
                self.damaged = True
                log.critical("the database is damaged, so nothing is written any more: %s", error)
            self.cramped = self.cramped or code in NO_ROOM
            log.error("the database failed: %s", error)
            raise Unavailable("暂时无法保存，请稍后再试", "storage") from None

    def close(self) -> None:
        """Ends all connections, the writer last: it empties the -wal into the file."""
        with self.lock:
            # The readers first: the -wal can't be emptied while one of them reads.
            for db in self.opened[1:]:
                db.close()
            # It may be closed already, or never have been opened.
            with contextlib.suppress(sqlite3.Error, IndexError, MemoryError):
                if self.beside:  # the service, whose turn this is, is not to wait for others
                    self.opened[0].execute("PRAGMA busy_timeout = 0")
                self.turns.execute("BEGIN EXCLUSIVE")
                # Not by the last close alone: a command may have the file open.
                self.opened[0].execute("PRAGMA wal_checkpoint(TRUNCATE)")
            for db in [*self.opened[:1], *self.locks]:
                db.close()
            self.opened.clear()

    def empty_wal(self) -> None:
        """What was erased stays in the -wal until that is written over. Readers are not waited for:
        the next time will do."""
        with self.turn(), self.machine_faults():
            self.writer.execute("PRAGMA busy_timeout = 0")
            try:
                busy, *_ = self.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                self.writer.execute("PRAGMA busy_timeout = 5000")
            self.stale = bool(busy)

    def run(self, sql: str, **values: Any) -> sqlite3.Cursor:
        return self.db.execute(sql, values)

    def rows(self, sql: str, **values: Any) -> list[sqlite3.Row]:
        """All rows of a statement; to the end, since an open cursor holds back the checkpoint."""
        return self.run(sql, **values).fetchall()

    def search(self, sql: str, **values: Any) -> list[sqlite3.Row]:
        """As above, but not for long: it looks at every text. `BadRequest` where it takes too
        long."""
        ends = time.monotonic() + SEARCH_SECONDS
        self.db.set_progress_handler(lambda: time.monotonic() > ends, 10_000)
        try:
            return self.run(sql, **values).fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            text = "搜索太慢，请换一个词，或限定页面和状态"
            raise BadRequest(text, "search_slow") from None
        finally:
            self.db.set_progress_handler(None, 0)

    def number(self, sql: str, **values: Any) -> int | None:
        """The one number that a statement gives, None where it gives no row."""
        rows = self.rows(sql, **values)
        return rows[0][0] if rows else None

    def one(self, kind: type[Row], sql: str, /, **values: Any) -> Row | None:
        rows = self.all(kind, sql, **values)
        return rows[0] if rows else None

    def all(self, kind: type[Row], sql: str, /, **values: Any) -> list[Row]:
        return [kind(**dict(row)) for row in self.rows(sql, **values)]

    def examine_room(self) -> None:
        """After a write was refused for want of room: `Unavailable` until a long comment could be
        written. What is smaller, or written over, still succeeds on a full disk."""
        if not self.cramped:
            return
        with self.writing():
            sql = """
                INSERT OR REPLACE INTO budget (name, subject, used, ends_at)
                VALUES ('room', hex(zeroblob(:bytes / 2)), 0, 0)"""
            self.run(sql, bytes=ROOM)
        with self.writing():
            self.run("DELETE FROM budget WHERE name = 'room'")
        self.cramped = False

    # Secrets, budgets, captchas

    def secret(self, name: str, make: Callable[[], str]) -> str:
        """The secret of that name, made and kept at the first question."""
        with self.writing():
            row = self.run("SELECT value FROM secret WHERE name = :name", name=name).fetchone()
            if row is None:
                if self.number("SELECT max(id) FROM account"):
                    raise SchemaFault(f"{self.path} has accounts but no key: set [token] key")
                sql = "INSERT INTO secret (name, value) VALUES (:name, :value) RETURNING value"
                row = self.run(sql, name=name, value=make()).fetchone()
            return str(row["value"])

    def take(self, name: str, subject: str, most: int, window: int, now: int) -> int:
        """Take one of `most` in `window` seconds: 0, or the seconds until there is one again.

        One statement, so that no two can take the last one. A window that ends further ahead
        than it is long was made by a clock that went wrong: it is begun anew."""
        sql = """
            INSERT INTO budget AS b (name, subject, used, ends_at)
            VALUES (:name, :subject, 1, :now + :window)
                ON CONFLICT (name, subject) DO UPDATE
               SET used = CASE WHEN b.ends_at BETWEEN :now + 1 AND :now + :window
                               THEN b.used + 1 ELSE 1 END,
                   ends_at = CASE WHEN b.ends_at BETWEEN :now + 1 AND :now + :window
                                  THEN b.ends_at ELSE excluded.ends_at END
             WHERE b.used < :most OR b.ends_at NOT BETWEEN :now + 1 AND :now + :window
            RETURNING used"""
        if self.number(sql, name=name, subject=subject, most=most, window=window, now=now):
            return 0
        sql = "SELECT ends_at FROM budget WHERE name = :name AND subject = :subject"
        return (self.number(sql, name=name, subject=subject) or now + 1) - now

    def wait_for(self, name: str, subject: str, most: int, window: int, now: int) -> int:
        """What `take` would say; nothing is taken."""
        sql = """
            SELECT ends_at - :now FROM budget
             WHERE name = :name AND subject = :subject AND used >= :most
               AND ends_at BETWEEN :now + 1 AND :now + :window"""
        values = {"name": name, "subject": subject, "most": most, "window": window}
        return self.number(sql, **values, now=now) or 0

    def give_back(self, name: str, subject: str) -> None:
        """One that was taken in advance was not needed."""
        sql = """
            UPDATE budget SET used = used - 1
             WHERE name = :name AND subject = :subject AND used > 0"""
        self.run(sql, name=name, subject=subject)

    def spend_captcha(self, signature: str, expires_at: int) -> bool:
        """False when it was spent before."""
        sql = """
            INSERT INTO spent_captcha (signature, expires_at) VALUES (:signature, :expires_at)
                ON CONFLICT (signature) DO NOTHING"""
        return self.run(sql, signature=signature, expires_at=expires_at).rowcount == 1

    def is_spent(self, signature: str) -> bool:
        sql = "SELECT 1 FROM spent_captcha WHERE signature = :signature"
        return bool(self.number(sql, signature=signature))

    def bind_captcha(self, signature: str, comment_id: int) -> None:
        sql = "UPDATE spent_captcha SET comment_id = :comment_id WHERE signature = :signature"
        self.run(sql, comment_id=comment_id, signature=signature)

    # Accounts and registrations

    def account(self, user_id: int) -> Account | None:
        return self.one(Account, "SELECT * FROM account WHERE id = :id", id=user_id)

    def account_of(self, email: str) -> Account | None:
        return self.one(Account, "SELECT * FROM account WHERE email = :email", email=email)

    def admins(self) -> list[Account]:
        """Those who may moderate."""
        return self.all(Account, "SELECT * FROM account WHERE role = 'admin' AND blocked = 0")

    def accounts(self, like: str, before: int, limit: int) -> list[sqlite3.Row]:
        """With the number of their visible comments, the newest first."""
        sql = """
            SELECT account.id, email, nickname, role, blocked, created_at,
                   (SELECT count(*) FROM comment
                     WHERE comment.user_id = account.id AND status = 'visible') AS comments
              FROM account
             WHERE account.id < :before
               AND (:like = '' OR email LIKE :like ESCAPE '!' OR nickname LIKE :like ESCAPE '!')
             ORDER BY account.id DESC LIMIT :limit"""
        return self.search(sql, like=like, before=before, limit=limit)

    def set_rights(self, user_id: int, role: str, blocked: bool, *, less: bool) -> None:
        """With `less`, tokens and links of before end: what is taken away shall not live again."""
        sql = """
            UPDATE account SET role = :role, blocked = :blocked, version = version + :less
             WHERE id = :id"""
        self.run(sql, role=role, blocked=int(blocked), less=int(less), id=user_id)
        if role == "admin":
            self.run(UNCLAIM, id=user_id)
        sql = """
            DELETE FROM admin_link
             WHERE email = (SELECT email FROM account WHERE id = :id) AND :less = 1"""
        self.run(sql, id=user_id, less=int(less))

    def add_admin_link(self, hash: str, email: str, expires_at: int) -> None:
        """In the place of older ones for the same address; "" is whoever comes first."""
        self.run("DELETE FROM admin_link WHERE email = :email", email=email)
        sql = "INSERT INTO admin_link (hash, email, expires_at) VALUES (:hash, :email, :expires_at)"
        self.run(sql, hash=hash, email=email, expires_at=expires_at)

    def admin_link(self, hash: str, now: int) -> str | None:
        """The address that a link was made for. One for anybody ends when there is an admin."""
        sql = """
            SELECT email FROM admin_link
             WHERE hash = :hash AND expires_at > :now AND expires_at <= :now + 3600
               AND (email <> '' OR NOT EXISTS (SELECT 1 FROM account WHERE role = 'admin'))"""
        rows = self.rows(sql, hash=hash, now=now)
        return rows[0]["email"] if rows else None

    def make_admin(self, email: str, nickname: str, password: str, now: int) -> Account:
        """Make the account, or give it the role and the password; older tokens and all links that
        were made for it or for anybody end."""
        self.run("DELETE FROM registration WHERE email = :email", email=email)
        self.run("DELETE FROM admin_link WHERE email IN ('', :email)", email=email)
        sql = """
            INSERT INTO account AS a (email, nickname, password, role, created_at)
            VALUES (:email, :nickname, :password, 'admin', :now)
                ON CONFLICT (email) DO UPDATE
               SET password = excluded.password, role = 'admin', blocked = 0,
                   version = a.version + 1
            RETURNING *"""
        values = {"email": email, "nickname": nickname, "password": password, "now": now}
        account = self.all(Account, sql, **values)[0]
        self.run(UNCLAIM, id=account.id)
        return account

    def end_tokens(self, user_id: int) -> None:
        """Every token that was given out for the account is void from now on."""
        self.run("UPDATE account SET version = version + 1 WHERE id = :id", id=user_id)

    def set_password(self, user_id: int, password: str) -> None:
        """The same password, hashed anew: tokens go on."""
        sql = "UPDATE account SET password = :password WHERE id = :id"
        self.run(sql, password=password, id=user_id)

    def registrations(self, email: str) -> list[Registration]:
        """What waits at the address, also with a code that has expired."""
        sql = "SELECT * FROM registration WHERE email = :email ORDER BY id"
        return self.all(Registration, sql, email=email)

    def has_room(self, email: str, client: str, request_id: str, now: int) -> bool:
        """Whether one more registration may wait. Three of strangers may; none of them is driven
        out, while a client's own gives way to its next one."""
        alive = [r for r in self.registrations(email) if r.created_at <= now < r.expires_at]
        return len([r for r in alive if client != r.client and request_id != r.request_id]) < 3

    def add_registration(self, older: str, **values: Any) -> int:
        """In place of what the client has waiting there, or what waits under the id `older`."""
        sql = """
            DELETE FROM registration
             WHERE email = :email AND (client = :client OR request_id = :older)"""
        self.run(sql, email=values["email"], client=values["client"], older=older)
        sql = """
            INSERT INTO registration
                   (request_id, email, nickname, password, code, client, created_at, expires_at)
            VALUES (:request_id, :email, :nickname, :password, :code, :client, :created_at,
                    :expires_at)
            RETURNING id"""
        return self.number(sql, **values) or 0

    def revise(self, email: str, request_id: str, nickname: str, password: str) -> bool:
        """Change what a waiting registration will make, its code unchanged."""
        sql = """
            UPDATE registration SET nickname = :nickname, password = :password
             WHERE email = :email AND request_id = :request_id"""
        values = {"nickname": nickname, "password": password}
        return self.run(sql, email=email, request_id=request_id, **values).rowcount == 1

    def tried(self, email: str, request_id: str, now: int) -> list[Registration]:
        """Take a try from each code that a guess is judged by, and tell which those are. Tries
        that name the request are counted apart: else strangers could use them up.

        One statement takes and asks, so that five tries are five however many come at once.
        A code from the future was made before the clock was set back: it counts as expired,
        else it would live longer than it should."""
        sql = """
            UPDATE registration SET tries = tries + 1
             WHERE email = :email AND tries + named_tries < 5
               AND created_at <= :now AND expires_at > :now
            RETURNING *"""
        if request_id:
            sql = """
                UPDATE registration SET named_tries = named_tries + 1
                 WHERE email = :email AND request_id = :request_id AND named_tries < 5
                   AND created_at <= :now AND expires_at > :now
                RETURNING *"""
        return self.all(Registration, sql, email=email, request_id=request_id, now=now)

    def confirm(self, registration: Registration, now: int) -> Account:
        """Make the account, or give it its new nickname and password; ends its older tokens
        and all that waits at the address, letters with codes included."""
        sql = """
            INSERT INTO account AS a (email, nickname, password, created_at)
            VALUES (:email, :nickname, :password, :now)
                ON CONFLICT (email) DO UPDATE
               SET nickname = excluded.nickname, password = excluded.password,
                   version = a.version + 1
            RETURNING *"""
        account = self.all(Account, sql, **{**vars(registration), "now": now})[0]
        self.run("DELETE FROM registration WHERE email = :email", email=registration.email)
        return account

    # Pages

    def page(self, key: str) -> Page | None:
        return self.one(Page, "SELECT * FROM page WHERE key = :key", key=key)

    def add_page(self, key: str, page_url: str, now: int, opened_at: int | None = None) -> Page:
        sql = """
            INSERT INTO page (key, page_url, seen_at, opened_at)
            VALUES (:key, :page_url, :now, coalesce(:opened_at, :now))
            RETURNING *"""
        values = {"key": key, "page_url": page_url, "now": now, "opened_at": opened_at}
        return self.all(Page, sql, **values)[0]

    def page_with(self, page_id: int) -> Page | None:
        return self.one(Page, "SELECT * FROM page WHERE id = :id", id=page_id)

    def pages(self, sort: str, like: str, skip: int, limit: int) -> list[Page]:
        found = self.search(PAGES[sort], like=like, skip=skip, limit=limit)
        return [Page(**dict(row)) for row in found]

    def set_closed(self, page_id: int, closed: bool, now: int) -> None:
        """A page that is reopened is new again."""
        sql = "UPDATE page SET closed = :closed, opened_at = :now WHERE id = :id"
        self.run(sql, closed=int(closed), now=now, id=page_id)

    def rename_page(self, page: Page, key: str, page_url: str) -> Page:
        """Another address; where a page has it, that one takes in all of this one."""
        there = self.page(key)
        if there is None or there.id == page.id:
            sql = "UPDATE page SET key = :key, page_url = :page_url WHERE id = :id"
            self.run(sql, key=key, page_url=page_url, id=page.id)
            return replace(page, key=key, page_url=page_url)
        for sql in MERGES:
            self.run(sql, old=page.id, new=there.id)
        return self.page(key) or there

    def add_views(self, key: str, views: int, now: int) -> bool:
        """False when there is no such page."""
        sql = """
            UPDATE page SET seen_at = :now, views = views
                   + CASE WHEN views < 9007199254740992 THEN :views ELSE 0 END
             WHERE key = :key"""
        found = self.run(sql, key=key, views=views, now=now).rowcount == 1
        if found:
            self.run(COUNTED["views"], more=views, now=now)
        return found

    # Comments

    def comment(self, comment_id: int) -> Comment | None:
        return self.one(Comment, COMMENT + " WHERE comment.id = :id", id=comment_id)

    def comments(
        self, view: str, sort: str, skip: int, limit: int, of: int, total: int = 0
    ) -> list[Comment]:
        """A stretch of a list: `flat` or `threads` of a page, `thread` of a top-level comment.
        With the total known, what lies deep is reached from the nearer end."""
        opposite = {"newest": "oldest", "oldest": "newest"}.get(sort)
        if opposite and total < 2 * skip and skip + limit <= total:
            return self.comments(view, opposite, total - skip - limit, limit, of)[::-1]
        if (last := self.step(view, sort, of, skip // STEP)) is None:
            return []
        values = {**last, "of": of, "skip": skip % STEP, "limit": limit}
        return self.all(Comment, LISTS[view, sort], **values)

    def step(self, view: str, sort: str, of: int, number: int) -> Json | None:
        """The last comment of so many steps of a list, or None where it is shorter. It is known
        until something is written."""
        began, steps = self.steps.get((view, sort, of), (0, []))
        if not steps or began != self.changes:
            began = self.changes
            steps = [dict.fromkeys(("likes", "created_at", "id"), FIRST[sort])]
        while len(steps) <= number:
            if not (found := self.rows(STEPS[view, sort], of=of, **steps[-1])):
                return None
            steps = [*steps, dict(found[0])]  # a list of its own: others may be at it
        if number:
            self.steps = {} if len(self.steps) > 100 else self.steps
            self.steps[view, sort, of] = began, steps
        return steps[number]

    def latest_comments(self, limit: int) -> list[Comment]:
        sql = """ -- the keys of other sites' pages begin with two slashes
             WHERE comment.status = 'visible' AND page.key LIKE '/%' AND page.key NOT LIKE '//%'
             ORDER BY comment.id DESC LIMIT :limit"""
        return self.all(Comment, COMMENT + sql, limit=limit)

    def count_before(self, view: str, sort: str, comment: Comment) -> int:
        of = comment.thread_id if view == "thread" else comment.page_id
        return self.number(BEFORE[view, sort], of=of, **vars(comment)) or 0

    def count_replies(self, thread_id: int) -> int:
        sql = "SELECT count(*) FROM comment WHERE thread_id = :id AND shown = 1"
        return self.number(sql, id=thread_id) or 0

    def same_comment(self, since: int, now: int, **values: Any) -> Comment | None:
        """A comment of the same author with the same text in the same place."""
        sql = """
             WHERE comment.page_id = :page_id AND comment.status <> 'deleted'
               AND comment.created_at BETWEEN :since AND :now AND comment.content = :content
               AND coalesce(comment.parent_id, 0) = coalesce(:parent_id, 0)
               AND coalesce(comment.user_id, 0) = coalesce(:user_id, 0)
               AND comment.nickname = :nickname
               AND (comment.ip = :ip OR comment.user_id IS NOT NULL)"""
        return self.one(Comment, COMMENT + sql, since=since, now=now, **values)

    def spent_on(self, signature: str) -> Comment | None:
        sql = """
             WHERE comment.id =
                   (SELECT comment_id FROM spent_captcha WHERE signature = :signature)"""
        return self.one(Comment, COMMENT + sql, signature=signature)

    def add_comment(self, status: str, **values: Any) -> Comment:
        none = {"held": "", "language": "", "edited_at": None, "pinned": 0, "masked": 0, "id": 0}
        none["now"] = values["created_at"]
        values = {**none, **values}
        free = values["id"] and not self.comment(values["id"])
        comment_id = self.number(ADD_COMMENT_AS if free else ADD_COMMENT, **values) or 0
        self.run(COUNTED["comments"], more=1, now=values["created_at"])
        self.judge(comment_id, status, values["now"])
        return self.all(Comment, COMMENT + " WHERE comment.id = :id", id=comment_id)[0]

    def edit_comment(self, comment_id: int, content: str, html: str, now: int) -> None:
        sql = "UPDATE comment SET content = :content, html = :html, edited_at = :now WHERE id = :id"
        self.run(sql, content=content, html=html, now=now, id=comment_id)
        self.withdraw([comment_id])

    def case(self, comment_id: int) -> Case | None:
        return self.one(Case, CASE + " WHERE comment.id = :id", id=comment_id)

    def cases(self, status: str, like: str, page_id: int, before: int, limit: int) -> list[Case]:
        """What a moderator looks for; `status` may be `all`, which is all that is not erased, or
        `reported`."""
        words = {"status": status, "like": like, "page_id": page_id, "before": before}
        found = self.search(CASES[status], **words, limit=limit)
        return [Case(**dict(row)) for row in found]

    def cases_with(self, ids: Iterable[int]) -> dict[int, Case]:
        """Those that are there, by number."""
        sql = CASE + " WHERE comment.id IN (SELECT value FROM json_each(:ids))"
        return {case.id: case for case in self.all(Case, sql, ids=json.dumps([*ids]))}

    def count_known(self, network: str, **values: Any) -> int:
        return self.number(KNOWN, network=network, **values) or 0

    def count_states(self) -> dict[str, int]:
        # From the index alone, but for what is deleted, of which only some is not erased.
        sql = """
            SELECT status, count(*) AS n FROM comment WHERE status <> 'deleted' GROUP BY status
             UNION ALL
            SELECT 'deleted', count(*) FROM comment WHERE status = 'deleted' AND content <> ''"""
        counts = {row["status"]: row["n"] for row in self.rows(sql)}
        sql = "SELECT count(*) FROM (SELECT comment_id FROM report GROUP BY comment_id) AS found"
        return {**dict.fromkeys(STATES, 0), **counts, "reported": self.number(sql) or 0}

    def pinned(self, page_id: int) -> list[Comment]:
        """What stands on top of a page, the newest first."""
        sql = """
             WHERE comment.page_id = :id AND comment.pinned = 1 AND comment.parent_id IS NULL
             ORDER BY comment.id DESC"""
        return self.all(Comment, COMMENT + sql, id=page_id)

    def pin(self, comment_id: int, pinned: bool) -> None:
        sql = "UPDATE comment SET pinned = :pinned WHERE id = :id"
        self.run(sql, pinned=int(pinned), id=comment_id)

    def rewrite(self, comment_id: int, nickname: str, website: str) -> None:
        sql = "UPDATE comment SET nickname = :nickname, website = :website WHERE id = :id"
        self.run(sql, nickname=nickname, website=website, id=comment_id)
        self.withdraw([comment_id])

    def judge(self, comment_id: int, status: str, now: int, held: str | None = None) -> None:
        """Show or hide a comment; the sums of its page and its parents follow. What is hidden for
        good goes after a time."""
        old = self.comment(comment_id)
        if old is None:
            return
        sql = """
            UPDATE comment
               SET status = :status, judged_at = :judged_at, held = coalesce(:held, held),
                   pinned = CASE WHEN :status = 'visible' THEN pinned ELSE 0 END
             WHERE id = :id"""
        judged_at = now if status in ("spam", "deleted") else None
        self.run(sql, id=old.id, status=status, judged_at=judged_at, held=held)
        more = (status == "visible") - (old.status == "visible")
        sql = "UPDATE page SET total = total + :more WHERE id = :page_id"
        self.run(sql, more=more, page_id=old.page_id)
        self.settle([comment_id])
        if status not in ("visible", old.status):
            self.withdraw([comment_id], from_owners=status != "waiting")
        if status in ("spam", "deleted"):
            self.run("DELETE FROM outbox WHERE comment_id = :id", id=comment_id)

    def erase_comment(self, comment_id: int) -> None:
        self.erase_comments([comment_id])

    def erase_comments(self, ids: Iterable[int]) -> None:
        """Nothing of them or their authors is left; what replies to them keeps its place."""
        ids = [*ids]
        numbers = json.dumps(ids)
        self.withdraw(ids)
        for sql in ERASE_COMMENTS:
            self.run(sql, ids=numbers)
        self.settle(ids)

    def erase_judged(self, before: int) -> bool:
        """Some of what was hidden for good; whether there may be more."""
        ids = [row["id"] for row in self.rows(JUDGED, before=before)]
        self.erase_comments(ids)
        for comment_id in ids:
            sql = "UPDATE spent_captcha SET comment_id = NULL WHERE comment_id = :id"
            self.run(sql, id=comment_id)
            self.run(LEAF, id=comment_id)
        return len(ids) == 200

    def settle(self, ids: Iterable[int]) -> None:
        """Set `shown` where it is stale, from some comments upwards: a parent changes only when
        what it holds appears or goes."""
        flip = """
            UPDATE comment SET shown = 1 - shown
             WHERE id IN (SELECT value FROM json_each(:ids))
               AND shown <> CASE WHEN status = 'visible' OR replies > 0 THEN 1 ELSE 0 END
            RETURNING page_id, parent_id, 2 * shown - 1 AS more"""
        while ids and (flipped := self.rows(flip, ids=json.dumps([*ids]))):
            threads: dict[int, int] = {}
            replies: dict[int, int] = {}
            for page_id, parent_id, more in flipped:
                sums, changed = (replies, parent_id) if parent_id else (threads, page_id)
                sums[changed] = sums.get(changed, 0) + more
            sql = """
                UPDATE page SET threads = threads + more.value FROM json_each(:threads) AS more
                 WHERE page.id = CAST(more.key AS INTEGER)"""
            self.run(sql, threads=json.dumps(threads))
            sql = """
                UPDATE comment SET replies = replies + more.value FROM json_each(:replies) AS more
                 WHERE comment.id = CAST(more.key AS INTEGER)"""
            self.run(sql, replies=json.dumps(replies))
            ids = [*replies]

    # Likes

    def like(
        self, what: str, id: int, visitor: str, liked_at: int | None, undo: bool, now: int
    ) -> int:
        """The likes, with this visitor's or without; a like with a time forgets whose it is."""
        sql = LIKE[what]
        if undo:
            sql = UNLIKE[what]
        changed = self.run(sql, id=id, visitor=visitor, liked_at=liked_at).rowcount
        more = -changed if undo else changed
        self.run(COUNTED["likes"], more=more, now=now)
        return self.number(LIKED[what], more=more, now=now, id=id) or 0

    # Outbox

    def add_letter(self, **values: Any) -> int:
        none = {"registration_id": None, "comment_id": None, "event": "", "subscriber": ""}
        sql = """
            INSERT INTO outbox (registration_id, comment_id, event, subscriber, recipient, message,
                                created_at, due_at, expires_at)
            VALUES (:registration_id, :comment_id, :event, :subscriber, :recipient, :message,
                    :created_at, :due_at, :expires_at)
            RETURNING id"""
        return self.number(sql, **{**none, **values}) or 0

    def due_letter(self, now: int) -> Letter | None:
        """A code, else the one that waits longest of those whose time has come."""
        sql = """
            SELECT id, recipient, message, tries, expires_at, created_at, comment_id, event
              FROM outbox
             WHERE due_at <= :now AND registration_id IS NOT NULL ORDER BY due_at LIMIT 1"""
        if code := self.one(Letter, sql, now=now):
            return code
        sql = """
            SELECT id, recipient, message, tries, expires_at, created_at, comment_id, event
              FROM outbox
             WHERE due_at <= :now ORDER BY due_at LIMIT 1"""
        return self.one(Letter, sql, now=now)

    def next_due(self) -> int | None:
        return self.number("SELECT min(due_at) FROM outbox")

    def drop_letter(self, letter_id: int) -> bool:
        """One that was tried and did not go out, with the notifications that it carries."""
        sql = "DELETE FROM outbox WHERE id = :id AND tries > 0"
        return self.run(sql, id=letter_id).rowcount == 1

    def begin_try(self, letter: Letter, due_at: int, tries: int) -> bool:
        """Note when the next try is due. False if the email is gone or has changed."""
        sql = """
            UPDATE outbox SET tries = :tries, due_at = :due_at
             WHERE id = :id AND tries = :before AND due_at IS NOT NULL"""
        values = {"id": letter.id, "before": letter.tries, "tries": tries, "due_at": due_at}
        return self.run(sql, **values).rowcount == 1

    def end_letter(self, letter_id: int, carried: Iterable[int]) -> None:
        """It was sent. What it carried is told, also where the letter was withdrawn while it was
        on its way."""
        self.run("DELETE FROM outbox WHERE id = :id", id=letter_id)
        self.drop_notifications(carried)

    def put_off(self, recipient: str, now: int, due_at: int, tries: int = 0) -> None:
        """All that is due to one who can't be reached, with the pauses of what was tried."""
        sql = """
            UPDATE outbox SET due_at = :due_at,
                   tries = CASE WHEN tries < :tries THEN :tries ELSE tries END
             WHERE recipient = :recipient AND due_at <= :now"""
        self.run(sql, recipient=recipient, now=now, due_at=due_at, tries=tries)

    def note_failure(self, letter_id: int, tries: int, failure: str) -> None:
        """Of that try: the owner may have asked for another meanwhile."""
        sql = "UPDATE outbox SET failure = :failure WHERE id = :id AND tries = :tries"
        self.run(sql, failure=failure, id=letter_id, tries=tries)

    def fail_letter(self, letter_id: int, tries: int, failure: str, expires_at: int) -> None:
        """Given up, until the owner tries again. A code goes: it is no good any more."""
        sql = """
            UPDATE outbox SET due_at = NULL, failure = :failure, expires_at = :expires_at,
                   message = CASE WHEN registration_id IS NULL THEN message ELSE '' END
             WHERE id = :id AND tries = :tries"""
        self.run(sql, failure=failure, expires_at=expires_at, id=letter_id, tries=tries)

    def stuck_letters(self) -> list[sqlite3.Row]:
        sql = """
            SELECT id, recipient, tries, failure, due_at, registration_id IS NULL AS can_retry,
                   CASE WHEN registration_id IS NULL AND event = '' THEN message ELSE '' END
                   AS message
              FROM outbox
             WHERE tries > 0 ORDER BY id DESC LIMIT 200"""
        return self.rows(sql)

    def retry_letter(self, letter_id: int, now: int) -> bool:
        sql = """
            UPDATE outbox SET due_at = :now, tries = 0, failure = '', expires_at = :expires_at
             WHERE id = :id AND tries > 0 AND registration_id IS NULL"""
        return self.run(sql, id=letter_id, now=now, expires_at=now + DAY).rowcount == 1

    # Notifications

    def notify(self, comment_id: int, kinds: Iterable[str], now: int) -> None:
        """News of a comment; whom it concerns is looked up later, since there may be thousands."""
        sql = """
            INSERT INTO notification (comment_id, kind, recipient, due_at)
            SELECT :comment_id, value, '', :now FROM json_each(:kinds)
             WHERE true ON CONFLICT DO NOTHING"""
        self.run(sql, comment_id=comment_id, kinds=json.dumps([*kinds]), now=now)

    def notify_again(self, email: str, since: int) -> None:
        """Guests of the replies that they did not hear of, as they had not confirmed."""
        sql = """
            INSERT INTO notification (comment_id, kind, recipient, due_at)
            SELECT reply.id, 'author', :email, 1
              FROM comment CROSS JOIN comment AS reply ON reply.parent_id = comment.id
             WHERE comment.email = :email AND comment.email <> '' AND comment.user_id IS NULL
               AND reply.status = 'visible' AND reply.created_at > :since
                ON CONFLICT DO NOTHING"""
        self.run(sql, email=email, since=since)

    def unaddressed(self, now: int) -> Notification | None:
        """The next of which nobody has looked up whom it concerns."""
        sql = """
            SELECT notification.* FROM notification JOIN comment ON comment.id = comment_id
             WHERE kind IN ('owner', 'author', 'follower') AND recipient = '' AND """
        return self.one(Notification, sql + DUE + " LIMIT 1", now=now)

    def address(self, news: Notification, recipients: Iterable[str]) -> None:
        """A notification for each recipient, in place of one for all."""
        if self.run("DELETE FROM notification WHERE id = :id", id=news.id).rowcount:
            sql = """
                INSERT INTO notification (comment_id, kind, recipient, due_at)
                SELECT :comment_id, :kind, value, :due_at FROM json_each(:recipients)
                 WHERE true ON CONFLICT DO NOTHING"""
            self.run(sql, **{**vars(news), "recipients": json.dumps([*recipients])})

    def address_followers(self, news: Notification, page_id: int, most: int) -> None:
        """The same for some more of those who follow the page."""
        sql = """
            SELECT max(user_id) FROM (
                SELECT user_id FROM follow
                 WHERE page_id = :page_id AND user_id > :last_user_id
                 ORDER BY user_id LIMIT :most)"""
        values = {**vars(news), "page_id": page_id}
        last = self.number(sql, **values, most=most)
        if last is None:
            self.drop_notifications([news.id])
            return
        sql = "UPDATE notification SET last_user_id = :last WHERE id = :id"
        if self.run(sql, id=news.id, last=last).rowcount:
            sql = """
                INSERT INTO notification (comment_id, kind, recipient, due_at)
                SELECT :comment_id, 'follower', account.email, :due_at
                  FROM follow JOIN account ON account.id = follow.user_id
                 WHERE page_id = :page_id AND user_id > :last_user_id AND user_id <= :last
                    ON CONFLICT DO NOTHING"""
            self.run(sql, **values, last=last)

    def due_recipients(self, kind: str, now: int, most: int) -> list[str]:
        sql = """
            SELECT DISTINCT recipient FROM notification JOIN comment ON comment.id = comment_id
             WHERE kind = :kind AND recipient > '' AND """
        sql = sql + DUE + " ORDER BY recipient LIMIT :most"
        return [row["recipient"] for row in self.rows(sql, kind=kind, now=now, most=most)]

    def due_notifications(self, kind: str, recipient: str, now: int) -> list[Notification]:
        """The oldest that one recipient is to be sent in one email."""
        sql = """
            SELECT notification.* FROM notification JOIN comment ON comment.id = comment_id
             WHERE kind = :kind AND recipient = :recipient AND """
        sql = sql + DUE + " ORDER BY comment_id LIMIT 200"
        return self.all(Notification, sql, kind=kind, recipient=recipient, now=now)

    def pending(self, ids: Iterable[int]) -> set[int]:
        """Those of some notifications that are still to be told."""
        sql = """
            SELECT id FROM notification
             WHERE id IN (SELECT value FROM json_each(:ids)) AND outbox_id IS NULL"""
        return {row["id"] for row in self.rows(sql, ids=json.dumps([*ids]))}

    def postpone(self, ids: Iterable[int], due_at: int) -> None:
        sql = """
            UPDATE notification SET due_at = :due_at
             WHERE id IN (SELECT value FROM json_each(:ids))"""
        self.run(sql, ids=json.dumps([*ids]), due_at=due_at)

    def carry(self, ids: Iterable[int], letter_id: int) -> None:
        """An email in the outbox tells of these."""
        sql = """
            UPDATE notification SET outbox_id = :letter_id
             WHERE id IN (SELECT value FROM json_each(:ids))"""
        self.run(sql, ids=json.dumps([*ids]), letter_id=letter_id)

    def carried(self, letter_id: int) -> list[int]:
        sql = "SELECT id FROM notification WHERE outbox_id = :letter_id"
        return [row["id"] for row in self.rows(sql, letter_id=letter_id)]

    def drop_notifications(self, ids: Iterable[int]) -> None:
        sql = "DELETE FROM notification WHERE id IN (SELECT value FROM json_each(:ids))"
        self.run(sql, ids=json.dumps([*ids]))

    def end_owner_notifications(self, comment_id: int) -> None:
        """One of the owners has seen the comment; what is in the outbox goes out all the same."""
        sql = """
            DELETE FROM notification
             WHERE comment_id = :id AND kind = 'owner' AND outbox_id IS NULL"""
        self.run(sql, id=comment_id)

    def withdraw(self, ids: Iterable[int], *, from_owners: bool = True) -> None:
        """Emails that tell of some comments, or quote them above a reply, leave the outbox. What
        they tell of, these comments too, is told anew when it may be."""
        sql = """
            SELECT outbox_id FROM notification
             WHERE comment_id IN (SELECT value FROM json_each(:ids)) AND outbox_id IS NOT NULL
               AND (kind <> 'owner' OR :from_owners = 1)
             UNION ALL
            SELECT outbox_id FROM comment JOIN notification ON comment_id = comment.id
             WHERE parent_id IN (SELECT value FROM json_each(:ids)) AND outbox_id IS NOT NULL
               AND kind = 'author'"""
        found = self.rows(sql, ids=json.dumps([*ids]), from_owners=int(from_owners))
        letters = json.dumps([row["outbox_id"] for row in found])
        for sql in WITHDRAW:
            self.run(sql, letters=letters)
        self.stale = True

    # Moderation

    def blocks(self, now: int) -> list[Block]:
        sql = "SELECT * FROM block WHERE expires_at IS NULL OR expires_at > :now ORDER BY id DESC"
        return self.all(Block, sql, now=now)

    def add_block(self, **values: Any) -> Block:
        sql = """
            INSERT INTO block (kind, value, note, created_at, expires_at)
            VALUES (:kind, :value, :note, :created_at, :expires_at)
                ON CONFLICT (kind, value) DO UPDATE
               SET note = excluded.note, expires_at = excluded.expires_at
            RETURNING *"""
        return self.all(Block, sql, **values)[0]

    def drop_block(self, block_id: int) -> Block | None:
        return self.one(Block, "DELETE FROM block WHERE id = :id RETURNING *", id=block_id)

    def subscriptions(self, subscriber: str) -> dict[int, str]:
        """What was said of each page, and of all (0): yes, no, or asked."""
        sql = "SELECT page_id, state FROM subscription WHERE subscriber = :who"
        return {row["page_id"]: row["state"] for row in self.rows(sql, who=subscriber)}

    def subscribe(self, subscriber: str, page_id: int, state: str) -> None:
        sql = """
            INSERT INTO subscription (subscriber, page_id, state) VALUES (:who, :page_id, :state)
                ON CONFLICT (subscriber, page_id) DO UPDATE SET state = excluded.state"""
        self.run(sql, who=subscriber, page_id=page_id, state=state)

    # What the spam filter has learnt

    def tokens(self, hashes: list[int]) -> dict[int, tuple[int, int]]:
        """In how many good and bad comments each was; of 0, how many there were."""
        found = {}
        for start in range(0, len(hashes), len(TOKEN_NAMES)):
            some = dict.fromkeys(TOKEN_NAMES)
            some |= zip(TOKEN_NAMES, hashes[start:], strict=False)
            for row in self.rows(TOKENS, **some):
                found[row["hash"]] = max(0, row["ham"]), max(0, row["spam"])
        return found

    def learn(self, comment_id: int, kind: str, hashes: Iterable[int], now: int) -> None:
        rows = [{"hash": hash, "now": now} for hash in (0, *hashes)]
        self.db.executemany(LEARN[kind], rows)
        self.note_learnt(comment_id, kind)

    def unlearn(self, comment_id: int, kind: str, hashes: Iterable[int]) -> None:
        rows = [{"hash": hash} for hash in (0, *hashes)]
        self.db.executemany(UNLEARN[kind], rows)
        sql = "DELETE FROM token WHERE hash = :hash AND ham = 0 AND spam = 0"
        self.db.executemany(sql, rows)
        self.note_learnt(comment_id, "")

    def unlearn_ham(self, counts: Mapping[int, int]) -> None:
        """What many comments taught, by how often each hash was in them; of 0, how many they
        are."""
        sql = """
            UPDATE token SET ham = max(0, ham - gone.value) FROM json_each(:counts) AS gone
             WHERE token.hash = CAST(gone.key AS INTEGER)"""
        self.run(sql, counts=json.dumps(counts))
        sql = """
            DELETE FROM token WHERE ham = 0 AND spam = 0 AND hash IN
                   (SELECT CAST(key AS INTEGER) FROM json_each(:counts))"""
        self.run(sql, counts=json.dumps(counts))

    def note_learnt(self, comment_id: int, kind: str) -> None:
        self.run("UPDATE comment SET learnt = :kind WHERE id = :id", id=comment_id, kind=kind)

    def oldest_unlearnt(self, but: int) -> Comment | None:
        """Of those that readers see, and have seen for longest; not the one with the id `but`."""
        sql = """
             WHERE comment.id =
                   (SELECT min(id) FROM comment
                     WHERE learnt = '' AND status = 'visible' AND id <> :but)"""
        return self.one(Comment, COMMENT + sql, but=but)

    # What readers may have of their own

    def follow(self, user_id: int, page_id: int, language: str) -> None:
        sql = """
            INSERT INTO follow (user_id, page_id, language) VALUES (:user_id, :page_id, :language)
                ON CONFLICT (user_id, page_id) DO UPDATE SET language = excluded.language"""
        self.run(sql, user_id=user_id, page_id=page_id, language=language)

    def unfollow(self, user_id: int, page_id: int = 0) -> None:
        """A page, or all."""
        sql = """
            DELETE FROM follow WHERE user_id = :user_id AND (:page_id = 0 OR page_id = :page_id)"""
        self.run(sql, user_id=user_id, page_id=page_id)

    def followed(self, user_id: int) -> list[Page]:
        sql = """
            SELECT page.* FROM follow JOIN page ON page.id = follow.page_id
             WHERE follow.user_id = :user_id"""
        return sorted(self.all(Page, sql, user_id=user_id), key=lambda page: page.key)

    def following(self, user_id: int, page_id: int) -> str | None:
        """The language in which an account wants emails about a page."""
        sql = "SELECT language FROM follow WHERE user_id = :user_id AND page_id = :page_id"
        rows = self.rows(sql, user_id=user_id, page_id=page_id)
        return rows[0]["language"] if rows else None

    def report(self, comment_id: int, visitor: str, reason: str, now: int) -> bool:
        """False where this visitor has said so before."""
        sql = """
            INSERT INTO report (comment_id, visitor, reason, reported_at)
            VALUES (:comment_id, :visitor, :reason, :now) ON CONFLICT DO NOTHING"""
        values = {"comment_id": comment_id, "visitor": visitor, "reason": reason}
        return self.run(sql, **values, now=now).rowcount == 1

    def reports(self, comment_id: int) -> list[sqlite3.Row]:
        """The last twenty."""
        sql = """
            SELECT reason, reported_at FROM report
             WHERE comment_id = :id ORDER BY reported_at DESC LIMIT 20"""
        return self.rows(sql, id=comment_id)[::-1]

    def end_reports(self, comment_id: int) -> None:
        self.run("DELETE FROM report WHERE comment_id = :id", id=comment_id)

    def change_account(self, user_id: int, nickname: str, password: str) -> None:
        """ "" is what it was. With a password, older tokens end."""
        sql = """
            UPDATE account
               SET nickname = CASE WHEN :nickname = '' THEN nickname ELSE :nickname END,
                   password = CASE WHEN :password = '' THEN password ELSE :password END,
                   version = CASE WHEN :password = '' THEN version ELSE version + 1 END
             WHERE id = :id"""
        self.run(sql, id=user_id, nickname=nickname, password=password)

    def claim_comments(self, account: Account) -> None:
        """What guests wrote under the address of a new account. Anybody can have written it, so
        this happens once, never to an account that exists. The comments keep the address: where
        the account becomes an admin's, they shall not look like the owner's (`UNCLAIM`)."""
        sql = """
            UPDATE comment SET user_id = :id
             WHERE email = :email AND email <> '' AND user_id IS NULL AND :role = 'user'"""
        self.run(sql, id=account.id, email=account.email, role=account.role)

    def count_comments_of(self, user_id: int) -> int:
        sql = "SELECT count(*) FROM comment WHERE user_id = :user_id AND content <> ''"
        return self.number(sql, user_id=user_id) or 0

    def comments_of(self, user_id: int) -> list[Comment]:
        sql = """
             WHERE comment.user_id = :user_id AND comment.content <> ''
             ORDER BY comment.id"""
        return self.all(Comment, COMMENT + sql, user_id=user_id)

    def traces(self, visitor: str) -> dict[str, list[Json]]:
        """What an account liked and reported."""
        return {
            name: [dict(row) for row in self.rows(sql, visitor=visitor)]
            for name, sql in TRACES.items()
        }

    def erase_account(self, account: Account, subscriber: str, *, comments: bool) -> None:
        """Nothing of it is left: of its comments the bare text, or nothing (`comments`)."""
        ids = [comment.id for comment in self.comments_of(account.id)]
        self.withdraw(ids)
        if comments:
            self.erase_comments(ids)
        values = {"id": account.id, "email": account.email, "subscriber": subscriber}
        for sql in ERASE_ACCOUNT:
            self.run(sql, visitor=f"user {account.id}", **values)
        self.stale = True

    def note(self, **values: Any) -> None:
        sql = """
            INSERT INTO audit (created_at, who, action, subject, detail)
            VALUES (:now, :who, :action, :subject, :detail)"""
        self.run(sql, **values)

    def audit(self, before: int, limit: int) -> list[sqlite3.Row]:
        sql = "SELECT * FROM audit WHERE id < :before ORDER BY id DESC LIMIT :limit"
        return self.rows(sql, before=before, limit=limit)

    def days(self, first: int) -> list[sqlite3.Row]:
        """Sums of each day, counted from 1970 in Beijing."""
        return self.rows("SELECT * FROM day WHERE day >= :first ORDER BY day", first=first)

    # Moving

    def imported(self, product: str, product_id: str) -> sqlite3.Row | None:
        """What came under that name; its `id` is null where it is gone."""
        sql = """
            SELECT comment.id, comment.page_id, coalesce(comment.thread_id, comment.id) AS thread_id
              FROM import LEFT JOIN comment ON comment.id = import.comment_id
             WHERE product = :product AND product_id = :product_id"""
        rows = self.rows(sql, product=product, product_id=product_id)
        return rows[0] if rows else None

    def twins(self, **said: Any) -> list[int]:
        """The same comment, which was written here or came by another way: by its number and
        second, whatever became of it; then those that say the same."""
        found = [*self.rows(TWINS["number"], **said), *self.rows(TWINS["text"], **said)]
        return [row["id"] for row in found]

    def note_import(
        self, product: str, product_id: str, comment_id: int, original: str = ""
    ) -> None:
        sql = """
            INSERT INTO import (product, product_id, comment_id, original)
            VALUES (:product, :product_id, :comment_id, :original) ON CONFLICT DO NOTHING"""
        values = {"product": product, "product_id": product_id, "original": original}
        self.run(sql, comment_id=comment_id, **values)

    def raise_page(self, page_id: int, closed: int, views: int, page_likes: int) -> None:
        """What a page had elsewhere; views and likes never fall."""
        sql = """
            UPDATE page SET closed = :closed,
                   views = CASE WHEN views < :views THEN :views ELSE views END
             WHERE id = :id RETURNING page_likes"""
        likes = self.number(sql, id=page_id, closed=closed, views=views) or 0
        self.add_likes("page", page_id, page_likes - likes)

    def add_likes(self, what: str, id: int, likes: int) -> None:
        """Likes of nobody who is known; as often as this is called."""
        if likes > 0:
            self.run(LIKED_BEFORE[what], id=id, likes=likes)
            self.run(LIKED_BY_ALL[what], id=id)

    def all_pages(self) -> list[Page]:
        return self.all(Page, "SELECT * FROM page ORDER BY key")

    def exported_pages(self) -> sqlite3.Cursor:
        """From here on, this thread reads one moment; until the store is closed."""
        self.run("BEGIN")
        return self.run("SELECT * FROM page ORDER BY key")

    def exported(self) -> sqlite3.Cursor:
        return self.run(EXPORTED)

    # Keeping house

    def purge(self, now: int) -> None:
        """Forget what has had its time."""
        for sql in PURGES:
            self.run(sql, now=now)

    def forget(self, before: int, mask: Callable[[str], str]) -> bool:
        """Of what is older, mask some addresses and let some likes, and reports, forget whose they
        are; whether there may be more."""
        unmasked = self.rows(UNMASKED, before=before)
        for row in unmasked:
            sql = "UPDATE comment SET ip = :ip, masked = 1 WHERE id = :id"
            self.run(sql, ip=mask(row["ip"]), id=row["id"])
            self.stale = True
        self.run(REPORTERS, before=before)
        most = len(unmasked)
        for sql in LIKERS:
            most = max(most, self.run(sql, before=before).rowcount)
        return most >= 500

    def recount(self) -> int:
        """Mend the counters; how many were wrong. A parent is right when its answers are."""
        mended = 0
        for _ in range(1000):  # not for ever: parents that answer each other would never be right
            wrong = sum(self.run(sql).rowcount for sql in RECOUNTS)
            mended += wrong
            if not wrong:
                break
        return mended

    def figures(self, now: int) -> Json:
        """What the doctor looks at, which is no text of anyone."""
        return dict(self.rows(FIGURES, now=now)[0])


# A code is wiped when it expires. The registration stays for a day, so that a login with its
# password is told to verify; then it goes too. A clock set back makes rows of the future.
PURGES = [
    """UPDATE registration SET code = '', expires_at = 0
        WHERE expires_at BETWEEN 1 AND :now OR created_at > :now""",
    f"DELETE FROM registration WHERE created_at < :now - {DAY}",
    f"DELETE FROM spent_captcha WHERE expires_at <= :now - {DAY}",  # the clock may be set back
    "DELETE FROM budget WHERE ends_at <= :now",
    "DELETE FROM outbox WHERE expires_at <= :now AND due_at IS NULL",
    f"UPDATE outbox SET due_at = :now WHERE due_at > :now + {HOUR}",
    # A clock that was ahead when a comment came.
    "UPDATE comment SET judged_at = :now WHERE judged_at > :now",
    "DELETE FROM block WHERE expires_at <= :now",
    "DELETE FROM admin_link WHERE expires_at <= :now",
    f"DELETE FROM audit WHERE created_at < :now - {400 * DAY}",
    f"""DELETE FROM page WHERE seen_at < :now - {90 * DAY} AND page_likes = 0
            AND NOT EXISTS (SELECT 1 FROM comment WHERE comment.page_id = page.id)
            AND NOT EXISTS (SELECT 1 FROM follow WHERE follow.page_id = page.id)""",
    # The words that were learnt last are kept, some 2 MB of them.
    """DELETE FROM token WHERE hash <> 0 AND learnt_at <
             (SELECT learnt_at FROM token ORDER BY learnt_at DESC LIMIT 1 OFFSET 50000)""",
    """DELETE FROM subscription WHERE page_id > 0
          AND NOT EXISTS (SELECT 1 FROM page WHERE page.id = subscription.page_id)""",
]
TOKEN_NAMES = [f"hash_{i}" for i in range(100)]
TOKENS = f"SELECT hash, ham, spam FROM token WHERE hash IN (:{', :'.join(TOKEN_NAMES)})"
LEARN = {
    kind: f"""
    INSERT INTO token AS t (hash, {kind}, learnt_at) VALUES (:hash, 1, :now)
        ON CONFLICT (hash) DO UPDATE SET {kind} = t.{kind} + 1, learnt_at = excluded.learnt_at"""
    for kind in ("ham", "spam")
}
UNLEARN = {
    kind: f"UPDATE token SET {kind} = {kind} - 1 WHERE hash = :hash AND {kind} > 0"
    for kind in LEARN
}
TRACES = {
    "likes": "SELECT comment_id AS id FROM comment_liker WHERE visitor = :visitor",
    "page_likes": """
        SELECT page.page_url FROM page_liker JOIN page ON page.id = page_liker.page_id
         WHERE visitor = :visitor""",
    "reports": "SELECT comment_id AS id, reason, reported_at FROM report WHERE visitor = :visitor",
}
UNCLAIM = "UPDATE comment SET user_id = NULL WHERE user_id = :id AND email <> ''"
ERASE_ACCOUNT = [
    *[
        f"UPDATE {table} SET visitor = 'past ' || random() WHERE visitor = :visitor"
        for table in ("comment_liker", "page_liker")
    ],
    """UPDATE report SET visitor = 'past ' || random(), reason = ''
        WHERE visitor = :visitor""",
    """UPDATE comment SET user_id = NULL, nickname = '', email = '', website = '', ip = '',
              country = '', location = '', masked = 1, language = '', learnt = '', held = ''
        WHERE user_id = :id""",
    "UPDATE comment SET email = '' WHERE email = :email AND email <> ''",
    "DELETE FROM registration WHERE email = :email",
    "DELETE FROM admin_link WHERE email = :email",
    "DELETE FROM outbox WHERE recipient = :email",
    """DELETE FROM notification
        WHERE kind IN ('owner', 'author', 'follower') AND recipient = :email
          AND outbox_id IS NULL""",
    "DELETE FROM subscription WHERE subscriber = :subscriber",
    "DELETE FROM account WHERE id = :id",
]
ERASE_COMMENTS = [
    """UPDATE page SET total = total - gone.n
         FROM (SELECT page_id, count(*) AS n FROM comment
                WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'visible'
                GROUP BY page_id) AS gone
        WHERE page.id = gone.page_id""",
    """UPDATE comment SET status = 'deleted', user_id = NULL, nickname = '', email = '',
              website = '', content = '', html = '', ip = '', country = '', location = '',
              masked = 1, likes = 0, language = '', edited_at = NULL, judged_at = NULL, held = '',
              pinned = 0, learnt = ''
        WHERE id IN (SELECT value FROM json_each(:ids))""",
    "DELETE FROM comment_liker WHERE comment_id IN (SELECT value FROM json_each(:ids))",
    "UPDATE import SET original = '' WHERE comment_id IN (SELECT value FROM json_each(:ids))",
    "DELETE FROM report WHERE comment_id IN (SELECT value FROM json_each(:ids))",
    "DELETE FROM outbox WHERE comment_id IN (SELECT value FROM json_each(:ids))",
    "DELETE FROM notification WHERE comment_id IN (SELECT value FROM json_each(:ids))",
    # To their authors, of replies.
    """DELETE FROM notification WHERE kind = 'author' AND comment_id IN
             (SELECT id FROM comment WHERE parent_id IN (SELECT value FROM json_each(:ids)))""",
]
# A question that was not sent may be asked again. Where news of the same comment waits already, one
# of the two is enough.
WITHDRAW = [
    """DELETE FROM subscription WHERE state = 'asked' AND subscriber IN
             (SELECT subscriber FROM outbox WHERE id IN (SELECT value FROM json_each(:letters)))""",
    """UPDATE OR REPLACE notification SET outbox_id = NULL
        WHERE outbox_id IN (SELECT value FROM json_each(:letters))""",
    "DELETE FROM outbox WHERE id IN (SELECT value FROM json_each(:letters))",
]
UNMASKED = """
    SELECT id, ip FROM comment
     WHERE masked = 0 AND created_at < :before ORDER BY created_at LIMIT 500"""
JUDGED = "SELECT id FROM comment WHERE judged_at < :before ORDER BY judged_at LIMIT 200"
LEAF = """
    DELETE FROM comment WHERE id = :id
       AND NOT EXISTS (SELECT 1 FROM comment AS c WHERE c.parent_id = :id OR c.thread_id = :id)"""
# The sums of both pages are right afterwards: likes of a visitor who liked both count once.
MERGES = [
    "UPDATE comment SET page_id = :new WHERE page_id = :old",
    """INSERT INTO page_liker (page_id, visitor, liked_at)
       SELECT :new, visitor, liked_at FROM page_liker WHERE page_id = :old
           ON CONFLICT DO NOTHING""",
    "DELETE FROM page_liker WHERE page_id = :old",
    """INSERT INTO subscription (subscriber, page_id, state)
       SELECT subscriber, :new, state FROM subscription WHERE page_id = :old
           ON CONFLICT DO NOTHING""",
    "DELETE FROM subscription WHERE page_id = :old",
    """INSERT INTO follow (user_id, page_id, language)
       SELECT user_id, :new, language FROM follow WHERE page_id = :old
           ON CONFLICT DO NOTHING""",
    "DELETE FROM follow WHERE page_id = :old",
    """UPDATE page AS p SET total = p.total + o.total, threads = p.threads + o.threads,
              views = p.views + o.views,
              page_likes = (SELECT count(*) FROM page_liker WHERE page_id = :new)
         FROM page AS o WHERE p.id = :new AND o.id = :old""",
    "DELETE FROM page WHERE id = :old",
]
TWINS = {
    by: f"""
    SELECT comment.id FROM comment JOIN page ON page.id = comment.page_id
     WHERE {same} AND comment.created_at = :created_at"""
    for by, same in {
        "number": "comment.id = :id",
        "text": """page.key = :key AND comment.nickname = :nickname
       AND comment.content = :content AND comment.status IN
           ('visible', 'waiting', 'spam', 'deleted')""",
    }.items()
}
ADD_COMMENT = """
    INSERT INTO comment (page_id, parent_id, thread_id, user_id, nickname, email, website, content,
                         html, ip, country, location, status, created_at, held, language,
                         edited_at, pinned, masked)
    VALUES (:page_id, :parent_id, :thread_id, :user_id, :nickname, :email, :website, :content,
            :html, :ip, :country, :location, 'waiting', :created_at, :held, :language,
            :edited_at, :pinned, :masked)
    RETURNING id"""
ADD_COMMENT_AS = ADD_COMMENT.replace("(page_id", "(id, page_id").replace("(:page", "(:id, :page")
LIKED_BEFORE = {
    what: f"""
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :likes)
    INSERT INTO {what}_liker ({what}_id, visitor) SELECT :id, 'import ' || :id || ' ' || i FROM n
     WHERE true ON CONFLICT DO NOTHING"""
    for what in LIKE
}
LIKED_BY_ALL = {
    "comment": """UPDATE comment SET likes =
        (SELECT count(*) FROM comment_liker WHERE comment_id = :id) WHERE id = :id""",
    "page": """UPDATE page SET page_likes =
        (SELECT count(*) FROM page_liker WHERE page_id = :id) WHERE id = :id""",
}
# What was deleted is there where something below it was not.
EXPORTED = """
    WITH RECURSIVE held (id) AS (
        SELECT parent_id FROM comment WHERE status <> 'deleted' AND parent_id IS NOT NULL
         UNION
        SELECT comment.parent_id FROM held JOIN comment ON comment.id = held.id
         WHERE comment.parent_id IS NOT NULL)
    SELECT comment.*, page.key AS page_key, page.page_url, page.closed, page.opened_at,
           coalesce(account.email, comment.email) AS known_email
      FROM comment JOIN page ON page.id = comment.page_id
      LEFT JOIN account ON account.id = comment.user_id
     WHERE comment.status <> 'deleted' OR comment.id IN (SELECT id FROM held)
     ORDER BY page.key, comment.created_at, comment.id"""
LIKERS = [
    f"""UPDATE {table} SET visitor = 'past ' || random(), liked_at = NULL
         WHERE ({of}, visitor) IN
               (SELECT {of}, visitor FROM {table} WHERE liked_at < :before LIMIT 500)"""
    for table, of in (("comment_liker", "comment_id"), ("page_liker", "page_id"))
]
REPORTERS = """
    UPDATE report SET visitor = 'past ' || random()
     WHERE reported_at < :before AND visitor NOT LIKE 'past %' AND visitor NOT LIKE 'user %'"""

# What each counter counts, answers before those whom they answer.
COUNTERS = {
    ("comment", "likes"): "SELECT count(*) FROM comment_liker WHERE comment_id = comment.id",
    ("comment", "replies"): """SELECT count(*) FROM comment AS reply
        WHERE reply.parent_id = comment.id AND reply.shown = 1""",
    ("comment", "shown"): "CASE WHEN status = 'visible' OR replies > 0 THEN 1 ELSE 0 END",
    ("page", "total"): """SELECT count(*) FROM comment
        WHERE page_id = page.id AND status = 'visible'""",
    ("page", "threads"): """SELECT count(*) FROM comment
        WHERE page_id = page.id AND shown = 1 AND parent_id IS NULL""",
    ("page", "page_likes"): "SELECT count(*) FROM page_liker WHERE page_id = page.id",
}
MISCOUNTS = [f"SELECT count(*) FROM {t} WHERE {c} <> ({n})" for (t, c), n in COUNTERS.items()]
RECOUNTS = [f"UPDATE {t} SET {c} = ({n}) WHERE {c} <> ({n})" for (t, c), n in COUNTERS.items()]
FIGURES = """
    SELECT (SELECT count(*) FROM comment) AS comments,
           (SELECT count(*) FROM account) AS accounts,
           (SELECT count(*) FROM page) AS pages,
           (SELECT coalesce(sum(CAST(views AS REAL)), 0) FROM page) AS views,
           (SELECT max(created_at) FROM comment) AS newest,
           (SELECT count(*) FROM outbox WHERE due_at IS NULL) AS failed,
           (SELECT count(*) FROM outbox WHERE due_at <= :now - 600) AS late,
           (SELECT count(*) FROM account WHERE role = 'admin') AS admins,
           (SELECT count(*) FROM budget WHERE name = 'unnamed_proxy') AS unnamed_proxy"""


def figures_of(path: Path, now: int) -> Json:
    """The same of a file that is left as it is, and `wrong`: how many counters need a recount."""
    with peek(path) as db:
        if version_of(db) < len(MIGRATIONS):
            raise SchemaFault(f"{path} is of an older commentd: start the service once")
        db.row_factory = sqlite3.Row
        wrong = sum(db.execute(sql).fetchone()[0] for sql in MISCOUNTS)
        return {**db.execute(FIGURES, {"now": now}).fetchone(), "wrong": wrong}


# What is known of a place: country (ISO 3166) and its Chinese name, of which one may be missing;
# province and city in Chinese.
Found = tuple[str, str, list[str]]
LookUp = Callable[[str], Found | None]


@contextlib.contextmanager
def open_places(file: Path) -> Iterator[LookUp]:
    """The owner's own file of places; a `Fault` says what is wrong with it."""
    with contextlib.ExitStack() as held:
        try:
            look_up = (open_mmdb if file.suffix == ".mmdb" else open_xdb)(file, held)
            for byte in range(1, 224, 4):  # a file that was damaged fails somewhere
                look_up(f"{byte}.1.1.1")
                look_up(f"2{byte:03x}::1")
        except ModuleNotFoundError as missing:
            what = f"[geo] file needs {missing.name}: pip install maxminddb py-ip2region"
            raise Fault(what) from None
        except Exception as error:
            raise Fault(f"[geo] file {file} can't be read ({error})") from None
        yield look_up


def open_mmdb(file: Path, held: contextlib.ExitStack) -> LookUp:
    """Places as MaxMind, DB-IP and IPinfo write them."""
    import maxminddb

    # Not mapped into memory: a file that is replaced in place would kill the process.
    reader = held.enter_context(maxminddb.open_database(file, maxminddb.MODE_FILE))
    only_4 = reader.metadata().ip_version == 4

    def look_up(ip: str) -> Found | None:
        record: Any = None if only_4 and ":" in ip else reader.get(ip)
        country = record and record.get("country")
        if not country:
            return None
        if isinstance(country, str):  # IPinfo's is flat
            return record.get("country_code", country), country, []
        parts = [country, *record.get("subdivisions", [])[:1], record.get("city", {})]
        names = [part.get("names", {}).get("zh-CN", "") for part in parts]
        return country.get("iso_code", ""), names[0], names[1:]

    return look_up


def open_xdb(file: Path, held: contextlib.ExitStack) -> LookUp:
    """Places as ip2region writes them: 中国|浙江省|杭州市|电信, with the code |CN at its
    end or, before 2025, a region: 中国|0|浙江省|杭州市|电信."""
    from ip2region import searcher, util

    with file.open("rb") as handle:
        header = util.load_header(handle)
        util.verify(handle)
    version = util.version_from_header(header) or util.IPv4
    if file.stat().st_size < header.endIndexPtr + version.index_size:
        raise ValueError("it was cut")
    regions = searcher.new_with_file_only(version, str(file))
    held.callback(regions.close)
    only_6 = version.byte_num == 16

    def look_up(ip: str) -> Found | None:
        region = regions.search(ip) if only_6 == (":" in ip) else ""
        country, *parts = ["" if text == "0" else text for text in region.split("|")]
        newer = len(parts) == 4 and re.fullmatch("[A-Z]{2}", parts[3])
        older = len(parts) == 4 and not newer  # a region comes before the province
        return (parts[3] if newer else "", country, parts[older:][:2]) if country else None

    return look_up


# Endings that the shipped tables leave away too; what ip2region calls a province.
PEOPLES = "壮|回|藏|羌|彝|苗|侗|布依|土家|蒙古|傣|白|朝鲜|哈尼|傈僳|景颇|哈萨克|柯尔克孜|维吾尔"
ENDING = re.compile(f"(?<=..)(省|市|地区|盟|特别行政区|(({PEOPLES})族?)*自治[区州])$")
MUNICIPALITIES = {"北京", "上海", "天津", "重庆"}
REGIONS = {"香港": "HK", "澳门": "MO", "台湾": "TW"}

PLACE = """
    SELECT country, location FROM range JOIN place ON place.id = range.place
     WHERE start <= ? ORDER BY start DESC LIMIT 1"""
COUNTRY_CALLED = "SELECT country FROM place WHERE location = ?"
NAME_OF_COUNTRY = "SELECT location FROM place WHERE country = ?"


class Places:
    """Where addresses are, by the owner's file or the two tables that ship; what can't be read is
    named once, and the next best answers."""

    def __init__(self, folder: Path, file: str = "") -> None:
        self.lock, self.held, self.folder = threading.Lock(), contextlib.ExitStack(), folder
        self.tables: dict[int, sqlite3.Connection | None] = {}
        self.own: LookUp = lambda ip: None
        if file:
            try:
                self.own = self.held.enter_context(open_places(Path(file)))
            except Fault as fault:
                log.warning("%s; the tables that ship are used", fault)
        self.of("192.0.2.1")  # so that a bad table is named at the start
        self.of("2001:db8::")

    def of(self, ip: str) -> tuple[str, str]:
        """Country (ISO 3166) and location of an address, such as `CN` and `浙江 杭州`; empty
        where they are unknown."""
        if not ip:
            return "", ""
        with self.lock:
            address = ipaddress.ip_address(ip)
            public = address.is_global and not address.is_multicast
            if public and (found := self.owners(ip)):
                return found
            # IPv6 is known by its upper half, moved into the range of a signed number.
            start = int(address) if address.version == 4 else (int(address) >> 64) - 2**63
            return self.ask(address.version, PLACE, start) or ("", "")

    def owners(self, ip: str) -> tuple[str, str] | None:
        """What the owner's file says, in the words of the tables that ship."""
        try:
            found = self.own(ip)
        except Exception as error:
            log.warning("[geo] file fails (%s); the tables that ship are used", error)
            self.own, found = lambda ip: None, None
        if found is None:
            return None
        country, name, parts = found
        texts = (country, name, *parts)
        if not all(isinstance(t, str) and t.isprintable() and len(t) < 50 for t in texts):
            return None
        parts = [ENDING.sub("", part) for part in parts if part]
        # The name first: an older .xdb may have another word of two letters where the code is.
        country = (self.ask(4, COUNTRY_CALLED, name or country) or (country,))[0]
        if not re.fullmatch("[A-Z]{2}", country):
            return None
        province = parts[0] if parts else ""
        if country == "CN" and province not in REGIONS:
            return country, province if province in MUNICIPALITIES else " ".join(parts) or "中国"
        country = REGIONS[province] if country == "CN" else country
        return country, (self.ask(4, NAME_OF_COUNTRY, country) or (name,))[0]

    def ask(self, version: int, sql: str, value: int | str) -> Any:
        """A row of the table of that IP version; None where there is none."""
        file = self.folder / f"places{version}.db"
        try:
            if version not in self.tables:
                uri = f"{file.absolute().as_uri()}?mode=ro&immutable=1"
                table = sqlite3.connect(uri, uri=True, check_same_thread=False)
                self.tables[version] = self.held.enter_context(contextlib.closing(table))
            known = self.tables[version]
            return known and known.execute(sql, (value,)).fetchone()
        except sqlite3.Error as error:
            log.warning("addresses have no place, since %s can't be read: %s", file.name, error)
            self.tables[version] = None
            return None

    def close(self) -> None:
        self.held.close()


# -- Text ---------------------------------------------------------------------


def strict_json(body: bytes) -> Json:
    """The object in a body; `BadRequest` for all that parsers read differently or choke on."""
    try:
        text = body.decode("utf-8")
        # Without texts and blanks: a hundred ids are the most that anybody sends.
        structure = "".join(re.sub(r'(?s)"(?:[^"\\]|\\.)*+"?', "", text).split())
        if len(structure) > 8192 or too_deep(structure):
            raise ValueError
        value = json.loads(text, object_pairs_hook=without_doubles)
        # Neither NaN and its like nor lone surrogates, which Python reads, can be written again.
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, OverflowError):
        raise BadRequest("请求内容不是有效的 JSON", "json_invalid") from None
    if not isinstance(value, dict):
        raise BadRequest("请求内容必须是 JSON 对象", "json_invalid")
    return value


def too_deep(structure: str, most: int = 16) -> bool:
    """Brackets, counted before parsing: the parser recurses."""
    marks = re.findall(r"[\[{\]}]", structure)
    steps = (1 if mark in "[{" else -1 for mark in marks)
    return max(itertools.accumulate(steps), default=0) > most


def without_doubles(pairs: list[tuple[str, Any]]) -> Json:
    if len(pairs) > 64 or len(dict(pairs)) < len(pairs):
        raise ValueError
    return dict(pairs)


def query_of(query_string: str) -> dict[str, list[str]]:
    try:
        # WSGI gives bytes, a character each.
        text = query_string.encode("latin-1").decode("utf-8")
        return urllib.parse.parse_qs(
            text, keep_blank_values=True, errors="strict", max_num_fields=256
        )
    except ValueError:
        raise BadRequest("网址参数不是有效的 UTF-8", "query_invalid") from None


def picked(row: object, names: str) -> Json:
    return {name: getattr(row, name) for name in names.split()}


def moment(seconds: float, zone: timezone = UTC) -> datetime:
    """A time that is kept. One impossible row must not break a list."""
    last = 253_402_214_400  # in the year 9999
    return datetime.fromtimestamp(max(0, min(seconds, last)), zone)


def rfc3339(seconds: float) -> str:
    return moment(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def has_controls(text: str) -> bool:
    return any(unicodedata.category(c) in ("Cc", "Zl", "Zp") for c in text)


# Characters that nobody sees and that are no controls: fillers, blank patterns, selectors.
BLANKS = {*"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"}
BLANKS |= {chr(n) for n in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))}
ZERO_WIDTH_JOINER, EMOJI_SELECTOR = "\u200d", "\ufe0f"


def is_blank(text: str) -> bool:
    """Whether there is nothing to see: blanks, controls and marks alone."""
    return all(c in BLANKS or unicodedata.category(c)[0] in "CMZ" for c in text)


def proper_nickname(text: str) -> str:
    """Composed and trimmed; `ValueError` for what hides, turns or piles up: controls, bidi
    controls, zero width but inside an emoji, four marks in a row."""
    name = unicodedata.normalize("NFC", text).strip()
    # In an emoji, a selector follows a symbol and a joiner stands between two.
    bare = re.sub(f"(?<=[^\\w\\s]){EMOJI_SELECTOR}|{EMOJI_SELECTOR}(?=\u20e3)", "", name)
    kinds = [unicodedata.category(c) for c in bare]
    for i, kind in enumerate(kinds):
        joins = bare[i] == ZERO_WIDTH_JOINER and 0 < i < len(bare) - 1
        if joins and kinds[i - 1] in ("So", "Sk") and kinds[i + 1] == "So":
            continue
        drawn_alike = "\u2e80" <= bare[i] <= "\u2eff"  # radicals, which nobody types for a name
        if kind[0] == "C" or kind in ("Zl", "Zp") or bare[i] in BLANKS or drawn_alike:
            raise ValueError("hidden")
        if i > 2 and all(k[0] == "M" for k in kinds[i - 3 : i + 1]):
            raise ValueError("marks")
    if len(name) > 64 or len(name.encode()) > 256 or is_blank(name):
        raise ValueError("size")
    return name


# Letters of Cyrillic and Greek, and digits, that look Latin (a part of Unicode's confusables.txt).
LOOK_LATIN = str.maketrans(
    "АВЕЅІЈКМНОРСТУХҮѴӀавеѕіјкмнопрстухүѵӏһԁԛԝьΑΒΕΖΗΙΚΜΝΟΡΤΥΧαβγεηικνορςτυχω01|",
    "ABESIJKMHOPCTYXYVIabesijkmhonpctyxyvlhdqwbABEZHIKMNOPTYXabyenikvopctuxwoll",
)
LATIN_LETTER = re.compile(r".*LATIN .*(?:LETTER|CAPITAL) ([A-Z])(?: WITH .*)?")
# Scripts with so many shapes of Latin that a whole name can be forged in them.
FORGEABLE = {"LATIN", "CHEROKEE", "COPTIC", "LISU", "CANADIAN", "DESERET", "OSAGE"}
# What stands beside Latin in many honest names.
BESIDE_LATIN = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "DIGIT"}
ANY = "\0"  # in a skeleton: a letter that could be meant for any other


def script_of(character: str) -> str:
    return re.split("[ -]", unicodedata.name(character, ""))[0]


def drawn(letter: str, *, mixed: bool) -> str:
    """The small Latin letter that it looks like, `ANY`, or itself."""
    looks = letter.translate(LOOK_LATIN).casefold()
    script = script_of(letter)
    if looks.isascii() or script in BESIDE_LATIN:
        return looks
    if latin := LATIN_LETTER.fullmatch(unicodedata.name(letter, "")):
        return latin[1].lower()
    return ANY if mixed or script in FORGEABLE else looks


def skeleton(nickname: str) -> str:
    """What the letters of a nickname look like. Where scripts are mixed, an unknown letter counts
    as any: honest names seldom mix, and a list of all look-alikes has thousands of lines."""
    spread = unicodedata.normalize("NFKD", nickname).replace("|", "l")
    letters = [
        c
        for c in spread
        if (c.isalnum() or LATIN_LETTER.fullmatch(unicodedata.name(c, "")))
        and c not in BLANKS
        and script_of(c) != "MODIFIER"
    ]
    mixed = len({script_of(c) for c in letters} - BESIDE_LATIN) > 1
    looks = "".join(drawn(c, mixed=mixed) for c in letters)
    return looks.replace("rn", "m").replace("l", "i") or nickname.strip()


# What the badge of an admin says in the languages of the widget, and what else claims to be one.
TITLES = """author admin owner official autor auteur автор админ الإدارة
            作者 博主 站长 站長 管理员 管理員 管理人 글쓴이"""
TITLE_SKELETONS = [skeleton(title) for title in TITLES.split()]
IN_BRACKETS = re.compile(r"[(<[{【〔〈《「『〖].*?(?:[])>}】〕〉》」』〗]|$)")


def looks_like(nickname: str, admin: str) -> bool:
    """Whether readers could take a nickname for an admin's, alone or with a title: `Boss 博主`.
    What stands in brackets is not looked at: `Boss (Berlin)` is the Boss too."""
    names = skeletons(admin)
    titled = {each for n in names for title in TITLE_SKELETONS for each in (n + title, title + n)}
    return any(
        len(mine) == len(theirs) and all(map(could_be, mine, theirs))
        for mine in skeletons(nickname)
        for theirs in names | titled
    )


def skeletons(name: str) -> set[str]:
    """With and without what stands in brackets."""
    bare = IN_BRACKETS.sub("", unicodedata.normalize("NFKC", name))
    return {skeleton(each) for each in (name, bare) if each.strip()}


def could_be(letter: str, other: str) -> bool:
    return letter == other or (letter == ANY and other.isascii())


def proper_website(text: str) -> str:
    """An http(s) address with a host and no user; `ValueError` for any other."""
    url = urllib.parse.urlsplit(text.strip())
    if url.scheme not in ("http", "https") or not url.hostname or "@" in url.netloc:
        raise ValueError
    if has_controls(text) or re.search(r"[\s<>\"'`\\]", text.strip()) or (url.port or 1) < 1:
        raise ValueError
    return text.strip()


def plain_ip(text: str) -> str:
    """One spelling of an address: without port and zone, mapped IPv4 unwrapped; "" for none."""
    text = text.strip().split("%")[0]
    if match := re.fullmatch(r"\[([^\]]*)\](?::\d+)?|(\d+\.\d+\.\d+\.\d+):\d+", text):
        text = match[1] or match[2]
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return ""
    return str(getattr(ip, "ipv4_mapped", None) or ip)


def masked(ip: str) -> str:
    """The network of an address: `203.0.113.0`, `2001:db8:12::`; "" for none."""
    if not re.fullmatch(r"(\d{1,3}\.){3}\d{1,3}", ip):  # else ipaddress is a third of a list's cost
        ip = plain_ip(ip)
    if ":" in ip:
        return str(ipaddress.ip_network(f"{ip}/48", strict=False).network_address)
    return ip and ip.rpartition(".")[0] + ".0"


def networks_of(ip: str) -> list[tuple[str, int]]:
    """What counts as one client, with the factor on its limits: the address; of IPv6, where
    each household has a /64, that, and ten times as much for a /48."""
    if ":" not in ip:
        return [(ip, 1)]
    sizes = ((64, 1), (48, 10))
    return [(str(ipaddress.ip_network(f"{ip}/{n}", strict=False)), factor) for n, factor in sizes]


TRACKING = re.compile(r"(fbclid|gclid|msclkid|mc_[ce]id|yclid|igshid|spm|utm_[^=]*)(=|\Z)")


@dataclass(frozen=True)
class PageName:
    """`key`: one for all spellings of a page. `page_url`: as it was sent, less tracking."""

    key: str
    page_url: str


def page_name(text: str, own_hosts: Iterable[str]) -> PageName:
    """The page that a path, an http(s) URL or any other page key means."""
    page_url = without_tracking(text) or "/"
    key = without_tracking(unicodedata.normalize("NFC", unquoted(page_url)))
    scheme, mark, rest = key.partition("//")
    if mark and scheme.lower() in ("", "http:", "https:"):
        host = re.split(r"[/?#]", rest, maxsplit=1)[0]
        path = rest[len(host) :]
        host = host_of(f"{scheme or 'any:'}//{host}")
        key = "/" + path.lstrip("/") if host in own_hosts else f"//{host}{path or '/'}"
    return PageName(trimmed(key), page_url)


def without_tracking(url: str) -> str:
    """Without the parameters of campaigns and without the fragment, unless that is a route."""
    base, mark, fragment = url.partition("#")
    path, _, query = base.partition("?")
    kept = [word for word in query.split("&") if word and not TRACKING.match(word)]
    base = path + ("?" + "&".join(kept) if kept else "")
    return base + mark + fragment if fragment[:1] in ("/", "!") and mark else base


def unquoted(text: str) -> str:
    """Percent-decoded where that gives UTF-8; what is reserved or a control stays encoded, and
    so becomes a `%` that encodes nothing: else it could, with what is decoded behind it."""

    def decoded(match: re.Match[str]) -> str:
        if match[0] == "%":
            return "%25"
        try:
            run = bytes.fromhex(match[0].replace("%", "")).decode()
        except UnicodeDecodeError:
            return match[0].upper()
        return "".join(
            urllib.parse.quote(c, safe="") if c in RESERVED or has_controls(c) else c for c in run
        )

    return re.sub(r"(?:%[0-9A-Fa-f]{2})+|%", decoded, text)


RESERVED = ":/?#[]@!$&'()*+,;=%"  # RFC 3986, 2.2, and the mark of encoding itself


def trimmed(key: str) -> str:
    """Without `index.html` and slashes at the end of the path; the root is `/`."""
    path, rest = parted(key)
    while path.endswith(("/", "/index.html")):
        path = path.removesuffix("/index.html").rstrip("/")
    return (path or "/") + rest


def parted(url: str) -> tuple[str, str]:
    """The path, and what stands behind it."""
    cut = min((i for i in (url.find("?"), url.find("#")) if i >= 0), default=len(url))
    return url[:cut], url[cut:]


def page_link(page_url: str, origins: tuple[str, ...]) -> str:
    """Where a page can be opened; "" for what is no http(s) URL. Brackets stay as they are, as in
    browsers, though RFC 3986 allows none: the widget would take `%5B` for another page."""
    on_blog = page_url.startswith("/") and not page_url.startswith("//") and origins
    url = origins[0] + page_url if on_blog else page_url
    try:
        return proper_website(urllib.parse.quote(url, safe=RESERVED + "~"))
    except ValueError:
        return ""


def is_foreign(page_url: str, origins: tuple[str, ...]) -> bool:
    """Whether a page is on a host that the owner did not name."""
    host = re.match(r"(?i)(https?://[^/?#]*)", page_url)
    return bool(host and host_of(host[1]) not in map(host_of, origins))


def own_link(page_url: str, origins: tuple[str, ...]) -> str:
    """The same, where it is the owner's: readers are sent nowhere else."""
    return "" if is_foreign(page_url, origins) else page_link(page_url, origins)


def comment_link(link: str, comment_id: int) -> str:
    """Where a comment can be read: on its page, which may be a route that takes the fragment."""
    return link if "#" in link else f"{link}#comment-{comment_id}"


MOST_MARKS = 30  # on one letter: Unicode's stream-safe format (UAX 15, section 13)


def folded(text: str) -> str:
    """Equal for texts that differ in case, width, blanks and what nobody sees only."""
    seen = []
    marks = 0
    for character in text:
        category = unicodedata.category(character)
        if category == "Cf" or character in BLANKS:
            continue
        marks = marks + 1 if category[0] == "M" else 0
        # To sort a run of marks takes time that grows with the square of its length.
        if marks <= MOST_MARKS:
            seen.append(character)
    return " ".join(unicodedata.normalize("NFKC", "".join(seen)).casefold().split())


MOST_HOSTS = 30  # that are looked up of one comment: whoever names more of them has it wait
WRITTEN_HOST = re.compile(r"(?i)(?:https?://(?:[^/?#@\s\"]*@)?|@)([^/?#:@\s\"<>]+)")


def plain_host(text: str) -> str:
    """One spelling of a host, as browsers look it up (RFC 3490); "" for what is too long to be
    one: 253 characters, 63 between two dots (RFC 1035, section 2.3.4)."""
    host = folded(text).strip(".")
    longest = max(map(len, re.split("[.\u3002]", host)))
    # Measured before the conversion, whose work grows with the square of a label's length.
    if len(host) > 253 or longest > 63:
        return ""
    with contextlib.suppress(UnicodeError):
        host = host.encode("idna").decode()
    return host.lower().strip(".")


def written_hosts(*texts: str) -> list[str]:
    """The hosts of the links and email addresses in some texts, each spelling once."""
    found = WRITTEN_HOST.findall(" ".join(texts))
    return [*dict.fromkeys(map(urllib.parse.unquote, found))]


def hosts_in(*texts: str) -> set[str]:
    """The same hosts in one spelling each, as far as they are looked up."""
    return {plain_host(host) for host in written_hosts(*texts)[:MOST_HOSTS]} - {""}


def met(block: Block, ip: str, email: str, text: str, hosts: set[str]) -> bool:
    """Whether a block means a comment: `text` is folded."""
    if block.kind == "address":
        with contextlib.suppress(ValueError):  # a row that can't be read means nobody
            return ipaddress.ip_address(ip) in ipaddress.ip_network(block.value)
        return False
    if block.kind == "domain":
        return any(f".{host}".endswith(f".{block.value}") for host in hosts)
    if block.kind == "email":
        return email == block.value
    return (folded(block.value) or "\0") in text  # no word at all is in no comment


def remembered(block: Block) -> str:
    """A block as a comment that met it may remember it: neither a full address nor an e-mail."""
    if block.kind == "address":
        return masked(block.value.partition("/")[0])
    return block.value.rpartition("@")[2] if block.kind == "email" else block.value


def proper_block(kind: str, text: str) -> str:
    """The one spelling of what is blocked; `ValueError` for what can't be."""
    if kind == "address":
        network = ipaddress.ip_network(plain_ip(text) or text.strip(), strict=False)
        first = network.network_address
        if getattr(first, "ipv4_mapped", None) or "%" in str(network):
            raise ValueError
        return str(first if network.num_addresses == 1 else network)
    if kind == "email":
        return proper_email(text)
    if kind == "domain":
        host = plain_host(re.sub(r"^(https?://|@)|[/?#].*$", "", text.strip().lower()))
        if not re.fullmatch(r"([a-z0-9-]+\.)+[a-z0-9-]+", host):
            raise ValueError
        return host
    if not folded(text):
        raise ValueError
    return text.strip()


class CommentRenderer(mistune.HTMLRenderer):
    """What the allow-list below drops becomes something that reads well instead."""

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        return f"<p><strong>{text}</strong></p>\n"

    def softbreak(self) -> str:
        return "<br>\n"  # people press Enter where they mean it

    def link(self, text: str, url: str, title: str | None = None) -> str:
        # An image in a link became a link in a link.
        return str(super().link(re.sub(r"</?a\b[^>]*>", "", text), url))

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return str(self.link(text or html.escape(url), url))

    def block_code(self, code: str, info: str | None = None) -> str:
        return str(super().block_code(code))  # a language that is a blank raises


@functools.cache
def markdown() -> mistune.Markdown:
    renderer = CommentRenderer(escape=True)
    return mistune.create_markdown(renderer=renderer, plugins=["url", "strikethrough"])


def safe_html(content: str) -> str:
    """Markdown to HTML that can only look like text: no images, styles, ids; absolute links.
    Never fails: what the renderer chokes on becomes escaped text."""
    try:
        markup = clean(str(markdown()(content)))
        # Quotes in quotes make seventeen letters of one; a list of such would fill the memory.
        return markup if len(markup) <= 10 * len(content) + 1000 else plain_html(content)
    except Exception:
        log.exception("Markdown could not be rendered, so it is shown as text")
        return plain_html(content)


def plain_html(text: str) -> str:
    return html.escape(text).replace("\n", "<br>")


def only_absolute(tag: str, attribute: str, link: str) -> str | None:
    # `http:x` has a scheme and is relative all the same.
    absolute = re.match(r"https?://[^/\s]|mailto:", link, re.IGNORECASE)
    return link if absolute or attribute != "href" else None


def clean(markup: str) -> str:
    """What can only look like text. Rows are cleaned when they are written. The feed and the page
    of a thread clean them again, since an older nh3 may have let something pass then; the widget
    has an allow-list of its own."""
    return nh3.clean(
        markup,
        tags={*"p br em strong del code pre blockquote ul ol li a hr".split()},  # noqa: SIM905
        attributes={"a": {"href"}, "*": set()},
        url_schemes={"http", "https", "mailto"},
        url_relative="deny",
        attribute_filter=only_absolute,
        link_rel="nofollow ugc noopener noreferrer",
    )


# -- Keys ---------------------------------------------------------------------

ROUNDS = 600_000  # of PBKDF2-HMAC-SHA256: OWASP Password Storage Cheat Sheet
TOKEN_LIFE = 7 * DAY
CODE_LIFE = 10 * MINUTE
CHALLENGE_LIFE = HOUR  # long comments take their time


def mac(key: bytes, purpose: str, *words: object) -> str:
    """A keyed hash, in hex; none for one purpose passes for another."""
    message = json.dumps([purpose, *map(str, words)]).encode()
    return hmac.new(key, message, "sha256").hexdigest()


def password_scheme(rounds: int, key: bytes, email: str) -> str:
    """How a new password is hashed: all of the stored text but the hash. The salt, 16 bytes, is
    drawn from the key for the address: registrations of one moment share it too."""
    return f"pbkdf2_sha256${rounds}${mac(key, 'salt', email)[:32]}"


def scheme_of(stored: str) -> str:
    return stored.rpartition("$")[0]


def hashed(password: str, scheme: str) -> str:
    """`pbkdf2_sha256$rounds$salt$hash`. A password of 64 hex digits is its own SHA-256: a
    browser may send either."""
    if not re.fullmatch("[0-9A-Fa-f]{64}", password):
        password = hashlib.sha256(password.encode()).hexdigest()
    _, rounds, salt = scheme.split("$")
    key = hashlib.pbkdf2_hmac("sha256", password.lower().encode(), bytes.fromhex(salt), int(rounds))
    return f"{scheme}${key.hex()}"


def same(one: str, other: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def new_code(chance: Callable[[int], bytes]) -> str:
    """Six digits. Of 2^64 values the remainder favours none by more than 1 in 10^13."""
    return f"{int.from_bytes(chance(8)) % 1_000_000:06d}"


def make_token(account: Account, key: bytes, now: int, use: str = "login") -> str:
    """A JWT with the claims of the contract, and `use`, `ver` and `iat`."""
    claims: Json = {"id": account.id, "email": account.email, "role": account.role}
    claims |= {"iat": now, "exp": now + TOKEN_LIFE, "use": use, "ver": account.version}
    return jwt.encode(claims, key, algorithm="HS256")


def read_token(token: str, key: bytes, now: int, use: str = "login") -> tuple[int, int]:
    """Account id and version of a token; `Unauthorized` for any that was not made for this use."""
    refusal = Unauthorized("登录已失效，请重新登录", "token_invalid")
    if len(token) > 4096 or not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+){2}", token):
        raise refusal
    try:
        # The times are judged below, by the clock that tests can set.
        options: Any = {"require": ["exp", "iat", "id"], "verify_exp": False, "verify_iat": False}
        claims = jwt.decode(token, key, algorithms=["HS256"], options=options)
    except Exception:  # some broken texts raise other errors than PyJWTError
        raise refusal from None
    user_id, version, expires_at = numbers = [claims.get(n, "") for n in ("id", "ver", "exp")]
    if claims.get("use") != use or any(type(n) is not int for n in numbers):
        raise refusal
    if not now < expires_at <= now + TOKEN_LIFE + MINUTE or not 0 < user_id < 2**63:
        raise refusal
    return user_id, version


LINK_LIFE = 30 * DAY  # of the links in a letter to the owner


def text_version(comment: Comment) -> str:
    """What a moderator who follows a link is meant to have read."""
    said = f"{comment.nickname}\n{comment.website}\n{comment.content}"
    return hashlib.sha256(said.encode()).hexdigest()  # whole: its author may look for two alike


def link_mac(key: bytes, words: Mapping[str, str]) -> str:
    return mac(key, "link", *(f"{name}={words[name]}" for name in sorted(words)))[:32]


def signed_query(key: bytes, words: Mapping[str, str]) -> str:
    return urllib.parse.urlencode({**words, "mac": link_mac(key, words)})


def subscriber_of(key: bytes, address: str) -> str:
    """An address as subscriptions know it, so that none of them holds it."""
    return mac(key, "subscriber", address)[:32]


def new_challenge(key: bytes, now: int, chance: Callable[[int], bytes]) -> Json:
    """A proof of work in the wire format of ALTCHA, version 2. The counter is chosen here, so that
    no one waits longer than 150 000 tries take."""
    nonce, salt = chance(16), chance(16)
    counter = 20_000 + int.from_bytes(chance(8)) % 130_001
    parameters = {
        "algorithm": "SHA-256",
        "cost": 1,
        "expiresAt": now + CHALLENGE_LIFE,
        "keyLength": 32,
        "keyPrefix": proof(nonce, salt, counter)[:32],
        "nonce": nonce.hex(),
        "salt": salt.hex(),
    }
    return {"parameters": parameters, "signature": sealed(parameters, key)}


def proof(nonce: bytes, salt: bytes, counter: int) -> str:
    return hashlib.sha256(salt + nonce + counter.to_bytes(4)).hexdigest()


def sealed(parameters: Json, key: bytes) -> str:
    purpose = hmac.digest(key, b"captcha", "sha256")
    message = json.dumps(parameters, sort_keys=True, separators=(",", ":")).encode()
    return hmac.new(purpose, message, "sha256").hexdigest()


@dataclass(frozen=True)
class Captcha:
    """A captcha that was solved; it may be spent once, under its signature. `made_at` is known
    of our own only."""

    signature: str
    expires_at: int
    made_at: int | None = None


def solved_captcha(token: str, key: bytes, now: int) -> Captcha:
    """What a solution in the format of ALTCHA stands for; `Forbidden` if it is none."""
    refusal = Forbidden("人机验证失败，请重试", "captcha_failed")
    try:
        payload = strict_json(base64.b64decode(token, validate=True))
        challenge, solution = payload["challenge"], payload["solution"]
        parameters, counter = challenge["parameters"], solution["counter"]
        genuine = same(challenge["signature"], sealed(parameters, key))
        if not genuine or type(counter) is not int or now >= parameters["expiresAt"]:
            raise refusal
        nonce, salt = (bytes.fromhex(parameters[name]) for name in ("nonce", "salt"))
        derived = proof(nonce, salt, counter)
        if not derived.startswith(parameters["keyPrefix"]) or solution["derivedKey"] != derived:
            raise refusal
    except (BadRequest, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise refusal from None
    expires_at = parameters["expiresAt"]
    return Captcha(challenge["signature"], expires_at, expires_at - CHALLENGE_LIFE)


def too_fast(captcha: Captcha | None, text: str, now: int) -> bool:
    """Whether a text came sooner than a person types or pastes it: the widget asks for the
    challenge with the first letter. Long ones may take three seconds and no less; nobody is
    suspected for twenty letters."""
    made_at = captcha.made_at if captcha else None
    return made_at is not None and 0 <= now - made_at < min(3, len(text) // 20)


class CaptchaDown(Unavailable):
    """The provider of the captcha gives no verdict; the text is for the log."""

    code, retry_after = "captcha_down", 30


CAPTCHA_ACTION = "commentd"  # what a widget names as its action, where the provider has such
# Secrets that providers publish for trials; with them every token passes, wherever it is from.
TRIAL_SECRETS = [f"{n}x{'0' * 31}AA" for n in (1, 2, 3)]
TRIAL_SECRETS += ["0x" + "0" * 40, "6LeIxAcTAAAAAGG-vFI1TnRWxMZNFuojJ4WifJWe"]


def captcha_passed(config: Config, status: int, body: bytes) -> bool:
    """What a provider's answer to siteverify says; `CaptchaDown` when that is nothing, or a
    complaint about what is not the visitor's."""
    answer: Json = {}
    with contextlib.suppress(BadRequest):
        answer = strict_json(body)
    errors = str(answer.get("error-codes"))
    if re.search("(missing|invalid)-input-secret", errors):
        raise CaptchaDown("it refuses [captcha] secret")
    if 400 <= status < 500 and "input-response" in errors:
        return False  # the token is to blame: else a bad one would shut the others out
    if status != 200 or type(answer.get("success")) is not bool or "internal-error" in errors:
        raise CaptchaDown(f"status {status}, and no verdict")
    return answer["success"] and (config.captcha_secret in TRIAL_SECRETS or is_ours(config, answer))


def is_ours(config: Config, answer: Json) -> bool:
    """Whether a captcha was solved on a page of the blog, for this, and not by a machine."""
    pages = (*config.site_origins, config.server_public_url)
    hosts = [urllib.parse.urlsplit(page).hostname for page in pages if page]
    scored = config.captcha_provider == "recaptcha" and "score" in answer
    score: Any = answer.get("score") if scored else 1  # hCaptcha's score means the opposite
    human = type(score) in (int, float) and score >= 0.5  # as reCAPTCHA v3 suggests
    named = scored or config.captcha_provider == "turnstile" or "action" in answer
    ours = not named or answer.get("action") == CAPTCHA_ACTION
    return answer.get("hostname") in hosts and human and ours


# -- Filter -------------------------------------------------------------------

# Gary Robinson, "A Statistical Approach to the Spam Problem", Linux Journal 107 (2003), after Paul
# Graham's "A Plan for Spam": how bad each word is, by the comments that it was in, and Fisher's
# way to make one figure of the worst and the best. The constants are SpamBayes' (Options.py).
STRENGTH, UNKNOWN = 0.45, 0.5  # of a word that was never seen: how sure, and how bad, it is
CLUES, LEAST_SAID = 150, 0.1  # the most that count; how far from the middle they are
LEAST_CLUES = 3  # where there are fewer, it is as if others had said neither
SPAM_SCORE = 0.9  # from here on it is held
LEAST_LEARNT, LEAST_OF_EACH = 20, 5

# Han, kana, Hangul, Thai, Lao, Khmer, Burmese: no blanks part their words.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30fa\u30fc-\u30ff\u3400-\u9fff\uac00-\ud7af"
)
# Vowels and tones, which are no letters to `re`: Hindi would fall into single consonants.
MARKS = "".join(c for c in map(chr, range(0x300, 0x1B00)) if unicodedata.category(c)[0] == "M")
LETTER = rf"(?:[^\W_{UNSPACED}][{MARKS}]*)"
# Compiled when the first comment is judged: that takes as long as eight modules.
WORDS = rf"[{UNSPACED}]+|{LETTER}+(?:['’-]{LETTER}+)*"
# What is put between the letters to hide a word: 加-微-信.
BETWEEN = rf"(?<=[{UNSPACED}])(?:(?![{UNSPACED}])[\W_])+(?=[{UNSPACED}])"


def tokens_of(nickname: str, website: str, markup: str) -> list[str]:
    """What a comment is known by, each once: words, where there are no blanks pairs of letters,
    the hosts of links, how many there are, and the words of the name."""
    shown = re.sub(r"</?(?:a|em|strong|del|code)\b[^>]*>", "", markup)  # via**gra** is one word
    shown = folded(html.unescape(re.sub(r"<[^>]*>", " ", shown)))
    shown = re.sub(r"https?://\S+", " ", shown)  # of which the host is told below
    shown = re.sub(BETWEEN, "", shown)
    hosts = hosts_in(html.unescape(markup), website)
    parents = {".".join(host.split(".")[-2:]) for host in hosts}
    links = [f"link:{folded(host)[:80]}" for host in sorted(hosts | parents)]
    count = min(5, markup.count("<a ") + bool(website))
    words = [*words_in(shown), *(f"name:{word}" for word in words_in(folded(nickname)))]
    return [*dict.fromkeys([*words, *links, f"links:{count}"])]


def words_in(text: str) -> Iterator[str]:
    for word in re.findall(WORDS, text):
        if not re.match(f"[{UNSPACED}]", word):
            yield word[:40]
        elif len(word) == 1:
            yield word
        else:
            yield from map("".join, itertools.pairwise(word))


def token_hash(key: bytes, token: str) -> int:
    """As what the database knows a word, so that it holds none: a signed number of 64 bits."""
    digest = hashlib.blake2b(token.encode(), digest_size=8, key=key[:64]).digest()
    return int.from_bytes(digest, signed=True)


def badness(seen: tuple[int, int], all: tuple[int, int]) -> float:
    """Robinson's f(w), 0 to 1, of a word that was `seen` in so many good and bad comments of
    `all`."""
    good, bad = (min(1, n / most) if most else 0 for n, most in zip(seen, all, strict=True))
    number = sum(seen)
    share = bad / (good + bad) if number else 0
    return (STRENGTH * UNKNOWN + number * share) / (STRENGTH + number)


def spam_score(clues: Iterable[float]) -> float:
    """0 (good) to 1 (spam); 0.5 where the clues say nothing, or both."""
    found = [*clues]
    found += [UNKNOWN] * (LEAST_CLUES - len(found))
    bad = 1 - chi_squared(-2 * sum(math.log(1 - clue) for clue in found), len(found))
    good = 1 - chi_squared(-2 * sum(math.log(clue) for clue in found), len(found))
    return (1 + bad - good) / 2


def chi_squared(x: float, pairs: int) -> float:
    """How often chance alone gives so much, with twice as many degrees of freedom."""
    term = total = math.exp(-x / 2)
    for i in range(1, pairs):
        term *= x / 2 / i
        total += term
    return min(total, 1.0)


# -- World --------------------------------------------------------------------

ANSWER_LIMIT = 64 * 1024
SMTP_PATIENCE = 30  # seconds for one letter


def assets_folder() -> Path:
    """`static/` beside the module, or where a wheel puts it."""
    here = Path(__file__).resolve().parent
    return next((p for p in (here / "static", here / "commentd_static") if p.is_dir()), here)


@functools.cache
def all_words() -> dict[str, dict[str, str]]:
    words: dict[str, dict[str, str]] = json.loads((assets_folder() / "letters.json").read_bytes())
    return words


# Whose letters tell a language; the Japanese write Chinese ones too.
LETTERS = {"ja": "[ぁ-ヿ]", "ko": "[가-힣]", "zh": "[㐀-鿿]", "ar": "[؀-ۿ]", "ru": "[Ѐ-ӿ]"}


def language_of(said: str, text: str) -> str:
    """Of letters about a comment: what the widget said, else what it was written in."""
    for language in (said.lower(), said[:2].lower()):
        if language in all_words():
            return language
    return next((name for name, letter in LETTERS.items() if re.search(letter, text)), "en")


def direction_of(language: str) -> str:
    return "rtl" if language == "ar" else "ltr"


def letter_words(language: str) -> dict[str, str]:
    """The words of letters, and of the pages that their links lead to."""
    return all_words().get(language) or all_words()["en"]


@contextlib.contextmanager
def dialled(
    host: str, port: int, tls: bool, wait: float, patience: float
) -> Iterator[socket.socket]:
    """A connection that ends after `patience` seconds, however slowly the other side drips."""
    ends = time.monotonic() + patience
    line = socket.create_connection((host, port), timeout=wait)
    # A copy of the socket is watched, since TLS takes the socket itself over.
    with line, line.dup() as watched:
        ends_at = threading.Timer(max(0, ends - time.monotonic()), hang_up, [watched])
        try:
            ends_at.start()
        except RuntimeError as error:  # no further thread is to be had
            raise OSError(str(error)) from None
        try:
            if tls:
                line = ssl.create_default_context().wrap_socket(line, server_hostname=host)
            yield line
        finally:
            ends_at.cancel()


def hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)


def fetch(
    url: str, form: Mapping[str, str] | None = None, message: bytes | None = None, **headers: str
) -> tuple[int, bytes]:
    """GET, or POST of a form or of a message in JSON, to an address that the owner set: status and
    body, `OSError` for everything else. Five seconds, 64 KiB, no redirect, no proxy of the
    environment; TLS is verified. `a_b` is the header a-b."""
    place = urllib.parse.urlsplit(url)
    host, tls = place.hostname or "", place.scheme == "https"
    target = urllib.parse.urlunsplit(("", "", place.path or "/", place.query, ""))
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers |= {"Connection": "close", "Accept": "application/json", "User-Agent": "commentd"}
    body, text = message, bytearray(ANSWER_LIMIT + 1)
    if form is not None:
        body = urllib.parse.urlencode(form).encode()
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    elif message is not None:
        headers["Content-Type"] = "application/json"
    client, port = http.client.HTTPConnection(place.netloc), place.port or (443 if tls else 80)
    with dialled(host, port, tls, wait=2, patience=5) as line, contextlib.closing(client):
        client.sock = line
        try:
            client.request("GET" if body is None else "POST", target, body, headers)
            # Not by read(), which a chunk of -1 bytes makes read without end.
            with client.getresponse() as reply:
                size = reply.readinto(text)
        except http.client.HTTPException as error:
            raise OSError(type(error).__name__) from None
    if size > ANSWER_LIMIT and message is None:  # of which the status is all that counts
        raise OSError("the answer is too long")
    return reply.status, bytes(text[:size])


class Replies:
    """What a mail server says, up to 64 KiB in whole lines: smtplib would keep a reply that never
    ends, and take a long line for a refusal for good."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.left, self.close = file, ANSWER_LIMIT, file.close

    def readline(self, _: int) -> bytes:
        line = self.file.readline(min(8000, self.left))
        self.left -= len(line)
        return line if line.endswith(b"\n") else b""


class MailClient(smtplib.SMTP):
    def getreply(self) -> tuple[int, bytes]:
        if self.sock:
            self.file = self.file or Replies(self.sock.makefile("rb"))
        return super().getreply()


def send_letter(config: Config, letter: Letter | None) -> None:
    """Hand a letter to the mail server, or print it where there is none; None: just log in."""
    if letter and not config.mail_host:
        print_letter(letter)
        return
    host, security = config.mail_host, config.mail_security
    port = config.mail_port or {"starttls": 587, "tls": 465, "none": 25}[security]
    client, tls = MailClient(timeout=10), security == "tls"
    with dialled(host, port, tls, 10, SMTP_PATIENCE) as line, contextlib.closing(client):
        # smtplib would connect by itself, but then nothing could end a handshake that drips.
        client.sock = line
        client._host = host  # type: ignore[attr-defined]  # starttls() checks it
        status, words = client.getreply()
        if status != 220:
            raise smtplib.SMTPConnectError(status, words)
        if security == "starttls":
            client.starttls(context=ssl.create_default_context())
        if config.mail_user:
            client.login(config.mail_user, config.mail_password)
        if letter:
            _, sender = name_and_address(config.mail_sender or config.mail_user)
            client.sendmail(sender, [letter.recipient], letter.message.encode())
        with contextlib.suppress(smtplib.SMTPException, OSError):
            client.quit()  # what was said before holds


def print_letter(letter: Letter) -> None:
    message = email.message_from_string(letter.message, policy=email.policy.SMTP)
    text, frame = message.get_content().replace("\r\n", "\n"), "-" * 72
    head = f"To: {message['To']}\nSubject: {message['Subject']}\n"
    print(f"{frame}\n{head}\n{text}{frame}", flush=True)


@dataclass(frozen=True)
class World:
    """What lies outside the process; a test hands in its own."""

    now: Callable[[], float] = time.time
    chance: Callable[[int], bytes] = secrets.token_bytes
    send: Callable[[Config, Letter | None], None] = send_letter
    fetch: Callable[..., tuple[int, bytes]] = fetch


# -- Mail ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Office:
    """What letters are written, kept and sent with."""

    config: Config
    world: World
    store: Store
    key: bytes


def site_name(config: Config) -> str:
    """What the blog is called where nobody said."""
    address = config.site_origins[0] if config.site_origins else config.server_public_url
    return config.site_name or urllib.parse.urlsplit(address).netloc or "commentd"


def sender_of(config: Config) -> email.headerregistry.Address:
    user = config.mail_user if MAILBOX.fullmatch(config.mail_user) else "commentd@localhost"
    name, sender = name_and_address(config.mail_sender or user)
    return email.headerregistry.Address(name or site_name(config), addr_spec=sender)


def compose(
    config: Config, world: World, to: str, subject: str, text: str, life: int, **headers: str
) -> Json:
    """A letter for the outbox, due at once, given up after `life` seconds. Its text is whole,
    and such that any mail server takes it. `In_Reply_To` is the header In-Reply-To."""
    message = email.message.EmailMessage(policy=email.policy.SMTP)
    address, now = sender_of(config), int(world.now())
    headers = {"Message_ID": f"<{world.chance(16).hex()}@{address.domain}>", **headers}
    # By hand: Python makes encoded words of long ones, which nobody reads there (RFC 2047, 5), and
    # drops the quotes of a long name, but one that it encodes.
    if address.display_name.isascii():
        headers["From"] = str(address)
    else:
        message["From"] = address
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    message["To"] = email.headerregistry.Address(addr_spec=to)
    message["Subject"] = one_line(subject)
    message["Date"] = datetime.fromtimestamp(now, UTC)
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: no one's holiday shall answer
    message.set_content(text, cte="base64")
    whole = head + message.as_bytes().decode("ascii")
    times = {"created_at": now, "due_at": now, "expires_at": now + life}
    return {"recipient": to, "message": whole, **times}


CODE_LETTER = """\
你的验证码 / Your code:

    {code}

请在 {site} 的评论区输入，10 分钟内有效（北京时间 {until} 之前）。
Enter it in the comments of {site} within 10 minutes (before {until}, Beijing time).
{warning}
不是你本人操作？忽略这封邮件即可，什么都不会改变。
Was it not you? Ignore this letter, and nothing changes.
"""

CHANGE_WARNING = """
这个邮箱已有账号：确认后，密码和昵称会改为刚才填写的。
This address has an account: the code changes its password and nickname to those just typed.
"""

CHANGED_LETTER = """\
你在 {site} 的评论账号刚刚修改了密码（可能还有昵称），其他设备上的登录已全部失效。
The password, and perhaps the nickname, of your comment account at {site} was just changed, and
all other logins have ended.

不是你本人操作？请用这个邮箱重新注册一次，即可设置新密码。
Was it not you? Register again with this address to set a new password.
"""


def code_letter(config: Config, world: World, recipient: str, code: str, known: bool) -> Json:
    """The letter with the code of a registration. It holds nothing that a stranger typed."""
    site, until = site_name(config), datetime.fromtimestamp(world.now() + CODE_LIFE, BEIJING)
    warning = CHANGE_WARNING if known else ""
    text = CODE_LETTER.format(code=code, site=site, until=f"{until:%H:%M}", warning=warning)
    subject = f"{code} · {site} 验证码 / your code"
    return compose(config, world, recipient, subject, text, CODE_LIFE)


def changed_letter(config: Config, world: World, recipient: str) -> Json:
    site = site_name(config)
    subject = f"{site}：密码已修改 / password changed"
    return compose(config, world, recipient, subject, CHANGED_LETTER.format(site=site), DAY)


BEIJING = timezone(timedelta(hours=8))


def signed_link(office: Office, language: str, **words: str) -> str:
    """An address whose words nobody else can choose; "" where readers can't reach us. Opening it
    changes nothing: its page has a button."""
    public = office.config.server_public_url
    return public and f"{public}/mail?{signed_query(office.key, {**words, 'lang': language})}"


def judging_link(
    office: Office,
    comment: Comment,
    status: str,
    language: str = "",
    to: str = "",
    made_at: int | None = None,
) -> str:
    """It gives a comment another status, as long as its text is what it was, and who got it is one
    of the owners."""
    until = str((made_at or int(office.world.now())) + LINK_LIFE)
    words = {"do": status, "was": comment.status, "until": until, "id": str(comment.id)}
    words["who"] = subscriber_of(office.key, to)
    return signed_link(office, language or comment.language, version=text_version(comment), **words)


def quoted(text: str, most: int = 2000) -> str:
    """Fenced, so that it can't be taken for words of ours."""
    shown = text if len(text) <= most else text[:most] + " …"
    return "\n".join(f"> {line}" for line in shown.splitlines())


def thread_headers(office: Office, to: str, comment: Comment, again: int | None) -> dict[str, str]:
    """What keeps the letters of a thread together in a mail program (RFC 5322, 3.6.4), and one
    that comes `again` apart from the one before."""
    domain, edit = sender_of(office.config).domain, again or comment.edited_at

    def message_id(comment_id: int, edit: int | None = None) -> str:
        secret = mac(office.key, "message", to, comment_id)[:12]
        return f"<comment-{comment_id}-{secret}{f'.{edit}' if edit else ''}@{domain}>"

    above = [id for id in (comment.thread_id, comment.parent_id, edit and comment.id) if id]
    headers = {"Message_ID": message_id(comment.id, edit)}
    if above:
        headers["In_Reply_To"] = message_id(above[-1])
        headers["References"] = "\r\n ".join(map(message_id, dict.fromkeys(above)))
    return headers


def letter_about(
    office: Office,
    kind: str,
    subject: str,
    to: str,
    words: Mapping[str, str],
    cases: list[Case],
    texts: list[str],
    **headers: str,
) -> Json:
    """A letter that tells the owner, the author of what was answered, or a follower of a page;
    `subject` is the first word of the name of one."""
    first, config = cases[0], office.config
    foreign = is_foreign(first.page_url, config.site_origins)
    page = words["elsewhere"] if foreign else first.page_url[:80]
    name = f"{subject}_subject" if len(cases) == 1 else f"{subject}_many_subject"
    subject = words[name].format(site=site_name(config), page=page, n=len(cases))
    text = f"\n{'-' * 40}\n\n".join(texts)
    reports = office.store.reports(first.id) if kind == "owner" else []
    headers |= thread_headers(office, to, first, reports[-1]["reported_at"] if reports else None)
    return compose(config, office.world, to, subject, text, DAY, **headers)


def name_of(words: Mapping[str, str], comment: Comment) -> str:
    """Of an author; who deleted his account has none."""
    return comment.nickname or words["thread_anonymous"]


def read_line(words: Mapping[str, str], link: str, case: Case) -> str:
    """Where a comment can be read; "" where its page can't be opened."""
    return words["read"].format(link=comment_link(link, case.id)) if link else ""


def owner_letter(office: Office, to: str, cases: list[Case]) -> Json:
    """What is new, and first of all what the owner is asked about."""
    reported = {case.id: office.store.reports(case.id) for case in cases}
    cases = sorted(cases, key=lambda case: case.status != "waiting" and not reported[case.id])
    language = office.config.notify_language
    language = cases[0].language if language == "comment" else language
    words, texts = letter_words(language), []
    public, origins = office.config.server_public_url, office.config.site_origins
    for case in cases[:20]:
        waits, foreign = case.status == "waiting", is_foreign(case.page_url, origins)
        links = {status: judging_link(office, case, status, language, to) for status in STATES}
        reports = [row["reason"] or words["report_none"] for row in reported[case.id]]
        state, kind = words["owner_waiting"].format(held=held_because(words, case)), "owner_waiting"
        if reports:
            kind = "owner_reported"
            reasons = "\n" + "\n".join(quoted(r, 200) for r in [*dict.fromkeys(reports)][:5])
            state = words[kind].format(n=len(reports), reasons=reasons)
        judging = words[f"{kind}_links" if waits or reports else "owner_links"].format(**links)
        said = {
            "nickname": name_of(words, case),
            "page": case.page_url[:120] + (words["foreign"] if foreign else ""),
            "quote": quoted(case.content) + (f"\n> \n> {case.website}" if case.website else ""),
            "state": state if waits or reports else "",
            "links": judging if public else "",
            "read": read_line(words, page_link(case.page_url, origins), case),
        }
        texts.append(words["owner_reported_text" if reports else "owner_text"].format(**said))
    if len(cases) > 20:
        texts.append(words["owner_more"].format(n=len(cases) - 20))
    if public:
        texts[-1] += words["owner_all"].format(link=f"{public}/admin")
    subject = "owner_reported" if len(cases) == 1 and reports else "owner"
    return letter_about(office, "owner", subject, to, words, cases, texts)


def held_because(words: Mapping[str, str], case: Comment) -> str:
    """Why a comment waits."""
    kind, _, value = case.held.partition(": ")
    if kind == "learnt":
        score, _, said = value.partition(" ")
        value = f"{said} ({score})"
    return words.get(f"held_{kind}", "{held}").format(value=value, held=case.held)


Pair = tuple[Case, Case]  # a reply, and what it replies to


def answer_letter(office: Office, to: str, pairs: list[Pair]) -> Json:
    """Answers on a page, to the author of what they answer, who can end such letters."""
    own, headers, texts = pairs[0][1], {}, []
    words, origins = letter_words(own.language), office.config.site_origins
    for answer, above in pairs:
        said = {
            "nickname": name_of(words, answer),
            "site": site_name(office.config),
            "quote": quoted(answer.content),
            "own": quoted(above.content, 300),
            "read": read_line(words, own_link(answer.page_url, origins), answer),
        }
        texts.append(words["author_text"].format(**said))
    if office.config.server_public_url:
        who = {"who": subscriber_of(office.key, to), "id": str(own.id)}
        ends = {do: signed_link(office, own.language, do=do, **who) for do in ("stop", "stop_all")}
        texts[-1] += words["author_end"].format(**ends)
        headers = one_click(ends["stop"])
    answers = [answer for answer, _ in pairs]
    return letter_about(office, "author", "author", to, words, answers, texts, **headers)


def one_click(link: str) -> dict[str, str]:
    """What lets a mail program end such letters (RFC 8058)."""
    post = "List-Unsubscribe=One-Click"
    return {"List_Unsubscribe": f"<{link}>", "List_Unsubscribe_Post": post}


def follower_letter(office: Office, reader: Account, language: str, cases: list[Case]) -> Json:
    """What is new on pages, to one who follows them; each page with a way to end that."""
    words, texts, ends = letter_words(language), [], []
    cases = sorted(cases, key=lambda case: (case.page_id, case.id))
    who = {"who": subscriber_of(office.key, reader.email), "user": str(reader.id)}
    for page_id, of_page in itertools.groupby(cases[:20], lambda case: case.page_id):
        for case in of_page:
            said = {
                "nickname": name_of(words, case),
                "site": site_name(office.config),
                "quote": quoted(case.content),
                "read": read_line(words, own_link(case.page_url, office.config.site_origins), case),
            }
            texts.append(words["follow_text"].format(**said))
        which = {**who, "do": "unfollow", "id": str(case.id), "page": str(page_id)}
        ends.append(signed_link(office, language, **which))
        texts[-1] += words["follow_end"].format(stop=ends[-1]) if ends[-1] else ""
    if len(cases) > 20:
        texts.append(words["owner_more"].format(n=len(cases) - 20))
    if len(ends) > 1:  # one click ends all that it tells of, and more
        all_of_them = {**who, "do": "unfollow", "id": "0", "page": "0"}
        ends = [signed_link(office, language, **all_of_them)]
    headers = one_click(ends[0]) if ends[0] else {}
    subject = "follow" if cases[0].page_id == cases[-1].page_id else "owner"
    return letter_about(office, "follower", subject, reader.email, words, cases, texts, **headers)


def asking_letter(office: Office, above: Case) -> Json:
    """Asks the owner of an address that a guest gave; nothing in it is a stranger's."""
    words, site, to = letter_words(above.language), site_name(office.config), above.email
    said = {"who": subscriber_of(office.key, to), "id": str(above.id)}
    until = str(int(office.world.now()) + LINK_LIFE)
    confirm = signed_link(office, above.language, do="confirm", until=until, **said)
    text, subject = words["ask_text"].format(site=site, confirm=confirm), words["ask_subject"]
    letter = compose(office.config, office.world, to, subject.format(site=site), text, DAY)
    return {**letter, "subscriber": said["who"]}


WEBHOOK = "webhook"  # in place of an email address


def call_webhook(office: Office, comment_id: int, event: str, reason: str = "") -> None:
    """Tell the owner's program or chat of a comment: `event` is created or reported. What it is
    told is made when it is sent."""
    if office.config.webhook_url:
        now = int(office.world.now())
        times = {"created_at": now, "due_at": now, "expires_at": now + DAY}
        what = {"comment_id": comment_id, "event": event, "message": reason}
        office.store.add_letter(recipient=WEBHOOK, **what, **times)


def hook_body(office: Office, case: Case, webhook: Letter) -> Json:
    """What a webhook of that kind is sent, the same at each try unless the comment has changed.
    Neither a full address nor an e-mail is in it."""
    event, reason, made_at = webhook.event, webhook.message, webhook.created_at
    config, language = office.config, office.config.notify_language
    language = case.language if language == "comment" else language
    words, link = letter_words(language), page_link(case.page_url, config.site_origins)
    waits, reported = case.status == "waiting", event == "reported"
    judging = ["visible", "spam", "deleted"] if waits or reported else STATES[2:]
    links = {do: judging_link(office, case, do, language, WEBHOOK, made_at) for do in judging}
    links = {do: url for do, url in links.items() if url}
    link = comment_link(link, case.id) if link else ""
    if config.webhook_kind == "json":
        names = "id page_url parent_id nickname website content html country location status held"
        said = picked(case, f"{names} user_id language") | {"ip": masked(case.ip)}
        said |= {"created_at": rfc3339(case.created_at), "reason": reason}
        data = {**said, "link": link, "links": links}
        return {"type": f"comment.{event}", "timestamp": rfc3339(made_at), "data": data}
    page = words["elsewhere"] if is_foreign(case.page_url, config.site_origins) else case.page_url
    subject = words["owner_reported_subject" if reported else "owner_subject"]
    subject = subject.format(site=site_name(config), page=page[:80])
    state = words["hook_waiting"].format(held=held_because(words, case))
    if reported:
        state = words["hook_reported"].format(reason=reason or words["report_none"])
    told = name_of(words, case) + (f" ({state})" if reported or waits else "")
    # Slack takes 3000 characters, Discord 4096 with all that has to be escaped and the links.
    text = case.content if len(case.content) <= 1000 else f"{case.content[:1000]} …"
    buttons = [(words[f"button_{do}"], url) for do, url in links.items()]
    buttons += [(words["page"], link)] if 0 < len(link) < 500 else []
    return CHATS[config.webhook_kind](config, subject, f"{told}\n\n{text}", buttons)


Buttons = list[tuple[str, str]]  # label and address


def for_slack(config: Config, subject: str, text: str, buttons: Buttons) -> Json:
    """docs.slack.dev/messaging/sending-messages-using-incoming-webhooks"""
    bare = {"type": "plain_text", "text": f"{subject}\n{text}"}
    links = " · ".join(f"<{html.escape(url, quote=False)}|{label}>" for label, url in buttons)
    blocks = [{"type": "section", "text": bare}]
    if links:
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": links}})
    return {"text": html.escape(subject, quote=False), "blocks": blocks}


def for_discord(config: Config, subject: str, text: str, buttons: Buttons) -> Json:
    """docs.discord.com/developers/resources/webhook: nobody is called by what a stranger wrote."""
    # Each mark, so that no text is a link, a name or an emphasis.
    text = re.sub(r"([\\*_~`|<>\[\]()#@:-])", r"\\\1", text)
    buttons = [(label, url.replace("(", "%28").replace(")", "%29")) for label, url in buttons]
    links = " · ".join(f"[{label}]({url})" for label, url in buttons)
    text = re.findall(r"(?s)(?:\\.|[^\\])*", text[: 4094 - len(links)])[0]  # whole escapes
    embed = {"title": subject[:256], "description": f"{text}\n\n{links}"}
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def for_telegram(config: Config, subject: str, text: str, buttons: Buttons) -> Json:
    """core.telegram.org/bots/api#sendmessage: bare text, so that nothing in it is markup."""
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(config.webhook_url).query)
    # For one button that it does not like, Telegram refuses the whole message, as with a host that
    # has no dot (github.com/rubenlagus/TelegramBots/issues/302). So only our own links are buttons:
    # in the text, any address will do.
    public = config.server_public_url
    takes_ours = "." in (urllib.parse.urlsplit(public).hostname or "")
    ours = [each for each in buttons if takes_ours and each[1].startswith(f"{public}/")]
    keys = [[{"text": label, "url": url}] for label, url in ours]
    others = [f"{label}: {url}" for label, url in buttons if (label, url) not in ours]
    quiet = {"link_preview_options": {"is_disabled": True}}
    lines = "\n".join([f"{subject}\n\n{text}", *others])
    said = {"chat_id": query["chat_id"][0], "text": lines}
    return said | quiet | ({"reply_markup": {"inline_keyboard": keys}} if keys else {})


def for_feishu(config: Config, subject: str, text: str, buttons: Buttons) -> Json:
    """open.feishu.cn, custom bots: a post."""
    links: list[Json] = [{"tag": "a", "text": f"{label} ", "href": url} for label, url in buttons]
    lines: list[list[Json]] = [[{"tag": "text", "text": text}], links]
    post = {"zh_cn": {"title": subject, "content": lines[: 2 if links else 1]}}
    return {"msg_type": "post", "content": {"post": post}}


CHATS: dict[str, Callable[[Config, str, str, Buttons], Json]] = {
    "slack": for_slack,
    "discord": for_discord,
    "telegram": for_telegram,
    "feishu": for_feishu,
}


class WebhookRefused(ConnectionError):
    """The receiver is there, and does not take this one."""


def send_webhook(office: Office, webhook: Letter, case: Case) -> None:
    """One try; `OSError` unless it was taken. The id is the same in each, the time is not."""
    config, world = office.config, office.world
    now, key = str(int(world.now())), key_of_webhook(config.webhook_secret)
    told, headers = hook_body(office, case, webhook), {}
    if key and config.webhook_kind == "feishu":
        # open.feishu.cn: of nothing, with the time and the secret as the key.
        sign = hmac.digest(f"{now}\n{config.webhook_secret}".encode(), b"", "sha256")
        told |= {"timestamp": now, "sign": base64.b64encode(sign).decode()}
    body = json.dumps(told, ensure_ascii=False).encode()
    if config.webhook_kind == "json":
        number = f"msg_{mac(office.key, 'webhook', webhook.id, webhook.created_at)[:32]}"
        headers = {"webhook_id": number, "webhook_timestamp": now}
        sign = hmac.digest(key, f"{number}.{now}.".encode() + body, "sha256")
        if key:  # github.com/standard-webhooks/standard-webhooks
            headers["webhook_signature"] = f"v1,{base64.b64encode(sign).decode()}"
    status, answer = world.fetch(config.webhook_url, message=body, **headers)
    if 400 <= status < 500 and status not in (408, 429):
        raise WebhookRefused(0, str(status))
    refusal = config.webhook_kind == "feishu" and re.search(rb'"code":\s*([1-9]\d*)', answer)
    if not 200 <= status < 300 or refusal:
        raise ConnectionError(0, f"{status} {refusal[1].decode() if refusal else ''}".strip())


def owners(office: Office, page_url: str) -> list[str]:
    """Who is told of new comments on a page."""
    named = office.config.notify_owner or tuple(admin.email for admin in office.store.admins())
    own = {host_of(origin) for origin in office.config.site_origins}
    key = page_name(page_url, own).key
    for rule in office.config.notify_pages:
        pattern, _, addresses = rule.rpartition(" = ")
        # `*` alone is a wildcard. fnmatch takes no step back, however a stranger wrote the page.
        stars = glob.escape(page_name(pattern, own).key).replace("[*]", "*")
        if any(fnmatch.fnmatchcase(spelling, stars) for spelling in (key, f"{key}/")):
            named = tuple(addresses.split(", "))
            break
    return [address for address in named if EMAIL.fullmatch(address)]


BUNDLE = 9 * MINUTE  # between two emails to one person: with the wait of the worker, ten
BATCH = 10  # emails that are written in one transaction: other writers wait for some milliseconds
FOLLOWERS_BATCH = 200  # of a page, who are looked up in one transaction


@dataclass(frozen=True)
class Draft:
    """What becomes of some notifications of one recipient: an email carries them, or they wait for
    so many seconds, or they go. `cases` are what it was decided by, and the email quotes."""

    ids: list[int]
    cases: list[Case] = field(default_factory=list)
    email: Json | None = None
    wait: int = 0
    limits: tuple[tuple[str, str, int, int], ...] = ()  # of emails, for `Store.take`


def find_recipients(office: Office) -> bool:
    """Look up whom the next new comment concerns; False where there is none."""
    store = office.store
    news = store.unaddressed(int(office.world.now()))
    case = store.case(news.comment_id) if news else None
    if news is None or case is None:
        return False
    above = store.case(case.parent_id or 0) if news.kind == "author" else None
    recipients = [above.email] if above and above.email else []
    if news.kind == "owner":
        recipients = owners(office, case.page_url)
    with store.writing():
        if news.kind == "follower":
            store.address_followers(news, case.page_id, FOLLOWERS_BATCH)
        else:
            store.address(news, recipients)
    return True


def write_emails(office: Office) -> bool:
    """Write emails to the next recipients; False where nobody is to hear of anything now. They are
    composed before the transaction, which takes only those whose comments did not change."""
    store, now = office.store, int(office.world.now())
    for kind, drafts_for in DRAFTS.items():
        recipients = store.due_recipients(kind, now, BATCH)
        drafts = [draft for to in recipients for draft in drafts_for(office, to, now)]
        for start in range(0, len(drafts), BATCH):
            write_drafts(store, drafts[start : start + BATCH], now)
        if drafts:
            return True
    return False


def write_drafts(store: Store, drafts: list[Draft], now: int) -> None:
    with store.writing():
        pending = store.pending(id for draft in drafts for id in draft.ids)
        fresh = store.cases_with({case.id for draft in drafts for case in draft.cases})
        for draft in drafts:
            same = all(fresh.get(case.id) == case for case in draft.cases)
            if same and pending.issuperset(draft.ids):
                write_draft(store, draft, now)


def write_draft(store: Store, draft: Draft, now: int) -> None:
    if draft.wait:
        store.postpone(draft.ids, now + draft.wait)
    elif draft.email is None:
        store.drop_notifications(draft.ids)
    # Another draft of the batch may have taken the last: this one is drafted anew.
    elif not any(store.take(*limit, now) for limit in draft.limits):
        if "subscriber" in draft.email:
            store.subscribe(draft.email["subscriber"], 0, "asked")
        store.carry(draft.ids, store.add_letter(**draft.email))


def bundled(
    office: Office,
    ids: Iterable[int],
    cases: list[Case],
    compose_email: Callable[[], Json],
    now: int,
    *limits: tuple[str, str, int, int],
) -> Draft:
    """An email, unless its recipient has had enough lately."""
    if wait := max(office.store.wait_for(*limit, now) for limit in limits):
        return Draft([*ids], wait=wait)
    return Draft([*ids], cases, compose_email(), limits=limits)


def due_news(office: Office, kind: str, to: str, now: int) -> dict[int, Case]:
    """What a recipient is to hear of, by the numbers of the notifications."""
    due = office.store.due_notifications(kind, to, now)
    cases = office.store.cases_with({each.comment_id for each in due})
    return {each.id: cases[each.comment_id] for each in due if each.comment_id in cases}


def unwanted(news: Iterable[int], wanted: Iterable[int]) -> Iterator[Draft]:
    """The notifications that go, if any do."""
    if ids := [*{*news}.difference(wanted)]:
        yield Draft(ids)


def owner_drafts(office: Office, to: str, now: int) -> Iterator[Draft]:
    """All that is new in one email."""
    news = due_news(office, "owner", to, now)
    wanted = {
        id: case
        for id, case in news.items()
        if to in owners(office, case.page_url) and not (case.user_id and case.email == to)
    }
    yield from unwanted(news, wanted)
    if wanted:
        limit = ("bundle", f"owner {subscriber_of(office.key, to)}", 1, BUNDLE)
        cases = [*wanted.values()]
        yield bundled(office, wanted, cases, lambda: owner_letter(office, to, cases), now, limit)


def author_drafts(office: Office, to: str, now: int) -> Iterator[Draft]:
    """To the author of what was replied to, an email for each page. A guest is asked first, once:
    whoever wrote may have named another's address."""
    store, news = office.store, due_news(office, "author", to, now)
    above = store.cases_with({case.parent_id for case in news.values() if case.parent_id})
    pairs = {id: (case, above[case.parent_id or 0]) for id, case in news.items()}
    # What its author edited may wait for the owner: its replies are told when it is shown again.
    paused = [id for id, (_, parent) in pairs.items() if parent.status == "waiting"]
    if paused:
        yield Draft(paused, wait=HOUR)
    pairs = {id: pair for id, pair in pairs.items() if is_for_author(office, to, *pair)}
    answer = store.subscriptions(subscriber_of(office.key, to)).get(0)
    wanted = {id: pair for id, pair in pairs.items() if pair[1].user_id or answer == "yes"}
    unasked = {id: pair for id, pair in pairs.items() if id not in wanted and answer is None}
    if not office.config.server_public_url:
        unasked = {}
    yield from unwanted(news, [*wanted, *unasked, *paused])
    by_page: dict[int, dict[int, Pair]] = {}
    for id, pair in wanted.items():
        by_page.setdefault(pair[0].page_id, {})[id] = pair
    for page_id, replies in by_page.items():
        yield reply_draft(office, to, page_id, replies, now)
    if unasked:
        yield question_draft(office, unasked, now)


def is_for_author(office: Office, to: str, answer: Case, above: Case) -> bool:
    """Whether an author may be told of a reply, or asked whether they want to be."""
    own = above.user_id == answer.user_id if above.user_id else above.email == answer.email
    if own or above.status != "visible" or above.email != to or not EMAIL.fullmatch(to):
        return False
    return to not in owners(office, above.page_url) and not is_off(office, to, above.page_id)


def reply_draft(
    office: Office, to: str, page_id: int, replies: Mapping[int, Pair], now: int
) -> Draft:
    """An email about replies on one page, six an hour."""
    who, pairs = subscriber_of(office.key, to), [*replies.values()]
    limits = ("bundles", who, 6, HOUR), ("bundle", f"{who} {page_id}", 1, BUNDLE)
    cases = [case for pair in pairs for case in pair]
    return bundled(office, replies, cases, lambda: answer_letter(office, to, pairs), now, *limits)


def question_draft(office: Office, replies: Mapping[int, Pair], now: int) -> Draft:
    """An email that asks a guest whether they want such emails."""
    # Whoever writes may name anybody's address: this must not become a way to write to strangers.
    limit = ("asks", "", 30, HOUR)
    if office.store.wait_for(*limit, now):
        return Draft([*replies])
    cases = [case for pair in replies.values() for case in pair]
    return Draft([*replies], cases, asking_letter(office, cases[1]), limits=(limit,))


def follower_drafts(office: Office, to: str, now: int) -> Iterator[Draft]:
    """What is new on the pages that somebody follows: but not what they wrote themselves, nor what
    they have another email about."""
    store, news = office.store, due_news(office, "follower", to, now)
    reader = store.account_of(to)
    if reader is None or reader.blocked:
        yield from unwanted(news, [])
        return
    wanted: dict[int, Case] = {}
    languages: list[str] = []
    for id, case in news.items():
        language = store.following(reader.id, case.page_id)
        if language and not concerns(office, reader, case):
            wanted[id] = case
            languages.append(language)
    yield from unwanted(news, wanted)
    if wanted:
        limit = ("bundle", f"follower {subscriber_of(office.key, to)}", 1, BUNDLE)
        cases = [*wanted.values()]
        write = functools.partial(follower_letter, office, reader, languages[0], cases)
        yield bundled(office, wanted, cases, write, now, limit)


def concerns(office: Office, reader: Account, case: Case) -> bool:
    """Whether a comment is a reader's own, or they are told of it anyway: as an owner, or as it
    replies to them."""
    if case.user_id == reader.id or reader.email in owners(office, case.page_url):
        return True
    above = office.store.comment(case.parent_id or 0)
    answered = above is not None and above.user_id == reader.id
    return answered and not is_off(office, reader.email, case.page_id)


def is_off(office: Office, address: str, page_id: int) -> bool:
    """Whether letters about answers there are not wanted."""
    said = office.store.subscriptions(subscriber_of(office.key, address))
    return "no" in (said.get(0), said.get(page_id))


DRAFTS: dict[str, Callable[[Office, str, int], Iterator[Draft]]] = {
    "owner": owner_drafts,
    "author": author_drafts,
    "follower": follower_drafts,
}


def deliver_due(office: Office) -> float:
    """Send what is due, and write and send the emails about comments. Codes go first each time.
    Seconds until the next one is due."""
    send_due(office)
    while find_recipients(office):
        send_due(office)
    while write_emails(office):
        send_due(office)
    due_at = office.store.next_due()
    return MINUTE if due_at is None else min(MINUTE, max(1, due_at - office.world.now()))


def send_due(office: Office) -> None:
    while letter := office.store.due_letter(int(office.world.now())):
        deliver(office, letter)


def deliver(office: Office, letter: Letter) -> None:
    """One try. The next one is written down before: where the disk takes no more, a letter that
    went out would be sent again and again. After a crash it goes out once more, with the same
    Message-ID."""
    store, now = office.store, int(office.world.now())
    tries = min(max(0, letter.tries), 999) + 1  # whatever the row says
    next_try = now + min(HOUR, 5 * 3 ** min(tries - 1, 9))
    with store.writing():
        if not store.begin_try(letter, min(next_try, letter.expires_at), tries):
            return  # what it tells of was hidden or changed since it was looked up
        carried = store.carried(letter.id)
    final = now >= letter.expires_at
    error = TimeoutError("expired") if final else failed_try(office, letter)
    with store.writing():
        if error is None:
            store.end_letter(letter.id, carried)
            return
        final = final or is_final(error)
        failure = "expired" if now >= letter.expires_at else failure_of(error)
        log.warning("letter %d: %s%s", letter.id, failure, "; given up" if final else "")
        if final:
            store.fail_letter(letter.id, tries, failure, now + 30 * DAY)
        else:
            store.note_failure(letter.id, tries, failure)
        if letter.event and not final and not isinstance(error, WebhookRefused):
            # Codes shall not wait for each of many in vain. The others are tried before this
            # one, which may itself be what is refused.
            store.put_off(WEBHOOK, now, next_try - 1, tries)


def failed_try(office: Office, letter: Letter) -> Exception | None:
    """Send it; why it was not taken, or None."""
    try:
        if not letter.event:
            office.world.send(office.config, letter)
            return None
        case = office.store.case(letter.comment_id or 0)
        if case and case.status in ("visible", "waiting"):
            send_webhook(office, letter, case)
    except (OSError, ValueError, smtplib.SMTPException) as error:
        return error
    return None


def failure_of(error: Exception) -> str:
    """What went wrong, without the words of the server, which may name addresses."""
    said = getattr(error, "smtp_code", "") or getattr(error, "strerror", "") or ""
    if isinstance(error, smtplib.SMTPNotSupportedError):
        said = f"{error} See [mail] security and user."  # smtplib's own words
    return f"{type(error).__name__} {said}".strip()


def is_final(error: Exception) -> bool:
    """Refused for good (RFC 5321, 4.2.1). A login that fails is the owner's to mend, not so."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(500 <= code < 600 for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return False
    return isinstance(error, smtplib.SMTPResponseException) and 500 <= error.smtp_code < 600


# -- Plumbing -----------------------------------------------------------------

BODY_LIMIT, LINE_LIMIT = 64 * 1024, 8 * 1024
READY_MOST = 128 * 1024  # of an answer that is kept: longer ones would take the loop too long

# How often, in how many seconds; a client, unless the name says otherwise.
LIMITS: dict[str, tuple[tuple[int, int], ...]] = {
    "register": ((5, HOUR),),
    "code": ((1, MINUTE),),  # a client and an address
    "mail": ((1, MINUTE), (5, HOUR), (10, DAY)),  # an address
    "mails": ((200, HOUR),),  # all
    "verify": ((10, 10 * MINUTE),),
    "guess": ((15, DAY),),  # an address, wrong codes
    "login": ((10, 10 * MINUTE),),
    "password": ((5, 10 * MINUTE),),  # a client and an address, wrong ones
    "comment": ((5, MINUTE), (60, HOUR)),
    "comments": ((300, HOUR),),  # all
    "like": ((10, MINUTE), (100, HOUR)),
    "like_one": ((20, DAY),),  # a client and a comment
    "likes": ((2000, HOUR),),  # all
    "page": ((20, HOUR),),  # new ones
    "pages": ((300, HOUR), (1000, DAY)),  # all, by views and likes: 10 kB each, kept for 90 days
    "follow": ((30, HOUR),),
    "report": ((5, HOUR), (20, DAY)),
    "reports": ((60, HOUR),),  # all
}
Share = tuple[str, str, int]  # the name of a limit, who takes, how many times the usual
# So often a minute, counted in memory.
MEMORY_LIMITS = {
    "challenge": 120,
    "preview": 120,
    "siteverify": 20,
    "view": 60,
    "link": 120,
    "export": 60,
}


class Hashing:
    """Two passwords are hashed at a time and six wait; whoever comes then is sent away, so
    that hashing never takes the threads that serve readers; nor their time, where threads can
    stand back (on Linux)."""

    SECONDS = 30  # for all eight to be hashed, on a slow machine

    def __init__(self) -> None:
        self.seats = threading.Semaphore(8)
        # Without an initializer: one that fails would break the pool for good.
        self.hands = ThreadPoolExecutor(2, "hashing")

    @staticmethod
    def stand_back() -> None:
        """Lets the threads that serve readers go first. A sandbox may refuse that."""
        if sys.platform == "linux":  # elsewhere it would be the whole process
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)

    def work(self, password: str, scheme: str) -> str:
        self.stand_back()
        return hashed(password, scheme)

    def hashed(self, password: str, scheme: str) -> str:
        """`Unavailable` when no thread does it, since the system gives no more of them."""
        try:
            return self.hands.submit(self.work, password, scheme).result(self.SECONDS)
        except (RuntimeError, TimeoutError) as error:
            log.error("hashing fails: %s", str(error) or "no thread answers")
            raise Unavailable("暂时无法处理密码，请稍后再试", "busy") from None

    def examine(self) -> None:
        """`Unavailable` when no password can be hashed. One round tells it in 0.1 ms."""
        self.hashed("", password_scheme(1, b"", ""))

    def seat(self) -> contextlib.AbstractContextManager[None]:
        busy = Unavailable("现在登录的人太多，请稍后再试", "busy", retry_after=2)
        return holding(self.seats, 0, busy)


def siteverify(config: Config, world: World, token: str) -> bool:
    """What the captcha's provider says of a token; `CaptchaDown` or `OSError` for no verdict."""
    form = {"secret": config.captcha_secret, "response": token}
    if config.captcha_provider == "hcaptcha":
        form["sitekey"] = config.captcha_site_key
    url = config.captcha_verify_url or SITEVERIFY[config.captcha_provider]
    return captcha_passed(config, *world.fetch(url, form))


class Provider:
    """Keeps requests from waiting for a provider that does not answer: four ask at a time, and
    after five failures in a row nobody does for half a minute."""

    def __init__(self) -> None:
        self.seats, self.failures, self.failed_at = threading.Semaphore(4), 0, 0
        self.passed: dict[str, int] = {}  # when a token did, as a provider says yes only once

    def passes(self, config: Config, world: World, token: str) -> bool:
        now, down = int(world.now()), CaptchaDown("人机验证服务暂时没有响应，请稍后再试")
        for old in [t for t, at in [*self.passed.items()] if not 0 <= now - at < 5 * MINUTE]:
            self.passed.pop(old, None)
        if token in self.passed:
            return True
        if self.failures >= 5 and 0 <= now - self.failed_at < 30:
            raise down
        with holding(self.seats, 0.2, down):
            try:
                passed = siteverify(config, world, token)
            except (OSError, CaptchaDown) as error:
                self.failures, self.failed_at = self.failures + 1, now
                log.error("[captcha] %s gives no verdict: %s", config.captcha_provider, error)
                raise down from None
        self.failures = 0
        if passed:
            self.passed[token] = now
        return passed or token in self.passed  # its twin, of a double click, was faster


class Tally:
    """Counts in memory what is too cheap for a row: so many a minute and a client."""

    MOST = 10_000  # clients: beyond them, who was silent longest is forgotten and begins anew

    def __init__(self) -> None:
        self.lock, self.minute = threading.Lock(), 0
        self.counts: dict[tuple[str, str], int] = {}

    def take(self, name: str, subject: str, factor: int, now: int) -> bool:
        with self.lock:
            if now // MINUTE != self.minute:
                self.minute, self.counts = now // MINUTE, {}
            count = self.counts.pop((name, subject), 0)
            allowed = count < MEMORY_LIMITS[name] * factor
            # At the end, as the one who was counted last.
            self.counts[name, subject] = count + allowed
            if len(self.counts) > self.MOST:
                del self.counts[next(iter(self.counts))]
            return allowed


class Views:
    """The views of the last moment: page key to their number, the page's URL, and the client who
    came first, whose share in new pages it may take."""

    MOST = 10_000  # pages between two flushes: more is a flood, and is not counted

    def __init__(self) -> None:
        self.lock, self.flushing = threading.Lock(), threading.Lock()
        self.pending: dict[str, tuple[int, str, Client]] = {}

    def add(self, name: PageName, client: "Client") -> None:
        with self.lock:
            if name.key in self.pending or len(self.pending) < self.MOST:
                views, page_url, first = self.pending.get(name.key, (0, name.page_url, client))
                self.pending[name.key] = views + 1, page_url, first

    def waiting(self, key: str) -> int:
        return self.pending.get(key, (0,))[0]


@dataclass(frozen=True)
class Client:
    """Who asks. `ip` is "" when it can't be read; `networks` is empty when all visitors would
    be one client, since they come through a proxy on this machine that is not named."""

    ip: str
    networks: list[tuple[str, int]]


# Where containers and machines of one network meet (RFC 1918, 3927, 4193, 6598).
LOCAL = [
    *("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "169.254.0.0/16"),
    *("fc00::/7", "fe80::/10"),
]
# As many readers can share a peer without harm; who makes up addresses there gets so many times the
# limits of a client, and no more.
SHARED = 20


def is_local(ip: str) -> bool:
    networks = map(ipaddress.ip_network, LOCAL)
    return bool(ip) and any(ipaddress.ip_address(ip) in network for network in networks)


class Clients:
    """Tells who asks: the peer, or the one whom a named proxy speaks for."""

    def __init__(self, config: Config) -> None:
        words = config.server_trusted_proxy
        self.trusted = [ipaddress.ip_network(word) for word in words if word != "unix"]
        self.unix = "unix" in words
        self.by_socket_file = config.server_listen.startswith("unix:")
        self.unnamed_proxy = False

    def trusts(self, ip: str) -> bool:
        return any(ipaddress.ip_address(ip) in network for network in self.trusted) if ip else False

    def of(self, environ: Json) -> Client:
        peer = plain_ip(environ.get("REMOTE_ADDR", ""))
        through_file = self.by_socket_file and not peer
        forwarded = environ.get("HTTP_X_FORWARDED_FOR") or environ.get("HTTP_X_REAL_IP", "")
        hops = [plain_ip(hop) for hop in reversed(forwarded.split(","))]
        if self.trusts(peer) or (through_file and self.unix):
            ip = next((hop for hop in hops if not self.trusts(hop)), peer) if forwarded else peer
            return Client(ip, networks_of(ip))
        if forwarded or environ.get("HTTP_FORWARDED"):
            return self.behind_unnamed(peer, hops[0], through_file=through_file)
        return Client(peer, networks_of(peer))

    def behind_unnamed(self, peer: str, hop: str, *, through_file: bool) -> Client:
        """Who asks with a forwarding header of a peer that is not named: mostly a proxy of the
        owner's. In a local network it can be a reader who writes the header, and the address
        (`hop`) in it, on their own: all that come from there share the limits of `SHARED` clients,
        or the header would be a way round all limits."""
        named = bool(self.trusted or self.unix)
        on_this_machine = through_file or (peer and ipaddress.ip_address(peer).is_loopback)
        if on_this_machine:
            self.notice("unix" if through_file else peer)
            return Client(peer, networks_of(peer) if named else [])
        if named or not is_local(peer):
            return Client(peer, networks_of(peer))
        self.notice(f"{peer}, if that is yours")
        shared = [(network, factor * SHARED) for network, factor in networks_of(peer)]
        return Client(peer, [(f"{peer} for {networks_of(hop)[0][0]}", 1), *shared])

    def notice(self, name: str) -> None:
        if not self.unnamed_proxy:
            said = "a proxy that is not named passes requests on, so visitors can't be told apart"
            log.warning("%s: set [server] trusted_proxy = %s", said, name)
        self.unnamed_proxy = True


@dataclass(frozen=True, kw_only=True)
class House(Office):
    """What all requests share."""

    places: Places
    assets: Mapping[str, "Asset"]
    rounds: int
    clients: Clients
    hashing: Hashing = field(default_factory=Hashing)
    provider: Provider = field(default_factory=Provider)
    tally: Tally = field(default_factory=Tally)
    views: Views = field(default_factory=Views)
    posted: threading.Event = field(default_factory=threading.Event)  # there may be a letter
    copying: threading.Lock = field(default_factory=threading.Lock)  # to be downloaded


@dataclass(frozen=True, kw_only=True)
class Context(House):
    """What a handler is given: the house, and this request."""

    now: int
    environ: Json
    query: dict[str, list[str]]
    form: Json
    client: Client
    caller: Account | None
    cacheable: "Cacheable"

    @property
    def me(self) -> Account:
        """The caller, where the rank sees to it that there is one."""
        if self.caller is None:
            raise Unauthorized("请先登录", "login_required")
        return self.caller

    @property
    def is_admin(self) -> bool:
        return self.caller is not None and self.caller.role == "admin"

    @contextlib.contextmanager
    def telling(self) -> Iterator[None]:
        """One transaction, after which the postman looks whom to tell."""
        with self.writing():
            yield
        self.posted.set()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction, in which the caller is still who was let in."""
        with self.store.writing():
            now = self.caller and self.store.account(self.caller.id)
            if self.caller and (now is None or now.version != self.caller.version):
                raise Unauthorized("登录已失效，请重新登录", "token_invalid")
            yield

    def header(self, name: str) -> str:
        return str(self.environ.get("HTTP_" + name.upper().replace("-", "_"), ""))


@dataclass(frozen=True)
class Reply:
    """What is neither JSON nor plain text: bytes, or a file, which is closed when it was sent."""

    body: Any
    content_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    zipped: bytes = b""


@dataclass(slots=True)
class Cacheable:
    """What the response cache keeps beside a public response: the store's `changes` when its
    handler began, the seconds that the thread had worked by then, and the page of which each
    request for it is a view."""

    changes: int
    began: float = field(default_factory=time.thread_time)
    viewed: PageName | None = None


@dataclass(frozen=True)
class Asset:
    """A file of `static/`, ready to be sent."""

    body: bytes
    zipped: Callable[[], bytes]
    etag: str
    content_type: str


class Rank(enum.Enum):
    """Who may call a route, and whether the header Authorization is looked at."""

    NOBODY = "the header is ignored"
    ANYONE = "with or without an account; a token that is sent must be valid"
    USER = "with an account"
    MODERATOR = "an admin's account, signed in on the blog"
    ADMIN = "an admin's account, signed in on the admin page"


Handler = Callable[..., Json | str | Reply]


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    rank: Rank
    handler: Handler
    refusal: str = ""  # the text of every refusal, where the contract wants just one
    by_link: bool = False  # its right is in the address: neither body nor origin is looked at
    # The query parameters of a public response: one that all get alike, but for a token. It is
    # cached, and its handler is given no others, so that they can't make another question.
    public: tuple[str, ...] | None = None


ROUTES: list[Route] = []


def route(method: str, path: str, *, rank: Rank, **how: Any) -> Callable[[Handler], Handler]:
    """Registers a handler. It has a rank, always: what can be forgotten will be."""

    def register(handler: Handler) -> Handler:
        ROUTES.append(Route(method, path, rank, handler, **how))
        return handler

    return register


def mounted(route: Route, house: House) -> Callable[..., bottle.HTTPResponse]:
    """The route as Bottle calls it: the only place that sees the request."""

    def answer(**words: str) -> bottle.HTTPResponse:
        numbers: Json = {n: int(w) for n, w in words.items() if re.fullmatch("[0-9]{1,18}", w)}
        ids = {name: numbers.get(name, 0) for name in words if name.endswith("_id")}
        environ = bottle.request.environ
        cacheable = Cacheable(house.store.changes)
        try:
            with house.store.machine_faults():
                cx = context_of(route, house, environ, cacheable)
                reply = reply_of(route.handler(cx, **{**words, **ids}))
            if route.public is not None and cx.caller is None:
                if len(reply.body) <= READY_MOST:
                    environ["commentd.cacheable"] = cacheable
                reply = packed(reply, environ)
        except Problem as problem:
            reply = refused(problem, route.refusal)
        except Exception:
            log.exception("%s %s failed", route.method, route.path)
            reply = refused(None, route.refusal)
        headers = {"Content-Type": reply.content_type, **reply.headers}
        return bottle.HTTPResponse(reply.body, reply.status, headers)

    return answer


def context_of(route: Route, house: House, environ: Json, cacheable: Cacheable) -> Context:
    if len(environ.get("REQUEST_URI") or environ.get("QUERY_STRING", "")) > LINE_LIMIT:
        raise Problem("网址太长", "uri_too_long", status=414)
    writes = route.method != "GET" and not route.by_link
    if writes:
        check_origin(house.config, environ, only_own=route.path.startswith("/admin"))
    now = int(house.world.now())
    return Context(
        **vars(house),
        now=now,
        environ=environ,
        query=query_for(route.public, environ.get("QUERY_STRING", "")),
        form=form_of(environ) if writes else {},
        client=house.clients.of(environ),
        caller=caller_of(route.rank, house, environ.get("HTTP_AUTHORIZATION", ""), now),
        cacheable=cacheable,
    )


def query_for(public: tuple[str, ...] | None, query_string: str) -> dict[str, list[str]]:
    """The query; of a public response the parameters that it has, in the order of its route."""
    query = query_of(query_string)
    if public is None:
        return query
    return {name: query[name] for name in public if name in query}


def check_origin(config: Config, environ: Json, *, only_own: bool) -> None:
    """A page of another site may not write, where the owner has said which sites are his; the
    admin page is ours alone."""
    origin = environ.get("HTTP_ORIGIN", "")
    public = urllib.parse.urlsplit(config.server_public_url).netloc
    scheme, _, host = origin.partition("://")
    own = scheme in ("http", "https") and host in (public, environ.get("HTTP_HOST"))
    allowed = not config.site_origins or origin in config.site_origins
    if origin and not own and (only_own or not allowed):
        raise Forbidden("这个网站不能在此评论：请站长把它加入 [site] origins", "origin_refused")


def form_of(environ: Json) -> Json:
    """The JSON object of the body; none at all is an empty one."""
    length = environ.get("CONTENT_LENGTH") or "0"
    if not re.fullmatch("[0-9]{1,9}", length) or int(length) > BODY_LIMIT:
        raise Problem("请求内容太大", "body_too_large", status=413)
    body = environ["wsgi.input"].read(int(length))
    kind, _, charset = environ.get("CONTENT_TYPE", "").lower().partition(";")
    if not body and not kind.strip():
        return {}
    utf_8 = charset.strip() in ("", "charset=utf-8", 'charset="utf-8"')
    plain = environ.get("HTTP_CONTENT_ENCODING", "identity") == "identity"
    if kind.strip() != "application/json" or not utf_8 or not plain:
        text = "请求必须是 application/json，UTF-8 编码，不压缩"
        raise Problem(text, "content_type", status=415)
    return strict_json(body)


def caller_of(rank: Rank, house: House, header: str, now: int) -> Account | None:
    """The account whose token was sent. Role and revocation are the database's to say."""
    scheme, _, token = header.partition(" ")
    account = None
    if rank is not Rank.NOBODY and scheme.lower() == "bearer":
        use = "admin" if rank is Rank.ADMIN else "login"
        user_id, version = read_token(token.strip(), house.key, now, use)
        account = house.store.account(user_id)
        if account is None or account.version != version or account.blocked:
            raise Unauthorized("登录已失效，请重新登录", "token_invalid")
    if rank in (Rank.USER, Rank.MODERATOR, Rank.ADMIN) and account is None:
        raise Unauthorized("请先登录", "login_required")
    if rank in (Rank.MODERATOR, Rank.ADMIN) and account and account.role != "admin":
        raise Forbidden("只有站长可以这样做", "not_admin")
    return account


def reply_of(result: Json | str | Reply) -> Reply:
    if isinstance(result, Reply):
        return result
    if isinstance(result, str):
        return Reply(result.encode(), "text/plain; charset=utf-8")
    body = json.dumps(result, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Reply(body.encode(), "application/json; charset=utf-8")


ZIPS = re.compile(r"(?i)(?<![\w*])(gzip|\*)(?![\w-])(?!\s*;\s*q=0(\.0*)?\s*(,|$))")


def packed(reply: Reply, environ: Json) -> Reply:
    """With an ETag, zipped where the browser takes that, and empty where it has it already. Never a
    token's answer: how far a secret zips, tells of it (breachattack.com)."""
    body, etag = reply.body, reply.headers.get("ETag") or etag_of(reply.body)
    headers = dict(reply.headers)
    if len(body) > 200 and ZIPS.search(environ.get("HTTP_ACCEPT_ENCODING", "")):
        body = reply.zipped or gzip.compress(body, 5, mtime=0)
        headers["Content-Encoding"] = "gzip"
        etag = f'{etag[:-1]}-gzip"'  # other bytes, another tag (RFC 9110, section 8.8.3.3)
    headers["ETag"] = etag
    if etag in environ.get("HTTP_IF_NONE_MATCH", ""):
        headers.pop("Content-Encoding", None)
        return Reply(b"", reply.content_type, headers, 304)
    return replace(reply, body=body, headers=headers)


def etag_of(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:16]}"'


def refused(problem: Problem | None, text: str = "") -> Reply:
    """The reply for a problem, or for a failure of our own, which nobody is told about."""
    status = problem.status if problem else 500
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if problem and problem.retry_after:
        headers["Retry-After"] = str(problem.retry_after)
    if text:
        status = status if status in (413, 415, 429) or status >= 500 else 400
        headers.pop("WWW-Authenticate", None)
    said = INTERNAL
    if problem:
        said = {"error": str(problem), "code": problem.code, **problem.details}
    return replace(reply_of(text or said), headers=headers, status=status)


INTERNAL = {"error": "服务出错了，请稍后再试", "code": "internal"}


def text_of(form: Json, name: str, most: int, *, optional: bool = False) -> str:
    """A text of the form, 1 to `most` characters."""
    value = form.get(name)
    if value is None or value == "":
        if optional:
            return ""
        raise BadRequest(f"缺少参数 {name}", f"{name}_missing")
    if not isinstance(value, str):
        raise BadRequest(f"参数 {name} 必须是文本", f"{name}_invalid")
    if "\0" in value:
        raise BadRequest(f"参数 {name} 不能含有控制字符", f"{name}_invalid")
    if len(value) > most:
        raise BadRequest(f"参数 {name} 不能超过 {most} 个字符", f"{name}_too_long")
    return value


def proper(form: Json, name: str, most: int, rule: Callable[[str], str], **how: bool) -> str:
    """A text of the form in the one spelling that a rule allows."""
    text = text_of(form, name, most, **how)
    try:
        return rule(text) if text else ""
    except ValueError:
        raise BadRequest(f"参数 {name} 的格式不对", f"{name}_invalid") from None


def id_of(form: Json, name: str) -> int:
    value = form.get(name)
    if value is None:
        raise BadRequest(f"缺少参数 {name}", f"{name}_missing")
    if type(value) is not int or not 1 <= value < 2**63:
        raise BadRequest(f"参数 {name} 必须是正整数", f"{name}_invalid")
    return value


def flag_of(form: Json, name: str) -> bool:
    value = form.get(name, False)
    if not isinstance(value, bool):
        raise BadRequest(f"参数 {name} 必须是 true 或 false", f"{name}_invalid")
    return value


def choice_of(text: str, name: str, choices: Iterable[str]) -> str:
    *most, last = choices
    if text not in (*most, last):
        raise BadRequest(f"参数 {name} 必须是 {'、'.join(most)} 或 {last}", f"{name}_invalid")
    return text


def existing(found: Row | None, text: str, code: str) -> Row:
    if found is None:
        raise NotFound(text, code)
    return found


def word_of(cx: Context, name: str, default: str = "") -> str:
    """A word of the query, given once."""
    values = cx.query.get(name, [default])
    if len(values) > 1:
        raise BadRequest(f"参数 {name} 只能出现一次", f"{name}_invalid")
    return values[0]


def number_of(cx: Context, name: str, default: int, most: int, least: int = 1) -> int:
    text, digits = word_of(cx, name, str(default)), "[0-9]{1,19}"
    if name in cx.query and (not re.fullmatch(digits, text) or not least <= int(text) <= most):
        raise BadRequest(f"参数 {name} 必须是 {least} 到 {most} 的整数", f"{name}_invalid")
    return int(text)


def page_of(cx: Context, form: Json, name: str) -> PageName:
    text = text_of(form, name, 2048)
    if has_controls(text):
        raise BadRequest(f"参数 {name} 不能含有控制字符", f"{name}_invalid")
    # Where the owner has named his blogs, no visitor names another: the first spelling stays.
    own = {host_of(origin) for origin in cx.config.site_origins or (cx.header("Origin"),)}
    return page_name(text, own)


def budget(house: House, now: int, *shares: Share) -> int:
    """Take one of each share (limit, subject, factor) or none: 0, or the seconds to wait."""
    taken: list[tuple[str, str]] = []
    for name, subject, factor in shares if house.config.limits_enabled else ():
        for most, window in LIMITS[name]:
            row = f"{name}/{window}", subject
            if wait := house.store.take(*row, most * factor, window, now):
                for each in taken:
                    house.store.give_back(*each)
                return wait
            taken.append(row)
    return 0


def flush_views(house: House, now: int) -> None:
    """Write all views; a page that is not known yet begins if its client may begin one. When the
    disk refuses, they are kept for the next time."""
    views, store = house.views, house.store
    with views.flushing:
        with views.lock:
            taken = dict(views.pending)
        if not taken:
            return
        with store.writing(only_views=True):
            for key, (count, page_url, client) in taken.items():
                found = store.add_views(key, count, now)
                shares = [("pages", "", 1), *shares_of(house, client, "page")]
                if not found and not budget(house, now, *shares):
                    store.add_page(key, page_url, now)
                    store.add_views(key, count, now)
        with views.lock:
            for key, (count, page_url, client) in taken.items():
                if left := views.pending.pop(key)[0] - count:
                    views.pending[key] = left, page_url, client


def within(house: House, client: Client, name: str, now: int) -> bool:
    """Whether a client is within a limit that is counted in memory."""
    networks = client.networks if house.config.limits_enabled else []
    return all(house.tally.take(name, network, factor, now) for network, factor in networks)


def shares_of(house: House, client: Client, name: str, *words: object) -> list[Share]:
    networks = client.networks
    return [(name, mac(house.key, "client", net, *words), factor) for net, factor in networks]


def limit_client(cx: Context, name: str, *words: object) -> None:
    """`TooMany` where this client has had its share."""
    if name in MEMORY_LIMITS:
        wait = 0 if within(cx, cx.client, name, cx.now) else MINUTE
    else:
        wait = budget(cx, cx.now, *shares_of(cx, cx.client, name, *words))
    if wait:
        raise TooMany("操作太频繁，请稍后再试", retry_after=wait)


def check_limits(cx: Context, *names: str) -> None:
    """`TooMany` where this client has used up a rate limit. It takes nothing, so that costly work
    can be done between this and the transaction that takes it."""
    for name in names if cx.config.limits_enabled else ():
        for limit, subject, factor in shares_of(cx, cx.client, name):
            for most, window in LIMITS[limit]:
                row = f"{limit}/{window}", subject
                if wait := cx.store.wait_for(*row, most * factor, window, cx.now):
                    raise TooMany("操作太频繁，请稍后再试", retry_after=wait)


def give_back(cx: Context, *shares: Share) -> None:
    """What was taken in advance was not needed."""
    for name, subject, _ in shares if cx.config.limits_enabled else ():
        for _, window in LIMITS[name]:
            cx.store.give_back(f"{name}/{window}", subject)


def captcha_of(cx: Context, *, own: bool = False) -> Captcha | None:
    """The captcha of the form, solved; None where none is asked for. `own`: always ours."""
    # Cloudflare's longest; more would be refused there.
    most = 2048 if cx.config.captcha_provider == "turnstile" else 4096
    token = text_of(cx.form, "captcha_token", most)
    if cx.config.captcha_provider == "none":
        return None
    if own or cx.config.captcha_provider == "altcha":
        return solved_captcha(token, cx.key, cx.now)
    captcha = Captcha(hashlib.sha256(token.encode()).hexdigest(), cx.now + HOUR)
    # A provider says yes once. Whoever comes with a token again is judged by what it was spent on.
    if not cx.store.is_spent(captcha.signature):
        limit_client(cx, "siteverify")
        if not cx.provider.passes(cx.config, cx.world, token):
            raise Forbidden("人机验证失败，请重试", "captcha_failed")
    return captcha


def visitor_of(cx: Context) -> Json:
    """Who likes: an account or, for a time, whoever comes from this network and browser."""
    if cx.caller:
        return {"visitor": f"user {cx.caller.id}", "liked_at": None}
    network = cx.client.networks[0][0] if cx.client.networks else ""
    visitor = mac(cx.key, "visitor", network, cx.header("User-Agent")[:512])[:32]
    return {"visitor": visitor, "liked_at": cx.now}


# -- Doctor -------------------------------------------------------------------

MEGA = 1024 * 1024
RELEASED = 1_793_491_200  # 2026-11-01: no clock is right that says less
# Older ones have known holes; Python by its minor version.
LEAST = {"bottle": "0.13.4", "waitress": "3.0.2", "pyjwt": "2.13", "mistune": "3.4", "nh3": "0.3.7"}
LEAST_PYTHON = {11: 15, 12: 13, 13: 12, 14: 3}
HINTS = {  # what a mail server means that says so
    "WRONG_VERSION": ": it does not speak TLS there; try [mail] security = starttls",
    "unexpectedly closed: timed out": ": it may want [mail] security = tls",
}


@dataclass(frozen=True)
class Finding:
    """`level` is ok; note: good to know; warn: to be mended; fail: something does not work."""

    LEVELS: ClassVar = ("ok", "note", "warn", "fail")
    level: str
    topic: str
    text: str

    def __lt__(self, other: "Finding") -> bool:
        return self.LEVELS.index(self.level) < self.LEVELS.index(other.level)


def examine_settings(config: Config) -> Iterator[Finding]:
    """What a service that the world sees should not leave as it is."""
    public = config.server_public_url
    warn = "warn" if public else "note"
    if not config.mail_host:
        yield Finding(warn, "mail", "set [mail] host: until then letters are printed")
    if not config.site_origins:
        yield Finding(warn, "origins", "set [site] origins: now any site may show and post here")
    if not public:
        yield Finding("note", "public_url", "set [server] public_url when readers shall reach it")
    elif not public.startswith("https:"):
        yield Finding("warn", "public_url", "it is not https: passwords travel in clear")
    near = config.server_listen.startswith(("127.", "localhost:", "[::1]:", "unix:"))
    if public and near and not config.server_trusted_proxy:
        name = "unix" if config.server_listen.startswith("unix:") else "127.0.0.1"
        text = f"set [server] trusted_proxy = {name}: else all readers look like one"
        yield Finding("warn", "unnamed_proxy", text)
    if config.captcha_provider == "none":
        yield Finding(warn, "captcha", "[captcha] provider = none lets every robot in")
    elif config.captcha_secret in TRIAL_SECRETS:
        yield Finding("warn", "captcha", "[captcha] secret is the public one for trials")
    if config.captcha_verify_url.startswith("http:"):
        yield Finding("warn", "captcha", "[captcha] verify_url is not https: secrets go in clear")
    hook = urllib.parse.urlsplit(config.webhook_url)
    if hook.scheme == "http" or hook.hostname == "localhost" or is_private(hook.hostname or ""):
        text = f"[webhook] url leads to {hook.hostname} ({hook.scheme}): is that as you want it?"
        yield Finding("warn", "webhook", text)
    if not config.limits_enabled:
        yield Finding(warn, "limits", "[limits] enabled = no lets anyone write without end")


def is_private(host: str) -> bool:
    """Whether a host is written as an address that is not of the open Internet."""
    return bool(ip := plain_ip(host)) and not ipaddress.ip_address(ip).is_global


def examine_files(config: Config) -> Iterator[Finding]:
    path = Path(config.database_path).absolute()
    with_wal = [path, Path(f"{path}-wal")]
    if path.parent.is_dir():
        free, size = shutil.disk_usage(path.parent).free, sum(map(size_of, with_wal))
        level = "fail" if free < 16 * MEGA else "warn" if free < max(64 * MEGA, 2 * size) else "ok"
        text = f"{free // MEGA} MB are free; the database has {size / MEGA:.1f}"
        yield Finding(level, "disk", text)
        if not os.access(path.parent, os.W_OK):
            yield Finding("fail", "rights", f"{path.parent} can't be written by this user")
    # Of another program's file nothing is said: nobody shall be told to chmod /etc/passwd.
    mine = with_wal if is_database(path) else []
    for each in [*mine, *backups_of(path, Path(config.backup_folder))]:
        if each.exists() and each.stat().st_mode & 0o077:
            yield Finding("warn", "rights", f"others can read {each}: run chmod 600 on it")
    copies = Path(config.backup_folder).absolute()
    if copies.exists() and not copies.is_dir():
        yield Finding("fail", "backup", f"{copies} is a file: name a folder in [backup] folder")
    elif other := other_claim(path, copies):
        yield Finding("fail", "backup", other)
    elif config.backup_every and not os.access(
        copies if copies.is_dir() else copies.parent, os.W_OK
    ):
        yield Finding("fail", "backup", f"{copies} can't be written: make the folder, or own it")


def examine_past(config: Config, seen: Json, now: float) -> Iterator[Finding]:
    rows = f"comments: {seen['comments']}, accounts: {seen['accounts']}"
    yield Finding("ok", "database", f"{config.database_path}: {rows}")
    if not seen["admins"]:
        text = "there is none: open the link that the start prints, or run commentd admin"
        yield Finding("warn", "admin", text)
    yield from examine_clock(seen, now)
    if seen["unnamed_proxy"] and not config.server_trusted_proxy:
        text = "one that is not named passes requests on: set [server] trusted_proxy"
        yield Finding("warn", "unnamed_proxy", text)
    if seen["failed"] or seen["late"]:
        text = f"letters that could not be delivered: {seen['failed']}, that wait: {seen['late']}"
        yield Finding("warn", "outbox", text)
    times = backups_of(Path(config.database_path), Path(config.backup_folder)).values()
    if config.backup_every and seen["comments"]:
        hours = int((now - max(times, default=0)) // HOUR)
        level = "ok" if 0 <= hours < 2 * config.backup_every else "warn"
        text = f"the last copy was made {hours} h ago" if times else "there is none yet"
        if hours < 0:
            text = "the last copy is of a time to come: the clock is behind, or was ahead"
        yield Finding(level if times else "note", "backup", text)
    elif not config.backup_every:
        yield Finding("note", "backup", "[backup] every = 0: the service makes no copies")


def examine_clock(seen: Json, now: float) -> Iterator[Finding]:
    if max(seen["newest"] or 0, RELEASED) > now + MINUTE:
        yield Finding("fail", "clock", "it is behind what was written or released before")


def examine_versions() -> Iterator[Finding]:
    for name, least in LEAST.items():
        with contextlib.suppress(ImportError):  # unknown, or not to be read by the owner
            import importlib.metadata

            found = importlib.metadata.version(name)
            have, need = ([int(n) for n in re.findall("[0-9]+", v)] for v in (found, least))
            if have < need:
                text = f"{name} {found} has known holes: install {least}"
                yield Finding("warn", "versions", text)
    minor, micro = sys.version_info[1:3]
    if micro < LEAST_PYTHON.get(minor, 0):
        least = f"3.{minor}.{LEAST_PYTHON[minor]}"
        text = f"Python 3.{minor}.{micro} is older than {least}: fine if your system patches it"
        yield Finding("note", "versions", text)
    if sqlite3.sqlite_version_info < (3, 51, 3):
        text = f"SQLite {sqlite3.sqlite_version}: fine as long as only commentd writes to its file"
        yield Finding("note", "versions", text)


def examine_outside(config: Config, world: World, running: bool, address: str) -> Iterator[Finding]:
    """What only a try can tell: mail (to the address, if any), captcha, the way in."""
    if config.mail_host:
        mail = tried("mail", f"{config.mail_host} lets us in", lambda: world.send(config, None))
        yield mail
        address = address if mail.level == "ok" else ""
    if address:
        good = f"{address} is sent a letter" + ("" if config.mail_host else ", printed here")
        yield tried("mail", good, lambda: greet_by_mail(config, world, address))
    if config.geo_file:
        try:
            with open_places(Path(config.geo_file)):
                yield Finding("ok", "places", f"{config.geo_file} can be read")
        except Fault as fault:
            yield Finding("warn", "places", f"{fault}; the tables that ship are used")
    if config.captcha_provider in SITEVERIFY:
        text = f"{config.captcha_provider} takes the secret"
        yield tried("captcha", text, lambda: siteverify(config, world, "check"))
    if not running:
        yield Finding("note", "service", "it does not run now")
    elif config.server_public_url:
        url = f"{config.server_public_url}/health"
        yield tried("public_url", f"{url} answers", lambda: answers(world, url))


def greet_by_mail(config: Config, world: World, address: str) -> None:
    text = "这封信能送到，评论服务的邮件设置就是对的。\nYour comment service can send mail.\n"
    letter = compose(config, world, proper_email(address), "commentd", text, HOUR)
    world.send(config, Letter(0, letter["recipient"], letter["message"], 0, 0))


def answers(world: World, url: str) -> None:
    status, body = world.fetch(url)
    if (status, body) != (200, b'{"ok":true}'):
        reasons = {
            502: "the proxy does not reach this service",
            503: "it can't write to its disk, or can't hash passwords; its log tells more",
        }
        raise OSError(f"the answer is {status}: {reasons.get(status, 'not as this does')}")


def tried(topic: str, good: str, work: Callable[[], object]) -> Finding:
    """`good` begins with whom it is about. What would steer a terminal is not shown."""
    try:
        work()
    except (OSError, ValueError, smtplib.SMTPException, Problem) as error:
        said = getattr(error, "smtp_error", b"").decode(errors="replace") or str(error)
        if isinstance(error, smtplib.SMTPAuthenticationError):
            said = "refuses [mail] user and password"  # not its words: some repeat what was sent
        said = "".join(c if c.isprintable() else " " for c in said)[:300]
        code = getattr(error, "smtp_code", "") or type(error).__name__
        hint = next((h for word, h in HINTS.items() if word in said), "")
        return Finding("fail", topic, f"{good.split()[0]}: {said} ({code}){hint}")
    return Finding("ok", topic, good)


# -- Readers ------------------------------------------------------------------


@route("GET", "/health", rank=Rank.NOBODY)
def health(cx: Context) -> Json:
    """`{ok}`; 503 when writes or the hashing of passwords fail, tried every five seconds."""
    with cx.writing():
        tried = cx.store.take("health", "", 1, 5, cx.now) > 0
    cx.store.examine_room()
    if not tried:
        cx.hashing.examine()
    return {"ok": True}


@route("GET", "/captcha", rank=Rank.NOBODY)
def get_captcha(cx: Context, *, own: bool = False) -> Json:
    """What has to be solved before registering, logging in and commenting."""
    provider = cx.config.captcha_provider
    if provider == "none":
        return {"provider": provider}
    if provider != "altcha" and not own:
        key = cx.config.captcha_site_key
        return {"provider": provider, "site_key": key, "action": CAPTCHA_ACTION}
    limit_client(cx, "challenge")
    return {"provider": "altcha", **new_challenge(cx.key, cx.now, cx.world.chance)}


@route("POST", "/auth/register", rank=Rank.NOBODY)
def register(cx: Context) -> Json:
    """A code by mail, which makes the account, or changes the one that is there.

    `{email, nickname, password, captcha_token, request_id?}` to `{success, request_id}`. The
    reply and the work are the same whatever is known of the address."""
    nickname = proper(cx.form, "nickname", 256, proper_nickname)
    older = text_of(cx.form, "request_id", 64, optional=True)
    email, password, captcha = credentials_of(cx)
    request_id, code = cx.world.chance(16).hex(), new_code(cx.world.chance)

    stored = hashed_in_turn(cx, email, password, captcha, ("register",), ("code", email))
    client = mac(cx.key, "client", cx.client.networks[0][0]) if cx.client.networks else request_id
    mails = [("mail", mac(cx.key, "mail", email), 1), ("mails", "", 1)]
    barred = is_blocked(cx, email)
    with after_a_minute(), cx.telling():
        known = cx.store.account_of(email) is not None
        letter = code_letter(cx.config, cx.world, email, code, known)
        # Where no more letters may go, nobody is told, not even by the time: something is written.
        cx.store.take("quiet", "", 2**31, MINUTE, cx.now)
        room = cx.store.has_room(email, client, older, cx.now)
        if room and not budget(cx, cx.now, *mails):
            account = {"email": email, "nickname": nickname, "password": stored}
            # Without a code there is no way in, and a login tells no more than of another.
            code = "" if barred else mac(cx.key, "code", request_id, code)
            asked = {"request_id": request_id, "code": code}
            times = {"created_at": cx.now, "expires_at": cx.now + CODE_LIFE}
            number = cx.store.add_registration(older, client=client, **account, **asked, **times)
            if not barred:
                cx.store.add_letter(**letter, registration_id=number)
        elif cx.store.revise(email, older, nickname, stored):
            request_id = older  # no further letter may go, but the code of the last one holds

    return {"success": True, "request_id": request_id}


@contextlib.contextmanager
def after_a_minute() -> Iterator[None]:
    """What fails may be tried again when the share that it took is given anew."""
    try:
        yield
    except Unavailable as fault:
        raise Unavailable(str(fault), fault.code, retry_after=MINUTE) from None


def is_blocked(cx: Context, email: str) -> bool:
    account, hosts = cx.store.account_of(email), hosts_in(email)
    blocks = (block for block in cx.store.blocks(cx.now) if block.kind in ("email", "domain"))
    return bool(account and account.blocked) or any(met(b, "", email, "", hosts) for b in blocks)


def credentials_of(cx: Context, *, own: bool = False) -> tuple[str, str, Captcha | None]:
    email = proper(cx.form, "email", 254, proper_email)
    return email, password_of(cx), captcha_of(cx, own=own)


def password_of(cx: Context, name: str = "password") -> str:
    password = text_of(cx.form, name, 1024)
    if len(password.encode()) > 1024:
        raise BadRequest(f"参数 {name} 不能超过 1024 个字节", f"{name}_too_long")
    return password


def hashed_in_turn(
    cx: Context, email: str, password: str, captcha: Captcha | None, *limits: tuple[str, ...]
) -> str:
    """The hash of a password at an address, within the limits and for a captcha, which is spent
    only when there is a seat."""
    with contextlib.ExitStack() as seat:
        with cx.writing():
            for limit in limits:
                limit_client(cx, *limit)
            seat.enter_context(cx.hashing.seat())
            if captcha and not cx.store.spend_captcha(captcha.signature, captcha.expires_at):
                raise Forbidden("人机验证已用过，请重试", "captcha_failed")
        return cx.hashing.hashed(password, scheme_at(cx, email))


def scheme_at(cx: Context, email: str) -> str:
    """How passwords at this address are hashed: all of them with one salt, so that one hash
    tells a login all that there is to know, whatever waits at the address."""
    account = cx.store.account_of(email)
    waiting = cx.store.registrations(email)  # in any case: the work is the same
    known = [account.password] if account else [r.password for r in waiting]
    return scheme_of(known[0]) if known else password_scheme(cx.rounds, cx.key, email)


@route("POST", "/auth/verify", rank=Rank.NOBODY, refusal="验证码错误或已过期")
def verify(cx: Context) -> str:
    """`{email, token, request_id?}` to the success text: the account is made or changed."""
    email = proper(cx.form, "email", 254, proper_email)
    code = text_of(cx.form, "token", 6)
    request_id = text_of(cx.form, "request_id", 64, optional=True)
    if not re.fullmatch("[0-9]{6}", code):
        raise BadRequest("验证码是 6 位数字")

    confirmed = None
    # Whoever knows the request is judged by the five tries of its code alone: else others
    # could lock him out by guessing.
    share = [] if request_id else [("guess", mac(cx.key, "guess", email), 1)]
    with cx.telling():
        limit_client(cx, "verify")
        if not budget(cx, cx.now, *share):
            for waiting in cx.store.tried(email, request_id, cx.now):
                if same(waiting.code, mac(cx.key, "code", waiting.request_id, code)):
                    confirmed = waiting
        if confirmed:
            is_new = cx.store.account_of(email) is None
            account = cx.store.confirm(confirmed, cx.now)
            if is_new:
                cx.store.claim_comments(account)
            else:
                cx.store.add_letter(**changed_letter(cx.config, cx.world, email))
            give_back(cx, *share)
    if not confirmed:
        raise BadRequest("验证码错误或已过期")

    return "验证成功"


@route("POST", "/auth/login", rank=Rank.NOBODY)
def login(cx: Context) -> Json:
    """`{email, password, captcha_token}` to `{token, nickname, role}`."""
    account = authenticated(cx, *credentials_of(cx))
    token = make_token(account, cx.key, cx.now)
    return {"token": token, "nickname": account.nickname, "role": account.role}


def authenticated(cx: Context, email: str, password: str, captcha: Captcha | None) -> Account:
    """The account whose password this is; `Unauthorized` for all else, after the same work."""
    # The password is counted as wrong until it proves right.
    stored = hashed_in_turn(cx, email, password, captcha, ("login",), ("password", email))
    account = cx.store.account_of(email)
    if account is None or account.blocked or not same(account.password, stored):
        if any(same(r.password, stored) for r in cx.store.registrations(email)):
            raise Unauthorized("邮箱未验证", "email_unverified")
        raise Unauthorized("邮箱或密码错误", "wrong_credentials")

    with cx.writing():
        give_back(cx, *shares_of(cx, cx.client, "password", email))
    with contextlib.suppress(Unavailable):  # the next login can do it
        strengthen(cx, account, password)
    return account


def confirm_password(cx: Context) -> None:
    """What is grave asks for the password of the one who does it."""
    try:
        authenticated(cx, cx.me.email, password_of(cx), None)
    except Unauthorized:
        raise Forbidden("密码不对", "wrong_password") from None


def strengthen(cx: Context, account: Account, password: str) -> None:
    """Hash the password anew where the number of rounds has risen since it was stored."""
    if int(account.password.split("$")[1]) >= cx.rounds:
        return
    stored = hashed_anew(cx, account, password)
    with cx.writing():
        if cx.store.account(account.id) == account:
            cx.store.set_password(account.id, stored)


def hashed_anew(cx: Context, account: Account, password: str) -> str:
    with cx.hashing.seat():
        return cx.hashing.hashed(password, password_scheme(cx.rounds, cx.key, account.email))


@route("POST", "/auth/logout", rank=Rank.USER)
def logout(cx: Context) -> Json:
    """Ends every token of the account, on all devices."""
    with cx.writing():
        cx.store.end_tokens(cx.me.id)
    return {"success": True}


@dataclass(frozen=True)
class Listing:
    """What of a page is asked for. `thread` and `around` are 0 where they are not given."""

    view: str
    sort: str
    page: int
    limit: int
    thread: int
    around: int


def listing_of(cx: Context) -> Listing:
    view = choice_of(word_of(cx, "view", "flat"), "view", ("flat", "threads"))
    sort = choice_of(word_of(cx, "sort", "newest"), "sort", ORDER)
    thread, around = (number_of(cx, name, 0, 2**63 - 1) for name in ("thread", "around"))
    page = number_of(cx, "page", 1, 1_000_000)
    limit = number_of(cx, "limit", cx.config.comments_page_size, 100)
    if thread:
        view, sort = "thread", "oldest"
    return Listing(view, sort, page, limit, thread, around)


LISTING_PARAMETERS = ("url", "page", "limit", "sort", "view", "thread", "around")


@route("GET", "/comments", rank=Rank.ANYONE, public=LISTING_PARAMETERS)
def get_comments(cx: Context) -> Json:
    """`?url=&page=&limit=&sort=&view=&thread=&around=` to the comments of a page and its sums."""
    name = page_of(cx, {"url": word_of(cx, "url")}, "url")
    ask = listing_of(cx)

    page = cx.store.page(name.key) or NO_PAGE
    root = cx.store.comment(ask.thread) if ask.thread else None
    if ask.thread and (not root or root.page_id != page.id or root.parent_id or not root.shown):
        raise NotFound("评论不存在", "comment_gone")
    number = page_around(cx, ask, page) if ask.around else ask.page
    skip, of = (number - 1) * ask.limit, ask.thread or page.id
    pinned = cx.store.pinned(page.id) if ask.view == "threads" else []
    first = pinned[skip : skip + ask.limit]
    skip, limit = max(0, skip - len(pinned)), ask.limit - len(first)
    total = {"flat": page.total, "threads": page.threads - len(pinned)}.get(ask.view, 0)
    found = first + cx.store.comments(ask.view, ask.sort, skip, limit, of, total)
    if number == 1 and not ask.thread and not ask.around:
        cx.cacheable.viewed = name
        if is_person(cx.environ):
            count_view(cx, cx.client, name, cx.now)

    threads = ask.view == "threads"
    shown = [with_replies(cx, c, ask.limit) if threads else listed(cx, c) for c in found]
    answer = {"comments": shown, "page": number, **sums_of(cx, name, page)}
    answer["max_comment_length"] = cx.config.comments_max_length
    if threads:
        answer |= {"threads": page.threads, "settings": settings_for(cx, page)}
    return answer


# What is known of a page that nobody has written on or seen.
NO_PAGE = Page(0, "", "", *[0] * 7)


def is_closed(cx: Context, page: Page) -> bool:
    days = cx.config.comments_close_after_days
    return bool(page.closed) or bool(days and 0 < page.opened_at <= cx.now - days * DAY)


def sums_of(cx: Context, name: PageName, page: Page) -> Json:
    views = page.views + cx.views.waiting(name.key)
    return {"total": page.total, "views": views, "page_likes": page.page_likes}


def page_around(cx: Context, ask: Listing, page: Page) -> int:
    """The number of the page that holds the comment; 1 where it is not in the list."""
    comment = cx.store.comment(ask.around)
    if not comment or comment.page_id != page.id or not comment.shown:
        return 1
    pinned = []
    if ask.view == "threads":
        comment = cx.store.comment(comment.thread_id or 0) or comment
        pinned = [each.id for each in cx.store.pinned(page.id)]
    elsewhere = {"flat": comment.status != "visible", "thread": comment.thread_id != ask.thread}
    if elsewhere.get(ask.view):
        return 1
    if comment.id in pinned:
        return pinned.index(comment.id) // ask.limit + 1
    before = len(pinned) + cx.store.count_before(ask.view, ask.sort, comment)
    return before // ask.limit + 1


def with_replies(cx: Context, root: Comment, limit: int) -> Json:
    """A top-level comment with its descendants, flat: the first hundred of them, or fewer where
    so many threads are asked for that the answer could grow beyond a thousand replies."""
    most = min(100, 1000 // limit)
    replies = cx.store.comments("thread", "oldest", 0, most + 1, root.id)
    more = cx.store.count_replies(root.id) - most if len(replies) > most else 0
    shown = [listed(cx, reply) for reply in replies[:most]]
    return {**listed(cx, root), "replies": shown, "more_replies": more}


def listed(cx: Context, comment: Comment) -> Json:
    return show(cx, comment) if comment.status == "visible" else tombstone(comment)


def show(cx: Context, comment: Comment) -> Json:
    """What leaves of a comment, field by field, for this caller."""
    texts = "id page_url nickname content parent_id user_id likes html role website"
    shows_place = cx.config.privacy_show_location
    return {
        **picked(comment, texts),
        "ip": ip_for(cx, comment.ip),
        "country": comment.country if shows_place else "",
        "location": comment.location if shows_place else "",
        "created_at": beijing_time(comment.created_at),
        "edited": beijing_time(comment.edited_at),
        "pinned": bool(comment.pinned),
    }


def tombstone(comment: Comment) -> Json:
    """What holds the place of a comment that is gone, for the sake of its replies: of the comment
    only what is named here leaves, in the shape of `show`."""
    texts = ("nickname", "content", "html", "role", "website", "ip", "country", "location")
    return {
        **picked(comment, "id page_url parent_id"),
        "created_at": beijing_time(comment.created_at),
        **dict.fromkeys(texts, ""),
        "user_id": None,
        "likes": 0,
        "edited": None,
        "pinned": False,
        "deleted": True,
    }


def ip_for(cx: Context, ip: str) -> str:
    if cx.is_admin:
        return ip
    return {"full": ip, "masked": masked(ip), "none": ""}[cx.config.privacy_show_ip]


def beijing_time(seconds: int | None) -> str | None:
    return None if seconds is None else str(moment(seconds, BEIJING))[:19]


def as_json(row: Any, **more: Any) -> Json:
    """A row, with its times as readers know them."""
    said = dict(row)
    times = {name: beijing_time(time) for name, time in said.items() if name.endswith("_at")}
    return {**said, **times, **more}


def settings_for(cx: Context, page: Page) -> Json:
    """What a widget needs to know before it shows a form."""
    config = cx.config
    return {
        "captcha": config.captcha_provider,
        "site_key": config.captcha_site_key,
        "login_required": config.comments_login_required,
        "registration": bool(config.mail_host) or not config.server_public_url,
        "hold": config.moderation_hold,
        "closed": is_closed(cx, page),
        "edit_minutes": config.comments_edit_minutes,
        "policy_url": config.privacy_policy_url,
    }


ROBOTS = re.compile(
    r"(?<!cu)bots?\b|crawl|spider|slurp|preview|externalhit|prerender|lighthouse", re.I
)


def is_person(environ: Json) -> bool:
    """Whether somebody looks, not a robot, nor a browser ahead of its reader."""
    names = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_MOZ")
    ahead = re.search("prefetch|preview", "".join(environ.get(name, "") for name in names))
    robot = ROBOTS.search(environ.get("HTTP_USER_AGENT", ""))
    return environ["REQUEST_METHOD"] == "GET" and not ahead and not robot


def count_view(house: House, client: Client, name: PageName, now: int) -> bool:
    """False where the client had his share."""
    if counted := within(house, client, "view", now):
        house.views.add(name, client)
    return counted


@route("GET", "/pages", rank=Rank.ANYONE, public=("url",))
def get_pages(cx: Context) -> Json:
    """`?url=…&url=…`, up to 100, to their sums in the order asked."""
    urls = cx.query.get("url", [])
    if not 1 <= len(urls) <= 100:
        raise BadRequest("请给出 1 到 100 个 url 参数", "url_invalid" if urls else "url_missing")
    names = [page_of(cx, {"url": url}, "url") for url in urls]
    pages = [(name, cx.store.page(name.key) or NO_PAGE) for name in names]
    sums = [{"page_url": name.page_url, **sums_of(cx, name, page)} for name, page in pages]
    return {"pages": sums}


@route("GET", "/comments/latest", rank=Rank.ANYONE, public=("limit",))
def get_latest(cx: Context) -> Json:
    """`?limit=6`, up to 30, to the comments that were written last, on any page of the site."""
    found = cx.store.latest_comments(number_of(cx, "limit", 6, 30))
    return {"comments": [show(cx, comment) for comment in found]}


def author_of(cx: Context) -> Json:
    """Who writes: the account, or a guest by what he says of himself."""
    caller = cx.caller
    if caller is None and cx.config.comments_login_required:
        raise Unauthorized("请先登录再评论", "login_required")
    nickname = proper(cx.form, "nickname", 256, proper_nickname, optional=caller is not None)
    email = proper(cx.form, "email", 254, proper_email, optional=True)
    return {
        "user_id": caller.id if caller else None,
        "nickname": nickname or (caller.nickname if caller else ""),
        "email": "" if caller else email,
        "website": proper(cx.form, "website", 2048, proper_website, optional=True),
    }


def content_of(cx: Context) -> str:
    text = text_of(cx.form, "content", BODY_LIMIT).replace("\r\n", "\n").strip()
    if len(text) > cx.config.comments_max_length:
        raise BadRequest("评论内容过长", "content_too_long")
    if is_blank(text):
        raise BadRequest("请填写评论内容", "content_missing")
    if any(unicodedata.category(c) == "Cc" for c in text if c not in "\n\t"):
        raise BadRequest("评论内容不能含有控制字符", "content_invalid")
    return text


@route("POST", "/comments", rank=Rank.ANYONE)
def post_comment(cx: Context) -> Json:
    """`{page_url, nickname, content, captcha_token, parent_id?, email?, website?}` to
    `{success, comment, edit_token?}`: guests may edit with the token."""
    name = page_of(cx, cx.form, "page_url")
    said = {**author_of(cx), "content": content_of(cx), "ip": cx.client.ip}
    answers = cx.form.get("parent_id") is not None
    said["parent_id"] = id_of(cx.form, "parent_id") if answers else None
    lang = text_of(cx.form, "lang", 64, optional=True)
    said["language"] = language_of(lang, said["nickname"] + said["content"])
    try:
        captcha, down = captcha_of(cx), False
    except CaptchaDown:
        captcha, down = None, True

    place = place_of(cx, name, said, captcha)
    if place.earlier:
        return posted(cx, place.earlier, captcha, again=True)
    check_limits(cx, "comment", *([] if place.page.id else ["page"]))
    prepared = prepare_text(cx, said, captcha, down=down)
    said |= location_of(cx)
    with cx.telling():
        place = place_of(cx, name, said, captcha)  # it may have changed meanwhile
        if place.earlier:
            return posted(cx, place.earlier, captcha, again=True)
        said["page_id"] = page_for(cx, name).id
        comment = add_comment(cx, said, place.parent, prepared, captcha)
        return posted(cx, comment, captcha, again=False)


def posted(cx: Context, comment: Comment, captcha: Captcha | None, *, again: bool) -> Json:
    """The response to a comment, which may have been there `again`. A guest who only says again
    what somebody said gets no edit token; a retry does, since it brings the captcha token that
    was spent on the comment."""
    spent = cx.store.spent_on(captcha.signature) if captcha else None
    is_own = not again or (spent is not None and spent.id == comment.id)
    if cx.caller or not is_own:
        return written(cx, comment)
    return {**written(cx, comment), "edit_token": edit_token(cx, comment)}


def written(cx: Context, comment: Comment) -> Json:
    """What its author reads of a comment. What moderators make of it is not his to know."""
    status = comment.status if comment.status == "visible" else "waiting"
    return {"success": True, "comment": {**show(cx, comment), "status": status}}


def edit_token(cx: Context, comment: Comment) -> str:
    """Made from the key, so that a copy of the database that lacks it holds no right to edit; and
    of more than the number, which is given again after `restore`."""
    return mac(cx.key, "edit", comment.id, comment.created_at)[:32]


def check_nickname(cx: Context, nickname: str) -> None:
    """Nobody may look like an admin but an admin."""
    admins = [] if cx.is_admin else cx.store.admins()
    if any(looks_like(nickname, admin.nickname) for admin in admins):
        raise Problem("这个昵称和站长的太像，请换一个", "nickname_taken", status=409)


def page_for(cx: Context, name: PageName, *shares: Share) -> Page:
    """The page, which begins with what is written on it, where there are `shares` left too."""
    page = cx.store.page(name.key)
    if page is None:
        limit_client(cx, "page")
        if wait := budget(cx, cx.now, *shares):
            raise TooMany("操作太频繁，请稍后再试", retry_after=wait)
        page = cx.store.add_page(name.key, name.page_url, cx.now)
    return page


def parent_of(cx: Context, parent_id: int | None, page: Page) -> Comment | None:
    parent = cx.store.comment(parent_id) if parent_id else None
    if parent_id and (parent is None or parent.page_id != page.id or parent.status != "visible"):
        raise NotFound("要回复的评论不存在", "parent_gone")
    return parent


def earlier_comment(cx: Context, captcha: Captcha | None, said: Json) -> Comment | None:
    """The comment that this request asks for once more: a double click, or the retry of a
    request whose response was lost. `Forbidden` where its captcha token was spent on another."""
    limited = cx.config.limits_enabled
    double = cx.store.same_comment(cx.now - MINUTE, cx.now, **said) if limited else None
    if double or captcha is None or not cx.store.is_spent(captcha.signature):
        return double
    spent = cx.store.spent_on(captcha.signature)
    told = ("page_id", "parent_id", "user_id", "nickname", "content")
    if spent and all(getattr(spent, name) == said[name] for name in told):
        return spent
    raise Forbidden("人机验证已用过，请重试", "captcha_failed")


@dataclass(frozen=True)
class Place:
    """Where a comment goes: the page (`NO_PAGE` if it is new), what the comment replies to, and
    the comment that this request has made before."""

    page: Page
    parent: Comment | None
    earlier: Comment | None


def place_of(cx: Context, name: PageName, said: Json, captcha: Captcha | None) -> Place:
    """Refuses what can't be written there. It is called before the costly work, and again in the
    transaction, so it writes nothing."""
    check_nickname(cx, said["nickname"])
    page = cx.store.page(name.key) or NO_PAGE
    parent = parent_of(cx, said["parent_id"], page)
    earlier = earlier_comment(cx, captcha, {**said, "page_id": page.id})
    if is_closed(cx, page) and not earlier:
        raise Forbidden("这里的评论已关闭", "page_closed")
    return Place(page, parent, earlier)


@dataclass(frozen=True)
class PreparedText:
    """The HTML of a text, and the status that it is to have, with the reason if it is hidden."""

    html: str
    status: str
    held: str


def prepare_text(
    cx: Context, said: Json, captcha: Captcha | None, *, down: bool = False
) -> PreparedText:
    """The costly part of writing: Markdown and the spam filter. It stands after `check_limits` and
    before the transaction: nobody else can write while that lasts. `down`: the captcha could not
    be checked."""
    markup = safe_html(said["content"])
    status, held = verdict(cx, said, markup, captcha, down=down)
    return PreparedText(markup, status, held)


def location_of(cx: Context) -> Json:
    shows_place = cx.config.privacy_show_location
    country, location = cx.places.of(cx.client.ip) if shows_place else ("", "")
    return {"country": country, "location": location}


def add_comment(
    cx: Context, said: Json, parent: Comment | None, prepared: PreparedText, captcha: Captcha | None
) -> Comment:
    status, held = take_limits(cx, prepared)
    if captcha:
        cx.store.spend_captcha(captcha.signature, captcha.expires_at)
    thread_id = (parent.thread_id or parent.id) if parent else None
    made = {"html": prepared.html, "held": held, "thread_id": thread_id, "created_at": cx.now}
    comment = cx.store.add_comment(status, **made, **said)
    kinds = ["owner"] * (status != "spam") + ["author"] * (parent is not None) + ["follower"]
    cx.store.notify(comment.id, kinds, cx.now)
    if status != "spam" and not cx.is_admin:
        call_webhook(cx, comment.id, "created")
    if captcha:
        cx.store.bind_captcha(captcha.signature, comment.id)
    return comment


def take_limits(cx: Context, prepared: PreparedText) -> tuple[str, str]:
    """Takes the rate limits of writing. In a flood, what would be shown waits, whoever it comes
    from. Returns the status, and the reason if it is hidden."""
    limit_client(cx, "comment")
    is_flood = bool(budget(cx, cx.now, ("comments", "", 1)))
    if is_flood:
        log.warning("more than 300 comments in an hour: further ones wait for approval")
    if is_flood and prepared.status == "visible" and not cx.is_admin:
        return "waiting", "flood"
    return prepared.status, prepared.held


def known(cx: Context, said: Json) -> int:
    """How many visible comments the author of one has, up to a hundred."""
    return cx.store.count_known(masked(said["ip"]), **said)


def verdict(
    cx: Context, said: Json, markup: str, captcha: Captcha | None, *, down: bool
) -> tuple[str, str]:
    """The status of what is written, and why it is not shown, where it is not. Nothing is dropped:
    what is blocked is kept as spam, to be looked at."""
    if cx.is_admin:
        return "visible", ""
    email = cx.caller.email if cx.caller else said["email"]
    text = read_text(said["nickname"], said["website"], said["content"], markup)
    hosts = hosts_in(email, said["website"], markup)
    for block in cx.store.blocks(cx.now):
        if met(block, said["ip"], email, text, hosts):
            return "spam", f"block: {remembered(block)}"
    word = next((word for word in cx.config.moderation_words if folded(word) in text), "")
    learnt = opinion(cx, said["nickname"], said["website"], markup) or NO_OPINION
    hold = cx.config.moderation_hold
    has_link = bool(said["website"]) or "<a " in markup
    many_hosts = len(written_hosts(markup)) > MOST_HOSTS
    reasons = {
        "all": hold == "all",
        f"word: {word}": word,
        "fast": too_fast(captcha, said["content"], cx.now),
        f"learnt: {in_short(learnt)}": learnt["score"] >= SPAM_SCORE,
        "captcha_down": down,
        "links": many_hosts or (hold == "links" and has_link),
        "first": hold == "first" and not known(cx, {"id": 0, **said}),
    }
    held = next((reason for reason, holds in reasons.items() if holds), "")
    return ("waiting", held) if held else ("visible", "")


def read_text(nickname: str, website: str, content: str, markup: str) -> str:
    """What words are looked for in, folded."""
    shown = re.sub(r"<[^>]*>", "", markup)  # "via**gra**" reads as one word
    return folded(" ".join([nickname, website, content, shown]))


NO_OPINION: Json = {"score": 0.0, "tokens": []}


def opinion(house: House, nickname: str, website: str, markup: str) -> Json | None:
    """What the spam filter makes of a comment: `{score, tokens: [{token, score}]}`, those first
    that said most; None until it has learnt enough."""
    all = learnt_by(house)
    if not is_learned(*all):
        return None
    words = {token_hash(house.key, token): token for token in tokens_of(nickname, website, markup)}
    known = house.store.tokens([*words])
    clues = [(badness(seen, all), words[hash]) for hash, seen in known.items()]
    clues = [clue for clue in clues if abs(clue[0] - UNKNOWN) >= LEAST_SAID]
    clues = sorted(clues, key=lambda clue: (-abs(clue[0] - UNKNOWN), clue[1]))[:CLUES]
    score = spam_score(clue for clue, _ in clues)
    tokens = [{"token": word, "score": round(clue, 2)} for clue, word in clues[:10]]
    return {"score": round(score, 2), "tokens": tokens}


def is_learned(ham: int, spam: int) -> bool:
    return ham + spam >= LEAST_LEARNT and min(ham, spam) >= LEAST_OF_EACH


def in_short(opinion: Json) -> str:
    """The score, and the words that speak most against it, wherever they stood."""
    bad = [each["token"] for each in opinion["tokens"] if each["score"] > UNKNOWN]
    words = dict.fromkeys(word.rpartition(":")[2] for word in bad if word[:6] != "links:")
    return f"{opinion['score']:.2f} {', '.join([*words][:5])}"


def hashes_of(house: House, comment: Comment) -> list[int]:
    said = tokens_of(comment.nickname, comment.website, comment.html)
    return [token_hash(house.key, token) for token in said]


@dataclass(frozen=True)
class Terms:
    """The hashes of the terms of a comment, and the version of the text that they are of."""

    version: str
    hashes: list[int]


KnownTerms = dict[int, Terms]  # by comment id


def terms_of(house: House, *comments: Comment) -> KnownTerms:
    """What the spam filter may have to learn or forget. It is read before the transaction, since a
    long text takes milliseconds and nobody else can write meanwhile."""
    return {each.id: Terms(text_version(each), hashes_of(house, each)) for each in comments}


def terms_for(cx: Context, comment_id: int, wish: str | bool) -> KnownTerms:
    """The terms that are needed when a comment gets a status: see `teach`."""
    good = cx.store.oldest_unlearnt(but=comment_id) if wish == "spam" else None
    found = [cx.store.comment(comment_id), good]
    return terms_of(cx, *filter(None, found))


def hashes_as_read(terms: KnownTerms, comment: Comment) -> list[int]:
    """`TextChanged` if the comment was edited after its terms were read."""
    read = terms.get(comment.id) or Terms("", [])
    check_version(comment, read.version)
    return read.hashes


def check_version(comment: Comment, version: object) -> None:
    """`TextChanged` if the text of a comment is not the one that was read."""
    if version != text_version(comment):
        raise TextChanged("评论内容改过，请再看一遍")


def unteach(cx: Context, comment: Comment, terms: KnownTerms) -> None:
    """Before its text changes, or what is thought of it."""
    if comment.learnt:
        cx.store.unlearn(comment.id, comment.learnt, hashes_as_read(terms, comment))


def teach(cx: Context, comment: Comment, status: str, terms: KnownTerms) -> None:
    """Approve and spam teach the filter, and it forgets what is taken back. With what is spam it
    learns a comment that readers see: an owner who holds nothing approves nothing, and it would
    know only one side."""
    kind = {"visible": "ham", "spam": "spam"}.get(status, "")
    spam_gone = status == "deleted" and comment.learnt == "spam"
    if kind == comment.learnt or spam_gone:
        return
    unteach(cx, comment, terms)
    if not kind or (kind == "ham" and comment.learnt):  # spam that is shown again: an undo
        return
    cx.store.learn(comment.id, kind, hashes_as_read(terms, comment), cx.now)
    ham, spam = learnt_by(cx)
    good = cx.store.oldest_unlearnt(but=comment.id) if ham < spam else None
    if good and kind == "spam":
        # Where its terms were not read, since it was edited just now, the next spam will do.
        with contextlib.suppress(TextChanged):
            cx.store.learn(good.id, "ham", hashes_as_read(terms, good), cx.now)


def learnt_by(house: House) -> tuple[int, int]:
    """How many good and bad comments the filter knows."""
    return house.store.tokens([0]).get(0, (0, 0))


@route("POST", "/comments/preview", rank=Rank.ANYONE)
def preview(cx: Context) -> Json:
    """`{content}` to the `{html}` that it would be shown as."""
    content = content_of(cx)
    limit_client(cx, "preview")
    return {"html": safe_html(content)}


@route("PATCH", "/comments/<comment_id>", rank=Rank.ANYONE)
def edit_comment(cx: Context, comment_id: int) -> Json:
    """`{content, edit_token?}` to `{success, comment}`, while it is new."""
    content = content_of(cx)
    comment = editable_comment(cx, comment_id)
    if content == comment.content:
        return written(cx, comment)
    check_limits(cx, "comment")
    prepared = prepare_text(cx, {**vars(comment), "content": content}, None)
    terms = terms_of(cx, comment)
    with cx.telling():
        comment = editable_comment(cx, comment_id)
        if content != comment.content:
            change_text(cx, comment, content, prepared, terms)
        return written(cx, cx.store.comment(comment.id) or comment)


def editable_comment(cx: Context, comment_id: int) -> Case:
    comment, late = own_comment(cx, comment_id)
    if late:
        raise Forbidden("已超过可修改的时间", "edit_late")
    return comment


def change_text(
    cx: Context, comment: Case, content: str, prepared: PreparedText, terms: KnownTerms
) -> None:
    """Its author's edit, which may hide the comment and never shows it."""
    status, held = take_limits(cx, prepared)
    if comment.learnt == "ham":
        unteach(cx, comment, terms)
    elif comment.learnt:  # what it taught stays: else its author could take that back
        cx.store.note_learnt(comment.id, "")
    cx.store.edit_comment(comment.id, content, prepared.html, cx.now)
    if status == "visible":
        status, held = comment.status, comment.held
    if comment.status == "spam":  # it stays so, and nobody hears of it
        return
    cx.store.judge(comment.id, status, cx.now, held)
    if status == "waiting":  # else: approved first
        cx.store.notify(comment.id, ["owner"], cx.now)
        call_webhook(cx, comment.id, "created")


@route("DELETE", "/comments/<comment_id>", rank=Rank.ANYONE)
def delete_comment(cx: Context, comment_id: int) -> Json:
    """`{edit_token?}` to `{success, comment}`; an account may delete what it wrote at any time."""
    own_comment(cx, comment_id)
    with cx.writing():
        comment, late = own_comment(cx, comment_id)
        if late and comment.user_id is None:
            raise Forbidden("已超过可删除的时间", "edit_late")
        cx.store.erase_comment(comment.id)
    return {"success": True, "comment": {**tombstone(comment), "status": "deleted"}}


def own_comment(cx: Context, comment_id: int) -> tuple[Case, bool]:
    """A comment of the caller's (others are as missing), and whether it is too late to edit."""
    token = text_of(cx.form, "edit_token", 64, optional=True)
    known = existing(cx.store.case(comment_id), "评论不存在", "comment_gone")
    by_token = known.user_id is None and same(token, edit_token(cx, known))
    by_account = cx.caller is not None and known.user_id == cx.caller.id
    if known.status == "deleted" or not (by_token or by_account):
        raise NotFound("评论不存在", "comment_gone")
    age = cx.now - known.created_at
    return known, not 0 <= age < cx.config.comments_edit_minutes * MINUTE


@route("POST", "/comment/like", rank=Rank.ANYONE)
def like_comment(cx: Context) -> Json:
    """`{id, undo?}` to `{success, likes, liked}`; a second like changes nothing."""
    comment_id, undo = id_of(cx.form, "id"), flag_of(cx.form, "undo")
    with cx.writing():
        comment = cx.store.comment(comment_id)
        if comment is None or comment.status != "visible":
            raise NotFound("评论不存在", "comment_gone")
        limit_client(cx, "like_one", comment_id)
        limit_likes(cx)
        likes = cx.store.like("comment", comment_id, undo=undo, now=cx.now, **visitor_of(cx))
    return {"success": True, "likes": likes, "liked": not undo}


@route("POST", "/page/like", rank=Rank.ANYONE)
def like_page(cx: Context) -> Json:
    """`{page_url, undo?}` to `{success, page_likes, liked}`."""
    name = page_of(cx, cx.form, "url" if cx.form.get("url") else "page_url")
    undo = flag_of(cx.form, "undo")
    with cx.writing():
        limit_likes(cx)
        page = cx.store.page(name.key) if undo else page_for(cx, name, ("pages", "", 1))
        said = {**visitor_of(cx), "undo": undo, "now": cx.now}
        likes = cx.store.like("page", page.id, **said) if page else 0
    return {"success": True, "page_likes": likes, "liked": not undo}


def limit_likes(cx: Context) -> None:
    limit_client(cx, "like")
    if wait := budget(cx, cx.now, ("likes", "", 1)):
        raise TooMany("点赞的人太多，请稍后再试", retry_after=wait)


@route("POST", "/page/follow", rank=Rank.USER)
def follow_page(cx: Context) -> Json:
    """`{page_url, undo?, lang?}` to `{success, following}`: letters about what is new there."""
    name, undo = page_of(cx, cx.form, "page_url"), flag_of(cx.form, "undo")
    lang = text_of(cx.form, "lang", 64, optional=True)
    with cx.writing():
        limit_client(cx, "follow")
        page = cx.store.page(name.key) if undo else page_for(cx, name)
        if page and undo:
            cx.store.unfollow(cx.me.id, page.id)
        elif page:
            cx.store.follow(cx.me.id, page.id, language_of(lang, cx.me.nickname))
    return {"success": True, "following": not undo}


@route("POST", "/comments/<comment_id>/report", rank=Rank.ANYONE)
def report_comment(cx: Context, comment_id: int) -> Json:
    """`{reason?}` to `{success}`: the owner is asked to look at it again."""
    reason = " ".join(text_of(cx.form, "reason", 500, optional=True).split())
    blocks = [block for block in cx.store.blocks(cx.now) if block.kind == "address"]
    barred = any(met(block, cx.client.ip, "", "", set()) for block in blocks)
    with cx.telling():
        comment = cx.store.comment(comment_id)
        if comment is None or comment.status != "visible":
            raise NotFound("评论不存在", "comment_gone")
        limit_client(cx, "report")
        if wait := budget(cx, cx.now, ("reports", "", 1)):
            raise TooMany("举报的人太多，请稍后再试", retry_after=wait)
        if barred:
            return {"success": True}
        if cx.store.report(comment_id, visitor_of(cx)["visitor"], reason, cx.now):
            cx.store.notify(comment_id, ["owner"], cx.now)
            call_webhook(cx, comment_id, "reported", reason)
    return {"success": True}


# What an account has here


@route("GET", "/me", rank=Rank.USER)
def get_me(cx: Context) -> Json:
    """`?url=` to `{email, nickname, role, created_at, comments, answers, follows, following?}`:
    whether letters about answers, and about what is new on that page, are sent."""
    followed = cx.store.followed(cx.me.id)
    told = account_of(cx, cx.me)
    told |= {"comments": cx.store.count_comments_of(cx.me.id)}
    told |= {"follows": [followed_page(cx, page) for page in followed]}
    if "url" in cx.query:
        name = page_of(cx, {"url": word_of(cx, "url")}, "url")
        told["following"] = name.key in [page.key for page in followed]
    return told


def account_of(cx: Context, account: Account) -> Json:
    said = cx.store.subscriptions(subscriber_of(cx.key, account.email))
    told = picked(account, "email nickname role created_at")
    return as_json(told, answers=said.get(0) != "no")


def followed_page(cx: Context, page: Page) -> Json:
    return {"page_url": page.page_url, "page_link": own_link(page.page_url, cx.config.site_origins)}


@route("PATCH", "/me", rank=Rank.USER)
def change_me(cx: Context) -> Json:
    """`{nickname?, answers?}` or `{new_password, password}` to `{success, nickname, token?}`. The
    nickname holds for what is written from now on; a new password ends all older tokens."""
    me, stored = cx.me, ""
    nickname = proper(cx.form, "nickname", 256, proper_nickname, optional=True)
    answers = flag_of(cx.form, "answers") if "answers" in cx.form else None
    if "new_password" in cx.form:
        password = password_of(cx, "new_password")
        confirm_password(cx)
        stored = hashed_anew(cx, me, password)
    with cx.telling():
        if nickname not in ("", me.nickname):
            check_nickname(cx, nickname)
        cx.store.change_account(me.id, nickname, stored)
        if stored:
            cx.store.add_letter(**changed_letter(cx.config, cx.world, me.email))
        if answers is not None:
            who = subscriber_of(cx.key, me.email)
            cx.store.subscribe(who, 0, "yes" if answers else "no")
        # Before the end, here and below: what was done is not to be answered with a 503.
        fresh = existing(cx.store.account(me.id), "用户不存在", "user_gone")
    token = {"token": make_token(fresh, cx.key, cx.now)} if stored else {}
    return {"success": True, "nickname": fresh.nickname, **token}


@route("DELETE", "/me", rank=Rank.USER)
def delete_me(cx: Context) -> Json:
    """`{password, comments}` to `{success}`. `keep`: comments stay without a name; `delete`."""
    comments = choice_of(text_of(cx.form, "comments", 8), "comments", ("keep", "delete"))
    confirm_password(cx)
    # Before the transaction, since it takes a millisecond for a long comment.
    learnt = {comment: hashes_of(cx, comment) for comment in learnt_from(cx)}
    with cx.writing():
        if [admin.id for admin in cx.store.admins()] == [cx.me.id]:
            raise Problem("至少要有一位站长", "last_admin", status=409)
        counts: dict[int, int] = {}
        for comment in learnt_from(cx):
            for hash in (0, *(learnt.get(comment) or hashes_of(cx, comment))):
                counts[hash] = counts.get(hash, 0) + 1
        cx.store.unlearn_ham(counts)
        who = subscriber_of(cx.key, cx.me.email)
        cx.store.erase_account(cx.me, who, comments=comments == "delete")
    return {"success": True}


def learnt_from(cx: Context) -> list[Comment]:
    """Comments of the caller from which the filter has learnt what is good."""
    return [comment for comment in cx.store.comments_of(cx.me.id) if comment.learnt == "ham"]


@route("GET", "/me/export", rank=Rank.USER)
def export_me(cx: Context) -> Json:
    """All that is kept: `{account, comments, follows, muted, likes, page_likes, reports}`."""
    limit_client(cx, "export")
    traces = cx.store.traces(f"user {cx.me.id}")
    said = cx.store.subscriptions(subscriber_of(cx.key, cx.me.email))
    muted = [cx.store.page_with(number) for number, state in said.items() if state == "no"]
    return {
        "account": account_of(cx, cx.me),
        "comments": [written(cx, comment)["comment"] for comment in cx.store.comments_of(cx.me.id)],
        "follows": [followed_page(cx, page) for page in cx.store.followed(cx.me.id)],
        "muted": [followed_page(cx, page) for page in muted if page],
        **{name: [as_json(row) for row in rows] for name, rows in traces.items()},
    }


# Reading elsewhere


def keep_for(seconds: int) -> dict[str, str]:
    """What caches may keep for so long, and then ask about."""
    return {"Cache-Control": f"public, max-age={seconds}"}


def xml_text(text: str) -> str:
    """Escaped, without what XML 1.0 has no place for."""
    return html.escape(re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "", text))


@route("GET", "/feed.atom", rank=Rank.NOBODY, public=("url",))
def get_feed(cx: Context) -> Reply:
    """`?url=` to the newest 50 comments of a page, or of all pages of the site (RFC 4287)."""
    page, site = None, site_name(cx.config)
    if "url" in cx.query:
        name = page_of(cx, {"url": word_of(cx, "url")}, "url")
        page = cx.store.page(name.key) or replace(NO_PAGE, key=name.key, page_url=name.page_url)
        found = cx.store.comments("flat", "newest", 0, 50, page.id)
    else:
        found = cx.store.latest_comments(50)
    public, origins = cx.config.server_public_url, cx.config.site_origins
    address = "/feed.atom" + (f"?{urllib.parse.urlencode({'url': page.page_url})}" if page else "")
    link = own_link(page.page_url, origins) if page else "".join(origins[:1])
    newest = max((comment.edited_at or comment.created_at for comment in found), default=0)
    head = [
        f"<title>{xml_text(f'{site} · {page.page_url}' if page else site)}</title>",
        f"<id>{lasting_id(cx, 'page', page.key) if page else lasting_id(cx, 'site')}</id>",
        f'<link rel="self" href="{xml_text((public or "") + address)}"/>',
        f'<link rel="alternate" href="{xml_text(link)}"/>' if link else "",
        f"<updated>{rfc3339(newest)}</updated>",
    ]
    body = "\n".join([*filter(None, head), *(entry_of(cx, comment) for comment in found)])
    text = f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="{ATOM}">\n{body}\n</feed>\n'
    return Reply(text.encode(), "application/atom+xml; charset=utf-8", keep_for(5 * MINUTE))


ATOM = "http://www.w3.org/2005/Atom"


def lasting_id(cx: Context, *words: object) -> str:
    """A name that stays when `public_url` changes (RFC 4287, 4.2.6), and is used by no other."""
    return f"urn:commentd:{mac(cx.key, 'feed', *words)[:32]}"


def entry_of(cx: Context, comment: Comment) -> str:
    link = own_link(comment.page_url, cx.config.site_origins)
    # The number alone is given again after `restore`.
    lasting = lasting_id(cx, "comment", comment.id, comment.created_at)
    name = name_of(letter_words(comment.language), comment)
    where = f'<link href="{xml_text(comment_link(link, comment.id))}"/>' if link else ""
    return (
        f"<entry><title>{xml_text(name)} · {xml_text(comment.page_url)}</title>"
        f"<id>{lasting}</id>{where}<author><name>{xml_text(name)}</name></author>"
        f"<published>{rfc3339(comment.created_at)}</published>"
        f"<updated>{rfc3339(comment.edited_at or comment.created_at)}</updated>"
        f'<content type="html">{xml_text(clean(comment.html))}</content></entry>'
    )


@route("GET", "/metrics", rank=Rank.NOBODY)
def get_metrics(cx: Context) -> Reply:
    """Sums in the text format of Prometheus, where `[server] metrics` is on."""
    if not cx.config.server_metrics:
        raise NotFound("没有这个网址")
    seen, (ham, spam) = cx.store.figures(cx.now), learnt_by(cx)
    counts = cx.store.count_states()
    families = {
        "comments": {f'{{status="{status}"}}': counts[status] for status in STATES},
        "comments_reported": {"": counts["reported"]},
        **{name: {"": int(seen[name])} for name in ("accounts", "pages", "views")},
        "outbox": {f'{{state="{state}"}}': seen[state] for state in ("late", "failed")},
        "learnt": {'{kind="ham"}': ham, '{kind="spam"}': spam},
    }
    lines = []
    for family, sums in families.items():
        lines.append(f"# TYPE commentd_{family} gauge")
        lines += [f"commentd_{family}{labels} {n}" for labels, n in sums.items()]
    text = "\n".join([*lines, ""])
    return Reply(text.encode(), "text/plain; version=0.0.4; charset=utf-8")


@route("GET", "/.well-known/security.txt", rank=Rank.NOBODY)
def get_security_txt(cx: Context) -> str:
    """Whom to tell of a hole, where `[site] contact` says so (RFC 9116)."""
    if not cx.config.site_contact:
        raise NotFound("没有这个网址")
    expires = rfc3339(cx.now + 30 * DAY)
    lines = [f"Contact: {cx.config.site_contact}", f"Expires: {expires}"]
    if cx.config.server_public_url:
        lines.append(f"Canonical: {cx.config.server_public_url}/.well-known/security.txt")
    return "\n".join([*lines, ""])


PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "worker-src blob:; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)


@route("GET", "/", rank=Rank.NOBODY)
def home(cx: Context) -> Reply:
    """A letter to a new owner: the tag to paste, the widget to try, what is still to be set."""
    config = cx.config
    if config.server_public_url and not config.site_demo:
        raise NotFound("没有这个网址")
    # Only levels and topics: nothing that tells of the machine, nothing that could leave the
    # element it stands in.
    state: Json = {"public": True}
    figures = cx.store.figures(cx.now) if not config.server_public_url else {"admins": 1}
    if not figures["admins"]:
        found = [*examine_settings(config), *examine_files(config), *examine_versions()]
        found += examine_past(config, figures, cx.now)
        if cx.clients.unnamed_proxy:
            found.append(Finding("warn", "unnamed_proxy", ""))
        state = {f.topic: f.level for f in sorted(found) if f.level != "ok"}  # the worst stays
    return page_reply(cx, "home.html", {"state": json.dumps(state)})


def page_reply(cx: Context, template: str, values: Mapping[str, str], status: int = 200) -> Reply:
    """A page of `static/` with what stands in it, in one go: no value is looked through."""
    page = cx.assets[template].body.decode()
    text = re.sub(r"\{\{(\w+)\}\}", lambda name: values[name[1]], page)
    headers = {"Content-Security-Policy": PAGE_POLICY, "Cache-Control": "no-store"}
    headers["Cross-Origin-Resource-Policy"] = "same-origin"
    if cx.config.server_public_url.startswith("https:"):  # elsewhere browsers warn, and ignore it
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
    return Reply(text.encode(), "text/html; charset=utf-8", headers, status)


THREADS, ANSWERS = 20, 10  # on one page for those without JavaScript; of each


@route("GET", "/thread", rank=Rank.NOBODY, public=("url", "page", "lang"))
def get_thread(cx: Context) -> Reply:
    """`?url=&page=&lang=` to the comments of a page as HTML, the oldest first, for readers without
    JavaScript and for search engines."""
    name, number = page_of(cx, {"url": word_of(cx, "url")}, "url"), number_of(cx, "page", 1, 10**6)
    page = cx.store.page(name.key) or replace(NO_PAGE, page_url=name.page_url)
    skip = (number - 1) * THREADS
    found = cx.store.comments("threads", "oldest", skip, THREADS + 1, page.id)
    roots = (cx.store.pinned(page.id) if number == 1 else []) + found[:THREADS]
    threads = [[r, *cx.store.comments("thread", "oldest", 0, ANSWERS + 1, r.id)] for r in roots]
    comments = [comment for thread in threads for comment in thread]
    asked = word_of(cx, "lang")
    lang = language_of(asked, " ".join(comment.content for comment in comments))
    numbers = {"prev": number - 1, "next": number + 1 if len(found) > THREADS else 0}
    ways = {rel: thread_address(page, n, asked) for rel, n in numbers.items() if n}
    links, words = {**ways}, letter_words(lang)
    if public := cx.config.server_public_url:  # its own: what it shows is not in the blog's page
        links["canonical"] = f"{public}/{thread_address(page, number)}"
    title = html.escape(words["thread_title"].format(page=page.page_url))
    link = own_link(page.page_url, cx.config.site_origins)
    back = f'<p><a href="{html.escape(link)}">{words["thread_back"]}</a></p>' if link else ""
    items = "".join(thread_item(words, link, *thread) for thread in threads)
    shown = f'<ol class="thread">{items}</ol>' if items else f"<p>{words['thread_none']}</p>"
    body = f"<header><h1>{title}</h1>{back}</header>{shown}<nav>{ways_on(words, ways)}</nav>"
    values = {"lang": lang, "dir": direction_of(lang), "title": title, "body": body}
    values |= {"links": head_links(page, links), "json": linked_data(link, page, comments)}
    reply = page_reply(cx, "thread.html", values)
    return replace(reply, headers={**reply.headers, **keep_for(5 * MINUTE)})


def thread_address(page: Page, number: int, lang: str = "") -> str:
    words = {"url": page.page_url, "page": number, "lang": lang}
    return f"thread?{urllib.parse.urlencode({name: word for name, word in words.items() if word})}"


def head_links(page: Page, links: Mapping[str, str]) -> str:
    feed = f"feed.atom?{urllib.parse.urlencode({'url': page.page_url})}"
    shown = [f'<link rel="{rel}" href="{html.escape(to)}">' for rel, to in links.items()]
    shown.append(f'<link rel="alternate" type="application/atom+xml" href="{html.escape(feed)}">')
    if not page.total:  # else anybody could make a page with his words as its title
        shown.append('<meta name="robots" content="noindex">')
    return "\n".join(shown)


def ways_on(words: Mapping[str, str], ways: Mapping[str, str]) -> str:
    called = {"prev": words["thread_older"], "next": words["thread_newer"]}
    shown = [f'<a rel="{r}" href="{html.escape(to)}">{called[r]}</a>' for r, to in ways.items()]
    return "".join(shown)


def thread_item(words: Mapping[str, str], link: str, comment: Comment, *replies: Comment) -> str:
    """A comment and the first that answer it, as a list item; one that is gone holds its place."""
    below = "".join(thread_item(words, link, reply) for reply in replies[:ANSWERS])
    if len(replies) > ANSWERS:
        more = f'href="{html.escape(comment_link(link, comment.id))}"'
        below += f"<li><a {more}>{words['thread_newer']}</a></li>"
    below = f"<ol>{below}</ol>" if below else ""
    if comment.status != "visible":
        gone = f'<article class="gone"><p>{words["thread_gone"]}</p></article>'
        return f'<li id="comment-{comment.id}">{gone}{below}</li>'
    name = html.escape(name_of(words, comment))
    written_at = beijing_time(comment.created_at) or ""
    states = {"author": comment.role == "admin", "pinned": bool(comment.pinned)}
    said = [words[f"thread_{state}"] for state, so in states.items() if so]
    badges = "".join(f' <span class="badge">{word}</span>' for word in said)
    badges += f" <span>{words['thread_edited']}</span>" if comment.edited_at else ""
    return (
        f'<li id="comment-{comment.id}"><article><header><b><bdi>{name}</bdi></b>{badges} '
        f'<time datetime="{rfc3339(comment.created_at)}">{written_at[:16]} UTC+8</time></header>'
        f'<div class="text" dir="auto">{clean(comment.html)}</div></article>{below}</li>'
    )


def linked_data(link: str, page: Page, comments: list[Comment]) -> str:
    """The same for programs: schema.org in JSON-LD, such that nothing ends the element it is in."""
    address = link or page.page_url
    said: list[Json] = [
        {
            "@type": "Comment",
            "@id": f"{'' if '#' in address else address}#comment-{comment.id}",
            "text": comment.content,
            "datePublished": rfc3339(comment.created_at),
            "author": {"@type": "Person", "name": comment.nickname or "Anonymous"},
            "upvoteCount": comment.likes,
        }
        for comment in comments
        if comment.status == "visible"
    ]
    data = {"@context": "https://schema.org", "@type": "WebPage", "@id": address, "url": address}
    text = json.dumps({**data, "commentCount": page.total, "comment": said})
    return re.sub("[<>&]", lambda mark: f"\\u{ord(mark[0]):04x}", text)


@route("GET", "/words/<name>", rank=Rank.NOBODY, public=())
@route("GET", "/<name>", rank=Rank.NOBODY, public=())
def asset(cx: Context, name: str) -> Reply:
    """A file of `static/` that readers may have."""
    found = cx.assets.get(cx.environ["PATH_INFO"].lstrip("/"))
    if found is None or name.endswith((".html", "letters.json")):
        raise NotFound("没有这个网址")
    headers = {"ETag": found.etag, **keep_for(HOUR)}
    return Reply(found.body, found.content_type, headers, zipped=found.zipped())


# -- Admins -------------------------------------------------------------------


@route("GET", "/admin", rank=Rank.NOBODY)
def admin_page(cx: Context) -> Reply:
    return page_reply(cx, "admin.html", {})


@route("GET", "/admin/captcha", rank=Rank.NOBODY)
def admin_captcha(cx: Context) -> Json | str | Reply:
    """Ours, so that the owner gets in while the one that readers solve is down."""
    return get_captcha(cx, own=True)


@route("POST", "/admin/login", rank=Rank.NOBODY)
def admin_login(cx: Context) -> Json:
    """`{email, password, captcha_token}` to `{token, nickname, email}`. Its token opens what is
    below; the one of `/auth/login`, which scripts of the blog can read, does not."""
    try:
        account = authenticated(cx, *credentials_of(cx, own=True))
        if account.role != "admin":
            raise Unauthorized("邮箱或密码错误", "wrong_credentials")
    except Unauthorized:  # the limits bound how often a stranger writes this
        network = masked(cx.client.ip) or "somewhere"
        log.warning("a sign-in at /admin failed, from %s", network)
        raise
    with cx.writing():
        note(cx, "sign_in", who=account.nickname)
    return admitted(cx, account)


def admitted(cx: Context, account: Account) -> Json:
    token = make_token(account, cx.key, cx.now, "admin")
    return {"token": token, "nickname": account.nickname, "email": account.email}


def note(cx: Context, action: str, subject: object = "", detail: str = "", who: str = "") -> None:
    """A line in the audit log: readers are in it by number only."""
    who = who or (cx.caller.nickname if cx.caller else "mail")
    cx.store.note(now=cx.now, who=who, action=action, subject=str(subject), detail=detail)


def new_admin_link(store: Store, world: World, email: str) -> str:
    """A secret that makes an admin once, within an hour: of that address, or, while there is no
    admin, of any."""
    link = world.chance(16).hex()
    hash = hashlib.sha256(link.encode()).hexdigest()
    with store.writing():
        store.add_admin_link(hash, email, int(world.now()) + HOUR)
    return link


def address_of_link(cx: Context) -> str:
    hash = hashlib.sha256(text_of(cx.form, "link", 64).encode()).hexdigest()
    email = cx.store.admin_link(hash, cx.now)
    if email is None:
        raise Forbidden("链接已用过或已过期，请运行 commentd admin 再取一个", "link_invalid")
    return email


@route("POST", "/admin/link", rank=Rank.NOBODY)
def admin_link(cx: Context) -> Json:
    """`{link}` to `{email, known, admin}`: what a one-time link is good for, and whether its email
    address has an account and is an admin's."""
    limit_client(cx, "link")
    email = address_of_link(cx)
    account = cx.store.account_of(email) if email else None
    is_admin = account is not None and account.role == "admin"
    return {"email": email, "known": account is not None, "admin": is_admin}


@route("POST", "/admin/claim", rank=Rank.NOBODY)
def claim(cx: Context) -> Json:
    """`{link, email, nickname, password}` to `{token, nickname, email}`: the account is an
    admin's from now on, with this password. A link for an address needs no `email`, an account
    no `nickname`."""
    email = address_of_link(cx) or proper(cx.form, "email", 254, proper_email)
    password, known = password_of(cx), cx.store.account_of(email) is not None
    nickname = proper(cx.form, "nickname", 256, proper_nickname, optional=known)
    stored = hashed_in_turn(cx, email, password, None, ("login",))
    with cx.writing():
        address_of_link(cx)  # it may have been used meanwhile
        account = cx.store.make_admin(email, nickname, stored, cx.now)
        note(cx, "claim", who=account.nickname)
    return admitted(cx, account)


route("POST", "/admin/logout", rank=Rank.ADMIN)(logout)


def show_case(cx: Context, case: Case) -> Json:
    page = cx.store.page_with(case.page_id) or NO_PAGE
    parent, origins = cx.store.comment(case.parent_id or 0), cx.config.site_origins
    judged = case.status in ("waiting", "spam")
    return {
        **show(cx, case),
        **picked(case, "location country status held email page_id learnt"),
        "spam": opinion(cx, case.nickname, case.website, case.html) if judged else None,
        "reports": [as_json(row) for row in cx.store.reports(case.id)],
        "version": text_version(case),
        "known": known(cx, vars(case)),
        "page_link": page_link(case.page_url, origins),
        "foreign": is_foreign(case.page_url, origins),
        "closed": is_closed(cx, page),
        "parent": parent and picked(parent, "id nickname content"),
    }


def like_of(cx: Context) -> str:
    """What is looked for, as a pattern for LIKE; "" for everything."""
    text = word_of(cx, "q")[:64]
    return text and "%" + re.sub("[!%_]", r"!\g<0>", text) + "%"


def stretch(cx: Context, find: Callable[[int, int], list[Any]]) -> tuple[list[Any], bool]:
    """`?before=&limit=`: what lies below an id of a list, and whether there is more."""
    most = 2**63 - 1
    before, limit = number_of(cx, "before", most, most), number_of(cx, "limit", 30, 100)
    found = find(before, limit + 1)
    return found[:limit], len(found) > limit


@route("GET", "/admin/comments", rank=Rank.ADMIN)
def admin_comments(cx: Context) -> Json:
    """`?status=&q=&page=&before=&limit=` to comments, the newest first, and the sums of states."""
    status = choice_of(word_of(cx, "status", "all"), "status", CASES)
    page_id = number_of(cx, "page", 0, 2**63 - 1)
    found, more = stretch(cx, functools.partial(cx.store.cases, status, like_of(cx), page_id))
    cases = [show_case(cx, case) for case in found]
    ham, spam = learnt_by(cx)
    learnt = {"ham": ham, "spam": spam, "active": is_learned(ham, spam)}
    counts = cx.store.count_states()
    return {"comments": cases, "more": more, "counts": counts, "filter": learnt}


@route("POST", "/admin/comments", rank=Rank.ADMIN)
def judge_comments(cx: Context) -> Json:
    """`{ids, status, versions?}` or `{ids, pinned}` to what each was before: posting that again
    undoes it. What was edited since its `version` was read is `changed`, and not approved."""
    ids, wish = cx.form.get("ids"), wish_of(cx)
    if not isinstance(ids, list) or not 1 <= len(ids) <= 100:
        raise BadRequest("参数 ids 必须是 1 到 100 个编号", "ids_invalid")
    versions = cx.form.get("versions") or [None] * len(ids)
    if not isinstance(versions, list) or len(versions) != len(ids):
        raise BadRequest("参数 versions 不对", "versions_invalid")
    numbers = [id_of({"ids": each}, "ids") for each in ids]
    read = dict(zip(numbers, versions, strict=True))
    if isinstance(wish, bool):
        with cx.telling():
            was = {number: judged(cx, number, wish, {}) for number in read}
        return moderated(was, [])
    was = {}
    changed = []
    # A transaction each: all in one would keep everybody else from writing for too long.
    for number, version in read.items():
        try:
            was[number] = given_status(cx, number, wish, version)
        except TextChanged:
            changed.append(number)
    return moderated(was, changed)


def moderated(was: Mapping[int, str | bool | None], changed: list[int]) -> Json:
    done = [{"id": number, "was": old} for number, old in was.items() if old is not None]
    return {"success": True, "comments": done, "changed": changed}


def given_status(cx: Context, comment_id: int, status: str, version: object) -> str | bool | None:
    """Gives a comment a status and returns what `judged` does. `TextChanged` if what would be
    approved is not the `version` that was read."""
    terms = terms_for(cx, comment_id, status)
    with cx.telling():
        comment = cx.store.comment(comment_id)
        if comment and version and status == "visible":
            check_version(comment, version)
        return judged(cx, comment_id, status, terms)


def wish_of(cx: Context) -> str | bool:
    """The status, or the pin, that a comment shall have."""
    if "pinned" in cx.form:
        return flag_of(cx.form, "pinned")
    return choice_of(text_of(cx.form, "status", 16), "status", STATES)


def judged(cx: Context, comment_id: int, wish: str | bool, terms: KnownTerms) -> str | bool | None:
    """Give a comment a status or a pin, and tell what it had; None when it is gone for good.
    `terms` are those of `terms_for`, which a pin does not need."""
    comment = cx.store.comment(comment_id)
    if comment is None or not comment.content:
        return None
    was: str | bool = comment.status if isinstance(wish, str) else bool(comment.pinned)
    if isinstance(wish, str):
        if wish == was and cx.store.reports(comment.id):
            note(cx, "keep", comment.id)
        cx.store.end_reports(comment.id)
        teach(cx, comment, wish, terms)
        if wish != was:
            cx.store.judge(comment.id, wish, cx.now)
            cx.store.end_owner_notifications(comment.id)
            note(cx, wish, comment.id)
    elif wish != was:
        if comment.parent_id or comment.status != "visible":
            raise BadRequest("只有公开的主评论可以置顶", "pin_invalid")
        cx.store.pin(comment.id, bool(wish))
        note(cx, "pin" if wish else "unpin", comment.id)
    return was


def known_comment(cx: Context, comment_id: int) -> Case:
    case = cx.store.case(comment_id)
    if case is None or not case.content:
        raise NotFound("评论不存在", "comment_gone")
    return case


def as_read(cx: Context, comment_id: int) -> Case:
    """A comment, if it is what the caller has read, where he tells its `version`."""
    case, version = known_comment(cx, comment_id), text_of(cx.form, "version", 64, optional=True)
    if version:
        check_version(case, version)
    return case


@route("PATCH", "/admin/comments/<comment_id>", rank=Rank.ADMIN)
def rewrite_comment(cx: Context, comment_id: int) -> Json:
    """`{content?, nickname?, website?, version?}` to `{success, comment}`."""
    content = content_of(cx) if "content" in cx.form else ""
    nickname = proper(cx.form, "nickname", 256, proper_nickname, optional=True)
    website = proper(cx.form, "website", 2048, proper_website, optional=True)
    markup = safe_html(content)
    terms = terms_of(cx, as_read(cx, comment_id))
    with cx.writing():
        case = as_read(cx, comment_id)
        unteach(cx, case, terms)
        if content not in ("", case.content):
            cx.store.edit_comment(case.id, content, markup, cx.now)
        website = website if "website" in cx.form else case.website
        cx.store.rewrite(case.id, nickname or case.nickname, website)
        note(cx, "edit", case.id)
    return {"success": True, "comment": show_case(cx, known_comment(cx, comment_id))}


@route("POST", "/admin/reply", rank=Rank.ADMIN)
def reply_as_owner(cx: Context) -> Json:
    """`{parent_id, content, version?}` to `{success, comment}`; what waits is approved by it."""
    content = content_of(cx)
    parent_id = id_of(cx.form, "parent_id")
    parent = parent_as_read(cx, parent_id)
    said = {**author_of(cx), **location_of(cx), "content": content, "ip": cx.client.ip}
    said |= {"page_id": parent.page_id, "parent_id": parent.id, "language": parent.language}
    if not earlier_comment(cx, None, said):
        check_limits(cx, "comment")
    prepared = prepare_text(cx, said, None)
    terms = terms_for(cx, parent_id, "visible")
    with cx.telling():
        parent = parent_as_read(cx, parent_id)
        said["page_id"] = parent.page_id  # its page may have been merged into another
        judged(cx, parent.id, "visible", terms)
        earlier = earlier_comment(cx, None, said)
        comment = earlier or add_comment(cx, said, parent, prepared, None)
        note(cx, "reply", parent.id)
        return {"success": True, "comment": show_case(cx, known_comment(cx, comment.id))}


def parent_as_read(cx: Context, parent_id: int) -> Case:
    parent = as_read(cx, parent_id)
    if parent.status not in ("visible", "waiting"):
        raise NotFound("要回复的评论不存在", "parent_gone")
    return parent


def show_page(cx: Context, page: Page) -> Json:
    return {
        **picked(page, "id page_url"),
        "page_link": page_link(page.page_url, cx.config.site_origins),
        **sums_of(cx, PageName(page.key, page.page_url), page),
        "closed": is_closed(cx, page),
        "closed_by_age": is_closed(cx, page) and not page.closed,
    }


@route("GET", "/admin/pages", rank=Rank.ADMIN)
def admin_pages(cx: Context) -> Json:
    """`?q=&sort=&skip=&limit=` to pages and their sums."""
    sort = choice_of(word_of(cx, "sort", "latest"), "sort", PAGES)
    like, skip = like_of(cx), number_of(cx, "skip", 0, 10**6, 0)
    found, more = stretch(cx, lambda _, limit: cx.store.pages(sort, like, skip, limit))
    return {"pages": [show_page(cx, page) for page in found], "more": more}


@route("PATCH", "/admin/pages/<page_id>", rank=Rank.ADMIN)
def change_page(cx: Context, page_id: int) -> Json:
    """`{closed?, page_url?, merge?}` to `{success, page}`."""
    flush_views(cx, cx.now)  # what is seen under the old address goes to the new one
    with cx.writing():
        page = existing(cx.store.page_with(page_id), "页面不存在", "page_gone")
        if "closed" in cx.form:
            closed = flag_of(cx.form, "closed")
            cx.store.set_closed(page.id, closed, cx.now)
            note(cx, "close" if closed else "reopen", page.page_url)
        if "page_url" in cx.form:
            name = page_of(cx, cx.form, "page_url")
            there = cx.store.page(name.key)
            other = there is not None and there.id != page.id
            if other and not flag_of(cx.form, "merge"):
                raise Problem("这个地址已有评论：要合并吗？", "page_exists", status=409)
            note(cx, "merge" if other else "rename", page.page_url, name.page_url)
            page = cx.store.rename_page(page, name.key, name.page_url)
        return {"success": True, "page": show_page(cx, cx.store.page_with(page.id) or page)}


@route("GET", "/admin/users", rank=Rank.ADMIN)
def admin_users(cx: Context) -> Json:
    """`?q=&before=&limit=` to accounts, the newest first."""
    found, more = stretch(cx, functools.partial(cx.store.accounts, like_of(cx)))
    users = [as_json(row, blocked=bool(row["blocked"]), you=row["id"] == cx.me.id) for row in found]
    return {"users": users, "more": more}


@route("PATCH", "/admin/users/<user_id>", rank=Rank.ADMIN)
def change_user(cx: Context, user_id: int) -> Json:
    """`{blocked?}` or `{role, password}`, the caller's own, to `{success}`."""
    if "role" in cx.form:
        confirm_password(cx)
    with cx.writing():
        user = existing(cx.store.account(user_id), "用户不存在", "user_gone")
        role = text_of(cx.form, "role", 8, optional=True) or user.role
        choice_of(role, "role", ("user", "admin"))
        blocked = flag_of(cx.form, "blocked") if "blocked" in cx.form else bool(user.blocked)
        ends = user.role == "admin" and (role != "admin" or blocked)
        if ends and len(cx.store.admins()) == 1:
            raise Problem("至少要有一位站长", "last_admin", status=409)
        if role == "admin" and blocked:
            raise Problem("不能屏蔽站长：请先改为普通用户", "is_admin", status=409)
        cx.store.set_rights(user.id, role, blocked, less=ends or (blocked and not user.blocked))
        if blocked != bool(user.blocked):
            note(cx, "block_user" if blocked else "unblock_user", user.id)
        if role != user.role:
            note(cx, "role", user.id, role)
    return {"success": True}


@route("GET", "/admin/blocks", rank=Rank.ADMIN)
def admin_blocks(cx: Context) -> Json:
    return {"blocks": [as_json(vars(block)) for block in cx.store.blocks(cx.now)]}


LATEST = 100  # comments that a block is tried on before it is made
# A network that is wider belongs to several providers: the least that one is given of IPv6 is a /32
# (RIPE-738, section 5.1.2), and few are given more than a /16 of IPv4.
WIDEST_NETWORK = {4: 16, 6: 32}


def check_reach(cx: Context, kind: str, value: str) -> None:
    """`WideBlock` for what would meet a large part of the readers: a wide network, a single letter,
    a domain or word of one in ten of the latest comments."""
    block = Block(0, kind, value, "", cx.now, None)
    latest = cx.store.cases("visible", "", 0, 2**63 - 1, LATEST)
    count = sum(would_meet(block, comment) for comment in latest)
    is_common = kind in ("domain", "word") and count >= 5 and 10 * count >= len(latest)
    if is_common or is_wide(kind, value):
        raise WideBlock(count=count, total=len(latest))


def would_meet(block: Block, comment: Case) -> bool:
    said = (comment.nickname, comment.website, comment.content, comment.html)
    hosts = hosts_in(comment.email, comment.website, comment.html)
    return met(block, comment.ip, comment.email, read_text(*said), hosts)


def is_wide(kind: str, value: str) -> bool:
    if kind == "address":
        network = ipaddress.ip_network(value)
        return network.prefixlen < WIDEST_NETWORK[network.version]
    # One letter stands in any text, but one Chinese character is a word.
    return kind == "word" and re.fullmatch(f"[^{UNSPACED}]", folded(value)) is not None


@route("POST", "/admin/blocks", rank=Rank.ADMIN)
def add_block(cx: Context) -> Json:
    """`{kind, value, days?, note?, sure?}` to `{success, block}`; without `days` it is for ever.
    What would meet many readers is refused unless the caller is `sure`."""
    kinds = ("address", "email", "domain", "word")
    kind = choice_of(text_of(cx.form, "kind", 16), "kind", kinds)
    value = proper(cx.form, "value", 254, lambda text: proper_block(kind, text))
    days = cx.form.get("days")
    if days is not None and (type(days) is not int or not 1 <= days <= 3650):
        raise BadRequest("参数 days 必须是 1 到 3650 的整数", "days_invalid")
    words = {"note": text_of(cx.form, "note", 200, optional=True), "created_at": cx.now}
    if not flag_of(cx.form, "sure"):
        check_reach(cx, kind, value)
    with cx.writing():
        ends = cx.now + days * DAY if days else None
        block = cx.store.add_block(kind=kind, value=value, expires_at=ends, **words)
        note(cx, "block", value, kind)
    return {"success": True, "block": as_json(vars(block))}


@route("DELETE", "/admin/blocks/<block_id>", rank=Rank.ADMIN)
def drop_block(cx: Context, block_id: int) -> Json:
    with cx.writing():
        block = existing(cx.store.drop_block(block_id), "没有这条屏蔽", "block_gone")
        note(cx, "unblock", block.value, block.kind)
    return {"success": True}


@route("GET", "/admin/audit", rank=Rank.ADMIN)
def admin_audit(cx: Context) -> Json:
    """`?before=&limit=` to who did what, the newest first."""
    found, more = stretch(cx, cx.store.audit)
    return {"audit": [as_json(row) for row in found], "more": more}


@route("GET", "/admin/outbox", rank=Rank.ADMIN)
def admin_outbox(cx: Context) -> Json:
    letters = [as_json(row) for row in cx.store.stuck_letters()]
    for letter in letters:
        text = letter.pop("message")
        message = email.message_from_string(text, policy=email.policy.default)
        letter |= {"subject": str(message["Subject"] or "")}
        letter["can_retry"] = bool(letter["can_retry"])
    return {"letters": letters}


@route("POST", "/admin/outbox/<letter_id>", rank=Rank.ADMIN)
@route("DELETE", "/admin/outbox/<letter_id>", rank=Rank.ADMIN)
def change_letter(cx: Context, letter_id: int) -> Json:
    """Try a letter again, or drop it."""
    store, retry = cx.store, cx.environ["REQUEST_METHOD"] == "POST"
    with cx.telling():
        done = store.retry_letter(letter_id, cx.now) if retry else store.drop_letter(letter_id)
        if not done:
            raise NotFound("没有这封信", "letter_gone")
        note(cx, "retry" if retry else "drop", letter_id)
    return {"success": True}


@route("GET", "/admin/settings", rank=Rank.ADMIN)
def admin_settings(cx: Context) -> Json:
    """Settings in force, secrets hidden, and what the doctor says of them."""
    config = cx.config
    found = [*examine_settings(config), *examine_files(config), *examine_versions()]
    found += examine_past(config, cx.store.figures(cx.now), cx.now)
    told = [vars(finding) for finding in sorted(found, reverse=True) if finding.level != "ok"]
    return {"version": __version__, "settings": [*in_force(config)], "findings": told}


@route("POST", "/admin/backup", rank=Rank.ADMIN)
def download_backup(cx: Context) -> Reply:
    """`{password}`, the caller's own, to a copy of the database, which holds all keys."""
    confirm_password(cx)
    path, late = Path(cx.config.database_path), Unavailable("暂时无法备份，请稍后再试", "storage")
    try:
        # One at a time, under one name: no more than one is ever left.
        with holding(cx.copying, 0, late):
            copy = copy_to(path, path.with_name(f".{path.name}.download"))
            body = copy.open("rb")
            copy.unlink()
    except (Fault, OSError) as error:
        log.error("no copy to download: %s", error)
        raise late from None
    with cx.writing():
        note(cx, "backup")
    stamp = datetime.fromtimestamp(cx.now, UTC)
    headers = {"Content-Disposition": f'attachment; filename="commentd-{stamp:{STAMP}}.db"'}
    return Reply(body, "application/vnd.sqlite3", {**headers, "Cache-Control": "no-store"})


@route("GET", "/admin/figures", rank=Rank.ADMIN)
def admin_figures(cx: Context) -> Json:
    """`?days=` to the sums of each day, and the pages that are read and talked about most."""
    count, today = number_of(cx, "days", 30, 366), (cx.now + 8 * HOUR) // DAY
    known = {
        row["day"]: {name: max(0, n) for name, n in dict(row).items()}  # likes are taken back
        for row in cx.store.days(today - count + 1)
    }
    none = {"comments": 0, "views": 0, "likes": 0}
    days = [
        {**none, **known.get(day, {}), "day": f"{datetime.fromtimestamp(day * DAY, UTC):%F}"}
        for day in range(today - count + 1, today + 1)
    ]
    most = {sort: [show_page(cx, p) for p in cx.store.pages(sort, "", 0, 10)] for sort in PAGES}
    return {"days": days, "by_views": most["views"], "by_comments": most["comments"]}


@route("GET", "/comments/waiting", rank=Rank.MODERATOR)
def waiting_comments(cx: Context) -> Json:
    """`?url=` to the comments of that page that wait, the oldest first, with `held`, `version`."""
    page = cx.store.page(page_of(cx, {"url": word_of(cx, "url")}, "url").key) or NO_PAGE
    found = cx.store.cases("waiting", "", page.id or -1, 2**63 - 1, 100)[::-1]
    return {
        "comments": [
            {**show(cx, case), **picked(case, "status held"), "version": text_version(case)}
            for case in found
        ]
    }


@route("POST", "/comments/<comment_id>/moderate", rank=Rank.MODERATOR)
def moderate(cx: Context, comment_id: int) -> Json:
    """`{status, version?}` or `{pinned}` to `{success, comment, was}`: all that an admin may do
    with the token that the widget keeps in the blog's storage. /admin can undo it."""
    wish = wish_of(cx)
    terms = terms_for(cx, comment_id, wish)
    with cx.telling():
        was = judged(cx, as_read(cx, comment_id).id, wish, terms)
        comment = known_comment(cx, comment_id)
    return {"success": True, "comment": {**show(cx, comment), "status": comment.status}, "was": was}


# Links in letters


@route("GET", "/mail", rank=Rank.NOBODY, by_link=True)
@route("POST", "/mail", rank=Rank.NOBODY, by_link=True)
def follow_link(cx: Context) -> Reply:
    """A page that asks whether what a link in a letter says shall be done; a POST does it, from
    its button or the one click of a mail program (RFC 8058)."""
    said = {name: " ".join(values) for name, values in cx.query.items()}
    sign, words = said.pop("mac", ""), letter_words(said.get("lang", ""))
    genuine, done = same(sign, link_mac(cx.key, said)), cx.environ["REQUEST_METHOD"] == "POST"
    if not genuine or cx.now >= int(said.get("until", cx.now + 1)):
        return told_page(cx, words["bad"], "", 403)
    if said["do"] in STATES:
        try:
            return judging_page(cx, said, done=done)
        except TextChanged:  # at this moment: its text is shown as it is now
            return replace(judging_page(cx, said, done=False), status=409)
    if said["do"] == "stop" and not cx.store.comment(int(said["id"])):  # nobody knows its page
        said["do"] = "stop_all"
    if not done:
        title = words[f"page_{said['do']}"].format(site=site_name(cx.config))
        return told_page(cx, title, button(cx, words, said))
    with cx.telling():
        own = subscribe(cx, said)
    back = said["do"].replace("stop", "start").replace("unfollow", "follow")
    undo = button(cx, words, {**said, "do": back}, "undo") if back != said["do"] else ""
    link = own_link(own.page_url, cx.config.site_origins) if own else ""
    return told_page(cx, words[f"done_{said['do']}"], undo + way_on(link, words["page"]))


def way_on(link: str, word: str) -> str:
    return f'<nav><a href="{html.escape(link)}">{html.escape(word)}</a></nav>' if link else ""


def told_page(cx: Context, title: str, body: str, status: int = 200) -> Reply:
    lang = next((word for word in cx.query.get("lang", []) if word in all_words()), "en")
    values = {"lang": lang, "dir": direction_of(lang), "title": html.escape(title), "body": body}
    return page_reply(cx, "link.html", values, status)


def button(cx: Context, words: Mapping[str, str], said: Mapping[str, str], word: str = "") -> str:
    action = html.escape(f"?{signed_query(cx.key, said)}")
    label = html.escape(words[word or f"button_{said['do']}"])
    kind = ' class="quiet"' if word else ""
    return f'<form method="post" action="{action}"><button{kind}>{label}</button></form>'


def judging_page(cx: Context, said: dict[str, str], *, done: bool) -> Reply:
    """A comment, and the button that judges it; when that is done, one that undoes it. What was
    edited after the letter is shown again instead."""
    words, comment = letter_words(said["lang"]), cx.store.comment(int(said["id"]))
    if comment is None or not comment.content:
        return told_page(cx, words["gone"], "", 404)
    told = [*owners(cx, comment.page_url), *([WEBHOOK] if cx.config.webhook_url else [])]
    if said["who"] not in [subscriber_of(cx.key, address) for address in told]:
        return told_page(cx, words["bad"], "", 403)
    names = (comment.nickname, comment.page_url, comment.website)
    head = " · ".join(f"<bdi>{html.escape(name)}</bdi>" for name in names if name)
    quote = f'<p>{head}</p><pre dir="auto">{html.escape(comment.content)}</pre>'
    fresh = {**said, "version": text_version(comment)}
    if fresh != said:
        status = 409 if done else 200
        return told_page(cx, words["changed"], quote + button(cx, words, fresh), status)
    back = {**said, "do": said["was"], "was": said["do"]}
    undo = button(cx, words, back, "undo") + way_on("admin", words["more"])
    if not done and comment.status == said["do"] and not cx.store.reports(comment.id):
        return told_page(cx, words[f"done_{said['do']}"], quote + undo)
    if not done:
        return told_page(cx, words[f"page_{said['do']}"], quote + button(cx, words, said))
    if given_status(cx, comment.id, said["do"], said["version"]) is None:
        return told_page(cx, words["gone"], "", 404)
    return told_page(cx, words[f"done_{said['do']}"], quote + undo)


def subscribe(cx: Context, said: Mapping[str, str]) -> Case | None:
    """Letters about answers begin or end, as a link says: by its `do`, for the page where the
    comment with its `id` is now, which is returned, or for all."""
    do, who, own = said["do"], said["who"], cx.store.case(int(said["id"]))
    ours = own is not None and same(subscriber_of(cx.key, own.email), who)
    if do == "confirm" and own and ours and cx.store.subscriptions(who).get(0) == "asked":
        cx.store.notify_again(own.email, cx.now - LINK_LIFE)
    if do in ("follow", "unfollow"):
        user, page_id = int(said["user"]), own.page_id if own else int(said["page"])
        account = cx.store.account(user)
        if account is None or not same(subscriber_of(cx.key, account.email), who):
            return own  # who had this number is gone
        if do == "unfollow":
            cx.store.unfollow(user, page_id)
        elif cx.store.page_with(page_id):
            cx.store.follow(user, page_id, said["lang"])
        return own
    page_id = own.page_id if own and do in ("stop", "start") else 0
    account = cx.store.account_of(own.email) if own and ours else None
    if account and do.startswith("stop"):  # no letters are no letters
        cx.store.unfollow(account.id, page_id)
    cx.store.subscribe(who, page_id, "no" if do.startswith("stop") else "yes")
    return own if ours else None


# -- Application --------------------------------------------------------------


class App:
    """The WSGI application. It starts no thread and no socket; `tick` and `deliver` are the
    work that someone has to call for, and `close` ends what it holds."""

    def __init__(self, house: House, wsgi: Callable[..., Iterable[bytes]]) -> None:
        self.house, self.wsgi, self.stopping = house, wsgi, False
        self.behind = False  # whether more is to be forgotten than one transaction should take

    def __call__(self, environ: Json, start_response: Callable[..., Any]) -> Iterable[bytes]:
        return self.wsgi(environ, start_response)

    def tick(self) -> float:
        house, now = self.house, int(self.house.world.now())
        flush_views(house, now)
        oldest = now - max(HOUR, house.config.privacy_keep_ip_days * DAY)
        with house.store.writing():
            if a_minute_passed := not house.store.take("purge", "", 1, MINUTE, now):
                house.store.purge(now)
            if a_minute_passed or self.behind:
                trash = now - house.config.moderation_keep_days * DAY
                forgotten = house.store.forget(oldest, masked)
                erased = house.store.erase_judged(trash)
                self.behind = forgotten or erased
            if house.clients.unnamed_proxy:
                house.store.take("unnamed_proxy", "", 1, DAY, now)  # for `check` to see
        if a_minute_passed and house.store.stale:
            house.store.empty_wal()
        return 1

    def keep(self) -> float:
        """Make a copy when the last one is old, and let the oldest go."""
        config, now = self.house.config, self.house.world.now()
        path, folder = Path(config.database_path), Path(config.backup_folder)
        every = config.backup_every * HOUR
        recent = any(0 <= now - t < every for t in backups_of(path, folder).values())
        with self.house.store.machine_faults():
            wanted = every and not recent and self.house.store.figures(int(now))["comments"]
        if wanted:
            try:
                part = f".{path.name}.part"  # the same each time: no more than one is ever left
                back_up_in_turn(path, folder, now, progress=self.go_on, part=part)
            except Fault as fault:
                log.error("no backup: %s", fault)
                return 10 * MINUTE
            rotate(path, folder, config.backup_keep, now)
        return MINUTE

    def go_on(self, left: int, pages: int) -> None:
        if self.stopping:
            raise Fault("the service stops")

    def deliver(self) -> float:
        """Write and send the letters that are due; seconds until there may be more."""
        with self.house.store.machine_faults():
            return deliver_due(self.house)

    def close(self) -> None:
        """Writes what is in memory. Twice is fine."""
        try:
            with contextlib.suppress(Unavailable, sqlite3.ProgrammingError):
                self.tick()
        finally:
            self.house.hashing.hands.shutdown()
            self.house.store.close()
            self.house.places.close()


def make_app(config: Config, world: World | None = None, *, rounds: int = ROUNDS) -> App:
    """The whole service as a WSGI application; a `Fault` when the database can't be served."""
    world = world or World()
    path, folder = Path(config.database_path), Path(config.backup_folder)
    store = Store(path, lambda label: back_up(path, folder, world.now(), label))
    try:
        key = config.token_key or store.secret("token_key", lambda: world.chance(32).hex())
    except BaseException:
        store.close()
        raise
    static = assets_folder()
    for left in (f".{path.name}.download", f"..{path.name}.download.part"):  # by a kill
        path.with_name(left).unlink(missing_ok=True)
    house = House(
        config=config,
        world=world,
        store=store,
        places=Places(static, config.geo_file),
        assets=assets_in(static),
        key=key.encode(),
        rounds=rounds,
        clients=Clients(config),
    )
    site = bottle.Bottle()
    site.default_error_handler = bare_refusal
    for each in ROUTES:
        site.route(each.path, each.method, mounted(each, house))
    return App(house, with_headers(site, config))


MIME = {"html": "text/html", "css": "text/css", "js": "text/javascript", "json": "application/json"}
# An eighth of what readers load would be comments and indents.
COMMENTS = re.compile(rb"(?m)^ *(?://.*|/\*\*(?:(?!\*/)(?s:.))*\*/)\n|^ +| +// .*$")


def assets_in(folder: Path) -> dict[str, Asset]:
    """What is served, by name; loaded once, so that no request names a file."""
    found = {}
    for path in folder.rglob("*"):
        if kind := MIME.get(path.suffix[1:]):
            body = path.read_bytes()
            if kind == "text/javascript":
                body = COMMENTS.sub(b"", body)
            name = path.relative_to(folder).as_posix()
            # At the first wish: a start would take a tenth longer.
            zipped = functools.cache(functools.partial(gzip.compress, body, 9, mtime=0))
            found[name] = Asset(body, zipped, etag_of(body), f"{kind}; charset=utf-8")
    return found


def bare_refusal(error: bottle.HTTPError) -> Any:
    """What Bottle refuses by itself, in our shape."""
    problems: dict[int, Problem] = {
        404: NotFound("没有这个网址"),
        405: BadRequest("这个网址不接受这种请求方法", "method_not_allowed"),
    }
    bottle.response.content_type = "application/json; charset=utf-8"
    return refused(problems.get(error.status_code)).body


def with_headers(app: Callable[..., Any], config: Config) -> Callable[..., Iterable[bytes]]:
    """CORS and the headers of safety on every reply, failures too; preflights; no path that is
    not UTF-8, since Bottle would drop what it can't read."""

    def wrapped(environ: Json, start_response: Callable[..., Any]) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        signed = "HTTP_AUTHORIZATION" in environ
        added = headers_for(config, path, environ.get("HTTP_ORIGIN", ""), signed)

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            given = {name.title() for name, _ in headers}
            rest = [(name, value) for name, value in added.items() if name not in given]
            return start_response(status, headers + rest, exc_info)

        if environ["REQUEST_METHOD"] == "OPTIONS":
            start("204 No Content", list(PREFLIGHT.items()))
            return [b""]
        try:
            path.encode("latin-1").decode("utf-8")
        except UnicodeError:
            reply = refused(BadRequest("网址不是有效的 UTF-8", "url_invalid"))
            start("400 Bad Request", [("Content-Type", reply.content_type)])
            return [reply.body]
        replied: Iterable[bytes] = app(environ, start)
        return replied

    return wrapped


PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Max-Age": "7200",
}


def headers_for(config: Config, path: str, origin: str, private: bool) -> dict[str, str]:
    ours = path.startswith("/admin")  # for our own pages alone
    private = private or ours or path == "/me" or path.startswith(("/auth/", "/me/"))
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; "
        "base-uri 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "same-origin" if ours else "cross-origin",
        "Cache-Control": "no-store" if private else "no-cache",
        "Vary": "Accept-Encoding, Origin, Authorization",
    }
    allowed = not config.site_origins or origin in config.site_origins
    if allowed and not ours:
        headers["Access-Control-Allow-Origin"] = origin if config.site_origins else "*"
        headers["Access-Control-Expose-Headers"] = "Retry-After"
    if re.fullmatch("https://[^/]+", config.server_public_url):  # under a prefix it is the blog's
        headers["Strict-Transport-Security"] = "max-age=31536000"
    return headers


# -- Moving -------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """How a product's file is known and read. A table begins with the name of its records, `name: `
    (where there is none, they tell), and has `field=path` words, or `field` where both are one:
    `a.b` lies within, of `a|b` the first that says something is taken. A comment has `id`,
    `parent`, `thread` (what stands above them all, for where the parent is lost), `page` (its
    address or, where `pages` has an id, the id of a record there), `site` (the name of its blog),
    `author` (the id of one of `people`), `nickname`, `email`, `website`, `markdown`, `html`,
    `lines` (HTML whose ends of lines are breaks) or `either`, `ip`, `likes`, `pinned`, `closed` (of
    its page), `created_at`, `edited_at` and `status`: a path, or rules in order, `path:state` where
    something is so, `!path:state` where it is not."""

    sign: str  # a pattern of how it begins; of SQLite, its tables
    comment: str
    pages: str = ""
    people: str = ""
    lost: str = ""  # what it has and nobody here keeps
    zone: str = "+00:00"  # of times that tell none
    escaped: bool = False  # whether names and addresses are HTML
    sql: str = ""


WALINE = """Comment: id=objectId parent=pid thread=rid page=url author=user_id nickname=nick
    email=mail website=link either=comment ip likes=like pinned=sticky
    created_at=insertedAt|createdAt status=isSpam:spam,status"""
COMMENTD = """id page_key parent_id nickname email website content status held likes pinned ip
    country location language created_at edited_at"""
COMMENTD_PAGE = "page_key=key page_url views page_likes closed opened_at"
VIEWS = "Counter: page=url views=time"

PRODUCTS = {
    "commentd": Product(
        r'\{"format": "commentd"',
        f"comments: {COMMENTD} parent=parent_id page=page_key markdown=content",
        "pages: id=page_key page=page_url views page_likes closed opened_at",
    ),
    "waline": Product(
        r'(?s).*"type"\s*:\s*"waline"|.*"objectId".*"(like|sticky|status)"\s*:',
        WALINE,
        VIEWS,
        "Users: id=objectId nickname=display_name email website=url",
        lost="reactions, user agents",
        zone="+08:00",  # its image's, for stores that are not LeanCloud
    ),
    "twikoo": Product(
        r'(?s).*"_id"\s*:',
        """id=_id parent=pid thread=rid page=url|href nickname=nick email=mail website=link
        html=comment ip likes=ups|like pinned=top created_at=created status=isSpam:waiting""",
        VIEWS,
        lost="user agents, votes against",
    ),
    "valine": Product(
        r'(?s)#filetype:JSON-streaming|.*"objectId"\s*:',
        WALINE,
        VIEWS,
        lost="user agents",
        escaped=True,
    ),
    "cusdis": Product(
        "comments pages projects",
        """id parent=parentId page=url|slug nickname=by_nickname email=by_email markdown=content
        created_at status=deletedAt:deleted,!approved:waiting""",
        sql="""
            SELECT comments.*, pages.slug, pages.url
              FROM comments LEFT JOIN (pages JOIN projects ON projects.id = pages.projectId
                   AND coalesce(projects.deleted_at, '') = '') ON pages.id = comments.pageId""",
    ),
    "disqus": Product(
        r"(?s)\s*<.*http://disqus\.com",
        """post: id=@id parent=parent.@id page=thread.@id html=message email=author.email
        nickname=author.name|author.username ip=ipAddress created_at=createdAt
        status=isDeleted:deleted,isSpam:spam,!isApproved:waiting""",
        "thread: id=@id page=link|id closed=isClosed gone=isDeleted opened_at=createdAt",
    ),
    "wordpress": Product(
        r"(?s)\s*<.*https?://wordpress\.org/export/",
        """comment: id=comment_id parent=comment_parent page=in nickname=comment_author
        email=comment_author_email website=comment_author_url ip=comment_author_IP
        lines=comment_content created_at=comment_date_gmt|comment_date type=comment_type
        status=comment_approved""",
        "item: id=in page=link closed=comment_status opened_at=post_date_gmt",
        escaped=True,
    ),
    "isso": Product(
        "comments threads",
        """id parent page=uri nickname=author email website markdown=text ip=remote_addr
        created_at=created edited_at=modified likes status=mode""",
        lost="dislikes",
        escaped=True,
        sql="SELECT comments.*, threads.uri FROM comments LEFT JOIN threads ON threads.id = tid",
    ),
    "isso-json": Product(
        r'(?s)\s*\[\s*\{.*"comments"\s*:\s*\[',
        "id page=in nickname=author email website markdown=text ip=remote_addr created_at=created",
        escaped=True,
    ),
    "remark42": Product(
        r'(?s)\s*\{"version":\s*1,\s*"(users|posts)|.*"locator"\s*:',
        """id parent=pid page=locator.url nickname=user.name markdown=orig html=text
        likes=votes|score pinned=pin created_at=time edited_at=edit.time status=delete:deleted""",
        "page=url closed=read_only",
        lost="votes against",
    ),
    "artalk": Product(
        r'(?s).*"page_key"\s*:',
        """id parent=rid page=page_key site=site_name nickname=nick email website=link
        either=content ip likes=vote_up pinned=is_pinned closed=page_admin_only created_at
        status=is_pending:waiting""",
        lost="user agents, votes against, badges, titles",
    ),
    "commento": Product(
        r'(?s).*"commentHex"\s*:',
        """comments: id=commentHex parent=parentHex page=url|path author=commenterHex markdown
        likes=score created_at=creationDate status=deleted:deleted,state""",
        people="commenters: id=commenterHex nickname=name email website=link|websiteUrl",
    ),
    "comentario": Product(
        r'(?s).*"(domainId|pageId|domainPageId)"\s*:',
        """comments: id parent=parentId page=url author=userCreated nickname=authorName ip=authorIP
        markdown html likes=score pinned=isSticky created_at=createdTime edited_at=editedTime
        status=isDeleted:deleted,isPending:waiting,!isApproved:spam""",
        "pages: page=path closed=isReadonly views=countViews",
        "commenters: id nickname=name email website=websiteUrl",
    ),
}
WORDS_OF_STATES = {"": "visible", "1": "visible", "approved": "visible", "visible": "visible"}
WORDS_OF_STATES |= {"4": "deleted", "trash": "deleted", "deleted": "deleted", "spam": "spam"}
FALSE = {"", "0", "f", "false", "none", "null", "no", "open", "0001-01-01t00:00:00z"}
NOBODY = "192.0.2.0"  # an address that is given to nobody (RFC 5737)
TOP = {"", "0", "root", "null", "00000000-0000-0000-0000-000000000000"}  # answers nobody


def records_in(words: str) -> str:
    return words.rpartition(": ")[0]


def table(words: str) -> dict[str, str]:
    pairs = (word.partition("=") for word in words.rpartition(": ")[2].split())
    return {name: path or name for name, _, path in pairs}


def pick(record: Any, path: str) -> Any:
    """What stands under a path; None where nothing does."""
    for one in path.split("|"):
        value = record
        for name in one.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if value not in (None, "", [], {}):
            return value
    return None


def as_text(value: Any) -> str:
    """Without what no text may hold; MongoDB and LeanCloud wrap some texts and numbers."""
    while isinstance(value, dict):
        value = pick(value, "$oid|$numberLong|$numberInt|$numberDouble|$date|iso")
    text = str(value) if isinstance(value, str | int | float) else ""
    text = text.encode("utf-8", "replace").decode().replace("\r\n", "\n")
    return "".join(c for c in text if c in "\n\t" or unicodedata.category(c) != "Cc").strip()


def is_true(value: Any) -> bool:
    return (as_text(value) if isinstance(value, dict) else str(value)).lower() not in FALSE


def count_in(value: Any, most: int = 2**53) -> int:
    """A number, or how many are in a list; of votes by name, those for it."""
    if isinstance(value, dict) and not as_text(value):
        value = [vote for vote in value.values() if is_true(vote)]
    with contextlib.suppress(ValueError, OverflowError, RecursionError):
        value = json.loads(value) if str(value)[:1] == "[" and isinstance(value, str) else value
        number = len(value) if isinstance(value, list) else int(float(as_text(value)))
        return min(most, max(0, number))
    return 0


def time_in(value: Any, zone: str, now: float) -> int | None:
    """UTC seconds of a time that can be: since 1990, and not to come."""
    text, seconds = as_text(value)[:64], 0.0
    with contextlib.suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(re.sub(r"\s+(?=[+-]\d\d:?\d\d$)", "", text))
        here = datetime.fromisoformat(f"2000-01-01T00:00{zone}").tzinfo
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=here)).timestamp()
    with contextlib.suppress(ValueError):  # a number is no date, though some are written so
        seconds = float(text)
        seconds /= 1000 if seconds > 1e11 else 1
    # The day is for clocks that were wrong.
    return min(int(seconds), int(now)) if 631152000 <= seconds <= now + DAY else None


def state_in(record: Json, rules: str) -> str:
    for rule in rules.split(","):
        path, colon, state = rule.partition(":")
        value = pick(record, path.lstrip("!"))
        if not colon:
            return WORDS_OF_STATES.get(as_text(value).lower(), "waiting")  # any other waits
        if value is not None and is_true(value) != path.startswith("!"):
            return state
    return "visible"


def fields_in(record: Any, words: str) -> Json:
    read = {"status": state_in}
    return {name: read.get(name, pick)(record, path) for name, path in table(words).items()}


class MarkdownMaker(html.parser.HTMLParser):
    """HTML to Markdown that reads the same; what it does not know gives its text."""

    MARKS: ClassVar = {"b": "**", "strong": "**", "i": "*", "em": "*", "del": "~~", "s": "~~"}
    SIGNS: ClassVar = {"br": "\n", "hr": "\n\n---\n\n"}
    BLOCK = re.compile("p|div|table|tr|[uo]l|h[1-6]")

    def __init__(self, breaks: bool, marks: bool) -> None:
        super().__init__()
        self.breaks, self.marks = breaks, marks  # whether the end of a line is one; emphasis
        self.met: list[str] = []  # what a reader sees
        self.open: list[tuple[str, Json, list[str]]] = [("", {}, [])]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in self.SIGNS:
            self.add(self.SIGNS[tag])
        elif tag == "img":
            name, source = image(given)
            self.met.append(name)
            self.add(linked(escaped(name), "" if self.is_in("a") else source))
        elif len(self.open) < 40:
            self.open.append((tag, given, []))

    def handle_endtag(self, tag: str) -> None:
        closed = "" if self.is_in(tag) else tag
        while closed != tag:
            closed, given, parts = self.open.pop()
            self.add(self.marked(closed, given, "".join(parts)))

    def handle_data(self, data: str) -> None:
        if not self.is_in("script", "style"):
            self.met.append(data)
        if self.open[-1][0] in ("ul", "ol") and not data.strip():
            return
        if not self.is_in("pre", "code"):
            data = re.sub(r"\n\s*\n", "\n\n", data) if self.breaks else data
            blank, space = (BLANKS_AROUND, "\n") if self.breaks else (r"\s+", " ")
            data = re.sub(blank, space, data)
            if not self.open[-1][2] or self.open[-1][2][-1].endswith("\n"):
                data = data.lstrip("\n")  # after <br> or at the start of a paragraph
            pieces = re.split(r"(https?://\S+)", data)  # whose signs are no marks
            pieces[::2] = [escaped(piece) for piece in pieces[::2]]
            data = "".join(pieces)
        self.add(data)

    def is_in(self, *tags: str) -> bool:
        return any(tag in tags for tag, *_ in self.open)

    def add(self, text: str) -> None:
        self.open[-1][2].append(text)

    def marked(self, tag: str, given: Json, text: str) -> str:
        core = text.strip(OUTSIDE)
        core = text.strip() if core.endswith("\\") else core  # a sign that is escaped
        if tag in self.MARKS and core and self.marks:
            return text.replace(core, f"{self.MARKS[tag]}{core}{self.MARKS[tag]}", 1)
        if re.fullmatch("h[1-6]", tag) and text.strip():
            return f"\n\n**{text.strip()}**\n\n"
        if tag == "a":
            return linked(text, given.get("href", ""))
        if tag == "code" and not self.is_in("pre"):
            return f"`` {text} ``" if "`" in text else f"`{text}`"
        if tag == "pre":
            fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
            text = f"{fence}\n" + text.strip("\n") + f"\n{fence}"
        if tag == "blockquote":
            text = textwrap.indent(tidy(text), "> ", lambda line: True)
        if tag == "li":
            mark = "1. " if self.open[-1][0] == "ol" else "- "
            return mark + textwrap.indent(tidy(text), " " * len(mark)).strip() + "\n"
        if tag in ("script", "style"):
            return ""
        if tag in ("ul", "ol") and self.is_in("li"):
            return f"\n{text.strip()}\n"
        block = tag in ("pre", "blockquote") or self.BLOCK.fullmatch(tag)
        return f"\n\n{text}\n\n" if block else text


# The lookbehind keeps them linear: else each blank of a long run is tried as the first of it.
BLANKS_AROUND = re.compile(r"(?<![ \t])[ \t]*\n[ \t]*")
BLANKS_AT_ENDS = re.compile(r"(?m)(?<![ \t])[ \t]+$|^ (?=\S)")

TO_ESCAPE = re.compile(r"[\\`*\[\]<>~]|(?<!\w)_|_(?![^\W_])|(?<=_)_")
LINE_START = re.compile(r"(?m)^([ \t]*\d*)([#+=.)_-])(?=[\s#=_-]|$)")


def escaped(text: str) -> str:
    """With what would be a mark in Markdown as itself."""
    return LINE_START.sub(r"\1\\\2", TO_ESCAPE.sub(r"\\\g<0>", text))


# A mark is none beside a blank or, for mistune, many a sign (CommonMark 6.2).
OUTSIDE = " \t\n，。！？；：、,.!?;:…“”‘’（）"
STICKER = re.compile("(?i)(?<![a-z])(v?emo(ji|t)|smil[ei]|owo|sticker|tv_)")


def image(given: Json) -> tuple[str, str]:
    """The words for it, and its address; a sticker is its name alone."""
    source = given.get("src", "") if re.match("https?://", given.get("src", "")) else ""
    name = given.get("alt") or given.get("atk-emoticon") or source.rstrip("/").rpartition("/")[2]
    sticker = "atk-emoticon" in given or STICKER.search(f"{given.get('class', '')} {source}")
    return name, "" if sticker else source


def linked(text: str, url: str) -> str:
    url = re.sub(r"[<>\s]", lambda sign: urllib.parse.quote(sign[0]), url.strip())
    if not re.match(r"(?i)https?://|mailto:", url) or not text.strip():
        return text
    return url if text.strip() == url else f"[{text.strip()}](<{url}>)"


def tidy(text: str) -> str:
    """Without blanks at the ends of lines, and never two empty lines."""
    return re.sub(r"\n{3,}", "\n\n", re.sub(BLANKS_AT_ENDS, "", text)).strip("\n")


def markdown_of(markup: str, breaks: bool = False) -> str:
    """HTML as Markdown. It is read back: where the reader would read other letters, it is made
    without emphasis, and else of the bare text."""
    # Each `<` that ends nowhere would be looked for to the end of the text.
    markup = re.sub(r"(?s)<!--.*?(-->|\Z)", "", markup[: MEGA // 4])
    markup = re.sub(r"<(?![^<>]*>)", "&lt;", markup)
    for marks in (True, False):
        maker = MarkdownMaker(breaks, marks)
        maker.feed(markup)
        maker.close()
        for tag, *_ in reversed(maker.open[1:]):
            maker.handle_endtag(tag)
        text, met = tidy("".join(maker.open[0][2])).strip(), "".join(maker.met)
        read = html.unescape(re.sub("<[^>]*>", "", safe_html(text)))
        if "".join(read.split()) == "".join(met.split()):
            return text
    return re.sub(r"[!-/:-@\[-`{-~]", r"\\\g<0>", met.strip())


# Files

Records = Iterator[tuple[str, Any]]
# Found while all files can be read: root gives its rights up later.
CODINGS = [codecs.lookup(name) for name in ("utf-8-sig", "utf-16")]
RECORD_LIMIT = 16 * MEGA  # no record of any product has a thousandth of it
UNPACKS_TO = 200  # times its size: texts unpack to ten times theirs, a bomb to a thousand times


def records_of(path: Path, product: Product, show: Progress | None) -> Records:
    """Each record of a file, with the name of its table, list or element; few are in memory."""
    with path.open("rb") as file:
        head, size = file.read(65536), size_of(path)
        file.seek(0)
        start = head_of(head)
        text = io.TextIOWrapper(file, coding_of(head), errors="replace")
        if product.sql:
            found = foreign_rows(path, product)
        elif start.startswith("<"):
            found = xml_records(text, [records_in(product.comment), records_in(product.pages)])
        else:
            found = json_lines(text) if in_lines(start) else members(text)
        for number, record in enumerate(found):
            if show and not number % 500:
                show(size - file.tell(), size)
            yield record
        if show:
            show(0, size)


def coding_of(head: bytes) -> str:
    """By the byte order mark, else as an XML declares it, else UTF-8."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    declared = re.match(rb"\s*<\?xml[^>]*encoding\s*=\s*[\"']([\w.-]+)", head)
    name = declared[1].decode() if declared else "utf-8-sig"
    with contextlib.suppress(LookupError, UnicodeError):  # none of that name, or none of texts
        b"a".decode(name, "replace")
        return name
    return "utf-8-sig"


def head_of(head: bytes) -> str:
    """How the text begins, without what stands before an XML by accident."""
    text = head.decode(coding_of(head), "replace").lstrip("\ufeff \t\r\n")
    return re.sub(r"\A[^\[{]{1,1000}(?=<\?xml)", "", text)


def in_lines(start: str) -> bool:
    """Whether each line is a record."""
    line = start.partition("\n")[0]
    try:
        first = json.loads(line.rstrip(", \r"))
    except (ValueError, RecursionError):
        return line.startswith("#filetype")
    return isinstance(first, dict) and not first.keys() & {"results", "data", "comments", "format"}


def limited(text: str) -> str:
    if len(text) > RECORD_LIMIT:
        raise Fault("the file holds a record of more than 16 MB, which no export does")
    return text


def json_lines(text: TextIO) -> Records:
    name = ""
    lines = iter(lambda: limited(text.readline(RECORD_LIMIT + 1)), "")
    for number, line in enumerate(lines, 1):
        if line.lstrip("\ufeff").startswith("#filetype"):
            # LeanCloud tells the class; that of comments has any name.
            name = "".join(re.findall(r'"class"\s*:\s*"(_\w*|Counter|Users)"', line)[:1])
        elif line.strip():
            try:
                record = json.loads(line.strip().rstrip(","), strict=False)
            except (ValueError, RecursionError):
                if line[-1] != "\n":
                    raise Fault(f"the file breaks off in line {number}") from None
                record = f"line {number}"
            if isinstance(record, dict) and isinstance(record.get("posts"), list):
                yield from (("", post) for post in record["posts"])  # Remark42's pages
            else:
                yield name, record


def members(text: TextIO) -> Records:
    """What is in the lists of a JSON text, with the name of the list."""
    decode = json.JSONDecoder(strict=False).raw_decode  # a control spoils no row
    buffer, name, inside = "", "", ""
    while True:
        buffer = buffer.lstrip(" \t\r\n,:")
        listed = inside[-1:] == "["
        if buffer[:1] in ("]", "}"):
            inside, buffer = inside[:-1], buffer[1:]
            continue
        if buffer[:1] in ("[", "{") and not listed:
            inside, buffer = inside + buffer[0], buffer[1:]
            continue
        found, end = None, 0
        with contextlib.suppress(ValueError, RecursionError):
            found, end = decode(buffer)
        if end in (0, len(buffer)) and (chunk := text.read(max(65536, len(buffer)))):
            buffer = limited(buffer + chunk)  # it may go on there
        elif end:
            buffer = buffer[end:]
            if listed:
                yield name, found
            name = found if isinstance(found, str) and not listed else name
        elif buffer or inside:
            raise Fault("the file breaks off" + ", or is no JSON from there on" * bool(buffer))
        else:
            return


# What breaks XML and stands in many an export all the same.
CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
REFERENCE = re.compile("&(?:#([0-9]{1,7}|x[0-9a-fA-F]{1,6});|(?!(?:amp|lt|gt|quot|apos);))")
CDATA = re.compile(r"(<!\[CDATA\[(?s:.)*?(?:\]\]>|\Z))")  # the last one may go on


def referred(reference: re.Match[str]) -> str:
    """A reference to a character as it is, to a control as nothing, and a lone `&` as itself."""
    if not reference[1]:
        return "&amp;"
    digits = reference[1].removeprefix("x")
    number = int(digits, 10 if digits == reference[1] else 16)
    valid = number < 0xD800 or 0xDFFF < number < 0x110000
    return reference[0] if valid and not CONTROL.match(chr(number)) else ""


def xml_pieces(text: TextIO) -> Iterator[str]:
    """A text that ends with a tag each time, with what would break the parser mended."""
    buffer, first, goes_on = "", True, False
    while chunk := text.read(65536):
        buffer = limited(buffer + CONTROL.sub("", chunk))
        if goes_on and "]]>" not in buffer[-65538:]:
            continue
        if first:  # what stands before is an accident
            buffer = buffer[max(0, buffer.find("<?xml", 0, 1000)) :].lstrip("\ufeff \t\r\n")
        pieces = CDATA.split(buffer)
        if goes_on := len(pieces) > 1 and not pieces[-2].endswith("]]>"):
            del pieces[-2:]
        end = len(pieces[-1]) if goes_on else pieces[-1].rfind(">") + 1
        start = sum(map(len, pieces[:-1])) + end
        buffer, pieces[-1], first = buffer[start:], pieces[-1][:end], False
        pieces[::2] = [REFERENCE.sub(referred, piece) for piece in pieces[::2]]
        yield "".join(pieces)
    yield buffer


def no_doctype(*_: object) -> None:
    """So that no entity is ever expanded."""
    raise Fault("the file declares a document type, which no export does: it is not read")


def xml_records(text: TextIO, names: list[str]) -> Records:
    """Elements of these names, as dicts, `@id` for an attribute, with `in`: the number of the item
    that they stand in."""
    parser: Any = ElementTree.XMLPullParser(("start", "end"))
    guard = expat.ParserCreate()  # reads first: what is a document type is its to say
    guard.StartDoctypeDeclHandler = no_doctype
    items, begun = 0, False  # where an element has begun, no document type may follow
    path: list[tuple[str, ElementTree.Element, Json]] = []
    try:
        for piece in xml_pieces(text):
            if not begun:
                with contextlib.suppress(expat.ExpatError):  # the other tells it, in its time
                    guard.Parse(piece)
            parser.feed(piece)
            for event, node in parser.read_events():
                begun = True
                if event == "start":
                    attributes = {f"@{local(name)}": text for name, text in node.items()}
                    path.append((local(node.tag), node, attributes))
                    items += local(node.tag) == "item"
                    continue
                name, _, said = path.pop()
                above = [each for each, *_ in path if each in names]
                if name in names and above in ([], ["item"]):
                    yield name, {**said, "in": str(items)}
                elif above:
                    path[-1][2][name] = said or node.text or ""
                if path:
                    del path[-1][1][:]  # what has been told
        parser.close()
    except ElementTree.ParseError as error:
        raise Fault(f"the file breaks off, or is no XML from there on ({error})") from None


def local(name: str) -> str:
    return name.rpartition("}")[2]


@contextlib.contextmanager
def foreign(path: Path) -> Iterator[tuple[sqlite3.Connection, set[str]]]:
    """A copy of another program's database, and its tables; the file and its folder stay as they
    are."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        for suffix in ("", "-wal"):
            if size_of(Path(f"{path}{suffix}")):
                shutil.copyfile(f"{path}{suffix}", f"{copy}{suffix}")
        with contextlib.closing(sqlite3.connect(copy)) as db:
            db.execute("PRAGMA trusted_schema = OFF")
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, RECORD_LIMIT)
            ends = time.monotonic() + HOUR
            db.set_progress_handler(lambda: time.monotonic() > ends, 100_000)
            db.row_factory = sqlite3.Row
            db.text_factory = functools.partial(str, encoding="utf-8", errors="replace")
            try:
                found = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
                yield db, {name for (name,) in found}
            except sqlite3.Error as error:
                raise Fault(f"the database can't be read from there on ({error})") from None


def foreign_rows(path: Path, product: Product) -> Records:
    with foreign(path) as (db, tables):
        if not set(product.sign.split()) <= tables:
            raise Fault(f"the file has not the tables {product.sign}")
        if (verdict := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
            raise Fault(f"the database is damaged ({one_line(verdict)})")
        for row in db.execute(product.sql):
            yield "", dict(row)


def product_of(path: Path, called: Path) -> str:
    """The name of the product that a file is of, by how it begins."""
    with path.open("rb") as file:
        head = file.read(MEGA)
    if head.startswith(b"PK\3\4"):
        raise Fault(f"{called} is a zip archive: unpack it first")
    start, tables = head_of(head), set[str]()
    if head.startswith(b"SQLite format 3\0"):
        with contextlib.suppress(Fault), foreign(path) as (_, tables):
            pass
    for name, product in PRODUCTS.items():
        if set(product.sign.split()) <= tables if product.sql else re.match(product.sign, start):
            return name
    known = ", ".join(PRODUCTS)
    raise Fault(f"{called} is of no product that is known ({known}): name one with --format")


@contextlib.contextmanager
def unpacked(path: Path) -> Iterator[tuple[Path, Fault | None]]:
    """The file, or, of one that is packed, what is in it; and whether that broke off."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if not packed and not tarfile.is_tarfile(path):
        yield path, None
        return
    broken = None
    with tempfile.NamedTemporaryFile() as plain:
        try:
            with gzip.open(path) if packed else path.open("rb") as file:
                most = max(64 * MEGA, UNPACKS_TO * size_of(path))
                for part in parts_of(file):
                    unpack(part, plain, most)
        except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
            broken = Fault(f"the file breaks off, or is damaged ({error})")
        plain.flush()
        yield Path(plain.name), broken


def unpack(part: IO[bytes], plain: IO[bytes], most: int) -> None:
    while chunk := part.read(16384):
        plain.write(chunk)
        if plain.tell() > most:
            what = f"the file unpacks to more than {most // MEGA} MB"
            raise Fault(f"{what}, which no export of its size does: unpack it yourself")


def parts_of(file: Any) -> Iterator[IO[bytes]]:
    """The file; of LeanCloud's archive the comments, views and users."""
    archived = file.read(512)[257:262] == b"ustar"
    file.seek(0)
    if not archived:
        yield file
        return
    with tarfile.open(fileobj=file, mode="r|") as archive:
        for each in archive:
            inner = archive.extractfile(each) if each.isfile() else None
            if inner and re.match(r"(?i)comment|counter|users", Path(each.name).name):
                yield from (inner, io.BytesIO(b"\n"))


# The way in

STAGE = """
    CREATE TABLE author (id TEXT PRIMARY KEY, fields TEXT);
    CREATE TABLE page (ref TEXT, site TEXT, host TEXT, key TEXT, page_url TEXT, closed INTEGER,
                       views INTEGER, page_likes INTEGER, opened_at INTEGER);
    CREATE INDEX page_ref ON page (ref);
    CREATE INDEX page_key ON page (key);
    CREATE TABLE comment (id TEXT PRIMARY KEY, parent TEXT, thread TEXT, site TEXT, host TEXT,
                          key TEXT, page_url TEXT, status TEXT, created_at INTEGER, stamp TEXT,
                          depth INTEGER, fields TEXT);
    CREATE TABLE met (id TEXT PRIMARY KEY);  -- each comment of the file, skipped ones too
    CREATE TABLE claimed (id INTEGER PRIMARY KEY);
    CREATE INDEX comment_parent ON comment (parent);
    CREATE INDEX comment_key ON comment (key, created_at);
    CREATE INDEX comment_depth ON comment (depth, created_at);
"""
HOSTS = "SELECT host, count(*) FROM comment WHERE host <> '' GROUP BY host"
HOSTS_OF_PAGES = "SELECT DISTINCT host, 0 FROM page WHERE host <> ''"
SITES = "SELECT site, count(*) FROM comment WHERE site <> '' GROUP BY site"
LOST = """ NOT EXISTS (SELECT 1 FROM comment AS p
        WHERE p.id = comment.parent AND p.key = comment.key AND p.id <> comment.id)"""
REHUNG = "UPDATE comment SET parent = thread WHERE thread NOT IN ('', id) AND" + LOST
ORPHANS = f"""
    SELECT id, CASE WHEN parent = id THEN 'they answer themselves' ELSE 'what they answer is ' ||
               CASE WHEN parent IN (SELECT id FROM comment) THEN 'on another page'
                    WHEN parent IN (SELECT id FROM met) THEN 'skipped'
                    ELSE 'not in the file' END END
      FROM comment WHERE parent <> '' AND {LOST}"""
DEPTHS = """
    WITH RECURSIVE tree (id, depth) AS (
        SELECT id, 0 FROM comment WHERE parent = ''
         UNION ALL
        SELECT comment.id, tree.depth + 1 FROM tree JOIN comment ON comment.parent = tree.id)
    UPDATE comment SET depth = tree.depth FROM tree WHERE tree.id = comment.id"""
UNREACHED = "SELECT id, parent FROM comment WHERE depth IS NULL"
CHILDLESS = """
    DELETE FROM comment WHERE status = 'deleted'
       AND NOT EXISTS (SELECT 1 FROM comment AS c WHERE c.parent = comment.id) RETURNING id"""
NO_TIME = """
    UPDATE comment SET created_at = coalesce(
        (SELECT p.created_at FROM comment AS p WHERE p.id = comment.parent),
        (SELECT min(p.created_at) FROM comment AS p WHERE p.key = comment.key), ?)
     WHERE created_at IS NULL"""
OPENED = """
    SELECT coalesce((SELECT min(opened_at) FROM page WHERE key = :key),
                    (SELECT min(created_at) FROM comment WHERE key = :key)),
           (SELECT page_url FROM comment WHERE key = :key ORDER BY created_at LIMIT 1)"""
STAGED_PAGES = """
    SELECT key, min(page_url) AS page_url, max(closed) AS closed, sum(views) AS views,
           max(page_likes) AS page_likes,
           EXISTS (SELECT 1 FROM comment WHERE comment.key = page.key) AS comments
      FROM page GROUP BY key"""
STAGED = """
    SELECT comment.*, parent.stamp AS parent_stamp
      FROM comment LEFT JOIN comment AS parent ON parent.id = comment.parent
     ORDER BY comment.depth, comment.created_at, comment.id"""


# What is left of a comment that was deleted.
GONE: Json = dict.fromkeys(("nickname", "email", "website", "content", "html", "original"), "")
GONE |= dict.fromkeys(("ip", "country", "location", "language", "held"), "")
GONE |= {"status": "deleted", "likes": 0, "pinned": 0, "edited_at": None}

HTML_START = re.compile(r"(?i)\s*<(p|pre|blockquote|[uo]l|h\d|div|table|hr)\b|\s*<a class=")
IMAGE = re.compile(r"(?i)<img\b[^<>]*>")
CODE = re.compile(r"(?s)(```.*?(?:```|\Z)|`[^`]+`)")
HOST = re.compile(r"(?i)\A(?:https?:)?//([^/?#]*)")
AT_ANCHOR = re.compile(r"\[(@[^\[\]]*)\]\(#[^()]*\)")  # how Waline's answers begin


def markdown_in(said: Json) -> tuple[str, str]:
    """The text of a comment, and the HTML that it was made of."""
    text, markup = as_text(said.get("markdown")), as_text(said.get("html"))
    if either := as_text(said.get("either")):
        pieces = CODE.split(either)  # Markdown, with stickers as HTML
        pieces[::2] = [IMAGE.sub(lambda tag: markdown_of(tag[0]), piece) for piece in pieces[::2]]
        pieces[::2] = [AT_ANCHOR.sub(r"\1", piece) for piece in pieces[::2]]
        text, markup = ("", either) if HTML_START.match(either) else ("".join(pieces), "")
    markup = markup or as_text(said.get("lines"))
    if text or not markup:
        return text, ""
    return markdown_of(markup, breaks="lines" in said), markup[: MEGA // 4]


def nickname_in(text: str) -> str:
    """The rule for what is written here, and as much of a name as keeps it."""
    bare = "".join(c for c in text if unicodedata.category(c)[0] != "C" and c not in BLANKS)
    names = (text, bare[:64], bare.encode()[:200].decode(errors="ignore"), "Anonymous")
    return next(filter(None, (proper_or_none(proper_nickname, name) for name in names)))


def proper_or_none(proper: Callable[[str], str], text: str) -> str:
    with contextlib.suppress(ValueError):
        return proper(text)
    return ""


def website_in(text: str) -> str:
    url = f"http://{text}" if re.match(r"[\w-]+(\.[\w-]+)+(?![^/])", text) else text
    return proper_or_none(proper_website, url) if len(text) <= 2048 else ""


class Import:
    """One file on its way in. It is staged in a temporary database first, where answers find what
    they answer; then brought in, fifty comments a transaction, so that it may be stopped."""

    def __init__(
        self, name: str, config: Config, places: Places, now: int, zone: str, broken: Fault | None
    ) -> None:
        self.name, self.product, self.config = name, PRODUCTS[name], config
        self.places, self.now, self.zone = places, now, zone or self.product.zone
        self.broken = broken  # what was wrong with the rest of the file
        self.ours = name == "commentd"  # all is as it was then
        self.counts: Counter[str] = Counter()
        self.named: dict[str, list[str]] = {}
        self.pages: set[str] = set()
        self.db = sqlite3.connect("")  # a file of SQLite's own, which goes when it is closed
        self.db.row_factory = sqlite3.Row
        self.db.executescript(STAGE)

    def tell(self, what: str, name: str) -> None:
        self.counts[what] += 1
        if self.counts[what] <= 8:
            self.named.setdefault(what, []).append(one_line(name)[:64])

    def tell_each(self, what: str, sql: str, *values: str) -> bool:
        """Of each comment whose id is found; whether there was one."""
        found = self.db.execute(sql, values).fetchall()
        for (id,) in found:
            self.tell(what, id)
        return bool(found)

    # Staging

    def stage(self, path: Path, show: Progress | None) -> None:
        """All that can be read. Pages and authors come first, as the file may have them last."""
        for wanted, told in (("page author", None), ("comment", show)):
            try:
                for name, record in records_of(path, self.product, told):
                    kind = self.kind(name, record)
                    if kind in wanted.split():
                        self.stage_one(kind, record)
            except Fault as fault:
                self.broken = fault

    def kind(self, name: str, record: Any) -> str:
        product = self.product
        tables = {"comment": product.comment, "page": product.pages, "author": product.people}
        if name not in ("", "results"):
            return next((kind for kind, words in tables.items() if records_in(words) == name), "")
        page = fields_in(record, product.pages).values()
        return "page" if page and None not in page else "comment"

    def stage_one(self, kind: str, record: Any) -> None:
        if kind == "page":
            self.stage_page(fields_in(record, self.product.pages))
        elif kind == "author":
            said = {n: as_text(v) for n, v in fields_in(record, self.product.people).items() if v}
            sql = "INSERT OR REPLACE INTO author VALUES (?, ?)"
            self.db.execute(sql, (said.pop("id", ""), json.dumps(said)))
        elif isinstance(record, dict) and isinstance(record.get("comments"), list):  # of Isso
            page = as_text(record.get("id"))
            for each in (each for each in record["comments"] if isinstance(each, dict)):
                id = f"{page} {number}" if (number := pick(each, "id")) else None
                self.stage_comment({**each, "id": id, "in": page})
        elif isinstance(record, dict):
            self.stage_comment(record)
        else:
            self.counts["read"] += 1
            self.tell("skipped: it can't be read", as_text(record)[:40])

    def stage_page(self, said: Json) -> None:
        place = self.place(said.get("page"))
        if self.ours:
            place = "", as_text(said["id"]), as_text(said["page"])
        if place and place[1] and not is_true(said.get("gone")):
            self.counts["pages"] += 1
            counts = (count_in(said.get("views")), count_in(said.get("page_likes"), 100_000))
            opened = time_in(said.get("opened_at"), self.zone, self.now)
            names = (as_text(said.get("id")), one_line(as_text(said.get("site"))), *place)
            values = (*names, is_true(said.get("closed")), *counts, opened)
            self.db.execute("INSERT INTO page VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def place(self, page: Any) -> tuple[str, str, str] | None:
        """Host, key and address of a page; the host of the blog goes, whichever it is."""
        url = as_text(page)
        if not url or len(url) > 2048 or has_controls(url):
            return None
        found = HOST.match(url)
        host = host_of(f"any://{found[1]}") if found else ""
        name = page_name(url, {host})
        return host.removeprefix("www."), name.key, HOST.sub("", name.page_url) or "/"

    def place_of(self, page: Any) -> tuple[str, str, str] | None:
        """The same of what a comment says of its page, which may be the id of a record."""
        if "id=" not in self.product.pages:
            return self.place(page)
        sql = "SELECT host, key, page_url FROM page WHERE ref = ?"
        row = self.db.execute(sql, (as_text(page),)).fetchone()
        return tuple(row) if row else None

    def stage_comment(self, record: Json) -> None:
        self.counts["read"] += 1
        said = fields_in(record, self.product.comment)
        sql = "SELECT fields FROM author WHERE id = ?"
        author = self.db.execute(sql, (as_text(said.get("author")),)).fetchone()
        said |= json.loads(author[0]) if author else {}
        id, place = as_text(said["id"]), self.place_of(said["page"])
        self.db.execute("INSERT OR IGNORE INTO met VALUES (?)", (id,))
        kind = as_text(said.get("type")) or "comment"
        if self.broken and said.get("author") and not author:  # it comes with the whole file
            self.tell("skipped: its author is not in the file", id)
        elif kind != "comment":
            self.tell(f"skipped: it is a {kind}", id)
        elif not place:
            self.tell("skipped: no page", id)
        else:
            self.stage_row(id, place, said, self.row_of(id, place[1], said))

    def stage_row(self, id: str, place: tuple[str, str, str], said: Json, row: Json) -> None:
        created_at = time_in(said["created_at"], self.zone, self.now)
        if created_at is None:
            self.tell("without a time that can be", id)
        written = as_text(said["created_at"])
        self.counts["bare"] += bool(re.fullmatch(r"\d{4}-\d\d-\d\d[ T][\d:.]+", written))
        stamp = f"{row['id']} {written}"  # that any zone has
        above = (as_text(said.get(name)) for name in ("parent", "thread"))
        values = (row.pop("id"), *("" if each in TOP else each for each in above))
        values += (one_line(as_text(said.get("site"))), *place)
        values += (row.pop("status"), created_at, stamp, json.dumps(row))
        sql = "INSERT OR IGNORE INTO comment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?)"
        if not self.db.execute(sql, values).rowcount:
            if id:
                self.tell("skipped: its id is there twice", id)
            self.counts["there"] += not id
        if is_true(said.get("closed")):
            self.stage_page(said)

    def row_of(self, id: str, key: str, said: Json) -> Json:
        """What is kept of a comment, by the rules for what is written here, but for its length."""
        plain = html.unescape if self.product.escaped else str
        names = ("nickname", "email", "website")
        name, email, website = (plain(as_text(said.get(each))) for each in names)
        text, original = markdown_in(said)
        if len(text.encode()) > 65536:
            self.tell("cut after 64 KiB", id)
            text = text.encode()[:65536].decode(errors="ignore")
        ip, language = plain_ip(as_text(said.get("ip"))), as_text(said.get("language"))
        ip = "" if ip == NOBODY and not self.ours else ip
        shows_place = self.config.privacy_show_location and not self.ours
        country, location = self.places.of(ip) if shows_place else ("", "")
        which = (key, as_text(said["created_at"]), as_text(said.get("nickname")), text)
        row = {
            "id": id or hashlib.sha256("\0".join(which).encode()).hexdigest()[:32],
            "status": said.get("status", "visible"),
            "nickname": nickname_in(name),
            "email": "" if email.endswith(".invalid") else proper_or_none(proper_email, email),
            "website": website_in(website),
            "content": text,
            "original": original,
            "ip": masked(ip),
            "country": as_text(said.get("country"))[:2] or country,
            "location": as_text(said.get("location"))[:64] or location,
            "language": language if language in all_words() else "",
            "held": as_text(said.get("held"))[:256],
            "likes": count_in(said.get("likes"), 10_000),
            "pinned": int(is_true(said.get("pinned"))),
            "edited_at": time_in(said.get("edited_at"), self.zone, self.now),
        }
        gone = not self.ours and text.replace("\\", "") == "[deleted]"
        return row | (GONE if gone or is_blank(text) or row["status"] == "deleted" else {})

    # Putting in order

    def arrange(self, host: str) -> None:
        """Leave what is of other sites; find who answers whom."""
        self.choose_blog(host)
        self.db.execute(REHUNG)
        for id, reason in self.db.execute(ORPHANS).fetchall():
            self.tell(f"stand at the top, since {reason}", id)
            self.db.execute("UPDATE comment SET parent = '' WHERE id = ?", (id,))
        self.db.execute(DEPTHS)
        if unreached := self.db.execute(UNREACHED).fetchall():
            self.cut_cycles(dict(unreached))
            self.db.execute(DEPTHS)
        while self.tell_each("skipped: deleted, or no text", CHILDLESS):
            pass  # what it answered may hold no other
        self.db.execute(NO_TIME, (self.now,))

    def cut_cycles(self, above: dict[str, str]) -> None:
        """Of those who answer each other, one stands at the top."""
        for id in list(above):
            walked = set()
            while id in above:
                walked.add(id)
                id = above.pop(id)
            if id in walked:
                self.tell("stand at the top, since they answer each other", id)
                self.db.execute("UPDATE comment SET parent = '' WHERE id = ?", (id,))

    def choose_blog(self, name: str) -> None:
        """Leave one blog: the site or host that is named, or that the settings name, or the only
        one. Comments that name none belong to each."""
        sites, hosts = self.counted(SITES), self.counted(HOSTS) or self.counted(HOSTS_OF_PAGES)
        host = host_of(re.sub("^(https?://)?(www[.])?", "any://", name.lower()))
        if name in sites or (len(sites) > 1 and host not in hosts):
            self.db.execute("UPDATE comment SET host = site")
            self.db.execute("UPDATE page SET host = site")
            host, hosts = name, sites
        origins = self.config.site_origins
        own = {host_of(origin).removeprefix("www.") for origin in origins}.intersection(hosts)
        there = ", ".join(f"{each} ({count})" for each, count in hosts.items())
        if name and host not in hosts:
            has = f"it has those of {there}" if there else "its comments name none: leave it out"
            raise Fault(f"--host {name}: the file has no comments of it; {has}")
        if len(hosts) > 1 and not name and not own:
            raise Fault(f"it holds comments of {there}: name yours with --host")
        for other in {*hosts} - ({host} if name else own or {*hosts}):
            sql = "DELETE FROM comment WHERE host = ? RETURNING id"
            alone = f"--host {shlex.quote(other)} takes those alone"
            self.tell_each(f"skipped: of {other} ({alone})", sql, other)
            self.db.execute("DELETE FROM page WHERE host = ?", (other,))

    def counted(self, sql: str) -> dict[str, int]:
        return dict(map(tuple, self.db.execute(sql)))

    # Bringing in

    def bring(self, store: Store, dry: bool, show: Progress | None) -> None:
        total, done = self.db.execute("SELECT count(*) FROM comment").fetchone()[0], 0
        rested = time.monotonic()  # others write meanwhile
        for sql, bring_one in ((STAGED_PAGES, self.bring_page), (STAGED, self.bring_comment)):
            rows = self.db.execute(sql)
            while batch := rows.fetchmany(50):
                worked = time.monotonic() - rested
                if not dry and worked > 0.5 and (worked > 2 or is_running(Path(store.path))):
                    threading.Event().wait(0.11)  # SQLite looks for a turn every 100 ms
                    rested = time.monotonic()
                with contextlib.nullcontext() if dry else store.writing():
                    for row in batch:
                        bring_one(store, row, dry)
                done += len(batch) if sql == STAGED else 0
                if show and done:
                    show(total - done, total)

    def page_in(self, store: Store, key: str, page_url: str, dry: bool) -> int:
        """The id of the page, which is made where it is not there; 0 in a dry run."""
        page = store.page(key)
        self.counts["new pages"] += page is None and key not in self.pages
        self.pages.add(key)
        if page is None and not dry:
            opened_at, spelt = self.db.execute(OPENED, {"key": key}).fetchone()
            page = store.add_page(key, spelt or page_url, self.now, opened_at)
        return page.id if page else 0

    def bring_page(self, store: Store, row: sqlite3.Row, dry: bool) -> None:
        key, *sums = (row[name] for name in ("key", "closed", "views", "page_likes"))
        stamp, page = " ".join(map(str, ("page", key, *sums))), store.page(key)
        if store.imported(self.name, stamp):
            self.pages.add(key)
        elif any(sums[1:]) or (sums[0] and row["comments"]) or self.name == "commentd":
            page_id = self.page_in(store, key, row["page_url"], dry)
            # One that has comments here was closed or opened here.
            closed = page.closed if page and (page.total or page.closed) else sums[0]
            self.counts["closed"] += closed and not (page and page.closed)
            if not dry:
                store.note_import(self.name, stamp, 0)
                store.raise_page(page_id, closed, *sums[1:])

    def bring_comment(self, store: Store, row: sqlite3.Row, dry: bool) -> None:
        number = int(row["id"]) if re.fullmatch("[1-9][0-9]{0,11}", row["id"]) else 0
        said = dict(row) | json.loads(row["fields"]) | {"id": number}
        known = store.imported(self.name, row["stamp"])
        found = [known["id"]] if known else store.twins(**said)
        twin = next(filter(self.claim, found), None)
        if known or twin:
            self.pages.add(row["key"])
            self.counts["there"] += 1
            if twin and not dry:
                store.note_import(self.name, row["stamp"], twin)
            return
        self.counts["new"] += 1
        self.counts[row["status"]] += 1
        page_id = self.page_in(store, row["key"], row["page_url"], dry)
        if not dry:
            self.add(store, said, page_id)

    def claim(self, id: int | None) -> bool:
        """Whether no other record of this file is that comment: two may say the same."""
        sql = "INSERT OR IGNORE INTO claimed VALUES (?)"
        return bool(id) and self.db.execute(sql, (id,)).rowcount == 1

    def add(self, store: Store, said: Json, page_id: int) -> None:
        found = said["parent_stamp"] and store.imported(self.name, said["parent_stamp"])
        above = dict(found) if found and found["page_id"] == page_id else {}
        text = said["content"]
        said |= {"html": (safe_html if len(text) <= 10_000 else plain_html)(text), "now": self.now}
        said |= {"parent_id": above.get("id"), "thread_id": above.get("thread_id")}
        said |= {"page_id": page_id, "user_id": None, "masked": 1}
        said["id"] = said["id"] if self.ours else 0  # links to it go on
        comment_id = store.add_comment(**said).id
        self.claim(comment_id)
        store.note_import(self.name, said["stamp"], comment_id, said["original"])
        store.add_likes("comment", comment_id, said["likes"])

    def report(self, dry: bool) -> str:
        count = self.counts
        skipped = sum(n for what, n in count.items() if what.startswith("skipped"))
        sums = f"{count['new']} new, {count['there']} already here, {skipped} skipped"
        lines = [f"{self.name}: {count['read']} comments read, {sums}"]
        for what, names in self.named.items():
            more = " …" if count[what] > len(names) else ""
            number = "  " if what.startswith("skipped") else f"{count[what]} "
            lines.append(f"  {number}{what}: {', '.join(names)}{more}")
        states = [f"{count[state]} {state}" for state in STATES if count[state]]
        lines += [f"  new: {', '.join(states)}"] * bool(states)
        closed = f", {count['closed']} closed to new comments" if count["closed"] else ""
        lines += [f"  {len(self.pages)} pages, {count['new pages']} of them new{closed}"]
        if count["bare"] and self.name in ("waline", "isso-json"):
            lines.append(f"  times without a zone are read as of {self.zone} (--zone)")
        lines += [f"  not carried: {self.product.lost}"] * bool(self.product.lost)
        lines += [f"  {self.broken}: what stands before is taken"] * bool(self.broken)
        return "\n".join(lines + ["this was a dry run: nothing is written"] * dry)


# The way out

ISO, SECONDS = "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S"


def utc(seconds: int | None, form: str = ISO) -> str | None:
    return moment(seconds).strftime(form) if seconds else None


def spelt(page_url: str) -> str:
    """As browsers send it."""
    return urllib.parse.quote(page_url, safe=RESERVED + "~")


def taken(row: Mapping[str, Any], words: str) -> Json:
    return {name: row[path] for name, path in table(words).items()}


def in_list(records: Iterable[Json]) -> Iterator[str]:
    """The members of a list, a line each."""
    for number, record in enumerate(records):
        yield ",\n" * bool(number) + json.dumps(record, ensure_ascii=False)


# Where a format has no tombstones, or hides what answers them, one is a comment that says so.
STONE = GONE | {"nickname": "-", "content": "[deleted]", "status": "visible"}


def exported(
    store: Store, emails: bool, form: str, states: Iterable[str] = STATES, gone: Json = GONE
) -> Iterator[Json]:
    """The comments of these states, page by page, the older first, with times in that form. What
    was deleted is among them where it holds answers, and without its texts."""
    for row in store.exported():
        if row["status"] in states:
            said = {**row, "ip": masked(row["ip"]), "email": row["known_email"] if emails else ""}
            said |= gone if row["status"] == "deleted" else {}
            said["updated_at"] = said["edited_at"] or said["created_at"]
            yield said | {name: utc(said[name], form) for name in said if name.endswith("_at")}


def as_commentd(store: Store, config: Config, emails: bool) -> Iterator[str]:
    """What the README documents; equal for equal comments, whenever it is made."""
    yield '{"format": "commentd", "version": 1, "pages": [\n'
    yield from in_list(
        taken(page, COMMENTD_PAGE) | {"opened_at": utc(page["opened_at"])}
        for page in store.exported_pages()
    )
    yield '\n], "comments": [\n'
    yield from in_list(taken(row, COMMENTD) for row in exported(store, emails, ISO))
    yield "\n]}\n"


def as_waline(store: Store, config: Config, emails: bool) -> Iterator[str]:
    yield '{"type": "waline", "version": 1, "tables": ["Comment", "Counter", "Users"],\n'
    yield '"data": {"Users": [], "Counter": [\n'
    yield from in_list(
        taken(page, "objectId=id time=views") | {"url": unquoted(page["page_url"])}
        for page in store.exported_pages()
    )
    yield '\n], "Comment": [\n'
    words = """objectId=id pid=parent_id rid=thread_id nick=nickname mail=email link=website
        comment=content ip like=likes sticky=pinned insertedAt=created_at createdAt=created_at
        updatedAt=updated_at"""
    yield from in_list(
        taken(row, words)
        | {"url": unquoted(row["page_url"])}  # as its widget asks for it
        | {"status": row["status"].replace("visible", "approved")}
        for row in exported(store, emails, ISO, gone=STONE)
    )
    yield "\n]}}\n"


def as_artalk(store: Store, config: Config, emails: bool) -> Iterator[str]:
    """All values are texts."""
    words = """id content ip nick=nickname email link=website vote_up=likes page_title=page_url
        created_at updated_at"""
    flags = "is_pinned=pinned page_admin_only=closed"
    same = {"site_name": site_name(config), "site_urls": ",".join(config.site_origins)}
    same |= dict.fromkeys(("ua", "password", "badge_name", "badge_color"), "")
    same |= {"is_collapsed": "false", "vote_down": "0"}
    states = ("visible", "waiting", "deleted")
    yield "[\n"
    yield from in_list(
        {name: str(value) for name, value in taken(row, words).items()}
        | {name: str(value == 1).lower() for name, value in taken(row, flags).items()}
        | {"is_pending": str(row["status"] == "waiting").lower()}
        | {"rid": str(row["parent_id"] or 0), "page_key": spelt(row["page_url"])}
        | same
        for row in exported(store, emails, SECONDS + " +0000", states, STONE)
    )
    yield "\n]\n"


# As Isso 0.13 and 0.14 make it. `voters` is a filter of 2048 bits, in which nobody is.
ISSO = """
    PRAGMA user_version = 5;
    CREATE TABLE threads (id INTEGER PRIMARY KEY, uri VARCHAR(256) UNIQUE, title VARCHAR(256));
    CREATE TABLE comments (
        tid REFERENCES threads(id), id INTEGER PRIMARY KEY, parent INTEGER,
        created FLOAT NOT NULL, modified FLOAT, mode INTEGER, remote_addr VARCHAR,
        text VARCHAR NOT NULL, author VARCHAR, email VARCHAR, website VARCHAR,
        likes INTEGER DEFAULT 0, dislikes INTEGER DEFAULT 0, voters BLOB NOT NULL,
        notification INTEGER DEFAULT 0);
"""
ISSO_THREAD = "INSERT OR IGNORE INTO threads (uri, title) VALUES (:uri, :page_url)"
ISSO_COMMENT = """
    INSERT INTO comments (tid, id, parent, created, modified, mode, remote_addr, text, author,
                          email, website, likes, voters)
    VALUES ((SELECT id FROM threads WHERE uri = :uri), :id, :thread_id,
            coalesce(strftime('%s', :created_at), 0), strftime('%s', :edited_at), :mode, :ip,
            :content, nullif(:nickname, ''), nullif(:email, ''), nullif(:website, ''), :likes,
            zeroblob(256))"""
ISSO_MODES = {"visible": 1, "waiting": 2, "deleted": 4}
# Spam is left out; what was deleted stands where it is answered.
ISSO_ORPHANS = "UPDATE comments SET parent = NULL WHERE parent NOT IN (SELECT id FROM comments)"
ISSO_CHILDLESS = """
    DELETE FROM comments WHERE mode = 4
       AND id NOT IN (SELECT parent FROM comments WHERE parent IS NOT NULL AND mode <> 4)"""


def as_isso(store: Store, config: Config, emails: bool) -> Iterator[bytes]:
    """The database file of Isso, whose importers keep neither parents nor edits nor likes. It
    shows names and websites as HTML, and puts each answer below the first comment."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "comments.db"
        with contextlib.closing(sqlite3.connect(file)) as db, db:
            db.executescript(ISSO)
            for row in exported(store, emails, SECONDS, ISSO_MODES):
                row["uri"] = spelt(row["page_url"])
                row["mode"] = ISSO_MODES[row["status"]]
                row["nickname"] = html.escape(row["nickname"], quote=False)
                row["website"] = html.escape(row["website"])
                row["ip"] = row["ip"] or NOBODY
                db.execute(ISSO_THREAD, row)
                db.execute(ISSO_COMMENT, row)
            db.execute(ISSO_ORPHANS)
            db.execute(ISSO_CHILDLESS)
        with file.open("rb") as data:
            yield from iter(lambda: data.read(65536), b"")


WXR = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dsq="http://www.disqus.com/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:wp="http://wordpress.org/export/1.2/">
<channel>
<wp:wxr_version>1.2</wp:wxr_version>
"""
WXR_COMMENT = """wp:comment_id=id wp:comment_author=nickname wp:comment_author_email=email
    wp:comment_author_url=website wp:comment_author_IP=ip wp:comment_date=created_at
    wp:comment_date_gmt=created_at wp:comment_content=html wp:comment_approved=approved
    wp:comment_type=type wp:comment_parent=parent_id"""
APPROVED = {"visible": "1", "waiting": "0", "spam": "spam"}


def as_wordpress(store: Store, config: Config, emails: bool) -> Iterator[str]:
    """WXR 1.2, which Disqus reads too: it wants an e-mail that differs for each author."""
    yield WXR
    page = operator.itemgetter("page_url", "closed", "opened_at")
    pages = itertools.groupby(exported(store, emails, SECONDS, gone=STONE), key=page)
    for number, ((page_url, closed, opened_at), comments) in enumerate(pages, 1):
        link = page_link(page_url, config.site_origins) or spelt(page_url)
        item = {"title": page_url, "link": link, "content:encoded": ""}
        item |= {"dsq:thread_identifier": page_url, "wp:post_id": number}
        item |= {"wp:post_date_gmt": opened_at, "wp:status": "publish", "wp:post_type": "post"}
        item |= {"wp:comment_status": "closed" if closed else "open"}
        yield "<item>\n" + xml_of(item)
        for row in comments:
            who = hashlib.sha256(row["nickname"].encode()).hexdigest()[:12]
            seen = re.search(r">[^<\s]", row["html"])  # else it is drawn as nothing
            row |= {"html": row["html"] if seen else html.escape(row["content"])}
            row |= {"email": row["email"] or f"{who}@commenter.invalid", "type": "comment"}
            row |= {"ip": row["ip"] or NOBODY}  # Isso breaks at none
            row |= {"approved": APPROVED[row["status"]], "parent_id": row["parent_id"] or 0}
            yield f"<wp:comment>\n{xml_of(taken(row, WXR_COMMENT))}</wp:comment>\n"
        yield "</item>\n"
    yield "</channel>\n</rss>\n"


def xml_of(values: Json) -> str:
    lines = (f"<{name}>{html.escape(str(text))}</{name}>\n" for name, text in values.items())
    return CONTROL.sub("", "".join(lines))


def encoded(parts: Iterable[str | bytes]) -> Iterator[bytes]:
    for part in parts:
        yield part.encode() if isinstance(part, str) else part


# With what each can't carry.
EXPORTERS: dict[str, tuple[Callable[[Store, Config, bool], Iterator[str | bytes]], str]] = {
    "commentd": (as_commentd, "accounts, who liked what, settings (`commentd backup` has them)"),
    "wordpress": (as_wordpress, "likes, views, edits, pins"),
    "artalk": (as_artalk, "spam, edits, views, likes of pages"),
    "waline": (as_waline, "edits, closed pages, likes of pages"),
    "isso": (
        as_isso,
        "answers to answers (they stand below the first), spam, views, pins, closed pages, "
        "likes of pages",
    ),
}


# Pages that move


def renamed(page: Page, old: str, new: str) -> str:
    """The new address of a page, if the old one, which may end in `*`, means it; else ""."""
    if not old.endswith("*"):
        return new if page.key == old else ""
    start, elsewhere = old[:-1], page.key.startswith("//") != old.startswith("//")
    path, query = parted(page.key)  # keys have no slash where a path ends
    key = page.key if page.key.startswith(start) else f"{path}/{query}"
    if elsewhere or not key.startswith(start):
        return ""
    path, query = parted(HOST.sub("", page.page_url))
    depth = HOST.sub("", start).count("/")
    spelt_so = path.split("/", depth)[depth:] if start.endswith("/") else []
    return new[:-1] + (spelt_so[0] + query if spelt_so else key[len(start) :])


def move_pages(store: Store, old: str, new: str, own: set[str], dry: bool) -> list[str]:
    """A line for each page that has (or would have) another address."""
    if old.endswith("*") != new.endswith("*"):
        raise SettingsFault("a * stands at both ends, or at none")
    if has_controls(new) or len(new) > 2048:
        raise SettingsFault("no page can have that address")
    told, old_key = [], page_name(old, own).key
    with contextlib.nullcontext() if dry else store.writing():
        pages = {page.key: page for page in store.all_pages()}
        urls = {key: renamed(page, old_key, new) for key, page in pages.items()}
        names = {key: page_name(url, own) for key, url in urls.items() if url}
        moves = {k: name for k, name in names.items() if name.key != k or old[-1:] != "*"}
        grow = any(len(name.key) > len(key) for key, name in moves.items())
        for key in sorted(moves, key=len, reverse=grow):  # so that none moves twice
            page, name = pages[key], moves[key]
            if len(name.page_url) > 2048:
                raise Fault(f"{page.page_url} would be too long")
            merged = " (merged)" if name.key in pages and name.key not in moves else ""
            told.append(f"{page.page_url} -> {name.page_url}{merged}")
            if not dry:
                store.rename_page(page, name.key, name.page_url)
    return told


# -- Serving ------------------------------------------------------------------

# Serving was written for these files of waitress 3.0.2. When one of them is another, it may work
# no more: read what changed, and what Serving takes from it, before its digest is written here.
INSIDE = {
    "buffers": "50bf15244d9056a9",
    "channel": "6b44713fd38f8917",
    "parser": "f3c294637d49ced3",
    "receiver": "e4b4903d525a6d6a",
    "server": "93fa60086cb5b979",
    "task": "fc30d7eb4fde6134",
    "trigger": "98fc875bfc940b76",
    "utilities": "d7d243c4c848323e",
    "wasyncore": "ac7821b11b192a19",
}
# What `StockChannel` and its classes are built on.
PARSING = {"buffers", "channel", "parser", "receiver", "task", "utilities"}


def strange_files() -> set[str]:
    """The files of this waitress that are not those that Serving was written for."""
    folder = Path(waitress.__file__).parent
    strange = set()
    for name, digest in INSIDE.items():
        file = folder / f"{name}.py"
        body = file.read_bytes() if file.is_file() else b""
        if hashlib.sha256(body).hexdigest()[:16] != digest:
            strange.add(name)
    return strange


class OneSendTask(WSGITask):  # type: ignore[misc]
    """Head and body leave in one send: two cost a system call and, on a slow line, a packet."""

    wrote_header: bool

    def write(self, data: bytes) -> None:
        whole = self.content_length == len(data) if self.has_body else not data
        if self.wrote_header or not whole or not self.complete:
            super().write(data)
            return
        data = self.build_response_header() + data
        self.wrote_header = True
        self.content_bytes_written = self.content_length or 0
        self.channel.write_soon(data)
        self.channel.keep(data, self.environ.get("commentd.cacheable"))

    def set_close_on_finish(self) -> None:
        """waitress also closes after a 204 and a 304, for want of a length, which they may not
        have (RFC 9110, section 8.6): each preflight would cost a connection."""
        asked = self.request.headers.get("CONNECTION", "").lower()
        if self.has_body or self.version == "1.0" or asked == "close":
            super().set_close_on_finish()


class RefusalTask(ErrorTask):  # type: ignore[misc]
    """What waitress refuses while it parses, in our shape."""

    PROBLEMS: ClassVar[dict[int, Problem | None]] = {
        413: Problem("请求内容太大", "body_too_large", status=413),
        429: TooMany("操作太频繁，请稍后再试", retry_after=5),
        431: Problem("请求头太大", "headers_too_large", status=431),
        500: None,
    }

    def execute(self) -> None:
        config = self.channel.server.application.house.config
        unreadable = BadRequest("请求不是有效的 HTTP", "http_invalid")
        path = getattr(self.request, "path", "")
        problem = self.PROBLEMS.get(self.request.error.code, unreadable)
        text = next((route.refusal for route in ROUTES if route.path == path), "")
        reply = refused(problem, text)
        self.status = f"{reply.status} {HTTPStatus(reply.status).phrase}"
        headers = headers_for(config, path, self.request.headers.get("ORIGIN", ""), private=True)
        headers |= {**reply.headers, "Content-Type": reply.content_type}
        self.response_headers.extend(headers.items())
        self.set_close_on_finish()
        self.content_length = len(reply.body)
        self.write(reply.body)


class Chunks(ChunkedReceiver):  # type: ignore[misc]
    """A body in chunks, its lines ended by CR LF alone, without trailers (RFC 9112, 7.1)."""

    SIZE = re.compile(rb"([0-9A-Fa-f]{1,6})(;[\t -~]*)?\r\n")
    completed: bool

    def __init__(self, buf: Any) -> None:
        super().__init__(buf)
        self.raw = bytearray()

    def received(self, s: bytes) -> int:
        self.raw += s
        while not self.completed:
            if size := self.SIZE.match(self.raw):
                start, end = size.end(), size.end() + int(size[1], 16)
                after = bytes(self.raw[end : end + 2])
                if after == b"\r\n":
                    self.buf.append(bytes(self.raw[start:end]))
                    del self.raw[: end + 2]
                    self.completed = start == end
                    continue
                wrong = after not in (b"", b"\r")
            else:
                wrong = len(self.raw) > 256 or b"\n" in self.raw
            if wrong:
                self.error = WrongRequest("chunks")
            return len(s)
        return len(s) - len(self.raw)  # the rest is the next request


class StrictParser(HTTPRequestParser):  # type: ignore[misc]
    """Refuses what a proxy could read as another request, or as two (RFC 9112, 3, 5.2, 6.1)."""

    body_rcv: Any
    empty: bool

    def received(self, data: bytes) -> int:
        taken = int(super().received(data))
        if self.empty:
            self.empty, self.error = False, WrongRequest("blank lines alone")
        if self.completed:
            self.expect_continue = False  # it is whole, or refused: nobody is asked for more
        return taken

    def parse_header(self, header_plus: bytes) -> None:
        lines = header_plus.split(b"\r\n")
        if not re.fullmatch(rb"[!-~]+ [!-~\x80-\xff]+ HTTP/1\.[01]", lines[0]):
            raise ParsingError("no request line")
        try:
            super().parse_header(header_plus)
        except ValueError as error:  # of an odd address, or a number too long
            raise ParsingError("unreadable") from error
        fields = [line.lower().partition(b":") for line in lines[1:]]
        names = [name for name, _, _ in fields]
        codings = [value.strip(b" \t") for name, _, value in fields if name == b"transfer-encoding"]
        hosts, modern = names.count(b"host"), self.version == "1.1"
        if len(codings) + names.count(b"content-length") > 1 or hosts > 1 or hosts < modern:
            raise ParsingError("ambiguous")
        if codings not in ([], [b"chunked"]) or (codings and not modern):
            raise ParsingError("another coding")
        if any(line[:1] in (b" ", b"\t") for line in lines):
            raise ParsingError("a header on two lines")
        if codings:
            self.body_rcv = Chunks(self.body_rcv.buf)


PIPELINE = 8
# Seconds for a whole request, and for a whole reply to be taken.
REQUEST_TIME, REPLY_TIME = 20, 60
# Beyond so many connections those that were silent longest are closed; beyond so many bytes of
# replies that nobody takes, those that wait longest.
CONNECTIONS, CROWD, UNTAKEN = 1000, 900, 256 * 1024 * 1024


def on_worker() -> bool:
    """Not on the main thread, which is the server's loop."""
    return threading.current_thread() is not threading.main_thread()


class StockChannel(HTTPChannel):  # type: ignore[misc]
    """waitress's own, which refuses what we refuse, as we do."""

    error_task_class = RefusalTask
    parser_class = StrictParser

    def received(self, data: bytes) -> bool:
        """A pipeline is cut after a few requests, so that no reply waits for a peer that does not
        read: the last one is answered with `Connection: close`."""
        taken = bool(super().received(data))
        with self.requests_lock:
            if len(self.requests) > PIPELINE:
                del self.requests[PIPELINE:]
                self.requests[-1].headers["CONNECTION"] = "close"
        return taken


class CalmChannel(StockChannel):
    """The I/O thread stays quiet while a worker owns the channel: the worker flushes its own
    output. Else the I/O thread spins in its poll and keeps taking the interpreter's lock from
    the worker; at 128 connections that is a collapse (see tests/bench_http.py)."""

    task_class = OneSendTask
    near = False  # whether the loop does the work itself
    held: Any = None  # the reply that goes out, or the request that comes in, since `since`
    since = 0.0

    def writable(self) -> bool:
        if self.requests and self.total_outbufs_len <= self.adj.outbuf_high_watermark:
            return bool(self.will_close)
        return bool(super().writable())

    def _flush_some(self, do_close: bool = True) -> bool:
        # waitress's loop takes no lock when no request is left, although a worker may be asking for
        # the body of the next one (`100 Continue`): what both send would go out twice. And that
        # worker would close what is gone, in the middle of the loop's turn.
        with self.outbuf_lock:
            return self.connected and bool(super()._flush_some(do_close and not on_worker()))

    def keep(self, data: bytes, cacheable: Cacheable | None) -> None:
        """What is sent may be sent again."""


class Turns:
    """What waits for a worker. Clients take turns, one request each, so that nobody waits for all
    that another one has asked."""

    def __init__(self) -> None:
        self.length = 0
        self.clients: OrderedDict[str, deque[Any]] = OrderedDict()

    def __len__(self) -> int:
        return self.length

    def append(self, channel: Any) -> None:
        self.length += 1
        self.clients.setdefault(channel.client, deque()).append(channel)

    def popleft(self) -> Any:
        client, channels = self.clients.popitem(last=False)
        channel = channels.popleft()
        if channels:
            self.clients[client] = channels
        self.length -= 1
        return channel

    def waiting(self, client: str) -> int:
        return len(self.clients.get(client, ()))


# Where connections run short, a client that has so many requests waiting is refused another one,
# so that others can connect.
MOST_WAITING = CONNECTIONS // 4


def crowding(server: Any) -> int:
    """How many connections are open beyond those that leave room for others."""
    most = min(CROWD, server.adj.connection_limit * 9 // 10)
    return len(server.active_channels) - int(most)


class Workers(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Sixteen threads, four of them for readers: behind a hundred writers, who wait for a commit
    each, a list took half a second. Another one refuses what is too much."""

    def __init__(self, clients: Clients) -> None:
        super().__init__()
        self.clients = clients
        self.queue = Turns()
        self.set_thread_count(12)
        self.readers = ThreadedTaskDispatcher()
        self.readers.queue = Turns()
        self.readers.set_thread_count(4)
        self.refusals = ThreadedTaskDispatcher()
        self.refusals.set_thread_count(1)

    def add_task(self, channel: Any) -> None:
        asked = channel.requests[0]
        reads = getattr(asked, "command", "") in ("GET", "HEAD", "OPTIONS")
        if getattr(asked, "path", "").lstrip("/") == "health":  # which tries to write
            reads = False
        if reads and channel.near:
            return
        queue = self.readers.queue if reads else self.queue
        channel.client = self.client_of(channel)
        waiting = queue.waiting(channel.client) if channel.client else 0
        if waiting >= MOST_WAITING and crowding(channel.server) > 0:
            asked.error = Crowding()
            self.refusals.add_task(channel)
        elif reads:
            self.readers.add_task(channel)
        else:
            super().add_task(channel)

    def client_of(self, channel: Any) -> str:
        """The network of who asks; "" where all visitors would be one client."""
        headers = {f"HTTP_{name}": value for name, value in channel.requests[0].headers.items()}
        client = self.clients.of({**headers, "REMOTE_ADDR": channel.addr[0]})
        return client.networks[0][0] if client.networks else ""

    def shutdown(self, **how: Any) -> bool:
        ended = [pool.shutdown(**how) for pool in (self.readers, self.refusals)]
        return bool(super().shutdown(**how) and all(ended))


class Crowding:
    """The error of a request that one client has sent too many of."""

    code = 429


# The response cache: what was sent to one is kept as it was sent, head and all, for the next who
# asks the same, until something is written. Views are not waited for: they may be late.
READY_BYTES = 16 * MEGA  # of all of them
KEPT_SECONDS = 9  # and for the rest of that second


class Answer:
    """The bytes that were sent, what they depend on, and the seconds that it took to make them."""

    __slots__ = (
        *("changes", "cost", "data", "date", "etag", "kept_at", "second", "size", "unchanged"),
        "viewed",
    )

    def __init__(self, data: bytes, cacheable: Cacheable, kept_at: int) -> None:
        self.changes = cacheable.changes
        self.viewed = cacheable.viewed
        self.cost = time.thread_time() - cacheable.began
        self.kept_at = kept_at
        self.size = len(data) + 1000  # with what holds it
        self.data, self.second, self.unchanged = data, 0, b""
        self.date, etag = (data.index(b"\r\n%s: " % name) + 8 for name in (b"Date", b"Etag"))
        self.etag = data[etag : data.index(b"\r", etag)]

    def at(self, second: int) -> None:
        """As it is sent in this second."""
        date = build_http_date(second).encode()
        self.data = self.data[: self.date] + date + self.data[self.date + len(date) :]
        self.second, self.unchanged = second, b""

    def to(self, known: bytes) -> bytes:
        """For who has what has this ETag."""
        if self.etag not in known:
            return self.data
        if not self.unchanged:
            head = self.data.partition(b"\r\n\r\n")[0].replace(b"200 OK", b"304 Not Modified", 1)
            head = re.sub(rb"\r\nContent-(?:Encoding|Length|Type): [^\r]+", b"", head)
            self.unchanged = head + b"\r\n\r\n"
        return self.unchanged


class Questions:
    """One spelling for all requests that get the same response: unknown parameters are left out,
    and the others stand in one order."""

    MOST = 5000  # spellings that are remembered, of fewer bytes than so many
    LONGEST = 500

    def __init__(self, house: House) -> None:
        self.parameters: dict[bytes, tuple[str, ...]] = {
            route.path.encode(): route.public
            for route in ROUTES
            if route.public is not None and "<" not in route.path
        }
        self.parameters |= {b"/" + name.encode(): () for name in house.assets}
        self.spellings: dict[bytes, bytes] = {}

    def spelt(self, target: bytes) -> bytes:
        known = self.spellings.get(target)
        if known is None:
            known = self.in_one_spelling(target)
            if len(self.spellings) >= self.MOST:
                self.spellings = {}
            if len(target) < self.LONGEST:
                self.spellings[target] = known
        return known

    def in_one_spelling(self, target: bytes) -> bytes:
        path, _, query = target.partition(b"?")
        parameters = self.parameters.get(path)
        # What is not plain stays as it is: the ordinary way may read it otherwise, or refuse it.
        if parameters is None or not re.fullmatch(rb"[!-~]+", target) or b"#" in target:
            return target
        try:
            read = query_for(parameters, query.decode())
        except Problem:
            return target
        return path + b"?" + urllib.parse.urlencode(read, doseq=True).encode()


class Ready:
    """The answers by their questions, those that were used last at the end."""

    def __init__(self, house: House) -> None:
        self.store, self.lock, self.size = house.store, threading.Lock(), 0
        self.questions = Questions(house)
        self.answers: OrderedDict[bytes, Answer] = OrderedDict()

    def find(self, question: bytes, second: int) -> Answer | None:
        """The answer as it is to be sent now; None where the ordinary way has to make another."""
        answer = self.answers.get(question)
        if answer is None or answer.changes != self.store.changes:
            return None
        if answer.second != second:
            # One request makes it anew, and the others get the old one: they may be a hundred. A
            # clock that was set back ends it too.
            if not 0 <= second - answer.kept_at < KEPT_SECONDS:
                answer.kept_at = second - KEPT_SECONDS + 1
                return None
            answer.at(second)
        with self.lock:
            if question in self.answers:  # a worker may have made room
                self.answers.move_to_end(question)
        return answer

    def keep(self, question: bytes, answer: Answer) -> None:
        with self.lock:
            if old := self.answers.pop(question, None):
                self.size -= old.size + len(question)
            self.answers[question] = answer
            self.size += answer.size + len(question)
            while self.size > READY_BYTES:
                unused, dropped = self.answers.popitem(last=False)
                self.size -= dropped.size + len(unused)


# The fast path: where an answer is ready, it is sent where the question is read. That takes 9 µs;
# a parser, a worker, Bottle and SQLite take 300 (tests/bench_http.py). All else goes their way.
PLAIN = re.compile(rb" HTTP/1\.1\r\n(?:[A-Za-z0-9-]+: [ -~]+\r\n)+\r\n")
ODD = b"authorization content-length cookie expect range te trailer transfer-encoding upgrade"
NOT_PLAIN = frozenset(ODD.split())
# An answer that was made before in so few seconds, so that what it reads is in memory, is made
# anew here too, if this turn has made none for so long: that costs less than the way to a worker
# and back. Beside writers, p99 at 128 connections is 40 ms, else 185.
NEAR, NEAR_TURN = 0.003, 0.05
# What tells who looks, and as what WSGI names it.
SAID = b"user-agent x-forwarded-for x-real-ip forwarded sec-purpose purpose x-moz"
TELLING = {n: f"HTTP_{n.decode().upper().replace('-', '_')}" for n in SAID.split()}


class Visit:
    """What the headers of a request say; those of one connection mostly say the same again. `form`
    is what an answer depends on, b"" where it is none that all get alike."""

    def __init__(self, block: bytes, peer: str) -> None:
        lines = block[11:-4].split(b"\r\n") if PLAIN.fullmatch(block) else []
        said = {name.lower(): value for name, _, value in (line.partition(b": ") for line in lines)}
        self.block, self.form, self.known = b"", b"", said.get(b"if-none-match", b"")
        self.who = peer.encode(), *(said.get(name, b"") for name in TELLING)
        self.viewer: Viewer | None = None
        stays = said.get(b"connection", b"").lower() in (b"", b"keep-alive")
        alone = len(said) == len(lines) and said.keys().isdisjoint(NOT_PLAIN)
        if stays and alone and b"host" in said:
            zips = b"zip" * bool(ZIPS.search(said.get(b"accept-encoding", b"").decode()))
            self.block, self.form = block, b"\0".join((b"", said.get(b"origin", b""), zips))


class Viewer:
    """Who looks. That is asked once for all that say the same of themselves: it takes as long as
    some answers. `spent`: the minute in which he had his share of views."""

    def __init__(self, house: House, who: tuple[bytes, ...]) -> None:
        said = {name: value.decode() for name, value in zip(TELLING.values(), who[1:], strict=True)}
        environ = {"REQUEST_METHOD": "GET", "REMOTE_ADDR": who[0].decode(), **said}
        self.client, self.person, self.spent = house.clients.of(environ), is_person(environ), 0

    def see(self, house: House, name: PageName, now: int) -> None:
        """A view of the page, as the ordinary way counts it."""
        if self.person and self.spent != now // MINUTE:
            self.spent = 0 if count_view(house, self.client, name, now) else now // MINUTE


class Loop:
    """waitress's loop, with epoll and the answers that are ready. Its own asks each connection at
    each turn: six hundred that are silent took two thirds of what a busy one got. Here only those
    are asked that a worker has, or whose reply is not sent yet: the `busy` ones."""

    def __init__(self, server: Any, house: House) -> None:
        self.house, self.map, self.ready = house, server._map, Ready(house)
        self.epoll, self.busy = select.epoll(), set(self.map.values())
        self.viewers: dict[tuple[bytes, ...], Viewer] = {}
        self.second, self.near_until = 0, 0.0
        server.loop, server.channel_class = self, FastChannel
        for other in self.busy:
            other.requests, other.watched = [], 0

    def turn(self, timeout: float) -> None:
        for channel in [c for c in self.busy if c.watched or not c.requests]:
            self.watch(channel)
        events = self.epoll.poll(timeout, 256)
        self.near_until, crowd = time.monotonic() + NEAR_TURN, len(self.map) + 100
        if self.second != (second := int(self.house.world.now())):
            self.second = second
            self.busy.update(self.map.values())  # there may be some that waitress wants to close
        for number, flags in events:
            channel = self.map.get(number)
            if flags != select.EPOLLIN or type(channel) is not FastChannel:
                while channel:
                    known = len(self.map)
                    readwrite(channel, flags)
                    if not channel.accepting or known == len(self.map):
                        break
                    # One guest at a turn would keep a crowd at the door; and whom nobody has
                    # listened to seems silent, so that `sweep` could turn him out.
                    events.append((next(reversed(self.map)), select.EPOLLIN))
                    if len(self.map) >= crowd or not channel.readable():
                        break
                continue
            try:
                channel.handle_read()  # as `readwrite` does, in half its time
            except Exception:
                channel.handle_error()

    def watch(self, channel: Any) -> None:
        number, watched = channel._fileno, channel.watched
        flags = select.EPOLLIN * bool(channel.readable())
        flags |= select.EPOLLOUT * bool(channel.writable() and not channel.accepting)
        if self.map.get(number) is channel and flags != watched:
            if watched:  # one that is not asked would still tell that its peer is gone, for ever
                self.epoll.unregister(number)
            if flags:
                self.epoll.register(number, flags)
            channel.watched = flags
        if number is None or (flags == select.EPOLLIN and not channel.accepting):
            self.busy.discard(channel)

    def viewer(self, visit: Visit) -> Viewer:
        if visit.viewer is None:
            visit.viewer = self.viewers.get(visit.who) or Viewer(self.house, visit.who)
            self.viewers = {} if len(self.viewers) > 5000 else self.viewers
            if sum(map(len, visit.who)) < 500:
                self.viewers[visit.who] = visit.viewer
        return visit.viewer


class FastChannel(CalmChannel):
    """Answers what it can where it reads. All else is the stock server's."""

    visit, asked, watched = Visit(b"", ""), b"", 0
    clock = staticmethod(World.now)  # waitress's, whatever ours says

    def __init__(self, *given: Any, **how: Any) -> None:
        super().__init__(*given, **how)
        self.loop: Loop = self.server.loop
        self.loop.busy.add(self)

    def handle_read(self) -> None:
        try:
            data = self.socket.recv(self.adj.recv_bytes)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.last_activity = self.clock()
        if not data:
            self.handle_close()
        elif not self.answered(data):
            self.loop.busy.add(self)
            self.received(data)
            if self.near and self.requests:
                self.service()
            self.near = False

    def answered(self, data: bytes) -> bool:
        """Whether this was one plain question whose answer is ready."""
        end, visit, loop, self.asked = data.find(b"\r\n") - 9, self.visit, self.loop, b""
        if visit.block != data[end:]:
            visit = self.visit = Visit(data[end:], self.addr[0])
        closes = self.will_close or self.close_when_flushed
        if not visit.form or self.request or closes or not data.startswith(b"GET /"):
            return False
        question = loop.ready.questions.spelt(data[4:end]) + visit.form
        answer = loop.ready.find(question, loop.second)
        if not answer and visit.known:
            answer = loop.ready.find(question + b"\0" + visit.known, loop.second)
        if answer is None:
            self.asked, old = question, loop.ready.answers.get(question)
            in_time = time.monotonic() < loop.near_until
            self.near = in_time and old is not None and old.cost < NEAR
            return False
        if answer.viewed:
            loop.viewer(visit).see(loop.house, answer.viewed, loop.second)
        data = answer.to(visit.known) if visit.known else answer.data
        if (sent := self.send(data)) < len(data) and self.connected:
            with self.outbuf_lock:
                self.outbufs[-1].append(data[sent:])
                self.total_outbufs_len += len(data) - sent
            loop.busy.add(self)
        return True

    def keep(self, data: bytes, cacheable: Cacheable | None) -> None:
        if cacheable and self.asked:
            known = b"" if data.startswith(b"HTTP/1.1 200 ") else b"\0" + self.visit.known
            self.loop.ready.keep(self.asked + known, Answer(data, cacheable, self.loop.second))


class Worker(threading.Thread):
    """Does its work again and again; the work says how many seconds to rest."""

    def __init__(self, name: str, work: Callable[[], float], wake: threading.Event) -> None:
        super().__init__(name=name, daemon=True)
        self.work, self.wake, self.stopping = work, wake, False

    def run(self) -> None:
        while not self.stopping:
            try:
                pause = self.work()
            except Exception as error:
                if not self.stopping and not isinstance(error, Unavailable):  # the store said so
                    log.exception("the %s failed, and goes on", self.name)
                pause = 5
            self.wake.wait(pause)
            self.wake.clear()

    def stop(self) -> None:
        self.stopping = True
        self.wake.set()
        self.join(2)


class InFlight:
    """The app, which knows whether it works on a request: a stock waitress does not tell."""

    def __init__(self, app: App) -> None:
        self.app, self.house = app, app.house
        self.lock = threading.Lock()
        self.begun = 0
        self.ended = 0
        self.at_rest = False  # nothing is in flight, and the server may be stopped

    def __call__(self, environ: Json, start_response: Callable[..., Any]) -> Iterable[bytes]:
        with self.lock:
            self.begun += 1
        try:
            return self.app(environ, start_response)
        finally:
            with self.lock:
                self.ended += 1

    def rest(self, seconds: float = 10) -> None:
        """Waits until no request has come for a while, so that the last replies are sent too."""
        ends_at = time.monotonic() + seconds
        quiet_turns = 0
        while quiet_turns < 10 and time.monotonic() < ends_at:
            begun = self.begun
            threading.Event().wait(0.03)
            quiet_turns = quiet_turns + 1 if begun == self.begun == self.ended else 0
        self.at_rest = True


def sweep(server: Any, now: float) -> None:
    """Close the connections whose request or reply comes to no end, and make room for others:
    waitress only sees silence, and closes what it can write to; a peer that drips, or that never
    reads, would stay."""
    resting = [channel for channel in server.active_channels.values() if not channel.requests]
    for channel in resting:
        held = channel.outbufs[0] if channel.total_outbufs_len else channel.request
        if held is not channel.held or held is None:
            channel.held, channel.since = held, now
    newest = max((channel.last_activity for channel in resting), default=0)
    # A drip is no sign of life. waitress's clock is another, so that only its differences count.
    resting.sort(key=lambda c: c.last_activity - newest if c.held is None else c.since - now)
    crowd = crowding(server)
    # What is left of a download is in a file, and takes its time.
    resting = [c for c in resting if not any(isinstance(b, FileBuffer) for b in c.outbufs)]
    untaken = sum(channel.total_outbufs_len for channel in resting) - UNTAKEN
    for channel in resting:
        waits = channel.total_outbufs_len
        late = now - channel.since > (REPLY_TIME if waits else REQUEST_TIME)
        if late or crowd > 0 or (waits and untaken > 0):
            crowd, untaken = crowd - 1, untaken - waits
            channel.handle_close()


def spare_descriptors() -> int:
    """How many files and sockets the process may open, after asking for enough of them."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 2 * CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS if hard == resource.RLIM_INFINITY else min(hard, 4 * CONNECTIONS)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def refuse_if_taken(path: str) -> None:
    """waitress replaces a socket file, also one where another program listens: that would serve
    nobody any more, without an error. A file that nobody listens to is left for waitress."""
    with socket.socket(socket.AF_UNIX) as other:
        other.settimeout(1)
        try:
            other.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            return
    raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def adjustments() -> Json:
    """Of any waitress."""
    return {
        # The rest is for the database, three files a thread, and for replies on the disk.
        "connection_limit": max(64, min(CONNECTIONS, spare_descriptors() - 400)),
        "channel_timeout": 30,
        "cleanup_interval": 5,
        "asyncore_use_poll": True,
        "channel_request_lookahead": 0,  # CVE-2024-49768
        "outbuf_high_watermark": 1 << 40,  # more than a pipeline's replies: no one waits
        "max_request_header_size": 16 * 1024,
        "max_request_body_size": 2 * BODY_LIMIT,
        "clear_untrusted_proxy_headers": False,  # `Clients` reads them
        "ident": None,
    }


def make_server(app: App) -> Any:
    """waitress with what this part makes of its inside."""
    server = waitress_server(app, app.house.config, _dispatcher=Workers(app.house.clients))
    server.channel_class = CalmChannel
    return server


def make_stock_server(app: App, strange: set[str]) -> Any:
    """waitress as it is, by what it documents: without ready answers, and a little slower."""
    server = waitress_server(InFlight(app), app.house.config, threads=16)
    if not strange & PARSING:
        server.channel_class = StockChannel
    return server


def waitress_server(app: Callable[..., Iterable[bytes]], config: Config, **how: Any) -> Any:
    listen = config.server_listen
    common = adjustments() | how
    try:
        if listen.startswith("unix:"):
            refuse_if_taken(listen.removeprefix("unix:"))
            where = {"unix_socket": listen.removeprefix("unix:"), "unix_socket_perms": "660"}
            server = waitress.create_server(app, **where, **common)
        else:
            host, _, port = listen.rpartition(":")
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            bound = socket.create_server((host.strip("[]"), int(port)), family=family, backlog=1024)
            server = waitress.create_server(app, sockets=[bound], **common)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise Fault(f"can't listen on {listen} ({reason}): change [server] listen") from None
    return server


def greet(app: App, server: Any) -> None:
    """What the owner reads when the service has started."""
    config, store = app.house.config, app.house.store
    listen = config.server_listen
    if not listen.startswith("unix:"):
        listen = f"http://{listen.rpartition(':')[0]}:{server.effective_port}"
    address = config.server_public_url or listen
    lines = [f"commentd {__version__} serves {config.database_path} on {listen}"]
    if not config.server_public_url or config.site_demo:
        lines.append(f"open {address}/ to see it work, and what is still to be set")
    link = "" if store.admins() else f"#link={new_admin_link(store, app.house.world, '')}"
    todo = "be its admin (once, within an hour)" if link else "moderate"
    lines.append(f"open {address}/admin{link} to {todo}")
    if not config.mail_host:
        so = ", so that no reader can register" if config.server_public_url else ""
        lines.append(f"no [mail] host: letters, with their codes, are printed here{so}")
    print("\n  ".join(lines), flush=True)


def turns_of(server: Any, house: House) -> Callable[[float], None]:
    """What waits for the peers so many seconds, and serves those that come."""
    if house.config.server_fast and hasattr(select, "epoll"):  # of Linux
        return Loop(server, house).turn
    return functools.partial(server.asyncore.loop, count=1, map=server._map, use_poll=True)


def serve_until_stopped(app: App, server: Any) -> None:
    """Runs until SIGTERM or Ctrl-C; then answers what is in flight."""
    stock = isinstance(server.application, InFlight)
    stopping = threading.Event()

    # Not by an exception: it could end the I/O thread in the middle of a request it reads.
    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()
        if not stock:
            server.pull_trigger()
        elif server.application.at_rest:
            raise SystemExit

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    workers = [
        Worker("postman", app.deliver, app.house.posted),
        Worker("ticker", app.tick, threading.Event()),
        Worker("keeper", app.keep, threading.Event()),
    ]
    greet(app, server)  # before a letter is printed into it
    for worker in workers:
        worker.start()
    run = run_stock if stock else run_and_drain
    run(server, app.house, stopping)
    app.stopping = True
    for worker in workers:
        worker.stop()


def run_and_drain(server: Any, house: House, stopping: threading.Event) -> None:
    sys.setswitchinterval(0.0005)  # a worker gives way to the loop, else after 5 ms
    turn = turns_of(server, house)
    swept = 0.0
    while not stopping.is_set():
        turn(1)
        full = len(server._map) >= server.adj.connection_limit
        if full or time.monotonic() - swept >= 1:
            swept = time.monotonic()
            sweep(server, swept)
    drain(server)


def run_stock(server: Any, house: House, stopping: threading.Event) -> None:
    """waitress's own loop. An exception in the main thread ends it, at the second signal, which we
    send to ourselves when nothing is in flight."""

    def end() -> None:
        stopping.wait()
        server.application.rest()
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=end, daemon=True).start()
    server.run()


def drain(server: Any, seconds: float = 10) -> None:
    """Take no new connections, answer what was asked, then close."""
    # Those who have knocked already are let in first.
    server.asyncore.loop(timeout=0, count=256, map=server._map, use_poll=True)
    server.del_channel(server._map)
    server.socket.close()
    ends_at, quiet = time.monotonic() + seconds, 0
    # A worker may have just answered: its connection can hold one more request, not read yet.
    while quiet < 3 and time.monotonic() < ends_at:
        server.asyncore.loop(timeout=0.02, count=1, map=server._map, use_poll=True)
        channels = list(server.active_channels.values())
        quiet = 0 if any(c.requests or c.total_outbufs_len for c in channels) else quiet + 1
    for channel in list(server.active_channels.values()):
        channel.handle_close()
    server.task_dispatcher.shutdown(timeout=1)


# -- Commands -----------------------------------------------------------------


def serve(config: Config, asked: argparse.Namespace) -> int:
    strange = strange_files()
    if strange and config.server_fast:
        log.warning(
            "waitress is another inside (%s) than the one that commentd was written for: it serves "
            "as with [server] fast = no, until there is a commentd that knows it",
            ", ".join(sorted(strange)),
        )
    fast = config.server_fast and not strange
    with contextlib.closing(make_app(config)) as app:
        server = make_server(app) if fast else make_stock_server(app, strange)
        now = app.house.world.now()
        clock = examine_clock(app.house.store.figures(int(now)), now)
        for finding in (*examine_settings(config), *examine_files(config), *clock):
            if finding.level in ("warn", "fail"):
                log.warning("%s: %s", finding.topic, finding.text)
        gc.freeze()  # what was loaded stays: looking through it for garbage stops all for 10 ms
        serve_until_stopped(app, server)
    log.info("stopped; all that was acknowledged is kept")
    return 0


def check(config: Config, asked: argparse.Namespace) -> int:
    """Settings and findings on the terminal; 1 when something does not work."""
    world, path = World(), Path(config.database_path)
    told = [*from_file(asked.file, []), *from_environment(os.environ)]
    sources = {(section, key): source.partition(": ")[0] for section, key, _, source in told}
    print(f"commentd {__version__} would run with these settings:\n")
    for each in in_force(config):
        section, key, value = each["section"], each["key"], each["value"]
        source = sources.get((section, key), "default")
        print(f"  {f'[{section}] {key}':27} {value:35} {source}")
    print("\nand this is what was found:\n")
    found = [*examine_settings(config), *examine_files(config), *examine_versions()]
    found += examine_database(config, path, world)
    found += examine_outside(config, world, is_running(path), asked.mail)
    for finding in sorted(found):
        print(f"  {finding.level:5} {finding.topic:14} {finding.text}")
    faults = sum(finding.level == "fail" for finding in found)
    print(f"\nTo be mended: {faults}." if faults else "\nNothing was found that does not work.")
    return 1 if faults else 0


def examine_database(config: Config, path: Path, world: World) -> Iterator[Finding]:
    try:
        inspect(path)
        if not size_of(path):
            yield Finding("note", "database", f"{path} is made by the first start")
            return
        seen = figures_of(path, int(world.now()))
        yield from examine_past(config, seen, world.now())
        if seen["wrong"]:
            yield Finding("fail", "counters", f"wrong: {seen['wrong']}; run `commentd recount`")
    except Fault as fault:
        yield Finding("fail", "database", str(fault))


def backup(config: Config, asked: argparse.Namespace) -> int:
    path, now = Path(config.database_path), World().now()
    if not path.exists():
        raise Fault(f"{path.absolute()}: there is no such database")
    inspect(path)
    target = Path(asked.what or config.backup_folder)
    if asked.what and not target.is_dir():
        if target.exists():
            raise Fault(f"{target} is there already: name another file")
        copy_to(path, target, progress=progress("copied"))
    elif asked.what:
        target = back_up(path, target, now, progress=progress("copied"))
    else:
        target = back_up_in_turn(path, target, now, progress=progress("copied"))
    print(f"{target}: {size_of(target) / MEGA:.1f} MB, whole")
    return 0


def progress(done: str) -> Progress | None:
    """A line that counts up, where somebody sees it."""
    if not sys.stderr.isatty():
        return None

    def show(left: int, pages: int) -> None:
        end = "\n" if not left else ""
        print(f"\r{100 * (pages - left) // max(1, pages)} % {done}", end=end, file=sys.stderr)

    return show


def restore_command(config: Config, asked: argparse.Namespace) -> int:
    path = Path(config.database_path)
    kept = restore(path, Path(asked.what), int(World().now()))
    print(f"{path} is what {asked.what} was; all logins have ended")
    if kept:
        print(f"what it replaces is kept in {kept}")
    return 0


def admin(config: Config, asked: argparse.Namespace) -> int:
    try:
        address = proper_email(asked.what)
    except ValueError as error:
        raise SettingsFault(f"{asked.what}: {error}") from None
    with contextlib.closing(Store(Path(config.database_path), beside=True)) as store:
        link = new_admin_link(store, World(), address)
    where = config.server_public_url or f"http://{config.server_listen}"
    print(f"{address} becomes an admin, with a new password, within an hour and once at\n")
    print(f"  {where}/admin#link={link}")
    return 0


def recount(config: Config, asked: argparse.Namespace) -> int:
    store = Store(Path(config.database_path), beside=True)
    with contextlib.closing(store), store.writing():
        mended = store.recount()
    print(f"{mended} counters mended" if mended else "every counter was right")
    return 0


def import_command(config: Config, asked: argparse.Namespace) -> int:
    source, path, now = Path(asked.what), Path(config.database_path), int(World().now())
    if not source.is_file():
        raise Fault(f"{source}: there is no such file")
    with contextlib.ExitStack() as held:
        plain, broken = held.enter_context(unpacked(source))
        name = asked.format or product_of(plain, source)
        places = held.enter_context(contextlib.closing(Places(assets_folder(), config.geo_file)))
        way = Import(name, config, places, now, asked.zone, broken)
        held.callback(way.db.close)
        way.stage(plain, progress("read"))
        if not (way.broken or way.counts["read"] or way.counts["pages"]):
            raise Fault(f"{source}: there is no comment and no page of {name} in it")
        way.arrange(asked.host or "")
        if asked.dry_run and not size_of(path):
            path = Path(held.enter_context(tempfile.TemporaryDirectory())) / "commentd.db"
        with peek(path) if size_of(path) else contextlib.nullcontext() as db:
            made = db is not None and version_of(db) > 0  # else its making was cut off
        store = held.enter_context(contextlib.closing(Store(path, beside=made)))
        way.bring(store, asked.dry_run, progress("brought in"))
    print(way.report(asked.dry_run))
    return 1 if way.broken else 0


def export_command(config: Config, asked: argparse.Namespace) -> int:
    name = asked.what or "commentd"
    if name not in EXPORTERS:
        raise SettingsFault(f"exports are: {', '.join(EXPORTERS)}")
    export, lost = EXPORTERS[name]
    if name == "isso" and sys.stdout.isatty():
        raise SettingsFault("this is a database: commentd export isso > comments.db")
    with tempfile.TemporaryFile() as whole:
        # Not straight to the reader: while that one stalls, the -wal could not be emptied.
        with contextlib.closing(Store(Path(config.database_path), beside=True)) as store:
            whole.writelines(encoded(export(store, config, asked.emails)))
        whole.seek(0)
        try:
            shutil.copyfileobj(whole, sys.stdout.buffer)
            sys.stdout.flush()
        except BrokenPipeError:  # whoever read has enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
    lost += "" if asked.emails else ", e-mails (--emails)"
    print(f"not in this file: {lost}", file=sys.stderr)
    return 0


def move(config: Config, asked: argparse.Namespace) -> int:
    own = {host_of(origin) for origin in config.site_origins}
    with contextlib.closing(Store(Path(config.database_path), beside=True)) as store:
        told = move_pages(store, asked.what, asked.new, own, asked.dry_run)
    print("\n".join([*told, f"{len(told)} pages " + ("would move" if asked.dry_run else "moved")]))
    return 0


def example(config: Config, asked: argparse.Namespace) -> int:
    kind, words = asked.what, {}
    if not kind:
        text = example_config()
    elif kind == "container":
        text = template("Containerfile")
    elif kind in ("systemd", "systemd@"):
        text, words = template("commentd.service"), unit_words(config, asked)
    elif kind in ("caddy", "nginx"):
        text, words = template(f"{kind}-prefix.conf"), proxy_words(config, kind)
        if not words["path"]:  # around it, a server of its own
            inside = "".join(line for line in text.splitlines(True) if line[0] != "#").rstrip()
            inside = textwrap.indent(inside, "\t" if kind == "caddy" else "    ")
            text = template(f"{kind}.conf").replace("{{inside}}", inside)
            text = text if words["ssl"] else re.sub(".* (ssl_|certonly).*\n", "", text)
    else:
        raise SettingsFault("the examples are: systemd, systemd@, caddy, nginx, container")
    command = own_command() + (["--config", str(asked.file.absolute())] if asked.file else [])
    for name, value in {**words, "program": shlex.join(command)}.items():
        text = text.replace("{{" + name + "}}", value)
    print(text, end="")
    return 0


def own_command() -> list[str]:
    """What starts this program again."""
    program = Path(sys.argv[0]).absolute()
    return [str(program)] if os.access(program, os.X_OK) else [sys.executable, str(program)]


def template(name: str) -> str:
    return (assets_folder() / name).read_text("utf-8")


def proxy_words(config: Config, kind: str) -> dict[str, str]:
    url = urllib.parse.urlsplit(config.server_public_url or "https://comments.example")
    tls, listen = url.scheme == "https", config.server_listen
    upstream = re.sub(r"^(0\.0\.0\.0|\[::\])", "127.0.0.1", listen)
    if listen.startswith("unix:"):
        upstream = f"{listen}:" if kind == "nginx" else f"unix/{listen[5:]}"
    return {
        "address": f"{url.scheme}://{url.netloc}",  # that readers use
        "host": url.hostname or "",
        "path": url.path,
        "port": str(url.port or (443 if tls else 80)),
        "ssl": " ssl" if tls else "",
        "packages": "nginx certbot python3-certbot-nginx" if tls else "nginx",
        "upstream": upstream,
    }


def unit_words(config: Config, asked: argparse.Namespace) -> dict[str, str]:
    """Where this program is, and the folder of its settings; of many blogs, a folder each."""
    many, program = asked.what == "systemd@", Path(sys.argv[0]).absolute()
    if not many and not asked.file:
        raise SettingsFault("go to the folder of commentd.ini, or name it: --config FILE")
    command = own_command()
    folder = "/srv/commentd/%i" if many else str(asked.file.absolute().parent)
    if asked.config and not many:
        command += ["--config", str(asked.config.absolute())]
    used = (Path(config.database_path).parent, config.backup_folder)
    written = [os.path.abspath(each) for each in used]
    # "-": systemd starts the service although it is missing, so that the log can say so.
    outside = [] if many else [f"-{w}" for w in written if not Path(w).is_relative_to(folder)]
    places = (folder, program, sys.executable, sys.base_prefix)
    homes = any(Path(each).parts[1:2] in (("home",), ("root",)) for each in places)
    words = {
        "folder": folder,
        "written": " ".join(f'"{w}"' for w in dict.fromkeys([folder, *outside])),
        "command": shlex.join(command),
    }
    if not many:  # systemd reads % as the beginning of a word of its own
        words = {name: text.replace("%", "%%") for name, text in words.items()}
    start = "commentd@blog, where /srv/commentd/blog holds commentd.ini" if many else "commentd"
    return words | {
        "kind": asked.what,
        "unit": "commentd@" if many else "commentd",
        "start": start,
        "title": "Comments of %i" if many else "Comments",
        "runtime": "commentd/%i" if many else "commentd",
        "home": "read-only" if homes else "yes",
    }


# What it does, the word it takes, and its help.
COMMANDS: dict[str, tuple[Callable[[Config, argparse.Namespace], int], str, str]] = {
    "serve": (serve, "", "run the service (what happens without a command)"),
    "check": (check, "", "say what is set, what works and what does not"),
    "backup": (backup, "[FILE]", "copy the database while it is in use, to [backup] folder"),
    "restore": (restore_command, "FILE", "put a copy in its place; the service must be stopped"),
    "admin": (admin, "EMAIL", "print a link that makes an admin of that address, once"),
    "import": (import_command, "FILE", "bring in the comments of another product, or an export"),
    "export": (export_command, "[FORMAT]", "print all comments; or for another product"),
    "move": (move, "OLD NEW", "give pages another address; * at both ends stands for any rest"),
    "recount": (recount, "", "mend the counters of comments, replies and likes"),
    "example": (
        example,
        "[KIND]",
        "print all settings; or for systemd, systemd@, caddy, nginx, container",
    ),
}


def proper_zone(text: str) -> str:
    try:
        datetime.fromisoformat(f"2000-01-01T00:00{text}")
    except ValueError:
        raise argparse.ArgumentTypeError("write it as --zone=-05:00") from None
    return text


# With the commands that each goes with.
OPTIONS: dict[str, tuple[str, Json]] = {
    "--mail": ("check", {"metavar": "ADDRESS", "help": "send a letter there"}),
    "--dry-run": ("import, move", {"action": "store_true", "help": "only say what would be"}),
    "--format": ("import", {"choices": PRODUCTS, "help": "whose file it is"}),
    "--host": ("import", {"metavar": "NAME", "help": "whose pages, where the file has several"}),
    "--zone": ("import", {"type": proper_zone, "metavar": "+08:00", "help": "of bare times"}),
    "--emails": ("export", {"action": "store_true", "help": "those of the authors too"}),
}


def as_owner(path: Path) -> str:
    """Root becomes who owns this file, or its folder if that is root's, and is told their name.
    Else what it makes could not be opened by the service, and root would follow where they lead:
    by a link in that folder, or by a path in their settings."""
    places = [place for place in (path, path.absolute().parent) if os.path.lexists(place)]
    owners = [owner for owner in map(os.lstat, places) if owner.st_uid]
    if not owners or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return ""
    import pwd  # which Windows has not

    os.setgroups([])
    os.setgid(owners[0].st_gid)
    os.setuid(owners[0].st_uid)
    try:
        return pwd.getpwuid(owners[0].st_uid).pw_name
    except KeyError:
        return f"user {owners[0].st_uid}"


def asked_for(argv: list[str] | None) -> argparse.Namespace:
    commands = (f"  {name:8} {word:8} {help}" for name, (_, word, help) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog="commentd",
        description="Comments for a static site: one module, one SQLite file, no third party.",
        epilog="\n".join(commands),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("command", nargs="?", default="serve", choices=COMMANDS, help="see below")
    add("what", nargs="?", default="", help="what the command takes")
    add("new", nargs="?", default="", help="and then takes")
    add("--config", type=Path, metavar="FILE", help="default: ./commentd.ini if any")
    for option, (goes, how) in OPTIONS.items():
        add(option, **{**how, "help": f"with {goes}: {how['help']}"})
    add("--version", action="version", version=f"commentd {__version__}")
    asked = parser.parse_intermixed_args(argv)
    for option, (goes, _) in OPTIONS.items():
        if vars(asked)[option[2:].replace("-", "_")] and asked.command not in goes.split(", "):
            parser.error(f"{option} goes with {goes}")
    words = COMMANDS[asked.command][1].split()
    given = len([text for text in (asked.what, asked.new) if text])
    if given > len(words) or given < len([word for word in words if word[0] != "["]):
        parser.error(f"use: commentd {asked.command} {' '.join(words)}")
    return asked


class OnceAMinute(logging.Filter):
    """Writes a line that is repeated once a minute, with the number of the others: a stranger can
    repeat a request that fails, and so fill the disk."""

    MOST = 1000  # different lines that are remembered

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.lines: dict[str, tuple[float, int]] = {}  # when it was written, and left out since

    def filter(self, record: logging.LogRecord) -> bool:
        line = record.getMessage()
        with self.lock:
            if len(self.lines) >= self.MOST:
                self.lines.clear()
            written_at, left_out = self.lines.get(line, (-math.inf, 0))
            if 0 <= record.created - written_at < MINUTE:
                self.lines[line] = written_at, left_out + 1
                return False
            self.lines[line] = record.created, 0
        if left_out:
            record.msg = f"{line} (left out since the last one: {left_out})"
            record.args = ()
        return True


class LogLine(logging.Formatter):
    """One event, one line: what follows it, a trace, is indented, and nothing steers a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        lines = "\n    ".join(super().format(record).splitlines())
        return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in lines)


def main(argv: list[str] | None = None) -> int:
    """Exit codes: 0 done, 1 failed, 2 wrong use or settings."""
    asked = asked_for(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # of terminals without UTF-8
    handler = logging.StreamHandler()
    handler.addFilter(OnceAMinute())
    handler.setFormatter(LogLine("%(asctime)s %(levelname)s %(message)s", "%F %T%z"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    logging.getLogger("waitress").setLevel(logging.ERROR)  # else strangers could fill the log
    asked.file = asked.config or next(filter(Path.exists, [Path("commentd.ini")]), None)
    owner = ""
    try:
        if asked.command == "example" and not asked.what:
            return example(Config(), asked)  # the way out of wrong settings
        gives_up_root = asked.command not in ("serve", "example")
        if gives_up_root and asked.file:
            owner = as_owner(asked.file)
        config = load_config(asked.file, os.environ)
        if gives_up_root and not owner:
            owner = as_owner(Path(config.database_path))
        return COMMANDS[asked.command][0](config, asked)
    except (Fault, OSError, sqlite3.Error) as fault:
        text = str(fault)
        if owner and isinstance(fault, PermissionError):
            text += f": root does this with the rights of {owner} alone, who must have access to it"
        print(f"commentd: {text}".replace("\n", "\ncommentd: "), file=sys.stderr)
        return getattr(fault, "exit_code", 1)
    except KeyboardInterrupt:
        print("commentd: stopped; an import goes on where it was", file=sys.stderr)
        return 1
    except Unavailable:  # the store has said why
        print("commentd: the database can't be written now: try again", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
