"""What is built of this checkout: wheel, sdist, and what the scripts in .ci make of them."""

import contextlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from commentd import __version__

NAME = f"commentd-{__version__}"
OFFLINE = (
    "No matching distribution|Could not find a version|ConnectionError|Max retries"
    "|error sending request|Failed to fetch"
)


def ended(*command: str | Path, **how: str | Path) -> subprocess.CompletedProcess[str]:
    """A command that ran. `how`: its folder as `cwd`, and variables of the environment."""
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environ |= {name: str(text) for name, text in how.items() if name.isupper()}
    return subprocess.run(
        list(map(str, command)), cwd=how.get("cwd"), env=environ, capture_output=True, text=True
    )


def done(*command: str | Path, **how: str | Path) -> str:
    """The output of a command that succeeds."""
    process = ended(*command, **how)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


def done_online(*command: str | Path, **how: str | Path) -> str:
    """The same of a command that takes packages from an index. Without a network, the test is
    skipped."""
    process = ended(*command, **how)
    output = process.stdout + process.stderr
    if process.returncode and re.search(OFFLINE, output):
        pytest.skip(f"no index of packages can be reached: {output.strip().splitlines()[-1]}")
    assert process.returncode == 0, output
    return process.stdout


def build(source: Path, into: Path, kind: str) -> None:
    """Builds a wheel or sdist as pip does."""
    backend = pytest.importorskip("hatchling.build")
    with contextlib.chdir(source):
        getattr(backend, f"build_{kind}")(str(into))


def wheel_in(folder: Path) -> Path:
    return folder / f"{NAME}-py3-none-any.whl"
