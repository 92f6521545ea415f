"""What a process takes of its machine."""

import shutil
from pathlib import Path

from brokers.server.footprint import disk_bytes, memory_bytes


def test_the_memory_of_this_process_is_told() -> None:
    told = memory_bytes()

    assert told is not None
    assert 5_000_000 < told < 50_000_000_000


def test_the_disk_is_told_as_others_see_it_and_a_missing_one_is_not(tmp_path: Path) -> None:
    told = disk_bytes(str(tmp_path))

    assert told is not None
    assert told[0] == shutil.disk_usage(tmp_path).total
    assert 0 <= told[1] <= told[0]
    assert disk_bytes(str(tmp_path / "absent")) is None
