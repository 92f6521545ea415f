"""Identifies who opens a stream, as Django does for its views."""

import io
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIRequest
from django.db import Error

from console.events.hub import Owner

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

# What a browser is told to wait where a limit is reached.
BUSY_SECONDS: Final = 30
# Sessions that wait for the thread that looks them up: with more, the database does not answer.
MAX_ARRIVING: Final = 200


class Asker(Protocol):
    """Asks the database for the streams."""

    async def owner_of(self, cookies: dict[str, str]) -> Owner | None: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...


class Refused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Arrivals:
    """The streams of one application that wait to be let in. Belongs to one event loop."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._arriving = 0

    async def owner_of(self, scope: Scope) -> Owner:
        """Return who is signed in; Refused for everybody else, and for pages of other sites."""
        cookies = _same_site_cookies(scope)
        if self._arriving >= MAX_ARRIVING:
            raise Refused(503, f"{MAX_ARRIVING} streams wait for the database already")
        self._arriving += 1
        try:
            owner = await self._asker.owner_of(cookies)
        except Error:
            raise Refused(503, "the database does not answer") from None
        finally:
            self._arriving -= 1
        if owner is None:
            raise Refused(401, "sign in first")
        return owner


def head(status: int, content_type: bytes, *more: tuple[bytes, bytes]) -> dict[str, Any]:
    """Return how an answer begins."""
    headers = [
        (b"content-type", content_type),
        # A proxy that collects an answer would keep a stream to itself.
        (b"x-accel-buffering", b"no"),
        *more,
    ]
    if status in {429, 503}:
        headers.append((b"retry-after", b"%d" % BUSY_SECONDS))
    if status == 405:
        headers.append((b"allow", b"GET"))
    return {"type": "http.response.start", "status": status, "headers": headers}


async def left(receive: Receive) -> None:
    """Wait until the browser is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _same_site_cookies(scope: Scope) -> dict[str, str]:
    """Return the cookies of a request from a page of this console, made by one of its names."""
    request = ASGIRequest(scope, io.BytesIO())
    try:
        request.get_host()
    except DisallowedHost:
        raise Refused(400, "this console does not answer to that name") from None
    # Another site's page could open streams with this browser's cookie and use up their number;
    # browsers say where a request comes from.
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        raise Refused(403, "this address is for pages of this console")
    return dict(request.COOKIES)
