"""What a start does not do, so that it is quick and small; how quick is bench_speed.py's to say."""

from pathlib import Path

import pytest

from support.service import memory, services

pytestmark = pytest.mark.slow

# For `check`, `--version`, the demo, a wrong setting, tokens, apps of admins and a file of `[geo]`.
# `cryptography`, which `jwt` loads where it is installed, takes 9 MB.
LATE = {"importlib.metadata", "zipfile", "tomllib", "difflib"}
LATE |= {"jwt", "cryptography", "segno", "maxminddb", "pygments"}
SERVICE = (
    "import sys, commentd; code = commentd.main(); print('loaded', *sys.modules); sys.exit(code)"
)


def test_a_started_service_is_small_and_has_loaded_no_module_that_few_need(tmp_path: Path) -> None:
    with services(tmp_path) as start:
        service = start(program=SERVICE)  # it was compiled for the tests
        assert service.ask("GET", "/comments?url=/a/").status == 200
        assert memory(service) < 48
        assert service.stop() == 0
    loaded = {*service.output.rpartition("\nloaded ")[2].split()}
    assert {"commentd", "waitress", "sqlite3"} <= loaded
    assert loaded & LATE == set()
