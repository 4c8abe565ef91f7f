"""The requirements of OWASP ASVS 5.0: each is in asvs.toml once, and the tests that it names exist.
Then tests of requirements that no other file tests."""

import ast
import logging
import re
import sqlite3
import ssl
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from commentd import once_a_minute
from support import provenance
from support.commands import run
from support.sources import (
    ROOT,
    SOURCE,
    STATIC_FILES,
    calls_of,
    functions,
    name_called,
    names_of_tests,
    source_of,
    whole_tree,
)

# How many requirements of levels 1 and 2 each section has. Those of level 3 come after them.
SECTIONS = """
    1.1:2 1.2:9 1.3:11 1.4:3 1.5:2 2.1:3 2.2:3 2.3:4 2.4:1 3.2:2 3.3:4 3.4:6 3.5:5 3.7:2 4.1:3
    4.2:1 4.3:2 4.4:4 5.1:1 5.2:3 5.3:2 5.4:3 6.1:3 6.2:12 6.3:4 6.4:4 6.5:5 6.6:3 6.8:4 7.1:3
    7.2:4 7.3:2 7.4:5 7.5:2 7.6:2 8.1:2 8.2:3 8.3:1 8.4:1 9.1:3 9.2:4 10.1:2 10.2:2 10.3:4
    10.4:11 10.5:5 10.6:2 10.7:3 11.1:2 11.2:3 11.3:3 11.4:4 11.5:1 11.6:1 12.1:3 12.2:2 12.3:4
    13.1:1 13.2:5 13.3:2 13.4:5 14.1:2 14.2:4 14.3:3 15.1:3 15.2:3 15.3:7 16.1:1 16.2:5 16.3:4
    16.4:3 16.5:3 17.1:1 17.2:4 17.3:2
"""
VERDICTS = ("test", "kept", "departs")

TEXT = (ROOT / "tests" / "asvs.toml").read_text("utf-8")
LIST: dict[str, Any] = tomllib.loads(TEXT)
REQUIREMENTS: dict[str, dict[str, Any]] = LIST["requirement"]
SCRIPTS = {path.name: path.read_text("utf-8") for path in STATIC_FILES if path.suffix == ".js"}


def expected() -> Iterator[str]:
    for section, count in re.findall(r"([\d.]+):(\d+)", SECTIONS):
        for number in range(int(count)):
            yield f"{section}.{number + 1}"


def verdict_on(requirement: dict[str, Any]) -> str:
    """A test may stand beside a departure, for the part that is met."""
    verdicts = [verdict for verdict in VERDICTS if verdict in requirement]
    return "departs" if verdicts == ["test", "departs"] else " and ".join(verdicts)


def test_every_requirement_of_both_asvs_levels_is_listed_once() -> None:
    without = [number for each in LIST["inapplicable"] for number in each["requirements"].split()]
    assert sorted([*REQUIREMENTS, *without]) == sorted(expected())


def test_every_requirement_of_the_asvs_has_one_verdict() -> None:
    for number, requirement in REQUIREMENTS.items():
        assert requirement.keys() <= {"about", *VERDICTS}, number
        assert verdict_on(requirement) in VERDICTS, number
        assert all(requirement.values()), number


def test_every_test_that_the_asvs_list_names_exists() -> None:
    named = set(re.findall(r"test_\w+\.py::test_\w+", TEXT))
    assert named >= {each["test"] for each in REQUIREMENTS.values() if "test" in each}
    assert named - names_of_tests() == set()


# Requirements that no other file tests


def test_no_regular_expression_is_made_of_input() -> None:
    for scope in provenance.scopes():
        for call in scope.calls:
            if re.fullmatch(r"re\.(?!escape)[a-z]+", name_called(call)):
                made = set(provenance.foreign(call.args[0], scope))
                assert made == set(), ast.unparse(call)
    # It joins patterns that stand above it.
    assert [name for name, text in SCRIPTS.items() if re.search(r"\bRegExp\(", text)] == ["code.js"]


def test_one_script_listens_to_messages_of_other_windows() -> None:
    """Beside the worker that the proof of work runs in, which only its page can talk to."""
    heard = [
        (name, found)
        for name, text in SCRIPTS.items()
        for found in re.findall(
            r"""addEventListener\(['"`]message|.(?<!worker\.)\bonmessage\s*=""", text
        )
    ]
    assert sorted(heard) == [
        ("login.js", "addEventListener('message"),
        ("proof.js", "`onmessage ="),
    ]


def test_no_page_navigates_to_another_site_by_itself() -> None:
    ways = (
        r"\blocation(?:\.href)?\s*=[^=]|\blocation\.(?:assign|replace)\(.*"
        r"|= open\(.*|link\.click\(.*|http-equiv"
    )
    found = {
        (path.name, way)
        for path in STATIC_FILES
        for way in re.findall(ways, path.read_text("utf-8"))
        if path.suffix in (".js", ".html")
    }
    assert found == {
        # To an identity provider, when a reader presses its button, and back to the page.
        ("login.js", "= open('', 'commentd-login', 'popup,width=520,height=680')"),
        ("login.js", "link.click()"),
        ("login.js", "location.replace(hash) // a route, or a comment"),
        ("login_page.js", "location.replace(`${page}#${fragment}`)"),
    }


def test_password_fields_are_masked_and_open_to_managers() -> None:
    fields = 0
    for name, text in SCRIPTS.items():
        for field in re.findall(r"type: 'password'[^\n]*", text):
            assert "autocomplete" in field, name
            fields += 1
        assert re.findall(r"field\('password'(?!, word, \{type: 'password')", text) == [], name
        assert not re.search(r"onpaste|Listener\('(paste|copy|drop|contextmenu)'", text), name
    assert fields


def test_secrets_are_drawn_with_a_hundred_and_twenty_eight_bits() -> None:
    drawn = [
        (function.name, ast.unparse(call.args[0]))
        for function in functions(whole_tree())
        if "random_bytes(" in source_of(function)
        for call in calls_of(r"(.*\.)?random_bytes", function)
    ]
    few = {(name, size) for name, size in drawn if int(size) < 16}
    assert few == {
        ("new_code", "8"),  # six digits
        ("new_challenge", "8"),  # a number of work
        ("new_recovery_code", "15"),  # to be written down
    }
    # Whatever is sealed has the whole hash, or the half of it that `short_hash` cuts, in hex.
    assert re.findall(r"\b(?:keyed|short)_hash\(.*\)\[:(\w+)\]", SOURCE) == ["32"]
    assert not re.search(r"(\w+) = (?:keyed|short)_hash\(.*\)\n.*\b\1\[", SOURCE)


def test_no_hash_is_weaker_than_sha_256() -> None:
    assert set(re.findall(r"hashlib\.(\w+)", SOURCE)) == {"sha256", "pbkdf2_hmac", "blake2b"}
    keyed = calls_of(r"hmac\.(new|digest)")
    # Authenticator apps know SHA-1 alone. In an HMAC it is not broken (RFC 6194, section 3.3).
    assert sorted(ast.unparse(call.args[-1]) for call in keyed if "sha1" in ast.unparse(call)) == [
        "'sha1'"
    ]
    assert {ast.unparse(call.args[-1]) for call in keyed} == {"'sha256'", "'sha1'"}


def test_tls_is_1_2_or_newer() -> None:
    assert ssl.create_default_context().minimum_version >= ssl.TLSVersion.TLSv1_2
    assert set(re.findall(r"ssl\.\w+\(", SOURCE)) == {"ssl.create_default_context("}
    nginx = (ROOT / "static" / "nginx.conf").read_text("utf-8")
    assert re.findall("ssl_protocols (.*);", nginx) == ["TLSv1.2 TLSv1.3"]


def test_every_column_of_the_database_says_who_may_see_it(db: sqlite3.Connection) -> None:
    """`readers` see some of these columns in part: a masked IP address, the status of what was
    deleted."""
    # Virtual tables, which have no page, keep what they have in others.
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0"
    tables = [row[0] for row in db.execute(sql)]
    columns = {
        table: sorted(row[1] for row in db.execute(f"PRAGMA table_info({table})"))
        for table in tables
        if not table.startswith("sqlite_")
    }
    viewers = {"readers", "person", "admins", "nobody"}
    assert all(seen.keys() <= viewers for seen in LIST["stored"].values())
    listed = {table: " ".join(seen.values()) for table, seen in LIST["stored"].items()}
    assert {table: sorted(names.split()) for table, names in listed.items()} == columns


def test_browsers_store_only_the_keys_that_the_list_names() -> None:
    call = r"\bkeep\((?:kit, )?'?([\w.]+)"
    kept = {word for text in SCRIPTS.values() for word in re.findall(call, text)}
    of_the_function = {"key"}
    assert kept - of_the_function - {"form.draft"} == {*LIST["browser"]}  # that is a `draft`
    others = r"indexedDB|document\.cookie|caches\.open"
    assert [name for name, text in SCRIPTS.items() if re.search(others, text)] == []
    # That of the demo notes which one was there last, to forget what a browser has of it.
    keeping = Counter({name: text.count(".setItem(") for name, text in SCRIPTS.items()})
    # outdated.js keeps a draft where the script that would do it can’t be had any more.
    assert +keeping == {"errors.js": 1, "fresh.js": 1, "outdated.js": 1}


def test_logs_go_to_the_terminal_alone() -> None:
    assert set(re.findall(r"logging\.(?:handlers\.)?(\w*Handler)", SOURCE)) <= {"StreamHandler"}
    (setup,) = re.findall(r"basicConfig\(.*", SOURCE)
    assert "filename" not in setup


@pytest.mark.slow
def test_each_line_of_the_log_has_its_time_zone(tmp_path: Path) -> None:
    (tmp_path / "commentd.ini").write_text("[mail]\npassword = x\n")
    (tmp_path / "commentd.ini").chmod(0o644)
    _, _, errors = run(tmp_path, "check", TZ="Asia/Kathmandu")
    assert re.match(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\+0545 WARNING ", errors)


def test_a_line_of_the_log_is_written_once_a_minute_and_a_thousand_are_remembered() -> None:
    is_new = once_a_minute()

    def is_written(text: str, at: float) -> bool:
        record = logging.LogRecord("commentd", logging.WARNING, "", 0, text, None, None)
        record.created = at
        return is_new(record)

    assert [is_written("one", at) for at in (1000, 1001, 1059, 1060, 1061)] == [
        *(True, False, False, True, False)
    ]
    assert all(is_written(str(number), 1062) for number in range(1000))
    assert is_written("one", 1062)
    assert not is_written("one", 1063)
