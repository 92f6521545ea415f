"""Finds the greatest timestamp among the records of a segment, in short steps.

For retention by time, where a header alone says that records are too old: a producer may have
written any time into it. Remembers in the segment how far it has read. Between two steps the log
may grow, be cleaned, cut or lose segments.
"""

from collections.abc import Generator

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import Batch
from brokers.protocol.records.reader import PACE, outlines
from brokers.protocol.records.validation import MAX_INSPECTED_PARTS
from brokers.storage.log_config import LogConfig
from brokers.storage.reads import read_batch
from brokers.storage.segment import Segment
from brokers.storage.segments import Segments
from brokers.storage.time_index import NO_TIMESTAMP


def inspect_segment(
    segments: Segments, segment: Segment, config: LogConfig, limit_ms: int
) -> Generator[None, None, None]:
    """Read on until all records are read or one is not older than `limit_ms`."""
    paced = 0
    while segment.newest_record < limit_ms and segment.inspected_bytes < segment.size:
        # A new walk each time: the file may have been cut since the last step.
        header = next(segment.headers(segment.inspected_bytes), None)
        if header is None:
            segment.inspected_bytes = segment.size
            return
        batch = read_batch(segment, header)
        newest = yield from _newest_record(batch, config)
        if segments.holding(segment.base_offset) is not segment or header.end > segment.size:
            return
        if newest is None:
            newest = segment.modified_ms()
        segment.newest_record = max(segment.newest_record, newest)
        segment.inspected_bytes = header.end
        paced += batch.record_count
        if paced >= PACE:
            paced = 0
            yield


def _newest_record(batch: Batch, config: LogConfig) -> Generator[None, None, int | None]:
    """Return the greatest timestamp of a batch; None if it cannot be read."""
    if batch.uses_log_append_time:
        return batch.max_timestamp
    newest, most = NO_TIMESTAMP, config.rules.max_decompressed_bytes
    try:
        for row in outlines(batch, max_bytes=most, max_parts=MAX_INSPECTED_PARTS):
            if row is None:
                yield
            elif row[1] > newest:
                newest = row[1]
    except KafkaError:
        return None
    return newest
