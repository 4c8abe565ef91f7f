"""Debian's package (`.ci/deb`): dpkg installs, upgrades, removes and purges it on a machine with
systemd. That is this machine, whose changes are thrown away; in the long tier Debian 12 and 13."""

import re
import shutil
import sys
from pathlib import Path

import pytest

from commentd import __version__
from support.client import COMMENT, PAGE
from support.debian import debian
from support.distributions import build, done, done_online, wheel_in
from support.machine import Machine, booted
from support.serving import until
from support.sources import ROOT

pytestmark = pytest.mark.slow

SETTINGS = "/etc/commentd/commentd.ini"
BEFORE = "0.0.1"  # plays an older version


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for tool in ("dpkg-buildpackage", "dh"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}: install Debian's package debhelper")
    folder = tmp_path_factory.mktemp("debian")
    build(ROOT, folder, "wheel")
    quick = {"PYTHON": sys.executable, "DPKG_DEB_COMPRESSOR_TYPE": "none"}
    done_online(ROOT / ".ci/deb", folder, wheel_in(folder), **quick)
    (file,) = folder.glob(f"commentd_{__version__}_*.deb")
    return file


def older(package: Path) -> Path:
    """The same package, as if it were of an older version."""
    unpacked, file = package.parent / "older", package.with_name("older.deb")
    if file.exists():
        return file
    done("dpkg-deb", "--raw-extract", package, unpacked)
    for name in ("DEBIAN/control", "usr/lib/commentd/commentd.py"):
        text = (unpacked / name).read_text("utf-8")
        line = r"^(Version: |__version__ = \")[\d.]+"
        (unpacked / name).write_text(re.sub(line, rf"\g<1>{BEFORE}", text, flags=re.M), "utf-8")
    done("dpkg-deb", "--build", "-Znone", "--root-owner-group", unpacked, file)
    return file


def files(machine: Machine) -> set[str]:
    """All that was changed or added since the machine started. A cache or a log is no file of the
    package."""
    found = machine.shell("cd /run/changed && find . ! -type d").splitlines()
    return {name for name in found if not re.match(r"\./(var/(cache|log|lib/dpkg)|etc/.*-$)", name)}


def greetings(machine: Machine) -> list[str]:
    """The versions that have started."""
    return re.findall(r"^commentd (\S+) serves ", machine.read("/run/log"), re.M)


def assert_lives(machine: Machine, package: Path) -> None:
    """Its life on a machine, from the first installation to the purge."""
    before = files(machine)
    install = ("dpkg", "--install")

    # Installed: it serves, as a user of its own, and tells how to become the admin.
    machine.run(*install, "/run/brought/older.deb")
    assert machine.shell("ls /usr/lib/commentd/__pycache__/commentd.*.pyc")
    until(lambda: greetings(machine) == [BEFORE])
    here = "http://127.0.0.1:8080"
    assert machine.ask(f"{here}/health") == {"ok": True}
    assert "/admin#link=" in machine.shell("cat /run/log")
    assert machine.ask(f"{here}/comments", **COMMENT)["success"] is True
    database = "/var/lib/commentd/commentd.db"
    owned = machine.run("stat", "--format=%U:%G %a", SETTINGS, database).splitlines()
    assert owned == ["commentd:commentd 600"] * 2
    assert machine.run("commentd", "--version").startswith(f"commentd {BEFORE} (Python 3.")
    assert machine.tried("commentd", "check")[0] == 0
    machine.run("commentd", "backup")
    assert machine.run("sh", "-c", "ls /var/lib/commentd/backups/*.db")
    assert SETTINGS in machine.run("commentd", "example", "nginx")

    # Upgraded: the settings of the owner are in force, and the newer program serves the comments.
    machine.shell(f"sed -i 's/^.server.$/[server]\\nlisten = 127.0.0.1:8081/' {SETTINGS}")
    machine.run("systemctl", "restart", "commentd")
    until(lambda: greetings(machine) == [BEFORE, BEFORE])
    settings = machine.shell(f"cat {SETTINGS}; stat --format='%U %a' {SETTINGS}")
    machine.run(*install, f"/run/brought/{package.name}")
    until(lambda: greetings(machine)[2:] == [__version__])
    here = "http://127.0.0.1:8081"
    assert machine.ask(f"{here}/comments?url={PAGE}")["total"] == 1
    assert machine.shell(f"cat {SETTINGS}; stat --format='%U %a' {SETTINGS}") == settings

    # Removed: what is the owner's stays, and is used by the next installation.
    machine.run("dpkg", "--remove", "commentd")
    assert machine.tried("systemctl", "is-active", "commentd")[1] == "inactive\n"
    assert machine.tried("find", "/usr/lib/commentd")[1].endswith("No such file or directory\n")
    assert machine.shell(f"cat {SETTINGS}; stat --format='%U %a' {SETTINGS}") == settings
    machine.run(*install, f"/run/brought/{package.name}")
    until(lambda: greetings(machine)[3:] == [__version__])
    assert machine.ask(f"{here}/comments?url={PAGE}")["total"] == 1
    assert machine.run("systemctl", "is-enabled", "commentd") == "enabled\n"

    # A further blog is served at once, and belongs to the user of the service.
    url = r"public_url = http:\/\/127.0.0.1:8081"
    machine.shell(f"sed -i 's/^listen = .*/&\\n{url}/' {SETTINGS}")
    machine.run("systemctl", "restart", "commentd")
    until(lambda: len(greetings(machine)) == 5)
    assert "The service that runs has taken it up" in machine.run("commentd", "add", "b.example")
    made = ("/etc/commentd/blogs/b.example.ini", "/var/lib/commentd/b.example.db")
    owned = machine.run("stat", "--format=%U:%G %a", *made).splitlines()
    assert owned == ["commentd:commentd 600"] * 2
    assert machine.ask(f"{here}/comments?url={PAGE}")["total"] == 1

    # Purged: only the user is left.
    machine.run("dpkg", "--purge", "commentd")
    accounts = {"passwd", "group", "shadow", "gshadow", ".pwd.lock"}
    assert files(machine) - before <= {f"./etc/{name}" for name in accounts}
    assert machine.run("id", "--user", "--name", "commentd") == "commentd\n"
    assert not re.search(" ERROR |Traceback", machine.shell("cat /run/log"))


@pytest.mark.root
def test_the_debian_package_is_installed_upgraded_removed_and_purged(package: Path) -> None:
    with booted([package, older(package)]) as machine:
        assert_lives(machine, package)


@pytest.mark.long
@pytest.mark.root
@pytest.mark.parametrize("release", ["bookworm", "trixie"])
def test_the_debian_package_lives_the_same_life_on_a_fresh_debian(
    package: Path, release: str, pytestconfig: pytest.Config
) -> None:
    root = debian(release, pytestconfig)
    with booted([package, older(package)], root) as machine:
        assert_lives(machine, package)
