"""The contract of the file layer, which the fakes must meet as well as the operating system."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.storage.errors import StorageCorrupt
from brokers.storage.files import Files, LocalFiles, read_file, replace_file, write_all, write_file
from tests.fakes.crash_files import CrashFiles
from tests.fakes.faulty_files import FaultyFiles

NEW = os.O_RDWR | os.O_CREAT


@pytest.fixture(params=["local", "faulty", "crash"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    if request.param == "crash":
        with CrashFiles(str(tmp_path / "live"), str(tmp_path / "journal")) as crash_files:
            yield crash_files
    else:
        yield LocalFiles() if request.param == "local" else FaultyFiles()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    os.makedirs(tmp_path / "live", exist_ok=True)
    return str(tmp_path / "live")


def test_writes_continue_at_the_end_of_the_last_one(files: Files, folder: str) -> None:
    fd = files.open(f"{folder}/a", NEW)

    assert files.write(fd, b"one") == 3
    assert files.write(fd, memoryview(b"two")) == 3

    assert files.pread(fd, 100, 0) == b"onetwo"
    assert files.size(fd) == 6
    files.close(fd)


def test_positioned_writes_do_not_move_the_position(files: Files, folder: str) -> None:
    fd = files.open(f"{folder}/a", NEW)
    files.write(fd, b"......")

    assert files.pwrite(fd, b"ab", 1) == 2
    files.write(fd, b"!")

    assert files.pread(fd, 100, 0) == b".ab...!"
    files.close(fd)


def test_a_seek_and_a_truncate_let_a_writer_go_back(files: Files, folder: str) -> None:
    fd = files.open(f"{folder}/a", NEW)
    files.write(fd, b"partial")

    files.truncate(fd, 4)
    files.seek(fd, 4)
    files.write(fd, b"!")

    assert files.pread(fd, 100, 0) == b"part!"
    files.close(fd)


def test_a_read_past_the_end_is_short(files: Files, folder: str) -> None:
    fd = files.open(f"{folder}/a", NEW)
    files.write(fd, b"abc")

    assert files.pread(fd, 10, 1) == b"bc"
    assert files.pread(fd, 10, 3) == b""
    files.close(fd)


def test_opening_with_truncation_empties_the_file(files: Files, folder: str) -> None:
    write_file(files, f"{folder}/a", b"old")

    fd = files.open(f"{folder}/a", NEW | os.O_TRUNC)

    assert files.size(fd) == 0
    files.close(fd)


def test_descriptors_are_not_inherited(files: Files, folder: str) -> None:
    fd = files.open(f"{folder}/a", NEW)

    assert not os.get_inheritable(fd)
    files.close(fd)


def test_a_rename_replaces_its_target(files: Files, folder: str) -> None:
    write_file(files, f"{folder}/a", b"new")
    write_file(files, f"{folder}/b", b"old")

    files.rename(f"{folder}/a", f"{folder}/b")
    files.sync_folder(folder)

    assert files.list_folder(folder) == ["b"]
    assert read_file(files, f"{folder}/b") == b"new"


def test_folders_are_made_listed_renamed_and_removed(files: Files, folder: str) -> None:
    files.make_folder(f"{folder}/t-0")
    write_file(files, f"{folder}/t-0/a", b"x")
    files.rename(f"{folder}/t-0", f"{folder}/t-1")

    assert sorted(files.list_folder(folder)) == ["t-1"]
    assert files.exists(f"{folder}/t-1/a")

    files.unlink(f"{folder}/t-1/a")
    files.remove_folder(f"{folder}/t-1")
    assert not files.exists(f"{folder}/t-1")


def test_a_file_that_is_unlinked_lives_on_for_its_descriptors(files: Files, folder: str) -> None:
    fd = files.open(f"{folder}/a", NEW)
    files.write(fd, b"still here")

    files.unlink(f"{folder}/a")
    files.datasync(fd)

    assert files.pread(fd, 100, 0) == b"still here"
    files.close(fd)


def test_missing_file_raises_file_not_found(files: Files, folder: str) -> None:
    with pytest.raises(FileNotFoundError):
        files.open(f"{folder}/none", os.O_RDONLY)
    with pytest.raises(FileNotFoundError):
        files.unlink(f"{folder}/none")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{folder}/none", f"{folder}/a")
    with pytest.raises(FileNotFoundError):
        files.list_folder(f"{folder}/none")
    assert not files.exists(f"{folder}/none/deeper")


def test_a_folder_that_is_not_empty_is_not_removed(files: Files, folder: str) -> None:
    files.make_folder(f"{folder}/t-0")
    write_file(files, f"{folder}/t-0/a", b"x")

    with pytest.raises(OSError, match="not empty"):
        files.remove_folder(f"{folder}/t-0")


def test_a_replaced_file_is_whole_and_leaves_nothing_else(files: Files, folder: str) -> None:
    replace_file(files, f"{folder}/a", b"first, the longer one")
    replace_file(files, f"{folder}/a", b"second")

    assert read_file(files, f"{folder}/a") == b"second"
    assert files.list_folder(folder) == ["a"]


def test_a_small_file_is_not_read_past_its_limit(files: Files, folder: str) -> None:
    write_file(files, f"{folder}/a", b"12345")

    assert read_file(files, f"{folder}/a", 5) == b"12345"
    with pytest.raises(StorageCorrupt, match="5 bytes long, at most 4"):
        read_file(files, f"{folder}/a", 4)


def test_short_writes_are_gone_on_with(tmp_path: Path) -> None:
    files = FaultyFiles()
    files.shorten("write", 1)
    fd = files.open(str(tmp_path / "a"), NEW)

    write_all(files, fd, b"0123456789")

    assert files.pread(fd, 100, 0) == b"0123456789"
    files.close(fd)


def test_a_disk_error_is_not_taken_for_a_missing_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: str) -> os.stat_result:
        raise OSError(errno.EIO, "broken", path)

    monkeypatch.setattr(os, "stat", broken)

    with pytest.raises(OSError, match="broken"):
        LocalFiles().exists(str(tmp_path))
