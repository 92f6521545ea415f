"""Both clocks keep the same promises; one of them moves only when told."""

import pytest

from brokers.clock import Clock, SystemClock, iso_time
from tests.fakes.clock import ManualClock


@pytest.mark.parametrize("clock", [SystemClock(), ManualClock()])
def test_a_clock_tells_milliseconds_and_never_goes_back(clock: Clock) -> None:
    before = clock.monotonic()

    assert clock.now_ms() > 1_600_000_000_000
    assert clock.monotonic() >= before


def test_a_manual_clock_moves_both_times_together() -> None:
    clock = ManualClock(now_ms=5_000)

    clock.advance(1_500)

    assert clock.now_ms() == 6_500
    assert clock.monotonic() == 1.5


def test_wall_time_may_be_set_back_without_touching_the_other() -> None:
    clock = ManualClock(now_ms=5_000)
    clock.advance(1_000)

    clock.set_wall(100)

    assert clock.now_ms() == 100
    assert clock.monotonic() == 1.0


def test_a_manual_clock_refuses_to_go_back() -> None:
    with pytest.raises(AssertionError):
        ManualClock().advance(-1)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
        (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
    ],
)
def test_times_are_written_as_the_calendar_has_them(ms: int, text: str) -> None:
    assert iso_time(ms) == text
