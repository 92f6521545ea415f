"""What is set aside is whole, keeps its name, and costs the log nothing if there is no room."""

import errno
from pathlib import Path

import pytest

from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.segment import Segment
from brokers.storage.set_aside import (
    copy_rest,
    set_damage_aside,
    set_segment_aside,
    unused_name,
)
from tests.fakes.faulty_files import WRITES, Fault, FaultyFiles

NOISE = bytes(range(1, 251)) * 10


def segment_with(
    folder: Path, data: bytes, files: FaultyFiles | None = None, *, base_offset: int = 0
) -> tuple[Handles, Segment]:
    """A segment as recovery has it, with both indexes on the disk."""
    handles = Handles(files or FaultyFiles(), max_open=16)
    segment = Segment(handles, str(folder), base_offset)
    for path in segment.paths()[:3]:
        Path(path).write_bytes(data)
    segment.size = len(data)
    return handles, segment


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name[17:]: path.read_bytes() for path in folder.iterdir()}


def test_a_name_is_never_used_twice(tmp_path: Path) -> None:
    path = str(tmp_path / "0.log")

    for expected in ("0.log.damaged", "0.log.2.damaged", "0.log.3.damaged"):
        name = unused_name(LocalFiles(), path)
        assert name == str(tmp_path / expected)
        Path(name).touch()


def test_a_segment_set_aside_leaves_nothing_that_is_derived(tmp_path: Path) -> None:
    handles, segment = segment_with(tmp_path, NOISE)

    set_segment_aside(handles, segment)

    assert contents(tmp_path) == {"000.log.damaged": NOISE}


def test_the_rest_of_a_file_is_copied_and_the_file_stays(tmp_path: Path) -> None:
    handles, segment = segment_with(tmp_path, NOISE)

    copy = copy_rest(handles, segment, 1_000)

    assert Path(copy).read_bytes() == NOISE[1_000:]
    assert Path(segment.file.path).read_bytes() == NOISE


def test_all_behind_the_end_is_set_aside_and_cut_off(tmp_path: Path) -> None:
    segment_with(tmp_path, b"later", base_offset=50)
    handles, segment = segment_with(tmp_path, NOISE)
    segment.size = 700

    moved = set_damage_aside(handles, segment, str(tmp_path))

    found = contents(tmp_path)
    assert sorted(Path(path).name[17:] for path in moved) == ["000.log.damaged", "050.log.damaged"]
    assert (found["000.log"], found["000.log.damaged"]) == (NOISE[:700], NOISE[700:])
    assert found["050.log.damaged"] == b"later"
    assert not any(name.startswith("050.") for name in found if not name.endswith(".damaged"))


def test_a_segment_without_a_rest_is_not_copied(tmp_path: Path) -> None:
    handles, segment = segment_with(tmp_path, NOISE)

    assert set_damage_aside(handles, segment, str(tmp_path)) == []
    assert set(contents(tmp_path)) == {"000.log", "000.index", "000.timeindex"}


def test_without_room_for_the_copy_all_stays_as_it_is(tmp_path: Path) -> None:
    segment_with(tmp_path, b"later", base_offset=50)
    files = FaultyFiles(Fault(at=0, error=errno.ENOSPC, kinds=WRITES, is_torn=True))
    handles, segment = segment_with(tmp_path, NOISE, files)
    segment.size = 700
    before = contents(tmp_path)

    with pytest.raises(OSError, match="No space"):
        set_damage_aside(handles, segment, str(tmp_path))

    assert contents(tmp_path) == before
