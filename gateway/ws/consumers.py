"""Serves the endpoints of WebSockets as consumers of Channels, one class for each.

Each replaces the `__call__` of `AsyncConsumer`, which would switch to a thread for every frame, and
create a channel for every socket.
"""

from collections.abc import Callable

from channels.consumer import AsyncConsumer

from gateway.rest.calls import Receive, Scope, Send
from gateway.rest.codes import ApiError
from gateway.ws.endpoint import Sockets
from gateway.ws.frames import PROTOCOL


class Endpoint(AsyncConsumer):
    """`/ws/v1`: authenticates a handshake, accepts it, and runs the connection."""

    def __init__(self, sockets: Callable[[], Sockets]) -> None:
        self._sockets = sockets

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (await receive())["type"] != "websocket.connect":
            return
        try:
            sockets = self._sockets()
            caller = await sockets.admit(scope)
        except ApiError as error:
            await refuse(send, error)
            return
        chosen = PROTOCOL if PROTOCOL in scope.get("subprotocols", ()) else None
        await send({"type": "websocket.accept", "subprotocol": chosen})
        await sockets.run(scope, receive, send, caller)


class NotServed(AsyncConsumer):
    """Every other path: closes the handshake, which the server answers with 403."""

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": 1000})


async def refuse(send: Send, error: ApiError) -> None:
    """Refuse a handshake with an HTTP answer."""
    headers = [(b"content-type", b"application/json")]
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(error.retry_after_s).encode()))
    await send(
        {
            "type": "websocket.http.response.start",
            "status": error.code.status,
            "headers": headers,
        }
    )
    await send({"type": "websocket.http.response.body", "body": error.body()})
