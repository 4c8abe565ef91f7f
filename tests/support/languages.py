"""The files of `static/languages/`, and how browsers write in a language."""

import json
import re
import textwrap
from itertools import groupby
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from support.sources import ROOT, STATIC

FOLDER = STATIC / "languages"
# What a translator writes. The key `forms` is written by `python tests/language.py`.
SECTIONS = ("widget", "admin", "emails")
PLURAL_FORM = re.compile(r"_(zero|one|two|few|many|other)$")
Section = dict[str, str]


def language_of_file(tag: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{tag}.json").read_bytes()))


LANGUAGES = {path.stem: language_of_file(path.stem) for path in sorted(FOLDER.iterdir())}

# How browsers write the fifth of each month, its time, large numbers and countries, in `Locale`'s
# terms.
FORMS = """([tag, codes]) => {
  const at = month => new Date(2024, month, 5, 13, 7)
  const partsOf = (month, how) => new Intl.DateTimeFormat(tag, how).formatToParts(at(month))
  const joined = parts => parts.map(part => part.value).join('')
  const dates = [...Array(12).keys()].map(month => partsOf(month, {dateStyle: 'medium'}))
  const name = {day: '{day}', month: '{month}', year: '{year}'}
  const padded = ({type, value}) => type === 'day' && value === '05' ? '{day:02}' : null
  const moment = partsOf(0, {dateStyle: 'medium', timeStyle: 'short'})
  const isTime = part => /^(hour|minute|dayPeriod)$/.test(part.type)
  const time = joined(moment.slice(moment.findIndex(isTime), moment.findLastIndex(isTime) + 1))
  const groupOf = n => new Intl.NumberFormat(tag).formatToParts(n).find(it => it.type === 'group')
  const rules = new Intl.PluralRules(tag)
  const forms = rules.resolvedOptions().pluralCategories
  const numbers = [...Array(200).keys()]
  const names = new Intl.DisplayNames(tag, {type: 'region'})
  return {
    direction: new Intl.Locale(tag).getTextInfo().direction,
    day_format: joined(dates[0].map(part =>
      ({value: padded(part) ?? name[part.type] ?? part.value}))),
    months: dates.map(parts => parts.find(part => part.type === 'month').value),
    day_and_time_format: joined(moment).replace(joined(dates[0]), '{day}').replace(time, '{time}'),
    thousands_separator: groupOf(12345).value,
    least_separated: groupOf(1234) ? 1000 : 10000,
    plural_numbers: Object.fromEntries(['zero', 'one', 'two', 'few', 'many']
      .filter(form => forms.includes(form))
      .map(form => [form, numbers.filter(n => rules.select(n) === form)])),
    country_names: Object.fromEntries(codes.map(code => [code, names.of(code)])),
  }
}"""


def forms_in_browser(page: Page, tag: str) -> dict[str, Any]:
    """The key `forms` of a language."""
    codes = [*language_of_file("en")["forms"]["country_names"]]
    forms = page.evaluate(FORMS, [tag, codes])
    numbers = forms["plural_numbers"]
    forms["plural_numbers"] = {form: ranges_of(numbers[form]) for form in numbers}
    return dict(forms)


def ranges_of(numbers: list[int]) -> str:
    """Such as `1 21-24`."""
    ranges = []
    for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        first, *_, last = [n for _, n in run] * 2
        ranges.append(f"{first}" if first == last else f"{first}-{last}")
    return " ".join(ranges)


def places(section: Section) -> dict[str, list[str]]:
    """The keys of a section, by the text that they are of: a counted one has a key for each plural
    form."""
    keys: dict[str, list[str]] = {}
    for key in section:
        counted = PLURAL_FORM.sub("", key)
        place = counted if f"{counted}_other" in section else key
        keys.setdefault(place, []).append(key)
    return keys


def with_places_of_english(own: Section, english: Section, plural_forms: list[str]) -> Section:
    """A section with a key for each text that English has, in its order: what is not translated yet
    is in English."""
    texts = {}
    for place, [*keys] in places(english).items():
        if place in own:
            keys = [place]
        elif keys != [place]:
            keys = [f"{place}_{form}" for form in plural_forms]
        for key in keys:
            texts[key] = own.get(key) or english.get(key) or english[f"{place}_other"]
    return texts


def without(own: dict[str, Any], changed: list[str]) -> dict[str, Any]:
    """A language without its translations of texts that have changed in English, such as
    `widget.reply` or, with all its plural forms, `widget.count`."""

    def is_old(section: str, key: str) -> bool:
        return f"{section}.{PLURAL_FORM.sub('', key)}" in changed or f"{section}.{key}" in changed

    kept = {
        section: {key: text for key, text in own[section].items() if not is_old(section, key)}
        for section in SECTIONS
        if section in own
    }
    return {**own, **kept}


def isolated(text: str) -> str:
    """A text with marks around its placeholder, for a language that is written from the right: a
    name from the left keeps its place among the words then. `/admin` adds them by itself."""
    return re.sub("\u2068?\\{n\\}\u2069?", "\u2068{n}\u2069", text)


def complete(own: dict[str, Any], forms: dict[str, Any]) -> dict[str, Any]:
    """The file of a language with all that it has to have."""
    english = language_of_file("en")
    plural_forms = [*forms["plural_numbers"], "other"]
    whole = {key: own.get(key, "") for key in ("letters", "titles", "articles")}
    for section in SECTIONS:
        whole[section] = with_places_of_english(
            own.get(section, {}), english[section], plural_forms
        )
    if forms["direction"] == "rtl":
        whole["widget"] = {key: isolated(text) for key, text in whole["widget"].items()}
    if "emails_with_english" in own:
        whole["emails_with_english"] = own["emails_with_english"]
    return {**whole, "forms": forms}


def packed(language: dict[str, Any]) -> str:
    return json.dumps(language, ensure_ascii=False, indent=2) + "\n"


# By file: the passage that names the languages or counts them, and what has to stand there.
def passages() -> list[tuple[Path, str, str]]:
    tags = [path.stem for path in sorted(FOLDER.iterdir())]
    count = len(tags)
    found = [
        (ROOT / "README.md", r"in \d+\slanguages", f"in {count} languages"),
        (ROOT / "README.md", r"等 \d+ 种语言", f"等 {count} 种语言"),
    ]
    # Chinese characters are two columns wide.
    for folder, lead, brazil, end, width in (
        ("en", "The widget speaks ", " (Brazilian)", ".", 100),
        ("zh", "支持的语言：", "（巴西葡萄牙语）", "。", 85),
    ):
        line = lead + " ".join(f"`{tag}`" + brazil * (tag == "pt") for tag in tags)
        passage = textwrap.fill(line.replace("） ", "）") + end, width, break_on_hyphens=False)
        found.append((STATIC / f"help/{folder}/embed.md", f"{lead}[^.。]*[.。]", passage))
    return found
