"""What readers share behind a proxy: its connections to the service, and its cache. Whatever others
send at the same time, readers get only their own responses, and the service only requests that the
proxy made."""

import contextlib
import gzip
import http.client
import re
import socket
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from commentd import Config, make_app
from support.campaign import Campaign
from support.client import CANARY, COMMENT, PAGE
from support.inside import add_account, token_of
from support.patience import PATIENCE
from support.proxies import AMBIGUOUS, HIDDEN, HOST, PROXIES, SEEN, Proxy, free_port, site
from support.service import (
    AS_JSON,
    BLOG,
    FOREIGN,
    LOOPS,
    PIECES,
    Answer,
    chunked,
    request,
    rows,
    services,
)

pytestmark = pytest.mark.slow

# Connections that a proxy keeps for many readers

FORGED = "6.6.6.6"
SMUGGLED = request(
    "POST", "/comments", f"X-Forwarded-For: {FORGED}", body={**COMMENT, "content": "smuggled"}
)
# All clients of these tests have such IP addresses. The service logs each request that names
# another one last, for it did not come from the proxy.
CLIENTS = "127.0.4."
PROGRAM_THAT_LOGS_FOREIGN_REQUESTS = """
import sys
import commentd

call = commentd.App.__call__


def watched(app, environ, start_response):
    hops = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
    if not hops[-1].strip().startswith("127.0.4."):
        print("NOT FROM THE PROXY", environ, flush=True)
    return call(app, environ, start_response)


commentd.App.__call__ = watched
sys.exit(commentd.main())
"""


@dataclass(frozen=True)
class Gate:
    """A proxy that keeps its connections to the service, and the port where it speaks HTTP/2
    without TLS."""

    proxy: Proxy
    http2_port: int


def with_kept_connections(printed: str, http2_port: int) -> str:
    """The settings of nginx, with HTTP/2 and one connection to the service for many readers."""
    found = re.search(r"proxy_pass http://([^/]+)/;", printed)
    assert found
    printed = printed.replace(found[0], "proxy_pass http://kept/;")
    listen = rf"\g<0>\n    listen 127.0.0.1:{http2_port} http2;"
    printed, changed = re.subn(r"(?m)^    listen \d+;$", listen, printed)
    assert changed == 1
    return f"upstream kept {{ server {found[1]}; keepalive 1; }}\n{printed}"


GATES = [
    ("nginx", "fast"),
    ("caddy", "fast"),
    pytest.param(("nginx", "stock"), marks=pytest.mark.long),
]


@pytest.fixture(scope="module", params=GATES, ids="-".join)
def gate(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gate]:
    kind, loop = request.param
    folder = tmp_path_factory.mktemp("gate")
    with contextlib.ExitStack() as stack:
        http2_port = stack.enter_context(free_port())
        proxied_site = stack.enter_context(site(folder, kind, "tcp"))
        start = stack.enter_context(services(folder))
        settings = proxied_site.settings(f"http://{HOST}:{proxied_site.port}")
        settings["limits"] = {"enabled": "no"}
        settings["server"] |= LOOPS[loop]
        service = start(program=PROGRAM_THAT_LOGS_FOREIGN_REQUESTS, **settings)
        if kind == "nginx":
            proxy = stack.enter_context(
                proxied_site.proxy(
                    service, edit=lambda text: with_kept_connections(text, http2_port)
                )
            )
            yield Gate(proxy, http2_port)
            return
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        main, command = PROXIES["caddy"]
        both_versions = "admin off\n    servers {{\n        protocols h1 h2c\n    }}"
        main = main.replace("admin off", both_versions)
        patch.setitem(PROXIES, "caddy", (main, command))
        proxy = stack.enter_context(proxied_site.proxy(service))
        yield Gate(proxy, proxied_site.port)


# In braces: {1} is the length of the body, {2} that of its first part, as in `AMBIGUOUS`.
HEADERS = [
    *(headers for _, headers, _ in AMBIGUOUS),
    "Connection: close, X-Real-IP",
    "Connection: X-Forwarded-For",
    "Connection: Content-Length",
    "Connection: Transfer-Encoding",
    "Connection: Host",
    "Connection: keep-alive, close",
    "Upgrade: h2c",
    "Connection: Upgrade, HTTP2-Settings",
    "HTTP2-Settings: AAMAAABkAAQAAP__",
    "TE: trailers",
    "Trailer: Content-Length",
    "Expect: 100-continue",
    "Max-Forwards: 0",
    f"X-Forwarded-For: {FORGED}",
    f"X-Forwarded-For:\r\n {FORGED}",
    f"Forwarded: for={FORGED}",
    "Host: evil.example",
    f"Host : {HOST}",
    "x: y\n\nGET /health HTTP/1.1",
    " x: y",
    "x",
    "Content-Length: 0",
    "Content-Length: {1}\r\nContent-Length: 0",
    "Content-Length:\t{2}",
]
METHODS = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "CONNECT", "TRACE"]
TARGETS = [
    "/comments",
    "/health",
    f"/comments?url={PAGE}",
    "*",
    "//",
    "http://evil.example/health",
    "evil.example:80",
    "/comments HTTP/1.1\r\nX:",
    "/comments%20HTTP/1.1%0d%0a",
]
BODIES = [
    *sorted({body for _, _, body in AMBIGUOUS}),
    b"",
    SEEN,
    chunked(SEEN),
    b"0\r\n\r\n" + HIDDEN,
    b"0\r\n" + HIDDEN,
    b"\r\n" + HIDDEN,
    b"0;x=y\r\nx: y\r\n\r\n" + HIDDEN,
    b"00000\n\r\n" + HIDDEN,
    HIDDEN[:40],
    chunked(SEEN)[:-2] + b"x: y\r\n\r\n" + HIDDEN,
    chunked(SEEN)[:-2] + HIDDEN,
]


def ambiguous_request(chance: Random) -> bytes:
    """A request that can be read in two ways, with another one hidden in it."""
    line, headers, body = chance.choice(AMBIGUOUS)
    if chance.random() < 0.4:
        version = chance.choice(["1.1", "1.1", "1.1", "1.1", "1.0"])
        line = f"{chance.choice(METHODS)} {chance.choice(TARGETS)} HTTP/{version}"
    lines = [f"Host: {HOST}", AS_JSON]
    if chance.random() < 0.8:
        lines.append(headers)
    lines += chance.choices(HEADERS, k=chance.choice([0, 0, 1, 1, 2, 3]))
    chance.shuffle(lines)
    if chance.random() < 0.4:
        body = chance.choice(BODIES)
    body = body.replace(HIDDEN, SMUGGLED)
    head = "\r\n".join((line, *lines, "", ""))
    for name, text in (("{0}", ""), ("{1}", str(len(body))), ("{2}", str(len(SEEN)))):
        head = head.replace(name, text)
    raw = head.encode("latin-1") + body
    if chance.random() < 0.2:  # damaged somewhere
        at = chance.randrange(len(raw))
        raw = raw[:at] + chance.choice(PIECES) + raw[at + chance.choice([0, 0, 1, 2]) :]
    return raw


# HTTP/2, which a proxy has to translate to HTTP/1. No client library sends what is malformed.

DATA, HEADERS_FRAME, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS = 1, 4


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """RFC 9113, section 4.1."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def literal(text: bytes) -> bytes:
    """A string without Huffman code (RFC 7541, section 5.2)."""
    if len(text) < 127:
        return bytes([len(text)]) + text
    size = len(text) - 127
    prefix = b"\x7f"
    while size >= 128:
        prefix += bytes([size % 128 + 128])
        size //= 128
    return prefix + bytes([size]) + text


def field_block(fields: list[tuple[bytes, bytes]]) -> bytes:
    """Header fields without a table (RFC 7541, section 6.2.2)."""
    return b"".join(b"\0" + literal(name) + literal(value) for name, value in fields)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0)
ODD_FIELDS = [
    (b"transfer-encoding", b"chunked"),
    (b"transfer-encoding", b"x\r\ntransfer-encoding: chunked"),
    (b"content-length", b"0"),
    (b"content-length", b"+4"),
    (b"content-length", b"9999"),
    (b"connection", b"x-forwarded-for"),
    (b"host", b"evil.example"),
    (b":authority", b"x.example"),
    (b":path", b"/health"),
    (b":method", b"GET / HTTP/1.1\r\nHost: x"),
    (b":scheme", b"http://x/"),
    (b"x", b"x\r\n\r\n" + SMUGGLED),
    (b"x\r\ntransfer-encoding: chunked\r\ny", b"z"),
    (b"X-Forwarded-For", FORGED.encode()),
    (b"x-forwarded-for", FORGED.encode()),
    (b"x_forwarded_for", FORGED.encode()),
    (b"te", b"chunked"),
    (b"upgrade", b"h2c"),
    (b"", b"x"),
    (b"x", b"\0"),
    (b" x", b"y"),
    (b"expect", b"100-continue"),
]
ODD_PATHS = [
    b"/health",
    b"/health HTTP/1.1\r\nHost: x\r\n\r\nGET /me",
    b"/nothing",
    b"*",
    b"health",
    b"http://evil.example/health",
    b"/comments\r\nX: y",
    b"",
    b"//evil.example/",
]
HTTP2_METHODS = [b"POST", b"POST", b"GET", b"HEAD", b"OPTIONS", b"POST / HTTP/1.1"]


def usual_fields(method: bytes, path: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b":method", method),
        (b":path", path),
        (b":scheme", b"http"),
        (b":authority", HOST.encode()),
        (b"content-type", b"application/json"),
    ]


def odd_streams(chance: Random) -> bytes:
    """One to four streams of HTTP/2, each a request that is odd in some way."""
    raw = PREFACE
    for stream in range(1, chance.choice([3, 3, 5, 9]), 2):
        path = chance.choice([b"/comments", chance.choice(ODD_PATHS)])
        fields = usual_fields(chance.choice(HTTP2_METHODS), path)
        body = chance.choice(BODIES).replace(HIDDEN, SMUGGLED)
        if chance.random() < 0.5:
            fields.append((b"content-length", b"%d" % len(body)))
        for odd in chance.choices(ODD_FIELDS, k=chance.choice([0, 1, 1, 2])):
            fields.insert(chance.randrange(len(fields) + 1), odd)
        ends = chance.random() < 0.2
        flags = END_HEADERS | (END_STREAM if ends else 0)
        raw += frame(HEADERS_FRAME, flags, stream, field_block(fields))
        if not ends or chance.random() < 0.1:
            raw += frame(DATA, END_STREAM, stream, body)
        if chance.random() < 0.2:
            trailers = field_block([chance.choice(ODD_FIELDS)])
            raw += frame(HEADERS_FRAME, END_HEADERS | END_STREAM, stream, trailers)
    return raw


def connected(port: int, client: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE, source_address=(client, 0))


def test_a_comment_in_http_2_reaches_the_service_through_a_proxy(gate: Gate) -> None:
    """Otherwise the attacks in HTTP/2 would reach nothing."""
    fields = usual_fields(b"POST", b"/comments")
    # Without it Caddy sends chunks, which the service refuses.
    fields.append((b"content-length", b"%d" % len(SEEN)))
    client = CLIENTS + "1"
    with connected(gate.http2_port, client) as connection:
        connection.sendall(
            PREFACE
            + frame(HEADERS_FRAME, END_HEADERS, 1, field_block(fields))
            + frame(DATA, END_STREAM, 1, SEEN)
        )
        received = b""
        while b'"success":true' not in received:
            received += connection.recv(65536) or pytest.fail("closed")
    assert f'"ip":"{client}"'.encode() in received


def readers_get_their_own(proxy: Proxy, chance: Random) -> int | None:
    """Two readers read, and the second one writes. Returns the number that only the second sent.

    None if the proxy closed a connection before any response. It may do so when its own connection
    to the service fails, and a client may then repeat the request (RFC 9112, section 9.3.1).
    """
    number = 0
    reader = ""
    try:
        for _ in range(2):
            number = chance.getrandbits(40)
            reader = f"{CLIENTS}{chance.randrange(100, 250)}"
            pages = proxy.ask("GET", f"/pages?url=/{number}/", client=reader).json["pages"]
            assert [page["page_url"] for page in pages] == [f"/{number}/"]
        posted = proxy.say(f"{number}", f"X-Forwarded-For: {FORGED}", client=reader)
    except http.client.RemoteDisconnected:
        return None
    comment = posted.json["comment"]
    assert (posted.status, comment["content"], comment["ip"]) == (200, f"{number}", reader)
    return number


def test_no_attack_through_a_proxy_gives_a_reader_the_response_of_another(
    gate: Gate, campaign: Campaign
) -> None:
    proxy = gate.proxy
    for chance in campaign.rounds(50):
        is_http1 = chance.random() < 0.6
        attack = ambiguous_request(chance) if is_http1 else odd_streams(chance)
        port = proxy.port if is_http1 else gate.http2_port
        with connected(port, f"{CLIENTS}{chance.randrange(2, 100)}") as attacker:
            with contextlib.suppress(ConnectionError):
                attacker.sendall(attack)
            number = readers_get_their_own(proxy, chance)
            if number is None:
                campaign.figures["closed without a response"] += 1
                number = readers_get_their_own(proxy, chance)
            assert number is not None, attack
            attacker.setblocking(False)
            with contextlib.suppress(OSError):
                received = attacker.recv(1 << 20)
                campaign.figures["attacks with a response"] += bool(received)
                assert b"/%d/" % number not in received
        campaign.figures["attacks in HTTP/1" if is_http1 else "attacks in HTTP/2"] += 1
    seen = rows(proxy.service, "SELECT DISTINCT ip FROM comment")
    assert all(ip.startswith(CLIENTS) for (ip,) in seen), seen
    assert "NOT FROM THE PROXY" not in proxy.service.output


# A cache for all readers

OTHER = "https://other.example"
CACHE_SETTINGS = """
proxy_cache kept;
proxy_cache_revalidate on;
add_header X-Cache-Status $upstream_cache_status always;
"""
CACHED = [
    "/feed.atom",
    f"/feed.atom?url={PAGE}",
    f"/thread?url={PAGE}",
    f"/thread?url={PAGE}&lang=de",
    "/embed.js",
    "/words/de.json",
    "/openapi.json",
    "/admin.css",
]
LISTS = [
    f"/comments?url={PAGE}",
    f"/comments?url={PAGE}&view=threads",
    f"/pages?url={PAGE}",
    "/comments/latest",
]
NEVER_CACHED = [
    "/me",
    "/admin/comments?status=visible",
    "/admin",
    "/mail",
    "/health",
    "/origin",
    "/nothing/here",
]
TOKENS = [
    ("ann@example.com", "login"),
    ("owner@example.com", "login"),
    ("owner@example.com", "admin"),
]


@contextlib.contextmanager
def nginx_with_a_cache(folder: Path, settings_of: str) -> Iterator[tuple[Proxy, list[str]]]:
    """A service behind nginx with a cache, and tokens: none, a wrong one, and right ones.
    `settings_of` the cache: "commentd", which prints them, or "an owner", who knows no more than
    what a first page about nginx says."""

    def with_cache(printed: str) -> str:
        if settings_of == "commentd":
            return printed
        own = "proxy_cache|proxy_no_cache|proxy_ignore_headers|add_header|map "
        printed = re.sub(rf"(?m)^ *({own}).*\n", "", printed)
        printed = printed.replace("        proxy_pass", CACHE_SETTINGS + "        proxy_pass")
        return f"proxy_cache_path {folder}/cache keys_zone=kept:1m;\n{printed}"

    with site(folder, "nginx", "tcp") as proxied_site, services(folder) as start:
        config = Config(database_path=str(folder / "commentd.db"))
        with closing(make_app(config, rounds=1)) as app:
            add_account(app, "owner@example.com", "Owner", CANARY, "admin")
            add_account(app, "ann@example.com", "Ann", CANARY)
            tokens = [token_of(app, email, use) for email, use in TOKENS]
        settings = proxied_site.settings(f"http://{HOST}:{proxied_site.port}")
        settings["limits"] = {"enabled": "no"}
        settings["privacy"] = {"show_ip": "masked"}
        settings["site"] = {"origins": f"{BLOG} {OTHER}"}
        with proxied_site.proxy(start(**settings), edit=with_cache) as proxy:
            yield proxy, ["", "", "", "wrong", *tokens]


CHANGED_BY_PROXIES = [
    "server",
    "date",
    "x-cache-status",
    "connection",
    "content-length",
    "transfer-encoding",
]


def comparable(response: Answer) -> tuple[int, dict[str, str], bytes]:
    """A response without what a proxy may change: compression, and headers of the connection."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    is_compressed = headers.pop("content-encoding", "") == "gzip"
    for name in CHANGED_BY_PROXIES:
        headers.pop(name, "")
    headers["etag"] = bare_etag(headers.get("etag", ""))
    # nginx adds it when it compresses.
    headers["vary"] = headers.get("vary", "").removesuffix(", Accept-Encoding")
    body = gzip.decompress(response.body) if is_compressed else response.body
    return response.status, headers, body


def bare_etag(etag: str) -> str:
    return re.sub('W/|-gzip"|"', "", etag)


@pytest.mark.parametrize("settings_of", ["commentd", "an owner"])
def test_a_shared_cache_gives_each_reader_their_own(
    tmp_path: Path, campaign: Campaign, settings_of: str
) -> None:
    """The cache responds as the service does to the same reader and site, now or before. Responses
    to a token never come from it."""
    cached, never_cached = [*CACHED, *LISTS], NEVER_CACHED
    if settings_of == "an owner":
        cached, never_cached = CACHED, [*NEVER_CACHED, *LISTS]
    known: dict[Any, list[Any]] = defaultdict(list)
    etags: dict[Any, str] = {}
    with nginx_with_a_cache(tmp_path, settings_of) as (proxy, tokens):
        for chance in campaign.rounds(133):
            if chance.random() < 0.1:
                assert proxy.say(f"{campaign.last}").status == 200
            target = chance.choice(cached if chance.random() < 0.5 else never_cached)
            token = chance.choice(tokens)
            sent = {
                "Origin": chance.choice(["", "", BLOG, OTHER, FOREIGN]),
                "Authorization": f"Bearer {token}" if token else "",
                "Accept-Encoding": chance.choice(["", "gzip", "gzip, br"]),
                "Accept-Language": chance.choice(["", "de", "zh-CN"]),
            }
            headers = ["User-Agent: a bot"]
            headers += [f"{name}: {value}" for name, value in sent.items() if value]
            key = (target, sent["Origin"], sent["Authorization"])
            direct = comparable(proxy.service.ask("GET", target, *headers))
            known[key].append(direct)

            etag = ""
            if chance.random() < 0.3:
                etag = etags.get((key, sent["Accept-Encoding"]), '"x"')
                headers.append(f"If-None-Match: {etag}")
            response = proxy.ask("GET", target, *headers)
            found = comparable(response)
            state = response.headers["X-Cache-Status"]
            if "gzip" not in sent["Accept-Encoding"]:
                assert not response.headers["Content-Encoding"]
            if target in never_cached or (token and settings_of == "commentd"):
                assert (found, state) == (direct, state), (target, sent)
                assert state in ("MISS", "BYPASS", None), (target, sent)
            elif response.status == 304:
                assert (found[1]["etag"], response.body) == (bare_etag(etag), b"")
                same = [each for _, each, _ in known[key] if each["etag"] == bare_etag(etag)]
                assert any(found[1].items() <= each.items() for each in same), (target, sent)
            else:
                assert found in known[key], (target, sent, state)
            etags[key, sent["Accept-Encoding"]] = response.headers.get("ETag", "")
            campaign.figures["requests"] += 1
            campaign.figures["responses out of the cache"] += state == "HIT"
            campaign.figures["of them not modified"] += response.status == 304
        assert campaign.figures["responses out of the cache"] > 0
