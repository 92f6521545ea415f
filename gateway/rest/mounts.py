"""Where each room of REST is: at which prefix, on the gateway's own port and in the web server.

A room offers `routes(worker)`; it knows the rest of its addresses and no prefix.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from gateway.rest.calls import Call, Receive, Scope, Send
from gateway.rest.codes import ApiError, Code
from gateway.rest.consume import routes as consume
from gateway.rest.home_traffic import told_routes
from gateway.rest.produce import routes as produce
from gateway.rest.records import routes as records
from gateway.rest.router import NOBODY, Callers, Route, Router, Traffic
from gateway.rest.traffic import PassedTraffic
from gateway.rest.worker import Worker

Application = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]


class Door(Enum):
    """Which process serves."""

    GATEWAY = "the gateway's own port"
    WEB = "the web server, beside the console"


V3: Final = ("/v3", "/kafka/v3")
# Version 2 is at the root where clients of it expect it; the console has the root of its own port.
V2: Final[Mapping[Door, str]] = {Door.GATEWAY: "", Door.WEB: "/rest"}
# What is ours beside the published interfaces.
OURS: Final[Mapping[Door, str]] = {Door.GATEWAY: "/v1", Door.WEB: "/rest/v1"}
EVENTS: Final = "/sse/v1"
# What another worker of the home was asked and hands to this one, which owns what it is about.
PASSED: Final = "/passed"
# Kafka Connect's REST, whose addresses are at the root of a port of its own too.
CONNECT: Final = "/connect"
# Below these nothing is the console's; at the gateway's own port nothing is.
PREFIXES: Final[Mapping[Door, Sequence[str]]] = {
    Door.GATEWAY: ("",),
    Door.WEB: (*V3, "/rest", "/ws", "/sse", CONNECT),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """The routes of some rooms below a prefix."""

    prefix: str
    router: Router


class Mounts:
    """All bare calls of a process. Belongs to one event loop."""

    def __init__(
        self,
        mounts: Sequence[Mount],
        *,
        passed: Mount,
        sockets: Mapping[str, Application] | None = None,
    ) -> None:
        # The longest prefix first: at the root everything is below it.
        self._mounts = sorted(mounts, key=lambda mount: -len(mount.prefix))
        self._passed = passed
        self._sockets = sockets or {}

    def routes(self) -> list[tuple[str, Route]]:
        """Return all calls over HTTP, each with its prefix."""
        return [(mount.prefix, route) for mount in self._mounts for route in mount.router.routes]

    def find(self, scope: Scope) -> Application | None:
        """Return who serves a call; None where it is Django's, or nobody's."""
        if scope["type"] == "websocket":
            return self._sockets.get(scope["path"])
        if scope["type"] != "http":
            return None
        if scope["path"] in self._sockets:
            return refuse_plain
        for mount in self._mounts:
            if (application := found(mount, scope)) is not None:
                return application
        return None

    def find_own(self, scope: Scope) -> Application:
        """Return who serves a call that came by the worker's own socket."""
        application = found(self._passed, scope) if scope["type"] == "http" else None
        return application or refuse_own


def found(mount: Mount, scope: Scope) -> Application | None:
    hit = mount.router.find(scope, under=mount.prefix)
    if hit is None:
        return None
    route, parameters = hit

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        await mount.router.serve(route, parameters, scope, receive, send)

    return serve


async def refuse_plain(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a call to an address of sockets, which speaks no HTTP but the handshake."""
    call = Call(scope, receive, send, caller=NOBODY, cluster_id="", parameters={})
    error = ApiError(
        Code.NEEDS_SOCKET, f"{scope['path']} speaks WebSocket: open a socket there, at ws or wss"
    )
    told = [("Upgrade", "websocket")]
    await call.answer(error.code.status, error.body(), headers=told)


async def refuse_own(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer what the own socket does not serve: it is for calls that are passed on."""
    if scope["type"] == "http":
        call = Call(scope, receive, send, caller=NOBODY, cluster_id="", parameters={})
        await call.fail(ApiError(Code.NOT_FOUND, f"{scope['path']} is not served on this socket"))
    else:
        await send({"type": "websocket.close", "code": 1000})


def mounts(
    worker: Worker, door: Door, *, sockets: Mapping[str, Application] | None = None
) -> Mounts:
    """Return all rooms where they are in a process. A room adds itself to one of these rows.

    `sockets` are by address, the same behind both doors.
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
            [*consumers.passed_routes(), *told_routes(worker)],
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
