"""Limits the size of one metadata change, so that every reader can read it.

Pure. A record has to fit into one frame of the link, and readers limit the records of a change.
Records of many partitions are split here; a change that is still too large is refused.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from brokers.cluster.changes import ConfigsChanged, PartitionsAdded, Record, TopicCreated
from brokers.cluster.image import PartitionState
from brokers.protocol.errors import ErrorCode, KafkaError

# A call has 500 proposals, and each of them makes a few records.
MAX_RECORDS: Final = 10_000
# Three times what 100,000 partitions of three replicas take, the most of a cluster.
MAX_CHANGE_BYTES: Final = 16 * 2**20
# Half of the link's frame, since weights are upper estimates and frames have their own bytes.
MAX_RECORD_BYTES: Final = 512 * 2**10
# So many are decoded in a millisecond or two, and a reader pauses between records.
PARTITIONS_PER_RECORD: Final = 2_000
# The maximum of all other records: four texts of 255 characters, four bytes each.
OTHER_BYTES: Final = 4_096
# The numbers of a state and their overhead; a broker id with the byte of its type.
STATE_BYTES: Final = 64
ID_BYTES: Final = 5
# UTF-8, and the length of a text.
CHARACTER_BYTES: Final = 4
TEXT_BYTES: Final = 5


def bounded(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return the records of a change, split as needed; KafkaError if it is too large."""
    parts = tuple(split(records))
    check(len(parts), sum(map(weight, parts)))
    return parts


def split(records: Iterable[Record]) -> Iterator[Record]:
    """Cut records of many partitions into several equivalent ones."""
    for record in records:
        if isinstance(record, TopicCreated):
            first, *rest = _runs(record.partitions)
            yield TopicCreated(record.name, record.topic_id, first)
            yield from _added(record.topic_id, len(first), rest)
        elif isinstance(record, PartitionsAdded):
            yield from _added(record.topic_id, record.first_index, _runs(record.partitions))
        else:
            yield record


def weight(record: Record) -> int:
    """Return an upper bound of a record's bytes on the link; KafkaError if it is too large."""
    match record:
        case TopicCreated() | PartitionsAdded():
            size = OTHER_BYTES + sum(map(_state_bytes, record.partitions))
        case ConfigsChanged():
            texts = sum(len(key) + len(value) for key, value in record.configs)
            size = OTHER_BYTES + CHARACTER_BYTES * texts + 2 * TEXT_BYTES * len(record.configs)
        case _:
            return OTHER_BYTES
    if size > MAX_RECORD_BYTES:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{type(record).__name__} takes up to {size} bytes, one record of the cluster's "
            f"metadata takes {MAX_RECORD_BYTES}: use shorter values or fewer replicas",
        )
    return size


def check(count: int, size: int) -> None:
    """Refuse a change with too many records or bytes."""
    if count > MAX_RECORDS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{count} records in one change, {MAX_RECORDS} are allowed: ask for less at a time",
        )
    if size > MAX_CHANGE_BYTES:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"{size} bytes in one change, {MAX_CHANGE_BYTES} are allowed: ask for less at a time",
        )


def _added(
    topic_id: bytes, first_index: int, runs: Iterable[tuple[PartitionState, ...]]
) -> Iterator[Record]:
    for run in runs:
        yield PartitionsAdded(topic_id, first_index, run)
        first_index += len(run)


def _runs(states: Sequence[PartitionState]) -> list[tuple[PartitionState, ...]]:
    """Cut partitions into runs of one record each; at least one run, even of none."""
    runs: list[tuple[PartitionState, ...]] = []
    start, size = 0, OTHER_BYTES
    for index, state in enumerate(states):
        more = _state_bytes(state)
        is_full = index - start >= PARTITIONS_PER_RECORD or size + more > MAX_RECORD_BYTES
        if is_full and index > start:
            runs.append(tuple(states[start:index]))
            start, size = index, OTHER_BYTES
        size += more
    return [*runs, tuple(states[start:])]


def _state_bytes(state: PartitionState) -> int:
    return STATE_BYTES + ID_BYTES * (len(state.replicas) + len(state.isr))
