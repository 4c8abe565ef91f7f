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
from collections.abc import Iterator, Sequence
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
    beside: int = 0  # the process id of what works with it, as a service behind a proxy


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
    """MB of a server and its children, without what children share with it."""
    server, *children = (
        dict(re.findall(r"(?m)^(\w+):\s*(\d+)", Path(f"/proc/{each}/smaps_rollup").read_text()))
        for each in family(pid)
    )
    own = [int(child["Private_Clean"]) + int(child["Private_Dirty"]) for child in children]
    return (int(server["Rss"]) + sum(own)) / 1024


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

# wrk parses URLs once for each prepared request. Those that write are made one by one, since no
# comment may repeat another.
SCRIPT = """
wrk.headers["Accept"] = "application/json"
wrk.headers["Accept-Encoding"] = "gzip, deflate, br"
wrk.headers["Accept-Language"] = "en-GB,en;q=0.9"
wrk.headers["Content-Type"] = "application/json"
wrk.headers["Origin"] = "https://blog.example"
wrk.headers["Referer"] = "https://blog.example/"
local ready, number = {}, 0
local seed, wait, share, read_path, write_path, body
local function filled(text)
  return (text:gsub("{page}", math.random(999)):gsub("{number}", seed .. "." .. number))
end
local function made(method, path, content)
  number = number + 1
  local client = number % 2000
  wrk.headers["X-Forwarded-For"] = "198.18." .. math.floor(client / 250) .. "." .. client % 250
  wrk.headers["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Firefox/" .. client
  return wrk.format(method, filled(path), nil, content and filled(content))
end
function init(args)
  seed, wait, share = args[1] + 0, args[2] + 0, args[3] + 0
  read_path, write_path, body = args[4], args[5], args[6]
  math.randomseed(seed)
  for each = 1, share < 1 and 2000 or 0 do ready[each] = made("GET", read_path) end
  -- Clients come by chance. With equal waits, all connections would send at the same moment.
  local function by_chance() return math.floor(0.5 - wait * math.log(1 - math.random())) end
  if wait > 0 then delay = by_chance end
end
function request()
  if share > 0 and math.random() < share then return made("POST", write_path, body) end
  return ready[math.random(#ready)]
end
function done(summary, latency)
  local errors = summary.errors
  print(string.format("[%f, %f, %d, %d, %d]", summary.requests / summary.duration * 1e6,
    latency:percentile(99) / 1e3, summary.requests,
    errors.connect + errors.status + errors.read + errors.write, errors.timeout))
end
"""


class Figures(NamedTuple):
    rate: float = 0  # requests a second
    p99: float = 0  # ms
    cpu: float = 0  # ms of the server for each request
    failed: float = 0
    late: float = 0  # requests that waited for more than two seconds

    @property
    def rate_text(self) -> str:
        words = [f"{self.failed:.0f} failed"] * (self.failed >= 1)
        words += [f"{self.late:.0f} late"] * (self.late >= 1)
        return shown(self.rate) + (f" ({', '.join(words)})" if words else "")

    @property
    def cpu_text(self) -> str:
        return f"{self.cpu:.3f}" if self.cpu < 0.1 else f"{self.cpu:.2f}"


def loaded(
    peer: Peer, path: str, clients: int, seconds: int, *, share: float = 0, rate: float = 0
) -> Figures:
    """What wrk finds. `share` of the requests are the writes of the server, the others read this
    path. `rate`: how many there are a second; 0: as many as it takes."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(SCRIPT)
        script.flush()
        wait = 1000 * clients / rate if rate else 0
        words = map(str, (random.randrange(1 << 30), wait, share, path, peer.write, peer.body))
        load = ["wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "-s", script.name]
        pids = [peer.pid, peer.beside] if peer.beside else [peer.pid]
        before = sum(map(cpu_seconds, pids))
        wrk = subprocess.run(
            [*load, f"{peer.address}/", *words], stdout=subprocess.PIPE, text=True, check=True
        )
    per_second, p99, requests, failed, late = json.loads(wrk.stdout.splitlines()[-1])
    # What nobody waits for any more is part of the cost.
    ends_at = time.monotonic() + 60
    used, seen = sum(map(cpu_seconds, pids)), -1.0
    while used > seen + 0.02 and time.monotonic() < ends_at:
        seen = used
        time.sleep(0.1)
        used = sum(map(cpu_seconds, pids))
    # When wrk leaves, the server still works on a request of each connection.
    worked_on = max(1, requests if rate else requests + clients)
    return Figures(per_second, p99, (used - before) * 1000 / worked_on, failed, late)


# What is printed


def shown(number: float) -> str:
    return f"{number:,.0f}".replace(",", " ") if number >= 10 else f"{number:.2g}"


def line(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def heading(*cells: str, words: int = 1) -> None:
    print()
    line(*cells)
    line(*["---"] * words, *["--:"] * (len(cells) - words))
