"""Sends requests past Django to bare ASGI applications, by their path.

For what Django cannot serve: an answer that stays open would hold one of its threads.
"""

from collections.abc import Mapping

from gateway.health import Application, Message, Receive, Scope, Send
from gateway.middleware import HEADERS, UNLESS_SAID


class Dispatch:
    """An ASGI application."""

    def __init__(self, bare: Mapping[str, Application], *, otherwise: Application) -> None:
        self._bare = bare
        self._otherwise = otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        application = self._bare.get(scope["path"]) if scope["type"] == "http" else None
        if application is None:
            await self._otherwise(scope, receive, send)
        else:
            await application(scope, receive, with_headers(send))


def with_headers(send: Send) -> Send:
    """Add the headers of every answer, which Django's middleware adds to its own."""
    added = [
        (name.lower().encode(), value.encode())
        for name, value in {**HEADERS, **UNLESS_SAID}.items()
    ]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return send_with_headers
