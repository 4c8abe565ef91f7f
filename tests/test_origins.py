"""Which web pages may read the responses and which may write, the headers that no response lacks,
and what no cache may keep. `test_server.py` has what the server refuses by itself."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

from conftest import PAGE, Outside, Visitor
from test_server import BLOG, FOREIGN, JSON, LOGIN, TWO_BLOGS, assert_safe, padded

from commentd import BODY_LIMIT, LINE_LIMIT, ROUTES, Config, make_app

YEAR = "max-age=31536000"


@contextmanager
def visiting(config: Config, outside: Outside, **settings: Any) -> Iterator[Visitor]:
    with closing(make_app(replace(config, **settings), outside.world, rounds=1)) as app:
        yield Visitor(app)


def replies(visitor: Visitor, outside: Outside, origin: str, *, writes: bool) -> list[Any]:
    """A reply of each kind to a page of this origin."""
    headers = {"Origin": origin} if origin else {}

    def ask(status: int, method: str, target: str, body: bytes = b"", **more: str) -> Any:
        return visitor.request(
            target, method=method, body=body, headers={**headers, **more}, status=status
        )

    found = [
        ask(200, "GET", f"/comments?url={PAGE}"),
        ask(400, "GET", f"/comments?url={PAGE}&limit=0"),
        ask(401, "GET", f"/comments?url={PAGE}", Authorization="Bearer x"),
        ask(404, "GET", "/nothing/here"),
        ask(405, "PUT", "/comments"),
        ask(414, "GET", "/comments?url=/" + "a" * LINE_LIMIT),
    ]
    if writes:
        large = padded(BODY_LIMIT + 1)
        found.append(ask(413, "POST", "/comments", large, **{"Content-Type": "application/json"}))
    visitor.faults_allowed, usual = True, outside.time
    outside.time = None  # type: ignore[assignment]  # a fault of ours
    found.append(ask(500, "GET", "/pages?url=/"))
    visitor.faults_allowed, outside.time = False, usual
    assert found[-1].json == {"error": "服务出错了，请稍后再试", "code": "internal"}
    return found


def test_every_reply_says_which_pages_may_read_it(config: Config, outside: Outside) -> None:
    for settings, origin, allowed in (
        ({}, "", "*"),
        ({}, FOREIGN, "*"),
        ({}, "null", "*"),
        ({"site_origins": (BLOG,)}, BLOG, BLOG),
        (TWO_BLOGS, "http://localhost:4000", "http://localhost:4000"),
        (TWO_BLOGS, "", None),
        (TWO_BLOGS, FOREIGN, None),
        (TWO_BLOGS, "null", None),
        (TWO_BLOGS, BLOG + ".evil.example", None),
        (TWO_BLOGS, "http://blog.example", None),
    ):
        with visiting(config, outside, **settings) as visitor:
            for reply in replies(visitor, outside, origin, writes=allowed is not None):
                case = (settings, origin, reply)
                assert reply.headers.get("Access-Control-Allow-Origin") == allowed, case
                exposed = "Retry-After" if allowed else None
                assert reply.headers.get("Access-Control-Expose-Headers") == exposed, case
                assert reply.headers["Content-Type"] == JSON
                assert reply.headers.get("Strict-Transport-Security") is None
                assert_safe(reply)


def test_a_page_of_another_site_may_not_write(config: Config, outside: Outside) -> None:
    with visiting(config, outside, **TWO_BLOGS) as visitor:
        for origin in (FOREIGN, "null", "http://blog.example", BLOG + ":444"):
            for route in ROUTES:
                if route.method != "GET" and not route.by_link:  # whose right is in the address
                    path = re.sub("<.*?>", "1", route.path)
                    write = getattr(visitor, f"{route.method.lower()}_json")
                    reply = write(path, {}, headers={"Origin": origin}, expect_errors=True)
                    assert reply.status_int == (400 if route.refusal else 403), (origin, path)
                    if not route.refusal:
                        assert reply.json["code"] == "origin_refused"


def test_the_blog_the_service_itself_and_scripts_may_write(
    config: Config, outside: Outside
) -> None:
    public, other = "https://comments.example", "https://other.example/comments"
    for settings, headers in (
        ({}, {"Origin": FOREIGN}),
        ({}, {"Origin": "null"}),
        (TWO_BLOGS, {}),
        (TWO_BLOGS, {"Origin": BLOG}),
        (TWO_BLOGS, {"Origin": "http://127.0.0.1:8080", "Host": "127.0.0.1:8080"}),
        (
            {**TWO_BLOGS, "server_public_url": public},
            {"Origin": public, "Host": "comments.example"},
        ),
        (
            {**TWO_BLOGS, "server_public_url": other},
            {"Origin": "https://other.example", "Host": "127.0.0.1:8080"},
        ),
    ):
        outside.time += 60  # five a minute
        with visiting(config, outside, **settings) as visitor:
            assert visitor.say(headers=headers)["success"]


def test_a_preflight_names_what_the_routes_take(config: Config, outside: Outside) -> None:
    for settings, origin, allowed in (
        ({}, FOREIGN, "*"),
        (TWO_BLOGS, BLOG, BLOG),
        (TWO_BLOGS, FOREIGN, None),
    ):
        asks = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        with visiting(config, outside, **settings) as visitor:
            for path in ("/comments", "/comments/1", "/auth/login", "/comment/like", "/"):
                reply = visitor.options(path, headers=asks, status=204)
                assert reply.body == b""
                assert reply.headers.get("Access-Control-Allow-Origin") == allowed, (origin, path)
                methods = reply.headers["Access-Control-Allow-Methods"].split(", ")
                assert sorted(methods) == sorted({route.method for route in ROUTES})
                assert (
                    reply.headers["Access-Control-Allow-Headers"] == "Authorization, Content-Type"
                )
                assert 0 < int(reply.headers["Access-Control-Max-Age"]) <= 7200
                assert_safe(reply)


def test_whoever_came_by_https_comes_by_https_again(config: Config, outside: Outside) -> None:
    for public, year in (("http://comments.example", None), ("https://comments.example", YEAR)):
        with visiting(config, outside, server_public_url=public) as visitor:
            for reply in replies(visitor, outside, "", writes=True):
                assert reply.headers.get("Strict-Transport-Security") == year, (public, reply)


def test_what_concerns_a_person_is_not_kept(ann: Visitor) -> None:
    token = {"Authorization": f"Bearer {ann.authorization[1]}"}
    ann.authorization = None
    private = [
        ann.post_json("/auth/login", {**LOGIN, "password": "x"}, status=401),
        ann.post_json("/auth/register", {}, status=400),
        ann.post_json("/auth/verify", {}, status=400),
        ann.get("/auth/login", status=405),
        ann.get("/auth/nothing", status=404),
        ann.get(f"/comments?url={PAGE}", headers=token),
        ann.get(f"/pages?url={PAGE}", headers={"Authorization": "Bearer x"}, status=401),
        ann.get("/nothing/here", headers=token, status=404),
    ]
    public = [ann.get(f"/comments?url={PAGE}"), ann.get("/health"), ann.get("/captcha")]
    assert [r.headers["Cache-Control"] for r in private] == ["no-store"] * len(private)
    assert [r.headers["Cache-Control"] for r in public] == ["no-cache"] * len(public)
