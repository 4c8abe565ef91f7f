"""Servers in a thread of this process that wait for nothing: neither while they serve nor when they
stop. Python's `serve_forever` looks again and again whether it is to stop, and `shutdown` waits
until it does."""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import Any, TypeVar


class LocalServer(socketserver.TCPServer):
    is_over = False

    def start(self) -> None:
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while not self.is_over:
            self.handle_request()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return not self.is_over  # the last connection is our own

    def stop(self) -> None:
        """Once it has started. Twice is fine."""
        if self.is_over:
            return
        self.is_over = True
        host, port = self.socket.getsockname()[:2]
        socket.create_connection((host, port)).close()  # `serve` waits for one
        self.thread.join()
        self.server_close()


class LocalHTTPServer(LocalServer, ThreadingHTTPServer):
    """With a thread for each connection."""


S = TypeVar("S", bound=LocalServer)


@contextmanager
def served(server: S) -> Iterator[S]:
    """From now on it serves, and stops in the end."""
    server.start()
    try:
        yield server
    finally:
        server.stop()
