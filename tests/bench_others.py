"""What bench_http.py compares with, each in a process of its own: nginx with the very bytes of our
answers, Isso and Waline as their manuals run them. Both keep one SQLite file, filled by SQL."""

import http.client
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import bench_weight
from bench_weight import free_port, running

TEXT = "Thank you for this: the *second* way works here too, with `-march=native` as you say."
HTML = "<p>Thank you for this: the <em>second</em> way works here too.</p>"

Answer = tuple[int, dict[str, str], bytes]


class Peer(NamedTuple):
    """A server that runs. In paths and bodies wrk puts a page for {page}, and for {number} and
    {any} what tells requests apart."""

    pid: int
    address: str
    screen: str
    write: str = ""
    body: str = ""
    command: tuple[str | Path, ...] = ()


def comments_of(sizes: dict[int, int]) -> Iterator[tuple[int, int, int | None]]:
    """Id, page and parent: on all pages in turns, as time goes; one in four answers the last."""
    before, last = Counter[int](), dict[int, int]()
    order = sorted((at / size, page) for page, size in sizes.items() for at in range(size))
    for number, (_, page) in enumerate(order, 1):
        yield number, page, last[page] if before[page] % 4 == 3 else None
        before[page] += 1
        last[page] = number


def family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in family(int(child)))]


def cpu_seconds(pid: int) -> float:
    stats = [Path(f"/proc/{each}/stat").read_text().rpartition(")")[2] for each in family(pid)]
    return sum(int(n) for s in stats for n in s.split()[11:13]) / os.sysconf("SC_CLK_TCK")


def memory(pid: int, file: str = "status", name: str = "VmRSS") -> float:
    """MB of a server and its children."""
    text = "".join(Path(f"/proc/{each}/{file}").read_text() for each in family(pid))
    return sum(map(int, re.findall(rf"(?m)^{name}:\s*(\d+)", text))) / 1024


def fetched(address: str, path: str, **headers: str) -> Answer:
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=300)) as server:
        usual = {"Accept-Encoding": "gzip", "Origin": "https://blog.example"}
        server.request("GET", path, headers=usual | headers)
        response = server.getresponse()
        headers = {name.title(): value for name, value in response.getheaders()}
        return response.status, headers, response.read()


# As Debian's package sets it; `tuned` is what its owner could do.
NGINX = """
user {user};
worker_processes {workers};
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 768; }}
http {{
    sendfile {sendfile}; tcp_nopush on; access_log off; {tuned}
    default_type "{kind}"; {headers}
    server {{
        listen 127.0.0.1:{port};
        root {folder};
        location = /oauth {{ return 200 '{{"services": []}}'; }}
    }}
}}"""
TUNED = "open_file_cache max=2000; keepalive_requests 1000000;"
OWN = {"Date", "Server", "Content-Length", "Content-Type", "Etag", "Connection"}


def nginx(stack: ExitStack, name: str, pages: dict[str, Answer]) -> Peer:
    """Answers with these; each file bears the name of what was asked."""
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    folder, port = Path(stack.enter_context(tempfile.TemporaryDirectory())), free_port()
    (folder / "p").mkdir()
    for path, response in pages.items():
        (folder / path).write_bytes(response[2])
    headers = next(iter(pages.values()))[1] if pages else {}
    words = {"kind": headers.get("Content-Type", "application/json"), "folder": folder}
    words |= {"user": "root" if os.geteuid() == 0 else "www-data", "port": port}
    words["workers"] = "auto" if name == "nginx" else "1"
    words |= {"sendfile": "off", "tuned": TUNED} if "tuned" in name else {"sendfile": "on"}
    added = [each for each in headers.items() if each[0] not in OWN]
    words["headers"] = " ".join(f'add_header {name} "{value}";' for name, value in added)
    (folder / "conf").write_text(NGINX.format(**{"tuned": "", **words}))
    if not program:
        sys.exit("nginx is missing: on Debian, apt install nginx-light")
    command = [program, "-p", str(folder), "-c", f"{folder}/conf", "-g", "daemon off;"]
    pid = stack.enter_context(running(folder, port, command))
    return Peer(pid, f"http://127.0.0.1:{port}", "/p/{page}")


class Isso(bench_weight.Isso):
    """By gunicorn, with the command of its manual: its own server is for 20 requests a second."""

    packages = (*bench_weight.Isso.packages, "gunicorn")  # type: ignore[assignment]
    title, folder, file = "Isso, gunicorn", "isso-gunicorn", "db"
    screen = "/?uri=/p/{page}/&nested_limit=5"
    write = "/new?uri=/p/{page}/"
    body = f'{{"author": "Ann", "title": "x", "text": "{{number}} {TEXT}"}}'
    pages_sql = "INSERT INTO threads VALUES (?1, '/p/' || ?1 || '/', 'x')"
    sql = f"""INSERT INTO comments (id, tid, parent, created, text, mode, remote_addr, author,
        voters) VALUES (?1, ?2, ?3, 1.7e9 + ?1, '{TEXT}', 1, '203.0.113.0', 'Ann', x'00')"""

    def command(self) -> list[str | Path]:
        super().command()
        options = ["-b", f"127.0.0.1:{self.port}", "-w", "4", "--preload", "isso.run"]
        settings = f"ISSO_SETTINGS={self.data}/isso.cfg"
        return ["env", settings, self.home / "bin/gunicorn", *options]


class IssoAlone(Isso):
    title = "Isso, `isso run`"
    command = bench_weight.Isso.command


class Waline(bench_weight.Waline):
    """It asks another service at each request who may sign in; here that is an nginx."""

    title, folder, file = "Waline", "waline", "waline.sqlite"
    screen = "/api/comment?path=/p/{page}/&pageSize=10&page=1&lang=zh-CN&sortBy=insertedAt_desc"
    write = "/api/comment?lang=zh-CN"
    body = f"""{{"nick": "Ann", "mail": "", "link": "", "ua": "Mozilla/5.0",
        "url": "/p/{{page}}/", "comment": "{{number}} {TEXT}"}}"""
    pages_sql = ""
    sql = f"""INSERT INTO wl_Comment (id, url, pid, rid, insertedAt, comment, ua, status, nick, ip)
        VALUES (?1, '/p/' || ?2 || '/', ?3, ?3, datetime(1.7e9 + ?1, 'unixepoch'), '{HTML}',
            'Mozilla/5.0', 'approved', 'Ann', '203.0.113.0')"""

    def command(self) -> list[str | Path]:
        return ["env", "AKISMET_KEY=false", *super().command()[1:]]


def others(stack: ExitStack, home: Path | None, only: re.Pattern[str]) -> list[Isso | Waline]:
    """Those that are wanted and can be had, each with a new folder for what it keeps."""
    found: list[Isso | Waline] = []
    for kind in (Isso, IssoAlone, Waline):
        place = home / kind.folder if home else None
        if place and only.search(kind.title) and bench_weight.installed(place, kind.packages):
            data = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            found.append(kind(place, data, nginx(stack, "", {}).address))
    return found


@contextmanager
def filled(it: Isso | Waline, sizes: dict[int, int]) -> Iterator[Peer]:
    """It runs, with so many comments on each page."""
    command = it.command()
    with running(it.data, it.port, command) as pid:
        with closing(sqlite3.connect(it.data / it.file)) as db, db:
            if it.pages_sql:
                db.executemany(it.pages_sql, [(page,) for page in sizes])
            db.executemany(it.sql, comments_of(sizes))
        yield Peer(pid, f"http://127.0.0.1:{it.port}", it.screen, it.write, it.body, (*command,))
