"""Writes each sample of the collector to a topic, in a thread of its own (ADR 0052).

The collector's loop hands over samples without waiting; a cluster that is down costs samples, which
are counted, and never time. Dropped samples are still in `samples.db`.
"""

import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import Empty, Full, Queue
from typing import Final, Protocol

from console.monitoring.metric_records import Moments, Published, records_of
from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure
from gateway.kafka.producer import TopicWriter
from gateway.kafka.values import Delivered, NewRecord, NewTopic

CLIENT_ID: Final = "samsa-collector"
# Less than the ten seconds between two samples: later ones are of no use to an alert.
TIMEOUT_S: Final = 5.0
# Samples that wait during a write: half a minute, some 10 MB in the largest cluster.
MAX_WAITING: Final = 3
# How long a shutdown waits for the current sample; the collector has 5 s for all of its own.
CLOSE_S: Final = 1.0
# So that three tasks of Spark, or three members of a group, can share the reading.
PARTITIONS: Final = 3
CONFIGS: Final = {
    "cleanup.policy": "delete",
    # As long as the collector's own file keeps samples of minutes.
    "retention.ms": str(7 * 24 * 3600 * 1000),
    # 3 GiB over all partitions. A cluster of fifty series writes 40 MB a day; one with 10,000
    # topics and 15,000 groups writes 10 GB, and would otherwise fill a disk within a week.
    "retention.bytes": str(1024**3),
}
# The records of a sample repeat the same words, which compress well.
CODEC: Final = "zstd"
TOPIC_EXISTS: Final = "TOPIC_ALREADY_EXISTS"


class Log(Protocol):
    def info(self, event: str, /, **keys: object) -> None: ...

    def limited(self, event: str, /, **keys: object) -> None: ...


class MetricsTopic:
    """Writes samples in its own thread. Call `set_brokers`, `offer` and `close` from one thread."""

    def __init__(self, topic: str, *, log: Log) -> None:
        self.published = Published()
        self._topic = topic
        self._log = log
        self._bootstrap = ""
        self._producer: TopicWriter | None = None
        self._waiting: Queue[Moments | None] = Queue(MAX_WAITING)
        self._is_closing = threading.Event()
        # Two threads count dropped samples.
        self._counting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="metrics-topic", daemon=True)
        self._thread.start()

    def set_brokers(self, addresses: Sequence[str]) -> None:
        """Set the bootstrap addresses of the next connection; an open one tracks brokers itself."""
        self._bootstrap = ",".join(addresses)

    def offer(self, moments: Moments) -> None:
        """Hand over a sample without waiting; if too many wait, drop the oldest."""
        while True:
            with suppress(Full):
                self._waiting.put_nowait(moments)
                return
            with suppress(Empty):
                oldest = self._waiting.get_nowait()
                if oldest is not None:
                    self._drop(len(oldest), "the cluster is slower than the samples")

    def close(self) -> None:
        """Stop writing; waiting samples are lost, as they are when the collector is killed."""
        self._is_closing.set()
        with suppress(Full):
            self._waiting.put_nowait(None)
        self._thread.join(CLOSE_S)

    # --- in the thread -------------------------------------------------------------------------

    def _run(self) -> None:
        while (moments := self._waiting.get()) is not None and not self._is_closing.is_set():
            self._write(moments)
        self._give_up()

    def _write(self, moments: Moments) -> None:
        before, size = self.published.written, len(moments)
        try:
            records = list(records_of(moments))
            size = len(records)
            if self._producer is None:
                self._producer = self._opened()
            for key, value in records:
                if self._is_closing.is_set():
                    return
                record = NewRecord(key=key, value=value, timestamp_ms=moments.at_ms)
                self._producer.send(record)
            self._producer.flush()
        # One sample that cannot be written must not end the thread, and thereby all later ones.
        except Exception as failed:  # noqa: BLE001
            # One with records under way would report them as those of the next sample.
            self._give_up()
            said = str(failed) if isinstance(failed, KafkaFailure) else repr(failed)
            self._drop(size - (self.published.written - before), said)

    def _give_up(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def _opened(self) -> TopicWriter:
        """Return a producer for an existing topic."""
        connection = Connection(
            bootstrap=self._bootstrap,
            timeout_s=TIMEOUT_S,
            client_id=CLIENT_ID,
            # A deleted topic is created again here, with its configs, and not by a produce request.
            properties={"allow.auto.create.topics": "false"},
        )
        admin = Admin(connection)
        if self._topic not in admin.find([self._topic]):
            self._create(admin)
        return TopicWriter(connection, self._topic, codec=CODEC, on_delivery=self._delivered)

    def _create(self, admin: Admin) -> None:
        try:
            admin.create([NewTopic(name=self._topic, partitions=PARTITIONS, configs=CONFIGS)])
        except KafkaFailure as failed:
            # The collector of another home may have created it first.
            if failed.name != TOPIC_EXISTS:
                raise
        else:
            self._log.info("metrics_topic.created", topic=self._topic)

    def _delivered(self, _told: Delivered) -> None:
        self.published.written += 1

    def _drop(self, records: int, reason: str) -> None:
        with self._counting:
            self.published.dropped += records
        self._log.limited("metrics_topic.dropped", topic=self._topic, reason=reason)
