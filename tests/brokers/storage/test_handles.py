"""Files stay open while someone needs their descriptor, and not much longer."""

import errno
import os
import resource
from pathlib import Path

import pytest

from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.storage.errors import LogDirFailed
from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles, LogFile, default_budget
from tests.fakes.faulty_files import Fault, FaultyFiles, UnsyncedFiles


class Log:
    """An owner that only remembers that it was told."""

    def __init__(self) -> None:
        self.refusals = 0

    def refuse_appends(self) -> None:
        self.refusals += 1


def log_files(folder: Path, count: int) -> list[LogFile]:
    return [LogFile(str(folder / f"{number}.log")) for number in range(count)]


def opened(handles: Handles, folder: Path, count: int) -> list[LogFile]:
    files = log_files(folder, count)
    for file in files:
        handles.open(file, create=True)
    return files


def test_a_file_is_opened_once_and_keeps_its_descriptor(tmp_path: Path) -> None:
    handles = Handles(LocalFiles(), max_open=4)
    (file,) = log_files(tmp_path, 1)

    fd = handles.open(file, create=True)

    assert handles.open(file) == fd == file.fd
    handles.close(file)
    assert file.fd == -1
    assert handles.open_files == 0


def test_the_file_least_used_is_closed_for_a_new_one(tmp_path: Path) -> None:
    handles = Handles(LocalFiles(), max_open=2)
    first, second = opened(handles, tmp_path, 2)
    (third,) = [LogFile(str(tmp_path / "third.log"))]
    first.was_used, second.was_used = False, True

    handles.open(third, create=True)

    assert first.fd == -1
    assert min(second.fd, third.fd) >= 0
    assert handles.open_files == 2


@pytest.mark.parametrize("why", ["pinned", "dirty"])
def test_held_file_is_never_closed_and_may_exceed_the_budget(tmp_path: Path, why: str) -> None:
    handles = Handles(LocalFiles(), max_open=2)
    held = opened(handles, tmp_path, 2)
    for file in held:
        file.pins, file.is_dirty = int(why == "pinned"), why == "dirty"

    handles.open(LogFile(str(tmp_path / "third.log")), create=True)

    assert all(file.fd >= 0 for file in held)
    assert handles.is_over_budget


def test_a_pinned_file_that_is_closed_keeps_its_descriptor_until_its_last_reader_lets_go(
    tmp_path: Path,
) -> None:
    handles = Handles(LocalFiles(), max_open=2)
    (file,) = opened(handles, tmp_path, 1)
    fd, file.pins = file.fd, 2

    handles.close(file)
    for number in range(5):
        handles.open(LogFile(str(tmp_path / f"later-{number}.log")), create=True)

    assert (file.fd, handles.doomed_files) == (fd, 1)
    assert handles.open_files == 2, "it counts against the budget"
    file.unpin()
    assert (file.fd, handles.doomed_files) == (fd, 1)
    file.unpin()
    assert (file.fd, handles.doomed_files) == (-1, 0)


def test_a_closed_file_is_reopened_with_its_content(tmp_path: Path) -> None:
    handles = Handles(LocalFiles(), max_open=1)
    first, second = log_files(tmp_path, 2)
    os.write(handles.open(first, create=True), b"content")
    handles.open(second, create=True)

    assert os.pread(handles.open(first), 99, 0) == b"content"


def test_creating_empties_what_is_there(tmp_path: Path) -> None:
    handles = Handles(LocalFiles(), max_open=1)
    (file,) = log_files(tmp_path, 1)
    Path(file.path).write_bytes(b"left over")

    assert os.pread(handles.open(file, create=True), 99, 0) == b""


def test_too_many_open_files_is_an_answer_to_the_client_and_no_disk_failure(
    tmp_path: Path,
) -> None:
    files = FaultyFiles(Fault(at=0, error=errno.EMFILE, kinds=frozenset({"open"})))
    handles = Handles(files, max_open=4)

    with pytest.raises(KafkaError) as caught:
        handles.open(LogFile(str(tmp_path / "0.log")), create=True)

    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert handles.failure is None


def test_first_failure_counts_and_every_owner_is_notified_once() -> None:
    handles = Handles(LocalFiles(), max_open=4)
    owner = Log()
    handles.owners.add(owner)
    first = LogDirFailed("a", "fsync", OSError(errno.EIO, "broken"))

    assert handles.fail(first) is first
    assert handles.fail(LogDirFailed("b", "fsync", OSError(errno.EIO, "broken"))) is first

    assert handles.failure is first
    assert owner.refusals == 1


def test_the_default_budget_leaves_room_for_sockets() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    assert 16 <= default_budget() <= max(16, soft // 2)


class CountedFile(LogFile):
    """Counts how often somebody asks whether it is held."""

    asked = 0

    @property
    def is_held(self) -> bool:
        type(self).asked += 1
        return super().is_held


def test_opening_a_file_costs_the_same_beside_hundreds_that_are_dirty(tmp_path: Path) -> None:
    handles = Handles(UnsyncedFiles(), max_open=4)
    path = str(tmp_path / "one.log")
    CountedFile.asked = 0

    dirty = [CountedFile(path) for _ in range(600)]
    for file in dirty:
        handles.open(file, create=True)
        file.is_dirty = True
    asked = CountedFile.asked

    assert handles.open_files == 600
    assert asked < 10 * 600
    for file in dirty:
        handles.close(file)
    assert handles.open_files == 0


def test_a_file_that_a_flush_lets_go_is_closed_for_the_next_one(tmp_path: Path) -> None:
    handles = Handles(LocalFiles(), max_open=2)
    held = opened(handles, tmp_path, 2)
    for file in held:
        file.is_dirty = True
    (third, fourth) = (LogFile(str(tmp_path / name)) for name in ("third.log", "fourth.log"))
    handles.open(third, create=True)
    third.is_dirty = True

    for file in held:
        file.is_dirty = file.was_used = False
        handles.let_go(file)
    handles.open(fourth, create=True)

    assert [file.fd for file in held] == [-1, -1]
    assert handles.open_files == 2


def test_files_that_readers_let_go_without_a_word_are_found(tmp_path: Path) -> None:
    handles = Handles(LocalFiles(), max_open=2)
    held = opened(handles, tmp_path, 2)
    for file in held:
        file.pins = 1
    handles.open(LogFile(str(tmp_path / "third.log")), create=True)

    for file in held:
        file.pins, file.was_used = 0, False
    for number in range(4, 10):
        handles.open(LogFile(str(tmp_path / f"{number}.log")), create=True)

    assert [file.fd for file in held] == [-1, -1]
    assert not handles.is_over_budget
