"""Produces records into any topic, each confirmed by the cluster; not thread-safe, may block.

Idempotent unless the caller's properties say otherwise, so that a retry writes no record twice. The
queue is bounded: a source that is faster than the cluster waits here.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as Client

from gateway.kafka.connection import Connection, Reach
from gateway.kafka.errors import KafkaFailure, failure, from_exception, translated
from gateway.kafka.header_names import require_names
from gateway.kafka.producer import (
    DRAIN_S,
    MAX_QUEUED_KBYTES,
    MAX_RECORD_BYTES,
    RULES_OUT_IDEMPOTENCE,
    UNKNOWN_TOPIC_MS,
)
from gateway.kafka.values import Delivered, NewRecord

Done: TypeAlias = Callable[[Delivered | KafkaFailure], None]
# A source hands over thousands of small records at once, and waits for all: long enough to fill
# batches from them, short beside a transaction.
LINGER_MS: Final = 5


class Sender:
    """Reuse it: each has three threads. Replace one that is broken."""

    def __init__(self, connection: Connection) -> None:
        self._timeout_s = connection.timeout_s
        self._reach = Reach(connection.bootstrap)
        # It can send no more, or has records in flight that no caller waits for.
        self.is_broken = False
        settings = connection.settings(
            self._reach,
            enable_idempotence=not RULES_OUT_IDEMPOTENCE & set(connection.properties),
            message_max_bytes=MAX_RECORD_BYTES,
            queue_buffering_max_kbytes=MAX_QUEUED_KBYTES,
            linger_ms=LINGER_MS,
            # Java's client sends equal keys to the same partition.
            partitioner="murmur2_random",
            message_timeout_ms=int(connection.timeout_s * 1000),
            # Whose records they are may not be allowed to create topics. The property is one of
            # consumers, but the library honours it for producers, too.
            allow_auto_create_topics=False,
            topic_metadata_propagation_max_ms=UNKNOWN_TOPIC_MS,
        )
        try:
            self._client = Client(settings)
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, connection.bootstrap) from error

    def send(self, topic: str, record: NewRecord, done: Done) -> None:
        """Queue a record. Raises KafkaFailure if it cannot be sent at all."""
        require_names(record)
        limit = time.monotonic() + self._timeout_s
        while True:
            self._client.poll(0)
            try:
                self._client.produce(
                    topic,
                    value=record.value,
                    key=record.key,
                    partition=-1 if record.partition is None else record.partition,
                    headers=list(record.headers) or None,
                    timestamp=record.timestamp_ms or 0,
                    on_delivery=partial(self._delivered, topic, done),
                )
            except BufferError:
                self._require_cluster()
                if time.monotonic() > limit:
                    self.is_broken = True
                    raise failure("REQUEST_TIMED_OUT", f"topic {topic}") from None
                self._client.poll(DRAIN_S)
            except (KafkaException, ValueError, TypeError) as error:
                raise from_exception(error, f"topic {topic}") from error
            else:
                return

    def flush(self) -> None:
        """Wait until all records are reported. Raises KafkaFailure if the cluster is down."""
        limit = time.monotonic() + self._timeout_s
        while self._client.flush(DRAIN_S) > 0:
            self._require_cluster()
            if time.monotonic() > limit:
                self.is_broken = True
                raise failure("REQUEST_TIMED_OUT", "what was sent")

    def _require_cluster(self) -> None:
        if self._reach.is_down():
            # Records in flight may still arrive: resend them with another client only.
            self.is_broken = True
            raise self._reach.failure()

    def _delivered(
        self, topic: str, done: Done, error: KafkaError | None, message: Message
    ) -> None:
        """Take librdkafka's report on one record; an exception here would lose the others."""
        partition = message.partition() or 0
        if error is None:
            self._reach.heard()
            done(Delivered(partition=partition, offset=message.offset() or 0))
            return
        if error.fatal():
            self.is_broken = True
        done(translated(error, f"topic {topic}"))
