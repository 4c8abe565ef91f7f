"""A Debian of one's own in a folder, from the network; kept from run to run."""

import shutil
from pathlib import Path

import pytest

from support.distributions import done

NEEDED = "python3,adduser,ca-certificates,systemd,tzdata"


def debian(release: str, config: pytest.Config) -> Path:
    """The root of that release. It takes minutes, the first time."""
    if shutil.which("debootstrap") is None:
        pytest.skip("there is no debootstrap: install Debian's package of that name")
    root = config.cache.mkdir("debian") / release
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        done("debootstrap", "--variant=minbase", f"--include={NEEDED}", release, root)
        (root / "complete").touch()
    return root
