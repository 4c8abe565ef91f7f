"""A simple model of the whole: readers, guests, a blocked one and admins do what they like in any
order, time passes, emails fail, the service stops, starts, is put back to a backup; and after
each step what everybody sees is what the model says."""

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import pytest
import webtest
from conftest import CANARY, Campaign, Outside, assert_whole
from inside import add_account, token_of, writer
from test_commands import run_here

import commentd
from commentd import Config, looks_like, make_app

MINUTE, HOUR, DAY = 60, 3600, 86400
OWNER = "owner@example.com"
EMAILS = ["ann@example.com", "bo@example.com", "cy@example.com"]
PAGES = ["/a", "/b", "/c"]
BAD = "casino"  # a word that the owner may block


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
    email: str = ""
    token: str = ""
    status: str = "visible"
    pinned: bool = False
    likes: int = 0
    moderated_at: int = 0
    edited: bool = False


@dataclass
class Person:
    id: int
    nickname: str
    password: str
    role: str = "user"
    blocked: bool = False


Likers = dict[str, int]  # of a comment or a page: who, and when; 0 where that is never forgotten


@dataclass
class Model:
    """All that the service should know."""

    said: dict[int, Said] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)
    likers: dict[int | str, Likers] = field(default_factory=dict)
    nameless: dict[int | str, int] = field(default_factory=dict)  # likes that forgot whose they are
    closed: set[str] = field(default_factory=set)
    follows: set[tuple[int, str]] = field(default_factory=set)
    reported: set[int] = field(default_factory=set)
    bad_word: int = 0  # the number of the block

    def shown(self, page: str) -> list[Said]:
        """What holds a place there: what is visible, and what is above that."""
        held: set[int] = set()
        for each in self.said.values():
            if each.status == "visible":
                number = each.id
                while number and number not in held:
                    held.add(number)
                    number = self.said[number].parent
        found = [self.said[id] for id in held if self.said[id].page == page]
        return sorted(found, key=lambda c: (c.at, c.id))

    def visible(self, page: str) -> list[Said]:
        return [c for c in self.shown(page) if c.status == "visible"]

    def likes(self, of: int | str) -> int:
        return len(self.likers.get(of, {})) + self.nameless.get(of, 0)

    def erase(self, c: Said) -> None:
        c.status, c.content, c.nickname, c.user, c.email = "deleted", "", "", 0, ""
        c.pinned, c.moderated_at = False, 0
        self.reported.discard(c.id)
        self.likers.pop(c.id, None)
        self.nameless.pop(c.id, None)

    def moderate(self, c: Said, status: str, now: int) -> None:
        c.status, c.moderated_at = status, now if status in ("spam", "deleted") else 0
        c.pinned = c.pinned and status == "visible"


class World:
    """The service, the model beside it, and what can happen to both."""

    def __init__(self, config: Config) -> None:
        self.config, self.outside, self.model = config, Outside(), Model()
        self.held = config.moderation_hold == "all"
        self.tokens: list[tuple[str, int, str, int]] = []  # e-mail, id, token, until when
        self.backup: tuple[str, Model] | None = None
        self.log: list[str] = []
        self.number = 0
        self.moderated = 0
        self.start()
        add_account(self.app, OWNER, "Owner", CANARY, "admin")
        self.model.people[OWNER] = Person(1, "Owner", "")
        self.model.people[OWNER].role = "admin"
        self.owner = token_of(self.app, OWNER, "admin")

    def start(self) -> None:
        self.app = make_app(self.config, self.outside.world, rounds=1)
        writer(self.app).execute("PRAGMA synchronous = OFF")

    @property
    def now(self) -> int:
        return int(self.outside.time)

    def ask(
        self, method: str, path: str, code: int, bearer: str = "", /, *, who: int = 0, **form: Any
    ) -> Any:
        """A request, whose status is foretold."""
        client = webtest.TestApp(self.app, extra_environ={"REMOTE_ADDR": f"203.0.{who}.7"})
        client.authorization = ("Bearer", bearer) if bearer else None
        if method == "GET":
            answer = client.get(path, form, expect_errors=True)
        else:
            answer = getattr(client, f"{method.lower()}_json")(path, form, expect_errors=True)
        self.log.append(f"{method} {path} {form} {bearer[-4:]} by {who}: {answer.status_int}")
        assert answer.status_int == code, f"{code} was foretold: {answer.text[:200]}"
        return answer.json if answer.content_type == "application/json" else answer.text

    # Who, and what, there is

    def signed_in(self, chance: Random) -> tuple[str, str]:
        """An address and a token, or a guest."""
        self.tokens = [t for t in self.tokens if t[3] > self.now]
        found = chance.choice([*self.tokens, None])
        return (found[0], found[2]) if found else ("", "")

    def end_tokens(self, email: str) -> None:
        self.tokens = [t for t in self.tokens if t[0] != email]

    def some(self, chance: Random, page: str = "") -> Said | None:
        found = [c for c in self.model.said.values() if page in ("", c.page)]
        return chance.choice(found) if found else None

    # What can happen

    def joins(self, chance: Random) -> None:
        email = chance.choice(EMAILS)
        if email not in self.model.people:
            self.number += 1
            person = Person(0, f"Reader {self.number}", f"pass {self.number}")
            person.id = add_account(self.app, email, person.nickname, person.password)
            self.model.people[email] = person

    def logs_in(self, chance: Random) -> None:
        email = chance.choice([*EMAILS, "nobody@example.com"])
        person = self.model.people.get(email)
        password = chance.choice([person.password if person else "none", "wrong"])
        right = person is not None and not person.blocked and person.password == password
        body = {"email": email, "password": password, "captcha_token": "x"}
        told = self.ask("POST", "/auth/login", 200 if right else 401, **body)
        if right and person:
            assert (told["nickname"], told["role"]) == (person.nickname, person.role)
            self.tokens.append((email, person.id, told["token"], self.now + 7 * DAY))
        else:
            assert told["code"] == "wrong_credentials"

    def comments(self, chance: Random) -> None:
        email, bearer = self.signed_in(chance)
        person = self.model.people.get(email) if bearer else None
        page, who = chance.choice(PAGES), chance.randrange(3)
        self.number += 1
        content = f"text-{self.number}-" + (f" {BAD}" if chance.random() < 0.1 else "")
        parent = self.some(chance, page if chance.random() < 0.9 else "")
        parent = parent if chance.random() < 0.6 else None
        form: dict[str, Any] = {"page_url": f"{page}/", "content": content, "captcha_token": "x"}
        nickname = person.nickname if person else f"Guest {who}"
        taken = person is None and chance.random() < 0.05
        form |= {} if person else {"nickname": "0wner" if taken else nickname}
        guest = "" if person or chance.random() < 0.4 else chance.choice(EMAILS)
        form |= {"email": guest, "parent_id": parent.id if parent else None}
        status = 200
        is_admin = person is not None and person.role == "admin"
        # An admin's own nickname is nobody else's, not even if they had it before.
        if not is_admin and self.looks_like_admin(form.get("nickname", nickname)):
            status = 409
        elif parent and (parent.page != page or parent.status != "visible"):
            status = 404
        elif page in self.model.closed:
            status = 403
        told = self.ask("POST", "/comments", status, bearer, who=who, **form)
        if status != 200:
            return
        number = told["comment"]["id"]
        root = (parent.root or parent.id) if parent else 0
        made = Said(number, page, parent.id if parent else 0, root, nickname, content, self.now)
        made.user, made.email = person.id if person else 0, guest
        made.token = told.get("edit_token", "")
        self.model.moderate(made, self.verdict(content, is_admin), self.now)
        assert ("edit_token" in told) is (person is None)
        shown = "visible" if made.status == "visible" else "waiting"
        assert told["comment"]["status"] == shown
        assert number not in self.model.said
        self.model.said[number] = made

    def looks_like_admin(self, nickname: str) -> bool:
        admins = [p.nickname for p in self.model.people.values() if p.role == "admin"]
        return any(looks_like(nickname, admin) for admin in admins)

    def verdict(self, content: str, is_admin: bool) -> str:
        if is_admin:
            return "visible"
        if self.model.bad_word and BAD in content:
            return "spam"
        return "waiting" if self.held else "visible"

    def edits(self, chance: Random) -> None:
        c, (email, bearer) = self.some(chance), self.signed_in(chance)
        if c is None:
            return
        person = self.model.people.get(email) if bearer else None
        self.number += 1
        content = f"text-{self.number}-" + (f" {BAD}" if chance.random() < 0.1 else "")
        token = c.token if chance.random() < 0.8 else "0" * 32
        own = (token == c.token != "" and not c.user) or (person and c.user == person.id)
        late = self.now - c.at >= 15 * MINUTE
        status = 404 if c.status == "deleted" or not own else 403 if late else 200
        form = {"content": content, "edit_token": token}
        self.ask("PATCH", f"/comments/{c.id}", status, bearer, **form)
        if status == 200:
            made = self.verdict(content, bool(person and person.role == "admin"))
            c.content, c.edited = content, True
            if c.status in ("visible", "waiting") and made != "visible":
                self.model.moderate(c, made, self.now)

    def deletes(self, chance: Random) -> None:
        c, (email, bearer) = self.some(chance), self.signed_in(chance)
        if c is None:
            return
        person = self.model.people.get(email) if bearer else None
        token = c.token if chance.random() < 0.8 else "0" * 32
        own = (token == c.token != "" and not c.user) or (person and c.user == person.id)
        late = self.now - c.at >= 15 * MINUTE and not c.user
        status = 404 if c.status == "deleted" or not own else 403 if late else 200
        self.ask("DELETE", f"/comments/{c.id}", status, bearer, edit_token=token)
        if status == 200:
            self.model.erase(c)

    def likes(self, chance: Random) -> None:
        email, bearer = self.signed_in(chance)
        who, undo = chance.randrange(3), chance.random() < 0.3
        visitor = f"user {self.model.people[email].id}" if bearer else f"guest {who}"
        c = self.some(chance)
        if c is None or chance.random() < 0.3:
            of: int | str = chance.choice(PAGES)
            told = self.ask("POST", "/page/like", 200, bearer, who=who, page_url=of, undo=undo)
        else:
            of, status = c.id, 200 if c.status == "visible" else 404
            told = self.ask("POST", "/comment/like", status, bearer, who=who, id=c.id, undo=undo)
            if status != 200:
                return
        likers = self.model.likers.setdefault(of, {})
        if undo:
            likers.pop(visitor, None)
        else:
            likers.setdefault(visitor, 0 if bearer else self.now)
        assert told["page_likes" if isinstance(of, str) else "likes"] == self.model.likes(of)

    def reports(self, chance: Random) -> None:
        if c := self.some(chance):
            status = 200 if c.status == "visible" else 404
            who = chance.randrange(3)
            self.ask("POST", f"/comments/{c.id}/report", status, who=who, reason="rude")
            if status == 200:
                # Who said so before is not heard again, until it is moderated.
                self.model.reported.add(c.id)

    def follows(self, chance: Random) -> None:
        email, bearer = self.signed_in(chance)
        page, undo = chance.choice(PAGES), chance.random() < 0.3
        self.ask("POST", "/page/follow", 200 if bearer else 401, bearer, page_url=page, undo=undo)
        if bearer:
            pair = self.model.people[email].id, page
            (self.model.follows.discard if undo else self.model.follows.add)(pair)

    def changes_account(self, chance: Random) -> None:
        email, bearer = self.signed_in(chance)
        if not bearer:
            self.ask("PATCH", "/me", 401, nickname="x")
            return
        person = self.model.people[email]
        self.number += 1
        if chance.random() < 0.5:
            person.nickname = f"Named {self.number}"
            self.ask("PATCH", "/me", 200, bearer, nickname=person.nickname)
        elif chance.random() < 0.3:
            self.ask("PATCH", "/me", 403, bearer, new_password="n", password="wrong")
        else:
            new = f"pass {self.number}"
            form = {"new_password": new, "password": person.password}
            token = self.ask("PATCH", "/me", 200, bearer, **form)["token"]
            person.password = new
            self.end_tokens(email)
            self.tokens.append((email, person.id, token, self.now + 7 * DAY))

    def logs_out(self, chance: Random) -> None:
        email, bearer = self.signed_in(chance)
        self.ask("POST", "/auth/logout", 200 if bearer else 401, bearer)
        if bearer:
            self.end_tokens(email)
            self.ask("GET", "/me", 401, bearer)

    def leaves(self, chance: Random) -> None:
        """An account is deleted."""
        email, bearer = self.signed_in(chance)
        if not bearer or chance.random() < 0.5:
            return
        person, how = self.model.people[email], chance.choice(["keep", "delete"])
        form = {"comments": how, "password": person.password}
        self.ask("DELETE", "/me", 403, bearer, **{**form, "password": "wrong"})
        self.ask("DELETE", "/me", 200, bearer, **form)
        for c in self.model.said.values():
            if c.user == person.id and c.content and how == "delete":
                self.model.erase(c)
            elif c.user == person.id:
                c.user, c.nickname, c.email = 0, "", ""
            elif c.email == email:
                c.email = ""
        for of, likers in self.model.likers.items():
            if likers.pop(f"user {person.id}", None) is not None:
                self.model.nameless[of] = self.model.nameless.get(of, 0) + 1
        self.model.follows = {pair for pair in self.model.follows if pair[0] != person.id}
        self.model.people.pop(email)
        self.end_tokens(email)

    def moderates(self, chance: Random) -> None:
        said = sorted(self.model.said)
        ids = chance.sample(said, min(len(said), chance.choice([1, 1, 4])))
        self.moderated += len(ids)
        if not ids or self.moderated > 18:  # from 20 on the spam filter has a say
            return
        status = chance.choice(["visible", "visible", "waiting", "spam", "deleted"])
        told = self.ask("POST", "/admin/comments", 200, self.owner, ids=ids, status=status)
        there = [self.model.said[id] for id in ids if self.model.said[id].content]
        assert told["comments"] == [{"id": c.id, "was": c.status} for c in there]
        for c in there:
            self.model.reported.discard(c.id)
            if c.status != status:
                self.model.moderate(c, status, self.now)

    def pins(self, chance: Random) -> None:
        if c := self.some(chance):
            wish = chance.random() < 0.7
            wrong = c.content and wish != c.pinned and (c.parent or c.status != "visible")
            status = 400 if wrong else 200
            self.ask("POST", "/admin/comments", status, self.owner, ids=[c.id], pinned=wish)
            if status == 200 and c.content:
                c.pinned = wish

    def page_number(self, page: str) -> int:
        self.app.tick()  # a page that was only looked at begins now
        found = self.ask("GET", "/admin/pages", 200, self.owner, limit=100)["pages"]
        numbers = {p["page_url"].rstrip("/"): p["id"] for p in found}
        return int(numbers.get(page, 0))

    def changes_page(self, chance: Random) -> None:
        page, to = chance.sample(PAGES, 2)
        number = self.page_number(page)
        if not number:
            return
        if chance.random() < 0.6:
            closed = page not in self.model.closed
            self.ask("PATCH", f"/admin/pages/{number}", 200, self.owner, closed=closed)
            (self.model.closed.add if closed else self.model.closed.discard)(page)
            return
        there, merge = self.page_number(to), chance.random() < 0.7
        status = 409 if there and not merge else 200
        form = {"page_url": f"{to}/", "merge": merge}
        self.ask("PATCH", f"/admin/pages/{number}", status, self.owner, **form)
        if status == 200:
            self.moved(page, to, bool(there))

    def moved(self, page: str, to: str, there: bool) -> None:
        model = self.model
        for c in model.said.values():
            c.page = to if c.page == page else c.page
        likers = {**model.likers.pop(page, {}), **(model.likers.get(to, {}) if there else {})}
        model.likers[to] = likers
        model.nameless[to] = model.nameless.pop(page, 0) + (
            model.nameless.get(to, 0) if there else 0
        )
        model.follows = {(u, to if p == page else p) for u, p in model.follows}
        if not there:
            model.closed.discard(to)
            if page in model.closed:
                model.closed.add(to)
        model.closed.discard(page)

    def blocks(self, chance: Random) -> None:
        if self.model.bad_word:
            self.ask("DELETE", f"/admin/blocks/{self.model.bad_word}", 200, self.owner)
            self.model.bad_word = 0
        else:
            told = self.ask("POST", "/admin/blocks", 200, self.owner, kind="word", value=BAD)
            self.model.bad_word = told["block"]["id"]

    def changes_rights(self, chance: Random) -> None:
        email = chance.choice(EMAILS)
        person = self.model.people.get(email)
        if person is None:
            return
        if chance.random() < 0.5:
            blocked = not person.blocked
            refused = person.role == "admin" and blocked
            path = f"/admin/users/{person.id}"
            self.ask("PATCH", path, 409 if refused else 200, self.owner, blocked=blocked)
            if refused:
                return
            person.blocked = blocked
            if blocked:
                self.end_tokens(email)
            return
        role = "user" if person.role == "admin" else "admin"
        status = 409 if role == "admin" and person.blocked else 200
        form = {"role": role, "password": CANARY}
        self.ask("PATCH", f"/admin/users/{person.id}", status, self.owner, **form)
        if status == 200:
            person.role = role
            if role == "user":
                self.end_tokens(email)

    def forget(self) -> None:
        """What had its time is gone."""
        model, month_ago = self.model, self.now - 30 * DAY
        for c in model.said.values():
            if c.moderated_at and c.moderated_at < month_ago:
                model.erase(c)
        for of, likers in model.likers.items():
            for old in [who for who, at in likers.items() if at and at < month_ago]:
                likers.pop(old)
                model.nameless[of] = model.nameless.get(of, 0) + 1

    def time_passes(self, chance: Random) -> None:
        span = chance.choice([MINUTE, 10 * MINUTE, HOUR, DAY, 5 * DAY, 31 * DAY])
        self.outside.time += span + chance.randrange(60)
        self.outside.mail_fails_with = chance.choice(
            [None, None, ConnectionRefusedError(111, "no")]
        )
        self.app.deliver()
        self.outside.mail_fails_with = None
        for _ in range(3):
            self.app.tick()
        self.owner = token_of(self.app, OWNER, "admin")
        self.forget()

    def starts_again(self, chance: Random) -> None:
        self.app.close()
        assert_whole(self.config.database_path)
        self.start()

    def command(self, *words: str) -> int:
        with mock.patch.object(commentd, "World", return_value=self.outside.world):
            return run_here(Path(self.config.database_path).parent, *words)[0]

    def is_put_back(self, chance: Random) -> None:
        """A backup is made, or restored."""
        if self.backup is None or chance.random() < 0.6:
            self.number += 1
            target = f"commentd.db.{self.number}"
            assert self.command("backup", target) == 0
            self.backup = target, copy.deepcopy(self.model)
            return
        self.app.close()
        self.outside.time += 1  # what it puts aside is named for the second
        source, model = self.backup
        assert self.command("restore", source) == 0
        self.model = copy.deepcopy(model)
        self.start()
        for _ in range(3):
            self.app.tick()
        self.forget()
        dead, self.tokens = self.tokens, []
        for _, _, token, _ in dead[:2]:
            self.ask("GET", "/me", 401, token)
        self.owner = token_of(self.app, OWNER, "admin")

    # What everybody sees

    def compare(self, page: str) -> None:
        model, shown, visible = self.model, self.model.shown(page), self.model.visible(page)
        flat = self.ask("GET", "/comments", 200, url=page, limit=100)
        told = [
            (c["id"], c["nickname"], c["content"], c["likes"], c["user_id"])
            for c in flat["comments"]
        ]
        assert told == [
            (c.id, c.nickname, c.content, model.likes(c.id), c.user or None) for c in visible[::-1]
        ]
        sums = flat["total"], flat["page_likes"]
        assert sums == (len(visible), model.likes(page))
        threads = self.ask("GET", "/comments", 200, url=page, limit=10, view="threads")
        roots = [c for c in shown if not c.parent]
        pinned = sorted((c for c in roots if c.pinned), key=lambda c: -c.id)
        order = pinned + [c for c in roots[::-1] if not c.pinned]
        assert threads["threads"] == len(order)
        assert threads["settings"]["closed"] is (page in model.closed)
        assert [
            (c["id"], c.get("deleted", False), [(r["id"], r["parent_id"]) for r in c["replies"]])
            for c in threads["comments"]
        ] == [
            (r.id, r.status != "visible", [(c.id, c.parent) for c in shown if c.root == r.id])
            for r in order[:10]
        ]
        self.nothing_leaks(str(flat) + str(threads))

    def nothing_leaks(self, text: str) -> None:
        hidden = [
            c.content for c in self.model.said.values() if c.content and c.status != "visible"
        ]
        assert not [word for word in [*hidden, "@example.com"] if word in text]

    def compare_all(self) -> None:
        model = self.model
        for page in PAGES:
            self.compare(page)
            for path in ("/thread", "/feed.atom"):
                self.nothing_leaks(self.ask("GET", path, 200, url=page))
        self.nothing_leaks(str(self.ask("GET", "/comments/latest", 200, limit=30)))
        queue = self.ask("GET", "/admin/comments", 200, self.owner, limit=100)
        kept = [c for c in model.said.values() if c.content]
        assert [(c["id"], c["status"]) for c in queue["comments"]] == sorted(
            ((c.id, c.status) for c in kept), reverse=True
        )[:100]
        states = [c.status for c in kept]
        counts = {s: states.count(s) for s in ("visible", "waiting", "spam", "deleted")}
        assert queue["counts"] == {**counts, "reported": len(model.reported)}
        users = self.ask("GET", "/admin/users", 200, self.owner, limit=100)["users"]
        told = [(u["id"], u["email"], u["nickname"], u["role"], u["blocked"]) for u in users]
        assert told == sorted(
            ((p.id, e, p.nickname, p.role, p.blocked) for e, p in model.people.items()),
            reverse=True,
        )
        for email, number, token, until in self.tokens:
            if until > self.now:
                me = self.ask("GET", "/me", 200, token)
                mine = [c for c in kept if c.user == number]
                assert (me["email"], me["comments"]) == (email, len(mine))
                assert me["nickname"] == model.people[email].nickname
                followed = sorted(p for u, p in model.follows if u == number)
                assert [p["page_url"].rstrip("/") for p in me["follows"]] == followed
        assert_whole(self.config.database_path)


Step = Callable[[World, Random], None]
STEPS: dict[Step, int] = {
    World.comments: 12, World.joins: 5, World.logs_in: 6, World.edits: 4,
    World.deletes: 3, World.likes: 6, World.reports: 2, World.follows: 2, World.changes_account: 2,
    World.logs_out: 1, World.leaves: 1, World.moderates: 5, World.pins: 3, World.changes_page: 3,
    World.blocks: 2, World.changes_rights: 2, World.time_passes: 3,
    World.starts_again: 1, World.is_put_back: 1,
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
        steps = [
            (step, chance.getrandbits(64))
            for step in chance.choices([*STEPS], [*STEPS.values()], k=50)
        ]
        world = lived(each, steps)
        campaign.figures["steps"] += len(steps)
        campaign.figures["requests"] += len([line for line in world.log if line[0] != "-"])
