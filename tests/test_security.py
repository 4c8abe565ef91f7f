"""The limits that the manual states are in force; `/.well-known/security.txt` (RFC 9116) names the
owner's contact for security; cached files differ by origin."""

import re
from datetime import datetime

import pytest

from commentd import load_config
from support import inside
from support.client import Visitor
from support.sources import MANUAL
from support.world import START


@pytest.mark.parametrize("language", MANUAL)
def test_the_limits_in_the_manual_are_in_force(language: str) -> None:
    table = "\n".join(re.findall(r"^\|.*", MANUAL[language]["limits"], re.M))
    stated = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", table)}
    assert inside.rate_limits() <= stated


@pytest.mark.parametrize("settings", [{"site_contact": "mailto:ann@example.com"}])
def test_security_txt_names_the_contact_for_a_month(visitor: Visitor) -> None:
    reply = visitor.get("/.well-known/security.txt")
    assert reply.headers["Content-Type"] == "text/plain; charset=utf-8"
    fields = dict(line.split(": ") for line in reply.text.splitlines())
    assert fields["Contact"] == "mailto:ann@example.com"
    assert datetime.fromisoformat(fields["Expires"]).timestamp() == START + 30 * 86_400
    assert fields.keys() == {"Contact", "Expires"}


def test_security_txt_without_a_contact_is_like_any_missing_file(visitor: Visitor) -> None:
    reply = visitor.get("/.well-known/security.txt", status=404)
    assert reply.body == visitor.get("/nothing", status=404).body


def test_the_contact_of_security_txt_is_kept_as_a_reachable_uri() -> None:
    ann, page = "mailto:ann@example.com", "https://blog.example/security/"
    for typed, kept in {"": "", "Ann@Example.com": ann, ann: ann, page: page}.items():
        assert load_config(None, {"COMMENTD_SITE_CONTACT": typed}).site_contact == kept
    for typed in ("ann", "http://blog.example/", "https://", "https://b.example/ x", "a@b.c\nd"):
        with pytest.raises(inside.REFUSALS, match=r"^COMMENTD_SITE_CONTACT: "):
            load_config(None, {"COMMENTD_SITE_CONTACT": typed})


@pytest.mark.parametrize("settings", [{"site_origins": ("https://blog.example",)}])
def test_a_cached_file_is_kept_for_each_origin_by_itself(visitor: Visitor) -> None:
    for name in ("embed.js", "writing.js", "words/de.json"):
        reply = visitor.get(f"/{name}", headers={"Origin": "https://blog.example"})
        assert "max-age" in reply.headers["Cache-Control"]
        assert {"Origin", "Accept-Encoding"} <= set(reply.headers["Vary"].split(", "))
