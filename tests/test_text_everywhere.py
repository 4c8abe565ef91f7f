"""Hostile texts, by each way to write one and each way to read one: the markup of a text is the
same everywhere, nothing beyond the allow-list comes through, and emails are plain text."""

import json
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from commentd import App, Config, HttpRequest, HttpResponse, World, make_app
from support.campaign import Campaign
from support.client import CANARY, Visitor
from support.commands import run_here
from support.database import assert_whole
from support.feed import Feed, ThreadPage
from support.hostile_text import assert_allowed, hostile_fields
from support.inside import add_account, token_of
from support.notifications import Reader, links_in, path_of, text_of
from support.products import MAKERS, ForeignComment
from support.world import FakeWorld, read

pytestmark = pytest.mark.slow

BLOG = "https://blog.example"
PAGES = ["/<b>", f"{BLOG}/?a&lt;(b)", "/\"'><script>/"]
HOOKS = {
    "json": "https://program.example/hook",
    "slack": "https://hooks.slack.example/services/T0/B0/x",
    "discord": "https://discord.example/api/webhooks/1/x",
    "telegram": "https://telegram.example/botx/sendMessage?chat_id=-1",
    "feishu": "https://feishu.example/open-apis/bot/v2/hook/x",
}


class Site:
    """A service, the admin and a guest, and what was sent to the hook of the owner."""

    def __init__(self, config: Config, fake_world: FakeWorld, page: str) -> None:
        self.fake_world = fake_world
        self.page = page
        self.webhooks: list[bytes] = []
        world = World(
            clock=lambda: fake_world.time, send_email=fake_world.send, exchange=self.take_webhook
        )
        self.app: App = make_app(config, world, rounds=1)
        add_account(self.app, "owner@example.com", "Owner", CANARY, "admin")
        self.guest = Reader(self.app)
        self.owner = Reader(self.app)
        self.owner.authorization = ("Bearer", token_of(self.app, "owner@example.com", "admin"))

    def take_webhook(self, request: HttpRequest, *_: object, **__: object) -> HttpResponse:
        self.webhooks.append(request.body or b"")
        return HttpResponse(200, b'{"ok": true, "code": 0}')

    def new_comment(self, written: dict[str, Any], parent: int | None = None) -> Any:
        form = {"page_url": self.page, "captcha_token": "x", "lang": "en", "email": "lu@e.cn"}
        form["page_title"] = written["content"]
        body = {**form, **written, "parent_id": parent}
        return self.guest.post_json("/comments", body, headers={"Origin": BLOG}).json


def hostile_text(chance: random.Random) -> dict[str, Any]:
    """What a stranger writes, without the two characters that a feed can't hold (XML 1.0)."""
    written = hostile_fields(chance)
    written["content"] = written["content"].translate({0xFFFE: None, 0xFFFF: None})
    return written


def by_each_way_in(site: Site, written: dict[str, Any]) -> dict[str, str]:
    """The markup that the service makes of one text, however it comes in."""
    other = written | {"content": "another text"}
    preview = site.guest.post_json("/comments/preview", {"content": written["content"]}).json
    comment = site.new_comment(written)
    number = comment["comment"]["id"]
    site.fake_world.time += 61  # else the same text is taken for a repetition
    reply = site.new_comment(written, number)
    site.fake_world.time += 61
    edited = site.new_comment(other, number)
    edited = site.guest.patch_json(
        f"/comments/{edited['comment']['id']}", written | {"edit_token": edited["edit_token"]}
    ).json
    site.fake_world.time += 61
    corrected = site.new_comment(other, number)
    corrected = site.owner.patch_json(f"/admin/comments/{corrected['comment']['id']}", written).json
    site.fake_world.time += 61
    form = {"page_url": site.page, "parent_id": number, "content": written["content"]}
    admin_reply = site.owner.post_json("/admin/reply", form).json
    reason = {"reason": written["content"][:500]}
    site.guest.post_json(f"/comments/{number}/report", reason)
    return {
        "preview": preview["html"],
        "comment": comment["comment"]["html"],
        "reply": reply["comment"]["html"],
        "edit": edited["comment"]["html"],
        "correction by an admin": corrected["comment"]["html"],
        "reply of an admin": admin_reply["comment"]["html"],
    }


def lists_of(site: Site) -> dict[str, list[str]]:
    """The markup of all comments, by each way to read them one by one."""
    page = {"url": site.page, "limit": 100}
    listed = site.guest.get("/comments", page).json["comments"]
    threads = site.guest.get("/comments", {**page, "view": "threads", "limit": 5}).json["comments"]
    found = {
        "list": [comment["html"] for comment in listed],
        "threads": [
            comment["html"] for thread in threads for comment in (thread, *thread["replies"])
        ],
        "feed": [entry["html"] for entry in Feed(site.guest.get("/feed.atom")).entries],
    }
    for name, visitor, path in (
        ("latest", site.guest, "/comments/latest?limit=30"),
        ("queue", site.owner, "/admin/comments?status=visible&limit=100"),
    ):
        found[name] = [comment["html"] for comment in visitor.get(path).json["comments"]]
    return found


def emails_of(site: Site) -> Iterator[str]:
    """The texts of all emails; each has nothing but a text, and its links open."""
    site.fake_world.time += 3600
    site.app.deliver()
    for sent in site.fake_world.emails:
        message = read(sent.message)
        assert message.get_content_type() == "multipart/alternative"
        text = text_of(message)
        for link in links_in(text):
            site.guest.get(path_of(link), status="*")
        yield text


def markups_in(comments: list[Any]) -> Iterator[str]:
    """The HTML of all comments and replies in the file of a page."""
    for comment in comments:
        yield comment["html"]
        yield from markups_in(comment["replies"])


def settings_for(config: Config, chance: random.Random) -> Config:
    hook = chance.choice([*HOOKS])
    return replace(
        config,
        site_origins=(BLOG,),
        server_public_url="https://comments.example",
        limits_enabled=False,
        comments_max_length=10_000,
        webhook_kind=hook,
        webhook_url=HOOKS[hook],
    )


def test_no_way_in_or_out_changes_the_markup_of_a_text(
    config: Config, tmp_path: Path, campaign: Campaign
) -> None:
    for chance in campaign.rounds(5):
        folder = tmp_path / str(campaign.last)
        folder.mkdir()
        settings = settings_for(replace(config, database_path=str(folder / "commentd.db")), chance)
        site = Site(settings, FakeWorld(), chance.choice(PAGES))
        with closing(site.app):
            written = hostile_text(chance)
            markups = by_each_way_in(site, written)
            expected = markups["preview"]
            assert dict.fromkeys(markups, expected) == markups, written
            assert_allowed(expected)

            for name, found in lists_of(site).items():
                assert {*found} == {expected}, (name, written)
                campaign.figures["markups compared"] += len(found)
            # With fewer threads asked for, more text of the replies is in the response.
            page = {"url": site.page, "limit": 5}
            ThreadPage(site.guest.get("/thread", page))
            for path in ("/thread", "/fragment"):
                shown = site.guest.get(path, page).text
                # What the page and the fragment add: a keyboard reaches long code, and no template
                # engine of the blog runs what stands in braces.
                shown = shown.replace(' tabindex="0"', "").replace("&#123;", "{")
                assert shown.count(expected.strip()) >= 5, (path, written)

            campaign.figures["emails"] += len([*emails_of(site)])
            campaign.figures["webhooks"] += len(site.webhooks)
            for message in site.webhooks:
                told = json.loads(message)
                if settings.webhook_kind == "json":
                    assert told["data"]["html"] == expected
        code, _, errors = run_here(folder, "export", "data", "--to", str(folder))
        assert code == 0, errors
        for name in json.loads((folder / "index.json").read_bytes())["pages"].values():
            page = json.loads((folder / f"{name}.json").read_bytes())
            for shown in markups_in(page["comments"]):
                # As in a fragment.
                assert shown.replace(' tabindex="0"', "").replace("&#123;", "{") == expected
        assert_whole(settings.database_path)


def test_no_import_lets_through_more_than_the_allow_list(
    config: Config, tmp_path: Path, campaign: Campaign
) -> None:
    for chance in campaign.rounds(3):
        folder = tmp_path / str(campaign.last)
        folder.mkdir()
        written = hostile_fields(chance)
        for number, (product, make) in enumerate(MAKERS.items()):
            comment = ForeignComment(
                id=number + 1,
                page=f"/{product}/",
                text=written["content"],
                nickname=written["nickname"],
                website=written["website"],
            )
            (folder / product).write_bytes(make([comment]))
            code, report, errors = run_here(folder, "import", product)
            assert code == 0, (product, errors)
            assert "1 read" in report, (product, report)  # of some texts nothing is left
        settings = replace(config, database_path=str(folder / "commentd.db"))
        with closing(make_app(settings, FakeWorld().world, rounds=1)) as app:
            visitor = Visitor(app)
            for product in MAKERS:
                listed = visitor.listing(url=f"/{product}/")["comments"]
                assert_allowed(*(comment["html"] for comment in listed))
                campaign.figures["comments checked"] += len(listed)
                ThreadPage(visitor.get("/thread", {"url": f"/{product}/"}))
            Feed(visitor.get("/feed.atom"))
        assert_whole(settings.database_path)
    assert campaign.figures["comments checked"] > 0
