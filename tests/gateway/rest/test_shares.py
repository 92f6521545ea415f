"""Which part of a rate is whose, and limits of several workers that tell each other."""

import pytest

from gateway.access.callers import Caller, CallerKind
from gateway.access.grants import Rights
from gateway.rest.codes import ApiError
from gateway.rest.limits import Limits, Rates
from gateway.rest.shares import FRESH_SECONDS, MAX_WORKERS, Shares

CALLS = ("token:app", "requests")
APP = Caller(kind=CallerKind.TOKEN, name="app", rights=Rights(), number=1)
RATE = 100
TICK_S = 0.5


def test_one_that_is_alone_has_all_of_a_rate() -> None:
    shares = Shares()
    shares.note({CALLS: 5.0})

    assert shares.part(CALLS, now=0.0) == 1.0


@pytest.mark.parametrize(
    ("own", "other", "part"),
    [
        # As they are asked, where that is more than all.
        (1.0, 1.0, 0.5),
        (0.9, 0.3, 0.75),
        # Nobody needs more: what the other leaves.
        (0.1, 0.2, 0.8),
        # Somebody who has just begun.
        (0.0, 1.0, 0.25),
        # Who does not wait has no more of it than who does.
        (50.0, 1.0, 0.5),
    ],
)
def test_two_divide_a_rate_by_what_is_wanted(own: float, other: float, part: float) -> None:
    shares = Shares()
    for _ in range(20):
        shares.note({CALLS: own})
    shares.hear("other", {CALLS: other}, now=0.0)

    assert shares.part(CALLS, now=0.0) == pytest.approx(part, abs=0.001)


def test_a_worker_that_says_nothing_any_more_has_no_part() -> None:
    shares = Shares()
    shares.hear("other", {CALLS: 1.0}, now=0.0)

    assert shares.part(CALLS, now=FRESH_SECONDS / 2) < 1.0
    assert shares.part(CALLS, now=FRESH_SECONDS) == 1.0


def test_what_is_wanted_no_more_is_told_for_moments_only() -> None:
    shares = Shares()
    shares.note({CALLS: 1.0})
    told = [dict(shares.note({})) for _ in range(8)]

    assert told[0] == {CALLS: 0.25}
    assert told[-1] == {}


def test_so_many_workers_are_heard() -> None:
    shares = Shares()
    for number in range(MAX_WORKERS + 1):
        shares.hear(str(number), {CALLS: 1.0 if number == 0 else 0.0}, now=0.0)

    assert shares.part(CALLS, now=0.0) == 1.0


class Workers:
    """Some workers, a clock that is moved by hand, and what they tell each other."""

    def __init__(self, count: int) -> None:
        self.now = 0.0
        self.limits = [
            Limits(Rates(requests=RATE, records=0, bytes=0), monotonic=lambda: self.now)
            for _ in range(count)
        ]
        self.can_tell = True

    def tick(self) -> None:
        told = [limits.divide(TICK_S) for limits in self.limits]
        if self.can_tell:
            for number, wants in enumerate(told):
                for other in self.limits:
                    if other is not self.limits[number]:
                        other.hear(str(number), wants)

    def granted(self, seconds: float, *, at: range) -> int:
        """Ask these workers ten times as often as all of them may be; return what was granted."""
        found = 0
        steps = round(seconds / 0.01)
        for step in range(steps):
            self.now += 0.01
            for number in at:
                found += sum(self._is_granted(self.limits[number]) for _ in range(10))
            if step % round(TICK_S / 0.01) == 0:
                self.tick()
        return found

    @staticmethod
    def _is_granted(limits: Limits) -> bool:
        try:
            limits.take_request(APP)
        except ApiError:
            return False
        return True


@pytest.mark.parametrize("count", [1, 2, 5])
def test_workers_together_grant_one_rate(count: int) -> None:
    workers = Workers(count)
    first = workers.granted(1, at=range(count))
    later = workers.granted(10, at=range(count))

    # Full buckets at the beginning, and up to half a second of which nobody has told.
    assert first <= count * (RATE + RATE * TICK_S) + RATE
    assert 9 * RATE <= later <= 11 * RATE


def test_a_rate_follows_its_caller_from_worker_to_worker() -> None:
    workers = Workers(3)
    workers.granted(5, at=range(3))
    workers.granted(2, at=range(1))
    alone = workers.granted(5, at=range(1))

    assert alone >= 4.5 * RATE


def test_workers_that_cannot_tell_count_for_themselves() -> None:
    workers = Workers(2)
    workers.granted(3, at=range(2))
    workers.can_tell = False
    workers.granted(2, at=range(2))

    assert workers.granted(5, at=range(2)) >= 2 * 4.9 * RATE


def use_up(limits: Limits) -> None:
    for _ in range(RATE):
        limits.take_request(APP)


def test_the_time_to_wait_is_that_of_the_part() -> None:
    workers = Workers(2)
    workers.granted(5, at=range(2))
    own = workers.limits[0]
    with pytest.raises(ApiError) as refused:
        use_up(own)

    assert refused.value.retry_after_s == 1
    assert f"more than {RATE} calls" in refused.value.message
