"""A door of bare calls for tests: one caller, and a client that sends while it reads."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role
from gateway.rest.calls import Call, Scope
from gateway.rest.codes import ApiError, Code
from gateway.rest.route import Route
from gateway.rest.router import Router
from tests.fakes.asgi import Answer, asked, scope_of

CLUSTER = "cluster-1"
WAIT_S = 30
WRITER = Caller(
    kind=CallerKind.TOKEN, name="writer", rights=Rights([Grant(role=Role.ADMIN)]), number=1
)
VIEWER = Caller(
    kind=CallerKind.TOKEN, name="viewer", rights=Rights([Grant(role=Role.VIEWER)]), number=2
)


class Known:
    """Lets everybody in as one caller."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        # Why its streams end, as soon as that is told.
        self.revoked: asyncio.Queue[ApiError] = asyncio.Queue()

    async def of(self, scope: Scope) -> Caller:
        return self.caller

    async def watch(self, _caller: Caller, _holds: Callable[[Caller], bool]) -> ApiError:
        return await self.revoked.get()


class Counted:
    def __init__(self) -> None:
        self.calls: list[Call] = []

    def begin(self, call: Call) -> None:
        """Only what is over is kept."""

    def count(self, call: Call) -> None:
        self.calls.append(call)


class Door:
    """Serves routes to one caller."""

    def __init__(self, routes: Sequence[Route], *, caller: Caller = WRITER) -> None:
        self.callers = Known(caller)
        self.traffic = Counted()
        self._router = Router(
            routes, callers=self.callers, traffic=self.traffic, cluster_id=lambda: CLUSTER
        )

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        found = self._router.find(scope)
        if found is None:
            raise ApiError(Code.NOT_FOUND, scope["path"])
        route, parameters = found
        await self._router.serve(route, parameters, scope, receive, send)

    async def post(
        self, path: str, body: object, *, content_type: str = "application/json"
    ) -> Answer:
        """Send a whole body; bytes as they are, other values as JSON."""
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": content_type, "Content-Length": str(len(text))}
        answer = await asked(self, "POST", path, body=[text], headers=headers)
        assert answer is not None
        return answer


class Duplex:
    """A client that sends pieces when it likes, and reads what has come by then."""

    def __init__(self, door: Door, path: str, headers: Mapping[str, str] | None = None) -> None:
        self._coming: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._text = b""
        self._arrived = asyncio.Event()
        # A client that does not read; what is written waits for it.
        self.reads = asyncio.Event()
        self.reads.set()
        self.status = 0
        self.is_ended = False
        self._scope = scope_of(
            "POST", path, {"Content-Type": "application/json", **(headers or {})}
        )
        self._door = door

    async def __aenter__(self) -> Self:
        self.serving = asyncio.create_task(self._door(self._scope, self._coming.get, self._send))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.leave()
        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(self.serving, return_exceptions=True)

    def send(self, piece: bytes, *, is_last: bool = False) -> None:
        self._coming.put_nowait({"type": "http.request", "body": piece, "more_body": not is_last})

    def leave(self) -> None:
        self._coming.put_nowait({"type": "http.disconnect"})

    @property
    def unread(self) -> int:
        """Return how many pieces nobody has taken."""
        return self._coming.qsize()

    async def taken(self) -> None:
        """Return when all pieces are taken."""
        async with asyncio.timeout(WAIT_S):
            # A queue has no event for it.
            while self.unread:  # noqa: ASYNC110
                await asyncio.sleep(0)

    async def receipts(self, count: int) -> list[dict[str, Any]]:
        """Return the next receipts, when so many are there."""
        async with asyncio.timeout(WAIT_S):
            while self._text.count(b"\r\n") < count:
                await self._moved()
        *lines, self._text = self._text.split(b"\r\n", count)
        return [json.loads(line) for line in lines]

    async def rest(self) -> list[dict[str, Any]]:
        """Return all receipts until the answer ends."""
        async with asyncio.timeout(WAIT_S):
            await asyncio.shield(self.serving)
        lines, self._text = self._text.split(b"\r\n"), b""
        return [json.loads(line) for line in lines if line]

    async def _moved(self) -> None:
        assert not self.serving.done(), f"the answer has ended with {self._text!r}"
        self._arrived.clear()
        waiting = asyncio.create_task(self._arrived.wait())
        await asyncio.wait({waiting, self.serving}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()

    async def _send(self, message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        await self.reads.wait()
        self._text += message["body"]
        self.is_ended = not message.get("more_body")
        self._arrived.set()
