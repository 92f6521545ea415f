"""Reads records of partitions that the caller assigns, of any topics, and commits to a group.

Does not join: offsets are committed as for a group without members, which any client may do. The
caller has to check who may commit.
"""

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from gateway.kafka.connection import Connection, Reach
from gateway.kafka.consumer import FULL_QUEUE_MS, MAX_AHEAD_KBYTES, record_of
from gateway.kafka.errors import KafkaFailure, from_exception, translated
from gateway.kafka.member import PASSING
from gateway.kafka.values import Place, Record

# The caller is told if the cluster is down for longer, since it may have other work.
AWAY_S: Final = 5.0
# The wait for the answer to a commit, shorter than the lease of a silent task.
ANSWER_S: Final = 8.0
# How long a broker without records holds a fetch.
FETCH_WAIT_MS: Final = 500
# One partition's share of fetched data.
PART_BYTES: Final = 4 * 1024 * 1024


class HandAssigned:
    """A consumer with manual assignment. Not thread-safe. Close it."""

    def __init__(self, connection: Connection, group: str, *, reset: str) -> None:
        self._group = group
        # Partitions that were read to their end at some time.
        self.ended: set[Place] = set()
        self._reach = Reach(connection.bootstrap)
        settings = connection.settings(
            self._reach,
            group_id=group,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            # Applies to an offset that a partition no longer holds.
            auto_offset_reset=reset,
            enable_partition_eof=True,
            fetch_wait_max_ms=FETCH_WAIT_MS,
            queued_max_messages_kbytes=MAX_AHEAD_KBYTES,
            fetch_message_max_bytes=PART_BYTES,
            fetch_queue_backoff_ms=FULL_QUEUE_MS,
            socket_timeout_ms=int(ANSWER_S * 1000),
        )
        try:
            self._client = Consumer(settings)
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, f"group {group}") from error

    def begin(self, offsets: Mapping[Place, int]) -> None:
        """Start reading partitions at these offsets."""
        self._call(lambda: self._client.assign([_at(*item) for item in offsets.items()]))

    def seek(self, place: Place, offset: int) -> None:
        """Continue at another offset; drop what was fetched before."""
        at = _at(place, offset)
        self._call(lambda: self._client.incremental_unassign([at]))
        self._call(lambda: self._client.incremental_assign([at]))

    def take(self, *, most: int, wait_s: float) -> list[Record]:
        """Return records as they arrive, or none after a wait."""
        # The library waits for as many records as requested, so request one.
        messages = self._client.consume(1, wait_s)
        if messages and most > 1:
            messages += self._client.consume(most - 1, 0)
        if not messages and self._reach.down_seconds() > AWAY_S:
            raise self._reach.failure()
        failed: KafkaFailure | None = None
        found: list[Record] = []
        for message in messages:
            error = message.error()
            if error is None:
                found.append(self._record(message))
            else:
                failed = failed or self._noted(error, message)
        # Records that came with an error are read again by the next reader.
        if failed is not None:
            raise failed
        return found

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit, and wait until the group has stored it."""
        places = [_at(*item) for item in offsets.items()]
        try:
            told = self._client.commit(offsets=places, asynchronous=False)
        except KafkaException as error:
            raise from_exception(error, f"group {self._group}") from error
        for place in told or ():
            if place.error is not None:
                raise translated(place.error, f"group {self._group}")

    def close(self) -> None:
        self._call(self._client.close)

    def _record(self, message: Message) -> Record:
        self._reach.heard()
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        return record_of(message, topic, partition, offset)

    def _noted(self, error: KafkaError, message: Message) -> KafkaFailure | None:
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - a documented constant
            self._reach.heard()
            topic, partition = message.topic(), message.partition()
            assert topic is not None
            assert partition is not None
            self.ended.add(Place(topic=topic, partition=partition))
            return None
        if error.code() in PASSING or error.retriable():
            return None
        return translated(error, f"topic {message.topic()}, partition {message.partition()}")

    def _call(self, call: Callable[[], None]) -> None:
        try:
            call()
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, f"group {self._group}") from error


def _at(place: Place, offset: int) -> TopicPartition:
    return TopicPartition(place.topic, place.partition, offset)
