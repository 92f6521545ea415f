"""When a segment is full, by Kafka's rules."""

import errno
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.storage.errors import OutOfSpace
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.segment import MAX_RELATIVE_OFFSET
from tests.builders.logs import NOW_MS, append, batch, files_of, fill, open_log, read, spans
from tests.fakes.faulty_files import Fault, FaultyFiles

SIZE = len(batch())


def bases(folder: Path, config: LogConfig, *batches: memoryview) -> list[int]:
    """The base offsets of the segments after some appends."""
    log = open_log(folder, config)
    for one in batches:
        append(log, one)
    found = [segment.base_offset for segment in log.segments]
    log.close()
    return found


@pytest.mark.parametrize(
    ("segment_bytes", "expected"),
    [(2 * SIZE, [0, 2, 4]), (2 * SIZE - 1, [0, 1, 2, 3, 4]), (5 * SIZE, [0])],
)
def test_a_batch_that_does_not_fit_goes_into_a_new_segment(
    tmp_path: Path, segment_bytes: int, expected: list[int]
) -> None:
    config = LogConfig(segment_bytes=segment_bytes)

    assert bases(tmp_path / "t-0", config, *(batch() for _ in range(5))) == expected


def test_the_records_own_time_rolls_a_segment(tmp_path: Path) -> None:
    config = LogConfig(segment_ms=1_000)
    times = [0, 500, 1_000, 1_001, 1_500, 2_001, 2_002]

    found = bases(tmp_path / "t-0", config, *(batch(timestamp=NOW_MS - 9_000 + t) for t in times))

    assert found == [0, 3, 6]


def test_time_that_goes_back_rolls_nothing(tmp_path: Path) -> None:
    config = LogConfig(segment_ms=1_000)

    assert bases(tmp_path / "t-0", config, batch(), batch(timestamp=NOW_MS - 50_000)) == [0]


def test_without_timestamps_the_time_of_the_first_append_counts(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_ms=1_000))

    for waited in (0, 999, 1_000, 1_001, 1_002):
        log.append(batch(timestamp=-1), leader_epoch=0, now_ms=NOW_MS + waited)

    assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_age_of_a_segment_counts_from_an_earlier_run(tmp_path: Path) -> None:
    config = LogConfig(segment_ms=1_000)
    log = open_log(tmp_path / "t-0", config)
    append(log)
    log.close()

    log = open_log(tmp_path / "t-0", config, is_clean=True)
    append(log, batch(timestamp=NOW_MS + 1_001))

    assert [segment.base_offset for segment in log.segments] == [0, 1]


def test_jitter_makes_segments_roll_earlier_and_each_at_its_own_time() -> None:
    config = LogConfig(segment_ms=1_000, segment_jitter_ms=500)

    waits = {config.roll_after_ms(f"t-{index}", 0) for index in range(50)}

    assert len(waits) > 30
    assert all(500 < wait <= 1_000 for wait in waits)


@pytest.mark.parametrize("index_bytes", [8 * 3, 12 * 4])
def test_a_full_index_rolls_the_segment(tmp_path: Path, index_bytes: int) -> None:
    # The time index keeps one of its entries for the roll: 24 bytes hold one, 48 hold three.
    config = LogConfig(index_interval_bytes=0, segment_index_bytes=index_bytes)
    entries = min(index_bytes // 8, index_bytes // 12 - 1)
    log = open_log(tmp_path / "t-0", config)
    for number in range(20):
        append(log, batch(timestamp=NOW_MS + number))
    log.close()

    # The first batch of a segment makes no entry.
    sizes = [one.base_offset for one in log.segments]
    assert sizes == list(range(0, 20, entries + 1))
    for base in sizes[:-1]:
        path = tmp_path / "t-0" / f"{base:020}.index"
        assert path.stat().st_size == 8 * entries
        assert path.with_suffix(".timeindex").stat().st_size <= index_bytes


def test_an_offset_too_far_from_the_base_goes_into_a_new_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    far = MAX_RELATIVE_OFFSET

    log.append_replicated(batch(epoch=0), now_ms=NOW_MS)
    log.append_replicated(batch(base_offset=far, epoch=0), now_ms=NOW_MS)
    log.append_replicated(batch(base_offset=far + 1, epoch=0), now_ms=NOW_MS)

    assert [segment.base_offset for segment in log.segments] == [0, far + 1]
    log.close()
    assert open_log(tmp_path / "t-0", is_clean=True).end_offset == far + 2


def test_a_new_configuration_holds_from_the_next_batch_on(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0")
    fill(log, 4)

    log.reconfigure(replace(log.config, segment_bytes=2 * SIZE))
    fill(log, 2)

    assert [segment.base_offset for segment in log.segments] == [0, 4]


def test_a_roll_leaves_a_snapshot_and_finished_indexes(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=3 * SIZE, index_interval_bytes=0))

    fill(log, 4)

    assert files_of(log) == [".index", ".log", ".timeindex", "3.log", "3.snapshot"]
    assert (tmp_path / "t-0" / f"{0:020}.index").stat().st_size == 2 * 8


def replicated(log: PartitionLog, *base_offsets: int) -> None:
    """One set of batches, as a leader sends what its compaction left."""
    data = b"".join(batch(base_offset=base, epoch=0) for base in base_offsets)
    log.append_replicated(memoryview(bytearray(data)), now_ms=NOW_MS)


def test_a_log_may_begin_far_behind_its_empty_segment(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(is_compacted=True))

    replicated(log, 3_000_000_000)
    replicated(log, 3_000_000_001)

    assert [segment.base_offset for segment in log.segments] == [3_000_000_000]
    assert spans(read(log, 0)) == [(n, n) for n in (3_000_000_000, 3_000_000_001)]
    log.delete_pending(NOW_MS)
    log.close()
    again = open_log(tmp_path / "t-0", LogConfig(is_compacted=True), is_clean=True)
    assert again.end_offset == 3_000_000_002


def test_batches_far_from_each_other_go_into_segments_of_their_own(tmp_path: Path) -> None:
    config = LogConfig(is_compacted=True, index_interval_bytes=0)
    log = open_log(tmp_path / "t-0", config)
    bases = [0, 5, 6, 3_000_000_000, 3_000_000_001, 9_000_000_000]

    replicated(log, *bases)
    log.write_indexes()

    assert [one.base_offset for one in log.segments] == [0, 3_000_000_000, 9_000_000_000]
    for base in bases:
        assert spans(read(log, base, max_bytes=1)) == [(base, base)]
    assert spans(read(log, 7, max_bytes=1)) == [(3_000_000_000, 3_000_000_000)]
    log.abandon()
    again = open_log(tmp_path / "t-0", config)
    assert (again.end_offset, again.damage) == (9_000_000_001, None)
    assert [one.base_offset for one in again.segments] == [0, 3_000_000_000, 9_000_000_000]


def test_refused_far_batch_leaves_a_log_that_accepts_appends(
    tmp_path: Path,
) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", LogConfig(is_compacted=True), files=files)
    append(log)
    # Behind the time index of the segment that ends.
    files.plan(Fault(at=1, error=errno.ENOSPC, kinds=frozenset({"pwrite"})))

    with pytest.raises(OutOfSpace):
        replicated(log, 3_000_000_000)

    files.heal()
    log.flush()
    assert log.flushed_offset == log.end_offset == 3_000_000_000
    replicated(log, 3_000_000_000)
    assert spans(read(log, 1)) == [(3_000_000_000, 3_000_000_000)]
