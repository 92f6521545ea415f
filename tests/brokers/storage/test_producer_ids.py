"""The highest producer id of a log dir: never below what its logs hold, or have ever held."""

import errno
import random
import shutil
from pathlib import Path

import pytest

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log_config import DAY_MS, LogConfig
from brokers.storage.log_dir import LogDir
from brokers.storage.names import PRODUCER_IDS
from brokers.storage.producer_ids import (
    MAX_BELIEVED,
    SeenProducerIds,
    read_highest,
    write_highest,
)
from tests.builders.logs import NOW_MS, append, batch
from tests.fakes.crash_files import CrashDisk
from tests.fakes.faulty_files import Fault, FaultyFiles, UnsyncedFiles

TOPIC_ID = bytes(range(16))
DAYS_LATER_MS = NOW_MS + 8 * DAY_MS


def opened(path: Path, files: Files | None = None) -> LogDir:
    files = files or UnsyncedFiles()
    path.mkdir(exist_ok=True)
    log_dir = LogDir(
        str(path),
        files=files,
        handles=Handles(files, max_open=64),
        config_for=lambda _topic: LogConfig(),
    )
    log_dir.load_all()
    return log_dir


def highest(log_dir: LogDir) -> int:
    return log_dir.handles.producer_ids.highest


def killed(log_dir: LogDir) -> None:
    """Let go of the lock, as the end of a process does, and do nothing else."""
    log_dir._files.close(log_dir._lock)  # noqa: SLF001


def with_producer(path: Path, *producer_ids: int) -> LogDir:
    log_dir = opened(path)
    log = log_dir.create("orders", 0, TOPIC_ID)
    for producer_id in producer_ids:
        append(log, batch(producer=producer_id))
    return log_dir


def test_a_new_log_dir_has_seen_no_producer(tmp_path: Path) -> None:
    log_dir = opened(tmp_path)

    assert highest(log_dir) == -1
    log_dir.save_producer_ids()
    assert not (tmp_path / PRODUCER_IDS).exists()


def test_the_highest_id_is_that_of_all_logs(tmp_path: Path) -> None:
    log_dir = with_producer(tmp_path, 7, 5_000, 9)
    append(log_dir.create("orders", 1, TOPIC_ID), batch(producer=6_000))

    assert highest(log_dir) == 6_000


def test_a_restart_after_a_crash_finds_the_id_in_the_log(tmp_path: Path) -> None:
    killed(with_producer(tmp_path, 5_000))

    assert highest(opened(tmp_path)) == 5_000


def test_a_restart_after_a_clean_end_finds_the_id_without_replaying_the_log(tmp_path: Path) -> None:
    assert with_producer(tmp_path, 5_000).close(broker_epoch=1)
    (tmp_path / PRODUCER_IDS).unlink()

    assert highest(opened(tmp_path)) == 5_000


def test_an_id_outlives_the_expiry_of_its_producer(tmp_path: Path) -> None:
    log_dir = with_producer(tmp_path, 5_000)
    log = log_dir.logs["orders", 0]

    log_dir.expire_producers(DAYS_LATER_MS)
    assert log_dir.close(broker_epoch=1)

    again = opened(tmp_path)
    assert len(log.producers) == len(again.logs["orders", 0].producers) == 0
    assert highest(again) == 5_000


def test_an_id_outlives_the_deletion_of_its_partition_and_a_crash(tmp_path: Path) -> None:
    log_dir = with_producer(tmp_path, 5_000)

    log_dir.remove("orders", 0)
    log_dir.purge()
    killed(log_dir)

    assert highest(opened(tmp_path)) == 5_000


def test_an_id_outlives_the_truncation_of_its_log(tmp_path: Path) -> None:
    log_dir = with_producer(tmp_path, 5_000)

    log_dir.truncate_to({("orders", 0): 0})
    killed(log_dir)

    assert highest(opened(tmp_path)) == 5_000


def test_a_folder_of_another_cluster_raises_it_when_it_is_opened(tmp_path: Path) -> None:
    assert with_producer(tmp_path / "other", 777_000).close(broker_epoch=1)
    shutil.copytree(tmp_path / "other" / "orders-0", tmp_path / "ours" / "orders-0")

    assert highest(opened(tmp_path / "ours")) == 777_000


def test_producer_id_is_reported_once_per_partition(
    tmp_path: Path,
) -> None:
    log_dir, told = with_producer(tmp_path), list[int]()
    log_dir.handles.producer_ids.on_seen = told.append
    log = log_dir.logs["orders", 0]

    for sequence in range(3):
        append(log, batch(producer=5_000, sequence=sequence))
    append(log, batch(producer=4_000))

    assert told == [5_000, 4_000]


def test_the_file_is_written_when_the_id_has_grown_and_only_then(tmp_path: Path) -> None:
    log_dir = with_producer(tmp_path, 5_000)
    log_dir.save_producer_ids()
    before = (tmp_path / PRODUCER_IDS).stat().st_ino

    append(log_dir.logs["orders", 0], batch(producer=4_000))
    log_dir.write_checkpoints()
    assert (tmp_path / PRODUCER_IDS).stat().st_ino == before

    append(log_dir.logs["orders", 0], batch(producer=5_001))
    log_dir.write_checkpoints()
    assert read_highest(LocalFiles(), str(tmp_path / PRODUCER_IDS)) == 5_001


def test_an_id_that_no_counter_reaches_moves_nothing() -> None:
    seen = SeenProducerIds()

    seen.note_all([3, MAX_BELIEVED + 1, 2**63 - 1])
    assert seen.highest == 3

    # The cluster's own blocks have no such bound.
    seen.reserve(MAX_BELIEVED + 1_000)
    assert seen.highest == MAX_BELIEVED + 1_000


def test_damaged_file_is_reported_and_replaced_by_the_ids_of_logs(tmp_path: Path) -> None:
    killed(with_producer(tmp_path, 5_000))
    write_highest(LocalFiles(), str(tmp_path / PRODUCER_IDS), 9_000)
    damaged = (tmp_path / PRODUCER_IDS).read_bytes().replace(b"9000", b"1000")
    (tmp_path / PRODUCER_IDS).write_bytes(damaged)

    log_dir = opened(tmp_path)

    assert log_dir.lost_producer_ids is not None
    assert PRODUCER_IDS in str(log_dir.lost_producer_ids)
    assert highest(log_dir) == 5_000
    log_dir.save_producer_ids()
    assert read_highest(LocalFiles(), str(tmp_path / PRODUCER_IDS)) == 5_000


@pytest.mark.parametrize(
    "content",
    [b"", b"0\n", b"0\n0\n", b"0\n1\n12\n", b"0\n1\n-1 00000000\n", b"1\n1\n5 00000000\n", b"\xff"],
)
def test_a_file_that_is_not_whole_is_corrupt(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / PRODUCER_IDS
    path.write_bytes(content)

    with pytest.raises(StorageCorrupt):
        read_highest(LocalFiles(), str(path))


def test_the_largest_id_survives_its_file(tmp_path: Path) -> None:
    path = str(tmp_path / PRODUCER_IDS)

    write_highest(LocalFiles(), path, 2**63 - 1)

    assert read_highest(LocalFiles(), path) == 2**63 - 1


def test_a_full_disk_keeps_no_partition_from_being_removed(tmp_path: Path) -> None:
    files = FaultyFiles()
    log_dir = opened(tmp_path, files)
    append(log_dir.create("orders", 0, TOPIC_ID), batch(producer=5_000))
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=frozenset({"write"})))

    log_dir.remove("orders", 0)
    assert files.failed
    assert not (tmp_path / PRODUCER_IDS).exists()

    log_dir.save_producer_ids()
    assert read_highest(LocalFiles(), str(tmp_path / PRODUCER_IDS)) == 5_000


@pytest.mark.parametrize("seed", range(10))
def test_an_id_outlives_the_deletion_of_its_partition_and_a_power_cut(
    tmp_path: Path, seed: int
) -> None:
    disk = CrashDisk(tmp_path)
    with disk.files() as files:
        log_dir = opened(disk.live, files)
        append(log_dir.create("orders", 0, TOPIC_ID), batch(producer=5_000))
        log_dir.remove("orders", 0)
        log_dir.purge()
        killed(log_dir)

    disk.lose_power(random.Random(seed))

    assert highest(opened(disk.live)) == 5_000
