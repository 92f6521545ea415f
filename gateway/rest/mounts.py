"""Maps REST packages to URL prefixes, on the gateway's own port and in the web server.

A package offers `routes(worker)`; it knows the rest of its paths and no prefix.
"""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from gateway.rest.calls import Call, Receive, Scope, Send
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume import routes as consume
from gateway.rest.produce import routes as produce
from gateway.rest.records import routes as records
from gateway.rest.router import NOBODY, Callers, Route, Router, Traffic
from gateway.rest.traffic import PassedTraffic, passed_routes
from gateway.rest.worker import Worker

Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


class Door(Enum):
    """The process that serves."""

    GATEWAY = "the gateway's own port"
    WEB = "the web server, beside the console"


V3: Final = ("/v3", "/kafka/v3")
# Clients of version 2 expect it at the root; on its own port, the console has the root.
V2: Final[Mapping[Door, str]] = {Door.GATEWAY: "", Door.WEB: "/rest"}
# Our own additions to the published interfaces.
OURS: Final[Mapping[Door, str]] = {Door.GATEWAY: "/v1", Door.WEB: "/rest/v1"}
EVENTS: Final = "/sse/v1"
# Calls that another worker of the home passes to this one, which owns their object.
PASSED: Final = "/passed"
# Kafka Connect's REST, which is also at the root of its own port.
CONNECT: Final = "/connect"
# Below these, no path is the console's; at the gateway's own port, none is at all.
PREFIXES: Final[Mapping[Door, Sequence[str]]] = {
    Door.GATEWAY: ("",),
    Door.WEB: (*V3, "/rest", "/ws", "/sse", CONNECT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """The routes of some packages below a prefix."""

    prefix: str
    router: Router


class Mounts:
    """All bare calls of a process. Belongs to one event loop."""

    def __init__(
        self,
        mounts: Sequence[Mount],
        *,
        passed: Mount,
        sockets: Collection[str] = (),
    ) -> None:
        # The longest prefix first: every path is below the root.
        self._mounts = sorted(mounts, key=lambda mount: -len(mount.prefix))
        self._passed = passed
        self._sockets = sockets

    def routes(self) -> list[tuple[str, Route]]:
        """Return all HTTP routes, each with its prefix."""
        return [(mount.prefix, route) for mount in self._mounts for route in mount.router.routes]

    def find(self, scope: Scope) -> Application | None:
        """Return the application of a call; None if Django has to serve it."""
        if scope["path"] in self._sockets:
            return refuse_plain
        for mount in self._mounts:
            if (application := found(mount, scope)) is not None:
                return application
        return None

    def find_own(self, scope: Scope) -> Application:
        """Return the application of a call on the worker's own socket."""
        return found(self._passed, scope) or refuse_own


def found(mount: Mount, scope: Scope) -> Application | None:
    hit = mount.router.find(scope, under=mount.prefix)
    if hit is None:
        return None
    route, parameters = hit

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await mount.router.serve(route, parameters, scope, receive, send)

    return serve


async def refuse_plain(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer an HTTP call to a WebSocket address, which serves only handshakes."""
    call = Call(scope, receive, send, caller=NOBODY, cluster_id="", parameters={})
    error = ApiError(
        Code.NEEDS_SOCKET, f"{scope['path']} speaks WebSocket: open a socket there, at ws or wss"
    )
    told = [("Upgrade", "websocket")]
    await call.answer(error.code.status, error.body(), headers=told)


async def refuse_own(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse other calls on the own socket, which is for calls that are passed on."""
    call = Call(scope, receive, send, caller=NOBODY, cluster_id="", parameters={})
    await call.fail(ApiError(Code.NOT_FOUND, f"{scope['path']} is not served on this socket"))


def mounts(worker: Worker, door: Door, *, sockets: Collection[str] = ()) -> Mounts:
    """Return the mounts of a process. A new package adds itself to one of these rows.

    `sockets` are the paths of WebSockets, which refuse calls.
    """
    writes = produce.Room(worker)
    v3: list[Route] = [*writes.v3()]
    consumers = consume.Room(worker, passed_prefix=PASSED)
    v2: list[Route] = [*writes.v2(), *consumers.routes()]
    reads = records.routes(worker)
    ours = [*reads.ours]
    return Mounts(
        [
            *(_mount(worker, prefix, v3) for prefix in V3),
            _mount(worker, V2[door], v2),
            _mount(worker, OURS[door], ours),
            _mount(worker, EVENTS, reads.events),
        ],
        passed=_mount(
            worker,
            PASSED,
            [*consumers.passed_routes(), *passed_routes(worker.traffic)],
            callers=worker.passed_callers,
            traffic=PassedTraffic(worker.traffic),
        ),
        sockets=sockets,
    )


def _mount(
    worker: Worker,
    prefix: str,
    routes: Sequence[Route],
    *,
    callers: Callers | None = None,
    traffic: Traffic | None = None,
) -> Mount:
    router = Router(
        routes,
        callers=callers or worker.callers,
        traffic=traffic or worker.traffic,
        cluster_id=lambda: worker.cluster_id,
    )
    return Mount(prefix=prefix, router=router)
