"""Ratios of pairs: a difference that chance explains is no loss, and a larger one is."""

import math
import random

import pytest

from bench.paired import interval, order


def pairs_of(ratio: float, *, noise: float, count: int = 8) -> list[tuple[float, float]]:
    """Return pairs that differ by a ratio, on a machine whose speed changes from pair to pair."""
    source = random.Random(20261120)
    found = []
    for _ in range(count):
        before = source.uniform(0.7, 1.3)
        found.append((before, before * ratio * math.exp(source.gauss(0, noise))))
    return found


def test_interval_of_known_pairs_is_that_of_student() -> None:
    found = interval([(1.0, math.exp(x)) for x in (0.00, 0.02, 0.04, 0.06)])

    # Mean 0.03, standard error 0.025820 / 2, t of three degrees of freedom 3.182.
    assert math.log(found.ratio) == pytest.approx(0.03)
    assert math.log(found.low) == pytest.approx(0.03 - 3.182 * 0.0129099, abs=1e-6)
    assert math.log(found.high) == pytest.approx(0.03 + 3.182 * 0.0129099, abs=1e-6)


def test_speed_of_the_machine_cancels_out() -> None:
    found = interval(pairs_of(1.02, noise=0.0))

    assert (found.ratio, found.low, found.high) == pytest.approx((1.02, 1.02, 1.02))


@pytest.mark.parametrize(
    ("ratio", "noise", "is_above"),
    [(1.0, 0.02, False), (1.04, 0.1, False), (1.04, 0.003, True), (1.3, 0.05, True)],
)
def test_only_an_interval_that_is_wholly_above_its_bound_fails(
    ratio: float, noise: float, is_above: bool
) -> None:
    assert interval(pairs_of(ratio, noise=noise)).is_above(1.03) is is_above


def test_interval_of_the_inverse_is_the_inverse() -> None:
    pairs = pairs_of(1.1, noise=0.05)

    one, other = interval(pairs), interval([(after, before) for before, after in pairs])

    assert (one.low, one.high) == pytest.approx((1 / other.high, 1 / other.low))


def test_each_side_is_first_as_often_as_second() -> None:
    turns = list(order(8))

    assert turns[:4] == [(0, 1), (1, 0), (0, 1), (1, 0)]
    assert [sorted(turn) for turn in turns] == [[0, 1]] * 8
