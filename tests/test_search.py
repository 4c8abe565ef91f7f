"""The search of comments at `/admin`, and the index behind it."""

import inspect
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import commentd
from commentd import App, Config, make_app
from support import inside
from support.admin import OWNER, ids, new_owner, queue
from support.client import Visitor
from support.commands import run_here
from support.database import assert_indexed, raw_bytes
from support.shared import shared_app
from support.world import FakeWorld

DAY = 86400
MANY = 2600  # more than a search reads without the index
FIRST = 1_600_000_000  # the time of the first of them: 2020-09-13, 20:26 in Shanghai
# What is searched for stands in the first comments, from number 1 on.
OLD = [
    {"comment": "龘龘飞龙在天", "nick": "陆知微", "url": "/龙/"},
    {"comment": "A dragon flies, said Ann’s dragonfly", "mail": "wyrm@example.net"},
    {"comment": "Дракон ЛЕТИТ", "link": "https://drachen.example/", "ip": "198.51.100.23"},
    {"comment": "Zu Straßburg auf der Schanz"},
    {"comment": '100% "quoted" snake_case [a-z]* 火'},
    {"comment": "🐉🦄🔥"},
    {"comment": "The end is\nnigh", "nick": "Zoë Ångström", "url": "/über/"},
]


def waline_file(count: int) -> str:
    records = [
        {
            "objectId": number,
            "nick": f"Reader {number % 7}",
            "comment": f"Nothing much, number {number}. 没什么可说的，第{number}条。",
            "url": f"/post-{number % 9}/",
            "mail": "",
            "insertedAt": commentd.time_of(FIRST + number * 3600).isoformat(),
        }
        | (OLD[number - 1] if number <= len(OLD) else {})
        for number in range(1, count + 1)
    ]
    return json.dumps({"type": "waline", "version": 1, "data": {"Comment": records}})


@pytest.fixture(scope="module")
def many_comments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database that an import has filled."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "old.json").write_text(waline_file(MANY))
    commentd.Store(folder / "commentd.db").close()
    code, _, errors = run_here(folder, "import", "old.json")
    assert code == 0, errors
    return folder / "commentd.db"


@pytest.fixture
def app(config: Config, fake_world: FakeWorld, many_comments: Path) -> Iterator[App]:
    path = Path(config.database_path)
    path.write_bytes(many_comments.read_bytes())
    with closing(make_app(config, fake_world.world, rounds=1)) as made:
        yield made
    assert_indexed(path)


@pytest.fixture
def owner(app: App) -> Visitor:
    return new_owner(app)


@pytest.fixture(scope="module")
def searching(tmp_path_factory: pytest.TempPathFactory, many_comments: Path) -> Iterator[Visitor]:
    """The owner where no comment changes, for all tests that only search."""
    folder = tmp_path_factory.mktemp("searched")
    with shared_app(folder, many_comments, FakeWorld()) as app:
        yield new_owner(app)
    assert_indexed(folder / "commentd.db")


def found(owner: Visitor, q: str = "", **query: object) -> list[int]:
    return ids(queue(owner, q=q, limit=100, **query))


FOUND = {
    "龘": [1],
    "龘龘": [1],
    "飞龙在": [1],
    "在天": [1],
    "飞": [1],
    "知微": [1],
    "/龙/": [1],
    "dragon": [2],
    "DragonFly": [2],
    "ragonfl": [2],
    "’s": [2],
    "wyrm@": [2],
    "дракон": [3],
    "лет": [3],
    "летит дракон": [3],
    "drachen.example": [3],
    "198.51.100": [3],
    "straß": [4],
    "ßb": [4],
    "_case": [5],
    '"quoted"': [5],
    "[a-z]*": [5],
    "00%": [5],
    "火": [5],
    "🦄": [6],
    "ånGstr": [7],
    "/Über": [7],
    "the end": [7],
    '"the end"': [7],
    "“the end” zoë": [7],
    "end the": [7],
    '"end the"': [],
    "nigh": [7],
    "is zoë": [7],
    "no such": [],
    "龙龘": [],
    f"number {MANY}.": [MANY],
}


def test_old_comments_are_found_by_all_that_stands_in_them(searching: Visitor) -> None:
    assert {words: found(searching, words) for words in FOUND} == FOUND
    assert len(found(searching, "没什么 readER")) == 100
    older = queue(searching, q="没什么", before=40, limit=100)
    assert ids(older) == list(range(39, len(OLD), -1))
    assert older["more"] is False


def test_each_comment_is_found_once(searching: Visitor) -> None:
    last_of_index = MANY - 2000  # the newest 2000 are read without it
    for number in range(last_of_index - 2, last_of_index + 4):
        assert found(searching, f"第{number}条") == [number]


# Signs that mean something to FTS5, SQL, JSON or a line, and what is hardly text at all.
STRANGE = [
    *('"', '""', '"""', "a\0bcd", "\0", "*", "abc*", "^abc", "-abc", "abc OR def", "NEAR(a b)"),
    *("text:abc", "{text}:abc", "(abc", "abc)", "'abc'", ":word_0", "?", "%", "\ufffe\U0010ffff"),
    *(
        "\u0301",
        "\u200b",
        "İİİ",
        "\r\n",
        "a\vb",
        "x" * 500,
        "a b c d e f g h i j k l",
        "1.2.3.4 ::1",
    ),
]


def test_a_search_for_anything_is_answered(searching: Visitor) -> None:
    for words in STRANGE:
        for name in ("q", "author", "page_name"):
            queue(searching, **{name: words})
    assert found(searching, "(") == found(searching, "NEAR(") == []


def test_a_search_reads_the_first_64_characters_of_an_author_and_200_of_a_page(
    app: App, owner: Visitor
) -> None:
    long = {"email": f"{'a' * 64}@example.net", "page_url": f"/{'p' * 199}/"}
    number = Visitor(app).say(**long)["comment"]["id"]
    for name, text in (("author", "a" * 64), ("page_name", f"/{'p' * 199}")):
        assert found(owner, **{name: text + "x"}) == [number]
        assert found(owner, **{name: "x" + text}) == []


@contextmanager
def without_fts5() -> Iterator[None]:
    """SQLite as hardly any machine has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commentd, "SEARCH_INDEX", commentd.SEARCH_INDEX.replace("fts5", "fts9"))
        patch.setattr(commentd, "can_index", inspect.unwrap(commentd.can_index))
        yield


def last_block_of_index(path: Path) -> int:
    """10 where the index is empty."""
    with closing(sqlite3.connect(path)) as db:
        [(last,)] = db.execute("SELECT max(id) FROM search_index_data")
    return int(last)


def test_without_fts5_searches_find_the_same_and_check_says_so(
    config: Config, app: App, fake_world: FakeWorld
) -> None:
    app.close()
    path = Path(config.database_path)
    with without_fts5():
        assert run_here(path.parent, "recount") == (0, "all counters were correct\n", "")
        assert last_block_of_index(path) > 10, "one command empties it"
        with closing(make_app(config, fake_world.world, rounds=1)) as other:
            owner = new_owner(other)
            assert {words: found(owner, words) for words in FOUND} == FOUND
            owner.patch_json("/admin/comments/1", {"content": "不见了"})
        _, text, _ = run_here(path.parent, "check")
        assert "this SQLite can't index comments (FTS5)" in text
        assert run_here(path.parent, "recount") == (0, "all counters were correct\n", "")
        assert last_block_of_index(path) == 10
    with closing(make_app(config, fake_world.world, rounds=1)) as again:
        owner = Visitor(again, ip="198.51.100.7")
        owner.authorization = ("Bearer", inside.token_of(again, OWNER, "admin"))
        assert (found(owner, "龘龘"), found(owner, "不见")) == ([], [1])
    assert "FTS5" not in run_here(path.parent, "check")[1]


def test_a_new_blog_needs_no_fts5(config: Config, fake_world: FakeWorld, tmp_path: Path) -> None:
    new = replace(config, database_path=str(tmp_path / "new.db"))
    with without_fts5(), closing(make_app(new, fake_world.world, rounds=1)) as app:
        number = Visitor(app).say("麒麟")["comment"]["id"]
        assert found(new_owner(app), "麒麟") == [number]


def test_an_edited_comment_is_found_by_its_new_text_alone(owner: Visitor) -> None:
    owner.patch_json("/admin/comments/1", {"content": "鱼在水里", "nickname": "Smaug"})
    assert [found(owner, words) for words in ("龘龘", "龘")] == [[], []]
    assert [found(owner, words) for words in ("鱼在", "鱼", "smaug")] == [[1], [1], [1]]


def test_comments_that_were_written_since_are_found_too(app: App, owner: Visitor) -> None:
    number = Visitor(app).say("麒麟 unicorn", nickname="Eve")["comment"]["id"]
    assert [found(owner, q) for q in ("麒麟", "unicorn", "eve")] == [[number]] * 3
    inside.add_new_comments(app, 600, "filler")
    assert [found(owner, q) for q in ("麒麟", "unicorn", "eve")] == [[number]] * 3


def holds(app: App, text: str) -> bool:
    """Whether any file of the database has a text."""
    # The index leaves out the beginning of a group that another one has too.
    return text.encode() in raw_bytes(Path(inside.database_path(app)))


def look_through_the_file(app: App, fake_world: FakeWorld) -> None:
    """The look of a day, until it is over."""
    fake_world.time += DAY
    for _ in range(20):
        app.tick()
        fake_world.time += 10


def test_an_erased_text_leaves_no_trace_in_the_index(
    app: App, owner: Visitor, fake_world: FakeWorld
) -> None:
    look_through_the_file(app, fake_world)
    owner.patch_json("/admin/comments/6", {"content": "tame animals"})
    assert found(owner, "🦄") == []
    app.tick()
    assert holds(app, "🦄🔥")
    look_through_the_file(app, fake_world)
    assert not holds(app, "🦄🔥")
    assert holds(app, "没什么")


def test_an_erased_text_leaves_no_trace_beside_a_large_index(
    app: App, fake_world: FakeWorld
) -> None:
    with closing(sqlite3.connect(inside.database_path(app))) as db, db:
        db.execute("UPDATE comment SET ip = '198.51.100.23'")
        db.execute("UPDATE comment SET location = hex(zeroblob(id % 7 * 100))")
        db.execute("UPDATE comment SET ip = ''")  # rows that moved have left copies
    assert holds(app, "198.51.100.23")
    look_through_the_file(app, fake_world)
    assert not holds(app, "198.51.100.23")


def test_comments_are_found_by_author_page_status_and_day(searching: Visitor) -> None:
    assert found(searching, author="知微") == found(searching, author="陆知微", q="飞龙") == [1]
    assert found(searching, author="WYRM@example") == [2]
    assert found(searching, author="dragon") == []
    assert found(searching, page_name="über") == [7]
    assert found(searching, page_name="/post", q="the end") == []
    assert found(searching, status="spam", q="dragon") == []
    # The first is of 21:26 in Shanghai, so that the fourth is of the next day.
    assert found(searching, until="2020-09-13") == [3, 2, 1]
    assert found(searching, since="2020-09-14", until="2020-09-14", q="Straßburg") == [4]
    assert found(searching, since="2020-09-14", until="2020-09-14")[-1] == 4
    assert len(found(searching, since="2020-09-14", until="2020-09-14")) == 24
    assert found(searching, since="2099-01-01") == []


@pytest.mark.parametrize("day", ["yesterday", "2020-13-01", "0001-01-01", "9999-12-31", "20-01-01"])
def test_a_day_that_is_none_is_refused(searching: Visitor, day: str) -> None:
    for name in ("since", "until"):
        assert queue(searching, 400, **{name: day})["code"] == f"{name}_invalid"


def test_recount_makes_the_index_anew(config: Config, app: App) -> None:
    path = Path(config.database_path)
    app.close()
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE comment SET content = 'from elsewhere' WHERE id = 1")
    with pytest.raises(AssertionError):
        assert_indexed(path)
    assert run_here(path.parent, "recount")[0] == 0
    assert_indexed(path)


def test_comments_that_another_program_has_changed_can_be_edited(app: App, owner: Visitor) -> None:
    with closing(sqlite3.connect(inside.database_path(app))) as db, db:
        db.execute("UPDATE comment SET content = hex(zeroblob(50000)) WHERE id < 9")
    for number in range(1, 9):
        owner.patch_json(f"/admin/comments/{number}", {"content": f"edited, {number}"})
    assert found(owner, "edited") == list(range(8, 0, -1))
