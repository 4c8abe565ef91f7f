"""What a reader does to have a picture beside their comments, in a real Chromium: chooses one of
the gallery, or one of their own, which the browser cuts."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from commentd import App
from support import inside
from support.inside import sql
from support.serving import until
from support.widget import SETTINGS, TAG, View, expect_only, settled
from support.widget import asked as asked  # a fixture
from support.widget import fake_world as fake_world  # a fixture
from support.widget import faults as faults  # a fixture
from support.widget import options as options  # a fixture
from support.widget import page as page  # a fixture
from support.widget import site as site  # a fixture
from support.widget import view as view  # a fixture
from support.words import WORDS

pytestmark = pytest.mark.slow

EN = WORDS["en"]


def drawn(color: str, format: str = "PNG", size: tuple[int, int] = (64, 64)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, color).save(file, format)
    return file.getvalue()


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, Any]:
    folder = tmp_path / "faces"
    folder.mkdir()
    (folder / "Fox.png").write_bytes(drawn("orange"))
    (folder / "Owl.png").write_bytes(drawn("brown"))
    return SETTINGS | {
        "captcha_provider": "none",
        "comments_faces": str(folder),
        "comments_pictures": True,
    }


def is_shown(image: Locator) -> bool:
    shown: bool = image.evaluate("node => node.complete && node.naturalWidth > 0")
    return shown


def post(page: Page, text: str) -> Locator:
    """A comment of this text; the picture beside it."""
    page.get_by_placeholder(EN["write"]).fill(text)
    page.get_by_role("button", name=EN["post"], exact=True).click()
    article = page.locator("commentd-thread article").filter(has_text=text)
    expect(article).to_be_visible()
    return article.locator(".avatar img")


def test_a_guest_chooses_a_picture_that_the_browser_remembers(view: View) -> None:
    page = view(TAG, lang="en")
    page.get_by_placeholder(EN["write"]).click()
    page.get_by_label(EN["name"]).fill("Ann")
    page.get_by_role("button", name=EN["picture_choose"]).click()
    gallery = page.get_by_role("group", name=EN["picture_gallery"])
    expect(gallery.get_by_role("button")).to_have_count(3)
    letter = gallery.get_by_role("button", name=EN["picture_letter"])
    expect(letter).to_have_attribute("aria-pressed", "true")
    expect(letter).to_have_text("A")
    fox = gallery.get_by_role("button", name="Fox")
    fox.focus()
    page.keyboard.press("Enter")
    expect(fox).to_have_attribute("aria-pressed", "true")
    expect(letter).to_have_attribute("aria-pressed", "false")
    shown = post(page, "with a fox")
    expect(shown).to_have_count(1)
    until(lambda: is_shown(shown))
    page.reload()
    page.get_by_placeholder(EN["write"]).click()
    expect(page.get_by_role("button", name=EN["picture_choose"]).locator("img")).to_be_visible()
    expect(post(page, "again")).to_have_count(1)
    page.get_by_placeholder(EN["write"]).click()
    page.get_by_role("button", name=EN["picture_choose"]).click()
    page.get_by_role("button", name=EN["picture_letter"]).click()
    expect(post(page, "with a letter")).to_have_count(0)


def test_a_gallery_that_comes_at_the_second_press_leaves_no_error(
    view: View, faults: list[str]
) -> None:
    page = view(TAG, lang="en")
    page.get_by_placeholder(EN["write"]).click()
    page.route("**/faces", lambda route: route.abort())
    page.get_by_role("button", name=EN["picture_choose"]).press("Enter")
    expect(page.get_by_role("alert")).to_have_text(EN["offline"])
    page.unroute("**/faces")
    page.keyboard.press("Enter")
    expect(page.get_by_role("group", name=EN["picture_gallery"])).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect_only(faults, "ERR_FAILED")


def test_a_gallery_is_offered_once_its_texts_have_come(view: View, faults: list[str]) -> None:
    page = view(TAG, lang="en")
    page.route("**/words/picture-*", lambda route: route.abort())
    with page.expect_event("requestfailed"):
        page.get_by_placeholder(EN["write"]).click()
    page.unroute("**/words/picture-*")
    choose = page.get_by_role("button", name=EN["picture_choose"])
    expect(choose).to_have_count(0)
    for _ in range(2):
        page.evaluate("document.querySelector('commentd-thread').load({})")
        expect(choose).to_have_count(1)
    expect_only(faults, "ERR_FAILED")


@pytest.mark.parametrize("settings", [SETTINGS])
def test_a_blog_without_faces_loads_nothing_of_them(view: View, asked: list[str]) -> None:
    page = view(TAG, lang="en")
    page.get_by_placeholder(EN["write"]).click()
    expect(page.get_by_label(EN["name"])).to_be_visible()
    settled(page)
    assert [line for line in asked if "face" in line or "picture" in line] == []


def sign_in(app: App, view: View) -> Page:
    """A page of Ann, with her account open."""
    inside.add_account(app, "ann@example.com", "Ann", "long enough")
    me = {"nickname": "Ann", "id": 1, "role": "user"}
    me |= {"token": inside.token_of(app, "ann@example.com")}
    key = json.dumps(view.site.service + "/me")
    view.page.add_init_script(
        f"localStorage.getItem({key}) ?? localStorage.setItem({key}, {json.dumps(json.dumps(me))})"
    )
    page = view(TAG, lang="en")
    page.get_by_placeholder(EN["write"]).click()
    page.get_by_role("button", name=EN["account"]).click()
    expect(page.get_by_role("button", name=EN["picture_choose"])).to_be_visible()
    return page


def choose_file(page: Page, body: bytes, name: str = "me.png") -> None:
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name=EN["picture_choose"]).click()
    chooser.value.set_files({"name": name, "mimeType": "image/png", "buffer": body})


def sent(app: App) -> Image.Image:
    ((body,),) = sql(app, "SELECT body FROM picture")
    return Image.open(io.BytesIO(body))


def pixel(app: App, x: int, y: int) -> tuple[int, int, int]:
    red, green, blue = sent(app).convert("RGB").crop((x, y, x + 1, y + 1)).tobytes()
    return red, green, blue


def test_the_middle_of_a_picture_is_cut_and_sent_small(app: App, view: View) -> None:
    page = sign_in(app, view)
    expect(page.get_by_text(EN["picture_none"])).to_be_visible()
    wide = Image.new("RGB", (900, 300), "red")
    wide.paste("blue", (300, 0, 600, 300))
    file = io.BytesIO()
    wide.save(file, "PNG")
    bodies: list[bytes] = []
    page.on("request", lambda request: bodies.append(request.post_data_buffer or b""))
    choose_file(page, file.getvalue())
    mine = page.get_by_role("img", name=EN["picture_yours"])
    expect(mine).to_be_visible()
    until(lambda: is_shown(mine))
    red, _, blue = pixel(app, 3, 64)
    assert blue > 200 > 60 > red
    assert sent(app).size == (128, 128)
    (upload,) = [json.loads(body)["picture"] for body in bodies if b'"picture"' in body]
    assert Image.open(io.BytesIO(base64.b64decode(upload))).size == (128, 128)
    page.get_by_role("button", name=EN["picture_remove"]).click()
    expect(mine).to_have_count(0)
    expect(page.get_by_text(EN["picture_none"])).to_be_visible()
    assert sql(app, "SELECT count(*) FROM picture") == [(0,)]


def test_a_file_that_is_no_picture_is_refused_before_it_is_sent(
    app: App, view: View, asked: list[str]
) -> None:
    page = sign_in(app, view)
    choose_file(page, b"<svg xmlns='http://www.w3.org/2000/svg'/>")
    expect(page.get_by_role("alert")).to_have_text(EN["picture_invalid"])
    assert not any(line.startswith("POST") and "picture" in line for line in asked)


def test_a_browser_without_webp_sends_a_jpeg(app: App, view: View) -> None:
    view.page.add_init_script("""
        const plain = HTMLCanvasElement.prototype.toBlob
        HTMLCanvasElement.prototype.toBlob = function (done, type, quality) {
            plain.call(this, done, type === 'image/webp' ? 'image/png' : type, quality)
        }""")
    page = sign_in(app, view)
    bodies: list[bytes] = []
    page.on("request", lambda request: bodies.append(request.post_data_buffer or b""))
    choose_file(page, drawn("teal", size=(400, 400)))
    expect(page.get_by_role("img", name=EN["picture_yours"])).to_be_visible()
    (upload,) = [json.loads(body)["picture"] for body in bodies if b'"picture"' in body]
    assert Image.open(io.BytesIO(base64.b64decode(upload))).format == "JPEG"


def test_an_account_chooses_a_picture_of_the_gallery(app: App, view: View) -> None:
    page = sign_in(app, view)
    page.get_by_role("button", name=EN["picture_gallery"]).click()
    page.get_by_role("button", name="Owl").click()
    mine = page.get_by_role("img", name=EN["picture_yours"])
    until(lambda: is_shown(mine))
    red, green, _ = pixel(app, 30, 30)
    assert red > green
