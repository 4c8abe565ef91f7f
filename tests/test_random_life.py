"""A random life of a blog, and beside it a model that is plain enough to believe. Readers, guests
and an admin do what they like in any order, time passes, emails fail, the service is stopped or
killed and starts again. After each step a page shows what the model says, and at the end everything
does."""

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import jwt
import pytest

from commentd import App, Config, make_app
from support.campaign import Campaign
from support.client import CANARY, Visitor
from support.commands import run_here
from support.database import assert_whole
from support.inside import add_account, token_of
from support.world import FakeWorld

pytestmark = pytest.mark.slow

MINUTE, HOUR, DAY = 60, 3600, 86400
OWNER = "owner@example.com"
EMAILS = ["ann@example.com", "bo@example.com", "cy@example.com"]
PAGES = ["/a", "/b", "/c"]
GUESTS = ["203.0.1.7", "203.0.2.7", "203.0.3.7"]
BAD_WORD = "casino"  # the owner may block it
EDIT_TIME = 15 * MINUTE
KEPT_HIDDEN = 30 * DAY


# What the service should know


@dataclass
class Comment:
    id: int
    page: str
    parent: int | None
    thread: int | None
    nickname: str
    content: str
    written_at: int
    user: int | None
    ip: str
    edit_token: str
    status: str
    hidden_at: int | None = None
    pinned: bool = False

    @property
    def is_erased(self) -> bool:
        return self.content == ""

    def set_status(self, status: str, now: int) -> None:
        self.status = status
        self.hidden_at = now if status in ("spam", "deleted") else None


@dataclass
class Likes:
    """Who likes a comment or a page, and since when; None for accounts, which are remembered for
    ever. Of guests who are forgotten, the number stays."""

    visitors: dict[str, int | None] = field(default_factory=dict)
    forgotten: int = 0

    @property
    def count(self) -> int:
        return len(self.visitors) + self.forgotten

    def forget(self, is_to_go: Callable[[str, int | None], bool]) -> None:
        for visitor, since in [*self.visitors.items()]:
            if is_to_go(visitor, since):
                del self.visitors[visitor]
                self.forgotten += 1


@dataclass
class Account:
    id: int
    nickname: str


@dataclass
class Model:
    comments: dict[int, Comment] = field(default_factory=dict)
    accounts: dict[str, Account] = field(default_factory=dict)
    likes_of_comments: dict[int, Likes] = field(default_factory=dict)
    likes_of_pages: dict[str, Likes] = field(default_factory=dict)
    blocks: dict[tuple[str, str], int] = field(default_factory=dict)  # kind and value: its id

    def likes_of_comment(self, number: int) -> Likes:
        return self.likes_of_comments.setdefault(number, Likes())

    def likes_of_page(self, page: str) -> Likes:
        return self.likes_of_pages.setdefault(page, Likes())

    def all_likes(self) -> list[Likes]:
        return [*self.likes_of_comments.values(), *self.likes_of_pages.values()]

    def visible(self, page: str) -> list[Comment]:
        """The visible comments of a page, the newest first."""
        found = [c for c in self.comments.values() if c.page == page and c.status == "visible"]
        return sorted(found, key=lambda c: (c.written_at, c.id), reverse=True)

    def shown(self, page: str) -> list[Comment]:
        """What has a place in the threads of a page, the oldest first: visible comments, and all
        that these reply to."""
        numbers: set[int] = set()
        for comment in self.visible(page):
            number: int | None = comment.id
            while number is not None:
                numbers.add(number)
                number = self.comments[number].parent
        found = [self.comments[number] for number in numbers]
        return sorted(found, key=lambda c: (c.written_at, c.id))

    def erase(self, comment: Comment) -> None:
        comment.content = ""
        comment.nickname = ""
        comment.user = None
        comment.status = "deleted"
        comment.hidden_at = None
        comment.pinned = False
        self.likes_of_comments.pop(comment.id, None)

    def kept(self) -> list[Comment]:
        """What an admin can still read."""
        return [comment for comment in self.comments.values() if not comment.is_erased]


# The service, the model beside it, and what can happen to both


@dataclass(frozen=True)
class Person:
    """Somebody at an IP address, with an account or without."""

    ip: str
    email: str
    account: Account | None

    @property
    def as_visitor(self) -> str:
        """How likes are counted."""
        return f"user {self.account.id}" if self.account else f"guest {self.ip}"


class Life:
    def __init__(self, config: Config, folder: Path) -> None:
        self.folder = folder
        self.config = replace(config, database_path=str(folder / "0" / "commentd.db"))
        (folder / "0").mkdir()
        self.fake_world = FakeWorld()
        self.model = Model()
        self.log: list[str] = []
        self.kills = 0
        self.texts_made = 0
        self.moderated = 0
        self.app = self.started()
        add_account(self.app, OWNER, "Owner", CANARY, "admin")

    def started(self) -> App:
        return make_app(self.config, self.fake_world.world, rounds=1)

    @property
    def now(self) -> int:
        return int(self.fake_world.time)

    @property
    def path(self) -> Path:
        return Path(self.config.database_path)

    def request(
        self, person: Person | None, method: str, path: str, expected: int, /, **form: Any
    ) -> Any:
        """A request of somebody, or of the owner; the model expects this status."""
        visitor = Visitor(self.app, ip=person.ip if person else "198.51.100.9")
        if person is None:
            visitor.authorization = ("Bearer", token_of(self.app, OWNER, "admin"))
        elif person.account:
            visitor.authorization = ("Bearer", token_of(self.app, person.email))
        if method == "GET":
            response = visitor.get(path, form, status="*")
        else:
            response = getattr(visitor, f"{method.lower()}_json")(path, form, status="*")
        name = (person.email or person.ip) if person else "the owner"
        self.log.append(f"{name}: {method} {path} {form}: {response.status_int}")
        assert response.status_int == expected, response.text[:200]
        return response.json if response.content_type == "application/json" else response.text

    def somebody(self, chance: Random) -> Person:
        ip = chance.choice(GUESTS)
        email = chance.choice([*self.model.accounts, ""])
        return Person(ip, email, self.model.accounts.get(email))

    def some_comment(self, chance: Random, page: str | None = None) -> Comment | None:
        found = [c for c in self.model.comments.values() if page in (None, c.page)]
        return chance.choice(found) if found else None

    def new_text(self, chance: Random) -> str:
        self.texts_made += 1
        end = f" {BAD_WORD}" if chance.random() < 0.1 else ""
        return f"text-{self.texts_made}-{end}"

    def first_status(self, content: str, ip: str) -> str:
        blocks = self.model.blocks
        if ("word", BAD_WORD) in blocks and BAD_WORD in content:
            return "spam"
        if ("address", ip) in blocks:
            return "spam"
        return "waiting" if self.config.moderation_hold == "all" else "visible"

    # What can happen

    def somebody_joins(self, chance: Random) -> None:
        email = chance.choice(EMAILS)
        if email in self.model.accounts:
            return
        nickname = f"Reader {self.texts_made}"
        self.texts_made += 1
        visitor = Visitor(self.app, ip=chance.choice(GUESTS))
        visitor.register(email, nickname=nickname)
        self.app.deliver()
        theirs = [i for i, sent in enumerate(self.fake_world.emails) if sent.recipient == email]
        visitor.verify(self.fake_world.code(theirs[-1]), email)
        token = visitor.login(email)["token"]
        number = jwt.decode(token, options={"verify_signature": False})["id"]
        self.log.append(f"{email} joins as {nickname}")
        self.model.accounts[email] = Account(number, nickname)

    def somebody_takes_another_nickname(self, chance: Random) -> None:
        """Older comments keep theirs."""
        person = self.somebody(chance)
        if person.account is None:
            return
        self.texts_made += 1
        nickname = f"Reader {self.texts_made}"
        self.request(person, "PATCH", "/me", 200, nickname=nickname)
        person.account.nickname = nickname

    def somebody_comments(self, chance: Random) -> None:
        person = self.somebody(chance)
        page = chance.choice(PAGES)
        form: dict[str, Any] = {
            "page_url": f"{page}/",
            "content": self.new_text(chance),
            "captcha_token": "x",
        }
        parent = None
        if chance.random() < 0.6:
            # Sometimes a comment of another page.
            parent = self.some_comment(chance, page if chance.random() < 0.9 else None)
        if parent:
            form["parent_id"] = parent.id
        if person.account is None:
            form["nickname"] = "0wner" if chance.random() < 0.05 else f"Guest {person.ip}"
        status = 200
        if form.get("nickname") == "0wner":  # as the admin's
            status = 409
        elif parent and (parent.page != page or parent.status != "visible"):
            status = 404
        response = self.request(person, "POST", "/comments", status, **form)
        if status != 200:
            return
        comment = Comment(
            id=response["comment"]["id"],
            page=page,
            parent=parent.id if parent else None,
            thread=(parent.thread or parent.id) if parent else None,
            nickname=person.account.nickname if person.account else form["nickname"],
            content=form["content"],
            written_at=self.now,
            user=person.account.id if person.account else None,
            ip=person.ip,
            edit_token=response.get("edit_token", ""),
            status="",
        )
        comment.set_status(self.first_status(comment.content, person.ip), self.now)
        assert comment.id not in self.model.comments
        assert (comment.edit_token == "") is (person.account is not None)
        # That it is spam, its author is not told.
        shown = "visible" if comment.status == "visible" else "waiting"
        assert response["comment"]["status"] == shown
        self.model.comments[comment.id] = comment

    def may_change(self, person: Person, comment: Comment, edit_token: str) -> bool:
        if comment.user is not None:
            return person.account is not None and comment.user == person.account.id
        return edit_token == comment.edit_token != ""

    def expected_change(
        self, person: Person, comment: Comment, edit_token: str, *, always: bool
    ) -> int:
        """The status of a response to a change; `always`: whether it has no time limit."""
        if comment.status == "deleted" or not self.may_change(person, comment, edit_token):
            return 404
        is_late = self.now - comment.written_at >= EDIT_TIME
        return 403 if is_late and not always else 200

    def somebody_edits(self, chance: Random) -> None:
        person = self.somebody(chance)
        comment = self.some_comment(chance)
        if comment is None:
            return
        token = comment.edit_token if chance.random() < 0.8 else "0" * 32
        status = self.expected_change(person, comment, token, always=False)
        form = {"edit_token": token, "content": self.new_text(chance)}
        self.request(person, "PATCH", f"/comments/{comment.id}", status, **form)
        if status != 200:
            return
        comment.content = form["content"]
        verdict = self.first_status(comment.content, comment.ip)
        if comment.status in ("visible", "waiting") and verdict != "visible":
            comment.set_status(verdict, self.now)

    def somebody_deletes(self, chance: Random) -> None:
        person = self.somebody(chance)
        comment = self.some_comment(chance)
        if comment is None:
            return
        token = comment.edit_token if chance.random() < 0.8 else "0" * 32
        has_account = comment.user is not None
        status = self.expected_change(person, comment, token, always=has_account)
        self.request(person, "DELETE", f"/comments/{comment.id}", status, edit_token=token)
        if status == 200:
            self.model.erase(comment)

    def somebody_likes_a_comment(self, chance: Random) -> None:
        comment = self.some_comment(chance)
        if comment is None:
            return
        person = self.somebody(chance)
        undo = chance.random() < 0.3
        status = 200 if comment.status == "visible" else 404
        form = {"id": comment.id, "undo": undo}
        response = self.request(person, "POST", "/comment/like", status, **form)
        if status == 200:
            likes = self.model.likes_of_comment(comment.id)
            self.like(likes, person, undo=undo)
            assert response["likes"] == likes.count

    def somebody_likes_a_page(self, chance: Random) -> None:
        page = chance.choice(PAGES)
        person = self.somebody(chance)
        undo = chance.random() < 0.3
        response = self.request(person, "POST", "/page/like", 200, page_url=page, undo=undo)
        likes = self.model.likes_of_page(page)
        self.like(likes, person, undo=undo)
        assert response["page_likes"] == likes.count

    def like(self, likes: Likes, person: Person, *, undo: bool) -> None:
        if undo:
            likes.visitors.pop(person.as_visitor, None)
        else:
            since = None if person.account else self.now
            likes.visitors.setdefault(person.as_visitor, since)

    def somebody_leaves(self, chance: Random) -> None:
        """An account is deleted, with its comments or without."""
        person = self.somebody(chance)
        if person.account is None:
            return
        comments = chance.choice(["keep", "delete"])
        self.request(person, "DELETE", "/me", 403, comments=comments, password="wrong")
        self.request(person, "DELETE", "/me", 200, comments=comments, password=CANARY)
        for comment in self.model.comments.values():
            if comment.user == person.account.id:
                comment.user = None
                comment.nickname = ""
                if comments == "delete":
                    self.model.erase(comment)
        for likes in self.model.all_likes():
            likes.forget(lambda visitor, since: visitor == person.as_visitor)
        del self.model.accounts[person.email]

    def the_owner_moderates(self, chance: Random) -> None:
        numbers = sorted(self.model.comments)
        ids = chance.sample(numbers, min(len(numbers), chance.choice([1, 1, 4])))
        # The spam filter has a say when it has learnt from twenty.
        if not ids or self.moderated + len(ids) > 18:
            return
        self.moderated += len(ids)
        status = chance.choice(["visible", "visible", "waiting", "spam", "deleted"])
        response = self.request(None, "POST", "/admin/comments", 200, ids=ids, status=status)
        found = [self.model.comments[number] for number in ids]
        found = [comment for comment in found if not comment.is_erased]
        assert response["comments"] == [{"id": c.id, "was": c.status} for c in found]
        for comment in found:
            if comment.status != status:
                comment.set_status(status, self.now)

    def the_owner_blocks_or_unblocks(self, chance: Random) -> None:
        kind, value = chance.choice([("word", BAD_WORD), ("address", GUESTS[0])])
        number = self.model.blocks.pop((kind, value), None)
        if number is not None:
            self.request(None, "DELETE", f"/admin/blocks/{number}", 200)
            return
        form = {"kind": kind, "value": value, "sure": True}
        response = self.request(None, "POST", "/admin/blocks", 200, **form)
        self.model.blocks[kind, value] = response["block"]["id"]

    def time_passes(self, chance: Random) -> None:
        span = chance.choice([MINUTE, 10 * MINUTE, HOUR, DAY, 5 * DAY, 31 * DAY])
        self.fake_world.time += span + chance.randrange(60)
        self.log.append(f"it is {self.now}")
        self.fake_world.mail_fails_with = chance.choice([None, None, ConnectionRefusedError(111)])
        self.app.deliver()
        self.fake_world.mail_fails_with = None
        for _ in range(3):  # some of what has had its time goes each time
            self.app.tick()
        for comment in self.model.comments.values():
            if comment.hidden_at is not None and comment.hidden_at < self.now - KEPT_HIDDEN:
                self.model.erase(comment)
        month_ago = self.now - 30 * DAY
        for likes in self.model.all_likes():
            likes.forget(lambda visitor, since: since is not None and since < month_ago)

    def the_service_starts_again(self, chance: Random) -> None:
        self.log.append("the service starts again")
        self.app.close()
        assert_whole(str(self.path))
        self.app = self.started()

    def the_service_is_killed(self, chance: Random) -> None:
        """It goes on with the files as they are at this moment: a killed one leaves no others."""
        self.log.append("the service is killed")
        self.kills += 1
        folder = self.folder / str(self.kills)
        folder.mkdir()
        for name in ("commentd.db", "commentd.db-wal"):
            if (self.path.parent / name).exists():
                shutil.copy(self.path.parent / name, folder / name)
        self.app.close()
        self.config = replace(self.config, database_path=str(folder / "commentd.db"))
        self.app = self.started()

    # What everybody sees

    def compare_page(self, page: str) -> None:
        model = self.model
        guest = Person(GUESTS[0], "", None)
        flat = self.request(guest, "GET", "/comments", 200, url=page, limit=100)
        visible = model.visible(page)
        assert [
            (c["id"], c["nickname"], c["content"], c["likes"], c["user_id"])
            for c in flat["comments"]
        ] == [
            (c.id, c.nickname, c.content, model.likes_of_comment(c.id).count, c.user)
            for c in visible
        ]
        assert (flat["total"], flat["page_likes"]) == (
            len(visible),
            model.likes_of_page(page).count,
        )
        query = {"url": page, "limit": 10, "view": "threads"}
        threads = self.request(guest, "GET", "/comments", 200, **query)
        shown = model.shown(page)
        roots = [c for c in shown if c.parent is None]
        assert threads["threads"] == len(roots)
        for found, root in zip(threads["comments"], roots[::-1], strict=False):
            assert (found["id"], found.get("deleted", False)) == (root.id, root.status != "visible")
            replies = [(c.id, c.parent) for c in shown if c.thread == root.id]
            assert [(c["id"], c["parent_id"]) for c in found["replies"]] == replies
        self.assert_nothing_hidden_in(f"{flat}{threads}")

    def assert_nothing_hidden_in(self, text: str) -> None:
        hidden = [c.content for c in self.model.kept() if c.status != "visible"]
        assert [word for word in (*hidden, "@example.com") if word in text] == []

    def compare_all(self) -> None:
        guest = Person(GUESTS[0], "", None)
        for page in PAGES:
            self.compare_page(page)
            for path in ("/thread", "/fragment", "/feed.atom"):
                self.assert_nothing_hidden_in(self.request(guest, "GET", path, 200, url=page))
        latest = self.request(guest, "GET", "/comments/latest", 200, limit=30)
        self.assert_nothing_hidden_in(str(latest))
        kept = self.model.kept()
        queue = self.request(None, "GET", "/admin/comments", 200, limit=100)
        listed = [(c["id"], c["status"]) for c in queue["comments"]]
        assert listed == sorted(((c.id, c.status) for c in kept), reverse=True)[:100]
        for status in ("visible", "waiting", "spam", "deleted"):
            assert queue["counts"][status] == [c.status for c in kept].count(status)
        for email, account in self.model.accounts.items():
            me = self.request(Person(GUESTS[1], email, account), "GET", "/me", 200)
            mine = [c for c in kept if c.user == account.id]
            found = (me["email"], me["nickname"], me["comments"])
            assert found == (email, account.nickname, len(mine))
        assert_whole(str(self.path))

    def compare_after_a_move(self) -> None:
        """An export that is imported into an empty database shows the same there."""
        there = self.folder / "there"
        there.mkdir()
        settings = {"COMMENTD_DATABASE_PATH": str(self.path)}
        code, exported, errors = run_here(self.path.parent, "export", **settings)
        assert code == 0, errors
        (there / "export.json").write_text(exported, "utf-8")
        code, _, errors = run_here(there, "import", "export.json")
        assert code == 0, errors
        moved = replace(self.config, database_path=str(there / "commentd.db"))
        with closing(make_app(moved, self.fake_world.world, rounds=1)) as app:
            for page in PAGES:
                found = Visitor(app).listing(url=page, limit=100)
                expected = [
                    (c.nickname, c.content, self.model.likes_of_comment(c.id).count)
                    for c in self.model.visible(page)
                ]
                assert sorted(
                    (c["nickname"], c["content"], c["likes"]) for c in found["comments"]
                ) == sorted(expected)
                assert found["page_likes"] == self.model.likes_of_page(page).count
        assert_whole(moved.database_path)


Step = Callable[[Life, Random], None]
# How often each happens.
STEPS: dict[Step, int] = {
    Life.somebody_comments: 14,
    Life.somebody_joins: 4,
    Life.somebody_takes_another_nickname: 1,
    Life.somebody_edits: 5,
    Life.somebody_deletes: 3,
    Life.somebody_likes_a_comment: 5,
    Life.somebody_likes_a_page: 2,
    Life.somebody_leaves: 1,
    Life.the_owner_moderates: 5,
    Life.the_owner_blocks_or_unblocks: 2,
    Life.time_passes: 3,
    Life.the_service_starts_again: 1,
    Life.the_service_is_killed: 1,
}


def lived(config: Config, folder: Path, chance: Random, steps: int) -> Life:
    life = Life(config, folder)
    try:
        for step in chance.choices([*STEPS], [*STEPS.values()], k=steps):
            step(life, chance)
            life.compare_page(chance.choice(PAGES))
        life.compare_all()
        life.compare_after_a_move()
    except BaseException as error:
        error.add_note("\n".join(life.log))
        raise
    finally:
        life.app.close()
    return life


def test_the_service_shows_what_a_plain_model_says_after_any_life(
    config: Config, tmp_path: Path, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # no disk has to be waited for
    for chance in campaign.rounds(3):
        folder = tmp_path / str(campaign.last)
        folder.mkdir()
        hold = chance.choice(["none", "none", "all"])
        changed = replace(
            config, limits_enabled=False, moderation_hold=hold, notify_owner=("nobody",)
        )
        life = lived(changed, folder, chance, 50)
        shutil.rmtree(folder)
        campaign.figures["steps"] += 50
        campaign.figures["kills"] += life.kills
        campaign.figures["requests"] += len([line for line in life.log if ": " in line])
