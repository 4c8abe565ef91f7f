"""What Isso and Waline themselves gave out comes in, and goes out again in their forms.

Both files of tests/moving were made by the products: `tests/moving.py FOLDER --count 12 --keep
tests/moving` wrote the comments through their APIs and kept what an owner gets. It also holds what
each comment was, and reads here what came of it."""

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import moving
import pytest
from conftest import assert_whole, dump
from moving import PAGES, QUIET, Told, as_read, by_number, here, told
from test_commands import run

FILES = Path(__file__).parent / "moving"
WALINE = FILES / "real_waline.json"
ALL = [told(number) for number in range(12)]
VIEWS = {PAGES[0]: 12, PAGES[1]: 11, PAGES[2]: 8, PAGES[3]: 1, PAGES[4]: 0, QUIET: 14}
WP = "{http://wordpress.org/export/1.2/}"


@pytest.fixture
def isso(tmp_path: Path) -> Path:
    file = tmp_path / "of isso" / "comments.db"
    file.parent.mkdir()
    with closing(sqlite3.connect(file)) as db:
        db.executescript((FILES / "real_isso.sql").read_text("utf-8"))
    return file


def of_isso() -> dict[int, Told]:
    """Answers stand below the first comment, nothing is spam or pinned, links have a scheme; of
    what is deleted nothing is left."""
    tops, sites = {2: 0, 5: 3, 11: 9}, {"example.com": "http://example.com"}
    return by_number(
        {
            number: each._replace(
                parent=tops.get(number, each.parent),
                state=each.state.replace("spam", "waiting"),
                website=sites.get(each.website, each.website),
                pinned=False,
            )
            for number, each in enumerate(ALL)
        }
    )


def of_waline() -> dict[int, Told]:
    """It knows no edits; what was answered can't be deleted alone."""
    return {
        number: as_read(each)._replace(state=each.state.replace("deleted", "visible"), edited=None)
        for number, each in enumerate(ALL)
    }


def moved(folder: Path, file: Path, *words: str) -> str:
    """What the program tells of the import."""
    code, report, errors = run(folder, "import", str(file), *words)
    assert (code, errors) == (0, "")
    return report


def said(folder: Path) -> dict[int, Told]:
    return by_number(here(folder / "commentd.db")[0])


def made(folder: Path, *words: str) -> Path:
    file = folder / "exported"
    moving.commentd(folder / "commentd.db", "export", *words, out=file)
    return file


def exported(folder: Path, *words: str) -> str:
    return made(folder, *words).read_text("utf-8", errors="replace")


# In


@pytest.mark.slow
def test_all_that_isso_holds_is_here(tmp_path: Path, isso: Path) -> None:
    moved(tmp_path, isso)
    assert said(tmp_path) == of_isso()
    assert_whole(str(tmp_path / "commentd.db"))


@pytest.mark.slow
def test_all_that_waline_gives_out_is_here(tmp_path: Path) -> None:
    moved(tmp_path, WALINE)
    assert said(tmp_path) == of_waline()
    assert here(tmp_path / "commentd.db")[1] == VIEWS
    assert_whole(str(tmp_path / "commentd.db"))


@pytest.mark.slow
def test_the_report_counts_what_is_read(tmp_path: Path, isso: Path) -> None:
    (tmp_path / "other").mkdir()
    assert moved(tmp_path / "other", isso).splitlines() == [
        "isso: 12 comments read, 12 new, 0 already here, 0 skipped",
        "  new: 9 visible, 2 waiting, 1 deleted",
        "  4 pages, 4 of them new",
        "  not carried: dislikes",
    ]
    assert moved(tmp_path, WALINE).splitlines() == [
        "waline: 12 comments read, 12 new, 0 already here, 0 skipped",
        "  new: 10 visible, 1 waiting, 1 spam",
        "  5 pages, 5 of them new",
        "  times without a zone are read as of +08:00 (--zone)",
        "  not carried: reactions, user agents",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["isso", "waline"])
def test_the_second_time_nothing_is_new(tmp_path: Path, isso: Path, name: str) -> None:
    file = {"isso": isso, "waline": WALINE}[name]
    moved(tmp_path, file)
    before = dump(str(tmp_path / "commentd.db"))
    report = moved(tmp_path, file).splitlines()
    assert report[0] == f"{name}: 12 comments read, 0 new, 12 already here, 0 skipped"
    assert dump(str(tmp_path / "commentd.db")) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["isso", "waline"])
def test_a_dry_run_tells_the_same_and_writes_nothing(tmp_path: Path, isso: Path, name: str) -> None:
    file = {"isso": isso, "waline": WALINE}[name]
    dry = moved(tmp_path, file, "--dry-run").splitlines()
    assert not comments(tmp_path)
    assert dry == [*moved(tmp_path, file).splitlines(), "this was a dry run: nothing is written"]
    assert comments(tmp_path) == 12


def comments(folder: Path) -> int:
    if not (folder / "commentd.db").exists():
        return 0
    with closing(sqlite3.connect(folder / "commentd.db")) as db:
        (number,) = db.execute("SELECT count(*) FROM comment").fetchone()
    return int(number)


@pytest.mark.slow
def test_secrets_and_whole_addresses_stay_behind(tmp_path: Path, isso: Path) -> None:
    with closing(sqlite3.connect(isso)) as db:
        sql = "SELECT value FROM preferences WHERE key = 'session-key'"
        (key,) = db.execute(sql).fetchone()
    rows = json.loads(WALINE.read_text("utf-8"))["data"]
    secrets = [key, rows["Users"][0]["password"], rows["Comment"][0]["ip"], "$2a$"]
    assert all(secrets)
    moved(tmp_path, isso)
    moved(tmp_path, WALINE)
    files = [file for file in tmp_path.iterdir() if file.is_file()]
    stored = b"".join(file.read_bytes() for file in files)
    assert b"203.0.113.0" in stored
    assert [secret for secret in secrets if secret.encode() in stored] == []


@pytest.mark.slow
def test_the_file_of_isso_is_left_as_it_is(tmp_path: Path, isso: Path) -> None:
    before = isso.read_bytes()
    moved(tmp_path, isso)
    assert [file.name for file in isso.parent.iterdir()] == ["comments.db"]
    assert isso.read_bytes() == before


# Out again


@pytest.mark.slow
def test_addresses_go_out_only_when_asked_for(tmp_path: Path) -> None:
    moved(tmp_path, WALINE)
    for form in ("waline", "wordpress", "artalk", "commentd"):
        assert "lu@example.com" not in exported(tmp_path, form)
        assert "lu@example.com" in exported(tmp_path, form, "--emails")


@pytest.mark.slow
def test_an_export_for_waline_comes_back_the_same(tmp_path: Path) -> None:
    moved(tmp_path, WALINE)
    file = tmp_path / "out.json"
    file.write_text(exported(tmp_path, "waline", "--emails"), "utf-8")
    (tmp_path / "other").mkdir()
    moved(tmp_path / "other", file)
    assert said(tmp_path / "other") == of_waline()
    assert here(tmp_path / "other/commentd.db")[1] == VIEWS


@pytest.mark.slow
@pytest.mark.parametrize("form", ["commentd", "wordpress", "artalk", "waline"])
def test_answers_to_what_was_deleted_keep_their_place(
    tmp_path: Path, isso: Path, form: str
) -> None:
    moved(tmp_path, isso)
    file = tmp_path / "out"
    file.write_text(exported(tmp_path, form), "utf-8")
    (tmp_path / "other").mkdir()
    moved(tmp_path / "other", file)
    places = {number: (each.parent, each.state) for number, each in of_isso().items()}
    assert {n: (each.parent, each.state) for n, each in said(tmp_path / "other").items()} == places


@pytest.mark.slow
def test_an_export_for_waline_has_the_rows_of_waline(tmp_path: Path) -> None:
    """Its admin page sends each row as it is; a column that it does not know would be an error."""
    moved(tmp_path, WALINE)
    given, made = json.loads(WALINE.read_text("utf-8")), exported(tmp_path, "waline", "--emails")
    out = json.loads(made)
    assert (out["type"], out["version"]) == (given["type"], given["version"])
    assert set(out["tables"]) <= set(given["tables"])
    for table in out["tables"]:
        known = {name for row in given["data"][table] for name in row}
        assert {name for row in out["data"][table] for name in row} <= known
    ids = [row["objectId"] for row in out["data"]["Comment"]]
    assert len(set(ids)) == len(ids) == 12
    tops: dict[Any, int] = {None: 0}  # which Waline finds by `rid`, and shows nothing without
    for row in sorted(out["data"]["Comment"], key=lambda row: row["insertedAt"]):
        assert (row["rid"] or 0) == tops[row["pid"]]
        tops[row["objectId"]] = row["rid"] or row["objectId"]
        assert row["status"] in ("approved", "waiting", "spam")
        assert row["insertedAt"].endswith("Z")


@pytest.mark.slow
def test_pages_are_spelt_as_each_product_spells_them(tmp_path: Path, isso: Path) -> None:
    """Waline's client decodes the address that Isso's takes from the browser as it is."""
    (tmp_path / "other").mkdir()
    moved(tmp_path, isso)
    moved(tmp_path / "other", WALINE)
    rows = json.loads(exported(tmp_path, "waline"))["data"]["Comment"]
    assert {row["url"] for row in rows} == set(PAGES[:4])
    spelt = {moving.spelt(page) for page in PAGES[:4]}
    tree = ElementTree.fromstring(exported(tmp_path / "other", "wordpress"))
    assert {page.findtext("link") for page in tree.findall("channel/item")} == spelt


@pytest.mark.slow
def test_an_export_as_wordpress_can_be_read_by_isso(tmp_path: Path, isso: Path) -> None:
    """Isso skips pages without a title, breaks off at empty texts or addresses, and shows no
    answers to what it does not show."""
    moved(tmp_path, isso)
    tree = ElementTree.fromstring(exported(tmp_path, "wordpress", "--emails"))
    pages = tree.findall("channel/item")
    assert {moving.unquote(page.findtext("link", "")) for page in pages} == set(PAGES[:4])
    texts: dict[str, Any] = {}
    for page in pages:
        assert page.findtext("title")
        for each in page.findall(f"{WP}comment"):
            fields = {name: each.findtext(f"{WP}comment_{name}") for name in ASKED}
            assert all(fields[name] for name in ("author_IP", "content", "date_gmt"))
            datetime.strptime(str(fields["date_gmt"]), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
            texts[str(fields["id"])] = int(fields["parent"] or 0), fields["approved"]
    assert {str(parent) for parent, _ in texts.values()} <= {*texts, "0"}
    assert sorted(approved for _, approved in texts.values()) == ["0"] * 2 + ["1"] * 10


ASKED = ("id", "author", "author_email", "author_url", "author_IP", "date_gmt", "content")
ASKED += ("approved", "parent")


@pytest.mark.slow
def test_what_comes_again_under_other_ids_is_there(tmp_path: Path) -> None:
    """As from a Waline that was moved to another database, with both exports at hand."""
    moved(tmp_path, WALINE)
    again = tmp_path / "again.json"
    again.write_text(
        exported(tmp_path, "waline", "--emails").replace('"objectId": ', '"objectId": 70')
    )
    text = again.read_text()
    for name in ("pid", "rid"):
        text = text.replace(f'"{name}": ', f'"{name}": 70').replace("70null", "null")
    again.write_text(text)
    assert ", 0 new, " in moved(tmp_path, again)
