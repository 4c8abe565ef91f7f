"""What a browser shows that is older than the scripts need: WPE WebKit without a display, which
Debian 12 has in the version of Safari 16.0."""

import json
import os
import re
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from blog import PATIENCE, service
from test_server import until

from commentd import App

pytestmark = pytest.mark.slow

DRIVER, COG = shutil.which("WPEWebDriver"), shutil.which("cog")
BROWSER = {"binary": COG, "args": ["--automation", "--platform=headless"]}
WANTED = {"alwaysMatch": {"browserName": "cog", "wpe:browserOptions": BROWSER}}
Ask = Callable[..., Any]  # a command of the W3C WebDriver: its path and what it is given


def ask(to: str, **body: Any) -> Any:
    with urllib.request.urlopen(to, json.dumps(body).encode(), PATIENCE / 1000) as reply:
        return json.load(reply)["value"]


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def safari(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    if not DRIVER or not COG:
        pytest.skip("there is no old WebKit: install Debian's packages cog and wpewebkit-driver")
    folder = str(tmp_path_factory.mktemp("safari"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    # As root, as CI may run, its sandbox does not start.
    unsandboxed = {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
    environment = {**os.environ, **unsandboxed, "XDG_RUNTIME_DIR": folder, "HOME": folder}
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [DRIVER, f"--port={port}"], env=environment, stdout=quiet, stderr=quiet
    ) as process:
        try:
            until(lambda: listens(port))
            session = f"http://127.0.0.1:{port}/session"
            session += "/" + ask(session, capabilities=WANTED)["sessionId"]
            yield lambda path, **body: ask(session + path, **body)
            urllib.request.urlopen(urllib.request.Request(session, method="DELETE")).close()
        finally:
            process.terminate()


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"server_listen": "127.0.0.1:0", "limits_enabled": False}


@pytest.fixture
def address(app: App) -> Iterator[str]:
    """Of the service. This browser knows no other name for this machine."""
    with service(app) as named:
        yield named.replace("comments.test", "127.0.0.1")


def test_a_browser_that_is_too_old_for_the_admin_page_says_so(safari: Ask, address: str) -> None:
    safari("/url", url=f"{address}/admin")
    seen = "return (document.querySelector('form') ?? document.querySelector('main')).innerText"
    texts = "at least Safari 16.4|Password"
    until(lambda: re.search(texts, safari("/execute/sync", script=seen, args=[])))
