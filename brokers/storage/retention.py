"""Selects old segments to delete, by Kafka's three rules: time, size, and the log's start.

Decides only; the log renames and the owner unlinks later. Whole segments from the oldest on, none
that holds an offset at or above the bound, which is the high watermark of a leader.

The age of a segment is that of its newest record. Headers tell it, and where they are wrong they
must not cost a record: a segment whose headers say that it is too old, although its file was
written to since, stays until `inspect_ages` has read its records.
"""

from collections.abc import Generator

from brokers.storage.ages import inspect_segment
from brokers.storage.log_config import LogConfig
from brokers.storage.segment import Segment
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
        if not is_surplus and not _is_too_old(segment, config, now_ms):
            break
        surplus -= segment.size
        taken = index + 1
    return taken


def inspect_ages(segments: Segments, config: LogConfig, now_ms: int) -> Generator[None, None, None]:
    """Read the records of the oldest segments that only their headers call too old, in steps."""
    if not config.is_deleted or config.retention_ms < 0:
        return
    limit_ms, offset = now_ms - config.retention_ms, segments[0].base_offset
    while offset >= 0:
        index = segments.index_of(offset)
        segment = segments[index]
        if not _is_too_old(segment, config, now_ms):
            if not NO_TIMESTAMP < segment.largest_timestamp(config) < limit_ms:
                return
            yield from inspect_segment(segments, segment, config, limit_ms)
            is_here = segments.holding(segment.base_offset) is segment
            if is_here and not _is_too_old(segment, config, now_ms):
                return
        # The segment may have gone meanwhile, and so may the one behind it.
        offset = segments.end_of(segments.index_of(offset), -1)


def segments_below(segments: Segments, start_offset: int) -> int:
    """Return how many of the oldest segments are below the log's start; never the active one."""
    return segments.index_of(start_offset)


def _is_too_old(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    limit_ms = now_ms - config.retention_ms
    if config.retention_ms < 0 or segment.largest_timestamp(config) >= limit_ms:
        return False
    # Without any timestamp the file's time alone counts, as in Kafka.
    if segment.modified_ms() < limit_ms:
        return True
    is_inspected = segment.inspected_bytes == segment.size
    return is_inspected and NO_TIMESTAMP < segment.newest_record < limit_ms
