"""Servers that the benchmarks measure, each in a process of its own, what is read of them, and how
wrk drives them. nginx answers with the very bytes of our answers."""

import http.client
import json
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

TEXT = "Thank you for this: the *second* way works here too, with `-march=native` as you say."

Answer = tuple[int, dict[str, str], bytes]


class Peer(NamedTuple):
    """A server that runs. In paths and bodies wrk puts a page for {page}, and for {number} what
    tells requests apart."""

    pid: int
    address: str
    screen: str
    write: str = ""
    body: str = ""


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
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.001)
        else:
            sys.exit(f"{command} does not start: {(folder / 'log').read_text()}")
        yield server.pid
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


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


def memory(pid: int) -> float:
    """MB of a server and its children. What several share counts once."""
    texts = [Path(f"/proc/{each}/smaps_rollup").read_text() for each in family(pid)]
    return (
        sum(int(size) for text in texts for size in re.findall(r"(?m)^Pss:\s*(\d+)", text)) / 1024
    )


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


def nginx_program() -> str:
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if not program:
        sys.exit("nginx is missing: on Debian, apt install nginx-light")
    return program


def nginx(stack: ExitStack, name: str, pages: dict[str, Answer]) -> Peer:
    """Answers with these; each file bears the name of what was asked."""
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
    command = [nginx_program(), "-p", str(folder), "-c", f"{folder}/conf", "-g", "daemon off;"]
    pid = stack.enter_context(running(folder, port, command))
    return Peer(pid, f"http://127.0.0.1:{port}", "/p/{page}")


# What wrk measures

SCRIPT = """
wrk.headers["Accept"] = "application/json"
wrk.headers["Accept-Encoding"] = "gzip, deflate, br"
wrk.headers["Accept-Language"] = "en-GB,en;q=0.9"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Origin"] = "https://blog.example"
wrk.headers["Referer"] = "https://blog.example/"
local ready, number, path, wait, body = {}, 0
local function filled(text)
  return (text:gsub("{page}", math.random(999)):gsub("{number}", number))
end
local function made()
  number = number + 1
  wrk.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Firefox/" .. number
  return wrk.format(body and "POST", filled(path), nil, body and filled(body))
end
function init(args)
  path, wait, body = args[1], args[3] + 0, args[4]
  math.randomseed(args[2] + 0)
  for each = 1, body and 0 or 2000 do ready[each] = made() end
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
        return Figures(rate, p50, p99, (used - before) * 1000 / max(1, requests), failed)

    return ended


# What is printed


def shown(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ") if number >= 10 else f"{number:.2g}"


def line(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def heading(*cells: str, words: int = 1) -> None:
    print()
    line(*cells)
    line(*["---"] * words, *["--:"] * (len(cells) - words))
