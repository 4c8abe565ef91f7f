"""Comments as a part of the page: the fragment, as HTML and in a real Chromium, and what the widget
asks for when it finds one."""

import errno
import fcntl
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from itertools import chain, count, takewhile
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from commentd import App, Config, make_app
from support import inside
from support.blog import POST, article, begin_to_read, conversation, new_context, say, service
from support.client import PAGE, Visitor
from support.commands import run_here
from support.hostile_text import MARKUP
from support.sources import STATIC
from support.widget import CLOBBERED, NAMES, TAG, TEXTS, WEBSITE, Site, service_with
from support.widget import fake_world as fake_world  # a fixture
from support.widget import settings as settings  # a fixture
from support.widget import site as site  # a fixture
from support.words import FIRST_KEYS, WORDS
from support.world import FakeWorld

DAY = 86400
LANGUAGES = sorted(WORDS)


class Tree(HTMLParser):
    """The elements of a fragment with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(html.partition("<style>")[0] + html.partition("</style>")[2])

    def handle_starttag(self, tag: str, attributes: Any) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attributes}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str, name: str) -> list[str]:
        """The values of an attribute."""
        return [values[name] for each, values in self.elements if each == tag and name in values]


def fragment(visitor: Visitor, **query: Any) -> Tree:
    return Tree(visitor.get("/fragment", {"url": PAGE, **query}).text)


# Contents


def test_a_fragment_has_the_threads_that_the_widget_shows_in_their_order(visitor: Visitor) -> None:
    first = visitor.say("one")["comment"]["id"]
    second = visitor.say("two")["comment"]["id"]
    reply = visitor.say("two's", parent_id=second)["comment"]["id"]
    third = visitor.say("three")["comment"]["id"]
    visitor.post_json("/comment/like", {"id": first})
    shown = {
        sort: list(map(int, fragment(visitor, sort=sort).all("li", "data-id")))
        for sort in ("newest", "oldest", "likes")
    }
    assert shown == {
        "newest": [third, second, reply, first],
        "oldest": [first, second, reply, third],
        "likes": [first, third, second, reply],
    }
    few = fragment(visitor, limit=1)
    assert few.all("li", "data-id") == [str(third)]
    more, noscript = [link for link in few.all("a", "href") if "/thread?" in link]
    assert more == noscript
    assert more.endswith("/thread?url=%2F2026%2Fhello%2F")
    links = fragment(visitor, limit=3).all("a", "href")
    assert [link for link in links if "/thread?" in link] == [noscript]
    visitor.get("/fragment", {"url": PAGE, "sort": "best"}, status=400)
    visitor.get("/fragment", {"url": PAGE, "style": "none"}, status=400)
    visitor.get("/fragment", {}, status=400)


def test_a_fragment_nests_three_levels_and_names_whose_reply_stands_beside_another(
    visitor: Visitor,
) -> None:
    for new, parent in {1: None, 2: 1, 3: 2, 4: 3, 5: 1, 6: 4}.items():
        visitor.say(f"No. {new}", nickname=f"N{new}", parent_id=parent)
    html = visitor.get("/fragment", {"url": PAGE}).text
    level = 0
    shown: list[tuple[str, int, str]] = []
    for mark in re.finditer(r'<(/?)ol|<li data-id="(\d)"|› <bdi>(\w+)', html):
        closes, number, name = mark.groups()
        if number:
            shown.append((number, level, ""))
        elif name:
            shown[-1] = (shown[-1][0], level, name)
        else:
            level += -1 if closes else 1
    assert shown == [
        ("1", 1, ""),
        ("2", 2, ""),
        ("3", 3, ""),
        ("4", 3, "N3"),
        ("6", 3, "N4"),
        ("5", 2, ""),
    ]


def bare(code: str) -> str:
    """A script or style without comments and white space."""
    comments = re.compile(r"^\s*//[^\n]*|^\s*/\*.*?\*/| // [^\n]*", re.MULTILINE | re.DOTALL)
    return "".join(comments.sub("", code).split())


def plain(key: str) -> str:
    """Of a text that differs with a number, the name of all its forms."""
    return re.sub(r"_(zero|one|two|few|many|other)$", "", key)


@pytest.mark.parametrize("picture", [False, True])
def test_the_widget_and_the_fragment_have_one_style_put_together_from_its_files(
    picture: bool, tmp_path: Path
) -> None:
    files = ("widget.css", "picture.css", "fragment.css")
    static = inside.served_folder()
    widget, owner, fragment_only = (bare((static / file).read_text("utf-8")) for file in files)
    style = widget + owner if picture else widget
    config = Config(
        database_path=str(tmp_path / "commentd.db"),
        site_picture=str(STATIC / "picture.png") if picture else "",
        server_public_url=SERVICE,
    )
    with closing(make_app(config)) as app:
        visitor = Visitor(app)
        script = visitor.get("/embed.js").text
        linked = visitor.get("/fragment.css", {"faces": ""}).text
        inline = visitor.get("/fragment", {"url": PAGE}).text
    first = {
        language: {key: text for key, text in texts.items() if plain(key) in FIRST_KEYS}
        if language in {"en", "zh-CN"}
        else None  # they load later
        for language, texts in sorted(WORDS.items())
    }
    constants = dict(re.findall(r"(?m)^const ([A-Z_]+) = (.*)$", script.partition("//")[0]))
    constants = {name: json.loads(value) for name, value in constants.items()}
    assert re.fullmatch("[0-9a-f]{8}", constants.pop("ASSETS_VERSION"))
    assert bare(constants.pop("WIDGET_STYLE")) == style
    texts = dict(re.findall(r'(?m)^TEXTS\["(.*?)"\] = (.*)$', script.partition("//")[0]))
    at_once = {language: json.loads(packed) for language, packed in texts.items()}
    assert constants == {"TEXTS": dict.fromkeys(first)}
    assert constants["TEXTS"] | at_once == first
    style = (style + fragment_only).replace("SERVICE/", f"{SERVICE}/")
    assert bare(linked) == style
    assert bare(inline.partition("<style>")[2].partition("</style>")[0]) == style


def test_a_fragment_asks_for_the_style_of_its_faces(visitor: Visitor) -> None:
    for name in ("Ann", "Lu", "陆知微"):
        visitor.say(f"of {name}", nickname=name)
    tree = fragment(visitor, style="link")
    faces = sorted(map(int, {*tree.all("span", "data-face")}))
    [link] = tree.all("link", "href")
    assert link.partition("?faces=")[2] == ".".join(map(str, faces))
    assert len(faces) == 3


def test_a_long_list_of_faces_for_the_style_of_a_fragment_is_refused_at_once(
    visitor: Visitor,
) -> None:
    style = visitor.get("/fragment.css", {"faces": "1.22.9972"}).text
    assert re.findall(r"data-face='(\d+)'", style) == ["1", "22", "9972"]
    style = visitor.get("/fragment.css", {"faces": ".".join(map(str, range(1001)))}).text
    assert re.findall(r"data-face='(\d+)'", style) == [*map(str, range(1000))]
    assert "data-face='" not in visitor.get("/fragment.css", {"faces": ""}).text
    began_at = time.process_time()
    for faces in ("1" * 26 + "x", "1" * 4000, "1." * 2000 + "x", "1..2"):
        visitor.get("/fragment.css", {"faces": faces})
    assert time.process_time() - began_at < 1


def test_the_heading_of_a_fragment_is_only_text(visitor: Visitor) -> None:
    visitor.say("hello")
    heading = "<b>{{env}}</b>\" data-mark='9'"
    html = visitor.get("/fragment", {"url": PAGE, "lang": "de", "heading": heading}).text
    tree = Tree(html)
    assert tree.all("commentd-thread", "heading") == [heading]
    assert tree.text.startswith(heading)
    assert tree.all("h2", "part") == ["heading"]
    assert tree.all("b", "aria-level") == ["3"]
    assert "{" not in html.partition("</style>")[2]
    assert fragment(visitor, lang="de", heading="").text.startswith("Kommentare")
    assert fragment(visitor).all("b", "aria-level") == ["2"]
    visitor.get(f"/fragment?url={PAGE}&heading=a&heading=b", status=400)


def test_a_fragment_has_all_that_the_widget_knows_of_a_comment(app: App, visitor: Visitor) -> None:
    root = visitor.say("one", website="https://ann.example")["comment"]["id"]
    visitor.say("reply", parent_id=root)
    gone = visitor.say("gone")["comment"]["id"]
    visitor.say("reply", parent_id=gone)
    inside.set_status(app, gone, "deleted")
    held = visitor.say("held")["comment"]["id"]
    visitor.say("reply", parent_id=held)
    inside.set_status(app, held, "waiting")
    shown = {}
    for data in map(json.loads, fragment(visitor).all("li", "data-comment")):
        shown[data["id"]] = data
    listed = Reader(visitor).whole()
    for comment in listed.values():
        comment.setdefault("deleted", False)
        comment.setdefault("waiting", False)
        for name in ("content", "html", "ip"):
            del comment[name]
    assert shown == listed


def test_proxies_keep_a_fragment_for_ten_minutes_and_while_the_service_is_down(
    visitor: Visitor,
) -> None:
    visitor.say()
    response = visitor.get("/fragment", {"url": PAGE})
    kept = dict(part.partition("=")[::2] for part in response.headers["Cache-Control"].split(", "))
    assert int(kept["s-maxage"]) + int(kept["stale-while-revalidate"]) <= 600
    assert int(kept["stale-if-error"]) >= DAY
    again = {"If-None-Match": response.headers["ETag"]}
    visitor.get("/fragment", {"url": PAGE}, headers=again, status=304)
    visitor.say("more")
    visitor.get("/fragment", {"url": PAGE}, headers=again, status=200)


# What changed since


class Reader:
    """Knows what a fragment showed, and afterwards what `since` says."""

    def __init__(self, visitor: Visitor) -> None:
        self.visitor = visitor
        listing = self.whole()
        (mark,) = fragment(visitor, limit=100).all("commentd-thread", "data-mark")
        self.mark, self.known = int(mark), listing

    def whole(self) -> dict[int, Any]:
        pages = (self.visitor.listing(view="threads", limit=10, page=n) for n in count(1))
        listing = [*chain(*takewhile(bool, (page["comments"] for page in pages)))]
        comments = [*listing, *(reply for root in listing for reply in root["replies"])]
        return {c["id"]: {k: c[k] for k in c if "replies" not in k} for c in comments}

    def catch_up(self) -> Any:
        changes = self.visitor.listing(since=self.mark)
        self.known |= {comment["id"]: comment for comment in changes["comments"]}
        for number in changes["removed"]:
            self.known.pop(number, None)
        self.mark = changes["mark"]
        return changes


@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_the_changes_since_a_fragment_make_it_the_current_list(
    app: App, visitor: Visitor, campaign: Any
) -> None:
    for chance in campaign.rounds(3):
        known = [visitor.say(f"{n}")["comment"]["id"] for n in range(4)]
        reader = Reader(visitor)
        for _ in range(40):
            number = chance.choice(known)
            act = chance.randrange(6)
            if act < 2:
                body = {"page_url": PAGE, "nickname": "Ann", "content": "re", "captcha_token": "x"}
                parent = {"parent_id": number} if act else {}
                response = visitor.post_json("/comments", body | parent, status="*")
                if response.status_int == 200:
                    known.append(response.json["comment"]["id"])
            elif act == 2:
                visitor.post_json("/comment/like", {"id": number}, status="*")
            else:
                inside.set_status(app, number, chance.choice(["visible", "waiting", "deleted"]))
            if chance.random() < 0.3:
                assert not reader.catch_up()["reload"]
                assert reader.known == reader.whole()
        campaign.figures["changes"] += 40


@pytest.mark.parametrize("settings", [{"moderation_hold": "all", "limits_enabled": False}])
def test_the_mark_of_a_fragment_reveals_nothing_of_comments_that_readers_never_saw(
    app: App, visitor: Visitor
) -> None:
    held = visitor.say("held")["comment"]["id"]
    inside.set_status(app, held, "spam")
    changes = visitor.listing(since=0)
    assert (changes["comments"], changes["removed"], changes["mark"]) == ([], [], 0)
    inside.set_status(app, held, "visible")
    assert [each["id"] for each in visitor.listing(since=0)["comments"]] == [held]


@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_a_fragment_gets_a_hundred_changes_and_after_more_the_whole_list(visitor: Visitor) -> None:
    reader = Reader(visitor)
    mark = reader.mark
    for n in range(100):
        visitor.say(f"{n}")
    changes = reader.catch_up()
    assert (len(changes["comments"]), changes["reload"]) == (100, False)
    visitor.say("one more")
    changes = visitor.listing(since=mark)
    assert (changes["comments"], changes["reload"]) == ([], True)


def test_a_mark_that_is_too_old_or_not_ours_reloads_the_whole_list(
    app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    first = visitor.say("one")["comment"]["id"]
    reader = Reader(visitor)
    inside.set_status(app, first, "deleted")
    assert reader.catch_up()["removed"] == [first]
    reader.mark = 1
    fake_world.time += 40 * DAY
    app.tick()
    assert inside.sql(app, "SELECT id FROM comment") == []
    assert reader.catch_up()["reload"]  # the row is deleted, so the change cannot be listed
    assert not reader.catch_up()["reload"]
    for mark in (10**6, 2**63 - 1):
        assert visitor.listing(since=mark)["reload"]
    visitor.get("/comments", {"url": PAGE, "since": "-1"}, status=400)
    assert visitor.get("/comments", {"url": "/other/", "since": "7"}).json["reload"]


def test_a_fragment_reveals_nothing_of_hidden_comments(app: App, visitor: Visitor) -> None:
    hidden = visitor.say("canary", nickname="Canary", website="https://canary.example")
    number = hidden["comment"]["id"]
    reply = visitor.say("reply", parent_id=number)["comment"]["id"]
    deep = visitor.say("это canary", parent_id=reply, nickname="Canary")["comment"]["id"]
    # On the deepest level, so it names the author it replies to.
    visitor.say("to that", parent_id=deep)
    for each in (number, deep):
        inside.set_status(app, each, "spam")
    html = visitor.get("/fragment", {"url": PAGE}).text
    assert "canary" not in html.lower()
    assert Tree(html).all("section", "lang") == ["en"]
    styled = re.findall(r"data-face='(\d+)'", html)
    assert {*styled} == {*Tree(html).all("span", "data-face")}


def test_marks_from_before_a_restore_are_void(app: App, visitor: Visitor, tmp_path: Path) -> None:
    visitor.say("one")
    folder = Path(inside.database_path(app)).parent
    settings = {"COMMENTD_DATABASE_PATH": inside.database_path(app)}
    assert run_here(folder, "backup", "saved.db", **settings)[0] == 0
    visitor.say("two")
    reader = Reader(visitor)
    settings = {"COMMENTD_DATABASE_PATH": str(tmp_path / "restored.db")}
    assert run_here(folder, "restore", "saved.db", **settings)[0] == 0
    config = replace(app.site.config, database_path=str(tmp_path / "restored.db"))
    with closing(make_app(config, rounds=1)) as restored:
        reader.visitor = Visitor(restored)
        assert reader.catch_up()["reload"]
        reader.known = reader.whole()
        for number in range(3):
            reader.visitor.say(f"{number}")
        assert not reader.catch_up()["reload"]
        assert reader.known == reader.whole()


def test_a_badge_and_a_name_that_are_lost_are_lost_in_fragments_too(app: App, ann: Visitor) -> None:
    reader = Reader(ann)
    number = ann.say("hi")["comment"]["id"]
    reader.catch_up()
    inside.sql(app, "UPDATE account SET role = 'admin'")
    (changed,) = reader.catch_up()["comments"]
    assert (changed["id"], changed["role"]) == (number, "admin")
    inside.sql(app, "UPDATE account SET role = 'user'")
    ann.delete_json("/me", {"password": "canary", "comments": "keep"}, status=403)
    assert reader.catch_up()["comments"][0]["role"] == "user"


# In a browser

BADGE = """const {color, backgroundColor} = getComputedStyle(node)
  return [color, backgroundColor] }"""
TICK = {"en": "signed in", "ar": "مسجَّل الدخول"}
PLACES = """() => {
  const root = document.querySelector('commentd-thread').shadowRoot
  return ['section', '.head', '.head b', 'li[data-id]', 'article', '.avatar', '.meta', '.meta > *',
          '.tick', '.body', '.actions', '.replies', '.more'].map(name =>
    [name, ...[...root.querySelectorAll(name)].map(node => {
      const {x, y, width, height} = node.getBoundingClientRect()
      const text = /meta|body|b$/.test(name) ? node.textContent.trim() : ''
      return [x, y, width, height].map(Math.round).join(' ') + ' ' + text
    })])
}"""


def with_fragment(site: Site, visitor: Visitor, lang: str, **query: str) -> str:
    html = visitor.get("/fragment", {"url": POST, "lang": lang, **query}).text
    pages = article(site.service, lang=lang, tag=html)
    site.pages.update(pages)
    return site.address + POST


@pytest.mark.slow
@pytest.mark.parametrize("lang", ["en", "ar"])
@pytest.mark.parametrize("screen", [{"width": 320}, {"width": 900}, {"width": 390, "touch": True}])
def test_a_fragment_has_the_layout_of_the_widget(
    app: App, site: Site, browser: Browser, lang: str, screen: Any
) -> None:
    ids = conversation(app)
    inside.set_status(app, ids[-1], "deleted")  # the widget folds long texts
    for number in range(8):
        say(app, f"No. {number}", f"Guest {number}", website="https://guest.example", hours=99)
    inside.set_status(app, ids[3], "deleted")
    inside.sql(app, "UPDATE comment SET pinned = 1, edited_at = 1, country = 'BR' WHERE id = 1")
    inside.sql(app, "UPDATE comment SET created_at = created_at - 60 * 86400")  # dates, not ages
    found = []
    viewport = {"width": screen["width"], "height": 5000}  # what is far away has no size yet
    for is_fragment in (True, False):
        site.pages.update(article(site.service, lang=lang))
        if is_fragment:
            with_fragment(site, Visitor(app), lang)
        touch = {"has_touch": "touch" in screen, "timezone_id": "Asia/Shanghai"}
        context = new_context(browser, viewport=viewport, **touch)
        page = context.new_page()
        page.goto(site.address + POST)
        page.locator("commentd-thread article").nth(10).wait_for()
        page.wait_for_load_state("networkidle")
        # The widget holds the height that it had in the window while the list was on its way.
        page.locator("commentd-thread section").evaluate("node => node.style.minHeight = 0")
        found.append(page.evaluate(PLACES))
        if not is_fragment:
            begin_to_read(page)
        expect(page.get_by_role("img", name=TICK[lang])).to_have_count(1)  # the owner's
        badge = page.locator(".admin").evaluate("node => {" + BADGE)
        assert badge[0] != badge[1], "it can be read"
        context.close()
    assert found[0] == found[1]


# Pages around a fragment, whose place is {}.
HOSTS = {
    "names": CLOBBERED + "{}",
    "style": MARKUP["style"] + "{}",
    "held": "<style>commentd-thread:not([style]) { height: 30px }</style>{}",
    "base": "<base href='https://evil.example/'>{}",
    "open elements": "<p><a href=/x><b><ul><li><button><h1>{}",
    "a table": "<table><tr><td><i>{}",
    "no cell": "<table>{}<tr>",
}
MADE_OF = {
    "style",
    "section",
    "div",
    "b",
    "span",
    "button",
    "select",
    "option",
    "noscript",
    "ol",
    "li",
    "article",
    "bdi",
    "a",
    "time",
    "p",
    "br",
    "hr",
    "em",
    "strong",
    "del",
    "code",
    "pre",
    "blockquote",
    "ul",
    "h2",
    "textarea",
}
# By element; None: of every element.
ATTRIBUTES = {
    None: {"class", "part", "aria-label", "aria-hidden", "role", "lang", "dir", "tabindex"},
    "b": {"aria-level"},
    "a": {"href", "rel", "title"},
    "button": {"type", "disabled"},
    "textarea": {"rows", "disabled", "placeholder", "data-unreachable"},
    "select": {"disabled"},
    "li": {"data-id", "data-comment", "data-more"},
    "span": {"data-face", "data-initial"},
    "time": {"datetime"},
}
LOOK = """() => {
  const thread = document.querySelector('commentd-thread')
  const nodes = [...thread.shadowRoot.querySelectorAll('*')]
  return {
    light: [...thread.querySelectorAll('*')].map(node => node.localName),
    made: nodes.map(node => [node.localName, node.getAttributeNames()]),
    links: nodes.filter(node => node.href).map(node => node.href),
    names: [...thread.shadowRoot.querySelectorAll('.meta .name')].map(node => node.textContent),
    seen: thread.shadowRoot.querySelector('article').getClientRects().length,
    hit: typeof hit,
    fits: thread.offsetHeight >= thread.shadowRoot.querySelector('section').offsetHeight,
  }
}"""


@pytest.mark.slow
@service_with(site_origins=("https://blog.example",))
def test_a_fragment_of_hostile_comments_is_only_text_and_links_in_any_page(
    app: App, site: Site, browser: Browser
) -> None:
    for number, name in enumerate(NAMES):
        say(app, f"By name {number}.", name, hours=number)
    inside.sql(app, "UPDATE comment SET website = ?", WEBSITE)
    for text in [*TEXTS, "{{env `HOME`}} <!--#exec cmd='ls' -->"]:
        say(app, text, hours=100)
    query = {"url": POST, "limit": 100, "heading": "{{env `HOME`}}<img src=x onerror='hit = 1'>"}
    html = Visitor(app).get("/fragment", query).text
    content = html.partition("</style>")[2]
    assert not re.search(r"{|<!--|\\\n", content)
    context = new_context(browser)
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for host in HOSTS.values():
        site.write(host.replace("{}", html))
        page.goto(site.address + POST)
        look = page.evaluate(LOOK)
        assert {tag for tag, _ in look["made"]} <= MADE_OF
        for tag, attributes in look["made"]:
            assert {*attributes} <= ATTRIBUTES[None] | ATTRIBUTES.get(tag, set()), tag
        assert all(re.match(r"(https?://|mailto:)", link) for link in look["links"])
        assert f"https://blog.example{POST}#comment-1" in look["links"]
        assert look["names"][: len(NAMES)] == NAMES
        assert look["light"] in ([], ["a"])  # none where the page has left a link open
        assert (look["hit"], look["seen"], look["fits"]) == ("undefined", 1, True)
    context.close()
    assert [url for url in asked if not url.startswith((site.address, "data:"))] == []


COUNTRIES = ["DE", "TW", "US", "FR", "CN", "ES", "BR", "RU", "EG", "KR", "JP", "GB"]
SAYS = """() => [...document.querySelectorAll('commentd-thread')].map(({lang, shadowRoot}) => {
  const texts = name => [...shadowRoot.querySelectorAll(name)].map(node => node.textContent)
  return [lang, texts('.head b'), texts('.meta > :not(.own)'), texts('.small')]
})"""


@pytest.mark.slow
def test_a_fragment_says_the_same_as_the_widget_in_every_language(
    app: App, site: Site, browser: Browser
) -> None:
    for number, country in enumerate(COUNTRIES):
        made = say(app, f"No. {number}", hours=24 * (60 + 31 * number))
        inside.sql(app, "UPDATE comment SET country = ? WHERE id = ?", country, made)
    inside.sql(app, "UPDATE comment SET nickname = '', edited_at = 1, pinned = 1 WHERE id < 3")
    say(app, "re", parent_id=3, hours=24 * 50)
    inside.set_status(app, 3, "deleted")
    inside.sql(app, "UPDATE page SET total = 1234")
    context = new_context(browser, timezone_id="Asia/Shanghai")
    page = context.new_page()
    visitor = Visitor(app)
    query = {"url": POST, "limit": 100}
    parts = [visitor.get("/fragment", {**query, "lang": tag}).text for tag in LANGUAGES]
    tags = [f"<commentd-thread lang={tag} limit=100></commentd-thread>" for tag in LANGUAGES]
    said = []
    for body in ("".join(parts), "".join(tags) + TAG):
        site.write(body)
        page.goto(site.address + POST)
        expect(page.locator("article")).to_have_count(13 * len(LANGUAGES))
        said.append(page.evaluate(SAYS))
    assert said[0] == said[1]
    context.close()
    inside.recount(app)


# In the files of a built site

SERVICE = "https://comments.example"
WITHOUT_SCHEME = SERVICE.removeprefix("https:")
SCRIPT = f'<script src="{SERVICE}/embed.js" async></script>'
NO_TAG = f"""<!-- {SCRIPT} <commentd-thread></commentd-thread> --><title>{SCRIPT}</title>
<textarea>{SCRIPT}</textarea><script>"<commentd-thread></commentd-thread>"</script>
<pre>&lt;script src="{SERVICE}/embed.js"&gt;</pre><p title='{SCRIPT.replace("'", "")}'>
<script src="https://blog.disqus.com/embed.js"></script>"""
# By path: the page around its comments, before and after them, and the URL that they have.
BUILT = {
    "post/index.html": (
        f"<!doctype html>\r\n<html lang=de><body>\r\n{SCRIPT}",
        "\r\n</html>",
        "/post/",
    ),
    "ü.html": (f"{NO_TAG}{SCRIPT}", "<p>End", "/%C3%BC.html"),
    "a/b.html": (
        f"<HTML><HEAD><LINK HREF='\nhttps://blog.example/c/?p=1&amp;q=2#top' REL=canonical></HEAD>"
        f"<script async src={WITHOUT_SCHEME}/loader.js?2></script>",
        "",
        "/c/?p=1&q=2",
    ),
    "app.html/index.html": (
        f"<link rel=canonical href='#/route'><link rel=canonical href=/other/>{SCRIPT}",
        "<footer>",
        "/app.html/#/route",
    ),
}
UNTOUCHED = {
    "none.html": NO_TAG,
    "head.html": f"<head>{SCRIPT}</head>",
    "body.html": f"<title>Hello</title>{SCRIPT}<body>",
    "open.html": f"<commentd-thread>{SCRIPT}",
    "latin.html": f"<p>caf\xe9{SCRIPT}",
    "notes.txt": SCRIPT,
}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A site that a generator has made."""
    folder = tmp_path / "public"
    pages = {path: before + after for path, (before, after, _) in BUILT.items()}
    for path, text in (pages | UNTOUCHED).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("latin-1" if "latin" in path else "utf-8"))
    (folder / "ü.html").chmod(0o604)
    return folder


def render(app: App, built: Path, *options: str) -> tuple[int, str, str]:
    settings = {"COMMENTD_DATABASE_PATH": inside.database_path(app)}
    settings |= {"COMMENTD_SERVER_PUBLIC_URL": SERVICE}
    return run_here(built.parent, "render", built.name, *options, **settings)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_rendering_puts_comments_into_each_page_and_touches_nothing_else(
    app: App, visitor: Visitor, built: Path
) -> None:
    ids = {
        path: visitor.say(f"On {path}.", page_url=url)["comment"]["id"]
        for path, (_, _, url) in BUILT.items()
    }
    before = files(built)
    code, told, faults = render(app, built, "--dry-run")
    assert (code, files(built) == before, "byte 0xe9" in faults) == (1, True, True)
    assert told == (
        "pages rendered: 4\npages unchanged: 0\npages without a thread: 3\npages skipped: 2\n"
        "this was a dry run: nothing is written\n"
    )
    assert [line.split(": ")[0] for line in faults.splitlines()] == [
        f"public/{name}.html" for name in ("latin", "open")
    ]

    render(app, built)
    after = files(built)
    assert {path for path in after if after[path] != before[path]} == {*BUILT}
    for path, (start, end, url) in BUILT.items():
        text = after[path].decode()
        assert text.startswith(start)
        assert text.endswith(f"</commentd-thread>{end}")
        tree = Tree(text[len(start) : len(text) - len(end)])
        (page,) = tree.all("commentd-thread", "page")
        assert (page, tree.all("li", "data-id")) == (url, [str(ids[path])])
        assert f"On {path}." in tree.text
    assert (built / "ü.html").stat().st_mode & 0o777 == 0o604
    assert Tree(after["post/index.html"].decode()).all("section", "lang") == ["de"]

    assert render(app, built)[1].startswith("pages rendered: 0\npages unchanged: 4\n")
    assert files(built) == after
    inside.set_status(app, ids["ü.html"], "deleted")
    assert render(app, built)[1].startswith("pages rendered: 1\npages unchanged: 3\n")
    assert b"On \xc3\xbc" not in files(built)["ü.html"]


def test_rendering_accepts_every_spelling_of_a_closing_tag(
    app: App, visitor: Visitor, built: Path
) -> None:
    visitor.say("Hello.", page_url="/own/")
    for path in UNTOUCHED:
        (built / path).unlink()
    page = "<commentd-thread page=/own/>old</Commentd-Thread\n><i>after</i>"
    (built / "own.html").write_text(page, "utf-8")
    assert render(app, built)[0] == 0
    text = (built / "own.html").read_text("utf-8")
    assert text.endswith("</commentd-thread><i>after</i>")
    assert "Hello." in Tree(text).text


def test_rendering_keeps_what_the_page_says_of_its_element(
    app: App, visitor: Visitor, built: Path
) -> None:
    for number in range(3):
        visitor.say(f"No. {number}", page_url="/own/")
    for path in UNTOUCHED:
        (built / path).unlink()
    tag = "<commentd-thread class=x page='/own/' sort=oldest limit=2 lang=\"zh-HK\" theme=dark"
    tag += " heading='a data-mark'"
    (built / "own.html").write_text(f"<i>{tag}>old</commentd-thread>{SCRIPT}</i>", "utf-8")
    assert render(app, built, "--style", "link")[0] == 0
    text = (built / "own.html").read_text("utf-8")
    assert text.startswith(f'<i>{tag} data-mark="')
    assert text.endswith(f"</commentd-thread>{SCRIPT}</i>")
    tree = Tree(text)
    assert tree.all("li", "data-id") == ["1", "2"]
    assert tree.all("section", "lang") == ["zh-TW"]
    assert tree.all("h2", "class") == ["heading"]
    assert tree.all("link", "href")[0].startswith(f"{SERVICE}/fragment.css?faces=")
    assert "<style>" not in text


def test_rendering_over_http_gives_the_same_files(app: App, visitor: Visitor, built: Path) -> None:
    visitor.say("hi", page_url="/post/")
    inside.sql(app, "UPDATE comment SET html = ?", f"<p>{'as long as many ' * 200_000}</p>")
    with service(app) as url:
        url = url.replace("comments.test", "127.0.0.1")
        place = url.removeprefix("http:").encode()
        for path, text in files(built).items():
            (built / path).write_bytes(text.replace(WITHOUT_SCHEME.encode(), place))
        assert render(app, built, "--from", url)[1].startswith("pages rendered: 4\n")
        thread = Tree((built / "post/index.html").read_text("utf-8"))
        assert thread.all("li", "data-id") == ["1"]
    before = files(built)
    code, told, faults = render(app, built, "--from", url)
    assert (code, files(built) == before) == (1, True)
    assert "\npages skipped: 1\n" in told
    assert re.fullmatch("public/a/b.html: http.*: .* refused; the pages after it .*\n", faults)
    assert render(app, built / "missing")[0] == 1


def test_rendering_skips_a_page_that_the_service_refuses(
    app: App, visitor: Visitor, built: Path
) -> None:
    refused = f"<commentd-thread page={'x' * 2049}></commentd-thread>"
    with service(app) as url:
        for number, options in enumerate(
            [[], ["--from", url.replace("comments.test", "127.0.0.1")]]
        ):
            (built / "a.html").write_text(refused, "utf-8")
            (built / "z.html").write_text(f"<commentd-thread id=z{number}></commentd-thread>")
            code, _, faults = render(app, built, *options)
            assert (code, b"data-mark" in files(built)["z.html"]) == (1, True)
            assert "url_too_long" in re.findall("public/a.html: (.*)", faults)[0]
            assert files(built)["a.html"] == refused.encode()


@pytest.mark.slow
def test_two_renderings_at_once_take_turns(app: App, visitor: Visitor, built: Path) -> None:
    visitor.say("hi", page_url="/post/")
    command = [
        sys.executable,
        str(Path(__file__).parent.parent / "commentd.py"),
        "render",
        built.name,
    ]
    settings = {"COMMENTD_DATABASE_PATH": inside.database_path(app)}
    settings |= {"COMMENTD_SERVER_PUBLIC_URL": SERVICE}
    other = os.open(built, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    before = files(built)
    with subprocess.Popen(
        command, cwd=built.parent, env={**os.environ, **settings}, stderr=subprocess.PIPE, text=True
    ) as second:
        assert second.stderr
        said = second.stderr.readline()
        assert said == f"commentd: another render writes into {built.name}: waiting\n"
        assert files(built) == before
        assert render(app, built, "--dry-run")[1].startswith("pages rendered: 4\n")
        os.close(other)
        second.communicate()
    third = subprocess.run(
        command, cwd=built.parent, env={**os.environ, **settings}, capture_output=True, text=True
    )
    assert third.stdout.startswith("pages rendered: 0\npages unchanged: 4\n")


def test_rendering_follows_no_link_out_of_the_folder(app: App, built: Path) -> None:
    for path in UNTOUCHED:
        (built / path).unlink()
    linked_file = built.parent / "outside.html"
    linked_file.write_text(SCRIPT)
    (built / "linked.html").symlink_to(linked_file)
    (built / ".commentd.part").symlink_to(linked_file)
    (built / "again.html").symlink_to("ü.html")
    (built / "stored").write_text(f"<i>{SCRIPT}")
    (built / "named.html").symlink_to("stored")
    code, told, faults = render(app, built)
    assert (code, told) == (
        1,
        "pages rendered: 5\npages unchanged: 0\npages without a thread: 0\npages skipped: 1\n",
    )
    assert faults == (
        f"public/linked.html: it is a link to {linked_file}, which is outside of the folder\n"
    )
    assert linked_file.read_text() == SCRIPT
    links = ("linked.html", ".commentd.part", "again.html", "named.html")
    assert all((built / name).is_symlink() for name in links)
    page_of = [Tree((built / name).read_text()).all("commentd-thread", "page") for name in links]
    assert page_of == [[], [], ["/%C3%BC.html"], ["/named.html"]]


def test_rendering_leaves_no_other_file_in_the_public_folder(app: App, built: Path) -> None:
    for path in UNTOUCHED:
        (built / path).unlink()
    old, young = built / "a/.commentd-abc.part", built / ".commentd-def.part"
    for part in (old, young):
        part.write_text("left by a run that was killed")
    os.utime(old, (0, 0))
    names = {*files(built)} - {"a/.commentd-abc.part"}
    assert render(app, built)[0] == 0
    assert {*files(built)} == names


def test_rendering_on_a_full_disk_leaves_the_pages_whole_and_no_part_file(
    app: App, built: Path
) -> None:
    with (built / "a/b.html").open("a") as page:
        page.write("long " * 1_000_000)
    before = files(built)
    most = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000_000, most[1]))
    try:
        code, told, faults = render(app, built)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, most)
        signal.signal(signal.SIGXFSZ, ignored)
    after = files(built)
    assert (code, sorted(after), after["a/b.html"]) == (1, sorted(before), before["a/b.html"])
    assert told.startswith("pages rendered: 3\n")
    assert "public/a/b.html: File too large\n" in faults


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
@pytest.mark.parametrize(("module", "step"), [(tempfile, "mkstemp"), (os, "replace")])
def test_rendering_ends_where_no_page_can_be_written_any_more(
    app: App, built: Path, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, fault: int
) -> None:
    before = files(built)

    def fail(*values: Any) -> None:
        raise OSError(fault, os.strerror(fault))

    monkeypatch.setattr(module, step, fail)
    code, told, faults = render(app, built)
    assert (code, files(built) == before) == (1, True)
    assert told.startswith("pages rendered: 0\n")
    said = f"public/a/b.html: {os.strerror(fault)}; the pages after it stay as they are\n"
    assert faults == said


@pytest.mark.root
def test_a_rendered_page_keeps_its_owner_and_rights(app: App, built: Path) -> None:
    page = built / "ü.html"
    os.chown(page, 4321, 4322)
    page.chmod(0o640)
    render(app, built)
    kept = page.stat()
    assert (kept.st_uid, kept.st_gid, kept.st_mode & 0o7777) == (4321, 4322, 0o640)
    assert b"<commentd-thread" in page.read_bytes()


BROKEN = {
    "open-tag": "<a ",
    "open-names": "<a",
    "open-quote": '<a "',
    "open-value": '<a b="',
    "odd-values": "<a b='\" c=",
    "comments": "<!-",
    "comment": "<!-- ",
    "cdata": "<![CDATA[",
    "scripts": "<script ",
    "script": "<script>",
    "ends": "</script ",
    "threads": "<commentd-thread ",
    "spaces": "<a =  ",
}


def test_broken_html_slows_no_rendering_and_stops_no_other_page(app: App, built: Path) -> None:
    for path in UNTOUCHED:
        (built / path).unlink()
    for name, piece in BROKEN.items():
        (built / f"b-{name}.html").write_text(piece * 60_000)
    (built / "c.html").write_bytes(b"\xe9<commentd-thread></commentd-thread>")
    code, told, faults = render(app, built)  # for hours, if it reads anything twice
    assert told.startswith("pages rendered: 4\npages unchanged: 0\n")
    named = [line.partition(": ")[0] for line in faults.splitlines()]
    assert (code, named) == (1, ["public/b-threads.html", "public/c.html"])


def test_rendering_reads_quotes_in_a_page_as_html_does(app: App, built: Path) -> None:
    page = built / "quotes.html"
    start = "<p class=it's><p '><p title='a>b' alt = \"<!--\" data-x=a\"b>\n"
    page.write_text(f"{start}{SCRIPT}</html>")
    render(app, built)
    assert page.read_text().startswith(f"{start}{SCRIPT}<commentd-thread ")
