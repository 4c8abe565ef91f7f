"""How well the spam filter learns from an owner's clicks, on comments that others have labelled;
run by hand, such as `python tests/bench/bench_filter.py Youtube0*.csv`.

The files are as those of the YouTube Spam Collection (Alberto, Lochter, Almeida: TubeSpam, 2015;
archive.ics.uci.edu/dataset/380): `COMMENT_ID,AUTHOR,DATE,CONTENT,CLASS`, where class 1 is spam.
Each is a blog of its own, whose comments come in the order of the file. After some the owner
looks: what is held is approved or marked as spam. What readers see is marked if it is spam, and
left alone if it is good. Counted are the comments that came while the filter was active."""

import argparse
import csv
import html
import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import webtest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from commentd import Config, World, make_app
from support import inside

OWNER, HOUR = "owner@example.com", 3600


@dataclass
class LabelledComment:
    """A comment as somebody labelled it, and what the service made of it."""

    author: str
    text: str
    is_spam: bool
    id: int = 0
    held: bool = False
    active: bool = False


def read(path: Path) -> list[LabelledComment]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [
            LabelledComment(
                plain(r["AUTHOR"])[:60] or "?", plain(r["CONTENT"])[:2000], r["CLASS"] == "1"
            )
            for r in csv.DictReader(file)
        ]


def plain(markup: str) -> str:
    """What was typed before the site made HTML of it."""
    typed = re.sub(r'<a [^>]*href="([^"]*)"[^>]*>[^<]*</a>', r" \1 ", markup)
    typed = html.unescape(re.sub(r"<br ?/?>", "\n", typed))
    return "".join(c for c in typed if c == "\n" or c.isprintable()).strip()


class Blog:
    """A service in this process, and its owner."""

    def __init__(self, folder: str) -> None:
        self.time, self.clicks = 1_795_000_000, 0
        config = Config(
            database_path=f"{folder}/commentd.db", captcha_provider="none", limits_enabled=False
        )
        world = World(clock=lambda: self.time, send_email=lambda *_: None)
        self.app = make_app(config, world, rounds=1)
        inside.add_account(self.app, OWNER, "Owner", "x", "admin")
        self.readers = webtest.TestApp(self.app, extra_environ={"REMOTE_ADDR": "203.0.113.7"})

    def say(self, comment: LabelledComment) -> None:
        self.time += HOUR
        body = {"page_url": "/", "captcha_token": "x", "nickname": comment.author}
        response = self.readers.post_json("/comments", {**body, "content": comment.text}).json
        comment.id = response["comment"]["id"]
        comment.held = response["comment"]["status"] == "waiting"

    def look(self, news: list[LabelledComment]) -> bool:
        """Moderate what came; whether the filter is active from now on."""
        admin = webtest.TestApp(self.app, extra_environ={"REMOTE_ADDR": "198.51.100.7"})
        admin.authorization = ("Bearer", inside.token_of(self.app, OWNER, "admin"))
        for comment in news:
            if comment.is_spam or comment.held:
                wish = "spam" if comment.is_spam else "visible"
                admin.post_json("/admin/comments", {"ids": [comment.id], "status": wish})
                self.clicks += 1
        known: dict[str, Any] = admin.get("/admin/comments?limit=1").json["filter"]
        return bool(known["active"])


def run(comments: list[LabelledComment], every: int) -> int:
    """Let them come; how many clicks that was."""
    active = False
    with tempfile.TemporaryDirectory() as folder:
        blog = Blog(folder)
        for start in range(0, len(comments), every):
            news = comments[start : start + every]
            for comment in news:
                comment.active = active
                blog.say(comment)
            active = blog.look(news)
        blog.app.close()
    return blog.clicks


def tell(name: str, comments: list[LabelledComment], clicks: int) -> None:
    verdicts = Counter((comment.is_spam, comment.held) for comment in comments if comment.active)
    right, wrong = verdicts[True, True], verdicts[False, True]
    spam, good = right + verdicts[True, False], wrong + verdicts[False, False]
    print(
        f"{name:24} {len(comments):5} comments {clicks:4} clicks | active for {spam:4} spam"
        f" {good:4} good | {right / max(spam, 1):.1%} of the spam held, {wrong / max(good, 1):.1%}"
        f" of the good; {right / max(right + wrong, 1):.1%} of what was held was spam"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--every", type=int, default=10, help="the owner looks after so many")
    options = parser.parse_args()
    everything: list[LabelledComment] = []
    clicks = 0
    for path in options.files:
        comments = read(path)
        clicked = run(comments, options.every)
        tell(path.stem, comments, clicked)
        everything, clicks = everything + comments, clicks + clicked
    tell("all", everything, clicks)


if __name__ == "__main__":
    main()
