"""What comes in from Valine, Waline (on LeanCloud and elsewhere), Twikoo and Artalk: their files in
`moving/`, read whole and compared field by field; then each oddity that occurs, alone."""

import gzip
import io
import json
import re
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest
from conftest import Outside, Visitor, assert_whole, dump
from hypothesis import example, given
from hypothesis import strategies as st
from test_commands import run
from test_import_west import child

from commentd import Config, main, make_app, markdown_of, proper_nickname, safe_html

FILES = Path(__file__).parent / "moving"
KEPT = ("above", "status", "email", "website", "ip", "likes", "pinned")


def utc(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


@dataclass(frozen=True)
class Said:
    """A comment as it must be here. `above` is the nickname of what it answers."""

    nick: str
    html: str
    time: int
    page: str
    above: str = ""
    status: str = "visible"
    email: str = ""
    website: str = ""
    ip: str = ""
    likes: int = 0
    pinned: int = 0
    edited: int | None = None


class Desk:
    """A folder in which an owner works: `take` imports a file, and tells code and report."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        self.base = folder / "commentd.db"

    def take(self, what: Path | str | bytes, *words: str, code: int | None = 0) -> str:
        """What stands on stdout; the file may be given by what is in it."""
        if not isinstance(what, Path):
            file, what = self.folder / "export", what.encode() if isinstance(what, str) else what
            file.write_bytes(what)
            what = file
        self.capsys.readouterr()
        done = main(["import", str(what), *words])
        told = self.capsys.readouterr()
        self.errors = told.err
        assert code is None or done == code, told
        assert "Traceback" not in told.err
        if self.base.exists():
            assert_whole(str(self.base))
        return told.out

    def rows(self, sql: str) -> list[dict[str, Any]]:
        with closing(sqlite3.connect(self.base)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql)]

    def comments(self) -> list[Said]:
        found = self.rows(
            """SELECT c.*, page.page_url, page.key, CASE above.status WHEN 'deleted'
                      THEN '(gone)' ELSE coalesce(above.nickname, '') END AS above
                 FROM comment AS c JOIN page ON page.id = c.page_id
                 LEFT JOIN comment AS above ON above.id = c.parent_id ORDER BY c.id"""
        )
        return [
            Said(
                nick=row["nickname"],
                html=row["html"],
                time=row["created_at"],
                page=row["key"],
                edited=row["edited_at"],
                **{name: row[name] for name in KEPT},
            )
            for row in found
        ]

    def only(self) -> Said:
        (found,) = self.comments()
        return found

    def views(self) -> dict[str, int]:
        return {r["key"]: r["views"] for r in self.rows("SELECT key, views FROM page")}

    def raw(self) -> bytes:
        return b"".join(p.read_bytes() for p in self.folder.glob("commentd.db*"))


@pytest.fixture
def desk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Desk:
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path, capsys)


# Whole files

NOBODY = "Anonymous"
HELLO, ABOUT, CHINESE = "/2021/hello", "/about", "/posts/中文"
ANCHOR = 'rel="nofollow ugc noopener noreferrer"'
TOP = "第一！<strong>好文</strong>，<em>谢谢</em> 😀"

WHOLE: dict[str, list[Said]] = {
    "valine.json": [
        Said(
            "林小雨", f"<p>{TOP}</p>", utc("2021-01-15T14:03:20"), HELLO,
            email="xiaoyu@example.com", website="https://xiaoyu.example/", ip="203.0.113.0",
        ),
        Said(
            "Kim",
            "<p>@Tom &amp; Jerry , 代码：</p>"
            '<pre><code>if (a &lt; b) {\n  return "x";\n}\n</code></pre>'
            "<blockquote><p>一句<br>两句</p></blockquote>",
            utc("2021-01-15T15:00:00"), HELLO, "Tom & Jerry", ip="2001:db8:12::",
        ),
        Said(
            "Tom & Jerry", "<p>@林小雨 , 同意<br>1 &lt; 2 &amp;&amp; *星* _线_</p>",
            utc("2021-01-15T14:30:00"), HELLO, "林小雨",
            email="tom@example.com", website="http://tom.example/?a=1&b=2", ip="198.51.100.0",
        ),
        Said(
            "Ann",
            "<ul><li>一<ul><li>一之一</li><li>一之二</li></ul></li>"
            f'<li>二 <a href="https://a.example/x_y_z?q=1&amp;r=2" {ANCHOR}>链接</a></li></ul>'
            "<ol><li>甲</li><li>乙 <code>a_b</code></li></ol>",
            utc("2021-01-15T16:00:00"), HELLO, "林小雨", email="ann@example.com", ip="203.0.113.0",
        ),
        Said(
            "Bob", "<p>回复没了</p>", utc("2021-01-15T17:00:00"), HELLO,
            email="bob@example.com", ip="203.0.113.0",
        ),
        Said(
            "Spammer", f'<p>Buy <a href="https://casino.example/" {ANCHOR}>now</a></p>',
            utc("2021-01-16T01:00:00"), HELLO, status="spam",
            email="spam@example.net", website="https://casino.example/", ip="192.0.2.0",
        ),
        Said(
            NOBODY, f'<p><a href="https://img.example/cat.png" {ANCHOR}>猫</a> doge</p>',
            utc("2021-02-01T00:00:00"), ABOUT,
        ),
        Said("", "", utc("2021-02-02T00:00:00"), ABOUT, status="deleted"),
        Said("Lee", "<p>还在</p>", utc("2021-02-03T00:00:00"), ABOUT, "(gone)", ip="203.0.113.0"),
    ],
    "valine.jsonl": [
        Said(
            "阿橘", "<p>早安</p>", utc("2020-06-01T08:00:00"), CHINESE,
            email="ju@example.com", website="https://ju.example", ip="203.0.113.0",
        ),
        Said("Ray", "<p>同一页</p>", utc("2020-06-01T09:00:00"), CHINESE, ip="203.0.113.0"),
        Said("Mia", "<p>甲等乙</p>", utc("2020-06-02T10:00:00"), CHINESE),
        Said("Nia", "<p>乙等甲</p>", utc("2020-06-02T11:00:00"), CHINESE, "Mia"),
        Said(NOBODY, "<p>空空</p>", utc("2020-06-03T00:00:00"), CHINESE),
        Said(
            "Year One", "<p>无时</p>", utc("2020-06-01T08:00:00"), CHINESE, "阿橘",
            website="http://blog.example",
        ),
        Said("Anna", "<p>半个 ? 表情</p>", utc("2020-06-04T00:00:00"), CHINESE),
        Said("NoId", "<p>无号</p>", utc("2020-06-05T00:00:00"), CHINESE),
    ],
    "leancloud.jsonl": [
        Said(
            "旧人", "<p>Valine 时代 <strong>粗</strong></p>", utc("2020-03-01T00:00:00"), "/moved",
            email="jiu@example.com", ip="203.0.113.0",
        ),
        Said(
            "新人", "<p>@旧人: Waline 时代 <strong>粗</strong> doge</p>",
            utc("2022-03-01T00:00:00"), "/moved", "旧人", likes=4,
            email="xin@example.com", website="https://xin.example/", ip="203.0.113.0",
        ),
        Said(
            "站长",
            "<p>置顶 <code>a &lt; b</code><br>第二行</p>"
            '<pre><code>print("&lt;p&gt;")\n</code></pre>',
            utc("2022-03-03T00:00:00"), "/moved", pinned=1,
            email="owner@example.com", website="https://owner.example/", ip="203.0.113.0",
        ),
        Said("等", "<p>待审</p>", utc("2022-03-04T00:00:00"), "/moved", status="waiting",
             ip="203.0.113.0"),
        Said(
            "Spam", f'<p>垃圾 <a href="https://casino.example/" {ANCHOR}>https://casino.example/</a></p>',
            utc("2022-03-05T00:00:00"), "/moved", status="spam", ip="203.0.113.0",
        ),
        Said("Ampersand & Co", "<p>1 &lt; 2 &amp; 3 &gt; 2</p>", utc("2022-03-06T00:00:00"),
             "/moved", ip="203.0.113.0"),
    ],
    "waline.json": [
        Said(
            "小美", "<p>第一条 <strong>粗</strong> <em>斜</em> <del>删</del><br>换行 😀</p>",
            utc("2023-05-01T08:00:00"), "/w/one", likes=3,
            email="mei@example.com", website="https://mei.example/", ip="203.0.113.0",
        ),
        Said(
            "站长",
            "<p>@小美: 谢谢</p><blockquote><p>引用</p></blockquote>"
            "<ul><li>一</li><li>二</li></ul>",
            utc("2023-05-01T09:00:00"), "/w/one", "小美", likes=2,
            email="owner@example.com", website="https://owner.example/", ip="203.0.113.0",
        ),
        Said(
            "小美", "<p>@站长 , 三层 tada</p>", utc("2023-05-01T10:00:00"), "/w/one", "站长",
            email="mei@example.com", website="https://mei.example/", ip="203.0.113.0",
        ),
        Said(
            "站长",
            f'<p>置顶公告 <a href="https://blog.example/" {ANCHOR}>https://blog.example/</a></p>',
            utc("2023-04-01T00:00:00"), "/w/one", pinned=1,
            email="owner@example.com", website="https://owner.example/", ip="203.0.113.0",
        ),
        Said("等等", "<p>待审核</p>", utc("2023-05-03T00:00:00"), "/w/one", status="waiting",
             ip="203.0.113.0"),
        Said(
            "Casino", "<p>垃圾</p>", utc("2023-05-04T00:00:00"), "/w/one", status="spam",
            email="x@casino.example", website="https://casino.example/", ip="203.0.113.0",
        ),
        Said("Old", "<p>没有状态</p>", utc("2023-05-02T00:00:00"), "/w/two",
             ip="203.0.113.0"),
        Said("Valine", "<p>HTML from <em>Valine</em></p>", utc("2019-01-01T00:00:00"), "/w/two"),
        Said("Future", "<p>未来</p>", utc("2023-05-02T00:00:00"), "/w/two", "Old"),
    ],
    "twikoo.json": [
        Said(
            "夏目", "<p>前排 [doge]</p>", 1612422101, "/post/1", likes=2,
            email="natsume@example.com", website="https://natsume.example/", ip="125.79.130.0",
        ),
        Said(
            "博主", f'<p>置顶 <del>旧</del> <a href="https://a.example/" {ANCHOR}>链接</a></p>',
            1612500000, "/post/1", likes=3, pinned=1,
            email="owner@example.com", website="https://blog.example/", ip="101.33.122.0",
        ),
        Said("AKERS", "<p>三层</p>", 1612700000, "/post/1", "寒星", likes=1, ip="101.33.122.0"),
        Said(
            "寒星", '<p>二层</p><pre><code>echo "$HOME" &amp;&amp; ls\n</code></pre>',
            1612600000, "/post/1", "夏目", ip="125.79.130.0",
            email="hx@example.com", website="http://www.hx.example",
        ),
        Said("可疑", "<p>等审核</p>", 1612800000, "/post/1", status="waiting", ip="192.0.2.0"),
        Said(NOBODY, "<p>只有 href</p>", 1612900000, "/post/2"),
    ],
    "twikoo.jsonl": [
        Said(
            "inkss", "<p>云开发</p>", 1618065349, "/cb", likes=1, pinned=1,
            email="ink@example.com", website="https://inkss.example/", ip="125.79.130.0",
        ),
        Said("Wait", "<p>布尔是文字</p>", 1618065350, "/cb", status="waiting"),
        Said("Reply", "<p>回 坏</p>", 1618065351, "/cb", "inkss"),
        Said("Date", "<p>日期</p>", 1618065353, "/cb"),
        Said("Zero", "<p>零时</p>", 1618065349, "/cb", "inkss"),
    ],
    "artalk.json": [
        Said(
            "qwq", "<p>你好 <strong>Artalk</strong><br>第二行 😀</p>",
            utc("2021-10-28T12:50:15"), "/artalk", likes=6, pinned=1,
            email="qwq@example.com", website="https://qwq.example/", ip="203.0.113.0",
        ),
        Said("Deep", "<p>三层 <code>a &lt; b</code></p>", utc("2021-10-28T15:00:00"), "/artalk",
             "Two", email="deep@example.com", ip="203.0.113.0"),
        Said("Two", "<p>二层 ok</p>", utc("2021-10-28T14:00:00"), "/artalk", "qwq", likes=1,
             website="http://two.example", ip="203.0.113.0"),
        Said("Pending", "<p>待审</p>", utc("2021-10-29T05:00:00"), "/artalk", status="waiting"),
        Said("Closed", "<p>只许管理员</p>", utc("2021-10-29T16:00:00"), "/closed"),
        Said("Orphan", "<p>孤儿</p>", utc("2021-10-29T16:00:00"), "/closed"),
        Said("Typecho", "<p>Artransfer 的 <strong>HTML</strong></p>", utc("2021-02-04T06:49:46"),
             "/artalk", email="typecho@example.com", website="http://typecho.example",
             ip="127.0.0.0"),
        Said("Mongo", "<p>真布尔</p>", utc("2021-04-10T14:35:49"), "/artalk", "Typecho",
             status="waiting", likes=2),
    ],
}  # fmt: skip

each_file = pytest.mark.parametrize("name", WHOLE)


def plain(html: str) -> str:
    """HTML without what its Markdown may be spelled with: line ends between tags."""
    kept = re.split(r"(<pre>.*?</pre>)", html, flags=re.S)
    return "".join(k if k.startswith("<pre>") else re.sub(r"\s*\n\s*", "", k) for k in kept)


def in_order(found: list[Said]) -> list[Said]:
    return sorted((replace(f, html=plain(f.html)) for f in found), key=str)


@each_file
def test_a_file_comes_in_whole(desk: Desk, name: str) -> None:
    desk.take(FILES / name)
    assert in_order(desk.comments()) == in_order(WHOLE[name])


@each_file
def test_readers_see_its_threads(desk: Desk, outside: Outside, name: str) -> None:
    desk.take(FILES / name)
    app = make_app(Config(database_path=str(desk.base)), outside.world, rounds=1)
    with closing(app):
        visitor, said = Visitor(app), WHOLE[name]
        for page in {one.page for one in said}:
            here = [one for one in said if one.page == page]
            listing = visitor.listing(url=page, view="threads", sort="oldest", limit=100)
            shown = {(c["nickname"], c["created_at"]) for c in whole(listing)}
            visible = [one for one in here if one.status == "visible"]
            assert listing["total"] == len(visible)
            assert shown - {("", "")} >= {(one.nick, beijing(one.time)) for one in visible}
            tops = [c["nickname"] for c in listing["comments"] if not c["pinned"]]
            expected = sorted((one for one in here if not one.above), key=lambda one: one.time)
            assert [
                one.nick for one in expected if one.status in ("visible", "deleted")
                if not one.pinned
            ] == tops  # fmt: skip


def whole(listing: Any) -> list[Any]:
    return [one for top in listing["comments"] for one in (top, *top["replies"])]


def beijing(seconds: int) -> str:
    return str(datetime.fromtimestamp(seconds + 8 * 3600, UTC))[:19]


def test_the_report_names_what_is_not_as_it_was(desk: Desk) -> None:
    told = desk.take(FILES / "valine.json") + desk.take(FILES / "valine.jsonl")
    assert told.splitlines() == [
        "valine: 11 comments read, 9 new, 0 already here, 2 skipped",
        "    skipped: no page: 6001a00000000000000000ab",
        "  1 stand at the top, since what they answer is not in the file: 6001a00000000000000000a5",
        "    skipped: deleted, or no text: 6001a00000000000000000aa",
        "  new: 7 visible, 1 spam, 1 deleted",
        "  2 pages, 2 of them new",
        "  not carried: user agents",
        "valine: 9 comments read, 8 new, 0 already here, 1 skipped",
        "    skipped: it can't be read: line 6",
        "  1 without a time that can be: 5ed4b00000000000000000b6",
        "  1 stand at the top, since they answer each other: 5ed4b00000000000000000b3",
        "  new: 8 visible",
        "  1 pages, 1 of them new",
        "  not carried: user agents",
    ]


@each_file
def test_a_second_import_changes_nothing(desk: Desk, name: str) -> None:
    first = desk.take(FILES / name)
    before, count = dump(str(desk.base)), len(WHOLE[name])
    assert f"{count} new, 0 already here" in first
    again = desk.take(FILES / name)
    assert f"0 new, {count} already here" in again
    assert dump(str(desk.base)) == before


@each_file
def test_a_dry_run_reports_the_same_and_writes_nothing(desk: Desk, name: str) -> None:
    dry = desk.take(FILES / name, "--dry-run")
    assert not desk.base.exists() or not desk.comments()
    assert dry == desk.take(FILES / name) + "this was a dry run: nothing is written\n"
    before = dump(str(desk.base))
    desk.take(FILES / name, "--dry-run")
    assert dump(str(desk.base)) == before


@each_file
def test_secrets_of_the_source_stay_out(desk: Desk, name: str) -> None:
    assert b"SECRET" in (FILES / name).read_bytes()
    desk.take(FILES / name)
    assert b"SECRET" not in desk.raw()
    for address in (b"203.0.113.77", b"2001:db8:12:34", b"125.79.130.10", b"101.33.122.89"):
        assert address not in desk.raw()


@pytest.mark.parametrize("name", ["valine.json", "twikoo.json"])
def test_the_html_is_kept_as_it_was(desk: Desk, name: str) -> None:
    desk.take(FILES / name)
    assert b'<img class="' in desk.raw()


def test_all_files_stand_side_by_side(desk: Desk) -> None:
    for name in WHOLE:
        desk.take(FILES / name)
    assert in_order(desk.comments()) == in_order([one for said in WHOLE.values() for one in said])


@pytest.mark.slow
def test_the_program_does_it_from_the_command_line(tmp_path: Path) -> None:
    code, told, errors = run(tmp_path, "import", str(FILES / "waline.json"))
    assert (code, errors) == (0, "")
    assert told.startswith("waline: 10 comments read, 9 new, 0 already here, 1 skipped\n")
    code, told, errors = run(tmp_path, "import", str(FILES / "waline.json"), "--dry-run")
    assert (code, errors) == (0, "")
    assert told.splitlines()[0] == "waline: 10 comments read, 0 new, 9 already here, 1 skipped"
    assert told.splitlines()[-1] == "this was a dry run: nothing is written"


def test_each_page_that_was_for_admins_only_is_closed(desk: Desk) -> None:
    desk.take(FILES / "artalk.json")
    closed = {r["key"]: r["closed"] for r in desk.rows("SELECT key, closed FROM page")}
    assert closed == {"/artalk": 0, "/closed": 1}


# Views


def test_views_come_from_a_file_of_their_own(desk: Desk) -> None:
    desk.take(FILES / "counter.jsonl")
    assert desk.views() == {"/2021/hello": 123, "/posts/中文": 45, "/seen-only": 7}


def test_views_of_twikoo_come_from_a_file_of_their_own(desk: Desk) -> None:
    desk.take(FILES / "twikoo_counter.json")
    assert desk.views() == {"/post/1": 320, "/post/2": 15}


def test_views_of_waline_come_with_its_comments(desk: Desk) -> None:
    told = desk.take(FILES / "waline.json")
    assert desk.views() == {"/w/one": 42, "/w/two": 8, "/w/seen": 11}
    assert re.search(r"^  not carried: .*reactions", told, re.M)


@pytest.mark.parametrize("name", ["counter.jsonl", "twikoo_counter.json"])
def test_views_are_added_once(desk: Desk, name: str) -> None:
    desk.take(FILES / name)
    before = dump(str(desk.base))
    desk.take(FILES / name)
    assert dump(str(desk.base)) == before


@pytest.mark.parametrize(("here", "then"), [(5, 123), (500, 500)])
def test_views_that_are_here_never_fall(desk: Desk, here: int, then: int) -> None:
    desk.take(FILES / "valine.json")
    with closing(sqlite3.connect(desk.base, isolation_level=None)) as db:
        db.execute("UPDATE page SET views = ? WHERE key = '/2021/hello'", (here,))
    desk.take(FILES / "counter.jsonl")
    assert desk.views()["/2021/hello"] == then


# Oddities, each by itself

NAMES = {
    "valine": "objectId nick mail link comment url pid insertedAt",
    "waline": "objectId nick mail link comment url pid insertedAt",
    "twikoo": "_id nick mail link comment url pid created",
    "artalk": "id nick email link content page_key rid created_at",
}
PARTS = ["id", "nick", "email", "website", "text", "page", "above", "time"]
DAWN = "2021-05-01T00:00:00.000Z"

each_product = pytest.mark.parametrize("product", NAMES)
Row = dict[str, Any]


def row(product: str, id: Any, text: Any = "文", **said: Any) -> Row:
    """A row as that product writes it; `said` goes by the names in PARTS, others stay."""
    names = dict(zip(PARTS, NAMES[product].split(), strict=True))
    usual = {"id": id, "text": text, "nick": f"nick {id}", "page": "/odd/", "time": DAWN}
    if product == "waline":
        usual["status"] = "approved"
    return {names.get(part, part): value for part, value in (usual | said).items()}


def file_of(product: str, rows: list[Any]) -> str:
    if product == "valine":
        return json.dumps({"results": rows})
    if product == "waline":
        data = {"Comment": rows, "Counter": [], "Users": []}
        return json.dumps({"type": "waline", "version": 1, "tables": list(data), "data": data})
    return json.dumps(rows)


def each_of(desk: Desk, product: str, part: str, values: list[Any]) -> list[Said]:
    """A comment for each value of that part, in their order, each on a page of its own."""
    pages = [f"/each/{n}" for n in range(len(values))]
    rows = [
        row(product, **{"id": f"a{n}", "page": page, part: value})
        for n, (page, value) in enumerate(zip(pages, values, strict=True))
    ]
    desk.take(file_of(product, rows))
    found = {one.page: one for one in desk.comments()}
    assert len(found) == len(values)
    return [found[page] for page in pages]


def answers(found: list[Said]) -> dict[str, str]:
    return {one.nick.removeprefix("nick "): one.above.removeprefix("nick ") for one in found}


@each_product
def test_answers_may_stand_before_what_they_answer(desk: Desk, product: str) -> None:
    rows = [row(product, f"a{n}", above=f"a{n - 1}") for n in (4, 3, 2)] + [row(product, "a1")]
    desk.take(file_of(product, rows))
    assert answers(desk.comments()) == {"a1": "", "a2": "a1", "a3": "a2", "a4": "a3"}


@each_product
def test_what_answers_an_unknown_comment_stands_at_the_top(desk: Desk, product: str) -> None:
    rows = [row(product, "a1", above="lost"), row(product, "a2", above="a1")]
    told = desk.take(file_of(product, rows))
    assert answers(desk.comments()) == {"a1": "", "a2": "a1"}
    assert re.search(r"^  1 stand.* at the top, .*: a1$", told, re.M)


@pytest.mark.parametrize("above", ["lost", None, ""])
@pytest.mark.parametrize("product", ["valine", "waline", "twikoo"])
def test_an_answer_to_what_is_gone_stays_in_its_thread(
    desk: Desk, product: str, above: str | None
) -> None:
    rows = [row(product, "a2", above=above, rid="a1"), row(product, "a1")]
    desk.take(file_of(product, rows))
    assert answers(desk.comments()) == {"a1": "", "a2": "a1"}


@each_product
@pytest.mark.parametrize("none", [None, "", "0", 0, {}, []])
def test_what_answers_nothing_stands_at_the_top(desk: Desk, product: str, none: Any) -> None:
    told = desk.take(file_of(product, [row(product, "a1", above=none)]))
    assert desk.only().above == ""
    assert "at the top" not in told


@each_product
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_circle_of_answers_is_cut(desk: Desk, product: str, size: int) -> None:
    rows = [row(product, f"a{n}", above=f"a{(n + 1) % size}") for n in range(size)]
    rows.append(row(product, "tail", above="a0"))
    desk.take(file_of(product, rows))
    found = answers(desk.comments())
    assert len(found) == size + 1
    assert found["tail"] == "a0"
    for one in found:  # each leads to the top
        steps = 0
        while one and steps <= size + 1:
            one, steps = found[one], steps + 1
        assert not one
    assert sum(not above for above in found.values()) == 1  # cut at one place


@each_product
def test_an_answer_on_another_page_stands_at_the_top_of_its_own(desk: Desk, product: str) -> None:
    rows = [row(product, "a1", page="/one/"), row(product, "a2", page="/two/", above="a1")]
    told = desk.take(file_of(product, rows))
    assert [(one.page, one.above) for one in desk.comments()] == [("/one", ""), ("/two", "")]
    assert re.search(r"^  1 stand.* at the top, .*: a2$", told, re.M)


@each_product
def test_a_page_in_many_spellings_is_one(desk: Desk, product: str) -> None:
    spellings = ["/中/文/", "/中/文", "/%E4%B8%AD/%e6%96%87/index.html", "/中/文/?utm_source=x"]
    rows = [row(product, f"a{n}", page=page) for n, page in enumerate(spellings)]
    told = desk.take(file_of(product, rows))
    assert {one.page for one in desk.comments()} == {"/中/文"}
    assert re.search(r"^  1 pages?, 1 of them new$", told, re.M)


@each_product
@pytest.mark.parametrize("page", [None, "", "  ", {}, [], "/a\nb", "/" + "x" * 3000])
def test_a_comment_of_no_page_is_skipped_and_named(desk: Desk, product: str, page: Any) -> None:
    told = desk.take(file_of(product, [row(product, "a1", page=page), row(product, "a2")]))
    assert desk.only().nick == "nick a2"
    assert re.search(r"^    skipped: no page: a1$", told, re.M)


EMPTY = [None, "", " \n\t", "\u200b", "\u3000", "<p></p>", "<p> <br>&nbsp;</p>\n", {}, []]


@each_product
def test_empty_comments_are_skipped_and_named(desk: Desk, product: str) -> None:
    rows = [row(product, f"a{n}", text) for n, text in enumerate(EMPTY)]
    told = desk.take(file_of(product, [*rows, row(product, "b")]))
    assert desk.only().nick == "nick b"
    assert re.search(r"^    skipped: deleted, or no text: a0, a1, a2, ", told, re.M)
    assert f" 1 new, 0 already here, {len(EMPTY)} skipped\n" in told


@each_product
def test_an_empty_comment_with_an_answer_holds_its_place(desk: Desk, product: str) -> None:
    rows = [row(product, "a2", above="a1"), row(product, "a1", "", email="a@example.com")]
    desk.take(file_of(product, rows))
    gone, answer = sorted(desk.comments(), key=lambda one: one.status)
    assert (gone.status, gone.nick, gone.email, gone.html) == ("deleted", "", "", "")
    assert answer.status == "visible"
    (link,) = desk.rows("SELECT a.id FROM comment a JOIN comment b ON b.id = a.parent_id")
    assert link


@each_product
def test_empty_answers_hold_no_place(desk: Desk, product: str) -> None:
    rows = [row(product, f"a{n}", "", above=f"a{n - 1}") for n in range(4)]
    desk.take(file_of(product, [*rows, row(product, "b")]))
    assert desk.only().nick == "nick b"


WEBSITES = {
    "https://a.example/": "https://a.example/", " http://a.example ": "http://a.example",
    "blog.example": "http://blog.example", "www.b.example/x?y=1": "http://www.b.example/x?y=1",
    "javascript:alert(1)": "", "JaVaScRiPt:alert(1)": "", "java\tscript:alert(1)": "",
    "data:text/html,<script>": "", "vbscript:x": "", "https://": "", "https://u:p@a.example/": "",
    "mailto:a@example.com": "", 'https://a.example/"><script>': "", "没有": "",
    "ftp://a.example": "",
    "https://a.example/x y": "", "#": "", "/about/": "", "": "", None: "", 7: "", True: "",
}  # fmt: skip


@each_product
def test_a_website_is_an_address_or_nothing(desk: Desk, product: str) -> None:
    found = each_of(desk, product, "website", [*WEBSITES, {}, []])
    assert [one.website for one in found] == [*WEBSITES.values(), "", ""]


EMAILS = {
    " Ann@Example.com ": "ann@example.com", "ann": "", "a@b": "",
    "a@example.com\nBcc: b@c.example": "",
    '"a b"@example.com': "", "安@example.com": "", None: "", 7: "", "a" * 300 + "@example.com": "",
}  # fmt: skip


@each_product
def test_an_email_is_an_address_or_nothing(desk: Desk, product: str) -> None:
    found = each_of(desk, product, "email", [*EMAILS, {}, []])
    assert [one.email for one in found] == [*EMAILS.values(), "", ""]


NICKNAMES = {
    "小雨 😀": "小雨 😀", "  Ann  ": "Ann", "👨\u200d👩\u200d👧": "👨\u200d👩\u200d👧",
    "A\u0301nn": "Ánn", "An\x00n\x07": "Ann", "Eve\u202egnirts\u202c": "Evegnirts",
    "Ze\u200bro": "Zero", "x" * 300: "x" * 64, "雨" * 300: "雨" * 64, "😀" * 300: None,
    "x" + "\u0301\u0302\u0303\u0304\u0305": None, "半\ud83d": None, "<b>Ann</b>": "<b>Ann</b>",
    12345: "12345", "": NOBODY, "   ": NOBODY, None: NOBODY, "\u200b\u2060": NOBODY,
    "\u202e": NOBODY, "  \u3164 ": NOBODY,
}  # fmt: skip


@each_product
def test_a_nickname_is_made_one(desk: Desk, product: str) -> None:
    found = [one.nick for one in each_of(desk, product, "nick", [*NICKNAMES, {}, []])]
    assert [proper_nickname(nick) for nick in found] == found
    wanted = [*NICKNAMES.values(), NOBODY, NOBODY]
    assert [w and nick for nick, w in zip(found, wanted, strict=True)] == wanted
    assert all(len(nick) > 1 for nick in found)


def test_names_and_websites_of_valine_are_unescaped_once(desk: Desk) -> None:
    said = {
        "nick": "A &amp;amp; &lt;b&gt; &#39;&quot;&#x60;&#x5c;",
        "website": "https://a.example/?x&amp;y",
    }
    desk.take(file_of("valine", [row("valine", "a1", **said)]))
    assert (desk.only().nick, desk.only().website) == (
        "A &amp; <b> '\"`\\",
        "https://a.example/?x&y",
    )


@pytest.mark.parametrize("product", ["waline", "twikoo", "artalk"])
def test_names_of_others_are_no_html(desk: Desk, product: str) -> None:
    desk.take(file_of(product, [row(product, "a1", nick="A &amp; B")]))
    assert desk.only().nick == "A &amp; B"


@each_product
@pytest.mark.parametrize("none", [None, {}, []])
def test_nothing_but_text_and_page_is_enough(desk: Desk, product: str, none: Any) -> None:
    others = "nick email website above ip ua like likes ups downs top sticky status isSpam rid"
    others += " is_pending is_pinned vote_up vote_down page_title page_admin_only user_id href"
    others += " updated updatedAt updated_at createdAt site_name site_urls master mailMd5 avatar"
    said = dict.fromkeys(others.split(), none)
    if product == "artalk":
        del said["rid"]
    desk.take(file_of(product, [row(product, "a1", "文", **said)]))
    assert desk.only() == replace(BARE, time=utc("2021-05-01"), html=desk.only().html)
    assert plain(desk.only().html) == "<p>文</p>"


BARE = Said(NOBODY, "", 0, "/odd")


@each_product
def test_a_bad_row_in_the_middle_is_skipped_and_counted(desk: Desk, product: str) -> None:
    bad = ["x", 42, None, [], True, {}, [row(product, "in")], 1.5]
    rows = [row(product, "a1"), *bad, row(product, "a2", above="a1")]
    told = desk.take(file_of(product, rows))
    assert answers(desk.comments()) == {"a1": "", "a2": "a1"}
    assert told.startswith(f"{product}: 10 comments read, 2 new, 0 already here, 8 skipped\n")


@each_product
@pytest.mark.parametrize("value", [7, 1.5, True, {"a": 1}, ["x"], "\x00", "1e999", -1])
def test_a_value_of_another_type_loses_no_other_comment(
    desk: Desk, product: str, value: Any
) -> None:
    parts = [*PARTS, "ip", "ua", "like", "ups", "downs", "top", "sticky", "isSpam", "status"]
    file = file_of(product, [
        row(product, f"a{n}") | row(product, **{"id": f"a{n}"} | {part: value})
        for n, part in enumerate(parts)
    ] + [row(product, "last")])  # fmt: skip
    for _ in range(2):
        desk.take(file)
        assert [one.nick for one in desk.comments()].count("nick last") == 1


@each_product
def test_an_id_is_the_same_as_number_and_as_text(desk: Desk, product: str) -> None:
    rows = [row(product, 1), row(product, "2", above="1"), row(product, 3, above=2)]
    desk.take(file_of(product, rows))
    assert answers(desk.comments()) == {"1": "", "2": "1", "3": "2"}
    rows = [row(product, "1"), row(product, 2, above=1), row(product, "3", above="2")]
    assert "0 new, 3 already here" in desk.take(file_of(product, rows))


@each_product
def test_rows_without_an_id_come_in_once(desk: Desk, product: str) -> None:
    rows = [row(product, None, "甲"), row(product, "", "乙"), row(product, None, "甲", nick="B")]
    desk.take(file_of(product, rows))
    assert len(desk.comments()) == 3
    assert "0 new, 3 already here" in desk.take(file_of(product, rows))


@each_product
def test_a_row_that_stands_twice_comes_in_once(desk: Desk, product: str) -> None:
    desk.take(file_of(product, [row(product, "a1"), row(product, "a1"), row(product, "a2")]))
    assert answers(desk.comments()) == {"a1": "", "a2": ""}


@each_product
def test_more_of_the_same_comes_in_later(desk: Desk, product: str) -> None:
    first = [row(product, "a1"), row(product, "a3", above="a2")]
    desk.take(file_of(product, first))
    told = desk.take(file_of(product, [*first, row(product, "a2", above="a1")]))
    assert "1 new, 2 already here" in told
    assert answers(desk.comments())["a2"] == "a1"


@each_product
@pytest.mark.parametrize("status", ["waiting", "spam", "deleted"])
def test_what_was_judged_here_stays_judged(desk: Desk, product: str, status: str) -> None:
    file = file_of(product, [row(product, "a1"), row(product, "a2")])
    desk.take(file)
    with closing(make_app(Config(database_path=str(desk.base)))) as app:
        store = app.house.store
        with store.writing():
            store.judge(1, status, utc("2026-01-01"))
    before = dump(str(desk.base))
    assert "0 new, 2 already here" in desk.take(file)
    assert dump(str(desk.base)) == before


# Times

SHAPES = [
    "2021-05-01T12:00:00Z", "2021-05-01T12:00:00.000Z", "2021-05-01T12:00:00.123456Z",
    "2021-05-01T20:00:00+08:00", "2021-05-01T20:00:00+0800", "2021-05-01 20:00:00 +0800",
    "2021-05-01T07:00:00-05:00", "2021-05-01 07:00:00 -0500", " 2021-05-01T12:00:00Z ",
    1619870400000, 1619870400000.0, "1619870400000", {"$numberLong": "1619870400000"},
    {"$numberLong": 1619870400000}, {"$date": "2021-05-01T12:00:00Z"},
    {"$date": {"$numberLong": "1619870400000"}}, {"$date": 1619870400000},
    {"__type": "Date", "iso": "2021-05-01T12:00:00.000Z"},
]  # fmt: skip
NONSENSE = [
    "", "0000-00-00 00:00:00", "0001-01-01T00:00:00Z", "yesterday", "2999-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", -1, 0, 1e300, "1e999", True, None, {}, [], {"iso": None}, {"$date": {}},
    {"$numberLong": "many"}, {"__type": "Date"}, "2021-13-45T99:99:99Z", "9" * 400,
    "99999-01-01T00:00:00Z", "-0001-01-01T00:00:00Z", 10**30,
]  # fmt: skip


@each_product
def test_a_time_may_be_written_in_many_ways(desk: Desk, product: str) -> None:
    found = each_of(desk, product, "time", SHAPES)
    assert [one.time for one in found] == [utc("2021-05-01T12:00:00")] * len(SHAPES)


@each_product
def test_a_time_that_cannot_be_becomes_that_of_what_is_answered(desk: Desk, product: str) -> None:
    rows = [row(product, f"a{n}", above="top", time=time) for n, time in enumerate(NONSENSE)]
    rows += [row(product, "top"), row(product, "old", time="2001-01-01T00:00:00Z")]
    told = desk.take(file_of(product, rows))
    times = {one.nick: one.time for one in desk.comments() if one.nick != "nick old"}
    assert set(times.values()) == {utc("2021-05-01")}
    assert len(times) == len(NONSENSE) + 1
    assert re.search(rf"^  {len(NONSENSE)} without a time that can be: a0, a1, ", told, re.M)


@each_product
def test_a_time_that_cannot_be_becomes_that_of_the_page(desk: Desk, product: str) -> None:
    rows = [row(product, "a1"), row(product, "a2", time="nonsense"), row(product, "a3")]
    desk.take(file_of(product, rows))
    assert {one.time for one in desk.comments()} == {utc("2021-05-01")}


@each_product
def test_without_any_time_it_is_the_day_of_the_import(desk: Desk, product: str) -> None:
    file, before = file_of(product, [row(product, "a1", time=None)]), datetime.now(UTC).timestamp()
    desk.take(file)
    day = 86400
    assert before - day <= desk.only().time <= datetime.now(UTC).timestamp()
    kept = dump(str(desk.base))
    desk.take(file)
    assert dump(str(desk.base)) == kept


BARE_TIME = "2021-05-01 20:00:00"


@pytest.mark.parametrize(
    ("product", "words", "hour"),
    [("waline", [], 12), ("waline", ["--zone", "+00:00"], 20), ("waline", ["--zone=-05:00"], 25)],
)
def test_a_time_without_a_zone_is_of_the_zone_that_is_named(
    desk: Desk, product: str, words: list[str], hour: int
) -> None:
    rows = [row(product, "a1", time=BARE_TIME), row(product, "a2", time="2021-05-01T12:00:00Z")]
    desk.take(file_of(product, rows), *words)
    assert [one.time for one in sorted(desk.comments(), key=lambda one: one.nick)] == [
        utc("2021-05-01") + hour * 3600, utc("2021-05-01T12:00:00"),
    ]  # fmt: skip


def test_another_zone_doubles_nothing(desk: Desk) -> None:
    file = file_of("waline", [row("waline", "a1", time=BARE_TIME)])
    desk.take(file)
    desk.take(file, "--zone", "+00:00")
    assert len(desk.comments()) == 1


@pytest.mark.parametrize("second", [DAWN, {"__type": "Date", "iso": DAWN}])
@pytest.mark.parametrize("product", ["valine", "waline"])
def test_leancloud_has_a_second_time(desk: Desk, product: str, second: Any) -> None:
    desk.take(file_of(product, [row(product, "a1", time=None, createdAt=second)]))
    assert desk.only().time == utc("2021-05-01")


# States, pins, likes


@pytest.mark.parametrize(
    ("product", "said", "status"),
    [
        ("valine", {"isSpam": True}, "spam"), ("valine", {"isSpam": "true"}, "spam"),
        ("valine", {"isSpam": False}, "visible"), ("valine", {"isSpam": "false"}, "visible"),
        ("valine", {"status": "waiting"}, "waiting"), ("valine", {"status": "spam"}, "spam"),
        ("waline", {"status": "approved"}, "visible"), ("waline", {"status": ""}, "visible"),
        ("waline", {"status": None}, "visible"), ("waline", {"status": "waiting"}, "waiting"),
        ("waline", {"status": "spam"}, "spam"), ("waline", {"status": "SPAM"}, "spam"),
        ("waline", {"status": "what"}, "waiting"), ("waline", {"status": 3}, "waiting"),
        ("twikoo", {"isSpam": True}, "waiting"), ("twikoo", {"isSpam": "true"}, "waiting"),
        ("twikoo", {"isSpam": 1}, "waiting"), ("twikoo", {"isSpam": "false"}, "visible"),
        ("twikoo", {"isSpam": 0}, "visible"), ("twikoo", {}, "visible"),
        ("artalk", {"is_pending": "true"}, "waiting"), ("artalk", {"is_pending": True}, "waiting"),
        ("artalk", {"is_pending": "1"}, "waiting"), ("artalk", {"is_pending": "false"}, "visible"),
        ("artalk", {"is_pending": ""}, "visible"), ("artalk", {"is_collapsed": "true"}, "visible"),
    ],
)  # fmt: skip
def test_a_state_is_kept(desk: Desk, product: str, said: Row, status: str) -> None:
    desk.take(file_of(product, [row(product, "a1", **said)]))
    assert desk.only().status == status


@pytest.mark.parametrize("product", ["waline", "twikoo", "artalk"])
@pytest.mark.parametrize(
    ("value", "pinned"),
    [(True, 1), ("true", 1), (1, 1), ("1", 1), (False, 0), ("false", 0), (0, 0), ("0", 0),
     ("", 0), (None, 0), ({}, 0)],
)  # fmt: skip
def test_a_pin_is_kept(desk: Desk, product: str, value: Any, pinned: int) -> None:
    name = {"waline": "sticky", "twikoo": "top", "artalk": "is_pinned"}[product]
    desk.take(file_of(product, [row(product, "a1", **{name: value})]))
    assert desk.only().pinned == pinned


@pytest.mark.parametrize(
    ("product", "said", "likes"),
    [
        ("waline", {"like": 7}, 7), ("waline", {"like": "7"}, 7), ("waline", {"like": None}, 0),
        ("waline", {"like": -3}, 0), ("waline", {"like": "many"}, 0), ("waline", {"like": 2.0}, 2),
        ("valine", {"like": 3}, 3), ("artalk", {"vote_up": "6", "vote_down": "9"}, 6),
        ("artalk", {"vote_up": 6}, 6), ("artalk", {"vote_up": ""}, 0),
        ("artalk", {"vote_up": "-1"}, 0), ("artalk", {"vote_up": None}, 0),
        ("twikoo", {"like": ["u", "v"]}, 2), ("twikoo", {"ups": ["u", "v", "w"]}, 3),
        ("twikoo", {"ups": '["u","v"]', "downs": "[]"}, 2), ("twikoo", {"ups": "[broken"}, 0),
        ("twikoo", {"like": ["u"], "ups": ["u", "v"]}, 2), ("twikoo", {"ups": None}, 0),
        ("twikoo", {"like": {}}, 0), ("twikoo", {"downs": ["u"]}, 0),
    ],
)  # fmt: skip
def test_likes_are_kept(desk: Desk, product: str, said: Row, likes: int) -> None:
    desk.take(file_of(product, [row(product, "a1", **said)]))
    assert desk.only().likes == likes
    assert b'"v"' not in desk.raw()


def test_more_likes_than_a_database_can_count_are_no_fault(desk: Desk) -> None:
    desk.take(file_of("waline", [row("waline", "a1", like=10**30), row("waline", "a2")]))
    assert [one.nick for one in desk.comments()] == ["nick a1", "nick a2"]


# Texts

LINK = f'<a href="https://a.example/" {ANCHOR}>'
# HTML, and how it must look here; null where that is left open.
HTML: dict[str, str | None] = dict(json.loads((FILES / "twikoo.html.json").read_text("utf-8")))


@pytest.mark.parametrize("html", HTML)
def test_html_becomes_what_looks_the_same(desk: Desk, html: str) -> None:
    desk.take(file_of("twikoo", [row("twikoo", "a1", html)]))
    found = plain(desk.only().html).replace(f" {ANCHOR}", "")
    if (wanted := HTML[html]) is not None:
        assert found == wanted
    assert not re.search(r"(?i)<(script|style|iframe|object|svg|img|table|span|div)\b", found)
    assert "alert" not in found
    assert "\x00" not in found


@pytest.mark.parametrize("product", ["valine", "waline", "artalk"])
def test_html_is_read_where_markdown_may_stand_too(desk: Desk, product: str) -> None:
    wanted = {f"<p>一</p>{html}": f"<p>一</p>{text}" for html, text in HTML.items() if text}
    found = each_of(desk, product, "text", list(wanted))
    looks = [plain(one.html).replace(f" {ANCHOR}", "") for one in found]
    assert dict(zip(wanted, looks, strict=True)) == wanted


def letters(html: str) -> str:
    """What a reader reads, without blanks."""
    return re.sub(r"\s+", "", unescape(re.sub(r"<[^>]*>", "", html)))


SIGNS = (
    """a 好 “引” ！ 1. 2) # - * _x_ `t` [l](m) <3 & | ~~ a*b \\ <b> + = 😀 （注） > ! C++ ： ---"""
)
PIECES = st.sampled_from(SIGNS.split(" ")).map(escape)
TEXTS = st.lists(st.tuples(PIECES, st.sampled_from(["", " "])), min_size=1, max_size=4).map(
    lambda pairs: "".join(map("".join, pairs))
)


def wrapped(*tags: str) -> Callable[[st.SearchStrategy[str]], st.SearchStrategy[str]]:
    """What is inside, put side by side or into one of these tags."""

    def within(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(st.sampled_from(tags), inner).map(
            lambda pair: pair[0].replace("…", pair[1])
        )
        return pairs | st.tuples(inner, inner).map("".join)

    return within


INLINE = st.recursive(
    TEXTS,
    wrapped(
        "<strong>…</strong>", "<em>…</em>", "<del>…</del>", "<code>…</code>",
        '<a href="https://a.example/?q=(1)&amp;r">…</a>', "…<br>…",
    ),
    max_leaves=4,
)  # fmt: skip
BLOCKS = st.recursive(
    st.tuples(st.sampled_from(["<p>…</p>\n", "<pre><code>…\n</code></pre>"]), INLINE).map(
        lambda pair: pair[0].replace("…", pair[1])
    ),
    wrapped("<blockquote>\n…</blockquote>\n", "<ul><li>…</li></ul>", "<ol>\n<li>…</li></ol>\n"),
    max_leaves=4,
)


@given(BLOCKS)
@example("<p>他说<strong>“可以”</strong>吗，<em>（真的）</em>好<del>！</del>了</p>")
@example("<p>字<strong><code>a</code></strong>字<code>b</code><code>c</code></p>")
def test_no_letter_is_lost_and_none_is_added(html: str) -> None:
    assert letters(safe_html(markdown_of(html))) == letters(html)


@pytest.mark.parametrize("piece", ["<a ", "<!--", "<", "<?", "&#", "<b>x!", "](", "`", "<p>", "> "])
def test_what_is_repeated_without_end_is_read_all_the_same(piece: str) -> None:
    assert letters(safe_html(markdown_of("<p>first</p>" + piece * 5000))).startswith("first")
    assert letters(safe_html(markdown_of("<b>first" + "!" * 20000 + "x</b>"))).startswith("first")


MARKDOWN = {
    "a\nb": "<p>a<br>b</p>",
    "1 < 2 && 3 > 2": "<p>1 &lt; 2 &amp;&amp; 3 &gt; 2</p>",
    "**粗** <b>x</b>": None,
    "I <3 you": "<p>I &lt;3 you</p>",
    "use `<p>` and `<br>`": "<p>use <code>&lt;p&gt;</code> and <code>&lt;br&gt;</code></p>",
    "```html\n<p>a</p>\n```": "<pre><code>&lt;p&gt;a&lt;/p&gt;\n</code></pre>",
    "<https://a.example/>": f"<p>{LINK}https://a.example/</a></p>",
    'a <img class="wl-emoji" src="https://b.example/x.png" alt="ok"> *b*': "<p>a ok <em>b</em></p>",
    '<img class="wl-emoji" src="https://b.example/x.png" alt="doge">': "<p>doge</p>",
    'a <img src="https://b.example/x.png" atk-emoticon="ok"> *b*': "<p>a ok <em>b</em></p>",
    "![cat](https://a.example/)": f"<p>{LINK}cat</a></p>",
    "[@Ann](#5f01): hi": "<p>@Ann: hi</p>",
    "$x_1 + y_1$ <br> z": None,
}


@pytest.mark.parametrize("product", ["waline", "artalk"])
@pytest.mark.parametrize("text", MARKDOWN)
def test_markdown_stays_markdown(desk: Desk, product: str, text: str) -> None:
    desk.take(file_of(product, [row(product, "a1", text)]))
    found = plain(desk.only().html)
    assert MARKDOWN[text] is None or found == MARKDOWN[text]
    assert "&lt;img" not in found


@each_product
def test_a_long_text_is_kept_whole(desk: Desk, product: str) -> None:
    long = (
        "<p>" + "很长的话 " * 4800 + "</p>"
        if product in ("valine", "twikoo")
        else "很长的话 " * 4800
    )
    desk.take(file_of(product, [row(product, "a1"), row(product, "a2", long)]))
    assert letters(desk.comments()[1].html) == "很长的话" * 4800


@each_product
@pytest.mark.parametrize(
    "piece",
    [
        "<div>",
        "<blockquote>",
        "<ul><li>",
        "<b>",
        "<a href='https://a.example/'>",
        "> ",
        "*",
        "[",
        "- ",
    ],
)
def test_what_is_nested_without_end_breaks_nothing(desk: Desk, product: str, piece: str) -> None:
    deep = "<p>x</p>" + piece * 5000 + "y"
    desk.take(file_of(product, [row(product, "a1"), row(product, "a2", deep)]))
    assert [one.nick for one in desk.comments()] == ["nick a1", "nick a2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "piece"),
    [("comment", "[@"), ("comment", "[@](#"), ("comment", "<img "), ("insertedAt", "\t")],
)
def test_a_megabyte_in_which_nothing_ends_is_read(tmp_path: Path, field: str, piece: str) -> None:
    """Each beginning that is looked for to the end of the text would take an hour."""
    said = {"objectId": "1", "nick": "A", "url": "/x/", "comment": "hi", "insertedAt": "2020-01-01"}
    said[field] = f"2020 {piece * (1_000_000 // len(piece))}x"
    whole = {"type": "waline", "version": 1, "data": {"Comment": [said]}}
    (tmp_path / "waline.json").write_text(json.dumps(whole))
    told = child(tmp_path, "import", "waline.json", seconds=60)
    assert (told.code, told.sums) == (0, (1, 1, 0, 0))


@pytest.mark.slow
def test_a_value_that_is_nested_without_end_loses_nothing_before_it(tmp_path: Path) -> None:
    said = {"objectId": "1", "nick": "A", "url": "/x/", "comment": "hi"}
    deep = '{"$oid":' * 2000 + '"x"' + "}" * 2000  # Python 3.13 reads it, and 3.11 does not
    text = json.dumps({"results": [said, {**said, "objectId": "2", "link": "DEEP"}]}).replace(
        '"DEEP"', deep
    )
    (tmp_path / "valine.json").write_text(text)
    told = child(tmp_path, "import", "valine.json")
    assert told.sums[1] >= 1


@each_product
def test_half_characters_are_replaced(desk: Desk, product: str) -> None:
    desk.take(file_of(product, [row(product, "a1", "<p>\ud83d半 😀 \udc00</p>", page="/\ud83d/")]))
    assert letters(desk.only().html) == "?半😀?"


@each_product
def test_a_long_chain_of_answers_comes_in(desk: Desk, product: str) -> None:
    rows = [row(product, f"a{n}", above=f"a{n + 1}") for n in range(500)]
    desk.take(file_of(product, [*rows, row(product, "a500")]))
    assert answers(desk.comments()) == {f"a{n}": f"a{n + 1}" if n < 500 else "" for n in range(501)}


# Files

ONE = '{"objectId":"a1","nick":"A","comment":"<p>x</p>","url":"/x/","createdAt":"2021-05-01"}'
TWO = ONE.replace("a1", "a2")
HEAD = '#filetype:JSON-streaming {"type":"Class","class":"Comment"}\n'


@pytest.mark.parametrize(
    "file",
    [
        f"{HEAD}{ONE}\n{TWO}\n", f"{HEAD}{ONE}\r\n{TWO}\r\n", f"{HEAD}\n\n{ONE}\n\n{TWO}",
        f"\ufeff{HEAD}{ONE}\n{TWO}\n", f"{ONE}\n{TWO}\n", f"{ONE},\n{TWO},\n",
        f'{{"results":[{ONE},{TWO}]}}', f'{{"results":[\n{ONE},\n{TWO}\n]}}\n',
        f'\ufeff{{"results":[{ONE},{TWO}]}}', f"[{ONE},{TWO}]", f" \n[\n{ONE}\n,\n{TWO}\n]\n",
        f'{{"more":{{"a":[1]}},"results":[{ONE},{TWO}],"end":null}}',
        HEAD.replace("Comment", "MyOwnClass") + f"{ONE}\n{TWO}\n",
        f"{HEAD}{ONE}\nnot JSON\n{TWO}\n", f"{HEAD}{ONE}\n{TWO[:60]}\n{TWO}\n",
        f"{HEAD}{ONE}\n{HEAD}{TWO}\n",
    ],
)  # fmt: skip
def test_valine_is_told_in_every_shape_in_which_it_occurs(desk: Desk, file: str) -> None:
    assert desk.take(file).startswith("valine: ")
    assert len(desk.comments()) == 2
    desk.base.unlink()
    desk.take(gzip.compress(file.encode()))
    assert len(desk.comments()) == 2


@pytest.mark.parametrize("indent", ["\t", 40])
@pytest.mark.parametrize("product", ["valine", "waline", "twikoo"])
def test_a_file_with_many_blanks_is_read_to_its_end(
    desk: Desk, product: str, indent: str | int
) -> None:
    file = json.loads(file_of(product, [row(product, f"a{n}") for n in range(300)]))
    for blanks in ("", "\n", " " * 999):
        desk.take(blanks + json.dumps(file, indent=indent) + blanks, "--format", product)
        assert len(desk.comments()) == 300


def archive(folder: Path, mode: str, **files: str) -> Path:
    """As LeanCloud hands it out; `_` in a name is its dot, `__` a slash."""
    path = folder / "export.tar.gz"
    with tarfile.open(path, mode) as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/").replace("_0_", ".0."))
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
        link = tarfile.TarInfo("Comment.9.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_the_archive_of_leancloud_is_read_as_it_comes(desk: Desk, mode: str) -> None:
    users = HEAD.replace("Comment", "_User") + '{"objectId":"u","password":"SECRET"}\n'
    files = {
        "Counter_0_jsonl": (FILES / "counter.jsonl").read_text("utf-8"),
        "User_0_jsonl": users,
        "Comment_0_jsonl": f"{HEAD}{ONE}\n",
        "out__Comment_1_jsonl": f"{HEAD}{TWO}",
    }
    told = desk.take(archive(desk.folder, mode, **files))
    assert told.startswith("valine: 2 comments read, 2 new")
    assert desk.views()["/2021/hello"] == 123
    assert b"SECRET" not in desk.raw()
    assert b"root:" not in desk.raw()


@each_product
def test_what_was_read_before_a_break_is_imported(desk: Desk, product: str) -> None:
    file = file_of(product, [row(product, f"a{n}") for n in range(20)])
    told = desk.take(file[: len(file) * 3 // 4], code=1)
    assert 10 <= len(desk.comments()) < 20
    assert re.search(r"^  the file breaks off", told, re.M)
    desk.take(file)
    assert len(desk.comments()) == 20


@pytest.mark.parametrize("kind", ["_User", "Users", "_Role", "_Installation"])
def test_other_classes_of_leancloud_bring_nothing(desk: Desk, kind: str) -> None:
    user = {"username": "SECRET", "password": "SECRET", "email": "a@example.com", "objectId": "u1"}
    desk.take(HEAD.replace("Comment", kind) + json.dumps(user) + "\n", code=None)
    assert not desk.base.exists() or not desk.comments()
    assert not desk.base.exists() or b"SECRET" not in desk.raw()


@pytest.mark.parametrize("shape", ["[%s]", "%s", '{"results":[%s]}'])
def test_twikoo_is_told_from_valine(desk: Desk, shape: str) -> None:
    told = desk.take(shape % json.dumps(row("twikoo", "a1", isSpam=True)))
    assert told.startswith("twikoo: ")
    assert desk.only().status == "waiting"


def test_the_answer_of_walines_own_address_is_read(desk: Desk) -> None:
    inner = json.loads(file_of("waline", [row("waline", "a1")]))
    told = desk.take(json.dumps({"errno": 0, "errmsg": "", "data": inner}))
    assert told.startswith("waline: 1 comments read, 1 new")


@pytest.mark.parametrize("order", ["CUs", "UsC"])
def test_names_of_waline_users_are_found_wherever_they_stand(desk: Desk, order: str) -> None:
    user = {
        "objectId": 1,
        "display_name": "站长",
        "email": "o@example.com",
        "url": "https://o.example/",
    }
    said = {"nick": "", "email": "", "website": "", "user_id": "1"}
    tables = {"C": ("Comment", [row("waline", "a1", **said)]), "Us": ("Users", [user])}
    data = dict(tables[key] for key in re.findall("C|Us", order))
    desk.take(json.dumps({"type": "waline", "version": 1, "data": data}))
    one = desk.only()
    assert (one.nick, one.email, one.website) == ("站长", "o@example.com", "https://o.example/")
    assert desk.rows("SELECT * FROM account") == []
    assert desk.rows("SELECT user_id FROM comment WHERE user_id IS NOT NULL") == []


def test_waline_without_its_other_tables_comes_in(desk: Desk) -> None:
    one = row("waline", "a1", user_id=5)
    for data in ({"Comment": [one]}, {"Comment": [one], "Counter": None, "Users": None}):
        desk.take(json.dumps({"type": "waline", "version": 1, "data": data}))
    assert desk.only().nick == "nick a1"


def hosts(product: str) -> str:
    pages = ["https://a.example/x/", "https://b.example/x/", "/x/", "http://a.example/x"]
    return file_of(product, [row(product, f"a{n}", page=page) for n, page in enumerate(pages)])


@each_product
def test_several_hosts_in_a_file_are_listed_and_nothing_is_taken(desk: Desk, product: str) -> None:
    desk.take(hosts(product), code=1)
    assert not desk.base.exists() or not desk.comments()
    assert re.search(r"a\.example \(2\), b\.example \(1\).*--host", desk.errors)


@each_product
def test_a_host_is_refused_where_the_file_names_none(desk: Desk, product: str) -> None:
    desk.take(file_of(product, [row(product, "a1")]), "--host", "nope.example", code=1)
    assert "nope.example" in desk.errors
    assert "name none" in desk.errors


SITES = [("Site A", "/x/"), ("Site A", "/y/"), ("Site B", "/x/"), ("", "/z/")]


def of_sites() -> str:
    rows = []
    for n, (site, page) in enumerate(SITES):
        said = {"site_name": site, "page_admin_only": str(site == "Site B").lower()}
        rows.append(row("artalk", f"a{n}", page=page, **said))
    return file_of("artalk", rows)


@pytest.mark.parametrize("words", [[], ["--host", "Site C"], ["--host", "blog.example"]])
def test_several_sites_of_artalk_are_counted_and_nothing_is_taken(
    desk: Desk, words: list[str]
) -> None:
    desk.take(of_sites(), *words, code=1)
    assert not desk.base.exists()
    assert "Site A (2), Site B (1)" in desk.errors
    assert "--host" in desk.errors


def test_one_site_of_artalk_is_chosen_by_its_name(desk: Desk) -> None:
    told = desk.take(of_sites(), "--host", "Site A")
    nicks = {one.nick: one.page for one in desk.comments()}
    assert nicks == {"nick a0": "/x", "nick a1": "/y", "nick a3": "/z"}
    assert "skipped: of Site B (--host 'Site B' takes those alone): a2" in told
    assert {r["closed"] for r in desk.rows("SELECT closed FROM page")} == {0}


def test_only_one_site_of_artalk_needs_no_name(desk: Desk) -> None:
    desk.take(file_of("artalk", [row("artalk", "a0", site_name="Site A")]))
    desk.take(file_of("artalk", [row("artalk", "a1", site_name="Site A")]), "--host", "Site A")
    assert {one.nick for one in desk.comments()} == {"nick a0", "nick a1"}


@each_product
def test_one_host_of_several_is_chosen(desk: Desk, product: str) -> None:
    desk.take(hosts(product), "--host", "b.example")
    assert {one.nick: one.page for one in desk.comments()} == {"nick a1": "/x", "nick a2": "/x"}
    desk.take(hosts(product), "--host", "a.example")
    assert {one.page for one in desk.comments()} == {"/x"}
    assert len(desk.comments()) == 4


@each_product
def test_the_only_host_of_a_file_is_the_blog(desk: Desk, product: str) -> None:
    pages = ["https://a.example/x/", "http://a.example/x", "//a.example/y", "/y"]
    desk.take(file_of(product, [row(product, f"a{n}", page=p) for n, p in enumerate(pages)]))
    assert [one.page for one in desk.comments()] == ["/x", "/x", "/y", "/y"]


@each_product
def test_nobody_is_told_and_nobody_gets_an_account(desk: Desk, product: str) -> None:
    rows = [
        row(product, "a1", email="a@example.com"),
        row(product, "a2", above="a1", email="b@example.com"),
    ]
    desk.take(file_of(product, rows))
    assert desk.rows("SELECT * FROM outbox") == []
    assert desk.rows("SELECT * FROM account") == []
    assert desk.rows("SELECT * FROM subscription") == []
    assert desk.rows("SELECT * FROM notification") == []


ADDRESSES = {
    "203.0.113.77": "203.0.113.0", "::ffff:203.0.113.77": "203.0.113.0",
    "2001:db8:12:34::5": "2001:db8:12::", "203.0.113.77:443": "203.0.113.0",
    "203.0.113.77, 10.0.0.1": "", "unknown": "", "": "", None: "", 7: "",
}  # fmt: skip


@each_product
def test_an_address_is_masked(desk: Desk, product: str) -> None:
    found = each_of(desk, product, "ip", [*ADDRESSES, {}, []])
    assert [one.ip for one in found] == [*ADDRESSES.values(), "", ""]
    assert b"203.0.113.77" not in desk.raw()
    assert desk.rows("SELECT DISTINCT masked FROM comment") == [{"masked": 1}]


COUNTS = ["5", 5.0, {"$numberLong": "5"}, None, "x", -5, True, [], {}, "", 10**30]


def test_a_number_of_views_may_be_anything(desk: Desk) -> None:
    lines = [{"url": f"/{n}/", "time": time, "objectId": n} for n, time in enumerate(COUNTS)]
    desk.take(HEAD.replace("Comment", "Counter") + "\n".join(map(json.dumps, lines)))
    found = desk.views()
    assert found.pop("/10") > 10**9
    assert found == {"/0": 5, "/1": 5, "/2": 5}
