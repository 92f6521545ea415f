"""How many connections a process has open, and which ones it turns away at the door. Pure.

Counts connections before anybody knows whose they are; what a caller may open is counted by the
rooms, each for itself.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.addresses import Network, is_within, network_of

# Above all streams and sockets that rooms allow: 2,000 of each kind (records in, records out,
# sockets), 500 tabs, and as many again for calls in one piece. A connection takes some 20 KB, and
# 64 KiB more while its head comes.
MAX_CONNECTIONS: Final = 8_192
# Half of all, so that no address keeps the others out; its 64 KiB of heads are 256 MiB at most. A
# load balancer that nobody has declared trusted is one address too.
MAX_PER_ADDRESS: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why a connection is not taken."""

    message: str


class Admission:
    """Belongs to one event loop. Connections are told apart by any key that is theirs alone."""

    def __init__(
        self,
        *,
        most: int = MAX_CONNECTIONS,
        each: int = MAX_PER_ADDRESS,
        trusted: Sequence[Network] = (),
    ) -> None:
        self._most = most
        self._each = each
        # They speak for many, so they have no share.
        self._trusted = tuple(trusted)
        self._open: dict[Hashable, str] = {}
        self._by_network: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return len(self._open)

    def enter(self, connection: Hashable, address: str) -> Refused | None:
        """Count a connection, or say why it is not taken."""
        assert connection not in self._open, "a connection enters once"
        if len(self._open) >= self._most:
            return Refused(
                message=f"this process has {self._most} connections open, which is the most there"
                " may be: try again in a moment, and keep connections for many calls"
            )
        network = network_of(address)
        has_share = not is_within(address, self._trusted)
        if has_share and self._by_network[network] >= self._each:
            return Refused(
                message=f"{network} has {self._each} connections open here, which is the most one"
                " address may have: use those for many calls; a proxy in front is named in"
                " SAMSA_TRUSTED_PROXIES"
            )
        self._open[connection] = network
        self._by_network[network] += 1
        return None

    def leave(self, connection: Hashable) -> None:
        """Count a connection no longer; one that never entered changes nothing."""
        network = self._open.pop(connection, None)
        if network is None:
            return
        self._by_network[network] -= 1
        if not self._by_network[network]:
            del self._by_network[network]
