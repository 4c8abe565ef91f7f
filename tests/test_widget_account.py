"""The account of a reader, comments without a name, and reports, in a real Chromium on a page of
another origin. `test_widget_writing.py` has signing in and out."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from webtest import TestApp

from support import blog
from support.accessibility import DESK, PHONE, assert_nobody_is_shut_out, focus_stops
from support.blog import OWNER, POST, WATCH, owner_token, say
from support.inside import sql
from support.widget import service_with
from support.words import WORDS
from support.world import read, text_of
from support.writing import (
    MAIL,
    PASSWORD,
    REFUSED,
    UNREACHED,
    BlogSite,
    Operate,
    article,
    assert_told,
    button,
    choices,
    comments,
    end_logins,
    in_any_language,
    keyboard,
    main,
    mouse,
    refuse,
    requests_held,
    requests_of,
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
from support.writing import pages as pages  # a fixture


@pytest.fixture(autouse=True)
def ann(account: int) -> None:
    """Ann has an account in every test."""


EN = WORDS["en"]
LONG = "/2025/" + "a-title-of-many-words-" * 9 + "/"


def panel(page: Page, name: str = "account") -> Locator:
    return page.get_by_role("form", name=in_any_language(name))


def open_panel(page: Page, operate: Operate = mouse) -> Locator:
    text = page.locator("textarea").first
    operate(text, text.input_value())
    operate(page.get_by_role("button", name=in_any_language("account")).first)
    expect(panel(page).get_by_role("switch").first).to_be_visible()
    return panel(page)


def close_panel(page: Page) -> None:
    button(panel(page), "Close").click()
    expect(panel(page)).to_have_count(0)


def step(page: Page, word: str, operate: Operate = mouse) -> Locator:
    """One of the steps that the panel leads to."""
    operate(open_panel(page, operate).get_by_role("button", name=in_any_language(word)))
    expect(panel(page, word)).to_be_visible()
    return panel(page, word)


def switch(page: Page, word: str) -> Locator:
    return panel(page).get_by_role("switch", name=EN[word], exact=True)


def client(blog_site: BlogSite, token: str = "") -> TestApp:
    made = TestApp(blog_site.app, {"REMOTE_ADDR": "127.0.0.1"})
    if token:
        made.authorization = ("Bearer", token)
    return made


def login(blog_site: BlogSite, password: str, status: int = 200) -> Any:
    """What the service says to Ann's email address with this password."""
    body = {"email": MAIL, "password": hashlib.sha256(password.encode()).hexdigest()}
    return client(blog_site).post_json("/auth/login", body | {"captcha_token": "x"}, status=status)


def me(blog_site: BlogSite) -> Any:
    """What is kept of Ann."""
    return (
        client(blog_site, login(blog_site, PASSWORD).json["token"]).get("/me", {"url": POST}).json
    )


def follow(blog_site: BlogSite, *urls: str) -> None:
    reader = client(blog_site, login(blog_site, PASSWORD).json["token"])
    for url in urls:
        reader.post_json("/page/follow", {"page_url": url})


def told(page: Page, words: str) -> Locator:
    """What is said to all who look or listen."""
    return page.get_by_role("status").filter(has_text=words)


def post_comment(page: Page, text: str) -> Locator:
    """A comment of somebody who is signed in."""
    main(page).fill(text)
    button(page, "Post").click()
    expect(article(page, text)).to_be_focused()
    return article(page, text)


def bodies(sent: list[Any]) -> list[Any]:
    return [json.loads(each.post_data or "null") for each in sent]


# The account


def test_the_account_opens_in_place_and_closes_to_where_it_began(blog_site: BlogSite) -> None:
    page = signed_in(blog_site, **DESK)
    main(page).fill("Half a thought")
    opened = open_panel(page, keyboard)
    expect(opened.get_by_text(f"{MAIL} · 0 comments")).to_be_visible()
    expect(textbox(opened, "Name")).to_have_value("Ann")
    keyboard(button(opened, "Close"))
    expect(opened).to_have_count(0)
    expect(button(page, "Account")).to_be_focused()
    expect(main(page)).to_have_value("Half a thought")
    sql(blog_site.app, "UPDATE account SET nickname = 'Anna'")  # changed elsewhere
    expect(textbox(open_panel(page), "Name")).to_have_value("Anna")
    for hidden in ("Post", "Sign out"):
        expect(button(page, hidden)).to_have_count(0)
    close_panel(page)
    expect(page.get_by_text("Signed in as Anna")).to_be_visible()
    keyboard(button(page, "Sign out"))
    expect(main(page)).to_be_focused()


def test_a_new_name_holds_for_what_is_written_from_now_on(blog_site: BlogSite) -> None:
    owner_token(blog_site.app)
    page = signed_in(blog_site, faults=REFUSED)
    post_comment(page, "As Ann.")
    opened = open_panel(page)
    name = textbox(opened, "Name")
    for taken, words in ((OWNER, "Please choose another."), (" ", "Please enter a name.")):
        name.fill(taken)
        keyboard(button(opened, "Save"))
        assert_told(page, name, words)
    assert me(blog_site)["nickname"] == "Ann"
    expect(page.get_by_text("Signed in as Ann")).to_be_attached()
    sent = requests_of(page, "/me")
    name.fill("Anna Byrne")
    keyboard(button(opened, "Save"))
    expect(page.get_by_text("Signed in as Anna Byrne")).to_be_attached()
    expect(told(page, "Saved.")).to_be_attached()
    assert bodies(sent) == [{"nickname": "Anna Byrne"}]
    close_panel(page)
    post_comment(page, "As Anna.")
    assert comments(blog_site.app) == [("Ann", "As Ann."), ("Anna Byrne", "As Anna.")]
    page.reload()
    main(page).focus()
    expect(page.get_by_text("Signed in as Anna Byrne")).to_be_attached()


def test_a_new_password_holds_at_once_and_the_reader_stays_signed_in(
    blog_site: BlogSite, account: int
) -> None:
    page = signed_in(blog_site, faults=REFUSED)
    changing = step(page, "change", keyboard)
    sent = requests_of(page, "/me")
    current, new = (changing.get_by_label(f"{word} password") for word in ("Current", "New"))
    save = button(changing, "Save")
    expect(current).to_be_focused()
    save.click()
    assert_told(page, current, "Please enter a password.")
    current.fill("not it")
    save.click()
    assert_told(page, new, "Please enter a password.")
    save.click()
    assert_told(page, current, "This is not your current password.")
    login(blog_site, PASSWORD)
    keyboard(button(changing, "Back"))
    expect(button(panel(page), "Change password")).to_be_focused()
    keyboard(button(panel(page), "Change password"))
    keyboard(current, PASSWORD)
    keyboard(new, "Another one")
    keyboard(save)
    expect(told(page, "Password changed.")).to_be_attached()
    expect(button(panel(page), "Change password")).to_be_focused()
    changes = [each.post_data or "" for each in sent if each.method == "PATCH"]
    secrets = [hashlib.sha256(text.encode()).hexdigest() for text in (PASSWORD, "Another one")]
    assert json.loads(changes[-1]) == {"password": secrets[0], "new_password": secrets[1]}
    assert [body for body in changes if "not it" in body or "Another" in body] == []
    login(blog_site, PASSWORD, 401)
    login(blog_site, "Another one")
    close_panel(page)
    post_comment(page, "Still me.")
    assert sql(blog_site.app, "SELECT user_id FROM comment") == [(account,)]


# Emails


@pytest.mark.parametrize("emails", ["answers", "questions"])
def test_emails_to_the_holder_of_an_account_are_switched_off_and_on(
    emails: str, blog_site: BlogSite
) -> None:
    page = signed_in(blog_site, faults=REFUSED)
    open_panel(page)
    choice, alert = switch(page, emails), page.locator(".error")
    expect(choice).to_be_checked()
    refuse(page, "/me", "storage")
    keyboard(choice)
    expect(alert).to_contain_text("This can’t be saved right now")
    expect(choice).to_be_checked()
    expect(choice).to_be_focused()
    expect(choice).to_have_accessible_description(re.compile("right now"))
    page.unroute("**/me")
    for wanted in (False, True):
        with page.expect_response("**/me"):
            keyboard(choice)
        expect(alert).to_have_count(0)
        expect(choice).to_be_checked(checked=wanted)
        assert me(blog_site)[emails] is wanted
        close_panel(page)
        open_panel(page)
        expect(choice).to_be_checked(checked=wanted)


def test_a_switch_of_the_account_that_is_pressed_again_and_again_keeps_the_last_choice(
    blog_site: BlogSite,
) -> None:
    page = signed_in(blog_site)
    open_panel(page)
    before = me(blog_site)
    replies, sent = switch(page, "answers"), requests_of(page, "/me")
    with requests_held(page, "**/me") as waiting:
        with page.expect_request("**/me"):
            replies.click()
        for _ in range(3):
            replies.click()
        assert len(waiting) == 1
        with page.expect_request("**/me"):
            waiting.pop().continue_()
    expect(replies).not_to_have_attribute("aria-busy", "true")
    expect(replies).to_be_checked()
    assert [body["answers"] for body in bodies(sent)] == [False, True]
    assert me(blog_site) == before


def test_each_followed_page_can_be_opened_left_and_followed_again(blog_site: BlogSite) -> None:
    page = signed_in(blog_site, faults=REFUSED)
    opened = open_panel(page)
    this_page, count = switch(page, "emails"), opened.locator("summary")
    expect(this_page).not_to_be_checked()
    expect(count).to_be_hidden()
    keyboard(this_page)
    expect(count).to_have_text("Pages I follow (1)")
    assert me(blog_site)["following"] is True
    close_panel(page)
    follow(blog_site, "/2024/%E8%A1%8C%E8%B7%9D/", "a-key")
    open_panel(page)
    expect(this_page).to_be_checked()
    keyboard(count)
    items = opened.get_by_role("listitem")
    expect(items).to_have_count(3)
    link = opened.get_by_role("link", name="/2024/行距/", exact=True)
    expect(link).to_have_attribute("href", f"{blog_site.address}/2024/%E8%A1%8C%E8%B7%9D/")
    expect(items.filter(has_text="a-key").get_by_role("link")).to_have_count(0)
    press = items.filter(has_text="/2024/").get_by_role("button")
    expect(press).to_have_accessible_name("Unfollow: /2024/行距/")
    refuse(page, "/page/follow", "too_many", 429)
    keyboard(press)
    expect(page.locator(".error")).to_have_text("Too fast: please wait 40 seconds.")
    expect(press).to_be_focused()
    page.unroute("**/page/follow")
    for word, number in (("Follow", 2), ("Unfollow", 3)):
        keyboard(press)
        expect(press).to_have_text(word)
        expect(press).to_be_focused()
        expect(count).to_have_text(f"Pages I follow ({number})")
        assert len(me(blog_site)["follows"]) == number
    keyboard(button(opened, f"Unfollow: {POST}"))
    expect(this_page).not_to_be_checked()


def test_a_followed_page_is_a_link_only_where_its_url_is_one_of_the_web(
    blog_site: BlogSite,
) -> None:
    links = ["javascript:alert(1)", "data:text/html,x", "//evil.example/", ""]

    def lead(environ: Any, status: str, head: dict[str, str], body: bytes) -> Any:
        if (environ["PATH_INFO"], environ["REQUEST_METHOD"]) == ("/me", "GET"):
            follows = [{"page_url": link, "page_link": link} for link in links]
            body = blog.changed_json(body, follows=follows)
        return status, head, body

    blog_site.answers(lead)
    opened = open_panel(signed_in(blog_site))
    opened.locator("summary").click()
    expect(opened.get_by_role("listitem")).to_have_count(len(links))
    expect(opened.get_by_role("link")).to_have_count(0)


# What is kept


def test_the_data_of_an_account_is_downloaded_as_a_file_and_no_url_has_the_token(
    blog_site: BlogSite, tmp_path: Path
) -> None:
    follow(blog_site, POST)
    page = signed_in(blog_site, faults=UNREACHED)
    post_comment(page, "For the record.")
    press = button(open_panel(page), "Download my data")
    page.context.set_offline(True)
    keyboard(press)
    expect(panel(page).locator(".error")).to_contain_text("can’t be reached")
    page.context.set_offline(False)
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    with page.expect_download() as download:
        keyboard(press)
    expect(page.locator(".error")).to_have_count(0)
    assert download.value.suggested_filename == "comments.json"
    download.value.save_as(tmp_path / "mine.json")
    kept = json.loads((tmp_path / "mine.json").read_text("utf-8"))
    assert kept["account"]["email"] == MAIL
    assert [each["content"] for each in kept["comments"]] == ["For the record."]
    assert [each["page_url"] for each in kept["follows"]] == [POST]
    token = json.loads(page.evaluate(f"localStorage['{blog_site.service}/me']"))["token"]
    assert [url for url in [*seen, page.url] if token in url] == []
    assert page.url == blog_site.address + POST


def test_an_account_panel_that_failed_to_load_can_be_asked_for_again(blog_site: BlogSite) -> None:
    blog_site.expected += [UNREACHED, REFUSED]
    page = signed_in(blog_site, faults=UNREACHED)
    main(page).fill("Not lost.")
    expect(button(page, "Account")).to_be_visible()
    page.context.set_offline(True)
    keyboard(button(page, "Account"))
    expect(panel(page).locator(".error")).to_contain_text("can’t be reached")
    page.context.set_offline(False)
    keyboard(button(panel(page), "Try again"))
    expect(switch(page, "answers")).to_be_visible()
    expect(page.locator(".error")).to_have_count(0)
    close_panel(page)
    end_logins(blog_site.app)
    keyboard(button(page, "Account"))
    expect(page.locator(".error")).to_contain_text("You are no longer signed in.")
    expect(panel(page)).to_have_count(0)
    expect(panel(page, "signin")).to_be_visible()
    expect(main(page)).to_have_value("Not lost.")


# The end of an account


@pytest.mark.parametrize("choice", ["stay", "go"])
def test_an_account_is_deleted_with_or_without_its_comments_as_its_holder_wants(
    blog_site: BlogSite, choice: str
) -> None:
    page = signed_in(blog_site)
    mine = post_comment(page, "My words.")
    number = int(mine.locator("..").get_attribute("data-id") or 0)
    say(blog_site.app, "Hers.", parent_id=number)
    ending = step(page, "erase")
    ending.get_by_role("radio", name=EN[choice]).check()
    ending.get_by_label("Current password").fill(PASSWORD)
    keyboard(button(ending, "Delete account"))
    expect(button(ending, "Delete it?")).to_be_focused()
    keyboard(button(ending, "Delete it?"))
    expect(told(page, "Your account is deleted.")).to_be_attached()
    expect(ending).to_have_count(0)
    expect(main(page)).to_be_focused()
    expect(page.get_by_text("Signed in as")).to_have_count(0)
    expect(textbox(page, "Name")).to_have_value("")
    expect(article(page, "Hers.")).to_be_visible()
    if choice == "stay":
        expect(mine.locator(".name")).to_have_text("Anonymous")
        assert words_of(mine) == ["Copy link", "Report"]
    else:
        expect(mine).to_have_count(0)
        expect(page.get_by_text("This comment was removed.")).to_be_visible()
    assert sql(blog_site.app, "SELECT count(*) FROM account") == [(0,)]
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert [word for word in (MAIL, "Ann", "My words", "token") if word in kept] == []


def test_an_account_is_not_deleted_by_mistake(blog_site: BlogSite) -> None:
    page = signed_in(blog_site, faults=REFUSED)
    ending = step(page, "erase", keyboard)
    group = ending.get_by_role("group", name=EN["erasing"], exact=True)
    expect(group.get_by_role("radio")).to_have_count(2)
    expect(group.get_by_role("radio", name=EN["stay"])).to_be_checked()
    expect(group.get_by_role("radio", name=EN["stay"])).to_be_focused()
    password, first = ending.get_by_label("Current password"), button(ending, "Delete account")
    first.click()
    assert_told(page, password, "Please enter a password.")
    password.fill("not it")
    first.click()
    button(ending, "Delete it?").click()
    assert_told(page, password, "This is not your current password.")
    expect(first).to_be_visible()
    password.fill(PASSWORD)
    sql(blog_site.app, "UPDATE account SET role = 'admin'")
    first.click()
    button(ending, "Delete it?").click()
    expect(ending.locator(".error")).to_contain_text("You’re the only admin.")
    keyboard(button(ending, "Back"))
    expect(button(panel(page), "Delete account")).to_be_focused()
    assert sql(blog_site.app, "SELECT role FROM account") == [("admin",)]


# Comments without a name


@pytest.mark.parametrize("lang", ["en", "zh-CN", "ar"])
def test_a_comment_without_name_says_so_in_the_readers_language(
    blog_site: BlogSite, lang: str
) -> None:
    parent = 0
    for number in range(4):
        parent = say(blog_site.app, f"Words {number}.", "Cy", parent_id=parent or None)
    sql(blog_site.app, "UPDATE comment SET nickname = ''")
    page = blog_site.open(lang=lang)
    word = WORDS[lang]["nobody"]
    expect(page.locator(".name")).to_have_text([word] * 4)
    expect(article(page, "Words 3.").locator(".meta")).to_contain_text(f"› {word}")
    expect(page.locator(".avatar").first).to_have_attribute("style", re.compile("oklch"))
    article(page, "Words 0.").locator(".reply").click()
    label = WORDS[lang]["replyto"].replace("{n}", word)
    expect(page.get_by_role("textbox", name=label, exact=True)).to_be_focused()


# Reports


def open_report_form(page: Page, text: str, operate: Operate = mouse) -> Locator:
    """The form that asks what is wrong with a comment."""
    operate(
        choices(article(page, text), operate).get_by_role("button", name=in_any_language("report"))
    )
    form = article(page, text).get_by_role("form", name=in_any_language("report"))
    expect(form.get_by_role("textbox")).to_be_focused()
    return form


def reported(blog_site: BlogSite) -> list[Any]:
    return sql(blog_site.app, "SELECT comment_id, reason FROM report ORDER BY comment_id")


def test_a_comment_is_reported_in_place_and_stays_so_in_this_browser(blog_site: BlogSite) -> None:
    first = say(blog_site.app, "Buy this.")
    say(blog_site.app, "Better words.")
    page = blog_site.open()
    spam, better = article(page, "Buy this."), article(page, "Better words.")
    form = open_report_form(page, "Buy this.", keyboard)
    keyboard(textbox(form, "What is wrong with it?"), " An <b>advertisement</b>. ")
    keyboard(button(form, "Report"))
    expect(told(page, "The owner of this site can see your report now.")).to_be_attached()
    expect(form).to_have_count(0)
    expect(spam).to_be_focused()
    assert words_of(spam) == ["Copy link", "Reported"]
    assert reported(blog_site) == [(first, "An <b>advertisement</b>.")]
    page.reload()
    assert words_of(spam) == ["Copy link", "Reported"]
    assert words_of(better) == ["Copy link", "Report"]


def test_a_report_that_fails_is_told_in_its_place(blog_site: BlogSite) -> None:
    say(blog_site.app, "Buy this.")
    page = signed_in(blog_site, faults=REFUSED)
    end_logins(blog_site.app)  # which keeps nobody from reporting
    form = open_report_form(page, "Buy this.")
    reason = textbox(form, "What is wrong with it?")
    reason.fill("It is an advertisement.")
    refuse(page, "/comments/1/report", "storage", 503)
    button(form, "Report").click()
    expect(form.locator(".error")).to_contain_text("This can’t be saved right now.")
    expect(reason).to_have_value("It is an advertisement.")
    page.unroute("**/comments/1/report")
    button(form, "Report").click()
    expect(form).to_have_count(0)
    assert words_of(article(page, "Buy this.")) == ["Copy link", "Reported"]
    assert reported(blog_site) == [(1, "It is an advertisement.")]


# Whom the new states must not shut out


def assert_open_to_all(page: Page, where: str) -> None:
    """The state that is shown: its colours, its names, by keyboard and by finger."""
    assert_nobody_is_shut_out(page, where)
    if page.evaluate("matchMedia('(hover)').matches"):
        found = focus_stops(page)
        assert found
        assert [stop for stop in found if not stop[1] or not stop[2]] == []
        return
    page.set_viewport_size({"width": 320, "height": 640})
    page.wait_for_function("document.documentElement.clientWidth === 320")
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    _, _, missed = page.evaluate("watch.targets()")
    assert missed == []


@pytest.mark.parametrize(("lang", "how"), [("en", DESK), ("ar", PHONE)], ids=["desk", "phone"])
def test_each_state_of_the_account_panel_is_accessible(
    blog_site: BlogSite, lang: str, how: Any
) -> None:
    say(blog_site.app, "Buy this.")
    say(blog_site.app, "Nobody's words.")
    sql(blog_site.app, "UPDATE comment SET nickname = '' WHERE id = 2")
    sql(blog_site.app, "UPDATE account SET nickname = ?", "W" * 64)
    follow(blog_site, POST, LONG, "/2024/%E8%A1%8C%E8%B7%9D/")
    page = signed_in(blog_site, faults=REFUSED, lang=lang, **how)
    page.evaluate(WATCH)
    blog.begin_to_read(page)
    press = article(page, "Buy this.").locator(".quiet")
    if how == DESK:
        expect(press).to_have_css("opacity", "0.7")  # a mouse finds it where it is
        article(page, "Buy this.").hover()
    expect(press).to_have_css("opacity", "1")
    opened = open_panel(page)
    opened.locator("summary").click()
    expect(opened.get_by_role("listitem").first).to_be_visible()
    refuse(page, "/me", "storage")
    page.get_by_role("switch").first.click()
    expect(page.locator(".error")).to_be_visible()
    assert_open_to_all(page, "account")
    opened.get_by_role("button", name=in_any_language("change")).click()
    panel(page, "change").locator(".button").click()
    expect(page.locator(".error")).to_be_visible()
    assert_open_to_all(page, "change")
    panel(page, "change").get_by_role("button", name=in_any_language("back")).click()
    opened.get_by_role("button", name=in_any_language("erase")).click()
    ending = panel(page, "erase")
    ending.locator("[name=password]").fill("x")
    ending.locator(".button").click()
    expect(ending.get_by_role("button", name=in_any_language("sure"))).to_be_visible()
    assert_open_to_all(page, "erase")
    refuse(page, "/report", "storage")
    form = open_report_form(page, "Buy this.")
    form.locator(".button").click()
    expect(form.locator(".error")).to_be_visible()
    assert_open_to_all(page, "report")
    page.unroute("**/report")
    form.locator(".button").click()
    expect(form).to_have_count(0)
    menu = choices(article(page, "Buy this."))
    expect(menu.get_by_role("button", name=in_any_language("reported"))).to_be_disabled()
    assert_open_to_all(page, "reported")


# Comments that others sign with the email address of an account


@service_with(server_public_url="http://comments.test", notify_owner=("nobody",))
def test_a_guest_with_the_email_address_of_an_account_sees_what_any_guest_sees(
    blog_site: BlogSite,
) -> None:
    seen = []
    for number, email in enumerate((MAIL, "nobody@example.com")):
        page = blog_site.open()
        write(page, f"No. {number}", "Bea")
        page.locator("summary").click()
        textbox(page, "Email").fill(email)
        button(page, "Post").click()
        written = article(page, f"No. {number}")
        expect(written.locator(".own")).to_be_visible()  # it comes a moment after the comment
        before = written.inner_text()
        page.reload()
        expect(written.locator(".own")).to_be_visible()
        after = written.inner_text()
        seen.append([text.replace(str(number), "…") for text in (before, after)])
        expect(page.locator(".tick")).to_have_count(0)
    assert seen[0] == seen[1]


@service_with(server_public_url="http://comments.test", notify_owner=("nobody",))
def test_a_press_on_the_page_of_a_mailed_link_makes_a_comment_that_of_its_holder(
    blog_site: BlogSite,
) -> None:
    page = blog_site.open()
    write(page, "Written in a hurry.", "Annie")
    page.locator("summary").click()
    textbox(page, "Email").fill(MAIL)
    button(page, "Post").click()
    expect(article(page, "hurry")).to_be_focused()
    blog_site.app.deliver()
    text = text_of(read(blog_site.mail_server.emails[-1].content))
    found = re.search(r"http://comments\.test(/mail\?\S*do=mine\S+)", text)
    assert found
    mailed = blog_site.reader()
    mailed.goto(blog_site.service + found[1])
    button(mailed, "Yes, publish it").click()
    expect(mailed.get_by_role("heading")).to_have_text("Thank you. This comment is yours.")
    ann = signed_in(blog_site)
    blog.begin_to_read(ann)
    tick = article(ann, "hurry").get_by_role("img", name="signed in")
    expect(tick).to_have_text("✓")
    expect(article(ann, "hurry").locator(".own")).to_have_text("You")


@service_with(
    server_public_url="http://comments.test", moderation_hold="email", notify_owner=("nobody",)
)
def test_a_guest_is_told_that_a_comment_waits_for_the_holder_of_its_email_address(
    blog_site: BlogSite,
) -> None:
    page = blog_site.open()
    write(page, "With an email address.", "Bea")
    told = page.get_by_text("once you open the link that we send there")
    expect(told).to_be_visible()
    page.locator("summary").click()
    textbox(page, "Email").fill("bea@example.com")
    button(page, "Post").click()
    expect(article(page, "With an email")).to_contain_text("Waiting for approval.")
    ann = signed_in(blog_site)
    main(ann).focus()
    expect(button(ann, "Post")).to_be_visible()
    expect(ann.get_by_text("once you open the link that we send there")).to_be_hidden()
