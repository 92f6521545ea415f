"""A process that served comes back at once; one that ends again and again is tried less often."""

from brokers.supervisor.restarts import (
    FIRST_DELAY,
    LOOP_NEVER_SERVED,
    LOOP_SERVED_BRIEFLY,
    MAX_DELAY,
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


def test_delays_are_limited() -> None:
    assert after(*[None] * 5000).delay == MAX_DELAY


def test_a_process_that_ends_soon_after_it_served_is_tried_less_and_less_often() -> None:
    assert after(*[2.0] * 10).delay == MAX_DELAY
    assert sum(after(*[2.0] * times).delay for times in range(1, 13)) > 180


def test_a_few_kills_in_a_row_cost_seconds() -> None:
    assert after(*[1.0] * 4).delay < 2


def test_stability_forgets_earlier_failures() -> None:
    restarts = after(*[None] * 9, STABLE_SECONDS)
    assert restarts.delay == FIRST_DELAY
    assert not restarts.is_crash_loop


def test_failures_to_serve_in_a_row_are_a_crash_loop() -> None:
    assert not after(*[None] * (LOOP_NEVER_SERVED - 1)).is_crash_loop
    assert after(*[None] * LOOP_NEVER_SERVED).is_crash_loop


def test_brief_service_again_and_again_is_a_crash_loop() -> None:
    assert not after(*[1.0] * (LOOP_SERVED_BRIEFLY - 1)).is_crash_loop
    assert after(*[1.0] * LOOP_SERVED_BRIEFLY).is_crash_loop


def test_all_restarts_are_counted() -> None:
    assert after(None, 3600, None).total == 3
