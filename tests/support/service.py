"""The program in a process of its own, over real sockets."""

import configparser
import contextlib
import http.client
import itertools
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
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import commentd
from commentd import Config, make_app
from support.client import COMMENT, PAGE, Visitor
from support.commands import PROGRAM
from support.database import assert_whole
from support.patience import PATIENCE
from support.serving import until
from support.sources import ROOT, STATIC
from support.world import FakeWorld

BLOG, FOREIGN = "https://blog.example", "https://evil.example"
LOGIN = {"email": "ann@example.com", "password": "wrong", "captcha_token": "x"}
POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; sandbox"
TWO_BLOGS = {"site_origins": (BLOG, "http://localhost:4000")}


@dataclass(frozen=True)
class Answer:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    method: str,
    target: str,
    *headers: str,
    body: bytes | dict[str, Any] = b"",
    host: str = "comments.example",
) -> bytes:
    """A request as it goes over the wire."""
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", *headers]
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
        self.settings = (folder / "commentd.ini").read_text()
        self.path, self.log = folder / parser["database"]["path"], folder / "log"
        self.begin(program, "--config", str(folder / "commentd.ini"))

    def begin(
        self, program: str, *arguments: str, folder: Path | None = None, **environ: str
    ) -> None:
        """Starts the process, in that folder."""
        home = Path(commentd.__file__).parent
        self.opened: list[socket.socket] = []
        what = ["-c", program] if program else PROGRAM
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("COMMENTD_")}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, *what, *arguments],
                env={**inherited, "PYTHONPATH": str(home), "PYTHONUNBUFFERED": "1", **environ},
                cwd=folder,
                stdout=log,
                stderr=log,
            )

    @property
    def output(self) -> str:
        return self.log.read_text()

    def greeted(self) -> "Service":
        greeting = re.compile(r"^commentd .* serves .* on (\S+)$", re.M)
        until(lambda: greeting.search(self.output) or self.process.poll() is not None)
        found = greeting.search(self.output)
        assert found, self.output
        self.address = found[1]
        return self

    def connect(self, ip: str = "") -> socket.socket:
        """`ip`: of the client; "" for the usual one."""
        unix = self.address.startswith("unix:")
        connection = socket.socket(socket.AF_UNIX if unix else socket.AF_INET)
        self.opened.append(connection)
        connection.settimeout(PATIENCE)
        host, _, port = self.address.removeprefix("http://").removeprefix("unix:").rpartition(":")
        if ip:
            connection.bind((ip, 0))
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

    def ask(self, method: str, target: str, *headers: str, **more: Any) -> Answer:
        """`more`: a body, and a host if it is another one."""
        return self.raw(request(method, target, *headers, **more))

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

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


def copied_program(folder: Path) -> str:
    """A script that starts a copy of the program, with files of its own in a new folder."""
    shutil.copytree(STATIC, folder / "static")
    shutil.copy(ROOT / "commentd.py", folder)
    return f"import sys; sys.path.insert(0, {str(folder)!r}); import commentd; commentd.main()"


def held_descriptors(service: Service) -> int:
    """The number of its sockets and temporary files."""
    process = Path(f"/proc/{service.process.pid}")
    if not process.exists():
        pytest.skip("this system has no /proc")
    links = []
    for link in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            links.append(os.readlink(link))
    return sum("socket:" in link or "(deleted)" in link for link in links)


def held_at_rest(service: Service) -> int:
    """The same of a service that only listens."""
    assert service.ask("GET", "/health").status == 200  # the event loop runs
    until(lambda: held_descriptors(service) == 1)
    return 1


def memory(service: Service) -> int:
    """In MiB."""
    status = Path(f"/proc/{service.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with services(tmp_path) as start:
        yield start


LOOPS = {"fast": {"fast": "yes"}, "stock": {"fast": "no"}}


def padded(size: int) -> bytes:
    """A comment in a body of exactly this size."""
    return json.dumps(COMMENT).encode().ljust(size)


def chunked(body: bytes) -> bytes:
    pieces = [body[i : i + 5000] for i in range(0, len(body), 5000)]
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"


AS_JSON, CHUNKED = "Content-Type: application/json", "Transfer-Encoding: chunked"
LIST = request("GET", f"/comments?url={PAGE}&limit=100")


def rows(service: Service, sql: str) -> list[Any]:
    with closing(sqlite3.connect(service.path)) as db:
        return db.execute(sql).fetchall()


@contextmanager
def visiting(config: Config, fake_world: FakeWorld, **settings: Any) -> Iterator[Visitor]:
    with closing(make_app(replace(config, **settings), fake_world.world, rounds=1)) as app:
        yield Visitor(app)


class Writer(threading.Thread):
    """Posts comments, and edits each second one. It knows what was answered with 200."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(name=name)
        self.service = service
        self.kept: dict[int, str] = {}  # the texts of comments; until an edit is answered, neither
        self.writes = 0

    def run(self) -> None:
        with suppress(OSError, http.client.HTTPException), self.service.connect() as connection:
            self.connection = connection
            for number in itertools.count():
                text = f"{self.name} {number}"
                body = {**COMMENT, "page_url": f"/{number % 7}/", "content": text}
                response = self.ask("POST", "/comments", **body)
                made = response["comment"]["id"]
                self.kept[made] = text
                if number % 2:
                    del self.kept[made]
                    form = {"content": f"edited {text}", "edit_token": response["edit_token"]}
                    self.ask("PATCH", f"/comments/{made}", **form)
                    self.kept[made] = f"edited {text}"

    def ask(self, method: str, path: str, **body: Any) -> Any:
        self.connection.sendall(request(method, path, body=body))
        answer = answer_on(self.connection)
        assert answer.status == 200, (path, body, answer)
        self.writes += 1
        return answer.json


HEALTH = request("GET", "/health")
LIKE = b'{"page_url": "/liked/"}'
LIKED = request("POST", "/page/like", AS_JSON, body=LIKE)


def with_comments(path: str | Path, size: int) -> None:
    """A page whose list is a hundred comments of this size."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "INSERT INTO page (key, page_url, total, threads, seen_at) VALUES (?, ?, 100, 100, 1)",
            (PAGE.rstrip("/"), PAGE),
        )
        db.execute(
            """INSERT INTO comment (page_id, nickname, email, website, content, html, ip, country,
                      location, shown, status, created_at)
               WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
               SELECT 1, 'Ann', '', '', 'x', ?, '', '', '', 1, 'visible', 1700000000 + i FROM n""",
            ("x" * size,),
        )


HEAD = LIKED.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

PARTS_OF_REQUESTS = {
    "request line": b"GET /comm",
    "headers": b"GET /health HTTP/1.1\r\nHost: x\r\nX: ",
    "body": HEAD,
    "a second request": HEALTH + b"GET /comm",
}


def reset_connection(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


PIECES = [
    b"GET",
    b"POST",
    b"HEAD",
    b" ",
    b"/",
    b"/comments",
    b"?url=/x&page=",
    b"1",
    b"-1",
    b"*",
    b" HTTP/1.1\r\n",
    b" HTTP/1.0\r\n",
    b" HTTP/9.9\r\n",
    b"http://[x",
    b"//",
    b"#",
    b"%",
    b"\r\n",
    b"\n",
    b"\r",
    b"\0",
    b":",
    b"\xff",
    b"Host: x\r\n",
    b"{}",
    b"X: \x80\r\n",
    b"\t",
    b"Content-Length: 2\r\n",
    b"Content-Length: 1_0\r\n",
    b"5\r\n{   }\r\n0\r\n",
    b";x=y",
    b"Content-Type: application/json\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"0\r\n\r\n",
    b"Expect: 100-continue\r\n",
    b"Origin: null\r\n",
    b"Authorization: Bearer x\r\n",
    b" folded\r\n",
    b"Content-Length: %d\r\n" % 2**70,
    b"fffffff\r\n",
    b"\r\n\r\n",
    b"%00%ff",
    b"Connection: close\r\n",
    b"Upgrade: h2c\r\n",
    b"X: " + b"x" * 17_000,
    b"/" * 9_000,
]
