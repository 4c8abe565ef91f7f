"""What a start does not do, so that it is quick and small; how quick is bench_http.py's to say."""

import gzip
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_server import memory, services

import commentd
from commentd import assets_folder, assets_in

pytestmark = pytest.mark.slow

LATE = {"importlib.metadata", "zipfile"}  # 5 ms, 0.7 MB, for `check` alone
SERVICE = (
    "import sys, commentd; code = commentd.main(); print('loaded', *sys.modules); sys.exit(code)"
)
PATTERNS = """
import re
made, compile = [], re.compile
re.compile = lambda pattern, flags=0: made.append(pattern) or compile(pattern, flags)
import commentd
print(len(made), sum(commentd.UNSPACED in str(pattern) for pattern in made))
"""


def test_a_start_and_a_first_answer_load_no_module_that_few_need(tmp_path: Path) -> None:
    with services(tmp_path) as start:
        service = start(program=SERVICE)
        assert service.ask("GET", "/comments?url=/a/").status == 200
        assert service.stop() == 0
    loaded = {*service.said.rpartition("\nloaded ")[2].split()}
    assert {"commentd", "waitress", "sqlite3"} <= loaded
    assert loaded & LATE == set()


def test_the_long_patterns_of_words_are_not_compiled_by_a_start() -> None:
    command, folder = [sys.executable, "-c", PATTERNS], Path(commentd.__file__).parent
    told = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    made, long = map(int, told.stdout.split())
    assert (made > 20, long) == (True, 0)


def test_a_file_is_zipped_once_and_not_before_somebody_asks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    zipped, compress = [], gzip.compress

    def counted(body: bytes, *how: Any, **more: Any) -> bytes:
        zipped.append(body)
        return compress(body, *how, **more)

    monkeypatch.setattr(gzip, "compress", counted)
    folder = shutil.copytree(assets_folder(), tmp_path / "static")  # which no app has read
    found = assets_in(folder)["embed.js"]
    assert zipped == []
    assert gzip.decompress(found.zipped()) == found.body
    assert found.zipped() is found.zipped()
    assert zipped == [found.body]


def test_a_service_that_was_compiled_before_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "compiled"))
    with services(tmp_path) as start:
        assert start(tmp_path / "first", program=SERVICE).stop() == 0
        service = start(program=SERVICE)
        assert service.ask("GET", "/comments?url=/a/").status == 200
        assert memory(service) < 55
