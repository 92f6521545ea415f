"""The log next to the bare system calls it is made of: append, read, look up, recover, stay small.

Everything runs in a folder of its own under the temporary folder, on a page cache warmed first: the
first touch of guest memory costs ten times a write, and would measure the hypervisor.
"""

import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from struct import pack_into

from bench.measure import Table, best_cpu, quiet_collector, rss_bytes
from brokers.protocol.records.batch import CHECKED_POSITION, CRC_POSITION, HEADER, LOG_OVERHEAD
from brokers.protocol.records.crc32c import crc32c
from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig

# Batches of one record of 100 B and 1 KB, and of the sizes that producers fill under load.
SIZES = {"100 B": 170, "1 KB": 1_100, "16 KB": 16_384, "1 MB": 1_048_576}
NOW_MS = 1_700_000_000_000
WARM_BYTES = 512 * 1024 * 1024
# Per contender and round: enough batches of 16 KB for two writes to each index.
APPEND_BYTES = 64 * 1024 * 1024
MAX_APPENDS = 4_096
ROUNDS = 20
LOOKUP_BATCHES = 200_000
RECOVERY_BYTES = 512 * 1024 * 1024
OPEN_LOGS = 5_000
# The targets, which tests/perf holds on to.
RATIO_LIMITS = {"16 KB": 1.3, "1 MB": 1.3}
TINY_APPEND_LIMIT_US = 4.0
DENSE_LIMIT_US, COLD_LIMIT_US = 2.0, 20.0
RECOVERY_LIMITS = {16_384: 10.0, 200: 60.0}  # seconds per GB, by batch size
_UNPLACED = bytes(8)


def batch(size: int, *, seed: int = 1, timestamp: int = NOW_MS) -> bytearray:
    """A sound batch of one record slot and random content, of exactly `size` bytes."""
    data = bytearray(random.Random(seed).randbytes(size))
    HEADER.pack_into(
        data, 0, 0, size - LOG_OVERHEAD, -1, 2, 0, 0, 0, timestamp, timestamp, -1, -1, -1, 1
    )
    pack_into(">I", data, CRC_POSITION, crc32c(memoryview(data)[CHECKED_POSITION:]))
    return data


@contextmanager
def scratch() -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="bench-log-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def opened(folder: str, config: LogConfig | None = None) -> Iterator[PartitionLog]:
    log = PartitionLog.open(folder, config or LogConfig(), handles=Handles(LocalFiles()))
    try:
        yield log
    finally:
        log.abandon()


def warm(folder: str) -> None:
    """Touches the memory that the page cache will use, and gives it back."""
    path = os.path.join(folder, "warm")
    block = bytes(1024 * 1024)
    with open(path, "wb", buffering=0) as file:
        file.writelines(block for _ in range(WARM_BYTES // len(block)))
    os.unlink(path)


def append_costs(folder: str, size: int, rounds: int = ROUNDS) -> dict[str, float]:
    """CPU µs per batch of the log's append, and of crc32c and write alone; best of the rounds.

    Both begin with an empty file each round and write as many batches as the other.
    """
    data = batch(size)
    records = memoryview(data)
    count = min(MAX_APPENDS, APPEND_BYTES // size)
    fd = os.open(os.path.join(folder, "bare"), os.O_RDWR | os.O_CREAT)

    def empty() -> None:
        os.ftruncate(fd, 0)
        os.lseek(fd, 0, os.SEEK_SET)

    def bare() -> None:
        write = os.write
        for _ in range(count):
            data[:8] = _UNPLACED
            crc32c(records[CHECKED_POSITION:])
            write(fd, records)

    with opened(os.path.join(folder, "append-0")) as log:

        def append() -> None:
            for _ in range(count):
                data[:8] = _UNPLACED
                log.append(records, 1, NOW_MS)

        def restart() -> None:
            log.truncate_fully_and_start_at(0)
            log.delete_pending(NOW_MS)

        best = {"bare": float("inf"), "append": float("inf")}
        with quiet_collector():
            for _ in range(rounds):
                empty()
                best["bare"] = min(best["bare"], _cpu(bare))
                restart()
                best["append"] = min(best["append"], _cpu(append))
    os.close(fd)
    return {name: seconds / count * 1e6 for name, seconds in best.items()}


def _cpu(run: Callable[[], None]) -> float:
    start = time.process_time_ns()
    run()
    return (time.process_time_ns() - start) / 1e9


def read_costs(folder: str, size: int) -> dict[str, float]:
    """CPU µs of planning and reading one range of `size` at the log's end, and of pread alone."""
    files = LocalFiles()
    data = batch(size)
    with opened(os.path.join(folder, f"read-{size}")) as log:
        for _ in range(16):
            data[:8] = _UNPLACED
            log.append(memoryview(data), leader_epoch=1, now_ms=NOW_MS)
        offset = log.end_offset - 8
        fd = log.handles.open(log.segments.active.file)
        position = 8 * size

        def read() -> None:
            found = log.read(offset, max_bytes=size)
            found.read(files)
            found.release()

        costs = best_cpu({"pread": lambda: os.pread(fd, size, position), "read": read})
    return {name: seconds * 1e6 for name, seconds in costs.items()}


def lookup_costs(folder: str) -> dict[str, float]:
    """CPU µs of one read plan, by where the offset lies; 170-byte batches are the worst case."""
    data = batch(SIZES["100 B"])
    with opened(os.path.join(folder, "lookup-0")) as log:
        for _ in range(LOOKUP_BATCHES):
            data[:8] = _UNPLACED
            log.append(memoryview(data), leader_epoch=1, now_ms=NOW_MS)
        end = log.end_offset
        rng = random.Random(1)
        near = [rng.randrange(end - 4_000, end) for _ in range(1_000)]
        far = [rng.randrange(end // 2) for _ in range(1_000)]

        def plans(offsets: list[int], max_bytes: int, max_offset: int) -> Callable[[], None]:
            def run() -> None:
                read = log.read
                for offset in offsets:
                    read(offset, max_bytes=max_bytes, max_offset=max_offset).release()

            return run

        costs = best_cpu(
            {
                "dense, to the end": plans(near, 1 << 20, end),
                "dense, 16 KB": plans(near, 16_384, end),
                "dense, below a watermark": plans(near, 1 << 20, end - 1),
                "cold, 16 KB": plans(far, 16_384, end),
                "cold, 1 MB": plans(far, 1 << 20, end),
            }
        )
    return {name: seconds / 1_000 * 1e6 for name, seconds in costs.items()}


def recovery_seconds(folder: str, size: int, total_bytes: int) -> float:
    """Seconds to recover a log of `total_bytes` in batches of `size` from its first byte on."""
    path = os.path.join(folder, f"recovery-{size}")
    data = batch(size)
    with opened(path) as log:
        while log.size_bytes < total_bytes:
            data[:8] = _UNPLACED
            log.append(memoryview(data), leader_epoch=1, now_ms=NOW_MS)
        expected = log.end_offset
    start = time.perf_counter()
    with opened(path) as log:
        seconds = time.perf_counter() - start
        assert log.end_offset == expected, f"recovered up to {log.end_offset} of {expected}"
    shutil.rmtree(path)
    return seconds


def open_log_bytes(folder: str, count: int, *, batches: int) -> float:
    """Resident bytes per open log, each with a few small batches in it."""
    handles = Handles(LocalFiles())
    data = batch(SIZES["100 B"])
    config = LogConfig()
    before = rss_bytes()
    logs = []
    for number in range(count):
        path = os.path.join(folder, f"open-{number}")
        log = PartitionLog.open(path, config, handles=handles)
        for _ in range(batches):
            data[:8] = _UNPLACED
            log.append(memoryview(data), leader_epoch=1, now_ms=NOW_MS)
        logs.append(log)
    size = (rss_bytes() - before) / count
    for log in logs:
        log.abandon()
    return size


def run() -> Iterable[Table]:
    """Yields the tables one after another."""
    with scratch() as folder:
        warm(folder)
        costs = {name: append_costs(folder, size) for name, size in SIZES.items()}
        yield Table(
            title="append, all checks on",
            columns=("batch", "crc32c + write, CPU µs", "append, CPU µs", "ratio"),
            rows=[
                (name, cost["bare"], cost["append"], cost["append"] / cost["bare"])
                for name, cost in costs.items()
            ],
            notes=("targets: 100 B at most 4 µs; 16 KB and 1 MB at most 1.3 times the bare calls",),
        )
        reads = {name: read_costs(folder, size) for name, size in SIZES.items()}
        yield Table(
            title="read one batch near the end",
            columns=("batch", "pread, CPU µs", "plan + pread, CPU µs", "ratio"),
            rows=[
                (name, cost["pread"], cost["read"], cost["read"] / cost["pread"])
                for name, cost in reads.items()
            ],
        )
        yield Table(
            title="plan a read",
            columns=("where the offset lies", "CPU µs"),
            rows=list(lookup_costs(folder).items()),
            notes=(
                "one record of 100 B per batch; cold: sparse index in memory, log in page cache",
            ),
        )
        seconds = {size: recovery_seconds(folder, size, RECOVERY_BYTES) for size in RECOVERY_LIMITS}
        yield Table(
            title="recovery after a crash",
            columns=("batches", "GB/s", "s per GB", "µs per batch"),
            rows=[
                (
                    f"{size:,} B",
                    RECOVERY_BYTES / spent / 1e9,
                    spent / RECOVERY_BYTES * 1e9,
                    spent / (RECOVERY_BYTES / size) * 1e6,
                )
                for size, spent in seconds.items()
            ],
            notes=("targets: 10 s per GB of 16 KB batches, 60 s per GB of 200 B batches",),
        )
        yield Table(
            title=f"memory of {OPEN_LOGS:,} open logs",
            columns=("logs", "KiB resident per log"),
            rows=[
                ("empty", open_log_bytes(folder, OPEN_LOGS, batches=0) / 1024),
                ("4 batches each", open_log_bytes(folder, OPEN_LOGS, batches=4) / 1024),
            ],
        )
