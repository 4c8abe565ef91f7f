"""The products that benchmarks compare commentd with: how each is installed, started, filled by its
own API, put into a page and asked for a list. Each runs as its manual says, with its default
settings and a database in a file. What differs from the defaults is said where it stands."""

import http.client
import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import mistune
from bench_servers import TEXT, running

import commentd

Json = dict[str, Any]
PAUSE = 2  # seconds after a start; Twikoo reads its database after it has begun to listen
Command = list[str | Path]

AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


class Release(NamedTuple):
    version: str
    packages: tuple[str, ...]


class Unavailable(Exception):
    """Why a product can't be had on this machine."""


class Product:
    """`{service}` in what goes into a page stands for the URL of the service."""

    name = ""
    place = ""  # the folder of its packages
    server_package = ""
    widget_package = ""
    releases: tuple[Release, ...] = ()  # the newest first
    no_server = ""  # why its server can't be had, where only its widget can
    database = ""  # files that hold the comments, as a pattern
    head = ""
    tag = ""
    dist = ""  # where npm puts what the page loads
    files: tuple[str, ...] = ()  # what the page loads from there

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self.packages = Path()  # where its packages are
        self.blog = ""  # the URL of the blog
        self.stand_in = ""  # the URL of a server that stands in for others on the network

    # Installing

    def install(self, place: Path, replaced: dict[str, str]) -> list[str]:
        """Installs the newest release that can be had, and says why a newer one can't."""
        failures = []
        for release in self.releases:
            self.packages = place / f"{self.place}-{release.version}"
            packages = [package_of(each, replaced) for each in release.packages]
            try:
                if not (self.packages / "installed").exists():
                    self.install_packages(packages)
                    (self.packages / "installed").touch()
            except Unavailable as reason:
                failures.append(f"{self.name} {release.version}: skipped: {reason}")
            else:
                return failures
        raise Unavailable("\n".join(failures))

    def install_packages(self, packages: list[str]) -> None:
        """By npm, but for the products that say otherwise."""
        self.packages.mkdir(parents=True, exist_ok=True)
        options: Command = ["--no-audit", "--no-fund", "--prefix", self.packages]
        run(["npm", "install", *options, *packages])

    def version_of(self, package: str) -> str:
        """Of a package that is installed. `--package` may bring another than a release names."""
        about = (self.packages / "node_modules" / package / "package.json").read_text()
        return str(json.loads(about)["version"])

    # Running

    def command(self, *, is_filling: bool) -> Command:
        """The command that starts it. While comments are written to fill it, it limits nobody."""
        raise NotImplementedError

    # Filling

    def before_filling(self) -> list[tuple[str, Json]]:
        """Paths and bodies of requests that lift the limits on writing, where no setting does."""
        return []

    def written(self, page: str, text: str, parent: Any) -> tuple[str, Json]:
        """Path and body of the request that writes a comment, or a reply to a top-level one."""
        raise NotImplementedError

    def id_of(self, response: Any) -> Any:
        """The id of the comment that the response is about."""
        raise NotImplementedError

    # Asking

    def listed(self, page: str) -> tuple[str, str]:
        """Path and body (of a POST, if there is one) of the request for a list, as its widget sends
        it."""
        raise NotImplementedError


def package_of(package: str, replaced: dict[str, str]) -> str:
    """A package as a package manager takes it, or what is taken in its place."""
    name = package.rpartition("@")[0] or package
    return replaced.get(name, package)


def run(command: Command) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} took more than 15 minutes") from None
    except FileNotFoundError:
        raise Unavailable(f"{command[0]} is missing") from None
    except subprocess.CalledProcessError as error:
        lines = [line for line in error.stderr.splitlines() if "log of this run" not in line]
        said = [line for line in lines if "No matching" in line or "not found" in line.lower()]
        raise Unavailable((said or lines or ["?"])[0].strip()) from None


class Commentd(Product):
    """This checkout. `origins` is the one setting that each blog needs."""

    name = "commentd"
    database = "commentd.db*"
    tag = '<script src="{service}/embed.js" async></script>'

    def install(self, place: Path, replaced: dict[str, str]) -> list[str]:
        return []

    def version_of(self, package: str) -> str:
        return commentd.__version__

    def command(self, *, is_filling: bool) -> Command:
        listen = f"[server]\nlisten = 127.0.0.1:{self.port}\n[site]\norigins = {self.blog}\n"
        filling = "[captcha]\nprovider = none\n[limits]\nenabled = no\n" if is_filling else ""
        settings = self.folder / "commentd.ini"
        settings.touch(0o600)
        settings.write_text(listen + filling)
        return [Path(sys.executable).with_name("commentd")]

    def written(self, page: str, text: str, parent: Any) -> tuple[str, Json]:
        body = {"page_url": page, "nickname": "Ann", "content": text, "captcha_token": "x"}
        return "/comments", body | ({"parent_id": parent} if parent else {})

    def id_of(self, response: Any) -> Any:
        return response["comment"]["id"]

    def listed(self, page: str) -> tuple[str, str]:
        return f"/comments?url={page}&view=threads&sort=newest&limit=10&page=1", ""


class Isso(Product):
    name = "Isso (`isso run`)"
    place = "isso"
    releases = (Release("0.14.0", ("isso==0.14.0", "gunicorn")),)
    database = "comments.db*"
    tag = """<script data-isso="{service}/" src="{service}/js/embed.min.js"></script>
        <section id="isso-thread"></section>"""

    def install_packages(self, packages: list[str]) -> None:
        run([sys.executable, "-m", "venv", self.packages])
        run([self.packages / "bin/pip", "install", "-q", *packages])

    def version_of(self, package: str) -> str:
        return self.releases[0].version

    def configure(self, *, is_filling: bool) -> Path:
        settings = self.folder / "isso.cfg"
        guard = "[guard]\nenabled = false\n" if is_filling else ""
        settings.write_text(
            f"[general]\ndbpath = {self.folder}/comments.db\nhost = {self.blog}\n"
            f"[server]\nlisten = http://127.0.0.1:{self.port}\n{guard}"
        )
        return settings

    def command(self, *, is_filling: bool) -> Command:
        settings = self.configure(is_filling=is_filling)
        return [self.packages / "bin/isso", "-c", settings, "run"]

    def written(self, page: str, text: str, parent: Any) -> tuple[str, Json]:
        body = {"author": "Ann", "title": "Lines", "text": text, "parent": parent}
        return f"/new?uri={page}", body

    def id_of(self, response: Any) -> Any:
        return response["id"]

    def listed(self, page: str) -> tuple[str, str]:
        return f"/?uri={page}&sort=oldest&offset=0&nested_limit=5", ""


class IssoInGunicorn(Isso):
    """With the command of its manual for servers with more readers."""

    name = "Isso (gunicorn)"
    tag = ""  # the widget is the same

    def command(self, *, is_filling: bool) -> Command:
        settings = self.configure(is_filling=is_filling)
        options = ["-b", f"127.0.0.1:{self.port}", "-w", "4", "--preload", "isso.run"]
        return ["env", f"ISSO_SETTINGS={settings}", self.packages / "bin/gunicorn", *options]


class Waline(Product):
    """It asks another service at each request who may sign in. Here that service is a stand-in on
    this machine, which answers at once."""

    name = "Waline"
    place = "waline"
    server_package = "@waline/vercel"
    widget_package = "@waline/client"
    releases = (
        Release("1.41.4", ("@waline/vercel@1.41.4", "@waline/client@3.15.2")),
        Release("1.39.3", ("@waline/vercel@1.39.3", "@waline/client@3.15.2")),
    )
    database = "waline.sqlite*"
    head = '<link rel="stylesheet" href="{service}/waline.css">'
    tag = """<div id="waline"></div>
        <script type="module">
        import {init} from "{service}/waline.js"
        init({el: "#waline", serverURL: "{service}"})
        </script>"""
    dist = "@waline/client/dist"
    files = ("waline.js", "waline.css")

    def command(self, *, is_filling: bool) -> Command:
        database = self.folder / "waline.sqlite"
        if not database.exists():  # its manual has a file with empty tables to download
            with closing(sqlite3.connect(database)) as connection:
                connection.executescript(WALINE_TABLES)
        environment = [f"SQLITE_PATH={self.folder}", "JWT_TOKEN=x", f"OAUTH_URL={self.stand_in}"]
        if is_filling:
            environment += ["IPQPS=0", "AKISMET_KEY=false"]
        server = self.packages / "node_modules/@waline/vercel/vanilla.js"
        return ["env", *environment, "node", server, str(self.port)]

    def written(self, page: str, text: str, parent: Any) -> tuple[str, Json]:
        body: Json = {"nick": "Ann", "mail": "", "link": "", "comment": text, "ua": AGENT}
        body["url"] = page
        reply = {"pid": parent, "rid": parent, "at": "Ann"} if parent else {}
        return "/api/comment?lang=en-US", body | reply

    def id_of(self, response: Any) -> Any:
        return response["data"]["objectId"]

    def listed(self, page: str) -> tuple[str, str]:
        query = f"path={page}&pageSize=10&page=1&lang=en-US&sortBy=insertedAt_desc"
        return f"/api/comment?{query}", ""


DATES = """createdAt DATETIME DEFAULT (datetime('now', 'localtime')),
    updatedAt DATETIME DEFAULT (datetime('now', 'localtime'))"""
WALINE_TABLES = f"""
CREATE TABLE wl_Comment (id INTEGER PRIMARY KEY AUTOINCREMENT, user_id INTEGER, comment TEXT,
    insertedAt DATETIME DEFAULT (datetime('now', 'localtime')), ip TEXT, link TEXT, mail TEXT,
    nick TEXT, rid INTEGER, pid INTEGER, sticky NUMERIC, status TEXT NOT NULL, "like" INTEGER,
    ua TEXT, url TEXT, {DATES});
CREATE TABLE wl_Counter (id INTEGER PRIMARY KEY AUTOINCREMENT, time INTEGER,
    {", ".join(f"reaction{number} INTEGER" for number in range(9))}, url TEXT, {DATES});
CREATE TABLE wl_Users (id INTEGER PRIMARY KEY AUTOINCREMENT, display_name TEXT NOT NULL DEFAULT '',
    email TEXT NOT NULL DEFAULT '', password TEXT NOT NULL DEFAULT '', type TEXT NOT NULL
    DEFAULT '', label TEXT, github TEXT, twitter TEXT, facebook TEXT, google TEXT, weibo TEXT,
    qq TEXT, oidc TEXT, huawei TEXT, "2fa" TEXT, avatar TEXT, url TEXT, {DATES});
"""


class Twikoo(Product):
    """By default it takes 250 requests in ten minutes from one IP address. Here all requests have
    one, so it takes more."""

    name = "Twikoo"
    place = "twikoo"
    server_package = "tkserver"
    widget_package = "twikoo"
    releases = (
        Release("1.7.19", ("twikoo@1.7.19", "twikoo-func@1.7.19", "tkserver@1.7.19")),
        Release("1.7.9", ("twikoo@1.7.9", "twikoo-func@1.7.9", "tkserver@1.7.9")),
    )
    database = "data/*"
    tag = """<div id="tcomment"></div>
        <script src="{service}/twikoo.min.js"></script>
        <script>twikoo.init({envId: "{service}", el: "#tcomment"})</script>"""
    dist = "twikoo/dist"
    files = ("twikoo.min.js",)

    def command(self, *, is_filling: bool) -> Command:
        (self.folder / "data").mkdir(exist_ok=True)
        settings = {"PORT": self.port, "HOST": "127.0.0.1", "DATA": self.folder / "data"}
        settings["THROTTLE"] = 10**9
        environment = [f"TWIKOO_{name}={value}" for name, value in settings.items()]
        server = self.packages / "node_modules/tkserver/server.js"
        return ["env", *environment, "node", server]

    def before_filling(self) -> list[tuple[str, Json]]:
        # Whoever sets the first password is the admin.
        password = {"event": "SET_PASSWORD", "password": "x"}
        limits = {"LIMIT_PER_MINUTE": "0", "LIMIT_PER_MINUTE_ALL": "0"}
        return [
            ("/", password),
            ("/", {"event": "SET_CONFIG", "accessToken": "x", "config": limits}),
        ]

    def written(self, page: str, text: str, parent: Any) -> tuple[str, Json]:
        body = {"event": "COMMENT_SUBMIT", "nick": "Ann", "mail": "", "link": "", "ua": AGENT}
        body |= {"url": page, "href": self.blog + page, "comment": str(mistune.html(text))}
        return "/", body | ({"pid": parent, "rid": parent} if parent else {})

    def id_of(self, response: Any) -> Any:
        return response["id"]

    def listed(self, page: str) -> tuple[str, str]:
        return "/", json.dumps({"event": "COMMENT_GET", "url": page, "sort": "newest"})


class Artalk(Product):
    """Its widget gets constant responses, which cost no time."""

    name = "Artalk"
    place = "artalk"
    widget_package = "artalk"
    releases = (Release("2.10.0", ("artalk@2.10.0",)), Release("2.9.1", ("artalk@2.9.1",)))
    no_server = "its server is a program from its releases on GitHub, in no package"
    head = '<link rel="stylesheet" href="{service}/Artalk.css">'
    tag = """<div id="artalk"></div>
        <script src="{service}/Artalk.js"></script>
        <script>Artalk.init({el: "#artalk", server: "{service}", site: "Lines",
            pageKey: location.pathname})</script>"""
    dist = "artalk/dist"
    files = ("Artalk.js", "Artalk.css")

    def responses(self, page: str, texts: list[str]) -> dict[str, Json]:
        """What its server would respond, by path."""
        comments: list[Json] = []
        for number, text in enumerate(texts, 1):
            is_reply = number % 4 == 0
            comment = {
                "id": number,
                "rid": number - 1 if is_reply else 0,
                "content": text,
                "content_marked": mistune.html(text),
                "nick": "Ann",
                "link": "",
                "ua": AGENT,
                "email_encrypted": "0" * 64,
                "date": "2026-11-28 12:00:00",
                "visible": True,
                "is_allow_reply": True,
                "vote_up": 0,
                "vote_down": 0,
                "page_key": page,
            }
            comments.insert(0, comment)
        roots = sum(comment["rid"] == 0 for comment in comments)
        about = {"id": 1, "key": page, "title": "Lines", "url": page, "admin_only": False}
        thread = {"comments": comments, "count": len(texts), "roots_count": roots, "page": about}
        version = {"app": "artalk", "version": self.version_of("artalk")}
        return {
            "/api/v2/conf": {"frontend_conf": {}, "version": version},
            "/api/v2/comments": thread,
            "/api/v2/pages/pv": {"pv": 1},
            "/api/v2/user/info": {"is_login": False, "notifies": [], "notifies_count": 0},
        }


PRODUCTS = (Commentd, Isso, IssoInGunicorn, Waline, Twikoo, Artalk)


# Filling and asking


def fill(product: Product, pages: dict[str, int]) -> float:
    """Writes so many comments to these pages; the bytes of the database for each."""
    stored = []
    for written in ({}, pages):
        with running(product.folder, product.port, product.command(is_filling=True)):
            time.sleep(PAUSE)
            for path, body in product.before_filling() if written else ():
                sent(product, path, body)
            for page, size in written.items():
                write(product, page, size)
        files = product.folder.glob(product.database)
        stored.append(sum(file.stat().st_size for file in files))
    return (stored[1] - stored[0]) / sum(pages.values())


def texts_of(size: int) -> list[str]:
    return [f"{number} of {size}. {TEXT}" for number in range(1, size + 1)]


def write(product: Product, page: str, size: int) -> None:
    """Every fourth is a reply."""
    parent = None
    for number, text in enumerate(texts_of(size), 1):
        is_reply = number % 4 == 0
        path, body = product.written(page, text, parent if is_reply else None)
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


def listed(product: Product, page: str) -> str:
    """The list of a page, as its widget asks for it."""
    path, body = product.listed(page)
    headers = {"Content-Type": "application/json", "User-Agent": AGENT}
    with closing(http.client.HTTPConnection("127.0.0.1", product.port, timeout=60)) as server:
        server.request("POST" if body else "GET", path, body or None, headers)
        response = server.getresponse()
        text = response.read().decode()
    assert response.status == 200, (product.name, path, response.status, text)
    return text
