"""A client whose every request is judged.

There is no 5xx unless the test injects a fault, refusals are `{error, code}` and change nothing but
rate limits, no secret leaves, JSON is strict."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest
import webtest

from commentd import App
from support import inside
from support.database import dump, rows_of

CANARY = "Canary-7Q9-passphrase"  # a password that must never be seen again


PAGE = "/2026/hello/"
COMMENT = {"page_url": PAGE, "nickname": "Ann", "content": "hi", "captcha_token": "x"}


# What refusals say beside their text, by their code.
DETAILS = {
    "setting_invalid": {"faults"},
    "block_wide": {"count", "total"},
    "provider_email": {"email", "picture"},
    "provider_name": {"nickname", "picture"},
}

Status = int | str  # the status of a response that a test expects; "*" is any


class Visitor(webtest.TestApp):  # type: ignore[misc]
    """A client whose every request is judged by the invariants."""

    authorization: Any  # of webtest: a kind and a token, or None

    def __init__(self, app: App, ip: str = "203.0.113.7", **environ: str) -> None:
        super().__init__(app, extra_environ={"REMOTE_ADDR": ip, **environ}, lint=True)
        self.served = app
        self.faults_allowed = False

    def do_request(self, req: Any, *args: Any, **kw: Any) -> Any:
        asked = req.environ["PATH_INFO"]  # Bottle decodes the path in place
        path = inside.database_path(self.served)
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as before:
            # A read transaction keeps seeing the database as it is before the request. It begins
            # with anything that is read of the file; this needs no table.
            before.execute("BEGIN")
            before.execute("PRAGMA user_version").fetchone()
            written = inside.rows_written(self.served)
            response = super().do_request(req, *args, **kw)
            if response.status_int >= 400 and inside.rows_written(self.served) != written:
                assert dump(path) == rows_of(before), "a refusal changed the database"
        kind = response.content_type or ""
        binary = kind == "application/vnd.sqlite3" or kind.startswith("image/")
        strictly = "replace" if binary else "strict"
        status, text = response.status_int, response.body.decode("utf-8", strictly)
        assert self.faults_allowed or status < 500, text
        self.check_response(asked, req.method, response, status, text)
        return response

    def check_response(self, path: str, method: str, response: Any, status: int, text: str) -> None:
        if path == "/admin/settings":  # an admin may read where the database is
            text = text.replace(inside.database_path(self.served), "")
        secrets = [
            CANARY,
            inside.token_key(self.served).decode(),
            "Traceback",
            "sqlite",
            "commentd.db",
            "SELECT ",
        ]
        everything = text + str(response.headers)
        if response.content_type in ("application/json", "text/plain"):
            assert not [word for word in secrets if word in everything]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert "Server" not in response.headers
        if response.content_type == "application/json" and method != "HEAD":
            value = json.loads(text, parse_constant=lambda word: pytest.fail(f"not JSON: {word}"))
            if status >= 400:
                details = set(value) - {"error", "code"}
                assert details == DETAILS.get(value["code"], set()), (
                    f'tests/support/client.py: DETAILS has not "{value["code"]}": {details}'
                )
                assert value["error"]
                assert value["code"].replace("_", "").isalpha()
        elif status == 404 and response.content_type == "text/html":
            pass  # a browser that opens an unknown URL
        elif status >= 400 and method != "HEAD":
            is_page = path == "/mail" or path.startswith("/auth/callback/")
            assert is_page or path == "/auth/verify", "only the verification answers in plain text"

    # Small verbs

    def post(self, *args: Any, **kw: Any) -> Any:
        """webtest's, for bodies that are not JSON."""
        return super().post(*args, **kw)

    def say(self, content: str = "hi", status: Status = 200, **fields: Any) -> Any:
        """Post a comment as a guest; the whole JSON of the reply."""
        body = {"page_url": PAGE, "nickname": "Ann", "content": content, "captcha_token": "x"}
        headers = fields.pop("headers", {})
        return self.post_json("/comments", body | fields, headers=headers, status=status).json

    def edit(self, posted: Any, content: str) -> str:
        """Changes the text of a comment as its author; what `say` returned, and the new status."""
        body = {"content": content, "edit_token": posted.get("edit_token", "")}
        edited = self.patch_json(f"/comments/{posted['comment']['id']}", body).json
        status: str = edited["comment"]["status"]
        return status

    def report(self, number: int = 1, reason: object = "", status: Status = 200) -> Any:
        """Tells the owner that a comment should not be there."""
        body = {"reason": reason}
        return self.post_json(f"/comments/{number}/report", body, status=status).json

    def listing(self, **query: Any) -> Any:
        return self.get("/comments", {"url": PAGE, **query}).json

    def register(self, email: str = "ann@example.com", status: Status = 200, **fields: Any) -> Any:
        body = {"email": email, "nickname": "Ann", "password": CANARY, "captcha_token": "x"}
        return self.post_json("/auth/register", body | fields, status=status).json

    def login(self, email: str = "ann@example.com", status: Status = 200, **fields: Any) -> Any:
        body = {"email": email, "password": CANARY, "captcha_token": "x"}
        return self.post_json("/auth/login", body | fields, status=status).json

    def sign_in(self, email: str = "ann@example.com", **fields: Any) -> None:
        """From now on each request has the token of this account."""
        self.authorization = ("Bearer", self.login(email, **fields)["token"])

    def ask_for_code(self, email: str = "ann@example.com", **fields: Any) -> str:
        """A code to sign in with; the request."""
        body = {"email": email, "captcha_token": "x"}
        request_id: str = self.post_json("/auth/code", body | fields).json["request_id"]
        return request_id

    def verify(
        self, token: str, email: str = "ann@example.com", status: Status = 200, **f: Any
    ) -> str:
        body = {"email": email, "token": token, **f}
        text: str = self.post_json("/auth/verify", body, status=status).text
        return text


def stranger(app: App, like: Visitor | None = None) -> webtest.TestApp:
    """A client whose requests may fail, and hold nothing in the database meanwhile; with the token
    of somebody, if it is `like` them."""
    client = webtest.TestApp(app, extra_environ={"REMOTE_ADDR": "203.0.113.8"}, lint=False)
    client.authorization = like and like.authorization
    return client


def registration(email: str = "bob@example.com") -> dict[str, str]:
    return {"email": email, "nickname": "Bob", "password": CANARY, "captcha_token": "x"}
