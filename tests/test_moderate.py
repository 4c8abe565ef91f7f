"""The admin's menu at the comments on the blog, in a real Chromium: who gets it, what it does, and
how little its token opens. `test_moderation.py` has the API, `test_admin_page.py` the page."""

import re
from typing import Any

import pytest
import test_access as access
import test_admin_page as desk
import test_writing as writing
from bench_widget import WATCH
from blog import POST, new_context, say
from playwright.sync_api import Locator, Page, Route, expect
from test_access import PHONE
from test_admin_page import MAIL, WINDOW, account, judge, remember, run, states
from test_writing import (
    REFUSED,
    UNREACHED,
    Ground,
    Use,
    article,
    button,
    keyboard,
    reach,
    requests_of,
    said,
)
from webtest import TestApp

from commentd import ROUTES, App, Rank, make_token

pytestmark = pytest.mark.slow

browser, office, outside = writing.browser, writing.office, writing.outside
pages, address, config = writing.pages, writing.address, writing.config
ground, use = writing.ground, writing.use

HELD = {"moderation_hold": "all"}


@pytest.fixture
def settings() -> dict[str, Any]:
    return dict(HELD)


@pytest.fixture(autouse=True)
def owner(app: App) -> int:
    """The admin of every test."""
    return account(app)


# Small verbs


def widget_token(app: App, email: str = MAIL) -> str:
    who = app.house.store.account_of(email)
    assert who
    return make_token(who, app.house.key, int(app.house.world.now()))


def signed_in(
    ground: Ground, email: str = MAIL, path: str = POST, lang: str = "en", **how: Any
) -> Page:
    """Somebody who signed in at the widget some time ago."""
    who = ground.app.house.store.account_of(email)
    assert who
    me = {"nickname": who.nickname, "email": email, "role": who.role, "id": who.id}
    me["token"] = widget_token(ground.app, email)
    context = new_context(ground.browser, locale=lang, **how)
    ground.stack.callback(context.close)
    remember(context, ground.address, f"{ground.service}/me", me)
    return ground.go(context.new_page(), path, lang)


def admin(ground: Ground, **how: Any) -> Page:
    """The admin before the page, with his menus."""
    page = signed_in(ground, **how)
    expect(page.locator(".moderate").first).to_be_visible()
    return page


def menu(page: Page, text: str) -> Locator:
    return article(page, text).locator(".moderate")


def choose(page: Page, text: str, word: str, use: Use = writing.mouse) -> None:
    """Open the menu of a comment and press a word in it."""
    use(menu(page, text))
    use(button(article(page, text), word))


def seen(app: App, text: str = "Seen.", name: str = "陆知微", **fields: Any) -> int:
    """A comment that all may read."""
    made = say(app, text, name, **fields)
    judge(app, "visible", made)
    return made


def readers_see(ground: Ground) -> list[str]:
    """What the API gives to one who is not signed in."""
    listing = TestApp(ground.app).get("/comments", {"url": POST, "limit": 100}).json
    return [each["content"] for each in listing["comments"]]


def words_of(page: Page, text: str) -> list[str]:
    return article(page, text).locator(".moderate ~ button:not(.own)").all_text_contents()


def reload_and_settle(page: Page) -> None:
    """Until it is known whether anything waits, and that was shown."""
    with page.expect_response("**/comments/waiting*"):
        page.reload()
    expect(article(page, "Seen.")).to_be_visible()
    page.evaluate("() => new Promise(go => requestAnimationFrame(() => setTimeout(go)))")


# Who gets it


def test_an_admin_who_signs_in_on_the_blog_gets_the_menu(ground: Ground, use: Use) -> None:
    seen(ground.app)
    say(ground.app, "Waits.")
    page = ground.open()
    expect(article(page, "Seen.")).to_be_visible()
    expect(article(page, "Waits.")).to_have_count(0)
    panel = writing.open_account(page, use)
    use(panel.get_by_role("textbox", name="Email"), MAIL)
    use(panel.get_by_label("Password"), desk.PASSWORD)
    use(button(panel, "Sign in"))
    expect(menu(page, "Seen.")).to_be_visible()
    expect(article(page, "Waits.")).to_contain_text("Waiting for your approval.")
    assert words_of(page, "Seen.") == ["Spam", "Delete", "Pin"]
    assert words_of(page, "Waits.") == ["Approve", "Spam", "Delete"]
    page.reload()
    expect(menu(page, "Waits.")).to_be_visible()


def test_signing_out_takes_the_menu_and_what_waits_away(ground: Ground, use: Use) -> None:
    seen(ground.app)
    say(ground.app, "Waits.")
    page = admin(ground)
    use(writing.main(page), "A thought")
    use(button(page, "Sign out"))
    expect(page.get_by_text("You are signed out.")).to_be_visible()
    expect(page.locator(".moderate")).to_have_count(0)
    expect(article(page, "Waits.")).to_have_count(0)


def test_a_reader_gets_neither_the_menu_nor_its_script(ground: Ground) -> None:
    seen(ground.app)
    say(ground.app, "Waits.")
    account(ground.app, "ann@example.com", "Ann", "user")
    for page in (ground.open(), signed_in(ground, "ann@example.com")):
        scripts = requests_of(page, "/moderate.js")
        asked = requests_of(page, "/comments/waiting")
        page.reload()
        expect(article(page, "Seen.")).to_be_visible()
        page.wait_for_load_state("networkidle")
        expect(page.locator(".moderate")).to_have_count(0)
        expect(article(page, "Waits.")).to_have_count(0)
        assert [*scripts, *asked] == []


@pytest.mark.parametrize("fate", ["role = 'user'", "blocked = 1", "version = version + 1"])
def test_a_former_admin_gets_no_menu(ground: Ground, fate: str) -> None:
    ground.expected.append(REFUSED)
    seen(ground.app)
    say(ground.app, "Waits.")
    page = admin(ground)
    run(ground.app, f"UPDATE account SET {fate}")
    reload_and_settle(page)
    expect(article(page, "Waits.")).to_have_count(0)
    expect(page.locator(".moderate")).to_have_count(0)


def test_a_reader_who_calls_himself_an_admin_gets_nothing(ground: Ground) -> None:
    ground.expected.append(REFUSED)
    first = seen(ground.app)
    say(ground.app, "Waits.")
    account(ground.app, "ann@example.com", "Ann", "user")
    page = signed_in(ground, "ann@example.com")
    page.evaluate(
        """() => {
          const [[key, value]] = Object.entries(localStorage)
          localStorage.setItem(key, JSON.stringify({...JSON.parse(value), role: 'admin'}))
        }"""
    )
    reload_and_settle(page)
    expect(article(page, "Waits.")).to_have_count(0)
    expect(page.locator(".moderate")).to_have_count(0)
    status = page.evaluate(
        """async ([address, id, token]) => (await fetch(`${address}/comments/${id}/moderate`, {
          method: 'POST', body: '{"status": "deleted"}',
          headers: {'Content-Type': 'application/json', Authorization: 'Bearer ' + token},
        })).status""",
        [ground.service, first, widget_token(ground.app, "ann@example.com")],
    )
    assert status == 403
    assert readers_see(ground) == ["Seen."]


def test_the_token_of_the_widget_opens_nothing_under_admin(app: App) -> None:
    headers = {"Authorization": f"Bearer {widget_token(app)}"}
    client, told = TestApp(app), {}
    for route in (each for each in ROUTES if each.rank is Rank.ADMIN):
        path = re.sub(r"<\w+>", "1", route.path)
        if route.method == "GET":
            answer = client.get(path, headers=headers, expect_errors=True)
        else:
            send = getattr(client, f"{route.method.lower()}_json")
            answer = send(path, {}, headers=headers, expect_errors=True)
        told[f"{route.method} {path}"] = answer.status_int
    assert set(told.values()) == {401}, told


def test_scripts_of_the_blog_get_no_answer_of_the_admin_page(ground: Ground) -> None:
    ground.expected += ["blocked by CORS policy", UNREACHED, REFUSED]
    seen(ground.app)
    page = admin(ground)
    got = page.evaluate(
        """async address => {
          const kept = Object.entries(localStorage).find(([key]) => key.endsWith('/me'))
          const headers = {Authorization: 'Bearer ' + JSON.parse(kept[1]).token}
          const told = []
          for (const path of ['', '/comments', '/settings', '/users', '/captcha']) {
            for (const how of [{}, {headers}]) {
              const asked = fetch(address + '/admin' + path, how)
              told.push(await asked.then(r => r.status, e => e.name))
            }
          }
          return [...new Set(told)]
        }""",
        ground.service,
    )
    assert got == ["TypeError"]


def test_what_waits_is_seen_by_its_author_and_the_admin_only(ground: Ground) -> None:
    author = ground.open()
    writing.write(author, "Patience.")
    button(author, re.compile("^Post for approval$")).click()
    expect(article(author, "Patience.")).to_contain_text("Only you see it.")
    boss, reader = signed_in(ground), ground.open()
    expect(article(boss, "Patience.")).to_contain_text("Waiting for your approval.")
    expect(reader.get_by_text("No comments yet")).to_be_visible()
    author.reload()
    expect(article(author, "Patience.")).to_contain_text("Only you see it.")
    expect(author.locator(".moderate")).to_have_count(0)
    choose(boss, "Patience.", "Approve")
    expect(article(boss, "Patience.").get_by_role("button", name="Like 0")).to_be_visible()
    reader.reload()
    expect(article(reader, "Patience.")).to_be_visible()
    author.reload()
    expect(article(author, "Patience.")).to_have_count(1)
    expect(article(author, "Patience.")).not_to_contain_text("Only you")


def test_what_is_kept_as_spam_looks_to_its_author_as_if_it_waited(ground: Ground) -> None:
    run(ground.app, "INSERT INTO block VALUES (1, 'word', 'casino', '', 0, NULL)")
    author = ground.open()
    writing.write(author, "A casino.")
    button(author, "Post for approval").click()
    expect(article(author, "A casino.")).to_contain_text("Waiting for approval.")
    assert states(ground.app) == {"A casino.": "spam"}
    seen(ground.app)
    boss = admin(ground)
    expect(article(boss, "A casino.")).to_have_count(0)


# What it does


def test_what_waits_is_approved(ground: Ground, use: Use) -> None:
    seen(ground.app)
    say(ground.app, "Waits.")
    page = admin(ground)
    expect(page.get_by_text("1 comment", exact=True)).to_be_visible()
    choose(page, "Waits.", "Approve", use)
    expect(page.get_by_text("2 comments")).to_be_visible()
    expect(menu(page, "Waits.")).to_be_focused()
    expect(article(page, "Waits.")).not_to_contain_text("Waiting for your approval.")
    assert words_of(page, "Waits.") == ["Spam", "Delete", "Pin"]
    assert readers_see(ground) == ["Waits.", "Seen."]


@pytest.mark.parametrize(
    ("word", "status", "told"),
    [("Spam", "spam", "Moved to spam."), ("Delete", "deleted", "Deleted.")],
)
@pytest.mark.parametrize("text", ["Seen.", "Waits."])
def test_spam_and_deleting_are_undone(
    ground: Ground, use: Use, word: str, status: str, told: str, text: str
) -> None:
    seen(ground.app)
    say(ground.app, "Waits.")
    before = states(ground.app)[text]
    page = admin(ground)
    order = page.locator("article .body").all_inner_texts()
    choose(page, text, word, use)
    expect(button(page, "Undo")).to_be_focused()
    expect(page.get_by_text(told)).to_be_visible()
    expect(article(page, text)).to_have_count(0)
    expect(page.get_by_text("1 comment", exact=True)).to_have_count(int(before == "waiting"))
    assert states(ground.app)[text] == status
    use(button(page, "Undo"))
    expect(menu(page, text)).to_be_focused()
    expect(page.get_by_text("1 comment", exact=True)).to_be_visible()
    assert page.locator("article .body").all_inner_texts() == order
    assert states(ground.app)[text] == before


def test_a_comment_with_answers_is_deleted_and_undone_in_its_place(ground: Ground) -> None:
    first = seen(ground.app, "A question?")
    seen(ground.app, "An answer!", parent_id=first)
    page = admin(ground)
    question = page.locator(f"li[data-id='{first}'] > article")
    question.locator(".moderate").click()
    button(question, "Delete").click()
    expect(button(page, "Undo")).to_be_focused()
    expect(article(page, "An answer!")).to_be_visible()
    reader = ground.open()
    expect(reader.get_by_text("This comment was removed.")).to_be_visible()
    button(page, "Undo").click()
    expect(question).to_contain_text("A question?")
    expect(article(page, "An answer!")).to_be_visible()
    assert readers_see(ground) == ["An answer!", "A question?"]


def test_what_is_pinned_comes_first_and_says_so(ground: Ground, use: Use) -> None:
    seen(ground.app, "Older.")
    seen(ground.app, "Newer.")
    page = admin(ground)
    choose(page, "Older.", "Pin", use)
    expect(article(page, "Older.").locator(".badge")).to_have_text("Pinned")
    expect(menu(page, "Older.")).to_be_focused()
    expect(page.get_by_text("2 comments")).to_be_visible()
    reader = ground.open()
    expect(reader.locator("article .body")).to_have_text(["Older.", "Newer."])
    expect(article(reader, "Older.").locator(".badge")).to_have_text("Pinned")
    reader.get_by_role("combobox", name="Sort by").select_option("oldest")
    expect(reader.locator("article .body")).to_have_text(["Older.", "Newer."])
    choose(page, "Older.", "Unpin", use)
    expect(article(page, "Older.").locator(".badge")).to_have_count(0)
    reader.reload()
    expect(reader.locator("article .body")).to_have_text(["Newer.", "Older."])


def test_an_answer_is_not_pinned(ground: Ground) -> None:
    first = seen(ground.app, "A question?")
    seen(ground.app, "An answer!", parent_id=first)
    page = admin(ground)
    reply = page.locator("li li article")
    expect(reply.locator(".moderate")).to_be_visible()
    assert reply.locator(".moderate ~ button").all_text_contents() == ["Spam", "Delete"]


def test_an_answer_that_waits_stands_under_what_it_answers(ground: Ground) -> None:
    first = seen(ground.app, "A question?")
    say(ground.app, "An answer!", parent_id=first)
    page = admin(ground)
    reply = page.locator("li li article")
    expect(reply).to_contain_text("Waiting for your approval.")
    reply.locator(".moderate").click()
    button(reply, "Approve").click()
    expect(reply.get_by_role("button", name="Like 0")).to_be_visible()
    expect(page.get_by_text("2 comments")).to_be_visible()


def test_the_admins_own_comment_is_shown_at_once_with_badge_and_menu(ground: Ground) -> None:
    seen(ground.app)
    page = admin(ground)
    writing.main(page).fill("Mine.")
    page.locator("section > form .button").first.click()
    mine = article(page, "Mine.")
    expect(mine.locator(".moderate")).to_be_visible()
    expect(mine.locator(".badge").filter(has_text="Author")).to_be_visible()
    assert states(ground.app)["Mine."] == "visible"


def test_what_waits_and_the_menus_outlive_another_order_and_more(ground: Ground) -> None:
    for number in range(12):
        seen(ground.app, f"No. {number}.")
    say(ground.app, "Waits.")
    page = admin(ground)
    button(page, "Show more").click()
    expect(menu(page, "No. 0.")).to_be_visible()
    expect(page.locator(".moderate")).to_have_count(13)
    page.get_by_role("combobox", name="Sort by").select_option("oldest")
    expect(menu(page, "No. 0.")).to_be_visible()
    expect(menu(page, "Waits.")).to_be_visible()
    expect(page.locator(".moderate")).to_have_count(11)
    expect(article(page, "Waits.")).to_have_count(1)


def test_a_comment_is_moderated_while_more_are_looked_for(ground: Ground) -> None:
    for number in range(12):
        seen(ground.app, f"No. {number}.")
    page = admin(ground)
    held: list[Route] = []
    page.route("**/comments/waiting?**", lambda route: held.append(route))
    with page.expect_request("**/comments/waiting?**"):
        button(page, "Show more").click()
    choose(page, "No. 11.", "Pin")
    expect(menu(page, "No. 11.")).to_be_focused()
    expect(page.get_by_role("alert")).to_have_count(0)
    for route in held:
        route.continue_()
    expect(page.locator(".moderate")).to_have_count(12)


def test_two_threads_of_a_page_have_each_their_own(ground: Ground) -> None:
    for name in ("first", "second"):
        say(ground.app, f"Of the {name}.", page=f"/{name}/")
    threads = "".join(
        f"<commentd-thread page=/{n}/></commentd-thread>" for n in ("first", "second")
    )
    page = signed_in(ground)
    script = f'<script src="{ground.service}/embed.js" async></script>'
    text = f"<!doctype html><html lang=en><title>Two</title><body>{threads}{script}"
    ground.pages["/two/"] = ({}, text)
    ground.expected.append("404")  # the icon of a page that names none
    page.goto(f"{ground.address}/two/")
    for name in ("first", "second"):
        thread = page.locator(f"[page='/{name}/']")
        expect(thread.locator("article .body")).to_have_text(f"Of the {name}.")
        thread.locator(".moderate").click()
        button(thread, "Approve").click()
        expect(thread.get_by_text("1 comment", exact=True)).to_be_visible()
    assert set(states(ground.app).values()) == {"visible"}


BROKEN: dict[str, tuple[Any, str]] = {
    "offline": (lambda route: route.abort(), "Comments can’t be reached now."),
    "many": ("too_many", "Too fast: please wait 40 s."),
    "gone": ("comment_gone", "This comment was removed."),
    "not admin": ("not_admin", "That did not work."),
}


@pytest.mark.parametrize("how", BROKEN)
def test_what_is_refused_is_said_at_the_comment_which_stays(ground: Ground, how: str) -> None:
    ground.expected += [REFUSED, UNREACHED]
    seen(ground.app)
    page = admin(ground)
    work, words = BROKEN[how]
    if isinstance(work, str):
        writing.refuse(page, "/moderate", work, 429)
    else:
        page.route("**/moderate", work)
    choose(page, "Seen.", "Spam")
    expect(article(page, "Seen.").get_by_role("alert")).to_contain_text(words)
    expect(page.get_by_text("1 comment", exact=True)).to_be_visible()
    page.unroute_all()
    button(article(page, "Seen."), "Spam").click()
    expect(button(page, "Undo")).to_be_focused()
    assert states(ground.app) == {"Seen.": "spam"}


def test_a_sign_in_that_ended_meanwhile_is_renewed_on_the_spot(ground: Ground) -> None:
    ground.expected.append(REFUSED)
    seen(ground.app)
    page = admin(ground)
    run(ground.app, "UPDATE account SET version = version + 1")
    choose(page, "Seen.", "Spam")
    panel = page.get_by_role("form", name="Sign in")
    expect(panel).to_be_visible()
    panel.get_by_role("textbox", name="Email").fill(MAIL)
    panel.get_by_label("Password").fill(desk.PASSWORD)
    button(panel, "Sign in").click()
    expect(panel).to_have_count(0)
    choose(page, "Seen.", "Spam")
    expect(button(page, "Undo")).to_be_focused()


def test_what_waits_and_does_not_come_hides_nothing_that_is_there(ground: Ground) -> None:
    ground.expected += [REFUSED, UNREACHED]
    seen(ground.app)
    say(ground.app, "Waits.")

    def drop(route: Route) -> None:
        route.abort()

    page = ground.open()
    page.route("**/comments/waiting*", drop)
    panel = writing.open_account(page)
    panel.get_by_role("textbox", name="Email").fill(MAIL)
    panel.get_by_label("Password").fill(desk.PASSWORD)
    button(panel, "Sign in").click()
    expect(menu(page, "Seen.")).to_be_visible()


SPELL = (
    "<img src=x onerror=window.hacked=1> [x](javascript:window.hacked=1) <script>hacked=1</script>"
)


def test_a_hostile_comment_that_waits_runs_nothing_and_hides_no_other(ground: Ground) -> None:
    seen(ground.app)
    ids = [say(ground.app, f"Waits {n}.") for n in range(4)]
    spoilt = {"nickname": SPELL, "content": SPELL, "html": f"<p onclick=x>{SPELL}<b>"}
    for name, value in spoilt.items():
        run(ground.app, f"UPDATE comment SET {name} = ? WHERE id = ?", value, ids[0])
    run(
        ground.app, "UPDATE comment SET website = 'javascript:window.hacked=1' WHERE id = ?", ids[0]
    )
    for name in ("nickname", "content", "html", "location"):
        spoil = f"UPDATE comment SET {name} = CAST(x'fffec328' AS TEXT) WHERE id = ?"
        run(ground.app, spoil, ids[1])
    run(ground.app, "UPDATE comment SET created_at = ? WHERE id = ?", 2**62, ids[2])
    page = admin(ground)
    expect(menu(page, "Waits 3.")).to_be_visible()
    expect(menu(page, "Seen.")).to_be_visible()
    expect(page.locator(".moderate")).to_have_count(5)
    hostile = page.locator(f"li[data-id='{ids[0]}']")
    hostile.locator(".moderate").click()
    button(hostile, "Spam").click()
    expect(button(hostile, "Undo")).to_be_focused()
    assert page.evaluate("window.hacked") is None
    shadow = page.locator("commentd-thread :is(img, script, iframe)")
    assert shadow.count() == 0
    assert page.locator("commentd-thread a[href^=javascript]").count() == 0


# The language of a comment


@pytest.mark.parametrize(("lang", "kept"), [("zh-CN", "zh"), ("en", "en"), ("ar", "ar")])
def test_a_comment_keeps_the_language_in_which_the_widget_spoke(
    ground: Ground, lang: str, kept: str
) -> None:
    page = ground.open(lang=lang)
    sent = requests_of(page, "/comments")
    writing.main(page).fill("12 345")
    page.get_by_role("textbox", name=said("name")).fill("Ann")
    page.locator("section > form .button").first.click()
    expect(page.locator("[data-target]")).to_be_focused()
    (post,) = [each for each in sent if each.method == "POST"]
    assert (post.post_data_json or {})["lang"].startswith(kept)
    assert run(ground.app, "SELECT substr(language, 1, 2) FROM comment") == [(kept,)]


# No one is shut out


def stage(ground: Ground, lang: str = "en", **how: Any) -> Page:
    """A pinned comment of the admin's, an answer, one that waits with its menu open, and one that
    is just marked as spam."""
    first = seen(ground.app, "Hers.", "江屿")
    seen(ground.app, "An answer.", "Mateo Silva", parent_id=first)
    seen(ground.app, "Buy!", "Noor Rahman")
    say(ground.app, "Waits.", "W" * 60)
    run(ground.app, "UPDATE comment SET pinned = 1 WHERE id = ?", first)
    page = admin(ground, lang=lang, **how)
    page.evaluate(WATCH)
    menu(page, "Buy!").click()
    article(page, "Buy!").get_by_role("button", name=said("spam")).click()
    expect(page.get_by_role("button", name=said("undo"))).to_be_focused()
    for each in page.locator(".moderate").all():
        each.click()
    return page


@pytest.mark.parametrize(("lang", "how"), [("en", WINDOW), ("zh-CN", PHONE)], ids=["desk", "phone"])
def test_axe_finds_nothing_with_the_menus_open(ground: Ground, lang: str, how: Any) -> None:
    page = stage(ground, lang, **how)
    for scheme in ("light", "dark"):
        access.prefer(page, scheme)
        access.assert_nobody_is_shut_out(page, f"{lang} {scheme}")


def test_each_stop_of_the_keyboard_is_seen_and_has_a_name(ground: Ground) -> None:
    page = stage(ground, **WINDOW)
    found = access.stops(page)
    assert [stop for stop in found if not stop[1] or not stop[2]] == []
    names = [name for _, name, _ in found]
    assert [names.count(word) for word in ("Moderate", "Approve", "Undo", "Unpin")] == [3, 1, 1, 1]


def test_by_keyboard_alone_from_signing_in_to_an_undone_spam(ground: Ground) -> None:
    say(ground.app, "Waits.")
    page = ground.open()
    panel = writing.open_account(page, keyboard)
    keyboard(panel.get_by_role("textbox", name="Email"), MAIL)
    keyboard(panel.get_by_label("Password"), desk.PASSWORD)
    keyboard(button(panel, "Sign in"))
    choose(page, "Waits.", "Spam", keyboard)
    expect(button(page, "Undo")).to_be_focused()
    page.keyboard.press("Enter")
    expect(menu(page, "Waits.")).to_be_focused()
    page.keyboard.press("Space")
    page.keyboard.press("Tab")
    expect(button(article(page, "Waits."), "Approve")).to_be_focused()
    page.keyboard.press("Space")
    expect(page.get_by_text("1 comment", exact=True)).to_be_visible()
    reach(page.get_by_role("button", name="Like 0").last)


@pytest.mark.parametrize(("how", "least"), [(WINDOW, 24), (PHONE, 44)], ids=["mouse", "touch"])
def test_the_targets_of_the_menu_are_large_enough(ground: Ground, how: Any, least: int) -> None:
    page = stage(ground, **how)
    assert page.evaluate(access.TARGETS, least - 0.01) == []


@pytest.mark.parametrize("lang", ["en", "zh-CN", "ar"])
def test_the_menu_fits_a_page_of_320_pixels(ground: Ground, lang: str) -> None:
    page = stage(ground, lang, viewport={"width": 320, "height": 640})
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    wide = page.locator(".moderate, .moderate ~ button").evaluate_all(
        """all => all.map(e => [e.textContent, e.getBoundingClientRect()])
          .filter(([, {left, right}]) => left < -.5 || right > innerWidth + .5)"""
    )
    assert wide == []


def test_the_menu_speaks_the_language_of_the_page(ground: Ground) -> None:
    say(ground.app, "Waits.")
    page = admin(ground, lang="zh-CN")
    expect(article(page, "Waits.")).to_contain_text("等待你审核。")
    assert words_of(page, "Waits.") == ["通过", "垃圾评论", "删除"]
