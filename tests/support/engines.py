"""Three engines behind one small `Window`: Chromium by Playwright, WebKit and Firefox by Selenium.

Playwright can't drive the WebKit and the Firefox ESR of Debian. Selenium talks to Firefox through
geckodriver, which Debian has no package of, so here it does through `Marionette`, Firefox's own
protocol.

A test names an element by a selector and its text, wherever it is, also in a shadow root. Mouse and
keyboard are the browser's own, so what is covered or out of reach can't be used."""

import io
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, Protocol, TypeVar

import pytest
from PIL import Image
from playwright import sync_api
from selenium.common.exceptions import MoveTargetOutOfBoundsException
from selenium.webdriver import (
    ActionChains,
    FirefoxOptions,
    Keys,
    WebKitGTKOptions,
    WebKitGTKService,
    WPEWebKitOptions,
    WPEWebKitService,
)
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.options import ArgOptions
from selenium.webdriver.common.service import Service
from selenium.webdriver.remote.client_config import ClientConfig
from selenium.webdriver.remote.command import Command
from selenium.webdriver.remote.remote_connection import RemoteConnection
from selenium.webdriver.remote.webdriver import WebDriver

from support.blog import new_context
from support.patience import PATIENCE
from support.serving import until

T = TypeVar("T")
SILENT: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# As root, as CI may run, WebKit's sandbox does not start.
UNSANDBOXED = {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1", "LIBGL_ALWAYS_SOFTWARE": "1"}
FIREFOX_PREFERENCES = {
    "marionette.port": 0,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    # No cookies and no storage of third parties. WebKit has that by default.
    "network.cookie.cookieBehavior": 1,
}

# The first visible element that matches, with this text as its label, value or content; if `near`
# is given, in the article whose own text holds that.
FIND = """
const every = root => [...root.querySelectorAll('*')].flatMap(
  node => node.shadowRoot ? [node, ...every(node.shadowRoot)] : [node])
const names = node => [
  node.ariaLabel, node.getAttribute('aria-label'), node.placeholder, node.value, node.innerText,
  node.textContent]
const find = (selector, text, near) => every(document).find(node => node.matches(selector)
  && node.getClientRects().length
  && names(node).some(name => String(name ?? '').includes(text))
  && (!near || node.closest('article')?.querySelector('.body')?.textContent.includes(near)))
"""
TEXT = f"{FIND} return find(...arguments[0])?.innerText ?? null"
# The middle of it, or of its first line, after it was brought into the window, and how many frames
# were painted since somebody first asked. From now on the page notes whether a press hits it.
MIDDLE = f"""{FIND}
const node = find(...arguments[0])
if (!node) return null
const count = () => {{
  window.painted = (window.painted ?? 0) + 1
  requestAnimationFrame(count)
}}
const look = event => {{ window.isHit ||= event.composedPath().includes(window.target) }}
if (!window.painted) {{
  count()
  addEventListener('click', look, true)
}}
Object.assign(window, {{target: node, isHit: false}})
node.scrollIntoView({{block: 'center', behavior: 'instant'}})
const [{{x, y, width, height}}] = node.getClientRects()
return [Math.round(x + width / 2), Math.round(y + height / 2), painted]
"""
# A page that the press has left notes nothing.
IS_HIT = "return window.isHit ?? true"
HAS_FOCUS = f"""{FIND}
const node = find(...arguments[0])
return Boolean(node) && node.getRootNode().activeElement === node
"""
# Without the border and the handle at the bottom.
INSIDE = f"""{FIND}
const node = find(...arguments[0])
node.scrollIntoView({{block: 'center', behavior: 'instant'}})
const {{left, top, right, bottom}} = node.getBoundingClientRect()
return [left + 4, top + 4, right - 4, bottom - 20].map(Math.round)
"""


class Browser(Protocol):
    """What an engine does for `Window`."""

    def go(self, url: str) -> None: ...
    def run(self, script: str, *values: Any) -> Any: ...
    def press(self, x: int, y: int) -> None: ...
    def type(self, text: str) -> None: ...
    def resize(self, width: int, height: int) -> None: ...
    def picture(self) -> bytes: ...


class Chromium:
    def __init__(self, page: sync_api.Page) -> None:
        self.page = page

    def go(self, url: str) -> None:
        self.page.goto(url)

    def run(self, script: str, *values: Any) -> Any:
        return self.page.evaluate(f"values => (function () {{ {script} }})(...values)", values)

    def press(self, x: int, y: int) -> None:
        self.page.mouse.click(x, y)

    def type(self, text: str) -> None:
        self.page.keyboard.type(text)

    def resize(self, width: int, height: int) -> None:
        self.page.set_viewport_size({"width": width, "height": height})

    def picture(self) -> bytes:
        return self.page.screenshot()


class Driven:
    """A browser that Selenium drives."""

    def __init__(self, driver: WebDriver) -> None:
        self.driver = driver

    def go(self, url: str) -> None:
        self.driver.get(url)

    def run(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def press(self, x: int, y: int) -> None:
        actions = ActionBuilder(self.driver)
        actions.pointer_action.move_to_location(x, y).click()
        actions.perform()

    def type(self, text: str) -> None:
        ActionChains(self.driver).send_keys(text.replace("\n", Keys.ENTER)).perform()

    def resize(self, width: int, height: int) -> None:
        self.driver.set_window_size(width, height)

    def picture(self) -> bytes:
        picture: bytes = self.driver.get_screenshot_as_png()
        return picture


class Window:
    """A window of any engine, with the patience of a person."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.go, self.run, self.resize = browser.go, browser.run, browser.resize

    def text(self, selector: str, text: str = "", *, near: str = "") -> str | None:
        """The text of an element; None if there is none."""
        found: str | None = self.run(TEXT, [selector, text, near])
        return found

    def see(self, selector: str, text: str = "", *, near: str = "") -> None:
        self.wait(lambda: self.text(selector, text, near=near) is not None, f"{selector} {text}")

    def see_gone(self, selector: str, text: str = "", *, near: str = "") -> None:
        self.wait(lambda: self.text(selector, text, near=near) is None, f"no {selector} {text}")

    def wait(self, ready: Callable[[], T], what: str) -> T:
        """The value of a condition as soon as it is true."""
        try:
            return until(ready)
        except AssertionError:
            pytest.fail(f"waited in vain for {what}, in {self.text('body')}")

    def colors(self, selector: str) -> int:
        """How many colours an element has inside its border."""
        box = self.run(INSIDE, [selector, "", ""])
        with Image.open(io.BytesIO(self.browser.picture())) as picture:
            return len(picture.convert("RGB").crop(tuple(box)).getcolors(1 << 24) or [])

    def click(self, selector: str, text: str = "", *, near: str = "") -> None:
        """Presses an element as soon as it stands still for three frames, and again where the
        press missed it, since the page moved meanwhile."""
        since: dict[tuple[int, int], int] = {}  # where it is, and from which frame on

        def pressed() -> bool:
            found = self.run(MIDDLE, [selector, text, near])
            if not found:
                return False
            *place, frame = found
            if tuple(place) not in since:
                since.clear()
            if frame < since.setdefault(tuple(place), frame) + 3:
                return False
            try:
                self.browser.press(*place)
            except MoveTargetOutOfBoundsException:  # it has left the window meanwhile
                return False
            return bool(self.run(IS_HIT))

        self.wait(pressed, f"{selector} {text}")

    def write(self, selector: str, label: str, text: str, *, near: str = "") -> None:
        """Types into a field, once it has the focus: a press may miss it while the page moves."""

        def focused() -> bool:
            self.click(selector, label, near=near)
            return bool(self.run(HAS_FOCUS, [selector, label, near]))

        self.wait(focused, f"the focus in {selector} {label}")
        self.browser.type(text)


# Their processes


def missing(what: str, packages: str) -> NoReturn:
    pytest.skip(f"there is no {what}: install Debian's {packages}")


def environment(folder: str, **more: str) -> dict[str, str]:
    """The environment of a browser that keeps its files in a folder. Its reader lives where the
    blog does: elsewhere, a comment may have been written on another day."""
    folders = {"HOME": folder, "XDG_RUNTIME_DIR": folder}
    return {**os.environ, **UNSANDBOXED, "TZ": "Asia/Shanghai", **folders, **more}


@contextmanager
def display(folder: str) -> Iterator[str]:
    """The name of a screen that nobody sees."""
    file = Path(folder) / "display"
    with file.open("w") as out:
        screen = ["-screen", "0", "1400x2400x24", "-nolisten", "tcp"]
        command = ["Xvfb", "-displayfd", str(out.fileno()), *screen]
        server = subprocess.Popen(command, pass_fds=[out.fileno()], **SILENT)
    with server:
        try:
            until(lambda: file.read_text().endswith("\n"))
            yield f":{file.read_text().strip()}"
        finally:
            server.terminate()


@contextmanager
def driven(service: Service, options: ArgOptions) -> Iterator[Window]:
    """A browser, by the driver that Debian has for it."""
    service.start()
    try:
        address = ClientConfig(service.service_url)
        with WebDriver(RemoteConnection(client_config=address), options=options) as driver:
            yield Window(Driven(driver))
    finally:
        service.stop()


@contextmanager
def webkit(folder: str) -> Iterator[Window]:
    browser = next(Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser"), None)
    program = shutil.which("WebKitWebDriver")
    if not browser or not program or not shutil.which("Xvfb"):
        missing("WebKit", "packages webkit2gtk-driver and xvfb")
    options = WebKitGTKOptions()
    options.binary_location = str(browser)
    options.add_argument("--automation")
    with display(folder) as screen:
        service = WebKitGTKService(program, env=environment(folder, DISPLAY=screen))
        with driven(service, options) as window:
            yield window


@contextmanager
def old_webkit(folder: str) -> Iterator[Window]:
    """WPE WebKit without a display, which Debian 12 has in the version of Safari 16.0."""
    program, browser = shutil.which("WPEWebDriver"), shutil.which("cog")
    if not program or not browser:
        missing("old WebKit", "packages cog and wpewebkit-driver")
    options = WPEWebKitOptions()
    options.set_capability("browserName", "cog")
    options.binary_location = browser
    options.add_argument("--automation")
    options.add_argument("--platform=headless")
    with driven(WPEWebKitService(program, env=environment(folder)), options) as window:
        yield window


# The commands of Selenium that are used here, as Marionette calls them.
MARIONETTE = {
    Command.NEW_SESSION: "NewSession",
    Command.GET: "Navigate",
    Command.W3C_EXECUTE_SCRIPT: "ExecuteScript",
    Command.W3C_ACTIONS: "PerformActions",
    Command.SET_WINDOW_RECT: "SetWindowRect",
    Command.SCREENSHOT: "TakeScreenshot",
    Command.QUIT: "DeleteSession",
}


class Marionette:
    """Selenium's connection to Firefox itself, in place of `RemoteConnection` to geckodriver.

    A message is its length, a colon, and JSON. The response to [0, id, command, values] is
    [1, id, error, value]."""

    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.stream = self.connection.makefile("rwb")
        self.receive()  # its greeting

    def receive(self) -> Any:
        length = b""
        while (byte := self.stream.read(1)) != b":":
            length += byte
        return json.loads(self.stream.read(int(length)))

    def execute(self, command: str, params: Any) -> dict[str, Any]:
        message = json.dumps([0, 1, f"WebDriver:{MARIONETTE[command]}", params]).encode()
        self.stream.write(b"%d:%s" % (len(message), message))
        self.stream.flush()
        _, _, error, value = self.receive()
        if error:
            return {"status": error["error"], "value": error}
        # Some commands wrap what they return, as all do over HTTP.
        return value if "value" in value else {"value": value}

    def close(self) -> None:
        self.stream.close()
        self.connection.close()


@contextmanager
def firefox(folder: str) -> Iterator[Window]:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if not program:
        missing("Firefox", "package firefox-esr")
    lines = (f'user_pref("{n}", {json.dumps(v)});' for n, v in FIREFOX_PREFERENCES.items())
    (Path(folder) / "user.js").write_text("\n".join(lines))
    port = Path(folder) / "MarionetteActivePort"
    command = [program, "--marionette", "--headless", "--no-remote", "--profile", folder]
    with subprocess.Popen(command, env=environment(folder), **SILENT) as process:
        try:
            until(lambda: port.exists() and port.read_text())
            connection: Any = Marionette(int(port.read_text()))
            with WebDriver(connection, options=FirefoxOptions()) as driver:
                yield Window(Driven(driver))
        finally:
            process.terminate()


@contextmanager
def chromium(browser: sync_api.Browser) -> Iterator[Window]:
    context = new_context(browser)
    yield Window(Chromium(context.new_page()))
    context.close()
