"""How fast the service is, its lists beside nginx, as Markdown tables; run by hand:
`python tests/bench/bench_http.py listings`, or `mixed`, or `writing`.

Each server runs in its own process and is driven by wrk with one thread, by the same command and
eight browser headers. All share this machine and take turns within a run; figures are medians of
the turns, and those that differ by 15 % are equal. CPU ms: of the server, for a request."""

import argparse
import http.client
import json
import os
import re
import resource
import shutil
import socket
import sqlite3
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlsplit

HOME = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HOME), str(HOME / "tests")]

import bench_servers as servers  # noqa: E402
from bench_servers import TEXT, Figures, Peer, fetched, heading, line, loaded, shown  # noqa: E402

from commentd import Config, make_app, safe_html  # noqa: E402
from support import inside  # noqa: E402

PAGES = range(1, 1000)  # of ten comments each; one of more is page 1000 and so many
SMALL = dict.fromkeys(PAGES, 10)
UNLIMITED = "[limits]\nenabled=no\n"  # so that each request counts a view
ACCOUNTS, KEY = 5, "0123456789abcdef" * 4
SCREEN = "/comments?limit=10&url=/p/{page}"
# The second screen of a page counts no view, so that it stays as it is.
SECOND = "/comments?limit=10&url=/p/1100&page=2"
BODY = f"""{{"page_url": "/p/{{page}}", "nickname": "Ann", "content": "{{number}} {TEXT}",
    "captcha_token": "x"}}"""
PROGRAM = (Path(sys.executable).with_name("commentd"),)  # as the README starts it

COLUMNS = "requests/s", "p50 ms", "p99 ms", "CPU ms"
Found = dict[Any, list[Figures]]
Start = tuple[Path, int, Sequence[str | Path]]  # the folder, the port, the command


def in_turns(options: argparse.Namespace, places: Any, work: Callable[..., Figures]) -> Found:
    found: Found = defaultdict(list)
    for _, place in product(range(options.turns), list(places)):
        found[place].append(work(*place))
    return found


def middle(turns: list[Figures]) -> Figures:
    return Figures(*map(median, zip(*turns, strict=True)))


# The service, and what is in it


def fill(path: Path, sizes: dict[int, int]) -> None:
    """A file with so many comments on each page."""
    make_app(Config(database_path=str(path))).close()
    with closing(sqlite3.connect(path)) as db, db:
        pages = [(page, f"/p/{page}", f"/p/{page}/") for page in sizes]
        db.executemany("INSERT INTO page (id, key, page_url, seen_at) VALUES (?, ?, ?, 1)", pages)
        sql = f"""INSERT INTO comment (id, page_id, parent_id, thread_id, nickname, content, html,
                created_at, email, website, ip, country, location, shown, status)
            VALUES (?1, ?2, ?3, ?3, 'Reader ' || ?1, '{TEXT}', '{safe_html(TEXT)}',
                1700000000 + ?1, '', '', '203.0.113.7', 'CN', '浙江 杭州', 1, 'visible')"""
        db.executemany(sql, servers.comments_of(sizes))
        db.execute("UPDATE comment SET replies = 1 WHERE id IN (SELECT parent_id FROM comment)")
        sums = "SELECT count(*), count(*) - count(parent_id) FROM comment WHERE page_id = page.id"
        db.execute(f"UPDATE page SET (total, threads) = ({sums})")


def prepared(stack: ExitStack, sizes: dict[int, int], settings: str) -> Start:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    port = servers.free_port()
    usual = f"[captcha]\nprovider=none\n[token]\nkey={KEY}\n[server]\nlisten=127.0.0.1:{port}\n"
    (folder / "commentd.ini").touch(0o600)
    (folder / "commentd.ini").write_text(usual + settings)
    fill(folder / "commentd.db", sizes)
    return folder, port, PROGRAM


def ours(stack: ExitStack, start: Start) -> Peer:
    pid = stack.enter_context(servers.running(*start))
    return Peer(pid, f"http://127.0.0.1:{start[1]}", SCREEN, "/comments", BODY)


# Listings


def screen(peer: Peer, size: int, connections: int, seconds: int) -> Figures:
    """The first screen of a page with so many comments; 0: one that did not change."""
    path = peer.screen
    if not size:
        path = SECOND if peer.screen == SCREEN else "/p/0"
    elif size > 10:
        path = path.replace("{page}", str(1000 + size))
    known = "" if size else fetched(peer.address, path)[1].get("Etag", "")
    if not size and fetched(peer.address, path, **{"If-None-Match": known})[0] != 304:
        return Figures()
    unchanged: dict[str, Any] = {"If-None-Match": known} if known else {}
    return loaded(peer, path, connections, seconds, **unchanged)()


def listings(options: argparse.Namespace, stack: ExitStack) -> None:
    sizes = SMALL | {1000 + size: size for size in [100, *options.sizes] if size > 10}
    peers = {
        "**commentd**": ours(stack, prepared(stack, sizes, "")),
        "commentd, each counts a view": ours(stack, prepared(stack, sizes, UNLIMITED)),
    }
    paths = {page: SCREEN.replace("{page}", str(page)) for page in sizes} | {0: SECOND}
    address = peers["**commentd**"].address
    answers = {f"p/{page}": fetched(address, path) for page, path in paths.items()}
    peers |= {name: servers.nginx(stack, name, answers) for name in NGINX}
    names = [name for name in peers if options.only.search(name)]
    every = product(options.sizes, options.connections, names)
    places = [each for each in every if each[0] or each[2] in NGINX + OURS]

    def turn(size: int, connections: int, name: str) -> Figures:
        return screen(peers[name], size, connections, options.seconds)

    found = in_turns(options, places, turn)
    heading("Comments", "connections", "server", *COLUMNS, "of nginx", words=3)
    for (size, connections, name), turns in found.items():
        rivals = [found[size, connections, other] for other in NGINX[:2] if other in names]
        pairs = zip(turns, zip(*rivals, strict=True), strict=True) if rivals else ()
        parts = [mine.rate / max(each.rate for each in best) for mine, best in pairs]
        part = f"{shown(100 * median(parts))} %" if parts else ""
        line(size or UNCHANGED, connections, name, middle(turns), part)


OURS = "**commentd**", "commentd, each counts a view"
# The better of the first two, which are as Debian has it, is what others are compared with.
NGINX = "nginx", "nginx, one worker", "nginx, tuned"
UNCHANGED = "10, unchanged"


# Mixed


@contextmanager
def sign_ins(peer: Peer) -> Iterator[None]:
    """200 readers sign in at once, and again after two seconds if the response is 503."""
    over = threading.Event()

    def sign_in(number: int) -> None:
        form = {"email": f"{number % ACCOUNTS}@a.test", "password": "x", "captcha_token": "x"}
        headers, status = {"Content-Type": "application/json"}, 503
        while status == 503 and not over.is_set():
            with closing(http.client.HTTPConnection(urlsplit(peer.address).netloc)) as server:
                server.request("POST", "/auth/login", json.dumps(form), headers)
                status = server.getresponse().status
            over.wait(2 * (status == 503))

    with ThreadPoolExecutor(200) as readers:
        readers.map(sign_in, range(200))
        try:
            yield
        finally:
            over.set()


@contextmanager
def crowd(peer: Peer, silent: int, dripping: int = 0) -> Iterator[None]:
    """So many connections are silent, and so many send a byte a second."""
    place, over = urlsplit(peer.address), threading.Event()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4000, 4000))  # the usual limit is 1024
    with ExitStack() as stack, ThreadPoolExecutor(1) as thread:
        lines = [
            stack.enter_context(socket.create_connection((place.hostname, place.port)))
            for _ in range(silent + dripping)
        ]

        def drip() -> None:
            while not over.wait(1):
                for connection in lines[silent:]:
                    with suppress(OSError):  # the service has closed it
                        connection.send(b"G")

        thread.submit(drip)
        try:
            yield
        finally:
            over.set()


# Reads and writes a second (0: as many as it takes), and what happens meanwhile.
LOADS: dict[str, tuple[int, int, Callable[[Peer], Any]]] = {
    "": (3800, 200, nullcontext),
    "only 50 writes and 1 000 reads a second": (1000, 50, nullcontext),
    "as many as it takes": (0, 0, nullcontext),
    "200 sign-ins at once": (3800, 200, sign_ins),
    "1 000 silent connections": (3800, 200, lambda peer: crowd(peer, 1000)),
    "500 silent and 400 dripping ones": (3800, 200, lambda peer: crowd(peer, 500, 400)),
    "the same, with only 100 reads and 5 writes": (100, 5, lambda peer: crowd(peer, 500, 400)),
}


def mixed(options: argparse.Namespace, stack: ExitStack) -> None:
    """One wrk reads and another writes, each with so many connections."""
    place = prepared(stack, SMALL, UNLIMITED)
    config = Config(database_path=str(place[0] / "commentd.db"), token_key=KEY)
    with closing(make_app(config)) as app:
        for number in range(ACCOUNTS):
            inside.add_account(app, f"{number}@a.test", "Ann", "x")
    peer, posted = ours(stack, place), Found()

    def turn(connections: int, load: str) -> Figures:
        *rates, beside = LOADS[load]
        read_wait, write_wait = (rate and 1000 * connections / rate for rate in rates)
        usual = connections, options.seconds
        for page in PAGES:  # the lists are cached before anybody writes
            fetched(peer.address, SCREEN.replace("{page}", str(page)))
        with beside(peer):
            getting = loaded(peer, peer.screen, *usual, wait=read_wait)
            posting = loaded(peer, peer.write, *usual, peer.body, wait=write_wait)
            gets = getting()
            posted.setdefault((connections, load), []).append(posting())
        return gets

    found = in_turns(options, product(options.connections, LOADS), turn)
    reads, writes = ("reads a second", "p50 ms", "p99 ms"), ("writes a second", "p99 ms", "share")
    heading("Connections", *reads, *writes, "beside")
    for place, turns in found.items():
        gets, posts = middle(turns), middle(posted[place])
        share = f"{100 * posts.rate / (gets.rate + posts.rate):.1f} %"
        cells = [shown(posts.rate), f"{posts.p99:.2f}", share, place[1]]
        line(place[0], *str(gets).split(" | ")[:3], *cells)


# Writing


def writing(options: argparse.Namespace, stack: ExitStack) -> None:
    peer = ours(stack, prepared(stack, SMALL, UNLIMITED))

    def turn(connections: int) -> Figures:
        return loaded(peer, peer.write, connections, options.seconds, peer.body)()

    heading("Connections", *COLUMNS)
    for place, turns in in_turns(options, product([1, *options.connections]), turn).items():
        line(*place, middle(turns))


TABLES = {table.__name__: table for table in (listings, mixed, writing)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--only", type=re.compile, default="", help="servers with this pattern")
    sizes: Any = {"nargs": "+", "type": int, "metavar": "N"}
    parser.add_argument("--sizes", default=[0, 10, 100, 1000, 10_000], help="of pages", **sizes)
    parser.add_argument("--connections", default=[16, 128], **sizes)
    parser.add_argument("--seconds", type=int, default=3, help="for each turn")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is missing: on Debian, apt install wrk")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it compiles once, as everywhere else
    with ExitStack() as stack:
        TABLES[options.table](options, stack)


if __name__ == "__main__":
    main()
