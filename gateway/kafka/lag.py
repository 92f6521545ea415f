"""Computes the lag of groups in records and in time, from what any client can read.

Reads committed offsets, the ends of partitions, and the timestamp of the next record. For that, it
reads one record for each place with a lag, in all partitions at once, until the connection's
deadline. Joins no group and commits nothing.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaException,
    Message,
    TopicPartition,
)

from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.bounds import bounds
from gateway.kafka.connection import Connection, Deadline, Reach
from gateway.kafka.errors import from_exception
from gateway.kafka.groups import Groups
from gateway.kafka.values import PartitionLag, Place

# The wait of an empty read, after which the deadline is checked.
TICK_S: Final = 0.1
BATCH: Final = 1000
# One record is wanted of each partition; the rest of a fetch is discarded.
FETCH_BYTES: Final = 16 * 1024
FETCH_WAIT_MS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """A place with its committed offset of a group."""

    group: str
    place: Place
    offset: int


def lags(
    connection: Connection,
    names: Sequence[str] | None = None,
    *,
    now_s: Callable[[], float] = time.time,
) -> list[PartitionLag]:
    """Return the lag of groups, or of all if none is named, for each committed place."""
    groups = Groups(connection)
    if not names:
        # No tool can read the offsets of a group with an empty name.
        names = [summary.name for summary in groups.summaries() if summary.name]
    found = groups.offsets(names)
    commits = [
        Committed(group=name, place=place, offset=offset)
        for name in dict.fromkeys(names)
        for place, offset in sorted(found[name].items())
    ]
    found_bounds = bounds(AdminCalls(connection), {commit.place for commit in commits})
    # Ages refer to this moment, like the record counts, however long the reads take.
    now_ms = int(now_s() * 1000)
    wanted = {
        (commit.place, max(commit.offset, found_bounds[commit.place][0]))
        for commit in commits
        if commit.place in found_bounds and commit.offset < found_bounds[commit.place][1]
    }
    times = _times(connection, wanted) if wanted else {}
    return [_lag(commit, found_bounds.get(commit.place), times, now_ms) for commit in commits]


def _lag(
    commit: Committed,
    held: tuple[int, int] | None,
    times: Mapping[tuple[Place, int], int],
    now_ms: int,
) -> PartitionLag:
    if held is None:
        return PartitionLag(
            group=commit.group,
            place=commit.place,
            committed=commit.offset,
            end=None,
            records=None,
            ms=None,
        )
    start, end = held
    next_offset = max(commit.offset, start)
    written_ms = times.get((commit.place, next_offset))
    # A commit beyond the end is of a truncated log, without lag.
    records = max(0, end - next_offset)
    if records == 0:
        ms: int | None = 0
    else:
        # A producer's clock may be ahead of this host's.
        ms = None if written_ms is None else max(0, now_ms - written_ms)
    return PartitionLag(
        group=commit.group,
        place=commit.place,
        committed=commit.offset,
        end=end,
        records=records,
        ms=ms,
        is_lost=commit.offset < start,
    )


def _times(
    connection: Connection, wanted: Iterable[tuple[Place, int]]
) -> dict[tuple[Place, int], int]:
    """Return timestamps of the first record at or after each offset, as many as time allows."""
    left: dict[Place, list[int]] = {}
    for place, offset in sorted(wanted):
        left.setdefault(place, []).append(offset)
    deadline = connection.deadline()
    found: dict[tuple[Place, int], int] = {}
    reader = _FirstRecords(connection)
    try:
        # A consumer reads a partition at one position: groups that differ there take turns.
        while left and not deadline.is_over():
            turn = {place: offsets.pop(0) for place, offsets in left.items()}
            left = {place: offsets for place, offsets in left.items() if offsets}
            for place, written_ms in reader.read(turn, deadline).items():
                found[place, turn[place]] = written_ms
    finally:
        reader.close()
    return found


class _FirstRecords:
    """Reads the first record of many partitions, each from its own offset."""

    def __init__(self, connection: Connection) -> None:
        self._bootstrap = connection.bootstrap
        settings = connection.settings(
            Reach(connection.bootstrap),
            # confluent-kafka requires one for a consumer; nothing is ever stored under it.
            group_id=connection.client_id,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            auto_offset_reset="error",
            enable_partition_eof=True,
            # Records of an open transaction count as lag, too.
            isolation_level="read_uncommitted",
            fetch_wait_max_ms=FETCH_WAIT_MS,
            fetch_message_max_bytes=FETCH_BYTES,
            queued_min_messages=1,
        )
        try:
            self._client = Consumer(settings)
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, connection.bootstrap) from error

    def close(self) -> None:
        self._client.close()

    def read(self, places: Mapping[Place, int], deadline: Deadline) -> dict[Place, int]:
        """Return the received timestamps; a place without a record has none."""
        try:
            self._client.assign(
                [
                    TopicPartition(place.topic, place.partition, offset)
                    for place, offset in places.items()
                ]
            )
            left = set(places)
            found: dict[Place, int] = {}
            while left and not deadline.is_over():
                for message in self._client.consume(BATCH, min(TICK_S, deadline.left())):
                    place = _place_of(message)
                    if place is None or place not in left:
                        continue
                    left.discard(place)
                    self._client.incremental_unassign(
                        [TopicPartition(place.topic, place.partition)]
                    )
                    if (written_ms := _written_ms(message)) is not None:
                        found[place] = written_ms
            self._client.unassign()
        except (KafkaException, ValueError, TypeError) as error:
            raise from_exception(error, self._bootstrap) from error
        return found


def _place_of(message: Message) -> Place | None:
    """Return the partition of a message, an end or an error; None for the whole client."""
    topic, partition = message.topic(), message.partition()
    if topic is None or partition is None or partition < 0:
        return None
    return Place(topic=topic, partition=partition)


def _written_ms(message: Message) -> int | None:
    if message.error() is not None:
        return None
    kind, written_ms = message.timestamp()
    return None if kind == TIMESTAMP_NOT_AVAILABLE else written_ms
