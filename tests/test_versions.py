"""Versions that meet: an old widget and a new service, the program that is installed and the one
that runs, and what was promised with each release until 2.0."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from commentd import App, Config, __version__, make_app, process_that_serves
from support import inside
from support.blog import POST, Pages, article, conversation, new_context, painted, service
from support.client import Visitor
from support.commands import PROGRAM, run_here
from support.patience import PATIENCE
from support.promises import broken, promises
from support.released import Released, releases, served
from support.service import Start
from support.service import start as start  # a fixture
from support.sources import ROOT
from support.writing import REFUSED, BlogSite, main, post, textbox
from support.writing import address as address  # a fixture
from support.writing import blog_site as blog_site  # a fixture
from support.writing import config as config  # a fixture
from support.writing import fake_world as fake_world  # a fixture
from support.writing import mail_server as mail_server  # a fixture
from support.writing import pages as pages  # a fixture

UPDATED = "Comments have been updated. Please reload the page. What you write is kept."


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


# The files of the widget


def test_a_script_of_another_version_is_refused_and_so_says_its_code(app: App) -> None:
    reader = Visitor(app)
    [version] = re.findall('ASSETS_VERSION = "(.*?)"', reader.get("/embed.js").text)
    for name in ("writing.js", "words/de.json", "admin_page/page.js", "admin.css"):
        own = reader.get(f"/{name}?{version}")
        assert own.body == reader.get(f"/{name}?{version}-2").body == reader.get(f"/{name}").body
        gone = reader.get(f"/{name}?0123abcd", status=404)
        assert gone.json == {"error": "评论服务已更新，请重新加载页面", "code": "version_gone"}
        assert reader.get(f"/{name}?0123abcd-2", status=404).json == gone.json
        assert "max-age" not in gone.headers["Cache-Control"]
    for name in ("embed.js", "loader.js"):  # owners write these, with what they like behind it
        assert reader.get(f"/{name}?20261129").body == reader.get(f"/{name}").body
    for version in ("?0123abcd", "?0123abcd-2"):  # a widget asks for it when others are refused
        assert reader.get(f"/outdated.js{version}").body == reader.get("/outdated.js").body


def test_a_page_that_was_opened_before_an_update_asks_to_be_loaded_again(
    blog_site: BlogSite,
) -> None:
    blog_site.expected += ["could not be loaded", "the service has been updated"]
    page = blog_site.open(faults=REFUSED)
    inside.serve_newer_scripts(blog_site.app)
    main(page).click()
    page.keyboard.type("Half a thought")
    expect(page.get_by_role("alert")).to_have_text(UPDATED)
    assert [text for text in blog_site.console if "the service has been updated" in text]
    with page.expect_navigation():
        button(page, "Reload").click()
    expect(main(page)).to_have_value("Half a thought")
    assert post(page, "A whole thought")


# Whether these files have arrived.
HAS_LOADED = """names => {
  const loaded = performance.getEntriesByType('resource').filter(each => each.responseEnd)
  return names.every(name => loaded.some(each => each.name.includes(name)))
}"""


def test_a_comment_that_is_written_during_an_update_is_posted_as_before(
    blog_site: BlogSite,
) -> None:
    # What it can be edited with is loaded afterwards.
    blog_site.expected += ["could not be loaded", "the service has been updated"]
    page = blog_site.open(faults=REFUSED)
    main(page).click()
    textbox(page, "Name").fill("Ann")
    main(page).fill("Written before.")
    page.wait_for_function(HAS_LOADED, arg=["errors.js", "writing.js", "reading.js"])
    inside.serve_newer_scripts(blog_site.app)
    button(page, "Post").click()
    expect(page.get_by_role("article").filter(has_text="Written before.")).to_be_visible()


def test_a_page_of_before_an_update_says_in_its_language_why_a_like_fails(
    blog_site: BlogSite,
) -> None:
    blog_site.expected += ["could not be loaded", "the service has been updated"]
    conversation(blog_site.app)
    page = blog_site.open(lang="zh-CN", faults=REFUSED)
    inside.serve_newer_scripts(blog_site.app)
    page.locator(".like").nth(1).click()
    expect(page.get_by_role("status")).to_have_text("评论服务已更新，请刷新页面，内容不会丢。")


@pytest.fixture
def caching_page(blog_site: BlogSite) -> Iterator[Page]:
    """That of a browser with its cache: Playwright's routes, as others have them, switch it off."""
    context = blog_site.browser.new_context(locale="en")
    yield context.new_page()
    context.close()


def open_post(page: Page, blog_site: BlogSite) -> None:
    blog_site.pages |= article(blog_site.service, lang="en")
    with page.expect_response(lambda answer: "/comments?" in answer.url):
        page.goto(blog_site.address + POST)
    painted(page)


def test_a_browser_that_kept_the_widget_gets_the_new_one_when_the_page_is_loaded_again(
    blog_site: BlogSite, caching_page: Page
) -> None:
    page, asked = caching_page, list[str]()
    blog_site.answers(noting(asked))
    open_post(page, blog_site)
    inside.serve_newer_scripts(blog_site.app)
    open_post(page, blog_site)
    assert asked.count("/embed.js") == 1  # the second time, it was in the cache
    main(page).click()
    page.keyboard.type("Mine")
    expect(page.get_by_role("alert")).to_have_text(UPDATED)
    with page.expect_navigation():
        button(page, "Reload").click()
    expect(main(page)).to_have_value("Mine")
    assert post(page, "All mine")
    assert asked.count("/embed.js") == 2


def noting(asked: list[str]) -> Any:
    """Notes the paths that the service is asked for, and changes nothing."""

    def note(environ: Any, status: str, headers: dict[str, str], body: bytes) -> Any:
        asked.append(environ["PATH_INFO"])
        return status, headers, body

    return note


# Comments that an older version put into a page


@pytest.mark.parametrize("release", releases(), ids=str)
def test_the_widget_takes_over_comments_that_each_release_put_into_pages(
    release: Released, browser: Browser, pages: Pages, address: str, tmp_path: Path
) -> None:
    faults: list[str] = []
    with (
        served(release, tmp_path, site_origins=(address,)) as old,
        service(old.app) as url,
        closing(new_context(browser, locale="en")) as context,
    ):
        tag = f'<script src="{url}/embed.js" async></script>'
        pages |= article(url, "/2026/hello/", lang="en", tag=release.kept["fragment"] + tag)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.goto(f"{address}/2026/hello/")
        field = main(page)
        field.fill("One more.")
        textbox(page, "Name").fill("Ann")
        button(page, "Post").click()
        expect(page.get_by_role("article").filter(has_text="One more.")).to_be_focused()
        query = {"url": "/2026/hello/", "limit": 100}
        shown = Visitor(old.app).listing(**query)["comments"]
        for comment in shown:
            expect(page.locator(f"li[data-id='{comment['id']}'] > article")).to_be_visible()
    assert faults == []


# What runs, and what is installed

OTHER = "import commentd, sys; commentd.__version__ = {!r}; sys.exit(commentd.main())"


@pytest.mark.slow
def test_update_check_says_whether_the_installed_version_runs(start: Start, tmp_path: Path) -> None:
    def said(**environ: str) -> tuple[int, str]:
        code, text, errors = run_here(tmp_path, "update", "--check", **environ)
        assert errors == ""
        return code, text

    path = tmp_path / "commentd.db"
    service = start()
    assert said() == (0, f"commentd {__version__} is installed, and serves {path}\n")
    assert service.stop() == 0
    none = f"commentd {__version__} is installed, and no service runs on {path}\n"
    assert said() == (0, none)
    service = start(program=OTHER.format("0.0.9"))
    newer = f"commentd 0.0.9 serves {path}; a newer one is installed: {__version__}\n"
    assert said() == (3, f"{newer}To use it, stop the service and start it again.\n")
    chinese = f"运行的是 commentd 0.0.9（{path}），装的版本更新：{__version__}\n"
    assert said(LC_ALL="zh_CN.UTF-8") == (3, f"{chinese}要用新版本，请停止服务，再启动。\n")
    assert service.stop() == 0
    start(program=OTHER.format("99.1"))
    older = f"commentd 99.1 serves {path}; an older one is installed: {__version__}\n"
    assert said() == (3, f"{older}Before you restart it, read the way back: commentd help backup\n")
    code, text, errors = run_here(tmp_path, "update")
    assert (code, text) == (2, "")
    assert "the following arguments are required: --check" in errors


def test_the_process_of_a_service_is_known_as_long_as_it_runs(config: Config) -> None:
    path = config.database
    assert process_that_serves(path) == 0
    with closing(make_app(config, rounds=1)):
        assert process_that_serves(path) == os.getpid()
    Path(f"{path}-lock").touch()
    assert process_that_serves(path) == 0


@pytest.mark.slow
@pytest.mark.root
def test_update_check_says_how_to_restart_a_unit_of_systemd(start: Start, tmp_path: Path) -> None:
    service = start(program=OTHER.format("0.0.9"))
    groups = Path("/sys/fs/cgroup/unified")
    if not groups.exists():
        groups = groups.parent
    unit = groups / f"commentd-{service.process.pid}.service"
    try:
        unit.mkdir()
    except OSError:
        pytest.skip("this machine lets nobody make control groups")
    try:
        # systemd puts the processes of each unit into a control group of its name.
        (unit / "cgroup.procs").write_text(str(service.process.pid))
        code, text, errors = run_here(tmp_path, "update", "--check")
        assert (code, errors) == (3, "")
        assert text.endswith(f"To use it: systemctl restart {unit.name}\n")
    finally:
        service.stop()
        unit.rmdir()


@pytest.mark.slow
@pytest.mark.root
def test_update_check_in_a_container_says_to_restart_it(tmp_path: Path) -> None:
    """Where the service is the first process, as in a container."""
    (tmp_path / "commentd.ini").write_text("[server]\nlisten = 127.0.0.1:0\n")
    check = f"{shlex.join([sys.executable, *PROGRAM])} update --check"
    wait = f"until {check} | grep -q serves; do sleep 0.1; done"
    program = f"exec {sys.executable} -c {shlex.quote(OTHER.format('0.0.9'))}"
    # The shell becomes the service, and the commands that it left run beside that.
    script = f"({wait}; {check} > said; kill 1) & {program}"
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        unshare, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=PATIENCE
    )
    if "unshare" in done.stderr:
        pytest.skip(done.stderr)
    said = (tmp_path / "said").read_text()
    assert said.endswith("To use it, restart the container.\n"), said


# What stays until 2.0


@pytest.mark.parametrize("release", releases(), ids=str)
def test_the_promises_of_each_release_until_2_are_kept(release: Released) -> None:
    assert broken(release.kept, promises()) == []


@pytest.mark.parametrize("release", releases(), ids=str)
def test_the_settings_file_of_each_release_is_accepted(release: Released, tmp_path: Path) -> None:
    lines: dict[str, list[str]] = {}
    for name, default in release.kept["settings"].items():
        section, _, key = name.partition("_")
        if section.isalpha():  # a section whose owner names it has no defaults
            lines.setdefault(section, []).append(f"{key} = {default}")
    text = "\n".join(f"[{section}]\n" + "\n".join(keys) for section, keys in lines.items())
    (tmp_path / "commentd.ini").write_text(text)
    code, output, errors = run_here(tmp_path, "recount")
    assert "there is no such setting" not in output + errors
    assert code == 1  # since there is no database
    assert "start the service once" in errors
