"""Computes the lag of groups in records and in time, from what any client can read.

Reads committed offsets, the ends of partitions, and the timestamp of the next record. For that, it
reads one record for each place with a lag, in all partitions at once, until the connection's
deadline. Joins no group and commits nothing.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.kafka.admin_calls import AdminCalls
from gateway.kafka.bounds import bounds
from gateway.kafka.clients import FIRST_RECORDS
from gateway.kafka.connection import Connection, Deadline
from gateway.kafka.consumer import AssignedConsumer
from gateway.kafka.groups import Groups
from gateway.kafka.values import PartitionLag, Place, Record

# The wait of an empty read, after which the deadline is checked.
TICK_S: Final = 0.1
BATCH: Final = 1000


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
    consumer = AssignedConsumer(connection, FIRST_RECORDS)
    try:
        # A consumer reads a partition at one position: groups that differ there take turns.
        while left and not deadline.is_over():
            turn = {place: offsets.pop(0) for place, offsets in left.items()}
            left = {place: offsets for place, offsets in left.items() if offsets}
            for place, written_ms in _first_records(consumer, turn, deadline).items():
                found[place, turn[place]] = written_ms
    finally:
        consumer.close()
    return found


def _first_records(
    consumer: AssignedConsumer, places: Mapping[Place, int], deadline: Deadline
) -> dict[Place, int]:
    """Return the timestamps of the first records; a place without a record has none."""
    consumer.assign(places)
    left = set(places)
    found: dict[Place, int] = {}
    while left and not deadline.is_over():
        for event in consumer.poll(most=BATCH, wait_s=min(TICK_S, deadline.left())):
            place, written_ms = (
                (Place(topic=event.topic, partition=event.partition), event.timestamp_ms)
                if isinstance(event, Record)
                else (event.place, None)
            )
            if place is None or place not in left:
                continue
            left.discard(place)
            consumer.remove([place])
            if written_ms is not None:
                found[place] = written_ms
    return found
