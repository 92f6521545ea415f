"""A batch is its header: read in place, patched in place."""

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import (
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    MAX_SEQUENCE,
    Batch,
    batches,
    read_batch,
)
from brokers.protocol.records.compression import Compression
from tests.brokers.protocol.records.samples import NOW_MS, SAMPLES, build, captured, seal


def read(data: bytes | bytearray) -> Batch:
    return read_batch(memoryview(data))


def test_a_batch_shows_what_the_java_client_wrote() -> None:
    batch = read(captured("java-zstd.bin"))

    assert (batch.base_offset, batch.leader_epoch, batch.magic) == (0, -1, 2)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (4242, 3, 17)
    assert (batch.record_count, batch.last_offset, batch.next_offset) == (69, 68, 69)
    assert batch.compression is Compression.ZSTD
    assert batch.is_transactional
    assert batch.has_producer
    assert not batch.is_control
    assert not batch.uses_log_append_time
    assert batch.size == len(batch.buffer)
    assert batch.last_sequence == 85


def test_patching_writes_offset_and_epoch_in_place_and_leaves_the_crc_valid() -> None:
    data = build()
    before = bytes(data)
    batch = read(data)

    batch.patch(2**40, 77)

    again = read(data)
    again.check_crc()
    assert (again.base_offset, again.leader_epoch, again.length) == (2**40, 77, batch.length)
    assert (batch.base_offset, batch.leader_epoch) == (2**40, 77)
    assert data[16:] == before[16:]


def test_stamping_sets_the_broker_time_and_a_new_crc() -> None:
    data = build(compression=Compression.LZ4)
    batch = read(data)

    batch.stamp_log_append_time(NOW_MS + 99)

    again = read(data)
    again.check_crc()
    assert again.uses_log_append_time
    assert (again.max_timestamp, again.base_timestamp) == (NOW_MS + 99, NOW_MS)
    assert (again.crc, again.attributes) == (batch.crc, batch.attributes)
    assert again.compression is Compression.LZ4


def test_any_flipped_bit_behind_the_crc_is_seen() -> None:
    data = build(SAMPLES[:1])
    for position in range(21, len(data)):
        data[position] ^= 1
        with pytest.raises(KafkaError) as caught:
            read(data).check_crc()
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
        data[position] ^= 1
    read(data).check_crc()


def test_sequences_wrap_to_zero_after_the_largest_int32() -> None:
    wrapped = read(seal(build(SAMPLES[:3]), base_sequence=MAX_SEQUENCE - 1, producer_id=1))
    absent = read(build())

    assert wrapped.last_sequence == 0
    assert absent.last_sequence == -1


def test_the_delete_horizon_is_the_base_timestamp_once_the_cleaner_says_so() -> None:
    plain = read(build())
    cleaned = read(seal(build(), attributes=DELETE_HORIZON_FLAG, base_timestamp=123))

    assert plain.delete_horizon is None
    assert cleaned.delete_horizon == 123


def test_a_batch_describes_itself_in_a_debugger() -> None:
    assert repr(read(build(SAMPLES[:2]))) == (
        "Batch(offsets 0-1, 75 bytes, 2 records, attributes 0x0000)"
    )


def test_several_batches_are_read_one_after_the_other() -> None:
    data = build(base_offset=5) + build(base_offset=100, compression=Compression.GZIP)

    found = list(batches(memoryview(data)))

    assert [batch.base_offset for batch in found] == [5, 100]
    assert b"".join(batch.buffer for batch in found) == data
    assert read_batch(memoryview(data), found[0].size).base_offset == 100


def test_a_batch_cut_anywhere_is_corrupt() -> None:
    data = build(SAMPLES[:3])
    for length in range(1, len(data)):
        with pytest.raises(KafkaError) as caught:
            list(batches(memoryview(data)[:length]))
        assert caught.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 48, 2**31 - 1])
def test_a_lying_length_is_corrupt(length: int) -> None:
    with pytest.raises(KafkaError, match=f"length {length}, allowed are 49 to"):
        read(seal(build(), length=length))


@pytest.mark.parametrize("magic", [-1, 0, 1, 3])
def test_other_formats_are_refused(magic: int) -> None:
    with pytest.raises(KafkaError, match=f"magic {magic}, not 2"):
        read(seal(build(), magic=magic))


def test_an_unknown_codec_is_named_when_somebody_asks_for_it() -> None:
    batch = read(seal(build(), attributes=5))

    with pytest.raises(KafkaError) as caught:
        _ = batch.compression

    assert caught.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert batch.is_compressed


def test_the_body_is_what_follows_the_header() -> None:
    data = build()

    assert read(data).body == data[HEADER_SIZE:]
