"""Keeps this version for the tests of all later ones: `python tests/release.py`, before a release
and when the schema has changed.

It writes two files into `tests/schemas/`: a database with rows in every table, as SQL, and what is
seen of it and promised until 2.0, as JSON. See `support/released.py`."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from commentd import __version__
from support.released import FOLDER, keep
from support.sources import ROOT


def main() -> str | None:
    """Returns what is wrong, if anything is."""
    tag = f"v{__version__}"
    found = subprocess.run(["git", "tag", "--list", tag], cwd=ROOT, capture_output=True, check=True)
    if found.stdout:
        return f"{tag} is released, and stays as it is: raise __version__ in commentd.py first"
    keep(FOLDER)
    return None


if __name__ == "__main__":
    sys.exit(main())
