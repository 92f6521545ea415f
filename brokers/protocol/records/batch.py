"""One record batch of message format v2, seen through its 61-byte header.

Knows nothing of the records inside, of topics, or of time. The CRC covers everything from the
attributes to the end, so the base offset and the leader epoch, which precede it, may be rewritten
in place with one `pack_into`; a changed timestamp may not.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.crc32c import crc32c

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base timestamp, max
# timestamp, producer id, producer epoch, base sequence, record count.
HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
# The length field counts what follows it; base offset and the length itself come before.
LOG_OVERHEAD: Final = 12
# A whole batch is at least as long as its own header.
MIN_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
MAGIC: Final = 2
MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
# The start of what the CRC covers: the attributes.
CHECKED_POSITION: Final = 21

COMPRESSION_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
# Set by the log cleaner: the base timestamp is then the time to remove tombstones (KIP-534).
DELETE_HORIZON_FLAG: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1
MAX_SEQUENCE: Final = 2**31 - 1

_PATCH = Struct(">qii")  # base offset, length (unchanged), leader epoch
_STAMP = Struct(">hiqq")  # attributes, last offset delta and base timestamp (unchanged), max
# The base timestamp, or the largest one, is then not what a producer wrote.
_RESTAMPED: Final = LOG_APPEND_TIME_FLAG | DELETE_HORIZON_FLAG
CRC: Final = Struct(">I")


class TimestampType(IntEnum):
    """The source of record timestamps: `message.timestamp.type` of a topic."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Batch:
    """The header of one batch, unpacked once, over its bytes.

    The values are unchecked: `read_batch` checks length and magic, `validation` the rest. Not
    thread-safe while it is patched.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "buffer",
        "crc",
        "last_offset_delta",
        "leader_epoch",
        "length",
        "magic",
        "max_timestamp",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    buffer: memoryview  # exactly this batch
    base_offset: int
    length: int  # bytes after the length field
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int  # of the first record; the delete horizon where that flag is set
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int  # fewer than last offset delta + 1 once compacted, 0 when all are gone

    def __init__(self, buffer: memoryview) -> None:
        self.buffer = buffer
        (
            self.base_offset,
            self.length,
            self.leader_epoch,
            self.magic,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(buffer)

    def __repr__(self) -> str:
        return (
            f"Batch(offsets {self.base_offset}-{self.last_offset}, {self.size} bytes, "
            f"{self.record_count} records, attributes {self.attributes:#06x})"
        )

    @property
    def size(self) -> int:
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap to 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE

    @property
    def compression(self) -> Compression:
        return Compression.of(self.attributes & COMPRESSION_MASK)

    @property
    def is_compressed(self) -> bool:
        return self.attributes & COMPRESSION_MASK != 0

    @property
    def uses_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_producer(self) -> bool:
        """Whether an idempotent or transactional producer wrote this batch."""
        return self.producer_id >= 0

    @property
    def delete_horizon(self) -> int | None:
        """When tombstones and markers may be removed; None before the first cleaning."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_FLAG else None

    @property
    def body(self) -> memoryview:
        """The records, compressed as the attributes say."""
        return self.buffer[HEADER_SIZE:]

    def patch(self, base_offset: int, leader_epoch: int) -> None:
        """Write base offset and leader epoch into the writable buffer; the CRC stays valid."""
        self.base_offset = base_offset
        self.leader_epoch = leader_epoch
        _PATCH.pack_into(self.buffer, 0, base_offset, self.length, leader_epoch)

    def stamp_log_append_time(self, now_ms: int) -> None:
        """Replace the timestamps of all records by the broker's time, and renew the CRC."""
        self.attributes |= LOG_APPEND_TIME_FLAG
        self.stamp_max_timestamp(now_ms)

    def stamp_max_timestamp(self, timestamp: int) -> None:
        """Write the greatest timestamp into the writable buffer, and renew the CRC."""
        self.max_timestamp = timestamp
        _STAMP.pack_into(
            self.buffer,
            CHECKED_POSITION,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp,
            timestamp,
        )
        self.crc = crc32c(self.buffer[CHECKED_POSITION:])
        CRC.pack_into(self.buffer, CRC_POSITION, self.crc)

    def check_crc(self) -> None:
        actual = crc32c(self.buffer[CHECKED_POSITION:])
        if actual != self.crc:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"batch at offset {self.base_offset} has CRC {actual:#010x}, "
                f"its header says {self.crc:#010x}",
            )


def stored_max_timestamp(attributes: int, base_timestamp: int, max_timestamp: int) -> int:
    """Return the greatest timestamp that the header of a stored batch stands for.

    Former releases stored headers as producers wrote them. Some producers write 0 for "none", and
    some never write a greatest timestamp; the first record's is then the best that a header has.
    """
    if attributes & _RESTAMPED:
        return max_timestamp
    if max_timestamp == 0 and base_timestamp == NO_TIMESTAMP:
        return NO_TIMESTAMP
    return max(base_timestamp, max_timestamp)


def read_batch(buffer: memoryview, position: int = 0) -> Batch:
    """View the batch that starts at `position`; only its bounds and its magic are checked."""
    left = len(buffer) - position
    if left < HEADER_SIZE:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"{left} bytes left for a batch header of {HEADER_SIZE}"
        )
    batch = Batch(buffer[position:])
    if batch.magic != MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch has magic {batch.magic}, not {MAGIC}")
    if not MIN_LENGTH <= batch.length <= left - LOG_OVERHEAD:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"batch has length {batch.length}, allowed are {MIN_LENGTH} to {left - LOG_OVERHEAD}",
        )
    batch.buffer = buffer[position : position + batch.size]
    return batch


def batches(buffer: memoryview) -> Iterator[Batch]:
    """View every batch of a buffer that holds only whole batches."""
    position, end = 0, len(buffer)
    while position < end:
        batch = read_batch(buffer, position)
        yield batch
        position += batch.size
