"""Signing in by an identity provider at the widget, in a real Chromium: in a window of its own, and
on the page itself where no window opens. The provider is a server of our own."""

import io
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt
import pytest
from PIL import Image
from playwright.sync_api import Locator, Page, Route, expect

from commentd import App, LoginProvider
from support import inside
from support.blog import POST, say
from support.engines import Window, firefox, webkit
from support.inside import sql
from support.provider import CLIENT_ID, CLIENT_SECRET, Provider
from support.serving import until
from support.widget import SETTINGS, TAG, Site, View, expect_only
from support.widget import asked as asked  # a fixture
from support.widget import fake_world as fake_world  # a fixture
from support.widget import faults as faults  # a fixture
from support.widget import options as options  # a fixture
from support.widget import page as page  # a fixture
from support.widget import site as site  # a fixture
from support.widget import view as view  # a fixture
from support.words import WORDS
from support.world import FakeWorld

pytestmark = pytest.mark.slow

EN = WORDS["en"]
Engine = Callable[[str], AbstractContextManager[Window]]
WITH = EN["provider_with"].replace("{n}", "Home")


@pytest.fixture
def settings() -> dict[str, Any]:
    return SETTINGS | {"mail_host": "mail.example", "mail_sender": "c@example.com"}


@pytest.fixture
def provider(app: App, site: Site, fake_world: FakeWorld) -> Iterator[Provider]:
    """Its section is in the settings, with the URLs of service and blog."""
    with closing(Provider(f"{site.service}/auth/callback/home")) as server:
        server.now = int(fake_world.time)
        home = LoginProvider("home", "oidc", CLIENT_ID, CLIENT_SECRET, server.issuer)
        inside.set_settings(
            app,
            server_public_url=site.service,
            site_origins=(site.address,),
            login_providers=(home,),
        )
        yield server


@pytest.fixture
def ann(app: App, provider: Provider) -> int:
    """An account that the provider opens."""
    number = inside.add_account(app, "ann@example.com", "Ann", "long enough")
    sql(
        app,
        "INSERT INTO joined_identity (issuer, subject, user_id, joined_at) VALUES (?, ?, ?, 1)",
        provider.issuer,
        "Ann-1",
        number,
    )
    return number


def open_panel(view: View, **how: Any) -> Page:
    """Opens the post and, in the form, what signs in."""
    page = view(TAG, lang="en", **how)
    page.get_by_placeholder(EN["write"]).click()
    page.get_by_role("button", name=EN["signin"], exact=True).click()
    return page


def provider_button(page: Page) -> Locator:
    return page.get_by_role("button", name=WITH)


def forget_refusals(faults: list[str]) -> None:
    """The browser complains of each response that asks for a name or for a code."""
    faults[:] = [fault for fault in faults if "403 (Forbidden)" not in fault]


def greeting(page: Page, name: str = "Ann") -> Locator:
    return page.get_by_text(EN["as"].replace("{n}", name))


def test_a_reader_signs_in_with_two_clicks(view: View, ann: int, asked: list[str]) -> None:
    page = open_panel(view)
    provider_button(page).click()
    expect(greeting(page)).to_be_visible()
    # The window closes itself, which Playwright hears while it is asked something.
    until(lambda: page.title() and page.context.pages == [page])
    assert page.context.cookies() == []
    assert page.evaluate("location.href").endswith(POST)


def test_a_reader_is_told_that_the_providers_do_not_come_and_can_try_again(
    view: View, ann: int, faults: list[str]
) -> None:
    view.page.route("**/words/provider-*", lambda route: route.abort())
    page = open_panel(view)
    expect(page.get_by_role("alert")).to_have_text(EN["offline"])
    page.unroute("**/words/provider-*")
    page.get_by_role("button", name=EN["cancel"]).press("Enter")
    page.get_by_role("button", name=EN["signin"], exact=True).press("Enter")
    expect(provider_button(page)).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect_only(faults, "ERR_FAILED|could not be loaded")


@pytest.mark.parametrize("settings", [SETTINGS])
def test_a_reader_is_told_that_a_step_of_the_account_does_not_come(
    app: App, view: View, ann: int, faults: list[str]
) -> None:
    sql(app, "UPDATE account SET password = ''")
    page = open_panel(view)
    provider_button(page).click()
    expect(greeting(page)).to_be_visible()
    page.reload()
    page.get_by_placeholder(EN["write"]).click()
    page.route("**/proof.js*", lambda route: route.abort())
    page.route("**/words/provider-*", lambda route: route.abort())
    page.get_by_role("button", name=EN["account"]).press("Enter")
    alert = page.get_by_role("alert")
    expect(alert).to_have_text(EN["offline"])
    page.unroute("**/words/provider-*")
    erase = page.get_by_role("button", name=EN["erase"])
    erase.press("Enter")
    expect(alert).to_have_text(EN["offline"])
    expect(erase).to_be_focused()
    page.unroute("**/proof.js*")
    page.keyboard.press("Enter")
    expect(provider_button(page)).to_be_focused()
    expect(alert).to_have_count(0)
    expect_only(faults, "ERR_FAILED|could not be loaded")


def test_the_account_shows_what_else_signs_in_and_parts_it(app: App, view: View, ann: int) -> None:
    page = open_panel(view)
    provider_button(page).click()
    expect(greeting(page)).to_be_visible()
    page.get_by_role("button", name=EN["account"]).click()
    expect(page.get_by_text(EN["provider_joined"].replace("{n}", "Home"))).to_be_visible()
    page.get_by_role("button", name=f"{EN['provider_part']}: Home").click()
    expect(page.get_by_text(EN["provider_joined"].replace("{n}", "Home"))).to_have_count(0)
    assert sql(app, "SELECT count(*) FROM joined_identity") == [(0,)]


PICTURES = SETTINGS | {"comments_pictures": True}  # and no mail


@pytest.fixture
def picture(provider: Provider) -> None:
    """The provider has one of Ann."""
    provider.person["picture"] = f"{provider.issuer}/ann"
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "teal").save(file, "PNG")
    head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(file.getvalue())}\r\n\r\n"
    provider.raw["/ann"] = [head.encode(), file.getvalue()], 0


def is_shown(image: Locator) -> bool:
    shown: bool = image.evaluate("node => node.complete && node.naturalWidth > 0")
    return shown


@pytest.mark.parametrize("settings", [PICTURES])
def test_a_reader_says_that_their_picture_may_be_shown_and_takes_it_back(
    app: App, view: View, provider: Provider, picture: None, faults: list[str], asked: list[str]
) -> None:
    page = open_panel(view)
    provider_button(page).click()
    box = page.get_by_role("checkbox", name=EN["provider_picture"])
    expect(box).not_to_be_checked()
    box.check()
    page.get_by_role("button", name=EN["register"]).click()
    expect(greeting(page)).to_be_visible()
    page.get_by_placeholder(EN["write"]).fill("Here I am")
    page.get_by_role("button", name=EN["post"], exact=True).click()
    shown = page.locator("article .avatar img")
    expect(shown).to_have_count(1)
    until(lambda: is_shown(shown))
    page.get_by_placeholder(EN["write"]).click()
    page.get_by_role("button", name=EN["account"]).click()
    mine = page.get_by_role("img", name=EN["picture_yours"])
    until(lambda: is_shown(mine))
    page.get_by_role("button", name=EN["picture_remove"]).click()
    expect(mine).to_have_count(0)
    expect(shown).to_have_count(0)
    assert sql(app, "SELECT count(*) FROM picture") == [(0,)]
    # It is taken again from there.
    page.get_by_role("button", name=f"{EN['provider_use']}: Home").click()
    expect(mine).to_have_count(1)
    until(lambda: is_shown(shown))
    assert [line for line in asked if "/ann" in line] == []  # no browser asks the provider for it
    forget_refusals(faults)


@pytest.mark.parametrize("settings", [SETTINGS])
@pytest.mark.parametrize("opens_windows", [True, False])
def test_an_account_that_only_a_provider_opens_is_deleted_after_another_sign_in_there(
    app: App, view: View, ann: int, opens_windows: bool
) -> None:
    sql(app, "UPDATE account SET password = ''")
    if not opens_windows:
        view.page.add_init_script("window.open = () => null")
    page = open_panel(view)
    provider_button(page).click()
    expect(greeting(page)).to_be_visible()
    page.get_by_role("button", name=EN["account"]).click()
    page.get_by_role("button", name=EN["erase"]).click()
    expect(page.get_by_text(EN["provider_again"])).to_be_visible()
    expect(provider_button(page)).to_be_focused()
    provider_button(page).click()
    page.get_by_label(EN["go"]).check()
    page.get_by_role("button", name=EN["erase"], exact=True).click()
    page.get_by_role("button", name=EN["sure"]).click()
    expect(page.get_by_text(EN["erased"])).to_be_visible()
    assert sql(app, "SELECT * FROM account") == []


@pytest.mark.parametrize("settings", [SETTINGS])
def test_a_reader_hears_that_showing_again_who_they_are_failed(
    app: App, view: View, provider: Provider, ann: int
) -> None:
    sql(app, "UPDATE account SET password = ''")
    view.page.add_init_script("window.open = () => null")
    page = open_panel(view)
    provider_button(page).click()
    expect(greeting(page)).to_be_visible()
    page.get_by_role("button", name=EN["account"]).click()
    page.get_by_role("button", name=EN["erase"]).click()
    expect(page.get_by_text(EN["provider_again"])).to_be_visible()
    provider.lies["back"] = {"code": ..., "error": "access_denied"}
    provider_button(page).click()
    expect(page.get_by_text(EN["provider_refused"])).to_be_visible()
    expect(page.get_by_role("button", name=EN["erase"])).to_be_visible()


@pytest.mark.parametrize("settings", [SETTINGS])
def test_an_account_that_only_a_provider_opens_gets_a_password_after_another_sign_in_there(
    app: App, view: View, ann: int
) -> None:
    sql(app, "UPDATE account SET password = ''")
    page = open_panel(view)
    provider_button(page).click()
    expect(greeting(page)).to_be_visible()
    page.get_by_role("button", name=EN["account"]).click()
    page.get_by_role("button", name=EN["change"]).click()
    page.get_by_role("button", name=EN["back"]).click()
    page.get_by_role("button", name=EN["change"]).click()
    provider_button(page).click()
    page.get_by_label(EN["newone"]).fill("long enough")
    page.get_by_role("button", name=EN["save"], exact=True).click()
    expect(page.get_by_text(EN["changed"])).to_be_visible()
    assert sql(app, "SELECT password <> '' FROM account") == [(1,)]


def site_token(service: str, fake_world: FakeWorld, **changed: Any) -> str:
    now = int(fake_world.time)
    claims = {"sub": "7", "aud": service, "iat": now, "exp": now + 600, "jti": "a"}
    claims |= {"email": "ann@example.com", "email_verified": True, "name": "Ann", **changed}
    return jwt.encode(claims, "k" * 32, algorithm="HS256")


def thread_for(token: str) -> str:
    """A page of the owner's own site, which names its reader by this token."""
    return f'{TAG}<commentd-thread site-token="{token}"></commentd-thread>'


@pytest.fixture
def of_site(app: App, view: View, site: Site, fake_world: FakeWorld) -> Page:
    """Ann, signed in by the owner's own site."""
    inside.set_settings(app, login_site_key="k" * 32, server_public_url=site.service)
    number = inside.add_account(app, "ann@example.com", "Ann", "long enough")
    sql(
        app,
        "INSERT INTO joined_identity (issuer, subject, user_id, joined_at)"
        " VALUES ('site', '7', ?, 1)",
        number,
    )
    token = site_token(site.service, fake_world)
    page = view(thread_for(token), lang="en")
    page.get_by_placeholder(EN["write"]).click()
    expect(greeting(page)).to_be_visible()
    return page


@pytest.mark.parametrize(
    "change", ["thread.removeAttribute('site-token')", "thread.setAttribute('site-token', '')"]
)
def test_signing_out_at_the_own_site_signs_the_widget_out(
    app: App, of_site: Page, change: str
) -> None:
    field = of_site.get_by_placeholder(EN["write"])
    field.press_sequentially("Hi")
    of_site.evaluate(f"const thread = document.querySelector('commentd-thread'); {change}")
    expect(greeting(of_site)).to_have_count(0)
    expect(of_site.get_by_role("textbox", name=EN["name"])).to_be_visible()
    expect(field).to_be_focused()
    expect(field).to_have_value("Hi")
    until(lambda: sql(app, "SELECT version FROM account") == [(2,)])


def test_a_page_on_which_the_own_site_names_nobody_signs_the_widget_out(
    view: View, of_site: Page
) -> None:
    page = view(f"{TAG}<commentd-thread></commentd-thread>", lang="en")
    page.get_by_placeholder(EN["write"]).click()
    expect(page.get_by_role("textbox", name=EN["name"])).to_be_visible()
    expect(greeting(page)).to_have_count(0)


def test_somebody_else_at_the_own_site_is_somebody_else_at_the_widget(
    app: App, view: View, site: Site, fake_world: FakeWorld, of_site: Page
) -> None:
    number = inside.add_account(app, "bob@example.com", "Bob", "long enough")
    sql(
        app,
        "INSERT INTO joined_identity (issuer, subject, user_id, joined_at)"
        " VALUES ('site', '8', ?, 1)",
        number,
    )
    token = site_token(site.service, fake_world, sub="8", email="bob@example.com", jti="b")
    page = view(thread_for(token), lang="en")
    page.get_by_placeholder(EN["write"]).click()
    expect(greeting(page, "Bob")).to_be_visible()


@pytest.mark.parametrize("settings", [SETTINGS | {"comments_login_required": True}])
@pytest.mark.parametrize("focused", ["body", "input"])
def test_the_own_site_signs_a_reader_in_and_leaves_the_focus_where_it_is(
    site: Site, view: View, of_site: Page, focused: str, fake_world: FakeWorld
) -> None:
    of_site.evaluate("localStorage.clear()")
    token = site_token(site.service, fake_world, jti="b")
    before = "<input autofocus>" if focused == "input" else "<p>A post."
    with of_site.expect_response("**/auth/login"):
        page = view(before + thread_for(token), lang="en")
    field = page.get_by_placeholder(EN["write"])
    expect(field).to_be_visible()
    assert page.evaluate("document.activeElement.localName") == focused
    field.click()
    expect(greeting(page)).to_be_visible()


def test_the_own_site_signs_a_reader_in_after_a_request_had_no_response(
    view: View, site: Site, fake_world: FakeWorld, of_site: Page, faults: list[str]
) -> None:
    of_site.evaluate("localStorage.clear()")
    token = site_token(site.service, fake_world, jti="b")
    page = view(thread_for(token), lang="en")
    page.route("**/auth/site", lambda route: route.abort())
    with page.expect_event("requestfailed"):
        page.get_by_placeholder(EN["write"]).click()
    page.unroute("**/auth/site")
    expect(page.get_by_role("textbox", name=EN["name"])).to_be_visible()
    page.evaluate("document.querySelector('commentd-thread').load({})")
    expect(greeting(page)).to_be_visible()
    expect_only(faults, "ERR_FAILED")


def test_a_token_of_the_own_site_is_sent_once_though_two_forms_open(
    app: App, view: View, site: Site, fake_world: FakeWorld, of_site: Page, asked: list[str]
) -> None:
    say(app, "Who answers?")
    of_site.evaluate("localStorage.clear()")
    token = site_token(site.service, fake_world, jti="b")
    page = view(thread_for(token), lang="en")
    held: list[Route] = []  # what sign-in says, which a form waits for
    page.route("**/words/provider-*", lambda route: held.append(route))
    asked.clear()
    with page.expect_request("**/words/provider-*"):
        page.get_by_placeholder(EN["write"]).click()
    page.locator(".reply").click()
    expect(page.get_by_role("textbox", name=EN["name"])).to_have_count(2)
    for route in held:
        route.continue_()
    expect(greeting(page)).to_be_visible()
    assert len([url for url in asked if url.endswith("/auth/site")]) == 1


def test_a_token_of_the_own_site_that_is_refused_leaves_the_form_of_a_guest(
    view: View, site: Site, fake_world: FakeWorld, of_site: Page, faults: list[str]
) -> None:
    of_site.evaluate("localStorage.clear()")
    token = site_token(site.service, fake_world)  # it has signed Ann in before
    page = view(thread_for(token), lang="en")
    with page.expect_console_message(lambda message: "signs nobody in" in message.text):
        page.get_by_placeholder(EN["write"]).click()
    expect(page.get_by_role("textbox", name=EN["name"])).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect_only(faults, "signs nobody in|status of 401")


def test_a_reader_who_signed_in_otherwise_stays_when_the_own_site_names_nobody(
    view: View, ann: int
) -> None:
    page = open_panel(view)
    provider_button(page).click()
    expect(greeting(page)).to_be_visible()
    page.reload()
    page.get_by_placeholder(EN["write"]).click()
    expect(greeting(page)).to_be_visible()


def test_a_reader_whom_the_own_site_names_is_signed_in_when_they_begin_to_write(
    app: App, view: View, site: Site, fake_world: FakeWorld, faults: list[str], asked: list[str]
) -> None:
    inside.set_settings(app, login_site_key="k" * 32, server_public_url=site.service)
    token = site_token(site.service, fake_world)
    page = view(thread_for(token), lang="en")
    expect(page.get_by_placeholder(EN["write"])).to_be_visible()
    assert [url for url in asked if "/auth/site" in url] == []
    page.get_by_placeholder(EN["write"]).click()
    expect(page.get_by_role("textbox", name=EN["name"])).to_have_value("Ann")
    page.keyboard.press("Enter")
    expect(greeting(page)).to_be_visible()
    assert len([url for url in asked if "/auth/site" in url]) == 1
    forget_refusals(faults)


def test_a_new_reader_is_offered_the_name_of_the_provider_and_may_choose_another(
    app: App, view: View, provider: Provider, faults: list[str]
) -> None:
    page = open_panel(view)
    provider_button(page).click()
    name = page.get_by_role("textbox", name=EN["name"])
    expect(name).to_have_value("Ann")
    assert sql(app, "SELECT * FROM account") == []
    name.fill("Anna")
    page.get_by_role("button", name=EN["register"]).click()
    expect(greeting(page, "Anna")).to_be_visible()
    assert sql(app, "SELECT email, nickname FROM account") == [("ann@example.com", "Anna")]
    forget_refusals(faults)


def test_where_no_window_opens_reader_page_and_draft_come_back(view: View, ann: int) -> None:
    view.page.add_init_script("window.open = () => null")
    page = view(TAG, at="?a=b", lang="en")
    text = page.get_by_placeholder(EN["write"])
    text.fill("What I was about to say")
    page.get_by_role("button", name=EN["signin"], exact=True).click()
    provider_button(page).click()
    expect(greeting(page)).to_be_visible()
    assert page.evaluate("location.href") == f"{view.site.address}{POST}?a=b"
    expect(page.get_by_placeholder(EN["write"])).to_have_value("What I was about to say")
    assert page.context.cookies() == []


def test_a_route_in_the_fragment_is_there_again(view: View, ann: int) -> None:
    view.page.add_init_script("window.open = () => null")
    page = open_panel(view, at="#/guide")
    provider_button(page).click()
    expect(greeting(page)).to_be_visible()
    assert urlsplit(page.evaluate("location.href")).fragment == "/guide"


def test_a_window_that_was_cut_off_signs_in_by_itself_and_the_page_hears_of_it(
    view: View, ann: int
) -> None:
    """A page on the way may part it from the one that opened it (Cross-Origin-Opener-Policy)."""
    view.page.context.add_init_script(
        "if (location.hostname === 'comments.test') window.opener = null"
    )
    page = open_panel(view)
    with page.expect_popup() as opened:
        provider_button(page).click()
    expect(greeting(opened.value)).to_be_visible()
    assert "#" not in opened.value.evaluate("location.href")
    expect(greeting(page)).to_be_visible()


def test_an_address_with_an_account_asks_for_a_code(
    app: App, view: View, provider: Provider, fake_world: FakeWorld, faults: list[str]
) -> None:
    inside.add_account(app, "ann@example.com", "Ann", "long enough")
    page = open_panel(view)
    provider_button(page).click()
    expect(page.get_by_text(EN["provider_email"])).to_be_visible()
    email = page.get_by_role("textbox", name=EN["address"])
    expect(email).to_have_value("ann@example.com")
    page.get_by_role("button", name=EN["send"]).click()
    code = page.get_by_role("textbox", name=EN["code"])
    expect(code).to_be_visible()
    app.deliver()
    code.fill(fake_world.code())
    expect(greeting(page)).to_be_visible()
    assert sql(app, "SELECT subject FROM joined_identity") == [("Ann-1",)]
    forget_refusals(faults)


def test_a_reader_is_told_what_went_wrong(view: View, provider: Provider) -> None:
    provider.lies["back"] = {"code": ..., "error": "access_denied"}
    page = open_panel(view)
    provider_button(page).click()
    expect(page.get_by_text(EN["provider_refused"])).to_be_visible()
    provider.lies["back"] = {}
    provider.lies["id_token"] = {"nonce": "of another"}
    provider_button(page).click()
    expect(page.get_by_text(EN["provider_down"])).to_be_visible()


def test_vouchers_that_others_send_or_write_into_the_url_sign_nobody_in(
    view: View, ann: int, asked: list[str]
) -> None:
    page = open_panel(view, at="#commentd-voucher=0123456789abcdef0123456789abcdef")
    expect(provider_button(page)).to_be_visible()
    assert page.evaluate("location.hash") == ""
    page.evaluate("window.postMessage('commentd-voucher=0123456789abcdef', '*')")
    provider_button(page).click()
    page.evaluate("window.postMessage('commentd-voucher=0123456789abcdef', '*')")
    expect(greeting(page)).to_be_visible()
    sent = [line for line in asked if line.endswith("/auth/login")]
    assert len(sent) == 1


@pytest.mark.long
@pytest.mark.parametrize("engine", [firefox, webkit])
def test_a_reader_signs_in_in_other_engines_which_block_cookies_of_third_parties(
    app: App, site: Site, provider: Provider, ann: int, tmp_path: Path, engine: Engine
) -> None:
    blog = site.address.replace("blog.test", "localhost")
    site.service = site.service.replace("comments.test", "127.0.0.1")
    site.write(TAG, lang="en")
    inside.set_settings(app, server_public_url=site.service, site_origins=(blog,))
    provider.redirect_url = f"{site.service}/auth/callback/home"
    with engine(str(tmp_path)) as window:
        window.go(blog + POST)
        window.write("textarea", EN["write"], "What I was about to say")
        window.click("button", EN["signin"])
        window.click("button", WITH)
        window.see("span", EN["as"].replace("{n}", "Ann"))
        assert window.text("textarea", "What I was about to say") is not None
        assert window.run("return location.href") == blog + POST


def test_a_blog_without_providers_loads_nothing_of_them(view: View, asked: list[str]) -> None:
    page = open_panel(view)
    expect(page.get_by_role("textbox", name=EN["address"])).to_be_visible()
    assert [line for line in asked if re.search("login|provider", line)] == []
