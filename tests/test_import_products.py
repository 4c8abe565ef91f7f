"""What is particular to each product: whole files as it writes them, in `moving/`, compared field
by field with the `.rows` and `.pages` beside them, and with the `.report` of their import; then
each way in which its files differ.

Isso 0.14.0 and Waline 1.39.3 wrote those that are called real, after readers and an owner had used
their APIs. The others are made by hand from what each product's own code writes; `canary` and
`SECRET` mark in them what must not come into the database."""

import base64
import gzip
import hashlib
import io
import json
import re
import sqlite3
import struct
import sys
import tarfile
import zipfile
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from commentd import App, proper_nickname
from support import inside, products
from support.client import CANARY, Visitor
from support.inside import add_account, token_of
from support.products import (
    DAY,
    HOUR,
    MAKERS,
    MOVING,
    NOON,
    ROWS,
    ForeignComment,
    Importer,
    Row,
    file_of,
    waline,
    waline_row,
)
from support.world import START, FakeWorld

importer = products.importer
ANCHOR = ' rel="nofollow ugc noopener noreferrer"'


# Whole files


@dataclass(frozen=True)
class Whole:
    """What must come of a file, beside what stands in the files next to it."""

    pages: dict[str, int]  # comments that are shown
    html: bool = True  # whether the rows have texts as they are shown
    host: str = ""


WHOLE = {
    "disqus.xml": Whole({"/2024/closed": 2, "/2024/first": 9}, host="blog.example"),
    "wordpress.xml": Whole({"/2024/hello-world": 7, "/?p=42": 2, "/about": 1}),
    "isso.sql": Whole({"/blog/first": 5, "/blog/中文?id=3": 3}, html=False),
    "remark42.jsonl": Whole({"/2024/closed": 2, "/2024/first": 5}, html=False),
    "commento.json": Whole({"/2024/first": 5, "/2024/second": 2}, html=False),
    "comentario.json": Whole(
        {"/2024/closed": 2, "/2024/first": 6, "/2024/nobody": 0}, html=False, host="blog.example"
    ),
    "cusdis.sql": Whole({"/2024/first": 4, "/2024/second": 3}, html=False),
    "valine.json": Whole({"/2021/hello": 5, "/about": 2}),
    "valine.jsonl": Whole({"/posts/中文": 8}),
    "leancloud.jsonl": Whole({"/moved": 4}),
    "waline.json": Whole({"/w/one": 4, "/w/seen": 0, "/w/two": 3}),
    "twikoo.json": Whole({"/post/1": 4, "/post/2": 1}),
    "twikoo.jsonl": Whole({"/cb": 4}),
    "real_isso.sql": Whole(
        {"/2026/lines": 3, "/notes?id=7": 3, "/日志/第一天": 1, "/": 2}, html=False
    ),
    "real_waline.json": Whole(
        {"/2026/lines": 3, "/notes?id=7": 3, "/日志/第一天": 1, "/": 3, "/read-by-many": 0}
    ),
    "artalk.json": Whole({"/artalk": 4, "/closed": 2}),
    "github.jsonl": Whole({"/2024/first.html": 3, "/about": 1, "/2023/old": 1}),
    "github_discussions.jsonl": Whole({"/2024/first": 3, "/": 1}),
    "webmention.json": Whole({"/2024/first": 3}),
    "halo.json": Whole({"/2024/05/first": 4, "/about": 2}),
    "typecho.dump": Whole({"/default/notes/2024/01/start.html": 3, "/start-page.html": 1}),
    "typecho.sql": Whole({"/index.php/archives/1": 2}),
    "staticman.yml": Whole({"/2024/first": 2, "/second": 1}),
}
each_file = pytest.mark.parametrize("name", WHOLE)


def example_file(importer: Importer, name: str) -> Path:
    """One of the files, as it would be imported."""
    if not name.endswith(".sql"):
        return importer.file((MOVING / name).read_bytes(), name)
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript((MOVING / name).read_text("utf-8"))
        return importer.file(db.serialize(), name)


def import_example(importer: Importer, name: str, *words: str) -> products.Result:
    host = WHOLE[name].host
    return importer.import_file(
        example_file(importer, name), *(["--host", host] if host else []), *words
    )


def day(seconds: int | None) -> str | None:
    """A time, or `now` for that of the test."""
    if seconds is None or seconds == START:
        return "now" if seconds else None
    return str(datetime.fromtimestamp(seconds, UTC))[:19]


def look_of(html: str) -> str:
    """HTML without the ends of lines that show nothing: between tags, and at the end of code."""
    parts = re.split(r"(<pre>.*?</pre>)", html, flags=re.DOTALL)
    for number, part in enumerate(parts):
        is_code = part.startswith("<pre>")
        pattern = r"\n(?=</code>|</pre>)" if is_code else r"\s*\n\s*"
        parts[number] = re.sub(pattern, "", part)
    return "".join(parts)


def rows_of(importer: Importer, app: App, html: bool) -> list[Row]:
    """All comments, without what is not set, by page, time and name."""
    add_account(app, "admin@example.com", "Admin", CANARY, "admin")
    admin = Visitor(app)
    admin.authorization = ("Bearer", token_of(app, "admin@example.com", "admin"))
    listed = admin.get("/admin/comments", {"status": "all", "limit": 100}).json["comments"]
    shown = {comment["id"]: look_of(comment["html"]) for comment in listed}
    found = []
    for row in importer.comments:
        text = shown.get(row["id"], "") if html else row["content"]
        values = {"page": row["page_key"], "created": day(row["created_at"])}
        values |= {"nickname": row["nickname"], "text": text}
        above = row["above"] and day(row["above"]["created_at"])
        more = {"above": above, "status": row["status"].replace("visible", "")}
        more |= {name: row[name] for name in ("email", "website", "likes", "pinned")}
        more |= {"edited": day(row["edited_at"]), "ip": row["ip"]}
        found.append(values | {name: value for name, value in more.items() if value})
    return sorted(found, key=lambda row: (row["page"], row["created"], row["nickname"]))


def page_rows(importer: Importer) -> list[Row]:
    """All pages, without what is not set, by their keys."""
    found = importer.rows(
        "SELECT key AS page, page_url, title, views, page_likes, closed, opened_at AS opened"
        "  FROM page ORDER BY key"
    )
    rows = [{**row, "opened": day(row["opened"])} for row in found]
    return [{name: value for name, value in row.items() if value} for row in rows]


def said_of(importer: Importer, result: products.Result) -> list[str]:
    """The lines of a report, but for those that name a file of the test."""
    folder = str(importer.folder)
    return [line.rstrip() for line in result.text.splitlines() if folder not in line]


def lines_beside(name: str, kind: str) -> list[str]:
    return (MOVING / f"{name}.{kind}").read_text("utf-8").splitlines()


def expected_rows(name: str, kind: str = "rows") -> list[Row]:
    return [json.loads(line) for line in lines_beside(name, kind)]


def test_every_product_that_can_be_imported_has_a_test_file() -> None:
    there = {path.name.partition(".")[0] for path in MOVING.glob("*.rows")}
    lacking = inside.products() - there - {"commentd"}
    assert not lacking, f"tests/moving lacks a file and its .rows of {sorted(lacking)}"


@each_file
def test_a_file_of_each_product_is_imported_whole(
    importer: Importer, fake_world: FakeWorld, name: str
) -> None:
    whole = WHOLE[name]
    rows = expected_rows(name)
    if whole.html:
        rows = [{**row, "text": look_of(row["text"])} for row in rows]
    dry = import_example(importer, name, "--dry-run")
    assert not importer.path.exists()
    result = import_example(importer, name)
    assert (result.code, result.errors) == (0, "")
    assert not re.search("dislike|votes against", result.text)
    assert dry.text == result.text + "this was a dry run: nothing is imported\n"
    assert said_of(importer, result) == lines_beside(name, "report")
    new, left = len(rows), result.counts[3]
    assert result.counts == (new + left, new, 0, left)
    pages = {row["page"]: row for row in expected_rows(name, "pages")}
    assert page_rows(importer) == [*pages.values()]

    before = importer.dump()
    assert import_example(importer, name).counts == (new + left, 0, new, left)
    assert import_example(importer, name, "--dry-run").counts == (new + left, 0, new, left)
    assert importer.dump() == before
    with importer.served(fake_world) as reader:
        assert rows_of(importer, reader.served, whole.html) == rows
        for page, total in whole.pages.items():
            listing = reader.listing(url=page, view="threads", limit=100)
            found = (listing["total"], listing["views"] - 1, listing["settings"]["closed"])
            assert found == (total, pages[page].get("views", 0), "closed" in pages[page])
            said = [each for top in listing["comments"] for each in (top, *top["replies"])]
            shown = [each["nickname"] for each in said]
            rows_of_page = [row for row in rows if row["page"] == page]
            kept = [row for row in rows_of_page if row.get("status", "deleted") == "deleted"]
            assert sorted(shown) == sorted(row["nickname"] for row in kept)
            assert "@example" not in json.dumps(said)
            # Authors are guests, whatever they were.
            assert {(each["user_id"], each["role"]) for each in said} <= {(None, "")}
        assert {*importer.pages} == {*whole.pages}


SECRETS = (
    *(b"canary", b"SECRET", b"Mozilla", b"$2a$", b"session-key", b"ca0a4e", b"5e11e5"),
    *(b"203.0.113.77", b"2001:db8:12:34", b"125.79.130.10", b"101.33.122.89"),
)


@each_file
def test_no_secret_of_the_source_comes_in(importer: Importer, name: str) -> None:
    assert re.search(rb"[cC]anary|SECRET|\$2a\$|session-key", (MOVING / name).read_bytes())
    import_example(importer, name)
    raw = importer.raw
    assert expected_rows(name)[-1]["nickname"].encode() in raw  # so it would be found
    assert [secret for secret in SECRETS if secret in raw] == []
    left = importer.dump()
    tables = ("account", "registration", "subscription", "outbox", "notification", "block")
    assert [table for table in tables if left[table]] == []


# What may be otherwise in a file: what becomes what, and the comments that readers then see

VisibleTexts = set[tuple[str, str]]
ALL: VisibleTexts = {("/a", "one"), ("/b", "two")}
TWO = [ForeignComment("1", text="one"), ForeignComment("2", NOON + 1, page="/b/", text="two")]
OTHERWISE: dict[str, tuple[str, str, str, VisibleTexts]] = {
    "a thread without a link has its identifier as page": (
        "disqus",
        "<id /><link>/a/</link>",
        "<id>/by/id/</id><link />",
        {("/by/id", "one"), ("/b", "two")},
    ),
    "a thread that was deleted is not shown": (
        "disqus",
        '(?s)(dsq:id="90"><id.*?<isDeleted>)false',
        r"\1true",
        {("/b", "two")},
    ),
    "what may be absent is": (
        "disqus",
        "<isDeleted>false</isDeleted><isSpam>.*</isApproved>|<email>.*</email>|"
        "<title>T</title>|<ipAddress>.*</ipAddress>",
        "",
        ALL,
    ),
    "threads come after their posts": (
        "disqus",
        "(?s)(<thread dsq:id.*</thread>\n)(<post.*</post>\n)",
        r"\2\1",
        ALL,
    ),
    "a tool has written it again": ("disqus", r"\bdsq\b", "ns1", ALL),
    "WXR 1.0": ("wordpress", "export/1.2/", "export/1.0/", ALL),
    "WXR 1.1": ("wordpress", "export/1.2/", "export/1.1/", ALL),
    "the theme unit test names its namespace by https": (
        "wordpress",
        "http://wordpress",
        "https://wordpress",
        ALL,
    ),
    "one made for Disqus": (
        "wordpress",
        "<wp:comment>",
        '<wp:comment><dsq:remote xmlns:dsq="http://www.disqus.com/">'
        "<dsq:id>u</dsq:id></dsq:remote>",
        ALL,
    ),
    **{
        f"a {kind} is no comment": (
            "wordpress",
            "_type>comment<(.*>one<)?",
            f"_type>{kind}<",
            set[tuple[str, str]](),
        )
        for kind in ("pingback", "trackback", "order_note", "action_log")
    },
    **{
        f"{state} is not approved": (
            "wordpress",
            "_approved>1<",
            f"_approved>{state}<",
            set[tuple[str, str]](),
        )
        for state in ("0", "post-trashed", "spam", "trash", "unknown")
    },
    "a section ends in the middle": (
        "wordpress",
        ">one<",
        "><![CDATA[d ]]]]><![CDATA[> e]]><",
        {("/a", "d ]]> e"), ("/b", "two")},
    ),
    "an ampersand is bare": ("wordpress", "author_url><", "author_url>http://a.b/?a=1&b=2<", ALL),
    "its first line is missing": ("remark42", r"\A.*\n", "", ALL),
    "a page has host and path": ("commento", '"domain": "", "url"', '"host": "x", "path"', ALL),
    "fields are null": ("waline", '"(nick|mail|link|ip|pid|rid)": "[^"]*"', r'"\1": null', ALL),
    "a second time takes the place of the first": ("valine", "insertedAt", "createdAt", ALL),
    "waline's own address wraps it": ("waline", r"(?s)\A(.*)\Z", r'{"errno": 0, "data": \1}', ALL),
    "its other tables are null": ("waline", '"(Counter|Users)": \\[\\]', r'"\1": null', ALL),
    "its other tables are missing": ("waline", ', "(Counter|Users)": \\[\\]', "", ALL),
}


@pytest.mark.parametrize("variant", OTHERWISE)
def test_an_import_reads_each_variant_of_a_product_file(importer: Importer, variant: str) -> None:
    product, old, new, shown = OTHERWISE[variant]
    text = MAKERS[product](TWO).decode()
    changed = re.sub(old, new, text)
    assert changed != text
    result = importer.import_file(changed)
    assert (result.code, result.text.partition(":")[0]) == (0, product)
    visible = [row for row in importer.comments if row["status"] == "visible"]
    plain = {(row["page_key"], row["content"].replace("\\", "")) for row in visible}
    assert plain == shown


@pytest.mark.parametrize(("mode", "state"), [(1, "visible"), (2, "waiting"), (3, "waiting")])
def test_an_import_of_isso_shows_only_what_isso_shows(
    importer: Importer, mode: int, state: str
) -> None:
    importer.import_file(changed_database(importer, "isso", f"UPDATE comments SET mode = {mode}"))
    assert importer.only_comment()["status"] == state


def changed_database(importer: Importer, product: str, *statements: str) -> Path:
    """A database with one comment, after these statements."""
    file = importer.file(MAKERS[product]([ForeignComment()]))
    with closing(sqlite3.connect(file)) as db, db:
        for statement in statements:
            db.execute(statement)
    return file


def test_a_page_of_cusdis_without_an_address_is_its_key(importer: Importer) -> None:
    importer.import_file(
        changed_database(importer, "cusdis", "UPDATE pages SET url = NULL, slug = 'my key'")
    )
    assert importer.only_comment()["page_key"] == "my key"


def test_cusdis_tables_that_came_by_csv_are_imported(
    importer: Importer, fake_world: FakeWorld
) -> None:
    """That is the way from PostgreSQL: nothing is null there, and a truth is a letter."""
    file = example_file(importer, "cusdis.sql")
    with closing(sqlite3.connect(file)) as db, db:
        for table in ("projects", "pages", "comments"):
            names = [column[1] for column in db.execute(f"PRAGMA table_info({table})")]
            texts = ", ".join(f"CAST(coalesce({name}, '') AS TEXT) AS {name}" for name in names)
            db.execute(f"CREATE TABLE bare AS SELECT {texts} FROM {table}")
            db.execute(f"DROP TABLE {table}")
            db.execute(f"ALTER TABLE bare RENAME TO {table}")
        db.execute("UPDATE comments SET approved = CASE approved WHEN '1' THEN 't' ELSE 'f' END")
    assert importer.import_file(file).code == 0
    with importer.served(fake_world) as reader:
        assert rows_of(importer, reader.served, html=False) == expected_rows("cusdis.sql")


# The Chinese family, whose fields have many shapes

OBJECTS: list[Any] = [{}, []]
DAWN = "2021-05-01T12:00:00Z"
TIMES = [
    DAWN,
    "2021-05-01T12:00:00.000Z",
    "2021-05-01T12:00:00.123456Z",
    "2021-05-01T20:00:00+08:00",
    "2021-05-01T20:00:00+0800",
    "2021-05-01 20:00:00 +0800",
    "2021-05-01 20:00:00.123 +0800",
    "2021-05-01T05:30:00-06:30",
    "2021-05-01 07:00:00 -0500",
    f" {DAWN} ",
    1619870400000,
    1619870400000.0,
    "1619870400000",
    {"$numberLong": "1619870400000"},
    {"$numberLong": 1619870400000},
    {"$date": DAWN},
    {"$date": {"$numberLong": "1619870400000"}},
    {"$date": 1619870400000},
    {"__type": "Date", "iso": "2021-05-01T12:00:00.000Z"},
]
NICKNAMES = {
    "小雨 😀": "小雨 😀",
    "  Ann  ": "Ann",
    "A\u0301nn": "Ánn",
    "An\x00n\x07": "Ann",
    "Eve\u202egnirts\u202c": "Evegnirts",
    "Ze\u200bro": "Zero",
    "雨" * 300: "雨" * 64,
    "<b>Ann</b>": "<b>Ann</b>",
    12345: "12345",
    None: "Anonymous",
    "\u200b\u2060": "Anonymous",
}
WEBSITES = {
    " http://a.example ": "http://a.example",
    "blog.example": "https://blog.example",
    "www.b.example/x?y=1": "https://www.b.example/x?y=1",
    "1.2": "",
    "例え.jp。": "https://例え.jp",
    "没有": "",
    None: "",
    7: "",
    True: "",
}
ADDRESSES = {
    "203.0.113.77": "203.0.113.0",
    "::ffff:203.0.113.77": "203.0.113.0",
    "unknown": "",
    "": "",
    "2001:db8:12:34::5": "2001:db8:12::",
    "203.0.113.77:443": "203.0.113.0",
    None: "",
    7: "",
    "203.0.113.77, 10.0.0.1": "",
}
NO_EMAIL = [None, 7, "安@example.com", '"a b"@example.com', *OBJECTS]
SHAPES: dict[str, list[tuple[Any, Any]]] = {
    "at": [(time, 1619870400) for time in TIMES],
    "nickname": [*NICKNAMES.items(), *((value, "Anonymous") for value in OBJECTS)],
    "website": [*WEBSITES.items(), *((value, "") for value in OBJECTS)],
    "ip": [*ADDRESSES.items(), *((value, "") for value in OBJECTS)],
    "email": [(value, "") for value in NO_EMAIL],
    "parent": [(value, None) for value in (None, "", "0", 0, *OBJECTS)],
}


@pytest.mark.parametrize("field", SHAPES)
def test_an_import_reads_a_field_in_each_of_its_shapes(importer: Importer, field: str) -> None:
    """What each becomes; the kept column has another name where it is a time or a reply."""
    column = {"at": "created_at", "parent": "parent_id"}.get(field, field)
    for product in ROWS:
        importer.use_database(f"{product}.db")
        comments = [
            ForeignComment(f"a{n}", page=f"/{n}/", text="x") for n in range(len(SHAPES[field]))
        ]
        shaped = [
            replace(s, **{field: v}) for s, (v, _) in zip(comments, SHAPES[field], strict=True)
        ]
        result = importer.import_file(MAKERS[product](shaped))
        assert (result.counts[1], "at the top" in result.text) == (len(comments), False)
        found = {row["page_key"]: row[column] for row in importer.comments}
        expected = {f"/{n}": wanted for n, (_, wanted) in enumerate(SHAPES[field])}
        assert found == expected, product
        assert b"203.0.113.77" not in importer.raw


def test_an_imported_id_is_the_same_as_number_and_as_text(importer: Importer) -> None:
    for product in ROWS:
        importer.use_database(f"{product}.db")
        for one, two in ((1, "2"), ("1", 2)):
            comments = [
                ForeignComment(one),
                ForeignComment(two, NOON + 1, str(one)),
                ForeignComment("3", NOON + 2, 2),
            ]
            assert importer.import_file(MAKERS[product](comments)).counts[0] == 3
        assert [row["above"] for row in importer.comments_by_time.values()] == [
            None,
            NOON,
            NOON + 1,
        ]
        assert len(importer.comments) == 3


def test_an_import_needs_no_more_than_text_and_page(importer: Importer) -> None:
    names = "nick mail email link website pid ip ua like likes ups downs top sticky status isSpam"
    names += " is_pending is_pinned vote_up vote_down page_title page_admin_only user_id href"
    names += " updated updatedAt updated_at createdAt site_name site_urls master mailMd5 avatar"
    for product in ROWS:
        for none in (None, *OBJECTS):
            row = ROWS[product](ForeignComment(text="文")) | dict.fromkeys(names.split(), none)
            importer.use_database("commentd.db", made=True)
            importer.import_file(file_of(product, [row]), "--format", product)
            kept = importer.only_comment()
            values = [kept[name] for name in ("nickname", "content", "status")]
            assert values == ["Anonymous", "文", "visible"]


def test_names_and_websites_of_valine_are_unescaped_once(importer: Importer) -> None:
    row = ROWS["valine"](ForeignComment())
    row |= {"nick": "A &amp;amp; &lt;b&gt; &#39;&quot;&#x60;&#x5c;"}
    row |= {"link": "https://a.example/?x&amp;y"}
    importer.import_file(file_of("valine", [row]))
    kept = importer.only_comment()
    assert (kept["nickname"], kept["website"]) == ("A &amp; <b> '\"`\\", "https://a.example/?x&y")
    for product in ("waline", "twikoo", "artalk"):  # whose names are no HTML
        importer.use_database(f"{product}.db")
        importer.import_file(MAKERS[product]([ForeignComment(nickname="A &amp; B")]))
        assert importer.only_comment()["nickname"] == "A &amp; B"
        assert proper_nickname("A &amp; B") == "A &amp; B"


# HTML and Markdown

LINK = f'<a href="https://a.example/"{ANCHOR}>'
HTML = {
    "<p>a</p>\n<p>b<br>c</p>": "<p>a</p><p>b<br>c</p>",
    "<p><b>a</b> <i>b</i> <s>c</s> <code>d</code></p>":
        "<p><strong>a</strong> <em>b</em> <del>c</del> <code>d</code></p>",
    "<p>*a* _b_ `c` # d &lt;b&gt; 1 &lt; 2 &amp;amp; [f](g)</p>":
        "<p>*a* _b_ `c` # d &lt;b&gt; 1 &lt; 2 &amp;amp; [f](g)</p>",
    '<p><a href="https://a.example/" onclick="x()" style="color:red">a</a></p>':
        f"<p>{LINK}a</a></p>",
    '<p>a <a href="javascript:alert(1)">b</a></p>': "<p>a b</p>",
    '<p><img src="https://a.example/" alt="1 &lt;b&gt;"> <img class="vemoji" alt="&lt;i&gt;"></p>':
        f"<p>{LINK}1 &lt;b&gt;</a> &lt;i&gt;</p>",
    "<blockquote><p>a</p></blockquote><pre><code>b &lt; c\n</code></pre>":
        "<blockquote><p>a</p></blockquote><pre><code>b &lt; c\n</code></pre>",
    '<pre class="x"><code class="hljs lang-JS x">b</code></pre><p class="language-js">c</p>':
        '<pre><code class="language-js">b</code></pre><p>c</p>',
    "<ul><li>a<ul><li>b</li></ul></li></ul><ol><li>c</li></ol>":
        "<ul><li>a<ul><li>b</li></ul></li></ul><ol><li>c</li></ol>",
    "<p>a<script>alert(1)</script><style>p{}</style><iframe src=x></iframe>b</p>": "<p>ab</p>",
    '<p><a href="https://a.example/"><img src="https://b.example/i.png" alt="i"></a></p>':
        f"<p>{LINK}i</a></p>",
    '<p><a href="/big.png"><img src="https://a.example/" alt="i"></a></p>': f"<p>{LINK}i</a></p>",
    "<table><tr><th>a</th><td>b</td></tr><tr><td>c</td></tr></table>": "<p>a b</p><p>c</p>",
    "<dl><dt>a</dt><dd>b</dd></dl><details><summary>c</summary>d</details>":
        "<p>a</p><p>b</p><p>c</p><p>d</p>",
    "<p><tt>a</tt> <kbd>b</kbd> <q>c</q> <cite>d</cite></p>":
        '<p><code>a</code> <code>b</code> "c" <em>d</em></p>',
    "<p>a</b></p></div><p>b 👩‍👩‍👧 עברית": "<p>a</p><p>b 👩‍👩‍👧 עברית</p>",
}  # fmt: skip
MARKDOWN = {
    "a\nb": "<p>a<br>b</p>",
    "    a": "<pre><code>a\n</code></pre>",
    "1 < 2 && 3 > 2 I <3 you": "<p>1 &lt; 2 &amp;&amp; 3 &gt; 2 I &lt;3 you</p>",
    "use `<p>` and `<br>`": "<p>use <code>&lt;p&gt;</code> and <code>&lt;br&gt;</code></p>",
    "```html\n<p>a</p>\n```":
        '<pre><code class="language-html">&lt;p&gt;a&lt;/p&gt;\n</code></pre>',
    "<https://a.example/>": f"<p>{LINK}https://a.example/</a></p>",
    'a <img class="wl-emoji" alt="&lt;i&gt;"> *b*': "<p>a &lt;i&gt; <em>b</em></p>",
    'a <img src="https://a.example/" atk-emoticon="ok"> *b*': f"<p>a {LINK}ok</a> <em>b</em></p>",
    "![cat](https://a.example/)": f"<p>{LINK}cat</a></p>",
    "[@Ann](#5f01): hi": "<p>@Ann: hi</p>",
    "a &lt;b&gt; &amp;amp; 4&nbsp;m ?x=1&lt=2 `&lt;`":
        "<p>a &lt;b&gt; &amp;amp; 4&nbsp;m ?x=1&amp;lt=2 <code>&amp;lt;</code></p>",
    'a <a href="https://a.example/"><img src="https://b.example/i.png" alt="i"></a>':
        f"<p>a {LINK}i</a></p>",
    'a <b>b <i>c</i> <a href="https://a.example/">d</a></b>':
        f"<p>a <strong>b <em>c</em> {LINK}d</a></strong></p>",
    '<a href="https://a.example/b c">d</a> <a href="https://a.example/&lt;">e</a>': "<p>d e</p>",
    'a <span style="x">b <font color="red">c</font></span> <u>d</u>': "<p>a b c d</p>",
    "a<p>b</p><div>c</div> d": "<p>a</p><p>b</p><p>c</p><p>d</p>",
    "a <code>*b*</code> List<String> <div>":
        "<p>a <code>*b*</code> List&lt;String&gt; &lt;div&gt;</p>",
}  # fmt: skip


def shown_as(
    importer: Importer, fake_world: FakeWorld, product: str, texts: list[str]
) -> list[str]:
    """The HTML of comments with these texts."""
    importer.use_database(f"{product} {len(importer.paths)}.db")
    importer.import_file(
        MAKERS[product]([ForeignComment(str(n), NOON + n, text=t) for n, t in enumerate(texts, 1)])
    )
    with importer.served(fake_world) as reader:
        listed = reader.listing(url="/a/", sort="oldest", limit=100)["comments"]
    return [look_of(comment["html"]) for comment in listed]


def test_imported_html_looks_the_same_and_markdown_stays_markdown(
    importer: Importer, fake_world: FakeWorld
) -> None:
    for product in ("twikoo", "valine", "disqus", "wordpress"):
        texts = [text.replace("\n", "") if product == "wordpress" else text for text in HTML]
        found = shown_as(importer, fake_world, product, texts)
        assert found == [*map(look_of, HTML.values())], product
    for product in ("waline", "artalk"):  # where either may stand
        both = {**MARKDOWN, **{f"<p>x</p>{text}": f"<p>x</p>{look}" for text, look in HTML.items()}}
        found = shown_as(importer, fake_world, product, [*both])
        assert found == [*map(look_of, both.values())]


# How pictures and stickers are written in each product, and the Markdown that they become.
PICTURES = {
    ("twikoo", '<p>a <img src="https://p.example/cat.png" alt="a cat"></p>'):
        "a ![a cat](https://p.example/cat.png)",
    ("twikoo", '<p><img class="tk-owo-emotion" src="//p.example/owo/1.png" alt=":doge:"></p>'):
        "![:doge:](https://p.example/owo/1.png)",
    ("wordpress", '<a href="https://p.example/big.JPG"><img src="https://p.example/small.jpg"></a>'):
        "![small.jpg](https://p.example/big.JPG)",
    ("disqus", '<p><a href="https://a.example/"><img src="https://p.example/1.png" alt="x"></a>'):
        "[x](https://a.example/)",
    ("disqus", '<p><img src="/up/1.png" alt="x"> <img src="data:image/png;base64,AA" alt="y"></p>'):
        "x y",
    ("waline", '*a* <img src="https://p.example/cat.png" alt="cat"> ![b](https://p.example/b.png)'):
        "*a* ![cat](https://p.example/cat.png) ![b](https://p.example/b.png)",
    ("artalk", 'hm <img src="https://p.example/1.gif" atk-emoticon="滑稽">'):
        "hm ![滑稽](https://p.example/1.gif)",
}  # fmt: skip


def test_imported_pictures_and_stickers_are_markdown_for_pictures(importer: Importer) -> None:
    for number, ((product, text), markdown) in enumerate(PICTURES.items()):
        importer.use_database(f"{number}.db")
        importer.import_file(MAKERS[product]([ForeignComment(text=text)]))
        assert importer.texts == [markdown]


def test_imported_pictures_are_shown_from_the_hosts_that_the_owner_names(
    importer: Importer, fake_world: FakeWorld
) -> None:
    texts = [
        '<p><img src="https://p.example/1.png" alt="cat"></p>',
        '<p><code>as <b>HTML</b></code> <img src="https://p.example/2.png" alt="cat"></p>',
        '<p><a href="https://p.example/3.png"><img src="https://p.example/s.png"></a></p>',
    ]
    importer.import_file(
        MAKERS["disqus"](
            ForeignComment(str(n), NOON + n, text=text) for n, text in enumerate(texts)
        )
    )
    assert [bool(row["html"]) for row in importer.comments] == [False, True, False]
    with importer.served(fake_world, comments_picture_hosts=("https://p.example",)) as reader:
        listed = reader.listing(url="/a/", sort="oldest")["comments"]
    shown = [re.findall('<img [^>]*src="([^"]*)"', comment["html"]) for comment in listed]
    assert shown == [[f"https://p.example/{number}.png"] for number in (1, 2, 3)]


WITHOUT_SCHEME = {
    "see www.example.com.": "see [www.example.com](http://www.example.com).",
    "（www.example.com/a）好": "（[www.example.com/a](http://www.example.com/a)）好",
    "[www.a.example](http://www.a.example) `www.b.example`":
        "[www.a.example](http://www.a.example) `www.b.example`",
    "https://www.a.example <https://www.b.example> me@www.c.example":
        "https://www.a.example <https://www.b.example> me@www.c.example",
}  # fmt: skip


def test_urls_without_a_scheme_that_products_show_as_links_become_links(importer: Importer) -> None:
    texts = [*WITHOUT_SCHEME]
    thread = [ForeignComment(str(n), NOON + n, text=text) for n, text in enumerate(texts, 1)]
    importer.import_file(MAKERS["artalk"](thread))
    assert importer.texts == [*WITHOUT_SCHEME.values()]


def test_links_of_disqus_lead_straight_to_their_targets(
    importer: Importer, fake_world: FakeWorld
) -> None:
    start = '<p><a href="http://disq.us/url?url=https://b.test/%3A%25E4%26y%3Aa-_&cuid=1" rel="">'
    text = f"{start}https://b.te...</a></p>{start}<i>here</i></a></p>"
    link = f'<p><a href="https://b.test/:%E4&amp;y"{ANCHOR}>'
    direct = f"{link}https://b.test/:%E4&amp;y</a></p>{link}<em>here</em></a></p>"
    assert shown_as(importer, fake_world, "disqus", [text]) == [direct]
    assert importer.only_comment()["content"].startswith("https://b.test/:%E4&y\n")


BY_AN_IMPORTER = {
    '<p>Hi,</p><p>Good <br>x <a href="https://a.example/">l</a></p>':
        f"<p>Hi,</p><p>Good<br>x {LINK}l</a></p>",
    "a *b* `<p>`": "<p>a <em>b</em> <code>&lt;p&gt;</code></p>",
    'a <b>c</b><br><A HREF= "https://a.example/" rel="x"> d [e] </a>\n<i>f</i> <u>g</u>':
        f"<p>a <strong>c</strong><br>{LINK}d [e]</a><br><em>f</em> g</p>",
    '<a href="https://a.example/"></a> <a href="javascript:alert(1)">b</a> `<b>c</b>`':
        f"<p>{LINK}https://a.example/</a> b <code>&lt;b&gt;c&lt;/b&gt;</code></p>",
}  # fmt: skip


@pytest.mark.parametrize("product", ["isso", "cusdis", "remark42", "commento", "comentario"])
def test_html_that_a_product_itself_imported_is_no_markdown(
    importer: Importer, fake_world: FakeWorld, product: str
) -> None:
    """Isso keeps that of Disqus and WordPress beside its own Markdown."""
    found = shown_as(importer, fake_world, product, [*BY_AN_IMPORTER])
    assert [look.replace("Good <br>", "Good<br>") for look in found] == [*BY_AN_IMPORTER.values()]


# Shapes of files, and what is in them beside comments

ONE = '{"objectId":"a1","nick":"A","comment":"<p>x</p>","url":"/x/","createdAt":"2021-05-01"}'
OTHER = ONE.replace("a1", "a2")
HEAD = '#filetype:JSON-streaming {"type":"Class","class":"Comment"}\n'
OF_VALINE = [
    f"{HEAD}{ONE}\n{OTHER}\n",
    f"{HEAD}{ONE}\r\n{OTHER}\r\n",
    f"{HEAD}\n\n{ONE}\n\n{OTHER}",
    f"\ufeff{HEAD}{ONE}\n{OTHER}\n",
    f"{ONE}\n{OTHER}\n",
    f"{ONE},\n{OTHER},\n",
    f'{{"results":[{ONE},{OTHER}]}}',
    f'{{"results":[\n{ONE},\n{OTHER}\n]}}\n',
    f'\ufeff{{"results":[{ONE},{OTHER}]}}',
    f"[{ONE},{OTHER}]",
    f" \n[\n{ONE}\n,\n{OTHER}\n]\n",
    f'{{"more":{{"a":[1]}},"results":[{ONE},{OTHER}],"end":null}}',
    HEAD.replace("Comment", "MyOwnClass") + f"{ONE}\n{OTHER}\n",
    f"{HEAD}{ONE}\n{HEAD}{OTHER}\n",
    f"{HEAD}{ONE}\nnot JSON\n{OTHER}\n",
    f"{HEAD}{ONE}\n{OTHER[:60]}\n{OTHER}\n",
]


def test_valine_is_recognised_in_every_shape_in_which_it_occurs(importer: Importer) -> None:
    for file in OF_VALINE:
        importer.use_database("commentd.db", made=True)
        assert importer.import_file(gzip.compress(file.encode())).text.startswith("valine: ")
        assert len(importer.comments) == 2, file


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_the_archive_of_leancloud_is_read_as_it_comes(
    importer: Importer, mode: Literal["w", "w:gz"]
) -> None:
    users = HEAD.replace("Comment", "_User") + '{"objectId":"u","password":"SECRET"}\n'
    files = {
        "Counter.0.jsonl": (MOVING / "counter.jsonl").read_text("utf-8"),
        "User.0.jsonl": users,
        "Comment.0.jsonl": f"{HEAD}{ONE}",  # without a line end
        "out/Comment.1.jsonl": f"{HEAD}{OTHER}",
    }
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode=mode) as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("Comment.9.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    result = importer.import_file(archive.getvalue())
    assert result.text.startswith("valine: 2 read, 2 new")
    assert importer.pages["/2021/hello"]["views"] == 123
    assert b"SECRET" not in importer.raw
    assert b"root:" not in importer.raw


def test_twikoo_is_told_from_valine(importer: Importer) -> None:
    for shape in ("[%s]", "%s", '{"results":[%s]}'):
        row = json.dumps(ROWS["twikoo"](ForeignComment(status="waiting")))
        assert importer.import_file(shape % row).text.startswith("twikoo: 1 ")
    assert importer.only_comment()["status"] == "waiting"


IN_A_FRAME = {
    "the API of Twikoo": '{"code":0,"data":[%s]}',
    "a frame in a frame": '{"code": 0, "data": {"count": 1, "data": [%s]}}',
    "results": '{\n"results": [\n%s]}',
    "comments": '{"comments":[%s]}',
    "the tables of LokiJS": '{"filename":"db.json","collections":[{"name":"config","data":'
    '[{"_id":"c","SMTP_PASS":"SECRET"}]},{"name":"counter","data":[{"_id":"v","url":"/a/",'
    '"time":7}]},{"name":"comment","data":[%s],"idIndex":null}]}',
}


@pytest.mark.parametrize("frame", IN_A_FRAME)
@pytest.mark.parametrize("product", ["twikoo", "artalk", "valine"])
def test_an_import_reads_records_inside_a_frame(
    importer: Importer, product: str, frame: str
) -> None:
    rows = [
        ROWS[product](ForeignComment("a1", text="a, ]b")),
        ROWS[product](ForeignComment("a2", NOON + 1, "a1")),
    ]
    data = IN_A_FRAME[frame] % ",".join(map(json.dumps, rows))
    result = importer.import_file(data, "--format", product)
    assert (result.code, result.counts) == (0, (2, 2, 0, 0))
    assert importer.comments_by_time[NOON + 1]["above"] == NOON
    assert b"SECRET" not in importer.raw
    if product == "twikoo":
        assert importer.import_file(data).counts == (2, 0, 2, 0)
        assert importer.pages["/a"]["views"] == (7 if "LokiJS" in frame else 0)


def test_an_imported_parent_may_be_a_path_of_all_comments_above(importer: Importer) -> None:
    """As a converter of Duoshuo writes it."""
    thread = [
        ForeignComment("1"),
        ForeignComment("2", NOON + 1, "1"),
        ForeignComment("3", NOON + 2, "1,2"),
    ]
    assert "at the top" not in importer.import_file(MAKERS["wordpress"](thread)).text
    assert importer.comments_by_time[NOON + 2]["above"] == NOON + 1


def test_an_imported_path_may_begin_with_two_slashes(importer: Importer) -> None:
    """As browsers have it where a link is written so."""
    importer.import_file(
        MAKERS["twikoo"](
            [ForeignComment("1", page="//link/"), ForeignComment("2", page="//blog.example/b/")]
        )
    )
    assert {*importer.pages} == {"/link", "/b"}


def test_the_home_page_of_an_imported_blog_may_have_no_path(importer: Importer) -> None:
    importer.import_file(MAKERS["twikoo"]([ForeignComment(page="https://blog.example")]))
    assert [page["page_url"] for page in importer.pages.values()] == ["/"]


def test_an_imported_comment_without_an_id_is_named_by_its_author_and_time(
    importer: Importer,
) -> None:
    row = {**ROWS["artalk"](ForeignComment("", page="")), "created_at": "2025-03-07"}
    result = importer.import_file(file_of("artalk", [row, ROWS["artalk"](ForeignComment())]))
    assert result.named("no page") == [f"Ann {row['created_at']}"]


def test_control_characters_in_imported_html_are_dropped(importer: Importer) -> None:
    for product in ("disqus", "twikoo"):
        importer.use_database(f"{product}.db")
        importer.import_file(MAKERS[product]([ForeignComment(text="<p>a&#x18;b&#7;c&#x85;</p>")]))
        assert importer.only_comment()["content"].rstrip("…") == "abc"


def test_the_report_of_an_import_names_what_this_file_has_and_is_not_carried(
    importer: Importer,
) -> None:
    row = {
        **ROWS["twikoo"](ForeignComment("a1")),
        "downs": [],
        "avatar": "",
        "ups": None,
        "master": False,
    }
    bare = importer.import_file(file_of("twikoo", [row]))
    assert "not carried" not in bare.text
    more = {"ua": "Mozilla/5.0", "downs": ["x"], "master": True}
    result = importer.import_file(file_of("twikoo", [row, {**row, "_id": "a2", **more}]))
    line = "  not carried: user agents (1), downvotes (1)\n"
    assert line in result.text
    comment = json.loads(MAKERS["remark42"]([ForeignComment()]).splitlines()[1])
    for votes, times in (({}, 0), ({"a": True}, 0), ({"a": True, "b": False}, 1)):
        importer.use_database("remark42.db", made=True)
        text = importer.import_file(json.dumps({**comment, "votes": votes})).text
        assert text.count("not carried: downvotes (subtracted from the likes) (1)") == times


def test_the_report_of_an_import_names_dropped_fields_of_a_comment(importer: Importer) -> None:
    rows = [
        waline_row(ForeignComment("a1", email="ann at home", website="none of yours")),
        waline_row(ForeignComment("a2", NOON + 1, email="x@y.invalid", website="http://")),
        waline_row(ForeignComment("a3", NOON + 2, email="ann@example.com", website="a.example")),
    ]
    result = importer.import_file(file_of("waline", rows))
    assert result.named("without an email address") == ["a1"]
    assert result.named("without a website") == ["a1"]


@pytest.mark.parametrize("language", ["zh_CN.UTF-8", "zh_TW.UTF-8"])
def test_the_report_of_an_import_is_chinese_where_the_terminal_is(
    importer: Importer, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    monkeypatch.setenv("LC_ALL", language)
    thread = [
        ForeignComment("1"),
        ForeignComment("2", NOON + 1, "77", email="?"),
        ForeignComment("3", "no", page=""),
    ]
    data = waline(thread, Counter=[{"url": "/a/", "time": 7, "reaction0": 1}])
    lines = importer.import_file(data, "--dry-run").text.splitlines()
    assert len(lines) == 12
    assert [line for line in lines if line.isascii()] == []
    assert lines[0].endswith("读取 3，新增 2，已存在 0，跳过 1") or "略過 1" in lines[0]
    for wrong in (b"PK\x03\x04", b"nothing", b'{"type": "waline", ', b"<html>"):
        assert not importer.import_file(wrong).failure.isascii()
    importer.import_file(data)
    backup = importer.folder / "backup.db"
    assert not importer.ask("backup", backup).text.isascii()
    restored = importer.ask("restore", backup).text.splitlines()
    assert len(restored) == 2
    assert not any(map(str.isascii, restored))


def test_names_of_waline_users_are_found_wherever_they_stand(importer: Importer) -> None:
    user = {
        "objectId": 1,
        "display_name": "站长",
        "email": "o@example.com",
        "url": "https://o.test/",
    }
    row = {**ROWS["waline"](ForeignComment(nickname="")), "user_id": "1"}
    for order in ("Comment Users", "Users Comment"):
        tables = {"Comment": [row], "Users": [user]}
        importer.use_database(f"{order}.db")
        data = {name: tables[name] for name in order.split()}
        importer.import_file(json.dumps({"type": "waline", "version": 1, "data": data}))
        kept = importer.only_comment()
        found = (kept["nickname"], kept["email"], kept["website"])
        assert found == ("站长", "o@example.com", "https://o.test/")


VIEWS = {
    "counter.jsonl": {"/2021/hello": 123, "/posts/中文": 45, "/seen-only": 7},
    "twikoo_counter.json": {"/post/1": 320, "/post/2": 15},
}


@pytest.mark.parametrize("name", VIEWS)
def test_imported_views_come_from_a_file_of_their_own_and_are_added_once(
    importer: Importer, name: str
) -> None:
    for _ in range(2):
        importer.import_file(importer.file((MOVING / name).read_bytes(), name))
        assert {key: page["views"] for key, page in importer.pages.items()} == VIEWS[name]


SITES = [("Site A", "/x/"), ("Site A", "/y/"), ("Site B", "/x/"), ("", "/z/")]


def of_sites(*sites: tuple[str, str]) -> bytes:
    rows = []
    for number, (site, page) in enumerate(sites):
        comments = ForeignComment(f"a{number}", page=page, nickname=f"nick {number}")
        closed = str(site == "Site B").lower()
        rows.append({**ROWS["artalk"](comments), "site_name": site, "page_admin_only": closed})
    return file_of("artalk", rows)


def test_an_import_of_artalk_with_several_sites_asks_for_one_of_them(importer: Importer) -> None:
    for words in ([], ["--host", "Site C"], ["--host", "blog.example"]):
        result = importer.import_file(of_sites(*SITES), *words)
        assert not importer.path.exists()
        assert "Site A (2), Site B (1)" in result.failure
        assert "--host" in result.failure
    result = importer.import_file(of_sites(*SITES), "--host", "Site A")
    found = {row["nickname"]: row["page_key"] for row in importer.comments}
    assert found == {"nick 0": "/x", "nick 1": "/y", "nick 3": "/z"}
    assert "skipped: of Site B: add --host 'Site B' to import them (1): a2" in result.text
    assert {page["closed"] for page in importer.pages.values()} == {0}
    importer.use_database("only.db")
    importer.import_file(of_sites(("Site A", "/x/")))
    assert importer.import_file(of_sites(("Site A", "/y/")), "--host", "Site A").code == 0


# Products whose files are not one text


def typecho_backup(rows: list[tuple[int, Row]]) -> bytes:
    """What Typecho's backup writes: rows of a table that has a number."""
    mark = b"%TYPECHO_BACKUP_0001%"
    written = mark
    for table, row in rows:
        values = [
            None if value is None else str(value).encode(errors="surrogateescape")
            for value in row.values()
        ]
        lengths = [None if value is None else len(value) for value in values]
        names = json.dumps(dict(zip(row, lengths, strict=True))).encode()
        data = b"".join(filter(None, values))
        record = struct.pack("<HHI", table, len(names), len(data)) + names + data
        written += record + hashlib.md5(record, usedforsecurity=False).hexdigest().encode()
    return written + mark


TYPECHO_POST: Row = {
    "cid": 1,
    "title": "欢迎",
    "slug": "start",
    "type": "post",
    "allowComment": "1",
}
TYPECHO_COMMENT: Row = {
    "coid": 5,
    "cid": 1,
    "created": NOON,
    "author": "小明",
    "authorId": 0,
    "ownerId": 1,
    "mail": None,
    "text": "第一行\n第二行",
    "type": "comment",
    "status": "approved",
    "parent": 0,
}


def test_a_backup_of_typecho_is_imported(importer: Importer) -> None:
    reply = {**TYPECHO_COMMENT, "coid": 6, "parent": 5, "author": "站长", "authorId": 1}
    rows: list[tuple[int, Row]] = [
        (1, TYPECHO_POST),
        (2, TYPECHO_COMMENT),
        (2, reply),
        (77, {"plugin": "x"}),
    ]
    result = importer.import_file(typecho_backup(rows))
    assert result.counts == (2, 2, 0, 0)
    assert "comments of the owner: 1" in result.text
    assert "text is read as" not in result.text
    first, second = importer.comments
    assert (first["page_key"], first["nickname"]) == ("/archives/1", "小明")
    assert first["content"] == "第一行\n第二行"
    assert second["above"]["id"] == first["id"]
    assert importer.pages["/archives/1"]["title"] == "欢迎"


def test_a_backup_of_typecho_with_bytes_that_are_no_text_is_imported(importer: Importer) -> None:
    post = {**TYPECHO_POST, "title": "Hello"}
    comment = {**TYPECHO_COMMENT, "author": "Ann", "text": "caf\udce9"}
    result = importer.import_file(typecho_backup([(1, post), (2, comment)]))
    assert importer.only_comment()["content"] == "caf�"
    assert "text is read as" not in result.text


def test_a_backup_of_typecho_that_breaks_off_gives_what_stands_before(importer: Importer) -> None:
    rows = [(1, TYPECHO_POST), (2, TYPECHO_COMMENT), (2, {**TYPECHO_COMMENT, "coid": 6})]
    result = importer.import_file(typecho_backup(rows)[:-60])
    assert result.counts == (2, 1, 0, 1)
    assert result.named("can't be read")[0].startswith("byte ")


@pytest.mark.parametrize(
    ("title", "page"),
    [
        ("https://blog.example/2024/first/", "/2024/first"),
        ("/2024/first.html", "/2024/first.html"),
        ("index", "/"),
    ],
)
def test_an_imported_page_of_github_without_a_url_in_its_text_is_named_by_its_title(
    importer: Importer, title: str, page: str
) -> None:
    lines = (MOVING / "github_discussions.jsonl").read_text("utf-8").splitlines()
    thread = {**json.loads(lines[1]), "title": title}
    assert importer.import_file(json.dumps(thread), "--format", "github").counts == (1, 1, 0, 0)
    assert importer.only_comment()["page_key"] == page
    assert importer.pages[page]["title"] == ""


@pytest.mark.parametrize(
    ("title", "body", "page"),
    [
        ("Two words", "https://blog.example/a/\n\nIts text.\n\nhttps://other.example/b/", "/a"),
        ("Two words", "Its text.\n\nhttps://other.example/b/\n\nhttps://blog.example/a/", "/a"),
        ("Two words", "See https://blog.example/a/", ""),
        ("word", "", ""),
        ("and/or what", "", ""),
    ],
)
def test_an_imported_page_of_github_has_the_url_that_a_script_wrote(
    importer: Importer, title: str, body: str, page: str
) -> None:
    """Gitalk writes it above what a page says of itself, others below. Where there is none, a title
    is a path only if it looks like one."""
    lines = (MOVING / "github_discussions.jsonl").read_text("utf-8").splitlines()
    thread = {**json.loads(lines[1]), "title": title, "body": body}
    result = importer.import_file(json.dumps(thread), "--format", "github")
    assert result.named("no page") == ([] if page else ["DC_6"])
    assert [row["page_key"] for row in importer.comments] == ([page] if page else [])


def test_an_imported_comment_of_github_may_be_html_alone(importer: Importer) -> None:
    lines = (MOVING / "github.jsonl").read_text("utf-8").splitlines()
    issue, comment = json.loads(lines[0]), json.loads(lines[5])
    del comment["body"]
    comment["bodyHTML"] = "<p>As <b>HTML</b></p>"
    importer.import_file(f"{json.dumps(issue)}\n{json.dumps(comment)}")
    assert importer.only_comment()["content"] == "As **HTML**"


@pytest.mark.parametrize("who", ["users", "reactors"])
def test_thumbs_of_github_are_likes(importer: Importer, who: str) -> None:
    lines = (MOVING / "github_discussions.jsonl").read_text("utf-8").splitlines()
    thread = json.loads(lines[1])
    thread["reactionGroups"] = [
        {"content": "THUMBS_UP", who: {"totalCount": 3}},
        {"content": "HEART", who: {"totalCount": 2}},
    ]
    importer.import_file(json.dumps(thread), "--format", "github")
    assert importer.pages["/"]["page_likes"] == 5


def test_an_import_of_github_counts_what_is_no_comment(importer: Importer) -> None:
    lines = (MOVING / "github_discussions.jsonl").read_text("utf-8").splitlines()
    thread = json.loads(lines[1])
    listed = thread["comments"]["nodes"]
    thread["comments"] = ["no comment", *listed]
    result = importer.import_file(f"{json.dumps(thread)}\n{{broken\n", "--format", "github")
    assert (result.code, result.counts) == (0, (3, 1, 0, 2))
    assert result.named("can't be read") == ["no comment", "line 2"]
    assert importer.only_comment()["content"] == "Hello"


@pytest.mark.parametrize("around", ["children", "links"])
def test_webmentions_in_one_line_are_imported_as_those_in_many(
    importer: Importer, around: str
) -> None:
    listed = json.loads((MOVING / "webmention.json").read_text("utf-8"))["children"]
    result = importer.import_file(json.dumps({around: listed}))
    assert (result.code, len(importer.comments)) == (0, 4)
    assert importer.pages["/2024/first"]["page_likes"] == 2


def older_webmention(number: int, relation: str = "", **more: Any) -> Row:
    """As webmention.io lists it in its first format."""
    return {
        "id": number,
        "source": f"https://source{number}.example/a",
        "target": "https://blog.example/2024/first/",
        "verified": True,
        "verified_date": f"2024-04-0{number}T09:00:00+00:00",
        "activity": {"type": relation},
        **more,
    }


def test_webmentions_in_their_older_format_are_imported(importer: Importer) -> None:
    written = {
        "author": {
            "name": "Bob",
            "url": "https://bob.example/",
            "photo": "https://p.example/b.png",
        },
        "url": "https://bob.example/1",
        "name": "A title",
        "content": "<p>Well <b>said</b>.</p>",
        "published": "2024-03-01T08:00:00+00:00",
    }
    bare = {"url": "https://di.example/links", "name": "Links of the week"}
    listed = [
        older_webmention(1, "reply", data=written),
        older_webmention(2, "link", data=bare),
        older_webmention(3),
        older_webmention(4, "reply", data=written, private=True),
        older_webmention(5, "like"),
        older_webmention(6, "repost"),
    ]
    result = importer.import_file(json.dumps({"links": listed}))
    assert result.text.startswith("webmention: 5 read, 4 new")
    assert "not carried: avatars (2)\n" in result.text
    assert result.named("it is a repost") == ["6"]
    names = ("created_at", "nickname", "website", "content", "status")
    found = [tuple(row[name] for name in names) for row in importer.comments]
    at = [datetime(2024, 4, day, 9, tzinfo=UTC).timestamp() for day in (2, 3)]
    bob = (1709280000, "Bob", "https://bob.example/", "Well **said**.")
    links = "[Links of the week](https://di.example/links)"
    assert sorted(found) == [
        (*bob, "visible"),
        (*bob, "waiting"),
        (at[0], "di.example", "https://source2.example/a", links, "visible"),
        (
            at[1],
            "source3.example",
            "https://source3.example/a",
            "https://source3.example/a",
            "visible",
        ),
    ]
    assert importer.pages["/2024/first"]["page_likes"] == 1


def test_an_imported_mention_is_shown_as_a_link_if_it_is_a_whole_post(importer: Importer) -> None:
    texts = [("link", "x" * 1000), ("link", "y" * 1001), ("reply", "z" * 1001)]
    listed = [
        older_webmention(number, relation, data={"name": "A post", "content": text})
        for number, (relation, text) in enumerate(texts, 1)
    ]
    importer.import_file(json.dumps({"links": listed}))
    link = "[A post](https://source2.example/a)"
    assert importer.texts == ["x" * 1000, link, "z" * 1001]


def test_a_file_of_webmentions_that_breaks_off_gives_what_stands_before(importer: Importer) -> None:
    text = (MOVING / "webmention.json").read_text("utf-8")
    result = importer.import_file(text[: text.index('"Di"')])
    assert (result.code, result.counts) == (0, (3, 2, 0, 1))
    assert result.named("can't be read")[0].startswith("line 4 ")
    assert {row["nickname"] for row in importer.comments} == {"Bob", "Cy"}


def test_a_file_of_halo_with_a_row_that_is_none_brings_the_others(importer: Importer) -> None:
    text = (MOVING / "halo.json").read_text("utf-8")
    result = importer.import_file(text.replace("[{", '["no row", {', 1))
    assert (result.code, result.counts) == (0, (10, 8, 0, 2))
    assert result.named("can't be read") == ["no row"]


def test_comments_that_the_api_of_halo_lists_are_imported(importer: Importer) -> None:
    """Each stands beside its author and its page. Replies and posts come in lists of their own."""
    rows = json.loads((MOVING / "halo.json").read_text("utf-8"))
    objects = [json.loads(base64.b64decode(row["data"])) for row in rows]
    named = {each["metadata"]["name"]: each for each in objects if "metadata" in each}
    items = [
        {"comment": named["c1"], "owner": {"displayName": "Bob"}},
        {"comment": named["c2"], "owner": {"displayName": "Ann"}, "subject": named["about"]},
        {"reply": named["r1"], "owner": {"displayName": "Ann"}},
        {"post": named["post-1"], "owner": {"displayName": "Ann"}},
    ]
    result = importer.import_file(json.dumps({"page": 1, "items": items}), "--format", "halo")
    assert (result.code, result.counts) == (0, (3, 3, 0, 0))
    found = {row["content"].split()[0]: row["page_key"] for row in importer.comments}
    assert found == {"第一条": "/2024/05/first", "A": "/2024/05/first", "plain": "/about"}


TYPECHO_ROUTE = "/[directory:split:0]/[year:digital:4]/[month:digital:2]/[slug].html"
TYPECHO_RULES = "('routingTable', 0, '"
# An hour before it in UTC, seven hours after in China.
NEW_YEAR = "1704063600,'<!--markdown-->a text"
# What stands in the place of what in a dump, and the URL of the post then.
TYPECHO_URLS: dict[str, tuple[dict[str, str], str]] = {
    "the day": ({TYPECHO_ROUTE: "/[year]/[month:digital:2]/[day]/[cid]"}, "/2024/01/01/1"),
    "a zone": (
        {TYPECHO_ROUTE: "/[year]-[month]-[day]/[slug]", "'28800'": "'0'"},
        "/2023-12-31/start",
    ),
    "a zone in America": (
        {
            TYPECHO_ROUTE: "/[year]-[month]-[day]/[slug]",
            "'28800'": "'-28800'",
            NEW_YEAR: NEW_YEAR.replace("1704063600", "1704070800"),
        },
        "/2023-12-31/start",
    ),
    "a category": ({TYPECHO_ROUTE: "/[category]/[slug]/"}, "/notes/start/"),
    "all categories": ({TYPECHO_ROUTE: "/[directory]/[slug]"}, "/default/notes/start"),
    "a folder": (
        {TYPECHO_ROUTE: "/[slug]", "'https://blog.example'": "'https://blog.example/max/'"},
        "/max/start",
    ),
    "a time in milliseconds": (
        {TYPECHO_ROUTE: "/[slug]", NEW_YEAR: NEW_YEAR.replace("0,", "0000,")},
        "/start",
    ),
    "rules in JSON": (
        {TYPECHO_RULES: f"""{TYPECHO_RULES}{{"post":{{"url":"/of/[slug]"}}}}'), ('old', 0, '"""},
        "/of/start",
    ),
    "no rules": ({TYPECHO_RULES: "('old', 0, '"}, "/archives/1/"),
}


@pytest.mark.parametrize("what", TYPECHO_URLS)
def test_an_imported_post_of_typecho_has_the_url_of_its_blog(importer: Importer, what: str) -> None:
    changes, url = TYPECHO_URLS[what]
    dump = (MOVING / "typecho.dump").read_text("utf-8")
    for old, new in changes.items():
        assert old in dump
        dump = dump.replace(old, new)
    importer.import_file(dump)
    row = next(row for row in importer.comments if row["nickname"] == "Typecho")
    assert importer.pages[row["page_key"]]["page_url"] == url


def test_a_dump_of_typecho_with_an_odd_row_brings_the_others(importer: Importer) -> None:
    dump = (MOVING / "typecho.sql").read_text("utf-8")
    result = importer.import_file(dump.replace("VALUES(12,1,", "VALUES(12,"))
    assert (result.code, result.counts) == (0, (2, 1, 0, 1))
    assert "it can't be read (1): a row of typecho_comments: 12\n" in result.text
    assert [row["nickname"] for row in importer.comments] == ["Ann"]


def test_a_dump_of_typecho_that_breaks_off_gives_what_stands_before(importer: Importer) -> None:
    dump = (MOVING / "typecho.sql").read_text("utf-8")
    result = importer.import_file(dump[: dump.index("yes','comment'")])
    assert (result.code, result.counts) == (0, (2, 1, 0, 1))
    assert result.named("can't be read") == ["table typecho_comments"]
    assert [row["nickname"] for row in importer.comments] == ["Ann"]


def test_the_zip_file_of_halo_is_imported_as_it_is(importer: Importer) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("workdir/attachments/a.txt", "no comment")
        archive.writestr("extensions.data", (MOVING / "halo.json").read_bytes())
    result = importer.import_file(packed.getvalue())
    assert said_of(importer, result) == lines_beside("halo.json", "report")


def test_a_zip_file_with_a_password_is_refused_with_its_reason(importer: Importer) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("extensions.data", "[]")
    content = bytearray(packed.getvalue())
    # The flag that says so, in the header of the file and in the list at the end (APPNOTE 4.4.4).
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(header) + flags] |= 1
    assert "password required" in importer.import_file(bytes(content)).failure


SHA_256 = "5e11e5aa" * 8
STATICMAN_FILES = {
    "first-post/entry1.yml": "_id: a1\nname: Ann\nmessage: |-\n  two\n  lines\ndate: 1717200000\n"
    f"email: {SHA_256}\n",
    "first-post/entry2.json": json.dumps(
        {"_id": "a2", "name": "Bob", "message": "to Ann 😀", "replying_to": "1", "date": 1717200060}
    ),
    "first-post/entry3.yml": "_id: a3\nname: Ann\nmessage: to Bob\nreplying_to: a2\n",
    "first-post/entry4.yml": "_id: a4\nname: Di\nmessage: the second at the top\n",
    "first-post/entry5.yml": "_id: a5\nname: Eve\nmessage: to the second\nreplying_to: 2\n",
    "first-post/entry6.yml": "_id: a6\nname: Eve\nmessage: to the third\nreplying_to: 3\n",
    "deep/second/entry3.md": "---\n_id: b3\nname: Cy\ndate: 2024-06-01\n---\n**Hello**\n",
    "deep/second/entry4.yml": "_id: b4\n_parent: b3\nname: Ann\nmessage: to Cy\n",
    "deep/second/broken.yml": "name: [",
    "deep/second/number.yml": "_id: a4\nname: !!int ''\n",
    "deep/second/picture.png": "no text",
    "deep/second/old.txt": "_id: c1\nname: Ann\nmessage: of no file of comments\n",
    "list.JSON": json.dumps(
        [
            {"name": "Bob", "message": "in a list"},
            {"name": "Cy", "message": "below it in a list"},
            {"name": "Di", "message": "to Cy", "replying_to": "list 2"},
            {"name": "Eve", "message": "to Bob", "replying_to": "list"},
        ]
    ),
    "table.yaml": "d1:\n  name: Bob\n  message: in a table\nd2: {name: Cy, message: below it}\n",
}
STATICMAN_COMMENTS = {
    "/first-post": {
        "two\nlines": None,
        "to Ann 😀": "two\nlines",
        "to Bob": "to Ann 😀",
        "the second at the top": None,
        "to the second": "the second at the top",
        "to the third": None,
    },
    "/deep/second": {"**Hello**": None, "to Cy": "**Hello**"},
    "/comments": {
        "in a list": None,
        "below it in a list": None,
        "to Cy": "below it in a list",
        "to Bob": "in a list",
        "in a table": None,
        "below it": None,
    },
}


def test_the_folder_of_staticman_is_imported_with_its_folders_as_pages(importer: Importer) -> None:
    folder = importer.folder / "comments"
    for name, text in STATICMAN_FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    result = importer.import_file(folder)
    assert result.text.startswith("staticman: ")
    assert result.counts == (16, 14, 0, 2)
    broken = "broken.yml (while parsing a flow node)"
    assert result.named("can't be read") == [broken, "number.yml (string index out of range)"]
    assert "email address" not in result.text
    found: dict[str, dict[str, str | None]] = {}
    for row in importer.comments:
        above = row["above"] and row["above"]["content"]
        found.setdefault(row["page_key"], {})[row["content"]] = above
    assert found == STATICMAN_COMMENTS
    assert (importer.folder / "comments.report.txt").read_text().startswith("skipped")


def test_a_folder_without_a_readable_comment_is_refused_with_the_first_fault(
    importer: Importer,
) -> None:
    folder = importer.folder / "comments"
    folder.mkdir()
    (folder / "broken.yml").write_text("name: [")
    failure = importer.import_file(folder).failure
    assert failure.startswith("nothing in the file can be read (broken.yml (")


def test_an_import_of_yaml_says_what_it_needs(
    importer: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)  # as if it were not installed
    failure = importer.import_file(MOVING / "staticman.yml").failure
    assert failure == "its files are YAML, which needs PyYAML (pip install pyyaml)\n"


def test_an_import_of_a_folder_with_json_alone_needs_no_yaml(
    importer: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)  # as if it were not installed
    folder = importer.folder / "comments"
    folder.mkdir()
    comment = json.dumps({"name": "Ann", "message": "hi"})
    (folder / "one.json").write_text(f"\n{comment}")
    (folder / "some.json").write_text(f"\n[{comment}, {comment}]")
    assert importer.import_file(folder).counts == (3, 3, 0, 0)


def test_a_folder_without_comments_is_refused(importer: Importer) -> None:
    (importer.folder / "posts").mkdir()
    assert "no file of comments" in importer.import_file(importer.folder / "posts").failure


# What stands beside the report


def test_all_that_an_import_could_not_take_stands_in_a_file_beside(importer: Importer) -> None:
    count = 40
    lost = [ForeignComment(str(number), text="") for number in range(count)]
    file = importer.file(waline([ForeignComment("kept"), *lost]), "export.json")
    result = importer.import_file(file)
    listing = importer.folder / "export.json.report.txt"
    assert f"by number and reason: {listing}\n" in result.text
    reasons = listing.read_text().split("\n\n")
    assert reasons[0].splitlines() == [
        "skipped: deleted, or no text",
        *(f"  {number}" for number in range(count)),
    ]
    assert reasons[1].splitlines() == [
        "not carried: user agents",
        "  kept",
        *(f"  {number}" for number in range(count)),
    ]


def test_an_import_that_takes_all_leaves_no_file_beside(importer: Importer) -> None:
    importer.import_file(MAKERS["disqus"]([ForeignComment()]))
    assert not [*importer.folder.glob("*.report.txt")]


def test_records_that_an_import_could_not_take_are_shown_where_no_file_can_be_written(
    importer: Importer,
) -> None:
    file = importer.file(waline([ForeignComment("kept"), ForeignComment("lost", text="")]))
    (importer.folder / f"{file.name}.report.txt").mkdir()
    result = importer.import_file(file)
    assert "skipped: deleted, or no text\n  lost\n" in result.text


def test_the_files_beside_the_database_of_twikoo_are_imported_with_it(importer: Importer) -> None:
    names = ("config", "comment", "counter")
    listed = [{"name": name, "data": []} for name in names]
    parts: list[Row] = [
        {"ADMIN_PASS": "SECRET"},
        ROWS["twikoo"](ForeignComment("1")),
        {"url": "/a/", "title": "A", "time": 7},
    ]
    for number, row in enumerate(parts):
        importer.file(json.dumps(row), f"db.json.{number}")  # without a line end
    file = importer.file(json.dumps({"filename": "db.json", "collections": listed}), "db.json")
    assert importer.import_file(file).counts == (1, 1, 0, 0)
    assert importer.pages["/a"]["views"] == 7
    assert b"SECRET" not in importer.raw


def test_the_json_of_halo_1_is_imported(importer: Importer) -> None:
    post = {
        "id": 3,
        "title": "第一篇",
        "slug": "first",
        "status": "PUBLISHED",
        "disallowComment": False,
        "visits": 42,
        "likes": 5,
        "createTime": (NOON - DAY) * 1000,
    }
    gone = {**post, "id": 4, "slug": "gone", "status": "RECYCLE"}
    sheet = {"id": 5, "title": "关于", "slug": "about", "disallowComment": True}
    sheet["createTime"] = (NOON - HOUR) * 1000
    comment = {
        "id": 7,
        "author": "小明",
        "email": "ming@example.com",
        "authorUrl": "https://ming.example",
        "ipAddress": "203.0.113.77",
        "userAgent": "Mozilla/5.0",
        "content": "第一条",
        "status": "PUBLISHED",
        "isAdmin": False,
        "topPriority": 1,
        "postId": 3,
        "parentId": 0,
        "createTime": NOON * 1000,
    }
    plain = {**comment, "topPriority": 0, "authorUrl": None}
    owner = {"author": "站长", "email": "owner@example.com", "isAdmin": True}
    reply = {**plain, **owner, "id": 8, "parentId": 7, "createTime": (NOON + 60) * 1000}
    waits = {**plain, "id": 9, "status": "AUDITING", "createTime": (NOON + 90) * 1000}
    lost = {**plain, "id": 10, "postId": 4}
    about = {**plain, "id": 11, "postId": 5, "author": "小红", "email": "hong@example.com"}
    data = {
        "posts": [post, gone],
        "sheets": [sheet],
        "post_comments": [comment, reply, waits, lost],
        "sheet_comments": [about],
    }
    result = importer.import_file(json.dumps({"version": "1.5.4", **data}))
    assert said_of(importer, result) == [
        "halo: 5 read, 4 new, 0 already here, 1 skipped",
        "  skipped: no page (1): 10",
        "  new: 3 visible, 1 waiting",
        "  new pages: 2",
        "  closed pages: 1",
        "  titles of pages added: 2",
        "  views added: 42",
        "  likes of pages added: 5",
        "  comments of the owner: 1, for the first who claims /admin",
        "  not carried: user agents (5)",
    ]
    times = {name: day(NOON - ago) for name, ago in (("first", DAY), ("about", HOUR))}
    assert page_rows(importer) == [
        {
            "page": "/about",
            "page_url": "/about",
            "title": "关于",
            "closed": 1,
            "opened": times["about"],
        },
        {
            "page": "/archives/first",
            "page_url": "/archives/first",
            "title": "第一篇",
            "views": 42,
            "page_likes": 5,
            "opened": times["first"],
        },
    ]
    names = ("nickname", "email", "website", "ip", "pinned", "status")
    found = [tuple(row[name] for name in names) for row in importer.comments]
    assert found == [
        ("小红", "hong@example.com", "", "203.0.113.0", 0, "visible"),
        ("小明", "ming@example.com", "https://ming.example", "203.0.113.0", 1, "visible"),
        ("站长", "", "", "203.0.113.0", 0, "visible"),
        ("小明", "ming@example.com", "", "203.0.113.0", 0, "waiting"),
    ]
    assert importer.comments_by_time[NOON + 60]["above"] == NOON
