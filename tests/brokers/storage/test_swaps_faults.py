"""A disk that is full or fails at every single call of a cleaning and of its swaps, in turn.

The same as a log's own sweep: one cleaning is counted, and then repeated with each of its calls
failing. What was refused must leave a log that serves the same and can be cleaned, what failed must
have ended the log dir, and after a power failure the next start must find the last value of every
key, and no deleted one.
"""

import errno
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from brokers.protocol.errors import KafkaError
from brokers.storage.cleaning import CleaningFailed
from brokers.storage.errors import LogDirFailed
from brokers.storage.log import PartitionLog
from tests.builders.cleaning import (
    KEPT_MS,
    clean_now,
    cleaned,
    compacted,
    compacted_log,
    fill_keys,
    latest,
    plan,
    rows_of,
    swap_cleaned,
)
from tests.builders.logs import NOW_MS
from tests.fakes.crash_files import CrashDisk
from tests.fakes.faulty_files import READS, SYNCS, Fault, FaultyFiles
from tests.scale import count

CONFIG = compacted(segment_bytes=600, file_delete_delay_ms=0)
NEVER = 1 << 30
EVERY = count(7, 3, long=1)
LATER_MS = NOW_MS + KEPT_MS
FAULTS = {
    "the disk is full for a moment": Fault(at=0, error=errno.ENOSPC),
    "the disk fills up within a write": Fault(at=0, error=errno.ENOSPC, is_torn=True),
    "the disk is full for good": Fault(at=0, error=errno.ENOSPC, is_lasting=True, is_torn=True),
    "descriptors are short for a moment": Fault(at=0, error=errno.EMFILE),
    "one call fails": Fault(at=0, error=errno.EIO),
    "the disk fails": Fault(at=0, error=errno.EIO, is_lasting=True),
    "a sync finds no space": Fault(at=0, error=errno.ENOSPC, kinds=SYNCS),
    "a read fails": Fault(at=0, error=errno.EIO, kinds=READS),
}


def dirty(log: PartitionLog) -> int:
    """Cleaned once with tombstones that may go by `LATER_MS`, and written again; where it ended."""
    rng = random.Random(5)

    def more(count: int) -> None:
        for _ in range(count):
            value = None if rng.random() < 0.3 else b"%d" % rng.randrange(1000) + b"v" * 40
            fill_keys(log, [(b"k%d" % rng.randrange(6), value)])

    more(25)
    end = clean_now(log).end
    more(15)
    log.delete_pending(LATER_MS)
    return end


def play(disk: CrashDisk, fault: Fault) -> tuple[str, FaultyFiles]:
    """One cleaning with one call failing; how it ended, after a power failure and a start."""
    live = disk.files()
    files = FaultyFiles(None, live)
    log = compacted_log(disk.live / "t-0", CONFIG, files=files)
    first_dirty = dirty(log)
    truth, last = latest(rows_of(log)), log.end_offset
    files.calls.clear()
    files.plan(fault)
    try:
        cleaning = plan(log, first_dirty=first_dirty, now_ms=LATER_MS)
        swap_cleaned(log, cleaning, cleaned(cleaning, files), LATER_MS)
        log.delete_pending(LATER_MS)
        outcome = "unharmed"
    except LogDirFailed:
        outcome = "failed"
    except (KafkaError, OSError, CleaningFailed):
        # Of these, the last two are the worker's.
        outcome = "refused"
    failed = list(files.failed)
    files.heal()
    if outcome != "failed":
        assert log.handles.failure is None
        assert latest(rows_of(log)) == truth
        if outcome == "refused" and random.Random(fault.at).random() < 0.5:
            clean_now(log, now_ms=LATER_MS)
            assert latest(rows_of(log)) == truth
    live.stop()
    disk.lose_power(random.Random(fault.at))
    with disk.files() as again:
        log = compacted_log(disk.live / "t-0", CONFIG, files=again, recovery_point=last)
        assert log.damage is None
        assert (latest(rows_of(log)), log.end_offset) == (truth, last)
        clean_now(log, now_ms=LATER_MS)
        assert latest(rows_of(log)) == truth
    files.failed[:] = failed
    return outcome, files


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_at_any_call_of_a_cleaning_loses_no_key_and_brings_none_back(
    tmp_path: Path, name: str, report: Callable[[str], None]
) -> None:
    kind = FAULTS[name]
    _, counted = play(CrashDisk(tmp_path / "counted"), replace(kind, at=NEVER))
    ends = {"refused": 0, "failed": 0, "unharmed": 0}

    calls = list(counted.calls)
    # At the desk some of them, from another one on for each kind.
    for number in range(len(name) % EVERY, len(calls), EVERY):
        try:
            outcome, files = play(CrashDisk(tmp_path / f"{number}"), replace(kind, at=number))
            assert files.failed or kind.is_torn
        except BaseException as error:
            # Whatever went wrong, the failed call is what explains it.
            error.add_note(f"{name}: call {number}, {calls[number]}")
            raise
        ends[outcome] += 1

    assert ends["refused"] + ends["failed"] > 0
    report(f"{name}: {len(calls)} calls, {ends}")
