"""Decoded columns compared with Samsa's own reader of records."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brokers.protocol.records.compression import Compression
from spark_integration.datasource.batches import batches
from spark_integration.datasource.columns import arrow_batch, arrow_schema, spark_schema
from spark_integration.datasource.decode import Section, decode, unpack
from spark_integration.datasource.errors import CorruptBatch
from tests.builders.spark_batches import Row, packed_batch

ALL = 2**62
FIELD = st.none() | st.binary(max_size=200)
ROWS = st.lists(st.tuples(FIELD, FIELD), max_size=30)
HEADERS = st.lists(st.tuples(st.text(max_size=5).map(str.encode), FIELD), max_size=4)


def decoded(*packed: bytes, start: int = 0, end: int = ALL) -> list[dict[str, Any]]:
    sections = [unpack(batch) for batch in batches(memoryview(b"".join(packed)))]
    columns = decode(sections, start=start, end=end, has_headers=True)
    return list(arrow_batch(columns, topic="t", partition=3).to_pylist())


def pairs(rows: list[dict[str, Any]]) -> list[Row]:
    return [(row["key"], row["value"]) for row in rows]


@given(st.lists(ROWS, min_size=1, max_size=4), st.sampled_from(list(Compression)))
def test_records_come_as_they_were_written(parts: list[list[Row]], codec: Compression) -> None:
    packed, base = [], 0
    for part in parts:
        if part:
            packed.append(packed_batch(part, base_offset=base, codec=codec))
            base += len(part)

    rows = decoded(*packed)

    assert pairs(rows) == [row for part in parts for row in part]
    assert [row["offset"] for row in rows] == list(range(base))


@given(st.lists(HEADERS, min_size=1, max_size=6))
def test_headers_come_in_their_order(lists: list[list[tuple[bytes, bytes | None]]]) -> None:
    packed = [packed_batch(base_offset=at, headers=pairs) for at, pairs in enumerate(lists)]

    rows = decoded(*packed)

    expected = [
        [{"key": key.decode(), "value": value} for key, value in pairs] or None for pairs in lists
    ]
    assert [row["headers"] for row in rows] == expected


def test_header_name_that_is_not_text_is_marked() -> None:
    (row,) = decoded(packed_batch(headers=[(b"\xff", b"1")]))

    assert row["headers"] == [{"key": "\ufffd", "value": b"1"}]


def test_offsets_keep_their_gaps_and_the_range_its_bounds() -> None:
    packed = packed_batch([(b"a", None), (b"b", b"2"), (None, b"3")], offsets=[0, 5, 900])

    rows = decoded(packed, start=1, end=900)

    assert pairs(rows) == [(b"b", b"2")]
    assert [row["offset"] for row in rows] == [5]
    assert pairs(decoded(packed, start=6, end=900)) == []


def test_times_are_the_producers_or_the_brokers() -> None:
    packed = bytearray(packed_batch([(b"a", b"1"), (b"b", b"2")], timestamp=1_700_000_000_123))
    stamped = bytearray(packed)
    stamped[22] |= 8  # the broker's clock
    sections = [
        unpack(batch)
        for data in (packed, stamped)
        for batch in batches(memoryview(data), has_to_check=False)
    ]

    columns = decode(sections, start=0, end=ALL)

    assert columns.timestamps.tolist() == [
        1_700_000_000_123,
        1_700_000_000_124,
        1_700_000_000_124,
        1_700_000_000_124,
    ]
    assert columns.timestamp_types.tolist() == [0, 0, 1, 1]


def test_arrow_has_the_types_that_spark_compares() -> None:
    sections = [unpack(batch) for batch in batches(memoryview(packed_batch()))]

    batch = arrow_batch(decode(sections, start=0, end=ALL), topic="t", partition=3)

    assert batch.schema == arrow_schema(has_headers=False)
    assert spark_schema(has_headers=True).startswith("key binary, value binary, topic string")
    assert str(batch.schema.field("timestamp").type) == "timestamp[us, tz=UTC]"


def section(data: bytes, count: int) -> Section:
    return Section(
        data=memoryview(data),
        base_offset=7,
        base_timestamp=0,
        append_time=None,
        record_count=count,
    )


@pytest.mark.parametrize(
    ("data", "count", "said"),
    [
        (b"\x50\x00\x00\x00\x01\x01\x00", 1, "longer than the rest"),
        (b"\x01\x00\x00\x00\x01\x01\x00", 1, "longer than the rest"),
        (b"\x0c\x00\x00\x00\x01\x01\x00more", 1, "leaves 4 bytes"),
        (b"\x0c\x00\x00\x00\x01\x01\x00", 2, "longer than the rest"),
        (b"\x0c\x00\x00\x00\x01\x7e\x00", 1, "beyond its end"),
        (b"\x0c\x00\x00\x00\x03\x01\x00", 1, "below -1"),
        (b"\x0e\x00\x00\xff\xff\xff\xff\xff", 1, "number of more than"),
        (b"\x02\x00", 1, "beyond its end"),
        (b"\x0c\x00\x00\x00\x01\x01\x02", 1, "beyond its end"),
        (b"\x0c\x00\x00\x00\x01\x01\x01", 1, "negative number of headers"),
        (b"\x10\x00\x00\x00\x01\x01\x02\x01\x01", 1, "has no key"),
        (b"\xff\xff\xff\xff\xff\xff\xff", 1, "longer than the rest"),
    ],
)
def test_lengths_that_lead_elsewhere_are_corrupt(data: bytes, count: int, said: str) -> None:
    with pytest.raises(CorruptBatch, match=said):
        decode([section(data, count)], start=0, end=ALL, has_headers=True)


@given(st.binary(max_size=60), st.integers(min_value=0, max_value=6))
def test_no_bytes_at_all_are_read_past_their_end(data: bytes, count: int) -> None:
    sections: Sequence[Section] = [section(data, count)]

    try:
        columns = decode(sections, start=0, end=ALL, has_headers=True)
    except CorruptBatch:
        return
    assert len(columns.keys) == len(columns.values) == len(columns.offsets) <= count
