"""The response cache: what all readers get alike is sent again, the very bytes that the ordinary
way gives, until something changes. Two servers of one service get the same requests, one with the
cache and one without. The clock stands still: only `Date` may differ."""

import contextlib
import gzip
import itertools
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any
from urllib.parse import quote

import pytest

from commentd import App, Config, make_app
from support import inside
from support.api import OPERATIONS, example_of, path_of
from support.campaign import Campaign
from support.client import CANARY, COMMENT, PAGE, Visitor
from support.full_service import PERMISSION, FullService, fields_of, forms_of, with_metrics
from support.full_service import full_service as full_service  # a fixture
from support.full_service import reset as reset  # a fixture
from support.inside import database_path, sql
from support.patience import PATIENCE
from support.service import BLOG, FOREIGN, request, with_comments
from support.serving import RunningServer, fast_and_stock_servers, limit, undated
from support.world import FakeWorld

IP = b"203.0.113.7"
ROBOT = "User-Agent: a bot"  # whose views are not counted
OTHER, OWNER = "/other/", "owner@example.com"
LIST = f"/comments?url={PAGE}"
CHANGES = f"{LIST}&since=0"  # of all time


def header(response: bytes, name: str) -> str:
    found = re.search(rb"(?m)^%s: (.*)\r$" % name.encode(), response)
    assert found, name
    return found[1].decode()


def body_of(response: bytes) -> bytes:
    head, _, body = response.partition(b"\r\n\r\n")
    return gzip.decompress(body) if b"\r\nContent-Encoding: gzip" in head else body


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, server_listen="127.0.0.1:0", limits_enabled=False)


@contextlib.contextmanager
def twins(
    config: Config, fake_world: FakeWorld, **settings: Any
) -> Iterator[tuple[RunningServer, RunningServer]]:
    """Two services with the same clock and randomness, for the same requests."""
    with contextlib.ExitStack() as stack:
        both = []
        for name in ("fast", "stock"):
            path = config.database_path.replace(".db", f"-{name}.db")
            world = replace(fake_world.world, random_bytes=Random(1).randbytes)
            app = make_app(replace(config, database_path=path, **settings), world, rounds=1)
            stack.callback(app.close)
            both.append(app)
        yield stack.enter_context(fast_and_stock_servers(*both))


@pytest.fixture
def fast_and_stock(app: App) -> Iterator[tuple[RunningServer, RunningServer]]:
    with fast_and_stock_servers(app) as both:
        yield both


def get(target: str, *headers: str) -> bytes:
    return request("GET", target, ROBOT, *headers)


PLAIN = get(LIST)

# What readers ask, of a page with threads, pins, tombstones and more than one page of comments.
VIEWS = [
    "",
    "&page=2",
    "&limit=3&page=2",
    "&sort=oldest",
    "&sort=likes",
    "&view=threads&around=9",
    "&view=threads&sort=likes&limit=2&page=2",
    "&thread=1",
    "&around=9&limit=2",
    "&page=1000",
]
TARGETS = [
    *(LIST + view for view in VIEWS),
    f"/comments?url={quote('/ünknown/')}&view=threads&page=3",
    "/comments/latest?limit=30",
    f"/pages?url={PAGE}",
    f"/pages?url={PAGE}&url={OTHER}&url=/nothing/",
    "/comments/latest",
    "/feed.atom",
    f"/feed.atom?url={PAGE}",
    f"/thread?url={PAGE}",
    "/thread?url=/nothing/",
    f"/thread?url={PAGE}&page=2&lang=de",
    f"/fragment?url={PAGE}&lang=de",
    CHANGES,
]
FILES = ["/embed.js", "/words/de.json"]


def fill_two_pages(app: App) -> None:
    """Two pages with all kinds of comments."""
    visitor = Visitor(app)
    for number in range(1, 28):
        parent = {"parent_id": number // 2} if number % 3 == 0 else {}
        visitor.say(f"*{number}* ü <b>", nickname=f"Ann {number}", **parent)
    visitor.say("elsewhere", page_url=OTHER)
    visitor.post_json("/comment/like", {"id": 5})
    visitor.post_json("/page/like", {"page_url": PAGE})
    sql(app, "UPDATE comment SET pinned = 1 WHERE id = 7")
    inside.set_status(app, 3, "deleted")
    inside.set_status(app, 8, "waiting")


# Files, which no write changes.
NO_TARGETS = {"/{name}", "/admin_page/{name}", "/words/{name}", "/picture", "/fragment.css"}


def lacking(table: str, targets: list[str]) -> str:
    """What to write into this table, a line for each public route that no target of it asks."""
    paths = inside.public_paths() - {path_of(target) for target in targets} - NO_TARGETS
    return "\n".join(
        f'tests/test_cache.py: {table} lacks "{example_of(path)}?…" '
        f'(or NO_TARGETS lacks "{path}", if it is a file)'
        for path in sorted(paths)
    )


def test_every_public_route_is_asked_of_the_cache() -> None:
    to_write = lacking("TARGETS", TARGETS)
    assert not to_write, to_write


# The same bytes


def same(fast: RunningServer, stock: RunningServer, raw: bytes) -> bytes:
    """The response, which is the same from the stock server, the fast one and its cache."""
    expected = stock.ask(raw)
    assert fast.ask(raw) == expected, raw
    fast.ask(re.sub(rb"If-None-Match.*\r\n", b"", raw))  # a whole response, which can be cached
    assert fast.from_cache(raw) == [expected], raw
    return expected


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"site_origins": (BLOG,)}], ids=["blog"])
def test_a_cached_response_equals_the_stock_servers(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer]
) -> None:
    fill_two_pages(app)
    fast, stock = fast_and_stock
    for target in TARGETS + FILES:
        plain = same(fast, stock, get(target))
        assert plain.startswith(b"HTTP/1.1 200 OK\r\n")
        known = same(fast, stock, get(target, f"If-None-Match: {header(plain, 'Etag')}"))
        assert known.startswith(b"HTTP/1.1 304 Not Modified\r\n")
        zipped = same(fast, stock, get(target, "Accept-Encoding: gzip", f"Origin: {FOREIGN}"))
        assert body_of(zipped) == body_of(plain)
        assert (b"Content-Encoding: gzip" in zipped) == (len(body_of(plain)) > 200)
        assert same(fast, stock, get(target, 'If-None-Match: "other"')) == plain


def form(chance: Random, etag: str) -> list[str]:
    """Headers of a browser, which may have the response already."""
    fields_of = {
        "Accept-Encoding": ["", "gzip, deflate, br", "gzip;q=0", "br, *;q=0.5", "deflate"],
        "Origin": ["", BLOG, FOREIGN, "null"],
        "If-None-Match": ["", "", etag, f"W/{etag}", f'"x", {etag}', "*", etag.strip('"'), '""'],
    }
    lines = [f"{name}: {v}" for name, values in fields_of.items() if (v := chance.choice(values))]
    odd = ["DNT: 1", "X: ~", "Connection: keep-alive", "accept: */*", "Referer: http://x/?a: b"]
    lines += chance.sample(odd, chance.choice([0, 1, 4]))
    return chance.sample(lines, len(lines))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"site_origins": (BLOG,)}], ids=["any", "blog"])
def test_no_client_gets_a_response_cached_for_another(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer], campaign: Campaign
) -> None:
    """The cache holds all variants of few requests, so that a wrong one would be found."""
    fill_two_pages(app)
    etags = dict[str, str]()
    for chance in campaign.rounds(20):
        target = chance.choice(["/comments/latest", LIST, CHANGES, "/embed.js"])
        response = same(*fast_and_stock, get(target, *form(chance, etags.get(target, '"x"'))))
        etags[target] = header(response, "Etag")
        campaign.figures["304s"] += response.startswith(b"HTTP/1.1 304")
    assert campaign.figures["304s"]


@pytest.mark.slow
def test_a_response_for_one_host_is_not_sent_for_another(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer]
) -> None:
    fill_two_pages(app)
    fast, _ = fast_and_stock
    other = PLAIN.replace(b"Host: comments.example", b"Host: comments.other")
    for each in (PLAIN, PLAIN, other, other, PLAIN):
        fast.ask(each)
    assert fast.worked == 2  # one of each host


@pytest.mark.slow
@pytest.mark.parametrize(("size", "worked"), [(2048, 1), (2049, 2)])
def test_the_cache_remembers_no_long_headers(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer], size: int, worked: int
) -> None:
    fill_two_pages(app)
    fast, _ = fast_and_stock
    first_line, _, headers = PLAIN.partition(b"\r\n")
    filler = b"X-Filler: " + b"x" * (size - len(headers) - len("X-Filler: \r\n")) + b"\r\n"
    raw = first_line + b"\r\n" + filler + headers
    fast.responses(raw, raw)
    assert fast.worked == worked


@pytest.mark.slow
@pytest.mark.parametrize("known", [1, 4096])
def test_headers_never_seen_before_get_the_cached_response(
    app: App,
    fast_and_stock: tuple[RunningServer, RunningServer],
    monkeypatch: pytest.MonkeyPatch,
    known: int,
) -> None:
    """However few headers the server remembers."""
    limit(monkeypatch, known_headers=known)
    fill_two_pages(app)
    fast, _ = fast_and_stock
    response = fast.ask(PLAIN)
    others = [get(LIST, f"Referer: https://blog.example/{number}") for number in range(3)]
    assert fast.from_cache(*others, *others) == [response] * 6
    assert len(fast.loop.cache.known_headers) <= known


@pytest.mark.slow
def test_a_response_to_a_token_is_never_cached(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer]
) -> None:
    fill_two_pages(app)
    fast, stock = fast_and_stock
    inside.add_account(app, OWNER, "Owner", CANARY, "admin")
    token = inside.token_of(app, OWNER)
    for target in TARGETS:
        sent = get(target, f"Authorization: Bearer {token}", "Accept-Encoding: gzip")
        personal = stock.ask(sent)
        assert fast.ask(sent) == personal
        plain = get(target, "Accept-Encoding: gzip")
        response = same(fast, stock, plain)
        assert fast.ask(sent) == personal
        assert fast.from_cache(plain) == [response]
        by_token = not target.startswith(("/feed", "/thread", "/fragment"))
        assert (b"\r\nContent-Encoding" in personal or b"\r\nEtag" in personal) != by_token
        assert (IP in personal) == (b'"comments":[{' in personal)
    assert fast.cached
    assert IP not in fast.cached


# What changes

WATCHED = [
    LIST,
    f"{LIST}&view=threads",
    f"/comments?url={OTHER}",
    "/comments?url=/new/&page=2",
    "/feed.atom",
    f"/pages?url={PAGE}&url={OTHER}&url=/new/",
    f"/thread?url={PAGE}",
    f"/fragment?url={PAGE}",
    f"{LIST}&since=1",
    "/comments/latest",
    f"/feed.atom?url={PAGE}",
    "/pages?url=/new/",
    "/comments?url=/moved/",
]


def test_every_public_route_is_watched_while_comments_and_pages_change() -> None:
    to_write = lacking("WATCHED", WATCHED)
    assert not to_write, to_write


# What can be sent where one field of several is needed, or where each field does something else.
FORMS: dict[str, list[dict[str, Any]]] = {
    "POST /comments": [COMMENT, {**COMMENT, "content": "a reply", "parent_id": 1}],
    "POST /admin/comments": [
        {"ids": [1, 4], "status": "visible"},
        {"ids": [1], "status": "waiting"},
        {"ids": [1], "pinned": True},
        {"ids": [1], "closed": True},
    ],
    "PATCH /admin/pages/{page_id}": [
        {"closed": True},
        {"page_url": "/moved/"},
        {"page_title": "Another"},
    ],
    "PATCH /admin/users/{user_id}": [{"role": "admin", "password": CANARY}, {"blocked": True}],
    "PATCH /me": [{"nickname": "Zoe"}],
    "PATCH /admin/comments/{comment_id}": [{"website": ""}, {"nickname": "Zoe"}],
}
WRITES = [label for label in OPERATIONS if not label.startswith("GET")]


def forms(full_service: FullService, label: str) -> list[dict[str, Any]]:
    needed = forms_of(OPERATIONS[label])[:1]
    form = full_service.values(label, fields_of(needed[0], whole=False)) if needed else {}
    return FORMS.get(label, [form])


def send_operation(full_service: FullService, label: str, body: dict[str, Any]) -> bytes:
    """A request of this operation, by an account that may do it."""
    method, path = label.split()
    path = re.sub("{(.*?)}", lambda name: str(full_service.good[name[1]]), path)
    token = f"Authorization: Bearer {full_service.tokens[PERMISSION[label]]}"
    return request(method, path, token, body=body)


@pytest.mark.slow
@with_metrics
def test_a_write_shows_at_once_in_cached_responses(
    full_service: FullService,
    reset: Callable[[], object],
    fast_and_stock: tuple[RunningServer, RunningServer],
) -> None:
    fast, stock = fast_and_stock
    requests, changed = [get(target) for target in WATCHED], 0
    # Without a setting, `/auth/site` writes nothing, and no provider has a picture.
    writes = [label for label in WRITES if label not in ("POST /auth/site", "POST /me/picture")]
    every = [(label, form) for label in writes for form in forms(full_service, label)]
    for label, form in every:
        reset()
        before = fast.responses(*requests)
        response = fast.ask(send_operation(full_service, label, form))
        assert response.startswith(b"HTTP/1.1 200 OK"), (label, response)
        after = fast.responses(*requests)
        for target, sent, new in zip(WATCHED, after, stock.responses(*requests), strict=True):
            handler = f"the handler of {path_of(target)}"
            pages = f"{handler} gives request.depends_only_on() too few pages"
            assert sent == new, f"commentd.py: {pages}: {target} is old after {label} with {form}"
        changed += before != after
    assert changed > 12


PAGES = [PAGE, OTHER]
LISTS_OF = {
    page: [
        get(f"{path}{page}{more}")
        for path in ("/comments?url=", "/pages?url=", "/feed.atom?url=", "/thread?url=")
        for more in ("", "&x=1")
    ]
    for page in PAGES
}


@pytest.mark.slow
def test_a_write_on_one_page_leaves_the_lists_of_another_in_the_cache(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer]
) -> None:
    """And the files of the widget. Lists over all pages are made again."""
    fill_two_pages(app)
    fast, stock = fast_and_stock
    kept = [*LISTS_OF[OTHER], *map(get, FILES)]
    over_all = [get("/comments/latest"), get("/feed.atom"), get(f"/pages?url={PAGE}&url={OTHER}")]
    before = fast.responses(*kept, *LISTS_OF[PAGE], *over_all)
    comment = request("POST", "/comments", body=COMMENT)
    like = request("POST", "/page/like", body={"page_url": PAGE})
    for change in (comment, like):
        assert fast.ask(change).startswith(b"HTTP/1.1 200 OK")
        assert fast.from_cache(*kept) == before[: len(kept)]
        touched = fast.responses(*LISTS_OF[PAGE], *over_all)
        assert touched == stock.responses(*LISTS_OF[PAGE], *over_all)
        assert fast.from_cache(*LISTS_OF[PAGE], *over_all) == touched
    assert touched != before[len(kept) :]


def test_files_are_compressed_better_than_other_responses(
    fast_and_stock: tuple[RunningServer, RunningServer],
) -> None:
    for server in fast_and_stock:
        response = server.ask(get("/embed.js", "Accept-Encoding: gzip"))
        sent = response.partition(b"\r\n\r\n")[2]
        assert len(sent) < len(gzip.compress(body_of(response), 5))  # as other responses are


@pytest.mark.slow
def test_changes_that_only_the_owner_sees_leave_all_lists_in_the_cache(
    app: App, full_service: FullService, fast_and_stock: tuple[RunningServer, RunningServer]
) -> None:
    fast, _ = fast_and_stock
    lists = [*LISTS_OF[PAGE], get("/comments/latest"), get("/feed.atom")]
    app.tick()  # which notices what this test has written past the service
    before = fast.responses(*lists)
    for label in ("POST /admin/blocks", "POST /comments/{comment_id}/report"):
        (form,) = forms(full_service, label)
        assert fast.ask(send_operation(full_service, label, form)).startswith(b"HTTP/1.1 200 OK")
    app.tick()
    assert fast.from_cache(*lists) == before


@pytest.mark.slow
def test_a_comment_that_a_command_writes_shows_at_the_next_tick(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer]
) -> None:
    fill_two_pages(app)
    fast, stock = fast_and_stock
    lists = [*LISTS_OF[PAGE], *LISTS_OF[OTHER], get("/comments/latest")]
    app.tick()
    before = fast.responses(*lists)
    app.tick()
    assert fast.from_cache(*lists) == before
    sql(app, "UPDATE comment SET content = 'written by a command', html = '' WHERE id = 1")
    app.tick()
    after = fast.responses(*lists)
    assert after == stock.responses(*lists)
    assert after != before


SOON: dict[str, Any] = {
    "comments_close_after_days": 3,
    "privacy_keep_ip_days": 1,
    "privacy_show_ip": "full",
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [SOON], ids=[""])
def test_changes_by_time_show_in_cached_responses(
    app: App, fake_world: FakeWorld, fast_and_stock: tuple[RunningServer, RunningServer]
) -> None:
    """The page closes, at most ten seconds late, and the IP address is masked, a minute late."""
    fast, stock = fast_and_stock
    begun_at, day = int(fake_world.time), 86400
    Visitor(app).say()
    requests = [get(LIST + view) for view in ("", "&view=threads")]
    shown = [fast.responses(*requests)]
    for seconds in (day - 1, day + 60, 3 * day - 1, 3 * day + 9):
        fake_world.time = begun_at + seconds
        app.tick()
        shown.append(fast.responses(*requests))
        assert shown[-1] == stock.responses(*requests)
    first, early, masked, still_open, closed = shown
    assert first == early
    assert early[0] != masked[0]
    assert masked == still_open
    assert [still_open[i] == closed[i] for i in (0, 1)] == [True, False]


# Odd requests

ALIKE = ["&url=/other/", "&x=%FF", "&limit=", "&limit=%0A3", "&limit=3", "%23%2Fx", "#/x", "%2Fx"]
ODD = [
    *(get(LIST + more) for more in ALIKE),
    get(f"/comment%73?url={PAGE}"),
    *map(get, (f"/pages?url={PAGE}&url=/b/", f"/pages?url=/b/&url={PAGE}", "//embed.js")),
    request("GET", LIST, ROBOT, body=b"{}"),
    get(LIST, "Content-Length: 0"),
    get(LIST, "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    *(request(method, LIST, ROBOT) for method in ("HEAD", "POST")),
    PLAIN.replace(b"GET", b"get"),
    *(get(LIST, f"Authorization: {word}") for word in ("Bearer x", "Basic eDp4")),
    *(get(LIST, word) for word in ("Cookie: a=b", "Range: bytes=0-9", "Expect: 100-continue")),
    *(get(LIST, word) for word in ("Upgrade: websocket", "TE: trailers", "X-Empty:")),
    *(get(LIST, f"Connection: {word}") + PLAIN for word in ("close", "Close", "keep-alive, close")),
    PLAIN.replace(b"1.1", b"1.0") + PLAIN,
    PLAIN.replace(b"1.1", b"1.2"),
    PLAIN * 2,
    get(LIST, "Connection: keep-alive").replace(b"1.1", b"1.0") + get("/embed.js"),
    PLAIN.replace(b"GET ", b"GET http://comments.example"),
    PLAIN + PLAIN[:30],
    PLAIN.replace(b"Host: comments.example\r\n", b""),
    get(LIST, "Host: comments.example"),
    get(LIST, f"Origin: {BLOG}", f"origin: {FOREIGN}"),
    get(LIST, f"Origin: {BLOG}", " folded"),
    get(LIST, 'If-None-Match: "a"', 'If-None-Match: "b"'),
    b"\r\n" + PLAIN,
    *(get(LIST, f"Origin{blank}{BLOG}") for blank in (":", ":\t", " : ")),
    PLAIN.replace(b"\r\n", b"\n"),
    PLAIN.replace(b"\r\nUser", b"\nUser"),
    *(PLAIN.replace(b" HTTP", odd) for odd in (b"\n HTTP", b"\0\0 HTTP", b"  HTTP")),
    *(get(LIST, word) for word in ("X: \0", "X: ü", "Ü: x", "Content_Length: 9")),
    PLAIN[:-2],
    PLAIN + b"\r\n",
    PLAIN + b"x",
    b"",
]


def in_pieces(raw: bytes, size: int) -> list[bytes]:
    return [raw[i : i + size] for i in range(0, len(raw), size)]


@pytest.mark.slow
def test_unusual_requests_get_the_responses_of_the_stock_server(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer]
) -> None:
    fill_two_pages(app)
    fast, stock = fast_and_stock
    plain = same(fast, stock, PLAIN)
    for raw in ODD:
        expected = stock.stream(raw)
        for _ in range(2):  # and it is not cached
            assert fast.stream(raw) == expected, raw
        assert fast.from_cache(PLAIN) == [plain], raw
    for size in (7, len(PLAIN) - 1):
        assert fast.stream(PLAIN, *in_pieces(PLAIN, size), PLAIN) == plain * 3


# Views


def views_of(app: App) -> list[Any]:
    """The pages and their views, after these were written."""
    app.tick()
    return sql(app, "SELECT page_url, views FROM page ORDER BY page_url")


BROWSER = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:130.0)"
WHO = [
    ["User-Agent: Googlebot/2.1"],
    ["user-agent: facebookexternalhit/1.1"],
    [],
    [BROWSER],
    [BROWSER, "Sec-Purpose: prefetch;prerender"],
    [BROWSER, "X-Real-IP: 192.0.2.9"],
    [BROWSER, "X-Forwarded-For: 192.0.2.1"],
    [BROWSER, "X-Forwarded-For: 192.0.2.2"],
    [BROWSER, "X-Forwarded-For: 2001:db8:1::1"],
    [BROWSER, "X-Forwarded-For: 2001:db8:1::2"],
    [BROWSER, "X-Forwarded-For: 6.6.6.6, 192.0.2.1"],
    [BROWSER, "X-Forwarded-For: x"],
]


@pytest.mark.slow
@pytest.mark.parametrize("trusted", ["127.0.0.1", "192.0.2.99"])
def test_views_count_on_cached_responses_as_on_the_stock_server(
    config: Config, fake_world: FakeWorld, trusted: str
) -> None:
    with twins(config, fake_world, limits_enabled=True, server_trusted_proxy=(trusted,)) as both:
        for server in both:
            Visitor(server.app).say()
        for number, (who, how) in enumerate(
            itertools.product(WHO, ["", "&view=threads", "&page=2"])
        ):
            for page in (PAGE, f"/{number}/"):
                raw = request("GET", f"/comments?url={page}{how}", *who)
                for server in both:
                    assert server.responses(raw, raw)[1].startswith(b"HTTP/1.1 200 OK")
            fake_world.time += number % 3
            assert number % 10 or views_of(both[0].app) == views_of(both[1].app)
        assert views_of(both[0].app) == views_of(both[1].app)
        assert sum(views for _, views in views_of(both[0].app)) > 20
        assert both[1].worked - both[0].worked > 20


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [10, -1000], ids=["later", "the clock was set back"])
def test_views_show_in_cached_responses_after_ten_seconds_and_after_the_clock_was_set_back(
    app: App,
    fake_world: FakeWorld,
    fast_and_stock: tuple[RunningServer, RunningServer],
    seconds: int,
) -> None:
    fill_two_pages(app)
    fast, stock = fast_and_stock
    app.tick()  # so that only views are written later
    targets = [LIST, f"{LIST}&view=threads", f"/pages?url={PAGE}", f"/pages?url={PAGE}&url=/new/"]
    requests = [get(target) for target in targets]
    before = fast.responses(*requests)
    for target in (LIST, "/comments?url=/new/"):
        stock.ask(request("GET", target))
    app.tick()
    fake_world.time += seconds
    after = fast.responses(*requests)
    assert after == stock.responses(*requests)
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert fast.from_cache(*requests) == after


@pytest.mark.slow
def test_responses_that_were_cached_at_once_do_not_expire_at_once(
    app: App, fake_world: FakeWorld, fast_and_stock: tuple[RunningServer, RunningServer]
) -> None:
    fast, _ = fast_and_stock
    requests = [get(f"/comments?url=/{number}/") for number in range(60)]
    fast.responses(*requests)
    worked = fast.worked
    made_again = []
    for _ in range(10):
        fake_world.time += 1
        fast.responses(*requests)
        made_again.append(fast.worked - worked)
        worked = fast.worked
    assert sum(made_again) == len(requests), "each expires once in ten seconds"
    assert max(made_again) < len(requests) // 2, made_again


# What is kept, and slow readers


@pytest.mark.slow
def test_the_cache_has_a_limit_in_bytes(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, cached=100_000)
    with_comments(database_path(app), 4_000)
    fast, stock = fast_and_stock
    for number in range(150):
        fast.ask(get(f"{LIST}&x={number}"))
        assert len(fast.cached) <= 100_000
    for number in range(50):  # a response that is made again takes the place of the old one
        Visitor(app).say(str(number))
        fast.ask(get(f"{LIST}&x=1"))
    assert b"&x=149" in fast.cached
    same(fast, stock, PLAIN)
    long = get(f"{LIST}&limit=100", "Accept-Encoding: gzip")
    assert fast.ask(long) == fast.ask(long) == stock.ask(long)
    assert len(fast.cached) <= 100_000


@pytest.mark.slow
def test_slow_readers_get_whole_cached_responses(
    app: App, fast_and_stock: tuple[RunningServer, RunningServer], campaign: Campaign
) -> None:
    """Also one who sends the next request before reading, whether it is cached or not."""
    with_comments(database_path(app), 800)
    fast, _ = fast_and_stock
    requests = [get(f"{LIST}&limit=100"), get(f"{LIST}&limit=100", "X: \t"), get("/embed.js")]
    responses = fast.responses(*requests)
    for chance in campaign.rounds(4):
        sent = chance.choices(range(3), weights=[6, 1, 2], k=8)
        connection, received = fast.connect(room=4096), b""
        connection.setblocking(False)
        for i in sent:
            connection.sendall(requests[i])
            for _ in range(chance.choice([0, 1, 9])):
                fast.look()
                with contextlib.suppress(BlockingIOError):
                    received += connection.recv(chance.choice([1, 1000, 100_000]))
            assert fast.stream(PLAIN)  # others are served
        connection.settimeout(PATIENCE)
        connection.shutdown(socket.SHUT_WR)
        while data := connection.recv(1 << 16):
            received += data
        assert undated(received) == b"".join(responses[i] for i in sent)
