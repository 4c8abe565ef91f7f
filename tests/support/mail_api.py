"""Providers of email by HTTPS: a local server that takes what each documents, and refuses as it
does."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

from support.local_servers import LocalHTTPServer
from support.world import html_of, read, text_of

KEY = "key-a1b2c3d4e5"
SENDER = "Blog <comments@blog.example>"


@dataclass(frozen=True)
class TakenEmail:
    """An email as a provider understood it."""

    sender: str
    recipient: str
    subject: str
    text: str
    html: str
    headers: Mapping[str, str]


class Invalid(Exception):
    """The request is not what the provider documents."""


def resend(headers: Mapping[str, str], body: bytes) -> TakenEmail:
    """resend.com/docs/api-reference/emails/send-email"""
    sent = json.loads(body or b"{}")
    if not all(sent.get(name) for name in ("from", "to", "subject", "text", "html")):
        raise Invalid
    [to] = sent["to"]
    parts = (sent["text"], sent["html"])
    return TakenEmail(sent["from"], to, sent["subject"], *parts, sent["headers"])


def postmark(headers: Mapping[str, str], body: bytes) -> TakenEmail:
    """postmarkapp.com/developer/api/email-api"""
    sent = json.loads(body or b"{}")
    if not all(sent.get(name) for name in ("From", "To", "Subject", "TextBody", "HtmlBody")):
        raise Invalid
    own = {each["Name"]: each["Value"] for each in sent["Headers"]}
    # postmarkapp.com/support/article/1118: without this header it writes an ID of its own
    assert own["X-PM-KeepID"] == "true"
    assert own["Message-ID"] == f"<{headers['idempotency-key']}@blog.example>"
    assert sent["MessageStream"] == "outbound"
    parts = (sent["TextBody"], sent["HtmlBody"])
    return TakenEmail(sent["From"], sent["To"], sent["Subject"], *parts, own)


def brevo(headers: Mapping[str, str], body: bytes) -> TakenEmail:
    """developers.brevo.com/reference/sendtransacemail"""
    sent = json.loads(body or b"{}")
    if not all(
        sent.get(name) for name in ("sender", "to", "subject", "textContent", "htmlContent")
    ):
        raise Invalid
    sender = f"{sent['sender']['name']} <{sent['sender']['email']}>"
    [to] = sent["to"]
    parts = (sent["textContent"], sent["htmlContent"])
    return TakenEmail(sender, to["email"], sent["subject"], *parts, sent["headers"])


def mailgun(headers: Mapping[str, str], body: bytes) -> TakenEmail:
    """documentation.mailgun.com, "Send an email" """
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    sent = {name: values[0] for name, values in parse_qs(body.decode()).items()}
    if not all(sent.get(name) for name in ("from", "to", "subject", "text", "html")):
        raise Invalid
    own = {name[2:]: value for name, value in sent.items() if name.startswith("h:")}
    assert own["Message-Id"] == f"<{headers['idempotency-key']}@blog.example>"
    parts = (sent["text"], sent["html"])
    return TakenEmail(sent["from"], sent["to"], sent["subject"], *parts, own)


def sendgrid(headers: Mapping[str, str], body: bytes) -> TakenEmail:
    """www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send"""
    sent = json.loads(body or b"{}")
    if not all(sent.get(name) for name in ("personalizations", "from", "subject", "content")):
        raise Invalid
    [person] = sent["personalizations"]
    [to] = person["to"]
    # "Include the MIME type text/plain first, then text/html."
    assert [each["type"] for each in sent["content"]] == ["text/plain", "text/html"]
    parts = (sent["content"][0]["value"], sent["content"][1]["value"])
    sender = f"{sent['from']['name']} <{sent['from']['email']}>"
    return TakenEmail(sender, to["email"], sent["subject"], *parts, sent["headers"])


def ses(headers: Mapping[str, str], body: bytes) -> TakenEmail:
    """docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html"""
    sent = json.loads(body or b"{}")
    if not sent.get("Content"):
        raise Invalid
    message = read(base64.b64decode(sent["Content"]["Raw"]["Data"]))
    [to] = sent["Destination"]["ToAddresses"]
    assert message["To"] == to
    assert message["From"] == sent["FromEmailAddress"]
    own = {name: str(value) for name, value in message.items()}
    parts = (text_of(message), html_of(message))
    return TakenEmail(sent["FromEmailAddress"], to, str(message["Subject"]), *parts, own)


def webhook(headers: Mapping[str, str], body: bytes) -> TakenEmail:
    """The form of `commentd help mail`."""
    sent = json.loads(body)
    assert sent["id"] == headers["idempotency-key"]
    parts = (sent["text"], sent["html"])
    return TakenEmail(sent["from"], sent["to"], sent["subject"], *parts, sent["headers"])


def bearer(headers: Mapping[str, str]) -> bool:
    return headers["authorization"] == f"Bearer {KEY}"


def signed_for_aws(headers: Mapping[str, str]) -> bool:
    """Without its last part, which a test of its own compares with that of an example."""
    day = headers["x-amz-date"][:8]
    scope = f"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/{day}/us-east-1/ses/aws4_request, "
    return headers["authorization"].startswith(scope)


def basic(headers: Mapping[str, str]) -> bool:
    return headers["authorization"] == "Basic " + base64.b64encode(f"api:{KEY}".encode()).decode()


# By name: the path, who may, what is understood, the status of success, and of a wrong key with
# what is said then.
PROVIDERS: dict[str, tuple[str, Any, Any, int, int, Any]] = {
    "resend": (
        "/emails", bearer, resend, 200,
        401, {"statusCode": 401, "name": "validation_error", "message": "API key is invalid"},
    ),
    "postmark": (
        "/email", lambda headers: headers["x-postmark-server-token"] == KEY, postmark, 200,
        401, {"ErrorCode": 10, "Message": "No Account or Server API tokens were supplied."},
    ),
    "brevo": (
        "/v3/smtp/email", lambda headers: headers["api-key"] == KEY, brevo, 201,
        401, {"code": "unauthorized", "message": "Key not found"},
    ),
    "mailgun": ("/v3/blog.example/messages", basic, mailgun, 200, 401, "Forbidden"),
    "sendgrid": (
        "/v3/mail/send", bearer, sendgrid, 202,
        401, {"errors": [{"message": "The provided authorization grant is invalid"}]},
    ),
    "ses": (
        "/v2/email/outbound-emails", signed_for_aws, ses, 200,
        403, {"message": "The security token included in the request is invalid."},
    ),
    "webhook": ("/send", bearer, webhook, 200, 401, "who are you?"),
}  # fmt: skip


class MailApi(LocalHTTPServer):
    """One provider. `refuses`: the status and what is said to the next emails."""

    daemon_threads = False

    def __init__(self, provider: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.provider = provider
        self.path, self.is_allowed, self.understand, self.success, *wrong = PROVIDERS[provider]
        self.wrong_key = (wrong[0], wrong[1])
        self.emails: list[TakenEmail] = []
        self.ids: list[str] = []
        self.refuses: tuple[int, Any] | None = None
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        if provider == "webhook":
            self.url += "/send"
        self.start()


class Handler(BaseHTTPRequestHandler):
    server: MailApi

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        status, said = self.answer(headers, body)
        text = said if isinstance(said, str) else json.dumps(said)
        content = text.encode("utf-8", "surrogateescape")
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def answer(self, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        api = self.server
        if self.path != api.path:
            return 404, {"message": f"no such path: {self.path}"}
        if not api.is_allowed(headers):
            return api.wrong_key
        try:
            taken = api.understand(headers, body)
        except Invalid:
            return 422, {"message": "a field is missing"}
        if api.refuses:
            return api.refuses
        api.emails.append(taken)
        api.ids.append(headers.get("idempotency-key", ""))
        return api.success, {"id": "1"}

    def log_message(self, format: str, *args: object) -> None:
        pass
