"""Remembers what each consumer reads, so that its requests name only changes: fetch sessions.

KIP-227, with Kafka's eviction rules. Knows no logs and sends nothing: a handler gets the plan of a
request, reads, and reports what it answered. A broker may always refuse a session, and the client
then names all its partitions each time; so all limits here end in a refusal.
"""

import random
from collections.abc import Iterable, Iterator
from typing import Final

from brokers.clock import Clock
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.messages.fetch import FetchPartition, FetchRequest, PartitionData

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_MAX_EPOCH: Final = 2**31 - 1

# Kafka's max.incremental.fetch.session.cache.slots.
MAX_SESSIONS: Final = 1_000
# Partitions of all sessions together; each is about 300 bytes here.
MAX_REMEMBERED: Final = 100_000
# Kafka's: a session this long out of use may be evicted by any other.
EVICTION_SECONDS: Final = 120.0

Key = tuple[str | bytes, int]


class Interest:
    """One partition that a client reads, and the state that it was sent last."""

    __slots__ = ("high_watermark", "last_stable_offset", "log_start_offset", "name", "wanted")

    def __init__(self, name: str | bytes, wanted: FetchPartition) -> None:
        self.name = name  # the topic's name, or its id if the client uses ids
        self.wanted = wanted
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1

    @property
    def key(self) -> Key:
        return self.name, self.wanted.partition

    def has_news(self, data: PartitionData) -> bool:
        """Whether a response must include this partition."""
        return (
            data.error_code != ErrorCode.NONE
            or bool(data.records)
            or data.high_watermark != self.high_watermark
            or data.last_stable_offset != self.last_stable_offset
            or data.log_start_offset != self.log_start_offset
            or data.diverging_epoch is not None
        )

    def told(self, data: PartitionData) -> None:
        """Record the state that is sent. After an error, the next state is sent in any case."""
        self.high_watermark = data.high_watermark
        self.last_stable_offset = data.last_stable_offset
        self.log_start_offset = data.log_start_offset


class FetchSession:
    """The partitions that one client reads over many requests."""

    __slots__ = ("created", "epoch", "id", "interests", "last_used", "speaks_of_ids")

    def __init__(
        self, number: int, interests: Iterable[Interest], *, speaks_of_ids: bool, now: float
    ) -> None:
        self.id = number
        self.epoch = 1  # that the next request must have
        self.speaks_of_ids = speaks_of_ids
        # In the order in which they are read: a partition that sent records moves to the end, so
        # that one busy partition does not use up every response.
        self.interests = {interest.key: interest for interest in interests}
        self.created = self.last_used = now

    def served(self, interest: Interest) -> None:
        """Move a partition whose records were sent behind the others."""
        kept = self.interests.pop(interest.key, None)
        if kept is not None:
            self.interests[interest.key] = kept


class FetchPlan:
    """The partitions that one request reads: those of a session, or just those that it names."""

    __slots__ = ("can_open", "interests", "session")

    def __init__(
        self, interests: list[Interest], session: FetchSession | None, *, can_open: bool
    ) -> None:
        self.interests = interests
        self.session = session
        self.can_open = can_open  # the client asks for a session, opened by its answer


class FetchSessions:
    """The sessions of one broker. Belongs to the event loop."""

    def __init__(
        self,
        *,
        clock: Clock,
        rng: random.Random | None = None,
        max_sessions: int = MAX_SESSIONS,
        max_remembered: int = MAX_REMEMBERED,
    ) -> None:
        self._clock = clock
        # Not a secret; it only detects clients that confuse their brokers.
        self._rng = rng or random.SystemRandom()
        self._max_sessions = max_sessions
        self._max_remembered = max_remembered
        self._sessions: dict[int, FetchSession] = {}  # the one used longest ago first
        self.remembered = 0  # partitions in all of them

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: FetchRequest, *, speaks_of_ids: bool) -> FetchPlan:
        """Return the plan of a request; KafkaError if it may not continue its session."""
        session_id, epoch = request.session_id, request.session_epoch
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION:
                self._forget(session_id)
            return FetchPlan(
                list(_named(request, speaks_of_ids=speaks_of_ids)),
                None,
                can_open=epoch == INITIAL_EPOCH,
            )
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"fetch session {session_id} is not kept"
            )
        if session.epoch != epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
                f"fetch session {session_id} is at epoch {session.epoch}, not {epoch}",
            )
        if session.speaks_of_ids != speaks_of_ids:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {session_id} was opened with topic "
                f"{'ids' if session.speaks_of_ids else 'names'}",
            )
        self._update(session, request)
        if not session.interests:
            self._forget(session_id)
            return FetchPlan([], None, can_open=False)
        session.epoch = epoch + 1 if epoch < _MAX_EPOCH else 1
        session.last_used = self._clock.monotonic()
        self._sessions[session_id] = self._sessions.pop(session_id)
        return FetchPlan(list(session.interests.values()), session, can_open=False)

    def open(self, interests: list[Interest], *, speaks_of_ids: bool) -> int:
        """Open a session for these partitions; return its id, or 0 if there is no room for it."""
        size = len(interests)
        if not size or size > self._max_remembered:
            return NO_SESSION
        while len(self._sessions) >= self._max_sessions or (
            self.remembered + size > self._max_remembered
        ):
            victim = self._evictable(size)
            if victim is None:
                return NO_SESSION
            self._forget(victim.id)
        number = self._rng.randrange(1, _MAX_EPOCH)
        while number in self._sessions:
            number = self._rng.randrange(1, _MAX_EPOCH)
        now = self._clock.monotonic()
        session = FetchSession(number, interests, speaks_of_ids=speaks_of_ids, now=now)
        self._sessions[number] = session
        self.remembered += len(session.interests)
        return number

    def _evictable(self, size: int) -> FetchSession | None:
        """Return the session to evict for one of this size: an unused one, else a smaller one."""
        now = self._clock.monotonic()
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.last_used > EVICTION_SECONDS:
            return oldest
        settled = (s for s in self._sessions.values() if now - s.created > EVICTION_SECONDS)
        smallest = min(settled, key=_size, default=None)
        return smallest if smallest is not None and _size(smallest) < size else None

    def _update(self, session: FetchSession, request: FetchRequest) -> None:
        before = len(session.interests)
        # Kafka's order: a partition that is both named and forgotten is gone.
        for interest in _named(request, speaks_of_ids=session.speaks_of_ids):
            known = session.interests.get(interest.key)
            if known is not None:
                known.wanted = interest.wanted
            elif self.remembered + len(session.interests) - before < self._max_remembered:
                session.interests[interest.key] = interest
            else:
                self._forget(session.id)
                raise KafkaError(
                    ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                    f"there is no room for more than {self._max_remembered} partitions",
                )
        for topic in request.forgotten_topics_data:
            name = topic.topic_id if session.speaks_of_ids else topic.topic
            for index in topic.partitions:
                session.interests.pop((name, index), None)
        self.remembered += len(session.interests) - before

    def _forget(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self.remembered -= len(session.interests)


def _named(request: FetchRequest, *, speaks_of_ids: bool) -> Iterator[Interest]:
    for topic in request.topics:
        name = topic.topic_id if speaks_of_ids else topic.topic
        for wanted in topic.partitions:
            yield Interest(name, wanted)


def _size(session: FetchSession) -> int:
    return len(session.interests)
