"""Half-finished work in a folder is finished or undone before anything is opened."""

import os
import tracemalloc
from pathlib import Path

import pytest

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import LocalFiles
from brokers.storage.folder_files import FolderFiles, settle_folder
from tests.builders.logs import batch

FILES = LocalFiles()


def name(offset: int, rest: str) -> str:
    return f"{offset:020}{rest}"


def folder_with(folder: Path, *names: tuple[int, str], **others: bytes) -> Path:
    """A folder with empty files, and some with content."""
    for offset, rest in names:
        (folder / name(offset, rest)).write_bytes(b"")
    for other, content in others.items():
        (folder / other).write_bytes(content)
    return folder


def segment(offset: int) -> list[tuple[int, str]]:
    return [(offset, ".log"), (offset, ".index"), (offset, ".timeindex")]


def left(folder: Path) -> set[str]:
    return {
        path.name[:20].lstrip("0") + path.name[20:] if path.name[:20].isdigit() else path.name
        for path in folder.iterdir()
    }


def settled(folder: Path) -> FolderFiles:
    """Settles twice: the second time there must be nothing to do."""
    first = settle_folder(FILES, str(folder))
    before = left(folder)
    assert settle_folder(FILES, str(folder)) == first
    assert left(folder) == before
    return first


def test_a_folder_in_order_is_left_alone(tmp_path: Path) -> None:
    others = {"leader-epoch-checkpoint": b"0\n0\n", "partition.metadata": b"", "notes.txt": b""}
    folder_with(tmp_path, *segment(0), *segment(50), (50, ".snapshot"), (50, ".txnindex"), **others)
    before = left(tmp_path)

    found = settled(tmp_path)

    assert found.bases == [0, 50]
    assert found.has(50, ".txnindex")
    assert not found.has(0, ".txnindex")
    assert left(tmp_path) == before


def test_files_of_an_unfinished_deletion_or_write_are_removed(tmp_path: Path) -> None:
    deleted = [(0, ".log.deleted"), (0, ".index.deleted"), (0, ".snapshot.deleted")]
    half = {"leader-epoch-checkpoint.tmp": b"0\n"}
    folder_with(tmp_path, *deleted, *segment(50), **half)

    assert settled(tmp_path).bases == [50]
    assert left(tmp_path) == {"50.log", "50.index", "50.timeindex"}


def test_indexes_without_a_log_are_removed_and_snapshots_are_not(tmp_path: Path) -> None:
    folder_with(tmp_path, *segment(50), (20, ".index"), (30, ".txnindex"), (99, ".snapshot"))

    settled(tmp_path)

    assert left(tmp_path) == {"50.log", "50.index", "50.timeindex", "99.snapshot"}


def test_files_set_aside_are_kept(tmp_path: Path) -> None:
    folder_with(tmp_path, *segment(50), (20, ".log.damaged"), (50, ".log.2.damaged"))
    before = left(tmp_path)

    assert settled(tmp_path).bases == [50]
    assert left(tmp_path) == before


def test_a_cleaning_that_did_not_end_is_undone(tmp_path: Path) -> None:
    folder_with(tmp_path, *segment(0), *segment(50), (0, ".log.cleaned"), (0, ".index.cleaned"))

    assert settled(tmp_path).bases == [0, 50]
    assert left(tmp_path) == {f"{o}{s}" for o in ("", 50) for s in (".log", ".index", ".timeindex")}


def test_a_swap_at_or_behind_an_unfinished_cleaning_is_undone(tmp_path: Path) -> None:
    folder_with(tmp_path, *segment(0), *segment(50), (0, ".log.cleaned"), (50, ".log.swap"))

    assert settled(tmp_path).bases == [0, 50]
    assert not any(".swap" in one for one in left(tmp_path))


def swap_file(folder: Path, offset: int, last_offset: int) -> None:
    data = batch(base_offset=last_offset, epoch=0)
    (folder / name(offset, ".log.swap")).write_bytes(data)


def test_a_complete_swap_takes_the_place_of_all_it_was_made_from(tmp_path: Path) -> None:
    for base in (0, 50, 80, 120):
        folder_with(tmp_path, *segment(base))
    folder_with(tmp_path, (50, ".index.swap"), (50, ".timeindex.swap"))
    swap_file(tmp_path, 50, last_offset=119)

    found = settled(tmp_path)

    assert found.bases == [0, 50, 120]
    assert (tmp_path / name(50, ".log")).stat().st_size > 0
    assert found.has(50, ".index")


def test_a_swap_that_was_half_renamed_is_finished(tmp_path: Path) -> None:
    folder_with(tmp_path, *segment(0), (50, ".index"), (50, ".timeindex.swap"))
    swap_file(tmp_path, 50, last_offset=70)

    assert settled(tmp_path).bases == [0, 50]
    assert not any(".swap" in one for one in left(tmp_path))


def test_a_swap_that_is_damaged_replaces_nothing(tmp_path: Path) -> None:
    folder_with(tmp_path, *segment(0), *segment(50))
    (tmp_path / name(50, ".log.swap")).write_bytes(os.urandom(200))
    before = left(tmp_path)

    with pytest.raises(StorageCorrupt):
        settle_folder(FILES, str(tmp_path))

    assert left(tmp_path) == before


def test_an_empty_folder_has_no_segments(tmp_path: Path) -> None:
    assert settled(tmp_path).bases == []


def test_a_group_whose_log_is_not_renamed_goes_and_earlier_groups_stay(tmp_path: Path) -> None:
    folder_with(tmp_path, *segment(0), *segment(50), (50, ".log.cleaned"), (50, ".index.swap"))
    folder_with(tmp_path, (90, ".log.cleaned"), (90, ".index.cleaned"))

    assert settled(tmp_path).bases == [0, 50]
    assert left(tmp_path) == {f"{o}{s}" for o in ("", 50) for s in (".log", ".index", ".timeindex")}


def test_a_swap_some_of_whose_old_files_are_deleted_is_finished(tmp_path: Path) -> None:
    folder_with(tmp_path, *segment(0), (50, ".log.deleted"), (50, ".index"), *segment(80))
    folder_with(tmp_path, (50, ".index.swap"), (50, ".timeindex.swap"), *segment(120))
    folder_with(tmp_path, (120, ".log.cleaned"))
    swap_file(tmp_path, 50, last_offset=119)

    found = settled(tmp_path)

    assert found.bases == [0, 50, 120]
    assert found.has(50, ".timeindex")
    assert not any("deleted" in one or "cleaned" in one for one in left(tmp_path))


def test_a_swap_in_place_stays_when_later_groups_are_dropped(tmp_path: Path) -> None:
    folder_with(tmp_path, *segment(50), *segment(120), (120, ".log.cleaned"))

    assert settled(tmp_path).bases == [50, 120]
    assert not any("cleaned" in one for one in left(tmp_path))


def test_a_long_swap_is_settled_without_its_headers_in_memory(tmp_path: Path) -> None:
    count = 4_000
    log = b"".join(bytes(batch(base_offset=offset)) for offset in range(count))
    folder_with(tmp_path, *segment(0), *segment(count - 1), **{name(0, ".log.swap"): log})
    tracemalloc.start()
    try:
        settle_folder(FILES, str(tmp_path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert left(tmp_path) == {".log"}, "all old files are replaced"
    # A header takes more than a hundred bytes; beside the last one there is a block of the file.
    assert peak < 60 * count
