"""Holds the widget against WCAG 2.2, in each state, language and scheme: `python tests/wcag.py`.
With `--only NAME` for some states or paths, `--lang` and `--scheme` for some of those. It prints
what was checked and what was found, and ends with 1 when there are findings. wcag.md says what that
means for each criterion; its figures are those of the last run."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from commentd import __version__
from support import blog
from support.accessibility import (
    LANGS,
    PATHS,
    SCHEMES,
    brief,
    examined_site_running,
    findings_of,
    run,
)
from support.widget_states import STATES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("--only", action="append", choices=[*STATES, *PATHS], metavar="NAME")
    parser.add_argument("--lang", action="append", choices=LANGS)
    parser.add_argument("--scheme", action="append", choices=SCHEMES)
    options = parser.parse_args()
    only, langs = options.only or [*STATES, *PATHS], options.lang or LANGS
    with blog.chromium() as browser, examined_site_running(browser) as examined_site:
        run(examined_site, only, langs, options.scheme or SCHEMES)
        version = browser.version
    report = examined_site.report
    checks = ", ".join(f"{name}: {count}" for name, count in sorted(report.checks.items()))
    large, targets = report.large
    print(f"Widget {__version__}, Chromium {version}")
    print(f"{sum(report.checks.values())} checks. {checks}.")
    print(f"Targets on a touch screen that are 44 px or more each way: {large} of {targets}.")
    print("Findings:", *findings_of(report) or ["None."], sep="\n")
    unsure = [f"- {what} ({brief(places)})" for what, places in sorted(report.unsure.items())]
    print("For a person to look at:", *unsure or ["Nothing."], sep="\n")
    sys.exit(bool(report.found))


if __name__ == "__main__":
    main()
