"""Folders of new partitions: what is on the disk when they are made, and what a refusal leaves."""

import errno
import random
from pathlib import Path

import pytest

from brokers.storage.errors import OutOfSpace
from brokers.storage.new_folders import NewFolder, make_folders
from tests.fakes.crash_files import CrashDisk
from tests.fakes.faulty_files import SYNCS, Fault, FaultyFiles
from tests.scale import count

NOTE = "partition.metadata"
SEEDS = count(20, 40, long=600)


def wanted(parent: Path, number: int) -> list[NewFolder]:
    return [NewFolder(str(parent / f"t-{index}"), b"note %d" % index) for index in range(number)]


def made(parent: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(parent.glob(f"t-*/{NOTE}"))}


def test_every_folder_has_its_note(tmp_path: Path) -> None:
    files = FaultyFiles()

    make_folders(files, str(tmp_path), wanted(tmp_path, 3))

    assert made(tmp_path) == {"t-0": b"note 0", "t-1": b"note 1", "t-2": b"note 2"}
    assert sorted(path.name for path in tmp_path.rglob("*.tmp")) == []


def test_the_disk_is_asked_twice_for_each_folder_and_once_for_all(tmp_path: Path) -> None:
    files = FaultyFiles()

    make_folders(files, str(tmp_path), wanted(tmp_path, 3))

    synced = [call.path for call in files.calls if call.kind in SYNCS]
    folders = [str(tmp_path / f"t-{index}") for index in range(3)]
    assert synced == [*(f"{path}/{NOTE}.tmp" for path in folders), *folders, str(tmp_path)]


@pytest.mark.parametrize("at", range(12))
def test_creation_stopped_by_a_full_disk_can_be_repeated(tmp_path: Path, at: int) -> None:
    kinds = frozenset({"make_folder", "open", "write", "rename"})
    files = FaultyFiles(Fault(at=at, error=errno.ENOSPC, kinds=kinds))

    with pytest.raises(OutOfSpace, match="create"):
        make_folders(files, str(tmp_path), wanted(tmp_path, 3))
    make_folders(files, str(tmp_path), wanted(tmp_path, 3))

    assert made(tmp_path) == {"t-0": b"note 0", "t-1": b"note 1", "t-2": b"note 2"}


def test_failed_sync_does_not_count_as_a_full_disk(tmp_path: Path) -> None:
    files = FaultyFiles(Fault(at=1, error=errno.ENOSPC, kinds=frozenset({"datasync"})))

    with pytest.raises(OSError, match=r"\[Errno 28\]"):
        make_folders(files, str(tmp_path), wanted(tmp_path, 3))


def test_no_power_cut_takes_a_folder_that_was_made(tmp_path: Path) -> None:
    for seed in range(SEEDS):
        disk = CrashDisk(tmp_path / str(seed))
        with disk.files() as files:
            make_folders(files, str(disk.live), wanted(disk.live, 3))

        disk.lose_power(random.Random(seed))

        assert made(disk.live) == {"t-0": b"note 0", "t-1": b"note 1", "t-2": b"note 2"}
