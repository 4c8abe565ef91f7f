"""A plugin for test_mutation.py: how long each test takes, and under whose name coverage.py notes
the lines that it runs. A process that a test starts finds that name in its environment."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

SECONDS: defaultdict[str, float] = defaultdict(float)
FAILED: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    measurement = coverage.Coverage.current()
    assert measurement
    measurement.switch_context(item.nodeid)
    result = yield
    measurement.switch_context("")
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS[report.nodeid] += report.duration
    if report.failed:
        FAILED.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Also run by each worker of xdist, which knows its own tests only."""
    if not hasattr(session.config, "workerinput"):
        passed = {name: took for name, took in SECONDS.items() if name not in FAILED}
        Path("seconds.json").write_text(json.dumps(passed), "utf-8")
