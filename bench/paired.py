"""The ratio of two versions from alternated pairs of runs, with its 95 % interval. Pure.

Load on a shared machine changes slowly, so the two runs of a pair meet nearly the same; their
ratio is what counts. Logarithms make a ratio and its inverse equally far from 1, and Student's t
says how far the mean of so few pairs may be from the true one.
"""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

# Two-sided 95 % quantiles of Student's t, by degrees of freedom from 1 on.
QUANTILES: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
LEAST_PAIRS: Final = 2
MOST_PAIRS: Final = len(QUANTILES) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The ratio of the means of logarithms, and where the true one is with 95 % confidence."""

    ratio: float
    low: float
    high: float

    def is_above(self, bound: float) -> bool:
        """Tell whether the whole interval is above a bound: only then it is exceeded for sure."""
        return self.low > bound


def interval(pairs: Sequence[tuple[float, float]]) -> Interval:
    """Return how much more the second of each pair costs than the first."""
    assert LEAST_PAIRS <= len(pairs) <= MOST_PAIRS, f"{len(pairs)} pairs"
    assert all(cost > 0 for pair in pairs for cost in pair), f"a cost is not positive: {pairs}"
    logs = [math.log(after / before) for before, after in pairs]
    mean = statistics.fmean(logs)
    error = statistics.stdev(logs) / math.sqrt(len(logs))
    reach = QUANTILES[len(logs) - 2] * error
    return Interval(ratio=math.exp(mean), low=math.exp(mean - reach), high=math.exp(mean + reach))


def order(pairs: int) -> Iterator[tuple[int, int]]:
    """Return which side (0 or 1) runs first in each pair: ABBA, so that no trend favours one."""
    for number in range(pairs):
        yield (0, 1) if number % 2 == 0 else (1, 0)
