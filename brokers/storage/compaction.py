"""When a log is cleaned, and which of its segments: Kafka's rules, decided from what is in memory.

Decides only. Dirty is what came after the last cleaning; a log is due when enough of it is dirty,
when its oldest dirty record has waited for too long, or when a tombstone's time is over. Nothing is
cleaned that is not flushed and committed, nor the active segment.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from brokers.storage.log_config import NO_LAG_LIMIT, LogConfig
from brokers.storage.segment import Segment
from brokers.storage.segments import Segments
from brokers.storage.time_index import NO_TIMESTAMP

# What one cleaning looks at; the rest has its turn when the first of them have been merged.
MAX_SEGMENTS: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Where a log stands. `bound` is what is both committed and flushed."""

    folder: str
    start_offset: int
    end_offset: int
    first_dirty: int  # as the checkpoint says
    bound: int
    cuts: int = 0  # how often it was truncated


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaning:
    """What is to be cleaned, and what must still be so when the result comes."""

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
    """What there is to clean now; None if that can wait, or is not asked for.

    `next_horizon_ms` is when the first tombstone that the last cleaning left may go. A log that is
    deleted as well is left to retention.
    """
    if not config.is_compacted or config.is_deleted:
        return None
    end_offset, first_dirty = extent.end_offset, extent.first_dirty
    if not extent.start_offset <= first_dirty <= end_offset:
        first_dirty = extent.start_offset
    first = segments.index_of(extent.start_offset)
    stop = _stop(segments, config, first, min(extent.bound, end_offset), now_ms)
    chosen = [segments[index] for index in range(first, stop)]
    if not chosen:
        return None
    end = segments.end_of(stop - 1, end_offset)
    clean, dirty = 0, 0
    oldest_dirty: Segment | None = None
    for index, segment in enumerate(chosen, first):
        if segments.end_of(index, end_offset) <= first_dirty:
            clean += segment.size
            continue
        dirty += segment.size
        oldest_dirty = oldest_dirty or segment
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


def _stop(segments: Segments, config: LogConfig, first: int, bound: int, now_ms: int) -> int:
    """The index behind the last segment that may be cleaned."""
    stop = first
    while stop < min(len(segments) - 1, first + MAX_SEGMENTS):
        if segments.end_of(stop, bound + 1) > bound:
            break
        if config.min_compaction_lag_ms > 0:
            newest = segments[stop].largest_timestamp(config)
            if newest > now_ms - config.min_compaction_lag_ms:
                break
        stop += 1
    return stop


def _has_waited(segment: Segment | None, config: LogConfig, now_ms: int) -> bool:
    if segment is None or config.max_compaction_lag_ms >= NO_LAG_LIMIT:
        return False
    oldest = segment.read_first_timestamp()
    return oldest != NO_TIMESTAMP and now_ms - oldest > config.max_compaction_lag_ms
