"""Batches to append and logs to append them to; what a test leaves open has a default."""

from array import array
from collections.abc import Generator
from pathlib import Path
from typing import Any, TypeVar

from brokers.protocol.records.batch import batches
from brokers.protocol.records.builder import BatchBuilder
from brokers.protocol.records.control import EndTxnMarker, build_end_txn
from brokers.protocol.records.validation import Origin
from brokers.storage.appends import Appended
from brokers.storage.files import Files, LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.reads import FoundRecord

T = TypeVar("T")

NOW_MS = 1_700_000_000_000
ALL = 1 << 30


def batch(
    *,
    records: int = 1,
    size: int = 100,
    timestamp: int = NOW_MS,
    base_offset: int = 0,
    epoch: int = -1,
    producer: int = -1,
    sequence: int = 0,
    is_transactional: bool = False,
) -> memoryview:
    """A batch of records with values of `size` bytes and consecutive timestamps."""
    has_producer = producer >= 0
    builder = BatchBuilder(
        base_offset=base_offset,
        leader_epoch=epoch,
        producer_id=producer,
        producer_epoch=0 if has_producer else -1,
        base_sequence=sequence if has_producer else -1,
        is_transactional=is_transactional,
    )
    for number in range(records):
        time = timestamp + number if timestamp >= 0 else timestamp
        builder.append(None, b"%05d" % number + b"v" * (size - 5), timestamp=time)
    return memoryview(builder.build())


def marker(producer: int, *, commit: bool, coordinator_epoch: int = 0) -> memoryview:
    """The end of a producer's transaction."""
    end = EndTxnMarker(is_commit=commit, coordinator_epoch=coordinator_epoch)
    return memoryview(build_end_txn(end, producer_id=producer, producer_epoch=0, timestamp=NOW_MS))


def open_log(
    folder: Path | str,
    config: LogConfig | None = None,
    *,
    files: Files | None = None,
    handles: Handles | None = None,
    **opening: Any,
) -> PartitionLog:
    """A log in `folder`, which is made if it is missing; recovered unless told that it is clean."""
    if handles is None:
        handles = Handles(files or LocalFiles(), max_open=64)
    return PartitionLog.open(str(folder), config or LogConfig(), handles=handles, **opening)


def append(log: PartitionLog, data: memoryview | None = None, *, epoch: int = 0) -> Appended:
    """Appends one batch as a leader would at `NOW_MS`; markers as the coordinator's."""
    data = batch() if data is None else data
    is_control = data[22] & 0x20
    origin = Origin.COORDINATOR if is_control else Origin.CLIENT
    return log.append(data, leader_epoch=epoch, now_ms=NOW_MS, origin=origin)


def fill(log: PartitionLog, count: int, **fields: Any) -> None:
    """Appends `count` equal batches."""
    for _ in range(count):
        append(log, batch(**fields))


def expire(log: PartitionLog, now_ms: int, **how: Any) -> bool:
    """Moves the log's start as housekeeping does, with all the reading that it may take."""
    finished(log.inspect_ages(now_ms))
    return log.expire(now_ms, **how)


def read(log: PartitionLog, offset: int, *, max_bytes: int = ALL, **how: Any) -> bytes:
    """The bytes of one read."""
    found = log.read(offset, max_bytes=max_bytes, **how)
    try:
        return found.read(log.handles.files)
    finally:
        found.release()


def spans(data: bytes) -> list[tuple[int, int]]:
    """The first and last offsets of each batch."""
    return [(found.base_offset, found.last_offset) for found in batches(memoryview(data))]


def content(log: PartitionLog) -> bytes:
    """Every batch that the log serves, read from its start to its end."""
    data, offset = b"", log.start_offset
    while more := read(log, offset):
        data += more
        offset = spans(more)[-1][1] + 1
    return data


def shifted_index(entries: bytes) -> bytes:
    """Entries of an offset index with positions a byte too high, so that none of them is right."""
    columns = array("I", entries)
    columns.byteswap()
    columns[1::2] = array("I", [position + 1 for position in columns[1::2]])
    columns.byteswap()
    return columns.tobytes()


def files_of(log: PartitionLog, suffix: str = "") -> list[str]:
    """The names in the log's folder, short enough to compare: `42.log`."""
    names = sorted(path.name for path in Path(log.folder).iterdir() if path.name.endswith(suffix))
    return [name[:20].lstrip("0") + name[20:] if name[:20].isdigit() else name for name in names]


def finished(steps: Generator[None, None, T]) -> T:
    """What work in steps returns, all of them at once."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def at_time(log: PartitionLog, timestamp: int) -> FoundRecord | None:
    return finished(log.search_timestamp(timestamp))


def at_greatest_time(log: PartitionLog) -> FoundRecord | None:
    return finished(log.search_max_timestamp())
