"""A log dir on a machine that keeps losing power, beside a model of what it must still know.

Random steps: partitions made, removed and made again, appends, flushes, truncations, retention,
checkpoints and clean ends. The power goes between two steps or within one, at any of its calls to
the disk; what had not been synced then meets a random fate. The model holds what was appended to
each partition and how much of it nobody may lose; the dir is opened again and compared.
"""

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.reader import records
from brokers.storage.errors import StorageError
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.log_dir import LogDir, Partition
from tests.builders.logs import NOW_MS, content
from tests.fakes.crash_files import CrashDisk
from tests.fakes.faulty_files import Fault, FaultyFiles
from tests.scale import count

# Small segments, and retention that takes some of them every time.
CONFIG = LogConfig(
    segment_bytes=1_200, index_interval_bytes=200, retention_bytes=3_000, file_delete_delay_ms=0
)
PARTITIONS: list[Partition] = [("orders", 0), ("orders", 1), ("payments", 0)]
SHARDS = 4
LIVES = count(60, 120, long=4_000) // SHARDS
STEPS_OF_A_LIFE = 40
# Most steps make fewer calls, so that some of them come through and the next one is hit.
CALLS_UNTIL_THE_END = 25


@dataclass(slots=True, kw_only=True)
class Expected:
    """One life of one partition: from when it was made until it is removed."""

    topic_id: bytes | None  # None when the power went before it was noted
    values: list[bytes] = field(default_factory=list)  # by offset, also of what is deleted
    safe: int = 0  # the end is never below
    start: int = 0  # the start is never above
    is_certain: bool = False  # False while it is being made or removed: then both is right


class Machine:
    """The dir, the model, and the random that drives both."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.disk = CrashDisk(folder / "machine")
        self.expected: dict[Partition, Expected] = {}
        self.serial = 0
        self.clean_ends = 0
        self.crashes_within = 0
        self.steps: list[Callable[[], None]] = [
            *[self.append] * 8,
            *[self.flush] * 4,
            *[self.retain] * 3,
            *[self.truncate] * 2,
            *[self.checkpoint] * 2,
            self.advance_start,
            self.start_afresh,
            self.remove,
            self.close,
        ]
        self.open()

    def open(self) -> None:
        self.crashing = self.disk.files()
        self.files = FaultyFiles(disk=self.crashing)
        handles = Handles(self.files, max_open=16)
        self.dir = LogDir(
            str(self.disk.live), files=self.files, handles=handles, config_for=lambda _: CONFIG
        )
        self.dir.load_all()

    def live(self) -> None:
        """Some steps, until the power goes, and what is there after that."""
        steps = self.rng.randrange(STEPS_OF_A_LIFE)
        for _ in range(steps):
            self.step()
        if self.rng.random() < 0.7:
            self.crashes_within += 1
            at = self.rng.randrange(CALLS_UNTIL_THE_END)
            planned = None
            while not self.files.failed:
                if self.files is not planned:
                    # At first, and after a clean end, which comes to an end sooner than the power.
                    planned = self.files
                    planned.plan(Fault(at=at, error=errno.EIO, is_lasting=True))
                try:
                    self.step()
                except (StorageError, KafkaError):
                    assert self.files.failed
        for partition, log in self.dir.logs.items():
            if partition in self.expected:
                found = self.expected[partition]
                found.start = max(found.start, log.start_offset)
        self.crashing.stop()
        self.disk.lose_power(self.rng)
        self.open()
        self.compare()

    def step(self) -> None:
        missing = [partition for partition in PARTITIONS if partition not in self.dir.logs]
        if missing and (not self.dir.logs or self.rng.random() < 0.2):
            self.create(self.rng.choice(missing))
        else:
            self.rng.choice(self.steps)()

    def create(self, partition: Partition) -> None:
        topic_id = self.rng.randbytes(16)
        self.expected[partition] = expected = Expected(topic_id=topic_id)
        self.dir.create(*partition, topic_id)
        expected.is_certain = True

    def remove(self) -> None:
        partition, _log, expected = self.any()
        expected.is_certain = False
        self.dir.remove(*partition)
        del self.expected[partition]
        while self.rng.random() < 0.5 and self.dir.purge():
            pass

    def append(self) -> None:
        _partition, log, expected = self.any()
        for _ in range(self.rng.randrange(1, 6)):
            builder, values = BatchBuilder(), []
            for _ in range(self.rng.choice([1, 1, 4])):
                self.serial += 1
                values.append(b"%d" % self.serial + bytes(self.rng.choice([0, 40, 200])))
                builder.append(None, values[-1], timestamp=NOW_MS)
            # First, since it may be on the disk also when the call fails.
            expected.values += values
            log.append(memoryview(builder.build()), leader_epoch=0, now_ms=NOW_MS)

    def flush(self) -> None:
        _partition, log, expected = self.any()
        expected.safe = max(expected.safe, log.flush())

    def truncate(self) -> None:
        chosen = {}
        for partition, log in self.dir.logs.items():
            if self.rng.random() < 0.6:
                lowest = max(0, log.start_offset - self.rng.choice([0, 0, 5]))
                chosen[partition] = self.rng.randint(lowest, log.end_offset)
                expected = self.expected[partition]
                # A batch that reaches across goes as a whole.
                expected.safe = min(expected.safe, max(0, chosen[partition] - 3))
                if chosen[partition] < log.segments[0].base_offset:
                    expected.safe = 0  # It begins anew, and passes through being empty.
        self.dir.truncate_to(chosen)
        for partition in chosen:
            self.take_over(partition)

    def start_afresh(self) -> None:
        partition, log, expected = self.any()
        offset = self.rng.randint(0, log.end_offset + 20)
        expected.safe = 0
        # Nothing lies below, but the model counts offsets by position.
        expected.values += [b""] * (offset - len(expected.values))
        expected.start = max(expected.start, offset)
        self.dir.start_afresh(partition, offset)
        self.take_over(partition)

    def advance_start(self) -> None:
        _partition, log, expected = self.any()
        log.advance_log_start(self.rng.randint(log.start_offset, log.flushed_offset))
        expected.start = log.start_offset

    def retain(self) -> None:
        flushed = {partition: log.flushed_offset for partition, log in self.dir.logs.items()}
        self.dir.delete_old_segments(NOW_MS, flushed)
        for partition, log in self.dir.logs.items():
            self.expected[partition].start = log.start_offset
        if self.rng.random() < 0.5:
            self.dir.delete_pending(NOW_MS)

    def checkpoint(self) -> None:
        self.dir.write_checkpoints()
        self.dir.write_high_watermarks(
            {partition: log.flushed_offset for partition, log in self.dir.logs.items()}
        )

    def close(self) -> None:
        if not self.dir.close(broker_epoch=self.serial):
            assert self.files.failed, "an end is clean unless the disk fails"
            raise self.dir.handles.failure or StorageError("the dir is closed")
        self.clean_ends += 1
        for expected in self.expected.values():
            expected.safe = len(expected.values)
        self.open()
        assert self.dir.clean_broker_epoch == self.serial
        self.compare()

    def any(self) -> tuple[Partition, PartitionLog, Expected]:
        partition = self.rng.choice(list(self.dir.logs))
        return partition, self.dir.logs[partition], self.expected[partition]

    def take_over(self, partition: Partition) -> None:
        """What the log holds now is what counts, and all of it below the flushed offset is safe."""
        log, expected = self.dir.logs[partition], self.expected[partition]
        assert log.end_offset <= len(expected.values)
        del expected.values[log.end_offset :]
        expected.start = log.start_offset
        expected.safe = log.flushed_offset

    def compare(self) -> None:
        """Everything that is safe is there, nothing that was removed, and nothing made up."""
        assert not self.dir.failed
        for partition in [
            key for key, expected in self.expected.items() if not expected.is_certain
        ]:
            if partition not in self.dir.logs:
                del self.expected[partition]
        assert set(self.dir.logs) == set(self.expected)
        for partition, log in self.dir.logs.items():
            self.compare_log(partition, log, self.expected[partition])

    def compare_log(self, partition: Partition, log: PartitionLog, expected: Expected) -> None:
        assert log.damage is None, f"{partition}: {log.damage}"
        assert log.end_offset >= expected.safe, f"{partition} ends at {log.end_offset}: {expected}"
        assert log.start_offset <= min(expected.start, log.end_offset)
        held = [
            (record.offset, record.value)
            for batch in batches(memoryview(content(log)))
            for record in records(batch, max_bytes=1 << 20)
            if record.offset >= log.start_offset
        ]
        offsets = range(log.start_offset, log.end_offset)
        assert held == [(offset, expected.values[offset]) for offset in offsets]
        topic_id = self.dir.topic_ids.get(partition)
        assert topic_id == expected.topic_id or not expected.is_certain
        expected.topic_id, expected.is_certain = topic_id, True
        self.take_over(partition)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_log_dir_loses_nothing_that_was_safe_in_any_of_its_lives(
    tmp_path: Path, shard: int, report: Callable[[str], None]
) -> None:
    machine = Machine(tmp_path, shard)

    for _ in range(LIVES):
        machine.live()

    assert machine.clean_ends > 0
    report(
        f"{LIVES} crashes, {machine.crashes_within} of them within a step, and "
        f"{machine.clean_ends} clean ends; {machine.serial} records held"
    )
