"""Comments that the owner of the blog wrote in another product: they become those of an admin here,
by `--me` or by the claim at /admin, and nobody else's do."""

from typing import Any

import pytest

from commentd import App
from support import products
from support.client import CANARY, Visitor
from support.inside import add_account, admin_link, sql
from support.products import NOON, ForeignComment, Importer, Result, file_of, twikoo_row

importer = products.importer
OWNER = "owner@example.com"


def twikoo_file(*rows: tuple[str, str, bool]) -> bytes:
    """Comments with a nickname, an email address, and whether Twikoo marks them as the owner's."""
    return file_of(
        "twikoo",
        [
            twikoo_row(ForeignComment(str(number), NOON + number, text=f"of {name}", nickname=name))
            | {"mail": email, "master": is_owner}
            for number, (name, email, is_owner) in enumerate(rows, 1)
        ],
    )


MARKED = twikoo_file(("Me", OWNER, True), ("Me", OWNER, False), ("Bob", "bob@example.com", False))


def roles(reader: Visitor) -> dict[str, Any]:
    """The roles of the comments, by their texts, the oldest first."""
    listed = reader.listing(url="/a/", limit=100, sort="oldest")["comments"]
    return {f"{comment['id']} {comment['content']}": comment["role"] for comment in listed}


def owner_line(result: Result) -> str:
    lines = [line for line in result.text.splitlines() if "of the owner" in line]
    return "".join(lines).strip()


def test_the_first_admin_gets_the_marked_comments_of_an_earlier_import(
    importer: Importer, app: App
) -> None:
    result = importer.import_file(MARKED)
    assert owner_line(result) == "comments of the owner: 1, for the first who claims /admin"
    reader = Visitor(app)
    assert {*roles(reader).values()} == {""}
    claim = {"link": admin_link(app), "email": OWNER, "nickname": "Owner", "password": CANARY}
    reader.post_json("/admin/claim", claim)
    assert roles(reader) == {"1 of Me": "admin", "2 of Me": "", "3 of Bob": ""}


def test_a_second_admin_gets_no_imported_comments(importer: Importer, app: App) -> None:
    add_account(app, "first@example.com", "First", CANARY, "admin")
    assert owner_line(importer.import_file(MARKED)) == (
        "comments of the owner: 1 (add --me EMAIL to have your own)"
    )
    claim = {"link": admin_link(app, OWNER), "nickname": "Owner", "password": CANARY}
    reader = Visitor(app)
    reader.post_json("/admin/claim", claim)
    assert {*roles(reader).values()} == {""}


@pytest.mark.parametrize("earlier", [False, True], ids=["at once", "imported before"])
def test_me_gives_an_admin_what_is_marked_and_what_has_the_address(
    importer: Importer, app: App, earlier: bool
) -> None:
    add_account(app, OWNER, "Owner", CANARY, "admin")
    if earlier:
        importer.import_file(MARKED)
    result = importer.import_file(MARKED, "--me", "old@example.com", OWNER)
    assert owner_line(result) == f"comments of the owner: 2, now those of {OWNER}"
    assert roles(Visitor(app)) == {"1 of Me": "admin", "2 of Me": "admin", "3 of Bob": ""}


def test_me_of_a_dry_run_changes_nothing_and_reports_the_same(importer: Importer, app: App) -> None:
    add_account(app, OWNER, "Owner", CANARY, "admin")
    importer.import_file(MARKED)
    dry = importer.import_file(MARKED, "--me", OWNER, "--dry-run")
    assert {*roles(Visitor(app)).values()} == {""}
    assert owner_line(importer.import_file(MARKED, "--me", OWNER)) == owner_line(dry)


def test_me_asks_which_of_several_admins_is_meant(importer: Importer, app: App) -> None:
    for email in (OWNER, "second@example.com"):
        add_account(app, email, email[:5], CANARY, "admin")
    asked = importer.import_file(MARKED, "--me", "old@example.com").failure
    assert asked.strip() == (
        f"add to --me the email address of an admin: {OWNER}, second@example.com"
    )
    importer.import_file(MARKED, "--me", "old@example.com", "second@example.com")
    assert [*roles(Visitor(app)).values()] == ["admin", "", ""]


def test_me_takes_no_comment_from_an_account_that_has_it(importer: Importer, app: App) -> None:
    file = twikoo_file(("Bob", "bob@example.com", False))
    importer.import_file(file)
    bob = add_account(app, "bob@example.com", "Bobby", CANARY)
    sql(app, "UPDATE comment SET user_id = ?", bob)
    add_account(app, OWNER, "Owner", CANARY, "admin")
    importer.import_file(file, "--me", "bob@example.com")
    (comment,) = Visitor(app).listing(url="/a/")["comments"]
    assert comment["user_id"] == bob
