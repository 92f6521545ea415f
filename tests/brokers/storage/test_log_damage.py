"""Every derived file of a log in every bad state: it is made anew, and nobody notices.

The log itself is the truth; its indexes, snapshots and epochs can be derived again. Whatever
becomes of them, after a clean end or a crash, the log must answer as if nothing had happened.
"""

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from brokers.protocol.records.batch import batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.control import EndTxnMarker, build_end_txn
from brokers.protocol.records.validation import Origin
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.producer_state import ProducerInfo
from brokers.storage.reads import FoundRecord
from brokers.storage.txn_index import AbortedTxn
from tests.builders.logs import at_greatest_time, at_time
from tests.fakes.faulty_files import FaultyFiles

CONFIG = LogConfig(segment_bytes=2_000, index_interval_bytes=200)
ALL = 1 << 30
BEGIN_MS = 1_700_000_000_000

KINDS = {
    "offset index": "*.index",
    "time index": "*.timeindex",
    "transaction index": "*.txnindex",
    "producer snapshot": "*.snapshot",
    "leader epochs": "leader-epoch-checkpoint",
}

DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "deleted": lambda data: None,
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "garbage": lambda data: random.Random(len(data)).randbytes(max(len(data), 100)),
    "of another log": lambda data: data[::-1],
    "a byte too short": lambda data: data[:-1],
    "cut in half": lambda data: data[: len(data) // 2],
    "garbage behind": lambda data: data + random.Random(1).randbytes(500),
    "zeros behind": lambda data: data + bytes(10_000),
    "twice": lambda data: data + data,
    "a flipped bit": lambda data: (
        bytes([*data[:-5], data[-5] ^ 4, *data[-4:]]) if data[5:] else data
    ),
}

# What no look at these files alone can show: an index that may be missing, since most segments have
# no aborts, and another digit in a text. Only a segment that is read after a crash makes up for it.
UNSEEN = {
    ("transaction index", "deleted"),
    ("transaction index", "empty"),
    ("leader epochs", "a flipped bit"),
}
CASES = [
    (kind, damage, is_clean)
    for kind in KINDS
    for damage in DAMAGES
    for is_clean in (True, False)
    if not (is_clean and (kind, damage) in UNSEEN)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All that a log can be asked."""

    content: bytes
    ends: tuple[int, int]
    times: tuple[FoundRecord | None, ...]
    latest: FoundRecord | None
    aborted: tuple[tuple[AbortedTxn, ...], ...]
    epochs: tuple[int | None, ...]
    producers: tuple[ProducerInfo, ...]
    unstable: int | None


def open_log(
    folder: Path, files: FaultyFiles, *, is_clean: bool, recovery_point: int = 20
) -> PartitionLog:
    return PartitionLog.open(
        str(folder),
        CONFIG,
        handles=Handles(files),
        recovery_point=recovery_point,
        log_start_offset=0,
        is_clean=is_clean,
    )


def ask(log: PartitionLog, files: FaultyFiles) -> Answers:
    content, offset = b"", log.start_offset
    while offset < log.end_offset:
        found = log.read(offset, max_bytes=300)
        data = found.read(files)
        found.release()
        content += data
        offset = [batch.next_offset for batch in batches(memoryview(data))][-1]
    log.producers.replicated_to(log.end_offset)
    offsets = range(log.start_offset, log.end_offset)
    times = range(BEGIN_MS - 10, BEGIN_MS + 1_000, 37)
    return Answers(
        content=content,
        ends=(log.start_offset, log.end_offset),
        times=tuple(at_time(log, time) for time in times),
        latest=at_greatest_time(log),
        aborted=tuple(tuple(log.aborted_transactions(offset, offset + 7)) for offset in offsets),
        epochs=tuple(log.epochs.epoch_for_offset(offset) for offset in offsets),
        # When a producer was seen last is known less exactly after a replay: by its records' times.
        producers=tuple(replace(info, last_seen_ms=0) for info in sorted_by_id(log)),
        unstable=log.producers.first_unstable_offset,
    )


def sorted_by_id(log: PartitionLog) -> list[ProducerInfo]:
    return sorted(log.producers.active(), key=lambda info: info.producer_id)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Answers]:
    """A log of many segments with epochs, producers and aborted transactions, closed cleanly."""
    folder = tmp_path_factory.mktemp("pristine") / "orders-0"
    files, rng = FaultyFiles(), random.Random(11)
    log = open_log(folder, files, is_clean=False)
    sequences: Counter[int] = Counter()
    for number in range(60):
        is_transactional = number % 7 in {2, 3}
        producer = 100 + number // 7 if is_transactional else 7
        builder = BatchBuilder(
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequences[producer],
            is_transactional=is_transactional,
        )
        for _ in range(2):
            late = rng.choice([0, 0, 0, 200])
            builder.append(None, rng.randbytes(60), timestamp=BEGIN_MS + number * 15 - late)
        sequences[producer] += 2
        send(log, builder.build(), epoch=number // 20)
        if number % 7 == 5 and number < 50:
            send_marker(log, 100 + number // 7, is_commit=number % 2 == 0, epoch=number // 20)
    log.close()
    answers = ask(log := open_log(folder, files, is_clean=True), files)
    log.close()
    assert len(list(folder.glob("*.log"))) > 5
    assert len(list(folder.glob("*.txnindex"))) > 1
    return folder, answers


def send(log: PartitionLog, data: bytearray, *, epoch: int, origin: Origin = Origin.CLIENT) -> None:
    log.append(memoryview(data), leader_epoch=epoch, now_ms=BEGIN_MS, origin=origin)


def send_marker(log: PartitionLog, producer: int, *, is_commit: bool, epoch: int) -> None:
    marker = EndTxnMarker(is_commit=is_commit, coordinator_epoch=0)
    built = build_end_txn(marker, producer_id=producer, producer_epoch=0, timestamp=BEGIN_MS)
    send(log, built, epoch=epoch, origin=Origin.COORDINATOR)


@pytest.mark.parametrize(("kind", "damage", "is_clean"), CASES)
def test_damaged_derived_file_is_rebuilt_unnoticed(
    tmp_path: Path, pristine: tuple[Path, Answers], kind: str, damage: str, *, is_clean: bool
) -> None:
    folder = tmp_path / "orders-0"
    shutil.copytree(pristine[0], folder)
    for path in folder.glob(KINDS[kind]):
        damaged = DAMAGES[damage](path.read_bytes())
        path.unlink() if damaged is None else path.write_bytes(damaged)
    files = FaultyFiles()

    recovery_point = 0 if (kind, damage) in UNSEEN else 20
    log = open_log(folder, files, is_clean=is_clean, recovery_point=recovery_point)

    assert log.damage is None
    assert_same(ask(log, files), pristine[1])
    log.close()
    again = open_log(folder, files, is_clean=True)
    assert_same(ask(again, files), pristine[1])
    again.close()


def assert_same(found: Answers, expected: Answers) -> None:
    for name in Answers.__slots__:
        assert getattr(found, name) == getattr(expected, name), name


@pytest.mark.parametrize("kind", KINDS)
def test_log_with_a_rebuilt_file_accepts_appends(
    tmp_path: Path, pristine: tuple[Path, Answers], kind: str
) -> None:
    folder = tmp_path / "orders-0"
    shutil.copytree(pristine[0], folder)
    for path in folder.glob(KINDS[kind]):
        path.write_bytes(b"garbage")
    files = FaultyFiles()
    log = open_log(folder, files, is_clean=True)

    last = next(info for info in log.producers.active() if info.producer_id == 7)
    builder = BatchBuilder(producer_id=7, producer_epoch=0, base_sequence=last.last_sequence + 1)
    builder.append(None, b"new", timestamp=BEGIN_MS)
    batch = builder.build()
    end = log.end_offset
    send(log, bytearray(batch), epoch=3)
    repeated = log.append(memoryview(bytearray(batch)), leader_epoch=3, now_ms=BEGIN_MS)

    assert (repeated.is_duplicate, repeated.base_offset) == (True, end)
    assert log.end_offset == end + 1
    log.close()
