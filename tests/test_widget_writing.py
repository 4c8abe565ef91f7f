"""Writing, signing in, drafts, refusals, captchas and a bad network, in a real Chromium on a page
of another origin and over plain http. Flows run by keyboard; the long tier adds the mouse."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect
from webtest import TestApp

from commentd import App
from support import blog, inside
from support.blog import POST, say
from support.captcha import SECRET, SITE_KEY, Siteverify
from support.inside import sql
from support.mail import code_in
from support.refusals import refusals
from support.second_factor import app_code
from support.world import read
from support.writing import (
    MAIL,
    PASSWORD,
    REFUSED,
    UNREACHED,
    BlogSite,
    BrowserWorld,
    Operate,
    article,
    assert_told,
    button,
    choices,
    choose,
    code_field,
    comments,
    end_logins,
    keyboard,
    main,
    mouse,
    open_account,
    owner_moderates,
    post,
    refuse,
    requests_held,
    requests_of,
    sign_in,
    signed_in,
    textbox,
    words_of,
    write,
)
from support.writing import account as account  # a fixture
from support.writing import address as address  # a fixture
from support.writing import blog_site as blog_site  # a fixture
from support.writing import config as config  # a fixture
from support.writing import fake_world as fake_world  # a fixture
from support.writing import mail_server as mail_server  # a fixture
from support.writing import operate as operate  # a fixture
from support.writing import pages as pages  # a fixture

# What each test stands on


def service_with(**settings: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("settings", [settings], ids=[""])


def bodies(page: Page) -> list[str]:
    return page.locator("article .body").all_inner_texts()


def open_password(page: Page, operate: Operate = mouse) -> Locator:
    panel = open_account(page, operate)
    operate(button(panel, "Use a password instead"))
    expect(panel.get_by_label("Password")).to_be_visible()
    return panel


def open_registration(page: Page, operate: Operate = mouse) -> Locator:
    operate(button(open_password(page, operate), "Create an account"))
    panel = page.get_by_role("form", name="Create an account")
    expect(panel).to_be_visible()
    return panel


def fill_registration(panel: Locator, operate: Operate = mouse, password: str = PASSWORD) -> None:
    operate(textbox(panel, "Name"), "Ann")
    operate(textbox(panel, "Email"), MAIL)
    operate(panel.get_by_label("Password"), password)
    operate(button(panel, "Email me a code"))


def register(
    blog_site: BlogSite, page: Page, operate: Operate = mouse, password: str = PASSWORD
) -> None:
    """From the text field to an account that is signed in."""
    fill_registration(open_registration(page, operate), operate, password)
    operate(code_field(page), blog_site.code(page))
    expect_signed_in(page)


def expect_signed_in(page: Page, name: str = "Ann") -> None:
    line = page.get_by_text(f"Signed in as {name}").filter(visible=True)
    expect(line.first).to_be_visible()


# A newcomer


def test_a_newcomer_reads_likes_and_comments(blog_site: BlogSite, operate: Operate) -> None:
    say(blog_site.app, "A good start.", likes=2)
    page = blog_site.open()
    good = article(page, "A good start.")
    held: list[Route] = []
    page.route("**/comment/like", lambda route: held.append(route), times=1)
    operate(button(good, "Like 2"))
    expect(button(good, "Like 3")).to_have_attribute("aria-pressed", "true")
    operate(button(good, "Like 3"))
    expect(button(good, "Like 2")).to_have_attribute("aria-pressed", "false")
    with page.expect_request("**/comment/like"):  # two at once could arrive in either order
        held[0].continue_()
    operate(button(good, "Like 2"))
    operate(button(page, "Like this page 0"))
    expect(button(page, "Like this page 1")).to_have_attribute("aria-pressed", "true")
    mine = post(page, "And a good end.", operate=operate)
    expect(page.get_by_role("status").first).to_have_text("Posted.")
    expect(mine).to_have_attribute("data-target", "")
    expect(page.get_by_text("2 comments")).to_be_visible()
    assert bodies(page) == ["And a good end.", "A good start."]
    assert comments(blog_site.app)[-1] == ("Ann", "And a good end.")
    page.reload()
    expect(button(page, "Like this page 1")).to_have_attribute("aria-pressed", "true")
    expect(button(good, "Like 3")).to_have_attribute("aria-pressed", "true")


def test_a_reply_is_cancelled_or_appears_under_its_parent(
    blog_site: BlogSite, operate: Operate
) -> None:
    for text in ("Older.", "Newer."):
        say(blog_site.app, text)
    page = blog_site.open()
    older = article(page, "Older.")
    operate(older.locator(".reply"))
    field = textbox(page, "Reply to 陆知微")
    expect(field).to_be_focused()
    operate(button(page, "Cancel"))
    expect(field).to_have_count(0)
    back = older.locator(".reply").or_(older)
    expect(back.and_(page.locator(":focus"))).to_have_count(1)
    operate(older.locator(".reply"))
    operate(field, "An answer.")
    operate(textbox(older, "Name"), "Ann")
    operate(button(older, "Post"))
    reply = page.get_by_role("article").filter(has=page.locator(".body", has_text="An answer."))
    expect(reply).to_be_focused()
    expect(reply).to_have_attribute("data-target", "")
    expect(page.get_by_role("status").first).to_have_text("Posted.")
    expect(field).to_have_count(0)
    assert bodies(page) == ["Newer.", "Older.", "An answer."]
    main(page).click()
    expect(textbox(page, "Name")).to_have_value("Ann")
    page.reload()
    expect(page.locator("li li .body")).to_have_text("An answer.")


def test_an_author_edits_a_comment_and_deletes_it_by_two_presses(
    blog_site: BlogSite, operate: Operate
) -> None:
    page = blog_site.open()
    mine = post(page, "A tpyo.")
    expect(mine.get_by_text("edited")).to_have_count(0)
    choose(mine, "Edit", operate)
    box = mine.get_by_role("textbox")
    expect(box).to_be_focused()
    expect(box).to_have_value("A tpyo.")
    operate(box, "A **typo**.")
    operate(button(mine, "Save"))
    mine = article(page, "A typo.")
    expect(mine).to_be_focused()
    expect(mine.get_by_text("edited")).to_be_visible()
    expect(mine.locator("strong")).to_have_text("typo")
    expect(mine.get_by_role("textbox")).to_have_count(0)
    page.reload()
    choose(mine, "Edit", operate)
    expect(mine.get_by_role("textbox")).to_have_value("A **typo**.")
    operate(button(mine, "Cancel"))
    choose(mine, "Delete", operate)
    expect(button(page, "Delete it?")).to_be_focused()
    page.keyboard.press("Escape")
    expect(mine.locator(".quiet")).to_be_focused()
    choose(mine, "Delete", operate)
    assert comments(blog_site.app) == [("Ann", "A **typo**.")]
    operate(button(page, "Delete it?"))
    expect(mine).to_have_count(0)
    expect(main(page)).to_be_focused()
    assert comments(blog_site.app) == []


# The account


def test_a_reader_signs_in_with_the_code_from_an_email(
    blog_site: BlogSite, fake_world: BrowserWorld, operate: Operate
) -> None:
    page = blog_site.open(faults=REFUSED)
    operate(main(page), "Wait for me.")
    panel = open_account(page, operate)
    expect(textbox(panel, "Email")).to_be_focused()
    for hidden in (button(page, "Post"), textbox(page, "Name")):
        expect(hidden).to_have_count(0)
    operate(textbox(panel, "Email"), MAIL)
    operate(button(panel, "Email me a code"))
    expect(code_field(page)).to_be_focused()
    expect(code_field(page)).to_have_accessible_description(re.compile(MAIL))
    page.reload()  # which leaves the panel that waits for the code
    operate(main(page), "Wait for me.")
    operate(button(page, "Sign in"))
    right = blog_site.code(page)
    operate(code_field(page), f"{(int(right) + 1) % 10**6:06}")
    expect(page.locator(".error")).to_contain_text("The code is wrong or has expired.")
    expect(code_field(page)).to_be_focused()
    operate(code_field(page), right)
    panel = page.get_by_role("form", name="Create an account")  # it is a new one
    expect(textbox(panel, "Name")).to_be_focused()
    expect(page.locator(".error")).to_have_count(0)
    operate(button(panel, "Create an account"))
    assert_told(page, textbox(panel, "Name"), "Please enter a name.")
    operate(textbox(panel, "Name"), "Ann")
    operate(button(panel, "Create an account"))
    expect_signed_in(page)
    expect(main(page)).to_be_focused()
    operate(button(page, "Post"))
    expect(article(page, "Wait for me.")).to_be_focused()
    assert sql(blog_site.app, "SELECT nickname, user_id FROM comment") == [("Ann", 1)]

    main(page).focus()
    button(page, "Sign out").click()
    fake_world.ahead += 601
    textbox(open_account(page), "Email").fill(MAIL)
    page.keyboard.press("Enter")
    code_field(page).fill(blog_site.code(page))
    expect_signed_in(page)
    assert sql(blog_site.app, "SELECT id, nickname, password FROM account") == [(1, "Ann", "")]


def test_an_admin_is_asked_for_the_password(blog_site: BlogSite, account: int) -> None:
    page = blog_site.open(faults=REFUSED)
    textbox(open_account(page), "Email").fill(MAIL)
    page.keyboard.press("Enter")
    sql(blog_site.app, "UPDATE account SET role = 'admin'")
    code_field(page).fill(blog_site.code(page))
    panel = page.get_by_role("form", name="Sign in")
    assert_told(page, panel.get_by_label("Password"), "Admins sign in with their password.")
    sign_in(page)
    expect_signed_in(page)


def test_an_admin_with_an_authenticator_app_is_asked_for_its_code(
    blog_site: BlogSite, account: int
) -> None:
    key = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
    sql(blog_site.app, "UPDATE account SET role = 'admin', app_key = ?", key)
    page = blog_site.open(faults=REFUSED)
    open_account(page)
    sign_in(page)
    panel = page.get_by_role("form", name="Sign in")
    field = panel.get_by_label("Code of your authenticator app")
    expect(field).to_be_focused()
    keyboard(button(panel, "Sign in"))
    assert_told(page, field, "Please enter the code that your authenticator app shows.")
    field.fill("000000")
    page.keyboard.press("Enter")
    assert_told(page, field, "This code is wrong or was used before.")
    field.fill(app_code(key, blog_site.app.site.now() // 30))
    page.keyboard.press("Enter")
    expect_signed_in(page)


def test_a_reader_registers_with_the_code_from_an_email(
    blog_site: BlogSite, operate: Operate
) -> None:
    page = blog_site.open(faults=REFUSED)
    sent = requests_of(page, "")
    operate(main(page), "Wait for me.")
    fill_registration(open_registration(page, operate), operate)
    right = blog_site.code(page)
    operate(code_field(page), f"{(int(right) + 1) % 10**6:06}")
    expect(page.locator(".error")).to_contain_text("The code is wrong or has expired.")
    expect(code_field(page)).to_have_attribute("aria-invalid", "true")
    expect(code_field(page)).to_be_focused()
    expect(code_field(page)).to_have_accessible_description(re.compile("wrong or has expired"))
    operate(code_field(page), right)
    expect_signed_in(page)
    expect(main(page)).to_have_value("Wait for me.")
    expect(main(page)).to_be_focused()
    operate(button(page, "Post"))
    expect(article(page, "Wait for me.")).to_be_focused()
    assert sql(blog_site.app, "SELECT nickname, user_id FROM comment") == [("Ann", 1)]
    bodies = [request.post_data or "" for request in sent]
    digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
    assert [PASSWORD in body or "Tr" in body for body in bodies] == [False] * len(bodies)
    assert [digest in body for body in bodies].count(True) == 2  # register, login


def fill_grave_code(blog_site: BlogSite, panel: Locator) -> None:
    """What confirms a step instead of the password."""
    expect(textbox(panel, "Code")).to_be_visible()
    blog_site.app.deliver()
    textbox(panel, "Code").fill(code_in(blog_site.mail_server.emails[-1].content))


def test_a_step_that_comes_late_leaves_the_focus_elsewhere_on_the_page(blog_site: BlogSite) -> None:
    page = blog_site.open()
    textbox(open_account(page), "Email").fill(MAIL)
    elsewhere = page.get_by_role("link").first
    with requests_held(page, "**/auth/code"):
        with page.expect_request("**/auth/code"):
            page.keyboard.press("Enter")
        elsewhere.focus()
    expect(code_field(page)).to_be_visible()
    expect(elsewhere).to_be_focused()


def test_a_forgotten_password_is_set_anew(blog_site: BlogSite, account: int) -> None:
    page = signed_in(blog_site, faults=REFUSED)
    main(page).focus()
    button(page, "Account").click()
    button(page, "Change password").click()
    panel = page.get_by_role("form", name="Change password")
    button(panel, "Get a code instead").click()
    expect(textbox(panel, "Code")).to_be_visible()
    panel.get_by_label("New password").fill("another one")
    fill_grave_code(blog_site, panel)
    expect(button(page, "Change password")).to_be_focused()
    assert sql(blog_site.app, "SELECT id FROM account") == [(account,)]
    button(page, "Close").click()
    button(page, "Sign out").click()
    expect(textbox(page, "Name")).to_have_value("Ann")
    open_account(page)
    sign_in(page)
    expect(page.locator(".error")).to_have_text("Wrong email or password.")
    sign_in(page, password="another one")
    expect_signed_in(page)

    sql(blog_site.app, "UPDATE account SET password = ''")  # as if it was made by a code
    blog_site.app.deliver()  # the email about the new password
    button(page, "Account").click()
    button(page, "Delete account").click()
    fill_grave_code(blog_site, page.get_by_role("form", name="Delete account"))
    expect(button(page, "Delete it?")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_have_text("Your account is deleted.")
    assert sql(blog_site.app, "SELECT id FROM account") == []


def test_an_expired_code_is_sent_again_and_pasted_freely(
    blog_site: BlogSite, fake_world: BrowserWorld
) -> None:
    page = blog_site.open(faults=REFUSED)
    fill_registration(open_registration(page))
    expect(code_field(page)).to_have_attribute("autocomplete", "one-time-code")
    late = blog_site.code(page)
    fake_world.ahead = 601
    code_field(page).fill(late)
    expect(page.locator(".error")).to_contain_text("The code is wrong or has expired.")
    button(page, "Send it again").click()
    expect(page.locator(".error")).to_have_count(0)
    code = blog_site.code(page)
    mouse(code_field(page), f" {code[:3]} {code[3:]}\n")
    expect_signed_in(page)
    subjects = [read(email.content)["Subject"] for email in blog_site.mail_server.emails]
    expected = [f"{each} is your code for" for each in (late, code)]
    assert [subject.rpartition(" ")[0] for subject in subjects] == expected


def test_back_cancel_and_a_reload_keep_what_was_typed(blog_site: BlogSite) -> None:
    page = blog_site.open(faults=REFUSED)
    main(page).fill("Not lost.")
    panel = open_registration(page)
    textbox(panel, "Email").fill(MAIL)
    keyboard(button(panel, "Back"))
    panel = page.get_by_role("form", name="Sign in")
    expect(textbox(panel, "Email")).to_have_value(MAIL)
    expect(panel.get_by_label("Password")).to_be_focused()
    keyboard(button(panel, "Create an account"))
    fill_registration(page.get_by_role("form", name="Create an account"))
    expect(code_field(page)).to_be_focused()
    main(page).press("Control+Enter")  # posts nothing: the name is hidden
    assert_told(page, code_field(page), "The code is wrong or has expired.")
    keyboard(button(page, "Back"))
    expect(textbox(panel, "Email")).to_have_value(MAIL)
    sign_in(page)
    expect(page.locator(".error")).to_contain_text("not confirmed yet")
    keyboard(button(panel, "Cancel"))
    expect(panel).to_have_count(0)
    expect(main(page)).to_be_focused()
    fill_registration(open_registration(page))
    code = blog_site.code(page)
    page.reload()  # which leaves the panel that waits for the code, without the password
    main(page).focus()
    button(page, "Sign in").click()
    code_field(page).fill(code)
    confirmed = "Your email address is confirmed. Please sign in."
    expect(page.get_by_role("status").first).to_have_text(confirmed)
    panel.get_by_label("Password").fill(PASSWORD)
    button(panel, "Sign in").click()
    expect_signed_in(page)
    expect(main(page)).to_have_value("Not lost.")


@service_with(mail_host="", server_public_url="http://comments.test")
def test_the_widget_offers_no_sign_in_where_no_code_can_be_mailed(blog_site: BlogSite) -> None:
    page = blog_site.open()
    main(page).focus()
    expect(button(page, "Post")).to_be_visible()
    expect(button(page, "Sign in")).to_have_count(0)


def test_an_expired_login_is_renewed_or_left(
    blog_site: BlogSite, fake_world: BrowserWorld, account: int
) -> None:
    page = signed_in(blog_site, faults=REFUSED)
    fake_world.ahead = 8 * 86400
    expired = "You are no longer signed in. Sign in again, or continue as a guest."
    for text in ("As myself.", "As a guest, then."):
        main(page).fill(text)
        keyboard(button(page, "Post"))
        expect(page.locator(".error")).to_have_text(expired)
        expect(main(page)).to_have_value(text)
        if text == "As myself.":
            sign_in(page, keyboard)
            expect_signed_in(page)
            expect(main(page)).to_have_value(text)
        else:
            keyboard(button(page, "Cancel"))
            expect(textbox(page.locator("form.form"), "Name")).to_have_value("Ann")
        keyboard(button(page, "Post"))
        expect(article(page, text)).to_be_focused()
        end_logins(blog_site.app)
    written = sql(blog_site.app, "SELECT user_id, content FROM comment")
    assert written == [(account, "As myself."), (None, "As a guest, then.")]


@service_with(comments_login_required=True)
def test_the_widget_asks_to_sign_in_in_place_of_the_field_where_a_login_is_required(
    blog_site: BlogSite, account: int
) -> None:
    page = signed_in(blog_site, faults=REFUSED)
    main(page).fill("A question?")
    button(page, "Post").click()
    question = article(page, "A question?")
    expect(question).to_be_focused()
    question.locator(".reply").click()
    box = textbox(page, "Reply to Ann")
    box.fill("An answer!")
    button(page, "Sign out").first.click()
    expect(button(question, "Sign in")).to_be_focused()
    for form in (page.locator("section > .form"), question.locator(".form")):
        expect(form.get_by_role("textbox")).to_have_count(0)
        expect(form.get_by_text("Please sign in to comment.")).to_be_visible()
        expect(button(form, "Sign in")).to_have_count(1)
    question.locator(".reply").click()
    expect(button(question, "Sign in")).to_be_focused()
    page.keyboard.press("Enter")
    expect(question.get_by_text("Please sign in to comment.")).to_be_hidden()
    keyboard(button(question, "Cancel"))
    expect(button(question, "Sign in")).to_be_focused()
    page.keyboard.press("Enter")
    sign_in(page, keyboard)
    expect_signed_in(page)
    expect(box).to_have_value("An answer!")
    expect(box).to_be_focused()
    keyboard(button(question, "Post"))
    expect(page.locator("li li .body")).to_have_text("An answer!")


def test_passwords_leave_as_their_sha256_only(blog_site: BlogSite) -> None:
    page = blog_site.open()
    open_password(page)
    texts = ["a" * n for n in (1, *range(53, 67), *range(117, 131), 200)]  # blocks have 64 bytes
    texts += ["abcXYZ 0189,.-_é中文密码🔑", *("密" * n for n in (*range(17, 23), 200))]
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
        texts,
    )
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    assert [json.loads(body)["password"] for body in sent] == digests


# Drafts

WHERE = ["main", "reply", "edit"]


def open_form(page: Page, where: str, text: str | None = None) -> Locator:
    """A form, where there are `Hers.` and `Mine.`, and what is typed there."""
    if where == "reply":
        article(page, "Hers.").locator(".reply").click()
    elif where == "edit":
        choose(article(page, "Mine."), "Edit")
    whose = {"main": page.locator("section > form"), "reply": article(page, "Hers.")}
    box = whose.get(where, article(page, "Mine.")).get_by_role("textbox").first
    if text is not None:
        box.fill(text)
    return box


def test_each_form_of_each_page_has_a_draft_that_outlives_reloads_and_failures(
    blog_site: BlogSite,
) -> None:
    say(blog_site.app, "Hers.")
    say(blog_site.app, "Hers.", page="/other/")
    page = blog_site.open(faults=REFUSED)
    post(page, "Mine.")
    number = sql(blog_site.app, "SELECT max(id) FROM comment")[0][0]
    boxes = {where: open_form(page, where, f"To {where}.") for where in WHERE}

    def expect_all() -> None:
        for where, box in boxes.items():
            expect(box).to_have_value(f"To {where}.")

    paths = ["/comments", f"/comments/{number}"]
    for path in paths:
        refuse(page, path, "storage")
    for box in boxes.values():
        with page.expect_response(re.compile(r"/comments(/\d+)?$")):
            box.press("Control+Enter")
        expect(page.locator(".error").first).to_be_visible()
    expect_all()
    for path in paths:
        page.unroute(f"**{path}")
    register(blog_site, page)
    expect_all()
    button(page, "Sign out").first.click()
    expect(page.get_by_text("Signed in as")).to_have_count(0)
    expect_all()
    blog_site.go(page, "/other/")
    expect(main(page)).to_have_value("")
    main(page).fill("Elsewhere.")
    blog_site.go(page)
    for where in WHERE:
        expect(open_form(page, where)).to_have_value(f"To {where}.")
    button(page.locator("section > form"), "Post").click()
    expect(article(page, "To main.")).to_be_focused()
    page.reload()
    expect(main(page)).to_have_value("")
    expect(open_form(page, "reply")).to_have_value("To reply.")


def test_name_and_addresses_are_remembered(blog_site: BlogSite) -> None:
    page = blog_site.open()
    write(page, "One.")
    keyboard(page.locator("summary"))
    keyboard(textbox(page, "Email"), MAIL)
    keyboard(textbox(page, "Website"), "https://ann.example/")
    keyboard(button(page, "Post"))
    link = article(page, "One.").get_by_role("link", name="Ann")
    expect(link).to_have_attribute("href", "https://ann.example/")
    expect(link).to_have_attribute("rel", re.compile(r"(?=.*\bnofollow\b)(?=.*\bnoopener\b)"))
    assert sql(blog_site.app, "SELECT email FROM comment") == [(MAIL,)]
    page.reload()
    main(page).focus()
    page.locator("summary").click()
    for name, value in {"Name": "Ann", "Email": MAIL, "Website": "https://ann.example/"}.items():
        expect(textbox(page, name)).to_have_value(value)


# Text


def test_the_preview_shows_what_is_posted(blog_site: BlogSite) -> None:
    page = blog_site.open(faults=REFUSED)
    main(page).click()
    keyboard(button(page, "Preview"))
    expect(page.locator(".error")).to_have_text("Please write something first.")
    expect(main(page)).to_be_focused()
    write(
        page, "A *line*, `code`, [a link](https://a.example/?b=1&c=2) & <b>x</b>\n\n> 引用\n\n1. x"
    )
    keyboard(button(page, "Preview"))
    preview = page.locator("form .body")
    expect(preview.get_by_role("link", name="a link")).to_be_visible()
    seen = preview.inner_html()
    keyboard(button(page, "Preview"))
    expect(preview).to_have_count(0)
    keyboard(button(page, "Post"))
    expect(page.locator("article .body")).to_be_visible()
    assert page.locator("article .body").inner_html() == seen


def test_a_preview_that_comes_at_the_second_press_leaves_no_error(blog_site: BlogSite) -> None:
    page = blog_site.open(faults=UNREACHED)
    write(page)
    page.route("**/comments/preview", lambda route: route.abort())
    button(page, "Preview").press("Enter")
    expect(page.get_by_role("alert")).to_have_text(re.compile("can’t be reached"))
    page.unroute("**/comments/preview")
    page.keyboard.press("Enter")
    expect(page.locator(".preview")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_preview_that_is_asked_for_twice_is_shown_once(blog_site: BlogSite) -> None:
    page = blog_site.open()
    main(page).fill("Again.")
    waiting: list[Route] = []
    page.route("**/comments/preview", lambda route: waiting.append(route))
    for _ in range(2):
        with page.expect_request("**/comments/preview"):
            button(page, "Preview").click()
    for route in waiting:
        with page.expect_response("**/comments/preview"):
            route.continue_()
    preview = page.locator("form .body")
    expect(preview).to_have_text("Again.")
    button(page, "Preview").click()
    expect(preview).to_have_count(0)


CODE = """```python
def f(x):  # why
    return "a\\"b" + 0x1f
```

```
for plain in words: 1
```

```rust
fn f<'a>(x: &'a str) {} // why not
```"""
COLOURED = """() => Object.fromEntries([...CSS.highlights].map(([name, ranges]) => [name.slice(9),
  [...ranges].map(({startContainer: {data}, startOffset, endOffset}) =>
    data.slice(startOffset, endOffset)).sort()]))"""
# The contrast of each colour with the block of code, by the painted bytes.
CONTRASTS = """() => {
  const code = document.querySelector('commentd-thread').shadowRoot.querySelector('pre code')
  const context = document.createElement('canvas').getContext('2d', {willReadFrequently: true})
  const luminance = (...colours) => {
    for (const colour of colours) {
      context.fillStyle = colour
      context.fillRect(0, 0, 1, 1)
    }
    const [r, g, b] = [...context.getImageData(0, 0, 1, 1).data].map(n =>
      n > 10 ? ((n / 255 + .055) / 1.055) ** 2.4 : n / 255 / 12.92)
    return .2126 * r + .7152 * g + .0722 * b + .05
  }
  const of = (node, pseudo) => getComputedStyle(node, pseudo)
  const ground = luminance(of(document.body).backgroundColor, of(code.parentNode).backgroundColor)
  return [...CSS.highlights.keys()].map(name => {
    const tone = luminance(of(code, `::highlight(${name})`).color)
    return Math.max(tone, ground) / Math.min(tone, ground)
  })
}"""
TINTED = ":root { --text: #443a33; --ground: #e4d8b4; --link: #06c; --line: #ccc }"


def test_code_is_coloured_where_its_language_is_named(
    blog_site: BlogSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(blog.LOOKS, "tinted", TINTED)
    say(blog_site.app, CODE)
    coloured = {
        "comment": ["# why", "// why not"],
        "string": ['"a\\"b"'],
        "keyword": ["def", "fn", "return"],
        "number": ["0x1f"],
    }
    for look, scheme in (
        ("essay", "light"),
        ("essay", "dark"),
        ("photo", "light"),
        ("tinted", "light"),
    ):
        page = blog_site.open(look=look, color_scheme=scheme)
        page.wait_for_function(f"({COLOURED})().number")
        page.wait_for_function("document.querySelector('commentd-thread').style.colorScheme")
        assert page.evaluate(COLOURED) == coloured
        assert min(page.evaluate(CONTRASTS)) >= 4.5, (look, scheme)
    main(page).fill("```js\nlet me = /* be */ 2\n```")
    for _ in range(2):  # what was in a preview that is closed is forgotten
        keyboard(button(page, "Preview"))
        expect(page.locator("form .body")).to_have_count(1)
        page.wait_for_function(f"({COLOURED})().number.length === 2")
        keyboard(button(page, "Preview"))
        expect(page.locator("form .body")).to_have_count(0)


# What keys or a button make of what is selected, and what is selected then.
FORMATS = [
    ("Bold", "Control+b", "one word ", "**one word** ", "one word"),
    ("Bold", "Control+b", "", "****", ""),
    ("Italic", "Control+i", "one word ", "*one word* ", "one word"),
    ("List", "Control+Shift+Digit8", "one\ntwo", "- one\n- two", "- one\n- two"),
    ("Quote", "Control+Shift+Period", "one\ntwo", "> one\n> two", "> one\n> two"),
    ("Code", "Control+e", "x = 1", "`x = 1`", "x = 1"),
    ("Code", "Control+e", "x\ny", "```\nx\ny\n```", "```\nx\ny\n```"),
    ("Link", "Control+k", "a blog", "[a blog](https://)", "https://"),
    ("Link", "Control+k", "https://a.example", "[](https://a.example)", ""),
]
SELECTED = "field => field.value.slice(field.selectionStart, field.selectionEnd)"


def test_a_text_is_formatted_by_keys_or_buttons_and_that_is_undone(blog_site: BlogSite) -> None:
    page = blog_site.open()
    box = main(page)
    box.click()
    expect(page.locator(".tools")).to_have_count(1)
    expect(page.get_by_role("group", name="Formatting")).to_be_visible()
    for name, keys, text, formatted, selected in FORMATS:
        by_button = button(page.get_by_role("group", name="Formatting"), name)
        for act in (partial(page.keyboard.press, keys), by_button.click):
            if act == by_button.click and not text:
                continue
            box.fill(text)
            page.keyboard.press("Control+a")
            act()
            expect(box).to_have_value(formatted)
            expect(box).to_be_focused()
            assert box.evaluate(SELECTED) == selected
            page.keyboard.press("Control+z")
            expect(box).to_have_value(text)
    toggled = [
        ("Control+b", "word"),
        ("Control+i", "word"),
        ("Control+Shift+Period", "one\n\ntwo"),
        ("Control+Shift+Digit8", "one\ntwo"),
    ]
    for keys, text in toggled:
        box.fill(text)
        page.keyboard.press("Control+a")
        page.keyboard.press(keys)
        page.keyboard.press(keys)
        expect(box).to_have_value(text)
    box.fill("word")
    page.keyboard.press("Control+a")
    for keys, text in (("b", "**word**"), ("i", "***word***"), ("b", "*word*"), ("i", "word")):
        page.keyboard.press(f"Control+{keys}")
        expect(box).to_have_value(text)


def test_a_press_below_a_form_with_text_hits_what_was_aimed_at(blog_site: BlogSite) -> None:
    for _ in range(9):  # so that the page can move
        blog.say(blog_site.app, "Below.")
    page = blog_site.open(viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True)
    main(page).fill("Mine.")
    expect(page.get_by_role("group", name="Formatting")).to_be_visible()
    choices(article(page, "Below."))


def height_of(box: Locator) -> float:
    shape = box.bounding_box()
    assert shape
    return shape["height"]


# As a browser that does not know `field-sizing`.
WITHOUT_SIZING = """{
  const {replaceSync} = CSSStyleSheet.prototype
  CSSStyleSheet.prototype.replaceSync = function (css) {
    replaceSync.call(this, css.replace('field-sizing: content', ''))
  }
  CSS.supports = () => false
}"""


def test_a_field_grows_to_half_of_the_window_and_shrinks(blog_site: BlogSite) -> None:
    for script in ("", WITHOUT_SIZING):
        page = blog_site.reader()
        page.add_init_script(script)
        blog_site.go(page)
        expect(page.locator(".head > *").first).to_be_visible()
        half = page.evaluate("innerHeight") / 2
        box = main(page)
        box.click()
        expect(page.locator(".tools")).to_have_count(1)
        empty = height_of(box)
        box.fill("line\n" * 8)
        some = height_of(box)
        assert empty < some < half
        page.reload()
        page.wait_for_function(
            "([box, height]) => Math.abs(box.offsetHeight - height) < 1",
            arg=[box.element_handle(), some],
        )
        box.fill("line\n" * 80)
        assert height_of(box) == half
        box.fill("")
        assert height_of(box) == empty


@service_with(comments_max_length=300)
def test_a_counter_appears_near_the_limit(blog_site: BlogSite) -> None:
    page = blog_site.open()
    write(page, "字" * 50)
    expect(page.get_by_text("250", exact=True)).to_have_count(0)
    main(page).fill("🔑" * 290)
    expect(page.get_by_text("10", exact=True)).to_be_visible()
    expect(page.get_by_role("status").first).to_have_text("Characters left: 10")
    main(page).fill("字" * 310)
    expect(page.get_by_text("-10", exact=True)).to_have_class(re.compile("over"))
    expect(page.get_by_role("status").first).to_have_text("Too long by 10.")
    sent = requests_of(page, "/comments")
    button(page, "Post").click()
    assert_told(page, main(page), "Too long by 10.")
    assert sent == []
    main(page).fill("字" * 300)
    button(page, "Post").click()
    expect(article(page, "字" * 300)).to_be_focused()


# Refusals


# Code, status, field, words. The last one changes the form.
REFUSALS = [
    ("content_missing", 400, "Write a", "something"),
    ("content_too_long", 400, "Write a", "too (long|many)"),
    ("content_invalid", 400, "Write a", "character"),
    ("nickname_invalid", 400, "Name", "another name"),
    ("nickname_too_long", 400, "Name", "another name"),
    ("nickname_missing", 400, "Name", "enter a name"),
    ("nickname_taken", 409, "Name", "admin’s name"),
    ("nickname_of_account", 409, "Name", "has an account"),
    ("email_invalid", 400, "Email", "ann@example.com"),
    ("website_invalid", 400, "Website", "https://example.com"),
    ("captcha_failed", 403, "", "you’re human"),
    ("captcha_down", 403, "", "you’re human"),
    ("captcha_token_missing", 403, "", "you’re human"),
    ("origin_refused", 403, "", "site"),
    ("storage", 503, "", "later|right now|again|reached"),
    ("body_too_large", 413, "", "long|large|much"),
    ("parent_gone", 404, "", "removed"),
    ("too_many", 429, "", "wait 40 seconds"),
    ("page_closed", 403, "", "closed"),
]


def test_each_refusal_of_a_text_is_shown_in_a_test() -> None:
    codes = {refusal.code for refusal in refusals() if refusal.code.startswith("content_")}
    lacking = codes - inside.codes() - {code for code, *_ in REFUSALS}
    assert not lacking, f"tests/test_widget_writing.py: REFUSALS lacks {lacking}"


def test_each_refusal_is_told_in_words_beside_its_field(blog_site: BlogSite) -> None:
    page = blog_site.open(faults=REFUSED)
    for code, status, about, words in REFUSALS:
        refuse(page, "/comments", code, status)
        main(page).fill("First.")
        textbox(page, "Name").fill("Ann")
        with page.expect_response("**/comments"):
            page.locator("form .button").first.click()
        aim = page.get_by_label(re.compile(f"^{about}")) if about else None
        assert_told(page, aim, words)
        expect(page.get_by_role("alert").or_(main(page)).first).not_to_have_text("不行")
        page.unroute("**/comments")
        if aim:
            aim.fill("")


def refuse_at_first(page: Page, path: str, times: int) -> list[Request]:
    """The next writes there find a service that is busy; all of them."""
    tried: list[Request] = []
    headers = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After"}

    def fulfil(route: Route) -> None:
        if route.request.method != "POST":
            route.fallback()
            return
        tried.append(route.request)
        if len(tried) > times:
            route.fallback()
        else:
            error = {"error": "忙", "code": "storage"}
            route.fulfill(status=503, json=error, headers={**headers, "Retry-After": "5"})

    page.route(f"**{path}", fulfil)
    return tried


def test_a_refusal_that_comes_late_is_said_and_leaves_the_focus_elsewhere_on_the_page(
    blog_site: BlogSite,
) -> None:
    page = blog_site.open(faults=REFUSED)
    write(page)
    elsewhere = page.get_by_role("link").first
    refusal = {"error": "不行", "code": "nickname_taken"}
    headers = {"Access-Control-Allow-Origin": "*"}
    waiting: list[Route] = []
    page.route("**/comments", lambda route: waiting.append(route))
    with page.expect_request("**/comments"):
        button(page, "Post").press("Enter")
    elsewhere.focus()
    waiting[0].fulfill(status=403, headers=headers, json=refusal)
    name = textbox(page, "Name")
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(elsewhere).to_be_focused()


def test_a_busy_service_is_asked_again_for_half_a_minute_without_a_word(
    blog_site: BlogSite,
) -> None:
    page = blog_site.reader(faults=REFUSED)
    page.clock.install()
    blog_site.go(page)
    tried = refuse_at_first(page, "/comments", times=2)
    write(page)
    with page.expect_response("**/comments"):
        button(page, "Post").click()
    for number in (1, 2):
        expect(page.get_by_role("button", name="Posting…")).to_be_visible()
        expect(page.locator(".error")).to_have_count(0)
        assert len(tried) == number
        with page.expect_response("**/comments"):
            page.clock.run_for(8000)
    expect(article(page, "First.")).to_be_focused()
    assert len({request.post_data for request in tried}) == 1
    tried = refuse_at_first(page, "/comment/like", times=1)
    heart = button(article(page, "First."), "Like 0")
    with page.expect_response("**/comment/like"):
        heart.click()
    with page.expect_response("**/comment/like"):
        page.clock.run_for(8000)
    expect(button(article(page, "First."), "Like 1")).to_be_visible()
    expect(page.locator(".error")).to_have_count(0)
    page.reload()
    tried = refuse_at_first(page, "/comments", times=99)
    write(page, "Second.")
    button(page, "Post").click()
    for _ in range(8):
        page.clock.run_for(5000)
        page.evaluate("() => new Promise(requestAnimationFrame)")
    assert_told(page, None, "can’t be saved right now")
    expect(main(page)).to_have_value("Second.")
    assert 2 < len(tried) < 8


def test_an_email_address_is_looked_at_before_anything_is_sent(blog_site: BlogSite) -> None:
    page = blog_site.open()
    write(page)
    page.get_by_text("Email, website").click()
    comments, codes = requests_of(page, "/comments"), requests_of(page, "/auth/code")
    for wrong in ("ann", "ann@", "ann@example"):
        textbox(page, "Email").fill(wrong)
        button(page, "Post").click()
        assert_told(page, textbox(page, "Email"), "not a valid email address")
    panel = open_account(page)
    textbox(panel, "Email").fill("ann@")
    keyboard(button(panel, "Email me a code"))
    assert_told(page, textbox(panel, "Email"), "not a valid email address")
    assert comments == codes == []


@pytest.mark.parametrize("zero", ["\uff10", "\u0660", "\u06f0"], ids=["wide", "arabic", "persian"])
def test_an_email_address_and_a_code_are_taken_as_input_methods_write_them(
    blog_site: BlogSite, zero: str
) -> None:
    page = blog_site.open(faults=REFUSED)
    panel = open_account(page)
    textbox(panel, "Email").fill(" " + MAIL.replace("@", "＠").replace(".", "。"))
    button(panel, "Email me a code").click()
    code = blog_site.code(page)
    code_field(page).fill("".join(chr(ord(zero) + int(digit)) for digit in code))
    expect(page.get_by_role("form", name="Create an account")).to_be_visible()


def test_a_script_that_failed_to_load_leaves_the_others_as_they_are(blog_site: BlogSite) -> None:
    page = blog_site.reader()
    blog_site.expected += ["could not be loaded", "Failed to load resource"]
    blog_site.go(page)
    scripts = requests_of(page, "/writing.js")
    main(page).fill("word")
    expect(page.get_by_role("group", name="Formatting")).to_be_visible()
    page.route("**/account.js*", lambda route: route.abort())
    button(page, "Sign in").click()
    expect(page.get_by_text("can’t be reached")).to_be_visible()
    page.unroute("**/account.js*")
    main(page).focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+b")
    expect(main(page)).to_have_value("**word**")
    expect(page.get_by_role("group", name="Formatting")).to_have_count(1)
    open_account(page)
    assert len(scripts) == 1
    assert (
        len([text for text in blog_site.console if "account.js could not be loaded" in text]) == 1
    )


@pytest.mark.parametrize("width", [390, 1280])
def test_text_typed_before_the_form_is_there_stays_and_nothing_moves(
    blog_site: BlogSite, width: int
) -> None:
    blog.say(blog_site.app, "Below the form.")
    page = blog_site.reader(**blog.screen(width))
    with requests_held(page, "**/writing.js*"):
        blog_site.go(page)
        main(page).click()
        page.keyboard.type("Hello wrld")
        for _ in "rld":
            page.keyboard.press("ArrowLeft")
        expect(main(page)).to_have_value("Hello wrld")
        before = article(page, "Below the form.").bounding_box()
        assert button(page, "Post").count() == 0
    expect(button(page, "Post")).to_be_visible()
    page.keyboard.type("o")
    expect(main(page)).to_have_value("Hello world")
    after = article(page, "Below the form.").bounding_box()
    assert before
    assert after
    assert abs(before["y"] - after["y"]) < 3  # what browsers count as a shift


def test_a_form_that_failed_to_load_can_be_asked_for_again_and_keeps_the_text(
    blog_site: BlogSite,
) -> None:
    page = blog_site.open(faults=UNREACHED)
    blog_site.expected.append("writing.js could not be loaded")
    page.route("**/writing.js*", lambda route: route.abort())
    main(page).click()
    page.keyboard.type("Still here.")
    expect(page.get_by_role("alert")).to_contain_text("can’t be reached")
    page.unroute("**/writing.js*")
    button(page, "Try again").click()
    textbox(page, "Name").fill("Ann")
    expect(page.get_by_role("alert")).to_have_count(0)
    button(page, "Post").click()
    expect(article(page, "Still here.")).to_be_focused()


def test_a_reader_with_keys_can_ask_again_for_a_form_that_failed_to_load(
    blog_site: BlogSite,
) -> None:
    page = blog_site.open(faults=UNREACHED)
    blog_site.expected.append("writing.js could not be loaded")
    page.route("**/writing.js*", lambda route: route.abort())
    main(page).focus()
    again = button(page, "Try again")
    expect(again).to_be_visible()
    page.keyboard.press("Tab")
    expect(again).to_be_focused()
    with page.expect_event("requestfailed"):
        page.keyboard.press("Enter")
    expect(again).to_be_focused()
    page.unroute("**/writing.js*")
    page.keyboard.press("Enter")
    expect(main(page)).to_be_focused()
    expect(button(page, "Post")).to_be_visible()
    expect(again).to_have_count(0)


def test_the_form_is_loaded_when_a_reader_comes_near_and_not_before(blog_site: BlogSite) -> None:
    page = blog_site.reader()
    asked = requests_of(page, "/writing.js")
    blog_site.go(page)
    page.wait_for_load_state("networkidle")
    page.mouse.move(5, 5)  # at the top of the article, far from the comments
    page.wait_for_load_state("networkidle")
    assert asked == []
    with page.expect_request("**/writing.js*"):
        page.locator("commentd-thread").evaluate("it => it.scrollIntoView()")
        page.mouse.wheel(0, 10)
    expect(page.get_by_role("group", name="Formatting")).to_have_count(0)
    main(page).click()
    expect(page.get_by_role("group", name="Formatting")).to_be_visible()
    assert len(asked) == 1


def test_a_comment_that_is_edited_does_not_stand_above_its_own_form(blog_site: BlogSite) -> None:
    page = blog_site.open()
    mine = post(page, "Mine.")
    choose(mine, "Edit")
    expect(mine.locator(".body")).to_be_hidden()
    button(mine, "Cancel").click()
    expect(mine.locator(".body")).to_be_visible()
    choose(mine, "Edit")
    mine.locator("textarea").fill("Mine, too.")
    button(mine, "Save").click()
    expect(article(page, "Mine, too.").locator(".body")).to_be_visible()


def test_a_reader_who_went_on_keeps_the_focus_when_a_text_is_sent(blog_site: BlogSite) -> None:
    page = blog_site.open()
    first = post(page, "A question.")
    for press, text in (("Reply", "An answer."), ("Edit", "Another answer.")):
        if press == "Reply":
            first.locator(".reply").click()
        else:
            choose(article(page, "An answer."), press)
        page.locator("article form .field").first.fill(text)
        sent = re.compile(r"/comments(/\d+)?$")
        with requests_held(page, sent):
            with page.expect_request(sent):
                page.keyboard.press("Control+Enter")
            main(page).click()
            page.keyboard.type(press)
        expect(article(page, text)).to_be_visible()
        expect(main(page)).to_be_focused()
    page.keyboard.type("!")
    expect(main(page)).to_have_value("ReplyEdit!")
    choose(article(page, "Another answer."), "Delete")
    with requests_held(page, "**/comments/*"):
        with page.expect_request("**/comments/*"):
            button(page, "Delete it?").click()
        main(page).click()
    expect(article(page, "Another answer.")).to_have_count(0)
    expect(main(page)).to_be_focused()


def test_authors_see_a_comment_that_waits_again_after_an_edit_in_its_place(
    blog_site: BlogSite,
) -> None:
    page = blog_site.open()
    mine = post(page, "Mine.")
    number = sql(blog_site.app, "SELECT id FROM comment")[0][0]
    say(blog_site.app, "An answer.", parent_id=number)
    inside.set_status(blog_site.app, number, "waiting")
    page.evaluate(
        """([key, id]) => {
        const own = JSON.parse(localStorage.getItem(key))
        own[id].comment.status = 'waiting'
        localStorage.setItem(key, JSON.stringify(own))
    }""",
        [f"{blog_site.service}/own", number],
    )
    page.reload()
    expect(article(page, "An answer.")).to_be_visible()
    expect(article(page, "Mine.")).to_contain_text("Other readers can’t see it yet")
    stranger = blog_site.open()
    expect(stranger.get_by_text("This comment is awaiting approval.")).to_be_visible()
    expect(stranger.get_by_text("This comment was removed.")).to_have_count(0)
    assert mine


def test_refusals_of_the_account_are_told_beside_their_fields(blog_site: BlogSite) -> None:
    page = blog_site.open(faults=REFUSED)
    panel = open_account(page)
    for typed, words in (("", "Please enter your email address."), ("ann@", "ann@example.com")):
        textbox(panel, "Email").fill(typed)
        keyboard(button(panel, "Email me a code"))
        assert_told(page, textbox(panel, "Email"), words)
    keyboard(button(panel, "Use a password instead"))
    keyboard(button(panel, "Sign in"))
    assert_told(page, panel.get_by_label("Password"), "Please enter a password.")
    panel.get_by_label("Password").fill(PASSWORD)
    keyboard(button(panel, "Sign in"))
    assert_told(page, textbox(panel, "Email"), "ann@example.com")
    keyboard(button(panel, "Create an account"))
    panel = page.get_by_role("form", name="Create an account")
    for name in ("Email", "Name"):
        textbox(panel, name).fill("")
    for name, words in (
        ("Name", "Please enter a name."),
        ("Email", "Please enter your email address."),
    ):
        keyboard(button(panel, "Email me a code"))
        assert_told(page, textbox(panel, name), words)


@service_with(limits_enabled=True)
def test_an_author_beyond_the_rate_limit_is_told_how_long_to_wait_until_it_is_over(
    blog_site: BlogSite,
) -> None:
    page = blog_site.open(faults=REFUSED)
    page.clock.install()
    page.reload()
    body = {"page_url": POST, "nickname": "Ann", "captcha_token": "x"}
    client = TestApp(blog_site.app, {"REMOTE_ADDR": "127.0.0.1"})
    for number in range(5):
        client.post_json("/comments", {**body, "content": f"{number}"})
    write(page, "Sixth.")
    button(page, "Post").click()
    assert_told(page, None, r"^Too fast: please wait [1-9]\d? seconds\.$")
    error = page.locator(".error")
    first = int(re.findall(r"\d+", error.inner_text())[0])
    page.clock.pause_at(page.evaluate("Date.now()") / 1000 + 1)
    page.clock.run_for(10_000)
    later = int(re.findall(r"\d+", error.inner_text())[0])
    assert 10 <= first - later <= 20
    page.clock.run_for(60_000)
    expect(error).to_have_count(0)
    expect(main(page)).to_have_value("Sixth.")


# Posting


def test_enter_posts_with_control_or_command_and_from_the_name(blog_site: BlogSite) -> None:
    page = blog_site.open()
    for keys in ("Control+Enter", "Meta+Enter"):
        write(page, f"By {keys}.")
        main(page).press("Enter")
        expect(main(page)).to_have_value(f"By {keys}.\n")
        main(page).press(keys)
        mine = article(page, f"By {keys}.")
        expect(mine).to_be_focused()
        choose(mine, "Edit")
        expect(mine.get_by_role("group", name="Formatting")).to_be_visible()  # and its keys work
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(f"Saved with {keys}.")
        page.keyboard.press(keys)
        expect(article(page, f"Saved with {keys}.")).to_be_focused()
    write(page, "From the name.")
    textbox(page, "Name").press("Enter")
    expect(article(page, "From the name.")).to_be_focused()
    assert len(comments(blog_site.app)) == 3


def test_enter_that_ends_a_composition_posts_nothing(blog_site: BlogSite) -> None:
    page = blog_site.open(lang="zh-CN")
    sent = requests_of(page, "/comments")
    cdp = page.context.new_cdp_session(page)
    main(page).fill("先写")
    typed = {"text": "ni'hao", "selectionStart": 6, "selectionEnd": 6}
    enter = {"key": "Process", "code": "Enter", "windowsVirtualKeyCode": 229, "modifiers": 2}
    for name in ("content", "nickname"):
        box = page.locator(f"[name={name}]")
        box.focus()
        cdp.send("Input.imeSetComposition", typed)
        for kind in ("keyDown", "keyUp"):
            cdp.send("Input.dispatchKeyEvent", {"type": kind, **enter})
        box.evaluate(
            """e => e.dispatchEvent(new KeyboardEvent('keydown', {
              key: 'Enter', ctrlKey: true, isComposing: true, bubbles: true, composed: true}))"""
        )
        cdp.send("Input.insertText", {"text": "你好"})
        expect(box).to_have_value(re.compile("你好$"))
    assert [request for request in sent if request.method == "POST"] == []
    expect(page.locator(".error")).to_have_count(0)


def test_pressing_post_again_and_again_makes_one_comment(blog_site: BlogSite) -> None:
    page = blog_site.open()
    write(page, "Once.")
    with requests_held(page, "**/comments") as waiting:
        form = page.locator("section > form")
        with page.expect_request("**/comments"):
            button(page, "Post").dblclick()
        expect(form).to_have_attribute("aria-busy", "true")
        main(page).press("Control+Enter")
        textbox(page, "Name").press("Enter")
        main(page).press("x")  # would not be sent, and would be gone with the form
        expect(main(page)).to_have_value("Once.")
    expect(article(page, "Once.")).to_be_focused()
    expect(main(page)).to_be_editable()
    expect(form).not_to_have_attribute("aria-busy", "true")
    assert len(waiting) == 1
    assert comments(blog_site.app) == [("Ann", "Once.")]


def expect_waiting(page: Page, text: str) -> None:
    expect(article(page, text).get_by_text("Waiting for approval. Other readers")).to_be_visible()


@service_with(moderation_hold="all", privacy_policy_url="https://blog.example/privacy")
def test_a_comment_that_waits_says_so_and_only_its_author_sees_it(blog_site: BlogSite) -> None:
    # As a reader comes from a newsletter, and one from WeChat.
    page = blog_site.open(f"{POST}?utm_source=email&from=timeline&isappinstalled=0&nsukey=a1b2")
    write(page, "Patience.")
    link = page.get_by_role("link", name="Privacy")
    expect(link).to_have_attribute("href", "https://blog.example/privacy")
    expect(page.get_by_text("Comments appear here once they are approved.")).to_be_visible()
    keyboard(button(page, "Post for approval"))
    mine = article(page, "Patience.")
    expect(mine).to_be_focused()
    expect_waiting(page, "Patience.")
    expect(page.get_by_role("status").first).to_contain_text("Waiting for approval")
    expect(mine.locator(".reply")).to_have_count(0)
    page.reload()
    expect_waiting(page, "Patience.")
    expect(blog_site.open().get_by_text("No comments yet")).to_be_visible()
    owner_moderates(blog_site.app, "visible", 1)
    page.reload()
    mine.locator(".reply").click()
    page.keyboard.insert_text("An answer.")
    button(mine, "Post for approval").click()
    for _ in range(2):
        expect(page.locator("li li .body")).to_have_text("An answer.")
        expect_waiting(page, "An answer.")
        page.reload()
    owner_moderates(blog_site.app, "visible", 2)
    page.reload()
    expect(mine).to_have_count(1)
    expect(page.get_by_text("Waiting for approval")).to_have_count(0)


# What changed meanwhile


def make_older(app: App, minutes: int) -> None:
    sql(app, "UPDATE comment SET created_at = created_at - ?", minutes * 60)


def test_after_a_quarter_of_an_hour_a_guest_can_change_nothing(blog_site: BlogSite) -> None:
    page = blog_site.open()
    page.clock.install()
    mine = post(page, "Too late.")
    page.clock.fast_forward(14 * 60_000)
    expect(mine.locator("time")).to_have_text("14 minutes ago")
    assert words_of(mine) == ["Copy link", "Edit", "Delete"]
    page.clock.fast_forward(60_000)
    for _ in range(2):
        expect(mine.get_by_text("You", exact=True)).to_be_visible()
        assert words_of(mine) == ["Copy link"]
        page.reload()


def test_a_comment_removed_or_a_page_closed_meanwhile_is_told(blog_site: BlogSite) -> None:
    parent = say(blog_site.app, "Hers.")
    say(blog_site.app, "His.")
    page = blog_site.open(faults=REFUSED)
    box = open_form(page, "reply", "An answer.")
    textbox(article(page, "Hers."), "Name").fill("Ann")
    owner_moderates(blog_site.app, "deleted", parent)
    button(article(page, "Hers."), "Post").click()
    expect(article(page, "Hers.").locator(".error")).to_have_text("This comment was removed.")
    expect(box).to_have_value("An answer.")
    page.reload()
    write(page, "Wait!")
    sql(blog_site.app, "UPDATE page SET closed = 1")
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
    error = page.get_by_role("status").or_(page.get_by_role("alert"))
    expect(error.filter(has_text="can’t be reached").filter(visible=True)).to_have_count(1)


@solved
def test_offline_the_text_stays_and_the_proof_is_asked_for_once(blog_site: BlogSite) -> None:
    page = blog_site.open(faults=UNREACHED)
    blog_site.expected.append("could not be loaded")
    asked = requests_of(page, "/captcha")
    page.locator(".head").click(position={"x": 1, "y": 1})
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    main(page).click()
    for letter in "Patience":
        with page.expect_event("requestfailed") if not asked else ExitStack():
            page.keyboard.press(letter)
    assert len(asked) == 1
    textbox(page, "Name").fill("Ann")
    keyboard(button(page, "Post"))
    expect_unreached(page)
    page.context.set_offline(False)
    with page.expect_response("**/captcha"):
        page.reload()  # which asks for it at once
    expect(main(page)).to_have_value("Patience")
    main(page).focus()
    keyboard(button(page, "Post"))
    expect(article(page, "Patience")).to_be_focused()
    expect(page.locator(".error")).to_have_count(0)
    assert comments(blog_site.app) == [("Ann", "Patience")]


@solved
def test_a_response_that_was_lost_does_not_double_the_comment(blog_site: BlogSite) -> None:
    page = blog_site.open(faults=UNREACHED)
    write(page, "Exactly once.")

    def lose(route: Route) -> None:
        route.fetch(url=route.request.url.replace("comments.test", "127.0.0.1"))
        route.abort()

    page.route("**/comments", lose, times=1)
    button(page, "Post").click()
    expect_unreached(page)
    assert comments(blog_site.app) == [("Ann", "Exactly once.")]
    button(page, "Post").click()
    mine = article(page, "Exactly once.")
    expect(mine).to_be_focused()
    expect(mine.get_by_text("You", exact=True)).to_be_visible()
    assert comments(blog_site.app) == [("Ann", "Exactly once.")]


# The proof of work

COUNT_PROOFS = """
  window.proofs = 0
  const Plain = Worker
  window.Worker = class extends Plain {
    constructor(...words) {
      super(...words)
      this.addEventListener('message', () => window.proofs++)
    }
  }
"""


@solved
def test_the_challenge_comes_with_the_focus_and_the_proof_begins_with_the_first_key(
    blog_site: BlogSite,
) -> None:
    page = blog_site.open(faults=REFUSED)
    page.add_init_script(COUNT_PROOFS)
    page.reload()
    asked = requests_of(page, "/captcha")
    with page.expect_response("**/captcha"):
        main(page).click()
    expect(button(page, "Post")).to_be_visible()
    assert page.workers == []
    with page.expect_worker():
        page.keyboard.insert_text("F")
    page.wait_for_function("() => window.proofs === 1")
    page.keyboard.insert_text("irst.")
    textbox(page, "Name").fill("Ann")
    with page.expect_request("**/comments") as sent:
        button(page, "Post").click()
    expect(article(page, "First.")).to_be_focused()
    assert len(asked) == 1
    body = sent.value.post_data_json
    assert body
    assert len(body["captcha_token"]) > 200
    # What is pasted has a proof of its own, and is not held for having come at once.
    pasted = "What was written elsewhere, at leisure, comes here all at once, and may be shown."
    main(page).click()
    page.keyboard.insert_text(pasted)
    button(page, "Post").click()
    expect(page.locator("form.form").first).to_have_attribute("aria-busy", "true")
    expect(article(page, pasted)).to_be_focused()
    assert len(asked) == 2
    assert sql(blog_site.app, "SELECT status FROM comment") == [("visible",)] * 2
    assert sql(blog_site.app, "SELECT count(*) FROM spent_captcha") == [(2,)]


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


def page_with_provider(
    blog_site: BlogSite, siteverify: Siteverify, path: str = POST
) -> tuple[Page, list[str]]:
    """A page on which the provider's script works, and the requests for that."""
    provider = siteverify.kind.split()[0]
    loaded: list[str] = []
    tokens = [siteverify.issue(hostname="blog.test") for _ in range(5)]
    name = {"recaptcha": "grecaptcha"}.get(provider, provider)
    words = {"NAME": name, "TOKENS": "fakeTokens", "VISIBLE": str(int(siteverify.kind[-1] == "2"))}
    script = f"window.fakeTokens = {json.dumps(tokens)}; {FAKE}"
    for word, value in words.items():
        script = script.replace(word, value)

    def serve(route: Route) -> None:
        loaded.append(route.request.url)
        route.fulfill(content_type="text/javascript", body=script)

    page = blog_site.open(path)
    page.route(f"{SCRIPTS[provider]}**", serve)
    return page, loaded


@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_foreign_captcha_comes_with_the_writing(
    blog_site: BlogSite, siteverify: Siteverify
) -> None:
    page, loaded = page_with_provider(blog_site, siteverify)
    policy = "require-trusted-types-for 'script'; trusted-types commentd"
    blog_site.pages[POST] = ({"Content-Security-Policy": policy}, blog_site.pages[POST][1])
    page.reload()
    for name in ("turnstile", "hcaptcha", "grecaptcha"):  # an element with its name
        page.evaluate("id => document.body.append(Object.assign(new Image(), {id}))", name)
    main(page).click()
    expect(button(page, "Post")).to_be_visible()
    assert loaded == []
    assert page.locator("commentd-thread > [slot=captcha]").count() == 0
    page.keyboard.insert_text("No robot.")
    robot = button(page.locator("commentd-thread > [slot=captcha]"), "I am no robot")
    expect(robot).to_be_visible()
    inside = "(e, form) => e.closest('[slot]').assignedSlot.closest(form) && e.getRootNode()"
    assert robot.evaluate(f"e => ({inside})(e, 'section > form') === document")
    assert page.evaluate("() => fakes[0].sitekey") == SITE_KEY
    textbox(page, "Name").fill("Ann")
    keyboard(robot)
    keyboard(button(page, "Post"))
    first = article(page, "No robot.")
    expect(first).to_be_focused()
    expect(robot).to_be_hidden()
    first.locator(".reply").click()
    page.keyboard.insert_text("An answer.")
    expect(robot).to_be_visible()
    assert robot.evaluate(f"e => ({inside})(e, 'article') === document")
    robot.click()
    button(first, "Post").click()
    expect(page.locator("li li .body")).to_have_text("An answer.")
    assert [form["response"][:7] for form in siteverify.asked] == ["token-0", "token-1"]
    assert len(loaded) == 1


@pytest.mark.parametrize("kind", ["recaptcha 3"])
def test_an_unseen_captcha_is_asked_for_when_sending(
    blog_site: BlogSite, siteverify: Siteverify
) -> None:
    page, loaded = page_with_provider(blog_site, siteverify)
    write(page, "It took me a while.")
    page.wait_for_function("() => window.fakes?.length")
    fresh = page.evaluate("() => fakeTokens[0]")
    button(page, "Post").click()
    expect(article(page, "It took me a while.")).to_be_focused()
    assert [form["response"] for form in siteverify.asked] == [fresh]
    assert [url.partition("?")[2] for url in loaded] == [f"render={SITE_KEY}"]
    assert page.evaluate("() => fakes[0].action") == "commentd"


@pytest.mark.parametrize("kind", KINDS)
def test_a_captcha_that_is_blocked_is_told_in_words(
    blog_site: BlogSite, siteverify: Siteverify
) -> None:
    page = blog_site.open(faults=UNREACHED)
    tries: list[str] = []

    def block(route: Route) -> None:
        tries.append(route.request.url)
        route.abort()

    page.route("https://**", block)
    write(page, "Let me through.")
    keyboard(button(page, "Post"))
    expect(page.locator(".error")).to_contain_text("you’re human")
    expect(main(page)).to_have_value("Let me through.")
    assert len(tries) <= 2 * (2 if siteverify.kind.startswith("recaptcha") else 1)
    page.unroute("https://**")


# The title of the page

TITLES = "SELECT title, title_source FROM page"
OF_DOCUMENT = ("一行字能走多远 – How far a line goes", "comment")


def page_with(blog_site: BlogSite, body: str) -> Page:
    """A reader before a page of the blog with this in its body."""
    page = blog_site.reader()
    html = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>A post</title>{body}'
    blog_site.pages["/post/"] = ({}, html.replace("SERVICE", blog_site.service))
    page.goto(f"{blog_site.address}/post/")
    return page


SCRIPT = '<script src="SERVICE/embed.js" async></script>'


def test_a_comment_brings_the_title_of_its_page(blog_site: BlogSite) -> None:
    post(blog_site.open())
    assert sql(blog_site.app, TITLES) == [OF_DOCUMENT]


@pytest.mark.parametrize(
    ("body", "title"),
    [
        (SCRIPT.replace("<script", '<script data-title="Of the tag"'), "Of the tag"),
        (f'<commentd-thread data-title="Its own"></commentd-thread>{SCRIPT}', "Its own"),
        (f'<commentd-thread data-title=""></commentd-thread>{SCRIPT}', ""),
        (f'<img name="title"><form name="scripts"></form>{SCRIPT}', "A post"),
        # Of two threads, the document has the title of neither.
        (f'<commentd-thread></commentd-thread>{SCRIPT}<commentd-thread page="/b/">', ""),
    ],
    ids=["on the tag", "on the element", "none", "hidden by a name", "two threads"],
)
def test_the_owner_may_say_another_title(blog_site: BlogSite, body: str, title: str) -> None:
    page = page_with(blog_site, f"<body><main>{body}</main>")
    thread = page.locator("commentd-thread").first
    keyboard(textbox(thread, "Write a comment…"), "First.")
    keyboard(textbox(thread, "Name"), "Ann")
    keyboard(button(thread, "Post"))
    expect(article(page, "First.")).to_be_focused()
    assert sql(blog_site.app, "SELECT title FROM page") == [(title,)]
