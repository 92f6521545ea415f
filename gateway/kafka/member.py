"""Drives a consumer by calls: subscribe or assign, take records, commit.

Joins with the consumer protocol, or with the classic one if the cluster supports no other. Not
thread-safe. Taken records count as read only once `delivered` is called; `give_back` puts them
first again.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from gateway.kafka.connection import Connection, Deadline, Reach
from gateway.kafka.consumer import record_of
from gateway.kafka.errors import KafkaFailure, from_exception, translated
from gateway.kafka.roster import Roster
from gateway.kafka.values import Place, Position, PositionKind, Record

# The wait of an empty read, after which `stop` is noticed.
TICK_S: Final = 0.1
# After joining, records may be requested before there is an assignment: a rejoin takes two
# heartbeats of five seconds, and the first answer of a partition a moment more.
SETTLE_S: Final = 15.0
# Data that is fetched ahead of the caller.
MAX_AHEAD_KBYTES: Final = 4 * 1024
# Messages taken from the library at once; its own byte limit applies to them.
BATCH: Final = 500
# Records that an idle client buffers, so that it still notices rebalances.
MAX_IDLE_RECORDS: Final = 50
# A partition that was just assigned accepts no seek until its fetching has begun.
SEEK_S: Final = 5.0
# How long the coordinator, or a leader, may take to answer one request.
ANSWER_S: Final = 10.0
# Transient errors: the group rebalances, a topic is not there yet, or a broker is about to return.
PASSING: Final = frozenset(
    {
        KafkaError._NO_OFFSET,  # noqa: SLF001 - a documented constant: nothing to commit yet
        KafkaError._STATE,  # noqa: SLF001 - as above: a partition is not assigned any more
        KafkaError._TRANSPORT,  # noqa: SLF001 - as above
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - as above; `reach` tells for how long
        KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001 - as above
        KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001 - as above
        KafkaError.UNKNOWN_TOPIC_OR_PART,
    }
)
# A coordinator without the consumer protocol, or not with it for this group, refuses the first
# request. The library reports a fatal error, with the reason only in its text.
NOT_SPOKEN: Final = "ConsumerGroupHeartbeat"
REFUSALS: Final = frozenset(
    {
        KafkaError._FATAL,  # noqa: SLF001 - a documented constant
        KafkaError._UNSUPPORTED_FEATURE,  # noqa: SLF001 - as above
        KafkaError.UNSUPPORTED_VERSION,
    }
)


class Protocol(Enum):
    CONSUMER = "consumer"
    CLASSIC = "classic"


class Reset(Enum):
    """The position without a committed offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


class Closed(Exception):
    """The client has left its group for good."""


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
    ) -> None:
        self._connection = connection
        self._roster = roster
        self._group = group
        self._reset = reset
        self._commits_itself = commits_itself
        self._protocol = Protocol.CONSUMER
        self._client: Consumer | None = None
        self._reach = Reach(connection.bootstrap)
        self._subscription = Subscription()
        self._is_stopped = False
        self._is_closed = False
        # Fetched records that are not taken yet, in the library's order.
        self._ahead: deque[Record] = deque()
        self._assigned: set[Place] = set()
        # Partitions whose end was seen since their assignment.
        self._ended: set[Place] = set()
        # Partitions revoked since records were last taken: these have another owner.
        self._gone: set[Place] = set()
        # Paused partitions, and their fetched records that are not taken yet.
        self._paused: set[Place] = set()
        self._held: dict[Place, deque[Record]] = {}
        self._is_settled = True
        # The next offset of each partition, after the delivered records.
        self._next: dict[Place, int] = {}

    @property
    def subscription(self) -> Subscription:
        return self._subscription

    def assignment(self) -> Sequence[Place]:
        return sorted(self._assigned)

    def subscribe(self, subscription: Subscription) -> None:
        """Change the subscription; an empty one leaves the group."""
        if self._is_closed:
            raise Closed(self._group)
        if subscription.topics and self._subscription.topics:
            # The library reports added and revoked partitions, but not those that stay.
            gone = {one for one in self._assigned if one.topic not in subscription.topics}
            self._gone |= gone
            self._assigned -= gone
            self._paused -= gone
            self._drop(gone)
        else:
            self._forget()
        if not subscription:
            # A subscribed client accepts no assignment: create a new one for it.
            self._leave()
        try:
            if subscription.places:
                self._open().assign([_at(place) for place in subscription.places])
                self._take_on(subscription.places)
            elif subscription:
                if self._roster is not None:
                    self._roster.enter(self._group, self._open().memberid())
                self._open().subscribe(
                    list(subscription.topics),
                    on_assign=self._on_assign,
                    on_revoke=self._on_revoke,
                    on_lost=self._on_revoke,
                )
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, f"group {self._group}") from error
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
        self._gone.clear()
        while True:
            size = self._fill(found, size, max_bytes)
            is_full = bool(self._ahead) or size >= max(min_bytes, 1) or len(found) >= BATCH
            if self._is_stopped or is_over() or (found and is_full):
                break
            self._is_settled |= bool(found) or settling.is_over() or self._has_read_all()
            if self._is_settled and end is None:
                end = Deadline(wait_s)
            if end is not None and end.is_over():
                break
            left = TICK_S if end is None else min(TICK_S, end.left())
            if not self._pump(BATCH, left):
                self._check_reach()
        self._is_settled |= bool(found)

    def look(self) -> None:
        """Poll the group; this keeps the membership of a client that seldom fetches."""
        if self._client is not None and self._subscription:
            room = MAX_IDLE_RECORDS - len(self._ahead)
            if room > 0:
                self._pump(room, 0)
            else:
                # The library leaves the group if it is not asked within max.poll.interval.ms.
                self._client.consume(0, 0)

    def give_back(self, records: Sequence[Record]) -> None:
        """Put undelivered records back, except those of partitions that others now read."""
        for record in reversed(records):
            place = _place(record)
            if place in self._gone:
                continue
            is_paused = place in self._paused
            (self._held.setdefault(place, deque()) if is_paused else self._ahead).appendleft(record)

    def delivered(self, records: Iterable[Record]) -> None:
        """Count records as read; if the client commits by itself, they are committed soon."""
        last = {_place(record): record.offset + 1 for record in records}
        last = {place: offset for place, offset in last.items() if place not in self._gone}
        self._next |= last
        if self._commits_itself and last:
            try:
                self._open().store_offsets(
                    offsets=[_at(place, offset) for place, offset in last.items()]
                )
            except KafkaException as error:
                # The next owner of a partition that was just revoked reads it again.
                if error.args[0].code() not in PASSING:
                    raise from_exception(error, f"group {self._group}") from error

    def commit(self, offsets: Mapping[Place, int] | None = None, *, waits: bool = True) -> None:
        """Commit these offsets, or those of all delivered records."""
        wanted = self._next if offsets is None else offsets
        if not wanted:
            return
        places = [_at(place, offset) for place, offset in wanted.items()]
        try:
            if waits:
                told = self._open().commit(offsets=places, asynchronous=False)
                for place in told or ():
                    if place.error is not None:
                        raise translated(place.error, f"group {self._group}")
            else:
                self._open().commit(offsets=places, asynchronous=True)
        except KafkaException as error:
            raise from_exception(error, f"group {self._group}") from error

    def committed(self, places: Sequence[Place]) -> Mapping[Place, int]:
        """Return the committed offsets of those partitions that have one."""
        try:
            told = self._open().committed([_at(place) for place in places], timeout=ANSWER_S)
        except KafkaException as error:
            raise from_exception(error, f"group {self._group}") from error
        found = {}
        for place in told:
            if place.error is not None:
                raise translated(place.error, f"topic {place.topic}, partition {place.partition}")
            if place.offset >= 0:
                found[Place(topic=place.topic, partition=place.partition)] = place.offset
        return found

    def seek(self, positions: Mapping[Place, Position]) -> None:
        """Continue at other positions. Raises NotAssigned for a partition of another reader."""
        for place in positions:
            if place not in self._assigned:
                raise NotAssigned(str(place))
        times = {
            place: position.value
            for place, position in positions.items()
            if position.kind is PositionKind.TIME
        }
        at_times = self._at_times(times) if times else {}
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
        new = self._assigned.intersection(places) - self._paused
        if not new:
            return
        try:
            self._open().pause([_at(place) for place in new])
        except KafkaException as error:
            raise from_exception(error, f"group {self._group}") from error
        self._paused |= new
        kept: deque[Record] = deque()
        for record in self._ahead:
            place = _place(record)
            (self._held.setdefault(place, deque()) if place in new else kept).append(record)
        self._ahead = kept

    def resume(self, places: Collection[Place]) -> None:
        """Continue these where they were paused."""
        back = self._paused.intersection(places)
        if not back:
            return
        try:
            self._open().resume([_at(place) for place in back])
        except KafkaException as error:
            raise from_exception(error, f"group {self._group}") from error
        self._paused -= back
        for place in back:
            self._ahead.extendleft(reversed(self._held.pop(place, deque())))

    def ends(self, places: Iterable[Place]) -> dict[Place, int]:
        """Return the ends of partitions as their leaders last reported; sends no request."""
        found = {}
        for place in places:
            try:
                # None where nothing is cached, which its stubs do not know.
                told: tuple[int, int] | None = self._open().get_watermark_offsets(
                    _at(place), cached=True
                )
            except KafkaException:
                # It was just revoked.
                continue
            if told and told[1] >= 0:
                found[place] = told[1]
        return found

    def stop(self) -> None:
        """Let `take` return soon. Thread-safe."""
        self._is_stopped = True

    def close(self) -> None:
        """Commit delivered offsets if the client does so by itself, and leave the group."""
        self._is_closed = True
        self._leave()

    def _leave(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            member = client.memberid()
            try:
                client.close()
            except KafkaException as error:
                raise from_exception(error, f"group {self._group}") from error
            if self._roster is not None:
                self._roster.leave(member)

    def _open(self) -> Consumer:
        if self._is_closed:
            raise Closed(self._group)
        if self._client is None:
            settings = self._connection.settings(
                self._reach,
                group_id=self._group,
                group_protocol=self._protocol.value,
                enable_auto_commit=self._commits_itself,
                enable_auto_offset_store=False,
                auto_offset_reset=RESETS[self._reset],
                enable_partition_eof=True,
                queued_max_messages_kbytes=MAX_AHEAD_KBYTES,
                fetch_message_max_bytes=MAX_AHEAD_KBYTES * 1024 // 4,
                socket_timeout_ms=int(ANSWER_S * 1000),
            )
            try:
                self._client = Consumer(settings)
            except (KafkaException, ValueError, TypeError) as error:
                raise from_exception(error, f"group {self._group}") from error
        return self._client

    def _pump(self, most: int, wait_s: float) -> bool:
        """Take fetched messages from the library; tell whether there were any."""
        client = self._open()
        # The library waits for as many records as requested, so request one.
        messages = client.consume(1, wait_s)
        if messages and most > 1:
            messages += client.consume(most - 1, 0)
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
        """Buffer a record or handle an event; return False if the client was replaced."""
        place = Place(topic=message.topic() or "", partition=message.partition() or 0)
        error = message.error()
        if error is None:
            self._reach.heard()
            # Records fetched before a partition was revoked belong to its next owner.
            if place in self._assigned:
                record = record_of(message, place.topic, place.partition, message.offset() or 0)
                is_paused = place in self._paused
                (self._held.setdefault(place, deque()) if is_paused else self._ahead).append(record)
            return True
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - a documented constant
            self._reach.heard()
            self._ended.add(place)
        elif self._is_refused(error):
            self._join_classic()
            return False
        elif error.code() not in PASSING and not error.retriable():
            raise translated(error, f"group {self._group}")
        return True

    def _is_refused(self, error: KafkaError) -> bool:
        """Tell whether the group refuses the consumer protocol."""
        is_about_joining = error.code() in REFUSALS and NOT_SPOKEN in (error.str() or "")
        return is_about_joining and self._protocol is Protocol.CONSUMER

    def _join_classic(self) -> None:
        self._leave()
        self._protocol = Protocol.CLASSIC
        wanted, self._subscription = self._subscription, Subscription()
        self.subscribe(wanted)

    def _fill(self, found: list[Record], size: int, max_bytes: int) -> int:
        """Move records that fit; the first one always fits."""
        while self._ahead and len(found) < BATCH:
            more = _size(self._ahead[0])
            if found and size + more > max_bytes:
                break
            found.append(self._ahead.popleft())
            size += more
        return size

    def _has_read_all(self) -> bool:
        return bool(self._assigned) and self._assigned - self._paused <= self._ended

    def _seek(self, place: Place, offset: int) -> None:
        deadline = Deadline(SEEK_S)
        while True:
            try:
                self._open().seek(_at(place, offset))
                break
            except KafkaException as error:
                if error.args[0].code() not in PASSING or deadline.is_over():
                    raise from_exception(error, str(place)) from error
            self._pump(MAX_IDLE_RECORDS, TICK_S)
        self._drop({place})
        if offset >= 0:
            self._next[place] = offset

    def _at_times(self, times: Mapping[Place, int]) -> dict[Place, int]:
        try:
            told = self._open().offsets_for_times(
                [_at(place, ms) for place, ms in times.items()], timeout=ANSWER_S
            )
        except KafkaException as error:
            raise from_exception(error, f"group {self._group}") from error
        # The library returns OFFSET_END if no record is late enough.
        return {Place(topic=each.topic, partition=each.partition): each.offset for each in told}

    def _check_reach(self) -> None:
        """Raise if the cluster is down, after one more request: silence alone proves nothing."""
        if not self._reach.is_down():
            return
        try:
            self._open().list_topics(timeout=1)
        except KafkaException:
            raise self._reach.failure() from None
        self._reach.heard()

    def _on_assign(self, _client: Consumer, places: list[TopicPartition]) -> None:
        self._take_on(Place(topic=each.topic, partition=each.partition) for each in places)

    def _on_revoke(self, _client: Consumer, places: list[TopicPartition]) -> None:
        gone = {Place(topic=each.topic, partition=each.partition) for each in places}
        self._assigned -= gone
        self._gone |= gone
        self._paused -= gone
        self._drop(gone)

    def _take_on(self, places: Iterable[Place]) -> None:
        self._assigned |= set(places)

    def _drop(self, places: set[Place]) -> None:
        self._ahead = deque(each for each in self._ahead if _place(each) not in places)
        self._ended -= places
        for place in places:
            self._next.pop(place, None)
            self._held.pop(place, None)

    def _forget(self) -> None:
        self._gone |= self._assigned
        self._drop(set(self._assigned))
        self._assigned.clear()
        self._paused.clear()


RESETS: Final = {Reset.EARLIEST: "earliest", Reset.LATEST: "latest", Reset.NONE: "error"}


def _at(place: Place, offset: int | None = None) -> TopicPartition:
    if offset is None:
        return TopicPartition(place.topic, place.partition)
    return TopicPartition(place.topic, place.partition, offset)


def _place(record: Record) -> Place:
    return Place(topic=record.topic, partition=record.partition)


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"")
