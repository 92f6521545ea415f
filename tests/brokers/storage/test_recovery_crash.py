"""What a power failure does to bytes that were not synced is never taken for damage.

Whatever was flushed is served, whatever was not is there, gone or set aside, and nobody is asked.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.protocol.records.batch import batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.storage.errors import LogDirFailed
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.builders.logs import append, batch, content, fill, marker, open_log
from tests.fakes.crash_files import CrashDisk
from tests.scale import count

CONFIG = LogConfig(segment_bytes=12_000, index_interval_bytes=1_000)
SHARDS = 4


def write(log: PartitionLog, rng: random.Random, epoch: int) -> int:
    """Appends a few segments and flushes now and then; returns what is safe."""
    safe, flush_chance = log.flushed_offset, rng.choice([0, 0.02, 0.3])
    for _ in range(rng.randrange(60)):
        # Values of zeros look like pages that were lost.
        size = rng.choice([10, 400, 3_000, 9_000])
        data = batch(size=size) if rng.random() < 0.7 else zeros(size)
        append(log, data, epoch=epoch)
        if rng.random() < 0.1:
            abort(log, epoch)
        if rng.random() < flush_chance:
            ticket = log.begin_flush(rolled_only=rng.random() < 0.5)
            if ticket is not None:
                ticket.run()
                safe = log.finish_flush(ticket)
    return safe


def zeros(size: int) -> memoryview:
    builder = BatchBuilder()
    builder.append(None, bytes(size), timestamp=1)
    return memoryview(builder.build())


def abort(log: PartitionLog, epoch: int) -> None:
    producer = 1_000 + log.end_offset
    append(log, batch(producer=producer, is_transactional=True), epoch=epoch)
    append(log, marker(producer, commit=False), epoch=epoch)


@pytest.mark.parametrize("flushed", [0, 3])
def test_records_of_a_failed_flush_are_written_before_they_are_served(
    tmp_path: Path, flushed: int
) -> None:
    disk = CrashDisk(tmp_path / "disk")
    folder = disk.live / "t-0"
    with disk.files() as files:
        log = open_log(folder, CONFIG, files=files)
        fill(log, flushed, size=3_000)
        log.flush()
        fill(log, 6, size=3_000)
        files.fails_sync = True
        with pytest.raises(LogDirFailed):
            log.flush()
    # Another process on the same kernel, which still has every page.
    with disk.files() as files:
        log = open_log(folder, CONFIG, files=files, recovery_point=flushed)
        served = content(log)
    disk.lose_power(random.Random(1))

    with disk.files() as files:
        log = open_log(folder, CONFIG, files=files, recovery_point=flushed + 6)

        assert log.damage is None
        assert content(log) == served
        assert log.end_offset == flushed + 6


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_recovery_from_a_power_failure_is_automatic_and_lossless(
    tmp_path: Path, shard: int
) -> None:
    rng = random.Random(shard)
    for number in range(count(20, 60, long=4_000) // SHARDS):
        disk = CrashDisk(tmp_path / f"{number}")
        folder, written, safe, point = disk.live / "t-0", b"", 0, 0
        for epoch in range(4):
            with disk.files() as files:
                log = open_log(folder, CONFIG, files=files, recovery_point=point)
                assert log.damage is None, f"{log.damage} in {shard}/{number}/{epoch}"
                assert log.end_offset >= safe
                assert written.startswith(found := content(log)), f"{shard}/{number}/{epoch}"
                assert sum(1 for _ in aborts(found)) == len(log.aborted_transactions(0, 1 << 40))
                # What a later round writes stands where the lost end of this one stood.
                safe = write(log, rng, epoch)
                written, point = content(log), rng.choice([point, safe])
            disk.lose_power(rng)


def aborts(data: bytes) -> Iterator[int]:
    """The offsets of the markers."""
    return (found.base_offset for found in batches(memoryview(data)) if found.is_control)
