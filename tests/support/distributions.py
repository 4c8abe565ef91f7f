"""What is built of this checkout: wheel, sdist, and what the scripts in .ci make of them."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from commentd import __version__
from support.sources import ROOT

NAME = f"commentd-{__version__}"
OFFLINE = r"No matching distribution|Could not find a version|ConnectionError|Max retries"


def done(*command: str | Path, **how: str | Path) -> str:
    """The output of a command that succeeds."""
    environ = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environ |= {name: str(text) for name, text in how.items() if name.isupper()}
    ended = subprocess.run(
        list(map(str, command)), cwd=how.get("cwd"), env=environ, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def build(source: Path, into: Path, kind: str) -> None:
    """Builds a wheel or sdist as pip does."""
    backend = pytest.importorskip("hatchling.build")
    with contextlib.chdir(source):
        getattr(backend, f"build_{kind}")(str(into))


def wheel_in(folder: Path) -> Path:
    return folder / f"{NAME}-py3-none-any.whl"


def made_by(script: str, *arguments: str | Path) -> None:
    """Runs a script of .ci that builds something, with the Python of the tests, and with packages
    from an index. Where there is no network, the test is skipped."""
    ended = subprocess.run(
        [ROOT / ".ci" / script, *arguments],
        env=os.environ | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    output = ended.stdout + ended.stderr
    if ended.returncode and re.search(OFFLINE, output):
        pytest.skip(f"pip reaches no index: {ended.stderr.strip().splitlines()[-1]}")
    assert ended.returncode == 0, output
