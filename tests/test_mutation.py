"""Whether the tests notice a change of the program. Sixty lines of commentd.py, chosen by chance,
do something else, one at a time, and the test command has to fail 58 times at least:
`pytest tests/test_mutation.py::test_a_mutated_line_is_noticed_by_the_tests -n0 -s --seed 7`.

First all tests run once, while coverage.py notes which lines each of them runs. A change is then
shown to the tests that run its line, the quick ones first. Only if all pass, the others run.

A line is printed for each change. Whoever stops in between goes on with `--first`, and the number
after the last one that was printed; `--rounds 5` makes five changes. Which lines tests run is kept
until the program or a test changes."""

import ast
import contextlib
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import coverage
import pytest

from support.campaign import Campaign

ROOT = Path(__file__).parent.parent
PROGRAM = (ROOT / "commentd.py").read_text("utf-8")
LEFT_OUT = (".git", ".venv", ".hypothesis", ".*_cache", "__pycache__", "commentd.db*")
# These read the source, and would notice a change that does nothing.
READERS = ("source", "lint", "mutation")
QUICK_ONES = 150  # so many tests need no second process
# pytest, but its end waits for no thread that a failed test has left.
PYTEST = "import os, sys, pytest; code = pytest.main(); sys.stdout.flush(); os._exit(code)"
# Of coverage.py: a process that a test starts notes its lines under the name of that test.
MEASURE = """
[run]
data_file = {folder}/lines/data
parallel = true
include = {folder}/commentd.py
context = ${{PYTEST_CURRENT_TEST}}
sigterm = true
patch = _exit
disable_warnings = no-data-collected
"""
# Changes that no test should notice, each with the reason.
EQUIVALENT = {
    (entry["function"], entry["old"], entry["new"])
    for entry in tomllib.loads((ROOT / "tests" / "equivalent.toml").read_text("utf-8"))["change"]
}
OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


# -- What can be changed


@dataclass(frozen=True)
class Change:
    function: str
    statement: ast.stmt
    node: ast.AST  # it, or a part of it
    new: str

    @property
    def old(self) -> str:
        return ast.unparse(self.node).splitlines()[0]

    @property
    def line(self) -> int:
        return int(self.node.lineno)  # type: ignore[attr-defined]

    @property
    def lines(self) -> set[int]:
        """Of a statement over several lines coverage.py may note only the first."""
        return {self.statement.lineno, self.line}

    @property
    def is_equivalent(self) -> bool:
        return (self.function, self.old, self.new) in EQUIVALENT

    def __str__(self) -> str:
        return f"{self.function} (line {self.line}): {self.old!r} is {self.new!r}"

    def made_in(self, source: str) -> str:
        """The source with the new text where the node stands; columns are counted in bytes."""
        lines = source.splitlines(keepends=True)
        first, last = self.line - 1, self.node.end_lineno - 1  # type: ignore[attr-defined]
        before = lines[first].encode()[: self.node.col_offset].decode()  # type: ignore[attr-defined]
        after = lines[last].encode()[self.node.end_col_offset :].decode()  # type: ignore[attr-defined]
        return "".join([*lines[:first], before + self.new + after, *lines[last + 1 :]])


def changes(tree: ast.Module) -> Iterator[Change]:
    """All that can be made in functions and methods."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield from changes_below(node, node.name)
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    yield from changes_below(method, f"{node.name}.{method.name}")


def changes_below(function: ast.FunctionDef, name: str) -> Iterator[Change]:
    end = end_of(function)
    for statement in ast.walk(function):
        if not isinstance(statement, ast.stmt) or is_for_people(statement) or statement is end:
            continue
        for part in [statement, *expressions_of(statement)]:
            for node, new in replacements(part):
                yield Change(name, statement, node, new)


def end_of(function: ast.FunctionDef) -> ast.stmt | None:
    """A `return None` that is the last line: the function returns that without it too."""
    last = function.body[-1]
    return last if ast.unparse(last) in ("return", "return None") else None


def is_for_people(statement: ast.stmt) -> bool:
    """Docstrings and what is logged."""
    match statement:
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Expr(value=ast.Call(func=func)):
            return ast.unparse(func).startswith("log.")
    return False


def expressions_of(node: ast.AST) -> Iterator[ast.expr]:
    """Those of a statement, without those of statements below it, types, and f-strings, of whose
    parts Python 3.11 does not know where they stand."""
    for name, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for child in children if name not in ("annotation", "returns") else ():
            if isinstance(child, ast.JoinedStr | ast.stmt) or not isinstance(child, ast.AST):
                continue
            if isinstance(child, ast.expr):
                yield child
            yield from expressions_of(child)


def replacements(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """What can stand in the place of a statement or an expression, or of the condition in it."""
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            other = ast.Compare(left, [OPPOSITE[type(operator)]()], [right])
            yield node, f"({ast.unparse(other)})"
        case ast.BoolOp(op=ast.And(), values=values):
            yield node, f"({ast.unparse(ast.BoolOp(ast.Or(), values))})"
        case ast.BoolOp(op=ast.Or(), values=values):
            yield node, f"({ast.unparse(ast.BoolOp(ast.And(), values))})"
        case ast.Constant(value=int(number)) if type(number) is int:
            yield node, str(number + 1)
        case ast.Constant(value=str(text)) if re.fullmatch(r"[!-~]+", text):
            yield node, repr(f"{text}x")  # what has spaces or is Chinese, people read
        case ast.Call(func=function, args=arguments, keywords=keywords):
            for keyword in keywords:
                others = [each for each in keywords if each is not keyword]
                yield node, ast.unparse(ast.Call(function, arguments, others))
        case ast.Return(value=ast.Constant(value=bool(answer))):
            yield node, f"return {not answer}"
        case ast.Return(value=ast.Constant(value="")):
            yield node, "return 'x'"  # None is as false as the empty text
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield node, "return None"
        case ast.stmt() if can_go(node):
            yield node, "pass"


def can_go(statement: ast.stmt) -> bool:
    """Whether the function still makes sense without it: any test would notice a missing name."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            stored = [target for target in targets if isinstance(target, ast.Name | ast.Tuple)]
            return not stored or any(names_in(target) & names_in(value) for target in stored)
        case ast.FunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
            return False
        case ast.AnnAssign() | ast.Nonlocal() | ast.Pass():
            return False
    return True


def names_in(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def changes_by_line() -> list[list[Change]]:
    by_line: dict[int, list[Change]] = {}
    for change in changes(ast.parse(PROGRAM)):
        by_line.setdefault(change.line, []).append(change)
    return [by_line[number] for number in sorted(by_line)]


def chosen(lines: list[list[Change]], chance: random.Random) -> Change:
    """A change of a line by chance. Its chance does not depend on how much can be done there."""
    return chance.choice(chance.choice(lines))


# -- Whether tests notice it


@dataclass(frozen=True)
class Test:
    name: str
    seconds: float
    lines: set[int]  # of the program, that it runs

    __test__ = False  # for pytest


class Judge:
    """A copy of the project, in which the program is changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        left_out = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(ROOT, self.folder, ignore=left_out, dirs_exist_ok=True)
        self.program = self.folder / "commentd.py"
        self.noted = self.folder / "lines"  # by coverage.py

    def pytest(
        self, *arguments: str, seconds: float | None = None, **environment: str
    ) -> tuple[int, str]:
        """The exit code and what was printed; what takes longer than `seconds` is killed."""
        inherited = {n: v for n, v in os.environ.items() if n != "CI" and "PYTEST" not in n}
        with tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
            process = subprocess.Popen(
                [sys.executable, "-c", PYTEST, "-q", "-p", "no:cacheprovider", *arguments],
                cwd=self.folder,
                env=inherited | environment,
                start_new_session=True,
                stdout=printed,
                stderr=printed,
            )
            try:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(seconds)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            printed.seek(0)
            return process.wait(), printed.read()

    def tests(self, kept: Path) -> list[Test]:
        """All tests that pass, the quick ones first. What fails without a change judges nothing."""
        files = sorted(path for path in self.folder.rglob("*") if path.is_file())
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
        if kept.exists():
            found = json.loads(kept.read_text("utf-8"))
            if found["digest"] == digest:
                return [Test(**{**each, "lines": {*each["lines"]}}) for each in found["tests"]]
        print("\nall tests run once, to see which lines each of them runs", flush=True)
        tests = self.measure()
        rows = [{**asdict(test), "lines": [*test.lines]} for test in tests]
        kept.write_text(json.dumps({"digest": digest, "tests": rows}), "utf-8")
        return tests

    def measure(self, *some: str) -> list[Test]:
        """Runs all tests or some, and notes which lines of the program each of them runs."""
        self.noted.mkdir()
        settings = self.noted / "settings"
        settings.write_text(MEASURE.format(folder=self.folder), "utf-8")
        _, printed = self.pytest(
            *("-p", "measuring"),
            *(f"--deselect=tests/test_{name}.py" for name in READERS),
            *some,
            COVERAGE_PROCESS_START=str(settings),
            PYTHONPATH="tests/support",
        )
        tests = self.measured()
        assert any(test.lines for test in tests), printed
        return tests

    def measured(self) -> list[Test]:
        seconds: dict[str, float] = json.loads((self.folder / "seconds.json").read_text("utf-8"))
        names = sorted(seconds, key=lambda name: seconds[name])
        tests = {name: Test(name, seconds[name], set()) for name in names}
        for path in self.noted.glob("data.*"):
            data = coverage.CoverageData(str(path))
            data.read()
            for line, contexts in data.contexts_by_lineno(str(self.program)).items():
                for context in contexts:
                    # A process that a test starts adds " (call)" or the like.
                    test = tests.get(context) or tests.get(context.rpartition(" (")[0])
                    if test:
                        test.lines.add(line)
        return list(tests.values())

    def noticed_by(self, change: Change, tests: list[Test]) -> str:
        """The first test that fails, or nothing."""
        self.program.write_text(change.made_in(PROGRAM), "utf-8")
        first = [test for test in tests if test.lines & change.lines]
        others = [test for test in tests if not test.lines & change.lines]
        quick, slow = first[:QUICK_ONES], first[QUICK_ONES:]
        for some in (quick, slow, others):
            if some and (found := self.failing(some)):
                return found
        return ""

    def failing(self, tests: list[Test]) -> str:
        """The first that fails; alone too, so that neither load nor another test is the reason."""
        left = {test.name: test for test in tests}
        while left:
            found, passed = self.first_failure([*left.values()])
            if not found:
                break
            alone = left.pop(found, None)
            if not alone or self.first_failure([alone])[0]:
                return found
            left = {name: test for name, test in left.items() if name not in passed}
        return ""

    def first_failure(self, tests: list[Test]) -> tuple[str, set[str]]:
        """Its name, or nothing, and the names of those that passed before."""
        names = self.folder / "names"
        names.write_text("\n".join(test.name for test in tests), "utf-8")
        alone = ["-n0"] if len(tests) <= QUICK_ONES else []
        # A change can make a loop that does not end.
        most = 60 + 5 * sum(test.seconds for test in tests)
        code, printed = self.pytest("-x", "-rfEp", *alone, f"@{names}", seconds=most)
        passed = {*re.findall(r"^PASSED (tests/.+)$", printed, re.M)}
        if code == 0:
            return "", passed
        failed = re.search(r"^(?:FAILED|ERROR) (tests/.+?)(?: - |$)", printed, re.M)
        if failed:
            return failed[1], passed
        return "a test waits" if code == -signal.SIGKILL else f"exit code {code}", passed


@pytest.mark.slow
@pytest.mark.long
def test_a_mutation_can_be_made_anywhere() -> None:
    lines = changes_by_line()
    for number in range(5):
        change = chosen(lines, random.Random(number))
        changed = change.made_in(PROGRAM)
        ast.parse(changed)
        assert changed.splitlines()[change.line - 1] != PROGRAM.splitlines()[change.line - 1]


@pytest.mark.slow
def test_changes_that_are_listed_as_equivalent_can_be_made() -> None:
    made = {(change.function, change.old, change.new) for change in changes(ast.parse(PROGRAM))}
    assert made >= EQUIVALENT


@pytest.fixture
def judge() -> Iterator[Judge]:
    with tempfile.TemporaryDirectory() as folder:  # not below one that only root may enter
        yield Judge(Path(folder))


@pytest.mark.long
def test_a_mutated_line_is_noticed_by_the_tests(
    judge: Judge, campaign: Campaign, pytestconfig: pytest.Config
) -> None:
    lines = changes_by_line()
    tests = judge.tests(pytestconfig.cache.mkdir("mutation") / "lines.json")
    unnoticed = []
    for chance in campaign.rounds(60):
        change = chosen(lines, chance)
        while change.is_equivalent:
            campaign.figures["equivalent"] += 1
            change = chosen(lines, chance)
        campaign.figures["changes"] += 1
        found = judge.noticed_by(change, tests)
        print(f"{campaign.last}. {change}: {found or 'NOT NOTICED'}", flush=True)
        if not found:
            unnoticed.append(str(change))
    assert len(unnoticed) * 30 <= campaign.figures["changes"], "\n".join(unnoticed)
