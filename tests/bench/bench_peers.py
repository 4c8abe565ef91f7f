"""What commentd and other products cost a server and a reader, as Markdown tables; run by hand:
`python tests/bench/bench_peers.py`, with `servers` or `widgets` for one of the tables.

Each product of `peers.py` is installed at a named version by its own package manager, into
`--folder` (a new one goes with the run). It starts with its default settings and a database in a
file, and comments are written through its own API to two pages, of 10 and of 1,000; every fourth is
a reply. What can't be had is named at the end, with the reason.

On the server, a list is what the product's own widget asks for at first: commentd and Waline ten
threads, Twikoo eight, Isso all. Memory is that of all processes of a server, two seconds after its
start, and after 3,000 lists of the page of 10, one after the other. CPU time is what such a list
takes. Lists a second are what wrk gets with one thread and 16 connections. All servers run at once
and take turns in that; figures are medians of the turns. A comment's share of the database is how
much the files grew, divided by the number of comments.

In the browser, the page is an article with the page of 10. Every product is behind an nginx that
zips. Sizes are those of a first load without the article, at a desk, as received, heads left out;
requests to other hosts fail here and are counted. Times are those of the frame that shows the first
comment, on a phone (390 x 844, a quarter of this machine's CPU) with an empty cache; `--rtt` is
what each request waits. The shift is the worst of the turns."""

import argparse
import http.client
import itertools
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Request
from playwright.sync_api import TimeoutError as PatienceIsOver

HOME = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HOME), str(HOME / "tests")]

from bench_servers import (  # noqa: E402
    TEXT,
    Peer,
    cpu_seconds,
    free_port,
    heading,
    line,
    loaded,
    memory,
    nginx_program,
    running,
    shown,
)
from bench_widget import DESK, PHONE, SHIFT, opened  # noqa: E402
from peers import AGENT, PRODUCTS, Artalk, Json, Product, Unavailable  # noqa: E402

from support import blog  # noqa: E402

SMALL, LARGE = 10, 1000  # comments of the two pages
CONNECTIONS = 16
PATIENCE = 120_000  # ms until a comment is shown
PAUSE = 2  # seconds after a start; Twikoo reads its database after it has begun to listen

# Waline asks /oauth who may sign in.
FRONT = """
user {user};
worker_processes 1;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 768; }}
http {{
    include /etc/nginx/mime.types;
    access_log off;
    gzip on; gzip_comp_level 6; gzip_proxied any; gzip_types *;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location = /oauth {{
            default_type application/json;
            return 200 '{{"services": []}}';
        }}
        {locations}
    }}
}}"""
FILE = "location = /{name} {{ alias {file}; }}"
SERVER = """location / {{
    proxy_pass http://127.0.0.1:{port};
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
}}"""
CONSTANT = """location = {path} {{
    default_type application/json;
    add_header Access-Control-Allow-Origin * always;
    add_header Access-Control-Allow-Headers * always;
    error_page 405 =200 {path};
    alias {file};
}}"""
# When a comment is in the frame that is painted, in ms.
SHOWN = """{
  const isShown = node => node.textContent.includes('way works here too')
    && node.checkVisibility({opacityProperty: true, visibilityProperty: true})
  const look = () => {
    const area = document.querySelector('#talk')
    const root = area?.querySelector('commentd-thread')?.shadowRoot ?? area
    const isThere = [...root?.querySelectorAll('p') ?? []].some(isShown)
    requestAnimationFrame(isThere ? at => { window.shownAt = at } : look)
  }
  requestAnimationFrame(look)
}"""


class Filled(NamedTuple):
    """A product with comments, and where it is."""

    product: Product
    service: str  # its URL for a browser
    comment_bytes: float = 0
    peer: Peer = Peer(0, "", "")  # its server, if it can be had
    memory_at_start: float = 0

    @property
    def server(self) -> str:
        return f"{self.product.name} {self.product.version_of(self.product.server_package)}"

    @property
    def widget(self) -> str:
        return f"{self.product.name} {self.product.version_of(self.product.widget_package)}"


def page_of(size: int) -> str:
    return f"/{size}/"


def texts_of(size: int) -> list[str]:
    return [f"{number} of {size}. {TEXT}" for number in range(1, size + 1)]


# Installing and filling


def set_up(
    kind: type[Product], options: argparse.Namespace, home: str, stack: ExitStack
) -> tuple[Filled, list[str]]:
    """A product that runs and has comments, and what of it can't be had."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    product = kind(folder, free_port())
    replaced = dict(each.split("=", 1) for each in options.package)
    left_out = product.install(options.folder, replaced)
    port = free_port()
    product.blog = home
    product.stand_in = f"http://127.0.0.1:{port}/oauth"
    stack.enter_context(running(folder, port, front(product, port)))
    service = f"http://comments.test:{port}"
    if product.no_server:
        left_out.append(f"{product.name}, server: skipped: {product.no_server}")
        return Filled(product, service), left_out
    sizes = (SMALL, LARGE) if "servers" in options.tables else (SMALL,)
    comment_bytes = fill(product, sizes)
    pid = stack.enter_context(running(folder, product.port, product.command(is_filling=False)))
    time.sleep(PAUSE)
    memory_at_start = memory(pid)
    with closing(http.client.HTTPConnection("127.0.0.1", product.port)) as server:
        for size in sizes:
            assert TEXT[:10] in listed(server, product, size), (product.name, size)
    peer = Peer(pid, f"http://127.0.0.1:{product.port}", page_of(SMALL))
    return Filled(product, service, comment_bytes, peer, memory_at_start), left_out


def front(product: Product, port: int) -> Sequence[str | Path]:
    """The command of an nginx that stands before a product, as it would on a server."""
    folder = product.folder / "nginx"
    folder.mkdir()
    modules = product.packages / "node_modules"
    locations = [
        FILE.format(name=name, file=modules / product.dist / name) for name in product.files
    ]
    if isinstance(product, Artalk):
        responses = product.responses(page_of(SMALL), texts_of(SMALL))
        for number, (path, response) in enumerate(responses.items()):
            file = folder / f"{number}.json"
            file.write_text(json.dumps(response))
            locations.append(CONSTANT.format(path=path, file=file))
    else:
        locations.append(SERVER.format(port=product.port))
    words: Json = {"folder": folder, "port": port, "locations": "\n".join(locations)}
    words["user"] = "root" if os.geteuid() == 0 else "www-data"
    (folder / "conf").write_text(FRONT.format(**words))
    return [nginx_program(), "-p", folder, "-c", folder / "conf", "-g", "daemon off;"]


def fill(product: Product, sizes: Sequence[int]) -> float:
    """Writes the comments of pages of these sizes; the bytes of the database for each."""
    stored = []
    for pages in ((), sizes):
        with running(product.folder, product.port, product.command(is_filling=True)):
            time.sleep(PAUSE)
            for path, body in product.before_filling() if pages else ():
                sent(product, path, body)
            for size in pages:
                write(product, size)
        files = product.folder.glob(product.database)
        stored.append(sum(file.stat().st_size for file in files))
    return (stored[1] - stored[0]) / sum(sizes)


def write(product: Product, size: int) -> None:
    parent = None
    for number, text in enumerate(texts_of(size), 1):
        is_reply = number % 4 == 0
        path, body = product.written(page_of(size), text, parent if is_reply else None)
        response = sent(product, path, body)
        if not is_reply:
            parent = product.id_of(response)


def sent(product: Product, path: str, body: Json) -> Any:
    """The response of a product's API."""
    headers = {"Content-Type": "application/json", "User-Agent": AGENT, "Origin": product.blog}
    with closing(http.client.HTTPConnection("127.0.0.1", product.port, timeout=60)) as server:
        server.request("POST", path, json.dumps(body), headers)
        response = server.getresponse()
        text = response.read().decode()
    assert response.status < 300, (product.name, path, response.status, text)
    return json.loads(text)


def listed(server: http.client.HTTPConnection, product: Product, size: int) -> str:
    """The list of a page, as its widget asks for it."""
    path, body = product.listed(page_of(size))
    headers = {"Content-Type": "application/json", "User-Agent": AGENT}
    server.request("POST" if body else "GET", path, body or None, headers)
    response = server.getresponse()
    text = response.read().decode()
    assert response.status == 200, (product.name, path, response.status, text)
    return text


# The server


def measure_servers(every: list[Filled], options: argparse.Namespace) -> None:
    costs = {filled.server: lists_one_by_one(filled, options.lists) for filled in every}
    rates = rates_in_turns(every, options) if shutil.which("wrk") else {}
    pages = [f"lists a second, {size:,} comments" for size in (SMALL, LARGE)]
    columns = ("MB at start", f"MB after {options.lists:,} lists", "CPU ms a list")
    heading("Server", *columns, *pages, "bytes a comment")
    for filled in every:
        cpu, later = costs[filled.server]
        found = [rates.get((filled.server, size), "wrk is missing") for size in (SMALL, LARGE)]
        memories = f"{filled.memory_at_start:.0f}", f"{later:.0f}"
        line(filled.server, *memories, f"{cpu:.2f}", *found, shown(filled.comment_bytes))


def lists_one_by_one(filled: Filled, count: int) -> tuple[float, float]:
    """CPU ms of each list, and the server's MB of memory after them."""
    before = cpu_seconds(filled.peer.pid)
    with closing(http.client.HTTPConnection("127.0.0.1", filled.product.port)) as server:
        for _ in range(count):
            listed(server, filled.product, SMALL)
    used = cpu_seconds(filled.peer.pid) - before
    return used * 1000 / count, memory(filled.peer.pid)


def rates_in_turns(every: list[Filled], options: argparse.Namespace) -> dict[Any, str]:
    """Lists a second, by product and size of the page."""
    rates: dict[Any, list[float]] = defaultdict(list)
    failed: Counter[Any] = Counter()
    for _ in range(options.turns):
        for size, filled in itertools.product((SMALL, LARGE), every):
            path, body = filled.product.listed(page_of(size))
            peer = filled.peer._replace(write=path, body=body)
            share = 1 if body else 0
            figures = loaded(peer, path, CONNECTIONS, options.seconds, share=share)
            rates[filled.server, size].append(figures.rate)
            failed[filled.server, size] += int(figures.failed)
    words = {key: f" ({count} failed)" for key, count in failed.items() if count}
    return {key: shown(median(found)) + words.get(key, "") for key, found in rates.items()}


# The browser


def measure_widgets(every: list[Filled], home: str, pages: blog.Pages, options: Any) -> None:
    blog.SWITCHES.append("--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND")
    with blog.chromium() as browser:
        print(f"\nChromium {browser.version}, {options.rtt} ms, {options.kbits} kbit/s.")
        sizes = ("kB of scripts", "kB in all", "requests", "requests to others")
        heading("Widget", "first comment, s", "layout shift", *sizes)
        for filled in every:
            put(filled, pages)
            url = f"{home}{page_of(SMALL)}"
            try:
                cells = first_load(browser, url)
                loads = [first_comment(browser, url, options) for _ in range(options.turns)]
            except PatienceIsOver:
                line(filled.widget, f"no comment in {PATIENCE // 1000} s")
                continue
            times, shifts = zip(*loads, strict=True)
            line(filled.widget, f"{median(times):.2f}", f"{max(shifts):.3f}", *cells)


def put(filled: Filled, pages: blog.Pages) -> None:
    """The article has the comments of this product."""
    head, tag = (
        text.replace("{service}", filled.service)
        for text in (filled.product.head, filled.product.tag)
    )
    path = page_of(SMALL)
    pages.update(blog.article(filled.service, path, lang="en", tag=f'<div id="talk">{tag}</div>'))
    headers, html = pages[path]
    pages[path] = (headers, html.replace("<main>", f"{head}<main>"))


def first_comment(browser: Browser, url: str, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds to the first comment, and the layout shift three seconds later."""
    with opened(browser, PHONE, options, SHOWN) as page:
        page.goto(f"{url}#comments", wait_until="commit")
        page.wait_for_function("window.shownAt", timeout=PATIENCE)
        seconds = page.evaluate("shownAt") / 1000
        page.wait_for_timeout(3000)
        return seconds, page.evaluate(SHIFT)


def first_load(browser: Browser, url: str) -> list[str]:
    """kB of scripts and in all, and requests to the service and to others."""
    finished: list[Request] = []
    hosts: list[str] = []
    with closing(browser.new_context(locale="en", **blog.screen(DESK))) as context:
        page = context.new_page()
        page.add_init_script(SHOWN)
        page.on("request", lambda request: hosts.append(str(urlsplit(request.url).hostname)))
        page.on("requestfinished", lambda request: finished.append(request))
        page.goto(f"{url}#comments")
        page.wait_for_function("window.shownAt", timeout=PATIENCE)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(2000)
        own = [each for each in finished if urlsplit(each.url).hostname == "comments.test"]
        sizes = [each.sizes()["responseBodySize"] / 1000 for each in own]
        scripts = sum(
            size for size, each in zip(sizes, own, strict=True) if each.resource_type == "script"
        )
    others = Counter(host for host in hosts if not host.endswith(".test"))
    named = ", ".join(f"{host} {count}" for host, count in others.items()) or "0"
    return [f"{scripts:.1f}", f"{sum(sizes):.1f}", str(len(own)), named]


# The machine


def machine() -> str:
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    node = subprocess.run(["node", "--version"], capture_output=True, text=True).stdout.strip()
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    versions = f"Python {platform.python_version()}, node {node or 'is missing'}"
    return f"{time.strftime('%F')}, {os.cpu_count()} cores ({cpu}), {system}, {versions}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    names = [kind.name for kind in PRODUCTS]
    tables = ["servers", "widgets"]
    parser.add_argument("tables", nargs="*", default=tables, help="servers, widgets or both")
    parser.add_argument("--only", action="append", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--folder", type=Path, help="keeps what was installed")
    parser.add_argument(
        "--package",
        action="append",
        default=[],
        metavar="NAME=WHAT",
        help="takes another package in its place: a version, or a file that `npm pack` made",
    )
    parser.add_argument("--lists", type=int, default=3000, help="one after the other")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3, help="of a turn of wrk")
    parser.add_argument("--rtt", type=int, default=150, metavar="MS")
    parser.add_argument("--kbits", type=int, default=1600, help="a second, down")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it compiles once, as everywhere else
    pages: blog.Pages = {}
    with ExitStack() as stack:
        home = stack.enter_context(blog.blog(pages))
        if options.folder is None:
            options.folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options.folder = options.folder.resolve()
        print(machine(), flush=True)
        every, left_out = [], []
        for kind in PRODUCTS:
            if options.only and not any(name in kind.name for name in options.only):
                continue
            try:
                filled, missing = set_up(kind, options, home, stack)
                every.append(filled)
                left_out += missing
            except Unavailable as reason:
                left_out.append(str(reason))
        if "servers" in options.tables:
            servers = [filled for filled in every if not filled.product.no_server]
            measure_servers(servers, options)
        if "widgets" in options.tables:
            widgets = [filled for filled in every if filled.product.tag]
            measure_widgets(widgets, home, pages, options)
    print("", *left_out, sep="\n")


if __name__ == "__main__":
    main()
