"""One worker's produce and sockets behind a real server, for the suite `gateway`.

Tells its port first.
"""

import asyncio
import socket
import sys
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Final

import uvicorn
from django.conf import settings

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role
from gateway.rest.calls import Receive, Scope, Send
from gateway.rest.codes import ApiError
from gateway.rest.limits import Limits, Rates
from gateway.rest.produce.desk import Desk
from gateway.rest.produce.routes import V2_ROUTES, V3_ROUTES, Room
from gateway.rest.router import Router, bound
from gateway.rest.worker import Place, Worker
from gateway.server import FRAME_BYTES, listening
from gateway.ws.consumers import Endpoint
from gateway.ws.endpoint import Sockets, services_of

KNOWN_SECONDS: Final = 2.0
CALLER: Final = Caller(kind=CallerKind.USER, name="bench", rights=Rights([Grant(role=Role.ADMIN)]))


class Anybody:
    """Admits every caller: authentication takes place once per call, and is not measured here."""

    def __init__(self) -> None:
        self.limits = Limits(Rates(requests=0, records=0, bytes=0))

    async def of(self, scope: Scope) -> Caller:  # noqa: ARG002 - the name is the protocol's
        return CALLER

    async def watch(self, caller: Caller, holds: Callable[[Caller], bool]) -> ApiError:
        """Check the rights as often as the gateway's own class."""
        while holds(caller):  # noqa: ASYNC110 - the other one does so too
            await asyncio.sleep(KNOWN_SECONDS)
        raise AssertionError("its rights stay")


class Free(Room):
    """Produce without limits of its callers."""

    @cached_property
    def desk(self) -> Desk:
        return Desk(self.worker.deliveries)


def main() -> None:
    # All that a worker without databases asks of the project.
    settings.configure(TRUSTED_PROXIES=())
    bootstrap, cluster = sys.argv[1:]
    place = Place(name="bench", home=Path(), sockets=Path(), bootstrap=bootstrap)
    worker = Worker(place)
    callers = Anybody()
    worker.__dict__ |= {"callers": callers, "cluster_id": cluster}
    # Without the router of Channels: a worker has loaded Django's URLs, and this process would load
    # them, 10 MB, for the router alone.
    sockets = Endpoint.as_asgi(sockets=cache(lambda: Sockets(services_of(worker))))
    rows = (*V3_ROUTES, *V2_ROUTES)
    router = Router(
        bound(rows, worker, {Room: Free(worker)}),
        callers=callers,
        traffic=worker.traffic,
        cluster_id=lambda: cluster,
    )

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await sockets(scope, receive, send)
            return
        found = router.find(scope)
        assert found is not None, scope["path"]
        await router.serve(*found, scope, receive, send)

    # A socket like that of the gateway's own server, which sends small answers at once.
    door = listening(socket.create_server(("127.0.0.1", 0)).detach())
    sys.stdout.write(f"{door.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(
        application,
        access_log=False,
        lifespan="off",
        log_level="warning",
        ws_max_size=FRAME_BYTES,
        ws_per_message_deflate=False,
    )
    uvicorn.Server(config).run([door])


if __name__ == "__main__":
    main()
