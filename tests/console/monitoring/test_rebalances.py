"""How often a group rebalances, whatever its coordinators have counted."""

from console.monitoring.observed import MAX_DEPARTED, Observed
from console.monitoring.rebalances import MANY, SLOT_MS, SLOTS, Rebalances
from tests.fakes.broker_feed import Feed

T0 = 1_700_000_000_000
FIRST, SECOND = (1, "run-1"), (2, "run-1")


def flapping(*, every_ms: int, for_ms: int) -> tuple[Rebalances, int]:
    """Return a group that rebalances so often, and the time after that."""
    found = Rebalances()
    found.take(0, FIRST, T0)
    for number in range(1, for_ms // every_ms + 1):
        found.take(number, FIRST, T0 + number * every_ms)
        found.look(T0 + number * every_ms)
    return found, T0 + for_ms


def test_group_that_rebalances_each_twelve_seconds_does_so_again_and_again() -> None:
    found, _now_ms = flapping(every_ms=12_000, for_ms=180_000)

    assert found.since_ms
    assert (found.total, found.recent) == (15, 15)


def test_members_that_are_replaced_one_by_one_are_no_alarm() -> None:
    found, _now_ms = flapping(every_ms=5_000, for_ms=(MANY - 2) * SLOT_MS)

    assert not found.since_ms


def test_alarm_ends_once_the_group_has_settled_and_not_at_its_first_rest() -> None:
    found, now_ms = flapping(every_ms=12_000, for_ms=600_000)

    found.look(now_ms + 2 * SLOT_MS)
    assert found.since_ms
    found.look(now_ms + 5 * SLOT_MS)
    assert not found.since_ms
    found.look(now_ms + 2 * SLOTS * SLOT_MS)
    assert found.is_quiet
    assert found.total == 50


def test_counts_of_another_coordinator_and_of_another_run_are_all_new() -> None:
    found = Rebalances()
    found.take(177, FIRST, T0)
    assert (found.total, found.recent) == (177, 0)

    found.take(2, SECOND, T0 + 1_000)
    found.take(3, SECOND, T0 + 2_000)
    # More than before, and still another run's count.
    found.take(4, (2, "run-2"), T0 + 3_000)

    assert (found.total, found.recent) == (177 + 3 + 4, 7)


def test_count_that_falls_within_a_run_was_loaded_again() -> None:
    found = Rebalances()
    found.take(5, FIRST, T0)
    found.take(1, FIRST, T0 + 1_000)

    assert found.total == 6


def rebalance(observed: Observed, feed: Feed, name: str, *, count: int, now_ms: int) -> None:
    """Let a group appear, and then rebalance so often."""
    for number in range(count + 1):
        feed.put("groups", [name, "classic", "Stable", 1, 2, number])
        observed.take(1, feed.tell(), now_ms=now_ms)


def test_group_that_the_broker_removes_and_loads_again_keeps_its_rebalances() -> None:
    observed, feed = Observed(), Feed()
    rebalance(observed, feed, "flapping", count=3, now_ms=T0)
    feed.drop("groups", "flapping")
    observed.take(1, feed.tell(), now_ms=T0 + 5_000)
    assert "flapping" not in observed.groups

    rebalance(observed, feed, "flapping", count=2, now_ms=T0 + 12_000)

    assert observed.groups["flapping"].rebalances.total == 5
    assert "flapping" in observed.restless


def test_rebalances_of_removed_groups_are_bounded() -> None:
    observed, feed = Observed(), Feed()
    for number in range(MAX_DEPARTED + 1):
        rebalance(observed, feed, f"group-{number}", count=1, now_ms=T0)
        feed.drop("groups", f"group-{number}")
    observed.take(1, feed.tell(), now_ms=T0)

    rebalance(observed, feed, "group-0", count=1, now_ms=T0)
    rebalance(observed, feed, "group-1", count=1, now_ms=T0)

    assert observed.groups["group-0"].rebalances.total == 1
    assert observed.groups["group-1"].rebalances.total == 2
