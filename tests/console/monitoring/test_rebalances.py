"""How often a group rebalances, whatever its coordinators have counted."""

from console.monitoring.rebalances import MANY, SLOT_MS, SLOTS, Rebalances

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
    found.look(now_ms + (SLOTS - 1) * SLOT_MS)
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
