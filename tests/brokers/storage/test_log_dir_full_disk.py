"""A log dir whose disk is full: what still goes, what waits, and that nothing is left half-way."""

import errno
from pathlib import Path

import pytest

from brokers.storage.errors import OutOfSpace
from brokers.storage.log_config import LogConfig
from tests.brokers.storage.test_log_dir import (
    ID,
    SIZE,
    checkpoint,
    ended,
    ends,
    loaded,
    opened,
    saved_anywhere,
)
from tests.builders.logs import NOW_MS, append, batch, fill
from tests.fakes.faulty_files import Fault, FaultyFiles


def deleted(path: Path) -> set[str]:
    """The logs that are out of service and not yet unlinked."""
    return {file.name for file in path.glob("*.log.deleted")}


def test_a_log_without_room_to_roll_does_not_keep_others_from_retention(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files, LogConfig(segment_bytes=2 * SIZE, retention_ms=1_000))
    for index, batches in enumerate([1, 5]):
        fill(log_dir.create("orders", index, ID), batches)
        log_dir.logs["orders", index].flush()
    append(log_dir.logs["orders", 1], batch(timestamp=NOW_MS + 10_000))
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"open"})))

    with pytest.raises(OutOfSpace, match="orders-0"):
        log_dir.delete_old_segments(NOW_MS + 10_000, {("orders", 0): 1, ("orders", 1): 6})

    assert [segment.base_offset for segment in log_dir.logs["orders", 1].segments] == [4]
    assert checkpoint(tmp_path, "log-start-offset-checkpoint") == ["orders 1 4"]


def test_a_log_without_room_to_roll_still_gives_up_its_older_segments(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files, LogConfig(segment_bytes=2 * SIZE, retention_ms=1_000))
    log = log_dir.create("orders", 0, ID)
    fill(log, 5)
    log.flush()
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"open"})))

    assert log_dir.delete_old_segments(NOW_MS + 10_000, {("orders", 0): 5}) == 2

    assert log_dir.delete_old_segments(NOW_MS + 10_000, {("orders", 0): 5}) == 0
    log.flush()
    assert log_dir.delete_old_segments(NOW_MS + 10_000, {("orders", 0): 5}) == 1
    assert (log.start_offset, log.end_offset) == (5, 5)


def test_a_full_disk_gets_the_room_of_deleted_files_for_the_checkpoint(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files)
    log = log_dir.create("orders", 0, ID)
    fill(log, 6)
    log.flush()
    assert log_dir.delete_old_segments(NOW_MS, {("orders", 0): 6}) == 1
    fill(log, 2)
    log.flush()
    assert deleted(tmp_path / "orders-0"), "nobody is in a hurry to unlink them"
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"open"})))

    assert log_dir.delete_old_segments(NOW_MS, {("orders", 0): 8}) == 1

    assert checkpoint(tmp_path, "log-start-offset-checkpoint") == ["orders 0 4"]
    assert deleted(tmp_path / "orders-0") == {f"{2:020}.log.deleted"}


def test_nothing_is_deleted_whose_new_start_could_not_be_saved(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files)
    log = log_dir.create("orders", 0, ID)
    fill(log, 8)
    log.flush()
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"open", "write"}), is_lasting=True))

    with pytest.raises(OutOfSpace):
        log_dir.delete_old_segments(NOW_MS, {("orders", 0): 8})

    assert deleted(tmp_path / "orders-0") == set()
    files.heal()
    assert log_dir.delete_old_segments(NOW_MS, {("orders", 0): 8}) == 2


def test_a_full_disk_keeps_no_partition_from_being_removed(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files)
    log = log_dir.create("orders", 0, ID)
    fill(log, 5)
    log.flush()
    log_dir.write_checkpoints()
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"open"}), is_lasting=True))

    log_dir.remove("orders", 0)
    assert log_dir.purge() == 0
    with pytest.raises(OutOfSpace):
        log_dir.create("orders", 0, ID)

    assert not (tmp_path / "orders-0").exists(), "its old self is still in the checkpoint"
    ended(log_dir)
    again = loaded(tmp_path)
    fill(again.create("orders", 0, ID), 2)
    assert saved_anywhere(tmp_path, "orders 0") == []


def test_a_creation_that_a_full_disk_stopped_can_be_tried_again(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files)
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"open"})))
    with pytest.raises(OutOfSpace):
        log_dir.create("orders", 0, bytes(reversed(ID)))

    append(log_dir.create("orders", 0, ID))

    assert log_dir.close(broker_epoch=1)
    again = loaded(tmp_path)
    assert (ends(again), again.topic_ids["orders", 0]) == ({0: 1}, ID)
