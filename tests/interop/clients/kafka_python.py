"""kafka-python as a client of the matrix."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from brokers.protocol.records.compression import Compression
from tests.interop.clients.client import SECONDS
from tests.interop.clients.records import Row, Sent, Trait

LINGER_MS = 20
FETCH_WAIT_MS = 10
POLL_RECORDS = 2000


class KafkaPythonClient:
    name = "kafka-python"
    needs: tuple[str, ...] = ()
    cannot_write: Mapping[Trait, str] = {
        Trait.NULL_HEADER: "its send takes bytes only as a header's content",
        Trait.NULL_KEY_NULL_VALUE: "its send wants at least one of the two",
    }

    def write(
        self,
        bootstrap: str,
        topic: str,
        records: Sequence[Sent],
        codec: Compression,
        *,
        idempotent: bool,
    ) -> None:
        producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec is Compression.NONE else codec.name.lower(),
            enable_idempotence=idempotent,
            linger_ms=LINGER_MS,
        )
        try:
            waiting = [
                producer.send(
                    topic,
                    value=sent.value,
                    key=sent.key,
                    partition=sent.partition,
                    timestamp_ms=sent.timestamp,
                    headers=list(sent.headers),
                )
                for sent in records
            ]
            producer.flush(SECONDS)
            for future in waiting:
                future.get(0)
        finally:
            producer.close(timeout=1)

    def read(self, bootstrap: str, topic: str, partitions: Sequence[int]) -> list[Row]:
        places = [TopicPartition(topic, each) for each in partitions]
        consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            auto_offset_reset="none",
            enable_auto_commit=False,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            check_crcs=True,
        )
        rows: list[Row] = []
        deadline = time.monotonic() + SECONDS
        try:
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            ends = consumer.end_offsets(places)
            while any(consumer.position(place) < ends[place] for place in places):
                assert time.monotonic() < deadline, f"not at the end after {SECONDS} s"
                for batch in consumer.poll(1000, max_records=POLL_RECORDS).values():
                    rows += [_row(message) for message in batch]
        finally:
            consumer.close(autocommit=False)
        return rows


def _row(message: Any) -> Row:
    return Row(
        message.partition,
        message.offset,
        message.timestamp,
        message.key,
        message.value,
        tuple(message.headers),
    )
