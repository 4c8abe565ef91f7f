"""The fields of a comment: each is public, personal or moderation, or says where the comment
stands; and whatever handles comments handles each field as that. Where a new field is missing, a
test names the line."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commentd import App
from support.client import CANARY, Visitor
from support.commands import run_here
from support.inside import Fields, comment_fields
from support.sources import SOURCE
from support.world import START

FIELDS: Fields = comment_fields()
# Where a comment stands: its page, thread and place. `own_html` and `masked` only say how `html`
# and `ip` are kept.
PLACE = {"page_id", "page_title", "thread_id", "shown", "own_html", "masked"}
# What an erased comment keeps of its public fields: its place among the others, and its time.
KEPT = {"id", "page_url", "parent_id", "created_at"}
JOINED = {"page_url", "page_title", "role", "picture"}  # these stand in other tables
BLANK = ("", None, 0)

Row = dict[str, Any]

# What each column holds in a comment that has everything, unless its name will do as a text, or 1
# as a number.
FILLING = {
    "email": "ann@example.com",
    "website": "https://a.example",
    "html": "<p>text</p>",
    "ip": "203.0.113.0",
    "country": "DE",
    "language": "de",
    "learnt": "ham",
    "edited_at": START,
}
# What tells of its place and status, and is as the service wrote it.
AS_WRITTEN = PLACE | KEPT | {"user_id", "status", "hidden_at", "replies", "mark"}


def lacks(name: str, where: str, pattern: str) -> str:
    """Says where a field is missing: at the first line with that pattern."""
    found = re.search(pattern, SOURCE, re.MULTILINE)
    assert found, pattern
    line = SOURCE.count("\n", 0, found.start()) + 1
    return f"commentd.py:{line}: {where} lacks `{name}`"


@pytest.fixture
def settings() -> dict[str, Any]:
    """With all fields that there can be."""
    return {"comments_pictures": True}


@pytest.fixture
def row(db: sqlite3.Connection) -> Any:
    """Reads the first comment."""

    def read() -> Row:
        cursor = db.execute("SELECT * FROM comment WHERE id = 1")
        names = [column[0] for column in cursor.description]
        return dict(zip(names, cursor.fetchone(), strict=True))

    return read


@pytest.fixture
def filled(app: App, ann: Visitor, db: sqlite3.Connection) -> Visitor:
    """The author of a comment in which no field is blank, and which has a reply."""
    parent = ann.say("text")["comment"]
    ann.say("a reply", parent_id=parent["id"])
    ann.post_json("/comment/like", {"id": parent["id"]})
    columns = {name: kind for _, name, kind, *_ in db.execute("PRAGMA table_info(comment)")}
    for name in (columns.keys() - AS_WRITTEN) | {"own_html", "masked"}:
        value = FILLING.get(name, name if columns[name] == "TEXT" else 1)
        db.execute(f"UPDATE comment SET {name} = ? WHERE id = 1", (value,))
    return ann


def blanks(values: Row) -> set[str]:
    return {name for name, value in values.items() if value in BLANK}


def test_every_field_of_a_comment_is_public_personal_moderation_or_its_place() -> None:
    known = {*FIELDS.public, *FIELDS.personal, *FIELDS.moderation}
    lacking = [
        lacks(name, "PUBLIC_FIELDS, PERSONAL_FIELDS or MODERATION_FIELDS", "^PUBLIC_FIELDS")
        for name in sorted(FIELDS.all - known - PLACE)
    ]
    assert not lacking, "\n".join(lacking)
    assert known <= FIELDS.all
    assert not known & PLACE


def test_every_field_of_a_comment_has_a_column(db: sqlite3.Connection) -> None:
    columns = {name for _, name, *_ in db.execute("PRAGMA table_info(comment)")}
    lacking = [
        lacks(name, "the last entry of MIGRATIONS", "^MIGRATIONS")
        for name in sorted(FIELDS.all - columns - JOINED)
    ]
    assert not lacking, "\n".join(lacking)


def test_readers_get_the_public_fields_and_no_others(app: App, filled: Visitor) -> None:
    comment = Visitor(app).listing(sort="oldest")["comments"][0]
    names = {name.replace("edited_at", "edited") for name in FIELDS.public}
    lacking = [
        lacks(name, "Comment.for_readers", r"def for_readers\(")
        for name in sorted(names - comment.keys())
    ]
    assert not lacking, "\n".join(lacking)
    assert comment.keys() == names
    # It is at the top, and of no admin, and its author has no picture.
    assert blanks(comment) <= {"parent_id", "role", "picture"}


def test_a_tombstone_keeps_of_the_public_fields_only_its_place(
    app: App, filled: Visitor, db: sqlite3.Connection
) -> None:
    db.execute("UPDATE account SET role = 'admin'")
    reader = Visitor(app)
    for status in ("waiting", "spam", "deleted"):
        filled.post_json("/comments/1/moderate", {"status": status})
        (thread,) = reader.listing(view="threads")["comments"]
        assert thread["deleted"]
        shown = {name: thread[name.replace("edited_at", "edited")] for name in FIELDS.public}
        assert shown.keys() - blanks(shown) <= KEPT, status


def test_an_erased_comment_keeps_only_its_place(filled: Visitor, row: Any) -> None:
    assert blanks(row()) <= {"parent_id", "thread_id", "hidden_at"}
    filled.delete_json("/comments/1", {})
    left = row()
    handled = {*FIELDS.public, *FIELDS.personal, *FIELDS.moderation} - KEPT - JOINED
    assert handled - blanks(left) == {"status"}
    assert left["status"] == "deleted"
    assert (left["own_html"], left["masked"]) == (0, 1)


# What may stay of a comment when its author's account goes: its place, its text, and what others
# made of it.
TELLS_NOTHING = PLACE | KEPT | {"content", "html", "likes", "pinned", "edited_at", "status"}


def test_the_personal_fields_go_with_the_account_and_no_others(filled: Visitor, row: Any) -> None:
    before = row()
    filled.delete_json("/me", {"password": CANARY, "comments": "keep"})
    after = row()
    left = FIELDS.all - JOINED - blanks(after) - TELLS_NOTHING
    lacking = [lacks(name, "PERSONAL_FIELDS", "^PERSONAL_FIELDS") for name in sorted(left)]
    assert not lacking, "\n".join(lacking) + " (or TELLS_NOTHING in this test)"
    changed = {name for name in before if before[name] != after[name]}
    assert changed - {"mark"} == {*FIELDS.personal}
    assert {*FIELDS.personal} <= blanks(after)


# Public fields whose change alone readers are not told of: what never changes; the content, whose
# `html` changes with it; the IP address, which readers see masked; and role and picture, which are
# the account's.
NOT_TOLD = {"id", "page_url", "parent_id", "created_at", "content", "ip", "role", "picture"}


def test_readers_with_an_older_list_are_told_of_a_change_of_each_public_field(
    app: App, filled: Visitor, db: sqlite3.Connection, row: Any
) -> None:
    reader = Visitor(app)
    lacking = []
    for name in sorted({*FIELDS.public} - NOT_TOLD):
        mark = reader.listing(since=0)["mark"]
        assert reader.listing(since=mark)["comments"] == []
        before = row()[name]
        after = "other" if isinstance(before, str) else before + 1
        if name == "user_id":
            after = None
        elif name == "pinned":
            after = 0
        db.execute(f"UPDATE comment SET {name} = ? WHERE id = 1", (after,))
        told = [comment["id"] for comment in reader.listing(since=mark)["comments"]]
        db.execute(f"UPDATE comment SET {name} = ? WHERE id = 1", (before,))
        if told != [1]:
            lacking.append(lacks(name, "the trigger raise_mark", "CREATE TRIGGER raise_mark$"))
    assert not lacking, "\n".join(lacking)


@pytest.mark.parametrize("changed", [{"role": "admin"}, {"picture": "abc"}], ids=str)
def test_readers_with_an_older_list_are_told_of_a_new_role_or_picture(
    app: App, filled: Visitor, db: sqlite3.Connection, changed: dict[str, str]
) -> None:
    ((name, value),) = changed.items()
    reader = Visitor(app)
    db.execute("UPDATE comment SET email = ''")  # signed in, its author typed none
    mark = reader.listing(since=0)["mark"]
    db.execute(f"UPDATE account SET {name} = ?", (value,))
    told = reader.listing(since=mark)["comments"]
    assert {comment["id"]: comment[name] for comment in told} == {1: value, 2: value}


# What our own export leaves out: accounts, and what the service finds out by itself.
NOT_EXPORTED = {"page_url", "user_id", "role", "picture", "face", "hidden_at", "learnt"}


def test_an_export_holds_each_field_and_an_import_brings_it_back(
    app: App, filled: Visitor, row: Any, tmp_path: Path
) -> None:
    before = row()
    app.close()
    code, exported, _ = run_here(tmp_path, "export", "--emails")
    assert code == 0
    comment = next(each for each in json.loads(exported)["comments"] if each["id"] == 1)
    known = {*FIELDS.public, *FIELDS.personal, *FIELDS.moderation}
    lacking = [
        lacks(name, "EXPORTED_FIELDS", "^EXPORTED_FIELDS")
        for name in sorted(known - NOT_EXPORTED - comment.keys())
    ]
    assert not lacking, "\n".join(lacking)
    assert comment.keys() - {"page_key"} == known - NOT_EXPORTED

    other = tmp_path / "other"
    other.mkdir()
    (other / "file.json").write_text(exported)
    assert run_here(other, "import", "file.json")[0] == 0
    with closing(sqlite3.connect(other / "commentd.db")) as db:
        db.row_factory = sqlite3.Row
        after = dict(db.execute("SELECT * FROM comment WHERE id = 1").fetchone())
    lacking = [
        lacks(name, "what an import fills in", r"def fill\(self, row")
        for name in sorted(known - NOT_EXPORTED)
        if after[name] != before[name]
    ]
    assert not lacking, "\n".join(lacking)
