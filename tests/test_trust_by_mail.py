"""Trust by a button in an email, and a comment that its holder confirms."""

import pytest

from commentd import App
from support import inside
from support.admin import do, queue
from support.client import CANARY
from support.notifications import NAMED, OWNER, TO_NOBODY, USUAL, Guest, Reader, link_to
from support.notifications import ann as ann  # a fixture
from support.notifications import guest as guest  # a fixture
from support.notifications import owner as owner  # a fixture
from support.notifications import start_app as start_app  # a fixture

LU = "lu@example.com"


@pytest.mark.parametrize("settings", [{**USUAL, "moderation_hold": "all"}])
def test_trust_is_a_button_in_the_email_about_a_comment_of_an_account(
    guest: Guest, ann: Reader, owner: Reader
) -> None:
    ann.comment(content="one")
    guest.deliver()
    [text] = guest.texts(OWNER)
    link = link_to("trust", text)
    guest.press(link)
    assert guest.sql("SELECT status FROM comment") == [("visible",)]
    assert len(guest.sql("SELECT * FROM trusted")) == 1
    guest.press(link.replace("do=trust", "do=distrust"))
    assert guest.sql("SELECT * FROM trusted") == []
    guest.press(link)
    ann.comment(content="two")
    assert guest.sql("SELECT status FROM comment WHERE content = 'two'") == [("visible",)]


@pytest.mark.parametrize("settings", [{**TO_NOBODY, "moderation_hold": "all"}])
def test_trust_in_an_email_address_shows_a_comment_once_its_holder_confirms(
    guest: Guest, owner: Reader
) -> None:
    guest.comment(content="one", email=LU)
    do(owner, "comments", ids=[1], trusted=True)
    guest.comment(content="two", email=LU)
    assert queue(owner, status="waiting")["comments"][0]["held"] == "email"
    guest.deliver()
    texts = [text for text in guest.texts(LU) if "do=mine" in text]
    guest.press(link_to("mine", texts[0]))
    assert guest.sql("SELECT status FROM comment") == [("visible",), ("visible",)]


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "all"}])
def test_trust_is_no_button_for_a_moderator_who_gets_emails_about_comments(
    guest: Guest, ann: Reader, app: App
) -> None:
    inside.add_account(app, OWNER, "Mo", CANARY, "moderator")
    ann.comment(content="one")
    guest.deliver()
    [text] = guest.texts(OWNER)
    assert "do=trust" not in text
    guest.press(link_to("visible", text))
    assert guest.sql("SELECT status FROM comment") == [("visible",)]


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "all"}])
def test_trust_is_refused_to_a_moderator_whose_email_came_before_the_role(
    guest: Guest, ann: Reader, app: App
) -> None:
    ann.comment(content="one")
    guest.deliver()
    [text] = guest.texts(OWNER)
    inside.add_account(app, OWNER, "Mo", CANARY, "moderator")
    guest.press(link_to("trust", text), 403)
    assert guest.sql("SELECT status FROM comment") == [("waiting",)]
    assert guest.sql("SELECT * FROM trusted") == []


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_words": ["email: lu@"]}])
def test_words_of_an_email_address_are_not_in_the_email_about_a_comment_that_has_it(
    guest: Guest,
) -> None:
    guest.comment(content="one", email=LU)
    guest.deliver()
    [text] = guest.texts(OWNER)
    assert "the word “email: …”" in text
    assert "lu@" not in text


@pytest.mark.parametrize("settings", [{**NAMED, "moderation_hold": "all"}])
def test_trust_in_an_author_who_has_left_is_refused_on_a_page(guest: Guest, ann: Reader) -> None:
    ann.comment(content="one")
    guest.deliver()
    [text] = guest.texts(OWNER)
    link = link_to("trust", text)
    ann.delete_json("/me", {"password": CANARY, "comments": "keep"})
    shown = guest.open(link)  # the name is gone, so the comment is shown again
    refused = guest.press(link.partition("?")[0] + shown.action, 409)
    assert refused.title.startswith("This link is incomplete or has expired.")
    assert guest.sql("SELECT * FROM trusted") == []
