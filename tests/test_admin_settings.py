"""Settings that an admin changes by the API of `/admin`: what can be changed, what wins, from when
on it counts, and how it is undone. `test_admin_page.py` has the page."""

import re
from collections.abc import Iterator
from dataclasses import replace
from email import message_from_string
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from commentd import SETTINGS, SETTINGS_AT_ADMIN, App, Config, load_config, main, make_app
from support import inside
from support.admin import OWNER, audit, held, new_owner
from support.admin import owner as owner  # a fixture
from support.client import CANARY, PAGE, Visitor
from support.notifications import EMAIL_TEXTS
from support.service import BLOG, Start
from support.service import start as start  # a fixture
from support.serving import until
from support.shared import shared_app
from support.world import FakeWorld

NAMES = [name for names in SETTINGS_AT_ADMIN.values() for name in names]


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[Visitor]:
    """The owner whose every change is refused, so that all cases share the service."""
    folder = tmp_path_factory.mktemp("refused")
    with shared_app(folder, empty_database, FakeWorld()) as app:
        yield new_owner(app)


def change(owner: Visitor, status: int = 200, /, lang: str = "en", **texts: str) -> Any:
    form = {"settings": texts, "password": CANARY}
    return owner.patch_json(f"/admin/settings?lang={lang}", form, status=status).json


def faults(owner: Visitor, **texts: str) -> dict[str, str]:
    refused = change(owner, 400, **texts)
    assert refused["code"] == "setting_invalid"
    return {fault["name"]: fault["text"] for fault in refused["faults"]}


def signed_in(app: App) -> Visitor:
    """The admin of a database that there was before."""
    owner = Visitor(app)
    owner.authorization = ("Bearer", inside.token_of(app, OWNER, "admin"))
    return owner


def setting(owner: Visitor, name: str) -> dict[str, Any]:
    section, _, key = name.partition("_")
    settings = owner.get("/admin/settings").json["settings"]
    [found] = [each for each in settings if (each["section"], each["key"]) == (section, key)]
    return dict(found)


# What can be changed

# Another text for each setting, and how it is shown.
TEXTS = {
    "site_name": ("Olga’s blog", "Olga’s blog"),
    "site_timezone": ("berlin", "Europe/Berlin"),
    "privacy_policy_url": ("https://blog.example/privacy", "https://blog.example/privacy"),
    "privacy_count_countries": ("yes", "yes"),
    "moderation_hold": ("all", "all"),
    "moderation_words": ("casino\ncheap pills", "casino, cheap pills"),
    "limits_enabled": ("no", "no"),
    "comments_login_required": ("yes", "yes"),
    "comments_protect_names": ("yes", "yes"),
    "comments_max_length": ("500", "500"),
    "comments_edit_minutes": ("0", "0"),
    "comments_close_after_days": ("30", "30"),
    "notify_owner": ("ann@example.com\nbob@example.com", "ann@example.com, bob@example.com"),
    "notify_pages": ("/photos/* = nobody", "/photos/* = nobody"),
    "notify_language": ("zh-tw", "zh-tw"),
    "notify_digest": ("18:00", "daily 18:00"),
    "notify_quiet": ("22:00-08:00", "22:00-08:00"),
    "privacy_show_location": ("no", "no"),
    "comments_page_size": ("20", "20"),
}


def test_each_setting_of_the_page_has_another_text_here() -> None:
    assert TEXTS.keys() - {*NAMES} == set()
    lacking = {*NAMES} - TEXTS.keys()
    advice = "add another text, and how it is shown"
    assert not lacking, f"tests/test_admin_settings.py: TEXTS lacks {lacking}: {advice}"


PLAIN: dict[str, Any] = {"choices": [], "least": 0, "most": 0, "fault": ""}
CONTROLS: dict[str, dict[str, Any]] = {
    "site_name": {**PLAIN, "type": "text", "text": "", "default": ""},
    "moderation_words": {**PLAIN, "type": "lines", "text": "a\nb", "default": ""},
    "comments_max_length": {
        **PLAIN,
        "type": "number",
        "text": "500",
        "default": "2000",
        "least": 1,
        "most": 10_000,
    },
    "moderation_hold": {
        **PLAIN,
        "type": "choice",
        "text": "all",
        "default": "none",
        "choices": ["none", "links", "email", "first", "all"],
    },
    "limits_enabled": {
        **PLAIN,
        "type": "choice",
        "text": "yes",
        "default": "yes",
        "choices": ["yes", "no"],
    },
    "notify_language": {
        **PLAIN,
        "type": "choice",
        "text": "account",
        "default": "account",
        "choices": ["account", *sorted(EMAIL_TEXTS)],
    },
}


def test_a_setting_is_changed_with_a_control_of_its_type(owner: Visitor) -> None:
    change(owner, moderation_words="a\nb", comments_max_length="500", moderation_hold="ALL")
    assert {name: setting(owner, name)["control"] for name in CONTROLS} == CONTROLS


@pytest.mark.parametrize("name", NAMES)
def test_a_setting_is_changed_logged_and_undone(owner: Visitor, name: str) -> None:
    text, shown = TEXTS[name]
    before = setting(owner, name)
    assert before["control"]
    assert before["written_in"] == ""
    response = change(owner, **{name: text})
    assert response["was"] == {name: before["control"]["text"]}
    after = setting(owner, name)
    assert (after["value"], after["changed"]) == (shown, True)
    assert after in response["settings"]
    [entry] = owner.get("/admin/audit").json["audit"]
    assert (entry["who"], entry["action"], entry["subject"]) == ("Owner", "setting", name)
    assert (entry["detail"], entry["was"]) == (text, before["control"]["text"])
    assert change(owner, **response["was"])["was"] == {name: after["control"]["text"]}
    assert setting(owner, name) == before
    assert len(audit(owner)) == 2


def test_the_same_text_again_changes_and_logs_nothing(owner: Visitor) -> None:
    change(owner, site_name="Olga’s blog")
    assert change(owner, site_name=" Olga’s blog ")["was"] == {}
    assert len(audit(owner)) == 1


OTHERS = sorted({*SETTINGS} - {*NAMES})


@pytest.mark.parametrize("name", [*OTHERS, "login.github_client_secret", "no_such", ""])
def test_no_other_setting_can_be_changed(refused: Visitor, name: str) -> None:
    before = refused.served.site.config
    assert faults(refused, **{name: "yes"}) == {name: "this setting can't be changed at /admin"}
    assert refused.served.current_site().config == before
    assert audit(refused) == []


def test_no_secret_can_be_changed_or_is_shown_with_its_text() -> None:
    assert [name for name in NAMES if SETTINGS[name].metadata["secret"]] == []


# What is wrong


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("site_timezone", "Nowhere"),
        ("privacy_policy_url", "blog"),
        ("moderation_hold", "some"),
        ("moderation_hold", ""),
        ("limits_enabled", "perhaps"),
        ("comments_max_length", "0"),
        ("comments_edit_minutes", "-1"),
        ("comments_page_size", "6.5"),
        ("notify_owner", "ann"),
        ("notify_pages", "/photos/"),
        ("notify_language", "tlh"),
        ("notify_digest", "25:00"),
        ("notify_quiet", "22-8"),
        ("site_name", "a\x07b"),
    ],
)
def test_a_wrong_text_is_refused_in_the_words_that_a_file_would_get(
    refused: Visitor, tmp_path: Path, name: str, text: str
) -> None:
    section, _, key = name.partition("_")
    file = tmp_path / "commentd.ini"
    file.write_text(f"[{section}]\n{key} = {text}\n")
    with pytest.raises(inside.REFUSALS) as error:
        load_config(file, {})
    told = faults(refused, **{"comments_edit_minutes": "99", name: text})
    assert str(error.value) == f"{file}: [{section}] {key}: {told[name]}"
    assert setting(refused, "comments_edit_minutes")["value"] == "15"  # nothing was changed
    assert audit(refused) == []


def test_settings_are_refused_that_do_not_go_together(owner: Visitor) -> None:
    text = "[notify] digest is in the hours of [notify] quiet: choose another time"
    assert faults(owner, notify_digest="23:00", notify_quiet="22:00-08:00") == {
        "notify_quiet": text
    }
    change(owner, notify_digest="23:00")
    assert faults(owner, notify_quiet="22:00-08:00") == {"notify_quiet": text}
    change(owner, notify_digest="09:00", notify_quiet="22:00-08:00")
    assert faults(owner, moderation_hold="email") == {
        "moderation_hold": "[moderation] hold = email sends links, so set [server] public_url"
    }


def test_refusals_are_in_chinese_for_who_reads_that(owner: Visitor) -> None:
    refused = change(owner, 400, lang="zh", comments_max_length="0", token_key="x" * 32)
    assert [fault["text"].isascii() for fault in refused["faults"]] == [False, False]


@pytest.mark.parametrize("texts", [[], {}, {"site_name": 1}, {"site_name": None}, "x"])
def test_a_form_without_settings_is_refused(refused: Visitor, texts: Any) -> None:
    answer = refused.patch_json("/admin/settings", {"settings": texts}, status=400).json
    assert answer["code"] == "settings_invalid"


def test_a_text_of_ten_thousand_characters_is_the_longest(owner: Visitor) -> None:
    change(owner, moderation_words="x" * 10_000)
    form = {"settings": {"moderation_words": "x" * 10_001}}
    answer = owner.patch_json("/admin/settings", form, status=400).json
    assert answer["code"] == "settings_too_long"


# Who may


@pytest.mark.parametrize("name", ["notify_owner", "notify_pages"])
def test_other_recipients_need_the_password_of_the_admin(owner: Visitor, name: str) -> None:
    form: dict[str, Any] = {"settings": {name: TEXTS[name][0]}}
    answer = owner.patch_json("/admin/settings", form, status=400).json
    assert answer["code"] == "password_missing"
    answer = owner.patch_json("/admin/settings", {**form, "password": "wrong"}, status=403).json
    assert answer["code"] == "wrong_password"
    assert audit(owner) == []
    # A wrong text is told first.
    form = {"settings": {name: "nonsense"}}
    answer = owner.patch_json("/admin/settings", form, status=400).json
    assert answer["code"] == "setting_invalid"


def test_no_other_setting_needs_the_password(owner: Visitor) -> None:
    texts = {name: text for name, (text, _) in TEXTS.items() if not name.startswith("notify_")}
    owner.patch_json("/admin/settings", {"settings": texts})
    assert len(audit(owner)) == len(texts)


def test_the_token_of_the_widget_changes_no_setting(owner: Visitor) -> None:
    form = {"settings": {"site_name": "Mine"}}
    owner.widget.patch_json("/admin/settings", form, status=401)


# From when on


def test_a_change_counts_from_the_next_request_on(owner: Visitor, visitor: Visitor) -> None:
    visitor.say("at once")
    assert held(owner)[0] == "visible"
    change(owner, moderation_hold="all", comments_max_length="20")
    visitor.say("now waits")
    assert held(owner) == ("waiting", "all")
    visitor.say("x" * 21, status=400)
    change(owner, moderation_hold="none", comments_max_length="2000")
    visitor.say("x" * 21)
    assert held(owner)[0] == "visible"


def test_words_that_hold_a_comment_count_at_once(owner: Visitor, visitor: Visitor) -> None:
    change(owner, moderation_words="cheap pills, casino")
    visitor.say("Visit my casino!")
    assert held(owner) == ("waiting", "word: casino")


def test_statistics_have_the_days_of_the_new_time_zone(owner: Visitor) -> None:
    days = []
    for zone in ("Asia/Shanghai", "UTC+14"):  # where the next day has begun
        change(owner, site_timezone=zone)
        days += owner.get("/admin/figures").json["periods"][-1:]
    assert [day["last"] for day in days] == ["2026-11-18", "2026-11-19"]


def test_emails_have_the_new_name_and_go_to_the_new_recipients(
    owner: Visitor, visitor: Visitor, app: App, fake_world: FakeWorld
) -> None:
    change(owner, site_name="Olga’s blog", notify_owner="ann@example.com")
    visitor.say("hello")
    app.deliver()
    [email] = fake_world.emails
    assert email.recipient == "ann@example.com"
    message = message_from_string(email.message, policy=default)
    assert "Olga’s blog" in message["From"]


def test_a_change_is_there_after_a_restart(owner: Visitor, app: App, config: Config) -> None:
    change(owner, moderation_hold="all", site_timezone="Europe/Berlin")
    before = owner.get("/admin/settings").json
    app.close()
    again = make_app(config, FakeWorld().world, rounds=1)
    try:
        returned = signed_in(again)
        assert returned.get("/admin/settings").json["settings"] == before["settings"]
        Visitor(again).say("waits")
        assert held(returned) == ("waiting", "all")
    finally:
        again.close()


@pytest.mark.slow
def test_a_change_is_in_the_next_response_of_a_service_that_caches(start: Start) -> None:
    running = start(site={"origins": BLOG})
    (link,) = until(lambda: re.findall(r"/admin#link=([0-9a-f]{32}) ", running.output))
    claim = {"link": link, "email": OWNER, "nickname": "Owner", "password": CANARY}
    token = running.ask("POST", "/admin/claim", body=claim).json["token"]

    def hold() -> Any:
        return running.ask("GET", f"/comments?url={PAGE}&view=threads").json["settings"]["hold"]

    for text in ("first", "all", "none"):
        hold()
        body = {"settings": {"moderation_hold": text}}
        changed = running.ask(
            "PATCH", "/admin/settings", f"Authorization: Bearer {token}", body=body
        )
        assert changed.status == 200
        assert hold() == text


# Who wins


def test_the_file_and_the_environment_win_and_are_named(
    tmp_path: Path, fake_world: FakeWorld
) -> None:
    file = tmp_path / "commentd.ini"
    file.write_text("[captcha]\nprovider = none\n[moderation]\nhold = none\n")
    environ = {"COMMENTD_SITE_NAME": "From outside"}
    app = make_app(load_config(file, environ), fake_world.world, rounds=1)
    try:
        owner = new_owner(app)
        assert setting(owner, "moderation_hold")["written_in"] == str(file)
        assert setting(owner, "site_name")["written_in"] == "COMMENTD_SITE_NAME"
        assert faults(owner, moderation_hold="all", site_name="Mine") == {
            "moderation_hold": f"it is set in {file}: change it there",
            "site_name": "it is set in COMMENTD_SITE_NAME: change it there",
        }
        assert change(owner, comments_edit_minutes="5")["was"] == {"comments_edit_minutes": "15"}
    finally:
        app.close()


def test_a_line_of_the_file_hides_what_was_changed_before(
    tmp_path: Path, fake_world: FakeWorld
) -> None:
    file = tmp_path / "commentd.ini"
    holds: list[str] = []
    for line in ("", "[moderation]\nhold = first\n", ""):
        file.write_text(f"[captcha]\nprovider = none\n{line}")
        app = make_app(load_config(file, {}), fake_world.world, rounds=1)
        if not holds:
            change(new_owner(app), moderation_hold="all")
        holds.append(app.current_site().config.moderation_hold)
        app.close()
    assert holds == ["all", "first", "all"]


def test_a_stored_setting_that_is_refused_now_stops_nothing_and_is_told(
    owner: Visitor, app: App, config: Config, fake_world: FakeWorld
) -> None:
    change(owner, notify_digest="23:00", site_name="Olga’s blog")
    app.close()
    quiet = load_quiet(Path(config.database_path))
    again = make_app(quiet, fake_world.world, rounds=1)
    try:
        owner = signed_in(again)
        findings = owner.get("/admin/settings").json["findings"]
        told = "[notify] digest was changed at /admin, and is not in effect"
        assert told in [finding["text"] for finding in findings]
        refused = setting(owner, "notify_digest")
        assert refused["value"] == ""
        assert refused["control"]["fault"].startswith("[notify] digest is in the hours")
        assert setting(owner, "site_name")["value"] == "Olga’s blog"
        assert {*faults(owner, notify_digest="23:30")} == {"notify_digest"}
        # What is in effect now is kept, and the refused text dropped.
        change(owner, notify_digest="")
        assert setting(owner, "notify_digest")["control"]["fault"] == ""
        change(owner, notify_digest="09:00")
        assert setting(owner, "notify_digest")["value"] == "daily 09:00"
    finally:
        again.close()


def load_quiet(database: Path) -> Config:
    """The settings of a file that wants quiet hours."""
    file = database.with_name("commentd.ini")
    file.write_text(f"[notify]\nquiet = 22:00-08:00\n[database]\npath = {database}\n")
    return load_config(file, {})


# Others that read them


def test_commands_see_what_was_changed(
    owner: Visitor,
    app: App,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(owner, site_name="Olga’s blog", moderation_words="casino\ncheap pills")
    file = Path(config.database_path).with_name("commentd.ini")
    file.write_text(f"[database]\npath = {config.database_path}\n[comments]\nedit_minutes = 5\n")
    monkeypatch.setenv("LANG", "C")
    main(["check", "--config", str(file)])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "[site] name Olga’s blog /admin" in lines
    assert "[moderation] words casino, cheap pills /admin" in lines
    assert f"[comments] edit_minutes 5 {file}" in lines


def test_a_check_says_why_what_was_changed_is_not_in_effect(
    owner: Visitor,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change(owner, notify_digest="23:00")
    load_quiet(Path(config.database_path))
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    main(["check", "--config", str(Path(config.database_path).with_name("commentd.ini"))])
    printed = capsys.readouterr().out
    assert re.search(
        r"\[notify\] digest 在 /admin 改过，但没有生效\n +-> \[notify\] digest", printed
    )


def test_a_backup_has_what_was_changed(owner: Visitor, app: App, tmp_path: Path) -> None:
    change(owner, site_name="Olga’s blog")
    backup = owner.post_json("/admin/backup", {"password": CANARY})
    copy = tmp_path / "copy.db"
    copy.write_bytes(backup.body)
    copied = make_app(replace(app.site.config, database_path=str(copy)), FakeWorld().world)
    assert copied.current_site().config.site_name == "Olga’s blog"
    copied.close()


def test_backups_that_are_fine_are_not_on_the_list_of_what_is_to_be_done(owner: Visitor) -> None:
    Visitor(owner.served).say("hello")
    findings = owner.get("/admin/settings").json["findings"]
    assert "backup" not in [finding["topic"] for finding in findings]
    assert "captcha" in [finding["topic"] for finding in findings]
