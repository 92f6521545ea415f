"""Which segment holds an offset."""

from pathlib import Path

import pytest

from brokers.storage.files import LocalFiles
from brokers.storage.handles import Handles
from brokers.storage.segment import Segment
from brokers.storage.segments import Segments


def segments(folder: Path, *bases: int) -> Segments:
    handles = Handles(LocalFiles(), max_open=16)
    made = []
    for base in bases:
        segment = Segment(handles, str(folder), base)
        segment.size = 1_000
        made.append(segment)
    return Segments(made)


@pytest.mark.parametrize(
    ("offset", "base"), [(0, 100), (100, 100), (149, 100), (150, 150), (399, 150), (9_999, 400)]
)
def test_an_offset_is_looked_for_in_the_last_segment_that_begins_at_or_before_it(
    tmp_path: Path, offset: int, base: int
) -> None:
    assert segments(tmp_path, 100, 150, 400).holding(offset).base_offset == base


def test_positions_count_through_all_segments(tmp_path: Path) -> None:
    assert [segment.start for segment in segments(tmp_path, 0, 10, 20)] == [0, 1_000, 2_000]


def test_a_segment_ends_where_the_next_one_begins_and_the_last_where_the_log_does(
    tmp_path: Path,
) -> None:
    made = segments(tmp_path, 0, 10, 20)

    assert [made.end_of(index, 33) for index in range(3)] == [10, 20, 33]


def test_the_oldest_are_taken_oldest_first_and_the_newest_newest_first(tmp_path: Path) -> None:
    made = segments(tmp_path, 0, 10, 20, 30, 40)

    assert [segment.base_offset for segment in made.take_oldest(2)] == [0, 10]
    assert [segment.base_offset for segment in made.take_newest(1)] == [40, 30]
    assert [segment.base_offset for segment in made] == [20]
    assert made.active is made[0]


def test_the_active_segment_cannot_be_taken_as_an_old_one(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="2 of 2"):
        segments(tmp_path, 0, 10).take_oldest(2)


def test_segments_must_come_in_order(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="in order"):
        segments(tmp_path, 10, 0)


def test_replacement_keeps_the_segments_after_it(tmp_path: Path) -> None:
    made = segments(tmp_path, 0, 10, 20, 30, 40)
    new = Segment(made.active.handles, str(tmp_path), 10, marker=".swap")
    new.size = 100

    made.replace(1, 2, new)

    assert [segment.base_offset for segment in made] == [0, 10, 30, 40]
    assert made.holding(25) is new
    assert [segment.start for segment in made] == [1_900, 2_900, 3_000, 4_000]


@pytest.mark.parametrize(("first", "count"), [(0, 2), (1, 1), (0, 0)])
def test_the_active_segment_is_never_replaced_nor_is_nothing(
    tmp_path: Path, first: int, count: int
) -> None:
    made = segments(tmp_path, 0, 10)

    with pytest.raises(AssertionError):
        made.replace(first, count, made[first])
