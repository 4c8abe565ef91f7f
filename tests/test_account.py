"""The account of a reader, comments without a name, and reports, in a real Chromium on a page of
another origin. `test_writing.py` has signing in and out."""

import hashlib
import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import blog
import pytest
import test_access as access
import test_writing as writing
from bench_widget import WATCH
from blog import OWNER, POST, owner_token, say
from conftest import sample
from inside import sql
from playwright.sync_api import Locator, Page, expect
from test_access import DESK, PHONE, assert_nobody_is_shut_out, prefer
from test_words import WORDS
from test_writing import (
    MAIL,
    PASSWORD,
    REFUSED,
    UNREACHED,
    Ground,
    Use,
    article,
    assert_told,
    button,
    comments,
    end_logins,
    held,
    keyboard,
    main,
    post,
    reach,
    refuse,
    requests_of,
    said,
    signed_in,
    textbox,
)
from webtest import TestApp

office, outside = writing.office, writing.outside
pages, address, config = writing.pages, writing.address, writing.config
ground, account, use = writing.ground, writing.account, writing.use

LONG = "/2025/" + "a-title-of-many-words-" * 9 + "/"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {}


# Small verbs


def panel(page: Page, name: str = "account") -> Locator:
    return page.get_by_role("form", name=said(name))


def open_panel(page: Page, use: Use = writing.mouse) -> Locator:
    text = page.locator("textarea").first
    use(text, text.input_value())
    use(page.get_by_role("button", name=said("account")).first)
    expect(panel(page).get_by_role("switch").first).to_be_visible()
    return panel(page)


def step(page: Page, word: str, use: Use = writing.mouse) -> Locator:
    """One of the steps that the panel leads to."""
    use(open_panel(page, use).get_by_role("button", name=said(word)))
    expect(panel(page, word)).to_be_visible()
    return panel(page, word)


def switch(page: Page, word: str) -> Locator:
    return panel(page).get_by_role("switch", name=WORDS["en"][word], exact=True)


def client(ground: Ground, token: str = "") -> TestApp:
    here = TestApp(ground.app, {"REMOTE_ADDR": "127.0.0.1"})
    if token:
        here.authorization = ("Bearer", token)
    return here


def login(ground: Ground, password: str, status: int = 200) -> Any:
    """What the service says to Ann's address with this password."""
    body = {"email": MAIL, "password": hashlib.sha256(password.encode()).hexdigest()}
    return client(ground).post_json("/auth/login", body | {"captcha_token": "x"}, status=status)


def me(ground: Ground) -> Any:
    """What is kept of Ann."""
    token = login(ground, PASSWORD).json["token"]
    return client(ground, token).get("/me", {"url": POST}).json


def follow(ground: Ground, *urls: str) -> None:
    token = login(ground, PASSWORD).json["token"]
    for url in urls:
        client(ground, token).post_json("/page/follow", {"page_url": url})


def told(page: Page, words: str) -> Locator:
    """What is said to all who look or listen."""
    return page.get_by_role("status").filter(has_text=words)


def kept(page: Page) -> str:
    """All that this browser remembers."""
    text: str = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}])")
    return text


def assert_between(page: Page, above: Locator, below: Locator) -> None:
    """The error stands between these two."""
    boxes = [each.bounding_box() for each in (above, page.locator(".error"), below)]
    tops = [box["y"] for box in boxes if box]
    assert len(tops) == 3
    assert tops == sorted(set(tops))


# The account


def test_the_account_opens_in_place_and_closes_to_where_it_began(
    ground: Ground, account: int, use: Use
) -> None:
    page = signed_in(ground)
    main(page).fill("Half a thought")
    opened = open_panel(page, use)
    expect(opened.get_by_text(f"{MAIL} · 0 comments")).to_be_visible()
    expect(textbox(opened, "Name")).to_have_value("Ann")
    use(button(opened, "Close"))
    expect(opened).to_have_count(0)
    expect(button(page, "Account")).to_be_focused()
    expect(main(page)).to_have_value("Half a thought")
    sql(ground.app, "UPDATE account SET nickname = 'Anna'")  # changed elsewhere
    opened = open_panel(page, use)
    expect(textbox(opened, "Name")).to_have_value("Anna")
    expect(page.get_by_text("Signed in as Anna")).to_be_visible()
    use(button(page, "Sign out"))
    expect(opened).to_have_count(0)
    expect(main(page)).to_be_focused()


def test_who_is_signed_in_and_what_they_may_do_stand_in_one_line(
    ground: Ground, account: int
) -> None:
    page = signed_in(ground, **DESK)
    main(page).click()
    each = [page.get_by_text("Signed in as Ann"), button(page, "Account"), button(page, "Sign out")]
    boxes = [one.bounding_box() for one in each]
    middles = {round(box["y"] + box["height"] / 2) for box in boxes if box}
    assert max(middles) - min(middles) <= 1


def test_a_new_name_holds_for_what_is_written_from_now_on(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    owner_token(ground.app)
    page = signed_in(ground)
    main(page).fill("As Ann.")
    button(page, "Post").click()
    expect(article(page, "As Ann.")).to_be_focused()
    opened = open_panel(page, use)
    name = textbox(opened, "Name")
    for taken, words in ((OWNER, "Please choose another."), (" ", "Please enter a name.")):
        use(name, taken)
        use(button(opened, "Save"))
        assert_told(page, name, words)
    assert me(ground)["nickname"] == "Ann"
    expect(page.get_by_text("Signed in as Ann")).to_be_visible()
    sent = requests_of(page, "/me")
    use(name, "Anna Byrne")
    use(button(opened, "Save"))
    expect(page.get_by_text("Signed in as Anna Byrne")).to_be_visible()
    expect(told(page, "Saved.")).to_be_attached()
    assert [json.loads(each.post_data or "") for each in sent] == [{"nickname": "Anna Byrne"}]
    use(main(page), "As Anna.")
    button(page, "Post").click()
    expect(article(page, "As Anna.")).to_be_focused()
    assert comments(ground.app) == [("Ann", "As Ann."), ("Anna Byrne", "As Anna.")]
    page.reload()
    main(page).focus()
    expect(page.get_by_text("Signed in as Anna Byrne")).to_be_visible()


def test_a_new_password_holds_at_once_and_the_reader_stays_signed_in(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    page = signed_in(ground)
    changing = step(page, "change", use)
    sent = requests_of(page, "/me")
    current, new = (changing.get_by_label(f"{word} password") for word in ("Current", "New"))
    expect(current).to_be_focused()
    use(button(changing, "Save"))
    assert_told(page, current, "Please enter a password.")
    use(current, "not it")
    use(button(changing, "Save"))
    assert_told(page, new, "Please enter a password.")
    use(button(changing, "Save"))
    assert_told(page, current, "This is not your current password.")
    login(ground, PASSWORD)
    use(button(changing, "Back"))
    expect(button(panel(page), "Change password")).to_be_focused()
    use(button(panel(page), "Change password"))
    use(current, PASSWORD)
    use(new, "Another one")
    use(button(changing, "Save"))
    expect(told(page, "Your new password is set.")).to_be_attached()
    expect(button(panel(page), "Change password")).to_be_focused()
    bodies = [each.post_data or "" for each in sent if each.method == "PATCH"]
    secrets = [hashlib.sha256(text.encode()).hexdigest() for text in (PASSWORD, "Another one")]
    assert json.loads(bodies[-1]) == {"password": secrets[0], "new_password": secrets[1]}
    assert [body for body in bodies if "not it" in body or "Another" in body] == []
    login(ground, PASSWORD, 401)
    login(ground, "Another one")
    main(page).fill("Still me.")
    button(page, "Post").click()
    expect(article(page, "Still me.")).to_be_focused()
    assert sql(ground.app, "SELECT user_id FROM comment") == [(account,)]


# Emails


def test_emails_about_replies_are_switched_off_and_on(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    page = signed_in(ground)
    open_panel(page, use)
    answers = switch(page, "answers")
    expect(answers).to_be_checked()
    refuse(page, "/me", "storage")
    use(answers)
    expect(answers).to_be_checked()
    alert = page.locator(".error")
    expect(alert).to_contain_text("The service is busy")
    expect(answers).to_be_focused()
    expect(answers).to_have_accessible_description(re.compile("busy"))
    assert_between(page, answers, switch(page, "letters"))
    page.unroute("**/me")
    for wanted in (False, True):
        with page.expect_response("**/me"):
            use(answers)
        expect(alert).to_have_count(0)
        expect(answers).to_be_checked(checked=wanted)
        assert me(ground)["answers"] is wanted
        button(panel(page), "Close").click()
        open_panel(page)
        expect(answers).to_be_checked(checked=wanted)


def test_of_a_switch_pressed_again_and_again_the_last_word_holds(
    ground: Ground, account: int
) -> None:
    page = signed_in(ground)
    open_panel(page)
    before = me(ground)
    for word, path, wanted in (
        ("answers", "/me", [{"answers": False}, {"answers": True}]),
        ("letters", "/page/follow", [{"undo": False}, {"undo": True}]),
    ):
        sent = requests_of(page, path)
        with held(page, f"**{path}") as waiting:
            with page.expect_request(f"**{path}"):
                switch(page, word).click()
            for _ in range(3):
                switch(page, word).click()
            assert len(waiting) == 1
            with page.expect_request(f"**{path}"):
                waiting.pop().continue_()
        expect(switch(page, word)).not_to_have_attribute("aria-busy", "true")
        expect(switch(page, word)).to_be_checked(checked=word == "answers")
        bodies = [json.loads(each.post_data or "") for each in sent]
        assert [
            {key: body[key] for key in pair} for pair, body in zip(wanted, bodies, strict=True)
        ] == wanted
        assert me(ground) == before


def test_this_page_is_followed_in_the_language_that_is_spoken_here(
    ground: Ground, account: int, use: Use
) -> None:
    page = signed_in(ground)
    open_panel(page, use)
    expect(switch(page, "letters")).not_to_be_checked()
    expect(panel(page).locator("summary")).to_be_hidden()
    use(switch(page, "letters"))
    expect(panel(page).locator("summary")).to_have_text("Pages I follow (1)")
    assert me(ground)["following"] is True
    button(panel(page), "Close").click()
    open_panel(page)
    expect(switch(page, "letters")).to_be_checked()
    use(switch(page, "letters"))
    expect(panel(page).locator("summary")).to_have_text("Pages I follow (0)")
    assert me(ground)["follows"] == []
    german = signed_in(ground, lang="de")
    open_panel(german)
    with german.expect_response("**/page/follow"):
        german.get_by_role("switch").nth(1).click()
    expect(panel(german).locator("summary")).to_be_visible()
    assert sql(ground.app, "SELECT language FROM follow") == [("de",)]


def test_each_page_that_is_followed_can_be_opened_left_and_taken_up_again(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    follow(ground, POST, "/2024/%E8%A1%8C%E8%B7%9D/", "a-key")
    page = signed_in(ground)
    opened = open_panel(page, use)
    use(opened.locator("summary"))
    items = opened.get_by_role("listitem")
    expect(items).to_have_count(3)
    link = opened.get_by_role("link", name="/2024/行距/", exact=True)
    expect(link).to_have_attribute("href", f"{ground.address}/2024/%E8%A1%8C%E8%B7%9D/")
    expect(items.filter(has_text="a-key").get_by_role("link")).to_have_count(0)
    press = items.filter(has_text="/2024/").get_by_role("button")
    expect(press).to_have_accessible_name("Unfollow: /2024/行距/")
    refuse(page, "/page/follow", "too_many", 429)
    use(press)
    expect(page.locator(".error")).to_have_text("Too fast: please wait 40 s.")
    expect(press).to_be_focused()
    assert_between(page, items.last, button(opened, "Change password"))
    page.unroute("**/page/follow")
    use(press)
    expect(press).to_have_text("Follow")
    expect(press).to_be_focused()
    expect(opened.locator("summary")).to_have_text("Pages I follow (2)")
    assert len(me(ground)["follows"]) == 2
    use(press)
    expect(press).to_have_text("Unfollow")
    assert len(me(ground)["follows"]) == 3
    use(button(opened, f"Unfollow: {POST}"))
    expect(switch(page, "letters")).not_to_be_checked()


def test_a_page_leads_nowhere_but_to_the_web(ground: Ground, account: int) -> None:
    links = ["javascript:alert(1)", "data:text/html,x", "//evil.example/", ""]

    def lead(environ: Any, status: str, head: dict[str, str], body: bytes) -> Any:
        if (environ["PATH_INFO"], environ["REQUEST_METHOD"]) == ("/me", "GET"):
            follows = [{"page_url": link, "page_link": link} for link in links]
            body = blog.changed_json(body, follows=follows)
        return status, head, body

    ground.answers(lead)
    page = signed_in(ground)
    opened = open_panel(page)
    opened.locator("summary").click()
    expect(opened.get_by_role("listitem")).to_have_count(len(links))
    expect(opened.get_by_role("link")).to_have_count(0)


# What is kept


def test_all_that_is_kept_comes_as_a_file_and_no_address_tells_the_token(
    ground: Ground, account: int, use: Use, tmp_path: Path
) -> None:
    ground.expected.append(UNREACHED)
    follow(ground, POST)
    page = signed_in(ground)
    main(page).fill("For the record.")
    button(page, "Post").click()
    expect(article(page, "For the record.")).to_be_focused()
    open_panel(page, use)
    press = button(panel(page), "Download my data")
    page.context.set_offline(True)
    use(press)
    expect(panel(page).locator(".error")).to_contain_text("can’t be reached")
    page.context.set_offline(False)
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    with page.expect_download() as download:
        use(press)
    expect(page.locator(".error")).to_have_count(0)
    assert download.value.suggested_filename == "comments.json"
    download.value.save_as(tmp_path / "mine.json")
    told = json.loads((tmp_path / "mine.json").read_text("utf-8"))
    assert told["account"]["email"] == MAIL
    assert [each["content"] for each in told["comments"]] == ["For the record."]
    assert [each["page_url"] for each in told["follows"]] == [POST]
    token = json.loads(page.evaluate(f"localStorage['{ground.service}/me']"))["token"]
    assert [url for url in seen if token in url] == []
    assert page.url == ground.address + POST


def test_an_account_that_comes_late_or_not_at_all_can_be_asked_for_again(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(UNREACHED)
    page = signed_in(ground)
    main(page).click()
    page.context.set_offline(True)
    use(button(page, "Account"))
    expect(panel(page).locator(".error")).to_contain_text("can’t be reached")
    page.context.set_offline(False)
    use(button(panel(page), "Try again"))
    expect(switch(page, "answers")).to_be_visible()
    expect(page.locator(".error")).to_have_count(0)
    use(button(panel(page), "Close"))
    with held(page, "**/me?*") as waiting:
        with page.expect_request("**/me?*"):
            use(button(page, "Account"))
        use(button(panel(page), "Close"))
        expect(panel(page)).to_have_count(0)
        with page.expect_response("**/me?*"):
            waiting.pop().continue_()
    expect(button(page, "Account")).to_be_focused()
    expect(panel(page)).to_have_count(0)
    use(button(page, "Account"))
    expect(panel(page).get_by_role("switch")).to_have_count(2)


def test_a_login_that_has_ended_meanwhile_leads_to_a_new_one(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    page = signed_in(ground)
    main(page).fill("Not lost.")
    end_logins(ground.app)
    use(button(page, "Account"))
    expect(page.locator(".error")).to_contain_text("Your session has expired.")
    expect(panel(page)).to_have_count(0)
    expect(panel(page, "signin")).to_be_visible()
    expect(main(page)).to_have_value("Not lost.")
    writing.sign_in(page, use)
    writing.expect_signed_in(page)


# The end of an account


@pytest.mark.parametrize("choice", ["stay", "go"])
def test_an_account_goes_with_its_name_and_its_comments_as_its_owner_wants(
    ground: Ground, account: int, choice: str, use: Use
) -> None:
    page = signed_in(ground)
    main(page).fill("My words.")
    button(page, "Post").click()
    mine = article(page, "My words.")
    expect(mine).to_be_focused()
    number = int(mine.locator("..").get_attribute("data-id") or 0)
    say(ground.app, "Hers.", parent_id=number)
    ending = step(page, "erase", use)
    ending.get_by_role("radio", name=WORDS["en"][choice]).check()
    use(ending.get_by_label("Current password"), PASSWORD)
    use(button(ending, "Delete account"))
    expect(button(ending, "Delete it?")).to_be_focused()
    use(button(ending, "Delete it?"))
    expect(told(page, "Your account is deleted.")).to_be_attached()
    expect(ending).to_have_count(0)
    expect(main(page)).to_be_focused()
    expect(page.get_by_text("Signed in as")).to_have_count(0)
    expect(textbox(page, "Name")).to_have_value("")
    expect(article(page, "Hers.")).to_be_visible()
    if choice == "stay":
        expect(mine.locator(".name")).to_have_text("Anonymous")
        expect(button(mine, "Delete")).to_have_count(0)
    else:
        expect(mine).to_have_count(0)
        expect(page.get_by_text("This comment was removed.")).to_be_visible()
    assert sql(ground.app, "SELECT count(*) FROM account") == [(0,)]
    remembered = kept(page)
    assert [word for word in (MAIL, "Ann", "My words", "token") if word in remembered] == []


def test_an_account_does_not_go_by_mistake(ground: Ground, account: int, use: Use) -> None:
    ground.expected.append(REFUSED)
    page = signed_in(ground)
    ending = step(page, "erase", use)
    group = ending.get_by_role("group", name=WORDS["en"]["erasing"], exact=True)
    expect(group.get_by_role("radio")).to_have_count(2)
    expect(group.get_by_role("radio", name=WORDS["en"]["stay"])).to_be_checked()
    expect(group.get_by_role("radio", name=WORDS["en"]["stay"])).to_be_focused()
    password = ending.get_by_label("Current password")
    use(button(ending, "Delete account"))
    assert_told(page, password, "Please enter a password.")
    use(password, "not it")
    for name in ("Delete account", "Delete it?"):
        use(button(ending, name))
    assert_told(page, password, "This is not your current password.")
    expect(button(ending, "Delete account")).to_be_visible()
    use(password, PASSWORD)
    use(button(ending, "Delete account"))
    expect(button(ending, "Delete it?")).to_be_focused()
    password.focus()
    expect(button(ending, "Delete account")).to_be_visible()
    sql(ground.app, "UPDATE account SET role = 'admin'")
    for name in ("Delete account", "Delete it?"):
        use(button(ending, name))
    expect(ending.locator(".error")).to_contain_text("You are the only admin here.")
    use(button(ending, "Back"))
    expect(button(panel(page), "Delete account")).to_be_focused()
    assert sql(ground.app, "SELECT role FROM account") == [("admin",)]


# Comments without a name


@pytest.mark.parametrize("lang", sample(sorted(WORDS), 1))
def test_a_comment_without_a_name_says_so_in_the_language_of_its_readers(
    ground: Ground, lang: str
) -> None:
    parent = 0
    for number in range(4):
        parent = say(ground.app, f"Words {number}.", "Cy", parent_id=parent or None)
    sql(ground.app, "UPDATE comment SET nickname = ''")
    page = ground.open(lang=lang)
    word = WORDS[lang]["nobody"]
    expect(page.locator(".name")).to_have_text([word] * 4)
    expect(article(page, "Words 3.").locator(".meta")).to_contain_text(f"› {word}")
    expect(page.locator(".avatar").first).to_have_attribute("style", re.compile("_face"))
    article(page, "Words 0.").locator(".reply").click()
    label = WORDS[lang]["replyto"].replace("{n}", word)
    expect(page.get_by_role("textbox", name=label, exact=True)).to_be_focused()


# Reports


def report(page: Page, text: str, use: Use = writing.mouse) -> Locator:
    """The form that asks what is wrong with a comment."""
    use(article(page, text).get_by_role("button", name=said("report")).first)
    form = article(page, text).get_by_role("form", name=said("report"))
    expect(form.get_by_role("textbox")).to_be_focused()
    return form


def reported(ground: Ground) -> list[Any]:
    return sql(ground.app, "SELECT comment_id, reason FROM report ORDER BY comment_id")


def test_a_comment_is_reported_in_place_and_stays_so_in_this_browser(
    ground: Ground, use: Use
) -> None:
    first, second = say(ground.app, "Buy this."), say(ground.app, "Better words.")
    page = ground.open()
    form = report(page, "Buy this.", use)
    use(textbox(form, "What is wrong with it?"), " An <b>advertisement</b>. ")
    use(button(form, "Report"))
    expect(told(page, "Thank you. The owner will look at it.")).to_be_attached()
    expect(form).to_have_count(0)
    expect(article(page, "Buy this.")).to_be_focused()
    expect(article(page, "Buy this.").get_by_text("Reported")).to_be_visible()
    expect(button(article(page, "Buy this."), "Report")).to_have_count(0)
    assert reported(ground) == [(first, "An <b>advertisement</b>.")]
    page.reload()
    main(page).click()
    article(page, "Better words.").focus()
    expect(article(page, "Buy this.").get_by_text("Reported")).to_be_attached()
    use(button(report(page, "Better words.", use), "Report"))
    expect(article(page, "Better words.").get_by_text("Reported")).to_be_visible()
    assert reported(ground) == [(first, "An <b>advertisement</b>."), (second, "")]


def test_a_report_is_given_up_by_cancel_escape_or_a_reply(ground: Ground) -> None:
    say(ground.app, "Buy this.")
    page = ground.open()
    form = report(page, "Buy this.")
    textbox(form, "What is wrong with it?").fill("Well")
    button(form, "Cancel").click()
    expect(button(page, "Report")).to_be_focused()
    expect(form).to_have_count(0)
    report(page, "Buy this.")
    page.keyboard.press("Escape")
    expect(article(page, "Buy this.")).to_be_focused()
    expect(form).to_have_count(0)
    page.locator(".reply").click()
    page.keyboard.insert_text("Half a thought")
    report(page, "Buy this.")
    expect(article(page, "Buy this.").locator("form")).to_have_count(1)
    page.locator(".reply").click()
    expect(form).to_have_count(0)
    expect(textbox(page, "Reply to 陆知微")).to_have_value("Half a thought")
    assert reported(ground) == []


def test_there_is_nothing_to_report_at_ones_own_words_nor_for_an_admin(
    ground: Ground, account: int
) -> None:
    say(ground.app, "Hers.")
    page = ground.open()
    mine = post(page, "Mine.")
    expect(button(mine, "Edit")).to_be_visible()
    expect(button(mine, "Report")).to_have_count(0)
    expect(button(article(page, "Hers."), "Report")).to_be_attached()
    page.reload()
    expect(button(mine, "Edit")).to_be_visible()
    expect(button(mine, "Report")).to_have_count(0)
    sql(ground.app, "UPDATE account SET role = 'admin'")
    page = signed_in(ground)
    expect(button(article(page, "Hers."), "Moderate")).to_be_visible()
    expect(button(page, "Report")).to_have_count(0)


def test_a_report_pressed_twice_is_one_and_as_long_as_the_service_takes(ground: Ground) -> None:
    say(ground.app, "Buy this.")
    page = ground.open()
    form = report(page, "Buy this.")
    page.keyboard.insert_text("字" * 600)
    sent = requests_of(page, "/report")
    with held(page, "**/report"):
        with page.expect_request("**/report"):
            button(form, "Report").dblclick()
        page.keyboard.press("Enter")
        expect(form).to_have_attribute("aria-busy", "true")
    expect(article(page, "Buy this.").get_by_text("Reported")).to_be_visible()
    assert len(sent) == 1
    assert reported(ground) == [(1, "字" * 500)]


def test_a_report_that_fails_is_told_in_its_place(ground: Ground, account: int) -> None:
    ground.expected.append(REFUSED)
    say(ground.app, "Buy this.")
    page = signed_in(ground)
    end_logins(ground.app)  # which keeps nobody from reporting
    form = report(page, "Buy this.")
    reason = textbox(form, "What is wrong with it?")
    reason.fill("It is an advertisement.")
    for code, status, words in (
        ("comment_gone", 404, "This comment was removed."),
        ("too_many", 429, "Too fast: please wait 40 s."),
        ("storage", 503, "The service is busy."),
    ):
        refuse(page, "/comments/1/report", code, status)
        button(form, "Report").click()
        expect(form.locator(".error")).to_contain_text(words)
        expect(reason).to_have_value("It is an advertisement.")
        expect(page.get_by_text("Reported")).to_have_count(0)
        page.unroute("**/comments/1/report")
    button(form, "Report").click()
    expect(article(page, "Buy this.").get_by_text("Reported")).to_be_visible()
    assert reported(ground) == [(1, "It is an advertisement.")]


def test_a_finger_finds_the_report_and_a_mouse_where_it_is(ground: Ground) -> None:
    say(ground.app, "Buy this.")
    page = ground.open(**PHONE)
    press = button(page, "Report")
    expect(press).to_have_css("opacity", "1")
    box = press.bounding_box()
    assert box
    assert min(box["width"], box["height"]) >= 44
    page = ground.open(**DESK)
    expect(button(page, "Report")).to_have_css("opacity", "0")
    article(page, "Buy this.").hover()
    expect(button(page, "Report")).to_have_css("opacity", "1")
    box = button(page, "Report").bounding_box()
    assert box
    assert min(box["width"], box["height"]) >= 24


# Whom the new states must not shut out


def me_state(page: Page) -> None:
    open_panel(page)
    panel(page).locator("summary").click()
    expect(panel(page).get_by_role("listitem").first).to_be_visible()


def switch_error(page: Page) -> None:
    open_panel(page)
    refuse(page, "/me", "storage")
    page.get_by_role("switch").first.click()
    expect(page.locator(".error")).to_be_visible()


def change(page: Page) -> None:
    step(page, "change")


def wrong(page: Page) -> None:
    step(page, "change").locator(".button").click()
    expect(page.locator(".error")).to_be_visible()


def erase(page: Page) -> None:
    step(page, "erase")


def sure(page: Page) -> None:
    ending = step(page, "erase")
    ending.locator("[name=password]").fill("x")
    ending.locator(".button").click()
    expect(ending.get_by_role("button", name=said("sure"))).to_be_visible()


def reporting(page: Page) -> None:
    report(page, "Buy this.")


def report_error(page: Page) -> None:
    refuse(page, "/report", "storage")
    report(page, "Buy this.").locator(".button").click()
    expect(page.locator(".error")).to_be_visible()


def thanks(page: Page) -> None:
    report(page, "Buy this.").locator(".button").click()
    expect(page.get_by_text(said("reported"))).to_be_visible()


STATES = {
    "account": me_state,
    **{f.__name__: f for f in (switch_error, change, wrong, erase, sure, reporting)},
    **{f.__name__: f for f in (report_error, thanks)},
}
CHOSEN = [
    ("account", "en", "desk"),
    ("switch_error", "en", "phone"),
    ("sure", "ar", "phone"),
    ("report_error", "en", "desk"),
]
KINDS = list(product(STATES, ("en", "ar"), ("desk", "phone")))


@pytest.mark.parametrize(
    ("state", "lang", "how"),
    CHOSEN + [pytest.param(*k, marks=pytest.mark.long) for k in KINDS if k not in CHOSEN],
)
def test_no_state_of_the_account_shuts_anybody_out(
    ground: Ground, account: int, state: str, lang: str, how: str
) -> None:
    ground.expected.append(REFUSED)
    say(ground.app, "Buy this.")
    say(ground.app, "Nobody's words.")
    sql(ground.app, "UPDATE comment SET nickname = '' WHERE id = 2")
    sql(ground.app, "UPDATE account SET nickname = ?", "W" * 64)
    follow(ground, POST, LONG, "/2024/%E8%A1%8C%E8%B7%9D/")
    page = signed_in(ground, lang=lang, **(DESK if how == "desk" else PHONE))
    page.evaluate(WATCH)
    STATES[state](page)
    for scheme in ("light", "dark"):
        prefer(page, scheme)
        assert_nobody_is_shut_out(page, f"{state} {lang} {scheme}")
    if how == "desk":
        found = access.stops(page)
        assert found
        assert [stop for stop in found if not stop[1] or not stop[2]] == []
        return
    page.set_viewport_size({"width": 320, "height": 640})
    page.wait_for_function("document.documentElement.clientWidth === 320")
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    _, _, missed = page.evaluate("bench.targets()")
    assert missed == []


def test_switches_are_told_apart_in_forced_colours(ground: Ground, account: int) -> None:
    page = signed_in(ground, forced_colors="active")
    open_panel(page)
    ends = []
    for each in ("answers", "letters"):
        place, width = switch(page, each).evaluate(
            """e => {
              const knob = getComputedStyle(e, '::before')
              return [knob.marginLeft, knob.borderTopWidth]
            }"""
        )
        ends.append(place)
        assert float(width.removesuffix("px")) > 4
    assert ends[0] != ends[1]


def test_the_account_is_walked_through_by_keys_alone(ground: Ground, account: int) -> None:
    page = signed_in(ground)
    open_panel(page, keyboard)
    expect(panel(page)).to_be_focused()
    wanted = [textbox(panel(page), "Name"), button(panel(page), "Save")]
    wanted += [switch(page, "answers"), switch(page, "letters")]
    wanted += [
        button(panel(page), WORDS["en"][word]) for word in ("change", "export", "erase", "close")
    ]
    for stop in wanted:
        page.keyboard.press("Tab")
        expect(stop).to_be_focused()
    reach(switch(page, "answers"))
    page.keyboard.press("Space")
    expect(switch(page, "answers")).not_to_be_checked()


def test_without_its_script_the_account_says_that_it_cannot_be_reached(
    ground: Ground, account: int
) -> None:
    ground.expected.append(UNREACHED)
    page = signed_in(ground)
    page.route("**/account.js*", lambda route: route.abort())
    page.reload()
    expect(page.get_by_role("status").filter(has_text="can’t be reached")).to_be_attached()
