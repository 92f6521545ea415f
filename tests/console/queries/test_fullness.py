"""When a disk is full is a range that holds the truth, or words that promise nothing."""

import pytest

from console.queries import live
from console.queries.fullness import (
    EARLY,
    KEPT_S,
    NOT_FILLING,
    UNKNOWN,
    Forecasts,
    estimate,
    fullness_of,
)
from tests.builders.live import Told

STEP_S = 300
DAY = 288
GB = 10**9


def falling(per_day: float, *, samples: int = DAY, free: float = 100 * GB) -> list[float]:
    """Return free bytes that end at `free` and fall by so many a day."""
    step = per_day / DAY
    return [free + step * (samples - 1 - at) for at in range(samples)]


@pytest.mark.parametrize(
    ("per_day", "days", "state"),
    [(10 * GB, 10, "warn"), (1 * GB, 100, "ok"), (80 * GB, 1.25, "bad")],
)
def test_a_disk_that_fills_evenly_has_its_day(per_day: float, days: float, state: str) -> None:
    found = estimate(falling(per_day), step_s=STEP_S)

    assert found.low_days == pytest.approx(days, rel=0.01)
    assert found.high_days == pytest.approx(days, rel=0.01)
    assert found.state == state


def test_a_burst_and_a_quiet_day_make_a_range() -> None:
    quiet = [118 * GB] * (DAY - 72)
    burst = falling(72 * GB, samples=72)

    found = estimate([*quiet, *burst], step_s=STEP_S)

    assert found.low_days == pytest.approx(100 / 72, rel=0.02)
    assert found.high_days is not None
    assert found.high_days > 3 * (found.low_days or 0)
    assert found.words.startswith("in 1.4 d to ")


def test_a_disk_that_does_not_fill_says_so() -> None:
    assert estimate([100 * GB] * DAY, step_s=STEP_S) == NOT_FILLING
    assert estimate(falling(-GB), step_s=STEP_S) == NOT_FILLING


@pytest.mark.parametrize("samples", [[], [None] * DAY, [1.0] * 3, [None] * 100 + [5.0]])
def test_a_few_samples_promise_nothing(samples: list[float | None]) -> None:
    assert estimate(samples, step_s=STEP_S) == EARLY


def test_gaps_are_no_zeros() -> None:
    samples: list[float | None] = [*falling(10 * GB)]
    samples[100:200] = [None] * 100

    assert estimate(samples, step_s=STEP_S).low_days == pytest.approx(10, rel=0.01)


def test_without_a_collector_it_is_not_known(told: Told) -> None:
    told.begin_silent()

    assert fullness_of(1) == UNKNOWN


def test_a_forecast_is_kept_for_a_minute(told: Told) -> None:
    told.answers["/series"] = {"step_s": STEP_S, "samples": falling(10 * GB)}
    now = 0.0
    kept = Forecasts(monotonic=lambda: now)

    first = kept.of([1, 2])
    kept.of([1, 2])
    asked = len(told.asked)
    now = KEPT_S + 1
    kept.of([1])

    assert first[1].state == "warn"
    # A disk that fills is asked about twice: for its free bytes, and for its logs.
    assert (asked, len(told.asked)) == (4, 6)


def test_a_silent_collector_is_asked_once_for_all_brokers_and_again_the_next_time(
    told: Told,
) -> None:
    told.go_silent()
    kept = Forecasts()

    assert set(kept.of(range(24)).values()) == {UNKNOWN}
    assert len(told.asked) == 1
    kept.of([1])
    assert len(told.asked) == 2


def test_the_growth_of_the_logs_is_told_beside_that_of_the_disk(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = {"disk_free_bytes": falling(10 * GB), "log_bytes": falling(-2 * GB)}

    def ask(_path: str, *, metric: str, **_query: object) -> dict[str, object]:
        return {"step_s": STEP_S, "samples": series[metric]}

    monkeypatch.setattr(live, "ask", ask)

    found = fullness_of(1)

    assert found.fills_per_day == pytest.approx(10 * GB, rel=0.01)
    assert found.logs_per_day == pytest.approx(2 * GB, rel=0.01)
