"""What a search at /admin costs in a large blog; run by hand: `python tests/bench/bench_search.py`.

Half of the comments are Chinese, half English, put together from pieces of the manual. The table
shows the least processor time of each search, with the index and without it, and what the index
costs a comment."""

import argparse
import functools
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import commentd
from support.sources import STATIC

FIRST = 1_500_000_000  # the time of the first comment
HALF_AN_HOUR = 1800
RARE = "龘龘 zyxwvu"  # what one old comment has
SEARCHES = {
    "one Chinese character, rare": {"words": ("龘",)},
    "two, rare": {"words": ("龘龘",)},
    "two, common": {"words": ("评论",)},
    "two letters, common": {"words": ("is",)},
    "a word, rare": {"words": ("zyxwvu",)},
    "a word, common": {"words": ("comment",)},
    "a word that none has": {"words": ("wiredation",)},
    "a common word and a rare one": {"words": ("the", "zyxwvu")},
    "a common word of old comments": {"words": ("comment",), "until": FIRST + 10**6},
    "an author that there is not": {"author": "no such"},
    "an old day alone": {"until": FIRST + 10**6},
}


def pieces(language: str, pattern: str) -> list[str]:
    files = sorted((STATIC / "help" / language).glob("*.md"))
    return re.findall(pattern, "".join(file.read_text("utf-8") for file in files))


def fill(store: commentd.Store, count: int) -> None:
    chance = random.Random(1)
    chinese, english = pieces("zh", "[\u4e00-\u9fff]{2,8}"), pieces("en", "[A-Za-z]+ ")
    with store.writing():
        pages = [store.add_page(f"/post/{n}/", f"/post/{n}/", FIRST).id for n in range(500)]
    for start in range(0, count, 250):
        with store.writing():
            for number in range(start, min(start + 250, count)):
                source = chance.choice((chinese, english))
                text = "".join(chance.choices(source, k=chance.choice((5, 10, 20, 30, 60))))
                text += RARE if number == count // 10 else ""
                new = commentd.FullComment(
                    page_id=chance.choice(pages),
                    nickname=f"{chance.choice(source)} {number % 997}",
                    content=text,
                    html=f"<p>{text}</p>",
                    created_at=FIRST + number * HALF_AN_HOUR,
                )
                store.add_comment_row(new, "visible", new.created_at)


def seconds(act: Callable[[], object], rounds: int = 3) -> float:
    """The least processor time."""
    least = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        act()
        least = min(least, time.process_time() - start)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200_000, help="comments")
    count = parser.parse_args().count
    with (
        tempfile.TemporaryDirectory() as name,
        closing(commentd.Store(Path(name) / "commentd.db")) as store,
    ):
        filling = seconds(lambda: fill(store, count), rounds=1)
        print(f"{count} comments, {1e6 * filling / count:.0f} µs each, with the index")
        print(f"| {'search':32} | with the index, ms | without it |\n|---|--:|--:|")
        for label, values in SEARCHES.items():
            search = commentd.Search(**values)  # type: ignore[arg-type]
            costs = []
            for keeps_index in (True, False):
                store.keeps_index = keeps_index
                act = functools.partial(store.search_comments, search, commentd.NO_END, 31)
                costs.append(seconds(act))
            print(f"| {label:32} | {1000 * costs[0]:18.1f} | {1000 * costs[1]:10.1f} |", flush=True)


if __name__ == "__main__":
    main()
