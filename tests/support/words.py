"""What the widget, /admin and emails say, by language."""

import json

from support.languages import LANGUAGES
from support.sources import STATIC

# As they are served: the direction comes with what browsers know of the language.
WORDS: dict[str, dict[str, str]] = {
    tag: {"dir": each["forms"]["direction"], **each["widget"]} for tag, each in LANGUAGES.items()
}
ADMIN: dict[str, dict[str, str]] = {
    tag: {"dir": each["forms"]["direction"], **each["admin"]} for tag, each in LANGUAGES.items()
}
EMAILS: dict[str, dict[str, str]] = {tag: each["emails"] for tag, each in LANGUAGES.items()}
# What the widget says before a reader does anything.
FIRST_KEYS: list[str] = json.loads((STATIC / "first_texts.json").read_bytes())
