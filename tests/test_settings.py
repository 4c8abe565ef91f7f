"""The settings: from a file and the environment, with every error reported at once."""

import json
import logging
import os
import re
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from commentd import (
    CHAT_SETTINGS,
    LOGIN_SETTINGS,
    SETTINGS,
    Config,
    Digest,
    LoginProvider,
    QuietHours,
    example_config,
    load_config,
    translated,
    zone_named,
)
from support import inside
from support.client import CANARY

EXAMPLE = Path(__file__).parent.parent / "commentd.example.ini"
KEY = "k" * 32
EVERY = {
    **SETTINGS,
    **{f"login.NAME_{key}": each for key, each in LOGIN_SETTINGS.items()},
    **{f"chat.NAME_{key}": each for key, each in CHAT_SETTINGS.items()},
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "commentd.ini"


def load(path: Path, text: str | bytes, **environ: str) -> Config:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return load_config(path, environ)


def errors_of(path: Path, text: str | bytes, **environ: str) -> list[str]:
    with pytest.raises(inside.REFUSALS, match=r"\w") as caught:
        load(path, text, **environ)
    return str(caught.value).splitlines()


def spellings(setting: str) -> tuple[str, str, str]:
    """Its section, its key, and its name in the environment."""
    return *setting.split("_", 1), f"COMMENTD_{setting.upper()}"  # type: ignore[return-value]


GOOD: list[tuple[str, str, Any]] = [
    ("server_listen", "0.0.0.0:1", "0.0.0.0:1"),
    ("server_listen", "[::1]:65535", "[::1]:65535"),
    ("server_listen", "unix:/run/commentd.sock", "unix:/run/commentd.sock"),
    ("server_public_url", "https://comments.example/under/", "https://comments.example/under"),
    ("server_trusted_proxy", "127.0.0.1", ("127.0.0.1/32",)),
    ("server_trusted_proxy", "10.0.0.0/8, ::1", ("10.0.0.0/8", "::1/128")),
    ("site_origins", "https://a.example, http://b:81/", ("https://a.example", "http://b:81")),
    ("site_origins", "HTTPS://A.Example:443，http://B:80、", ("https://a.example", "http://b")),
    ("site_origins", "https://a.example\n  https://b", ("https://a.example", "https://b")),
    ("site_origins", "https://博客.cn", ("https://xn--9krq6q.cn",)),
    ("site_origins", "https：／／博客。cn：8443／", ("https://xn--9krq6q.cn:8443",)),
    ("site_origins", "https://Straße.example/a?b#c", ("https://xn--strae-oqa.example",)),
    ("site_origins", "\"https://a.example\", 'http://b/'", ("https://a.example", "http://b")),
    ("site_origins", "https://ann.github.io/blog/", ("https://ann.github.io",)),
    ("server_public_url", "HTTPS://评论.cn/Under/", "https://xn--md3ata.cn/Under"),
    ("server_public_url", "“https://c.example”", "https://c.example"),
    ("server_listen", "127.0.0.1：8080", "127.0.0.1:8080"),
    ("server_listen", "http://127.0.0.1:8080/", "127.0.0.1:8080"),
    ("server_trusted_proxy", "127．0．0．1，10.0.0.0／8", ("127.0.0.1/32", "10.0.0.0/8")),
    ("site_name", "Ann's\n  blog", "Ann's blog"),
    ("site_name", '"Ann\'s blog"', "Ann's blog"),
    ("site_name", '"A" and "B"', '"A" and "B"'),
    ("site_timezone", "Europe/Berlin", zone_named("Europe/Berlin")),
    ("site_timezone", "berlin", zone_named("Europe/Berlin")),
    ("site_timezone", "europe/berlin", zone_named("Europe/Berlin")),
    ("site_timezone", "New York", zone_named("America/New_York")),
    ("site_timezone", "Asia/Beijing", zone_named("Asia/Shanghai")),
    ("site_timezone", "beijing", zone_named("Asia/Shanghai")),
    ("site_timezone", "北京", zone_named("Asia/Shanghai")),
    ("site_timezone", "北京时间", zone_named("Asia/Shanghai")),
    ("site_timezone", "东八区", zone_named("Asia/Shanghai")),
    ("site_timezone", "'Asia/Shanghai'", zone_named("Asia/Shanghai")),
    ("site_timezone", "UTC+8", timezone(timedelta(hours=8))),
    ("site_timezone", "GMT+8", timezone(timedelta(hours=8))),
    ("site_timezone", "utc+08:00", timezone(timedelta(hours=8))),
    ("site_timezone", "+0800", timezone(timedelta(hours=8))),
    ("site_timezone", "UTC＋8", timezone(timedelta(hours=8))),
    ("site_timezone", "UTC-3:30", timezone(-timedelta(hours=3, minutes=30))),
    ("site_demo", "yes", True),
    ("site_demo", "On", True),
    ("site_demo", "TRUE", True),
    ("site_demo", "1", True),
    ("site_demo", '"yes"', True),
    ("limits_enabled", "no", False),
    ("limits_enabled", "Off", False),
    ("limits_enabled", "FALSE", False),
    ("limits_enabled", "0", False),
    ("database_path", "'/srv/a b.db'", "/srv/a b.db"),
    ("token_key", KEY, KEY),
    ("token_key", "钥" * 11, "钥" * 11),
    ("mail_port", "0", 0),
    ("mail_port", "65535", 65535),
    ("mail_port", "２５", 25),
    ("mail_security", "TLS", "tls"),
    ("mail_password", "100%", "100%"),
    ("mail_password", "%(x)s", "%(x)s"),
    ("mail_password", "a#b;c", "a#b;c"),
    ("mail_password", "a = b: c", "a = b: c"),
    ("mail_password", '"q"', '"q"'),
    ("mail_sender", "comments@example.com", "comments@example.com"),
    ("mail_sender", "小站 <comments@example.com>", "小站 <comments@example.com>"),
    ("notify_digest", "daily 18:00", Digest(18 * 60)),
    ("notify_digest", "Daily　9：05", Digest(9 * 60 + 5)),
    ("notify_digest", "23:59", Digest(23 * 60 + 59)),
    ("notify_digest", "", None),
    ("notify_quiet", "22:00-08:00", QuietHours(22 * 60, 8 * 60)),
    ("notify_quiet", "22：00 – 8：00", QuietHours(22 * 60, 8 * 60)),
    ("notify_quiet", "", None),
    ("captcha_provider", "None", "none"),
    ("privacy_show_ip", "Full", "full"),
    ("comments_max_length", "10000", 10_000),
    ("comments_page_size", "100", 100),
    ("comments_reactions", "👍 🎉, 😄👍", ("👍", "🎉", "😄")),
    ("comments_reactions", "❤️👩‍💻👍🏽🇨🇳1️⃣🏴󠁧󠁢󠁥󠁮󠁧󠁿", ("❤️", "👩‍💻", "👍🏽", "🇨🇳", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿")),
    ("comments_reactions", "", ()),
    ("comments_avatars", "QQ, gravatar", ("qq", "gravatar")),
    ("comments_picture_hosts", "i.imgur.com", ("https://i.imgur.com",)),
    (
        "comments_picture_hosts",
        "https://I.example/, *.sinaimg.cn，http://localhost:8000",
        ("https://i.example", "https://*.sinaimg.cn", "http://localhost:8000"),
    ),
    ("comments_picture_hosts", "图床.cn", ("https://xn--wcso9o.cn",)),
    ("privacy_policy_url", "https://blog.example/privacy/", "https://blog.example/privacy/"),
    ("privacy_policy_url", "https://blog.example/?p=2#you", "https://blog.example/?p=2#you"),
]


def test_a_setting_is_read_from_the_file_and_from_the_environment(path: Path) -> None:
    for setting, text, value in GOOD:
        section, key, variable = spellings(setting)
        in_file = load(path, f"[{section}]\n{key} = {text}\n")
        in_environment = load(path, "", **{variable: text})
        assert [getattr(each, setting) for each in (in_file, in_environment)] == [value] * 2


# What is meant, for wrong values, several with "|" in between.
BAD = [
    ("server_listen", "host:port", "|8080|:8080|::1:80|[x]:80|a b:80|unix:commentd.sock|h:8o"),
    ("server_listen", "up to 65535", "localhost:65536"),
    ("server_public_url", "https://", "blog|//b|ftp://b|https://|https://b/?x=1|https://["),
    ("server_trusted_proxy", "127.0.0.1", "nginx|10.0.0.1/8|*"),
    # What no browser ever sends as an origin would silently refuse everybody.
    ("site_origins", "write it as https://blog.example", "null|*|https://*.b|https://u@b"),
    ("site_origins", "write it as https://b.example", "b.example|b.example/x/"),
    ("site_origins", "write it as https://xn--9krq6q.cn", "博客.cn|博客.cn/index.html"),
    ("site_origins", "b", "https://ok.example b"),
    ("site_origins", "a comment needs a line of its own", "https://ok.example # my blog"),
    ("server_public_url", "such as https://c.example", "c.example|c.example/"),
    ("site_timezone", "Europe/Berlin or Asia/Shanghai", "CST|Europe|UTC+24|../UTC|Mars"),
    ("mail_host", "such as smtp.example.com", "smtp example|ann@smtp.example|smtp.example:x"),
    ("site_demo", "yes or no", "|2|maybe"),
    ("token_key", "32 bytes", "k" * 31),
    ("mail_port", "from 0 to 65535", "|-1|65536|2_5|999999999"),
    ("mail_security", "starttls, tls, none", "ssl"),
    ("mail_sender", "such as comments@", "ann|a b|a@|@|<>|(|a@b@c|a@b..c|评@b.c|a@例.c"),
    ("mail_sender", "such as comments@", "a@b.c, d@e.f|a@b c.d"),
    ("captcha_provider", "altcha, turnstile, hcaptcha, recaptcha, none", "cusdis"),
    ("comments_max_length", "from 1 to 10000", "0|10001|1e3"),
    ("comments_page_size", "from 1 to 100", "0|101"),
    ("comments_reactions", "must be emojis", "up|👍 party|:)|1 2"),
    ("comments_avatars", "gravatar, cravatar, libravatar, qq", "yes|gravatar twitter"),
    ("comments_reactions", "more than 12", "😀😁😂😃😄😅😆😇😈😉😊😋😌"),
    ("comments_picture_hosts", "such as i.imgur.com", "i.imgur.com/x|ftp://a.example|*|a*.example"),
    ("notify_digest", "such as 18:30", "weekly|daily|24:00|18:60|6 pm|daily 18:00 UTC"),
    ("notify_quiet", "22:00-08:00", "22:00|yes|22:00-22:00|22:00-23:00-08:00"),
    ("notify_quiet", "such as 18:30", "22-8|22:00-25:00"),
    ("privacy_show_ip", "masked, full, none", "some"),
]


def test_a_wrong_setting_is_named_with_its_place_and_the_right_form(path: Path) -> None:
    for setting, meant, texts in BAD:
        section, key, variable = spellings(setting)
        for text in texts.split("|"):
            (in_file,) = errors_of(path, f"[{section}]\n{key} = {text}\n")
            (in_environment,) = errors_of(path, "", **{variable: text})
            assert in_file.startswith(f"{path}: [{section}] {key}: "), text
            assert in_environment.startswith(f"{variable}: "), text
            assert (meant in in_file, meant in in_environment) == (True, True), text


def test_a_port_may_stand_beside_the_mail_host(path: Path) -> None:
    text = "[mail]\nsender = a@b.c\nsecurity = tls\nhost = "
    for host, server in {
        "smtp.example.com:2465": ("smtp.example.com", 2465),
        "https://smtp.example.com": ("smtp.example.com", 465),
        "smtps://smtp.example.com/": ("smtp.example.com", 465),
        "[::1]:2525": ("::1", 2525),
        "::1": ("::1", 465),
    }.items():
        assert inside.mail_server(load(path, f"{text}{host}")) == server, host
    assert inside.mail_server(load(path, f"{text}a.example:25\nport = 25")) == ("a.example", 25)
    assert errors_of(path, f"{text}a.example:25\nport = 26") == [
        "[mail] host and [mail] port name different ports"
    ]


@pytest.mark.parametrize(("security", "port"), [("starttls", 587), ("tls", 465), ("none", 25)])
def test_a_mail_server_has_the_usual_port_of_its_security(
    path: Path, security: str, port: int
) -> None:
    text = f"[mail]\nsender = a@b.c\nsecurity = {security}\nhost = a.example\n"
    assert inside.mail_server(load(path, text)) == ("a.example", port)
    assert inside.mail_server(load(path, f"{text}port = 2525")) == ("a.example", 2525)


def test_variables_that_kubernetes_adds_for_a_service_are_no_settings(path: Path) -> None:
    added = """COMMENTD_SERVICE_HOST=10.96.0.11
COMMENTD_SERVICE_PORT=8080
COMMENTD_SERVICE_PORT_HTTP=8080
COMMENTD_PORT=tcp://10.96.0.11:8080
COMMENTD_PORT_8080_TCP=tcp://10.96.0.11:8080
COMMENTD_PORT_8080_TCP_PROTO=tcp
COMMENTD_PORT_8080_TCP_PORT=8080
COMMENTD_PORT_8080_TCP_ADDR=10.96.0.11
COMMENTD_PORT_53_UDP=udp://[fd00::b]:53
COMMENTD_MAIL_SERVICE_HOST=fd00::b
COMMENTD_MAIL_PORT=tcp://10.96.0.12:25"""
    environ = dict(line.split("=") for line in added.splitlines())
    assert load(path, "", **environ) == load(path, "")
    assert load(path, "", **environ | {"COMMENTD_MAIL_PORT": "26"}).mail_port == 26
    wrong = {"COMMENTD_PORT": "8080", "COMMENTD_SERVICE_HOST": "nginx", "COMMENTD_MAIL_PROT": "25"}
    for name, value in wrong.items():
        (error,) = errors_of(path, "", **environ | {name: value})
        assert error.startswith(f"{name}: there is no such setting; ")


def test_errors_of_settings_are_chinese_where_the_terminal_is(path: Path) -> None:
    text = "[site]\ntimezone = CST\norigins = 博客.cn\n[mial]\nhost = x\n[mail]\nuser = a\n"
    assert errors_of(path, text, LANG="zh_CN.UTF-8") == [
        f"{path}: [site] timezone: 要写时区的名称，中国是 Asia/Shanghai",
        f"{path}: [site] origins: 博客.cn：请写成 https://xn--9krq6q.cn",
        f"{path}: [mial] host: 没有这个设置；是不是 [mail] host？",
        "设置了 [mail] user，也要设置 [mail] password",
    ]
    (error,) = errors_of(path, "port = 1\n", LANG="zh_TW.UTF-8")
    assert error == f"{path}: 第 1 行：前面要先有 [小節]"
    (error,) = errors_of(path, "[site]\n[mail]\n[site]\n", LANG="zh_CN.UTF-8")
    assert error == f"{path}: 第 3 行：[site] 写了两次：每个小节只能写一次"


def test_no_setting_holds_a_control_character(path: Path) -> None:
    """But for blanks and the ends of lines, where a setting has its own rule for them."""
    for name, setting in SETTINGS.items():
        variable = f"COMMENTD_{name}".upper()
        for sign in ("\n", "\t", "\x1b[2J", "\x07", "\x7f", "\x9b"):
            if sign not in "\n\t" or setting.metadata["parse"] is str:
                errors = errors_of(path, "", **{variable: f"a{sign}b"})
                assert f"{variable}: must be one line, without control" in errors[0]


def test_all_errors_of_settings_are_reported_at_once(path: Path) -> None:
    text = """[mail]
hots = smtp.example.com
user = ann
[Mail]
host = x
[limits]
host = x
[blog]
colour = green
[comments]
page_size = many
[site]
origins = https://a.example
https://b.example
"""
    wrong = {"COMMENTD_MAIL_PROT": "25", "COMMENTD_LIMITS_ENABLED": "perhaps", "COMMENTD_": ""}
    unknown = "there is no such setting;"
    assert {*errors_of(path, text, **wrong, OTHER_MAIL_PROT="25")} == {
        f"{path}: [mail] hots: {unknown} did you mean [mail] host?",
        f"{path}: [Mail] host: {unknown} did you mean [mail] host?",
        f"{path}: [limits] host: {unknown} did you mean [mail] host?",
        f"{path}: [blog] colour: {unknown} `commentd example` prints them all",
        f"{path}: [comments] page_size: must be a whole number from 1 to 100",
        f"{path}: [site] https: {unknown} does it go on from the line before? Then indent it",
        f"COMMENTD_MAIL_PROT: {unknown} did you mean [mail] port?",
        "COMMENTD_LIMITS_ENABLED: must be yes or no",
        f"COMMENTD_: {unknown} `commentd example` prints them all",
        "[mail] user is set, so set [mail] password too",
    }


def test_the_environment_wins_and_a_byte_order_mark_is_no_part(path: Path) -> None:
    text = "[mail]\nport = 25\nsecurity = tls\n"
    config = load(path, text, COMMENTD_MAIL_PORT=" 26 ", MAIL_SECURITY="none")
    assert (config.mail_port, config.mail_security) == (26, "tls")
    assert load(path, b"\xef\xbb\xbf[mail]\r\nport = 26\r\n").mail_port == 26


def test_a_settings_file_that_can_not_be_read_is_one_error(path: Path, tmp_path: Path) -> None:
    for text, reason in [
        (b"[mail]\nport = 1\nport = 2\n", "line 3: [mail] port is there twice"),
        (b"[mail]\nport = 1\n[mail]\n", "line 3: [mail] is there twice: write each section once"),
        (b"[mail]\nsender = \xff\n", "not UTF-8"),
        (b"port = 1\n", "section"),
        (b"[mail]\nport\n", "line"),
    ]:
        (error,) = errors_of(path, text)
        assert error.startswith(f"{path}: ")
        assert reason in error
    for missing, reason in [(tmp_path / "none.ini", "No such file"), (tmp_path, "Is a directory")]:
        with pytest.raises(inside.REFUSALS, match=f"^{re.escape(str(missing))}: {reason}"):
            load_config(missing, {})


def test_no_error_of_settings_repeats_a_secret(path: Path) -> None:
    for text in [
        f"[mail]\npassword {CANARY}\n",
        f"password = {CANARY}\n",
        f"[mail\npassword = {CANARY}\n",
        f"[mail]\npassword = x\npassword = {CANARY}\n",
        f"[mail]\nuser = {CANARY}\npassword = {CANARY}\nhost = x\nsecurity = ssl\n",
        f"[mail]\npasswort = {CANARY}\n",
        f"[token]\nkey = {CANARY}\n",
        f"[mail]\npassword = {CANARY}\nsecurity = none\nuser = u\nhost = far.example\n",
    ]:
        assert CANARY not in "\n".join(errors_of(path, text))
        words = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
        environ = {f"COMMENTD_MAIL_{key.upper()}": value for key, value in words.items()}
        assert CANARY not in "\n".join(errors_of(path, "[x]\ny=z", **environ))


def test_the_database_lies_beside_the_file_that_names_it(path: Path) -> None:
    assert load(path, "").database_path == str(path.parent / "commentd.db")
    assert load(path, "[database]\npath = a/b.db").database_path == str(path.parent / "a/b.db")
    assert load(path, "[database]\npath = /srv/b.db").database_path == "/srv/b.db"
    assert load(path, "[geo]\nfile = a.mmdb").geo_file == str(path.parent / "a.mmdb")
    assert load_config(None, {}) == Config(database_path="commentd.db") == Config()


SERVER = "[mail]\nhost = smtp.example\n"
LOCAL = "[server]\nlisten = 127.0.0.1:80\ntrusted_proxy = "
SOCKET = "[server]\nlisten = unix:/run/c.sock\ntrusted_proxy = "


def test_settings_that_contradict_each_other_stop_the_start(path: Path) -> None:
    for text, reason in [
        (SERVER, "set [mail] sender too"),
        (SERVER + "user = ann\npassword = x", "set [mail] sender too"),
        (SERVER + "user = a@b.c\n", "set [mail] password too"),
        ("[moderation]\nhold = email\n", "so set [server] public_url"),
        (SERVER + "user = a@b.c\npassword = x\nsecurity = none", "in clear"),
        ("[server]\nlisten = 0.0.0.0:80\ntrusted_proxy = 0.0.0.0/0", "trusts everyone"),
        ("[server]\nlisten = [::]:80\ntrusted_proxy = 127.0.0.1 ::/0", "trusts everyone"),
        (LOCAL + "0.0.0.0/0", "trusts everyone"),
        (LOCAL + "unix", "must be unix where"),
        (SOCKET + "127.0.0.1", "must be unix where"),
    ]:
        (error,) = errors_of(path, text)
        assert reason in error, text
    for text in [
        SERVER + "sender = a@b.c",
        SERVER + "user = a@b.c\npassword = x",
        SERVER + "sender = a@b.c\nsecurity = none",
        "[mail]\nhost = localhost\nuser = a@b.c\npassword = x\nsecurity = none",
        SOCKET + "10.0.0.1 unix",
        "[server]\nlisten = 0.0.0.0:80\ntrusted_proxy = 10.0.0.0/8",
    ]:
        assert load(path, text) != load(path, ""), text


def test_a_readable_secret_is_warned_about(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for text, mode, warned in [
        (f"[mail]\npassword = {CANARY}\n", 0o644, True),
        (f"[token]\nkey = {CANARY}{KEY}\n", 0o640, True),
        (f"[token]\nkey = {CANARY}{KEY}\n", 0o600, False),
        ("[mail]\nport = 25\n", 0o644, False),
    ]:
        caplog.clear()
        path.write_text(text)
        path.chmod(mode)
        load_config(path, {})
        assert [r.levelno for r in caplog.records] == [logging.WARNING] * warned, text
        assert (str(path) in caplog.text) == warned
        assert CANARY not in caplog.text


def test_settings_for_passwords_and_keys_are_marked_as_secrets() -> None:
    marked = {name for name, f in EVERY.items() if f.metadata["secret"]}
    pattern = (
        r"password|secret|(token|api|login_site)_key$|webhook_(rebuild_)?url|"
        r"chat\.NAME_(url|token|headers|body)"
    )
    assert marked == {name for name in EVERY if re.search(pattern, name)}


def test_each_line_of_the_example_settings_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path, whole = Path("commentd.ini"), example_config("en")
    command = "LANG=C .venv/bin/commentd example > commentd.example.ini"
    assert EXAMPLE.read_text("utf-8") == whole, f"commentd.example.ini is out of date: {command}"
    assert load(path, whole) == Config()
    text, providers, chats = re.split(r"\n\[(?:login|chat)\.NAME\]\n", whole)
    assert re.findall("^#([a-z_]+) =.*", providers, re.M) == [*LOGIN_SETTINGS]
    assert re.findall("^#([a-z_]+) =.*", chats, re.M) == [*CHAT_SETTINGS]
    lines = re.findall("^#([a-z_]+ =.*)", text, re.M)
    assert len(lines) == len(SETTINGS) == len(set(SETTINGS))
    assert load(path, re.sub("^#([a-z_]+ =)", r"\1", text, flags=re.M)) == Config()
    for line in lines:
        assert load(path, text.replace(f"\n#{line}\n", f"\n{line}\n")) == Config()
    assert os.listdir() == ["commentd.ini"]
    assert all(re.search(r"\w{4}.*\.$", f.metadata["help"], re.S) for f in EVERY.values())


def test_the_chinese_example_settings_have_the_defaults_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = example_config("zh_CN.UTF-8")
    setting = "^#([a-z_]+ =.*)"
    assert re.findall(setting, text, re.M) == re.findall(setting, example_config("en"), re.M)
    without_providers = text.split("\n[login.NAME]\n")[0]
    uncommented = re.sub(setting, r"\1", without_providers, flags=re.M)
    assert load(Path("commentd.ini"), uncommented) == Config()
    lacking = [
        f"static/terminal/{language}.json lacks {json.dumps(each.metadata['help'])}"
        for language in ("zh", "zh-tw")
        for each in EVERY.values()
        if translated(each.metadata["help"], language).isascii()
    ]
    assert not lacking, "\n".join(lacking)
    for each in EVERY.values():
        help_text = translated(each.metadata["help"], "zh")
        assert help_text.count("\n") < 3, f"static/terminal/zh.json: {each.name} has four lines"
        assert help_text.replace("\n", "\n# ") in text


# Identity providers


PUBLIC = "[server]\npublic_url = https://c.example\n[site]\norigins = https://b.example\n"
GITHUB = '[login.github]\nkind = github\nclient_id = id\nclient_secret = a"b"%c\n'
OWN = "[login.my-own]\nclient_id = id2\nclient_secret = x\nissuer = https://id.example/realm/\n"


def test_each_section_for_signing_in_is_a_provider(path: Path) -> None:
    assert load(path, PUBLIC).login_providers == ()
    assert load(path, PUBLIC + "[login.github]\n").login_providers == ()
    config = load(path, PUBLIC + GITHUB + OWN + "label = “My own” \n")
    assert config.login_providers == (
        LoginProvider("github", "github", "id", 'a"b"%c'),
        LoginProvider("my-own", "oidc", "id2", "x", "https://id.example/realm/", "My own"),
    )
    assert [each.shown_name for each in config.login_providers] == ["GitHub", "My own"]
    environ = {"COMMENTD_LOGIN_GITHUB_CLIENT_SECRET": "other", "COMMENTD_LOGIN_X_KIND": "github"}
    environ |= {"COMMENTD_LOGIN_X_CLIENT_ID": "y", "COMMENTD_LOGIN_X_CLIENT_SECRET": "z"}
    changed = load(path, PUBLIC + GITHUB, **environ).login_providers
    assert [each.client_secret for each in changed] == ["other", "z"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[login.github]\nkind = github\n", "[login.github] needs client_id"),
        (GITHUB.replace("client_secret", "label"), "[login.github] needs client_secret"),
        (GITHUB.replace("= github", "= mastodon"), "[login.github] needs issuer"),
        (OWN.replace("issuer", "label"), "[login.my-own] needs issuer"),
        (GITHUB.replace("[login.github]", "[login.Git Hub]"), "[login.Git Hub]: write a name of"),
        (GITHUB.replace("[login.github]", "[login.]"), "[login.]: write a name of small letters"),
        (GITHUB + "clientid = x\n", "no such setting; did you mean [login.github] client_id?"),
        (GITHUB.replace("= github", "= gitlab"), "must be one of: oidc, github, mastodon"),
        (OWN.replace("https:", "http:"), "must be an https URL such as https://"),
        (OWN.replace("https:", "ftp:"), "must be an https URL such as https://"),
        (OWN.replace("https://", ""), "must be an https URL such as https://id.example"),
        (OWN.replace("realm/", "realm?a=b"), "must be an https URL such as https://"),
        (OWN.replace("id.example", "ann@id.example"), "must be an https URL such as https://"),
        ("[login]\nkind = github\n", "there is no such setting"),
    ],
)
def test_a_provider_that_cannot_work_is_refused(path: Path, text: str, error: str) -> None:
    assert error in "\n".join(errors_of(path, PUBLIC + text))


def test_a_provider_needs_the_urls_of_service_and_blog(path: Path) -> None:
    errors = errors_of(path, GITHUB)
    assert errors == [
        "[login.github] needs [server] public_url",
        "[login.github] needs [site] origins",
    ]
    chinese = errors_of(path, GITHUB, LANG="zh_CN.UTF-8")
    assert chinese[0] == "[login.github] 还需要 [server] public_url"


@pytest.mark.parametrize("host", ["localhost:3000", "127.0.0.1", "[::1]:3000", "127.1.2.3:80"])
def test_a_provider_on_this_machine_needs_no_tls(path: Path, host: str) -> None:
    config = load(path, PUBLIC + OWN.replace("https://id.example", f"http://{host}"))
    assert config.login_providers[0].issuer == f"http://{host}/realm/"


def test_the_host_of_a_provider_may_be_written_in_chinese(path: Path) -> None:
    config = load(path, PUBLIC + OWN.replace("id.example", "登录.example"))
    assert config.login_providers[0].issuer == "https://xn--w2t382c.example/realm/"
