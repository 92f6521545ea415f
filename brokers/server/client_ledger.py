"""Sums the traffic of each client id since this broker started.

Knows no requests and no sockets. An open connection keeps its own counts, two additions for each
read and each send; the ledger adds them up on request, and keeps those of closed connections.
Clients choose their ids, so the number of kept ids is bounded; ids that do not fit count for the
rest, and an id that comes back begins again at zero.
"""

from collections.abc import Iterable
from heapq import heappush, heappushpop
from typing import Final, Protocol

from brokers.server.peers import Peer
from brokers.slices import Slices

# Client ids without an open connection: applications of one cluster are dozens or hundreds. With
# their totals 1,000 ids take some 500 KB at worst.
MAX_CLOSED_IDS: Final = 1_000
# Ids with rows of their own, those with the most traffic: more lines than an operator reads.
MAX_TOLD_IDS: Final = 200
# An id on the wire may have 32 KiB; real ones are shorter, and each connection keeps one.
MAX_ID_LENGTH: Final = 255

# client id (None: the rest), software, its version, connections, bytes in, bytes out, requests
ClientRow = tuple[str | None, str | None, str | None, int, int, int, int]
CLIENT_COLUMNS: Final = (
    "client_id",
    "software",
    "software_version",
    "connections",
    "bytes_in",
    "bytes_out",
    "requests",
)


class Counted(Protocol):
    """The fields of a connection that the ledger reads."""

    peer: Peer
    client_id: str  # of its first request; empty before that
    bytes_in: int
    bytes_out: int
    requests: int


class Usage:
    """The sum of some connections."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "connections",
        "requests",
        "software",
        "software_version",
    )

    def __init__(self) -> None:
        self.software = ""
        self.software_version = ""
        self.connections = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.requests = 0

    @property
    def traffic(self) -> int:
        return self.bytes_in + self.bytes_out

    def add(self, other: "Counted | Usage") -> None:
        """Add the counts of another usage, except connections."""
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.requests += other.requests

    def add_connection(self, client: Counted) -> None:
        self.add(client)
        if client.peer.software:
            self.software = client.peer.software
            self.software_version = client.peer.software_version

    def copy(self) -> "Usage":
        made = Usage()
        made.add(self)
        made.software, made.software_version = self.software, self.software_version
        return made

    def row(self, client_id: str | None) -> ClientRow:
        return (
            client_id,
            self.software or None,
            self.software_version or None,
            self.connections,
            self.bytes_in,
            self.bytes_out,
            self.requests,
        )


class ClientLedger:
    """Belongs to the event loop."""

    def __init__(self) -> None:
        self._open: set[Counted] = set()
        # By client id, the one that was used longest ago first.
        self._closed: dict[str, Usage] = {}
        self._rest = Usage()

    def opened(self, client: Counted) -> None:
        self._open.add(client)

    def closed(self, client: Counted) -> None:
        """Keep the counts of a closed connection. Further calls do nothing."""
        if client not in self._open:
            return
        self._open.discard(client)
        usage = self._closed.pop(client.client_id, None) or Usage()
        usage.add_connection(client)
        self._closed[client.client_id] = usage
        if len(self._closed) > MAX_CLOSED_IDS:
            self._rest.add(self._closed.pop(next(iter(self._closed))))

    async def rows(self, slices: Slices) -> list[ClientRow]:
        """Return the ids with the most traffic, and one row for the rest, if there is one."""
        rest = self._rest.copy()
        # Both at one moment: a connection that closes later was counted as open, not twice.
        clients = list(self._open)
        usages = {}
        for client_id, kept in list(self._closed.items()):
            usages[client_id] = kept.copy()
        for client in clients:
            usage = usages.setdefault(client.client_id, Usage())
            usage.add_connection(client)
            usage.connections += 1
            await slices.breathe()
        return await _most(usages.items(), rest, slices)


async def _most(
    usages: Iterable[tuple[str, Usage]], rest: Usage, slices: Slices
) -> list[ClientRow]:
    """Select the ids that get rows of their own; add the others to `rest`."""
    # The number makes each entry differ, so that usages are never compared.
    top: list[tuple[int, int, str, Usage]] = []
    for number, (client_id, usage) in enumerate(usages):
        entry = (usage.traffic, -number, client_id, usage)
        if len(top) < MAX_TOLD_IDS:
            heappush(top, entry)
        else:
            smallest = heappushpop(top, entry)[3]
            rest.add(smallest)
            rest.connections += smallest.connections
        await slices.breathe()
    rows = [usage.row(client_id) for _traffic, _number, client_id, usage in sorted(top)[::-1]]
    if rest.traffic or rest.connections:
        rows.append(rest.row(None))
    return rows
