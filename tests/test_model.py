"""A simple model of the whole: readers, guests and an admin do what they like in any order, time
passes, emails fail, the service stops and starts; and after each step what
everybody sees is what the model says."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import webtest
from conftest import CANARY, Campaign, Outside, assert_whole
from inside import add_account, token_of, writer

from commentd import Config, make_app

MINUTE, HOUR, DAY = 60, 3600, 86400
OWNER = "owner@example.com"
EMAILS = ["ann@example.com", "bo@example.com", "cy@example.com"]
PAGES = ["/a", "/b", "/c"]
BAD = "casino"  # a term that the owner may block


@dataclass
class Said:
    """A comment, as the model knows it."""

    id: int
    page: str
    parent: int
    root: int
    nickname: str
    content: str
    at: int
    user: int = 0
    token: str = ""
    status: str = "visible"
    moderated_at: int = 0

    def moderate(self, status: str, now: int) -> None:
        self.status, self.moderated_at = status, now if status in ("spam", "deleted") else 0


Likers = dict[str, int]  # of a comment or a page: who, and when; 0 where that is never forgotten


@dataclass
class Model:
    """All that the service should know."""

    said: dict[int, Said] = field(default_factory=dict)
    people: dict[str, tuple[int, str]] = field(default_factory=dict)  # email: id and nickname
    likers: dict[int | str, Likers] = field(default_factory=dict)
    nameless: dict[int | str, int] = field(default_factory=dict)  # likes that forgot whose they are
    bad_term: int = 0  # the number of the block

    def shown(self, page: str) -> list[Said]:
        """What holds a place there: what is visible, and what is above that."""
        held: set[int] = set()
        for each in self.said.values():
            number = each.id if each.status == "visible" else 0
            while number and number not in held:
                held.add(number)
                number = self.said[number].parent
        found = [self.said[id] for id in held if self.said[id].page == page]
        return sorted(found, key=lambda c: (c.at, c.id))

    def likes(self, of: int | str) -> int:
        return len(self.likers.get(of, {})) + self.nameless.get(of, 0)

    def forget_likers(self, is_old: Callable[[str, int], bool]) -> None:
        for of, likers in self.likers.items():
            for old in [who for who, at in likers.items() if is_old(who, at)]:
                likers.pop(old)
                self.nameless[of] = self.nameless.get(of, 0) + 1

    def erase(self, c: Said) -> None:
        c.content, c.nickname, c.user = "", "", 0
        c.status, c.moderated_at = "deleted", 0
        self.likers.pop(c.id, None)
        self.nameless.pop(c.id, None)


class World:
    """The service, the model beside it, and what can happen to both."""

    def __init__(self, config: Config) -> None:
        self.config, self.outside, self.model = config, Outside(), Model()
        self.log: list[str] = []
        self.number = self.moderated = 0
        self.start()
        add_account(self.app, OWNER, "Owner", CANARY, "admin")

    def start(self) -> None:
        self.app = make_app(self.config, self.outside.world, rounds=1)
        writer(self.app).execute("PRAGMA synchronous = OFF")

    @property
    def now(self) -> int:
        return int(self.outside.time)

    def ask(
        self, method: str, path: str, code: int, bearer: str = "", /, *, who: int = 0, **form: Any
    ) -> Any:
        """A request; the model expects the status `code`."""
        client = webtest.TestApp(self.app, extra_environ={"REMOTE_ADDR": f"203.0.{who}.7"})
        client.authorization = ("Bearer", bearer) if bearer else None
        if method == "GET":
            response = client.get(path, form, expect_errors=True)
        else:
            call = getattr(client, f"{method.lower()}_json")
            response = call(path, form, expect_errors=True)
        self.log.append(f"{method} {path} {form} {bearer[-4:]} by {who}: {response.status_int}")
        assert response.status_int == code, f"{code} was expected: {response.text[:200]}"
        return response.json if response.content_type == "application/json" else response.text

    def own(self, method: str, path: str, code: int = 200, **form: Any) -> Any:
        """A request of the owner."""
        return self.ask(method, f"/admin/{path}", code, token_of(self.app, OWNER, "admin"), **form)

    def somebody(self, chance: Random) -> tuple[int, str, str]:
        """The id, nickname and token of a reader, or a guest."""
        email = chance.choice([*self.model.people, ""])
        if not email:
            return 0, "", ""
        return *self.model.people[email], token_of(self.app, email)

    def some(self, chance: Random, page: str = "") -> Said | None:
        found = [c for c in self.model.said.values() if page in ("", c.page)]
        return chance.choice(found) if found else None

    def text(self, chance: Random) -> str:
        self.number += 1
        return f"text-{self.number}-" + (f" {BAD}" if chance.random() < 0.1 else "")

    def verdict(self, content: str) -> str:
        if self.model.bad_term and BAD in content:
            return "spam"
        return "waiting" if self.config.moderation_hold == "all" else "visible"

    # What can happen

    def joins(self, chance: Random) -> None:
        email = chance.choice(EMAILS)
        if email not in self.model.people:
            self.number += 1
            nickname = f"Reader {self.number}"
            self.model.people[email] = add_account(self.app, email, nickname, CANARY), nickname

    def comments(self, chance: Random) -> None:
        user, nickname, bearer = self.somebody(chance)
        page, who, content = chance.choice(PAGES), chance.randrange(3), self.text(chance)
        parent = self.some(chance, page if chance.random() < 0.9 else "")
        parent = parent if chance.random() < 0.6 else None
        form: dict[str, Any] = {"page_url": f"{page}/", "content": content, "captcha_token": "x"}
        form["parent_id"] = parent.id if parent else None
        status = 200
        if not user:
            nickname = "0wner" if chance.random() < 0.05 else f"Guest {who}"
            form |= {"nickname": nickname, "email": chance.choice(["", *EMAILS])}
        if nickname == "0wner":
            status = 409
        elif parent and (parent.page != page or parent.status != "visible"):
            status = 404
        response = self.ask("POST", "/comments", status, bearer, who=who, **form)
        if status != 200:
            return
        number = response["comment"]["id"]
        root = (parent.root or parent.id) if parent else 0
        made = Said(number, page, form["parent_id"] or 0, root, nickname, content, self.now, user)
        made.token = response.get("edit_token", "")
        made.moderate(self.verdict(content), self.now)
        assert bool(made.token) is not bool(user)
        shown = "visible" if made.status == "visible" else "waiting"
        assert response["comment"]["status"] == shown
        assert number not in self.model.said
        self.model.said[number] = made

    def changes(self, chance: Random) -> None:
        """Somebody edits a comment or deletes it, if it is theirs."""
        c, (user, _, bearer) = self.some(chance), self.somebody(chance)
        if c is None:
            return
        token = c.token if chance.random() < 0.8 else "0" * 32
        mine = (token == c.token != "" and not c.user) or (user and c.user == user)
        edits = chance.random() < 0.6
        late = self.now - c.at >= 15 * MINUTE and (edits or not c.user)
        status = 404 if c.status == "deleted" or not mine else 403 if late else 200
        form = {"edit_token": token, **({"content": self.text(chance)} if edits else {})}
        self.ask("PATCH" if edits else "DELETE", f"/comments/{c.id}", status, bearer, **form)
        if status == 200 and not edits:
            self.model.erase(c)
        elif status == 200:
            c.content, verdict = form["content"], self.verdict(form["content"])
            if c.status in ("visible", "waiting") and verdict != "visible":
                c.moderate(verdict, self.now)

    def likes(self, chance: Random) -> None:
        user, _, bearer = self.somebody(chance)
        who, undo = chance.randrange(3), chance.random() < 0.3
        visitor, c = f"user {user}" if user else f"guest {who}", self.some(chance)
        if c is None or chance.random() < 0.3:
            of: int | str = chance.choice(PAGES)
            response = self.ask("POST", "/page/like", 200, bearer, who=who, page_url=of, undo=undo)
        else:
            of, status = c.id, 200 if c.status == "visible" else 404
            response = self.ask(
                "POST", "/comment/like", status, bearer, who=who, id=c.id, undo=undo
            )
            if status != 200:
                return
        likers = self.model.likers.setdefault(of, {})
        if undo:
            likers.pop(visitor, None)
        else:
            likers.setdefault(visitor, 0 if user else self.now)
        assert response["page_likes" if isinstance(of, str) else "likes"] == self.model.likes(of)

    def leaves(self, chance: Random) -> None:
        """An account is deleted."""
        user, _, bearer = self.somebody(chance)
        if not user or chance.random() < 0.5:
            return
        how = chance.choice(["keep", "delete"])
        self.ask("DELETE", "/me", 403, bearer, comments=how, password="wrong")
        self.ask("DELETE", "/me", 200, bearer, comments=how, password=CANARY)
        self.ask("GET", "/me", 401, bearer)
        for c in self.model.said.values():
            if c.user == user and c.content and how == "delete":
                self.model.erase(c)
            elif c.user == user:
                c.user, c.nickname = 0, ""
        self.model.forget_likers(lambda who, at: who == f"user {user}")
        people = self.model.people.items()
        self.model.people = {email: person for email, person in people if person[0] != user}

    def moderates(self, chance: Random) -> None:
        numbers = sorted(self.model.said)
        ids = chance.sample(numbers, min(len(numbers), chance.choice([1, 1, 4])))
        self.moderated += len(ids)
        if not ids or self.moderated > 18:  # from 20 on the spam filter has a say
            return
        status = chance.choice(["visible", "visible", "waiting", "spam", "deleted"])
        response = self.own("POST", "comments", ids=ids, status=status)
        there = [self.model.said[id] for id in ids if self.model.said[id].content]
        assert response["comments"] == [{"id": c.id, "was": c.status} for c in there]
        for c in there:
            if c.status != status:
                c.moderate(status, self.now)

    def blocks(self, chance: Random) -> None:
        if self.model.bad_term:
            self.own("DELETE", f"blocks/{self.model.bad_term}")
            self.model.bad_term = 0
        else:
            response = self.own("POST", "blocks", kind="word", value=BAD)
            self.model.bad_term = response["block"]["id"]

    def forget(self) -> None:
        """What had its time is gone."""
        month_ago = self.now - 30 * DAY
        for c in self.model.said.values():
            if c.moderated_at and c.moderated_at < month_ago:
                self.model.erase(c)
        self.model.forget_likers(lambda who, at: 0 < at < month_ago)

    def time_passes(self, chance: Random) -> None:
        span = chance.choice([MINUTE, 10 * MINUTE, HOUR, DAY, 5 * DAY, 31 * DAY])
        self.outside.time += span + chance.randrange(60)
        failures = [None, None, ConnectionRefusedError(111, "no")]
        self.outside.mail_fails_with = chance.choice(failures)
        self.app.deliver()
        self.outside.mail_fails_with = None
        for _ in range(3):
            self.app.tick()
        self.forget()

    def starts_again(self, chance: Random) -> None:
        self.app.close()
        assert_whole(self.config.database_path)
        self.start()

    # What everybody sees

    def compare(self, page: str) -> None:
        model, shown = self.model, self.model.shown(page)
        visible = [c for c in shown if c.status == "visible"]
        flat = self.ask("GET", "/comments", 200, url=page, limit=100)
        names = ("id", "nickname", "content", "likes", "user_id")
        assert [tuple(c[name] for name in names) for c in flat["comments"]] == [
            (c.id, c.nickname, c.content, model.likes(c.id), c.user or None) for c in visible[::-1]
        ]
        assert (flat["total"], flat["page_likes"]) == (len(visible), model.likes(page))
        threads = self.ask("GET", "/comments", 200, url=page, limit=10, view="threads")
        roots = [c for c in shown if not c.parent]
        assert threads["threads"] == len(roots)
        assert [
            (c["id"], c.get("deleted", False), [(r["id"], r["parent_id"]) for r in c["replies"]])
            for c in threads["comments"]
        ] == [
            (r.id, r.status != "visible", [(c.id, c.parent) for c in shown if c.root == r.id])
            for r in roots[::-1][:10]
        ]
        self.nothing_leaks(f"{flat}{threads}")

    def nothing_leaks(self, text: str) -> None:
        every = self.model.said.values()
        hidden = [c.content for c in every if c.content and c.status != "visible"]
        assert not [word for word in [*hidden, "@example.com"] if word in text]

    def compare_all(self) -> None:
        for page in PAGES:
            self.compare(page)
            for path in ("/thread", "/feed.atom"):
                self.nothing_leaks(self.ask("GET", path, 200, url=page))
        self.nothing_leaks(str(self.ask("GET", "/comments/latest", 200, limit=30)))
        queue = self.own("GET", "comments", limit=100)
        kept = [c for c in self.model.said.values() if c.content]
        listed = [(c["id"], c["status"]) for c in queue["comments"]]
        assert listed == sorted(((c.id, c.status) for c in kept), reverse=True)[:100]
        for status in ("visible", "waiting", "spam", "deleted"):
            assert queue["counts"][status] == [c.status for c in kept].count(status)
        for email, (number, nickname) in self.model.people.items():
            me = self.ask("GET", "/me", 200, token_of(self.app, email))
            mine = [c for c in kept if c.user == number]
            listed = me["email"], me["nickname"], me["comments"]
            assert listed == (email, nickname, len(mine))
        assert_whole(self.config.database_path)


Step = Callable[[World, Random], None]
STEPS: dict[Step, int] = {
    World.comments: 14, World.joins: 4, World.changes: 8, World.likes: 7, World.leaves: 1,
    World.moderates: 5, World.blocks: 2, World.time_passes: 3,
    World.starts_again: 1,
}  # fmt: skip


def lived(config: Config, steps: list[tuple[Step, int]]) -> World:
    """A life of these steps, in a fresh file; `AssertionError` where the model knows better."""
    for file in Path(config.database_path).parent.glob("commentd.db*"):
        file.unlink()
    world = World(config)
    try:
        for step, seed in steps:
            chance = Random(seed)
            world.log.append(f"-- {step.__name__} at {world.now}")
            step(world, chance)
            world.compare(chance.choice(PAGES))
        world.compare_all()
    except BaseException as error:
        error.add_note("\n".join(world.log))
        raise
    finally:
        world.app.close()
    return world


def test_what_everybody_sees_is_what_a_simple_model_says(
    config: Config, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda number: None)  # for speed
    for chance in campaign.rounds(3):
        hold = chance.choice(["none", "none", "all"])
        each = replace(config, limits_enabled=False, moderation_hold=hold, notify_owner=("nobody",))
        chosen = chance.choices([*STEPS], [*STEPS.values()], k=50)
        world = lived(each, [(step, chance.getrandbits(64)) for step in chosen])
        campaign.figures["steps"] += len(chosen)
        campaign.figures["requests"] += len([line for line in world.log if line[0] != "-"])
