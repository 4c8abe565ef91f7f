"""The routes of the service, as static/openapi.json describes them, and the few that it leaves out.

test_openapi.py holds that these are all, and that each says who may call it."""

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support import inside

SPEC: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "static" / "openapi.json").read_text("utf-8")
)
OPERATIONS: dict[str, Any] = {
    f"{method.upper()} {path}": operation
    for path, methods in SPEC["paths"].items()
    for method, operation in methods.items()
}
# What no client of one's own has a use for.
NOT_DESCRIBED = {
    "GET /": "a page for a new owner",
    "GET /{name}": "the files of the widget and of our pages, this description too",
    "GET /admin_page/{name}": "the scripts of the owner's page",
    "GET /words/{name}": "what the widget says in a language",
    "GET /admin": "the owner's page",
    "GET /admin/help": "the manual as a page",
    "GET /mail": "a page, whose URL comes by email",
    "POST /mail": "the button of that page",
    "GET /auth/with/{name}": "a page that the widget opens, for a provider of the settings",
    "GET /auth/callback/{name}": "a page to which the provider leads",
    "POST /chat/{name}": "what Telegram calls",
    "GET /way-in": "what `commentd check URL` asks, with the key of the service",
}
# Who may call a route, weakest first. `anyone` has a token or none, but no invalid one.
PERMISSIONS = {
    "public": [],
    "anyone": [{}, {"login": []}],
    "user": [{"login": []}],
    "admin_on_blog": [{"login": ["admin"]}],
    "moderator": [{"admin": ["moderator"]}],
    "admin": [{"admin": []}],
}
NEED_TOKEN = ("user", "admin_on_blog", "moderator", "admin")


# A file at each path that serves several.
NAMES = {"/{name}": "home.js", "/admin_page/{name}": "start.js", "/words/{name}": "de.json"}
NAMES |= dict.fromkeys(("/auth/with/{name}", "/auth/callback/{name}", "/chat/{name}"), "github")
NAMES["/pictures/{name}"] = "7" * 32
NAMES["/stickers/{file}"] = "cats_hello.png"


def example_of(path: str) -> str:
    """A URL of this route, where what is asked for has the number 1."""
    name = NAMES.get(path, "")
    with_name = re.sub(r"\{(name|file)\}", name, path)
    return re.sub(r"\{\w+_id\}", "1", with_name)


@functools.cache
def path_of(target: str) -> str:
    """The path of the route that a GET of this target asks, as in `commentd.py` but with braces:
    `/comments/{comment_id}` of `/comments/7?limit=2`. Without such a route, that of the target."""
    asked = target.split("?")[0]
    paths = {label.removeprefix("GET ") for label in inside.routes() if label.startswith("GET ")}
    if asked in paths:
        return asked
    for path in sorted(paths):
        with_numbers = re.sub(r"\{\w+_id\}", "[0-9]+", path)
        if re.fullmatch(re.sub(r"\{(name|file)\}", "[^/]+", with_numbers), asked):
            return path
    return asked


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    permission: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def needs_token(self) -> bool:
        return self.permission in NEED_TOKEN

    @property
    def url(self) -> str:
        return example_of(self.path)


def all_routes() -> Iterator[Route]:
    for label, operation in OPERATIONS.items():
        method, path = label.split()
        security = operation.get("security")
        permission = next((n for n, each in PERMISSIONS.items() if each == security), "")
        known = ", ".join(map(json.dumps, PERMISSIONS.values()))
        assert permission, f'static/openapi.json, {label}: "security" must be one of {known}'
        yield Route(method, path, permission)
    for label in NOT_DESCRIBED:
        method, path = label.split()
        yield Route(method, path, "public")


ROUTES = list(all_routes())
