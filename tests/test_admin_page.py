"""The owner's page at /admin in a real Chromium: by mouse, by keys, on a phone, with hostile rows
and a bad network. `test_admin.py` has its API, `test_moderate.py` the menu in the widget."""

import hashlib
import json
import re
import sqlite3
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import test_server
import test_writing as writing
from axe_playwright_python.base import AXE_SCRIPT
from bench_widget import nodes_of
from blog import new_context, painted, say, service
from conftest import Outside
from playwright.sync_api import Browser, BrowserContext, Dialog, Locator, Page, Route, expect
from test_access import DESK, PHONE
from test_writing import REFUSED, UNREACHED, Use, button, held, keyboard, mouse, reach, requests_of
from webtest import TestApp

from commentd import App, Letter, hashed, make_token, new_admin_link, password_scheme

pytestmark = pytest.mark.slow

browser, use, start = writing.browser, writing.use, test_server.start

BLOG = "https://blog.example"
MAIL, PASSWORD = "owner@blog.example", "Ein Wort, 一句话 & \U0001f9c5"
VIEWS = ["queue", "comments", "pages", "users", "blocks", "figures", "mail", "log", "settings"]
HOUR, DAY = 3600, 86400
TOUCH: Any = PHONE
WINDOW: Any = DESK
KEYS = {"Approve": "a", "Spam": "s", "Delete": "d", "Reply": "r", "Edit": "e", "Undo": "u"}
STATUS = {"Approve": "visible", "Spam": "spam", "Delete": "deleted"}
TOLD = {"Approve": "Approved.", "Spam": "Marked as spam.", "Delete": "Deleted."}


# The ground


@pytest.fixture
def outside() -> Outside:
    """The clock of the service stands still at the hour of the browser's."""
    made = Outside()
    made.time = int(time.time())
    return made


@pytest.fixture
def settings() -> dict[str, Any]:
    here = {"server_listen": "127.0.0.1:0", "site_origins": (BLOG,), "limits_enabled": False}
    return {**here, "moderation_hold": "all"}


def settled(**settings: Any) -> pytest.MarkDecorator:
    here = {"server_listen": "127.0.0.1:0", "site_origins": (BLOG,), "limits_enabled": False}
    return pytest.mark.parametrize("settings", [{**here, **settings}], ids=[""])


def account(app: App, email: str = MAIL, nickname: str = "江屿", role: str = "admin") -> int:
    """An account, an admin's unless told otherwise; its id."""
    house = app.house
    secret = hashlib.sha256(PASSWORD.encode()).hexdigest()
    stored = hashed(secret, password_scheme(1, house.key, email))
    with house.store.writing():
        house.store.make_admin(email, nickname, stored, int(house.world.now()))
    run(app, "UPDATE account SET role = ? WHERE email = ?", role, email)
    made = house.store.account_of(email)
    assert made
    return made.id


def remember(context: BrowserContext, origin: str, key: str, value: Any) -> None:
    """Once, when the first page opens: quicker than Playwright's `storage_state`."""
    words = json.dumps([origin, key, json.dumps(value)])
    context.add_init_script(
        f"""{{
          const [origin, key, value] = {words}
          if (location.origin === origin && !sessionStorage.begun) {{
            sessionStorage.begun = 1
            localStorage.setItem(key, value)
          }}
        }}"""
    )


@dataclass
class Desk:
    """The service with an admin, and the browser before it."""

    app: App
    browser: Browser
    service: str
    stack: ExitStack
    expected: list[str] = field(default_factory=list)  # in the console
    heard: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def new_page(self, *, signed: bool = True, lang: str = "en-US", **how: Any) -> Page:
        """A browser of his own, in which he is signed in."""
        context = new_context(self.browser, locale=lang, **how)
        if signed:
            owner = self.app.house.store.account_of(MAIL)
            assert owner
            now = int(self.app.house.world.now())
            token = make_token(owner, self.app.house.key, now, "admin")
            me = {"token": token, "nickname": owner.nickname, "email": MAIL}
            remember(context, self.service, f"{self.service}/commentd admin", me)
        self.stack.callback(context.close)
        context.on("request", lambda request: self.asked.append(request.url))
        page = context.new_page()
        page.on("console", lambda message: self.heard.append(message.text))
        page.on("pageerror", lambda error: self.heard.append(f"{error}\n{error.stack}"))
        page.on("dialog", self.dismiss)
        return page

    def dismiss(self, dialog: Dialog) -> None:
        """A dialog of the browser's is of a script that should not run."""
        self.heard.append(dialog.message)
        dialog.dismiss()

    def open(self, view: str = "queue", **how: Any) -> Page:
        page = self.new_page(**how)
        page.goto(f"{self.service}/admin#{view}")
        return there(page)


@pytest.fixture
def desk(app: App, browser: Browser) -> Iterator[Desk]:
    account(app)
    with service(app) as address, ExitStack() as stack:
        desk = Desk(app, browser, address, stack)
        yield desk
        stack.close()
        assert [s for s in desk.heard if not any(e in s for e in desk.expected)] == []
        own = (f"{address}/", f"blob:{address}/", "data:")
        assert [url for url in desk.asked if not url.startswith(own)] == []


# Small verbs


def there(page: Page) -> Page:
    """All that the view asked for has come."""
    page.wait_for_function(
        "() => document.querySelector('footer') && !document.querySelector('[aria-busy=true]')"
    )
    return painted(page)


def go(page: Page, view: str) -> Page:
    """To another view, as by a link."""
    page.evaluate("view => { location.hash = '#' + view }", view)
    page.wait_for_function(
        """view => view === 'welcome'
          || document.querySelector('header [aria-current]')?.hash === '#' + view.split('?')[0]""",
        arg=view,
    )
    return there(page)


def run(app: App, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(app.house.store.path)) as db, db:
        db.text_factory = lambda raw: raw.decode(errors="replace")
        return db.execute(sql, values).fetchall()


def given(app: App, *texts: str, **fields: Any) -> list[int]:
    """Comments that wait, in the order in which the queue shows them; their ids."""
    ids = [say(app, text, f"By {text}"[:40], **fields) for text in reversed(texts)]
    return ids[::-1]


def judge(app: App, status: str, *ids: int) -> None:
    with app.house.store.writing():
        for each in ids:
            app.house.store.judge(each, status, int(app.house.world.now()))


def states(app: App) -> dict[str, str]:
    """The state of each comment, by its text."""
    return dict(run(app, "SELECT content, status FROM comment"))


def expect_states(app: App, *every: str, **of: str) -> None:
    """Soon all comments are in this state, or these in those: the page waits for no answer."""
    test_server.until(
        lambda: (
            of.items() <= states(app).items()
            and (not every or set(states(app).values()) == set(every))
        )
    )


def texts(page: Page) -> list[str]:
    return page.locator("main article .body").all_inner_texts()


def expect_texts(page: Page, *texts: str) -> None:
    """These comments are shown, from top to bottom."""
    expect(page.locator("main article .body")).to_have_text(list(texts))


def row(page: Page, text: str) -> Locator:
    return page.get_by_role("article").filter(has_text=text)


def line(page: Page, text: str) -> Locator:
    """A row of a list that is not of comments."""
    return page.locator("main li.line").filter(has_text=text)


def nothing(page: Page, words: str) -> Locator:
    """What a list says when there is nothing in it."""
    return page.locator("main .none").filter(has_text=words)


def notes(page: Page, text: str) -> Locator:
    """The small words in a row of a list."""
    return line(page, text).locator(".dots > span")


def hand(page: Page) -> Locator:
    """The comment that keys act on."""
    return page.locator("article[aria-current]")


def told(page: Page, text: str | re.Pattern[str]) -> None:
    """The bar says so."""
    expect(page.locator(".bars [role=status] > span")).to_have_text(text)


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog")


def sign_in(page: Page, use: Use = mouse, password: str = PASSWORD) -> None:
    use(page.get_by_label("E-mail"), MAIL)
    use(page.get_by_label("Password"), password)
    use(button(page, "Sign in"))


Act = Callable[[Page, str], None]


def by_mouse(page: Page, word: str) -> None:
    bars = page.locator(".bars")
    if word == "Undo":
        expect(button(bars, word)).to_be_visible()
    chosen = button(bars, word)
    (chosen if chosen.count() else button(hand(page), word)).click()


def by_keys(page: Page, word: str) -> None:
    if word == "Undo":
        expect(button(page.locator(".bars"), word)).to_be_visible()
    page.keyboard.press(KEYS[word])


@pytest.fixture(params=[by_mouse, by_keys], ids=["mouse", "keys"])
def act(request: pytest.FixtureRequest) -> Act:
    """How a comment is dealt with."""
    how: Act = request.param
    return how


def refuse(page: Page, path: str, status: int, code: str, **headers: str) -> None:
    """What is asked there from now on is refused."""
    answer = {"error": "不行", "code": code}
    page.route(path, lambda route: route.fulfill(status=status, json=answer, headers=headers))


# Getting in


def test_from_the_link_of_a_real_start_to_the_first_approved_comment(
    start: test_server.Start, browser: Browser
) -> None:
    running = start(moderation={"hold": "all"}, site={"origins": BLOG})
    pattern = r"\S+/admin#link=[0-9a-f]{32}(?= )"
    (link,) = test_server.until(lambda: re.findall(pattern, running.said))
    comment = {"page_url": "/a/", "nickname": "Ann", "content": "First!", "captcha_token": "x"}
    running.ask("POST", "/comments", f"Origin: {BLOG}", body=comment)
    faults: list[str] = []
    with closing(browser.new_context(locale="en-US")) as context:
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(link)
        for name, value in {"E-mail": MAIL, "Name": "江屿", "Password": PASSWORD}.items():
            page.get_by_label(name).fill(value)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        expect(page.locator("pre")).to_have_text(
            f'<script src="{running.address}/embed.js" async></script>'
        )
        page.get_by_role("link", name="Go to the queue").click()
        expect_texts(page, "First!")
        page.keyboard.press("a")
        told(page, "Approved.")
        expect(nothing(page, "Nothing waits. Have a good day.")).to_be_visible()

        def listed() -> list[str]:
            with urllib.request.urlopen(f"{running.address}/comments?url=/a/") as answer:
                return [comment["content"] for comment in json.load(answer)["comments"]]

        assert test_server.until(listed) == ["First!"]  # the page did not wait for the service
        page.goto("about:blank")
        page.goto(link)
        expect(page.get_by_text("This link is of no use any more")).to_be_visible()
    assert [fault for fault in faults if REFUSED not in fault] == []


def test_a_link_goes_out_of_the_address_and_the_history_at_once(desk: Desk) -> None:
    link = new_admin_link(desk.app.house.store, desk.app.house.world, MAIL)
    page = desk.new_page(signed=False)
    page.goto(f"{desk.service}/admin#link={link}")
    expect(page.get_by_label("Password")).to_be_focused()
    assert page.url == f"{desk.service}/admin"
    assert page.evaluate("JSON.stringify([history.state, {...localStorage}])").count(link) == 0
    page.go_back()
    page.go_forward()
    assert link not in page.url


def test_a_link_for_an_account_asks_for_a_new_password_only(desk: Desk) -> None:
    link = new_admin_link(desk.app.house.store, desk.app.house.world, MAIL)
    page = desk.new_page(signed=False)
    page.goto(f"{desk.service}/admin#link={link}")
    expect(page.get_by_role("heading", name="Set a new password")).to_be_visible()
    expect(page.get_by_text(f"For \u2068{MAIL}\u2069.")).to_be_visible()
    expect(page.locator("form input:visible")).to_have_count(1)
    keyboard(page.get_by_label("Password"), "another one")
    keyboard(button(page, "Save"))
    told(page, "Your new password is set. Other devices are signed out.")
    expect(page.get_by_role("heading", name="Queue")).to_be_visible()
    button(page, "Sign out").click()
    desk.expected.append(REFUSED)
    sign_in(page, keyboard)
    expect(page.get_by_role("alert")).to_contain_text("password is wrong")
    sign_in(page, keyboard, "another one")
    expect(page.get_by_role("navigation", name="Sections")).to_be_visible()


def test_a_link_makes_an_admin_of_a_reader_and_says_so(desk: Desk) -> None:
    account(desk.app, "ann@blog.example", "Ann", role="user")
    link = new_admin_link(desk.app.house.store, desk.app.house.world, "ann@blog.example")
    page = desk.new_page(signed=False)
    page.goto(f"{desk.service}/admin#link={link}")
    expect(page.get_by_text("For \u2068ann@blog.example\u2069.")).to_be_visible()
    page.get_by_label("Password").fill("another one")
    button(page, "Begin").click()
    expect(page.get_by_role("heading", name="You are the admin")).to_be_focused()


@pytest.mark.parametrize("link", ["0" * 32, "", "x" * 3000, "%00", "<img src=x onerror=alert(1)>"])
def test_a_used_or_wrong_link_says_what_to_do(desk: Desk, link: str) -> None:
    desk.expected.append(REFUSED)
    page = desk.new_page(signed=False)
    page.goto(f"{desk.service}/admin#link={link}")
    expect(page.get_by_role("heading", level=1)).to_have_text("This link is of no use any more")
    expect(page.get_by_text("restart the service, or run “commentd admin E-MAIL”")).to_be_visible()
    button(page, "Sign in").click()
    sign_in(page)
    expect(page.get_by_role("heading", name="Queue")).to_be_visible()


def test_a_link_that_could_not_be_looked_at_is_tried_again(desk: Desk) -> None:
    desk.expected.append(UNREACHED)
    link = new_admin_link(desk.app.house.store, desk.app.house.world, "new@blog.example")
    page = desk.new_page(signed=False)
    page.route("**/admin/link", lambda route: route.abort())
    page.goto(f"{desk.service}/admin#link={link}")
    expect(page.get_by_text("The service can’t be reached")).to_be_visible()
    page.unroute("**/admin/link")
    button(page, "Try again").click()
    expect(page.get_by_label("Name")).to_be_focused()
    expect(page.get_by_label("E-mail")).to_have_count(0)


def test_a_link_that_is_opened_in_a_tab_of_the_page_counts_too(desk: Desk) -> None:
    page = desk.open()
    link = new_admin_link(desk.app.house.store, desk.app.house.world, MAIL)
    page.evaluate("link => { location.hash = '#link=' + link }", link)
    expect(page.get_by_role("heading", name="Set a new password")).to_be_visible()
    assert link not in page.url


@settled(captcha_provider="turnstile", captcha_site_key="k", captcha_secret="s")
def test_one_signs_in_with_our_own_proof_of_work_whatever_readers_solve(
    desk: Desk, use: Use
) -> None:
    desk.expected.append(REFUSED)
    given_to: list[str] = []
    page = desk.open(signed=False)
    expect(page.get_by_label("E-mail")).to_be_focused()
    page.on("request", lambda request: given_to.append(request.post_data or ""))
    sign_in(page, use, "not mine")
    expect(page.get_by_role("alert")).to_contain_text("password is wrong")
    sign_in(page, use)
    expect(page.get_by_role("heading", name="Queue")).to_be_focused()
    sent = [json.loads(body) for body in given_to if "captcha_token" in body]
    assert [form["password"] for form in sent] == [
        hashlib.sha256(word.encode()).hexdigest() for word in ("not mine", PASSWORD)
    ]
    assert sent[0]["captcha_token"] != sent[1]["captcha_token"]
    page.reload()
    expect(page.get_by_role("heading", name="Queue")).to_be_visible()
    assert PASSWORD not in page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")


def test_a_readers_account_is_not_let_in(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    run(desk.app, "UPDATE account SET role = 'user'")
    page = desk.open(signed=False)
    sign_in(page)
    expect(page.get_by_role("alert")).to_have_text(
        "E-mail or password is wrong, or the account is no admin’s."
    )


def test_signing_out_where_the_service_hears_nothing_says_so(desk: Desk) -> None:
    desk.expected.append(UNREACHED)
    page = desk.open()
    token = page.evaluate("JSON.parse(Object.values(localStorage)[0]).token")
    page.route("**/admin/logout", lambda route: route.abort())
    button(page, "Sign out").click()
    expect(page.get_by_role("status").first).to_contain_text("You are signed out here. The service")
    assert token not in page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")


def test_signing_out_ends_the_token_and_leaves_nothing_behind(desk: Desk, use: Use) -> None:
    given(desk.app, "Hers.")
    page = desk.open()
    token = page.evaluate("JSON.parse(Object.values(localStorage)[0]).token")
    use(button(page, "Sign out"))
    told(page, "You are signed out, on all devices.")
    expect(page.get_by_label("Password")).to_be_focused()
    assert token not in page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
    assert texts(page) == []
    expect(page.get_by_role("navigation")).to_have_count(0)
    headers = {"Authorization": f"Bearer {token}"}
    client = TestApp(desk.app)
    assert client.get("/admin/comments", headers=headers, status=401)
    page.reload()
    expect(page.get_by_label("E-mail")).to_have_value(MAIL)


def test_who_was_signed_out_meanwhile_goes_on_with_his_draft(desk: Desk, use: Use) -> None:
    desk.expected.append(REFUSED)
    given(desk.app, "Hers.")
    page = desk.open()
    use(button(row(page, "Hers."), "Reply"))
    page.keyboard.insert_text("A long thought.")
    run(desk.app, "UPDATE account SET version = version + 1")
    use(button(row(page, "Hers."), "Send"))
    expect(dialog(page)).to_have_attribute("aria-label", "Please sign in again")
    expect(dialog(page).get_by_label("E-mail")).to_have_value(MAIL)
    use(dialog(page).get_by_label("Password"), PASSWORD)
    use(button(dialog(page), "Sign in"))
    told(page, "Replied.")
    assert run(desk.app, "SELECT nickname, content, status FROM comment ORDER BY id") == [
        ("By Hers.", "Hers.", "visible"),
        ("江屿", "A long thought.", "visible"),
    ]


def test_a_draft_outlives_even_the_sign_in_that_was_given_up(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    given(desk.app, "Hers.")
    page = desk.open()
    page.keyboard.press("r")
    page.keyboard.insert_text("A long thought.")
    run(desk.app, "UPDATE account SET version = version + 1")
    page.keyboard.press("Control+Enter")
    expect(dialog(page)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    sign_in(page)
    expect_texts(page, "Hers.")
    page.keyboard.press("r")
    expect(page.get_by_role("textbox")).to_have_value("A long thought.")
    page.reload()
    expect(hand(page)).to_be_visible()
    page.keyboard.press("r")
    expect(page.get_by_role("textbox")).to_have_value("A long thought.")


def test_a_former_admin_sees_nothing_more(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    page = desk.open()
    given(desk.app, "Hers.")
    run(desk.app, "UPDATE account SET role = 'user'")
    page.evaluate("location.hash = '#comments'")
    expect(dialog(page)).to_have_attribute("aria-label", "Please sign in again")
    assert texts(page) == []
    dialog(page).get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(dialog(page).get_by_role("alert")).to_contain_text("no admin’s")
    button(dialog(page), "Cancel").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


# The queue


@pytest.mark.parametrize("word", ["Approve", "Spam", "Delete"])
def test_one_after_the_other_is_judged_and_taken_back(desk: Desk, act: Act, word: str) -> None:
    given(desk.app, "One.", "Two.", "Three.")
    page = desk.open()
    expect(page).to_have_title("(3) Queue · commentd")
    expect(hand(page)).to_contain_text("One.")
    act(page, word)
    expect_texts(page, "Two.", "Three.")
    expect(row(page, "Two.")).to_be_focused()
    told(page, TOLD[word])
    expect(page).to_have_title("(2) Queue · commentd")
    act(page, "Undo")
    told(page, "Undone.")
    expect_texts(page, "One.", "Two.", "Three.")
    expect(row(page, "One.")).to_be_focused()
    expect(page).to_have_title("(3) Queue · commentd")
    expect_states(desk.app, "waiting")
    for left in (["Two.", "Three."], ["Three."], []):
        act(page, word)
        expect_texts(page, *left)
    expect(nothing(page, "Nothing waits. Have a good day.")).to_be_focused()
    expect(page).to_have_title("Queue · commentd")
    assert page.locator("[data-count=waiting]").all_inner_texts() == ["", ""]
    expect_states(desk.app, STATUS[word])
    act(page, "Undo")
    expect_texts(page, "Three.")
    expect_states(desk.app, **{"Three.": "waiting"})


def test_the_last_of_the_list_leads_back_to_the_one_before(desk: Desk) -> None:
    given(desk.app, "One.", "Two.", "Three.")
    page = desk.open()
    for _ in range(3):
        page.keyboard.press("j")
    expect(row(page, "Three.")).to_be_focused()
    page.keyboard.press("j")
    expect(row(page, "Three.")).to_be_focused()
    page.keyboard.press("k")
    expect(row(page, "Two.")).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("s")
    expect_texts(page, "One.", "Two.")
    expect(row(page, "Two.")).to_be_focused()


def test_several_are_judged_at_once_and_taken_back(desk: Desk, act: Act) -> None:
    given(desk.app, *"ABCDE")
    page = desk.open()
    for name in "BDE":
        if act is by_keys:
            while not hand(page).get_by_text(f"By {name}").count():
                page.keyboard.press("j")
            page.keyboard.press("x")
        else:
            page.get_by_label(f"Select: By {name}").check()
    bar = page.get_by_role("region", name="Select")
    expect(bar).to_contain_text("3 selected")
    act(page, "Spam")
    expect_texts(page, "A", "C")
    expect(bar).to_be_empty()
    told(page, "3 comments are spam.")
    expect(page).to_have_title("(2) Queue · commentd")
    act(page, "Undo")
    told(page, "Undone.")
    expect_texts(page, *"ABCDE")
    expect_states(desk.app, "waiting")


def test_all_are_selected_and_none_again_by_two_buttons(desk: Desk) -> None:
    given(desk.app, *"ABC")
    page = desk.open()
    page.get_by_label("Select: By B").check()
    mouse(button(page, "Select all"))
    expect(page.get_by_text("3 selected")).to_be_visible()
    mouse(button(page, "Clear"))
    expect(page.get_by_text("selected")).to_have_count(0)
    page.get_by_label("Select: By A").check()
    mouse(button(page, "Select all"))
    mouse(button(page.locator(".bars"), "Approve"))
    expect(nothing(page, "Nothing waits.")).to_be_focused()
    expect_states(desk.app, "visible")


def test_more_than_a_hundred_are_judged_at_once(desk: Desk) -> None:
    given(desk.app, *[f"No. {n}." for n in range(105)])
    page = desk.open()
    for shown in (60, 90, 105):
        button(page, "Show more").click()
        expect(page.get_by_role("article")).to_have_count(shown)
    expect(button(page, "Show more")).to_have_count(0)
    page.keyboard.press("x")
    button(page, "Select all").click()
    page.keyboard.press("d")
    told(page, "105 comments deleted.")
    expect(nothing(page, "Nothing waits.")).to_be_focused()
    page.keyboard.press("u")
    told(page, "Undone.")
    expect_states(desk.app, "waiting")
    expect(page).to_have_title("(105) Queue · commentd")


def test_the_next_page_comes_by_itself_when_one_is_done(desk: Desk) -> None:
    given(desk.app, *[f"No. {n}." for n in range(31)])
    page = desk.open()
    page.keyboard.press("x")
    button(page, "Select all").click()
    page.keyboard.press("a")
    expect_texts(page, "No. 30.")
    expect(hand(page)).to_contain_text("No. 30.")
    page.keyboard.press("s")
    expect(nothing(page, "Nothing waits.")).to_be_focused()
    expect_states(desk.app, **{"No. 30.": "spam"})


def test_more_takes_the_focus_along(desk: Desk) -> None:
    given(desk.app, *[f"No. {n}." for n in range(33)])
    page = desk.open()
    page.get_by_label("Select: By No. 29.").focus()
    reach(button(page, "Show more"))
    page.keyboard.press("Enter")
    expect(row(page, "No. 30.")).to_be_focused()


def test_an_answer_in_place_approves_and_undo_takes_back_both(desk: Desk, act: Act) -> None:
    given(desk.app, "One.", "Two.")
    page = desk.open()
    act(page, "Reply")
    box = page.get_by_role("textbox", name="Reply to")
    expect(box).to_be_focused()
    page.keyboard.type("asd jk u ?/")
    expect(box).to_have_value("asd jk u ?/")
    if act is by_keys:
        page.keyboard.press("Control+Enter")
    else:
        button(page, "Send").click()
    told(page, "Replied.")
    expect_texts(page, "Two.")
    expect(row(page, "Two.")).to_be_focused()
    expect(page).to_have_title("(1) Queue · commentd")
    expect_states(desk.app, **{"One.": "visible", "asd jk u ?/": "visible", "Two.": "waiting"})
    act(page, "Undo")
    told(page, "Undone.")
    expect_texts(page, "One.", "Two.")
    expect_states(desk.app, **{"One.": "waiting", "asd jk u ?/": "deleted", "Two.": "waiting"})


def test_an_answer_can_be_given_up_and_what_was_typed_stays(desk: Desk) -> None:
    given(desk.app, "One.")
    page = desk.open()
    keyboard(button(hand(page), "Reply"))
    page.keyboard.insert_text("Half a thought")
    keyboard(button(page, "Cancel"))
    expect(row(page, "One.")).to_be_focused()
    keyboard(button(hand(page), "Reply"))
    expect(page.get_by_role("textbox")).to_have_value("Half a thought")


def test_escape_closes_an_answer_whose_text_is_kept(desk: Desk) -> None:
    given(desk.app, "One.")
    page = desk.open()
    page.keyboard.press("r")
    page.keyboard.insert_text("Half a thought")
    page.keyboard.press("Escape")
    expect(row(page, "One.")).to_be_focused()
    expect(page.get_by_role("textbox")).to_have_count(0)
    page.keyboard.press("r")
    expect(page.get_by_role("textbox")).to_have_value("Half a thought")


def test_escape_closes_an_edit_only_where_nothing_is_lost(desk: Desk) -> None:
    given(desk.app, "One.")
    page = desk.open()
    page.keyboard.press("e")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Text")).to_have_count(0)
    page.keyboard.press("e")
    page.keyboard.insert_text("Changed. ")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Text")).to_have_value(re.compile("Changed. "))


def test_a_comment_is_edited_in_place(desk: Desk, act: Act) -> None:
    given(desk.app, "A tpyo.", website="https://old.example/")
    page = desk.open()
    act(page, "Edit")
    form = page.locator("article form")
    expect(form.get_by_label("Text")).to_be_focused()
    expect(form.get_by_label("Website")).to_have_value("https://old.example/")
    form.get_by_label("Text").fill("A **typo**.")
    form.get_by_label("Name").fill("Ann")
    form.get_by_label("Website").fill("")
    page.keyboard.press("Enter")
    told(page, "Saved.")
    expect(page.get_by_role("article", name="Comment by \u2068Ann\u2069")).to_be_focused()
    expect(page.locator(".body strong")).to_have_text("typo")
    expect(hand(page)).to_contain_text("edited")
    assert run(desk.app, "SELECT nickname, content, website, status FROM comment") == [
        ("Ann", "A **typo**.", "", "waiting")
    ]


def test_an_edit_that_is_refused_says_why_and_keeps_what_was_typed(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    given(desk.app, "Hers.")
    page = desk.open()
    page.keyboard.press("e")
    page.get_by_label("Name").fill("\u202e")
    button(page, "Save").click()
    expect(page.get_by_role("alert")).to_have_text(
        "Please choose another name: up to 64 letters, none of them hidden."
    )
    page.get_by_label("Name").fill("Ann")
    page.get_by_label("Text").fill("x" * 2001)
    button(page, "Save").click()
    expect(page.get_by_role("alert")).to_have_text("This is too long.")
    expect(page.get_by_label("Text")).to_have_value("x" * 2001)
    expect_states(desk.app, **{"Hers.": "waiting"})


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *[("Address", "223.5.5.5"), ("E-mail", "eve@evil.example")],
        *[("Domain spam.example", "spam.example"), ("Domain linked.example", "linked.example")],
    ],
)
def test_an_author_is_blocked_by_what_his_comment_tells(desk: Desk, kind: str, value: str) -> None:
    fields: Any = {"email": "eve@evil.example", "website": "https://www.spam.example/x"}
    say(desk.app, "Buy https://linked.example/a and https://www.linked.example/b !", **fields)
    page = desk.open()
    button(hand(page), "Block").click()
    dialog(page).get_by_label(re.compile(f"^{kind}")).check()
    dialog(page).get_by_label("for ever").check()
    button(dialog(page), "Block").click()
    expect(dialog(page)).to_have_count(0)
    told(page, re.compile(f"^Blocked: \u2068{re.escape(value)}\u2069"))
    kept = run(desk.app, "SELECT value, expires_at FROM block")
    assert [(found.removesuffix("/32"), ends) for found, ends in kept] == [(value, None)]
    say(desk.app, "More at https://linked.example/", **fields)
    expect_states(desk.app, **{"More at https://linked.example/": "spam"})
    page.keyboard.press("u")
    told(page, "Undone.")
    assert run(desk.app, "SELECT value FROM block") == []


def test_a_block_of_thirty_days_ends_after_them(desk: Desk) -> None:
    say(desk.app, "Buy!", email="eve@evil.example")
    page = desk.open()
    keyboard(button(hand(page), "Block"))
    keyboard(button(dialog(page), "Block"))
    told(page, re.compile("^Blocked"))
    assert run(desk.app, "SELECT (expires_at - created_at) / 86400 FROM block") == [(30,)]


@pytest.mark.parametrize("status", ["spam", "deleted"])
def test_what_was_put_away_is_put_back(desk: Desk, act: Act, status: str) -> None:
    ids = given(desk.app, "One.", "Two.")
    judge(desk.app, status, *ids)
    page = desk.open()
    expect(nothing(page, "Nothing waits.")).to_be_visible()
    tabs = page.get_by_role("navigation", name="Status")
    tabs.get_by_role("link", name=status, exact=False).click()
    expect_texts(page, "One.", "Two.")
    expect(tabs.locator("[aria-current]")).to_contain_text("2")
    if act is by_keys:
        page.keyboard.press("a")
    else:
        button(hand(page), "Put back").click()
    told(page, "Approved.")
    expect_texts(page, "Two.")
    expect_states(desk.app, **{"One.": "visible", "Two.": status})
    page.go_back()
    expect(nothing(page, "Nothing waits.")).to_be_visible()


def test_beside_a_comment_stands_all_that_decides(desk: Desk) -> None:
    first = say(desk.app, "Known.", "陆知微", email="lu@blog.example", page="/a/")
    judge(desk.app, "visible", first)
    fields: Any = {"email": "lu@blog.example", "website": "https://lu.example/"}
    say(desk.app, "An answer.", "陆知微", page="/a/", parent_id=first, **fields)
    run(desk.app, "INSERT INTO block VALUES (1, 'word', 'casino', '', 0, NULL)")
    say(desk.app, "A casino.", "Mateo Silva", page="https://other.example/z")
    page = desk.open()
    facts = row(page, "An answer.").locator(".facts")
    assert facts.locator("dt").all_inner_texts() == [
        *("Why it waits", "Page", "Author", "Place", "Address", "E-mail", "Website")
    ]
    assert facts.locator("dd").all_inner_texts() == [
        *("Every comment waits", "/a/", "1 comment", "China", "223.5.5.5", "lu@blog.example"),
        "lu.example",
    ]
    links = [a.get_attribute("href") for a in facts.get_by_role("link").all()]
    assert [links[0], links[-1]] == [f"{BLOG}/a/", "https://lu.example/"]
    expect(row(page, "An answer.").locator(".answers")).to_have_text(
        "To \u2068陆知微\u2069: Known."
    )
    go(page, "queue?status=spam")
    facts = row(page, "A casino.").locator(".facts")
    expect(facts.locator(".held")).to_contain_text("Blocked: \u2068casino\u2069")
    expect(facts.locator(".page")).to_contain_text("foreign site")
    expect(facts.locator(".known")).to_contain_text("first comment")
    expect(facts.locator(".place")).to_contain_text("Brazil")


def test_what_can_be_done_with_each_comment_is_seen_without_the_mouse(desk: Desk) -> None:
    given(desk.app, "One.", "Two.")
    page = desk.open(**WINDOW)
    seen = "e => e.checkVisibility({opacityProperty: true, visibilityProperty: true})"
    actions = page.locator("article .acts button").all()
    assert len(actions) > 10
    assert all(action.evaluate(seen) for action in actions)


def test_links_in_a_comment_say_where_they_lead(desk: Desk) -> None:
    given(desk.app, "[blog.example](https://evil.example/x) and https://plain.example/")
    page = desk.open()
    links = page.locator(".body a")
    expect(links.first).to_have_attribute("data-host", "evil.example")
    shown = links.first.evaluate("e => getComputedStyle(e, '::after').content")
    assert "evil.example" in str(shown) or "data-host" in str(shown)
    expect(links.last).not_to_have_attribute("data-host", re.compile(""))
    for link in links.all():
        assert {"noopener", "noreferrer"} <= set((link.get_attribute("rel") or "").split())


def test_links_are_named_in_browsers_that_lack_a_check_for_addresses(desk: Desk) -> None:
    say(desk.app, "See [here](https://www.other.example/a) and [home](mailto:ann@example.com).")
    page = desk.new_page()
    page.add_init_script("delete URL.canParse")  # Safari 16
    page.goto(f"{desk.service}/admin")
    expect(there(page).locator(".body a[data-host]")).to_have_text("here")


def test_a_long_comment_is_folded_and_opens(desk: Desk) -> None:
    given(desk.app, "A long text. " * 80)
    page = desk.open()
    body = page.locator(".body")
    folded = body.evaluate("e => e.clientHeight")
    keyboard(button(page, "Read on"))
    expect(row(page, "A long text.")).to_be_focused()
    assert body.evaluate("e => e.clientHeight") > folded


def test_keys_do_nothing_with_a_modifier_or_while_one_types_or_reads_a_dialog(desk: Desk) -> None:
    given(desk.app, "One.", "Two.")
    page = desk.open()
    writes = requests_of(page, "/admin/comments")
    for combination in ("Control+s", "Alt+a", "Meta+d", "Control+u"):
        page.keyboard.press(combination)
    page.keyboard.press("e")
    page.locator("article form [name=nickname]").focus()
    page.keyboard.type("asdxjkru")
    button(page, "Cancel").click()
    button(hand(page), "Block").click()
    page.keyboard.type("asd")
    page.keyboard.press("Escape")
    expect(dialog(page)).to_have_count(0)
    page.keyboard.press("?")
    page.keyboard.type("asdr")
    page.keyboard.press("Escape")
    expect_texts(page, "One.", "Two.")
    assert [each.method for each in writes if each.method != "GET"] == []
    page.keyboard.press("A")
    expect_texts(page, "One.", "Two.")


def test_a_key_that_is_held_down_judges_one(desk: Desk) -> None:
    given(desk.app, "One.", "Two.", "Three.")
    page = desk.open()
    for _ in range(3):
        page.keyboard.down("a")  # the second is a repeat
    page.keyboard.up("a")
    expect_texts(page, "Two.", "Three.")
    told(page, "Approved.")


def test_the_list_of_keys_opens_closes_and_turns_them_off(desk: Desk, use: Use) -> None:
    given(desk.app, "One.")
    page = desk.open()
    page.keyboard.press("?")
    box = page.get_by_role("dialog", name="Keys")
    expect(box).to_be_visible()
    assert "".join(box.locator("kbd").all_inner_texts()) == "jkasdreux/?"
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)
    use(button(page, "Keys"))
    box.get_by_label("Use these keys").uncheck()
    use(button(box, "Done"))
    expect(box).to_have_count(0)
    page.keyboard.press("a")
    page.keyboard.press("?")
    expect(box).to_be_visible()
    box.get_by_label("Use these keys").check()
    page.keyboard.press("Escape")
    expect_texts(page, "One.")
    expect(box).to_have_count(0)
    page.keyboard.press("a")
    told(page, "Approved.")


def test_undo_stays_while_the_mouse_or_the_focus_is_on_it(desk: Desk) -> None:
    given(desk.app, "One.", "Two.")
    page = desk.new_page()
    # Time moves only as told: a busy machine would use up the ten seconds that a notice stays.
    page.clock.install(time=desk.app.house.world.now())
    page.clock.pause_at(desk.app.house.world.now() + 1)
    page.goto(f"{desk.service}/admin")
    there(page)
    page.keyboard.press("a")
    told(page, "Approved.")
    # The response has come. What is still under way is given up after 20 s, which now pass.
    expect(page).to_have_title("(1) Queue · commentd")
    button(page, "Undo").focus()
    page.clock.run_for(30_000)
    told(page, "Approved.")
    row(page, "Two.").focus()
    page.clock.run_for(4_000)
    expect(page.locator(".bars [role=status]")).to_be_empty()
    page.keyboard.press("a")
    expect(page).to_have_title("Queue · commentd")
    button(page, "Undo").hover()
    page.clock.run_for(30_000)
    told(page, "Approved.")
    page.mouse.move(0, 0)
    page.clock.run_for(4_000)
    expect(page.locator(".bars [role=status]")).to_be_empty()


def test_quick_keys_on_a_slow_network_lose_nothing(desk: Desk) -> None:
    given(desk.app, *"ABCD")
    page = desk.open()
    with held(page, "**/admin/comments"):
        for key in "asda":
            page.keyboard.press(key)
        expect(nothing(page, "Nothing waits.")).to_be_focused()
    told(page, "Approved.")
    page.wait_for_load_state("networkidle")
    expect_states(desk.app, A="visible", B="spam", C="deleted", D="visible")
    expect(page).to_have_title("Queue · commentd")


def test_undo_before_the_answer_came_still_takes_it_back(desk: Desk, act: Act) -> None:
    given(desk.app, "One.", "Two.")
    page = desk.open()
    with held(page, "**/admin/comments"):
        act(page, "Spam")
        expect_texts(page, "Two.")
        act(page, "Undo")
        told(page, "One moment…")
    told(page, "Undone.")
    expect_texts(page, "One.", "Two.")
    expect_states(desk.app, "waiting")


def test_an_empty_queue_shows_within_a_minute_what_came(desk: Desk) -> None:
    page = desk.new_page()
    page.clock.install()
    page.goto(f"{desk.service}/admin")
    there(page)
    given(desk.app, "One.")
    page.clock.run_for(61_000)
    expect_texts(page, "One.")
    given(desk.app, "Two.")
    page.clock.run_for(61_000)
    expect(page).to_have_title("(2) Queue · commentd")
    expect_texts(page, "One.")


def test_a_comment_that_was_judged_by_another_meanwhile_is_no_fault(desk: Desk) -> None:
    (one, _) = given(desk.app, "One.", "Two.")
    page = desk.open()
    judge(desk.app, "spam", one)
    page.keyboard.press("a")
    told(page, "Approved.")
    page.keyboard.press("u")
    told(page, "Undone.")
    expect_states(desk.app, **{"One.": "spam", "Two.": "waiting"})


# Search


def test_comments_are_searched_by_words_and_state_and_back_works(desk: Desk, use: Use) -> None:
    ids = given(desk.app, "Red apple.", "Green apple.", "Pear.")
    judge(desk.app, "visible", ids[0])
    page = desk.open()
    page.keyboard.press("/")
    box = page.get_by_role("searchbox", name="Search")
    expect(box).to_be_focused()
    page.keyboard.type("apple")
    page.keyboard.press("Enter")
    expect_texts(page, "Green apple.", "Red apple.") if ids[1] > ids[0] else expect_texts(
        page, "Red apple.", "Green apple."
    )
    expect(page.locator("p.sr[role=status]")).to_have_text("2 shown")
    expect(box).to_be_focused()
    page.get_by_label("Status").select_option("visible")
    expect_texts(page, "Red apple.")
    assert page.url.endswith("#comments?q=apple&status=visible")
    page.go_back()
    expect(page.get_by_role("article")).to_have_count(2)
    expect(box).to_have_value("apple")
    use(box, "nothing like it")
    page.keyboard.press("Enter")
    expect(nothing(page, "No comment was found.")).to_be_visible()
    for _ in range(3):
        page.go_back()
    expect(page.get_by_role("heading", name="Queue")).to_be_visible()


@pytest.mark.parametrize(
    "word", ["100%", "a_b", "!", "'; --", '"', "\\", "&status=spam", "#x", "+"]
)
def test_whatever_is_searched_for_is_taken_by_the_letter(desk: Desk, word: str) -> None:
    given(desk.app, f"With {word} in it.", "Without.")
    page = desk.open("comments")
    page.get_by_role("searchbox").fill(word)
    page.keyboard.press("Enter")
    expect_texts(page, f"With {word} in it.")
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value(word)
    expect_texts(page, f"With {word} in it.")


def test_an_address_beside_a_comment_finds_all_of_that_address(desk: Desk) -> None:
    say(desk.app, "Here.", "陆知微")
    say(desk.app, "There.", "Mateo Silva")
    page = desk.open()
    row(page, "Here.").get_by_role("link", name="223.5.5.5").click()
    expect_texts(page, "Here.")
    expect(page.get_by_role("heading", name="Comments")).to_be_visible()


def test_a_comment_is_pinned_and_unpinned(desk: Desk) -> None:
    ids = given(desk.app, "One.", "Two.")
    judge(desk.app, "visible", *ids)
    page = desk.open("comments")
    keyboard(button(row(page, "Two."), "Pin"))
    expect(row(page, "Two.").get_by_text("Pinned")).to_be_visible()
    expect(row(page, "Two.")).to_be_focused()
    assert run(desk.app, "SELECT content FROM comment WHERE pinned = 1") == [("Two.",)]
    keyboard(button(row(page, "Two."), "Unpin"))
    expect(button(row(page, "Two."), "Pin")).to_be_visible()
    assert run(desk.app, "SELECT content FROM comment WHERE pinned = 1") == []


def test_among_all_comments_a_judged_one_stays_and_says_what_it_is(desk: Desk, act: Act) -> None:
    given(desk.app, "One.", "Two.")
    page = desk.open("comments")
    act(page, "Spam")
    expect(row(page, "One.").get_by_text("Spam", exact=True).first).to_be_visible()
    expect(button(row(page, "One."), "Put back")).to_be_visible()
    expect(row(page, "Two.")).to_be_focused()
    act(page, "Undo")
    told(page, "Undone.")
    expect(button(row(page, "One."), "Approve")).to_have_count(1)
    expect_states(desk.app, **{"One.": "waiting"})


# Pages


def paged(app: App) -> None:
    ids = [say(app, "One.", page="/a/"), say(app, "Two.", page="/b/"), say(app, "3.", page="/b/")]
    judge(app, "visible", *ids)
    run(app, "UPDATE page SET views = 1286 WHERE page_url = '/a/'")


def test_pages_are_listed_with_their_sums_and_sorted(desk: Desk) -> None:
    paged(desk.app)
    page = desk.open("pages")
    expect(notes(page, "/a/")).to_have_text(["1 comment", "1,286 views", "0 likes"])
    expect(line(page, "/b/").get_by_role("link").first).to_have_attribute("href", f"{BLOG}/b/")
    for order, first in {"views": "/a/", "comments": "/b/"}.items():
        page.get_by_label("Order").select_option(order)
        expect(page.locator("li.line").first).to_contain_text(first)
    page.get_by_role("searchbox").fill("/a")
    page.keyboard.press("Enter")
    expect(page.locator("li.line")).to_have_count(1)
    page.get_by_role("link", name="1 comment").click()
    expect_texts(page, "One.")
    page.get_by_role("link", name="Of one page only").click()
    expect(page.get_by_role("article")).to_have_count(3)


def test_a_button_of_a_row_says_which_row_it_is_of(desk: Desk) -> None:
    say(desk.app, "One.", page="/a/")
    page = desk.open("pages")
    for name in ("Close", "Rename"):
        expect(button(page, name)).to_have_accessible_description(re.compile("^/a/"))


def test_a_page_is_closed_and_reopened(desk: Desk) -> None:
    paged(desk.app)
    page = desk.open("pages")
    mouse(button(line(page, "/a/"), "Close"))
    expect(button(line(page, "/a/"), "Reopen")).to_be_focused()
    expect(line(page, "/a/")).to_contain_text("closed")
    assert run(desk.app, "SELECT page_url FROM page WHERE closed") == [("/a/",)]
    mouse(button(line(page, "/a/"), "Reopen"))
    expect(button(line(page, "/a/"), "Close")).to_be_focused()
    assert run(desk.app, "SELECT page_url FROM page WHERE closed") == []


def test_a_page_gets_another_address(desk: Desk, use: Use) -> None:
    paged(desk.app)
    page = desk.open("pages")
    use(button(line(page, "/a/"), "Rename"))
    expect(dialog(page).get_by_label("Address")).to_have_value("/a/")
    use(dialog(page).get_by_label("Address"), "/new/")
    use(button(dialog(page), "Save"))
    expect(line(page, "/new/")).to_be_visible()
    expect(line(page, "/a/")).to_have_count(0)
    expect(line(page, "/new/").get_by_role("button").first).to_be_focused()
    assert run(desk.app, "SELECT page_url FROM page ORDER BY 1") == [("/b/",), ("/new/",)]


def test_two_pages_are_put_together_when_one_says_so_twice(desk: Desk, use: Use) -> None:
    desk.expected.append(REFUSED)
    paged(desk.app)
    page = desk.open("pages")
    use(button(line(page, "/a/"), "Rename"))
    field = dialog(page).get_by_label("Address")
    use(field, "/b/")
    use(button(dialog(page), "Save"))
    expect(dialog(page).get_by_role("alert")).to_contain_text("That page has comments already")
    use(field, "/c/")  # another address is no consent
    use(field, "/b/")
    use(button(dialog(page), "Merge"))
    expect(line(page, "/a/")).to_have_count(0)
    expect(line(page, "/b/")).to_contain_text("3 comments")
    assert run(desk.app, "SELECT page_url, total, views FROM page") == [("/b/", 3, 1286)]


def test_consent_to_put_pages_together_counts_for_that_address_only(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    paged(desk.app)
    judge(desk.app, "visible", say(desk.app, "Four.", page="/c/"))
    page = desk.open("pages")
    button(line(page, "/a/"), "Rename").click()
    field, alert = dialog(page).get_by_label("Address"), dialog(page).get_by_role("alert")
    field.fill("/b/")
    page.keyboard.press("Enter")
    expect(alert).to_contain_text("has comments already")
    field.fill("/c/")
    page.keyboard.press("Enter")
    expect(alert).to_contain_text("has comments already")
    assert len(run(desk.app, "SELECT 1 FROM page")) == 3


@settled(comments_close_after_days=10)
def test_a_page_that_its_age_closed_is_reopened(desk: Desk) -> None:
    paged(desk.app)
    run(desk.app, "UPDATE page SET opened_at = 1 WHERE page_url = '/a/'")
    page = desk.open("pages")
    expect(line(page, "/a/")).to_contain_text("closed by its age")
    keyboard(button(line(page, "/a/"), "Reopen"))
    expect(line(page, "/a/")).not_to_contain_text("closed")


# Users and blocks


def test_a_user_is_blocked_and_let_in_again(desk: Desk) -> None:
    account(desk.app, "ann@example.com", "Ann", "user")
    page = desk.open("users")
    mouse(button(line(page, "Ann"), "Block"))
    expect(line(page, "Ann").locator(".badge")).to_have_text("blocked")
    assert run(desk.app, "SELECT nickname FROM account WHERE blocked") == [("Ann",)]
    mouse(button(line(page, "Ann"), "Unblock"))
    expect(line(page, "Ann").locator(".badge")).to_have_count(0)
    assert run(desk.app, "SELECT nickname FROM account WHERE blocked") == []
    expect(button(line(page, MAIL), "Block")).to_have_count(0)


def test_a_role_asks_for_ones_own_password(desk: Desk, use: Use) -> None:
    desk.expected.append(REFUSED)
    account(desk.app, "ann@example.com", "Ann", "user")
    page = desk.open("users")
    use(button(line(page, "Ann"), "Make admin"))
    use(dialog(page).get_by_label("Your password"), "not mine")
    use(button(dialog(page), "Make admin"))
    expect(dialog(page).get_by_role("alert")).to_have_text("This is not your password.")
    use(dialog(page).get_by_label("Your password"), PASSWORD)
    use(button(dialog(page), "Make admin"))
    expect(line(page, "Ann").locator(".badge")).to_have_text("Admin")
    expect(dialog(page)).to_have_count(0)
    expect(line(page, "Ann").get_by_role("button").first).to_be_focused()
    assert run(desk.app, "SELECT role FROM account WHERE nickname = 'Ann'") == [("admin",)]


def test_the_only_admin_stays_one(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    page = desk.open("users")
    button(line(page, MAIL), "Make user").click()
    dialog(page).get_by_label("Your password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(dialog(page).get_by_role("alert")).to_contain_text("This is the only admin")


def test_who_gives_away_his_own_role_is_out(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    account(desk.app, "ann@example.com", "Ann")
    page = desk.open("users")
    button(line(page, MAIL), "Make user").click()
    dialog(page).get_by_label("Your password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(line(page, MAIL).get_by_text("Admin", exact=True)).to_have_count(0)
    page.evaluate("location.hash = '#log'")
    expect(dialog(page)).to_have_attribute("aria-label", "Please sign in again")


def test_users_are_searched_and_lead_to_their_comments(desk: Desk) -> None:
    account(desk.app, "ann@example.com", "Ann", "user")
    page = desk.open("users")
    page.get_by_role("searchbox").fill("ann@")
    page.keyboard.press("Enter")
    expect(page.locator("li.line")).to_have_count(1)
    line(page, "Ann").get_by_role("link", name="0 comments").click()
    expect(page.get_by_role("searchbox")).to_have_value("ann@example.com")


@pytest.mark.parametrize(
    ("kind", "value", "kept"),
    [
        ("address", "192.0.2.77/24", "192.0.2.0/24"),
        ("email", " Eve@Evil.example ", "eve@evil.example"),
        ("domain", "https://Spam.example/x", "spam.example"),
        ("word", "casino", "casino"),
    ],
)
def test_a_block_of_each_kind_is_added(desk: Desk, kind: str, value: str, kept: str) -> None:
    page = desk.open("blocks")
    page.get_by_label("What").select_option(kind)
    page.get_by_label("Value").fill(value)
    page.get_by_label("For how long").select_option("7")
    page.get_by_label("Note").fill("Enough.")
    page.keyboard.press("Enter")
    expect(notes(page, kept)).to_have_text(["ends in 7 days", "Enough."])
    told(page, re.compile("^Blocked: "))
    assert run(desk.app, "SELECT kind, note FROM block") == [(kind, "Enough.")]
    page.keyboard.press("u")
    expect(nothing(page, "Nobody and nothing is blocked.")).to_be_visible()


@pytest.mark.parametrize("how", [WINDOW, TOUCH], ids=["desk", "phone"])
def test_the_controls_of_a_block_are_of_one_height(desk: Desk, how: Any) -> None:
    page = desk.open("blocks", **how)
    controls = page.locator(".adding :is(input, select, button)")
    heights = controls.evaluate_all("all => all.map(e => Math.round(e.offsetHeight))")
    assert len(heights) == 5
    assert len(set(heights)) == 1


def test_a_block_that_is_no_such_thing_is_refused_in_words(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    page = desk.open("blocks")
    page.get_by_label("Value").fill("not an address")
    button(page, "Add").click()
    expect(page.get_by_role("alert")).to_contain_text("This can’t be blocked")
    expect(page.get_by_label("Value")).to_have_value("not an address")


def test_a_block_that_would_meet_many_is_asked_about(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    page = desk.open("blocks")
    page.get_by_label("Value").fill("0.0.0.0/0")
    button(page, "Add").click()
    expect(page.get_by_role("alert")).to_contain_text(
        re.compile("Of the latest [0-9]+ comments, [0-9]")
    )
    assert run(desk.app, "SELECT value FROM block") == []
    button(page, "Block anyway").click()
    expect(line(page, "0.0.0.0/0")).to_be_visible()
    button(line(page, "0.0.0.0/0"), "Remove").click()
    button(page, "Undo").click()
    expect(line(page, "0.0.0.0/0")).to_be_visible()


def test_who_changes_a_block_that_was_asked_about_is_asked_again(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    page = desk.open("blocks")
    for value in ("0.0.0.0/0", "::/0"):
        page.get_by_label("Value").fill(value)
        with page.expect_response("**/admin/blocks") as answer:
            page.keyboard.press("Enter")
        assert answer.value.status == 409
        expect(page.get_by_role("alert")).to_contain_text("Of the latest")
    page.get_by_label("Value").fill("192.0.2.1")
    page.keyboard.press("Enter")
    expect(line(page, "192.0.2.1")).to_be_visible()
    expect(button(page, "Add")).to_be_visible()
    assert run(desk.app, "SELECT value FROM block") == [("192.0.2.1",)]


def test_a_removed_block_comes_back_by_undo_with_its_note_and_time(desk: Desk, use: Use) -> None:
    now = int(desk.app.house.world.now())
    for number, ends in enumerate((None, now + 9 * DAY), 1):
        run(
            desk.app,
            "INSERT INTO block VALUES (?, 'word', ?, 'Enough.', 0, ?)",
            number,
            f"w{number}",
            ends,
        )
    page = desk.open("blocks")
    for word in ("w1", "w2"):
        before = run(desk.app, "SELECT kind, value, note, expires_at FROM block ORDER BY value")
        use(button(line(page, word), "Remove"))
        expect(line(page, word)).to_have_count(0)
        told(page, f"No longer blocked: \u2068{word}\u2069.")
        use(button(page, "Undo"))
        expect(line(page, word)).to_be_visible()
        after = run(desk.app, "SELECT kind, value, note, expires_at FROM block ORDER BY value")
        assert after == before


# Mail, log, figures, settings


@pytest.fixture
def stuck(app: App, outside: Outside) -> None:
    """Two letters that could not be delivered, one of which is given up."""
    with app.house.store.writing():
        for number in (1, 2):
            run_in = "INSERT INTO outbox (recipient, message, tries, due_at, expires_at, failure)"
            app.house.store.run(
                f"{run_in} VALUES (:to, :message, 1, :due, :ends, :failure)",
                to=f"ann{number}@example.com",
                message=f"Subject: Letter {number}\n\nHello.",
                due=None if number == 1 else int(outside.time) + HOUR,
                ends=int(outside.time) + DAY,
                failure="550 no such user" if number == 1 else "",
            )


def test_a_letter_is_tried_again_or_dropped(desk: Desk, stuck: None) -> None:
    page = desk.open("mail")
    expect(notes(page, "Letter 1")).to_have_text(
        ["ann1@example.com", "1 try", "550 no such user", "given up"]
    )
    expect(notes(page, "Letter 2")).to_have_text(
        ["ann2@example.com", "1 try", re.compile("^next in ")]
    )
    mouse(button(line(page, "Letter 1"), "Try again"))
    told(page, "It is tried again.")
    expect(line(page, "Letter 1")).to_have_count(0)
    due = "SELECT tries, failure, due_at <= ? FROM outbox WHERE recipient = 'ann1@example.com'"
    assert run(desk.app, due, desk.app.house.world.now()) == [(0, "", 1)]
    mouse(button(line(page, "Letter 2"), "Drop"))
    mouse(button(dialog(page), "Cancel"))
    mouse(button(line(page, "Letter 2"), "Drop"))
    mouse(button(dialog(page), "Drop"))
    told(page, "Dropped.")
    expect(nothing(page, "All letters were delivered.")).to_be_focused()
    assert run(desk.app, "SELECT recipient FROM outbox") == [("ann1@example.com",)]


def test_a_letter_that_fails_again_is_shown_again(
    desk: Desk, stuck: None, outside: Outside
) -> None:
    page = desk.open("mail")
    button(line(page, "Letter 1"), "Try again").click()
    told(page, "It is tried again.")
    outside.mail_fails_with = OSError("the post office is shut")
    desk.app.deliver()
    page.reload()
    expect(line(page, "Letter 1")).to_contain_text("1 try")
    outside.mail_fails_with = None
    outside.time += HOUR
    desk.app.deliver()
    assert [isinstance(letter, Letter) for letter in outside.letters]
    page.reload()
    expect(nothing(page, "All letters were delivered.")).to_be_visible()


def test_the_log_tells_what_was_done_and_by_whom(desk: Desk) -> None:
    given(desk.app, "One.")
    page = desk.open()
    for key in "as":
        page.keyboard.press(key)
        page.keyboard.press("u") if key == "a" else None
        told(page, "Undone." if key == "a" else "Marked as spam.")
    expect_states(desk.app, "spam")
    with desk.app.house.store.writing():
        now = int(desk.app.house.world.now())
        for who, action in (("mail", "deleted"), ("command", "claim"), ("Ann", "newdeed")):
            desk.app.house.store.note(now=now, who=who, action=action, subject="7", detail="so")
    go(page, "log")
    heads = [
        *("Ann newdeed 7", "On the server became admin 7"),
        "By a link in a letter deleted comment 7",
        *("江屿 marked as spam comment 1", "江屿 held comment 1", "江屿 approved comment 1"),
    ]
    expect(page.locator("li.line .what > :first-child")).to_have_text(heads, use_inner_text=True)


def test_the_log_goes_on_below(desk: Desk) -> None:
    with desk.app.house.store.writing():
        for number in range(35):
            desk.app.house.store.note(
                now=0, who="Ann", action="block", subject=f"w{number}", detail=""
            )
    page = desk.open("log")
    expect(page.locator("li.line")).to_have_count(30)
    button(page, "Show more").click()
    expect(page.locator("li.line")).to_have_count(35)
    expect(line(page, "w0")).to_be_visible()


def test_each_figure_is_in_a_table_too(desk: Desk) -> None:
    paged(desk.app)
    today = (int(desk.app.house.world.now()) + 8 * HOUR) // DAY
    run(desk.app, "DELETE FROM day")
    for ago, sums in {0: (3, 40, 5), 29: (1, 2, 0), 30: (9, 9, 9)}.items():
        run(desk.app, "INSERT INTO day VALUES (?, ?, ?, ?)", today - ago, *sums)
    page = desk.open("figures")
    names = [each.get_attribute("aria-label") for each in page.get_by_role("img").all()]
    assert names == [
        "Comments: 4, at most 3 a day",
        "Views: 42, at most 40 a day",
        "Likes: 5, at most 5 a day",
    ]
    for chart in page.get_by_role("img").all():
        assert chart.locator("rect").count() == 30
        assert chart.locator("rect").last.get_attribute("height") == "60"
    page.get_by_text("Show as table").click()
    table = page.get_by_role("table", name="The last 30 days")
    rows = [each.all_inner_texts() for each in (table.locator("tr").last.locator("th, td"),)]
    assert rows[0][1:] == ["3", "40", "5"]
    assert table.locator("tbody tr").first.locator("td").all_inner_texts() == ["1", "2", "0"]
    assert table.locator("tbody tr").count() == 30
    read = page.get_by_role("table", name="Most read").locator("tbody tr")
    assert [each.inner_text().split() for each in read.all()] == [
        *(["/a/", "↗", "1,286", "1"], ["/b/", "↗", "0", "2"])
    ] or [each.inner_text().split() for each in read.all()] == [
        *(["/a/", "1,286", "1"], ["/b/", "0", "2"])
    ]
    expect(page.get_by_role("table", name="Most commented").locator("tbody th").first).to_have_text(
        "/b/"
    )


@settled(server_public_url="https://comments.blog.example")
def test_an_address_among_the_settings_stands_in_one_line(desk: Desk) -> None:
    desk.expected.append("Cross-Origin-Opener-Policy")  # this page came over plain http
    page = desk.open("settings", **WINDOW)
    address = page.get_by_text("https://comments.blog.example", exact=True)
    assert address.evaluate("e => e.getClientRects().length") == 1


@settled(
    mail_host="mail.example",
    mail_user="me",
    mail_password="Canary-7Q9-passphrase",
    mail_sender="me@blog.example",
    moderation_hold="first",
)
def test_the_settings_in_force_are_shown_and_no_secret(desk: Desk) -> None:
    page = desk.open("settings")
    secret, hold = (
        page.get_by_role("row", name=re.compile(re.escape(name)))
        for name in ("[mail] password", "[moderation] hold")
    )
    expect(secret.locator("td")).to_have_text("(hidden)")
    expect(hold).to_contain_text("changed")
    expect(hold.locator("td")).to_have_text("first")
    text = page.content()
    assert "Canary" not in text
    assert desk.app.house.key.decode() not in text
    expect(page.get_by_role("heading", name="What is still to be set")).to_be_visible()
    expect(page.locator("main > ul li").first).to_be_visible()


def test_the_tag_to_paste_is_copied_or_marked(desk: Desk) -> None:
    page = desk.open("settings")
    tag = f'<script src="{desk.service}/embed.js" async></script>'
    expect(page.locator("pre.tag")).to_have_text(tag)
    mouse(button(page, "Copy"))
    told(page, "Selected: press Ctrl+C or ⌘C.")  # plain http has no clipboard
    assert page.evaluate("String(getSelection())").strip() == tag


def test_a_backup_is_a_whole_database_and_asks_for_the_password(
    desk: Desk, use: Use, tmp_path: Path
) -> None:
    desk.expected.append(REFUSED)
    given(desk.app, "One.")
    page = desk.open("settings")
    use(button(page, "Download"))
    use(dialog(page).get_by_label("Your password"), "not mine")
    use(button(dialog(page), "Download"))
    expect(dialog(page).get_by_role("alert")).to_have_text("This is not your password.")
    use(dialog(page).get_by_label("Your password"), PASSWORD)
    with page.expect_download() as found:
        use(button(dialog(page), "Download"))
    assert re.fullmatch(r"commentd-\d{4}-\d\d-\d\d\.db", found.value.suggested_filename)
    found.value.save_as(tmp_path / "copy.db")
    with closing(sqlite3.connect(tmp_path / "copy.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT content FROM comment").fetchall() == [("One.",)]
    expect(dialog(page)).to_have_count(0)


# A bad network


@pytest.mark.parametrize("view", ["queue", "users", "figures", "settings"])
def test_a_view_that_does_not_come_says_so_and_is_tried_again(desk: Desk, view: str) -> None:
    desk.expected += [REFUSED, UNREACHED]
    page = desk.new_page()
    page.route(re.compile(r"/admin/\w+"), lambda route: route.abort())
    page.goto(f"{desk.service}/admin#{view}")
    alert = page.locator("main").get_by_role("alert")
    expect(alert).to_have_text("The service can’t be reached. What you have written is kept.")
    page.unroute(re.compile(r"/admin/\w+"))
    page.unroute_all()
    refuse(page, "**/admin/*", 429, "too_many", **{"Retry-After": "7"})
    refuse(page, "**/admin/*?*", 429, "too_many", **{"Retry-After": "7"})
    button(page.locator("main"), "Try again").click()
    expect(alert).to_have_text("Too fast: please wait 7 seconds.")
    page.unroute_all()
    refuse(page, re.compile(r"/admin/\w+"), 503, "storage")  # type: ignore[arg-type]
    button(page.locator("main"), "Try again").click()
    expect(alert).to_have_text("The service is busy. Please try again in a moment.")
    page.unroute_all()
    button(page.locator("main"), "Try again").click()
    expect(alert.locator("visible=true")).to_have_count(0)
    there(page)


BROKEN: dict[str, tuple[Callable[[Route], None], str]] = {
    "offline": (lambda route: route.abort(), "The service can’t be reached."),
    "proxy": (
        lambda route: route.fulfill(status=502, body="<h1>Bad gateway</h1>"),
        "The service can’t be reached.",
    ),
    "busy": (
        lambda route: route.fulfill(status=503, json={"error": "不行", "code": "storage"}),
        "The service is busy.",
    ),
    "many": (
        lambda route: route.fulfill(status=429, json={"code": "x"}, headers={"Retry-After": "9"}),
        "Too fast: please wait 9 seconds.",
    ),
    "unknown": (
        lambda route: route.fulfill(status=500, json={"error": "不行", "code": "constructor"}),
        "That did not work.",
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_the_service_refuses_comes_back_where_it_was(desk: Desk, how: str) -> None:
    desk.expected += [REFUSED, UNREACHED]
    given(desk.app, "One.", "Two.", "Three.")
    page = desk.open()
    work, words = BROKEN[how]
    page.route("**/admin/comments", work)
    page.keyboard.press("a")
    told(page, re.compile(f"^{re.escape(words)}"))
    expect_texts(page, "One.", "Two.", "Three.")
    expect(page).to_have_title("(3) Queue · commentd")
    page.route("**/admin/reply", work)
    page.keyboard.press("r")
    page.keyboard.insert_text("An answer.")
    button(page, "Send").click()
    expect(page.locator("article").get_by_role("alert")).to_contain_text(words)
    expect(page.get_by_role("textbox")).to_have_value("An answer.")
    page.unroute_all()
    button(page, "Send").click()
    told(page, "Replied.")


def test_an_undo_that_fails_says_so(desk: Desk) -> None:
    desk.expected += [REFUSED, UNREACHED]
    given(desk.app, "One.", "Two.")
    page = desk.open()
    page.keyboard.press("a")
    told(page, "Approved.")
    page.wait_for_load_state("networkidle")
    page.route("**/admin/comments", lambda route: route.abort())
    page.keyboard.press("u")
    told(page, re.compile("^The service can’t be reached"))
    expect_texts(page, "Two.")
    expect_states(desk.app, **{"One.": "visible", "Two.": "waiting"})


@settled(limits_enabled=True)
def test_too_many_tries_to_sign_in_say_how_long_to_wait(desk: Desk) -> None:
    desk.expected.append(REFUSED)
    page = desk.open(signed=False)
    page.get_by_label("E-mail").fill(MAIL)
    said = page.get_by_role("alert")
    for number in range(12):
        with page.expect_response("**/admin/login"):
            page.get_by_label("Password").fill(f"wrong {number}")
            page.keyboard.press("Enter")
        expect(said).not_to_be_empty()
        if "Too fast" in said.inner_text():
            break
    expect(said).to_have_text(re.compile(r"^Too fast: please wait [\d,]+ seconds\.$"))


# Hostile rows

SPELL = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
ILL: dict[str, Any] = {
    "markup": SPELL,
    "quote": '"><svg onload="window.hacked=1">',
    "script link": "javascript:window.hacked=1",
    "data link": "data:text/html,<script>parent.hacked=1</script>",
    "right to left": "\u202eevil\u2066\u202d\u200f العربية",
    "word": "W" * 20_000,
    "lines": "\n" * 5_000 + "\x00\x07\x1b[2J\ufffe",
    "spoilt": b"\xff\xfe\xc3(\xed\xa0\x80 spoilt \xf8",
    "names": "__proto__ constructor toString",
    "marks": "%s %n {n} ${n} $& \\u0000 &lt;b&gt;",
    "emoji": "👩‍👩‍👧‍👦" * 500 + "\u0300" * 2000,
}
NUMBERS = {"huge": 2**62, "below": -(2**62), "year": 253_402_300_800}


def spoil(app: App, ill: str | bytes, then: int | None = None) -> None:
    """A row in each list of which every text is this, and every time that, beside a good one."""
    now = int(app.house.world.now())
    at = now if then is None else then
    bad = ill if isinstance(ill, bytes) else ill.encode()

    def insert(table: str, **values: Any) -> int:
        marks = ["CAST(? AS TEXT)" if isinstance(v, bytes) else "?" for v in values.values()]
        names = f"{table} ({', '.join(values)})"
        sql = f"INSERT OR IGNORE INTO {names} VALUES ({', '.join(marks)}) RETURNING rowid"
        return next((number for (number,) in run(app, sql, *values.values())), 0)

    if not run(app, "SELECT 1 FROM comment"):
        given(app, "Good one.", page="/good/")
        account(app, "good@example.com", "Good one", "user")
        insert("block", kind="word", value="Good one", note="", created_at=now)
        insert("audit", created_at=now, who="Good one", action="visible", subject="1", detail="")
        good = {"recipient": "good@example.com", "message": "Subject: Good one\n\nHi"}
        insert("outbox", **good, tries=3, expires_at=now + DAY)
        run(app, "DELETE FROM day")
    seen = {"seen_at": at, "views": abs(at), "opened_at": at}
    page = insert("page", key=bad, page_url=bad, **seen)
    insert("account", email=bad, nickname=bad, password="x", created_at=at)
    texts = ("nickname", "email", "website", "content", "html", "ip", "country", "location")
    said = dict.fromkeys((*texts, "held", "language"), bad)
    for status in ("waiting", "spam", "deleted"):
        insert("comment", page_id=page, status=status, created_at=at, edited_at=at, **said)
        if status != "waiting":
            given_one = {**said, "content": "Good one.", "html": "<p>Good one."}
            insert("comment", page_id=page, status=status, created_at=now, **given_one)
    insert("block", kind="word", value=bad, note=bad, created_at=at, expires_at=max(at, now + 9))
    insert("audit", created_at=at, who=bad, action=bad, subject=bad, detail=bad)
    letter = {"recipient": bad, "message": bad, "failure": bad, "tries": 3, "due_at": at}
    insert("outbox", **letter, expires_at=now + DAY)
    for day in ((now + 8 * HOUR) // DAY, 2**60, -5):
        insert("day", day=day, comments=at, views=-at, likes=2**62)


def assert_unharmed(page: Page, view: str) -> None:
    """No script ran, no link but of the web, and nothing of the page is broken."""
    if view not in ("figures", "settings", "welcome"):
        expect(
            page.locator("main").get_by_text(re.compile("Good one|/good/")).first
        ).to_be_visible()
    if view == "figures":
        expect(page.get_by_role("img")).to_have_count(3)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main :is(img, script, iframe, object, embed, style, base)").count() == 0
    hrefs = page.locator("main a").evaluate_all("all => all.map(a => a.protocol)")
    assert set(hrefs) <= {"http:", "https:", "mailto:"}
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_hostile_rows_run_nothing_and_hide_no_other(desk: Desk) -> None:
    for ill in ILL.values():
        spoil(desk.app, ill)
    page = desk.open(viewport={"width": 320, "height": 640})
    for view in [*VIEWS, "queue?status=spam", "queue?status=deleted", "welcome"]:
        go(page, view)
        assert_unharmed(page, view)
    go(page, "queue")
    expect(page.get_by_role("article")).to_have_count(len(ILL) + 1)
    page.keyboard.press("x")
    button(page, "Select all").click()
    page.keyboard.press("s")
    told(page, f"{len(ILL) + 1} comments are spam.")
    expect(nothing(page, "Nothing waits.")).to_be_focused()
    page.keyboard.press("u")
    told(page, "Undone.")
    assert page.evaluate("window.hacked") is None


def test_absurd_times_and_sums_hide_no_other_row(desk: Desk) -> None:
    for name, number in NUMBERS.items():
        spoil(desk.app, name, number)
    page = desk.open()
    for view in VIEWS:
        go(page, view)
        expect(page.locator("main [role=alert]:not(:empty)")).to_have_count(0)
        assert_unharmed(page, view)


def test_hostile_words_are_safe_in_the_forms_too(desk: Desk) -> None:
    given(desk.app, SPELL)
    run(desk.app, "UPDATE comment SET nickname = ?, email = ?, website = ?", *[SPELL] * 3)
    run(desk.app, "UPDATE page SET page_url = ?", SPELL)
    page = desk.open()
    page.keyboard.press("r")
    expect(page.get_by_role("textbox")).to_be_focused()
    page.keyboard.press("Tab")
    button(page, "Cancel").click()
    page.keyboard.press("e")
    expect(page.get_by_label("Text")).to_have_value(SPELL)
    button(page, "Cancel").click()
    button(hand(page), "Block").click()
    expect(dialog(page)).to_contain_text("onerror")
    page.keyboard.press("Escape")
    go(page, "pages")
    button(page.locator("main"), "Rename").click()
    expect(dialog(page).get_by_label("Address")).to_have_value(SPELL)
    assert page.evaluate("window.hacked") is None


ODD: list[Any] = [None, 1, "x", [], {}, {"id": {"a": 1}, "page_url": None, "total": "many"}]
ODD += [{"id": 5, "value": None, "kind": "constructor", "expires_at": "never", "created_at": 5}]
ODD += [{"id": 6, "who": "toString", "action": "__proto__", "subject": [1], "tries": -1}]
ODD += [{"id": 7, "page_link": "javascript:x", "views": 1e300, "email": {}, "role": 9, "html": {}}]


def test_absurd_answers_of_the_service_break_no_view(desk: Desk) -> None:
    lists = ("comments", "pages", "users", "blocks", "letters", "audit", "settings", "findings")
    figures = ("days", "by_views", "by_comments")
    answer = {**dict.fromkeys((*lists, *figures), ODD), "more": False, "counts": None}
    page = desk.new_page()
    page.route(re.compile(r"/admin/\w+"), lambda route: route.fulfill(json=answer))
    page.goto(f"{desk.service}/admin")
    for view in VIEWS:
        go(page, view)
        assert page.locator("main").inner_text().strip().count("\n") > 0, view
        expect(page.locator("main [role=alert]:not(:empty)")).to_have_count(0)
        assert page.locator("main a[href^=javascript]").count() == 0, view


# No one is shut out


@pytest.fixture
def full(app: App, stuck: None) -> None:
    """Something in every list."""
    fields: Any = {"email": "lu@blog.example", "website": "https://lu.example/"}
    first = say(app, "**Bold**, `code` and [a link](https://a.example/)", **fields)
    judge(app, "visible", first)
    say(app, "An answer. " * 90, "Mateo Silva", parent_id=first)
    judge(app, "waiting", first)
    say(app, "Hello.", "Noor Rahman", page="https://other.example/z/")
    judge(app, "visible", say(app, "Seen.", "顾砚秋", page="/b/"))
    judge(app, "spam", say(app, "Buy!", "Eve"))
    judge(app, "deleted", say(app, "Gone.", "Eve"))
    account(app, "ann@example.com", "Ann", "user")
    now = int(app.house.world.now())
    run(app, "INSERT INTO block VALUES (1, 'word', 'casino', 'Enough.', ?, ?)", now, now + DAY)
    with app.house.store.writing():
        app.house.store.note(now=now, who="Ann", action="visible", subject="1", detail="Eve")


def assert_axe_is_content(page: Page, where: str) -> None:
    """In light and in dark, where only colours differ."""
    # A link of the menu that is scrolled out of sight is no skip link.
    rules = {"target-size": {"enabled": True}, "skip-link": {"enabled": False}}
    # What comes up is half transparent on its way.
    page.evaluate("Promise.allSettled(document.getAnimations().map(each => each.finished))")
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    for scheme, options in (("light", {"rules": rules}), ("dark", {"runOnly": ["cat.color"]})):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found = page.evaluate("how => axe.run({...how, resultTypes: ['violations']})", options)
        assert (where, scheme, nodes_of(found["violations"])) == (where, scheme, [])


# What opens above or in a view, beside the views themselves.
def reply_open(page: Page) -> None:
    page.keyboard.press("r")


def edit_open(page: Page) -> None:
    page.keyboard.press("e")


def bars_open(page: Page) -> None:
    page.keyboard.press("s")
    page.keyboard.press("x")
    expect(page.locator(".bar").nth(1)).not_to_be_empty()


def keys_open(page: Page) -> None:
    page.keyboard.press("?")
    expect(dialog(page)).to_be_visible()


def block_open(page: Page) -> None:
    hand(page).get_by_role("button", name=re.compile("^(Block|屏蔽)$")).click()
    expect(dialog(page)).to_be_visible()


OPENED = [reply_open, edit_open, bars_open, keys_open, block_open]
TABS = [*VIEWS, "queue?status=spam", "queue?status=deleted", "welcome"]


@pytest.mark.parametrize(
    ("lang", "how"), [("en-US", WINDOW), ("zh-CN", TOUCH)], ids=["en-desk", "zh-phone"]
)
def test_axe_finds_nothing_in_any_view(
    desk: Desk, full: None, lang: str, how: dict[str, Any]
) -> None:
    page = desk.open(lang=lang, **how)
    expect(page.locator("html")).to_have_attribute("lang", lang.replace("en-US", "en"))
    for view in TABS:
        go(page, view)
        assert_axe_is_content(page, view)


@pytest.mark.parametrize("lang", ["en-US", "zh-CN"])
def test_axe_finds_nothing_in_what_opens(desk: Desk, full: None, lang: str) -> None:
    page = desk.open(lang=lang, **WINDOW)
    for each in OPENED:
        page.reload()
        there(page)
        expect(hand(page)).to_have_count(1)
        each(page)
        assert_axe_is_content(page, each.__name__)


@pytest.mark.parametrize("lang", ["en-US", "zh-CN"])
def test_axe_finds_nothing_at_the_doors(desk: Desk, lang: str) -> None:
    desk.expected.append(REFUSED)
    links = {
        word: new_admin_link(desk.app.house.store, desk.app.house.world, email)
        for word, email in {"new": "", "known": MAIL}.items()
    }
    page = desk.new_page(signed=False, lang=lang)
    for door in ("", *(f"#link={link}" for link in (*links.values(), "0" * 32))):
        page.goto("about:blank")
        page.goto(f"{desk.service}/admin{door}")
        expect(page.locator("main .door")).to_be_visible()
        assert_axe_is_content(page, door)


STOP = """
() => {
  const e = document.activeElement
  const label = e.ariaLabel || e.labels?.[0]?.textContent || e.textContent || e.placeholder
  const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(e)
  const {width, height, bottom, top} = e.getBoundingClientRect()
  const drawn = outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1
  const seen = drawn && !/ 0\\)$/.test(outlineColor)
  const inside = bottom > 0 && top < innerHeight
  return e === document.body ? null : [e.localName, (label || '').trim(), seen, inside]
}
"""


def test_tab_reaches_everything_in_sight_and_with_a_name(desk: Desk, full: None) -> None:
    page = desk.open(**WINDOW)
    for view in [*VIEWS, "welcome"]:
        go(page, view)
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


def test_the_skip_link_leads_to_the_content_and_keeps_the_view(desk: Desk) -> None:
    page = desk.open("pages")
    page.get_by_role("link", name="Skip to the content").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    assert page.url.endswith("#pages")


def test_by_keyboard_alone_from_signing_in_to_signing_out(desk: Desk, full: None) -> None:
    page = desk.open(signed=False)
    sign_in(page, keyboard)
    expect(page.get_by_role("heading", name="Queue")).to_be_focused()
    for view in VIEWS[1:]:
        link = page.get_by_role("navigation", name="Sections").locator(f"[href='#{view}']")
        keyboard(link)
        there(page)
        assert page.evaluate("document.activeElement !== document.body"), view
    keyboard(button(page, "Sign out"))
    expect(page.get_by_label("Password")).to_be_focused()


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


@pytest.mark.parametrize(("how", "least"), [(WINDOW, 24), (TOUCH, 44)], ids=["mouse", "touch"])
def test_targets_are_large_enough(desk: Desk, full: None, how: dict[str, Any], least: int) -> None:
    page = desk.open(**how)
    small: dict[str, Any] = {}
    for view in TABS:
        go(page, view)
        small[view] = page.evaluate(TARGETS, least)
    go(page, "queue")
    for each in (reply_open, bars_open, keys_open):
        page.reload()
        there(page)
        each(page)
        small[each.__name__] = page.evaluate(TARGETS, least)
    assert {view: found for view, found in small.items() if found} == {}


WIDE = """
() => [...document.querySelectorAll('body *')]
  .filter(e => e.checkVisibility() && !e.closest('pre *, .sr, .skip, nav ul, dt, head'))
  .map(e => [e.localName, String(e.className), e.getBoundingClientRect()])
  .filter(([,, {left, right, width}]) => width && (right > innerWidth + .5 || left < -.5))
  .map(([tag, name, {left, right}]) => [tag, name, left, right])
"""


@pytest.mark.parametrize("lang", ["en-US", "zh-CN"])
def test_at_four_hundred_percent_nothing_scrolls_sideways(
    desk: Desk, full: None, lang: str
) -> None:
    page = desk.open(lang=lang, viewport={"width": 320, "height": 640})
    wide: dict[str, Any] = {}
    for view in TABS:
        go(page, view)
        sides = page.evaluate("document.documentElement.scrollWidth")
        wide[view] = page.evaluate(WIDE)
        assert (view, sides <= 320) == (view, True)
    for each in OPENED:
        page.reload()
        go(page, "queue")
        each(page)
        wide[each.__name__] = page.evaluate(WIDE)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
    assert {view: found for view, found in wide.items() if found} == {}


def test_a_thumb_is_enough_for_the_queue(desk: Desk, full: None) -> None:
    page = desk.open(**TOUCH)
    expect(hand(page)).to_contain_text("Hello.")
    button(hand(page), "Approve").tap()
    told(page, "Approved.")
    button(page, "Undo").tap()
    told(page, "Undone.")
    button(hand(page), "Reply").tap()
    page.get_by_role("textbox").fill("Thanks.")
    button(page, "Send").tap()
    told(page, "Replied.")
    page.locator(".pick").first.tap()
    expect(page.get_by_text("1 selected")).to_be_visible()
    button(page, "Clear").tap()
    page.get_by_role("navigation", name="Sections").get_by_role("link", name="Settings").tap()
    expect(page.get_by_role("heading", name="Settings", exact=True)).to_be_visible()
    expect(page.locator("header [aria-current]")).to_be_in_viewport(ratio=0.9)


def test_forced_colours_lose_nothing(desk: Desk, full: None) -> None:
    page = desk.open(forced_colors="active", **WINDOW)
    bars_open(page)
    lost = page.evaluate(
        """() => [...document.querySelectorAll('.bar, input, textarea, select, .badge')]
          .filter(e => e.checkVisibility()).map(e => [e.className || e.name, getComputedStyle(e)])
          .filter(([, {borderStyle, borderColor, backgroundColor, appearance}]) =>
            borderStyle === 'none' || borderColor === backgroundColor).map(([name]) => name)"""
    )
    assert [name for name in lost if name] == []
    go(page, "figures")
    bar, ground = page.locator("rect").last.evaluate(
        "e => [getComputedStyle(e).fill, getComputedStyle(document.body).backgroundColor]"
    )
    assert bar != ground


def test_reduced_motion_moves_nothing(desk: Desk, full: None) -> None:
    page = desk.open(reduced_motion="reduce")
    bars_open(page)
    moving = page.evaluate(
        """() => [...document.querySelectorAll('*')].map(e => [e.localName, getComputedStyle(e)])
          .filter(([, s]) => s.animationName !== 'none' || s.scrollBehavior === 'smooth'
            || s.transitionDuration.split(',').some(parseFloat)).map(([name]) => name)"""
    )
    assert moving == []


def test_the_language_is_the_browsers_and_can_be_changed(desk: Desk, full: None) -> None:
    page = desk.open(lang="zh-CN")
    expect(page.get_by_role("heading", level=1)).to_have_text("待审")
    mouse(button(page, "English"))
    there(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue")
    mouse(button(page, "中文"))
    expect(page.get_by_role("heading", level=1)).to_have_text("待审")


@pytest.mark.parametrize("lang", ["zh-CN", "en-US"])
def test_no_view_speaks_in_the_other_language(desk: Desk, full: None, lang: str) -> None:
    run(desk.app, "UPDATE account SET nickname = 'Jiang'")
    run(desk.app, "UPDATE comment SET nickname = 'N', content = 'c', html = '', location = ''")
    page = desk.open(lang=lang)
    for view in TABS:
        go(page, view)
        words = page.evaluate(
            """() => {
              const copy = document.body.cloneNode(true)
              for (const node of copy.querySelectorAll(`[lang], bdi, pre, code, a, caption, td, th,
                  footer button, .brand, kbd`)) node.remove()
              return copy.textContent
            }"""
        )
        if lang == "en-US":
            assert (view, re.findall("[一-鿿]+", words)) == (view, [])
        else:
            strange = set(re.findall(r"[A-Za-z]{3,}", words)) - {"commentd", "SQLite", "ini"}
            assert (view, strange - {"Jiang"}) == (view, set())


def test_news_is_announced(desk: Desk, full: None) -> None:
    page = desk.open()
    live = page.get_by_role("status")
    expect(live.last).to_have_text("3 shown")
    page.keyboard.press("a")
    expect(live.first).to_contain_text("Approved.")
    go(page, "queue?status=spam")
    expect(live.last).to_have_text("1 shown")
    go(page, "comments?q=zzz")
    expect(live.last).to_have_text("No comment was found.")


# Who else may look


def test_the_page_runs_only_its_own_scripts_and_stands_in_no_frame(desk: Desk) -> None:
    page = desk.new_page()
    answer = page.goto(f"{desk.service}/admin")
    assert answer
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    for rule in ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"):
        assert rule in policy
    assert answer.headers["cache-control"] == "no-store"
    there(page)
    desk.expected += ["Content Security Policy", "Refused"]
    page.evaluate(
        """() => {
          const inline = document.createElement('script')
          inline.textContent = 'window.hacked = 1'
          document.body.append(inline)
        }"""
    )
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.querySelectorAll('[style], [onclick]').length") == 0


def test_the_token_is_in_no_address_and_no_cookie(desk: Desk, full: None) -> None:
    page = desk.open()
    token = page.evaluate("JSON.parse(Object.values(localStorage)[0]).token")
    for view in VIEWS:
        go(page, view)
    assert [url for url in desk.asked if token in url] == []
    assert page.context.cookies() == []


def test_back_and_forward_go_through_the_views(desk: Desk, full: None) -> None:
    page = desk.open()
    for view in ("pages", "log"):
        page.get_by_role("navigation", name="Sections").locator(f"[href='#{view}']").click()
        there(page)
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Pages")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue")
    page.go_forward()
    expect(page.get_by_role("heading", level=1)).to_have_text("Pages")
    page.evaluate("location.hash = '#constructor'")
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue")


def test_a_slow_answer_of_a_view_that_was_left_does_not_come_into_the_next(
    desk: Desk, full: None
) -> None:
    page = desk.open("log")
    with held(page, "**/admin/pages*") as waiting:
        page.evaluate("location.hash = '#pages'")
        expect(page.get_by_role("heading", level=1)).to_have_text("Pages")
        while not waiting:
            page.wait_for_event("request")
        page.evaluate("location.hash = '#users'")
        expect(line(page, "ann@example.com")).to_be_visible()
    page.wait_for_load_state("networkidle")
    expect(page.get_by_role("heading", level=1)).to_have_text("Users")
    expect(line(page, "/b/")).to_have_count(0)
    for view in ("figures", "settings"):
        with held(page, f"**/admin/{view}*"):
            page.evaluate("view => { location.hash = '#' + view }", view)
            expect(page.locator("main .wait")).to_be_visible()
            go_to = page.get_by_role("navigation", name="Sections").locator("[href='#users']")
            go_to.click()
            expect(line(page, "ann@example.com")).to_be_visible()
        page.wait_for_load_state("networkidle")
        expect(page.locator("main :is(table, svg, pre)")).to_have_count(0)
