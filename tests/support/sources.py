"""The files of this checkout, and the program as Python parses it."""

import ast
import functools
import gc
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "static"
SOURCE = (ROOT / "commentd.py").read_text("utf-8")
LINES = SOURCE.split("\n")
# The topics of the manual, by language.
MANUAL = {
    folder.name: {path.stem: path.read_text("utf-8") for path in folder.glob("*.md")}
    for folder in (STATIC / "help").iterdir()
}
STATIC_FILES = [path for path in STATIC.rglob("*") if path.suffix in (".js", ".html", ".css")]
Function = ast.FunctionDef | ast.AsyncFunctionDef


def parsed(source: str) -> ast.Module:
    """Without the garbage collector: it would look through all the new nodes again and again, which
    takes four fifths of the time. They are there until the end."""
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        gc.freeze()
        gc.enable()


# Not parsed by each worker while it collects.
@functools.cache
def whole_tree() -> ast.Module:
    return parsed(SOURCE)


@functools.cache
def nodes_in(tree: ast.AST) -> list[ast.AST]:
    """Many tests look through the whole program: to walk it takes long, too."""
    return list(ast.walk(tree))


@functools.cache
def functions(tree: ast.AST) -> list[Function]:
    return [node for node in nodes_in(tree) if isinstance(node, Function)]


def source_of(function: Function) -> str:
    return "\n".join(LINES[function.lineno - 1 : function.end_lineno])


def dotted_name(node: ast.expr) -> str:
    """The source of an expression, which most often is a name with dots."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=name):
            return f"{dotted_name(value)}.{name}"
    return ast.unparse(node)


def name_called(call: ast.Call) -> str:
    return dotted_name(call.func)


@functools.cache
def calls_in(tree: ast.AST) -> list[tuple[str, ast.Call]]:
    """The calls, with what is called."""
    return [(name_called(node), node) for node in nodes_in(tree) if isinstance(node, ast.Call)]


def calls_of(pattern: str, within: ast.AST | None = None) -> list[ast.Call]:
    """The calls of what is named so."""
    calls = calls_in(within or whole_tree())
    return [call for name, call in calls if re.fullmatch(pattern, name)]


@functools.cache
def names_of_tests() -> set[str]:
    """All tests, each as `file::name`."""
    return {
        f"{path.name}::{name}"
        for path in ROOT.glob("tests/test_*.py")
        for name in re.findall(r"^def (test_\w+)\(", path.read_text("utf-8"), re.M)
    }
