"""Authenticates requests that open a stream, as Django does for its views."""

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

# The Retry-After when a limit is reached.
BUSY_SECONDS: Final = 30
# Sessions that wait for the lookup thread: with more, the database does not answer.
MAX_ARRIVING: Final = 200


class Asker(Protocol):
    """Queries the database for the streams."""

    async def owner_of(self, cookies: dict[str, str]) -> Owner | None: ...
    def begin(self) -> None: ...
    def end(self) -> None: ...


class Refused(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Arrivals:
    """The streams of one application that await admission. Belongs to one event loop."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker
        self._arriving = 0

    async def owner_of(self, scope: Scope) -> Owner:
        """Return the signed-in user. Raises Refused for others, and for pages of other sites."""
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
    """Return the head of an answer."""
    headers = [
        (b"content-type", content_type),
        # A proxy that buffers answers would hold the stream back.
        (b"x-accel-buffering", b"no"),
        *more,
    ]
    if status in {429, 503}:
        headers.append((b"retry-after", b"%d" % BUSY_SECONDS))
    if status == 405:
        headers.append((b"allow", b"GET"))
    return {"type": "http.response.start", "status": status, "headers": headers}


async def left(receive: Receive) -> None:
    """Wait until the browser has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _same_site_cookies(scope: Scope) -> dict[str, str]:
    """Return the cookies of a request from a page of this console, under one of its host names."""
    request = ASGIRequest(scope, io.BytesIO())
    try:
        request.get_host()
    except DisallowedHost:
        raise Refused(400, "this console does not answer to that name") from None
    # A page of another site could open streams with this browser's cookie and exhaust their number;
    # browsers report the origin of a request.
    if request.headers.get("Sec-Fetch-Site", "same-origin") not in {"same-origin", "none"}:
        raise Refused(403, "this address is for pages of this console")
    return dict(request.COOKIES)
