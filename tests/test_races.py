"""What many do in one moment comes out as if they had come one after the other. By hand:
`pytest tests/test_races.py --seconds 600`."""

import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import webtest

from commentd import Config, make_app
from support import inside
from support.campaign import Campaign
from support.client import CANARY, PAGE, Visitor
from support.comments import solved
from support.database import assert_whole
from support.patience import PATIENCE
from support.world import FakeWorld

pytestmark = pytest.mark.slow

ANN, GUEST, OWNER = "ann@example.com", "guest@example.com", "owner@example.com"
USUAL: dict[str, Any] = {
    "limits_enabled": False,
    "notify_owner": (OWNER,),
    "server_public_url": "https://comments.example",
    "server_trusted_proxy": ("127.0.0.1/32",),
}
Answer = tuple[int, Any]  # status, and the JSON or the text of an answer
Call = Callable[[], Answer]


class RaceService:
    """A service with a database of its own, in which nobody is sent away for want of a seat."""

    def __init__(self, config: Config, fake_world: FakeWorld, many: int) -> None:
        self.fake_world, self.many = fake_world, many
        self.app = make_app(config, fake_world.world, rounds=1)
        inside.seat(self.app, 2 * many)
        self.visitor = Visitor(self.app)

    def close(self) -> None:
        self.app.close()
        assert_whole(inside.database_path(self.app))

    def call(
        self, path: str, ip: int = 1, method: str = "POST", bearer: str = "", **form: Any
    ) -> Call:
        """A request for another thread, from one of many IP addresses."""
        headers = {"Content-Type": "application/json", "User-Agent": f"Browser/{ip}"}
        headers["X-Forwarded-For"] = f"198.51.{ip // 250}.{ip % 250 + 1}"
        headers |= {"Authorization": f"Bearer {bearer}"} if bearer else {}

        def said() -> Answer:
            client = webtest.TestApp(self.app, extra_environ={"REMOTE_ADDR": "127.0.0.1"})
            how: dict[str, Any] = {"method": method, "headers": headers, "expect_errors": True}
            response = client.request(path, body=json.dumps(form).encode(), **how)
            is_json = response.content_type == "application/json"
            return response.status_int, response.json if is_json else response.text

        return said

    def rows(self, statement: str) -> list[Any]:
        return [row[0] if len(row) == 1 else row for row in inside.sql(self.app, statement)]

    def join(self) -> str:
        """Ann has an account: her token."""
        inside.add_account(self.app, ANN, "Ann", CANARY)
        return inside.token_of(self.app, ANN)

    def registered(self) -> tuple[str, dict[str, str]]:
        """The code for an account of Ann, and what tells who asked for it."""
        named = {"request_id": self.visitor.register()["request_id"]}
        self.app.deliver()
        return self.fake_world.code(), named

    def link(self, do: str, to: str = OWNER) -> str:
        """A link in an email."""
        self.app.deliver()
        number = [email.recipient for email in self.fake_world.emails].index(to)
        found = re.search(rf"/mail\?\S*do={do}\S*", self.fake_world.text(number))
        assert found
        return found[0]

    def each(self, path: str, forms: list[dict[str, Any]], **how: Any) -> list[Answer]:
        """Each form from another client, at once."""
        return together([self.call(path, n, **how, **form) for n, form in enumerate(forms)])

    def all(self, path: str, **form: Any) -> list[Answer]:
        """The same form from many clients, at once."""
        return self.each(path, [form] * self.many)

    def say(self, content: str = "hi", **fields: Any) -> Any:
        return self.visitor.say(content, **fields)


def together(calls: list[Call]) -> list[Answer]:
    """All in the same moment."""
    gate = threading.Barrier(len(calls))

    def goes(call: Call) -> Answer:
        gate.wait(PATIENCE)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [*threads.map(goes, calls)]


def statuses(results: list[Answer]) -> dict[int, int]:
    return dict(Counter(status for status, _ in results))


def body(**fields: Any) -> dict[str, Any]:
    return {"page_url": PAGE, "nickname": "Ann", "captcha_token": "x", **fields}


def account(**fields: Any) -> dict[str, Any]:
    return {"email": ANN, "nickname": "Ann", "password": CANARY, "captcha_token": "x", **fields}


# Each: what is done by all at once, and what must come of it.

RACES: list[Callable[[RaceService, Random], None]] = []
race = RACES.append
SETTINGS: dict[str, dict[str, Any]] = {
    "a_solved_captcha_makes_one_comment": {"captcha_provider": "altcha"},
    "a_solved_captcha_allows_one_registration_and_one_login": {"captcha_provider": "altcha"},
    "a_double_click_makes_one_comment": {"limits_enabled": True},
}


@race
def a_right_code_is_taken_once(race_service: RaceService, chance: Random) -> None:
    code, named = race_service.registered()
    form = {"email": ANN, "token": code, **chance.choice([{}, named])}
    assert statuses(race_service.all("/auth/verify", **form)) == {
        200: 1,
        400: race_service.many - 1,
    }
    assert race_service.rows("SELECT email, version FROM account") == [(ANN, 1)]
    assert race_service.rows("SELECT * FROM registration") == []


@race
def a_right_code_to_sign_in_is_taken_once(race_service: RaceService, chance: Random) -> None:
    request_id = race_service.visitor.ask_for_code(ANN)
    race_service.app.deliver()
    form = {"email": ANN, "code": race_service.fake_world.code(), "request_id": request_id}
    results = race_service.all("/auth/login", **form, nickname="Ann")
    assert statuses(results) == {200: 1, 401: race_service.many - 1}
    assert race_service.rows("SELECT email, version FROM account") == [(ANN, 1)]
    assert race_service.rows("SELECT * FROM registration") == []


@race
def five_wrong_codes_are_compared_and_no_more(race_service: RaceService, chance: Random) -> None:
    """Then the right one is refused too, but for the one who asked for it."""
    code, named = race_service.registered()
    steps = chance.sample(range(1, 1_000_000), race_service.many)
    wrong = [{"email": ANN, "token": f"{(int(code) + step) % 1_000_000:06}"} for step in steps]
    assert statuses(race_service.each("/auth/verify", wrong)) == {400: race_service.many}
    assert race_service.rows("SELECT tries + named_tries FROM registration") == [5]
    assert race_service.visitor.verify(code, status=400)
    assert race_service.visitor.verify(code, **named) == "验证成功", "nobody is locked out"


@race
def three_registrations_wait_and_one_account_is_made(
    race_service: RaceService, chance: Random
) -> None:
    results = race_service.each(
        "/auth/register", [account(nickname=f"N{n}") for n in range(race_service.many)]
    )
    assert statuses(results) == {200: race_service.many}
    assert len({answer["request_id"] for _, answer in results}) == race_service.many
    race_service.app.deliver()
    assert len(race_service.fake_world.emails) == 3
    codes = [race_service.fake_world.code(n) for n in range(3)] * (race_service.many // 3)
    results = race_service.each("/auth/verify", [{"email": ANN, "token": code} for code in codes])
    assert statuses(results) == {200: 1, 400: len(codes) - 1}
    assert len(race_service.rows("SELECT * FROM account")) == 1


@race
def likes_and_undos_leave_one_or_none_each(race_service: RaceService, chance: Random) -> None:
    many = race_service.many
    race_service.say()
    forms: dict[str, dict[str, Any]] = {"comment": {"id": 1}, "page": {"page_url": PAGE}}
    what = chance.choice([*forms])
    form = forms[what]
    count = {"comment": "likes", "page": "page_likes"}[what]
    path, rows = f"/{what}/like", f"SELECT count(*) FROM {what}_liker"
    count_ = f"SELECT {count} FROM {what}"
    few = [race_service.call(path, n % 5, undo=chance.random() < 0.5, **form) for n in range(many)]
    assert statuses(together(few)) == {200: many}
    assert race_service.rows(count_) == race_service.rows(rows)
    assert 0 <= race_service.rows(rows)[0] <= 5
    assert statuses(together([race_service.call(path, 3, **form)] * many)) == {200: many}
    before = race_service.rows(count_)[0]
    results = together([race_service.call(path, 10 + n, **form) for n in range(many)])
    assert sorted(answer[count] for _, answer in results) == [*range(before + 1, before + many + 1)]
    assert race_service.rows(count_) == race_service.rows(rows) == [before + many]
    assert statuses(together([race_service.call(path, 10, undo=True, **form)] * many)) == {
        200: many
    }
    assert race_service.rows(count_) == [before + many - 1]


@race
def a_solved_captcha_makes_one_comment(race_service: RaceService, chance: Random) -> None:
    token = solved(race_service.visitor)
    forms = [body(content=f"{n}", captcha_token=token) for n in range(race_service.many)]
    assert statuses(race_service.each("/comments", forms)) == {200: 1, 403: race_service.many - 1}
    assert len(race_service.rows("SELECT * FROM comment")) == 1
    retry = race_service.call(
        "/comments", 9, **body(content="once", captcha_token=solved(race_service.visitor))
    )
    results = together([retry] * race_service.many)
    assert statuses(results) == {200: race_service.many}
    assert {answer["comment"]["id"] for _, answer in results} == {2}
    assert len({answer["edit_token"] for _, answer in results}) == 1


@race
def a_solved_captcha_allows_one_registration_and_one_login(
    race_service: RaceService, chance: Random
) -> None:
    race_service.join()
    for path, emails in (
        ("register", [f"n{n}@example.com" for n in range(race_service.many)]),
        ("login", [ANN] * race_service.many),
    ):
        token = solved(race_service.visitor)
        forms = [account(email=email, captcha_token=token) for email in emails]
        results = race_service.each(f"/auth/{path}", forms)
        assert statuses(results) == {200: 1, 403: race_service.many - 1}, path


@race
def a_double_click_makes_one_comment(race_service: RaceService, chance: Random) -> None:
    results = together(
        [race_service.call("/comments", 5, **body(content="hi"))] * race_service.many
    )
    assert statuses(results) == {200: race_service.many}
    assert {answer["comment"]["id"] for _, answer in results} == {1}
    assert len([answer for _, answer in results if "edit_token" in answer]) == 1


@race
def an_admin_link_is_taken_once(race_service: RaceService, chance: Random) -> None:
    link = inside.admin_link(race_service.app, chance.choice(["", OWNER]))
    names = [{"email": f"n{n}@example.com", "nickname": f"N{n}"} for n in range(race_service.many)]
    results = race_service.each(
        "/admin/claim", [{**name, "link": link, "password": CANARY} for name in names]
    )
    assert statuses(results) == {200: 1, 403: race_service.many - 1}
    assert race_service.rows("SELECT role FROM account") == ["admin"]
    assert race_service.rows("SELECT action FROM audit") == ["claim"]


@race
def a_link_in_an_email_acts_once(race_service: RaceService, chance: Random) -> None:
    race_service.say()
    status = chance.choice(["spam", "deleted"])
    assert statuses(race_service.all(race_service.link(status))) == {200: race_service.many}
    assert race_service.rows("SELECT status FROM comment") == [status]
    assert race_service.rows("SELECT action FROM audit") == [status]
    learnt = race_service.rows("SELECT ham, spam FROM term WHERE hash = 0")
    assert learnt == ([(0, 1)] if status == "spam" else [])


@race
def the_last_edit_stands_and_one_deletion_is_done(
    race_service: RaceService, chance: Random
) -> None:
    half, token = race_service.many // 2, {"edit_token": race_service.say("at first")["edit_token"]}
    edits = [{"content": f"edited {n}", **token} for n in range(race_service.many)]
    results = race_service.each("/comments/1", edits, method="PATCH")
    assert statuses(results) == {200: race_service.many}
    (content,) = race_service.rows("SELECT content FROM comment")
    assert content in {edit["content"] for edit in edits}
    mixed = [race_service.call("/comments/1", n, "DELETE", **token) for n in range(half)]
    mixed += [race_service.call("/comments/1", n, "PATCH", **edits[n]) for n in range(half)]
    results = together(mixed)
    assert statuses(results[:half]) == {200: 1, 404: half - 1}
    assert set(statuses(results)) == {200, 404}
    assert race_service.rows("SELECT status, content, nickname FROM comment") == [
        ("deleted", "", "")
    ]


@race
def one_password_change_is_done(race_service: RaceService, chance: Random) -> None:
    forms = [{"password": CANARY, "new_password": f"{CANARY}{n}"} for n in range(race_service.many)]
    results = race_service.each("/me", forms, method="PATCH", bearer=race_service.join())
    counts = statuses(results)
    assert counts.pop(200) == 1
    assert set(counts) <= {401, 403}
    number = [status for status, _ in results].index(200)
    assert race_service.visitor.login(password=f"{CANARY}{number}")["token"]
    assert race_service.rows("SELECT version FROM account") == [2]


@race
def one_deletion_of_an_account_is_done(race_service: RaceService, chance: Random) -> None:
    half, token = race_service.many // 2, race_service.join()
    race_service.visitor.authorization = ("Bearer", token)
    race_service.say("mine")
    form = {"password": CANARY, "comments": chance.choice(["keep", "delete"])}
    calls = [race_service.call("/me", n, "DELETE", token, **form) for n in range(half)]
    calls += [
        race_service.call("/comments", n, "POST", token, **body(content="x")) for n in range(half)
    ]
    results = together(calls)
    done = statuses(results[:half])
    assert done.pop(200) == 1
    assert set(done) <= {401, 403}
    assert set(statuses(results[half:])) <= {200, 401}
    assert race_service.rows("SELECT * FROM account") == []
    assert (
        race_service.rows("SELECT id FROM comment WHERE user_id IS NOT NULL OR nickname <> ''")
        == []
    )
    race_service.visitor.authorization = None


@race
def a_page_that_moves_takes_all_with_it(race_service: RaceService, chance: Random) -> None:
    """Comments, likes and views of two pages that are merged, and parted, meanwhile."""
    quarter = race_service.many // 4
    inside.add_account(race_service.app, OWNER, "Owner", CANARY, "admin")
    owner = inside.token_of(race_service.app, OWNER, "admin")
    for page in "ab":
        race_service.say(f"first on {page}", page_url=f"/{page}/")
    calls = []
    for n in range(quarter):
        page = f"/{'ab'[n % 2]}/"
        calls.append(race_service.call("/comments", n, **body(content=f"{n}", page_url=page)))
        calls.append(race_service.call("/page/like", n, page_url=page))
        calls.append(race_service.call(f"/comments?url={page}", n, "GET"))
        wish = {"page_url": chance.choice(["/a/", "/b/"]), "merge": True}
        calls.append(race_service.call(f"/admin/pages/{n % 3 + 1}", n, "PATCH", owner, **wish))
    chance.shuffle(calls)
    assert set(statuses(together(calls))) <= {200, 404}
    race_service.app.tick()
    assert race_service.rows("SELECT count(*) FROM comment") == [2 + quarter]
    assert race_service.rows("SELECT sum(total), sum(views) FROM page") == [(2 + quarter, quarter)]


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads give way to others far more often than they do elsewhere."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(0.00005)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless")
@pytest.mark.parametrize("race", RACES, ids=lambda race: race.__name__)
def test_many_requests_at_once_break_no_rule(
    config: Config, tmp_path: Path, campaign: Campaign, race: Callable[[RaceService, Random], None]
) -> None:
    many = 200 if campaign.seconds else 12
    for chance in campaign.rounds(1):
        path = tmp_path / f"{campaign.last}.db"
        settings = {**USUAL, **SETTINGS.get(race.__name__, {}), "database_path": str(path)}
        with closing(RaceService(replace(config, **settings), FakeWorld(), many)) as race_service:
            race(race_service, chance)
        for file in tmp_path.glob(f"{campaign.last}.db*"):
            file.unlink()
        campaign.figures["races"] += 1
        campaign.measured("calls at once", many)
