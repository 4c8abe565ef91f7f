"""Signing in at the widget with the software of real providers, in three engines that block cookies
and storage of third parties: oidc-provider (Node), Authlib and Django OAuth Toolkit (Python). Each
signs Ann in. And what `commentd check` says of them."""

import importlib.util
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from commentd import App, LoginProvider
from support import inside
from support.blog import CHROMIUM, POST, SWITCHES
from support.client import CANARY
from support.commands import run_here
from support.engines import Window, firefox, webkit
from support.engines import chromium as window_of
from support.inside import sql
from support.npm import install
from support.provider import CLIENT_ID, CLIENT_SECRET
from support.serving import until
from support.sources import ROOT
from support.widget import TAG, Site, View
from support.widget import asked as asked  # a fixture
from support.widget import fake_world as fake_world  # a fixture
from support.widget import faults as faults  # a fixture
from support.widget import options as options  # a fixture
from support.widget import page as page  # a fixture
from support.widget import settings as settings  # a fixture
from support.widget import site as site  # a fixture
from support.widget import view as view  # a fixture
from support.words import WORDS

pytestmark = pytest.mark.slow

EN = WORDS["en"]
PACKAGES = ROOT / "tests" / "providers"


@contextmanager
def printing_url(log: Path, *command: str | Path, cwd: Path) -> Iterator[str]:
    """The URL of a server, which it prints when it is there."""
    with log.open("w") as output:
        process = subprocess.Popen(command, cwd=cwd, stdout=output, stderr=output)
    url = re.compile(r"http://(localhost|127\.0\.0\.1):\d+")
    try:
        until(lambda: url.search(log.read_text()) or process.poll() is not None)
        found = url.search(log.read_text())
        assert found, log.read_text()
        yield found[0]
    finally:
        process.terminate()
        process.wait()


@contextmanager
def of_node(folder: Path, cache: Path, redirect_url: str) -> Iterator[str]:
    install(PACKAGES, cache)
    command = (shutil.which("node") or "node", "oidc_provider.mjs", redirect_url)
    with printing_url(folder / "log", *command, cwd=cache) as url:
        yield url


@contextmanager
def of_authlib(folder: Path, cache: Path, redirect_url: str) -> Iterator[str]:
    if importlib.util.find_spec("oidc_provider_mock") is None:
        pytest.skip("this machine lacks the package oidc-provider-mock")
    # Authlib warns of what it will change itself.
    program = PACKAGES / "authlib_provider.py"
    command = (sys.executable, "-W", "ignore", program, redirect_url)
    with printing_url(folder / "log", *command, cwd=folder) as url:
        yield url


@contextmanager
def of_authlib_at_once(folder: Path, cache: Path, redirect_url: str) -> Iterator[str]:
    program = PACKAGES / "authlib_provider.py"
    command = (sys.executable, "-W", "ignore", program, redirect_url, "at once")
    with printing_url(folder / "log", *command, cwd=folder) as url:
        yield url


@contextmanager
def of_django(folder: Path, cache: Path, redirect_url: str) -> Iterator[str]:
    if importlib.util.find_spec("oauth2_provider") is None:
        pytest.skip("this machine lacks the package django-oauth-toolkit")
    program = PACKAGES / "django_provider.py"
    command = (sys.executable, "-W", "ignore", program, folder, redirect_url)
    with printing_url(folder / "log", *command, cwd=folder) as url:
        yield url


def agree(window: Page) -> None:
    """Presses the button of Ann where the provider asks who somebody is."""
    window.get_by_role("button", name="Ann-1").first.click()


# By package: what starts the provider, and what a reader presses there.
SOFTWARE = {
    "oidc-provider": (of_node, None),
    "Authlib": (of_authlib, agree),
    "Django OAuth Toolkit": (of_django, None),
}


@pytest.mark.parametrize("name", SOFTWARE)
def test_a_reader_signs_in_with_the_software_of_a_provider(
    app: App, view: View, tmp_path: Path, pytestconfig: pytest.Config, faults: list[str], name: str
) -> None:
    site = view.site
    start, press = SOFTWARE[name]
    cache = pytestconfig.cache.mkdir("providers")
    with start(tmp_path, cache, f"{site.service}/auth/callback/home") as issuer:
        home = LoginProvider("home", "oidc", CLIENT_ID, CLIENT_SECRET, issuer)
        inside.set_settings(
            app,
            server_public_url=site.service,
            site_origins=(site.address,),
            login_providers=(home,),
        )
        page = view(TAG, lang="en")
        with_home = EN["provider_with"].replace("{n}", "Home")
        for is_new in (True, False):
            page.get_by_placeholder(EN["write"]).click()
            page.get_by_role("button", name=EN["signin"], exact=True).click()
            button = page.get_by_role("button", name=with_home)
            if press:
                with page.expect_popup() as opened:
                    button.click()
                press(opened.value)
            else:
                button.click()
            if is_new:
                field = page.get_by_role("textbox", name=EN["name"])
                expect(field).to_have_value(re.compile("^Ann of (Node|Python|Django)$"))
                page.get_by_role("button", name=EN["register"]).click()
            expect(page.get_by_text(re.compile("Signed in as Ann of"))).to_be_visible()
            page.get_by_role("button", name=EN["signout"]).click()
        assert sql(app, "SELECT email FROM account") == [("ann@example.com",)]
        assert sql(app, "SELECT issuer, subject FROM joined_identity") == [(issuer, "Ann-1")]
    # The browser complains of the response that asks for a name.
    assert [fault for fault in faults if "403 (Forbidden)" not in fault] == []
    faults.clear()


# In each engine


# Chromium without cookies of third parties, as Chrome may be set.
STRICT = [*SWITCHES, "--test-third-party-cookie-phaseout"]


@pytest.fixture(params=["Chromium", "Firefox", "WebKit"])
def window(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Window]:
    if request.param == "Chromium":
        # A process has one Playwright, and that of the other tests may be running.
        playwright = request.getfixturevalue("browser").browser_type
        browser = playwright.launch(executable_path=CHROMIUM, args=STRICT)
        with closing(browser), window_of(browser) as window:
            yield window
    else:
        engine = {"Firefox": firefox, "WebKit": webkit}[request.param]
        with engine(str(tmp_path_factory.mktemp("browser"))) as window:
            yield window


# Where the reader presses, as the widget's shadow root and the page hear of it.
COUNT = """
document.querySelector('commentd-thread').shadowRoot.addEventListener('click', ({target}) => {
  if (target.closest('button')) sessionStorage.pressed = (+sessionStorage.pressed || 0) + 1
}, true)
"""


@pytest.mark.long
@pytest.mark.parametrize("name", SOFTWARE)
def test_a_reader_who_is_known_signs_in_with_two_clicks(
    app: App, site: Site, window: Window, tmp_path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    """They are signed in at the provider. `pytest -s` shows the seconds, which nobody asserts."""
    blog = site.address.replace("blog.test", "localhost")
    site.service = site.service.replace("comments.test", "127.0.0.1")
    site.write(TAG, lang="en")
    start = of_authlib_at_once if name == "Authlib" else SOFTWARE[name][0]
    cache = request.config.cache.mkdir("providers")
    redirect_url = f"{site.service}/auth/callback/home"
    provider_folder = tmp_path / "provider"
    provider_folder.mkdir()
    with start(provider_folder, cache, redirect_url) as issuer:
        home = LoginProvider("home", "oidc", CLIENT_ID, CLIENT_SECRET, issuer)
        inside.set_settings(
            app, server_public_url=site.service, site_origins=(blog,), login_providers=(home,)
        )
        number = inside.add_account(app, "ann@example.com", "Ann", CANARY)
        insert = "INSERT INTO joined_identity VALUES (?, 'Ann-1', ?, 1)"
        sql(app, insert, issuer, number)
        window.go(blog + POST)
        window.click("textarea", EN["write"])
        window.see("button", EN["signin"])
        window.run(COUNT)
        began_at = time.monotonic()
        window.click("button", EN["signin"])
        window.click("button", EN["provider_with"].replace("{n}", "Home"))
        window.see("span", EN["as"].replace("{n}", "Ann"))
        seconds = time.monotonic() - began_at
        assert window.run("return sessionStorage.pressed") == "2"
    print(f"{request.node.name}: {seconds:.2f} s")


# What `commentd check` says of them


def what_check_says(folder: Path, issuer: str, **changed: str) -> tuple[int, str]:
    """Exit code, and the finding about the section `[login.home]`."""
    variables = {
        "COMMENTD_LOGIN_HOME_CLIENT_ID": CLIENT_ID,
        "COMMENTD_LOGIN_HOME_CLIENT_SECRET": CLIENT_SECRET,
        "COMMENTD_LOGIN_HOME_ISSUER": issuer,
        "COMMENTD_SERVER_PUBLIC_URL": "https://comments.example",
        "COMMENTD_SITE_ORIGINS": "https://blog.example",
    }
    code, output, _ = run_here(folder, "check", **variables | changed)
    (finding,) = re.findall(r"^  (?:ok|fail) +login +\[login\.home\] (.*)", output, re.M)
    return code, finding


@pytest.mark.parametrize("name", SOFTWARE)
def test_check_says_what_is_wrong_with_the_section_of_a_real_provider(
    tmp_path: Path, pytestconfig: pytest.Config, name: str
) -> None:
    cache = pytestconfig.cache.mkdir("providers")
    redirect_url = "https://comments.example/auth/callback/home"
    start, _ = SOFTWARE[name]
    with start(tmp_path, cache, redirect_url) as issuer:
        assert what_check_says(tmp_path, issuer) == (0, "Home accepts the secret")
        wrong = {"COMMENTD_LOGIN_HOME_CLIENT_SECRET": CANARY}
        code, finding = what_check_says(tmp_path, issuer, **wrong)
        assert (code, finding) == (1, "the provider does not accept client_id and client_secret")
        moved = {"COMMENTD_SERVER_PUBLIC_URL": "https://moved.example"}
        code, finding = what_check_says(tmp_path, issuer, **moved)
        told = "tell the provider this redirect URL: https://moved.example/auth/callback/home"
        assert (code, finding) == (1, told)
        code, finding = what_check_says(tmp_path, issuer + "/realm")
        assert (code, "gives status 404 and no JSON object" in finding) == (1, True)
    code, finding = what_check_says(tmp_path, issuer)
    assert (code, f"{issuer} can't be reached" in finding) == (1, True)
