"""Pictures of the widget in all states that a reader can find it in; run by hand:
`python tests/pictures/states.py FOLDER`, with `--only NAME` and `--view NAME` for some of them."""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from support import accessibility, blog
from support.widget_states import STATES

# By name: a language, and a screen.
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "desk-light": ("en", blog.screen(1280)),
    "desk-dark-zh": ("zh-CN", {**blog.screen(1280), "color_scheme": "dark"}),
    "phone-light": ("en", blog.screen(390)),
    "phone-dark-ar": ("ar", {**blog.screen(390), "color_scheme": "dark"}),
}

# Menus and helps lie above the page, where the window is.
HAS_DIALOG = "!!document.querySelector('commentd-thread').shadowRoot.querySelector('dialog[open]')"
# The widget, with what stands around it.
PLACE = """() => {
  const {top, height} = document.querySelector('commentd-thread').getBoundingClientRect()
  return {x: 0, y: Math.max(0, top + scrollY - 80), width: innerWidth, height: height + 160}
}"""


def take_whole(page: Page, file: Path) -> None:
    # A picture of a full page would forget that a phone is touched.
    width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    page.set_viewport_size({"width": width, "height": height})
    blog.settle(page)
    page.screenshot(path=file, clip=page.evaluate(PLACE), animations="disabled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=STATES, metavar="NAME")
    parser.add_argument("--view", action="append", choices=VIEWS, metavar="NAME")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    with blog.chromium() as browser, accessibility.examined_site_running(browser) as site:
        for name in options.only or STATES:
            for view in options.view or VIEWS:
                lang, screen = VIEWS[view]
                with site.opened(STATES[name], name, lang, **screen) as page:
                    file = options.folder / f"{re.sub('[^a-z]+', '-', name)}-{view}.png"
                    if page.evaluate(HAS_DIALOG):
                        page.screenshot(path=file, animations="disabled")
                    else:
                        take_whole(page, file)
                print(file, flush=True)


if __name__ == "__main__":
    main()
