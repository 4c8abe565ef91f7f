"""What people install: the wheel, the sdist, the one-file program, the unit for systemd."""

import functools
import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from playwright.sync_api import Browser

from commentd import __version__, main
from support.client import COMMENT
from support.distributions import NAME, build, done, done_online, wheel_in
from support.inside import files_without_comments, small_files
from support.service import Service, services
from support.sources import ROOT

pytestmark = pytest.mark.slow

FILES = {
    str(path.relative_to(ROOT / "static"))
    for path in (ROOT / "static").rglob("*")
    if path.is_file()
}


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("built")
    build(ROOT, folder, "wheel")
    # What is in the sdist does not depend on how small it is.
    with mock.patch("gzip.GzipFile", functools.partial(gzip.GzipFile, compresslevel=1)):
        build(ROOT, folder, "sdist")
    assert len(list(folder.iterdir())) == 2
    return folder


def test_the_wheel_holds_the_module_its_files_and_nothing_else(distributions: Path) -> None:
    pytest.importorskip("minify")
    expected = {name: text.encode() for name, text in small_files(ROOT / "static").items()}
    assert {name for name in FILES if name.endswith((".css", ".js"))} == expected.keys()
    with zipfile.ZipFile(wheel_in(distributions)) as wheel:
        names = wheel.namelist()
        assert wheel.read("commentd.py") == (ROOT / "commentd.py").read_bytes()
        for name in FILES:
            data = wheel.read(f"commentd_static/{name}")
            assert data == expected.get(name, (ROOT / "static" / name).read_bytes())
    about = ["METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"]
    assert sorted(names) == sorted(
        ["commentd.py", *(f"commentd_static/{name}" for name in FILES)]
        + [f"{NAME}.dist-info/{name}" for name in about]
    )
    assert {"places4.db", "places6.db", "home.html", "nginx.conf", "commentd.service"} <= FILES


def test_without_a_minifier_the_scripts_of_a_wheel_lose_their_comments_and_nothing_else() -> None:
    comments = re.compile(r"^\s*(//.*|/\*(?:(?!\*/)(?s:.))*\*/)\n|^\s+| +// .*$", re.M)
    made = files_without_comments(ROOT / "static")
    for name in FILES:
        if name.endswith((".css", ".js")):
            source = (ROOT / "static" / name).read_text("utf-8")
            assert made[name] == comments.sub("", source), name
            behind = re.search(r"(?m)^\s*/\*(?:(?!\*/)(?s:.))*\*/ *\S", source)
            assert not behind, f"{name}: code behind a comment"
            for line in source.splitlines():
                code, gone, _ = line.partition(" // ")
                quoted = [mark for mark in "'\"`" if code.count(mark) % 2]
                assert not (gone and quoted), f"{name}: a string would be cut: {line}"


@pytest.mark.long
def test_the_widget_of_a_wheel_passes_all_tests_of_the_widget() -> None:
    pytest.importorskip("minify")
    files = sorted((ROOT / "tests").glob("test_widget*.py"))
    done(sys.executable, "-m", "pytest", "-q", "--small", *files, cwd=ROOT)


def test_the_sdist_holds_the_source_and_makes_the_same_wheel(
    distributions: Path, tmp_path: Path
) -> None:
    with tarfile.open(distributions / f"{NAME}.tar.gz") as sdist:
        names = {name.removeprefix(f"{NAME}/") for name in sdist.getnames()}
        # Debian's Python 3.11 has no filters yet, newer ones want one.
        how: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        sdist.extractall(tmp_path, **how)
    top = ["commentd.py", "commentd.example.ini", "pyproject.toml", "README.md", "LICENSE"]
    tests = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py")]
    needed = {*top, *tests, *(f"static/{name}" for name in FILES)}
    needed |= {".editorconfig", ".pre-commit-config.yaml"}
    needed |= {str(path.relative_to(ROOT)) for path in (ROOT / ".github").rglob("*.*")}
    needed |= {".ci/debian/commentd.ini"}  # no settings of somebody who works on this
    assert needed <= names
    others = names - needed - {"PKG-INFO", ".gitignore"}
    assert [name for name in others if not name.startswith((".ci/", "tests/"))] == []
    assert [name for name in others if re.search(r"\.(pyc|ini|db\S*)$|__pycache__", name)] == []
    build(tmp_path / NAME, tmp_path, "wheel")
    assert wheel_in(tmp_path).read_bytes() == wheel_in(distributions).read_bytes()


# Installed


@pytest.fixture(scope="module")
def installed_command(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command in an environment of its own, which uses the packages of this one."""
    folder = tmp_path_factory.mktemp("installed")
    done(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / "bin/python"
    done(
        *(sys.executable, "-m", "pip", "--python", python, "install", "--quiet"),
        *("--no-deps", "--no-index", wheel_in(distributions)),
    )
    site = done(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    Path(site, "borrowed.pth").write_text("\n".join(borrowed))
    where = done(python, "-c", "import commentd; print(commentd.__file__)", cwd=folder)
    assert where.strip() == str(Path(site, "commentd.py"))
    return folder / "bin/commentd"


def assert_serves(folder: Path, *command: str | Path, **environ: str | Path) -> None:
    """Checks the home page, a static file, an example, and the location of a comment."""
    arguments = list(map(str, command))
    program = f"""import os, sys
del os.environ["PYTHONPATH"]
os.environ.update({ {name: str(text) for name, text in environ.items()} })
os.execv({arguments[0]!r}, {arguments} + sys.argv[1:])"""
    with services(folder) as start:
        service: Service = start(program=program, server={"trusted_proxy": "127.0.0.1"})
        assert service.ask("GET", "/").status == 200
        assert (
            service.ask("GET", "/openapi.json").body == (ROOT / "static/openapi.json").read_bytes()
        )
        assert b"commentd-thread" in service.ask("GET", "/embed.js").body
        far = "X-Forwarded-For: 114.114.114.114"
        posted = service.ask("POST", "/comments", far, body=COMMENT)
        assert (posted.status, posted.json["comment"]["location"]) == (200, "江苏 南京")
    assert "Traceback" not in service.output
    assert done(*command, "--version", **environ).startswith(f"commentd {__version__} (Python 3.")
    assert "proxy_pass http://127.0.0.1:8080/;" in done(*command, "example", "nginx", **environ)


def test_the_project_needs_six_packages_and_no_more() -> None:
    """`commentd check` knows those that had vulnerabilities: see test_check."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed = {re.split("[^a-z0-9]", each)[0] for each in project["dependencies"]}
    assert needed == {"bottle", "waitress", "pyjwt", "mistune", "nh3", "segno"}


def test_the_wheel_serves_where_it_is_installed(installed_command: Path, tmp_path: Path) -> None:
    assert_serves(tmp_path, installed_command)


ASSETS = "import commentd; assets, _ = commentd.assets_with(commentd.Extras())"


def test_the_scripts_of_a_wheel_are_served_as_they_are_in_it(installed_command: Path) -> None:
    pytest.importorskip("minify")
    small = small_files(ROOT / "static")
    python = installed_command.with_name("python")
    for name in ("reading.js", "admin_page/shared.js", "home.css"):
        ask = f"{ASSETS}; print(assets['{name}'].body.decode(), end='')"
        served = done(python, "-c", ask, cwd=installed_command.parent)
        assert served.endswith(small[name]), name


EVERYTHING = """import sys; from pathlib import Path; import commentd as c
sys.path.insert(0, "tests")
from support import inside
inside.serve_small_files(Path(sys.argv[1]))
features = c.TextFeatures(formulas=True, tables=True)
images = c.Images(hosts=("https://i.example",))
extras = c.Extras(portraits=True, features=features, reactions=("x",), images=images)
print(c.assets_with(extras)[0]["embed.js"].body.decode())"""


def test_the_script_of_a_wheel_is_valid_with_all_of_its_parts(
    browser: Browser, tmp_path: Path
) -> None:
    pytest.importorskip("minify")
    script = done(sys.executable, "-c", EVERYTHING, str(tmp_path), cwd=ROOT)
    for part in ("<table>", "enlarge.js", ".reaction", "pictures/"):
        assert part in script
    browser.new_page().evaluate("script => { new Function(script) }", script)


def test_the_styles_of_a_wheel_ask_for_the_same_widths_and_media() -> None:
    pytest.importorskip("minify")
    asked = re.compile(r"@(container|media|supports|keyframes)\b")
    small = small_files(ROOT / "static")
    for path in (ROOT / "static").glob("*.css"):
        source = re.sub(r"(?s)/\*.*?\*/", "", path.read_text("utf-8"))
        assert asked.findall(small[path.name]) == asked.findall(source), path.name
        assert "container and" not in small[path.name]


def test_the_readme_says_how_large_the_widget_is(installed_command: Path) -> None:
    pytest.importorskip("minify")
    ask = f"{ASSETS}; print(len(assets['embed.js'].gzipped))"
    python = installed_command.with_name("python")
    size = int(done(python, "-c", ask, cwd=installed_command.parent)) / 1000
    readme = (ROOT / "README.md").read_text("utf-8")
    said = re.findall(r"(?:widget is|组件压缩后|组件只有) (\d+) kB", readme)
    assert len(said) == 5
    for number in said:
        assert int(number) == round(size)
    assert readme.count(f" {said[0]} kB instead of ") == 3


# How people install programs written in Python, each in a home of its own.

INSTALLERS = {
    # With the pip that is here: to install another one takes longer than all else.
    "pip": [
        "{bin}/python -m venv --without-pip venv",
        "{bin}/python -m pip --python venv/bin/python install {wheel}",
    ],
    "pipx": ["{bin}/pipx install --python {bin}/python {wheel}"],
    "uvx": [],  # it installs when it runs
}
PROGRAMS = {
    "pip": "{home}/venv/bin/commentd",
    "pipx": "{home}/bin/commentd",
    "uvx": "{bin}/uvx --python {bin}/python --from {wheel} commentd",
}


@pytest.mark.parametrize("installer", INSTALLERS)
def test_the_wheel_with_its_packages_is_installed_and_serves_in_an_empty_folder(
    installer: str, distributions: Path, tmp_path: Path
) -> None:
    folder = Path(sys.executable).parent
    if installer != "pip" and not (folder / installer).exists():
        pytest.skip(f"{installer} is not installed: pip install pipx uv")
    names = {"bin": folder, "home": tmp_path, "wheel": wheel_in(distributions)}
    own = {
        "HOME": tmp_path,
        "PIPX_HOME": tmp_path / "pipx",
        "PIPX_BIN_DIR": tmp_path / "bin",
        "UV_CACHE_DIR": tmp_path / "uv",
    }
    for line in INSTALLERS[installer]:
        done_online(*line.format_map(names).split(), cwd=tmp_path, **own)
    program = PROGRAMS[installer].format_map(names).split()
    assert "It works." in done_online(ROOT / ".ci/smoke.py", *program, **own)


@pytest.mark.long
def test_the_zipapp_serves_where_no_package_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("shiv")
    file = tmp_path / "commentd.pyz"
    done_online(ROOT / ".ci/pyz", file, PYTHON=sys.executable)
    assert file.read_bytes().startswith(b"#!/usr/bin/env python3\n")
    assert os.access(file, os.X_OK)
    bare = (sys.executable, "-I", "-S")
    assert subprocess.run([*bare, "-c", "import bottle"], capture_output=True).returncode == 1
    unpacked = tmp_path / "unpacked"
    assert_serves(tmp_path, *bare, file, SHIV_ROOT=unpacked)
    (site,) = unpacked.glob("commentd*/site-packages")
    assert {name for name in FILES if not (site / "commentd_static" / name).is_file()} == set()
    (site / "bottle.py").unlink()  # this copy was used
    with pytest.raises(AssertionError, match="bottle"):
        done(*bare, file, "--version", SHIV_ROOT=unpacked)


# systemd

PrintUnit = Callable[..., str]


@pytest.fixture
def print_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> PrintUnit:
    """What `commentd example systemd` prints for a program and a Python, run in a folder."""

    def printed(
        program: str, *arguments: str, folder: Path = tmp_path, python: str = "/usr"
    ) -> str:
        monkeypatch.chdir(folder)
        Path("commentd.ini").touch(0o600)
        monkeypatch.setattr(sys, "argv", [program])
        monkeypatch.setattr(sys, "base_prefix", python)
        monkeypatch.setattr(sys, "executable", f"{python}/bin/python3")
        assert main(["example", *arguments]) == 0
        return capsys.readouterr().out

    return printed


def values(print_unit: str, name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", print_unit, re.M)


def systemd_analyze(*arguments: str | Path) -> str:
    """Its output, without lines about what this machine lacks."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("there is no systemd-analyze: install Debian's package systemd")
    ended = subprocess.run([tool, *map(str, arguments)], capture_output=True, text=True)
    lines = (ended.stdout + ended.stderr).splitlines()
    output = "\n".join(line for line in lines if "is not executable: No such file" not in line)
    return output + f"\nexit code {ended.returncode}" if ended.returncode and output else output


def assert_sound(print_unit: str, file: Path) -> None:
    """systemd understands all of it, and its score is 2.0 (OK) or better."""
    assert "{{" not in print_unit
    assert values(print_unit, "ProtectSystem") == ["strict"]  # else ReadWritePaths means nothing
    file.write_text(print_unit)
    assert systemd_analyze("verify", file) == ""
    scored = systemd_analyze("security", "--offline=true", "--threshold=20", file)
    assert "exit code" not in scored, scored
    assert re.search(r"exposure level for \S+: [01]\.\d OK", scored)


def test_the_systemd_unit_starts_the_program_in_its_settings_folder(
    print_unit: PrintUnit, tmp_path: Path
) -> None:
    program = tmp_path / "srv/bin/commentd"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    folder = tmp_path / "blog"
    folder.mkdir()
    (folder / "commentd.ini").touch()
    text = print_unit(str(program), "systemd", folder=folder)
    assert values(text, "ExecStart") == [str(program)]
    assert values(text, "WorkingDirectory") == [str(folder)]
    named = print_unit(str(program), "systemd", "--config", "blog/commentd.ini")
    assert values(named, "ExecStart") == [f"{program} --config {folder}/commentd.ini"]
    for each in (text, named):
        assert shlex.split(values(each, "ReadWritePaths")[0]) == [str(folder)]
        assert values(each, "ProtectHome") == ["yes"]
        assert_sound(each, tmp_path / "commentd.service")


def test_a_systemd_unit_serves_all_blogs_and_may_write_to_all_their_folders(
    print_unit: PrintUnit, tmp_path: Path
) -> None:
    program = tmp_path / "srv/bin/commentd"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    settings = []
    for name in ("one", "two 100%"):
        file = tmp_path / name / "blog.ini"
        file.parent.mkdir()
        url = f"https://{name[:3]}.example"
        file.write_text(f"[server]\npublic_url = {url}\n[database]\npath = ../data/{name}.db\n")
        settings.append(file)
    text = print_unit(str(program), "systemd", "one/blog.ini", "two 100%/blog.ini")
    started = values(text, "ExecStart")[0].replace("%%", "%")
    assert shlex.split(started) == [str(program), "serve", *map(str, settings)]
    writable = shlex.split(values(text, "ReadWritePaths")[0].replace("%%", "%"))
    assert writable == [*(str(file.parent) for file in settings), f"-{tmp_path}/data"]
    assert_sound(text, tmp_path / "commentd.service")
    as_folder = print_unit(str(program), "systemd", "one")
    assert values(as_folder, "ExecStart") == [f"{program} serve {tmp_path}/one"]
    assert_sound(as_folder, tmp_path / "commentd.service")


def test_systemd_reads_the_paths_of_a_unit_whatever_is_in_them(print_unit: PrintUnit) -> None:
    systemd = Path("/lib/systemd/systemd")
    if not systemd.exists():
        pytest.skip("there is no systemd: install Debian's package systemd")
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        folder = base / '100%b of "Ann\'s" $HOME\\x'
        program = base / "50%n $PATH/commentd"
        for each in (folder, program.parent, base / "units"):
            each.mkdir()
        program.touch(0o755)
        (folder / "commentd.ini").write_text(f"[backup]\nfolder = {base}/%h 'kept'\n")
        text = print_unit(str(program), "systemd", "--config", "commentd.ini", folder=folder)
        for target in ("sysinit", "basic", "shutdown"):
            file = base / f"units/{target}.target"
            file.write_text("[Unit]\nDefaultDependencies=no\n")
        (base / "units/commentd.service").write_text(text)
        assert systemd_analyze("verify", base / "units/commentd.service") == ""
        base.chmod(0o755)
        ended = subprocess.run(
            [systemd, "--test", "--system", "--unit=commentd.service"],
            env={"SYSTEMD_UNIT_PATH": f"{base}/units"},
            capture_output=True,
            text=True,
            user=65534 if os.getuid() == 0 else None,  # as root it refuses to test
        )
        described = ended.stdout.partition("-> Unit commentd.service:")[2].partition("-> Unit ")[0]
        read = dict(re.findall(r"^\s*(\w[\w ]*): (.*)$", described, re.M))
        assert read["WorkingDirectory"] == str(folder), ended.stderr
        assert read["ReadWritePaths"] == f"{folder} -{base}/%h 'kept'"
        quoted = [
            f"{program}".replace("$", "\\$"),
            "--config",
            str(folder / "commentd.ini").replace("\\", "\\\\").replace("$", "\\$"),
        ]
        quoted[2] = quoted[2].replace('"', '\\"')
        assert read["Command Line"] == f'"{quoted[0]}" {quoted[1]} "{quoted[2]}"'


def test_the_systemd_template_unit_gives_each_blog_a_folder(
    print_unit: PrintUnit, tmp_path: Path
) -> None:
    text = print_unit("/srv/commentd/bin/commentd", "systemd@")
    assert values(text, "WorkingDirectory") == ["/srv/commentd/%i"]
    assert "/srv/commentd/%i" in values(text, "ReadWritePaths")[0]
    assert values(text, "RuntimeDirectory") == ["commentd/%i"]
    assert values(text, "ExecStart")[0].endswith("/srv/commentd/bin/commentd")
    assert_sound(text, tmp_path / "commentd@.service")


def test_the_systemd_unit_starts_a_program_that_is_no_command_by_this_python(
    print_unit: PrintUnit, tmp_path: Path
) -> None:
    for name in ("commentd.pyz", "commentd.py"):
        (tmp_path / name).touch(0o644)
        text = print_unit(name, "systemd")
        assert values(text, "ExecStart") == [f"{sys.executable} {tmp_path / name}"]
        assert_sound(text, tmp_path / "commentd.service")
    text = print_unit("/srv/commentd/commentd.pyz", "systemd")
    (place,) = re.findall('SHIV_ROOT=([^ "\n]+)', text)  # it may write where it is unpacked
    assert "CacheDirectory" in text or place.startswith(values(text, "WorkingDirectory")[0])


def test_the_systemd_unit_may_read_homes_where_the_program_or_its_python_lives_in_one(
    print_unit: PrintUnit,
) -> None:
    away = "/srv/commentd.py"
    for kind in ("systemd", "systemd@"):
        assert values(print_unit(away, kind), "ProtectHome") == ["yes"]
        for home in ("/home/ann", "/root"):
            for text in (
                print_unit(f"{home}/c.py", kind),
                print_unit(away, kind, python=f"{home}/python"),
            ):
                assert values(text, "ProtectHome") == ["read-only"]


def test_the_systemd_unit_may_write_wherever_the_settings_say(
    print_unit: PrintUnit, tmp_path: Path
) -> None:
    folder = tmp_path / "my blog"
    folder.mkdir()
    text = f"[database]\npath = {tmp_path}/data/c.db\n[backup]\nfolder = ../copies\n"
    (folder / "commentd.ini").write_text(text)
    for how in ({"folder": folder}, {}):
        arguments = [] if how else ["--config", "my blog/commentd.ini"]
        text = print_unit("/srv/c.py", "systemd", *arguments, **how)
        written = set(shlex.split(values(text, "ReadWritePaths")[0]))
        assert written == {str(folder), f"-{tmp_path}/data", f"-{tmp_path}/copies"}
        assert values(text, "WorkingDirectory") == [str(folder)]
        assert_sound(text, tmp_path / "commentd.service")
