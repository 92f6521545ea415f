"""A clean end, and the power goes right behind it: the mark promised nothing that is not there."""

import random
from pathlib import Path

import pytest

from brokers.protocol.records.batch import Batch
from brokers.storage.files import Files
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.log_dir import LogDir
from brokers.storage.producer_snapshots import ProducerSnapshots
from brokers.storage.producer_state import ProducerStates
from tests.builders.logs import NOW_MS, at_greatest_time, at_time, batch
from tests.fakes.crash_files import CrashDisk
from tests.scale import count

ID = bytes(range(16))
CONFIG = LogConfig(index_interval_bytes=300, retention_ms=-1)
BATCHES = 12
SEEDS = count(25, 50, long=1_000)
# Values small enough for what is read again quickly, and too large for it.
SMALL, LARGE = 100, 100_000


def opened(path: Path, files: Files) -> LogDir:
    log_dir = LogDir(
        str(path), files=files, handles=Handles(files, max_open=16), config_for=lambda _: CONFIG
    )
    log_dir.load_all()
    return log_dir


def append(log: PartitionLog, number: int, size: int, producer: int) -> None:
    records = batch(size=size, timestamp=NOW_MS + 10 * number, producer=producer, sequence=number)
    log.append(records, leader_epoch=3, now_ms=NOW_MS)


def check(log: PartitionLog, producer: int) -> None:
    """Everything is there, and found in each of the ways that lead to it."""
    assert (log.damage, log.start_offset, log.end_offset) == (None, 0, BATCHES)
    for offset in range(BATCHES):
        piece = log.read(offset, max_bytes=1)
        assert piece.length > 0
        piece.release()
        found = at_time(log, NOW_MS + 10 * offset - 5)
        assert found is not None
        assert found.offset == offset
    latest = at_greatest_time(log)
    assert latest is not None
    assert latest.offset == BATCHES - 1
    assert log.epochs.entries() == [(3, 0)]
    assert [info.producer_id for info in log.producers.active()] == [producer] * (producer >= 0)


@pytest.mark.slow
@pytest.mark.parametrize("producer", [-1, 7])
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_power_cut_behind_a_clean_end_costs_nothing(
    tmp_path: Path, size: int, producer: int
) -> None:
    for seed in range(SEEDS if size == SMALL else SEEDS // 5):
        rng = random.Random(seed)
        disk = CrashDisk(tmp_path / str(seed))
        with disk.files() as files:
            log_dir = opened(disk.live, files)
            for index in range(3):
                log_dir.create("orders", index, ID)
            for number in range(BATCHES):
                for index in (0, 1):
                    append(log_dir.logs["orders", index], number, size, producer)
                    if rng.random() < 0.5:
                        log_dir.logs["orders", index].flush()
            assert log_dir.close(broker_epoch=5)

        disk.lose_power(rng)

        with disk.files() as files:
            again = opened(disk.live, files)
            assert again.clean_broker_epoch == 5
            assert sorted(again.logs) == [("orders", 0), ("orders", 1), ("orders", 2)]
            for index in (0, 1):
                check(again.logs["orders", index], producer)
            assert again.logs["orders", 2].end_offset == 0
            assert again.close(broker_epoch=6)


@pytest.mark.slow
def test_a_snapshot_of_a_lost_tail_does_not_come_back_behind_a_clean_end(tmp_path: Path) -> None:
    for seed in range(SEEDS):
        rng = random.Random(seed)
        disk = CrashDisk(tmp_path / str(seed))
        with disk.files() as files:
            log = opened(disk.live, files).create("orders", 0, ID)
            append(log, 0, SMALL, producer=-1)
            log.flush()
            # A roll wrote it, and then the power took the batch that it speaks of.
            states = ProducerStates()
            states.update(Batch(batch(producer=7)), base_offset=1, now_ms=NOW_MS)
            ProducerSnapshots(files, log.folder).save(2, states)
            files.sync_folder(log.folder)
        disk.kill()
        with disk.files() as files:
            log_dir = opened(disk.live, files)
            append(log_dir.logs["orders", 0], 1, SMALL, producer=-1)
            assert log_dir.close(broker_epoch=5)

        disk.lose_power(rng)

        with disk.files() as files:
            again = opened(disk.live, files)
            log = again.logs["orders", 0]
            assert (again.clean_broker_epoch, log.end_offset) == (5, 2)
            assert list(log.producers.active()) == []
