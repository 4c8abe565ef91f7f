"""Trust by a button in an email, and a comment that its holder confirms."""

import pytest

from support.admin import do, queue
from support.notifications import OWNER, TO_NOBODY, USUAL, Guest, Reader, link_to
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
