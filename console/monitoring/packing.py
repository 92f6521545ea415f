"""Packs blocks of samples into bytes for the rows of the file of samples.

Pure. A block is a head (its start within the hour, the number of samples), then each metric of the
series: one flag, and one number if all samples are the same, else all of them. Blocks of an hour
follow each other in one row, so that adding one is appending bytes. A missing sample is NaN.
Numbers are single precision, seven digits, which is more than a chart can show.
"""

import math
import struct
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

HEAD: Final = struct.Struct("<HH")
FLAG_BYTES: Final = 1
NUMBER_BYTES: Final = 4
SAME: Final = b"\x00"
EACH: Final = b"\x01"
# One hour of the finest resolution.
MAX_SAMPLES: Final = 360
MISSING: Final = math.nan


class Damaged(ValueError):
    """A row that is not a sequence of blocks."""


@dataclass(frozen=True, slots=True)
class Block:
    first: int  # the place of its first sample in the hour
    metrics: tuple[Sequence[float], ...]


def pack(first: int, metrics: Sequence[Sequence[float]]) -> bytes:
    number = len(metrics[0])
    assert 0 < number <= MAX_SAMPLES, f"a block has 1 to {MAX_SAMPLES} samples, not {number}"
    parts = [HEAD.pack(first, number)]
    for samples in metrics:
        packed = array("f", samples).tobytes()
        one = packed[:NUMBER_BYTES]
        parts.append(SAME + one if packed == one * number else EACH + packed)
    return b"".join(parts)


def unpack(data: bytes, metrics: int) -> Iterator[Block]:
    """Return the blocks of a row; raise Damaged for any other bytes."""
    at = 0
    while at < len(data):
        if len(data) - at < HEAD.size:
            raise Damaged("a block is cut")
        first, number = HEAD.unpack_from(data, at)
        if not 0 < number <= MAX_SAMPLES:
            raise Damaged(f"a block of {number} samples")
        at += HEAD.size
        found = []
        for _metric in range(metrics):
            flag = data[at : at + FLAG_BYTES]
            length = NUMBER_BYTES * (number if flag == EACH else 1)
            packed = data[at + FLAG_BYTES : at + FLAG_BYTES + length]
            if flag not in {SAME, EACH} or len(packed) != length:
                raise Damaged("a metric is cut")
            found.append(array("f", packed if flag == EACH else packed * number))
            at += FLAG_BYTES + length
        yield Block(first, tuple(found))


def mean(samples: Sequence[float]) -> float:
    """Return the mean of the present samples; NaN if there are none."""
    total = sum(samples)
    if samples and not math.isnan(total):
        return total / len(samples)
    there = [sample for sample in samples if sample == sample]  # noqa: PLR0124 - NaN is not itself
    return sum(there) / len(there) if there else MISSING


def roll_up(samples: Sequence[float], ratio: int) -> list[float]:
    """Return one sample for each `ratio` samples."""
    one = samples[0]
    if samples.count(one) == len(samples):
        return [one] * (len(samples) // ratio)
    return [mean(samples[at : at + ratio]) for at in range(0, len(samples), ratio)]


def thin(samples: Sequence[float], max_points: int) -> tuple[int, list[float]]:
    """Return how many samples one point stands for, and at most `max_points` points."""
    ratio = max(1, -(-len(samples) // max_points))
    if ratio == 1:
        return 1, list(samples)
    return ratio, [mean(samples[at : at + ratio]) for at in range(0, len(samples), ratio)]
