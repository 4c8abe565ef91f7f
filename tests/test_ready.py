"""What all readers get alike is sent again where the question is read: the very bytes that the
ordinary way gives, until something changes. Two servers of one service are asked the same, one with
ready answers and the stock one; the clock stands still, so that only `Date` may differ."""

import contextlib
import gzip
import itertools
import re
import select
import signal
import socket
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from email.utils import formatdate
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import pytest
import test_openapi
import test_server
from api import ROUTES
from conftest import CANARY, PAGE, Campaign, Outside, Visitor, dump
from test_admin import OWNER, new_admin
from test_commands import run
from test_openapi import OPERATIONS, PERMISSION, Town, fields, forms, with_metrics
from test_peers import with_comments
from test_server import BLOG, COMMENT, FOREIGN, PIECES, SEEDS, Start, answer_on, request, until

import commentd
from commentd import App, Config, drain, judging_link, make_app, make_server, turns_of

pytestmark = pytest.mark.slow

town, again, start = test_openapi.town, test_openapi.again, test_server.start

IP = b"203.0.113.7"
ROBOT = "User-Agent: a bot"  # whose views are not counted
OTHER = "/other/"


@dataclass
class Task:
    """A question that goes the ordinary way, to a worker."""

    front: "Front"
    channel: Any

    def __post_init__(self) -> None:
        self.near, self.requests = self.channel.near, self.channel.requests
        self.server, self.addr = self.channel.server, self.channel.addr

    def service(self) -> None:
        self.channel.service()
        self.front.note(left=-1)

    def cancel(self) -> None:
        self.channel.cancel()


class Front:
    """A server of the service in this process, and the thread that runs it."""

    def __init__(self, app: App, *, fast: bool) -> None:
        self.app, self.server = app, make_server(app)
        config = replace(app.house.config, server_fast=fast)
        self.turn = turns_of(self.server, replace(app.house, config=config))
        self.address = "127.0.0.1", int(self.server.effective_port)
        self.noted = threading.Condition()
        self.turns = self.worked = self.left = self.near = 0
        self.add_task, self.server.add_task = self.server.add_task, self.work
        self.lines: list[socket.socket] = []
        self.thread, self.stopping = threading.Thread(target=self.run), False
        self.thread.start()

    def note(self, turns: int = 0, worked: int = 0, left: int = 0) -> None:
        with self.noted:
            self.turns, self.worked = self.turns + turns, self.worked + worked
            self.left += left
            self.noted.notify_all()

    def wait(self, ready: Callable[[], bool]) -> None:
        with self.noted:
            assert self.noted.wait_for(ready, 20), "waited in vain"

    def work(self, channel: Any) -> None:
        self.near += channel.near
        self.note(worked=1, left=not channel.near)
        self.add_task(Task(self, channel))

    def run(self) -> None:
        while not self.stopping:
            self.turn(0.1)
            self.note(turns=1)

    @property
    def channels(self) -> list[Any]:
        return [*self.server.active_channels.values()]

    def connect(self, room: int = 0) -> socket.socket:
        line = socket.socket()
        self.lines.append(line)
        if room:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        line.settimeout(20)
        line.connect(self.address)
        if room:
            self.wait(lambda: line.getsockname() in [channel.addr for channel in self.channels])
            self.channel(line).socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
        return line

    def channel(self, line: socket.socket) -> Any:
        """The server's end."""
        return next(channel for channel in self.channels if channel.addr == line.getsockname())

    def answers(self, *questions: bytes) -> list[bytes]:
        """To questions on one line, each of which waits for the answer before it."""
        answers = []
        with self.connect() as line:
            for question in questions:
                line.sendall(question)
                answers.append(undated(next_answer(line, question)))
                self.wait(lambda: not self.left)  # what was sent is kept a moment later
        return answers

    def ask(self, question: bytes) -> bytes:
        return self.answers(question)[0]

    def ready(self, *questions: bytes) -> list[bytes]:
        """The answers to questions that nobody works for."""
        worked = self.worked
        answers = self.answers(*questions)
        assert self.worked == worked, "somebody worked"
        return answers

    def stream(self, *pieces: bytes) -> bytes:
        """All that comes for bytes that come in pieces, until it is closed."""
        received = b""
        with self.connect() as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with contextlib.suppress(OSError):  # it may be refused before it was all sent
                for piece in pieces:
                    line.sendall(piece)
                    self.look()
                line.shutdown(socket.SHUT_WR)
            with contextlib.suppress(ConnectionError):
                while data := line.recv(1 << 16):
                    received += data
        return undated(received)

    def look(self) -> None:
        """Waits until the server has looked at all that was sent."""
        for _ in range(2):
            turns = self.turns
            self.server.pull_trigger()
            self.wait(lambda: self.turns > turns)  # noqa: B023

    def close(self) -> None:
        self.stopping = True
        self.server.pull_trigger()
        self.thread.join()
        for line in self.lines:
            line.close()
        drain(self.server, 1)
        self.server.trigger.close()


def undated(answer: bytes) -> bytes:
    return re.sub(rb"(?m)^Date: .{29}\r\n", b"", answer)


def next_answer(line: socket.socket, question: bytes = b"") -> bytes:
    """The bytes of the next answer on a line, and no more."""
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += line.recv(1) or pytest.fail("closed")
    length = re.search(rb"(?m)^Content-Length: (\d+)\r$", answer)
    left = int(length[1]) if length and not question.startswith(b"HEAD") else 0
    while left:
        answer += (data := line.recv(left) or pytest.fail("closed"))
        left -= len(data)
    return answer


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
def fronts_of(app: App) -> Iterator[tuple[Front, Front]]:
    with contextlib.ExitStack() as stack:
        fast, stock = Front(app, fast=True), Front(app, fast=False)
        stack.callback(stock.close)
        stack.callback(fast.close)
        yield fast, stock


@contextlib.contextmanager
def twins(config: Config, outside: Outside, **settings: Any) -> Iterator[tuple[Front, Front]]:
    """Two services in the same world, to which the same happens: one with ready answers, and the
    stock one."""
    with contextlib.ExitStack() as stack:
        both = []
        for fast in (True, False):
            path = config.database_path.replace(".db", f"-{'fast' if fast else 'stock'}.db")
            world = replace(outside.world, chance=Random(1).randbytes)
            app = make_app(replace(config, database_path=path, **settings), world, rounds=1)
            stack.callback(app.close)
            both.append(Front(app, fast=fast))
            stack.callback(both[-1].close)
        yield both[0], both[1]


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
ASSETS = sorted(
    f"/{name}"
    for name in commentd.assets_in(commentd.assets_folder())
    if not name.endswith((".html", "letters.json"))
)
ZIPS = ["", "gzip, deflate, br", "gzip;q=0", "br, *;q=0.5", "deflate"]
ORIGINS = ["", BLOG, FOREIGN, "null"]


def filled(app: App) -> None:
    """Two pages with what a list can hold."""
    visitor, house = Visitor(app), app.house
    for number in range(1, 28):
        parent = {"parent_id": number // 2} if number % 3 == 0 else {}
        visitor.say(f"*{number}* ü <b>", nickname=f"Ann {number}", **parent)
    visitor.say("elsewhere", page_url=OTHER)
    visitor.post_json("/comment/like", {"id": 5})
    visitor.post_json("/page/like", {"page_url": PAGE})
    with house.store.writing():
        house.store.pin(7, pinned=True)
        house.store.judge(3, "deleted", int(house.world.now()))
        house.store.judge(8, "waiting", int(house.world.now()))


# The same bytes


def same(fast: Front, stock: Front, question: bytes) -> bytes:
    """The answer of both: of the stock server, of the fast one, and where it is ready."""
    expected = stock.ask(question)
    assert fast.ask(question) == expected, question
    fast.ask(re.sub(rb"If-None-Match.*\r\n", b"", question))  # whole, or there is nothing to keep
    assert fast.ready(question) == [expected], question
    return expected


@pytest.mark.parametrize("settings", [{}, {"site_origins": (BLOG,)}], ids=["any", "blog"])
def test_what_is_ready_is_what_the_stock_server_sends(
    app: App, fronts: tuple[Front, Front]
) -> None:
    filled(app)
    for target in QUESTIONS + ASSETS:
        plain = same(*fronts, get(target))
        assert plain.startswith(b"HTTP/1.1 200 OK\r\n")
        zipped = same(*fronts, get(target, "Accept-Encoding: gzip", f"Origin: {FOREIGN}"))
        assert body_of(zipped) == body_of(plain)
        assert (b"Content-Encoding: gzip" in zipped) == (len(body_of(plain)) > 200)
        known = f"If-None-Match: {header(zipped, 'Etag')}"
        empty = same(*fronts, get(target, "Accept-Encoding: gzip", f"Origin: {BLOG}", known))
        assert empty.startswith(b"HTTP/1.1 304 Not Modified\r\n")
        assert same(*fronts, get(target, 'If-None-Match: "other"')) == plain


def form(chance: Random, etag: str) -> list[str]:
    """Headers of a reader, who may know the answer."""
    matches = ["", "", etag, f"W/{etag}", f'"x", {etag}', "*", etag.strip('"'), '""', "x" * 999]
    said = {"Accept-Encoding": ZIPS, "Origin": ORIGINS, "If-None-Match": matches}
    lines = [f"{name}: {v}" for name, values in said.items() if (v := chance.choice(values))]
    odd = ["DNT: 1", "X: ~", "Connection: keep-alive", "accept: */*", "Referer: http://x/?a: b"]
    lines += chance.sample(odd, chance.choice([0, 1, 4]))
    return chance.sample(lines, len(lines))


@pytest.mark.parametrize("settings", [{}, {"site_origins": (BLOG,)}], ids=["any", "blog"])
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


def test_who_always_asks_with_a_tag_is_answered_from_what_is_ready(
    app: App, fronts: tuple[Front, Front]
) -> None:
    filled(app)
    fast, stock = fronts
    for target in ("/embed.js", "/feed.atom", "/comments/latest"):
        question = get(target, f"If-None-Match: {header(stock.ask(get(target)), 'Etag')}")
        assert fast.ask(question) == stock.ask(question)
        (empty,) = fast.ready(question)
        assert empty == stock.ask(question)
        assert empty.startswith(b"HTTP/1.1 304 ")
        assert fast.ask(get(target)) == stock.ask(get(target))


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
    *(f"/pages?url={PAGE}&url={OTHER}&url=/new/", "/pages?url=/new/", f"/feed.atom?url={PAGE}"),
    *(f"/thread?url={url}" for url in (PAGE, "/new/")),
]


def shown_by(fast: Front, stock: Front, act: Callable[[], object]) -> set[str]:
    """The questions whose answers an act has changed: all that were ready are true at once."""
    questions = [get(target) for target in WATCHED]
    before = fast.answers(*questions)
    assert fast.ready(*questions) == before
    act()
    after = fast.answers(*questions)
    assert after == stock.answers(*questions)
    return {WATCHED[i] for i in range(len(WATCHED)) if after[i] != before[i]}


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


def link_of(app: App) -> str:
    """What a letter to the owner says about a comment, from its `?` on."""
    config = replace(app.house.config, server_public_url="http://comments.example")
    comment = app.house.store.comment(1)
    assert comment
    link = judging_link(replace(app.house, config=config), comment, "spam", to=OWNER)
    return "?" + link.partition("?")[2]


def sent(town: Town, label: str, more: dict[str, Any]) -> bytes:
    """The request of an act, by one who may."""
    method, path = label.split()
    path = re.sub("{(.*?)}", lambda name: str(town.good[name[1]]), path)
    if path == "/mail":
        path += link_of(town.app)
    needed = forms(OPERATIONS[label])[:1] if label in OPERATIONS else []
    form = {**town.values(label, fields(needed[0], whole=False)), **more} if needed else more
    token = f"Authorization: Bearer {town.tokens[PERMISSION[label]]}"
    return request(method, path, token, body=form)


def test_each_route_that_writes_is_tried() -> None:
    assert {label for label, _, _ in ACTS} == {
        str(route) for route in ROUTES if route.method != "GET"
    }


@pytest.fixture
def written(town: Town) -> None:
    """What Eve said before her address was confirmed."""
    Visitor(town.app).say(page_url=OTHER, email="eve@example.com")


@with_metrics
@pytest.mark.usefixtures("written")
def test_what_is_written_shows_at_once(
    town: Town, again: Callable[[], object], fronts: tuple[Front, Front]
) -> None:
    fast, stock = fronts
    for label, more, shows in ACTS:
        again()
        town.app.tick()  # what was brought back is seen
        question = sent(town, label, more)

        def act(question: bytes = question) -> None:
            answer = fast.ask(question)
            assert answer.startswith(b"HTTP/1.1 200 OK"), (question, answer)

        assert bool(shown_by(fast, stock, act)) == shows, (label, more)


@with_metrics
def test_whatever_happens_readers_are_told_the_truth(
    town: Town, outside: Outside, fronts: tuple[Front, Front], campaign: Campaign
) -> None:
    """Acts one after the other, of which many are refused by and by, and questions between."""
    fast, stock = fronts
    for chance in campaign.rounds(5):
        for _ in range(10):
            label, more, _ = chance.choice(ACTS)
            fast.ask(sent(town, label, {**more, "content": f"{chance.random()}"}))
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
    day = commentd.DAY
    for seconds in (day - 1, day + commentd.MINUTE, 3 * day - 1, 3 * day + 9):
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


def test_what_a_command_writes_shows_soon(start: Start, app: App, tmp_path: Path) -> None:
    """It works on the file beside the service, which looks each second."""
    Visitor(app).say("from elsewhere", page_url="/imported/")
    code, exported, _ = run(tmp_path, "export", "commentd")
    assert code == 0
    (tmp_path / "old.json").write_text(exported)
    folder = tmp_path / "here"
    service = start(folder)
    assert service.ask("POST", "/comments", body=COMMENT).status == 200

    def totals() -> list[int]:
        urls = (PAGE, "/moved/", "/imported/")
        listings = [service.ask("GET", f"/comments?url={url}&page=2").json for url in urls]
        return [listing["total"] for listing in listings]

    assert [totals() for _ in range(3)] == [[1, 0, 0]] * 3
    assert run(folder, "move", PAGE, "/moved/")[0] == 0
    until(lambda: totals() == [0, 1, 0])
    assert run(folder, "import", str(tmp_path / "old.json"))[0] == 0
    until(lambda: totals() == [0, 1, 1])
    with closing(sqlite3.connect(service.path)) as db, db:
        db.execute("UPDATE page SET total = 7 WHERE page_url = '/moved/'")
    until(lambda: totals() == [0, 7, 1])
    assert run(folder, "recount")[0] == 0
    until(lambda: totals() == [0, 1, 1])


# Whose answer it is

READY = f"/comments?url={PAGE}"
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


@pytest.mark.parametrize("settings", [{}, {"site_origins": (BLOG,)}], ids=["any", "blog"])
def test_what_is_not_plain_is_answered_as_ever(app: App, fronts: tuple[Front, Front]) -> None:
    filled(app)
    fast, stock = fronts
    plain = same(fast, stock, PLAIN)
    for case, raw in ODD.items():
        expected = stock.stream(raw)
        for _ in range(2):  # nor is it kept for the next
            worked = fast.worked
            assert fast.stream(raw) == expected, case
            assert fast.worked > worked or not expected, case
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


def test_no_bytes_get_another_answer(
    config: Config, outside: Outside, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commentd, "is_person", lambda environ: False)
    with twins(config, outside) as (fast, stock):
        filled(fast.app)
        filled(stock.app)
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
        assert dump(fast.app.house.store.path) == dump(stock.app.house.store.path)


def test_the_answer_to_a_token_is_for_nobody_else(app: App, fronts: tuple[Front, Front]) -> None:
    filled(app)
    fast, stock = fronts
    _, token = new_admin(app)
    for target in QUESTIONS:
        asked = get(target, f"Authorization: Bearer {token}", "Accept-Encoding: gzip")
        personal = stock.ask(asked)
        assert fast.ask(asked) == personal
        plain = same(fast, stock, get(target))
        assert fast.ask(asked) == personal
        assert fast.ready(get(target)) == [plain]
        by_token = not target.startswith(("/feed", "/thread"))
        assert (b"\r\nContent-Encoding" in personal or b"\r\nEtag" in personal) != by_token
        assert (IP in personal) == (b'"comments":[{' in personal)
    kept = [answer.data for answer in fast.server.loop.ready.answers.values()]
    assert len(kept) == len(QUESTIONS)
    assert IP not in b"".join(kept)


# Views


def views_of(app: App) -> list[tuple[str, int]]:
    """The pages and their views, after these were written."""
    app.tick()
    with closing(sqlite3.connect(app.house.store.path)) as db:
        return db.execute("SELECT page_url, views FROM page ORDER BY page_url").fetchall()


def test_all_that_tells_who_looks_is_looked_at(app: App) -> None:
    asked = set[str]()

    class Environ(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            asked.add(name)
            return super().get(name, default)

    environ = Environ(REQUEST_METHOD="GET", REMOTE_ADDR="127.0.0.1")
    app.house.clients.of(environ)
    commentd.is_person(environ)
    assert {name for name in asked if name.startswith("HTTP_")} == {*commentd.TELLING.values()}


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
            for _ in range(100):
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
    for name in (PAGE, "/new/"):
        app.house.views.add(commentd.page_name(name, []), commentd.Client("", []))
    app.tick()
    outside.time += 8
    assert fast.ready(*questions) == before
    outside.time += seconds
    after = fast.answers(*questions)
    assert after == stock.answers(*questions)
    assert all(one != other for one, other in zip(before, after, strict=True))
    assert fast.ready(*questions) == after


# What is kept


def weight(front: Front) -> int:
    answers = front.server.loop.ready.answers
    return sum(len(question) + answer.size for question, answer in answers.items())


def test_a_flood_of_spellings_keeps_no_more_than_so_many_bytes(
    app: App, fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commentd, "READY_BYTES", 100_000)
    filled(app)
    fast, _ = fronts
    ready = fast.server.loop.ready
    for number in range(1, 200):
        fast.ask(get(f"{READY}&page={1000 + number}"))
        assert weight(fast) == ready.size <= 100_000
    assert weight(fast) > 95_000
    assert len(ready.answers) < 100  # each takes a kilobyte beside its bytes
    fast.ready(get(f"{READY}&page=1199"))
    assert not [question for question in ready.answers if b"page=1001" in question]


def test_what_was_used_least_recently_makes_room(
    app: App, fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commentd, "READY_BYTES", 20_000)
    fast, _ = fronts
    Visitor(app).say()
    used, unused = PLAIN, get(f"{READY}&page=2")
    fast.answers(used, unused)
    for number in range(1000, 1030):
        fast.ask(get(f"{READY}&page={number}"))
        fast.ready(used)
    worked = fast.worked
    fast.ask(unused)
    assert fast.worked == worked + 1


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


def test_so_many_spellings_are_remembered(
    app: App, fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commentd.Questions, "MOST", 10)
    fast, _ = fronts
    fast.ask(PLAIN)
    fast.ready(*(get(f"{READY}&nothing={number}") for number in range(30)))
    fast.ready(get(f"{READY}&nothing={'9' * 1000}"))
    spellings = fast.server.loop.ready.questions.spellings
    assert 0 < len(spellings) <= 10
    assert max(map(len, spellings)) < 500


def test_a_flood_of_browsers_keeps_no_more_than_so_many_bytes(
    app: App, fronts: tuple[Front, Front]
) -> None:
    Visitor(app).say()
    fast, _ = fronts
    fast.ask(PLAIN)
    asked = [request("GET", READY, f"User-Agent: {number:07000}") for number in range(800)]
    fast.ready(*asked, PLAIN)
    assert 0 < sum(sum(map(len, who)) for who in fast.server.loop.viewers) < 4_000_000


def test_what_is_made_anew_is_counted_once(
    app: App, outside: Outside, fronts: tuple[Front, Front]
) -> None:
    fast, _ = fronts
    ready = fast.server.loop.ready
    questions = [PLAIN, get(READY, "Accept-Encoding: gzip")]
    for number in range(4):
        Visitor(app).say(f"{number}")
        for _ in range(2):
            fast.answers(*questions)
            assert ready.size == weight(fast)
            outside.time += 10
    assert len(ready.answers) == 2


def test_what_is_long_is_not_kept(app: App, fronts: tuple[Front, Front]) -> None:
    """However well it zips."""
    with_comments(app.house.store.path, 4_000)
    fast, stock = fronts
    for form in [], ["Accept-Encoding: gzip"]:
        for _ in range(2):
            worked, question = fast.worked, get(READY + "&limit=100", *form)
            assert fast.ask(question) == stock.ask(question)
            assert fast.worked == worked + 1
    assert not fast.server.loop.ready.answers


# The loop


@pytest.mark.parametrize("most", [(60, 60), (0, 60), (60, 0)])
def test_what_was_made_soon_is_made_anew_by_the_loop(
    app: App, fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch, most: tuple[int, int]
) -> None:
    """What took longer, what has no time left in this turn, and what is new, is for a worker."""
    monkeypatch.setattr(commentd, "NEAR", most[0])
    monkeypatch.setattr(commentd, "NEAR_TURN", most[1])
    fast, stock = fronts
    near = []
    for _ in range(3):
        Visitor(app).say()
        assert fast.ask(PLAIN) == stock.ask(PLAIN)
        near.append(fast.near)
    assert near == ([0, 1, 2] if all(most) else [0, 0, 0])
    assert (fast.worked, stock.near) == (3, 0)


def test_a_crowd_is_let_in_at_once(app: App) -> None:
    server = make_server(app)
    with contextlib.ExitStack() as crowd:
        crowd.callback(server.trigger.close)
        crowd.callback(drain, server)
        for _ in range(150):
            line = crowd.enter_context(socket.create_connection(server.socket.getsockname()))
            line.sendall(PLAIN)
        loop = commentd.Loop(server, app.house)
        for many in (100, 150):
            loop.turn(1)
            assert len(server.active_channels) == many
            # Else they would seem silent.
            assert all(channel.visit.block for channel in server.active_channels.values())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("which", [0, 1], ids=["fast", "stock"])
def test_a_fault_while_reading_costs_one_connection(
    app: App, fronts: tuple[Front, Front], monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    def fail(parser: Any, data: bytes) -> int:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patch:
        patch.setattr(commentd.StrictParser, "received", fail)
        assert fronts[which].stream(PLAIN) == b""
    assert fronts[which].ask(PLAIN).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("said", ["fast = no", "no epoll"])
def test_the_loop_is_the_stock_one_where_it_must(
    config: Config, outside: Outside, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    if said == "no epoll":
        monkeypatch.delattr(select, "epoll", raising=False)
    fast = said == "no epoll"
    app = make_app(replace(config, server_fast=fast), outside.world, rounds=1)
    with closing(app), closing(Front(app, fast=fast)) as front:
        Visitor(app).say()
        assert front.ask(PLAIN) == front.ask(PLAIN)
        assert front.worked == 2
        assert front.server.channel_class is commentd.CalmChannel
        assert not hasattr(front.server, "loop")


@pytest.mark.parametrize("which", [0, 1], ids=["fast", "stock"])
@pytest.mark.parametrize("ends", ["will_close", "close_when_flushed"])
def test_nothing_is_answered_behind_the_last_answer(
    app: App, fronts: tuple[Front, Front], which: int, ends: str
) -> None:
    """A worker may say so when the loop has seen the next question already."""
    front = fronts[which]
    Visitor(app).say()
    front.ask(PLAIN)
    with front.connect() as line:
        front.wait(lambda: line.getsockname() in [channel.addr for channel in front.channels])
        front.look()  # now it waits for a question alone
        setattr(front.channel(line), ends, True)
        line.sendall(PLAIN)
        with contextlib.suppress(ConnectionError):
            assert line.recv(1) == b""


def test_a_slow_reader_gets_all_and_once(
    app: App, fronts: tuple[Front, Front], campaign: Campaign
) -> None:
    """He asks again before he has read, by the ordinary way or for what is ready."""
    with_comments(app.house.store.path, 800)
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
            waiting = [channel.total_outbufs_len for channel in fast.channels]
            campaign.figures["waits"] += sum(map(bool, waiting))
            assert fast.ask(PLAIN)  # others are served
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
    with_comments(app.house.store.path, 800)
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
    assert len(fast.server.loop.busy) == 1  # who lets newcomers in
    assert fast.ready(question) == [answer]


# How it stops


def test_a_stop_sends_what_is_ready_and_what_was_begun(start: Start) -> None:
    service = start()
    with_comments(service.path, 800)
    question = request("GET", READY + "&limit=100", ROBOT)
    until(lambda: len(service.raw(question).json["comments"]) == 100)
    kept, slow = service.sent(question), service.connect()
    answer = answer_on(kept)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.sendall(question)
    assert slow.recv(1, socket.MSG_PEEK)
    # The system goes on to take connections and bytes for a process that stands still.
    service.process.send_signal(signal.SIGSTOP)
    new = [service.sent(question) for _ in range(5)]
    kept.sendall(question)
    service.process.send_signal(signal.SIGTERM)
    service.process.send_signal(signal.SIGCONT)
    assert [answer_on(line).body for line in (slow, kept, *new)] == [answer.body] * 7
    assert service.process.wait(20) == 0
