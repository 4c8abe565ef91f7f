"""What the widget and /admin say, by language."""

import ast
import json

from support.sources import STATIC

EMBED = (STATIC / "embed.js").read_text("utf-8")
FILES = {path.stem: json.loads(path.read_bytes()) for path in (STATIC / "words").iterdir()}
ADMIN = {each.removeprefix("admin-"): FILES.pop(each) for each in [*FILES] if "admin" in each}


def inline(language: str) -> dict[str, str]:
    """The words that stand in the script itself, in a table that Python reads like a browser."""
    table = EMBED[EMBED.index("[key, en, zh] of [") :].removeprefix("[key, en, zh] of ")
    rows = ast.literal_eval(table[: table.index("]) {") + 1])
    column = {"en": 1, "zh-CN": 2}.get(language, 3)
    return {row[0]: row[column] for row in rows if len(row) > column}


WORDS = {language: {**inline(language), **words} for language, words in FILES.items()}
