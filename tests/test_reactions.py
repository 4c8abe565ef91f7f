"""POST /page/react: emojis that visitors give a page, with `[comments] reactions`."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from commentd import App
from support import inside
from support.admin import owner as owner  # a fixture
from support.client import CANARY, PAGE, Visitor
from support.database import assert_whole
from support.inside import writing_store
from support.installations import LONG_AGO, Installation
from support.sources import STATIC
from support.words import WORDS
from support.world import FakeWorld

THUMB, PARTY = "👍", "🎉"
NONE = {THUMB: 0, PARTY: 0}


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"comments_reactions": (THUMB, PARTY)}


def react(visitor: Visitor, emoji: str = THUMB, status: int = 200, **fields: Any) -> Any:
    form = {"page_url": PAGE, "emoji": emoji, **fields}
    return visitor.post_json("/page/react", form, status=status).json


def reactions(visitor: Visitor, page_url: str = PAGE) -> Any:
    """As the list has them."""
    return visitor.get("/comments", {"url": page_url}).json["reactions"]


def test_a_reaction_to_a_new_page_counts_on_the_limit_of_those(app: App, visitor: Visitor) -> None:
    inside.use_up(app, "all_new_pages", 299)
    react(visitor, page_url="/new/")
    react(visitor, page_url="/newer/", status=429)
    react(visitor, page_url="/new/", emoji=PARTY)


def test_a_visitor_reacts_once_with_each_emoji_and_may_take_it_back(visitor: Visitor) -> None:
    for emoji in (THUMB, PARTY):
        for undo, count in [(True, 0), (False, 1), (False, 1), (True, 0), (False, 1)]:
            response = react(visitor, emoji, undo=undo)
            assert response["reactions"][emoji] == count
            assert (response["success"], response["reacted"]) == (True, not undo)
            assert reactions(visitor) == response["reactions"]
    assert reactions(visitor) == {THUMB: 1, PARTY: 1}


def test_reactions_are_counted_beside_likes_and_not_as_likes(visitor: Visitor, app: App) -> None:
    react(visitor)
    react(Visitor(app, "203.0.113.8"))
    visitor.post_json("/page/like", {"page_url": PAGE})
    listing = visitor.listing()
    assert (listing["page_likes"], listing["reactions"]) == (1, {THUMB: 2, PARTY: 0})
    query = "?url=/unknown/&url=" + PAGE
    unknown, page = visitor.get(f"/pages{query}").json["pages"]
    assert (unknown["page_likes"], unknown["reactions"]) == (0, NONE)
    assert (page["page_likes"], page["reactions"]) == (1, {THUMB: 2, PARTY: 0})
    assert visitor.get("/comments", {"url": PAGE, "view": "threads"}).json["reactions"] == {
        THUMB: 2,
        PARTY: 0,
    }
    assert inside.sql(app, "SELECT likes FROM day") == [(1,)]


@pytest.mark.parametrize("settings", [{}])
def test_a_blog_without_reactions_takes_none_and_lists_none(visitor: Visitor) -> None:
    visitor.say()
    assert react(visitor, status=400)["code"] == "emoji_invalid"
    assert "reactions" not in visitor.listing()
    assert "reactions" not in visitor.get("/pages", {"url": PAGE}).json["pages"][0]
    assert "reaction" not in visitor.get("/fragment", {"url": PAGE}).text
    for path in ("/embed.js", "/words/de.json", "/words/first-de.json"):
        assert "eaktion" not in visitor.get(path).text, path
        assert "eaction" not in visitor.get(path).text, path


def test_a_reaction_that_the_blog_does_not_offer_is_refused(visitor: Visitor) -> None:
    for emoji in ("😡", "👍🏽", "👍👍", "up", " 👍"):
        assert react(visitor, emoji, status=400)["code"] == "emoji_invalid", emoji
    assert react(visitor, "", status=400)["code"] == "emoji_missing"
    assert react(visitor, "👍" * 65, status=400)["code"] == "emoji_too_long"


def test_reactions_and_likes_share_one_limit(visitor: Visitor, fake_world: FakeWorld) -> None:
    for number in range(10):
        react(visitor, undo=number % 2 == 1)
    assert react(visitor, status=429)["code"] == "too_many"
    visitor.post_json("/page/like", {"page_url": PAGE}, status=429)
    fake_world.time += 60
    react(visitor)


def test_a_reaction_keeps_no_ip_address_and_is_a_number_after_thirty_days(
    visitor: Visitor, app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    react(visitor)
    ((kept,),) = db.execute("SELECT visitor FROM reaction_liker").fetchall()
    assert int(kept, 16)
    fake_world.time += 31 * 86400
    app.tick()
    ((later,),) = db.execute("SELECT visitor FROM reaction_liker").fetchall()
    assert later.startswith("past ")
    assert reactions(visitor) == {THUMB: 1, PARTY: 0}


def test_a_page_with_a_reaction_outlives_one_without(
    visitor: Visitor, app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    react(visitor)
    react(visitor, page_url="/undone/")
    react(visitor, page_url="/undone/", undo=True)
    for _ in range(2):
        fake_world.time += 91 * 86400
        app.tick()
    assert db.execute("SELECT page_url FROM page").fetchall() == [(PAGE,)]


def test_reactions_go_with_a_page_that_an_admin_deletes(
    visitor: Visitor, owner: Visitor, db: sqlite3.Connection
) -> None:
    guest = Visitor(visitor.served, "203.0.113.8")
    react(guest)
    owner.delete_json("/admin/pages/1", {})
    assert reactions(guest) == NONE
    assert db.execute("SELECT count(*) FROM reaction_liker").fetchall() == [(0,)]


def test_reactions_of_an_account_are_exported_and_stay_without_it(ann: Visitor, app: App) -> None:
    react(ann, PARTY)
    own = ann.get("/me/export").json["reactions"]
    assert own == [{"page_url": PAGE, "emoji": PARTY}]
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})
    assert reactions(Visitor(app)) == {THUMB: 0, PARTY: 1}
    ((kept,),) = inside.sql(app, "SELECT visitor FROM reaction_liker")
    assert kept.startswith("past ")


def test_a_fragment_shows_the_reactions_of_its_page(visitor: Visitor) -> None:
    react(visitor)
    before = visitor.get("/fragment", {"url": PAGE, "lang": "en"}).text
    assert 'aria-label="React with 👍 1">👍<b>1</b></button>' in before
    assert 'aria-label="React with 🎉 0">🎉<b></b></button>' in before
    react(visitor, PARTY)
    assert "🎉<b>1</b>" in visitor.get("/fragment", {"url": PAGE, "lang": "en"}).text


def test_the_widget_has_the_reactions_and_their_texts_from_the_start(visitor: Visitor) -> None:
    script = visitor.get("/embed.js").text
    assert f'const REACTIONS = ["{THUMB}","{PARTY}"]' in script
    assert script.endswith((STATIC / "reactions.js").read_text("utf-8") + "}\n")
    assert ".reactions > .reaction {" in script
    [packed] = re.findall(r'(?m)^TEXTS\["en"\] = (.*)$', script)
    texts = json.loads(packed)
    assert (texts["reactions"], texts["react"]) == (WORDS["en"]["reactions"], WORDS["en"]["react"])


# Moves, exports and imports


def installation_with(folder: Path, *lines: str) -> Installation:
    """One whose settings have these lines in their section [comments]."""
    made = Installation(folder)
    with (folder / "commentd.ini").open("a") as file:
        file.write("\n".join(["[comments]", *lines, ""]))
    return made


def add_reactions(installation: Installation, page_url: str, **visitors: list[str]) -> None:
    """`THUMB` and `PARTY` by these visitors."""
    with writing_store(installation.path) as store:
        page = store.page(page_url) or store.add_page(page_url, page_url, LONG_AGO)
        for name, each in visitors.items():
            reaction = store.add_reaction(page.id, {"thumb": THUMB, "party": PARTY}[name])
            for visitor in each:
                store.add_like("reaction", reaction, visitor, LONG_AGO)


def counts(installation: Installation) -> dict[str, dict[str, int]]:
    """Of each page, by emoji."""
    found: dict[str, dict[str, int]] = {}
    sql = "SELECT key, emoji, count FROM reaction JOIN page ON page.id = page_id ORDER BY 1, 2"
    for row in installation.rows(sql):
        found.setdefault(row["key"], {})[row["emoji"]] = row["count"]
    assert_whole(str(installation.path))
    return found


def test_a_visitor_of_two_pages_that_are_merged_has_reacted_once(tmp_path: Path) -> None:
    here = Installation(tmp_path / "here")
    add_reactions(here, "/old", thumb=["ann", "bob"], party=["ann"])
    add_reactions(here, "/new", thumb=["bob", "cat"])
    assert here.run("move", "/old", "/new")[0] == 0
    assert counts(here) == {"/new": {PARTY: 1, THUMB: 3}}
    assert here.run("recount") == (0, b"all counters were correct\n", "")


def test_reactions_are_exported_and_imported_once(tmp_path: Path) -> None:
    here, there = Installation(tmp_path / "here"), Installation(tmp_path / "there")
    add_reactions(here, "/a", thumb=["ann", "bob"], party=["ann"])
    text = here.export()
    assert json.loads(text)["pages"][0]["reactions"] == {PARTY: 1, THUMB: 2}
    for _ in range(2):
        there.import_text(text)
        assert counts(there) == {"/a": {PARTY: 1, THUMB: 2}}
    assert there.export() == text
    add_reactions(here, "/a", thumb=["cat"])
    there.import_text(here.export())
    assert counts(there) == {"/a": {PARTY: 1, THUMB: 3}}


@pytest.mark.parametrize("wrong", [[], "x", {"up": 3}, {THUMB: "many"}, {THUMB: -1}, {THUMB: None}])
def test_impossible_reactions_in_an_export_are_left_out(tmp_path: Path, wrong: Any) -> None:
    here, there = Installation(tmp_path / "here"), Installation(tmp_path / "there")
    add_reactions(here, "/a", thumb=["ann"])
    whole = json.loads(here.export())
    whole["pages"][0] |= {"reactions": wrong, "views": 3}
    there.import_text(json.dumps(whole).encode())
    assert there.rows("SELECT views FROM page") == [{"views": 3}]
    assert counts(there) == {}


def test_reactions_of_waline_become_those_of_the_settings_in_their_order(tmp_path: Path) -> None:
    here = installation_with(tmp_path / "here", f"reactions = {PARTY} {THUMB}")
    counter = {"objectId": 1, "url": "/a/", "time": 7, "reaction0": 5, "reaction1": "2"}
    data = {"Comment": [], "Users": [], "Counter": [{**counter, "reaction4": 1}]}
    text = json.dumps({"type": "waline", "version": 1, "data": data})
    (here.folder / "file").write_text(text)
    code, report, _ = here.run("import", str(here.folder / "file"))
    assert code == 0
    assert "  reactions to pages added: 7\n" in report.decode()
    assert "  not carried: reactions (1)" in report.decode()
    assert counts(here) == {"/a": {PARTY: 5, THUMB: 2}}
    written = json.loads(here.export("waline"))["data"]["Counter"]
    assert written == [{"objectId": 1, "time": 7, "url": "/a/", "reaction0": 5, "reaction1": 2}]
