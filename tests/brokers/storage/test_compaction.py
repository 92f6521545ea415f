"""When a log is due for cleaning, and how much of it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brokers.storage import compaction
from brokers.storage.compaction import Cleaning
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.segment import Segment
from tests.builders.cleaning import compacted, compacted_log, fill_keys
from tests.builders.logs import NOW_MS, open_log

HOUR = 3_600_000
START = NOW_MS - 100 * HOUR


def filled(folder: Path, **config: Any) -> PartitionLog:
    """Ten segments of two records each, and an active one."""
    log = compacted_log(folder, compacted(segment_bytes=300, **config))
    for number in range(21):
        fill_keys(log, [(b"key", b"v" * 50)], timestamp=START + number * HOUR)
    assert len(log.segments) == 11
    return log


def asked(log: PartitionLog, **how: Any) -> Cleaning | None:
    given = {"first_dirty": 0, "high_watermark": log.end_offset, "now_ms": NOW_MS}
    return log.cleaning(**{**given, **how})


def test_all_but_the_active_segment_is_cleaned(tmp_path: Path) -> None:
    found = asked(filled(tmp_path))

    assert found is not None
    assert [segment.base_offset for segment in found.segments] == list(range(0, 20, 2))
    assert (found.first_dirty, found.end, found.dirty_ratio) == (0, 20, 1.0)


@pytest.mark.parametrize(("high_watermark", "end"), [(20, 20), (19, 18), (5, 4)])
def test_nothing_is_cleaned_that_is_not_committed(
    tmp_path: Path, high_watermark: int, end: int
) -> None:
    found = asked(filled(tmp_path), high_watermark=high_watermark)

    assert found is not None
    assert found.end == end


def test_a_log_whose_first_segment_is_not_committed_waits(tmp_path: Path) -> None:
    assert asked(filled(tmp_path), high_watermark=1) is None


@pytest.mark.parametrize(
    ("first_dirty", "is_due"), [(0, True), (10, True), (12, False), (20, False)]
)
def test_a_log_is_due_when_enough_of_it_is_dirty(
    tmp_path: Path, first_dirty: int, is_due: bool
) -> None:
    log = filled(tmp_path)
    log.reconfigure(LogConfig(is_compacted=True, is_deleted=False, min_cleanable_ratio=0.5))

    assert (asked(log, first_dirty=first_dirty) is not None) == is_due


def test_records_younger_than_the_lag_are_left(tmp_path: Path) -> None:
    found = asked(filled(tmp_path, min_compaction_lag_ms=HOUR), now_ms=START + 8 * HOUR)

    assert found is not None
    assert found.end == 8


def test_a_record_that_has_waited_too_long_makes_a_log_due(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.reconfigure(
        LogConfig(
            is_compacted=True,
            is_deleted=False,
            min_cleanable_ratio=1.0,
            max_compaction_lag_ms=10 * HOUR,
        )
    )

    # The oldest dirty record is that of hour 18.
    assert asked(log, first_dirty=18, now_ms=START + 28 * HOUR) is None
    assert asked(log, first_dirty=18, now_ms=START + 29 * HOUR) is not None


def test_a_tombstone_whose_time_is_over_makes_a_log_due(tmp_path: Path) -> None:
    log = filled(tmp_path)

    assert asked(log, first_dirty=20) is None
    assert asked(log, first_dirty=20, now_ms=5, next_horizon_ms=6) is None
    assert asked(log, first_dirty=20, now_ms=6, next_horizon_ms=6) is not None


@pytest.mark.parametrize("first_dirty", [-1, 1, 500])
def test_checkpoint_outside_the_log_is_ignored(tmp_path: Path, first_dirty: int) -> None:
    log = filled(tmp_path)
    log.advance_log_start(3)

    found = asked(log, first_dirty=first_dirty)

    assert found is not None
    assert (found.first_dirty, found.segments[0].base_offset) == (3, 2)


@pytest.mark.parametrize("config", [LogConfig(), LogConfig(is_compacted=True)])
def test_a_log_that_is_also_deleted_or_not_compacted_is_left_to_retention(
    tmp_path: Path, config: LogConfig
) -> None:
    log = filled(tmp_path)
    log.reconfigure(config)

    assert asked(log) is None


def test_a_cleaning_takes_in_no_more_new_data_than_a_worker_reads_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = filled(tmp_path)
    monkeypatch.setattr(compaction, "MAX_DIRTY_BYTES", 3 * log.segments[0].size)

    first = asked(log)
    assert first is not None
    assert (first.end, first.dirty_ratio) == (6, 1.0)

    second = asked(log, first_dirty=6)
    assert second is not None
    assert (second.first_dirty, second.end) == (6, 12)
    assert len(second.segments) == 6

    monkeypatch.setattr(compaction, "MAX_DIRTY_BYTES", 1)
    third = asked(log, first_dirty=12)
    assert third is not None
    assert third.end == 14


def test_age_of_cleaned_segments_is_not_read_again(tmp_path: Path) -> None:
    log = filled(tmp_path, min_compaction_lag_ms=1000 * HOUR)

    assert asked(log) is None
    assert asked(log, first_dirty=10, next_horizon_ms=NOW_MS) is not None


@pytest.mark.parametrize(("waited", "is_closed"), [(HOUR, False), (HOUR + 1, True)])
def test_an_active_segment_is_closed_when_its_records_have_waited_too_long(
    tmp_path: Path, waited: int, is_closed: bool
) -> None:
    log = compacted_log(tmp_path, compacted(max_compaction_lag_ms=HOUR))
    assert not log.roll_overdue(NOW_MS)
    fill_keys(log, [(b"key", b"v")], timestamp=START)

    assert log.roll_overdue(START + waited) is is_closed

    assert len(log.segments) == 1 + is_closed
    assert not log.roll_overdue(START + waited)


def test_only_a_log_that_is_compacted_alone_is_closed_for_it(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(is_compacted=True, max_compaction_lag_ms=1))
    fill_keys(log, [(b"key", b"v")], timestamp=START)

    assert not log.roll_overdue(NOW_MS)


def test_how_young_segments_of_an_earlier_run_are_is_read_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"min_compaction_lag_ms": HOUR}
    filled(tmp_path, **config).close()
    log = compacted_log(tmp_path, compacted(segment_bytes=300, **config), is_clean=True)
    read: list[int] = []
    carry_on = Segment._carry_on  # noqa: SLF001

    def counted(segment: Segment, config: LogConfig, *, is_strict: bool) -> int:
        read.append(segment.base_offset)
        return carry_on(segment, config, is_strict=is_strict)

    monkeypatch.setattr(Segment, "_carry_on", counted)

    seen = []
    while log.learn_age(4):
        seen.append(len(read))

    assert seen == list(range(1, 9))
    assert read == list(range(4, 20, 2))
    found = asked(log, first_dirty=4)
    assert found is not None
    assert len(read) == 8


@pytest.mark.parametrize("config", [{}, {"is_compacted": False}], ids=["no-lag", "not-compacted"])
def test_nothing_is_read_of_segments_whose_age_does_not_count(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    filled(tmp_path).close()
    lag = {"min_compaction_lag_ms": HOUR} if config else {}
    plain = replace(compacted(segment_bytes=300, **lag), **config)
    log = open_log(tmp_path, plain, is_clean=True)

    assert not log.learn_age(0)
