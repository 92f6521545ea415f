"""The reserve of a disk: made where there is room, given up when it is full, made again."""

import os
from pathlib import Path

import pytest

from brokers import disk_room
from brokers.disk_room import MIB, RESERVE_FILE, Room
from brokers.supervisor import disks
from brokers.supervisor.disks import Disk, Disks

SIZE = 64 * MIB


class FakeDisk:
    """A disk of 64 MiB for all folders; `other` bytes are not of a reserve."""

    def __init__(self, *folders: Path) -> None:
        self.other = 0
        self._files = [folder / RESERVE_FILE for folder in folders]

    def room_at(self, _place: object) -> Room:
        taken = sum(file.stat().st_size for file in self._files if file.exists())
        used = min(SIZE, self.other + taken)
        return Room(device=1, size_bytes=SIZE, used_bytes=used, free_bytes=SIZE - used)


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeDisk:
    made = FakeDisk(tmp_path)
    for module in (disks, disk_room):
        monkeypatch.setattr(module, "room_at", made.room_at)
    return made


def look(folder: Path) -> Disk:
    (found,) = Disks([folder, folder / "missing"], lambda _event, _disk: None).look()
    return found


def make_way(folder: Path) -> None:
    Disks([folder, folder / "missing"], lambda _event, _disk: None).make_way()


def test_a_reserve_is_really_allocated(tmp_path: Path, disk: FakeDisk) -> None:
    found = look(tmp_path)

    file = (tmp_path / RESERVE_FILE).stat()
    assert found.has_reserve
    assert file.st_size == found.room.reserve_bytes == 4 * MIB
    assert file.st_blocks * 512 >= file.st_size
    assert found.trouble == ""


def test_the_reserve_of_a_full_disk_is_given_up_on_need_and_made_again_with_room(
    tmp_path: Path, disk: FakeDisk
) -> None:
    look(tmp_path)
    make_way(tmp_path)
    assert (tmp_path / RESERVE_FILE).exists(), "there is room"
    disk.other = SIZE - 4 * MIB
    assert look(tmp_path).has_reserve, "nothing needs it yet"

    make_way(tmp_path)

    full = look(tmp_path)
    assert not (tmp_path / RESERVE_FILE).exists()
    assert full.room.free_bytes == 4 * MIB
    assert "disk full: 4 MiB of 64 MiB are free" in full.trouble
    assert "until 12 MiB are" in full.trouble, "the floor for records, and the reserve"
    assert not look(tmp_path).has_reserve, "not in turns"
    disk.other = SIZE - 12 * MIB
    assert look(tmp_path) == Disk(
        folder=tmp_path,
        room=Room(device=1, size_bytes=SIZE, used_bytes=SIZE - 8 * MIB, free_bytes=8 * MIB),
        has_reserve=True,
    )
    assert look(tmp_path).trouble == ""


def test_log_dirs_on_the_disk_of_the_home_share_its_reserve(tmp_path: Path, disk: FakeDisk) -> None:
    (tmp_path / "broker-1").mkdir()

    found = Disks([tmp_path, tmp_path / "broker-1"], lambda _event, _disk: None).look()

    assert [entry.folder for entry in found] == [tmp_path]
    assert not (tmp_path / "broker-1" / RESERVE_FILE).exists()


def test_no_reserve_is_made_where_the_disk_refuses(
    tmp_path: Path, disk: FakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int, _start: int, _length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)

    assert not look(tmp_path).has_reserve
    assert not (tmp_path / RESERVE_FILE).exists()


def test_a_disk_that_takes_no_new_files_is_measured_all_the_same(
    tmp_path: Path, disk: FakeDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", refuse)

    assert not look(tmp_path).has_reserve


def test_changes_are_noted_once(tmp_path: Path, disk: FakeDisk) -> None:
    noted: list[str] = []
    kept = Disks([tmp_path], lambda event, _disk: noted.append(event))

    for other in (0, SIZE - 4 * MIB, SIZE - 4 * MIB, 0):
        disk.other = other
        kept.make_way()
        kept.take(kept.look())

    assert noted == ["disk.full", "reserve.given_up", "disk.has_room", "reserve.made"]
