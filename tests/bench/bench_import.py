"""What an import costs, and that two programs import the same; run by hand, such as
`python tests/bench/bench_import.py OLD/commentd.py commentd.py`.

For each product, a file with many comments is made. Each program imports it into a new database,
one after the other, some rounds. Then all tables of the databases are compared, except for the time
at which the import ran. The table shows the least processor time of each program."""

import argparse
import itertools
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support.products import MAKERS, MINUTE, NOON, ForeignComment

# The time of the import, and how often a page was changed.
UNCOMPARED = ("seen_at", "hidden_at", "mark", "gone_mark")
HTML_PRODUCTS = ("disqus", "wordpress", "twikoo")
PRODUCTS = ("waline", "isso", "commentd", "twikoo", "disqus", "wordpress")
WORDS = re.findall(
    r"\w+",
    """the a comment page reader answer question setting server works fails again today why how
    version install after before without this that which people write read thanks great idea blog
    post static site generator theme plugin cache proxy mail database file folder""",
)
CHINESE = [
    "谢谢分享，这个方法很好用",
    "请问怎么设置邮件通知？",
    "我按照教程做了，还是不行",
    "博主更新得真快！",
    "收藏了，周末试一下。",
]


class Paragraph(NamedTuple):
    """A piece of text as Markdown, and as the HTML of an editor."""

    markdown: str
    html: str


def sentence(chance: random.Random) -> str:
    words = " ".join(chance.choice(WORDS) for _ in range(chance.randint(3, 16)))
    return f"{words[0].upper()}{words[1:]}{chance.choice('...!?')}"


def plain(chance: random.Random) -> Paragraph:
    text = " ".join(sentence(chance) for _ in range(chance.randint(1, 3)))
    return Paragraph(text, f"<p>{text}</p>")


def chinese(chance: random.Random) -> Paragraph:
    text = "".join(chance.choice(CHINESE) for _ in range(chance.randint(1, 4)))
    return Paragraph(text, f"<p>{text}</p>")


def lines(chance: random.Random) -> Paragraph:
    written = [sentence(chance) for _ in range(chance.randint(2, 4))]
    return Paragraph("\n".join(written), f"<p>{'<br>'.join(written)}</p>")


def rich(chance: random.Random) -> Paragraph:
    start, end, word = sentence(chance), sentence(chance), chance.choice(WORDS)
    number = chance.randint(1, 9999)
    return chance.choice(
        [
            Paragraph(f"{start} **{word}** {end}", f"<p>{start} <strong>{word}</strong> {end}</p>"),
            Paragraph(f"{start} `{word}()` {end}", f"<p>{start} <code>{word}()</code> {end}</p>"),
            Paragraph(
                f"{start} https://example.com/{word}/{number} {end}",
                f'<p>{start} <a href="https://example.com/{word}/{number}" rel="nofollow">'
                f"https://example.com/{word}/{number}</a> {end}</p>",
            ),
            Paragraph(
                f"{start} [{word}](https://example.com/{number})",
                f'<p>{start} <a href="https://example.com/{number}">{word}</a></p>',
            ),
            Paragraph(
                f"> {start}\n\n{end}", f"<blockquote><p>{start}</p></blockquote><p>{end}</p>"
            ),
            Paragraph(f"- {start}\n- {end}", f"<ul><li>{start}</li><li>{end}</li></ul>"),
            Paragraph(
                f"```\n{word} = {number}\nprint({word})\n```",
                f"<pre><code>{word} = {number}\nprint({word})\n</code></pre>",
            ),
            Paragraph(
                f"{start} snake_case_{word} & a < b (it's *)",
                f"<p>{start} snake_case_{word} &amp; a &lt; b (it's *)</p>",
            ),
        ]
    )


def text(chance: random.Random, *, as_html: bool) -> str:
    """Half of the paragraphs are plain, as people write them."""
    kinds: list[Callable[[random.Random], Paragraph]] = [plain, plain, chinese, lines, rich, rich]
    paragraphs = [chance.choice(kinds)(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    if as_html:
        return "".join(paragraph.html for paragraph in paragraphs)
    return "\n\n".join(paragraph.markdown for paragraph in paragraphs)


def comments(count: int, pages: int, *, as_html: bool) -> Iterator[ForeignComment]:
    chance = random.Random(1)
    for number in range(1, count + 1):
        # A reply follows a comment of its page.
        is_reply = number > pages and chance.random() < 0.4
        yield ForeignComment(
            str(number),
            NOON + number * MINUTE // 4,
            parent=str(number - pages) if is_reply else "",
            page=f"/2024/post-{number % pages}/",
            text=text(chance, as_html=as_html),
            nickname=f"{chance.choice(('Ann', 'Bob', '小明', 'Zoë', 'Иван'))} {number % 997}",
            email=f"reader{number % 997}@example.com" if number % 3 else "",
            website="https://example.com/me" if number % 5 == 0 else "",
            ip=f"203.0.{number % 113}.{number % 251}",
            status="visible" if number % 50 else "waiting",
            likes=number % 4 // 3,
        )


# Compiled once, as the installed command is. A script would be compiled at each start.
COMMAND = "import sys, commentd; sys.exit(commentd.main())"


def cpu_seconds(program: Path, folder: Path, *command: str, output: int | None = None) -> float:
    arguments = [sys.executable, "-c", COMMAND, "--config", str(folder / "commentd.ini"), *command]
    environ = {
        **os.environ,
        "PYTHONPATH": str(program.parent),
        "PYTHONPYCACHEPREFIX": str(folder.parent / "compiled"),
    }
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    process = subprocess.Popen(
        arguments, cwd=folder, env=environ, stdout=output or subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{program} {' '.join(command)} fails")
    return usage.ru_utime + usage.ru_stime


def import_into(folder: Path, program: Path, product: str, file: Path) -> float:
    folder.mkdir()
    (folder / "commentd.ini").write_text("[database]\npath = blog.db\n")
    return cpu_seconds(program, folder, "import", str(file), "--format", product)


def rows(database: Path) -> dict[str, list[Any]]:
    """All rows by table, without the time of the import."""
    found = {}
    with closing(sqlite3.connect(database)) as db:
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        for (table,) in [*db.execute(names)]:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            kept = [name for name in columns if name not in UNCOMPARED]
            is_index = table.startswith("search_")  # it differs where others are saved at once
            if table not in ("secret", "state") and not is_index and kept:
                found[table] = sorted(
                    db.execute(f"SELECT {', '.join(kept)} FROM {table}"), key=repr
                )
    return found


def compare(product: str, databases: list[Path]) -> None:
    first, *others = map(rows, databases)
    for other in others:
        for table, expected in first.items():
            if other[table] != expected:
                pairs = itertools.zip_longest(expected, other[table])
                differing = next(pair for pair in pairs if pair[0] != pair[1])
                sys.exit(f"{product}: the tables {table} differ: {differing}")


def file_for(product: str, folder: Path, programs: list[Path], count: int, pages: int) -> Path:
    """A file of that product. Our own is what the first program exports."""
    file = folder / f"{product}.export"
    maker = MAKERS["waline" if product == "commentd" else product]
    file.write_bytes(maker(comments(count, pages, as_html=product in HTML_PRODUCTS)))
    if product == "commentd":
        source = folder / "source"
        import_into(source, programs[0], "waline", file)
        with file.open("wb") as output:
            cpu_seconds(programs[0], source, "export", "--emails", output=output.fileno())
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--count", type=int, default=20_000, help="comments in a file")
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--products", nargs="+", choices=PRODUCTS, default=PRODUCTS)
    arguments = parser.parse_args()
    programs = [program.resolve() for program in arguments.programs]
    for product in arguments.products:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            file = file_for(product, folder, programs, arguments.count, arguments.pages)
            least = [float("inf")] * len(programs)
            for round_number, (number, program) in itertools.product(
                range(arguments.rounds), enumerate(programs)
            ):
                target = folder / f"{round_number}-{number}"
                least[number] = min(least[number], import_into(target, program, product, file))
            compare(
                product, [folder / f"0-{number}" / "blog.db" for number in range(len(programs))]
            )
            figures = "  ".join(
                f"{seconds:7.2f} s {1000 * seconds / arguments.count:6.3f} ms" for seconds in least
            )
            megabytes = file.stat().st_size / 1e6
            print(
                f"{product:10} {arguments.count} comments, {megabytes:5.1f} MB  {figures}",
                flush=True,
            )


if __name__ == "__main__":
    main()
