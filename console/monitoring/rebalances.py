"""Counts the rebalances of a group, over moves and restarts of its coordinator.

Pure. A coordinator counts from zero each time that it loads a group, so a count of another run, or
a smaller one, is all new.
"""

from typing import Final

from console.monitoring.verdicts import REBALANCED_MS

# Rebalances are noted in ten slots: a group that rebalances in most of them does so again and
# again, and one whose members are replaced one by one, for a minute or two, does not.
SLOTS: Final = 10
SLOT_MS: Final = REBALANCED_MS // SLOTS
MANY: Final = 6
# It has settled down with no more than these, or after so long a pause.
FEW: Final = 2
SETTLED_MS: Final = 3 * SLOT_MS

# The broker that counts, and its run.
Source = tuple[int, str]


class Rebalances:
    """The rebalances of one group. Not thread-safe."""

    __slots__ = ("_count", "_slots", "_source", "since_ms", "total")

    def __init__(self) -> None:
        self.total = 0
        # When the present series of rebalances began; 0 if the group has settled down.
        self.since_ms = 0
        self._source: Source | None = None
        self._count = 0
        # The start of a slot, and its rebalances; only those with some.
        self._slots: dict[int, int] | None = None

    def take(self, count: int, source: Source, now_ms: int) -> None:
        """Note the count of a coordinator."""
        if self._source is None:
            # How many of them are recent is not known.
            self.total = count
            new = 0
        elif self._source == source and count >= self._count:
            new = count - self._count
        else:
            new = count
        self._source, self._count = source, count
        if new:
            self.total += new
            if self._slots is None:
                self._slots = {}
            start = now_ms - now_ms % SLOT_MS
            self._slots[start] = self._slots.get(start, 0) + new

    @property
    def is_quiet(self) -> bool:
        return self._slots is None

    def look(self, now_ms: int) -> None:
        """Forget old slots, and decide whether the group rebalances again and again."""
        if self._slots is None:
            return
        kept = {start: new for start, new in self._slots.items() if now_ms - start <= REBALANCED_MS}
        if len(kept) <= FEW or now_ms - max(kept) - SLOT_MS > SETTLED_MS:
            self.since_ms = 0
        elif len(kept) >= MANY and not self.since_ms:
            self.since_ms = min(kept)
        self._slots = kept or None

    @property
    def recent(self) -> int:
        """Return the rebalances within REBALANCED_MS before the last look."""
        return 0 if self._slots is None else sum(self._slots.values())
