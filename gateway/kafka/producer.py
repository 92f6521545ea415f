"""Produces records into one topic, each acknowledged by the cluster or reported as a failure.

Idempotent unless the caller's properties say otherwise, so that a retry writes no record twice. The
queue is bounded: a source that is faster than the cluster waits here.
"""

import time
from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as ConfluentProducer

from gateway.kafka.connection import Connection, Reach
from gateway.kafka.errors import KafkaFailure, failure, from_exception, translated
from gateway.kafka.header_names import require_names
from gateway.kafka.values import Delivered, NewRecord

# The largest record that librdkafka accepts; the broker enforces the topic's own limit.
MAX_RECORD_BYTES: Final = 64 * 1024 * 1024
# Records in flight: room for a few of the largest, and for batches to fill.
MAX_QUEUED_KBYTES: Final = 2 * MAX_RECORD_BYTES // 1024
# How long a full queue may drain before it is checked again.
DRAIN_S: Final = 0.1
# A new topic is unknown for a moment; after this it counts as missing.
UNKNOWN_TOPIC_MS: Final = 5000
# Properties that a caller may set at the cost of order, or of duplicates.
RULES_OUT_IDEMPOTENCE: Final = frozenset({"acks", "request.required.acks", "enable.idempotence"})


class Producer:
    """Sends to one topic. Not thread-safe. Close it, or the last records may not arrive."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        *,
        codec: str = "none",
        on_delivery: Callable[[Delivered], None] = lambda _: None,
    ) -> None:
        self._topic = topic
        self._timeout_s = connection.timeout_s
        self._reach = Reach(connection.bootstrap)
        self._on_delivery = on_delivery
        self._failure: KafkaFailure | None = None
        settings = connection.settings(
            self._reach,
            enable_idempotence=not RULES_OUT_IDEMPOTENCE & set(connection.properties),
            compression_type=codec,
            message_max_bytes=MAX_RECORD_BYTES,
            queue_buffering_max_kbytes=MAX_QUEUED_KBYTES,
            # Java's client sends equal keys to the same partition.
            partitioner="murmur2_random",
            message_timeout_ms=int(connection.timeout_s * 1000),
            topic_metadata_propagation_max_ms=UNKNOWN_TOPIC_MS,
        )
        try:
            self._client = ConfluentProducer(settings)
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, connection.bootstrap) from error

    def send(self, record: NewRecord) -> None:
        """Queue a record; raise the failure of this record, or of an earlier one."""
        require_names(record)
        limit = time.monotonic() + self._timeout_s
        while True:
            self._look()
            try:
                self._client.produce(
                    self._topic,
                    value=record.value,
                    key=record.key,
                    partition=-1 if record.partition is None else record.partition,
                    headers=list(record.headers) or None,
                    timestamp=record.timestamp_ms or 0,
                    on_delivery=self._delivered,
                )
            except BufferError:
                if time.monotonic() > limit:
                    raise failure("REQUEST_TIMED_OUT", f"topic {self._topic}") from None
                self._client.poll(DRAIN_S)
            except (KafkaException, ValueError, TypeError) as error:
                raise from_exception(error, self._about(record)) from error
            else:
                return

    def flush(self) -> None:
        """Wait until every record is acknowledged; raise the failure of any that is not."""
        limit = time.monotonic() + self._timeout_s
        while self._client.flush(DRAIN_S) > 0:
            self._look()
            if time.monotonic() > limit:
                raise failure("REQUEST_TIMED_OUT", f"topic {self._topic}")
        self._look()

    def close(self) -> None:
        """Discard undelivered records, which would keep the client and its threads alive."""
        self._client.purge()
        self._client.poll(0)

    def _look(self) -> None:
        self._client.poll(0)
        if self._failure is not None:
            raise self._failure
        if self._reach.is_down():
            raise self._reach.failure()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        """Take librdkafka's report on one record; an exception here would lose the others."""
        if error is None:
            self._reach.heard()
            self._on_delivery(
                Delivered(partition=message.partition() or 0, offset=message.offset() or 0)
            )
        elif self._failure is None:
            about = f"topic {self._topic}"
            partition = message.partition()
            if partition is not None and partition >= 0:
                about += f", partition {partition}"
            self._failure = translated(error, about)

    def _about(self, record: NewRecord) -> str:
        size = len(record.value or b"") + len(record.key or b"")
        return f"a record of {size} bytes for topic {self._topic}"
