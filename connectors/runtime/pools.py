"""Pools of workers: which there are, and what time a slice has in each.

Pure. Every worker of the plain pool runs whatever has no pool of its own, and asks all connectors
for their tasks, which needs nothing of what a pool offers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from typing import Final

PLAIN: Final = ""
SPARK: Final = "spark"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    # A slice that has not come back by then hangs, and its process is ended.
    hard_limit_s: int
    # What a task waits for another one of its worker at most, as a rule.
    turn: timedelta


POOLS: Final[Mapping[str, Pool]] = MappingProxyType(
    {
        # A slice ends within 30 s, and where others wait within one second.
        PLAIN: Pool(hard_limit_s=60, turn=timedelta(seconds=2)),
        # One batch of Spark takes its time, and so does the first session of a process; it is not
        # cut in the middle, since the next slice would begin the same batch again.
        SPARK: Pool(hard_limit_s=900, turn=timedelta(seconds=60)),
    }
)


def pool_of(name: str) -> Pool:
    """Return a pool; the plain one's times for one that this release does not know."""
    return POOLS.get(name, POOLS[PLAIN])
