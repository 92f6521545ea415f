"""Checks whether a broker may accept a batch, from a producer or from a partition's leader.

Checks headers and CRCs; records are unpacked only if a topic's rules concern single records (keys
of a compacted topic, an oldest permitted timestamp), or if the times in the header contradict each
other. A batch with another codec than its topic's is checked first and recompressed by the caller.
Apache Kafka always stores the greatest timestamp of the records; this module does where it has
unpacked them. Codes are those of Apache Kafka, since clients act on them: CORRUPT_MESSAGE is
retried, INVALID_RECORD is not, and after MESSAGE_TOO_LARGE a Java producer splits the batch.

`check_produced` is on the path of every produced batch. It is a plain series of conditions on
locals, without calls, tables or tuples between them, to stay near half a microsecond beside the
CRC.
"""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import (
    CHECKED_POSITION,
    COMPRESSION_MASK,
    CONTROL_FLAG,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
    Batch,
    TimestampType,
    batches,
    stored_max_timestamp,
)
from brokers.protocol.records.compression import LAST_CODEC, Compression
from brokers.protocol.records.crc32c import crc32c
from brokers.protocol.records.reader import MAX_INT64, MIN_RECORD_SIZE, Outline, outlines
from brokers.protocol.records.recompression import Packing
from brokers.protocol.records.record_faults import Faults, RecordsRefused

NO_LIMIT: Final = MAX_INT64
# Kafka's default of max.message.bytes: 1 MiB and the overhead of an old format's entry.
DEFAULT_MAX_BATCH_BYTES: Final = 1_048_588
DEFAULT_TIMESTAMP_AFTER_MAX_MS: Final = 3_600_000
# A batch of the default size at a ratio of 64, beyond what records with keys compress to; it bounds
# the cost of unpacking one produced batch.
DEFAULT_MAX_DECOMPRESSED_BYTES: Final = 64 * 2**20

# Records and headers checked in one batch: more than three times the smallest records that fit into
# 1 MB. They take half a second to five of one broker's time, in slices of a few milliseconds;
# without a limit, a few KiB of zstd that say 64 MiB of headers would take minutes.
MAX_INSPECTED_PARTS: Final = 500_000
# The limits of an immediate check: half a millisecond, or 2.5 ms for the slowest input. A lane and
# the regular path behind it may both begin with the same batch.
MAX_PARTS_AT_ONCE: Final = 500
MAX_BYTES_AT_ONCE: Final = 2**20

# Attributes that a producer may set; the broker stamps times and the cleaner sets horizons.
_PRODUCER_ATTRIBUTES: Final = COMPRESSION_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG


# Bound once: looking them up takes a fifteenth of `check_produced`.
_unpack_header = HEADER.unpack_from
_new_batch = Batch.__new__


_NO_KEY: Final = "has no key, which a compacted topic needs"
_LZ4: Final = Compression.LZ4.value
_LZ4_MAGIC: Final = bytes.fromhex("04224d18")
_LZ4_HEAD: Final = 7  # magic, flags, block size, checksum
# Of the flags: version, independence of blocks, dictionary id.
_LZ4_FLAGS: Final = 0xE1
_LZ4_PLAIN: Final = 0x60


class Origin(Enum):
    """The writer that appends on a leader."""

    CLIENT = "client"
    # May write control batches, and is trusted to set a key and a time in each record.
    COORDINATOR = "coordinator"


CLIENT: Final = Origin.CLIENT


class Unready(Exception):
    """The batch needs work that may take too long for one turn of the loop.

    The caller does it by the same `rules`, and appends again with these as the `inspected` ones.
    """

    def __init__(self, rules: "ProduceRules") -> None:
        super().__init__()
        self.rules = rules


class NeedsInspection(Unready):
    """The batch may be valid; the caller runs `inspecting`."""


class NeedsRecompression(Unready):
    """The batch is valid, and has another codec than its topic's; the caller recompresses it."""


class Wanted(NamedTuple):
    """A topic's rules for single records: a key, and a time in a window."""

    are_keys_required: bool = False
    oldest_ms: int = -NO_LIMIT
    newest_ms: int = NO_LIMIT


ANY_RECORD: Final = Wanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProduceRules:
    """A topic's rules for a produced batch. Made once per configuration change."""

    max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    timestamp_before_max_ms: int = NO_LIMIT
    timestamp_after_max_ms: int = DEFAULT_TIMESTAMP_AFTER_MAX_MS
    # A compacted topic keeps the last record of each key, so a record without one is refused.
    are_keys_required: bool = False
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
    # The codec of compression.type; None keeps those of producers.
    packing: Packing | None = None
    # The newest accepted timestamp is now + this; no limit if the broker stamps.
    newest_after_ms: int = field(init=False)
    # The most records that fit into a compressed body.
    max_packed_records: int = field(init=False)
    # Whether single records are checked: the header has neither keys nor the oldest timestamp.
    looks_inside: bool = field(init=False)
    # Whether the header alone never makes a batch ready.
    is_demanding: bool = field(init=False)

    def __post_init__(self) -> None:
        keeps_producer_time = self.timestamp_type is TimestampType.CREATE_TIME
        is_bounded_below = keeps_producer_time and self.timestamp_before_max_ms < NO_LIMIT
        newest = self.timestamp_after_max_ms if keeps_producer_time else NO_LIMIT
        most = self.max_decompressed_bytes // MIN_RECORD_SIZE
        object.__setattr__(self, "newest_after_ms", newest)
        object.__setattr__(self, "max_packed_records", most)
        looks_inside = self.are_keys_required or is_bounded_below
        object.__setattr__(self, "looks_inside", looks_inside)
        object.__setattr__(self, "is_demanding", looks_inside or self.packing is not None)


def check_produced(
    buffer: memoryview,
    rules: ProduceRules,
    now_ms: int,
    origin: Origin = CLIENT,
    inspected: ProduceRules | None = None,
) -> Batch:
    """Check the records of one partition of a produce request: exactly one valid v2 batch.

    `inspected` are the rules by which its single records have already passed.
    """
    size = len(buffer)
    if size < HEADER_SIZE:
        raise _invalid(f"{size} bytes hold no record batch, a header has {HEADER_SIZE}")
    # fmt: off
    (base_offset, length, leader_epoch, magic, crc, attributes, last_offset_delta, base_timestamp,
     newest, producer_id, producer_epoch, base_sequence, count) = _unpack_header(buffer)
    # fmt: on
    if magic != MAGIC:
        raise _invalid(f"record batch has magic {magic}, only {MAGIC} is accepted")
    if length + LOG_OVERHEAD != size:
        raise _invalid(
            f"record batch says {length + LOG_OVERHEAD} bytes, exactly one is accepted and "
            f"{size} bytes came"
        )
    if size > rules.max_batch_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"record batch is {size} bytes, the topic allows {rules.max_batch_bytes}",
        )
    if crc32c(buffer[CHECKED_POSITION:]) != crc:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"record batch of {size} bytes does not match its CRC"
        )
    if base_offset != 0:
        raise _invalid(f"base offset of a produced batch is 0, not {base_offset}")
    if count < 1 or count != last_offset_delta + 1:
        raise _invalid(
            f"record count {count} and last offset delta {last_offset_delta} do not agree"
        )
    # Filled here, from the locals: a second unpacking in `__init__` costs a tenth of the check.
    batch = _new_batch(Batch)
    batch.buffer = buffer
    batch.base_offset = base_offset
    batch.length = length
    batch.leader_epoch = leader_epoch
    batch.magic = magic
    batch.crc = crc
    batch.attributes = attributes
    batch.last_offset_delta = last_offset_delta
    batch.base_timestamp = base_timestamp
    batch.max_timestamp = newest
    batch.producer_id = producer_id
    batch.producer_epoch = producer_epoch
    batch.base_sequence = base_sequence
    batch.record_count = count
    # Only a compressed batch may hold more records than find room in its bytes.
    if count * MIN_RECORD_SIZE > size - HEADER_SIZE:
        _check_count(batch, rules)
    # Most batches have no attribute or one of the oldest codecs, and are spared the call.
    if attributes >= _LZ4 or attributes < 0:
        _check_attributes(batch, origin)
    if producer_id != NO_PRODUCER_ID:
        _check_producer(batch)
    if newest - now_ms > rules.newest_after_ms or newest < NO_TIMESTAMP:
        raise _bad_timestamp(batch, rules, now_ms)
    is_odd = newest != base_timestamp and not (newest > base_timestamp >= 0 and count > 1)
    if (rules.is_demanding or is_odd) and origin is CLIENT:
        _check_further(batch, rules, now_ms, inspected, is_odd=is_odd)
    return batch


def inspecting(
    records: memoryview, rules: ProduceRules, now_ms: int
) -> Generator[None, None, None]:
    """Check all records of a batch that raised NeedsInspection, in short steps.

    The buffer must not change until the end. Then the header has the records' greatest timestamp.
    """
    batch = Batch(records)
    newest = yield from _checking(
        batch,
        max_bytes=rules.max_decompressed_bytes,
        max_parts=MAX_INSPECTED_PARTS,
        wanted=_wanted(rules, now_ms),
    )
    _set_newest(batch, rules, newest)


def check_replicated(buffer: memoryview, *, expected_offset: int) -> list[Batch]:
    """Check a leader's records: whole batches, intact, in order, and none of them known.

    Offsets may have gaps, which compaction leaves, but never go back; nor do leader epochs.
    """
    accepted: list[Batch] = []
    epoch = -1
    for batch in batches(buffer):
        batch.check_crc()
        offsets = batch.last_offset_delta + 1
        if offsets < 1 or not 0 <= batch.record_count <= offsets:
            raise _corrupt(batch, f"{batch.record_count} records in {offsets} offsets")
        body_size = batch.size - HEADER_SIZE
        # Batches that a leader accepted must be accepted here, but it cannot have accepted these.
        if not batch.is_compressed and batch.record_count * MIN_RECORD_SIZE > body_size:
            raise _corrupt(batch, f"{batch.record_count} records in {body_size} bytes")
        if batch.next_offset > MAX_INT64:
            raise _corrupt(batch, f"next offset {batch.next_offset} does not fit into 64 bits")
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
    max_parts: int = MAX_INSPECTED_PARTS,
    wanted: Wanted = ANY_RECORD,
) -> int:
    """Check the records of a produced batch: well formed, offset deltas 0, 1, 2, …, and as wanted.

    Returns their greatest timestamp.

    RecordsRefused names all records without a key that they need, or with a time outside. The
    reader refuses wrong lengths, counts and offsets. Under a right CRC the producer wrote them so,
    and they are invalid rather than corrupt: a retry would not change them.
    """
    checking = _checking(batch, max_bytes=max_bytes, max_parts=max_parts, wanted=wanted)
    while True:
        try:
            next(checking)
        except StopIteration as end:
            newest: int = end.value
            return newest


def _checking(
    batch: Batch, *, max_bytes: int, max_parts: int, wanted: Wanted
) -> Generator[None, None, int]:
    try:
        return (
            yield from _check_each(
                outlines(batch, max_bytes=max_bytes, max_parts=max_parts), batch.base_offset, wanted
            )
        )
    except KafkaError as error:
        if error.code is ErrorCode.CORRUPT_MESSAGE:
            raise _invalid(error.message) from error
        raise


def _check_each(
    rows: Iterator[Outline | None], expected_offset: int, wanted: Wanted
) -> Generator[None, None, int]:
    are_keys_required, oldest_ms, newest_ms = wanted
    newest = NO_TIMESTAMP
    first_offset, faults = expected_offset, Faults()
    for row in rows:
        if row is None:
            yield
            continue
        offset, timestamp, has_key = row
        if offset != expected_offset:
            raise _invalid(f"record has offset {offset}, expected {expected_offset}")
        newest = max(newest, timestamp)
        if are_keys_required and not has_key:
            faults.add(offset - first_offset, _NO_KEY)
        elif timestamp != NO_TIMESTAMP and not oldest_ms <= timestamp <= newest_ms:
            wrong = f"has timestamp {timestamp}, which is outside of {oldest_ms} to {newest_ms}"
            faults.add(offset - first_offset, wrong, is_time=True)
        expected_offset += 1
    if faults.count:
        raise RecordsRefused(faults, expected_offset - first_offset)
    return newest


def _check_count(batch: Batch, rules: ProduceRules) -> None:
    body_size = batch.size - HEADER_SIZE
    is_packed = batch.is_compressed and body_size > 0
    most = rules.max_packed_records if is_packed else body_size // MIN_RECORD_SIZE
    if batch.record_count > most:
        raise _invalid(
            f"record count {batch.record_count} of a body of {body_size} bytes, "
            f"which holds {most} at most"
        )


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
    if attributes & COMPRESSION_MASK == _LZ4:
        _check_lz4(batch.body)
    if attributes & CONTROL_FLAG and origin is CLIENT:
        raise _invalid("clients may not write control batches")
    if attributes & TRANSACTIONAL_FLAG and batch.producer_id < 0:
        raise _invalid(f"a transactional batch needs a producer id, not {batch.producer_id}")


def _check_lz4(body: memoryview) -> None:
    """Refuse frames that only Java's consumers cannot read, which would block the topic for those.

    Checks the frame's first bytes only: its magic, version 1, and independent blocks.
    """
    if len(body) < _LZ4_HEAD or bytes(body[:4]) != _LZ4_MAGIC:
        raise _invalid("records said to be lz4 do not begin with an lz4 frame")
    if body[4] & _LZ4_FLAGS != _LZ4_PLAIN:
        raise _invalid(
            f"lz4 frame has flags {body[4]:#04x}: Kafka's clients read version 1 with independent "
            "blocks and no dictionary only; set the block mode of the compressor"
        )


def _check_producer(batch: Batch) -> None:
    if batch.producer_id < 0:
        raise _invalid(f"producer id {batch.producer_id} is less than {NO_PRODUCER_ID}, none")
    if batch.producer_epoch < 0:
        raise _invalid(f"producer {batch.producer_id} has epoch {batch.producer_epoch}")
    # Markers are written on behalf of a producer and use none of its sequence numbers.
    if batch.base_sequence < 0 and not batch.is_control:
        raise _invalid(f"producer {batch.producer_id} has base sequence {batch.base_sequence}")


def _check_further(
    batch: Batch,
    rules: ProduceRules,
    now_ms: int,
    inspected: ProduceRules | None,
    *,
    is_odd: bool,
) -> None:
    """Check what the header does not say: the records, and then whether their codec may stay."""
    if rules.looks_inside or is_odd:
        _look_inside(batch, rules, now_ms, inspected)
    packing = rules.packing
    if packing is not None and batch.attributes & COMPRESSION_MASK != packing.codec:
        raise NeedsRecompression(rules)


def _look_inside(
    batch: Batch, rules: ProduceRules, now_ms: int, inspected: ProduceRules | None
) -> None:
    """Check the records that were not inspected yet, and take their greatest timestamp.

    For topics with rules, and for headers whose times are odd: the base timestamp is that of the
    first record, so the greatest one is not below it, and the same for a single record; without
    timestamps both are -1. For clients only: they cannot write control batches, whose records are
    exempt.
    """
    is_stamped = rules.timestamp_type is TimestampType.LOG_APPEND_TIME
    if inspected is not rules and (rules.looks_inside or not is_stamped):
        _set_newest(batch, rules, _check_inside(batch, rules, now_ms))
    # As every later reader of the header will take it.
    batch.max_timestamp = stored_max_timestamp(
        batch.attributes, batch.base_timestamp, batch.max_timestamp
    )


def _set_newest(batch: Batch, rules: ProduceRules, newest: int) -> None:
    """Write the records' greatest timestamp into a header that has another one, as Kafka does."""
    if newest != batch.max_timestamp and rules.timestamp_type is TimestampType.CREATE_TIME:
        batch.stamp_max_timestamp(newest)


def _check_inside(batch: Batch, rules: ProduceRules, now_ms: int) -> int:
    try:
        return check_records(
            batch,
            max_bytes=min(rules.max_decompressed_bytes, MAX_BYTES_AT_ONCE),
            max_parts=MAX_PARTS_AT_ONCE,
            wanted=_wanted(rules, now_ms),
        )
    except KafkaError as error:
        if error.code is not ErrorCode.MESSAGE_TOO_LARGE:
            raise
        raise NeedsInspection(rules) from error


def _wanted(rules: ProduceRules, now_ms: int) -> Wanted:
    keeps_producer_time = rules.timestamp_type is TimestampType.CREATE_TIME
    return Wanted(
        rules.are_keys_required,
        now_ms - rules.timestamp_before_max_ms if keeps_producer_time else -NO_LIMIT,
        now_ms + rules.newest_after_ms,
    )


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def _corrupt(batch: Batch, message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch at offset {batch.base_offset}: {message}")


def _bad_timestamp(batch: Batch, rules: ProduceRules, now_ms: int) -> KafkaError:
    timestamp = batch.max_timestamp
    if timestamp < NO_TIMESTAMP:
        return _invalid(f"max timestamp {timestamp} is less than {NO_TIMESTAMP}, none")
    # List the records if an immediate check finds them; else the header is enough.
    try:
        _check_inside(batch, rules, now_ms)
    except RecordsRefused as error:
        return error
    except (KafkaError, NeedsInspection):
        pass
    return KafkaError(
        ErrorCode.INVALID_TIMESTAMP,
        f"timestamp {timestamp} is {timestamp - now_ms} ms after the broker's time, the topic "
        f"allows {rules.timestamp_after_max_ms}",
    )
