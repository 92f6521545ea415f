"""A web server that notes what it is asked, and answers what a test has said."""

import ssl
import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR, socket
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    method: str
    target: str
    headers: Mapping[str, str]  # by name in lower case
    body: bytes


class WebServer:
    """Answers 200 and nothing, unless `answer` has put something else into the queue."""

    def __init__(self, *, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Asked] = []
        self.connections = 0
        self._answers: deque[tuple[int, bytes, Mapping[str, str]]] = deque()
        self._open: list[socket] = []
        self._server = _Server(self, tls)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self.close_connections()
        self._server.server_close()
        self._thread.join()

    def answer(
        self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        """Give this answer once, after those that wait already."""
        self._answers.append((status, body, headers or {}))

    def close_connections(self) -> None:
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)
        self._open.clear()

    def opened(self, connection: socket) -> None:
        self.connections += 1
        self._open.append(connection)

    def reply(self, asked: Asked) -> tuple[int, bytes, Mapping[str, str]]:
        self.requests.append(asked)
        return self._answers.popleft() if self._answers else (200, b"", {})


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, owner: WebServer, tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner
        self.tls = tls

    def finish_request(self, request: Any, client_address: Any) -> None:
        connection = request
        if self.tls is not None:
            try:
                connection = self.tls.wrap_socket(request, server_side=True)
            except OSError:
                # The client did not trust the certificate.
                return
        self.owner.opened(connection)
        with suppress(ConnectionError):
            super().finish_request(connection, client_address)
        connection.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        asked = Asked(
            method=self.command,
            target=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=self.rfile.read(length),
        )
        status, body, headers = self.server.owner.reply(asked)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
        """Say nothing: the test knows what it asked."""
