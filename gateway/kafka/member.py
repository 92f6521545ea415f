"""Drives a consumer by calls: subscribe or assign, take records, commit.

Not thread-safe. Taken records count as read only once `delivered` is called; `give_back` puts them
first again.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Message

from gateway.kafka.clients import MEMBER_READS, Settings
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.errors import KafkaFailure, translated
from gateway.kafka.fetched_records import FetchedRecords
from gateway.kafka.group_client import Closed, GroupClient
from gateway.kafka.polling import is_end, is_passing, place_of, record_of
from gateway.kafka.roster import Roster
from gateway.kafka.values import Place, Position, PositionKind, Record

# The wait of an empty read, after which `stop` is noticed.
TICK_S: Final = 0.1
# After joining, records may be requested before there is an assignment: a rejoin takes two
# heartbeats of five seconds, and the first answer of a partition a moment more.
SETTLE_S: Final = 15.0
# Messages taken from the library at once; its own byte limit applies to them.
BATCH: Final = 500
# Records that an idle client buffers, so that it still notices rebalances.
MAX_IDLE_RECORDS: Final = 50
# A partition that was just assigned accepts no seek until its fetching has begun.
SEEK_S: Final = 5.0


class Reset(Enum):
    """The position without a committed offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


# In librdkafka's terms.
RESETS: Final = {Reset.EARLIEST: "earliest", Reset.LATEST: "latest", Reset.NONE: "error"}


class NotAssigned(Exception):
    """A partition that is not assigned to the client at present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a client reads: topics by name, whose partitions the group divides, or partitions by
    name, which are not divided. If both are empty, it reads nothing.
    """

    topics: tuple[str, ...] = ()
    places: tuple[Place, ...] = ()

    def __post_init__(self) -> None:
        # The library compiles such a name, with neither a limit of memory nor of time.
        assert not any(topic.startswith("^") for topic in self.topics), "topics are names"

    def __bool__(self) -> bool:
        return bool(self.topics or self.places)


class Member:
    """A consumer; see the module. Close it, or the group waits for its session."""

    def __init__(
        self,
        connection: Connection,
        group: str,
        *,
        reset: Reset,
        commits_itself: bool,
        roster: Roster | None = None,
        reads: Settings = MEMBER_READS,
    ) -> None:
        self._group = group
        self._commits_itself = commits_itself
        own: Settings = {
            "enable.auto.commit": commits_itself,
            "auto.offset.reset": RESETS[reset],
        }
        self._client = GroupClient(connection, group, reads, own, roster=roster)
        self._records = FetchedRecords()
        self._subscription = Subscription()
        self._is_stopped = False
        self._is_settled = True

    @property
    def subscription(self) -> Subscription:
        return self._subscription

    def assignment(self) -> Sequence[Place]:
        return sorted(self._records.assigned)

    def subscribe(self, subscription: Subscription) -> None:
        """Change the subscription; an empty one leaves the group."""
        if self._client.is_closed:
            raise Closed(self._group)
        assigned = self._records.assigned
        if subscription.topics and self._subscription.topics:
            # The library reports added and revoked partitions, but not those that stay.
            self._records.revoke({one for one in assigned if one.topic not in subscription.topics})
        else:
            self._records.revoke(set(assigned))
        if not subscription:
            # A subscribed client accepts no assignment: create a new one for it.
            self._client.leave()
        elif subscription.places:
            self._client.assign(subscription.places)
            self._records.assign(subscription.places)
        else:
            self._client.subscribe(
                subscription.topics,
                on_assign=self._records.assign,
                on_revoke=self._records.revoke,
            )
        self._subscription = subscription
        self._is_settled = not subscription

    def take(
        self,
        *,
        max_bytes: int,
        min_bytes: int,
        wait_s: float,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[Record]:
        """Return records as soon as there are some, at least one, and no more than fit.

        After a subscription, wait until the first records, or the ends of all partitions, have
        arrived. `is_over` is polled meanwhile, since the caller may have gone.
        """
        found: list[Record] = []
        try:
            self._take(
                found, max_bytes=max_bytes, min_bytes=min_bytes, wait_s=wait_s, is_over=is_over
            )
        except BaseException:
            # The records found so far are not returned then.
            self.give_back(found)
            raise
        return found

    def _take(
        self,
        found: list[Record],
        *,
        max_bytes: int,
        min_bytes: int,
        wait_s: float,
        is_over: Callable[[], bool],
    ) -> None:
        size = 0
        settling = Deadline(SETTLE_S)
        end = Deadline(wait_s) if self._is_settled else None
        self._records.begin()
        while True:
            size = self._records.move(found, size, most=BATCH, max_bytes=max_bytes)
            is_full = bool(self._records) or size >= max(min_bytes, 1) or len(found) >= BATCH
            if self._is_stopped or is_over() or (found and is_full):
                break
            self._is_settled |= bool(found) or settling.is_over() or self._records.has_read_all()
            if self._is_settled and end is None:
                end = Deadline(wait_s)
            if end is not None and end.is_over():
                break
            left = TICK_S if end is None else min(TICK_S, end.left())
            if not self._pump(BATCH, left):
                self._client.require_cluster()
        self._is_settled |= bool(found)

    def read(self, most: int) -> list[Record]:
        """Return up to this many records that are fetched already; keep the membership."""
        if not self._fill(most):
            self._client.require_cluster()
        found: list[Record] = []
        self._records.begin()
        self._records.move(found, 0, most=most, max_bytes=sys.maxsize)
        return found

    def look(self) -> None:
        """Poll the group; this keeps the membership of a client that seldom fetches."""
        if self._client.is_open and self._subscription:
            self._fill(MAX_IDLE_RECORDS)

    def give_back(self, records: Sequence[Record]) -> None:
        """Put undelivered records back, except those of partitions that others now read."""
        self._records.give_back(records)

    def delivered(self, records: Iterable[Record]) -> None:
        """Count records as read; if the client commits by itself, they are committed soon."""
        offsets = self._records.deliver(records)
        if self._commits_itself and offsets:
            self._client.store(offsets)

    def commit(self, offsets: Mapping[Place, int] | None = None, *, waits: bool = True) -> None:
        """Commit these offsets, or those of all delivered records."""
        wanted = self._records.next if offsets is None else offsets
        if wanted:
            self._client.commit(wanted, waits=waits)

    def committed(self, places: Sequence[Place]) -> Mapping[Place, int]:
        """Return the committed offsets of those partitions that have one."""
        return self._client.committed(places)

    def seek(self, positions: Mapping[Place, Position]) -> None:
        """Continue at other positions. Raises NotAssigned for a partition of another reader."""
        for place in positions:
            if place not in self._records.assigned:
                raise NotAssigned(str(place))
        times = {
            place: position.value
            for place, position in positions.items()
            if position.kind is PositionKind.TIME
        }
        at_times = self._client.at_times(times) if times else {}
        for place, position in positions.items():
            match position.kind:
                case PositionKind.BEGINNING:
                    offset = OFFSET_BEGINNING
                case PositionKind.END:
                    offset = OFFSET_END
                case PositionKind.TIME:
                    offset = at_times[place]
                case _:
                    offset = position.value
            self._seek(place, offset)

    def pause(self, places: Collection[Place]) -> None:
        """Take no records of these until `resume`, and stay in the group.

        Applies to assigned partitions: one that is revoked and returns is not paused.
        """
        if new := self._records.running(places):
            self._client.pause(new)
            self._records.pause(new)

    def resume(self, places: Collection[Place]) -> None:
        """Continue these where they were paused."""
        if back := self._records.find_paused(places):
            self._client.resume(back)
            self._records.resume(back)

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the ends of partitions as their leaders last reported; sends no request."""
        return self._client.ends(places)

    def stop(self) -> None:
        """Let `take` return soon. Thread-safe."""
        self._is_stopped = True

    def close(self) -> None:
        """Commit delivered offsets if the client does so by itself, and leave the group."""
        self._client.close()

    def _fill(self, most: int) -> bool:
        """Fetch without waiting, up to so many records; return whether there may be more."""
        room = most - len(self._records)
        if room > 0:
            return self._pump(room, 0)
        self._client.keep_membership()
        return True

    def _pump(self, most: int, wait_s: float) -> bool:
        """Take fetched messages from the library; return whether there were any."""
        messages = self._client.consume(most, wait_s)
        failed: KafkaFailure | None = None
        for message in messages:
            try:
                if not self._note(message):
                    break
            except KafkaFailure as failure:
                # The library does not return the other messages of the batch again.
                failed = failed or failure
        if failed is not None:
            raise failed
        return bool(messages)

    def _note(self, message: Message) -> bool:
        """Keep a record or handle an event; return False if the client was replaced."""
        error = message.error()
        if error is None:
            self._client.reach.heard()
            self._records.add(record_of(message))
        elif is_end(error):
            self._client.reach.heard()
            place = place_of(message)
            assert place is not None
            self._records.end(place)
        elif self._client.refuses_protocol(error):
            self._client.use_classic()
            wanted, self._subscription = self._subscription, Subscription()
            self.subscribe(wanted)
            return False
        elif not is_passing(error):
            raise translated(error, f"group {self._group}")
        return True

    def _seek(self, place: Place, offset: int) -> None:
        deadline = Deadline(SEEK_S)
        while not self._client.seek(place, offset, is_last=deadline.is_over()):
            self._pump(MAX_IDLE_RECORDS, TICK_S)
        self._records.drop({place})
        if offset >= 0:
            self._records.next[place] = offset
