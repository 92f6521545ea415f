"""Whatever moment the power goes or the broker dies, a cleaning loses no key and brings none back.

Each run stops in front of one call to the disk, for every call that a cleaning and its swaps make.
"""

import random
from pathlib import Path

import pytest

from brokers.storage.files import Buffer
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.cleaning import (
    KEPT_MS,
    clean_now,
    cleaned,
    compacted,
    compacted_log,
    fill_keys,
    keyed,
    latest,
    plan,
    rows_of,
)
from tests.builders.logs import NOW_MS, append, content
from tests.fakes.crash_files import CrashDisk, CrashFiles
from tests.scale import count

CONFIG = compacted(segment_bytes=600)
SHARDS = 4


class Stopped(Exception):
    """The machine stands still."""


class StoppingFiles(CrashFiles):
    """Does a number of calls that change something, and no further one."""

    left = -1

    def _step(self) -> None:
        if self.left == 0:
            raise Stopped
        self.left -= 1

    def open(self, path: str, flags: int) -> int:
        self._step()
        return super().open(path, flags)

    def write(self, fd: int, data: Buffer) -> int:
        self._step()
        return super().write(fd, data)

    def pwrite(self, fd: int, data: Buffer, position: int) -> int:
        self._step()
        return super().pwrite(fd, data, position)

    def truncate(self, fd: int, length: int) -> None:
        self._step()
        super().truncate(fd, length)

    def datasync(self, fd: int) -> None:
        self._step()
        super().datasync(fd)

    def rename(self, source: str, target: str) -> None:
        self._step()
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._step()
        super().unlink(path)

    def sync_folder(self, path: str) -> None:
        self._step()
        super().sync_folder(path)


def stopping(disk: CrashDisk, left: int = -1) -> StoppingFiles:
    files = StoppingFiles(str(disk.live), str(disk.journal))
    files.left = left
    return files


def dirty(log: PartitionLog, rng: random.Random) -> None:
    """Several segments of values and tombstones, all of them flushed."""
    for _ in range(40):
        key = b"k%d" % rng.randrange(6)
        value = None if rng.random() < 0.3 else b"%d" % rng.randrange(1000) + b"v" * 40
        append(log, keyed((key, value)))
    log.flush()


def reopened(
    disk: CrashDisk, point: int, *, in_service: bool = True
) -> tuple[PartitionLog, CrashFiles]:
    """A start knows no topic's configuration at first."""
    files = disk.files()
    config = CONFIG if in_service else LogConfig(is_deleted=False)
    return compacted_log(disk.live / "t-0", config, files=files, recovery_point=point), files


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_crash_at_any_step_keeps_the_last_value_of_each_key(tmp_path: Path, shard: int) -> None:
    rng = random.Random(shard)
    for number in range(count(1, 1, long=80)):
        at, is_over = rng.randrange(5), False
        while not is_over:
            at += rng.randrange(1, count(40, 20, long=10))
            is_over = stop_and_look(tmp_path / f"{number}-{at}", rng, at)


def stop_and_look(folder: Path, rng: random.Random, at: int) -> bool:
    """One log, stopped before call `at` of its second cleaning; True if it needed fewer calls."""
    disk, is_over = CrashDisk(folder), True
    with stopping(disk) as files:
        log = compacted_log(disk.live / "t-0", CONFIG, files=files)
        dirty(log, rng)
        end = clean_now(log).end
        dirty(log, rng)
        log.write_indexes()
        truth, last, point = latest(rows_of(log)), log.end_offset, log.flushed_offset
        files.left = at
        try:
            clean_now(log, first_dirty=end, now_ms=NOW_MS + rng.choice([0, KEPT_MS]))
        except Stopped:
            is_over = False
    if rng.random() < 0.3:
        disk.kill()
    else:
        disk.lose_power(rng)
    point = rng.choice([0, point])
    for again in range(2):
        log, opened = reopened(disk, point, in_service=again > 0)
        with opened:
            assert log.damage is None, f"{log.damage} after {at} calls"
            assert not log.set_aside
            assert (latest(rows_of(log)), log.end_offset) == (truth, last), f"after {at} calls"
            names = {path.name for path in (disk.live / "t-0").iterdir()}
            assert not [name for name in names if name.endswith((".cleaned", ".swap", ".deleted"))]
            if again:
                # And it can be cleaned from there.
                clean_now(log, now_ms=NOW_MS + 10 * KEPT_MS)
                assert latest(rows_of(log)) == truth
        disk.lose_power(rng)
    return is_over


@pytest.mark.slow
def test_a_crash_brings_nothing_back_that_was_cut_while_a_swap_was_under_way(
    tmp_path: Path,
) -> None:
    rng = random.Random(7)
    for number in range(count(30, 60, long=1_000)):
        disk = CrashDisk(tmp_path / f"{number}")
        with disk.files() as files:
            log = compacted_log(disk.live / "t-0", CONFIG, files=files)
            dirty(log, rng)
            cleaning = plan(log)
            result = cleaned(cleaning, files)
            ticket = log.begin_swap(cleaning, result.groups[0])
            assert ticket is not None
            ticket.run()
            if rng.random() < 0.5:
                ticket = log.exchange_cleaned(ticket, NOW_MS)
                assert ticket is not None
                if rng.random() < 0.5:
                    ticket.run()
            cut = rng.randrange(1, 12)
            log.truncate_to(cut)
            fill_keys(log, [(b"new", b"%d" % number)] * rng.randrange(1, 5))
            served, end = content(log), log.end_offset
        disk.lose_power(rng)
        log, again = reopened(disk, 0)
        with again:
            assert log.damage is None
            assert (content(log), log.end_offset) == (served, end)
