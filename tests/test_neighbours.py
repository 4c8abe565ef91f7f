"""What stands between the service and its readers: browsers, which go by the headers of a response;
proxies, which may read a request otherwise; and shared caches."""

import contextlib
import gzip
import http.client
import re
import select
import socket
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import inside
import pytest
import test_openapi
import test_proxies
import webtest
from api import ROUTES
from conftest import CANARY, PAGE, Campaign, Outside
from test_openapi import (
    METRICS,
    OPERATIONS,
    PERMISSION,
    Town,
    fields,
    forms,
    required,
    with_metrics,
)
from test_proxies import AMBIGUOUS, HIDDEN, HOST, SEEN, Front, free_port, site
from test_server import (
    AS_JSON,
    BLOG,
    COMMENT,
    FOREIGN,
    LOOPS,
    PIECES,
    POLICY,
    Answer,
    chunked,
    request,
    rows,
    services,
    until,
)

from commentd import App, Config, make_app

pytestmark = pytest.mark.slow

town, again = test_openapi.town, test_openapi.again

# What browsers are told

PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "worker-src blob:; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
HTTPS = {"server_public_url": "https://comments.example", "site_demo": True}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"site_origins": (BLOG, "http://localhost:4000"), "server_metrics": True, **HTTPS},
    {"server_public_url": "http://comments.example", "site_contact": "mailto:ann@example.com"},
    {"server_public_url": "https://blog.example/comments", "site_origins": (BLOG,)},
]
# No site of the owner's.
OTHER_SITES = [FOREIGN, f"{BLOG}.evil.example", BLOG.replace("https", "http"), f"{BLOG}:444"]
METHODS = [*("GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS", "TRACE", "BREW")]
STATUSES = (400, 401, 403, 404, 409, 413, 414, 415, 429, 500, 503)
KEPT = {"/feed.atom": 300, "/thread": 300, "/openapi.json": 3600, "/embed.js": 3600}
KEPT |= {"/admin.css": 3600, "/words/de.json": 3600}
ALIKE = {"/comments", "/comments/latest", "/pages"}  # what all get alike, unless by a token


def due(config: Config, method: str, path: str, asked: dict[str, str], answer: Any) -> Any:
    """The headers that a reply has: these and no others. (webtest unpacks what is zipped.)"""
    status, headers = answer.status_int, answer.headers
    own, kept = path.startswith("/admin"), path in KEPT and answer.status_int in (200, 304)
    html = headers.get("Content-Type") == "text/html; charset=utf-8"
    personal = own or path.startswith(("/auth/", "/me/")) or path == "/me"
    told = {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Content-Security-Policy": PAGES if html else POLICY,
        "Cross-Origin-Resource-Policy": "same-origin" if own or html else "cross-origin",
        "Vary": "Accept-Encoding, Origin, Authorization",
        "Cache-Control": "no-cache",
    }
    if personal or html or "Authorization" in asked:
        told["Cache-Control"] = "no-store"
    if kept:
        told["Cache-Control"] = f"public, max-age={KEPT[path]}"
    bearer = asked.get("Authorization", "").startswith("Bearer")
    if kept or (path in ALIKE and answer.status_int == 200 and not bearer):
        told["Etag"] = headers["ETag"]
    if not own and (not config.site_origins or asked.get("Origin") in config.site_origins):
        told["Access-Control-Allow-Origin"] = asked["Origin"] if config.site_origins else "*"
        told["Access-Control-Expose-Headers"] = "Retry-After"
    if config.server_public_url == "https://comments.example":
        told["Strict-Transport-Security"] = "max-age=31536000"
    if html and config.server_public_url.startswith("https:"):
        told["Cross-Origin-Opener-Policy"] = "same-origin"
    if method == "OPTIONS":
        told["Access-Control-Allow-Methods"] = "GET, POST, PATCH, DELETE"
        told["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
        told["Access-Control-Max-Age"] = "7200"
    if status == 401:
        told["Www-Authenticate"] = "Bearer"
    if status in (429, 503):
        told["Retry-After"] = {429: "60", 503: "5"}[status]
    return told


def methods_at(path: str) -> set[str]:
    return {r.method for r in ROUTES if re.fullmatch(re.sub("{.*?}", "[^/]+", r.path), path)}


def assert_due(config: Config, method: str, path: str, asked: dict[str, str], answer: Any) -> None:
    found = {name.title(): value for name, value in answer.headers.items()}
    length, kind = found.pop("Content-Length", ""), found.pop("Content-Type", "")
    allow, name = found.pop("Allow", ""), found.pop("Content-Disposition", "")
    assert found == due(config, method, path, asked, answer), (method, path, answer.status)
    assert method == "HEAD" or length in ("", str(len(answer.body)))
    there = methods_at(path) if answer.status_int == 405 else set()
    assert {*filter(None, allow.split(","))} == there
    assert name == "" or name.startswith('attachment; filename="commentd-')
    assert bool(kind) == (answer.status_int != 204)
    assert not kind.startswith(("text/", "application/j")) or kind.endswith("; charset=utf-8")


@pytest.fixture
def apps(config: Config, tmp_path: Path, outside: Outside) -> Iterator[list[tuple[Config, App]]]:
    paths = [{"database_path": str(tmp_path / f"{number}.db")} for number in range(len(SETTINGS))]
    configs = [replace(config, **path, **how) for path, how in zip(paths, SETTINGS, strict=True)]
    with contextlib.ExitStack() as stack:
        made = [closing(make_app(each, outside.world, rounds=1)) for each in configs]
        yield [*zip(configs, map(stack.enter_context, made), strict=True)]


PATHS = sorted({r.url for r in ROUTES if "{name}" not in r.path})
PATHS += [path for path in KEPT if path not in PATHS] + ["/nothing", "/nothing/here", "/%ff", "/.."]


def test_every_route_method_and_status_has_its_headers_and_no_others(
    apps: list[tuple[Config, App]], campaign: Campaign
) -> None:
    reached: Counter[int] = Counter()
    for chance in campaign.rounds(len(PATHS)):
        path = PATHS[campaign.last % len(PATHS)]
        for method in METHODS:
            for status in (0, *STATUSES):
                config, app = chance.choice(apps)
                headers = {"Origin": chance.choice([BLOG, BLOG, "null", *OTHER_SITES])}
                headers |= {"Authorization": "Bearer x", "Accept-Encoding": "gzip"}
                asked = {name: headers[name] for name in headers if chance.random() < 0.4}
                target = path + chance.choice(["", f"?url={PAGE}", f"?url=%ff&next={FOREIGN}"])
                with inside.refusing_with(status):
                    answer = webtest.TestApp(app, lint=False).request(
                        target, method=method, headers=asked, expect_errors=True
                    )
                assert_due(config, method, path, asked, answer)
                reached[answer.status_int] += 1
    campaign.figures["responses"] = reached.total()
    assert reached.keys() >= {200, 204, 405, *STATUSES}


@with_metrics
def test_every_operation_that_is_done_has_its_headers(
    town: Town, again: Callable[[], object]
) -> None:
    for label, operation in OPERATIONS.items():
        again()
        method, path = label.split()
        path = re.sub("{(.*?)}", lambda name: str(town.good[name[1]]), path)
        query = town.values(label, required(operation))
        form = next((town.values(label, fields(f, whole=False)) for f in forms(operation)), None)
        answer = town.ask(label, query, form)
        assert answer.status_int == 200, label
        asked = {"Authorization": "Bearer x"}
        assert PERMISSION[label] in town.tokens
        assert_due(Config(**METRICS), method, path, asked, answer)


# Proxies that keep a connection for many readers

FORGED = "6.6.6.6"
SMUGGLED = request(
    "POST",
    "/comments",
    f"X-Forwarded-For: {FORGED}",
    body={**COMMENT, "content": "smuggled", "nickname": "Mallory"},
)
# Says so in its log when a request comes that no proxy has passed on.
WATCHFUL = """
import sys, commentd
call = commentd.App.__call__
def watched(app, environ, start_response):
    hops = environ.get("HTTP_X_FORWARDED_FOR", "").split(",")
    if not hops[-1].strip().startswith("127.0.4."):
        print("NOT PASSED ON", environ, flush=True)
    return call(app, environ, start_response)
commentd.App.__call__ = watched
sys.exit(commentd.main())
"""


def kept_open(printed: str, kind: str, port: int) -> str:
    """What was printed, with connections to the service that serve many readers, and HTTP/2."""
    if kind == "caddy":
        return printed
    found = re.search(r"proxy_pass http://([^/]+)/;", printed)
    assert found
    printed = printed.replace(found[0], "proxy_pass http://kept/;")
    printed = re.sub(
        r"(?m)^    listen \d+;$", rf"\g<0>\n    listen 127.0.0.1:{port} http2;", printed
    )
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
            if kind == "caddy":
                both = "admin off\n    servers {{\n        protocols h1 h2c\n    }}"
                main = test_proxies.CADDY.replace("admin off", both)
                proxy = main, test_proxies.PROXIES["caddy"][1]
                patch.setitem(test_proxies.PROXIES, "caddy", proxy)
            with here.proxy(service, edit=lambda said: kept_open(said, kind, port)) as front:
                yield front, here.port if kind == "caddy" else port


LINES = [line for line, _, _ in AMBIGUOUS]
HEADERS = [
    *(headers for _, headers, _ in AMBIGUOUS),
    *("Connection: close, X-Real-IP", "Connection: X-Forwarded-For", "Connection: Content-Length"),
    *("Connection: Transfer-Encoding", "Connection: Host", "Connection: keep-alive, close"),
    *("Proxy-Connection: keep-alive", "Keep-Alive: 1", "Upgrade: h2c", "Upgrade: websocket"),
    *("Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAMAAABkAAQAAP__", "TE: trailers"),
    *("Trailer: Content-Length", "Expect: 100-continue", "Expect: x", "Max-Forwards: 0"),
    *("X-HTTP-Method-Override: POST", "X-Forwarded-For: " + FORGED, "X-Real-IP: " + FORGED),
    *("Forwarded: for=" + FORGED, "X-Forwarded-For:\r\n " + FORGED, "Range: bytes=0-1"),
    *("Host: evil.example", "Host : " + HOST, "x: y\n\nGET /health HTTP/1.1", " x: y", "x"),
    *("Content-Length: 0", "Content-Length: {1}\r\nContent-Length: 0", "Content-Length:\t{2}"),
]  # fmt: skip
TARGETS = [
    *("/comments", "/health", "/embed.js", f"/comments?url={PAGE}", "*", "//", "/../comments"),
    *("http://evil.example/health", f"http://{HOST}/comments", "evil.example:80", "/comments#x"),
    *("/comments HTTP/1.1\r\nX:", "/%2e%2e/comments", "/comments%20HTTP/1.1%0d%0a"),
]
BODIES = [
    *sorted({body for _, _, body in AMBIGUOUS}),
    *(b"", SEEN, chunked(SEEN), b"0\r\n\r\n" + HIDDEN, b"0\r\n" + HIDDEN, b"\r\n" + HIDDEN),
    *(b"0;x=y\r\nx: y\r\n\r\n" + HIDDEN, b"00000\n\r\n" + HIDDEN, HIDDEN[:40]),
    *(chunked(SEEN)[:-2] + b"x: y\r\n\r\n" + HIDDEN, chunked(SEEN)[:-2] + HIDDEN),
]


def ambiguous(chance: Random) -> bytes:
    """What two could read in two ways, and a request hidden in it."""
    line, headers, body = chance.choice(AMBIGUOUS)
    line = line if chance.random() < 0.6 else chance.choice(LINES)
    if chance.random() < 0.4:
        target = chance.choice(TARGETS)
        method = chance.choice(["GET", "POST", "HEAD", "OPTIONS", "PUT", "CONNECT", "TRACE"])
        line = f"{method} {target} HTTP/1.{chance.choice('11110')}"
    more = chance.choices(HEADERS, k=chance.choice([0, 0, 1, 1, 2, 3]))
    lines = [f"Host: {HOST}", AS_JSON, *([headers] if chance.random() < 0.8 else []), *more]
    chance.shuffle(lines)
    body = body if chance.random() < 0.6 else chance.choice(BODIES)
    body = body.replace(HIDDEN, SMUGGLED)
    head = "\r\n".join((line, *lines, "", "")).replace("{0}", "")
    sizes = {"{1}": len(body), "{2}": len(SEEN), "{2:x}": len(SEEN)}
    for name, size in sizes.items():
        head = head.replace(name, str(size))
    raw = head.encode("latin-1") + body
    if chance.random() < 0.2:
        at = chance.randrange(len(raw))
        raw = raw[:at] + chance.choice(PIECES) + raw[at + chance.choice([0, 0, 1, 2]) :]
    return raw


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One of HTTP/2 (RFC 9113, section 4.1)."""
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def text(raw: bytes) -> bytes:
    """As it is, without a Huffman code (RFC 7541, section 5.2)."""
    if len(raw) < 127:
        return bytes([len(raw)]) + raw
    rest, size = b"\x7f", len(raw) - 127
    while size >= 128:
        rest, size = rest + bytes([size % 128 + 128]), size // 128
    return rest + bytes([size]) + raw


def packed(fields: list[tuple[bytes, bytes]]) -> bytes:
    """Header fields outside of any table (section 6.2.2)."""
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields)


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
SPLIT = b"x\r\n\r\n" + SMUGGLED
ODD_FIELDS = [
    (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"x\r\ntransfer-encoding: chunked"),
    (b"content-length", b"0"), (b"content-length", b"4"), (b"content-length", b"+4"),
    (b"content-length", b"9999"), (b"connection", b"x-forwarded-for"), (b"connection", b"close"),
    (b"host", b"evil.example"), (b":authority", b"evil.example"), (b":path", b"/health"),
    (b":method", b"GET / HTTP/1.1\r\nHost: x"), (b":scheme", b"http://x/"), (b":status", b"200"),
    (b"x", SPLIT), (b"x\r\ntransfer-encoding: chunked\r\ny", b"z"), (b"x: y\r\nz", b"z"),
    (b"X-Forwarded-For", FORGED.encode()), (b"x-forwarded-for", FORGED.encode()),
    (b"x_forwarded_for", FORGED.encode()), (b"te", b"chunked"), (b"upgrade", b"h2c"),
    (b"", b"x"), (b"x", b"\0"), (b" x", b"y"), (b"trailer", b"content-length"),
    (b"expect", b"100-continue"), (b"cookie", b"a=b\r\nx: y"), (b"x" * 300, b"y" * 300),
]  # fmt: skip
PATHS_OF_2 = [
    *(b"/comments", b"/health", b"/health HTTP/1.1\r\nHost: x\r\n\r\nGET /me", b"/nothing", b"*"),
    *(b"http://evil.example/health", b"/comments\r\nX: y", b"", b"health", b"//evil.example/"),
]


def in_frames(chance: Random) -> bytes:
    """The same as streams of HTTP/2, which a proxy has to say again in HTTP/1."""
    raw = PREFACE
    for stream in range(1, chance.choice([3, 3, 5, 9]), 2):
        method = chance.choice([b"POST", b"POST", b"GET", b"HEAD", b"OPTIONS", b"POST / HTTP/1.1"])
        path = chance.choice([b"/comments", chance.choice(PATHS_OF_2)])
        fields = [(b":method", method), (b":path", path), (b":scheme", b"http")]
        fields += [(b":authority", HOST.encode()), (b"content-type", b"application/json")]
        for odd in chance.choices(ODD_FIELDS, k=chance.choice([0, 1, 1, 2])):
            fields.insert(chance.randrange(len(fields) + 1), odd)
        body = chance.choice(BODIES).replace(HIDDEN, SMUGGLED)
        ends = chance.random() < 0.2
        raw += frame(1, 4 | ends, stream, packed(fields))
        if not ends or chance.random() < 0.1:
            raw += frame(0, 1, stream, body)
            if chance.random() < 0.2:  # trailers
                raw += frame(1, 5, stream, packed([chance.choice(ODD_FIELDS)]))
    return raw


def test_the_gate_speaks_http_2(gate: tuple[Front, int]) -> None:
    words = {":method": "POST", ":path": "/comments", ":scheme": "http", ":authority": HOST}
    fields = [(name.encode(), word.encode()) for name, word in words.items()]
    fields.append((b"content-type", b"application/json"))
    with socket.create_connection(("127.0.0.1", gate[1]), 20, ("127.0.4.1", 0)) as line:
        line.sendall(PREFACE + frame(1, 4, 1, packed(fields)) + frame(0, 1, 1, SEEN))
        received = b""
        while b'"success":true' not in received:
            received += line.recv(65536) or pytest.fail("closed")
    assert b'"ip":"127.0.4.1"' in received


def readers_get_their_own(front: Front, chance: Random) -> int | None:
    """Two readers read, the second writes; the number of the second, who sends it nowhere else.

    None where the proxy closed a connection before any response. A proxy may do so when its own
    connection to the service fails, and a client may then ask again (RFC 9112, section 9.3.1).
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


def test_no_request_of_one_reader_comes_to_another(
    gate: tuple[Front, int], campaign: Campaign
) -> None:
    """After each attack, readers on the connections that the proxy keeps get their own responses,
    and nothing comes to the service but what the proxy has passed on, with the IP address that it
    came from."""
    front, port = gate
    for chance in campaign.rounds(50):
        old = chance.random() < 0.6
        attack = ambiguous(chance) if old else in_frames(chance)
        where = ("127.0.0.1", front.port if old else port)
        source = (f"127.0.4.{chance.randrange(2, 100)}", 0)
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
    assert "NOT PASSED ON" not in front.service.said


# Shared caches


def test_what_is_zipped_has_a_tag_of_its_own(app: App) -> None:
    """Else a cache that holds both could serve the one as the other (RFC 9111, 4.3.4)."""
    client, zip_it = webtest.TestApp(app), {"Accept-Encoding": "gzip"}
    plain = client.get("/embed.js").headers["ETag"]
    zipped = client.get("/embed.js", headers=zip_it).headers["ETag"]
    assert plain != zipped
    again = {"If-None-Match": zipped}
    assert client.get("/embed.js", headers=again | zip_it, status=304).headers["ETag"] == zipped
    assert client.get("/embed.js", headers=again, status=200).headers["ETag"] == plain


OTHER = "https://other.example"
CACHE = """
proxy_cache kept;
proxy_cache_revalidate on;
add_header X-Cache $upstream_cache_status always;
"""
STORED = [
    "/feed.atom",
    f"/feed.atom?url={PAGE}",
    f"/thread?url={PAGE}",
    "/embed.js",
    "/words/de.json",
]
STORED += [f"/thread?url={PAGE}&lang=de", "/openapi.json", "/admin.css"]
FRESH = [f"/comments?url={PAGE}", f"/comments?url={PAGE}&view=threads", f"/pages?url={PAGE}", "/me"]
FRESH += ["/comments/latest", "/admin/comments?status=visible", "/admin", "/mail", "/nothing/here"]


def cached(printed: str, folder: Path, more: str) -> str:
    path = f"proxy_cache_path {folder}/cache keys_zone=kept:1m;\n"
    return path + printed.replace("        proxy_pass", CACHE + more + "        proxy_pass")


@contextlib.contextmanager
def shared_cache(folder: Path, more: str = "") -> Iterator[tuple[Front, list[str]]]:
    """A service behind nginx with a cache, and tokens; `more` are settings of that cache."""
    with site(folder, "nginx", "tcp") as here, services(folder) as start:
        path = folder / "commentd.db"
        with closing(make_app(Config(database_path=str(path)), rounds=1)) as app:
            inside.add_account(app, "owner@example.com", "Owner", CANARY, "admin")
            inside.add_account(app, "ann@example.com", "Ann", CANARY)
            whose = [("ann", "login"), ("owner", "login"), ("owner", "admin")]
            tokens = [inside.token_of(app, f"{who}@example.com", use) for who, use in whose]
        settings = here.settings(f"http://{HOST}:{here.port}") | {"limits": {"enabled": "no"}}
        settings |= {"privacy": {"show_ip": "masked"}, "site": {"origins": f"{BLOG} {OTHER}"}}
        service = start(**settings)
        with here.proxy(service, edit=lambda printed: cached(printed, folder, more)) as front:
            yield front, ["", "", "", "x", *tokens]


def bare(tag: str) -> str:
    return re.sub('W/|-gzip"|"', "", tag)


def without(headers: dict[str, str], *names: str) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name not in names}


def plainly(answer: Answer) -> tuple[int, dict[str, str], bytes]:
    """Without what a proxy may change: how it is packed."""
    left_out = ("server", "date", "x-cache", "connection", "content-length", "transfer-encoding")
    headers = {name.lower(): value for name, value in answer.headers.items()}
    body = answer.body
    if headers.pop("content-encoding", "") == "gzip":
        body = gzip.decompress(body)
    headers["etag"] = bare(headers.get("etag", ""))
    if headers.get("vary", "").endswith("Accept-Encoding"):  # which nginx adds to what it packs
        headers["vary"] = headers["vary"].removesuffix(", Accept-Encoding")
    return answer.status, without(headers, *left_out), body


def test_a_shared_cache_gives_everybody_his_own(tmp_path: Path, campaign: Campaign) -> None:
    """What it says is what the service says to the same reader and site, now or within the time
    that was promised; what answers a token is never taken from it."""
    known: dict[Any, list[Any]] = defaultdict(list)
    tags: dict[Any, str] = {}
    with shared_cache(tmp_path) as (front, callers):
        for chance in campaign.rounds(133):
            if chance.random() < 0.1:
                assert front.say(f"{campaign.last}").status == 200
            target = chance.choice(STORED if chance.random() < 0.5 else FRESH)
            token = chance.choice(callers)
            said = {"Origin": chance.choice(["", "", BLOG, OTHER, FOREIGN])}
            said["Authorization"] = token and f"Bearer {token}"
            said["Accept-Encoding"] = chance.choice(["", "gzip", "gzip, br"])
            said["Accept-Language"] = chance.choice(["", "de", "zh-CN"])
            key = (target, said["Origin"], said["Authorization"])
            packed_as = (key, said["Accept-Encoding"])
            words = ["User-Agent: a bot", *(f"{n}: {v}" for n, v in said.items() if v)]
            method = chance.choice(["GET", "GET", "GET", "HEAD"])
            direct = plainly(front.service.ask("GET", target, *words))
            known[key].append(direct)
            tag = tags.get(packed_as, '"x"') if chance.random() < 0.3 else ""
            words += [f"If-None-Match: {tag}"] if tag else []
            answer = front.ask(method, target, *words)
            assert "gzip" in said["Accept-Encoding"] or not answer.headers["Content-Encoding"]
            found, way = plainly(answer), answer.headers["X-Cache"]
            if method == "HEAD":
                assert answer.body == b""
                whole = [each for each in known[key] if each[:2] == found[:2]]
                found = whole[-1] if whole else found
            if target in FRESH:
                assert (found, way) == (direct, "MISS"), (target, said)
            elif answer.status == 304:
                assert (bare(answer.headers["ETag"]), answer.body) == (bare(tag), b"")
                same = [head for _, head, _ in known[key] if head["etag"] == bare(tag)]
                assert found[1] in [without(head, "content-type") for head in same]
            else:
                assert found in known[key], (target, said, way)
            tags[packed_as] = answer.headers.get("ETag", "")
            campaign.figures["requests"] += 1
            campaign.figures["answered out of the cache"] += way == "HIT"
            campaign.figures["of them not modified"] += answer.status == 304


# Instead of the time that the service names, so that the test need not wait an hour.
BRIEF = "proxy_ignore_headers Cache-Control; proxy_cache_valid 1s;"


def test_a_shared_cache_asks_again_in_time_and_keeps_what_is_zipped_apart(tmp_path: Path) -> None:
    with shared_cache(tmp_path, BRIEF) as (front, _):
        ways = ["Accept-Encoding: gzip", "Accept-Encoding: identity"]
        bodies = [front.service.ask("GET", "/embed.js", way).body for way in ways]
        for way, body in zip(ways, bodies, strict=True):

            def asked_again() -> bool:
                answer = front.ask("GET", "/embed.js", way)  # noqa: B023
                assert answer.body == body  # noqa: B023
                return answer.headers["X-Cache"] == "REVALIDATED"

            assert front.ask("GET", "/embed.js", way).status == 200
            until(asked_again)
        assert b"new" not in front.ask("GET", "/feed.atom").body
        assert front.say("new").status == 200
        until(lambda: b"new" in front.ask("GET", "/feed.atom").body)
