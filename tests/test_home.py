"""The page at /: what a newcomer sees and does there in a real Chromium, and how its files are
sent."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Page, expect

from commentd import App, Config, make_app
from support import inside
from support.blog import new_context, service
from support.client import Visitor
from support.sources import STATIC
from support.world import FakeWorld


@pytest.fixture
def browser_page(browser: Browser) -> Iterator[Page]:
    context = new_context(browser, locale="zh-CN")
    yield context.new_page()
    context.close()


@pytest.fixture
def settings() -> dict[str, str]:
    return {"server_listen": "127.0.0.1:0", "captcha_provider": "altcha"}


def test_a_newcomer_pastes_the_tag_and_sees_a_first_comment(app: App, browser_page: Page) -> None:
    faults: list[str] = []
    browser_page.on("console", lambda message: faults.append(message.text))
    browser_page.on("pageerror", lambda error: faults.append(str(error)))
    with service(app) as address:
        browser_page.goto(address + "/?x#y")
        tag = f'<script src="{address}/embed.js" async></script>'
        expect(browser_page.locator("#line")).to_have_text(tag)
        used = browser_page.locator("main script").evaluate("tag => [tag.src, tag.async]")
        assert used == [f"{address}/embed.js", True]
        browser_page.get_by_role("button", name="复制").click()
        # Plain http has no clipboard for scripts.
        expect(browser_page.get_by_text("已选中")).to_be_visible()
        assert browser_page.evaluate("String(getSelection())").strip() == tag
        browser_page.get_by_label("写下你的想法").fill("<b>第一条</b>")
        browser_page.get_by_label("昵称").fill("陈立")
        browser_page.get_by_role("button", name="发表评论").click()
        expect(browser_page.get_by_role("article")).to_contain_text("<b>第一条</b>")
        expect(browser_page.get_by_text("1 条评论")).to_be_visible()
        browser_page.reload()
        expect(browser_page.get_by_role("article")).to_contain_text("<b>第一条</b>")
    assert faults == []


def test_the_home_page_names_missing_settings_while_there_is_no_admin(
    app: App, browser_page: Page
) -> None:
    Path(inside.database_path(app)).chmod(0o644)
    with service(app) as address:
        browser_page.goto(address)
        browser_page.get_by_text("没有配置邮件服务器").wait_for()
        expect(browser_page.get_by_text("commentd.ini（没有就新建")).to_be_visible()
        expect(browser_page.get_by_text("还没有管理员")).to_be_visible()
        order = browser_page.locator("main h2").all_inner_texts()
        assert order == ["试一试", "放进你的博客", "管理评论", "上线前的设置"]
        lines = browser_page.locator("dd pre").all_inner_texts()
        names = browser_page.locator("dt").all_inner_texts()
        inside.add_account(app, "owner@example.com", "Owner", "x", "admin")
        browser_page.reload()
        browser_page.get_by_text("还没有评论").wait_for()
        assert browser_page.get_by_role("heading", name="上线前的设置").count() == 0
        expect(browser_page.get_by_text("还没有管理员")).to_be_hidden()
        browser_page.get_by_role("link", name="打开管理页面").click()
        expect(browser_page.get_by_role("heading", name="登录")).to_be_visible()
    assert [line.split("\n")[0] for line in lines] == ["[mail]", "[site]", "[server]"]
    assert [text for text in names if "权限" in text]
    assert not [text for text in names if "偏旧" in text]  # a note: for the terminal


@pytest.mark.parametrize(
    "settings",
    [{"server_listen": "127.0.0.1:0", "captcha_provider": "none", "limits_enabled": False}],
    ids=["open"],
)
def test_the_home_page_lists_protections_that_are_off(app: App, browser_page: Page) -> None:
    with service(app) as address:
        browser_page.goto(address)
        expect(browser_page.get_by_text("没有人机验证")).to_be_visible()
        expect(browser_page.get_by_text("任何人都可以无限发表")).to_be_visible()


def test_a_browser_that_opens_an_unknown_url_gets_a_page_in_its_language(
    config: Config, fake_world: FakeWorld
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    settings = replace(config, server_public_url="https://comments.example", site_name="Secret")
    app = make_app(settings, fake_world.world, rounds=1)
    visitor = Visitor(app)
    for path in ("/", "/foo", "/foo/bar/", "/admin/help?topic=nothing", "/metrics"):
        for accepted, (language, text) in {
            "en-US,en;q=0.9": ("en", "There is no page here."),
            "zh-CN,zh;q=0.9,en;q=0.8": ("zh", "这里没有页面。"),
            "zh-TW": ("zh-tw", "這裡沒有頁面。"),
            "nl,fr-CA;q=0.7,en;q=0.3": ("fr", "Il n’y a pas de page ici."),
            "xx": ("en", "There is no page here."),
        }.items():
            headers = {**browser, "Accept-Language": accepted}
            page = visitor.get(path, headers=headers, status=404)
            assert page.content_type == "text/html"
            assert text in page.text
            assert f'<html lang="{language}" dir="ltr">' in page.text
            assert "default-src 'none'" in page.headers["Content-Security-Policy"]
            assert not re.search(
                "<style|<script|style=|Secret|comments.example|commentd", page.text
            )
            style = re.findall('rel="stylesheet" href="(.*)"', page.text)[0]
            assert urljoin(path, style) == "/home.css"
        for accept in ("*/*", "application/json"):
            answer = visitor.get(path, headers={"Accept": accept}, status=404)
            assert answer.json == {"error": "没有这个网址", "code": "not_found"}
    assert (
        visitor.post_json("/foo/bar", {}, headers=browser, status=404).json["code"] == "not_found"
    )
    app.close()


def test_the_home_page_is_off_on_a_public_service(config: Config, fake_world: FakeWorld) -> None:
    public = replace(config, server_public_url="https://comments.example")
    for demo, status in ((False, 404), (True, 200)):
        app = make_app(replace(public, site_demo=demo), fake_world.world, rounds=1)
        Visitor(app).get("/", status=status)
        app.close()


def test_the_home_page_has_no_inline_script_or_style_and_loads_nothing_from_elsewhere(
    visitor: Visitor,
) -> None:
    reply = visitor.get("/")
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    linked = re.findall(r'(?:src|href)="([^"]+)"', reply.text)
    assert linked == ["data:,", "home.css", "home.js", "embed.js", "admin"]


PARTS_OF_EMBED = {
    "portrait.js",
    "inserts.js",
    "formula.js",
    "table.js",
    "images.js",
    "reactions.js",
}


def test_scripts_are_served_as_they_are_behind_the_constants_that_they_use(
    visitor: Visitor,
) -> None:
    for path in STATIC.glob("*.js"):
        if path.name in PARTS_OF_EMBED:
            continue  # a part of embed.js, where the owner wants what it shows
        source = path.read_text("utf-8")
        served = visitor.get(f"/{path.name}").text
        if path.name == "embed.js":
            assert served.startswith("'use strict'\n{\nconst "), "two of it may stand on a page"
            source += "}\n"
        assert served.endswith(source), path.name
        for line in served.removesuffix(source).splitlines():
            assert re.fullmatch(r"'use strict'|{|(const [A-Z_]+|TEXTS\S+) = .*", line), path.name


def test_the_pages_of_the_service_have_their_colours_from_one_palette(visitor: Visitor) -> None:
    palette = (STATIC / "palette.css").read_text("utf-8")
    for name in ("admin.css", "home.css", "thread.css"):
        style = visitor.get(f"/{name}").text
        assert style.startswith(palette)
        assert re.search("#[0-9a-f]{6}", style.removeprefix(palette)) is None, name
