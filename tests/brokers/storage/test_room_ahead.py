"""Blocks are allocated ahead in steps, freed when not needed, and appends work without them."""

import errno
import os
from pathlib import Path

import pytest

from brokers.storage.files import Files, LocalFiles
from brokers.storage.handles import Handles, LogFile
from brokers.storage.log import PartitionLog
from brokers.storage.log_config import LogConfig
from brokers.storage.room_ahead import FIRST_BYTES, KEPT_BYTES, STEP_BYTES, RoomAhead, bound
from brokers.storage.segment import ENTRY, MAX_WAITING
from tests.builders.logs import NOW_MS, append, batch, content, open_log
from tests.fakes.faulty_files import Fault, FaultyFiles, UnsyncedFiles

PLENTY = 1 << 40
VALUE_BYTES = 300_000


class NotedFiles(UnsyncedFiles):
    """Notes what is reserved and how files are cut."""

    def __init__(self) -> None:
        self.reserved: list[tuple[int, int]] = []
        self.cut: list[int] = []
        self.refuses = False

    def reserve(self, fd: int, position: int, length: int) -> None:
        if self.refuses:
            raise OSError(errno.ENOSPC, "no room")
        self.reserved.append((position, position + length))

    def truncate(self, fd: int, length: int) -> None:
        self.cut.append(length)
        os.ftruncate(fd, length)


def test_small_files_take_nothing_and_larger_ones_a_step_at_a_time() -> None:
    files, file = NotedFiles(), LogFile("x.log")
    ahead, size = RoomAhead(files), 0

    for _ in range(40):
        end = size + 500_000
        if end > bound(file):
            ahead.take(file, size, end, PLENTY)
        size = end

    assert files.reserved[0] == (1_000_000, 3_000_000), "as much again as there is, at first"
    assert files.reserved[-1][1] - size <= STEP_BYTES
    assert all(stop > start for start, stop in files.reserved)
    assert len(files.reserved) == 4
    assert ahead.taken_bytes == file.room_taken == STEP_BYTES


def test_nothing_is_taken_behind_the_end_that_a_file_will_have() -> None:
    files, file = NotedFiles(), LogFile("x.log")
    ahead = RoomAhead(files)

    ahead.take(file, FIRST_BYTES, FIRST_BYTES + 100, FIRST_BYTES + 300)
    ahead.take(file, FIRST_BYTES + 290, FIRST_BYTES + 300, FIRST_BYTES + 300)

    assert files.reserved == [(FIRST_BYTES, FIRST_BYTES + 300)]


def test_all_files_together_take_no_more_than_they_may() -> None:
    files = NotedFiles()
    ahead = RoomAhead(files, max_bytes=5 * FIRST_BYTES)
    logs = [LogFile(f"{number}.log") for number in range(4)]

    for file in logs:
        ahead.take(file, 2 * FIRST_BYTES - 1, 2 * FIRST_BYTES, PLENTY)
    assert (len(files.reserved), ahead.taken_bytes) == (2, 4 * FIRST_BYTES)

    ahead.forget(logs[0])
    ahead.take(logs[3], 4 * FIRST_BYTES, 4 * FIRST_BYTES + 1, 4 * FIRST_BYTES + 2)
    assert ahead.taken_bytes == 2 * FIRST_BYTES + 1


def test_a_refusal_is_not_asked_again_at_once_and_leaves_nothing_taken(tmp_path: Path) -> None:
    files, file = NotedFiles(), LogFile(str(tmp_path / "x.log"))
    file.fd = files.open(file.path, os.O_RDWR | os.O_CREAT)
    files.refuses = True
    ahead = RoomAhead(files)

    ahead.take(file, 0, 2 * FIRST_BYTES, PLENTY)

    assert (ahead.taken_bytes, file.room_taken) == (0, 0)
    assert bound(file) == 4 * FIRST_BYTES
    assert files.cut == [0], "some file systems keep the part of it that they found"
    files.close(file.fd)


class FewDescriptors(UnsyncedFiles):
    """A process that has no descriptor left to open a closed file again."""

    is_full = False

    def open(self, path: str, flags: int) -> int:
        if self.is_full and path.endswith(".log") and not flags & os.O_CREAT:
            raise OSError(errno.EMFILE, "too many open files")
        return super().open(path, flags)


def grown_and_closed(folder: Path) -> tuple[PartitionLog, FewDescriptors]:
    """A log with allocated blocks, whose file was closed because another one needed a
    descriptor.
    """
    files = FewDescriptors()
    config = LogConfig(segment_bytes=64 * FIRST_BYTES, segment_ms=1000, segment_jitter_ms=0)
    handles = Handles(files, max_open=16)
    log = open_log(folder / "t-0", config, handles=handles)
    grow(log, 3 * FIRST_BYTES)
    log.flush()
    assert log.segments.active.file.room_taken
    for number in range(20):
        handles.open(LogFile(str(folder / f"{number}.log")), create=True)
    assert log.segments.active.file.fd == -1
    files.is_full = True
    return log, files


def test_a_close_does_not_fail_for_room_that_cannot_be_given_back(tmp_path: Path) -> None:
    log, _files = grown_and_closed(tmp_path)

    log.close()


def test_a_roll_does_not_fail_for_room_that_cannot_be_given_back(tmp_path: Path) -> None:
    log, _files = grown_and_closed(tmp_path)

    append(log, batch(timestamp=NOW_MS + 60_000))

    assert len(log.segments) == 2


def test_index_entries_are_written_as_a_log_grows(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(), files=NotedFiles())

    for _ in range(2 * MAX_WAITING):
        append(log, batch(size=5_000))

    active = log.segments.active
    assert os.stat(active.offset_index.file.path).st_size > 0
    assert len(active.waiting) <= MAX_WAITING * ENTRY.size
    log.close()


def open_noted(folder: Path, files: Files, *, is_clean: bool = False) -> PartitionLog:
    config = LogConfig(segment_bytes=8 * FIRST_BYTES)
    return open_log(folder / "t-0", config, files=files, is_clean=is_clean)


def grow(log: PartitionLog, size: int) -> None:
    while log.size_bytes < size:
        append(log, batch(size=VALUE_BYTES))


def test_a_log_takes_room_as_it_grows_and_is_as_long_as_what_was_written(tmp_path: Path) -> None:
    files = NotedFiles()
    log = open_noted(tmp_path, files)

    grow(log, 3 * FIRST_BYTES)

    assert files.reserved
    assert files.reserved[-1][1] > log.size_bytes
    assert os.stat(log.segments.active.file.path).st_size == log.size_bytes
    log.close()


def test_unused_room_of_a_complete_file_is_released(tmp_path: Path) -> None:
    files = NotedFiles()
    log = open_noted(tmp_path, files)

    grow(log, 3 * FIRST_BYTES)
    size = log.size_bytes
    log.close()
    assert files.cut == [size], "the active file is complete when the log is closed"

    log = open_noted(tmp_path, files, is_clean=True)
    files.cut.clear()
    grow(log, 9 * FIRST_BYTES)
    assert len(log.segments) == 2
    assert 8 * FIRST_BYTES in [stop for _start, stop in files.reserved]
    assert not files.cut, f"less than {KEPT_BYTES} bytes are not worth a call"
    log.close()


def test_a_broker_that_crashed_leaves_no_room_taken(tmp_path: Path) -> None:
    files = NotedFiles()
    log = open_noted(tmp_path, files)
    grow(log, 3 * FIRST_BYTES)
    size, records = log.size_bytes, content(log)
    log.abandon()
    files.cut.clear()

    log = open_noted(tmp_path, files)

    assert files.cut == [size]
    assert content(log) == records
    log.close()


@pytest.mark.parametrize("is_lasting", [False, True])
def test_a_log_grows_where_no_room_can_be_taken(tmp_path: Path, is_lasting: bool) -> None:
    fault = Fault(at=1, error=errno.EOPNOTSUPP, kinds=frozenset({"reserve"}), is_lasting=is_lasting)
    files = FaultyFiles(fault)
    log = open_noted(tmp_path, files)

    grow(log, 3 * FIRST_BYTES)

    assert files.failed
    assert log.size_bytes >= 3 * FIRST_BYTES
    log.close()


def test_the_file_system_is_asked_for_real(tmp_path: Path) -> None:
    files = LocalFiles()
    fd = files.open(str(tmp_path / "x"), os.O_RDWR | os.O_CREAT)
    try:
        files.pwrite(fd, b"abc", 0)
        try:
            files.reserve(fd, 3, STEP_BYTES)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOTSUP):
                raise
            pytest.skip(f"the file system of {tmp_path} reserves nothing: {error}")
        assert os.fstat(fd).st_size == 3
        assert os.fstat(fd).st_blocks * 512 >= STEP_BYTES
        files.truncate(fd, 3)
        assert os.fstat(fd).st_blocks * 512 < FIRST_BYTES
    finally:
        files.close(fd)
