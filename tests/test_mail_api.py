"""Emails that leave by HTTPS, where hosts block SMTP: what each provider is sent, and what becomes
of an email that it refuses."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from commentd import RULES, App, Config, aws_headers, check_mail
from support import inside
from support.client import Visitor
from support.inside import sql
from support.mail_api import KEY, PROVIDERS, SENDER, MailApi
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
    assert re.search(r"\b\d{6}\b", email.text)
    assert email.subject
    assert {name.lower(): value for name, value in email.headers.items()}["auto-submitted"]
    assert sql(app, "SELECT count(*) FROM outbox") == [(0,)]


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


ACCOUNT_FAULTS = [
    (403, {"name": "validation_error", "message": "The blog.example domain is not verified."}),
    (422, {"ErrorCode": 400, "Message": "Sender signature not found."}),
    (402, {"code": "not_enough_credits", "message": "Not enough credits"}),
    (429, {"name": "rate_limit_exceeded", "message": "Too many requests."}),
    (400, {"message": "Domain blog.example is not allowed to send: free accounts are limited."}),
    (400, {"errors": [{"message": "The from address does not match a verified Sender Identity."}]}),
    (500, "Internal Server Error"),
]


@pytest.mark.parametrize("provider", ["resend"], indirect=True)
@pytest.mark.parametrize("refusal", ACCOUNT_FAULTS, ids=str)
def test_a_fault_that_the_owner_can_correct_is_tried_again(
    app: App, visitor: Visitor, api: MailApi, refusal: tuple[int, Any]
) -> None:
    api.refuses = refusal
    visitor.register("ann@example.com")
    app.deliver()
    [(failure, is_tried_again)] = refused(app)
    assert failure.startswith(str(refusal[0]))
    assert is_tried_again


@pytest.mark.parametrize("provider", ["postmark"], indirect=True)
@pytest.mark.parametrize(
    "refusal",
    [
        (422, {"ErrorCode": 406, "Message": "Found inactive addresses: ann@example.com."}),
        (422, {"ErrorCode": 300, "Message": "Invalid 'To' address: 'ann@example.com'."}),
        (400, {"message": "'to' parameter is not a valid address. please check documentation"}),
    ],
    ids=str,
)
def test_a_recipient_that_is_refused_for_good_is_not_tried_again(
    app: App, visitor: Visitor, api: MailApi, refusal: tuple[int, Any]
) -> None:
    api.refuses = refusal
    visitor.register("ann@example.com")
    app.deliver()
    failures = refused(app)
    assert [is_tried_again for _, is_tried_again in failures] in ([], [0])
    assert "ann@example.com" not in str(failures)


@pytest.mark.parametrize(
    "provider", [name for name in PROVIDERS if name != "webhook"], indirect=True
)
def test_check_says_whether_the_key_is_right(config: Config, settings: dict[str, Any]) -> None:
    config = replace(config, **settings)
    world = FakeWorld().world
    findings = [*check_mail(config, world, "")]
    assert [finding.level.word for finding in findings] == ["ok"]
    wrong = replace(config, mail_api_key="wrong", mail_user="wrong")
    [finding] = check_mail(wrong, world, "")
    assert finding.level.word == "fail"
    assert "wrong" not in finding.text


def test_a_provider_that_lacks_a_setting_is_refused_at_the_start(provider: str) -> None:
    faults = faults_of(mail_provider=provider)
    assert f"[mail] provider = {provider} needs [mail] api_key" in faults
    assert any("needs [mail] sender" in fault for fault in faults)


def test_the_key_is_sent_over_tls_alone() -> None:
    faults = faults_of(
        mail_provider="resend",
        mail_api_key=KEY,
        mail_sender=SENDER,
        mail_api_url="http://mail.example/",
    )
    assert faults == ["[mail] api_url must begin with https: it is sent the key"]


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
