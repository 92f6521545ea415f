"""Record batches for readers of Spark, by the house's own builder, every value defaulted."""

from collections.abc import Sequence

from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression

Row = tuple[bytes | None, bytes | None]


def packed_batch(
    rows: Sequence[Row] = ((b"k", b"v"),),
    *,
    base_offset: int = 0,
    offsets: Sequence[int] | None = None,
    timestamp: int = 1000,
    headers: Sequence[tuple[bytes, bytes | None]] = (),
    codec: Compression = Compression.NONE,
    producer_id: int = -1,
    is_control: bool = False,
) -> bytes:
    """A batch whose records are a millisecond apart, at given offsets or without gaps.

    One with a producer id is of a transaction.
    """
    builder = BatchBuilder(
        base_offset=base_offset,
        compression=codec,
        producer_id=producer_id,
        is_transactional=producer_id >= 0,
        is_control=is_control,
    )
    for number, (key, value) in enumerate(rows):
        offset = None if offsets is None else offsets[number]
        builder.append(key, value, headers, timestamp + number, offset=offset)
    return bytes(builder.build())
