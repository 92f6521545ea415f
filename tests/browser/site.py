"""The console served to a browser by Django's test client, on a port of this machine.

A test makes rows and tells what the collector told, and the browser shows the page of that moment:
states that a running home reaches only after a failure cost as little as the others.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from django.contrib.staticfiles import finders
from django.db import connections
from django.test import Client

# A name of this machine: browsers trust it without TLS, and the console answers to it.
HOST: Final = "localhost"
# Streams of events: the answer of a busy server, after which a page says nothing and tries later.
STREAMS: Final = ("/events", "/messages/stream")
TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
# The client keeps cookies of its own; the server's threads write what concerns the connection.
NOT_PASSED_ON: Final = ("cookie", "connection", "content-length", "host")

Answer = tuple[int, Mapping[str, str], bytes]


class Site:
    """A server that answers what Django's client gets, as one user at a time."""

    def __init__(self) -> None:
        self._ask: Callable[..., Answer] | None = None
        self._server = _Server(self)
        self.base = f"http://{HOST}:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator[None]:
        listening = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        listening.start()
        try:
            yield
        finally:
            self._server.shutdown()
            self._server.server_close()
            listening.join()

    @contextmanager
    def seen_by(self, user: Client) -> Iterator[None]:
        """Answer as this user until the block ends."""
        user.raise_request_exception = False
        # One thread for all connections of the browser, since Django connects to databases in each,
        # and a new one for each test, since it stays connected to them.
        with ThreadPoolExecutor(max_workers=1) as thread:
            self._ask = lambda *asked: thread.submit(self._answer_of, user, *asked).result()
            try:
                yield
            finally:
                self._ask = None
                thread.submit(connections.close_all).result()

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Answer:
        path = urlsplit(target).path
        if path.startswith("/static/"):
            return static(path.removeprefix("/static/"))
        if path in STREAMS or self._ask is None:
            return 503, {}, b""
        return self._ask(method, target, headers, body)

    def _answer_of(
        self, user: Client, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        told = user.generic(
            method,
            target,
            data=body,
            content_type=headers.get("content-type", ""),
            headers={name: text for name, text in headers.items() if name not in NOT_PASSED_ON},
            SERVER_NAME=HOST,
            SERVER_PORT=str(self._server.server_port),
        )
        # What comes in pieces is one piece here.
        return told.status_code, dict(told.items()), told.getvalue()


def static(name: str) -> Answer:
    # Of any app: the page of the interfaces shows what another package brings.
    file = Path(finders.find(name) or "/no/such/file")
    kind = TYPES.get(file.suffix, "application/octet-stream")
    # A browser that has it does not ask for it again, as in production.
    return 200, {"Content-Type": kind, "Cache-Control": "max-age=3600"}, file.read_bytes()


class _Server(ThreadingHTTPServer):
    # Browsers keep connections open that they do not use.
    daemon_threads = True

    def __init__(self, site: Site) -> None:
        super().__init__((HOST, 0), _Handler)
        self.site = site

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Leave it to the test: the browser went away in the middle, or misses an answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def respond(self) -> None:
        headers = {name.lower(): text for name, text in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        status, told, content = self.server.site.answer(self.command, self.path, headers, body)
        self.send_response_only(status)
        for name, text in {**told, "Content-Length": str(len(content))}.items():
            self.send_header(name, text)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_HEAD = respond  # noqa: N815 - names of the standard library

    def log_message(self, *_: object) -> None:
        """Write nothing: pytest shows what fails."""
