"""Blocks of samples as bytes."""

import math

import pytest

from console.monitoring.packing import Damaged, pack, roll_up, thin, unpack

NAN = math.nan


def test_what_is_packed_comes_back_with_its_gaps() -> None:
    data = pack(30, [[1.0, NAN, 3.0], [0.5, 0.5, 0.5]]) + pack(33, [[7.0], [NAN]])

    first, second = unpack(data, 2)

    assert (first.first, second.first) == (30, 33)
    assert str([list(samples) for samples in first.metrics]) == "[[1.0, nan, 3.0], [0.5, 0.5, 0.5]]"
    assert str([list(samples) for samples in second.metrics]) == "[[7.0], [nan]]"


def test_a_metric_that_does_not_change_takes_five_bytes() -> None:
    assert len(pack(0, [[5.0] * 30, [0.0] * 30])) == 4 + 5 + 5
    assert len(pack(0, [[NAN] * 30])) == 4 + 5


@pytest.mark.parametrize("cut", [1, 4, 5, 8, 12])
def test_a_row_that_is_cut_is_damaged(cut: int) -> None:
    with pytest.raises(Damaged):
        list(unpack(pack(0, [[1.0, 2.0, 3.0]])[:cut], 1))


def test_a_row_of_another_shape_is_damaged() -> None:
    with pytest.raises(Damaged):
        list(unpack(b"\x00\x00\xff\xff\x01" + bytes(100), 1))
    with pytest.raises(Damaged):
        list(unpack(b"\x00\x00\x01\x00\x07" + bytes(100), 1))


def test_a_minute_is_the_mean_of_the_samples_that_are_there() -> None:
    assert roll_up([1.0, 3.0, NAN, 2.0, NAN, NAN], 3)[0] == 2.0
    assert math.isnan(roll_up([NAN] * 6, 3)[1])
    assert roll_up([4.0] * 6, 3) == [4.0, 4.0]


def test_no_more_points_are_sent_than_asked_for() -> None:
    ratio, points = thin([float(value) for value in range(10_080)], 2_000)

    assert (ratio, len(points)) == (6, 1_680)
    assert points[0] == 2.5
    assert thin([1.0, NAN], 2_000)[0] == 1
