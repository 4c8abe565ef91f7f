"""The servers that bench_http.py measures, each in a process of its own, and what it reads of them.
nginx answers with the very bytes of our answers."""

import http.client
import os
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
