"""GET /comments, /comments/latest and /pages: what is listed, in which order, how much work it is,
and who looked."""

import itertools
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
import webtest

from commentd import App, Config
from support import inside
from support.campaign import Campaign
from support.client import PAGE, Visitor
from support.inside import set_status, sql
from support.service import visiting
from support.world import START, FakeWorld

NO_LIMITS = pytest.mark.parametrize("settings", [{"limits_enabled": False}])
HIDDEN = ("waiting", "spam", "deleted")
DAY = 86400


def hide(app: App, *ids: int, status: str = "deleted") -> None:
    for comment_id in ids:
        set_status(app, comment_id, status)


def add_rows(app: App, parents: list[int | None], page_url: str = PAGE, step: int = 1) -> None:
    """Many comments in one transaction, a second apart."""
    key = page_url.rstrip("/")
    with closing(sqlite3.connect(inside.database_path(app))) as db, db:
        page = "INSERT OR IGNORE INTO page (key, page_url, seen_at) VALUES (?, ?, ?)"
        db.execute(page, (key, page_url, START))
        threads = dict(db.execute("SELECT id, coalesce(thread_id, id) FROM comment"))
        first = max(threads, default=0) + 1
        for number, parent in enumerate(parents, first):
            thread = threads[parent] if parent else None
            threads[number] = thread or number
            at = START + (number - first) * step
            db.execute(
                """INSERT INTO comment (id, page_id, parent_id, thread_id, nickname, email, website,
                          content, html, ip, country, location, status, created_at)
                   SELECT ?, id, ?, ?, 'Ann', '', '', ?, '<p>x</p>', '', '', '', 'visible', ?
                     FROM page WHERE key = ?""",
                (number, parent, thread, f"{number}", at, key),
            )
    inside.recount(app)


def ids(listing: dict[str, Any]) -> list[Any]:
    """The ids of a list; of threads, each with those of its replies."""
    return [
        (c["id"], [r["id"] for r in c["replies"]]) if "replies" in c else c["id"]
        for c in listing["comments"]
    ]


def every_page(visitor: Visitor, limit: int, **query: Any) -> list[Any]:
    """All of a list, page by page until one is empty."""
    found: list[Any] = []
    for page in range(1, 1000):
        stretch = ids(visitor.listing(page=page, limit=limit, **query))
        if not stretch:
            break
        found += stretch
    return found


# The flat list


@pytest.mark.parametrize("settings", [{"comments_page_size": 2, "comments_max_length": 500}])
def test_the_owner_sets_the_page_size_and_the_length_of_comments(
    visitor: Visitor, app: App
) -> None:
    add_rows(app, [None] * 5)
    listing = visitor.listing(page=2)
    assert (ids(listing), listing["max_comment_length"]) == ([3, 2], 500)


def test_lists_and_counts_are_not_limited(app: App) -> None:
    client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})
    for path in ["/comments", "/pages"] * 130:
        client.get(path, {"url": PAGE}, status=200)


def test_a_wrong_choice_is_refused_with_the_choices_that_there_are(visitor: Visitor) -> None:
    there_are = "参数 sort 必须是 newest、oldest、likes 之一"
    too_long = "参数 sort 不能超过 64 个字符"
    for sort, text, code in (
        ("x" * 64, there_are, "sort_invalid"),
        ("x" * 65, too_long, "sort_too_long"),
    ):
        refused = visitor.get("/comments", {"url": PAGE, "sort": sort}, status=400).json
        assert refused == {"error": text, "code": code}


def test_one_to_a_hundred_pages_are_counted_at_once(visitor: Visitor) -> None:
    paths = [f"/{number}/" for number in range(101)]
    counted = visitor.get("/pages", {"url": paths[:100]}).json["pages"]
    assert [page["page_url"] for page in counted] == paths[:100]
    assert visitor.get("/pages", status=400).json["code"] == "url_missing"
    assert visitor.get("/pages", {"url": paths}, status=400).json["code"] == "url_invalid"


def test_comments_are_listed_six_at_a_time_newest_first(visitor: Visitor, app: App) -> None:
    add_rows(app, [None] * 8)
    assert ids(visitor.listing()) == [8, 7, 6, 5, 4, 3]
    for page, found in ((2, [2, 1]), (3, [])):
        listing = visitor.listing(page=page)
        assert (ids(listing), listing["total"], listing["page"]) == (found, 8, page)
    assert visitor.listing(page=1_000_000, limit=100)["comments"] == []


def test_unknown_parameters_of_a_list_change_nothing(visitor: Visitor, app: App) -> None:
    add_rows(app, [None] * 3)
    hide(app, 2, status="waiting")
    assert ids(visitor.listing(status="waiting", role="admin", all="1", offset="1")) == [3, 1]


# Threads

SETTINGS = {
    "captcha": "none",
    "site_key": "",
    "login_required": False,
    "registration": True,
    "hold": "none",
    "closed": False,
    "edit_minutes": 15,
    "policy_url": "",
}


def test_threads_carry_their_replies_flat_and_oldest_first(visitor: Visitor, app: App) -> None:
    add_rows(app, [None, None, 1, 3, 2, 1])
    flat = {c["id"]: c for c in visitor.listing()["comments"]}
    assert visitor.listing(view="threads", limit=1, page=2) == {
        "comments": [{**flat[1], "replies": [flat[3], flat[4], flat[6]], "more_replies": 0}],
        "total": 6,
        "threads": 2,
        "max_comment_length": 2000,
        "views": 1,
        "page_likes": 0,
        "page": 2,
        "settings": SETTINGS,
    }
    assert ids(visitor.listing(view="threads")) == [(2, [5]), (1, [3, 4, 6])]
    assert ids(visitor.listing(view="threads", sort="oldest")) == [(1, [3, 4, 6]), (2, [5])]
    visitor.post_json("/comment/like", {"id": 1})
    assert ids(visitor.listing(view="threads", sort="likes")) == [(1, [3, 4, 6]), (2, [5])]
    assert visitor.listing(view="threads", page=2)["threads"] == 2


def test_threads_have_the_settings_that_a_widget_must_know(
    config: Config, fake_world: FakeWorld
) -> None:
    public = {"server_public_url": "https://c.example"}
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"captcha_provider": "altcha"}, {"captcha": "altcha"}),
        ({"comments_login_required": True}, {"login_required": True}),
        ({"privacy_policy_url": "https://a.example/p"}, {"policy_url": "https://a.example/p"}),
        ({"comments_pictures": True}, {"pictures": True}),
        (public, {"registration": False}),
        ({**public, "mail_host": "localhost"}, {}),
    ]
    for settings, shown in cases:
        with visiting(config, fake_world, **settings) as visitor:
            assert visitor.listing(view="threads")["settings"] == SETTINGS | shown
            assert "settings" not in visitor.listing()


def test_a_thread_carries_a_hundred_replies_and_counts_the_rest(visitor: Visitor, app: App) -> None:
    def carried(limit: int) -> tuple[list[int], int]:
        (root,) = visitor.listing(view="threads", limit=limit)["comments"]
        return [reply["id"] for reply in root["replies"]], root["more_replies"]

    add_rows(app, [None, *[1] * 100])
    assert carried(10) == ([*range(2, 102)], 0)
    assert carried(100) == ([*range(2, 12)], 90), "many threads carry fewer replies each"
    assert carried(91) == ([*range(2, 12)], 90), "91 threads with 11 would carry 1001"
    add_rows(app, [1] * 30)
    hide(app, 5, 120)
    first, more = carried(9)
    assert (len(first), more) == (100, 28)
    all_ = first + ids(visitor.listing(thread=1, page=2, limit=100))
    assert sorted(all_) == [n for n in range(2, 132) if n not in (5, 120)]
    assert all_ == every_page(visitor, 7, thread=1)


def test_a_list_of_long_replies_is_not_too_long(visitor: Visitor, app: App) -> None:
    """Otherwise one request would have the service make 12 MB."""
    add_rows(app, [None, *[1] * 99])
    long = "x" * 10_000
    sql(app, "UPDATE comment SET html = ?", long)

    def carried(limit: int) -> tuple[int, int]:
        (root,) = visitor.listing(view="threads", limit=limit)["comments"]
        return len(root["replies"]), root["more_replies"]

    assert carried(6) == (5, 94)
    assert carried(100) == (1, 98), "there is always one"
    assert len(ids(visitor.listing(thread=1, limit=100))) == 99


def test_a_thread_lists_its_replies_and_no_others(visitor: Visitor, app: App) -> None:
    add_rows(app, [None, None, 1, 3, 2])
    add_rows(app, [None, None], page_url="/other/")
    hide(app, 7)
    flat = {c["id"]: c for c in visitor.listing()["comments"]}
    for query in ({}, {"view": "threads"}, {"sort": "newest"}):
        assert visitor.listing(thread=1, **query)["comments"] == [flat[3], flat[4]]
    assert visitor.listing(thread=1)["total"] == 5
    gone = {"error": "评论不存在", "code": "comment_gone"}
    # A reply, one that is not there, one of another page, one that is hidden.
    for url, wrong in ((PAGE, 3), (PAGE, 99), (PAGE, 2**63 - 1), (PAGE, 6), ("/other/", 7)):
        refused = visitor.get("/comments", {"url": url, "thread": wrong}, status=404).json
        assert refused == gone, wrong


def test_around_finds_the_page_of_a_comment_in_a_thread_and_else_the_first(
    visitor: Visitor, app: App
) -> None:
    assert visitor.listing(around=1, page=3)["page"] == 1
    add_rows(app, [None, None, None, *[1] * 6])
    add_rows(app, [None, 10], page_url="/other")
    hide(app, 2, 9)
    for wanted in range(4, 9):
        assert wanted in ids(visitor.listing(thread=1, around=wanted, limit=2))
    for query in ({}, {"view": "threads"}, {"thread": 1}):
        for unknown in (2, 9, 10, 11, 99, 2**63 - 1):
            listing = visitor.listing(around=unknown, page=3, limit=2, **query)
            assert listing["page"] == 1, (query, unknown)


def test_a_thread_may_be_thousands_of_replies_deep(visitor: Visitor, app: App) -> None:
    """Deeper than Python calls functions."""
    depth = 2 * sys.getrecursionlimit()
    add_rows(app, [None, *range(1, depth)])
    assert visitor.listing(view="threads")["comments"][0]["more_replies"] == depth - 101
    around = visitor.listing(view="threads", thread=1, around=depth)
    assert depth in ids(around)
    for path in ("/thread", "/fragment", "/feed.atom"):
        visitor.get(path, {"url": PAGE})
    hide(app, 1, depth)
    assert visitor.listing()["total"] == depth - 2


def test_the_query_for_changed_comments_uses_an_index(visitor: Visitor, app: App) -> None:
    add_rows(app, [None] * 5)
    _, reader = inside.connections(app)
    asked: list[str] = []
    reader.set_trace_callback(asked.append)
    visitor.listing(since=0)
    reader.set_trace_callback(None)
    plans = [
        row["detail"] for each in asked for row in reader.execute(f"EXPLAIN QUERY PLAN {each}")
    ]
    sorts = [plan for plan in plans if "SCAN" in plan or "TEMP" in plan]
    assert sorts == ["USE TEMP B-TREE FOR ORDER BY"]  # of the few that are sent


# Views


def views(visitor: Visitor, url: str = PAGE) -> int:
    pages: int = visitor.get("/pages", {"url": url}).json["pages"][0]["views"]
    return pages


def test_each_request_for_the_first_page_of_a_list_is_a_view(
    visitor: Visitor, app: App, db: sqlite3.Connection
) -> None:
    rows = "SELECT key, views FROM page ORDER BY key"
    for number in (1, 2, 3):
        assert visitor.listing(view="threads" if number == 2 else "flat")["views"] == number
    assert db.execute(rows).fetchall() == []
    app.tick()
    assert db.execute(rows).fetchall() == [("/2026/hello", 3)]
    assert visitor.listing()["views"] == 4
    assert views(visitor, PAGE + "index.html") == 4
    app.tick()
    app.tick()
    assert db.execute(rows).fetchall() == [("/2026/hello", 4)]
    assert visitor.say()["comment"]["page_url"] == PAGE


def test_a_request_for_changes_alone_is_a_view_unless_the_list_must_be_read(
    visitor: Visitor,
) -> None:
    assert visitor.listing(since=0)["views"] == 1
    assert visitor.listing(since=7)["reload"]
    assert views(visitor) == 1


def test_views_are_written_when_the_service_stops(visitor: Visitor, app: App) -> None:
    visitor.listing()
    for _ in range(2):
        app.close()
    assert sql(app, "SELECT key, views FROM page") == [("/2026/hello", 1)]


ROBOTS = [
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Mozilla/5.0 (compatible; Baiduspider/2.0)",
    "Mozilla/5.0 (compatible; Yahoo! Slurp)",
    "facebookexternalhit/1.1",
    "Mozilla/5.0 (Linux; Android) AppleWebKit Chrome-Lighthouse",
    "ia_archiver-web.archive.org crawler",
]
BROWSERS = [
    "",
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Linux; Android 10; CUBOT NOTE 20) AppleWebKit/537.36 Chrome/140 Mobile",
]


def test_only_requests_of_people_for_the_page_count_as_views(visitor: Visitor, app: App) -> None:
    visitor.say()
    looks: list[tuple[dict[str, Any], dict[str, str]]] = [
        ({"page": 2}, {}),
        ({"around": 1}, {}),
        ({"thread": 1}, {}),
        ({"around": 1, "view": "threads"}, {}),
        *(({}, {"Sec-Purpose": how}) for how in ("prefetch", "prefetch;prerender")),
        *(({}, {"User-Agent": robot}) for robot in ROBOTS),
    ]
    for query, headers in looks:
        visitor.get("/comments", {"url": PAGE} | query, headers=headers)
        assert views(visitor) == 0, (query, headers)
    # Not through the invariants: they read every JSON response, and HEAD has no body.
    r = webtest.TestApp(app, lint=True).head("/comments", {"url": PAGE})
    assert (r.status_int, r.body) == (200, b"")
    visitor.get("/comments", {"url": PAGE, "limit": 0}, status=400)
    assert [views(visitor), views(visitor)] == [0, 0]
    for number, browser in enumerate(BROWSERS, 1):
        visitor.get("/comments", {"url": PAGE}, headers={"User-Agent": browser})
        assert views(visitor) == number, browser


def test_a_client_counts_at_most_sixty_views_a_minute(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    for number in range(1, 66):
        assert visitor.listing()["views"] == min(number, 60)
    assert Visitor(app, "203.0.113.8").listing()["views"] == 61
    fake_world.time += 60
    assert visitor.listing()["views"] == 62


def known_pages(app: App) -> int:
    """How many pages are known."""
    app.tick()
    return len(sql(app, "SELECT 1 FROM page"))


def test_a_client_adds_at_most_twenty_new_pages_an_hour(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    for i in range(25):
        visitor.listing(url=f"/{i}")
    assert known_pages(app) == 20
    visitor.say(page_url="/by-comment", status=429)
    visitor.post_json("/page/like", {"page_url": "/by-like"}, status=429)
    assert views(visitor, "/24") == 0
    assert visitor.listing(url="/3")["views"] == 2
    Visitor(app, "203.0.113.8").listing(url="/24")
    assert known_pages(app) == 21
    fake_world.time += 3600
    visitor.listing(url="/by-view")
    assert known_pages(app) == 22


def test_all_clients_together_add_at_most_three_hundred_new_pages_an_hour(
    app: App, fake_world: FakeWorld
) -> None:
    inside.use_up(app, "all_new_pages", 290)
    for i in range(20):  # of clients, and behind a proxy that nobody named
        headers = {"X-Forwarded-For": "198.51.100.1"} if i % 2 else {}
        reader = Visitor(app, "127.0.0.1" if headers else f"203.0.113.{i}")
        reader.get("/comments", {"url": f"/{i}"}, headers=headers)
    assert known_pages(app) == 10
    other, like = Visitor(app, "203.0.113.99"), {"page_url": "/by-like"}
    other.post_json("/page/like", like, status=429)
    other.say(page_url="/by-comment")
    assert known_pages(app) == 11
    fake_world.time += 3600
    other.post_json("/page/like", like)
    assert known_pages(app) == 12


def test_a_page_that_nobody_uses_is_dropped_after_ninety_days(
    visitor: Visitor, app: App, db: sqlite3.Connection, fake_world: FakeWorld
) -> None:
    def known() -> set[str]:
        app.tick()
        return {key for (key,) in db.execute("SELECT key FROM page")}

    visitor.say(page_url="/said")
    visitor.say(page_url="/unsaid")
    hide(app, 2)
    visitor.post_json("/page/like", {"page_url": "/liked"})
    visitor.post_json("/page/like", {"page_url": "/unliked"})
    visitor.post_json("/page/like", {"page_url": "/unliked", "undo": True})
    for url in ("/seen", "/seen-again"):
        visitor.listing(url=url)
    everything = {"/said", "/unsaid", "/liked", "/unliked", "/seen", "/seen-again"}
    assert known() == everything
    fake_world.time += DAY
    visitor.listing(url="/seen-again")
    app.tick()
    fake_world.time = START + 90 * DAY
    assert known() == everything
    fake_world.time += 60
    assert known() == {"/said", "/liked", "/seen-again"}  # what was hidden there is gone too
    fake_world.time += DAY
    assert known() == {"/said", "/liked"}


# Counts of many pages


def test_counts_of_pages_come_in_the_order_asked_and_make_no_pages(
    visitor: Visitor, app: App, db: sqlite3.Connection
) -> None:
    visitor.say(page_url="/one/")
    visitor.say("two", page_url="/one")
    visitor.post_json("/page/like", {"page_url": "/liked"})
    visitor.listing(url="/seen")
    hide(app, 2)
    urls = ["/seen", "/one?utm_source=x#top", "/never", "/liked", "/one/", "文章"]
    sums = [(0, 1, 0), (1, 0, 0), (0, 0, 0), (0, 0, 1), (1, 0, 0), (0, 0, 0)]
    sent = ["/seen", "/one", "/never", "/liked", "/one/", "文章"]
    assert visitor.get("/pages", [("url", url) for url in urls]).json == {
        "pages": [
            {"page_url": url, "total": total, "views": seen, "page_likes": likes}
            for url, (total, seen, likes) in zip(sent, sums, strict=True)
        ]
    }
    app.tick()
    rows = db.execute("SELECT key FROM page ORDER BY key").fetchall()
    assert rows == [("/liked",), ("/one",), ("/seen",)]


# All of it against a simple model

ORDERS: dict[str, Callable[[Any], Any]] = {
    "newest": lambda c: (-c["at"], -c["id"]),
    "oldest": lambda c: (c["at"], c["id"]),
    "likes": lambda c: (-c["likes"], -c["at"], -c["id"]),
}


def expected(known: dict[int, Any], view: str, sort: str) -> list[Any]:
    """What a list should hold: the ids, or those of threads and of their replies."""
    ordered = sorted(known.values(), key=ORDERS[sort])
    if view == "flat":
        return [c["id"] for c in ordered if c["visible"]]
    places: set[int] = set()
    for number in known:
        if known[number]["visible"]:
            while number:
                places.add(number)
                number = known[number]["parent"] or 0
    replies: dict[int, list[int]] = {number: [] for number in places}
    for number in sorted(places):
        root = number
        while known[root]["parent"]:
            root = known[root]["parent"]
        if root != number:
            replies[root].append(number)
    tops = [c["id"] for c in ordered if c["id"] in places and not c["parent"]]
    return [(top, replies[top]) for top in tops]


@NO_LIMITS
def test_lists_of_comments_are_those_of_a_simple_model(
    app: App, visitor: Visitor, campaign: Campaign
) -> None:
    for chance in campaign.rounds(4):
        url, first = f"/{campaign.last}/", 1 + 16 * (campaign.last - campaign.first)
        known: dict[int, Any] = {}
        for number in range(first, first + 16):
            parent = chance.choice([None, None, *known][-6:])
            likes, visible = chance.randrange(4), chance.random() < 0.6
            known[number] = {"id": number, "parent": parent, "likes": likes, "visible": visible}
            known[number]["at"] = START + (number - first) // 3
        add_rows(app, [c["parent"] for c in known.values()], url, step=0)
        for number, c in known.items():
            sql(app, "UPDATE comment SET created_at = ? WHERE id = ?", c["at"], number)
            for liker in range(c["likes"]):
                sql(app, "INSERT INTO comment_liker VALUES (?, ?, NULL)", number, f"user {liker}")
        inside.recount(app)
        hide(app, *(number for number, c in known.items() if not c["visible"]))

        for view, sort in itertools.product(("flat", "threads"), ORDERS):
            query = {"url": url, "view": view, "sort": sort}
            listed = expected(known, view, sort)
            assert every_page(visitor, 3, **query) == listed, query
            for place, wanted in enumerate(listed):
                for number in [wanted] if view == "flat" else [wanted[0], *wanted[1]]:
                    found = visitor.listing(around=number, limit=3, **query)
                    assert found["page"] == place // 3 + 1, query
        counts = visitor.listing(url=url, view="threads")
        assert counts["total"] == sum(c["visible"] for c in known.values())
        assert counts["threads"] == len(expected(known, "threads", "newest"))


# The latest of all pages


def latest(visitor: Visitor, **query: Any) -> list[int]:
    return [comment["id"] for comment in visitor.get("/comments/latest", query).json["comments"]]


def test_the_latest_comments_of_all_pages_come_six_at_a_time(visitor: Visitor, app: App) -> None:
    assert visitor.get("/comments/latest").json == {"comments": []}
    for number in range(4):
        add_rows(app, [None, None], f"/{number}/")
    # By time: those of an import have new numbers.
    assert latest(visitor) == [8, 6, 4, 2, 7, 5]
    assert latest(visitor, limit=1) == [8]
    assert latest(visitor, limit=30) == [8, 6, 4, 2, 7, 5, 3, 1]
    assert visitor.listing(url="/3/")["views"] == 1


def test_the_latest_comments_are_only_those_that_all_may_see(visitor: Visitor, app: App) -> None:
    for status in HIDDEN:
        add_rows(app, [None])
        first = latest(visitor)[0]
        add_rows(app, [first, None])
        hide(app, first, first + 2, status=status)
        assert latest(visitor) == [first + 1], status
        hide(app, first + 1, status=status)
        assert latest(visitor) == [], status


def test_the_latest_comments_look_as_in_the_list_of_their_page(visitor: Visitor, app: App) -> None:
    add_rows(app, [None])
    visitor.say("An answer.", parent_id=1)
    visitor.say("**Hello.**", email="ann@example.com", website="https://ann.example/")
    listed = [{**comment, "page_title": ""} for comment in visitor.listing()["comments"]]
    assert visitor.get("/comments/latest").json["comments"] == listed


@pytest.mark.parametrize("settings", [{"site_origins": ("https://blog.example",)}])
def test_the_latest_comments_are_of_the_owners_pages_alone(visitor: Visitor, app: App) -> None:
    add_rows(app, [None], "/a/")
    add_rows(app, [None], "/b/")
    add_rows(app, [None] * 40, "https://evil.example/c/")
    assert latest(visitor, limit=30) == latest(visitor) == [2, 1]
