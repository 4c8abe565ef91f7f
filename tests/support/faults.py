"""Faults of the machine, and what they leave: kills, noise in a file, a full disk."""

import itertools
import os
import pickle
import random
import resource
import shutil
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import commentd
from commentd import make_app
from support.client import COMMENT, stranger
from support.database import config_for


def in_a_fork(work: Callable[[], object]) -> Any:
    """What it gives, done in a process of its own; None where that was killed."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            result: tuple[bool, object] = True, work()
        except BaseException:
            result = False, traceback.format_exc()
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(result, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    status = os.waitpid(child, 0)[1]
    assert status in (0, 9), status
    if status == 9:
        return None
    done, given = pickle.loads(data)
    assert done, given
    return given


@contextmanager
def little_room(size: int) -> Iterator[None]:
    """No file may grow beyond that, here and in processes that begin here."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def noise(size: int = 4096) -> bytes:
    return random.Random(7).randbytes(size)


def spoil(path: str, table: str) -> None:
    """Noise over the first page of a table of a file that is in use."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE page SET seen_at = seen_at + 1")  # so that no cache is trusted
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        (page,) = db.execute(sql, (table,)).fetchone()
    with open(path, "r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(noise())


def make_database(path: Path, name: str, rows: int, *, killed: bool = False) -> list[str]:
    """A database with comments of that name, left by a service that was stopped or killed; their
    texts."""
    home = path.with_name(f"home of {path.name}")
    home.mkdir()
    texts = sorted(f"{name} {number}" for number in range(rows))
    app = make_app(config_for(home / path.name), rounds=1)
    for text in texts:
        stranger(app).post_json("/comments", {**COMMENT, "content": text})
    if not killed:
        app.close()
    shutil.copytree(home, path.parent, dirs_exist_ok=True)
    app.close()
    shutil.rmtree(home)
    return texts


def killed_at(line: int, work: Callable[[], object]) -> bool:
    """Do it in a process that is killed before the n-th line of the program after it opened a
    database; whether it was."""
    if child := os.fork():
        status = os.waitpid(child, 0)[1]
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        return os.WIFSIGNALED(status)
    counted, opened = itertools.count(), set[str]()

    def watch(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != commentd.__file__:
            return None
        if event == "line" and opened and next(counted) == line:
            os.kill(os.getpid(), 9)
        return watch

    try:
        sys.addaudithook(lambda event, _: opened.add(event) if event == "sqlite3.connect" else None)
        sys.settrace(watch)
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
