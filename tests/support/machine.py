"""systemd as the first process of new namespaces: it sees a /run, a /tmp and processes of its own.
That takes root and cgroup 2. And a whole machine of that sort, whose files may all be changed."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.serving import until

NAMESPACES = ["--mount", "--pid", "--fork", "--cgroup", "--ipc", "--uts", "--mount-proc"]
SYSTEMD = "/lib/systemd/systemd"


def run(*command: str) -> tuple[int, str]:
    """The exit code of a command, and what it says."""
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return ended.returncode, ended.stdout + ended.stderr


def skip_without(*tools: str) -> None:
    for tool in tools:
        if not shutil.which(tool, path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
            pytest.skip(f"there is no {tool}: install Debian's packages systemd and util-linux")


def new_cgroup() -> Path:
    """A cgroup of our own, below which systemd makes its others."""
    found = re.search(r"^\S+ (\S+) cgroup2 ", Path("/proc/self/mounts").read_text(), re.M)
    try:
        return Path(tempfile.mkdtemp(prefix="commentd-test-", dir=found[1] if found else "/none"))
    except OSError as error:
        pytest.skip(f"systemd needs a cgroup 2 of its own: {error}")


def is_there(init: str) -> bool:
    """Whether systemd is that process by now, and can be asked. Nothing is started to find out."""
    process = Path("/proc", init)
    try:
        is_systemd = (process / "comm").read_text() == "systemd\n"
    except OSError:  # it has ended
        return False
    return is_systemd and (process / "root/run/systemd/private").exists()


def remove(group: Path) -> bool:
    """A cgroup and those in it; whether it is gone."""
    for folder, _, _ in os.walk(group, topdown=False):
        with contextlib.suppress(OSError):  # its last process is just being forgotten
            os.rmdir(folder)
    return not group.exists()


# Its files are those of another root, such as that of the tests. Changes go to memory and are seen
# in these namespaces alone. Of its units only those run that are installed later.
BOOT = f"""
set -eu
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs "$FOLDER/memory"
cd "$FOLDER/memory"
mkdir changed work root
mount -t overlay -o "lowerdir=$LOWER,upperdir=$PWD/changed,workdir=$PWD/work" overlay root
cd root
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
for folder in run tmp var/tmp; do mount -t tmpfs -o mode=1777 tmpfs $folder; done
mkdir -p run/changed run/brought run/systemd/system/commentd.service.d
mount --bind ../changed run/changed
mount --bind "$FOLDER/brought" run/brought
rm -rf lib/systemd/system/*.wants etc/systemd/system/*.wants usr/sbin/policy-rc.d
for unit in idle basic sysinit shutdown network-online; do
    printf "[Unit]\\nDefaultDependencies=no\\n" > run/systemd/system/$unit.target
done
printf "[Service]\\nEnvironment=COMMENTD_CAPTCHA_PROVIDER=none
StandardOutput=append:/run/log\\nStandardError=append:/run/log\\n" \\
    > run/systemd/system/commentd.service.d/test.conf
pivot_root . mnt
cd /
umount -l /mnt
unset FOLDER LOWER
export container=test
exec {SYSTEMD} --system --unit=idle.target --log-target=null --show-status=no \\
    --machine-id=0123456789abcdef0123456789abcdef
"""

# Prints the status and the body of a response; a body is posted.
ASK = """
import sys, urllib.request
url, *body = sys.argv[1:]
headers = {"Content-Type": "application/json"}
request = urllib.request.Request(url, *[each.encode() for each in body], headers=headers)
print(urllib.request.urlopen(request, timeout=60).read().decode())
"""


class Machine:
    """One whose first process is a systemd, with a network of its own. It has begun to start when
    it is made."""

    def __init__(self, folder: Path, group: Path, root: Path) -> None:
        (folder / "memory").mkdir()
        join = 'echo $$ > "$0/cgroup.procs"; exec unshare "$@"'
        boot = ["--net", "--kill-child", "sh", "-c", BOOT]
        self.output = folder / "boot"
        with self.output.open("w") as output:
            self.process = subprocess.Popen(
                ["sh", "-c", join, str(group), *NAMESPACES, *boot],
                env={**os.environ, "FOLDER": str(folder), "LOWER": str(root)},
                stdout=output,
                stderr=output,
            )
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        until(lambda: self.has_ended() or children.read_text())
        self.init = "" if self.has_ended() else children.read_text().strip()

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def booted(self) -> "Machine":
        until(lambda: self.has_ended() or is_there(self.init))
        until(lambda: self.has_ended() or self.tried("systemctl", "is-system-running")[0] == 0)
        if self.has_ended():
            pytest.skip(f"systemd does not run here: {self.output.read_text()}")
        return self

    def tried(self, *words: str) -> tuple[int, str]:
        """The exit code of a command that root runs there, and what it says."""
        environ = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive"]
        inside = ["nsenter", "-t", self.init, *["-m", "-p", "-C", "-i", "-u", "-n"]]
        return run(*inside, "env", "-i", *environ, *words)

    def run(self, *words: str) -> str:
        code, output = self.tried(*words)
        assert code == 0, (words, output)
        return output

    def shell(self, line: str) -> str:
        return self.run("sh", "-c", line)

    def read(self, path: str) -> str:
        """A file there, or nothing."""
        file = Path(f"/proc/{self.init}/root{path}")
        return file.read_text() if file.exists() else ""

    def ask(self, url: str, **body: Any) -> Any:
        """What the service there responds; with a body, to a POST."""
        sent = [json.dumps(body)] if body else []
        return json.loads(self.run("/usr/bin/python3", "-c", ASK, url, *sent))

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def booted(brought: list[Path], root: Path = Path("/")) -> Iterator[Machine]:
    """A machine with the files of that root, and some that are brought along in /run/brought."""
    skip_without("unshare", "nsenter", "pivot_root", SYSTEMD)
    group = new_cgroup()
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # systemd has a new /dev/shm
        folder = Path(name)
        (folder / "brought").mkdir()
        for file in brought:
            shutil.copy(file, folder / "brought")
        machine = Machine(folder, group, root)
        try:
            yield machine.booted()
        finally:
            machine.end()
            until(lambda: remove(group))
