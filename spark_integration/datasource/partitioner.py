"""Chooses the partition of a record by its key like Kafka's own clients, with murmur2.

Pure. Hashes are computed in parallel for all keys of one length; one at a time, they would cost
more than all other work on a record.
"""

from collections.abc import Sequence
from typing import Final

import numpy

SEED: Final = 0x9747B28C
FACTOR: Final = numpy.uint32(0x5BD1E995)
SHIFT: Final = numpy.uint32(24)
POSITIVE: Final = 0x7FFFFFFF


def hashes(keys: Sequence[bytes]) -> numpy.ndarray:
    """Return the non-negative hash of each key."""
    lengths = numpy.fromiter(map(len, keys), dtype=numpy.int64, count=len(keys))
    result = numpy.zeros(len(keys), dtype=numpy.uint32)
    for length in numpy.unique(lengths).tolist():
        places = numpy.nonzero(lengths == length)[0]
        joined = b"".join([keys[place] for place in places.tolist()])
        rows = numpy.frombuffer(joined, dtype=numpy.uint8).reshape(len(places), length)
        result[places] = murmur2(rows)
    return result & numpy.uint32(POSITIVE)


def murmur2(rows: numpy.ndarray) -> numpy.ndarray:
    """Return the hash of each row of bytes, in wrapping 32-bit arithmetic."""
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
    """The sticky partitioner for records without a key: the next partition after a full batch."""

    __slots__ = ("_batch_bytes", "_bytes", "_count", "_first")

    def __init__(self, *, first: int, count: int, batch_bytes: int) -> None:
        self._first = first
        self._count = count
        self._batch_bytes = batch_bytes
        self._bytes = 0

    def places(self, sizes: numpy.ndarray) -> numpy.ndarray:
        """Return the partition of each record, given their sizes, and keep the state."""
        ends = self._bytes + numpy.cumsum(sizes, dtype=numpy.int64)
        begins = ends - sizes
        if len(ends):
            self._bytes = int(ends[-1])
        return (self._first + begins // self._batch_bytes) % self._count
