"""How long a reader waits for the comments, here and at four other products; run by hand:
`python tests/bench_weight.py FOLDER`, with `--only NAME` for some of them, `--runs N` for more.
FOLDER keeps the others, which the first run takes from PyPI and npm.

The same article and thread for all, in turns: from navigation to
the frame with the first comment's text; 390 px, opened at #comments, an empty cache, a fourth of
this machine's CPU, a slow network; the median, its ratio to ours, and the worst layout shift until
three seconds later. KB and requests (`+p`: preflights) are those of a first load at 1024 px, heads
included, without the article and its style sheet. Each product stands as its manual says, in
Chinese, with its own server, filled through its own API; times, likes and the owner's mark are
set afterwards. Its files and answers come from one host, zipped, so that no CDN costs a further
connection. Other hosts, which some need for avatars and emoji, can't be reached: their requests
are counted (`foreign`), but cost next to nothing here. Artalk's server is no package, so its
client gets constant answers, which cost nothing either."""

import argparse
import contextlib
import gzip
import http.client
import json
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from http.server import ThreadingHTTPServer
from mimetypes import guess_type
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit
from urllib.request import Request, urlopen

import mistune
from playwright.sync_api import Browser, CDPSession, Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import blog
from blog import CONVERSATION, OWNER, Json
from blog import POST as THREAD

SLOW_NETWORK = {
    "offline": False,
    "latency": 562,
    "downloadThroughput": 1.44e6 / 8,
    "uploadThroughput": 675e3 / 8,
}
STARTS = [text[:12] for *_, text in blog.CONVERSATION if text[0] != ">"]
# Waits until a comment is drawn.
FRAME = """
bench.frame = starts => {
  const area = document.querySelector('#talk')
  const root = area?.querySelector('commentd-thread')?.shadowRoot ?? area
  const drawn = [...root?.querySelectorAll('p') ?? []].some(p => p.checkVisibility(
    {opacityProperty: true}) && starts.some(start => p.textContent.includes(start)))
  requestAnimationFrame(
    () => drawn ? bench.drawn = performance.now() : bench.frame(starts))
}
"""
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


class Front(blog.Blog):
    """A product's host: files of its packages, constant answers, else its server's, zipped."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, headers = 200, {"Access-Control-Allow-Origin": "*"}
        if path in self.server.files:
            headers["Content-Type"] = f"{guess_type(path)[0]}; charset=utf-8"
            data = small(self.server.files[path])
        elif self.server.port:
            status, headers, data = self.passed(body)
        else:
            headers |= {"Content-Type": "application/json", "Access-Control-Allow-Headers": "*"}
            data = gzip.compress(json.dumps(artalk_says(self.path)).encode())
        if data:
            headers["Content-Encoding"] = "gzip"
        self.send_response(status)
        for header in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_PUT = do_OPTIONS = do_GET

    def passed(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        asked = {name: value for name, value in self.headers.items() if name not in HOPS}
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.port)) as server:
            server.request(self.command, self.path, body or None, asked)
            answer = server.getresponse()
            data = answer.read()
        headers = {name: value for name, value in answer.getheaders() if name not in HOPS}
        return answer.status, headers, gzip.compress(data) if data else b""


HOPS = {"Accept-Encoding", "Connection", "Content-Length", "Keep-Alive", "Transfer-Encoding"}
HOPS |= {"Date", "Server"}


@cache
def small(file: Path) -> bytes:
    return gzip.compress(file.read_bytes(), 9)


@contextmanager
def front(files: dict[str, Path], port: int) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
    server.files, server.port = files, port
    threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
    yield f"http://comments.test:{server.server_port}"
    server.shutdown()
    server.server_close()


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        return int(free.getsockname()[1])


@contextmanager
def running(folder: Path, port: int, command: Sequence[str | Path]) -> Iterator[int]:
    """A server in its own process, when it listens: its process id."""
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        while server.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.001)
        else:
            sys.exit(f"{command} does not start: {(folder / 'log').read_text()}")
        yield server.pid
    finally:
        server.terminate()
        server.wait()


# What is compared: what each is made of, and how it is started and written to


class Turn(NamedTuple):
    """A comment of the conversation; `parent` and `root` are the product's own ids."""

    name: str
    text: str
    at: float
    likes: int
    parent: Any = None
    root: Any = None
    to: str = ""


class Product:
    """`{host}` in `tag`, and in `head` for the page's head, is where the files are."""

    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    head = ""
    tag = '<script src="{host}/embed.js" async></script>'

    def __init__(self, home: Path, data: Path, origin: str) -> None:
        self.home, self.data, self.origin = home, data, origin
        self.port = free_port()

    def host(self, stack: ExitStack) -> str:
        """Where it is reached when it knows the conversation."""
        app = stack.enter_context(blog.own_app())
        blog.conversation(app, THREAD)
        return stack.enter_context(blog.service(app))


class Other(Product):
    def host(self, stack: ExitStack) -> str:
        stack.enter_context(running(self.data, self.port, self.command()))
        ids: list[Any] = []
        roots: list[Any] = []
        for name, answers, hours, likes, text in CONVERSATION:
            above: tuple[Any, ...] = ()
            if answers is not None:
                above = ids[answers], roots[answers], CONVERSATION[answers][0]
            turn = Turn(name, text, time.time() - hours * 3600, likes, *above)
            ids.append(self.say(turn))
            roots.append(turn.root or ids[-1])
        return self.front(stack, self.port)

    def front(self, stack: ExitStack, port: int) -> str:
        modules = self.home / "node_modules"
        files = {f"/{Path(file).name}": modules / file for file in self.files}
        return stack.enter_context(front(files, port))

    def post(self, path: str, body: Json, name: str = "") -> Any:
        headers = {"Content-Type": "application/json", "User-Agent": AGENT}
        headers["X-Forwarded-For"] = blog.PLACES.get(name, "127.0.0.1")
        url = f"http://127.0.0.1:{self.port}{path}"
        with urlopen(Request(url, json.dumps(body).encode(), headers), timeout=30) as answer:
            return json.load(answer)

    def change(self, file: str, sql: str, *values: object) -> None:
        with closing(sqlite3.connect(self.data / file)) as db, db:
            db.execute(sql, values)


class Isso(Other):
    packages = ("isso==0.14.0",)
    tag = """<script data-isso="{host}/" data-isso-lang="zh_CN" src="{host}/js/embed.min.js">
        </script><section id="isso-thread"></section>"""

    def command(self) -> list[str | Path]:
        settings = self.data / "isso.cfg"
        settings.write_text(
            f"[general]\ndbpath = {self.data}/db\nhost = {self.origin}\n"
            f"[server]\nlisten = http://127.0.0.1:{self.port}\n[guard]\nenabled = false\n"
        )
        return [self.home / "bin/isso", "-c", settings, "run"]

    def say(self, turn: Turn) -> Any:
        body = {"author": turn.name, "text": turn.text, "parent": turn.parent, "title": "一行字"}
        made = self.post(f"/new?uri={THREAD}", body, turn.name)["id"]
        sql = "UPDATE comments SET created = ?, likes = ? WHERE id = ?"
        self.change("db", sql, turn.at, turn.likes, made)
        return made


class Waline(Other):
    packages = ("@waline/client@3.15.2", "@waline/vercel@1.39.3")
    files = ("@waline/client/dist/waline.js", "@waline/client/dist/waline.css")
    head = '<link rel="stylesheet" href="{host}/waline.css">'
    tag = """<div id="waline"></div><script type="module">
        import {init} from "{host}/waline.js"
        init({el: "#waline", serverURL: "{host}", lang: "zh-CN", dark: "auto"})</script>"""

    def command(self) -> list[str | Path]:
        for sql in WALINE.split(";"):
            self.change("waline.sqlite", sql)
        settings = [f"SQLITE_PATH={self.data}", "JWT_TOKEN=x", "IPQPS=0"]
        settings.append(f"OAUTH_URL={self.origin.replace('blog.test', '127.0.0.1')}/oauth")
        server = self.home / "node_modules/@waline/vercel/vanilla.js"
        return ["env", *settings, "node", server, str(self.port)]

    def say(self, turn: Turn) -> Any:
        body: Json = {"nick": turn.name, "mail": "", "link": "", "comment": turn.text, "ua": AGENT}
        body |= {"url": THREAD, "pid": turn.parent, "rid": turn.root, "at": turn.to}
        made = self.post("/api/comment?lang=zh-CN", body, turn.name)["data"]["objectId"]
        sql = 'UPDATE wl_Comment SET insertedAt = ?, "like" = ?, user_id = ? WHERE id = ?'
        owner = 1 if turn.name == OWNER else None
        self.change("waline.sqlite", sql, date(turn.at), turn.likes, owner, made)
        return made


DATES = "createdAt DATETIME DEFAULT (datetime()), updatedAt DATETIME DEFAULT (datetime())"
WALINE = f"""
CREATE TABLE wl_Comment (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id, comment, insertedAt, ip,
    link, mail, nick, rid INTEGER, pid INTEGER, sticky, status, "like" INTEGER, ua, url, {DATES});
CREATE TABLE wl_Counter (id INTEGER PRIMARY KEY AUTOINCREMENT, time, reaction0, url, {DATES});
CREATE TABLE wl_Users (id INTEGER PRIMARY KEY AUTOINCREMENT, display_name, email, password, type,
    label, github, twitter, facebook, google, weibo, qq, oidc, huawei, "2fa", avatar, url, {DATES});
INSERT INTO wl_Users (display_name, email, type) VALUES ('{OWNER}', '', 'administrator')"""


class Twikoo(Other):
    packages = ("twikoo@1.7.9", "tkserver")
    files = ("twikoo/dist/twikoo.min.js",)
    tag = """<div id="tcomment"></div><script src="{host}/twikoo.min.js"></script>
        <script>twikoo.init({envId: "{host}", el: "#tcomment", lang: "zh-CN"})</script>"""

    def command(self) -> list[str | Path]:
        settings = [f"TWIKOO_{name}" for name in (f"PORT={self.port}", "HOST=127.0.0.1")]
        settings.append(f"TWIKOO_DATA={self.data}")
        return ["env", *settings, "node", self.home / "node_modules/tkserver/server.js"]

    def say(self, turn: Turn) -> Any:
        admin = {"accessToken": "x"}
        self.post("/", {"event": "SET_PASSWORD", "password": "x"})  # whoever sets it is the admin
        self.post("/", admin | {"event": "SET_CONFIG", "config": {"LIMIT_LENGTH": "1000"}})
        body = {"event": "COMMENT_SUBMIT", "nick": turn.name, "mail": "", "link": "", "ua": AGENT}
        body |= {"url": THREAD, "href": THREAD, "comment": mistune.html(turn.text)}
        body |= {"pid": turn.parent, "rid": turn.root} if turn.parent else {}
        made = self.post("/", body, turn.name)["id"]
        change: Json = {"created": turn.at * 1000, "ups": [str(n) for n in range(turn.likes)]}
        change["master"] = turn.name == OWNER
        self.post("/", admin | {"event": "COMMENT_SET_FOR_ADMIN", "id": made, "set": change})
        return made


class Artalk(Other):
    packages = ("artalk@2.9.1",)
    files = ("artalk/dist/Artalk.js", "artalk/dist/Artalk.css")
    head = '<link rel="stylesheet" href="{host}/Artalk.css">'
    tag = """<div id="artalk"></div><script src="{host}/Artalk.js"></script>
        <script>Artalk.init({el: "#artalk", server: "{host}", site: "x", locale: "zh-CN",
            darkMode: "auto", pageKey: location.pathname})</script>"""

    def host(self, stack: ExitStack) -> str:
        return self.front(stack, 0)


def artalk_says(asked: str) -> Json:
    """What its server would answer about the thread, or about a page without comments."""
    path, _, query = asked.partition("?")
    page = dict(parse_qsl(query)).get("page_key")
    if not path.endswith("/comments"):
        conf = {"frontend_conf": {}, "version": {"app": "artalk", "version": "2.9.1"}}
        return conf if path.endswith("/conf") else {"pv": 1286, "is_login": False, "notifies": []}
    found = []
    for number, (name, answers, hours, likes, text) in enumerate(CONVERSATION, 1):
        each: Json = {"id": number, "rid": 0 if answers is None else answers + 1, "nick": name}
        each |= {"content": text, "date": date(time.time() - hours * 3600), "link": "", "ua": AGENT}
        each |= {"email_encrypted": str(number), "vote_up": likes, "vote_down": 0}
        each |= {"page_key": page, "visible": True, "is_allow_reply": True}
        each |= {"badge_name": "博主", "badge_color": "#0083FF"} if name == OWNER else {}
        found.insert(0, each)
    found = found if page == THREAD else []
    about = {"id": 1, "key": page, "title": "", "url": page, "admin_only": False, "pv": 1286}
    roots = sum(each["rid"] == 0 for each in found)
    return {"comments": found, "count": len(found), "roots_count": roots, "page": about}


def date(at: float) -> str:
    return time.strftime("%F %T", time.localtime(at))


PRODUCTS: dict[str, type[Product]] = {
    "commentd": Product,
    "isso": Isso,
    "waline": Waline,
    "twikoo": Twikoo,
    "artalk": Artalk,
}


def installed(home: Path, packages: tuple[str, ...]) -> bool:
    """Whether the packages are there by now."""
    if home.exists() or not packages:
        return True
    python = "isso" in packages[0]
    try:
        if python:
            subprocess.run([sys.executable, "-m", "venv", home], check=True)
        pip, npm = [home / "bin/pip", "install", "-q"], ["npm", "install", "--prefix", home]
        subprocess.run([*(pip if python else npm), *packages], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print(f"left out: {error}")
        shutil.rmtree(home, ignore_errors=True)
    return home.exists()


def put(stack: ExitStack, browser: Browser, name: str, home: Path) -> "Site":
    """A blog with this product's comments."""
    pages: blog.Pages = {"/oauth": ({}, '{"services": []}')}  # Waline asks before each answer
    address = stack.enter_context(blog.blog(pages))
    data = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    product = PRODUCTS[name](home, data, address)
    host = product.host(stack)
    head, tag = (text.replace("{host}", host) for text in (product.head, product.tag))
    pages |= blog.article(host, THREAD, tag=f'<div id="talk">{tag}</div>')
    pages[THREAD] = ({}, pages[THREAD][1].replace("<main>", f"{head}<main>"))
    return Site(browser, address)


class Site(NamedTuple):
    browser: Browser
    address: str

    @contextmanager
    def page(self, width: int, scheme: str = "light") -> Iterator[Page]:
        phone = width < 600
        context = self.browser.new_context(
            viewport={"width": width, "height": 844 if phone else 768},
            color_scheme=scheme,
            locale="zh-CN",
            is_mobile=phone,
            has_touch=phone,
            device_scale_factor=2 if phone else 1,
        )
        page = context.new_page()
        page.on("pageerror", lambda error: print("  !", error))
        page.add_init_script(blog.WATCH + FRAME)
        yield page
        context.close()

    @contextmanager
    def slowly(self, path: str, width: int) -> Iterator[Page]:
        """The page on a slow phone and network, when the first text is drawn."""
        with self.page(width) as page:
            page.add_init_script(f"bench.frame({STARTS})")
            cdp = page.context.new_cdp_session(page)
            cdp.send("Network.enable")
            cdp.send("Network.emulateNetworkConditions", SLOW_NETWORK)
            cdp.send("Emulation.setCPUThrottlingRate", {"rate": 4})
            page.goto(self.address + path, wait_until="commit")
            page.wait_for_function("bench.drawn", timeout=60_000)
            yield page


# What is measured


def load(site: Site) -> tuple[float, float]:
    """Seconds to the first text, and the layout shift."""
    with site.slowly(f"{THREAD}#comments", 390) as page:
        page.wait_for_timeout(3000)
        return page.evaluate("bench.drawn") / 1000, total(page.evaluate("bench.shifts"))


def wire(site: Site) -> list[str]:
    """KB and requests to the product's host, and to whom else."""
    with site.page(1024) as page:
        log = listening(page.context.new_cdp_session(page))
        page.add_init_script(f"bench.frame({STARTS})")
        page.goto(site.address + THREAD)
        page.wait_for_function("bench.drawn")
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(2000)
    own = [each for each in log.values() if is_host(each["url"], "comments.test")]
    asked = [each for each in own if each["kind"] not in PREFLIGHT]
    others = [urlsplit(each["url"]).hostname for each in log.values() if each not in own]
    foreign = Counter(str(host) for host in others if host != "blog.test")
    size = sum(each.get("bytes", 0) for each in own) / 1000
    extra = f" +{len(own) - len(asked)}p" if len(own) > len(asked) else ""
    return [f"{size:.1f}", f"{len(asked)}{extra}", " ".join(f"{h}:{n}" for h, n in foreign.items())]


def total(shifts: list[Any]) -> float:
    return sum(value for value, *_ in shifts)


def listening(cdp: CDPSession) -> dict[str, Json]:
    """What the browser asks of the network from now on, by its number."""
    log: dict[str, Json] = {}

    def asked(event: Json) -> None:
        if event["request"]["url"].startswith("http"):
            log[event["requestId"]] = {"url": event["request"]["url"], "kind": event["type"]}

    def done(event: Json) -> None:
        if event["requestId"] in log:
            log[event["requestId"]]["bytes"] = int(event["encodedDataLength"])

    cdp.on("Network.requestWillBeSent", asked)
    cdp.on("Network.loadingFinished", done)
    cdp.send("Network.enable")
    return log


def is_host(url: str, host: str) -> bool:
    return urlsplit(url).hostname == host


PREFLIGHT = ("Preflight", "Other")


def measure(sites: dict[str, Site], runs: int) -> None:
    loads: dict[str, list[tuple[float, float]]] = {name: [] for name in sites}
    for number in range(runs):
        for name, site in sites.items():
            loads[name].append(load(site))
            print(number + 1, name, *(f"{figure:.3f}" for figure in loads[name][-1]), flush=True)
    print(f"\n{'':10}{'seconds':>8}{'ratio':>7}{'KB':>8}{'requests':>10}{'CLS':>8}  foreign")
    medians = {name: statistics.median(each[0] for each in loads[name]) for name in sites}
    for name, site in sites.items():
        size, requests, foreign = wire(site)
        ratio = medians[name] / medians.get("commentd", medians[name])
        shift = max(each[1] for each in loads[name])
        line = f"{name:10}{medians[name]:8.2f}{ratio:7.2f}{size:>8}{requests:>10}{shift:8.3f}"
        print(f"{line}  {foreign or '-'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=PRODUCTS, metavar="NAME")
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    asked = parser.parse_args()
    # The last switch of a name holds.
    blog.SWITCHES.append("--host-resolver-rules=MAP *.test 127.0.0.1, MAP * ~NOTFOUND")
    with ExitStack() as stack:
        browser = stack.enter_context(blog.chromium())
        homes = {name: asked.folder.resolve() / name for name in asked.only or PRODUCTS}
        sites = {
            name: put(stack, browser, name, home)
            for name, home in homes.items()
            if installed(home, PRODUCTS[name].packages)
        }
        measure(sites, asked.runs)


if __name__ == "__main__":
    main()
