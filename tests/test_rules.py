"""What the service promises to whoever attacks it: the rules are in rules.toml, each with the tests
that fail where it is broken, and with edits that break it.

`python tests/test_rules.py` makes every edit, one at a time, in a copy of the project, and runs the
tests of its rule, for an hour or two; `python tests/test_rules.py 5.1.6 5.3` those of some."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import Campaign
from test_asvs import functions
from test_source import ROOT

TOML = tomllib.loads((ROOT / "tests" / "rules.toml").read_text("utf-8"))
RULES: list[dict[str, Any]] = [{"number": n, **rule} for n, rule in TOML["rule"].items()]
BREAKS = [(rule, edit) for rule in RULES for edit in rule["breaks"]]
# How many rules each section has, from who one is (5.1) to what comes in and goes out (5.13).
SECTIONS = [20, 8, 14, 5, 3, 7, 8, 7, 5, 4, 2, 3, 3]


def test_every_rule_is_there_once_and_has_a_test() -> None:
    numbers = [f"5.{s}.{n + 1}" for s, size in enumerate(SECTIONS, 1) for n in range(size)]
    assert [rule["number"] for rule in RULES] == numbers
    assert [rule["number"] for rule in RULES if not rule["tests"]] == []
    assert [rule["number"] for rule in RULES if not re.fullmatch(r".{20,}\.", rule["says"])] == []


def test_every_test_that_a_rule_names_is_there() -> None:
    there = functions()
    missing = [(r["number"], name) for r in RULES for name in r["tests"] if name not in there]
    assert missing == []


def fits(edit: dict[str, str]) -> bool:
    """Whether what it changes is there, once."""
    text = (ROOT / edit.get("file", "commentd.py")).read_text("utf-8")
    return text.count(edit["old"]) == 1 and edit["old"] != edit["new"]


def test_each_rule_can_still_be_broken() -> None:
    """By one of its edits at least, so that the others need not follow each change of the program;
    where there is none, the rule says why."""
    fitting = {r["number"] for r in RULES if any(map(fits, r["breaks"])) or "unbroken" in r}
    assert [r["number"] for r in RULES if r["number"] not in fitting] == []
    assert [r["number"] for r in RULES if r["breaks"] and "unbroken" in r] == []


def broken(folder: Path, rule: dict[str, Any], edit: dict[str, str]) -> str:
    """What came of the tests of a rule where an edit broke it: `seen`, as it should be."""
    if not fits(edit):
        return "does not fit any more"
    copy = folder / "copy"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".*", "__pycache__", "*.db"))
    path = copy / edit.get("file", "commentd.py")
    path.write_text(path.read_text("utf-8").replace(edit["old"], edit["new"]), "utf-8")
    tests = [f"tests/{name}" for name in rule["tests"]]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider", *tests],
        cwd=copy,
        env={name: value for name, value in os.environ.items() if name != "CI"},
        capture_output=True,
        text=True,
    )
    shutil.rmtree(copy)
    outcomes = {0: "not seen", 1: "seen"}  # any other: the tests could not be run
    return outcomes.get(done.returncode, done.stdout[-1000:] + done.stderr[-1000:])


@pytest.mark.long
def test_a_rule_that_is_broken_is_seen(campaign: Campaign, tmp_path: Path) -> None:
    for chance in campaign.rounds(1):
        rule, edit = chance.choice([pair for pair in BREAKS if fits(pair[1])])
        assert broken(tmp_path, rule, edit) == "seen", (rule["number"], edit)
        campaign.figures["breaks"] += 1


def main(wanted: list[str]) -> int:
    failed = tried = 0
    for rule, edit in BREAKS:
        if not wanted or any(f"{rule['number']}.".startswith(f"{word}.") for word in wanted):
            with tempfile.TemporaryDirectory() as folder:
                outcome = broken(Path(folder), rule, edit)
            failed, tried = failed + (outcome != "seen"), tried + 1
            print(f"{rule['number']} {outcome}: {edit['new'].strip()[:80]!r}", flush=True)
    print(f"{failed} of {tried} breaks were not seen")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
