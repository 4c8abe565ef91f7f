"""What a code host runs for the project, and the forms in which people write to it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.sources import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = sorted(GITHUB.glob("ISSUE_TEMPLATE/[!c]*.yml"))
# What a machine of the code host has by itself, or lacks.
OF_THE_HOST = (
    r"apt-get |command -v git|gh release |podman |python3 -m venv |cd dist && sha256sum"
    r"|\.venv/bin/uv "
)


def steps(workflow: Path) -> list[dict[str, str]]:
    jobs = yaml.safe_load(workflow.read_text("utf-8"))["jobs"].values()
    return [step for job in jobs for step in job.get("steps", [])]


def test_every_step_of_a_workflow_is_a_command_that_runs_by_hand_too() -> None:
    assert [file.stem for file in WORKFLOWS] == ["nightly", "release", "tests"]
    for file in WORKFLOWS:
        for step in steps(file):
            line = step.get("run", ".ci/run")
            script = re.match(r"\.ci/\w+(\.py)?", line)
            if script:
                assert (ROOT / script[0]).stat().st_mode & 0o100, (file.name, line)
            else:
                assert re.match(OF_THE_HOST, line), (file.name, line)
            assert "\n" not in line, f"{file.name}: {line}: make it a script in .ci/"


def test_actions_of_others_are_fixed_to_one_commit_and_few() -> None:
    used = {step["uses"] for file in WORKFLOWS for step in steps(file) if "uses" in step}
    for action in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action), action
    assert len({action.partition("@")[0] for action in used}) == len(used) <= 4


@pytest.mark.slow
def test_workflows_and_forms_are_as_the_code_host_reads_them() -> None:
    pytest.importorskip("check_jsonschema")
    for schema, files in (
        ("github-workflows", WORKFLOWS),
        ("github-issue-forms", FORMS),
        ("github-issue-config", [GITHUB / "ISSUE_TEMPLATE" / "config.yml"]),
    ):
        check = [sys.executable, "-m", "check_jsonschema", f"--builtin-schema=vendor.{schema}"]
        done = subprocess.run([*check, *map(str, files)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_workflows_have_no_fault_that_an_attacker_could_use() -> None:
    zizmor = shutil.which("zizmor", path=str(Path(sys.executable).parent))
    if zizmor is None:
        pytest.skip("zizmor is not installed: pip install zizmor")
    done = subprocess.run(
        [zizmor, "--offline", "--no-progress", GITHUB], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_forms_ask_in_english_and_in_chinese() -> None:
    for file in FORMS:
        form = yaml.safe_load(file.read_text("utf-8"))
        labels = [
            part["attributes"]["label"] for part in form["body"] if part["type"] != "markdown"
        ]
        for text in (form["name"], *labels):
            assert re.search(r"[a-z].* · .*[一-鿿]", text), (file.name, text)
