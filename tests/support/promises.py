"""What blogs, scripts and settings files rely on, as this version has it: the paths and fields of
the API, the attributes and variables of the widget, and the settings. Until 2.0 nothing of it goes
away (`commentd help versions`)."""

import re
from collections.abc import Iterator
from typing import Any

from commentd import SETTINGS
from support.api import OPERATIONS
from support.full_service import forms_of, queries, resolved
from support.sources import MANUAL, ROOT

Promises = dict[str, Any]


def promises() -> Promises:
    return {"api": api(), "widget": widget(), "settings": settings()}


# The API


def api() -> dict[str, dict[str, Any]]:
    """Of each operation: whose token it needs, what it takes, and what it gives."""
    return {
        name: {
            "security": operation.get("security"),
            "takes": dict(sorted(taken(operation))),
            "gives": dict(sorted(given(operation))),
        }
        for name, operation in OPERATIONS.items()
    }


def taken(operation: Any) -> Iterator[tuple[str, str]]:
    """Parameters of the URL, and fields of the body: whether they must be there."""
    for name, parameter in queries(operation).items():
        yield f"?{name}", "required" if parameter.get("required") else "optional"
    forms = forms_of(operation)
    for form in forms:
        for name in form.get("properties", {}):
            is_needed = all(name in other.get("required", []) for other in forms)
            yield name, "required" if is_needed else "optional"


def given(operation: Any) -> Iterator[tuple[str, str]]:
    """The fields of the JSON of a success, with their types."""
    for status, response in operation["responses"].items():
        content = resolved(response).get("content", {})
        if status.startswith("2") and "application/json" in content:
            yield from fields_of(content["application/json"]["schema"], "")


def fields_of(value: Any, place: str) -> Iterator[tuple[str, str]]:
    schema = resolved(value)
    for part in [*schema.get("allOf", []), *schema.get("oneOf", []), *schema.get("anyOf", [])]:
        yield from fields_of(part, place)
    for name, field in schema.get("properties", {}).items():
        yield f"{place}.{name}", type_of(resolved(field))
        yield from fields_of(field, f"{place}.{name}")
    if isinstance(schema.get("items"), dict):
        yield from fields_of(schema["items"], f"{place}[]")


def type_of(schema: Any) -> str:
    found = schema.get("type", "any")
    return found if isinstance(found, str) else " or ".join(sorted(found))


# The widget


def widget() -> dict[str, list[str]]:
    """As the manual names it; other tests hold that the manual is right."""
    embed, theme = MANUAL["en"]["embed"], MANUAL["en"]["theme"]
    parts = re.findall(r"^\| (.*?) \|", theme.partition("| part |")[2], re.M)
    return {
        "files": ["embed.js", "loader.js"],
        "attributes": re.findall(r"^\| `(\w+)` \|", embed, re.M),
        "data attributes": names(r"data-commentd-\w+", embed),
        "events": names(r"`(commentd:\w+)`", embed),
        "variables": names(r"--commentd-[\w-]+", theme),
        "parts": names(r"`(\w+)`", "".join(parts)),
    }


def names(pattern: str, text: str) -> list[str]:
    return sorted({*re.findall(pattern, text)})


# The settings


def settings() -> dict[str, str]:
    """Each key with its default, as `commentd example` writes them."""
    text = (ROOT / "commentd.example.ini").read_text("utf-8")
    found: dict[str, str] = {}
    section = ""
    for line in text.splitlines():
        if head := re.fullmatch(r"\[([\w.]+)\]", line):
            section = head[1]
        elif entry := re.fullmatch(r"#(\w+) =(.*)", line):
            found[f"{section}_{entry[1]}"] = entry[2].strip()
    assert SETTINGS.keys() <= found.keys()
    return found


# What was promised once, and is not kept


def broken(promised: Promises, today: Promises) -> list[str]:
    return [
        *broken_by_api(promised["api"], today["api"]),
        *(
            f"the widget lacks the {kind}: {name}"
            for kind, names in promised["widget"].items()
            for name in names
            if name not in today["widget"].get(kind, [])
        ),
        *(
            f"there is no setting {name}"
            for name in promised["settings"]
            if name not in today["settings"]
        ),
    ]


def broken_by_api(promised: Promises, today: Promises) -> Iterator[str]:
    for name, operation in promised.items():
        if name not in today:
            yield f"there is no {name}"
            continue
        now = today[name]
        if now["security"] != operation["security"]:
            yield f"{name}: who may call it was {operation['security']}, is {now['security']}"
        for field in operation["takes"]:
            if field not in now["takes"]:
                yield f"{name} takes no {field}"
        for field, need in now["takes"].items():
            if need == "required" != operation["takes"].get(field):
                yield f"{name} now needs {field}"
        for field, type_name in operation["gives"].items():
            if now["gives"].get(field) != type_name:
                yield f"{name}: {field} was {type_name}, is {now['gives'].get(field, 'gone')}"
