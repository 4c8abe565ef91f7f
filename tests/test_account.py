"""The account of a reader, comments without a name, and reports, in a real Chromium on a page of
another origin. `test_writing.py` has signing in and out."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import blog
import pytest
import test_access as access
import test_writing as writing
from bench_widget import WATCH
from blog import OWNER, POST, owner_token, say
from playwright.sync_api import Locator, Page, Route, expect
from test_access import DESK, PHONE, assert_nobody_is_shut_out, prefer
from test_moderate import signed_in
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
    held,
    keyboard,
    main,
    post,
    reach,
    refuse,
    requests_of,
    rows,
    said,
    textbox,
)
from webtest import TestApp

pytestmark = pytest.mark.slow

browser, office, outside = writing.browser, writing.office, writing.outside
pages, address, config = writing.pages, writing.address, writing.config
ground, account, use = writing.ground, writing.account, writing.use

LONG = "/2025/" + "a-title-of-many-words-" * 9 + "/"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {}


# Small verbs


def ann(ground: Ground, **how: Any) -> Page:
    """Ann, who signed in some time ago."""
    return signed_in(ground, MAIL, **how)


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


# The account


def test_the_account_opens_in_place_and_closes_to_where_it_began(
    ground: Ground, account: int, use: Use
) -> None:
    page = ann(ground)
    main(page).fill("Half a thought")
    opened = open_panel(page, use)
    expect(opened.get_by_text(f"{MAIL} · 0 comments")).to_be_visible()
    expect(textbox(opened, "Name")).to_have_value("Ann")
    use(button(opened, "Close"))
    expect(opened).to_have_count(0)
    expect(button(page, "Account")).to_be_focused()
    expect(main(page)).to_have_value("Half a thought")


def test_who_is_signed_in_and_what_he_may_do_stand_in_one_line(
    ground: Ground, account: int
) -> None:
    page = ann(ground, **DESK)
    main(page).click()
    each = [page.get_by_text("Signed in as Ann"), button(page, "Account"), button(page, "Sign out")]
    boxes = [one.bounding_box() for one in each]
    middles = {round(box["y"] + box["height"] / 2) for box in boxes if box}
    assert max(middles) - min(middles) <= 1


def test_a_new_name_holds_for_what_is_written_from_now_on(
    ground: Ground, account: int, use: Use
) -> None:
    page = ann(ground)
    main(page).fill("As Ann.")
    button(page, "Post").click()
    expect(article(page, "As Ann.")).to_be_focused()
    opened = open_panel(page, use)
    sent = requests_of(page, "/me")
    use(textbox(opened, "Name"), "Anna Byrne")
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


def test_a_name_that_is_refused_is_told_beside_its_field(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    owner_token(ground.app)
    page = ann(ground)
    opened = open_panel(page)
    use(textbox(opened, "Name"), OWNER)
    use(button(opened, "Save"))
    assert_told(page, textbox(opened, "Name"), "Please choose another.")
    use(textbox(opened, "Name"), " ")
    use(button(opened, "Save"))
    assert_told(page, textbox(opened, "Name"), "Please enter a name.")
    assert me(ground)["nickname"] == "Ann"
    expect(page.get_by_text("Signed in as Ann")).to_be_visible()


def test_a_new_password_holds_at_once_and_the_reader_stays_signed_in(
    ground: Ground, account: int, use: Use
) -> None:
    page = ann(ground)
    changing = step(page, "change", use)
    sent = requests_of(page, "/me")
    use(changing.get_by_label("Current password"), PASSWORD)
    use(changing.get_by_label("New password"), "Another one")
    use(button(changing, "Save"))
    expect(told(page, "Your new password is set.")).to_be_attached()
    expect(button(panel(page), "Change password")).to_be_focused()
    bodies = [each.post_data or "" for each in sent if each.method == "PATCH"]
    secrets = [hashlib.sha256(text.encode()).hexdigest() for text in (PASSWORD, "Another one")]
    assert [json.loads(body) for body in bodies] == [
        {"password": secrets[0], "new_password": secrets[1]}
    ]
    login(ground, PASSWORD, 401)
    login(ground, "Another one")
    main(page).fill("Still me.")
    button(page, "Post").click()
    expect(article(page, "Still me.")).to_be_focused()
    assert rows(ground.app, "SELECT user_id FROM comment") == [(account,)]


def test_what_is_wrong_with_a_password_is_told_beside_it(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    page = ann(ground)
    changing = step(page, "change")
    expect(changing.get_by_label("Current password")).to_be_focused()
    use(button(changing, "Save"))
    current, new = (changing.get_by_label(f"{word} password") for word in ("Current", "New"))
    assert_told(page, current, "Please enter a password.")
    use(current, "not it")
    use(button(changing, "Save"))
    assert_told(page, new, "Please enter a password.")
    use(button(changing, "Save"))
    assert_told(page, current, "This is not your current password.")
    use(button(changing, "Back"))
    expect(button(panel(page), "Change password")).to_be_focused()
    login(ground, PASSWORD)


# Letters


def test_letters_about_answers_are_switched_off_and_on(
    ground: Ground, account: int, use: Use
) -> None:
    page = ann(ground)
    open_panel(page, use)
    expect(switch(page, "answers")).to_be_checked()
    for wanted in (False, True):
        with page.expect_response("**/me"):
            use(switch(page, "answers"))
        expect(switch(page, "answers")).to_be_checked(checked=wanted)
        assert me(ground)["answers"] is wanted
        button(panel(page), "Close").click()
        open_panel(page)
        expect(switch(page, "answers")).to_be_checked(checked=wanted)


def test_a_switch_that_fails_goes_back_and_says_so_beside_itself(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected += [REFUSED, UNREACHED]
    page = ann(ground)
    open_panel(page)
    refuse(page, "/me", "storage")
    use(switch(page, "answers"))
    expect(switch(page, "answers")).to_be_checked()
    alert = page.locator(".error")
    expect(alert).to_contain_text("The service is busy")
    expect(switch(page, "answers")).to_be_focused()
    expect(switch(page, "answers")).to_have_accessible_description(re.compile("busy"))
    above, told, below = (
        each.bounding_box() for each in (switch(page, "answers"), alert, switch(page, "letters"))
    )
    assert above
    assert told
    assert below
    assert above["y"] < told["y"] < below["y"]
    page.unroute("**/me")
    use(switch(page, "answers"))
    expect(alert).to_have_count(0)
    expect(switch(page, "answers")).not_to_be_checked()


@pytest.mark.parametrize(
    ("word", "path", "told"),
    [
        ("answers", "/me", [{"answers": False}, {"answers": True}]),
        ("letters", "/page/follow", [{"undo": False}, {"undo": True}]),
    ],
)
def test_of_a_switch_pressed_again_and_again_the_last_word_holds(
    ground: Ground, account: int, word: str, path: str, told: list[dict[str, bool]]
) -> None:
    page = ann(ground)
    open_panel(page)
    before = me(ground)
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
        {key: body[key] for key in wanted} for wanted, body in zip(told, bodies, strict=True)
    ] == told
    assert me(ground) == before


def test_a_name_that_was_changed_elsewhere_is_learnt(ground: Ground, account: int) -> None:
    page = ann(ground)
    rows(ground.app, "UPDATE account SET nickname = 'Anna' RETURNING 1")
    opened = open_panel(page)
    expect(textbox(opened, "Name")).to_have_value("Anna")
    expect(page.get_by_text("Signed in as Anna")).to_be_visible()


def test_this_page_is_followed_and_no_longer(ground: Ground, account: int, use: Use) -> None:
    page = ann(ground)
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


def test_letters_about_a_page_are_in_the_language_that_is_spoken_here(
    ground: Ground, account: int
) -> None:
    page = ann(ground, lang="de")
    open_panel(page)
    with page.expect_response("**/page/follow"):
        page.get_by_role("switch").nth(1).click()
    expect(panel(page).locator("summary")).to_be_visible()
    assert rows(ground.app, "SELECT language FROM follow") == [("de",)]


def test_each_page_that_is_followed_can_be_opened_left_and_taken_up_again(
    ground: Ground, account: int, use: Use
) -> None:
    follow(ground, POST, "/2024/%E8%A1%8C%E8%B7%9D/", "a-key")
    page = ann(ground)
    opened = open_panel(page, use)
    use(opened.locator("summary"))
    items = opened.get_by_role("listitem")
    expect(items).to_have_count(3)
    link = opened.get_by_role("link", name="/2024/行距/", exact=True)
    expect(link).to_have_attribute("href", f"{ground.address}/2024/%E8%A1%8C%E8%B7%9D/")
    expect(items.filter(has_text="a-key").get_by_role("link")).to_have_count(0)
    press = items.filter(has_text="/2024/").get_by_role("button")
    expect(press).to_have_accessible_name("Unfollow: /2024/行距/")
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


def test_a_page_that_cannot_be_left_is_told_below_the_list(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    follow(ground, POST)
    page = ann(ground)
    opened = open_panel(page)
    opened.locator("summary").click()
    refuse(page, "/page/follow", "too_many", 429)
    use(button(opened, f"Unfollow: {POST}"))
    expect(page.locator(".error")).to_have_text("Too fast: please wait 40 s.")
    expect(button(opened, f"Unfollow: {POST}")).to_be_focused()
    last = opened.get_by_role("listitem").bounding_box()
    told = page.locator(".error").bounding_box()
    below = button(opened, "Change password").bounding_box()
    assert last
    assert told
    assert below
    assert last["y"] < told["y"] < below["y"]


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,x", "//evil.example/", ""])
def test_a_page_leads_nowhere_but_to_the_web(ground: Ground, account: int, link: str) -> None:
    def lead(environ: Any, status: str, head: dict[str, str], body: bytes) -> Any:
        if (environ["PATH_INFO"], environ["REQUEST_METHOD"]) == ("/me", "GET"):
            body = blog.changed_json(body, follows=[{"page_url": link, "page_link": link}])
        return status, head, body

    ground.answers(lead)
    page = ann(ground)
    opened = open_panel(page)
    opened.locator("summary").click()
    expect(opened.get_by_role("listitem")).to_have_count(1)
    expect(opened.get_by_role("link")).to_have_count(0)


# What is kept


def test_all_that_is_kept_comes_as_a_file_and_no_address_tells_the_token(
    ground: Ground, account: int, use: Use, tmp_path: Path
) -> None:
    follow(ground, POST)
    page = ann(ground)
    main(page).fill("For the record.")
    button(page, "Post").click()
    expect(article(page, "For the record.")).to_be_focused()
    open_panel(page, use)
    seen: list[str] = []
    page.on("request", lambda request: seen.append(request.url))
    with page.expect_download() as download:
        use(button(panel(page), "Download my data"))
    assert download.value.suggested_filename == "comments.json"
    download.value.save_as(tmp_path / "mine.json")
    told = json.loads((tmp_path / "mine.json").read_text("utf-8"))
    assert told["account"]["email"] == MAIL
    assert [each["content"] for each in told["comments"]] == ["For the record."]
    assert [each["page_url"] for each in told["follows"]] == [POST]
    token = json.loads(page.evaluate(f"localStorage['{ground.service}/me']"))["token"]
    assert [url for url in seen if token in url] == []
    assert page.url == ground.address + POST


def test_a_file_that_cannot_be_had_is_told_beside_the_button(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected += [REFUSED, UNREACHED]
    page = ann(ground)
    open_panel(page)
    page.context.set_offline(True)
    use(button(panel(page), "Download my data"))
    expect(panel(page).locator(".error")).to_contain_text("can’t be reached")
    page.context.set_offline(False)
    with page.expect_download():
        use(button(panel(page), "Download my data"))
    expect(page.locator(".error")).to_have_count(0)


def test_an_account_that_cannot_be_had_is_asked_for_again(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(UNREACHED)
    page = ann(ground)
    main(page).click()
    page.context.set_offline(True)
    use(button(page, "Account"))
    expect(panel(page).locator(".error")).to_contain_text("can’t be reached")
    page.context.set_offline(False)
    use(button(panel(page), "Try again"))
    expect(switch(page, "answers")).to_be_visible()
    expect(page.locator(".error")).to_have_count(0)


def test_an_answer_for_a_panel_that_was_closed_changes_nothing(
    ground: Ground, account: int
) -> None:
    page = ann(ground)
    main(page).click()
    with held(page, "**/me?*") as waiting:
        with page.expect_request("**/me?*"):
            button(page, "Account").click()
        button(panel(page), "Close").click()
        expect(panel(page)).to_have_count(0)
        with page.expect_response("**/me?*"):
            waiting.pop().continue_()
    expect(button(page, "Account")).to_be_focused()
    expect(panel(page)).to_have_count(0)
    button(page, "Account").click()
    expect(panel(page).get_by_role("switch")).to_have_count(2)


def test_a_login_that_has_ended_meanwhile_leads_to_a_new_one(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    page = ann(ground)
    main(page).fill("Not lost.")
    with ground.app.house.store.writing():
        ground.app.house.store.end_tokens(account)
    use(button(page, "Account"))
    expect(page.locator(".error")).to_contain_text("Your session has expired.")
    expect(panel(page)).to_have_count(0)
    expect(panel(page, "signin")).to_be_visible()
    expect(main(page)).to_have_value("Not lost.")
    writing.sign_in(page, use)
    writing.expect_signed_in(page)


def test_signing_out_closes_the_account(ground: Ground, account: int, use: Use) -> None:
    page = ann(ground)
    open_panel(page)
    use(button(page, "Sign out"))
    expect(panel(page)).to_have_count(0)
    expect(main(page)).to_be_focused()


# The end of an account


def bury(page: Page, use: Use, choice: str, password: str = PASSWORD) -> Locator:
    """Up to the second press."""
    ending = step(page, "erase", use)
    radio = ending.get_by_role("radio", name=WORDS["en"][choice])
    radio.check()
    use(ending.get_by_label("Current password"), password)
    use(button(ending, "Delete account"))
    expect(button(ending, "Delete it?")).to_be_focused()
    return ending


@pytest.mark.parametrize("choice", ["stay", "go"])
def test_an_account_goes_with_its_name_and_its_comments_as_it_wants(
    ground: Ground, account: int, choice: str, use: Use
) -> None:
    page = ann(ground)
    main(page).fill("My words.")
    button(page, "Post").click()
    mine = article(page, "My words.")
    expect(mine).to_be_focused()
    number = int(mine.locator("..").get_attribute("data-id") or 0)
    say(ground.app, "Hers.", parent_id=number)
    ending = bury(page, use, choice)
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
    assert rows(ground.app, "SELECT count(*) FROM account") == [(0,)]
    remembered = kept(page)
    assert [word for word in (MAIL, "Ann", "My words", "token") if word in remembered] == []


def test_leaving_the_second_press_takes_the_first_back(
    ground: Ground, account: int, use: Use
) -> None:
    page = ann(ground)
    ending = bury(page, use, "stay")
    ending.get_by_label("Current password").focus()
    expect(button(ending, "Delete account")).to_be_visible()
    use(button(ending, "Back"))
    expect(button(panel(page), "Delete account")).to_be_focused()
    assert rows(ground.app, "SELECT count(*) FROM account") == [(1,)]


def test_it_is_said_what_goes_with_an_account_before_anything_is_asked(
    ground: Ground, account: int
) -> None:
    page = ann(ground)
    ending = step(page, "erase")
    group = ending.get_by_role("group", name=WORDS["en"]["erasing"], exact=True)
    expect(group.get_by_role("radio")).to_have_count(2)
    expect(group.get_by_role("radio", name=WORDS["en"]["stay"])).to_be_checked()
    expect(group.get_by_role("radio", name=WORDS["en"]["stay"])).to_be_focused()


def test_an_account_does_not_go_without_its_password(
    ground: Ground, account: int, use: Use
) -> None:
    ground.expected.append(REFUSED)
    page = ann(ground)
    ending = step(page, "erase")
    use(button(ending, "Delete account"))
    assert_told(page, ending.get_by_label("Current password"), "Please enter a password.")
    use(ending.get_by_label("Current password"), "not it")
    for name in ("Delete account", "Delete it?"):
        use(button(ending, name))
    assert_told(page, ending.get_by_label("Current password"), "This is not your current password.")
    expect(button(ending, "Delete account")).to_be_visible()
    assert rows(ground.app, "SELECT count(*) FROM account") == [(1,)]


def test_the_last_admin_is_told_why_he_has_to_stay(ground: Ground, account: int) -> None:
    ground.expected.append(REFUSED)
    rows(ground.app, "UPDATE account SET role = 'admin' RETURNING 1")
    page = ann(ground)
    ending = bury(page, writing.mouse, "stay")
    button(ending, "Delete it?").click()
    expect(ending.locator(".error")).to_contain_text("You are the only admin here.")
    assert rows(ground.app, "SELECT role FROM account") == [("admin",)]


# Comments without a name


@pytest.mark.parametrize("lang", sorted(WORDS))
def test_a_comment_without_a_name_says_so_in_the_language_of_its_readers(
    ground: Ground, lang: str
) -> None:
    parent = 0
    for number in range(4):
        parent = say(ground.app, f"Words {number}.", "Cy", parent_id=parent or None)
    rows(ground.app, "UPDATE comment SET nickname = '' RETURNING 1")
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
    return rows(ground.app, "SELECT comment_id, reason FROM report ORDER BY comment_id")


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


@pytest.mark.parametrize("key", ["Cancel", "Escape"])
def test_who_thinks_better_of_it_reports_nothing(ground: Ground, key: str) -> None:
    say(ground.app, "Buy this.")
    page = ground.open()
    form = report(page, "Buy this.")
    if key == "Cancel":
        textbox(form, "What is wrong with it?").fill("Well")
        button(form, "Cancel").click()
        expect(button(page, "Report")).to_be_focused()
    else:
        page.keyboard.press("Escape")
        expect(article(page, "Buy this.")).to_be_focused()
    expect(form).to_have_count(0)
    assert reported(ground) == []


def test_answer_and_report_take_each_others_place(ground: Ground) -> None:
    say(ground.app, "Hers.")
    page = ground.open()
    page.locator(".reply").click()
    page.keyboard.insert_text("Half a thought")
    form = report(page, "Hers.")
    expect(article(page, "Hers.").locator("form")).to_have_count(1)
    page.locator(".reply").click()
    expect(form).to_have_count(0)
    expect(textbox(page, "Reply to 陆知微")).to_have_value("Half a thought")


def test_there_is_nothing_to_report_at_ones_own_words(ground: Ground, account: int) -> None:
    say(ground.app, "Hers.")
    page = ground.open()
    mine = post(page, "Mine.")
    expect(button(mine, "Edit")).to_be_visible()
    expect(button(mine, "Report")).to_have_count(0)
    expect(button(article(page, "Hers."), "Report")).to_be_attached()
    page.reload()
    expect(button(mine, "Edit")).to_be_visible()
    expect(button(mine, "Report")).to_have_count(0)


def test_an_admin_has_another_menu(ground: Ground, account: int) -> None:
    rows(ground.app, "UPDATE account SET role = 'admin' RETURNING 1")
    say(ground.app, "Hers.")
    page = ann(ground)
    expect(button(page, "Moderate")).to_be_visible()
    expect(button(page, "Report")).to_have_count(0)


def test_a_report_pressed_twice_is_one(ground: Ground) -> None:
    say(ground.app, "Buy this.")
    page = ground.open()
    form = report(page, "Buy this.")
    sent = requests_of(page, "/report")
    with held(page, "**/report"):
        with page.expect_request("**/report"):
            button(form, "Report").dblclick()
        page.keyboard.press("Enter")
        expect(form).to_have_attribute("aria-busy", "true")
    expect(article(page, "Buy this.").get_by_text("Reported")).to_be_visible()
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("comment_gone", 404, "This comment was removed."),
        ("too_many", 429, "Too fast: please wait 40 s."),
        ("storage", 503, "The service is busy."),
    ],
)
def test_a_report_that_fails_is_told_in_its_place(
    ground: Ground, code: str, status: int, words: str
) -> None:
    ground.expected.append(REFUSED)
    say(ground.app, "Buy this.")
    page = ground.open()
    refuse(page, "/comments/1/report", code, status)
    form = report(page, "Buy this.")
    textbox(form, "What is wrong with it?").fill("It is an advertisement.")
    button(form, "Report").click()
    expect(form.locator(".error")).to_contain_text(words)
    expect(textbox(form, "What is wrong with it?")).to_have_value("It is an advertisement.")
    expect(page.get_by_text("Reported")).to_have_count(0)


def test_a_reason_is_as_long_as_the_service_takes(ground: Ground) -> None:
    say(ground.app, "Buy this.")
    page = ground.open()
    form = report(page, "Buy this.")
    textbox(form, "What is wrong with it?").focus()
    page.keyboard.insert_text("字" * 600)
    button(form, "Report").click()
    expect(article(page, "Buy this.").get_by_text("Reported")).to_be_visible()
    assert reported(ground) == [(1, "字" * 500)]


def test_a_report_counts_though_the_login_has_ended(ground: Ground, account: int) -> None:
    ground.expected.append(REFUSED)
    say(ground.app, "Buy this.")
    page = ann(ground)
    with ground.app.house.store.writing():
        ground.app.house.store.end_tokens(account)
    button(report(page, "Buy this."), "Report").click()
    expect(article(page, "Buy this.").get_by_text("Reported")).to_be_visible()
    assert reported(ground) == [(1, "")]


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
each_state = pytest.mark.parametrize("state", STATES)


def stage(ground: Ground, state: str, lang: str = "en", **how: Any) -> Page:
    """Ann before the widget in this state, and all texts long."""
    ground.expected.append(REFUSED)
    say(ground.app, "Buy this.")
    say(ground.app, "Nobody's words.")
    rows(ground.app, "UPDATE comment SET nickname = '' WHERE id = 2 RETURNING 1")
    rows(ground.app, "UPDATE account SET nickname = ? RETURNING 1", "W" * 64)
    follow(ground, POST, LONG, "/2024/%E8%A1%8C%E8%B7%9D/")
    page = ann(ground, lang=lang, **how)
    page.add_init_script(WATCH)
    page.evaluate(WATCH)
    STATES[state](page)
    return page


@each_state
@pytest.mark.parametrize(("lang", "how"), [("en", DESK), ("en", PHONE), ("ar", PHONE)])
def test_axe_finds_nothing_and_all_texts_have_contrast(
    ground: Ground, account: int, state: str, lang: str, how: dict[str, Any]
) -> None:
    page = stage(ground, state, lang, **how)
    for scheme in ("light", "dark"):
        prefer(page, scheme)
        assert_nobody_is_shut_out(page, f"{state} {lang} {scheme}")


@each_state
@pytest.mark.parametrize("lang", ["en", "ar"])
def test_nothing_is_wider_than_a_small_phone_and_no_target_is_too_small(
    ground: Ground, account: int, state: str, lang: str
) -> None:
    small = PHONE | {"viewport": {"width": 320, "height": 640}}
    page = stage(ground, state, lang, **small)
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    _, _, missed = page.evaluate("bench.targets()")
    assert missed == []


@each_state
def test_each_stop_is_seen_and_has_a_name(ground: Ground, account: int, state: str) -> None:
    page = stage(ground, state, **DESK)
    found = access.stops(page)
    assert found
    assert [stop for stop in found if not stop[1] or not stop[2]] == []


def test_switches_are_told_apart_in_forced_colours(ground: Ground, account: int) -> None:
    page = ann(ground, forced_colors="active")
    open_panel(page)
    knob = "e => getComputedStyle(e, '::before')"
    ends = []
    for each in ("answers", "letters"):
        ends.append(switch(page, each).evaluate(f"{knob[:5]}{knob[5:]}.marginLeft"))
        width = switch(page, each).evaluate(f"{knob}.borderTopWidth")
        assert float(width.removesuffix("px")) > 4
    assert ends[0] != ends[1]


def test_the_account_is_walked_through_by_keys_alone(ground: Ground, account: int) -> None:
    page = ann(ground)
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
    page = ann(ground)

    def refuse_it(route: Route) -> None:
        route.abort()

    page.route("**/account.js*", refuse_it)
    page.reload()
    expect(page.get_by_role("status").filter(has_text="can’t be reached")).to_be_attached()
