"""Pictures of each email that the service sends, as programs show them; run by hand:
`python tests/pictures/emails.py FOLDER`, with `--lang TAG`, `--only NAME` and `--view NAME` for
some of them. In the view `bare`, all that programs take away is taken away: the head, the body
element and all classes."""

import argparse
import re
import sys
import tempfile
from contextlib import closing
from email.message import EmailMessage
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from commentd import Config, make_app
from support import blog
from support.emails import SETTINGS, Words, every_email
from support.languages import LANGUAGES
from support.notifications import Guest
from support.world import FakeWorld, html_of

# By name: the screen. A desk is as wide as the pane of most programs.
VIEWS: dict[str, dict[str, Any]] = {
    "phone": blog.screen(390),
    "phone-dark": {**blog.screen(390), "color_scheme": "dark"},
    "desk": {"viewport": {"width": 640, "height": 600}},
    "desk-dark": {"viewport": {"width": 640, "height": 600}, "color_scheme": "dark"},
    "bare": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
}

LONG = Words(
    nickname="Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbau",
    content=f"See example.org/{'a-long-path/' * 12} and {'x' * 200}\n\n{'word ' * 300}",
    title="The very long title of a page that somebody wrote without thinking of an email at all",
    reply="漢字かな" * 40,
    page_url="/2026/11/the-very-long-title-of-a-page-that-somebody-wrote-without-thinking-of-email/",
)
ARABIC = Words(
    nickname="ليلى",
    content="شكرًا على المقال! **رائع** جدًا، وهذا `code` في السطر.\n\n> اقتباس\n\n- أول\n- ثان",
    reply="متفق معك تمامًا.",
    page_url="/مقالات/حديقتي/",
    title="حديقتي في الخريف",
)
CHINESE = Words(
    nickname="张小明",
    content="写得真好，**尤其是**关于土壤的那一段。\n\n1. 傍晚浇水\n2. 铺稻草\n\n"
    "> 种一棵树最好的时间是二十年前。\n\n`用法`见下：\n\n```\n每周一次\n```",
    reply="同意，我也试试看。",
    page_url="/文章/阴凉处种什么/",
    title="阴凉处种什么",
)
WORDS = {"ar": ARABIC, "zh-CN": CHINESE, "zh-TW": CHINESE, "ja": CHINESE, "de": LONG}


def emails_in(language: str) -> dict[str, EmailMessage]:
    with tempfile.TemporaryDirectory() as folder:
        config = Config(database_path=f"{folder}/commentd.db", captcha_provider="none", **SETTINGS)
        world = FakeWorld()
        with closing(make_app(config, world.world, rounds=1)) as app:
            return every_email(Guest(app, world), language, WORDS.get(language))


def without_what_programs_take_away(markup: str) -> str:
    _, _, inside = markup.partition("<body")
    content = inside.partition(">")[2].partition("</body>")[0]
    return re.sub(' class="[^"]*"', "", f"<!doctype html><div>{content}</div>")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--lang", action="append", choices=LANGUAGES, metavar="TAG")
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--view", action="append", choices=VIEWS, metavar="NAME")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    with blog.chromium() as browser:
        for language in options.lang or LANGUAGES:
            for name, message in emails_in(language).items():
                if options.only and name not in options.only:
                    continue
                for view in options.view or VIEWS:
                    markup = html_of(message)
                    if view == "bare":
                        markup = without_what_programs_take_away(markup)
                    with closing(browser.new_page(**VIEWS[view])) as page:
                        page.set_content(markup)
                        file = f"{language}-{re.sub('[^a-z]+', '-', name)}-{view}.png"
                        page.screenshot(path=options.folder / file, full_page=True)
                        wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
                        print(f"{file}{': too wide' if wide else ''}", flush=True)


if __name__ == "__main__":
    main()
