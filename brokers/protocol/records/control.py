"""Control batches: the markers that end a transaction in each of its partitions.

A marker takes an offset and reaches every consumer, which reads it without showing it to its
application. Knows nothing of the transactions themselves.
"""

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import NO_LEADER_EPOCH, Batch
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.reader import Record, records

_KEY = Struct(">hh")  # version, type
_END_VALUE = Struct(">hi")  # version, coordinator epoch
_VERSION: Final = 0
# A control batch holds one small record; a larger one cannot be a marker.
_MAX_MARKER_BYTES: Final = 4096


class ControlType(IntEnum):
    """The type of a control record, the number in its key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnMarker:
    """The end of a producer's open transaction in one partition."""

    is_commit: bool
    coordinator_epoch: int  # a partition refuses a marker of an older coordinator


def build_end_txn(
    marker: EndTxnMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """Build the control batch of a marker; it uses none of its producer's sequences."""
    builder = BatchBuilder(
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    control_type = ControlType.COMMIT if marker.is_commit else ControlType.ABORT
    builder.append(
        _KEY.pack(_VERSION, control_type),
        _END_VALUE.pack(_VERSION, marker.coordinator_epoch),
        timestamp=timestamp,
    )
    return builder.build()


def control_type(record: Record) -> ControlType | None:
    """Return the type of a control record; None for an unknown, newer type."""
    key = record.key
    if key is None or len(key) < _KEY.size:
        raise _corrupt(record, f"key {key!r}")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise _corrupt(record, f"key version {version}")
    return ControlType(number) if number in _KNOWN_TYPES else None


def read_end_txn(batch: Batch) -> EndTxnMarker | None:
    """Read the marker of a control batch; None if it holds something else.

    A newer version of key or value keeps the fields known here and adds others behind them.
    """
    assert batch.is_control
    record = next(records(batch, max_bytes=_MAX_MARKER_BYTES), None)
    if record is None:
        # Compaction may have emptied the batch and kept it for its producer.
        return None
    kind = control_type(record)
    if kind is not ControlType.COMMIT and kind is not ControlType.ABORT:
        return None
    value = record.value
    if value is None or len(value) < _END_VALUE.size:
        raise _corrupt(record, f"value {value!r}")
    version, coordinator_epoch = _END_VALUE.unpack_from(value)
    if version < 0:
        raise _corrupt(record, f"value version {version}")
    return EndTxnMarker(is_commit=kind is ControlType.COMMIT, coordinator_epoch=coordinator_epoch)


def _corrupt(record: Record, reason: str) -> KafkaError:
    return KafkaError(
        ErrorCode.CORRUPT_MESSAGE, f"control record at offset {record.offset} has {reason}"
    )


_KNOWN_TYPES: Final = frozenset(ControlType)
