"""`move`: pages get another address with all that is theirs, whole or not at all."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from commentd import App, Config, page_name
from support.client import COMMENT, Visitor
from support.commands import run, run_here
from support.database import assert_whole, dump
from support.inside import writing_store
from support.installations import BLOG, LONG_AGO, Installation, chain, fill_database, installations
from support.service import services
from support.serving import BRIEF, until

OTHER, THIRD = "https://old.example", "https://third.example"


def report_of(text: str) -> tuple[list[str], int]:
    """A line for each page, and the number at the end."""
    *lines, last = text.splitlines()
    assert all(" -> " in line for line in lines)
    count = re.match(r"pages that (?:would move|moved): (0(?=; the .*/admin$)|[1-9]\d*$)", last)
    assert count
    return sorted(line.strip() for line in lines), int(count[1])


def move(installation: Installation, *words: str) -> tuple[list[str], int]:
    code, text, errors = installation.run("move", *words)
    assert (code, errors) == (0, "")
    return report_of(text.decode())


def pages(installation: Installation) -> dict[str, int]:
    """The addresses, with the views, by which a test knows what became of each page."""
    return {
        row["page_url"]: row["views"]
        for row in installation.rows("SELECT page_url, views FROM page")
    }


def add_pages(installation: Installation, *page_urls: str) -> None:
    """A comment on each page; the views are 1, 2, 4 …: any sum of some tells which they are."""
    fill_database(
        installation,
        [
            (url, False, 0, 2**number, 0, [chain("visible")[0] | {"content": url}])
            for number, url in enumerate(page_urls)
        ],
    )


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


# Which pages, and where to


SPELLINGS = ["/old", "/old/", "/old/index.html", f"{BLOG}/old/", "/old?utm_id=1", "/%6Fld"]


@pytest.mark.parametrize("old", SPELLINGS)
@pytest.mark.parametrize("new", ["/new/", f"{BLOG}/new/"])
def test_a_page_is_known_by_each_of_its_spellings(
    installation: Installation, old: str, new: str
) -> None:
    add_pages(installation, "/old/", "/older/", "/old/more/", f"{OTHER}/old/")
    assert move(installation, old, new) == ([f"/old/ -> {new}"], 1)
    assert pages(installation) == {new: 1, "/older/": 2, "/old/more/": 4, f"{OTHER}/old/": 8}
    assert installation.rows("SELECT key FROM page WHERE views = 1") == [{"key": "/new"}]


MOVES: dict[str, tuple[list[str], str, str, list[str]]] = {
    "all that is below": (
        ["/old/", "/old/a/", "/old/b/c.html", "/older/"],
        "/old/*",
        "/new/*",
        ["/new/", "/new/a/", "/new/b/c.html", "/older/"],
    ),
    "all that begins so": (
        ["/2019", "/2019/a", "/2020/a", "/2120/a"],
        "/20*",
        "/y20*",
        ["/y2019", "/y2019/a", "/y2020/a", "/2120/a"],
    ),
    "the date goes": (["/2026/11/hello/", "/2026/"], "/2026/11/*", "/*", ["/hello/", "/2026/"]),
    "into a folder": (["/", "/a/", "/b"], "/*", "/blog/*", ["/blog/", "/blog/a/", "/blog/b"]),
    "out of a folder": (["/blog/", "/blog/a/", "/a"], "/blog/*", "/x/*", ["/x/", "/x/a/", "/a"]),
    "from another host": (
        [f"{OTHER}/", f"{OTHER}/a/", f"{OTHER}/b?c=1", f"{OTHER}/?p=12", "/c", f"{OTHER}/#/r"],
        f"{OTHER}/*",
        "/*",
        ["/", "/a/", "/b?c=1", "/?p=12", "/c", "/#/r"],
    ),
    "from another host, but http": ([f"{OTHER}/a/"], "http://old.example/*", "/*", ["/a/"]),
    "to another host": (["/a/", f"{OTHER}/b"], "/*", f"{THIRD}/*", [f"{THIRD}/a/", f"{OTHER}/b"]),
    "from host to host": (
        [f"{OTHER}/a/", "/a/"],
        f"{OTHER}/*",
        f"{THIRD}/*",
        [f"{THIRD}/a/", "/a/"],
    ),
    "other hosts stay": ([f"{OTHER}/a/", "/a/"], "/*", "/x/*", [f"{OTHER}/a/", "/x/a/"]),
    "Chinese": (["/文章/你好/", "/文章/"], "/文章/你好/", "/hello/", ["/hello/", "/文章/"]),
    "Chinese, encoded": (["/文章/你好/"], "/%E6%96%87%E7%AB%A0/%e4%bd%a0%E5%A5%BD", "/a/", ["/a/"]),
    "encoded, Chinese": (["/%E6%96%87%E7%AB%A0/a/"], "/文章/*", "/posts/*", ["/posts/a/"]),
    "to Chinese": (["/a/b/"], "/a/*", "/文章/*", ["/文章/b/"]),
    "reserved signs": (["/a%2Fb/c%3Fd", "/50%/x"], "/a%2fb/*", "/x/*", ["/x/c%3Fd", "/50%/x"]),
    "a query": (["/?p=12", "/?p=123", "/p=12"], "/?p=12", "/a/", ["/a/", "/?p=123", "/p=12"]),
    "queries": (["/?p=12", "/?q=12"], "/?p=*", "/post/*", ["/post/12", "/?q=12"]),
    "queries of the folder itself": (
        ["/old/?x=1", "/old?x=b/c", "/old/index.html?x=3", "/old2?x=1", "/old/#/a"],
        "/old/*",
        "/new/*",
        ["/new/?x=1", "/new/?x=b/c", "/new/index.html?x=3", "/old2?x=1", "/new/#/a"],
    ),
    "to queries": (["/post/12", "/post/13"], "/post/*", "/?p=*", ["/?p=12", "/?p=13"]),
    "routes": (["/#/a", "/#/b"], "/#/a", "/a/", ["/a/", "/#/b"]),
    "any key": (["my page", "my other"], "my page", "/mine/", ["/mine/", "my other"]),
    "any keys": (["my page", "my other"], "my *", "/my/*", ["/my/page", "/my/other"]),
    "a star in the middle is one": (["/a*b/c", "/axb/c"], "/a*b/*", "/d/*", ["/d/c", "/axb/c"]),
    "the rest as it is written": (
        ["/old/a/?x=1", "/old/%C3%A9/index.html", "/old/b/index.html"],
        "/old/*",
        "/new/*",
        ["/new/a/?x=1", "/new/%C3%A9/index.html", "/new/b/index.html"],
    ),
    "nothing": (["/a/", "/A/"], "/b/*", "/c/*", ["/a/", "/A/"]),
    "the case counts": (["/a/", "/A/"], "/A/", "/c/", ["/a/", "/c/"]),
    "another spelling": (["/A%20b/index.html"], "/A b", "/A%20b/", ["/A%20b/"]),
}


@pytest.mark.parametrize("name", MOVES)
def test_pages_move_to_the_new_urls(installation: Installation, name: str) -> None:
    before, old, new, after = MOVES[name]
    add_pages(installation, *before)
    lines, count = move(installation, old, new)
    assert pages(installation) == {url: 2**number for number, url in enumerate(after)}
    changed = [f"{a} -> {b}" for a, b in zip(before, after, strict=True) if a != b]
    assert (lines, count) == (sorted(changed), len(changed))
    keys = [page_name(url, {"https://blog.example"}).key for url in after]
    assert sorted(row["key"] for row in installation.rows("SELECT key FROM page")) == sorted(keys)
    rows = installation.rows("SELECT content, views FROM comment JOIN page ON page.id = page_id")
    assert {row["content"]: row["views"] for row in rows} == {u: 2**n for n, u in enumerate(before)}
    assert_whole(str(installation.path))


def test_a_page_with_a_key_of_older_rules_can_be_moved_by_that_key(
    installation: Installation,
) -> None:
    add_pages(installation, "/new/", "/old/")
    with closing(sqlite3.connect(installation.path)) as db, db:
        db.execute("UPDATE page SET key = '/new?from=timeline' WHERE key = '/old'")
    assert move(installation, "/new?from=timeline", "/new/") == (["/old/ -> /new/ (merged)"], 1)
    assert pages(installation) == {"/new/": 3}


@pytest.mark.parametrize("word", ["/a/x/?q=%20b", "/a/*", "/*", f"{BLOG}/*"])
def test_a_move_of_a_page_onto_itself_changes_nothing(
    installation: Installation, word: str
) -> None:
    add_pages(
        installation, "/a/", "/a/x/?q=%20b", "/a/%E6%96%87/", "/a/文/b/index.html", f"{BLOG}/c/"
    )
    before = dump(str(installation.path))
    installation.run("move", word, word)
    assert dump(str(installation.path)) == before


# Many at once

PARTS = st.builds(
    lambda parts, query: "/".join(["", *parts, query]),
    st.lists(st.sampled_from("ab"), max_size=3),
    st.sampled_from(["", "", "?a=b/"]),
)
WHERE = st.lists(
    st.tuples(st.sampled_from(["", OTHER]), PARTS), unique=True, min_size=1, max_size=9
)
ENDS = st.sampled_from(["/*", "/a/*", "/b/*", "/a/a/*", "/a/b/*", "/a*", "/aa*", f"{OTHER}/*"])


def goes_to(page_url: str, old: str, new: str) -> str:
    """The model: a page has a place, which begins with the one that is asked for, or not."""
    foreign = old.startswith(OTHER)
    if page_url.startswith(OTHER) != foreign or not page_url.startswith(old[:-1]):
        return page_url
    return new[:-1] + page_url[len(old) - 1 :]


@pytest.mark.slow
@example([("", "/a/"), ("", "/a/a/"), ("", "/a/a/a/"), ("", "/")], "/*", "/a/*")
@example([("", "/a/"), ("", "/a/a/"), ("", "/a/a/a/"), ("", "/")], "/a/*", "/*")
@given(WHERE, ENDS, ENDS)
def test_a_move_of_many_pages_moves_all_at_once_and_none_twice(
    where: list[tuple[str, str]], old: str, new: str
) -> None:
    with installations("here") as (installation,):
        urls = [host + path for host, path in where]
        add_pages(installation, *urls)
        expected: dict[str, int] = {}
        for number, url in enumerate(urls):
            key = page_name(goes_to(url, old, new), {"https://blog.example"}).key
            expected[key] = expected.get(key, 0) + 2**number
        dry = move(installation, old, new, "--dry-run")
        assert pages(installation) == {url: 2**number for number, url in enumerate(urls)}
        assert move(installation, old, new) == dry
        rows = installation.rows("SELECT id, key, views, total FROM page")
        assert {row["key"]: row["views"] for row in rows} == expected
        assert [row["total"] for row in rows] == [row["views"].bit_count() for row in rows]
        assert_whole(str(installation.path))


# One takes in another


def test_a_page_moved_onto_another_is_merged_with_it(installation: Installation) -> None:
    deep = chain("visible", "deleted", "waiting", "spam", "visible")
    fill_database(
        installation, [("/old/", True, 0, 3, 3, deep), ("/new/", False, 7, 4, 1, chain("visible"))]
    )
    with writing_store(installation.path) as store:
        for who, page_id in (("both", 1), ("both", 2), ("old", 1), ("new", 2), ("all", 0)):
            store.subscribe(who, page_id, "no" if page_id == 2 else "yes")
    (line,), count = move(installation, "/old/", "/new/")
    assert (re.fullmatch(r"/old/ -> /new/ \(\w+\)", line) is not None, count) == (True, 1)
    page = "SELECT id, key, page_url, total, threads, views, page_likes, closed FROM page"
    assert installation.rows(page) == [
        {
            "id": 2,
            "key": "/new",
            "page_url": "/new/",
            "total": 3,
            "threads": 2,
            "views": 7,
            "page_likes": 3,
            "closed": 0,
        }
    ]
    found = installation.rows("SELECT subscriber, page_id, state FROM subscription ORDER BY 1")
    assert [(row["subscriber"], row["page_id"], row["state"]) for row in found] == [
        ("all", 0, "yes"),
        ("both", 2, "no"),
        ("new", 2, "no"),
        ("old", 2, "yes"),
    ]
    assert {row["page_id"] for row in installation.rows("SELECT page_id FROM comment")} == {2}
    assert_whole(str(installation.path))
    assert installation.run("recount") == (0, b"all counters were correct\n", "")


@pytest.mark.parametrize("closed", [(True, False), (False, True)])
def test_a_page_that_takes_in_another_stays_open_or_closed(
    installation: Installation, closed: tuple[bool, bool]
) -> None:
    old, new = closed
    life = [("/old/", old, 0, 0, 0, chain("visible")), ("/new/", new, 7, 0, 0, chain("visible"))]
    fill_database(installation, life)
    move(installation, "/old/", "/new/")
    (page,) = installation.rows("SELECT closed, opened_at FROM page")
    assert page == {"closed": int(new), "opened_at": LONG_AGO + 7}


def test_a_move_of_a_page_keeps_all_that_it_has(installation: Installation) -> None:
    fill_database(installation, [("/old/", True, 7, 3, 2, chain("visible", "deleted", "waiting"))])
    before = dump(str(installation.path))
    move(installation, "/old/", "/new/")
    after = dump(str(installation.path))
    assert {**after, "page": []} == {**before, "page": []}
    (old,), (new,) = before["page"], after["page"]
    assert [value for value in new if value not in old] == ["/new", "/new/"]


def test_an_import_after_a_move_brings_nothing_twice(installation: Installation) -> None:
    """A second import brings nothing, and the old page does not come back."""
    target = Installation(installation.folder / "there")
    fill_database(target, [("/old/", True, 0, 3, 2, chain("visible", "visible"))])
    text = target.export()
    installation.import_text(text)
    move(installation, "/old/", "/new/")
    before = dump(str(installation.path))
    assert installation.import_text(text)["new"] == 0
    assert dump(str(installation.path)) == before
    assert pages(installation) == {"/new/": 3}


# Nothing by halves


def test_a_move_that_fails_leaves_all_as_it_was(installation: Installation) -> None:
    add_pages(installation, "/old/a/", "/old/b/", "/new/b/")
    with closing(sqlite3.connect(installation.path)) as db, db:
        db.execute(
            """CREATE TRIGGER broken BEFORE UPDATE ON page WHEN new.key = '/new/a'
               BEGIN SELECT RAISE(ABORT, 'broken'); END"""
        )
    before = dump(str(installation.path))
    assert installation.run("move", "/old/*", "/new/*") == (1, b"", "commentd: broken\n")
    assert dump(str(installation.path)) == before


# Beside the service


@pytest.mark.slow
def test_readers_soon_find_a_moved_page_at_the_new_url(tmp_path: Path) -> None:
    with services(tmp_path) as start:
        service = start(program=BRIEF, site={"origins": f"\n{BLOG}"})

        def said(url: str) -> list[str]:
            listing = service.ask("GET", f"/comments?url={url}&view=threads").json
            assert listing["total"] == len(listing["comments"])
            return [comment["content"] for comment in listing["comments"]]

        for content in ("one", "two"):
            body = {**COMMENT, "page_url": "/old/", "content": content}
            assert service.ask("POST", "/comments", body=body).status == 200
        assert (len(said("/old/")), said("/new/")) == (2, [])
        code, text, errors = run(tmp_path, "move", "/old/", "/new/")
        assert (code, errors, report_of(text)[1]) == (0, "", 1)
        # Cached responses are sent until they expire.
        until(lambda: sorted(said("/new/")) == ["one", "two"])
        until(lambda: said("/old/") == [])
        reply = {**COMMENT, "page_url": "/new/", "parent_id": 1}
        posted = service.ask("POST", "/comments", body=reply).json["comment"]
        assert (posted["page_url"], posted["parent_id"]) == ("/new/", 1)
        late = {**COMMENT, "page_url": "/old/", "parent_id": 1}
        assert service.ask("POST", "/comments", body=late).status == 404


def test_lists_have_the_new_url_of_a_moved_page(
    app: App, visitor: Visitor, config: Config, tmp_path: Path
) -> None:
    installation = Installation(tmp_path)
    assert installation.path == Path(config.database_path)
    visitor.say(page_url="/old/")
    move(installation, "/old/", "/new/")
    assert visitor.get("/comments/latest").json["comments"][0]["page_url"] == "/new/"
    counts = visitor.get("/pages?url=/old/&url=/new/").json["pages"]
    assert [page["total"] for page in counts] == [0, 1]
    assert app.site.store.page("/old") is None


# Wrong use


WRONG = {
    "nothing": [],
    "one word": ["/a/"],
    "three words": ["/a/", "/b/", "/c/"],
    "an empty word": ["/a/", ""],
    "many to one": ["/a/*", "/b/"],
    "one to many": ["/a/", "/b/*"],
}


def test_wrong_use_of_move_exits_with_2_and_a_sentence(installation: Installation) -> None:
    add_pages(installation, "/a/", "/a/x/")
    before = dump(str(installation.path))
    for name, words in WRONG.items():
        code, text, errors = run_here(installation.folder, "move", *words)
        assert (code, text) == (2, ""), name
        assert errors.startswith(("usage: commentd ", "commentd: ")), name
        assert dump(str(installation.path)) == before, name


def test_a_move_of_no_page_says_so_and_changes_nothing(installation: Installation) -> None:
    add_pages(installation, "/a/")
    before = dump(str(installation.path))
    for words in (["/b/", "/c/"], ["/b/*", "/c/*"], ["/a/*x", "/c/"]):
        code, text, _ = installation.run("move", *words)
        assert (code in (0, 1), report_of(text.decode())) == (True, ([], 0))
    assert dump(str(installation.path)) == before


def test_a_move_without_a_database_is_refused(tmp_path: Path) -> None:
    code, text, errors = run_here(tmp_path, "move", "/a/", "/b/")
    assert (code, text) == (1, "")
    assert "go to the folder of commentd.ini" in errors
    assert not list(tmp_path.glob("*.db"))
