"""What many do in one moment comes out as if they had come one after the other: at the
application, and over the real server. By hand: `pytest tests/test_races.py --seconds 600`."""

import http.client
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import webtest
from conftest import CANARY, PAGE, Campaign, Outside, Visitor, assert_whole
from test_admin import new_admin
from test_auth import not_the
from test_comments import at_once, solved
from test_letters import link_to

import commentd
from commentd import Config, drain, make_app, make_server, new_admin_link, turns_of

pytestmark = pytest.mark.slow

ANN, GUEST, OWNER = "ann@example.com", "guest@example.com", "owner@example.com"
USUAL: dict[str, Any] = {
    "limits_enabled": False,
    "notify_owner": (OWNER,),
    "server_listen": "127.0.0.1:0",
    "server_public_url": "https://comments.example",
    "server_trusted_proxy": ("127.0.0.1/32",),
}
Said = tuple[int, Any]  # status, and the JSON or the text of an answer
Call = Callable[[], Said]


class Site:
    """A service with a database of its own. Nobody is sent away for want of a seat, so that what
    comes out is known to the last answer."""

    def __init__(self, config: Config, outside: Outside, door: str, many: int) -> None:
        self.outside, self.door, self.many = outside, door, many
        self.app = make_app(config, outside.world, rounds=1)
        self.store = self.app.house.store
        self.store.writer.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
        self.store.seats = self.app.house.hashing.seats = threading.Semaphore(2 * many)
        self.visitor = Visitor(self.app)
        if door != "app":
            self.server, self.open = make_server(self.app), True
            fast = replace(config, server_fast=door == "fast")
            self.turn = turns_of(self.server, replace(self.app.house, config=fast))
            self.loop = threading.Thread(target=self.serve)
            self.loop.start()

    def serve(self) -> None:
        while self.open:
            self.turn(1)

    def close(self) -> None:
        if self.door != "app":
            self.open = False
            self.server.pull_trigger()
            self.loop.join()
            drain(self.server)
            self.server.trigger.close()
        self.app.close()
        assert_whole(self.store.path)

    def call(
        self, path: str, ip: int = 1, method: str = "POST", bearer: str = "", **form: Any
    ) -> Call:
        """A request for another thread, from one of many addresses."""
        address = f"198.51.{ip // 250}.{ip % 250 + 1}"
        headers = {"Content-Type": "application/json", "X-Forwarded-For": address}
        headers |= {"Authorization": f"Bearer {bearer}"} if bearer else {}
        headers |= {"User-Agent": f"Browser/{ip}"}
        body = json.dumps(form).encode()

        def by_server() -> Said:
            place = "127.0.0.1", int(self.server.effective_port)
            with closing(http.client.HTTPConnection(*place, timeout=30)) as line:
                line.request(method, path, body, headers)
                answer = line.getresponse()
                return answer.status, read(answer.headers["Content-Type"], answer.read().decode())

        def by_app() -> Said:
            client = webtest.TestApp(self.app, extra_environ={"REMOTE_ADDR": "127.0.0.1"})
            answer = client.request(
                path, method=method, body=body, headers=headers, expect_errors=True
            )
            return answer.status_int, read(answer.content_type, answer.text)

        return by_app if self.door == "app" else by_server

    def rows(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self.store.path)) as db:
            return [row[0] if len(row) == 1 else row for row in db.execute(sql)]

    def join(self) -> str:
        """Ann has an account: her token."""
        self.visitor.register()
        self.app.deliver()
        self.visitor.verify(self.outside.code())
        token: str = self.visitor.login()["token"]
        return token

    def say(self, content: str = "hi", **fields: Any) -> Any:
        return self.visitor.say(content, **fields)


def read(kind: str, text: str) -> Any:
    return json.loads(text) if kind.startswith("application/json") else text


def together(calls: list[Call]) -> list[Said]:
    """All in the same moment."""
    gate = threading.Barrier(len(calls))

    def at_the_gate(call: Call) -> Call:
        def goes() -> Said:
            gate.wait(30)
            return call()

        return goes

    said: list[Said] = at_once([at_the_gate(call) for call in calls])
    return said


def statuses(said: list[Said]) -> dict[int, int]:
    return dict(Counter(status for status, _ in said))


def body(**fields: Any) -> dict[str, Any]:
    return {"page_url": PAGE, "nickname": "Ann", "captcha_token": "x", **fields}


def account(**fields: Any) -> dict[str, Any]:
    return {"email": ANN, "nickname": "Ann", "password": CANARY, "captcha_token": "x", **fields}


# Each: what is done by all at once, and what must come of it.

RACES: list[Callable[[Site, Random], None]] = []
race = RACES.append


@race
def of_right_codes_one_is_taken(site: Site, chance: Random) -> None:
    many = site.many
    named = {"request_id": site.visitor.register()["request_id"]}
    site.app.deliver()
    form = {"email": ANN, "token": site.outside.code(), **chance.choice([{}, named])}
    said = together([site.call("/auth/verify", n, **form) for n in range(many)])
    assert statuses(said) == {200: 1, 400: many - 1}
    assert site.rows("SELECT email, version FROM account") == [(ANN, 1)]
    assert site.rows("SELECT * FROM registration") == []


@race
def of_wrong_codes_five_are_judged(site: Site, chance: Random) -> None:
    many = site.many
    named = {"request_id": site.visitor.register()["request_id"]}
    site.app.deliver()
    code, judged, same = site.outside.code(), list[str](), commentd.same
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commentd, "same", lambda a, b: judged.append(a) or same(a, b))
        steps = chance.sample(range(1, 1_000_000), many)
        guesses = [{"email": ANN, "token": not_the(code, step)} for step in steps]
        said = together([site.call("/auth/verify", n, **g) for n, g in enumerate(guesses)])
    assert statuses(said) == {400: many}
    assert len(judged) == 5
    assert site.visitor.verify(code, status=400)
    assert site.visitor.verify(code, **named) == "验证成功", "nobody is locked out"


@race
def of_registrations_three_wait_and_one_account_comes(site: Site, chance: Random) -> None:
    many = site.many
    calls = [site.call("/auth/register", n, **account(nickname=f"N{n}")) for n in range(many)]
    said = together(calls)
    assert statuses(said) == {200: many}
    assert len({answer["request_id"] for _, answer in said}) == many
    site.app.deliver()
    assert len(site.outside.letters) == 3
    codes = {site.outside.code(n) for n in range(3)}
    calls = [
        site.call("/auth/verify", n, email=ANN, token=c)
        for n, c in enumerate([*codes] * (many // 3))
    ]
    assert statuses(together(calls)) == {200: 1, 400: len(calls) - 1}
    assert len(site.rows("SELECT * FROM account")) == 1


@race
def of_a_client_that_registers_again_and_again_one_waits(site: Site, chance: Random) -> None:
    many = site.many
    calls = [site.call("/auth/register", 7, **account(nickname=f"N{n}")) for n in range(many)]
    assert statuses(together(calls)) == {200: many}
    assert len(site.rows("SELECT * FROM registration")) == 1
    site.app.deliver()
    assert len(site.outside.letters) == 1


@race
def likes_and_undos_leave_one_or_none_each(site: Site, chance: Random) -> None:
    many = site.many
    site.say()
    what, form = chance.choice([("comment", {"id": 1}), ("page", {"page_url": PAGE})])
    count = "SELECT likes FROM comment" if what == "comment" else "SELECT page_likes FROM page"
    rows = f"SELECT count(*) FROM {what}_liker"
    few = [
        site.call(f"/{what}/like", n % 5, undo=chance.random() < 0.5, **form) for n in range(many)
    ]
    assert statuses(together(few)) == {200: many}
    assert site.rows(count) == site.rows(rows)
    assert 0 <= site.rows(rows)[0] <= 5
    assert statuses(together([site.call(f"/{what}/like", 3, **form)] * many)) == {200: many}
    before = site.rows(count)[0]
    others = [site.call(f"/{what}/like", 10 + n, **form) for n in range(many)]
    said = together(others)
    assert sorted(s["likes" if what == "comment" else "page_likes"] for _, s in said) == [
        *range(before + 1, before + many + 1)
    ]
    assert site.rows(count) == site.rows(rows) == [before + many]
    assert statuses(together([site.call(f"/{what}/like", 10, undo=True, **form)] * many)) == {
        200: many
    }
    assert site.rows(count) == [before + many - 1]


@race
def of_one_solved_captcha_one_comment_comes(site: Site, chance: Random) -> None:
    many = site.many
    site.app.house.config.__dict__["captcha_provider"] = "altcha"
    token = solved(site.visitor)
    calls = [
        site.call("/comments", n, **body(content=f"{n}", captcha_token=token)) for n in range(many)
    ]
    said = together(calls)
    assert statuses(said) == {200: 1, 403: many - 1}
    assert len(site.rows("SELECT * FROM comment")) == 1
    token = solved(site.visitor)
    retry = site.call("/comments", 9, **body(content="once", captcha_token=token))
    said = together([retry] * many)
    assert statuses(said) == {200: many}
    assert {answer["comment"]["id"] for _, answer in said} == {2}
    assert len({answer["edit_token"] for _, answer in said}) == 1


@race
def of_one_solved_captcha_one_registers_and_one_logs_in(site: Site, chance: Random) -> None:
    many = site.many
    site.join()
    site.app.house.config.__dict__["captcha_provider"] = "altcha"
    for path, emails in (
        ("register", [f"n{n}@example.com" for n in range(many)]),
        ("login", [ANN]),
    ):
        token = solved(site.visitor)
        forms = [account(email=e, captcha_token=token) for e in emails * (many // len(emails))]
        said = together([site.call(f"/auth/{path}", n, **f) for n, f in enumerate(forms)])
        assert statuses(said) == {200: 1, 403: many - 1}, path


@race
def of_a_double_click_one_comment_comes(site: Site, chance: Random) -> None:
    many = site.many
    site.app.house.config.__dict__["limits_enabled"] = True
    said = together([site.call("/comments", 5, **body(content="hi"))] * many)
    assert statuses(said) == {200: many}
    assert {answer["comment"]["id"] for _, answer in said} == {1}
    assert len([answer for _, answer in said if "edit_token" in answer]) == 1


@race
def all_that_is_written_at_once_is_there(site: Site, chance: Random) -> None:
    many = site.many
    texts = {f"text {n}" for n in range(many)}
    said = together([site.call("/comments", n, **body(content=t)) for n, t in enumerate(texts)])
    assert statuses(said) == {200: many}
    assert sorted(answer["comment"]["id"] for _, answer in said) == [*range(1, many + 1)]
    assert {*site.rows("SELECT content FROM comment")} == texts
    assert site.rows("SELECT key, total, threads FROM page") == [("/2026/hello", many, many)]


@race
def of_admin_links_one_is_taken(site: Site, chance: Random) -> None:
    many = site.many
    link = new_admin_link(site.store, site.app.house.world, chance.choice(["", OWNER]))
    forms = [
        {"link": link, "email": f"n{n}@example.com", "nickname": f"N{n}", "password": CANARY}
        for n in range(many)
    ]
    said = together([site.call("/admin/claim", n, **form) for n, form in enumerate(forms)])
    assert statuses(said) == {200: 1, 403: many - 1}
    assert site.rows("SELECT role FROM account") == ["admin"]
    assert site.rows("SELECT action FROM audit") == ["claim"]


@race
def a_link_in_a_letter_does_once_what_it_says(site: Site, chance: Random) -> None:
    many = site.many
    site.say()
    site.app.deliver()
    status = chance.choice(["spam", "deleted"])
    link = link_to(status, site.outside.text())
    calls = [site.call(f"/mail?{link.partition('?')[2]}", n) for n in range(many)]
    assert statuses(together(calls)) == {200: many}
    assert site.rows("SELECT status FROM comment") == [status]
    assert site.rows("SELECT action FROM audit") == [status]
    learnt = site.rows("SELECT ham, spam FROM token WHERE hash = 0")
    assert learnt == ([(0, 1)] if status == "spam" else [])


@race
def a_guest_confirms_his_address_once(site: Site, chance: Random) -> None:
    many = site.many
    mine = site.say(email=GUEST, lang="en")["comment"]["id"]
    site.say("answer", parent_id=mine)
    site.app.deliver()
    number = [letter.recipient for letter in site.outside.letters].index(GUEST)
    link = link_to("confirm", site.outside.text(number))
    calls = [site.call(f"/mail?{link.partition('?')[2]}", n) for n in range(many)]
    assert statuses(together(calls)) == {200: many}
    assert site.rows("SELECT state FROM subscription") == ["yes"]
    site.outside.letters.clear()
    site.outside.time += 3600
    for _ in range(3):
        site.app.deliver()
    assert [x.recipient for x in site.outside.letters if x.recipient == GUEST] == [GUEST]


@race
def of_edits_the_last_stands_and_of_deletions_one_is_done(site: Site, chance: Random) -> None:
    many = site.many
    token = site.say("at first")["edit_token"]
    texts = [f"edited {n}" for n in range(many)]
    edit = {"method": "PATCH", "edit_token": token}
    said = together([site.call("/comments/1", n, **edit, content=t) for n, t in enumerate(texts)])
    assert statuses(said) == {200: many}
    (content,) = site.rows("SELECT content FROM comment")
    assert content in texts
    gone = {"method": "DELETE", "edit_token": token}
    mixed = [site.call("/comments/1", n, **gone) for n in range(many // 2)]
    mixed += [site.call("/comments/1", n, **edit, content=t) for n, t in enumerate(texts[::2])]
    said = together(mixed)
    assert statuses(said[: many // 2]) == {200: 1, 404: many // 2 - 1}
    assert set(statuses(said)) == {200, 404}
    assert site.rows("SELECT status, content, nickname FROM comment") == [("deleted", "", "")]


@race
def of_password_changes_one_is_done(site: Site, chance: Random) -> None:
    many = site.many
    token = site.join()
    change = {"method": "PATCH", "bearer": token, "password": CANARY}
    calls = [site.call("/me", n, **change, new_password=f"{CANARY}{n}") for n in range(many)]
    said = together(calls)
    counts = statuses(said)
    assert counts.pop(200) == 1
    assert set(counts) <= {401, 403}
    number = [status for status, _ in said].index(200)
    assert site.visitor.login(password=f"{CANARY}{number}")["token"]
    assert site.rows("SELECT version FROM account") == [2]


@race
def of_deletions_of_an_account_one_is_done(site: Site, chance: Random) -> None:
    many = site.many
    token, how = site.join(), chance.choice(["keep", "delete"])
    site.visitor.authorization = ("Bearer", token)
    site.say("mine")
    form = {"method": "DELETE", "bearer": token, "password": CANARY, "comments": how}
    calls = [site.call("/me", n, **form) for n in range(many // 2)]
    calls += [
        site.call("/comments", n, bearer=token, **body(content=f"{n}")) for n in range(many // 2)
    ]
    said = together(calls)
    done = statuses(said[: many // 2])
    assert done.pop(200) == 1
    assert set(done) <= {401, 403}
    assert set(statuses(said[many // 2 :])) <= {200, 401}
    assert site.rows("SELECT * FROM account") == []
    assert site.rows("SELECT id FROM comment WHERE user_id IS NOT NULL OR nickname <> ''") == []
    site.visitor.authorization = None


@race
def of_reports_of_one_visitor_one_counts(site: Site, chance: Random) -> None:
    many = site.many
    site.say()
    said = together([site.call("/comments/1/report", n % 4, reason="rude") for n in range(many)])
    assert statuses(said) == {200: many}
    assert site.rows("SELECT count(*) FROM report") == [4]


@race
def a_page_that_moves_takes_all_with_it(site: Site, chance: Random) -> None:
    """Comments, likes and views of two pages that are merged, and parted, meanwhile."""
    many = site.many
    owner, _ = new_admin(site.app)
    for page in "ab":
        site.say(f"first on {page}", page_url=f"/{page}/")
    calls = []
    for n in range(many // 4):
        page = f"/{'ab'[n % 2]}/"
        calls.append(site.call("/comments", n, **body(content=f"{n}", page_url=page)))
        calls.append(site.call("/page/like", n, page_url=page))
        calls.append(site.call(f"/comments?url={page}", n, "GET"))
        wish = chance.choice(
            [{"page_url": "/a/", "merge": True}, {"page_url": "/b/", "merge": True}]
        )
        calls.append(site.call(f"/admin/pages/{n % 3 + 1}", n, "PATCH", bearer=owner, **wish))
    chance.shuffle(calls)
    said = together(calls)
    assert set(statuses(said)) <= {200, 404}
    site.app.tick()
    assert site.rows("SELECT count(*) FROM comment") == [2 + many // 4]
    assert site.rows("SELECT sum(total), sum(views) FROM page") == [(2 + many // 4, many // 4)]


@pytest.mark.parametrize("door", ["app", "fast", "stock"])
@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
def test_many_at_once(
    config: Config,
    tmp_path: Path,
    campaign: Campaign,
    race: Callable[[Site, Random], None],
    door: str,
) -> None:
    # Over sockets it takes longer: all of them by hand.
    many = 200 if door == "app" or campaign.seconds else 40
    for chance in campaign.rounds(1):
        path = tmp_path / f"{campaign.last}.db"
        each, outside = replace(config, **USUAL, database_path=str(path)), Outside()
        with closing(Site(each, outside, door, many)) as site:
            race(site, chance)
        for file in tmp_path.glob(f"{campaign.last}.db*"):
            file.unlink()
        campaign.figures["races"] += 1
        campaign.figures["calls at once"] = many
