"""`commentd demo`: a made-up blog in a process of its own, tried in a real Chromium."""

import contextlib
import fcntl
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from webtest import TestApp

from commentd import App, Demo, DemoStory, read_story
from support import inside
from support.blog import new_context
from support.commands import PROGRAM
from support.patience import PATIENCE
from support.serving import until
from support.sources import ROOT
from support.writing import article, button, code_field, main, open_account, textbox

CHINESE = {"LC_ALL": "", "LC_MESSAGES": "", "LANG": "zh_CN.UTF-8"}
# Of the settings of a real service, the demo reads none: these would let it fail.
FOREIGN_SETTINGS = {"COMMENTD_SERVER_LISTEN": "0.0.0.0:1", "COMMENTD_MAIL_HOTS": "x"}


class RunningDemo:
    """A demo in a process, with an empty folder to work in and one for temporary files."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.folder = folder / "work"
        self.temporary = folder / "temporary"
        self.log = folder / "log"
        for each in (self.folder, self.temporary):
            each.mkdir(parents=True, exist_ok=True)
        (self.folder / "commentd.ini").write_text("[server]\nlisten = 0.0.0.0:1\n")
        settings = {**FOREIGN_SETTINGS, "TMPDIR": str(self.temporary), "PYTHONUNBUFFERED": ""}
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, *PROGRAM, "demo"],
                cwd=self.folder,
                env={**os.environ, "LC_ALL": "C.UTF-8", **settings, **environ},
                stdout=log,
                stderr=log,
            )

    @property
    def output(self) -> str:
        return self.log.read_text("utf-8")

    def greeted(self) -> "RunningDemo":
        """Waits for the three links."""
        until(lambda: "/demo/mailbox" in self.output or self.process.poll() is not None)
        found = re.findall(r"http://127\.0\.0\.1:\d+/\S*", self.output)
        assert len(found) == 3, self.output
        self.blog, self.admin, self.mailbox = found
        return self

    def status_of(self, path: str) -> int:
        try:
            with urllib.request.urlopen(self.blog.rstrip("/") + path, timeout=PATIENCE) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


StartDemo = Callable[..., RunningDemo]


@pytest.fixture
def start_demo(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartDemo]:
    """Starts demos. One starts after the other, as two could find the same port free."""
    begun: list[RunningDemo] = []

    def start(**environ: str) -> RunningDemo:
        with (tmp_path_factory.getbasetemp().parent / "starting a demo").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            begun.append(RunningDemo(tmp_path / str(len(begun)), **environ))
            return begun[-1].greeted()

    yield start
    for demo in begun:
        if demo.process.poll() is None:
            demo.process.kill()
            demo.process.wait()


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens browsers of somebody's own, in which no page has a fault. Each notes refusals, too."""
    faults: list[str] = []
    with ExitStack() as stack:

        def new_page(locale: str = "en-US") -> Page:
            context = new_context(browser, locale=locale)
            stack.callback(context.close)
            context.on("console", lambda message: faults.append(message.text))
            context.on("weberror", lambda error: faults.append(str(error.error)))
            return context.new_page()

        yield new_page
    assert [
        fault for fault in faults if "the server responded with a status of 40" not in fault
    ] == []


# In a browser


@pytest.mark.slow
def test_the_demo_leads_from_a_sign_in_by_email_to_an_approved_comment(
    start_demo: StartDemo, visitor: Callable[..., Page]
) -> None:
    demo = start_demo()
    reader = visitor()
    reader.goto(demo.blog)
    expect(reader.get_by_text("deleted when the demo ends")).to_be_visible()
    reader.get_by_role("link", name="A kitchen timer").click()
    expect(reader.get_by_role("article").filter(has_text="Some of you asked")).to_be_visible()

    mailbox = reader.context.new_page()
    mailbox.goto(demo.mailbox)
    panel = open_account(reader)
    textbox(panel, "Email").fill("you@example.com")
    button(panel, "Email me a code").click()
    email = mailbox.get_by_role("article").filter(has_text="you@example.com")
    code = re.search(r"\b\d{6}\b", email.inner_text())
    assert code, email.inner_text()
    code_field(reader).fill(code[0])
    panel = reader.get_by_role("form", name="Create an account")
    textbox(panel, "Name").fill("Robin")
    button(panel, "Create an account").click()
    expect(reader.get_by_text("Signed in as Robin").filter(visible=True).first).to_be_visible()
    main(reader).fill("Mine is at https://robin.example/timer")
    button(reader, "Post for approval").or_(button(reader, "Post")).click()
    own = article(reader, "robin.example")
    expect(own).to_contain_text("Waiting for approval")

    owner = visitor()
    owner.goto(demo.admin)
    waiting = owner.get_by_role("article").filter(has_text="robin.example")
    button(waiting, "Approve").click()
    expect(owner.get_by_text("Approved.")).to_be_visible()
    assert "link" not in owner.url
    notice = owner.evaluate("getComputedStyle(document.documentElement, '::before').content")
    assert "deleted when the demo ends" in notice

    reader.reload()
    expect(own).to_be_visible()
    expect(own).not_to_contain_text("Waiting for approval")


@pytest.mark.slow
def test_the_admin_link_of_the_demo_signs_one_browser_in(
    start_demo: StartDemo, visitor: Callable[..., Page]
) -> None:
    demo = start_demo()
    owner = visitor()
    owner.goto(demo.blog)
    owner.get_by_role("link", name="Admin page").first.click()
    expect(owner.get_by_text("Open the admin link that the terminal shows.")).to_be_visible()
    queue = "Best price guaranteed!"
    owner.goto("about:blank")
    owner.goto(demo.admin)
    expect(owner.get_by_text(queue)).to_be_visible()
    owner.goto("about:blank")
    owner.goto(demo.admin)  # again, where it is signed in already
    expect(owner.get_by_text(queue)).to_be_visible()
    stranger = visitor()
    stranger.goto(demo.admin)
    expect(stranger.get_by_role("alert")).to_have_text(re.compile("This link has been used"))


@pytest.mark.slow
def test_an_email_to_the_owner_of_the_demo_has_links_that_moderate(
    start_demo: StartDemo, visitor: Callable[..., Page]
) -> None:
    page = visitor()
    page.goto(start_demo().mailbox)
    email = page.get_by_role("article").filter(has_text="owner@blog.example").first
    links = email.get_by_role("link")
    expect(links.first).to_be_visible()
    approve = [each for each in links.all() if "do=visible" in each.inner_text()]
    approve[0].click()
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved: everybody can read it.")).to_be_visible()


@pytest.mark.slow
def test_a_browser_forgets_the_last_demo_when_another_one_is_there(
    start_demo: StartDemo, visitor: Callable[..., Page]
) -> None:
    page = visitor()
    page.goto(start_demo().blog)
    page.evaluate("localStorage.setItem(location.origin + '/me', '{}')")
    page.evaluate("localStorage.setItem('of another program', 'x')")
    page.reload()
    assert page.evaluate("localStorage.getItem(location.origin + '/me')") == "{}"
    version = "document.documentElement.dataset.version"
    page.evaluate(f"localStorage.setItem(location.origin + '/demo', {version} + 'x')")
    page.reload()
    assert page.evaluate("localStorage.getItem(location.origin + '/me')") is None
    assert page.evaluate("localStorage.getItem('of another program')") == "x"


@pytest.mark.slow
def test_the_demo_is_chinese_where_the_terminal_is(
    start_demo: StartDemo, visitor: Callable[..., Page]
) -> None:
    demo = start_demo(**CHINESE)
    assert "只在这台机器上" in demo.output
    assert "（打开就登录，只能用一次）" in demo.output
    page = visitor("zh-CN")
    page.goto(demo.blog)
    expect(page.get_by_role("heading", name="慢机器")).to_be_visible()
    page.get_by_role("link", name="七行代码的厨房计时器").first.click()
    expect(page.get_by_role("article").filter(has_text="加上 Noor 的修改")).to_be_visible()
    page.goto(demo.mailbox)
    expect(page.get_by_role("article").filter(has_text="owner@blog.example")).to_contain_text(
        "审核"
    )
    page.goto(demo.admin)
    expect(page.get_by_role("button", name="通过").first).to_be_visible()
    assert demo.stop() == 0
    assert demo.output.endswith("演示已结束，全部删除。\n")


# As a process


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_demo_deletes_all_when_it_is_stopped(start_demo: StartDemo, name: str) -> None:
    demo = start_demo()
    assert demo.status_of("/kitchen-timer/") == 200
    (folder,) = demo.temporary.iterdir()
    assert (folder / "commentd.db").exists()
    assert demo.stop(getattr(signal, name)) == 0
    assert list(demo.temporary.iterdir()) == []
    assert [path.name for path in demo.folder.iterdir()] == ["commentd.ini"]
    assert "all of it is deleted" in demo.output
    assert not re.search("ERROR|WARNING|Traceback", demo.output), demo.output


@pytest.mark.slow
def test_a_killed_demo_leaves_a_temporary_folder_and_the_next_one_starts(
    start_demo: StartDemo,
) -> None:
    demo = start_demo()
    demo.stop(signal.SIGKILL)
    assert [path.name for path in demo.folder.iterdir()] == ["commentd.ini"]
    (left,) = demo.temporary.iterdir()
    assert left.name.startswith("commentd-demo-")
    again = start_demo()
    assert again.status_of("/") == 200


@pytest.mark.slow
def test_the_demo_listens_on_this_machine_alone_and_takes_a_free_port(
    start_demo: StartDemo,
) -> None:
    first, second = start_demo(), start_demo()
    assert first.blog != second.blog
    for demo in (first, second):
        assert demo.status_of("/") == 200
        port = int(demo.blog.rstrip("/").rpartition(":")[2])
        with pytest.raises(ConnectionRefusedError):  # nor does it listen on all addresses
            socket.create_connection(("127.0.0.2", port), PATIENCE).close()


@pytest.mark.slow
def test_the_demo_says_where_it_is_and_how_to_open_it_on_a_server(start_demo: StartDemo) -> None:
    plain, remote = start_demo(), start_demo(SSH_CONNECTION="192.0.2.1 50000 192.0.2.2 22")
    assert (plain.stop(), remote.stop()) == (0, 0)
    port = remote.blog.rstrip("/").rpartition(":")[2]
    tunnel = f"""
To open them, run this on your own machine: ssh -L {port}:127.0.0.1:{port} SERVER
"""
    for demo, rest in ((plain, ""), (remote, tunnel)):
        said = f"""\
commentd demo: a made-up blog, on this machine alone. Ctrl-C ends it and deletes all.

  The blog:        {demo.blog}
  The admin page:  {demo.admin} (signs you in, once)
  The mailbox:     {demo.mailbox} (all emails come here, and leave nowhere)
{rest}The demo has ended, and all of it is deleted.
"""
        assert demo.output == said


# What it tells


@contextlib.contextmanager
def told(folder: Path, language: str) -> Iterator[Demo]:
    demo = Demo(folder, "127.0.0.1:8088", language)
    with closing(demo.app):
        demo.fill()
        yield demo


def outline(story: DemoStory) -> list[tuple[object, ...]]:
    """What a story has, without its words."""
    return [
        *[(post.path, post.days_ago, post.likes) for post in story.posts],
        *[
            (each.post, each.hours_ago, each.reply_to, each.status, each.likes, bool(each.nickname))
            for each in story.comments
        ],
    ]


def test_the_story_of_the_demo_is_the_same_in_both_languages() -> None:
    english, chinese = read_story("en_US.UTF-8"), read_story("zh_TW.UTF-8")
    assert (english.language, chinese.language) == ("en", "zh")
    assert outline(english) == outline(chinese)
    assert english.texts.keys() == chinese.texts.keys()
    templates = [path.read_text("utf-8") for path in (ROOT / "static/demo").glob("*.html")]
    used = {*re.findall(r'texts\["(\w+)"\]', "".join(templates)), "blog"}
    assert used == {*english.texts}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_demo_begins_with_pages_of_comments_and_a_queue_that_says_why(
    tmp_path: Path, language: str
) -> None:
    with told(tmp_path, language) as demo:
        client = TestApp(demo.app)
        listed = client.get("/comments?url=/kitchen-timer/&view=threads&limit=5").json
        assert listed["threads"] > 10  # three pages of the widget
        comments = [each for thread in listed["comments"] for each in [thread, *thread["replies"]]]
        assert {each["role"] for each in comments} == {"", "admin"}
        assert listed["comments"][0]["pinned"]
        assert listed["page_likes"] == 47
        everything = client.get("/comments?url=/kitchen-timer/&limit=100").json["comments"]
        assert any("<code" in each["html"] for each in everything)
        letters = "".join(each["content"] for each in everything)
        for script in ("[A-Za-z]{5}", "[\u0621-\u064a]{5}", "[\u4e00-\u9fff]{5}"):
            assert re.search(script, letters)

        client.authorization = ("Bearer", token_of_owner(demo.app))
        queue = client.get("/admin/comments?status=waiting").json
        reasons = [each["held"].partition(":")[0] for each in queue["comments"]]
        assert reasons == ["learnt", "word", "links"]
        assert queue["counts"]["spam"] == 6
        assert queue["filter"]["active"]
        # Whatever language a visitor comments in, the emails to the owner have that of the demo.
        assert inside.sql(demo.app, "SELECT language FROM account") == [(language,)]


def test_the_mailbox_of_the_demo_has_the_email_to_its_owner(tmp_path: Path) -> None:
    with told(tmp_path, "zh") as demo:
        demo.app.deliver()
        shown = TestApp(demo.app).get("/demo/mailbox").text
        [email] = re.findall(r'(?s)<article class="email" (.*?)</article>', shown)
        assert email.startswith(f"""id="email-1">
<h2 dir="auto">{demo.story.name} · 演示：3 条新评论</h2>
<p class="day">收件人：<bdi>owner@blog.example</bdi>""")
        assert "通过：" in email


def test_the_admin_page_of_the_demo_says_what_is_set_there(tmp_path: Path) -> None:
    with told(tmp_path, "en") as demo:
        client = TestApp(demo.app)
        client.authorization = ("Bearer", token_of_owner(demo.app))
        settings = client.get("/admin/settings").json["settings"]
        changed = {
            f"{each['section']}.{each['key']}": each["value"]
            for each in settings
            if each["changed"]
        }
        assert changed == {
            "server.listen": "127.0.0.1:8088",
            "server.public_url": "http://127.0.0.1:8088",
            "database.path": str(tmp_path / "commentd.db"),
            "site.origins": "http://127.0.0.1:8088",
            "site.name": f"{demo.story.name} · Demo",
            "mail.host": "localhost",
            "mail.sender": "comments@blog.example",
            "moderation.hold": "links",
            "moderation.words": "casino, 博彩",
            "privacy.count_countries": "yes",
            "backup.every": "0",
        }


def test_the_posts_of_the_demo_have_their_texts(tmp_path: Path) -> None:
    with told(tmp_path, "en") as demo:
        client = TestApp(demo.app)
        for post in demo.story.posts:
            text = client.get(post.path).text.partition("<article>")[2].partition("</article>")[0]
            assert post.title in text
            assert "\n<p>" in text


def test_each_link_and_file_of_the_demo_opens(tmp_path: Path) -> None:
    with told(tmp_path, "en") as demo:
        client = TestApp(demo.app)
        opened, left = set[str](), ["/"]
        while left:
            path = left.pop()
            opened.add(path)
            page = client.get(path)  # any other status than 200 fails
            if page.content_type == "text/html":
                named = re.findall(r'(?:href|src)="(/[^"#?]*)', page.text)
                left += {*named} - opened - {*left}
        assert {"/admin", "/demo/admin", "/demo/mailbox", "/kitchen-timer/"} <= opened


def token_of_owner(app: App) -> str:
    return inside.token_of(app, "owner@blog.example", "admin")


def test_a_service_has_no_page_of_the_demo(app: App) -> None:
    client = TestApp(app)
    for path in ("/demo/mailbox", "/demo/admin", "/demo/demo.css", "/demo.css", "/kitchen-timer/"):
        assert client.get(path, status="*").status_int == 404, path
    assert client.post_json("/demo/admin", {"link": "x"}, status="*").status_int == 404
