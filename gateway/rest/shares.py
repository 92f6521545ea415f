"""Which part of a caller's rates is this worker's, by what all workers were asked for. Pure.

Everything is counted in whole rates: 0.5 is half of what a caller may do in a second. Where all
workers together are asked for less than one rate, each may use what the others leave; where they
are asked for more, they divide it as they are asked. What one knows of the others is up to a second
old, so right after a caller begins at several workers at once it may do more for that long.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

# A caller's key, and what is limited: requests, records or bytes.
Named = tuple[str, str]
Wants = Mapping[Named, float]

# What another worker told counts for so long: two that are lost change nothing.
FRESH_SECONDS: Final = 1.6
# As many as a home has at most, many times over; the one that was quiet for longest is forgotten.
MAX_WORKERS: Final = 64
# More than a rate is wanted by one who does not wait; it gets no larger part for it.
MOST: Final = 1.0
# What is told is half of what was wanted now and half of what was before: a burst is no trend.
NEW_PART: Final = 0.5
# Below this nothing is told, and nothing is divided: it changes no one's part.
LEAST: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What another worker was asked for, and when that was heard."""

    at: float
    wants: Wants


class Shares:
    """Of one worker."""

    def __init__(self) -> None:
        self._own: dict[Named, float] = {}
        self._others: OrderedDict[str, Told] = OrderedDict()

    def note(self, wanted: Wants) -> Wants:
        """Take what this worker was asked for of late; return what others are to be told."""
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
        """Return which part of a rate is this worker's, above 0 and up to 1."""
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
        # Something is left to one who has just begun: without it nobody would hear of its wants.
        least = 0.5 / (len(others) + 1)
        return min(1.0, max(divided, 1.0 - wanted, least))
