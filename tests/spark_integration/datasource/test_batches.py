"""Batches of a fetch: whole ones alone, checked, and the aborted ones left out."""

import struct

import pytest

from spark_integration.datasource.batches import Visible, batches
from spark_integration.datasource.errors import CorruptBatch
from spark_integration.datasource.wire.crc32c import crc32c
from spark_integration.datasource.wire.messages import Aborted
from tests.builders.spark_batches import packed_batch

ABORT = [(struct.pack(">hh", 0, 0), struct.pack(">hi", 0, 0))]
COMMIT = [(struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0))]


def test_a_batch_that_is_cut_ends_what_is_read() -> None:
    first, second = packed_batch(base_offset=5), packed_batch(base_offset=6)

    (found,) = batches(memoryview(first + second[:-1]))

    assert (found.base_offset, found.last_offset, found.record_count) == (5, 5, 1)


def test_a_batch_with_a_flipped_bit_is_corrupt() -> None:
    data = bytearray(packed_batch(base_offset=5))
    data[-3] ^= 1

    with pytest.raises(CorruptBatch, match="offset 5 does not match its CRC"):
        list(batches(memoryview(data)))


@pytest.mark.parametrize(
    ("position", "form", "value", "said"),
    [
        (8, ">i", 3, "states a length of 3 bytes"),
        (8, ">i", -1, "states a length of -1 bytes"),
        (16, ">b", 1, "has format 1"),
        (57, ">i", 2**31 - 1, "cannot have 2147483647 records"),
        (57, ">i", -1, "negative offsets or a negative count"),
        (23, ">i", -1, "negative offsets or a negative count"),
        (0, ">q", -1, "negative offsets or a negative count"),
    ],
    ids=["short", "negative", "format", "count", "negative count", "last offset", "base offset"],
)
def test_a_header_that_cannot_be_true_is_corrupt(
    position: int, form: str, value: int, said: str
) -> None:
    data = bytearray(packed_batch())
    struct.pack_into(form, data, position, value)
    struct.pack_into(">I", data, 17, crc32c(bytes(data[21:])))

    with pytest.raises(CorruptBatch, match=said):
        list(batches(memoryview(data)))


def test_aborted_transactions_and_markers_are_left_out() -> None:
    """Producer 1 aborts and begins again, producer 2 commits, and both are mixed."""
    log = b"".join(
        [
            packed_batch(base_offset=0),
            packed_batch(base_offset=1, producer_id=1),
            packed_batch(base_offset=2, producer_id=2),
            packed_batch(ABORT, base_offset=3, producer_id=1, is_control=True),
            packed_batch(base_offset=4, producer_id=1),
            packed_batch(COMMIT, base_offset=5, producer_id=2, is_control=True),
            packed_batch(COMMIT, base_offset=6, producer_id=1, is_control=True),
        ]
    )
    committed = Visible([Aborted(1, 1)])
    uncommitted = Visible([])

    seen = [batch.base_offset for batch in batches(memoryview(log)) if committed.has(batch)]
    every = [batch.base_offset for batch in batches(memoryview(log)) if uncommitted.has(batch)]

    assert seen == [0, 2, 4]
    assert every == [0, 1, 2, 4]
