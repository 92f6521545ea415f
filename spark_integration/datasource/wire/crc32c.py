"""CRC-32C, the checksum of record batches, with or without the package `crc32c`.

The package uses the processor's instruction, but an executor may not have it. Without it, numpy
processes pieces of the data in parallel, one byte of each at a time, and combines their checksums
in pairs: a checksum is linear, so a table gives the effect of zeros after a piece.
"""

from collections.abc import Callable
from functools import cache
from typing import Final

import numpy

# Castagnoli's polynomial, its bits reversed.
POLYNOMIAL: Final = 0x82F63B78
ALL_ONES: Final = 0xFFFFFFFF
# Bytes of a piece: long pieces limit parallelism, short ones need many combinations.
PIECE: Final = 64
# Bytes at once: keeps the additional memory below 40 MB.
MOST_BYTES: Final = 8 * 1024 * 1024


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """Return the checksum of some bytes."""
    fast = package_function()
    return int(fast(data)) if fast is not None else portable_crc32c(data)


@cache
def package_function() -> Callable[..., int] | None:
    """Return the package's function; None without the package."""
    try:
        from crc32c import crc32c as fast  # noqa: PLC0415 (it may be missing)
    except ImportError:
        return None
    function: Callable[..., int] = fast
    return function


def portable_crc32c(data: bytes | bytearray | memoryview) -> int:
    whole = numpy.frombuffer(data, dtype=numpy.uint8)
    state = ALL_ONES
    for start in range(0, len(whole), MOST_BYTES):
        state = extended(state, whole[start : start + MOST_BYTES])
    return state ^ ALL_ONES


def extended(state: int, data: numpy.ndarray) -> int:
    """Return the checksum state after more bytes."""
    # Leading zeros do not change a zero state; the first bytes then include the real state.
    count = -(-len(data) // PIECE)
    padded = numpy.zeros(count * PIECE, dtype=numpy.uint8)
    begin = len(padded) - len(data)
    padded[begin:] = data
    early = min(len(data), 4)
    padded[begin : begin + early] ^= numpy.frombuffer(state.to_bytes(4, "little"), numpy.uint8)[
        :early
    ]
    # The rest of a state for fewer than four bytes.
    rest = state >> (8 * early) if early < 4 else 0
    return joined(checksums_of(padded.reshape(count, PIECE))) ^ rest


def checksums_of(pieces: numpy.ndarray) -> numpy.ndarray:
    """Return the checksum of each row, from a state of zero."""
    table = byte_table()
    states = numpy.zeros(len(pieces), dtype=numpy.uint32)
    for column in numpy.ascontiguousarray(pieces.T):
        states = table[(states ^ column) & 0xFF] ^ (states >> 8)
    return states


def joined(states: numpy.ndarray) -> int:
    """Return the checksum of all pieces in sequence."""
    level = 0
    while len(states) > 1:
        if len(states) % 2:
            states = numpy.concatenate([numpy.zeros(1, dtype=numpy.uint32), states])
        left, right = states[0::2], states[1::2]
        tables = zeros_tables(level)
        moved = tables[0][left & 0xFF]
        for place in (1, 2, 3):
            moved = moved ^ tables[place][(left >> (8 * place)) & 0xFF]
        states = moved ^ right
        level += 1
    return int(states[0])


@cache
def byte_table() -> numpy.ndarray:
    """Return the table of the effect of each byte on a state."""
    states = numpy.arange(256, dtype=numpy.uint32)
    for _ in range(8):
        states = (states >> 1) ^ numpy.where(states & 1, numpy.uint32(POLYNOMIAL), numpy.uint32(0))
    return states


@cache
def zeros_tables(level: int) -> numpy.ndarray:
    """Return tables of the effect of 64 · 2^level zeros on each of the four bytes of a state."""
    bits = numpy.left_shift(numpy.uint32(1), numpy.arange(32, dtype=numpy.uint32))
    table = byte_table()
    if level == 0:
        for _ in range(PIECE):
            bits = table[bits & 0xFF] ^ (bits >> 8)
    else:
        below = zeros_tables(level - 1)
        for _ in range(2):
            bits = (
                below[0][bits & 0xFF]
                ^ below[1][(bits >> 8) & 0xFF]
                ^ below[2][(bits >> 16) & 0xFF]
                ^ below[3][bits >> 24]
            )
    tables = numpy.zeros((4, 256), dtype=numpy.uint32)
    for bit in range(32):
        has_bit = (numpy.arange(256) >> (bit % 8)) & 1 == 1
        tables[bit // 8][has_bit] ^= bits[bit]
    return tables
