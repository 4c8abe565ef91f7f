"""The files of this checkout, and the program as Python parses it."""

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "static"
SOURCE = (ROOT / "commentd.py").read_text("utf-8")
# The topics of the manual, by language.
MANUAL = {
    folder.name: {path.stem: path.read_text("utf-8") for path in folder.glob("*.md")}
    for folder in (STATIC / "help").iterdir()
}
STATIC_FILES = [path for path in STATIC.rglob("*") if path.suffix in (".js", ".html", ".css")]
Function = ast.FunctionDef | ast.AsyncFunctionDef


# Not parsed by each worker while it collects.
@functools.cache
def whole_tree() -> ast.Module:
    return ast.parse(SOURCE)


def functions(tree: ast.AST) -> list[Function]:
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


@functools.cache
def name_called(call: ast.Call) -> str:
    return ast.unparse(call.func)


def calls_of(pattern: str, within: ast.AST | None = None) -> list[ast.Call]:
    """The calls of what is named so."""
    return [
        node
        for node in ast.walk(within or whole_tree())
        if isinstance(node, ast.Call) and re.fullmatch(pattern, name_called(node))
    ]


@functools.cache
def names_of_tests() -> set[str]:
    """All tests, each as `file::name`."""
    return {
        f"{path.name}::{name}"
        for path in ROOT.glob("tests/test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text("utf-8"), re.M)
    }
