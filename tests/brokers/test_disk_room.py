"""How much room a disk has, and for whom."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.disk_room import MIB, Room, room_at

DISK = Room(device=1, size_bytes=100 * 1024 * MIB, used_bytes=0, free_bytes=0)


def test_room_is_what_df_shows(tmp_path: Path) -> None:
    room, known = room_at(tmp_path), shutil.disk_usage(tmp_path)

    assert room.size_bytes == known.total
    assert room.used_bytes == pytest.approx(known.used, abs=64 * MIB)
    assert room.free_bytes == pytest.approx(known.free, abs=64 * MIB)
    assert room.device == tmp_path.stat().st_dev


def test_the_share_in_use_leaves_out_what_is_kept_for_the_administrator() -> None:
    half = replace(DISK, used_bytes=30 * MIB, free_bytes=30 * MIB)

    assert half.used_share == 0.5
    assert replace(DISK, used_bytes=0, free_bytes=0).used_share == 1.0


@pytest.mark.parametrize("size", [1, 5, 64, 300, 512, 100_000])
def test_floors_fit_into_one_another_on_a_disk_of_any_size(size: int) -> None:
    disk = replace(DISK, size_bytes=size * MIB)

    assert disk.give_up_floor < disk.internal_floor < disk.reserve_bytes < disk.records_floor
    assert disk.reserve_bytes + disk.internal_floor <= disk.records_floor
    assert disk.records_floor <= disk.size_bytes / 8
    assert disk.records_floor <= 64 * MIB
