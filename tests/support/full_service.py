"""A service that holds one of everything, for calls made from the description of the API."""

import functools
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema_rs
import pytest

import commentd
from commentd import App
from support import inside
from support.admin import OWNER
from support.api import OPERATIONS, PERMISSIONS, ROUTES, SPEC
from support.client import CANARY, PAGE, Visitor
from support.second_factor import app_code
from support.sources import ROOT
from support.world import START, FakeWorld

PERMISSION = {str(route): route.permission for route in ROUTES}


def resolved(value: Any) -> Any:
    """A part of the file, or what it points to."""
    while "$ref" in value:
        found: Any = SPEC
        for name in value["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        value = {**found, **{k: v for k, v in value.items() if k != "$ref"}}
    return value


def queries(operation: Any) -> dict[str, Any]:
    parameters = map(resolved, operation.get("parameters", []))
    return {p["name"]: p for p in parameters if p["in"] == "query"}


def forms_of(operation: Any) -> list[Any]:
    """The schemas that a body may have."""
    if "requestBody" not in operation:
        return []
    schema = resolved(operation["requestBody"]["content"]["application/json"]["schema"])
    return [resolved(each) for each in schema.get("oneOf", [schema])]


def assert_described(label: str, answer: Any) -> None:
    """A reply is one of those in the file."""
    status, responses = str(answer.status_int), OPERATIONS[label]["responses"]
    key = status if status in responses else f"{status[0]}XX"
    place = f"static/openapi.json, {label}"
    assert key in responses, f'{place}: "responses" lacks "{status}" or "{key}"'
    response = resolved(responses[key]).get("content")
    kind = answer.content_type
    assert response is None or kind in response, f'{place}: "{key}" lacks "{kind}"'
    if response and kind == "application/json":
        error = next(validator(label, key).iter_errors(answer.json), None)
        assert error is None, f'{place}, the schema of "{key}": {error}'


@functools.cache
def validator(label: str, key: str) -> Any:
    """What looks at a body of JSON."""
    content = resolved(OPERATIONS[label]["responses"][key])["content"]
    schema = {**content["application/json"]["schema"], "components": SPEC["components"]}
    return jsonschema_rs.validator_for(schema)


class SpecVisitor(Visitor):
    """Who sends requests, and holds every reply against the file."""

    def ask(self, label: str, path: str, form: Any = None) -> Any:
        method = label.split()[0]
        if form is None:
            answer = self.request(path, method=method, expect_errors=True)
        else:
            answer = getattr(self, f"{method.lower()}_json")(path, form, expect_errors=True)
        assert_described(label, answer)
        return answer


@dataclass(frozen=True)
class FullService:
    """One of everything, whose number is 1; who may do what; and in `good`, a value for every
    parameter and field that there is."""

    app: App
    tokens: dict[str, str]
    good: dict[str, Any]

    def ask(
        self, label: str, query: dict[str, Any], form: Any = None, *, with_token: bool = True
    ) -> Any:
        """Of one who may."""
        witness = SpecVisitor(self.app)
        permission = PERMISSION[label]
        if permission == "moderator":
            permission = "admin"  # who may send all that such a route takes
        if with_token:
            witness.authorization = ("Bearer", self.tokens[permission])
        path = re.sub("{(.*?)}", lambda name: str(self.good[name[1]]), label.split()[1])
        return witness.ask(label, f"{path}?{urlencode(query, doseq=True)}", form)

    def values(self, label: str, schemas: dict[str, Any]) -> dict[str, Any]:
        return {name: self.value(label, name, resolved(schemas[name])) for name in schemas}

    def value(self, label: str, name: str, schema: Any) -> Any:
        lacking = f'{Path(__file__).relative_to(ROOT)}: GOOD lacks "{name}": a value for {label}'
        assert {name, f"{label} {name}"} & self.good.keys(), lacking
        value = self.good.get(f"{label} {name}", self.good.get(name))
        if schema.get("type") == "array" and not isinstance(value, list):
            return [value]
        return value if value in schema.get("enum", [value]) else schema["enum"][0]


APP_KEY = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"  # of an authenticator app

DOT = (  # a PNG of one pixel, in Base64
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA"
    "WjR9awAAAABJRU5ErkJggg=="
)
# Values of parameters and fields, and those that one operation wants.
GOOD: dict[str, Any] = {
    "answers": False,
    "questions": False,
    "blocked": False,
    "captcha_token": "x",
    "closed": False,
    "comments": "keep",
    "content": "ho",
    "edit_token": "x",
    "factor": "123456",
    "email": "ann@example.com",
    "id": 1,
    "ids": [1],
    "kind": "word",
    "lang": "de",
    "link": "1" * 32,
    "merge": False,
    "new_password": CANARY,
    "nickname": "Zoe",
    "note": "of a game",
    "page_url": PAGE,
    "page_title": "A post",
    "parent_id": 1,
    "password": CANARY,
    "pinned": True,
    "trusted": True,
    "banned": False,
    "reason": "rude",
    "role": "user",
    "status": "spam",
    "sure": False,
    "undo": False,
    "value": "casino",
    "website": "https://e.example",
    "face": "0" * 32,
    "emoji": "👍",
    "POST /me/picture picture": DOT,
    "around": 2,
    "before": 99,
    "comment": 1,
    "days": 3,
    "by": "week",
    "limit": 2,
    "page": 1,
    "q": "h",
    "author": "n",
    "page_name": "/",
    "GET /admin/comments since": "2020-01-02",
    "until": "2099-12-31",
    "skip": 0,
    "sort": "likes",
    "thread": 1,
    "url": PAGE,
    "view": "threads",
    "voucher": "5" * 32,
    "voucher_secret": "6" * 64,
    "faces": "12.34",
    "since": 1,
    "style": "link",
    "heading": "Talk",
    "picture": False,
    "confirms": False,
    "name": "7" * 32,
    "file": "cats_hello.png",
    "block_id": 1,
    "comment_id": 1,
    "message_id": 1,
    "session_id": 1,
    "site_token": "a.b.c",
    "secret_hash": "5e" * 32,
    "settings": {"site_name": "A blog"},
    "page_id": 1,
    "user": 1,
    "user_id": 1,
    "POST /auth/verify email": "eve@example.com",
    "POST /admin/inspection url": "https://blog.example/2026/hello/",
    "POST /admin/login email": OWNER,
    "POST /admin/app key": APP_KEY,
}


@pytest.fixture
def full_service(app: App, fake_world: FakeWorld, db: sqlite3.Connection) -> FullService:
    ann, guest = Visitor(app), Visitor(app, ip="2001:db8::7")
    fake_world.time -= 60  # a minute passes between two codes
    ann.register()
    app.deliver()
    ann.verify(fake_world.code())
    fake_world.time += 60
    sign_in = ann.ask_for_code()
    app.deliver()
    sign_in_code = fake_world.code()
    request_id = guest.register("eve@example.com", nickname="Eve")["request_id"]
    app.deliver()
    code = fake_world.code()
    login = ann.login()["token"]
    ann.authorization = ("Bearer", login)
    ann.say("*hi*", website="https://ann.example")
    guest.say(parent_id=1, email="guest@example.com")
    ann.say(parent_id=2)
    ann.post_json("/comment/like", {"id": 1})
    ann.post_json("/page/like", {"page_url": PAGE})
    ann.post_json("/page/follow", {"page_url": PAGE})
    ann.post_json("/comments/2/report", {"reason": "rude"})
    other = guest.say(page_url="/other/")["comment"]["id"]
    inside.add_account(app, OWNER, "Owner", CANARY, "admin")
    inside.set_status(app, 2, "deleted")  # a tombstone
    inside.set_status(app, other, "waiting")
    inside.teach_filter(app, "hi", spam=20, fine=20)
    link = sha256(b"1" * 32).hexdigest()
    db.execute(
        "INSERT INTO admin_link VALUES (?, 'ann@example.com', 'admin', ?)", (link, START + 9)
    )
    db.execute("INSERT INTO block VALUES (1, 'word', 'roulette', '', ?, NULL)", (START,))
    db.execute("INSERT INTO joined_identity VALUES ('https://id.example', 'Ann-1', 1, ?)", (START,))
    db.execute("INSERT INTO reaction VALUES (1, 1, '👍', 1)")
    db.execute("INSERT INTO reaction_liker VALUES (1, 'user 1', NULL)")
    db.execute("INSERT INTO picture VALUES (?, 1, 'image/png', x'89', 1)", ("7" * 32,))
    db.execute("UPDATE account SET picture = ? WHERE id = 1", ("7" * 32,))
    db.execute(
        """INSERT INTO voucher
           VALUES (?, ?, '', 'https://id.example', 'Ann-1', '', 0, '', '', '', 0, ?, 0)""",
        (sha256(b"5" * 32).hexdigest(), sha256(b"6" * 64).hexdigest(), START + 600),
    )
    app.deliver()
    db.execute(
        """INSERT INTO outbox (id, recipient, subject, tries, expires_at, failure)
           VALUES (1, 'a@b.example', 'hi', 9, ?, 'SMTPDataError 550')""",
        (START + 86400,),
    )
    owner = Visitor(app)
    owner.authorization = ("Bearer", inside.token_of(app, OWNER, "admin"))
    shown = owner.get("/admin/comments", {"status": "all"}).json["comments"]
    version = {comment["id"]: comment["version"] for comment in shown}[1]
    good = {"request_id": sign_in, "token": code, "version": version, "versions": [version]}
    good |= {"code": sign_in_code, "POST /auth/verify request_id": request_id}
    [identity] = app.site.store.identities_of(1)
    good["DELETE /me/identities id"] = commentd.identity_id(app.site, identity)
    good["POST /admin/app factor"] = app_code(APP_KEY, int(fake_world.time) // 30)
    tokens = dict.fromkeys(PERMISSIONS, login)
    tokens["admin_on_blog"] = inside.token_of(app, OWNER)
    inside.add_account(app, "mo@example.com", "Mo", CANARY, "moderator")
    tokens["moderator"] = inside.token_of(app, "mo@example.com", "admin")
    tokens["admin"] = inside.token_of(app, OWNER, "admin")
    return FullService(app, tokens, GOOD | good)


@pytest.fixture
def reset(full_service: FullService) -> Iterator[Callable[[], object]]:
    """Brings the service back to where it began, with an admin who is none any more and a reader
    who is not let in."""
    for email in (FORMER, BARRED):
        inside.add_account(full_service.app, email, email, CANARY)
    inside.sql(full_service.app, "UPDATE account SET blocked = 1 WHERE email = ?", BARRED)
    path = inside.database_path(full_service.app)
    with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(":memory:")) as kept:
        db.backup(kept)

        def back() -> None:
            full_service.app.tick()  # which writes the views that wait
            kept.backup(db)
            inside.forget_cached_responses(full_service.app)

        yield back


def required(operation: Any) -> dict[str, Any]:
    return {n: p["schema"] for n, p in queries(operation).items() if p.get("required")}


def fields_of(form: Any, *, whole: bool) -> dict[str, Any]:
    names = form["properties"] if whole else form.get("required", [])
    return {name: form["properties"][name] for name in names}


METRICS: dict[str, Any] = {
    "comments_pictures": True,
    "comments_reactions": ("👍", "🎉"),
    "stickers_folder": str(ROOT / "tests" / "support" / "stickers"),
    "limits_enabled": False,
    "server_metrics": True,
    "site_contact": "mailto:ann@example.com",
    "site_picture": str(ROOT / ".ci" / "admin.png"),
}

with_metrics = pytest.mark.parametrize("settings", [METRICS], ids=["no limits"])

FORMER, BARRED = "former@example.com", "barred@example.com"
