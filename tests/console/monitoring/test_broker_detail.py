"""A broker's detail has its counts, and what they were up to a minute ago."""

import pytest

from console.monitoring.broker_detail import MAX_NAMED_GROUPS, broker_detail
from console.monitoring.observed import Observed
from tests.fakes.broker_feed import NOW_MS, Feed


def api(requests: int) -> list[object]:
    return ["Produce", requests, 0, [requests, 0]]


def tell(observed: Observed, feed: Feed, requests: int, *, second: int) -> None:
    """Take in what a broker has counted, and note it, at a moment."""
    feed.put("apis", api(requests))
    observed.take(1, feed.tell(), now_ms=NOW_MS + second * 1000)
    observed.brokers[1].mark(NOW_MS + second * 1000)


def test_counts_of_a_minute_ago_stand_beside_those_of_now() -> None:
    observed, feed = Observed(), Feed()
    for number in range(20):
        tell(observed, feed, 100 * number, second=10 * number)

    found = broker_detail(observed, 1)

    assert found is not None
    assert found["apis"] == [api(1900)]
    assert found["earlier"]["ms"] == NOW_MS + 130_000
    assert found["earlier"]["apis"] == [api(1300)]


def test_counts_of_another_run_are_no_counts_of_a_minute_ago() -> None:
    observed, feed = Observed(), Feed()
    tell(observed, feed, 100, second=0)
    feed.restart()
    feed.put("apis", api(5))
    observed.take(1, feed.tell(), now_ms=NOW_MS + 10_000)

    found = broker_detail(observed, 1)

    assert found is not None
    assert found["earlier"] is None
    assert found["apis"] == [api(5)]


@pytest.mark.parametrize("count", [3, MAX_NAMED_GROUPS + 5])
def test_the_groups_that_it_coordinates_are_counted_and_some_are_named(count: int) -> None:
    observed, feed = Observed(), Feed()
    for number in range(count):
        feed.group(f"group-{number}")
    observed.take(1, feed.tell(), now_ms=NOW_MS)
    other = Feed("run-2")
    other.group("of another")
    observed.take(2, other.tell(), now_ms=NOW_MS)

    found = broker_detail(observed, 1)

    assert found is not None
    assert found["group_count"] == count
    assert len(found["groups"]) == min(count, MAX_NAMED_GROUPS)
    assert "of another" not in found["groups"]


def test_a_broker_that_is_not_there_has_no_detail() -> None:
    assert broker_detail(Observed(), 1) is None
