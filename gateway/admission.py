"""Limits the connections of a process, in total and per address. Pure.

Counts connections before their caller is known; other packages limit what each caller may open.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.addresses import Network, is_within, network_of

# Above all streams and sockets that packages allow: 2,000 of each kind (records in, records out,
# sockets), 500 tabs, and as many again for single calls. A connection takes some 20 KB, and 64 KiB
# more while its head arrives.
MAX_CONNECTIONS: Final = 8_192
# Half of the total, so that no address blocks the others; its 64 KiB of heads are 256 MiB at most.
# A load balancer that is not declared as trusted counts as one address too.
MAX_PER_ADDRESS: Final = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """Why a connection is refused."""

    message: str


class Admission:
    """Belongs to one event loop. Connections are identified by any unique key."""

    def __init__(
        self,
        *,
        most: int = MAX_CONNECTIONS,
        each: int = MAX_PER_ADDRESS,
        trusted: Sequence[Network] = (),
    ) -> None:
        self._most = most
        self._each = each
        # Trusted proxies carry many clients, so they have no limit per address.
        self._trusted = tuple(trusted)
        self._open: dict[Hashable, str] = {}
        self._by_network: Counter[str] = Counter()

    @property
    def total(self) -> int:
        return len(self._open)

    def enter(self, connection: Hashable, address: str) -> Refused | None:
        """Count a connection, or return why it is refused."""
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
        """Stop counting a connection; one that was never counted changes nothing."""
        network = self._open.pop(connection, None)
        if network is None:
            return
        self._by_network[network] -= 1
        if not self._by_network[network]:
            del self._by_network[network]
