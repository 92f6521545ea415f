"""What is encoded here is what a broker takes, and what it and foreign codecs read."""

import random
from collections.abc import Sequence

import lz4.frame
import pytest

from brokers.protocol.records.batch import Batch
from brokers.protocol.records.reader import records
from brokers.protocol.records.validation import ProduceRules, check_produced
from spark_integration.datasource import encode
from spark_integration.datasource.encode import (
    CODECS,
    NO_HEADERS,
    Header,
    Records,
    encoded_headers,
    pack,
    split,
)

Row = tuple[bytes | None, bytes | None, Sequence[Header]]

NOW = 1_700_000_000_000
MANY = 2**26
ROWS: Sequence[Row] = [
    (b"key", b"value", ()),
    (None, b"", ()),
    (b"", None, (("trace", b"\x00\xff"), ("empty", None), ("\u043a\u043b\u044e\u0447", b""))),
    (b"k" * 5000, b"v" * 150_000, ()),
    (b"noise", random.Random(1).randbytes(150_000), ()),
]


def collected(rows: Sequence[Row]) -> Records:
    made = Records(timestamp=NOW)
    for key, value, headers in rows:
        made.append(key, value, encoded_headers(headers))
    return made


def read(data: bytes) -> list[Row]:
    """Take a batch in as a broker does, and read its records."""
    batch = check_produced(memoryview(bytearray(data)), ProduceRules(), NOW)
    return [
        (
            record.key,
            record.value,
            tuple((str(name, "utf-8"), text) for name, text in record.headers),
        )
        for record in records(batch, max_bytes=MANY)
    ]


def sealed(body: bytes, count: int, codec: int = 0) -> bytes:
    return encode.batch(
        pack(codec, body),
        count=count,
        timestamp=NOW,
        codec=codec,
        producer_id=7,
        epoch=3,
        sequence=11,
    )


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_broker_takes_and_reads_every_codec(codec: int) -> None:
    made = collected(ROWS)

    data = sealed(b"".join(made.parts), made.count, codec)

    assert read(data) == ROWS
    batch = check_produced(memoryview(bytearray(data)), ProduceRules(), NOW)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 3, 11)
    assert batch.base_timestamp == batch.max_timestamp == NOW


@pytest.mark.parametrize("size", [0, 1, 2**16 - 1, 2**16, 2**16 + 1, 300_000])
def test_frames_of_lz4_are_those_of_the_format(size: int) -> None:
    data = random.Random(size).randbytes(size // 2) + bytes(size - size // 2)

    assert lz4.frame.decompress(pack(CODECS["lz4"], data)) == data


def test_the_size_of_records_is_known_before_they_are_joined() -> None:
    made = collected(ROWS)

    assert made.size == len(b"".join(made.parts))
    assert made.count == len(ROWS)


def test_more_records_than_a_byte_counts_keep_their_order() -> None:
    rows: list[Row] = [(None, str(number).encode(), ()) for number in range(20_000)]
    made = collected(rows)

    assert read(sealed(b"".join(made.parts), made.count)) == rows


@pytest.mark.parametrize("count", [2, 3, 400])
def test_both_halves_of_a_batch_are_batches(count: int) -> None:
    rows: list[Row] = [(b"k", bytes(number), (("h", b"1"),)) for number in range(count)]
    made = collected(rows)

    first, second = split(memoryview(b"".join(made.parts)), made.count)

    assert (len(first), len(second)) == (count // 2, count - count // 2)
    assert read(sealed(b"".join(first), len(first))) == rows[: count // 2]
    assert read(sealed(b"".join(second), len(second))) == rows[count // 2 :]


def test_no_headers_are_one_byte() -> None:
    assert encoded_headers(None) == encoded_headers(()) == NO_HEADERS


def test_the_header_is_that_of_the_broker() -> None:
    data = sealed(*next((b"".join(made.parts), made.count) for made in [collected(ROWS)]))

    assert Batch(memoryview(data)).size == len(data)
