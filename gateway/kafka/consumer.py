"""Reads records of one topic, from partitions and offsets that the caller chooses.

Joins no group and commits nothing. An offset that a partition does not hold is a failure rather
than a silent jump to another one.
"""

import operator
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Final, Self, cast

from confluent_kafka import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from gateway.kafka.connection import Connection, Reach
from gateway.kafka.errors import from_exception, translated
from gateway.kafka.values import Header, Record, Span, TimestampKind

# Records per batch: enough to keep the work per batch small.
BATCH: Final = 5000
# The wait of an empty read, after which an interrupt is noticed.
TICK_S: Final = 0.1
# How long a broker waits for records before an empty answer. Short if the reader waits for exactly
# that answer.
FETCH_WAIT_MS: Final = 500
LAST_FETCH_WAIT_MS: Final = 50
# Data that is fetched ahead of the caller.
MAX_AHEAD_KBYTES: Final = 16 * 1024
# How soon a full queue is checked again; librdkafka's default second is for slow readers.
FULL_QUEUE_MS: Final = 10

TIMESTAMP_KINDS: Final = {
    TIMESTAMP_CREATE_TIME: TimestampKind.CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME: TimestampKind.LOG_APPEND_TIME,
}


class Reader:
    """Reads spans of one topic. A context manager; not thread-safe."""

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
        self._reach = Reach(connection.bootstrap)
        # Spans that are not read to their end yet, by partition.
        self._open = {s.partition: s for s in spans if s.end is None or s.start < s.end}
        # The last known end of each partition.
        self.ends: dict[int, int] = {}
        settings = connection.settings(
            self._reach,
            # confluent-kafka requires one for a consumer; nothing is ever stored under it.
            group_id=connection.client_id,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="error",
            enable_partition_eof=True,
            check_crcs=True,
            fetch_wait_max_ms=LAST_FETCH_WAIT_MS if stops_at_end else FETCH_WAIT_MS,
            queued_max_messages_kbytes=MAX_AHEAD_KBYTES,
            fetch_queue_backoff_ms=FULL_QUEUE_MS,
        )
        try:
            self._client = Consumer(settings)
            self._client.assign(
                [TopicPartition(topic, s.partition, s.start) for s in self._open.values()]
            )
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, connection.bootstrap) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    def batches(self) -> Iterator[list[Record]]:
        """Yield records as they arrive, and an empty list if none did for a moment.

        Ends when every span is read; without a given end, a span ends where its partition has no
        more records if the reader stops at the end.
        """
        while self._open:
            # The library waits for as many records as requested, so request one.
            messages = self._client.consume(1, TICK_S)
            if messages:
                messages += self._client.consume(BATCH - 1, 0)
            if not messages:
                self._check_reach()
            yield [record for message in messages if (record := self._take(message)) is not None]

    def finish(self, partition: int) -> None:
        """Stop reading a partition."""
        if self._open.pop(partition, None) is not None:
            self._client.incremental_unassign([TopicPartition(self._topic, partition)])

    def _take(self, message: Message) -> Record | None:
        """Return the record of a message; None for an event, or a record beyond its span."""
        partition = message.partition()
        error = message.error()
        if error is not None:
            self._note(error, partition, message.offset() or 0)
            return None
        self._reach.heard()
        assert partition is not None
        span = self._open.get(partition)
        offset = message.offset()
        assert offset is not None
        if span is None or (span.end is not None and offset >= span.end):
            self.finish(partition)
            return None
        if span.end is not None and offset == span.end - 1:
            self.finish(partition)
        return record_of(message, self._topic, partition, offset)

    def _note(self, error: KafkaError, partition: int | None, offset: int) -> None:
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - a documented constant
            place = self._topic if partition is None else f"{self._topic}, partition {partition}"
            raise translated(error, f"topic {place}")
        self._reach.heard()
        assert partition is not None
        self.ends[partition] = offset
        span = self._open.get(partition)
        is_read = span is not None and span.end is not None and offset >= span.end
        if self._stops_at_end or is_read:
            self.finish(partition)

    def _check_reach(self) -> None:
        """Raise for a cluster that is down for too long, after one more request to it.

        Silence alone proves nothing: a reader at the end hears nothing from a broker that is back.
        """
        if self._reach.down_seconds() < self._timeout_s:
            return
        try:
            self._client.list_topics(timeout=1)
        except KafkaException:
            raise self._reach.failure() from None
        self._reach.heard()


def record_of(message: Message, topic: str, partition: int, offset: int) -> Record:
    kind, timestamp = message.timestamp()
    timestamp_kind = TIMESTAMP_KINDS.get(kind)
    headers = _headers(message)
    return Record(
        topic=topic,
        partition=partition,
        offset=offset,
        key=message.key(),
        value=message.value(),
        headers=headers or (),
        timestamp_ms=timestamp if timestamp_kind else None,
        timestamp_kind=timestamp_kind,
        has_unread_headers=headers is None,
    )


def _headers(message: Message) -> tuple[Header, ...] | None:
    """Return the headers of a message; None if the library fails to decode them.

    Any producer can write a name that is not UTF-8, and one such record must not end the reading.
    The library returns with its error still set. A call through `operator` checks for that, which
    the interpreter's fast path does not, and raises a SystemError.
    """
    try:
        # The stubs declare every form that a caller may send.
        return tuple(cast("list[Header]", operator.call(message.headers) or []))
    except (SystemError, UnicodeDecodeError):
        return None
