"""Whether the tests notice a change of the program: one line of commentd.py, chosen by chance, does
something else, and the test command has to fail. One line takes minutes:
`pytest tests/test_mutation.py --seconds 3600 --seed 7`."""

import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.campaign import Campaign

ROOT = Path(__file__).parent.parent
MOST_SECONDS = 3600  # of one run of the test command
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


def changes(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """What can be replaced in a function, and by what."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    seen: set[ast.AST] = set()
    for function in functions:
        for node in ast.walk(function):
            if node not in seen:
                seen.add(node)
                yield from changes_of(node)


def changes_of(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            yield test, f"(not ({ast.unparse(test)}))"
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            other = ast.Compare(left, [OPPOSITE[type(operator)]()], [right])
            yield node, f"({ast.unparse(other)})"
        case ast.BoolOp(op=ast.And(), values=values):
            yield node, f"({ast.unparse(ast.BoolOp(ast.Or(), values))})"
        case ast.BoolOp(op=ast.Or(), values=values):
            yield node, f"({ast.unparse(ast.BoolOp(ast.And(), values))})"
        case ast.Raise():
            yield node, "pass"
        case ast.Expr(value=ast.Call(func=func)) if not ast.unparse(func).startswith("log."):
            yield node, "pass"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield node, "return None"
        case ast.Constant(value=int(number)) if type(number) is int:
            yield node, str(number + 1)


def replaced(source: str, node: ast.AST, new: str) -> str:
    """The source with other text where the node stands; columns are counted in bytes."""
    lines = source.splitlines(keepends=True)
    first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
    before = lines[first].encode()[: node.col_offset].decode()  # type: ignore[attr-defined]
    after = lines[last].encode()[node.end_col_offset :].decode()  # type: ignore[attr-defined]
    return "".join([*lines[:first], before + new + after, *lines[last + 1 :]])


def one_change(source: str, chance: random.Random) -> tuple[int, str]:
    """A line by chance, and the program with one change there."""
    by_line: dict[int, list[tuple[ast.AST, str]]] = {}
    for node, new in changes(ast.parse(source)):
        by_line.setdefault(node.lineno, []).append((node, new))  # type: ignore[attr-defined]
    line = chance.choice(sorted(by_line))
    return line, replaced(source, *chance.choice(by_line[line]))


def is_seen(program: str, *tests: str) -> bool:
    """Whether a test fails: first of the fast tier, then of the whole test command."""
    copy = Path(tempfile.mkdtemp())  # not below a folder that only root may enter
    left_out = (".git", ".venv", ".hypothesis", ".*_cache", "__pycache__", "commentd.db*")
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*left_out), dirs_exist_ok=True)
    (copy / "commentd.py").write_text(program, "utf-8")
    environ = {n: v for n, v in os.environ.items() if n != "CI" and "PYTEST" not in n}
    # These read the source, and would see a change that does nothing.
    without = [f"--deselect=tests/test_{name}.py" for name in ("source", "mutation")]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *without]
    try:
        return any(fails([*command, *tier, *tests], copy, environ) for tier in (["--fast"], []))
    finally:
        shutil.rmtree(copy)


def fails(command: list[str], folder: Path, environ: dict[str, str]) -> bool:
    """Also a command that comes to no end, in a loop that a change made."""
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=folder, env=environ, start_new_session=True, **quiet)
    try:
        return process.wait(MOST_SECONDS) != 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True


@pytest.mark.slow
@pytest.mark.long
def test_a_mutation_can_be_made_anywhere() -> None:
    source = (ROOT / "commentd.py").read_text("utf-8")
    for number in range(5):
        line, program = one_change(source, random.Random(number))
        ast.parse(program)
        assert program.splitlines()[line - 1] != source.splitlines()[line - 1]


@pytest.mark.long
def test_a_mutated_line_is_noticed_by_the_tests(campaign: Campaign) -> None:
    source = (ROOT / "commentd.py").read_text("utf-8")
    assert not is_seen(source), "the tests fail without a change"
    unseen = []
    for chance in campaign.rounds(1):
        line, program = one_change(source, chance)
        campaign.figures["lines"] += 1
        if not is_seen(program):
            unseen.append((line, program.splitlines()[line - 1].strip()))
    assert len(unseen) <= campaign.figures["lines"] / 20, unseen
