"""Three engines behind one small `Window`: Chromium by Playwright; Firefox and WebKit by commands
of the W3C WebDriver, which WebKit takes over HTTP and Firefox through its own Marionette.

A test names an element by a selector and its text, wherever it is, also in a shadow root. Mouse and
keyboard are the browser's own, so what is covered or out of reach can't be used."""

import base64
import io
import json
import os
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.error import HTTPError

import pytest
from PIL import Image
from playwright import sync_api

from support.blog import new_context
from support.patience import PATIENCE
from support.serving import until

T = TypeVar("T")
Send = Callable[..., Any]  # a command and what it is given → its value
SILENT: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
# As root, as CI may run, WebKit's sandbox does not start.
UNSANDBOXED = {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1", "LIBGL_ALWAYS_SOFTWARE": "1"}
FIREFOX_PREFERENCES = {
    "marionette.port": 0,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
}
ENTER = "\ue007"  # as WebDriver numbers the keys

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
# were painted since somebody first asked.
MIDDLE = f"""{FIND}
const node = find(...arguments[0])
if (!node) return null
const count = () => {{
  window.painted = (window.painted ?? 0) + 1
  requestAnimationFrame(count)
}}
if (!window.painted) count()
node.scrollIntoView({{block: 'center', behavior: 'instant'}})
const [{{x, y, width, height}}] = node.getClientRects()
return [Math.round(x + width / 2), Math.round(y + height / 2), painted]
"""
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


class WebDriver:
    """A browser that takes the commands of the W3C WebDriver."""

    def __init__(self, send: Send) -> None:
        self.send = send

    def go(self, url: str) -> None:
        self.send("url", url=url)

    def run(self, script: str, *values: Any) -> Any:
        return self.send("execute/sync", script=script, args=values)

    def act(self, kind: str, actions: list[dict[str, Any]]) -> None:
        self.send("actions", actions=[{"type": kind, "id": kind, "actions": actions}])

    def press(self, x: int, y: int) -> None:
        move = {"type": "pointerMove", "x": x, "y": y}
        buttons = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        self.act("pointer", [move, *buttons])

    def type(self, text: str) -> None:
        keys = text.replace("\n", ENTER)
        kinds = ("keyDown", "keyUp")
        self.act("key", [{"type": kind, "value": key} for key in keys for kind in kinds])

    def resize(self, width: int, height: int) -> None:
        self.send("window/rect", width=width, height=height)

    def picture(self) -> bytes:
        return base64.b64decode(self.send("screenshot"))


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
        """Presses an element as soon as it stands still for three frames."""
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
            except HTTPError:  # it has left the window meanwhile
                return False
            return True

        self.wait(pressed, f"{selector} {text}")

    def write(self, selector: str, label: str, text: str, *, near: str = "") -> None:
        """Types into a field, once it has the focus: a press may miss it while the page moves."""

        def focused() -> bool:
            self.click(selector, label, near=near)
            return bool(self.run(HAS_FOCUS, [selector, label, near]))

        self.wait(focused, f"the focus in {selector} {label}")
        self.browser.type(text)


# Their processes


def missing(what: str, packages: str) -> None:
    pytest.skip(f"there is no {what}: install Debian's {packages}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def process(*command: str, **environment: str) -> Iterator[None]:
    """A program that runs meanwhile."""
    program = subprocess.Popen(command, env={**os.environ, **environment}, **SILENT)
    with program:
        try:
            yield
        finally:
            program.terminate()


def ask(url: str, method: str, values: dict[str, Any] | None = None) -> Any:
    """One command over HTTP."""
    data = json.dumps(values).encode() if values else None
    request = urllib.request.Request(url, data, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:
        return json.load(response)["value"]


@contextmanager
def driven(driver: str, wanted: dict[str, Any], **environment: str) -> Iterator[Send]:
    """The commands of a driver that listens on HTTP."""
    port = free_port()
    with process(driver, f"--port={port}", **UNSANDBOXED, **environment):
        until(lambda: listens(port))
        session = f"http://127.0.0.1:{port}/session"
        made = ask(session, "POST", {"capabilities": {"alwaysMatch": wanted}})
        session += "/" + made["sessionId"]

        def send(command: str, **values: Any) -> Any:
            return ask(f"{session}/{command}", "POST" if values else "GET", values)

        yield send
        ask(session, "DELETE")


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
def webkit(folder: str) -> Iterator[Window]:
    browser = next(Path("/usr/lib").glob("*/webkit2gtk-4.1/MiniBrowser"), None)
    driver = shutil.which("WebKitWebDriver")
    if not browser or not driver or not shutil.which("Xvfb"):
        missing("WebKit", "packages webkit2gtk-driver and xvfb")
    wanted = {"webkitgtk:browserOptions": {"binary": str(browser), "args": ["--automation"]}}
    with (
        display(folder) as screen,
        driven(str(driver), wanted, DISPLAY=screen, HOME=folder, XDG_RUNTIME_DIR=folder) as send,
    ):
        yield Window(WebDriver(send))


@contextmanager
def old_webkit(folder: str) -> Iterator[Window]:
    """WPE WebKit without a display, which Debian 12 has in the version of Safari 16.0."""
    driver, cog = shutil.which("WPEWebDriver"), shutil.which("cog")
    if not driver or not cog:
        missing("old WebKit", "packages cog and wpewebkit-driver")
    options = {"binary": cog, "args": ["--automation", "--platform=headless"]}
    wanted = {"browserName": "cog", "wpe:browserOptions": options}
    with driven(str(driver), wanted, HOME=folder, XDG_RUNTIME_DIR=folder) as send:
        yield Window(WebDriver(send))


MARIONETTE = {
    "url": "Navigate",
    "execute/sync": "ExecuteScript",
    "actions": "PerformActions",
    "window/rect": "SetWindowRect",
    "screenshot": "TakeScreenshot",
}


class Marionette:
    """Firefox's own protocol: a length, a colon, and JSON; [0, id, command, values] is answered by
    [1, id, error, value]."""

    def __init__(self, port: int) -> None:
        # A session begins when Firefox has started, on a busy machine after half a minute.
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.stream = self.socket.makefile("rwb")
        self.receive()  # its greeting

    def receive(self) -> Any:
        length = b""
        while (byte := self.stream.read(1)) != b":":
            length += byte
        return json.loads(self.stream.read(int(length)))

    def call(self, command: str, **values: Any) -> Any:
        text = json.dumps([0, 1, command, values]).encode()
        self.stream.write(b"%d:%s" % (len(text), text))
        self.stream.flush()
        _, _, error, value = self.receive()
        assert not error, error["message"]
        return value

    def send(self, command: str, **values: Any) -> Any:
        value = self.call(f"WebDriver:{MARIONETTE[command]}", **values)
        return value.get("value")

    def close(self) -> None:
        self.stream.close()
        self.socket.close()


@contextmanager
def firefox(folder: str) -> Iterator[Window]:
    program = shutil.which("firefox-esr") or shutil.which("firefox")
    if not program:
        missing("Firefox", "package firefox-esr")
    lines = (f'user_pref("{n}", {json.dumps(v)});' for n, v in FIREFOX_PREFERENCES.items())
    (Path(folder) / "user.js").write_text("\n".join(lines))
    port = Path(folder) / "MarionetteActivePort"
    switches = ["--marionette", "--headless", "--no-remote", "--profile", folder]
    with process(str(program), *switches, HOME=folder):
        until(lambda: port.exists() and port.read_text())
        with closing(Marionette(int(port.read_text()))) as marionette:
            marionette.call("WebDriver:NewSession")
            yield Window(WebDriver(marionette.send))
            marionette.call("Marionette:Quit", flags=["eForceQuit"])


@contextmanager
def chromium(browser: sync_api.Browser) -> Iterator[Window]:
    context = new_context(browser)
    yield Window(Chromium(context.new_page()))
    context.close()
