"""How much CPU time it takes to build a response, and to write a comment, beside another checkout,
as a Markdown table; run by hand: `python tests/bench/bench_build.py ../another-checkout .`

Each checkout gets a database of its own, filled through its API. Its WSGI application is called
in one thread, without server and cache. The checkouts take turns within a run, and figures are
medians of the turns, in milliseconds of CPU of that thread. `--profile` shows where the time goes
in the last checkout instead."""

import argparse
import cProfile
import functools
import importlib.util
import io
import json
import pstats
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

TEXT = (
    "A comment of usual length, with *Markdown*, a [link](https://example.com/) and 中文:"
    " it goes on for a while, as readers do who have something to say about a post."
)
THREADS = {"/small": 10, "/large": 20}  # of each page; one in three has two replies
QUERIES = {
    "list of ten": "/comments?url=/small&limit=10",
    "ten threads": "/comments?url=/small&limit=10&view=threads",
    "twenty threads": "/comments?url=/large&limit=20&view=threads",
    "fragment of ten threads": "/fragment?url=/small&limit=10&lang=en",
    "thread page of twenty": "/thread?url=/large&lang=en",
    "feed": "/feed.atom?url=/large",
}
Build = Callable[[], object]


def load(folder: Path, name: str) -> ModuleType:
    """The module of a checkout, under a name of its own."""
    spec = importlib.util.spec_from_file_location(name, folder / "commentd.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def call(app: Any, path: str, form: dict[str, Any] | None = None) -> bytes:
    """The body of the response to a GET or, with a form, to a POST."""
    path, _, query = path.partition("?")
    body = json.dumps(form).encode() if form else b""
    environ = {
        "REQUEST_METHOD": "POST" if form else "GET",
        "SCRIPT_NAME": "",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "CONTENT_TYPE": "application/json" if form else "",
        "CONTENT_LENGTH": str(len(body)),
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "localhost",
        "HTTP_USER_AGENT": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "REMOTE_ADDR": "203.0.113.7",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    statuses: list[str] = []

    def start_response(status: str, headers: object, error: object = None) -> None:
        statuses.append(status)

    parts = app(environ, start_response)
    response = b"".join(parts)
    if hasattr(parts, "close"):
        parts.close()
    assert statuses[-1].startswith("200"), (statuses, response)
    return response


class Checkout:
    """The application of a checkout, on a database with some comments."""

    def __init__(self, folder: Path, name: str, database: Path) -> None:
        module = load(folder, name)
        config = module.Config(
            database_path=str(database), captcha_provider="none", limits_enabled=False
        )
        self.app = module.make_app(config)
        self.posted = 0
        for page_url, threads in THREADS.items():
            for number in range(threads):
                root = self.post(page_url)
                for _ in range(2 if number % 3 == 0 else 0):
                    self.post(page_url, parent_id=root)

    def post(self, page_url: str, **more: object) -> int:
        self.posted += 1
        form = {
            "page_url": page_url,
            "nickname": "Ann",
            "content": f"{self.posted} {TEXT}",
            "captcha_token": "x",
            **more,
        }
        posted = json.loads(call(self.app, "/comments", form))
        return int(posted["comment"]["id"])

    def work(self) -> dict[str, Build]:
        """What is measured, by its label."""
        work: dict[str, Build] = {
            label: functools.partial(call, self.app, query) for label, query in QUERIES.items()
        }
        work["posted comment"] = self.post_somewhere
        return work

    def post_somewhere(self) -> None:
        """On one of many pages: each looks for the same comment among those of the last minute."""
        self.post(f"/posted/{self.posted % 100}")


def milliseconds(work: Build, times: int) -> float:
    """The CPU time of this thread for each call."""
    before = time.thread_time()
    for _ in range(times):
        work()
    return (time.thread_time() - before) / times * 1000


def compare(checkouts: list[Checkout], turns: int, times: int) -> None:
    print("| CPU ms |", " | ".join(["old", "new", "new / old"]), "|")
    print("|---|--:|--:|--:|")
    for label in checkouts[0].work():
        work = [checkout.work()[label] for checkout in checkouts]
        found: list[list[float]] = [[], []]
        for turn in range(turns + 1):
            for index in range(2):
                took = milliseconds(work[index], times)
                if turn:  # the first only warms up
                    found[index].append(took)
        old, new = map(median, found)
        print(f"| {label} | {old:.2f} | {new:.2f} | {new / old:.2f} |", flush=True)


def profile(checkout: Checkout, label: str, times: int) -> None:
    work = checkout.work()[label]
    work()
    profiler = cProfile.Profile()
    profiler.enable()
    for _ in range(times):
        work()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--times", type=int, default=20, help="calls in a turn")
    parser.add_argument("--profile", metavar="LABEL", help="such as 'list of ten'")
    options = parser.parse_args()
    with ExitStack() as opened:
        temporary = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        checkouts = []
        for name, folder in (("old", options.old), ("new", options.new)):
            checkout = Checkout(folder, name, temporary / f"{name}.db")
            opened.enter_context(closing(checkout.app))
            checkouts.append(checkout)
        if options.profile:
            profile(checkouts[1], options.profile, options.times * options.turns)
        else:
            compare(checkouts, options.turns, options.times)


if __name__ == "__main__":
    main()
