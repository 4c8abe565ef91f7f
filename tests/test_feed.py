"""Reading elsewhere: the feed, a thread as a plain page, and the figures for Prometheus."""

import html
import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, parse_qsl, quote, urlencode, urljoin, urlsplit

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import settings as how
from hypothesis import strategies as st

from commentd import App, Config, __version__, make_app, zone_named
from support import inside
from support.admin import moderate
from support.admin import owner as owner  # a fixture
from support.client import CANARY, PAGE, Visitor
from support.database import dump
from support.feed import CHARS, Feed, ThreadPage
from support.notifications import BLOG, EMAIL_TEXTS, SERVICE, USUAL
from support.words import WORDS
from support.world import FakeWorld

MINUTE, HOUR, DAY = 60, 3600, 86400

TEXTS = [
    "</script><script>alert(1)</script>",
    "<!-- <script> -->]]><![CDATA[",
    "&lt;b&gt; &amp; &nbsp; &#0; \" ' ` = {} %s {0} {{json}} {{title}} {{body}} \\1 \\g<0>",
    "x\n\n\ufffe\uffff\ufeff\u202e\U0001f600\U0010ffff",
    "[x](javascript:alert(1)) ![x](https://evil.example/x.png) <img src=x onerror=alert(1)>",
    "* a\n* b\n\n> q\n\n```\n<b>\n```\n~~s~~ **b** `c` https://lu.example/?a=1&b=2",
]
PATHS = ("/feed.atom", f"/feed.atom?url={PAGE}", f"/thread?url={PAGE}")


class FeedVisitor(Visitor):
    """Knows that the thread is a page, and the feed is XML."""

    def check_response(self, path: str, method: str, response: Any, status: int, text: str) -> None:
        super().check_response(path, method, response, status, text)
        assert CANARY not in text
        assert not re.search(r"[\w.]+@e\.cn|203\.0\.113\.7", text)


@pytest.fixture
def settings() -> dict[str, Any]:
    return {**USUAL, "site_name": "Ann's <blog> & more"}


@pytest.fixture
def visitor(app: App) -> FeedVisitor:
    return FeedVisitor(app)


def post_comment(visitor: Visitor, content: str = "hi", **fields: Any) -> int:
    number: int = visitor.say(content, **fields)["comment"]["id"]
    return number


def post_any_text(visitor: Visitor, **fields: Any) -> Any:
    """The comment that was made of any text; None where it was refused."""
    body = {"page_url": PAGE, "nickname": "Ann", "content": "hi", "captcha_token": "x", **fields}
    raw = json.dumps(body).encode()
    response = visitor.post("/comments", raw, content_type="application/json", status="*")
    return response.json["comment"] if response.status_int == 200 else None


# The feed


def feed(visitor: Visitor, **query: Any) -> Feed:
    return Feed(visitor.get("/feed.atom", query))


def number_of(entry: dict[str, str]) -> int:
    """The id of a comment, which the link of its entry ends with."""
    return int(entry["link"].rpartition("-")[2])


def test_the_feed_of_a_page_has_its_comments(visitor: FeedVisitor, fake_world: FakeWorld) -> None:
    first = post_comment(visitor, "One *two*", nickname="Lu & <Li>", email="lu@e.cn")
    fake_world.time += 61
    posted = visitor.say("second")
    post_comment(visitor, "elsewhere", page_url="/other/")
    fake_world.time += 60
    path, proof = f"/comments/{posted['comment']['id']}", {"edit_token": posted["edit_token"]}
    visitor.patch_json(path, {"content": "second thought", **proof})
    found = feed(visitor, url=PAGE)
    query = urlencode({"url": PAGE})
    assert found.title == f"Ann's <blog> & more · {PAGE}"
    assert found.links["self"] == f"{SERVICE}/feed.atom?{query}"
    assert found.links["alternate"] == BLOG + PAGE
    assert found.updated == "2026-11-18T11:08:41Z"
    newest, oldest = found.entries
    at, markup = "2026-11-18T11:06:40Z", visitor.listing(sort="oldest")["comments"][0]["html"]
    entry = {"id": oldest["id"], "title": f"Lu & <Li> · {PAGE}", "name": "Lu & <Li>"}
    entry |= {"link": f"{BLOG}{PAGE}#comment-{first}", "published": at, "updated": at}
    assert oldest == {**entry, "html": markup}
    assert "<em>two</em>" in oldest["html"]
    assert newest["published"] == "2026-11-18T11:07:41Z"
    assert newest["updated"] == "2026-11-18T11:08:41Z"
    assert newest["html"].strip() == "<p>second thought</p>"


def test_the_feed_of_the_blog_has_the_newest_fifty_of_its_own_pages(visitor: FeedVisitor) -> None:
    numbers = [post_comment(visitor, f"c{n}", page_url=f"/p{n % 3}/") for n in range(55)]
    post_comment(visitor, "foreign", page_url="https://other.example/x")
    post_comment(visitor, "no page", page_url="a key")
    found = feed(visitor)
    assert found.title == "Ann's <blog> & more"
    assert found.links["self"] == f"{SERVICE}/feed.atom"
    assert found.links["alternate"] == BLOG
    assert [number_of(entry) for entry in found.entries] == numbers[:4:-1]
    assert found.entries[0]["link"] == f"{BLOG}/p0/#comment-{numbers[-1]}"
    one = feed(visitor, url="/p0/")
    assert [e["html"].strip() for e in one.entries] == [f"<p>c{n}</p>" for n in range(54, -1, -3)]


def test_feeds_and_their_entries_keep_their_ids_over_versions(
    visitor: FeedVisitor, app: App
) -> None:
    """Otherwise a reader of feeds would show all comments as new."""

    def lasting_id(*words: str) -> str:
        return f"urn:commentd:{inside.seal(app, 'feed', *words)[:32]}"

    created_at = inside.now(app)
    number = str(post_comment(visitor))
    of_blog, of_page = feed(visitor), feed(visitor, url=PAGE)
    assert of_blog.id == lasting_id("site")
    assert of_page.id == lasting_id("page", PAGE.rstrip("/"))
    for found in (of_blog, of_page):
        assert [each["id"] for each in found.entries] == [
            lasting_id("comment", number, str(created_at))
        ]


def test_a_feed_without_comments_was_updated_when_all_clocks_began(visitor: FeedVisitor) -> None:
    assert feed(visitor, url=PAGE).updated == "1970-01-01T00:00:00Z"


def test_a_feed_has_fifty_and_a_thread_says_what_does_not_fit(visitor: FeedVisitor) -> None:
    root = post_comment(visitor, "root")
    numbers = [post_comment(visitor, f"c{n}", parent_id=root) for n in range(51)]
    assert [number_of(entry) for entry in feed(visitor, url=PAGE).entries] == numbers[:0:-1]
    assert [href for href in thread(visitor).hrefs if href.endswith(f"#comment-{root}")]


def test_all_spellings_of_a_page_have_its_feed_and_one_canonical_thread(
    visitor: FeedVisitor,
) -> None:
    number, link = post_comment(visitor, "hi", page_url="/日记/x/"), f"{BLOG}/{quote('日记')}/x/"
    for url in ("/日记/x", f"{BLOG}/%E6%97%A5%E8%AE%B0/x/index.html?utm_source=y#z"):
        (entry,) = feed(visitor, url=url).entries
        assert entry["link"] == f"{link}#comment-{number}"
        page = thread(visitor, url, lang="de")
        assert page.links["canonical"] == link
        assert page.hrefs == [link]
        assert page.data["@id"] == link


def test_a_page_that_is_a_route_in_the_fragment_is_linked_as_a_whole(visitor: FeedVisitor) -> None:
    for page_url in ("/#/日记/x", "/app#!x"):
        number = post_comment(visitor, "hi", page_url=page_url)
        for n in range(51):
            post_comment(visitor, f"c{n}", page_url=page_url, parent_id=number)
        link = BLOG + quote(page_url, safe="/#!")
        assert {entry["link"] for entry in feed(visitor, url=page_url).entries} == {link}
        page = thread(visitor, page_url)
        assert link in page.hrefs
        assert page.data["comment"][0]["url"] == link


def test_a_hidden_comment_is_in_no_feed_and_no_plain_thread(
    visitor: FeedVisitor, owner: Visitor
) -> None:
    post_comment(visitor, "seen by all", nickname="Seen")
    number = post_comment(
        visitor, "secret words", nickname="Nobody", website="https://hidden.example/"
    )
    for path in PATHS:
        assert "secret words" in visitor.get(path).text
    for status in ("spam", "deleted", "waiting"):
        moderate(owner, [number], status)
        for path in PATHS:
            text = visitor.get(path).text
            assert "seen by all" in text
            words = ("secret", "Nobody", "hidden.example", f"comment-{number}")
            assert not [word for word in words if word in text], (status, path)


def test_feeds_and_plain_threads_that_have_not_changed_are_not_sent_again(
    visitor: FeedVisitor,
) -> None:
    for number, path in enumerate(PATHS):
        post_comment(visitor, f"first {number}")
        first = visitor.get(path)
        etag = first.headers["ETag"]
        assert re.fullmatch('"[0-9a-f]+"', etag)
        for sent in (etag, f'"x", {etag}'):
            again = visitor.get(path, headers={"If-None-Match": sent}, status=304)
            assert again.body == b""
            for name in ("ETag", "Cache-Control", "Vary"):
                assert again.headers[name] == first.headers[name]
        assert visitor.get(path, headers={"If-None-Match": '"x"'}).body == first.body
        head = visitor.head(path)
        assert (head.headers["ETag"], head.body) == (etag, b"")
        post_comment(visitor, f"second {number}")
        fresh = visitor.get(path, headers={"If-None-Match": etag}, status=200)
        assert f"second {number}" in fresh.text
        assert fresh.headers["ETag"] != etag


def test_feeds_and_plain_threads_may_be_cached_and_ignore_tokens(visitor: FeedVisitor) -> None:
    post_comment(visitor, "hi")
    for path in PATHS:
        plain = visitor.get(path)
        seconds = re.fullmatch(r"public, max-age=(\d+)", plain.headers["Cache-Control"])
        assert seconds
        assert 0 < int(seconds[1]) <= HOUR
        assert {"Origin", "Authorization"} <= {*plain.headers["Vary"].split(", ")}
        assert "Set-Cookie" not in plain.headers
        signed = visitor.get(path, headers={"Authorization": "Bearer of-nobody"})
        assert signed.body == plain.body
        if "feed" in path:
            assert "sandbox" in plain.headers["Content-Security-Policy"]


@given(content=st.text(min_size=1, max_size=200), nickname=st.text(min_size=1, max_size=30))
@example(content="\x0b\x0c\x7f", nickname="\x85")
@example(content="\ufffe\uffff", nickname="x\ufffex")
@example(content="]]>", nickname="]]>")
@how(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_feed_is_always_well_formed(visitor: FeedVisitor, content: str, nickname: str) -> None:
    if kept := post_any_text(visitor, content=content, nickname=nickname):
        entry = feed(visitor, url=PAGE).entries[0]
        assert entry["name"] == "".join(CHARS.findall(kept["nickname"]))
        assert squeezed(entry["html"]) == squeezed(kept["html"])


def squeezed(text: str) -> str:
    """As a reader of XML may hand it on: without what has no place there, CR LF as LF."""
    return "".join(CHARS.findall(text)).replace("\r\n", "\n").replace("\r", "\n")


def test_a_poisoned_row_breaks_no_feed(visitor: FeedVisitor, db: sqlite3.Connection) -> None:
    """By an older program, or an import."""
    post_comment(visitor, "before")
    number = post_comment(visitor, "poisoned")
    post_comment(visitor, "after")
    bad = "\x00\x01\x08\x0b\x1b\x7f\ufffe\uffff</content></entry>]]>&#1;<script>alert(1)</script>"
    values = (bad, bad, bad, "", number)
    sql = "UPDATE comment SET nickname = ?, content = ?, html = ?, website = ? WHERE id = ?"
    db.execute(sql, values)
    found = feed(visitor, url=PAGE)
    after, poisoned, before = (entry["html"].strip() for entry in found.entries)
    assert (after, before) == ("<p>after</p>", "<p>before</p>")
    assert poisoned == "\x7f]]&gt;"
    assert "<script>alert" not in visitor.get("/thread", {"url": PAGE}).text


def test_a_page_that_is_not_the_blogs_has_a_feed_without_addresses(visitor: FeedVisitor) -> None:
    for url in ("https://other.example/a?b=1&c=2", "a key", "javascript:alert(1)"):
        post_comment(visitor, "hi", page_url=url)
        found = feed(visitor, url=url)
        assert [entry["link"] for entry in found.entries] == [""]
        assert "alternate" not in found.links
        assert found.title.endswith(url)
        assert dict(parse_qsl(urlsplit(str(found.links["self"])).query)) == {"url": url}


@pytest.mark.parametrize("peer", ["127.0.0.1", "198.51.100.9"])
def test_no_request_header_changes_a_url_in_a_feed(
    config: Config, fake_world: FakeWorld, peer: str
) -> None:
    lies = {
        **{f"X-Forwarded-{name}": "evil.example" for name in ("Host", "Server", "Prefix")},
        **dict.fromkeys(("X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Scheme"), "ftp"),
        **dict.fromkeys(("X-Original-URL", "X-Rewrite-URL"), "/evil.example"),
        "Forwarded": "proto=ftp;host=evil.example",
        "Host": "evil.example",
    }
    for public in ("", SERVICE):  # not even by the proxy that is named
        usual = {**USUAL, "server_public_url": public, "server_trusted_proxy": ("127.0.0.1/32",)}
        with closing(make_app(replace(config, **usual), fake_world.world, rounds=1)) as app:
            visitor = FeedVisitor(app, peer)
            post_comment(visitor, "hi")
            for path in (*PATHS, "/admin"):
                plain, response = visitor.get(path), visitor.get(path, headers=lies)
                assert response.body == plain.body
                assert {*response.headers.items()} == {*plain.headers.items()}
                assert "evil" not in response.text


# A thread as a page


def thread(visitor: Visitor, url: str = PAGE, **query: Any) -> ThreadPage:
    return ThreadPage(visitor.get("/thread", {"url": url, **query}))


@pytest.mark.parametrize("settings", [{"site_timezone": zone_named("Pacific/Kiritimati")}])
def test_dates_of_threads_and_fragments_are_in_the_time_zone_of_the_blog(
    visitor: FeedVisitor,
) -> None:
    post_comment(visitor, "hi")
    assert thread(visitor).texts["time"] == ["Nov 19, 2026, 01:06 UTC+14"]
    fragment = visitor.get("/fragment", {"url": PAGE, "lang": "en"}).text
    assert 'title="Nov 19, 2026, 01:06 UTC+14"' in fragment
    assert ">Nov 19, 2026</time>" in fragment


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({"site_timezone": zone_named("UTC")}, "Nov 18, 2026, 11:06 UTC"),
        ({"site_timezone": zone_named("Asia/Kathmandu")}, "Nov 18, 2026, 16:51 UTC+5:45"),
        ({"site_timezone": zone_named("America/New_York")}, "Nov 18, 2026, 06:06 UTC-5"),
        ({"site_timezone": zone_named("America/St_Johns")}, "Nov 18, 2026, 07:36 UTC-3:30"),
        ({"site_timezone": zone_named("Pacific/Marquesas")}, "Nov 18, 2026, 01:36 UTC-9:30"),
        ({"site_timezone": zone_named("UTC+0:05")}, "Nov 18, 2026, 11:11 UTC+0:05"),
    ],
)
def test_a_time_is_shown_with_the_hours_and_minutes_of_its_zone(
    visitor: FeedVisitor, shown: str
) -> None:
    post_comment(visitor, "hi")
    assert thread(visitor).texts["time"] == [shown]


def test_a_plain_thread_needs_no_javascript(
    visitor: FeedVisitor, owner: Visitor, fake_world: FakeWorld
) -> None:
    root = post_comment(visitor, "A *question*", nickname="Lu <b>", email="lu@e.cn")
    fake_world.time += 1
    reply = owner.widget.say("An answer", nickname="", parent_id=root)["comment"]["id"]
    below = post_comment(visitor, "Thanks", parent_id=reply)
    other = post_comment(visitor, "Another")
    visitor.post_json("/comment/like", {"id": root})
    page = thread(visitor, lang="en")
    assert (page.lang, page.dir) == ("en", "ltr")
    assert page.texts["title"] == [f"Comments on {PAGE}"]
    assert page.numbers == [root, reply, below, other]
    assert page.texts["bdi"] == ["Lu <b>", "Owner", "Ann", "Ann"]
    assert page.texts["time"] == ["Nov 18, 2026, 19:06 UTC+8"] * 4
    written = ["A question", "An answer", "Thanks", "Another"]
    assert [text.strip() for text in page.written] == written
    assert page.texts["em"] == ["question"]
    assert "Admin" in page.texts["span"]
    assert page.hrefs == [BLOG + PAGE]
    links = {"icon": "data:,", "stylesheet": "thread.css"}
    links["alternate"] = f"feed.atom?{urlencode({'url': PAGE})}"
    links["canonical"] = BLOG + PAGE
    assert page.links == links
    data = {"@context": "https://schema.org", "@type": "WebPage", "commentCount": 4}
    comments = [
        json_ld_of(root, "A *question*", "Lu <b>", 0, likes=1),
        json_ld_of(reply, "An answer", "Owner", 1),
        json_ld_of(below, "Thanks", "Ann", 1),
        json_ld_of(other, "Another", "Ann", 1),
    ]
    assert page.data == {**data, "@id": BLOG + PAGE, "url": BLOG + PAGE, "comment": comments}


def json_ld_of(number: int, text: str, name: str, later: int, likes: int = 0) -> dict[str, Any]:
    return {
        "@type": "Comment",
        "url": f"{BLOG}{PAGE}#comment-{number}",
        "text": text,
        "datePublished": f"2026-11-18T11:06:4{later}Z",
        "author": {"@type": "Person", "name": name},
        "upvoteCount": likes,
    }


def test_texts_of_readers_stay_text_in_a_plain_thread(visitor: FeedVisitor) -> None:
    name = "</script>{{body}}"
    for number, text in enumerate(TEXTS):
        url = f"/{number}/"
        post_comment(visitor, text, nickname=name, page_url=url)
        page = thread(visitor, url)
        (comment,) = page.data["comment"]
        assert (comment["text"], comment["author"]["name"]) == (text, name)
        assert page.texts["bdi"] == [name]
        raw = visitor.get("/thread", {"url": url}).text
        (script,) = re.findall("(?s)<script[^>]*>(.*?)</script>", raw)
        assert not re.search("[<>&\u2028\u2029]", script)
        assert json.loads(script) == page.data


HOSTILE = [
    "javascript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "mailto:x@evil.example",
    '/"><script>alert(1)</script>',
    "/' onmouseover='alert(1)",
    "//evil.example/x",
    "/\\evil.example",
    "\\\\evil.example\\x",
    "https://evil.example/y",
    "HTTPS://EVIL.example/z",
    "https://blog.example@evil.example/",
    "https://blog.example.evil.example/",
    "https:evil.example",
    "/{{body}}{{json}}",
    "/\\1\\g<0>",
    "/x?a=1&b=2&lt;",
    "/..//evil.example",
]


def test_no_page_url_makes_a_plain_thread_link_elsewhere(visitor: FeedVisitor) -> None:
    for url in HOSTILE:
        for known in (False, True):
            if known:
                post_comment(visitor, "hi", page_url=url)
            page = thread(visitor, url, lang="en")
            assert page.texts["h1"] == [f"Comments on {url}"]
            for href in page.hrefs:
                assert (urlsplit(href).scheme, urlsplit(href).netloc) == ("https", "blog.example")
            alternate = page.links["alternate"]
            assert parse_qs(urlsplit(alternate).query) == {"url": [url]}
            assert urljoin(f"{SERVICE}/thread", alternate).startswith(f"{SERVICE}/feed.atom?")
            canonical = page.links.get("canonical", "")
            assert canonical in page.hrefs or canonical.startswith(f"{SERVICE}/thread?")
            assert page.data["commentCount"] == len(page.data["comment"]) == int(known)
            assert len(feed(visitor, url=url).entries) == int(known)


def test_a_removed_comment_keeps_its_place_in_a_plain_thread(
    visitor: FeedVisitor, owner: Visitor
) -> None:
    root = post_comment(visitor, "secret root", nickname="Nobody")
    posted = visitor.say("a reply", parent_id=root)
    reply, proof = posted["comment"]["id"], {"edit_token": posted["edit_token"]}
    visitor.patch_json(f"/comments/{reply}", {"content": "second thought", **proof})
    lonely = post_comment(visitor, "secret too", nickname="Nobody")
    for number in (root, lonely):
        moderate(owner, [number], "deleted")
    page = thread(visitor, lang="en")
    assert page.numbers == [root, reply]
    assert "This comment was removed." in page.texts["p"]
    assert "edited" in page.texts["span"]
    assert [comment["text"] for comment in page.data["comment"]] == ["second thought"]
    assert page.data["commentCount"] == 1
    raw = visitor.get("/thread", {"url": PAGE}).text
    assert not [word for word in ("secret", "Nobody") if word in raw]
    moderate(owner, [reply], "spam")
    assert thread(visitor).numbers == []


def test_a_long_plain_thread_has_pages_that_link_to_one_another(
    visitor: FeedVisitor, owner: Visitor
) -> None:
    numbers = [post_comment(visitor, f"c{n}") for n in range(20)]
    page = thread(visitor)
    assert page.numbers == numbers
    assert not {"prev", "next"} & {*page.links}
    numbers += [post_comment(visitor, f"c{n}") for n in range(20, 45)]
    pinned = numbers.pop(30)
    owner.post_json("/admin/comments", {"ids": [pinned], "pinned": True})
    pages, query = [], "?" + urlencode({"url": PAGE, "lang": "en"})
    while query:
        page = ThreadPage(visitor.get(f"/thread{query}"))
        pages.append(page)
        assert page.links["canonical"] == BLOG + PAGE
        query = page.links.get("next", "").removeprefix("thread")
        ways = [href for href in page.hrefs if href.startswith("thread?")]
        assert ways == [page.links[rel] for rel in ("prev", "next") if rel in page.links]
        assert page.lang == "en"
    first, second, third = (page.numbers for page in pages)
    assert (first, second, third) == ([pinned, *numbers[:19]], numbers[19:39], numbers[39:])
    assert "Pinned" in pages[0].texts["span"]
    assert ["prev" in page.links for page in pages] == [False, True, True]
    assert ThreadPage(visitor.get("/" + pages[2].links["prev"])).numbers == second
    beyond = thread(visitor, page=1_000_000, lang="en")
    assert beyond.numbers == []
    assert "No comments yet." in beyond.texts["p"]
    for number in ("0", "-1", "1.0", "x", "", "1000001", "٣", "1&page=2"):
        reply = visitor.get(f"/thread?url=/&page={quote(number, safe='=&')}", status=400)
        assert reply.json["code"] == "page_invalid", number


@pytest.mark.parametrize("settings", [{"comments_tables": True}])
def test_each_table_on_the_thread_page_is_scrolled_by_keys(visitor: FeedVisitor) -> None:
    table = "| a |\n|---|\n| 1 |\n"
    post_comment(visitor, f"{table}\nand\n\n{table}\nno more")
    text = "".join(visitor.get("/thread", {"url": PAGE}).text.split())
    cells = "<thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody>"
    scrolled = f'<divclass="wide"tabindex="0"><table>{cells}</table></div>'
    assert f"{scrolled}<p>and</p>{scrolled}<p>nomore</p></div>" in text


def test_each_page_of_a_plain_thread_is_canonical_where_the_blog_has_no_url_of_it(
    visitor: FeedVisitor,
) -> None:
    for number in (1, 2):
        page = thread(visitor, "a key", page=number)
        assert page.links["canonical"] == f"{SERVICE}/thread?url=a+key&page={number}"


def test_a_plain_thread_speaks_each_language(visitor: FeedVisitor, owner: Visitor) -> None:
    root = post_comment(visitor, "hi")
    post_comment(visitor, "hi", parent_id=root)
    moderate(owner, [root], "deleted")
    by_name = {tag.lower(): words for tag, words in WORDS.items()} | {"zh": WORDS["zh-CN"]}
    for language, words in EMAIL_TEXTS.items():
        page = thread(visitor, lang=language)
        assert (page.lang, page.dir) == (language, "rtl" if language == "ar" else "ltr")
        assert page.texts["title"] == [words["thread_title"].format(page=PAGE)]
        assert by_name[language]["comment"] in page.texts["p"]
        assert words["thread_back"] in page.texts["a"]
        moderate(owner, [root], "waiting")
        waiting = by_name[language]["unapproved"]
        assert waiting in thread(visitor, lang=language).texts["p"]
        moderate(owner, [root], "deleted")
        assert thread(visitor, "/none/", lang=language).texts["p"][-1] == words["thread_none"]
    encoded = thread(visitor, quote("/你好/"), lang="en")
    assert encoded.texts["title"] == [EMAIL_TEXTS["en"]["thread_title"].format(page="/你好/")]


def test_a_plain_thread_speaks_the_language_of_its_comments_unless_another_is_asked_for(
    visitor: FeedVisitor,
) -> None:
    for language, content in {"zh": "你好", "ja": "こんにちは、世界", "en": "hello"}.items():
        [
            post_comment(visitor, each, page_url=f"/{language}/")
            for each in (content, f"{content}!", "谢谢")
        ]
        assert thread(visitor, f"/{language}/", lang="").lang == language
    for requested, language in (("de-AT", "de"), ("zh-TW", "zh-tw"), ("</script>", "en")):
        assert thread(visitor, "/ja/", lang=requested).lang == language


def test_a_feed_reader_finds_the_feed_and_a_browser_the_style_of_a_thread(
    visitor: FeedVisitor,
) -> None:
    number = post_comment(visitor, "hi")
    raw = visitor.get("/thread", {"url": PAGE}).text
    (tag,) = re.findall('<link rel="alternate"[^>]*>', raw)
    assert 'type="application/atom+xml"' in tag
    href = html.unescape(re.findall('href="([^"]*)"', tag)[0])
    (entry,) = Feed(visitor.get(f"/{href}")).entries
    assert number_of(entry) == number
    style = visitor.get("/" + thread(visitor).links["stylesheet"])
    assert style.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "noindex" not in raw
    unspoken = visitor.get("/thread", {"url": "Buy this"}).text
    assert '<meta name="robots" content="noindex">' in unspoken


# Figures for Prometheus

METRICS = pytest.mark.parametrize("settings", [{**USUAL, "server_metrics": True}])


def metrics(visitor: Visitor) -> dict[str, float]:
    """What stands in the text format of Prometheus, 0.0.4."""
    reply = visitor.get("/metrics")
    assert reply.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    sample = r'(commentd_[a-z_]+(?:\{[a-z]+="[a-z]+"(?:,[a-z]+="[a-z]+")?\})?) (\d+)\n'
    assert re.fullmatch(f"({sample})+", reply.text)
    return {name: float(value) for name, value in re.findall(sample, reply.text)}


def test_metrics_are_off_unless_the_owner_wants_them(visitor: FeedVisitor) -> None:
    response, unknown = visitor.get("/metrics", status=404), visitor.get("/nothing", status=404)
    assert response.body == unknown.body
    assert {*response.headers.items()} == {*unknown.headers.items()}


@METRICS
def test_the_metrics_are_right(app: App, visitor: FeedVisitor, owner: Visitor) -> None:
    assert metrics(visitor)['commentd_comments{status="visible"}'] == 0
    numbers = [post_comment(visitor, f"c{n}", page_url=f"/p{n % 2}/") for n in range(6)]
    for number, status in zip(numbers, ("spam", "spam", "deleted", "waiting"), strict=False):
        moderate(owner, [number], status)
    for ip in ("198.51.100.1", "198.51.100.2"):
        Visitor(app, ip).post_json(f"/comments/{numbers[-1]}/report", {"reason": "x"})
    visitor.listing(url="/p0/")
    app.tick()
    sums = metrics(visitor)
    assert {name: n for name, n in sums.items() if name.startswith("commentd_comments")} == {
        'commentd_comments{status="visible"}': 2,
        'commentd_comments{status="waiting"}': 1,
        'commentd_comments{status="spam"}': 2,
        'commentd_comments{status="deleted"}': 1,
        "commentd_comments_reported": 1,
    }
    assert (sums["commentd_accounts"], sums["commentd_pages"]) == (1, 2)
    assert sums["commentd_views"] == 1
    assert sums['commentd_learnt{kind="spam"}'] == 2
    undelivered = {name: n for name, n in sums.items() if name.startswith("commentd_outbox")}
    assert [*undelivered.values()] == [0] * 12
    app.deliver()
    add = "INSERT INTO outbox (event, recipient, tries, due_at, expires_at) VALUES (?, ?, ?, ?, 0)"
    now = inside.now(app)
    for event, recipient, tries, due_at in (
        ("", "a@example.com", 9, None),
        ("", "b@example.com", 1, now + 5),
        ("", "c@example.com", 0, now + 5),  # not tried yet
        ("created", "chat.family", 3, None),
        ("created", "webhook", 3, None),
        ("rebuild", "webhook", 0, now - 601),
    ):
        inside.sql(app, add, event, recipient, tries, due_at)
    inside.set_settings(app, webhook_url="https://hook.example/")
    assert {name: n for name, n in metrics(visitor).items() if "outbox" in name and n} == {
        'commentd_outbox{kind="email",state="failed"}': 1,
        'commentd_outbox{kind="email",state="retried"}': 1,
        'commentd_outbox{kind="chat",state="failed"}': 1,
        'commentd_outbox{kind="webhook",state="failed"}': 1,
        'commentd_outbox{kind="rebuild",state="late"}': 1,
    }


@METRICS
def test_metrics_reveal_nothing_but_counts_and_change_nothing(
    app: App, visitor: FeedVisitor, owner: Visitor
) -> None:
    post_comment(visitor, "words", nickname="Lu", page_url="/a-page/", email="lu@e.cn")
    owner.post_json("/admin/blocks", {"kind": "word", "value": "casino"})
    app.tick()
    before = dump(inside.database_path(app))
    response = visitor.get("/metrics", headers={"Authorization": "Bearer of-nobody"})
    assert "public" not in response.headers["Cache-Control"]
    words = ["words", "Lu", "a-page", "e.cn", "casino", "Owner", "blog", __version__]
    assert not [word for word in (*words, inside.database_path(app)) if word in response.text]
    assert visitor.get("/metrics").text == response.text
    app.tick()
    assert dump(inside.database_path(app)) == before
