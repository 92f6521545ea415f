"""A process that served comes back at once; one that never serves is tried ever more rarely."""

from brokers.supervisor.restarts import (
    CRASH_LOOP,
    FIRST_DELAY,
    MAX_DELAY_NEVER_SERVED,
    MAX_DELAY_SERVED,
    STABLE_SECONDS,
    Restarts,
)


def after(*served: float | None) -> Restarts:
    restarts = Restarts()
    for seconds in served:
        restarts = restarts.after_exit(seconds)
    return restarts


def test_the_first_restart_comes_at_once() -> None:
    assert after(3600).delay == FIRST_DELAY
    assert after(None).delay == FIRST_DELAY


def test_delays_double() -> None:
    assert [after(*[None] * times).delay for times in (1, 2, 3)] == [0.2, 0.4, 0.8]


def test_a_process_that_never_serves_is_tried_at_least_this_often() -> None:
    assert after(*[None] * 5000).delay == MAX_DELAY_NEVER_SERVED


def test_a_process_that_served_never_waits_long() -> None:
    assert after(*[1.0] * 50).delay == MAX_DELAY_SERVED


def test_stability_forgets_earlier_failures() -> None:
    assert after(*[None] * 9, STABLE_SECONDS).delay == FIRST_DELAY


def test_failures_to_serve_in_a_row_are_a_crash_loop() -> None:
    assert not after(*[None] * (CRASH_LOOP - 1)).is_crash_loop
    assert after(*[None] * CRASH_LOOP).is_crash_loop


def test_having_served_ends_a_crash_loop() -> None:
    assert not after(*[None] * CRASH_LOOP, 0.1).is_crash_loop


def test_all_restarts_are_counted() -> None:
    assert after(None, 3600, None).total == 3
