"""The admin's menu at the comments on the blog, in a real Chromium: who gets it, what it does, and
how little its token opens. `test_moderation_api.py` has the API, `test_admin_page.py` the page."""

import hashlib
import re
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from webtest import TestApp

from commentd import App
from support import inside, writing
from support.accessibility import (
    DESK,
    MODERATES,
    PHONE,
    TARGETS,
    assert_nobody_is_shut_out,
    focus_stops,
)
from support.blog import POST, WATCH, begin_to_read, say, wait_until
from support.inside import sql
from support.writing import (
    REFUSED,
    UNREACHED,
    BlogSite,
    Operate,
    article,
    button,
    choices,
    end_logins,
    in_any_language,
    main,
    mouse,
    open_account,
    refuse,
    requests_held,
    requests_of,
    sign_in,
    signed_in,
    write,
)
from support.writing import address as address  # a fixture
from support.writing import blog_site as blog_site  # a fixture
from support.writing import config as config  # a fixture
from support.writing import fake_world as fake_world  # a fixture
from support.writing import mail_server as mail_server  # a fixture
from support.writing import operate as operate  # a fixture
from support.writing import pages as pages  # a fixture

MAIL, PASSWORD = "owner@blog.example", "Ein Wort, 一句话 & \U0001f9c5"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"moderation_hold": "all"}


def account(app: App, email: str, nickname: str, role: str) -> None:
    inside.add_account(app, email, nickname, hashlib.sha256(PASSWORD.encode()).hexdigest(), role)


@pytest.fixture(autouse=True)
def owner(app: App) -> None:
    """The admin of every test."""
    account(app, MAIL, "江屿", "admin")


def admin(blog_site: BlogSite, **how: Any) -> Page:
    """The admin before the page, when the menus are there."""
    page = signed_in(blog_site, MAIL, **how)
    wait_until(page, MODERATES)
    return page


def menu(page: Page, text: str) -> Locator:
    return article(page, text).locator(".quiet")


def choose(page: Page, text: str, word: str, operate: Operate = mouse) -> None:
    writing.choose(article(page, text), word, operate)


def seen(app: App, text: str = "Seen.", name: str = "陆知微", **fields: Any) -> int:
    """A comment that all may read."""
    made = say(app, text, name, **fields)
    client = TestApp(app, {"REMOTE_ADDR": "192.0.2.1"})
    client.authorization = ("Bearer", inside.token_of(app, MAIL))
    client.post_json(f"/comments/{made}/moderate", {"status": "visible"})
    return made


def states(app: App) -> dict[str, str]:
    """The state of each comment, by its text."""
    return dict(sql(app, "SELECT content, status FROM comment"))


def readers_see(blog_site: BlogSite) -> list[str]:
    """What the API gives to one who is not signed in."""
    listing = TestApp(blog_site.app).get("/comments", {"url": POST, "limit": 100}).json
    return [each["content"] for each in listing["comments"]]


def words_of(page: Page, text: str) -> list[str]:
    """What the menu of a comment offers, beside its link."""
    return writing.words_of(article(page, text))[1:]


def reload_and_settle(page: Page) -> None:
    """Until it is known whether anything waits, and that was shown."""
    with page.expect_response("**/comments/waiting*"):
        page.reload()
    expect(article(page, "Seen.")).to_be_visible()
    page.evaluate("() => new Promise(go => requestAnimationFrame(() => setTimeout(go)))")


# Who gets it


def test_an_admin_who_signs_in_on_the_blog_gets_the_menu(blog_site: BlogSite) -> None:
    blog_site.expected.append(UNREACHED)
    seen(blog_site.app)
    say(blog_site.app, "Waits.")
    page = blog_site.open()
    expect(article(page, "Seen.")).to_be_visible()
    expect(article(page, "Waits.")).to_have_count(0)
    page.route("**/comments/waiting*", lambda route: route.abort())
    open_account(page)
    sign_in(page, password=PASSWORD, email=MAIL)
    wait_until(page, MODERATES)  # though what waits did not come
    page.unroute("**/comments/waiting*")
    page.reload()
    expect(article(page, "Waits.")).to_contain_text("Waiting for your approval.")
    assert words_of(page, "Seen.") == ["Spam", "Delete", "Pin"]
    assert words_of(page, "Waits.") == ["Approve", "Spam", "Delete"]


def test_signing_out_takes_the_menu_and_waiting_comments_away(
    blog_site: BlogSite, operate: Operate
) -> None:
    seen(blog_site.app)
    say(blog_site.app, "Waits.")
    page = admin(blog_site)
    operate(main(page), "A thought")
    operate(button(page, "Sign out"))
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    assert words_of(page, "Seen.") == ["Report"]
    expect(article(page, "Waits.")).to_have_count(0)


def test_a_reader_gets_neither_the_menu_nor_its_script(blog_site: BlogSite) -> None:
    seen(blog_site.app)
    say(blog_site.app, "Waits.")
    account(blog_site.app, "ann@example.com", "Ann", "user")
    for page in (blog_site.open(), signed_in(blog_site, "ann@example.com")):
        scripts = requests_of(page, "/moderate.js")
        asked = requests_of(page, "/comments/waiting")
        page.reload()
        expect(article(page, "Seen.")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert words_of(page, "Seen.") == ["Report"]
        expect(article(page, "Waits.")).to_have_count(0)
        assert [*scripts, *asked] == []


def test_a_former_admin_gets_no_menu(blog_site: BlogSite) -> None:
    blog_site.expected.append(REFUSED)
    seen(blog_site.app)
    say(blog_site.app, "Waits.")
    for fate in ("blocked = 1", "blocked = 0, version = version + 1", "role = 'user'"):
        page = admin(blog_site)
        sql(blog_site.app, f"UPDATE account SET {fate}")
        reload_and_settle(page)
        expect(article(page, "Waits.")).to_have_count(0)
        assert words_of(page, "Seen.") == []
        sql(blog_site.app, "UPDATE account SET blocked = 0")


def test_a_reader_who_poses_as_an_admin_gets_nothing(blog_site: BlogSite) -> None:
    blog_site.expected.append(REFUSED)
    seen(blog_site.app)
    say(blog_site.app, "Waits.")
    account(blog_site.app, "ann@example.com", "Ann", "user")
    page = signed_in(blog_site, "ann@example.com")
    page.evaluate(
        """() => {
          const [[key, value]] = Object.entries(localStorage)
          localStorage.setItem(key, JSON.stringify({...JSON.parse(value), role: 'admin'}))
        }"""
    )
    reload_and_settle(page)
    expect(article(page, "Waits.")).to_have_count(0)
    assert words_of(page, "Seen.") == []


def test_a_waiting_comment_is_seen_by_its_author_and_the_admin_only(blog_site: BlogSite) -> None:
    author = blog_site.open()
    write(author, "Patience.")
    button(author, re.compile("^Post for approval$")).click()
    expect(article(author, "Patience.")).to_contain_text("Other readers can’t see it yet.")
    boss, reader = signed_in(blog_site, MAIL), blog_site.open()
    expect(article(boss, "Patience.")).to_contain_text("Waiting for your approval.")
    expect(reader.get_by_text("No comments yet")).to_be_visible()
    author.reload()
    expect(article(author, "Patience.")).to_contain_text("Other readers can’t see it yet.")
    assert words_of(author, "Patience.") == ["Edit", "Delete"]
    choose(boss, "Patience.", "Approve")
    expect(article(boss, "Patience.").get_by_role("button", name="Like 0")).to_be_visible()
    reader.reload()
    expect(article(reader, "Patience.")).to_be_visible()
    author.reload()
    expect(article(author, "Patience.")).to_have_count(1)
    expect(article(author, "Patience.")).not_to_contain_text("Only you")
    # What is kept as spam looks to its author as if it waited.
    sql(blog_site.app, "INSERT INTO block VALUES (1, 'word', 'casino', '', 0, NULL)")
    write(author, "A casino.")
    button(author, "Post for approval").click()
    expect(article(author, "A casino.")).to_contain_text("Waiting for approval.")
    assert states(blog_site.app)["A casino."] == "spam"
    boss.reload()
    begin_to_read(boss)
    expect(menu(boss, "Patience.")).to_be_visible()
    expect(article(boss, "A casino.")).to_have_count(0)


# What it does


def test_a_waiting_comment_is_approved_in_the_widget_and_an_admins_own_is_shown(
    blog_site: BlogSite, operate: Operate
) -> None:
    seen(blog_site.app)
    say(blog_site.app, "Waits.")
    page = admin(blog_site)
    expect(page.get_by_text("1 comment", exact=True)).to_be_visible()
    choose(page, "Waits.", "Approve", operate)
    expect(page.get_by_text("2 comments")).to_be_visible()
    expect(menu(page, "Waits.")).to_be_focused()
    expect(article(page, "Waits.")).not_to_contain_text("Waiting for your approval.")
    assert words_of(page, "Waits.") == ["Spam", "Delete", "Pin"]
    assert readers_see(blog_site) == ["Waits.", "Seen."]
    main(page).fill("Mine.")
    page.locator("section > form .button").first.click()
    mine = article(page, "Mine.")
    assert words_of(page, "Mine.") == ["Edit", "Delete", "Pin"]
    expect(mine.locator(".badge").filter(has_text="Admin")).to_be_visible()
    assert states(blog_site.app)["Mine."] == "visible"


def test_marking_as_spam_and_deleting_in_the_widget_are_undone(
    blog_site: BlogSite, operate: Operate
) -> None:
    seen(blog_site.app)
    say(blog_site.app, "Waits.")
    page = admin(blog_site)
    order = page.locator("article .body").all_inner_texts()
    for text, before in (("Seen.", "visible"), ("Waits.", "waiting")):
        for word, status, notice in (
            ("Spam", "spam", "Moved to spam."),
            ("Delete", "deleted", "Deleted."),
        ):
            choose(page, text, word, operate)
            expect(button(page, "Undo")).to_be_focused()
            expect(page.get_by_text(notice)).to_be_visible()
            expect(article(page, text)).to_have_count(0)
            count = int(before == "waiting")
            expect(page.get_by_text("1 comment", exact=True)).to_have_count(count)
            assert states(blog_site.app)[text] == status
            operate(button(page, "Undo"))
            expect(menu(page, text)).to_be_focused()
            expect(page.get_by_text("1 comment", exact=True)).to_be_visible()
            assert page.locator("article .body").all_inner_texts() == order
            assert states(blog_site.app)[text] == before


def test_a_comment_with_answers_is_deleted_and_undone_in_its_place(blog_site: BlogSite) -> None:
    first = seen(blog_site.app, "A question?")
    seen(blog_site.app, "An answer!", parent_id=first)
    page = admin(blog_site)
    question = page.locator(f"li[data-id='{first}'] > article")
    writing.choose(question, "Delete")
    expect(button(page, "Undo")).to_be_focused()
    expect(article(page, "An answer!")).to_be_visible()
    reader = blog_site.open()
    expect(reader.get_by_text("This comment was removed.")).to_be_visible()
    button(page, "Undo").click()
    expect(question).to_contain_text("A question?")
    expect(article(page, "An answer!")).to_be_visible()
    assert readers_see(blog_site) == ["An answer!", "A question?"]


def test_an_admin_who_went_on_keeps_the_focus(blog_site: BlogSite) -> None:
    seen(blog_site.app, "One.")
    page = admin(blog_site)
    for word in ("Pin", "Delete"):
        with requests_held(page, "**/moderate"):
            with page.expect_request("**/moderate"):
                choose(page, "One.", word)
            writing.main(page).focus()
        shown = article(page, "One.").locator(".badge") if word == "Pin" else button(page, "Undo")
        expect(shown).to_be_visible()
        expect(writing.main(page)).to_be_focused()


def test_a_pinned_comment_comes_first_and_says_so(blog_site: BlogSite, operate: Operate) -> None:
    seen(blog_site.app, "Older.")
    seen(blog_site.app, "Newer.")
    page = admin(blog_site)
    choose(page, "Older.", "Pin", operate)
    expect(article(page, "Older.").locator(".badge")).to_have_text("Pinned")
    expect(menu(page, "Older.")).to_be_focused()
    expect(page.get_by_text("2 comments")).to_be_visible()
    reader = blog_site.open()
    expect(reader.locator("article .body")).to_have_text(["Older.", "Newer."])
    expect(article(reader, "Older.").locator(".badge")).to_have_text("Pinned")
    reader.get_by_role("combobox", name="Sort by").select_option("oldest")
    expect(reader.locator("article .body")).to_have_text(["Older.", "Newer."])
    choose(page, "Older.", "Unpin", operate)
    expect(article(page, "Older.").locator(".badge")).to_have_count(0)
    reader.reload()
    expect(reader.locator("article .body")).to_have_text(["Newer.", "Older."])


def test_a_waiting_reply_stands_under_its_parent_and_is_not_pinned(blog_site: BlogSite) -> None:
    first = seen(blog_site.app, "A question?")
    say(blog_site.app, "An answer!", parent_id=first)
    page = admin(blog_site, lang="zh-CN")
    reply = page.locator("li li article")
    expect(reply).to_contain_text("等待你审核。")
    assert writing.words_of(reply)[1:] == ["通过", "垃圾评论", "删除"]
    writing.choose(reply, "通过")
    expect(reply.locator(".like")).to_be_visible()
    assert writing.words_of(reply)[1:] == ["垃圾评论", "删除"]
    assert states(blog_site.app)["An answer!"] == "visible"


def test_the_menus_outlive_another_order_and_work_while_more_is_loaded(blog_site: BlogSite) -> None:
    for number in range(12):
        seen(blog_site.app, f"No. {number}.")
    say(blog_site.app, "Waits.")
    page = admin(blog_site)
    with requests_held(page, "**/comments/waiting?**"):
        with page.expect_request("**/comments/waiting?**"):
            button(page, re.compile("Show more")).click()
        choose(page, "No. 11.", "Pin")
        expect(menu(page, "No. 11.")).to_be_focused()
        expect(article(page, "No. 11.")).to_contain_text("Pinned")
        expect(page.get_by_role("alert")).to_have_count(0)
    expect(menu(page, "No. 0.")).to_be_visible()
    expect(page.locator(".quiet")).to_have_count(13)
    page.get_by_role("combobox", name="Sort by").select_option("oldest")
    expect(menu(page, "No. 0.")).to_be_visible()
    expect(menu(page, "Waits.")).to_be_visible()
    expect(page.locator(".quiet")).to_have_count(11)
    expect(article(page, "Waits.")).to_have_count(1)


BROKEN: dict[str, tuple[Any, str]] = {
    "offline": (lambda route: route.abort(), "Comments can’t be reached."),
    "many": ("too_many", "Too fast: please wait 40 seconds."),
    "gone": ("comment_gone", "This comment was removed."),
    "not admin": ("not_admin", "That did not work."),
}


def test_a_refused_moderation_is_said_at_the_comment_which_stays(blog_site: BlogSite) -> None:
    blog_site.expected += [REFUSED, UNREACHED]
    seen(blog_site.app)
    page = admin(blog_site)
    for work, words in BROKEN.values():
        if isinstance(work, str):
            refuse(page, "/moderate", work, 429)
        else:
            page.route("**/moderate", work)
        choose(page, "Seen.", "Spam")
        expect(article(page, "Seen.").get_by_role("alert")).to_contain_text(words)
        expect(page.get_by_text("1 comment", exact=True)).to_be_visible()
        page.unroute("**/moderate")
    end_logins(blog_site.app)  # a sign-in that ended is renewed on the spot
    choose(page, "Seen.", "Spam")
    panel = page.get_by_role("form", name="Sign in")
    expect(panel).to_be_visible()
    sign_in(page, password=PASSWORD, email=MAIL)
    expect(panel).to_have_count(0)
    choose(page, "Seen.", "Spam")
    expect(button(page, "Undo")).to_be_focused()
    assert states(blog_site.app) == {"Seen.": "spam"}


# The language of a comment


@pytest.mark.parametrize(
    ("lang", "kept"),
    [
        ("zh-CN", "zh"),
        pytest.param("en", "en", marks=pytest.mark.long),
        pytest.param("ar", "ar", marks=pytest.mark.long),
    ],
)
def test_a_moderated_comment_keeps_the_language_of_the_widget(
    blog_site: BlogSite, lang: str, kept: str
) -> None:
    page = blog_site.open(lang=lang)
    sent = requests_of(page, "/comments")
    main(page).fill("12 345")
    page.get_by_role("textbox", name=in_any_language("name")).fill("Ann")
    page.locator("section > form .button").first.click()
    expect(page.locator("[data-target]")).to_be_focused()
    (post,) = [each for each in sent if each.method == "POST"]
    assert (post.post_data_json or {})["lang"].startswith(kept)
    assert sql(blog_site.app, "SELECT substr(language, 1, 2) FROM comment") == [(kept,)]


@pytest.mark.parametrize(
    ("lang", "how", "least"),
    [("en", DESK, 24), ("ar", PHONE, 44), pytest.param("zh-CN", PHONE, 44, marks=pytest.mark.long)],
    ids=["desk", "phone", "long"],
)
def test_the_open_menus_are_accessible(
    blog_site: BlogSite, lang: str, how: Any, least: int
) -> None:
    """A pinned comment of the admin's, a reply, one that waits, and one just marked as spam."""
    first = seen(blog_site.app, "Hers.", "江屿")
    seen(blog_site.app, "An answer.", "Mateo Silva", parent_id=first)
    seen(blog_site.app, "Buy!", "Noor Rahman")
    say(blog_site.app, "Waits.", "W" * 60)
    sql(blog_site.app, "UPDATE comment SET pinned = 1 WHERE id = ?", first)
    page = admin(blog_site, lang=lang, **how)
    page.evaluate(WATCH)
    choices(article(page, "Buy!")).get_by_role("button", name=in_any_language("spam")).click()
    expect(page.get_by_role("button", name=in_any_language("undo"))).to_be_focused()
    for text, count in (("Hers.", 4), ("Waits.", 4)):
        words = choices(article(page, text)).get_by_role("button")
        expect(words).to_have_count(count)
        assert_nobody_is_shut_out(page, lang)
        assert page.evaluate(TARGETS, least - 0.01) == []
        found = focus_stops(page)
        assert [stop for stop in found if not stop[1] or not stop[2]] == []
        assert len(found) == count
        page.keyboard.press("Escape")
    page.set_viewport_size({"width": 320, "height": 640})
    page.wait_for_function("innerWidth === 320")
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
