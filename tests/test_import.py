"""What an import promises, whatever the product: each comment comes once, what was done here stays,
an interrupted import goes on, readers and writers do not wait, and the report says what was done.
What is particular to a product is in test_import_products.py."""

import functools
import gzip
import html
import io
import itertools
import json
import os
import pty
import re
import select
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as how
from hypothesis import strategies as st

import commentd
from commentd import App, proper_email, proper_nickname, proper_website, safe_html
from support import products
from support.admin import moderate
from support.client import CANARY, COMMENT, Visitor
from support.commands import PROGRAM
from support.database import assert_whole
from support.faults import little_room
from support.inside import INTERRUPTED, add_account, sql, token_of
from support.patience import PATIENCE
from support.products import (
    DAY,
    HOUR,
    MAKERS,
    MINUTE,
    NOON,
    ROWS,
    ForeignComment,
    Importer,
    Result,
    blog,
    file_of,
    moment,
    waline,
    waline_row,
    wordpress,
)
from support.service import Answer, Service, services
from support.serving import until
from support.sources import ROOT
from support.world import START, FakeWorld

importer = products.importer
OWNER = "owner@example.com"
FILES = {name: MAKERS[name] for name in ("waline", "twikoo", "wordpress", "isso")}
each = pytest.mark.parametrize("product", MAKERS)
quiet = pytest.mark.parametrize("settings", [{"limits_enabled": False}])


@pytest.fixture
def owner(app: App) -> Visitor:
    """The admin on the admin page."""
    add_account(app, OWNER, "Owner", CANARY, "admin")
    owner = Visitor(app, ip="198.51.100.7")
    owner.authorization = ("Bearer", token_of(app, OWNER, "admin"))
    return owner


def start_program(folder: Path, *words: str, code: str = "", **how: Any) -> subprocess.Popen[str]:
    """The program in a process of its own, started in that folder; or this `code` in its place."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", **how}
    kept = {name: text for name, text in os.environ.items() if not name.startswith("COMMENTD_")}
    kept["PYTHONPATH"] = str(ROOT)
    program = ["-c", code] if code else PROGRAM
    command = [sys.executable, "-W", "error", *program, *words]
    return subprocess.Popen(command, cwd=folder, env=kept, **pipes)


def result_of(process: subprocess.Popen[str]) -> Result:
    text, errors = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in errors, errors
    return Result(process.returncode, text.encode(), errors)


def count_in(path: Path) -> int:
    """How many comments are in a database; 0 where there is none yet."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM comment").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def files_in(folder: Path) -> dict[str, bytes]:
    """All but the lists of what could not be imported, which a dry run writes too."""
    files = [file for file in folder.iterdir() if not file.name.endswith(".report.txt")]
    return {file.name: file.read_bytes() for file in files}


# Twice, and dry


@each
def test_an_import_brings_each_comment_once_and_a_dry_run_reports_the_same(
    importer: Importer, product: str
) -> None:
    make = MAKERS[product]
    file, newer = importer.file(make(blog())), importer.file(make(blog(15)), "newer")
    before = files_in(importer.folder)
    first = importer.import_file(file, "--dry-run")
    assert files_in(importer.folder) == before
    assert (
        importer.import_file(file).text + "this was a dry run: nothing is imported\n" == first.text
    )
    assert (first.code, first.counts) == (0, (12, 12, 0, 0))
    assert sorted(importer.texts) == sorted(comment.text for comment in blog())

    before, kept = files_in(importer.folder), importer.dump()
    for words in ([], [], ["--dry-run"]):
        again = importer.import_file(file, *words)
        assert (again.code, again.counts) == (0, (12, 0, 12, 0))
        assert importer.dump() == kept

    importer.full_export()  # after which no reader's -wal is left
    before = files_in(importer.folder)
    dry = importer.import_file(newer, "--dry-run")
    assert (dry.counts, files_in(importer.folder)) == ((15, 3, 12, 0), before)
    assert importer.import_file(newer).text == "".join(dry.text.splitlines(keepends=True)[:-1])
    assert len(importer.texts) == 15


def test_an_imported_row_without_an_id_is_known_by_page_time_author_and_text(
    importer: Importer,
) -> None:
    for product in ("valine", "waline", "twikoo", "artalk"):
        make = MAKERS[product]
        importer.use_database(f"{product}.db")
        thread = [replace(comment, id="", parent="") for comment in blog()]
        assert importer.import_file(make(thread)).counts == (12, 12, 0, 0)
        assert importer.import_file(make([*thread, thread[0]])).counts == (13, 0, 12, 1)
        for other in ({"likes": 5}, {"status": "waiting"}, {"website": "http://x.example"}):
            newer = [replace(comment, page=comment.page.rstrip("/"), **other) for comment in thread]
            assert importer.import_file(make(newer)).counts == (12, 0, 12, 0)
        apart = [
            replace(thread[0], text="other"),
            replace(thread[0], nickname="Bob"),
            replace(thread[0], page="/b/"),
            replace(thread[0], at=NOON + 1),
        ]
        assert importer.import_file(make(apart)).counts == (4, 4, 0, 0)


def test_an_import_of_the_same_comments_from_two_products_brings_them_once(
    importer: Importer,
) -> None:
    """Many moved from one to the other, and have a file of each."""
    thread = [replace(comment, likes=0) for comment in blog()]
    assert importer.import_file(waline(thread)).counts == (12, 12, 0, 0)
    before = importer.comments_by_time
    for product in MAKERS:
        known = (
            [replace(comment, email="") for comment in thread] if product == "remark42" else thread
        )
        assert importer.import_file(MAKERS[product](known)).counts == (12, 0, 12, 0), product
    assert importer.comments_by_time == before
    more = replace(blog(13)[12], parent="1", page="/0/")
    assert importer.import_file(FILES["isso"]([*thread, more])).counts == (13, 1, 12, 0)
    assert importer.comments_by_time[more.at]["above"] == NOON


def test_an_import_takes_no_two_comments_of_a_file_for_one_that_is_here(importer: Importer) -> None:
    importer.import_file(waline([ForeignComment()]))
    twins = [ForeignComment("a"), ForeignComment("b")]
    assert importer.import_file(MAKERS["twikoo"](twins)).counts == (2, 1, 1, 0)
    assert importer.import_file(MAKERS["twikoo"](twins)).counts == (2, 0, 2, 0)


# Stopped


def killed_before_statement(number: int, work: Callable[[], object]) -> bool:
    """Does it in a process that is killed before its n-th statement of SQL; whether it was. What
    happens between two statements, no database keeps."""
    counted = itertools.count()

    class Deadly(sqlite3.Connection):
        def execute(self, *statement: Any) -> sqlite3.Cursor:
            if next(counted) == number:
                os.kill(os.getpid(), 9)
            return super().execute(*statement)

    if child := os.fork():
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)
    try:
        connect = functools.partial(sqlite3.connect, factory=Deadly)
        sqlite3.connect = connect  # type: ignore[assignment]
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


@pytest.mark.slow
def test_an_import_killed_anywhere_goes_on_at_the_next_run(
    importer: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commentd, "IMPORT_STEP", 50)  # so that three transactions are quick
    file = importer.file(waline(blog(150)))
    importer.use_database("whole.db")
    importer.import_file(file)
    whole, left, died = importer.dump(), [], True
    for number in itertools.count(0, 97):
        importer.use_database(f"{number}.db")
        died = killed_before_statement(number, lambda: importer.import_file(file))
        left.append(count_in(importer.path))
        if left[-1]:
            assert_whole(str(importer.path))
        again = importer.import_file(file)
        assert (again.code, again.counts) == (0, (150, 150 - left[-1], left[-1], 0)), number
        assert importer.dump() == whole, number
        if not died:
            break
    assert {0, 50, 100, 150} == {*left}


def test_an_import_takes_a_half_made_database_for_a_new_one(importer: Importer) -> None:
    file = importer.file(waline(blog(3)))
    importer.use_database("cut.db")
    with closing(sqlite3.connect(importer.path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    assert importer.path.stat().st_size
    assert importer.import_file(file).counts == (3, 3, 0, 0)


@pytest.mark.slow
def test_two_imports_at_a_time_bring_each_comment_once(importer: Importer) -> None:
    importer.file(waline(blog(600)))
    importer.use_database("commentd.db", made=True)
    both = [
        result_of(process)
        for process in [start_program(importer.folder, "import", "export") for _ in "ab"]
    ]
    assert [result.code for result in both] == [0, 0]
    assert sum(result.counts[1] for result in both) == count_in(importer.path) == 600


@pytest.mark.slow
def test_an_import_stopped_by_ctrl_c_says_so_and_goes_on_later(importer: Importer) -> None:
    importer.file(waline(blog(1000)))
    process = start_program(importer.folder, "import", "export")
    until(lambda: count_in(importer.path))
    process.send_signal(signal.SIGINT)
    assert "interrupted" in result_of(process).failure
    left = count_in(importer.path)
    assert 0 < left < 1000
    assert_whole(str(importer.path))
    again = result_of(start_program(importer.folder, "import", "export"))
    assert again.counts == (1000, 1000 - left, left, 0)


@pytest.mark.slow
@pytest.mark.parametrize("made", [True, False], ids=["a made database", "a new one"])
def test_ctrl_c_while_an_import_saves_ends_it(importer: Importer, made: bool) -> None:
    importer.file(waline(blog(3)))
    importer.use_database("interrupted.db", made=made)
    process = start_program(importer.folder, "import", "export", code=INTERRUPTED)
    assert "interrupted" in result_of(process).failure
    left = count_in(importer.path)
    again = result_of(start_program(importer.folder, "import", "export"))
    assert again.counts == (3, 3 - left, left, 0)
    assert_whole(str(importer.path))


@pytest.mark.slow
def test_an_import_stopped_by_a_full_disk_says_so_and_goes_on_later(importer: Importer) -> None:
    """Wherever it is full: the folder of the database, or that of temporary files."""
    thread = [replace(comment, text=comment.text + " long" * 300) for comment in blog(1000)]
    file = importer.file(gzip.compress(waline(thread)))
    for room in (1 << 16, 1 << 20):
        importer.use_database(f"{room}.db")
        with little_room(room):
            result = importer.import_file(file)
        assert (result.code, result.text) == (1, "")
        assert re.search("^commentd: .+", result.errors, re.M)
        left = count_in(importer.path)
        assert importer.import_file(file).counts == (1000, 1000 - left, left, 0)


# What was done here stays


def change(owner: Visitor, path: str, **form: Any) -> None:
    owner.patch_json(f"/admin/{path}", form)


def page_of(owner: Visitor, url: str = "/0/") -> str:
    pages = owner.get("/admin/pages").json["pages"]
    return f"pages/{next(page['id'] for page in pages if page['page_url'] == url)}"


def of_page(reader: Visitor, url: str = "/0/") -> list[int]:
    """The numbers of the comments of the page, the oldest first."""
    found = reader.get("/comments", {"url": url, "limit": 100, "sort": "oldest"}).json
    return [comment["id"] for comment in found["comments"]]


def is_closed(reader: Visitor, url: str = "/0/") -> bool:
    return bool(reader.listing(url=url, view="threads")["settings"]["closed"])


def approve(owner: Visitor, reader: Visitor, fake_world: FakeWorld) -> None:
    waiting = owner.get("/admin/comments", {"status": "waiting"}).json["comments"]
    moderate(owner, [comment["id"] for comment in waiting], "visible")


def delete_as_author(owner: Visitor, reader: Visitor, fake_world: FakeWorld) -> None:
    """Whoever was given what they wrote elsewhere deletes it."""
    app = reader.served
    account = add_account(app, "lu@example.cn", "Lu", CANARY)
    first = of_page(reader)[0]
    sql(app, "UPDATE comment SET user_id = ? WHERE id = ?", account, first)
    reader.authorization = ("Bearer", token_of(app, "lu@example.cn"))
    assert reader.delete_json(f"/comments/{first}", {}).json["success"]


def purge(owner: Visitor, reader: Visitor, fake_world: FakeWorld) -> None:
    """Spam goes after its days. What answers it goes with it, so that nothing holds it."""
    moderate(owner, of_page(reader), "spam")
    fake_world.time += 31 * DAY
    owner.served.tick()
    owner.served.back_up_if_due()


def like_and_reply(owner: Visitor, reader: Visitor, fake_world: FakeWorld) -> None:
    first = of_page(reader)[0]
    reader.post_json("/comment/like", {"id": first})
    reader.post_json("/page/like", {"page_url": "/0/"})
    reader.served.tick()
    reader.say("of here", page_url="/0/")
    reader.say("a reply", page_url="/0/", parent_id=first)


def moderate_and_correct(owner: Visitor, reader: Visitor, fake_world: FakeWorld) -> None:
    """What a moderator changes of a comment."""
    first, *_, last = of_page(reader)
    change(owner, f"comments/{first}", content="corrected", nickname="Bob", website="")
    owner.post_json("/admin/comments", {"ids": [first], "pinned": True})
    moderate(owner, [last], "waiting")


DONE_HERE: dict[str, Callable[[Visitor, Visitor, FakeWorld], object]] = {
    "edited": moderate_and_correct,
    "hidden": lambda owner, reader, _: moderate(owner, of_page(reader)[:1], "spam"),
    "deleted": lambda owner, reader, _: moderate(owner, of_page(reader)[:1], "deleted"),
    "approved": approve,
    "closed": lambda owner, reader, _: change(owner, page_of(owner), closed=True),
    "moved": lambda owner, reader, _: change(owner, page_of(owner), page_url="/moved/"),
    "merged": lambda owner, *_: change(owner, page_of(owner), page_url="/1/", merge=True),
    "erased by its author": delete_as_author,
    "purged": purge,
    "liked, read and answered": like_and_reply,
}


@pytest.mark.parametrize("action", DONE_HERE)
@quiet
def test_a_second_import_keeps_what_moderators_and_readers_did_meanwhile(
    importer: Importer, owner: Visitor, visitor: Visitor, fake_world: FakeWorld, action: str
) -> None:
    """With the same file again, and with a newer one, in which all that was changed and two more
    answer what was."""
    importer.import_file(waline(blog()))
    DONE_HERE[action](owner, visitor, fake_world)
    before, kept = importer.dump(), importer.full_export()
    again = importer.import_file(waline(blog()))
    assert (again.code, again.counts) == (0, (12, 0, 12, 0))
    assert importer.dump() == before

    changed = [replace(s, text="edited there", likes=7, status="visible") for s in blog()]
    more = [
        ForeignComment("98", NOON + DAY, "1", "/0/", "more"),
        ForeignComment("99", NOON + DAY + 1, "7", "/0/", "m"),
    ]
    counter = [{"url": "/0/", "time": 1}]
    assert importer.import_file(waline([*changed, *more], Counter=counter)).counts == (14, 2, 12, 0)
    after = importer.full_export()
    rows = {row["id"]: row for row in after["comments"]}
    assert [rows.pop(row["id"]) for row in kept["comments"]] == kept["comments"]
    assert {row["content"] for row in rows.values()} <= {"more", "m", ""}  # "" was deleted here
    closed = {page["page_key"]: page["closed"] for page in after["pages"]}
    assert closed == closed | {page["page_key"]: page["closed"] for page in kept["pages"]}


def test_our_own_export_is_known_by_its_ids_whatever_was_edited_or_moved_since(
    importer: Importer, owner: Visitor, visitor: Visitor
) -> None:
    importer.import_file(waline(blog()))
    export = importer.export()
    first, *_ = of_page(visitor)
    change(owner, f"comments/{first}", content="corrected", nickname="Bob")
    change(owner, page_of(owner), page_url="/moved/")
    before = importer.comments
    assert importer.import_file(export).counts == (12, 0, 12, 0)
    assert importer.comments == before


def test_a_second_import_leaves_a_reopened_page_open(
    importer: Importer, owner: Visitor, visitor: Visitor
) -> None:
    importer.import_file(wordpress(blog(), closed=("/0/",)))
    assert is_closed(visitor)
    assert not is_closed(visitor, "/1/")
    change(owner, page_of(owner), closed=False)
    for count in (12, 13):
        assert importer.import_file(wordpress(blog(count), closed=("/0/",))).code == 0
        assert not is_closed(visitor)
    ours = (
        importer.full_export()
    )  # as from another of ours, where it is closed and was read more often
    ours["pages"][0] |= {"closed": 1, "views": 50}
    importer.import_file(json.dumps(ours))
    assert (is_closed(visitor), importer.pages["/0"]["views"]) == (False, 50)


def test_an_import_never_lowers_likes_and_views(
    importer: Importer, app: App, visitor: Visitor
) -> None:
    def counts() -> tuple[int, int]:
        (page,) = visitor.get("/pages", {"url": "/0/"}).json["pages"]
        listed = visitor.listing(url="/0/", limit=100)["comments"]
        return page["views"], next(c for c in listed if "4" in c["content"])["likes"]

    def bring(views: int) -> None:
        importer.import_file(
            waline(thread, Counter=[{"objectId": "v", "url": "/0/", "time": views}])
        )

    thread = [replace(comment, likes=3) for comment in blog()]
    bring(10)
    assert counts() == (10, 3)
    visitor.post_json("/comment/like", {"id": importer.comments_by_time[NOON + 3 * MINUTE]["id"]})
    app.tick()
    liked_here = counts()
    assert liked_here[0] > 10
    assert liked_here[1] == 4
    for views, expected in ((10, 0), (5, 0), (11, 0), (100, 100)):
        bring(views)
        assert counts() >= max(liked_here, (expected, 4))
    assert counts()[0] < 110


# Who answers whom


def test_an_imported_reply_without_its_parent_stands_at_the_top(importer: Importer) -> None:
    comments = [
        ForeignComment("1"),
        ForeignComment("2", NOON + 1, "1", "/b/"),
        ForeignComment("3", NOON + 2, "77"),
        ForeignComment("4", NOON + 3, "5"),
        ForeignComment("5", NOON + 4, page=f"/{'x' * 3000}/"),
        ForeignComment("6", NOON + 5, "6"),
        ForeignComment("7", NOON + 6, "8"),
        ForeignComment("8", NOON + 7, "7"),
        ForeignComment("9", NOON + 8),
    ]
    result = importer.import_file(waline(comments))
    reasons = re.findall(r"^  at the top, since (.+) \(\d\): (.+)$", result.text, re.M)
    assert dict(reasons) == {
        "what they reply to is not there": "2, 3, 4",
        "they reply to each other": "6, 7, 8",
    }
    assert [row["above"] for row in importer.comments] == [None] * 8  # all but the fifth
    by_time = [row["id"] for _, row in sorted(importer.comments_by_time.items())]
    assert by_time == [1, 2, 3, 4, 5, 6, 7, 8]


def test_an_import_of_a_whole_file_puts_replies_of_an_earlier_part_below_their_parents(
    importer: Importer, fake_world: FakeWorld
) -> None:
    texts = [("1", ""), ("2", "1"), ("3", "2"), ("4", "3"), ("5", "")]
    thread = [ForeignComment(id, NOON + int(id), parent, text=id) for id, parent in texts]
    for product in ("twikoo", "disqus", "isso"):
        importer.use_database(f"{product}.db")
        importer.import_file(MAKERS[product](thread[2:]))
        assert importer.comments_by_time[NOON + 3]["above"] is None
        with importer.served(fake_world) as reader:
            mark = reader.listing(url="/a/", since=0)["mark"]
        result = importer.import_file(MAKERS[product](thread))
        assert result.named("now below") == ["3"]
        above = [importer.comments_by_time[NOON + number]["above"] for number in range(1, 6)]
        assert above == [None, NOON + 1, NOON + 2, NOON + 3, None]
        assert "all counters were correct" in importer.ask("recount").text
        with importer.served(fake_world) as reader:
            listed = reader.listing(url="/a/", view="threads", sort="oldest")
            assert reader.listing(url="/a/", since=mark)["reload"]
        assert (listed["threads"], listed["total"]) == (2, 5)
        assert [len(each["replies"]) for each in listed["comments"]] == [3, 0]
        assert importer.import_file(MAKERS[product](thread)).number("now below") == 0


def test_an_imported_reply_is_not_put_below_a_parent_on_another_page(
    importer: Importer, owner: Visitor
) -> None:
    thread = [ForeignComment("1", page="/0/"), ForeignComment("2", NOON + 1, "1", "/0/")]
    importer.import_file(waline(thread[1:]))
    change(owner, page_of(owner), page_url="/moved/")
    assert importer.import_file(waline(thread)).number("now below") == 0
    rows = importer.comments_by_time
    assert [rows[at]["page_key"] for at in sorted(rows)] == ["/0", "/moved"]
    assert rows[NOON + 1]["above"] is None
    assert "all counters were correct" in importer.ask("recount").text


def test_an_imported_comment_is_not_put_below_a_reply_to_it(importer: Importer) -> None:
    importer.import_file(waline([ForeignComment("1"), ForeignComment("2", NOON + 1, "1")]))
    turned = waline([ForeignComment("1", parent="2"), ForeignComment("2", NOON + 1)])
    assert importer.import_file(turned).number("now below") == 0
    above = [importer.comments_by_time[NOON + number]["above"] for number in range(2)]
    assert above == [None, NOON]
    assert "all counters were correct" in importer.ask("recount").text


def test_an_imported_reply_to_a_lost_comment_stays_in_its_thread(importer: Importer) -> None:
    for product in ("valine", "waline", "twikoo"):
        for number, parent in enumerate(("lost", None, "")):
            importer.use_database(f"{product}{number}.db")
            reply = {**ROWS[product](ForeignComment("2", NOON + 1, parent)), "rid": "1"}
            assert (
                importer.import_file(
                    file_of(product, [reply, ROWS[product](ForeignComment("1"))])
                ).code
                == 0
            )
            assert importer.comments_by_time[NOON + 1]["above"] == NOON


IDS = st.integers(1, 8).map(str)
THREADS = st.lists(
    st.builds(
        ForeignComment,
        id=IDS,
        parent=st.one_of(st.just(""), IDS),
        page=st.sampled_from(["/a/", "/a", "/b/", ""]),
        text=st.sampled_from(["word", "word", ""]),
        status=st.sampled_from(["visible", "waiting"]),
    ),
    min_size=1,
    max_size=8,
).map(lambda thread: [replace(s, at=NOON + n) for n, s in enumerate(thread)])


def expected(thread: list[ForeignComment]) -> tuple[dict[int, ForeignComment], dict[int, int]]:
    """What must come of a file by the rules: the comments, and what each replies to."""
    first: dict[str, ForeignComment] = {}
    for comment in thread:
        if comment.page:
            first.setdefault(comment.id, comment)
    above = {}
    for comment in first.values():
        there = first.get(comment.parent)
        if there and there.page.rstrip("/") == comment.page.rstrip("/"):
            above[comment.at] = there.at

    def leads_to_a_circle(at: int) -> bool:
        seen = {at}
        while at in above and above[at] not in seen:
            at = above[at]
            seen.add(at)
        return at in above

    kept = {at: up for at, up in above.items() if not leads_to_a_circle(at)}
    return {comment.at: comment for comment in first.values()}, kept


@pytest.mark.slow
@given(product=st.sampled_from([*FILES]), thread=THREADS)
@how(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_import_makes_threads_of_any_tangled_replies(
    importer: Importer, product: str, thread: list[ForeignComment]
) -> None:
    if product == "wordpress":  # whose comments stand below their pages
        order = [comment.page for comment in thread]
        thread = sorted(thread, key=lambda comment: order.index(comment.page))
    if product == "isso":  # which has keys
        thread = list({comment.id: comment for comment in thread}.values())
    importer.use_database("commentd.db", made=True)
    for left in importer.folder.glob("commentd.db-*"):
        left.unlink()
    file = importer.file(MAKERS[product](thread))
    dry = importer.import_file(file, "--dry-run")
    result = importer.import_file(file)
    assert (result.code, dry.code) == (0, 0)
    assert dry.text == result.text + "this was a dry run: nothing is imported\n"
    kept, (saids, above) = importer.comments_by_time, expected(thread)

    def is_held(at: int) -> bool:
        """Whether a word stands there or below."""
        return saids[at].text != "" or any(is_held(a) for a, b in above.items() if b == at)

    assert {*kept} == {at for at in saids if is_held(at)}
    for at, row in kept.items():
        comment = saids[at]
        assert row["above"] == above.get(at)
        assert row["page_key"] == comment.page.rstrip("/")
        assert row["content"] == comment.text
        assert row["status"] == (comment.status if comment.text else "deleted")
    assert result.counts[1] == len(kept)
    before = importer.dump()
    assert importer.import_file(file).counts[1:3] == (0, len(kept))
    assert importer.dump() == before
    assert_whole(str(importer.path))


# What is wrong with a row


def test_the_report_of_an_import_names_each_faulty_row_and_its_fault(importer: Importer) -> None:
    rows: list[Any] = [waline_row(comment) for comment in blog()]
    rows[3:3] = [
        "a text in the place of a comment",
        {**rows[1], "objectId": "empty-7", "comment": " \u200b "},
        {**rows[1], "objectId": f"homeless-{'7' * 100}", "url": ""},
        {**rows[1], "objectId": "orphan-7", "pid": "nobody"},
        {**rows[1], "objectId": "timeless-7", "insertedAt": "yesterday"},
        {**rows[1]},
    ]
    result = importer.import_file(file_of("waline", rows))
    assert (result.code, result.counts) == (0, (18, 14, 0, 4))
    assert result.named("no page") == [f"homeless-{'7' * 55}"]
    assert result.named("no text") == ["empty-7"]
    assert result.named("at the top") == ["orphan-7"]
    assert result.named("without a valid time") == ["timeless-7"]
    assert result.named("twice") == [rows[1]["objectId"]]
    assert "a text in the place" in result.text


def test_the_report_of_an_import_counts_many_faulty_rows_and_names_the_first(
    importer: Importer,
) -> None:
    thread = [ForeignComment(f"orphan-{n}", NOON + n, "nobody", text=f"{n}") for n in range(500)]
    result = importer.import_file(waline(thread))
    assert result.number("at the top") == 500
    assert "…" in result.text
    assert 3 < len(result.named("at the top")) < 20
    assert all(len(line) < 300 for line in result.text.splitlines())


def test_the_report_of_an_import_shows_no_control_characters(importer: Importer) -> None:
    """A name with an escape sequence or an end of line would write what its maker likes."""
    evil = "\x1b]0;evil\x07\x1b[2K\x9b2J\r\n  0 skipped\u202e"
    for product, row in ROWS.items():
        named = [row(ForeignComment(f"{evil}{n}", page="")) for n in range(3)]
        result = importer.import_file(
            file_of(product, [*named, row(ForeignComment("1")), evil * 3])
        )
        assert not re.search(
            r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", result.text
        )
        assert "evil" in result.text
        assert len(result.text.splitlines()) < 9


def test_the_report_of_an_import_counts_waiting_comments_and_closed_pages(
    importer: Importer,
) -> None:
    thread = [
        ForeignComment("1"),
        ForeignComment("2", NOON + 1, status="waiting", page="/b/"),
        ForeignComment("3", NOON + 2, status="spam"),
        ForeignComment("4", NOON + 3, page="/c/"),
    ]
    file = importer.file(wordpress(thread, closed=("/b/", "/c/")))
    for words in (["--dry-run"], []):
        report = importer.import_file(file, *words).text.splitlines()
        assert "  new: 2 visible, 1 waiting, 1 spam" in report
        assert ("  new pages: 3" in report, "  closed pages: 2" in report) == (True, True)
    report = importer.import_file(file).text.splitlines()
    assert "  new pages: 0" in report
    assert not [line for line in report if "new:" in line]


# Times

NONSENSE = [
    "",
    "0000-00-00 00:00:00",
    "0001-01-01T00:00:00Z",
    "0000-01-01",
    "9999-12-31T23:59:59Z",
    "10000-01-01",
    "1969-12-31T23:59:59Z",
    "2026-02-30 10:00:00",
    "2021-13-45T99:99:99Z",
    "-0001-01-01T00:00:00Z",
    "yesterday",
    moment(START + 3 * DAY),
    str(START + 3 * DAY),
    "-1",
    "1e400",
    "nan",
    "99999999999999999999",
    "9" * 400,
    None,
    True,
    {},
    [],
    {"iso": None},
    {"$date": {}},
    {"$numberLong": "many"},
    {"__type": "Date"},
    1.5e300,
]


def test_an_imported_comment_with_an_impossible_time_gets_that_of_its_parent_its_page_or_today(
    importer: Importer, fake_world: FakeWorld
) -> None:
    """And is known again a day later, when today is another day."""
    for product in ROWS:
        importer.use_database(f"{product}.db")
        fake_world.time = START
        bad = [ForeignComment(f"a{n}", time, "1", text=f"a{n}") for n, time in enumerate(NONSENSE)]
        bad += [
            ForeignComment("below", "no", "a0", text="below"),
            ForeignComment("b", "no", text="on top"),
            ForeignComment("c", "no", page="/c/", text="alone"),
        ]
        comments = [ForeignComment("1", NOON + HOUR), *bad, ForeignComment("2", NOON)]
        result = importer.import_file(MAKERS[product](comments))
        assert (result.code, result.counts[1]) == (0, len(comments))
        assert result.number("without a valid time") == len(bad)
        found = {row["content"]: row["created_at"] for row in importer.comments}
        assert {found[f"a{n}"] for n in range(len(NONSENSE))} == {NOON + HOUR}
        assert NOON <= found["below"] <= NOON + HOUR
        assert (found["on top"], found["alone"]) == (NOON, START)
        before = importer.dump()
        fake_world.time += DAY
        assert importer.import_file(importer.folder / "export").counts[1:] == (0, len(comments), 0)
        assert importer.dump() == before


def test_no_imported_comment_is_of_the_future(importer: Importer) -> None:
    """Else it would stand above all that is written here, until then."""
    years = [int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (3000, 9999)]
    for product in MAKERS:
        importer.use_database(f"{product}.db")
        comments = [
            ForeignComment("1", START + 20 * HOUR),
            ForeignComment("2", START - 5, text="ho"),
        ]
        comments += [ForeignComment(str(n), at, text=f"{n}") for n, at in enumerate(years, 3)]
        assert importer.import_file(MAKERS[product](comments)).counts[1] == 4
        assert max(importer.comments_by_time) <= START


BARE = moment(NOON, "%Y-%m-%d %H:%M:%S")
ZONES = {
    (): NOON - 8 * HOUR,
    ("--zone", "+00:00"): NOON,
    ("--zone", "+08:00"): NOON - 8 * HOUR,
    ("--zone=-05:00",): NOON + 5 * HOUR,
    ("--zone", "+05:30"): NOON - 5 * HOUR - 30 * MINUTE,
}


def test_an_import_reads_times_without_zone_in_the_named_zone(importer: Importer) -> None:
    thread = [ForeignComment("1", BARE), ForeignComment("2", NOON + 1, text="with its zone")]
    for number, words in enumerate(ZONES):
        importer.use_database(f"{number}.db")
        result = importer.import_file(waline(thread), *words)
        found = {row["content"]: row["created_at"] for row in importer.comments}
        assert found == {"hi": ZONES[words], "with its zone": NOON + 1}
        assert importer.import_file(waline(thread)).counts == (
            2,
            0,
            2,
            0,
        )  # nobody has it twice for that
        assert "--zone" in result.text
        assert "--zone" not in importer.import_file(MAKERS["twikoo"](thread)).text


def test_an_import_refuses_an_unknown_zone(importer: Importer) -> None:
    for zone in ("Beijing", "8", "+8", "+25:00", "+08:00; DROP"):
        assert importer.import_file(waline(blog()), f"--zone={zone}").code == 2
    assert not importer.path.exists()


# Names, email addresses, lengths

ODD_WORDS = [
    "",
    " ",
    "\u200b\u200d",
    "\x00\x1b[31mred",
    "a\nb\r\nc",
    "\u202egnp.exe",
    "n" * 300,
    "名" * 300,
    "e" + "\u0301" * 50,
    "👩‍👩‍👧‍👦",
    "👩‍👩‍👧‍👦" * 60,
    "\ufeffbom",
    " \u3164\u2800 ",
    "\u202e",
    "undefined",
    "Anonymous\ufffd\ue000",
    "<script>alert(1)</script>",
    "'; DROP TABLE comment; --",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "javascript://ann.example/%0aalert(1)",
    "#",
    "data:text/html,x",
    "//evil.example",
    "http://",
    "http://user:pass@evil.example",
    "/ann",
    "http://evil.example/a b",
    'http://evil.example/"onclick="x',
    "http://[::1",
    "null",
    "http://evil.example:99999",
    "ftp://evil.example",
    "x" * 3000,
    "java\tscript:alert(1)",
    "https://ok.example/?a=1&b=2",
    "ok.example",
    "a@b",
    "a@b@c.example",
    "mailto:a@b.example",
    "ann@example.com\nBcc: x@evil.example",
    "=?utf-8?q?x?=@evil.example",
    "ann@",
    "Ann <ann@example.com>",
    "ann@" + "x" * 300 + ".example",
    "ＡＮＮ@example.com",
    "ann@例子.中国",
    "ann@example.com, b@example.com",
    " OK@Example.com ",
]


@each
def test_an_import_loses_no_comment_for_an_odd_name_email_address_or_website(
    importer: Importer, product: str
) -> None:
    in_xml = product in products.XML
    words = [w for w in ODD_WORDS if not in_xml or not re.search("[\x00\x1b]", w)]
    thread = [
        ForeignComment(str(n), NOON + n, "", "/a/", f"{n}", w, w, w) for n, w in enumerate(words, 1)
    ]
    result = importer.import_file(MAKERS[product](thread))
    assert (result.code, result.counts) == (0, (len(words), len(words), 0, 0))
    found = {words[int(row["content"]) - 1]: row for row in importer.comments}
    for word, row in found.items():
        assert proper_nickname(row["nickname"]) == row["nickname"], word
        assert row["email"] == "" or proper_email(row["email"]) == row["email"], word
        assert row["website"] == "" or proper_website(row["website"]) == row["website"], word
        assert "evil" not in row["website"] + row["email"] or word.startswith("//"), word
        assert "script:" not in row["website"]
    assert found["n" * 300]["nickname"] == "n" * 64
    assert found["👩‍👩‍👧‍👦"]["nickname"] == "👩‍👩‍👧‍👦"
    assert found[" \u3164\u2800 "]["nickname"] == found["\u202e"]["nickname"] == "Anonymous"
    email = "" if product == "remark42" else "ok@example.com"
    assert found[" OK@Example.com "]["email"] == email
    website = "https://ok.example/?a=1&b=2"
    without = product in ("disqus", "remark42", "cusdis")
    assert found[website]["website"] == ("" if without else website)


@pytest.mark.slow
def test_an_import_keeps_a_long_comment_whole(importer: Importer, fake_world: FakeWorld) -> None:
    def long(size: int, sign: str = "x") -> str:
        return "**a** b_c\nlines " + sign * (size - 16)

    sizes = [long(n) for n in (10_000, 10_001, 65_536, 65_537, 300_000)] + [long(30_000, "长")]
    for product in ("waline", "isso", "wordpress", "twikoo"):
        importer.use_database(f"{product}.db")
        texts = dict(enumerate(sizes, 1))
        thread = [ForeignComment(str(n), NOON + n, text=text) for n, text in texts.items()]
        result = importer.import_file(MAKERS[product](thread))
        assert (result.code, result.counts) == (0, (6, 6, 0, 0))
        kept = {at - NOON: row["content"] for at, row in importer.comments_by_time.items()}
        assert all(len(text) <= 65536 for text in kept.values())
        assert "�" not in "".join(kept.values())
        with importer.served(fake_world) as visitor:
            listed = visitor.listing(url="/a/", sort="oldest")["comments"]
        shown = {number: comment["html"] for number, comment in enumerate(listed, 1)}
        if product in ("waline", "isso"):  # whose texts are Markdown
            assert kept == {n: t[:65536] for n, t in texts.items()}
            assert {*result.named("cut after")} == {"4", "5"}
            for number in (1, 2, 3, 6):
                assert shown[number] == safe_html(texts[number])
            exported = [row["html"] for row in importer.full_export()["comments"]]
            assert exported == ["", "", "", shown[4], shown[5], ""]
        for number in (4, 5):
            without_paragraphs = re.sub("</?p>", "", shown[number])
            text = html.unescape(without_paragraphs.replace("<br>", "\n"))
            assert text == kept[number]


@pytest.mark.slow
def test_an_import_skips_comments_without_text_unless_they_have_replies(importer: Importer) -> None:
    for product in MAKERS:
        importer.use_database(f"{product}.db")
        comments = [
            ForeignComment(str(n), NOON + n, text=t)
            for n, t in enumerate(["", " \n\t ", "\u200b"], 1)
        ]
        comments += [
            ForeignComment("7", NOON + 7, text="", email="a@example.com"),
            ForeignComment("8", NOON + 8, text="a"),
        ]
        result = importer.import_file(MAKERS[product](comments))
        assert (result.code, result.counts) == (0, (5, 1, 0, 4))
        assert len(result.named("no text")) == 4
        importer.import_file(
            MAKERS[product]([*comments, ForeignComment("9", NOON + 9, "7", text="b")])
        )
        gone = importer.comments_by_time[NOON + 7]
        assert (gone["status"], gone["nickname"], gone["email"]) == ("deleted", "", "")
        assert importer.comments_by_time[NOON + 9]["above"] == NOON + 7


# Pages and hosts


def test_an_import_takes_all_spellings_of_a_page_for_one(importer: Importer) -> None:
    spellings = [
        "/2024/%E4%BD%A0%E5%A5%BD",
        "/2024/%e4%bd%a0%e5%a5%bd/index.html",
        *(f"{host}/2024/你好/" for host in ("", "http://blog.example", "//BLOG.example")),
        "/2024/你好/?utm_source=feed&fbclid=7",
        "https://blog.example/2024/你好",
        "https://www.blog.example/2024/你好/#comments",
    ]
    thread = [ForeignComment(str(n), NOON + n, page=page) for n, page in enumerate(spellings, 1)]
    for product in MAKERS:
        importer.use_database(f"{product}.db")
        result = importer.import_file(MAKERS[product](thread))
        assert result.counts == (8, 8, 0, 0), product
        ((key, page),) = importer.pages.items()
        assert (key, len(importer.comments), result.number("pages")) == ("/2024/你好", 8, 1)
        assert "blog.example" not in page["page_url"].lower()


def test_an_import_adds_to_the_page_that_is_there(importer: Importer, visitor: Visitor) -> None:
    url = "https://blog.example/a/"
    visitor.say("of here", page_url=url, headers={"Origin": "https://blog.example"})
    before = importer.full_export()["pages"]
    importer.import_file(waline([ForeignComment("1", page="http://www.blog.example/a/index.html")]))
    assert importer.full_export()["pages"] == before
    assert sorted(importer.texts) == ["hi", "of here"]
    assert visitor.listing(url="/a")["total"] == visitor.listing(url="/a/")["total"] == 2


def test_an_imported_comment_never_has_the_number_of_one_that_is_gone(
    importer: Importer, app: App, visitor: Visitor, fake_world: FakeWorld
) -> None:
    """A link to that one would lead to it."""
    posted = visitor.say("hi")
    gone = posted["comment"]["id"]
    visitor.delete_json(f"/comments/{gone}", {"edit_token": posted["edit_token"]})
    fake_world.time += MINUTE
    app.tick()
    assert importer.comments == []
    importer.import_file(waline([ForeignComment("1")]))
    assert importer.only_comment()["id"] > gone


def test_an_import_skips_and_names_a_comment_without_a_page(importer: Importer) -> None:
    for product in ROWS:
        importer.use_database(f"{product}.db")
        pages: list[Any] = [None, "", "  ", {}, [], "/a\nb", "/" + "x" * 2048]
        rows = [ROWS[product](ForeignComment(f"a{n}", page=page)) for n, page in enumerate(pages)]
        longest = ROWS[product](ForeignComment("b", page="/" + "x" * 2047))
        result = importer.import_file(file_of(product, [*rows, longest]))
        assert result.counts == (8, 1, 0, 7)
        assert result.named("skipped: no page") == [f"a{n}" for n in range(7)]


HOSTS = [
    "https://blog.example/a/",
    "https://www.blog.example/a/",
    "http://localhost:4000/a/",
    "/a/",
]


def several_hosts() -> list[ForeignComment]:
    return [ForeignComment(str(n), NOON + n, page=page) for n, page in enumerate(HOSTS, 1)]


@each
def test_an_import_of_several_hosts_asks_for_one_of_them(importer: Importer, product: str) -> None:
    file = importer.file(MAKERS[product](several_hosts()))
    for words in ([], ["--host", "elsewhere.example"]):
        result = importer.import_file(file, *words)
        assert not importer.path.exists()
        assert "blog.example (2), localhost:4000 (1)" in result.failure
        assert words or "--host" in result.failure
    for host in ("blog.example", "www.blog.example", "BLOG.example"):
        result = importer.import_file(file, "--host", host, "--dry-run")
        assert (result.code, result.counts) == (0, (4, 3, 0, 1)), host
        (skipped,) = result.named("localhost")
        assert skipped.endswith("3")
    result = importer.import_file(file, "--host", "blog.example")
    assert (result.counts, [*importer.pages], len(importer.comments)) == ((4, 3, 0, 1), ["/a"], 3)


def test_an_import_takes_the_host_of_the_settings_by_itself(importer: Importer) -> None:
    importer.origins = "https://www.blog.example:8310 http://localhost:4000"
    importer.use_database("other.db")
    result = importer.import_file(
        waline([*several_hosts()[:3], ForeignComment("9", page="https://other.example/a/")])
    )
    assert (result.code, result.counts) == (0, (4, 2, 0, 2))
    assert [*result.named("localhost:4000"), *result.named("other.example")] == ["3", "9"]
    importer.origins = "http://localhost:4000"
    importer.use_database("preview.db")
    assert "localhost:4000 (1)" in importer.import_file(waline(several_hosts())).failure


def test_an_imported_page_is_opened_at_its_first_comment_or_else_now(importer: Importer) -> None:
    counters = [{"url": url, "time": 3} for url in ("/a/", "/b/")]
    importer.import_file(
        waline([ForeignComment("2", NOON + 5), ForeignComment("1", NOON)], Counter=counters)
    )
    opened = importer.rows("SELECT opened_at FROM page ORDER BY key")
    assert opened == [{"opened_at": NOON}, {"opened_at": START}]


def test_an_import_of_one_host_leaves_out_the_views_of_others(importer: Importer) -> None:
    urls = {"https://blog.example/a/": 3, "https://other.example/a/": 5}
    counters = [{"url": url, "time": views} for url, views in urls.items()]
    comments = [ForeignComment("1", page="https://blog.example/a/")]
    file = waline(comments, Counter=counters)
    assert importer.import_file(file, "--host", "blog.example").code == 0
    assert importer.pages["/a"]["views"] == 3


def test_an_import_refuses_a_host_that_the_file_does_not_name(importer: Importer) -> None:
    for product in ("isso", "commento", "waline", "artalk"):
        result = importer.import_file(MAKERS[product](blog()), "--host", "nope.example")
        assert "none has a name, so leave it out" in result.failure
    views = waline([], Counter=[{"url": page, "time": 3} for page in HOSTS])
    assert importer.import_file(views, "--host", "elsewhere.example").code == 1
    assert not importer.path.exists()
    result = importer.import_file(views, "--host", "blog.example")
    assert (result.code, importer.pages["/a"]["views"]) == (0, 9)
    assert not re.search("--zone|not carried", result.text)  # that is about comments


# Which files


def test_an_import_takes_the_named_format_over_the_detected_one(importer: Importer) -> None:
    rows = [waline_row(comment) for comment in blog()]
    data = file_of("valine", rows)
    assert importer.import_file(data, "--dry-run").text.startswith("waline: 12 ")
    assert importer.import_file(data, "--format", "valine", "--dry-run").text.startswith(
        "valine: 12 "
    )
    assert (
        importer.import_file("\n".join(map(json.dumps, rows)), "--format", "waline").counts[1] == 12
    )
    artalk = MAKERS["artalk"](
        [ForeignComment("1", NOON, text="comments of pages, projects and threads")]
    )
    assert importer.import_file(artalk, "--dry-run").text.startswith("artalk: 1 read")


@pytest.fixture
def folder_of_another_user() -> Iterator[Path]:
    """A folder of a user who is not root, who else could read all."""
    owner = 1234 if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        os.chown(name, owner, -1)
        yield Path(name)


@pytest.mark.slow
def test_an_import_by_root_heeds_the_rights_of_files(folder_of_another_user: Path) -> None:
    """One that must not be read is refused; the database that root makes belongs to the owner of
    the folder."""
    file = folder_of_another_user / "export.json"
    file.write_bytes(waline(blog()))
    file.chmod(0o200)
    assert (
        "export.json"
        in result_of(start_program(folder_of_another_user, "import", str(file))).errors
    )
    file.chmod(0o600)
    os.chown(file, folder_of_another_user.stat().st_uid, -1)
    assert result_of(start_program(folder_of_another_user, "import", str(file))).counts == (
        12,
        12,
        0,
        0,
    )
    assert {each.stat().st_uid for each in folder_of_another_user.iterdir()} == {
        folder_of_another_user.stat().st_uid
    }
    assert (folder_of_another_user / "commentd.db").stat().st_mode & 0o077 == 0
    site = folder_of_another_user / "site"
    site.mkdir()
    (site / "a.html").write_text("<commentd-thread></commentd-thread>")
    site.chmod(0o555)
    assert (
        "can't write here"
        in result_of(start_program(folder_of_another_user, "render", str(site), "--dry-run")).errors
    )


def test_an_import_reads_compressed_files_of_any_name(importer: Importer) -> None:
    for product, make in MAKERS.items():
        importer.use_database(f"{product}.db")
        file = importer.file(gzip.compress(make(blog())), "-strange name.txt")
        assert importer.import_file(file).counts == (12, 12, 0, 0)
    importer.use_database("waline.db")
    before, data, packed = importer.dump(), waline(blog()), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("../../Comment.0.jsonl", "/_User.0.jsonl", "notes"):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data if "Comment" in name else b"\0" * len(data)))
    result = importer.import_file(importer.file(packed.getvalue(), "x.tgz"), "--format", "waline")
    assert (result.code, result.counts) == (0, (12, 0, 12, 0))
    assert importer.dump() == before


# Beside the service


class Reader(threading.Thread):
    """Asks for lists until it is stopped; remembers what was answered."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service, self.stopping = service, False
        self.answers: list[Answer] = []

    def run(self) -> None:
        while not self.stopping:
            for target in ("/comments?url=/0/&view=threads", "/pages?url=/0/&url=/1/"):
                self.answers.append(self.service.ask("GET", target))


@pytest.mark.slow
def test_readers_and_writers_do_not_wait_for_an_import(tmp_path: Path) -> None:
    """Nor does it spoil anything where it is killed."""
    (tmp_path / "export").write_bytes(waline(blog(700)))
    with services(tmp_path) as start:
        service = start(notify={"owner": OWNER})
        process = start_program(tmp_path, "import", "export")
        until(lambda: count_in(service.path))
        process.kill()
        process.communicate()
        left = count_in(service.path)
        assert 0 < left < 700
        reader = Reader(service)
        reader.start()
        process = start_program(tmp_path, "import", "export")
        posted: list[int] = []
        while process.poll() is None:
            body = {**COMMENT, "page_url": "/0/", "content": f"meanwhile {len(posted)}"}
            answer = service.ask("POST", "/comments", body=body)
            assert answer.status == 200
            posted.append(answer.json["comment"]["id"])
        result = result_of(process)
        reader.stopping = True
        reader.join()
        assert (result.code, result.counts) == (0, (700, 700 - left, left, 0))
        assert {answer.status for answer in reader.answers} == {200}
        totals = [a.json["total"] for a in reader.answers if "total" in a.json]
        assert totals == sorted(totals)
        assert len({*totals}) > 2  # they saw it grow
        waiting = sum(s.status == "waiting" for s in blog(700) if s.page == "/0/")
        seen = service.ask("GET", "/comments?url=/0/").json["total"]
        assert (seen, count_in(service.path)) == (234 - waiting + len(posted), 700 + len(posted))
        assert not re.search(
            "fail +(counters|database)", result_of(start_program(tmp_path, "check")).text
        )
        assert "Traceback" not in service.output
    # An email of what was posted here, not of what was imported.
    assert service.output.count("Subject:") <= 1
    assert not re.search(r"\btext \d", service.output)


@pytest.mark.slow
def test_others_can_write_between_the_steps_of_an_import(
    importer: Importer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commentd, "IMPORT_STEP", 10)
    monkeypatch.setattr(commentd, "IMPORT_SECONDS", 0)
    importer.use_database("commentd.db", made=True)
    found = set[int]()
    ended = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(importer.path, PATIENCE, isolation_level=None)) as db:
            while not ended.wait(0.005):
                db.execute("BEGIN IMMEDIATE")
                found.add(db.execute("SELECT count(*) FROM comment").fetchone()[0])
                db.execute("COMMIT")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert importer.import_file(waline(blog(100))).counts == (100, 100, 0, 0)
    finally:
        ended.set()
        writer.join()
    # There are nine pauses. On a busy machine some of them pass unused.
    assert len(found & {*range(10, 100, 10)}) > 2


NOTIFYING = {"notify_owner": (OWNER,), "server_public_url": "https://comments.example"}


@pytest.mark.parametrize("settings", [{**NOTIFYING, "limits_enabled": False}])
def test_an_import_notifies_nobody(
    importer: Importer, app: App, ann: Visitor, fake_world: FakeWorld
) -> None:
    """Neither the owner, nor those who are answered: guests, and an account that wrote here."""
    posted = ann.say("here", page_url="/0/", nickname="")["comment"]
    app.deliver()
    fake_world.emails.clear()
    thread = [
        replace(s, at=START - HOUR + n, email=f"n{n % 4}@example.com" if n else "ann@example.com")
        for n, s in enumerate(blog())
    ]
    # It answers what was said here, which is in the file too: as in one that was made of ours.
    twin = ForeignComment("77", START, "", "/0/", "here", "Ann")
    importer.import_file(
        waline([*thread, twin, ForeignComment("78", START, "77", "/0/", "a reply", "Bob")])
    )
    (reply,) = (row for row in importer.comments if row["content"] == "a reply")
    assert reply["parent_id"] == posted["id"]
    for _ in range(30):
        fake_world.time += 10 * MINUTE
        app.tick()
        app.deliver()
    assert fake_world.emails == []
    Visitor(app).say("a new one", page_url="/0/", email="bob@example.com")
    fake_world.time += 10 * MINUTE
    app.deliver()
    (email,) = fake_world.emails  # so that it could have been told
    assert email.recipient == OWNER
    assert "a new one" in fake_world.text()
    assert "text " not in fake_world.text()


# Whose they are


def test_an_import_touches_no_account(
    importer: Importer, app: App, ann: Visitor, owner: Visitor
) -> None:
    ann.say("by an account", nickname="", page_url="/0/")
    Visitor(app, ip="198.51.100.9").say("by a guest", page_url="/0/", email="guest@example.com")
    before = importer.dump()
    admin = {"user_id": "1", "role": "admin", "type": "administrator"}
    people = zip(blog(), [OWNER, "ann@example.com", "guest@example.com"] * 4, strict=True)
    rows = [{**waline_row(replace(s, email=e)), **admin} for s, e in people]
    user = {"objectId": "1", "display_name": "Owner", "email": OWNER, "type": "administrator"}
    users = [user, {**user, "objectId": "2", "email": "new@example.com", "password": "x"}]
    assert importer.import_file(file_of("waline", rows, Users=users)).counts == (12, 12, 0, 0)
    after = importer.dump()
    for table in ("account", "registration", "subscription", "outbox", "notification", "block"):
        assert after[table] == before[table]
    listed = ann.listing(url="/0/", limit=100)["comments"]
    mine = [comment for comment in listed if comment["user_id"]]
    assert [comment["content"] for comment in mine] == ["by an account"]
    assert {comment["role"] for comment in listed if comment not in mine} == {""}
    assert "example.com" not in json.dumps(listed)
    assert ann.login()["token"]


@pytest.mark.parametrize("shown", [True, False])
def test_an_imported_comment_has_the_location_of_its_ip_address(
    importer: Importer, monkeypatch: pytest.MonkeyPatch, fake_world: FakeWorld, shown: bool
) -> None:
    monkeypatch.setenv("COMMENTD_PRIVACY_SHOW_LOCATION", "yes" if shown else "no")
    importer.import_file(waline([ForeignComment("1", ip="1.2.4.8")]))
    config = commentd.Config(
        database_path=str(importer.path), captcha_provider="none", privacy_show_location=shown
    )
    with closing(commentd.make_app(config, fake_world.world, rounds=1)) as app:
        written_here = Visitor(app, ip="1.2.4.8").say("of here", page_url="/a/")["comment"]
    assert bool(written_here["location"]) == shown
    assert importer.comments_by_time[NOON]["location"] == written_here["location"]


# How it works

PEAK = """
import pathlib, re, sys
import commentd
code = commentd.main(sys.argv[1:])
print("peak", re.search(r"VmHWM:\\s*(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
sys.exit(code)
"""


@pytest.mark.long
@pytest.mark.parametrize("product", ["wordpress", "isso"])  # JSON is read whole
def test_an_import_needs_less_than_two_kilobytes_of_memory_a_comment(
    tmp_path: Path, product: str
) -> None:
    """Of two hundred characters, which are kept as Markdown and as HTML."""
    peaks = []
    for count in (1000, 10_000):
        thread = [replace(comment, text=comment.text + " word" * 40) for comment in blog(count)]
        (tmp_path / "export").write_bytes(MAKERS[product](thread))
        done = subprocess.run(
            [sys.executable, "-c", PEAK, "import", "export", "--dry-run"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        # RUSAGE_SELF would have that of this process.
        peaks.append(int(done.stdout.split()[-1]))
    assert (peaks[1] - peaks[0]) * 1024 < 2048 * 9000, peaks


@pytest.mark.slow
def test_an_import_shows_progress_on_a_terminal_alone_and_reaches_its_end(
    importer: Importer,
) -> None:
    importer.file(MAKERS["twikoo"](blog(1100)))  # which is read line by line
    ours, theirs = pty.openpty()
    process = start_program(importer.folder, "import", "export", stdin=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
    os.close(ours)
    text, _ = process.communicate(timeout=PATIENCE)
    assert (process.returncode, " read, " in text) == (0, True)
    shown = seen.decode()
    for word in ("read", "imported"):
        assert re.search(rf"\r100 % {word}\r?\n", shown)
        numbers = [int(number) for number in re.findall(rf"\r(-?\d+) % {word}", shown)]
        assert numbers == sorted(numbers)
        assert 0 <= numbers[0] < 50 < numbers[-2] < numbers[-1] == 100
    result = result_of(start_program(importer.folder, "import", "export"))
    assert (result.code, result.errors, "%" in result.text) == (0, "", False)
