"""Searches a log for a time in short steps, which the caller may spread over turns.

Reads headers, and opens batches to find a time to the record. Between two steps the log may grow,
be cleaned, cut or lose segments, so a search remembers only the offset where it goes on. A result
may be early; in a sound log it is never late, so a reader from there skips no record that it wants.
Behind a header whose length is wrong it may be late: a walk passes over the batches that the length
covers, which a read by offset still reaches through the offset index.
"""

from collections.abc import Generator
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.protocol.records.batch import HEADER_SIZE, Batch
from brokers.protocol.records.reader import outlines
from brokers.storage.headers import Header
from brokers.storage.log_config import LogConfig
from brokers.storage.reads import FoundRecord, found_in, read_batch
from brokers.storage.segment import Segment
from brokers.storage.segments import Segments
from brokers.storage.time_index import NO_TIMESTAMP

# Records and headers that a search decodes in one batch, about a microsecond each. Larger batches
# are found as a whole.
MAX_SEARCHED_PARTS: Final = 200_000
# Batches without any record that their header promised, before headers alone decide. A valid log
# has one at most, the one that the log start cuts, and those that lost records to compaction; so
# many of the largest searched batches take two seconds of CPU.
MAX_MISSES: Final = 8
# Headers of one step, 2 µs each.
HEADERS_PER_STEP: Final = 500

# Yields after each step, and returns the record.
Search = Generator[None, None, FoundRecord | None]


def find_timestamp(
    segments: Segments, timestamp: int, start_offset: int, config: LogConfig
) -> Search:
    """Find the first record at or behind `start_offset` that is not older than `timestamp`."""
    offset, misses = start_offset, 0
    while True:
        candidate = yield from _next_candidate(segments, timestamp, offset, config)
        if candidate is None:
            return None
        segment, header = candidate
        near = max(header.base_offset, start_offset)
        if misses == MAX_MISSES:
            return found_in(read_batch(segment, header, HEADER_SIZE), near, header.max_timestamp)
        batch = read_batch(segment, header)
        found = yield from _first_in(batch, timestamp, near, config)
        if found is not None:
            return found
        misses += 1
        offset = header.last_offset + 1


def find_max_timestamp(segments: Segments, config: LogConfig) -> Search:
    """Find the first record with the greatest timestamp of the log; None without timestamps."""
    greatest, offset = NO_TIMESTAMP, segments[0].base_offset
    while offset >= 0:
        index = segments.index_of(offset)
        # For an old segment this reads its index, once; so it counts as a step.
        greatest = max(greatest, segments[index].largest_timestamp(config))
        offset = segments.end_of(index, -1)
        yield
    if greatest == NO_TIMESTAMP:
        return None
    return (yield from find_timestamp(segments, greatest, segments[0].base_offset, config))


def _next_candidate(
    segments: Segments, timestamp: int, offset: int, config: LogConfig
) -> Generator[None, None, tuple[Segment, Header] | None]:
    """Return the first batch with records from `offset` on whose header promises the time."""
    while offset >= 0:
        index = segments.index_of(offset)
        segment = segments[index]
        behind = segments.end_of(index, -1)
        if segment.largest_timestamp(config) >= timestamp:
            headers = segment.headers_from_time(timestamp, offset, config)
            for number, header in enumerate(headers, 1):
                if header.max_timestamp >= timestamp and header.size > HEADER_SIZE:
                    return segment, header
                if number == HEADERS_PER_STEP:
                    behind = header.last_offset + 1
                    break
        offset = behind
        yield
    return None


def _first_in(batch: Batch, timestamp: int, start_offset: int, config: LogConfig) -> Search:
    """Return the first record of a batch neither older than `timestamp` nor below the offset."""
    try:
        for row in outlines(
            batch,
            max_bytes=config.rules.max_decompressed_bytes,
            max_parts=MAX_SEARCHED_PARTS,
        ):
            if row is None:
                yield
                continue
            offset, at, _has_key = row
            if at >= timestamp and offset >= start_offset:
                return found_in(batch, offset, at)
    except KafkaError as error:
        if error.code is not ErrorCode.MESSAGE_TOO_LARGE:
            raise
        return found_in(batch, start_offset, batch.max_timestamp)
    return None
