"""What stands between the service and its readers, and believes what it says: proxies that may read
a request otherwise, shared caches, and browsers, which go by headers."""

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import test_openapi
import webtest
from conftest import PAGE, Campaign, Outside
from test_openapi import OPERATIONS, RANKS, Town, fields, forms, required, with_metrics
from test_server import BLOG, FOREIGN, POLICY

import commentd
from commentd import ROUTES, Config, Problem, make_app

town, again = test_openapi.town, test_openapi.again

# What browsers are told

PAGES = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "worker-src blob:; img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'"
)
HTTPS = {"server_public_url": "https://comments.example", "site_demo": True}
SETTINGS: list[dict[str, Any]] = [
    {},
    {"site_origins": (BLOG, "http://localhost:4000"), "server_metrics": True, **HTTPS},
    {"server_public_url": "http://comments.example", "site_contact": "mailto:ann@example.com"},
    {"server_public_url": "https://blog.example/comments", "site_origins": (BLOG,)},
]
METHODS = [*("GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS", "TRACE", "BREW")]
STATUSES = (400, 401, 403, 404, 409, 413, 414, 415, 429, 500, 503)
KEPT = {"/feed.atom": 300, "/thread": 300, "/openapi.json": 3600, "/embed.js": 3600}
KEPT |= {"/admin.css": 3600, "/words/de.json": 3600}


def due(config: Config, method: str, path: str, asked: dict[str, str], answer: Any) -> Any:
    """The headers that a reply has: these and no others."""
    status, headers = answer.status_int, answer.headers
    own, kept = path.startswith("/admin"), path in KEPT and answer.status_int in (200, 304)
    html = headers.get("Content-Type") == "text/html; charset=utf-8"
    personal = own or path.startswith(("/auth/", "/me/")) or path == "/me"
    told = {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Content-Security-Policy": PAGES if html else POLICY,
        "Cross-Origin-Resource-Policy": "same-origin" if own or html else "cross-origin",
        "Vary": "Origin, Authorization",
        "Cache-Control": "no-cache",
    }
    if personal or html or "Authorization" in asked:
        told["Cache-Control"] = "no-store"
    if kept:
        told |= {"Cache-Control": f"public, max-age={KEPT[path]}", "Etag": headers["ETag"]}
        if KEPT[path] == 3600:
            told["Vary"] = "Accept-Encoding, Origin, Authorization"
            told |= {"Content-Encoding": "gzip"} if "Accept-Encoding" in asked else {}
    if not own and (not config.site_origins or asked.get("Origin") in config.site_origins):
        told["Access-Control-Allow-Origin"] = asked["Origin"] if config.site_origins else "*"
        told["Access-Control-Expose-Headers"] = "Retry-After"
    if config.server_public_url == "https://comments.example":
        told["Strict-Transport-Security"] = "max-age=31536000"
    if html and config.server_public_url.startswith("https:"):
        told["Cross-Origin-Opener-Policy"] = "same-origin"
    if method == "OPTIONS":
        told["Access-Control-Allow-Methods"] = "GET, POST, PATCH, DELETE"
        told["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
        told["Access-Control-Max-Age"] = "7200"
    if status == 401:
        told["Www-Authenticate"] = "Bearer"
    if status in (429, 503):
        told["Retry-After"] = {429: "60", 503: "5"}[status]
    return told


def methods_at(path: str) -> set[str]:
    return {r.method for r in ROUTES if re.fullmatch(re.sub("<.*?>", "[^/]+", r.path), path)}


def assert_due(config: Config, method: str, path: str, asked: dict[str, str], answer: Any) -> None:
    found = {name.title(): value for name, value in answer.headers.items()}
    length, kind = found.pop("Content-Length", ""), found.pop("Content-Type", "")
    allow, name = found.pop("Allow", ""), found.pop("Content-Disposition", "")
    assert found == due(config, method, path, asked, answer), (method, path, answer.status)
    assert method == "HEAD" or length in ("", str(len(answer.body)))
    there = methods_at(path) if answer.status_int == 405 else set()
    assert {*filter(None, allow.split(","))} == there
    assert name == "" or name.startswith('attachment; filename="commentd-')
    assert bool(kind) == (answer.status_int != 204)
    assert not kind.startswith(("text/", "application/j")) or kind.endswith("; charset=utf-8")


@pytest.fixture
def houses(tmp_path: Path, outside: Outside) -> Iterator[list[commentd.App]]:
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                contextlib.closing(
                    make_app(
                        Config(
                            database_path=str(tmp_path / f"{n}.db"),
                            backup_folder=str(tmp_path),
                            captcha_provider="none",
                            **settings,
                        ),
                        outside.world,
                        rounds=1,
                    )
                )
            )
            for n, settings in enumerate(SETTINGS)
        ]


def refusal(status: int) -> Exception:
    """What makes the service answer with this status."""
    kinds = {429: commentd.TooMany, 503: commentd.Unavailable}
    if status == 500:
        return RuntimeError("a fault of ours")
    return kinds.get(status, Problem)("不行", "refused", status)


PATHS = sorted({re.sub("<[^>]*_id>", "1", r.path) for r in ROUTES if "<name>" not in r.path})
PATHS += [path for path in KEPT if path not in PATHS] + ["/nothing", "/nothing/here", "/%ff", "/.."]


def test_every_route_method_and_status_has_its_headers_and_no_others(
    houses: list[commentd.App], campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached: Counter[int] = Counter()
    context_of, raised = commentd.context_of, list[Exception]()

    def context_or_refusal(*words: Any) -> Any:
        if raised:
            raise raised[0]
        return context_of(*words)

    monkeypatch.setattr(commentd, "context_of", context_or_refusal)
    monkeypatch.setattr(commentd.log, "disabled", True)
    for chance in campaign.rounds(len(PATHS)):
        path = PATHS[campaign.last % len(PATHS)]
        for method in METHODS:
            for status in (0, *STATUSES):
                app = chance.choice(houses)
                raised[:] = [refusal(status)] if status else []
                said = {"Origin": chance.choice([BLOG, FOREIGN, "null"])}
                said |= {"Authorization": "Bearer x", "Accept-Encoding": "gzip"}
                asked = {name: said[name] for name in said if chance.random() < 0.4}
                target = path + chance.choice(["", f"?url={PAGE}", "?url=%ff"])
                answer = webtest.TestApp(app, lint=False).request(
                    target, method=method, headers=asked, expect_errors=True
                )
                assert_due(app.house.config, method, path, asked, answer)
                reached[answer.status_int] += 1
    campaign.figures["replies"] = reached.total()
    assert reached.keys() >= {200, 204, 405, *STATUSES}


@with_metrics
def test_every_operation_that_is_done_has_its_headers(
    town: Town, again: Callable[[], object]
) -> None:
    for label, operation in OPERATIONS.items():
        again()
        method, path = label.split()
        path = re.sub("{(.*?)}", lambda name: str(town.good[name[1]]), path)
        query = town.values(label, required(operation))
        form = next((town.values(label, fields(f, whole=False)) for f in forms(operation)), None)
        answer = town.ask(label, query, form)
        assert answer.status_int == 200, label
        asked = {"Authorization": "Bearer x"}
        assert RANKS[label] in town.tokens
        assert_due(town.app.house.config, method, path, asked, answer)


# The score of Mozilla's HTTP Observatory, by the table that its scanner has

BROAD = {"*", "http:", "https:", "ftp:", "http://*", "https://*", "http://*.*", "https://*.*"}
UNSAFE = BROAD | {"'unsafe-inline'", "data:"}


def of_policy(text: str) -> int:
    parts = [part.lower().split() for part in text.split(";") if part.strip()]
    policy = {name: set(sources) or {"'none'"} for name, *sources in parts}
    if not parts or len(policy) < len(parts):
        return -25
    every = policy.get("default-src", {"*"})
    scripts, styles, objects = (
        policy.get(f"{n}-src", every) for n in ("script", "style", "object")
    )
    shown = policy.get("img-src", every) | policy.get("media-src", every)
    active = set().union(*(s for n, s in policy.items() if n not in ("img-src", "media-src")))
    marks = [
        (bool(scripts & UNSAFE or objects & BROAD), -20),
        (any(source.startswith(("http:", "ftp:")) for source in active), -20),
        ("'unsafe-eval'" in scripts | styles, -10),
        (any(source.startswith(("http:", "ftp:")) for source in shown), -10),
        (bool(styles & UNSAFE), 0),
        (every == {"'none'"}, 10),
    ]
    return next((mark for so, mark in marks if so), 5)


class Scripts(HTMLParser):
    """Those of other hosts, without a digest that holds them to what they were."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.foreign = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        foreign = re.match("(https?:)?//", said.get("src") or "")
        self.foreign |= tag == "script" and bool(foreign) and "integrity" not in said


def observatory(answer: Any) -> int:
    """Bonus points count above 90 only. Nothing here redirects; port 80 is the proxy's."""
    headers = answer.headers
    policy = headers.get("Content-Security-Policy", "")
    age = re.fullmatch(r"max-age=(\d+)\b.*", headers.get("Strict-Transport-Security", ""))
    private = ("no-referrer", "same-origin", "strict-origin", "strict-origin-when-cross-origin")
    referrer, framed = headers.get("Referrer-Policy"), "frame-ancestors" in policy
    shared = headers.get("Access-Control-Allow-Credentials") == "true"
    corp = headers.get("Cross-Origin-Resource-Policy", "cross-origin")
    marks = [
        of_policy(policy),
        -20 if not age else -10 if int(age[1]) < 15768000 else 0,
        5 if referrer in private else 0 if referrer is None else -5,
        0 if headers.get("X-Content-Type-Options") == "nosniff" else -5,
        5 if framed else 0 if headers.get("X-Frame-Options") in ("DENY", "SAMEORIGIN") else -20,
        {"cross-origin": 0, "same-site": 10, "same-origin": 10}.get(corp, -5),
        -40 if "Set-Cookie" in headers else 0,
        -50 if shared else 0,
        -5 if Scripts(answer.text).foreign else 0,
    ]
    score = 100 + sum(mark for mark in marks if mark < 0)
    return score + sum(mark for mark in marks if mark > 0) if score >= 90 else score


@pytest.mark.parametrize("settings", [HTTPS])
@pytest.mark.parametrize("path", ["/", "/admin", "/mail", f"/thread?url={PAGE}"])
def test_the_observatory_gives_our_pages_its_best_grade(app: commentd.App, path: str) -> None:
    answer = webtest.TestApp(app).get(path, expect_errors=True)
    assert observatory(answer) >= 130
    named = ["Content-Security-Policy", "Strict-Transport-Security", "X-Content-Type-Options"]
    for name in [*named, "Referrer-Policy", "Cross-Origin-Resource-Policy"]:
        worse = answer.copy()
        del worse.headers[name]
        assert observatory(worse) < 130


# Shared caches


def test_what_is_zipped_has_a_tag_of_its_own(app: commentd.App) -> None:
    """Else a cache that holds both could serve the one as the other (RFC 9111, 4.3.4)."""
    client, zip_it = webtest.TestApp(app), {"Accept-Encoding": "gzip"}
    plain = client.get("/embed.js").headers["ETag"]
    zipped = client.get("/embed.js", headers=zip_it).headers["ETag"]
    assert plain != zipped
    again = {"If-None-Match": zipped}
    assert client.get("/embed.js", headers=again | zip_it, status=304).headers["ETag"] == zipped
    assert client.get("/embed.js", headers=again, status=200).headers["ETag"] == plain
