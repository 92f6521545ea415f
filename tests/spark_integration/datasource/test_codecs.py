"""What Arrow unpacks is what the house packs, and no more than is allowed."""

import pytest

from brokers.protocol.records.compression import Compression, compress
from spark_integration.datasource.codecs import decompress
from spark_integration.datasource.errors import CorruptBatch

DATA = b"some text, and some text again " * 5000
PACKED = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec_is_unpacked(codec: Compression) -> None:
    packed = compress(codec, DATA)

    assert bytes(decompress(codec, memoryview(packed))) == DATA


@pytest.mark.parametrize("codec", PACKED)
def test_a_body_that_unpacks_to_too_much_is_refused(codec: Compression) -> None:
    packed = compress(codec, DATA)

    with pytest.raises(CorruptBatch, match="more than the limit of 1000"):
        decompress(codec, memoryview(packed), max_bytes=1000)


@pytest.mark.parametrize("codec", PACKED)
@pytest.mark.parametrize("change", ["cut", "more", "flipped"])
def test_a_damaged_body_is_corrupt_or_something_else_but_no_crash(
    codec: Compression, change: str
) -> None:
    packed = bytearray(compress(codec, DATA))
    if change == "cut":
        del packed[-5:]
    elif change == "more":
        packed += b"more"
    else:
        packed[len(packed) // 2] ^= 0x55

    try:
        found = bytes(decompress(codec, memoryview(packed)))
    except CorruptBatch:
        return
    # Snappy has no checksum; the batch has.
    assert change == "flipped"
    assert found != DATA or codec is Compression.GZIP


def test_raw_snappy_is_unpacked_and_its_length_not_believed() -> None:
    lie = b"\xff\xff\xff\xff\x07" + b"\x00a"

    with pytest.raises(CorruptBatch, match="limit"):
        decompress(2, memoryview(lie))
    with pytest.raises(CorruptBatch, match="cannot decompress to 1000"):
        decompress(2, memoryview(b"\xe8\x07\x00a"))
    assert bytes(decompress(2, memoryview(b"\x01\x00a"))) == b"a"


def test_a_codec_of_the_future_is_named() -> None:
    with pytest.raises(CorruptBatch, match="codec is 5"):
        decompress(5, memoryview(b""))
