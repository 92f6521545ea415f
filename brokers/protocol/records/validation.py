"""Whether a broker may take a batch: what a producer sent, and what a leader sent to its follower.

Looks at headers and CRCs; records are opened only where a topic's rules speak of single records
(keys of a compacted topic, an oldest permitted timestamp). Codes are those of Apache Kafka, since
clients decide by them: CORRUPT_MESSAGE is sent again, INVALID_RECORD is given up.

`check_produced` is on the path of every produced batch. It asks one plain question after another,
without calls, tables or tuples between them, to stay near one microsecond.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import (
    CHECKED_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    Batch,
    TimestampType,
    batches,
)
from brokers.protocol.records.compression import LAST_CODEC
from brokers.protocol.records.crc32c import crc32c
from brokers.protocol.records.reader import records

NO_LIMIT: Final = 2**63 - 1
# Kafka's default of max.message.bytes: 1 MiB and the overhead of an old format's entry.
DEFAULT_MAX_BATCH_BYTES: Final = 1_048_588
DEFAULT_TIMESTAMP_AFTER_MAX_MS: Final = 3_600_000
# A batch of the default size at a ratio of 64, beyond what records with keys compress to; it bounds
# what one produced batch may cost a broker that must look inside.
DEFAULT_MAX_DECOMPRESSED_BYTES: Final = 64 * 2**20

# What a producer may say about its batch; the broker stamps times and the cleaner sets horizons.
_PRODUCER_ATTRIBUTES: Final = COMPRESSION_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG


class Origin(Enum):
    """Who appends on a leader."""

    CLIENT = "client"
    COORDINATOR = "coordinator"  # may write control batches


CLIENT: Final = Origin.CLIENT


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRules:
    """What a topic's configuration asks of a produced batch. Made once per configuration change."""

    max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = NO_LIMIT
    timestamp_after_max_ms: int = DEFAULT_TIMESTAMP_AFTER_MAX_MS
    # A compacted topic keeps the last record of each key, so a record without one is refused.
    are_keys_required: bool = False
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    # The newest timestamp accepted is now + this; no limit where the broker stamps.
    newest_after_ms: int = field(init=False)
    # Whether single records must be seen: the header holds neither keys nor the oldest timestamp.
    looks_inside: bool = field(init=False)

    def __post_init__(self) -> None:
        keeps_producer_time = self.timestamp_type is TimestampType.CREATE_TIME
        is_bounded_below = keeps_producer_time and self.timestamp_before_max_ms < NO_LIMIT
        newest = self.timestamp_after_max_ms if keeps_producer_time else NO_LIMIT
        object.__setattr__(self, "newest_after_ms", newest)
        object.__setattr__(self, "looks_inside", self.are_keys_required or is_bounded_below)


def check_produced(
    buffer: memoryview, rules: ProduceRules, now_ms: int, origin: Origin = CLIENT
) -> Batch:
    """Accept the records of one partition of a produce request: exactly one sound v2 batch."""
    size = len(buffer)
    if size < HEADER_SIZE:
        raise _invalid(f"{size} bytes hold no record batch, a header has {HEADER_SIZE}")
    batch = Batch(buffer)
    if batch.magic != MAGIC:
        raise _invalid(f"record batch has magic {batch.magic}, only {MAGIC} is accepted")
    if batch.length + LOG_OVERHEAD != size:
        raise _invalid(
            f"record batch says {batch.length + LOG_OVERHEAD} bytes, exactly one is accepted and "
            f"{size} bytes came"
        )
    if size > rules.max_batch_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"record batch is {size} bytes, the topic allows {rules.max_batch_bytes}",
        )
    if crc32c(buffer[CHECKED_POSITION:]) != batch.crc:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"record batch of {size} bytes does not match its CRC"
        )
    if batch.base_offset != 0:
        raise _invalid(f"base offset of a produced batch is 0, not {batch.base_offset}")
    if batch.record_count < 1 or batch.record_count != batch.last_offset_delta + 1:
        raise _invalid(
            f"record count {batch.record_count} and last offset delta {batch.last_offset_delta} "
            "do not agree"
        )
    # Most batches carry no attribute but a known codec, and are spared the call.
    if batch.attributes > LAST_CODEC or batch.attributes < 0:
        _check_attributes(batch, origin)
    if batch.producer_id >= 0:
        _check_producer(batch)
    if batch.max_timestamp - now_ms > rules.newest_after_ms:
        raise _bad_timestamp(batch.max_timestamp, rules, now_ms)
    if rules.looks_inside and not batch.attributes & CONTROL_FLAG:
        _check_inside(batch, rules, now_ms)
    return batch


def check_replicated(buffer: memoryview, *, expected_offset: int) -> list[Batch]:
    """Accept what a leader sent: whole batches, unharmed, in order, none of them known already.

    Offsets may have gaps, which compaction leaves, but never go back; nor do leader epochs.
    """
    accepted: list[Batch] = []
    epoch = -1
    for batch in batches(buffer):
        batch.check_crc()
        offsets = batch.last_offset_delta + 1
        if offsets < 1 or not 0 <= batch.record_count <= offsets:
            raise _corrupt(batch, f"{batch.record_count} records in {offsets} offsets")
        if batch.base_offset < expected_offset:
            raise _corrupt(batch, f"expected an offset of {expected_offset} or more")
        if batch.leader_epoch < epoch:
            raise _corrupt(batch, f"leader epoch {batch.leader_epoch} follows {epoch}")
        expected_offset = batch.last_offset + 1
        epoch = batch.leader_epoch
        accepted.append(batch)
    return accepted


def check_records(
    batch: Batch,
    *,
    max_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
    are_keys_required: bool = False,
    oldest_ms: int = -NO_LIMIT,
    newest_ms: int = NO_LIMIT,
) -> None:
    """Open a produced batch: each record well formed, offset deltas 0, 1, 2, …, times in a window.

    The reader has refused lying lengths, counts and offsets by the time a record arrives here.
    """
    expected_offset = batch.base_offset
    for record in records(batch, max_bytes=max_bytes):
        if record.offset != expected_offset:
            raise _invalid(f"record has offset {record.offset}, expected {expected_offset}")
        if are_keys_required and record.key is None:
            raise _invalid(f"record at {record.offset} has no key, which a compacted topic needs")
        if record.timestamp != NO_TIMESTAMP and not oldest_ms <= record.timestamp <= newest_ms:
            raise KafkaError(
                ErrorCode.INVALID_TIMESTAMP,
                f"timestamp {record.timestamp} of the record at {record.offset} lies outside of "
                f"{oldest_ms} to {newest_ms}",
            )
        expected_offset += 1


def _check_attributes(batch: Batch, origin: Origin) -> None:
    attributes = batch.attributes
    if attributes & LOG_APPEND_TIME_FLAG:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, "a producer may not set the timestamp type LogAppendTime"
        )
    if attributes & ~_PRODUCER_ATTRIBUTES:
        raise _invalid(f"attributes {attributes:#x} of the record batch have unknown bits")
    if attributes & COMPRESSION_MASK > LAST_CODEC:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"compression codec {attributes & COMPRESSION_MASK} is not one of 0 to {LAST_CODEC}",
        )
    if attributes & CONTROL_FLAG and origin is CLIENT:
        raise _invalid("clients may not write control batches")
    if attributes & TRANSACTIONAL_FLAG and batch.producer_id < 0:
        raise _invalid(f"a transactional batch needs a producer id, not {batch.producer_id}")


def _check_producer(batch: Batch) -> None:
    if batch.producer_epoch < 0:
        raise _invalid(f"producer {batch.producer_id} has epoch {batch.producer_epoch}")
    # Markers are written on behalf of a producer and take none of its sequence numbers.
    if batch.base_sequence < 0 and not batch.is_control:
        raise _invalid(f"producer {batch.producer_id} has base sequence {batch.base_sequence}")


def _check_inside(batch: Batch, rules: ProduceRules, now_ms: int) -> None:
    keeps_producer_time = rules.timestamp_type is TimestampType.CREATE_TIME
    check_records(
        batch,
        max_bytes=rules.max_decompressed_bytes,
        are_keys_required=rules.are_keys_required,
        oldest_ms=now_ms - rules.timestamp_before_max_ms if keeps_producer_time else -NO_LIMIT,
        newest_ms=now_ms + rules.newest_after_ms,
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def _corrupt(batch: Batch, message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch at offset {batch.base_offset}: {message}")


def _bad_timestamp(timestamp: int, rules: ProduceRules, now_ms: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TIMESTAMP,
        f"timestamp {timestamp} lies {timestamp - now_ms} ms after the broker's time, "
        f"the topic allows {rules.timestamp_after_max_ms}",
    )
