"""What is seen within texts: stickers of the owner's folder, and pictures from hosts that the owner
names."""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from commentd import App, Config, make_app
from support import inside
from support.admin import owner as owner  # a fixture
from support.client import PAGE, Visitor
from support.commands import findings, run_here
from support.shared import shared_app
from support.world import FakeWorld, read

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><script>alert(1)</script>'
    '<circle cx="4" cy="4" r="4"/></svg>'
)
PICTURE = "https://i.example/cat.jpg"
ELSEWHERE = "https://other.example/cat.jpg"


def draw(path: Path, width: int = 64, height: int = 64) -> Path:
    """A picture of this size; its type follows from the name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (width, height), (0, 128, 128)).save(path)
    return path


def draw_stickers(folder: Path) -> Path:
    draw(folder / "cats" / "hello.png")
    draw(folder / "cats" / "wide.webp", 128, 64)
    draw(folder / "cats" / "hi.gif", 32, 32)
    draw(folder / "cats" / "再 见!.jpg")
    (folder / "cats" / "drawn.svg").write_text(SVG, "utf-8")
    return folder


def settings_with(folder: Path) -> dict[str, Any]:
    return {
        "stickers_folder": str(folder),
        "comments_picture_hosts": ("https://i.example", "https://*.many.example"),
        "server_public_url": "https://comments.example",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return draw_stickers(tmp_path / "stickers")


@pytest.fixture
def settings(folder: Path) -> dict[str, Any]:
    return settings_with(folder)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Visitor]:
    """A visitor who writes nothing, so that all cases share the service."""
    place = tmp_path_factory.mktemp("read")
    settings = settings_with(draw_stickers(place / "stickers"))
    with shared_app(place, empty_database, FakeWorld(), **settings) as app:
        yield Visitor(app)


def preview(visitor: Visitor, text: str) -> str:
    """What readers see of a text."""
    return str(visitor.post_json("/comments/preview", {"content": text}).json["html"])


@pytest.fixture
def shown(reader: Visitor) -> Callable[[str], str]:
    return partial(preview, reader)


def url_in(html: str) -> str:
    """The path of the first image."""
    found = re.search('src="https://comments.example([^"]+)"', html)
    assert found, html
    return found[1]


# Stickers in texts


def test_a_code_is_shown_as_the_sticker_with_its_name_and_its_shape(app: App) -> None:
    html = Visitor(app).say("Good :cats_hello: and :cats_wide:!")["comment"]["html"]
    first, second = re.findall("<img[^>]*>", html)
    assert 'class="sticker"' in first
    assert 'alt="hello"' in first
    assert 'width="24" height="24"' in first
    assert 'width="48" height="24"' in second
    assert Visitor(app).listing()["comments"][0]["html"] == html


@pytest.mark.parametrize("form", ["/fragment", "/thread"])
def test_a_sticker_is_seen_without_scripts_too(app: App, form: str) -> None:
    visitor = Visitor(app)
    visitor.say(":cats_hello:")
    text = visitor.get(form, {"url": PAGE}).text
    assert re.search(
        r'<img class="sticker" src="https://comments.example/stickers/cats_hello', text
    )


def test_feeds_and_exports_have_the_code_of_a_sticker(app: App) -> None:
    visitor = Visitor(app)
    visitor.say("So :cats_hello: it is")
    feed = visitor.get("/feed.atom").text
    assert ":cats_hello:" in feed
    assert "<img" not in feed
    assert "&lt;img" not in feed


def test_emails_have_the_code_of_a_sticker(app: App, fake_world: FakeWorld, owner: Visitor) -> None:
    Visitor(app).say("So :cats_hello: it is")
    app.deliver()
    sent = read(fake_world.emails[-1].message)
    parts = [part.get_content() for part in sent.walk() if part.get_content_maintype() == "text"]
    assert len(parts) == 2
    for part in parts:
        assert ":cats_hello:" in part
        assert "/stickers/" not in part


@pytest.mark.parametrize(
    "text",
    [
        "`:cats_hello:`",
        "```\n:cats_hello:\n```",
        "[:cats_hello:](https://a.example)",
        "https://a.example/:cats_hello:",
        ":cats_nothing:",
        "cats_hello",
    ],
)
def test_a_code_in_code_and_in_links_stays_text(shown: Callable[[str], str], text: str) -> None:
    assert "<img" not in shown(text)


def test_a_code_needs_no_spaces_around_it(shown: Callable[[str], str]) -> None:
    assert shown("早:cats_hello::cats_hello:安").count("<img") == 2
    assert 'alt="再 见!"' in shown(":cats_再-见:")


def test_a_text_shows_forty_images_and_the_rest_as_codes(shown: Callable[[str], str]) -> None:
    html = shown(":cats_hello:" * 50)
    assert html.count("<img") == 40
    assert html.count(":cats_hello:") == 10


def test_a_sticker_that_is_gone_is_its_code_again(app: App, folder: Path, config: Config) -> None:
    Visitor(app).say("So :cats_hello: it is")
    app.close()
    (folder / "cats" / "hello.png").unlink()
    changed = app.site.config
    with closing(make_app(changed, rounds=1)) as again:
        assert ":cats_hello:" in Visitor(again).listing()["comments"][0]["html"]


# Files


def test_a_sticker_is_kept_under_a_url_that_changes_with_it(app: App, folder: Path) -> None:
    visitor = Visitor(app)
    url = url_in(preview(visitor, ":cats_hello:"))
    response = visitor.get(url)
    assert response.content_type == "image/png"
    assert response.body == (folder / "cats" / "hello.png").read_bytes()
    kept = "public, max-age=31536000, s-maxage=3600, immutable"
    assert response.headers["Cache-Control"] == kept
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"

    draw(folder / "cats" / "hello.png", 32, 32)  # while the service runs
    changed = visitor.get(url)
    assert changed.body == (folder / "cats" / "hello.png").read_bytes()
    assert changed.headers["Cache-Control"] == "public, max-age=300"

    app.close()
    with closing(make_app(app.site.config, rounds=1)) as again:
        new = url_in(preview(Visitor(again), ":cats_hello:"))
        assert new != url
        assert Visitor(again).get(new).headers["Cache-Control"] == kept


def test_an_svg_is_a_picture_and_never_a_document(reader: Visitor) -> None:
    response = reader.get(url_in(preview(reader, ":cats_drawn:")))
    assert response.content_type == "image/svg+xml"
    assert response.headers["Content-Disposition"] == "attachment"
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert response.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "name",
    ["..%2F..%2Fetc%2Fpasswd", "..", "cats_hello", "cats_hello.svg", "hello.png", "%00", "a" * 300],
)
def test_another_name_than_that_of_a_sticker_is_not_found(reader: Visitor, name: str) -> None:
    reader.get(f"/stickers/{name}", status=404)


def test_a_file_that_is_no_sticker_any_longer_is_not_sent(app: App, folder: Path) -> None:
    url = url_in(preview(Visitor(app), ":cats_hello:"))
    (folder / "cats" / "hello.png").write_text("<script>alert(1)</script>", "utf-8")
    Visitor(app).get(url, status=404)
    (folder / "cats" / "hello.png").unlink()
    Visitor(app).get(url, status=404)
    os.mkfifo(folder / "cats" / "hello.png")  # to read it would wait for ever
    Visitor(app).get(url, status=404)


def test_the_widget_is_told_of_each_pack(app: App) -> None:
    visitor = Visitor(app)
    (pack,) = visitor.get("/stickers.json").json["packs"]
    assert pack["title"] == "cats"
    assert [(each["code"], each["label"], each["width"]) for each in pack["stickers"]] == [
        ("cats_drawn", "drawn", 24),
        ("cats_hello", "hello", 24),
        ("cats_hi", "hi", 24),
        ("cats_wide", "wide", 48),
        ("cats_再-见", "再 见!", 24),
    ]
    for each in pack["stickers"]:
        assert visitor.get(f"/{each['url']}").content_type.startswith("image/")
    settings = visitor.listing(view="threads")["settings"]
    assert (settings["stickers"], settings["picture_hosts"]) == (True, True)


@pytest.mark.parametrize("settings", [{}])
def test_a_blog_without_images_pays_nothing_for_them(app: App) -> None:
    visitor = Visitor(app)
    comment = visitor.say(f":cats_hello: ![a cat]({PICTURE})")["comment"]
    link = f'<a href="{PICTURE}" rel="nofollow ugc noopener noreferrer">a cat</a>'
    assert comment["html"] == f"<p>:cats_hello: {link}</p>\n"
    assert not {"stickers", "picture_hosts"} & {*visitor.listing(view="threads")["settings"]}
    script = visitor.get("/embed.js").text
    assert "sticker" not in script.replace("// ", "").split("const SERVICE")[1]
    visitor.get("/stickers.json", status=404)


@pytest.mark.parametrize("lacking", ["stickers_folder", "comments_picture_hosts"])
def test_the_widget_shows_images_where_the_blog_has_one_sort_of_them(
    config: Config, folder: Path, lacking: str
) -> None:
    settings = settings_with(folder)
    del settings[lacking]
    with closing(make_app(replace(config, **settings), rounds=1)) as app:
        assert "sticker" in Visitor(app).get("/embed.js").text.split("const SERVICE")[1]


# The folder


def checked(folder: Path) -> list[tuple[str, str]]:
    """What `commentd check` says of a folder of stickers: level and text of each finding."""
    return findings("stickers", folder.parent, COMMENTD_STICKERS_FOLDER=str(folder))


def offered_packs(folder: Path) -> list[Any]:
    """As readers are offered them."""
    config = Config(database_path=str(folder.parent / "x.db"), stickers_folder=str(folder))
    with closing(make_app(config)) as app:
        found = Visitor(app).get("/stickers.json", expect_errors=True)
        packs: list[Any] = found.json["packs"] if found.status_int == 200 else []
        return packs


def packs_of(folder: Path) -> dict[str, list[str]]:
    """The codes of each pack."""
    packs = offered_packs(folder)
    return {pack["title"]: [each["code"] for each in pack["stickers"]] for pack in packs}


def test_packs_of_waline_and_owo_work_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    draw(folder / "bilibili" / "bb_doge.png")
    waline = {"name": "B站", "prefix": "bb_", "type": "png", "icon": "doge", "items": ["doge"]}
    (folder / "bilibili" / "info.json").write_text(json.dumps(waline), "utf-8")
    draw(folder / "tieba" / "smile.gif")
    draw(folder / "tieba" / "other.gif")
    icon = "<img src='https://cdn.example/owo/tieba/smile.gif?v=2'>"
    owo = {
        "颜文字": {"type": "emoticon", "container": [{"icon": "(:3", "text": "x"}]},
        "贴吧": {"type": "image", "container": [{"icon": icon, "text": "微笑"}]},
    }
    (folder / "owo.json").write_text(json.dumps(owo), "utf-8")
    draw(folder / "qq" / "grin.gif")
    icon = "https://cdn.example/faces/grin.gif"
    faces = {"QQ": {"type": "image", "container": [{"icon": icon, "text": "呲牙"}]}}
    (folder / "qq" / "faces.json").write_text(json.dumps(faces), "utf-8")
    assert checked(folder) == [("ok", "stickers: 4 (贴吧, B站, QQ, tieba)")]
    expected = {
        "贴吧": ["贴吧_微笑"],
        "B站": ["bb_doge"],
        "QQ": ["QQ_呲牙"],
        "tieba": ["tieba_other"],
    }
    assert packs_of(folder) == expected


# How Pillow writes a file of each kind.
KINDS_OF_FILES: dict[str, dict[str, Any]] = {
    "a.png": {},
    "b.gif": {},
    "c.jpg": {},
    "d.jpg": {"progressive": True, "comment": b"x" * 3000},
    "e.webp": {"quality": 80},
    "f.webp": {"lossless": True},
    "g.webp": {"exif": b"x" * 30},
}


@pytest.mark.parametrize(
    ("width", "height", "shown"),
    [(300, 100, 72), (3000, 1000, 72), (3, 1, 72), (600, 100, 144), (700, 100, 144), (1, 100, 1)],
)
def test_a_sticker_of_each_kind_of_file_has_its_shape(
    tmp_path: Path, width: int, height: int, shown: int
) -> None:
    folder = tmp_path / "packs"
    for name, how in KINDS_OF_FILES.items():
        file = folder / "kinds" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (width, height), (0, 128, 128)).save(file, **how)
    (pack,) = offered_packs(folder)
    widths = {each["label"]: each["width"] for each in pack["stickers"]}
    assert widths == dict.fromkeys("abcdefg", shown)


BROKEN_DESCRIPTIONS = [
    "",
    "[]",
    "{",
    "7",
    '{"items": 7}',
    '{"items": ["a"]}',
    '{"a": {"type": "image"}}',
    '{"a": {"type": "image", "container": [{"icon": 7, "text": "x"}]}}',
    '{"a": 7}',
    '{"name": "half \\ud800", "type": "png", "items": ["x"]}',
    "[" * 100_000,
    '{"name": "x", "type": "png", "items": ["hello"]}' + " " * 1_000_000,
]


@pytest.mark.parametrize("text", BROKEN_DESCRIPTIONS, ids=range(len(BROKEN_DESCRIPTIONS)))
def test_a_description_that_cannot_be_read_is_named(tmp_path: Path, text: str) -> None:
    folder = tmp_path / "packs"
    draw(folder / "cats" / "hello.png")
    (folder / "broken").mkdir()
    file = folder / "broken" / "info.json"
    file.write_text(text, "utf-8")
    fault = f"{file}: it describes no stickers as Waline or OwO does"
    assert ("warn", fault) in checked(folder)
    assert packs_of(folder) == {"cats": ["cats_hello"]}


@pytest.mark.parametrize("icon", ["../../secret.png", "/etc/secret.png", "..%2F..%2Fsecret.png"])
def test_a_description_names_no_file_outside_of_the_folder(tmp_path: Path, icon: str) -> None:
    folder = tmp_path / "packs"
    draw(tmp_path / "secret.png")
    (folder / "cats").mkdir(parents=True)
    owo = {"cats": {"type": "image", "container": [{"icon": icon, "text": "x"}]}}
    (folder / "cats" / "owo.json").write_text(json.dumps(owo), "utf-8")
    assert packs_of(folder) == {}
    waline = {"prefix": "", "type": "png", "items": [icon.removesuffix(".png")]}
    (folder / "cats" / "owo.json").write_text(json.dumps(waline), "utf-8")
    assert packs_of(folder) == {}
    assert [level for level, _ in checked(folder)] == ["warn"]


def test_a_name_that_no_file_can_have_keeps_no_other_sticker_away(tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    draw(folder / "cats" / "hello.png")
    waline = {"prefix": "", "type": "png", "items": ["a\0b", "hello"]}
    (folder / "cats" / "info.json").write_text(json.dumps(waline), "utf-8")
    assert packs_of(folder) == {"cats": ["cats_hello"]}
    assert ("warn", f"{folder / 'cats' / 'ab.png'}: it can't be read") in checked(folder)


def test_links_in_a_circle_and_pipes_keep_no_other_sticker_away(folder: Path) -> None:
    before = packs_of(folder)
    (folder / "cats" / "one.png").symlink_to("other.png")
    (folder / "cats" / "other.png").symlink_to("one.png")
    os.mkfifo(folder / "cats" / "info.json")
    assert packs_of(folder) == before
    assert ("warn", f"{folder / 'cats' / 'one.png'}: it can't be read") in checked(folder)


def test_a_link_to_a_file_elsewhere_is_no_sticker(folder: Path) -> None:
    secret = draw(folder.parent / "secret.png")
    (folder / "cats" / "secret.png").symlink_to(secret)
    assert "cats_secret" not in packs_of(folder)["cats"]
    words = f"{folder / 'cats' / 'secret.png'}: it lies outside of the folder"
    assert ("warn", words) in checked(folder)


HOSTILE_NAMES = [
    "<img src=x onerror=alert(1)>.png",
    '"onload="alert(1).png',
    "a\nb.png",
    "\x1b[31mred.png",
    "&lt;b&gt;.png",
    "%2e%2e%2fup.png",
    "javascript:alert(1).png",
    "{{braces}}.png",
    "'; DROP TABLE comment; --.png",
    "\u202egnp.png",
    "*_`~[]().png",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_name_of_a_file_is_text_and_nothing_else(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "packs"
    draw(folder / "cats" / "hello.png").rename(folder / "cats" / name)
    assert [level for level, _ in checked(folder)] == ["ok"]
    config = Config(database_path=str(tmp_path / "x.db"), stickers_folder=str(folder))
    with closing(make_app(config)) as app:
        (pack,) = Visitor(app).get("/stickers.json").json["packs"]
        (sticker,) = pack["stickers"]
        assert re.fullmatch(r"cats_[\w-]+", sticker["code"])
        assert re.fullmatch(r"stickers/[\w.%-]+\?[0-9a-f]{8}", sticker["url"])
        form = {"content": f":{sticker['code']}:"}
        html = Visitor(app).post_json("/comments/preview", form).json["html"]
        image = re.fullmatch(r'<p><img (?:[a-z]+="[^"<>]*" ?)+></p>\n', html)
        assert image, html
        assert Visitor(app).get(f"/{sticker['url']}").content_type == "image/png"


def test_a_name_that_is_no_utf_8_is_told_on_any_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    draw(folder / "cats" / "hello.png")
    with open(os.fsencode(folder) + b"/cats/\xff\xfe.png", "wb") as file:
        file.write(b"no picture")
    assert {level for level, _ in checked(folder)} == {"ok", "warn"}
    assert packs_of(folder) == {"cats": ["cats_hello"]}


WRONG_FILES = [
    ("text.png", b"hello", "it is no PNG, JPEG, WebP, GIF or SVG of at most 500 kB"),
    ("empty.gif", b"", "it is no PNG, JPEG, WebP, GIF or SVG of at most 500 kB"),
    (
        "page.svg",
        b"<html><script>1</script>",
        "it is no PNG, JPEG, WebP, GIF or SVG of at most 500 kB",
    ),
    (
        "long.png",
        b"\x89PNG\r\n" + b"x" * 500_000,
        "it is no PNG, JPEG, WebP, GIF or SVG of at most 500 kB",
    ),
    (f"{'a' * 90}.png", b"\x89PNG\r\n", "its name has no letters, or more than 80"),
    ("hello.gif", b"GIF89a", "another sticker is called :cats_hello:"),
]


@pytest.mark.parametrize(("name", "content", "words"), WRONG_FILES)
def test_check_says_of_each_file_why_it_is_no_sticker(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    folder = tmp_path / "packs"
    draw(folder / "cats" / "hello.bmp").rename(folder / "cats" / "notes.txt")
    draw(folder / "cats" / "Hello.png")
    draw(folder / "cats" / "about.png")
    if name == "hello.gif":
        draw(folder / "cats" / "hello.GIF")
    (folder / "cats" / name).write_bytes(content)
    found = checked(folder)
    assert [each for each in found if each[1].endswith(words)], found
    assert "cats_about" in packs_of(folder)["cats"]


def test_check_says_what_is_wrong_with_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    assert checked(folder) == [("warn", f"{folder} is no folder: there are no stickers")]
    folder.mkdir()
    words = f"{folder} has no folder with stickers"
    assert checked(folder) == [("warn", words)]
    draw(folder / "hello.png")
    words = f"{folder / 'hello.png'}: put it into a folder, which is its pack"
    assert checked(folder) == [("warn", words)]
    (folder / "hello.png").unlink()
    (folder / "cats").mkdir()
    words = f"{folder / 'cats'} has no stickers"
    assert checked(folder) == [("warn", words)]
    for number in range(20):
        (folder / "cats" / f"{number}.png").write_bytes(b"none")
    found = checked(folder)
    assert len(found) == 11
    assert ("warn", "other files that are no stickers: 10") in found
    assert packs_of(folder) == {}


def test_a_folder_that_cannot_be_read_keeps_no_other_sticker_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(folder / "dogs" / "hello.png")
    iterdir = Path.iterdir
    locked = folder / "cats"

    def read(path: Path) -> Iterator[Path]:
        if path == locked:  # root may read any
            raise PermissionError
        return iterdir(path)

    monkeypatch.setattr(Path, "iterdir", read)
    assert packs_of(folder) == {"dogs": ["dogs_hello"]}
    assert ("warn", f"can't read {locked}: its stickers are missing") in checked(folder)
    locked = folder
    assert packs_of(folder) == {}
    assert checked(folder) == [("warn", f"can't read {folder}: its stickers are missing")]


def test_stickers_beyond_the_most_are_named_and_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside.set_most_stickers(monkeypatch, 2)
    folder = tmp_path / "packs"
    draw(folder / "cats" / "a.png")
    draw(folder / "cats" / "b.png")
    assert checked(folder) == [("ok", "stickers: 2 (cats)")]
    draw(folder / "cats" / "c.png")
    draw(folder / "dogs" / "a.png")
    words = "it is more than 2 stickers"
    assert checked(folder) == [
        ("warn", f"{folder / 'cats' / 'c.png'}: {words}"),
        ("warn", f"{folder / 'dogs' / 'a.png'}: {words}"),
        ("ok", "stickers: 2 (cats)"),
    ]
    assert packs_of(folder) == {"cats": ["cats_a", "cats_b"]}


# Pictures


def test_a_picture_of_a_named_host_is_shown_in_a_link_to_it(shown: Callable[[str], str]) -> None:
    html = shown(f"![a **grey** cat]({PICTURE})")
    assert html == (
        f'<p><a href="{PICTURE}" class="picture" rel="nofollow ugc noopener noreferrer">'
        f'<img src="{PICTURE}" alt="a grey cat" loading="lazy" decoding="async"'
        ' referrerpolicy="no-referrer"></a></p>\n'
    )
    assert f'alt="{PICTURE}"' in shown(f"![]({PICTURE})")


SHOWN = [
    "https://i.example/a.png?x=1&y=2",
    "https://I.EXAMPLE/a",
    "https://a.many.example/a.png",
    "https://a.b.many.example/a.png",
]
NOT_SHOWN = [
    ELSEWHERE,
    "http://i.example/cat.jpg",
    "https://i.example:444/a.png",
    "https://many.example/a.png",
    "https://i.example.evil.example/a.png",
    "https://evil.example/i.example/a.png",
    "https://evil.example\\\\.many.example/a.png",
    "https://evil.example\\\\@i.example/a.png",
    "https://i.example@evil.example/a.png",
    "https://me:pass@i.example/a.png",
    "https://evil.example#.many.example/a.png",
    "https://evil.example?.many.example/a.png",
    "https://evilmany.example/a.png",
    "https:i.example/a.png",
    "//i.example/a.png",
    "data:image/png;base64,AAAA",
    "javascript:alert(1)",
    "mailto:i.example",
]


@pytest.mark.parametrize("url", SHOWN)
def test_a_host_is_named_in_any_spelling(shown: Callable[[str], str], url: str) -> None:
    assert "<img" in shown(f"![x]({url})")


@pytest.mark.parametrize("url", NOT_SHOWN)
def test_all_other_pictures_stay_links(shown: Callable[[str], str], url: str) -> None:
    html = shown(f"![x](<{url}>)")
    assert "<img" not in html
    assert "picture" not in html


@pytest.mark.parametrize(
    "text",
    [
        f"[a cat]({PICTURE})",
        PICTURE,
        f"[![a cat]({PICTURE})](https://a.example)",
        f"`![a cat]({PICTURE})`",
        f'<a class="picture" href="{PICTURE}">x</a>',
        f'<img src="{PICTURE}">',
    ],
)
def test_a_picture_is_shown_only_where_it_was_written_as_one(
    shown: Callable[[str], str], text: str
) -> None:
    assert "<img" not in shown(text)


@pytest.mark.parametrize(
    "alt", ['"onerror="alert(1)', "&quot; onload=alert(1)", "<b>x</b>", "&lt;script&gt;", "a' b"]
)
def test_a_description_is_text_and_nothing_else(shown: Callable[[str], str], alt: str) -> None:
    html = shown(f"![{alt}]({PICTURE})")
    assert re.search(r"<img (?:[a-z]+=\"[^\"<>]*\" ?)+></a>", html), html
    assert not re.search(r"\son\w+=(?![^<]*\")", html)


def test_feeds_exports_and_admins_have_links_to_pictures(app: App, owner: Visitor) -> None:
    Visitor(app).say(f"![a cat]({PICTURE})")
    for text in (Visitor(app).get("/feed.atom").text, owner.get("/admin/comments").text):
        assert PICTURE in text
        assert "img" not in text
        assert 'class=\\"picture' not in text


def test_the_thread_page_may_load_pictures_of_named_hosts_alone(app: App) -> None:
    Visitor(app).say(f"![a cat]({PICTURE})")
    page = Visitor(app).get("/thread", {"url": PAGE})
    assert f'<img src="{PICTURE}"' in page.text
    policy = page.headers["Content-Security-Policy"]
    assert "img-src 'self' data: https://i.example https://*.many.example;" in policy


def test_a_host_that_is_named_later_shows_older_pictures(
    app: App, config: Config, folder: Path
) -> None:
    Visitor(app).say(f"![a cat]({ELSEWHERE})")
    assert "<img" not in Visitor(app).listing()["comments"][0]["html"]
    app.close()
    named = replace(app.site.config, comments_picture_hosts=("https://other.example",))
    with closing(make_app(named, rounds=1)) as again:
        assert "<img" in Visitor(again).listing()["comments"][0]["html"]


# Imports

TWIKOO = '<p>前排 <img class="tk-owo-emotion" src="https://owo.example/{}" alt="{}"></p>'
WALINE = '<p><img class="wl-emoji" src="https://unpkg.example/bilibili/{}" alt="{}"> 好</p>'
VALINE = '<p><img class="vemoji" src="//img.example/{}" alt="{}"></p>'
ARTALK = '<p><img src="https://a.example/{}" atk-emoticon="{}"></p>'


@pytest.mark.parametrize("element", [TWIKOO, WALINE, VALINE, ARTALK])
def test_an_import_keeps_a_sticker_whose_pack_is_here(folder: Path, element: str) -> None:
    pictures = (("cats/hello.png", "x"), ("x/hello.png?v=1", "[hi]"), ("y", "cats_hello"))
    *kept, other = imported(
        folder, *(element.format(*each) for each in (*pictures, ("dogs/bye.png", "bye")))
    )
    assert [":cats_hello:" in text for text in kept] == [True, True, True]
    assert ":cats_hello:" not in other


def test_an_import_takes_no_other_picture_for_a_sticker(folder: Path) -> None:
    sources = (
        "https://x.example/hello.png",
        "https://x.example/a/hello.png",
        "https://x.example/cats/hello.png",
    )
    first, second, sticker = imported(
        folder, *(f'<p><img src="{source}" alt="hello"></p>' for source in sources)
    )
    for source, text in zip(sources, (first, second), strict=False):
        assert ":cats_hello:" not in text
        assert source in text
    assert ":cats_hello:" in sticker


def imported(folder: Path, *texts: str) -> list[str]:
    """The Markdown of comments of Twikoo that an import brings."""
    place = folder.parent / "import"
    place.mkdir()
    comments = [
        {
            "_id": str(number),
            "nick": "Ann",
            "url": "/a",
            "href": "https://blog.example/a",
            "comment": html,
            "created": 1612422101000 + number,
            "isSpam": False,
            "ua": "",
        }
        for number, html in enumerate(texts)
    ]
    (place / "twikoo.json").write_text(json.dumps(comments), "utf-8")
    run_here(place, "import", "twikoo.json", COMMENTD_STICKERS_FOLDER=str(folder))
    with closing(make_app(Config(database_path=str(place / "commentd.db")))) as app:
        found = Visitor(app).listing(url="/a", sort="oldest")["comments"]
    return [str(each["content"]) for each in found]
