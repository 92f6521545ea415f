"""Decides when a log is cleaned, and which segments, by Kafka's rules and the state in memory.

Decides only. Dirty records are those after the last cleaning. A log is due when enough of it is
dirty, when its oldest dirty record has waited for too long, or when a tombstone has expired. Only
flushed and committed segments are cleaned, never the active one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from brokers.storage.log_config import NO_LAG_LIMIT, LogConfig
from brokers.storage.segment import NOT_READ, Segment
from brokers.storage.segments import Segments
from brokers.storage.time_index import NO_TIMESTAMP

# Segments of one cleaning; the rest follows when the first of them have been merged.
MAX_SEGMENTS: Final = 10_000
# New data of one cleaning, but one segment at least: small records take a worker two minutes, and a
# log whose worker is killed for its run time would never be clean.
MAX_DIRTY_BYTES: Final = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """The offsets of a log. `bound` is what is both committed and flushed."""

    folder: str
    start_offset: int
    end_offset: int
    first_dirty: int  # as the checkpoint says
    bound: int
    cuts: int = 0  # how often it was truncated


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """The segments to clean, and the state that must still hold when the result comes."""

    folder: str
    config: LogConfig
    segments: Sequence[Segment]  # oldest first, from the start of the log
    sizes: Sequence[int]  # theirs, when this was made
    first_dirty: int
    end: int  # the offset behind the last of the segments
    dirty_ratio: float
    now_ms: int
    cuts: int


def cleanable(
    segments: Segments,
    config: LogConfig,
    extent: Extent,
    *,
    now_ms: int,
    next_horizon_ms: int | None = None,
) -> Cleaning | None:
    """Return the segments to clean now; None if cleaning can wait or is not configured.

    `next_horizon_ms` is when the first tombstone that the last cleaning left may be removed. A log
    that is deleted as well is left to retention.
    """
    if not config.is_compacted or config.is_deleted:
        return None
    end_offset, first_dirty = extent.end_offset, extent.first_dirty
    if not extent.start_offset <= first_dirty <= end_offset:
        first_dirty = extent.start_offset
    first = segments.index_of(extent.start_offset)
    bound = min(extent.bound, end_offset)
    clean, dirty, stop = 0, 0, -1
    chosen: list[Segment] = []
    oldest_dirty: Segment | None = None
    for index in range(first, min(len(segments) - 1, first + MAX_SEGMENTS)):
        segment, segment_end = segments[index], segments.end_of(index, bound + 1)
        if segment_end > bound:
            break
        if segment_end <= first_dirty:
            clean += segment.size
        elif _is_too_young(segment, config, now_ms):
            break
        else:
            if dirty == 0 or dirty + segment.size <= MAX_DIRTY_BYTES:
                stop = len(chosen) + 1
            dirty += segment.size
            oldest_dirty = oldest_dirty or segment
        chosen.append(segment)
    if not chosen:
        return None
    if stop >= 0:
        del chosen[stop:]
    end = segments.end_of(first + len(chosen) - 1, end_offset)
    ratio = dirty / (clean + dirty) if dirty else 0.0
    is_due = dirty > 0 and (
        ratio >= config.min_cleanable_ratio or _has_waited(oldest_dirty, config, now_ms)
    )
    if not is_due and (next_horizon_ms is None or next_horizon_ms > now_ms):
        return None
    return Cleaning(
        folder=extent.folder,
        config=config,
        segments=chosen,
        sizes=[segment.size for segment in chosen],
        first_dirty=min(first_dirty, end),
        end=end,
        dirty_ratio=ratio,
        now_ms=now_ms,
        cuts=extent.cuts,
    )


def learn_age(segments: Segments, config: LogConfig, first_dirty: int) -> bool:
    """Read the age of one more dirty segment; False if `cleanable` need not read any.

    For a log from an earlier run each takes a millisecond or two, and there may be thousands.
    """
    if not config.is_compacted or config.is_deleted or config.min_compaction_lag_ms <= 0:
        return False
    for index in range(segments.index_of(first_dirty), len(segments) - 1):
        if segments[index].max_timestamp == NOT_READ:
            segments[index].largest_timestamp(config)
            return True
    return False


def must_close(active: Segment, config: LogConfig, now_ms: int) -> bool:
    """Tell whether records of the active segment have waited for too long to be compacted."""
    return config.is_compacted and not config.is_deleted and _has_waited(active, config, now_ms)


def _is_too_young(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    if config.min_compaction_lag_ms <= 0:
        return False
    return segment.largest_timestamp(config) > now_ms - config.min_compaction_lag_ms


def _has_waited(segment: Segment | None, config: LogConfig, now_ms: int) -> bool:
    if segment is None or config.max_compaction_lag_ms >= NO_LAG_LIMIT:
        return False
    oldest = segment.read_first_timestamp()
    return oldest != NO_TIMESTAMP and now_ms - oldest > config.max_compaction_lag_ms
