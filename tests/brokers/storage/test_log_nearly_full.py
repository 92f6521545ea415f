"""A disk with little room left: clients' records stop first, those of coordinators later."""

from dataclasses import replace
from pathlib import Path

import pytest

from brokers.disk_room import MIB, Room
from brokers.protocol.errors import ErrorCode
from brokers.storage.errors import DiskNearlyFull
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.room_ahead import FIRST_BYTES, bound
from tests.builders.logs import NOW_MS, append, batch, content, expire, open_log, spans
from tests.fakes.faulty_files import FaultyFiles

DISK = Room(device=1, size_bytes=300 * MIB, used_bytes=0, free_bytes=0)


def free(files: FaultyFiles, log: PartitionLog, free_bytes: int) -> None:
    """Let the disk have so much room, and the housekeeping measure it."""
    files.disk_room = replace(DISK, free_bytes=free_bytes)
    log.handles.measure(log.folder)


def grow(log: PartitionLog) -> None:
    """Append until the log is longer than what needs no reserved room."""
    while log.size_bytes <= FIRST_BYTES:
        append(log, batch(size=200_000))


def test_records_of_clients_are_refused_below_their_floor_and_taken_above_it(
    tmp_path: Path,
) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", files=files)
    append(log)
    free(files, log, DISK.records_floor - 1)

    with pytest.raises(DiskNearlyFull, match=f"{DISK.records_floor - 1} bytes are free") as caught:
        append(log)

    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert caught.value.code.retriable
    assert spans(content(log)) == [(0, 0)]
    free(files, log, DISK.records_floor)
    append(log)
    assert log.end_offset == 2


def test_coordinators_append_down_to_their_own_limit(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", LogConfig(is_internal=True), files=files)
    append(log)
    free(files, log, DISK.internal_floor)
    append(log)
    free(files, log, DISK.internal_floor - 1)

    with pytest.raises(DiskNearlyFull):
        append(log)

    assert log.end_offset == 2


def test_a_log_that_grows_fast_measures_the_disk_itself(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", files=files)
    append(log)
    files.disk_room = replace(DISK, free_bytes=0)

    with pytest.raises(DiskNearlyFull):
        grow(log)

    assert log.size_bytes <= FIRST_BYTES


def test_reserved_room_leaves_the_floor_free(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.disk_room = replace(DISK, free_bytes=DISK.records_floor + 100_000)
    log = open_log(tmp_path / "t-0", files=files)

    grow(log)

    assert bound(log.segments.active.file) <= log.size_bytes + 100_000


def test_retention_runs_while_records_are_refused(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path / "t-0", LogConfig(retention_ms=1_000), files=files)
    append(log)
    log.flush()
    free(files, log, 0)

    assert expire(log, NOW_MS + 10_000, high_watermark=1)

    log.flush()
    assert log.delete_old_segments(NOW_MS + 10_000) == 1
