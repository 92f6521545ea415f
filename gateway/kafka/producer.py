"""Produces records into any topic, each acknowledged by the cluster or reported as a failure.

Idempotent unless the caller's properties say otherwise, so that a retry writes no record twice. The
queue is bounded: a source that is faster than the cluster waits in `send`; `offer` refuses it.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message

from gateway.kafka.clients import WRITES, Settings, make_producer
from gateway.kafka.connection import Connection, Reach
from gateway.kafka.errors import KafkaFailure, failure, from_exception, translated
from gateway.kafka.header_names import require_names
from gateway.kafka.values import Delivered, NewRecord

Outcome: TypeAlias = Delivered | KafkaFailure
Done: TypeAlias = Callable[[Outcome], None]
# librdkafka's report on one record. An exception in it would lose the reports on others.
Report: TypeAlias = Callable[[KafkaError | None, Message], None]

# How long a full queue may drain before it is checked again.
DRAIN_S: Final = 0.1


class Producer:
    """Reuse it: each has three threads. Replace one that is broken.

    Not thread-safe, except that one thread may offer records while another one polls.
    """

    def __init__(
        self,
        connection: Connection,
        *uses: Settings,
        delivery_s: float | None = None,
    ) -> None:
        self._timeout_s = connection.timeout_s if delivery_s is None else delivery_s
        self._reach = Reach(connection.bootstrap)
        # It can send no more, or has records in flight that no caller waits for.
        self.is_broken = False
        self._client = make_producer(
            connection, self._reach, *(uses or (WRITES,)), delivery_s=self._timeout_s
        )

    def in_flight(self) -> int:
        """Return the number of records whose reports are not polled yet."""
        return len(self._client)

    def offer(self, topic: str, record: NewRecord, report: Report) -> bool:
        """Queue a record; return False if the queue is full. `poll` calls `report` later."""
        require_names(record)
        try:
            self._client.produce(
                topic,
                value=record.value,
                key=record.key,
                partition=-1 if record.partition is None else record.partition,
                headers=list(record.headers) or None,
                timestamp=record.timestamp_ms or 0,
                on_delivery=report,
            )
        except BufferError:
            return False
        except (KafkaException, ValueError, TypeError) as error:
            self._note_fatal(error.args[0] if isinstance(error, KafkaException) else None)
            value = f"a record of {size_of(record)} bytes for topic {topic}"
            raise from_exception(error, value) from error
        return True

    def send(self, topic: str, record: NewRecord, done: Done) -> None:
        """Queue a record; wait while the queue is full. Raises KafkaFailure if it cannot be sent.

        The calls of `done` come from within later calls of this producer.
        """
        self.poll()
        self.queue(topic, record, done)

    def queue(self, topic: str, record: NewRecord, done: Done) -> None:
        """Queue a record as `send` does, for a caller that has just polled."""
        report = partial(self._delivered, topic, done)
        # A clock is read for a full queue only, and not for each record.
        if self.offer(topic, record, report):
            return
        limit = time.monotonic() + self._timeout_s
        while not self.offer(topic, record, report):
            self.require_cluster()
            self._require_time(limit, f"topic {topic}")
            self.poll(DRAIN_S)

    def flush(
        self, value: str = "what was sent", *, look: Callable[[], None] = lambda: None
    ) -> None:
        """Wait until all records are reported; call `look`, which may raise, meanwhile.

        Raises KafkaFailure, about `value`, on timeout or if the cluster is down.
        """
        limit = time.monotonic() + self._timeout_s
        while self._client.flush(DRAIN_S) > 0:
            look()
            self.require_cluster()
            self._require_time(limit, value)

    def poll(self, wait_s: float = 0) -> None:
        self._client.poll(wait_s)

    def require_cluster(self) -> None:
        """Raise KafkaFailure if the cluster is down."""
        if self._reach.is_down():
            # Records in flight may still arrive: resend them with another client only.
            self.is_broken = True
            raise self._reach.failure()

    def purge(self) -> None:
        """Discard records that are not delivered; their reports are failures."""
        self._client.purge()

    def close(self) -> None:
        """Discard undelivered records, which would keep the client and its threads alive."""
        self.purge()
        self.poll()

    def outcome(self, topic: str, error: KafkaError | None, message: Message) -> Outcome:
        """Translate librdkafka's report on one record."""
        partition = message.partition()
        if error is None:
            self._reach.heard()
            _, timestamp_ms = message.timestamp()
            return Delivered(
                partition=partition or 0,
                offset=message.offset() or 0,
                timestamp_ms=timestamp_ms,
            )
        self._note_fatal(error)
        timed_out = KafkaError._MSG_TIMED_OUT  # noqa: SLF001 - a documented constant
        if error.code() == timed_out and self._reach.is_down():
            return self._reach.failure()
        has_partition = partition is not None and partition >= 0
        return translated(error, f"topic {topic}" + f", partition {partition}" * has_partition)

    def _delivered(
        self, topic: str, done: Done, error: KafkaError | None, message: Message
    ) -> None:
        done(self.outcome(topic, error, message))

    def _require_time(self, limit: float, value: str) -> None:
        if time.monotonic() > limit:
            self.is_broken = True
            raise failure("REQUEST_TIMED_OUT", value)

    def _note_fatal(self, error: object) -> None:
        if isinstance(error, KafkaError) and error.fatal():
            self.is_broken = True


class TopicWriter:
    """Writes to one topic for a caller that ends at the first failure, which any call may raise."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        codec: str = "none",
        on_delivery: Callable[[Delivered], None] = lambda _: None,
    ) -> None:
        self._topic = topic
        self._on_delivery = on_delivery
        self._failure: KafkaFailure | None = None
        self._producer = Producer(connection, WRITES, {"compression.type": codec})

    def send(self, record: NewRecord) -> None:
        """Queue a record; wait while the queue is full."""
        # A failure that has arrived ends the writing before this record is queued.
        self._producer.poll()
        self._require_success()
        self._producer.require_cluster()
        self._producer.queue(self._topic, record, self._note)

    def flush(self) -> None:
        """Wait until every record is acknowledged."""
        self._producer.flush(f"topic {self._topic}", look=self._require_success)
        self._require_success()

    def close(self) -> None:
        """Discard undelivered records, which would keep the client and its threads alive."""
        self._producer.close()

    def _note(self, outcome: Outcome) -> None:
        if isinstance(outcome, Delivered):
            self._on_delivery(outcome)
        elif self._failure is None:
            self._failure = outcome

    def _require_success(self) -> None:
        if self._failure is not None:
            raise self._failure


def size_of(record: NewRecord) -> int:
    """Return roughly how much memory a record takes while in flight."""
    size = len(record.key or b"") + len(record.value or b"")
    for name, value in record.headers:
        size += len(name) + len(value or b"")
    return size
