"""From bytes to records: what is true is read back whole, and every lie is a typed error."""

import tracemalloc
from collections.abc import Callable

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import (
    DELETE_HORIZON_FLAG,
    LOG_APPEND_TIME_FLAG,
    Batch,
    read_batch,
)
from brokers.protocol.records.builder import BatchBuilder, varint
from brokers.protocol.records.compression import OUTPUT_STEP, Compression
from brokers.protocol.records.reader import PACE, Outline, Record, outlines, records, stamp_from
from tests.brokers.protocol.records.samples import (
    CAPTURED,
    NOW_MS,
    SAMPLES,
    Sample,
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


def outline(batch: Batch, max_bytes: int = MIB) -> list[tuple[int, int, bool]]:
    return rows(batch, max_bytes=max_bytes, max_parts=1000)


def rows(batch: Batch, *, max_bytes: int = MIB, max_parts: int) -> list[Outline]:
    """Outlines without their pauses."""
    paced = outlines(batch, max_bytes=max_bytes, max_parts=max_parts)
    return [row for row in paced if row is not None]


READINGS = pytest.mark.parametrize("reading", [read, outline])
Reading = Callable[[Batch], object]


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
    assert outline(batch) == [(row.offset, row.timestamp, row.key is not None) for row in expected]


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
    assert {timestamp for _, timestamp, _ in outline(batch)} == {NOW_MS + 5}


def test_gaps_of_compaction_and_an_emptied_batch_are_read() -> None:
    builder = BatchBuilder(base_offset=10)
    for offset in (12, 15, 300):
        builder.append(b"key", None, timestamp=NOW_MS, offset=offset)
    compacted = seal(builder.build(), attributes=DELETE_HORIZON_FLAG)
    emptied = batch_of(b"", record_count=0, attributes=Compression.GZIP)

    assert [row.offset for row in read(read_batch(memoryview(compacted)))] == [12, 15, 300]
    assert outline(read_batch(memoryview(compacted))) == [
        (offset, NOW_MS, True) for offset in (12, 15, 300)
    ]
    assert read(emptied) == []
    assert outline(emptied) == []


@READINGS
def test_bytes_behind_no_records_are_corrupt(reading: Reading) -> None:
    with pytest.raises(KafkaError, match="4 bytes follow the 0 records"):
        reading(batch_of(b"left", record_count=0))


def test_padded_numbers_are_read_like_short_ones() -> None:
    """Nothing forbids a varint that is longer than it must be."""
    padded = b"\x80\x80\x00"
    body = record(padded, padded, b"\x82\x00k", b"\x82\x80\x00v", padded)

    assert read(batch_of(body, record_count=1)) == [Record(0, NOW_MS, b"k", b"v", ())]
    assert outline(batch_of(body, record_count=1)) == [(0, NOW_MS, True)]


def test_a_padded_null_is_no_key_either() -> None:
    body = record(ZERO, ZERO, b"\x81\x00", b"\x81\x80\x80\x80\x00", ZERO)

    assert read(batch_of(body, record_count=1)) == [Record(0, NOW_MS, None, None, ())]
    assert outline(batch_of(body, record_count=1)) == [(0, NOW_MS, False)]


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
    "six-byte offset delta": record(ZERO, b"\x80" * 5 + b"\x00", NULL, NULL, ZERO),
    "six-byte key length": record(ZERO, ZERO, b"\x82" + b"\x80" * 4 + b"\x00", b"k", NULL, ZERO),
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
    "padded header without a key": record(*KEYED, ONE, b"\x81\x00", NULL),
    "header past the record": record(*KEYED, ONE, varint(9), b"h", NULL),
    "negative offset delta": record(ZERO, varint(-1), NULL, NULL, ZERO),
    "offset delta past the last": record(ZERO, varint(44), NULL, NULL, ZERO),
    "cut inside": record(*KEYED, ZERO)[:-2],
    "nothing": b"",
}


def corruption(reading: Reading, batch: Batch) -> str:
    with pytest.raises(KafkaError) as caught:
        reading(batch)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    return caught.value.message


@READINGS
@pytest.mark.parametrize("body", LIES.values(), ids=LIES.keys())
def test_every_lie_in_a_record_is_corrupt(reading: Reading, body: bytes) -> None:
    assert corruption(reading, batch_of(body, record_count=1))


@pytest.mark.parametrize("count", [-(2**31), -1, 1, 43, 45, 2**31 - 1])
def test_a_lying_record_count_is_corrupt(count: int) -> None:
    assert corruption(read, read_batch(memoryview(seal(build(), record_count=count))))


@READINGS
def test_offsets_that_do_not_rise_are_corrupt(reading: Reading) -> None:
    twice = record(ZERO, ZERO, NULL, NULL, ZERO) * 2

    message = corruption(reading, batch_of(twice, record_count=2))

    assert "offset delta 0 follows 0" in message


@READINGS
def test_timestamps_beyond_64_bits_are_corrupt(reading: Reading) -> None:
    late, early = (record(varint(delta), ZERO, NULL, NULL, ZERO) for delta in (1, -1))
    latest = {"base_timestamp": 2**63 - 1, "record_count": 1}
    earliest = {"base_timestamp": -(2**63), "record_count": 1}

    assert "64 bits" in corruption(reading, batch_of(late, **latest))
    assert "64 bits" in corruption(reading, batch_of(early, **earliest))
    # No sum is made where the broker's own time stands for every record.
    stamped = batch_of(late, **latest, attributes=LOG_APPEND_TIME_FLAG, max_timestamp=NOW_MS)
    reading(stamped)
    reading(batch_of(early, **latest))
    reading(batch_of(late, **earliest))


@READINGS
def test_offsets_beyond_64_bits_are_corrupt(reading: Reading) -> None:
    one = record(ZERO, ONE, NULL, NULL, ZERO)
    fields = {"record_count": 1, "last_offset_delta": 1}

    reading(batch_of(one, **fields, base_offset=2**63 - 2))
    assert "64 bits" in corruption(reading, batch_of(one, **fields, base_offset=2**63 - 1))


@READINGS
def test_a_body_cut_at_any_byte_is_corrupt(reading: Reading) -> None:
    data = build(SAMPLES[:6])

    for length in range(61, len(data)):
        assert corruption(reading, read_batch(memoryview(seal(data[:length]))))


def test_outlines_stop_at_the_limit_of_records_and_headers() -> None:
    batch = read_batch(memoryview(build()))
    parts = sum(1 + len(headers) for _, _, headers, _ in SAMPLES)

    assert len(rows(batch, max_parts=parts)) == len(SAMPLES)

    for limit in (parts - 1, len(SAMPLES), len(SAMPLES) - 1):
        with pytest.raises(KafkaError, match=f"limit of {limit}") as caught:
            rows(batch, max_parts=limit)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE


def test_outlines_count_records_before_they_unpack_them() -> None:
    batch = batch_of(b"no frame", attributes=Compression.ZSTD, record_count=9)

    with pytest.raises(KafkaError, match="limit of 8"):
        rows(batch, max_parts=8)


@pytest.mark.parametrize(
    "samples",
    [
        [(b"k", b"", (), NOW_MS)] * 10 * PACE,
        [(b"k", b"", ((b"", None),) * 10 * PACE, NOW_MS)],
        [(b"k", b"", ((b"", None),) * (PACE // 2), NOW_MS)] * 20,
    ],
    ids=["records", "headers of one record", "headers of many"],
)
def test_outlines_pause_after_so_many_records_and_headers(samples: list[Sample]) -> None:
    batch = read_batch(memoryview(build(samples)))

    paced = list(outlines(batch, max_bytes=MIB, max_parts=100 * PACE))

    assert paced.count(None) >= 9
    assert [row for row in paced if row is not None] == outline_by_reading(batch)


def test_outlines_pause_while_they_unpack() -> None:
    data = build([(b"k", bytes(8 * OUTPUT_STEP), (), NOW_MS)], compression=Compression.ZSTD)

    paced = outlines(read_batch(memoryview(data)), max_bytes=9 * OUTPUT_STEP, max_parts=10)

    assert [next(paced) for _ in range(8)] == [None] * 8


def outline_by_reading(batch: Batch) -> list[Outline]:
    return [(row.offset, row.timestamp, row.key is not None) for row in read(batch)]


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


def stamp(batch: Batch, offset: int, max_bytes: int = MIB) -> tuple[int, int] | None:
    return stamp_from(batch, offset, max_bytes=max_bytes, max_records=1000)


@pytest.mark.parametrize(
    "name", [path.name for path in sorted(CAPTURED.glob("*.bin")) if path.name not in MARKERS]
)
def test_one_record_is_found_with_the_time_that_a_reader_sees(name: str) -> None:
    batch = read_batch(memoryview(captured(name)))
    rows = read(batch)

    for offset in range(batch.base_offset - 2, batch.last_offset + 1):
        row = next(row for row in rows if row.offset >= offset)
        assert stamp(batch, offset) == (row.offset, row.timestamp)
    assert stamp(batch, batch.last_offset + 1) is None


def test_one_record_is_found_where_compaction_left_gaps() -> None:
    builder = BatchBuilder()
    for offset in (0, 3, 4, 9):
        builder.append(None, b"v" * 100, timestamp=NOW_MS + offset, offset=offset)
    batch = read_batch(memoryview(builder.build()))

    found = [stamp(batch, offset) for offset in range(11)]

    expected = [0, 3, 3, 3, 4, 9, 9, 9, 9, 9]
    assert found == [*((offset, NOW_MS + offset) for offset in expected), None]


def test_the_time_of_a_record_is_not_looked_for_among_too_many() -> None:
    batch = read_batch(memoryview(build()))

    with pytest.raises(KafkaError) as refused:
        stamp_from(batch, 0, max_bytes=MIB, max_records=len(SAMPLES) - 1)

    assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("body", [b"\x01" * 40, b"\x80" * 40, b"\x50" + b"\x00" * 40])
def test_a_lie_on_the_way_to_one_record_is_corrupt(body: bytes) -> None:
    batch = batch_of(body, record_count=3, last_offset_delta=2)

    with pytest.raises(KafkaError) as refused:
        stamp(batch, 2)

    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
