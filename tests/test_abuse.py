"""What an attacker must not get: the codes of others, rights that were taken away, emails of ours
with their own words, the approval of another text, and what is known of an email address."""

import functools
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from smtplib import SMTPResponseException
from typing import Any

import pytest
import webtest

import commentd
from commentd import App, Config, main, make_app
from support.admin import block, change, do, drop, ids, new_admin, queue
from support.admin import owner as owner  # a fixture
from support.client import CANARY, PAGE, Visitor
from support.database import assert_whole
from support.inside import admin_link, database_path, just_before_it_writes, token_of, writer
from support.notifications import link_to
from support.world import FakeWorld

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


def plain_client(app: App, like: Visitor | None = None) -> webtest.TestApp:
    """A client that may be used while others write."""
    client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "192.0.2.9"})
    client.authorization = like and like.authorization
    return client


def confirm_replies(visitor: Visitor, app: App, fake_world: FakeWorld, email: str) -> None:
    """An address whose owner wants to know of replies."""
    mine = visitor.say(email=email, page_url="/first/")["comment"]["id"]
    visitor.say("answer", parent_id=mine, page_url="/first/")
    app.deliver()
    link = link_to("confirm", fake_world.text())
    plain_client(app).post(f"/mail?{link.partition('?')[2]}")
    for _ in range(2):
        fake_world.time += HOUR
        app.deliver()
    fake_world.emails.clear()


# Other people's codes


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


# Emails


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


@pytest.mark.slow
def test_many_replies_hold_up_nobodys_emails(
    visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    for email in (LU, ANN):
        confirm_replies(visitor, app, fake_world, email)
    client = plain_client(app)  # faster than a visitor, who looks at the whole file
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


# Rights that were taken away


def test_a_link_for_an_admin_ends_with_the_role(visitor: Visitor, owner: Visitor, app: App) -> None:
    new_admin(app, "b@example.com", "Bo")
    admin, widget = (token_of(app, "b@example.com", use) for use in ("admin", "login"))
    link = admin_link(app, "b@example.com")
    change(owner, "users/2", role="user", password=CANARY)
    change(owner, "users/2", blocked=True)
    claim = {"link": link, "nickname": "Bo", "password": CANARY}
    assert do(visitor, "claim", 403, **claim)["code"] == "link_invalid"
    change(owner, "users/2", blocked=False)
    change(owner, "users/2", role="admin", password=CANARY)
    for path, token in (("/admin/comments", admin), (f"/comments/waiting?url={PAGE}", widget)):
        headers = {"Authorization": f"Bearer {token}"}
        assert visitor.get(path, headers=headers, status=401).json["code"] == "token_invalid"


def test_a_restore_brings_back_neither_a_used_link_nor_the_token_of_a_lost_account(
    config: Config, fake_world: FakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, copy = Path(config.database_path), tmp_path / "copy.db"
    form = {"nickname": "Owner", "password": CANARY}
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        form["link"] = admin_link(app, "owner@example.com")
        with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(copy)) as saved:
            db.backup(saved)
        bob = Visitor(app)
        bob.register()
        app.deliver()
        bob.verify(fake_world.code())
        token = bob.login()["token"]
        do(Visitor(app), "claim", **form)
    fake_world.time += HOUR
    monkeypatch.setenv("COMMENTD_DATABASE_PATH", str(path))
    assert main(["restore", str(copy)]) == 0
    with closing(make_app(config, fake_world.world, rounds=1)) as app:
        assert do(Visitor(app), "claim", 403, **form)["code"] == "link_invalid"
        new_admin(app, "eve@example.com")  # who gets the number of an account that was lost
        header = {"Authorization": f"Bearer {token}"}
        assert (
            plain_client(app).get("/me", headers=header, status=401).json["code"] == "token_invalid"
        )
    assert_whole(str(path))


# What is moderated is what was read


def test_an_edit_or_deletion_by_the_author_stays_while_the_owner_corrects_the_comment(
    visitor: Visitor, owner: Visitor, app: App, db: sqlite3.Connection
) -> None:
    posted = [visitor.say(text, website="https://lu.example/") for text in ("hello", "one", "two")]
    erase, edit, later = ({"edit_token": each["edit_token"]} for each in posted)
    just_before_it_writes(app, lambda: plain_client(app).delete_json("/comments/1", erase))
    form = {"content": "better", "nickname": "Lu", "website": "https://lu.example/"}
    answer = plain_client(app, owner).patch_json("/admin/comments/1", form, status=404)
    assert answer.json["code"] == "comment_gone"
    row = "SELECT status, nickname, content, html, website, ip FROM comment WHERE id = 1"
    assert db.execute(row).fetchall() == [("deleted", *[""] * 5)]
    form = {"content": "hello, world", **edit}
    just_before_it_writes(app, lambda: plain_client(app).patch_json("/comments/2", form))
    plain_client(app, owner).patch_json("/admin/comments/2", {"nickname": "Lu"})
    (_, found) = visitor.listing()["comments"]
    assert (found["nickname"], found["content"]) == ("Lu", "hello, world")
    change(owner, "comments/3", nickname="Bobby")  # its author may still edit and delete
    edited = visitor.patch_json("/comments/3", {**later, "content": "three"}).json["comment"]
    assert (edited["nickname"], edited["content"]) == ("Bobby", "three")
    visitor.delete_json("/comments/3", later)
    assert ids(visitor.listing()) == [2]


@pytest.mark.parametrize("settings", [{**USUAL, "moderation_hold": "all"}])
def test_a_comment_edited_since_the_owner_read_it_is_not_approved(
    visitor: Visitor, owner: Visitor
) -> None:
    mine = [visitor.say(text) for text in ("one", "two")]
    read = {c["id"]: c["version"] for c in queue(owner, status="waiting")["comments"]}
    blogs = owner.widget.get("/comments/waiting", {"url": PAGE}).json["comments"]
    assert {c["id"]: c["version"] for c in blogs} == read
    evil = {"content": "https://casino.example/", "edit_token": mine[0]["edit_token"]}
    visitor.patch_json("/comments/1", evil)
    form = {"status": "visible", "version": read[1]}
    refused = owner.widget.post_json("/comments/1/moderate", form, status=409)
    assert refused.json["code"] == "text_changed"
    versions = {"ids": [1, 2], "versions": [read[1], read[2]]}
    response = do(owner, "comments", **versions, status="visible")
    assert (response["changed"], ids(response)) == ([1], [2])
    assert ids(visitor.listing()) == [2]
    response = do(owner, "comments", **versions, status="spam")  # whatever it says now
    assert (response["changed"], ids(response)) == ([], [1, 2])
    (fresh,) = (c["version"] for c in queue(owner)["comments"] if c["id"] == 1)
    do(owner, "comments", ids=[1], versions=[fresh], status="visible")
    assert ids(visitor.listing()) == [1]


@pytest.mark.parametrize(
    "text", ["via\u034fgra", "via\ufe0fgra", "via\u115fgra", "via**gr**a", "via[gr](https://x.cn)a"]
)
@pytest.mark.parametrize("settings", [{**USUAL, "moderation_words": ("casino",)}])
def test_blocked_words_are_found_as_readers_read_them(
    visitor: Visitor, owner: Visitor, text: str
) -> None:
    block(owner, "word", "viagra")
    visitor.say(text)
    visitor.say(
        text.replace("via", "ca").replace("gr", "sin").replace("a", "o").replace("co", "ca")
    )
    found = [(c["status"], c["held"]) for c in queue(owner)["comments"]]
    assert found == [("waiting", "word: casino"), ("spam", "block: viagra")]


# One does not stop the others


def test_one_backup_is_downloaded_at_a_time_and_no_file_is_left(
    owner: Visitor, app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, again = commentd.back_up_to, list[Any]()
    before = {*tmp_path.iterdir()}

    def copied(*args: Any, **how: Any) -> Path:
        form = {"password": CANARY}
        second = plain_client(app, owner).post_json("/admin/backup", form, status=503)
        again.append((second.status_int, second.json["code"]))
        return made(*args, **how)

    monkeypatch.setattr(commentd, "back_up_to", copied)
    for _ in range(2):
        owner.post_json("/admin/backup", {"password": CANARY})
    assert again == [(503, "storage")] * 2
    assert {*tmp_path.iterdir()} == before


def test_a_start_removes_files_that_a_kill_left_and_nothing_of_another_blog(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    left = [tmp_path / ".a.db.download", tmp_path / "..a.db.download.part"]
    others = [tmp_path / ".blog-a.db.download", tmp_path / "..blog-a.db.download.part"]
    for copy in (*left, *others):
        copy.write_bytes(b"half")
    make_app(Config(database_path=str(path)), rounds=1).close()
    assert [copy for copy in (*left, *others) if copy.exists()] == others


@pytest.mark.parametrize(
    "settings", [{"limits_enabled": False, "webhook_url": "https://hook.example/"}]
)
@pytest.mark.parametrize(
    ("kind", "value"), [("address", "198.51.100.9"), ("address", "198.51.100.8/30"), ("email", LU)]
)
def test_the_reason_a_comment_was_held_reveals_no_email_or_ip_address(
    visitor: Visitor,
    owner: Visitor,
    app: App,
    db: sqlite3.Connection,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    value: str,
) -> None:
    block(owner, kind, value)
    number = Visitor(app, "198.51.100.9").say("hi", email=LU)["comment"]["id"]
    do(owner, "comments", ids=[number], status="visible")
    visitor.post_json(f"/comments/{number}/report", {"reason": "rude"})
    (call,) = db.execute("SELECT text FROM outbox WHERE recipient = 'webhook'").fetchone()
    monkeypatch.setenv("COMMENTD_DATABASE_PATH", database_path(app))
    assert main(["export", "commentd"]) == 0
    printed = capsys.readouterr().out + call
    assert "hi" in printed
    (held,) = db.execute("SELECT held FROM comment").fetchone()
    assert held.startswith("block: ")
    for word in ("198.51.100.8", "198.51.100.9", LU):
        assert word not in printed + held


def test_the_version_of_a_comment_is_all_of_its_hash(visitor: Visitor, owner: Visitor) -> None:
    """Of a part of it, an author could look for two texts that have the same, and have the one
    approved that nobody read."""
    visitor.say()
    (comment,) = queue(owner)["comments"]
    assert len(comment["version"]) * 4 == 256


def test_a_failed_sign_in_is_in_the_log(
    owner: Visitor, app: App, caplog: pytest.LogCaptureFixture
) -> None:
    form = {"email": "owner@example.com", "password": "wrong", "captcha_token": "x"}
    plain_client(app).post_json("/admin/login", form, status=401)
    assert [record.getMessage() for record in caplog.records] == [
        "a sign-in at /admin failed, from 192.0.2.0"
    ]


# What is known of an address


def transactions_that_wrote(app: App, ask: Callable[[], object]) -> list[bool]:
    """Of each transaction, whether it wrote: only then its end waits for the disk."""
    connection, marks = writer(app), list[tuple[str, int]]()
    connection.set_trace_callback(lambda sql: marks.append((sql[:6], connection.total_changes)))
    ask()
    connection.set_trace_callback(None)
    ends = [rows for sql, rows in marks if sql in ("BEGIN ", "COMMIT", "ROLLBA")]
    return [after > before for before, after in zip(ends[::2], ends[1::2], strict=True)]


@pytest.mark.parametrize("settings", [{**USUAL, "limits_enabled": True}])
@pytest.mark.parametrize(
    ("path", "status", "writes"),
    [
        ("/auth/login", 401, [True]),
        ("/admin/login", 401, [True]),
        ("/auth/verify", 400, [True]),
        ("/auth/register", 200, [True, True]),
    ],
)
def test_sign_in_routes_write_as_much_for_known_and_unknown_email_addresses(
    visitor: Visitor,
    app: App,
    fake_world: FakeWorld,
    db: sqlite3.Connection,
    path: str,
    status: int,
    writes: list[bool],
) -> None:
    for email in (ANN, "blocked@example.com"):
        visitor.register(email)
        app.deliver()
        visitor.verify(fake_world.code(), email)
    db.execute("UPDATE account SET blocked = 1 WHERE email <> ?", (ANN,))
    for number in range(3):  # as many as may wait
        Visitor(app, ip=f"192.0.2.{number}").register(LU)
    app.deliver()
    codes = [fake_world.code(number) for number in range(len(fake_world.emails))]
    assert "000000" not in codes
    form = {"nickname": "N", "password": "wrong one", "token": "000000", "captcha_token": "x"}
    known = {}
    for number, email in enumerate((ANN, "blocked@example.com", LU, "nobody@example.com"), 10):
        stranger = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": f"192.0.2.{number}"})
        body = {**form, "email": email}
        ask = functools.partial(stranger.post_json, path, body, status=status)
        known[email] = transactions_that_wrote(app, ask)
    assert known == dict.fromkeys(known, writes)


def test_no_visitor_names_a_page_on_a_host_that_is_not_the_owners(visitor: Visitor) -> None:
    """Otherwise the first request for a page could name it for ever as one of another site."""
    evil = {"Origin": "https://evil.example"}
    visitor.get("/comments", {"url": f"https://evil.example{PAGE}"}, headers=evil)
    visitor.served.tick()
    assert visitor.say()["comment"]["page_url"] == PAGE
    pages = [comment["page_url"] for comment in visitor.get("/comments/latest").json["comments"]]
    assert pages == [PAGE]


def test_a_waiting_password_confirms_nothing(app: App, ann: Visitor, fake_world: FakeWorld) -> None:
    """Otherwise a stolen token takes the account: register its address with another password."""
    fake_world.time += 120
    Visitor(app, "198.51.100.9").register(password="a stranger's own")
    body = {"new_password": "taken over", "password": "a stranger's own"}
    assert ann.patch_json("/me", body, status=403).json["code"] == "wrong_password"
    body = {"comments": "delete", "password": "a stranger's own"}
    assert ann.delete_json("/me", body, status=403).json["code"] == "wrong_password"


def test_nested_quotes_do_not_make_a_text_much_longer(visitor: Visitor) -> None:
    """Each character of nested quotes can become seventeen, and lists hold a thousand comments."""
    text = (">" * 6 + " a\n\n") * 199
    shown = visitor.say(text)["comment"]["html"]
    assert len(shown) <= 10 * len(text) + 1000
    assert "blockquote" not in shown
    assert "blockquote" in visitor.say("> a quote")["comment"]["html"]
