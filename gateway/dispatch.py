"""Sends requests past Django to bare ASGI applications, by their path.

For calls that Django cannot serve: an answer that stays open would occupy one of its threads, and
an endless body would never reach a view.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from gateway.health import Application, Message, Receive, Scope, Send
from gateway.middleware import HEADERS, UNLESS_SAID
from gateway.rest.calls import JSON, BrokenOff, too_large
from gateway.rest.codes import ApiError, Code

# The largest form of the console, and the largest body of a REST view, have a megabyte.
MAX_BODY_BYTES: Final = 8 * 1024 * 1024
# The time in which such a body must arrive.
BODY_SECONDS: Final = 60.0


class Calls(Protocol):
    """The programmatic calls."""

    def find(self, scope: Scope) -> Application | None:
        """Return the application of a request; None if Django serves it."""
        ...

    def find_own(self, scope: Scope) -> Application:
        """Return the application of a request on the process's own socket."""
        ...


class Dispatch:
    """An ASGI application.

    `bare` is by path. Below the prefixes in `quoted`, Django gets the path as it was sent, so that
    an escaped slash (`a%2Fb`) stays in its name; the views unquote it.
    """

    def __init__(
        self,
        bare: Mapping[str, Application],
        *,
        calls: Calls,
        quoted: Sequence[str] = (),
        otherwise: Application,
    ) -> None:
        self._bare = bare
        self._calls = calls
        self._quoted = quoted
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_http = scope["type"] == "http"
        if is_own(scope):
            application: Application | None = self._calls.find_own(scope)
        elif is_http and scope["path"] in self._bare:
            application = self._bare[scope["path"]]
        else:
            application = self._calls.find(scope)
        if application is not None:
            await application(scope, receive, with_headers(send) if is_http else send)
        elif is_http:
            await self._within(self._as_sent(scope), receive, send)
        else:
            # No WebSocket is served there: a handshake that is closed is answered with 403.
            await send({"type": "websocket.close", "code": 1000})

    async def _within(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve by Django, which writes a body to disk before a view authenticates its sender.

        A refused body looks like a disconnect to Django, which then frees its resources.
        """
        taken = 0
        is_whole = False
        refused: ApiError | None = None
        loop = asyncio.get_running_loop()
        end = loop.time() + BODY_SECONDS

        async def counted() -> Message:
            nonlocal taken, is_whole, refused
            # After the body, only the client's disconnect can follow.
            try:
                async with asyncio.timeout_at(None if is_whole else end):
                    message = await receive()
            except TimeoutError:
                refused = ApiError(
                    Code.TIMED_OUT,
                    f"the body did not arrive within {BODY_SECONDS:g} s: send it again",
                )
                return {"type": "http.disconnect"}
            taken += len(message.get("body", b""))
            is_whole = not message.get("more_body")
            if taken > MAX_BODY_BYTES:
                refused = too_large(taken, MAX_BODY_BYTES)
                return {"type": "http.disconnect"}
            return message

        with suppress(BrokenOff):
            # The server closes a connection whose answer has no end.
            await self._otherwise(scope, counted, send)
        if refused is not None:
            head: dict[str, Any] = {"type": "http.response.start", "status": refused.code.status}
            head["headers"] = [(b"content-type", JSON.encode())]
            await with_headers(send)(head)
            await send({"type": "http.response.body", "body": refused.body()})

    def _as_sent(self, scope: Scope) -> Scope:
        path: str = scope["path"]
        raw: bytes | None = scope.get("raw_path")
        if raw is None or not any(is_below(path, prefix) for prefix in self._quoted):
            return scope
        return {**scope, "path": raw.partition(b"?")[0].decode("latin-1")}


def is_own(scope: Scope) -> bool:
    """Tell whether a request arrived on the process's own socket, which only its user can open."""
    server = scope.get("server")
    # A unix socket has a path and no port.
    return server is not None and server[1] is None


def is_below(path: str, prefix: str) -> bool:
    return not prefix or path == prefix or path.startswith(f"{prefix}/")


def with_headers(send: Send) -> Send:
    """Add the headers of every answer, which Django's middleware adds to Django's own."""
    added = [
        (name.lower().encode(), value.encode())
        for name, value in {**HEADERS, **UNLESS_SAID}.items()
    ]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return send_with_headers
