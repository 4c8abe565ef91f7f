"""The doctor: `commentd check` as a real process beside real servers, and the page at / that shows
the same while there is no admin."""

import http.server
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from conftest import CANARY, Outside, Visitor, dump
from test_commands import run
from test_mail import PostOffice
from test_server import COMMENT, Start, services, until

import commentd
from commentd import (
    APPLICATION_ID,
    LEAST,
    MIGRATIONS,
    SETTINGS,
    TRIAL_SECRETS,
    Config,
    Store,
    examine_files,
    examine_settings,
    examine_versions,
    make_app,
)

pytestmark = pytest.mark.slow

LINE = re.compile(r"^  (ok|note|warn|fail) +(\w+) +(\S.*)$", re.M)
HOUR, DAY = 3600, 86400


@dataclass(frozen=True)
class Report:
    code: int
    text: str
    errors: str

    @property
    def found(self) -> list[tuple[str, str, str]]:
        """Level, topic and words of each finding."""
        return LINE.findall(self.text)

    @property
    def topics(self) -> list[str]:
        return [topic for _, topic, _ in self.found]

    def of(self, topic: str) -> list[str]:
        return [level for level, name, _ in self.found if name == topic]

    def words(self, topic: str) -> str:
        return "\n".join(words for _, name, words in self.found if name == topic)


def check(folder: Path, *words: str, **settings: object) -> Report:
    """`commentd check` in that folder; `mail_port=25` is COMMENTD_MAIL_PORT."""
    variables = {f"COMMENTD_{name.upper()}": str(value) for name, value in settings.items()}
    report = Report(*run(folder, "check", *words, **variables))
    assert "\x1b" not in report.text
    assert "Exception" not in report.errors
    # The exit code follows from what was found, and what is bad stands last.
    levels = [level for level, _, _ in report.found]
    assert levels == sorted(levels, key=["ok", "note", "warn", "fail"].index)
    assert report.code == (2 if not report.text else int("fail" in levels))
    return report


def beside(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.fixture
def kept(config: Config, tmp_path: Path) -> Path:
    """A folder with a database that holds a comment, as a clean stop leaves it."""
    app = make_app(config, rounds=1)
    Visitor(app).say()
    app.close()
    return tmp_path


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with services(tmp_path) as start:
        yield start


def change(folder: Path, *script: str) -> None:
    with closing(sqlite3.connect(folder / "commentd.db")) as db, db:
        for sql in script:
            db.execute(sql)


# What is set


def settings_of(report: Report) -> dict[tuple[str, str], tuple[str, str]]:
    """Value and source of each setting."""
    lines = re.findall(r"^  \[(\w+)\] (\w+) +(.*?) *(\S+)$", report.text, re.M)
    assert len(lines) == len({line[:2] for line in lines})
    return {(section, key): (value, source) for section, key, value, source in lines}


def test_every_setting_is_told_once_with_where_it_was_set(tmp_path: Path) -> None:
    text = "[site]\nname = My blog\ndemo = yes\norigins = https://a.example\n https://b.example\n"
    (tmp_path / "own.ini").write_text(text)
    report = check(tmp_path, "--config", "own.ini", site_name="Other", backup_every=12)
    told = settings_of(report)
    assert list(told) == list(SETTINGS)
    assert told["site", "name"] == ("Other", "COMMENTD_SITE_NAME")
    assert told["site", "demo"] == ("yes", "own.ini")
    assert told["site", "origins"] == ("https://a.example, https://b.example", "own.ini")
    assert told["backup", "every"] == ("12", "COMMENTD_BACKUP_EVERY")
    assert told["mail", "security"] == ("starttls", "default")
    assert told["mail", "host"] == ("", "default")


def test_no_secret_is_told_wherever_it_was_set(tmp_path: Path) -> None:
    keys = [("token", "key"), ("mail", "password"), ("captcha", "secret")]
    (tmp_path / "commentd.ini").write_text(
        "".join(f"[{section}]\n{key} = {CANARY * 2}\n" for section, key in keys)
    )
    for source, variables in (
        ("commentd.ini", {}),
        ("COMMENTD", {"_".join(key): f"{CANARY}-{CANARY}" for key in keys}),
    ):
        report = check(tmp_path, **variables)
        assert CANARY not in report.text + report.errors
        for key in keys:
            value, told = settings_of(report)[key]
            assert (value, told.split("_")[0]) == ("(hidden)", source)


def test_a_file_with_a_secret_that_others_can_read_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "commentd.ini").write_text(f"[mail]\npassword = {CANARY}\n")
    (tmp_path / "commentd.ini").chmod(0o644)
    report = check(tmp_path)
    assert (report.text + report.errors).count("chmod 600") == 1


def test_the_columns_stand_below_each_other_and_fit_a_terminal(kept: Path) -> None:
    report = check(kept, comments_login_required="yes")
    lines = report.text.splitlines()
    assert max(map(len, lines)) <= 100
    sources, findings = r"  \[\w+\] .* (?=(default|COMMENTD_\w+)$)", r"  (ok|note|warn|fail) +\w+ +"
    for pattern in (sources, findings):
        ends = {found.end() for line in lines if (found := re.match(pattern, line))}
        assert len(ends) == 1, pattern


def test_wrong_settings_are_2_and_nothing_is_examined(tmp_path: Path) -> None:
    report = check(tmp_path, mail_port="x", site_demo="x")
    assert (report.code, report.text) == (2, "")
    assert report.errors.count("commentd: COMMENTD_") == 2


PUBLIC = {"server_public_url": "https://comments.example", "server_trusted_proxy": ("127.0.0.1",)}
SAFE = {**PUBLIC, "mail_host": "m.example", "site_origins": ("https://blog.example",)}


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({}, {("note", "mail"), ("note", "origins"), ("note", "public_url")}),
        (PUBLIC, {("warn", "mail"), ("warn", "origins")}),
        (SAFE, set()),
        (SAFE | {"server_public_url": "http://c.example"}, {("warn", "public_url")}),
        (SAFE | {"server_trusted_proxy": ()}, {("warn", "unnamed_proxy")}),
        (SAFE | {"server_trusted_proxy": (), "server_listen": "0.0.0.0:80"}, set()),
        (SAFE | {"captcha_provider": "none"}, {("warn", "captcha")}),
        (SAFE | {"limits_enabled": False}, {("warn", "limits")}),
        *(
            (
                SAFE | {"captcha_provider": "turnstile", "captcha_secret": secret},
                {("warn", "captcha")},
            )
            for secret in TRIAL_SECRETS
        ),
        (SAFE | {"captcha_verify_url": "http://c.example"}, {("warn", "captcha")}),
    ],
)
def test_what_a_public_service_should_not_leave_is_warned_about(
    settings: dict[str, Any], found: set[tuple[str, str]]
) -> None:
    assert {(f.level, f.topic) for f in examine_settings(Config(**settings))} == found


# What is tried: mail, captcha, the way in


class StrictOffice(PostOffice):
    """Says so when a password is wrong."""

    def authenticate(self, *of: Any) -> Any:
        result = super().authenticate(*of)
        result.handled = False
        return result


@contextmanager
def post_office(**how: Any) -> Iterator[PostOffice]:
    office = StrictOffice(auth_require_tls=False, **how)
    office.start()
    try:
        yield office
    finally:
        office.stop()


def mail(port: int, security: str = "none", password: str = "geheim") -> dict[str, object]:
    usual = {"mail_host": "127.0.0.1", "mail_sender": "Blog <blog@blog.example>"}
    login = {"mail_user": "blog", "mail_password": password} if password else {}
    return usual | {"mail_port": port, "mail_security": security} | login


def test_the_mail_server_is_logged_in_to_and_a_letter_goes_where_it_is_asked_to(
    tmp_path: Path,
) -> None:
    with post_office() as office:
        report = check(tmp_path, **mail(office.port))
        assert (report.of("mail"), office.letters) == (["ok"], [])
        report = check(tmp_path, "--mail", "Owner@Blog.example", **mail(office.port))
    assert report.of("mail") == ["ok", "ok"]
    assert "owner@blog.example" in report.words("mail").lower()
    assert office.logins == [(b"blog", b"geheim")] * 3
    (letter,) = office.letters
    assert (letter.mail_from, letter.rcpt_tos) == ("blog@blog.example", ["owner@blog.example"])
    assert b"\r\nSubject: commentd\r\n" in letter.content


def test_mail_that_does_not_work_is_told_in_words(tmp_path: Path) -> None:
    with post_office() as office:
        refused = check(tmp_path, **mail(office.port, password=CANARY))
        clear = check(tmp_path, **mail(office.port, "starttls"))
        garbled = check(tmp_path, **mail(office.port, "tls"))
        assert office.letters == []
    closed = check(tmp_path, "--mail", "a@blog.example", **mail(office.port))
    assert [r.of("mail") for r in (refused, clear, garbled)] == [["fail"]] * 3
    assert closed.of("mail") == ["fail"]  # no letter is tried
    assert "535" in refused.words("mail")
    assert "STARTTLS" in clear.words("mail")
    assert "refused" in closed.words("mail").lower()
    for report in (refused, clear, garbled, closed):
        assert CANARY not in report.text + report.errors
        assert not re.search(r"b'|\(\d+, |^(\w+Error) \(\1\)", report.words("mail")), report.text


@pytest.mark.parametrize("address", ["owner", "a@blog.example\nb"])
def test_an_address_that_is_none_is_refused_with_words(tmp_path: Path, address: str) -> None:
    code, text, errors = run(tmp_path, "check", "--mail", address)
    assert code in (1, 2)
    told = [words for level, _, words in LINE.findall(text) if level == "fail"] or [errors]
    assert "address" in told[-1]


def test_without_a_mail_server_the_letter_is_printed(tmp_path: Path) -> None:
    report = check(tmp_path, "--mail", "owner@blog.example")
    assert "\nTo: owner@blog.example\nSubject: commentd\n" in report.text
    assert "on its way" not in report.text


@dataclass
class Site:
    """A web server that gives one answer to all, and what it was asked."""

    url: str
    asked: list[str]


@contextmanager
def answering(body: str, status: int = 200) -> Iterator[Site]:
    asked: list[str] = []

    class Talk(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            asked.append(f"{self.command} {self.path} {self.rfile.read(length).decode()}")
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET

        def log_message(self, *words: object) -> None:
            """Nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Talk) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield Site(f"http://127.0.0.1:{server.server_port}", asked)
        server.shutdown()
        thread.join()


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def verdict(*errors: str) -> str:
    return json.dumps({"success": False, "error-codes": errors})


@pytest.mark.parametrize(
    ("provider", "body", "status", "level", "word"),
    [
        *(
            (provider, verdict("invalid-input-response"), 200, "ok", "secret")
            for provider in ("turnstile", "hcaptcha", "recaptcha")
        ),
        ("turnstile", verdict("invalid-input-secret"), 200, "fail", "secret"),
        ("turnstile", verdict("internal-error"), 200, "fail", "no verdict"),
        ("turnstile", "<html>", 502, "fail", "502"),
    ],
)
def test_the_keys_of_a_captcha_are_tried(
    tmp_path: Path, provider: str, body: str, status: int, level: str, word: str
) -> None:
    keys = {"captcha_site_key": "k", "captcha_secret": CANARY}
    with answering(body, status) as site:
        report = check(
            tmp_path,
            captcha_provider=provider,
            captcha_verify_url=site.url + "/siteverify",
            site_origins="https://blog.example",
            **keys,
        )
    assert report.of("captcha") == sorted(["warn", level], key="ok warn fail".index)  # http:
    assert [f"secret={CANARY}" in line for line in site.asked] == [True]
    (told,) = [words for each, topic, words in report.found if (each, topic) == (level, "captcha")]
    assert word in told
    assert told.isascii()
    assert CANARY not in report.text + report.errors


def test_the_address_of_readers_is_tried_from_here(start: Start, tmp_path: Path) -> None:
    service = start()
    (tmp_path / "home").mkdir()
    assert check(tmp_path, server_public_url=service.address).of("public_url") == ["ok", "warn"]
    nobody = f"http://127.0.0.1:{closed_port()}"
    assert check(tmp_path, server_public_url=nobody).of("public_url") == ["warn", "fail"]
    for body in ("<html>ok", '{"status": "ok"}', '{"ok": false}', '["ok"]', ""):
        with answering(body) as other:
            report = check(tmp_path, server_public_url=other.url + "/comments")
        assert report.of("public_url") == ["warn", "fail"], body
        assert [line.split()[:2] for line in other.asked] == [["GET", "/comments/health"]]


# Files, rights, room


@pytest.mark.parametrize(("free", "level"), [(1, "fail"), (15, "fail"), (20, "warn"), (65, "ok")])
def test_a_disk_that_is_nearly_full_is_told(
    config: Config, monkeypatch: pytest.MonkeyPatch, free: int, level: str
) -> None:
    usage = shutil.disk_usage("/")._replace(free=free * 1024 * 1024)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    (found,) = [f for f in examine_files(config) if f.topic == "disk"]
    assert found.level == level
    assert str(free) in found.text


def test_files_that_others_can_read_are_named(kept: Path) -> None:
    (kept / "backups").mkdir()
    names = ("commentd.db", "backups/commentd-20260101-000000.db")
    (kept / names[1]).touch(0o600)
    assert check(kept).of("rights") == []
    for name in names:
        (kept / name).chmod(0o640)
    report = check(kept)
    assert report.of("rights") == ["warn"] * len(names)
    (kept / "commentd.db-wal").write_bytes(b"")
    (kept / "commentd.db-wal").chmod(0o604)
    report = check(kept)
    for name in (*names, "commentd.db-wal"):
        assert f"{name}: run chmod 600" in report.words("rights")


def test_a_folder_that_can_not_be_written_is_told(
    config: Config, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid() == 0:  # who may write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    else:
        kept.chmod(0o500)
    found = [(f.level, f.topic) for f in examine_files(config)]
    kept.chmod(0o700)
    assert ("fail", "rights") in found


@pytest.mark.parametrize("name", ["own.mmdb", "own.xdb", "missing.mmdb", "."])
def test_a_file_of_places_that_is_damaged_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "own.mmdb").write_bytes(b"noise" * 999)
    (tmp_path / "own.xdb").write_bytes(b"noise" * 999)
    report = check(tmp_path, geo_file=name)
    assert (report.code, report.of("places")) == (0, ["warn"])
    assert name in report.words("places")


# The database


@pytest.mark.parametrize(
    ("path", "level", "word"),
    [
        ("fresh.db", "note", "first start"),
        ("empty.db", "note", "first start"),
        ("none/c.db", "fail", "no such folder"),
        (".", "fail", "can't be opened"),
        ("text.db", "fail", "damaged"),
        ("cut.db", "fail", "damaged"),
        ("newer.db", "fail", "newer commentd"),
        ("older.db", "fail", "start the service once"),
        ("foreign.db", "fail", "another program"),
    ],
)
def test_a_database_is_judged_and_stays_as_it_was(
    kept: Path, path: str, level: str, word: str
) -> None:
    whole = (kept / "commentd.db").read_bytes()
    (kept / "empty.db").touch(0o600)
    (kept / "text.db").write_text("not a database, though long enough to be read as one " * 99)
    (kept / "cut.db").write_bytes(whole[: len(whole) // 2 + 99])
    for name, version, of in [
        ("newer", len(MIGRATIONS) + 1, APPLICATION_ID),
        ("older", len(MIGRATIONS) - 1, APPLICATION_ID),
        ("foreign", 0, 7),
    ]:
        (kept / f"{name}.db").write_bytes(whole)
        with closing(sqlite3.connect(kept / f"{name}.db")) as db:
            db.execute(f"PRAGMA user_version = {version}")
            db.execute(f"PRAGMA application_id = {of}")
    for file in kept.iterdir():
        file.chmod(0o600)
    before = beside(kept)
    report = check(kept, database_path=path)
    assert report.of("database") == [level]
    assert word in report.words("database")
    new = {name for name, data in beside(kept).items() if before.get(name) != data}
    assert new <= {f"{path}-turn", f"{path}-lock"}
    assert not (kept / "fresh.db-turn").exists()
    assert not (kept / "none").exists()


def test_what_a_sound_database_holds_is_told(kept: Path) -> None:
    before = beside(kept)
    report = check(kept)
    assert (report.code, report.of("database")) == (0, ["ok"])
    assert not {"clock", "counters", "outbox", "rights", "unnamed_proxy"} & set(report.topics)
    assert re.search(r"comments: 1, accounts: 0", report.words("database"))
    assert beside(kept) == before


@pytest.mark.parametrize(
    ("script", "topic", "level", "word"),
    [
        ("UPDATE comment SET created_at = created_at + 3600", "clock", "fail", "behind"),
        ("UPDATE page SET total = 7", "counters", "fail", "1"),
        (
            "INSERT INTO outbox (recipient, message, expires_at, failure) "
            f"VALUES ('a@example.com', '', {2**40}, 'SMTPDataError 554')",
            "outbox",
            "warn",
            "delivered: 1",
        ),
        (
            "INSERT INTO outbox (recipient, message, expires_at, due_at) "
            f"VALUES ('a@example.com', 'x', {2**40}, 1)",
            "outbox",
            "warn",
            "wait: 1",
        ),
    ],
    ids=["clock", "counters", "failed", "late"],
)
def test_what_the_database_tells_of_trouble_is_told(
    kept: Path, script: str, topic: str, level: str, word: str
) -> None:
    change(kept, script)
    report = check(kept)
    assert report.of(topic) == [level]
    assert word in report.words(topic)
    assert "example.com" not in report.text


def test_wrong_counters_are_mended_by_the_command_that_is_named(kept: Path) -> None:
    change(kept, "UPDATE page SET total = 7, threads = 0", "UPDATE comment SET likes = 2")
    report = check(kept)
    assert (report.code, report.of("counters")) == (1, ["fail"])
    named = re.findall(r"`commentd (\w+)`", report.words("counters"))
    assert named == ["recount"]
    assert run(kept, *named)[0] == 0
    assert (check(kept).code, check(kept).of("counters")) == (0, [])


@pytest.mark.parametrize(
    ("hours", "every", "level"),
    [
        ([], 24, "note"),
        ([1], 24, "ok"),
        ([300, 47], 24, "ok"),
        ([49], 24, "warn"),
        ([1], 0, "note"),
    ],
)
def test_the_age_of_the_last_copy_is_told(
    kept: Path, hours: list[int], every: int, level: str
) -> None:
    (kept / "backups").mkdir()
    for age in hours:
        made = datetime.fromtimestamp(time.time() - age * HOUR - 60, UTC)
        (kept / f"backups/commentd-{made:%Y%m%d-%H%M%S}.db").touch(0o600)
    report = check(kept, backup_every=every)
    assert report.of("backup") == [level]
    assert not hours or not every or f" {min(hours)} h ago" in report.words("backup")


def test_a_copy_of_a_time_to_come_is_warned_about(kept: Path) -> None:
    (kept / "backups").mkdir()
    made = datetime.fromtimestamp(time.time() + 400 * DAY, UTC)
    (kept / f"backups/commentd-{made:%Y%m%d-%H%M%S}.db").touch(0o600)
    report = check(kept)
    assert report.of("backup") == ["warn"]
    assert "a time to come" in report.words("backup")


def test_a_folder_of_copies_that_is_a_file_or_anothers_is_told_at_the_start_too(
    start: Start, kept: Path, tmp_path: Path
) -> None:
    (kept / "backups").touch()
    report = check(kept)
    assert (report.code, report.of("backup")) == (1, ["note", "fail"])
    assert "backups is a file" in report.words("backup")
    service = start()
    assert "backup: " in service.said
    assert "backups is a file" in service.said
    service.stop()
    (kept / "backups").unlink()
    (tmp_path / "other").mkdir()
    copies = str(kept / "backups")
    with closing(Store(tmp_path / "other/commentd.db")):
        assert run(tmp_path / "other", "backup", COMMENTD_BACKUP_FOLDER=copies)[0] == 0
    report = check(kept)
    assert report.code == 1
    said = f"backups keeps the copies of {tmp_path}/other/commentd.db: name another"
    assert said in report.words("backup")
    assert said in run(kept, "backup")[2]


def test_a_clock_that_is_behind_is_told_at_the_start(start: Start) -> None:
    service = start()
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    service.stop()
    change(service.path.parent, "UPDATE comment SET created_at = created_at + 3600")
    assert "clock: it is behind what was written" in start().said


def test_a_killed_service_is_examined_as_it_lies(start: Start, tmp_path: Path) -> None:
    service = start()
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    service.stop(signal.SIGKILL)
    assert (tmp_path / "commentd.db-wal").stat().st_size
    before = beside(tmp_path)
    report = check(tmp_path)
    assert (report.code, report.of("database")) == (0, ["ok"])
    assert "comments: 1" in report.words("database")
    after = beside(tmp_path)
    assert {name for name in before if after.get(name) != before[name]} <= {"commentd.db-shm"}


def test_beside_a_running_service_it_neither_waits_nor_changes_anything(
    start: Start, tmp_path: Path
) -> None:
    service = start()
    assert service.ask("POST", "/comments", body=COMMENT).status == 200
    with closing(sqlite3.connect(service.path)) as db:  # the postman has looked at it
        until(lambda: not db.execute("SELECT * FROM notification").fetchone())
    before = dump(str(service.path))
    with closing(sqlite3.connect(service.path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")  # a writer who takes its time
        report = check(tmp_path)
    assert (report.code, report.of("database")) == (0, ["ok"])
    assert dump(str(service.path)) == before
    assert service.ask("POST", "/comments", body=COMMENT).status == 200


@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Real-IP"])
def test_a_proxy_that_is_not_named_is_told(start: Start, tmp_path: Path, header: str) -> None:
    service = start()
    service.ask("GET", "/health", f"{header}: 203.0.113.9")
    seen = "SELECT count(*) FROM budget WHERE name = 'unnamed_proxy'"
    with closing(sqlite3.connect(service.path)) as db:
        until(lambda: db.execute(seen).fetchone()[0])
    report = check(tmp_path)
    assert report.of("unnamed_proxy") == ["warn"]
    assert "trusted_proxy" in report.words("unnamed_proxy")
    assert check(tmp_path, server_trusted_proxy="127.0.0.1").of("unnamed_proxy") == []


# Versions


@pytest.mark.parametrize("name", LEAST)
def test_a_package_below_its_floor_is_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def told() -> list[str]:
        return [f.text for f in examine_versions() if f.level == "warn"]

    versions = dict.fromkeys(LEAST, "10.0")
    monkeypatch.setattr("importlib.metadata.version", versions.__getitem__)
    assert told() == []
    versions[name] = LEAST[name]
    assert told() == []
    versions[name] = "0.3.6" if name == "nh3" else "0.13.3"
    (text,) = told()
    assert f"{name} {versions[name]}" in text
    assert LEAST[name] in text


# The page at /


def state(page: Any) -> Any:
    return json.loads(re.findall(r'<script[^>]+id="state">(.*?)</script>', page.text)[0])


def test_the_page_shows_levels_by_topic_and_nothing_of_the_machine(
    visitor: Visitor, config: Config, tmp_path: Path
) -> None:
    (tmp_path / "commentd.db").chmod(0o644)
    page = visitor.get("/")
    shown = state(page)
    assert shown.items() >= {"mail": "note", "origins": "note", "rights": "warn"}.items()
    assert set(shown.values()) <= {"note", "warn", "fail"}
    script = (Path(commentd.__file__).parent / "static/home.js").read_text("utf-8")
    for topic in shown:
        assert re.fullmatch("[a-z_]+", topic)
        assert len(re.findall(rf"\b{topic}: '", script)) >= 2, topic  # in each language
    telling = ["127.0.0.1", "commentd.db", str(tmp_path), commentd.__version__, CANARY]
    assert [word for word in telling if word in page.text] == []


def test_the_page_shows_the_worst_of_a_topic(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.1")
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 0))
    assert state(visitor.get("/"))["versions"] == "warn"


def test_the_page_shows_the_past_too(visitor: Visitor, outside: Outside) -> None:
    visitor.say()
    assert state(visitor.get("/"))["backup"] == "note"
    outside.time -= DAY
    assert state(visitor.get("/"))["clock"] == "fail"
    outside.time += DAY
    Visitor(visitor.served, ip="172.17.0.1").get("/health", headers={"X-Forwarded-For": "::1"})
    assert "unnamed_proxy" in state(visitor.get("/"))


ADMIN = """INSERT INTO account (email, nickname, password, role, created_at)
           VALUES ('owner@example.com', 'Owner', 'x', 'admin', 0)"""


def test_nobody_is_shown_the_state_when_there_is_an_admin_or_an_address(
    config: Config, visitor: Visitor, outside: Outside, tmp_path: Path
) -> None:
    nothing = {"public": True}
    assert state(visitor.get("/")) != nothing
    change(tmp_path, ADMIN.replace("'admin'", "'user'"))
    assert state(visitor.get("/")) != nothing
    change(tmp_path, "UPDATE account SET role = 'admin'")
    assert state(visitor.get("/")) == nothing
    public = replace(config, server_public_url="https://comments.example", site_demo=True)
    public = replace(public, database_path=str(tmp_path / "other.db"))
    with closing(make_app(public, outside.world, rounds=1)) as app:
        assert state(Visitor(app).get("/")) == nothing
