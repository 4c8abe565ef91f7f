"""What `export` prints: our own JSON, which is complete and goes through an empty file unchanged,
and the files of other products, each read back with our own importer and compared."""

import contextlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commentd import (
    EXPORTERS,
    GENERATORS,
    App,
    Config,
    Export,
    Store,
    bare_content,
    is_blank,
    make_app,
    masked,
    page_name,
    proper_nickname,
)
from support import inside
from support.client import CANARY, Visitor
from support.commands import PROGRAM, run_here
from support.database import assert_whole, dump, tables_in
from support.inside import add_many_comments, writing_store
from support.installations import (
    BLOG,
    DEEP,
    LONG_AGO,
    WORDS,
    Installation,
    Row,
    add_rows,
    chain,
    fill_database,
    installations,
)
from support.patience import PATIENCE
from support.products import MOVING
from support.sources import ROOT
from support.world import FakeWorld

# Whole databases

LETTERS = st.characters(exclude_categories=["Cs", "Cc"])
ODD = (
    "\u2028\u2029",
    '"quoted" \\ \'',
    "]]>",
    "<!-- -->",
    "<p>typed</p>",
    "&amp; &lt;",
    "שלום \u202e",
    "👩\u200d👩\u200d👧 🏳\ufe0f\u200d🌈",
    "`[@a](#3)` [@a](#3) hi",
    "[deleted]",
    "\ufffe\uffff",
    "[a]: https://b.example",
    ">",
    "+",
    "```\n<img src=x>\n```",
    "null",
    "https://a.example/?x=1&y=2",
    "**b**, *i*, ~~s~~\n\n1. one\n2. two\n\n> cited",
    "#filetype",
    "😀" * 16_384,
    '{"format": "commentd"}',
    "- a\n- b",
    "  two\nlines",
    "x" * 10_001,
    "e\u0301\u0301",
    "\U0010fffd",
    "$$\n\t{}",
    "a\n\n\n\tb",
    "    code\n\n    more of it",
)
TEXTS = (st.sampled_from(ODD) | st.text(LETTERS | st.sampled_from("\n\t"), max_size=60)).map(
    bare_content
)


def is_proper(name: str) -> bool:
    with contextlib.suppress(ValueError):
        return proper_nickname(name) == name
    return False


NAMES = st.sampled_from(["Ann", "Ann", "小明", "Tom & Jerry <b>", '"]]>', "عمر", "👩‍🚀"]) | st.text(
    LETTERS, max_size=64
).filter(is_proper)
OWN_PAGES = (
    "/",
    "/2026/hello/",
    "/2026/hello/more/index.html",
    "/文章/你好/",
    "/caf%C3%A9",
    "/x.html",
    "/?p=12&q=a%26b",
    "/#/route",
    f"{BLOG}/whole/?x=ü",
    "any key of a page",
    "/a%2Fb",
    "/50%",
    "/<\"'&>]]>",
)
FOREIGN_PAGES = ("https://other.example/x/", "http://other.example:8080/y?z=é", "//third.example")
PAGES = (*OWN_PAGES, *FOREIGN_PAGES)
ADDRESSES = (
    "203.0.113.77",
    "2001:db8:12:34::5",
    "8.8.8.8",
    "1.2.4.8",
    "::ffff:198.51.100.9",
    "127.0.0.1",
    "",
)
EMAILS = ("", "", "lu@example.cn", "x+y@b.example")
WEBSITES = ("", "https://ann.example/?a=1&b=2", "http://例子.example/")
PLACES = (("", ""), ("CN", "浙江 杭州"), ("DE", "德国"))
STATUSES = ("visible", "visible", "visible", "waiting", "spam", "deleted", "erased")


@st.composite
def databases(draw: st.DrawFn, pages: tuple[str, ...] = PAGES, texts: Any = TEXTS) -> list[Any]:
    """Pages with what was said on each; the answers name whom they answer by its place."""
    life = []
    for page_url in draw(st.lists(st.sampled_from(pages), unique=True, max_size=4)):
        counts = [draw(st.sampled_from([0, 0, 1, 3])) for _ in range(2)]
        rows: list[Row] = []
        for number in range(draw(st.integers(0, 7))):
            status, place = draw(st.sampled_from(STATUSES)), draw(st.sampled_from(PLACES))
            content = draw(texts.filter(lambda text: not is_blank(text)))
            rows.append(
                {
                    "parent": draw(st.none() | st.integers(0, number - 1)) if number else None,
                    "gap": draw(st.sampled_from([0, 0, 0, 5])),
                    "user": draw(st.sampled_from([None, None, None, 1, 2])),
                    "nickname": draw(NAMES),
                    "email": draw(st.sampled_from(EMAILS)),
                    "website": draw(st.sampled_from(WEBSITES)),
                    "content": content,
                    "ip": draw(st.sampled_from(ADDRESSES)),
                    "country": place[0],
                    "location": place[1],
                    "status": status,
                    "held": "" if status == "visible" else draw(st.sampled_from(["", "links"])),
                    "language": draw(st.sampled_from(["", "de", "zh-tw"])),
                    "likes": draw(st.sampled_from([0, 0, 2])),
                    "pinned": draw(st.sampled_from([0, 0, 1])),
                    "created_at": draw(st.sampled_from([0, 0, 1, 86_400])),
                    "edited_at": draw(st.none() | st.just(90_000)),
                }
            )
        closed, opened = draw(st.booleans()), draw(st.sampled_from([0, 7, 86_400]))
        life.append((page_url, closed, opened, *counts, rows))
    return life


# Our own JSON


def moment(seconds: int | None) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if seconds else None


ALL_COMMENTS = """
    SELECT comment.*, page.key AS page_key, account.email AS account
      FROM comment JOIN page ON page.id = page_id LEFT JOIN account ON account.id = user_id
     ORDER BY page.key, comment.created_at, comment.id"""


PLACE = ("id", "page_key", "parent_id")


def expected_export(installation: Installation, emails: bool) -> Row:
    """What the manual says of the file, made of the rows. What was deleted stands where it holds
    something that was not, and nothing of it is left."""
    rows = {row["id"]: row for row in installation.rows(ALL_COMMENTS)}
    holding: set[int] = set()
    for row in rows.values():
        above = row["parent_id"] if row["status"] != "deleted" else None
        while above:
            holding.add(above)
            above = rows[above]["parent_id"]
    kept = [row for row in rows.values() if row["status"] != "deleted" or row["id"] in holding]
    comments = []
    for row in kept:
        comment = {word: row[word] for word in (*PLACE, *WORDS, "status", "likes", "pinned")}
        comment |= {word: moment(row[word]) for word in ("created_at", "edited_at")}
        comment |= {"email": (row["account"] or row["email"]) if emails else ""}
        comment |= {"ip": masked(row["ip"]), "html": row["html"] if row["own_html"] else ""}
        if row["status"] == "deleted":
            comment |= dict.fromkeys((*WORDS, "html"), "")
            comment |= {"likes": 0, "pinned": 0, "edited_at": None}
        comments.append(comment)
    pages = [
        {word: row[word] for word in ("page_url", "title", "views", "page_likes", "closed")}
        | {"page_key": row["key"], "opened_at": moment(row["opened_at"]), "reactions": {}}
        for row in installation.rows("SELECT * FROM page ORDER BY key")
    ]
    return {"format": "commentd", "version": 1, "pages": pages, "comments": comments}


def parse_strictly(text: bytes) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> Row:
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    return json.loads(text.decode("utf-8"), parse_constant=pytest.fail, object_pairs_hook=once)


@pytest.mark.slow
@example([("/a/", True, 0, 3, 2, chain("deleted", "erased", "deleted", "waiting"))], True)
@example([("/a/", False, 7, 0, 0, chain("spam", "deleted", "visible", "deleted"))], False)
@example([("https://other.example/x/", False, 7, 0, 0, chain("visible", "spam"))], False)
@example([("/a/", False, 7, 0, 0, [chain("visible")[0] | {"content": "    code"}])], False)
@given(databases(), st.booleans())
def test_an_export_is_complete_and_comes_through_unchanged(life: list[Any], emails: bool) -> None:
    flags = ["--emails"] * emails
    with installations("here", "there") as (source, target):
        fill_database(source, life)
        text = source.export(*flags)
        whole = parse_strictly(text)
        assert whole == expected_export(source, emails)
        if not whole["pages"]:
            return
        n = len(whole["comments"])
        result = target.import_text(text)
        assert result == {"read": n, "new": n, "already here": 0, "skipped": 0, **pages_of(result)}
        assert target.export(*flags) == text
        assert_whole(str(target.path))
        before = dump(str(target.path))
        assert target.import_text(text)["already here"] == n
        assert dump(str(target.path)) == before


def pages_of(result: dict[str, int]) -> dict[str, int]:
    return {name: result[name] for name in result if name == "new pages"}


SAID = chain("visible", "visible", "visible", "spam", "deleted", "waiting")
HERE = [("/a/", True, 0, 3, 2, [SAID[0] | {"pinned": 1}, *SAID[1:]])]


def comments_with_parents(text: bytes, leaving: Iterable[int] = ()) -> Counter[str]:
    """Each comment with all that it answers, up to the top, without the numbers."""
    rows = {row["id"]: row for row in parse_strictly(text)["comments"]}

    def line(row: Row | None) -> list[Any]:
        if row is None:
            return []
        values = {name: row[name] for name in sorted(row) if name not in ("id", "parent_id")}
        return [values, *line(rows.get(row["parent_id"]))]

    return Counter(json.dumps(line(row)) for row in rows.values() if row["id"] not in leaving)


@pytest.mark.slow
@given(databases(), databases())
def test_an_export_imported_beside_other_comments_changes_none_of_them(
    life: list[Any], others: list[Any]
) -> None:
    with installations("here", "there") as (source, target):
        fill_database(source, life)
        fill_database(target, others, LONG_AGO + 10**7)
        text, before = source.export(), {row["id"]: row for row in target.rows(ALL_COMMENTS)}
        pages = {row["key"]: row for row in target.rows("SELECT * FROM page")}
        if life:
            assert target.import_text(text)["already here"] == 0
        after = {row["id"]: row for row in target.rows(ALL_COMMENTS)}
        assert {number: after[number] for number in before} == before
        assert comments_with_parents(target.export(), {*before}) == comments_with_parents(text)
        free = {row["id"] for row in parse_strictly(text)["comments"]} - {*before}
        assert {number for number in free if number < max(before, default=0)} <= {*after}
        for row in target.rows("SELECT * FROM page"):
            old = pages.get(row["key"], row)
            assert (row["id"], row["page_url"]) == (old["id"], old["page_url"])
            assert row["closed"] >= old["closed"]
            assert row["views"] >= old["views"]
            assert row["page_likes"] >= old["page_likes"]
        assert_whole(str(target.path))


def test_no_comment_number_is_given_twice_after_an_import(tmp_path: Path) -> None:
    """What is known by its number (a link in an email, the right to edit) stays of that comment."""
    source, target = Installation(tmp_path / "here"), Installation(tmp_path / "there")
    fill_database(
        source, [("/a/", False, 0, 0, 0, [row | {"gap": 5} for row in chain("visible", "visible")])]
    )
    target.import_text(source.export())
    with writing_store(target.path) as store:
        last = store.value("SELECT max(id) FROM comment") or 0
        store.change_status(last, "spam", 1)
        store.erase_hidden(LONG_AGO * 2)
        page = store.page("/a")
        assert page
        add_rows(store, page.id, chain("visible"), LONG_AGO)
    assert {row["id"] for row in target.rows("SELECT id FROM comment")} == {1, last + 1}


@pytest.mark.parametrize("number", [0, -1, 2**53, 2**63, 1e300, "12", "x", None, [1], True])
def test_an_impossible_comment_number_in_an_export_is_replaced(tmp_path: Path, number: Any) -> None:
    source, target = Installation(tmp_path / "here"), Installation(tmp_path / "there")
    fill_database(source, [("/a/", False, 0, 0, 0, chain("visible"))])
    whole = parse_strictly(source.export())
    whole["comments"][0]["id"] = number
    assert target.import_text(json.dumps(whole).encode())["new"] == 1
    (row,) = target.rows(ALL_COMMENTS)
    assert row["id"] == (12 if number == "12" else 1)


def test_a_location_or_reason_in_an_export_that_is_longer_than_any_of_ours_is_cut(
    tmp_path: Path,
) -> None:
    source, target = Installation(tmp_path / "here"), Installation(tmp_path / "there")
    fill_database(source, [("/a/", False, 0, 0, 0, chain("waiting"))])
    whole = parse_strictly(source.export())
    whole["comments"][0] |= {"location": "x" * 300, "held": "y" * 300}
    target.import_text(json.dumps(whole).encode())
    (row,) = target.rows(ALL_COMMENTS)
    assert (row["location"], row["held"]) == ("x" * 256, "y" * 256)


def test_a_newer_export_raises_the_numbers_of_a_page_and_says_by_how_much(tmp_path: Path) -> None:
    source, target = Installation(tmp_path / "here"), Installation(tmp_path / "there")
    fill_database(source, [("/a/", False, 0, 3, 5, chain("visible")), ("/b/", False, 0, 0, 2, [])])
    whole = parse_strictly(source.export())

    def take(views: int, likes: int, *, closed: int = 0) -> tuple[dict[str, int], list[Row]]:
        whole["pages"][0] |= {"views": views, "page_likes": likes, "closed": closed}
        (target.folder / "file").write_text(json.dumps(whole))
        _, report, _ = target.run("import", str(target.folder / "file"))
        lines = re.findall(
            r"^  (views|likes of pages|closed pages)(?: added)?: (\d+)$",
            report.decode(),
            re.MULTILINE,
        )
        sql = "SELECT views, page_likes, closed FROM page WHERE key = '/a'"
        return {name: int(number) for name, number in lines}, target.rows(sql)

    first = ({"views": 3, "likes of pages": 7}, [{"views": 3, "page_likes": 5, "closed": 0}])
    assert take(3, 5) == first
    assert take(3, 5) == ({}, first[1])
    # Somebody likes the page here, too.
    with writing_store(target.path) as store:
        page = store.page("/a")
        assert page
        store.add_like("page", page.id, "a visitor", LONG_AGO)
    liked = [{"views": 3, "page_likes": 6, "closed": 0}]
    assert take(3, 6) == ({}, liked)
    more = [{"views": 9, "page_likes": 8, "closed": 0}]
    assert take(9, 8) == ({"views": 6, "likes of pages": 2}, more)
    assert take(4, 7) == ({}, more)
    # A page with comments may have been reopened here.
    assert take(9, 8, closed=1) == ({}, more)
    assert take(10, 20) == (
        {"views": 1, "likes of pages": 12},
        [{"views": 10, "page_likes": 20, "closed": 0}],
    )
    assert_whole(str(target.path))


# What must not be in it


FULL, FULL6 = "198.51.100.77", "2001:db8:12:34::77"


@pytest.fixture
def used_installation(config: Config, fake_world: FakeWorld, tmp_path: Path) -> Installation:
    """A service with accounts, an admin, emails, blocks, subscriptions, likes."""
    fake_world.time = LONG_AGO
    config = replace(config, server_public_url="https://c.example", mail_host="mail.invalid")
    app = make_app(config, fake_world.world, rounds=1)
    with closing(app):
        ann = Visitor(app, ip=FULL)
        ann.register(nickname="Ann")
        app.deliver()
        ann.verify(fake_world.code())
        ann.authorization = ("Bearer", ann.login()["token"])
        ann.say("from an account")
        guest = Visitor(app, ip=FULL6)
        guest.say("from a guest", email="lu@example.cn", parent_id=1)
        guest.post_json("/comment/like", {"id": 1})
        guest.register("bob@example.com", nickname="Bob")
        fill_all_tables(app)
    installation = Installation(tmp_path)
    assert installation.path == Path(config.database_path)
    return installation


def fill_all_tables(app: App) -> None:
    store = app.site.store
    with store.writing():
        store.run("UPDATE account SET role = 'admin'")
        store.subscribe("c0ffee" * 10, 1, "yes")
        store.run(
            "INSERT INTO admin_link VALUES ('5ecret5ecret', 'chief@example.com', 'admin', 9e9)"
        )
        store.run(
            """INSERT INTO block (kind, value, note, created_at)
               VALUES ('word', 'blocked-word', 'blocked-note', 0)"""
        )
    app.deliver()


@pytest.mark.parametrize("name", EXPORTERS)
@pytest.mark.parametrize("emails", [False, True])
def test_an_export_holds_no_secret(
    used_installation: Installation, name: str, emails: bool
) -> None:
    text = used_installation.export(name, *["--emails"] * emails).decode(errors="replace")
    result = ["lu@example.cn", "ann@example.com"]
    assert [email in text for email in result] == [emails, emails]
    texts = set()
    with closing(sqlite3.connect(used_installation.path)) as db:
        tables = tables_in(db)
        for table in {*tables} - {"comment", "page", "sqlite_sequence"}:
            for row in db.execute(f"SELECT * FROM {table}"):
                texts |= {value for value in row if isinstance(value, str) and len(value) > 8}
    assert {"c0ffee" * 10, "blocked-note", "chief@example.com"} <= texts
    # The tables of Isso have a column of that name.
    assert [value for value in texts - {*result, "notification"} if value in text] == []
    assert "198.51.100.0" in text
    assert "2001:db8:12::" in text
    for full in (FULL, FULL6, CANARY):
        assert full not in text


# The formats of others

# What each can't carry, in the words in which the command says so.
LOST = {
    "wordpress": {"likes", "views", "edits", "pins"},
    "isso": {"spam", "views", "pins", "closed pages", "likes of pages", "levels of replies"},
    "artalk": {"spam", "edits", "views", "likes of pages"},
    "waline": {"edits", "closed pages", "likes of pages"},
}


def lost_of(errors: str) -> set[str]:
    found = re.fullmatch(r"Not exported: (.*)\n", errors)
    assert found, errors
    return {*re.split(", (?![^(]*\\))", found[1])}


# The columns that hold what may be lost.
COLUMNS = {"likes": "likes", "pins": "pinned", "edits": "edited_at"}
PAGE_COLUMNS = {"views": "views", "closed pages": "closed", "likes of pages": "page_likes"}


def comparable_rows(installation: Installation, lost: set[str]) -> list[list[Any]]:
    """What comments and pages say, without what is lost and what was deleted."""
    whole, hidden = parse_strictly(installation.export("--emails")), {"deleted", *lost & {"spam"}}
    lost = lost | {"likes of pages"} if "likes" in lost else lost
    names = ["page_key", "nickname", "email", "content", "ip", "status", "created_at"]
    names += [column for what, column in COLUMNS.items() if what not in lost]
    rows = [row for row in whole["comments"] if row["status"] not in hidden]
    of_pages = [column for what, column in PAGE_COLUMNS.items() if what not in lost]
    pages = [[page[name] for name in of_pages] for page in whole["pages"]]
    return [[row[name] for name in names] for row in rows] + pages


@pytest.mark.parametrize("name", LOST)
def test_an_export_in_another_format_names_its_losses_and_the_rest_comes_back(
    tmp_path: Path, name: str
) -> None:
    source, target = Installation(tmp_path / "here"), Installation(tmp_path / "there")
    rows = chain("deleted", "visible", "visible", "spam", "waiting")
    rows = [row | {"created_at": number} for number, row in enumerate(rows)]
    rows[1] |= {"pinned": 1, "edited_at": 9}
    fill_database(source, [("/a/", True, 0, 3, 2, rows)])
    emails = {"email addresses (--emails)"}
    assert lost_of(source.run("export", name)[2]) == LOST[name] | emails
    _, text, errors = source.run("export", name, "--emails")
    assert lost_of(errors) == LOST[name]
    target.import_text(text)
    assert comparable_rows(target, LOST[name]) == comparable_rows(source, LOST[name])
    assert target.import_text(text)["new"] == 0


def test_our_own_export_names_what_it_does_not_hold(tmp_path: Path) -> None:
    installation = Installation(tmp_path)
    fill_database(installation, HERE)
    _, _, errors = installation.run("export")
    assert re.match("Not exported: accounts.*, email addresses", errors)
    assert "email addresses" not in installation.run("export", "--emails")[2]


def test_views_of_pages_without_comments_go_to_waline(tmp_path: Path) -> None:
    source, target = Installation(tmp_path / "here"), Installation(tmp_path / "there")
    fill_database(
        source, [("/seen/", False, 0, 3, 0, []), ("/文章/", False, 0, 2, 0, chain("visible"))]
    )
    target.import_text(source.export("waline"))
    seen = target.rows("SELECT page_url, views FROM page ORDER BY views")
    assert seen == [{"page_url": "/文章/", "views": 2}, {"page_url": "/seen/", "views": 3}]


NAMESPACES = {
    "wp": "http://wordpress.org/export/1.2/",
    "dsq": "http://www.disqus.com/",
    "content": "http://purl.org/rss/1.0/modules/content/",
}
TIME = "%Y-%m-%d %H:%M:%S"


def is_time(text: str, form: str = TIME) -> bool:
    return datetime.strptime(text, form).strftime(form) == text  # noqa: DTZ007


def check_wordpress(text: bytes, shown: list[Row]) -> None:
    """Disqus wants each field, and an e-mail for each author; Isso no text, title or address that
    is empty; WordPress both dates, and answers on the page of what they answer."""
    root = ElementTree.fromstring(text.decode("utf-8"))
    assert root.findtext("channel/wp:wxr_version", "", NAMESPACES) == "1.2"
    numbers: list[int] = []
    mails: dict[str, str] = {}
    posts: list[int] = []
    for item in root.iterfind("channel/item"):
        posts.append(int(item.findtext("wp:post_id", "", NAMESPACES)))
        assert item.findtext("title")
        assert urllib.parse.urlsplit(item.findtext("link") or "")
        assert item.findtext("dsq:thread_identifier", "", NAMESPACES)
        assert item.findtext("content:encoded", None, NAMESPACES) == ""
        assert item.findtext("wp:post_type", "", NAMESPACES) == "post"
        assert item.findtext("wp:status", "", NAMESPACES) == "publish"
        assert item.findtext("wp:comment_status", "", NAMESPACES) in ("open", "closed")
        assert is_time(item.findtext("wp:post_date_gmt", "", NAMESPACES))
        numbers_of_item: list[int] = []
        above = []
        for comment in item.iterfind("wp:comment", NAMESPACES):
            values = {child.tag.partition("}")[2]: child.text or "" for child in comment}
            numbers_of_item.append(int(values["comment_id"]))
            above.append(int(values["comment_parent"]))
            for name in ("author", "author_email", "author_IP", "content"):
                assert values[f"comment_{name}"].strip()
            assert mails.setdefault(values["comment_author_email"], values["comment_author"])
            assert values["comment_approved"] in ("1", "0", "spam")
            assert values["comment_type"] in ("", "comment")
            assert is_time(values["comment_date_gmt"])
            assert values["comment_date"] == values["comment_date_gmt"]
            assert "comment_author_url" in values
        assert {*above} <= {0, *numbers_of_item}
        numbers += numbers_of_item
    assert sorted(numbers) == sorted(row["id"] for row in shown)
    assert len({*posts}) == len(posts)


def check_artalk(text: bytes, shown: list[Row]) -> None:
    """Every value is a text, a site has a name, and what answers nothing answers 0."""
    rows, keys = parse_strictly(text), {row["page_key"] for row in shown}
    names = """id rid content ua ip is_collapsed is_pending is_pinned vote_up vote_down created_at
        updated_at nick email link password badge_name badge_color page_key page_title
        page_admin_only site_name site_urls"""
    for row in rows:
        assert {*row} == {*names.split()}
        assert all(isinstance(value, str) for value in row.values())
        assert row["site_name"]
        assert row["password"] == ""
        assert {row["is_pending"], row["is_pinned"], row["page_admin_only"]} <= {"true", "false"}
        assert is_time(row["created_at"], TIME + " %z")
        assert is_time(row["updated_at"], TIME + " %z")
        assert page_name(row["page_key"], {"https://blog.example"}).key in keys
    kept = [row for row in shown if row["status"] != "spam"]
    assert [(row["id"], row["rid"]) for row in rows] == [
        (str(row["id"]), str(row["parent_id"] or 0)) for row in kept
    ]


REAL_WALINE = json.loads((MOVING / "real_waline.json").read_text("utf-8"))


def check_waline(text: bytes, shown: list[Row]) -> None:
    """Its admin page sends each row as it is; a column that it does not know would be an error."""
    whole = parse_strictly(text)
    assert (whole["type"], whole["version"]) == ("waline", 1)
    assert {*whole["tables"]} == {*whole["data"]} == {"Comment", "Counter", "Users"}
    assert whole["data"]["Users"] == []
    for row in whole["data"]["Comment"]:
        names = "objectId pid rid url nick mail link comment ip like sticky status insertedAt"
        assert {*names.split()} <= {*row}
        assert row["status"] in ("approved", "waiting", "spam")
        assert is_time(row["insertedAt"], "%Y-%m-%dT%H:%M:%SZ")
        assert not {"user_id", "password", "2fa"} & {*row}
    kept = [(row["id"], row["parent_id"]) for row in shown]
    assert [(row["objectId"], row["pid"]) for row in whole["data"]["Comment"]] == kept
    tops = {row["objectId"]: row["rid"] for row in whole["data"]["Comment"]}
    assert all((row["pid"] is None) == (row["rid"] is None) for row in whole["data"]["Comment"])
    assert all(tops.get(rid) is None for rid in tops.values())
    for page in whole["data"]["Counter"]:
        assert {"url", "time"} <= {*page}
    for table in ("Comment", "Counter"):
        known = {name for row in REAL_WALINE["data"][table] for name in row}
        assert {name for row in whole["data"][table] for name in row} <= known


def check_isso(database: bytes, shown: list[Row]) -> None:
    """Its own tables, with a reply below the top-level comment: it shows no other."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(database)
        db.row_factory = sqlite3.Row
        assert db.execute("PRAGMA user_version").fetchone()[0] == 5
        rows = {row["id"]: row for row in db.execute("SELECT * FROM comments")}
        pages = {row["id"]: row for row in db.execute("SELECT * FROM threads")}
    kept = {row["id"]: row for row in shown if row["status"] != "spam"}
    assert {*rows} == {*kept}
    for row in rows.values():
        assert pages[row["tid"]]["uri"].isascii()
        assert pages[row["tid"]]["title"]
        assert len(row["voters"]) == 256
        assert (row["parent"] is None) == (kept[row["id"]]["parent_id"] is None)
        if row["parent"] in rows:
            assert rows[row["parent"]]["parent"] is None
            assert rows[row["parent"]]["tid"] == row["tid"]


CHECKS: dict[str, Callable[[bytes, list[Row]], Any]] = {
    "wordpress": check_wordpress,
    "isso": check_isso,
    "artalk": check_artalk,
    "waline": check_waline,
    "commentd": lambda text, shown: parse_strictly(text),
}
ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(ODD)


@pytest.mark.slow
@example([("/a/", False, 0, 0, 0, [chain("visible")[0] | {"content": "[a]: https://b.example"}])])
@given(databases(texts=ANYTHING | TEXTS))
def test_exported_files_are_well_formed_and_as_each_product_wants_them(life: list[Any]) -> None:
    with installations("here") as (installation,):
        fill_database(installation, life)
        shown = parse_strictly(installation.export())["comments"]
        for name in EXPORTERS:
            CHECKS[name](installation.export(name), shown)
            CHECKS[name](installation.export(name, "--emails"), shown)


ISSO = """
import json, sys
from isso import config, make_app
from werkzeug.test import Client

client = Client(make_app(config.load(config.default_file(), "isso.cfg"), threading=True))
print(json.dumps([client.get("/", query_string={"uri": uri}).json for uri in sys.argv[1:]]))
"""


@pytest.mark.long
def test_isso_itself_shows_what_is_exported_for_it(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    packages = pytestconfig.cache.mkdir("isso")
    python = packages / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(packages)], check=True)
    pip = [str(python), "-m", "pip", "install", "-q", "isso==0.14.0"]
    if subprocess.run(pip, check=False).returncode:
        pytest.skip("Isso can't be had: pip did not install it")
    installation = Installation(tmp_path)
    rows = chain("visible", "visible", "visible", "waiting", "spam")
    rows[1] |= {"nickname": "Tom & <b>", "website": "https://b.example/?a=1&b=2"}
    rows.append(chain("deleted")[0])
    rows.append(chain("visible")[0] | {"parent": 5, "content": "**bold** `<i>`"})
    fill_database(installation, [("/文章/", False, 0, 0, 0, rows), ("/b/", False, 0, 0, 0, SAID)])
    (tmp_path / "comments.db").write_bytes(installation.export("isso", "--emails"))
    (tmp_path / "isso.cfg").write_text(
        "[general]\ndbpath = comments.db\nhost = http://127.0.0.1:9/\n[markup]\nfenced-code = \n"
    )
    uri = urllib.parse.quote("/文章/")
    done = subprocess.run(
        [python, "-c", ISSO, uri, "/b/", "/none/"],
        cwd=tmp_path,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    page, other, none = json.loads(done.stdout.splitlines()[-1])
    assert [page["total_replies"], none["total_replies"]] == [5, 0]
    assert other["total_replies"] > 0
    first, gone = page["replies"]
    assert (first["author"], first["text"], first["likes"]) == ("Ann", "<p>hi</p>", 2)
    assert [reply["id"] for reply in first["replies"]] == [2, 3]
    assert first["replies"][0]["author"] == "Tom &amp; &lt;b&gt;"
    assert first["replies"][0]["website"] == "https://b.example/?a=1&amp;b=2"
    assert (gone["mode"], gone["text"]) == (4, "<p></p>")
    assert gone["replies"][0]["text"] == "<p><strong>bold</strong> <code>&lt;i&gt;</code></p>"


def test_every_export_format_is_compared_with_its_product() -> None:
    assert {*CHECKS} == {*EXPORTERS} == {*LOST, "commentd"}


# One of each: an edited and pinned comment, a reply that waits, spam, a tombstone with a reply that
# shows no text; and pages with and without a title, and without comments.
EVERYTHING = [
    DEEP
    | {
        "status": "visible",
        "parent": None,
        "nickname": 'Tom & "<b>"',
        "email": "tom@example.com",
        "website": "https://tom.example/?a=1&b='2'",
        "content": "*one* `&` <two>",
        "ip": "203.0.113.77",
        "country": "DE",
        "location": "德国",
        "language": "de",
        "likes": 3,
        "pinned": 1,
        "created_at": 10,
        "edited_at": 90,
    },
    DEEP
    | {
        "status": "waiting",
        "parent": 0,
        "email": "",
        "content": "two",
        "ip": "",
        "held": "links",
        "created_at": 20,
    },
    DEEP | {"status": "spam", "parent": 1, "content": "three", "created_at": 30},
    DEEP | {"status": "deleted", "parent": None, "created_at": 40},
    DEEP
    | {"status": "visible", "parent": 3, "content": "[five]: https://b.example", "created_at": 50},
]


@pytest.mark.parametrize("name", EXPORTERS)
def test_each_field_of_an_export_has_its_value(tmp_path: Path, name: str) -> None:
    installation = Installation(tmp_path)
    settings = tmp_path / "commentd.ini"
    text = settings.read_text() + "  http://localhost:4000\n[comments]\nreactions = 👍 🎉\n"
    settings.write_text(text, "utf-8")
    alone = chain("visible")[0] | {"content": "six", "created_at": 60}
    fill_database(
        installation,
        [
            ("/2026/日记/", True, 5, 7, 2, EVERYTHING),
            ("https://other.example/x/", False, 6, 0, 0, [alone]),
            ("/seen/", False, 0, 9, 0, []),
        ],
    )
    with writing_store(installation.path) as store:
        store.set_title(1, "日记 & <1>", "import")
        store.raise_reaction(1, "🎉", 4)
        store.run("UPDATE comment SET own_html = 1, html = '<p>a &nbsp; b</p>' WHERE id = 6")
    exported = installation.export(name, "--emails")
    expected = MOVING / f"exported.{name}"
    text = rows_of_isso(exported) if name == "isso" else exported.decode()
    assert text == expected.read_text("utf-8")


def rows_of_isso(database: bytes) -> str:
    """Its tables, as a line of JSON for each row. Nobody has voted."""
    lines = ""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(database)
        db.row_factory = sqlite3.Row
        for table in ("preferences", "threads", "comments"):
            for row in map(dict, db.execute(f"SELECT * FROM {table}")):
                assert not any(row.pop("voters", b""))
                lines += json.dumps(row, ensure_ascii=False) + "\n"
    return lines


# The command


def program(installation: Installation, *words: str, **environ: str) -> Any:
    """The program in a process of its own."""
    command = [sys.executable, "-W", "error", *PROGRAM, *words]
    kept = {name: text for name, text in os.environ.items() if not name.startswith("COMMENTD_")}
    return subprocess.Popen(
        command,
        cwd=installation.folder,
        env=kept | environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["commentd", "wordpress"])
def test_an_export_whose_pipe_closes_early_ends_with_a_line_at_most(
    tmp_path: Path, name: str
) -> None:
    installation = Installation(tmp_path)
    # More than any buffer between two programs holds.
    fill_database(
        installation, [("/a/", False, 0, 0, 0, [SAID[0] | {"content": "word " * 3000}] * 100)]
    )
    with program(installation, "export", name) as export:
        assert export.stdout.read(3)
        export.stdout.close()
        assert re.fullmatch(rb"(commentd: .*\n)?", export.stderr.read())
        assert export.wait(PATIENCE) in (0, 1)


# Exports the blogs of two folders in all formats, and prints the size of each export, with the most
# memory that the process has had until then, in bytes. `ru_maxrss` would have that of this process.
MEASURED = """
import contextlib, json, pathlib, re
import commentd

def measured(folder, name):
    file = pathlib.Path(folder, "exported")
    with file.open("w") as out, contextlib.redirect_stdout(out):
        assert commentd.main(["--config", folder + "/commentd.ini", "export", name]) == 0
    status = pathlib.Path("/proc/self/status").read_text()
    return file.stat().st_size, int(re.search(r"VmHWM:\\s*(\\d+)", status)[1]) * 1024

print(json.dumps([[measured(f, name) for name in commentd.EXPORTERS] for f in ("few", "many")]))
"""


@pytest.mark.slow
def test_an_export_of_ten_times_the_comments_takes_as_much_memory(tmp_path: Path) -> None:
    for folder, pages in (("few", 3), ("many", 30)):
        installation = Installation(tmp_path / folder)
        page_urls = [f"/{number}/{'x' * 60}/" for number in range(pages)]
        # Few and long: their number costs time, and their size would cost memory.
        add_many_comments(installation.path, page_urls, 25 * pages, content="word " * 2000)
    done = subprocess.run(
        [sys.executable, "-c", MEASURED],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    few, many = json.loads(done.stdout)
    peak = few[-1][1]
    for name, (smaller, _), (larger, most) in zip(EXPORTERS, few, many, strict=True):
        # A list of all comments would take more than what is exported of them.
        assert most - peak < (larger - smaller) / 2, name
        peak = most


def test_an_export_is_of_one_moment(app: App, visitor: Visitor) -> None:
    """Otherwise comments could come without their pages."""
    visitor.say(page_url="/a/")
    path = Path(inside.database_path(app))
    with closing(Store(path, as_command=True)) as store:
        parts = EXPORTERS["commentd"].write(Export(store, Config(), emails=True))
        first = [next(parts), next(parts)]
        visitor.say(page_url="/b/")
        exported = json.loads("".join(map(str, [*first, *parts])))
    assert [page["page_key"] for page in exported["pages"]] == ["/a"]
    assert [comment["page_key"] for comment in exported["comments"]] == ["/a"]


def test_an_export_changes_nothing(used_installation: Installation) -> None:
    before = dump(str(used_installation.path))
    for name in ("", *EXPORTERS):
        used_installation.export(*[name] if name else [])
    assert dump(str(used_installation.path)) == before
    assert used_installation.export() == used_installation.export("commentd")


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-16"])
def test_an_exported_file_is_utf_8_whatever_the_terminal_speaks(
    tmp_path: Path, encoding: str
) -> None:
    installation = Installation(tmp_path)
    fill_database(
        installation,
        [("/文章/", False, 0, 0, 0, [chain("visible")[0] | {"content": "é 你好 😀\u2028"}])],
    )
    with program(installation, "export", PYTHONIOENCODING=encoding) as export:
        text, errors = export.communicate()
    assert b"Traceback" not in errors
    assert text == installation.export()


@pytest.mark.parametrize("name", ["disqus", "Commentd", "valine", "..", "x y"])
def test_an_unknown_export_format_is_refused_with_the_known_ones(tmp_path: Path, name: str) -> None:
    installation = Installation(tmp_path)
    fill_database(installation, HERE)
    code, text, errors = run_here(installation.folder, "export", name)
    assert (code, text) == (2, "")
    assert {*re.findall(r"\w+", errors)} >= {*EXPORTERS, *GENERATORS}


def test_without_a_database_there_is_nothing_to_export(tmp_path: Path) -> None:
    installation = Installation(tmp_path)
    for words in (["export"], ["export", "waline"]):
        code, text, errors = run_here(tmp_path, *words)
        assert (code, text) == (1, "")
        assert "commentd.db: go to the folder of commentd.ini" in errors
    assert not installation.path.exists()


@pytest.mark.parametrize("name", EXPORTERS)
def test_an_export_without_comments_is_a_valid_file(tmp_path: Path, name: str) -> None:
    installation = Installation(tmp_path)
    fill_database(installation, [])
    CHECKS[name](installation.export(name), [])
