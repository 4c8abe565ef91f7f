"""Files that mean harm, are broken, or are of something else: an import shows nothing hostile,
reads no other file, fills no memory, leaves foreign databases as they are, and loses no
other comment."""

import gzip
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

import commentd
from support import inside, products
from support.patience import PATIENCE
from support.products import (
    MAKERS,
    NOON,
    ROWS,
    SQLITE,
    XML,
    ForeignComment,
    Importer,
    Result,
    file_of,
    wordpress,
)
from support.world import FakeWorld

importer = products.importer
PROGRAM = Path(commentd.__file__)
each = pytest.mark.parametrize("product", MAKERS)
each_xml = pytest.mark.parametrize("product", XML)
each_database = pytest.mark.parametrize("product", SQLITE)
TEXTS = [product for product in MAKERS if product not in SQLITE]


# Runs each command of a list, and prints what came of it.
IN_TURN = """
import contextlib, io, json, pathlib, resource, sys
import commentd

megabytes, commands = json.loads(sys.argv[1])
now = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
most = now * resource.getpagesize() + (megabytes << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
results = []
for words in commands:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = commentd.main(words)
    results.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""


def imports(folder: Path, files: list[Path], memory: int) -> list[Result]:
    """Those of several files in turn, in a process of their own, which may have so many MB more
    than it begins with."""
    wanted = json.dumps([memory, [["import", str(file)] for file in files]])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IN_TURN, wanted],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROGRAM.parent)},
        capture_output=True,
        timeout=PATIENCE,
    )
    assert b"Traceback" not in done.stderr, done.stderr
    results = json.loads(done.stdout)
    assert "Traceback" not in str(results)
    return [Result(code, out.encode(), errors) for code, out, errors in results]


def nothing_in(importer: Importer) -> bool:
    return not importer.path.exists() or not (importer.comments or importer.pages)


# Texts

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)><svg onload=alert(1)>"
    '<a href="javascript:alert(1)">a</a> [b](javascript:alert(1)) '
    "<iframe src=//evil.example></iframe><b onclick=alert(1)>c</b> ![d](https://evil.example/x.png)"
)
TAG = re.compile(r"</?(p|strong|br|a( href=\"https?://.*)?)>")


def test_an_import_of_hostile_texts_shows_only_text(
    importer: Importer, fake_world: FakeWorld
) -> None:
    for product, make in MAKERS.items():
        importer.use_database(f"{product}.db")
        importer.import_file(make([ForeignComment(text=HOSTILE)]))
        with importer.served(fake_world) as reader:
            (shown,) = reader.listing(url="/a/")["comments"]
        tags = re.findall(r"<[^>]*>", shown["html"])
        assert tags
        assert [tag for tag in tags if not TAG.fullmatch(tag)] == [], product


def test_bytes_that_are_no_text_cost_an_import_no_other_comment(importer: Importer) -> None:
    comments = [ForeignComment("1", text="befXore"), ForeignComment("2", NOON + 1, text="Second")]
    for product in MAKERS:
        importer.use_database(f"{product}.db")
        data = MAKERS[product](comments)
        if product in SQLITE:
            file, column = importer.file(data), "text" if product == "isso" else "content"
            broken = "CAST(X'626566FF6F7265' AS TEXT)"
            with closing(sqlite3.connect(file)) as db, db:
                db.execute(f"UPDATE comments SET {column} = {broken} WHERE id = '1'")
        else:
            file = importer.file(data.replace(b"befXore", b"bef\xff\xfeore"))
        result = importer.import_file(file)
        assert (result.code, result.counts) == (0, (2, 2, 0, 0))
        assert [re.sub("[\ufffd?]+", "", text) for text in importer.texts] == ["before", "Second"]


@pytest.mark.parametrize("product", [product for product in TEXTS if product not in XML])
def test_a_control_character_in_json_costs_an_import_no_comment(
    importer: Importer, product: str
) -> None:
    """JSON has none as it is, but some programs write it. A file may break off as well."""
    comments = [
        ForeignComment("1", text="befMARKore"),
        ForeignComment("2", NOON + 1, text="Second"),
    ]
    data = MAKERS[product](comments).replace(b"MARK", b"\x07")
    assert importer.import_file(data).counts == (2, 2, 0, 0)
    assert importer.texts == ["before", "Second"]
    if product.startswith("com"):  # whose names of authors come last
        return
    importer.use_database("cut.db")
    assert importer.import_file(data[: data.index(b"Second")]).counts == (2, 1, 0, 1)
    assert importer.texts == ["before"]


MARKS = {"utf-8-sig": "", "utf-16": "", "utf-16-le": "\ufeff", "utf-16-be": "\ufeff"}


@pytest.mark.slow
def test_an_import_finds_the_encoding_by_its_mark(importer: Importer) -> None:
    comments = [ForeignComment("1", text="Ä 中 😀"), ForeignComment("2", NOON + 1, text="Second")]
    for product in TEXTS:
        for encoding, mark in MARKS.items():
            importer.use_database(f"{product} {encoding}.db")
            name = encoding[:6].strip("-")
            text = re.sub("utf-8", name, MAKERS[product](comments).decode(), flags=re.I)
            result = importer.import_file((mark + text).encode(encoding))
            assert (result.code, result.counts) == (0, (2, 2, 0, 0)), (product, encoding)
            assert importer.texts == ["Ä 中 😀", "Second"]


PIECES = [
    "<div>",
    "<blockquote>",
    "<ul><li>",
    "<b>",
    "<a href='https://a.example/'>",
    "> ",
    "*",
    "[",
    "- ",
    "<a ",
    "<!--",
    "<",
    "<?",
    "&#",
    "<b>x!",
    "](",
    "`",
    "<p>",
]


def test_an_import_survives_texts_nested_or_repeated_without_end(importer: Importer) -> None:
    for product in ("twikoo", "waline"):
        importer.use_database(f"{product}.db")
        deep = [
            ForeignComment(n, NOON + n, text=f"<p>x</p>{p * 2000}y")
            for n, p in enumerate(PIECES, 1)
        ]
        many = [ForeignComment(99, NOON + 99, text="<b>first" + "!" * 20000 + "x</b>")]
        assert importer.import_file(MAKERS[product]([*deep, *many])).counts[1] == len(PIECES) + 1


# XML that means harm

LAUGHS = "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' if n else '<!ENTITY l0 "ha">' for n in range(20)
)
DOCTYPES = {
    '[<!ENTITY x SYSTEM "file:SECRET">]': "&x;",
    '[<!ENTITY x SYSTEM "SECRET">]': "&x;",
    '[<!ENTITY x PUBLIC "-//x" "http://127.0.0.1:9/x">]': "&x;",
    '[<!ENTITY x "in">]': "&x;",
    '[<!ENTITY % p SYSTEM "file:SECRET"> %p;]': "x",
    'SYSTEM "file:SECRET"': "x",
    "": "x",
    'PUBLIC "-//x" "http://127.0.0.1:9/x.dtd"': "x",
    '[<!ATTLIST post secret CDATA "canary">]': "x",
    f"[{LAUGHS}]": "&l19;",
}
HIDDEN = [
    ("<!-- <![CDATA[ -->", "<!-- ]]> -->"),
    ("<?x <![CDATA[ ?>", "<?x ]]> ?>"),
    ("<!-- <![CDATA[ -->", ""),
]


def declaring(product: str, doctype: str, entity: str) -> str:
    comments = [ForeignComment("1", text="here"), ForeignComment("2", NOON + 1, text="x")]
    head, _, rest = MAKERS[product](comments).decode().partition("\n")
    root = "disqus" if product == "disqus" else "rss"
    return f"{head}\n<!DOCTYPE {root} {doctype}>\n{rest.replace('>here<', f'>{entity}<')}"


@each_xml
def test_an_import_refuses_xml_with_a_doctype_and_reads_nothing_else(
    importer: Importer, product: str
) -> None:
    secret = importer.folder / "secret.txt"
    secret.write_text("canary")
    texts = [declaring(product, d.replace("SECRET", str(secret)), e) for d, e in DOCTYPES.items()]
    head, _, rest = declaring(product, '[<!ENTITY x "in">]', "&x;").partition("\n")
    texts += [f"{head}\n{opening}{rest}{closing}" for opening, closing in HIDDEN]
    for text in texts:
        result = importer.import_file(text)
        assert "declares a document type" in result.failure, text
        assert "canary" not in result.text
        assert nothing_in(importer)


def test_markup_inside_a_cdata_section_of_an_import_is_text(importer: Importer) -> None:
    """A file is read line by line, and a section may have several."""
    text = "a &lt;!DOCTYPE html> &amp;nbsp; AT&T &amp;lt;?php\n<b>b</b> &amp; [x]] c"
    marked = wordpress([ForeignComment("1", text="MARK"), ForeignComment("2", NOON + 1)]).decode()
    result = importer.import_file(marked.replace("MARK", f"<![CDATA[{text}]]>"))
    assert result.counts == (2, 2, 0, 0)
    assert importer.texts[0] == "a <!DOCTYPE html> &nbsp; AT&T &lt;?php\n**b** & [x]] c"


def test_an_imported_text_of_wordpress_may_hold_what_ends_a_cdata_section(
    importer: Importer,
) -> None:
    """Its export begins another section there."""
    marked = wordpress([ForeignComment("1", text="MARK")]).decode()
    importer.import_file(marked.replace("MARK", "<![CDATA[a[b[0]]]]><![CDATA[> c]]>"))
    assert importer.only_comment()["content"] == "a[b[0]]> c"


@each_xml
def test_entities_that_xml_does_not_know_cost_an_import_no_comment(
    importer: Importer, product: str
) -> None:
    names = ["&nbsp;", "&unknown;", "&#0;", "&#xD800;", "&#7;", "& ", "&#x1F600;", "&amp;"]
    comments = [ForeignComment(str(n), NOON + n, text=f"a{n}here{n}b") for n in range(len(names))]
    text = MAKERS[product](comments).decode()
    for number, name in enumerate(names):
        text = text.replace(f"{number}here{number}", name)
    result = importer.import_file(text)
    assert (result.code, result.counts) == (0, (8, 8, 0, 0))
    assert importer.texts[-2:] == ["a😀b", "a&b"]
    assert all(text.startswith("a") and text.endswith("b") for text in importer.texts)


@each_xml
def test_an_import_reads_xml_after_empty_lines_and_a_mark(importer: Importer, product: str) -> None:
    """WordPress prints empty lines there, from plugins; editors add a mark."""
    data = MAKERS[product]([ForeignComment("1"), ForeignComment("2", NOON + 1, "1")])
    for before in (b"\n\n", b" ", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"):
        assert importer.import_file(before + data, "--dry-run").counts == (2, 2, 0, 0)


# Foreign databases


def untouched(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What lies in a folder, to the byte, and when it was changed."""
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in folder.iterdir()}


@each_database
@pytest.mark.parametrize("mode", ["delete", "wal", "wal left behind"])
def test_an_imported_database_and_its_folder_stay_as_they_are(
    importer: Importer, tmp_path_factory: pytest.TempPathFactory, product: str, mode: str
) -> None:
    """A -wal is left behind where the other program was killed: what was written last is in it."""
    home, work = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("work")
    path = work / "source.db"
    path.write_bytes(MAKERS[product]([ForeignComment()]))
    column = "text" if product == "isso" else "content"
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {mode.split()[0]}")
        db.execute("PRAGMA wal_autocheckpoint = 0")
        with db:
            db.execute(f"UPDATE comments SET {column} = 'Last'")
        if mode == "wal left behind":
            for name in ("source.db", "source.db-wal"):
                shutil.copy(work / name, home / name)
    if mode != "wal left behind":
        shutil.copy(path, home)
    before = untouched(home)
    assert importer.import_file(home / "source.db").counts == (1, 1, 0, 0)
    assert importer.texts == ["Last"]
    assert untouched(home) == before


@each_database
def test_an_import_reads_a_database_that_is_in_use(importer: Importer, product: str) -> None:
    file = importer.file(MAKERS[product]([ForeignComment()]))
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE comments SET parent" + ("" if product == "isso" else "Id") + " = NULL")
        assert importer.import_file(file).counts == (1, 1, 0, 0)


@each_database
def test_an_imported_database_with_a_view_in_place_of_a_table_is_refused(
    importer: Importer, product: str
) -> None:
    for table in ("comments", "threads" if product == "isso" else "pages"):
        file = importer.file(MAKERS[product]([ForeignComment()]))
        with closing(sqlite3.connect(file)) as db:
            db.execute("PRAGMA legacy_alter_table = ON")
            db.execute(f"ALTER TABLE {table} RENAME TO real")
            db.execute(f"CREATE VIEW {table} AS SELECT * FROM real")
        for words in ([], ["--format", product]):
            assert importer.import_file(file, *words).failure
            assert nothing_in(importer)


def test_the_schema_of_an_imported_database_is_not_trusted(importer: Importer) -> None:
    file = importer.file(MAKERS["isso"]([ForeignComment()]))
    with inside.foreign_database(file) as db:
        assert db.execute("PRAGMA trusted_schema").fetchone()[0] == 0


@each_database
def test_a_trigger_in_an_imported_database_does_nothing(importer: Importer, product: str) -> None:
    file = importer.file(MAKERS[product]([ForeignComment()]))
    with closing(sqlite3.connect(file)) as db:
        for event in ("INSERT", "UPDATE", "DELETE"):
            name, abort = f"t{event} AFTER {event}", "SELECT raise(ABORT, 'no')"
            db.execute(f"CREATE TRIGGER {name} ON comments BEGIN {abort}; END")
    before = file.read_bytes()
    assert importer.import_file(file).counts == (1, 1, 0, 0)
    assert file.read_bytes() == before


@pytest.mark.slow
def test_a_computed_column_in_an_imported_database_does_no_harm(importer: Importer) -> None:
    files = []
    for number, made_of in enumerate(("zeroblob(900000000)", "edit('x')")):
        for product in SQLITE:
            file = importer.file(MAKERS[product]([ForeignComment()]), f"{product} {number}")
            name = "website" if product == "isso" else "by_email"
            with closing(sqlite3.connect(file)) as db:
                db.execute(f"ALTER TABLE comments DROP COLUMN {name}")
                db.execute("PRAGMA writable_schema = ON")
                sql = f", {name} TEXT GENERATED ALWAYS AS ({made_of}) VIRTUAL"
                found = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'comments'")
                (script,) = found.fetchone()
                end = script.index(", CONSTRAINT") if "CONSTRAINT" in script else script.rindex(")")
                with db:
                    update = "UPDATE sqlite_schema SET sql = ? WHERE name = 'comments'"
                    db.execute(update, (script[:end] + sql + script[end:],))
            files.append(file)
    results = imports(importer.folder, files, memory=200)
    for file, result in zip(files, results, strict=True):
        assert result.code == 0 or result.failure, file.name


@each_database
def test_an_import_reports_a_damaged_database(importer: Importer, product: str) -> None:
    whole = MAKERS[product](
        [ForeignComment(str(n), NOON + n, text="word " * 99) for n in range(1, 200)]
    )
    for part in (0.3, 0.6, 0.9):
        start = int(len(whole) * part)
        assert importer.import_file(whole[:start] + b"\xa5" * 9000 + whole[start + 9000 :]).failure
    assert importer.import_file(whole.replace(b"CREATE TABLE", b"CREATE \xa5ABLE")).failure


@each_database
def test_an_import_refuses_a_database_that_is_damaged_elsewhere(
    importer: Importer, product: str
) -> None:
    """What lies beside the comments may have been written over as well as they."""
    file = importer.file(MAKERS[product]([ForeignComment()]))
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE more (id)")
        (size,) = db.execute("PRAGMA page_size").fetchone()
        (page,) = db.execute("SELECT max(rootpage) FROM sqlite_schema").fetchone()
    data = file.read_bytes()
    damaged = data[: (page - 1) * size] + b"\xa5" * size + data[page * size :]
    assert importer.import_file(damaged).failure.startswith("the database is damaged (")


@each
def test_an_import_of_ascii_says_nothing_of_its_encoding(importer: Importer, product: str) -> None:
    """In a database, the length of this text stands in two bytes that are no UTF-8."""
    result = importer.import_file(MAKERS[product]([ForeignComment(text="word " * 40)]))
    assert "text is read as" not in result.text


# Packings, ends and bombs


def test_an_import_refuses_json_above_64_mb_unless_it_comes_in_lines(importer: Importer) -> None:
    file = importer.file(b'[{"page_key": "/"}')
    os.truncate(file, (64 << 20) + 1)
    result = importer.import_file(file, "--format", "artalk")
    assert result.code == 1
    assert "larger than 64 MB: split it, and import each part" in result.errors
    row = '{"_id": "%d", "url": "/", "nick": "Ann", "comment": "%d", "created": 1700000000000}'
    lines = "".join((row % (number, number)).ljust(1 << 20) + "\n" for number in range(65))
    assert importer.import_file(lines, "--format", "twikoo").counts[0] == 65


@pytest.mark.parametrize("product", TEXTS)
def test_an_import_of_a_file_that_breaks_off_brings_the_comments_before(
    importer: Importer, product: str
) -> None:
    """The line where it does is named. The whole file later brings the rest, as it is."""
    comments = [
        ForeignComment(str(n), NOON + n, text=f"text {n}\n{'word ' * 20}\n{'word ' * 20}end")
        for n in range(24)
    ]
    whole = MAKERS[product](comments)
    for data in (whole, gzip.compress(whole, 1)):
        importer.use_database(f"{len(data)}.db")
        result = importer.import_file(data[: len(data) * 9 // 10])
        if product.startswith("com"):
            before_all = importer.import_file(data[: len(data) // 2])
            assert "before the names of all authors" in before_all.failure
            assert "before the names of all authors" in result.failure
            assert nothing_in(importer)
            continue
        texts = importer.texts
        assert 12 < len(texts) == result.counts[1] < 24
        assert all(text.endswith("end") for text in texts)
        if data is whole:
            line = data[: len(data) * 9 // 10].count(b"\n") + 1
            assert re.match(rf"line {line}\b", result.named("can't be read")[0])
        else:
            assert "the file breaks off: what follows is not in it (1): " in result.text
        assert importer.import_file(data).counts[0] == len(importer.texts) == 24


@each_xml
def test_an_import_says_that_xml_has_no_end(importer: Importer, product: str) -> None:
    text, _, _ = MAKERS[product]([ForeignComment()]).decode().rpartition("</")
    result = importer.import_file(text)
    assert result.counts == (2, 1, 0, 1)
    line = text.count("\n") + 1
    assert result.named("can't be read") == [f"line {line} (the file breaks off)"]


def test_an_import_reads_json_that_breaks_off_behind_a_million_brackets(importer: Importer) -> None:
    row, other = (
        MAKERS["artalk"]([ForeignComment(str(n), NOON + n)]).decode()[1:-1] for n in range(2)
    )
    listed = ", ".join(["[]"] * 500_000)
    result = importer.import_file(f'[{row}, {{"x": [{listed}]}}, {other}, {{"page_key": "/')
    assert (result.code, result.counts) == (0, (4, 2, 0, 2))


def test_an_import_reads_json_up_to_a_text_that_is_damaged(importer: Importer) -> None:
    """Brackets in the text are none of the file."""
    rows = [ROWS["artalk"](ForeignComment(str(n), NOON + n, text=f"text {n}")) for n in range(3)]
    data = file_of("artalk", rows).decode()
    result = importer.import_file(data.replace("text 1", r"a [b] {c} \x"))
    assert (result.code, result.counts) == (0, (2, 1, 0, 1))
    assert importer.texts == ["text 0"]
    assert result.named("can't be read") == [r"line 1 (Invalid \escape)"]


@each_xml
def test_an_import_of_a_file_with_a_damaged_comment_brings_the_others(
    importer: Importer, product: str
) -> None:
    comments = [
        ForeignComment(str(n), NOON + n, page=f"/{n // 4}/", text=f"text {n}") for n in range(12)
    ]
    text = MAKERS[product](comments).decode().replace(">text 5<", "><p>text 5<br>more<")
    text = re.sub("(?=<(post|item)[ >])", "\n" * 2**20, text, count=1)  # read in a piece before
    result = importer.import_file(text)
    assert (result.code, result.counts) == (0, (12, 11, 0, 1))
    line = text[: text.index("more<")].count("\n") + 1
    assert result.named("can't be read") == [f"line {line} (its tags do not match)"]
    assert {f"text {n}" for n in range(12)} - {*importer.texts} == {"text 5"}
    assert {*importer.pages} == {"/0", "/1", "/2"}


UNENDED = {
    "a page": ("wordpress", "</item>\n<item>", "\n<item>", ["text 0", "text 1", "text 2"]),
    "a comment of WordPress": ("wordpress", "</wp:comment>", "", ["text 1", "text 2"]),
    "a comment of Disqus": ("disqus", "</post>", "", ["text 1", "text 2"]),
}


@pytest.mark.parametrize("what", UNENDED)
def test_an_import_ends_in_xml_what_has_no_end_where_another_one_begins(
    importer: Importer, what: str
) -> None:
    """A comment without an end may lack some of its text: it is left out, and counted."""
    product, old, new, texts = UNENDED[what]
    comments = [
        ForeignComment(str(n), NOON + n, page=f"/{n // 2}/", text=f"text {n}") for n in range(3)
    ]
    text = MAKERS[product](comments).decode()
    assert old in text
    result = importer.import_file(text.replace(old, new, 1))
    assert (result.code, result.counts) == (0, (3, len(texts), 0, 3 - len(texts)))
    assert importer.texts == texts
    assert importer.comments_by_time[NOON + 1]["page_key"] == "/0"
    assert importer.comments_by_time[NOON + 2]["page_key"] == "/1"
    assert "breaks off" not in result.text


def test_scripts_in_posts_of_wordpress_cost_an_import_no_comment(importer: Importer) -> None:
    """Their sections stand within those of the file."""
    script = "<script>// <![CDATA[\nx = 1;\n// ]]></script>\nbody ]]> a\n"
    for after in ("", "\n", " "):
        post = f"<content:encoded><![CDATA[{script}]]>{after}</content:encoded>"
        text = wordpress([ForeignComment("1"), ForeignComment("2", NOON + 1, page="/b/")]).decode()
        text = text.replace("<link>", f"{post}<link>").replace("<item>", f"<item>{post}")
        assert importer.import_file(text, "--dry-run").counts == (2, 2, 0, 0)
    name = "<![CDATA[a <![CDATA[ b ]]> c]]>"
    importer.import_file(
        wordpress([ForeignComment(nickname="MARK")]).decode().replace("MARK", name)
    )
    assert importer.only_comment()["nickname"] == "a <![CDATA[ b ]]> c"


XML_DAMAGE = {
    "a second document follows": ("\\Z", '<?xml version="1.0"?>\n<rss><channel/></rss>'),
    "a declaration stands in the middle": ("<(post|item)", r'<?xml version="1.0"?><\1'),
    "it says a wrong encoding": ("(?i)utf-8", "ISO-8859-1"),
    "it says an unknown encoding": ("(?i)utf-8", "x-mac-klingon"),
    "it says two bytes a character": ("(?i)utf-8", "UTF-16"),
    "it has no declaration": ("\\A.*\n", ""),
    "a comment has hyphens": ("<(post|item)", r"<!-- a -- b & <c --><\1"),
    "bare signs stand between elements": ("<(post|item)", r"1 < 2 <3 & 4 <<\1"),
    "elements of one name stand in each other": (
        "<(name|wp:comment_author)>",
        r"<more><more><a/></more></more><\1>",
    ),
    "a name has a bare sign": ("Ann", "A <3 & B"),
    "a name has a control character": ("Ann", "An\x10n"),
}


@each_xml
@pytest.mark.parametrize("damage", XML_DAMAGE)
def test_an_import_reads_xml_in_spite_of_what_programs_leave_in_it(
    importer: Importer, product: str, damage: str
) -> None:
    comments = [ForeignComment("1", text="ä 中"), ForeignComment("2", NOON + 1, "1", nickname="B")]
    old, new = XML_DAMAGE[damage]
    text = re.sub(old, new, MAKERS[product](comments).decode())
    result = importer.import_file(text)
    assert (result.code, result.counts) == (0, (2, 2, 0, 0))
    assert importer.comments_by_time[NOON]["content"] == "ä 中"
    assert importer.comments_by_time[NOON]["nickname"] in ("Ann", "A <3 & B")


@each_xml
@pytest.mark.parametrize(
    ("opening", "closing"), [("<!--", "-->"), ("<?", "?>"), ("<more><![CDATA[", "]]></more>")]
)
def test_an_import_skips_what_goes_on_for_megabytes_in_xml(
    importer: Importer, product: str, opening: str, closing: str
) -> None:
    """The file is read in pieces of a megabyte."""
    text = MAKERS[product]([ForeignComment("1"), ForeignComment("2", NOON + 1, "1")]).decode()
    skipped = f"{opening} <a> {'x' * 2**21} {closing}"
    result = importer.import_file(re.sub("(?=<(post|item)[ >])", skipped, text))
    assert (result.code, result.counts) == (0, (2, 2, 0, 0))


@each_xml
@pytest.mark.parametrize(
    ("opening", "closing"), [("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")]
)
def test_an_import_leaves_out_what_is_no_element_of_xml(
    importer: Importer, product: str, opening: str, closing: str
) -> None:
    comments = [ForeignComment("1", text="First"), ForeignComment("2", NOON + 1, text="Second")]
    text = MAKERS[product](comments).decode()
    importer.import_file(re.sub("(.*Second.*)", rf"{opening}\1{closing}", text))
    assert importer.texts == ["First"]


@each_xml
def test_an_import_reads_the_same_in_xml_wherever_a_piece_of_it_ends(product: str) -> None:
    """It is read in pieces, of a megabyte each."""
    texts = {
        "SECTION": "a <![CDATA[b <i>c</i> [0]]]]><![CDATA[> d]]> e",
        "SIGNS": "1 < 2 <3 &amp; 4 > 5",
        "DAMAGE": "a <b>c</i> d",
    }
    comments = [ForeignComment(str(n), NOON + n, text=mark) for n, mark in enumerate(texts)]
    text = MAKERS[product](comments).decode()
    for mark, written in texts.items():
        text = text.replace(mark, written)
    text = re.sub("(?=<(post|item)[ >])", "<!-- <a> --><?b <c> ?><![CDATA[<d>]]> < e <f/>", text)
    whole = inside.records_of_xml(product, text, len(text))
    assert len(whole) == 4
    for size in (1, 2, 7):
        assert inside.records_of_xml(product, text, size) == whole


@each_xml
def test_an_import_reads_both_of_two_exports_in_one_file(importer: Importer, product: str) -> None:
    one, two = (
        MAKERS[product]([ForeignComment(str(n), NOON + n, page=f"/{n}/")]) for n in range(2)
    )
    two = two.replace(b'dsq:id="90"', b'dsq:id="91"')
    for between in (b"", b"\n"):
        importer.use_database(f"{len(between)}.db")
        assert importer.import_file(one.rstrip() + between + two).counts == (2, 2, 0, 0)
        assert {*importer.pages} == {"/0", "/1"}


# Encodings


ENCODINGS = {
    "gb18030": "你好，世界。",
    "gbk": "你好，世界。",
    "cp1252": "déjà vu – café €",
    "latin-1": "Grüße, ça va à Ærø",
}
SAYS_IT = {
    "iso-8859-1": "Grüße",
    "windows-1251": "Привет",
    "GB2312": "你好",
    "big5": "你好",
    "Shift_JIS": "こんにちは",
    "ISO-2022-JP": "こんにちは",  # whose bytes are all ASCII
}


@each_xml
@pytest.mark.parametrize("encoding", SAYS_IT)
def test_an_import_obeys_the_encoding_that_xml_declares(
    importer: Importer, product: str, encoding: str
) -> None:
    text = MAKERS[product]([ForeignComment(text=SAYS_IT[encoding])]).decode()
    result = importer.import_file(re.sub("(?i)utf-8", encoding, text, count=1).encode(encoding))
    assert result.counts == (1, 1, 0, 0)
    assert importer.only_comment()["content"] == SAYS_IT[encoding]
    assert "text is read as " in result.text


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_import_reads_text_in_an_undeclared_encoding(importer: Importer, encoding: str) -> None:
    text = ENCODINGS[encoding]
    for product in TEXTS:
        importer.use_database(f"{product}.db")
        data = MAKERS[product]([ForeignComment(text="MARK")]).replace(
            b"MARK", text.encode(encoding)
        )
        result = importer.import_file(data)
        assert importer.only_comment()["content"] == text, product
        assert f"text is read as {'gb18030' if encoding[0] == 'g' else 'cp1252'}" in result.text


def test_an_import_looks_at_all_of_a_file_for_its_encoding(importer: Importer) -> None:
    text = ENCODINGS["cp1252"]
    data = MAKERS["waline"]([ForeignComment(text="MARK")])
    data = data.replace(b'"data"', b" " * 2**20 + b'"data"')
    importer.import_file(data.replace(b"MARK", text.encode("cp1252")))
    assert importer.only_comment()["content"] == text


def test_an_import_counts_and_names_unreadable_characters(importer: Importer) -> None:
    comments = [
        ForeignComment("a1", text="中文" * 9),
        ForeignComment("a2", NOON + 1, text="cafX XY"),
        ForeignComment("a3"),
    ]
    for product in ("waline", "disqus"):
        importer.use_database(f"{product}.db")
        data = MAKERS[product](comments).replace(b"cafX XY", b"caf\xe9 \xff\xfe")
        result = importer.import_file(data)
        assert "  unreadable characters: 3, each shown as � (1): a2\n" in result.text
        assert importer.comments_by_time[NOON + 1]["content"] == "caf� ��"


def bomb(path: Path, head: bytes, filler: bytes, times: int, tail: bytes = b"") -> Path:
    """Much in a small file."""
    with gzip.open(path, "wb") as out:
        out.write(head)
        for _ in range(times):
            out.write(filler)
        out.write(tail)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("product", ["disqus", "remark42"])
def test_an_import_refuses_a_decompression_bomb(importer: Importer, product: str) -> None:
    head, tail = MAKERS[product]([ForeignComment(text="MARK")]).split(b"MARK")
    path = bomb(importer.folder / "bomb.gz", head, b" " * (1 << 20), 100, tail)
    assert path.stat().st_size < 2 << 20
    (result,) = imports(importer.folder, [path], memory=80)
    assert "unpacks to more than 64 MB" in result.failure


# Files of something else

BAD_FILES: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n \n",
    "a mark alone": b"\xef\xbb\xbf",
    "zeros": b"\0" * 5000,
    "text": b"Dear diary,\nnobody comments.\n",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40,
    "html": b"<!DOCTYPE html><html><head><title>Not found</title></head><body></body></html>",
    "html without a doctype": b"<html><body>Not found</body></html>",
    "a feed": b'<?xml version="1.0"?><rss version="2.0"><channel><item/></channel></rss>',
    "other xml": b'<?xml version="1.0"?><comments><comment>x</comment></comments>',
    "broken xml": b"<disqus",
    "an object": b'{"a": 1}',
    "an empty object": b"{}",
    "an empty array": b"[]",
    "an array of numbers": b"[1, 2, 3]",
    "an array of objects": b'[{"a": 1}, {"b": 2}]',
    "a number": b"17",
    "null": b"null",
    "a text in json": b'"comments"',
    "broken json": b'{"version": 1, "comments": ',
    "another version": b'{"version": 9, "comments": [], "commenters": []}',
    "half a surrogate": b'{"\\ud800": "\\udfff"}',
    "deep json": b"[" * 100_000,
    "deeper objects": b'{"a":' * 100_000,
    "an endless number": b'{"version": 1e999999999}',
    "a long number": b'{"version": ' + b"1" * 100_000 + b"}",
    "csv": b"id,author,text\n1,Ann,Hello\n",
    "zip": b"PK\x03\x04" + bytes(100),
    "gzip of nothing": gzip.compress(b""),
    "gzip of text": gzip.compress(b"Dear diary"),
    "gzip of gzip": gzip.compress(gzip.compress(b"{}")),
    "gzip cut": gzip.compress(b"x" * 9999)[:15],
    "gzip's mark alone": b"\x1f\x8b",
    "sqlite's mark alone": b"SQLite format 3\0",
    "sqlite's mark and noise": b"SQLite format 3\0" + b"\xa5" * 5000,
}


@pytest.mark.parametrize("database_exists", [False, True], ids=["first", "later"])
def test_an_import_refuses_a_file_of_no_known_product_with_a_sentence(
    importer: Importer, database_exists: bool
) -> None:
    if database_exists:
        importer.import_file(MAKERS["waline"]([ForeignComment()]))
        importer.full_export()
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript("CREATE TABLE comments (id, text); CREATE TABLE posts (id);")
        other = db.serialize()
    for name, data in {**BAD_FILES, "a database of something else": other}.items():
        file = importer.file(data, name)
        before = untouched(importer.folder)
        for words in ([], ["--dry-run"]):
            result = importer.import_file(file, *words)
            assert not result.text
            assert result.failure
            assert untouched(importer.folder) == before


def test_an_import_of_an_unknown_format_names_the_known_ones(importer: Importer) -> None:
    result = importer.import_file(BAD_FILES["text"])
    assert {*MAKERS} <= {*re.findall(r"[\w-]+", result.errors)}
    assert "--format" in result.errors


def test_an_import_names_a_file_that_it_can_not_open(importer: Importer) -> None:
    importer.file(b"x", "source")
    for what in ("", "none.xml", "none/none.xml", "source/x"):
        assert re.search(
            "directory|folder|file", importer.import_file(importer.folder / what).failure
        )


@each
def test_an_import_brings_nothing_from_a_file_of_another_format(
    importer: Importer, product: str
) -> None:
    file = importer.file(MAKERS[product]([ForeignComment()]))
    for forced in {"disqus", "wordpress", "isso", "cusdis"} - {product}:
        result = importer.import_file(file, "--format", forced)
        assert result.counts[1] == 0 if result.code == 0 else result.failure
        assert nothing_in(importer)
    assert importer.import_file(file, "--format", product).counts == (1, 1, 0, 0)


KNOWN_EMPTY = ("waline", "disqus", "wordpress", "isso", "cusdis", "remark42")


@each
def test_an_import_takes_an_empty_file_of_a_known_product(importer: Importer, product: str) -> None:
    data = MAKERS[product]([])
    if product in KNOWN_EMPTY:
        assert importer.import_file(data).counts == (0, 0, 0, 0)
    else:  # nothing in it shows where it is from
        assert importer.import_file(data).failure
        assert re.search(
            "no comment|no JSON", importer.import_file(data, "--format", product).failure
        )


OTHER_FILES = {
    "it is a ZIP": b"PK\x03\x04" + bytes(100),
    "SQL dump": b"BEGIN TRANSACTION;\nCREATE TABLE comments (tid INTEGER);",
    "it is a database": MAKERS["isso"]([ForeignComment()])[:4096],
    # MongoDB's documents begin with their length, an `_id` in most cases.
    "数据导出": b"\x34\x01\0\0\x02_id\0\x19\0\0\0" + b"5f3a9b7c0e6d2a0006c1d2e3\0" + bytes(9),
    "(BSON)": b"\xff\xff\0\0\x07_id\0" + bytes.fromhex("5f3a9b7c0e6d2a0006c1d2e3") + bytes(9),
    "it is a web page": b"\n<!DOCTYPE html>\n<html></html>",
    "it is a feed": b'<?xml version="1.0"?>\n\n<feed xmlns="http://www.w3.org/2005/Atom"></feed>',
    "Tools, Export": b"-- MySQL dump\nCREATE TABLE `my_comments` (`comment_post_ID` int);",
    "sqlite3": b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\nCREATE TABLE threads (id);",
    "it is an SQL dump": b"-- PostgreSQL\nSET x = 0;\nCREATE TABLE comments (id int);",
    "Duoshuo": b'{"generator":"duoshuo","version":"0.1","threads":[],"posts":[]}',
    ".0, .1": b'{"filename":"db.json","collections":[{"name":"comment","data":[]}]}',
}


@pytest.mark.parametrize("hint", OTHER_FILES)
def test_an_import_of_a_wrong_file_says_which_file_to_bring(importer: Importer, hint: str) -> None:
    assert hint in importer.import_file(OTHER_FILES[hint]).failure
