"""What the builder writes is what other libraries read, and byte for byte what they write."""

import warnings
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given
from hypothesis import strategies as st

from brokers.protocol.errors import EncodeError
from brokers.protocol.records.batch import HEADER_SIZE, read_batch
from brokers.protocol.records.builder import BatchBuilder, varint
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.reader import Record, records
from tests.brokers.protocol.records.samples import (
    SAMPLES,
    Sample,
    build,
    captured,
    captured_records,
    seal,
)

with warnings.catch_warnings():
    # It reads its schemas through a function that Python 3.11 deprecates.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record import MemoryRecords as KafkaPythonRecords

LIBRARIES = {"kafka-python": KafkaPythonRecords, "aiokafka": AiokafkaRecords}
# Both libraries decode header keys, so what they are given must be text.
READABLE = [sample for sample in SAMPLES if all(name.isascii() for name, _ in sample[2])]

small = st.none() | st.binary(max_size=20)
headers = st.lists(st.tuples(st.binary(max_size=8), small), max_size=3).map(tuple)
times = st.integers(-(2**62), 2**62)
samples = st.lists(st.tuples(small, small, headers, times), min_size=1, max_size=8)


@given(samples, st.sampled_from(Compression), st.integers(0, 2**62))
def test_every_record_comes_back_as_it_was_given(
    rows: list[Sample], codec: Compression, base_offset: int
) -> None:
    data = build(rows, compression=codec, base_offset=base_offset)

    batch = read_batch(memoryview(data))

    batch.check_crc()
    assert list(records(batch, max_bytes=2**20)) == [
        Record(base_offset + delta, timestamp, key, value, tuple(row_headers))
        for delta, (key, value, row_headers, timestamp) in enumerate(rows)
    ]
    assert batch.max_timestamp == max(timestamp for *_, timestamp in rows)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("codec", Compression)
def test_other_libraries_read_our_batches(library: str, codec: Compression) -> None:
    data = build(
        READABLE,
        compression=codec,
        base_offset=70,
        producer_id=5,
        producer_epoch=1,
        base_sequence=0,
        is_transactional=True,
    )

    theirs = LIBRARIES[library](bytes(data)).next_batch()

    assert theirs.validate_crc()
    assert (theirs.producer_id, theirs.is_transactional) == (5, True)
    found = [(row.offset, row.key, row.value, tuple(row.headers), row.timestamp) for row in theirs]
    assert found == [
        (70 + delta, key, value, tuple((name.decode(), content) for name, content in heads), time)
        for delta, (key, value, heads, time) in enumerate(READABLE)
    ]


@pytest.mark.parametrize("client", ["java", "librdkafka", "kafka-python", "aiokafka"])
def test_without_compression_our_bytes_are_those_of_other_clients(client: str) -> None:
    theirs = read_batch(memoryview(captured(f"{client}-none.bin")))
    builder = BatchBuilder(
        producer_id=theirs.producer_id,
        producer_epoch=theirs.producer_epoch,
        base_sequence=theirs.base_sequence,
        leader_epoch=theirs.leader_epoch,
        is_transactional=theirs.is_transactional,
    )

    for row in captured_records():
        builder.append(row.key, row.value, row.headers, row.timestamp)

    assert builder.size == theirs.size
    assert builder.build() == theirs.buffer


def test_a_level_makes_a_batch_smaller() -> None:
    builder = BatchBuilder(compression=Compression.GZIP)
    for key, value, row_headers, timestamp in SAMPLES:
        builder.append(key, value, row_headers, timestamp)

    assert len(builder.build(level=9)) < len(builder.build(level=1))


def test_a_record_without_a_timestamp_says_so() -> None:
    builder = BatchBuilder()
    builder.append(b"key", None)

    batch = read_batch(memoryview(builder.build()))

    assert (batch.base_timestamp, batch.max_timestamp) == (-1, -1)
    assert next(records(batch, max_bytes=99)).timestamp == -1


def test_offsets_must_rise_and_fit_their_delta() -> None:
    builder = BatchBuilder(base_offset=100)
    builder.append(None, None, offset=105)

    for offset in (99, 105, 100 + 2**31):
        with pytest.raises(EncodeError):
            builder.append(None, None, offset=offset)

    builder.append(None, None)
    assert read_batch(memoryview(builder.build())).last_offset == 106


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(EncodeError, match="needs a record"):
        BatchBuilder().build()


def test_a_timestamp_beyond_64_bits_is_refused() -> None:
    builder = BatchBuilder()
    builder.append(None, None, timestamp=-(2**62))

    with pytest.raises(EncodeError, match="64 bits"):
        builder.append(None, None, timestamp=2**63)


@pytest.mark.parametrize("timestamp", [2**63, -(2**63) - 1, 2**64, 2**80])
def test_even_the_first_timestamp_must_fit_64_bits(timestamp: int) -> None:
    builder = BatchBuilder()

    with pytest.raises(EncodeError, match="64 bits"):
        builder.append(None, None, timestamp=timestamp)


def test_the_outermost_timestamps_and_offsets_are_written() -> None:
    builder = BatchBuilder(base_offset=2**63 - 2)
    builder.append(None, None, timestamp=2**63 - 1)
    builder.append(None, None, timestamp=0)

    with pytest.raises(EncodeError, match="64 bits"):
        builder.append(None, None)

    found = list(records(read_batch(memoryview(builder.build())), max_bytes=99))
    assert [(row.offset, row.timestamp) for row in found] == [
        (2**63 - 2, 2**63 - 1),
        (2**63 - 1, 0),
    ]


def test_a_header_needs_a_name() -> None:
    nameless: Any = [(b"name", b"x"), (None, b"x")]

    with pytest.raises(EncodeError, match="name"):
        BatchBuilder().append(None, None, nameless)


def test_a_refused_record_leaves_no_trace() -> None:
    nameless: Any = [(None, b"x")]
    tried, untried = BatchBuilder(), BatchBuilder()

    for builder in (tried, untried):
        if builder is tried:
            with pytest.raises(EncodeError):
                builder.append(b"key", None, nameless, 5)
        builder.append(b"key", None, (), 7)
        if builder is tried:
            with pytest.raises(EncodeError):
                builder.append(b"key", None, nameless, 2**62, offset=70)
        builder.append(b"key", None, (), 3)

    assert tried.size == untried.size
    assert tried.build() == untried.build()


@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": 2**63},
        {"leader_epoch": -(2**31) - 1},
        {"producer_id": 2**63},
        {"producer_epoch": 2**15},
        {"base_sequence": 2**31},
    ],
)
def test_header_fields_must_fit_their_width(fields: dict[str, int]) -> None:
    with pytest.raises(EncodeError, match="bits"):
        BatchBuilder(**fields)  # type: ignore[arg-type]  # no row gives a codec or a flag


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (300, "d804"),
        (2**31 - 1, "feffffff0f"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_numbers_are_zigzag_varints(value: int, encoded: str) -> None:
    assert varint(value).hex() == encoded


def test_sealing_a_batch_again_changes_nothing() -> None:
    """The tests of this folder lean on `seal`, so it is tested too."""
    assert seal(build()) == build()


def test_what_compaction_leaves_of_a_batch_keeps_its_place_and_its_producer() -> None:
    whole = read_batch(
        memoryview(build(SAMPLES, base_offset=70, producer_id=5, producer_epoch=1, base_sequence=9))
    )
    first, *_, last = records(whole, max_bytes=2**20)
    builder = BatchBuilder.for_rest_of(whole, delete_horizon=10**12)
    builder.append(first.key, None, (), first.timestamp, offset=first.offset)

    rest = read_batch(memoryview(builder.build()))

    rest.check_crc()
    assert (rest.base_offset, rest.last_offset, rest.record_count) == (70, last.offset, 1)
    assert (rest.producer_id, rest.producer_epoch, rest.base_sequence) == (5, 1, 9)
    assert rest.delete_horizon == 10**12
    assert next(records(rest, max_bytes=2**20)).timestamp == first.timestamp


@pytest.mark.parametrize("codec", Compression)
def test_a_batch_that_lost_all_records_keeps_its_offsets_and_sequence(codec: Compression) -> None:
    whole = read_batch(
        memoryview(
            build(
                SAMPLES,
                base_offset=70,
                producer_id=5,
                producer_epoch=1,
                base_sequence=9,
                compression=codec,
            )
        )
    )

    rest = read_batch(memoryview(BatchBuilder.for_rest_of(whole).build_empty(whole.max_timestamp)))

    rest.check_crc()
    assert list(records(rest, max_bytes=1)) == []
    assert (rest.base_offset, rest.last_offset) == (whole.base_offset, whole.last_offset)
    assert (rest.last_sequence, rest.max_timestamp) == (whole.last_sequence, whole.max_timestamp)
    assert rest.delete_horizon is None
    # librdkafka unpacks whatever says that it is packed, also nothing.
    assert (rest.size, rest.compression) == (HEADER_SIZE, Compression.NONE)


@pytest.mark.parametrize("codec", list(Compression))
def test_a_batch_that_lost_all_records_names_no_codec(codec: Compression) -> None:
    whole = read_batch(memoryview(build(SAMPLES, compression=codec, is_transactional=True)))

    rest = read_batch(memoryview(BatchBuilder.for_rest_of(whole).build_empty()))

    rest.check_crc()
    assert rest.compression is Compression.NONE
    assert rest.is_transactional


def test_a_builder_with_records_is_not_empty() -> None:
    builder = BatchBuilder()
    builder.append(b"key", None)

    with pytest.raises(EncodeError, match="not empty"):
        builder.build_empty()
