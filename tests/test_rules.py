"""The security rules of the service: rules.toml has each, and the tests that they name exist."""

import tomllib
from typing import Any

from support.sources import ROOT, names_of_tests

RULES: dict[str, dict[str, Any]] = tomllib.loads(
    (ROOT / "tests" / "rules.toml").read_text("utf-8")
)["rule"]
# How many rules each section has, from accounts (5.1) to what comes in and goes out (5.13).
SECTIONS = [20, 8, 14, 5, 3, 7, 8, 7, 5, 4, 2, 3, 3]


def test_every_rule_is_there_once_and_has_a_test() -> None:
    numbers = [f"5.{s}.{n + 1}" for s, size in enumerate(SECTIONS, 1) for n in range(size)]
    assert list(RULES) == numbers
    assert [number for number, rule in RULES.items() if not rule["says"] or not rule["tests"]] == []


def test_every_test_that_a_rule_names_is_there() -> None:
    there = names_of_tests()
    assert [
        (number, name)
        for number, rule in RULES.items()
        for name in rule["tests"]
        if name not in there
    ] == []
