"""An identity provider of our own: OpenID Connect, GitHub and Mastodon as they speak, or as none
should. What it lies about is set by a test."""

import base64
import hashlib
import json
import re
import secrets
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

CLIENT_ID, CLIENT_SECRET = "commentd-at-blog", "secret+of/this blog%"
ANN = {"sub": "Ann-1", "email": "ann@example.com", "email_verified": True, "name": "Ann"}
# What GitHub calls the errors of RFC 6749.
GITHUB_ERRORS = {
    "invalid_client": "incorrect_client_credentials",
    "invalid_grant": "bad_verification_code",
}


def encoded(value: object) -> str:
    """A part of a JWT."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


class Provider(ThreadingHTTPServer):
    """It knows one client, and signs in whoever `person` is.

    `lies` replaces what it says: by the path, or for claims of the ID token by `id_token`. A value
    of `...` is left out. `raw`: by the path, the parts of a response and the pause after each."""

    daemon_threads = False

    def __init__(self, redirect_url: str = "") -> None:
        super().__init__(("127.0.0.1", 0), ProviderHandler)
        self.issuer = f"http://127.0.0.1:{self.server_address[1]}"
        self.redirect_url = redirect_url
        self.client_id = CLIENT_ID
        self.start_anew()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()

    def start_anew(self) -> None:
        """It tells the truth about Ann, and has seen nobody."""
        self.person: dict[str, Any] = dict(ANN)
        self.lies: dict[str, dict[str, Any]] = {}
        self.raw: dict[str, tuple[Iterable[bytes], float]] = {}
        self.emails: list[Any] = []  # of GitHub
        self.repeats_codes = False  # takes a code again and again
        self.codes: dict[str, dict[str, str]] = {}  # what a browser came with, by code
        self.asked: list[tuple[str, dict[str, str]]] = []

    def close(self) -> None:
        """Twice is fine."""
        self.stopping.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side hung up."""

    def told(self, path: str, said: dict[str, Any]) -> dict[str, Any]:
        """What it says at a path, with its lies."""
        return {k: v for k, v in (said | self.lies.get(path, {})).items() if v is not ...}

    def approve(self, url: str) -> dict[str, str]:
        """A reader whom the service has sent here signs in. What their browser comes back with."""
        query = dict(parse_qsl(urlsplit(url).query))
        code = secrets.token_urlsafe(16)
        self.codes[code] = query
        return self.told("back", {"code": code, "state": query["state"], "iss": self.issuer})

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
        }

    def id_token(self, begun: dict[str, str], now: int) -> str:
        claims = {
            "iss": self.issuer,
            "aud": self.client_id,
            "exp": now + 300,
            "iat": now,
            "nonce": begun.get("nonce", ""),
            **self.person,
        }
        return f"{encoded({'alg': 'RS256'})}.{encoded(self.told('id_token', claims))}.c2ln"

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """What the token endpoint says."""
        name, secret = form.get("client_id", ""), form.get("client_secret", "")
        if authorization.startswith("Basic "):
            both = base64.b64decode(authorization.removeprefix("Basic ")).decode()
            assert re.fullmatch("[\\w.%+-]+:[\\w.%+-]+", both)  # encoded (RFC 6749, appendix B)
            name, secret = map(unquote_plus, both.split(":"))
        if (name, secret) != (self.client_id, CLIENT_SECRET):
            return 401, {"error": "invalid_client"}
        assert form["grant_type"] == "authorization_code"
        assert {*form} >= {"code", "redirect_uri", "code_verifier"}
        begun = self.codes.get(form.get("code", ""))
        if begun is None:
            return 400, {"error": "invalid_grant"}
        if not self.repeats_codes:
            del self.codes[form["code"]]
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        assert begun["code_challenge_method"] == "S256"
        if challenge != begun["code_challenge"] or form["redirect_uri"] != begun["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        said = {"access_token": "of-" + form["code"], "token_type": "Bearer"}
        if "openid" in begun["scope"]:
            said["id_token"] = self.id_token(begun, self.now)
        return 200, said

    now = 0  # the clock of the service


class ProviderHandler(BaseHTTPRequestHandler):
    server: Provider
    timeout = 20

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def respond(self, status: int, content: object, **headers: str) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def respond_raw(self, path: str) -> bool:
        """Sends what a test has set for this path. False if that is nothing."""
        if path not in self.server.raw:
            return False
        parts, pause = self.server.raw[path]
        for part in parts:
            self.wfile.write(part)
            if self.server.stopping.wait(pause):
                break
        self.close_connection = True
        return True

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        assert self.headers["Content-Type"] == "application/x-www-form-urlencoded"
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = {name: values[0] for name, values in parse_qs(body, strict_parsing=True).items()}
        self.server.asked.append((path, form))
        if self.respond_raw(path):
            return
        status, said = self.server.exchange(form, self.headers.get("Authorization", ""))
        if path == "/login/oauth/access_token":  # of GitHub, which says 200 of its errors, too
            status = 200
            said = {name: GITHUB_ERRORS.get(value, value) for name, value in said.items()}
        self.respond(status, self.server.told("/token", said))

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.asked.append((parts.path, dict(parse_qsl(parts.query))))
        if self.respond_raw(parts.path):
            return
        is_known = self.headers.get("Authorization", "").startswith("Bearer of-")
        person = self.server.person
        if parts.path in ("/authorize", "/login/oauth/authorize", "/oauth/authorize"):
            self.authorize(parts.query)
        elif parts.path == "/.well-known/openid-configuration":
            self.respond(200, self.server.told(parts.path, self.server.discovery()))
        elif not is_known:
            self.respond(401, {})
        elif parts.path == "/api/v3/user/emails":
            self.respond(200, self.server.emails)
        elif parts.path in ("/userinfo", "/api/v3/user", "/api/v1/accounts/verify_credentials"):
            self.respond(200, self.server.told(parts.path, person))
        else:
            self.respond(404, {})

    def authorize(self, query: str) -> None:
        """A browser is here: whoever it is signs in at once."""
        asked = dict(parse_qsl(query))
        known = self.server.redirect_url
        challenge = (asked["code_challenge_method"], len(asked["code_challenge"]))
        assert (asked["response_type"], challenge) == ("code", ("S256", 43))
        is_whole = asked.get("state") and asked.get("nonce")
        is_client = asked["client_id"] == self.server.client_id
        if not (is_whole and is_client and known in ("", asked["redirect_uri"])):
            self.respond(400, {"error": "invalid_request"})
            return
        back = self.server.approve(self.path)
        self.respond(303, {}, Location=f"{asked['redirect_uri']}?{urlencode(back)}")
