"""Readers of the feed and of a thread as a plain page."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import Any

from commentd import PAGE_POLICY

ATOM = "{http://www.w3.org/2005/Atom}"
DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
LASTING = "urn:commentd:[0-9a-f]{32}"

# XML 1.0, section 2.2
CHARS = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


class Feed:
    """An Atom feed; raises for what RFC 4287 does not allow."""

    def __init__(self, reply: Any) -> None:
        assert reply.headers["Content-Type"] == "application/atom+xml; charset=utf-8"
        assert CHARS.fullmatch(reply.body.decode())
        root = ET.fromstring(reply.body)
        assert root.tag == f"{ATOM}feed"
        self.title, self.id, self.updated = (text_of(root, n) for n in ("title", "id", "updated"))
        self.links = {link.get("rel"): link.get("href") for link in root.findall(f"{ATOM}link")}
        assert "self" in self.links
        self.entries = [self.entry(entry) for entry in root.findall(f"{ATOM}entry")]
        ids = [self.id, *(entry["id"] for entry in self.entries)]
        assert len({*ids}) == len(ids)
        assert all(re.fullmatch(LASTING, each) for each in ids)

    def entry(self, element: ET.Element) -> dict[str, str]:
        names = ("id", "title", "published", "updated")
        entry = {name: text_of(element, name) for name in names}
        assert re.fullmatch(DATE, entry["published"])
        assert entry["published"] <= entry["updated"] <= self.updated
        (author,) = element.findall(f"{ATOM}author")
        (content,) = element.findall(f"{ATOM}content")
        assert content.attrib == {"type": "html"}
        link = "".join(str(each.get("href")) for each in element.findall(f"{ATOM}link"))
        assert not link or re.fullmatch(r"https?:[^\s<>\"{}|\\^`#]+(#[^\s<>\"{}|\\^`#]+)?", link)
        return {**entry, "link": link, "name": text_of(author, "name"), "html": content.text or ""}


def text_of(element: ET.Element, name: str) -> str:
    (child,) = element.findall(ATOM + name)
    assert len(child) == 0
    return child.text or ""


TAGS = {
    *"html head title meta link script body".split(),  # noqa: SIM905
    *"main header nav article h1 p b bdi a ol li span time div".split(),  # noqa: SIM905
}

ATTRIBUTES = {"aria-label", "charset", "class", "content", "datetime", "dir", "href", "id", "lang"}
ATTRIBUTES |= {"name", "rel", "role", "title", "type"}
WRITTEN = {*"p br a strong em del code pre blockquote ul ol li hr".split()}  # noqa: SIM905
VOID = {"meta", "link", "br", "hr"}


class ThreadPage(HTMLParser):
    """A thread as a page; raises for any markup that is not ours."""

    def __init__(self, response: Any) -> None:
        super().__init__()
        assert response.headers["Content-Type"] == "text/html; charset=utf-8"
        assert response.headers["Content-Security-Policy"] == PAGE_POLICY
        self.opened: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.links: dict[str, str] = {}
        self.hrefs: list[str] = []
        self.numbers: list[int] = []
        self.within = 0  # how many elements of a comment's text are open
        self.written: list[str] = []
        self.lang = self.dir = ""
        self.feed(response.text)
        self.close()
        assert self.opened == []
        assert len(self.texts["script"]) == len(self.texts["title"]) == 1
        assert self.texts["title"] == self.texts["h1"]
        assert len({*self.numbers}) == len(self.numbers)
        self.data: Any = json.loads(self.texts["script"][0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        assert len(named) == len(attrs)
        if self.within:
            assert tag in WRITTEN, tag
            allowed = {"a": {"href", "rel"}, "ol": {"start"}, "code": {"class"}}.get(tag, set())
            assert {*named} <= allowed, (tag, named)
            assert re.match("language-[a-z0-9]", named.get("class", "language-x"))
            assert re.match("https?:|mailto:", named.get("href", "https:"))
        else:
            assert tag in TAGS, tag
            assert {*named} <= ATTRIBUTES, named
            assert tag != "script" or named == {"type": "application/ld+json"}
            self.keep(tag, **named)
        if tag not in VOID:
            self.opened.append(tag)
            self.within += bool(self.within or named.get("class") == "text")
        self.texts.setdefault(tag, []).append("")

    def keep(self, tag: str, rel: str = "", href: str = "", id: str = "", **named: str) -> None:
        if tag == "link":
            self.links[rel] = href
        elif tag == "a":
            self.hrefs.append(href)
        elif tag == "html":
            self.lang, self.dir = named["lang"], named["dir"]
        elif id:
            self.numbers.append(int(id.removeprefix("comment-")))
        elif named.get("class") == "text":
            assert named["dir"] == "auto"  # so that it does not turn what is around it
            self.written.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag
        self.within -= bool(self.within)

    def handle_data(self, data: str) -> None:
        for tag in {*self.opened}:
            self.texts[tag][-1] += data
        if self.within:
            self.written[-1] += data

    def handle_decl(self, decl: str) -> None:
        assert (decl.lower(), self.texts) == ("doctype html", {})

    def refuse(self, data: str) -> None:
        raise AssertionError(data)

    handle_comment = handle_pi = unknown_decl = refuse
