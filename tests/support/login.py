"""A browser that signs a reader in with an identity provider, and what each needs."""

import hashlib
import html
import re
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from commentd import App, LoginProvider
from support.client import PAGE, Visitor
from support.provider import CLIENT_SECRET, Provider

BLOG = "https://blog.example"
SERVICE = "https://comments.example/talk"
SECRET = "s" * 43  # of the widget


def section(name: str, server: Provider, kind: str = "oidc") -> LoginProvider:
    return LoginProvider(name, kind, server.client_id, CLIENT_SECRET, server.issuer)


@dataclass
class Came:
    """What the blog's page gets of a way back, and the whole response."""

    voucher: str
    refusal: str
    response: Any


def attribute(page: str, name: str) -> str:
    """The value of an attribute that stands once in a page."""
    (value,) = re.findall(f' {name}="([^"]*)"', page)
    return html.unescape(value)


class Reader:
    """A browser at the service: it keeps its cookies, follows no redirect, runs no script."""

    def __init__(self, app: App) -> None:
        self.visitor = Visitor(app)
        self.cookies: dict[str, str] = {}

    def get(self, url: str, status: int | str = "*", came_from: str = f"{BLOG}/") -> Any:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookies, "Referer": came_from}
        response = self.visitor.get(url, headers=headers, status=status)
        if cookie := response.headers.get("Set-Cookie"):
            name, value = cookie.partition(";")[0].split("=", 1)
            self.cookies[name] = value
        return response

    def begin(self, name: str = "own", *, status: int = 303, **changed: str) -> str:
        """Presses a button of the widget. Where that leads."""
        secret_hash = hashlib.sha256(SECRET.encode()).hexdigest()
        query = {"page": f"{BLOG}{PAGE}?a=b", "secret_hash": secret_hash, "lang": "de", **changed}
        response = self.get(f"/auth/with/{name}?{urlencode(query)}", status)
        where: str = response.headers.get("Location", response.text)
        return where

    def come_back(self, name: str = "own", **query: str) -> Came:
        response = self.get(f"/auth/callback/{name}?{urlencode(query)}")
        fragment = response.headers.get("Location", "").partition("#")[2]
        if response.status_int == 200:
            fragment = attribute(response.text, "data-fragment")
        found = dict(parse_qsl(fragment))
        voucher = found.get("commentd-voucher", "")
        return Came(voucher, found.get("commentd-refusal", ""), response)

    def fetch_voucher(self, provider: Provider, name: str = "own") -> str:
        """Signs in at a provider, as far as the voucher."""
        came = self.come_back(name, **provider.approve(self.begin(name)))
        assert came.voucher, came.refusal
        return came.voucher

    def log_in(self, voucher: str, status: int | str = 200, **fields: Any) -> Any:
        form = {"voucher": voucher, "voucher_secret": SECRET, **fields}
        return self.visitor.post_json("/auth/login", form, status=status).json

    def sign_in(self, provider: Provider, name: str = "own", **fields: Any) -> Any:
        """All of it; what `/auth/login` says."""
        voucher = self.fetch_voucher(provider, name)
        return self.log_in(voucher, "*", **fields)


class Refusing(NamedTuple):
    """A service that all cases of some tables share: it refuses what they try, and what the others
    left is deleted."""

    app: App
    reader: Reader
    provider: Provider
