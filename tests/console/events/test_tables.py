"""What a tick of the collector's tables says."""

import json
from typing import Any

from console.events.tables import Ticks, health
from tests.builders import live as rows
from tests.builders.live import CLUSTER_ID, Told

NOW_S = 1_790_000_000.0


def said(told: Told, ticks: Ticks, *, now_s: float = NOW_S) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(ticks.live(told.snapshot(), CLUSTER_ID, now_s=now_s))
    return value


def test_tables_that_can_be_believed_are_told_with_their_step() -> None:
    assert said(Told(), Ticks()) == {"state": "fresh", "step": ""}


def test_tables_that_are_old_say_since_when_and_say_it_once() -> None:
    told, ticks = Told(), Ticks()
    told.go_silent(age_s=5.2)
    first = said(told, ticks)
    told.go_silent(age_s=6.4)

    assert first == {"state": "stale", "step": "", "told_s": int(NOW_S - 5.2)}
    assert said(told, ticks, now_s=NOW_S + 1) == first


def test_tables_that_are_fresh_again_age_from_their_own_time() -> None:
    told, ticks = Told(), Ticks()
    told.go_silent(age_s=5.0)
    said(told, ticks)
    told.age_s = 0.2
    said(told, ticks)
    told.age_s = 7.0

    assert said(told, ticks, now_s=NOW_S + 100)["told_s"] == int(NOW_S + 93)


def test_nothing_is_told_of_a_cluster_that_the_collector_does_not_follow() -> None:
    away = Told()
    away.begin_silent()

    assert said(away, Ticks()) == {"state": "away"}
    assert said(Told(cluster_id="b" * 22), Ticks()) == {"state": "away"}
    assert health(away.snapshot(), CLUSTER_ID) == "{}"


def test_health_counts_what_needs_somebody() -> None:
    told = Told(offline_partitions=3)
    told.put(
        rows.group("fine"),
        rows.group("new", verdict="unknown"),
        rows.group("late", verdict="falling behind"),
        rows.group("dead", verdict="stopped"),
        rows.broker(1),
        rows.broker(2, failure="connection refused"),
    )

    assert json.loads(health(told.snapshot(), CLUSTER_ID)) == {
        "offline_partitions": 3,
        "silent_brokers": 1,
    }
