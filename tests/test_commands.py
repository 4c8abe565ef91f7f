"""The command line, and what README.md and the manual say of it and of the API."""

import contextlib
import errno
import importlib.metadata
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import textwrap
import tomllib
import unicodedata
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commentd import (
    COMMANDS,
    SETTINGS,
    Arguments,
    __version__,
    example_config,
    load_config,
    setting_named,
)
from support.campaign import Campaign
from support.client import CANARY
from support.commands import PROGRAM, Words, run, run_here
from support.inside import routes
from support.sources import MANUAL, ROOT

README = (ROOT / "README.md").read_text("utf-8")
DOCUMENTS = "\n".join([README, *(text for each in MANUAL.values() for text in each.values())])
BLOCKS = [
    (kind, textwrap.dedent(text))
    for kind, text in re.findall(r"^ *```(\w*)\n(.*?)^ *```$", DOCUMENTS, re.M | re.S)
]
SHELL = [text.strip() for kind, text in BLOCKS if kind == "sh"]
SPANS = re.findall(r"`([^`\n]+)`", re.sub(r"^ *```.*?^ *```$", "", DOCUMENTS, flags=re.M | re.S))


@pytest.mark.slow
def test_version_help_and_example_work_with_wrong_settings(tmp_path: Path) -> None:
    assert run(tmp_path, "example") == (0, example_config("en"), "")
    chinese: dict[str, Any] = {"LC_ALL": "zh_CN.UTF-8", "PYTHONIOENCODING": "utf-8"}
    assert run(tmp_path, "example", **chinese)[1] == example_config("zh")
    chinese["PYTHONIOENCODING"] = "gbk"  # which is no encoding of settings
    assert run(tmp_path, "example", **chinese)[1] == example_config("en")
    (tmp_path / "commentd.ini").write_text("[mail]\nhots = x\n")
    assert run_here(tmp_path, "example") == (0, example_config("en"), "")
    python = ".".join(map(str, sys.version_info[:3]))
    server = importlib.metadata.version("waitress")
    versions = f"Python {python}, SQLite {sqlite3.sqlite_version}, waitress {server}"
    assert run_here(tmp_path, "--version") == (0, f"commentd {__version__} ({versions})\n", "")
    code, text, errors = run_here(tmp_path, "--help")
    assert (code, errors) == (0, "")
    listed = re.findall(r"^    (\w+) +\S", text.partition("\ncommands:\n")[2], re.M)
    assert listed == list(COMMANDS)
    assert {"--config", "--version"} <= set(re.findall(r"--\w+", text))
    parameters = {
        "serve": "[FILES ...]",
        "add": "BLOG",
        "check": "[FILES or URL ...]",
        "backup": "[FILE]",
        "restore": "FILE",
        "update": "[FILES ...]",
        "admin": "EMAIL",
        "moderator": "EMAIL",
        "import": "FILE",
        "export": "[FORMAT]",
        "render": "FOLDER",
        "move": "OLD NEW",
        "example": "[KIND] [FILES ...]",
        "help": "[TOPIC]",
    }
    for name in COMMANDS:
        usage = " ".join(run_here(tmp_path, name, "--help")[1].partition("\n\n")[0].split())
        assert usage.startswith(f"usage: commentd {name} ")
        assert usage.endswith(parameters.get(name, "]"))
    message = "commentd needs the package bottle: run `pip install .` where this file is\n"
    assert run(tmp_path, "example", python=("-S",)) == (1, "", message)


@pytest.mark.parametrize("locale", ["C.UTF-8", "zh_CN.UTF-8"])
@pytest.mark.parametrize("command", COMMANDS)
def test_options_are_explained(tmp_path: Path, command: str, locale: str) -> None:
    text = run_here(tmp_path, command, "--help", LC_ALL=locale)[1]
    options = re.findall(r"^  (-.+(?:\n {3,}.+)*)", text, re.M)
    assert options
    for option in options:  # its names and its value, then two spaces or a new line
        assert re.match(r"\S+( \S+)*(  +|\n +)\S", option), option


def test_files_for_servers_say_in_chinese_where_they_go(tmp_path: Path) -> None:
    for url in ("https://comments.example", "https://blog.example/talk"):
        (tmp_path / "commentd.ini").write_text(f"[server]\npublic_url = {url}\n")
        for kind in ("nginx", "caddy", "systemd", "systemd@"):
            english, chinese = (
                run_here(tmp_path, "example", kind, LC_ALL=language)[1]
                for language in ("en_US.UTF-8", "zh_CN.UTF-8")
            )
            comment = re.compile(r"^\s*#(?! ? ?[a-z_]+ off;|   ).*\n", re.M)
            assert comment.sub("", english) == comment.sub("", chinese), kind
            said = comment.findall(chinese)
            assert said, kind
            assert [line for line in said if "{{" in line] == []
            assert re.search("[\u4e00-\u9fff]", said[0]), kind
            assert english.isascii(), kind


def test_wrong_use_of_a_command_exits_with_2(tmp_path: Path) -> None:
    usage = [
        "dance",
        "--dance",
        "--config",
        "recount twice",
        "backup once twice",
        "restore",
        "recount --mail a@example.com",
        "import",
        "import x y",
        "import x --format none",
        "import x --format",
        "import x --host",
        "import --dry-run",
        "import x --dry",
        "update --chec",
        "--vers",
    ]
    commands = ("import file", "move /a /b", "backup", "")
    usage += [f"{command} --emails" for command in commands]  # only an export takes it
    wrong = dict.fromkeys(usage, "usage: commentd ")
    for arguments, message in (
        wrong
        | {"example twice": "commentd: the examples are: systemd, "}
        | {"serve a.ini": "commentd: a.ini: No such file or directory"}
        | {"check a.ini": "commentd: a.ini: No such file or directory"}
        | {"example systemd": "commentd: go to the folder of commentd.ini, or name it: "}
    ).items():
        code, text, errors = run_here(tmp_path, *arguments.split())
        assert (code, text) == (2, ""), arguments
        assert errors.startswith(message), arguments
        assert not list(tmp_path.iterdir()), arguments


def test_commands_print_chinese_where_the_terminal_is(tmp_path: Path) -> None:
    chinese = {"LC_ALL": "", "LC_MESSAGES": "", "LANG": "zh_CN.UTF-8"}
    (tmp_path / "public").mkdir()
    comment = {
        "objectId": "a",
        "url": "/a/",
        "nick": "甲",
        "comment": "好",
        "createdAt": "2020-01-01",
    }
    (tmp_path / "old.json").write_text(json.dumps({"results": [comment]}), "utf-8")
    counter = {"objectId": "b", "url": "/a/", "title": "甲", "time": 321}
    (tmp_path / "views.json").write_text(json.dumps({"results": [counter]}), "utf-8")
    for arguments, printed in {
        "backup": "没有这个数据库\n",
        "recount": "先启动一次服务\n",
        "import old.json": "valine：读取 1，新增 1，已存在 0，跳过 0\n",
        "admin ann@example.com": "让 ann@example.com 成为管理员",
        "import views.json": "  增加的阅读数：321\n",
        "move /c/ /b/": "移动的页面：0；全部页面的网址见 /admin",
        "move /a/* /b/": "两个网址要么都以 * 结尾",
        "render public": "跳过的页面：0\n",
        "render nowhere": "nowhere：没有这个文件夹\n",
        "export": "没有导出：账号、谁点了赞、设置（这些在 `commentd backup` 的备份里）；邮箱",
        "export waline --emails": "没有导出：修改记录、关闭的页面、页面的赞\n",
        "export x": "导出的格式有：commentd, wordpress",
        "example x": "能打印的配置有：",
        "example nginx": "# commentd 前面的 nginx。",
        "example container": "# 用容器运行 commentd，",
        "help dance": "没有 dance 这个主题；全部主题：\n",
    }.items():
        code, text, errors = run_here(tmp_path, *arguments.split(), **chinese)
        assert printed in text + errors, (arguments, code, text, errors)
    assert run_here(tmp_path, "recount", **chinese) == (0, "所有计数都正确\n", "")


def test_help_prints_the_manual_in_the_language_of_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "commentd.ini").write_text("[mail]\nhots = x\n")
    for environ, language in (
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "de_DE.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "C", "LC_ALL": "zh_TW"}, "zh"),
    ):
        environ = dict.fromkeys(("LC_ALL", "LC_MESSAGES", "LANG"), "") | environ
        code, listed, errors = run_here(tmp_path, "help", **environ)
        assert (code, errors) == (0, "")
        for name, text in MANUAL[language].items():
            assert run_here(tmp_path, "help", name, **environ) == (0, text, "")
            first = text.splitlines()[0].removeprefix("# ")
            assert re.search(rf"^  {name} +{re.escape(first)}$", listed, re.M)
        code, text, errors = run_here(tmp_path, "help", "dance", **environ)
        assert (code, text) == (2, "")
        first, _, rest = errors.partition("\n")
        assert first in (
            "commentd: there is no topic dance; the topics are:",
            "commentd: 没有 dance 这个主题；全部主题：",
            "commentd: 沒有 dance 這個主題；全部主題：",
        )
        assert rest.strip() == listed.partition("\n\n")[2].strip()
        groups = [line for line in listed.splitlines()[1:] if re.match(r"\S", line)]
        assert groups in (
            ["Start", "Your blog", "Run", "Reference"],
            ["开始", "你的博客", "日常", "参考"],
        )


@pytest.mark.slow
@pytest.mark.parametrize("words", [("help", "api"), ("example",)])
def test_a_command_whose_pipe_is_closed_ends_without_a_word(tmp_path: Path, words: Words) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, *PROGRAM, *words]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environ, stdout=writing, stderr=subprocess.PIPE
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, b"")


def test_an_import_of_a_missing_file_is_refused_and_makes_no_database(tmp_path: Path) -> None:
    for words in ([], ["--dry-run"]):
        missing = "commentd: none.json: there is no such file\n"
        assert run_here(tmp_path, "import", "none.json", *words) == (1, "", missing)
    assert [*tmp_path.iterdir()] == []


def test_an_import_names_a_new_database_and_missing_settings(tmp_path: Path) -> None:
    record = {"_id": 1, "comment": "hi", "url": "/", "created": 1_790_000_000_000}
    (tmp_path / "file").write_text(json.dumps(record))
    new = f"the database is a new one: {tmp_path / 'commentd.db'}"
    without = f"{new} (there is no commentd.ini in {tmp_path})\n"
    assert without in run_here(tmp_path, "import", "file", "--dry-run")[1]
    (tmp_path / "commentd.ini").touch()
    assert f"{new}\n" in run_here(tmp_path, "import", "file")[1]
    assert "new one" not in run_here(tmp_path, "import", "file")[1]


@pytest.mark.slow
def test_a_terminal_gets_escapes_for_what_it_cannot_show(tmp_path: Path) -> None:
    folder = tmp_path / "博客"
    folder.mkdir()
    record = {"_id": 1, "comment": "hi", "url": "/", "created": 1_790_000_000_000}
    (folder / "file").write_text(json.dumps(record))
    code, text, errors = run(folder, "import", "file", PYTHONIOENCODING="ascii")
    assert (code, errors) == (0, "")
    assert rf"{tmp_path}/\u535a\u5ba2/commentd.db" in text


def test_each_wrong_setting_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "commentd.ini").write_text(f"[mail]\nhots = x\npassword {CANARY}\n")
    code, text, errors = run_here(tmp_path, COMMENTD_SITE_DEMO="x")
    assert (code, text, CANARY in errors) == (2, "", False)
    (tmp_path / "commentd.ini").write_text("[mail]\nhots = x\n")
    message = (
        "commentd: commentd.ini: [mail] hots: there is no such setting; did you mean [mail] host?\n"
        "commentd: COMMENTD_SITE_DEMO: must be yes or no\n"
    )
    assert run_here(tmp_path, COMMENTD_SITE_DEMO="x") == (2, "", message)
    elsewhere = run_here(tmp_path, "--config", "none.ini", "serve")
    assert elsewhere == (2, "", "commentd: none.ini: No such file or directory\n")
    assert [path.name for path in tmp_path.iterdir()] == ["commentd.ini"]


def test_commands_name_a_file_or_folder_that_can_not_be_there(tmp_path: Path) -> None:
    long = "x" * 300
    text = f"commentd: {long}.ini: File name too long\n"
    assert run_here(tmp_path, "check", f"{long}.ini") == (2, "", text)


FAILURES = {
    "commentd: /srv/a.db: the user of the service may not use it. Put it into the folder of "
    "commentd.ini, or change its owner or rights (chown, chmod)": PermissionError(
        errno.EACCES, "Permission denied", "/srv/a.db"
    ),
    "commentd: [Errno 1] Operation not permitted": PermissionError(
        errno.EPERM, "Operation not permitted"
    ),
}


@pytest.mark.parametrize("said", FAILURES)
def test_commands_say_which_file_they_may_not_use_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    def fail(_: Arguments) -> int:
        raise FAILURES[said]

    monkeypatch.setitem(COMMANDS, "recount", replace(COMMANDS["recount"], run=fail))
    assert run_here(tmp_path, "recount") == (1, "", f"{said}\n")


@pytest.mark.slow
def test_an_unusable_database_or_address_exits_with_1(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("not a database, though long enough to be read as one " * 20)
    with contextlib.closing(sqlite3.connect(tmp_path / "other.db")) as db:
        db.execute("CREATE TABLE of_others (id)")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("none/c.db", ".", "text.db", "other.db"):
        code, text, errors = run_here(tmp_path, "recount", COMMENTD_DATABASE_PATH=name)
        assert (code, text) == (1, ""), name
        path = (tmp_path / name.split("/")[0]).resolve()
        assert re.fullmatch(rf"commentd: {re.escape(str(path))}.*\n", errors), name
    assert run(tmp_path, COMMENTD_DATABASE_PATH="text.db")[:2] == (1, "")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for host in ("127.0.0.1", "a..b"):
            listen = f"{host}:{taken.getsockname()[1]}"
            code, text, errors = run(tmp_path, COMMENTD_SERVER_LISTEN=listen)
            assert (code, text) == (1, ""), listen
            assert re.fullmatch(rf"commentd: .*{re.escape(listen)}.*\n", errors), listen


# README.md and the manual


def width(line: str) -> int:
    """The columns that a line takes in a terminal."""
    return sum(1 + (unicodedata.east_asian_width(character) in "WF") for character in line)


def test_the_manual_has_the_same_topics_in_both_languages_and_fits_a_terminal() -> None:
    assert MANUAL.keys() == {"en", "zh"}
    one = sorted(MANUAL["en"].keys() ^ MANUAL["zh"].keys())
    assert not one, f"only one of static/help/en/ and static/help/zh/ has these topics: {one}"
    for language, topics in MANUAL.items():
        for name, text in topics.items():
            file = f"static/help/{language}/{name}.md"
            assert re.match(r"# \S.*\n\n", text), f"{file}:1: write '# A title' and an empty line"
            lines = text.splitlines()
            if language == "zh":  # what /admin shows of it, beside the text
                title = lines[0].partition("：")[0]
                assert width(title) <= 30, f"{file}:1: the title has over 30 columns before the ："
            wide = [
                f"{file}:{number}: {width(line)} columns, 100 fit: break the line"
                for number, line in enumerate(lines, 1)
                if width(line) > 100
            ]
            assert not wide, "\n".join(wide)


def test_the_first_command_of_the_readme_leads_to_a_demo() -> None:
    for half in README.split("\n## 中文\n"):
        first = re.findall(r"```sh\n(.*?)\n```", half, re.S)[0]
        assert first.removeprefix("LANG=zh_CN.UTF-8 ") == "pipx run --spec git+URL commentd demo"


@pytest.mark.slow
def test_the_commands_of_the_readme_are_sound_shell_and_ci_runs_the_same() -> None:
    subprocess.run(["sh", "-n", "-c", "\n".join(SHELL)], check=True)
    (test,) = {command for command in SHELL if "apt-get" in command}
    script = ROOT / ".ci/run"
    subprocess.run(["bash", "-n", script], check=True)
    assert test in script.read_text("utf-8").splitlines()


@pytest.mark.parametrize("table", ["attacks.md", "figures.md"])
def test_every_campaign_that_a_table_names_finds_its_tests(table: str) -> None:
    """Each row has a file and part of a test's name."""
    rows = (ROOT / "tests" / table).read_text("utf-8")
    named = re.findall(r"`pytest (tests/\w+\.py)(?: -k (\w+))?", rows)
    assert named
    for file, part in named:
        text = (ROOT / file).read_text("utf-8")
        campaigns = re.findall(r"^def (test_\w+)\([^)]*\bcampaign: Campaign", text, re.M)
        assert any(part in name for name in campaigns), (file, part)


def run_campaign(folder: Path, seed: int, rounds: int, fails_in: int = -1) -> list[int]:
    """The rounds that were begun."""
    campaign = Campaign("test_a[b]", seed, 0, rounds, None, str(folder))
    begun = []
    for _ in campaign.rounds(1):
        begun.append(campaign.last)
        campaign.measured("the last", campaign.last)
        if campaign.last == fails_in:
            break
        campaign.figures["passed"] += 1
    campaign.save()
    return begun


def test_a_campaign_goes_on_where_it_stopped_or_failed(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert run_campaign(folder, 1, 3) == [0, 1, 2]
    assert run_campaign(folder, 2, 1) == [0]
    assert run_campaign(folder, 1, 3, fails_in=4) == [3, 4]
    assert run_campaign(folder, 1, 2) == [4, 5]
    state = json.loads((folder / "test_a-b-.1.json").read_text("utf-8"))
    assert (state["next"], state["figures"]["passed"], state["most"]) == (6, 6, {"the last": 5})


def test_every_benchmark_that_is_named_exists() -> None:
    texts = [(ROOT / name).read_text("utf-8") for name in ("README.md", "tests/speed.md")]
    manual = [topics["speed"] for topics in MANUAL.values()]
    for text in (*texts, *manual):
        named = re.findall(r"tests/bench/\w+\.py", text)
        assert named
        for file in named:
            assert (ROOT / file).exists(), file


def named_commands() -> list[list[str]]:
    """The arguments of commentd, in the text and in its blocks."""
    lines = [line.strip() for _, text in BLOCKS for line in text.splitlines()]
    return [each.split()[1:] for each in [*SPANS, *lines] if re.match(r"commentd [\w-]", each)]


def test_every_command_topic_and_file_that_is_named_exists(tmp_path: Path) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"commentd": "commentd:main"}
    options = {}
    for command in COMMANDS:
        text = run_here(tmp_path, command, "--help")[1]
        options[command] = re.findall(r"--[\w-]+", text)
    top = re.findall(r"--\w+", run_here(tmp_path, "--help")[1])
    named = named_commands()
    assert named
    for command, *arguments in named:
        assert command in (*COMMANDS, *top)
        if command == "help" and arguments:
            assert arguments[0] in ("TOPIC", *MANUAL["en"])
        if command in COMMANDS:
            given = [each.partition("=")[0] for each in arguments if each.startswith("--")]
            assert set(given) <= set(options[command]), (command, arguments)
    paths = re.findall(r"`((?:tests|static|\.ci)/[\w.]+|\w+\.py|pyproject\.toml)`", DOCUMENTS)
    paths += re.findall(r"\]\(([\w./]+)\)", README)
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_setting_that_is_named_exists(tmp_path: Path) -> None:
    named = [re.match(r"\[(\w+)\] (\w+)(?: = (.+))?", span) for span in SPANS]
    assert any(named)
    for found in filter(None, named):
        setting = SETTINGS[f"{found[1]}_{found[2]}"]
        if found[3]:
            setting.metadata["parse"](found[3])
    for variable in re.findall("COMMENTD_([A-Z_]+)", DOCUMENTS):
        name = variable.lower().replace("chat_phone_", "chat.phone_")
        assert setting_named(name), variable
    files = [text for kind, text in BLOCKS if kind == "ini"]
    assert files
    for number, text in enumerate(files):
        path = tmp_path / f"{number}.ini"
        path.write_text(text)
        load_config(path, {})


@pytest.mark.parametrize("language", MANUAL)
def test_the_tables_of_the_manual_are_those_of_the_program(tmp_path: Path, language: str) -> None:
    topics = MANUAL[language]
    listed = re.findall(r"^\| `([A-Z]+ /[^`?]*)`", topics["api"], re.M)
    page = f"static/help/{language}"
    documented = [each.replace("<", "{").replace(">", "}") for each in listed]
    lacking = [f"{page}/api.md lacks {route}" for route in routes() - {*documented}]
    left = [f"{page}/api.md has {route}, commentd.py not" for route in {*documented} - routes()]
    assert not lacking + left, "\n".join(sorted(lacking + left))
    twice = Counter(documented) - Counter({*documented})
    assert not twice, f"{page}/api.md has two rows of {', '.join(twice)}"
    for path in re.findall(r"^curl '?http://127.0.0.1:8080(/[^?']*)", "\n".join(SHELL), re.M):
        assert f"GET {path}" in listed
    record = {"_id": 1, "comment": "hi", "url": "/", "created": 1_790_000_000_000}
    (tmp_path / "file").write_text(json.dumps(record))
    assert run_here(tmp_path, "import", "file")[0] == 0
    exported = json.loads(run_here(tmp_path, "export")[1])
    written = {*exported["pages"][0], *exported["comments"][0]}
    untold = written - {*re.findall(r"`(\w+)`", topics["export"])}
    assert not untold, f"{page}/export.md lacks {sorted(untold)}"
    help_text = " ".join(run_here(tmp_path, "import", "--help")[1].split())
    products = re.findall(r"wrote the file: (.*?) --", help_text)[0].split(", ")
    formats = run_here(tmp_path, "export", "none")[2].rpartition(": ")[2].strip().split(", ")
    assert all([*products, *formats])
    for name in {*products} - {"commentd"}:
        heading = re.search(rf"(?im)^## .*\b{name}\b", topics["import"])
        assert heading, f"{page}/import.md lacks a heading with {name}"
        assert name in README.lower(), f"README.md lacks {name}"
    for name in formats:
        assert f"`{name}`" in topics["export"], f"{page}/export.md lacks `{name}`"


def test_the_changes_begin_with_this_version_in_both_languages() -> None:
    _, changes = README.split("\n## Changes\n")
    english, chinese = changes.split("\n### 更新内容\n")
    versions = re.findall(r"^### (\d\S+)", english, re.M)
    assert versions[0] == __version__
    assert re.findall(r"^#### (\d\S+)", chinese, re.M) == versions


@pytest.mark.slow
def test_the_text_of_a_release_is_its_changes_in_both_languages() -> None:
    text = subprocess.run([ROOT / ".ci" / "changes"], capture_output=True, check=True).stdout
    assert re.findall(r"^(The first|第一个)", text.decode(), re.M) == ["The first", "第一个"]
    assert "#" not in text.decode()


def test_the_containerfile_names_files_and_settings_that_are_there(tmp_path: Path) -> None:
    code, text, errors = run_here(tmp_path, "example", "container")
    assert (code, errors) == (0, "")
    assert " -f Containerfile " in text  # Docker would take a Dockerfile
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ")]
    assert [path for paths in copied for path in paths if not (ROOT / path).exists()] == []
    names = re.findall(r"\bCOMMENTD_(\w+)=", text)
    assert names
    assert {*map(str.lower, names)} <= {*SETTINGS}
    health = re.search(r"HEALTHCHECK CMD (\[.*\])", text)
    assert health
    compile(json.loads(health[1])[2], "healthcheck", "exec")
