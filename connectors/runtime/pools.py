"""Pools of workers, and the time limits of a slice in each.

Pure. Workers of the plain pool run all connectors without a pool of their own, and create the task
configs of all connectors, which needs nothing that a pool provides.
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
    # A slice that runs longer hangs, and its process is killed.
    hard_limit_s: int
    # How long a task usually waits for another one of its worker at most.
    turn: timedelta


POOLS: Final[Mapping[str, Pool]] = MappingProxyType(
    {
        # A slice ends within 30 s, and within one second if others wait.
        PLAIN: Pool(hard_limit_s=60, turn=timedelta(seconds=2)),
        # A Spark batch, and the first session of a process, take long. A batch is not interrupted,
        # since the next slice would begin the same batch again.
        SPARK: Pool(hard_limit_s=900, turn=timedelta(seconds=60)),
    }
)


def pool_of(name: str) -> Pool:
    """Return a pool; an unknown one gets the limits of the plain pool."""
    return POOLS.get(name, POOLS[PLAIN])
