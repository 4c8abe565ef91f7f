"""Each email that the service sends, in a language, and what its HTML holds."""

import re
from dataclasses import dataclass, field
from email.message import EmailMessage
from html.parser import HTMLParser
from typing import Any

import commentd
from support.notifications import ANN, BLOG, HOUR, LU, NAMED, OWNER, Guest, Reader, signed_in
from support.world import html_of, read, text_of

# With these, `every_email` gets all of them.
SETTINGS: dict[str, Any] = {
    **NAMED,
    "moderation_hold": "links",
    "site_name": "Olga’s garden",
    "mail_sender": "comments@blog.example",
}

MARKDOWN = """\
Three things **worked** for me, and one did *not*:

1. Water in the evening, `20 minutes` at most
2. Straw between the rows
3. ~~Copper~~ patience

> The best time to plant a tree was twenty years ago.

```ini
[garden]
rows = 12
```
"""
PAGE = "/2026/11/what-grows-in-the-shade/"


@dataclass
class Words:
    """What readers write in the emails."""

    content: str = MARKDOWN
    reply: str = "Thank you! Which kind of straw do you take, and where do you get it?"
    nickname: str = "Lu Xun"
    page_url: str = PAGE
    title: str = "What grows in the shade"
    website: str = ""
    reason: str = "It sells something in each line."


@dataclass
class Emails:
    """Writes what makes the service send emails, and keeps these by name."""

    guest: Guest
    language: str
    words: Words = field(default_factory=Words)
    found: dict[str, EmailMessage] = field(default_factory=dict)

    def keep(self, name: str, to: str) -> EmailMessage:
        self.guest.deliver()
        sent = [each for each in self.guest.fake_world.emails if each.recipient == to]
        self.found[name] = read(sent[-1].message)
        self.guest.forget()
        return self.found[name]

    def say(self, content: str, **fields: Any) -> int:
        self.guest.fake_world.time += HOUR  # emails about comments are bundled
        usual = {
            "nickname": self.words.nickname,
            "page_url": self.words.page_url,
            "page_title": self.words.title,
            "headers": {"Origin": BLOG},
        }
        return self.guest.comment(content, **{**usual, "lang": self.language, **fields})

    def code(self) -> str:
        return next(w for w in text_of(self.message).split() if re.fullmatch("[0-9]{6}", w))

    @property
    def message(self) -> EmailMessage:
        return [*self.found.values()][-1]

    def new_reader(self) -> Reader:
        """A reader with an account, about which no email is kept: none holds a reader's words."""
        self.guest.register(ANN, nickname="Ann", lang=self.language)
        self.guest.deliver()
        self.guest.verify(self.guest.fake_world.code(), ANN)
        self.guest.forget()
        return signed_in(self.guest.served, ANN)

    def of_accounts(self) -> Reader:
        guest = self.guest
        guest.register(ANN, nickname="Ann", lang=self.language)
        self.keep("code to register", ANN)
        guest.register(ANN, nickname="Ann", lang=self.language)
        self.keep("code again", ANN)
        guest.verify(self.code(), ANN)
        ann = signed_in(guest.served, ANN)
        guest.register(ANN, nickname="Anna", lang=self.language)
        self.keep("code for an account that is there", ANN)
        guest.verify(self.code(), ANN)
        self.keep("password changed", ANN)
        ann = signed_in(guest.served, ANN)
        guest.ask_for_code(ANN, lang=self.language)
        self.keep("code to sign in", ANN)
        site = guest.served.site
        account = site.store.account_with_email(ANN)
        assert account
        for name, email in {
            "provider joined": commentd.joined_email(site, account),
            "provider parted": commentd.parted_email(site, account),
            "second factor on": commentd.factor_email(site, account, is_on=True),
            "second factor off": commentd.factor_email(site, account, is_on=False),
        }.items():
            with site.store.writing():
                site.store.add_email(site.now(), email)
            self.keep(name, ANN)
        return ann

    def to_the_owner(self) -> None:
        self.say(self.words.content, website=self.words.website)
        self.keep("new comment", OWNER)
        self.say(f"{self.words.content}\nhttps://example.org/seeds?row=1")
        self.keep("waiting comment", OWNER)
        number = self.say(self.words.content)
        self.keep("one more comment", OWNER)
        self.guest.fake_world.time += HOUR
        self.guest.report(number, self.words.reason)
        self.keep("reported comment", OWNER)
        for n in range(4):
            self.say(f"{self.words.reply} {n}")
        self.keep("several comments", OWNER)

    def to_readers(self, ann: Reader) -> None:
        mine = ann.comment(self.words.content, page_url=self.words.page_url, lang=self.language)
        self.say(self.words.reply, parent_id=mine)
        self.keep("reply", ANN)
        ann.post_json("/page/follow", {"page_url": self.words.page_url, "lang": self.language})
        self.say(f"{self.words.reply} again")
        self.keep("followed page", ANN)
        guests = self.say("A question.", email=LU)
        self.say(self.words.reply, parent_id=guests)
        self.keep("wants replies?", LU)
        self.say(self.words.reply + "!", email=ANN)
        self.guest.deliver()
        self.found["was it you?"] = next(
            read(each.message)
            for each in self.guest.fake_world.emails
            if each.recipient == ANN and "do=mine" in text_of(read(each.message))
        )
        self.guest.forget()

    def of_the_terminal(self) -> None:
        site = self.guest.served.site
        commentd.send_test_email(site.mailer, OWNER)
        self.keep("test", OWNER)

    def to_a_stranger(self) -> None:
        """Where comments with an email address wait for its holder."""
        self.say("Written in a hurry.", email="kim@example.com")
        self.keep("was it you, stranger?", "kim@example.com")


def every_email(guest: Guest, language: str, words: Words | None = None) -> dict[str, EmailMessage]:
    emails = Emails(guest, language, words or Words())
    ann = emails.of_accounts()
    emails.to_the_owner()
    emails.to_readers(ann)
    emails.of_the_terminal()
    return emails.found


# What may stand in what. Where a reader's words stand, there is nothing else.
QUOTED = "p br em strong del code pre blockquote ul ol li hr table"
MARKUP = {
    "": "html",
    "html": "head body",
    "head": "meta title style",
    "title": "",
    "style": "",
    "body": "div table",
    "div": "table",
    "table": "tr",
    "tr": "td",
    "td": f"h1 p div a {QUOTED}",
    "h1": "",
    "p": f"a {QUOTED}",
    "a": "",
    **dict.fromkeys(("em", "strong", "del", "blockquote", "ul", "ol", "li"), QUOTED),
    "pre": "code",
    "code": "",
}
VOID = {"meta", "br", "hr"}
ATTRIBUTES = "lang dir class style role cellpadding cellspacing border width align href start"


class Markup(HTMLParser):
    """The HTML of an email. Only what is in the tables above is found valid."""

    def __init__(self, message: EmailMessage) -> None:
        super().__init__()
        self.source = html_of(message)
        self.open_tags = [""]
        self.tags: list[str] = []
        self.links: list[tuple[str, str]] = []  # what each says, and where it leads
        self.texts: list[str] = []
        self.preview = ""  # what lists of emails show
        self.feed(self.source)
        self.close()
        assert self.open_tags == [""]

    def handle_decl(self, decl: str) -> None:
        assert decl == "doctype html"

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in MARKUP[self.open_tags[-1]].split(), (tag, self.open_tags)
        values = {name: value or "" for name, value in attributes}
        assert len(values) == len(attributes), tag
        if tag != "meta":
            assert values.keys() <= {*ATTRIBUTES.split()}, (tag, values)
        if tag == "table":
            assert values["role"] == "presentation"
        if tag == "html":
            self.language = values["lang"], values["dir"]
        if tag == "a":
            self.links.append(("", values["href"]))
        if tag not in VOID:
            self.open_tags.append(tag)
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag == self.open_tags.pop(), (tag, self.open_tags)

    def handle_data(self, data: str) -> None:
        if self.open_tags[-1] == "style":
            return
        if self.open_tags[-1] == "a":
            said, url = self.links.pop()
            self.links.append((said + data, url))
        if self.open_tags[-1] in ("", "html", "head", "table", "tr"):
            assert data.isspace(), data
        elif self.open_tags[-2:] == ["body", "div"]:
            self.preview = data
        elif self.open_tags[-1] != "title":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())
