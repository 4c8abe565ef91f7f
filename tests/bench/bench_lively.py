"""What stickers, reactions, faces, formulas, tables and pictures by link cost a reader: the page of
bench_widget.py with the ordinary tag, once without them, once where the owner has switched all on,
and once with comments that use all. Run by hand: `python tests/bench/bench_lively.py`.

The pictures of the other host come at once, past the slow network: what is measured is what they
move, not how long they take."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext

HOME = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HOME), str(HOME / "tests"), str(HOME / "tests" / "bench")]

import bench_widget  # noqa: E402

from support import blog, inside, lively  # noqa: E402


class WithPictures:
    """A browser in which each page gets the pictures of the other host."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    def new_context(self, **how: object) -> BrowserContext:
        context = self.browser.new_context(**how)  # type: ignore[arg-type]
        context.on("page", lively.show_pictures)
        return context


@contextmanager
def site_of(*, is_on: bool, is_used: bool) -> Iterator[str]:
    """The address of a post."""
    with tempfile.TemporaryDirectory() as folder:
        settings = lively.settings(Path(folder)) if is_on else {}
        with blog.own_app(**settings) as app, blog.service(app) as service:
            if is_used:
                lively.talk(app, blog.POST)
            else:
                blog.conversation(app)
            with blog.blog(blog.article(service, lang="en")) as home:
                yield home + blog.POST


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rtt", type=int, default=150, metavar="MS")
    parser.add_argument("--kbits", type=int, default=1600, help="a second, down")
    options = parser.parse_args()
    inside.serve_small_files(Path(tempfile.mkdtemp()))
    kinds = {"all off": (False, False), "all on": (True, False), "all on and used": (True, True)}
    with blog.chromium() as browser:
        pictured = WithPictures(browser)
        for number, (name, (is_on, is_used)) in enumerate(kinds.items()):
            with site_of(is_on=is_on, is_used=is_used) as url:
                row = bench_widget.times(pictured, url, options)  # type: ignore[arg-type]
                row |= bench_widget.shifts(pictured, url, bench_widget.PHONE, options)  # type: ignore[arg-type]
                row |= bench_widget.requests(pictured, url, options)  # type: ignore[arg-type]
            if number == 0:
                print("|", " | ".join(["", *row]), "|")
                print("|---|", "--:|" * len(row), sep="")
            cells = [str(text) for text, _ in row.values()]
            print("|", " | ".join([name, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
