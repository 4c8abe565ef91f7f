"""What the widget costs a reader, beside six others; run by hand:
`python tests/bench_widget.py`, with `--only NAME` for one measure, `--embed PATH` for another
widget. The article, the thread of seven comments and the rules are those that the six were
measured by; the last column is the best of them.

time      From navigation to the second animation frame that begins with a comment's text in an
          article of the shadow root: by then the frame that shows it was made. The browser counts
          (performance.now). Median of three at 390 px, opened at #comments, with an empty cache,
          a fourth of this machine's CPU, 562 ms of latency a request, 1.44 Mbit/s down and
          675 kbit/s up, HTTP/1.1 without DNS and TLS, texts zipped, lists too, as by a proxy.
shift     The sum of the article's layout shifts (without those just after an input) in such
          loads until three seconds after the text, and what moved; the worst of three. `top` is
          opened at the top and scrolled down to the comments a second after the text.
wire      Bytes over the wire, heads included, and requests of a first load at 1024 px, without
          the article and its style sheet, as the browser's network log counts them.
"""

import argparse
import contextlib
import gzip
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Browser, CDPSession, Page

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import blog
from blog import Json

THREAD = "/2026/lines/"
SLOW_NETWORK = {
    "offline": False,
    "latency": 562,
    "downloadThroughput": 1.44e6 / 8,
    "uploadThroughput": 675e3 / 8,
}
STARTS = [text[:12] for *_, text in blog.CONVERSATION if text[0] != ">"]

# Runs before the page's own scripts. `bench` looks into shadow roots.
WATCH = """
window.bench = {shifts: [], drawn: 0}
{
  const {round, max, min} = Math
  const widget = () => document.querySelector('commentd-thread')
  const all = root => [...root.querySelectorAll('*')].flatMap(
    e => e.shadowRoot ? [e, ...all(e.shadowRoot)] : [e])
  const inside = () => widget()?.shadowRoot ? all(widget().shadowRoot) : []
  const parent = e => e.assignedSlot ?? e.parentElement ?? e.getRootNode().host
  const box = e => e.getBoundingClientRect()
  const seen = e => {
    if (!e.checkVisibility({opacityProperty: true, visibilityProperty: true})) return false
    for (; e && e !== widget(); e = parent(e)) {
      const {width, height} = box(e)
      if (min(width, height) <= 1 && getComputedStyle(e).overflow !== 'visible') return false
    }
    return true
  }
  const label = e => (e.ariaLabel || e.labels?.[0]?.textContent || e.textContent || e.placeholder
    || e.title || e.getAttribute('class') || e.localName).trim().replace(/\\s+/g, ' ').slice(0, 40)
  const controls = () => inside().filter(e => seen(e) && e.matches(`a[href], button, select,
    input:not([type=hidden]), textarea, summary, [contenteditable], [role=button],
    [tabindex]:not([tabindex^="-"])`))

  bench.frame = starts => {
    const text = inside().filter(e => e.matches('article')).map(e => e.textContent).join()
    if (!starts.some(start => text.includes(start))) {
      requestAnimationFrame(() => bench.frame(starts))
    } else requestAnimationFrame(() => bench.drawn = performance.now())
  }

  const area = r => [r.x, r.y, r.width, r.height].map(round).join(' ')
  const moved = ({node, previousRect, currentRect}) => {
    // The nodes of a shadow root are not told, so the one of this size is looked for.
    const e = node ?? inside().find(e => area(box(e)) === area(currentRect))
    const name = e ? `${e.localName ?? e.nodeName}.${e.className ?? ''} "${label(e)}"` : '?'
    return `${name}: ${area(previousRect)} -> ${area(currentRect)}`
  }
  new PerformanceObserver(list => {
    for (const {value, hadRecentInput, startTime, sources} of list.getEntries()) {
      const what = sources.map(moved).join(' | ')
      if (!hadRecentInput) bench.shifts.push([value, round(startTime), what])
    }
  }).observe({type: 'layout-shift', buffered: true})

  bench.controls = () => controls().map(e => [label(e), Boolean(e.closest('form'))])

  const isInline = e => /^(inline|contents)$/.test(getComputedStyle(e).display)
  const inSentence = e => {
    if (!e.matches('a') || !isInline(e)) return false
    let block = parent(e)
    while (isInline(block)) block = parent(block)
    const linked = [...block.querySelectorAll('a, button')].map(a => a.textContent).join('')
    return block.textContent.length - linked.length > 20
  }
  const reached = e => {
    e.scrollIntoView({block: 'center'})
    const {x, y, width, height} = box(e), cx = x + width / 2, cy = y + height / 2
    return [[-12, 0], [12, 0], [0, -12], [0, 12]].every(([dx, dy]) => {
      const hit = e.getRootNode().elementFromPoint(cx + dx * .99, cy + dy * .99)
      return e.contains(hit) || hit?.closest('label')?.control === e
    })
  }
  bench.targets = () => {
    const list = controls().filter(e => e.tabIndex >= 0 && !e.disabled)
    const free = list.filter(e => !inSentence(e))
    const small = free.filter(e => min(box(e).width, box(e).height) < 23.99)
    const size = e => `${round(box(e).width * 10) / 10} x ${round(box(e).height * 10) / 10}`
    return [list.length, list.length - free.length, small.map(e => [label(e), size(e), reached(e)])]
  }

  const brush = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true})
  const rgba = color => {
    brush.clearRect(0, 0, 1, 1)
    brush.fillStyle = color
    brush.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = brush.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = ([r, g, b, a], ground) => [r, g, b].map((c, i) => c * a + ground[i] * (1 - a))
  const ground = e => {
    if (!e) return [255, 255, 255]
    const color = rgba(getComputedStyle(e).backgroundColor)
    return color[3] === 1 ? color.slice(0, 3) : over(color, ground(parent(e)))
  }
  const opacity = e => e ? getComputedStyle(e).opacity * opacity(parent(e)) : 1
  const light = color => color.map(c => c / 255)
    .map(c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], .05)
  const ratio = (e, style) => {
    const [r, g, b, a] = rgba(style.color)
    const under = ground(e), text = over([r, g, b, a * style.opacity * opacity(parent(e))], under)
    const pair = [light(text), light(under)]
    const hex = c => c.map(n => round(n).toString(16).padStart(2, '0')).join('')
    return [max(...pair) / min(...pair), `#${hex(text)} on #${hex(under)}`]
  }
  bench.contrast = () => inside().filter(seen).flatMap(e => {
    const own = [...e.childNodes].filter(n => n.nodeType === 3 && n.data.trim())
    const pieces = own.map(n => [n.data.trim().slice(0, 40), getComputedStyle(e)])
    const hint = e.placeholder && !e.value && [e.placeholder, getComputedStyle(e, '::placeholder')]
    if (hint) pieces.push(hint)
    return pieces.map(([text, style]) => [text, ...ratio(e, style)])
  })
}
"""


class Row(NamedTuple):
    """A line of the table, and what stands behind its figure."""

    figure: str
    ours: str
    best: str
    details: list[str]


class Site(NamedTuple):
    browser: Browser
    address: str

    @contextmanager
    def page(self, width: int, scheme: str = "light") -> Iterator[Page]:
        phone = width < 600
        context = self.browser.new_context(
            viewport={"width": width, "height": 844 if phone else 768},
            color_scheme=scheme,
            locale="zh-CN",
            is_mobile=phone,
            has_touch=phone,
            device_scale_factor=2 if phone else 1,
        )
        page = context.new_page()
        page.on("pageerror", lambda error: print("  !", error))
        page.add_init_script(WATCH)
        yield page
        context.close()

    @contextmanager
    def slowly(self, path: str, width: int) -> Iterator[Page]:
        """The page on a slow phone and network, when the first text is drawn."""
        with self.page(width) as page:
            page.add_init_script(f"bench.frame({STARTS})")
            cdp = page.context.new_cdp_session(page)
            cdp.send("Network.enable")
            cdp.send("Network.emulateNetworkConditions", SLOW_NETWORK)
            cdp.send("Emulation.setCPUThrottlingRate", {"rate": 4})
            page.goto(self.address + path, wait_until="commit")
            page.wait_for_function("bench.drawn", timeout=60_000)
            yield page


def time(site: Site) -> Iterator[Row]:
    runs = []
    for _ in range(3):
        with site.slowly(f"{THREAD}#comments", 390) as page:
            runs.append((page.evaluate("bench.drawn"), page.evaluate(WATERFALL)))
    drawn = statistics.median(run[0] for run in runs)
    details = [f"{run[0] / 1000:.2f} s: {run[1]}" for run in sorted(runs)]
    yield Row("seconds to the first comment", f"{drawn / 1000:.2f}", "2.6 Isso, Waline", details)


WATERFALL = """
[...performance.getEntriesByType('paint'), ...performance.getEntriesByType('resource')].map(
  ({name, startTime, responseEnd}) => name.split('/').pop().split('?')[0] + ' '
    + [startTime, responseEnd].filter(t => t).map(t => (t / 1000).toFixed(2)).join('-')).join(', ')
"""


def shift(site: Site) -> Iterator[Row]:
    best = {"390 #comments": "0.008 Remark42", "1024 #comments": "0.005 Remark42"}
    for width in (390, 1024):
        for where in ("#comments", ""):
            shifts = max((shifts_of(site, where, width) for _ in range(3)), key=total)
            details = [f"{value:.4f} at {at / 1000:.2f} s: {moved}" for value, at, moved in shifts]
            name = f"{width} {where or 'top'}"
            yield Row(f"layout shift, {name}", f"{total(shifts):.4f}", best.get(name, ""), details)


def shifts_of(site: Site, where: str, width: int) -> list[Any]:
    with site.slowly(THREAD + where, width) as page:
        page.wait_for_timeout(1000)
        if not where:
            page.locator("#comments").scroll_into_view_if_needed()
        page.wait_for_timeout(2000)
        found: list[Any] = page.evaluate("bench.shifts")
        return found


def total(shifts: list[Any]) -> float:
    return sum(value for value, *_ in shifts)


def wire(site: Site) -> Iterator[Row]:
    with site.page(1024) as page:
        log = listening(page.context.new_cdp_session(page))
        with page.expect_response(lambda r: "/comments?" in r.url):
            page.goto(site.address + THREAD)
        page.wait_for_load_state("networkidle")
    ours = [r for r in log.values() if not is_host(r["url"], "blog.test")]
    asked = [r for r in ours if r["kind"] != "Preflight"]
    size = sum(r.get("bytes", 0) for r in ours) / 1000
    extra = f" +{len(ours) - len(asked)}p" if len(ours) > len(asked) else ""
    details = [f"{r.get('bytes', 0):6} {r['kind']}: {r['url'][:90]}" for r in ours]
    yield Row("KB over the wire", f"{size:.1f}", "27.7 Isso", details)
    yield Row("requests", f"{len(asked)}{extra}", "4 +2p Isso", [])
    others = {urlsplit(r["url"]).hostname for r in ours} - {"comments.test"}
    yield Row("third-party hosts", ", ".join(map(str, others)) or "none", "none Isso", [])


def listening(cdp: CDPSession) -> dict[str, Json]:
    """What the browser asks of the network from now on, by its number."""
    log: dict[str, Json] = {}

    def asked(event: Json) -> None:
        if event["request"]["url"].startswith("http"):
            log[event["requestId"]] = {"url": event["request"]["url"], "kind": event["type"]}

    def done(event: Json) -> None:
        if event["requestId"] in log:
            log[event["requestId"]]["bytes"] = int(event["encodedDataLength"])

    cdp.on("Network.requestWillBeSent", asked)
    cdp.on("Network.loadingFinished", done)
    cdp.send("Network.enable")
    return log


def is_host(url: str, host: str) -> bool:
    return urlsplit(url).hostname == host


def nodes_of(rules: list[Json]) -> list[str]:
    return [
        f"{rule['id']} {node['html'][:100]} {reasons(node)}"
        for rule in rules
        for node in rule["nodes"]
    ]


def reasons(node: Json) -> str:
    return "; ".join(check["message"] for check in node["any"] + node["all"] + node["none"])


def zipped(environ: Json, status: str, headers: dict[str, str], body: bytes) -> Any:
    """What a proxy does: texts go zipped to those who take it."""
    takes = "gzip" in environ.get("HTTP_ACCEPT_ENCODING", "")
    if takes and body and "Content-Encoding" not in headers:
        return status, {**headers, "Content-Encoding": "gzip"}, gzip.compress(body)
    return status, headers, body


MEASURES: dict[str, Callable[[Site], Iterator[Row]]] = {"time": time, "shift": shift, "wire": wire}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=PLAIN)
    parser.add_argument("--only", action="append", choices=MEASURES, metavar="NAME")
    parser.add_argument("--embed", type=Path, metavar="PATH", help="another embed.js")
    asked = parser.parse_args()
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        app = stack.enter_context(blog.own_app(asked.embed))
        stack.enter_context(blog.answering(app, zipped))
        service = stack.enter_context(blog.service(app))
        blog.conversation(app, THREAD)
        address = stack.enter_context(blog.blog(blog.article(service, THREAD)))
        site = Site(stack.enter_context(blog.chromium()), address)
        for name in asked.only or MEASURES:
            for row in MEASURES[name](site):
                print(f"{row.figure}: {row.ours}", *row.details, sep="\n    ", flush=True)
                rows.append(row)
    print(f"\n{'':34}{'ours':>24}  best of six")
    for row in rows:
        print(f"{row.figure:34}{row.ours:>24}  {row.best}")


PLAIN = argparse.RawDescriptionHelpFormatter

if __name__ == "__main__":
    main()
