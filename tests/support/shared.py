"""One app for all cases of a table, where each leaves everything as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from commentd import App, Config, zone_named
from support import inside
from support.database import assert_whole
from support.world import FakeWorld


@contextmanager
def shared_app(folder: Path, database: Path, world: FakeWorld, **settings: Any) -> Iterator[App]:
    """The service as the fixture `app` makes it, on a copy of a database in this folder. Limits are
    off, since all cases are one client."""
    config = Config(
        database_path=str(folder / "commentd.db"),
        backup_folder=str(folder / "backups"),
        captcha_provider="none",
        site_timezone=zone_named("Asia/Shanghai"),
        limits_enabled=False,
    )
    app = inside.app_on_copy(database, replace(config, **settings), world.world)
    yield app
    app.close()
    assert_whole(inside.database_path(app))
