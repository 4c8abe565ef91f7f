"""The titles of pages: where one comes from, who may change it, and where it is read. What browsers
send is in `test_widget_writing.py`, and what an admin sees in `test_admin_page.py`."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from commentd import App
from support import inside
from support.admin import audit, change, moderate, pages, queue
from support.admin import owner as owner  # a fixture
from support.client import CANARY, PAGE, Visitor
from support.commands import run_here
from support.feed import Feed, ThreadPage
from support.notifications import LinkPage
from support.products import BLOG, MAKERS, ForeignComment, Importer, artalk_row, file_of, waline_row
from support.products import importer as importer  # a fixture
from support.service import FOREIGN
from support.world import FakeWorld, read

SERVICE = "https://comments.example"
TITLE = "Why trains are late"
ON_BLOG = {"Origin": BLOG}


@pytest.fixture
def settings() -> dict[str, Any]:
    return {
        "site_origins": (BLOG,),
        "site_name": "Ann's blog",
        "server_public_url": SERVICE,
        "limits_enabled": False,
    }


def say(visitor: Visitor, title: object = TITLE, text: str = "hi", **fields: Any) -> int:
    """Posts a comment from a page of the blog that has this title."""
    posted = visitor.say(text, page_title=title, headers=ON_BLOG, **fields)
    number: int = posted["comment"]["id"]
    return number


def titles(owner: Visitor) -> dict[str, str]:
    """What the owner reads, by URL."""
    return {page["page_url"]: page["page_title"] for page in pages(owner)["pages"]}


def public_title(app: App, url: str = PAGE) -> str:
    """What readers see a page called: its title, or its path."""
    thread = Visitor(app).get(f"/thread?url={url}")
    (heading,) = ThreadPage(thread).texts["title"]
    return str(heading).removeprefix("Comments on ")


def with_settings(**values: Any) -> pytest.MarkDecorator:
    usual = {"site_origins": (BLOG,), "limits_enabled": False, "server_public_url": SERVICE}
    return pytest.mark.parametrize("settings", [{**usual, **values}], ids=["set"])


# Where it comes from


def test_a_page_is_called_by_the_title_that_came_with_a_comment(
    app: App, visitor: Visitor, owner: Visitor
) -> None:
    say(visitor)
    assert titles(owner) == {PAGE: TITLE}
    assert public_title(app) == TITLE


def test_a_title_counts_only_from_a_page_of_the_blog(visitor: Visitor, owner: Visitor) -> None:
    visitor.say("by a program", page_title=TITLE)
    visitor.say("by the service's own page", page_title=TITLE, headers={"Origin": SERVICE})
    refused = visitor.say("x", page_title=TITLE, headers={"Origin": FOREIGN}, status=403)
    assert refused["code"] == "origin_refused"
    say(visitor, page_url=f"{FOREIGN}/page/")
    assert titles(owner) == {PAGE: "", f"{FOREIGN}/page/": ""}


@pytest.mark.parametrize("settings", [{"limits_enabled": False}])
def test_a_blog_that_names_no_origin_takes_no_titles(visitor: Visitor, owner: Visitor) -> None:
    say(visitor)
    assert titles(owner) == {PAGE: ""}


def test_a_page_keeps_the_first_title_that_a_reader_sends(visitor: Visitor, owner: Visitor) -> None:
    visitor.say("one without a title")
    say(visitor)
    say(visitor, "Buy now", "a forged one")
    assert titles(owner) == {PAGE: TITLE}


def test_a_comment_is_posted_whatever_its_title_is(visitor: Visitor, owner: Visitor) -> None:
    for number, title in enumerate(["", " \u200b ", "/2026/hello/", f"{BLOG}/2026/hello/", None]):
        say(visitor, title, f"comment {number}")
    assert titles(owner) == {PAGE: ""}
    say(visitor, "x" * 5000, "a long one")
    assert titles(owner) == {PAGE: "x" * 198 + " …"}


def test_a_title_that_is_no_text_is_refused(visitor: Visitor) -> None:
    for title in (7, ["a"], {"a": 1}, True, "a\0b"):
        refused = visitor.say(page_title=title, headers=ON_BLOG, status=400)
        assert refused["code"] == "page_title_invalid"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("  Two\n\tlines  ", "Two lines"),
        ("x" * 198, "x" * 198),
        ("x" * 199, "x" * 198 + " …"),
        ("a\u0000b".replace("\0", "\x07"), "a b"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("a\u2066b\u2069c\u200ed\ufeff", "abcd"),
        ("cafe\u0301", "caf\u00e9"),
        ("<b>bold</b> & more", "<b>bold</b> & more"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # a word needs this joiner
        ("👩\u200d👩\u200d👧 at home", "👩\u200d👩\u200d👧 at home"),
        ("Trains | Ann's blog", "Trains"),
        ("Trains – Ann's Blog", "Trains"),
        ("Trains|Ann's blog", "Trains"),
        ("Welcome to Ann's blog", "Welcome to Ann's blog"),
        ("Ann's blog", "Ann's blog"),
        ("1/2 of all trains", "1/2 of all trains"),
    ],
)
def test_a_title_is_kept_as_one_plain_line(
    visitor: Visitor, owner: Visitor, sent: str, kept: str
) -> None:
    say(visitor, sent)
    assert titles(owner) == {PAGE: kept}


# What readers see of one that nobody has approved


@with_settings(moderation_hold="all")
def test_readers_see_a_title_when_the_comment_that_brought_it_is_approved(
    app: App, visitor: Visitor, owner: Visitor
) -> None:
    number = say(visitor)
    assert queue(owner)["comments"][0]["page_title"] == TITLE
    assert public_title(app) == PAGE
    moderate(owner, [number], "visible")
    assert public_title(app) == TITLE
    moderate(owner, [number], "spam")
    assert public_title(app) == PAGE
    moderate(owner, [number], "visible")
    assert public_title(app) == TITLE


@with_settings(moderation_words=("casino",))
def test_a_title_goes_from_sight_with_its_comment_and_the_next_one_replaces_it(
    app: App, visitor: Visitor, owner: Visitor
) -> None:
    visitor.say("long ago")
    say(visitor, "Casino bonus", "casino")
    assert public_title(app) == PAGE
    for comment in visitor.get("/comments/latest").json["comments"]:
        assert comment["page_title"] == ""
    say(visitor)
    assert public_title(app) == TITLE


def test_a_title_goes_from_sight_when_its_author_deletes_the_comment(
    app: App, visitor: Visitor
) -> None:
    visitor.say("another one")
    posted = visitor.say(page_title="Forged", headers=ON_BLOG)
    assert public_title(app) == "Forged"
    visitor.delete_json("/comments/2", {"edit_token": posted["edit_token"]})
    assert public_title(app) == PAGE


def test_a_title_is_erased_with_the_comment_that_brought_it(
    visitor: Visitor, owner: Visitor
) -> None:
    visitor.say("another one")
    posted = visitor.say(page_title="Mary of 5 Elm Street", headers=ON_BLOG)
    assert titles(owner) == {PAGE: "Mary of 5 Elm Street"}
    visitor.delete_json("/comments/2", {"edit_token": posted["edit_token"]})
    assert titles(owner) == {PAGE: ""}


def test_spam_gives_no_page_a_title(visitor: Visitor, owner: Visitor) -> None:
    visitor.say("another one")
    owner.post_json("/admin/blocks", {"kind": "word", "value": "casino"})
    say(visitor, "Casino bonus", "casino")
    assert titles(owner) == {PAGE: ""}


# The owner's own


def test_the_title_that_the_owner_gave_stays(app: App, visitor: Visitor, owner: Visitor) -> None:
    visitor.say()
    changed = change(owner, "pages/1", page_title="  Late trains\u202e ")
    assert changed["page"]["page_title"] == "Late trains"
    assert audit(owner)[-1] == ("Owner", "title", PAGE, "Late trains")
    say(visitor, text="another")
    assert titles(owner) == {PAGE: "Late trains"}
    assert public_title(app) == "Late trains"


def test_a_title_that_the_owner_empties_is_replaced_by_the_next_one(
    visitor: Visitor, owner: Visitor
) -> None:
    say(visitor, "Forged")
    assert change(owner, "pages/1", page_title="")["page"]["page_title"] == ""
    assert audit(owner)[-1] == ("Owner", "title", PAGE, "")
    say(visitor, text="another")
    assert titles(owner) == {PAGE: TITLE}


def test_the_owner_finds_pages_and_comments_by_a_title(visitor: Visitor, owner: Visitor) -> None:
    say(visitor)
    visitor.say(page_url="/other/")
    assert [page["page_url"] for page in pages(owner, q="trains")["pages"]] == [PAGE]
    assert [each["page_url"] for each in queue(owner, q="trains")["comments"]] == [PAGE]


def test_a_page_moves_with_its_title(visitor: Visitor, owner: Visitor) -> None:
    say(visitor)
    change(owner, "pages/1", page_url="/new/")
    assert titles(owner) == {"/new/": TITLE}


@pytest.mark.parametrize(
    ("by_owner", "title"), [((), "Stays"), ((1,), "Moved"), ((2,), "Stays"), ((1, 2), "Stays")]
)
def test_of_two_merged_pages_the_better_title_stays(
    visitor: Visitor, owner: Visitor, by_owner: tuple[int, ...], title: str
) -> None:
    say(visitor, "Moved", page_url="/old/")
    say(visitor, "Stays", page_url="/new/")
    for number in by_owner:
        change(owner, f"pages/{number}", page_title=("Moved", "Stays")[number - 1])
    change(owner, "pages/1", page_url="/new/", merge=True)
    assert titles(owner) == {"/new/": title}


def test_a_page_without_a_title_takes_that_of_the_page_merged_into_it(
    app: App, visitor: Visitor, owner: Visitor
) -> None:
    number = say(visitor, page_url="/old/")
    visitor.say(page_url="/new/")
    change(owner, "pages/1", page_url="/new/", merge=True)
    assert titles(owner) == {"/new/": TITLE}
    moderate(owner, [number], "deleted")
    assert public_title(app, "/new/") == "/new/"


# Where it is read


def test_the_feed_calls_pages_by_their_titles_and_by_readable_paths(
    app: App, visitor: Visitor
) -> None:
    say(visitor)
    visitor.say(page_url="/%E4%BD%A0%E5%A5%BD/", content="other")
    feed = Feed(Visitor(app).get("/feed.atom"))
    assert {entry["title"] for entry in feed.entries} == {f"Ann · {TITLE}", "Ann · /你好/"}
    assert Feed(Visitor(app).get(f"/feed.atom?url={PAGE}")).title == f"Ann's blog · {TITLE}"


def test_a_long_path_loses_its_middle(app: App, visitor: Visitor) -> None:
    url = "/first/" + "in-between/" * 20 + "last/"
    visitor.say(page_url=url)
    shown = public_title(app, url)
    assert len(shown) == 120
    assert shown.startswith("/first/in-between/")
    assert shown.endswith("in-between/last/")
    assert "…" in shown


def test_the_plain_page_tells_search_engines_the_title(app: App, visitor: Visitor) -> None:
    say(visitor, "</script><b>")
    page = Visitor(app).get(f"/thread?url={PAGE}")
    assert ThreadPage(page).data["name"] == "</script><b>"
    assert "</script><b>" not in page.text
    assert "name" not in ThreadPage(Visitor(app).get("/thread?url=/none/")).data


def test_an_email_names_a_page_by_its_title_with_the_path_beside_it(
    app: App, visitor: Visitor, owner: Visitor, fake_world: FakeWorld
) -> None:
    say(visitor)
    fake_world.time += 600
    app.deliver()
    subject = read(fake_world.emails[-1].message)["Subject"]
    assert subject == f"New comment by “Ann” on “{TITLE}”"
    assert f"on “{TITLE}”\n\n{PAGE}\n\n> " in fake_world.text()


def test_the_latest_comments_tell_the_titles_of_their_pages(visitor: Visitor) -> None:
    say(visitor)
    visitor.say(page_url="/other/", content="other")
    latest = visitor.get("/comments/latest").json["comments"]
    assert [each["page_title"] for each in latest] == ["", TITLE]
    assert "page_title" not in visitor.listing()["comments"][0]


def test_readers_see_the_titles_of_the_pages_that_they_follow(app: App, visitor: Visitor) -> None:
    say(visitor)
    inside.add_account(app, "ann@example.com", "Ann", CANARY)
    visitor.sign_in()
    visitor.post_json("/page/follow", {"page_url": PAGE})
    (page,) = visitor.get("/me").json["follows"]
    assert page == {"page_url": PAGE, "page_title": TITLE, "page_link": BLOG + PAGE}


def test_the_page_of_a_link_in_an_email_shows_the_title_and_the_path(
    app: App, visitor: Visitor, owner: Visitor, fake_world: FakeWorld
) -> None:
    say(visitor)
    fake_world.time += 600
    app.deliver()
    path = re.findall(rf"{SERVICE}(/\S+)", fake_world.text())[0]
    assert LinkPage(Visitor(app).get(path).text).who == f"Ann · {TITLE} · {PAGE}"


# Elsewhere: files of other products and our own


def titles_in(importer: Importer) -> dict[str, str]:
    return {page["page_url"]: page["title"] for page in importer.full_export()["pages"]}


WALINE_COUNTER = [{"objectId": "c", "url": "/a/", "time": 3, "title": TITLE}]


def file_with_title(product: str) -> bytes:
    """A file of a product with one comment on the page /a/, whose title is `TITLE`."""
    one = [ForeignComment()]
    text = MAKERS[product](one).decode() if product not in ("isso", "cusdis") else ""
    if product in ("waline", "valine"):
        row = waline_row(one[0])
        return file_of("waline", [row], Counter=WALINE_COUNTER)
    if product == "artalk":
        return file_of("artalk", [{**artalk_row(one[0]), "page_title": TITLE}])
    if product == "disqus":
        return text.replace("<title>T</title>", f"<title>{TITLE}</title>").encode()
    if product == "wordpress":
        return text.replace("<item>", f"<item><title>{TITLE}</title>").encode()
    if product == "remark42":
        return text.replace('"id": "1"', f'"title": "{TITLE}", "id": "1"').encode()
    if product == "comentario":
        return text.replace('"path"', f'"title": "{TITLE}", "path"').encode()
    raise LookupError(product)


@pytest.mark.parametrize(
    "product", ["waline", "artalk", "disqus", "wordpress", "remark42", "comentario"]
)
def test_an_import_keeps_the_titles_of_pages(importer: Importer, product: str) -> None:
    file = file_with_title(product)
    result = importer.import_file(file)
    assert "  titles of pages added: 1\n" in result.text
    assert titles_in(importer) == {"/a/": TITLE}
    assert "titles" not in importer.import_file(file).text


@pytest.mark.parametrize("product", ["isso", "cusdis"])
def test_an_import_of_a_database_keeps_the_titles_of_pages(
    importer: Importer, product: str
) -> None:
    result = importer.import_file(MAKERS[product]([ForeignComment()]))
    assert "  titles of pages added: 1\n" in result.text
    (title,) = titles_in(importer).values()
    assert title


def test_imported_titles_are_unescaped_where_a_product_has_them_as_html(importer: Importer) -> None:
    for product, written, title in (
        ("wordpress", "A &amp;amp; B", "A & B"),
        ("disqus", "A &amp;amp; B", "A &amp; B"),
        ("artalk", "A &amp; B", "A &amp; B"),
    ):
        importer.use_database(f"{product}.db")
        importer.import_file(file_with_title(product).decode().replace(TITLE, written))
        assert titles_in(importer) == {"/a/": title}


def test_titles_of_pages_without_comments_make_no_pages(importer: Importer) -> None:
    item = b"<item><title>About</title><link>/about/</link></item>\n"
    file = file_with_title("wordpress").replace(b"<item>", item + b"<item>", 1)
    importer.import_file(file)
    assert titles_in(importer) == {"/a/": TITLE}


def test_a_counter_of_views_brings_titles_and_may_have_none(importer: Importer) -> None:
    rows = [
        {"objectId": "a", "url": "/a/", "time": 3, "title": "甲"},
        {"objectId": "b", "url": "/b/", "time": 4},
    ]
    importer.import_file(json.dumps({"results": rows}), "--format", "valine")
    assert titles_in(importer) == {"/a/": "甲", "/b/": ""}


def test_a_url_is_no_title(importer: Importer) -> None:
    rows = [
        {**artalk_row(ForeignComment("1", page="/a/")), "page_title": f"{BLOG}/a/"},
        {**artalk_row(ForeignComment("2", page="post-7")), "page_title": "post-7"},
    ]
    assert "titles" not in importer.import_file(file_of("artalk", rows)).text
    assert titles_in(importer) == {"/a/": "", "post-7": ""}


def test_an_import_replaces_no_title_of_the_owner_or_of_an_earlier_import(
    importer: Importer,
) -> None:
    for source, title in (("owner", "Mine"), ("import", "First"), ("comment", TITLE)):
        importer.use_database(f"{source}.db")
        importer.import_file(file_of("artalk", [artalk_row(ForeignComment())]))
        with sqlite3.connect(importer.path) as db:
            before = "Mine" if source == "owner" else "First"
            db.execute("UPDATE page SET title = ?, title_source = ?", (before, source))
        importer.import_file(file_with_title("disqus"))
        assert titles_in(importer) == {"/a/": title}


@pytest.mark.parametrize("product", ["commentd", "artalk", "wordpress"])
def test_an_export_carries_titles(importer: Importer, product: str) -> None:
    importer.import_file(file_with_title("disqus"))
    exported = importer.export(product)
    importer.use_database("other.db")
    importer.import_file(exported)
    assert titles_in(importer) == {"/a/": TITLE}


@with_settings(moderation_hold="all")
def test_an_export_leaves_out_a_title_that_nobody_approved(
    app: App, visitor: Visitor, tmp_path: Path
) -> None:
    say(visitor)
    app.close()
    for product in ("commentd", "artalk", "wordpress"):
        assert TITLE not in run_here(tmp_path, "export", product)[1]


def test_titles_of_a_blog_and_its_categories_are_none_of_a_page(importer: Importer) -> None:
    for product, start, more in (
        ("disqus", b"<thread", b"<category><title>General</title></category>"),
        ("wordpress", b"<item>", b"<title>My blog</title>"),
    ):
        importer.use_database(f"{product}.db")
        importer.import_file(file_with_title(product).replace(start, more + start, 1))
        assert titles_in(importer) == {"/a/": TITLE}
