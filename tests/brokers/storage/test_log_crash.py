"""A program that appends is killed at random moments, and the power goes with it.

The child promises on a pipe which offsets are safe; the checker opens what the power failure left
and holds every promise ever made against it. A child that promises too early must be caught.
"""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from brokers.protocol.records.batch import batches
from brokers.protocol.records.reader import Record, records
from brokers.storage.log import PartitionLog
from tests.brokers.storage.appending_child import PARTITIONS, SELF, open_dir
from tests.fakes.crash_files import CrashDisk
from tests.fakes.faulty_files import FaultyFiles
from tests.scale import count

ROOT = Path(__file__).resolve().parents[3]
SHARDS = 8
ROUNDS = count(16, 40, long=2_000) // SHARDS
ALL = 1 << 30


class Promises:
    """What a partition's program has said, over all its lives."""

    def __init__(self) -> None:
        self.safe = 0
        self.start = 0
        self.written_in: list[tuple[int, int, int]] = []  # from, to, and in which round
        self.opened = 0

    def hear(self, word: str, offset: int, number: int) -> None:
        if word == "starts":
            self.start = max(self.start, offset)
            return
        if word == "opened":
            self.opened = offset
        else:
            begin = max(self.opened, self.safe)
            if offset > begin:
                self.written_in.append((begin, offset, number))
        self.safe = max(self.safe, offset)

    def round_of(self, offset: int) -> int | None:
        """Which round wrote a safe offset, as far as was said."""
        for begin, end, number in reversed(self.written_in):
            if begin <= offset < end:
                return number
        return None


Found = tuple[int, int, list[Record]]


class Check:
    """What the disk holds now, against all promises."""

    def __init__(self, live: Path, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(live, folder)
        self.folder = folder

    def run(self, promises: list[Promises]) -> None:
        first = self.recover()
        for partition, promised in enumerate(promises):
            self.check(partition, first.get(partition, (0, 0, [])), promised)
        assert self.recover() == first, "a second recovery found something else"

    def recover(self) -> dict[int, Found]:
        """Starts, end offsets and records by partition; those of partitions never made are not."""
        files = FaultyFiles()
        log_dir = open_dir(str(self.folder), files)
        found = {
            partition: (log.start_offset, log.end_offset, held_by(log, files))
            for (_topic, partition), log in log_dir.logs.items()
        }
        files.close_all()
        return found

    def check(self, partition: int, found: Found, promised: Promises) -> None:
        start, end, held = found
        assert end >= promised.safe, f"{promised.safe} was safe, the log ends at {end}"
        assert start <= promised.start, f"{start} is the start, {promised.start} was said"
        assert [record.offset for record in held] == list(range(start, end))
        last_round = -1
        for record in held:
            assert record.value is not None
            its_partition, its_round, its_offset = SELF.unpack_from(record.value)
            assert (its_partition, its_offset) == (partition, record.offset)
            assert its_round >= last_round, "an older record lies behind a newer one"
            if record.offset < promised.safe:
                assert promised.round_of(record.offset) in {its_round, None}
            last_round = its_round


def held_by(log: PartitionLog, files: FaultyFiles) -> list[Record]:
    return [record for record in read_all(log, files) if record.offset >= log.start_offset]


def read_all(log: PartitionLog, files: FaultyFiles) -> Iterator[Record]:
    offset = log.start_offset
    while offset < log.end_offset:
        found = log.read(offset, max_bytes=ALL)
        data = memoryview(found.read(files))
        found.release()
        for batch in batches(data):
            batch.check_crc()
            yield from records(batch, max_bytes=ALL)
            offset = batch.next_offset


class Machine:
    """Starts the program, ends it at a random moment, and maybe cuts the power."""

    def __init__(self, folder: Path, seed: int, *, is_hasty: bool = False) -> None:
        self.rng = random.Random(seed)
        self.disk = CrashDisk(folder / "machine")
        self.copy = folder / "check"
        self.promises = [Promises() for _ in range(PARTITIONS)]
        self.variant = ["hasty"] if is_hasty else []
        self.said = 0
        self.died_in_recovery = 0
        self.lives = 0

    def rounds(self, how_many: int) -> None:
        for number in range(self.lives, self.lives + how_many):
            self.run_until_killed(number)
            if self.rng.random() < 0.15:
                self.disk.kill()
            else:
                self.disk.lose_power(self.rng)
            Check(self.disk.live, self.copy).run(self.promises)
        self.lives += how_many

    @property
    def safe(self) -> int:
        """How many records were said to be safe."""
        return sum(promised.safe for promised in self.promises)

    def run_until_killed(self, number: int) -> None:
        program = [sys.executable, "-m", "tests.brokers.storage.appending_child"]
        arguments = [str(self.disk.live), str(self.disk.journal), str(number), *self.variant]
        with subprocess.Popen(
            program + arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "started\n"
            # Some are killed while they still recover what the last one left.
            moment = self.rng.choice([0.005, 0.1, 0.1, 0.2]) * self.rng.random()
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(moment)
            child.kill()
            lines = child.stdout.read().split("\n")[:-1]
            self.said += len(lines)
            self.died_in_recovery += len(lines) < PARTITIONS
            for line in lines:
                word, partition, offset = line.split()
                self.promises[int(partition)].hear(word, int(offset), number)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_nothing_that_was_said_to_be_safe_is_lost_in_a_crash(
    tmp_path: Path, shard: int, report: Callable[[str], None]
) -> None:
    machine = Machine(tmp_path, shard)

    machine.rounds(ROUNDS)
    # On a busy machine a few lives may all end before anything was said; that proves nothing.
    while machine.safe == 0 and machine.lives < ROUNDS + 50:
        machine.rounds(1)

    assert machine.safe > 0
    report(
        f"{machine.lives} kills, {machine.died_in_recovery} of them during recovery; "
        f"{machine.said} promises for {machine.safe} records held"
    )


@pytest.mark.slow
def test_a_program_that_answers_before_its_flush_is_caught(tmp_path: Path) -> None:
    machine = Machine(tmp_path, 99, is_hasty=True)

    with pytest.raises(AssertionError, match="was safe, the log ends at"):
        machine.rounds(20)
