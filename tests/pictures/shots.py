"""The pictures of README.md: the thread in both schemes, side by side, and the admin page. Run by
hand: `python tests/pictures/shots.py --readme FOLDER`."""

import argparse
import base64
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support import accessibility, blog
from support.inside import sql, token_of
from support.widget_states import STATES

# The column, from above the heading to the footer's first line.
COLUMN = """() => {
  const box = e => document.querySelector(e).getBoundingClientRect()
  const {left, right} = box('main'), x = Math.max(0, left - 20), y = box('#comments').top - 40
  const width = Math.min(innerWidth, right + 20) - x, height = box('footer').top + 70 - y
  return {x, y: y + scrollY, width, height}
}"""


@contextmanager
def shown(examined_site: accessibility.ExaminedSite, lang: str, scheme: str) -> Iterator[Page]:
    browser = {**blog.screen(560), "color_scheme": scheme}
    with examined_site.opened(STATES["thread"], "thread", lang, **browser) as page:
        blog.settle(page)
        yield page


# Comments for the picture of the admin page: why they wait, their author and text.
WAITING = [
    ("first", "Ada Winter", "Does this hold for e-readers too? Mine breaks lines at 40."),
    ("links", "Mateo Silva", "I wrote down how I measured it: <https://mateo.example/lines/>"),
    ("learnt: casino, bonus, win (0.97)", "Lucky", "Best casino bonus! Win every day, no deposit."),
    ("word: loan", "Fast Cash", "You need a loan? Ask us, we answer within the hour."),
]


def thread_picture(examined_site: accessibility.ExaminedSite) -> bytes:
    """The upper part of the thread at 2x: in English and light beside in Chinese and dark."""
    images = ""
    for lang, scheme, sort in (("en", "light", "likes"), ("zh-CN", "dark", "oldest")):
        with shown(examined_site, lang, scheme) as page:
            page.locator("commentd-thread").evaluate(
                "(it, sort) => it.setAttribute('sort', sort)", sort
            )
            page.set_viewport_size({"width": 560, "height": 6000})
            blog.settle(page)
            clip = page.evaluate(COLUMN)
            clip |= {"y": clip["y"] + 116, "height": 620}  # below the heading, with a reply
            half = page.screenshot(full_page=True, clip=clip, animations="disabled")
        images += f'<img src="data:image/png;base64,{base64.b64encode(half).decode()}">'
    page = examined_site.browser.new_page(viewport={"width": 2240, "height": 1240})
    page.set_content(f"<body style='margin: 0; display: flex'>{images}")
    picture = page.screenshot()
    page.close()
    return picture


def admin_picture(examined_site: accessibility.ExaminedSite) -> bytes:
    """The queue of the admin page at 2x."""
    blog.owner_token(examined_site.app)
    for number, (held, name, text) in enumerate(WAITING):
        comment = blog.say(examined_site.app, text, name, hours=5 - number)
        sql(
            examined_site.app,
            "UPDATE comment SET status = 'waiting', held = ? WHERE id = ?",
            held,
            comment,
        )
    token = token_of(examined_site.app, "owner@example.com", "admin")
    me = {"token": token, "email": "owner@example.com", "nickname": blog.OWNER}
    kept = json.dumps([f"{examined_site.service}/commentd admin", json.dumps(me)])
    screen = {"width": 1120, "height": 640}
    context = blog.new_context(
        examined_site.browser, locale="en", viewport=screen, device_scale_factor=2
    )
    page = context.new_page()
    page.add_init_script(f"localStorage.setItem(...{kept})")
    page.goto(f"{examined_site.service}/admin")
    page.locator("article").first.wait_for()
    blog.settle(page)
    picture = page.screenshot(animations="disabled")
    context.close()
    return picture


def with_few_colours(picture: bytes) -> bytes:
    """A fraction of its size, where Pillow is there."""
    with contextlib.suppress(ImportError):
        from PIL import Image

        out = io.BytesIO()
        Image.open(io.BytesIO(picture)).convert("RGB").quantize(96).save(out, "PNG", optimize=True)
        return out.getvalue()
    return picture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("--readme", type=Path, metavar="FOLDER", required=True)
    folder: Path = parser.parse_args().readme
    with blog.chromium() as browser, accessibility.examined_site_running(browser) as examined_site:
        for name, take_one in (("thread", thread_picture), ("admin", admin_picture)):
            file = folder / f"{name}.png"
            file.write_bytes(with_few_colours(take_one(examined_site)))
            print(file, file.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
