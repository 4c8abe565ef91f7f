"""What an admin does by the API."""

import sqlite3
from typing import Any

import pytest

from commentd import App
from support import inside
from support.client import CANARY, Visitor
from support.inside import token_of

OWNER, BLOG = "owner@example.com", "https://blog.example"


def new_admin(app: App, email: str = OWNER, nickname: str = "Owner") -> tuple[str, str]:
    """An admin's tokens: of the admin page, and of the widget."""
    inside.add_account(app, email, nickname, CANARY, "admin")
    return token_of(app, email, "admin"), token_of(app, email, "login")


@pytest.fixture
def owner(app: App) -> Visitor:
    return new_owner(app)


def new_owner(app: App) -> Visitor:
    """The admin on the admin page, at an IP address of their own."""
    admin, widget = new_admin(app)
    owner = Visitor(app, ip="198.51.100.7")
    owner.authorization = ("Bearer", admin)
    owner.widget = Visitor(app, ip="198.51.100.7")
    owner.widget.authorization = ("Bearer", widget)
    return owner


def queue(owner: Visitor, code: int = 200, /, **query: Any) -> Any:
    return owner.get("/admin/comments", query, status=code).json


def ids(found: Any, what: str = "comments") -> list[int]:
    return [each["id"] for each in found[what]]


def moderate(owner: Visitor, numbers: list[int], to: str, status: int = 200) -> Any:
    return do(owner, "comments", status, ids=numbers, status=to)


def pin(owner: Visitor, numbers: list[int], pinned: bool = True, status: int = 200) -> Any:
    return do(owner, "comments", status, ids=numbers, pinned=pinned)


def do(owner: Visitor, path: str, code: int = 200, /, **form: Any) -> Any:
    return owner.post_json(f"/admin/{path}", form, status=code).json


def change(owner: Visitor, path: str, code: int = 200, /, **form: Any) -> Any:
    return owner.patch_json(f"/admin/{path}", form, status=code).json


def drop(owner: Visitor, path: str, code: int = 200) -> Any:
    return owner.delete_json(f"/admin/{path}", {}, status=code).json


def rows(db: sqlite3.Connection, sql: str) -> list[Any]:
    return [tuple(row) for row in db.execute(sql)]


def pages(owner: Visitor, **query: Any) -> Any:
    return owner.get("/admin/pages", query).json


def audit(owner: Visitor) -> list[tuple[str, str, str, str]]:
    """Who did what, in the order of time."""
    lines = owner.get("/admin/audit", {"limit": 100}).json["audit"]
    return [(a["who"], a["action"], a["subject"], a["detail"]) for a in reversed(lines)]


def block(owner: Visitor, kind: str, value: Any, code: int = 200, /, **more: Any) -> Any:
    return do(owner, "blocks", code, kind=kind, value=value, **more)


def blocks(owner: Visitor) -> Any:
    return owner.get("/admin/blocks").json["blocks"]


def held(owner: Visitor) -> tuple[str, str]:
    """The state of the newest comment, and why it is not shown."""
    newest = queue(owner)["comments"][0]
    return newest["status"], newest["held"]


def shown(visitor: Visitor, **query: Any) -> list[int]:
    return ids(visitor.listing(limit=100, **query))


def with_settings(**settings: Any) -> pytest.MarkDecorator:
    """The settings of a test, without limits."""
    return pytest.mark.parametrize("settings", [{"limits_enabled": False, **settings}], ids=["set"])
