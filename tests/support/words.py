"""What the widget and /admin say, by language."""

import json

from support.sources import STATIC

FILES = {path.stem: json.loads(path.read_bytes()) for path in (STATIC / "words").iterdir()}
ADMIN = {each.removeprefix("admin-"): FILES.pop(each) for each in [*FILES] if "admin" in each}
# What the widget says before it loads more.
FIRST: dict[str, dict[str, str]] = json.loads((STATIC / "texts.json").read_bytes())
WORDS = {language: {**FIRST.get(language, {}), **words} for language, words in FILES.items()}
