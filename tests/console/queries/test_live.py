"""What pages know of the brokers."""

from pathlib import Path

from console.monitoring.selectors import Follower, Reach, Snapshot
from console.queries import live
from console.queries.live import LiveState
from tests.builders import live as rows
from tests.builders.live import CLUSTER_ID, Told


def test_tables_are_those_of_the_collector(told: Told) -> None:
    told.put(rows.topic("payments", size_bytes=5), rows.pair("billing", "payments", lag=3))

    found = live.of(CLUSTER_ID)

    assert found.is_fresh
    assert found.age_s == 0
    assert found.snapshot.topics()["payments"].size_bytes == 5
    pair = found.snapshot.pair("billing", "payments")
    assert pair is not None
    assert pair.lag == 3


def test_a_collector_that_died_leaves_its_tables_with_their_age(told: Told) -> None:
    told.put(rows.topic("payments"))
    told.go_silent(age_s=7.9)

    found = live.of(CLUSTER_ID)

    assert (found.state, found.age_s) == (LiveState.STALE, 7)
    assert found.reason == "the collector is away"
    assert "payments" in found.snapshot.topics()


def test_nothing_was_ever_told(told: Told) -> None:
    told.begin_silent()

    found = live.of(CLUSTER_ID)

    assert (found.state, found.age_s) == (LiveState.AWAY, None)
    assert found.snapshot.topics() == {}
    assert "No such file" in found.reason


def test_tables_of_another_cluster_are_not_shown(told: Told) -> None:
    told.put(rows.topic("payments"))

    found = live.of("another-cluster")

    assert found.is_away
    assert found.snapshot.topics() == {}
    assert CLUSTER_ID in found.reason


def test_a_follower_is_waited_for_until_it_has_read_what_is_new(tmp_path: Path) -> None:
    follower = Follower(Reach(socket=tmp_path / "nothing.sock"))
    looks: list[str] = []

    def is_new(found: Snapshot) -> bool:
        looks.append(found.failure)
        return len(looks) > 1

    try:
        assert follower.wait(is_new, seconds=60)
        assert not follower.wait(lambda _found: False, seconds=0)
    finally:
        follower.close()
    # It looked before it waited, and again once the collector had been asked.
    assert len(looks) == 2
