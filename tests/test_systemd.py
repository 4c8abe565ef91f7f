"""The printed units for systemd, run by a systemd of their own: somebody signs up, comments, and a
backup is made; the service starts again after a crash. (`test_packaging.py` has its rights.)

systemd runs as the first process of new namespaces: it sees a /run, a /tmp and processes of its
own, and the programs of this machine. That takes root and cgroup 2."""

import configparser
import contextlib
import importlib.util
import os
import re
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import waitress

from support.client import COMMENT, PAGE
from support.machine import NAMESPACES, SYSTEMD, is_there, new_cgroup, remove, run, skip_without
from support.service import Answer, Service
from support.serving import until
from support.sources import ROOT

pytestmark = pytest.mark.slow

BLOG = Path("/srv/commentd/blog")
ANN = {"email": "ann@example.com", "password": "a long enough passphrase"}
BOB = {"email": "bob@example.com", "password": "another passphrase", "captcha_token": "x"}

# What is mounted is seen in these namespaces alone. The names in capitals are set by `Unit`.
BOOT = """
set -eu
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs /srv
mkdir -p /srv/commentd/blog /srv/commentd/bin /srv/python /srv/packages
mkdir -p /srv/program/static /srv/program/__pycache__
mount --bind "$FOLDER" /srv/commentd/blog
mount --bind "$BASE" /srv/python
mount --bind "$PROGRAM/static" /srv/program/static
cp --preserve=timestamps "$PROGRAM/commentd.py" /srv/program
[ ! -e "$COMPILED" ] || cp "$COMPILED" /srv/program/__pycache__
printf "#!/srv/python/bin/$PYTHON\\nimport sys\\nfrom commentd import main\\nsys.exit(main())\\n" \\
    > /srv/commentd/bin/commentd
chmod 755 /srv/commentd/bin/commentd
mount --bind "$PACKAGES" /srv/packages
for folder in /run /tmp /var/tmp /var/cache; do mount -t tmpfs -o mode=755 tmpfs $folder; done
mkdir -p /run/units/commentd.service.d /run/units/commentd@.service.d
for file in passwd group; do grep -v ^commentd: /etc/$file > /run/$file; done
echo "commentd:x:64999:64999::/nonexistent:/usr/sbin/nologin" >> /run/passwd
echo "commentd:x:64999:" >> /run/group
mount --bind /run/passwd /etc/passwd
mount --bind /run/group /etc/group
chown -R commentd:commentd /srv/commentd/blog
cd /srv/commentd/blog
export PYTHONPATH=/srv/program:/srv/packages LD_LIBRARY_PATH=/srv/python/lib
$START example $EXAMPLE > /run/printed
mv /run/printed /run/units/$UNIT
for unit in idle basic sysinit shutdown network-online; do
    printf "[Unit]\\nDefaultDependencies=no\\n" > /run/units/$unit.target
done
for folder in /run/units/*.d; do
    printf "[Service]\\nEnvironment=LD_LIBRARY_PATH=/srv/python/lib
Environment=PYTHONPATH=/srv/program:/srv/packages
StandardOutput=append:/srv/commentd/blog/log\\nStandardError=append:/srv/commentd/blog/log\\n" \\
        > $folder/test.conf
done
unset PYTHONPATH LD_LIBRARY_PATH FOLDER BASE PROGRAM COMPILED PACKAGES PYTHON START EXAMPLE UNIT
export SYSTEMD_UNIT_PATH=/run/units container=test
exec /lib/systemd/systemd --system --unit=idle.target --log-target=null --show-status=no \\
    --machine-id=0123456789abcdef0123456789abcdef
"""
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"
# The program as pip installs it, which starts from the compiled module; and as it is downloaded.
COMMAND, FILE = "/srv/commentd/bin/commentd", f"/srv/python/bin/{PYTHON} /srv/program/commentd.py"


class Unit(Service):
    """The service as systemd runs it."""

    def __init__(self, folder: Path, group: Path, start: str, example: str) -> None:
        self.folder, self.log, self.path = folder, folder / "log", folder / "commentd.db"
        self.opened: list[socket.socket] = []
        self.log.touch()
        at = "@" if example == "systemd@" else ""
        self.name = "commentd@blog" if at else "commentd"
        variables = {
            "FOLDER": str(folder),
            "BASE": sys.base_prefix,
            "PROGRAM": str(ROOT),
            "COMPILED": importlib.util.cache_from_source(str(ROOT / "commentd.py")),
            # Not that of this Python, which may have them by a .pth file.
            "PACKAGES": str(Path(waitress.__file__).parents[1]),
            "PYTHON": PYTHON,
            "START": start,
            "EXAMPLE": example,
            "UNIT": f"commentd{at}.service",
        }
        join = 'echo $$ > "$0/cgroup.procs"; exec unshare "$@"'
        boot = ["--kill-child", "sh", "-c", BOOT]
        with (folder / "boot").open("w") as output:
            self.process = subprocess.Popen(
                ["sh", "-c", join, str(group), *NAMESPACES, *boot],
                env={**os.environ, **variables},
                stdout=output,
                stderr=output,
            )

    def booted(self) -> "Unit":
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        until(lambda: self.process.poll() is not None or children.read_text())
        self.init = children.read_text().strip() if self.process.poll() is None else ""
        output = self.folder / "boot"
        until(lambda: self.process.poll() is not None or is_there(self.init))
        until(lambda: self.process.poll() is not None or self.ctl("is-system-running")[0] == 0)
        if self.process.poll() is not None:
            pytest.skip(f"systemd does not run here: {output.read_text()}")
        return self

    def ctl(self, *words: str) -> tuple[int, str]:
        """`systemctl` in systemd's namespaces: its exit code and what it says."""
        return run("nsenter", "-t", self.init, "-m", "-p", "-C", "-i", "-u", "systemctl", *words)

    def commentd(self, *words: str) -> tuple[int, str]:
        """A command that root runs in the folder of the settings."""
        script = """
            cd /srv/commentd/blog
            export PYTHONPATH=/srv/program:/srv/packages
            export LD_LIBRARY_PATH=/srv/python/lib LC_ALL=C.UTF-8
            exec $0 "$@"
            """
        inside = ("nsenter", "-t", self.init, "-m", "-p", "-C", "-i", "-u")
        return run(*inside, "sh", "-c", script, COMMAND, *words)

    def shown(self, name: str) -> str:
        return self.ctl("show", "--value", "-p", name, self.name)[1].strip()

    def starts(self, blogs: int = 1) -> "Unit":
        """Starts the service, and waits until it has greeted for each of its blogs."""
        greetings = self.output.count(" serves ")
        assert self.ctl("start", self.name) == (0, "")
        until(lambda: self.output.count(" serves ") == greetings + blogs)
        self.address = re.findall(r"^commentd .* serves .* on (\S+)$", self.output, re.M)[-1]
        return self

    def post(self, target: str, *headers: str, **body: Any) -> Answer:
        return self.ask("POST", target, *headers, body=body)


Sections = dict[str, dict[str, str]]


def write_settings(file: Path, sections: Sections) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_dict({"captcha": {"provider": "none"}, **sections})
    with file.open("w") as output:
        parser.write(output)
    file.chmod(0o600)


LISTEN = {"listen": "127.0.0.1:0"}


@contextlib.contextmanager
def booted(folder: Path, example: str, start: str = COMMAND, **blogs: Sections) -> Iterator[Unit]:
    """A systemd with the unit of that example. `blogs`: their settings, by the names of their
    files."""
    folder.mkdir()
    for name, sections in blogs.items():
        write_settings(folder / f"{name}.ini", sections)
    skip_without("unshare", "nsenter", SYSTEMD)
    group = new_cgroup()
    unit = Unit(folder, group, start, example)
    try:
        yield unit.booted()
    finally:
        unit.end()
        until(lambda: remove(group))


@pytest.fixture
def disk_path() -> Iterator[Path]:
    """A folder on the disk: where systemd boots, /dev/shm is a new one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.root
def test_everything_works_under_the_printed_systemd_unit(disk_path: Path) -> None:
    """The unit for many processes, one a blog."""
    with booted(disk_path / "blog", "systemd@", commentd={"server": LISTEN}) as unit:
        unit.starts()
        registered = unit.post("/auth/register", nickname="Bob", **BOB)
        assert registered.status == 200
        until(lambda: "To: bob@example.com" in unit.output)
        link = re.findall(r"/admin#link=(\S+)", unit.output)[-1]
        claimed = unit.post("/admin/claim", link=link, nickname="Ann", **ANN)
        assert claimed.status == 200, claimed.body
        comment = {"page_url": PAGE, "nickname": "Bob", "content": "hi", "captcha_token": "x"}
        assert unit.post("/comments", **comment).status == 200
        assert unit.ask("GET", f"/comments?url={PAGE}").json["total"] == 1
        greetings = unit.output.count(" serves ")
        assert unit.ctl("kill", "--signal=KILL", unit.name) == (0, "")
        until(lambda: unit.output.count(" serves ") > greetings)
        assert unit.shown("NRestarts") == "1"
        backups = until(lambda: [*(unit.folder / "backups").glob("*.db")])
        assert {each.stat().st_mode & 0o777 for each in [*backups, unit.path]} == {0o600}
        assert unit.path.stat().st_uid == 64999
        assert unit.ctl("stop", unit.name) == (0, "")
        assert (unit.shown("Result"), unit.shown("ExecMainStatus")) == ("success", "0")
        assert " ERROR " not in unit.output
        assert "Traceback" not in unit.output


@pytest.mark.root
def test_a_blog_that_root_adds_is_served_at_once_and_belongs_to_the_service(
    disk_path: Path,
) -> None:
    server = {**LISTEN, "public_url": "https://comments.a.example"}
    with booted(disk_path / "blog", "systemd", commentd={"server": server}) as unit:
        unit.starts()
        code, output = unit.commentd("add", "b.example")
        assert code == 0, output
        assert "The service that runs has taken it up: no restart is needed." in output
        listed = unit.ask("GET", f"/comments?url={PAGE}", host="comments.b.example")
        assert (listed.status, listed.json["total"]) == (200, 0)
        made = [*(unit.folder / "blogs").iterdir()]
        assert {each.name for each in made} >= {"b.example.ini", "b.example.db"}
        assert {each.stat().st_uid for each in made} == {64999}
        assert unit.shown("NRestarts") == "0"
        assert unit.ctl("restart", unit.name) == (0, "")
        until(lambda: unit.output.count(" serves ") == 4)
        assert " ERROR " not in unit.output


@pytest.mark.root
def test_systemd_does_not_restart_a_service_with_wrong_settings(disk_path: Path) -> None:
    """A missing backup folder is reported, and readers are served."""
    sections = {"server": LISTEN, "backup": {"folder": "/srv/missing/copies"}}
    with booted(disk_path / "blog", "systemd", FILE, commentd=sections) as unit:
        settings = unit.folder / "commentd.ini"
        right = settings.read_text()
        settings.write_text(f"{right}[mail]\nhots = x\n")
        unit.ctl("start", unit.name)
        until(lambda: "there is no such setting" in unit.output)
        until(lambda: unit.shown("ActiveState") == "failed")
        assert (unit.shown("ExecMainStatus"), unit.shown("NRestarts")) == ("2", "0")
        assert unit.output.count("there is no such setting") == 1
        settings.write_text(right)
        unit.starts()
        assert unit.ask("GET", "/health").json == {"ok": True}
        assert "WARNING backup: " in unit.output
        assert "/srv/missing/copies" in unit.output


@pytest.mark.root
def test_one_printed_unit_serves_all_blogs_of_a_folder(disk_path: Path) -> None:
    hosts = ("a.example", "b.example")
    a, b = (
        {"server": {"public_url": f"https://{host}"}, "database": {"path": f"{host[0]}.db"}}
        for host in hosts
    )
    a["server"] |= LISTEN
    with booted(disk_path / "blog", "systemd .", a=a, b=b) as unit:
        unit.starts(blogs=2)
        for host in hosts:
            said = {**COMMENT, "content": f"hello {host}"}
            assert unit.ask("POST", "/comments", host=host, body=said).status == 200
        greetings = unit.output.count(" serves ")
        assert unit.ctl("kill", "--signal=KILL", unit.name) == (0, "")
        until(lambda: unit.output.count(" serves ") == greetings + 2)
        unit.address = re.findall(r"^commentd .* serves .* on (\S+)$", unit.output, re.M)[-1]
        for host in hosts:
            listed = unit.ask("GET", f"/comments?url={PAGE}", host=host).json["comments"]
            assert [comment["content"] for comment in listed] == [f"hello {host}"]
        backups = unit.folder / "backups"
        until(lambda: all(any(backups.glob(f"{host[0]}-*.db")) for host in hosts))
        assert unit.ctl("stop", unit.name) == (0, "")
        assert (unit.shown("Result"), unit.shown("ExecMainStatus")) == ("success", "0")
        assert not re.search(" ERROR |Traceback", unit.output)
