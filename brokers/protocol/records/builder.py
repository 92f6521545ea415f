"""Builds a batch from records, for coordinators, markers, compaction and tests.

Knows nothing of topics or of time: timestamps come with the records, and offsets count from the
base unless they are given, as compaction does to keep the existing ones.
"""

from collections.abc import Sequence
from typing import Final

from brokers.protocol.errors import EncodeError
from brokers.protocol.records.batch import (
    CHECKED_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    CRC,
    CRC_POSITION,
    DELETE_HORIZON_FLAG,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    Batch,
)
from brokers.protocol.records.compression import Compression, compress
from brokers.protocol.records.crc32c import crc32c
from brokers.protocol.records.reader import MAX_INT32, MAX_INT64, MIN_INT64, Header

_NULL: Final = b"\x01"  # -1 as a zigzag varint
_NO_ATTRIBUTES: Final = b"\x00"
_ONE_BYTE: Final = tuple(bytes([number]) for number in range(0x80))


class BatchBuilder:
    """Collects records and builds one batch with a valid CRC. For one batch, in one thread."""

    __slots__ = (
        "_attributes",
        "_base_offset",
        "_base_sequence",
        "_base_timestamp",
        "_compression",
        "_final_delta",
        "_has_base_timestamp",
        "_last_delta",
        "_leader_epoch",
        "_max_timestamp",
        "_parts",
        "_producer_epoch",
        "_producer_id",
        "record_count",
        "size",
    )

    def __init__(
        self,
        *,
        base_offset: int = 0,
        leader_epoch: int = NO_LEADER_EPOCH,
        compression: Compression = Compression.NONE,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
    ) -> None:
        for name, value, bits in (
            ("base offset", base_offset, 64),
            ("leader epoch", leader_epoch, 32),
            ("producer id", producer_id, 64),
            ("producer epoch", producer_epoch, 16),
            ("base sequence", base_sequence, 32),
        ):
            if not -(1 << bits - 1) <= value < 1 << bits - 1:
                raise EncodeError(f"{name} {value} does not fit into {bits} bits")
        self._attributes = (
            compression
            | (TRANSACTIONAL_FLAG if is_transactional else 0)
            | (CONTROL_FLAG if is_control else 0)
        )
        self._base_offset = base_offset
        self._leader_epoch = leader_epoch
        self._compression = compression
        self._producer_id = producer_id
        self._producer_epoch = producer_epoch
        self._base_sequence = base_sequence
        self._base_timestamp = self._max_timestamp = NO_TIMESTAMP
        self._has_base_timestamp = False
        self._final_delta = -1  # the minimum; a later record moves the end
        self._last_delta = -1
        self._parts: list[bytes] = []
        self.record_count = 0
        self.size = HEADER_SIZE  # of the batch, if built now without compression

    @classmethod
    def for_rest_of(cls, batch: Batch, delete_horizon: int | None = None) -> "BatchBuilder":
        """Return a builder for what compaction leaves of a batch: offsets, producer and codec.

        `delete_horizon` is the time from which its tombstones may be removed.
        """
        builder = cls(
            base_offset=batch.base_offset,
            leader_epoch=batch.leader_epoch,
            compression=batch.compression,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            base_sequence=batch.base_sequence,
        )
        builder._attributes = batch.attributes & ~DELETE_HORIZON_FLAG
        builder._final_delta = batch.last_offset_delta
        if delete_horizon is not None:
            builder._attributes |= DELETE_HORIZON_FLAG
            builder._base_timestamp, builder._has_base_timestamp = delete_horizon, True
        return builder

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header] = (),
        timestamp: int = NO_TIMESTAMP,
        *,
        offset: int | None = None,
    ) -> None:
        """Add a record at the next offset, or at a later one; refuse one that cannot be encoded."""
        delta = self._last_delta + 1 if offset is None else offset - self._base_offset
        if not self._last_delta < delta <= MAX_INT32:
            raise EncodeError(f"offset delta {delta} follows {self._last_delta}")
        if self._base_offset + delta > MAX_INT64:
            raise EncodeError(f"offset {self._base_offset + delta} does not fit into 64 bits")
        if not MIN_INT64 <= timestamp <= MAX_INT64:
            raise EncodeError(f"timestamp {timestamp} does not fit into 64 bits")
        base_timestamp = self._base_timestamp if self._has_base_timestamp else timestamp
        fields = [
            _NO_ATTRIBUTES,
            varint(timestamp - base_timestamp),
            varint(delta),
            *_nullable(key),
            *_nullable(value),
            varint(len(headers)),
        ]
        for name, content in headers:
            fields += *_named(name), *_nullable(content)
        record = b"".join(fields)
        prefix = varint(len(record))
        # The builder changes only after the whole record is known to be valid.
        self._base_timestamp, self._has_base_timestamp = base_timestamp, True
        if not self.record_count or timestamp > self._max_timestamp:
            self._max_timestamp = timestamp
        self._parts += prefix, record
        self._last_delta = delta
        self.record_count += 1
        self.size += len(prefix) + len(record)

    def build(self, level: int | None = None) -> bytearray:
        """Build the batch, packed at the codec's `level`; writable, for a log to patch."""
        if not self.record_count:
            raise EncodeError("a batch needs a record")
        records = b"".join(self._parts)
        if self._compression is not Compression.NONE:
            records = compress(self._compression, records, level)
        return self._finish(records)

    def build_empty(self, max_timestamp: int = NO_TIMESTAMP) -> bytearray:
        """Build a batch that has lost all its records and keeps their offsets and sequence."""
        if self.record_count:
            raise EncodeError(f"a batch with {self.record_count} records is not empty")
        # Otherwise clients would try to unpack an empty body; Kafka names no codec either.
        self._attributes &= ~COMPRESSION_MASK
        self._max_timestamp = max_timestamp
        if not self._has_base_timestamp:
            self._base_timestamp = max_timestamp
        return self._finish(b"")

    def _finish(self, records: bytes) -> bytearray:
        length = HEADER_SIZE - LOG_OVERHEAD + len(records)
        if length > MAX_INT32:
            raise EncodeError(f"batch of {length} bytes, its length field allows {MAX_INT32}")
        batch = bytearray(HEADER_SIZE)
        HEADER.pack_into(
            batch,
            0,
            self._base_offset,
            length,
            self._leader_epoch,
            MAGIC,
            0,  # the CRC, set below
            self._attributes,
            max(self._last_delta, self._final_delta),
            self._base_timestamp,
            self._max_timestamp,
            self._producer_id,
            self._producer_epoch,
            self._base_sequence,
            self.record_count,
        )
        batch += records
        CRC.pack_into(batch, CRC_POSITION, crc32c(memoryview(batch)[CHECKED_POSITION:]))
        return batch


def varint(value: int) -> bytes:
    """Encode a signed number of up to 64 bits as a zigzag varint."""
    number = (value << 1) ^ (value >> 63)
    if 0 <= number < 0x80:
        return _ONE_BYTE[number]
    if not 0 <= number < 2**64:
        raise EncodeError(f"{value} does not fit into 64 bits")
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _named(name: bytes | None) -> tuple[bytes, ...]:
    """Encode the name of a header; readers refuse null."""
    if name is None:
        raise EncodeError("header without a name")
    return varint(len(name)), name


def _nullable(data: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if data is None else (varint(len(data)), data)
