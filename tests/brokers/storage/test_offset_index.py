"""Kafka's sparse index of offsets: the same file, found by bisect."""

import errno
import struct
from pathlib import Path

import pytest

from brokers.storage.files import LocalFiles
from brokers.storage.memory_budget import MemoryBudget
from brokers.storage.offset_index import OffsetIndex
from tests.fakes.faulty_files import Fault, FaultyFiles

BASE = 1_000
PLENTY = 1 << 20


def index(
    folder: Path, entries: list[tuple[int, int]] | None = None, budget: int = PLENTY
) -> OffsetIndex:
    """A new index with some (offset, position) written, or one over the file that is there."""
    made = OffsetIndex(LocalFiles(), MemoryBudget(budget), str(folder / "1000.log"), BASE)
    if entries is not None:
        made.file.clear()
        made.extend(*zip(*entries, strict=True))
        made.file.write_pending()
    return made


def test_the_file_is_laid_out_as_kafka_lays_it_out(tmp_path: Path) -> None:
    index(tmp_path, [(1_009, 4_200), (1_023, 9_000)])

    assert (tmp_path / "1000.index").read_bytes() == struct.pack(">iiii", 9, 4_200, 23, 9_000)


@pytest.mark.parametrize(
    ("offset", "found"),
    [
        (1_000, (1_000, 0)),
        (1_008, (1_000, 0)),
        (1_009, (1_009, 4_200)),
        (1_022, (1_009, 4_200)),
        (1_023, (1_023, 9_000)),
        (9_999, (1_023, 9_000)),
    ],
)
@pytest.mark.parametrize("where", ["memory", "file", "both"])
def test_a_lookup_finds_the_greatest_entry_at_or_below(
    tmp_path: Path, where: str, offset: int, found: tuple[int, int]
) -> None:
    searched = index(tmp_path, [(1_009, 4_200), (1_023, 9_000)])
    if where == "memory":
        searched.file.clear()
        searched.extend((1_009, 1_023), (4_200, 9_000))
    elif where == "both":
        searched = index(tmp_path, [(1_009, 4_200)])
        searched.extend((1_023,), (9_000,))
    else:
        searched = index(tmp_path)

    assert searched.lookup(offset) == found


@pytest.mark.parametrize(
    ("position", "found"),
    [(0, (1_000, 0)), (4_199, (1_000, 0)), (4_200, (1_009, 4_200)), (9_001, (1_023, 9_000))],
)
def test_a_lookup_by_position_finds_a_batch_boundary(
    tmp_path: Path, position: int, found: tuple[int, int]
) -> None:
    searched = index(tmp_path, [(1_009, 4_200)])
    searched.extend((1_023,), (9_000,))

    assert searched.lookup_position(position) == found


def test_an_empty_index_answers_the_beginning(tmp_path: Path) -> None:
    assert index(tmp_path).lookup(5_000) == (BASE, 0)
    assert index(tmp_path).last == (BASE, 0)
    assert index(tmp_path).file.entries == 0


def test_entries_are_appended_behind_those_of_an_earlier_run(tmp_path: Path) -> None:
    index(tmp_path, [(1_009, 4_200)])
    # As Kafka leaves a file that was active when the broker died.
    with (tmp_path / "1000.index").open("ab") as file:
        file.write(bytes(800))

    again = index(tmp_path)
    assert again.last == (1_009, 4_200)
    again.extend((1_023,), (9_000,))
    again.file.write_pending()

    assert (tmp_path / "1000.index").read_bytes() == struct.pack(">iiii", 9, 4_200, 23, 9_000)
    assert again.file.entries == 2


def test_a_table_that_was_dropped_is_read_again(tmp_path: Path) -> None:
    searched = index(tmp_path, [(1_009, 4_200), (1_023, 9_000)])
    assert searched.lookup(1_010) == (1_009, 4_200)

    searched.file.unload()

    assert searched.lookup(1_010) == (1_009, 4_200)


def test_the_tables_of_all_indexes_share_a_budget(tmp_path: Path) -> None:
    budget = MemoryBudget(24)
    index(tmp_path, [(1_009, 4_200), (1_023, 9_000)])
    first, second = (
        OffsetIndex(LocalFiles(), budget, str(tmp_path / "1000.log"), BASE) for _ in range(2)
    )

    first.lookup(1_010)
    second.lookup(1_010)

    assert budget.held_bytes == 16


@pytest.mark.parametrize(
    ("offset", "position", "left"), [(1_023, 9_999, 1), (1_024, 9_999, 2), (9_999, 9_000, 1)]
)
@pytest.mark.parametrize("is_written", [True, False])
def test_a_cut_forgets_what_does_not_end_below(
    tmp_path: Path, offset: int, position: int, left: int, is_written: bool
) -> None:
    cut = index(tmp_path, [(1_009, 4_200)])
    cut.extend((1_023,), (9_000,))
    if is_written:
        cut.file.write_pending()

    cut.cut(offset, position)
    cut.file.write_pending()

    assert cut.file.entries == left
    assert (tmp_path / "1000.index").stat().st_size == left * 8


def test_entries_that_could_not_be_written_wait_and_are_found(tmp_path: Path) -> None:
    files = FaultyFiles(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"pwrite"}), is_torn=True))
    full = OffsetIndex(files, MemoryBudget(PLENTY), str(tmp_path / "1000.log"), BASE)
    full.extend((1_009, 1_023), (4_200, 9_000))

    with pytest.raises(OSError, match="space"):
        full.file.write_pending()
    assert full.lookup(1_010) == (1_009, 4_200)

    files.heal()
    full.file.write_pending()
    assert index(tmp_path).last == (1_023, 9_000)
