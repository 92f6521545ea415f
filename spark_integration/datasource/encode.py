"""Encodes records into record batches of format v2, compressed with Arrow's codecs.

Pure: time, producer and sequence are arguments. Offsets count from zero, since the broker assigns
the base offset when it appends a batch.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow

from spark_integration.datasource.wire.crc32c import crc32c

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and largest
# timestamp, producer id, epoch and first sequence, number of records.
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
CRC: Final = struct.Struct(">I")
CRC_POSITION: Final = 17
# The CRC covers the bytes from here.
CHECKED_POSITION: Final = 21
# Bytes that the length does not count.
OVERHEAD: Final = 12
MAGIC: Final = 2
NO_EPOCH: Final = -1
# The record's attributes and its timestamp delta: the same for all records.
RECORD_START: Final = b"\0\0"
NULL: Final = b"\x01"
NO_HEADERS: Final = b"\0"
# Values of bits 0 to 2 of a batch's attributes.
CODECS: Final[Mapping[str, int]] = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
# The LZ4 frame header that Kafka's Java clients accept: independent blocks of 64 KiB, and no
# checksum except that of the header. They refuse Arrow's own frames.
LZ4_START: Final = bytes.fromhex("04224d18604082")
LZ4_BLOCK: Final = 2**16
LZ4_AS_IT_IS: Final = 0x80000000
LZ4_SIZE: Final = struct.Struct("<I")
LZ4_END: Final = LZ4_SIZE.pack(0)

Header = tuple[str, bytes | None]


@dataclass(slots=True, kw_only=True)
class Records:
    """An open batch of one partition."""

    timestamp: int
    parts: list[bytes] = field(default_factory=list)
    count: int = 0
    size: int = 0

    def append(self, key: bytes | None, value: bytes | None, headers: bytes) -> int:
        """Add a record; return its size in bytes."""
        number, keys, values = self.count, len(key or b""), len(value or b"")
        # Inlined, without a call for each number: this is the hot path of a write.
        record = b"".join(
            (
                RECORD_START,
                SMALL[number] if number < FEW else encoded_varint(number),
                NULL if key is None else SMALL[keys] if keys < FEW else encoded_varint(keys),
                key or b"",
                NULL
                if value is None
                else SMALL[values]
                if values < FEW
                else encoded_varint(values),
                value or b"",
                headers,
            )
        )
        prefix = varint(len(record))
        self.parts.append(prefix)
        self.parts.append(record)
        self.count = number + 1
        size = len(prefix) + len(record)
        self.size += size
        return size


def encoded_headers(headers: Iterable[Header] | None) -> bytes:
    """Encode the headers of one record; None means no headers."""
    rows = list(headers or ())
    fields = [varint(len(rows))]
    for name, value in rows:
        data = name.encode()
        fields += varint(len(data)), data
        fields += (NULL,) if value is None else (varint(len(value)), value)
    return b"".join(fields)


def batch(
    records: bytes,
    *,
    count: int,
    timestamp: int,
    codec: int,
    producer_id: int,
    epoch: int,
    sequence: int,
) -> bytes:
    """Make a batch of compressed records."""
    head = bytearray(HEADER.size)
    HEADER.pack_into(
        head,
        0,
        0,
        HEADER.size - OVERHEAD + len(records),
        NO_EPOCH,
        MAGIC,
        0,  # the CRC, below
        codec,
        count - 1,
        timestamp,
        timestamp,
        producer_id,
        epoch,
        sequence,
        count,
    )
    whole = head + records
    CRC.pack_into(whole, CRC_POSITION, crc32c(memoryview(whole)[CHECKED_POSITION:]))
    return bytes(whole)


def renumbered(records: Sequence[bytes]) -> list[bytes]:
    """Return records with their lengths, renumbered from the beginning of a batch."""
    moved = []
    for count, record in enumerate(records):
        begin = varint_end(record, 0) + len(RECORD_START)
        body = RECORD_START + varint(count) + record[varint_end(record, begin) :]
        moved.append(varint(len(body)) + body)
    return moved


def split(records: memoryview, count: int) -> tuple[list[bytes], list[bytes]]:
    """Split the records of a batch that is too large into halves, for two batches."""
    every = []
    position = 0
    for _ in range(count):
        begin = varint_end(records, position)
        end = begin + varint_value(records, position)
        every.append(bytes(records[position:end]))
        position = end
    assert position == len(records), f"{len(records)} bytes of records, {position} were read"
    middle = count // 2
    return every[:middle], renumbered(every[middle:])


def pack(codec: int, records: bytes) -> bytes:
    """Compress the records of a batch."""
    return PACKERS[codec](records)


def lz4_frame(records: bytes) -> bytes:
    codec = pyarrow.Codec("lz4_raw")
    pieces = [LZ4_START]
    for start in range(0, len(records), LZ4_BLOCK):
        block = records[start : start + LZ4_BLOCK]
        packed = codec.compress(block, asbytes=True)
        if len(packed) < len(block):
            pieces += LZ4_SIZE.pack(len(packed)), packed
        else:
            pieces += LZ4_SIZE.pack(LZ4_AS_IT_IS | len(block)), block
    return b"".join([*pieces, LZ4_END])


def by_arrow(name: str) -> Callable[[bytes], bytes]:
    def compress(records: bytes) -> bytes:
        packed: bytes = pyarrow.Codec(name).compress(records, asbytes=True)
        return packed

    return compress


PACKERS: Final[Mapping[int, Callable[[bytes], bytes]]] = {
    CODECS["none"]: bytes,
    CODECS["gzip"]: by_arrow("gzip"),
    CODECS["snappy"]: by_arrow("snappy"),
    CODECS["lz4"]: lz4_frame,
    CODECS["zstd"]: by_arrow("zstd"),
}


def varint(number: int) -> bytes:
    """Encode a non-negative number as a zigzag varint."""
    return SMALL[number] if number < FEW else encoded_varint(number)


def encoded_varint(number: int) -> bytes:
    number <<= 1
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


# Nearly all lengths and counts are among these.
FEW: Final = 8192
SMALL: Final = tuple(encoded_varint(number) for number in range(FEW))


def varint_end(data: bytes | memoryview, position: int) -> int:
    while data[position] >= 0x80:
        position += 1
    return position + 1


def varint_value(data: bytes | memoryview, position: int) -> int:
    """Read a varint of a non-negative number that this module wrote."""
    value = 0
    for place, byte in enumerate(data[position : varint_end(data, position)]):
        value |= (byte & 0x7F) << 7 * place
    return value >> 1
