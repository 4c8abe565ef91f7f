"""Pictures of the admin page, in each view and with what opens there; run by hand:
`python tests/pictures/admin.py FOLDER`, with `--only NAME` and `--view NAME` for some of them."""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Route
from webtest import TestApp

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from commentd import App, Config, make_app
from support import blog
from support.inside import add_account, now, set_status, sql, token_of

OWNER = "owner@example.com"
HOUR, DAY = 3600, 86400

# By name: a language, and a screen.
VIEWS: dict[str, tuple[str, dict[str, Any]]] = {
    "desk-light": ("en", blog.screen(1280)),
    "desk-dark-zh": ("zh-CN", {**blog.screen(1280), "color_scheme": "dark"}),
    "desk-light-ar": ("ar", blog.screen(1280)),
    "phone-light": ("en", blog.screen(390)),
    "phone-light-zh": ("zh-CN", blog.screen(390)),
    "phone-dark-ar": ("ar", {**blog.screen(390), "color_scheme": "dark"}),
}

FINDINGS = [
    {
        "level": "fail",
        "topic": "origin",
        "text": "https://www.blog.example is not among [site] origins, so its pages show no "
        "comments: write it there",
    },
    {
        "level": "warn",
        "topic": "canonical",
        "text": "the canonical link of the page names https://blog.example/, so all pages share "
        "their comments: name the page itself there",
    },
    {"level": "ok", "topic": "tag", "text": "the page has the tag once"},
]
WAITING = [
    ("Ada Winter", "first", "Does this hold for e-readers too? Mine breaks lines at 40."),
    ("Mateo Silva", "links", "I wrote down how I measured it: <https://mateo.example/lines/>"),
    ("Lucky", "learnt: casino, bonus, win (0.97)", "Best casino bonus! Win every day."),
]
PAGES = ["/2026/lines/", "/2026/a-week-of-long-titles-and-what-came-of-them-in-the-end/", "/b/"]


def fill(app: App) -> None:
    """Something in every list."""
    add_account(app, OWNER, blog.OWNER, "x", "admin")
    add_account(app, "ann@example.com", "Ann Ford", "x")
    blog.conversation(app)
    for number, page in enumerate(PAGES[1:]):
        blog.say(app, f"A comment of page {number}.", "Noor Rahman", page=page, hours=30)
    for number, (name, held, text) in enumerate(WAITING):
        waits = blog.say(app, text, name, hours=5 - number, email=f"reader{number}@example.com")
        sql(app, "UPDATE comment SET status = 'waiting', held = ? WHERE id = ?", held, waits)
    for status in ("spam", "deleted"):
        set_status(app, blog.say(app, f"This one is {status}.", "Eve"), status)
    sql(app, "UPDATE page SET closed = 1 WHERE page_url = ?", PAGES[-1])
    sql(app, "UPDATE page SET title = 'How far a line goes' WHERE page_url = ?", PAGES[0])
    for number in range(30):
        day = now(app) // DAY - number
        add = "INSERT OR REPLACE INTO day (day, comments, views, likes) VALUES (?, ?, ?, ?)"
        sql(app, add, day, number % 4, 40 + number * 7 % 31, number % 3)
        sql(app, "INSERT INTO page_day VALUES (1, ?, ?)", day, 30 - number // 2)
    for number, country in enumerate(("SE", "DE", "US", "CN", "HK", "")):
        add = "INSERT INTO country_day VALUES (?, ?, ?)"
        sql(app, add, now(app) // DAY, country, 400 // (number * number + 1))
    add = "INSERT INTO block (kind, value, note, created_at, expires_at) VALUES (?, ?, ?, ?, ?)"
    sql(app, add, "word", "casino", "Enough.", now(app), None)
    sql(app, add, "address", "203.0.113.0/24", "", now(app), now(app) + 9 * DAY)
    add = """INSERT INTO outbox (recipient, subject, tries, due_at, expires_at, failure)
             VALUES (?, ?, 2, ?, ?, ?)"""
    failure = "535 Login Fail. Please enter your authorization code"
    sql(app, add, "ann@example.com", "New comments", None, now(app) + DAY, failure)
    sql(app, add, "bob@example.com", "New comments", now(app) + HOUR, now(app) + DAY, "")
    change_settings(app)
    add = "INSERT INTO audit (created_at, who, action, subject, detail) VALUES (?, ?, ?, ?, ?)"
    for ago, who, action, subject, detail in (
        (9 * HOUR, "江屿", "sign_in", "", ""),
        (8 * HOUR, "江屿", "visible", "1", ""),
        (8 * HOUR, "江屿", "visible", "2", ""),
        (7 * HOUR, "mail", "spam", "5", ""),
        (6 * HOUR, "江屿", "rename", "/old/", "/2026/lines/"),
        (5 * HOUR, "江屿", "block", "casino", "word"),
        (4 * HOUR, "江屿", "role", "2", "admin"),
        (3 * HOUR, "江屿", "delete_page", "/mistyped/", ""),
    ):
        sql(app, add, now(app) - ago, who, action, subject, detail)


def change_settings(app: App) -> None:
    owner = TestApp(app)
    owner.authorization = ("Bearer", token_of(app, OWNER, "admin"))
    for settings in (
        {"moderation_words": "casino\nloan"},
        {"moderation_hold": "first", "comments_edit_minutes": "30"},
    ):
        owner.patch_json("/admin/settings", {"settings": settings})


def with_findings(route: Route) -> None:
    route.fulfill(json={"findings": FINDINGS})


# What is done in a view before its picture is taken


def inspect(page: Page) -> None:
    page.route("**/admin/inspection", with_findings)
    form = page.locator("form", has=page.locator("[name=url]"))
    form.locator("[name=url]").fill("https://blog.example/2026/lines/")
    form.locator("button").click()
    page.locator("main [role=status] .line").first.wait_for()


def save_wrong_settings(page: Page) -> None:
    field = page.locator("#setting_comments_edit_minutes")
    field.fill("15000000")
    page.locator("form", has=field).locator("button.main").click()
    page.locator("[aria-invalid]").wait_for()


def unfold(page: Page) -> None:
    for each in page.locator("main details").all():
        each.evaluate("it => { it.open = true }")


def press(*keys: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        for key in keys:
            page.keyboard.press(key)

    return act


def open_deletion(page: Page) -> None:
    page.locator(".line .danger").first.click()


SHOWN: dict[str, tuple[str, Callable[[Page], None]]] = {
    "queue": ("queue", press()),
    "reply": ("queue", press("r")),
    "edit": ("queue", press("e")),
    "bars": ("queue", press("s", "x")),
    "keys": ("queue", press("?")),
    "deleted": ("queue?status=deleted", press()),
    "comments": ("comments", press()),
    "search": ("comments?status=all&q=line", press()),
    "filters": ("comments?status=all&q=line&author=noor&since=2020-01-01", press()),
    "nothing found": ("comments?status=spam&q=nothing+like+it", press()),
    "pages": ("pages", press()),
    "delete page": ("pages", open_deletion),
    "users": ("users", press()),
    "blocks": ("blocks", press()),
    "figures": ("figures", press()),
    "figures by week": ("figures?by=week", press()),
    "figures by year": ("figures?by=year", press()),
    "mail": ("mail", press()),
    "log": ("log", press()),
    "log, unfolded": ("log", unfold),
    "settings": ("settings", press()),
    "wrong settings": ("settings", save_wrong_settings),
    "inspection": ("settings", inspect),
    "settings, unfolded": ("settings", unfold),
    "welcome": ("welcome", press()),
}
IS_ABOVE = "!!document.querySelector('dialog[open], .bar:not(:empty)')"


@dataclass(frozen=True)
class AdminPage:
    """The service, and a browser before it."""

    browser: Browser
    service: str
    token: str

    @contextmanager
    def opened(self, view: str, lang: str, **how: Any) -> Iterator[Page]:
        me = {"token": self.token, "email": OWNER, "nickname": blog.OWNER}
        kept = json.dumps([f"{self.service}/commentd admin", json.dumps(me)])
        context = blog.new_context(self.browser, locale=lang, **how)
        page = context.new_page()
        page.add_init_script(f"localStorage.setItem(...{kept})")
        page.goto(f"{self.service}/admin#{view}")
        page.wait_for_function(
            "() => document.querySelector('footer') && !document.querySelector('[aria-busy=true]')"
        )
        yield page
        context.close()


def take(page: Page, file: Path) -> None:
    blog.settle(page)
    if not page.evaluate(IS_ABOVE):
        width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
        page.set_viewport_size({"width": width, "height": height})
        blog.settle(page)
    page.screenshot(path=file, animations="disabled")


@contextmanager
def own_app() -> Iterator[App]:
    """As `blog.own_app`, with some settings that a file has."""
    with tempfile.TemporaryDirectory() as folder:
        config = Config(
            server_listen="127.0.0.1:0",
            server_public_url="http://comments.test",
            site_origins=("https://blog.example",),
            site_name="江屿’s blog",
            privacy_count_countries=True,
            notify_owner=(OWNER,),
            mail_host="mail.example",
            mail_sender="comments@blog.example",
            database_path=f"{folder}/commentd.db",
            backup_folder=f"{folder}/backups",
            captcha_provider="none",
            limits_enabled=False,
            written_in={"site_name": "/srv/commentd.ini", "notify_owner": "COMMENTD_NOTIFY_OWNER"},
        )
        with closing(make_app(config, rounds=1)) as app:
            yield app


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=SHOWN, metavar="NAME")
    parser.add_argument("--view", action="append", choices=VIEWS, metavar="NAME")
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    with blog.chromium() as browser, own_app() as app, blog.service(app) as service:
        fill(app)
        admin_page = AdminPage(browser, service, token_of(app, OWNER, "admin"))
        for name in options.only or SHOWN:
            view, act = SHOWN[name]
            for screen in options.view or VIEWS:
                lang, how = VIEWS[screen]
                with admin_page.opened(view, lang, **how) as page:
                    act(page)
                    file = options.folder / f"{re.sub('[^a-z]+', '-', name)}-{screen}.png"
                    take(page, file)
                print(file, flush=True)


if __name__ == "__main__":
    main()
