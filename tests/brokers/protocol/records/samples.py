"""Batches for the tests of this folder: everything defaulted, whatever matters given by keyword."""

import json
from collections.abc import Sequence
from pathlib import Path

from brokers.protocol.records.batch import (
    CHECKED_POSITION,
    CRC,
    CRC_POSITION,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    Batch,
    read_batch,
)
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.crc32c import crc32c
from brokers.protocol.records.reader import Header, Record

NOW_MS = 1_700_000_000_000
CAPTURED = Path(__file__).parents[3] / "data" / "records"
FIELDS = (
    "base_offset",
    "length",
    "leader_epoch",
    "magic",
    "crc",
    "attributes",
    "last_offset_delta",
    "base_timestamp",
    "max_timestamp",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "record_count",
)

Sample = tuple[bytes | None, bytes | None, tuple[Header, ...], int]

SAMPLES: tuple[Sample, ...] = (
    (None, None, (), NOW_MS),
    (b"", b"", (), NOW_MS - 5),
    (b"alice", b"hello", ((b"trace", b"abc"), (b"", None), (b"trace", b"")), NOW_MS + 7),
    (b"\xff\xfe", b"samsa " * 200, ((b"\xff not utf-8", b"x"),), NOW_MS),
    *((b"user-%d" % (n % 3), b'{"id":%d}' % n, (), NOW_MS + n) for n in range(40)),
)


def build(
    samples: Sequence[Sample] = SAMPLES,
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    **fields: int,
) -> bytearray:
    """Build a batch; `fields` are further arguments of the builder."""
    builder = BatchBuilder(
        base_offset=base_offset,
        compression=compression,
        **fields,  # type: ignore[arg-type]  # True is an int
    )
    for key, value, headers, timestamp in samples:
        builder.append(key, value, headers, timestamp)
    return builder.build()


def batch_of(body: bytes, **fields: int) -> Batch:
    """Make a batch around bytes that stand for its records, its CRC and length right."""
    return read_batch(memoryview(seal(build(), body, **fields)))


def seal(batch: bytes | bytearray, body: bytes | None = None, **fields: int) -> bytearray:
    """Give a batch other header fields or another body, then make length and CRC right again."""
    sealed = bytearray(batch if body is None else batch[:HEADER_SIZE] + body)
    values = dict(zip(FIELDS, HEADER.unpack_from(sealed), strict=True))
    values |= {"length": len(sealed) - LOG_OVERHEAD} | fields
    HEADER.pack_into(sealed, 0, *values.values())
    if "crc" not in fields:
        CRC.pack_into(sealed, CRC_POSITION, crc32c(memoryview(sealed)[CHECKED_POSITION:]))
    return sealed


def captured(name: str) -> bytearray:
    return bytearray(CAPTURED.joinpath(name).read_bytes())


def captured_records() -> list[Record]:
    """Read what every captured batch holds."""

    def data(text: str | None) -> bytes | None:
        return None if text is None else bytes.fromhex(text)

    rows = json.loads(CAPTURED.joinpath("expected.json").read_text(encoding="utf-8"))
    return [
        Record(
            offset,
            row["timestamp"],
            data(row["key"]),
            data(row["value"]),
            tuple((name.encode(), data(content)) for name, content in row["headers"]),
        )
        for offset, row in enumerate(rows)
    ]
