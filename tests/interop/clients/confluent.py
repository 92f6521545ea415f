"""confluent-kafka (librdkafka) as a client of the matrix."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from brokers.protocol.records.compression import Compression
from tests.interop.clients.client import SECONDS
from tests.interop.clients.records import Row, Sent, Trait

# A broker that goes away at the end of a test is no news.
QUIET = {"log_level": 2}
# Batches of several records, whatever the machine is busy with.
LINGER_MS = 20
# How many messages one call brings, and how long it waits to have as many.
POLL_RECORDS = 1000
POLL_SECONDS = 0.05


class ConfluentClient:
    name = "confluent-kafka"
    needs: tuple[str, ...] = ()
    cannot_write: Mapping[Trait, str] = {}

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        codec: Compression,
        *,
        idempotent: bool,
    ) -> None:
        errors: list[str] = []

        def note(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                errors.append(str(error))

        producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "compression.type": codec.name.lower(),
                "enable.idempotence": idempotent,
                "linger.ms": LINGER_MS,
                "queue.buffering.max.messages": len(records) + 1,
                **QUIET,
            }
        )
        for sent in records:
            producer.produce(
                topic,
                sent.value,
                sent.key,
                sent.partition,
                timestamp=sent.timestamp,
                headers=list(sent.headers),
                on_delivery=note,
            )
            producer.poll(0)
        left = producer.flush(SECONDS)
        assert (left, errors) == (0, [])

    def read(self, bootstrap: str, topic: str, partitions: Sequence[int]) -> list[Row]:
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "samsa-test",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "check.crcs": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 10,
                **QUIET,
            }
        )
        rows: list[Row] = []
        reading = set(partitions)
        deadline = time.monotonic() + SECONDS
        try:
            consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
            while reading:
                assert time.monotonic() < deadline, f"{reading} not at the end after {SECONDS} s"
                for message in consumer.consume(POLL_RECORDS, POLL_SECONDS):
                    error = message.error()
                    if error is None:
                        rows.append(_row(message))
                        continue
                    # The client's own codes have no public names.
                    assert error.name() == "_PARTITION_EOF", str(error)
                    reading.discard(message.partition())
        finally:
            consumer.close()
        return rows


def _row(message: Message) -> Row:
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    headers: Any = message.headers() or ()
    return Row(
        partition, offset, message.timestamp()[1], message.key(), message.value(), tuple(headers)
    )
