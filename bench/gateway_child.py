"""One worker's produce behind a real server, for the suite `gateway`: tells its port first."""

import socket
import sys
from functools import cached_property
from pathlib import Path
from typing import Final

import uvicorn

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Grant, Rights
from gateway.access.operations import Role
from gateway.rest.calls import Receive, Scope, Send
from gateway.rest.produce.desk import Desk
from gateway.rest.produce.routes import Room
from gateway.rest.router import Router
from gateway.rest.worker import Place, Worker
from gateway.server import listening

CLUSTER: Final = "bench"
CALLER: Final = Caller(kind=CallerKind.USER, name="bench", rights=Rights([Grant(role=Role.ADMIN)]))


class Anybody:
    """Lets everybody in: who calls is found out once for each call, and is not measured here."""

    async def of(self, scope: Scope) -> Caller:  # noqa: ARG002 - the name is the protocol's
        return CALLER


class Free(Room):
    """Produce without limits of its callers."""

    @cached_property
    def desk(self) -> Desk:
        return Desk(self.worker.deliveries)


def main() -> None:
    place = Place(name="bench", home=Path(), sockets=Path(), bootstrap=sys.argv[1])
    worker = Worker(place)
    room = Free(worker)
    router = Router(
        [*room.v3(), *room.v2()],
        callers=Anybody(),
        traffic=worker.traffic,
        cluster_id=lambda: CLUSTER,
    )

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        found = router.find(scope)
        assert found is not None, scope["path"]
        await router.serve(*found, scope, receive, send)

    # As the gateway's own server has its socket, which sends small answers at once.
    door = listening(socket.create_server(("127.0.0.1", 0)).detach())
    sys.stdout.write(f"{door.getsockname()[1]}\n")
    sys.stdout.flush()
    config = uvicorn.Config(application, access_log=False, lifespan="off", log_level="warning")
    uvicorn.Server(config).run([door])


if __name__ == "__main__":
    main()
