"""The first record from an offset on, and its time: exact, and bounded where it cannot be both."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.compression import Compression
from brokers.storage import reads
from brokers.storage.log import PartitionLog
from brokers.storage.reads import FoundRecord
from tests.brokers.storage.test_reads import timed
from tests.builders.cleaning import clean_now, compacted_log, fill_keys, rows_of
from tests.builders.logs import NOW_MS, append, open_log

START_MS = NOW_MS - 9_000
TIMES = [[0, 10, 5], [7, 8], [30, 20], [25], [40, 50], [45]]


def first(log: PartitionLog, offset: int) -> FoundRecord | None:
    return log.first_record(offset, max_offset=log.end_offset)


@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP])
def test_each_offset_has_the_time_of_its_record(tmp_path: Path, codec: Compression) -> None:
    log = timed(tmp_path / "t-0", *TIMES, compression=codec)

    stamps = [stamp for stamps in TIMES for stamp in stamps]

    for offset, stamp in enumerate(stamps):
        expected = FoundRecord(offset=offset, timestamp=START_MS + stamp, leader_epoch=2)
        assert first(log, offset) == expected


def test_no_record_is_found_at_the_end_or_beyond_the_limit(tmp_path: Path) -> None:
    log = timed(tmp_path / "t-0", *TIMES)

    assert first(log, log.end_offset) is None
    assert first(log, log.end_offset + 5) is None
    assert log.first_record(4, max_offset=4) is None
    assert log.first_record(4, max_offset=5) is not None


def test_below_the_log_start_it_is_the_first_one_that_is_left(tmp_path: Path) -> None:
    log = timed(tmp_path / "t-0", *TIMES)
    log.advance_log_start(4)

    found = first(log, 1)

    assert found is not None
    assert (found.offset, found.timestamp) == (4, START_MS + 8)


def test_in_a_compacted_log_it_is_the_next_record_that_is_left(tmp_path: Path) -> None:
    log = compacted_log(tmp_path / "t-0")
    for number in range(60):
        fill_keys(log, [(b"%d" % (number % 7), b"v" * 90)], timestamp=NOW_MS + number)
    clean_now(log)
    left = {record.offset: record.timestamp for record in rows_of(log)}
    assert len(left) < 40

    for offset in range(log.end_offset):
        expected = min(other for other in left if other >= offset)
        found = first(log, offset)
        assert found is not None
        assert (found.offset, found.timestamp) == (expected, left[expected])


@pytest.mark.parametrize("limit", ["MAX_TIMED_RECORDS", "MAX_TIMED_BYTES"])
def test_a_batch_too_large_to_be_opened_has_its_earliest_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    log = timed(tmp_path / "t-0", [0, 10], [30, 40, 35, 50])
    monkeypatch.setattr(reads, limit, 3)

    found = first(log, 4)

    assert found == FoundRecord(offset=4, timestamp=START_MS + 30, leader_epoch=2)


def test_after_many_batches_without_records_the_search_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = compacted_log(tmp_path / "t-0")
    for number in range(40):
        fill_keys(log, [(b"k", b"v" * 90)], timestamp=NOW_MS + number)
    clean_now(log)
    monkeypatch.setattr(reads, "MAX_TIMED_BATCHES", 1)

    assert first(log, 0) is not None


@pytest.mark.alone
@pytest.mark.parametrize("codec", [Compression.NONE, Compression.GZIP, Compression.ZSTD])
def test_the_largest_batch_that_is_opened_takes_some_milliseconds(
    tmp_path: Path, codec: Compression, report: Callable[[str], None]
) -> None:
    builder = BatchBuilder(compression=codec)
    for number in range(reads.MAX_TIMED_RECORDS):
        builder.append(None, b"%80d" % number, timestamp=NOW_MS + number)
    log = open_log(tmp_path / "t-0")
    append(log, memoryview(builder.build()))

    best = float("inf")
    for _ in range(3):
        began = time.thread_time()
        found = first(log, log.end_offset - 1)
        best = min(best, time.thread_time() - began)

    assert found is not None
    assert found.timestamp == NOW_MS + reads.MAX_TIMED_RECORDS - 1
    report(f"{codec.name}: {best * 1e3:.1f} ms")
    assert best < 0.010
