"""The page at / in a real Chromium, over a real server."""

import gzip
import re
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import webob
from conftest import Outside, Visitor
from playwright.sync_api import Page, sync_playwright

from commentd import App, Config, make_app, make_server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SWITCHES = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)


@contextmanager
def served(app: App) -> Iterator[str]:
    """The application behind waitress, in this process, on a port of its own."""
    server = make_server(app)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.effective_port}/"
    finally:
        server.close()  # the loop ends when there is nothing left to poll
        for channel in list(server.active_channels.values()):
            channel.handle_close()
        server.task_dispatcher.shutdown()
        thread.join(10)


@pytest.fixture
def browser_page() -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: install Debian's package chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES.split())
        yield browser.new_page(locale="zh-CN")
        browser.close()


@pytest.fixture
def settings() -> dict[str, str]:
    return {"server_listen": "127.0.0.1:0", "captcha_provider": "altcha"}


def test_a_newcomer_sees_his_first_comment_appear(app: App, browser_page: Page) -> None:
    faults: list[str] = []
    browser_page.on("console", lambda message: faults.append(message.text))
    browser_page.on("pageerror", lambda error: faults.append(str(error)))
    with served(app) as address:
        browser_page.goto(address)
        browser_page.get_by_label("昵称").fill("陈立")
        browser_page.get_by_role("textbox", name="评论").fill("<b>第一条</b>")
        browser_page.get_by_role("button", name="发表评论").click()
        browser_page.get_by_role("status").filter(has_text="已发表").wait_for()
        assert browser_page.get_by_role("listitem").all_inner_texts()[0].endswith("<b>第一条</b>")
        assert browser_page.get_by_role("heading", name="1 条评论").count() == 1
        browser_page.reload()
        browser_page.get_by_role("listitem").filter(has_text="第一条").wait_for()
    assert faults == []


def test_a_refusal_is_said_in_words_and_the_text_stays(app: App, browser_page: Page) -> None:
    with served(app) as address:
        browser_page.goto(address)
        browser_page.get_by_label("昵称").fill("陈立")
        browser_page.get_by_role("textbox", name="评论").fill("长" * 2001)
        browser_page.get_by_role("button", name="发表评论").click()
        browser_page.get_by_role("status").filter(has_text="最多 2000 个字").wait_for()
        assert browser_page.get_by_role("textbox", name="评论").input_value() == "长" * 2001


def test_the_page_names_what_is_still_to_be_set_while_there_is_no_admin(
    app: App, browser_page: Page
) -> None:
    database = Path(app.house.store.path)
    database.chmod(0o644)
    with served(app) as address:
        browser_page.goto(address)
        browser_page.get_by_text("没有邮件服务器").wait_for()
        lines = browser_page.locator("pre").all_inner_texts()
        said = browser_page.locator("dt").all_inner_texts()
        with closing(sqlite3.connect(database)) as db, db:
            db.execute(
                "INSERT INTO account (email, nickname, password, role, created_at)"
                " VALUES ('owner@example.com', 'Owner', 'x', 'admin', 0)"
            )
        browser_page.reload()
        browser_page.get_by_role("heading", name="还没有评论").wait_for()
        assert browser_page.get_by_role("heading", name="还需要设置什么").count() == 0
    assert [line.split("\n")[0] for line in lines] == ["[mail]", "[site]", "[server]"]
    assert [text for text in said if "权限" in text]
    assert not [text for text in said if "偏旧" in text]  # a note: for the terminal


def test_the_page_is_off_where_readers_come(config: Config, outside: Outside) -> None:
    public = replace(config, server_public_url="https://comments.example")
    for demo, status in ((False, 404), (True, 200)):
        app = make_app(replace(public, site_demo=demo), outside.world, rounds=1)
        Visitor(app).get("/", status=status)
        app.close()


def test_nothing_of_the_page_is_inline_and_nothing_comes_from_elsewhere(visitor: Visitor) -> None:
    reply = visitor.get("/")
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert re.findall(r'(?:src|href)="([^"]+)"', reply.text) == ["data:,", "home.css", "home.js"]


def test_a_file_of_the_page_is_sent_zipped_and_once(app: App) -> None:
    def ask(**headers: str) -> webob.Response:
        return webob.Request.blank("/home.js", environ=headers).get_response(app)

    plain, zipped = ask(), ask(HTTP_ACCEPT_ENCODING="gzip")
    assert zipped.headers["Content-Encoding"] == "gzip"
    assert zipped.headers["Vary"] == "Accept-Encoding, Origin, Authorization"
    assert gzip.decompress(zipped.body) == plain.body
    again = ask(HTTP_IF_NONE_MATCH=plain.headers["ETag"])
    assert (again.status_int, again.body) == (304, b"")
