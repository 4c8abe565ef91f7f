"""How fast the service is, its lists beside nginx, as Markdown tables; run by hand:
`python tests/bench_http.py listings`, or `mixed`, `writing`, `growth`, `start`, `flood`.

Each server runs in its own process and is driven by wrk with one thread, by the same command and
eight browser headers. All share this machine and take turns within a run; figures are medians of
the turns, and those that differ by 15 % are equal. CPU ms: of the server, for a request."""

import argparse
import contextlib
import http.client
import itertools
import json
import os
import random
import re
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from itertools import product
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from urllib.parse import urlsplit

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

import bench_servers as servers  # noqa: E402
import inside  # noqa: E402
from bench_servers import TEXT, Peer, cpu_seconds, fetched, memory  # noqa: E402

from commentd import Config, make_app, safe_html  # noqa: E402

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

SCRIPT = """
wrk.headers["Accept"] = "application/json"
wrk.headers["Accept-Encoding"] = "gzip, deflate, br"
wrk.headers["Accept-Language"] = "en-GB,en;q=0.9"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Origin"] = "https://blog.example"
wrk.headers["Referer"] = "https://blog.example/"
local ready, number, path, wait, body = {}, 0
local function filled(text)
  return (text:gsub("{page}", math.random(999)):gsub("{number}", number)
    :gsub("{any}", math.random(1e9)))
end
local function made()
  number = number + 1
  wrk.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Firefox/" .. number
  return wrk.format(body and "POST", filled(path), nil, body and filled(body))
end
function init(args)
  path, wait, body = args[1], args[3] + 0, args[4]
  math.randomseed(args[2] + 0)
  for each = 1, (body or path:find("{any}")) and 0 or 2000 do ready[each] = made() end
  -- Clients come by chance. With equal waits, all connections would send at the same moment.
  local function by_chance() return math.floor(0.5 - wait * math.log(1 - math.random())) end
  if wait > 0 then delay = by_chance end
end
function request()
  return #ready > 0 and ready[math.random(#ready)] or made()
end
function done(summary, latency)
  local errors = summary.errors
  print(string.format("[%f, %f, %f, %d, %d]", summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, summary.requests,
    errors.connect + errors.status + errors.read + errors.timeout))
end
"""


class Figures(NamedTuple):
    rate: float = 0
    p50: float = 0
    p99: float = 0
    cpu: float = 0
    failed: float = 0

    def __str__(self) -> str:
        failed = f" ({self.failed:.0f} failed)" if self.failed else ""
        times = f"{self.p50:.2f} | {self.p99:.2f} | {self.cpu:.3f}"
        return f"{shown(self.rate)} | {times}{failed}"


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


def shown(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ") if number >= 10 else f"{number:.2g}"


def line(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def heading(*cells: str, words: int = 1) -> None:
    print()
    line(*cells)
    line(*["---"] * words, *["--:"] * (len(cells) - words))


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


# One turn


def loaded(
    peer: Peer, path: str, clients: int, seconds: int, body: str = "", wait: float = 0, **more: str
) -> Callable[[], Figures]:
    """Starts wrk; what is returned waits for its end, and until the server has done what nobody
    waits for any more."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua", delete=False) as script:
        script.write(SCRIPT)
    load = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout", "30"]
    load += [word for header in more.items() for word in ("-H", ": ".join(header))]
    load += ["-s", script.name, f"{peer.address}/", path, str(random.randrange(1 << 30)), str(wait)]
    before = cpu_seconds(peer.pid)
    wrk = subprocess.Popen(load + [body] * bool(body), stdout=subprocess.PIPE, text=True)

    def ended() -> Figures:
        rate, p50, p99, requests, failed = json.loads(wrk.communicate()[0].splitlines()[-1])
        used, ends_at, seen = cpu_seconds(peer.pid), time.monotonic() + 60, -1.0
        Path(script.name).unlink()
        while cpu_seconds(peer.pid) > seen + 0.02 and time.monotonic() < ends_at:
            seen = cpu_seconds(peer.pid)
            time.sleep(0.1)
        cpu = (used - before) * 1000 / max(1, requests)
        return Figures(rate, p50, p99, cpu, failed)

    return ended


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
    unchanged = {"If-None-Match": known} if known else {}
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
        loaded(peer, peer.screen, connections, 1)()  # the lists are cached before anybody writes
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


# Writing, growth, start


def writing(options: argparse.Namespace, stack: ExitStack) -> None:
    peer = ours(stack, prepared(stack, SMALL, UNLIMITED))

    def turn(connections: int) -> Figures:
        return loaded(peer, peer.write, connections, options.seconds, peer.body)()

    heading("Connections", *COLUMNS)
    for place, turns in in_turns(options, product([1, *options.connections]), turn).items():
        line(*place, middle(turns))


def growth(options: argparse.Namespace, stack: ExitStack) -> None:
    """One connection; each request is spelt anew, so that no answer lies ready."""
    for comments in options.comments:
        pages = {1000 + n: n for n in (10, 1000, 10_000, 100_000) if n < comments / 2}
        rest = dict.fromkeys(PAGES, (comments - sum(pages.values())) // len(PAGES))
        place = prepared(stack, pages | rest, UNLIMITED + "[backup]\nevery=0\n")
        starts = [first_answer(place, SCREEN).rate for _ in range(options.turns)]
        peer, counts = ours(stack, place), "".join(f"&url=/p/{n}" for n in range(1, 101))
        rows = [("counts of 100 pages", "/pages?x={any}" + counts, "")]
        rows += [("a like", "/comment/like", '{"id": {number}}')]
        for page, size in pages.items():
            for name, number in {"first": 1, "middle": size // 20, "last": size // 10}.items():
                path = f"/comments?limit=10&url=/p/{page}&page={number or 1}&x={{any}}"
                rows += [(f"{name} screen of {shown(size)}", path, "")]
            if size >= 10_000:
                path = path.replace(f"page={size // 10}", "page={page}" + "0" * (size // 100_000))
                rows += [(f"any screen of {shown(size)}", path, "")]
        sums = [memory(peer.pid)]
        found = in_turns(options, [(options.seconds, peer, *row) for row in rows], uncached)
        sums += [memory(peer.pid), (place[0] / "commentd.db").stat().st_size >> 20]
        heading(f"{shown(comments)} comments in one file", *COLUMNS)
        for (_, _, name, _, _), turns in found.items():
            line(name, middle(turns))
        summary = "start: {:.0f} ms; MB after it: {:.0f}, at the end: {:.0f}; of the file: {}"
        line(summary.format(median(starts), *sums), "", "", "", "")
        stack.close()


def uncached(seconds: int, peer: Peer, _: str, path: str, body: str) -> Figures:
    return loaded(peer, path, 1, seconds, body)()


def first_answer(place: Start, path: str) -> Figures:
    """ms from the command to the first answer, and CPU ms, MB, and MB without what is shared."""
    begun = time.monotonic()
    with servers.running(*place) as pid:
        assert fetched(f"http://127.0.0.1:{place[1]}", path.replace("{page}", "1"))[0] == 200
        took = (time.monotonic() - begun) * 1000
        shares = memory(pid, "smaps_rollup", "Pss")
        return Figures(took, cpu_seconds(pid) * 1000, memory(pid), shares)


def start(options: argparse.Namespace, stack: ExitStack) -> None:
    """With one page of ten comments."""
    place = prepared(stack, {1: 10}, ""), SCREEN
    found = in_turns(options, [place], first_answer)
    heading("Start", "ms to the first answer", "CPU ms", "MB (VmRSS)", "MB (Pss)")
    line(OURS[0], *map(shown, middle(found[place])[:4]))
    line("`python -c pass`", shown(middle(in_turns(options, [()], nothing)[()]).rate), "", "", "")


def nothing() -> Figures:
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return Figures((time.monotonic() - begun) * 1000)


# Floods: one client sends as much as it can, and another reads and likes as a reader does.

LONG = "/comments?url=/p/101000"  # a page of a hundred thousand comments
FLOODS = {  # how many connections, and what is sent on each
    "nothing": (0, "", ""),
    "unknown parameters": (200, f"{LONG}&view=threads&limit=100&nothing={{any}}", ""),
    "large responses": (16, f"{LONG}&limit=100&page={{page}}&sort=oldest", ""),
    "large bodies": (64, "/comment/like", "[" + "{}," * 16_000 + "{}]"),
    "connections": (900, f"{LONG}&limit=1&page={{page}}", ""),
}
READS = "/comments?url=/p/1&page=2", "/comments?url=/p/{page}&limit=9&page=2"
KINDS = {"cached list": ("GET", READS[0]), "uncached list": ("GET", READS[1])}
KINDS |= {"like": ("POST", "/comment/like")}


def honest_times(port: int, seconds: float) -> dict[str, list[float]]:
    """The ms of each request of a reader at 127.0.0.3, every one on a connection of its own."""
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    headers, ends_at = {"Content-Type": "application/json"}, time.monotonic() + seconds
    for number in itertools.count(1):
        for kind, (method, path) in KINDS.items():
            begun, status = time.monotonic(), 0
            path = path.replace("{page}", f"{number % 900 + 2}")
            body = json.dumps({"id": 5, "undo": number % 2 == 0}) if method == "POST" else None
            server = http.client.HTTPConnection("127.0.0.1", port, 30, ("127.0.0.3", 0))
            with closing(server), contextlib.suppress(OSError, http.client.HTTPException):
                server.request(method, path, body, headers)
                with server.getresponse() as response:
                    status = response.status
                    response.read()
            times[kind].append((time.monotonic() - begun) * 1000)
            if status != 200:
                print(f"{kind}: {status}", file=sys.stderr)
        time.sleep(0.05)
        if time.monotonic() > ends_at:
            break
    return times


def flood(options: argparse.Namespace, stack: ExitStack) -> None:
    seconds = options.seconds * options.turns
    columns = [f"{kind}, p50 and p99 ms" for kind in KINDS]
    heading("One client sends", *columns, "of it answered a second")
    for named, (connections, path, body) in FLOODS.items():
        place = prepared(stack, SMALL | {101_000: 100_000}, UNLIMITED)
        peer = ours(stack, place)
        ended = Figures  # no flood answers nothing
        if connections:
            ended = loaded(peer, path, connections, seconds + 2, body)
            time.sleep(2)
        times = honest_times(place[1], seconds)
        cells = [f"{median(times[k]):.0f}, {quantiles(times[k], n=100)[-1]:.0f}" for k in KINDS]
        line(named, *cells, shown(ended().rate))
        stack.close()


TABLES = {table.__name__: table for table in (listings, mixed, writing, growth, start, flood)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--only", type=re.compile, default="", help="servers with this pattern")
    sizes: Any = {"nargs": "+", "type": int, "metavar": "N"}
    parser.add_argument("--sizes", default=[0, 10, 100, 1000, 10_000], help="of pages", **sizes)
    parser.add_argument("--comments", default=[10_000, 1_000_000], help="for growth", **sizes)
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
