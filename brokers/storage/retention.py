"""Selects old segments to delete, by Kafka's three rules: time, size, and the log's start.

Decides only; the log renames and the owner unlinks later. Whole segments from the oldest on, none
that holds an offset at or above the bound, which is the high watermark of a leader.
"""

from brokers.storage.log_config import LogConfig
from brokers.storage.segments import Segments
from brokers.storage.time_index import NO_TIMESTAMP


def expired_segments(
    segments: Segments, config: LogConfig, *, now_ms: int, bound: int, end_offset: int
) -> int:
    """Return how many of the oldest segments have expired, maybe all of them.

    An empty active segment never counts: replacing it by another empty one would gain nothing.
    """
    if not config.is_deleted:
        return 0
    taken = 0
    surplus = sum(segment.size for segment in segments) - config.retention_bytes
    for index, segment in enumerate(segments):
        if segments.end_of(index, end_offset) > bound or segment.size == 0:
            break
        is_surplus = config.retention_bytes >= 0 and surplus - segment.size >= 0
        if not is_surplus and not _is_too_old(segments, index, config, now_ms):
            break
        surplus -= segment.size
        taken = index + 1
    return taken


def segments_below(segments: Segments, start_offset: int) -> int:
    """Return how many of the oldest segments are below the log's start; never the active one."""
    return segments.index_of(start_offset)


def _is_too_old(segments: Segments, index: int, config: LogConfig, now_ms: int) -> bool:
    if config.retention_ms < 0:
        return False
    newest = segments[index].largest_timestamp(config)
    # Records without timestamps have no age; they are deleted by size or not at all.
    return newest != NO_TIMESTAMP and now_ms - newest > config.retention_ms
