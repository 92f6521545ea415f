"""Names the objects that the sockets of a worker share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gateway.addresses import Network
from gateway.kafka.member import Reset
from gateway.kafka.readers.engine import Readers
from gateway.rest.produce.desk import Desk, Limits, Watching
from gateway.rest.router import Callers
from gateway.rest.seats import Seats
from gateway.rest.traffic import Counter
from gateway.ws.group_reading import Member


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    callers: Callers
    watch: Watching
    limits: Limits
    desk: Desk
    readers: Readers
    traffic: Counter
    seats: Seats
    member_seats: Seats
    # Creates a member; without a committed offset it starts at the end, or at the beginning.
    member: Callable[[str, Reset], Member]
    cluster_id: str
    # Proxies whose client address is trusted.
    trusted: Sequence[Network] = ()
