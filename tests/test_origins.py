"""Which web pages may write. `test_headers.py` has the headers that say who may read, what no
cache may keep, and how browsers come again; `test_server.py` what the server refuses by itself."""

import re

import pytest

from commentd import ROUTES, Config
from support.client import PAGE, Visitor
from support.service import BLOG, FOREIGN, TWO_BLOGS, visiting
from support.world import FakeWorld


def test_a_page_of_another_site_may_not_write(config: Config, fake_world: FakeWorld) -> None:
    with visiting(config, fake_world, **TWO_BLOGS) as visitor:
        for origin in (FOREIGN, "null", "http://blog.example", BLOG + ":444", "localhost:80"):
            for route in ROUTES:
                if route.method != "GET" and not route.by_link:  # whose right is in the address
                    path = re.sub("<.*?>", "1", route.path)
                    write = getattr(visitor, f"{route.method.lower()}_json")
                    reply = write(path, {}, headers={"Origin": origin}, expect_errors=True)
                    assert reply.status_int == (400 if route.one_refusal else 403), (origin, path)
                    if not route.one_refusal:
                        assert reply.json["code"] == "origin_refused"


def test_any_page_can_ask_whether_it_may_show_comments(
    config: Config, fake_world: FakeWorld
) -> None:
    for settings, origin, allowed in (
        ({}, FOREIGN, True),
        ({}, "", True),
        (TWO_BLOGS, "", True),
        (TWO_BLOGS, BLOG, True),
        (TWO_BLOGS, FOREIGN, False),
        (TWO_BLOGS, "null", False),
    ):
        with visiting(config, fake_world, **settings) as visitor:
            headers = {"Origin": origin} if origin else {}
            response = visitor.get("/origin", headers=headers)
            assert response.json == {"allowed": allowed}, (settings, origin)
            assert response.headers["Access-Control-Allow-Origin"] == "*"
            assert "Origin" in response.headers["Vary"]
            assert response.headers["Cache-Control"] == "no-cache"


def test_the_blog_the_service_and_scripts_may_write(config: Config, fake_world: FakeWorld) -> None:
    public, host = "https://comments.example", {"Host": "127.0.0.1:8080"}
    at_path = {**TWO_BLOGS, "server_public_url": "https://other.example/comments"}
    for settings, headers in (
        ({}, {"Origin": FOREIGN}),
        ({}, {"Origin": "null"}),
        (TWO_BLOGS, {}),
        (TWO_BLOGS, {"Origin": BLOG}),
        (TWO_BLOGS, {"Origin": "http://127.0.0.1:8080", **host}),
        ({**TWO_BLOGS, "server_public_url": public}, {"Origin": public, "Host": public[8:]}),
        (at_path, {"Origin": "https://other.example", **host}),
    ):
        fake_world.time += 60  # five a minute
        with visiting(config, fake_world, **settings) as visitor:
            assert visitor.say(headers=headers)["success"]


@pytest.mark.parametrize("settings", [{"site_origins": (BLOG,)}], ids=["blog"])
def test_no_visitor_names_a_page_on_a_host_that_is_not_the_owners(visitor: Visitor) -> None:
    """Otherwise the first request for a page could name it for ever as one of another site."""
    evil = {"Origin": "https://evil.example"}
    visitor.get("/comments", {"url": f"https://evil.example{PAGE}"}, headers=evil)
    visitor.served.tick()
    assert visitor.say()["comment"]["page_url"] == PAGE
    pages = [comment["page_url"] for comment in visitor.get("/comments/latest").json["comments"]]
    assert pages == [PAGE]
