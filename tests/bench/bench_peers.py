"""What the widgets of commentd and of other products cost a reader, as a Markdown table; run by
hand: `python tests/bench/bench_peers.py`. What their servers cost, `bench_speed.py --peers` says.

Each product of `peers.py` is installed at a named version by its own package manager, into
`--folder` (a new one goes with the run). It starts with its default settings and a database in a
file, and ten comments are written through its own API; every fourth is a reply. What can't be had
is named at the end, with the reason.

The page is an article with these comments. Every product is behind an nginx that zips. Sizes are
those of a first load without the article, at a desk, as received, heads left out; requests to other
hosts fail here and are counted. Times are those of the frame that shows the first comment, on a
phone (390 x 844, a quarter of this machine's CPU) with an empty cache; `--rtt` is what each request
waits. The shift is the worst of the turns."""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
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

from bench_servers import free_port, heading, line, nginx_program, running  # noqa: E402
from bench_widget import DESK, PHONE, SHIFT, opened  # noqa: E402
from peers import PAUSE, PRODUCTS, Artalk, Json, Product, Unavailable, fill, listed, texts_of  # noqa: E402

from support import blog  # noqa: E402

PAGE, COMMENTS = "/10/", 10
PATIENCE = 120_000  # ms until a comment is shown

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

    @property
    def widget(self) -> str:
        return f"{self.product.name} {self.product.version_of(self.product.widget_package)}"


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
    if not product.no_server:
        fill(product, {PAGE: COMMENTS})
        command = product.command(is_filling=False)
        stack.enter_context(running(folder, product.port, command))
        time.sleep(PAUSE)
        assert texts_of(1)[0][-10:] in listed(product, PAGE), product.name
    return Filled(product, service), left_out


def front(product: Product, port: int) -> Sequence[str | Path]:
    """The command of an nginx that stands before a product, as it would on a server."""
    folder = product.folder / "nginx"
    folder.mkdir()
    modules = product.packages / "node_modules"
    locations = [
        FILE.format(name=name, file=modules / product.dist / name) for name in product.files
    ]
    if isinstance(product, Artalk):
        responses = product.responses(PAGE, texts_of(COMMENTS))
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


# The browser


def measure_widgets(every: list[Filled], home: str, pages: blog.Pages, options: Any) -> None:
    blog.SWITCHES.append("--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND")
    with blog.chromium() as browser:
        print(f"\nChromium {browser.version}, {options.rtt} ms, {options.kbits} kbit/s.")
        sizes = ("kB of scripts", "kB in all", "requests", "requests to others")
        heading("Widget", "first comment, s", "layout shift", *sizes)
        for filled in every:
            put(filled, pages)
            url = f"{home}{PAGE}"
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
    path = PAGE
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
    names = [kind.name for kind in PRODUCTS if kind.tag]
    parser.add_argument("--only", action="append", metavar="NAME", help=f"of {', '.join(names)}")
    parser.add_argument("--folder", type=Path, help="keeps what was installed")
    parser.add_argument(
        "--package",
        action="append",
        default=[],
        metavar="NAME=WHAT",
        help="takes another package in its place: a version, or a file that `npm pack` made",
    )
    parser.add_argument("--turns", type=int, default=3)
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
            if not kind.tag:
                continue
            if options.only and not any(name in kind.name for name in options.only):
                continue
            try:
                filled, missing = set_up(kind, options, home, stack)
                every.append(filled)
                left_out += missing
            except Unavailable as reason:
                left_out.append(str(reason))
        measure_widgets(every, home, pages, options)
    print("", *left_out, sep="\n")


if __name__ == "__main__":
    main()
