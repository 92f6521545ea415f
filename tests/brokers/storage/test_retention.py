"""Old segments go by time, by size and by the log's start, and never one that is still needed."""

from dataclasses import replace
from pathlib import Path

import pytest

from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.logs import (
    NOW_MS,
    append,
    batch,
    content,
    expire,
    files_of,
    open_log,
    spans,
)

SIZE = len(batch())
CONFIG = LogConfig(
    segment_bytes=2 * SIZE, retention_ms=-1, retention_bytes=-1, file_delete_delay_ms=60_000
)


def five_segments(folder: Path, **changes: int | bool) -> PartitionLog:
    """Ten batches in segments of two, one second apart, all flushed; the newest is at NOW_MS."""
    config = replace(CONFIG, **changes)  # type: ignore[arg-type]  # names are checked at runtime
    log = open_log(folder, config)
    for number in range(10):
        append(log, batch(timestamp=NOW_MS - 9_000 + 1_000 * number))
    log.flush()
    return log


def bases(log: PartitionLog) -> list[int]:
    return [segment.base_offset for segment in log.segments]


@pytest.mark.parametrize(
    ("retention_ms", "start"),
    [(-1, 0), (8_000, 0), (7_999, 2), (4_001, 4), (1_999, 8), (0, 8)],
)
def test_segments_go_when_their_newest_record_is_too_old(
    tmp_path: Path, retention_ms: int, start: int
) -> None:
    log = five_segments(tmp_path / "t-0", retention_ms=retention_ms)

    moved = expire(log, NOW_MS)
    log.delete_old_segments(NOW_MS)

    assert (moved, log.start_offset) == (start > 0, start)
    assert bases(log) == list(range(start, 10, 2))


def test_when_all_is_too_old_an_empty_segment_is_left(tmp_path: Path) -> None:
    log = five_segments(tmp_path / "t-0", retention_ms=1_000)

    expire(log, NOW_MS + 5_000)
    log.flush()
    log.delete_old_segments(NOW_MS + 5_000)

    assert (log.start_offset, log.end_offset, bases(log)) == (10, 10, [10])
    assert not expire(log, NOW_MS + 9_000), "an empty segment is not replaced by another"
    append(log)
    assert spans(content(log)) == [(10, 10)]


@pytest.mark.parametrize(
    ("kept", "start"), [(10, 0), (9, 0), (8, 2), (5, 4), (2, 8), (1, 8), (0, 10)]
)
def test_segments_go_while_the_rest_is_large_enough(tmp_path: Path, kept: int, start: int) -> None:
    log = five_segments(tmp_path / "t-0", retention_bytes=kept * SIZE)

    expire(log, NOW_MS)

    assert log.start_offset == start


def test_nothing_at_or_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = five_segments(tmp_path / "t-0", retention_bytes=0)

    expire(log, NOW_MS, high_watermark=5)

    assert log.start_offset == 4


def test_a_compacted_topic_keeps_its_old_segments(tmp_path: Path) -> None:
    log = five_segments(tmp_path / "t-0", retention_ms=0, is_deleted=False)

    assert not expire(log, NOW_MS + 99_999)


def test_records_without_timestamps_have_no_age(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", replace(CONFIG, retention_ms=0))
    for _ in range(6):
        append(log, batch(timestamp=-1))

    assert not expire(log, NOW_MS)


def test_the_log_start_takes_whole_segments_below_it(tmp_path: Path) -> None:
    log = five_segments(tmp_path / "t-0")

    assert log.advance_log_start(5)
    assert not log.advance_log_start(3), "it never goes back"

    assert log.delete_old_segments(NOW_MS) == 2
    assert (log.start_offset, bases(log)) == (5, [4, 6, 8])


def test_a_segment_stays_until_what_follows_it_is_flushed(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", CONFIG)
    for _ in range(6):
        append(log)
    log.advance_log_start(6)

    assert log.delete_old_segments(NOW_MS) == 0
    log.flush()
    assert log.delete_old_segments(NOW_MS) == 2


def test_deleted_files_are_renamed_at_once_and_unlinked_after_their_delay(tmp_path: Path) -> None:
    log = five_segments(tmp_path / "t-0")
    log.advance_log_start(4)

    log.delete_old_segments(NOW_MS)

    assert files_of(log, ".log") == ["4.log", "6.log", "8.log"]
    assert files_of(log, ".log.deleted") == [".log.deleted", "2.log.deleted"]
    assert log.delete_pending(NOW_MS + 59_999) == 2
    assert log.delete_pending(NOW_MS + 60_000) == 0
    assert files_of(log, ".deleted") == []
    assert files_of(log, ".snapshot") == ["4.snapshot", "6.snapshot", "8.snapshot"]


def test_a_reader_keeps_what_it_reads_beyond_every_delay(tmp_path: Path) -> None:
    log = five_segments(tmp_path / "t-0")
    found = log.read(2, max_bytes=10_000)
    log.advance_log_start(10)

    log.delete_old_segments(NOW_MS)

    assert log.delete_pending(NOW_MS + 999_999) == 1
    assert spans(found.read(log.handles.files)) == [(2, 2), (3, 3)]
    found.release()
    assert log.delete_pending(NOW_MS + 999_999) == 0


def test_ages_of_segments_from_an_earlier_run_are_read_from_their_index(tmp_path: Path) -> None:
    five_segments(tmp_path / "t-0").close()

    log = open_log(tmp_path / "t-0", replace(CONFIG, retention_ms=4_001), is_clean=True)
    expire(log, NOW_MS)

    assert log.start_offset == 4
