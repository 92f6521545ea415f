"""Maps a log's newest batches to their positions, for readers near the end.

Holds base offsets and positions, no files: positions count through all segments of the log as if
they were one file. The tail has no gaps, so the batch that holds an offset is the last one that
begins at or before it. It starts with the first append of this run and is never read from disk.
"""

from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from brokers.storage.memory_budget import MemoryBudget

# Kept per log; a reader further behind uses the sparse index.
TAIL_BATCHES: Final = 4096
# How often a growing tail reports its size; the unreported part is at most 1 KiB per log.
_STEP: Final = 64
_ENTRY_BYTES: Final = 16
# The limit of all tails together: 64 busy logs, or thousands of idle ones.
DEFAULT_TAIL_BYTES: Final = 8 * 1024 * 1024


class DenseTail:
    """Not thread-safe; belongs to its log.

    The log appends to `bases` and `positions` itself, on the path of every batch, and calls `grown`
    once they are as long as `limit`.
    """

    __slots__ = ("_budget", "bases", "limit", "positions")

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self.bases = array("q")
        self.positions = array("q")
        self.limit = _STEP

    def grown(self) -> None:
        """Drop the oldest half of a tail that is twice too long, and report the size."""
        if len(self.bases) >= 2 * TAIL_BATCHES:
            del self.bases[:TAIL_BATCHES], self.positions[:TAIL_BATCHES]
        self.limit = len(self.bases) + _STEP
        self._budget.hold(self, len(self.bases) * _ENTRY_BYTES)

    def restart(self) -> None:
        """Forget everything: the next batch does not follow the last one."""
        self.unload()
        self._budget.forget(self)

    def drop_below(self, offset: int) -> None:
        """Forget the batches that begin below `offset`: they have moved to other files."""
        count = bisect_left(self.bases, offset)
        if count == len(self.bases):
            self.restart()
        elif count:
            del self.bases[:count], self.positions[:count]
            self.limit = len(self.bases) + _STEP
            self._budget.hold(self, len(self.bases) * _ENTRY_BYTES)

    def unload(self) -> None:
        # Keep the arrays, which the log references; clearing a whole array frees its memory.
        del self.bases[:], self.positions[:]
        self.limit = _STEP

    def find(self, offset: int) -> int:
        """Return the index of the batch that holds `offset`; negative if older than the tail."""
        return bisect_right(self.bases, offset) - 1
