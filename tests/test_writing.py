"""Writing, signing in, drafts, refusals, captchas and a bad network, in a real Chromium on a page
of another origin and over plain http. Flows run by keyboard; the long tier adds the mouse."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import blog
import inside
import pytest
from blog import POST, say
from conftest import Outside, sample
from inside import sql
from playwright.sync_api import Browser, Locator, Page, Request, Route, expect
from test_captcha import SECRET, SITE_KEY, Siteverify
from test_mail import PostOffice, code_in
from test_words import WORDS

from commentd import App, Config, World

Use = Callable[..., None]
MAIL, PASSWORD = "ann@example.com", "Tränen, 眼泪 & \U0001f9c5"


# What a browser writes to its console for each refusal, and for a request that got no answer.
REFUSED, UNREACHED = "Failed to load resource: the server", "Failed to load resource: net::"


# What each test stands on


class Outdoors(Outside):
    """The clock goes with the browser's and may be set ahead; emails leave by SMTP."""

    ahead = 0

    @property
    def world(self) -> World:
        return World(now=lambda: time.time() + self.ahead)


@pytest.fixture(scope="session")
def browser(browser: Browser) -> Browser:
    """The one of conftest, for files that take their fixtures from here."""
    return browser


@pytest.fixture(scope="module")
def office() -> Iterator[PostOffice]:
    office = PostOffice()
    office.start()
    yield office
    office.stop()


@pytest.fixture
def outside() -> Outdoors:
    return Outdoors()


@pytest.fixture
def pages() -> blog.Pages:
    return {}


@pytest.fixture
def address(pages: blog.Pages) -> Iterator[str]:
    with blog.blog(pages) as address:
        yield address


@pytest.fixture
def config(config: Config, address: str, office: PostOffice) -> Config:
    office.letters.clear()
    return replace(
        config,
        server_listen="127.0.0.1:0",
        site_origins=(address,),
        mail_host="127.0.0.1",
        mail_port=office.port,
        mail_security="none",
        mail_sender="Blog <comments@blog.example>",
        limits_enabled=False,
    )


# `more.js` is there and attends.
DRESSED = "() => document.querySelector('commentd-thread').shadowRoot.adoptedStyleSheets[1]"


def service_with(**settings: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("settings", [settings], ids=[""])


@dataclass
class Ground:
    """The blog, the service, and the browser between them."""

    app: App
    office: PostOffice
    browser: Browser
    service: str
    address: str
    pages: blog.Pages
    stack: ExitStack
    expected: list[str] = field(default_factory=list)  # in the console
    heard: list[str] = field(default_factory=list)

    def open(self, path: str = POST, lang: str = "en", look: str = "essay", **how: Any) -> Page:
        """A new reader before the page."""
        context = blog.new_context(self.browser, locale=lang, **how)
        self.stack.callback(context.close)
        return self.go(context.new_page(), path, lang, look)

    def go(self, page: Page, path: str = POST, lang: str = "en", look: str = "essay") -> Page:
        page.on("console", lambda message: self.heard.append(message.text))
        page.on("pageerror", lambda error: self.heard.append(f"{error}\n{error.stack}"))
        key = path.partition("?")[0]
        self.pages |= blog.article(self.service, key, lang=lang, look=look)
        with page.expect_response(lambda answer: "/comments?" in answer.url):
            page.goto(self.address + path)
        expect(page.locator(".wait")).to_have_count(0)
        return blog.painted(page)

    def answers(self, change: blog.Change) -> None:
        self.stack.enter_context(blog.answering(self.app, change))

    def code(self, page: Page) -> str:
        """The code of the last email that arrived, for the field that waits for it."""
        expect(code_field(page)).to_be_focused()
        self.app.deliver()
        return code_in(self.office.letters[-1].content)


@pytest.fixture
def ground(
    app: App, browser: Browser, address: str, pages: blog.Pages, office: PostOffice
) -> Iterator[Ground]:
    with blog.service(app) as service, ExitStack() as stack:
        ground = Ground(app, office, browser, service, address, pages, stack)
        yield ground
        stack.close()
        assert [s for s in ground.heard if not any(e in s for e in ground.expected)] == []


def signed_in(
    ground: Ground, email: str = MAIL, path: str = POST, lang: str = "en", **how: Any
) -> Page:
    """A page of somebody who signed in some time ago."""
    found = sql(ground.app, "SELECT id, nickname, role FROM account WHERE email = ?", email)
    me = dict(zip(("id", "nickname", "role"), found[0], strict=True))
    me |= {"email": email, "token": inside.token_of(ground.app, email)}
    context = blog.new_context(ground.browser, locale=lang, **how)
    ground.stack.callback(context.close)
    words = json.dumps([ground.address, f"{ground.service}/me", json.dumps(me)])
    context.add_init_script(
        f"""{{
          const [origin, key, value] = {words}
          if (location.origin === origin && !sessionStorage.begun) {{
            sessionStorage.begun = 1
            localStorage.setItem(key, value)
          }}
        }}"""
    )
    return ground.go(context.new_page(), path, lang)


def mouse(target: Locator, text: str | None = None) -> None:
    target.click()
    if text is not None:
        target.page.keyboard.press("Control+a")
        target.page.keyboard.insert_text(text)


def keyboard(target: Locator, text: str | None = None) -> None:
    reach(target)
    if text is None:
        target.page.keyboard.press("Enter")
    else:
        target.page.keyboard.press("Control+a")
        target.page.keyboard.insert_text(text)


def reach(target: Locator) -> None:
    """Tab, until it has the focus."""
    expect(target).to_be_visible()
    for _ in range(90):
        if target.evaluate("e => e.getRootNode().activeElement === e"):
            return
        target.page.keyboard.press("Tab")
    pytest.fail(f"Tab does not reach {target}")


@pytest.fixture(
    params=[keyboard, pytest.param(mouse, marks=pytest.mark.long)], ids=["keyboard", "mouse"]
)
def use(request: pytest.FixtureRequest) -> Use:
    """How a reader presses a control, or fills one in."""
    hand: Use = request.param
    return hand


# Small verbs


def said(key: str) -> re.Pattern[str]:
    """A word of the widget, in whichever language it speaks."""
    texts = sorted({re.escape(words[key]) for words in WORDS.values()})
    return re.compile(f"^({'|'.join(texts)})$".replace(r"\{n\}", ".+"))


def button(page: Page | Locator, name: str | re.Pattern[str]) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def textbox(page: Page | Locator, name: str) -> Locator:
    return page.get_by_role("textbox", name=name)


def main(page: Page) -> Locator:
    """The field at the top."""
    box = page.get_by_role("textbox", name=said("write"))
    return page.locator("section > form").and_(page.locator(".form")).locator(box)


def article(page: Page, text: str) -> Locator:
    """The comment with this text."""
    return page.get_by_role("article").filter(has_text=text)


def shown(page: Page) -> list[str]:
    return page.locator("article .body").all_inner_texts()


def write(page: Page, text: str = "First.", name: str = "Ann", use: Use = mouse) -> None:
    use(main(page), text)
    use(textbox(page, "Name"), name)


def post(page: Page, text: str = "First.", name: str = "Ann", use: Use = mouse) -> Locator:
    """The article of a comment that was posted."""
    write(page, text, name, use)
    use(button(page, "Post"))
    expect(main(page)).to_have_value("")
    expect(article(page, text)).to_be_focused()
    return article(page, text)


def open_account(page: Page, use: Use = mouse) -> Locator:
    """The panel in which one signs in."""
    use(main(page), main(page).input_value())
    use(button(page, "Sign in").first)
    panel = page.get_by_role("form", name="Sign in")
    expect(panel).to_be_visible()
    return panel


def open_registration(page: Page, use: Use = mouse) -> Locator:
    use(button(open_account(page, use), "Create an account"))
    panel = page.get_by_role("form", name="Create an account")
    expect(panel).to_be_visible()
    return panel


def fill_registration(panel: Locator, use: Use = mouse, password: str = PASSWORD) -> None:
    use(textbox(panel, "Name"), "Ann")
    use(textbox(panel, "Email"), MAIL)
    use(panel.get_by_label("Password"), password)
    use(button(panel, "Send the code"))


def code_field(page: Page) -> Locator:
    return page.get_by_role("form", name="Code").get_by_role("textbox", name="Code")


def register(ground: Ground, page: Page, use: Use = mouse, password: str = PASSWORD) -> None:
    """From the text field to an account that is signed in."""
    fill_registration(open_registration(page, use), use, password)
    use(code_field(page), ground.code(page))
    expect_signed_in(page)


def expect_signed_in(page: Page, name: str = "Ann") -> None:
    told = page.get_by_text(f"Signed in as {name}").filter(visible=True)
    expect(told.first).to_be_visible()


def sign_in(page: Page, use: Use = mouse, password: str = PASSWORD) -> None:
    """By the panel that is open."""
    panel = page.get_by_role("form", name="Sign in")
    use(textbox(panel, "Email"), MAIL)
    use(panel.get_by_label("Password"), password)
    use(button(panel, "Sign in"))


@pytest.fixture
def account(app: App) -> int:
    """The id of Ann's account."""
    return inside.add_account(app, MAIL, "Ann", hashlib.sha256(PASSWORD.encode()).hexdigest())


def end_logins(app: App) -> None:
    sql(app, "UPDATE account SET version = version + 1")


def moderate(app: App, status: str, *ids: int) -> None:
    """What the owner decides."""
    owner = blog.TestApp(app, {"REMOTE_ADDR": "192.0.2.1"})
    owner.authorization = ("Bearer", blog.owner_token(app))
    for each in ids:
        owner.post_json(f"/comments/{each}/moderate", {"status": status})


def comments(app: App) -> list[tuple[str, str]]:
    """Who wrote what, in order."""
    return sql(app, "SELECT nickname, content FROM comment WHERE status <> 'deleted' ORDER BY id")


@contextmanager
def held(page: Page, url: str) -> Iterator[list[Route]]:
    """Requests there wait until the block ends, then they go on."""
    waiting: list[Route] = []
    page.route(url, lambda route: waiting.append(route))
    yield waiting
    for route in waiting:
        route.continue_()
    page.unroute(url)


def requests_of(page: Page, path: str) -> list[Request]:
    """The requests from now on whose path ends so; preflights left out."""
    seen: list[Request] = []

    def note(request: Request) -> None:
        if urlsplit(request.url).path.endswith(path) and request.method != "OPTIONS":
            seen.append(request)

    page.on("request", note)
    return seen


def refuse(page: Page, path: str, code: str, status: int = 503) -> None:
    """What is written there from now on is refused."""
    headers = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}
    answer = {"status": status, "json": {"error": "不行", "code": code}}

    def fulfil(route: Route) -> None:
        route.fulfill(headers={**headers, "Retry-After": "40"}, **answer)

    page.route(f"**{path}", fulfil)


def settings_say(**values: Any) -> blog.Change:
    def change(environ: Any, status: str, headers: dict[str, str], body: bytes) -> Any:
        if environ["PATH_INFO"] == "/comments" and environ["REQUEST_METHOD"] == "GET":
            body = blog.changed_json(body, settings=json.loads(body)["settings"] | values)
        return status, headers, body

    return change


# A newcomer


def test_a_newcomer_reads_likes_and_comments(ground: Ground, use: Use) -> None:
    say(ground.app, "A good start.", likes=2)
    page = ground.open()
    expect(article(page, "A good start.")).to_be_visible()
    use(button(article(page, "A good start."), "Like 2"))
    expect(button(page, "Like 3")).to_have_attribute("aria-pressed", "true")
    use(button(page, "Like 3"))
    expect(button(page, "Like 2")).to_have_attribute("aria-pressed", "false")
    use(button(page, "Like this page 0"))
    expect(button(page, "Like this page 1")).to_have_attribute("aria-pressed", "true")
    mine = post(page, "And a good end.", use=use)
    expect(page.get_by_role("status").first).to_have_text("Posted.")
    expect(mine).to_have_attribute("data-target", "")
    expect(page.get_by_text("2 comments")).to_be_visible()
    assert shown(page) == ["And a good end.", "A good start."]
    assert comments(ground.app)[-1] == ("Ann", "And a good end.")
    page.reload()
    expect(button(page, "Like this page 1")).to_have_attribute("aria-pressed", "true")


def test_a_reply_is_cancelled_or_appears_under_its_parent(ground: Ground, use: Use) -> None:
    for text in ("Older.", "Newer."):
        say(ground.app, text)
    page = ground.open()
    older = article(page, "Older.")
    use(older.locator(".reply"))
    field = textbox(page, "Reply to 陆知微")
    expect(field).to_be_focused()
    use(button(page, "Cancel"))
    expect(field).to_have_count(0)
    back = older.locator(".reply").or_(older)
    expect(back.and_(page.locator(":focus"))).to_have_count(1)
    use(older.locator(".reply"))
    use(field, "An answer.")
    use(textbox(older, "Name"), "Ann")
    use(button(older, "Post"))
    answer = page.get_by_role("article").filter(has=page.locator(".body", has_text="An answer."))
    expect(answer).to_be_focused()
    expect(answer).to_have_attribute("data-target", "")
    expect(page.get_by_role("status").first).to_have_text("Posted.")
    expect(field).to_have_count(0)
    assert shown(page) == ["Newer.", "Older.", "An answer."]
    use(main(page))
    expect(textbox(page, "Name")).to_have_value("Ann")
    page.reload()
    expect(page.locator("li li .body")).to_have_text("An answer.")


def test_an_author_edits_a_comment(ground: Ground, use: Use) -> None:
    page = ground.open()
    mine = post(page, "A tpyo.")
    use(button(mine, "Edit"))
    box = mine.get_by_role("textbox")
    expect(box).to_be_focused()
    expect(box).to_have_value("A tpyo.")
    use(box, "A **typo**.")
    use(button(mine, "Save"))
    changed = article(page, "A typo.")
    expect(changed).to_be_focused()
    expect(changed.get_by_text("edited")).to_be_visible()
    expect(changed.locator("strong")).to_have_text("typo")
    expect(changed.get_by_role("textbox")).to_have_count(0)
    assert comments(ground.app) == [("Ann", "A **typo**.")]
    page.reload()
    use(button(page, "Edit"))
    expect(changed.get_by_role("textbox")).to_have_value("A **typo**.")


def test_the_second_press_deletes_and_leaving_takes_the_first_back(
    ground: Ground, use: Use
) -> None:
    page = ground.open()
    mine = post(page, "Better not.")
    use(button(mine, "Delete"))
    expect(button(mine, "Delete it?")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(button(mine, "Delete")).to_be_visible()
    use(button(mine, "Delete"))
    assert comments(ground.app) == [("Ann", "Better not.")]
    use(button(mine, "Delete it?"))
    expect(article(page, "Better not.")).to_have_count(0)
    expect(main(page)).to_be_focused()
    assert comments(ground.app) == []
    page.reload()
    expect(page.get_by_text("No comments yet")).to_be_visible()


def test_a_deleted_comment_with_replies_keeps_its_place(ground: Ground) -> None:
    page = ground.open()
    mine = post(page, "A question?")
    say(ground.app, "An answer!", parent_id=int(mine.locator("..").get_attribute("data-id") or 0))
    page.reload()
    # In Safari a click does not focus a button; leaving still takes the first press back.
    page.evaluate("addEventListener('mousedown', event => event.preventDefault())")
    question = page.locator("commentd-thread article").first
    button(question, "Delete").click()
    expect(button(question, "Delete it?")).to_be_focused()
    page.keyboard.press("Tab")
    for name in ("Delete", "Delete it?"):
        button(question, name).click()
    expect(question).to_have_text("This comment was removed.")
    assert shown(page) == ["An answer!"]


# The account


def test_a_reader_registers_with_the_code_from_an_email(ground: Ground, use: Use) -> None:
    ground.expected.append(REFUSED)
    page = ground.open()
    sent = requests_of(page, "")
    use(main(page), "Wait for me.")
    fill_registration(open_registration(page, use), use)
    right = ground.code(page)
    use(code_field(page), f"{(int(right) + 1) % 10**6:06}")
    expect(page.locator(".error")).to_contain_text("The code is wrong or too old.")
    expect(code_field(page)).to_have_attribute("aria-invalid", "true")
    expect(code_field(page)).to_be_focused()
    expect(code_field(page)).to_have_accessible_description(re.compile("wrong or too old"))
    use(code_field(page), right)
    expect_signed_in(page)
    expect(main(page)).to_have_value("Wait for me.")
    expect(main(page)).to_be_focused()
    use(button(page, "Post"))
    expect(article(page, "Wait for me.")).to_be_focused()
    assert sql(ground.app, "SELECT nickname, user_id FROM comment") == [("Ann", 1)]
    bodies = [request.post_data or "" for request in sent]
    digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
    assert [PASSWORD in body or "Tr" in body for body in bodies] == [False] * len(bodies)
    assert [digest in body for body in bodies].count(True) == 2  # register, login


def test_a_reader_signs_out_and_in_again(ground: Ground, account: int, use: Use) -> None:
    page = ground.open()
    open_account(page, use)
    sign_in(page, use)
    expect_signed_in(page)
    expect(page.get_by_role("status").first).to_have_text("You are signed in.")
    expect(main(page)).to_be_focused()
    expect(page.get_by_role("form", name="Sign in")).to_have_count(0)
    with page.expect_response("**/auth/logout"):
        use(button(page, "Sign out"))
    expect(page.get_by_text("Signed in as")).to_have_count(0)
    expect(textbox(page, "Name")).to_have_value("Ann")
    open_account(page, use)
    sign_in(page, use)
    expect_signed_in(page)
    page.reload()
    use(main(page), "Still me.")
    expect_signed_in(page)


def test_a_forgotten_password_is_set_anew(ground: Ground, account: int, use: Use) -> None:
    ground.expected.append(REFUSED)
    page = ground.open()
    use(button(open_account(page, use), "Forgot your password?"))
    panel = page.get_by_role("form", name="Set a new password")
    expect(panel.get_by_text("your comments stay yours")).to_be_visible()
    fill_registration(panel, use, "another one")
    use(code_field(page), ground.code(page))
    expect_signed_in(page)
    assert sql(ground.app, "SELECT id FROM account") == [(account,)]
    button(page, "Sign out").click()
    open_account(page)
    sign_in(page, use)
    expect(page.locator(".error")).to_have_text("Wrong address or password.")
    sign_in(page, use, "another one")
    expect_signed_in(page)


def test_an_expired_code_is_sent_again_and_taken_however_it_is_pasted(
    ground: Ground, outside: Outdoors
) -> None:
    ground.expected.append(REFUSED)
    page = ground.open()
    fill_registration(open_registration(page))
    expect(code_field(page)).to_have_attribute("autocomplete", "one-time-code")
    late = ground.code(page)
    outside.ahead = 601
    code_field(page).fill(late)
    expect(page.locator(".error")).to_contain_text("The code is wrong or too old.")
    button(page, "Send it again").click()
    expect(page.locator(".error")).to_have_count(0)
    code = ground.code(page)
    code_field(page).focus()
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(f" {code[:3]} {code[3:]}\n")
    expect_signed_in(page)
    assert len(ground.office.letters) == 2


def test_back_and_cancel_keep_what_was_typed(ground: Ground, use: Use) -> None:
    ground.expected.append(REFUSED)
    page = ground.open()
    use(main(page), "Not lost.")
    panel = open_registration(page, use)
    use(textbox(panel, "Email"), MAIL)
    use(button(panel, "Back"))
    panel = page.get_by_role("form", name="Sign in")
    expect(textbox(panel, "Email")).to_have_value(MAIL)
    expect(panel.get_by_label("Password")).to_be_focused()
    use(button(panel, "Create an account"))
    fill_registration(page.get_by_role("form", name="Create an account"), use)
    expect(code_field(page)).to_be_focused()
    use(button(page, "Back"))
    expect(textbox(panel, "Email")).to_have_value(MAIL)
    sign_in(page, use)
    expect(page.locator(".error")).to_contain_text("not confirmed yet")
    use(button(panel, "Cancel"))
    expect(panel).to_have_count(0)
    expect(main(page)).to_be_focused()
    expect(main(page)).to_have_value("Not lost.")


def test_a_reload_in_the_middle_of_the_code_loses_nothing(ground: Ground) -> None:
    page = ground.open()
    main(page).fill("Not lost.")
    fill_registration(open_registration(page))
    expect(code_field(page)).to_be_focused()
    page.reload()
    main(page).focus()
    button(page, "Sign in").click()
    button(page, "Send it again").click()
    panel = page.get_by_role("form", name="Set a new password")
    expect(textbox(panel, "Email")).to_have_value(MAIL)
    panel.get_by_label("Password").fill(PASSWORD)
    button(panel, "Send the code").click()
    code = ground.code(page)
    page.reload()
    expect(main(page)).to_have_value("Not lost.")
    main(page).focus()
    button(page, "Sign in").click()
    code_field(page).fill(code)
    panel = page.get_by_role("form", name="Sign in")
    expect(page.get_by_role("status").first).to_have_text(
        "Your address is confirmed. Please sign in."
    )
    panel.get_by_label("Password").fill(PASSWORD)
    button(panel, "Sign in").click()
    expect_signed_in(page)
    expect(main(page)).to_have_value("Not lost.")


@service_with(mail_host="", server_public_url="http://comments.test")
def test_where_no_code_can_be_mailed_nobody_is_asked_to_sign_in(ground: Ground) -> None:
    page = ground.open()
    main(page).focus()
    expect(button(page, "Post")).to_be_visible()
    expect(button(page, "Sign in")).to_have_count(0)


def test_a_login_that_has_ended_is_renewed_while_posting(
    ground: Ground, outside: Outdoors, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    page = signed_in(ground)
    outside.ahead = 8 * 86400
    use(main(page), "Who am I?")
    use(button(page, "Post"))
    expect(page.locator(".error")).to_have_text(
        "Your session has expired. Sign in again, or go on with a name."
    )
    expect(main(page)).to_have_value("Who am I?")
    assert comments(ground.app) == []
    sign_in(page, use)
    expect_signed_in(page)
    expect(main(page)).to_have_value("Who am I?")
    use(button(page, "Post"))
    expect(article(page, "Who am I?")).to_be_focused()
    assert sql(ground.app, "SELECT user_id, content FROM comment") == [(account, "Who am I?")]


def test_a_login_that_was_ended_keeps_nobody_from_liking_or_writing(
    ground: Ground, account: int
) -> None:
    ground.expected.append(REFUSED)
    say(ground.app, "Hers.")
    for act in ("like", "write"):
        page = signed_in(ground)
        end_logins(ground.app)
        if act == "like":
            button(article(page, "Hers."), "Like 0").click()
            expect(button(article(page, "Hers."), "Like 1")).to_be_visible()
            continue
        main(page).fill("As a guest, then.")
        button(page, "Post").click()
        expect(page.locator(".error")).to_contain_text("Your session has expired.")
        expect(textbox(page.locator("form.form"), "Name")).to_have_value("Ann")
        button(page, "Post").click()
        expect(article(page, "As a guest, then.")).to_be_focused()
    written = sql(ground.app, "SELECT user_id, content FROM comment WHERE id > 1")
    assert written == [(None, "As a guest, then.")]


@service_with(comments_login_required=True)
def test_where_a_login_is_asked_for_the_panel_opens_by_itself(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    page = ground.open()
    use(main(page), "Let me in.")
    use(button(page, "Post"))
    expect(page.locator(".error")).to_have_text("Please sign in to comment.")
    sign_in(page, use)
    expect_signed_in(page)
    use(button(page, "Post"))
    expect(article(page, "Let me in.")).to_be_focused()


def test_an_answer_that_signs_in_is_still_where_the_focus_is(ground: Ground, account: int) -> None:
    say(ground.app, "A question?")
    page = ground.open()
    page.locator(".reply").click()
    page.keyboard.insert_text("An answer!")
    button(article(page, "A question?"), "Sign in").click()
    sign_in(page)
    expect_signed_in(page)
    box = textbox(page, "Reply to 陆知微")
    expect(box).to_have_value("An answer!")
    expect(box).to_be_focused()
    button(article(page, "A question?"), "Post").click()
    expect(page.locator("li li .body")).to_have_text("An answer!")


def test_passwords_leave_as_their_sha256_only(ground: Ground) -> None:
    """Read off the request itself, at the edges of the blocks of 64 bytes."""
    page = ground.open()
    open_account(page)
    alphabet = "abcXYZ 0189,.-_é中文密码🔑"
    texts = ["".join(alphabet[(7 * i + n) % len(alphabet)] for i in range(n)) for n in range(1, 80)]
    texts += ["a" * n for n in (*range(53, 67), *range(117, 131), 200)]
    texts += ["密" * n for n in (*range(17, 23), *range(38, 44), 200)]
    sent = page.evaluate(
        """async texts => {
          const thread = document.querySelector('commentd-thread').shadowRoot
          const panel = thread.querySelector('.panel'), sent = []
          window.fetch = async (url, {body} = {}) => {
            if (/login$/.test(url)) sent.push(body)
            return new Response('{"provider": "none", "code": "x"}', {status: body ? 401 : 200})
          }
          panel.email.value = 'ann@example.com'
          for (const text of texts) {
            panel.password.value = text
            panel.requestSubmit()
            while (panel.ariaBusy === 'true') await new Promise(go => setTimeout(go))
          }
          return sent
        }""",
        [text for text in texts if text.strip()],
    )
    assert [json.loads(body)["password"] for body in sent] == [
        hashlib.sha256(text.encode()).hexdigest() for text in texts if text.strip()
    ]


# Drafts

WHERE = ["main", "reply", "edit"]


def begin(page: Page, where: str, text: str | None = None) -> Locator:
    """A form, where there are `Hers.` and `Mine.`, and what is typed there."""
    if where == "reply":
        article(page, "Hers.").locator(".reply").click()
    elif where == "edit":
        button(article(page, "Mine."), "Edit").click()
    whose = {"main": page.locator("section > form"), "reply": article(page, "Hers.")}
    box = whose.get(where, article(page, "Mine.")).get_by_role("textbox").first
    if text is not None:
        box.fill(text)
    return box


@pytest.mark.parametrize("event", ["failure", "registration", "sign-in"])
def test_a_draft_outlives_what_happens(ground: Ground, account: int, event: str) -> None:
    ground.expected.append(REFUSED)
    say(ground.app, "Hers.")
    page = ground.open()
    post(page, "Mine.")
    if event == "failure":
        for path in ("/comments", "/comments/2"):
            refuse(page, path, "storage")
    boxes = [begin(page, where, f"To {where}") for where in WHERE]
    if event == "registration":
        sql(ground.app, "DELETE FROM account")
        register(ground, page)
    elif event == "sign-in":
        open_account(page)
        sign_in(page)
        expect_signed_in(page)
        expect(button(article(page, "Mine."), "Save")).to_be_visible()
        button(page, "Sign out").first.click()
        expect(page.get_by_text("Signed in as")).to_have_count(0)
    for where, box in zip(WHERE, boxes, strict=True):
        if event == "failure":
            with page.expect_response(re.compile("/comments(/2)?$")):
                box.press("Control+Enter")
            expect(page.locator(".error").first).to_be_visible()
        expect(box).to_have_value(f"To {where}")
    page.reload()
    expect(article(page, "Mine.")).to_be_visible()
    for where in WHERE:
        expect(begin(page, where)).to_have_value(f"To {where}")


def test_each_page_and_each_form_has_a_draft_of_its_own(ground: Ground) -> None:
    say(ground.app, "Hers.")
    say(ground.app, "Hers.", page="/other/")
    page = ground.open()
    post(page, "Mine.")
    for where in WHERE:
        begin(page, where, f"To {where}.")
    ground.go(page, "/other/")
    expect(main(page)).to_have_value("")
    expect(begin(page, "reply")).to_have_value("")
    main(page).fill("Elsewhere.")
    ground.go(page)
    for where in WHERE:
        expect(begin(page, where)).to_have_value(f"To {where}.")
    button(page.locator("section > form"), "Post").click()
    expect(article(page, "To main.")).to_be_focused()
    page.reload()
    expect(main(page)).to_have_value("")
    expect(begin(page, "reply")).to_have_value("To reply.")


def test_name_and_addresses_are_remembered(ground: Ground, use: Use) -> None:
    page = ground.open()
    use(main(page), "One.")
    use(textbox(page, "Name"), "Ann")
    use(page.locator("summary"))
    use(textbox(page, "Email"), MAIL)
    use(textbox(page, "Website"), "https://ann.example/")
    use(button(page, "Post"))
    link = article(page, "One.").get_by_role("link", name="Ann")
    expect(link).to_have_attribute("href", "https://ann.example/")
    expect(link).to_have_attribute("rel", re.compile(r"(?=.*\bnofollow\b)(?=.*\bnoopener\b)"))
    assert sql(ground.app, "SELECT email FROM comment") == [(MAIL,)]
    page.reload()
    main(page).focus()
    page.locator("summary").click()
    for name, value in {"Name": "Ann", "Email": MAIL, "Website": "https://ann.example/"}.items():
        expect(textbox(page, name)).to_have_value(value)


# Text


def test_the_preview_shows_what_is_posted(ground: Ground, use: Use) -> None:
    ground.expected.append(REFUSED)
    page = ground.open()
    main(page).click()
    use(button(page, "Preview"))
    expect(page.locator(".error")).to_have_text("Please write something first.")
    expect(main(page)).to_be_focused()
    text = (
        "A *line*, `code`, [a link](https://a.example/?b=1&c=2) & <b>no tag</b>\n\n> 引用\n\n1. x"
    )
    write(page, text)
    use(button(page, "Preview"))
    preview = page.locator("form .body")
    expect(preview.get_by_role("link", name="a link")).to_be_visible()
    seen = preview.inner_html()
    use(button(page, "Preview"))
    expect(preview).to_have_count(0)
    use(button(page, "Post"))
    expect(page.locator("article .body")).to_be_visible()
    assert page.locator("article .body").inner_html() == seen


@service_with(comments_max_length=300)
def test_a_counter_appears_near_the_limit(ground: Ground, use: Use) -> None:
    page = ground.open()
    write(page, "字" * 50)
    expect(page.get_by_text("250", exact=True)).to_have_count(0)
    use(main(page), "🔑" * 290)
    expect(page.get_by_text("10", exact=True)).to_be_visible()
    use(main(page), "字" * 310)
    expect(page.get_by_text("-10", exact=True)).to_be_visible()
    sent = requests_of(page, "/comments")
    use(button(page, "Post"))
    assert_told(page, main(page), "Characters too many: 10.")
    assert sent == []
    use(main(page), "字" * 300)
    use(button(page, "Post"))
    expect(article(page, "字" * 300)).to_be_focused()


# As in Safari before 26.2 and Firefox before 152.
FIXED = "CSS.supports = () => false"


def test_the_field_grows_with_its_text_in_every_browser(ground: Ground) -> None:
    page = ground.open()
    whole = "e => e.scrollHeight <= e.clientHeight"
    lines = "A line.\n" * 14
    main(page).fill(lines)
    assert main(page).evaluate(whole)
    page.add_init_script(FIXED)
    sheet = "commentd-thread::part(field) { field-sizing: fixed }"
    kind, html = ground.pages[POST]
    ground.pages[POST] = (kind, html.replace("<main>", f"<style>{sheet}</style><main>"))
    page.reload()
    expect(main(page)).to_have_value(lines)
    page.wait_for_function("() => document.readyState === 'complete'")
    assert main(page).evaluate(whole)
    main(page).fill("")
    assert main(page).evaluate("e => e.offsetHeight") < 200
    main(page).fill(lines)
    assert main(page).evaluate(whole)


# Refusals


def assert_told(page: Page, field: Locator | None, words: str) -> None:
    """The words stand beside the field, which has the focus; all go when it is typed into."""
    alert = page.locator(".error")
    expect(alert).to_have_text(re.compile(words))
    expect(alert).to_be_visible()
    if field is None:
        return
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile(words))
    beside = field.evaluate(
        """e => {
          const below = e.getRootNode().querySelector('.error').getBoundingClientRect().top
          return below - e.getBoundingClientRect().bottom
        }"""
    )
    assert 0 <= beside < 16
    page.keyboard.press("x")
    expect(field).not_to_have_attribute("aria-invalid", "true")
    expect(alert).to_have_count(0)


FIELDS = {
    "en": {"content": "Write a", "nickname": "Name", "email": "Email", "website": "Website"},
    "zh": {"content": "写下你的", "nickname": "昵称", "email": "邮箱", "website": "网站"},
}


# Code, status, field, words in English and Chinese. The last ones change the form.
REFUSALS = [
    ("content_missing", 400, "content", "something", "写点什么"),
    ("content_too_long", 400, "content", "too (long|many)", "超出|太长|过长"),
    ("content_invalid", 400, "content", "character", "字符"),
    ("nickname_missing", 400, "nickname", "enter a name", "填写昵称"),
    ("nickname_invalid", 400, "nickname", "another name", "换一个"),
    ("nickname_too_long", 400, "nickname", "another name", "换一个"),
    ("nickname_taken", 409, "nickname", "author’s name", "换一个"),
    ("email_invalid", 400, "email", "ann@example.com", "ann@example.com"),
    ("website_invalid", 400, "website", "https://example.com", "留空"),
    ("captcha_failed", 403, "", "not a robot", "人机验证"),
    ("origin_refused", 403, "", "site", "网站"),
    ("captcha_token_missing", 400, "", "not a robot", "人机验证"),
    ("storage", 503, "", "later|right now|again|reached", "[一-龥]"),
    ("captcha_down", 503, "", "not a robot", "人机验证"),
    ("body_too_large", 413, "", "long|large|much", "[一-龥]"),
    ("parent_gone", 404, "", "removed", "删除"),
    ("too_many", 429, "", "wait 40 s", "等 40 秒"),
    ("page_closed", 403, "", "closed", "关闭"),
]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_each_refusal_is_told_in_words_beside_its_field(ground: Ground, lang: str) -> None:
    ground.expected.append(REFUSED)
    page = ground.open(lang={"zh": "zh-CN"}.get(lang, lang))
    names = FIELDS[lang]
    for code, status, about, en, zh in REFUSALS:
        refuse(page, "/comments", code, status)
        main(page).fill("First.")
        textbox(page, names["nickname"]).fill("Ann")
        with page.expect_response("**/comments"):
            page.locator("form .button").first.click()
        aim = page.get_by_label(re.compile(f"^{names[about]}")) if about else None
        assert_told(page, aim, en if lang == "en" else zh)
        expect(page.get_by_role("alert").or_(main(page)).first).not_to_have_text("不行")
        page.unroute("**/comments")
        if aim:
            aim.fill("")


def test_real_refusals_reach_their_fields(ground: Ground, use: Use) -> None:
    ground.expected.append(REFUSED)
    blog.owner_token(ground.app)
    page = ground.open()
    use(main(page), "First.")
    use(button(page, "Post"))
    assert_told(page, textbox(page, "Name"), "Please enter a name.")
    use(textbox(page, "Name"), blog.OWNER)
    use(button(page, "Post"))
    assert_told(page, textbox(page, "Name"), "Please choose another.")
    use(textbox(page, "Name"), "Ann")
    use(page.locator("summary"))
    use(textbox(page, "Email"), "ann@")
    use(button(page, "Post"))
    assert_told(page, textbox(page, "Email"), "ann@example.com")
    use(textbox(page, "Email"), "")
    use(textbox(page, "Website"), "ftp://ann")
    use(button(page, "Post"))
    assert_told(page, textbox(page, "Website"), "leave it empty")
    use(main(page), " \n ")
    use(button(page, "Post"))
    assert_told(page, main(page), "Please write something first.")
    assert comments(ground.app) == []


def test_refusals_of_the_account_are_told_beside_their_fields(ground: Ground, use: Use) -> None:
    ground.expected.append(REFUSED)
    page = ground.open()
    panel = open_account(page)
    use(textbox(panel, "Email"), "ann@")
    use(button(panel, "Sign in"))
    assert_told(page, panel.get_by_label("Password"), "Please enter a password.")
    use(panel.get_by_label("Password"), PASSWORD)
    use(button(panel, "Sign in"))
    assert_told(page, textbox(panel, "Email"), "ann@example.com")
    use(button(panel, "Create an account"))
    panel = page.get_by_role("form", name="Create an account")
    use(textbox(panel, "Email"), "")
    use(textbox(panel, "Name"), "")
    use(button(panel, "Send the code"))
    assert_told(page, textbox(panel, "Name"), "Please enter a name.")
    use(button(panel, "Send the code"))
    assert_told(page, textbox(panel, "Email"), "Please enter your address.")


@service_with(limits_enabled=True)
def test_who_writes_too_fast_is_told_how_long_to_wait_until_it_is_over(ground: Ground) -> None:
    ground.expected.append(REFUSED)
    page = ground.open()
    page.clock.install()
    page.reload()
    body = {"page_url": POST, "nickname": "Ann", "captcha_token": "x"}
    here = blog.TestApp(ground.app, {"REMOTE_ADDR": "127.0.0.1"})
    for number in range(5):
        here.post_json("/comments", {**body, "content": f"{number}"})
    write(page, "Sixth.")
    button(page, "Post").click()
    assert_told(page, None, r"^Too fast: please wait [1-9]\d? s\.$")
    told = page.locator(".error")
    first = int(re.findall(r"\d+", told.inner_text())[0])
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
    page.clock.run_for(10_000)
    later = int(re.findall(r"\d+", told.inner_text())[0])
    assert 10 <= first - later <= 20
    page.clock.run_for(60_000)
    expect(told).to_have_count(0)
    expect(main(page)).to_have_value("Sixth.")


# The keyboard


def test_enter_posts_with_control_or_command_and_from_the_name(ground: Ground) -> None:
    page = ground.open()
    for keys in ("Control+Enter", "Meta+Enter"):
        write(page, f"By {keys}.")
        main(page).press("Enter")
        expect(main(page)).to_have_value(f"By {keys}.\n")
        main(page).press(keys)
        mine = article(page, f"By {keys}.")
        expect(mine).to_be_focused()
        button(mine, "Edit").click()
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(f"Saved with {keys}.")
        page.keyboard.press(keys)
        expect(article(page, f"Saved with {keys}.")).to_be_focused()
    write(page, "From the name.")
    textbox(page, "Name").press("Enter")
    expect(article(page, "From the name.")).to_be_focused()
    assert len(comments(ground.app)) == 3


def test_enter_that_ends_a_composition_posts_nothing(ground: Ground) -> None:
    page = ground.open(lang="zh-CN")
    sent = requests_of(page, "/comments")
    cdp = page.context.new_cdp_session(page)
    main(page).fill("先写")
    for name in ("content", "nickname"):
        box = page.locator(f"[name={name}]")
        box.focus()
        cdp.send(
            "Input.imeSetComposition", {"text": "ni'hao", "selectionStart": 6, "selectionEnd": 6}
        )
        for kind in ("keyDown", "keyUp"):
            key = {"key": "Process", "code": "Enter", "windowsVirtualKeyCode": 229, "modifiers": 2}
            cdp.send("Input.dispatchKeyEvent", {"type": kind, **key})
        box.evaluate(
            """e => e.dispatchEvent(new KeyboardEvent('keydown', {
              key: 'Enter', ctrlKey: true, isComposing: true, bubbles: true, composed: true}))"""
        )
        cdp.send("Input.insertText", {"text": "你好"})
        expect(box).to_have_value(re.compile("你好$"))
    assert [request for request in sent if request.method == "POST"] == []
    expect(page.locator(".error")).to_have_count(0)


# Posting


def test_pressing_post_again_and_again_makes_one_comment(ground: Ground) -> None:
    page = ground.open()
    write(page, "Once.")
    with held(page, "**/comments") as waiting:
        form = page.locator("section > form")
        with page.expect_request("**/comments"):
            button(page, "Post").dblclick()
        expect(form).to_have_attribute("aria-busy", "true")
        main(page).press("Control+Enter")
        textbox(page, "Name").press("Enter")
    expect(article(page, "Once.")).to_be_focused()
    expect(form).not_to_have_attribute("aria-busy", "true")
    assert len(waiting) == 1
    assert comments(ground.app) == [("Ann", "Once.")]


def expect_waiting(page: Page, text: str) -> None:
    expect(article(page, text).get_by_text("Waiting for approval. Only you")).to_be_visible()


@service_with(moderation_hold="all")
def test_a_comment_that_waits_says_so_and_only_its_author_sees_it(ground: Ground, use: Use) -> None:
    page = ground.open(f"{POST}?utm_source=email")
    write(page, "Patience.", use=use)
    use(button(page, "Post for approval"))
    mine = article(page, "Patience.")
    expect(mine).to_be_focused()
    expect_waiting(page, "Patience.")
    expect(page.get_by_role("status").first).to_contain_text("Waiting for approval")
    expect(mine.locator(".reply")).to_have_count(0)
    page.reload()
    expect_waiting(page, "Patience.")
    expect(ground.open().get_by_text("No comments yet")).to_be_visible()
    moderate(ground.app, "visible", 1)
    page.reload()
    expect(mine.get_by_role("button", name="Reply")).to_be_visible()
    expect(page.get_by_text("Waiting for approval")).to_have_count(0)
    # It does not wait on a later page of the list either.
    sql(ground.app, "UPDATE comment SET created_at = created_at - 7200")
    later = [say(ground.app, f"Later {number}.", hours=0) for number in range(11)]
    moderate(ground.app, "visible", *later)
    page.reload()
    expect(article(page, "Later 10.")).to_be_visible()
    use(button(page, "Show more"))
    expect(mine).to_have_count(1)
    expect(page.get_by_text("Waiting for approval")).to_have_count(0)


@service_with(moderation_hold="all")
def test_a_waiting_reply_stays_under_its_parent(ground: Ground) -> None:
    moderate(ground.app, "visible", say(ground.app, "Hers."))
    page = ground.open()
    begin(page, "reply", "An answer.")
    textbox(article(page, "Hers."), "Name").fill("Ann")
    button(article(page, "Hers."), "Post for approval").click()
    expect(page.locator("li li .body")).to_have_text("An answer.")
    page.reload()
    expect(page.locator("li li .body")).to_have_text("An answer.")
    expect_waiting(page, "An answer.")


@service_with(privacy_policy_url="https://blog.example/privacy", moderation_hold="all")
def test_the_form_names_approval_and_policy_in_the_language_of_the_page(ground: Ground) -> None:
    for lang, approve, policy in (
        ("en", "Post for approval", "Privacy"),
        ("zh-CN", "提交审核", "隐私政策"),
    ):
        page = ground.open(lang=lang)
        main(page).click()
        expect(button(page, approve)).to_be_visible()
        link = page.get_by_role("link", name=policy)
        expect(link).to_have_attribute("href", "https://blog.example/privacy")


# What changed meanwhile


def age(app: App, minutes: int) -> None:
    sql(app, "UPDATE comment SET created_at = created_at - ?", minutes * 60)


def test_after_a_quarter_of_an_hour_a_guest_can_change_nothing(ground: Ground) -> None:
    page = ground.open()
    mine = post(page, "Too late.")
    age(ground.app, 14)
    page.reload()
    expect(button(mine, "Edit")).to_be_visible()
    age(ground.app, 2)
    page.reload()
    expect(mine.get_by_text("You", exact=True)).to_be_visible()
    expect(button(mine, "Edit")).to_have_count(0)
    expect(button(mine, "Delete")).to_have_count(0)


def test_what_is_too_late_goes_while_the_page_is_open(ground: Ground) -> None:
    page = ground.open()
    page.clock.install()
    mine = post(page, "Too late.")
    edit = button(mine, "Edit")
    page.clock.fast_forward(14 * 60_000)
    expect(mine.locator("time")).to_have_text("14 minutes ago")
    edit.focus()
    page.clock.fast_forward(60_000)
    expect(edit).to_have_count(0)
    expect(button(mine, "Delete")).to_have_count(0)
    expect(mine).to_be_focused()
    expect(mine.get_by_text("You", exact=True)).to_be_visible()


def test_an_account_deletes_its_comments_at_any_time(ground: Ground, account: int) -> None:
    page = signed_in(ground)
    main(page).fill("Long ago.")
    button(page, "Post").click()
    mine = article(page, "Long ago.")
    expect(mine).to_be_focused()
    age(ground.app, 3000)
    page.reload()
    expect(button(mine, "Delete")).to_be_visible()
    expect(button(mine, "Edit")).to_have_count(0)
    button(mine, "Delete").click()
    button(mine, "Delete it?").click()
    expect(mine).to_have_count(0)
    assert comments(ground.app) == []


def test_a_change_that_fails_or_comes_too_late_is_told(
    ground: Ground, outside: Outdoors, use: Use
) -> None:
    ground.expected += [REFUSED, UNREACHED]
    page = ground.open()
    mine = post(page, "Too late.")
    use(button(mine, "Delete"))
    page.context.set_offline(True)
    use(button(mine, "Delete it?"))
    expect(mine.locator(".error")).to_contain_text("can’t be reached")
    page.context.set_offline(False)
    outside.ahead = 16 * 60
    use(mine.get_by_role("button", name=re.compile("elete")))
    if button(mine, "Delete it?").count():
        use(button(mine, "Delete it?"))
    expect(mine.locator(".error")).to_contain_text("too late")
    use(button(mine, "Edit"))
    box = mine.get_by_role("textbox").first
    use(box, "In time?")
    use(button(mine, "Save"))
    expect(mine.locator("form .error")).to_contain_text("too late to change")
    expect(box).to_have_value("In time?")
    assert comments(ground.app) == [("Ann", "Too late.")]


def test_a_comment_removed_or_a_page_closed_meanwhile_is_told(ground: Ground) -> None:
    ground.expected.append(REFUSED)
    parent = say(ground.app, "Hers.")
    say(ground.app, "His.")
    page = ground.open()
    box = begin(page, "reply", "An answer.")
    textbox(article(page, "Hers."), "Name").fill("Ann")
    moderate(ground.app, "deleted", parent)
    button(article(page, "Hers."), "Post").click()
    expect(article(page, "Hers.").locator(".error")).to_have_text("This comment was removed.")
    expect(box).to_have_value("An answer.")
    page.reload()
    write(page, "Wait!")
    sql(ground.app, "UPDATE page SET closed = 1")
    button(page, "Post").click()
    expect(page.locator(".error")).to_have_text("Comments are closed.")
    expect(main(page)).to_have_value("Wait!")
    page.reload()
    expect(article(page, "His.")).to_be_visible()
    expect(main(page)).to_be_hidden()
    expect(page.locator(".reply")).to_have_count(0)


# The network

solved = service_with(captcha_provider="altcha")


def expect_unreached(page: Page) -> None:
    """Said where it is seen and heard."""
    told = page.get_by_role("status").or_(page.get_by_role("alert"))
    expect(told.filter(has_text="can’t be reached").filter(visible=True)).to_have_count(1)


@solved
def test_offline_the_text_stays_and_a_second_try_posts_it(ground: Ground, use: Use) -> None:
    ground.expected.append(UNREACHED)
    page = ground.open()
    write(page, "Through the tunnel.", use=use)
    page.context.set_offline(True)
    use(button(page, "Post"))
    expect_unreached(page)
    expect(main(page)).to_have_value("Through the tunnel.")
    page.context.set_offline(False)
    use(button(page, "Post"))
    expect(article(page, "Through the tunnel.")).to_be_focused()
    expect(page.locator(".error")).to_have_count(0)
    assert comments(ground.app) == [("Ann", "Through the tunnel.")]


@solved
def test_an_answer_that_was_lost_does_not_double_the_comment(ground: Ground) -> None:
    ground.expected.append(UNREACHED)
    page = ground.open()
    write(page, "Exactly once.")

    def lose(route: Route) -> None:
        route.fetch(url=route.request.url.replace("comments.test", "127.0.0.1"))
        route.abort()

    page.route("**/comments", lose, times=1)
    button(page, "Post").click()
    expect_unreached(page)
    assert comments(ground.app) == [("Ann", "Exactly once.")]
    button(page, "Post").click()
    mine = article(page, "Exactly once.")
    expect(mine).to_be_focused()
    expect(button(mine, "Edit")).to_be_visible()
    assert comments(ground.app) == [("Ann", "Exactly once.")]


@solved
def test_offline_the_proof_is_asked_for_once_and_after_a_reload_at_once(ground: Ground) -> None:
    ground.expected.append(UNREACHED)
    page = ground.open()
    asked = requests_of(page, "/captcha")
    page.context.set_offline(True)
    main(page).click()
    for letter in "Patience":
        with page.expect_event("requestfailed") if not asked else ExitStack():
            page.keyboard.press(letter)
    assert len(asked) == 1
    page.context.set_offline(False)
    with page.expect_response("**/captcha"):
        page.reload()
    expect(main(page)).to_have_value("Patience")


@pytest.mark.parametrize("width", sample([390, 1024], 1))
def test_a_like_of_the_page_that_fails_is_told_below_its_line(ground: Ground, width: int) -> None:
    ground.expected.append(UNREACHED)
    say(ground.app, "Hers.")
    say(ground.app, "His.")
    page = ground.open(viewport={"width": width, "height": 800})
    main(page).click()
    page.locator(".head").click(position={"x": 1, "y": 1})
    page.wait_for_function(DRESSED)
    page.context.set_offline(True)
    page.locator(".head .like").click()
    told = page.get_by_role("alert")
    expect(told).to_have_text("That did not work. Please try again.")
    head = page.locator(".head").bounding_box()
    below = told.bounding_box()
    assert head
    assert below
    assert below["y"] >= head["y"] + head["height"]
    assert below["x"] == head["x"]
    page.context.set_offline(False)
    page.locator(".head .like").click()
    expect(told).to_have_count(0)


def test_after_a_tunnel_all_works_again(ground: Ground, use: Use) -> None:
    ground.expected.append(UNREACHED)
    say(ground.app, "Hers.")
    page = ground.open()
    main(page).fill("A *line*")
    page.context.set_offline(True)
    use(button(article(page, "Hers."), "Like 0"))
    expect_unreached(page)
    expect(button(article(page, "Hers."), "Like 0")).to_have_attribute("aria-pressed", "false")
    for name in ("Preview", "Post"):
        use(button(page, name))
    page.context.set_offline(False)
    use(button(article(page, "Hers."), "Like 0"))
    expect(button(article(page, "Hers."), "Like 1")).to_be_visible()
    use(button(page, "Preview"))
    expect(page.locator("form .body em")).to_have_text("line")
    use(button(page, "Post"))
    expect(page.locator(".error")).to_have_text("Please enter a name.")


# The proof of work

COUNT_PROOFS = """
  window.proofs = 0
  window.turns = 0
  const Plain = Worker, turn = setTimeout
  window.Worker = class extends Plain {
    constructor(...words) {
      super(...words)
      this.addEventListener('message', () => window.proofs++)
    }
  }
  window.setTimeout = (...words) => turn(...words, window.turns += words.length === 1)
"""


@solved
def test_the_proof_begins_with_the_first_letter_and_is_there_before_the_last(
    ground: Ground, use: Use
) -> None:
    page = ground.open()
    page.add_init_script(COUNT_PROOFS)
    page.reload()
    asked = requests_of(page, "/captcha")
    main(page).click()
    expect(button(page, "Post")).to_be_visible()
    assert asked == []
    with page.expect_worker(), page.expect_response("**/captcha"):
        page.keyboard.insert_text("F")
    page.wait_for_function("() => window.proofs === 1")
    page.keyboard.insert_text("irst.")
    use(textbox(page, "Name"), "Ann")
    with page.expect_request("**/comments") as sent:
        use(button(page, "Post"))
    expect(article(page, "First.")).to_be_focused()
    assert len(asked) == 1
    assert len(sent.value.post_data_json["captcha_token"]) > 200
    use(main(page), "Second.")
    use(button(page, "Post"))
    expect(article(page, "Second.")).to_be_focused()
    assert len(asked) == 2
    assert sql(ground.app, "SELECT count(*) FROM spent_captcha") == [(2,)]


@solved
def test_where_workers_are_refused_the_proof_is_made_in_slices(ground: Ground) -> None:
    ground.expected += ["worker", "Worker"]
    page = ground.open()
    policy = (
        f"default-src 'self'; script-src {ground.service}; connect-src {ground.service}; "
        "worker-src 'none'; img-src data:"
    )
    _, html = ground.pages[POST]
    ground.pages[POST] = ({"Content-Security-Policy": policy}, html)
    page.add_init_script(COUNT_PROOFS)
    page.reload()
    post(page, "Slowly but surely.")
    turns, proofs = page.evaluate("() => [window.turns, window.proofs]")
    assert (turns >= 9, proofs) == (True, 0)  # 20 000 tries at least, 2 000 at a time


@solved
def test_a_comment_that_is_pasted_is_not_held_for_that(ground: Ground) -> None:
    page = ground.open()
    page.evaluate(
        "SERVICE => localStorage[SERVICE + 'me'] = '{\"nickname\": \"Ann\"}'", ground.service + "/"
    )
    page.reload()
    pasted = "What was written elsewhere, at leisure, comes here all at once, and may be shown."
    main(page).click()
    page.keyboard.insert_text(pasted)
    button(page, "Post").click()
    expect(page.locator("form.form").first).to_have_attribute("aria-busy", "true")
    expect(article(page, pasted)).to_be_focused()
    assert sql(ground.app, "SELECT status FROM comment") == [("visible",)]


@solved
def test_a_refused_captcha_is_replaced_at_the_next_press(ground: Ground) -> None:
    ground.expected.append(REFUSED)
    page = ground.open()
    asked = requests_of(page, "/captcha")
    write(page, "Twice.")
    refuse(page, "/comments", "captcha_failed", 403)
    button(page, "Post").click()
    expect(page.locator(".error")).to_contain_text("not a robot")
    expect(main(page)).to_have_value("Twice.")
    page.unroute("**/comments")
    button(page, "Post").click()
    expect(article(page, "Twice.")).to_be_focused()
    assert len(asked) == 2


# Captchas of others

SCRIPTS = {
    "turnstile": "https://challenges.cloudflare.com/turnstile/",
    "hcaptcha": "https://js.hcaptcha.com/",
    "recaptcha": "https://www.google.com/recaptcha/",
}


# As much of a provider's API as a page sees: a box with a button, whose press gives a token.
FAKE = """
  window.fakes = []
  window.NAME = {
    ready: go => go(),
    render(box, options) {
      window.fakes.push(options)
      const robot = document.createElement('button')
      robot.type = 'button'
      robot.textContent = 'I am no robot'
      robot.onclick = () => options.callback(TOKENS.shift())
      box.append(robot)
      return 0
    },
    execute(key, {action}) {
      if (VISIBLE) throw Error('Invalid site key or not loaded in api.js: ' + key)
      window.fakes.push({sitekey: key, action})
      return Promise.resolve(TOKENS.shift())
    },
  }
"""


KINDS = ["turnstile", "hcaptcha", "recaptcha 2", "recaptcha 3"]


def with_captcha(*chosen: str, kinds: list[str] = KINDS[:3]) -> pytest.MarkDecorator:
    """These in the test command, the others in the long tier."""
    return pytest.mark.parametrize(
        "kind",
        [kind if kind in chosen else pytest.param(kind, marks=pytest.mark.long) for kind in kinds],
    )


@pytest.fixture
def siteverify(kind: str) -> Iterator[Siteverify]:
    server = Siteverify(kind)
    yield server
    server.stop()


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, Any]:
    if "siteverify" not in request.fixturenames:
        return {}
    server: Siteverify = request.getfixturevalue("siteverify")
    return {
        "captcha_provider": server.kind.split()[0],
        "captcha_site_key": SITE_KEY,
        "captcha_secret": SECRET,
        "captcha_verify_url": server.url,
    }


def provided(ground: Ground, siteverify: Siteverify, path: str = POST) -> tuple[Page, list[str]]:
    """A page on which the provider's script works, and the requests for that."""
    provider = siteverify.kind.split()[0]
    loaded: list[str] = []
    tokens = [siteverify.issue(hostname="blog.test") for _ in range(4)]
    name = {"recaptcha": "grecaptcha"}.get(provider, provider)
    words = {"NAME": name, "TOKENS": "fakeTokens", "VISIBLE": str(int(siteverify.kind[-1] == "2"))}
    script = f"window.fakeTokens = {json.dumps(tokens)}; {FAKE}"
    for word, value in words.items():
        script = script.replace(word, value)

    def serve(route: Route) -> None:
        loaded.append(route.request.url)
        route.fulfill(content_type="text/javascript", body=script)

    page = ground.open(path)
    page.route(f"{SCRIPTS[provider]}**", serve)
    return page, loaded


@with_captcha("turnstile", "recaptcha 2")
def test_a_captcha_of_others_comes_when_a_reader_begins_to_write(
    ground: Ground, siteverify: Siteverify, use: Use
) -> None:
    page, loaded = provided(ground, siteverify)
    main(page).click()
    expect(button(page, "Post")).to_be_visible()
    assert loaded == []
    assert page.locator("commentd-thread > [slot=captcha]").count() == 0
    page.keyboard.insert_text("No robot.")
    robot = button(page.locator("commentd-thread > [slot=captcha]"), "I am no robot")
    expect(robot).to_be_visible()
    assert robot.evaluate(
        "e => !!e.closest('[slot]').assignedSlot.closest('form') && e.getRootNode() === document"
    )
    assert len(loaded) == 1
    assert page.evaluate("() => fakes[0].sitekey") == SITE_KEY
    use(textbox(page, "Name"), "Ann")
    use(robot)
    use(button(page, "Post"))
    expect(article(page, "No robot.")).to_be_focused()
    expect(robot).to_be_hidden()
    use(main(page), "Still none.")
    use(robot)
    use(button(page, "Post"))
    expect(article(page, "Still none.")).to_be_focused()
    assert [form["response"][:7] for form in siteverify.asked] == ["token-0", "token-1"]
    assert len(loaded) == 1


@with_captcha("recaptcha 2")
def test_a_captcha_of_others_loads_with_trusted_types_and_where_an_element_has_its_name(
    ground: Ground, siteverify: Siteverify
) -> None:
    page, loaded = provided(ground, siteverify)
    _, html = ground.pages[POST]
    policy = "require-trusted-types-for 'script'; trusted-types commentd"
    ground.pages[POST] = ({"Content-Security-Policy": policy}, html)
    page.reload()
    for name in ("turnstile", "hcaptcha", "grecaptcha"):
        page.evaluate("id => document.body.append(Object.assign(new Image(), {id}))", name)
    write(page, "No robot.")
    button(page, "I am no robot").click()
    button(page, "Post").click()
    expect(article(page, "No robot.")).to_be_focused()
    assert len(loaded) == 1


@pytest.mark.parametrize("kind", ["recaptcha 3"])
def test_a_captcha_that_nobody_sees_is_asked_for_when_the_comment_is_sent(
    ground: Ground, siteverify: Siteverify
) -> None:
    page, loaded = provided(ground, siteverify)
    write(page, "It took me a while.")
    page.wait_for_function("() => window.fakes?.length")
    fresh = page.evaluate("() => fakeTokens[0]")
    button(page, "Post").click()
    expect(article(page, "It took me a while.")).to_be_focused()
    assert [form["response"] for form in siteverify.asked] == [fresh]
    assert [url.partition("?")[2] for url in loaded] == [f"render={SITE_KEY}"]
    assert page.evaluate("() => fakes[0].action") == "commentd"


@with_captcha("turnstile")
def test_the_box_stands_in_the_form_that_is_written_in(
    ground: Ground, siteverify: Siteverify
) -> None:
    say(ground.app, "Hers.", captcha_token=siteverify.issue(hostname="blog.test"))
    page, _ = provided(ground, siteverify)
    begin(page, "reply").click()
    page.keyboard.insert_text("An answer.")
    textbox(article(page, "Hers."), "Name").fill("Ann")
    robot = button(page, "I am no robot")
    expect(robot).to_be_visible()
    assert robot.evaluate("e => !!e.closest('[slot]').assignedSlot.closest('article')")
    robot.click()
    button(article(page, "Hers."), "Post").click()
    expect(page.locator("li li .body")).to_have_text("An answer.")


@with_captcha("hcaptcha")
def test_signing_in_asks_for_the_box_where_one_looks(
    ground: Ground, siteverify: Siteverify, use: Use
) -> None:
    page, _ = provided(ground, siteverify)
    use(main(page), "First.")
    use(button(page, "I am no robot"))
    panel = open_registration(page, use)
    fill_registration(panel, use)
    use(code_field(page), ground.code(page))
    use(button(page, "I am no robot"))
    expect_signed_in(page)
    use(main(page), "First!")
    use(button(page, "I am no robot"))
    use(button(page, "Post"))
    expect(article(page, "First!")).to_be_focused()
    assert len(siteverify.asked) == 3


@with_captcha("hcaptcha")
def test_a_token_that_ran_out_is_asked_for_anew(ground: Ground, siteverify: Siteverify) -> None:
    page, _ = provided(ground, siteverify)
    write(page, "Slow.")
    button(page, "I am no robot").click()
    page.evaluate("() => fakes[0]['expired-callback']()")
    button(page, "Post").click()
    expect(button(page, "I am no robot")).to_have_count(1)
    page.wait_for_function("() => fakes.length === 2")
    button(page, "I am no robot").click()
    expect(article(page, "Slow.")).to_be_focused()
    assert [form["response"][:7] for form in siteverify.asked] == ["token-1"]


@with_captcha("turnstile", "recaptcha 3", kinds=KINDS)
def test_a_captcha_that_is_blocked_is_told_in_words(
    ground: Ground, siteverify: Siteverify, use: Use
) -> None:
    ground.expected.append(UNREACHED)
    page = ground.open()
    tries: list[str] = []

    def block(route: Route) -> None:
        tries.append(route.request.url)
        route.abort()

    page.route("https://**", block)
    write(page, "Let me through.", use=use)
    use(button(page, "Post"))
    expect(page.locator(".error")).to_contain_text("not a robot")
    expect(main(page)).to_have_value("Let me through.")
    assert len(tries) <= 2 * (2 if siteverify.kind.startswith("recaptcha") else 1)
    page.unroute("https://**")
