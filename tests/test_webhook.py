"""Webhooks: what the program, or the chat, in the section `[webhook]` is told, by real HTTP to
servers of our own. `test_chats.py` has the sections `[chat.NAME]`."""

import base64
import hashlib
import hmac
import html
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from http.server import BaseHTTPRequestHandler
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest

from commentd import QuietHours, load_config
from support import inside
from support.admin import moderate
from support.client import CANARY, PAGE
from support.local_servers import LocalHTTPServer, served
from support.mail import MailServer
from support.mail import start_mail_server as start_mail_server  # a fixture
from support.notifications import (
    ANN,
    BLOG,
    EMAIL_TEXTS,
    OWNER,
    SERVICE,
    Guest,
    PlainReader,
    Reader,
    StartApp,
    claim,
    signed_in,
    words_of,
)
from support.notifications import start_app as start_app  # a fixture
from support.service import services
from support.serving import until
from support.world import START, FakeWorld

MINUTE, HOUR, DAY = 60, 3600, 86400
PATHS = {
    "json": f"/hook/{CANARY}",
    "slack": f"/services/T0/B0/{CANARY}",
    "discord": f"/api/webhooks/1/{CANARY}",
    "telegram": f"/bot{CANARY}/sendMessage?chat_id=-100123",
    "feishu": f"/open-apis/bot/v2/hook/{CANARY}",
}
CHATS = [*PATHS][1:]
# Each of them takes this for a yes.
OK = b'HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\n{"ok": true, "code": 0}'
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"


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

    @property
    def data(self) -> Any:
        return self.json["data"]

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


class WebhookHandler(BaseHTTPRequestHandler):
    server: "WebhookServer"

    def do_POST(self) -> None:
        webhook = self.server
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        webhook.calls.append(Call(self.command, self.path, headers, body, webhook.now()))
        parts = webhook.script.pop(0) if webhook.script else webhook.usual
        for part in [parts] if isinstance(parts, bytes) else parts:
            self.wfile.write(part)
            if webhook.closing.wait(0 if isinstance(parts, bytes) else 0.05):
                break
        self.close_connection = True

    do_GET = do_POST

    def log_message(self, *words: object) -> None:
        """Nothing."""


class WebhookServer(LocalHTTPServer):
    """The owner's program: what it was sent, and what it answers: `script` first, then `usual`."""

    daemon_threads = True

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__(("127.0.0.1", 0), WebhookHandler)
        self.now = now
        self.calls: list[Call] = []
        self.script: list[bytes] = []
        self.usual: bytes | list[bytes] = OK  # in parts: with a pause after each
        self.closing = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side hung up."""


@pytest.fixture
def webhook(fake_world: FakeWorld) -> Iterator[WebhookServer]:
    with served(WebhookServer(lambda: fake_world.time)) as server:
        yield server
        server.closing.set()


StartWithWebhook = Callable[..., AbstractContextManager[Guest]]


@pytest.fixture
def start_with_webhook(start_app: StartApp, webhook: WebhookServer) -> StartWithWebhook:
    """Starts the service with a hook of a kind."""

    @contextmanager
    def told(kind: str = "json", **settings: Any) -> Iterator[Guest]:
        webhook.calls.clear()
        usual = {"webhook_url": webhook.url + PATHS[kind], "webhook_kind": kind}
        with start_app(**{"notify_owner": ("nobody",), **usual, **settings}) as guest:
            yield guest

    return told


@pytest.fixture
def guest(start_with_webhook: StartWithWebhook) -> Iterator[Guest]:
    with start_with_webhook() as guest:
        yield guest


def other_guest(guest: Guest) -> Reader:
    """A guest at another IP address."""
    return Reader(guest.served, "198.51.100.9")


def owner_client(guest: Guest) -> PlainReader:
    """The owner, whose requests nothing is compared for."""
    owner = PlainReader(guest.served)
    inside.add_account(guest.served, OWNER, "Owner", "x", "admin")
    owner.authorization = ("Bearer", inside.token_of(guest.served, OWNER, "admin"))
    return owner


# A program of one's own: Standard Webhooks


def verified(call: Call, secret: str, now: float) -> bool:
    """As a receiver checks it: github.com/standard-webhooks, "Verifying webhook authenticity"."""
    at = call.headers["webhook-timestamp"]
    key = secret.encode()
    if secret.startswith("whsec_"):
        key = base64.b64decode(secret[6:], validate=True)
    words = b".".join((call.id.encode(), at.encode(), call.body))
    right = base64.b64encode(hmac.new(key, words, hashlib.sha256).digest()).decode()
    signs = [sign.split(",", 1) for sign in call.headers["webhook-signature"].split(" ")]
    return ["v1", right] in signs and abs(now - int(at)) <= 5 * MINUTE


EXAMPLE_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_a_webhook_is_called_for_a_new_comment(guest: Guest, webhook: WebhookServer) -> None:
    content = "Two *lines*\n\n<script>alert(1)</script>"
    website = "https://lu.example/?a=1&b=2"
    number = guest.comment(content, nickname="Lu", email="lu@e.cn", website=website, lang="de")
    guest.deliver()
    (call,) = webhook.calls
    assert (call.method, call.path) == ("POST", PATHS["json"])
    assert call.headers["content-type"] == "application/json"
    assert call.headers["host"] == webhook.url.removeprefix("http://")
    assert int(call.headers["webhook-timestamp"]) == START
    assert re.fullmatch("msg_[0-9_]+", call.id)
    assert "webhook-signature" not in call.headers  # no secret is set
    data = call.data
    assert (call.json["type"], call.json["timestamp"]) == ("comment.created", data["created_at"])
    links, markup = data.pop("links"), data.pop("html")
    texts = {"page_url": PAGE, "nickname": "Lu", "website": website, "content": content}
    texts |= {"country": "", "location": "", "held": "", "reason": "", "language": "de"}
    texts["page_title"] = ""
    fields = {"id": number, "parent_id": None, "status": "visible", "user_id": None}
    fields |= {"ip": "203.0.113.0", "created_at": "2026-11-18T11:06:40Z"}
    assert data == texts | fields | {"link": f"{BLOG}{PAGE}#comment-{number}"}
    assert "<em>lines</em>" in markup
    assert "<script" not in markup
    assert [*links] == ["spam", "deleted"]
    assert guest.outbox() == []


@pytest.mark.slow
def test_a_running_service_sends_emails_and_webhooks_at_once(
    tmp_path: Path, webhook: WebhookServer, start_mail_server: Callable[..., MailServer]
) -> None:
    # Its thread that sends asks for new work every second.
    mail_server = start_mail_server(auth_require_tls=False)
    mail = {"host": "127.0.0.1", "port": str(mail_server.port), "security": "none"}
    mail["sender"] = "comments@blog.example"
    urls: dict[str, Any] = {"server": {"public_url": SERVICE}, "site": {"origins": BLOG}}
    with services(tmp_path) as start:
        service = start(mail=mail, webhook={"url": webhook.url}, **urls)
        guest_fields = {"nickname": "Ann", "captcha_token": "x"}
        account = {**guest_fields, "email": ANN, "password": CANARY}
        assert service.ask("POST", "/auth/register", body=account).status == 200
        until(lambda: mail_server.emails)
        comment = {**guest_fields, "page_url": PAGE, "content": "hi"}
        assert service.ask("POST", "/comments", body=comment).status == 200
        assert service.ask("POST", "/comments/1/report", body={"reason": "look"}).status == 200
        until(lambda: len(webhook.calls) == 2)
    assert [call.json["type"] for call in webhook.calls] == ["comment.created", "comment.reported"]


def test_a_webhook_gets_no_email_address_and_no_full_ip_address(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    ips = {
        "203.0.113.7": "203.0.113.0",
        "2001:db8:12:34:56::7": "2001:db8:12::",
        "::ffff:203.0.113.7": "203.0.113.0",
    }
    hidden = [ANN, "lu@e.cn", "203.0.113.7", "2001:db8:12:34", CANARY]
    for kind in PATHS:
        with start_with_webhook(kind) as guest:
            inside.add_account(guest.served, ANN, "Ann", CANARY)
            for ip, masked in ips.items():
                webhook.calls.clear()
                reader, ann = Reader(guest.served, ip), PlainReader(guest.served, ip)
                ann.authorization = ("Bearer", inside.token_of(guest.served, ANN))
                ann.comment(f"of an account {ip[:2]}")
                number = reader.comment(f"of a guest {ip[:2]}", email="lu@e.cn")
                reader.report(number, "look")
                guest.deliver()
                assert len(webhook.calls) == 3
                for call in webhook.calls:
                    everything = call.body.decode() + str(call.headers)
                    assert not [word for word in hidden if word in everything], (kind, ip)
                    assert kind != "json" or call.data["ip"] == masked


def test_a_webhook_gets_no_words_about_an_email_address(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    with start_with_webhook("json", moderation_words=("email: lu@",)) as guest:
        guest.comment("hi", email="lu@e.cn")
        guest.deliver()
        (call,) = webhook.calls
        assert call.data["held"] == "word: email: …"


def test_calls_of_a_webhook_are_signed(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    # The example of the libraries of Standard Webhooks: the test verifies as they do.
    headers = {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330"}
    headers["webhook-signature"] = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    call = Call("POST", "/", headers, b'{"test": 2432232314}', 0)
    assert verified(call, EXAMPLE_SECRET, 1614265330)
    assert not verified(replace(call, body=call.body + b" "), EXAMPLE_SECRET, 1614265330)
    for secret in (EXAMPLE_SECRET, "a text of the owner's, 密"):
        with start_with_webhook(webhook_secret=secret) as guest:
            guest.comment(f"你好 <b> & “quotes” {secret[:1]}", nickname="李")
            guest.deliver()
        (call,) = webhook.calls
        assert verified(call, secret, call.at)
        assert not verified(call, secret + "BBBB", call.at)
        assert not verified(replace(call, body=call.body + b" "), secret, call.at)
        assert call.data["nickname"] == "李"


def test_a_webhook_is_called_once_for_a_report_with_its_reason(
    guest: Guest, webhook: WebhookServer
) -> None:
    owner = owner_client(guest)
    for reason in ("", "rude to\neverybody"):
        webhook.calls.clear()
        number = guest.comment(f"fie {reason[:4]}")
        guest.deliver()
        for _ in range(2):
            other_guest(guest).report(number, reason)
        guest.deliver()
        created, reported = webhook.calls
        assert reported.json["type"] == "comment.reported"
        assert reported.id != created.id
        assert (reported.data["id"], reported.data["status"]) == (number, "visible")
        assert reported.data["reason"] == " ".join(reason.split())
        guest.press(reported.data["links"]["visible"])
        assert owner.get("/admin/comments", {"status": "reported"}).json["comments"] == []
        assert guest.press(reported.data["links"]["spam"]).button == "Undo"
        assert guest.listing()["total"] == 0


def test_a_webhook_is_called_again_when_an_edit_makes_a_comment_wait(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    with start_with_webhook(moderation_words=("casino",)) as guest:
        made = guest.say("fine", lang="en")
        guest.deliver()
        guest.edit(made, "a casino")
        guest.deliver()
        first, second = webhook.calls
        assert (second.data["content"], second.data["held"]) == ("a casino", "word: casino")
        assert second.id != first.id


# What is not told


def test_a_webhook_is_not_called_for_spam_hidden_comments_and_the_owners_own(
    guest: Guest, webhook: WebhookServer
) -> None:
    owner = claim(guest.served, OWNER, "Owner")
    owner.post_json("/admin/blocks", {"kind": "word", "value": "casino"})
    spam = guest.say("a casino")
    assert spam["comment"]["status"] == "waiting"  # as it looks to its author
    guest.edit(spam, "harmless")
    for status in ("spam", "deleted"):
        number = guest.comment(f"to be {status}")
        guest.report(number)
        moderate(owner, [number], status)
    taken_back = guest.say("taken back")
    proof = {"edit_token": taken_back["edit_token"]}
    guest.delete_json(f"/comments/{taken_back['comment']['id']}", proof)
    number = guest.comment("hi")
    signed_in(guest.served, OWNER).say("from the blog", nickname="")
    owner.post_json("/admin/reply", {"parent_id": number, "content": "from the admin page"})
    guest.deliver()
    assert [call.data["id"] for call in webhook.calls] == [number]
    assert guest.outbox() == []


# Building the site again


def test_the_site_is_built_again_ten_minutes_after_a_change_and_not_more_often(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    url = f"{webhook.url}/build"
    settings = {"webhook_url": "", "webhook_rebuild_url": url, "webhook_secret": EXAMPLE_SECRET}
    with start_with_webhook(**settings) as guest:

        def calls_after(minutes: int) -> int:
            for _ in range(minutes):
                guest.fake_world.time += 60
                guest.served.tick()
                guest.deliver()
            return len(webhook.calls)

        assert calls_after(20) == 0
        number = guest.comment("hi")
        assert calls_after(6) == 0
        guest.comment("more")
        assert calls_after(6) == 1
        assert calls_after(30) == 1  # it had both
        guest.post_json("/comment/like", {"id": number})
        assert calls_after(30) == 1
        webhook.script = [BUSY, BUSY]
        inside.set_status(guest.served, number, "deleted")
        assert calls_after(9) == 1
        assert calls_after(20) == 4  # two tries failed
        assert guest.outbox() == []
        for call in webhook.calls:
            assert (call.path, call.json["type"]) == ("/build", "comments.changed")
            assert verified(call, EXAMPLE_SECRET, call.at)
    assert len({call.id for call in webhook.calls}) == 2
    with start_with_webhook("slack", webhook_url="", webhook_rebuild_url=url) as guest:
        guest.comment("hi")
        assert calls_after(20) == 1
    assert "webhook-id" not in webhook.calls[0].headers
    for minutes in ("0", "1441", "x"):
        with pytest.raises(inside.REFUSALS, match="number from 1 to 1440"):
            load_config(None, {"COMMENTD_WEBHOOK_REBUILD_MINUTES": minutes})


def test_a_call_to_build_the_site_that_fails_says_why_and_is_tried_again(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    url = f"{webhook.url}/build"
    with start_with_webhook(webhook_url="", webhook_rebuild_url=url) as guest:
        guest.comment("hi")
        guest.served.tick()
        webhook.script = [b"hello\r\n\r\n"]
        guest.later(HOUR)
        (row,) = guest.outbox()
        assert (row["failure"], row["tries"]) == ("OSError", 1)
        guest.later(5)
        assert [call.path for call in webhook.calls] == ["/build"] * 2
        assert guest.outbox() == []


@pytest.mark.parametrize("kind", ["slack", "json"])
def test_a_chat_is_silent_in_quiet_hours_and_a_program_is_told_at_once(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer, kind: str
) -> None:
    noon = 12 * 60 + 6  # the minute in which all begins, in UTC
    quiet = {"notify_quiet": QuietHours(noon - 66, noon - 36), "site_timezone": UTC}
    with start_with_webhook(kind, **quiet) as guest:
        guest.comment("hi")
        guest.deliver()
        assert len(webhook.calls) == (kind == "json")
    with start_with_webhook(kind, **quiet) as guest:
        guest.later(23 * MINUTE)
        assert webhook.calls == []
        guest.later(MINUTE)
        assert len(webhook.calls) == (kind == "slack")
        guest.comment("after that")
        guest.deliver()
        assert len(webhook.calls) == 1 + (kind == "slack")


def test_a_chat_is_told_after_a_night_what_came_before_midnight(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    quiet = {"notify_quiet": QuietHours(11 * 60, 60), "site_timezone": UTC}
    with start_with_webhook("slack", **quiet) as guest:
        guest.comment("hi")  # at 11:06
        guest.later(13 * HOUR)
        assert webhook.calls == []
        guest.later(HOUR)
        assert len(webhook.calls) == 1


# Faults of the other side


def test_a_call_of_a_webhook_is_retried_for_a_day_with_one_id_and_new_times(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    webhook.usual = BUSY
    with start_with_webhook(webhook_secret=EXAMPLE_SECRET) as guest:
        guest.comment("hi")
        guest.deliver()
        while (due_at := guest.outbox()[0]["due_at"]) is not None:
            guest.fake_world.time = due_at
            guest.deliver()
        assert len(guest.outbox()) == 1  # given up, and kept for the owner
        assert guest.fake_world.time == START + DAY
    assert len({(call.id, call.body) for call in webhook.calls}) == 1
    assert all(verified(call, EXAMPLE_SECRET, call.at) for call in webhook.calls)
    stamps = [int(call.headers["webhook-timestamp"]) for call in webhook.calls]
    assert stamps == [call.at for call in webhook.calls]
    times = [int(call.at) - START for call in webhook.calls]
    assert times[:9] == [0, 5, 20, 65, 200, 605, 1820, 5420, 9020]
    assert {b - a for a, b in pairwise(times[7:])} == {HOUR}
    assert DAY - HOUR <= times[-1] < DAY


def test_undelivered_webhook_calls_are_tried_again_or_dropped_by_the_owner(
    guest: Guest, webhook: WebhookServer
) -> None:
    owner = owner_client(guest)
    webhook.usual = b"HTTP/1.1 404 " + CANARY.encode() + b"\r\nContent-Length: 3\r\n\r\nno!"
    numbers = [guest.comment(content) for content in "abc"]
    guest.deliver()
    assert len(webhook.calls) == 3
    kept = owner.get("/admin/outbox").json["emails"]
    assert {each["recipient"] for each in kept} == {"webhook"}
    assert (kept[-1]["failure"], kept[-1]["can_retry"]) == ("Refused 404", True)
    guest.later(DAY)
    assert {row["due_at"] for row in guest.outbox()} == {None}
    kept = owner.get("/admin/outbox").json["emails"]
    assert [each["failure"] for each in kept] == ["Refused 404"] * 3
    webhook.usual, count = OK, len(webhook.calls)
    assert owner.delete_json(f"/admin/outbox/{kept[1]['id']}", {}).json == {"success": True}
    assert owner.post_json(f"/admin/outbox/{kept[2]['id']}", {}).json == {"success": True}
    guest.deliver()
    (call,) = webhook.calls[count:]
    assert call.data["id"] == numbers[0]
    assert int(call.headers["webhook-timestamp"]) == guest.fake_world.time
    # Of what is gone for good, nothing is kept.
    assert len(guest.outbox()) == 1
    moderate(owner, [numbers[2]], "deleted")
    guest.fake_world.time += 31 * DAY
    guest.served.tick()
    assert guest.outbox() == []


REFUSALS: dict[str, bytes] = {
    "nothing": b"",
    "no HTTP": b"hello\r\n\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000,
    **{
        f"status {status}": f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode()
        for status in (304, 404, 500)
    },
}
YES = [
    OK,
    b"HTTP/1.0 200 OK\r\n\r\nwithout a length",
    b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
    b"HTTP/1.1 200 OK\r\n\r\n" + b"a page" * 100_000,  # its status is all that counts
]
ELSEWHERE = "HTTP/1.1 {status} Go\r\nLocation: {url}/elsewhere\r\nContent-Length: 0\r\n\r\n"


def test_refused_webhook_calls_are_tried_again_and_no_redirect_is_followed(
    guest: Guest, webhook: WebhookServer
) -> None:
    answers = dict(REFUSALS)
    for status in (301, 307):
        answers[str(status)] = ELSEWHERE.format(status=status, url=webhook.url).encode()
    for number, answer in enumerate(YES):
        webhook.script = [answer]
        guest.comment(str(number))
        guest.deliver()
        assert (len(webhook.calls), guest.outbox()) == (number + 1, []), answer[:80]
    for name, answer in answers.items():
        webhook.calls.clear()
        webhook.script = [answer]
        guest.comment(f"hi {name}")
        guest.deliver()
        (row,) = guest.outbox()
        assert (row["tries"], row["due_at"]) == (1, guest.fake_world.time + 5), name
        assert row["failure"], name
        assert name != "301" or row["failure"] == "Refused 301"
        guest.later(5)
        assert [call.path for call in webhook.calls] == [PATHS["json"]] * 2, name
        assert guest.outbox() == [], name


def test_a_dead_webhook_holds_back_no_email_with_a_code(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    webhook.usual = BUSY
    with start_with_webhook(notify_owner=(OWNER,)) as guest:
        numbers = [guest.comment(str(n)) for n in range(20)]
        guest.register()
        guest.deliver()
        assert {*guest.recipients()} == {OWNER, ANN}
        webhook.usual = OK
        guest.later(5)
        assert {call.data["id"] for call in webhook.calls[1:]} == {*numbers}
        assert len(webhook.calls) == 21  # the others waited for the first one
        assert guest.outbox() == []


def test_a_waiting_webhook_call_holds_no_text_of_a_comment(
    guest: Guest, webhook: WebhookServer
) -> None:
    webhook.usual = BUSY
    made = guest.say("CANARY words", lang="en")
    guest.deliver()
    assert "CANARY" not in str(guest.outbox())
    guest.edit(made, "new")
    webhook.usual = OK
    guest.later(5)
    assert webhook.calls[-1].data["content"] == "new"
    webhook.usual = BUSY
    made = guest.say("more")
    guest.deliver()
    assert len(guest.outbox()) == 1
    guest.delete_json("/comments/2", {"edit_token": made["edit_token"]})
    assert guest.outbox() == []


@pytest.mark.parametrize("comments", ["keep", "delete"])
def test_no_waiting_webhook_call_holds_data_of_a_deleted_account(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer, comments: str
) -> None:
    webhook.usual = BUSY
    with start_with_webhook(notify_owner=(OWNER,)) as guest:
        guest.fail_mail()
        inside.add_account(guest.served, ANN, "Ann", CANARY)
        ann = Reader(guest.served)
        ann.authorization = ("Bearer", inside.token_of(guest.served, ANN))
        guest.comment("of a guest")
        ann.report(1, "ANNS REASON")
        guest.deliver()
        assert len(guest.outbox()) == 3
        ann.delete_json("/me", {"password": CANARY, "comments": comments})
        emails = [row["text"] for row in guest.outbox() if row["text"]]
        kept = str(guest.outbox()) + "".join(emails)
        assert not [word for word in ("ANNS", ANN) if word in kept]
        webhook.usual = OK
        guest.fail_mail(False)
        guest.later(HOUR)
        told = "".join(guest.texts(OWNER)) + str([call.json for call in webhook.calls[-2:]])
        assert "of a guest" in told
        assert webhook.calls[-1].data["reason"] == ""
        assert "ANNS REASON" not in told


def test_no_secret_of_a_webhook_gets_into_a_log_or_onto_the_admin_page(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    webhook.usual = b"HTTP/1.1 500 " + CANARY.encode() + b"\r\nContent-Length: 0\r\n\r\n"
    for kind in PATHS:
        with start_with_webhook(kind, webhook_secret=f"{CANARY} of the hook") as guest:
            owner = owner_client(guest)
            guest.comment(f"hi {kind}")
            guest.deliver()
            guest.later(DAY)
            response = owner.get("/admin/settings").text + owner.get("/admin/outbox").text
            assert '"(hidden)"' in response
            assert CANARY not in response + caplog.text
            assert "; given up" in caplog.text


# What chats are told


def shown_text(call: Call, kind: str) -> str:
    """What a chat shows, of the shape that its maker asks for; fails for any other."""
    return SHAPES[kind](call.json)


LINK = rf"(?:{re.escape(SERVICE)}/mail\?[\w=&-]*|{re.escape(BLOG)}/[^\s<>|]*#comment-\d+)"
LABEL = r"[^<>\[\]()|{}]+"


def slack(body: Any) -> str:
    """docs.slack.dev/reference/block-kit: 3000 characters a text, & < > escaped in mrkdwn."""
    assert {*body} == {"text", "blocks"}
    assert not re.search("[<>]|&(?!amp;|lt;|gt;)", body["text"])
    bare, *more = body["blocks"]
    text = bare["text"].pop("text")
    assert bare == {"type": "section", "text": {"type": "plain_text"}}
    assert 1 <= len(text) <= 3000
    for block in more:
        links = block["text"].pop("text")
        assert block == {"type": "section", "text": {"type": "mrkdwn"}}
        assert len(links) <= 3000
        assert not re.search("&(?!amp;|lt;|gt;)", links)
        for link in links.split(" · "):
            url = re.fullmatch(rf"<([^<>|]+)\|{LABEL}>", link)
            assert url
            assert re.fullmatch(LINK, html.unescape(url[1]))
    assert len(more) <= 1
    assert text.startswith(html.unescape(body["text"]) + "\n")
    return str(text).partition("\n")[2]


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
    text = re.sub(rf"\n\n[^\n]+\n{LINK}\Z", "", body["text"])  # to the page of the comment
    return text.partition("\n\n")[2]


def feishu(body: Any) -> str:
    """open.feishu.cn, custom bots: a post of texts and links; 20 KB."""
    assert {*body} - {"timestamp", "sign"} == {"msg_type", "content"}
    assert (body["msg_type"], [*body["content"]["post"]]) == ("post", ["zh_cn"])
    post = body["content"]["post"]["zh_cn"]
    assert ({*post}, [*body["content"]]) == ({"title", "content"}, ["post"])
    ((text,), *links) = post["content"]
    assert ({*text}, text["tag"]) == ({"tag", "text"}, "text")
    for link in chain(*links):
        assert ({*link}, link["tag"]) == ({"tag", "text", "href"}, "a")
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
PAGES = [
    "/<!channel>",
    "/x|Approve",
    '/a b"c',
    "/@everyone",
    "/你好",
    "//evil.example/",
    "/x)[Approve](https://evil.example/a",
    "/\\)[x](y)",
    "javascript:alert(1)",
    "a key",
    "https://evil.example/?x=<b>",
    "/x]*y*",
    "/&lt;",
]


@pytest.mark.slow
def test_a_chat_shows_what_was_written_as_it_was_written(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    for kind in CHATS:
        with start_with_webhook(kind) as guest:
            for content in HOSTILE:
                guest.comment(content, nickname="<!here> @all *Lu*")
                guest.deliver()
                call = webhook.calls[-1]
                kept = content.replace("\u2028", "\n")  # every comment is cleaned so
                assert shown_text(call, kind) == f"<!here> @all *Lu*\n\n{kept}"
                assert [words_of(link)["do"] for link in links_of(call)] == ["spam", "deleted"]
            for page_url in PAGES:
                guest.comment("hi", page_url=page_url)
                guest.deliver()
                call = webhook.calls[-1]
                if page_url.startswith("https://evil"):  # the owner may look there, and is told so
                    assert "a page outside your blog" in call.body.decode()
                    ours = call.body.replace(b"https://evil.example/", BLOG.encode() + b"/")
                    call = replace(call, body=ours)
                assert shown_text(call, kind) == "Ann\n\nhi", page_url
            assert len(webhook.calls) == len(HOSTILE) + len(PAGES)
            assert guest.outbox() == []


def test_a_chat_says_why_a_comment_waits_and_its_reports(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    for kind in CHATS:
        with start_with_webhook(kind, moderation_hold="all") as guest:
            before = guest.listing()["total"]
            number = guest.comment(f"hi {kind}")
            guest.deliver()
            waits = f"Ann\nawaiting approval: every comment needs it\n\nhi {kind}"
            assert shown_text(webhook.calls[0], kind) == waits
            links = links_of(webhook.calls[0])
            assert [words_of(link)["do"] for link in links] == ["visible", "spam", "deleted"]
            for link in links:
                assert guest.open(link).text == f"hi {kind}"
            guest.press(links[0])
            assert guest.listing()["total"] == before + 1
            guest.report(number, "<!channel> [x](https://evil.example)\n\nrude")
            other_guest(guest).report(number)
            guest.deliver()
            reasons = [
                "<!channel> [x](https://evil.example) rude",
                EMAIL_TEXTS["en"]["report_none"],
            ]
            shown = [shown_text(call, kind) for call in webhook.calls[1:]]
            assert shown == [f"Ann\nreported by a reader: {r}\n\nhi {kind}" for r in reasons]


def test_a_chat_message_is_no_longer_than_the_chat_takes(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    for kind in CHATS:
        with start_with_webhook(kind, comments_max_length=10_000) as guest:
            for sign in ("x", "界", "😀", "\n. ", "&"):
                content = (sign * 2000)[:1999] + "."
                guest.comment(content, nickname="😀" * 64, page_url="/" + "p" * 400)
                guest.deliver()
                call = webhook.calls[-1]
                assert shown_text(call, kind) == f"{'😀' * 64}\n\n{content.strip()[:1000]} …"
                assert len(call.body) < 20_000


def test_telegram_messages_have_no_button_that_telegram_may_refuse(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    # Its servers refuse the whole message for a link to a host without a dot.
    for url, buttons in ((SERVICE, 2), ("http://localhost:8080", 0), ("http://x", 0)):
        with start_with_webhook("telegram", server_public_url=url) as guest:
            number = guest.comment(f"hi {url}", page_url="http://x/")
            guest.deliver()
        body = webhook.calls[0].json
        keys = [key["url"] for (key,) in body.get("reply_markup", {}).get("inline_keyboard", [])]
        assert len(keys) == buttons
        assert not [key for key in keys if "http://x" in key]
        assert f"http://x/#comment-{number}" in body["text"]
        assert len(re.findall(rf"{re.escape(url)}/mail\S+", body["text"])) == 2 - buttons


def test_webhook_calls_have_no_links_where_no_public_url_is_set(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    for kind in PATHS:
        with start_with_webhook(kind, server_public_url="", site_origins=()) as guest:
            guest.comment(f"hi {kind}")
            guest.deliver()
        (call,) = webhook.calls
        assert "http" not in call.body.decode()
        if kind == "json":
            assert (call.data["links"], call.data["link"]) == ({}, "")
        else:
            assert shown_text(call, kind) == f"Ann\n\nhi {kind}"


def test_feishu_gets_a_fresh_signature_and_its_refusal_with_200_is_noticed(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    webhook.script = [BUSY]
    with start_with_webhook("feishu", webhook_secret=CANARY) as guest:
        guest.comment("hi")
        guest.deliver()
        guest.later(5)
    first, second = (call.json for call in webhook.calls)
    for body, now in ((first, START), (second, START + 5)):
        # As its documents do: nothing, hashed with the time and the secret as the key.
        key = f"{now}\n{CANARY}".encode()
        right = base64.b64encode(hmac.new(key, digestmod=hashlib.sha256).digest()).decode()
        assert (body["timestamp"], body["sign"]) == (str(now), right)
    assert first["content"] == second["content"]
    assert shown_text(webhook.calls[1], "feishu") == "Ann\n\nhi"
    yes = '{"StatusCode": 0, "StatusMessage": "success", "code": 0, "data": {}}'
    with start_with_webhook("feishu") as guest:
        for reply, code in ((yes, ""), ('{"code": 19021, "msg": "sign match fail"}', "19021")):
            webhook.script = [f"HTTP/1.1 200 OK\r\n\r\n{reply}".encode()]
            guest.comment(f"hi {reply}")
            guest.deliver()
            failures = [row["failure"] for row in guest.outbox()]
            assert failures == ([f"Refused 200 {code} sign match fail"] if code else [])
            guest.later(5)
            assert guest.outbox() == []
        assert "sign" not in webhook.calls[0].json  # where no secret is set


# The links


def test_links_in_webhook_calls_moderate_and_end_with_the_webhook(
    start_with_webhook: StartWithWebhook, webhook: WebhookServer
) -> None:
    with start_with_webhook(notify_owner=("nobody",), moderation_hold="all") as guest:
        number = guest.comment("hi")
        guest.deliver()
        links = webhook.calls[0].data["links"]
        for do, total in (("visible", 1), ("spam", 0), ("visible", 1), ("deleted", 0)):
            assert guest.open(links[do]).title == EMAIL_TEXTS["en"][f"page_{do}"]
            guest.press(links[do])
            assert guest.listing()["total"] == total
    with start_with_webhook(webhook_url="", notify_owner=(OWNER,)) as guest:
        guest.press(links["visible"], status=403)
        assert guest.status_of(number) == "deleted"


# Settings


def test_a_webhook_that_cannot_work_stops_the_start() -> None:
    telegram = {"KIND": "telegram", "URL": "https://api.telegram.org/botx/sendMessage"}
    tails = ("", "?chat_id=", "#?chat_id=5", "?x=?chat_id=5")
    wrong = [telegram | {"URL": telegram["URL"] + tail} for tail in tails]
    urls = ["ftp://hook.example/", "https://user:word@hook.example/", "https://hook.example/a b"]
    wrong += [{"KIND": kind, "URL": "https://hook.example/"} for kind in ("bark", "matrix")]
    wrong += [{"KIND": "teams"}, *({"URL": url} for url in urls)]
    wrong += [{"SECRET": f"whsec_{rest}"} for rest in ("not base64", "abc", "")]
    for each in wrong:
        with pytest.raises(inside.REFUSALS, match=r"(?i)webhook") as fault:
            load_config(None, {f"COMMENTD_WEBHOOK_{key}": value for key, value in each.items()})
        assert "not base64" not in str(fault.value)
        assert "\n" not in str(fault.value), each
    assert load_config(None, {"COMMENTD_WEBHOOK_KIND": "Feishu"}).webhook_kind == "feishu"


def test_a_webhook_that_telegram_does_not_have_is_told_the_one_it_has() -> None:
    environ = {"COMMENTD_WEBHOOK_KIND": "telegram", "COMMENTD_WEBHOOK_URL": "https://t.me/x"}
    with pytest.raises(inside.REFUSALS) as fault:
        load_config(None, environ)
    assert "needs a url that ends in /sendMessage?chat_id=NUMBER" in str(fault.value)
