"""Pictures of the widget in each state of wcag.py and in some looks, languages and sizes; run by
hand: `python tests/shots.py FOLDER`, with `--only NAME` for some of them.

A picture is STATE-WIDTH-SCHEME.png, cut to the comments. `--readme FOLDER` makes the pictures of
README.md: the thread in both schemes, side by side, and the admin page."""

import argparse
import base64
import contextlib
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as TooLong

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import blog
import wcag
from blog import Json
from inside import sql, token_of


@dataclass(frozen=True)
class Shot:
    """A state, and how it is looked at; `window` shows what is fixed to the window, too."""

    state: str = "answering"
    lang: str = "zh-CN"
    look: str = "essay"
    window: bool = False
    widths: tuple[int, ...] = (390, 1024)
    schemes: tuple[str, ...] = ("light", "dark")
    browser: Json = field(default_factory=dict)
    media: str = "screen"


ZOOM: Json = {"device_scale_factor": 4, "is_mobile": False, "has_touch": False}
ZOOM["viewport"] = {"width": 320, "height": 256}
IN_A_WINDOW = ("loading", "keyboard help", "too long")
SHOTS = {
    **{name: Shot(name, window=name in IN_A_WINDOW) for name in wcag.STATES},
    "print": Shot("thread", widths=(794,), schemes=("light",), media="print"),
    "zoom": Shot(widths=(320,), browser=ZOOM),
    "forced": Shot(browser={"forced_colors": "active"}),
    **{f"look {look}": Shot(look=look, lang="en") for look in wcag.LOOKS},
    **{f"lang {lang}": Shot(lang=lang, widths=(320,), schemes=("light",)) for lang in wcag.LANGS},
}
# The column, from above the heading to the footer's first line.
COLUMN = """() => {
  const box = e => document.querySelector(e).getBoundingClientRect()
  const {left, right} = box('main'), x = Math.max(0, left - 20), y = box('#comments').top - 40
  const width = Math.min(innerWidth, right + 20) - x, height = box('footer').top + 70 - y
  return {x, y: y + scrollY, width, height}
}"""


def screen(width: int) -> Json:
    """A phone or a desk, as Playwright takes it."""
    phone = width < 600
    return {
        "viewport": {"width": width, "height": 844 if phone else 768},
        "device_scale_factor": 2 if phone else 1,
        "is_mobile": phone,
        "has_touch": phone,
    }


@contextmanager
def shown(stage: wcag.Stage, name: str, shot: Shot, width: int, scheme: str) -> Iterator[Page]:
    browser = {**screen(width), "color_scheme": scheme, **shot.browser}
    state = wcag.STATES[shot.state]
    with stage.opened(state, name, shot.lang, look=shot.look, **browser) as page:
        page.emulate_media(media=shot.media)  # type: ignore[arg-type]
        settle(page)
        yield page


def take(stage: wcag.Stage, name: str, width: int, scheme: str) -> bytes:
    shot = SHOTS[name]
    with shown(stage, name, shot, width, scheme) as page:
        if shot.window:
            return page.screenshot(animations="disabled")
        # What is far from the window is not drawn, and what stands in it shows what a mouse finds.
        page.set_viewport_size({"width": width, "height": 6000})
        settle(page)
        tall = page.evaluate("document.documentElement.scrollHeight")
        page.set_viewport_size({"width": width, "height": tall})
        clip = page.evaluate(COLUMN)
        clip["height"] = min(clip["height"], 3000)
        return page.screenshot(clip=clip, animations="disabled")


def settle(page: Page) -> None:
    """Waits until no request is open, or for two seconds, and until animations are over."""
    with contextlib.suppress(TooLong):
        page.wait_for_load_state("networkidle", timeout=2000)
    page.wait_for_timeout(300)


# Comments for the picture of the admin page: why they wait, their author and text.
WAITING = [
    ("first", "Ada Winter", "Does this hold for e-readers too? Mine breaks lines at 40."),
    ("links", "Mateo Silva", "I wrote down how I measured it: <https://mateo.example/lines/>"),
    ("learnt: 0.97 casino, bonus, win", "Lucky", "Best casino bonus! Win every day, no deposit."),
    ("word: loan", "Fast Cash", "You need a loan? Ask us, we answer within the hour."),
]


def thread_picture(stage: wcag.Stage) -> bytes:
    """The upper part of the thread at 2x: in English and light beside in Chinese and dark."""
    images = ""
    for lang, scheme, sort in (("en", "light", "likes"), ("zh-CN", "dark", "oldest")):
        with shown(stage, "thread", Shot("thread", lang=lang), 560, scheme) as page:
            page.locator("commentd-thread").evaluate(
                "(it, sort) => it.setAttribute('sort', sort)", sort
            )
            page.set_viewport_size({"width": 560, "height": 6000})
            settle(page)
            clip = page.evaluate(COLUMN)
            clip |= {"y": clip["y"] + 116, "height": 620}  # below the heading, with a reply
            half = page.screenshot(full_page=True, clip=clip, animations="disabled")
        images += f'<img src="data:image/png;base64,{base64.b64encode(half).decode()}">'
    page = stage.browser.new_page(viewport={"width": 2240, "height": 1240})
    page.set_content(f"<body style='margin: 0; display: flex'>{images}")
    picture = page.screenshot()
    page.close()
    return picture


def admin_picture(stage: wcag.Stage) -> bytes:
    """The queue of the admin page at 2x."""
    blog.owner_token(stage.app)
    for number, (held, name, text) in enumerate(WAITING):
        comment = blog.say(stage.app, text, name, hours=5 - number)
        sql(
            stage.app, "UPDATE comment SET status = 'waiting', held = ? WHERE id = ?", held, comment
        )
    token = token_of(stage.app, "owner@example.com", "admin")
    me = {"token": token, "email": "owner@example.com", "nickname": blog.OWNER}
    kept = json.dumps([f"{stage.service}/commentd admin", json.dumps(me)])
    screen = {"width": 1120, "height": 640}
    context = blog.new_context(stage.browser, locale="en", viewport=screen, device_scale_factor=2)
    page = context.new_page()
    page.add_init_script(f"localStorage.setItem(...{kept})")
    page.goto(f"{stage.service}/admin")
    page.locator("article").first.wait_for()
    settle(page)
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
    parser.add_argument("folder", type=Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=SHOTS, metavar="NAME")
    parser.add_argument("--readme", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    with blog.chromium() as browser, wcag.staged(browser) as stage:
        if options.readme:
            for name, take_one in (("thread", thread_picture), ("admin", admin_picture)):
                file = options.readme / f"{name}.png"
                file.write_bytes(with_few_colours(take_one(stage)))
                print(file, file.stat().st_size, "bytes")
        if options.folder:
            options.folder.mkdir(parents=True, exist_ok=True)
            for name in options.only or SHOTS:
                for width, scheme in product(SHOTS[name].widths, SHOTS[name].schemes):
                    file = options.folder / f"{name.replace(' ', '-')}-{width}-{scheme}.png"
                    print(file, flush=True)
                    file.write_bytes(take(stage, name, width, scheme))


if __name__ == "__main__":
    main()
