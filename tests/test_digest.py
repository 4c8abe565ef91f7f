"""When the owner hears of comments: at once, once a day, and never in quiet hours. The blog is in
Berlin here, an hour ahead of UTC in winter and two in summer."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from commentd import Digest, PageRule, QuietHours
from support.admin import moderate
from support.emails import Markup
from support.notifications import (
    ANN,
    CO_OWNER,
    DAY,
    HOUR,
    MINUTE,
    NAMED,
    OWNER,
    SERVICE,
    Guest,
    Reader,
    StartApp,
    links_in,
    words_of,
)
from support.notifications import ann as ann  # a fixture
from support.notifications import guest as guest  # a fixture
from support.notifications import owner as owner  # a fixture
from support.notifications import start_app as start_app  # a fixture
from support.world import FakeWorld, text_of

BERLIN = ZoneInfo("Europe/Berlin")
DAILY = {**NAMED, "site_timezone": BERLIN, "notify_digest": Digest(18 * 60)}
QUIET = {**NAMED, "site_timezone": BERLIN, "notify_quiet": QuietHours(22 * 60, 8 * 60)}


def at(time_text: str) -> float:
    """A time in Berlin, such as `2026-11-18 12:00`."""
    return datetime.strptime(time_text, "%Y-%m-%d %H:%M").replace(tzinfo=BERLIN).timestamp()


def deliver_until(guest: Guest, end: float, step: int = 10 * MINUTE) -> list[str]:
    """The subjects of the emails that went out until then, with their time in Berlin."""
    sent = []
    while guest.fake_world.time < end:
        guest.fake_world.time += step
        guest.forget()
        guest.deliver()
        local = datetime.fromtimestamp(guest.fake_world.time, BERLIN)
        sent += [f"{local:%d %H:%M} {email['Subject']}" for email in guest.arrived()]
    return sent


def test_a_digest_is_one_email_for_a_day_and_none_for_a_day_without_comments(
    start_app: StartApp, fake_world: FakeWorld
) -> None:
    fake_world.time = at("2026-11-18 12:20")
    with start_app(**DAILY) as blog:
        blog.comment("in the morning")
        assert deliver_until(blog, at("2026-11-18 15:00")) == []
        blog.comment("in the afternoon")
    with start_app(**DAILY) as blog:  # a restart loses nothing, and sends nothing early
        assert deliver_until(blog, at("2026-11-18 17:50")) == []
        blog.comment("at ten to six")
        sent = deliver_until(blog, at("2026-11-18 18:00"))
        assert sent == ["18 18:00 blog.example: comments of the day (3)"]
        (message,) = blog.arrived(OWNER)
        assert Markup(message).preview.strip() == "in the morning"
        text = text_of(message)
        assert text.startswith("Published: 3\n\n")
        for words in ("in the morning", "in the afternoon", "at ten to six"):
            assert f"> {words}\n" in text
        assert text.count(f"\n\n{'-' * 40}\n\n") == 2
        blog.comment("after six")
        assert deliver_until(blog, at("2026-11-19 17:50")) == []
    with start_app(**DAILY) as blog:
        sent = deliver_until(blog, at("2026-11-22 12:00"))
        assert sent == ["19 18:00 blog.example: comments of the day (1)"]


def test_a_digest_begins_with_all_that_waits_and_has_the_links_that_decide(
    start_app: StartApp, fake_world: FakeWorld
) -> None:
    fake_world.time = at("2026-11-18 12:20")
    with start_app(**DAILY, moderation_hold="links") as blog:
        blog.comment("waits since Wednesday: https://a.example")
        deliver_until(blog, at("2026-11-19 12:00"))
        blog.comment("published")
        blog.comment("waits since Thursday: https://b.example")
        deliver_until(blog, at("2026-11-19 18:00"))
        (text,) = blog.texts(OWNER)
        waiting, _, published = text.partition("Published: 1\n")
        assert waiting.startswith("Waiting for your decision: 2\n\n")
        assert "since Thursday" in waiting
        assert "since Wednesday" in waiting
        assert "> published" in published
        links = [link for link in links_in(waiting) if words_of(link)["do"] == "visible"]
        assert len(links) == 2
        for link in links:
            blog.press(link)
        assert blog.listing()["total"] == 3
        assert text.endswith(f"All comments: {SERVICE}/admin\n")
        # What waits is no news by itself.
        blog.comment("waits since Friday: https://c.example")
        deliver_until(blog, at("2026-11-20 18:00"))
        assert deliver_until(blog, at("2026-11-22 12:00")) == []


@pytest.mark.parametrize("settings", [{**DAILY, "moderation_hold": "all"}])
def test_a_digest_also_tells_of_a_comment_that_came_just_before_it_was_written(
    guest: Guest,
) -> None:
    guest.fake_world.time = at("2026-11-18 12:20")
    guest.comment("first")
    guest.fake_world.time = at("2026-11-18 18:00") + 2
    guest.comment("second")
    guest.deliver()
    assert guest.quotes(OWNER) == [["first", "second"]]
    guest.comment("third")
    deliver_until(guest, at("2026-11-19 18:00"))
    (text,) = guest.texts(OWNER)
    assert text.startswith("Waiting for your decision: 3\n\n")
    assert deliver_until(guest, at("2026-11-21 12:00")) == []


@pytest.mark.parametrize("settings", [{**DAILY, "moderation_hold": "all"}])
def test_a_digest_leaves_out_comments_that_were_decided_on_during_the_day(
    guest: Guest, owner: Reader
) -> None:
    guest.fake_world.time = at("2026-11-18 12:20")
    first, second = guest.comment("approved"), guest.comment("still waits")
    moderate(owner, [first], "visible")
    assert deliver_until(guest, at("2026-11-18 18:00"))
    (text,) = guest.texts(OWNER)
    assert "still waits" in text
    assert "approved" not in text
    moderate(owner, [second], "visible")
    guest.comment("third")
    deliver_until(guest, at("2026-11-19 18:00"))
    (text,) = guest.texts(OWNER)
    assert "still waits" not in text


@pytest.mark.parametrize("settings", [{**DAILY, "moderation_hold": "all"}])
def test_a_digest_of_many_comments_is_one_email_that_counts_the_rest(guest: Guest) -> None:
    guest.fake_world.time = at("2026-11-18 12:20")
    for number in range(23):
        guest.comment(f"number {number}")
    sent = deliver_until(guest, at("2026-11-19 12:00"))
    assert sent == ["18 18:00 blog.example: comments of the day (23)"]
    guest.comment("one more")
    deliver_until(guest, at("2026-11-19 18:00"))
    (text,) = guest.texts(OWNER)
    assert text.startswith("Waiting for your decision: 21\n\n")  # the oldest, as far as they fit
    assert "And 1 more.\n" in text


PAGES = (PageRule("/photos/*", (CO_OWNER,)), PageRule("/quiet/*", ("nobody",)))


@pytest.mark.parametrize("settings", [DAILY])
def test_a_digest_has_what_readers_reported_above_what_is_only_new(guest: Guest) -> None:
    guest.fake_world.time = at("2026-11-18 12:20")
    guest.comment("only new")
    guest.report(guest.comment("reported"), "rude")
    deliver_until(guest, at("2026-11-18 18:00"))
    (text,) = guest.texts(OWNER)
    assert text.startswith("Waiting for your decision: 1\n\n")
    assert text.index("reported") < text.index("Published: 1\n") < text.index("only new")


@pytest.mark.parametrize("settings", [{**DAILY, "notify_pages": PAGES, "moderation_hold": "all"}])
def test_a_digest_goes_to_the_recipients_of_each_page(guest: Guest) -> None:
    guest.fake_world.time = at("2026-11-18 12:20")
    guest.comment("everywhere", page_url="/a/")
    guest.comment("a photo", page_url="/photos/1/")
    guest.comment("to nobody", page_url="/quiet/1/")
    assert len(deliver_until(guest, at("2026-11-18 18:00"))) == 2
    assert guest.quotes(OWNER) == [["everywhere"]]
    assert guest.quotes(CO_OWNER) == [["a photo"]]
    guest.comment("next", page_url="/a/")  # what waits elsewhere is for others
    assert len(deliver_until(guest, at("2026-11-19 18:00"))) == 1
    assert guest.quotes(OWNER) == [["next", "everywhere"]]


@pytest.mark.parametrize("settings", [DAILY])
def test_readers_hear_at_once_where_the_owner_has_a_digest(guest: Guest, ann: Reader) -> None:
    guest.fake_world.time = at("2026-11-18 12:20")
    mine = ann.comment("mine")
    guest.comment("a reply", parent_id=mine)
    guest.deliver()
    assert guest.recipients() == [ANN]


# Berlin leaves out 02:00 to 03:00 on 28 March 2027, and has that hour twice on 31 October.
@pytest.mark.parametrize(
    ("day_before", "hour", "shown"),
    [
        ("2027-03-27", "02:30", "28 03:30"),
        ("2027-03-27", "18:00", "28 18:00"),
        ("2027-10-30", "02:30", "31 02:30"),
        ("2027-10-30", "18:00", "31 18:00"),
    ],
)
def test_a_digest_comes_once_a_day_when_clocks_are_changed(
    start_app: StartApp, fake_world: FakeWorld, day_before: str, hour: str, shown: str
) -> None:
    hours, minutes = map(int, hour.split(":"))
    fake_world.time = at(f"{day_before} 19:00")
    with start_app(**{**DAILY, "notify_digest": Digest(60 * hours + minutes)}) as blog:
        blog.comment("one")
        sent = deliver_until(blog, fake_world.time + 30 * HOUR)
    assert sent == [f"{shown} blog.example: comments of the day (1)"]


@pytest.mark.parametrize("settings", [DAILY])
def test_a_digest_comes_when_the_clock_of_the_machine_was_wrong(guest: Guest) -> None:
    world = guest.fake_world
    world.time = at("2026-11-18 12:20")
    guest.comment("before")
    world.time += 400 * DAY  # the clock is far ahead, and then it is corrected
    guest.deliver()
    assert [email["Subject"] for email in guest.arrived()] == [
        "blog.example: comments of the day (1)"
    ]
    guest.comment("in the future")
    world.time -= 400 * DAY
    assert deliver_until(guest, at("2026-11-20 12:00")) == []
    guest.comment("after")
    world.time += 401 * DAY
    guest.forget()
    guest.deliver()
    assert sorted(guest.quotes(OWNER)[0]) == ["after", "in the future"]


def test_the_time_of_a_digest_can_be_changed_at_any_moment(
    start_app: StartApp, fake_world: FakeWorld
) -> None:
    fake_world.time = at("2026-11-18 12:20")
    with start_app(**DAILY) as blog:
        blog.comment("one")
        blog.deliver()
    with start_app(**{**DAILY, "notify_digest": Digest(12 * 60 + 30)}) as blog:
        assert len(deliver_until(blog, at("2026-11-18 12:30"))) == 1
        blog.comment("two")
        assert deliver_until(blog, at("2026-11-18 13:00")) == []
    with start_app(**{**DAILY, "notify_digest": None}) as blog:
        blog.forget()
        blog.deliver()
        assert blog.quotes(OWNER) == [["two"]]


# Quiet hours


def test_the_owner_sleeps_in_quiet_hours_and_readers_get_their_emails(
    start_app: StartApp, fake_world: FakeWorld
) -> None:
    fake_world.time = at("2026-11-18 21:50")
    with start_app(**QUIET) as blog:
        blog.comment("in the evening")
        blog.deliver()
        assert blog.quotes(OWNER) == [["in the evening"]]
        blog.comment("right after, so that it waits for ten minutes")
        deliver_until(blog, at("2026-11-18 23:00"))
        ann = blog.newcomer(ANN, "Ann")
        mine = ann.comment("at night")
        blog.comment("a reply", parent_id=mine)
        blog.forget()
        blog.deliver()
        assert blog.recipients() == [ANN]
    with start_app(**QUIET) as blog:
        assert deliver_until(blog, at("2026-11-19 07:50")) == []
        assert deliver_until(blog, at("2026-11-19 08:00")) == [
            "19 08:00 blog.example: 3 new comments"
        ]
        blog.comment("at noon")
        assert len(deliver_until(blog, at("2026-11-19 12:00"))) == 1


def test_quiet_hours_may_lie_within_a_day(start_app: StartApp, fake_world: FakeWorld) -> None:
    fake_world.time = at("2026-11-18 12:50")
    quiet = {**QUIET, "notify_quiet": QuietHours(13 * 60, 15 * 60)}
    with start_app(**quiet) as blog:
        deliver_until(blog, at("2026-11-18 13:00"))
        blog.comment("at the table")
        blog.forget()
        blog.deliver()
        assert blog.arrived() == []
        sent = deliver_until(blog, at("2026-11-18 18:00"))
    assert sent == ["18 15:00 New comment by “Ann” on “/2026/hello/”"]
