"""What the program refuses with, as its source says it."""

import ast
from dataclasses import dataclass

import commentd
from support.sources import functions, whole_tree


@dataclass(frozen=True)
class Refusal:
    code: str
    status: int
    place: str  # where it is raised


def refusals() -> list[Refusal]:
    """Each `raise` of a `Problem` whose code is written out. Those of a field are made of its
    name."""
    found = []
    for function in functions(whole_tree()):
        for node in ast.walk(function):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                found += refusals_of(node.exc, function.name)
    return found


def refusals_of(call: ast.Call, function: str) -> list[Refusal]:
    kind = getattr(commentd, ast.unparse(call.func), None)
    if not isinstance(kind, type) or not issubclass(kind, commentd.Problem):
        return []
    written = {each.arg: each.value for each in call.keywords}
    code = call.args[1] if len(call.args) > 1 else ast.Constant(kind.code)
    status = written.get("status", ast.Constant(kind.status))
    if not isinstance(code, ast.Constant) or not isinstance(status, ast.Constant):
        return []
    return [Refusal(str(code.value), int(str(status.value)), f"commentd.py: {function}")]
