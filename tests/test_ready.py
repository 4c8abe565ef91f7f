"""The response cache: what all readers get alike is sent again where the question is read, the very
bytes that the ordinary way gives, until something changes. Two servers of one service are asked the
same, one with the cache and one without. The clock stands still: only `Date` may differ."""

import contextlib
import gzip
import itertools
import re
import select
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import inside
import pytest
import test_openapi
from api import ROUTES
from conftest import CANARY, PAGE, Campaign, Outside, Visitor, dump
from inside import database_path, sql
from serving import Front, break_reading, fronts_of, limit, next_answer, undated, until
from test_openapi import METRICS, OPERATIONS, PERMISSION, Town, fields, forms
from test_peers import with_comments
from test_server import BLOG, FOREIGN, PIECES, SEEDS, request

from commentd import App, Config, main, make_app

pytestmark = pytest.mark.slow

town, again = test_openapi.town, test_openapi.again

IP = b"203.0.113.7"
ROBOT = "User-Agent: a bot"  # whose views are not counted
OTHER, OWNER = "/other/", "owner@example.com"
READY = f"/comments?url={PAGE}"


def header(answer: bytes, name: str) -> str:
    found = re.search(rb"(?m)^%s: (.*)\r$" % name.encode(), answer)
    assert found, name
    return found[1].decode()


def body_of(answer: bytes) -> bytes:
    head, _, body = answer.partition(b"\r\n\r\n")
    return gzip.decompress(body) if b"\r\nContent-Encoding: gzip" in head else body


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, server_listen="127.0.0.1:0", limits_enabled=False)


@contextlib.contextmanager
def twins(config: Config, outside: Outside, **settings: Any) -> Iterator[tuple[Front, Front]]:
    """Two services in the same world, to which the same happens."""
    with contextlib.ExitStack() as stack:
        both = []
        for name in ("fast", "stock"):
            path = config.database_path.replace(".db", f"-{name}.db")
            world = replace(outside.world, chance=Random(1).randbytes)
            app = make_app(replace(config, database_path=path, **settings), world, rounds=1)
            stack.callback(app.close)
            both.append(app)
        yield stack.enter_context(fronts_of(*both))


@pytest.fixture
def fronts(app: App) -> Iterator[tuple[Front, Front]]:
    with fronts_of(app) as both:
        yield both


def get(target: str, *headers: str) -> bytes:
    return request("GET", target, ROBOT, *headers)


# What readers ask, of a page with threads, pins, tombstones and more than one page of comments.

LISTINGS = [
    *("", "&page=2", "&limit=3&page=2", "&sort=oldest", "&sort=likes", "&limit=100"),
    *("&view=threads", "&view=threads&sort=likes&limit=2&page=2", "&view=threads&around=9"),
    *("&thread=1", "&thread=1&around=6", "&around=9&limit=2", "&around=999", "&page=1000"),
]
QUESTIONS = [
    *(f"/comments?url={PAGE}{how}" for how in LISTINGS),
    *(f"/comments?url={quote('/ünknown/')}{how}" for how in ("&page=2", "&view=threads&page=3")),
    *(f"/pages?url={PAGE}", f"/pages?url={PAGE}&url={OTHER}&url=/nothing/", "/comments/latest"),
    *("/comments/latest?limit=30", "/feed.atom", f"/feed.atom?url={PAGE}", "/feed.atom?url=/no/"),
    *(f"/thread?url={PAGE}", f"/thread?url={PAGE}&page=2&lang=de", "/thread?url=/nothing/"),
]
ASSETS = ["/embed.js", "/words/de.json", "/words/zh-CN.json"]
ZIPS = ["", "gzip, deflate, br", "gzip;q=0", "br, *;q=0.5", "deflate"]
ORIGINS = ["", BLOG, FOREIGN, "null"]


def filled(app: App) -> None:
    """Two pages with what a list can hold."""
    visitor = Visitor(app)
    for number in range(1, 28):
        parent = {"parent_id": number // 2} if number % 3 == 0 else {}
        visitor.say(f"*{number}* ü <b>", nickname=f"Ann {number}", **parent)
    visitor.say("elsewhere", page_url=OTHER)
    visitor.post_json("/comment/like", {"id": 5})
    visitor.post_json("/page/like", {"page_url": PAGE})
    sql(app, "UPDATE comment SET pinned = 1 WHERE id = 7")
    inside.moderate(app, 3, "deleted")
    inside.moderate(app, 8, "waiting")


# The same bytes


def same(fast: Front, stock: Front, question: bytes) -> bytes:
    """The answer of both: of the stock server, of the fast one, and where it is ready."""
    expected = stock.ask(question)
    assert fast.ask(question) == expected, question
    fast.ask(re.sub(rb"If-None-Match.*\r\n", b"", question))  # whole, or there is nothing to keep
    assert fast.ready(question) == [expected], question
    return expected


on_any_blog = pytest.mark.parametrize(
    "settings", [{}, {"site_origins": (BLOG,)}], ids=["any", "blog"]
)


@pytest.mark.parametrize("settings", [{"site_origins": (BLOG,)}], ids=["blog"])
def test_what_is_ready_is_what_the_stock_server_sends(
    app: App, fronts: tuple[Front, Front]
) -> None:
    filled(app)
    fast, stock = fronts
    for target in QUESTIONS + ASSETS:
        always = get(target, f"If-None-Match: {header(stock.ask(get(target)), 'Etag')}")
        empty = stock.ask(always)
        assert empty.startswith(b"HTTP/1.1 304 Not Modified\r\n")
        assert [fast.ask(always), *fast.ready(always)] == [empty, empty]
        plain = same(fast, stock, get(target))
        assert plain.startswith(b"HTTP/1.1 200 OK\r\n")
        zipped = same(fast, stock, get(target, "Accept-Encoding: gzip", f"Origin: {FOREIGN}"))
        assert body_of(zipped) == body_of(plain)
        assert (b"Content-Encoding: gzip" in zipped) == (len(body_of(plain)) > 200)
        assert same(fast, stock, get(target, 'If-None-Match: "other"')) == plain


def form(chance: Random, etag: str) -> list[str]:
    """Headers of a reader, who may know the answer."""
    matches = ["", "", etag, f"W/{etag}", f'"x", {etag}', "*", etag.strip('"'), '""', "x" * 999]
    said = {"Accept-Encoding": ZIPS, "Origin": ORIGINS, "If-None-Match": matches}
    lines = [f"{name}: {v}" for name, values in said.items() if (v := chance.choice(values))]
    odd = ["DNT: 1", "X: ~", "Connection: keep-alive", "accept: */*", "Referer: http://x/?a: b"]
    lines += chance.sample(odd, chance.choice([0, 1, 4]))
    return chance.sample(lines, len(lines))


@on_any_blog
def test_nobody_gets_what_is_ready_for_another(
    app: App, fronts: tuple[Front, Front], campaign: Campaign
) -> None:
    """The cache fills with all forms of few questions, so that a wrong one would be found."""
    filled(app)
    etags = dict[str, str]()
    for chance in campaign.rounds(20):
        target = chance.choice(["/comments/latest", QUESTIONS[0], QUESTIONS[-1], "/embed.js"])
        answer = same(*fronts, get(target, *form(chance, etags.get(target, '"x"'))))
        etags[target] = header(answer, "Etag")
        campaign.figures["304s"] += answer.startswith(b"HTTP/1.1 304")
    assert campaign.figures["304s"]


def test_what_is_ready_has_the_date_of_its_second(
    app: App, outside: Outside, fronts: tuple[Front, Front]
) -> None:
    fast, _ = fronts
    whole = get("/embed.js")
    empty = get("/embed.js", f"If-None-Match: {header(fast.ask(whole), 'Etag')}")
    for question in (whole, empty) * 2:
        outside.time += 0.6
        with fast.connect() as line:
            line.sendall(question)
            answer = next_answer(line)
        assert header(answer, "Date") == formatdate(int(outside.time), usegmt=True)


# What changes

WATCHED = [
    *(f"/comments?url={PAGE}{how}" for how in ("", "&view=threads", "&thread=1")),
    *(f"/comments?url={OTHER}", "/comments?url=/new/&page=2", "/comments/latest", "/feed.atom"),
    *(f"/pages?url={PAGE}&url={OTHER}&url=/new/", f"/thread?url={PAGE}", "/thread?url=/new/"),
]


# Every route that writes, what is said beside what must be, and whether readers see it.
ACTS: list[tuple[str, dict[str, Any], bool]] = [
    ("POST /auth/register", {}, False),
    ("POST /auth/verify", {"email": "eve@example.com"}, True),  # her comment is hers now
    ("POST /auth/login", {}, False),
    ("POST /auth/logout", {}, False),
    ("POST /comments", {}, True),
    ("POST /comments", {"parent_id": 3}, True),
    ("POST /comments", {"page_url": "/new/"}, True),
    ("POST /comments/preview", {}, False),
    ("PATCH /comments/{comment_id}", {}, True),
    ("DELETE /comments/{comment_id}", {}, True),
    ("POST /comment/like", {"id": 3}, True),
    ("POST /comment/like", {"undo": True}, True),
    ("POST /page/like", {"undo": True}, True),
    ("POST /page/like", {"page_url": "/new/"}, True),
    ("POST /page/follow", {}, False),
    ("POST /comments/{comment_id}/report", {}, False),
    ("PATCH /me", {"nickname": "Zoe"}, False),
    ("DELETE /me", {"comments": "keep"}, True),
    ("DELETE /me", {"comments": "delete"}, True),
    ("POST /comments/{comment_id}/moderate", {"status": "spam"}, True),
    ("POST /comments/{comment_id}/moderate", {"pinned": True}, True),
    ("POST /admin/login", {}, False),
    ("POST /admin/link", {}, False),
    ("POST /admin/claim", {}, True),
    ("POST /admin/logout", {}, False),
    ("POST /admin/comments", {"ids": [4], "status": "visible"}, True),
    ("POST /admin/comments", {"ids": [1], "pinned": True}, True),
    ("PATCH /admin/comments/{comment_id}", {"nickname": "Zoe"}, True),
    ("POST /admin/reply", {}, True),
    ("PATCH /admin/pages/{page_id}", {"closed": True}, True),
    ("PATCH /admin/pages/{page_id}", {"page_url": "/new/"}, True),
    ("PATCH /admin/pages/{page_id}", {"page_url": OTHER, "merge": True}, True),
    ("PATCH /admin/users/{user_id}", {"role": "admin", "password": CANARY}, True),
    ("PATCH /admin/users/{user_id}", {"blocked": True}, False),
    ("POST /admin/blocks", {}, False),
    ("DELETE /admin/blocks/{block_id}", {}, False),
    ("POST /admin/outbox/{letter_id}", {}, False),
    ("DELETE /admin/outbox/{letter_id}", {}, False),
    ("POST /admin/backup", {}, False),
    ("POST /mail", {}, True),
]


SENDING = {
    **METRICS,
    "server_public_url": "http://comments.example",
    "mail_host": "localhost",
    "notify_owner": (OWNER,),
}
sending = pytest.mark.parametrize("settings", [SENDING], ids=["sending"])


def sent(town: Town, outside: Outside, label: str, more: dict[str, Any]) -> bytes:
    """The request of an act, by one who may."""
    method, path = label.split()
    path = re.sub("{(.*?)}", lambda name: str(town.good[name[1]]), path)
    if path == "/mail":  # a link of the email that tells the owner of a comment
        texts = [outside.text(number) for number in range(len(outside.letters))]
        path = re.findall(r"/mail\?\S*do=spam\S*", "\n".join(texts))[-1]
    needed = forms(OPERATIONS[label])[:1] if label in OPERATIONS else []
    body = {**town.values(label, fields(needed[0], whole=False)), **more} if needed else more
    token = f"Authorization: Bearer {town.tokens[PERMISSION[label]]}"
    return request(method, path, token, body=body)


def test_each_route_that_writes_is_tried() -> None:
    assert {label for label, _, _ in ACTS} == {
        str(route) for route in ROUTES if route.method != "GET"
    }


@pytest.fixture
def written(town: Town) -> None:
    """What Eve said before her address was confirmed."""
    Visitor(town.app).say(page_url=OTHER, email="eve@example.com")


@sending
@pytest.mark.usefixtures("written")
def test_what_is_written_shows_at_once(
    town: Town, outside: Outside, again: Callable[[], object], fronts: tuple[Front, Front]
) -> None:
    fast, stock = fronts
    questions = [get(target) for target in WATCHED]
    for label, more, shows in ACTS:
        again()
        town.app.tick()  # what was brought back is seen
        before = fast.answers(*questions)
        if label == "POST /auth/register":
            assert fast.ready(*questions) == before
        act = sent(town, outside, label, more)
        answer = fast.ask(act)
        assert answer.startswith(b"HTTP/1.1 200 OK"), (act, answer)
        after = fast.answers(*questions)
        assert after == stock.answers(*questions), (label, more)
        assert (before != after) == shows, (label, more)


@sending
def test_whatever_happens_readers_are_told_the_truth(
    town: Town, outside: Outside, fronts: tuple[Front, Front], campaign: Campaign
) -> None:
    """Acts one after the other, of which many are refused by and by, and questions between."""
    fast, stock = fronts
    for chance in campaign.rounds(3):
        for _ in range(10):
            label, more, _ = chance.choice(ACTS)
            fast.ask(sent(town, outside, label, {**more, "content": f"{chance.random()}"}))
            if chance.random() < 0.3:
                fast.ask(request("GET", chance.choice(WATCHED)))  # a view
            town.app.tick()
            outside.time += 10  # views may be so late
            questions = [get(target) for target in chance.choices(WATCHED, k=5)]
            assert fast.answers(*questions) == stock.answers(*questions)
            campaign.figures["acts"] += 1


SOON: dict[str, Any] = {"comments_close_after_days": 3, "privacy_keep_ip_days": 1}
SOON |= {"privacy_show_ip": "full"}


@pytest.mark.parametrize("settings", [SOON], ids=[""])
def test_what_time_alone_changes_is_seen_too(
    app: App, outside: Outside, fronts: tuple[Front, Front]
) -> None:
    """The page closes, at most ten seconds late, and the address is masked, a minute late."""
    fast, stock = fronts
    begun_at = int(outside.time)
    Visitor(app).say()
    questions = [get(READY + how) for how in ("", "&view=threads")]
    shown = [fast.answers(*questions)]
    day = 86400
    for seconds in (day - 1, day + 60, 3 * day - 1, 3 * day + 9):
        outside.time = begun_at + seconds
        app.tick()
        shown.append(fast.answers(*questions))
        assert shown[-1] == stock.answers(*questions)
        assert fast.ready(*questions) == shown[-1]
    first, early, masked, open_still, closed = shown
    assert first == early
    assert early[0] != masked[0]
    assert masked == open_still
    assert [open_still[i] == closed[i] for i in (0, 1)] == [True, False]


def test_what_a_command_writes_shows_soon(
    app: App,
    fronts: tuple[Front, Front],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It works on the file beside the service, which looks each second."""
    fast, _ = fronts
    visitor = Visitor(app)
    visitor.say("from elsewhere", page_url="/imported/")
    monkeypatch.setenv("COMMENTD_DATABASE_PATH", database_path(app))
    monkeypatch.setenv("COMMENTD_BACKUP_FOLDER", str(tmp_path / "backups"))

    def run(*words: str) -> str:
        assert main([*words]) == 0
        return capfd.readouterr().out

    exported = tmp_path / "old.json"
    exported.write_text(run("export", "commentd"))
    sql(app, "DELETE FROM comment")
    run("recount")
    visitor.say()

    def totals() -> list[int]:
        app.tick()
        questions = [get(f"/comments?url={url}&page=2") for url in (PAGE, "/moved/", "/imported/")]
        answers = fast.answers(*questions)
        assert fast.ready(*questions) == answers
        return [int(re.findall(rb'"total": ?(\d+)', answer)[0]) for answer in answers]

    assert totals() == [1, 0, 0]
    run("move", PAGE, "/moved/")
    assert totals() == [0, 1, 0]
    run("import", str(exported))
    assert totals() == [0, 1, 1]
    sql(app, "UPDATE page SET total = 7 WHERE page_url = '/moved/'")
    assert totals() == [0, 7, 1]
    run("recount")
    assert totals() == [0, 1, 1]


# Whose answer it is

PLAIN = get(READY)
ODD = {
    "a body": request("GET", READY, ROBOT, body=b"{}"),
    "an empty body": get(READY, "Content-Length: 0"),
    "chunks": get(READY, "Transfer-Encoding: chunked") + b"0\r\n\r\n",
    "HEAD": request("HEAD", READY, ROBOT),
    "POST": request("POST", READY, ROBOT),
    "a small letter": PLAIN.replace(b"GET", b"get"),
    "a token": get(READY, "Authorization: Bearer x"),
    "another login": get(READY, "Authorization: Basic eDp4"),
    "a cookie": get(READY, "Cookie: a=b"),
    "a range": get(READY, "Range: bytes=0-9"),
    "asks": get(READY, "Expect: 100-continue"),
    "upgrade": get(READY, "Upgrade: h2c", "Connection: upgrade"),
    "upgrade alone": get(READY, "Upgrade: websocket"),
    "trailers": get(READY, "TE: trailers"),
    "close": get(READY, "Connection: close"),
    "Close": get(READY, "CONNECTION: Close"),
    "keep-alive, close": get(READY, "Connection: keep-alive, close"),
    "1.0": PLAIN.replace(b"1.1", b"1.0"),
    "1.0 that stays": get(READY, "Connection: keep-alive").replace(b"1.1", b"1.0"),
    "1.2": PLAIN.replace(b"1.1", b"1.2"),
    "absolute": PLAIN.replace(b"GET ", b"GET http://comments.example"),
    "close, and another": get(READY, "Connection: close") + PLAIN,
    "two": PLAIN * 2,
    "two of which one is older": PLAIN.replace(b"1.1", b"1.0") + PLAIN,
    "two of which one is older and stays": get(READY, "Connection: keep-alive").replace(
        b"1.1", b"1.0"
    )
    + get("/embed.js"),
    "nine": PLAIN * 9,
    "one and a half": PLAIN + PLAIN[:30],
    "no host": PLAIN.replace(b"Host: comments.example\r\n", b""),
    "two hosts": get(READY, "Host: comments.example"),
    "two origins": get(READY, f"Origin: {BLOG}", f"origin: {FOREIGN}"),
    "two tags": get(READY, 'If-None-Match: "a"', 'If-None-Match: "b"'),
    "no value": get(READY, "X-Empty:"),
    "no blank": get(READY, f"Origin:{BLOG}"),
    "a tab": get(READY, f"Origin:\t{BLOG}"),
    "a blank before the colon": get(READY, f"Origin : {BLOG}"),
    "two lines": get(READY, f"Origin: {BLOG}", " folded"),
    "a blank line first": b"\r\n" + PLAIN,
    "bare line feeds": PLAIN.replace(b"\r\n", b"\n"),
    "one bare line feed": PLAIN.replace(b"\r\nUser", b"\nUser"),
    "a line feed in the address": PLAIN.replace(b" HTTP", b"\n HTTP"),
    "a null in the address": PLAIN.replace(b" HTTP", b"\0\0\0 HTTP"),
    "two blanks": PLAIN.replace(b" HTTP", b"  HTTP"),
    "a null": get(READY, "X: \0"),
    "letters": get(READY, "X: ü"),
    "a name of letters": get(READY, "Ü: x"),
    "a low line": get(READY, "Content_Length: 9"),
    "an end too early": PLAIN[:-2],
    "an end too late": PLAIN + b"\r\n",
    "more": PLAIN + b"x",
    "nothing": b"",
}  # fmt: skip


def pieces(raw: bytes, size: int) -> list[bytes]:
    return [raw[i : i + size] for i in range(0, len(raw), size)]


@on_any_blog
def test_what_is_not_plain_is_answered_as_ever(app: App, fronts: tuple[Front, Front]) -> None:
    filled(app)
    fast, stock = fronts
    plain = same(fast, stock, PLAIN)
    for case, raw in ODD.items():
        expected = stock.stream(raw)
        for _ in range(2):  # nor is it kept for the next
            assert fast.stream(raw) == expected, case
        assert fast.ready(PLAIN) == [plain], case
    for size in (1, 7, len(PLAIN) - 1):
        assert fast.stream(*pieces(PLAIN, size)) == plain
        assert fast.stream(PLAIN, *pieces(PLAIN, size), PLAIN) == plain * 3


def strange(raw: bytes, chance: Random) -> bytes:
    """A question that was cut, or has a piece of something else in it, most often where something
    begins; and what comes before and after it."""
    for _ in range(chance.choice([0, 1, 1, 2])):
        seams = [0, *(found.end() for found in re.finditer(rb"\r\n|[ :/]", raw))]
        start = chance.choice(seams if chance.random() < 0.8 else range(len(raw) + 1))
        end = start + chance.choice([0, 0, 0, 1, 2, 9])
        raw = raw[:start] + chance.choice([*PIECES, chance.randbytes(2), b"x", b""]) + raw[end:]
    others = [PLAIN, *SEEDS, *(ODD[case] for case in ODD if case != "nine")]  # no pipeline is cut
    around = [chance.choice(others) if chance.random() < 0.2 else b"" for _ in range(2)]
    return raw.join(around)


def test_no_bytes_get_another_answer(config: Config, outside: Outside, campaign: Campaign) -> None:
    with twins(config, outside, limits_enabled=True) as (fast, stock):
        for front in (fast, stock):
            sql(front.app, "INSERT INTO page (key, page_url, seen_at) VALUES ('/x', '/x', 1)")
            for _ in range(61):  # more views are not counted, whoever may have views
                front.ask(request("GET", "/comments?url=/x"))
            visitor = Visitor(front.app)
            for number in range(5):
                visitor.say(f"*{number}* ü <b>", parent_id=number or None)
        for chance in campaign.rounds(4):
            for _ in range(50):
                question = get(READY, *form(chance, '"x"'))
                fast.ask(question)
                worked, raw = fast.worked, strange(question, chance)
                cuts = sorted(chance.choices(range(len(raw) + 1), k=chance.choice([0, 0, 0, 2])))
                parts = [raw[i:j] for i, j in itertools.pairwise([0, *cuts, len(raw)])]
                expected, got = (front.stream(*parts) for front in (stock, fast))
                waits = b"HTTP/1.1 100 Continue\r\n\r\n"  # whether it is said is a matter of time
                assert got.replace(waits, b"") == expected.replace(waits, b""), parts
                campaign.figures["answers"] += expected.count(b"HTTP/1.")
                campaign.figures["ready"] += fast.worked == worked and b"200 OK" in got
        assert campaign.figures["ready"]
        assert dump(database_path(fast.app)) == dump(database_path(stock.app))


def test_the_answer_to_a_token_is_for_nobody_else(app: App, fronts: tuple[Front, Front]) -> None:
    filled(app)
    fast, stock = fronts
    inside.add_account(app, OWNER, "Owner", CANARY, "admin")
    token = inside.token_of(app, OWNER)
    for target in QUESTIONS:
        asked = get(target, f"Authorization: Bearer {token}", "Accept-Encoding: gzip")
        personal = stock.ask(asked)
        assert fast.ask(asked) == personal
        plain = get(target, "Accept-Encoding: gzip")
        answer = same(fast, stock, plain)
        assert fast.ask(asked) == personal
        assert fast.ready(plain) == [answer]
        by_token = not target.startswith(("/feed", "/thread"))
        assert (b"\r\nContent-Encoding" in personal or b"\r\nEtag" in personal) != by_token
        assert (IP in personal) == (b'"comments":[{' in personal)
    assert fast.kept_bytes
    assert IP not in fast.kept_bytes


# Views


def views_of(app: App) -> list[Any]:
    """The pages and their views, after these were written."""
    app.tick()
    return sql(app, "SELECT page_url, views FROM page ORDER BY page_url")


BROWSER = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:130.0)"
AGENTS = [BROWSER, BROWSER, "User-Agent: Googlebot/2.1", "user-agent: facebookexternalhit/1.1", ""]
AHEAD = ["", "", "", "Sec-Purpose: prefetch;prerender", "Purpose: prefetch", "X-Moz: prefetch"]
CLIENTS = ["192.0.2.1", "192.0.2.2", "2001:db8:1::1", "2001:db8:1::2", "6.6.6.6, 192.0.2.1"]
FORWARDED = ["", "X-Forwarded-For: no address", "X-Real-IP: 192.0.2.9", "Forwarded: for=192.0.2.9"]
FORWARDED += [*(f"X-Forwarded-For: {ip}" for ip in CLIENTS)]


@pytest.mark.parametrize("trusted", ["127.0.0.1", "192.0.2.99"])
def test_views_are_counted_as_ever(
    config: Config, outside: Outside, campaign: Campaign, trusted: str
) -> None:
    how = {"limits_enabled": True, "server_trusted_proxy": (trusted,)}
    with twins(config, outside, **how) as both:
        for front in both:
            Visitor(front.app).say()
        for chance in campaign.rounds(2):
            for _ in range(50):
                page = chance.choice([PAGE] * 8 + [f"/{chance.randrange(99)}/"])
                how = chance.choice(["", "", "", "&view=threads", "&page=2", "&around=1"])
                said = [chance.choice(words) for words in (AGENTS, AHEAD, FORWARDED)]
                question = request("GET", f"/comments?url={page}{how}", *filter(None, said))
                for front in both:
                    assert front.answers(question, question)[1].startswith(b"HTTP/1.1 200 OK")
                outside.time += chance.choice([0, 0, 0, 0.4, 20])
                if chance.random() < 0.1:
                    assert views_of(both[0].app) == views_of(both[1].app)
            campaign.figures["views"] = sum(views for _, views in views_of(both[0].app))
            campaign.figures["ready answers"] = both[1].worked - both[0].worked
    assert campaign.figures["views"] > 20
    assert campaign.figures["ready answers"] > 20


@pytest.mark.parametrize("seconds", [10, -1000], ids=["later", "the clock was set back"])
def test_views_show_after_ten_seconds_and_after_the_clock_was_set_back(
    app: App, outside: Outside, fronts: tuple[Front, Front], seconds: int
) -> None:
    filled(app)
    fast, stock = fronts
    app.tick()  # else it writes more than views
    targets = [READY, READY + "&view=threads", f"/pages?url={PAGE}", f"/pages?url={PAGE}&url=/new/"]
    questions = [get(target) for target in targets]
    before = fast.answers(*questions)
    for target in (READY, "/comments?url=/new/"):
        stock.ask(request("GET", target))
    app.tick()
    outside.time += 8
    assert fast.ready(*questions) == before
    outside.time += seconds
    after = fast.answers(*questions)
    assert after == stock.answers(*questions)
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert fast.ready(*questions) == after


# What is kept


def test_a_flood_of_spellings_keeps_what_is_used_and_no_more_than_so_many_bytes(
    app: App, fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, cached=100_000)
    filled(app)
    fast, _ = fronts
    unused, last = get(f"{READY}&page=2"), get(f"{READY}&page=1149")
    fast.answers(PLAIN, unused)
    for number in range(1000, 1150):
        fast.ask(get(f"{READY}&page={number}"))
        fast.ready(PLAIN)
        assert fast.kept <= 100_000
    assert fast.kept > 95_000
    fast.ready(last)
    worked = fast.worked
    fast.ask(unused)
    assert fast.worked == worked + 1


def test_what_is_long_is_not_kept(app: App, fronts: tuple[Front, Front]) -> None:
    """However well it zips; nor are long addresses and long names of browsers."""
    with_comments(database_path(app), 4_000)
    fast, stock = fronts
    for how in ([], ["Accept-Encoding: gzip"]):
        for _ in range(2):
            worked, question = fast.worked, get(READY + "&limit=100", *how)
            assert fast.ask(question) == stock.ask(question)
            assert fast.worked == worked + 1
    assert not fast.kept
    fast.ask(get("/embed.js"))
    for number in range(30):
        fast.ready(request("GET", f"/embed.js?{number:01000}", f"User-Agent: {number:07000}"))
    assert 0 < fast.remembered < 5_000


SPELLINGS = {
    READY: [
        f"/comments?nothing=1&url={PAGE}",
        f"{READY}&nothing",
        f"{READY}&nothing=%FF"[:-4],
        f"{READY}&Page=2",
        f"/comments?url={quote(PAGE, safe='')}",
    ],
    f"{READY}&page=2&limit=3": [
        f"/comments?limit=3&page=2&url={PAGE}",
        f"{READY}&limit=%33&page=2",
    ],
    f"/pages?url={PAGE}&url={OTHER}": [f"/pages?x=&url={PAGE}&y=1&url={OTHER}"],
    "/embed.js": ["/embed.js?v=7"],
    "/words/de.json": ["/words/de.json?v=7&w"],
    "/feed.atom": ["/feed.atom?page=2"],
}


def test_unknown_parameters_and_their_order_make_no_other_question(
    app: App, fronts: tuple[Front, Front]
) -> None:
    filled(app)
    fast, stock = fronts
    for target, others in SPELLINGS.items():
        answer = fast.ask(get(target))
        for other in others:
            assert fast.ready(get(other)) == [answer] == [stock.ask(get(other))], other


UNLIKE = [
    (f"/pages?url={PAGE}&url={OTHER}", f"/pages?url={OTHER}&url={PAGE}"),
    (READY, f"{READY}&url={OTHER}"),
    (READY, f"{READY}&x=%FF"),
    (READY, f"{READY}{'&x' * 300}"),
    (READY, f"/comment%73?url={OTHER}"),
    (f"/comments?url={OTHER}", f"/comments?url={OTHER}%23%2Fx"),
    (f"/comments?url={OTHER}%23%2Fx", f"/comments?url={OTHER}#/x"),
    (READY, f"{READY}&limit="),
    (f"{READY}&limit=%0A3", f"{READY}&limit=3"),
    ("/embed.js", "/embed.js/"),
    ("/embed.js", "//embed.js"),
]


def test_what_is_asked_otherwise_is_answered_otherwise(
    app: App, fronts: tuple[Front, Front]
) -> None:
    filled(app)
    fast, stock = fronts
    for pair in UNLIKE:
        for target in (*pair, *pair):
            assert fast.ask(get(target)) == stock.ask(get(target)), target


# Faults, and slow readers


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("which", [0, 1], ids=["fast", "stock"])
def test_a_fault_while_reading_costs_one_connection(
    app: App, fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    with monkeypatch.context() as patch:
        break_reading(patch)
        assert fronts[which].stream(PLAIN) == b""
    assert fronts[which].ask(PLAIN).startswith(b"HTTP/1.1 200 OK")


def test_nothing_is_kept_where_the_system_has_no_epoll(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(select, "epoll")
    with closing(Front(app, fast=True)) as front:
        assert front.ask(PLAIN) == front.ask(PLAIN)
        assert front.worked == 2


def test_a_slow_reader_gets_all_and_once(
    app: App, fronts: tuple[Front, Front], campaign: Campaign
) -> None:
    """Also one who asks again before they have read, by the ordinary way or for what is ready."""
    with_comments(database_path(app), 800)
    fast, _ = fronts
    questions = [get(READY + "&limit=100"), get(READY + "&limit=100", "X: \t"), get("/embed.js")]
    answers = [fast.ask(question) for question in questions]
    fast.ready(questions[0], questions[2])
    for chance in campaign.rounds(4):
        asked = chance.choices(range(3), weights=[6, 1, 2], k=8)
        line, received = fast.connect(room=4096), b""
        line.setblocking(False)
        expected = len(b"".join(answers[i] for i in asked)) + 37 * len(asked)
        for i in asked:
            line.sendall(questions[i])
            for _ in range(chance.choice([0, 1, 9])):
                fast.look()
                with contextlib.suppress(BlockingIOError):
                    received += line.recv(chance.choice([1, 1000, 100_000]))
            campaign.figures["waits"] += bool(fast.untaken)
            assert fast.stream(PLAIN)  # others are served
        line.setblocking(True)
        line.settimeout(20)
        while len(received) < expected:
            received += line.recv(1 << 16) or pytest.fail("closed")
        assert undated(received) == b"".join(answers[i] for i in asked)
        line.shutdown(socket.SHUT_WR)
        assert line.recv(1) == b""
    assert campaign.figures["waits"]


def test_whoever_leaves_leaves_nothing(
    app: App, fronts: tuple[Front, Front], campaign: Campaign
) -> None:
    with_comments(database_path(app), 800)
    fast, _ = fronts
    question = get(READY + "&limit=100")
    answer = fast.answers(question, question)[1]
    for chance in campaign.rounds(10):
        line = fast.connect(room=chance.choice([0, 4096]))
        line.sendall(question * chance.randrange(2) + question[: chance.randrange(len(question))])
        if chance.random() < 0.5:
            fast.look()
        line.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            line.recv(chance.choice([1, 10_000]))
        if chance.random() < 0.5:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        line.close()
    until(lambda: not fast.channels)
    fast.look()
    assert fast.ready(question) == [answer]
