"""Admits the sockets of a worker, runs their connections, and ends them with the worker."""

import asyncio
from typing import Final

from django.conf import settings

from gateway.access.callers import Caller
from gateway.addresses import client_address, network_of
from gateway.kafka.member import Member
from gateway.rest.calls import Receive, Scope, Send, headers_of
from gateway.rest.codes import ApiError, Code
from gateway.rest.produce.desk import Desk
from gateway.rest.seats import Seats
from gateway.rest.worker import Worker
from gateway.ws.connection import Connection
from gateway.ws.frames import PROTOCOL
from gateway.ws.services import Services

PATH: Final = "/ws/v1"
# Each takes some tens of kilobytes when idle, and MAX_UNSENT when its client is slow.
MAX_SOCKETS: Final = 2_000
MAX_SOCKETS_EACH: Final = 1_000
# Each is a client with threads of its own, and up to some megabytes of records.
MAX_MEMBERS: Final = 64
MAX_MEMBERS_EACH: Final = 32
# Unauthenticated sockets; each has some seconds to authenticate.
MAX_UNKNOWN: Final = 200
# Of one address: half of them, so that it cannot block others. A proxy that is not declared as
# trusted counts as one address too.
MAX_UNKNOWN_EACH: Final = 100
# The time to send final receipts and messages when a worker stops; see `gateway.server`.
DRAIN_S: Final = 1.0


class Sockets:
    """All sockets of a worker. Belongs to its loop."""

    def __init__(self, services: Services) -> None:
        self._services = services
        # With the network of each.
        self._open: dict[Connection, str] = {}
        self._is_draining = False
        self._none = asyncio.Event()
        self._none.set()

    async def admit(self, scope: Scope) -> Caller | None:
        """Return the caller of a handshake; None if it has to authenticate by a frame.

        Raises ApiError for a handshake that is refused.
        """
        if self._is_draining:
            raise ApiError(Code.UNAVAILABLE, "this worker stops: connect again", retry_after_s=1)
        offered = scope.get("subprotocols") or [PROTOCOL]
        if PROTOCOL not in offered:
            raise ApiError(
                Code.BAD_REQUEST, f"the only sub-protocol is {PROTOCOL}: offer it, or none"
            )
        if scope.get("query_string"):
            raise ApiError(
                Code.BAD_REQUEST,
                f"{PATH} takes no query: logs and histories would keep a token there; send it in"
                " the header Authorization, or in the frame auth",
            )
        headers = headers_of(scope)
        if "authorization" in headers:
            return await self._services.callers.of(scope)
        if "cookie" in headers:
            try:
                return await self._services.callers.of(scope)
            except ApiError as error:
                # Browsers send cookies automatically: the page may have a token instead.
                if error.code is not Code.NOT_AUTHENTICATED:
                    raise
        self._require_room_for_unknown(self._network_of(scope))
        return None

    async def run(self, scope: Scope, receive: Receive, send: Send, caller: Caller | None) -> None:
        """Serve an accepted socket until it ends."""
        connection = Connection(scope, receive, send, self._services)
        self._open[connection] = self._network_of(scope)
        self._none.clear()
        if self._is_draining:
            # It was admitted before the drain, and accepted meanwhile.
            connection.drain()
        try:
            await connection.run(caller)
        finally:
            del self._open[connection]
            if not self._open:
                self._none.set()

    def drain(self) -> None:
        self._is_draining = True
        for connection in self._open:
            connection.drain()

    async def said(self) -> None:
        """Wait a moment until every socket has sent its final message."""
        try:
            async with asyncio.timeout(DRAIN_S):
                await self._none.wait()
        except TimeoutError:
            pass

    async def close(self) -> None:
        """Do nothing: nothing is left once all sockets have ended."""

    def _require_room_for_unknown(self, network: str) -> None:
        unknown = [came for connection, came in self._open.items() if connection.is_unknown]
        own = unknown.count(network)
        if len(unknown) >= MAX_UNKNOWN or own >= MAX_UNKNOWN_EACH:
            is_one = own >= MAX_UNKNOWN_EACH
            who = f"{own} sockets of {network}" if is_one else f"{len(unknown)} sockets"
            raise ApiError(
                Code.UNAVAILABLE,
                f"{who} have not authenticated yet: try again in a second",
                retry_after_s=1,
            )

    def _network_of(self, scope: Scope) -> str:
        peer = (scope.get("client") or ("", 0))[0]
        way = headers_of(scope).get("x-forwarded-for", "")
        return network_of(client_address(peer, way, self._services.trusted))


def services_of(worker: Worker) -> Services:
    """Return what the sockets of a worker share. Raises ApiError until the home has its files."""
    return Services(
        callers=worker.callers,
        watch=worker.callers.watch,
        limits=worker.callers.limits,
        desk=Desk(worker.deliveries, creation=worker.creation),
        readers=worker.readers,
        traffic=worker.traffic,
        seats=Seats("sockets", most=MAX_SOCKETS, each=MAX_SOCKETS_EACH, ledger=worker.ledger),
        member_seats=Seats(
            "members of groups",
            most=MAX_MEMBERS,
            each=MAX_MEMBERS_EACH,
            ledger=worker.ledger,
        ),
        member=lambda group, reset: Member(
            worker.connection,
            group,
            reset=reset,
            commits_itself=False,
            roster=worker.roster,
        ),
        cluster_id=worker.cluster_id,
        trusted=settings.TRUSTED_PROXIES,
    )
