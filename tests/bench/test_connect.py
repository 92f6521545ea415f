"""What connectors cost is judged by its limits."""

import pytest

from bench.connect import at_rest, to_a_sink


def test_a_home_at_rest_is_judged_by_each_of_its_limits() -> None:
    rows = at_rest(2.5, 4.2, 600.0).rows

    assert [(row[1], row[3]) for row in rows] == [(2.5, "yes"), (4.2, "NO"), (600.0, "yes")]


@pytest.mark.parametrize(("slow", "verdict"), [(5, "yes"), (6, "NO")])
def test_one_record_in_twenty_may_be_late(slow: int, verdict: str) -> None:
    half, p95, slowest = to_a_sink([0.2] * (100 - slow) + [1.5] * slow).rows

    assert half[1] == pytest.approx(0.2)
    assert p95[3] == verdict
    assert slowest[1] == pytest.approx(1.5)
