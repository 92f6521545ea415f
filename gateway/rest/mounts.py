"""Where each room of REST is: at which prefix, on the gateway's own port and in the web server.

A room offers `routes(worker)`; it knows the rest of its addresses and no prefix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from gateway.rest.calls import Receive, Scope, Send
from gateway.rest.router import Route, Router
from gateway.rest.worker import Worker


class Door(Enum):
    """Which process serves."""

    GATEWAY = "the gateway's own port"
    WEB = "the web server, beside the console"


V3: Final = ("/v3", "/kafka/v3")
# Version 2 is at the root where clients of it expect it; the console has the root of its own port.
V2: Final[Mapping[Door, str]] = {Door.GATEWAY: "", Door.WEB: "/rest"}
# What is ours beside the published interfaces.
OURS: Final[Mapping[Door, str]] = {Door.GATEWAY: "/v1", Door.WEB: "/rest/v1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """The routes of some rooms below a prefix."""

    prefix: str
    router: Router


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A call of ours: who serves it, with what."""

    router: Router
    route: Route
    parameters: Mapping[str, str]

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.router.serve(self.route, self.parameters, scope, receive, send)


class Mounts:
    """All bare calls of a process. Belongs to one event loop."""

    def __init__(self, mounts: Sequence[Mount]) -> None:
        # The longest prefix first: at the root everything is below it.
        self._mounts = sorted(mounts, key=lambda mount: -len(mount.prefix))

    def find(self, scope: Scope) -> Found | None:
        """Return who serves a call; None where it is Django's."""
        if scope["type"] != "http":
            return None
        for mount in self._mounts:
            found = mount.router.find(scope, under=mount.prefix)
            if found is not None:
                route, parameters = found
                return Found(router=mount.router, route=route, parameters=parameters)
        return None


def mounts(worker: Worker, door: Door) -> Mounts:
    """Return all rooms where they are in a process. A room adds itself to one of these rows."""
    v3: list[Route] = []
    v2: list[Route] = []
    ours: list[Route] = []
    return Mounts(
        [
            *(_mount(worker, prefix, v3) for prefix in V3),
            _mount(worker, V2[door], v2),
            _mount(worker, OURS[door], ours),
        ]
    )


def _mount(worker: Worker, prefix: str, routes: Sequence[Route]) -> Mount:
    router = Router(
        routes,
        callers=worker.callers,
        traffic=worker.traffic,
        cluster_id=lambda: worker.cluster_id,
    )
    return Mount(prefix=prefix, router=router)
