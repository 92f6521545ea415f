"""Predicts when a disk is full, as a range, from its free space in the past.

Pure, except for `fullness_of`, which asks the collector. The range spans the trends of the last
hours and of the whole day: one alone takes a burst for a trend, or misses that a new one has begun.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from console.monitoring.selectors import CollectorFailed
from console.queries import live

DAY_S: Final = 86_400
# The time spans of the fitted lines: the newest six hours, and the day.
WINDOWS_S: Final = (6 * 3_600, DAY_S)
# A line through less data is mostly noise.
LEAST_S: Final = 1_800
LEAST_SAMPLES: Final = 6
# One sample every five minutes.
MAX_POINTS: Final = 288
# A trend over hours does not change within a minute, and pages refresh every few seconds.
KEPT_S: Final = 60.0
# As many brokers as pages request at once, for a few clusters.
MAX_KEPT: Final = 100
# A disk that takes longer than this is not shown as filling.
LONGEST_DAYS: Final = 365.0
# Days until full: time enough to order a disk, and time to act at once.
WARN_DAYS: Final = 14.0
BAD_DAYS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fullness:
    """The text of a page and the CSS class of its mark; the days if the disk is filling."""

    words: str
    state: str = "ok"
    low_days: float | None = None
    high_days: float | None = None
    # Bytes a day by which the disk fills, and the broker's logs on it grow, at the faster trend.
    fills_per_day: float | None = None
    logs_per_day: float | None = None


UNKNOWN: Final = Fullness(words="not known", state="stale")
EARLY: Final = Fullness(words="too early to say", state="stale")
NOT_FILLING: Final = Fullness(words="not filling")
NOW: Final = Fullness(words="now", state="bad", low_days=0.0, high_days=0.0)


class Forecasts:
    """Forecasts of the disks of brokers, cached for a minute. Thread-safe."""

    def __init__(self, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._kept: dict[int, tuple[float, Fullness]] = {}

    def of(self, broker_ids: Iterable[int]) -> dict[int, Fullness]:
        """Return the forecast of each broker; ask a collector that does not answer only once."""
        found = {}
        is_silent = False
        for broker_id in broker_ids:
            asked_at, known = self._kept.get(broker_id, (-math.inf, UNKNOWN))
            if known is UNKNOWN or self._monotonic() - asked_at > KEPT_S:
                known = UNKNOWN if is_silent else fullness_of(broker_id)
                is_silent = is_silent or known is UNKNOWN
                self._keep(broker_id, known)
            found[broker_id] = known
        return found

    def clear(self) -> None:
        self._kept.clear()

    def _keep(self, broker_id: int, known: Fullness) -> None:
        self._kept.pop(broker_id, None)
        self._kept[broker_id] = (self._monotonic(), known)
        while len(self._kept) > MAX_KEPT:
            self._kept.pop(next(iter(self._kept)), None)


forecasts: Final = Forecasts()


def fullness_of(broker_id: int, *, now_s: int | None = None) -> Fullness:
    """Return when the disk of a broker is full."""
    end_s = int(time.time()) if now_s is None else now_s
    times = {"from": end_s - DAY_S, "to": end_s, "max_points": MAX_POINTS}
    name = str(broker_id)
    try:
        told = live.ask("/series", kind="broker", name=name, metric="disk_free_bytes", **times)
        found = estimate(told["samples"], step_s=told["step_s"])
        if found.low_days is None:
            return found
        # Something grows: is it the broker's logs?
        logs = live.ask("/series", kind="broker", name=name, metric="log_bytes", **times)
    except CollectorFailed:
        return UNKNOWN
    trends = _trends(_points(logs["samples"], logs["step_s"]))
    return replace(found, logs_per_day=max(trends)) if trends else found


def estimate(samples: Sequence[float | None], *, step_s: float) -> Fullness:
    """Return the forecast for samples of free bytes, oldest first; None for a missing sample."""
    points = _points(samples, step_s)
    trends = _trends(points)
    if not trends:
        return EARLY
    free = points[-1][1]
    days = [free / -trend if trend < 0 else LONGEST_DAYS for trend in trends]
    low, high = min(days), max(days)
    if low >= LONGEST_DAYS:
        return NOT_FILLING
    state = "bad" if low < BAD_DAYS else "warn" if low < WARN_DAYS else "ok"
    return Fullness(
        words=_words(low, high),
        state=state,
        low_days=low,
        high_days=high,
        fills_per_day=-min(trends),
    )


def _points(samples: Sequence[float | None], step_s: float) -> list[tuple[float, float]]:
    return [(at * step_s, value) for at, value in enumerate(samples) if value is not None]


def _trends(points: Sequence[tuple[float, float]]) -> list[float]:
    """Return by how much a value changes a day, in each window; nothing from too few samples."""
    if len(points) < LEAST_SAMPLES or points[-1][0] - points[0][0] < LEAST_S:
        return []
    parts = [[point for point in points if point[0] >= points[-1][0] - w] for w in WINDOWS_S]
    return [slope(part) * DAY_S if len(part) >= LEAST_SAMPLES else 0.0 for part in parts]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the line through points, by least squares."""
    count = len(points)
    middle_x = sum(x for x, _ in points) / count
    middle_y = sum(y for _, y in points) / count
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    if not spread:
        return 0.0
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / spread


def _words(low: float, high: float) -> str:
    if high >= LONGEST_DAYS:
        return f"in {_days(low)} or later"
    first, last = _days(low), _days(high)
    return f"in {first}" if first == last else f"in {first} to {last}"


def _days(days: float) -> str:
    if days < 1:
        hours = max(1, round(days * 24))
        return f"{hours} h"
    return f"{days:.0f} d" if days >= 10 else f"{days:.1f} d"
