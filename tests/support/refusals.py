"""What the program refuses with, as its source says it."""

import ast
from dataclasses import dataclass

import commentd
from support.sources import calls_of


@dataclass(frozen=True)
class Refusal:
    code: str
    status: int
    place: str  # where it is made


def refusals() -> list[Refusal]:
    """Each `Problem` that is made with a code, or for a field, that is written out."""
    made = [refusal_of(call) for call in calls_of("[A-Z][A-Za-z]+")]
    return [refusal for refusal in made if refusal]


def refusal_of(call: ast.Call) -> Refusal | None:
    made = getattr(commentd, ast.unparse(call.func), None)
    if not isinstance(made, type) or not issubclass(made, commentd.Problem):
        return None
    place = f"line {call.lineno} of commentd.py"
    match call.args:
        case [_, ast.Attribute(ast.Name("Code"), name)]:
            return Refusal(commentd.Code[name], made.status, place)
        case [_, ast.Constant(str(field)), ast.Attribute(ast.Name("Fault"), name)]:
            return Refusal(f"{field}_{commentd.Fault[name]}", made.status, place)
    return None
