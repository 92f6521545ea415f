"""Keeps one metric of the last minutes of every topic and group, for sparklines in lists.

Pure. Kept beside the series, since a list shows a hundred sparklines at once and would otherwise
read the file a hundred times.
"""

import math
from array import array
from collections.abc import Iterable
from typing import Final

from console.monitoring.rings import KINDS, STEP_S, Ring

# Every third sample, for a quarter of an hour: more points would double a page of a hundred rows,
# and charts show longer times.
EVERY: Final = 3
STEPS: Final = 30
RECENT_STEP_S: Final = EVERY * STEP_S
# The metric that sparklines show, by kind.
SHOWN: Final = {"topic": "bytes_in", "group": "lag"}
# Rows of a page.
MAX_NAMES: Final = 100


class Recent:
    """The recent samples of one kind of series. Not thread-safe."""

    def __init__(self, kind: str) -> None:
        self._metric = KINDS[kind].metrics.index(SHOWN[kind])
        self._samples: dict[str, array[float]] = {}
        self._taken = 0

    def sample(self, ring: Ring) -> None:
        """Take over every third sample of all series; drop series that have ended."""
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
        """Return the samples of known names, oldest first; a gap is None."""
        found = {name: self._samples[name] for name in names if name in self._samples}
        return {
            name: [None if math.isnan(value) else round(value, 1) for value in samples]
            for name, samples in found.items()
        }
