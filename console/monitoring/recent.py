"""The last minutes of every topic and group in one number each, for the small pictures of lists.

Pure. Kept beside the series, since a list shows a hundred of them at once and the file would have
to be read a hundred times.
"""

import math
from array import array
from collections.abc import Iterable
from typing import Final

from console.monitoring.rings import KINDS, STEP_S, Ring

# Every third sample, a quarter of an hour of them: more points would make a page of a hundred rows
# twice as long, and charts show longer times.
EVERY: Final = 3
STEPS: Final = 30
RECENT_STEP_S: Final = EVERY * STEP_S
# What the small pictures show, by kind.
SHOWN: Final = {"topic": "bytes_in", "group": "lag"}
# Rows of a page.
MAX_NAMES: Final = 100


class Recent:
    """Belongs to one thread."""

    def __init__(self, kind: str) -> None:
        self._metric = KINDS[kind].metrics.index(SHOWN[kind])
        self._samples: dict[str, array[float]] = {}
        self._taken = 0

    def sample(self, ring: Ring) -> None:
        """Take over every third sample of all series; one that has ended is forgotten."""
        self._taken += 1
        if self._taken % EVERY != 1:
            return
        before, self._samples = self._samples, {}
        for name, value in ring.newest(self._metric):
            samples = before.get(name[0])
            if samples is None:
                samples = array("f")
            samples.append(value)
            del samples[:-STEPS]
            self._samples[name[0]] = samples

    def of(self, names: Iterable[str]) -> dict[str, list[float | None]]:
        """Return the samples of those that are known, the newest last; a gap is None."""
        found = {name: self._samples[name] for name in names if name in self._samples}
        return {
            name: [None if math.isnan(value) else round(value, 1) for value in samples]
            for name, samples in found.items()
        }
