"""How far groups are behind: the time to catch up, where rates stray, has to hold what comes."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from console.monitoring.collector import Collector
from tests.fakes.broker_feed import NOW_MS, Feed

GROUPS = 20
LOOK_S = 3
# A group keeps up, stands still, and reads again faster than is written.
KEEPS_UP_S = 60
STANDS_STILL_S = (30, 180)
# How long the rates are watched after that before somebody believes them.
WATCHED_S = 60
LONGEST_S = 3_600
ASKED_EVERY_S = 5
HELD_OF_ALL = 0.9


@dataclass(frozen=True)
class Said:
    """A range that the collector told, and what came."""

    low_s: float | None
    high_s: float | None
    left_s: int

    @property
    def is_true(self) -> bool:
        is_over = self.high_s is not None and self.left_s > self.high_s + 1
        return self.low_s is not None and self.low_s - 1 <= self.left_s and not is_over


def story(seed: int) -> Iterator[Said]:
    """Play one group to the end of its lag."""
    drawn = random.Random(seed)
    produced, stray = drawn.choice((20, 100, 500)), drawn.uniform(0, 0.3)
    consumed = produced * drawn.uniform(1.15, 3)
    commits_every = drawn.choice((1, 5))
    goes_on_at = KEEPS_UP_S + drawn.randint(*STANDS_STILL_S)
    collector, feed = Collector("run"), Feed()
    end = place = 0
    said: list[tuple[int, float | None, float | None]] = []
    for second in range(LONGEST_S):
        now_ms = NOW_MS + 1000 * second
        end += max(0, round(drawn.gauss(produced, stray * produced)))
        if second < KEEPS_UP_S:
            place = end
        elif second >= goes_on_at:
            place = min(end, place + max(0, round(drawn.gauss(consumed, stray * consumed))))
        if second % commits_every == 0 and not KEEPS_UP_S <= second < goes_on_at:
            feed.commit("g", "orders", 0, place, at_ms=now_ms)
        feed.partition("orders", 0, end=end)
        collector.take(1, feed.tell(), now_ms=now_ms)
        if second % LOOK_S == 0:
            collector.look_at_once(now_ms)
        if second > goes_on_at and place == end:
            yield from (Said(low, high, second - at) for at, low, high in said)
            return
        if second >= goes_on_at + WATCHED_S and second % ASKED_EVERY_S == 0:
            row = collector.deltas.rows("groups")["g"]
            said.append((second, row[4], row[5]))


@pytest.mark.slow
def test_nine_ranges_of_ten_hold_when_a_group_has_caught_up(
    report: Callable[[str], None],
) -> None:
    said = [each for seed in range(GROUPS) for each in story(seed)]

    held = sum(each.is_true for each in said) / len(said)
    report(f"{held:.0%} of {len(said)} ranges of {GROUPS} groups held")
    assert len(said) > 5 * GROUPS
    assert held >= HELD_OF_ALL
