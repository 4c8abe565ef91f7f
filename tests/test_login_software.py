"""Signing in at the widget with the software of real providers, in a real Chromium: oidc-provider
(Node), Authlib and Django OAuth Toolkit (Python). Each signs Ann in."""

import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from commentd import App, LoginProvider
from support import inside
from support.inside import sql
from support.npm import install
from support.provider import CLIENT_ID, CLIENT_SECRET
from support.serving import until
from support.sources import ROOT
from support.widget import TAG, View
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
    command = (sys.executable, "-W", "ignore", PACKAGES / "authlib_provider.py")
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
