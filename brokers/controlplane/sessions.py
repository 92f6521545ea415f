"""Tracks which brokers of this host are alive, with one session for each in memory.

Pure: time arrives as an argument. A session lasts as long as its broker answers, and a while
longer, so that a link that is lost and restored has no effect; it ends at once when the process is
found dead. Sessions are not stored: an idle cluster does not write to the database.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError

# How long a broker may be silent before it is fenced: a few times the second between pings, and a
# stall of its loop by a slow disk. Also the time for every broker to come back after its agent was
# away.
SESSION_S: Final = 6.0
# A broker answers each ping, one a second. One whose last answer is older than this hangs, is very
# busy or is about to be found dead, and must not be waited for.
PROMPT_S: Final = 1.5


def _nothing() -> None:
    pass


@dataclass(slots=True, kw_only=True)
class Session:
    """One incarnation of a broker. Changed by `Sessions` only."""

    broker_id: int
    epoch: int
    incarnation: bytes
    deadline: float
    applied: int = -1  # the newest version it has applied
    is_linked: bool = False
    # Ends the watch on the process.
    unwatch: Callable[[], None] = field(default=_nothing)


class Sessions:
    """See the module. Belongs to one event loop."""

    def __init__(self) -> None:
        self._by_broker: dict[int, Session] = {}

    def of(self, broker_id: int) -> Session | None:
        return self._by_broker.get(broker_id)

    def prompt(self, now: float) -> list[Session]:
        """Return the sessions with a link whose brokers answered lately."""
        since = now - PROMPT_S + SESSION_S
        return [s for s in self._by_broker.values() if s.is_linked and s.deadline >= since]

    def refuse_second(self, broker_id: int, incarnation: bytes) -> None:
        """Raise an error if another incarnation of this broker is alive."""
        session = self._by_broker.get(broker_id)
        if session is not None and session.incarnation != incarnation:
            raise KafkaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION,
                f"broker {broker_id} is running already, under epoch {session.epoch}: stop it "
                f"first, or give this one a log dir of its own",
            )

    def begin(
        self,
        broker_id: int,
        *,
        epoch: int,
        incarnation: bytes,
        now: float,
        unwatch: Callable[[], None] = _nothing,
    ) -> Session:
        """Begin a session, in place of the former one of the same incarnation."""
        self.refuse_second(broker_id, incarnation)
        self.end(broker_id)
        session = Session(
            broker_id=broker_id,
            epoch=epoch,
            incarnation=incarnation,
            deadline=now + SESSION_S,
            unwatch=unwatch,
        )
        self._by_broker[broker_id] = session
        return session

    def answered(self, session: Session, now: float) -> None:
        session.deadline = now + SESSION_S

    def is_current(self, session: Session) -> bool:
        return self._by_broker.get(session.broker_id) is session

    def expired(self, now: float) -> list[Session]:
        """Return the sessions that have run out; they still count until they are ended."""
        return [session for session in self._by_broker.values() if session.deadline <= now]

    def renew(self, now: float) -> None:
        """Give every session its full time again, after a while in which no broker could answer."""
        for session in self._by_broker.values():
            self.answered(session, now)

    def end(self, broker_id: int) -> None:
        session = self._by_broker.pop(broker_id, None)
        if session is not None:
            session.unwatch()

    def end_all(self) -> None:
        for broker_id in list(self._by_broker):
            self.end(broker_id)
