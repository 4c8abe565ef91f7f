"""Begins the file of a language, or brings it up to date: `python tests/language.py nl`. What is
not translated yet stands there in English, and with `--changed widget.reply` also what was
translated before its English text changed. How dates, numbers and countries are written comes from
the browser. Then it names the languages in the README and the manual."""

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.blog import chromium
from support.languages import (
    FOLDER,
    LANGUAGES,
    complete,
    forms_in_browser,
    packed,
    passages,
    without,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tags", nargs="*", metavar="TAG", help="if none, all that there are")
    parser.add_argument("--changed", action="append", default=[], metavar="SECTION.KEY")
    options = parser.parse_args()
    tags = options.tags or [*LANGUAGES]
    with chromium() as browser:
        page = browser.new_page()
        for tag in tags:
            own = without(LANGUAGES.get(tag, {}), options.changed)
            whole = complete(own, forms_in_browser(page, tag))
            (FOLDER / f"{tag}.json").write_text(packed(whole), "utf-8")
    for file, pattern, passage in passages():
        text = file.read_text("utf-8")
        file.write_text(re.sub(pattern, passage, text), "utf-8")


if __name__ == "__main__":
    main()
