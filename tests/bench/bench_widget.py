"""What comments cost a reader, with a fragment in the page and with the ordinary tag, as a Markdown
table that marks the goals that the fragment misses; run by hand:
`python tests/bench/bench_widget.py`.

The page is an article with seven comments, on a phone (390 x 844, a quarter of this machine's CPU)
with an empty cache, over HTTP/1.1 without DNS and TLS, texts zipped; `--rtt` is what each request
waits. Times are the least and the median of the turns, opened at `#comments`; a comment counts when
the frame that shows it is painted. Shifts are the sums of whole loads: opened at `#comments` (the
worst turn), and by a reader who at once stays at the top, goes to the middle or to the end, and
goes to the comments when all is quiet. Scripts and data are those before the reader acts. Then
they come near with the wheel, and tap the field when all is quiet again: what they wait for from
then to the button that posts. The longest task is that of a list of a hundred comments.

Scripts and styles are those that a wheel has; with `--readable`, those of a checkout."""

import argparse
import gzip
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, Request

HOME = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HOME), str(HOME / "tests")]

from support import blog, inside  # noqa: E402

PHONE, DESK = 390, 1280
LONG_LIST = "/2026/list/"
Row = dict[str, tuple[object, bool]]  # by column: what was found, and whether the goal is met
PLACES = ("0", "document.body.scrollHeight / 2", "1e6")
THREAD = "document.querySelector('commentd-thread')"
SHIFT = "watch.shifts.reduce((sum, [value]) => sum + value, 0)"
# When the browser first paints anything, and a comment that is in the window.
TIMES = f"""window.times = new Promise(go => {{
  const isShown = node => {{
    const {{top, bottom, height}} = node.getBoundingClientRect()
    return height && bottom > 0 && top < innerHeight
  }}
  const look = began => {{
    const bodies = {THREAD}?.shadowRoot?.querySelectorAll('.body') ?? []
    if (![...bodies].some(isShown)) return requestAnimationFrame(look)
    requestAnimationFrame(painted => new PerformanceObserver(list => {{
      const [first] = list.getEntriesByName('first-contentful-paint')
      if (first) go([first.startTime, first.paintTime > began ? first.startTime : painted])
    }}).observe({{type: 'paint', buffered: true}}))
  }}
  requestAnimationFrame(look)
}})"""
# Taps the field; `wait` is the time until the button that posts is there.
TAP = """field => {
  const began = performance.now()
  window.wait = new Promise(go => {
    const look = () => {
      const button = field.form.querySelector('.row .button')
      if (button?.checkVisibility()) go(performance.now() - began)
      else requestAnimationFrame(look)
    }
    look()
  })
  field.focus()
}"""
# Playwright would look for the comments in the page again and again, in tasks of its own.
TASKS = """window.tasks = []
window.loaded = new Promise(go => addEventListener('commentd:loaded', go, {once: true}))
new PerformanceObserver(list => tasks.push(...list.getEntries().map(each => each.duration)))
  .observe({type: 'longtask', buffered: true})"""
# How many comments can be read, and what the form says.
READABLE = f"""() => {{
  const seen = name => [...{THREAD}?.shadowRoot?.querySelectorAll(name) ?? []].filter(
    node => node.checkVisibility({{visibilityProperty: true}}))
  return [seen('.body').length, seen('textarea').map(node => node.placeholder).join()]
}}"""


def ways(service: str) -> dict[str, str]:
    """The HTML of the comments, by the name of a way."""
    query = f"fragment?url={blog.POST}&lang=en"
    with urlopen(f"{service.replace('comments.test', '127.0.0.1')}/{query}") as response:
        fragment = response.read()
    print(f"The fragment has {len(fragment)} bytes, {len(gzip.compress(fragment))} zipped.\n")
    tag = f'<script src="ORIGIN/loader.js" data-service="{service}/" async></script>'
    return {
        "fragment, loader of the blog": fragment.decode() + tag.replace("ORIGIN", ""),
        "fragment, loader of the service": fragment.decode() + tag.replace("ORIGIN", service),
        "ordinary tag": "",
    }


def tag_of(service: str) -> str:
    return f'<script src="{service}/embed.js" async></script>'


@contextmanager
def opened(
    browser: Browser, width: int, options: argparse.Namespace, times: str = TIMES
) -> Iterator[Page]:
    """A page on a slow network and machine, with a script that notes times."""
    context = browser.new_context(locale="en", **blog.screen(width))
    page = context.new_page()
    page.add_init_script(blog.WATCH)
    page.add_init_script(times)
    network = {"offline": False, "latency": options.rtt, "uploadThroughput": 750e3 / 8}
    network["downloadThroughput"] = options.kbits * 1000 / 8
    devtools = context.new_cdp_session(page)
    devtools.send("Network.emulateNetworkConditions", network)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    yield page
    context.close()


def times(browser: Browser, url: str, options: argparse.Namespace) -> Row:
    turns: list[list[float]] = []
    for _ in range(options.turns):
        with opened(browser, PHONE, options) as page:
            page.goto(f"{url}#comments")
            paint, comment = page.evaluate("times")
            blog.settle(page)
            turns.append([paint / 1000, comment / 1000, page.evaluate(SHIFT)])
    paints, comments, shifts = zip(*turns, strict=True)
    return {
        "first paint, s": (f"{min(paints):.2f}, {median(paints):.2f}", True),
        "first comment, s": (f"{min(comments):.2f}, {median(comments):.2f}", paints == comments),
        "shift at `#comments`": (f"{max(shifts):.2g}", not any(shifts)),
    }


def shifts(browser: Browser, url: str, width: int, options: argparse.Namespace) -> Row:
    found: list[float] = []
    for place in PLACES:
        with opened(browser, width, options) as page:
            page.goto(url, wait_until="domcontentloaded")
            page.evaluate(f"scrollTo({{top: {place}, behavior: 'instant'}})")
            page.wait_for_load_state("networkidle")
            page.evaluate(f"{THREAD}.scrollIntoView({{behavior: 'instant'}})")
            page.locator("commentd-thread form").wait_for()
            blog.settle(page)
            found.append(page.evaluate(SHIFT))
    return {f"at {width} px": (", ".join(f"{each:.2g}" for each in found), not any(found))}


def requests(browser: Browser, url: str, options: argparse.Namespace) -> Row:
    asked: list[Request] = []
    with opened(browser, PHONE, options) as page:
        page.on("requestfinished", lambda request: asked.append(request))
        page.goto(url, wait_until="networkidle")
        script, data = (
            [each.sizes()["responseBodySize"] for each in asked if each.resource_type in kinds]
            for kinds in (["script"], ["fetch", "xhr"])
        )
    return {
        "script, bytes": (sum(script), sum(script) <= 2000),
        "data requests, bytes": (f"{len(data)}, {sum(data)}", not data),
    }


def first_key(browser: Browser, url: str, options: argparse.Namespace) -> Row:
    with opened(browser, PHONE, options) as page:
        page.goto(f"{url}#comments")
        page.locator("commentd-thread form textarea").wait_for()
        page.wait_for_load_state("networkidle")
        page.mouse.wheel(0, 10)
        page.wait_for_timeout(3000)  # they read
        late: list[Request] = []
        page.on("request", lambda request: late.append(request))
        page.locator("commentd-thread form textarea").evaluate(TAP)
        page.locator("commentd-thread form .row .button").first.wait_for()
        wait = page.evaluate("wait")
        page.keyboard.type("a")
        page.wait_for_load_state("networkidle")
    files = ", ".join(urlsplit(each.url).path for each in late) or "nothing"
    return {"tap to button, s": (f"{wait / 1000:.2f}", True), "asked for then": (files, True)}


def longest_task(browser: Browser, url: str, options: argparse.Namespace) -> Row:
    longest: list[float] = []
    for _ in range(options.turns):
        with opened(browser, PHONE, options, TASKS) as page:
            page.goto(f"{url}#comments")
            page.evaluate("loaded.then(() => 0)")
            page.wait_for_timeout(1000)  # they are drawn
            longest.append(max(page.evaluate("tasks"), default=0))
    text = f"{min(longest):.0f}, {median(longest):.0f}"
    return {"longest task, ms": (text, max(longest) <= 100)}


def stopped(browser: Browser, url: str, options: argparse.Namespace) -> Row:
    with opened(browser, PHONE, options) as page:
        page.goto(url)
        page.mouse.wheel(0, 1e6)
        blog.settle(page)
        count, form = page.evaluate(READABLE)
    every = len(blog.CONVERSATION)
    return {"service stopped: comments": (count, count == every), "form": (form, bool(form))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rtt", type=int, default=150, metavar="MS")
    parser.add_argument("--kbits", type=int, default=1600, help="a second, down")
    parser.add_argument("--readable", action="store_true", help="the scripts of a checkout")
    options = parser.parse_args()
    static = HOME / "static"
    if not options.readable:
        static = Path(tempfile.mkdtemp())
        inside.serve_small_files(static)
    loader = (static / "loader.js").read_text("utf-8")
    pages: blog.Pages = {"/loader.js": ({"Content-Type": "text/javascript"}, loader)}
    articles: dict[str, blog.Pages] = {}
    rows: dict[str, Row] = {}
    with blog.own_app() as app, blog.chromium() as browser, blog.blog(pages) as home:
        blog.conversation(app)
        for number in range(100):
            blog.say(app, f"{blog.LONG[:300]} {number}", f"Reader {number}", page=LONG_LIST)
        url = home + blog.POST
        with blog.service(app) as service:
            for name, tag in ways(service).items():
                articles[name] = blog.article(service, lang="en", tag=tag)
                pages.update(articles[name])
                rows[name] = times(browser, url, options)
                for width in (PHONE, DESK):
                    rows[name] |= shifts(browser, url, width, options)
                rows[name] |= requests(browser, url, options)
                rows[name] |= first_key(browser, url, options)
            tag = f'<commentd-thread limit="100"></commentd-thread>{tag_of(service)}'
            pages.update(blog.article(service, LONG_LIST, lang="en", tag=tag))
            rows["ordinary tag"] |= longest_task(browser, home + LONG_LIST, options)
        for name, row in rows.items():
            pages.update(articles[name])
            row |= stopped(browser, url, options)
    columns = ["", *rows["ordinary tag"]]
    print("|", " | ".join(columns), "|")
    print("|---|", "--:|" * (len(columns) - 2), "---|", sep="")
    for name, row in rows.items():
        missed = "" if name == "ordinary tag" else " (missed)"
        found = [row.get(column, ("", True)) for column in columns[1:]]
        cells = [f"{text}{'' if is_met else missed}" for text, is_met in found]
        print("|", " | ".join([name, *cells]), "|")


if __name__ == "__main__":
    main()
