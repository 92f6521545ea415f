"""Snapshot files of a folder: which one serves, and which ones go."""

from pathlib import Path

import pytest

from brokers.protocol.records.batch import HEADER, Batch
from brokers.storage.files import LocalFiles
from brokers.storage.producer_snapshots import ProducerSnapshots
from brokers.storage.producer_state import ProducerStates


def states(last_sequence: int) -> ProducerStates:
    made = ProducerStates()
    header = HEADER.pack(0, 49, 0, 2, 0, 0, 0, 5, 5, 1, 0, last_sequence, 1)
    made.update(Batch(memoryview(bytearray(header))), 0, 5)
    return made


@pytest.fixture
def snapshots(tmp_path: Path) -> ProducerSnapshots:
    made = ProducerSnapshots(LocalFiles(), str(tmp_path))
    for offset in (10, 20, 30):
        made.save(offset, states(offset))
    return made


def loaded(snapshots: ProducerSnapshots, at_least: int, at_most: int) -> tuple[int | None, int]:
    into = states(99)
    offset = snapshots.load_newest(into, at_least, at_most)
    return offset, next((info.last_sequence for info in into.active()), -1)


def test_snapshots_are_named_by_their_offset(snapshots: ProducerSnapshots, tmp_path: Path) -> None:
    (tmp_path / "00000000000000000040.snapshot.deleted").write_bytes(b"")
    (tmp_path / "00000000000000000050.log").write_bytes(b"")

    assert snapshots.offsets() == [10, 20, 30]
    assert (tmp_path / "00000000000000000010.snapshot").exists()


def test_the_newest_within_the_bounds_is_loaded(snapshots: ProducerSnapshots) -> None:
    assert loaded(snapshots, 0, 100) == (30, 30)
    assert loaded(snapshots, 0, 29) == (20, 20)
    assert loaded(snapshots, 20, 20) == (20, 20)


def test_without_one_in_bounds_nothing_is_known(snapshots: ProducerSnapshots) -> None:
    assert loaded(snapshots, 11, 19) == (None, -1)


@pytest.mark.parametrize("content", [b"", b"garbage", bytes(56)])
def test_a_damaged_snapshot_is_removed_and_the_older_one_serves(
    snapshots: ProducerSnapshots, content: bytes
) -> None:
    Path(snapshots.path(30)).write_bytes(content)

    assert loaded(snapshots, 0, 100) == (20, 20)
    assert snapshots.offsets() == [10, 20]


def test_truncation_removes_the_snapshots_of_a_future_taken_back(
    snapshots: ProducerSnapshots,
) -> None:
    snapshots.remove_above(20)

    assert snapshots.offsets() == [10, 20]


def test_strays_go_but_the_one_that_the_last_close_wrote_stays(
    snapshots: ProducerSnapshots,
) -> None:
    snapshots.remove_strays({0, 10})

    assert snapshots.offsets() == [10, 30]
    snapshots.remove_strays({0, 40})
    assert snapshots.offsets() == []


def test_a_second_save_at_an_offset_replaces_the_first(snapshots: ProducerSnapshots) -> None:
    snapshots.save(30, states(31))

    assert loaded(snapshots, 0, 100) == (30, 31)
