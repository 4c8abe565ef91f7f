"""nginx and Caddy before a service."""

import contextlib
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.client import COMMENT
from support.commands import run_here
from support.patience import PATIENCE
from support.service import (
    BLOG,
    CHUNKED,
    LOOPS,
    Answer,
    Service,
    answer_on,
    chunked,
    request,
    services,
)
from support.serving import until

HOST = "comments.example"  # as `request` says
PLACES = ":".join((os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin"))
NGINX = """
daemon off;
master_process off;  # as the user of the test, so that it may open the socket file
pid {0}/nginx.pid;
events {{}}
http {{
    gzip on;  # as Debian has it
    access_log off;
    client_body_temp_path {0}/bodies;
    proxy_temp_path {0}/replies;
    fastcgi_temp_path {0}/fastcgi;
    uwsgi_temp_path {0}/uwsgi;
    scgi_temp_path {0}/scgi;
    include {0}/printed.conf;
}}
"""

CADDY = """
{{
    admin off
    auto_https disable_redirects
    skip_install_trust
}}
import {0}/printed.conf
"""

PROXIES = {
    "nginx": (NGINX, "nginx -e {0}/proxy.log -c {0}/proxy.conf"),
    "caddy": (CADDY, "caddy run --adapter caddyfile --config {0}/proxy.conf"),
}

ME = "127.0.0.1"

# The block of a blog, for what goes under a prefix of it.
BLOCKS = {"nginx": "server {{\nserver_name {0};\nlisten {1};\n", "caddy": "http://{0}:{1} {{\n"}


@dataclass(frozen=True)
class Proxy:
    """A proxy, and how to connect to it. Each test has its own clients, with their own limits."""

    service: Service
    port: int
    prefix: str
    authority: ssl.SSLContext | None

    @contextlib.contextmanager
    def connect(self, client: str = ME) -> Iterator[socket.socket]:
        with contextlib.ExitStack() as stack:
            line = socket.create_connection((ME, self.port), PATIENCE, source_address=(client, 0))
            stack.enter_context(line)
            if self.authority:
                line = self.authority.wrap_socket(line, server_hostname=HOST)
                stack.enter_context(line)
            yield line

    def ask(self, method: str, target: str, *headers: str, client: str = ME, **more: Any) -> Answer:
        """`more`: a body, and a host if it is another one."""
        with self.connect(client) as line:
            line.sendall(request(method, self.prefix + target, *headers, **more))
            return answer_on(line, method)

    def say(self, content: str, *headers: str, client: str = ME) -> Answer:
        body = {**COMMENT, "content": content}
        return self.ask("POST", "/comments", *headers, client=client, body=body)


def kept_in(folder: Path, printed: str) -> str:
    """The settings, with the cache in that folder."""
    return printed.replace("/var/cache/", f"{folder}/")


@contextlib.contextmanager
def free_port() -> Iterator[int]:
    """A port that is reserved meanwhile, on which another program can listen."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("", 0))
        yield holder.getsockname()[1]


class ProxiedSite:
    """The addresses that a service and its proxy share."""

    def __init__(self, folder: Path, kind: str, transport: str, port: int, inner: int) -> None:
        self.folder, self.kind, self.port = folder, kind, port
        self.through = "unix" if transport == "unix" else ME
        self.listen = f"unix:{folder}/s" if transport == "unix" else f"{ME}:{inner}"

    def settings(self, url: str, trusted: str | None = None) -> dict[str, dict[str, str]]:
        named = self.through if trusted is None else trusted
        server = {"listen": self.listen, "public_url": url, "trusted_proxy": named}
        return {"server": server, "limits": {"enabled": "yes"}, "privacy": {"show_ip": "full"}}

    @contextlib.contextmanager
    def proxy(
        self,
        service: Service,
        prefix: str = "",
        edit: Callable[[str], str] = str,
        authority: ssl.SSLContext | None = None,
        named: tuple[str, ...] = (),
    ) -> Iterator[Proxy]:
        """The proxy, with what the program prints for its settings, or for those that are named."""
        code, printed, errors = run_here(self.folder, "example", self.kind, *named)
        assert (code, errors) == (0, "")
        main, command = (text.format(self.folder) for text in PROXIES[self.kind])
        printed = kept_in(self.folder, printed)
        if prefix:  # what is printed goes into the block of the blog
            printed = BLOCKS[self.kind].format(HOST, self.port) + printed + "}\n"
        (self.folder / "printed.conf").write_text(edit(printed))
        (self.folder / "proxy.conf").write_text(main)
        own = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(self.folder))
        proxy = Proxy(service, self.port, prefix, authority)
        path = self.folder / "proxy.out"
        with path.open("w") as out:
            process = subprocess.Popen(
                command.split(), env={**os.environ, **own, "PATH": PLACES}, stdout=out, stderr=out
            )

        def opened() -> bool:
            with contextlib.suppress(ConnectionError), proxy.connect():
                return True
            return process.poll() is not None

        try:
            until(opened)
            assert process.poll() is None, path.read_text()
            assert not re.search(r"\[(warn|error|emerg)\]|deprecated", path.read_text())
            yield proxy
        finally:
            process.terminate()
            process.wait(PATIENCE)


@contextlib.contextmanager
def site(folder: Path, kind: str, transport: str) -> Iterator[ProxiedSite]:
    if shutil.which(kind, path=PLACES) is None:
        pytest.skip(f"there is no {kind}: install Debian's package {kind}")
    with free_port() as port, free_port() as inner:
        yield ProxiedSite(folder, kind, transport, port, inner)


RARER = [("nginx", "unix", "/comments-of/"), ("caddy", "tcp", "/")]

MATRIX = [
    ("nginx", "tcp", "/", "fast"),
    ("caddy", "unix", "/comments-of/", "fast"),
    *(pytest.param((*transport, "fast"), marks=pytest.mark.long) for transport in RARER),
    pytest.param(("nginx", "tcp", "/", "stock"), marks=pytest.mark.long),
]


@pytest.fixture(scope="module", params=MATRIX, ids=lambda case: "-".join(case))
def proxy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    """A service behind each kind of proxy, for all tests that leave it unchanged."""
    kind, transport, path, loop = request.param
    prefix = path.rstrip("/")
    folder = tmp_path_factory.mktemp("front")
    with site(folder, kind, transport) as proxied_site, services(folder) as start:
        settings = proxied_site.settings(f"http://{HOST}:{proxied_site.port}{prefix}")
        settings["server"] |= LOOPS[loop]
        longest = {"max_length": "10000"}
        service = start(**settings, comments=longest, site={"origins": BLOG})
        with proxied_site.proxy(service, prefix) as proxy:
            yield proxy


SEEN = json.dumps({**COMMENT, "content": "seen"}).encode()
HIDDEN = request("POST", "/comments", body={**COMMENT, "content": "hidden"})
PLAIN = SEEN + HIDDEN
ENDED = chunked(SEEN) + HIDDEN  # for whoever counts chunks, the hidden one is a request
WHOLE = chunked(PLAIN)  # for whoever counts chunks, it is not
POST, OLD = "POST {0}/comments HTTP/1.1", "POST {0}/comments HTTP/1.0"
SIZE = f"{len(SEEN):x}".encode()
TE, CL = "Transfer-Encoding: ", "Content-Length: "
BOTH = CL + "4\r\n" + CHUNKED  # which RFC 9112 lets a server refuse, or read by the chunks
NOT_CHUNKED = ("xchunked", "gzip, chunked", "\x0bchunked")

# A request line, headers and a body. {0} is the prefix, {1} the length of the body, {2} that of its
# first part.
AMBIGUOUS: list[tuple[str, str, bytes]] = [
    *((POST, both, WHOLE) for both in (BOTH, CHUNKED + "\r\n" + CL + "4")),
    (POST, f"{CHUNKED}\r\n{CHUNKED}", ENDED),
    *((POST, f"{TE}{odd}\r\n{CL}{{1}}", ENDED) for odd in NOT_CHUNKED),
    *((POST, f"{odd}\r\n{CL}4", WHOLE) for odd in (TE + " CHUNKED ", TE + "\r\n chunked")),
    (POST, f"Transfer-Encoding : chunked\r\n{CL}{{1}}", ENDED),
    *((POST, CL + odd, PLAIN) for odd in ("+{2}", "0x{2}", "{2} 0", "{2}, {1}")),
    (POST, f"{CL}{{2}}\r\n{CL}{{1}}", PLAIN),
    (POST, f"Content_Length: {{2}}\r\n{CL}{{1}}", PLAIN),
    (OLD, CHUNKED, ENDED),
    (OLD, BOTH, WHOLE),
    *((POST, CHUNKED, ENDED.replace(SIZE, odd, 1)) for odd in (b"zz", b"-1", b"f" * 20)),
    (POST, CHUNKED, b"1\r\n" + SEEN + b"\r\n0\r\n\r\n" + HIDDEN),
    *((f"{line} HTTP/1.1", CL + "{1}", HIDDEN) for line in ("GET {0}/comments", "HEAD {0}/health")),
    ("GET {0}/%0d%0a%0d%0aGET%20/health HTTP/1.1", "x: y", b""),
]
