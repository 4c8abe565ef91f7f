"""What npm installs for tests, outside of what git holds."""

import shutil
import subprocess
from pathlib import Path

import pytest


def install(configuration: Path, folder: Path) -> None:
    """Puts a folder of tests with its packages into another one, which pytest keeps, with the
    versions of the lock file. Later runs need no network. Skips the test where that can't be."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("this machine lacks npm (Debian's packages nodejs and npm)")
    lock = (configuration / "package-lock.json").read_bytes()
    installed = folder / "installed.json"
    shutil.copytree(configuration, folder, dirs_exist_ok=True)
    if installed.exists() and installed.read_bytes() == lock:
        return
    done = subprocess.run(
        [npm, "ci"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
    )
    if done.returncode:
        pytest.skip(f"npm could not install {configuration.name}: {done.stdout}")
    installed.write_bytes(lock)
