"""Decides when the active segment is full, by Kafka's rules.

Size, index and offsets are plain limits; time is the difference of the timestamps of the segment's
first record and the next one, so a replayed log rolls where the original did. The log asks only
when one of the `bounds` is crossed, which are cheap to compare with.
"""

from typing import NamedTuple

from brokers.storage.log_config import LogConfig
from brokers.storage.segment import MAX_RELATIVE_OFFSET, Segment

# Of the time: every append calls `must_roll`, because the segment's records have no timestamps.
_ALWAYS = -2


class Bounds(NamedTuple):
    """The limits that the next batch must not exceed without a call of `must_roll`."""

    size: int  # of the segment, in bytes
    timestamp: int
    next_offset: int


# Every batch exceeds these.
CLOSED = Bounds(-1, _ALWAYS, -1)


def must_roll(
    segment: Segment,
    config: LogConfig,
    *,
    folder: str,
    size: int,
    timestamp: int,
    next_offset: int,
    waited_ms: int,
) -> bool:
    """Tell whether a batch needs a new segment; `waited_ms` is how long this one is in use."""
    if next_offset - 1 - segment.base_offset > MAX_RELATIVE_OFFSET:
        return True
    if segment.size == 0:
        return False
    if segment.size + size > config.segment_bytes or segment.index_room(config) <= 0:
        return True
    first_timestamp = segment.read_first_timestamp()
    if first_timestamp >= 0 and timestamp >= 0:
        waited_ms = timestamp - first_timestamp
    return waited_ms > config.roll_after_ms(folder, segment.base_offset)


def bounds(segment: Segment, config: LogConfig, folder: str) -> Bounds:
    """Return the bounds of the segment for the next batch, from its first timestamp."""
    first_timestamp = segment.read_first_timestamp()
    last_timestamp = _ALWAYS
    if first_timestamp >= 0:
        last_timestamp = first_timestamp + config.roll_after_ms(folder, segment.base_offset)
    has_room = segment.index_room(config) > 0
    return Bounds(
        config.segment_bytes if has_room else CLOSED.size,
        last_timestamp,
        segment.base_offset + MAX_RELATIVE_OFFSET + 1,
    )
