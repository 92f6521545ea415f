"""Serves the bare calls of the table of routes in one process."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from gateway.rest.calls import Application, Call, Receive, Scope, Send
from gateway.rest.codes import ApiError, Code
from gateway.rest.route import Door
from gateway.rest.router import NOBODY, Callers, Router, Traffic, bound
from gateway.rest.table import PASSED_ROUTES, Below, table
from gateway.rest.traffic import PassedTraffic
from gateway.rest.worker import Worker


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
    """Return the bare calls of a process; `sockets` are paths of WebSockets, which refuse calls."""
    rooms: dict[Callable[[Any], Any], Any] = {}

    def mount(
        below: Below, callers: Callers = worker.callers, traffic: Traffic = worker.traffic
    ) -> Mount:
        router = Router(
            bound((route for route in below.routes if route.handler is not None), worker, rooms),
            callers=callers,
            traffic=traffic,
            cluster_id=lambda: worker.cluster_id,
        )
        return Mount(prefix=below.prefix, router=router)

    passed = mount(PASSED_ROUTES, worker.passed_callers, PassedTraffic(worker.traffic))
    return Mounts([mount(below) for below in table(door)], passed=passed, sockets=sockets)
