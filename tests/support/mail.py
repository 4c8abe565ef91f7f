"""Mail servers: one that keeps to the rules and one with a script; emails as they arrive."""

import re
import shutil
import socket
import socketserver
import sqlite3
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from commentd import App
from support import inside
from support.local_servers import LocalServer
from support.world import read, text_of

HEADERS = [
    "Message-ID",
    "From",
    "To",
    "Subject",
    "Date",
    "Auto-Submitted",
    "MIME-Version",
    "Content-Type",
]

NEWS_HEADERS = [*HEADERS, "In-Reply-To", "References"]
UNSUBSCRIBE = ["List-Unsubscribe", "List-Unsubscribe-Post"]


def outbox(app: App) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(inside.database_path(app))) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute("SELECT * FROM outbox ORDER BY id")]


def code_in(message: str | bytes) -> str:
    return code_of(text_of(read(message)))


def code_of(text: str) -> str:
    found = re.search(r"^ {4}(\d{6})\b", text, re.M)
    assert found
    return found[1]


class MailServer(Controller):
    """On a port that the system chose; keeps what it is handed, and how."""

    def __init__(self, **how: Any) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.emails: list[Any] = []
        self.logins: list[tuple[bytes, bytes]] = []
        self.password = b"geheim"
        self.secure: list[bool] = []
        self.goodbyes = 0
        super().__init__(
            self,
            hostname="127.0.0.1",
            port=self.socket.getsockname()[1],
            server_hostname="mail.example",
            authenticator=self.authenticate,
            **how,
        )

    def _create_server(self) -> Any:
        return self.loop.create_server(
            self._factory_invoker, sock=self.socket, ssl=self.ssl_context
        )

    def authenticate(self, server: Any, session: Any, envelope: Any, kind: str, pair: Any) -> Any:
        self.logins.append((pair.login, pair.password))
        return AuthResult(success=pair.password == self.password, handled=False)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.emails.append(envelope)
        self.secure.append(session.ssl is not None)
        return "250 OK"

    async def handle_QUIT(self, server: Any, session: Any, envelope: Any) -> str:
        self.goodbyes += 1
        return "221 Bye"


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[str, str]]:
    """A self-signed certificate for a name, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not there to make a certificate")
    folder = tmp_path_factory.mktemp("certificates")

    def made(name: str) -> tuple[str, str]:
        paths = [str(folder / f"{name.replace(':', '-')}.{kind}") for kind in ("pem", "key")]
        if not Path(paths[0]).exists():
            form = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x"
            usage = "keyUsage=critical,digitalSignature,keyCertSign"
            files = ["-out", paths[0], "-keyout", paths[1]]
            names = ["-addext", f"subjectAltName={name}", "-addext", usage]
            command = [openssl, *form.split(), *files, *names]
            subprocess.run(command, check=True, capture_output=True)
        return paths[0], paths[1]

    return made


def tls(certificate: tuple[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture
def start_mail_server() -> Iterator[Callable[..., MailServer]]:
    mail_servers: list[MailServer] = []

    def start(**how: Any) -> MailServer:
        mail_servers.append(MailServer(**how))
        mail_servers[-1].start()
        return mail_servers[-1]

    yield start
    for mail_server in mail_servers:
        mail_server.stop()


class MailSession(socketserver.StreamRequestHandler):
    server: "ScriptedMailServer"

    def handle(self) -> None:
        self.server.calls += 1
        if not self.answer("CONNECT", "220 mail.example"):
            return
        while line := self.rfile.readline().decode("latin-1").strip():
            self.server.said.append(line)
            verb = line.split()[0].upper()
            reply = self.answer(verb, self.usual(verb), line)
            if verb == "DATA" and reply.startswith("354"):
                reply = self.take_email()
            if not reply or verb == "QUIT":
                return

    def usual(self, verb: str) -> str:
        return {"DATA": "354 go on", "QUIT": "221 bye"}.get(verb, "250 ok")

    def take_email(self) -> str:
        lines = []
        while (line := self.rfile.readline()) not in (b"", b".\r\n"):
            lines.append(line)
        self.server.emails.append(b"".join(lines))
        return self.answer("DOT", "250 kept")

    def answer(self, step: str, usual: str, line: str = "") -> str:
        """What was said; "" when the conversation is over, which an empty reply ends too."""
        reply = self.server.script.get(step, usual)
        reply = reply(line) if callable(reply) else reply
        if reply == "silence":
            self.connection.recv(1)  # until the other side has had enough
            return ""
        self.wfile.write(f"{reply}\r\n".encode(errors="surrogateescape") if reply else b"")
        return "" if reply.startswith("421") else reply  # RFC 5321, 3.8: 421 hangs up


# What is replied at a step, or made of what was said there.
Script = dict[str, str | Callable[[str], str]]


class ScriptedMailServer(LocalServer, socketserver.ThreadingTCPServer):
    """A mail server with a script: what it replies at a step, else the usual."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), MailSession, bind_and_activate=False)
        self.server_bind()  # connections are refused until it listens
        self.port = self.server_address[1]
        self.script: Script = {}
        self.calls, self.closing, self.is_open = 0, threading.Event(), False
        self.said: list[str] = []
        self.emails: list[bytes] = []

    def open(self) -> None:
        self.server_activate()
        self.is_open = True
        self.start()

    def close(self) -> None:
        self.closing.set()
        if self.is_open:
            self.stop()
        self.server_close()

    def recipients(self) -> list[str]:
        return [str(read(each)["To"]) for each in self.emails]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The other side hung up."""
