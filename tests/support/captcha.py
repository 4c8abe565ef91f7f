"""A server that judges captchas as those of Turnstile, hCaptcha and reCAPTCHA do."""

import json
import select
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

from support.local_servers import LocalHTTPServer
from support.mail import tls

HOST, ORIGIN = "blog.example", "https://blog.example"
SECRET, SITE_KEY = "0xSecretOfTheBlog-5581", "site-key-of-the-blog"

# A kind: its provider, what it says of a token beside the host, how it words that one is spent.
KINDS: dict[str, tuple[str, dict[str, Any], str]] = {
    "turnstile": (
        "turnstile",
        {"error-codes": [], "action": "commentd", "cdata": "", "metadata": {"interactive": False}},
        "timeout-or-duplicate",
    ),
    "hcaptcha": ("hcaptcha", {"credit": False}, "already-seen-response"),
    "recaptcha 2": ("recaptcha", {}, "timeout-or-duplicate"),
    "recaptcha 3": ("recaptcha", {"score": 0.9, "action": "commentd"}, "timeout-or-duplicate"),
}


class Siteverify(LocalHTTPServer):
    """The provider: it issues tokens, and tells once whether one is good."""

    daemon_threads = False  # so that closing waits for all that it does
    PATH = "/api/siteverify"

    def __init__(self, kind: str, certificate: tuple[str, str] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), SiteverifyHandler)
        if certificate:
            self.socket = tls(certificate).wrap_socket(self.socket, server_side=True)
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server_address[1]}{self.PATH}"
        self.kind, self.secret, self.site_key = kind, SECRET, SITE_KEY
        self.issued: dict[str, dict[str, Any]] = {}
        self.used: set[str] = set()
        self.forgets = False  # says yes to a token again and again
        self.asked: list[dict[str, str]] = []
        self.connections = self.sent = self.busy = 0
        # What is said to a token, or to all, instead: the parts, and the pause after each.
        self.script: dict[str, tuple[list[bytes], float]] = {}
        self.lock, self.gate = threading.Lock(), threading.Event()
        self.gate.set()
        self.start()

    def stop(self) -> None:
        self.gate.set()
        super().stop()

    close = stop

    def verify_request(self, request: Any, client_address: Any) -> bool:
        self.connections += 1
        return super().verify_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self.lock:
            self.busy += 1
        super().process_request_thread(request, client_address)
        with self.lock:
            self.busy -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side hung up."""

    def issue(self, **wishes: Any) -> str:
        """A token that was solved, with what the provider knows of it; `...` is not said."""
        known = {"challenge_ts": "2026-11-18T11:06:30Z", "hostname": HOST, **KINDS[self.kind][1]}
        token = f"token-{len(self.issued)}-of-a-reader"
        self.issued[token] = {k: v for k, v in (known | wishes).items() if v is not ...}
        return token

    def verdict(self, form: dict[str, str]) -> dict[str, Any]:
        token, error = form.get("response", ""), ""
        with self.lock:
            if form.get("secret") != self.secret:
                error = "invalid-input-secret" if form.get("secret") else "missing-input-secret"
            elif not token:
                error = "missing-input-response"
            elif form.get("sitekey", self.site_key) != self.site_key:
                error = "sitekey-secret-mismatch"
            elif token not in self.issued:
                error = "invalid-input-response"
            elif token in self.used and not self.forgets:
                error = KINDS[self.kind][2]
            self.used.add(token)
        if error:
            return {"success": False, "error-codes": [error]}
        return {"success": True, **self.issued[token]}


class SiteverifyHandler(BaseHTTPRequestHandler):
    server: Siteverify
    timeout = 20

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode("ascii")
        fields = parse_qs(body, keep_blank_values=True, strict_parsing=True)
        form = {name: value for name, (value,) in fields.items()}
        kind = self.headers["Content-Type"]
        if self.path != Siteverify.PATH or kind != "application/x-www-form-urlencoded":
            self.send_error(400)
            return
        self.server.asked.append(form)
        while not self.server.gate.wait(0.5):
            self.connection.sendall(CONTINUE)  # silence would end it
        script = self.server.script.get(form["response"]) or self.server.script.get("all")
        parts, pause = script or ([reply(self.server.verdict(form))], 0)
        for part in parts:
            self.connection.sendall(part)
            self.server.sent += len(part)
            if pause and select.select([self.connection], [], [], pause)[0]:
                return  # nothing more is expected of them: they hung up


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def reply(body: Any, *headers: str, status: str = "200 OK", chunked: bool = False) -> bytes:
    """An answer as it goes over the wire."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    size = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(text)}"
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", size, *headers, "", ""]
    return "\r\n".join(lines).encode() + text
