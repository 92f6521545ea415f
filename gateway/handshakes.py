"""Checks handshakes of WebSockets, and passes them to the router of their endpoints."""

from collections.abc import Sequence

from gateway import host_names
from gateway.dispatch import is_below, is_own
from gateway.health import Application, Receive, Scope, Send
from gateway.rest.codes import ApiError
from gateway.ws.consumers import NotServed, refuse


class Handshakes:
    """ASGI middleware. `programs` are the prefixes below which programs have their endpoints."""

    def __init__(self, router: Application, *, programs: Sequence[str]) -> None:
        self._router = router
        self._programs = programs

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self._is_of_program(scope):
            await NotServed()(scope, receive, send)
            return
        try:
            host_names.check(scope)
        except ApiError as error:
            await refuse(send, error)
            return
        await self._router(scope, receive, send)

    def _is_of_program(self, scope: Scope) -> bool:
        # Channels removes all slashes at the beginning, and checks of prefixes do not.
        if is_own(scope) or scope["path"].startswith("//"):
            return False
        return any(is_below(scope["path"], prefix) for prefix in self._programs)
