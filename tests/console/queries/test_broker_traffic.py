"""Requests and clients of the last minute, from counts that only grow."""

from collections.abc import Mapping
from typing import Any

import pytest

from console.queries.broker_traffic import quantile, traffic_of

BOUNDS = (1.0, 2.0, 4.0)


def detail(**values: Any) -> Mapping[str, Any]:
    return {
        "ms": 60_000,
        "bucket_bounds_ms": BOUNDS,
        "apis": [],
        "clients": [],
        "earlier": None,
        "groups": [],
        "group_count": 0,
        **values,
    }


def test_only_what_came_in_the_window_counts() -> None:
    earlier = {"ms": 0, "apis": [["Produce", 1000, 5, [1000, 0, 0, 0]]], "clients": []}
    told = detail(apis=[["Produce", 1600, 8, [1000, 600, 0, 0]]], earlier=earlier)

    found = traffic_of(told)

    assert found.window_s == 60
    (api,) = found.apis
    assert (api.requests, api.errors, api.per_s) == (600, 3, 10.0)
    # All of the six hundred took between one and two milliseconds.
    assert api.p50_ms == pytest.approx(1.5)
    assert api.p99_ms == pytest.approx(1.99)


def test_without_an_earlier_count_all_since_the_start_is_told() -> None:
    found = traffic_of(detail(apis=[["Fetch", 10, 0, [10, 0, 0, 0]]]))

    assert found.window_s is None
    assert (found.apis[0].requests, found.apis[0].per_s) == (10, None)


def test_an_api_that_nobody_used_meanwhile_is_left_out() -> None:
    row = ["Fetch", 10, 0, [10, 0, 0, 0]]
    earlier = {"ms": 0, "apis": [row], "clients": []}

    assert traffic_of(detail(apis=[row], earlier=earlier)).apis == ()


def test_clients_stand_by_their_traffic_and_the_rest_last() -> None:
    before = {"ms": 0, "apis": [], "clients": [["slow", "java", "4", 1, 600, 0, 60]]}
    clients = [
        [None, None, None, 9, 10**9, 0, 5],
        ["slow", "java", "4", 1, 1200, 0, 120],
        ["new", None, None, 2, 60_000, 0, 60],
    ]

    found = traffic_of(detail(clients=clients, earlier=before))

    assert [row.client_id for row in found.clients] == ["new", "slow", None]
    assert found.clients[1].in_per_s == 10
    assert found.clients[0].in_per_s == 1000
    assert found.clients[0].software == ""


def test_a_client_that_is_counted_anew_has_no_negative_rate() -> None:
    before = {"ms": 0, "apis": [], "clients": [["a", "x", "1", 1, 10**6, 0, 10]]}

    found = traffic_of(detail(clients=[["a", "x", "1", 1, 600, 0, 1]], earlier=before))

    assert found.clients[0].in_per_s == 10


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [
        ([0, 0, 0, 0], 0.5, None),
        ([100, 0, 0, 0], 0.5, 0.5),
        ([50, 50, 0, 0], 0.5, 1.0),
        # Nothing is known of the end of the last bucket.
        ([0, 0, 0, 7], 0.99, 4.0),
    ],
)
def test_a_quantile_lies_in_its_bucket(
    counts: list[int], share: float, expected: float | None
) -> None:
    found = quantile(counts, BOUNDS, share)

    assert found == expected if expected is None else found == pytest.approx(expected)
