"""Which partition a record goes to, by its key, as Kafka's own clients choose: murmur2.

Pure. Hashes are computed side by side for all keys of one length, since one after the other they
would cost more than everything else that a record needs.
"""

from collections.abc import Sequence
from typing import Final

import numpy

SEED: Final = 0x9747B28C
FACTOR: Final = numpy.uint32(0x5BD1E995)
SHIFT: Final = numpy.uint32(24)
POSITIVE: Final = 0x7FFFFFFF


def hashes(keys: Sequence[bytes]) -> numpy.ndarray:
    """Return the hash of each key, without its sign, as partitions are counted from it."""
    lengths = numpy.fromiter(map(len, keys), dtype=numpy.int64, count=len(keys))
    result = numpy.zeros(len(keys), dtype=numpy.uint32)
    for length in numpy.unique(lengths).tolist():
        places = numpy.nonzero(lengths == length)[0]
        joined = b"".join([keys[place] for place in places.tolist()])
        rows = numpy.frombuffer(joined, dtype=numpy.uint8).reshape(len(places), length)
        result[places] = murmur2(rows)
    return result & numpy.uint32(POSITIVE)


def murmur2(rows: numpy.ndarray) -> numpy.ndarray:
    """Return the hash of each row of bytes; arithmetic is that of 32 bits, which wraps."""
    count, length = rows.shape
    state = numpy.full(count, SEED ^ (length & 0xFFFFFFFF), dtype=numpy.uint32)
    whole = length - length % 4
    words = numpy.ascontiguousarray(rows[:, :whole]).view("<u4")
    for place in range(whole // 4):
        word = words[:, place] * FACTOR
        word ^= word >> SHIFT
        state = (state * FACTOR) ^ (word * FACTOR)
    if whole < length:
        for place in range(length - whole):
            state ^= rows[:, whole + place].astype(numpy.uint32) << numpy.uint32(8 * place)
        state = state * FACTOR
    state ^= state >> numpy.uint32(13)
    state = state * FACTOR
    return state ^ (state >> numpy.uint32(15))


class Rotation:
    """Where records without a key go: to one partition until a batch is full, then to the next."""

    __slots__ = ("_batch_bytes", "_bytes", "_count", "_first")

    def __init__(self, *, first: int, count: int, batch_bytes: int) -> None:
        self._first = first
        self._count = count
        self._batch_bytes = batch_bytes
        self._bytes = 0

    def places(self, sizes: numpy.ndarray) -> numpy.ndarray:
        """Return the partition of each record of these sizes, and remember where it ended."""
        ends = self._bytes + numpy.cumsum(sizes, dtype=numpy.int64)
        begins = ends - sizes
        if len(ends):
            self._bytes = int(ends[-1])
        return (self._first + begins // self._batch_bytes) % self._count
