"""Checks handshakes of WebSockets, and passes them to the router of their endpoints."""

from collections.abc import Sequence

from gateway import host_names
from gateway.dispatch import is_of_program
from gateway.health import Application, Receive, Scope, Send
from gateway.rest.codes import ApiError
from gateway.ws.consumers import NotServed, refuse


class Handshakes:
    """ASGI middleware. `programs` are the prefixes below which programs have their endpoints."""

    def __init__(self, router: Application, *, programs: Sequence[str]) -> None:
        self._router = router
        self._programs = programs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Channels removes all slashes at the beginning, and checks of prefixes do not.
        is_plain = not scope["path"].startswith("//")
        if not (is_plain and is_of_program(scope, self._programs)):
            await NotServed()(scope, receive, send)
            return
        try:
            host_names.check(scope)
        except ApiError as error:
            await refuse(send, error)
            return
        await self._router(scope, receive, send)
