"""Searches by time go on in short steps, whatever headers promise and happens between two."""

import time
from collections.abc import Generator
from pathlib import Path

import pytest

from brokers.protocol.records.batch import CHECKED_POSITION, CRC, CRC_POSITION
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.protocol.records.crc32c import crc32c
from brokers.protocol.records.reader import PACE
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.reads import FoundRecord
from brokers.storage.segment import NOT_READ, Segment
from brokers.storage.time_search import HEADERS_PER_STEP, MAX_MISSES
from tests.builders.cleaning import clean_now, compacted, compacted_log, fill_keys
from tests.builders.logs import NOW_MS, append, at_greatest_time, batch, fill, finished, open_log

# Where a batch's header has its greatest timestamp.
MAX_TIMESTAMP_AT = 35
RECORDS = 300
CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=500)


def lying(records: int = RECORDS, *, promised: int = NOW_MS) -> memoryview:
    """Records of a second ago, and a header that promises one of now."""
    builder = BatchBuilder(compression=Compression.ZSTD)
    for _ in range(records):
        builder.append(None, b"", timestamp=NOW_MS - 1_000)
    data = memoryview(bytearray(builder.build()))
    data[MAX_TIMESTAMP_AT : MAX_TIMESTAMP_AT + 8] = promised.to_bytes(8, "big")
    CRC.pack_into(data, CRC_POSITION, crc32c(data[CHECKED_POSITION:]))
    return data


def stepped(steps: Generator[None, None, FoundRecord | None]) -> tuple[FoundRecord | None, int]:
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def test_headers_that_lie_are_believed_after_some_were_opened_and_the_answer_is_early(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    for _ in range(40):
        append(log, lying())
    append(log, batch(timestamp=NOW_MS))

    found, steps = stepped(log.search_timestamp(NOW_MS))

    assert found == FoundRecord(offset=MAX_MISSES * RECORDS, timestamp=NOW_MS, leader_epoch=0)
    assert steps >= MAX_MISSES


def test_record_behind_a_few_false_times_is_found(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    for _ in range(MAX_MISSES - 1):
        append(log, lying())
    append(log, batch(records=5, timestamp=NOW_MS - 2))

    found, _steps = stepped(log.search_timestamp(NOW_MS))

    assert found is not None
    assert found.offset == (MAX_MISSES - 1) * RECORDS + 2


def test_where_nothing_else_promises_the_time_there_is_no_record_of_it(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    for _ in range(MAX_MISSES):
        append(log, lying())

    assert finished(log.search_timestamp(NOW_MS)) is None


def test_no_step_of_a_search_takes_long(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    for _ in range(3):
        append(log, lying(20_000))
    longest, steps = 0.0, log.search_timestamp(NOW_MS)

    before = time.thread_time()
    for _ in steps:
        longest, before = max(longest, time.thread_time() - before), time.thread_time()

    assert longest < 0.010, "opening one of the batches takes 20 ms"


def test_many_headers_are_walked_in_steps(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(index_interval_bytes=1 << 30))
    append(log, lying())
    fill(log, 3 * HEADERS_PER_STEP, timestamp=NOW_MS - 1_000)

    found, steps = stepped(log.search_timestamp(NOW_MS))

    assert found is None
    assert steps > 3


@pytest.fixture
def restarted(tmp_path: Path) -> PartitionLog:
    """Many segments whose indexes nobody has read yet."""
    config = LogConfig(segment_bytes=400, index_interval_bytes=50)
    log = open_log(tmp_path / "t-0", config)
    for number in range(40):
        append(log, batch(timestamp=NOW_MS + number))
    log.close()
    return open_log(tmp_path / "t-0", config, is_clean=True)


def test_a_restarted_log_reads_the_index_of_one_segment_in_a_step(
    restarted: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    largest = Segment.largest_timestamp

    def counted(segment: Segment, config: LogConfig) -> int:
        if segment.max_timestamp == NOT_READ:
            read.append(segment.base_offset)
        return largest(segment, config)

    monkeypatch.setattr(Segment, "largest_timestamp", counted)

    steps = restarted.search_max_timestamp()
    before = 0
    for _ in steps:
        assert len(read) - before <= 1
        before = len(read)

    assert len(read) > 10
    found = at_greatest_time(restarted)
    assert found is not None
    assert found.offset == 39


@pytest.mark.parametrize("is_greatest", [False, True])
def test_segments_may_go_between_two_steps(restarted: PartitionLog, is_greatest: bool) -> None:
    steps = (
        restarted.search_max_timestamp() if is_greatest else restarted.search_timestamp(NOW_MS + 38)
    )
    for _ in range(3):
        next(steps)

    restarted.advance_log_start(30)
    restarted.delete_old_segments(NOW_MS)

    found = finished(steps)
    assert found is not None
    assert found.offset == (39 if is_greatest else 38)


def test_record_deleted_during_the_search_is_not_returned(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig())
    append(log, batch(records=4 * PACE, timestamp=NOW_MS))
    steps = log.search_timestamp(NOW_MS + 3 * PACE)
    next(steps)

    log.advance_log_start(3 * PACE + 5)

    found = finished(steps)
    assert found is not None
    assert found.offset == 3 * PACE + 5


def test_a_log_may_be_cleaned_between_two_steps(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "t-0", compacted(segment_bytes=200))
    fill_keys(log, [(b"key", b"v" * 30)] * 21)
    steps = log.search_max_timestamp()
    next(steps)

    clean_now(log)

    found = finished(steps)
    assert found is not None
    assert found == at_greatest_time(log)
