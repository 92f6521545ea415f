"""Makes the captured batches in this folder: `python -m tests.data.records.capture [CLIENT …]`.

Each client writes the same records with each codec. Python clients and the Java client are asked
for their own batch builders. librdkafka has none to call, so it produces to its own mock cluster,
and a Fetch written by hand takes the batch out again: the mock rewrites the base offset (outside of
the CRC) and nothing else.
"""

import itertools
import json
import socket
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiokafka.record.default_records as aiokafka_records
import kafka.record.default_records as kafka_python_records
from confluent_kafka import Producer

from tests.oracles.java import gateway

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "expected.json"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
START_MS = 1_700_000_000_000
PRODUCER_ID, PRODUCER_EPOCH, BASE_SEQUENCE = 4242, 3, 17
APPEND_TIME_MS = START_MS + 999_999
COORDINATOR_EPOCH = 29

Header = tuple[str, str | bytes | None]
Sample = tuple[int, bytes | None, bytes | None, list[Header]]
Captured = dict[str, bytes]


def samples() -> list[Sample]:
    """List what every client writes: (timestamp, key, value, headers)."""
    odd_headers: list[Header] = [
        ("trace", b"abc"),
        ("empty", b""),
        ("null", None),
        ("trace", b"twice"),
        ("ключ", "значение".encode()),
    ]
    listed: list[Sample] = [
        (START_MS, None, None, []),
        (START_MS, b"", b"", []),
        (START_MS + 1, b"alice", b"hello", []),
        (START_MS + 2, "Привет".encode(), "日本語 🚀".encode(), []),
        (START_MS + 3, b"headers", b"five", odd_headers),
        (START_MS + 4, bytes(range(256)), bytes(reversed(range(256))), []),
        (START_MS + 5, None, b"samsa " * 500, []),
        (START_MS - 60_000, b"late", None, []),
        (START_MS + 300_000, b"early", b"x", [("", b"a header without a name")]),
    ]
    listed += [
        (START_MS + 10 + index, b"user-%d" % (index % 7), b'{"id":%d,"ok":true}' % index, [])
        for index in range(60)
    ]
    return listed


def capture_kafka_python() -> Captured:
    return {
        f"kafka-python-{codec}.bin": build_in_python(kafka_python_records, codec)
        for codec in CODECS
    }


def capture_aiokafka() -> Captured:
    return {f"aiokafka-{codec}.bin": build_in_python(aiokafka_records, codec) for codec in CODECS}


def build_in_python(library: Any, codec: str) -> bytes:
    """Both Python libraries have the same builder, by descent."""
    builder = library.DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS.index(codec),
        is_transactional=0,
        producer_id=PRODUCER_ID,
        producer_epoch=PRODUCER_EPOCH,
        base_sequence=BASE_SEQUENCE,
        batch_size=1 << 20,
    )
    for offset, (timestamp, key, value, headers) in enumerate(samples()):
        assert builder.append(offset, timestamp=timestamp, key=key, value=value, headers=headers)
    return bytes(builder.build())


def capture_librdkafka() -> Captured:
    captured = {
        f"librdkafka-{codec}.bin": produce_to_mock(codec, {"enable.idempotence": True})
        for codec in CODECS
    }
    captured["librdkafka-plain.bin"] = produce_to_mock("none", {"enable.idempotence": False})
    return captured


def produce_to_mock(codec: str, settings: dict[str, Any]) -> bytes:
    producer = Producer(
        {
            "bootstrap.servers": "ignored:1",
            "test.mock.num.brokers": 1,
            "compression.type": codec,
            "linger.ms": 500,
            **settings,
        }
    )
    for timestamp, key, value, headers in samples():
        producer.produce("captured", value, key, 0, timestamp=timestamp, headers=headers)
    assert producer.flush(30) == 0
    broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
    return fetch_first_batch(broker.host, broker.port)


def fetch_first_batch(host: str, port: int) -> bytes:
    def string(text: bytes) -> bytes:
        return struct.pack(">h", len(text)) + text

    header = struct.pack(">hhi", 1, 4, 1) + string(b"capture")
    body = struct.pack(">iiiibi", -1, 1000, 1, 1 << 20, 0, 1) + string(b"captured")
    body += struct.pack(">iiqi", 1, 0, 0, 1 << 20)
    with socket.create_connection((host, port)) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(header + body)) + header + body)
        answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    # Correlation id, throttle time, one topic with its name, one partition: index, error, high
    # watermark, last stable offset, no aborted transactions; then the bytes of the records.
    at = 4 + 4 + 4 + 2 + len(b"captured") + 4
    error, aborted = struct.unpack_from(">4xh16xi", answer, at)
    assert error == 0
    at += 26 + max(aborted, 0) * 16
    records = answer[at + 4 : at + 4 + struct.unpack_from(">i", answer, at)[0]]
    size = 12 + struct.unpack_from(">8xi", records)[0]
    assert size == len(records), "the mock holds more than one batch: raise linger.ms"
    return records


def capture_java() -> Captured:
    captured = {f"java-{codec}.bin": build_in_java(codec) for codec in CODECS}
    captured["java-log-append-time.bin"] = build_in_java("none", stamps=True)
    for word in ("commit", "abort"):
        captured[f"java-{word}.bin"] = build_java_marker(word.upper())
    return captured


def build_in_java(codec: str, *, stamps: bool = False) -> bytes:
    java = gateway().jvm
    kafka = java.org.apache.kafka.common
    times = kafka.record.TimestampType
    builder = kafka.record.internal.MemoryRecords.builder(
        java.java.nio.ByteBuffer.allocate(1 << 20),
        java.Byte.parseByte("2"),
        kafka.compress.Compression.of(codec).build(),
        times.LOG_APPEND_TIME if stamps else times.CREATE_TIME,
        0,
        APPEND_TIME_MS if stamps else -1,
        PRODUCER_ID,
        java.Short.parseShort(str(PRODUCER_EPOCH)),
        BASE_SEQUENCE,
        True,  # transactional
        -1,
    )
    for timestamp, key, value, headers in samples():
        row = gateway().new_array(kafka.header.Header, len(headers))
        for index, (name, content) in enumerate(headers):
            row[index] = kafka.header.internals.RecordHeader(name, content)
        builder.append(timestamp, key, value, row)
    return java_bytes(builder.build())


def build_java_marker(word: str) -> bytes:
    java = gateway().jvm
    record = java.org.apache.kafka.common.record.internal
    kind = getattr(record.ControlRecordType, word)
    marker = record.EndTransactionMarker(kind, COORDINATOR_EPOCH)
    epoch = java.Short.parseShort(str(PRODUCER_EPOCH))
    return java_bytes(
        record.MemoryRecords.withEndTransactionMarker(0, START_MS, 7, PRODUCER_ID, epoch, marker),
    )


def java_bytes(records: Any) -> bytes:
    utils = gateway().jvm.org.apache.kafka.common.utils.Utils
    return bytes(utils.toArray(records.buffer()))


CLIENTS: dict[str, Callable[[], Captured]] = {
    "librdkafka": capture_librdkafka,
    "kafka-python": capture_kafka_python,
    "aiokafka": capture_aiokafka,
    "java": capture_java,
}


def write_expected() -> None:
    """Write the records as JSON: bytes as hexadecimal digits, null as null."""

    def text(data: str | bytes | None) -> str | None:
        return data.hex() if isinstance(data, bytes) else data

    rows = [
        {
            "timestamp": timestamp,
            "key": text(key),
            "value": text(value),
            "headers": [[name, text(content)] for name, content in headers],
        }
        for timestamp, key, value, headers in samples()
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    EXPECTED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main(names: list[str]) -> None:
    write_expected()
    chosen = [CLIENTS[name]() for name in names or CLIENTS]
    for name, data in itertools.chain.from_iterable(captured.items() for captured in chosen):
        FOLDER.joinpath(name).write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1:])
