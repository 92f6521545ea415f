"""The last minutes of many series."""

import math

from console.monitoring.recent import EVERY, STEPS, Recent
from console.monitoring.rings import KINDS, STEP_S, Ring


def sampled(ring: Ring, recent: Recent, number: int, lag: float, *names: str) -> None:
    for name in names:
        ring.set((name,), (lag, math.nan))
    ring.sample(number * STEP_S)
    recent.sample(ring)


def test_every_third_sample_is_kept_for_a_quarter_of_an_hour() -> None:
    ring, recent = Ring(KINDS["group"]), Recent("group")
    for number in range(EVERY * STEPS + 6):
        sampled(ring, recent, number, number, "mail")

    (samples,) = recent.of(["mail", "nobody"]).values()

    assert len(samples) == STEPS
    assert samples[-2:] == [EVERY * STEPS, EVERY * STEPS + 3]


def test_a_group_that_is_gone_is_forgotten() -> None:
    ring, recent = Ring(KINDS["group"]), Recent("group")
    sampled(ring, recent, 0, 5.0, "mail", "old")
    for number in range(1, 4):
        sampled(ring, recent, number, 7.0, "mail")

    assert recent.of(["mail", "old"]) == {"mail": [5.0, 7.0]}
