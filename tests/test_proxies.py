"""The service behind real proxies, nginx and Caddy, each set up by what `commentd example` prints:
over TCP and through a socket file, at / and under a prefix."""

import contextlib
import functools
import gzip
import html
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from commentd import BODY_LIMIT
from support import blog as browsing
from support import sites
from support.client import COMMENT, PAGE
from support.commands import PROGRAM, run_here
from support.patience import PATIENCE
from support.proxies import AMBIGUOUS, HOST, ME, PROXIES, SEEN, ProxiedSite, Proxy, free_port, site
from support.proxies import proxy as proxy  # a fixture
from support.service import (
    AS_JSON,
    BLOG,
    CHUNKED,
    FOREIGN,
    Answer,
    Service,
    answer_on,
    chunked,
    padded,
    request,
    rows,
    services,
)
from support.serving import until
from support.sources import MANUAL, ROOT
from support.writing import article, post

pytestmark = pytest.mark.slow


def assert_single(response: Answer) -> None:
    """Checks that no header is repeated."""
    times = Counter(name.lower() for name in response.headers)
    assert {name: n for name, n in times.items() if n > 1} == {}


# Who asks

FORGED = [
    ["X-Forwarded-For: 6.6.6.6"],
    ["X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 7.7.7.7"],
    ["X-Forwarded-For: unix, 127.0.0.1, ::1"],
    ["X-Forwarded-For: " + ", ".join(["6.6.6.6"] * 700)],
    ['X-Forwarded-For: ,,;"<x>" [::1, for=_a, 6.6.6.6:80, 999.1.1.1, %'],
    ["X-Forwarded-For:"],
    ["X_Forwarded_For: 6.6.6.6"],
    ["Connection: X-Forwarded-For", "X-Forwarded-For: 6.6.6.6"],
    ["X-Real-IP: 6.6.6.6", "X-Client-IP: 6.6.6.6", "CF-Connecting-IP: 6.6.6.6"],
    ["Forwarded: for=6.6.6.6;proto=https;host=evil.example"],
    ["X-Forwarded-Proto: https", "X-Forwarded-Host: evil.example", "X-Forwarded-Port: 1"],
]


def test_a_client_cannot_forge_its_ip_address(proxy: Proxy) -> None:
    for number, headers in enumerate(FORGED, 1):
        response = proxy.say(f"{number}", *headers, client=f"127.0.2.{number}")
        seen = response.status, response.json["comment"]["ip"]
        assert seen == (200, f"127.0.2.{number}"), headers


def test_rate_limits_are_per_client_behind_a_proxy(proxy: Proxy) -> None:
    statuses = [proxy.say(f"{n}", client="127.0.0.9").status for n in range(5)]
    refused = proxy.say("5", client="127.0.0.9")
    forged = proxy.say("6", "X-Forwarded-For: 6.6.6.6", client="127.0.0.9")
    assert statuses == [200] * 5
    assert (refused.status, refused.json["code"], forged.status) == (429, "too_many", 429)
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert proxy.say("7", client="127.0.0.10").status == 200
    assert_single(refused)


# What arrives


def test_cors_headers_appear_once_behind_a_proxy(proxy: Proxy) -> None:
    own = {f"http://{HOST}:{proxy.port}": 200, f"http://{HOST}": 200}  # public_url; the header Host
    for origin, status in {BLOG: 200, FOREIGN: 403, **own}.items():
        asks = [f"Origin: {origin}", "Access-Control-Request-Method: POST"]
        responses = [
            proxy.ask("OPTIONS", "/comments", *asks, "Content-Length: 0"),
            proxy.say(f"by {origin}", asks[0], client="127.0.0.11"),
            proxy.ask("GET", f"/comments?url={PAGE}", asks[0]),
            proxy.ask("GET", "/nothing/here", asks[0]),
        ]
        assert [response.status for response in responses] == [204, status, 200, 404]
        for response in responses:
            allowed = BLOG if origin == BLOG else None
            assert response.headers["Access-Control-Allow-Origin"] == allowed
            assert_single(response)
        assert responses[0].headers["Access-Control-Allow-Methods"] == "GET, POST, PATCH, DELETE"


def test_size_limits_are_the_same_behind_a_proxy(proxy: Proxy) -> None:
    for size, status in ((BODY_LIMIT, 200), (BODY_LIMIT + 1, 413), (4 * BODY_LIMIT, 413)):
        with proxy.connect("127.0.0.12") as line:
            # Above its limit the proxy may respond, and close, before all was sent.
            with contextlib.suppress(ConnectionError):
                body = padded(size)
                line.sendall(request("POST", proxy.prefix + "/comments", AS_JSON, body=body))
            response = answer_on(line)
        assert response.status == status
        assert size != BODY_LIMIT + 1 or response.json["code"] == "body_too_large"
    target = "/comments?limit=1&url=/&x=".ljust(7 * 1024, "a")
    assert proxy.ask("GET", target).status == 200


def test_a_long_list_arrives_whole_behind_a_proxy(proxy: Proxy) -> None:
    body = {**COMMENT, "page_url": "/long/"}
    for n in range(10):
        body["content"] = f"{n}".ljust(10_000, "长")
        response = proxy.ask("POST", "/comments", client=f"127.0.3.{n // 5 + 1}", body=body)
        assert response.status == 200
    target = "/comments?url=/long/&limit=100"
    proxied, direct = proxy.ask("GET", target), proxy.service.ask("GET", target)
    assert len(proxied.body) > 500_000
    assert proxied.json["comments"] == direct.json["comments"]


def test_an_edit_and_a_deletion_arrive_with_their_bodies_behind_a_proxy(proxy: Proxy) -> None:
    made = proxy.say("to be changed", client="127.0.3.7").json
    target, right = f"/comments/{made['comment']['id']}", {"edit_token": made["edit_token"]}
    edited = proxy.ask("PATCH", target, body={"content": "changed", **right})
    assert (edited.status, edited.json["comment"]["content"]) == (200, "changed")
    assert proxy.ask("DELETE", target, body={"edit_token": "x"}).status == 404
    assert proxy.ask("DELETE", target, body=right).status == 200


def test_a_file_arrives_compressed_with_its_etag_behind_a_proxy(proxy: Proxy) -> None:
    plain = proxy.ask("GET", "/home.js")
    zipped = proxy.ask("GET", "/home.js", "Accept-Encoding: gzip")
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(zipped.body) == plain.body
    for etag in (plain.headers["ETag"], f"W/{plain.headers['ETag']}"):
        again = proxy.ask("GET", "/home.js", f"If-None-Match: {etag}")
        assert (again.status, again.body) == (304, b"")
    assert_single(zipped)


def test_nginx_joins_chunks_and_caddy_does_not(
    proxy: Proxy, request: pytest.FixtureRequest
) -> None:
    body = chunked(json.dumps({**COMMENT, "page_url": "/chunked/"}).encode())
    response = proxy.ask("POST", "/comments", AS_JSON, CHUNKED, body=body)
    total = proxy.service.ask("GET", "/comments?url=/chunked/").json["total"]
    if "nginx" in request.node.name.partition("[")[2]:
        assert (response.status, total) == (200, 1)
    else:
        # Caddy says 502 if the service closes the connection before Caddy has sent the body.
        assert response.status in (411, 502)
        assert total == 0


# One request, one answer

LAST = request("GET", "/health", "Connection: close")


def test_no_request_hides_another_behind_a_proxy(proxy: Proxy) -> None:
    for number, (line, headers, body) in enumerate(AMBIGUOUS):
        head = "\r\n".join((line, f"Host: {HOST}", AS_JSON, headers, "", ""))
        raw = head.format(proxy.prefix, len(body), len(SEEN)).encode("latin-1") + body
        raw += LAST.replace(b" /", b" " + proxy.prefix.encode() + b"/", 1)
        got = b""
        with (
            proxy.connect(f"127.0.1.{number + 1}") as connection,
            contextlib.suppress(ConnectionError),
        ):
            connection.sendall(raw)
            while piece := connection.recv(65536):
                got += piece
        responses = re.findall(rb"HTTP/1\.[01] (\d{3}) ", got)
        assert len(responses) - got.count(b'{"ok":true}') == 1, (raw, got)
    assert rows(proxy.service, "SELECT ip FROM comment WHERE content = 'hidden'") == []


# What the owner sees


@pytest.mark.parametrize(("kind", "transport"), [("nginx", "unix"), ("caddy", "tcp")])
def test_an_untrusted_proxy_is_reported(tmp_path: Path, kind: str, transport: str) -> None:
    with site(tmp_path, kind, transport) as proxied_site, services(tmp_path) as start:
        url = f"http://{HOST}:{proxied_site.port}"
        service = start(**proxied_site.settings(url, trusted=""))
        with proxied_site.proxy(service) as proxy:
            statuses = [proxy.say(f"{n}", client=f"127.0.0.{n % 3 + 2}").status for n in range(12)]
            assert statuses == [200] * 12  # clients that look the same are not limited together
            noticed = re.findall(r"a proxy that is not named .*: (set .*)", service.output)
            assert noticed == [f"set [server] trusted_proxy = {proxied_site.through}"]
            until(lambda: "proxy that is not trusted" in run_here(tmp_path, "check")[1])
            service.stop(signal.SIGKILL)
            assert proxy.say("lost", client="127.0.0.9").status == 502
            service = start(**proxied_site.settings(url))
            response = proxy.say("back", client="127.0.0.9")
        assert (response.status, response.json["comment"]["ip"]) == (200, "127.0.0.9")
        assert rows(service, "SELECT count(*) FROM comment") == [(13,)]
        assert "not trusted" not in run_here(tmp_path, "check")[1]
        assert "not named" not in service.output


# What nginx keeps

LIST = f"/comments?url={PAGE}"


def state_of(answer: Answer) -> str:
    """What nginx says of its cache."""
    return str(answer.headers["X-Cache-Status"])


def is_stale(proxy: Proxy, target: str) -> bool:
    return state_of(proxy.ask("GET", target)) == "STALE"


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[tuple[Proxy, Callable[[], Service]]]:
    """A service behind nginx, and what starts the service again."""
    with site(tmp_path, "nginx", "tcp") as proxied_site, services(tmp_path) as start:
        settings = proxied_site.settings(f"http://{HOST}:{proxied_site.port}")
        settings["limits"] = {"enabled": "no"}
        with proxied_site.proxy(start(**settings)) as proxy:
            yield proxy, lambda: start(**settings)


def test_lists_and_the_widget_are_shown_by_nginx_while_the_service_is_down(
    kept: tuple[Proxy, Callable[[], Service]],
) -> None:
    proxy, start = kept
    proxy.say("before")
    until(lambda: "before" in proxy.ask("GET", LIST).body.decode())
    lists, scripts = proxy.ask("GET", LIST), proxy.ask("GET", "/embed.js")
    proxy.service.stop(signal.SIGKILL)
    for target, body in ((LIST, lists.body), ("/embed.js", scripts.body)):
        until(functools.partial(is_stale, proxy, target))
        assert proxy.ask("GET", target).body == body
    assert proxy.ask("GET", LIST, f"If-None-Match: {lists.headers['ETag']}").status == 304
    for target in ("/health", "/captcha", "/me", "/comments?url=/never-asked-for/"):
        assert proxy.ask("GET", target).status == 502
    assert proxy.ask("GET", LIST, "Authorization: Bearer x").status == 502
    assert proxy.say("lost").status == 502

    service = start()
    assert service.ask("GET", LIST).status == 200
    assert state_of(proxy.ask("GET", LIST)) == "EXPIRED"
    proxy.say("after")
    until(lambda: "after" in proxy.ask("GET", LIST).body.decode())


def test_lists_from_nginx_are_new_while_the_service_is_up_but_slow(
    kept: tuple[Proxy, Callable[[], Service]], tmp_path: Path
) -> None:
    proxy, _ = kept
    proxy.ask("GET", LIST)
    age(tmp_path / f"commentd-{HOST}", 60)
    proxy.service.process.send_signal(signal.SIGSTOP)
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(proxy.connect()) for _ in range(5)]
        for line in lines:
            line.sendall(request("GET", LIST))
        # nginx refuses this by itself, when it has seen all that was sent before.
        assert proxy.ask("GET", " nonsense").status == 400
        proxy.service.process.send_signal(signal.SIGCONT)
        states = {state_of(answer_on(line)) for line in lines}
    assert states <= {"EXPIRED", "HIT"}


def test_a_comment_shows_within_a_moment_though_nginx_keeps_lists(
    kept: tuple[Proxy, Callable[[], Service]],
) -> None:
    proxy, _ = kept
    until(lambda: state_of(proxy.ask("GET", LIST)) == "HIT")
    proxy.say("hello")
    until(lambda: proxy.ask("GET", LIST).json["total"] == 1)


def test_nothing_for_one_reader_is_kept_by_nginx(kept: tuple[Proxy, Callable[[], Service]]) -> None:
    proxy, _ = kept
    assert state_of(proxy.ask("GET", LIST, "Authorization: Basic eDp5")) == "BYPASS"
    assert state_of(proxy.ask("GET", LIST)) == "MISS"
    until(lambda: state_of(proxy.ask("GET", LIST)) == "HIT")
    assert state_of(proxy.ask("GET", LIST, "Authorization: Basic eDp5")) == "BYPASS"
    for target in ("/captcha", "/health", "/origin"):
        assert [state_of(proxy.ask("GET", target)) for _ in range(3)] == ["MISS"] * 3


def test_a_request_for_headers_alone_is_no_view_behind_nginx_either(
    kept: tuple[Proxy, Callable[[], Service]],
) -> None:
    proxy, _ = kept
    for method in ("HEAD", "GET"):
        assert proxy.ask(method, LIST).status == 200
    assert proxy.service.stop() == 0
    assert rows(proxy.service, "SELECT views FROM page") == [(1,)]


def test_readers_find_their_comment_after_a_reload_though_nginx_keeps_lists(
    tmp_path: Path, browser: Browser
) -> None:
    """Here nginx keeps them for an hour, and the clock of the browser stands still."""

    def for_an_hour(printed: str) -> str:
        return printed.replace("proxy_cache_valid 200 1s;", "proxy_cache_valid 200 1h;")

    pages: browsing.Pages = {}
    with (
        site(tmp_path, "nginx", "tcp") as proxied_site,
        services(tmp_path) as start,
        browsing.blog(pages) as address,
    ):
        url = f"http://comments.test:{proxied_site.port}"
        pages.update(browsing.article(url, lang="en"))
        settings = proxied_site.settings(url) | {"site": {"origins": address}}
        with proxied_site.proxy(start(**settings), edit=for_an_hour):
            page = browsing.new_context(browser, locale="en").new_page()
            page.clock.set_fixed_time(time.time())
            page.goto(address + browsing.POST)
            post(page, "Mine.")
            page.reload()
            expect(article(page, "Mine.")).to_be_visible()
            page.context.close()


@pytest.mark.parametrize(
    ("version", "printed"),
    [
        ("1.22.1", ["listen 443 ssl http2;", "listen [::]:443 ssl http2;"]),
        ("1.25.1", ["listen 443 ssl;", "listen [::]:443 ssl;", "http2 on;"]),
    ],
)
def test_http_2_is_written_as_the_nginx_here_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, printed: list[str]
) -> None:
    (tmp_path / "commentd.ini").write_text(f"[server]\npublic_url = https://{HOST}\n")
    (tmp_path / "nginx").write_bytes(f"\0nginx version: nginx/{version}\0".encode())
    (tmp_path / "nginx").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    _, text, _ = run_here(tmp_path, "example", "nginx")
    assert re.findall("(?m)^    ((?:listen .*443|http2).*)$", text) == printed


def test_http_2_is_written_as_any_nginx_takes_it_where_none_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "commentd.ini").write_text(f"[server]\npublic_url = https://{HOST}\n")
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    code, text, errors = run_here(tmp_path, "example", "nginx")
    assert (code, errors) == (0, "")
    assert "    listen 443 ssl http2;\n" in text


# With a certificate


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate")
    names = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    rest = ["-out", str(names[0]), "-keyout", str(names[1]), "-subj", f"/CN={HOST}"]
    alternative = ["-addext", f"subjectAltName=DNS:{HOST}"]
    subprocess.run([*command.split(), *rest, *alternative], check=True, capture_output=True)
    return names


def assert_speaks_http_2(proxy: Proxy, authority: ssl.SSLContext) -> None:
    authority.set_alpn_protocols(["h2", "http/1.1"])
    with proxy.connect() as line:
        assert isinstance(line, ssl.SSLSocket)
        assert line.selected_alpn_protocol() == "h2"


@pytest.mark.parametrize("kind", PROXIES)
def test_commentd_works_behind_a_proxy_with_https(
    tmp_path: Path, kind: str, certificate: tuple[Path, Path]
) -> None:
    def edit(printed: str) -> str:
        if kind == "caddy":  # which gets a certificate by itself on a public host
            return printed.replace(" {\n", " {{\n    tls {} {}\n".format(*certificate), 1)
        for name, path in zip(("fullchain", "privkey"), certificate, strict=True):
            printed, times = re.subn(
                rf"/etc/letsencrypt/live/{HOST}/{name}\.pem", f"{path}", printed
            )
            assert times == 1
        return printed

    authority = ssl.create_default_context(cafile=str(certificate[0]))
    with (
        site(tmp_path, kind, "unix") as proxied_site,
        services(tmp_path) as start,
        free_port() as plain,
    ):
        ports = {
            "nginx": {
                " 443 ": proxied_site.port,
                ":443 ": proxied_site.port,
                " 80;": plain,
                ":80;": plain,
            }
        }
        ports["caddy"] = {"https://comments.example": proxied_site.port}

        def with_own_ports(printed: str) -> str:
            for written, port in ports[kind].items():
                assert printed.count(written) >= 1, written
                if kind == "caddy":
                    printed = printed.replace(written, f"{written}:{port}")
                else:
                    number = re.sub(r"\D", "", written)
                    printed = printed.replace(written, written.replace(number, str(port)))
            return edit(printed)

        service = start(**proxied_site.settings(f"https://{HOST}"))
        with proxied_site.proxy(service, "", with_own_ports, authority) as proxy:
            response = proxy.say("hi", "X-Forwarded-For: 6.6.6.6", client="127.0.0.9")
            assert_speaks_http_2(proxy, authority)
            if kind == "nginx":  # Caddy redirects by itself, from its http_port
                with socket.create_connection((ME, plain), PATIENCE) as line:
                    line.sendall(request("GET", "/admin?x=1"))
                    moved = answer_on(line)
                target = f"https://{HOST}/admin?x=1"
                assert (moved.status, moved.headers["Location"]) == (301, target)
    assert (response.status, response.json["comment"]["ip"]) == (200, "127.0.0.9")
    assert response.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert_single(response)


# Comments in the pages of the blog

GUIDE = re.compile(r"```html\n(.*?)```.*?```(nginx|caddy)\n(.*?)```", re.S)
(KEEP,) = re.findall(r"```cron\n.*\n[*]/10 [* ]+(.*)\n```", MANUAL["en"]["include"])
GUIDES = {
    language: {kind: (line, settings) for line, kind, settings in GUIDE.findall(topics["include"])}
    for language, topics in MANUAL.items()
}
TAG = '<script src="https://comments.example/loader.js" async></script>'
ELEMENT = re.compile("<commentd-thread.*?</commentd-thread>", re.S)
EMPTY = '<commentd-thread style="height: auto"></commentd-thread>'
END = TAG + "<p>{{now}} The end."
HOSTILE = '{{env "HOME"}} <!--#exec cmd="ls" --> <!--# env "HOME" --> <!--# echo var="uri" -->'
ENCODED = "/%E6%97%A5%E8%AE%B0/"
FRAGMENT = f"/fragment?lang=en&url={ENCODED}"


@contextlib.contextmanager
def blog(proxied_site: ProxiedSite, service: Service, public: Path) -> Iterator[Callable[..., str]]:
    """The text of a page, by its path, of a blog with these files, served as the guide says."""
    text = GUIDES["en"][proxied_site.kind][1].replace("127.0.0.1:8080", proxied_site.listen)
    if proxied_site.kind == "caddy":
        text = text.replace("/srv/kept", str(proxied_site.folder / "kept"))
        text = f"http://:{proxied_site.port} {{\nroot * {public}\n{text}}}\n"
    else:
        http, server = text.replace("/var/cache", str(proxied_site.folder)).split(
            "# In the block `s"
        )
        server = f"server {{ listen {proxied_site.port}; root {public};\n#{server} }}"
        text = f"types {{ text/html html; }}\n{http}{server}"
    readers = itertools.count()
    with proxied_site.proxy(service, edit=lambda _: text) as proxy:

        def shown(path: str, status: int = 200) -> str:
            """As another reader gets it each time."""
            encodings = f"Accept-Encoding: gzip, x-{next(readers)}"
            answer = proxy.ask("GET", path, encodings, "Authorization: Basic eDp5")
            assert answer.status == status
            body = answer.body
            if answer.headers["Content-Encoding"] == "gzip":
                body = gzip.decompress(body)
            return body.decode()

        yield shown


def age(cache: Path, seconds: int) -> None:
    """Makes all that nginx has in a cache older. The second number of a file says until when it is
    fresh."""
    for file in filter(Path.is_file, cache.rglob("*")):
        content = bytearray(file.read_bytes())
        version, fresh_until = struct.unpack_from("2q", content)
        struct.pack_into("2q", content, 0, version, fresh_until - seconds)
        file.write_bytes(content)


def keep(folder: Path, public: Path) -> None:
    """Runs what cron is to run for Caddy."""
    command = KEEP.replace("/srv/kept", str(folder / "kept"))
    command = command.replace("/srv/blog", str(public)).replace("/srv/commentd", str(folder))
    command = command.replace("commentd render", f"{shlex.join([sys.executable, *PROGRAM])} render")
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(["sh", "-c", command], env=environ, check=True)


class Failing(BaseHTTPRequestHandler):
    """What stands in front of a service and has none."""

    def do_GET(self) -> None:
        self.send_response(503)
        self.end_headers()
        self.wfile.write(b"a fault")

    def log_message(self, *args: object) -> None:
        pass


@contextlib.contextmanager
def failing(port: int) -> Iterator[None]:
    with ThreadingHTTPServer((ME, port), Failing) as server:
        threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
        yield
        server.shutdown()


@pytest.mark.parametrize("kind", PROXIES)
def test_pages_have_their_comments_as_the_manual_says(tmp_path: Path, kind: str) -> None:
    public = tmp_path / "public"
    for name in ("日记", "c++", "new"):
        (public / name).mkdir(parents=True)
        page = f"<!doctype html><html lang=en><body>{GUIDES['en'][kind][0]}{END}"
        new = public / name / "index.html"
        new.write_text(page, "utf-8")
    (public / "404.html").write_text("Not here.")
    with site(tmp_path, kind, "tcp") as proxied_site, services(tmp_path) as start:
        service = start(**proxied_site.settings("https://comments.example"))
        body = {**COMMENT, "page_url": "/日记/", "nickname": HOSTILE[:40], "content": HOSTILE}
        made = service.ask("POST", "/comments", body=body).json
        with blog(proxied_site, service, public) as shown:
            direct = service.ask("GET", FRAGMENT).body.decode().strip()
            assert HOSTILE in html.unescape(direct)
            assert not re.search("{|<!--", direct.partition("</style>")[2])
            for _ in range(2):
                thread, tag, end = shown(ENCODED).partition(END)
                place = thread.partition('<div id="comments">')[2].rpartition("</div>")[0]
                assert place.strip() == direct
                assert (tag, end) == (END, "")
            assert (EMPTY in shown("/c++/")) == (kind == "nginx")

            target = f"/comments/{made['comment']['id']}"
            service.ask("DELETE", target, body={"edit_token": made["edit_token"]})
            if kind == "nginx":  # which renews it for the next reader
                assert "&#123;env" in shown(ENCODED)
                age(tmp_path / "commentd", 301)
                assert "&#123;env" in shown(ENCODED)
                until(lambda: "&#123;env" not in shown(ENCODED))
            assert "&#123;env" not in shown(ENCODED)
            service.ask("POST", "/comments", body={**body, "content": "the last"})
            age(tmp_path / "commentd", 601)
            assert "the last" in shown(ENCODED)
            new.unlink()
            kept = tmp_path / "kept/日记/index.html"  # newer than the page of the blog
            kept.parent.mkdir(parents=True)
            kept.write_text("An older build.")
            keep(tmp_path, public)
            new.write_text(page, "utf-8")
            assert kind == "nginx" or shown("/none/", 404) == "Not here."

            def assert_shown_without_the_service() -> None:
                age(tmp_path / "commentd", 601)
                assert "the last" in shown(ENCODED)
                assert shown(ENCODED).endswith(END)
                thread = f'<div id="comments">\n{EMPTY}\n</div>\n'
                assert shown("/new/").split("<body>")[1] == thread + END

            service.process.send_signal(signal.SIGSTOP)
            # By itself, the proxy would wait a minute for each page.
            assert re.search(r"_(read|header)_timeout 2s", GUIDES["en"][kind][1])
            assert_shown_without_the_service()
            service.process.send_signal(signal.SIGCONT)
            service.stop()
            assert_shown_without_the_service()
            port = service.address.rpartition(":")[2]
            with failing(int(port)):
                assert_shown_without_the_service()


def test_both_languages_have_the_same_guides_for_servers() -> None:
    english, chinese = (
        re.sub("lang=[a-zA-Z-]+|# .*[:：]\n", "", "".join(itertools.chain(*guides.values())))
        for guides in (GUIDES["en"], GUIDES["zh"])
    )
    assert [*GUIDES["en"]] == ["nginx", "caddy"]
    assert english == chinese


@pytest.mark.long
@pytest.mark.parametrize("name", ["hugo-papermod", "hugo-doks", "hexo-fluid"])
def test_a_real_blog_gets_its_comments_too(
    tmp_path: Path, pytestconfig: pytest.Config, browser: Browser, name: str
) -> None:
    """Made by its generator, with its files made small where it can do that."""
    cache = pytestconfig.cache.mkdir("sites")
    for kind in PROXIES:
        folder = tmp_path / kind
        folder.mkdir()
        with site(folder, kind, "tcp") as proxied_site, services(folder) as start:
            address = proxied_site.listen.replace(ME, "http://comments.test")
            try:
                public = sites.make(cache, name, address)
            except sites.NotHere as error:
                pytest.skip(f"{name} can't be had: {error}")
            service = start(**proxied_site.settings(address))
            body = {**COMMENT, "page_url": sites.PATH, "content": HOSTILE}
            service.ask("POST", "/comments", body=body)
            packages = cache / "packages" / sites.SITES[name].generator
            opened = functools.partial(sites.opened, browser, packages, 390)
            with blog(proxied_site, service, public) as shown:
                url = f"http://blog.test:{proxied_site.port}{sites.PATH}"
                rebuild(cache / name, name, GUIDES["en"][kind][0].strip())
                assert_readable(shown(sites.PATH), url, opened, forms=1)
                keep(folder, public)
                service.stop()
                assert_readable(shown(sites.PATH), url, opened, forms=0)
                rebuild(cache / name, name, '<commentd-thread id="comments"></commentd-thread>')
                assert run_here(folder, "render", str(public))[0] == 0
                assert_readable(shown(sites.PATH), url, opened, forms=0)


def assert_readable(text: str, url: str, opened: Callable[..., Page], forms: int) -> None:
    """The comment is in the HTML, in a browser without scripts, and in one with the widget, where
    there are so many forms."""
    assert text.count("<commentd-thread") == text.count("</commentd-thread>") == 1
    assert HOSTILE in html.unescape(text)
    for has_scripts in (False, True):
        page = opened(java_script_enabled=has_scripts)
        page.goto(f"{url}#comments")
        expect(page.locator("commentd-thread form")).to_have_count(forms if has_scripts else 0)
        expect(page.locator("commentd-thread .head")).to_be_in_viewport()  # before one scrolls
        page.locator("commentd-thread").scroll_into_view_if_needed()
        expect(page.locator("commentd-thread .body")).to_have_text(HOSTILE, use_inner_text=True)
        page.context.close()


def rebuild(home: Path, name: str, line: str) -> None:
    """Builds a blog again, with this line where its template has the element."""
    build = sites.SITES[name].build
    if sites.SITES[name].generator == "hugo":
        line = f"{{{{ safeHTML `{line}` }}}}"
        build += " --minify"
    (source,) = (file for file in templates(home) if "commentd-" in file.read_text())
    text = source.read_text()
    source.write_text(ELEMENT.sub(lambda _: line, text))
    sites.run(build, home)
    source.write_text(text)


def templates(home: Path) -> Iterator[Path]:
    for part in ("layouts", "scripts"):
        yield from filter(Path.is_file, (home / part).rglob("*"))
