"""Derives a broker's state, a word with a cause, from the database, orders and the collector."""

from dataclasses import dataclass
from typing import Final

from brokers.cluster.image import Broker
from brokers.controlplane.orders import Order, Place, Verb
from console.monitoring.tables import BrokerRow

# A broker that registered this recently counts as starting rather than as fenced.
STARTING_MS: Final = 30_000
# And one that is not fenced any more is not silent yet: the collector finds its new port within
# five seconds, and reads it a second later.
UNREAD_MS: Final = 10_000
UNDER_WAY: Final = {
    Verb.START: "Starting",
    Verb.STOP: "Stopping",
    Verb.RESTART: "Restarting",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """`mark` is the CSS class of the sign; `since_ms` is 0 if no moment is known."""

    mark: str
    word: str
    cause: str = ""
    since_ms: int = 0

    @property
    def rank(self) -> int:
        """Return the sort position of the state, the worst first."""
        return ("bad", "warn", "stale", "ok").index(self.mark)


def state_of(
    broker: Broker,
    place: Place | None,
    order: Order | None,
    row: BrokerRow | None,
    *,
    is_full: bool = False,
    now_ms: int,
) -> BrokerState:
    """Return the state of a broker; `row` is None if the collector has no data about it.

    `is_full`: its disk has too little room for records.
    """
    if order is not None and order.is_open:
        return BrokerState(
            mark="warn",
            word=UNDER_WAY[order.verb],
            cause=f"ordered by {person(order.actor)}",
            since_ms=order.asked_at_ms,
        )
    if place is not None and place.held_by:
        word = "Stopped" if broker.is_fenced else "Stopping"
        return BrokerState(
            mark="stale", word=word, cause=f"by {place.held_by}", since_ms=place.held_at_ms
        )
    if broker.is_fenced:
        if place is not None and 0 <= now_ms - place.registered_at_ms < STARTING_MS:
            return BrokerState(mark="warn", word="Starting", since_ms=place.registered_at_ms)
        return BrokerState(mark="bad", word="Fenced", cause="its agent has no session with it")
    is_new = place is not None and 0 <= now_ms - place.registered_at_ms < UNREAD_MS
    if row is not None and row.failure and not is_new:
        return BrokerState(
            mark="warn", word="Silent", cause=row.failure, since_ms=row.answered_ms or 0
        )
    if is_full:
        return BrokerState(mark="bad", word="Disk full", cause="it takes no records")
    return BrokerState(mark="ok", word="Serving")


def person(actor: str) -> str:
    """Return a principal without its type."""
    return actor.removeprefix("User:")
