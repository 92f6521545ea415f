"""Keys go where Kafka's own clients send them."""

import random

import numpy
import pytest

from spark_integration.datasource.partitioner import Rotation, hashes


def murmur2(key: bytes) -> int:
    """The hash of one key, without its sign, as the definition has it."""
    factor, mask = 0x5BD1E995, 0xFFFFFFFF
    state = 0x9747B28C ^ len(key)
    end = len(key) - len(key) % 4
    for begin in range(0, end, 4):
        word = int.from_bytes(key[begin : begin + 4], "little") * factor & mask
        state = state * factor & mask ^ (word ^ word >> 24) * factor & mask
    if end < len(key):
        state = (state ^ int.from_bytes(key[end:], "little")) * factor & mask
    state = (state ^ state >> 13) * factor & mask
    return (state ^ state >> 15) & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("key", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_known_keys_have_the_hashes_of_kafkas_own_tests(key: bytes, signed: int) -> None:
    assert hashes([key]).tolist() == [signed & 0x7FFFFFFF]


def test_keys_of_all_lengths_are_hashed_side_by_side() -> None:
    source = random.Random(7)
    keys = [source.randbytes(source.randrange(40)) for _ in range(2000)]

    assert hashes(keys).tolist() == [murmur2(key) for key in keys]
    assert hashes([]).tolist() == []


def test_records_without_a_key_change_partition_with_each_batch() -> None:
    rotation = Rotation(first=2, count=3, batch_bytes=100)
    sizes = numpy.full(5, 40)

    assert rotation.places(sizes).tolist() == [2, 2, 2, 0, 0]
    assert rotation.places(sizes).tolist() == [1, 1, 1, 2, 2]
