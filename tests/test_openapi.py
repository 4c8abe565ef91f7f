"""The description of the API in `static/openapi.json`: it is valid, it names every route, and the
service asks for and answers what it says, whoever asks and whatever is sent."""

import ast
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema_rs
import pytest
import webtest

from commentd import App, __version__
from support import inside
from support.admin import OWNER
from support.api import OPERATIONS, PERMISSIONS, ROUTES, SPEC
from support.campaign import Campaign
from support.client import CANARY, PAGE, Visitor
from support.database import assert_whole
from support.sources import ROOT
from support.world import START, FakeWorld

FILE = ROOT / "static" / "openapi.json"
PERMISSION = {str(route): route.permission for route in ROUTES}


def resolved(value: Any) -> Any:
    """A part of the file, or what it points to."""
    while "$ref" in value:
        found: Any = SPEC
        for name in value["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        value = {**found, **{k: v for k, v in value.items() if k != "$ref"}}
    return value


def every(value: Any) -> Iterator[Any]:
    """The objects in a part of the file."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            yield from every(each)


def queries(operation: Any) -> dict[str, Any]:
    parameters = map(resolved, operation.get("parameters", []))
    return {p["name"]: p for p in parameters if p["in"] == "query"}


def forms(operation: Any) -> list[Any]:
    """The schemas that a body may have."""
    if "requestBody" not in operation:
        return []
    schema = resolved(operation["requestBody"]["content"]["application/json"]["schema"])
    return [resolved(each) for each in schema.get("oneOf", [schema])]


# The file


@pytest.mark.slow
def test_the_openapi_file_is_valid(pytestconfig: pytest.Config) -> None:
    # That takes ten seconds. What was valid is, until the file or the program that says so changes.
    validated = [metadata.version("schemathesis"), sha256(FILE.read_bytes()).hexdigest()]
    if pytestconfig.cache.get("openapi/valid", []) != validated:
        import schemathesis  # it is large, and other files import this one

        schemathesis.openapi.from_dict(SPEC).validate()
        pytestconfig.cache.set("openapi/valid", validated)
    for name, schema in SPEC["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
    assert SPEC["info"]["version"] == __version__


def test_the_openapi_file_has_nothing_missing_double_or_left_over() -> None:
    used = {each["$ref"] for each in every(SPEC) if "$ref" in each}
    there = {
        f"#/components/{kind}/{name}"
        for kind in ("schemas", "parameters", "responses")
        for name in SPEC["components"][kind]
    }
    assert used == there
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    assert {o["tags"][0] for o in OPERATIONS.values()} == {tag["name"] for tag in SPEC["tags"]}


def test_the_openapi_file_has_every_route() -> None:
    described = {str(route) for route in ROUTES}
    lacking = [f"static/openapi.json lacks {route}" for route in inside.routes() - described]
    left = [f"commentd.py has no {route}" for route in described - inside.routes()]
    assert not lacking + left, "\n".join(sorted(lacking + left))
    for path, methods in SPEC["paths"].items():
        for operation in methods.values():
            parameters = map(resolved, operation.get("parameters", []))
            named = [p["name"] for p in parameters if p["in"] == "path"]
            assert named == re.findall("{(.*?)}", path)
    for label, operation in OPERATIONS.items():  # where a token may be refused
        asks = PERMISSION[label] != "public" or label.endswith("/login")
        assert ("401" in operation["responses"]) == asks, label


def test_a_public_field_of_a_comment_is_described_and_makes_readers_look_again(
    app: App, visitor: Visitor
) -> None:
    [(trigger,)] = inside.sql(app, "SELECT sql FROM sqlite_schema WHERE name = 'count_change'")
    watched = set(re.findall(r"\w+", trigger[trigger.index("UPDATE OF") : trigger.index(" ON ")]))
    # What never changes, comes from another table, or changes with another field.
    constant = {"id", "page_url", "parent_id", "role", "content", "ip", "created_at", "edited"}
    described = SPEC["components"]["schemas"]["Shown"]["properties"].keys()
    public = visitor.say("hi")["comment"].keys() - {"status"}  # which its author alone is told
    lacking = [f"static/openapi.json: Shown lacks {name}" for name in public - described]
    lacking += [
        f"commentd.py: the trigger count_change lacks {name} (or this test: it never changes)"
        for name in public - watched - constant
    ]
    assert not lacking, "\n".join(sorted(lacking))


def test_the_openapi_file_is_served(app: App) -> None:
    reply = webtest.TestApp(app, lint=True).get("/openapi.json")
    assert reply.json == SPEC
    assert reply.content_type == "application/json"
    assert reply.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.slow
def test_the_openapi_file_has_every_error_code() -> None:
    """What a response can hold as its `code`, but for those made of a parameter's name."""
    described, pattern = set[str](), ""
    for status, response in SPEC["components"]["responses"].items():
        schema = response["content"].get("application/json", {}).get("schema", {})
        code = schema.get("properties", {}).get("code", {})
        described |= set(code.get("enum", []))
        pattern = code["pattern"] if status == "400" else pattern
    tree = ast.parse((ROOT / "commentd.py").read_text("utf-8"))
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)}
    assert described - texts == set()
    raised = {
        str(word.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        for word in ast.walk(node)
        if isinstance(word, ast.Constant) and re.fullmatch("[a-z]+(_[a-z]+)+", str(word.value))
    }
    assert len(raised) > 15
    assert {code for code in raised - described if not re.fullmatch(pattern, code)} == set()


# What is asked for, and what is answered


def assert_described(operation: Any, answer: Any) -> None:
    """A reply is one of those in the file."""
    status, responses = str(answer.status_int), operation["responses"]
    response = resolved(responses.get(status) or responses[f"{status[0]}XX"]).get("content")
    assert response is None or answer.content_type in response
    if response and answer.content_type == "application/json":
        schema = {**response["application/json"]["schema"], "components": SPEC["components"]}
        jsonschema_rs.validate(schema, answer.json)


class SpecVisitor(Visitor):
    """Who sends requests, and holds every reply against the file."""

    def ask(self, label: str, path: str, form: Any = None) -> Any:
        method = label.split()[0]
        if form is None:
            answer = self.request(path, method=method, expect_errors=True)
        else:
            answer = getattr(self, f"{method.lower()}_json")(path, form, expect_errors=True)
        assert_described(OPERATIONS[label], answer)
        return answer


@dataclass(frozen=True)
class FullService:
    """One of everything, whose number is 1; who may do what; and in `good`, a value for every
    parameter and field that there is."""

    app: App
    tokens: dict[str, str]
    good: dict[str, Any]

    def ask(self, label: str, query: dict[str, Any], form: Any = None) -> Any:
        """Of one who may."""
        witness = SpecVisitor(self.app)
        witness.authorization = ("Bearer", self.tokens[PERMISSION[label]])
        path = re.sub("{(.*?)}", lambda name: str(self.good[name[1]]), label.split()[1])
        return witness.ask(label, f"{path}?{urlencode(query, doseq=True)}", form)

    def values(self, label: str, schemas: dict[str, Any]) -> dict[str, Any]:
        return {name: self.value(label, name, resolved(schemas[name])) for name in schemas}

    def value(self, label: str, name: str, schema: Any) -> Any:
        value = self.good.get(f"{label} {name}", self.good[name])
        if schema.get("type") == "array" and not isinstance(value, list):
            return [value]
        return value if value in schema.get("enum", [value]) else schema["enum"][0]


# Values of parameters and fields, and those that one operation wants.
GOOD: dict[str, Any] = {
    "answers": False,
    "blocked": False,
    "captcha_token": "x",
    "closed": False,
    "comments": "keep",
    "content": "ho",
    "edit_token": "x",
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
    "parent_id": 1,
    "password": CANARY,
    "pinned": True,
    "reason": "rude",
    "role": "user",
    "status": "spam",
    "sure": False,
    "undo": False,
    "value": "casino",
    "website": "https://e.example",
    "around": 2,
    "before": 99,
    "comment": 1,
    "days": 3,
    "limit": 2,
    "page": 1,
    "q": "h",
    "skip": 0,
    "sort": "likes",
    "thread": 1,
    "url": PAGE,
    "view": "threads",
    "faces": "12.34",
    "since": 1,
    "style": "link",
    "heading": "Talk",
    "block_id": 1,
    "comment_id": 1,
    "message_id": 1,
    "page_id": 1,
    "user_id": 1,
    "POST /auth/verify email": "eve@example.com",
    "POST /admin/login email": OWNER,
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
    db.execute("INSERT INTO admin_link VALUES (?, 'ann@example.com', ?)", (link, START + 9))
    db.execute("INSERT INTO block VALUES (1, 'word', 'roulette', '', ?, NULL)", (START,))
    app.deliver()
    db.execute(
        """INSERT INTO outbox (id, recipient, message, tries, expires_at, failure)
           VALUES (1, 'a@b.example', 'Subject: hi', 9, ?, 'SMTPDataError 550')""",
        (START + 86400,),
    )
    owner = Visitor(app)
    owner.authorization = ("Bearer", inside.token_of(app, OWNER, "admin"))
    shown = owner.get("/admin/comments", {"status": "all"}).json["comments"]
    version = {comment["id"]: comment["version"] for comment in shown}[1]
    good = {"request_id": sign_in, "token": code, "version": version, "versions": [version]}
    good |= {"code": sign_in_code, "POST /auth/verify request_id": request_id}
    tokens = dict.fromkeys(PERMISSIONS, login)
    tokens["moderator"] = inside.token_of(app, OWNER)
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

        yield back


def required(operation: Any) -> dict[str, Any]:
    return {n: p["schema"] for n, p in queries(operation).items() if p.get("required")}


def fields(form: Any, *, whole: bool) -> dict[str, Any]:
    names = form["properties"] if whole else form.get("required", [])
    return {name: form["properties"][name] for name in names}


METRICS: dict[str, Any] = {
    "limits_enabled": False,
    "server_metrics": True,
    "site_contact": "mailto:ann@example.com",
    "site_picture": str(Path(__file__).parent.parent / ".ci" / "admin.png"),
}
with_metrics = pytest.mark.parametrize("settings", [METRICS], ids=["no limits"])


@pytest.mark.slow
@with_metrics
def test_each_route_takes_its_required_fields_alone_and_all_of_its_fields(
    full_service: FullService, reset: Callable[[], object]
) -> None:
    for label, operation in OPERATIONS.items():
        for whole in (False, True):
            asked = {
                name: parameter["schema"]
                for name, parameter in queries(operation).items()
                if whole or parameter.get("required")
            }
            for form in forms(operation) or [None]:
                reset()
                body = form and full_service.values(label, fields(form, whole=whole))
                response = full_service.ask(label, full_service.values(label, asked), body)
                assert response.status_int == 200, (label, body)


def test_the_openapi_file_describes_every_shape_of_a_list(full_service: FullService) -> None:
    threads = full_service.ask("GET /comments", {"url": PAGE, "view": "threads"}).json
    gone, answer = threads["comments"][0]["replies"]
    assert (gone["deleted"], "deleted" in answer) == (True, False)
    (waiting,) = full_service.ask("GET /admin/comments", {"status": "waiting"}).json["comments"]
    assert waiting["spam"]["tokens"][0]["token"] == "hi"
    (reported,) = full_service.ask("GET /admin/comments", {"status": "reported"}).json["comments"]
    assert (reported["reports"][0]["reason"], reported["spam"]) == ("rude", None)


def edges(schema: Any, *, is_text: bool) -> tuple[list[Any], list[Any]]:
    """What a schema just allows, and just not; in a query all is text."""
    schema = resolved(schema)
    if "enum" in schema:
        return schema["enum"], ["no such word"]
    if schema["type"] == "boolean":
        return [True, False], ["true", 1]
    if schema["type"] == "array":
        good, bad = edges(schema["items"], is_text=True)
        most = schema.get("maxItems", 0)
        return [good[:1]], [*([each] for each in bad), *([[], ["1"] * (most + 1)] if most else [])]
    if schema["type"] == "integer":
        least, most = schema["minimum"], schema.get("maximum", 2**63 - 1)
        return [least, most], [least - 1, most + 1]
    most = schema.get("maxLength", 0)
    bad = ["x" * (most + 1)] + ([] if is_text else [7, ["x"]])
    return ["x" * most if most else "x"], bad if most else []


# Whatever is sent

FORMER, BARRED = "former@example.com", "barred@example.com"
EARLY = ("public", "anyone", "user")


# Who asks: an account, how old its token is, which permissions it has, and how many operations do
# what they are for at least, else it would not mean much.
CALLERS: dict[str, tuple[str, int, tuple[str, ...], int]] = {
    "guest": ("", 0, EARLY[:2], 12),
    "reader": ("ann@example.com", 0, EARLY, 20),
    "admin": (OWNER, 0, tuple(PERMISSIONS), 40),
    "former admin": (FORMER, 0, EARLY, 15),
    "barred reader": (BARRED, 0, EARLY[:1], 3),
    "late reader": ("ann@example.com", 8 * 86400, EARLY[:1], 3),
}


# What no reader may see, but for what they sent themselves.
NOT_FOR_READERS = ["sqlite", "SELECT ", OWNER, "eve@example.com", "guest@", "2001:db8::7"]
SECRETS = [CANARY, sha256(CANARY.encode()).hexdigest(), "pbkdf2_"]
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    2,
    99,
    2**63,
    2**64,
    10**400,
    1e308,
    "",
    " ",
    "1",
    "１",
    "-1",
    "\0",
    "\ud800",
    "\u202e",
    "a\r\nb: c",
    "x" * 300,
    "\U0001f600" * 65,
    "<script>",
    "' OR 1=1 --",
    "{}",
    "%s",
    "{{state}}",
    "../../etc/passwd",
    "http://[",
    "\u0130",
    "1e3",
    "javascript:alert(1)",
    "a@b@c.example",
    [],
    {},
    [1],
    ["1"] * 200,
    {"a": {"b": [{}]}},
]


@dataclass(frozen=True)
class SentRequest:
    """A request, as it is sent."""

    path: str
    query: str = ""
    body: bytes = b""
    kind: str = ""


def send_and_check(full_service: FullService, label: str, caller: str, asked: SentRequest) -> int:
    """The response is as the file says, whoever asks; who may not is refused, and nobody is told a
    secret. `Witness` looks at the rest."""
    email, ago, permissions, _ = CALLERS[caller]
    use = "admin" if caller.endswith("admin") and "/admin" in label else "login"
    known = inside.sql(full_service.app, "SELECT 1 FROM account WHERE email = ?", email)
    token = inside.token_of(full_service.app, email, use, ago) if known else ""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Content-Type": asked.kind} if asked.kind else {}
    how: dict[str, Any] = {"method": label.split()[0], "headers": headers, "body": asked.body}
    response = SpecVisitor(full_service.app).request(
        f"{asked.path}?{asked.query}", **how, expect_errors=True
    )
    assert_described(OPERATIONS[label], response)
    assert response.status_int >= 400 or PERMISSION[label] in (permissions if known else EARLY[:2])
    if response.content_type not in ("application/vnd.sqlite3", "image/png"):
        own = f"{email} {asked.body.decode('utf-8', 'replace')} {asked.query}"
        hidden = [word for word in NOT_FOR_READERS if caller != "admin" and word not in own]
        whole = response.text + str(response.headers)
        assert not [word for word in [*hidden, *SECRETS] if word in whole]
    return int(response.status_int)


def random_request(full_service: FullService, label: str, chance: Random) -> SentRequest:
    """A good request with some values that find something, and what no form foresees."""
    parameters = [resolved(each) for each in OPERATIONS[label].get("parameters", [])]
    bodies = [form["properties"] for form in forms(OPERATIONS[label])]
    form = chance.choice(bodies) if bodies else {}

    def value(name: str, schema: Any) -> Any:
        way = chance.random()
        if way < 0.75:
            return full_service.value(label, name, resolved(schema))
        just, beyond = edges(schema, is_text=False)
        return chance.choice(ODD if way < 0.9 else [*just, *beyond, None])

    path, query, body = label.split()[1], list[tuple[str, Any]](), dict[str, Any]()
    for each in parameters:
        if each["in"] == "path":
            chosen = str(value(each["name"], each["schema"]))
            path = path.replace(f"{{{each['name']}}}", quote(chosen, "", "utf-8", "surrogatepass"))
        elif each.get("required") or chance.random() < 0.5:
            chosen = value(each["name"], each["schema"])
            listed = (
                chosen if isinstance(chosen, list) else [chosen] * (1 + (chance.random() < 0.02))
            )
            query += [(each["name"], str(one).encode("utf-8", "surrogatepass")) for one in listed]
    for name, schema in form.items():
        if chance.random() < 0.9:
            body[name] = value(name, schema)
    if chance.random() < 0.1:
        body[chance.choice(["role", "verified", "user_id", "__proto__", ""])] = chance.choice(ODD)
    raw = json.dumps(body, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    return SentRequest(path, urlencode(query), *((raw, "application/json") if form else ()))


PAIRS = [(label, caller) for label in OPERATIONS for caller in CALLERS]


@with_metrics
def test_responses_to_random_requests_are_as_the_openapi_file_says_and_no_refusal_changes_anything(
    full_service: FullService, reset: Callable[[], object], campaign: Campaign
) -> None:
    answered = defaultdict(set)
    for chance in campaign.rounds(15):
        label, caller = PAIRS[(campaign.last * 7) % len(PAIRS)]  # 7 divides no number of pairs
        reset()
        for _ in range(16):
            status = send_and_check(
                full_service, label, caller, random_request(full_service, label, chance)
            )
            campaign.figures["requests"] += 1
            campaign.figures["refused"] += status >= 400
            if status == 200:
                answered[caller].add(label)
        assert_whole(inside.database_path(full_service.app))
    if campaign.last >= len(PAIRS) - 1:
        for caller, (_, _, _, least) in CALLERS.items():
            assert len(answered[caller]) >= least, caller
