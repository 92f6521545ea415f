"""A batch under its topic's codec: the same records, another header and another body."""

import itertools

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER_SIZE, Batch
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression, compress
from brokers.protocol.records.reader import records
from brokers.protocol.records.recompression import Packing, recompressed
from brokers.protocol.records.validation import (
    NeedsInspection,
    NeedsRecompression,
    Origin,
    ProduceRules,
    check_produced,
)
from tests.builders.logs import NOW_MS

MIB = 2**20
GENEROUS = {"max_unpacked_bytes": MIB, "max_batch_bytes": MIB}


def produced(codec: Compression = Compression.NONE, *, key: bytes | None = b"k") -> memoryview:
    builder = BatchBuilder(compression=codec, producer_id=7, producer_epoch=3, base_sequence=41)
    builder.append(key, b"value" * 500, [(b"h", b"1"), (b"empty", None)], timestamp=NOW_MS)
    builder.append(key, None, timestamp=NOW_MS + 5)
    builder.append(b"", b"", timestamp=NOW_MS - 5)
    return memoryview(builder.build())


def refusal(batch: memoryview, packing: Packing, **limits: int) -> KafkaError:
    with pytest.raises(KafkaError) as refused:
        recompressed(batch, packing, **{**GENEROUS, **limits})
    return refused.value


@pytest.mark.parametrize(
    ("before", "after"),
    [pair for pair in itertools.product(Compression, repeat=2) if len({*pair}) > 1],
)
def test_only_codec_and_size_of_a_batch_change(before: Compression, after: Compression) -> None:
    sent = produced(before)

    batch = Batch(recompressed(sent, Packing(codec=after), **GENEROUS))

    batch.check_crc()
    assert batch.compression is after
    assert batch.size == len(batch.buffer)
    theirs = Batch(sent)
    for same in set(Batch.__slots__) - {"buffer", "length", "crc", "attributes"}:
        assert getattr(batch, same) == getattr(theirs, same)
    assert batch.attributes ^ theirs.attributes == before ^ after
    assert list(records(batch, max_bytes=MIB)) == list(records(theirs, max_bytes=MIB))


@pytest.mark.parametrize(
    ("codec", "level"), [(Compression.GZIP, 9), (Compression.LZ4, 12), (Compression.ZSTD, 19)]
)
def test_a_topics_level_is_used(codec: Compression, level: int) -> None:
    sent = produced()

    packed = recompressed(sent, Packing(codec=codec, level=level), **GENEROUS)

    assert packed[HEADER_SIZE:] == compress(codec, sent[HEADER_SIZE:], level)


def test_a_batch_that_grows_beyond_its_topics_limit_is_too_large() -> None:
    sent = produced(Compression.ZSTD)
    plain = Packing(codec=Compression.NONE)

    error = refusal(sent, plain, max_batch_bytes=len(sent))

    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    snappy = refusal(sent, Packing(codec=Compression.SNAPPY), max_batch_bytes=100)
    assert snappy.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "compression.type=snappy" in snappy.message


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    builder = BatchBuilder(compression=Compression.ZSTD)
    builder.append(None, bytes(8 * MIB), timestamp=NOW_MS)

    error = refusal(memoryview(builder.build()), Packing(codec=Compression.LZ4))

    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert str(MIB) in error.message


def test_records_that_do_not_unpack_are_invalid_and_not_retried() -> None:
    broken = bytearray(produced(Compression.GZIP))
    broken[HEADER_SIZE + 4 :] = bytes(len(broken) - HEADER_SIZE - 4)

    error = refusal(memoryview(broken), Packing(codec=Compression.NONE))

    assert error.code is ErrorCode.INVALID_RECORD


def test_a_batch_of_another_codec_needs_recompression_after_all_other_checks() -> None:
    rules = ProduceRules(packing=Packing(codec=Compression.LZ4), are_keys_required=True)

    with pytest.raises(NeedsRecompression) as needed:
        check_produced(produced(), rules, NOW_MS)
    assert needed.value.rules is rules
    with pytest.raises(KafkaError, match="no key"):
        check_produced(produced(key=None), rules, NOW_MS)
    many = BatchBuilder()
    for _ in range(1_000):
        many.append(b"k", b"", timestamp=NOW_MS)
    with pytest.raises(NeedsInspection):
        check_produced(memoryview(many.build()), rules, NOW_MS)


def test_a_batch_of_the_topics_codec_and_one_of_a_coordinator_stay_as_they_are() -> None:
    rules = ProduceRules(packing=Packing(codec=Compression.LZ4))

    for codec, origin in ((Compression.LZ4, Origin.CLIENT), (Compression.NONE, Origin.COORDINATOR)):
        sent = produced(codec)
        assert check_produced(sent, rules, NOW_MS, origin).buffer is sent
