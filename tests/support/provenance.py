"""Whether a text of the program stands in its source, or is made of what comes from outside.

It is followed back through variables, loops, arguments and calls, not by what these are called, so
that a new statement or pattern needs no entry anywhere."""

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.sources import Function, name_called, nodes_in, whole_tree


@dataclass(eq=False)
class Scope:
    """A function, or the module, with what its names are bound to."""

    node: ast.AST
    outer: "Scope | None" = None
    of_class: str = ""
    # What each name is given, or what it goes through in a loop.
    given: dict[str, list[ast.expr]] = field(default_factory=dict)
    calls: list[ast.Call] = field(default_factory=list)

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "")

    @property
    def parameters(self) -> list[str]:
        if not isinstance(self.node, Function):
            return []
        arguments = self.node.args
        return [each.arg for each in [*arguments.posonlyargs, *arguments.args]]

    @property
    def named_parameters(self) -> list[str]:
        if not isinstance(self.node, Function):
            return []
        return [each.arg for each in self.node.args.kwonlyargs]

    def default(self, parameter: str) -> list[ast.expr]:
        arguments = self.node.args  # type: ignore[attr-defined]
        last = self.parameters[len(self.parameters) - len(arguments.defaults) :]
        defaults = dict(zip(last, arguments.defaults, strict=True))
        defaults |= dict(zip(self.named_parameters, arguments.kw_defaults, strict=True))
        return [defaults[parameter]] if defaults.get(parameter) else []

    def annotation(self, parameter: str) -> str:
        arguments = self.node.args  # type: ignore[attr-defined]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        of_it = [a.annotation for a in every if a.arg == parameter]
        return ast.unparse(of_it[0]) if of_it[0] else ""

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self.given.setdefault(node.id, []).append(value)


def fill(scope: Scope, node: ast.AST, found: list[Scope]) -> None:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Name() | ast.Constant() | ast.expr_context():
                continue  # nothing is inside
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                of_class = node.name if isinstance(node, ast.ClassDef) else scope.of_class
                inner = Scope(child, scope, of_class)
                found.append(inner)
                fill(inner, child, found)
                continue
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    scope.bind(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                scope.bind(target, value)
            case (
                ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                scope.bind(target, value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                scope.bind(target, value)
            case ast.Call():
                scope.calls.append(child)
        fill(scope, child, found)


@functools.cache
def scopes() -> list[Scope]:
    """The module, and its functions."""
    found = [Scope(whole_tree())]
    fill(found[0], whole_tree(), found)
    return found


@functools.cache
def bases() -> dict[str, list[str]]:
    """What each class inherits from."""
    classes = (node for node in nodes_in(whole_tree()) if isinstance(node, ast.ClassDef))
    return {each.name: [ast.unparse(base) for base in each.bases] for each in classes}


def has_methods_of(inner: str, outer: str) -> bool:
    """Whether a class is another one, or inherits from it."""
    return inner == outer or any(has_methods_of(each, outer) for each in bases().get(inner, []))


def calls_of(called: Scope) -> Iterator[tuple[Scope, ast.Call]]:
    """By its bare name; of a method, by `self` in its own class or one that inherits it."""
    for scope in scopes():
        for call in scope.calls:
            match call.func:
                case ast.Name(id=name):
                    is_it = name == called.name and called.parameters[:1] != ["self"]
                case ast.Attribute(value=ast.Name(id="self"), attr=name):
                    is_it = name == called.name and has_methods_of(scope.of_class, called.of_class)
                case _:
                    is_it = False
            if is_it:
                yield scope, call


def called_by(scope: Scope) -> Iterator[Scope]:
    """The functions that are called by their bare names, or by `self` in one class."""
    for call in scope.calls:
        match call.func:
            case ast.Name(id=name):
                outer: Scope | None = scope
                while outer and not (found := [s for s in named(name) if s.outer is outer]):
                    outer = outer.outer
                yield from (each for each in found if each.parameters[:1] != ["self"])
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield from (
                    each for each in named(name) if has_methods_of(scope.of_class, each.of_class)
                )


@functools.cache
def named(name: str) -> list[Scope]:
    return [scope for scope in scopes() if scope.name == name]


def arguments(called: Scope, parameter: str) -> Iterator[tuple[Scope, ast.expr]]:
    """What a function is called with."""
    names = [name for name in called.parameters if name != "self"]
    for scope, call in calls_of(called):
        for keyword in call.keywords:
            if keyword.arg == parameter:
                yield scope, keyword.value
        if parameter in names and names.index(parameter) < len(call.args):
            yield scope, call.args[names.index(parameter)]


def is_made_at_load(name: str) -> bool:
    """Whether it is a class of which nothing is made after the module is loaded."""
    makers = [scope for scope in scopes() for call in scope.calls if name_called(call) == name]
    return bool(makers) and all(scope.outer is None for scope in makers)


def returned_by(name: str) -> list[tuple[Scope, ast.expr]]:
    """What the functions of that name, which are no methods, return."""
    return [
        (scope, node.value)
        for scope in named(name)
        if scope.outer is scopes()[0] and not scope.of_class
        for node in ast.walk(scope.node)
        if isinstance(node, ast.Return) and node.value
    ]


Seen = frozenset[tuple[Scope, str]]


def foreign(value: ast.expr, scope: Scope, seen: Seen = frozenset()) -> list[str]:
    """What in a text comes from outside: nothing in a constant, a choice among constants, or what
    is made of constants and numbers."""

    def of(*parts: ast.expr) -> list[str]:
        return [each for part in parts for each in foreign(part, scope, seen)]

    match value:
        case ast.Constant():
            return []
        case ast.Name(id=name):
            return foreign_by_name(name, scope, seen)
        case ast.JoinedStr(values=parts):
            return of(*parts)
        case ast.FormattedValue(value=part) | ast.Starred(value=part):
            return of(part)
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            if any(has_methods_of(scope.of_class, each.of_class) for each in named(name)):
                return []  # a method
        case ast.Attribute(value=whole) | ast.Subscript(value=whole):
            return of(whole)  # one of a table, whatever chooses it
        case ast.BinOp(left=left, right=right):
            return of(left, right)
        case ast.IfExp(body=one, orelse=other):
            return of(one, other)
        case ast.BoolOp(values=parts) | ast.Tuple(elts=parts) | ast.List(elts=parts):
            return of(*parts)
        case ast.Dict(keys=keys, values=values):
            return of(*filter(None, keys), *values)
        case ast.ListComp(elt=part) | ast.SetComp(elt=part) | ast.GeneratorExp(elt=part):
            return of(part)
        case ast.Call(func=ast.Name(id="range" | "len")):
            return []  # numbers
        case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr="escape")):
            return []  # means itself in a pattern
        case ast.Call(func=ast.Name(id="map"), args=[ast.Attribute(attr="escape"), _]):
            return []
        case ast.Call(func=ast.Name(id="sorted" | "zip" | "reversed"), args=parts):
            return of(*parts)
        case ast.Call(func=ast.Name(id=name)) if returned := returned_by(name):
            return [each for inner, text in returned for each in foreign(text, inner, seen)]
        case ast.Call(func=ast.Attribute(value=text), args=parts):
            return of(text, *parts)  # such as `" | ".join(…)`
    return [f"{scope.name}: {ast.unparse(value)}"]


def foreign_by_name(name: str, scope: Scope, seen: Seen) -> list[str]:
    if (scope, name) in seen:
        return []  # it depends on the others
    if scope.outer is None:
        # What stands in the module was made when it was loaded.
        return [] if name in scope.given else [name]
    seen |= {(scope, name)}
    if name in [*scope.parameters, *scope.named_parameters]:
        if is_made_at_load(scope.annotation(name)):
            return []
        found = [(scope, each) for each in scope.default(name)]
        found += arguments(scope, name)
    elif name in scope.given:
        found = [(scope, each) for each in scope.given[name]]
    else:
        return foreign_by_name(name, scope.outer, seen)
    if not found:
        return [f"{scope.name}: {name}"]
    return [each for where, value in found for each in foreign(value, where, seen)]
