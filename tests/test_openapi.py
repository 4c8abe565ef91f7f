"""The description of the API in `static/openapi.json`: it is valid, it names every route, and the
service asks for and answers what it says, whoever asks and whatever is sent."""

import ast
import io
import json
import re
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import jsonschema_rs
import pytest
import schemathesis
import webtest
from conftest import CANARY, PAGE, START, Campaign, Outside, Visitor, assert_whole, dump
from hypothesis import HealthCheck, Phase, given, seed
from hypothesis import settings as how
from requests import Request
from schemathesis import GenerationMode
from schemathesis.config import SchemathesisConfig
from test_admin import BLOG, OWNER, Judge, new_admin

import commentd
from commentd import ROUTES, App, Rank, Route, make_token, text_version, token_hash

SPEC: dict[str, Any] = json.loads((commentd.assets_folder() / "openapi.json").read_text())
OPERATIONS: dict[str, Any] = {
    f"{method.upper()} {path}": operation
    for path, methods in SPEC["paths"].items()
    for method, operation in methods.items()
}
# What no client of one's own has a use for.
NOT_DESCRIBED = {
    "GET /": "a page for a new owner",
    "GET /{name}": "the files of the widget and of our pages, this description too",
    "GET /words/{name}": "what the widget says in a language",
    "GET /admin": "the owner's page",
    "GET /mail": "a page, whose address comes by mail",
    "POST /mail": "the button of that page",
}
SECURITY: dict[Rank, list[dict[str, list[str]]]] = {
    Rank.NOBODY: [],
    Rank.ANYONE: [{}, {"login": []}],
    Rank.USER: [{"login": []}],
    Rank.MODERATOR: [{"login": ["admin"]}],
    Rank.ADMIN: [{"admin": []}],
}
FAILURE = "验证码错误或已过期"


def label_of(route: Route) -> str:
    return f"{route.method} {route.path}".translate({ord("<"): "{", ord(">"): "}"})


RANKS = {label_of(route): route.rank for route in ROUTES}


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


def test_it_is_valid_openapi() -> None:
    schemathesis.openapi.from_dict(SPEC).validate()
    for name, schema in SPEC["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(schema), name
    assert SPEC["info"]["version"] == commentd.__version__


def test_nothing_in_it_is_missing_double_or_left_over() -> None:
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


def test_it_has_every_route() -> None:
    assert OPERATIONS.keys() ^ NOT_DESCRIBED.keys() == RANKS.keys()
    for path, methods in SPEC["paths"].items():
        for operation in methods.values():
            parameters = map(resolved, operation.get("parameters", []))
            named = [p["name"] for p in parameters if p["in"] == "path"]
            assert named == re.findall("{(.*?)}", path)


def test_public_responses_depend_on_the_parameters_that_it_names() -> None:
    public = {route.path: route.public for route in commentd.ROUTES if route.public}
    assert len(public) == 5
    for path, names in public.items():
        parameters = map(resolved, OPERATIONS[f"GET {path}"]["parameters"])
        assert {p["name"] for p in parameters if p["in"] == "query"} == {*names}, path


def test_it_says_who_may_call_a_route() -> None:
    for label, operation in OPERATIONS.items():
        assert operation["security"] == SECURITY[RANKS[label]], label
        asks = RANKS[label] is not Rank.NOBODY or label.endswith("/login")
        assert ("401" in operation["responses"]) == asks, label


def test_it_is_served(app: App) -> None:
    reply = webtest.TestApp(app, lint=True).get("/openapi.json")
    assert reply.json == SPEC
    assert reply.content_type == "application/json"
    assert reply.headers["Access-Control-Allow-Origin"] == "*"


# Codes

PROBLEMS = {"Problem": 400, "BadRequest": 400, "Unauthorized": 401, "Forbidden": 403}
PROBLEMS |= {"NotFound": 404, "TooMany": 429, "Unavailable": 503, "CaptchaDown": 503}
PROBLEMS |= {"TextChanged": 409, "WideBlock": 409}
# What reads a parameter or field: where its name stands. Their codes begin with it.
READERS = {"text_of": 1, "proper": 1, "id_of": 1, "flag_of": 1, "choice_of": 1, "word_of": 1}
READERS |= {"number_of": 1, "page_of": 2, "password_of": 1}


def words_in(*nodes: ast.AST) -> set[str]:
    constants = (n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Constant))
    return {n.value for n in constants if isinstance(n.value, str)}


def calls() -> Iterator[tuple[str, ast.FunctionDef, ast.Call]]:
    """The calls of plain names in commentd.py, each in the function that makes it."""
    for function in ast.walk(ast.parse(Path(commentd.__file__).read_text())):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    yield node.func.id, function, node


def codes_in_program() -> dict[str, set[str]]:
    """By status, as the file writes it. Those made of a parameter's name are left out."""
    found = defaultdict(set, {"5XX": {"internal"}, "405": {"method_not_allowed"}})
    found["413"], found["431"] = {"body_too_large"}, {"headers_too_large"}
    for name, function, call in calls():
        if name == "existing":
            found["404"] |= words_in(call.args[2])
        if name not in PROBLEMS or function.name in ("verify", "bare_refusal"):
            continue
        stated = [k.value for k in call.keywords if k.arg == "status"]
        status = int(ast.unparse(stated[0])) if stated else PROBLEMS[name]
        code = call.args[1] if len(call.args) > 1 else None
        if not isinstance(code, ast.JoinedStr):
            own = words_in(code) if code else {getattr(commentd, name).code}
            found["5XX" if status > 499 else str(status)] |= own
    return found


def codes_in_file() -> dict[str, Any]:
    responses = {k: v for k, v in SPEC["components"]["responses"].items() if k != "Unconfirmed"}
    schemas = {k: v["content"]["application/json"]["schema"] for k, v in responses.items()}
    return {status: schema["properties"]["code"] for status, schema in schemas.items()}


def test_it_has_every_code_at_its_status() -> None:
    program, file = codes_in_program(), codes_in_file()
    unreadable = ("405", "413", "414", "415", "431")
    program["4XX"] = set().union(*(program.pop(status) for status in unreadable))
    pattern = file.pop("400")["pattern"]
    assert all(re.fullmatch(pattern, code) for code in program.pop("400"))
    assert {status: set(codes["enum"]) for status, codes in file.items()} == program


def test_every_code_of_a_parameter_begins_with_one_that_is_in_the_file() -> None:
    read = set()
    for name, function, call in calls():
        if name in READERS and function.name not in READERS and len(call.args) > READERS[name]:
            named = call.args[READERS[name]]
            lists = [n for n in ast.walk(function) if isinstance(n, ast.GeneratorExp)]
            read |= words_in(named) or words_in(*(each.generators[0].iter for each in lists))
    known = set()
    for operation in OPERATIONS.values():
        known |= queries(operation).keys()
        known |= {name for form in forms(operation) for name in form["properties"]}
    assert len(read) > 30
    assert read <= known


# What is asked for, and what is answered


def assert_described(operation: Any, answer: Any) -> None:
    """A reply is one of those in the file."""
    status, responses = str(answer.status_int), operation["responses"]
    said = resolved(responses.get(status) or responses[f"{status[0]}XX"]).get("content")
    assert said is None or answer.content_type in said
    if answer.content_type == "application/json":
        schema = {**said["application/json"]["schema"], "components": SPEC["components"]}
        jsonschema_rs.validate(schema, answer.json)


class Witness(Judge):
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
class Town:
    """One of everything, whose number is 1; who may do what; and in `good`, a value for every
    parameter and field that there is."""

    app: App
    tokens: dict[Rank, str]
    good: dict[str, Any]

    def ask(self, label: str, query: dict[str, Any], form: Any = None) -> Any:
        """Of one who may."""
        witness = Witness(self.app)
        witness.authorization = ("Bearer", self.tokens[RANKS[label]])
        path = re.sub("{(.*?)}", lambda name: str(self.good[name[1]]), label.split()[1])
        return witness.ask(label, f"{path}?{urlencode(query, doseq=True)}", form)

    def values(self, label: str, schemas: dict[str, Any]) -> dict[str, Any]:
        return {name: self.value(label, name, resolved(schemas[name])) for name in schemas}

    def value(self, label: str, name: str, schema: Any) -> Any:
        value = self.good.get(f"{label} {name}", self.good[name])
        if schema.get("type") == "array" and not isinstance(value, list):
            return [value]
        return value if value in schema.get("enum", [value]) else schema["enum"][0]


@pytest.fixture
def town(app: App, outside: Outside, db: sqlite3.Connection) -> Town:
    ann, guest, house = Visitor(app), Visitor(app, ip="2001:db8::7"), app.house
    ann.register()
    app.deliver()
    ann.verify(outside.code())
    request_id = guest.register("eve@example.com", nickname="Eve")["request_id"]
    app.deliver()
    code = outside.code()
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
    page_admin, admin = new_admin(app)
    block = {"kind": "word", "value": "roulette", "note": "", "expires_at": None}
    with house.store.writing():
        house.store.judge(2, "deleted", START)  # a tombstone
        house.store.judge(other, "waiting", START, "all")
        house.store.add_block(**block, created_at=START)
        house.store.add_admin_link(sha256(b"1" * 32).hexdigest(), "ann@example.com", START + 9)
    app.deliver()
    learnt = [(0, 20, 20, START), (token_hash(house.key, "hi"), 0, 20, START)]
    db.executemany("INSERT INTO token (hash, ham, spam, learnt_at) VALUES (?, ?, ?, ?)", learnt)
    db.execute(
        """INSERT INTO outbox (id, recipient, message, tries, expires_at, failure)
           VALUES (1, 'a@b.example', 'Subject: hi', 9, ?, 'SMTPDataError 550')""",
        (START + 86400,),
    )
    comment = house.store.comment(1)
    assert comment
    version = text_version(comment)
    good: dict[str, Any] = {
        # Fields
        "answers": False, "blocked": False, "captcha_token": "x", "closed": False,
        "comments": "keep", "content": "ho", "edit_token": "x", "email": "ann@example.com",
        "id": 1, "ids": [1], "kind": "word", "lang": "de", "link": "1" * 32, "merge": False,
        "new_password": CANARY, "nickname": "Zoe", "note": "of a game", "page_url": PAGE,
        "parent_id": 1, "password": CANARY, "pinned": True, "reason": "rude",
        "request_id": request_id, "role": "user", "status": "spam", "sure": False, "token": code,
        "undo": False,
        "value": "casino", "version": version, "versions": [version],
        "website": "https://e.example",
        # Parameters
        "around": 2, "before": 99, "days": 3, "limit": 2, "page": 1, "q": "h", "skip": 0,
        "sort": "likes", "thread": 1, "url": PAGE, "view": "threads",
        "block_id": 1, "comment_id": 1, "letter_id": 1, "page_id": 1, "user_id": 1,
        # Of one operation
        "POST /auth/verify email": "eve@example.com", "POST /admin/login email": OWNER,
    }  # fmt: skip
    tokens = {Rank.MODERATOR: admin, Rank.ADMIN: page_admin}
    return Town(app, dict.fromkeys(Rank, login) | tokens, good)


def required(operation: Any) -> dict[str, Any]:
    return {n: p["schema"] for n, p in queries(operation).items() if p.get("required")}


def fields(form: Any, *, whole: bool) -> dict[str, Any]:
    names = form["properties"] if whole else form.get("required", [])
    return {name: form["properties"][name] for name in names}


# An operation, the number of a form, and whether all that may be said is said.
REQUESTS = [
    (label, number, whole)
    for label, operation in OPERATIONS.items()
    for number, form in enumerate(forms(operation) or [{"properties": {}}])
    for whole in (False, True)
    if not whole
    or {*queries(operation), *form["properties"]}
    > {*required(operation), *form.get("required", [])}
]
METRICS = {
    "limits_enabled": False,
    "server_metrics": True,
    "site_contact": "mailto:ann@example.com",
}
with_metrics = pytest.mark.parametrize("settings", [METRICS], ids=["no limits"])


@with_metrics
@pytest.mark.parametrize(("label", "number", "whole"), REQUESTS)
def test_what_is_required_is_enough_and_all_that_may_be_said_is_taken(
    town: Town, label: str, number: int, whole: bool
) -> None:
    operation, form = OPERATIONS[label], None
    query = {n: p["schema"] for n, p in queries(operation).items() if whole or p.get("required")}
    if forms(operation):
        form = town.values(label, fields(forms(operation)[number], whole=whole))
    answer = town.ask(label, town.values(label, query), form)
    assert answer.status_int == 200, answer.text


def test_what_is_required_is_missed(town: Town) -> None:
    for label, operation in OPERATIONS.items():
        query = town.values(label, required(operation))
        for name in query:
            assert town.ask(label, {}).json["code"] == f"{name}_missing"
        for form in forms(operation):
            good = town.values(label, fields(form, whole=False))
            for name in good:
                answer = town.ask(label, query, {n: good[n] for n in good if n != name})
                assert answer.status_int == 400, (label, name)
                # A judgement is a status where it is no pin.
                code = {"ids": "ids_invalid", "pinned": "status_missing"}.get(
                    name, f"{name}_missing"
                )
                assert answer.text == FAILURE or answer.json["code"] == code


def test_every_shape_of_a_list_is_described(town: Town) -> None:
    threads = town.ask("GET /comments", {"url": PAGE, "view": "threads"}).json
    gone, answer = threads["comments"][0]["replies"]
    assert (gone["deleted"], "deleted" in answer) == (True, False)
    (waiting,) = town.ask("GET /admin/comments", {"status": "waiting"}).json["comments"]
    assert waiting["spam"]["tokens"][0]["token"] == "hi"
    (reported,) = town.ask("GET /admin/comments", {"status": "reported"}).json["comments"]
    assert (reported["reports"][0]["reason"], reported["spam"]) == ("rude", None)


HOSTED = {"captcha_site_key": "key", "captcha_secret": "secret", "site_origins": (BLOG,)}


@pytest.mark.parametrize(
    "settings", [{"captcha_provider": "altcha"}, {"captcha_provider": "hcaptcha", **HOSTED}]
)
def test_every_kind_of_captcha_is_described(app: App) -> None:
    witness = Witness(app)
    provider = app.house.config.captcha_provider
    assert witness.ask("GET /captcha", "/captcha").json["provider"] == provider
    assert witness.ask("GET /admin/captcha", "/admin/captcha").json["provider"] == "altcha"


def test_every_kind_of_refusal_is_described(town: Town) -> None:
    guest, like = Witness(town.app, ip="192.0.2.7"), {"id": 1}
    cases = {
        "uri_too_long": guest.ask("GET /comments", "/comments?url=" + "x" * 9000),
        "body_too_large": guest.ask("POST /comment/like", "/comment/like", {"x": "x" * 66000}),
        "content_type": guest.post("/comment/like", "id=1", expect_errors=True),
        "comment_gone": guest.ask("POST /comment/like", "/comment/like", {"id": 99}),
        "login_required": guest.ask("GET /me", "/me"),
        "too_many": [guest.ask("POST /comment/like", "/comment/like", like) for _ in range(11)][-1],
        "wrong_password": town.ask("DELETE /me", {}, {"password": "x", "comments": "keep"}),
    }
    assert_described(OPERATIONS["POST /comment/like"], cases["content_type"])
    assert {code: answer.json["code"] for code, answer in cases.items()} == {c: c for c in cases}
    assert int(cases["too_many"].headers["Retry-After"]) > 0


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


def at_the_edges(
    town: Town, label: str, *, good: bool
) -> Iterator[tuple[str, Any, dict[str, Any], Any]]:
    """For each parameter and field, its name and schema, and requests that go to its bounds or,
    if not `good`, beyond."""
    operation = OPERATIONS[label]
    query = town.values(label, required(operation))
    for name, parameter in queries(operation).items():
        for value in edges(parameter["schema"], is_text=True)[not good]:
            yield name, parameter["schema"], query | {name: value}, None
    for form in forms(operation):
        body = town.values(label, fields(form, whole=True))
        for name, schema in form["properties"].items():
            for value in edges(schema, is_text=False)[not good]:
                yield name, schema, query, body | {name: value}


ASKING = [name for name, said in OPERATIONS.items() if queries(said) or forms(said)]
# What is not looked at in a good form: the link names an address; nothing is to be merged.
NOT_READ = [("POST /admin/claim", "email"), ("PATCH /admin/pages/{page_id}", "merge")]
LONG = {"limits_enabled": False, "comments_max_length": 10_000}
long = pytest.mark.parametrize("settings", [LONG], ids=["long"])


@long
def test_what_is_beyond_a_bound_is_refused(town: Town) -> None:
    for label in OPERATIONS:
        for name, _, query, form in at_the_edges(town, label, good=False):
            if (label, name) not in NOT_READ:
                answer = town.ask(label, query, form)
                assert answer.status_int == 400, (label, name, query, form)
                codes = [f"{name}_{word}" for word in ("missing", "invalid", "too_long")]
                assert answer.text == FAILURE or answer.json["code"] in codes


@long
@pytest.mark.parametrize("label", ASKING)
def test_what_is_at_a_bound_is_not_refused_for_it(town: Town, label: str) -> None:
    for name, schema, query, form in at_the_edges(town, label, good=True):
        answer = town.ask(label, query, form)
        if answer.status_int == 400 and answer.text != FAILURE:
            own = [f"{name}_too_long"] + [f"{name}_invalid"] * ("format" not in resolved(schema))
            assert answer.json["code"] not in own, (name, query, form)


# Whatever is sent

GENERATION = {"deterministic": True, "database": "none", "with-security-parameters": False}
API = schemathesis.openapi.from_dict(
    SPEC, config=SchemathesisConfig.from_dict({"generation": GENERATION})
)
DRAWN, MADE = 2, 16  # requests of a round: by Schemathesis, and by chance out of those
HOW = how(
    max_examples=DRAWN,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
FORMER, BARRED = "former@example.com", "barred@example.com"
EARLY = (Rank.NOBODY, Rank.ANYONE, Rank.USER)
# Who asks: an account, how old its token is, which ranks it may call, and how many operations do
# what they are for at least, else it would not mean much.
CALLERS: dict[str, tuple[str, int, tuple[Rank, ...], int]] = {
    "guest": ("", 0, EARLY[:2], 12),
    "reader": ("ann@example.com", 0, EARLY, 20),
    "admin": (OWNER, 0, tuple(Rank), 40),
    "former admin": (FORMER, 0, EARLY, 15),
    "barred reader": (BARRED, 0, EARLY[:1], 3),
    "late reader": ("ann@example.com", 8 * 86400, EARLY[:1], 3),
}
SECRETS = [CANARY, sha256(CANARY.encode()).hexdigest(), "pbkdf2_", "Traceback"]
NOT_FOR_READERS = ["sqlite", "SELECT ", OWNER, "eve@example.com", "guest@", "2001:db8::7"]
ODD: list[Any] = [
    *(None, True, 0, -1, 1.5, 2, 99, 2**63, 2**64, 10**400, 1e308, "", " ", "1", "１", "-1"),
    *("\0", "\ud800", "\u202e", "a\r\nb: c", "x" * 300, "\U0001f600" * 65, "<script>"),
    *("' OR 1=1 --", "{}", "%s", "{{state}}", "../../commentd.db", "http://[", "\u0130", "1e3"),
    *("javascript:alert(1)", "a@b@c.example", [], {}, [1], ["1"] * 200, {"a": {"b": [{}]}}),
]  # fmt: skip
BROKEN = [b"", b"\xff", b"{", b'"x":NaN,', b"\xef\xbb\xbf", b"[", b"\0"]
TYPES = ["application/json"] * 12 + ["text/plain", "application/json; charset=gbk", ""]


class Ledger:
    """What lasts in the file, read again only when somebody wrote."""

    def __init__(self, path: str) -> None:
        self.path, self.version = path, 0
        self.seen: dict[str, Any] = {}
        self.db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def rows(self) -> dict[str, Any]:
        (version,) = self.db.execute("PRAGMA data_version").fetchone()
        if version != self.version:
            self.version, self.seen = version, dump(self.path)
        return self.seen


@pytest.fixture
def again(town: Town) -> Iterator[Callable[[], object]]:
    """Brings the town back to where it began, with an admin who is none any more and a reader who
    is not let in."""
    house = town.app.house
    for email in (FORMER, BARRED):
        new_admin(town.app, email)
        account = house.store.account_of(email)
        assert account
        with house.store.writing():
            house.store.set_rights(account.id, "user", email == BARRED, less=False)
    path = house.store.path
    with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(":memory:")) as kept:
        db.backup(kept)
        yield lambda: kept.backup(db)


@dataclass(frozen=True)
class Asked:
    """A request, as it is sent."""

    path: str
    query: str = ""
    body: bytes = b""
    kind: str = ""

    def sent(self, app: App, method: str, token: str) -> tuple[int, dict[str, str], bytes]:
        environ = {"REQUEST_METHOD": method, "PATH_INFO": unquote(self.path, "latin-1")}
        environ |= {"QUERY_STRING": self.query, "CONTENT_TYPE": self.kind, **WSGI}
        environ |= {"CONTENT_LENGTH": str(len(self.body)), "wsgi.input": io.BytesIO(self.body)}
        if token:
            environ["HTTP_AUTHORIZATION"] = f"Bearer {token}"
        head: list[Any] = []
        parts = app(environ, lambda *words: head.extend(words))
        try:
            body = b"".join(parts)
        finally:
            getattr(parts, "close", bool)()
        return int(head[0][:3]), {name.lower(): value for name, value in head[1]}, body


WSGI: dict[str, Any] = {
    "REMOTE_ADDR": "203.0.113.7", "SERVER_NAME": "localhost", "SERVER_PORT": "80",
    "SERVER_PROTOCOL": "HTTP/1.1", "HTTP_HOST": "localhost", "wsgi.url_scheme": "http",
    "wsgi.errors": sys.stderr, "wsgi.version": (1, 0), "SCRIPT_NAME": "",
}  # fmt: skip


@cache
def validator(label: str, status: int) -> Any:
    """What a reply of this status must be, by its type."""
    responses = OPERATIONS[label]["responses"]
    said = resolved(responses.get(str(status)) or responses[f"{str(status)[0]}XX"])
    return {
        kind: jsonschema_rs.validator_for({**form["schema"], "components": SPEC["components"]})
        for kind, form in said["content"].items()
        if kind == "application/json"
    } | dict.fromkeys(said["content"].keys() - {"application/json"})


def judge(town: Town, ledger: Ledger, label: str, caller: str, asked: Asked) -> int:
    """The reply is as the file says, whoever asks; who may not is refused, no refusal changes
    anything, and nobody is told a secret."""
    house, (email, ago, ranks, _) = town.app.house, CALLERS[caller]
    use = "admin" if caller.endswith("admin") and "/admin" in label else "login"
    account = house.store.account_of(email)  # it may have gone meanwhile
    token = make_token(account, house.key, START - ago, use) if account else ""
    before = ledger.rows()
    status, headers, body = asked.sent(town.app, label.split()[0], token)
    assert status < 500
    kind = headers["content-type"].partition(";")[0]
    valid = validator(label, status)[kind]
    if valid:
        valid.validate(json.loads(body, parse_constant=pytest.fail))
    if status >= 400:
        assert ledger.rows() == before, "a refusal changed the database"
    else:
        assert RANKS[label] in (ranks if account else EARLY[:2])
    if kind != "application/vnd.sqlite3":
        own = f"{email} {asked.body.decode('utf-8', 'replace')} {asked.query}"
        hidden = NOT_FOR_READERS if caller != "admin" else []
        said = body.decode() + str(headers)
        assert not [word for word in hidden if word in said and word not in own]
        assert not [word for word in [*SECRETS, house.key.decode()] if word in said]
    return status


def drawn(label: str, chance: Random) -> list[schemathesis.Case]:
    """What fits the file, and what does not."""
    operation, found = API.find_operation_by_label(label), list[schemathesis.Case]()
    assert operation
    cases = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    if OPERATIONS[label].get("parameters") or forms(OPERATIONS[label]):
        cases |= operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @seed(chance.getrandbits(64))
    @HOW
    @given(cases)
    def draw(case: schemathesis.Case) -> None:
        found.append(case)

    draw()
    return found


def of_case(case: schemathesis.Case) -> Asked:
    said = Request(**case.as_transport_kwargs(base_url="http://localhost")).prepare()
    url, body = urlsplit(str(said.url)), said.body or b""
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    return Asked(url.path, url.query, raw, str(said.headers.get("Content-Type", "")))


def changed(town: Town, label: str, cases: list[schemathesis.Case], chance: Random) -> Asked:
    """Parts of what was drawn; values that find something; and what no form foresees."""
    parameters = [resolved(each) for each in OPERATIONS[label].get("parameters", [])]
    bodies = [form["properties"] for form in forms(OPERATIONS[label])]
    form = chance.choice(bodies) if bodies else {}

    def value(name: str, schema: Any, part: str) -> Any:
        way = chance.random()
        if way < 0.75:
            return town.value(label, name, resolved(schema))
        if way < 0.9:
            return chance.choice(ODD)
        others = [said for case in cases if isinstance(said := getattr(case, part), dict)]
        return chance.choice([said.get(name) for said in others] or ODD)

    path, query, body = label.split()[1], list[tuple[str, Any]](), dict[str, Any]()
    for each in parameters:
        if each["in"] == "path":
            said = str(value(each["name"], each["schema"], "path_parameters"))
            path = path.replace(f"{{{each['name']}}}", quote(said, "", "utf-8", "surrogatepass"))
        elif each.get("required") or chance.random() < 0.5:
            said = value(each["name"], each["schema"], "query")
            listed = said if isinstance(said, list) else [said] * (1 + (chance.random() < 0.02))
            query += [(each["name"], str(one).encode("utf-8", "surrogatepass")) for one in listed]
    for name, schema in form.items():
        if chance.random() < 0.9:
            body[name] = value(name, schema, "body")
    if chance.random() < 0.1:
        body[chance.choice(["role", "verified", "user_id", "__proto__", ""])] = chance.choice(ODD)
    raw = json.dumps(body, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    if chance.random() < 0.05:
        at = chance.randrange(len(raw) + 1)
        raw = raw[:at] + chance.choice(BROKEN) + raw[at:]
    return Asked(path, urlencode(query), *((raw, chance.choice(TYPES)) if form else ()))


PAIRS = [(label, caller) for label in OPERATIONS for caller in CALLERS]


@with_metrics
def test_whatever_is_sent_the_reply_is_as_the_file_says_and_no_refusal_changes_a_thing(
    town: Town, again: Callable[[], object], campaign: Campaign
) -> None:
    ledger, answered = Ledger(town.app.house.store.path), defaultdict(set)
    for chance in campaign.rounds(len(PAIRS)):
        label, caller = PAIRS[campaign.last % len(PAIRS)]
        again()
        cases = drawn(label, chance)
        made = [changed(town, label, cases, chance) for _ in range(MADE)]
        for asked in [*map(of_case, cases), *made]:
            status = judge(town, ledger, label, caller, asked)
            campaign.figures["requests"] += 1
            campaign.figures["refused"] += status >= 400
            if status == 200:
                answered[caller].add(label)
        assert_whole(town.app.house.store.path)
    if campaign.last >= len(PAIRS) - 1:
        for caller, (_, _, _, least) in CALLERS.items():
            assert len(answered[caller]) >= least, caller
