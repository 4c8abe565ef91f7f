"""The program as a command: in a process of its own, or in this one."""

import contextlib
import io
import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

from commentd import main
from support.inside import log_handler
from support.patience import PATIENCE
from support.sources import ROOT

Words = tuple[str, ...]

# Started by this name, the program is compiled once; started by the name of its file, each time.
PROGRAM: Words = ("-m", "commentd")


def run(
    folder: Path, *arguments: str, python: Words = ("-W", "error"), **environ: str
) -> tuple[int, str, str]:
    """Exit code, output and errors of the program, started in that folder."""
    command = [sys.executable, *python, *PROGRAM, *arguments]
    kept = {name: text for name, text in os.environ.items() if not name.startswith("COMMENTD_")}
    kept |= {"LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command,
        cwd=folder,
        env=kept | environ,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def run_here(folder: Path, *arguments: str, **environ: str) -> tuple[int, str, str]:
    """The same in this process, which takes a tenth of the time."""
    output, errors = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    kept = {name: text for name, text in os.environ.items() if not name.startswith("COMMENTD_")}
    handler = log_handler(errors)
    logging.getLogger().addHandler(handler)
    try:
        with (
            contextlib.chdir(folder),
            mock.patch.dict(os.environ, kept | {"LC_ALL": "C.UTF-8"} | environ, clear=True),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
        ):
            code = main([*arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    finally:
        logging.getLogger().removeHandler(handler)
    output.seek(0)
    assert "Traceback" not in errors.getvalue()
    return code, output.read(), errors.getvalue()


def findings(part: str, folder: Path, **environ: str) -> list[tuple[str, str]]:
    """What `commentd check` says of a part of the service: level and text of each finding."""
    _, text, _ = run_here(folder, "check", **environ)
    assert "\x1b" not in text
    return re.findall(rf"(?m)^  (ok|note|warn|fail) +{part} +(\S.*)$", text)
