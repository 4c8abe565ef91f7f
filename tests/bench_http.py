"""How fast the service is, beside a constant answer of the same server; run by hand, such as
`python tests/bench_http.py --comments 100000 1000000 --rows list`.

Each size gets a file of its own: 10 000 comments on one page, the others spread over 999, one in
four a reply. The real service runs in its own process and is driven by wrk with one thread; both
share this machine, so figures are for comparing, and those that differ by 15 % are equal."""

import argparse
import json
import logging
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import waitress

HOME = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(HOME))

from commentd import Config, Store, make_server, safe_html  # noqa: E402

TEXT = "Thank you for this: the *second* way works here too, with `-march=native` as you say."
PAGES, BIG = 1000, 10_000  # the first page is the big one; its middle is what lies deepest

SEED = f"""
    INSERT INTO page (id, key, page_url, seen_at)
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {PAGES})
    SELECT i, '/p/' || i, '/p/' || i || '/', 1700000000 FROM n;

    INSERT INTO comment (id, page_id, parent_id, thread_id, nickname, email, website, content,
           html, ip, country, location, shown, status, created_at)
    WITH RECURSIVE
         n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :comments),
         placed (i, page, last) AS (
             SELECT i, CASE WHEN i <= {BIG} THEN 1 ELSE 2 + i % {PAGES - 1} END,
                    i - CASE WHEN i <= {BIG} THEN 1 ELSE {PAGES - 1} END FROM n),
         answering (i, page, parent) AS (
             SELECT i, page, CASE WHEN i % 4 = 0 AND (page = 1 OR last > {BIG}) THEN last END
               FROM placed)
    SELECT i, page, parent, parent, 'Reader ' || i, '', '', :text, :html,
           '203.0.113.7', 'CN', '浙江 杭州', 1, 'visible', 1700000000 + i FROM answering;

    UPDATE comment SET replies = 1 WHERE id IN (SELECT parent_id FROM comment);
    UPDATE page SET (total, threads) =
           (SELECT count(*), count(*) - count(parent_id) FROM comment WHERE page_id = page.id)"""

SCRIPT = """
wrk.headers["Accept-Encoding"] = "gzip, deflate, br"
wrk.headers["Accept-Language"] = "en-GB,en;q=0.9"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Origin"] = "https://blog.example"
wrk.headers["Referer"] = "https://blog.example/"
math.randomseed(7)
local number = 0
function request()
  number = number + 1
  wrk.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Firefox/" .. number
  return wrk.format(%s)
end
function done(summary, latency)
  local failed = summary.errors.status + summary.errors.read + summary.errors.timeout
  print(string.format('{"requests": %%d, "seconds": %%f, "p50": %%f, "p99": %%f, "failed": %%d}',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, failed))
end
"""

# Each row's request, as wrk's script gives it.
ANY = f'"GET", "/comments?limit=10&url=/p/" .. math.random(2, {PAGES})'
BODY = f'{{"page_url": "/p/%d", "nickname": "Ann", "content": "%d {TEXT}", "captcha_token": "x"}}'
ROWS = {
    "constant, stock waitress": ANY,
    "constant, this server": ANY,
    "list, small page": ANY,
    "list, big page": '"GET", "/comments?limit=10&url=/p/1"',
    "list, big page, deep": f'"GET", "/comments?limit=10&url=/p/1&page={BIG // 20}"',
    "list in threads, small page": f'{ANY} .. "&view=threads"',
    "list in threads, big page": '"GET", "/comments?limit=10&view=threads&url=/p/1"',
    "post a comment": f'"POST", "/comments", nil, string.format([[{BODY}]],'
    f" math.random({PAGES}), number)",
    "like a comment": '"POST", "/comment/like", nil, string.format([[{"id": %d}]],'
    f" math.random({BIG}))",
}


def seed(path: Path, comments: int) -> None:
    Store(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        for statement in SEED.split(";"):
            db.execute(statement, {"comments": comments, "text": TEXT, "html": safe_html(TEXT)})


@contextmanager
def process(folder: Path, *command: str) -> Iterator[tuple[int, str]]:
    """A server in its own process: the process id, and where it listens."""
    with subprocess.Popen(
        [sys.executable, *command], cwd=folder, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout
            address = re.search(r"http://\S+", server.stdout.readline())
            yield server.pid, address[0] if address else sys.exit("the service did not start")
        finally:
            server.terminate()


def constant(kind: str) -> None:
    """Serves one answer to everything."""
    body = Path("answer").read_bytes()
    logging.getLogger("waitress").addHandler(logging.NullHandler())  # said, but not printed

    class App:
        house = SimpleNamespace(config=Config(server_listen="127.0.0.1:0"))

        def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
            start_response("200 OK", [("Content-Type", "application/json; charset=utf-8")])
            return [body]

    stock = kind == "stock"
    server = waitress.create_server(App(), listen="127.0.0.1:0") if stock else make_server(App())
    print(f"http://127.0.0.1:{server.effective_port}", flush=True)
    server.run()


def cpu_seconds(pid: int) -> float:
    ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def measure(pid: int, address: str, row: str, connections: int, seconds: int) -> None:
    """Prints a line of the table."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SCRIPT % ROWS[row])
        script.flush()
        load = f"wrk -t1 -c{connections} -d{seconds}s --timeout 10 -s {script.name} {address}/"
        before = cpu_seconds(pid)
        done = subprocess.run(load.split(), capture_output=True, text=True, check=True)
    said = json.loads(done.stdout.splitlines()[-1])
    cpu = (cpu_seconds(pid) - before) * 1000 / max(1, said["requests"])
    memory = re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
    print(
        f"{row:28}{connections:6}{said['requests'] / said['seconds']:12.0f}{said['p50']:10.2f}"
        f"{said['p99']:10.2f}{cpu:12.3f}{int(memory[1]) // 1024 if memory else 0:8}"
        + (f"  {said['failed']} failed" if said["failed"] else ""),
        flush=True,
    )


def bench(comments: int, asked: argparse.Namespace, folder: Path) -> None:
    settings = "[server]\nlisten=127.0.0.1:0\n[captcha]\nprovider=none\n[limits]\nenabled=no\n"
    (folder / "commentd.ini").write_text(settings)
    seed(folder / "commentd.db", comments)
    size = (folder / "commentd.db").stat().st_size >> 20
    begun = time.monotonic()
    with process(folder, str(HOME / "commentd.py")) as (pid, address):
        took = time.monotonic() - begun
        print(f"\n{comments} comments in {size} MB: serves {took:.2f} s after its start\n")
        print(f"{'':28} conns  requests/s    p50 ms    p99 ms  CPU s/1000      MB", flush=True)
        with urllib.request.urlopen(f"{address}/comments?limit=10&url=/p/1") as answer:
            (folder / "answer").write_bytes(answer.read())
        for row in [row for row in ROWS if re.search(asked.rows, row)]:
            for connections in asked.connections:
                kind = re.match("constant, (stock|this)", row)
                if kind:
                    with process(folder, __file__, "--constant", kind[1]) as other:
                        measure(*other, row, connections, asked.seconds)
                else:
                    measure(pid, address, row, connections, asked.seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--comments", type=int, nargs="+", default=[100_000], metavar="N")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 16, 128], metavar="N")
    parser.add_argument("--seconds", type=int, default=3, help="for each line of the table")
    parser.add_argument("--rows", default="", help="those in which this pattern is found")
    parser.add_argument("--constant", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is missing: on Debian, apt install wrk")
    if asked.constant:
        constant(asked.constant)
    for comments in asked.comments:
        with tempfile.TemporaryDirectory() as folder:
            bench(comments, asked, Path(folder))


if __name__ == "__main__":
    main()
