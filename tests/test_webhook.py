"""Webhooks: what a program or a chat of the owner is told, by real HTTP to servers of our own, and
who gets the letters of which pages."""

import base64
import hashlib
import hmac
import html
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import CANARY, PAGE, START, Outside, Visitor
from hypothesis import HealthCheck, example, given
from hypothesis import settings as how
from hypothesis import strategies as st
from test_admin import Judge, new_owner
from test_check import closed_port
from test_letters import BLOG, LETTERS, OWNER, SERVICE, USUAL, Reader, link_to, said, words_of
from test_mail import outbox
from test_settings import faults, load

import commentd
from commentd import App, Config, World, examine_settings, make_app, masked

MINUTE, HOUR, DAY = 60, 3600, 86400
KINDS = ("json", "slack", "discord", "telegram", "feishu")
CHATS = KINDS[1:]
PATHS = {
    "json": f"/hook/{CANARY}",
    "slack": f"/services/T0/B0/{CANARY}",
    "discord": f"/api/webhooks/1/{CANARY}",
    "telegram": f"/bot{CANARY}/sendMessage?chat_id=-100123",
    "feishu": f"/open-apis/bot/v2/hook/{CANARY}",
}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
ONLY_JSON, ALL_CHATS = (
    pytest.mark.parametrize("kind", ["json"]),
    pytest.mark.parametrize("kind", CHATS),
)
all_kinds = pytest.mark.parametrize("kind", KINDS)
HELD = pytest.mark.parametrize("more", [{"moderation_hold": "all"}])


@dataclass(frozen=True)
class Call:
    """What the hook was sent, and when the test's clock said so."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Talk(BaseHTTPRequestHandler):
    server: "Hook"

    def do_POST(self) -> None:
        hook = self.server
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        hook.calls.append(Call(self.command, self.path, headers, body, hook.now()))
        parts = hook.script.pop(0) if hook.script else hook.usual
        for part in [parts] if isinstance(parts, bytes) else parts:
            self.wfile.write(part)
            if hook.closing.wait(0 if isinstance(parts, bytes) else 0.05):
                break
        self.close_connection = True

    do_GET = do_POST

    def log_message(self, *words: object) -> None:
        """Nothing."""


class Hook(ThreadingHTTPServer):
    """The owner's program: what it was sent, and what it answers: `script` first, then `usual`."""

    daemon_threads = True

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__(("127.0.0.1", 0), Talk)
        self.now = now
        self.calls: list[Call] = []
        self.script: list[bytes | list[bytes]] = []
        self.usual: bytes | list[bytes] = OK
        self.closing = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side hung up."""


@pytest.fixture
def hook(outside: Outside) -> Iterator[Hook]:
    with Hook(lambda: outside.time) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.closing.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def kind() -> str:
    return "json"


@pytest.fixture
def more() -> dict[str, Any]:
    return {}


@pytest.fixture
def settings(hook: Hook, kind: str, more: dict[str, Any]) -> dict[str, Any]:
    told = {"webhook_url": hook.url + PATHS[kind], "webhook_kind": kind}
    return {**USUAL, **told, "notify_owner": ("nobody",), **more}


@pytest.fixture
def visitor(app: App) -> Reader:
    return Reader(app)


@pytest.fixture
def owner(app: App) -> Judge:
    return new_owner(app)


def report(visitor: Visitor, number: int, **fields: Any) -> None:
    visitor.post_json(f"/comments/{number}/report", fields)


def judge(owner: Visitor, number: int, status: str) -> None:
    owner.post_json("/admin/comments", {"ids": [number], "status": status})


def due(app: App) -> list[tuple[str, int | None]]:
    return [(row["recipient"], row["due_at"]) for row in outbox(app)]


# A program of one's own: Standard Webhooks


def verified(call: Call, secret: str, now: float) -> bool:
    """As a receiver checks it: github.com/standard-webhooks, "Verifying webhook authenticity"."""
    number, at = call.headers["webhook-id"], call.headers["webhook-timestamp"]
    key = secret.encode()
    if secret.startswith("whsec_"):
        key = base64.b64decode(secret[6:], validate=True)
    words = b".".join((number.encode(), at.encode(), call.body))
    right = base64.b64encode(hmac.new(key, words, hashlib.sha256).digest()).decode()
    signs = [sign.split(",", 1) for sign in call.headers["webhook-signature"].split(" ")]
    return ["v1", right] in signs and abs(now - int(at)) <= 5 * MINUTE


EXAMPLE_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_a_signature_is_judged_here_as_the_libraries_of_standard_webhooks_do() -> None:
    headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330"}
    headers["webhook-signature"] = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    call = Call("POST", "/", headers, b'{"test": 2432232314}', 0)
    assert verified(call, EXAMPLE_SECRET, 1614265330)
    assert not verified(replace(call, body=b'{"test": 2432232315}'), EXAMPLE_SECRET, 1614265330)


def test_a_program_is_told_of_a_comment_at_once(app: App, visitor: Reader, hook: Hook) -> None:
    content = "Two *lines*\n\n<script>alert(1)</script>"
    website = "https://lu.example/?a=1&b=2"
    fields = {"nickname": "Lu", "email": "lu@e.cn", "website": website, "lang": "de"}
    number = visitor.say(content, **fields)["comment"]["id"]
    app.deliver()
    (call,) = hook.calls
    assert (call.method, call.path) == ("POST", PATHS["json"])
    assert call.headers["content-type"] == "application/json"
    assert call.headers["host"] == hook.url.removeprefix("http://")
    assert int(call.headers["webhook-timestamp"]) == START
    assert re.fullmatch("msg_[0-9a-f]{32}", call.headers["webhook-id"])
    assert "webhook-signature" not in call.headers  # no secret is set
    data = call.json["data"]
    assert {name: call.json[name] for name in ("type", "timestamp")} == {
        "type": "comment.created",
        "timestamp": "2026-11-18T11:06:40Z",
    }
    links, markup = data.pop("links"), data.pop("html")
    assert data == {
        "id": number,
        "page_url": PAGE,
        "parent_id": None,
        "nickname": "Lu",
        "website": website,
        "content": content,
        "country": "",
        "location": "",
        "status": "visible",
        "held": "",
        "user_id": None,
        "language": "de",
        "ip": "203.0.113.0",
        "created_at": "2026-11-18T11:06:40Z",
        "reason": "",
        "link": f"{BLOG}{PAGE}#comment-{number}",
    }
    assert "<em>lines</em>" in markup
    assert "<script" not in markup
    assert [*links] == ["spam", "deleted"]
    assert outbox(app) == []


@pytest.mark.parametrize("ip", ["203.0.113.7", "2001:db8:12:34:56::7", "::ffff:203.0.113.7"])
@all_kinds
def test_neither_an_e_mail_nor_a_full_address_is_told(
    app: App, ann: Visitor, hook: Hook, ip: str, kind: str
) -> None:
    ann.extra_environ["REMOTE_ADDR"] = ip
    guest = Visitor(app, ip)
    ann.say("of an account")
    number = guest.say("of a guest", email="lu@e.cn")["comment"]["id"]
    report(guest, number, reason="look")
    app.deliver()
    assert len(hook.calls) == 3
    for call in hook.calls:
        everything = call.body.decode() + str(call.headers)
        hidden = ["ann@example.com", "lu@e.cn", "203.0.113.7", "2001:db8:12:34", CANARY]
        assert not [word for word in hidden if word in everything]
        assert kind != "json" or call.json["data"]["ip"] == masked(ip)


@pytest.mark.parametrize("secret", [EXAMPLE_SECRET, "a text of the owner's, 密"])
def test_what_a_program_is_told_is_signed(
    config: Config, outside: Outside, hook: Hook, secret: str
) -> None:
    changes = {**USUAL, "webhook_url": hook.url, "webhook_secret": secret}
    with closing(make_app(replace(config, **changes), outside.world)) as app:
        Visitor(app).say("你好 <b> & “quotes”", nickname="李")
        app.deliver()
    (call,) = hook.calls
    assert verified(call, secret, outside.time)
    assert not verified(call, secret + "BBBB", outside.time)
    assert not verified(replace(call, body=call.body + b" "), secret, outside.time)
    assert call.json["data"]["nickname"] == "李"


@HELD
def test_a_comment_that_waits_says_why_and_can_be_judged(
    app: App, visitor: Reader, hook: Hook
) -> None:
    number = said(visitor, "wait for me")
    app.deliver()
    data = hook.calls[0].json["data"]
    assert (data["status"], data["held"]) == ("waiting", "all")
    assert [*data["links"]] == ["visible", "spam", "deleted"]
    assert visitor.open(data["links"]["visible"]).told[0] == "Approve this comment?"
    assert visitor.listing()["total"] == 0
    assert visitor.press(data["links"]["visible"]).told[3] == "Undo"
    assert [c["id"] for c in visitor.listing()["comments"]] == [number]


@pytest.mark.parametrize("reason", ["", "rude to\neverybody"])
def test_a_report_is_told_with_its_reason(
    app: App, visitor: Reader, owner: Judge, hook: Hook, reason: str
) -> None:
    number = said(visitor, "fie")
    app.deliver()
    report(Visitor(app, "198.51.100.9"), number, reason=reason)
    app.deliver()
    created, reported = hook.calls
    assert reported.json["type"] == "comment.reported"
    assert reported.headers["webhook-id"] != created.headers["webhook-id"]
    data = reported.json["data"]
    assert (data["id"], data["status"]) == (number, "visible")
    assert data["reason"] == " ".join(reason.split())
    visitor.press(data["links"]["visible"])
    assert owner.get("/admin/comments", {"status": "reported"}).json["comments"] == []
    assert visitor.press(data["links"]["spam"]).told[3] == "Undo"
    assert visitor.listing()["total"] == 0


def test_the_same_visitors_second_report_is_not_told(app: App, visitor: Reader, hook: Hook) -> None:
    number = said(visitor, "fie")
    for _ in range(2):
        report(visitor, number, reason="x")
    app.deliver()
    assert [call.json["type"] for call in hook.calls] == ["comment.created", "comment.reported"]


def test_the_postman_is_called_for_each_call_of_a_hook(
    app: App, visitor: Reader, hook: Hook
) -> None:
    posted, number = app.house.posted, said(visitor, "hi")
    assert posted.is_set()
    posted.clear()
    report(visitor, number)
    assert posted.is_set()


def test_an_edit_that_makes_a_comment_wait_is_told_anew(
    config: Config, outside: Outside, hook: Hook
) -> None:
    changes = {**USUAL, "webhook_url": hook.url, "moderation_words": ("casino",)}
    with closing(make_app(replace(config, **changes), outside.world)) as app:
        visitor = Reader(app)
        told = visitor.say("fine")
        path, proof = f"/comments/{told['comment']['id']}", {"edit_token": told["edit_token"]}
        app.deliver()
        visitor.patch_json(path, {"content": "still fine", **proof})
        app.deliver()
        assert len(hook.calls) == 1
        visitor.patch_json(path, {"content": "a casino", **proof})
        app.deliver()
        first, second = hook.calls
        assert second.json["data"]["content"] == "a casino"
        assert second.json["data"]["held"] == "word: casino"
        assert second.headers["webhook-id"] != first.headers["webhook-id"]
        assert visitor.press(second.json["data"]["links"]["visible"]).told[3] == "Undo"


# What is not told


@HELD
def test_what_is_spam_by_a_block_is_not_told_when_it_is_edited(
    app: App, visitor: Reader, owner: Judge, hook: Hook
) -> None:
    owner.post_json("/admin/blocks", {"kind": "word", "value": "casino"})
    made = visitor.say("a casino")
    edit = {"content": "harmless", "edit_token": made["edit_token"]}
    visitor.patch_json(f"/comments/{made['comment']['id']}", edit)
    assert outbox(app) == []
    app.deliver()
    assert (hook.calls, outbox(app)) == ([], [])


def test_what_is_spam_by_a_block_is_not_told(
    app: App, visitor: Reader, owner: Judge, hook: Hook
) -> None:
    owner.post_json("/admin/blocks", {"kind": "word", "value": "casino"})
    assert visitor.say("a casino")["comment"]["status"] == "waiting"  # as it looks to its author
    assert outbox(app) == []
    app.deliver()
    assert (hook.calls, outbox(app)) == ([], [])


def test_what_the_owner_writes_is_not_told(
    app: App, visitor: Reader, owner: Judge, hook: Hook
) -> None:
    number = said(visitor, "hi")
    app.deliver()
    owner.widget.say("from the blog", nickname="")
    owner.post_json("/admin/reply", {"parent_id": number, "content": "from the desk"})
    app.deliver()
    assert [call.json["data"]["id"] for call in hook.calls] == [number]


@pytest.mark.parametrize("status", ["spam", "deleted"])
def test_what_was_hidden_before_it_was_told_is_not_told(
    app: App, visitor: Reader, owner: Judge, hook: Hook, status: str
) -> None:
    number = said(visitor, "hi")
    report(visitor, number)
    judge(owner, number, status)
    app.deliver()
    assert (hook.calls, outbox(app)) == ([], [])


def test_what_its_author_took_back_is_not_told(app: App, visitor: Reader, hook: Hook) -> None:
    told = visitor.say("hi")
    path, proof = f"/comments/{told['comment']['id']}", {"edit_token": told["edit_token"]}
    visitor.delete_json(path, proof)
    app.deliver()
    assert (hook.calls, outbox(app)) == ([], [])


@pytest.mark.parametrize("more", [{"webhook_url": ""}])
def test_without_an_address_nothing_is_kept_for_it(app: App, visitor: Reader, hook: Hook) -> None:
    report(visitor, said(visitor, "hi"))
    assert outbox(app) == []


# Faults of the other side


def test_a_call_is_tried_for_a_day_with_one_id_and_fresh_times(
    config: Config, outside: Outside, hook: Hook
) -> None:
    changes = {**USUAL, "webhook_url": hook.url, "webhook_secret": EXAMPLE_SECRET}
    hook.usual = BUSY
    with closing(make_app(replace(config, **changes), outside.world)) as app:
        Visitor(app).say("hi")
        app.deliver()
        while (next_due := app.house.store.next_due()) is not None:
            outside.time = next_due
            app.deliver()
        assert len(outbox(app)) == 1  # given up, and kept for the owner
    assert len({call.headers["webhook-id"] for call in hook.calls}) == 1
    assert len({call.body for call in hook.calls}) == 1
    assert all(verified(call, EXAMPLE_SECRET, call.at) for call in hook.calls)
    assert [int(call.headers["webhook-timestamp"]) for call in hook.calls] == [
        call.at for call in hook.calls
    ]
    times = [int(call.at) - START for call in hook.calls]
    assert times[:9] == [0, 5, 20, 65, 200, 605, 1820, 5420, 9020]
    assert {b - a for a, b in pairwise(times[7:])} == {HOUR}
    assert DAY - HOUR <= times[-1] < DAY
    assert outside.time == START + DAY


def test_what_was_given_up_can_be_tried_again_or_dropped_by_the_owner(
    app: App, visitor: Reader, owner: Judge, hook: Hook, outside: Outside
) -> None:
    hook.usual = b"HTTP/1.1 404 " + CANARY.encode() + b"\r\nContent-Length: 3\r\n\r\nno!"
    numbers = [said(visitor, content) for content in "ab"]
    app.deliver()
    assert len(hook.calls) == 2
    letters = owner.get("/admin/outbox").json["letters"]
    assert {letter["recipient"] for letter in letters} == {"webhook"}
    assert letters[-1]["failure"] == "WebhookRefused 404"
    assert letters[-1]["can_retry"] is True
    outside.time += DAY
    app.deliver()
    assert {due_at for _, due_at in due(app)} == {None}
    letters = owner.get("/admin/outbox").json["letters"]
    assert [letter["failure"] for letter in letters] == ["expired", "expired"]
    hook.usual, told = OK, len(hook.calls)
    assert owner.delete_json(f"/admin/outbox/{letters[0]['id']}", {}).json == {"success": True}
    assert owner.post_json(f"/admin/outbox/{letters[1]['id']}", {}).json == {"success": True}
    app.deliver()
    (call,) = hook.calls[told:]
    assert call.json["data"]["id"] == numbers[0]
    assert int(call.headers["webhook-timestamp"]) == outside.time
    assert owner.get("/admin/outbox").json["letters"] == []


def test_of_what_is_gone_for_good_no_call_that_was_given_up_is_kept(
    app: App, visitor: Reader, owner: Judge, hook: Hook, outside: Outside
) -> None:
    hook.usual = BUSY
    told = visitor.say("words that shall go")
    app.deliver()
    outside.time += DAY
    app.deliver()
    assert due(app) == [("webhook", None)]
    judge(owner, told["comment"]["id"], "deleted")
    outside.time += 31 * DAY
    app.tick()
    assert outbox(app) == []


REFUSALS: dict[str, bytes] = {
    "nothing": b"",
    "no HTTP": b"hello\r\n\r\n",
    "half a word": b"HTTP/1.1 20",
    "a word for a status": b"HTTP/1.1 yes OK\r\n\r\n",
    "only that it goes on": b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
    "not there": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
    "gone": b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
    "too many": b"HTTP/1.1 429 Slow\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n",
    "a fault": b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",
    "not modified": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "another version": b"HTTP/2.0 505 No\r\nContent-Length: 0\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
    "too many lines": b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
    "no address": b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n",
}


@pytest.mark.parametrize("answer", REFUSALS)
def test_whatever_is_no_yes_is_tried_again(
    app: App, visitor: Reader, hook: Hook, outside: Outside, answer: str
) -> None:
    hook.script = [REFUSALS[answer]]
    said(visitor, "hi")
    app.deliver()
    (row,) = outbox(app)
    assert (row["tries"], row["due_at"]) == (1, START + 5)
    assert row["failure"]
    outside.time += 5
    app.deliver()
    assert (len(hook.calls), outbox(app)) == (2, [])


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        b"HTTP/1.1 200 OK\r\n\r\nwithout a length",
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nno!",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"a page" * 100_000,  # its status is all that counts
    ],
)
def test_a_yes_of_any_kind_is_one(app: App, visitor: Reader, hook: Hook, answer: bytes) -> None:
    hook.script = [answer]
    said(visitor, "hi")
    app.deliver()
    assert (len(hook.calls), outbox(app)) == (1, [])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_sent_elsewhere(app: App, visitor: Reader, hook: Hook, status: int) -> None:
    answer = f"HTTP/1.1 {status} Go\r\nLocation: {hook.url}/elsewhere\r\nContent-Length: 0\r\n\r\n"
    hook.script = [answer.encode()]
    said(visitor, "hi")
    app.deliver()
    assert [call.path for call in hook.calls] == [PATHS["json"]]
    assert outbox(app)[0]["failure"] == f"ConnectionError {status}"


@pytest.mark.slow
def test_who_drips_is_hung_up_on(app: App, visitor: Reader, hook: Hook) -> None:
    """It would take a minute."""
    hook.script = [[b"HTTP/1.1", *[b" "] * 1200, b"200 OK\r\n\r\n"]]
    said(visitor, "hi")
    app.deliver()
    assert outbox(app)[0]["tries"] == 1


def test_a_dead_hook_holds_back_no_code(
    app: App, visitor: Reader, hook: Hook, outside: Outside
) -> None:
    hook.usual = BUSY
    numbers = [said(visitor, str(n)) for n in range(20)]
    visitor.register()
    app.deliver()
    assert outside.code()
    assert len(hook.calls) == 1  # the others wait with it
    hook.usual = OK
    outside.time += 5
    app.deliver()
    assert {call.json["data"]["id"] for call in hook.calls[1:]} == {*numbers}
    assert len(hook.calls) == 21
    assert outbox(app) == []


def test_a_call_that_is_refused_for_itself_holds_back_no_other(
    app: App, visitor: Reader, hook: Hook, outside: Outside
) -> None:
    """After an outage, all calls are due at once."""
    numbers = [said(visitor, content) for content in ("refused", "a", "b")]
    hook.usual = BUSY
    for later in (0, 5, 15):
        outside.time += later
        app.deliver()
    hook.script, told = [], len(hook.calls)
    while outside.time < START + HOUR:
        hook.usual = OK
        row = outbox(app)[0]
        if row["due_at"] and row["due_at"] <= outside.time and row["comment_id"] == numbers[0]:
            hook.usual = BUSY
        app.deliver()
        outside.time = app.house.store.next_due() or START + HOUR
    assert {call.json["data"]["id"] for call in hook.calls[told:]} == {*numbers}
    assert due(app)[0][0] == "webhook"
    assert len(outbox(app)) == 1


def test_a_call_that_is_refused_for_good_holds_back_no_other(
    app: App, visitor: Reader, hook: Hook, outside: Outside
) -> None:
    said(visitor, "refused")
    hook.usual = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
    app.deliver()
    outside.time += 5
    hook.script = [hook.usual]
    hook.usual = OK
    number = said(visitor, "fine")
    app.deliver()
    assert hook.calls[-1].json["data"]["id"] == number
    assert len(outbox(app)) == 1


def test_a_call_that_waits_holds_no_text_of_a_comment(
    app: App, visitor: Reader, hook: Hook, outside: Outside
) -> None:
    hook.usual = BUSY
    made = visitor.say("CANARY words", lang="en")
    app.deliver()
    (waiting,) = outbox(app)
    assert "CANARY" not in str(waiting)
    visitor.patch_json("/comments/1", {"content": "new", "edit_token": made["edit_token"]})
    hook.usual = OK
    outside.time += 5
    app.deliver()
    assert hook.calls[-1].json["data"]["content"] == "new"
    hook.usual = BUSY
    made = visitor.say("more")
    app.deliver()
    visitor.delete_json("/comments/2", {"edit_token": made["edit_token"]})
    assert outbox(app) == []


def test_where_nobody_listens_comments_are_taken_and_letters_go(
    config: Config, outside: Outside
) -> None:
    url = f"http://127.0.0.1:{closed_port()}/hook"
    changes = {**USUAL, "webhook_url": url, "notify_owner": (OWNER,)}
    with closing(make_app(replace(config, **changes), outside.world)) as app:
        visitor = Reader(app)
        said(visitor, "hi")
        app.deliver()
        assert visitor.listing()["total"] == 1
        assert [letter.recipient for letter in outside.letters] == [OWNER]
        assert outbox(app)[0]["failure"].startswith("ConnectionRefusedError")


def test_after_a_kill_at_the_worst_moment_a_call_comes_again_with_its_id(
    config: Config, outside: Outside, hook: Hook
) -> None:
    class Killed(BaseException):
        """As SIGKILL is: nothing is done any more."""

    def fetch(*words: Any, **named: Any) -> tuple[int, bytes]:
        commentd.fetch(*words, **named)
        raise Killed

    changed = replace(config, **USUAL, webhook_url=hook.url)
    app = make_app(changed, replace(outside.world, fetch=fetch))
    Visitor(app).say("hi")
    with pytest.raises(Killed):
        app.deliver()
    app.close()
    outside.time += 5
    with closing(make_app(changed, outside.world)) as app:
        app.deliver()
        assert outbox(app) == []
    first, second = hook.calls
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body


@all_kinds
def test_no_secret_gets_into_a_log_or_onto_the_owners_page(
    config: Config, outside: Outside, hook: Hook, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    hook.usual = b"HTTP/1.1 500 " + CANARY.encode() + b"\r\nContent-Length: 0\r\n\r\n"
    secret = f"{CANARY} of the hook"
    changes = {"webhook_url": hook.url + PATHS[kind], "webhook_kind": kind}
    changed = replace(config, **USUAL, **changes, webhook_secret=secret)
    with closing(make_app(changed, outside.world, rounds=1)) as app:
        owner = new_owner(app)
        said(Reader(app), "hi")
        app.deliver()
        outside.time += DAY
        app.deliver()
        told = owner.get("/admin/settings").text + owner.get("/admin/outbox").text
        assert '"(hidden)"' in told
        assert CANARY not in told + caplog.text + str([f.text for f in examine_settings(changed)])
        assert "expired" in caplog.text


# What chats are told


def only(call: Call, kind: str) -> str:
    """What a chat shows, of the shape that its maker asks for; fails for any other."""
    return SHAPES[kind](call.json)


LINK = rf"(?:{re.escape(SERVICE)}/mail\?[\w=&-]*|{re.escape(BLOG)}/[^\s<>|]*#comment-\d+)"
LABEL = r"[^<>\[\]()|{}]+"


def slack(body: Any) -> str:
    """docs.slack.dev/reference/block-kit: 3000 characters a text, & < > escaped in mrkdwn."""
    assert {*body} == {"text", "blocks"}
    assert not re.search("[<>]|&(?!amp;|lt;|gt;)", body["text"])
    bare, *links = body["blocks"]
    assert {*bare} == {"type", "text"}
    assert (bare["type"], bare["text"]["type"]) == ("section", "plain_text")
    assert 1 <= len(bare["text"]["text"]) <= 3000
    for block in links:
        assert (block["type"], block["text"]["type"]) == ("section", "mrkdwn")
        assert len(block["text"]["text"]) <= 3000
        assert not re.search("&(?!amp;|lt;|gt;)", block["text"]["text"])
        for link in block["text"]["text"].split(" · "):
            url = re.fullmatch(rf"<([^<>|]+)\|{LABEL}>", link)
            assert url
            assert re.fullmatch(LINK, html.unescape(url[1]))
    assert len(links) <= 1
    assert bare["text"]["text"].startswith(html.unescape(body["text"]) + "\n")
    return str(bare["text"]["text"]).partition("\n")[2]


MARKS = r"\\*_~`|<>\[\]()#@:-"


def discord(body: Any) -> str:
    """docs.discord.com/developers: 256 and 4096 characters; no mention is parsed."""
    assert {*body} == {"embeds", "allowed_mentions"}
    assert body["allowed_mentions"] == {"parse": []}
    (embed,) = body["embeds"]
    assert {*embed} == {"title", "description"}
    assert 1 <= len(embed["title"]) <= 256
    assert 1 <= len(embed["description"]) <= 4096
    text, _, links = embed["description"].rpartition("\n\n")
    assert re.fullmatch(rf"(?s:(?:\\[{MARKS}]|[^{MARKS}])*)", text)  # no mark without its escape
    for link in links.split(" · ") if links else ():
        assert re.fullmatch(rf"\[{LABEL}\]\({LINK}\)", link), link
    return re.sub(r"\\(.)", r"\1", text)


def telegram(body: Any) -> str:
    """core.telegram.org/bots/api#sendmessage: 4096 units of UTF-16; no parse_mode."""
    assert {*body} <= {"chat_id", "text", "link_preview_options", "reply_markup"}
    assert body["chat_id"] == "-100123"
    assert body["link_preview_options"] == {"is_disabled": True}
    assert 1 <= len(body["text"].encode("utf-16-le")) // 2 <= 4096
    for row in body.get("reply_markup", {}).get("inline_keyboard", []):
        for button in row:
            assert {*button} == {"text", "url"}
            assert re.fullmatch(LABEL, button["text"])
            assert re.fullmatch(LINK, button["url"])
    text = re.sub(rf"\n[^\n]+: {LINK}\Z", "", body["text"])  # to the page of the comment
    return text.partition("\n\n")[2]


def feishu(body: Any) -> str:
    """open.feishu.cn, custom bots: a post of texts and links; 20 KB."""
    assert {*body} - {"timestamp", "sign"} == {"msg_type", "content"}
    assert body["msg_type"] == "post"
    assert [*body["content"]] == ["post"]
    assert [*body["content"]["post"]] == ["zh_cn"]
    post = body["content"]["post"]["zh_cn"]
    assert {*post} == {"title", "content"}
    ((text,), *links) = post["content"]
    assert {*text} == {"tag", "text"}
    assert text["tag"] == "text"
    for link in chain(*links):
        assert {*link} == {"tag", "text", "href"}
        assert link["tag"] == "a"
        assert re.fullmatch(LINK, link["href"])
    return str(text["text"])


SHAPES: dict[str, Callable[[Any], str]] = {
    "slack": slack,
    "discord": discord,
    "telegram": telegram,
    "feishu": feishu,
}


def links_of(call: Call) -> list[str]:
    """Every link of ours in a body, whatever the chat calls it."""
    text = json.dumps(call.json, ensure_ascii=False).replace("&amp;", "&")
    return re.findall(rf"{re.escape(SERVICE)}/mail\?[\w=&-]+", text)


HOSTILE = [
    "<!channel> <!everyone> <@U012AB3CD> <#C1> <https://evil.example|Approve>",
    "@everyone @here <@1> <@&2> <t:0:R> [Approve](https://evil.example) **x** `y` ||z|| # big",
    "> quote\n- list\n1. one\n-# small\n```\ncode\n```\n~~no~~ __yes__ https://evil.example",
    '<at user_id="all">everyone</at> <a href="https://evil.example">x</a> <b>&amp;</b>',
    "/start @somebody #tag t.me/evil *b* _i_ [t](tg://user?id=1) \\",
    "{held} {0} %s %(x)s {{title}}",
    "\u202eevil\u202c \u2028 \u2066x\u2069 e\u0301 \ufffe 👩‍👩‍👧",
]


@pytest.mark.parametrize("content", HOSTILE)
@ALL_CHATS
def test_a_chat_shows_what_was_written_as_it_was_written(
    app: App, visitor: Reader, hook: Hook, kind: str, content: str
) -> None:
    said(visitor, content, nickname="<!here> @all *Lu*")
    app.deliver()
    assert only(hook.calls[0], kind) == f"<!here> @all *Lu*\n\n{content}"
    assert [words_of(link)["do"] for link in links_of(hook.calls[0])] == ["spam", "deleted"]
    assert outbox(app) == []


@HELD
@ALL_CHATS
def test_a_chat_says_why_a_comment_waits(app: App, visitor: Reader, hook: Hook, kind: str) -> None:
    said(visitor, "hi")
    app.deliver()
    assert only(hook.calls[0], kind) == "Ann (waits for approval: all comments do)\n\nhi"
    links = links_of(hook.calls[0])
    assert [words_of(link)["do"] for link in links] == ["visible", "spam", "deleted"]
    for link in links:
        assert visitor.open(link).told[2] == "hi"
    visitor.press(links[0])
    assert visitor.listing()["total"] == 1


@ALL_CHATS
def test_a_chat_is_told_of_a_report(app: App, visitor: Reader, hook: Hook, kind: str) -> None:
    number = said(visitor, "fie")
    app.deliver()
    report(visitor, number, reason="<!channel> [x](https://evil.example)\n\nrude")
    app.deliver()
    shown = only(hook.calls[1], kind)
    reason = "<!channel> [x](https://evil.example) rude"
    assert shown == f"Ann (reported by a reader: {reason})\n\nfie"
    report(Visitor(app, "198.51.100.9"), number)
    app.deliver()
    nothing = LETTERS["en"]["report_none"]
    assert only(hook.calls[2], kind) == f"Ann (reported by a reader: {nothing})\n\nfie"


@pytest.mark.parametrize("more", [{"comments_max_length": 10_000}])
@pytest.mark.parametrize("letter", ["x", "界", "😀", "\n. ", "&"])
@ALL_CHATS
def test_a_long_comment_is_cut_to_what_a_chat_takes(
    app: App, visitor: Reader, hook: Hook, kind: str, letter: str
) -> None:
    content = (letter * 2000)[:1999] + "."
    said(visitor, content, nickname="😀" * 64, page_url="/" + "p" * 400)
    app.deliver()
    shown = only(hook.calls[0], kind)
    assert shown == f"{'😀' * 64}\n\n{content.strip()[:1000]} …"
    assert len(hook.calls[0].body) < 20_000


@pytest.mark.parametrize("more", [{"server_public_url": f"https://{'c' * 60}.example/{'p' * 60}"}])
@ALL_CHATS
def test_with_all_that_a_stranger_may_write_a_chat_is_told_no_more_than_it_takes(
    app: App, visitor: Reader, hook: Hook, kind: str
) -> None:
    marks = {"nickname": "*" * 64, "page_url": "/" + "*" * 400}
    report(visitor, said(visitor, "*" * 1000, **marks), reason="\\" * 500)
    app.deliver()
    for call in hook.calls:
        body = call.body.replace(app.house.config.server_public_url.encode(), SERVICE.encode())
        assert only(replace(call, body=body), kind).startswith("*" * 64)
        longest = max(map(len, re.findall(r'"((?:[^"\\]|\\.)*)"', call.body.decode())))
        assert kind != "discord" or len(call.json["embeds"][0]["description"]) <= 4096 < longest


PAGES = ["/<!channel>", "/x|Approve", '/a b"c', "/[x]", "/@everyone", "/你好", "//evil.example/"]
PAGES += ["/x)[Approve](https://evil.example/a", "/(x)", "/\\)[x](y)"]
PAGES += ["javascript:alert(1)", "a key", "https://evil.example/?x=<b>", "/x]*y*", "/&lt;"]


@pytest.mark.parametrize("page_url", PAGES)
@ALL_CHATS
def test_the_address_of_a_page_is_no_markup_either(
    app: App, visitor: Reader, hook: Hook, kind: str, page_url: str
) -> None:
    said(visitor, "hi", page_url=page_url)
    app.deliver()
    call = hook.calls[0]
    if page_url.startswith("https://evil"):  # the owner may look there, and is told so
        assert "a page that is not your blog" in call.body.decode()
        call = replace(call, body=call.body.replace(b"https://evil.example/", BLOG.encode() + b"/"))
    assert only(call, kind) == "Ann\n\nhi"


@ALL_CHATS
@given(content=st.text(min_size=1, max_size=400), nickname=st.text(min_size=1, max_size=20))
@example(content="\x00", nickname="\ud800")
@example(content="a" * 399 + "\\", nickname="\\")
@how(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_that_is_taken_breaks_the_shape(
    app: App, visitor: Reader, hook: Hook, kind: str, content: str, nickname: str
) -> None:
    body = {"page_url": PAGE, "nickname": nickname, "content": content, "captcha_token": "x"}
    raw = json.dumps(body).encode()
    told = visitor.post("/comments", raw, content_type="application/json", status="*")
    hook.calls.clear()
    app.deliver()
    if told.status_int == 200:
        kept = told.json["comment"]
        assert only(hook.calls[0], kind) == f"{kept['nickname']}\n\n{kept['content']}"
    else:
        assert hook.calls == []


@pytest.mark.parametrize("kind", ["telegram"])
@pytest.mark.parametrize(
    ("more", "buttons"),
    [({}, 2), *[({"server_public_url": url}, 0) for url in ("http://localhost:8080", "http://x")]],
)
def test_telegram_is_asked_for_no_button_that_it_may_refuse(
    app: App, visitor: Reader, hook: Hook, buttons: int
) -> None:
    """Its servers refuse the whole message for a link to a host without a dot."""
    said(visitor, "hi", page_url="http://x/")
    app.deliver()
    body = hook.calls[0].json
    keys = [key["url"] for (key,) in body.get("reply_markup", {}).get("inline_keyboard", [])]
    assert len(keys) == buttons
    assert not [url for url in keys if "http://x" in url]
    assert "http://x/#comment-1" in body["text"]
    links = re.findall(rf"{re.escape(app.house.config.server_public_url)}/mail\S+", body["text"])
    assert len(links) == 2 - buttons


@pytest.mark.parametrize("language", sorted(LETTERS))
@ALL_CHATS
def test_a_chat_is_spoken_to_in_the_owners_language(
    config: Config, outside: Outside, hook: Hook, kind: str, language: str
) -> None:
    changes = {"webhook_url": hook.url + PATHS[kind], "webhook_kind": kind}
    changes |= {"notify_language": language, "moderation_hold": "all"}
    with closing(make_app(replace(config, **USUAL, **changes), outside.world)) as app:
        visitor, words = Reader(app), LETTERS[language]
        number = said(visitor, "hi", lang="fr")
        app.deliver()
        call = hook.calls[0]
        state = words["hook_waiting"].format(held=words["held_all"])
        assert only(call, kind) == f"Ann ({state})\n\nhi"
        text = json.dumps(call.json, ensure_ascii=False)
        subject = words["owner_subject"].format(site="blog.example", page=PAGE)
        assert subject in html.unescape(text)
        for do in ("visible", "spam", "deleted"):
            assert words[f"button_{do}"] in text
        assert {words_of(link)["lang"] for link in links_of(call)} == {language}
        assert {words_of(link)["id"] for link in links_of(call)} == {str(number)}


@pytest.mark.parametrize("more", [{"server_public_url": "", "site_origins": ()}])
@all_kinds
def test_where_readers_cannot_reach_us_there_are_no_links(
    app: App, visitor: Reader, hook: Hook, kind: str
) -> None:
    said(visitor, "hi")
    app.deliver()
    (call,) = hook.calls
    assert "http" not in call.body.decode()
    if kind == "json":
        assert (call.json["data"]["links"], call.json["data"]["link"]) == ({}, "")
    else:
        assert only(replace(call, body=call.body), kind) == "Ann\n\nhi"


# Feishu


@pytest.mark.parametrize("kind", ["feishu"])
@pytest.mark.parametrize("more", [{"webhook_secret": CANARY}])
def test_feishu_is_shown_a_fresh_signature_at_each_try(
    app: App, visitor: Reader, hook: Hook, outside: Outside
) -> None:
    hook.script = [BUSY]
    said(visitor, "hi")
    app.deliver()
    outside.time += 5
    app.deliver()
    first, second = (call.json for call in hook.calls)
    for body, now in ((first, START), (second, START + 5)):
        # As its documents do: nothing, hashed with the time and the secret as the key.
        key = f"{now}\n{CANARY}".encode()
        right = base64.b64encode(hmac.new(key, digestmod=hashlib.sha256).digest()).decode()
        assert (body["timestamp"], body["sign"]) == (str(now), right)
    assert first["content"] == second["content"]
    assert only(hook.calls[1], "feishu") == "Ann\n\nhi"


@pytest.mark.parametrize("kind", ["feishu"])
@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        ('{"StatusCode": 0, "StatusMessage": "success", "code": 0, "data": {}}', ""),
        ('{"code":0}', ""),
        ('{"code": 19021, "msg": "sign match fail"}', "ConnectionError 200 19021"),
        ('{"code":9499,"msg":"Bad Request","data":{}}', "ConnectionError 200 9499"),
    ],
)
def test_feishu_says_no_with_a_200(
    app: App, visitor: Reader, hook: Hook, answer: str, failure: str
) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(answer)}"
    hook.script = [f"{head}\r\n\r\n{answer}".encode()]
    said(visitor, "hi")
    app.deliver()
    assert [row["failure"] for row in outbox(app)] == ([failure] if failure else [])
    assert "sign" not in hook.calls[0].json  # where no secret is set


# The links


@pytest.mark.parametrize("owners", [(), (OWNER,), ("nobody",), ("co@blog.example", OWNER)])
@pytest.mark.parametrize("kind", ["json", "slack"])
def test_links_judge_for_whoever_owns_the_blog(
    config: Config, outside: Outside, hook: Hook, kind: str, owners: tuple[str, ...]
) -> None:
    changes = {"webhook_url": hook.url + PATHS[kind], "webhook_kind": kind}
    changes |= {"notify_owner": owners, "moderation_hold": "all"}
    with closing(make_app(replace(config, **USUAL, **changes), outside.world)) as app:
        visitor = Reader(app)
        number = said(visitor, "hi")
        app.deliver()
        for do, status in (("visible", 1), ("spam", 0), ("visible", 1), ("deleted", 0)):
            link = link_to(do, " ".join(links_of(hook.calls[0])))
            visitor.open(link)
            before = visitor.listing()["total"]
            undo = visitor.press(link)
            assert (before, visitor.listing()["total"]) == (1 - status, status)
            assert visitor.press(link).told == undo.told  # twice is once
        comment = app.house.store.comment(number)
        assert comment
        assert comment.status == "deleted"


def test_links_in_calls_end_with_the_hook(config: Config, outside: Outside, hook: Hook) -> None:
    changed = replace(config, **USUAL, webhook_url=hook.url, notify_owner=(OWNER,))
    with closing(make_app(changed, outside.world)) as app:
        said(Reader(app), "hi")
        app.deliver()
    link = links_of(hook.calls[0])[0]
    with closing(make_app(replace(changed, webhook_url=""), outside.world)) as app:
        reader = Reader(app)
        reader.press(link, status=403)
        assert reader.listing()["total"] == 1


def test_a_link_in_a_call_is_shown_the_text_anew_when_it_was_edited(
    app: App, visitor: Reader, hook: Hook
) -> None:
    told = visitor.say("first")
    app.deliver()
    path, proof = f"/comments/{told['comment']['id']}", {"edit_token": told["edit_token"]}
    visitor.patch_json(path, {"content": "second", **proof})
    link = hook.calls[0].json["data"]["links"]["spam"]
    assert visitor.press(link, status=409).told[2] == "second"
    assert visitor.listing()["total"] == 1


# Settings


@pytest.mark.parametrize(
    "text",
    [
        "kind = teams",
        "url = ftp://hook.example/",
        "url = hook.example/x",
        "url = https://user:word@hook.example/",
        "url = https://hook.example/a b",
        "url = https://hook.example:99999/",
        "secret = whsec_not base64",
        "secret = whsec_abc",
        "secret = whsec_",
        "url = https://api.telegram.org/botx/sendMessage\nkind = telegram",
        "url = https://api.telegram.org/botx/sendMessage?chat_id=\nkind = telegram",
        "url = https://api.telegram.org/botx/sendMessage?x_chat_id=5\nkind = telegram",
        "url = https://api.telegram.org/botx/sendMessage#?chat_id=5\nkind = telegram",
    ],
)
def test_a_webhook_that_cannot_work_stops_the_start(tmp_path: Path, text: str) -> None:
    (fault,) = faults(tmp_path / "commentd.ini", f"[webhook]\n{text}\n")
    assert "[webhook]" in fault or "webhook" in fault
    assert "not base64" not in fault


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("kind = Feishu", "webhook_kind", "feishu"),
        ("url = https://hooks.slack.com/services/T/B/x", "webhook_url", ...),
        ("url = http://127.0.0.1:8081/?a=b&c=%20d#e", "webhook_url", ...),
        (f"secret = {EXAMPLE_SECRET}", "webhook_secret", EXAMPLE_SECRET),
        ("secret = 100% mine; a = b", "webhook_secret", "100% mine; a = b"),
    ],
)
def test_a_webhook_is_read_from_the_file(tmp_path: Path, text: str, name: str, value: Any) -> None:
    config = load(tmp_path / "commentd.ini", f"[webhook]\n{text}\n")
    assert getattr(config, name) == (text.partition(" = ")[2] if value is ... else value)


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("http://hook.example/x", "http"),
        ("http://localhost/x", "localhost"),
        ("https://localhost:8443/x", "localhost"),
        ("https://127.0.0.1/x", "127.0.0.1"),
        ("https://10.1.2.3/x", "10.1.2.3"),
        ("https://[::1]/x", "::1"),
        ("https://[fd00::1]:1/x", "fd00::1"),
        ("https://169.254.169.254/latest", "169.254.169.254"),
    ],
)
def test_the_doctor_warns_of_a_hook_that_is_near_or_in_clear(url: str, word: str) -> None:
    found = [f for f in examine_settings(Config(webhook_url=url)) if f.topic == "webhook"]
    assert [finding.level for finding in found] == ["warn"]
    assert word in found[0].text
    assert "/x" not in found[0].text


@pytest.mark.parametrize("url", ["", "https://hook.example/x", "https://93.184.215.14/x"])
def test_the_doctor_has_nothing_to_say_of_a_hook_on_the_open_internet(url: str) -> None:
    assert not [f for f in examine_settings(Config(webhook_url=url)) if f.topic == "webhook"]


# Who gets the letters of a page

RULES = """
/photos/* = ann@example.com, bob@example.com
/photos/private/* = carl@example.com
/quiet = nobody
*.pdf?v=* = dora@example.com
/日记/* = Emil@Example.com
"""
TO = {
    "/photos/1": ["ann@example.com", "bob@example.com"],
    "/photos/": ["ann@example.com", "bob@example.com"],
    "/photos/private/2": ["ann@example.com", "bob@example.com"],  # the first that fits
    "/photos": ["ann@example.com", "bob@example.com"],
    "/old/photos/1": [OWNER],
    "/quiet": [],
    "/quiet/not": [OWNER],
    "/a/b.pdf?v=2": ["dora@example.com"],
    "/a/bxpdf?v=2": [OWNER],
    "/%E6%97%A5%E8%AE%B0/x": ["emil@example.com"],
    "/日记/x": ["emil@example.com"],
    # Whoever comments first chooses the spelling.
    "https://blog.example/photos/1": ["ann@example.com", "bob@example.com"],
    "//BLOG.example/%70hotos/1/#x": ["ann@example.com", "bob@example.com"],
    "https://other.example/photos/1": [OWNER],
    "/quiet/index.html?utm_source=x": [],
}


@pytest.mark.parametrize("page_url", TO)
def test_the_letters_of_a_page_go_to_whom_the_first_rule_names(
    config: Config, outside: Outside, page_url: str
) -> None:
    rules = commentd.page_rules(RULES)
    changed = replace(config, **USUAL, notify_owner=(OWNER,), notify_pages=rules)
    with closing(make_app(changed, outside.world)) as app:
        visitor = Reader(app)
        number = said(visitor, "hi", page_url=page_url)
        app.deliver()
        assert [letter.recipient for letter in outside.letters] == TO[page_url]
        for letter in range(len(outside.letters)):
            spam = link_to("spam", outside.text(letter))
            visitor.open(spam)
        if outside.letters:
            visitor.press(link_to("deleted", outside.text()))
            assert not visitor.listing(url=page_url)["total"]
        else:
            assert app.house.store.comment(number)


def test_one_letter_of_many_pages_holds_for_each_what_is_his(
    config: Config, outside: Outside
) -> None:
    rules = commentd.page_rules(RULES)
    changed = replace(config, **USUAL, notify_owner=(OWNER,), notify_pages=rules)
    with closing(make_app(changed, outside.world)) as app:
        visitor = Reader(app)
        for page_url, content in (("/photos/1", "a photo"), ("/x", "a text"), ("/quiet", "hush")):
            said(visitor, content, page_url=page_url)
        app.deliver()
        told = {x.recipient: outside.text(n) for n, x in enumerate(outside.letters)}
        assert {*told} == {OWNER, "ann@example.com", "bob@example.com"}
        for to, text in told.items():
            assert ("a photo" in text, "a text" in text) == (to != OWNER, to == OWNER)
            assert "hush" not in text


def test_who_is_not_named_for_a_page_cannot_judge_there_by_an_older_letter(
    config: Config, outside: Outside
) -> None:
    changed = replace(config, **USUAL, notify_owner=(OWNER,))
    with closing(make_app(changed, outside.world)) as app:
        said(Reader(app), "hi", page_url="/photos/1")
        app.deliver()
    link = link_to("deleted", outside.text())
    changed = replace(changed, notify_pages=commentd.page_rules("/photos/* = ann@example.com"))
    with closing(make_app(changed, outside.world)) as app:
        reader = Reader(app)
        reader.press(link, status=403)
        assert reader.listing(url="/photos/1")["total"] == 1


def test_no_page_makes_a_rule_step_back(config: Config, outside: Outside) -> None:
    """Else this would not come to an end."""
    rules = commentd.page_rules(f"{'*/' * 30}x = ann@example.com")
    changed = replace(config, **USUAL, notify_owner=(OWNER,), notify_pages=rules)
    with closing(make_app(changed, outside.world)) as app:
        said(Reader(app), "hi", page_url="/" * 2000 + "?x")
        app.deliver()
    assert [letter.recipient for letter in outside.letters] == [OWNER]


def test_a_rule_knows_no_marks_but_the_star(config: Config, outside: Outside) -> None:
    rules = commentd.page_rules("/[ab]?/*.x = ann@example.com")
    changed = replace(config, **USUAL, notify_owner=(OWNER,), notify_pages=rules)
    with closing(make_app(changed, outside.world)) as app:
        for page_url in ("/a1/b.x", "/[ab]?/b.x", "/[ab]?/b.xx"):
            said(Reader(app), "hi", page_url=page_url)
        app.deliver()
        told = {x.recipient: outside.text(n) for n, x in enumerate(outside.letters)}
    assert "/[ab]?/b.x”" in told["ann@example.com"]
    assert "/a1/b.x" in told[OWNER]
    assert "/[ab]?/b.xx" in told[OWNER]
    assert "b.xx" not in told["ann@example.com"]


def test_rules_stand_a_line_each_in_the_file_and_in_the_environment(tmp_path: Path) -> None:
    lines = RULES.strip().splitlines()
    rules = (
        "/photos/* = ann@example.com, bob@example.com",
        "/photos/private/* = carl@example.com",
        "/quiet = nobody",
        "*.pdf?v=* = dora@example.com",
        "/日记/* = emil@example.com",
    )
    text = "[notify]\npages =\n" + "\n".join(f"  {line}" for line in lines)
    assert load(tmp_path / "commentd.ini", text).notify_pages == rules
    assert load(tmp_path / "commentd.ini", "", COMMENTD_NOTIFY_PAGES=RULES).notify_pages == rules


@pytest.mark.parametrize("line", ["/photos/*", "= ann@example.com", "/x =", "/x = ann", "/x = a b"])
def test_a_line_that_is_no_rule_stops_the_start(tmp_path: Path, line: str) -> None:
    text = f"[notify]\npages = /a = ann@example.com\n  {line}\n"
    (fault,) = faults(tmp_path / "commentd.ini", text)
    assert "pages" in fault


def test_the_worlds_fetch_is_what_calls_a_hook() -> None:
    """So that a test may stand between."""
    assert World().fetch is commentd.fetch


@HELD
def test_an_edit_that_waits_calls_the_postman(app: App, visitor: Reader, hook: Hook) -> None:
    told = visitor.say("hi")
    app.house.posted.clear()
    form = {"content": "ho", "edit_token": told["edit_token"]}
    visitor.patch_json(f"/comments/{told['comment']['id']}", form)
    assert app.house.posted.is_set()
