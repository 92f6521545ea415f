"""Splits a fetch into record batches by their headers, and filters those visible to a reader.

Pure. Nothing is decompressed here; the input may be hostile.
"""

import struct
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from spark_integration.datasource.errors import CorruptBatch
from spark_integration.datasource.wire.crc32c import crc32c
from spark_integration.datasource.wire.messages import Aborted

# The fields of `Header`.
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
# Bytes that the length does not count.
OVERHEAD: Final = 12
# The CRC covers the bytes from here.
CHECKED: Final = 21
MAGIC: Final = 2
CODEC_BITS: Final = 0x07
APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20
# The shortest record: its length, attributes, two deltas, two null fields, no headers.
MIN_RECORD: Final = 7


class Header(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    base_offset: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    attributes: int
    producer_id: int
    record_count: int
    # Compressed, if the batch has a codec.
    body: memoryview = field(repr=False)

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_BITS

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def has_append_time(self) -> bool:
        return bool(self.attributes & APPEND_TIME)


def batches(data: memoryview, *, has_to_check: bool = True) -> Iterator[Batch]:
    """Yield the complete batches of a fetch; the last one may be cut."""
    position = 0
    while len(data) - position >= HEADER.size:
        batch, end = read_batch(data, position, has_to_check=has_to_check)
        if batch is None:
            return
        yield batch
        position = end


def read_batch(data: memoryview, position: int, *, has_to_check: bool) -> tuple[Batch | None, int]:
    """Read the batch at a position; None if it is cut."""
    head = Header._make(HEADER.unpack_from(data, position))
    end = position + OVERHEAD + head.length
    if head.length < HEADER.size - OVERHEAD:
        raise CorruptBatch(
            f"the batch at offset {head.base_offset} states a length of {head.length} bytes"
        )
    if head.magic != MAGIC:
        raise CorruptBatch(
            f"the batch at offset {head.base_offset} has format {head.magic}, not {MAGIC}"
        )
    if end > len(data):
        return None, end
    if has_to_check and crc32c(data[position + CHECKED : end]) != head.crc:
        raise CorruptBatch(f"the batch at offset {head.base_offset} does not match its CRC")
    body = data[position + HEADER.size : end]
    is_plain = not head.attributes & CODEC_BITS
    if head.base_offset < 0 or head.last_delta < 0 or head.record_count < 0:
        raise CorruptBatch(
            f"the batch at offset {head.base_offset} has negative offsets or a negative count"
        )
    # Compaction leaves fewer records than offsets, never more.
    if head.record_count > head.last_delta + 1 or (
        is_plain and head.record_count * MIN_RECORD > len(body)
    ):
        raise CorruptBatch(
            f"the batch at offset {head.base_offset} cannot have {head.record_count} records"
        )
    batch = Batch(
        base_offset=head.base_offset,
        last_offset=head.base_offset + head.last_delta,
        base_timestamp=head.base_timestamp,
        max_timestamp=head.max_timestamp,
        attributes=head.attributes,
        producer_id=head.producer_id,
        record_count=head.record_count,
        body=body,
    )
    return batch, end


class Visible:
    """Decides which batches a reader sees: no control batches and no aborted transactions.

    For the batches of one fetch, in order.
    """

    def __init__(self, aborted: Sequence[Aborted]) -> None:
        self._coming = deque(sorted(aborted, key=lambda row: row.first_offset))
        self._now: set[int] = set()

    def has(self, batch: Batch) -> bool:
        while self._coming and self._coming[0].first_offset <= batch.last_offset:
            self._now.add(self._coming.popleft().producer_id)
        if batch.is_control:
            # Commit or abort, it ends the producer's open transaction.
            self._now.discard(batch.producer_id)
            return False
        return not (batch.is_transactional and batch.producer_id in self._now)
