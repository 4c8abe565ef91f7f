"""The outbox: nobody reads the codes in it, fills it with words of their own, or holds it up."""

import sqlite3
from smtplib import SMTPResponseException
from typing import Any

import pytest

from commentd import App
from support import inside
from support.admin import do, drop, ids
from support.admin import owner as owner  # a fixture
from support.client import Visitor, stranger
from support.notifications import link_to
from support.world import START, FakeWorld

MINUTE, HOUR, DAY = 60, 3600, 86400
BLOG, ANN, LU = "https://blog.example", "ann@example.com", "lu@example.cn"
USUAL: dict[str, Any] = {
    "limits_enabled": False,
    "notify_owner": ("nobody",),
    "server_public_url": "https://comments.example",
    "site_origins": (BLOG,),
}
REFUSED = ConnectionRefusedError(111, "Connection refused")


@pytest.fixture
def settings() -> dict[str, Any]:
    return USUAL


def confirm_replies(visitor: Visitor, app: App, fake_world: FakeWorld, email: str) -> None:
    """An address whose owner wants to know of replies."""
    mine = visitor.say(email=email, page_url="/first/")["comment"]["id"]
    visitor.say("answer", parent_id=mine, page_url="/first/")
    app.deliver()
    link = link_to("confirm", fake_world.text())
    stranger(app).post(f"/mail?{link.partition('?')[2]}")
    for _ in range(2):
        fake_world.time += HOUR
        app.deliver()
    fake_world.emails.clear()


def test_an_admin_reads_nobodys_code_in_the_outbox_and_does_not_lengthen_its_life(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    fake_world.mail_fails_with = REFUSED
    visitor.register(LU)
    visitor.register(ANN)
    app.deliver()
    answer = owner.get("/admin/outbox")
    shown = [(x["recipient"], x["subject"], x["can_retry"]) for x in answer.json["emails"]]
    assert sorted(shown) == [(ANN, "", False), (LU, "", False)]
    for stuck in ids(answer.json, "emails"):
        assert do(owner, f"outbox/{stuck}", 404)["code"] == "email_gone"
    fake_world.mail_fails_with = None
    fake_world.time += HOUR / 10
    app.deliver()
    assert len(fake_world.emails) == 2
    assert [fake_world.code(n) for n in (0, 1) if fake_world.code(n) in answer.text] == []
    fake_world.mail_fails_with = REFUSED
    visitor.register("late@example.com")
    app.deliver()
    fake_world.mail_fails_with = None
    fake_world.time += 610
    app.deliver()
    app.tick()
    assert len(fake_world.emails) == 2
    assert {*db.execute("SELECT code FROM registration")} == {("",)}
    assert db.execute("SELECT subject, text FROM outbox").fetchall() == [("", "")]


@pytest.mark.parametrize(("seconds_left", "count"), [(1, 1), (0, 0)])
def test_a_code_is_sent_while_it_is_good(
    app: App, visitor: Visitor, fake_world: FakeWorld, seconds_left: int, count: int
) -> None:
    fake_world.mail_fails_with = OSError("down")
    visitor.register()
    app.deliver()
    fake_world.mail_fails_with = None
    [(expires_at,)] = inside.sql(app, "SELECT expires_at FROM outbox")
    assert expires_at == START + 10 * MINUTE
    fake_world.time = expires_at - seconds_left
    app.deliver()
    assert len(fake_world.emails) == count


def test_an_email_that_has_left_since_it_was_looked_up_is_not_sent_again(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    visitor.register(ANN)
    inside.just_before_it_writes(app, app.deliver)
    app.deliver()
    assert [email.recipient for email in fake_world.emails] == [ANN]


@pytest.mark.parametrize("erased_one", ["the answer", "what is answered"])
def test_an_undelivered_email_keeps_nothing_that_its_author_erased(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld, erased_one: str, db: Any
) -> None:
    confirm_replies(visitor, app, fake_world, ANN)
    mine = visitor.say("my secret", email=ANN)
    answer = visitor.say("a secret too", parent_id=mine["comment"]["id"], nickname="Lu")
    fake_world.mail_fails_with = SMTPResponseException(550, b"no")
    app.deliver()
    assert [x["can_retry"] for x in owner.get("/admin/outbox").json["emails"]] == [True]
    erased = answer if erased_one == "the answer" else mine
    form = {"edit_token": erased["edit_token"]}
    visitor.delete_json(f"/comments/{erased['comment']['id']}", form)
    assert db.execute("SELECT * FROM outbox").fetchall() == []


@pytest.mark.parametrize("settings", [{**USUAL, "notify_owner": ("owner@blog.example",)}])
def test_an_email_whose_comment_is_erased_as_it_is_to_be_sent_is_not_sent(
    visitor: Visitor, app: App, fake_world: FakeWorld, db: sqlite3.Connection
) -> None:
    fake_world.mail_fails_with = REFUSED
    made = visitor.say("a slip")
    app.deliver()
    assert db.execute("SELECT tries FROM outbox").fetchall() == [(1,)]
    fake_world.mail_fails_with = None
    fake_world.time += MINUTE
    form = {"edit_token": made["edit_token"]}
    inside.just_before_it_writes(app, lambda: visitor.delete_json("/comments/1", form))
    app.deliver()
    assert fake_world.emails == []
    assert db.execute("SELECT * FROM outbox").fetchall() == []


@pytest.mark.slow
def test_many_replies_hold_up_nobodys_emails(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    for email in (LU, ANN):
        confirm_replies(visitor, app, fake_world, email)
    client = stranger(app)  # faster than a visitor, who looks at the whole file
    for number in range(220):
        fields = {"nickname": "Lu", "captcha_token": "x", "email": LU, "page_url": f"/{number}/"}
        above = client.post_json("/comments", {**fields, "content": "q"}).json["comment"]["id"]
        answer = {"nickname": "Eve", "email": "", "content": "a", "parent_id": above}
        client.post_json("/comments", {**fields, **answer})
    app.deliver()
    fake_world.time += 20 * MINUTE
    mine = visitor.say("Ann's", email=ANN)["comment"]["id"]
    visitor.say("to Ann", parent_id=mine)
    for _ in range(10):
        fake_world.time += MINUTE
        app.deliver()
    assert [email.recipient for email in fake_world.emails if email.recipient == ANN] == [ANN]


@pytest.mark.parametrize(
    "page_url",
    [
        "https://evil.example/login",
        "https://evil.example/" + "x" * 1500,
        "your account. It was locked: open https://evil.example/unlock within 24 hours. —",
        "//evil.example/",
        "/see https://evil.example/",
    ],
)
def test_no_page_name_is_email_text(
    visitor: Visitor, app: App, fake_world: FakeWorld, page_url: str
) -> None:
    confirm_replies(visitor, app, fake_world, ANN)
    mine = visitor.say(page_url=page_url, email=ANN)["comment"]["id"]
    visitor.say("please sign in", page_url=page_url, nickname="Security", parent_id=mine)
    app.deliver()
    (email,) = fake_world.emails
    head, _, _ = email.message.partition("\n\n")
    assert email.recipient == ANN
    assert "evil" not in head
    assert not [word for word in fake_world.text().split() if word.startswith("https://evil")]
    assert "locked" not in fake_world.text()


def test_strangers_get_thirty_emails_an_hour(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    above = None
    for number in range(45):
        email = f"victim{number}@example.com"
        above = visitor.say(f"{number}", email=email, parent_id=above)["comment"]["id"]
    app.deliver()
    assert len({email.recipient for email in fake_world.emails}) == len(fake_world.emails) == 30
    fake_world.time += HOUR
    visitor.say("in another hour", parent_id=above)  # who was not asked can be
    app.deliver()
    assert fake_world.emails[-1].recipient == "victim44@example.com"
    assert len(fake_world.emails) == 31


def test_an_outbox_row_shown_before_drops_no_email_that_waits_now(
    visitor: Visitor, owner: Visitor, app: App, fake_world: FakeWorld
) -> None:
    fake_world.mail_fails_with = REFUSED
    visitor.register(ANN)
    app.deliver()
    (stuck,) = owner.get("/admin/outbox").json["emails"]
    fake_world.mail_fails_with = None
    fake_world.time += MINUTE
    app.deliver()
    fake_world.emails.clear()
    Visitor(app, ip="192.0.2.1").register(LU)
    assert drop(owner, f"outbox/{stuck['id']}", 404)["code"] == "email_gone"
    assert do(owner, f"outbox/{stuck['id']}", 404)["code"] == "email_gone"
    app.deliver()
    assert [email.recipient for email in fake_world.emails] == [LU]
