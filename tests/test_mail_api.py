"""Emails that leave by HTTPS, where hosts block SMTP: what each provider is sent, and what becomes
of an email that it refuses."""

import configparser
import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from commentd import RULES, App, Config, aws_headers, check_mail
from support import inside
from support.client import Visitor
from support.database import assert_whole
from support.inside import sql
from support.mail_api import KEY, PROVIDERS, SENDER, MailApi
from support.service import Service
from support.serving import until
from support.world import FakeWorld

HOUR, DAY = 3600, 86400


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def api(provider: str) -> Iterator[MailApi]:
    server = MailApi(provider)
    yield server
    server.stop()


@pytest.fixture
def settings(provider: str, api: MailApi) -> dict[str, Any]:
    return {
        "mail_provider": provider,
        "mail_api_key": KEY,
        "mail_api_url": api.url,
        "mail_user": "AKIDEXAMPLE" if provider == "ses" else "",
        "mail_sender": SENDER,
        "server_public_url": "https://comments.example",
    }


def faults_of(**settings: Any) -> list[str]:
    """What the settings are refused for."""
    return [fault for find in RULES for fault in find(replace(Config(), **settings))]


def refused(app: App) -> list[tuple[str, int]]:
    """Why emails were not taken, and whether they are tried again."""
    return sql(app, "SELECT failure, due_at IS NOT NULL FROM outbox")


def test_a_code_for_a_new_account_arrives(
    app: App, visitor: Visitor, api: MailApi, provider: str
) -> None:
    visitor.register("ann@example.com")
    app.deliver()
    [email] = api.emails
    assert email.recipient == "ann@example.com"
    assert email.sender in (SENDER, f'"Blog" <{SENDER.split("<")[1]}')
    (code,) = {*re.findall(r"\b\d{6}\b", email.text)}
    assert code in email.html
    assert email.subject.startswith(code)
    headers = {name.lower(): value for name, value in email.headers.items()}
    assert headers["auto-submitted"] == "auto-generated"
    assert sql(app, "SELECT count(*) FROM outbox") == [(0,)]


def write_settings(path: Path, api: MailApi, host: str, **server: str) -> None:
    """Settings of a blog whose emails leave by this provider."""
    parser = configparser.ConfigParser(interpolation=None)
    parser["server"] = {"public_url": f"https://{host}", **server}
    parser["site"] = {"origins": "https://blog.example"}
    parser["database"] = {"path": f"{api.provider}.db"}
    parser["captcha"] = {"provider": "none"}
    parser["mail"] = {
        "provider": api.provider,
        "api_key": KEY,
        "api_url": api.url,
        "user": "AKIDEXAMPLE" if api.provider == "ses" else "",
        "sender": SENDER,
    }
    with path.open("w") as file:
        parser.write(file)


class ServiceOfManyBlogs(Service):
    """`commentd serve` with a folder of settings."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        self.begin("", "serve", str(folder))


@pytest.mark.slow
def test_a_running_service_sends_a_code_by_https(tmp_path: Path) -> None:
    # One process serves a blog for each provider.
    account = {"nickname": "Ann", "email": "ann@example.com", "password": "x", "captcha_token": "x"}
    with ExitStack() as stack:
        apis = [MailApi(provider) for provider in PROVIDERS]
        for number, api in enumerate(sorted(apis, key=lambda api: api.provider)):
            stack.callback(api.stop)
            host = f"{api.provider}.comments.example"
            of_process = {"listen": "127.0.0.1:0"} if number == 0 else {}  # in the first file alone
            write_settings(tmp_path / f"{api.provider}.ini", api, host, **of_process)
        service = ServiceOfManyBlogs(tmp_path)
        stack.callback(service.end)
        service.greeted()
        until(lambda: service.output.count(" serves ") == len(apis))
        for api in apis:
            host = f"{api.provider}.comments.example"
            assert service.ask("POST", "/auth/register", body=account, host=host).status == 200
        until(lambda: all(api.emails for api in apis))
        assert service.stop() == 0
    for api in apis:
        [email] = api.emails
        assert email.recipient == "ann@example.com", api.provider
        assert_whole(str(tmp_path / f"{api.provider}.db"))


def test_headers_that_end_emails_come_along(
    app: App, api: MailApi, visitor: Visitor, fake_world: FakeWorld
) -> None:
    inside.add_account(app, "owner@example.com", "Owner", "0" * 64, "admin")
    author = Visitor(app, ip="192.0.2.9")
    inside.add_account(app, "ann@example.com", "Ann", "0" * 64)
    author.authorization = ("Bearer", inside.token_of(app, "ann@example.com"))
    number = author.say("mine")["comment"]["id"]
    visitor.say("a reply", parent_id=number)
    fake_world.time += HOUR
    app.deliver()
    to_ann = [email for email in api.emails if email.recipient == "ann@example.com"]
    headers = {name.lower(): value for name, value in to_ann[0].headers.items()}
    assert headers["list-unsubscribe"].startswith("<https://comments.example/")
    assert headers["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"


def test_an_email_is_the_same_one_in_each_try(
    app: App, visitor: Visitor, api: MailApi, fake_world: FakeWorld
) -> None:
    api.refuses = (503, {"message": "try later"})
    visitor.register("ann@example.com")
    app.deliver()
    assert api.emails == []
    api.refuses = None
    fake_world.time += 120
    app.deliver()
    fake_world.time += DAY
    assert len(api.emails) == 1
    assert len(set(api.ids)) == 1
    assert api.ids[0]


# What each provider says, by what is wrong: the status, the body, and what the owner is advised.
KEY_ADVICE = "correct [mail] api_key"
SENDER_ADVICE = "have it verify the domain"
LIMIT_ADVICE = "they are tried again"
ACCOUNT_ADVICE = "no credit, or is not active"
FAULTS_OF_ACCOUNTS: list[tuple[str, int, Any, str]] = [
    # resend.com/docs/api-reference/errors
    ("resend", 403, {"name": "invalid_api_key", "message": "API key is invalid."}, KEY_ADVICE),
    (
        "resend",
        403,
        {
            "name": "validation_error",
            "message": "The blog.example domain is not verified. Please, add and verify your "
            "domain on https://resend.com/domains",
        },
        SENDER_ADVICE,
    ),
    (
        "resend",
        403,
        {
            "name": "validation_error",
            "message": "You can only send testing emails to your own email address. To send emails "
            "to other recipients, please verify a domain at resend.com/domains",
        },
        SENDER_ADVICE,
    ),
    (
        "resend",
        429,
        {"name": "rate_limit_exceeded", "message": "Too many requests. 2 a second."},
        LIMIT_ADVICE,
    ),
    (
        "resend",
        429,
        {"name": "daily_quota_exceeded", "message": "You have reached your daily email quota."},
        LIMIT_ADVICE,
    ),
    ("resend", 500, {"name": "application_error", "message": "An unexpected error"}, ""),
    # postmarkapp.com/developer/api/overview#error-codes
    ("postmark", 401, {"ErrorCode": 10, "Message": "Bad or missing server API token."}, KEY_ADVICE),
    (
        "postmark",
        422,
        {"ErrorCode": 400, "Message": "The 'From' address you supplied is not a Sender "
         "Signature on your account. Sender signature not found."},
        SENDER_ADVICE,
    ),
    (
        "postmark",
        422,
        {"ErrorCode": 412, "Message": "While your account is pending approval, all recipient "
         "addresses must share the same domain as the 'From' address."},
        ACCOUNT_ADVICE,
    ),
    ("postmark", 429, {"ErrorCode": 429, "Message": "Rate Limit Exceeded"}, LIMIT_ADVICE),
    # developers.brevo.com/docs/how-it-works, "Error codes"
    ("brevo", 401, {"code": "unauthorized", "message": "Key not found"}, KEY_ADVICE),
    (
        "brevo",
        400,
        {"code": "invalid_parameter", "message": "Sending has been rejected because the sender you "
         "used comments@blog.example is not valid. Validate your sender, or your domain"},
        SENDER_ADVICE,
    ),
    (
        "brevo",
        402,
        {"code": "not_enough_credits", "message": "Not enough credits"},
        ACCOUNT_ADVICE,
    ),
    ("brevo", 429, {"code": "too_many_requests", "message": "Too many requests"}, LIMIT_ADVICE),
    # documentation.mailgun.com/docs/mailgun/quickstart-guide/responses
    ("mailgun", 401, "Forbidden", KEY_ADVICE),
    (
        "mailgun",
        403,
        {"message": "Domain blog.example is not allowed to send: The domain is unverified and "
         "requires DNS configuration. Log in to your control panel to view required DNS records."},
        SENDER_ADVICE,
    ),
    ("mailgun", 404, {"message": "Domain not found: blog.example"}, "the domain of [mail] sender"),
    ("mailgun", 429, {"message": "Rate limit exceeded"}, LIMIT_ADVICE),
    # support.sendgrid.com/hc/en-us/articles/18322114821403
    (
        "sendgrid",
        401,
        {"errors": [{"message": "The provided authorization grant is invalid, expired, or revoked",
                     "field": None, "help": None}]},
        KEY_ADVICE,
    ),
    (
        "sendgrid",
        403,
        {"errors": [{"message": "The from address does not match a verified Sender Identity. Mail "
                     "cannot be sent until this error is resolved.", "field": "from"}]},
        SENDER_ADVICE,
    ),
    ("sendgrid", 429, {"errors": [{"message": "too many requests", "field": None}]}, LIMIT_ADVICE),
    ("sendgrid", 401, {"errors": [{"message": "Maximum credits exceeded"}]}, ACCOUNT_ADVICE),
    # docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html, "Errors"
    (
        "ses",
        403,
        {"message": "The security token included in the request is invalid."},
        KEY_ADVICE,
    ),
    (
        "ses",
        400,
        {"message": "Email address is not verified. The following identities failed the check in "
         "region EU-WEST-1: comments@blog.example"},
        SENDER_ADVICE,
    ),
    ("ses", 429, {"message": "Maximum sending rate exceeded."}, LIMIT_ADVICE),
    ("ses", 400, {"message": "Daily message quota exceeded."}, LIMIT_ADVICE),
    ("ses", 400, {"message": "Your account is suspended."}, ACCOUNT_ADVICE),
    # A program of the owner's own.
    ("webhook", 401, "qui \udceates-vous ?", KEY_ADVICE),  # "êtes" in Latin-1
    ("webhook", 429, "slowly", LIMIT_ADVICE),
    ("webhook", 300, "", ""),
    ("webhook", 503, "", ""),
]  # fmt: skip


def test_a_fault_that_the_owner_can_correct_is_tried_again_with_a_hint(
    app: App,
    visitor: Visitor,
    api: MailApi,
    provider: str,
    fake_world: FakeWorld,
    caplog: pytest.LogCaptureFixture,
) -> None:
    inside.add_account(app, "owner@example.com", "Owner", "0" * 64, "admin")
    faults = [fault[1:] for fault in FAULTS_OF_ACCOUNTS if fault[0] == provider]
    assert faults
    for number, (status, said, advice) in enumerate(faults):
        api.refuses = (status, said)
        visitor.say(f"hi {number}", email="")
        app.deliver()
        [(failure, is_tried_again)] = refused(app)
        assert failure.startswith(str(status)), said
        assert is_tried_again, said
        assert advice in caplog.messages[-1], said
        assert ("(hint: " in caplog.messages[-1]) == bool(advice), said
        api.refuses = None
        fake_world.time += HOUR
        app.deliver()
        assert [email.recipient for email in api.emails] == ["owner@example.com"], said
        api.emails.clear()


# Where a provider says at once that it sends nothing to a recipient. Resend, Brevo, Mailgun,
# SendGrid and SES take such an email, and drop it by themselves.
REFUSED_RECIPIENTS: list[tuple[str, int, Any, str]] = [
    (
        "resend",
        422,
        {"name": "validation_error", "message": "Invalid `to` field. The email address needs to "
         "follow the `email@example.com` format."},
        "there is no such mailbox",
    ),
    (
        "postmark",
        422,
        {"ErrorCode": 406, "Message": "You tried to send to a recipient that has been marked as "
         "inactive. Found inactive addresses: ann@example.com. Inactive recipients are ones that "
         "have generated a hard bounce, a spam complaint, or a manual suppression."},
        "since an earlier email came back",
    ),
    (
        "postmark",
        422,
        {"ErrorCode": 300, "Message": "Invalid 'To' address: 'ann@example.com'."},
        "there is no such mailbox",
    ),
    (
        "brevo",
        400,
        {"code": "invalid_parameter", "message": "email is not valid in to"},
        "",
    ),
    (
        "mailgun",
        400,
        {"message": "'to' parameter is not a valid address. please check documentation"},
        "there is no such mailbox",
    ),
    (
        "sendgrid",
        400,
        {"errors": [{"message": "Does not contain a valid address.",
                     "field": "personalizations.0.to.0.email"}]},
        "there is no such mailbox",
    ),
    ("ses", 400, {"message": "Invalid recipient address."}, "there is no such mailbox"),
    ("webhook", 422, "this address is suppressed", "since an earlier email came back"),
    ("webhook", 413, "too large an email", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "status", "said", "advice"),
    REFUSED_RECIPIENTS,
    indirect=["provider"],
    ids=lambda each: str(each)[:40],
)
def test_a_recipient_that_is_refused_for_good_is_not_tried_again(
    app: App,
    visitor: Visitor,
    api: MailApi,
    caplog: pytest.LogCaptureFixture,
    status: int,
    said: Any,
    advice: str,
) -> None:
    api.refuses = (status, said)
    visitor.register("ann@example.com")
    app.deliver()
    [(failure, is_tried_again)] = refused(app)
    assert not is_tried_again
    assert "given up" in caplog.messages[-1]
    assert advice in caplog.messages[-1]
    assert ("(hint: " in caplog.messages[-1]) == bool(advice)
    assert "ann@example.com" not in failure + caplog.text
    assert "{" not in failure  # a sentence, where the provider sends one


@pytest.mark.parametrize(
    "provider", [name for name in PROVIDERS if name != "webhook"], indirect=True
)
def test_check_says_whether_the_key_is_right(
    config: Config, settings: dict[str, Any], api: MailApi
) -> None:
    config = replace(config, **settings)
    world = FakeWorld().world
    findings = [*check_mail(config, world, [])]
    assert [finding.level.word for finding in findings] == ["ok"]
    wrong = replace(config, mail_api_key="wrong", mail_user="wrong")
    [finding] = check_mail(wrong, world, [])
    assert finding.level.word == "fail"
    assert "wrong" not in finding.text
    api.wrong_key = (500, "a fault")
    [finding] = check_mail(wrong, world, [])
    assert finding.level.word == "fail"


@pytest.mark.parametrize("provider", ["webhook"], indirect=True)
def test_check_calls_no_program_of_the_owners_own(
    config: Config, settings: dict[str, Any], api: MailApi
) -> None:
    [finding] = check_mail(replace(config, **settings), FakeWorld().world, [])
    host = urlsplit(api.url).netloc
    assert (finding.level.word, finding.text) == ("ok", f"webhook ({host}) is set up")
    assert api.emails == []


@pytest.mark.parametrize("provider", ["resend"], indirect=True)
def test_an_email_waits_for_a_provider_that_does_not_respond(
    app: App, visitor: Visitor, api: MailApi, caplog: pytest.LogCaptureFixture
) -> None:
    visitor.register("ann@example.com")
    api.stop()
    app.deliver()
    assert refused(app) == [("ConnectionRefusedError Connection refused", True)]
    assert "(hint: nothing responds at the provider: correct " in caplog.messages[-1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_that_lacks_a_setting_is_refused_at_the_start(provider: str) -> None:
    named = f"[mail] provider = {provider}"
    lacking = [
        f"{named} needs [mail] api_key",
        f"{named} needs [mail] sender: the address emails come from",
    ]
    if provider in ("ses", "webhook"):
        lacking.append(f"{named} needs [mail] api_url")
    if provider == "ses":
        lacking.append(f"{named} needs [mail] user: the access key ID")
    assert faults_of(mail_provider=provider) == lacking


# Where those that have one URL for all take emails, as each documents.
USUAL_URLS = {
    "resend": "https://api.resend.com/emails",
    "postmark": "https://api.postmarkapp.com/email",
    "brevo": "https://api.brevo.com/v3/smtp/email",
    "mailgun": "https://api.mailgun.net/v3/blog.example/messages",
    "sendgrid": "https://api.sendgrid.com/v3/mail/send",
}


@pytest.mark.parametrize("provider", USUAL_URLS)
def test_a_provider_needs_no_url_where_it_has_one_for_all(config: Config, provider: str) -> None:
    settings: dict[str, Any] = {
        "mail_provider": provider,
        "mail_api_key": KEY,
        "mail_sender": SENDER,
    }
    assert faults_of(**settings) == []
    urls = []

    def fetch(url: str, *_: Any, **__: Any) -> tuple[int, bytes]:
        urls.append(url)
        return 200, b""

    world = replace(FakeWorld().world, fetch=fetch)
    [finding] = check_mail(replace(config, **settings), world, [])
    host = urlsplit(USUAL_URLS[provider]).netloc
    assert finding.text == f"{provider} ({host}) takes the key"
    assert urls == [USUAL_URLS[provider]]


def test_a_request_to_ses_is_signed_for_the_region_of_its_url(config: Config) -> None:
    signed = []

    def fetch(*asked: Any, **_: Any) -> tuple[int, bytes]:
        _, _, headers = asked
        signed.append(headers["authorization"])
        return 200, b""

    ses = replace(
        config,
        mail_provider="ses",
        mail_user="AKIDEXAMPLE",
        mail_api_key=KEY,
        mail_api_url="https://email.eu-west-1.amazonaws.com",
    )
    [finding] = check_mail(ses, replace(FakeWorld().world, fetch=fetch), [])
    assert finding.level.word == "ok"
    assert "/eu-west-1/ses/aws4_request" in signed[0]


@pytest.mark.parametrize("url", ["http://mail.example/", "http:", "http://127.0.0.1.example/"])
def test_the_key_is_sent_over_tls_alone(url: str) -> None:
    settings = {"mail_provider": "resend", "mail_api_key": KEY, "mail_sender": SENDER}
    faults = faults_of(**settings, mail_api_url=url)
    assert faults == ["[mail] api_url must begin with https: it is sent the key"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:8025/", "http://localhost", "http://[::1]:1"])
def test_the_key_may_stay_on_this_machine(url: str) -> None:
    settings = {"mail_provider": "resend", "mail_api_key": KEY, "mail_sender": SENDER}
    assert faults_of(**settings, mail_api_url=url) == []


def test_an_unknown_provider_is_named_with_those_there_are() -> None:
    [fault] = faults_of(mail_provider="pigeon")
    assert "smtp, resend, postmark" in fault


def test_requests_to_aws_are_signed_as_its_own_example() -> None:
    # "post-vanilla" of the test suite for Signature Version 4.
    headers = aws_headers(
        access_key="AKIDEXAMPLE",
        secret_key="wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
        service="service",
        region="us-east-1",
        host="example.amazonaws.com",
        path="/",
        body=b"",
        at=datetime(2015, 8, 30, 12, 36, tzinfo=UTC),
    )
    assert headers["authorization"].endswith(
        "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
    )
