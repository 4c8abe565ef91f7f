"""The description of the API in `static/openapi.json`: it is valid, it names every route, and the
service asks for and answers what it says, whoever asks and whatever is sent."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from itertools import chain
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
from support.client import CANARY, DETAILS, PAGE, Visitor, stranger
from support.database import assert_whole
from support.full_service import (
    BARRED,
    FORMER,
    METRICS,
    PERMISSION,
    FullService,
    SpecVisitor,
    assert_described,
    fields_of,
    forms_of,
    queries,
    required,
    resolved,
    with_metrics,
)
from support.full_service import full_service as full_service  # a fixture
from support.full_service import reset as reset  # a fixture
from support.refusals import refusals
from support.sources import ROOT

FILE = ROOT / "static" / "openapi.json"


def every(value: Any) -> Iterator[Any]:
    """The objects in a part of the file."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value:
        if isinstance(each, dict | list):
            yield from every(each)


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
    here = "static/openapi.json"
    wrong = [f"{here} has no {name}" for name in used - there]
    wrong += [f"{here} uses {name} nowhere: delete it" for name in there - used]
    names = Counter(operation["operationId"] for operation in OPERATIONS.values())
    wrong += [f'{here}: "operationId": "{n}" is there twice' for n in names - Counter({*names})]
    tags = {operation["tags"][0] for operation in OPERATIONS.values()}
    listed = {tag["name"] for tag in SPEC["tags"]}
    wrong += [f'{here}: "tags" at its top lack "{name}"' for name in tags - listed]
    wrong += [f'{here}: no route has the tag "{name}": delete it' for name in listed - tags]
    assert not wrong, "\n".join(sorted(wrong))


def test_the_openapi_file_has_every_route() -> None:
    described = {str(route) for route in ROUTES}
    lacking = [f"static/openapi.json lacks {route}" for route in inside.routes() - described]
    left = [f"commentd.py has no {route}" for route in described - inside.routes()]
    assert not lacking + left, "\n".join(sorted(lacking + left))
    wrong = []
    for label, operation in OPERATIONS.items():
        place = f"static/openapi.json, {label}"
        parameters = map(resolved, operation.get("parameters", []))
        named = [p["name"] for p in parameters if p["in"] == "path"]
        in_path = re.findall("{(.*?)}", label)
        if named != in_path:
            wrong.append(f'{place}: "parameters" in "path" are {named}, not {in_path}')
        permission = inside.permissions()[label]
        if PERMISSION[label] != permission:
            security = json.dumps(PERMISSIONS[permission])
            wrong.append(f'{place}: write "security": {security}, as commentd.py says {permission}')
        # Where a token may be refused.
        asks = permission != "public" or label.endswith(("/login", "/auth/site"))
        if ("401" in operation["responses"]) != asks:
            wrong.append(f'{place}: "responses" {"lacks" if asks else "must not have"} "401"')
    assert not wrong, "\n".join(wrong)


def described_codes(status: int) -> tuple[set[str], str]:
    """The codes of a status in the file, and the pattern of those that are made of a name."""
    responses = SPEC["components"]["responses"]
    name = str(status) if str(status) in responses else f"{str(status)[0]}XX"
    code = responses[name]["content"]["application/json"]["schema"]["properties"]["code"]
    return {*code.get("enum", [])}, code.get("pattern", "$^")


def test_the_openapi_file_has_the_code_of_each_refusal() -> None:
    lacking = []
    for refusal in refusals():
        listed, pattern = described_codes(refusal.status)
        if refusal.code not in listed and not re.search(pattern, refusal.code):
            lacking.append(
                f"static/openapi.json: {refusal.code} is not among the codes of {refusal.status}, "
                f"with which {refusal.place} refuses"
            )
    assert not lacking, "\n".join(lacking)


def test_the_openapi_file_has_every_code_and_no_other() -> None:
    described, patterns = set[str](), ""
    for status in (400, 401, 403, 404, 405, 409, 429, 500):
        listed, pattern = described_codes(status)
        described |= listed
        patterns += pattern
    made = re.search(r"_\((.*)\)", patterns)
    assert made
    assert {*made[1].split("|")} == inside.faults()
    of_bad_requests = {code for code in inside.codes() if re.search(made[0], code)}
    assert described | of_bad_requests == inside.codes()


def test_the_openapi_file_describes_what_refusals_say_beside_their_codes() -> None:
    described = SPEC["components"]["schemas"]["Error"]["properties"].keys() - {"error", "code"}
    lacking = {*chain.from_iterable(DETAILS.values())} - described
    assert not lacking, f"static/openapi.json: Error lacks {lacking}"


def test_a_public_field_of_a_comment_is_described(visitor: Visitor) -> None:
    described = SPEC["components"]["schemas"]["Shown"]["properties"].keys()
    public = visitor.say("hi")["comment"].keys() - {"status"}  # which its author alone is told
    lacking = [f"static/openapi.json: Shown lacks {name}" for name in public - described]
    assert not lacking, "\n".join(sorted(lacking))


def test_the_openapi_file_is_served(app: App) -> None:
    reply = webtest.TestApp(app, lint=True).get("/openapi.json")
    assert reply.json == SPEC
    assert reply.content_type == "application/json"
    assert reply.headers["Access-Control-Allow-Origin"] == "*"


# What is asked for, and what is answered


@pytest.mark.slow
@with_metrics
def test_each_route_takes_its_required_fields_alone_and_all_of_its_fields(
    full_service: FullService, reset: Callable[[], object]
) -> None:
    for label, operation in OPERATIONS.items():
        # The owner's own site is off here, and no provider has a picture. test_site_token.py and
        # test_pictures.py try both.
        if label in ("POST /auth/site", "POST /me/picture"):
            continue
        for whole in (False, True):
            asked = {
                name: parameter["schema"]
                for name, parameter in queries(operation).items()
                if whole or parameter.get("required")
            }
            for form in forms_of(operation) or [None]:
                reset()
                body = form and full_service.values(label, fields_of(form, whole=whole))
                if label in ("PATCH /me", "DELETE /me") and "voucher" in (body or {}):
                    continue  # it confirms nothing where there is a password: see test_login.py
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


@with_metrics
def test_each_choice_and_number_in_a_query_has_the_bounds_of_the_file(
    full_service: FullService,
) -> None:
    for label, operation in OPERATIONS.items():
        query = full_service.values(label, required(operation))
        for name, parameter in queries(operation).items():
            schema = resolved(parameter["schema"])
            if "enum" not in schema and schema["type"] != "integer":
                continue
            allowed, refused = edges(schema, is_text=True)
            for value in allowed:
                answer = full_service.ask(label, query | {name: value})
                assert answer.status_int in (200, 404), (label, name, value)
            for value in refused:
                answer = full_service.ask(label, query | {name: value})
                assert answer.status_int == 400, (label, name, value)


# What is not looked at in a form that is good otherwise; and what has one response for all faults.
UNREAD = {
    "POST /auth/verify": {"email", "request_id"},
    "POST /auth/login": {"nickname"},
    "PATCH /me": {"voucher", "voucher_secret"},
    "DELETE /me": {"voucher", "voucher_secret"},
    "POST /me/picture": {"picture"},
    "POST /admin/claim": {"email", "nickname", "lang"},
    "PATCH /admin/settings": {"password"},
}


@pytest.mark.parametrize(
    "settings", [{**METRICS, "comments_max_length": 10_000}], ids=["no limits"]
)
def test_each_text_in_a_form_may_be_as_long_as_the_file_says(
    full_service: FullService, reset: Callable[[], object]
) -> None:
    for label, operation in OPERATIONS.items():
        for form in forms_of(operation):
            fields = fields_of(form, whole=True)
            good = full_service.values(label, fields)
            for name, schema in fields.items():
                most = resolved(schema).get("maxLength", 0)
                if not most or name in UNREAD.get(label, ()):
                    continue
                too_long = "nickname_invalid" if name == "nickname" else f"{name}_too_long"
                for length in (most, most + 1):
                    reset()
                    answer = full_service.ask(label, {}, good | {name: "x" * length})
                    assert (too_long in answer.text) == (length > most), (label, name, length)


# Whatever is sent

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


def token_for(full_service: FullService, label: str, caller: str) -> str:
    """What the caller sends to be known, "" if their account is gone."""
    email, ago, _, _ = CALLERS[caller]
    use = "admin" if caller.endswith("admin") and "/admin" in label else "login"
    known = inside.sql(full_service.app, "SELECT 1 FROM account WHERE email = ?", email)
    return inside.token_of(full_service.app, email, use, ago) if known else ""


def send(client: webtest.TestApp, label: str, token: str, asked: SentRequest) -> Any:
    """The response, which is as the file says."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers |= {"Content-Type": asked.kind} if asked.kind else {}
    how: dict[str, Any] = {"method": label.split()[0], "headers": headers, "body": asked.body}
    response = client.request(f"{asked.path}?{asked.query}", **how, expect_errors=True)
    assert_described(label, response)
    return response


def send_and_check(full_service: FullService, label: str, caller: str, asked: SentRequest) -> int:
    """Who may not is refused, whoever asks, and nobody is told a secret. `SpecVisitor` looks at
    the rest."""
    email, _, permissions, _ = CALLERS[caller]
    token = token_for(full_service, label, caller)
    response = send(SpecVisitor(full_service.app), label, token, asked)
    allowed = permissions if token else EARLY[:2]
    assert response.status_int >= 400 or PERMISSION[label] in allowed
    if response.content_type not in ("application/vnd.sqlite3", "image/png"):
        own = f"{email} {asked.body.decode('utf-8', 'replace')} {asked.query}"
        hidden = [word for word in NOT_FOR_READERS if caller != "admin" and word not in own]
        whole = response.text + str(response.headers)
        assert not [word for word in [*hidden, *SECRETS] if word in whole]
    return int(response.status_int)


def random_request(full_service: FullService, label: str, chance: Random) -> SentRequest:
    """A good request with some values that find something, and what no form foresees."""
    parameters = [resolved(each) for each in OPERATIONS[label].get("parameters", [])]
    bodies = [form["properties"] for form in forms_of(OPERATIONS[label])]
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


@with_metrics
def test_no_random_request_makes_the_service_fail(
    full_service: FullService, reset: Callable[[], object], campaign: Campaign
) -> None:
    """More in less time: what a refusal changes, and what leaves, is not looked at."""
    client = stranger(full_service.app)
    for chance in campaign.rounds(1):
        reset()
        tokens: dict[tuple[str, bool], str] = {}
        for label, caller in chance.choices(PAIRS, k=1000 if campaign.seconds else 50):
            asked, use = random_request(full_service, label, chance), (caller, "/admin" in label)
            if use not in tokens:
                tokens[use] = token_for(full_service, label, caller)
            response = send(client, label, tokens[use], asked)
            assert response.status_int < 500, (label, caller, asked, response.text)
            campaign.figures["requests"] += 1
            campaign.figures["refused"] += response.status_int >= 400
        assert_whole(inside.database_path(full_service.app))
