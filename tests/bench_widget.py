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

WATCH = (Path(__file__).parent / "bench.js").read_text("utf-8")


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=blog.PLAIN)
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


if __name__ == "__main__":
    main()
