"""A blog on another origin than the service, and a real Chromium: what the tests of the widget, the
benchmarks and the pictures share.

The blog is http://blog.test, the service http://comments.test, both on this machine: two origins,
plain http and no secure context, as the poorest blog has it."""

import argparse
import gzip
import json
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, expect, sync_playwright
from playwright.sync_api import TimeoutError as TooLong
from webtest import TestApp

from commentd import App, Config, make_app
from support.inside import add_account, now, sql, token_of
from support.patience import PATIENCE
from support.serving import close_server, guarded_server, until

# The headless shell is the same browser without a window: a third of the CPU.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP blog.test 127.0.0.1, MAP comments.test 127.0.0.1",
]
PLAIN = partial(argparse.RawDescriptionHelpFormatter, width=100)
POST = "/2026/lines/"
WATCH = (Path(__file__).parent / "watch.js").read_text("utf-8")  # window.watch
# The widget looks at what is selected when that rests for a tenth of a second.
RESTED = "() => new Promise(go => setTimeout(go, 150))"
Pages = dict[str, tuple[dict[str, str], str]]
Json = dict[str, Any]
Change = Callable[[Json, str, dict[str, str], bytes], tuple[str, dict[str, str], bytes]]


# Servers and browser


class BlogServer(ThreadingHTTPServer):
    pages: Pages


class Blog(BaseHTTPRequestHandler):
    """Responds with the server's pages, zipped where that is taken."""

    server: BlogServer

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one go

    def do_GET(self) -> None:
        found = self.server.pages.get(self.path.partition("?")[0])
        headers, text = found or ({}, "Not here.")
        body = text.encode()
        headers = {"Content-Type": "text/html; charset=utf-8", **headers}
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            body = gzip.compress(body)
            headers["Content-Encoding"] = "gzip"
        self.send_response(200 if found else 404)
        for header in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(*header)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def blog(pages: Pages) -> Iterator[str]:
    """The URL of a blog with these pages; they may change while it runs."""
    server = BlogServer(("127.0.0.1", 0), Blog)
    server.pages = pages
    thread = threading.Thread(target=server.serve_forever, args=[0.05], daemon=True)
    thread.start()
    try:
        yield f"http://blog.test:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)


@contextmanager
def service(app: App) -> Iterator[str]:
    """The URL of the app behind waitress, in this process; it listens on `127.0.0.1:0`."""
    server = guarded_server(app)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://comments.test:{server.effective_port}"
    finally:
        server.task_dispatcher.shutdown()
        # In the loop's thread, which may be walking through its connections. The loop ends there,
        # as nothing is left to poll.
        server.trigger.pull_trigger(partial(close_server, server))
        thread.join(PATIENCE)


@contextmanager
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium: install Debian's package chromium")
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


def new_context(browser: Browser, **how: Any) -> BrowserContext:
    """A browser of somebody's own. Requests pass through a route from the start: where the first
    one is set on a page that is there, Chromium may send the next request past it (one of some
    two thousand, on a busy machine)."""
    context = browser.new_context(**how)
    context.route("**/nothing is here", lambda route: route.abort())
    context.set_default_timeout(1000 * PATIENCE)
    return context


def painted(page: Page) -> Page:
    """As soon as it is: what is clicked before that, Chromium drops."""
    watch = "new PerformanceObserver(() => go(true)).observe({type: 'paint', buffered: true})"
    page.evaluate(f"() => new Promise(go => {watch})")
    return page


def wait_until(page: Page, condition: str, value: Any = None) -> None:
    """Until this function of the page returns something true. `wait_for_function` of Playwright
    compiles a library of 340 kB in each page first, which is a tenth of what a page costs."""

    def is_true() -> bool:
        try:
            return bool(page.evaluate(condition, value))
        except Error as error:  # the browser is just going to another page
            if "context was destroyed" not in str(error):
                raise
            return False

    until(is_true)


def screen(width: int) -> Json:
    """A phone or a desk, as Playwright takes it."""
    phone = width < 600
    return {
        "viewport": {"width": width, "height": 844 if phone else 768},
        "device_scale_factor": 2 if phone else 1,
        "is_mobile": phone,
        "has_touch": phone,
    }


# Those that go round for ever are left alone.
ANIMATIONS_ARE_OVER = """async () => {
  const roots = [...document.querySelectorAll('*')].map(element => element.shadowRoot)
  const moving = [document, ...roots].flatMap(root => root ? root.getAnimations() : [])
  // What follows the scroll position, as the edge of wide code does, never ends.
  const ending = moving.filter(each => each.timeline === document.timeline
    && each.effect.getComputedTiming().endTime !== Infinity
    && each.animationName !== 'commentd') // the place that guides hold while no script comes
  await Promise.allSettled(ending.map(each => each.finished))
  await new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))
}"""


def begin_to_read(page: Page, thread: str = "commentd-thread") -> None:
    """Comes to a thread and gives signs that somebody reads, until menus are there and all that
    comes with them."""
    signs = """selector => {
      const thread = document.querySelector(selector)
      if (thread.getBoundingClientRect().top > innerHeight) thread.scrollIntoView()
      dispatchEvent(new Event('pointermove'))
      return Boolean(thread.decorators?.reading) // none before embed.js is there
    }"""
    wait_until(page, signs, thread)


def settle(page: Page) -> None:
    """Waits until no request is open, or for two seconds, and until animations are over."""
    with suppress(TooLong):
        page.wait_for_load_state("networkidle", timeout=2000)
    page.evaluate(ANIMATIONS_ARE_OVER)


@contextmanager
def own_app(**settings: Any) -> Iterator[App]:
    """A service for scripts, in a folder that goes with it."""
    with tempfile.TemporaryDirectory() as folder:
        config = Config(
            server_listen="127.0.0.1:0",
            database_path=f"{folder}/commentd.db",
            backup_folder=f"{folder}/backups",
            captcha_provider="none",
            limits_enabled=False,
            **settings,
        )
        with closing(make_app(config, rounds=1)) as app:
            yield app


@contextmanager
def answering(app: App, change: Change) -> Iterator[None]:
    """Passes each response of the service through `change(environ, status, headers, body)`."""
    plain = app.routes

    def changed(environ: Json, start_response: Callable[..., Any]) -> list[bytes]:
        head: list[Any] = []
        asked = {**environ, "HTTP_ACCEPT_ENCODING": ""}  # what is changed is not zipped, nor kept
        body = b"".join(plain(asked, lambda *words: head.extend(words)))
        status, headers, body = change(environ, head[0], dict(head[1]), body)
        if "Content-Length" in headers:
            headers["Content-Length"] = str(len(body))
        start_response(status, list(headers.items()))
        return [body]

    app.routes = changed
    try:
        yield
    finally:
        app.routes = plain


def changed_json(body: bytes, **values: Any) -> bytes:
    """A response with other values at its top."""
    return json.dumps({**json.loads(body), **values}).encode()


def nodes_of(rules: list[Json]) -> list[str]:
    return [
        f"{rule['id']} {node['html'][:100]} {reasons(node)}"
        for rule in rules
        for node in rule["nodes"]
    ]


def reasons(node: Json) -> str:
    return "; ".join(check["message"] for check in node["any"] + node["all"] + node["none"])


# The article

LINES = [
    "夜里改样式表，最怕的不是改不动，而是改到后来已经看不出好坏。我的办法很笨：关掉编辑器，"
    "泡一杯茶，隔一个钟头再用手机把文章从头读一遍。哪里读得累，哪里就有问题。",
    "A line of text is a promise: the eye is led to its end and must find its way back. When the "
    "way back is too long, the reader loses the thread; when it is too short, he never finds one.",
    "中文一行三十几个字，英文一行六十来个字母，是印刷时代留下的经验。屏幕没有推翻它，"
    "只是把纸边换成了窗口，把裁刀换成了拇指。",
    "I measured the posts of this site. The oldest ran to a hundred and ten letters a line, since "
    "a wide window looked generous then. Nobody complained, and nobody read to the end either.",
    "行与行之间的空白，不是省下来的纸，而是给眼睛落脚的台阶。台阶太密，走得急；"
    "台阶太疏，走着走着就忘了自己在哪一层。",
    "So the column got narrower and the lines moved apart: 720 pixels at most, eighteen pixels of "
    "type, a line height of 1.7. On a phone the margins shrink before the letters do.",
    "字体也换过一轮。宋体在高分屏上终于站得住，横细竖粗，像有人在耳边慢慢念。"
    "标题不必更粗，离正文远一点，读者自然知道那是标题。",
    "Colour came last. One green for links, dark enough to be read at noon on a balcony, and its "
    "paler brother for the night. Everything else is ink.",
    "有朋友问，为什么不放头图。图很好看，只是它总要抢在第一句话前面开口。"
    "一篇文章的开头应该是一句话，而不是一张脸。",
    "What remains is what was there before: sentences, one after the other. A design has worked "
    "when the letters to the author speak of the story and not of the site.",
    "还有一件小事：数字和西文两边留一点空隙，标点不要挂在行首。这些地方没有人会夸你，"
    "但每一处都在悄悄地替读者省力气。",
    "If you try this on your own pages, change one thing a week and read an old post each time. "
    "你会发现，改得最好的那一天，往往是删得最多的那一天。",
]

LOOKS = {
    "essay": """
        :root { color-scheme: light dark;
                --text: #24292b; --ground: #fff; --link: #0b6e4f; --line: #d9dedb }
        @media (prefers-color-scheme: dark) {
            :root { --text: #d6dad8; --ground: #15191a; --link: #5fcf9f; --line: #333b39 } }
        body { margin: 0; font: 18px/1.7 "Noto Serif CJK SC", "Songti SC", serif }
        main, footer { max-width: 720px }
        h1, h2 { font-size: 1.6em; line-height: 1.3 }
        h2 { font-size: 1.25em }""",
    "code": """
        :root { color-scheme: light dark;
                --text: #1f2328; --ground: #fbfbf9; --link: #0550ae; --line: #d0d7de }
        @media (prefers-color-scheme: dark) {
            :root { --text: #c9d1d9; --ground: #0d1117; --link: #79c0ff; --line: #30363d } }
        body { margin: 0; font: 15px/1.6 "DejaVu Sans Mono", "Noto Sans Mono CJK SC", monospace }
        main, footer { max-width: 80ch }
        h1, h2 { font-size: 1em }
        h1::before { content: "# " }
        h2::before { content: "## " }""",
    # Dark whatever the reader's system prefers, and without a word of `color-scheme`.
    "photo": """
        :root { --text: #c6c8cc; --ground: #101113; --link: #e3b778; --line: #2b2d31 }
        body { margin: 0; font: 300 16px/1.6 "Noto Sans CJK SC", "PingFang SC", sans-serif }
        main, footer { max-width: 860px }
        h1 { padding: 180px 24px 24px; font-weight: 300; letter-spacing: .04em;
             background: linear-gradient(#0000, #000c), linear-gradient(160deg, #2f4858, #86775f) }
        h2 { font-weight: 400; text-transform: uppercase; letter-spacing: .1em }""",
}
COMMON = """
body { color: var(--text); background: var(--ground) }
main, footer { margin: 0 auto; padding: 0 20px }
a { color: var(--link) }
h2 { margin-top: 2.5em; padding-top: 1.5em; border-top: 1px solid var(--line) }
footer { margin-top: 3em; padding-bottom: 3em; border-top: 1px solid var(--line); font-size: .8em }
"""


def article(
    service: str, path: str = POST, *, look: str = "essay", lang: str = "zh-CN", tag: str = ""
) -> Pages:
    """A post of twelve paragraphs with the widget's tag after the heading `#comments`, and its
    style sheet; or another tag."""
    text = "\n".join(f"<p>{line}</p>" for line in LINES)
    direction = "rtl" if lang.startswith("ar") else "ltr"
    html = f"""<!doctype html>
<html lang="{lang}" dir="{direction}">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>一行字能走多远 – How far a line goes</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/{look}.css">
<main>
<article><h1>一行字能走多远</h1>
{text}</article>
<h2 id="comments">评论 Comments</h2>
{tag or f'<script src="{service}/embed.js" async></script>'}
</main>
<footer><p>写于山下，灯光很暗的一晚。 <a href="/">More posts</a></p></footer>
</html>
"""
    sheet = LOOKS[look] + COMMON
    return {path: ({}, html), f"/{look}.css": ({"Content-Type": "text/css; charset=utf-8"}, sheet)}


# The conversation

OWNER = "江屿"
PLACES = {  # addresses whose places the shipped tables know
    "陆知微": "223.5.5.5",
    OWNER: "114.114.114.114",
    "Mateo Silva": "200.160.2.3",
    "Noor Rahman": "1.36.0.1",
    "顾砚秋": "168.95.1.1",
}

FIRST = (
    "“隔一个钟头再读一遍”，我试了，真的能看出问题来。请问正文用的是哪一款宋体？"
    "On my phone it reads even better than on the desk."
)
FONTS = (
    "思源宋体（Noto Serif CJK），只留常规和粗体两个字重，再按文章切成子集，一页的字体大约 90 KB。"
)
WORDS = (
    "It knows no words in Chinese, but it still saves the last line from a single character. "
    "I would keep it."
)
CODE = """I narrowed my column last night, and the numbers moved more than I had hoped:

```css
main {
  max-width: 38em;
  line-height: 1.7;      /* was 1.45 */
  text-wrap: pretty;     /* no lonely words */
}
```

Is `text-wrap` worth it for Chinese too, or does it only know spaces?"""

QUOTE = """> 一篇文章的开头应该是一句话，而不是一张脸。

I copied this onto the card above my desk. There is a good note on the same thought in \
[the measure of a line](https://blog.example/the-measure-of-a-line), 值得一起读。"""

LONG = """我在县里的印刷厂做过九年，后来厂子关了，才学着做网页。看到这一篇，忍不住想把两边的经验放\
在一起说说。

排铅字的时候，一行放多少字不由你定，版框有多宽，字盘有几号字，算下来就是那么多。师傅只教一句话：眼\
睛回得来，就是好行。他让徒弟把手指按在行尾，再去找下一行的头，手指要是犹豫，这一版就重排。现在没有\
人拿手指去按屏幕了，可是眼睛还在犹豫，只是读者不会告诉你，他把窗口关了就走了。

具体的数字我也试过一些。正文十七到十九像素，行距一点七上下，一行三十二到三十六个汉字，读长文最不\
累。英文要窄一点，six or seven words after the comma, and the eye is home again. 中英混排最难的是\
重心：西文坐在基线上，汉字浮在格子里，放在一起总像两个人身高不一样。我的办法是把西文字号放大百分之\
三，不多，刚好让人看不出来。

空白的事情你说得对，但我想补一句：空白要有大小之分。段落之间的空，要比行之间的空大；标题上面的空，\
要比下面的大；评论和正文之间的空，应该是一页里最大的。这样读者一眼扫过去，就知道哪些话是一家的。最\
怕处处一样大，看上去整整齐齐，其实是把门都拆了，满屋子都是走廊。

还有颜色。纸上的黑其实不黑，油墨吃进纸里会发灰发暖；屏幕上的纯黑配纯白，像正午的雪地。把黑退一步，\
把白也退一步，中间还剩下十倍的对比，足够了。小字反而不要再退，字越小越要站得稳。厂里印药品说明书，\
再小的字也用足墨，因为看它的人多半正不舒服，没有力气去猜。

最后说说评论区。读者写的话也是文章，只是短一些，不该像收据一样打在另一种纸上。字体跟着正文走，名字\
安静一点，时间再安静一点，让话自己站在那里，就很好了。写得好的评论，我常常比正文还要读得久。

谢谢你把这些小事写下来，也谢谢你没有放头图。下一篇如果写标题，请一定说说小屏幕上两级标题该差几号，\
我改了一个冬天，还是没有改好。"""

# Who, what it replies to, hours ago, likes, text.
CONVERSATION = [
    ("陆知微", None, 47.2, 5, FIRST),
    (OWNER, 0, 44.0, 3, FONTS),
    ("陆知微", 1, 43.6, 0, "谢谢！原来还能按文章切，周末就去试试。"),
    ("Mateo Silva", None, 21.3, 8, CODE),
    ("Noor Rahman", 3, 6.1, 1, WORDS),
    ("Noor Rahman", None, 3.2, 2, QUOTE),
    ("顾砚秋", None, 0.6, 4, LONG),
]


def conversation(app: App, page: str = POST) -> list[int]:
    """Seven comments of five people, written through the API as if over the last two days; their
    ids. One is by the owner, who has an account and whose name nobody else may take."""
    ids: list[int] = []
    for name, above, hours, likes, text in CONVERSATION:
        parent = None if above is None else ids[above]
        ids.append(say(app, text, name, page=page, hours=hours, likes=likes, parent_id=parent))
    of_page = "(SELECT page_id FROM comment WHERE id = ?)"
    sql(app, f"UPDATE page SET views = 1286 WHERE id = {of_page}", ids[0])
    return ids


def say(
    app: App,
    content: str,
    name: str = "陆知微",
    *,
    page: str = POST,
    hours: float = 1,
    likes: int = 0,
    **fields: Any,
) -> int:
    """One comment through the API, some hours old and liked; its id."""
    client = TestApp(app, {"REMOTE_ADDR": PLACES.get(name, "203.0.113.7")})
    if name == OWNER:
        client.authorization = ("Bearer", owner_token(app))
    body = {"page_url": page, "nickname": name, "content": content, "captcha_token": "x", **fields}
    made: int = client.post_json("/comments", body).json["comment"]["id"]
    client.authorization = None
    for number in range(likes):
        client.post_json("/comment/like", {"id": made}, headers={"User-Agent": f"Reader {number}"})
    at = int(now(app) - hours * 3600)
    sql(app, "UPDATE comment SET created_at = ? WHERE id = ?", at, made)
    return made


def owner_token(app: App) -> str:
    """A login of the owner, whose account is made when there is none."""
    email = "owner@example.com"
    if not sql(app, "SELECT id FROM account WHERE email = ?", email):
        add_account(app, email, OWNER, "x", "admin")
    return token_of(app, email)
