"""The fields of a comment: each is public, personal or moderation, or says where the comment
stands; and whatever handles comments handles each field as that."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from commentd import App
from support.client import CANARY, Visitor
from support.commands import run_here
from support.inside import Fields, comment_fields
from support.world import START

FIELDS: Fields = comment_fields()
# Where a comment stands: its page, thread and place. `own_html` and `masked` only say how `html`
# and `ip` are kept.
PLACE = {"page_id", "thread_id", "shown", "own_html", "masked"}
# What an erased comment keeps of its public fields: its place among the others, and its time.
KEPT = {"id", "page_url", "parent_id", "created_at"}
JOINED = {"page_url", "role"}  # these stand in other tables
BLANK = ("", None, 0)

Row = dict[str, Any]

FILLED = """
    UPDATE comment SET nickname = 'Ann', email = 'ann@example.com', website = 'https://a.example',
           content = 'text', html = '<p>text</p>', own_html = 1, ip = '203.0.113.0', masked = 1,
           country = 'DE', location = 'Berlin', likes = 1, pinned = 1, edited_at = ?,
           held = 'links', language = 'de', learnt = 'ham'
     WHERE id = 1"""


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
    db.execute(FILLED, (START,))
    return ann


def blanks(values: Row) -> set[str]:
    return {name for name, value in values.items() if value in BLANK}


def test_every_field_of_a_comment_is_public_personal_moderation_or_its_place() -> None:
    known = {*FIELDS.public, *FIELDS.personal, *FIELDS.moderation}
    assert FIELDS.all - known == PLACE
    assert known <= FIELDS.all


def test_readers_get_the_public_fields_and_no_others(app: App, filled: Visitor) -> None:
    comment = Visitor(app).listing(sort="oldest")["comments"][0]
    names = {name.replace("edited_at", "edited") for name in FIELDS.public}
    assert comment.keys() == names
    assert blanks(comment) <= {"parent_id", "role"}  # it is at the top, and of no admin


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


def test_the_personal_fields_go_with_the_account_and_no_others(filled: Visitor, row: Any) -> None:
    before = row()
    filled.delete_json("/me", {"password": CANARY, "comments": "keep"})
    after = row()
    changed = {name for name in before if before[name] != after[name]}
    assert changed - {"mark"} == {*FIELDS.personal}
    assert {*FIELDS.personal} <= blanks(after)


# Public fields whose change alone readers are not told of: what never changes; the content, whose
# `html` changes with it; the IP address, which readers see masked; and the role, which is the
# account's.
NOT_TOLD = {"id", "page_url", "parent_id", "created_at", "content", "ip", "role"}


@pytest.mark.parametrize("name", sorted({*FIELDS.public} - NOT_TOLD))
def test_readers_with_an_older_list_are_told_of_a_change_of_each_public_field(
    app: App, filled: Visitor, db: sqlite3.Connection, row: Any, name: str
) -> None:
    reader = Visitor(app)
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
    assert told == [1]


def test_readers_with_an_older_list_are_told_of_a_new_role(
    app: App, filled: Visitor, db: sqlite3.Connection
) -> None:
    reader = Visitor(app)
    mark = reader.listing(since=0)["mark"]
    db.execute("UPDATE account SET role = 'admin'")
    told = reader.listing(since=mark)["comments"]
    assert {comment["id"]: comment["role"] for comment in told} == {1: "admin", 2: "admin"}


# What our own export leaves out: accounts, and what the service finds out by itself.
NOT_EXPORTED = {"page_url", "user_id", "role", "hidden_at", "learnt"}


def test_an_export_holds_each_field_and_an_import_brings_it_back(
    app: App, filled: Visitor, row: Any, tmp_path: Path
) -> None:
    before = row()
    app.close()
    code, exported, _ = run_here(tmp_path, "export", "--emails")
    assert code == 0
    comment = next(each for each in json.loads(exported)["comments"] if each["id"] == 1)
    known = {*FIELDS.public, *FIELDS.personal, *FIELDS.moderation}
    assert comment.keys() - {"page_key"} == known - NOT_EXPORTED

    other = tmp_path / "other"
    other.mkdir()
    (other / "file.json").write_text(exported)
    assert run_here(other, "import", "file.json")[0] == 0
    with closing(sqlite3.connect(other / "commentd.db")) as db:
        db.row_factory = sqlite3.Row
        after = dict(db.execute("SELECT * FROM comment WHERE id = 1").fetchone())
    assert {name: after[name] for name in known - NOT_EXPORTED} == {
        name: before[name] for name in known - NOT_EXPORTED
    }
