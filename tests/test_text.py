"""What is made of texts that strangers send: strict JSON, names, page keys, email and IP addresses,
Markdown; then what a real browser makes of all that."""

import contextlib
import html
import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import mistune
import pytest
import webtest
from hypothesis import example, given
from hypothesis import strategies as st
from playwright.sync_api import Browser, BrowserContext, Request

import commentd
from commentd import (
    App,
    Images,
    Sticker,
    StickerPack,
    TextFeatures,
    clean,
    folded,
    has_controls,
    hosts_in,
    looks_like,
    masked,
    networks_of,
    page_name,
    plain_ip,
    proper_email,
    proper_nickname,
    proper_website,
    safe_html,
    strict_json,
)
from support import inside
from support.blog import Pages, blog, say, service
from support.campaign import Campaign
from support.client import CANARY, Visitor
from support.hostile_text import ATTACKS, REL, assert_allowed, hostile_fields, writing
from support.words import ADMIN, WORDS

TEXT = st.text(st.characters(codec="utf-8"))
STATIC = Path(commentd.__file__).parent / "static"


def assert_kept(proper: Callable[[str], str], cases: list[tuple[str, str]]) -> None:
    for typed, kept in cases:
        assert (typed, proper(typed)) == (typed, kept)


def assert_refused(proper: Callable[[Any], object], texts: Sequence[str | bytes]) -> None:
    taken = []
    for text in texts:
        with contextlib.suppress(ValueError):
            taken.append((text, proper(text)))
    assert taken == []


# Strict JSON

NOT_STRICT = [
    b"",
    b" ",
    b"{",
    b"}",
    b"{}{}",
    b'{"a":1,}',
    b"{'a':1}",
    b'{"a":1} // b',
    b'{"a"}',
    b"{a:1}",
    b"[]",
    b'[{"a":1}]',
    b"null",
    b"true",
    b"1",
    b'"text"',
    b'{"a":NaN}',
    b'{"a":1,"a":1}',
    b'{"a":{"b":1,"b":2}}',
    b'{"a":1,"\\u0061":2}',
    b'{"a":Infinity}',
    b'{"a":-Infinity}',
    b'{"a":1e999}',
    b'{"a":[-1e999]}',
    b'{"a":"\\ud800"}',
    b'{"a":"\\udc00\\ud800"}',
    b'{"\\udfff":1}',
    b'{"a":["\\ud83d x"]}',
    b'{"a":"\xff"}',
    b'{"a":"\xc0\xaf"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"caf\xe9"}',
    b'\xef\xbb\xbf{"a":1}',
    '{"a":1}'.encode("utf-16"),
    '{"a":1}'.encode("utf-16-le"),
    b'{"a":"\n"}',
    b'{"a":"\x00"}',
    b'{"a":"\x1f"}',
    b'{"a":01}',
    b'{"a":+1}',
    b'{"a":.5}',
    b'{"a":' + b"9" * 5000 + b"}",
    b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b"[" * 60_000,
]


def test_json_that_is_not_strict_is_refused() -> None:
    assert_refused(strict_json, NOT_STRICT)


def test_json_that_is_strict_is_read() -> None:
    values: list[dict[str, Any]] = [
        {},
        {"a": [None, True, 1.5, -(2**70), 10**4000, "文😀\u0000\u2028\ufeff"]},
        {"a": "[" * 100 + '\\"{' * 100, '"[': ["}]" * 100]},
        {"a": [[]] * 1000},
        {"a\\": "\\", "b": '\\\\"'},
    ]
    for value in values:
        for ascii_only in (True, False):
            assert strict_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


# Names of pages

OWN = {
    "https://blog.example",
    "https://xn--bcher-kva.example",
    "https://blog.example:8443",
    "http://localhost:4000",
}

SAME_PAGES: dict[str, list[str]] = {
    "/2026/hello": [
        "/2026/hello",
        "/2026/hello/",
        "/2026/hello//",
        "/2026/hello/index.html",
        "/2026/hello/index.html/",
        "/2026/hello?",
        "/2026/hello/#comments",
        "/2026/hello?#x",
        "/2026/hello/?utm_source=a&utm_medium=b",
        "/2026/hello/index.html?fbclid=1#top",
        "/2026/hello?gclid=1&msclkid=2&mc_cid=3&mc_eid=4&yclid=5&igshid=6&spm=7&utm_x",
        "/2026/hello/?t=1796000517531",
        "/2026/hello?_=1796000517531",
        "/2026/hello?_t=1796000517531",
        "/2026/hello?from=timeline",
        "/2026/hello?from=singlemessage&isappinstalled=0",
        "/2026/hello?from=groupmessage&nsukey=a%2Bb&isappinstalled=1",
        "/2026/hello?_hsenc=1&_gl=2",
        "/2026/hello?wbraid=1&gbraid=2&twclid=3&ttclid=4&_ga=5&mkt_tok=6&mc_cid=7",
        "/2026/hello?srsltid=a&vd_source=b&mtm_campaign=c&igsh=d&_hsmi=e&gad_source=f&dclid=g",
        "/2026/hello?ysclid=1&li_fat_id=2",
        "/2026/hello?&",
        "/2026/%68%65llo",
        "/2026/hello?%75tm_source=a",
        "https://blog.example/2026/hello/",
        "http://blog.example/2026/hello",
        "HTTPS://BLOG.Example/2026/hello/index.html",
        "//blog.example/2026/hello",
        "https://blog.example:443/2026/hello",
        "http://blog.example:80/2026/hello",
        "https://blog.example:8443/2026/hello/",
        "http://localhost:4000/2026/hello/",
    ],
    "/": [
        "/",
        "//",
        "/index.html",
        "#",
        "#top",
        "?",
        "?utm_source=a",
        "https://blog.example",
        "https://blog.example/",
        "https://blog.example#x",
        "https://blog.example?fbclid=1",
        "https://blog.example/index.html",
    ],
    "/文章/你好": [
        "/文章/你好",
        "/文章/你好/",
        "/%E6%96%87%E7%AB%A0/%e4%bd%a0%E5%A5%BD",
        "/文章/%E4%BD%A0好/index.html",
        "https://blog.example/%E6%96%87%E7%AB%A0/你好/",
    ],
    "/café": ["/café", "/cafe\u0301", "/caf%C3%A9", "/cafe%CC%81/", "/caf%c3%a9"],
    "/a?b=1&c=2": [
        "/a?b=1&c=2",
        "/a/?b=1&c=2",
        "/a?b=1&utm_source=x&c=2#d",
        "/a/index.html?b=1&&c=2",
    ],
    "/?p=7": [
        "/?p=7",
        "?p=7",
        "/index.html?p=7",
        "https://blog.example?p=7",
        "//blog.example/?p=7",
    ],
    "/#/post/1": [
        "/#/post/1",
        "#/post/1",
        "/index.html#/post/1",
        "https://blog.example/#/post/1",
        "/#/post/1/",
        "/#/post/1//",
        "/#/post/1?id=section",
        "/#/post/1/?id=section",
        "/#/post/1?id=_1-start",
        "/?utm_source=a#/post/1?id=章节",
        "/#/post/1?id=%E7%AB%A0",
    ],
    "/box": ["/box/", "/box/index.html"],
    "/#/box": ["/#/box/", "/#/box//"],
    "/docs": ["/docs/#/", "/docs#/", "/docs/#/?id=top", "/docs/index.html#/"],
    "/#/post?id=7": ["/#/post?id=7", "/#/post/?id=7", "#/post?id=7"],
    "/#/post?id=65f0c0ffee0123456789abcd": ["/#/post/?id=65f0c0ffee0123456789abcd"],
    "/#/post?id=c0ffee65f00123456789abcd": ["/#/post/?id=c0ffee65f00123456789abcd"],
    "/#/post?id=abcdef01-2345-6789-abcd-ef0123456789": [],
    "/#/post?id=dQw4w9WgXcQ": ["/#/post/?id=dQw4w9WgXcQ"],
    "/#/guide": ["/#/guide?id=décor-2", "/#/guide?id=face", "/#/guide?id=a1-b2-c3"],
    "/#/post?lang=de": ["/#/post?lang=de", "/#/post/?id=a&lang=de", "/#/post?lang=de&id=a"],
    "/app#!/post": ["/app#!/post", "/app/#!/post", "/app?utm_source=a#!/post"],
    "/app#!post": ["/app#!post"],
    "/a%2Fb": ["/a%2Fb", "/a%2fb", "/a%2fb/"],
    "/100%25": ["/100%25", "/100%25/"],
    "/a%3Fb%23c": ["/a%3Fb%23c", "/a%3fb%23c"],
    "/%FF%AF": ["/%FF%AF", "/%ff%af"],
    "/%FF你:": ["/%ff%E4%BD%A0%3A"],
    "//other.example": [
        "https://other.example",
        "http://other.example/",
        "//other.example/index.html",
        "https://OTHER.example:443/",
        "http://other.example:80",
    ],
    "//xn--9krq6q.example/a": ["https://博客.example/a", "https://xn--9krq6q.example:443/a/"],
    "/of-bücher": ["https://bücher.example/of-bücher", "https://xn--bcher-kva.example/of-bücher/"],
    "//other.example/a": ["https://other.example/a", "http://other.example/a/#x"],
    "//other.example:8443/a": ["https://other.example:8443/a"],
    "//blog.example:9000/a": ["https://blog.example:9000/a"],
    "//sub.blog.example/a": ["https://sub.blog.example/a"],
    "//u@blog.example/a": ["https://u@blog.example/a"],
    "post-17": ["post-17", "post-17/", "post-17?utm_source=a", "post-17#x", "%70ost-17"],
    "urn:isbn:3": ["urn:isbn:3"],
    "/a b": ["/a b", "/a%20b"],
    "/a+b": ["/a+b", "/a%2Bb", "/a%2bb", "https://blog.example/a%2Bb/"],
    "/a(b)": ["/a(b)/", "/a%28b%29/", "/a(b%29", "/%61%28b%29/index.html"],
    "/!$&'()*+,:;=@": ["/%21%24%26%27%28%29%2A%2B%2C%3A%3b%3D%40", "/!$&'()*+,%3a;=%40"],
    "/C++": ["/C++/", "/C%2B%2B/", "/C%2b+"],
    "//other.example/C++": ["https://other.example/C%2B%2B", "//other.example/C++/"],
    "/a?b=%2B": ["/a?b=%2B", "/a/?b=%2b"],
    "/a?t=5": ["/a?t=5"],
    "/a?from=home": ["/a?from=home"],
    "/a?t=179600051753": ["/a?t=179600051753"],
    "/a?_gallery=1": ["/a?_gallery=1"],
    "/a?from=timelines": ["/a?from=timelines"],
    "http%3A//b": ["http%3A//b", "http%3a//b"],
    "/A": ["/A", "/%41"],
    "/a%0Ab": ["/a%0Ab", "/a%0ab"],
}


def test_the_spellings_of_a_page_have_one_page_key() -> None:
    for key, texts in SAME_PAGES.items():
        for text in [key, *texts]:
            assert (text, page_name(text, OWN).key) == (text, key)


def test_a_page_keeps_its_first_spelling_but_for_tracking() -> None:
    cases = [
        ("/a/index.html?utm_source=x&b=%e4%bd%a0#top", "/a/index.html?b=%e4%bd%a0"),
        ("https://Blog.example:443/a/?fbclid=1", "https://Blog.example:443/a/"),
        ("/#/route?utm_source=x", "/#/route?utm_source=x"),
        ("/?from=timeline#/route/?id=section", "/#/route/"),
        ("/#/route?id=%E7%AB%A0", "/#/route"),
        ("/#/route?id=aB", "/#/route?id=aB"),
        ("/a%28b%29/?t=1796000517531", "/a%28b%29/"),
        ("/a?utm=1&xutm_a=2&spm_=3#x", "/a?utm=1&xutm_a=2&spm_=3"),
        ("?utm_source=x#y", "/"),
        ("文章", "文章"),
    ]
    for sent, kept in cases:
        assert page_name(sent, OWN).page_url == kept


def test_the_widget_leaves_out_the_same_tracking() -> None:
    script = (STATIC / "own.js").read_text("utf-8")
    listed = script.partition("const TRACKING = [")[2].partition("\n]")[0]
    assert listed
    words = "[a-z_]{2,}"
    assert {*re.findall(words, listed)} == {*re.findall(words, commentd.TRACKING.pattern)}


ROUTES_OF_DOCSIFY = [
    *("section", "_2nd-part", "a-b-c", "%E7%AB%A0", "%e7%ab%a0", "deadbeefdeadbeef", ""),
    *("7", "2nd", "aB", "section&page=2", "%zz", "f47ac10b-58cc-4372-a567-0e02b2c3d479"),
]


def test_the_widget_takes_the_same_for_a_heading_within_a_route(browser: Browser) -> None:
    script = (STATIC / "embed.js").read_text("utf-8")
    pattern = script.partition("const HEADING = ")[2].partition("\n")[0]
    page = browser.new_page()
    for value in ROUTES_OF_DOCSIFY:
        route = f"#/guide?id={value}"
        in_widget = page.evaluate(f"route => route.replace({pattern}, '$1')", route)
        is_heading = page_name(f"/{route}", OWN).page_url == "/#/guide"
        assert (in_widget == "#/guide") == is_heading, route
    page.close()


def test_different_pages_have_different_page_keys() -> None:
    cases = [
        ("https://blog.example//other.example/a", "https://other.example/a"),
        ("/a%C2%85", "/a%85"),
        ("/a%E2%80%A8", "/a%20%28"),
    ]
    for one, other in cases:
        assert page_name(one, OWN).key != page_name(other, OWN).key


PIECES = st.sampled_from(
    [
        "/",
        "//",
        "a",
        "é",
        "e\u0301",
        "你",
        "%",
        "%2",
        "%25",
        "%2F",
        "%2f",
        "%41",
        "%E4%BD%A0",
        "%FF",
        "%C2%85",
        "%E2%80%A8",
        "%CD%BE",
        "?",
        "&",
        "=",
        "#",
        "#/",
        "#!",
        "index.html",
        "/index.html",
        "utm_source",
        "fbclid=1",
        "%75tm_",
        "http:",
        "https:",
        "HTTP:",
        "blog.example",
        "x.example",
        ":80",
        ":443",
        ":8443",
        "@",
        "\\",
        " ",
        "\u212a",
        "\u037e",
        "[",
        "]",
        "%28",
        "(",
        "%3A",
        "%40",
        "%2B",
        "#/?id=a",
        "id=1",
        "t=1796000517531",
        "from=timeline",
    ]
)
URLS = st.lists(PIECES | st.text(st.characters(codec="utf-8"), max_size=2), min_size=1).map("".join)


@given(text=URLS)
@example(text="///%%41a")
@example(text="//:80:80")
def test_the_page_key_of_a_page_key_is_itself(text: str) -> None:
    if has_controls(text):
        return
    name = page_name(text, OWN)
    assert name.key
    assert not has_controls(name.key)
    assert page_name(name.key, OWN).key == name.key
    assert page_name(name.page_url, OWN) == name


# Nicknames

NICKNAMES = [
    ("Ann", "Ann"),
    (" Ann\u3000\n", "Ann"),
    ("Ann-Marie O'Neil", "Ann-Marie O'Neil"),
    ("李雷", "李雷"),
    ("e\u0301", "é"),
    ("Ａnn", "Ａnn"),
    ("أحمد", "أحمد"),
    ("नमस्ते", "नमस्ते"),
    ("x" * 64, "x" * 64),
    ("👩" * 64, "👩" * 64),
    (" " + "x" * 64 + " ", "x" * 64),
    ("7", "7"),
    ("👩‍💻", "👩‍💻"),
    ("👩🏽‍🚀", "👩🏽‍🚀"),
    ("❤️‍🔥 Ann", "❤️‍🔥 Ann"),
    ("🏳️‍🌈", "🏳️‍🌈"),
    ("👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦"),
    ("🇨🇳", "🇨🇳"),
    ("🤷‍♂️", "🤷‍♂️"),
    ("1️⃣", "1️⃣"),
    ("a\u0323\u0302\u0307", "ậ\u0307"),
    ("Z\u0301\u0302\u0303", "Ź\u0302\u0303"),
    ("x\u0301\u0302\u0303", "x\u0301\u0302\u0303"),
    ("a\u00a0b", "a\u00a0b"),
    ("<b>&{0}%s", "<b>&{0}%s"),
]
PASTED_NICKNAMES = [
    *((f"{mark}Ann{mark}", "Ann") for mark in "\u200b\u200e\u200f\ufeff\u2060\u00ad\u061c\u180e"),
    *((f" {mark} Ann {mark} ", "Ann") for mark in "\u202a\u202d\u202e\u2800\u3164\u034f\u115f\t"),
    ("\u2068Ann\u2069", "Ann"),
    ("\u202bمحمد\u202c", "محمد"),
    ("\ufeff \u200b李雷\u200b", "李雷"),
    ("Ann\u200d", "Ann"),
    ("Ann\u200c", "Ann"),
    ("👩\u200d", "👩"),
    ("\u200d👩", "👩"),
    ("Ann\ufe0f", "Ann"),
    ("Ann\U000e0100", "Ann"),
    ("Ann\U000e0067\U000e007f", "Ann"),
    ("a\nb", "a b"),
    ("a\r\nb", "a b"),
    ("a\x0bb", "a b"),
    ("a\x0cb", "a b"),
    ("a\x85b", "a b"),
    ("a\u2028b", "a b"),
    ("a\u2029b", "a b"),
    ("a\x7fb", "ab"),
    ("a\x1b[1mb", "a[1mb"),
    ("a\tb", "a b"),
    ("Tom\u200e Smith", "Tom Smith"),
    ("محمد\u200f (علي)", "محمد (علي)"),
    ("\u2066Ann\u2069 \u2066B.\u2069", "Ann B."),
    ("សុខ\u200bចាន់", "សុខចាន់"),
    ("สม\u200bชาย", "สมชาย"),
    ("မောင်\u200bမောင်", "မောင်မောင်"),
    ("a\x08b", "ab"),
    ("\x1eAnn\x02", "Ann"),
    ("محمد\u200c علی", "محمد علی"),
    ("علی\u200c", "علی"),
    ("می\u200c\u200cخواهم", "می\u200cخواهم"),
]
# Each needs what is invisible in it.
JOINED_NICKNAMES = [
    "محمد\u200cعلی",
    "علی\u200cرضا",
    "نور\u200cالدین",
    "می\u200cخواهم",
    "क्\u200dष",
    "शर्\u200cमा",
    "गर्\u200dयो",
    "दर्\u200dया",
    "ශ්\u200dරී",
    "ක්\u200dෂ",
    "നന്\u200d",
    "അവന്\u200d",
    "കൺ\u200cമണി",
    "র\u200d্যাব",
    "ক্\u200cষ",
    "ರ\u200d್ಯ",
    "ರಾಜ್\u200cಕುಮಾರ್",
    "க்\u200cஷ",
    "రాజ్\u200cకుమార్",
    "నాగార్జున\u200cరెడ్డి",
    "ક્\u200dષ",
    "ਖ੍\u200dਯ",
    "李\U000e0100華",
    "葛\U000e0100城",
    "辻\U000e0101",
    "☕\ufe0e",
    "☕\ufe0f",
    "❤\ufe0e",
    "ℹ\ufe0f",
    "©\ufe0e",
    "❤\ufe0f\u200d🔥",
    "👩🏽\u200d🚀",
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f Tom",
    "ᠪᠠ\u180eᠠ",
    "ᠭ\u180b",
]
NO_NICKNAMES = [
    "",
    " ",
    "\u3000\n",
    "x" * 65,
    "👩" * 65,
    "a\0b",
    "a\u202eb",
    "a\u202db",
    "a\u2066b",
    "a\u2069b",
    "a\u200eb",
    "a\u200fb",
    "a\u061cb",
    "a\u200bb",
    "a\u200cb",
    "a\u200db",
    "a\u2060b",
    "a\ufeffb",
    "a\u00adb",
    "a\u180eb",
    "\u200d",
    "小\u200c明",
    "李\ufe0e明",
    "x\U000e0100y",
    "👩\u200da",
    "a\u200d👩",
    "👩\u200d\u200d💻",
    "\u3164",
    "\u115f\u1160",
    "a🏴\U000e0067b",
    "\u2800\u2800",
    "\uffa0",
    "\u0301",
    "\ufe0f",
    "\u200e\u2068\u2069",
    "\x1b\x02",
    "x\u0301\u0302\u0303\u0304",
    "\u0301" * 5 + "x",
    "x\u0301\ufe0f\u0302\ufe0f\u0303\ufe0f\u0304",
    "\ue000x",
    "x\U000e0041y",
    "x\ufff9y",
    "\ufdd0x",
    "\ud800x",
    "x\u0378",
    "站⻓",  # with a radical, which is no letter of a name
    *(f"An{hidden}n" for hidden in "\ufe0f\ufe00\u034f\u180b\u17b5\u1160\u3164\uffa0\u2800"),
]


def test_a_nickname_is_kept_with_the_joiners_that_its_script_needs() -> None:
    for name in JOINED_NICKNAMES:
        assert_kept(proper_nickname, [(name, name), (f"\u200f{name} \u200e", name)])
        assert looks_like(re.sub("[\u200c\u200d]", "", name), name)
        assert looks_like(name, re.sub("[\u200c\u200d]", "", name))


def test_invisible_characters_around_a_pasted_nickname_are_removed() -> None:
    assert_kept(proper_nickname, PASTED_NICKNAMES)


def test_a_nickname_is_kept_composed_and_trimmed() -> None:
    assert_kept(proper_nickname, NICKNAMES)


def test_a_nickname_hides_turns_and_piles_up_nothing() -> None:
    assert_refused(proper_nickname, NO_NICKNAMES)


ALIKE = {
    "admin100": [
        "admin 100",
        "ADMIN100",
        " A-d.m_i n 1 0 0 ",
        "аdmin100",
        "аԁмin100",
        "αdmin100",
        "Аdmin1ОО",
        "adm1nl00",
        "admln|oo",
        "ａｄｍｉｎ１００",
        "𝐚𝐝𝐦𝐢𝐧𝟏𝟎𝟎",
        "ⓐⓓⓜⓘⓝ100",
        "ádmïn100",
        "admın100",
        "admіn100",
        "admin100️",
        "ADMİN100",
        "admΙnΙOΟ",
        "ᴀᴅᴍɪɴ100",
        "🅰dmin100",
        "Ⲁdmin100",
        "ꭺdmin100",
        "ᗩdmin100",
        "ađmin1๐0",
        "adminʼ100",
        "adrnin100",
    ],
    "Boss": [
        "Boss (Author)",
        "Boss ✓",
        "Boss 博主",
        "【博主】Boss",
        "[Admin] BOSS",
        "Boss (Berlin",
        "Bоss Αuthor",
        "Boss — Автор",
        "B(o)ss",
        "站长Boss",
        "Boss （官方）",
        "Boss Админ",
        "Автор Boss",
        "Boss الإدارة",
        "Boss 官方",
        "Boss官方",
        "官方认证 Boss",
        "Boss verified",
        "Boss the author",
        "The official Boss",
        "BossBlogger",
        "Blogger Boss",
        "Boss 本人",
        "Boss 公式",
        "Boss 관리자",
        "Boss Владелец",
        "Boss, your host",
        "Boss ✅ verified",
        "Boss l’auteur",
        "Boss, die Autorin",
        "Boss (Redaktion)",
        "Moderador Boss",
        "Boss 本站",
        "系统 Boss",
        "Boss UP主",
        "Boss スタッフ",
        "Boss Редакция",
        "Boss System",
        "Bo55",
        "8oss",
        "bo$$",
        "B0$5",
        "8o55 (admin)",
        "Boss$",
        "Boss@",
        "Boss!",
        "Boss🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "Boss\ufe0f",
    ],
}


def test_nicknames_that_look_alike_count_as_the_same() -> None:
    for admin, names in ALIKE.items():
        assert [name for name in names if not looks_like(name, admin)] == []
    for other in ("Boss5", "Boss2", "Bobby", "Bossa", "Bosse", "Boss and friends", "The Boss"):
        assert not looks_like(other, "Boss"), other
    for other in ("admin", "admin10", "admin1000", "badmin100", "管理员", "..."):
        assert not looks_like(other, "admin100")
        assert not looks_like("admin100", other)


def test_letters_of_other_scripts_pass_for_latin_ones() -> None:
    cases = [
        ("Ηenry Μayz", "Henry Mayz"),
        ("HEΝRΥ MAYΖ", "Henry Mayz"),
        ("Ꮋenry Ꮇayz", "Henry Mayz"),
        ("հeոry mayz", "Henry Mayz"),
        ("Henry MaҮz", "Henry Mayz"),
        ("ꓮꓠꓠ", "Ann"),
        ("Bⲟss", "Boss"),
        ("Ivү", "Ivy"),
        ("ιвy", "Iby"),
        ("Łukasz", "Lukasz"),
        ("Иван", "ИВАН"),
        ("Lukasz", "Łukasz"),
        ("小明", "小明"),
        ("Ivү", "Ivү"),
        ("Воѕѕ", "Boss"),
        ("🦊", "🦊"),
    ]
    assert [case for case in cases if not looks_like(*case)] == []


def test_a_title_or_brackets_make_no_other_nickname() -> None:
    for admin in ("小明【博主】", "小明 (Berlin)", "小明"):
        assert looks_like("小明", admin)
        assert not looks_like("ᏣᎳ", admin), "no letter of Cherokee looks Chinese"
    for tag in WORDS:
        for badge in {WORDS[tag]["admin"], ADMIN[tag]["admin"]}:
            for name in ("Boss", "小明", "Иван", "محمد"):
                fault = f"static/languages/{tag}.json: titles lacks “{badge}”"
                assert looks_like(f"{name} {badge}", name), fault


HONEST = """
    Anna Ann Вера Рома Иван Олег Max_Иванов DJ_Олег Νίκος Ἑλένη Արամ Աննա ნინო नेहा محمد דוד สมชาย
    小明 小明Tom Tom老师 Tom小李 ミカ 김민수 Søren Bæk Łukasz Ivan Boris Bosse
    🦊 🐼 !!! ??? Author 博主
"""


def test_honest_nicknames_count_as_no_other() -> None:
    pairs = itertools.permutations(HONEST.split(), 2)
    assert [(one, other) for one, other in pairs if looks_like(one, other)] == []


# Email addresses and websites

NO_EMAILS = [
    "",
    "@",
    "ann",
    "ann@",
    "@b.cd",
    "ann@localhost",
    "a@b@c.de",
    "a b@c.de",
    "a@b c.de",
    ".a@b.cd",
    "a.@b.cd",
    "a..b@c.de",
    "a@.b.cd",
    "a@b..cd",
    "a@-b.cd",
    "a@b-.cd",
    "a@b_c.de",
    "a" * 65 + "@b.cd",
    "a@" + "b." * 126 + "c",
    "a@" + "b" * 64 + ".cd",
    '"a b"@c.de',
    "a@[1.2.3.4]",
    "Ann <ann@b.cd>",
    "ann@b.cd,bob@b.cd",
    "ann@b.cd bob@b.cd",
    "a\n@b.cd",
    "a@b.cd\r\nBcc: x@y.zz",
    "a\0@b.cd",
    "a\t@b.cd",
    "(a)a@b.cd",
    "a@b.cd(a)",
    "a\\@b.cd",
    "a:b@c.de",
    "аnn@example.com",
    "ann@exаmple.com",
    "𝐚nn@example.com",
    "ann﹫example.com",
    "ann@example․com",
    "mailto:",
    "mailto:mailto:a@b.cd",
    "ann@example.ⅽom",
    "ann@\u212aexample.com",
    "annı@example.com",
    "an\u200bn@example.com",
    "ann@exam\u00adple.com",
    "é@b.cd",
    "a@é.cd",
    "=?utf-8?q?x?=@b.cd",
    "=?us-ascii?b?YQ==?=@b.cd",
]
NO_WEBSITES = [
    "ann",
    "//ann.example",
    "/path",
    "localhost:80",
    "1.5",
    "ann@b.cd",
    "ann.example:x",
    "a.b c.de",
    "ftp://a.b",
    "javascript:alert(1)",
    "data:text/html,x",
    "JaVaScript://a.b/%0aalert(1)",
    "vbscript:x",
    "mailto:a@b.cd",
    "file:///etc/passwd",
    "http:",
    "http://",
    "http:///x",
    "http:a.b",
    "http:/a.b",
    "https://u@a.b",
    "https://u:p@a.b",
    "https://@a.b",
    "http://a b/",
    "http://a.b/x y",
    'http://a.b/"onload=',
    "http://a.b/'x",
    "http://a.b/<b>",
    "http://a.b\\@c.d",
    "http:\\\\a.b",
    "http://a.b/`",
    "http://a\t.b",
    "java\nscript:x",
    "http://a\0.b",
    "http://a.b:99999/",
    "http://a.b:x/",
    "http://[::1",
    "http://[x]/",
    "http://?x",
    "http://#x",
    "\u2028http://a.b/\u2028x",
    "http://a.b/\x1bx",
]


def test_an_email_address_has_one_spelling() -> None:
    cases = [
        ("ann@example.com", "ann@example.com"),
        (" Ann@Example.COM ", "ann@example.com"),
        ("a.b+tag@sub.example.co", "a.b+tag@sub.example.co"),
        ("o'neil@a-b.cd", "o'neil@a-b.cd"),
        ("a@xn--fsqu00a.cn", "a@xn--fsqu00a.cn"),
        ("a" * 64 + "@b.cd", "a" * 64 + "@b.cd"),
        ("a@" + "b." * 125 + "c", "a@" + "b." * 125 + "c"),
        ("{a}%s@b.cd", "{a}%s@b.cd"),
        ("ann＠example.com", "ann@example.com"),
        ("ａnn＠example。com。", "ann@example.com"),
        ("mailto:ann@example.com", "ann@example.com"),
        ("ann @ example.com", "ann@example.com"),
        ("ann@example.com.", "ann@example.com"),
        ("ann@example.com，", "ann@example.com"),
        ("\u00a0ann@example.com\n", "ann@example.com"),
        ("\u3000ann@b.cd\u3000", "ann@b.cd"),
        ("<ann@b.cd>", "ann@b.cd"),
        ("<xu@xenia.mx>", "xu@xenia.mx"),
        ("ann@b｡cd、", "ann@b.cd"),
        ("Mailto: ann@b.cd", "ann@b.cd"),
        ("\u2068ann@b.cd\u2069", "ann@b.cd"),
        ("\ufeffann@b.cd\u200b", "ann@b.cd"),
    ]
    assert_kept(proper_email, cases)
    assert_kept(proper_email, [(kept.upper(), kept) for _, kept in cases])


def test_a_look_alike_of_an_email_address_is_refused() -> None:
    assert_refused(proper_email, NO_EMAILS)


def test_a_website_is_kept_as_typed() -> None:
    cases = [
        ("https://ann.example", "https://ann.example"),
        (" http://a/ ", "http://a/"),
        ("HTTPS://Ann.Example:8443/é?a=b&c#d", "HTTPS://Ann.Example:8443/é?a=b&c#d"),
        ("http://[2001:db8::1]:80/", "http://[2001:db8::1]:80/"),
        ("http://李.cn", "http://李.cn"),
        ("https://a/?next=http://b@c", "https://a/?next=http://b@c"),
        ("ann.example", "https://ann.example"),
        ("www.Ann.example/a?b", "https://www.Ann.example/a?b"),
        ("博客.cn", "https://博客.cn"),
        ("ann.example:8080/", "https://ann.example:8080/"),
        ("\u200bhttps://a.b/\ufeff\u3000", "https://a.b/"),
        ("\u2068a.bc\u2069\n", "https://a.bc"),
        ("https://a.bc。", "https://a.bc"),
        ("https://a.bc/d、", "https://a.bc/d"),
        ("http：//a.bc/d：e", "http://a.bc/d：e"),
        ("ｈｔｔｐｓ：／／ａ。bc", "https://a.bc"),
        ("a。bc", "https://a.bc"),
        ("a．bc/d", "https://a.bc/d"),
        ("<https://a.bc/>", "https://a.bc/"),
    ]
    assert_kept(proper_website, cases)


def test_a_website_that_is_no_plain_web_url_is_refused() -> None:
    assert_refused(proper_website, NO_WEBSITES)


# IP addresses

FOUR = ("203.0.113.7", "203.0.113.0", [("203.0.113.7", 1)])
IPS: dict[str, tuple[str, str, list[tuple[str, int]]]] = {
    **dict.fromkeys((" 203.0.113.7:4711 ", "::ffff:203.0.113.7", "[::FFFF:CB00:7107]:80"), FOUR),
    "203.0.113.7": FOUR,
    "2001:DB8:12:34:0::1": (
        "2001:db8:12:34::1",
        "2001:db8:12::",
        [("2001:db8:12:34::/64", 1), ("2001:db8:12::/48", 10)],
    ),
    "[2001:db8::1]": ("2001:db8::1", "2001:db8::", [("2001:db8::/64", 1), ("2001:db8::/48", 10)]),
    "fe80::1%eth0": ("fe80::1", "fe80::", [("fe80::/64", 1), ("fe80::/48", 10)]),
    "::1": ("::1", "::", [("::/64", 1), ("::/48", 10)]),
}
NO_IPS = [
    "",
    "localhost",
    "junk",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    "1.2.3.4:",
    "1.2.3.4:x",
    "[::1",
    "::1]",
    "1:2",
    "7",
    "0x7f000001",
    "１.2.3.4",
    "1.2.3.4/8",
    "1.2.3.4, 5.6.7.8",
    "unix:",
    "<script>",
    "\0",
    "9" * 9999,
    ":::",
    ":",
    "1.2.3.4\n5.6.7.8",
]


def test_an_ip_address_is_read_masked_and_counted() -> None:
    for text, expected in (IPS | dict.fromkeys(NO_IPS, ("", "", [("", 1)]))).items():
        ip = plain_ip(text)
        networks = [(network.name, network.factor) for network in networks_of(ip)]
        assert (ip, masked(ip), networks) == expected, text
        assert plain_ip(ip) == ip


# Markdown to safe HTML


def test_the_checker_of_html_finds_forbidden_markup() -> None:
    for markup in (
        "<script>x</script>",
        "<p onclick=x>a</p>",
        "<a href='javascript:x'>a</a>",
        "<!-- x -->",
        "<?x?>",
        f'<a href="//x" rel="{REL}">a</a>',
        '<a href="http://x">a</a>',
        "<p>",
        "</p>",
        "<img src=x>",
        "<!DOCTYPE x>",
        f'<a href="http://x" title="t" rel="{REL}">a</a>',
        "<p style=x>a</p>",
        '<p class="language-x">a</p>',
        '<code class="x">a</code>',
    ):
        with pytest.raises((AssertionError, IndexError)):
            assert_allowed(markup)


# A blog with a sticker whose name means harm, and with pictures.
STICKER = Sticker(
    "cats_hello", """a"><b onload='x' """, Path("hello.png"), "image/png", "0" * 8, 24
)
IMAGES = Images(
    "https://comments.example",
    ("https://i.example", "https://*.many.example"),
    (StickerPack("cats", (STICKER,)),),
)


def test_no_attack_leaves_more_than_text() -> None:
    for attack in ATTACKS:
        for text in (attack, f"a {attack} b", f"> * {attack}\n\n{attack}"):
            markup, bare = safe_html(text), clean(text)
            assert_allowed(markup, bare)
            assert_allowed(IMAGES.shown_in(markup), IMAGES.shown_in(bare), has_images=True)
            assert (clean(markup), clean(bare)) == (markup, bare)


def test_a_picture_with_a_link_inside_stays_a_link() -> None:
    """Imported HTML can have one."""
    picture = '<a class="picture" href="https://i.example/x.png">'
    markup = f'{picture}<table><tr><td><a href="https://b.example">b</a></td></tr></table></a>'
    assert_allowed(IMAGES.shown_in(clean(markup)), has_images=True)


def test_an_attribute_of_foreign_html_is_kept_with_the_values_that_ours_has() -> None:
    cell = "<table><tbody><tr>{}</tr></tbody></table>".format
    kept = {
        '<ol start="007"></ol>': '<ol start="007"></ol>',
        '<ol start="-1"></ol>': "<ol></ol>",
        '<ol start="1234567890"></ol>': "<ol></ol>",
        cell('<td align="right"></td>'): cell('<td align="right"></td>'),
        cell('<td align="justify"></td>'): cell("<td></td>"),
        '<code class="x language-Go"></code>': '<code class="language-go"></code>',
        '<code class="x"></code>': "<code></code>",
        '<a class="picture"></a>': f'<a class="picture" rel="{REL}"></a>',
        '<a class="x" href="http:y"></a>': f'<a rel="{REL}"></a>',
        '<math display="block" class="x"></math>': '<math display="block"></math>',
        '<math display="none"></math>': "<math></math>",
    }
    assert {foreign: clean(foreign) for foreign in kept} == kept


def test_random_markdown_stays_within_the_allow_list(campaign: Campaign) -> None:
    for chance in campaign.rounds(1500):
        text = writing(chance)
        markup, bare = safe_html(text), clean(text)
        campaign.figures["links"] += markup.count("<a ")
        campaign.figures["characters"] += len(text)
        assert_allowed(markup, bare, clean(bare))
        assert clean(markup) == markup
        seen = IMAGES.shown_in(markup)
        assert_allowed(seen, IMAGES.shown_in(bare), has_images=True)
        campaign.figures["images"] += seen.count("<img")


def test_markdown_reads_well() -> None:
    cases = {
        "a\nb\n\nc": "<p>a<br>\nb</p>\n<p>c</p>\n",
        "a\\\nb": "<p>a<br>\nb</p>\n",
        "# Title #\n\n## Two": "<p><strong>Title</strong></p>\n<p><strong>Two</strong></p>\n",
        "**b** _i_ ~~s~~ `<c>`": "<p><strong>b</strong> <em>i</em> <del>s</del> "
        "<code>&lt;c&gt;</code></p>\n",
        "```Python\nif a < b:\n    c\n```": '<pre><code class="language-python">if a &lt; b:\n'
        "    c\n</code></pre>\n",
        "> a\n> b": "<blockquote>\n<p>a<br>\nb</p>\n</blockquote>\n",
        "* a\n* b": "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n",
        "a < b & c > d \"'": "<p>a &lt; b &amp; c &gt; d \"'</p>\n",
        "<b>bold</b>": "<p>&lt;b&gt;bold&lt;/b&gt;</p>\n",
    }
    links = {
        "[x](https://a.b/?c&d 'title')": ("https://a.b/?c&amp;d", "x"),
        "http://a.b/c": ("http://a.b/c", "http://a.b/c"),
        "<mailto:a@b.cd>": ("mailto:a@b.cd", "mailto:a@b.cd"),
        "![a cat](https://a.b/c.png)": ("https://a.b/c.png", "a cat"),
        "![](https://a.b/c.png)": ("https://a.b/c.png", "https://a.b/c.png"),
        "[![build](https://a.b/c.png)](https://d.e)": ("https://d.e", "build"),
    }
    for written, (url, text) in links.items():
        # An image is a link that says so.
        tag = '<a class="picture"' if written.startswith("!") else "<a"
        cases[written] = f'<p>{tag} href="{url}" rel="{REL}">{text}</a></p>\n'
    assert {written: safe_html(written) for written in cases} == cases


EVERYTHING = TextFeatures(formulas=True, tables=True)

# Characters and texts that have a meaning in Markdown at some places only.
COMMON_PIECES = [*"aé中 ,.(-1。\n", "\n\n"]
RARE_PIECES = [
    *"Zーß7!?'\")=:;/%@+#&！？、：；“”‘’《》（）「」…—～hH",
    "http:",
    "www.a.b",
    "a@b.cd",
    "--",
    "1.",
    "ﬀ",
    "²",
    "क",
    "\u3000",
]


def test_a_plain_text_shows_the_same_beside_a_rule_and_a_link(campaign: Campaign) -> None:
    for chance in campaign.rounds(2000):
        pieces = chance.choices(COMMON_PIECES, k=chance.randint(1, 10))
        pieces.insert(chance.randint(0, len(pieces)), chance.choice(RARE_PIECES))
        text = f"a{''.join(pieces)}".strip()
        alone = safe_html(text)
        assert safe_html(f"{text}\n\n***") == f"{alone}<hr>\n", text
        link = f'<p><a href="https://a.b" rel="{REL}">https://a.b</a></p>\n'
        assert safe_html(f"{text}\n\nhttps://a.b") == alone + link, text


def test_the_language_of_code_may_be_anything(caplog: pytest.LogCaptureFixture) -> None:
    named = {"c++": "c++", "C# x": "c#", " go": "go", "x" * 20: "x" * 20}
    nothing = ["&nbsp;", " &#32;", "&Tab; ", "&#xa0;&#160;", "js{1}", "x" * 21, "+", "é", 'a"b']
    for info, language in {**named, **dict.fromkeys(nothing, "")}.items():
        name = f' class="language-{language}"' if language else ""
        for fence in ("```", "~~~"):
            shown = safe_html(f"{fence}{info}\nx\n{fence}")
            assert shown == f"<pre><code{name}>x\n</code></pre>\n", info
    assert caplog.records == []


# A bare URL, in ⟦⟧ as it is linked, and the text beside it.
BARE_URLS = (
    """
See ⟦https://example.com/a⟧.
See ⟦https://example.com/a⟧, then ⟦http://b.example⟧!
Really? ⟦https://example.com/d⟧?
(see ⟦https://example.com/x/y/⟧).
⟦https://en.wikipedia.org/wiki/Foo_(bar)⟧
(⟦https://en.wikipedia.org/wiki/Foo_(bar)⟧)
⟦https://en.wikipedia.org/wiki/Foo_(bar)_(baz)⟧, and so on
⟦https://example.com/?q=(business))+ok⟧
⟦https://example.com/q⟧))).
"⟦https://example.com/a⟧" '⟦https://example.com/a⟧'
⟦https://example.com/a⟧... ⟦https://example.com/a⟧:
⟦https://example.com/a,b;c=1!d⟧;
⟦https://example.com/?a=1⟧&copy; ⟦https://example.com/?a=1&b=2⟧
⟦https://example.com/?x[]=1&y[]=2⟧ [⟦https://example.com/a⟧]
⟦https://example.com/~ann/*/a:b⟧*
⟦Https://Example.com/A⟧ ⟦HTTP://EXAMPLE.COM⟧
⟦http://localhost:4000/a⟧ ⟦http://127.0.0.1/⟧ ⟦https://example.com:8443/a⟧
⟦https://example.com/#/guide?id=a⟧ ⟦https://example.com/a#b⟧
xhttps://example.com/a https:// http://. https://? http://[::1]/
⟦https://example.com/a–b⟧ – ⟦https://example.com/a⟧— ⟦https://example.com/a⟧…
⟦https://example.com/a⟧’s “⟦https://example.com/a⟧” «⟦https://example.com/a⟧»
⟦https://example.com/a⟧👍 ⟦https://example.com⟧❤️ ⟦https://example.com/a⟧→
⟦https://example.com/caf%C3%A9⟧ ⟦https://example.com/café⟧ ⟦https://bücher.example/ä⟧
⟦https://web.archive.org/web/2020/https://example.com/⟧
请看⟦https://example.com/a⟧，谢谢。还有（⟦https://example.com/b⟧）吧
《x》⟦http://t.cn/RUy3HJN⟧《一尺》
⟦https://github.com⟧，好
⟦https://github.com⟧很好，见a.b
网站⟦https://www.example.com.cn⟧的
⟦https://github.com⟧是好网站.
打开⟦http://localhost:8080⟧就行 ⟦http://192.168.1.1⟧是路由器 ⟦https://例え.com:80⟧で
⟦https://example.com:8080⟧είναι ⟦http://127.0.0.1:4000/a⟧ ⟦http://127.0.0.1:4000⟧，好
⟦https://example.com/a⟧\u00ad ⟦https://exam\u00adple.com/lo\u00adng⟧，好
⟦https://example.com/a⟧。⟦https://example.com/b⟧；⟦https://example.com/c⟧！⟦https://example.com/d⟧？
⟦https://example.com/a⟧、⟦https://example.com/b⟧：⟦https://example.com/c⟧
“⟦https://example.com/a⟧”‘⟦https://example.com/b⟧’好
「⟦https://example.com/a⟧」『⟦https://example.com/b⟧』【⟦https://example.com/c⟧】〔⟦https://example.com/d⟧〕
（⟦https://example.com/a⟧）〈⟦https://example.com/b⟧〉［⟦https://example.com/c⟧］｛⟦https://example.com/d⟧｝
⟦https://example.com/a⟧——好 ⟦https://example.com/a⟧……好 ⟦https://example.com/a⟧～好
⟦https://example.com/a⟧　好 ⟦https://example.com/a⟧｜好 ⟦https://example.com/a⟧＞好
(⟦https://example.com/b⟧)吧 [⟦https://example.com/b⟧]吧
⟦https://example.com/a⟧,谢谢 ⟦https://example.com/a⟧!谢谢 ⟦https://example.com/a⟧;好
⟦https://example.com/%E4%BD%A0%E5%A5%BD⟧。好
⟦https://example.com/你好⟧。好
⟦https://example.com/你好/世界.html?查询=值#片段⟧，好
⟦https://zh.wikipedia.org/wiki/史蒂夫·乔布斯⟧。
⟦https://zh.wikipedia.org/wiki/Wikipedia:首页⟧）
⟦https://中文.com⟧，⟦https://中文.com/路径⟧。
⟦https://例子.中国/路径⟧。
⟦https://ja.wikipedia.org/wiki/東京_(曖昧さ回避)⟧について
⟦https://ja.wikipedia.org/wiki/スティーブ・ジョブズ⟧・
詳しくは⟦https://example.jp/記事⟧、または「⟦https://例え.jp⟧」をご覧ください。
⟦https://example.jp⟧です。⟦https://example.jp/a⟧〜
⟦https://example.com/a⟧｡｢⟦https://example.com/b⟧｣
⟦https://example.com/ａｂ⟧．
⟦https://example.kr/글⟧。 ⟦https://example.kr⟧에서
⟦https://fa.example/می‌خواهم⟧، و ⟦https://ar.example/مقالة⟧؟ ⟦https://ar.example/a⟧؛
⟦https://th.example/หน้า⟧๚ ⟦https://hi.example/पृष्ठ⟧।
⟦https://example.com/a⟧\u200b ⟦https://example.com/a⟧\u200f ⟦https://example.com/a⟧\ufeff
⟦https://example.com/a⟧\u2069 ⟦https://example.com/a⟧\u00a0b
<b>⟦https://example.com/a⟧</b>
""".encode()
    .decode("unicode-escape")
    .encode("latin-1")
    .decode()
    .strip()
    .splitlines()
)

# Markdown, and what is shown. A link is in ⟦⟧ as above.
SHOWN = {
    "<https://example.com/中文>，好": "⟦https://example.com/中文⟧，好",
    "`https://example.com/`，好": "<code>https://example.com/</code>，好",
    "https://example.com/`x`": "⟦https://example.com/⟧<code>x</code>",
    "**https://example.com/c**好": "<strong>⟦https://example.com/c⟧</strong>好",
    "**看https://example.com/c，好**吧": "<strong>看⟦https://example.com/c⟧，好</strong>吧",
    "*https://example.com/c*，好": "<em>⟦https://example.com/c⟧</em>，好",
    "_https://example.com/c_": "<em>⟦https://example.com/c⟧</em>",
    "~~https://example.com/c~~好": "<del>⟦https://example.com/c⟧</del>好",
    "[看https://example.com/a，好](https://b.example)": '<a href="https://b.example">看https://example.com/a，好</a>',
    # As in the HTML that somebody wrote, it stands in a link already.
    '<a href="https://b.example">https://example.com/a</a>': (
        '&lt;a href="https://b.example"&gt;https://example.com/a&lt;/a&gt;'
    ),
    "[好](https://中文.com/路径)": '<a href="https://中文.com/%E8%B7%AF%E5%BE%84">好</a>',
    "他说**“好”**吧": "他说<strong>“好”</strong>吧",
    "**真，**她": "<strong>真，</strong>她",
    "見る**「本」**です": "見る<strong>「本」</strong>です",
    "这是**“重点”**内容，还有**加粗。**后文": (
        "这是<strong>“重点”</strong>内容，还有<strong>加粗。</strong>后文"
    ),
    "用**`npm`**吧": "用<strong><code>npm</code></strong>吧",
    "**[好](https://b.example)**吧": '<strong><a href="https://b.example">好</a></strong>吧',
    "**스크립트(script)**라고": "<strong>스크립트(script)</strong>라고",
    '真*"好"*吧 真**(好)**吧': '真<em>"好"</em>吧 真<strong>(好)</strong>吧',
    "***“好”***吧": "<em><strong>“好”</strong></em>吧",
    "**《书》****“好”**": "<strong>《书》****“好”</strong>",
    "注意：**重要！**请看": "注意：<strong>重要！</strong>请看",
    "これは**重要。**です": "これは<strong>重要。</strong>です",
    "**葛󠄀城（市）**は": "<strong>葛󠄀城（市）</strong>は",
    "**नमस्ते**जी **ครับผมได้**ที่": "<strong>नमस्ते</strong>जी <strong>ครับผมได้</strong>ที่",
    "2**3**4 a*b*c * d * e": "2<strong>3</strong>4 a<em>b</em>c * d * e",
    'a**"b"**c snake_case_name': 'a**"b"**c snake_case_name',
    "\\*“好”\\*吧 `**“好”**吧`": "*“好”*吧 <code>**“好”**吧</code>",
    "「_好_」": "「<em>好</em>」",
    "\U00013428**“好”**吧": "\U00013428**“好”**吧",
}
BLOCKS = {
    "3. c\n4. d": '<ol start="3">\n<li>c</li>\n<li>d</li>\n</ol>\n',
    "2024. 好年份": '<ol start="2024">\n<li>好年份</li>\n</ol>\n',
    "0) 零": '<ol start="0">\n<li>零</li>\n</ol>\n',
    "1. a\n2. b": "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n",
    "    if a:\n        b": "<pre><code>if a:\n    b</code></pre>\n",
    "\tif a:\n\t\tb": "<pre><code>if a:\n\tb</code></pre>\n",
    "\n\n    if a:": "<pre><code>if a:</code></pre>\n",
    "   好\n": "好",
    "　　好": "好",
}


def link_to(url: str) -> str:
    scheme, host, path = re.findall("(?i)(https?://)([^/?#]+)(.*)", url)[0]
    href = html.escape(scheme + host + quote(path, safe="/?#%:@!$&()*+,;=~"))
    return f'<a href="{href}">{html.escape(url, quote=False)}</a>'


def with_links(text: str) -> str:
    """The HTML for a text with links in ⟦⟧."""
    return re.sub("⟦(.*?)⟧", lambda found: link_to(found[1]), text)


def rendered(paragraph: str) -> str:
    """The HTML of a comment without the attributes and the paragraph that all have."""
    return paragraph.replace(f' rel="{REL}"', "").removeprefix("<p>").removesuffix("</p>\n")


def markdown_cases() -> dict[str, str]:
    cases = {}
    for line in BARE_URLS:
        pieces = re.split("⟦(.*?)⟧", line)
        shown = [html.escape(piece, quote=False) for piece in pieces]
        shown[1::2] = map(link_to, pieces[1::2])
        cases["".join(pieces)] = "".join(shown)
    cases |= {written: with_links(shown) for written, shown in SHOWN.items()}
    return cases | BLOCKS


without_limits = pytest.mark.parametrize("settings", [{"limits_enabled": False}], ids=[""])


def previewed(visitor: Visitor, text: str) -> str:
    markup: str = visitor.post_json("/comments/preview", {"content": text}).json["html"]
    return markup


@without_limits
def test_a_url_ends_and_bold_begins_where_people_mean_it(visitor: Visitor) -> None:
    cases = markdown_cases()
    assert len(cases) >= 90
    shown = {text: rendered(previewed(visitor, text)) for text in cases}
    expected = {text: markup.replace("\xa0", "&nbsp;") for text, markup in cases.items()}
    assert {text: each for text, each in shown.items() if each != expected[text]} == {}


@without_limits
def test_a_comment_has_the_same_html_in_lists_previews_fragments_threads_and_feeds(
    visitor: Visitor,
) -> None:
    texts = [*markdown_cases()]
    for start in range(0, len(texts), 20):
        path = f"/{start}/"
        for text in texts[start : start + 20]:
            visitor.say(text, page_url=path)
        expected = [previewed(visitor, text) for text in texts[start : start + 20]]
        query = {"url": path, "limit": 100}
        listed = visitor.get("/comments", query).json["comments"]
        assert sorted(comment["html"] for comment in listed) == sorted(expected)
        for page in ("fragment", "thread"):
            shown = visitor.get(f"/{page}", query).text.replace(' tabindex="0"', "")
            assert [markup for markup in expected if markup.strip() not in shown] == []
        feed = ElementTree.fromstring(visitor.get("/feed.atom", query).text)
        contents = [each.text or "" for each in feed.iterfind("{*}entry/{*}content")]
        assert [markup for markup in expected if markup not in contents] == []


REPEATED = [
    "[",
    "![",
    "*",
    "**a",
    "_",
    "_a",
    "`",
    "`a``",
    "~",
    "~~a",
    "> ",
    "> - ",
    "- ",
    "- \n",
    "* a\n  ",
    "1. ",
    "<",
    "</",
    "<!--",
    "<a ",
    "&",
    "&#",
    "\\",
    "|",
    "[a](",
    "[a](b",
    "![a](",
    "[](<",
    "[a][",
    "[x]: y\n",
    "[a]: b '",
    "[[]]",
    "]",
    "***a",
    "*a _",
    "a\n=\n",
    "#",
    "\n",
    "```\n",
    "    a\n\n",
    "http://a.b/(",
    "http://",
    "a@b.cd ",
    "\t",
    '"',
]


@pytest.mark.slow
def test_ten_thousand_characters_of_anything_are_rendered() -> None:
    for piece in REPEATED:
        markup = safe_html((piece * 10_000)[:10_000])
        assert_allowed(markup)
        assert clean(markup) == markup, piece


def test_half_a_tag_of_html_takes_no_longer_than_other_text(visitor: Visitor) -> None:
    """It took hours, while the service did nothing else."""
    for blank in ("\t", "\n", "\u3000"):
        attributes = f"{blank}b=c{blank}d{blank}e{blank}f" * 100
        starts = ("", "text ", "> ", "* ", "[text")
        for before, end in itertools.product(starts, ("!", "!>")):
            assert "&lt;a" in previewed(visitor, f"{before}<a{attributes} {end}")


def test_a_text_that_makes_the_renderer_fail_is_shown_as_text(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def choke(_: mistune.Markdown, text: str) -> str:
        raise RecursionError(text)

    monkeypatch.setattr(mistune.Markdown, "__call__", choke)
    assert safe_html("a <b>\nc & \"d'") == "a &lt;b&gt;<br>c &amp; &quot;d&#x27;"
    assert [record.levelname for record in caplog.records] == ["ERROR"]


# In a real browser


WATCH = """
window.met = []
window.thread = () => [
  ...document.querySelector('commentd-thread').shadowRoot.querySelectorAll('.body')
]
for (const name of ['alert', 'confirm', 'prompt', 'open']) window[name] = () => met.push(name)
window.look = () => window.xss ? [...met, 'xss'] : met
"""
PUT = """async all => {
  for (const markup of all) {
    const box = document.body.appendChild(document.createElement('div'))
    box.innerHTML = markup
    box.querySelectorAll('*').forEach(node => node.focus())
  }
  await new Promise(go => setTimeout(go))
  await new Promise(go => requestAnimationFrame(go))
  return [...document.body.children].map(box => [box.innerHTML, box.textContent])
}"""


class WatchedPage:
    """A page that notes which scripts of strangers ran in it, and what it asked others for."""

    def __init__(self, context: BrowserContext) -> None:
        self.page, self.out = context.new_page(), list[str]()
        self.page.add_init_script(WATCH)
        self.page.on("request", self.asks)

    def asks(self, request: Request) -> None:
        if not request.url.startswith(("http://blog.test:", "http://comments.test:", "data:,")):
            self.out.append(request.url)

    def sees(self) -> list[str]:
        ran: list[str] = self.page.evaluate("look()")
        return ran + self.out


# The service, and a blog without any policy to protect it, whose pages may change.
BrowserSetup = tuple[WatchedPage, str, str, Pages]


@pytest.fixture
def browser_setup(app: App, browser: Browser) -> Iterator[BrowserSetup]:
    page = "<!doctype html><meta charset=utf-8><link rel=icon href='data:,'><title>x</title><body>"
    inside.add_account(app, "owner@blog.example", "江屿", CANARY, "admin")
    value = json.dumps({"token": inside.token_of(app, "owner@blog.example", "admin")})
    with service(app) as address, ExitStack() as ending:
        tag = f"<commentd-thread limit=100></commentd-thread><script src={address}/embed.js>"
        pages: Pages = {"/bare/": ({}, page), "/post/": ({}, f"{page}{tag}</script>")}
        home = ending.enter_context(blog(pages))
        context = browser.new_context(bypass_csp=True)
        ending.callback(context.close)
        words = json.dumps([f"{address}/commentd admin", value])
        signed_in = f"if (location.origin === '{address}') localStorage.setItem(...{words})"
        context.add_init_script(signed_in)
        yield WatchedPage(context), address, home, pages


in_browser = pytest.mark.parametrize(
    "settings",
    [
        {
            "server_listen": "127.0.0.1:0",
            "limits_enabled": False,
            "comments_max_length": 10_000,
            "comments_formulas": True,
            "comments_tables": True,
        }
    ],
    ids=[""],
)


def without_blanks(text: str) -> str:
    """The widget leaves out what stands between the cells of a table."""
    return "".join(text.split())


@in_browser
def test_a_browser_runs_and_fetches_nothing_from_a_hostile_comment(
    app: App, browser_setup: BrowserSetup, campaign: Campaign
) -> None:
    watched_page, address, home, pages = browser_setup
    for chance in campaign.rounds(2):
        path, markup = f"/post/?n={campaign.last}", {}
        for comment in [hostile_fields(chance) for _ in range(20)]:
            number = say(
                app, comment.pop("content"), comment.pop("nickname"), page=path, hours=0, **comment
            )
            ((markup[number],),) = inside.sql(app, "SELECT html FROM comment WHERE id = ?", number)

        watched_page.page.goto(f"{home}/bare/")
        bare = watched_page.page.evaluate(PUT, [*markup.values()])
        assert [each for each, _ in bare] == [*markup.values()], "it is read as it was written"
        assert watched_page.sees() == []

        watched_page.page.goto(home + path)
        watched_page.page.wait_for_function("() => thread().length === 20")
        seen = watched_page.page.evaluate("thread().map(each => each.textContent)")
        assert [*map(without_blanks, seen)] == [without_blanks(text) for _, text in reversed(bare)]
        assert watched_page.sees() == []

        part = webtest.TestApp(app).get("/fragment", {"url": path, "limit": 100}).text
        pages["/part/"] = ({}, pages["/bare/"][1] + part)
        watched_page.page.goto(f"{home}/part/")
        seen = watched_page.page.evaluate("thread().map(each => each.textContent)")
        assert [*map(without_blanks, seen)] == [without_blanks(text) for _, text in reversed(bare)]
        assert watched_page.sees() == []

        watched_page.page.goto(f"{address}/thread?url={path}")
        assert watched_page.page.locator("article").count() == 20
        assert watched_page.sees() == []

        watched_page.page.goto(f"{address}/admin?{campaign.last}#comments")
        watched_page.page.wait_for_function(
            "() => document.querySelectorAll('main article').length >= 20"
        )
        assert watched_page.sees() == []
        campaign.figures["texts, each in five places"] += 20


@in_browser
def test_a_browser_reads_sanitised_markup_as_it_was_written(
    browser_setup: BrowserSetup, campaign: Campaign
) -> None:
    """More in less time: as the markup of many comments on one bare page."""
    watched_page, _, home, _ = browser_setup
    for chance in campaign.rounds(1):
        many = 1000 if campaign.seconds else 100
        texts = [hostile_fields(chance)["content"] for _ in range(many)]
        markup = [safe_html(text, EVERYTHING) for text in texts]
        watched_page.page.goto(f"{home}/bare/")
        read = watched_page.page.evaluate(PUT, markup)
        assert [each for each, _ in read] == markup
        assert watched_page.sees() == []
        campaign.figures["texts"] += len(texts)


# Hosts

HOST_OF_253 = ".".join(["a" * 60] * 4) + ".example.c"


HIDDEN = {
    HOST_OF_253: HOST_OF_253,
    "a" * 63 + ".example": "a" * 63 + ".example",
    "\u00ad" * 500 + "evil.example": "evil.example",
    **dict.fromkeys(
        ("EVIL.e\u200bxample.", "evil。example", "ｅvil.example", "%65vil.example"), "evil.example"
    ),
    "Bücher.example": "xn--bcher-kva.example",
    "bu\u0308cher.example": "xn--bcher-kva.example",
}
TOO_LONG = ["ﷺ" * 1998, f"a{HOST_OF_253}", ".".join(["é"] * 200), "."]


def test_a_host_in_a_text_is_found_however_it_is_written() -> None:
    for text, host in HIDDEN.items():
        assert hosts_in(f"see http://{text}/x") == {host}
    for text in TOO_LONG:
        assert hosts_in(f"@{text} http://x.example/") == {"x.example"}


def test_folding_reads_no_more_combining_marks_than_any_language_has() -> None:
    for one, another in ("\u0301\u0316", "\u093e\u0940", "\u20dd\u20de"):  # of all three kinds
        marks = one * 5000 + another * 5000
        assert len(folded(f"a{marks}b{marks}")) <= 2 * 31
    assert folded("e\u0301\u200b\u0316") == folded("e\u0316\u0301")


def test_nested_quotes_do_not_make_a_text_much_longer(visitor: Visitor) -> None:
    """Each character of nested quotes can become seventeen, and lists hold a thousand comments."""
    text = (">" * 6 + " a\n\n") * 199
    shown = visitor.say(text)["comment"]["html"]
    assert len(shown) <= 10 * len(text) + 1000
    assert "blockquote" not in shown
    assert "blockquote" in visitor.say("> a quote")["comment"]["html"]
