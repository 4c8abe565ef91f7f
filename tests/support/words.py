"""What the widget and /admin say, by language."""

import json

from support.sources import STATIC

WORDS = {path.stem: json.loads(path.read_bytes()) for path in (STATIC / "words").iterdir()}
ADMIN = {each.removeprefix("admin-"): WORDS.pop(each) for each in [*WORDS] if "admin" in each}
# What the widget says before a reader does anything.
FIRST_KEYS: list[str] = json.loads((STATIC / "first_texts.json").read_bytes())
