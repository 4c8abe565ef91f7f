"""The real program in a process of its own, over real sockets: what it refuses, what it sends
with every reply, how it stops."""

import configparser
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import pytest
import waitress
from conftest import PAGE, Campaign, Outside, Visitor, assert_whole

import commentd
from commentd import (
    BODY_LIMIT,
    LINE_LIMIT,
    ROUTES,
    CalmChannel,
    Config,
    drain,
    make_app,
    make_server,
)

pytestmark = pytest.mark.slow

BLOG, FOREIGN = "https://blog.example", "https://evil.example"
COMMENT = {"page_url": PAGE, "nickname": "Ann", "content": "hi", "captcha_token": "x"}
LOGIN = {"email": "ann@example.com", "password": "wrong", "captcha_token": "x"}
POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; sandbox"
JSON = "application/json; charset=utf-8"

T = TypeVar("T")


def until(ready: Callable[[], T], seconds: float = 20) -> T:
    """What a condition gives as soon as it is true."""
    ends_at = time.monotonic() + seconds
    while not (found := ready()):
        assert time.monotonic() < ends_at, "waited in vain"
        time.sleep(0.005)
    return found


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(method: str, target: str, *headers: str, body: bytes | dict[str, Any] = b"") -> bytes:
    """A request as it goes over the wire."""
    lines = [f"{method} {target} HTTP/1.1", "Host: comments.example", *headers]
    if isinstance(body, dict):
        body = json.dumps(body).encode()
        lines.append("Content-Type: application/json")
    if body and not any(line.startswith("Transfer-Encoding") for line in lines):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def answer_on(connection: socket.socket, method: str = "GET") -> Answer:
    with closing(http.client.HTTPResponse(connection, method=method)) as response:
        response.begin()
        return Answer(response.status, response.headers, response.read())


class Service:
    """`commentd.py` with a folder, a database and a log of its own."""

    def __init__(self, folder: Path, program: str = "", **sections: dict[str, str]) -> None:
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_dict({"server": {"listen": "127.0.0.1:0"}, "captcha": {"provider": "none"}})
        parser.read_dict({"limits": {"enabled": "no"}, "database": {"path": "commentd.db"}})
        parser.read_dict(sections)
        folder.mkdir(exist_ok=True)
        with (folder / "commentd.ini").open("w") as file:
            parser.write(file)
        self.path, self.log = folder / parser["database"]["path"], folder / "log"
        home = Path(commentd.__file__).parent
        self.opened: list[socket.socket] = []
        what = ["-c", program] if program else [str(home / "commentd.py")]
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("COMMENTD_")}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, *what, "--config", str(folder / "commentd.ini")],
                env={**inherited, "PYTHONPATH": str(home), "PYTHONUNBUFFERED": "1"},
                stdout=log,
                stderr=log,
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    def greeted(self) -> "Service":
        greeting = re.compile(r"^commentd .* serves .* on (\S+)$", re.M)
        until(lambda: greeting.search(self.said) or self.process.poll() is not None)
        found = greeting.search(self.said)
        assert found, self.said
        self.address = found[1]
        return self

    def connect(self) -> socket.socket:
        unix = self.address.startswith("unix:")
        connection = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        self.opened.append(connection)
        connection.settimeout(20)
        host, _, port = self.address.removeprefix("http://").removeprefix("unix:").rpartition(":")
        try:
            connection.connect(port if unix else (host, int(port)))
        except OSError:
            connection.close()
            raise
        return connection

    def sent(self, raw: bytes) -> socket.socket:
        connection = self.connect()
        connection.sendall(raw)
        return connection

    def raw(self, raw: bytes) -> Answer:
        with self.sent(raw) as connection:
            return answer_on(connection, raw.partition(b" ")[0].decode("latin-1"))

    def ask(self, method: str, target: str, *headers: str, **body: Any) -> Answer:
        return self.raw(request(method, target, *headers, **body))

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(20)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for connection in self.opened:
            connection.close()


Start = Callable[..., Service]


@contextlib.contextmanager
def services(folder: Path) -> Iterator[Start]:
    """Starts services and waits for their greeting; at the end all that still run are stopped."""
    begun: list[Service] = []

    def start(where: Path = folder, waits: bool = True, **how: Any) -> Service:
        begun.append(Service(where, **how))
        return begun[-1].greeted() if waits else begun[-1]

    try:
        yield start
        left = [service for service in begun if service.process.poll() is None]
        codes = [service.stop() for service in left]
    finally:
        for service in begun:
            service.end()
    assert codes == [0] * len(codes)
    for service in left:
        assert_whole(str(service.path))


def held(service: Service) -> tuple[int, int]:
    """Its sockets and temporary files, and its threads but those that hash, which come when there
    is a password, and stand back."""
    process = Path(f"/proc/{service.process.pid}")
    if not process.exists():
        pytest.skip("this system has no /proc")
    links = []
    for link in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(os.readlink(link))
    ranks = []
    for thread in (process / "task").iterdir():
        with contextlib.suppress(OSError):
            ranks.append(int((thread / "stat").read_text().rpartition(") ")[2].split()[16]))
    sockets = sum("socket:" in link or "(deleted)" in link for link in links)
    return sockets, sum(rank < 15 for rank in ranks)


def held_at_rest(service: Service) -> tuple[int, int]:
    """The same of a service that listens and no more, when all its threads have been started."""
    assert service.ask("GET", "/health").status == 200  # only its loop answers, after the start
    return until(lambda: now if (now := held(service))[0] == 1 else None)


def memory(service: Service) -> int:
    """In MiB."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with services(tmp_path) as start:
        yield start


LOOPS = {"fast": {"fast": "yes"}, "stock": {"fast": "no"}}


@pytest.fixture(params=LOOPS)
def service(start: Start, request: pytest.FixtureRequest) -> Service:
    return start(server=LOOPS[request.param])


@pytest.fixture(scope="module", params=LOOPS)
def quiet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """A service for all tests that change nothing in it, by each loop."""
    with services(tmp_path_factory.mktemp("quiet")) as start:
        yield start(server=LOOPS[request.param])


def assert_safe(answer: Answer) -> None:
    """What every reply of the API carries, and what none does."""
    headers = answer.headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Security-Policy"] == POLICY
    assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert headers["Vary"] == "Accept-Encoding, Origin, Authorization"
    assert not {"Server", "Via", "X-Powered-By", "Set-Cookie"} & {h.title() for h in headers}
    assert "Access-Control-Allow-Credentials" not in headers


# What is served


def test_a_comment_goes_in_and_comes_out_over_the_wire(service: Service) -> None:
    posted = service.ask("POST", "/comments", body=COMMENT)
    listed = service.ask("GET", f"/comments?url={PAGE}")
    assert (posted.status, listed.status) == (200, 200)
    assert posted.json.keys() == {"success", "comment", "edit_token"}
    assert listed.json["comments"] == [
        {key: value for key, value in posted.json["comment"].items() if key != "status"}
    ]
    for answer in (posted, listed):
        assert answer.headers["Content-Type"] == JSON
        assert_safe(answer)


def test_head_is_get_without_the_body_and_counts_no_view(service: Service) -> None:
    target = f"/comments?url={PAGE}"
    head, get = service.ask("HEAD", target), service.ask("GET", target)
    assert (head.status, head.body, get.json["views"]) == (200, b"", 1)
    drop = {"Date", "Etag"}  # the view of the second is in its body
    assert {h for h in head.headers.items() if h[0] not in drop} == {
        h for h in get.headers.items() if h[0] not in drop
    }


def test_a_connection_serves_many_requests(service: Service) -> None:
    raw = [
        request("POST", "/comments", body=COMMENT),
        request("HEAD", f"/comments?url={PAGE}"),
        request("GET", "/nothing/here"),
        request("POST", "/comments", "Content-Type: text/plain", body=b"x"),
        request("GET", f"/comments?url={PAGE}"),
    ]
    with service.connect() as connection:
        statuses = []
        for each in raw:
            connection.sendall(each)
            statuses.append(answer_on(connection, each.split(b" ")[0].decode()).status)
    assert statuses == [200, 200, 404, 415, 200]


def test_a_client_may_wait_to_be_asked_for_its_body(service: Service) -> None:
    whole = request("POST", "/comments", "Expect: 100-continue", body=COMMENT)
    head, _, body = whole.partition(b"\r\n\r\n")
    with service.sent(head + b"\r\n\r\n") as connection:
        go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert connection.recv(len(go_on), socket.MSG_WAITALL) == go_on
        connection.sendall(body)
        assert answer_on(connection).status == 200


def test_two_hundred_silent_connections_keep_nobody_waiting(quiet: Service) -> None:
    silent = [quiet.connect() for _ in range(200)]
    for connection in silent[::2]:
        connection.sendall(b"GET /comments?url=")
    answers = [quiet.ask("GET", "/health") for _ in range(20)]
    for connection in silent:
        connection.close()
    assert [answer.status for answer in answers] == [200] * 20


def test_a_socket_file_serves_its_group(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "s"
    for _ in range(2):  # the file of the first does not keep the second away
        service = start(server={"listen": f"unix:{path}"})
        assert path.stat().st_mode & 0o777 == 0o660
        assert service.ask("GET", f"/comments?url={PAGE}").status == 200
        assert service.stop() == 0


# What is refused


def padded(size: int) -> bytes:
    """A comment in a body of exactly this size."""
    return json.dumps(COMMENT).encode().ljust(size)


def chunked(body: bytes) -> bytes:
    pieces = [body[i : i + 5000] for i in range(0, len(body), 5000)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


def post(*headers: str, body: bytes = b"{}", target: str = "/comments") -> bytes:
    return request("POST", target, *headers, body=body)


AS_JSON, CHUNKED = "Content-Type: application/json", "Transfer-Encoding: chunked"
ENDLESS = f"Content-Length: {2 * BODY_LIMIT}"  # announced, not sent
# The last chunk is never sent, so that nothing is left to be read when the answer comes.
FLOOD = b"%x\r\n" % (4 * BODY_LIMIT) + b"x" * (2 * BODY_LIMIT)

REFUSED = {
    "no such path": (request("GET", "/nothing/here"), 404, "not_found"),
    "no such file": (request("GET", "/nothing"), 404, "not_found"),
    "path not UTF-8": (request("GET", "/comm%ffents?url=/"), 400, "url_invalid"),
    "method": (request("DELETE", "/comments"), 405, "method_not_allowed"),
    "odd method": (request("BREW", "/comments"), 405, "method_not_allowed"),
    "body": (post(AS_JSON, body=padded(BODY_LIMIT + 1)), 413, "body_too_large"),
    "body in chunks": (
        post(AS_JSON, CHUNKED, body=chunked(padded(BODY_LIMIT + 1))), 413, "body_too_large",
    ),
    "body announced": (post(AS_JSON, ENDLESS, body=b""), 413, "body_too_large"),
    "flood of chunks": (post(AS_JSON, CHUNKED, body=FLOOD), 413, "body_too_large"),
    "long query": (request("GET", "/comments?url=/" + "a" * LINE_LIMIT), 414, "uri_too_long"),
    "long path": (request("GET", "/" + "a" * LINE_LIMIT), 414, "uri_too_long"),
    "no type": (post(), 415, "content_type"),
    "text": (post("Content-Type: text/plain"), 415, "content_type"),
    "form": (post("Content-Type: application/x-www-form-urlencoded"), 415, "content_type"),
    "like JSON": (post("Content-Type: application/json-patch+json"), 415, "content_type"),
    "GBK": (post("Content-Type: application/json; charset=gbk"), 415, "content_type"),
    "gzip": (post(AS_JSON, "Content-Encoding: gzip"), 415, "content_type"),
    "headers": (request("GET", "/", "X-Long: " + "a" * 16 * 1024), 431, "headers_too_large"),
    "no header": (request("GET", "/", "no colon"), 400, "http_invalid"),
    "no length": (request("POST", "/comments", "Content-Length: -1"), 400, "http_invalid"),
    "no chunk": (post(AS_JSON, CHUNKED, body=b"zz\r\n"), 400, "http_invalid"),
    "other coding": (post(AS_JSON, "Transfer-Encoding: gzip"), 400, "http_invalid"),
    "no request": (b"\x16\x03\x01 hello\r\n\r\n", 400, "http_invalid"),
}  # fmt: skip


def test_what_the_server_itself_refuses_of_the_admin_page_is_for_no_other_site(
    quiet: Service,
) -> None:
    long = ("Origin: https://blog.example", "Content-Length: 1000000")
    answer = quiet.raw(request("POST", "/admin/login", *long))
    assert answer.status == 413
    assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("case", REFUSED)
def test_whatever_is_refused_is_json_and_safe(quiet: Service, case: str) -> None:
    raw, status, code = REFUSED[case]
    answer = quiet.raw(raw)
    assert answer.status == status
    assert answer.headers["Content-Type"] == JSON
    assert answer.json.keys() == {"error", "code"}
    assert answer.json["code"] == code
    assert answer.json["error"]
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert_safe(answer)
    if status == 405:
        assert set(answer.headers["Allow"].split(",")) == {"GET", "POST"}
    assert quiet.ask("GET", f"/comments?url={PAGE}").json["total"] == 0


@pytest.mark.parametrize(
    "body",
    [(AS_JSON, ENDLESS, b""), (AS_JSON, CHUNKED, FLOOD), (AS_JSON, "", padded(BODY_LIMIT + 1))],
)
def test_a_verification_too_large_fails_like_any_other(
    quiet: Service, body: tuple[str, str, bytes]
) -> None:
    *headers, content = body
    answer = quiet.raw(post(*filter(None, headers), body=content, target="/auth/verify"))
    assert (answer.status, answer.body.decode()) == (413, "验证码错误或已过期")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert_safe(answer)


@pytest.mark.parametrize("headers", [(AS_JSON,), (AS_JSON + "; charset=UTF-8", CHUNKED)])
def test_a_body_may_have_64_kib(service: Service, headers: tuple[str, ...]) -> None:
    body = padded(BODY_LIMIT)
    raw = post(*headers, body=chunked(body) if CHUNKED in headers else body)
    assert service.raw(raw).status == 200


def test_a_line_may_have_8_kib(quiet: Service) -> None:
    target = "/comments?limit=1&url=/&x=".ljust(LINE_LIMIT - len("GET  HTTP/1.1\r\n"), "a")
    assert quiet.ask("GET", target).status == 200


# Whatever comes over the wire

LIKE = {"page_url": "/liked/"}
SEEDS = [
    request("GET", f"/comments?url={PAGE}&view=threads&page=1&limit=2"),
    request("GET", "/pages?url=/a/&url=/b/", f"Origin: {BLOG}", "Accept-Encoding: gzip"),
    request("HEAD", "/embed.js", "Connection: keep-alive", 'If-None-Match: "x"'),
    request("OPTIONS", "/comments", "Access-Control-Request-Method: POST", "Content-Length: 0"),
    request("GET", "/me", "Authorization: Bearer x.y.z", "X-Forwarded-For: 6.6.6.6"),
    request("POST", "/page/like", body=LIKE),
    request("POST", "/page/like", AS_JSON, CHUNKED, body=chunked(json.dumps(LIKE).encode())),
    request("POST", "/comments", "Expect: 100-continue", body=COMMENT),
    request("PATCH", "/comments/1", "Connection: close", body={"content": "x", "edit_token": "y"}),
    request("POST", "/auth/verify", body={"email": "ann@example.com", "token": "123456"}),
    request("POST", "/mail?do=stop&mac=x", body=b"List-Unsubscribe=One-Click"),
    request("GET", "http://other.example/health"),
    request("GET", "http://[::1/health"),
    b"GET /health HTTP/1.0\r\n\r\n",
]
PIECES = [
    *(b"GET", b"POST", b"HEAD", b" ", b"/", b"/comments", b"?url=/x&page=", b"1", b"-1", b"*"),
    *(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", b" HTTP/9.9\r\n", b"http://[x", b"//", b"#", b"%"),
    *(b"\r\n", b"\n", b"\r", b"\0", b":", b"\xff", b"Host: x\r\n", b"{}", b"X: \x80\r\n", b"\t"),
    *(b"Content-Length: 2\r\n", b"Content-Length: 1_0\r\n", b"5\r\n{   }\r\n0\r\n", b";x=y"),
    *(b"Content-Type: application/json\r\n", b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n"),
    *(b"Expect: 100-continue\r\n", b"Origin: null\r\n", b"Authorization: Bearer x\r\n"),
    *(
        b" folded\r\n",
        b"Content-Length: %d\r\n" % 2**70,
        b"fffffff\r\n",
        b"\r\n\r\n",
        b"%00",
        b"%ff",
    ),
    *(b"Connection: close\r\n", b"Upgrade: h2c\r\n", b"X: " + b"x" * 17_000, b"/" * 9_000),
]
STARTS = [b"", b"GET ", b"GET /comments", b"POST /comments HTTP/1.1\r\nHost: x\r\n"]


def mangled(chance: Random) -> bytes:
    """Requests that were cut, spliced, repeated, and have pieces of others in them."""
    raw = b"".join(chance.choices(SEEDS, k=chance.choice([1, 1, 1, 2, 3, 12])))
    if chance.random() < 0.2:
        raw = chance.choice(STARTS) + b"".join(chance.choices(PIECES, k=chance.randrange(12)))
    for _ in range(chance.choice([0, 1, 1, 2, 3, 8])):
        at, end = sorted(chance.choices(range(len(raw) + 1), k=2))
        if chance.random() < 0.5:  # where something begins
            at = chance.choice([0, *(found.end() for found in re.finditer(rb"[ \r\n:/]", raw))])
        end = at + min(abs(end - at), chance.choice([0, 1, 4, 40]))
        piece = chance.choice([*PIECES, chance.randbytes(3), raw[at:end] * 2, b"", b""])
        raw = raw[:at] + piece + raw[end:]
    return raw[: chance.randrange(len(raw) + 1)] if chance.random() < 0.3 else raw


def answers_in(received: bytes, sent: bytes) -> list[int]:
    """The statuses of whole answers, one behind the other: each is strict, and there is no more."""
    statuses = []
    while received:
        head, ended, received = received.partition(b"\r\n\r\n")
        found = re.match(rb"HTTP/1\.[01] (\d{3}) [A-Za-z -]+\r\n", head + b"\r\n")
        assert ended
        assert found, head
        if head == b"HTTP/1.1 100 Continue":
            continue
        headers = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        bare = b"HEAD" in sent and received[:5] in (b"", b"HTTP/")  # or there is no body to take
        size = 0 if bare else int(headers.get(b"content-length", b"0"))
        assert len(received) >= size, "a part of an answer"
        body, received = received[:size], received[size:]
        statuses.append(int(found[1]))
        if body and headers[b"content-type"].startswith(b"application/json"):
            said = json.loads(body)
            assert statuses[-1] < 400 or said.keys() == {"error", "code"}
        assert b"Traceback" not in body
    return statuses


@pytest.mark.parametrize(("loop", "listens"), [("fast", True), ("fast", False), ("stock", True)])
def test_no_bytes_make_it_fail(start: Start, campaign: Campaign, loop: str, listens: bool) -> None:
    """Each stream gets whole answers and a close, whether its peer listens on or is gone; nothing
    is left behind."""
    service = start(server={"trusted_proxy": "127.0.0.1", **LOOPS[loop]})
    before, said, used = held_at_rest(service), service.said, 0
    for chance in campaign.rounds(8):
        streams = [mangled(chance) for _ in range(40)]
        peers = [service.connect() for _ in streams]
        for peer, raw in zip(peers, streams, strict=True):
            with contextlib.suppress(OSError):  # it may be refused before it was all sent
                peer.sendall(raw)
                peer.shutdown(socket.SHUT_WR if listens else socket.SHUT_RDWR)
        for peer, raw in zip(peers, streams, strict=True):
            received = b""
            with peer, contextlib.suppress(ConnectionError):
                while data := peer.recv(1 << 16):
                    received += data
                statuses = answers_in(received, raw) if listens else []
                assert max(statuses, default=0) < 500, raw
                campaign.figures["answers"] += len(statuses)
        service.opened.clear()
        assert service.ask("GET", "/health").json == {"ok": True}
        until(lambda: held(service) == before)
        used = used or memory(service)
        campaign.figures["streams"] += len(streams)
        campaign.figures["MiB more"] = memory(service) - used
        assert service.said == said, "a stranger writes the log"
    assert campaign.figures["MiB more"] <= 20


# Who may read and write, from where, and what may be kept


def replies(visitor: Visitor, monkeypatch: pytest.MonkeyPatch, origin: str) -> list[Any]:
    """A reply of each kind to a page of this origin."""
    headers = {"Origin": origin} if origin else {}

    def ask(status: int, method: str, target: str, body: bytes = b"", **more: str) -> Any:
        return visitor.request(
            target, method=method, body=body, headers={**headers, **more}, status=status
        )

    found = [
        ask(200, "GET", f"/comments?url={PAGE}"),
        ask(400, "GET", f"/comments?url={PAGE}&limit=0"),
        ask(401, "GET", f"/comments?url={PAGE}", Authorization="Bearer x"),
        ask(404, "GET", "/nothing/here"),
        ask(405, "PUT", "/comments"),
        ask(414, "GET", "/comments?url=/" + "a" * LINE_LIMIT),
    ]
    if visitor.served.house.config.site_origins in ((), (origin,)):
        large = padded(BODY_LIMIT + 1)
        found.append(ask(413, "POST", "/comments", large, **{"Content-Type": "application/json"}))
    visitor.faults_allowed = True
    with monkeypatch.context() as broken:
        broken.setattr(visitor.served.house.views, "waiting", None)
        found.append(ask(500, "GET", "/pages?url=/"))
    assert found[-1].json == {"error": "服务出错了，请稍后再试", "code": "internal"}
    return found


TWO_BLOGS = {"site_origins": (BLOG, "http://localhost:4000")}


@pytest.mark.parametrize(
    ("settings", "origin", "allowed"),
    [
        ({}, "", "*"),
        ({}, FOREIGN, "*"),
        ({}, "null", "*"),
        ({"site_origins": (BLOG,)}, BLOG, BLOG),
        (TWO_BLOGS, "http://localhost:4000", "http://localhost:4000"),
        (TWO_BLOGS, "", None),
        (TWO_BLOGS, FOREIGN, None),
        (TWO_BLOGS, "null", None),
        (TWO_BLOGS, BLOG + ".evil.example", None),
        (TWO_BLOGS, "http://blog.example", None),
    ],
)
def test_every_reply_says_which_pages_may_read_it(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, origin: str, allowed: str | None
) -> None:
    for reply in replies(visitor, monkeypatch, origin):
        assert reply.headers.get("Access-Control-Allow-Origin") == allowed, reply
        exposed = "Retry-After" if allowed else None
        assert reply.headers.get("Access-Control-Expose-Headers") == exposed
        assert reply.headers["Content-Type"] == JSON
        assert_safe(reply)


@pytest.mark.parametrize("origin", [FOREIGN, "null", "http://blog.example", BLOG + ":444"])
@pytest.mark.parametrize("settings", [TWO_BLOGS])
def test_a_page_of_another_site_may_not_write(visitor: Visitor, origin: str) -> None:
    for route in ROUTES:
        if route.method != "GET" and not route.by_link:  # whose right is in the address
            path = re.sub("<.*?>", "1", route.path)
            write = getattr(visitor, f"{route.method.lower()}_json")
            reply = write(path, {}, headers={"Origin": origin}, expect_errors=True)
            assert reply.status_int == (400 if route.refusal else 403)
            if not route.refusal:
                assert reply.json["code"] == "origin_refused"


@pytest.mark.parametrize(
    ("settings", "headers"),
    [
        ({}, {"Origin": FOREIGN}),
        ({}, {"Origin": "null"}),
        (TWO_BLOGS, {}),
        (TWO_BLOGS, {"Origin": BLOG}),
        (TWO_BLOGS, {"Origin": "http://127.0.0.1:8080", "Host": "127.0.0.1:8080"}),
        (
            {**TWO_BLOGS, "server_public_url": "https://comments.example"},
            {"Origin": "https://comments.example", "Host": "comments.example"},
        ),
        (
            {**TWO_BLOGS, "server_public_url": "https://other.example/comments"},
            {"Origin": "https://other.example", "Host": "127.0.0.1:8080"},
        ),
    ],
)
def test_the_blog_the_service_itself_and_scripts_may_write(
    visitor: Visitor, headers: dict[str, str]
) -> None:
    assert visitor.say(headers=headers)["success"]


@pytest.mark.parametrize(
    ("settings", "origin", "allowed"),
    [({}, FOREIGN, "*"), (TWO_BLOGS, BLOG, BLOG), (TWO_BLOGS, FOREIGN, None)],
)
@pytest.mark.parametrize("path", ["/comments", "/comments/1", "/auth/login", "/comment/like", "/"])
def test_a_preflight_names_what_the_routes_take(
    visitor: Visitor, origin: str, allowed: str | None, path: str
) -> None:
    asks = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    reply = visitor.options(path, headers=asks, status=204)
    assert reply.body == b""
    assert reply.headers.get("Access-Control-Allow-Origin") == allowed
    methods = reply.headers["Access-Control-Allow-Methods"].split(", ")
    assert sorted(methods) == sorted({route.method for route in ROUTES})
    assert reply.headers["Access-Control-Allow-Headers"] == "Authorization, Content-Type"
    assert 0 < int(reply.headers["Access-Control-Max-Age"]) <= 7200
    assert_safe(reply)


def test_what_concerns_a_person_is_not_kept(ann: Visitor) -> None:
    token = {"Authorization": f"Bearer {ann.authorization[1]}"}
    ann.authorization = None
    wrong = {**LOGIN, "password": "x"}
    private = [
        ann.post_json("/auth/login", wrong, status=401),
        ann.post_json("/auth/register", {}, status=400),
        ann.post_json("/auth/verify", {}, status=400),
        ann.get("/auth/login", status=405),
        ann.get("/auth/nothing", status=404),
        ann.get(f"/comments?url={PAGE}", headers=token),
        ann.get(f"/pages?url={PAGE}", headers={"Authorization": "Bearer x"}, status=401),
        ann.get("/nothing/here", headers=token, status=404),
    ]
    public = [ann.get(f"/comments?url={PAGE}"), ann.get("/health"), ann.get("/captcha")]
    assert [r.headers["Cache-Control"] for r in private] == ["no-store"] * len(private)
    assert [r.headers["Cache-Control"] for r in public] == ["no-cache"] * len(public)


@pytest.mark.parametrize(
    ("settings", "year"),
    [
        ({}, None),
        ({"server_public_url": "http://comments.example"}, None),
        ({"server_public_url": "https://comments.example"}, "max-age=31536000"),
    ],
)
def test_whoever_came_by_https_comes_by_https_again(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch, year: str | None
) -> None:
    for reply in replies(visitor, monkeypatch, ""):
        assert reply.headers.get("Strict-Transport-Security") == year


@pytest.mark.parametrize(("origin", "allowed"), [(BLOG, BLOG), (FOREIGN, None), ("null", None)])
def test_what_waitress_refuses_follows_the_settings_too(
    start: Start, origin: str, allowed: str | None
) -> None:
    service = start(site={"origins": BLOG}, server={"public_url": "https://comments.example"})
    answers = [
        service.ask("GET", "/", f"Origin: {origin}", "Content-Length: x"),
        service.raw(post(AS_JSON, ENDLESS, f"Origin: {origin}", body=b"")),
    ]
    assert [answer.status for answer in answers] == [400, 413]
    for answer in answers:
        assert answer.headers["Access-Control-Allow-Origin"] == allowed
        assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
        assert_safe(answer)


# How it starts and stops


def left_behind(service: Service) -> int:
    """The size of the -wal."""
    wal = service.path.with_name(service.path.name + "-wal")
    return wal.stat().st_size if wal.exists() else 0


def rows(service: Service, sql: str) -> list[Any]:
    with closing(sqlite3.connect(service.path)) as db:
        return db.execute(sql).fetchall()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_answers_what_is_in_flight_and_writes_the_last_views(
    service: Service, number: int
) -> None:
    # Eight logins: two hash at a time, six wait. Connections are taken and read in their order,
    # so that whoever is answered after them came after them.
    flights = [service.sent(request("POST", "/auth/login", body=LOGIN)) for _ in range(8)]
    for _ in range(3):
        assert service.ask("GET", f"/comments?url={PAGE}").status == 200
    code = service.stop(number)
    answers = [answer_on(flight) for flight in flights]
    assert [answer.json["code"] for answer in answers] == ["wrong_credentials"] * 8
    assert code == 0
    assert left_behind(service) == 0
    assert_whole(str(service.path))
    assert rows(service, "SELECT page_url, views FROM page") == [(PAGE, 3)]


@pytest.mark.parametrize("new", [0, 5])
def test_a_stop_answers_what_was_sent_before_it(service: Service, new: int) -> None:
    like = request("POST", "/page/like", body={"page_url": PAGE})
    kept = service.sent(like)
    assert answer_on(kept).status == 200
    # The system goes on to take connections and bytes for a process that stands still.
    service.process.send_signal(signal.SIGSTOP)
    flights = [service.sent(like) for _ in range(new)]
    if not new:
        kept.sendall(like)
        flights = [kept]
    service.process.send_signal(signal.SIGTERM)
    service.process.send_signal(signal.SIGCONT)
    assert [answer_on(flight).status for flight in flights] == [200] * (new or 1)
    assert service.process.wait(20) == 0


# Programs that get the signal at the worst moment.
AMID_A_REQUEST = """
import os, signal, sys, commentd
from waitress.server import BaseWSGIServer
add_task = BaseWSGIServer.add_task
def interrupted(self, channel):
    os.kill(os.getpid(), signal.SIGTERM)
    add_task(self, channel)
BaseWSGIServer.add_task = interrupted
sys.exit(commentd.main())
"""
COUNTED = """
import sys, commentd
listed, mounted = [], commentd.mounted
def counted(route, house):
    answer = mounted(route, house)
    if (route.method, route.path) != ("GET", "/comments"):
        return answer
    return lambda **words: listed.append(route) or answer(**words)
commentd.mounted = counted
code = commentd.main()
print("listed", len(listed), "times")
sys.exit(code)
"""
AFTER_THE_GREETING = """
import os, signal, sys, commentd
greet = commentd.greet
def interrupted(*words):
    greet(*words)
    os.kill(os.getpid(), signal.SIGTERM)
commentd.greet = interrupted
sys.exit(commentd.main())
"""


def test_a_stop_between_a_request_and_its_worker_loses_nothing(start: Start) -> None:
    service = start(program=AMID_A_REQUEST)
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    assert service.process.wait(20) == 0


def test_a_stop_right_after_the_greeting_is_clean(start: Start) -> None:
    service = start(program=AFTER_THE_GREETING)
    assert service.process.wait(20) == 0
    assert left_behind(service) == 0


def refused(service: Service) -> str:
    """What a service says that does not start."""
    assert service.process.wait(20) == 1, service.said
    assert service.said.startswith("commentd: ")
    assert service.said.count("\n") == 1, service.said
    return service.said


def test_a_second_service_is_kept_from_the_same_file(start: Start, tmp_path: Path) -> None:
    service = start()
    second = start(tmp_path / "second", waits=False, database={"path": str(service.path)})
    assert f"another commentd is running on {service.path}" in refused(second)
    assert service.ask("POST", "/comments", body=COMMENT).status == 200


@pytest.mark.parametrize("there", [False, True])
def test_of_two_that_start_at_once_one_serves(start: Start, tmp_path: Path, there: bool) -> None:
    path = str(tmp_path / "commentd.db")
    if there:
        assert start().stop() == 0
    both = [start(tmp_path / name, waits=False, database={"path": path}) for name in "abcd"]
    until(lambda: sum(each.process.poll() is not None for each in both) == 3)
    served = [each for each in both if each.process.poll() is None]
    for each in both:
        if each not in served:
            refused(each)
    assert served[0].greeted().ask("POST", "/comments", body=COMMENT).status == 200
    assert served[0].stop() == 0
    assert_whole(path)


def test_a_port_that_is_taken_is_named(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        said = refused(start(waits=False, server={"listen": listen}))
    assert f"can't listen on {listen}" in said
    assert "Address already in use" in said


def test_a_socket_file_that_another_service_listens_on_stays_its_own(
    start: Start, tmp_path: Path
) -> None:
    listen = f"unix:{tmp_path}/s"
    first = start(server={"listen": listen})
    said = refused(start(tmp_path / "second", waits=False, server={"listen": listen}))
    assert f"can't listen on {listen} (Address already in use)" in said
    assert first.ask("GET", "/health").status == 200
    first.process.kill()
    first.process.wait()
    assert start(server={"listen": listen}).ask("GET", "/health").status == 200


def test_a_socket_file_that_can_not_be_made_is_named(start: Start, tmp_path: Path) -> None:
    listen = f"unix:{tmp_path}/no/folder"
    said = refused(start(waits=False, server={"listen": listen}))
    assert f"can't listen on {listen}" in said
    assert "No such file or directory" in said


# What is borrowed from waitress


def test_the_inside_of_waitress_is_what_serving_was_written_for() -> None:
    # Else read again what changed, and what Serving takes from it; then write the digests there.
    assert commentd.strange_files() == set()


# A waitress whose inside is another: what is replaced in all its files, and where that is seen.
OTHERS = {
    "a comment": ("this is a little hacky", "this is hacky", {"channel"}),
    "a private name": ("total_outbufs_len", "total_outbufs_size", {"channel"}),
    "a name of the parser": ("body_rcv", "body_receiver", {"parser"}),
    "a class that moved": ("ReadOnlyFileBasedBuffer", "FileBuffer", {"buffers", "task"}),
    "a function that moved": ("build_http_date", "http_date", {"task", "utilities"}),
}


def other_waitress(folder: Path, old: str, new: str) -> str:
    """A program that serves with a waitress in which a name is another."""
    shutil.copytree(Path(waitress.__file__).parent, folder / "waitress")
    for file in (folder / "waitress").glob("*.py"):
        file.write_text(file.read_text().replace(old, new))
    return f"""import sys
sys.path.insert(0, {str(folder)!r})
import commentd
sys.exit(commentd.main())"""


@pytest.mark.parametrize("case", OTHERS)
def test_a_waitress_that_is_another_inside_serves_as_it_is(
    start: Start, tmp_path: Path, case: str
) -> None:
    old, new, files = OTHERS[case]
    service = start(program=other_waitress(tmp_path / "other", old, new))
    warnings = re.findall(r"WARNING waitress is another inside \((.*)\)", service.said)
    assert len(warnings) == 1
    assert files <= set(warnings[0].split(", "))
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    with service.connect() as connection:
        for _ in range(3):
            connection.sendall(request("GET", f"/comments?url={PAGE}"))
            assert answer_on(connection).json["total"] == 1
    assert service.ask("GET", "/embed.js").status == 200
    assert service.ask("GET", "/comments", "Content-Length: x").status == 400
    assert service.raw(post(AS_JSON, CHUNKED, body=chunked(padded(4000)))).status == 200
    flights = [service.sent(request("POST", "/auth/login", body=LOGIN)) for _ in range(4)]
    assert service.ask("GET", "/health").status == 200
    assert service.stop() == 0
    assert [answer_on(flight).status for flight in flights] == [401] * 4
    assert left_behind(service) == 0
    assert "Traceback" not in service.said


def test_commands_need_nothing_of_the_inside_of_waitress(start: Start, tmp_path: Path) -> None:
    service = start()
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    program = other_waitress(tmp_path / "other", "HTTPChannel", "Channel")
    config = str(tmp_path / "commentd.ini")
    for command in (["export"], ["check"], ["admin", "ann@example.com"], ["backup"]):
        how = [sys.executable, "-c", program, "--config", config, *command]
        home = Path(commentd.__file__).parent
        ended = subprocess.run(how, cwd=home, capture_output=True, text=True)
        assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr


@pytest.mark.parametrize("loop", LOOPS)
def test_only_the_fast_server_keeps_answers(start: Start, loop: str) -> None:
    service = start(server=LOOPS[loop], program=COUNTED)
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    for _ in range(5):
        assert service.ask("GET", f"/comments?url={PAGE}").status == 200
    assert service.stop() == 0
    assert ("listed 5 times" in service.said) == (loop == "stock")
    assert "WARNING waitress" not in service.said


@pytest.fixture
def server(config: Config, outside: Outside) -> Iterator[Any]:
    """The server in this process, which nobody runs."""
    app = make_app(replace(config, server_listen="127.0.0.1:0"), outside.world, rounds=1)
    server = make_server(app)
    yield server
    drain(server)
    server.trigger.close()
    app.close()


def test_an_answer_leaves_in_one_send_while_the_loop_is_calm(server: Any) -> None:
    sends, calm = [], []

    class Watched(CalmChannel):
        def send(self, data: bytes, do_close: bool = True) -> Any:
            sends.append(data)
            return super().send(data, do_close)

        def write_soon(self, data: bytes) -> Any:
            written = super().write_soon(data)
            calm.append(self.writable())
            return written

    server.channel_class = Watched
    with socket.create_connection(("127.0.0.1", int(server.effective_port))) as client:
        client.sendall(request("GET", f"/comments?url={PAGE}"))
        client.setblocking(False)
        received = b""
        while not (calm and received.endswith(b"}")):
            server.asyncore.loop(timeout=0.1, count=1, map=server._map, use_poll=True)
            with contextlib.suppress(BlockingIOError):
                received += client.recv(65536)
    assert sends == [received]
    assert calm == [False]


def test_only_the_loop_closes(server: Any) -> None:
    """A worker that closes what is gone, in the middle of the loop's turn, could end the loop."""
    app, gate = server.application, threading.Event()
    server.application = lambda *given: gate.wait() and app(*given)

    def turn() -> None:
        server.asyncore.loop(timeout=0.1, count=1, map=server._map, use_poll=True)

    with socket.create_connection(("127.0.0.1", int(server.effective_port))) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        expects = b"POST /comments HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
        client.sendall(request("GET", "/embed.js") + expects + b"Content-Length: 9\r\n\r\n")
        while not any(channel.requests for channel in server.active_channels.values()):
            turn()
        (channel,) = server.active_channels.values()
    gate.set()
    until(lambda: not channel.requests)
    assert channel.connected
    until(lambda: turn() or not server.active_channels)


def test_a_channel_whose_peer_reads_slowly_is_flushed_by_the_loop(server: Any) -> None:
    with socket.create_connection(("127.0.0.1", int(server.effective_port))):
        while not server.active_channels:
            server.asyncore.loop(timeout=0.1, count=1, map=server._map, use_poll=True)
        (channel,) = server.active_channels.values()
        assert type(channel) is CalmChannel
        much = channel.adj.outbuf_high_watermark
        seen = []
        for requests, length, closing in [
            ([], 0, False), ([], 1, False), ([1], 0, False), ([1], much, False),
            ([1], much + 1, False), ([1], 0, True),
        ]:  # fmt: skip
            channel.requests, channel.total_outbufs_len, channel.will_close = (
                requests, length, closing,
            )  # fmt: skip
            seen.append(bool(channel.writable()))
        channel.requests, channel.total_outbufs_len = [], 0
    assert seen == [False, True, False, False, True, True]


def test_a_pipeline_is_cut_and_holds_no_thread(quiet: Service) -> None:
    ask = request("GET", f"/comments?url={PAGE}&limit=100")
    # One too many, and no more: what the server has not read when it closes would reset the line.
    with quiet.sent(ask * (commentd.PIPELINE + 1)) as connection:
        answered = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answered.count(b"HTTP/1.1 200 OK") == commentd.PIPELINE
    assert answered.count(b"Connection: close") == 1


# Who is served when


@dataclass
class Queue:
    """A server with one thread that reads and one that writes. It notes what it begins to work
    for, and goes on when `gate` is open."""

    server: Any
    turn: Callable[[float], None]
    gate: threading.Event
    served: list[str]
    lines: list[socket.socket]

    def wait(self, ready: Callable[[], T]) -> T:
        return until(lambda: self.turn(0.01) or ready())

    def ask(self, raw: bytes, peer: str = "127.0.0.1") -> socket.socket:
        """Sends a request, and waits until the server has read it."""
        line = socket.create_connection(self.server.socket.getsockname(), source_address=(peer, 0))
        self.lines.append(line)
        line.sendall(raw)
        name = line.getsockname()
        channels = self.server.active_channels
        self.wait(lambda: [c for c in [*channels.values()] if c.addr == name and c.requests])
        self.wait(lambda: self.served)  # its thread works for the first one
        return line

    def answers(self) -> list[int]:
        """The statuses on all lines, in the order in which they were opened."""
        self.gate.set()
        threads = [(line, []) for line in self.lines]
        for line, received in threads:
            line.setblocking(False)

            def whole(line: socket.socket = line, received: list[bytes] = received) -> bool:
                with contextlib.suppress(BlockingIOError):
                    received.append(line.recv(65536))
                return b"\r\n\r\n" in b"".join(received)

            self.wait(whole)
        return [int(b"".join(received)[9:12]) for _, received in threads]


@pytest.fixture(params=[True, False], ids=["fast", "stock"])
def queue(
    config: Config, outside: Outside, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Queue]]:
    with contextlib.ExitStack() as stack:

        def make(**settings: Any) -> Queue:
            settings |= {"server_listen": "127.0.0.1:0", "server_fast": request.param}
            app = make_app(replace(config, **settings), outside.world, rounds=1)
            stack.callback(app.close)
            server = make_server(app)
            stack.callback(server.trigger.close)
            for pool in (server.task_dispatcher, server.task_dispatcher.readers):
                pool.set_thread_count(1)
                until(lambda pool=pool: len(pool.threads) == 1)
            made = Queue(server, commentd.turns_of(server, app.house), threading.Event(), [], [])

            def application(environ: Any, start: Any) -> Any:
                made.served.append(environ["HTTP_USER_AGENT"])
                made.gate.wait()
                return app(environ, start)

            application.house = app.house  # type: ignore[attr-defined]
            server.application = application
            stack.callback(drain, server)
            stack.callback(made.gate.set)
            stack.callback(lambda: [line.close() for line in made.lines])
            return made

        yield make


def named(name: str, method: str = "GET", *headers: str) -> bytes:
    """A request that no cache answers, of one who says so who they are."""
    target = f"/comments?url=/{name}" if method == "GET" else "/comment/like"
    return request(method, target, f"User-Agent: {name}", *headers)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_clients_are_served_in_turn(
    queue: Callable[..., Queue], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(commentd, "MOST_WAITING", 1)  # which counts where connections run short
    made = queue()
    for name in ("a1", "a2", "a3", "a4"):
        made.ask(named(name, method), "127.0.0.2")
    for name in ("b1", "b2"):
        made.ask(named(name, method), "127.0.0.3")
    made.ask(named("c1", method), "127.0.0.4")
    made.answers()
    assert made.served == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


def test_clients_of_a_named_proxy_are_served_in_turn(queue: Callable[..., Queue]) -> None:
    made = queue(server_trusted_proxy=("127.0.0.1",))
    asked = {
        "a1": "192.0.2.1",
        "a2": "192.0.2.1",
        "a3": "192.0.2.3, 192.0.2.1",
        "b1": "192.0.2.2",
        "c1": "2001:db8:0:1::1",
        "c2": "2001:db8:0:1::2",  # in the same /64
        "d1": "2001:db8:0:2::1",
    }
    for name, client in asked.items():
        made.ask(named(name, "GET", f"X-Forwarded-For: {client}"))
    assert set(made.answers()) == {200}
    assert made.served == ["a1", "a2", "b1", "c1", "d1", "a3", "c2"]


def test_visitors_who_cannot_be_told_apart_are_served_as_they_come(
    queue: Callable[..., Queue], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commentd, "MOST_WAITING", 1)
    monkeypatch.setattr(commentd, "CROWD", 0)
    made = queue()
    for name, client in [("a1", "192.0.2.1"), ("a2", "192.0.2.1"), ("b1", "192.0.2.2")]:
        made.ask(named(name, "GET", f"X-Forwarded-For: {client}"))
    assert made.answers() == [200, 200, 200]
    assert made.served == ["a1", "a2", "b1"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_where_connections_run_short_one_client_may_have_so_many_requests_waiting(
    queue: Callable[..., Queue], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(commentd, "MOST_WAITING", 2)
    monkeypatch.setattr(commentd, "CROWD", 3)
    made = queue()
    for name in ("a1", "a2", "a3"):  # of which one is worked for
        made.ask(named(name, method), "127.0.0.2")
    refused = socket.create_connection(
        made.server.socket.getsockname(), source_address=("127.0.0.2", 0)
    )
    refused.sendall(named("a4", method))
    refused.setblocking(False)
    received = bytearray()

    def closed() -> bool:
        with contextlib.suppress(BlockingIOError):
            data = refused.recv(65536)
            received.extend(data)
            return not data
        return False

    with refused:
        made.wait(closed)
    assert received.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"\r\nRetry-After: 5\r\n" in received
    assert json.loads(received.partition(b"\r\n\r\n")[2])["code"] == "too_many"
    made.ask(named("b1", method), "127.0.0.3")
    made.answers()
    assert made.served == ["a1", "a2", "b1", "a3"]


def test_the_loop_sends_nothing_that_a_worker_may_be_sending(server: Any) -> None:
    """Else what both send goes out twice."""
    with socket.create_connection(("127.0.0.1", int(server.effective_port))):
        while not server.active_channels:
            server.asyncore.loop(timeout=0.1, count=1, map=server._map, use_poll=True)
        (channel,) = server.active_channels.values()
        channel.outbufs[-1].append(b"100 Continue")
        channel.total_outbufs_len, locked = 12, []

        def send(data: bytes, do_close: bool = True) -> int:
            locked.append(channel.outbuf_lock._is_owned())
            return len(data)

        channel.send = send
        channel.handle_write()
    assert locked == [True]
