"""Reads records from partitions and offsets that the caller assigns; joins no group.

An offset that a partition does not hold is a failure rather than a silent jump to another one,
unless the caller's settings say otherwise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self, TypeAlias

from confluent_kafka import KafkaException, Message, TopicPartition

from gateway.kafka.clients import READS, READS_TO_END, Settings, make_consumer
from gateway.kafka.connection import Connection, Reach
from gateway.kafka.errors import KafkaFailure, from_exception, translated
from gateway.kafka.polling import consume, is_end, is_passing, place_of, record_of, require_cluster
from gateway.kafka.values import Place, Record, Span

# Records per batch: enough to keep the work per batch small.
BATCH: Final = 5000
# The wait of an empty read, after which an interrupt is noticed.
TICK_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A partition was read to its present end."""

    place: Place
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A partition, or the whole client, cannot be read; `is_passing` if only for a moment."""

    place: Place | None
    failure: KafkaFailure
    is_passing: bool


Event: TypeAlias = Record | End | Failed


class AssignedConsumer:
    """Kafka's consumer with manual assignment. Not thread-safe. Close it."""

    def __init__(self, connection: Connection, *uses: Settings, group: str = "") -> None:
        self._value = f"group {group}" if group else connection.bootstrap
        self._reach = Reach(connection.bootstrap)
        self._client = make_consumer(connection, self._reach, *uses, group=group)

    def assign(self, offsets: Mapping[Place, int]) -> None:
        """Read these partitions from these offsets on, and no others."""
        self._call(lambda: self._client.assign(_at(offsets)))

    def add(self, offsets: Mapping[Place, int]) -> None:
        """Read these partitions as well."""
        self._call(lambda: self._client.incremental_assign(_at(offsets)))

    def remove(self, places: Iterable[Place]) -> None:
        """Stop reading partitions; drop what was fetched of them."""
        named = [TopicPartition(place.topic, place.partition) for place in places]
        self._call(lambda: self._client.incremental_unassign(named))

    def poll(self, *, most: int, wait_s: float) -> list[Event]:
        """Return records and events in their order; wait for the first one only."""
        messages = consume(self._client, most, wait_s)
        if not messages:
            return []
        events = [
            record_of(message) if message.error() is None else _event_of(message)
            for message in messages
        ]
        if any(not isinstance(event, Failed) for event in events):
            self._reach.heard()
        return events

    def require_cluster(self, patience_s: float) -> None:
        """Raise KafkaFailure if the cluster is down for so long. Call it if `poll` found none."""
        require_cluster(self._client, self._reach, patience_s)

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit to the group, as if it had no members; wait until the group has stored it."""
        try:
            answers = self._client.commit(offsets=_at(offsets), asynchronous=False)
        except KafkaException as error:
            raise from_exception(error, self._value) from error
        for answer in answers or ():
            if answer.error is not None:
                raise translated(answer.error, self._value)

    def close(self) -> None:
        self._call(self._client.close)

    def _call(self, call: Callable[[], None]) -> None:
        try:
            call()
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, self._value) from error


class Reader:
    """Reads spans of one topic, each once. A context manager; not thread-safe."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        spans: Sequence[Span],
        *,
        stops_at_end: bool = False,
    ) -> None:
        self._topic = topic
        self._timeout_s = connection.timeout_s
        self._stops_at_end = stops_at_end
        # Spans that are not read to their end yet, by partition.
        self._open = {s.partition: s for s in spans if s.end is None or s.start < s.end}
        # The last known end of each partition.
        self.ends: dict[int, int] = {}
        self._consumer = AssignedConsumer(connection, READS_TO_END if stops_at_end else READS)
        self._consumer.assign({self._place(s.partition): s.start for s in self._open.values()})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._consumer.close()

    def batches(self) -> Iterator[list[Record]]:
        """Yield records as they arrive, and an empty list if none did for a moment.

        Ends when every span is read; without a given end, a span ends where its partition has no
        more records if the reader stops at the end.
        """
        while self._open:
            events = self._consumer.poll(most=BATCH, wait_s=TICK_S)
            if not events:
                self._consumer.require_cluster(self._timeout_s)
            yield [record for event in events if (record := self._take(event)) is not None]

    def finish(self, partition: int) -> None:
        """Stop reading a partition."""
        if self._open.pop(partition, None) is not None:
            self._consumer.remove([self._place(partition)])

    def _take(self, event: Event) -> Record | None:
        """Return a record of an open span; None for an event, or a record beyond its span."""
        if isinstance(event, Failed):
            raise event.failure
        if isinstance(event, End):
            self._note_end(event.place.partition, event.offset)
            return None
        span = self._open.get(event.partition)
        if span is None or (span.end is not None and event.offset >= span.end):
            self.finish(event.partition)
            return None
        if span.end is not None and event.offset == span.end - 1:
            self.finish(event.partition)
        return event

    def _note_end(self, partition: int, offset: int) -> None:
        self.ends[partition] = offset
        span = self._open.get(partition)
        is_read = span is not None and span.end is not None and offset >= span.end
        if self._stops_at_end or is_read:
            self.finish(partition)

    def _place(self, partition: int) -> Place:
        return Place(topic=self._topic, partition=partition)


def _at(offsets: Mapping[Place, int]) -> list[TopicPartition]:
    return [
        TopicPartition(place.topic, place.partition, offset) for place, offset in offsets.items()
    ]


def _event_of(message: Message) -> End | Failed:
    error, place = message.error(), place_of(message)
    assert error is not None
    if place is not None and is_end(error):
        return End(place=place, offset=message.offset() or 0)
    value = f"topic {message.topic()}" if place is None else str(place)
    return Failed(place=place, failure=translated(error, value), is_passing=is_passing(error))
