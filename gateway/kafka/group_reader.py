"""Reads records as a member of a consumer group, and commits on request.

Joins with the consumer protocol. Nothing here waits: a caller with several members reads from each
in turn, and has to do so within `max.poll.interval.ms`, or the group removes the member.
"""

from collections.abc import Sequence
from typing import Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from gateway.kafka.connection import Connection, Reach
from gateway.kafka.consumer import record_of
from gateway.kafka.errors import from_exception, translated
from gateway.kafka.values import Record

# Data fetched ahead of a slow reader, in total and per partition: more would keep it busy with the
# first of its partitions for minutes.
MAX_AHEAD_KBYTES: Final = 1024
MAX_PARTITION_BYTES: Final = 16 * 1024
# Transient errors: the group rebalances, or the broker is about to return.
PASSING: Final = frozenset(
    {
        KafkaError._NO_OFFSET,  # noqa: SLF001 - a documented constant: nothing to commit yet
        KafkaError._STATE,  # noqa: SLF001 - as above: no partition is assigned yet
        KafkaError._TRANSPORT,  # noqa: SLF001 - as above
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - as above; `reach` tells for how long
    }
)


class GroupReader:
    """One member of a group. Not thread-safe. Close it, or the group waits for its session."""

    def __init__(self, connection: Connection, group: str, topics: Sequence[str]) -> None:
        self._group = group
        self._reach = Reach(connection.bootstrap)
        settings = connection.settings(
            self._reach,
            group_id=group,
            group_protocol="consumer",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            queued_max_messages_kbytes=MAX_AHEAD_KBYTES,
            fetch_message_max_bytes=MAX_PARTITION_BYTES,
        )
        try:
            self._client = Consumer(settings)
            self._client.subscribe(list(topics))
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, f"group {group}") from error

    def read(self, most: int) -> list[Record]:
        """Return records that are already fetched, up to a number; keep the membership alive."""
        found = []
        for message in self._client.consume(most, 0):
            error = message.error()
            if error is None:
                self._reach.heard()
                partition, offset = message.partition() or 0, message.offset() or 0
                found.append(record_of(message, message.topic() or "", partition, offset))
            elif error.code() not in PASSING and not error.retriable():
                raise translated(error, f"group {self._group}")
        if self._reach.is_down():
            raise self._reach.failure()
        return found

    def commit(self) -> None:
        """Commit the member's positions; do not wait for the answer."""
        try:
            self._client.commit(asynchronous=True)
        except KafkaException as error:
            told = error.args[0]
            if told.code() not in PASSING:
                raise from_exception(error, f"group {self._group}") from error

    def commit_start(self) -> None:
        """Commit the first offset of the assigned partitions, whatever was read."""
        self._commit_at(0)

    def rewind(self) -> None:
        """Seek to the first record of the assigned partitions, and commit that."""
        self._commit_at(0)
        for place in self._client.assignment():
            try:
                self._client.seek(TopicPartition(place.topic, place.partition, OFFSET_BEGINNING))
            except KafkaException as error:
                # A partition that was assigned just now is not being fetched yet.
                if error.args[0].code() not in PASSING:
                    raise from_exception(error, f"group {self._group}") from error

    def close(self) -> None:
        """Leave the group."""
        self._client.close()

    def _commit_at(self, offset: int) -> None:
        places = [
            TopicPartition(place.topic, place.partition, offset)
            for place in self._client.assignment()
        ]
        if places:
            self._client.commit(offsets=places, asynchronous=True)
