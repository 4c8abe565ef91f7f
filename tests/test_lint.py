"""What linters and types find without running anything.

Python passes ruff and mypy. The scripts and styles in `static/`, and the script that tests run in a
page, pass ESLint and stylelint, whose rules stand in `tests/lint/`. npm installs them once, outside
of what git holds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.npm import install
from support.sources import ROOT

CONFIGURATION = ROOT / "tests" / "lint"
CHECKS = ["ruff format --check .", "ruff check .", "mypy"]
SCRIPTS = ["static", "tests/support"]


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )


@pytest.mark.reads_the_source
@pytest.mark.parametrize("check", CHECKS)
def test_python_has_no_fault_that_linters_and_types_find(check: str) -> None:
    done = run(sys.executable, "-m", *check.split(), cwd=ROOT)
    assert done.returncode == 0, done.stdout


def test_pre_commit_runs_the_same_checks_as_the_tests() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    entries = re.findall(r"^ +entry: \.venv/bin/(.+)$", hooks, re.M)
    # They get the names of files where the tests say ".".
    assert entries == [check.removesuffix(" .") for check in CHECKS]


@pytest.mark.slow
def test_scripts_and_styles_have_no_fault_that_linters_find(pytestconfig: pytest.Config) -> None:
    # One test, so that two workers do not install at once.
    folder = pytestconfig.cache.mkdir("lint")
    install(CONFIGURATION, folder)
    programs = folder / "node_modules" / ".bin"
    for linter, checked in (("eslint", SCRIPTS), ("stylelint", ["static/*.css"])):
        rules = folder / f"{linter}.config.mjs"
        done = run(programs / linter, "--config", rules, *checked, cwd=ROOT)
        assert done.returncode == 0, done.stdout
