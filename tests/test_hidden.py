"""No response to readers shows a comment that waits for approval, is spam or was deleted."""

import itertools
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from commentd import App
from support import inside
from support.api import OPERATIONS, example_of
from support.client import PAGE, Visitor, stranger
from support.full_service import GOOD, PERMISSION, queries, resolved
from support.world import START

# All that is read without a token, or with that of any reader.
READS = [
    label
    for label in OPERATIONS
    if label.startswith("GET ") and PERMISSION[label] in ("public", "anyone")
]
PAGES = [PAGE, "/hidden/"]  # a page without visible comments
# On the first page until the last three: the id, the status, and what the comment replies to. No
# other number or text of the service looks like these ids.
COMMENTS: list[tuple[int, str, int | None]] = [
    (700101, "visible", None),
    (700102, "visible", 700101),
    (700103, "waiting", 700101),
    (700104, "spam", 700101),
    (700105, "deleted", 700101),
    (700106, "waiting", 700101),  # a tombstone, as the next two
    (700107, "spam", 700101),
    (700108, "deleted", 700101),
    (700109, "visible", 700106),
    (700110, "visible", 700107),
    (700111, "visible", 700108),
    (700201, "waiting", None),
    (700202, "spam", None),
    (700203, "deleted", None),
    (700204, "waiting", None),  # a tombstone, as the next two
    (700205, "spam", None),
    (700206, "deleted", None),
    (700207, "visible", 700204),
    (700208, "visible", 700205),
    (700209, "visible", 700206),
    (700301, "waiting", None),
    (700302, "spam", None),
    (700303, "deleted", None),
]
IDS = [number for number, _, _ in COMMENTS]
HIDDEN = {number: status for number, status, _ in COMMENTS if status != "visible"}
ANSWERED = {parent for _, status, parent in COMMENTS if status == "visible"}
TOMBSTONES = HIDDEN.keys() & ANSWERED
INVISIBLE = HIDDEN.keys() - ANSWERED  # to readers, there are no such comments
UNKNOWN = 700999  # the id of no comment
# Lists that draw a tombstone in the place of a hidden comment with visible replies.
WITH_TOMBSTONES = {"GET /comments", "GET /thread", "GET /fragment"}


def add_comments(app: App) -> None:
    store = app.site.store
    with store.writing():
        page_ids = [store.add_page(url.rstrip("/"), url, START).id for url in PAGES]
        for number, status, parent_id in COMMENTS:
            word = f"{status}{number}"
            inside.add_stored_comment(
                store,
                status,
                START,
                id=number,
                page_id=page_ids[number > 700300],
                parent_id=parent_id,
                nickname=f"Nick {word}",
                email=f"{word}@example.com",
                website=f"https://{word}.example",
                content=f"Text {word}",
                html=f"<p>Text {word}</p>",
            )


def values_of(name: str, schema: Any) -> list[Any]:
    """What a parameter may be. A number without a maximum is taken for an id."""
    if name == "url":
        return PAGES
    if schema.get("type") == "integer":
        return [schema["minimum"], schema["maximum"]] if "maximum" in schema else IDS
    assert name in GOOD, f'tests/support/full_service.py: GOOD lacks "{name}"'
    choices: list[Any] = schema.get("enum", [GOOD[name]])
    return choices


def targets_of(label: str) -> Iterator[str]:
    """A read with each value of each parameter, of those that it need not have one at a time."""
    path = label.removeprefix("GET ")
    paths = {example_of(re.sub(r"\{\w+_id\}", str(number), path)) for number in IDS}
    needed: dict[str, list[Any]] = {}
    optional: list[dict[str, Any]] = [{}]
    for name, parameter in queries(OPERATIONS[label]).items():
        values = values_of(name, resolved(parameter["schema"]))
        if parameter.get("required"):
            needed[name] = values
        else:
            optional += [{name: value} for value in values]
    required = [
        dict(zip(needed, each, strict=True)) for each in itertools.product(*needed.values())
    ]
    for asked, query, option in itertools.product(sorted(paths), required, optional):
        yield f"{asked}?{urlencode(query | option)}"


def faults_of(label: str, text: str) -> Iterator[str]:
    """What is wrong with a response. What a comment replies to is told, even if it is hidden."""
    without_parents = re.sub(r'"parent_id": ?\d+', "", text)
    numbers = {*map(int, re.findall(r"\d+", without_parents))}
    for number, status in HIDDEN.items():
        may_be_named = number in TOMBSTONES or status == "deleted"
        if f"{status}{number}" in text.lower():
            yield f"the text or the author of a {status} comment"
        elif number in numbers and not (may_be_named and label in WITH_TOMBSTONES):
            kind = "tombstone" if number in TOMBSTONES else f"{status} comment"
            yield f"the id of a {kind}"


def told_apart(client: Any, target: str, text: str) -> Iterator[str]:
    """What a response gives away where a comment that readers cannot see is asked for."""
    for number in INVISIBLE:
        other = target.replace(str(number), str(UNKNOWN))
        if other != target and client.get(other, expect_errors=True).text != text:
            yield f"away that there is a {HIDDEN[number]} comment"


ADVICE = (
    "its SQL lacks `status = 'visible'`, or its handler `check_visible` (or, if it draws "
    "tombstones as the widget does, tests/test_hidden.py: WITH_TOMBSTONES lacks it)"
)


@pytest.mark.parametrize("settings", [{"limits_enabled": False}], ids=[""])
def test_no_response_to_readers_shows_a_hidden_comment(app: App, ann: Visitor) -> None:
    """Nor its id, nor that there is one."""
    add_comments(app)
    wrong: dict[str, str] = {}  # by what is wrong, where it was seen first
    showing = set[str]()
    for client, label in itertools.product((stranger(app), stranger(app, like=ann)), READS):
        for target in targets_of(label):
            text = client.get(target, expect_errors=True).text
            for fault in (*faults_of(label, text), *told_apart(client, target, text)):
                wrong.setdefault(f"commentd.py: {label} gives {fault}", target)
            if "visible700101" in text.lower():
                showing.add(label)
    assert not wrong, "\n".join([*(f"{fault}: {wrong[fault]}" for fault in wrong), ADVICE])
    assert showing >= WITH_TOMBSTONES | {"GET /comments/latest", "GET /feed.atom"}
