"""The three tiers, and the fixtures that all tests share. What else they share is in `support/`.

Every request that a test makes through `Visitor` is judged (support/client.py). When a test ends,
the database is whole and its counters equal recounted ones.

The tiers:
  pytest --fast         what needs no browser and no other process, and what reads the source
  pytest                that, and what needs them
  pytest --seconds 60   the long tier: what is marked `long`, and each campaign for that long;
                        with --state FOLDER, from where it stopped

With --small, apps serve the scripts and styles that a wheel has.
"""

import gc
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

if sys.dont_write_bytecode:
    # Each process would rewrite the asserts of all files anew, and each program that a test starts
    # would compile the module anew: seconds of CPU each time.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import hypothesis

pytest.register_assert_rewrite("support")

from commentd import App, Config, make_app, zone_named
from support import inside
from support.campaign import Campaign
from support.client import Visitor
from support.database import assert_whole
from support.world import FakeWorld

inside.share_what_never_changes()


@pytest.fixture
def fake_world() -> FakeWorld:
    return FakeWorld()


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database right after its migrations, which take longer than most tests."""
    path = tmp_path_factory.mktemp("empty") / "commentd.db"
    make_app(Config(database_path=str(path)), FakeWorld().world, rounds=1).close()
    return path


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The defaults, with a database of its own and no captcha to solve."""
    return Config(
        database_path=str(tmp_path / "commentd.db"),
        backup_folder=str(tmp_path / "backups"),
        captcha_provider="none",
        site_timezone=zone_named("Asia/Shanghai"),
    )


@pytest.fixture
def settings() -> dict[str, Any]:
    """What `app` sets beside `config`: a test that wants other settings parametrizes this."""
    return {}


@pytest.fixture
def app(
    config: Config, settings: dict[str, Any], fake_world: FakeWorld, empty_database: Path
) -> Iterator[App]:
    """The service on an empty database, or on the one that a test has put there."""
    changed = replace(config, **settings)
    if Path(changed.database_path).exists():
        made = make_app(changed, fake_world.world, rounds=1)
    else:
        made = inside.app_on_copy(empty_database, changed, fake_world.world)
    yield made
    made.close()
    assert_whole(inside.database_path(made))


@pytest.fixture
def visitor(app: App) -> Visitor:
    return Visitor(app)


@pytest.fixture
def ann(app: App, visitor: Visitor, fake_world: FakeWorld) -> Visitor:
    """A visitor with an account, signed in by its token."""
    visitor.register()
    app.deliver()
    visitor.verify(fake_world.code())
    visitor.sign_in()
    return visitor


@pytest.fixture
def db(app: App) -> Iterator[sqlite3.Connection]:
    """The file itself, for what the API does not show."""
    with closing(sqlite3.connect(inside.database_path(app), isolation_level=None)) as db:
        db.execute("PRAGMA foreign_keys = ON")
        yield db


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests of a worker. Each test takes a context of its own."""
    from support.blog import chromium

    with chromium() as running:
        yield running


@pytest.fixture
def campaign(request: pytest.FixtureRequest) -> Iterator[Campaign]:
    names = ("seed", "first", "rounds", "seconds", "state")
    campaign = Campaign(request.node.name, *map(request.config.getoption, names))
    yield campaign
    campaign.save()


# -- The three tiers


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers", "which tests run, and for how long")
    group.addoption("--fast", action="store_true", help="only what needs no browser or process")
    group.addoption("--small", action="store_true", help="scripts and styles as a wheel has them")
    group.addoption("--seconds", type=float, help="the long tier: how long each campaign goes on")
    group.addoption("--seed", type=int, default=1, help="the chance of all campaigns")
    group.addoption("--first", type=int, default=0, help="the round that a campaign begins with")
    group.addoption("--rounds", type=int, help="how many rounds a campaign has")
    group.addoption("--state", help="a folder: campaigns go on there where they stopped")


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """More than there are cores, since tests wait for browsers and processes. Fast ones wait less,
    and each worker takes two seconds to start."""
    return (os.cpu_count() or 1) + (1 if config.getoption("fast") else 2)


def pytest_configure(config: pytest.Config) -> None:
    # Started in the background, a shell's child ignores Ctrl-C, and so would services under test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    memory = Path("/dev/shm")
    is_short = memory.is_dir() and not config.getoption("seconds")
    if is_short and shutil.disk_usage(memory).free > 4e9:
        os.environ.setdefault("TMPDIR", str(memory))  # no test waits for a disk
        tempfile.tempdir = None  # read anew
    hypothesis.settings.register_profile(
        "short", max_examples=15, deadline=None, derandomize=True, database=None
    )
    hypothesis.settings.register_profile("long", max_examples=1000, deadline=None, database=None)
    hypothesis.settings.load_profile("long" if config.getoption("seconds") else "short")
    if config.getoption("small"):
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        inside.serve_small_files(Path(folder.name))


SLOW_FIXTURES = {"browser", "campaign"}


def fixtures_of(item: pytest.Item) -> set[str]:
    return set(item.fixturenames) if isinstance(item, pytest.Function) else set()


def is_slow(item: pytest.Item) -> bool:
    return bool(item.get_closest_marker("slow") or SLOW_FIXTURES & fixtures_of(item))


def is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None


def goes_on(item: pytest.Item) -> bool:
    """Whether more time lets it try more: a campaign, or examples that hypothesis makes."""
    function = item.function if isinstance(item, pytest.Function) else None
    return "campaign" in fixtures_of(item) or hasattr(function, "hypothesis")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The fast tier does not even read a file in which all tests are slow, unless it is named."""
    if not config.getoption("fast") or collection_path.suffix != ".py":
        return None
    folder = config.invocation_params.dir
    named = {(folder / argument.split("::")[0]).resolve() for argument in config.args}
    if collection_path not in named:
        return "\npytestmark = pytest.mark.slow\n" in collection_path.read_text("utf-8") or None
    return None


SELECTED = pytest.StashKey[int]()
LEFT_TO_THE_LONG_TIER = pytest.StashKey[int]()
LEFT_TO_ROOT = pytest.StashKey[int]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        # Chromium's renderer dies now and then of a fault of its own. Only then a test runs again.
        if "browser" in fixtures_of(item):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun="Target crashed"))
    if os.geteuid() != 0:
        leave_to_root(config, items)
    if any("::" in argument for argument in config.args):
        return  # what is named runs, all of it
    long = {item for item in items if is_long(item)}
    if config.getoption("seconds"):
        wanted = [item for item in items if item in long or goes_on(item)]
    elif config.getoption("fast"):
        wanted = [item for item in items if not is_slow(item) and item not in long]
    else:
        wanted = [item for item in items if item not in long]
        config.stash[LEFT_TO_THE_LONG_TIER] = len(long)
    config.stash[SELECTED] = len(wanted)
    kept = set(wanted)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    # mypy takes ten seconds after a change: it begins first, so that nothing waits for it later.
    items[:] = sorted(wanted, key=lambda item: not item.get_closest_marker("reads_the_source"))


def pytest_collection_finish() -> None:
    """The tests and what they import are there until the end: the garbage collector, which comes by
    often, need not look at them each time."""
    gc.freeze()


def leave_to_root(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [item for item in items if item.get_closest_marker("root")]
    config.stash[LEFT_TO_ROOT] = len(left)
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in set(left)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist tells the process that prints the summary what it left out."""
    if hasattr(session.config, "workeroutput"):
        stash = session.config.stash
        session.config.workeroutput["selected"] = stash.get(SELECTED, None)
        session.config.workeroutput["left"] = stash.get(LEFT_TO_THE_LONG_TIER, None)
        session.config.workeroutput["left_to_root"] = stash.get(LEFT_TO_ROOT, None)


def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})  # a worker that crashed has none
    if output.get("selected") is not None:
        node.config.stash[SELECTED] = output["selected"]
    if output.get("left") is not None:
        node.config.stash[LEFT_TO_THE_LONG_TIER] = output["left"]
    if output.get("left_to_root") is not None:
        node.config.stash[LEFT_TO_ROOT] = output["left_to_root"]


FAST: list[str] = []  # the fast test that is running, if one is


def forbid_processes(event: str, arguments: tuple[Any, ...]) -> None:
    if FAST and event in ("subprocess.Popen", "os.fork", "os.posix_spawn"):
        raise RuntimeError(f"{FAST[0]} starts a process: mark it with pytest.mark.slow")


sys.addaudithook(forbid_processes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    of_its_own = item.get_closest_marker("reads_the_source")
    if not is_slow(item) and not is_long(item) and not of_its_own:
        FAST.append(item.nodeid)
    try:
        return (yield)
    finally:
        FAST.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    if made := getattr(item, "funcargs", {}).get("campaign"):
        report.user_properties.append(("campaign", str(made)))
        report.sections.append(("campaign", str(made)))  # which round to begin with
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """What was left out; and what the campaigns did, where they went on for a while."""
    if left := config.stash.get(LEFT_TO_THE_LONG_TIER, 0):
        terminalreporter.line(f"{left} cases were left to the long tier (pytest --seconds 60)")
    if left := config.stash.get(LEFT_TO_ROOT, 0):
        terminalreporter.line(f"{left} tests need root (sudo .venv/bin/pytest -m root)")
    if config.getoption("fast") and config.stash.get(SELECTED, 1) == 0:
        terminalreporter.line("nothing here is fast: run it without --fast")
    if not config.getoption("seconds"):
        return
    terminalreporter.section("campaigns")
    for report in [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]:
        for name, text in report.user_properties:
            if name == "campaign" and report.when == "call":
                terminalreporter.line(text)
