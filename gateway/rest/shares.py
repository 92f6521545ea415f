"""Computes this worker's part of a caller's rates from the demand at all workers. Pure.

Amounts are in units of whole rates: 0.5 is half of what a caller may do in a second. If the total
demand is below one rate, each worker may use what the others leave; otherwise they divide the rate
by demand. Data about the others is up to a second old, so a caller that starts at several workers
at once may exceed its rate for that long.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# A caller's key, and the limited quantity: requests, records or bytes.
Named = tuple[str, str]
Wants = Mapping[Named, float]

# How long another worker's report is valid: two lost reports change nothing.
FRESH_SECONDS: Final = 1.6
# Many times the workers of a home; the one that was silent for longest is evicted.
MAX_WORKERS: Final = 64
# Only a caller that does not wait demands more than a rate; it gets no larger part for it.
MOST: Final = 1.0
# The reported demand is the mean of the present one and the last: a burst is no trend.
NEW_PART: Final = 0.5
# Smaller demands are not reported or divided: they change no one's part.
LEAST: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The demand at another worker, and when it was received."""

    at: float
    wants: Wants


class Shares:
    """The shares of one worker."""

    def __init__(self) -> None:
        self._own: dict[Named, float] = {}
        self._others: OrderedDict[str, Told] = OrderedDict()

    def note(self, wanted: Wants) -> Wants:
        """Take this worker's latest demand; return what to report to the others."""
        mean = {
            named: NEW_PART * min(MOST, wanted.get(named, 0.0))
            + (1 - NEW_PART) * self._own.get(named, 0.0)
            for named in {*wanted, *self._own}
        }
        self._own = {named: part for named, part in mean.items() if part >= LEAST}
        return self._own

    def hear(self, worker: str, wants: Wants, *, now: float) -> None:
        self._others[worker] = Told(at=now, wants=wants)
        self._others.move_to_end(worker)
        while len(self._others) > MAX_WORKERS:
            self._others.popitem(last=False)

    def part(self, named: Named, *, now: float) -> float:
        """Return this worker's part of a rate, above 0 and up to 1."""
        others = [
            told.wants[named]
            for told in self._others.values()
            if now - told.at < FRESH_SECONDS and named in told.wants
        ]
        wanted = sum(others)
        if not wanted:
            return 1.0
        own = self._own.get(named, 0.0)
        divided = own / (own + wanted)
        # Leave something for a new caller: otherwise its demand would never show.
        least = 0.5 / (len(others) + 1)
        return min(1.0, max(divided, 1.0 - wanted, least))
