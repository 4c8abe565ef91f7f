"""What readers share behind a proxy: its connections to the service, and its cache. Whatever others
send, readers get only their own responses, and the service only requests that the proxy sent."""

import contextlib
import gzip
import http.client
import re
import select
import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import inside
import pytest
import test_proxies
from conftest import CANARY, PAGE, Campaign
from test_proxies import AMBIGUOUS, HIDDEN, HOST, SEEN, Front, free_port, site
from test_server import (
    AS_JSON,
    BLOG,
    COMMENT,
    FOREIGN,
    LOOPS,
    PIECES,
    Answer,
    chunked,
    request,
    rows,
    services,
)

from commentd import Config, make_app

pytestmark = [pytest.mark.slow, pytest.mark.every_case]

# Connections that a proxy keeps for many readers

FORGED = "6.6.6.6"
SMUGGLED = request(
    "POST", "/comments", f"X-Forwarded-For: {FORGED}", body={**COMMENT, "content": "smuggled"}
)
# The service logs each request that did not come from the proxy.
WATCHFUL = """
import sys, commentd
call = commentd.App.__call__
def watched(app, environ, start_response):
    hops = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
    if not hops[-1].strip().startswith("127.0.4."):
        print("NOT FROM THE PROXY", environ, flush=True)
    return call(app, environ, start_response)
commentd.App.__call__ = watched
sys.exit(commentd.main())
"""


def kept_open(printed: str, kind: str, port: int) -> str:
    """The settings, with HTTP/2 and with one connection to the service for many readers."""
    if kind == "caddy":
        return printed
    found = re.search(r"proxy_pass http://([^/]+)/;", printed)
    assert found
    printed = printed.replace(found[0], "proxy_pass http://kept/;")
    listen = rf"\g<0>\n    listen 127.0.0.1:{port} http2;"
    printed = re.sub(r"(?m)^    listen \d+;$", listen, printed)
    return f"upstream kept {{ server {found[1]}; keepalive 1; }}\n{printed}"


@pytest.fixture(
    scope="module", params=[("nginx", "fast"), ("caddy", "fast"), ("nginx", "stock")], ids="-".join
)
def gate(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[tuple[Front, int]]:
    """A proxy, and the port where it speaks HTTP/2 without TLS."""
    (kind, loop), folder = request.param, tmp_path_factory.mktemp("gate")
    with free_port() as port, site(folder, kind, "tcp") as here, services(folder) as start:
        settings = here.settings(f"http://{HOST}:{here.port}") | {"limits": {"enabled": "no"}}
        settings["server"] |= LOOPS[loop]
        service = start(program=WATCHFUL, **settings)
        with pytest.MonkeyPatch.context() as patch:
            main, command = test_proxies.PROXIES["caddy"]
            both = "admin off\n    servers {{\n        protocols h1 h2c\n    }}"
            main = main.replace("admin off", both)
            patch.setitem(test_proxies.PROXIES, "caddy", (main, command))
            with here.proxy(service, edit=lambda text: kept_open(text, kind, port)) as front:
                yield front, here.port if kind == "caddy" else port


HEADERS = [
    *(headers for _, headers, _ in AMBIGUOUS),
    *("Connection: close, X-Real-IP", "Connection: X-Forwarded-For", "Connection: Content-Length"),
    *("Connection: Transfer-Encoding", "Connection: Host", "Connection: keep-alive, close"),
    *("Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__"),
    *("TE: trailers", "Trailer: Content-Length", "Expect: 100-continue", "Max-Forwards: 0"),
    *("X-Forwarded-For: " + FORGED, "X-Forwarded-For:\r\n " + FORGED, "Forwarded: for=" + FORGED),
    *("Host: evil.example", "Host : " + HOST, "x: y\n\nGET /health HTTP/1.1", " x: y", "x"),
    *("Content-Length: 0", "Content-Length: {1}\r\nContent-Length: 0", "Content-Length:\t{2}"),
]  # fmt: skip
TARGETS = [
    *("/comments", "/health", f"/comments?url={PAGE}", "*", "//", "http://evil.example/health"),
    *("evil.example:80", "/comments HTTP/1.1\r\nX:", "/comments%20HTTP/1.1%0d%0a"),
]
BODIES = [
    *sorted({body for _, _, body in AMBIGUOUS}),
    *(b"", SEEN, chunked(SEEN), b"0\r\n\r\n" + HIDDEN, b"0\r\n" + HIDDEN, b"\r\n" + HIDDEN),
    *(b"0;x=y\r\nx: y\r\n\r\n" + HIDDEN, b"00000\n\r\n" + HIDDEN, HIDDEN[:40]),
    *(chunked(SEEN)[:-2] + b"x: y\r\n\r\n" + HIDDEN, chunked(SEEN)[:-2] + HIDDEN),
]


def ambiguous(chance: Random) -> bytes:
    """A request that can be read in two ways, with another hidden in it."""
    line, headers, body = chance.choice(AMBIGUOUS)
    if chance.random() < 0.4:
        method = chance.choice(["GET", "POST", "HEAD", "OPTIONS", "PUT", "CONNECT", "TRACE"])
        line = f"{method} {chance.choice(TARGETS)} HTTP/1.{chance.choice('11110')}"
    lines = [f"Host: {HOST}", AS_JSON, *([headers] if chance.random() < 0.8 else [])]
    lines += chance.choices(HEADERS, k=chance.choice([0, 0, 1, 1, 2, 3]))
    chance.shuffle(lines)
    body = body if chance.random() < 0.6 else chance.choice(BODIES)
    body = body.replace(HIDDEN, SMUGGLED)
    head = "\r\n".join((line, *lines, "", "")).replace("{0}", "")
    for name, size in {"{1}": len(body), "{2}": len(SEEN)}.items():
        head = head.replace(name, str(size))
    raw = head.encode("latin-1") + body
    if chance.random() < 0.2:
        at = chance.randrange(len(raw))
        raw = raw[:at] + chance.choice(PIECES) + raw[at + chance.choice([0, 0, 1, 2]) :]
    return raw


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2 (RFC 9113, section 4.1)."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def literal(text: bytes) -> bytes:
    """A string without Huffman code (RFC 7541, section 5.2)."""
    if len(text) < 127:
        return bytes([len(text)]) + text
    rest, size = b"\x7f", len(text) - 127
    while size >= 128:
        rest, size = rest + bytes([size % 128 + 128]), size // 128
    return rest + bytes([size]) + text


def block(fields: list[tuple[bytes, bytes]]) -> bytes:
    """Header fields without a table (RFC 7541, section 6.2.2)."""
    return b"".join(b"\0" + literal(name) + literal(value) for name, value in fields)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
ODD_FIELDS = [
    (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"x\r\ntransfer-encoding: chunked"),
    (b"content-length", b"0"), (b"content-length", b"+4"), (b"content-length", b"9999"),
    (b"connection", b"x-forwarded-for"), (b"host", b"evil.example"), (b":authority", b"x.example"),
    (b":path", b"/health"), (b":method", b"GET / HTTP/1.1\r\nHost: x"), (b":scheme", b"http://x/"),
    (b"x", b"x\r\n\r\n" + SMUGGLED), (b"x\r\ntransfer-encoding: chunked\r\ny", b"z"),
    (b"X-Forwarded-For", FORGED.encode()), (b"x-forwarded-for", FORGED.encode()),
    (b"x_forwarded_for", FORGED.encode()), (b"te", b"chunked"), (b"upgrade", b"h2c"),
    (b"", b"x"), (b"x", b"\0"), (b" x", b"y"), (b"expect", b"100-continue"),
]  # fmt: skip
ODD_PATHS = [
    *(b"/health", b"/health HTTP/1.1\r\nHost: x\r\n\r\nGET /me", b"/nothing", b"*", b"health"),
    *(b"http://evil.example/health", b"/comments\r\nX: y", b"", b"//evil.example/"),
]


def in_frames(chance: Random) -> bytes:
    """The same as streams of HTTP/2, which a proxy has to translate to HTTP/1."""
    raw = PREFACE
    for stream in range(1, chance.choice([3, 3, 5, 9]), 2):
        method = chance.choice([b"POST", b"POST", b"GET", b"HEAD", b"OPTIONS", b"POST / HTTP/1.1"])
        path = chance.choice([b"/comments", chance.choice(ODD_PATHS)])
        fields = [(b":method", method), (b":path", path), (b":scheme", b"http")]
        fields += [(b":authority", HOST.encode()), (b"content-type", b"application/json")]
        body = chance.choice(BODIES).replace(HIDDEN, SMUGGLED)
        if chance.random() < 0.5:
            fields.append((b"content-length", b"%d" % len(body)))
        for odd in chance.choices(ODD_FIELDS, k=chance.choice([0, 1, 1, 2])):
            fields.insert(chance.randrange(len(fields) + 1), odd)
        ends = chance.random() < 0.2
        raw += frame(1, 4 | ends, stream, block(fields))
        if not ends or chance.random() < 0.1:
            raw += frame(0, 1, stream, body)
            if chance.random() < 0.2:  # trailers
                raw += frame(1, 5, stream, block([chance.choice(ODD_FIELDS)]))
    return raw


def test_the_proxy_speaks_http_2(gate: tuple[Front, int]) -> None:
    """Otherwise the attacks in HTTP/2 would reach nothing."""
    fields = [(b":method", b"POST"), (b":path", b"/comments"), (b":scheme", b"http")]
    fields += [(b":authority", HOST.encode()), (b"content-type", b"application/json")]
    fields += [(b"content-length", b"%d" % len(SEEN))]  # else Caddy sends chunks: they get 411
    with socket.create_connection(("127.0.0.1", gate[1]), 20, ("127.0.4.1", 0)) as connection:
        connection.sendall(PREFACE + frame(1, 4, 1, block(fields)) + frame(0, 1, 1, SEEN))
        received = b""
        while b'"success":true' not in received:
            received += connection.recv(65536) or pytest.fail("closed")
    assert b'"ip":"127.0.4.1"' in received


def readers_get_their_own(front: Front, chance: Random) -> int | None:
    """Two readers read, and the second one writes. Returns the number that only the second sent.

    None if the proxy closed a connection before any response. It may do so when its own connection
    to the service fails, and a client may then repeat the request (RFC 9112, section 9.3.1).
    """
    number, reader = 0, ""
    try:
        for _ in range(2):
            number, reader = chance.getrandbits(40), f"127.0.4.{chance.randrange(100, 250)}"
            pages = front.ask("GET", f"/pages?url=/{number}/", client=reader).json["pages"]
            assert [page["page_url"] for page in pages] == [f"/{number}/"]
        created = front.say(f"{number}", "X-Forwarded-For: " + FORGED, client=reader)
    except http.client.RemoteDisconnected:
        return None
    comment = created.json["comment"]
    assert (created.status, comment["content"], comment["ip"]) == (200, f"{number}", reader)
    return number


def test_no_reader_gets_a_response_of_another(gate: tuple[Front, int], campaign: Campaign) -> None:
    front, port = gate
    for chance in campaign.rounds(50):
        old = chance.random() < 0.6
        attack = ambiguous(chance) if old else in_frames(chance)
        source = (f"127.0.4.{chance.randrange(2, 100)}", 0)
        where = ("127.0.0.1", front.port if old else port)
        with socket.create_connection(where, 20, source_address=source) as attacker:
            with contextlib.suppress(ConnectionError):
                attacker.sendall(attack)
                select.select([attacker], [], [], 0.03)
            number = readers_get_their_own(front, chance)
            if number is None:
                campaign.figures["closed without a response"] += 1
                number = readers_get_their_own(front, chance)
            assert number is not None, attack
            attacker.setblocking(False)
            with contextlib.suppress(OSError):
                received = attacker.recv(1 << 20)
                campaign.figures["answered"] += bool(received)
                assert b"/%d/" % number not in received
        campaign.figures["attacks in HTTP/1" if old else "attacks in HTTP/2"] += 1
    seen = rows(front.service, "SELECT DISTINCT ip FROM comment")
    assert all(ip.startswith("127.0.4.") for (ip,) in seen), seen
    assert "NOT FROM THE PROXY" not in front.service.said


# A cache for all readers

OTHER = "https://other.example"
CACHE = """
proxy_cache kept;
proxy_cache_revalidate on;
add_header X-Cache $upstream_cache_status always;
"""
CACHED = [
    *("/feed.atom", f"/feed.atom?url={PAGE}", f"/thread?url={PAGE}", f"/thread?url={PAGE}&lang=de"),
    *("/embed.js", "/words/de.json", "/openapi.json", "/admin.css"),
]
FRESH = [
    *(f"/comments?url={PAGE}", f"/comments?url={PAGE}&view=threads", f"/pages?url={PAGE}", "/me"),
    *("/comments/latest", "/admin/comments?status=visible", "/admin", "/mail", "/nothing/here"),
]


@contextlib.contextmanager
def shared_cache(folder: Path) -> Iterator[tuple[Front, list[str]]]:
    """A service behind nginx with a cache, and tokens."""

    def edit(printed: str) -> str:
        printed = printed.replace("        proxy_pass", CACHE + "        proxy_pass")
        return f"proxy_cache_path {folder}/cache keys_zone=kept:1m;\n{printed}"

    with site(folder, "nginx", "tcp") as here, services(folder) as start:
        path = folder / "commentd.db"
        with closing(make_app(Config(database_path=str(path)), rounds=1)) as app:
            inside.add_account(app, "owner@example.com", "Owner", CANARY, "admin")
            inside.add_account(app, "ann@example.com", "Ann", CANARY)
            whose = [("ann", "login"), ("owner", "login"), ("owner", "admin")]
            tokens = [inside.token_of(app, f"{who}@example.com", use) for who, use in whose]
        settings = here.settings(f"http://{HOST}:{here.port}") | {"limits": {"enabled": "no"}}
        settings |= {"privacy": {"show_ip": "masked"}, "site": {"origins": f"{BLOG} {OTHER}"}}
        with here.proxy(start(**settings), edit=edit) as front:
            yield front, ["", "", "", "x", *tokens]


def comparable(response: Answer) -> tuple[int, dict[str, str], bytes]:
    """A response without what a proxy may change: compression, and headers of the connection."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    zipped = headers.pop("content-encoding", "") == "gzip"
    for name in ("server", "date", "x-cache", "connection", "content-length", "transfer-encoding"):
        headers.pop(name, "")
    headers["etag"] = bare(headers.get("etag", ""))
    if headers.get("vary", "").endswith("Accept-Encoding"):  # nginx adds it when it compresses
        headers["vary"] = headers["vary"].removesuffix(", Accept-Encoding")
    return response.status, headers, gzip.decompress(response.body) if zipped else response.body


def bare(etag: str) -> str:
    return re.sub('W/|-gzip"|"', "", etag)


def test_a_shared_cache_gives_each_reader_their_own(tmp_path: Path, campaign: Campaign) -> None:
    """The cache responds as the service does to the same reader and site, now or before. Responses
    to a token never come from it."""
    known: dict[Any, list[Any]] = defaultdict(list)
    etags: dict[Any, str] = {}
    with shared_cache(tmp_path) as (front, tokens):
        for chance in campaign.rounds(133):
            if chance.random() < 0.1:
                assert front.say(f"{campaign.last}").status == 200
            target = chance.choice(CACHED if chance.random() < 0.5 else FRESH)
            token = chance.choice(tokens)
            sent = {"Origin": chance.choice(["", "", BLOG, OTHER, FOREIGN])}
            sent["Authorization"] = token and f"Bearer {token}"
            sent["Accept-Encoding"] = chance.choice(["", "gzip", "gzip, br"])
            sent["Accept-Language"] = chance.choice(["", "de", "zh-CN"])
            key = (target, sent["Origin"], sent["Authorization"])
            etag = etags.get((key, sent["Accept-Encoding"]), '"x"') if chance.random() < 0.3 else ""
            headers = ["User-Agent: a bot", *(f"{n}: {v}" for n, v in sent.items() if v)]
            direct = comparable(front.service.ask("GET", target, *headers))
            known[key].append(direct)
            headers += [f"If-None-Match: {etag}"] if etag else []
            response = front.ask("GET", target, *headers)
            found, state = comparable(response), response.headers["X-Cache"]
            assert "gzip" in sent["Accept-Encoding"] or not response.headers["Content-Encoding"]
            if target in FRESH:
                assert (found, state) == (direct, "MISS"), (target, sent)
            elif response.status == 304:
                assert (found[1]["etag"], response.body) == (bare(etag), b"")
                same = [each for _, each, _ in known[key] if each["etag"] == bare(etag)]
                assert any(found[1].items() <= each.items() for each in same)
            else:
                assert found in known[key], (target, sent, state)
            etags[key, sent["Accept-Encoding"]] = response.headers.get("ETag", "")
            campaign.figures["requests"] += 1
            campaign.figures["answered out of the cache"] += state == "HIT"
            campaign.figures["of them not modified"] += response.status == 304
