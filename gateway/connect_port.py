"""Serves Kafka Connect's REST at the root of a port of its own, where its tools look for it.

One more socket of the web server instead of a process: what comes there gets the prefix that the
same addresses have beside the console.
"""

from gateway.health import Application, Receive, Scope, Send
from gateway.rest.mounts import CONNECT

# Says in the scope of a call that it came by this port, so that addresses in its answer fit.
AT_ROOT = "samsa.connect"


class ConnectPort:
    """An ASGI application around another one."""

    def __init__(self, application: Application) -> None:
        self._application = application
        # Of the socket; 0 where there is none.
        self.port = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        server = scope.get("server")
        if self.port and server is not None and server[1] == self.port:
            scope = moved(scope)
        await self._application(scope, receive, send)


def moved(scope: Scope) -> Scope:
    """Return a call at the root as the same call below the prefix."""
    raw = scope.get("raw_path")
    found = {**scope, "path": f"{CONNECT}{scope['path']}", AT_ROOT: True}
    if raw is not None:
        found["raw_path"] = CONNECT.encode() + raw
    return found
