"""The security rules of the service: rules.toml has each, by topic, with the tests that hold it."""

import tomllib
from typing import Any

from support.sources import ROOT, names_of_tests

RULES: dict[str, list[dict[str, Any]]] = tomllib.loads(
    (ROOT / "tests" / "rules.toml").read_text("utf-8")
)


def test_each_security_rule_names_tests_and_they_exist() -> None:
    existing = names_of_tests()
    for rules in RULES.values():
        for rule in rules:
            assert rule.keys() == {"says", "tests"}
            assert rule["tests"], rule["says"]
            missing = [name for name in rule["tests"] if name not in existing]
            assert not missing, f"tests/rules.toml names tests that do not exist: {missing}"
