"""Segments out of service go when their time has come and nobody holds them."""

import errno
from pathlib import Path

import pytest

from brokers.storage.deletions import Deletions
from brokers.storage.errors import LogDirFailed
from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.segment import Segment
from tests.fakes.faulty_files import Fault, FaultyFiles


@pytest.fixture
def handles() -> Handles:
    return Handles(LocalFiles(), max_open=16)


def segment(handles: Handles, folder: Path, base_offset: int = 7) -> Segment:
    made = Segment(handles, str(folder), base_offset)
    handles.open(made.file, create=True)
    made.forget_indexes()
    made.seal()
    return made


def names(folder: Path) -> list[str]:
    return sorted(path.name[18:] for path in folder.iterdir())


def test_files_are_renamed_at_once_and_unlinked_when_due(tmp_path: Path, handles: Handles) -> None:
    deletions = Deletions(handles)

    deletions.add([segment(handles, tmp_path)], due_ms=50)
    deletions.finish(49)
    assert names(tmp_path) == ["07.index.deleted", "07.log.deleted", "07.timeindex.deleted"]
    assert len(deletions) == 1

    deletions.finish(50)
    assert names(tmp_path) == []
    assert len(deletions) == 0
    assert handles.open_files == 0


def test_a_pinned_segment_waits_open(tmp_path: Path, handles: Handles) -> None:
    deletions = Deletions(handles)
    held = segment(handles, tmp_path)
    held.file.pins = 1
    deletions.add([held], due_ms=0)

    deletions.finish(1)
    assert held.file.fd >= 0
    assert len(deletions) == 1

    held.file.pins = 0
    deletions.finish(1)
    assert names(tmp_path) == []


def test_the_same_segment_may_be_made_and_deleted_again(tmp_path: Path, handles: Handles) -> None:
    deletions = Deletions(handles)
    for _ in range(3):
        deletions.add([segment(handles, tmp_path)], due_ms=5)

    deletions.finish(5)

    assert names(tmp_path) == []


def test_a_release_closes_and_leaves_the_files_to_the_next_start(
    tmp_path: Path, handles: Handles
) -> None:
    deletions = Deletions(handles)
    deletions.add([segment(handles, tmp_path)], due_ms=5)

    deletions.release()

    assert handles.open_files == 0
    assert len(names(tmp_path)) == 3


@pytest.mark.parametrize("number", range(6))
def test_a_refused_deletion_leaves_every_name_as_it_was(tmp_path: Path, number: int) -> None:
    files = FaultyFiles()
    handles = Handles(files, max_open=16)
    segments = [segment(handles, tmp_path, base) for base in (7, 8)]
    before = names(tmp_path)
    files.plan(Fault(at=number, error=errno.ENOSPC, kinds=frozenset({"rename"})))
    deletions = Deletions(handles)

    with pytest.raises(OSError, match="No space"):
        deletions.add(segments, due_ms=0)

    assert files.failed
    assert names(tmp_path) == before
    assert len(deletions) == 0
    assert handles.failure is None


def test_a_deletion_that_is_taken_back_leaves_every_name_as_it_was(
    tmp_path: Path, handles: Handles
) -> None:
    segments = [segment(handles, tmp_path, base) for base in (7, 8)]
    before = names(tmp_path)
    deletions = Deletions(handles)

    deletions.take_back(segments, deletions.add(segments, due_ms=0))

    assert names(tmp_path) == before
    assert len(deletions) == 0


def test_names_that_cannot_be_given_back_end_the_log_dir(tmp_path: Path) -> None:
    files = FaultyFiles()
    handles = Handles(files, max_open=16)
    held = segment(handles, tmp_path)
    files.plan(Fault(at=1, error=errno.ENOSPC, kinds=frozenset({"rename"}), is_lasting=True))

    with pytest.raises(LogDirFailed):
        Deletions(handles).add([held], due_ms=0)

    assert handles.failure is not None
