"""A disk that is full or fails, at every single call in turn.

One scenario does all that a log can do. It runs once to count its calls to the disk, and then once
more for each of them, with that call failing: for a moment or for good, with ENOSPC or with EIO.
After each run the power is cut as well. Whatever was flushed must be there, what was refused must
not have left a trace, and every failure must have come out as one of the three that say who acts.
"""

import errno
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.protocol.errors import KafkaError
from brokers.protocol.records.batch import batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.control import EndTxnMarker, build_end_txn
from brokers.protocol.records.validation import Origin
from brokers.storage.errors import LogDirFailed, OutOfSpace
from brokers.storage.files import Files
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from tests.brokers.storage.log_twin import LogTwin, stored
from tests.fakes.crash_files import CrashDisk
from tests.fakes.faulty_files import READS, SYNCS, WRITES, Fault, FaultyFiles

CONFIG = LogConfig(segment_bytes=1_500, index_interval_bytes=100, file_delete_delay_ms=0)
ALL = 1 << 30
NOW_MS = 1_700_000_000_000

FAULTS = {
    "the disk is full for a moment": Fault(at=0, error=errno.ENOSPC),
    "the disk fills up within a write": Fault(at=0, error=errno.ENOSPC, is_torn=True),
    "the disk is full for good": Fault(at=0, error=errno.ENOSPC, is_lasting=True, is_torn=True),
    "the dir is read-only for a moment": Fault(at=0, error=errno.EROFS),
    "the dir is read-only for good": Fault(at=0, error=errno.EROFS, is_lasting=True),
    "one call fails": Fault(at=0, error=errno.EIO),
    "the disk fails": Fault(at=0, error=errno.EIO, is_lasting=True),
    "a sync finds no space": Fault(at=0, error=errno.ENOSPC, kinds=SYNCS),
    "a read fails": Fault(at=0, error=errno.EIO, kinds=READS),
}


class Unreadable(Exception):
    """The reader itself could not read: its connection ends, and the log need not know."""


class Scenario:
    """A log's whole life in a few dozen steps, beside a twin that knows what must come of it."""

    def __init__(self, folder: str, files: Files) -> None:
        self.folder = folder
        self.files = files
        self.rng = random.Random(5)
        self.twin = LogTwin()
        self.before_cut: LogTwin | None = None  # a truncation that failed may have happened or not
        self.safe = 0
        self.saved_point = self.saved_start = 0
        self.attempt = b""  # a refused batch may be there if cutting it back failed, too
        self.sequence = 0
        self.refusals: list[OutOfSpace] = []
        self.failure: LogDirFailed | None = None

    def run(self) -> None:
        """Ends when the script does, or when the log says that its disk is finished."""
        for step in self.script():
            try:
                step()
            except OutOfSpace as error:
                self.refusals.append(error)
                if step == self.reopen:
                    return
            except Unreadable:
                pass
            except LogDirFailed as error:
                self.failure = error
                return

    def script(self) -> Iterator[Callable[[], None]]:
        yield self.open
        if not hasattr(self, "log"):
            return
        for _ in range(6):
            yield self.append
        yield self.flush
        yield self.append_transactional
        yield self.append_transactional
        yield self.abort
        for _ in range(8):
            yield self.append
        yield self.flush
        yield self.read
        yield self.truncate
        yield self.append
        yield self.flush
        yield self.delete_records
        for _ in range(4):
            yield self.append
        yield self.flush_rolled
        yield self.read
        yield self.close
        yield self.reopen
        for _ in range(3):
            yield self.append
        yield self.flush

    def open(self, *, is_clean: bool = False) -> None:
        self.log = PartitionLog.open(
            self.folder,
            CONFIG,
            handles=Handles(self.files),
            recovery_point=self.saved_point,
            log_start_offset=self.saved_start,
            is_clean=is_clean,
        )

    def append(self) -> None:
        builder = BatchBuilder()
        for _ in range(self.rng.randrange(1, 4)):
            builder.append(None, self.rng.randbytes(90), timestamp=NOW_MS)
        self.send(builder.build())

    def append_transactional(self) -> None:
        builder = BatchBuilder(
            producer_id=7, producer_epoch=0, base_sequence=self.sequence, is_transactional=True
        )
        builder.append(None, b"in a transaction", timestamp=NOW_MS)
        self.send(builder.build())
        self.sequence += 1

    def abort(self) -> None:
        marker = EndTxnMarker(is_commit=False, coordinator_epoch=0)
        built = build_end_txn(marker, producer_id=7, producer_epoch=0, timestamp=NOW_MS)
        self.send(built, Origin.COORDINATOR)

    def send(self, data: bytearray, origin: Origin = Origin.CLIENT) -> None:
        end = self.log.end_offset
        try:
            self.log.append(memoryview(data), leader_epoch=1, now_ms=NOW_MS, origin=origin)
        except KafkaError:
            assert self.log.end_offset == end, "a refused batch took offsets"
            raise
        except LogDirFailed:
            self.attempt = bytes(data)
            raise
        finally:
            if self.log.end_offset > end:
                self.twin.append(stored(bytes(data)))

    def flush(self, *, rolled_only: bool = False) -> None:
        ticket = self.log.begin_flush(rolled_only=rolled_only)
        if ticket is None:
            return
        try:
            ticket.run()
        finally:
            self.safe = max(self.safe, self.log.finish_flush(ticket))
        self.saved_point = self.log.recovery_point

    def flush_rolled(self) -> None:
        self.flush(rolled_only=True)

    def read(self) -> None:
        expected = b"".join(batch.data for batch in self.twin.served())
        assert read_all(self.log, self.files) == expected

    def truncate(self) -> None:
        kept = self.twin.batches[: -len(self.twin.batches) // 4]
        cut = kept[-1].last + 1 if kept else 0
        self.before_cut = LogTwin()
        for batch in self.twin.batches:
            self.before_cut.append(batch)
        self.saved_point, self.safe = min(self.saved_point, cut), min(self.safe, cut)
        self.log.truncate_to(cut)
        self.twin.truncate(cut)
        self.before_cut = None

    def delete_records(self) -> None:
        self.log.advance_log_start(self.twin.end // 2)
        self.twin.start = self.saved_start = self.log.start_offset
        self.log.delete_old_segments(NOW_MS)
        self.log.delete_pending(NOW_MS)

    def close(self) -> None:
        self.log.close()
        self.safe = self.saved_point = self.log.recovery_point

    def reopen(self) -> None:
        self.open(is_clean=self.safe == self.twin.end)


def read_all(log: PartitionLog, files: Files) -> bytes:
    content = b""
    offset = log.start_offset
    while offset < log.end_offset:
        found = log.read(offset, max_bytes=ALL)
        try:
            data = found.read(files)
        except OSError as error:
            raise Unreadable from error
        finally:
            found.release()
        if not data:
            break
        content += data
        offset = [batch.next_offset for batch in batches(memoryview(data))][-1]
    return content


def play(disk: CrashDisk, fault: Fault | None) -> tuple[Scenario, FaultyFiles]:
    """The scenario on a machine whose disk fails as planned, then a power failure."""
    live = disk.files()
    files = FaultyFiles(fault, live)
    scenario = Scenario(str(disk.live / "orders-0"), files)
    scenario.run()
    live.stop()
    disk.lose_power(random.Random(0 if fault is None else fault.at))
    return scenario, files


def check_what_is_left(disk: CrashDisk, scenario: Scenario) -> None:
    """The next start, on a disk that works again, finds all that was flushed and nothing else."""
    with disk.files() as files:
        log = PartitionLog.open(
            scenario.folder,
            CONFIG,
            handles=Handles(files),
            recovery_point=scenario.saved_point,
            log_start_offset=scenario.saved_start,
            is_clean=False,
        )
        assert log.damage is None
        assert log.end_offset >= scenario.safe, "flushed records are lost"
        found = read_all(log, files)
    twins = [scenario.twin, *([scenario.before_cut] if scenario.before_cut else [])]
    expected = [b"".join(batch.data for batch in twin.batches) for twin in twins]
    assert any(found in content + scenario.attempt for content in expected)


def test_without_a_fault_the_scenario_goes_through(tmp_path: Path) -> None:
    disk = CrashDisk(tmp_path)

    scenario, files = play(disk, None)

    assert scenario.failure is None
    assert scenario.refusals == []
    assert {
        "open",
        "write",
        "pwrite",
        "datasync",
        "rename",
        "unlink",
        "sync_folder",
        "truncate",
    } >= ({call.kind for call in files.calls} - {"make_folder"})
    assert scenario.safe == scenario.twin.end
    check_what_is_left(disk, scenario)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_at_any_call_loses_nothing_and_says_what_it_is(
    tmp_path: Path, name: str, report: Callable[[str], None]
) -> None:
    kind = FAULTS[name]
    _, counted = play(CrashDisk(tmp_path), replace(kind, at=ALL))
    ends = {"refused": 0, "failed": 0, "unharmed": 0}

    for number in range(len(counted.calls)):
        disk = CrashDisk(tmp_path)
        try:
            scenario, files = play(disk, replace(kind, at=number))
            assert files.failed or kind.is_torn
            check_what_is_left(disk, scenario)
        except BaseException as error:
            # Whatever went wrong, the failed call is what explains it.
            error.add_note(f"{name}: call {number}, {counted.calls[number]}")
            raise
        if scenario.failure is not None:
            ends["failed"] += 1
        else:
            ends["refused" if scenario.refusals else "unharmed"] += 1

    if name == "a sync finds no space":
        assert ends["refused"] == 0, "what a sync loses was taken already, so it cannot be refused"
    report(f"{name}: {len(counted.calls)} calls, {ends}")


@pytest.mark.parametrize("kind", sorted(WRITES | {"datasync"}))
def test_failed_disk_refuses_all_appends(tmp_path: Path, kind: str) -> None:
    files = FaultyFiles()
    scenario = Scenario(str(tmp_path / "orders-0"), files)
    scenario.open()
    scenario.append()
    scenario.flush()
    files.plan(Fault(at=0, error=errno.EIO, kinds=frozenset({kind})))
    for _ in range(3):
        try:
            scenario.append()
            scenario.flush()
        except LogDirFailed as error:
            scenario.failure = error
            break
    files.heal()

    if files.failed:
        assert scenario.failure is not None
        with pytest.raises(LogDirFailed) as again:
            scenario.append()
        assert again.value is scenario.failure
        with pytest.raises(LogDirFailed):
            scenario.flush()
    files.close_all()


def test_a_full_disk_refuses_appends_until_there_is_room_and_serves_reads_meanwhile(
    tmp_path: Path,
) -> None:
    files = FaultyFiles()
    scenario = Scenario(str(tmp_path / "orders-0"), files)
    scenario.open()
    scenario.append()
    size = scenario.log.size_bytes
    files.plan(Fault(at=0, error=errno.ENOSPC, kinds=WRITES, is_lasting=True, is_torn=True))

    for _ in range(20):
        with pytest.raises(OutOfSpace):
            scenario.append()
        scenario.read()

    files.heal()
    assert scenario.log.size_bytes == size
    for _ in range(20):
        scenario.append()
    scenario.flush()
    scenario.read()
    scenario.log.close()
    files.close_all()
