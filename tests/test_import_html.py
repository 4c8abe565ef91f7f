"""Comments that were HTML: they become Markdown that is shown alike, and what Markdown cannot say
stays HTML. So nothing is lost when they are edited, exported and imported again."""

import json
import re
import urllib.parse
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st

from commentd import App, clean, content_of_html, html_in, safe_html
from support import products
from support.client import CANARY, Visitor
from support.inside import add_account, token_of
from support.products import MAKERS, NOON, ForeignComment, Importer
from support.world import FakeWorld

importer = products.importer
HTML_PRODUCTS = ("disqus", "twikoo", "valine", "wordpress")
MARKDOWN_PRODUCTS = ("waline", "artalk")


class Reading(HTMLParser):
    """What a reader gets of HTML: the words with the links, code, lists and quotes they are in."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.open: list[tuple[str, str]] = []
        self.said: list[tuple[str, tuple[tuple[str, str], ...]]] = []
        self.code: list[str] = []
        self.wide_spaces = 0
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "br" and ("pre", "") in self.open:
            self.code[-1] += "\n"
        if tag == "pre":
            self.code.append("")
        if tag not in ("br", "hr"):
            detail = urllib.parse.unquote(values.get("href") or "")
            if tag == "code" and ("pre", "") in self.open:
                detail = values.get("class") or ""
            self.open.append((tag, detail))

    def handle_endtag(self, tag: str) -> None:
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if ("pre", "") in self.open:
            self.code[-1] += data
            return
        places = [each for each in self.open if each[0] not in ("p",)]
        self.wide_spaces += len(re.findall("[\u00a0\u3000]", data))
        for word in data.split():
            self.said.append((word, tuple(sorted(set(places)))))


def reading(markup: str) -> tuple[Any, list[str], int]:
    """Words beside each other may be cut in two by tags that show nothing, so they are joined."""
    found = Reading(markup)
    said: list[list[Any]] = []
    for word, places in found.said:
        if said and said[-1][1] == places:
            said[-1][0] += word
        else:
            said.append([word, places])
    return said, [code.strip("\n") for code in found.code], found.wide_spaces


# Single shapes


PLAIN = {
    # Emphasis, also within words.
    "<p><b>a</b> <i>b</i> <s>c</s></p>": "**a** *b* ~~c~~",
    "<p>un<b>believ</b>able <b>a<i>b</i></b></p>": "un**believ**able **a*b***",
    "<p><b> a </b>b<i></i></p>": "**a** b",
    "<p><b>a:&nbsp;</b>b</p>": "**a:**\u00a0b",
    "<p><b>a</b><b>b</b></p>": "**ab**",
    "<p><b><strong>a</strong></b></p>": "**a**",
    # Breaks and paragraphs.
    "<p>a<br>b</p><p>c</p>": "a\nb\n\nc",
    "<p>a<br><br>b</p>": "a\n\nb",
    "<p>a<br><br><br>b</p>": "a\n\nb",
    "<p></p>ab": "ab",
    "<p>It's \"a\", (b)!<br>你好，<br>c</p><p>d  e</p>": 'It\'s "a", (b)!\n你好，\nc\n\nd e',
    "<p><i>a<br><br>b</i></p>": "*a\n\\\nb*",
    "<p>a  b\nc</p>": "a b c",
    # Links.
    '<p><a href="https://a.example/x">a</a></p>': "[a](https://a.example/x)",
    '<p><a href="https://a.example/a_b_c">https://a.example/a_b_c</a></p>':
        "https://a.example/a_b_c",
    '<p><a href="https://a.example/A_(b)">a</a></p>': "[a](https://a.example/A_(b))",
    '<p><a href="https://a.example/(b">a</a></p>': "[a](<https://a.example/(b>)",
    '<p><a href="https://a.example/\\*b">a</a></p>': "[a](<https://a.example/%5C*b>)",
    '<p><a href="https://a.example/&lt;b&gt;">a</a></p>': "[a](<https://a.example/%3Cb%3E>)",
    '<p><a href="https://a.example/?a=1&amp;copy=2">a</a></p>':
        "[a](https://a.example/?a=1&copy=2)",
    '<p><a href="mailto:ann@a.example">ann@a.example</a></p>': "<ann@a.example>",
    '<p><a href="https://a.example/">[x] ]</a></p>': "[\\[x\\] \\]](https://a.example/)",
    '<p><a href="https://a.example/"><b>a</b></a></p>': "[**a**](https://a.example/)",
    # Code.
    "<p><code>a</code> <code>`</code> <code>a``b</code></p>": "`a` `` ` `` ```a``b```",
    "<p><code>*a* [b] &lt;c&gt; \\</code></p>": "`*a* [b] <c> \\`",
    "<p>a <code> </code><code></code>b</p>": "a b",
    "<p><code>a\n b<br>c</code></p>": "`a b`\n`c`",
    "<pre><code>a\n\n  b\n</code></pre>": "```\na\n\n  b\n```",
    '<pre><code class="language-js">```\n</code></pre>': "````js\n```\n````",
    "<pre>a<br>b</pre>": "```\na\nb\n```",
    # Quotes and lists.
    "<blockquote>a<blockquote>b</blockquote></blockquote><p>c</p>": "> a\n>\n> > b\n\nc",
    "<blockquote>a<p>b</p></blockquote>": "> a\n>\n> b",
    "<blockquote><p>a</p>b</blockquote>": "> a\n>\n> b",
    "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>": "- a\n  - b\n- c",
    "<ol><li><p>a</p><pre>b</pre></li><li>c</li></ol>": "1. a\n\n   ```\n   b\n   ```\n\n2. c",
    '<ol start="123456789"><li>a</li></ol>': "123456789. a",
    "<ul><li>a</li></ul><ul><li>b</li></ul>": "- a\n\n* b",
    "<blockquote><pre> a \n\n </pre></blockquote>": "> ```\n>  a \n>\n>  \n> ```",
    "<p>a</p><hr><p>b</p>": "a\n\n***\n\nb",
    # What only looks like Markdown stays text. Where it does no harm, it is left as it is.
    "<p># a<br>1. b<br>- c<br>&gt; d<br>===</p>": "\\# a\n1\\. b\n\\- c\n\\> d\n\\===",
    "<p>2 * 3 * 4, snake_case, 1 &lt; 2 &amp; 3, &amp;amp;</p>":
        "2 * 3 * 4, snake_case, 1 < 2 & 3, &amp;",
    "<p>*a* `b` [c](https://a.example) ~~d~~</p>":
        "\\*a\\* \\`b\\` \\[c\\](https\\://a.example) \\~\\~d\\~\\~",
    "<p>*a*<br># b</p>": "\\*a\\*\n\\# b",
    '<p>*a* <a href="https://a.example/x">https://a.example/x</a></p>':
        "\\*a\\* <https://a.example/x>",
    "<p>https://a.example/ is no link</p>": "https\\://a.example/ is no link",
}  # fmt: skip


@pytest.mark.parametrize("markup", PLAIN)
def test_imported_html_becomes_markdown_that_is_shown_alike(markup: str) -> None:
    content = content_of_html(html_in(markup))
    assert content.markdown == PLAIN[markup]
    assert not content.own_html
    assert content.html == safe_html(content.markdown)
    assert reading(content.html) == reading(html_in(markup))


OWN = {
    "<p>a</p><p><code>a <b>b</b></code></p>": "a\n\n`a b`",
    "<p>a<br>&nbsp;&nbsp;b</p>": "a\n\xa0\xa0b",
    f"{'<blockquote>' * 40}a<br>b<ul><li>c</li><li>d</li></ul><p>e</p>{'</blockquote>' * 40}":
        "a\nb\n\nc\nd\n\ne",
    '<p><a href="https://a.example/?a=1&amp;copy;=2">a</a></p>':
        "[a](https://a.example/?a=1&copy;=2)",
    '<ol start="999999999"><li>a</li><li>b</li></ol>': "999999999. a\n1000000000. b",
    "<p>x<b>(y)</b>z <b>c</b></p>": "x**(y)**z **c**",
    "<p>x<b>(y)</b>z</p><hr>": "x**(y)**z\n\n***",
    "<pre><div>a</div><div>b</div></pre>": "```\nab\n```",
    "<pre>a<ul><li>b</li></ul></pre>": "```\nab\n```",
    "<pre>a <b>b</b></pre>": "```\na b\n```",
}  # fmt: skip


@pytest.mark.parametrize("markup", OWN)
def test_imported_html_that_markdown_can_not_express_stays_html(markup: str) -> None:
    content = content_of_html(html_in(markup))
    assert content.own_html
    assert content.html == html_in(markup)
    assert content.markdown == OWN[markup]


# Any HTML at all

WORDS = st.sampled_from(
    """a b 你好 。 ( ) [ ] ! * ** _ ` ``` ~~ # - + > < & &amp; &copy; 1. 2) === --- \\ \\* : | $
    https://a.example/x_y_z http://b.example/(c) www.c.example https://d.example/。 ann@b.example
    = “好” @ann #5 snake_case <b> :smile: [x]: 😀 &nbsp; &emsp;""".split()  # noqa: SIM905
)
URLS = st.sampled_from(
    [
        "https://a.example/",
        "https://a.example/A_(b)_[c]",
        "http://例.example/路?a=1&amp=2&copy;",
        "https://a.example/a b",
        "https://a.example/<>\\\"'*_`",
        "mailto:a@b.example",
        "/x",
        "x:y",
    ]
)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def element(tag: str, inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return inner.map(lambda text: f"<{tag}>{text}</{tag}>")


TEXT = st.lists(WORDS.map(escaped), min_size=1, max_size=4).flatmap(
    lambda words: st.sampled_from([" ".join(words), "".join(words), f" {' '.join(words)} "])
)
LEAVES = (
    TEXT
    | st.sampled_from(["&nbsp;", "\u3000", "&#x18;"])
    | st.just("<br>")
    | st.just("<br><br>")
    | st.just(" ")
    | element("code", TEXT)
)
INLINE = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4).map("".join)
        | st.sampled_from(["b", "i", "em", "s"]).flatmap(lambda tag: element(tag, inner))
        | st.builds(lambda url, text: f'<a href="{escaped(url)}">{text}</a>', URLS, inner)
        | URLS.map(lambda url: f'<a href="{escaped(url)}">{escaped(url)}</a>')
    ),
    max_leaves=8,
)
BLOCK = st.recursive(
    element("p", INLINE)
    | INLINE
    | element("pre", TEXT)
    | st.builds(
        '<pre><code class="language-{}">{}\n\n {}</code></pre>'.format,
        st.sampled_from(["js", "c++", "x y"]),
        TEXT,
        TEXT,
    )
    | st.just("<hr>"),
    lambda inner: (
        st.lists(inner, max_size=4).map("\n".join)
        | element("blockquote", inner)
        | st.builds(
            lambda tag, items: f"<{tag}>{''.join(items)}</{tag}>",
            st.sampled_from(["ul", "ol", 'ol start="7"']),
            st.lists(element("li", inner), min_size=1, max_size=3),
        )
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(BLOCK)
@how(suppress_health_check=[HealthCheck.too_slow])
def test_imported_html_loses_and_gains_no_word_link_code_list_or_quote(markup: str) -> None:
    content = content_of_html(html_in(markup))
    assert reading(content.html) == reading(html_in(markup))
    if not content.own_html:
        assert content.html == safe_html(content.markdown)
    assert clean(content.html) == content.html


@pytest.mark.slow
@given(st.lists(BLOCK, min_size=1, max_size=4), st.sampled_from([*HTML_PRODUCTS]))
@how(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_imported_html_is_exported_and_imported_unchanged(
    importer: Importer, fake_world: FakeWorld, texts: list[str], product: str
) -> None:
    said = [
        ForeignComment(f"a{number}", NOON + number, text=text) for number, text in enumerate(texts)
    ]
    importer.use_database(f"{len(importer.paths)}.db")
    importer.import_file(MAKERS[product](said))
    check_identity(importer, fake_world)


def check_identity(importer: Importer, fake_world: FakeWorld) -> None:
    """Our own export is the same after an import into an empty database, and so is what readers
    see."""
    export, seen = importer.export("--emails"), shown(importer, fake_world)
    importer.use_database(f"{len(importer.paths)}.db")
    assert importer.import_file(export).code == 0
    assert importer.export("--emails") == export
    assert shown(importer, fake_world) == seen


def shown(importer: Importer, fake_world: FakeWorld) -> list[str]:
    with importer.served(fake_world) as reader:
        listed = reader.listing(url="/a/", sort="oldest", limit=100)["comments"]
    return [comment["html"] for comment in listed]


def test_comments_of_all_products_are_exported_and_imported_unchanged(
    importer: Importer, fake_world: FakeWorld
) -> None:
    texts = [*PLAIN, *OWN]
    for product in (*HTML_PRODUCTS, *MARKDOWN_PRODUCTS):
        importer.use_database(f"{product}.db")
        rows = [
            ForeignComment(f"a{number}", NOON + number, text=text)
            for number, text in enumerate(texts)
        ]
        result = importer.import_file(MAKERS[product](rows))
        assert (
            result.number("kept as HTML") == sum(row["html"] != "" for row in importer.comments) > 0
        )
        check_identity(importer, fake_world)


# Edits


@pytest.fixture
def owner(app: App) -> Visitor:
    add_account(app, "owner@example.com", "Owner", CANARY, "admin")
    owner = Visitor(app)
    owner.authorization = ("Bearer", token_of(app, "owner@example.com", "admin"))
    return owner


def rewrite(owner: Visitor, number: int, content: str) -> Any:
    return owner.patch_json(f"/admin/comments/{number}", {"content": content}).json["comment"]


def test_an_edit_of_imported_html_keeps_links_and_emphasis(
    importer: Importer, owner: Visitor, visitor: Visitor
) -> None:
    text = '<p>A <b>tpyo</b> in <a href="https://a.example/x">a link</a></p><pre>code</pre>'
    importer.import_file(MAKERS["disqus"]([ForeignComment(text=text)]))
    (comment,) = visitor.listing(url="/a/")["comments"]
    rewrite(owner, comment["id"], comment["content"].replace("tpyo", "typo"))
    (corrected,) = visitor.listing(url="/a/")["comments"]
    assert reading(corrected["html"]) == reading(html_in(text.replace("tpyo", "typo")))


def test_an_edit_of_html_that_stayed_html_starts_from_markdown_that_comes_near(
    importer: Importer, owner: Visitor, visitor: Visitor
) -> None:
    text = "<p>a <b>b</b> <code>c <b>tpyo</b></code></p>"
    importer.import_file(MAKERS["disqus"]([ForeignComment(text=text)]))
    (comment,) = visitor.listing(url="/a/")["comments"]
    assert comment["html"] == "<p>a <strong>b</strong> <code>c <strong>tpyo</strong></code></p>"

    # Its name alone does not touch the text.
    owner.patch_json(f"/admin/comments/{comment['id']}", {"nickname": "Lu"})
    assert visitor.listing(url="/a/")["comments"] == [{**comment, "nickname": "Lu"}]
    assert importer.only_comment()["html"] == comment["html"]

    rewrite(owner, comment["id"], comment["content"].replace("tpyo", "typo"))
    (corrected,) = visitor.listing(url="/a/")["comments"]
    assert corrected["html"] == "<p>a <strong>b</strong> <code>c typo</code></p>\n"
    assert importer.only_comment()["html"] == ""  # which is now its Markdown


# The formats of others

TYPED = [
    "use <b>tags</b> and &amp; `<b>`",
    "<p>typed</p>",
    "```html\n<p>a</p>\n\n<b>\n```",
    "a\nb\n\nc",
    "**b** *i* ~~s~~\n\n1. one\n2. two\n\n> cited",
    "[a](https://a.example/) https://b.example/",
    "a\n\n---\n\nb",
    "![cat](https://a.example/cat.png)",
    "- a\n\n  ```\n  b\n\n  c\n  ```\n- d",
]


@pytest.mark.parametrize("name", ["waline", "artalk", "wordpress"])
def test_exports_in_other_formats_carry_what_readers_see(
    importer: Importer, fake_world: FakeWorld, name: str
) -> None:
    said = [ForeignComment(f"a{n}", NOON + n, text=text) for n, text in enumerate([*PLAIN, *OWN])]
    typed = [ForeignComment(f"b{n}", NOON + 100 + n, text=text) for n, text in enumerate(TYPED)]
    importer.import_file(MAKERS["disqus"](said))
    importer.import_file(MAKERS["commento"](typed))
    seen = shown(importer, fake_world)
    export = importer.export(name)
    importer.use_database("there.db")
    assert importer.import_file(export).counts[1] == len(said + typed)
    for before, after in zip(seen, shown(importer, fake_world), strict=True):
        is_link_there = name == "wordpress" and "https://a.example" in re.sub("<[^>]*>", "", before)
        if not is_link_there:
            assert reading(after) == reading(before)


def test_exports_for_waline_and_artalk_have_markdown_where_possible(importer: Importer) -> None:
    texts = ["<p><b>a</b> b</p>", "<p><code>a <b>b</b></code></p>"]
    importer.import_file(
        MAKERS["disqus"]([ForeignComment(f"{n}", NOON + n, text=t) for n, t in enumerate(texts)])
    )
    expected = ["**a** b", "<p><code>a <strong>b</strong></code></p>"]
    waline = json.loads(importer.export("waline"))
    assert [row["comment"] for row in waline["data"]["Comment"]] == expected
    assert [row["content"] for row in json.loads(importer.export("artalk"))] == expected


# What products show that their files do not say

LINK = '<a href="{0}" rel="nofollow ugc noopener noreferrer">{1}</a>'.format
OF_WORDPRESS = {
    # It makes links of bare URLs.
    "see http://a.example/x?a=1&amp;b=2, or (https://b.example/c).":
        f"see {LINK('http://a.example/x?a=1&amp;b=2', 'http://a.example/x?a=1&amp;b=2')}, or "
        f"({LINK('https://b.example/c', 'https://b.example/c')}).",
    "a<br />\nb": "a<br>\nb",
    "a\n<ul>\n<li>b</li>\n</ul>\nc": "a</p>\n<ul>\n<li>b</li>\n</ul>\n<p>c",
    "<code>a <b>b</b></code>\n\nc": "<code>a <strong>b</strong></code></p><p>c",
    "www.a.example!": f"{LINK('http://www.a.example', 'www.a.example')}!",
    "(&lt;https://a.example/a&gt;)":
        f"(&lt;{LINK('https://a.example/a', 'https://a.example/a')}&gt;)",
    "https://a.example/A_(b)": LINK("https://a.example/A_(b)", "https://a.example/A_(b)"),
    "请看https://a.example/a，谢谢": f"请看{LINK('https://a.example/a', 'https://a.example/a')}，谢谢",
    "看https://a.example是，www.b.example:80是":
        f"看{LINK('https://a.example', 'https://a.example')}是，"
        f"{LINK('http://www.b.example:80', 'www.b.example:80')}是",
    "&nbsp; [via https://a.example/]":
        f"&nbsp; [via {LINK('https://a.example/', 'https://a.example/')}]",
    '<a href="https://a.example/">https://b.example/</a>':
        LINK("https://a.example/", "https://b.example/"),
    "<code>https://a.example/</code> ann@www.a.example":
        "<code>https://a.example/</code> ann@www.a.example",
    # Films and frames are links.
    '<iframe width="5" src="//www.y.example/embed/x"></iframe>':
        LINK("https://www.y.example/embed/x", "https://www.y.example/embed/x"),
    '<object width="4"><param name="movie" value="https://y.example/v/x"></param>'
    '<param name="wmode" value="https://no.example/"></param>'
    '<embed src="https://y.example/v/x"></embed></object> ok':
        f"{LINK('https://y.example/v/x', 'https://y.example/v/x')} ok",
    '<video controls><source src="https://y.example/a.mp4"></video>':
        LINK("https://y.example/a.mp4", "https://y.example/a.mp4"),
    '<object><param name="SRC" value="https://y.example/v/y"></object>':
        LINK("https://y.example/v/y", "https://y.example/v/y"),
    '<object><param name="movie" value="https://y.example/v/z"></object>':
        LINK("https://y.example/v/z", "https://y.example/v/z"),
    '<object data="https://y.example/a.swf"></object>':
        LINK("https://y.example/a.swf", "https://y.example/a.swf"),
    '<iframe src="javascript:alert(1)"></iframe>a<embed src="data:text/html,x">': "a",
}  # fmt: skip


def test_bare_urls_and_videos_of_wordpress_become_links(
    importer: Importer, fake_world: FakeWorld
) -> None:
    said = [ForeignComment(f"{n}", NOON + n, text=text) for n, text in enumerate(OF_WORDPRESS)]
    importer.import_file(MAKERS["wordpress"](said))
    found = [html.strip() for html in shown(importer, fake_world)]
    assert found == [f"<p>{text}</p>" for text in OF_WORDPRESS.values()]
    check_identity(importer, fake_world)


def test_empty_lines_in_code_of_wordpress_stay(importer: Importer, fake_world: FakeWorld) -> None:
    importer.import_file(
        MAKERS["wordpress"]([ForeignComment(text="see\n\n<pre>a\n\n\nb\nc</pre>\n\nand\nd")])
    )
    (markup,) = shown(importer, fake_world)
    assert markup == "<p>see</p>\n<pre><code>a\n\n\nb\nc\n</code></pre>\n<p>and<br>\nd</p>\n"


def test_the_html_in_our_own_export_is_cleaned_as_any_other(
    importer: Importer, fake_world: FakeWorld
) -> None:
    importer.import_file(MAKERS["disqus"]([ForeignComment(text="<p><code>a <b>b</b></code></p>")]))
    whole = importer.full_export()
    hostile = (
        '<p onclick="x()">c <code>d</code><script>alert(1)</script><a href="javascript:y">e</a>'
    )
    whole["comments"][0]["html"] = hostile
    importer.use_database("there.db")
    importer.import_file(json.dumps(whole))
    (markup,) = shown(importer, fake_world)
    assert re.sub(' rel="[^"]*"', "", markup) == "<p>c <code>d</code><a>e</a></p>"
    check_identity(importer, fake_world)


# HTML that stays HTML, in elements that are dropped. Within them, a browser lets a paragraph begin
# in a paragraph and a link in a link.
CODE = "<code>a <b>b</b></code>"
NESTED_IN_ITS_LIKE = {
    f"<a>x<marquee><p>y<a>z {CODE}</a></p></marquee></a>": f"<p>x</p><p>yz {CODE}</p>",
    f"<p>x<button><p>y</p></button> {CODE}</p>": f"<p>x</p><p>y</p> {CODE}",
    f"<p>x {CODE}<select><p>y</select></p>z": f"<p>x {CODE}</p><p>y</p>z",
}


def test_no_paragraph_or_link_of_an_import_stands_in_another(
    importer: Importer, fake_world: FakeWorld
) -> None:
    said = [
        ForeignComment(f"{n}", NOON + n, text=text) for n, text in enumerate(NESTED_IN_ITS_LIKE)
    ]
    importer.import_file(MAKERS["disqus"](said))
    found = [markup.replace("strong>", "b>") for markup in shown(importer, fake_world)]
    assert found == [*NESTED_IN_ITS_LIKE.values()]


def test_no_paragraph_or_link_of_our_own_export_stands_in_another(
    importer: Importer, fake_world: FakeWorld
) -> None:
    importer.import_file(MAKERS["disqus"]([ForeignComment(text="<p><code>a <b>b</b></code></p>")]))
    whole = importer.full_export()
    whole["comments"][0]["html"] = "<p>x<object><p>y</p></object></p>"
    importer.use_database("there.db")
    importer.import_file(json.dumps(whole))
    (markup,) = shown(importer, fake_world)
    assert clean(markup) == markup


def test_the_report_of_an_import_names_what_stayed_html(importer: Importer) -> None:
    said = [ForeignComment(f"a{n}", NOON + n, text=text) for n, text in enumerate([*OWN, *PLAIN])]
    report = importer.import_file(MAKERS["disqus"](said), "--dry-run").text
    names = "a0, a1, a2, a3, a4, a5, a6, a7 …"
    assert f"  kept as HTML, since Markdown can't say it ({len(OWN)}): {names}\n" in report
    assert (
        "kept as HTML"
        not in importer.import_file(MAKERS["disqus"](said[len(OWN) :]), "--dry-run").text
    )
