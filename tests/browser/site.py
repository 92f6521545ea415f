"""The console served to a browser by Django's test client, without a web server.

A test makes rows and tells what the collector told, and the browser shows the page of that moment:
states that a running home reaches only after a failure cost as little as the others.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from django.contrib.staticfiles import finders
from django.db import connections
from django.http import HttpResponse
from django.test import Client
from playwright.sync_api import BrowserContext, Request, Route

# A name of this machine: browsers trust it without TLS, and the console answers to it.
HOST: Final = "localhost"
BASE: Final = f"http://{HOST}"
# Streams of events: the answer of a busy server, after which a page says nothing and tries later.
STREAMS: Final = ("/events", "/messages/stream")
TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@contextmanager
def served(context: BrowserContext, user: Client) -> Iterator[None]:
    """Answer what a browser context asks of BASE as one user, until the block ends."""
    user.raise_request_exception = False
    # Playwright calls from one greenlet after the other, and Django would connect for each of them.
    with ThreadPoolExecutor(max_workers=1) as thread:
        context.route(f"{BASE}/**", lambda route, asked: answer(route, asked, user, thread))
        try:
            yield
        finally:
            context.unroute_all(behavior="wait")
            thread.submit(connections.close_all).result()


def answer(route: Route, asked: Request, user: Client, thread: ThreadPoolExecutor) -> None:
    path = urlsplit(asked.url).path
    if path.startswith("/static/"):
        # Of any app: the page of the interfaces shows what another package brings.
        file = Path(finders.find(path.removeprefix("/static/")) or "/no/such/file")
        kind = TYPES.get(file.suffix, "application/octet-stream")
        route.fulfill(body=file.read_bytes(), content_type=kind)
    elif path in STREAMS:
        route.fulfill(status=503)
    else:
        told = thread.submit(ask, user, asked).result()
        route.fulfill(status=told.status_code, headers=dict(told.items()), body=told.getvalue())


def ask(user: Client, asked: Request) -> HttpResponse:
    headers = {name: value for name, value in asked.headers.items() if name != "cookie"}
    told = user.generic(
        asked.method,
        asked.url.removeprefix(BASE),
        data=asked.post_data_buffer or b"",
        content_type=headers.get("content-type", ""),
        headers=headers,
        SERVER_NAME=HOST,
    )
    # What comes in pieces is one piece here.
    return HttpResponse(told, status=told.status_code, headers=dict(told.items()))
