"""The headers of every response: what browsers and shared caches go by."""

import base64
import contextlib
import functools
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import webtest

from commentd import App, Config, make_app
from support import inside
from support.api import OPERATIONS, ROUTES, example_of, path_of
from support.campaign import Campaign
from support.client import PAGE, Visitor
from support.full_service import (
    METRICS,
    PERMISSION,
    FullService,
    fields_of,
    forms_of,
    required,
    with_metrics,
)
from support.full_service import full_service as full_service  # a fixture
from support.full_service import reset as reset  # a fixture
from support.service import BLOG, FOREIGN, POLICY
from support.world import FakeWorld

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
# No site of the owner's.
OTHER_SITES = [FOREIGN, f"{BLOG}.evil.example", BLOG.replace("https", "http"), f"{BLOG}:444"]
METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE", "PUT", "OPTIONS", "TRACE", "BREW"]
STATUSES = (400, 401, 403, 404, 409, 413, 414, 415, 429, 500, 503)
KEPT = {
    "/feed.atom": 300,
    "/thread": 300,
    "/openapi.json": 3600,
    "/embed.js": 3600,
    "/picture": 3600,
    "/admin.css": 3600,
    "/admin_page/start.js": 3600,
    "/words/de.json": 3600,
    "/fragment": 60,
    "/fragment.css": 3600,
}
# Without its version in the URL, a file of the widget is another one after an update.
ASSETS = {path for path in KEPT if re.search(r"\.(js|json|css)$", path)} - {"/fragment.css"}
AT_PROXIES = "s-maxage=300, stale-while-revalidate=300, stale-if-error=604800"
ALIKE = {"/comments", "/comments/latest", "/pages"}  # public, unless the request has a token


def page_policy(path: str, response: Any) -> str:
    """The policy of the admin page also allows its import map, whose text HEAD does not get."""
    if path != "/admin":
        return PAGES
    [allowed] = re.findall(r"'sha256-[^']+'", response.headers["Content-Security-Policy"])
    for import_map in re.findall('<script type="importmap">(.*)</script>', response.text):
        digest = hashlib.sha256(import_map.encode()).digest()
        assert allowed == f"'sha256-{base64.b64encode(digest).decode()}'"
    return PAGES.replace("script-src 'self'", f"script-src 'self' {allowed}")


def due(config: Config, method: str, path: str, sent: dict[str, str], response: Any) -> Any:
    """The headers that a response must have, and no others. (webtest decompresses bodies.)"""
    status, headers = response.status_int, response.headers
    own, kept = path.startswith("/admin"), path in KEPT and response.status_int in (200, 304)
    is_part = path == "/fragment"  # of the blog's pages, and no page of its own
    html = headers.get("Content-Type") == "text/html; charset=utf-8" and not is_part
    personal = own or path.startswith(("/auth/", "/me/")) or path == "/me"
    expected = {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Content-Security-Policy": page_policy(path, response) if html else POLICY,
        "Cross-Origin-Resource-Policy": "same-origin" if own or html else "cross-origin",
        "Vary": "Accept-Encoding, Origin, Authorization",
        "Cache-Control": "no-cache",
    }
    if personal or html or "Authorization" in sent:
        expected["Cache-Control"] = "no-store"
    if kept:
        expected["Cache-Control"] = f"public, max-age={KEPT[path]}"
    if kept and path in ASSETS:
        expected["Cache-Control"] += ", s-maxage=60"
    if path.startswith("/pictures/") and status == 200:  # each change of one has a new name
        expected["Cache-Control"] = "public, max-age=31536000, s-maxage=3600, immutable"
    if path.startswith("/stickers/") and status == 200:  # without its version in the URL
        expected["Cache-Control"] = "public, max-age=300"
    if kept and is_part:
        expected["Cache-Control"] += ", " + AT_PROXIES
        expected["X-Robots-Tag"] = "noindex"
    bearer = sent.get("Authorization", "").startswith("Bearer")
    # Where a token is looked at.
    own_view = bearer and PERMISSION.get(f"GET {path_of(path)}") != "public"
    is_alike = path_of(path) in map(path_of, ALIKE)
    if kept or (is_alike and response.status_int == 200 and not own_view):
        expected["Etag"] = headers.get("ETag")
    if not own and (not config.site_origins or sent.get("Origin") in config.site_origins):
        expected["Access-Control-Allow-Origin"] = sent["Origin"] if config.site_origins else "*"
        expected["Access-Control-Expose-Headers"] = "Retry-After"
    is_file = path in KEPT and not path.startswith(("/feed", "/fragment", "/thread"))
    if (path == "/origin" or is_file) and method != "OPTIONS" and status in (200, 304):
        expected["Access-Control-Allow-Origin"] = "*"  # for every page
    if config.server_public_url == "https://comments.example":
        expected["Strict-Transport-Security"] = "max-age=31536000"
    if html and config.server_public_url.startswith("https:"):
        expected["Cross-Origin-Opener-Policy"] = "same-origin"
    if method == "OPTIONS":
        expected["Access-Control-Allow-Methods"] = "GET, POST, PATCH, DELETE"
        expected["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
        expected["Access-Control-Max-Age"] = "7200"
    if status == 401:
        expected["Www-Authenticate"] = "Bearer"
    if status in (429, 503):
        expected["Retry-After"] = {429: "60", 503: "5"}[status]
    return expected


@functools.cache
def methods_at(path: str) -> set[str]:
    ids = [(r.method, re.sub("{[a-z]+_id}", "[0-9]+", r.path)) for r in ROUTES]
    return {m for m, each in ids if re.fullmatch(re.sub("{(name|file)}", "[^/]+", each), path)}


def assert_due(config: Config, method: str, path: str, sent: dict[str, str], response: Any) -> None:
    found = {name.title(): value for name, value in response.headers.items()}
    length, kind = found.pop("Content-Length", ""), found.pop("Content-Type", "")
    allow, name = found.pop("Allow", ""), found.pop("Content-Disposition", "")
    assert found == due(config, method, path, sent, response), (method, path, response.status)
    assert method == "HEAD" or length in ("", str(len(response.body)))
    there = methods_at(path) if response.status_int == 405 else set()
    assert {*filter(None, allow.split(","))} == there
    assert name == "" or name.startswith('attachment; filename="commentd-')
    assert bool(kind) == (response.status_int != 204)
    assert not kind.startswith(("text/", "application/j")) or kind.endswith("; charset=utf-8")


@pytest.fixture
def apps(
    config: Config, tmp_path: Path, fake_world: FakeWorld
) -> Iterator[list[tuple[Config, App]]]:
    configs = [
        replace(config, database_path=str(tmp_path / f"{number}.db"), **how)
        for number, how in enumerate(SETTINGS)
    ]
    with contextlib.ExitStack() as stack:
        made = [closing(make_app(each, fake_world.world, rounds=1)) for each in configs]
        yield [*zip(configs, map(stack.enter_context, made), strict=True)]


def test_every_public_response_is_listed_in_the_tests_too() -> None:
    listed = {path_of(path) for path in (*KEPT, *ALIKE)}
    lacking = [
        f'tests/test_headers.py: ALIKE lacks "{example_of(path)}" '
        "(or KEPT, if its handler sets max_age)"
        for path in inside.public_paths() - listed
    ]
    assert not lacking, "\n".join(sorted(lacking))
    assert listed == inside.public_paths()


OF_ROUTES = sorted({r.url for r in ROUTES if "{name}" not in r.path})
UNKNOWN = ["/nothing", "/nothing/here", "/admin/nothing", "/%ff", "/.."]
PATHS = OF_ROUTES + [path for path in KEPT if path not in OF_ROUTES] + UNKNOWN


@pytest.mark.slow
def test_each_response_has_due_headers(apps: list[tuple[Config, App]], campaign: Campaign) -> None:
    reached: Counter[int] = Counter()
    for chance in campaign.rounds(len(PATHS)):
        path = PATHS[campaign.last % len(PATHS)]
        for method in METHODS:
            for status in (0, *STATUSES):
                config, app = chance.choice(apps)
                headers = {"Origin": chance.choice([BLOG, BLOG, "null", *OTHER_SITES])}
                headers |= {"Authorization": "Bearer x", "Accept-Encoding": "gzip"}
                sent = {name: headers[name] for name in headers if chance.random() < 0.4}
                target = path + chance.choice(["", f"?url={PAGE}", f"?url=%ff&next={FOREIGN}"])
                with inside.refusing_with(status):
                    response = webtest.TestApp(app, lint=False).request(
                        target, method=method, headers=sent, expect_errors=True
                    )
                assert_due(config, method, path, sent, response)
                reached[response.status_int] += 1
    campaign.figures["responses"] = reached.total()
    assert reached.keys() >= {200, 204, 405, *STATUSES}


@pytest.mark.slow
@with_metrics
def test_each_successful_operation_has_its_headers(
    full_service: FullService, reset: Callable[[], object]
) -> None:
    for label, operation in OPERATIONS.items():
        if label in ("POST /auth/site", "POST /me/picture"):
            continue  # off without a setting; no provider has a picture
        reset()
        method, path = label.split()
        path = re.sub("{(.*?)}", lambda name: str(full_service.good[name[1]]), path)
        query = full_service.values(label, required(operation))
        form = next(
            (full_service.values(label, fields_of(f, whole=False)) for f in forms_of(operation)),
            None,
        )
        assert PERMISSION[label] in full_service.tokens
        # All that is read without a token is read so, too.
        by_anyone = method == "GET" and PERMISSION[label] in ("public", "anyone")
        for with_token in (True, False) if by_anyone else (True,):
            response = full_service.ask(label, query, form, with_token=with_token)
            assert response.status_int == 200, label
            sent = {"Authorization": "Bearer x"} if with_token else {}
            assert_due(Config(**METRICS), method, path, sent, response)


@pytest.mark.parametrize(
    ("accepted", "is_compressed"),
    [
        ("gzip, deflate, br", True),
        ("X-GZIP", True),
        ("br, * ; q=0.5", True),
        ("gzip;q=0.01", True),
        ("", False),
        ("br, deflate", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, br", False),
        ("*;q=0", False),
    ],
)
def test_a_response_is_compressed_for_clients_that_accept_it(
    visitor: Visitor, accepted: str, is_compressed: bool
) -> None:
    visitor.say("hi")
    response = visitor.get("/comments", {"url": PAGE}, headers={"Accept-Encoding": accepted})
    # WebTest unpacks it, and leaves this.
    assert response.headers["ETag"].endswith('-gzip"') == is_compressed


@pytest.mark.parametrize(("size", "is_compressed"), [(200, False), (201, True)])
def test_a_short_response_is_not_worth_compressing(
    visitor: Visitor, size: int, is_compressed: bool
) -> None:
    rest = len(visitor.get("/pages", {"url": "/"}).body) - len("/")
    url = "/" * (size - rest)
    response = visitor.get("/pages", {"url": url}, headers={"Accept-Encoding": "gzip"})
    assert len(response.body) == size
    assert response.headers["ETag"].endswith('-gzip"') == is_compressed


@pytest.mark.slow
def test_a_compressed_response_has_its_own_etag(app: App) -> None:
    """Otherwise a cache could serve one as the other (RFC 9111, section 4.3.4)."""
    client, zip_it = webtest.TestApp(app), {"Accept-Encoding": "gzip"}
    plain = client.get("/embed.js").headers["ETag"]
    zipped = client.get("/embed.js", headers=zip_it).headers["ETag"]
    assert plain != zipped
    reset = {"If-None-Match": zipped}
    unchanged = client.get("/embed.js", headers=reset | zip_it, status=304).headers
    assert (unchanged["ETag"], "Content-Encoding" in unchanged) == (zipped, False)
    assert client.get("/embed.js", headers=reset, status=200).headers["ETag"] == plain
