"""What a browser shows that is older than the scripts need: WPE WebKit without a display, which
Debian 12 has in the version of Safari 16.0."""

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from blog import PATIENCE, POST, say, service
from test_server import until

from commentd import App

pytestmark = pytest.mark.slow

DRIVER = shutil.which("WPEWebDriver")
COG = shutil.which("cog")


class OldSafari:
    """One session of the driver (W3C WebDriver)."""

    def __init__(self, driver: str) -> None:
        self.session = driver
        browser = {"binary": COG, "args": ["--automation", "--platform=headless"]}
        wanted = {"browserName": "cog", "wpe:browserOptions": browser}
        made = self.ask("POST", "/session", capabilities={"alwaysMatch": wanted})
        self.session = f"{driver}/session/{made['sessionId']}"

    def ask(self, method: str, path: str, **body: Any) -> Any:
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.session + path, data, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE / 1000) as answer:
            return json.load(answer)["value"]

    def open(self, url: str) -> None:
        self.ask("POST", "/url", url=url)

    def run(self, script: str) -> Any:
        return self.ask("POST", "/execute/sync", script=script, args=[])

    def close(self) -> None:
        self.ask("DELETE", "")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def driven(folder: Path) -> Iterator[OldSafari]:
    assert DRIVER
    port = free_port()
    # As root, as CI may run, its sandbox does not start.
    unsandboxed = {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
    environment = {**os.environ, **unsandboxed, "XDG_RUNTIME_DIR": str(folder), "HOME": str(folder)}
    command = [DRIVER, f"--port={port}"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdout=quiet, stderr=quiet) as process:
        try:
            until(lambda: listens(port))
            safari = OldSafari(f"http://127.0.0.1:{port}")
            yield safari
            safari.close()
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def safari(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OldSafari]:
    if not DRIVER or not COG:
        pytest.skip("there is no old WebKit: install Debian's packages cog and wpewebkit-driver")
    with driven(tmp_path_factory.mktemp("safari")) as made:
        yield made


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"server_listen": "127.0.0.1:0", "limits_enabled": False}


@pytest.fixture
def address(app: App) -> Iterator[str]:
    """Of the service. This browser knows no other name for this machine."""
    with service(app) as named:
        yield named.replace("comments.test", "127.0.0.1")


def test_a_browser_that_is_too_old_for_the_admin_page_says_so(
    safari: OldSafari, address: str
) -> None:
    safari.open(f"{address}/admin")
    seen = "return (document.querySelector('form') ?? document.querySelector('main')).innerText"
    until(lambda: re.search("at least Safari 16.4|Password", safari.run(seen)))


SIDES = """
return [...document.querySelectorAll('.text')]
  .map(text => [getComputedStyle(text).direction, getComputedStyle(text).textAlign])
"""


def test_a_text_of_the_other_direction_begins_on_its_own_side(
    safari: OldSafari, app: App, address: str
) -> None:
    say(app, "مرحبا بالعالم")
    say(app, "Good morning")
    for lang in ("en", "ar"):
        safari.open(f"{address}/thread?lang={lang}&url={POST}")
        assert safari.run(SIDES) == [["rtl", "start"], ["ltr", "start"]]
