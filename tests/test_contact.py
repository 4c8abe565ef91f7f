"""Whom to tell of a hole: `/.well-known/security.txt` (RFC 9116), where the owner says so."""

from dataclasses import replace
from datetime import datetime

import pytest
from conftest import START, Outside, Visitor

from commentd import DAY, Config, contact, make_app


@pytest.mark.parametrize("settings", [{"site_contact": "mailto:ann@example.com"}])
def test_it_names_the_contact_for_a_month(visitor: Visitor) -> None:
    reply = visitor.get("/.well-known/security.txt")
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    fields = dict(line.split(": ") for line in reply.text.splitlines())
    assert fields["Contact"] == "mailto:ann@example.com"
    assert datetime.fromisoformat(fields["Expires"]).timestamp() == START + 30 * DAY
    assert fields.keys() == {"Contact", "Expires"}


def test_it_says_where_it_is_at_home(config: Config, outside: Outside) -> None:
    public = {
        "server_public_url": "https://comments.example",
        "site_contact": "https://b.example/s",
    }
    app = make_app(replace(config, **public), outside.world, rounds=1)
    where = "/.well-known/security.txt"
    lines = Visitor(app).get(where).text.splitlines()
    app.close()
    assert lines[0] == "Contact: https://b.example/s"
    assert lines[-1] == f"Canonical: https://comments.example{where}"


def test_without_a_contact_it_looks_like_what_is_not_there(visitor: Visitor) -> None:
    reply = visitor.get("/.well-known/security.txt", status=404)
    assert reply.body == visitor.get("/nothing", status=404).body


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("", ""),
        ("Ann@Example.com", "mailto:ann@example.com"),
        ("mailto:ann@example.com", "mailto:ann@example.com"),
        ("https://blog.example/security/", "https://blog.example/security/"),
    ],
)
def test_a_contact_is_kept_as_a_uri(typed: str, kept: str) -> None:
    assert contact(typed) == kept


@pytest.mark.parametrize(
    "typed",
    ["ann", "http://blog.example/", "https://", "https://b.example/ x", "a@b.c\nExpires: x"],
)
def test_what_nobody_can_reach_is_no_contact(typed: str) -> None:
    with pytest.raises(ValueError, match="such as"):
        contact(typed)
