"""Kafka's index of timestamps: the same file, entries only when time has grown."""

import struct
from pathlib import Path

import pytest

from brokers.storage.files import LocalFiles
from brokers.storage.memory_budget import MemoryBudget
from brokers.storage.time_index import TimeIndex

BASE = 1_000


def index(folder: Path, entries: list[tuple[int, int]] | None = None) -> TimeIndex:
    """A new index with some (timestamp, offset) written, or one over the file that is there."""
    made = TimeIndex(LocalFiles(), MemoryBudget(1 << 20), str(folder / "1000.log"), BASE)
    if entries is not None:
        made.file.clear()
        made.extend(*zip(*entries, strict=True))
        made.file.write_pending()
    return made


def test_the_file_is_laid_out_as_kafka_lays_it_out(tmp_path: Path) -> None:
    index(tmp_path, [(1 << 40, 1_009), ((1 << 40) + 7, 1_023)])

    expected = struct.pack(">qiqi", 1 << 40, 9, (1 << 40) + 7, 23)
    assert (tmp_path / "1000.timeindex").read_bytes() == expected


def test_an_entry_is_kept_only_if_time_has_grown(tmp_path: Path) -> None:
    grown = index(tmp_path, [(50, 1_009), (50, 1_010), (40, 1_011), (60, 1_012)])

    grown.extend((60, 61), (1_013, 1_014))

    assert grown.file.entries == 3
    assert grown.last == (61, 1_014)


def test_rule_continues_from_the_file_of_an_earlier_run(tmp_path: Path) -> None:
    index(tmp_path, [(50, 1_009)])

    again = index(tmp_path)
    again.extend((50, 51), (1_010, 1_011))
    again.file.write_pending()

    assert index(tmp_path).file.entries == 2


@pytest.mark.parametrize(
    ("timestamp", "found"),
    [(49, (-1, BASE)), (50, (50, 1_009)), (59, (50, 1_009)), (60, (60, 1_012)), (99, (60, 1_012))],
)
@pytest.mark.parametrize("is_written", [True, False])
def test_a_lookup_finds_the_greatest_entry_at_or_before(
    tmp_path: Path, timestamp: int, found: tuple[int, int], is_written: bool
) -> None:
    searched = index(tmp_path, [(50, 1_009)])
    searched.extend((60,), (1_012,))
    if is_written:
        searched.file.write_pending()
        searched = index(tmp_path)

    assert searched.lookup(timestamp) == found


def test_records_without_timestamps_leave_it_empty(tmp_path: Path) -> None:
    empty = index(tmp_path, [(-1, 1_009), (-1, 1_010)])

    assert empty.file.entries == 0
    assert empty.last == (-1, BASE)


@pytest.mark.parametrize(("offset", "left"), [(1_009, 0), (1_010, 1), (1_012, 1), (1_013, 2)])
@pytest.mark.parametrize("is_written", [True, False])
def test_a_cut_forgets_later_batches_and_lets_time_go_back(
    tmp_path: Path, offset: int, left: int, is_written: bool
) -> None:
    cut = index(tmp_path, [(50, 1_009)])
    cut.extend((60,), (1_012,))
    if is_written:
        cut.file.write_pending()

    cut.cut(offset)
    cut.extend((55,), (1_011,))
    cut.file.write_pending()

    expected = left + 1 if left < 2 else 2
    assert cut.file.entries == expected
    assert (tmp_path / "1000.timeindex").stat().st_size == expected * 12
