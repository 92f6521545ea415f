"""A disk that fails exactly when it is told to."""

import errno
import os
from pathlib import Path

import pytest

from brokers.storage.files import replace_file, write_all
from tests.fakes.faulty_files import SYNCS, Call, Fault, FaultyFiles

NEW = os.O_RDWR | os.O_CREAT


def test_without_a_fault_every_changing_call_is_counted(tmp_path: Path) -> None:
    files = FaultyFiles()

    replace_file(files, str(tmp_path / "a"), b"x")

    temporary = str(tmp_path / "a.tmp")
    assert files.calls == [
        Call(kind="open", path=temporary),
        Call(kind="write", path=temporary),
        Call(kind="datasync", path=temporary),
        Call(kind="rename", path=temporary),
        Call(kind="sync_folder", path=str(tmp_path)),
    ]


@pytest.mark.parametrize("at", range(5))
def test_the_call_asked_for_fails_and_the_next_one_works(tmp_path: Path, at: int) -> None:
    files = FaultyFiles(Fault(at=at, error=errno.EIO))

    with pytest.raises(OSError, match="Input/output") as caught:
        replace_file(files, str(tmp_path / "a"), b"x")
    replace_file(files, str(tmp_path / "a"), b"x")

    assert caught.value.errno == errno.EIO
    assert len(files.failed) == 1
    assert files.calls.index(files.failed[0]) == at


def test_a_lasting_fault_goes_on_until_the_disk_is_healed(tmp_path: Path) -> None:
    files = FaultyFiles(Fault(at=0, error=errno.ENOSPC, is_lasting=True))
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            files.open(str(tmp_path / "a"), NEW)

    files.heal()

    files.close(files.open(str(tmp_path / "a"), NEW))


def test_a_torn_write_takes_a_part_and_fails_the_next_time(tmp_path: Path) -> None:
    files = FaultyFiles(Fault(at=1, error=errno.ENOSPC, is_torn=True))
    fd = files.open(str(tmp_path / "a"), NEW)

    with pytest.raises(OSError, match="No space"):
        write_all(files, fd, b"0123456789")

    assert files.pread(fd, 100, 0) == b"01234"
    files.close(fd)


def test_a_fault_may_concern_some_kinds_only(tmp_path: Path) -> None:
    files = FaultyFiles(Fault(at=1, error=errno.EIO, kinds=SYNCS))
    fd = files.open(str(tmp_path / "a"), NEW)
    files.write(fd, b"x")
    files.datasync(fd)

    with pytest.raises(OSError, match="Input/output"):
        files.sync_folder(str(tmp_path))
    files.close(fd)


def test_reads_fail_only_when_asked_for(tmp_path: Path) -> None:
    files = FaultyFiles(Fault(at=0, error=errno.EIO, kinds=frozenset({"pread"})))
    fd = files.open(str(tmp_path / "a"), NEW)
    files.write(fd, b"x")

    with pytest.raises(OSError, match="Input/output"):
        files.pread(fd, 1, 0)
    assert files.pread(fd, 1, 0) == b"x"
    files.close(fd)
