"""How fast commentd is, beside nginx with files, as a Markdown table, and the summary of it that
stands in README and in `commentd help speed`; run by hand. It takes two minutes, and needs wrk and
nginx (on Debian, `apt install wrk nginx-light`):

    python tests/bench/bench_speed.py
    python tests/bench/bench_speed.py OLD
    python tests/bench/bench_speed.py --peers

OLD is another commentd to compare with, a git revision or a folder with a commentd.py. It takes
another minute or two. `--peers` installs other products from PyPI and npm, each at a version that
`peers.py` names, and takes some minutes; with `--folder` they stay there for the next time. They
run with their default settings and a database in a file, where their own API has written a page of
10 comments and one of 1,000. At the end stands what could not be installed.

There are 999 pages with 10 comments each and one with 1,000. Every fourth comment is a reply. A
list is what the widget asks for: the first ten threads, compressed. The load has 2,000 browsers,
each with an IP address of its own, which it names as a proxy would.

The programs share this machine with the load, so what counts is one beside the other in the same
run. They take turns, and each figure is the median of the turns. CPU is the time that the processes
of a program spent on a request, in user and system mode, also after the response. It depends least
on what else the machine does. Failed requests, and those that waited more than two seconds, stand
in brackets.

- **commentd**: this checkout, directly. **OLD**: the other one.
- **behind nginx**: commentd with the file that `commentd example nginx` prints. CPU is that of
  both.
- **nginx, files**: nginx as Debian sets it, with the same bytes as files; the better of one worker
  and one a core.
- **start**: from the start of the process to the first response, with all these comments.
- **memory**: two seconds after the start, and at the end of the run.
- **peers**: a list is what their own widgets ask for at first: of Waline ten threads, of Twikoo
  eight, of Isso all."""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from statistics import median
from typing import Any

HOME = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HOME), str(HOME / "tests")]

from bench_servers import (  # noqa: E402
    TEXT,
    Answer,
    Figures,
    Peer,
    comments_of,
    cpu_seconds,
    fetched,
    free_port,
    heading,
    line,
    loaded,
    memory,
    nginx,
    nginx_program,
    running,
)
from peers import PAUSE, PRODUCTS, Commentd, Product, Unavailable, listed  # noqa: E402
from peers import fill as fill_peer  # noqa: E402

SIZES = dict.fromkeys(range(1, 1000), 10) | {1000: 1000}  # comments, by the number of the page
LIST = "/comments?url=/p/{page}&view=threads&sort=newest&limit=10&page=1"
COMMENT = f"""{{"page_url": "/p/{{page}}", "nickname": "Ann", "content": "{{number}} {TEXT}",
    "captcha_token": "x"}}"""
BLOG = "https://blog.example"
PEER_PAGES = {"/p/1": 10, "/p/1000": 1000}
PLAIN = {"Accept-Encoding": "identity"}
STARTS = 3
# Compiled once, as the installed command is. A script would be compiled at each start.
COMMAND = "import sys, commentd; sys.argv[0] = commentd.__file__; sys.exit(commentd.main())"
SETTINGS = """[server]
listen = 127.0.0.1:{port}
public_url = http://127.0.0.1:{front}
trusted_proxy = 127.0.0.1
[site]
origins = https://blog.example
[captcha]
provider = none
[limits]
enabled = no
"""
# As Debian has it, but for the log, which the files of the other nginx do not have either.
FRONT = """
{user}
worker_processes auto;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 768; }}
http {{
    sendfile on; tcp_nopush on; gzip on; access_log off;
    client_body_temp_path {folder}/bodies; proxy_temp_path {folder}/replies;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/printed.conf;
}}"""


@dataclass(frozen=True)
class Load:
    """What wrk does at once. `comments` is their share of the requests. `rate` is how many requests
    a second are sent; 0: as many as it takes."""

    title: str
    page: str
    connections: int
    comments: float = 0
    rate: int = 0

    @property
    def is_for_peers(self) -> bool:
        return self.connections == 16 and not self.comments


LOADS = (
    Load("list of 10 comments, 16 connections", "1", 16),
    Load("list of 10 comments, 128 connections", "1", 128),
    Load("list of 1,000 comments, 16 connections", "1000", 16),
    Load("list of 1,000 comments, 128 connections", "1000", 128),
    Load("lists of 999 pages, 128 connections", "{page}", 128),
    Load("95 % lists, 5 % comments, 999 pages, 128 connections", "{page}", 128, 0.05),
    Load("1,000 lists and 50 comments a second, 128 connections", "{page}", 128, 50 / 1050, 1050),
    Load("comments, 16 connections", "{page}", 16, 1),
)


@dataclass
class Program:
    """What has a column in the table. Of several servers, the best counts."""

    title: str
    servers: Sequence[Peer]
    takes_comments: bool = True
    is_peer: bool = False
    import_cpu: float = 0  # ms for each comment
    start: float = 0  # ms
    start_cpu: float = 0  # ms
    megabytes: Sequence[float] = ()
    comment_bytes: float = 0  # of the database, for each comment


# commentd


@dataclass
class Checkout:
    """A commentd.py, and a folder with its database."""

    title: str
    source: Path
    folder: Path
    port: int
    front: int  # the port of an nginx before it

    def command(self, *arguments: str) -> list[str]:
        python_path = f"PYTHONPATH={self.source}"
        return ["env", "LANG=C", python_path, sys.executable, "-c", COMMAND, *arguments]

    def configure(self) -> None:
        settings = self.folder / "commentd.ini"
        settings.touch(0o600)
        settings.write_text(SETTINGS.format(port=self.port, front=self.front))


def checkout(stack: ExitStack, title: str, source: Path) -> Checkout:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    made = Checkout(title, source, folder, free_port(), free_port())
    made.configure()
    return made


def old_source(stack: ExitStack, old: str) -> Path:
    """The folder of a checkout, or one with a revision of this repository."""
    if (Path(old) / "commentd.py").exists():
        return Path(old).resolve()
    git = ["git", "-C", str(HOME), "archive", old, "commentd.py", "static"]
    archive = subprocess.run(git, capture_output=True, check=False)
    if archive.returncode:
        sys.exit(f"{old} is no folder with a commentd.py, and git says: {archive.stderr.decode()}")
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def version_of(source: Path, revision: str = "") -> str:
    """`revision`: of this repository; else what git says of the folder."""
    released = re.search(r'^__version__ = "(.*)"', (source / "commentd.py").read_text(), re.M)
    about = ["-C", str(source), "describe", "--always", "--dirty", "--exclude=*"]
    if revision:
        about = ["-C", str(HOME), "rev-parse", "--short", revision]
    git = subprocess.run(["git", *about], capture_output=True, text=True, check=False)
    return f"{released[1] if released else '?'} ({git.stdout.strip() or 'no revision'})"


def fill(checkouts: Sequence[Checkout]) -> list[float]:
    """Imports the comments into each, side by side; CPU ms for each comment."""
    pages = [{"page_key": f"/p/{page}", "page_url": f"/p/{page}/"} for page in SIZES]
    about = {"format": "commentd", "version": 1}
    export = json.dumps(about | {"pages": pages, "comments": [*exported()]})
    started = []
    for each in checkouts:
        (each.folder / "export.json").write_text(export)
        command = each.command("import", "export.json")
        with (each.folder / "import.log").open("w") as log:
            started.append(subprocess.Popen(command, cwd=each.folder, stdout=log, stderr=log))
    costs = []
    for each, process in zip(checkouts, started, strict=True):
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            sys.exit(f"{each.title}: {(each.folder / 'import.log').read_text()}")
        costs.append(1000 * (used.ru_utime + used.ru_stime) / sum(SIZES.values()))
    return costs


def exported() -> Iterator[dict[str, Any]]:
    """The comments as `commentd export` writes them."""
    for number, page, parent in comments_of(SIZES):
        yield {
            "page_key": f"/p/{page}",
            "id": number,
            "parent_id": parent,
            "nickname": f"Reader {number}",
            "content": f"{TEXT} {number}",
            "ip": "203.0.113.7",
            "country": "CN",
            "location": "浙江 杭州",
            "status": "visible",
            "created_at": time.strftime("%FT%TZ", time.gmtime(1_700_000_000 + number)),
        }


def copied(stack: ExitStack, original: Checkout, title: str) -> Checkout:
    """The same with a copy of the database."""
    copy = checkout(stack, title, original.source)
    for file in original.folder.glob("commentd.db*"):
        shutil.copy(file, copy.folder)
    return copy


def started(stack: ExitStack, each: Checkout) -> Program:
    """Starts it several times, and leaves it running."""
    address = f"http://127.0.0.1:{each.port}"
    times, costs = [], []
    for number in range(STARTS):
        is_last = number == STARTS - 1
        with ExitStack() as own:
            keeper = stack if is_last else own
            began_at = time.monotonic()
            pid = keeper.enter_context(running(each.folder, each.port, each.command()))
            fetched(address, LIST.replace("{page}", "1"))
            times.append(1000 * (time.monotonic() - began_at))
            costs.append(1000 * cpu_seconds(pid))
    for page in (1, 1000):
        listing = json.loads(fetched(address, LIST.replace("{page}", str(page)), **PLAIN)[2])
        assert listing["total"] == SIZES[page], (each.title, page, listing["total"])
    server = Peer(pid, address, LIST, "/comments", COMMENT)
    return Program(each.title, [server], start=median(times), start_cpu=median(costs))


def behind_nginx(stack: ExitStack, each: Checkout) -> Program:
    """With the file that it prints for nginx."""
    program = started(stack, each)
    folder = each.folder
    printed = subprocess.run(
        each.command("example", "nginx"), cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    printed = re.sub(r"(proxy_cache_path) \S+", rf"\1 {folder}/cache", printed)
    (folder / "printed.conf").write_text(printed)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(FRONT.format(folder=folder, user=user))
    command = [nginx_program(), "-c", f"{folder}/nginx.conf", "-g", "daemon off;"]
    pid = stack.enter_context(running(folder, each.front, command))
    (direct,) = program.servers
    program.servers = [
        direct._replace(pid=pid, beside=direct.pid, address=f"http://127.0.0.1:{each.front}")
    ]
    return program


def files_in_nginx(stack: ExitStack, origin: Peer) -> Program:
    answers: dict[str, Answer] = {}
    for page in SIZES:
        answers[f"p/{page}"] = fetched(origin.address, LIST.replace("{page}", str(page)))
    servers = [nginx(stack, name, answers) for name in ("nginx", "nginx, one worker")]
    return Program("nginx, files", servers, takes_comments=False)


# Other products


def peers(stack: ExitStack, options: argparse.Namespace) -> tuple[list[Program], list[str]]:
    """Those that can be had, and why the others can't."""
    folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
    every, left_out = [], []
    oauth = nginx(stack, "nginx", {})  # where Waline asks who may sign in
    for kind in PRODUCTS:
        if kind is Commentd:
            continue
        product = kind(Path(stack.enter_context(tempfile.TemporaryDirectory())), free_port())
        product.blog = BLOG
        product.stand_in = f"{oauth.address}/oauth"
        if product.no_server:
            left_out.append(f"{product.name}: skipped: {product.no_server}")
            continue
        try:
            left_out += product.install(folder.resolve(), {})
        except Unavailable as reason:
            left_out.append(str(reason))
        else:
            every.append(filled_peer(stack, product))
    return every, left_out


def own_comment_bytes(stack: ExitStack) -> float:
    """Of commentd, with the same pages as the others."""
    product = Commentd(Path(stack.enter_context(tempfile.TemporaryDirectory())), free_port())
    product.blog = BLOG
    return fill_peer(product, PEER_PAGES)


def filled_peer(stack: ExitStack, product: Product) -> Program:
    """Filled, started several times, and left running."""
    comment_bytes = fill_peer(product, PEER_PAGES)
    times, costs = [], []
    for number in range(STARTS):
        is_last = number == STARTS - 1
        with ExitStack() as own:
            keeper = stack if is_last else own
            began_at = time.monotonic()
            command = product.command(is_filling=False)
            pid = keeper.enter_context(running(product.folder, product.port, command))
            while TEXT[:10] not in listed(product, "/p/1"):
                time.sleep(0.01)
            times.append(1000 * (time.monotonic() - began_at))
            costs.append(1000 * cpu_seconds(pid))
    path, body = product.listed("/p/{page}")
    server = Peer(pid, f"http://127.0.0.1:{product.port}", path, path, body)
    return Program(
        f"{product.name} {product.version_of(product.server_package)}",
        [server],
        takes_comments=False,
        is_peer=True,
        start=median(times),
        start_cpu=median(costs),
        comment_bytes=comment_bytes,
    )


# Measuring


def measured(program: Program, load: Load, seconds: int) -> Figures:
    """Of several servers, the one with most requests a second."""
    found = []
    for server in program.servers:
        path = server.screen.replace("{page}", load.page)
        share = load.comments
        if program.is_peer and server.body:  # Twikoo's lists are responses to a POST
            server = server._replace(body=server.body.replace("{page}", load.page))
            share = 1
        found.append(loaded(server, path, load.connections, seconds, share=share, rate=load.rate))
    return max(found, key=lambda figures: figures.rate)


Found = dict[tuple[str, str], list[Figures]]  # by load and program


def in_turns(programs: Sequence[Program], options: argparse.Namespace) -> Found:
    found: Found = defaultdict(list)
    for turn in range(1, options.turns + 1):
        for load in options.loads:
            # In the other order each time, so that nobody always follows the same neighbour.
            for program in programs if turn % 2 else programs[::-1]:
                if load.comments and not program.takes_comments:
                    continue
                if program.is_peer and not load.is_for_peers:
                    continue
                if sys.stderr.isatty():
                    print(f"\r{turn}: {load.title}, {program.title}\033[K", end="", file=sys.stderr)
                figures = measured(program, load, options.seconds)
                found[load.title, program.title].append(figures)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return found


# The table


def machine() -> str:
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    system = platform.freedesktop_os_release()["PRETTY_NAME"]
    return f"{time.strftime('%F')}, {os.cpu_count()} cores ({cpu}), {system}"


def said(*command: str) -> str:
    """The version that a program prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)
    return found[0] if found else "?"


def versions() -> str:
    database = said(sys.executable, "-c", "import sqlite3; print(sqlite3.sqlite_version)")
    parts = {
        "Python": platform.python_version(),
        "SQLite": database,
        **{name: version(name) for name in ("waitress", "bottle", "mistune", "nh3")},
        "nginx": said(nginx_program(), "-v"),
        "wrk": said("wrk", "-v"),
    }
    return ", ".join(f"{name} {number}" for name, number in parts.items())


def print_table(programs: Sequence[Program], found: Found, options: argparse.Namespace) -> None:
    heading("load", "measure", *(each.title for each in programs), words=2)
    for load in options.loads:
        results = [found.get((load.title, each.title), []) for each in programs]
        middles = [middle(turns) if turns else None for turns in results]
        line(load.title, "CPU ms", *(figures.cpu_text if figures else "" for figures in middles))
        line("", "requests/s", *(figures.rate_text if figures else "" for figures in middles))
        line("", "p99 ms", *(f"{figures.p99:.1f}" if figures else "" for figures in middles))
    costs = (f"{each.start_cpu:.0f}" if each.start_cpu else "" for each in programs)
    line("start", "CPU ms", *costs)
    line("", "ms", *(f"{each.start:.0f}" if each.start else "" for each in programs))
    line("memory", "MB", *(" → ".join(f"{n:.0f}" for n in each.megabytes) for each in programs))
    imports = (f"{each.import_cpu:.2f}" if each.import_cpu else "" for each in programs)
    line("import, for each comment", "CPU ms", *imports)
    if not options.peers:
        return
    sizes = (f"{each.comment_bytes:.0f}" if each.comment_bytes else "" for each in programs)
    line("database, for each comment", "bytes", *sizes)


def print_summary(programs: Sequence[Program], found: Found) -> None:
    """The table of README and `commentd help speed`, and the sentence about comments."""
    short, long = (f"list of {size} comments, 16 connections" for size in ("10", "1,000"))
    heading(
        "", "CPU ms a list", "lists a second, of 10 comments", "of 1,000", "start, ms", "memory, MB"
    )
    for each in programs:
        cells = [""] * 5
        if (short, each.title) in found:
            figures = middle(found[short, each.title])
            cells[:2] = figures.cpu_text, f"{figures.rate:,.0f}"
        if (long, each.title) in found:
            cells[2] = f"{middle(found[long, each.title]).rate:,.0f}"
        if each.start:
            cells[3] = f"{each.start:,.0f}"
        if each.megabytes:
            cells[4] = f"{each.megabytes[0]:.0f}"
        line(each.title, *cells)
    writes = found.get(("comments, 16 connections", programs[0].title))
    if writes:
        figures = middle(writes)
        print(f"\nIt saves {figures.rate:,.0f} comments a second (p99 {figures.p99:.0f} ms).")


def middle(turns: list[Figures]) -> Figures:
    return Figures(*map(median, zip(*turns, strict=True)))


def note_memory(programs: Sequence[Program]) -> None:
    for program in programs:
        (server, *others) = program.servers
        if not others:
            megabytes = memory(server.pid) + (memory(server.beside) if server.beside else 0)
            program.megabytes = [*program.megabytes, megabytes]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", nargs="?", metavar="OLD", help="another commentd to compare with")
    parser.add_argument("--seconds", type=int, default=2, help="for each turn")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--peers", action="store_true", help="other products as well")
    parser.add_argument("--folder", type=Path, help="keeps what was installed of them")
    parser.add_argument("--load", type=re.compile, metavar="PATTERN", help="of the names of loads")
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is missing: on Debian, apt install wrk")
    options.loads = [load for load in LOADS if not options.load or options.load.search(load.title)]
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it compiles once, as everywhere else
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers end, too
    busy_before = os.getloadavg()[0]
    with ExitStack() as stack:
        checkouts = [checkout(stack, f"**commentd** {version_of(HOME)}", HOME)]
        if options.old:
            source = old_source(stack, options.old)
            is_folder = source == Path(options.old).resolve()
            old_version = version_of(source, "" if is_folder else options.old)
            checkouts.append(checkout(stack, f"OLD {old_version}", source))
        costs = fill(checkouts)
        fronts = [copied(stack, checkouts[0], "behind nginx")]
        if options.old:
            fronts.append(copied(stack, checkouts[1], "OLD behind nginx"))
        programs = [started(stack, each) for each in checkouts]
        for program, cost in zip(programs, costs, strict=True):
            program.import_cpu = cost
        programs += [behind_nginx(stack, each) for each in fronts]
        others: list[Program] = []
        left_out: list[str] = []
        if options.peers:
            others, left_out = peers(stack, options)
            programs[0].comment_bytes = own_comment_bytes(stack)
        time.sleep(PAUSE)
        note_memory([*programs, *others])
        programs += [files_in_nginx(stack, programs[0].servers[0]), *others]
        found = in_turns(programs, options)
        note_memory(programs)
        print(f"{machine()}; {versions()}.", end=" ")
        print(f"Other work before: a load of {busy_before:.1f}.")
        print_table(programs, found, options)
        print_summary(programs, found)
        print("", *left_out, sep="\n")


if __name__ == "__main__":
    main()
