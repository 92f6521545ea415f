"""From bytes to records: what is true is read back whole, and every lie is a typed error."""

import tracemalloc

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import DELETE_HORIZON_FLAG, Batch, read_batch
from brokers.protocol.records.builder import BatchBuilder, varint
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.reader import Record, records
from tests.brokers.protocol.records.samples import (
    CAPTURED,
    NOW_MS,
    SAMPLES,
    batch_of,
    build,
    captured,
    captured_records,
    seal,
)

MIB = 2**20
MARKERS = {"java-commit.bin", "java-abort.bin"}
NULL = b"\x01"


def read(batch: Batch, max_bytes: int = MIB) -> list[Record]:
    return list(records(batch, max_bytes=max_bytes))


def record(*fields: bytes, length: int | None = None) -> bytes:
    """Put one record together from its encoded fields after the attributes."""
    content = b"\x00" + b"".join(fields)
    return varint(len(content) if length is None else length) + content


@pytest.mark.parametrize(
    "name", [path.name for path in sorted(CAPTURED.glob("*.bin")) if path.name not in MARKERS]
)
def test_batches_of_real_clients_are_read_record_by_record(name: str) -> None:
    batch = read_batch(memoryview(captured(name)))
    batch.check_crc()
    expected = captured_records()
    if batch.uses_log_append_time:
        expected = [row._replace(timestamp=batch.max_timestamp) for row in expected]

    assert read(batch) == expected


@pytest.mark.parametrize("codec", Compression)
def test_null_empty_and_absent_are_kept_apart(codec: Compression) -> None:
    batch = read_batch(memoryview(build(compression=codec, base_offset=1000)))

    found = read(batch)

    assert [(row.key, row.value, row.headers, row.timestamp) for row in found] == list(SAMPLES)
    assert [row.offset for row in found] == list(range(1000, 1000 + len(SAMPLES)))


def test_the_brokers_time_replaces_that_of_every_record() -> None:
    batch = read_batch(memoryview(build()))

    batch.stamp_log_append_time(NOW_MS + 5)

    assert {row.timestamp for row in read(batch)} == {NOW_MS + 5}


def test_gaps_of_compaction_and_an_emptied_batch_are_read() -> None:
    builder = BatchBuilder(base_offset=10)
    for offset in (12, 15, 300):
        builder.append(b"key", None, timestamp=NOW_MS, offset=offset)
    compacted = seal(builder.build(), attributes=DELETE_HORIZON_FLAG)
    emptied = batch_of(b"", record_count=0, attributes=Compression.GZIP)

    assert [row.offset for row in read(read_batch(memoryview(compacted)))] == [12, 15, 300]
    assert read(emptied) == []


def test_bytes_behind_no_records_are_corrupt() -> None:
    with pytest.raises(KafkaError, match="4 bytes follow the 0 records"):
        read(batch_of(b"left", record_count=0))


def test_padded_numbers_are_read_like_short_ones() -> None:
    """Nothing forbids a varint that is longer than it must be."""
    padded = b"\x80\x80\x00"
    body = record(padded, padded, b"\x82\x00k", b"\x82\x80\x00v", padded)

    assert read(batch_of(body, record_count=1)) == [Record(0, NOW_MS, b"k", b"v", ())]


ZERO, ONE = varint(0), varint(1)
LONG = b"\xff" * 9 + b"\x01"  # the widest number that still has 64 bits: -2^63
KEYED = (ZERO, ZERO, varint(1), b"k", varint(1), b"v")
LIES = {
    "record longer than the body": record(*KEYED, ZERO, length=100),
    "record shorter than its fields": record(*KEYED, ZERO, length=7),
    "record with a tail": record(*KEYED, ZERO, b"tail"),
    "negative record": varint(-1) + b"\x00" * 8,
    "eleven-byte number": record(b"\x80" * 10 + b"\x00", ZERO, NULL, NULL, ZERO),
    "65-bit number": record(b"\xff" * 9 + b"\x03", ZERO, NULL, NULL, ZERO),
    "endless number": record(b"\xff" * 40),
    "64-bit offset delta": record(ZERO, LONG, NULL, NULL, ZERO),
    "33-bit key length": record(ZERO, ZERO, varint(2**32), NULL, ZERO),
    "negative key": record(ZERO, ZERO, varint(-2), NULL, ZERO),
    "negative value": record(ZERO, ZERO, NULL, varint(-(2**31)), ZERO),
    "key past the end": record(ZERO, ZERO, varint(50), NULL, ZERO),
    "key of 2 GiB": record(ZERO, ZERO, varint(2**31 - 1), NULL, ZERO),
    "value past the record": record(ZERO, ZERO, NULL, varint(3), b"v", ZERO),
    "negative header count": record(*KEYED, varint(-1)),
    "more headers than bytes": record(*KEYED, varint(2), b"\x00\x00"),
    "2^31 headers": record(*KEYED, varint(2**31 - 1), b"\x00" * 8),
    "header without a key": record(*KEYED, ONE, NULL, NULL),
    "header past the record": record(*KEYED, ONE, varint(9), b"h", NULL),
    "negative offset delta": record(ZERO, varint(-1), NULL, NULL, ZERO),
    "offset delta past the last": record(ZERO, varint(44), NULL, NULL, ZERO),
    "cut inside": record(*KEYED, ZERO)[:-2],
    "nothing": b"",
}


@pytest.mark.parametrize("body", LIES.values(), ids=LIES.keys())
def test_every_lie_in_a_record_is_corrupt(body: bytes) -> None:
    with pytest.raises(KafkaError) as caught:
        read(batch_of(body, record_count=1))

    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("count", [-(2**31), -1, 1, 43, 45, 2**31 - 1])
def test_a_lying_record_count_is_corrupt(count: int) -> None:
    with pytest.raises(KafkaError) as caught:
        read(read_batch(memoryview(seal(build(), record_count=count))))

    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_offsets_that_do_not_rise_are_corrupt() -> None:
    twice = record(ZERO, ZERO, NULL, NULL, ZERO) * 2

    with pytest.raises(KafkaError, match="offset delta 0 follows 0"):
        read(batch_of(twice, record_count=2))


def test_a_body_cut_at_any_byte_is_corrupt() -> None:
    data = build(SAMPLES[:6])

    for length in range(61, len(data)):
        with pytest.raises(KafkaError) as caught:
            read(read_batch(memoryview(seal(data[:length]))))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


def test_an_unknown_codec_is_refused_before_anything_is_read() -> None:
    with pytest.raises(KafkaError) as caught:
        read(read_batch(memoryview(seal(build(), attributes=7))))

    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_a_body_above_the_callers_cap_is_too_large() -> None:
    batch = read_batch(memoryview(build(compression=Compression.GZIP)))

    with pytest.raises(KafkaError) as caught:
        read(batch, max_bytes=100)

    assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_reading_needs_no_more_than_twice_the_bytes_given() -> None:
    big = [(b"key", bytes(MIB), ((b"header", bytes(MIB)),), NOW_MS)]
    batch = read_batch(memoryview(build(big)))

    tracemalloc.start()
    for _ in records(batch, max_bytes=4 * MIB):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak <= 2 * batch.size + 4096


def test_a_lie_costs_no_memory() -> None:
    body = record(*KEYED, varint(2**31 - 1), bytes(64))
    batch = batch_of(body, record_count=1)

    tracemalloc.start()
    with pytest.raises(KafkaError):
        read(batch)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak <= 16 * 1024
