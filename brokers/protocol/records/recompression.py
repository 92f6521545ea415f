"""Packs a checked batch with the codec of its topic, as Kafka's LogValidator does.

Knows no topics and no threads. The records are the same bytes before and after: only codec, length
and CRC of the header change, so that record count, timestamps and sequences stay the producer's.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from types import MappingProxyType
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import (
    CHECKED_POSITION,
    COMPRESSION_MASK,
    CRC,
    CRC_POSITION,
    HEADER_SIZE,
    LOG_OVERHEAD,
    Batch,
)
from brokers.protocol.records.compression import Buffer, Compression, compress, decompress
from brokers.protocol.records.crc32c import crc32c

# The highest levels that pack at 10 MB/s or more, a millisecond for 16 KiB.
_FAST_LEVELS: Final[Mapping[Compression, int]] = MappingProxyType(
    {Compression.GZIP: 6, Compression.LZ4: 9, Compression.ZSTD: 6}
)

# Of compression.type: the value for no codec.
UNCOMPRESSED: Final = "uncompressed"

_LENGTH: Final = Struct(">i")
_LENGTH_POSITION: Final = 8
_ATTRIBUTES: Final = Struct(">h")


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """A topic's codec, and its level; without a level the codec's default."""

    codec: Compression
    level: int | None = None

    @property
    def name(self) -> str:
        """The value of compression.type."""
        return UNCOMPRESSED if self.codec is Compression.NONE else self.codec.name.lower()

    @property
    def is_fast(self) -> bool:
        return self.level is None or self.level <= _FAST_LEVELS.get(self.codec, 0)


def recompressed(
    records: Buffer, packing: Packing, *, max_unpacked_bytes: int, max_batch_bytes: int
) -> memoryview:
    """Return a writable copy of a batch, packed with another codec than its own.

    MESSAGE_TOO_LARGE for a batch that unpacks, or is packed, to more than a limit.
    """
    batch = Batch(memoryview(records))
    body: Buffer = batch.body
    if batch.is_compressed:
        most = max_unpacked_bytes
        if packing.codec is Compression.NONE:
            most = min(most, max_batch_bytes - HEADER_SIZE)
        body = _unpacked(batch, most)
    if packing.codec is not Compression.NONE:
        body = compress(packing.codec, body, packing.level)
    size = HEADER_SIZE + len(body)
    if size > max_batch_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"record batch is {size} bytes as compression.type={packing.name} packs it, the topic "
            f"allows {max_batch_bytes}",
        )
    packed = bytearray(batch.buffer[:HEADER_SIZE])
    packed += body
    _LENGTH.pack_into(packed, _LENGTH_POSITION, size - LOG_OVERHEAD)
    attributes = batch.attributes & ~COMPRESSION_MASK | packing.codec
    _ATTRIBUTES.pack_into(packed, CHECKED_POSITION, attributes)
    whole = memoryview(packed)
    CRC.pack_into(packed, CRC_POSITION, crc32c(whole[CHECKED_POSITION:]))
    return whole


def _unpacked(batch: Batch, max_bytes: int) -> bytes:
    try:
        return decompress(batch.compression, batch.body, max_bytes=max_bytes)
    except KafkaError as error:
        if error.code is ErrorCode.CORRUPT_MESSAGE:
            # Under a right CRC the producer wrote them so, and a retry would not change them.
            raise KafkaError(ErrorCode.INVALID_RECORD, error.message) from error
        raise
