"""A blog, a proxy before the service and a DNS, each with the mistakes that owners make, for
test_inspection.py."""

import contextlib
import http.client
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from support.mail import tls
from support.service import Service

BLOG, WWW, COMMENTS = "https://blog.example", "https://www.blog.example", "https://comments.example"
POST = f"{BLOG}/2026/hello/"
HOSTS = ("blog.example", "www.blog.example", "comments.example")
UNCERTIFIED = "uncertified.example"  # has no certificate
TAG = f'<script src="{COMMENTS}/embed.js" async></script>'
CANONICAL = f'<link rel="canonical" href="{POST}">'

Headers = dict[str, str]


@dataclass(frozen=True)
class Asked:
    """A request as it reaches the proxy. The names of headers are in lower case."""

    method: str
    path: str
    headers: Headers
    body: bytes
    reader: str = "203.0.113.9"
    proxy: str = "127.0.0.2"  # from where it is passed on: the service trusts this one


@dataclass(frozen=True)
class Sent:
    """A response. Headers may come twice."""

    status: int = 200
    headers: tuple[tuple[str, str], ...] = (("content-type", "text/html; charset=utf-8"),)
    body: bytes = b""

    def with_header(self, name: str, value: str) -> "Sent":
        return replace(self, headers=(*self.headers, (name, value)))

    def without(self, name: str) -> "Sent":
        return replace(self, headers=tuple(each for each in self.headers if each[0] != name))


PassOn = Callable[[Asked], Sent]
Way = Callable[[Asked, PassOn], Sent]  # what a proxy does with a request


def page(body: str = TAG, head: str = CANONICAL) -> str:
    """The HTML of a post. The end tags that minifiers leave out are left out."""
    return f"<!doctype html><html lang=en><head><title>Hello</title>{head}<body><p>Text.{body}"


def named_as(asked: Asked, *hops: str) -> Asked:
    return replace(asked, headers=asked.headers | {"x-forwarded-for": ", ".join(hops)})


def honest(asked: Asked, pass_on: PassOn) -> Sent:
    """As `commentd example nginx` does it."""
    before = asked.headers.get("x-forwarded-for")
    return pass_on(named_as(asked, *([before] if before else []), asked.reader))


@dataclass
class Place:
    """What the blog serves, and what the proxy does."""

    scheme: str = "https"
    upstream: int = 0
    pages: dict[str, Sent] = field(default_factory=dict)  # by URL
    way: Way = honest
    asked: list[str] = field(default_factory=list)  # all URLs

    def post(self, html: str, *headers: tuple[str, str]) -> None:
        sent = Sent(body=html.encode())
        self.pages[POST] = replace(sent, headers=sent.headers + headers)

    def respond(self, host: str, asked: Asked) -> Sent:
        url = f"{self.scheme}://{host}{asked.path}"
        self.asked.append(url)
        if host == "comments.example":
            return self.way(asked, self.pass_on)
        if asked.headers.get("accept") != "text/html":
            return Sent(406)  # as by servers that have a page in several formats
        return self.pages.get(url, Sent(404))

    def pass_on(self, asked: Asked) -> Sent:
        """To the real service."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.upstream, source_address=(asked.proxy, 0)
        )
        try:
            connection.request(asked.method, asked.path, asked.body or None, asked.headers)
            response = connection.getresponse()
            kept = [
                (name.lower(), value)
                for name, value in response.getheaders()
                if name.lower() not in ("connection", "content-length", "date", "server")
            ]
            return Sent(response.status, tuple(kept), response.read())
        finally:
            connection.close()


def handler_of(place: Place) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            size = int(headers.get("content-length", 0))
            asked = Asked(self.command, self.path, headers, self.rfile.read(size))
            sent = place.respond(headers["host"], asked)
            self.send_response(sent.status)
            for name, value in sent.headers:
                self.send_header(name, value)
            self.send_header("content-length", str(len(sent.body)))
            self.end_headers()
            with contextlib.suppress(OSError):  # nobody reads a page to its end that is too long
                self.wfile.write(sent.body)

        do_POST = do_OPTIONS = do_GET

        def log_message(self, *words: object) -> None:
            """Nothing."""

    return Handler


@contextmanager
def serving(place: Place, certificate: tuple[str, str] | None = None) -> Iterator[int]:
    """Serves all hosts, by https if there is a certificate; the port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(place)) as server:
        if certificate:
            server.socket = tls(certificate).wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def dns_to(port: int) -> Callable[..., Any]:
    """A `getaddrinfo` that leads these hosts to this machine, https of them to that port."""
    real = socket.getaddrinfo

    def find(host: str, asked_port: int, *how: Any, **more: Any) -> Any:
        if host in (*HOSTS, UNCERTIFIED) and asked_port != 80:
            return real("127.0.0.1", port if asked_port == 443 else asked_port, *how, **more)
        if host.endswith(".example"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real(host, asked_port, *how, **more)

    return find


def service_settings() -> dict[str, dict[str, str]]:
    """Those of a service that readers reach at COMMENTS, for the blog at BLOG."""
    return {
        "server": {"listen": "127.0.0.1:0", "public_url": COMMENTS, "trusted_proxy": "127.0.0.2"},
        "site": {"origins": BLOG},
    }


def port_of(service: Service) -> int:
    return int(service.address.rpartition(":")[2])


# What proxies and caches do wrong


def changed(change: Callable[[Sent], Sent], *paths: str) -> Way:
    """Changes the responses for paths that begin so; all if none are named."""

    def way(asked: Asked, pass_on: PassOn) -> Sent:
        sent = honest(asked, pass_on)
        return change(sent) if asked.path.startswith(paths or "/") else sent

    return way


def in_place(sent: Sent, *paths: str) -> Way:
    """Responds itself for these paths."""
    return changed(lambda _: sent, *paths)


def without_cors(sent: Sent) -> Sent:
    return sent.without("access-control-allow-origin")


def cors_twice(sent: Sent) -> Sent:
    return sent.with_header("access-control-allow-origin", "*")


def cors_of_another(sent: Sent) -> Sent:
    return without_cors(sent).with_header("access-control-allow-origin", "https://other.example")


def without_preflights(asked: Asked, pass_on: PassOn) -> Sent:
    return Sent(405) if asked.method == "OPTIONS" else honest(asked, pass_on)


def by_a_proxy_that_knows_preflights(asked: Asked, pass_on: PassOn) -> Sent:
    """It passes on what fetch.spec.whatwg.org/#cors-preflight-fetch describes, and nothing else."""
    preflight = {
        "origin": BLOG,
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    if asked.method == "OPTIONS" and not asked.headers.items() >= preflight.items():
        return Sent(400)
    return honest(asked, pass_on)


def without_reader(asked: Asked, pass_on: PassOn) -> Sent:
    return pass_on(asked)


def by_two_proxies(asked: Asked, pass_on: PassOn) -> Sent:
    before = asked.headers.get("x-forwarded-for")
    return pass_on(named_as(asked, *([before] if before else []), asked.reader, "198.51.100.4"))


def by_two_proxies_that_know_readers(asked: Asked, pass_on: PassOn) -> Sent:
    """The second one learns who reads from the first one, as with `real_ip_header` of nginx."""
    before = asked.headers.get("x-forwarded-for")
    return pass_on(named_as(asked, *([before] if before else []), asked.reader, asked.reader))


def by_a_cdn_that_replaces(asked: Asked, pass_on: PassOn) -> Sent:
    named = replace(asked, headers=asked.headers | {"cf-connecting-ip": asked.reader})
    return pass_on(named_as(named, "198.51.100.4"))


def by_an_unnamed_proxy(asked: Asked, pass_on: PassOn) -> Sent:
    return honest(replace(asked, proxy="127.0.0.1"), pass_on)


def by_an_unnamed_socket_file(asked: Asked, pass_on: PassOn) -> Sent:
    """A service behind one sees no IP address of its proxy."""
    sent = by_an_unnamed_proxy(asked, pass_on)
    return replace(sent, body=sent.body.replace(b'"peer":"127.0.0.1"', b'"peer":""'))


def by_three_proxies(asked: Asked, pass_on: PassOn) -> Sent:
    """The last of them is named in the settings, as a second address of the service's own proxy."""
    before = asked.headers.get("x-forwarded-for")
    hops = [*([before] if before else []), asked.reader, "198.51.100.4", "127.0.0.2"]
    return pass_on(named_as(asked, *hops))


def keeping(key: Callable[[str], str]) -> Way:
    """A cache that keeps all; `key`: what it takes of a path."""
    kept: dict[str, Sent] = {}

    def way(asked: Asked, pass_on: PassOn) -> Sent:
        name = f"{asked.method} {key(asked.path)}"
        if name not in kept:
            kept[name] = honest(asked, pass_on)
        return kept[name]

    return way


def kept_for_hours(sent: Sent) -> Sent:
    return sent.without("cache-control").with_header("cache-control", "max-age=14400")


def of_another_version(sent: Sent) -> Sent:
    marker = b'const ASSETS_VERSION = "'
    before, _, after = sent.body.partition(marker)
    return replace(sent, body=before + marker + b"00000000" + after[8:])


def by_a_cache_for_each_origin(asked: Asked, pass_on: PassOn) -> Sent:
    """It heeds Vary, and has the script of a former version for tags, which name no origin."""
    sent = honest(asked, pass_on)
    is_for_tag = asked.path == "/embed.js" and "origin" not in asked.headers
    return of_another_version(sent) if is_for_tag else sent


def same_origin_only(sent: Sent) -> Sent:
    name = "cross-origin-resource-policy"
    return sent.without(name).with_header(name, "same-origin")


def resource_policy_twice(sent: Sent) -> Sent:
    return sent.with_header("cross-origin-resource-policy", "cross-origin")


def without_resource_policy(sent: Sent) -> Sent:
    return sent.without("cross-origin-resource-policy")
