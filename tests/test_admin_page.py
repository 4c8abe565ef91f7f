"""The owner's page at /admin in a real Chromium: by mouse, by keys, on a phone, with hostile rows
and a bad network. `test_admin_api.py` has its API, `test_widget_moderation.py` the menu in the
widget."""

import hashlib
import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Dialog, Locator, Page, Route, expect
from webtest import TestApp

from commentd import FIRST_DAY, App, make_app
from support import blog, inside
from support.accessibility import DESK, PHONE
from support.blog import new_context, nodes_of, painted, say, service, wait_until
from support.inside import sql
from support.second_factor import app_code
from support.service import Start
from support.service import start as start  # a fixture
from support.serving import until
from support.sources import MANUAL, ROOT
from support.widget import fake_world as fake_world  # a fixture
from support.writing import (
    REFUSED,
    REMEMBER,
    UNREACHED,
    button,
    keyboard,
    mouse,
    reach,
    requests_held,
    requests_of,
)

pytestmark = pytest.mark.slow


BLOG = "https://blog.example"
MAIL, PASSWORD = "owner@blog.example", "Ein Wort, 一句话 & \U0001f9c5"
VIEWS = ["queue", "comments", "pages", "users", "blocks", "figures", "mail", "log", "settings"]
STATES = ["spam", "deleted", "reported"]
TABS = [*VIEWS, *(f"queue?status={status}" for status in STATES), "welcome"]
HOUR, DAY = 3600, 86400
TOUCH: Any = PHONE
WINDOW: Any = DESK
KEYS = {"Approve": "a", "Keep": "a", "Spam": "s", "Delete": "d", "Undo": "u"}
STATUS = {"Approve": "visible", "Spam": "spam", "Delete": "deleted"}
TOLD = {"Approve": "Approved.", "Spam": "Marked as spam.", "Delete": "Deleted."}
USUAL = {"server_listen": "127.0.0.1:0", "site_origins": (BLOG,), "limits_enabled": False}
STORED = "JSON.stringify({...localStorage, ...sessionStorage})"
TOKEN = "JSON.parse(Object.values(localStorage)[0]).token"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {**USUAL, "moderation_hold": "all"}


def with_settings(**settings: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("settings", [{**USUAL, **settings}], ids=[""])


def account(app: App, email: str = MAIL, nickname: str = "江屿", role: str = "admin") -> int:
    """An account, an admin's unless told otherwise; its id."""
    password = hashlib.sha256(PASSWORD.encode()).hexdigest()
    return inside.add_account(app, email, nickname, password, role)


@dataclass
class AdminBrowser:
    """The service with an admin, and the browser before it."""

    app: App
    browser: Browser
    service: str
    stack: ExitStack
    expected: list[str] = field(default_factory=list)  # in the console
    console: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def new_page(self, *, signed: bool = True, lang: str = "en-US", **how: Any) -> Page:
        """A browser of its own, in which the admin is signed in."""
        context = new_context(self.browser, locale=lang, **how)
        self.stack.callback(context.close)
        if signed:
            me = {"token": inside.token_of(self.app, MAIL, "admin"), "email": MAIL}
            names = sql(self.app, "SELECT nickname FROM account WHERE email = ?", MAIL)
            me["nickname"] = names[0][0]
            kept = [self.service, f"{self.service}/commentd admin", json.dumps(me)]
            context.add_init_script(REMEMBER % json.dumps(kept))
        context.on("request", lambda request: self.asked.append(request.url))
        page = context.new_page()
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(f"{error}\n{error.stack}"))

        def dismiss(dialog: Dialog) -> None:
            self.console.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", dismiss)  # of a script that should not run
        return page

    def open(self, view: str = "queue", **how: Any) -> Page:
        page = self.new_page(**how)
        page.goto(f"{self.service}/admin#{view}")
        return wait_for_view(page)

    def open_link(self, page: Page, secret: str) -> None:
        page.goto("about:blank")
        page.goto(f"{self.service}/admin#link={secret}")

    def states(self) -> dict[str, str]:
        """The status of each comment, by its text."""
        return dict(sql(self.app, "SELECT content, status FROM comment"))

    def expect_states(self, *every: str, **of: str) -> None:
        """Soon all have this status, or these have those: the page waits for no response."""
        until(
            lambda: (
                of.items() <= self.states().items()
                and (not every or {*self.states().values()} == {*every})
            )
        )

    def end_logins(self) -> None:
        sql(self.app, "UPDATE account SET version = version + 1")


@pytest.fixture
def admin_browser(app: App, browser: Browser) -> Iterator[AdminBrowser]:
    account(app)
    with service(app) as address, ExitStack() as stack:
        admin_browser = AdminBrowser(app, browser, address, stack)
        yield admin_browser
        stack.close()
        assert [
            s for s in admin_browser.console if not any(e in s for e in admin_browser.expected)
        ] == []
        own = (f"{address}/", f"blob:{address}/", "data:")
        assert [url for url in admin_browser.asked if not url.startswith(own)] == []


def wait_for_view(page: Page) -> Page:
    """All that the view asked for has come."""
    wait_until(
        page,
        "() => document.querySelector('footer') && !document.querySelector('[aria-busy=true]')",
    )
    return painted(page)


def go(page: Page, view: str) -> Page:
    """To another view, as by a link."""
    page.evaluate("view => { location.hash = '#' + view }", view)
    wait_until(
        page,
        """view => view === 'welcome'
          || document.querySelector('header [aria-current]')?.hash === '#' + view.split('?')[0]""",
        view,
    )
    return wait_for_view(page)


def add_waiting(app: App, *texts: str, **fields: Any) -> list[int]:
    """Comments that wait, in the order in which the queue shows them; their ids."""
    return [say(app, text, f"By {text}"[:40], **fields) for text in reversed(texts)][::-1]


def set_statuses(app: App, status: str, *ids: int) -> None:
    for each in ids:
        inside.set_status(app, each, status)


def texts(page: Page) -> list[str]:
    return page.locator("main article .body").all_inner_texts()


def expect_texts(page: Page, *texts: str) -> None:
    """These comments are shown, from top to bottom."""
    expect(page.locator("main article .body")).to_have_text(list(texts))


def comment_row(page: Page, text: str) -> Locator:
    return page.get_by_role("article").filter(has_text=text)


def list_row(page: Page, text: str) -> Locator:
    """A row of a list that is not of comments."""
    return page.locator("main li.line").filter(has_text=text)


def text_of_empty_list(page: Page, words: str) -> Locator:
    """What a list says when there is nothing in it."""
    return page.locator("main .none").filter(has_text=words)


def notes(page: Page, text: str) -> Locator:
    """The small words in a row of a list."""
    return list_row(page, text).locator(".dots > span")


def current_comment(page: Page) -> Locator:
    """The comment that keys act on."""
    return page.locator("article[aria-current]")


def heading(page: Page, name: str) -> Locator:
    return page.get_by_role("heading", name=name, level=1, exact=True)


def alert(page: Page | Locator) -> Locator:
    return page.get_by_role("alert")


def box(page: Page) -> Locator:
    return page.get_by_role("textbox")


def search(page: Page) -> Locator:
    return page.get_by_role("searchbox", name="Search")


def expect_notice(page: Page, text: str | re.Pattern[str]) -> None:
    """The bar says so."""
    expect(page.locator(".bars [role=status] > span")).to_have_text(text)


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog")


def sign_in_at_admin(page: Page, password: str = PASSWORD, email: str = MAIL) -> None:
    keyboard(page.get_by_label("Email"), email)
    keyboard(page.get_by_label("Password"), password)
    keyboard(button(page, "Sign in"))


Act = Callable[[Page, str], None]


def by_mouse(page: Page, word: str) -> None:
    bars = page.locator(".bars")
    if word == "Undo":
        expect(button(bars, word)).to_be_visible()
    chosen = button(bars, word)
    (chosen if chosen.count() else button(current_comment(page), word)).click()


def by_keys(page: Page, word: str) -> None:
    if word == "Undo":
        expect(button(page.locator(".bars"), word)).to_be_visible()
    page.keyboard.press(KEYS[word])


BOTH: tuple[Act, Act] = (by_mouse, by_keys)


def refuse(page: Page, path: str | re.Pattern[str], status: int, code: str, **more: str) -> None:
    """What is asked there from now on is refused."""
    answer = {"error": "不行", "code": code}
    page.route(path, lambda route: route.fulfill(status=status, json=answer, headers=more))


# Getting in


def test_from_a_real_start_to_a_first_comment(start: Start, browser: Browser) -> None:
    running = start(moderation={"hold": "all"}, site={"origins": BLOG})
    (link,) = until(lambda: re.findall(r"\S+/admin#link=[0-9a-f]{32}(?= )", running.output))
    comment = {"page_url": "/a/", "nickname": "Ann", "content": "First!", "captcha_token": "x"}
    running.ask("POST", "/comments", f"Origin: {BLOG}", body=comment)
    faults: list[str] = []
    with closing(browser.new_context(locale="en-US")) as context:
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(link)
        for name, value in {"Email": MAIL, "Name": "江屿", "Password": PASSWORD}.items():
            page.get_by_label(name).fill(value)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        tag = f'<script src="{running.address}/embed.js" async></script>'
        expect(page.locator("pre")).to_have_text(tag)
        page.get_by_role("link", name="Go to the queue").click()
        expect_texts(page, "First!")
        page.keyboard.press("a")
        expect_notice(page, "Approved.")
        expect(text_of_empty_list(page, "All done. Nothing is waiting.")).to_be_visible()

        def listed() -> list[str]:
            with urllib.request.urlopen(f"{running.address}/comments?url=/a/") as answer:
                return [comment["content"] for comment in json.load(answer)["comments"]]

        assert until(listed) == ["First!"]  # the page did not wait for the service
    assert faults == []


def test_an_admin_link_leaves_the_address_bar_and_the_history_at_once(
    admin_browser: AdminBrowser,
) -> None:
    secret = inside.admin_link(admin_browser.app, MAIL)
    page = admin_browser.new_page(signed=False)
    admin_browser.open_link(page, secret)
    expect(page.get_by_label("Password")).to_be_focused()
    assert page.url == f"{admin_browser.service}/admin"
    assert secret not in page.evaluate("JSON.stringify([history.state, {...localStorage}])")
    page.go_back()
    page.go_forward()
    expect(heading(page, "Sign in")).to_be_visible()
    assert secret not in page.url
    secret = inside.admin_link(admin_browser.app, MAIL)  # one that is opened where the page is open
    page.evaluate("secret => { location.hash = '#link=' + secret }", secret)
    expect(heading(page, "Set a new password")).to_be_visible()
    assert secret not in page.url


def test_an_admin_link_sets_a_new_password_and_the_page_says_what_is_wrong_with_one(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append(REFUSED)
    page = admin_browser.new_page(signed=False)
    admin_browser.open_link(page, inside.admin_link(admin_browser.app, MAIL))
    expect(heading(page, "Set a new password")).to_be_visible()
    expect(page.get_by_text(f"For \u2068{MAIL}\u2069.")).to_be_visible()
    expect(page.locator("form input:visible")).to_have_count(1)
    expect(page.get_by_text("An admin’s password needs at least 8 characters.")).to_be_visible()
    keyboard(page.get_by_label("Password"), "another")
    keyboard(button(page, "Save"))
    expect(alert(page)).to_contain_text("An admin’s password needs at least 8 characters.")
    keyboard(page.get_by_label("Password"), "another one")
    keyboard(button(page, "Save"))
    expect_notice(page, "Your new password is set. Other devices are signed out.")
    expect(heading(page, "Queue")).to_be_visible()
    button(page, "Sign out").click()
    expect_notice(page, "You are signed out, on all devices.")
    for secret in ("0" * 32, "", "<img src=x onerror=alert(1)>"):
        admin_browser.open_link(page, secret)
        expect(heading(page, "This link no longer works")).to_be_visible()
        # A restart prints a link only while there is no admin.
        advice = "Links work once, within an hour. For a new one, run “commentd admin EMAIL”"
        expect(page.get_by_text(advice)).to_be_visible()
    button(page, "Sign in").click()
    sign_in_at_admin(page)
    expect(alert(page)).to_contain_text("Wrong email or password")
    sign_in_at_admin(page, "another one")
    expect(heading(page, "Queue")).to_be_visible()
    admin_browser.open_link(page, "0" * 32)  # who is signed in needs no other link
    expect(heading(page, "This link no longer works")).to_be_visible()
    button(page, "Go to the queue").click()
    expect(heading(page, "Queue")).to_be_visible()


def test_an_admin_link_makes_an_admin_and_is_tried_again_after_a_network_failure(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append(UNREACHED)
    account(admin_browser.app, "ann@blog.example", "Ann", role="user")
    page = admin_browser.new_page(signed=False)
    page.route("**/admin/link", lambda route: route.abort())
    admin_browser.open_link(page, inside.admin_link(admin_browser.app, "new@blog.example"))
    expect(page.get_by_text("The service can’t be reached")).to_be_visible()
    page.unroute("**/admin/link")
    button(page, "Try again").click()
    expect(page.get_by_label("Name")).to_be_focused()
    expect(page.get_by_label("Email")).to_have_count(0)
    admin_browser.open_link(page, inside.admin_link(admin_browser.app, "ann@blog.example"))
    expect(page.get_by_text("For \u2068ann@blog.example\u2069.")).to_be_visible()
    page.get_by_label("Password").fill("another one")
    button(page, "Begin").click()
    expect(heading(page, "You are the admin")).to_be_focused()


@with_settings(captcha_provider="turnstile", captcha_site_key="k", captcha_secret="s")
def test_an_admin_signs_in_with_our_own_proof_of_work_whatever_readers_solve(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append(REFUSED)
    account(admin_browser.app, "ann@blog.example", "Ann", role="user")
    page = admin_browser.open(signed=False)
    expect(page.get_by_label("Email")).to_be_focused()
    sent = requests_of(page, "/admin/login")
    refused = "Wrong email or password, or not an admin account."
    for password, email in (("not mine", MAIL), (PASSWORD, "ann@blog.example")):
        with page.expect_response("**/admin/login"):
            sign_in_at_admin(page, password, email)
        expect(alert(page)).to_have_text(refused)
    sign_in_at_admin(page)
    expect(heading(page, "Queue")).to_be_focused()
    forms = [request.post_data_json or {} for request in sent]
    hashes = [hashlib.sha256(w.encode()).hexdigest() for w in ("not mine", PASSWORD, PASSWORD)]
    assert [form["password"] for form in forms] == hashes
    assert len({form["captcha_token"] for form in forms}) == 3
    page.reload()
    expect(heading(page, "Queue")).to_be_visible()
    assert PASSWORD not in page.evaluate(STORED)


def test_signing_out_ends_the_token_and_leaves_nothing_behind(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(UNREACHED)
    add_waiting(admin_browser.app, "Hers.")
    page = admin_browser.open()
    page.route("**/admin/logout", lambda route: route.abort())
    token = page.evaluate(TOKEN)
    button(page, "Sign out").click()
    expect_notice(page, re.compile("You’re signed out on this device only"))
    assert token not in page.evaluate(STORED)
    page.unroute_all()
    sign_in_at_admin(page)
    expect_texts(page, "Hers.")
    token = page.evaluate(TOKEN)
    keyboard(button(page, "Sign out"))
    expect_notice(page, "You are signed out, on all devices.")
    expect(page.get_by_label("Password")).to_be_focused()
    assert token not in page.evaluate(STORED)
    assert texts(page) == []
    expect(page.get_by_role("navigation")).to_have_count(0)
    page.reload()
    expect(page.get_by_label("Email")).to_have_value(MAIL)


def test_a_draft_outlives_a_sign_in_that_ended_and_a_former_admin_sees_nothing(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append(REFUSED)
    add_waiting(admin_browser.app, "Hers.")
    page = admin_browser.open()
    again = page.get_by_role("dialog", name="Please sign in again")
    page.keyboard.press("r")
    page.keyboard.insert_text("A long thought.")
    admin_browser.end_logins()
    page.keyboard.press("Control+Enter")
    expect(again).to_be_visible()
    page.keyboard.press("Escape")
    expect(heading(page, "Sign in")).to_be_visible()
    sign_in_at_admin(page)
    expect_texts(page, "Hers.")
    page.reload()
    expect(current_comment(page)).to_be_visible()
    page.keyboard.press("r")
    expect(box(page)).to_have_value("A long thought.")
    admin_browser.end_logins()
    mouse(button(comment_row(page, "Hers."), "Approve and reply"))
    expect(again.get_by_label("Email")).to_have_value(MAIL)
    keyboard(again.get_by_label("Password"), PASSWORD)
    keyboard(button(again, "Sign in"))
    expect_notice(page, "Approved. Replied.")
    written = "SELECT nickname, content, status FROM comment ORDER BY id"
    both = [("By Hers.", "Hers.", "visible"), ("江屿", "A long thought.", "visible")]
    assert sql(admin_browser.app, written) == both
    sql(admin_browser.app, "UPDATE account SET role = 'user'")
    page.evaluate("location.hash = '#comments'")
    expect(again).to_be_visible()
    assert texts(page) == []
    again.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(alert(again)).to_contain_text("not an admin")
    button(again, "Cancel").click()
    expect(heading(page, "Sign in")).to_be_visible()


def test_a_session_that_ends_before_the_filters_state_comes_is_no_fault(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append(REFUSED)
    add_waiting(admin_browser.app, "One.", "Two.")
    page = admin_browser.open()

    def end_and_continue(route: Route) -> None:
        admin_browser.end_logins()
        route.continue_()

    page.route("**/admin/comments?limit=1", end_and_continue)
    with page.expect_response("**/admin/comments?limit=1") as response:
        by_keys(page, "Approve")
    assert response.value.status == 401
    expect_texts(page, "Two.")


# The queue


def test_comments_are_moderated_one_after_the_other_and_each_is_undone(
    admin_browser: AdminBrowser,
) -> None:
    add_waiting(admin_browser.app, "One.", "Two.", "Three.")
    page = admin_browser.open()
    expect(page).to_have_title("(3) Queue · commentd")
    expect(current_comment(page)).to_contain_text("One.")
    for word in STATUS:
        for act in BOTH:
            act(page, word)
            expect_texts(page, "Two.", "Three.")
            expect(comment_row(page, "Two.")).to_be_focused()
            expect_notice(page, TOLD[word])
            expect(page).to_have_title("(2) Queue · commentd")
            act(page, "Undo")
            expect_notice(page, "Undone.")
            expect_texts(page, "One.", "Two.", "Three.")
            expect(comment_row(page, "One.")).to_be_focused()
            expect(page).to_have_title("(3) Queue · commentd")
            admin_browser.expect_states("waiting")
    page.keyboard.down("a")
    page.keyboard.down("a")  # a repeat, as of a key that is held
    page.keyboard.up("a")
    expect_texts(page, "Two.", "Three.")
    by_keys(page, "Spam")
    expect_texts(page, "Three.")
    by_mouse(page, "Delete")
    expect(text_of_empty_list(page, "All done. Nothing is waiting.")).to_be_focused()
    expect(page).to_have_title("Queue · commentd")
    assert page.locator("[data-count=waiting], [data-count=open]").all_inner_texts() == ["", ""]
    admin_browser.expect_states(**{"One.": "visible", "Two.": "spam", "Three.": "deleted"})
    gone = "document.querySelector('.bars [role=status]').replaceChildren()"  # the message
    page.evaluate(gone)
    page.keyboard.press("u")
    expect_texts(page, "Three.")
    admin_browser.expect_states(**{"Three.": "waiting"})
    by_keys(page, "Delete")
    go(page, "queue?status=spam").evaluate(gone)
    page.keyboard.press("u")
    expect(page.locator(".bars [role=status]")).to_be_empty()
    admin_browser.expect_states(**{"Three.": "deleted"})


def test_several_comments_are_selected_moderated_at_once_and_undone(
    admin_browser: AdminBrowser,
) -> None:
    add_waiting(admin_browser.app, *"ABCDE")
    page = admin_browser.open()
    for key, name in zip("jjjjjkj", "BCDEEDE", strict=True):  # the last leads no further
        page.keyboard.press(key)
        expect(comment_row(page, f"By {name}")).to_be_focused()
    page.keyboard.press("x")
    for name in "BD":
        page.get_by_label(f"Select: By {name}").check()
    bar = page.get_by_role("region", name="Select")
    expect(bar).to_contain_text("3 selected")
    by_mouse(page, "Spam")
    expect_texts(page, "A", "C")
    expect(comment_row(page, "By C")).to_be_focused()
    expect(bar).to_be_empty()
    expect_notice(page, "3 comments are spam.")
    expect(page).to_have_title("(2) Queue · commentd")
    admin_browser.expected.append(UNREACHED)
    page.route("**/admin/comments", lambda route: route.abort())
    by_mouse(page, "Undo")
    expect_notice(page, re.compile("can’t be reached"))
    page.unroute("**/admin/comments")
    by_keys(page, "Undo")
    expect_notice(page, "Undone.")
    expect_texts(page, *"ABCDE")
    admin_browser.expect_states("waiting")
    page.keyboard.press("x")
    mouse(button(page, "Select all"))
    expect(bar).to_contain_text("5 selected")
    mouse(button(page, "Clear"))
    expect(bar).to_be_empty()


@pytest.mark.long
def test_more_than_a_hundred_comments_are_moderated_at_once_and_the_next_are_loaded(
    admin_browser: AdminBrowser,
) -> None:
    add_waiting(admin_browser.app, *[f"No. {n}." for n in range(105)])
    page = admin_browser.open()
    page.get_by_label("Select: By No. 29.").focus()
    reach(button(page, "Show more"))
    page.keyboard.press("Enter")
    expect(comment_row(page, "No. 30.")).to_be_focused()
    for shown in (90, 105):
        button(page, "Show more").click()
        expect(page.get_by_role("article")).to_have_count(shown)
    expect(button(page, "Show more")).to_have_count(0)
    page.keyboard.press("x")
    button(page, "Select all").click()
    page.keyboard.press("d")
    expect_notice(page, "105 comments deleted.")
    expect(text_of_empty_list(page, "All done.")).to_be_focused()
    page.keyboard.press("u")
    expect_notice(page, "Undone.")
    admin_browser.expect_states("waiting")
    expect(page).to_have_title("(105) Queue · commentd")


def test_a_reply_in_place_approves_and_undo_takes_back_both(admin_browser: AdminBrowser) -> None:
    add_waiting(admin_browser.app, "One.", "Two.")
    page = admin_browser.open()
    page.keyboard.press("r")
    page.keyboard.insert_text("Half a thought")
    page.keyboard.press("Escape")  # a draft is kept
    ways: list[Callable[[], None]] = [
        lambda: page.keyboard.press("Escape"),
        lambda: button(page, "Cancel").click(),
    ]
    for close in ways:
        expect(comment_row(page, "One.")).to_be_focused()
        expect(box(page)).to_have_count(0)
        keyboard(button(current_comment(page), "Reply"))
        expect(box(page)).to_have_value("Half a thought")
        close()
    for number, send in enumerate(("Control+Enter", "Approve and reply")):
        page.keyboard.press("r")
        expect(page.get_by_role("textbox", name="Reply to")).to_be_focused()
        page.keyboard.press("Control+a")
        page.keyboard.type(text := f"asd jk u ?/{number}")
        expect(box(page)).to_have_value(text)
        button(page, send).click() if number else page.keyboard.press(send)
        expect_notice(page, "Approved. Replied.")
        expect_texts(page, "Two.")
        expect(comment_row(page, "Two.")).to_be_focused()
        expect(page).to_have_title("(1) Queue · commentd")
        admin_browser.expect_states(**{"One.": "visible", text: "visible", "Two.": "waiting"})
        BOTH[number](page, "Undo")
        expect_notice(page, "Undone.")
        expect_texts(page, "One.", "Two.")
        admin_browser.expect_states(**{"One.": "waiting", text: "deleted", "Two.": "waiting"})


def test_a_comment_is_edited_in_place(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(REFUSED)
    add_waiting(admin_browser.app, "A tpyo.", website="https://old.example/")
    page = admin_browser.open()
    form = page.locator("article form")
    text, name, website = (form.get_by_label(each) for each in ("Text", "Name", "Website"))
    page.keyboard.press("e")
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    mouse(button(current_comment(page), "Edit"))
    expect(text).to_be_focused()
    expect(website).to_have_value("https://old.example/")
    name.fill("\u202e")
    page.keyboard.press("Escape")  # would lose what was typed
    button(page, "Save").click()
    hidden = "Please choose another name: up to 64 characters, with no hidden ones inside."
    expect(alert(page)).to_have_text(hidden)
    name.fill("Ann")
    text.fill("x" * 2001)
    button(page, "Save").click()
    expect(alert(page)).to_have_text("This is too long.")
    expect(text).to_have_value("x" * 2001)
    assert admin_browser.states() == {"A tpyo.": "waiting"}
    text.fill("A **typo**.")
    website.fill("")
    page.keyboard.press("Enter")
    expect_notice(page, "Saved.")
    expect(page.get_by_role("article", name="Comment by \u2068Ann\u2069")).to_be_focused()
    expect(page.locator(".body strong")).to_have_text("typo")
    expect(current_comment(page)).to_contain_text("edited")
    kept = sql(admin_browser.app, "SELECT nickname, content, website, status FROM comment")
    assert kept == [("Ann", "A **typo**.", "", "waiting")]


def test_an_author_is_blocked_by_what_the_comment_tells(admin_browser: AdminBrowser) -> None:
    fields: Any = {"email": "eve@evil.example", "website": "https://www.spam.example/x"}
    say(admin_browser.app, "Next.")
    say(
        admin_browser.app,
        "Buy https://linked.example/a and https://www.linked.example/b !",
        **fields,
    )
    page = admin_browser.open()
    blocks = "SELECT value, (expires_at - created_at) / 86400 FROM block"
    keyboard(button(current_comment(page), "Block"))
    dialog(page).get_by_label("IP address").check()
    keyboard(button(dialog(page), "Block"))
    expect_notice(page, "Blocked: \u2068223.5.5.5\u2069. Marked as spam.")
    expect_texts(page, "Next.")
    expect(comment_row(page, "Next.")).to_be_focused()
    assert sql(admin_browser.app, blocks) == [("223.5.5.5", 30)]
    page.keyboard.press("u")
    expect_notice(page, "Undone.")
    expect(comment_row(page, "Buy")).to_be_focused()
    admin_browser.expect_states("waiting")
    for kind, value in {
        "Email": "eve@evil.example",
        "Domain spam.example": "spam.example",
        "Domain linked.example": "linked.example",
    }.items():
        button(current_comment(page), "Block").click()
        expect(dialog(page).get_by_label(re.compile("^Domain"))).to_have_count(2)
        dialog(page).get_by_label(re.compile(f"^{kind}")).check()
        dialog(page).get_by_label("forever").check()
        dialog(page).get_by_label("Mark this comment as spam").uncheck()
        button(dialog(page), "Block").click()
        expect(dialog(page)).to_have_count(0)
        expect_notice(page, f"Blocked: \u2068{value}\u2069.")
        assert sql(admin_browser.app, blocks) == [(value, None)]
        page.keyboard.press("u")
        expect_notice(page, "Undone.")
        assert sql(admin_browser.app, blocks) == []


def by_mouse_at(page: Page, word: str) -> None:
    button(current_comment(page), word).click()


KEYS_OF_MORE = {"Trust author": "t", "Stop trusting": "t", "Block": "b"}
KEYS_OF_MORE |= {"Close page": "c", "Reopen page": "c"}


def by_keys_at(page: Page, word: str) -> None:
    expect(button(current_comment(page), word)).to_be_visible()
    page.keyboard.press(KEYS_OF_MORE[word])


with_both = pytest.mark.parametrize("act", [by_mouse_at, by_keys_at], ids=["mouse", "keys"])


@with_both
def test_an_author_is_blocked_with_all_comments_by_one_press_and_a_yes(
    admin_browser: AdminBrowser, act: Act
) -> None:
    app = admin_browser.app
    texts = {"One.": "waiting", "Two.": "visible", "Three.": "waiting", "Other.": "waiting"}
    for text in texts:
        say(app, text, "Other" if text == "Other." else "Eve", email=f"{text[:2]}@evil.example")
    set_statuses(app, "visible", 2)
    page = admin_browser.open()
    expect_texts(page, "Other.", "Three.", "One.")
    page.keyboard.press("j")
    act(page, "Block")
    expect(dialog(page).get_by_label("The author and all their comments: 3")).to_be_checked()
    expect(dialog(page)).to_contain_text("th@evil.example, 203.0.113.7")
    expect(dialog(page).get_by_label("forever")).to_be_hidden()
    page.keyboard.press("Enter")
    expect_texts(page, "Other.")
    said = "3 comments are spam. Blocked: \u2068th@evil.example, 203.0.113.7\u2069."
    expect_notice(page, said)
    blocked = dict.fromkeys(texts, "spam") | {"Other.": "waiting"}
    assert admin_browser.states() == blocked
    page.keyboard.press("u")
    expect_texts(page, "Other.", "Three.", "One.")
    expect_notice(page, "Undone.")
    assert admin_browser.states() == texts
    assert sql(app, "SELECT value FROM block") == []


def test_a_blocked_author_is_put_back_from_the_log(admin_browser: AdminBrowser) -> None:
    add_waiting(admin_browser.app, "One.")
    page = admin_browser.open()
    page.keyboard.press("b")
    expect(dialog(page)).to_be_visible()
    page.keyboard.press("Enter")
    expect_notice(page, re.compile("^Marked as spam."))
    go(page, "log")
    keyboard(button(list_row(page, " blocked the author:"), "Undo"))
    expect(list_row(page, "unblocked the author:")).to_be_visible()
    expect(button(page.locator("main"), "Undo")).to_have_count(0)
    assert admin_browser.states() == {"One.": "waiting"}


@with_both
def test_an_author_is_trusted_and_that_is_undone(admin_browser: AdminBrowser, act: Act) -> None:
    app = admin_browser.app
    for text in ("One.", "Two."):
        say(app, text, "Ann", email="ann@example.com")
    say(app, "No email.", "Bea")
    page = admin_browser.open()
    expect(button(current_comment(page), "Trust author")).to_have_count(0)
    page.keyboard.press("t")  # it does nothing: anybody can type the name
    page.keyboard.press("j")
    act(page, "Trust author")
    expect_texts(page, "No email.", "One.")
    expect_notice(page, re.compile("^Comments with this email address no longer wait once"))
    expect(comment_row(page, "One.").get_by_text("trusted")).to_be_visible()
    expect(page.locator("nav [data-count=waiting]")).to_have_text("2")
    assert len(sql(app, "SELECT * FROM trusted")) == 1
    page.keyboard.press("u")
    expect_notice(page, "Undone.")
    expect_texts(page, "No email.", "Two.", "One.")
    admin_browser.expect_states("waiting")
    assert sql(app, "SELECT * FROM trusted") == []
    act(page, "Trust author")
    expect_texts(page, "No email.", "One.")
    act(page, "Stop trusting")
    expect_notice(page, "Comments by this author wait as before.")
    assert sql(app, "SELECT * FROM trusted") == []


@with_both
def test_the_page_of_a_comment_is_closed_and_opened_again(
    admin_browser: AdminBrowser, act: Act
) -> None:
    say(admin_browser.app, "Elsewhere.", page="/else/")
    add_waiting(admin_browser.app, "One.", "Two.", page="/a/")
    closed = "SELECT page_url FROM page WHERE closed"
    page = admin_browser.open()
    act(page, "Close page")
    expect_notice(page, "The page is closed: it takes no new comments.")
    expect(page.get_by_text("(closed)")).to_have_count(2)
    expect(current_comment(page)).to_be_focused()
    assert sql(admin_browser.app, closed) == [("/a/",)]
    page.keyboard.press("u")
    expect(page.get_by_text("(closed)")).to_have_count(0)
    assert sql(admin_browser.app, closed) == []
    act(page, "Close page")
    act(page, "Reopen page")
    expect_notice(page, "The page takes comments again.")
    assert sql(admin_browser.app, closed) == []


def test_a_moderator_has_the_queue_and_nothing_else(admin_browser: AdminBrowser) -> None:
    app = admin_browser.app
    account(app, "mo@blog.example", "Mo", "moderator")
    add_waiting(app, "One.", "Two.", email="eve@evil.example")
    page = admin_browser.new_page(signed=False)
    page.goto(f"{admin_browser.service}/admin#settings")
    wait_for_view(page)
    sign_in_at_admin(page, email="mo@blog.example")
    expect_texts(page, "One.", "Two.")
    expect(page.locator("header nav a")).to_have_text([re.compile("^Queue")])
    names = ["Approve", "Spam", "Delete", "Close page"]
    expect(button(current_comment(page), names[0])).to_be_visible()
    shown = current_comment(page).get_by_role("button").all_inner_texts()
    assert sorted(shown) == sorted(names)
    assert "evil.example" not in page.locator("main").inner_text()
    for key in ("t", "b", "r", "e", "/"):
        page.keyboard.press(key)
    expect(dialog(page)).to_have_count(0)
    page.keyboard.press("a")
    expect_notice(page, "Approved.")
    page.keyboard.press("u")
    expect_notice(page, "Undone.")
    page.keyboard.press("c")
    expect_notice(page, re.compile("^The page is closed"))
    page.keyboard.press("?")
    expect(dialog(page)).to_contain_text("Close page")
    assert "Trust author" not in dialog(page).inner_text()
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '#users'")
    expect(heading(page, "Queue")).to_be_visible()


def test_undoing_a_block_that_failed_half_way_is_tried_again(admin_browser: AdminBrowser) -> None:
    admin_browser.expected += [UNREACHED, REFUSED]
    add_waiting(admin_browser.app, "One.", "Two.")
    page = admin_browser.open()
    button(current_comment(page), "Block").click()
    dialog(page).get_by_label("IP address").check()
    button(dialog(page), "Block").click()
    expect_notice(page, re.compile("Marked as spam.$"))
    admin_browser.expect_states(**{"One.": "spam"})
    page.route("**/admin/comments", lambda route: route.abort())
    page.keyboard.press("u")
    expect_notice(page, re.compile("can’t be reached"))
    assert sql(admin_browser.app, "SELECT value FROM block") == []
    page.unroute("**/admin/comments")
    page.keyboard.press("u")
    expect_notice(page, "Undone.")
    admin_browser.expect_states("waiting")
    expect_texts(page, "One.", "Two.")


def test_a_button_does_nothing_more_while_its_request_runs(admin_browser: AdminBrowser) -> None:
    add_pages(admin_browser.app)
    page = admin_browser.open("pages")
    sent = requests_of(page, "/admin/pages/1")
    with requests_held(page, "**/admin/pages/*"):
        close = button(list_row(page, "/a/"), "Close")
        close.dblclick()
        expect(close).to_have_attribute("aria-busy", "true")
    expect(button(list_row(page, "/a/"), "Reopen")).to_be_visible()
    assert [request.method for request in sent] == ["PATCH"]
    with requests_held(page, "**/admin/logout"):
        button(page, "Sign out").dblclick()
    expect(heading(page, "Sign in")).to_be_visible()
    assert len([url for url in admin_browser.asked if url.endswith("/admin/logout")]) == 1


def submit_button(page: Page | Locator, name: str) -> Locator:
    return page.locator("form").get_by_role("button", name=name, exact=True)


def test_each_button_that_asks_the_service_is_busy_and_asks_once(
    admin_browser: AdminBrowser,
) -> None:
    set_statuses(admin_browser.app, "spam", *add_waiting(admin_browser.app, *map(str, range(60))))
    add_waiting(admin_browser.app, "One.")
    page = admin_browser.open("queue?status=spam")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.method} {request.url}"))

    def press_twice(pressed: Locator, path: str, then: Locator) -> None:
        sent.clear()
        with requests_held(page, f"**/admin/{path}"):
            with page.expect_request(f"**/admin/{path}"):
                pressed.dblclick()
            expect(pressed).to_have_attribute("aria-busy", "true")
        expect(then).to_be_visible()
        method = "GET" if "?" in path else "POST"
        asked = [each for each in sent if each.startswith(method) and "/admin/" in each]
        assert len(asked) == 1, asked

    press_twice(button(page, "Show more"), "comments?*", comment_row(page, "59"))
    go(page, "queue")
    page.keyboard.press("r")
    box(page).fill("Thanks.")
    replied = page.locator(".bars [role=status] > span").filter(has_text="Replied.")
    press_twice(submit_button(page, "Approve and reply"), "reply", replied)
    go(page, "blocks")
    page.get_by_label("Value").fill("192.0.2.7")
    press_twice(submit_button(page, "Add"), "blocks", list_row(page, "192.0.2.7"))
    go(page, "settings")
    button(page, "Download").click()
    page.get_by_label("Your password").fill(PASSWORD)
    with page.expect_download():
        press_twice(submit_button(page, "Download"), "backup", button(page, "Copy"))


def test_a_comment_that_stays_in_its_list_waits_for_the_service(
    admin_browser: AdminBrowser,
) -> None:
    add_waiting(admin_browser.app, "One.")
    page = admin_browser.open("comments")
    writes = requests_of(page, "/admin/comments")
    with requests_held(page, "**/admin/comments"):
        page.keyboard.press("a")
        expect(button(current_comment(page), "Spam")).to_have_attribute("aria-busy", "true")
        page.keyboard.press("s")
        expect_notice(page, "Approved.")
    expect(button(current_comment(page), "Spam")).to_have_attribute("aria-busy", "false")
    assert [each.method for each in writes if each.method == "POST"] == ["POST"]
    admin_browser.expect_states("visible")


def test_escape_closes_what_is_open(admin_browser: AdminBrowser) -> None:
    add_waiting(admin_browser.app, "One.", "Two.", "Three.")
    page = admin_browser.open()
    bar, message = page.get_by_role("region", name="Select"), page.locator(".bars [role=status]")
    page.keyboard.press("a")
    expect_notice(page, "Approved.")
    page.keyboard.press("x")
    expect(bar).to_contain_text("1 selected")
    page.keyboard.press("r")
    comment_row(page, "Three.").focus()  # outside the form
    form = page.locator("article form")
    expect(form).to_have_count(1)
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    for closed in (bar, message):
        expect(closed).not_to_be_empty()
        page.keyboard.press("Escape")
        expect(closed).to_be_empty()
    page.keyboard.press("u")  # what the message said can still be undone
    expect_notice(page, "Undone.")
    go(page, "comments")
    filters = page.locator("summary", has_text="Filter by")
    keyboard(filters)
    keyboard(page.get_by_label("Author", exact=True), "by t")
    expect(page.get_by_role("article")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(filters).to_be_focused()
    expect(page.get_by_label("Author", exact=True)).to_be_hidden()
    expect(filters).to_have_text("Filter by author, page or date (1)")  # what was typed is not lost


def test_a_message_stays_in_the_section_that_it_is_about(admin_browser: AdminBrowser) -> None:
    add_waiting(admin_browser.app, "One.")
    page = admin_browser.open()
    page.keyboard.press("a")
    expect_notice(page, "Approved.")
    go(page, "pages")
    assert page.locator(".bars [role=status]").inner_text() == ""  # at once


def test_spam_and_deleted_comments_are_put_back(admin_browser: AdminBrowser) -> None:
    ids = add_waiting(admin_browser.app, "A.", "B.", "C.", "D.")
    set_statuses(admin_browser.app, "spam", *ids[:2])
    set_statuses(admin_browser.app, "deleted", *ids[2:])
    page = admin_browser.open()
    expect(text_of_empty_list(page, "All done.")).to_be_visible()
    tabs = page.get_by_role("navigation", name="Status")
    for status, (first, second) in {"spam": ("A.", "B."), "deleted": ("C.", "D.")}.items():
        tabs.get_by_role("link", name=status).click()
        expect_texts(page, first, second)
        expect(tabs.locator("[aria-current]")).to_contain_text("2")
        page.keyboard.press("a")
        expect_notice(page, "Approved.")
        expect_texts(page, second)
        button(current_comment(page), "Put back").click()
        expect_texts(page)
    admin_browser.expect_states("visible")
    page.go_back()
    page.go_back()
    expect(text_of_empty_list(page, "All done.")).to_be_visible()


def test_the_queue_shows_beside_a_comment_all_that_helps_to_decide(
    admin_browser: AdminBrowser,
) -> None:
    first = say(admin_browser.app, "Known.", "陆知微", email="lu@blog.example", page="/a/")
    set_statuses(admin_browser.app, "visible", first)
    fields: Any = {"email": "lu@blog.example", "website": "https://lu.example/"}
    say(admin_browser.app, "A reply.", "陆知微", page="/a/", parent_id=first, **fields)
    sql(admin_browser.app, "INSERT INTO block VALUES (1, 'word', 'casino', '', 0, NULL)")
    say(admin_browser.app, "A casino.", "Mateo Silva", page="https://other.example/z")
    page = admin_browser.open()
    sql(admin_browser.app, "UPDATE comment SET country = 'US' WHERE content = 'Known.'")
    facts = comment_row(page, "A reply.").locator(".facts")
    shown = dict(zip(*(facts.locator(tag).all_inner_texts() for tag in ("dt", "dd")), strict=True))
    expected = {
        "Held because": "Every comment waits",
        "Page": "/a/",
        "Commenter": "1 other comment",
    }
    expected |= {"Place": "China", "IP address": "223.5.5.5", "Email": "lu@blog.example"}
    assert shown == expected | {"Website": "lu.example"}
    links = [a.get_attribute("href") for a in facts.get_by_role("link").all()]
    assert [links[0], links[-1]] == [f"{BLOG}/a/", "https://lu.example/"]
    expect(comment_row(page, "A reply.").locator(".answers")).to_have_text(
        "To \u2068陆知微\u2069: Known."
    )
    go(page, "queue?status=spam")
    for name, words in {
        "held": "Blocked: \u2068casino\u2069",
        "page": "other site",
        "known": "first comment",
        "place": "Brazil",
    }.items():
        expect(comment_row(page, "A casino.").locator(f".facts .{name}")).to_contain_text(words)
    comment_row(page, "A casino.").get_by_role("link", name="200.160.2.3").click()
    expect_texts(page, "A casino.")
    go(page, "comments?status=visible")
    expect(comment_row(page, "Known.").locator(".facts .place")).to_have_text("PlaceUnited States")
    expect(heading(page, "Comments")).to_be_visible()


def test_the_queue_shows_targets_of_links_folds_long_texts_and_keeps_buttons_in_sight(
    admin_browser: AdminBrowser,
) -> None:
    add_waiting(
        admin_browser.app,
        "A long text. " * 80,
        "[blog.example](https://evil.example/x), https://plain.example/ [home](mailto:a@b.cn)",
    )
    page = admin_browser.new_page(**WINDOW)
    page.add_init_script("delete URL.canParse")  # Safari 16
    page.goto(f"{admin_browser.service}/admin")
    links = wait_for_view(page).locator(".body a")
    expect(links).to_have_count(3)
    expect(page.locator(".body a[data-host]")).to_have_text("blog.example")
    expect(links.first).to_have_attribute("data-host", "evil.example")
    shown = links.first.evaluate("e => getComputedStyle(e, '::after').content")
    assert "evil.example" in str(shown) or "data-host" in str(shown)
    for link in links.all():
        assert {"noopener", "noreferrer"} <= {*(link.get_attribute("rel") or "").split()}
    body = comment_row(page, "A long text.").locator(".body")
    folded = body.evaluate("e => e.clientHeight")
    keyboard(button(page, "Read more"))
    expect(comment_row(page, "A long text.")).to_be_focused()
    assert body.evaluate("e => e.clientHeight") > folded
    seen = "e => e.checkVisibility({opacityProperty: true, visibilityProperty: true})"
    actions = page.locator("article .acts button").all()
    assert len(actions) > 10
    assert all(action.evaluate(seen) for action in actions)


def test_keyboard_shortcuts_act_only_in_the_queue_and_are_turned_off_in_their_list(
    admin_browser: AdminBrowser,
) -> None:
    add_waiting(admin_browser.app, "One.", "Two.")
    page = admin_browser.open()
    writes = requests_of(page, "/admin/comments")
    for combination in ("Control+s", "Alt+a", "Meta+d", "Control+u", "A"):
        page.keyboard.press(combination)
    page.keyboard.press("e")
    page.locator("article form [name=nickname]").focus()
    page.keyboard.type("asdxjkru")
    button(page, "Cancel").click()
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    assert "".join(keys.locator("kbd").all_inner_texts()) == "jkasdretbcux/?"
    page.keyboard.type("asdr")
    page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    keyboard(button(page, "Keyboard shortcuts"))
    keys.get_by_label("Use these keys").uncheck()
    keyboard(button(keys, "Done"))
    expect(keys).to_have_count(0)
    page.keyboard.press("a")
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    expect_texts(page, "One.", "Two.")
    assert [each.method for each in writes if each.method != "GET"] == []


def test_quick_keys_on_a_slow_network_lose_nothing(admin_browser: AdminBrowser) -> None:
    add_waiting(admin_browser.app, *"ABCDE")
    page = admin_browser.open()
    with requests_held(page, "**/admin/comments"):
        page.keyboard.press("s")
        by_keys(page, "Undo")  # before the response came
        expect_notice(page, "One moment…")
    expect_notice(page, "Undone.")
    expect_texts(page, *"ABCDE")
    admin_browser.expect_states("waiting")
    with requests_held(page, "**/admin/comments"):
        for key in "asdas":
            page.keyboard.press(key)
        expect(text_of_empty_list(page, "All done.")).to_be_focused()
    expect_notice(page, "Marked as spam.")
    admin_browser.expect_states(A="visible", B="spam", C="deleted", D="visible", E="spam")
    expect(page).to_have_title("Queue · commentd")


# Reports and the spam filter

TAB = "main nav a"


def add_reports(app: App, comment_id: int, *reasons: str) -> None:
    """Each reason comes from another reader."""
    for reason in reasons:
        client = TestApp(app, {"REMOTE_ADDR": f"198.51.100.{reports(app) + 1}"})
        client.post_json(f"/comments/{comment_id}/report", {"reason": reason})


def reports(app: App) -> int:
    return int(sql(app, "SELECT count(*) FROM report")[0][0])


def click(app: App, status: str, *ids: int) -> None:
    """Moderate comments as the owner's clicks do."""
    client = TestApp(app)
    client.authorization = ("Bearer", inside.token_of(app, MAIL, "admin"))
    client.post_json("/admin/comments", {"ids": list(ids), "status": status})


def teach_filter(app: App) -> None:
    """Ten comments of either kind, about backups and about casinos."""
    good = [say(app, f"Backup of SQLite {n}?", f"Reader {n}") for n in range(10)]
    link = "Casino bonus 加微信 [a{0}](https://casino.example/{0})"
    bad = [say(app, link.format(n), f"Bot {n}") for n in range(10)]
    click(app, "visible", *good)
    click(app, "spam", *bad)


@pytest.fixture
def reported_ids(admin_browser: AdminBrowser) -> list[int]:
    """Three visible comments. Readers have reported the first two."""
    ids = add_waiting(admin_browser.app, "Rude.", "An advert.", "Fine.")
    set_statuses(admin_browser.app, "visible", *ids)
    add_reports(admin_browser.app, ids[0], "Insults", "insults me", "")
    add_reports(admin_browser.app, ids[1], "Advert")
    return ids


def tabs(page: Page) -> list[str]:
    """The names of the visible tabs of the queue."""
    return [tab.inner_text().split()[0] for tab in page.locator(TAB).all() if tab.is_visible()]


def expect_reported(page: Page, number: str) -> None:
    expect(page.locator(TAB, has_text="Reported")).to_have_text(f"Reported{number}")


def test_an_empty_queue_leads_to_reported_comments_with_counts_and_reasons(
    admin_browser: AdminBrowser,
) -> None:
    rude, advert = add_waiting(admin_browser.app, "Rude.", "An advert.")
    set_statuses(admin_browser.app, "visible", rude, advert)
    page = admin_browser.open()
    assert tabs(page) == ["Waiting", "Spam", "Deleted"]
    add_reports(admin_browser.app, rude, "Insults", "insults me", "", "Insults")
    hostile = ["<img src=x onerror=alert(1)>", "__proto__", "\u202egnp.exe \u2066", "字" * 500]
    add_reports(admin_browser.app, advert, *hostile, "Twice", "Twice")
    page.set_viewport_size({"width": 320, "height": 640})
    page.reload()
    wait_for_view(page)
    assert tabs(page) == ["Waiting", "Reported", "Spam", "Deleted"]
    expect(page.locator("header [href='#queue']")).to_have_text("Queue2")
    expect(page).to_have_title("(2) Queue · commentd")
    expect_reported(page, "2")
    expect(text_of_empty_list(page, "All done.")).to_be_visible()
    keyboard(page.get_by_role("link", name="2 comments were reported."))
    expect_texts(page, "Rude.", "An advert.")
    first, second = (
        comment_row(page, text).locator(".reports") for text in ("Rude.", "An advert.")
    )
    expect(first).to_contain_text("Reported by 4 readers")
    expect(first.locator("li")).to_have_text(["Insults (2 times)", "insults me"])
    expect(comment_row(page, "Rude.").locator("dt", has_text="Held because")).to_have_count(0)
    reasons = second.locator("li")
    expect(reasons.filter(visible=True)).to_have_count(3)
    expect(reasons.first).to_have_text("Twice (2 times)")
    mouse(page.get_by_text("2 more reasons"))
    expect(reasons.filter(visible=True)).to_have_count(5)
    assert {*reasons.all_text_contents()} == {*hostile, "Twice (2 times)"}
    assert second.locator("img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_a_reported_comment_is_hidden_shown_again_and_kept(
    admin_browser: AdminBrowser, reported_ids: list[int]
) -> None:
    admin_browser.expected.append(REFUSED)
    page = admin_browser.open()
    keyboard(page.locator(TAB, has_text="Reported"))
    expect(current_comment(page).locator(".body")).to_have_text("Rude.")
    refuse(page, "**/admin/comments", 503, "storage")
    button(current_comment(page), "Keep").click()
    expect_notice(page, "The service is busy. Please try again in a moment.")
    page.unroute_all()
    expect_texts(page, "Rude.", "An advert.")
    expect(comment_row(page, "Rude.")).to_contain_text("Reported by 3 readers")
    expect_reported(page, "2")
    by_mouse(page, "Spam")
    expect_notice(page, "Marked as spam.")
    expect_texts(page, "An advert.")
    admin_browser.expect_states(**{"Rude.": "spam"})
    expect_reported(page, "1")
    by_keys(page, "Undo")
    expect_notice(page, "Undone.")
    expect_texts(page, "Rude.", "An advert.")
    admin_browser.expect_states("visible")
    # Moderation ends the reports of a comment. Undoing it does not bring them back.
    expect(comment_row(page, "Rude.")).not_to_contain_text("Reported by")
    expect_reported(page, "1")
    page.reload()
    expect_texts(page, "An advert.")
    button(current_comment(page), "Reply").click()  # a reply keeps the comment
    keyboard(page.get_by_label("Reply to"), "Please stay calm.")
    keyboard(button(page, "Send"))
    expect_notice(page, "Replied.")
    expect(text_of_empty_list(page, "No open reports.")).to_be_visible()
    until(lambda: reports(admin_browser.app) == 0)
    admin_browser.expect_states("visible")
    expect(page).to_have_title("Queue · commentd")
    go(page, "queue")
    assert tabs(page) == ["Waiting", "Spam", "Deleted"]


def test_reported_comments_are_found_and_many_are_kept_at_once(
    admin_browser: AdminBrowser, reported_ids: list[int]
) -> None:
    page = admin_browser.open("comments")
    expect_texts(page, "Rude.", "An advert.", "Fine.")
    assert button(comment_row(page, "Fine."), "Keep").count() == 0
    button(comment_row(page, "Rude."), "Keep").click()
    expect_notice(page, "Kept.")
    expect(comment_row(page, "Rude.").locator(".reports")).to_have_count(0)
    until(lambda: reports(admin_browser.app) == 1)
    add_reports(admin_browser.app, reported_ids[2], "Dull")
    page.get_by_label("Status").select_option("reported")
    expect_texts(page, "An advert.", "Fine.")
    page.get_by_role("checkbox").first.check()
    button(page.locator(".bars"), "Select all").click()
    button(page.locator(".bars"), "Keep").click()
    expect_notice(page, "2 comments kept.")
    until(lambda: reports(admin_browser.app) == 0)
    admin_browser.expect_states("visible")


def test_a_filter_that_has_learnt_little_says_when_it_starts(admin_browser: AdminBrowser) -> None:
    ids = add_waiting(admin_browser.app, "One", "Two", "Three", "Four")
    click(admin_browser.app, "spam", *ids[:2])
    click(admin_browser.app, "visible", ids[2])
    page = admin_browser.open()
    trained = "Spam filter: trained on 2 spam and 1 good comments. It starts at 20"
    expect(page.locator(".filter")).to_contain_text(trained)
    expect(page.locator("main .score")).to_have_count(0)
    page.keyboard.press("a")
    expect(page.locator(".filter")).to_contain_text("2 spam and 2 good comments")
    go(page, "queue?status=spam")
    expect(page.locator(".filter")).to_be_visible()
    go(page, "queue?status=deleted")
    expect(page.locator(".filter")).to_have_count(0)


@with_settings(moderation_hold="none")
def test_a_comment_shows_the_verdict_of_the_filter_and_why(admin_browser: AdminBrowser) -> None:
    teach_filter(admin_browser.app)
    fine, mixed = add_waiting(admin_browser.app, "Backup of SQLite, how?", "加微信问 SQLite")
    set_statuses(admin_browser.app, "waiting", fine, mixed)
    add_waiting(admin_browser.app, "Casino bonus for you https://casino.example")
    page = admin_browser.open(lang="zh-CN")
    score = comment_row(page, "问").locator(".score")
    expect(score).to_contain_text(re.compile(r"拿不准，\W?\d+%\W?：加微信；正常词：没有链接"))
    expect(score.locator("bdi", has_text="微")).to_have_text(["加微信"])
    learnt = "垃圾过滤已从你的操作中学习：垃圾 10 条，正常 10 条。"
    expect(page.locator(".filter")).to_have_text(learnt)
    page.get_by_label("语言").select_option("English")
    wait_for_view(page)
    bad, good = comment_row(page, "Casino"), comment_row(page, "how?")
    expect(bad.locator(".score")).to_contain_text(re.compile(r"Looks like spam, \W?9\d%\W?: "))
    expect(bad.locator(".score")).to_contain_text("casino.example")
    expect(bad.locator(".score")).not_to_contain_text("link:")
    expect(bad.locator(".held")).to_contain_text("Looks like spam you marked")
    expect(bad.locator(".held")).not_to_contain_text("0.")
    sure = re.compile(r"Doesn’t look like spam, \W?\d%\W?: .*sqlite")
    expect(good.locator(".score")).to_contain_text(sure)
    expect(good.locator(".score")).not_to_contain_text("casino")
    assert bad.locator(".score bdi").first.get_attribute("dir") == "auto"
    expect(page.locator(".filter")).to_have_text(
        "Spam filter: trained on 10 spam and 10 good comments."
    )
    button(bad, "Spam").click()
    expect_notice(page, "Marked as spam.")
    go(page, "comments")
    expect(page.locator("main .score")).to_have_count(13)
    button(good, "Approve").click()
    expect(good.locator(".score")).to_have_count(0)


# All comments


def test_comments_are_searched_by_words_and_status_and_back_works(
    admin_browser: AdminBrowser,
) -> None:
    _, red, _ = add_waiting(admin_browser.app, "Green apple.", "Red apple.", "Pear.")
    set_statuses(admin_browser.app, "visible", red)
    page = admin_browser.open()
    page.keyboard.press("/")
    expect(search(page)).to_be_focused()
    page.keyboard.type("apple")
    page.keyboard.press("Enter")
    expect_texts(page, "Green apple.", "Red apple.")
    expect(page.locator("p.sr[role=status]")).to_have_text("2 shown")
    expect(search(page)).to_be_focused()
    page.get_by_label("Status").select_option("visible")
    expect_texts(page, "Red apple.")
    assert page.url.endswith("#comments?q=apple&status=visible")
    page.go_back()
    expect(page.get_by_role("article")).to_have_count(2)
    expect(search(page)).to_have_value("apple")
    keyboard(search(page), "nothing like it")
    page.keyboard.press("Enter")
    expect(text_of_empty_list(page, "No comments found.")).to_be_visible()


def test_the_lists_follow_the_words_typed_in_the_search(admin_browser: AdminBrowser) -> None:
    ids = add_waiting(admin_browser.app, "Green apple.", "Red apple.", "Pear.")
    page = admin_browser.open("comments")
    page.keyboard.press("x")
    page.keyboard.press("/")
    page.keyboard.type("apple")
    expect_texts(page, "Green apple.", "Red apple.")
    expect(search(page)).to_be_focused()
    expect(search(page)).to_have_value("apple")
    expect(page.get_by_role("region", name="Select")).to_be_empty()
    assert page.url.endswith("#comments?q=apple&status=all")
    page.keyboard.press("Home")
    page.keyboard.type("red ")
    expect_texts(page, "Red apple.")
    page.go_back()  # one step for all that was typed
    expect(page.get_by_role("article")).to_have_count(len(ids))
    search(page).fill("pear")
    button(page.get_by_role("search"), "Search").click()
    expect_texts(page, "Pear.")
    add_pages(admin_browser.app)
    go(page, "pages")
    search(page).press_sequentially("/b")
    expect(page.locator("li.line")).to_have_count(1)
    account(admin_browser.app, "ann@example.com", "Ann", "user")
    go(page, "users")
    expect(page.locator("li.line")).to_have_count(2)
    search(page).press_sequentially("ann@")
    expect(page.locator("li.line")).to_have_count(1)


def test_the_words_of_a_search_are_marked_also_in_a_long_text(admin_browser: AdminBrowser) -> None:
    long = "An **apple**, red. " + "Much more. " * 100 + "Apples."
    add_waiting(admin_browser.app, long, "Pear.", "Appleton’s <b>apple</b>")
    page = admin_browser.open("comments?q=%22red.%22+apple")
    expect(page.get_by_role("article")).to_have_count(1)
    marks = page.locator("mark")
    expect(marks).to_have_text(["apple", "red."] * 2 + ["Apple"])  # the first two in the name
    expect(page.locator(".folded")).to_have_count(0)
    search(page).fill("apple")
    expect(page.get_by_role("article")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(page.get_by_role("article")).to_have_count(3)
    expect(marks).to_have_count(0)
    expect(page.locator(".folded")).to_have_count(1)


def test_comments_are_narrowed_by_author_page_and_days(admin_browser: AdminBrowser) -> None:
    first, _, _ = add_waiting(admin_browser.app, "One.", "Two.", "Three.")
    sql(admin_browser.app, "UPDATE comment SET created_at = 1740873600 WHERE id = ?", first)
    say(admin_browser.app, "Four.", "Somebody", page="/elsewhere/")
    page = admin_browser.open("comments")
    expect(page.get_by_role("article")).to_have_count(4)
    filters = page.locator("summary", has_text="Filter by")
    keyboard(filters)
    page.get_by_label("Author", exact=True).fill("by t")
    expect_texts(page, "Two.", "Three.")
    expect(filters).to_have_text("Filter by author, page or date (1)")
    assert page.url.endswith("#comments?status=all&author=by+t")
    page.get_by_label("Author", exact=True).fill("")
    page.get_by_label("Page", exact=True).fill("ELSE")
    expect_texts(page, "Four.")
    page.get_by_label("Page", exact=True).fill("")
    page.get_by_label("To", exact=True).fill("2025-03-02")
    expect_texts(page, "One.")
    page.reload()
    expect_texts(page, "One.")
    expect(page.get_by_label("To", exact=True)).to_have_value("2025-03-02")
    page.get_by_label("From", exact=True).fill("2025-03-03")
    expect(text_of_empty_list(page, "No comments found.")).to_be_visible()


def test_the_list_of_all_comments_shows_what_was_done_with_each(
    admin_browser: AdminBrowser,
) -> None:
    _, two = add_waiting(admin_browser.app, "One.", "Two.")
    set_statuses(admin_browser.app, "visible", two)
    page = admin_browser.open("comments")
    by_keys(page, "Spam")
    expect(button(comment_row(page, "One."), "Put back")).to_be_visible()
    expect(comment_row(page, "Two.")).to_be_focused()
    by_mouse(page, "Undo")
    expect_notice(page, "Undone.")
    expect(button(comment_row(page, "One."), "Approve")).to_have_count(1)
    admin_browser.expect_states(**{"One.": "waiting"})
    keyboard(button(comment_row(page, "Two."), "Pin"))
    expect(comment_row(page, "Two.").get_by_text("Pinned")).to_be_visible()
    expect(comment_row(page, "Two.")).to_be_focused()
    pinned = "SELECT content FROM comment WHERE pinned = 1"
    assert sql(admin_browser.app, pinned) == [("Two.",)]
    keyboard(button(comment_row(page, "Two."), "Unpin"))
    expect(button(comment_row(page, "Two."), "Pin")).to_be_visible()
    assert sql(admin_browser.app, pinned) == []


# Pages


def add_pages(app: App) -> None:
    ids = [say(app, "One.", page="/a/"), say(app, "Two.", page="/b/"), say(app, "3.", page="/b/")]
    set_statuses(app, "visible", *ids)
    sql(app, "UPDATE page SET views = 1286 WHERE page_url = '/a/'")


@with_settings(comments_close_after_days=10)
def test_pages_are_listed_with_their_totals_closed_and_reopened(
    admin_browser: AdminBrowser,
) -> None:
    add_pages(admin_browser.app)
    page = admin_browser.open("pages")
    a, closed = list_row(page, "/a/"), "SELECT page_url FROM page WHERE closed"
    expect(notes(page, "/a/")).to_have_text(["1 comment", "1,286 views", "0 likes"])
    set_statuses(
        admin_browser.app, "visible", say(admin_browser.app, "5.", page="/%E4%BD%A0%E5%A5%BD/")
    )
    page.reload()
    decoded = page.get_by_role("link", name="/你好/", exact=True)
    expect(decoded).to_have_attribute("href", f"{BLOG}/%E4%BD%A0%E5%A5%BD/")
    expect(list_row(page, "/b/").get_by_role("link").first).to_have_attribute("href", f"{BLOG}/b/")
    for name in ("Close", "Edit"):
        expect(button(a, name)).to_have_accessible_description(re.compile("^/a/"))
    mouse(button(a, "Close"))
    expect(button(a, "Reopen")).to_be_focused()
    expect(a.locator(".badge")).to_have_text("closed")
    assert sql(admin_browser.app, closed) == [("/a/",)]
    mouse(button(a, "Reopen"))
    expect(button(a, "Close")).to_be_focused()
    assert sql(admin_browser.app, closed) == []
    sql(admin_browser.app, "UPDATE page SET opened_at = 1 WHERE page_url = '/a/'")
    for order, first in {"views": "/a/", "comments": "/b/"}.items():
        page.get_by_label("Order").select_option(order)
        expect(page.locator("li.line").first).to_contain_text(first)
    expect(a).to_contain_text("closed automatically (age)")
    keyboard(button(a, "Reopen"))
    expect(a).not_to_contain_text("closed")
    search(page).fill("/a")
    page.keyboard.press("Enter")
    expect(page.locator("li.line")).to_have_count(1)
    page.get_by_role("link", name="1 comment").click()
    expect_texts(page, "One.")


def test_a_page_is_deleted_and_its_comments_come_back_when_that_is_undone(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append(UNREACHED)
    add_pages(admin_browser.app)
    one, *_ = [id for (id,) in sql(admin_browser.app, "SELECT id FROM comment ORDER BY id")]
    page = admin_browser.open("pages")
    a = list_row(page, "/a/")
    mouse(button(a, "Delete"))
    expect(dialog(page)).to_contain_text("Its views, likes and followers are lost.")
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    keyboard(button(a, "Delete"))
    keyboard(button(dialog(page), "Delete"))
    expect(a).to_have_count(0)
    expect_notice(page, "Page deleted.")
    status = "SELECT status FROM comment WHERE id = ?"
    assert sql(admin_browser.app, status, one) == [("deleted",)]
    page.route("**/admin/comments", lambda route: route.abort())
    button(page, "Undo").click()
    expect_notice(page, re.compile("can’t be reached"))
    page.unroute("**/admin/comments")
    button(page, "Undo").click()
    expect_notice(page, "Undone.")
    assert sql(admin_browser.app, status, one) == [("visible",)]
    expect(notes(page, "/a/")).to_have_text(["1 comment", "0 views", "0 likes"])


def test_a_page_gets_another_url_and_takes_in_another_when_asked_twice(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append(REFUSED)
    add_pages(admin_browser.app)
    set_statuses(admin_browser.app, "visible", say(admin_browser.app, "Four.", page="/c/"))
    page = admin_browser.open("pages")
    url, exists = dialog(page).get_by_label("URL"), "There is already a page at that URL"
    keyboard(button(list_row(page, "/a/"), "Edit"))
    expect(url).to_have_value("/a/")
    expect(dialog(page)).to_contain_text("The comments of the page move with it.")
    keyboard(url, "/new/")
    keyboard(button(dialog(page), "Save"))
    expect(list_row(page, "/new/").get_by_role("button").first).to_be_focused()
    expect(list_row(page, "/a/")).to_have_count(0)
    urls = "SELECT page_url FROM page ORDER BY 1"
    assert sql(admin_browser.app, urls) == [("/b/",), ("/c/",), ("/new/",)]
    mouse(button(list_row(page, "/new/"), "Edit"))
    for other in ("/b/", "/c/"):  # consent is for one URL
        mouse(url, other)
        with page.expect_response("**/admin/pages/*"):
            page.keyboard.press("Enter")
        expect(alert(dialog(page))).to_contain_text(exists)
    assert len(sql(admin_browser.app, urls)) == 3
    mouse(url, "/b/")
    with page.expect_response("**/admin/pages/*"):
        page.keyboard.press("Enter")
    expect(alert(dialog(page))).to_contain_text(exists)
    mouse(button(dialog(page), "Merge"))
    expect(list_row(page, "/new/")).to_have_count(0)
    expect(list_row(page, "/b/")).to_contain_text("3 comments")
    merged = sql(admin_browser.app, "SELECT page_url, total, views FROM page ORDER BY 1")
    assert merged == [("/b/", 3, 1286), ("/c/", 1, 0)]


LONG_TITLE = "Why the last train of the day is late, and what a timetable knows about it: " * 3


def test_a_page_is_named_by_its_title_with_the_path_beside_it(admin_browser: AdminBrowser) -> None:
    add_pages(admin_browser.app)
    long_path = "/notes/" + "a-very-long-name-" * 12
    say(admin_browser.app, "Four.", page=long_path)
    change = "UPDATE page SET title = ?, title_source = 'comment' WHERE page_url = ?"
    sql(admin_browser.app, change, "<b>One</b>", "/a/")
    sql(admin_browser.app, change, LONG_TITLE, "/b/")
    page = admin_browser.open("pages")
    row = list_row(page, "/a/")
    expect(row.get_by_role("link", name="<b>One</b>")).to_have_attribute("href", f"{BLOG}/a/")
    expect(row.locator(".path")).to_have_text("/a/")
    expect(page.get_by_text(re.compile("^/notes/a-very.{20,50}….*name-$"))).to_be_visible()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for view in ("pages", "comments", "figures"):
            go(page, view)
            title = page.locator(".title bdi", has_text="last train").first
            expect(title).to_be_visible()
            height = title.evaluate(
                "it => it.clientHeight / parseFloat(getComputedStyle(it).lineHeight)"
            )
            assert height < 2.1, (width, view)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (width, view)


def test_the_owner_gives_a_page_a_title(admin_browser: AdminBrowser) -> None:
    add_pages(admin_browser.app)
    page = admin_browser.open("pages")
    keyboard(button(list_row(page, "/a/"), "Edit"))
    keyboard(dialog(page).get_by_label("Title"), "Late trains")
    keyboard(button(dialog(page), "Save"))
    expect(list_row(page, "/a/").get_by_role("link").first).to_have_text("Late trains")
    stored = "SELECT page_url, title, title_source FROM page WHERE title <> ''"
    assert sql(admin_browser.app, stored) == [("/a/", "Late trains", "owner")]
    go(page, "log")
    expect(page.locator("li.line").first).to_contain_text("changed the title: page /a/")
    expect(page.locator("li.line").first).to_contain_text("Late trains")


# Users and blocks


def test_the_picture_of_a_user_is_seen_and_removed(admin_browser: AdminBrowser) -> None:
    app = admin_browser.app
    inside.set_settings(app, comments_pictures=True)
    account(app, "ann@example.com", "Ann", "user")
    file = (ROOT / ".ci" / "admin.png").read_bytes()
    (number,) = [row[0] for row in sql(app, "SELECT id FROM account WHERE nickname = 'Ann'")]
    sql(app, "INSERT INTO picture VALUES ('0a', ?, 'image/png', ?, 1)", number, file)
    sql(app, "UPDATE account SET picture = '0a' WHERE id = ?", number)
    page = admin_browser.open("users")
    ann = list_row(page, "Ann")
    expect(ann.locator("img")).to_have_js_property("complete", True)
    assert ann.locator("img").evaluate("node => node.naturalWidth") > 0
    mouse(button(ann, "Remove the picture"))
    expect(ann.locator("img")).to_have_count(0)
    assert sql(app, "SELECT * FROM picture") == []


def test_users_are_blocked_and_given_a_role(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(REFUSED)
    account(admin_browser.app, "ann@example.com", "Ann", "user")
    page = admin_browser.open("users")
    ann, me = list_row(page, "Ann"), list_row(page, MAIL)
    blocked = "SELECT nickname FROM account WHERE blocked"
    expect(button(me, "Block")).to_have_count(0)
    mouse(button(ann, "Block"))
    expect(ann.locator(".badge")).to_have_text("blocked")
    assert sql(admin_browser.app, blocked) == [("Ann",)]
    mouse(button(ann, "Unblock"))
    expect(ann.locator(".badge")).to_have_count(0)
    assert sql(admin_browser.app, blocked) == []
    own = dialog(page).get_by_label("Your password")
    button(me, "Remove as admin").click()
    own.fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(alert(dialog(page))).to_contain_text("This is the only admin")
    page.keyboard.press("Escape")
    keyboard(button(ann, "Make moderator"))
    keyboard(own, PASSWORD)
    keyboard(button(dialog(page), "Make moderator"))
    expect(ann.locator(".badge")).to_have_text("Moderator")
    keyboard(button(ann, "Remove as moderator"))
    keyboard(own, PASSWORD)
    keyboard(button(dialog(page), "Remove as moderator"))
    expect(ann.locator(".badge")).to_have_count(0)
    expect(dialog(page)).to_have_count(0)
    keyboard(button(ann, "Make admin"))
    keyboard(own, "not mine")
    keyboard(button(dialog(page), "Make admin"))
    expect(alert(dialog(page))).to_have_text("Wrong password.")
    keyboard(own, PASSWORD)
    keyboard(button(dialog(page), "Make admin"))
    expect(ann.locator(".badge")).to_have_text("Admin")
    expect(dialog(page)).to_have_count(0)
    expect(ann.get_by_role("button").first).to_be_focused()
    button(me, "Remove as admin").click()
    own.fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(me.get_by_text("Admin", exact=True)).to_have_count(0)
    page.evaluate("location.hash = '#log'")
    expect(dialog(page)).to_have_attribute("aria-label", "Please sign in again")


def test_a_block_is_added_removed_and_comes_back_as_it_was(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(REFUSED)
    page, kept = (
        admin_browser.open("blocks"),
        "SELECT kind, value, note, expires_at FROM block ORDER BY 2",
    )
    value = page.get_by_label("Value")
    page.get_by_label("Type").select_option("word")
    value.fill(" casino ")
    page.get_by_label("Duration").select_option("7")
    page.get_by_label("Note").fill("Enough.")
    page.keyboard.press("Enter")
    expect(notes(page, "casino")).to_have_text(["ends in 7 days", "Enough."])
    expect_notice(page, re.compile("^Blocked: "))
    page.keyboard.press("u")
    expect(text_of_empty_list(page, "Nothing is blocked.")).to_be_visible()
    for number, ends in enumerate((None, inside.now(admin_browser.app) + 9 * DAY), 1):
        add = "INSERT INTO block VALUES (?, 'word', ?, 'Enough.', 0, ?)"
        sql(admin_browser.app, add, number, f"w{number}", ends)
    page.reload()
    wait_for_view(page)
    before = sql(admin_browser.app, kept)
    for word in ("w1", "w2"):
        keyboard(button(list_row(page, word), "Remove"))
        expect(list_row(page, word)).to_have_count(0)
        expect_notice(page, f"No longer blocked: \u2068{word}\u2069.")
        keyboard(button(page, "Undo"))
        expect(list_row(page, word)).to_be_visible()
        assert sql(admin_browser.app, kept) == before
    page.get_by_label("Type").select_option("address")
    value.fill("not an address")
    button(page, "Add").click()
    expect(alert(page)).to_contain_text("This can’t be blocked")
    expect(value).to_have_value("not an address")
    expect(list_row(admin_browser.open("log"), "unblocked: w2")).to_contain_text("Word")


def test_a_block_that_would_meet_many_is_asked_about(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(REFUSED)
    page = admin_browser.open("blocks")
    value, wide = page.get_by_label("Value"), list_row(page, "0.0.0.0/0")
    blocks = "SELECT value FROM block ORDER BY 1"
    many = re.compile("block [0-9]+ of the latest [0-9]+ comments")
    for address in ("0.0.0.0/0", "::/0"):  # who changes it is asked again
        value.fill(address)
        with page.expect_response("**/admin/blocks") as answer:
            page.keyboard.press("Enter")
        assert answer.value.status == 409
        expect(alert(page)).to_contain_text(many)
    value.fill("192.0.2.1")
    page.keyboard.press("Enter")
    expect(list_row(page, "192.0.2.1")).to_be_visible()
    expect(button(page, "Add")).to_be_visible()
    assert sql(admin_browser.app, blocks) == [("192.0.2.1",)]
    value.fill("0.0.0.0/0")
    button(page, "Add").click()
    button(page, "Block anyway").click()
    expect(wide).to_be_visible()
    assert sql(admin_browser.app, blocks) == [("0.0.0.0/0",), ("192.0.2.1",)]


# Mail, log, figures, settings


@pytest.fixture
def undelivered(app: App) -> None:
    """Two emails and a call of a webhook that could not be delivered; one email is given up."""
    now = inside.now(app)
    for to, due, failure in (
        ("ann1@example.com", None, "535 Login Fail. Please enter your authorization code"),
        ("ann2@example.com", now + HOUR, ""),
        ("webhook", now + HOUR, "Refused 404"),
    ):
        add = "INSERT INTO outbox (recipient, subject, tries, due_at, expires_at, failure, event)"
        event, subject = "reported" * (to == "webhook"), f"To {to}"
        values = (to, subject, 1, due, now + DAY, failure, event)
        sql(app, f"{add} VALUES (?, ?, ?, ?, ?, ?, ?)", *values)


WITH_MAIL = {"mail_host": "mail.example", "mail_sender": "comments@blog.example"}


@with_settings(**WITH_MAIL)
def test_an_email_or_a_call_of_a_webhook_is_tried_again_or_dropped(
    admin_browser: AdminBrowser, undelivered: None
) -> None:
    page = admin_browser.open("mail")
    given_up = ["ann1@example.com", "1 try", "given up"]
    expect(notes(page, "To ann1")).to_have_text(given_up)
    said = list_row(page, "To ann1").locator("p")
    said_by_server = "535 Login Fail. Please enter your authorization code"
    expect(said).to_have_text([said_by_server, re.compile("^write the authorization code")])
    soon = re.compile("^next in ")
    expect(notes(page, "To ann2")).to_have_text(["ann2@example.com", "1 try", soon])
    hook = list_row(page, "Message about a comment")
    failed: list[str | re.Pattern[str]] = ["Webhook", "1 try", soon]
    expect(hook.locator(".dots > span")).to_have_text(failed)
    expect(hook.locator("p")).to_have_text(["Refused 404"])
    mouse(button(list_row(page, "To ann1"), "Try again"))
    expect_notice(page, "Sending again.")
    expect(list_row(page, "To ann1")).to_have_count(0)
    left = "SELECT recipient, tries, failure FROM outbox WHERE due_at <= ?"
    assert sql(admin_browser.app, left, inside.now(admin_browser.app)) == [
        ("ann1@example.com", 0, "")
    ]
    mouse(button(list_row(page, "To ann2"), "Discard"))
    expect(dialog(page)).to_contain_text("Discard this email for good?")
    mouse(button(dialog(page), "Discard"))
    expect_notice(page, "Discarded.")
    keyboard(button(hook, "Discard"))
    expect(dialog(page)).to_contain_text("Discard this message for good?")
    keyboard(button(dialog(page), "Discard"))
    expect(text_of_empty_list(page, "No undelivered emails.")).to_be_focused()
    assert sql(admin_browser.app, "SELECT recipient FROM outbox") == [("ann1@example.com",)]


@with_settings(**WITH_MAIL)
def test_the_menu_counts_what_was_not_delivered_and_all_is_tried_again_or_dropped(
    admin_browser: AdminBrowser, undelivered: None
) -> None:
    page = admin_browser.open("queue")
    entry = page.get_by_role("navigation").get_by_role("link", name="Mail")
    expect(entry).to_have_text("Mail3")
    mouse(entry)
    mouse(button(page, "Try all again"))
    expect_notice(page, "Sending again.")
    expect(text_of_empty_list(page, "No undelivered emails.")).to_be_visible()
    expect(entry).to_have_text("Mail")
    expect(button(page, "Try all again")).to_have_count(0)
    tried = "UPDATE outbox SET tries = 1, failure = ''"
    sql(admin_browser.app, tried)
    page.reload()
    wait_for_view(page)
    keyboard(button(page, "Discard all"))
    expect(dialog(page)).to_contain_text("Discard all of them for good?")
    keyboard(button(dialog(page), "Discard all"))
    expect_notice(page, "Discarded.")
    expect(text_of_empty_list(page, "No undelivered emails.")).to_be_visible()
    assert sql(admin_browser.app, "SELECT count(*) FROM outbox") == [(0,)]


def test_the_log_tells_what_was_done_and_by_whom(admin_browser: AdminBrowser) -> None:
    add_waiting(admin_browser.app, "One.")
    add = "INSERT INTO audit (created_at, who, action, subject, detail) VALUES (?, ?, ?, ?, 'so')"
    page = admin_browser.open()
    for key, status in {"a": "Approved.", "u": "Undone.", "s": "Marked as spam."}.items():
        page.keyboard.press(key)
        expect_notice(page, status)
    admin_browser.expect_states("spam")
    done = (("mail", "deleted"), ("command", "claim"), ("Ann", "newdeed"), ("Ann", "block_user"))
    for who, action in done:
        sql(admin_browser.app, add, inside.now(admin_browser.app), who, action, "7")
    ann = account(admin_browser.app, "ann@example.com", "Ann", "user")
    sql(admin_browser.app, add, inside.now(admin_browser.app), "Bob", "role", str(ann))
    go(page, "log")
    rows = page.locator("li.line .what > :first-child")
    expect(rows).to_have_count(8)
    assert {*page.locator("li.line time").all_inner_texts()} == {"now"}  # as at the widget
    assert rows.all_inner_texts() == [
        f"Bob changed the role: user {ann}",
        "Ann blocked: user 7",
        "Ann newdeed 7",
        "On the server became admin 7",
        "Via email link deleted: comment \u20687\u2069",
        "江屿 marked as spam: comment \u20681\u2069",
        "江屿 held: comment \u20681\u2069",
        "江屿 approved: comment \u20681\u2069",
    ]
    rows.last.get_by_role("link").click()
    expect_texts(page, "One.")
    page.get_by_role("link", name="One comment. Show all").click()
    expect(heading(page, "Comments")).to_be_visible()
    go(page, "comments?comment=7")
    expect(text_of_empty_list(page, "No comments found.")).to_be_visible()
    go(page, "log")
    rows.first.get_by_role("link").click()
    expect(heading(page, "Users")).to_be_visible()
    expect(page.locator("li.line b")).to_have_text("Ann")
    page.get_by_role("link", name="One account. Show all").click()
    expect(page.locator("li.line")).to_have_count(2)
    page.get_by_label("Language").select_option("de")
    wait_for_view(page)
    times = go(page, "log").locator("li.line time")
    # The browser's own word for it is "jetzt".
    assert {*times.all_inner_texts()} == {"gerade eben"}


def test_the_same_action_on_many_comments_is_one_line_of_the_log(
    admin_browser: AdminBrowser,
) -> None:
    ids = add_waiting(admin_browser.app, "One.", "Two.", "Three.")
    now = inside.now(admin_browser.app)

    def done(who: str, action: str, subject: object, ago: int, detail: str = "") -> None:
        sql(
            admin_browser.app,
            "INSERT INTO audit (created_at, who, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
            *(now - ago, who, action, str(subject), detail),
        )

    done("Olga", "visible", ids[0], 9 * HOUR)  # too long ago to be of the same work
    for each in ids:
        done("Olga", "visible", each, 60)
    done("Ann", "visible", ids[0], 50)
    done("Ann", "close", "/a/", 40)
    done("Ann", "rename", "/a/", 30, "/%E4%BD%A0/")
    page = admin_browser.open("log")
    rows = page.locator("li.line .what > :first-child")
    assert [row.inner_text().split("\n")[0] for row in rows.all()] == [
        "Ann renamed: page /a/",
        "Ann closed: page /a/",
        f"Ann approved: comment \u2068{ids[0]}\u2069",
        "Olga approved: 3 comments",
        f"Olga approved: comment \u2068{ids[0]}\u2069",
    ]
    linked = rows.nth(1).get_by_role("link").get_attribute("href")
    assert linked == "#pages?q=%2Fa%2F"
    expect(list_row(page, "renamed").get_by_role("link")).to_have_text("/你/")
    keyboard(page.get_by_text("3 comments"))
    links = rows.nth(3).get_by_role("link")
    assert links.all_inner_texts() == [f"comment \u2068{each}\u2069" for each in reversed(ids)]
    links.first.click()
    expect_texts(page, "Three.")


def test_each_chart_of_the_statistics_is_also_a_table(admin_browser: AdminBrowser) -> None:
    add_pages(admin_browser.app)
    today = (inside.now(admin_browser.app) + 8 * HOUR) // DAY
    sql(admin_browser.app, "DELETE FROM day")
    for ago, totals in {0: (3, 40, 5), 29: (1, 2, 0), 30: (9, 9, 9)}.items():
        sql(admin_browser.app, "INSERT INTO day VALUES (?, ?, ?, ?)", today - ago, *totals)
    page = admin_browser.open("figures")
    charts = page.get_by_role("img").all()
    assert [each.get_attribute("aria-label") for each in charts] == [
        "Comments: 4 (highest: 3)",
        "Views: 42 (highest: 40)",
        "Likes: 5 (highest: 5)",
    ]
    for chart in charts:
        assert chart.locator("rect").count() == 30
        assert chart.locator("rect").last.get_attribute("height") == "60"
    caption = page.locator("figcaption").first
    day = page.get_by_role("slider", name="Comments")
    day.focus()
    expect(caption).to_contain_text(": 3")
    page.keyboard.press("ArrowLeft")
    expect(caption).to_contain_text(": 0")
    page.keyboard.press("Home")
    expect(caption).to_contain_text(": 1")
    assert re.search(r"\w+ \d+, \d+: 1$", day.get_attribute("aria-valuetext") or "")
    views = page.locator("figcaption").nth(1)
    box = page.get_by_role("slider", name="Views").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 5)
    expect(views).to_contain_text(": 40")
    page.mouse.move(0, 0)
    expect(views).to_contain_text("42 (highest: 40)")
    page.get_by_text("Show as table").click()
    days = page.locator("details table tbody tr")
    assert days.count() == 30
    assert days.first.locator("td").all_inner_texts() == ["1", "2", "0"]
    assert days.last.locator("td").all_inner_texts() == ["3", "40", "5"]
    for name, rows in {"Most read": "/a/ 1,286 1", "Most commented": "/b/ 0 2 /a/ 1,286 1"}.items():
        cells = page.get_by_role("table", name=name).locator("tbody").locator("th, td")
        shown = " ".join(cells.all_inner_texts()).replace("↗", " ").split()
        assert " ".join(shown) == rows


def test_the_statistics_are_shown_by_week_month_and_year(admin_browser: AdminBrowser) -> None:
    today = date.fromordinal((inside.now(admin_browser.app) + 8 * HOUR) // DAY + FIRST_DAY)
    for ago, count in {0: 5, 400: 7}.items():
        day = today.toordinal() - FIRST_DAY - ago
        sql(admin_browser.app, "INSERT INTO day (day, views) VALUES (?, ?)", day, count)
    page = admin_browser.open("figures")
    periods = page.get_by_role("navigation", name="Period")
    long_ago = today - timedelta(days=400)
    charts = {"By week": 26, "By month": 24, "By year": today.year - long_ago.year + 1}
    for name, bars in charts.items():
        periods.get_by_role("link", name=name).focus()
        page.keyboard.press("Enter")
        expect(periods.get_by_role("link", name=name)).to_have_attribute("aria-current", "page")
        views = page.get_by_role("img", name="Views")
        expect(views.locator("rect")).to_have_count(bars)
        page.get_by_text("Show as table").click()
        last = page.locator("details table tbody tr").last
        expect(last.locator("td").nth(1)).to_have_text("5")
    head = page.locator("details table tbody th").last
    expect(head).to_have_text(str(today.year))


@with_settings(privacy_count_countries=True)
def test_countries_and_growing_pages_are_tables_with_names_and_shares(
    admin_browser: AdminBrowser,
) -> None:
    add_pages(admin_browser.app)
    today = (inside.now(admin_browser.app) + 8 * HOUR) // DAY
    for code, views in {"DE": 30, "US": 9, "": 1}.items():
        sql(admin_browser.app, "INSERT INTO country_day VALUES (?, ?, ?)", today, code, views)
    for page_id, ago, views in ((1, 0, 1_300), (1, 40, 60), (2, 0, 2), (2, 31, 9)):
        sql(admin_browser.app, "INSERT INTO page_day VALUES (?, ?, ?)", page_id, today - ago, views)
    page = admin_browser.open("figures")
    table = page.get_by_role("table", name="Where readers come from")
    rows = [each.inner_text().split() for each in table.locator("tbody tr").all()]
    states = ["United", "States", "9", "23%"]
    assert rows == [["Germany", "30", "75%"], states, ["Unknown", "1", "3%"]]
    bars = [each.get_attribute("width") for each in table.locator("rect").all()]
    assert bars == ["100", "30", "3.3333333333333335"]
    table = page.get_by_role("table", name="Growing pages")
    first = table.locator("tbody tr").first.inner_text().replace("↗", " ").split()
    assert first == ["/a/", "1,300", "+1,240", "1", "+1"]


def test_a_blog_that_counts_no_countries_is_told_how(admin_browser: AdminBrowser) -> None:
    page = admin_browser.open("figures")
    section = page.locator("section", has=page.get_by_role("heading", name="Where readers come"))
    expect(section).to_contain_text("Countries are not counted.")
    section.get_by_role("link", name="Settings").click()
    expect(page.get_by_label("Count the countries of readers")).to_be_attached()


def test_a_view_is_busy_until_its_data_has_come(admin_browser: AdminBrowser) -> None:
    page = admin_browser.new_page()
    asked: list[Route] = []
    page.route("**/admin/figures?*", lambda route: asked.append(route))
    with page.expect_request("**/admin/figures?*"):
        page.goto(f"{admin_browser.service}/admin#figures")
    expect(page.locator("main .wait")).to_be_attached()
    expect(page.locator("main")).to_have_attribute("aria-busy", "true")
    asked[0].continue_()
    expect(page.locator("main")).to_have_attribute("aria-busy", "false")
    expect(page.locator("figcaption")).to_have_count(3)


def test_a_blog_without_statistics_yet_is_told_so(admin_browser: AdminBrowser) -> None:
    page = admin_browser.open("figures")
    captions = page.locator("figcaption")
    shown = [["Comments", "No comments"], ["Views", "No views"], ["Likes", "No likes"]]
    assert [each.inner_text().split("\n") for each in captions.all()] == shown
    for name, text in {"Most read": "No views", "Most commented": "No comments"}.items():
        section = page.locator("section", has=page.get_by_role("heading", name=name))
        expect(section).to_contain_text(text)
    assert page.locator("main > table").count() == 0


@with_settings(moderation_hold="email", server_public_url="https://comments.blog.example")
def test_the_queue_tells_who_was_signed_in_and_whose_email_address_a_guest_gave(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append("Cross-Origin-Opener-Policy")  # this page came over plain http
    account(admin_browser.app, "ann@example.com", "Ann", role="user")
    add_waiting(admin_browser.app, "Typed.", email="ann@example.com")
    say(admin_browser.app, "Signed in.", blog.OWNER)
    page = admin_browser.open()
    typed = page.get_by_role("article").filter(has_text="Typed.")
    expect(typed).to_contain_text(re.compile("Email address of .?Ann.?, who was not signed in"))
    expect(typed).to_contain_text("The holder of the email address has not confirmed it")
    expect(typed.get_by_role("img", name="signed in")).to_have_count(0)
    page.goto(f"{admin_browser.service}/admin#comments")
    signed = page.get_by_role("article").filter(has_text="Signed in.")
    expect(signed.get_by_role("img", name="signed in")).to_be_visible()


@with_settings(
    server_public_url="https://comments.blog.example",
    mail_host="mail.example",
    mail_user="me",
    mail_password="Canary-7Q9-passphrase",
    mail_sender="me@blog.example",
    moderation_hold="first",
)
def test_settings_of_the_server_are_folded_away_and_no_secret_is_shown(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append("Cross-Origin-Opener-Policy")  # this page came over plain http
    page = admin_browser.open("settings", **WINDOW)
    secret, host, url = (
        page.get_by_role("row", name=re.compile(re.escape(name)))
        for name in ("[mail] password", "[mail] host", "[server] public_url")
    )
    expect(host).to_be_hidden()
    keyboard(page.get_by_text("Settings on the server"))
    expect(host).to_be_visible()
    expect(secret.locator("td")).to_have_text("(hidden)")
    expect(page.locator("caption")).to_contain_text("Change them in commentd.ini")
    expect(host).to_contain_text("changed")
    expect(host.locator("td")).to_have_text("mail.example")
    assert "Canary" not in page.content()
    assert inside.token_key(admin_browser.app).decode() not in page.content()
    in_one_line = "e => e.getClientRects().length === 1"
    assert url.get_by_text("https://comments.blog.example", exact=True).evaluate(in_one_line)
    expect(page.get_by_role("heading", name="Setup checklist")).to_be_visible()
    expect(page.locator("main > section > ul li").first).to_be_visible()
    tag = f'<script src="{admin_browser.service}/embed.js" async></script>'
    expect(page.locator("pre.tag")).to_have_text([tag, "commentd add photos.example"])
    mouse(button(page, "Copy"))
    expect_notice(page, "Selected. Press Ctrl+C or ⌘C to copy.")  # plain http has no clipboard
    assert page.evaluate("String(getSelection())").strip() == tag
    page.get_by_label("Language", exact=True).select_option("zh-TW")
    expect(page.locator("#help_moderation_hold[lang=zh-TW]")).to_contain_text("審核")
    expect(page.locator("main > section > ul li [lang=zh-TW]").first).to_contain_text(
        "沒有頻率限制"
    )


def form_with(page: Page, label: str) -> Locator:
    """The form of the settings that has such a field."""
    return page.locator("form.settings").filter(has=page.get_by_label(label, exact=True))


HOLD = "Comments that wait for approval"


def setting_in_effect(admin_browser: AdminBrowser, name: str) -> Any:
    return getattr(admin_browser.app.current_site().config, name)


def test_a_setting_is_changed_and_undone_at_once(admin_browser: AdminBrowser) -> None:
    page = admin_browser.open("settings", **WINDOW)
    # What stands in another group is not lost.
    page.get_by_label("Name of the blog").fill("A draft")
    expect(page.get_by_label(HOLD)).to_have_value("all")
    page.get_by_label(HOLD).select_option("first")
    keyboard(button(form_with(page, HOLD), "Save"))
    expect_notice(page, "Saved.")
    assert setting_in_effect(admin_browser, "moderation_hold") == "first"
    expect(page.get_by_label(HOLD)).to_have_value("first")
    expect(page.get_by_label("Name of the blog")).to_have_value("A draft")
    assert setting_in_effect(admin_browser, "site_name") == ""
    mouse(button(page.locator(".bars"), "Undo"))
    expect_notice(page, "Undone.")
    expect(page.get_by_label(HOLD)).to_have_value("all")
    assert setting_in_effect(admin_browser, "moderation_hold") == "all"
    go(page, "log")
    row = list_row(page, "changed a setting: Comments that wait for approval").first
    expect(row).to_contain_text(re.compile("all .before: .the first of each author"))


def test_the_button_for_changed_settings_stays_on_the_screen(admin_browser: AdminBrowser) -> None:
    page = admin_browser.open("settings", **TOUCH)
    save = button(form_with(page, HOLD), "Save")
    page.get_by_label(HOLD).scroll_into_view_if_needed()
    expect(save).not_to_be_in_viewport()
    page.get_by_label(HOLD).select_option("first")
    expect(save).to_be_in_viewport(ratio=1)
    page.get_by_label(HOLD).select_option("all")  # as it was saved
    expect(save).not_to_be_in_viewport()
    page.get_by_label(HOLD).select_option("first")
    mouse(save)
    expect_notice(page, "Saved.")
    expect(form_with(page, HOLD)).not_to_have_class(re.compile("unsaved"))


@with_settings(site_name="From the file", written_in={"site_name": "/srv/commentd/commentd.ini"})
def test_a_setting_of_the_file_is_shown_and_can_not_be_changed(admin_browser: AdminBrowser) -> None:
    page = admin_browser.open("settings", **WINDOW)
    field = page.locator(".field").filter(has_text="Name of the blog")
    expect(field).to_contain_text("From the file")
    expect(field).to_contain_text("Set in \u2068/srv/commentd/commentd.ini\u2069. Change it there.")
    expect(field.locator("input")).to_have_count(0)
    # The others of its group can be changed.
    page.get_by_label("Time zone").fill("Nowhere/At all")
    expect(form_with(page, "Time zone")).to_contain_text("Name of the blog")


def test_a_wrong_setting_is_named_beside_its_field(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(REFUSED)
    page = admin_browser.open("settings", **WINDOW)
    minutes, days = page.get_by_label("Minutes in which a comment"), page.get_by_label("Days until")
    keyboard(minutes, "15000000")
    keyboard(days, "-1")
    mouse(button(form_with(page, "Days until a page closes"), "Save"))
    form = form_with(page, "Days until a page closes")
    expect(alert(form)).to_have_text("Please check the marked settings.")
    expect(minutes).to_be_focused()
    expect(minutes).to_have_accessible_description(
        re.compile("^must be a whole number from 0 to 525600 Minutes in which authors")
    )
    expect(days).to_have_attribute("aria-invalid", "true")
    assert setting_in_effect(admin_browser, "comments_edit_minutes") == 15
    keyboard(minutes, "20")
    keyboard(days, "30")
    page.keyboard.press("Enter")
    expect_notice(page, "Saved.")
    expect(days).not_to_have_attribute("aria-invalid", "true")
    assert setting_in_effect(admin_browser, "comments_close_after_days") == 30


def test_other_recipients_need_the_password_and_the_log_brings_the_old_ones_back(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected.append(REFUSED)
    page = admin_browser.open("settings", **WINDOW)
    recipients = page.get_by_label("Who gets emails about comments")
    save = button(form_with(page, "Quiet hours"), "Save")
    recipients.fill("ann@example.com\nbob@example.com")
    mouse(save)
    expect(dialog(page)).to_be_visible()
    mouse(button(dialog(page), "Cancel"))
    expect(dialog(page)).to_have_count(0)
    assert setting_in_effect(admin_browser, "notify_owner") == ()
    mouse(save)
    keyboard(dialog(page).get_by_label("Your password"), PASSWORD)
    keyboard(button(dialog(page), "Save"))
    expect_notice(page, "Saved.")
    addresses = ("ann@example.com", "bob@example.com")
    assert setting_in_effect(admin_browser, "notify_owner") == addresses
    go(page, "log")
    row = list_row(page, "changed a setting: Who gets emails about comments")
    expect(row).to_contain_text("ann@example.com, bob@example.com")
    mouse(button(row, "Undo"))
    keyboard(dialog(page).get_by_label("Your password"), PASSWORD)
    keyboard(button(dialog(page), "Save"))
    expect_notice(page, "Undone.")
    expect(list_row(page, "changed a setting")).to_have_count(2)
    assert setting_in_effect(admin_browser, "notify_owner") == ()


def test_a_page_of_the_blog_is_checked_in_the_settings(admin_browser: AdminBrowser) -> None:
    page = admin_browser.open("settings")
    field = page.get_by_label("URL of a post")
    expect(field).to_have_attribute("placeholder", f"{BLOG}/…")
    keyboard(field, "https://other.example/post/")
    keyboard(button(page, "Check"))
    found = page.locator("main [role=status] li")
    expect(found).to_contain_text("https://other.example is not there")
    expect(found).to_contain_text("Error")
    page.get_by_label("Language", exact=True).select_option("zh-CN")
    keyboard(page.get_by_label("文章的网址"), "https://other.example/post/")
    mouse(button(page, "检查"))
    expect(found.locator("[lang=zh-CN]")).to_contain_text("https://other.example 不在其中")


def test_a_backup_is_downloaded_and_asks_for_the_password(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(REFUSED)
    page = admin_browser.open("settings")
    own = dialog(page).get_by_label("Your password")
    keyboard(button(page, "Download"))
    keyboard(own, "not mine")
    keyboard(button(dialog(page), "Download"))
    expect(alert(dialog(page))).to_have_text("Wrong password.")
    keyboard(own, PASSWORD)
    with page.expect_download() as found:
        keyboard(button(dialog(page), "Download"))
    assert re.fullmatch(r"commentd-\d{4}-\d\d-\d\d\.db", found.value.suggested_filename)
    assert found.value.path().read_bytes().startswith(b"SQLite format 3")
    expect(dialog(page)).to_have_count(0)


def test_an_authenticator_app_is_added_asked_for_and_removed(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(REFUSED)
    page = admin_browser.open("settings")
    mouse(button(page, "Add an authenticator app"))
    expect(dialog(page).get_by_alt_text("QR code of the key")).to_be_visible()
    key = dialog(page).locator("code").inner_text().replace(" ", "")
    at = admin_browser.app.site.now() // 30
    keyboard(dialog(page).get_by_label("Code that the app shows"), app_code(key, at))
    keyboard(dialog(page).get_by_label("Your password"), PASSWORD)
    keyboard(button(dialog(page), "Save"))

    expect(dialog(page).get_by_role("listitem")).to_have_count(10)
    recovery = dialog(page).get_by_role("listitem").all_inner_texts()
    mouse(button(dialog(page), "I have kept them"))
    expect(page.get_by_text("Recovery codes left: 10.")).to_be_visible()

    other = admin_browser.new_page(signed=False)
    other.goto(f"{admin_browser.service}/admin")
    keyboard(other.get_by_label("Email"), MAIL)
    keyboard(other.get_by_label("Password"), PASSWORD)
    expect(other.get_by_label("Code of your authenticator app")).to_be_hidden()
    keyboard(button(other, "Sign in"))
    expect(alert(other)).to_have_text("Please enter the code that your authenticator app shows.")
    keyboard(other.get_by_label("Code of your authenticator app"), "000000")
    keyboard(button(other, "Sign in"))
    expect(alert(other)).to_contain_text("This code is wrong or was used before.")
    other.get_by_label("Code of your authenticator app").fill(recovery[0])
    keyboard(button(other, "Sign in"))
    expect(other.get_by_role("heading", name="Queue")).to_be_visible()

    mouse(button(page, "Remove the authenticator app"))
    keyboard(dialog(page).get_by_label("Code of your authenticator app"), recovery[1])
    keyboard(dialog(page).get_by_label("Your password"), PASSWORD)
    keyboard(button(dialog(page), "Remove the authenticator app"))
    expect(button(page, "Add an authenticator app")).to_be_visible()


def test_each_session_is_shown_and_ended_with_one_press(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(REFUSED)
    phone = admin_browser.open("settings", **TOUCH)
    page = admin_browser.open("settings")
    expect(page.get_by_text("this browser")).to_have_count(1)
    mouse(button(page, "End"))
    expect(button(page, "End")).to_have_count(0)
    phone.reload()
    expect(dialog(phone)).to_be_visible()  # they sign in again


# A bad network


def test_a_section_that_failed_to_load_says_so_and_is_tried_again(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected += [REFUSED, UNREACHED]
    page, asked = admin_browser.new_page(), re.compile(r"/admin/\w+")
    retry = button(page.locator("main"), "Try again")
    for view in ("queue", "figures"):
        page.route(asked, lambda route: route.abort())
        page.goto(f"{admin_browser.service}/admin#{view}")
        error = alert(page.locator("main"))
        expect(error).to_have_text("The service can’t be reached. What you have written is kept.")
        for wait, shown in (("7", "7 seconds"), ("3412", "57 minutes"), ("86399", "24 hours")):
            refuse(page, asked, 429, "too_many", **{"Retry-After": wait})
            retry.click()
            expect(error).to_have_text(re.compile(f"^Too fast: please wait \u2068{shown}\u2069.$"))
        refuse(page, asked, 503, "storage")
        retry.click()
        expect(error).to_have_text("The service is busy. Please try again in a moment.")
        page.unroute_all()
        retry.click()
        expect(error.locator("visible=true")).to_have_count(0)
        wait_for_view(page)


@pytest.mark.parametrize("file", ["settings.js", "tag.js"])
def test_a_section_whose_script_failed_to_load_says_so_and_is_tried_again(
    admin_browser: AdminBrowser, file: str
) -> None:
    failed = "commentd: admin_page/settings.js could not be loaded"
    admin_browser.expected += [UNREACHED, failed]
    page = admin_browser.open()
    page.route(f"**/admin_page/{file}*", lambda route: route.abort())
    retry = button(page.locator("main"), "Try again")
    page.evaluate("location.hash = '#settings'")
    error = alert(page.locator("main"))
    expect(error).to_have_text("The service can’t be reached. What you have written is kept.")
    retry.click()
    expect(retry).to_have_attribute("aria-busy", "false")
    expect(error).to_be_visible()
    page.unroute_all()
    keyboard(retry)
    expect(page.get_by_role("heading", name="Setup checklist")).to_be_visible()
    expect(heading(page, "Settings")).to_be_focused()
    expect(retry).to_have_count(0)
    go(go(page, "queue"), "settings")
    assert len([line for line in admin_browser.console if failed in line]) == 1


def test_an_admin_page_that_was_opened_before_an_update_is_loaded_again(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected += ["Failed to load resource", "could not be loaded", "been updated"]
    page = admin_browser.open()
    inside.serve_newer_scripts(admin_browser.app)
    page.evaluate("location.hash = '#settings'")
    error = alert(page.locator("main"))
    expect(error).to_have_text("The service has been updated. Please reload the page.")
    with page.expect_navigation():
        button(page.locator("main"), "Try again").click()
    expect(page.get_by_role("heading", name="Setup checklist")).to_be_visible()


@pytest.mark.parametrize("file", ["page.js", "keys.js"])
def test_an_admin_page_whose_scripts_failed_to_load_says_so_and_is_tried_again(
    admin_browser: AdminBrowser, file: str
) -> None:
    admin_browser.expected += [UNREACHED, "commentd: admin_page/page.js could not be loaded"]
    add_waiting(admin_browser.app, "One.")
    page = admin_browser.new_page()
    page.route(f"**/admin_page/{file}*", lambda route: route.abort())
    page.goto(f"{admin_browser.service}/admin")
    expect(alert(page)).to_contain_text("The service can’t be reached. 暂时连不上服务。")
    page.unroute_all()
    button(page, "Try again · 重试").click()
    expect_texts(page, "One.")


def test_the_admin_page_names_the_scripts_of_its_first_view(admin_browser: AdminBrowser) -> None:
    page = admin_browser.open()
    hrefs = "all => all.map(each => each.href)"
    named = page.locator("link[rel=modulepreload]").evaluate_all(hrefs)
    asked = [url for url in admin_browser.asked if "/admin_page/" in url]
    assert sorted(asked) == sorted(named)
    assert len({url.partition("?")[2] for url in asked}) == 1  # their version


BROKEN: list[tuple[Callable[[Route], None], str]] = [
    (lambda route: route.abort(), "The service can’t be reached."),
    (lambda route: route.fulfill(status=502, body="<h1>A proxy</h1>"), "The service can’t be"),
    (lambda route: route.fulfill(status=500, json={"code": "constructor"}), "That did not work."),
]


def test_a_comment_whose_moderation_was_refused_comes_back_where_it_was(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected += [REFUSED, UNREACHED]
    add_waiting(admin_browser.app, "One.", "Two.", "Three.")
    page = admin_browser.open()
    for work, words in BROKEN:
        page.route("**/admin/comments", work)
        page.keyboard.press("a")
        expect_notice(page, re.compile(f"^{re.escape(words)}"))
        expect_texts(page, "One.", "Two.", "Three.")
        expect(page).to_have_title("(3) Queue · commentd")
        page.route("**/admin/reply", work)
        page.keyboard.press("r")
        box(page).fill("A reply.")
        button(page, "Approve and reply").click()
        expect(alert(page.locator("article"))).to_contain_text(words)
        expect(box(page)).to_have_value("A reply.")
        page.unroute_all()
        if words != "That did not work.":
            page.keyboard.press("Escape")
    button(page, "Approve and reply").click()
    expect_notice(page, "Approved. Replied.")
    page.keyboard.press("a")
    expect_notice(page, "Approved.")
    admin_browser.expect_states(**{"One.": "visible", "Two.": "visible", "Three.": "waiting"})


# Hostile rows

SPELL = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
ILL: list[str | bytes] = [
    SPELL,
    '"><svg onload="window.hacked=1">',
    "javascript:window.hacked=1",
    "\u202eevil\u2066\u202d\u200f العربية",
    "W" * 20_000,
    "\n" * 5_000 + "\x00\x07\x1b[2J\ufffe",
    b"\xff\xfe\xc3(\xed\xa0\x80 spoilt \xf8",
    "%s %n {n} ${n} $& \\u0000 &lt;b&gt;",
    "👩‍👩‍👧‍👦" * 500 + "\u0300" * 2000,
]
TIMES = {"huge": 2**52, "below": -(2**52), "year": 253_402_300_800}


def insert(app: App, table: str, **values: Any) -> None:
    marks = ["CAST(? AS TEXT)" if isinstance(v, bytes) else "?" for v in values.values()]
    statement = f"INSERT OR IGNORE INTO {table} ({', '.join(values)}) VALUES ({', '.join(marks)})"
    sql(app, statement, *values.values())


def add_good_rows(app: App) -> None:
    """One in each list."""
    now = inside.now(app)
    add_waiting(app, "Good one.", page="/good/")
    account(app, "good@example.com", "Good one", "user")
    insert(app, "block", kind="word", value="Good one", note="", created_at=now)
    done = {"who": "Good one", "action": "visible", "subject": "1", "detail": ""}
    insert(app, "audit", created_at=now, **done)
    sent = {"recipient": "good@example.com", "subject": "Good one"}
    insert(app, "outbox", **sent, tries=3, expires_at=now + DAY)
    sql(app, "DELETE FROM day")


def spoil(app: App, ill: str | bytes, then: int | None = None) -> None:
    """A row in each list of which every text is this, and every time that."""
    now = inside.now(app)
    at = now if then is None else then
    bad = ill if isinstance(ill, bytes) else ill.encode()
    insert(app, "page", key=bad, page_url=bad, seen_at=at, views=abs(at), opened_at=at)
    [(page,)] = sql(app, "SELECT id FROM page WHERE key = CAST(? AS TEXT)", bad)
    insert(app, "account", email=bad, nickname=bad, password="x", created_at=at)
    texts = ("nickname", "email", "website", "content", "html", "ip", "country", "location")
    row = {"page_id": page, **dict.fromkeys((*texts, "held", "language"), bad)}
    for status in ("waiting", "spam", "deleted"):
        insert(app, "comment", status=status, created_at=at, edited_at=at, **row)
        if status != "waiting":
            good = {**row, "content": "Good one.", "html": "<p>Good one."}
            insert(app, "comment", status=status, created_at=now, **good)
    ends = max(at, now + 9)
    insert(app, "block", kind="word", value=bad, note=bad, created_at=at, expires_at=ends)
    insert(app, "audit", created_at=at, who=bad, action=bad, subject=bad, detail=bad)
    for subject in (bad, "site_name"):
        row = {"who": bad, "action": "setting", "subject": subject, "detail": bad, "was": bad}
        insert(app, "audit", created_at=at, **row)
    for name in ("site_name", "site_timezone", "moderation_words"):
        # The table has no rowid.
        sql(app, "INSERT OR REPLACE INTO setting VALUES (?, CAST(? AS TEXT))", name, bad)
    sent = {"recipient": bad, "subject": bad, "text": bad, "failure": bad, "tries": 3, "due_at": at}
    insert(app, "outbox", **sent, expires_at=now + DAY)
    for day in ((now + 8 * HOUR) // DAY, 2**60, -5):
        insert(app, "day", day=day, comments=at, views=-at, likes=2**52)
        sql(app, "INSERT OR REPLACE INTO page_day VALUES (1, ?, ?)", day, 2**52)
        sql(app, "INSERT OR REPLACE INTO country_day VALUES (?, ?, ?)", day, "<img src=x>", 2**52)


def assert_unharmed(page: Page, view: str) -> None:
    """No script ran, no link but of the web, and nothing of the page is broken."""
    if view not in ("figures", "settings", "welcome", "queue?status=reported"):
        good = page.locator("main").get_by_text(re.compile("Good one|/good/")).first
        expect(good).to_be_visible()
    if view == "figures":
        expect(page.get_by_role("img")).to_have_count(3)
    expect(page.locator("main [role=alert]:not(:empty)")).to_have_count(0)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main :is(img, script, iframe, object, embed, style, base)").count() == 0
    hrefs = page.locator("main a").evaluate_all("all => all.map(a => a.protocol)")
    assert {*hrefs} <= {"http:", "https:", "mailto:"}
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_hostile_rows_run_nothing_and_hide_no_other(admin_browser: AdminBrowser) -> None:
    add_good_rows(admin_browser.app)
    for ill in ILL:
        spoil(admin_browser.app, ill)
    for name, then in TIMES.items():
        spoil(admin_browser.app, name, then)
    page, many = (
        admin_browser.open(viewport={"width": 320, "height": 640}),
        len(ILL) + len(TIMES) + 1,
    )
    for view in TABS:
        go(page, view)
        assert_unharmed(page, view)
    go(page, "queue")
    expect(page.get_by_role("article")).to_have_count(many)
    page.keyboard.press("x")
    button(page, "Select all").click()
    page.keyboard.press("s")
    expect_notice(page, f"{many} comments are spam.")
    expect(text_of_empty_list(page, "All done.")).to_be_focused()
    page.keyboard.press("u")
    expect_notice(page, "Undone.")
    assert page.evaluate("window.hacked") is None


# No one is shut out


@pytest.fixture
def filled_lists(app: App, undelivered: None) -> None:
    """Something in every list."""
    fields: Any = {"email": "lu@blog.example", "website": "https://lu.example/"}
    first = say(app, "**Bold**, `code` and [a link](https://a.example/)", **fields)
    set_statuses(app, "visible", first)
    say(app, "A reply. " * 90, "Mateo Silva", parent_id=first)
    set_statuses(app, "waiting", first)
    say(app, "Hello.", "Noor Rahman", page="https://other.example/z/")
    seen = say(app, "Seen.", "顾砚秋", page="/b/")
    set_statuses(app, "visible", seen)
    TestApp(app).post_json(f"/comments/{seen}/report", {"reason": "Dull"})
    set_statuses(app, "spam", say(app, "Buy!", "Eve"))
    set_statuses(app, "deleted", say(app, "Gone.", "Eve"))
    account(app, "ann@example.com", "Ann", "user")
    now = inside.now(app)
    sql(app, "INSERT INTO block VALUES (1, 'word', 'casino', 'Enough.', ?, ?)", now, now + DAY)
    insert(app, "audit", created_at=now, who="Ann", action="visible", subject="1", detail="Eve")
    changed = {"subject": "moderation_words", "detail": "casino\npills", "was": ""}
    insert(app, "audit", created_at=now, who="Ann", action="setting", **changed)


def assert_axe_is_content(page: Page, where: str, *, dark: bool = True) -> None:
    """In light, and in dark, where only colours differ."""
    # A link of the menu that is scrolled out of sight is no skip link.
    rules = {"target-size": {"enabled": True}, "skip-link": {"enabled": False}}
    # What comes up is half transparent on its way.
    page.evaluate("Promise.allSettled(document.getAnimations().map(each => each.finished))")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    schemes: list[Any] = [("light", {"rules": rules}), ("dark", {"runOnly": ["color-contrast"]})]
    for scheme, options in schemes[: 1 + dark]:
        page.emulate_media(color_scheme=scheme)
        violations = page.evaluate(VIOLATIONS, options)
        assert (where, scheme, nodes_of(violations)) == (where, scheme, [])


# What each rule passed is not brought here: that takes longer than to look at it.
VIOLATIONS = """how => axe.run({...how, resultTypes: ['violations'], selectors: false})
  .then(({violations}) => violations)"""


def open_bars(page: Page) -> None:
    page.keyboard.press("s")
    page.keyboard.press("x")
    expect(page.locator(".bar").nth(1)).not_to_be_empty()


def open_block_bar(page: Page) -> None:
    current_comment(page).get_by_role("button", name=re.compile("^(Block|屏蔽)$")).click()


# What opens above or in a view, beside the views themselves.
OPENED: dict[str, Callable[[Page], None]] = {
    "reply": lambda page: page.keyboard.press("r"),
    "edit": lambda page: page.keyboard.press("e"),
    "block": open_block_bar,
    "keys": lambda page: page.keyboard.press("?"),
    "bars": open_bars,
}


def every_state(page: Page) -> Iterator[str]:
    """The page in each view, and with all that opens."""
    for view in TABS:
        go(page, view)
        yield view
    for name, show in OPENED.items():
        go(go(page, "log"), "queue")
        expect(current_comment(page)).to_have_count(1)
        show(page)
        expect(page.locator("form, dialog, .bar:not(:empty)").first).to_be_visible()
        yield name
        page.keyboard.press("Escape")


TARGETS = """
least => [...document.querySelectorAll(`button, select, summary, textarea, nav a, .pick, .option,
    input:not([type=hidden], [type=checkbox], [type=radio]), main a`)]
  .filter(e => e.checkVisibility({opacityProperty: false})
    && !e.closest('.body, .sr, .skip, p, h2, caption, table'))
  .map(e => {
    const {width, height} = e.getBoundingClientRect()
    const need = e.matches('main :not(nav) a') && !e.closest('nav') ? Math.min(least, 24) : least
    return [e.ariaLabel || e.textContent || e.name, width, height, need]
  }).filter(([, width, height, need]) => Math.min(width, height) < need - .02)
"""
WIDE = """
() => [...document.querySelectorAll('body *')]
  .filter(e => e.checkVisibility() && !e.closest('pre *, .sr, .skip, nav ul, dt, head'))
  .map(e => [e.localName, String(e.className), e.getBoundingClientRect()])
  .filter(([,, {left, right, width}]) => width && (right > innerWidth + .5 || left < -.5))
  .map(([tag, name, {left, right}]) => [tag, name, left, right])
"""
NARROW = {"width": 320, "height": 640}  # what a desk shows at 400 %
HEIGHTS = "all => all.map(e => Math.round(e.offsetHeight))"


def test_names_of_buttons_on_a_phone_stand_in_one_line(admin_browser: AdminBrowser) -> None:
    say(admin_browser.app, "Text.", "Ann", email="ann@example.com")
    page = admin_browser.open(lang="ru", **TOUCH)
    buttons = current_comment(page).locator(".acts button")
    expect(buttons.filter(has_text="Заблокировать")).to_be_visible()
    assert set(buttons.evaluate_all(HEIGHTS)) == {44}


@pytest.mark.parametrize(
    ("lang", "how", "least"),
    [("en-US", WINDOW, 24), ("zh-CN", {**TOUCH, "viewport": NARROW}, 44)],
    ids=["en-desk", "zh-phone"],
)
def test_each_section_and_dialog_of_the_admin_page_is_accessible(
    admin_browser: AdminBrowser, filled_lists: None, lang: str, how: dict[str, Any], least: int
) -> None:
    page = admin_browser.open(lang=lang, **how)
    expect(page.locator("html")).to_have_attribute("lang", lang.replace("en-US", "en"))
    for number, state in enumerate(every_state(page)):
        # Each state is seen in the dark by the long tier, on a phone.
        assert_axe_is_content(page, state, dark=number % 3 == 0 or how is not WINDOW)
        assert (state, page.evaluate(TARGETS, least)) == (state, [])
        assert (state, page.evaluate(WIDE)) == (state, [])
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), state
        if state == "blocks":
            heights = page.locator(".adding :is(input, select, button)").evaluate_all(HEIGHTS)
            assert (len(heights), len({*heights})) == (5, 1)


@pytest.mark.long
def test_the_sign_in_pages_of_the_admin_are_accessible(admin_browser: AdminBrowser) -> None:
    admin_browser.expected.append(REFUSED)
    page = admin_browser.new_page(signed=False)
    page.goto(f"{admin_browser.service}/admin")
    for link in (
        "",
        *(inside.admin_link(admin_browser.app, email) for email in ("", MAIL)),
        "0" * 32,
    ):
        if link:
            admin_browser.open_link(page, link)
        expect(page.locator("main .door")).to_be_visible()
        assert_axe_is_content(page, link)


STOP = """
() => {
  const e = document.activeElement
  const label = e.ariaLabel || e.labels?.[0]?.textContent || e.textContent || e.placeholder
  const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(e)
  const {bottom, top} = e.getBoundingClientRect()
  const drawn = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1
  const seen = drawn && !/ 0\\)$/.test(outlineColor)
  const inside = bottom > 0 && top < innerHeight
  return e === document.body ? null : [e.localName, (label || '').trim(), seen, inside]
}
"""


def test_tab_reaches_every_control_of_the_admin_page_and_each_has_a_name(
    admin_browser: AdminBrowser, filled_lists: None
) -> None:
    page = admin_browser.open(signed=False, **WINDOW)
    sign_in_at_admin(page)
    expect(heading(page, "Queue")).to_be_focused()
    for view in [*VIEWS, "welcome"]:
        if view in ("pages", "log"):
            keyboard(page.get_by_role("navigation", name="Sections").locator(f"[href='#{view}']"))
        go(page, view)
        assert page.evaluate("document.activeElement !== document.body"), view
        page.get_by_role("link", name="Skip to the content").focus()
        stops: list[Any] = [page.evaluate(STOP)]
        while len(stops) < 150:
            page.keyboard.press("Tab")
            stop = page.evaluate(STOP)
            if stop is None or stop == stops[0]:
                break
            stops.append(stop)
        assert (view, [stop for stop in stops if not all(stop)]) == (view, [])
        assert (view, stops[-1][1]) == (view, "Sign out")
        reached = page.locator(
            ":is(main, header, footer) :is(button, a[href], select, textarea, summary,"
            "input:not([type=hidden], [type=radio]), [tabindex='0'])"
        )
        shown = reached.evaluate_all("all => all.filter(e => e.checkVisibility()).length")
        assert (view, len(stops)) == (view, shown)
    go(page, "pages")
    page.get_by_role("link", name="Skip to the content").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    assert page.url.endswith("#pages")
    token = page.evaluate(TOKEN)
    assert [url for url in admin_browser.asked if token in url] == []
    assert page.context.cookies() == []
    page.go_back()
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Pages")
    page.evaluate("location.hash = '#constructor'")
    expect(heading(page, "Queue")).to_be_visible()


def test_the_admin_page_works_in_forced_colours_and_without_motion(
    admin_browser: AdminBrowser, filled_lists: None
) -> None:
    page = admin_browser.open(forced_colors="active", reduced_motion="reduce", **WINDOW)
    open_bars(page)
    lost = page.evaluate(
        """() => [...document.querySelectorAll('.bar, input, textarea, select, .badge')]
          .filter(e => e.checkVisibility()).map(e => [e.className || e.name, getComputedStyle(e)])
          .filter(([, {borderStyle, borderColor, backgroundColor, appearance}]) =>
            borderStyle === 'none' || borderColor === backgroundColor).map(([name]) => name)"""
    )
    assert [name for name in lost if name] == []
    moving = page.evaluate(
        """() => [...document.querySelectorAll('*')].map(e => [e.localName, getComputedStyle(e)])
          .filter(([, s]) => s.animationName !== 'none' || s.scrollBehavior === 'smooth'
            || s.transitionDuration.split(',').some(parseFloat)).map(([name]) => name)"""
    )
    assert moving == []
    go(page, "figures")
    bar, background = page.locator("rect").last.evaluate(
        "e => [getComputedStyle(e).fill, getComputedStyle(document.body).backgroundColor]"
    )
    assert bar != background


OWN_WORDS = """() => {
  const copy = document.body.cloneNode(true)
  for (const node of copy.querySelectorAll(`[lang], bdi, pre, code, a, caption, td, th,
      footer button, footer option, .brand, kbd`)) node.remove()
  return copy.textContent
}"""


def test_the_admin_page_speaks_the_language_of_the_browser_or_the_chosen_one_and_no_mixture(
    admin_browser: AdminBrowser, filled_lists: None
) -> None:
    sql(admin_browser.app, "UPDATE account SET nickname = 'Jiang'")
    sql(
        admin_browser.app,
        "UPDATE comment SET nickname = 'N', content = 'c', html = '', location = ''",
    )
    page = admin_browser.open(lang="zh-CN")
    for view in TABS:
        words = {*re.findall("[A-Za-z]{3,}", go(page, view).evaluate(OWN_WORDS))}
        assert (view, words - {"commentd", "SQLite", "ini", "Jiang", "Webhook"}) == (view, set())
    go(page, "queue")
    expect(heading(page, "待审")).to_be_visible()
    page.get_by_label("语言").select_option("English")
    wait_for_view(page)
    expect(page.locator("html")).to_have_attribute("lang", "en")
    expect(page.get_by_label("Language")).to_be_focused()
    page.reload()
    expect(heading(page, "Queue")).to_be_visible()
    for view in TABS:
        assert (view, re.findall("[一-鿿]+", go(page, view).evaluate(OWN_WORDS))) == (view, [])
    page.get_by_label("Language").select_option("ar")
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    page.route("**/words/admin-zh-CN.json*", lambda route: route.abort())
    admin_browser.expected += [UNREACHED]
    chosen = page.get_by_label("اللغة")
    chosen.select_option("简体中文")
    expect_notice(page, re.compile("^تعذّر الاتصال"))
    expect(chosen).to_have_value("ar")
    page.unroute_all()
    chosen.select_option("简体中文")
    wait_for_view(page)
    go(page, "queue")
    expect(heading(page, "待审")).to_be_visible()


def test_the_manual_opens_in_the_language_of_the_page(admin_browser: AdminBrowser) -> None:
    page = admin_browser.new_page(signed=False, lang="zh-CN")
    page.goto(f"{admin_browser.service}/admin")
    page.get_by_role("link", name="帮助").click()
    expect(heading(page, "帮助")).to_be_visible()
    assert_axe_is_content(page, "list")
    page.get_by_role("link", name="English").click()
    for topic in ("import", "theme"):  # lists, and code
        page.get_by_role("navigation").get_by_role("link", name=topic, exact=True).click()
        expect(
            heading(page, MANUAL["en"][topic].splitlines()[0].removeprefix("# "))
        ).to_be_visible()
        assert_axe_is_content(page, topic)
    page.get_by_role("link", name="commentd").click()
    expect(heading(page, "登录")).to_be_visible()


def test_the_admin_page_says_that_its_texts_failed_to_load_and_tries_again(
    admin_browser: AdminBrowser,
) -> None:
    admin_browser.expected += [UNREACHED]
    page = admin_browser.new_page()
    page.add_init_script("Object.defineProperty(navigator, 'languages', {value: ['nl', 'fr-CA']})")
    page.route("**/words/admin-*", lambda route: route.abort())
    page.goto(f"{admin_browser.service}/admin")
    expect(alert(page)).to_contain_text("The service can’t be reached. 暂时连不上服务。")
    page.unroute_all()
    button(page, "Try again · 重试").click()
    expect(heading(page, "En attente")).to_be_visible()


def test_the_topics_of_the_manual_are_not_covered_in_a_low_window(
    admin_browser: AdminBrowser,
) -> None:
    for language, height in (("zh", 600), ("zh", 850), ("en", 720)):
        page = admin_browser.new_page(viewport={"width": 1200, "height": height})
        page.goto(f"{admin_browser.service}/admin/help?lang={language}&topic=limits")
        for _ in ("at the top", "at the end"):
            topics, footer = (page.locator(each).bounding_box() for each in ("nav", "footer"))
            assert topics
            assert footer
            assert topics["y"] + topics["height"] <= footer["y"], (language, height)
            page.evaluate("scrollTo(0, document.body.scrollHeight)")


# Several blogs


def test_the_other_blogs_of_an_admin_are_named_with_what_waits_there(
    admin_browser: AdminBrowser,
) -> None:
    page = admin_browser.open("queue")
    expect(page.get_by_role("navigation", name="Your blogs")).to_have_count(0)
    config = admin_browser.app.site.config
    other = replace(
        config,
        server_public_url="https://comments.b.example",
        database_path=f"{config.database_path}.other",
        site_name="Photos & more",
    )
    with closing(make_app(other, rounds=1)) as photos:
        account(photos)
        say(photos, "Please read this.")
        inside.of_one_owner(admin_browser.app, photos)
        page.reload()
        wait_for_view(page)
        blogs = page.get_by_role("navigation", name="Your blogs")
        expect(blogs.get_by_role("link")).to_have_text(["Photos & more1"])
        expect(blogs.get_by_role("link")).to_have_attribute(
            "href", "https://comments.b.example/admin"
        )
        inside.sql(photos, "UPDATE comment SET status = 'visible'")
        go(page, "comments")
        expect(blogs.get_by_role("link")).to_have_text(["Photos & more"])
        inside.sql(photos, "UPDATE account SET role = 'user'")
        go(page, "queue")
        expect(blogs).to_have_count(0)
