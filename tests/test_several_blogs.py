"""Several blogs in one process share nothing but the process: in this process, on the event loop
and by threads, and as a command of its own."""

import configparser
import io
import logging
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import webtest

from commentd import App, CaptchaDown, Config, OperatorError, Sites, make_app, regular_work, repeat
from support import inside
from support.admin import new_owner, queue
from support.client import CANARY, COMMENT, PAGE, Visitor
from support.commands import run_here
from support.comments import solved
from support.database import assert_whole
from support.mail import MailServer
from support.mail import start_mail_server as start_mail_server  # a fixture
from support.patience import PATIENCE
from support.proxies import ME, PLACES, PROXIES, Proxy, kept_in, site
from support.service import LOOPS, Service, request
from support.serving import (
    GatedServer,
    SteppedServer,
    arrived,
    fast_and_stock_servers,
    in_workers,
    turned,
    until,
)
from support.world import FakeWorld

A, B, NOWHERE = "a.example", "b.example", "c.example"
ANN = "ann@example.com"
LIST = f"/comments?url={PAGE}"


# In this process


@contextmanager
def blogs(
    config: Config, fake_world: FakeWorld, *urls: str, **settings: Any
) -> Iterator[list[App]]:
    """A blog for each URL, with a database of its own beside that of `config`."""
    with ExitStack() as resources:
        apps = []
        for number, url in enumerate(urls):
            path = Path(config.database_path).with_name(f"blog{number}.db")
            own = replace(
                config,
                server_listen="127.0.0.1:0",
                server_public_url=url,
                database_path=str(path),
                **settings,
            )
            app = make_app(own, fake_world.world, rounds=1)
            resources.callback(assert_whole, str(path))
            resources.enter_context(closing(app))
            apps.append(app)
        yield apps


@pytest.fixture
def apps(config: Config, fake_world: FakeWorld) -> Iterator[list[App]]:
    urls = (f"https://{A}", f"https://{B}")
    with blogs(config, fake_world, *urls) as made:
        yield made


def reader_of(apps: list[App], app: App, **environ: str) -> Visitor:
    """A client of one of the blogs, by way of the process that serves them all."""
    host = app.site.config.public_host
    visitor = Visitor(app, HTTP_HOST=host, **environ)
    visitor.app = Sites(apps)
    return visitor


@pytest.fixture
def readers(apps: list[App]) -> list[Visitor]:
    """One client for each blog, with the same IP address."""
    return [reader_of(apps, app) for app in apps]


def with_account(reader: Visitor, fake_world: FakeWorld) -> None:
    reader.register()
    reader.served.deliver()
    reader.verify(fake_world.code())
    reader.sign_in()


def test_no_row_of_one_blog_is_seen_or_changed_on_the_other(readers: list[Visitor]) -> None:
    a, b = readers
    made = a.say("only on a")
    number = made["comment"]["id"]
    assert a.listing()["total"] == 1
    theirs = b.listing()
    assert (theirs["total"], theirs["comments"]) == (0, [])
    assert b.get("/comments/latest").json["comments"] == []
    assert "only on a" not in b.get("/feed.atom").text
    assert "only on a" not in b.get("/thread", {"url": PAGE}).text
    assert "only on a" not in b.get("/fragment", {"url": PAGE}).text
    b.post_json("/comment/like", {"id": number}, status=404)
    b.say("a reply", parent_id=number, status="*")
    assert b.listing()["total"] == 0
    assert a.listing()["comments"][0]["likes"] == 0


def test_settings_that_an_admin_changes_are_those_of_one_blog(apps: list[App]) -> None:
    owners = [reader_of(apps, app) for app in apps]
    for owner, app in zip(owners, apps, strict=True):
        owner.authorization = new_owner(app).authorization
    owners[0].patch_json("/admin/settings", {"settings": {"moderation_hold": "all"}})
    statuses = [reader_of(apps, app).say("hello")["comment"]["status"] for app in apps]
    assert statuses == ["waiting", "visible"]
    shown = [owner.get("/admin/settings").json["settings"] for owner in owners]
    held = [[s["value"] for s in settings if s["key"] == "hold"] for settings in shown]
    assert held == [["all"], ["none"]]
    assert [len(owner.get("/admin/audit").json["audit"]) for owner in owners] == [1, 0]


@pytest.mark.parametrize(
    ("name", "origin", "shown"),
    [
        ("", "https://xn--9krq6q.cn", "博客.cn"),
        ("", "https://xn--a.example", "xn--a.example"),
        ("我的博客", "https://b.example", "我的博客"),
    ],
)
def test_a_further_blog_of_an_admin_has_the_name_that_people_write(
    apps: list[App], name: str, origin: str, shown: str
) -> None:
    a, b = apps
    b.site = replace(b.site, config=replace(b.site.config, site_name=name, site_origins=(origin,)))
    inside.of_one_owner(a, b)
    new_owner(b)
    Visitor(b).say("hi")
    inside.set_status(b, 1, "waiting")
    [blog] = queue(new_owner(a))["blogs"]
    assert blog == {"name": shown, "url": f"https://{B}/admin", "waiting": 1}


def test_an_edit_token_of_one_blog_is_none_on_the_other(readers: list[Visitor]) -> None:
    a, b = readers
    ours, theirs = a.say("a"), b.say("b")
    assert ours["comment"]["id"] == theirs["comment"]["id"]
    target = f"/comments/{theirs['comment']['id']}"
    form = {"edit_token": ours["edit_token"]}
    b.patch_json(target, {"content": "changed", **form}, status=404)
    b.delete_json(target, form, status=404)
    assert b.listing()["comments"][0]["content"] == "b"
    a.patch_json(target, {"content": "changed", **form})


def test_tokens_of_one_blog_are_none_on_the_other(
    readers: list[Visitor], fake_world: FakeWorld
) -> None:
    """Both have the same account 1, an admin."""
    a, b = readers
    for each in readers:
        with_account(each, fake_world)
        inside.sql(each.served, "UPDATE account SET role = 'admin'")
    for use, path in (("login", "/me"), ("admin", "/admin/comments")):
        for owner, stranger in ((a, b), (b, a)):
            token = inside.token_of(owner.served, ANN, use)
            owner.authorization = stranger.authorization = ("Bearer", token)
            assert owner.get(path).status_int == 200
            assert stranger.get(path, status=401).json["code"] == "token_invalid"


def test_codes_and_verifications_of_one_blog_are_none_on_the_other(
    readers: list[Visitor], fake_world: FakeWorld
) -> None:
    a, b = readers
    a.register()
    a.served.deliver()
    code_of_a = fake_world.code()
    b.verify(code_of_a, status="*")
    assert inside.sql(b.served, "SELECT * FROM account") == []
    a.verify(code_of_a)
    with_account(b, fake_world)
    fake_world.time += 3600
    for each in readers:
        each.authorization = None
    form = {"email": ANN, "request_id": a.ask_for_code()}
    a.served.deliver()
    form["code"] = fake_world.code()
    b.ask_for_code()
    b.served.deliver()
    assert b.post_json("/auth/login", form, status=401).json["code"] != ""
    assert a.post_json("/auth/login", form).json["token"]


def test_a_password_of_one_blog_is_none_on_the_other(
    readers: list[Visitor], fake_world: FakeWorld
) -> None:
    a, b = readers
    with_account(a, fake_world)
    assert b.login(status=401)["code"] == "wrong_credentials"


def test_a_one_time_link_of_one_blog_is_none_on_the_other(readers: list[Visitor]) -> None:
    a, b = readers
    form = {"email": ANN, "nickname": "Ann", "password": CANARY}
    form["link"] = inside.admin_link(a.served)
    inside.admin_link(b.served)
    assert b.post_json("/admin/claim", form, status=403).json["code"] == "link_invalid"
    a.post_json("/admin/claim", form)


def test_an_email_link_of_one_blog_is_none_on_the_other(
    config: Config, fake_world: FakeWorld
) -> None:
    urls = (f"https://{A}", f"https://{B}")
    settings = {"notify_owner": ("owner@blog.example",), "moderation_hold": "all"}
    with blogs(config, fake_world, *urls, **settings) as apps:
        a, b = (reader_of(apps, app) for app in apps)
        for each in (a, b):
            each.say()
        a.served.deliver()
        links = re.findall(rf"https://{A}(/mail\?do=visible\S+)", fake_world.text())
        assert links
        b.post(links[0], status="4*")
        assert b.listing()["total"] == 0
        a.post(links[0])
        assert a.listing()["total"] == 1


def test_a_solved_captcha_of_one_blog_is_none_on_the_other(
    config: Config, fake_world: FakeWorld
) -> None:
    urls = (f"https://{A}", f"https://{B}")
    with blogs(config, fake_world, *urls, captcha_provider="altcha") as apps:
        a, b = (reader_of(apps, app) for app in apps)
        token = solved(a)
        fake_world.time += 10
        assert b.say(captcha_token=token, status="*")["code"] == "captcha_failed"
        a.say(captcha_token=token)


def test_limits_of_one_blog_are_not_used_up_on_the_other(readers: list[Visitor]) -> None:
    """Those that are rows, and those in memory."""
    a, b = readers
    for number in range(5):
        a.say(f"{number}")
    assert a.say("one more", status=429)["code"] == "too_many"
    b.say("the first")
    for _ in range(120):
        a.post_json("/comments/preview", {"content": "hi"})
    a.post_json("/comments/preview", {"content": "hi"}, status=429)
    b.post_json("/comments/preview", {"content": "hi"})


def test_views_of_one_blog_do_not_count_on_the_other(
    apps: list[App], readers: list[Visitor]
) -> None:
    a, _ = readers
    for each in readers:
        each.post_json("/page/like", {"page_url": PAGE})
    a.listing()
    for app in apps:
        app.tick()
    assert [inside.sql(app, "SELECT views FROM page") for app in apps] == [[(1,)], [(0,)]]


def test_lines_of_the_log_name_their_blog_and_those_of_two_are_not_the_same(
    apps: list[App],
) -> None:
    """A line that is repeated within a minute is written once."""
    output = io.StringIO()
    handler = inside.log_handler(output)
    logging.getLogger().addHandler(handler)
    try:
        with inside.refusing_with(500, quietly=False):
            for app in apps * 2:
                reader = reader_of(apps, app)
                reader.faults_allowed = True
                reader.get(LIST, status=500)
    finally:
        logging.getLogger().removeHandler(handler)
    lines = [line for line in output.getvalue().splitlines() if not line.startswith(" ")]
    assert [re.findall(r"^ERROR \[(.*?)\]", line) for line in lines] == [[A], [B]]


def test_lines_that_the_regular_work_logs_name_their_blog(
    config: Config, fake_world: FakeWorld, tmp_path: Path
) -> None:
    no_folder = tmp_path / "a file"
    no_folder.touch()
    output = io.StringIO()
    handler = inside.log_handler(output)
    urls = (f"https://{A}", f"https://{B}")
    settings = {"backup_folder": str(no_folder / "backups"), "backup_every": 24}
    logging.getLogger().addHandler(handler)
    try:
        with blogs(config, fake_world, *urls, **settings) as apps:
            for app in apps:
                reader_of(apps, app).say()
            with regular_work(Sites(apps), threading.Event()):
                until(lambda: output.getvalue().count("no backup: ") == 2)
    finally:
        logging.getLogger().removeHandler(handler)
    named = re.findall(r"^ERROR (?:\[(.*?)\] )?no backup: ", output.getvalue(), re.M)
    assert sorted(named) == [A, B]


def test_a_line_of_the_log_after_the_health_of_all_blogs_names_none(apps: list[App]) -> None:
    output = io.StringIO()
    handler = inside.log_handler(output)
    logging.getLogger().addHandler(handler)
    try:
        webtest.TestApp(Sites(apps), extra_environ={"HTTP_HOST": NOWHERE}).get("/health")
        logging.getLogger("commentd").error("about the process")
    finally:
        logging.getLogger().removeHandler(handler)
    assert output.getvalue() == "ERROR about the process\n"


def test_regular_work_is_over_at_its_end_and_holds_no_process_up(apps: list[App]) -> None:
    before = {*threading.enumerate()}
    with regular_work(Sites(apps), threading.Event()):
        at_work = {*threading.enumerate()} - before
        assert {thread.daemon for thread in at_work} == {True}
        assert len(at_work) >= 3 * len(apps)
    assert not {*threading.enumerate()} & at_work


class NotedRests(threading.Event):
    """Notes how long each rest would have been."""

    def __init__(self) -> None:
        super().__init__()
        self.rests: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.rests.append(timeout)
        return self.is_set()


def test_regular_work_rests_as_long_as_it_says_and_five_seconds_after_a_fault() -> None:
    faults = [RuntimeError("a fault of ours"), CaptchaDown()]
    stopping = NotedRests()

    def work() -> float:
        if faults:
            raise faults.pop()
        stopping.set()
        return 60

    repeat(work, stopping)
    assert stopping.rests == [5, 5, 60]


def test_all_blogs_are_closed_together(apps: list[App]) -> None:
    for app in apps:
        reader_of(apps, app).listing()
    Sites(apps).close()
    for app in apps:  # a view is written when the service stops
        assert inside.sql(app, "SELECT views FROM page") == [(1,)]


def test_lines_about_a_transaction_that_failed_name_its_blog(
    config: Config, fake_world: FakeWorld
) -> None:
    """Those of another blog are other lines: of equal ones, the log keeps one a minute."""
    output = io.StringIO()
    handler = inside.log_handler(output)
    urls = (f"https://{A}", f"https://{B}")
    logging.getLogger().addHandler(handler)
    try:
        with (
            blogs(config, fake_world, *urls) as apps,
            closing(SteppedServer(turned(Sites(apps)), fake_world)) as server,
        ):
            for app in apps:
                path = inside.database_path(app)
                inside.writer(app).execute("PRAGMA busy_timeout = 1")
                with closing(sqlite3.connect(path, isolation_level=None)) as other:
                    other.execute("BEGIN EXCLUSIVE")
                    host = app.site.config.public_host
                    server.come(request("POST", "/comments", body=COMMENT, host=host))
    finally:
        logging.getLogger().removeHandler(handler)
    named = re.findall(r"^ERROR (?:\[(.*?)\] )?the database failed: ", output.getvalue(), re.M)
    assert sorted({*named}) == [A, B]


def test_a_comment_does_not_wait_for_the_disk_of_another_blog(
    config: Config, fake_world: FakeWorld
) -> None:
    done = threading.Event()

    def wait(statement: str) -> None:
        if statement == "COMMIT":
            done.wait(PATIENCE)

    with (
        blogs(config, fake_world, f"https://{A}", f"https://{B}") as apps,
        closing(SteppedServer(turned(Sites(apps)), fake_world)) as server,
    ):
        inside.writer(apps[0]).set_trace_callback(wait)
        slow = server.come()
        slow.sendall(request("POST", "/comments", body=COMMENT, host=A))
        server.until(lambda: inside.writer(apps[0]).in_transaction)
        quick = server.come(request("POST", "/comments", body=COMMENT, host=B))
        assert arrived(quick)
        assert not arrived(slow)
        done.set()
        server.until(lambda: arrived(slow))


# Which blog a request is for


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("https://a.example", ["a.example", "A.Example", "a.example:443", "a.example:80"]),
        ("http://a.example:8080", ["a.example:8080", "A.EXAMPLE:8080"]),
        ("https://评论.example", ["xn--md3ata.example", "XN--MD3ATA.example:443"]),
        ("https://[2001:db8::1]:8443", ["[2001:db8::1]:8443"]),
    ],
)
def test_a_blog_is_found_by_each_spelling_of_its_host(
    config: Config, fake_world: FakeWorld, url: str, hosts: list[str]
) -> None:
    with blogs(config, fake_world, f"https://{B}", url) as apps:
        reader = reader_of(apps, apps[1])
        for number, host in enumerate(hosts):
            reader.post_json(
                "/page/like", {"page_url": f"/{number}"}, extra_environ={"HTTP_HOST": host}
            )
        pages = [inside.sql(app, "SELECT count(*) FROM page") for app in apps]
        assert pages == [[(0,)], [(len(hosts),)]]


STRANGE_HOSTS = [
    NOWHERE,
    "",
    "a.example:8080",
    "a.example.",
    "a.example:443:443",
    "a.example,b.example",
    "a.example b.example",
    "user@a.example",
    "a.example/",
    "a.example%00",
    "a.example\t",
    "127.0.0.1:8080",
]


def test_a_host_of_no_blog_is_refused_for_all_origins(apps: list[App]) -> None:
    reader = reader_of(apps, apps[0])
    for host in STRANGE_HOSTS:
        reader.extra_environ["HTTP_HOST"] = host
        for method in ("GET", "HEAD", "POST", "OPTIONS"):
            headers = {"Origin": "https://blog.example", "Accept": "text/html"}
            refused = reader.request(LIST, method=method, headers=headers, status=421)
            assert "Access-Control-Allow-Origin" not in refused.headers
            assert "Strict-Transport-Security" not in refused.headers
            assert refused.headers["Cache-Control"] == "no-store"
            assert int(refused.headers["Content-Length"]) > 0
            if method != "HEAD":
                assert refused.json["code"] == "host_unknown"


def test_blogs_whose_hosts_differ_by_their_port_are_apart(
    config: Config, fake_world: FakeWorld
) -> None:
    urls = ("https://a.example", "https://a.example:8443")
    with blogs(config, fake_world, *urls) as apps:
        a, b = (reader_of(apps, app) for app in apps)
        a.say()
        assert [a.listing()["total"], b.listing()["total"]] == [1, 0]


def test_one_blog_alone_is_served_at_each_host(apps: list[App]) -> None:
    reader = Visitor(apps[0], HTTP_HOST=NOWHERE)
    reader.app = Sites(apps[:1])
    assert reader.listing()["total"] == 0


def test_health_of_a_host_is_that_of_its_blog_and_elsewhere_that_of_all(apps: list[App]) -> None:
    sites = Sites(apps)
    a, b, elsewhere = (
        webtest.TestApp(sites, extra_environ={"REMOTE_ADDR": "203.0.113.7", "HTTP_HOST": host})
        for host in (A, B, "127.0.0.1:8080")
    )
    for each in (a, b, elsewhere):
        assert each.get("/health").json == {"ok": True}
        head = each.head("/health")
        assert head.body == b""
        assert head.headers["Content-Length"] == each.get("/health").headers["Content-Length"]
    elsewhere.post_json("/health", {}, status=421)
    path = Path(inside.database_path(apps[1]))
    away = path.rename(path.with_suffix(".away"))
    assert a.get("/health").json == {"ok": True}
    for each in (b, elsewhere):
        assert each.get("/health", status=503).json["code"] == "storage"
    away.rename(path)
    for each in (a, b, elsewhere):
        assert each.get("/health").json == {"ok": True}
    sites.note_missing([NOWHERE])
    assert elsewhere.get("/health", status=503).json["code"] == "storage"
    assert a.get("/health").json == {"ok": True}


def test_blogs_with_the_same_key_are_not_served(
    config: Config, fake_world: FakeWorld, tmp_path: Path
) -> None:
    """As where the database of one was copied to begin the other."""
    urls = (f"https://{A}", f"https://{B}")
    with (
        blogs(config, fake_world, *urls, token_key="the same key for both") as apps,
        pytest.raises(OperatorError, match=r"blog1.db has the key of .*blog0.db"),
    ):
        Sites(apps)


# On sockets


def raw(host: str) -> bytes:
    """A request for the list that counts no view."""
    return request("GET", LIST, "User-Agent: a bot", host=host)


def test_a_cached_list_of_one_blog_is_neither_sent_nor_dropped_by_the_other(
    apps: list[App],
) -> None:
    a, b = (reader_of(apps, app) for app in apps)
    a.say("of a")
    b.say("of b")
    with fast_and_stock_servers(Sites(apps)) as servers:
        for server in servers:
            first = server.responses(raw(A), raw(B))
            assert b"of a" in first[0]
            assert b"of b" not in first[0]
            assert b"of b" in first[1]
            assert b"of a" not in first[1]
            assert server.responses(raw(A), raw(B)) == first
        fast, _ = servers
        assert fast.from_cache(raw(A), raw(B)) == first
        a.say("also of a")
        assert fast.from_cache(raw(B)) == first[1:]
        assert b"also of a" in fast.ask(raw(A))


MISLEADING = {
    "a whole URL": f"GET http://{B}{LIST} HTTP/1.1\r\nHost: {A}\r\n\r\n",
    "a whole URL in capitals": f"GET HTTPS://B.EXAMPLE:443{LIST} HTTP/1.1\r\nHost: {A}\r\n\r\n",
}


@pytest.mark.parametrize("kind", MISLEADING)
def test_the_host_of_a_whole_url_wins_over_the_header(apps: list[App], kind: str) -> None:
    for app, text in zip(apps, ("of a", "of b"), strict=True):
        reader_of(apps, app).say(text)
    with fast_and_stock_servers(Sites(apps)) as servers:
        for server in servers:
            for _ in range(2):
                response = server.ask(MISLEADING[kind].encode())
                assert b"of b" in response
                assert b"of a" not in response
            assert b"of a" in server.ask(raw(A))


NO_BLOG = {
    "an unknown host": f"GET {LIST} HTTP/1.1\r\nHost: {NOWHERE}\r\n\r\n",
    "no host": f"GET {LIST} HTTP/1.0\r\n\r\n",
    "a URL with a user": f"GET http://x@{A}{LIST} HTTP/1.1\r\nHost: {A}\r\n\r\n",
    "a URL with an unknown host": f"GET http://{NOWHERE}{LIST} HTTP/1.1\r\nHost: {A}\r\n\r\n",
    "two hosts": f"GET {LIST} HTTP/1.1\r\nHost: {A}\r\nHost: {B}\r\n\r\n",
    "a host on two lines": f"GET {LIST} HTTP/1.1\r\nHost: {A}\r\n b\r\n\r\n",
}


def test_a_request_for_no_blog_gets_nothing_of_one(apps: list[App]) -> None:
    for app, text in zip(apps, ("of a", "of b"), strict=True):
        reader_of(apps, app).say(text)
    with fast_and_stock_servers(Sites(apps)) as servers:
        for server, (kind, request) in product(servers, NO_BLOG.items()):
            for _ in range(2):
                response = server.stream(request.encode())
                assert re.match(rb"HTTP/1\.[01] 4(21|00) ", response), (kind, response)
                assert response.count(b"HTTP/1.") == 1, kind
                assert b"of a" not in response, kind
                assert b"of b" not in response, kind


# A process of its own


class SeveralBlogs(Service):
    """`commentd serve` with a folder of settings. `path` is the database of the first blog."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.path = folder / "a.db"
        self.begin("", "serve", str(folder))

    def greeted(self) -> "SeveralBlogs":
        super().greeted()
        until(lambda: self.output.count(" serves ") == 2)
        return self


def write_settings(
    folder: Path,
    server: dict[str, str] | None = None,
    *,
    urls: tuple[str, str] = (f"https://{A}", f"https://{B}"),
    limits: str = "no",
) -> None:
    """Settings of two blogs. `server`: of the process, in the first file."""
    of_process = {"listen": "127.0.0.1:0", **(server or {})}
    for name, url in zip("ab", urls, strict=True):
        parser = configparser.ConfigParser(interpolation=None)
        parser["server"] = {"public_url": url, **(of_process if name == "a" else {})}
        parser["database"] = {"path": f"{name}.db"}
        parser["captcha"] = {"provider": "none"}
        parser["limits"] = {"enabled": limits}
        with (folder / f"{name}.ini").open("w") as file:
            parser.write(file)


@contextmanager
def running(folder: Path) -> Iterator[SeveralBlogs]:
    service = SeveralBlogs(folder)
    try:
        yield service.greeted()
    finally:
        service.end()


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_a_process_serves_several_blogs_and_stops_when_all_are_saved(
    tmp_path: Path, loop: str
) -> None:
    write_settings(tmp_path, LOOPS[loop])
    with running(tmp_path) as service:
        for host in (A, B):
            said = {**COMMENT, "content": f"hello {host}"}
            assert service.ask("POST", "/comments", body=said, host=host).status == 200
            viewed = service.ask("GET", LIST, host=host)
            assert [each["content"] for each in viewed.json["comments"]] == [f"hello {host}"]
        refused = service.ask("GET", LIST, host=NOWHERE)
        assert (refused.status, refused.json["code"]) == (421, "host_unknown")
        assert service.ask("GET", "/health", host="127.0.0.1").json == {"ok": True}
        links = re.findall(r"Become admin: https://(\S+)/admin#link=(\S+)", service.output)
        assert [host for host, _ in links] == [A, B]
        form = {"email": ANN, "nickname": "Ann", "password": CANARY}
        for host, link in links:
            other = B if host == A else A
            wrong = service.ask("POST", "/admin/claim", body={**form, "link": link}, host=other)
            assert wrong.json["code"] == "link_invalid"
            right = service.ask("POST", "/admin/claim", body={**form, "link": link}, host=host)
            assert right.status == 200
        assert service.stop() == 0
        assert "Traceback" not in service.output
    for name in ("a", "b"):
        path = tmp_path / f"{name}.db"
        assert_whole(str(path))
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("SELECT views FROM page").fetchall() == [(1,)]
        wal = path.with_name(f"{name}.db-wal")
        assert not wal.exists() or wal.stat().st_size == 0


@pytest.mark.slow
def test_a_killed_process_loses_no_comment_of_any_blog(tmp_path: Path) -> None:
    write_settings(tmp_path)
    with running(tmp_path) as service:
        for number in range(20):
            for host in (A, B):
                said = {**COMMENT, "content": f"{number}"}
                assert service.ask("POST", "/comments", body=said, host=host).status == 200
        service.stop(signal.SIGKILL)
    for name in ("a", "b"):
        assert_whole(str(tmp_path / f"{name}.db"))
    with running(tmp_path) as service:
        totals = [service.ask("GET", LIST, host=host).json["total"] for host in (A, B)]
        assert service.stop() == 0
    assert totals == [20, 20]


# What is refused at the start


def started(folder: Path, *arguments: str, **environ: str) -> tuple[int, str]:
    code, output, errors = run_here(folder, *arguments, **environ)
    assert output == ""
    return code, errors


KEY = "[token]\nkey = one-key-of-enough-characters-for-it\n"
CONFLICTS = {
    "[server]\npublic_url = https://A.example:443": "[server] public_url has the same host as in",
    "[database]\npath = b.db": "of several blogs, each needs its [server] public_url",
    "[server]\npublic_url = https://b.example\n[database]\npath = ./a.db": (
        "[database] path is the same as in"
    ),
    "[server]\npublic_url = https://b.example\nlisten = 127.0.0.1:9": (
        "[server] listen is for all blogs: write it in the first file only"
    ),
    "[server]\npublic_url = https://b.example\ntrusted_proxy = 127.0.0.1": (
        "[server] trusted_proxy is for all blogs: write it in the first file only"
    ),
    f"[server]\npublic_url = https://b.example\n{KEY}": ("[token] key is the same as in"),
}


@pytest.mark.parametrize("settings", CONFLICTS)
def test_settings_that_two_blogs_cannot_have_are_named_with_their_file(
    tmp_path: Path, settings: str
) -> None:
    first = f"[server]\npublic_url = https://{A}\n[database]\npath = a.db\n"
    (tmp_path / "a.ini").write_text(first + KEY)
    (tmp_path / "b.ini").write_text(settings)
    for path in tmp_path.glob("*.ini"):
        path.chmod(0o600)
    code, errors = started(tmp_path, "check", "a.ini", "b.ini")
    assert code == 2
    assert f"commentd: b.ini: {CONFLICTS[settings]}" in errors


def test_the_environment_speaks_of_one_blog_for_the_first_alone(tmp_path: Path) -> None:
    write_settings(tmp_path)
    environ = {
        "COMMENTD_SERVER_PUBLIC_URL": f"https://{NOWHERE}",
        "COMMENTD_DATABASE_PATH": "c.db",
        "COMMENTD_SITE_NAME": "The blog C",
        "COMMENTD_MAIL_HOST": "mail.example",
        "COMMENTD_MAIL_SENDER": "me@mail.example",
    }
    printed = run_here(tmp_path, "example", "caddy", ".", **environ)[1]
    assert re.findall(r"^https://(\S+) \{", printed, re.M) == [NOWHERE, B]
    _, checked, _ = run_here(tmp_path, "check", ".", **environ)
    of_c, of_b = checked.split("\nb.ini\n")
    assert re.findall(r"(\[database\] path|\[site\] name) +(\S+)", of_c) == [
        ("[database] path", "c.db"),
        ("[site] name", "The"),
    ]
    assert re.findall(r"(\[database\] path|\[site\] name) +(\S+)", of_b) == [
        ("[database] path", "b.db")
    ]
    assert [text.count("COMMENTD_MAIL_HOST") for text in (of_c, of_b)] == [1, 1]


def test_a_folder_without_settings_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, errors = started(tmp_path, "serve", "empty")
    assert (code, errors) == (
        2,
        "commentd: empty: there is no settings file (*.ini) in this folder\n",
    )


def test_check_looks_at_each_blog(tmp_path: Path) -> None:
    write_settings(tmp_path)
    _, output, _ = run_here(tmp_path, "check", "a.ini", "b.ini", "./b.ini")
    assert re.findall(r"^(\w\.ini)$", output, re.M) == ["a.ini", "b.ini"]
    assert re.findall(r"public_url +(\S+)", output) == [f"https://{A}", f"https://{B}"]


# Files for servers


CHECKERS = {
    "nginx": "nginx -t -e {0}/proxy.log -c {0}/proxy.conf",
    "caddy": "caddy validate --adapter caddyfile --config {0}/proxy.conf",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHECKERS)
def test_a_proxy_gets_a_server_for_each_blog_and_accepts_the_file(
    tmp_path: Path, kind: str
) -> None:
    if not shutil.which(kind, path=PLACES):
        pytest.skip(f"there is no {kind}: install Debian's package {kind}")
    urls = ["http://a.example:8101", "http://a.example:8102", "http://b.example:8101"]
    for number, url in enumerate(urls):
        lines = ["[server]", f"public_url = {url}", "[database]", f"path = {number}.db"]
        (tmp_path / f"{number}.ini").write_text("\n".join(lines))
    code, printed, errors = run_here(tmp_path, "example", kind, ".")
    assert (code, errors) == (0, "")
    assert f"example {kind} {tmp_path} >" in printed
    assert printed.count("127.0.0.1:8080") == len(urls)
    for url in urls:
        host, _, port = url.removeprefix("http://").partition(":")
        block = rf"server_name {host};\s+listen {port};" if kind == "nginx" else rf"(?m)^{url} \{{"
        assert len(re.findall(block, printed)) == 1
    (tmp_path / "printed.conf").write_text(kept_in(tmp_path, printed))
    main, _ = PROXIES[kind]
    (tmp_path / "proxy.conf").write_text(main.format(tmp_path))
    command = CHECKERS[kind].format(tmp_path).split()
    environ = {"PATH": PLACES, "HOME": str(tmp_path)}
    checked = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROXIES)
def test_several_blogs_are_served_apart_behind_the_printed_proxy(tmp_path: Path, kind: str) -> None:
    """Also what the proxy keeps, and who the readers are."""
    with site(tmp_path, kind, "unix") as proxied_site:
        hosts = [f"{name}:{proxied_site.port}" for name in (A, B)]
        urls = (f"http://{hosts[0]}", f"http://{hosts[1]}")
        server = {"listen": proxied_site.listen, "trusted_proxy": "unix"}
        write_settings(tmp_path, server, urls=urls, limits="yes")
        with running(tmp_path) as service, proxied_site.proxy(service, named=(".",)) as proxy:
            for host in hosts:
                assert said_behind(proxy, host, f"hello {host}") == 200
            for _ in range(2):
                assert [texts_behind(proxy, host) for host in hosts] == [
                    [f"hello {host}"] for host in hosts
                ]
            for host in hosts:  # the same reader has limits of their own on each
                statuses = [said_behind(proxy, host, f"{number}") for number in range(5)]
                assert statuses == [200] * 4 + [429]
                assert said_behind(proxy, host, "another reader", client="127.0.0.9") == 200
            unknown = proxy.ask("GET", LIST, host=f"{NOWHERE}:{proxied_site.port}")
            assert b"hello" not in unknown.body
            assert service.stop() == 0
        assert "Traceback" not in service.output


def said_behind(proxy: Proxy, host: str, content: str, client: str = ME) -> int:
    """The status that a reader of that blog gets for a comment."""
    body = {**COMMENT, "content": content}
    return proxy.ask("POST", "/comments", body=body, host=host, client=client).status


def texts_behind(proxy: Proxy, host: str) -> list[str]:
    """What a reader of that blog finds in the list."""
    listed = proxy.ask("GET", LIST, host=host).json
    return [comment["content"] for comment in listed["comments"]]


def test_settings_are_named_once(tmp_path: Path) -> None:
    write_settings(tmp_path)
    code, errors = started(tmp_path, "--config", "a.ini", "serve", "b.ini")
    assert (code, errors) == (
        2,
        "commentd: name the settings with --config or after the command, not both\n",
    )


# What is wrong with one blog


def test_a_blog_with_many_clients_does_not_hold_up_another(
    apps: list[App], fake_world: FakeWorld
) -> None:
    """One thread responds to all, and clients of the first blog came first."""
    with closing(GatedServer(Sites(apps), fake_world)) as server:
        for number in range(8):
            raw_request = request("GET", LIST, f"User-Agent: a{number}", host=A)
            server.ask(raw_request, ip=f"127.0.0.{number + 1}")
        server.ask(request("GET", LIST, "User-Agent: b", host=B), ip="127.0.0.20")
        assert set(server.statuses()) == {200}
        assert server.served.index("b") <= 2


def test_a_blog_that_waits_for_others_leaves_threads_to_another(
    apps: list[App], fake_world: FakeWorld
) -> None:
    """As while its captcha provider and its identity provider hang."""
    gate = threading.Event()
    sites = Sites(apps)

    def application(environ: Any, start_response: Any) -> Any:
        if environ["HTTP_HOST"] == A:
            gate.wait()
        return sites(environ, start_response)

    loop = turned(sites, serves=in_workers(application))
    with closing(SteppedServer(loop, fake_world)) as server, ExitStack() as at_last:
        at_last.callback(gate.set)
        for number in range(10):
            peer = server.come(ip=f"127.0.0.{number + 1}")
            peer.sendall(request("POST", "/comments", body=COMMENT, host=A))
        server.until(lambda: len(loop.workers.waiting.threads) >= 4)
        of_b = server.come(ip="127.0.0.20")
        of_b.sendall(request("POST", "/comments", body=COMMENT, host=B))
        server.until(lambda: arrived(of_b))
        gate.set()
        server.until(lambda: all(arrived(peer) for peer in server.peers))


@pytest.mark.slow
def test_a_blog_goes_on_while_mail_server_and_chat_of_another_hang(
    tmp_path: Path, start_mail_server: Callable[..., MailServer]
) -> None:
    write_settings(tmp_path)
    mail_server = start_mail_server()
    with ExitStack() as hanging:
        ports = [
            hanging.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            for _ in range(2)
        ]
        add_settings(tmp_path / "a.ini", mail_settings("a", ports[0]))
        add_settings(tmp_path / "a.ini", {"webhook": {"url": f"http://127.0.0.1:{ports[1]}/"}})
        add_settings(tmp_path / "b.ini", mail_settings("b", mail_server.port))
        with running(tmp_path) as service:
            for number in range(30):
                said = {**COMMENT, "content": f"{number}"}
                assert service.ask("POST", "/comments", body=said, host=A).status == 200
            assert service.ask("POST", "/comments", body=COMMENT, host=B).status == 200
            until(lambda: mail_server.emails)
            assert service.ask("GET", "/health", host=B).status == 200
            assert service.ask("GET", LIST, host=A).json["total"] == 30
            waiting = rows_of(tmp_path / "a.db", "SELECT count(*) FROM outbox")
            assert waiting[0][0] > 0


def mail_settings(name: str, port: int) -> dict[str, dict[str, str]]:
    server = {"host": "127.0.0.1", "port": f"{port}", "security": "none"}
    return {
        "mail": {**server, "sender": f"comments@{name}.example"},
        "notify": {"owner": f"me@{name}.example"},
    }


def add_settings(file: Path, sections: dict[str, dict[str, str]]) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read(file)
    parser.read_dict(sections)
    with file.open("w") as text:
        parser.write(text)


def rows_of(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_a_blog_goes_on_while_the_database_of_another_is_gone(tmp_path: Path, loop: str) -> None:
    write_settings(tmp_path, LOOPS[loop])
    with running(tmp_path) as service:
        for host in (A, B):
            assert service.ask("POST", "/comments", body=COMMENT, host=host).status == 200
        path = tmp_path / "a.db"
        away = path.rename(tmp_path / "a.away")
        until(lambda: service.ask("GET", "/health", host=A).status == 503)
        assert service.ask("POST", "/comments", body=COMMENT, host=A).status == 503
        said = {**COMMENT, "content": "meanwhile"}
        assert service.ask("POST", "/comments", body=said, host=B).status == 200
        assert service.ask("GET", LIST, host=B).json["total"] == 2
        away.rename(path)
        until(lambda: service.ask("GET", "/health", host=A).status == 200)
        assert service.stop() == 0


@pytest.mark.slow
def test_a_blog_is_read_and_written_while_many_clients_flood_another(tmp_path: Path) -> None:
    write_settings(tmp_path, {"trusted_proxy": "127.0.0.1"})
    with running(tmp_path) as service, ExitStack() as flooding:
        stop = threading.Event()
        responses: list[int] = []

        def flood(number: int) -> None:
            """As a client of its own."""
            client = f"X-Forwarded-For: 203.0.113.{number}"
            while not stop.is_set():
                for query in range(8):
                    target = f"/comments?url=/{number}/{query}&limit=100"
                    responses.append(service.ask("GET", target, client, host=A).status)

        threads = [threading.Thread(target=flood, args=(number,)) for number in range(1, 33)]
        for thread in threads:
            flooding.callback(thread.join)
            thread.start()
        flooding.callback(stop.set)
        until(lambda: len(responses) > 100)
        reader = "X-Forwarded-For: 198.51.100.7"
        for number in range(10):
            said = {**COMMENT, "content": f"{number}"}
            assert service.ask("POST", "/comments", reader, body=said, host=B).status == 200
            assert service.ask("GET", LIST, reader, host=B).json["total"] == number + 1
