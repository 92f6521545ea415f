"""How many bytes the tasks of one process hold in memory between their slices, all together.

Each could hold what one task may, and the process would end at its limit: whatever all of them
held would be read again, and held again. So they share a budget. Tasks run one after the other, so
who holds most cannot be told at once: it is asked when it runs next, and until then whoever runs
lets go where all of it is used up. Pure; of one thread.
"""

from typing import Final

# Beyond this the one that holds most is asked to let go.
ENOUGH_BYTES: Final = 256 * 1024 * 1024
# Beyond this whoever runs is asked. A child may have 768 MiB; its libraries take some 150, and a
# file that is written out takes its size some times over.
MOST_BYTES: Final = 384 * 1024 * 1024


class Budget:
    """Of one process."""

    def __init__(self, *, enough: int = ENOUGH_BYTES, most: int = MOST_BYTES) -> None:
        assert enough <= most
        self.enough = enough
        self.most = most
        self.total = 0
        self._holders: set[Holder] = set()

    def largest(self) -> "Holder | None":
        return max(self._holders, key=lambda holder: holder.size, default=None)

    def count(self, holder: "Holder", size: int) -> None:
        self.total += size - holder.size
        holder.size = size
        if size:
            self._holders.add(holder)
        else:
            self._holders.discard(holder)


class Holder:
    """What one task holds. `is_asked`: it is to let go as soon as it runs."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.size = 0
        self.is_asked = False

    def hold(self, size: int) -> int:
        """Count what the task, which runs now, holds; return how much of it is to be let go."""
        budget = self._budget
        budget.count(self, max(0, size))
        too_much = budget.total - budget.enough
        if too_much <= 0:
            self.is_asked = False
            return 0
        largest = budget.largest()
        assert largest is not None, "somebody holds it"
        if self.is_asked or largest is self or budget.total > budget.most:
            self.is_asked = False
            return min(self.size, too_much)
        largest.is_asked = True
        return 0

    def let_go(self) -> None:
        """Count that nothing is held any more."""
        self._budget.count(self, 0)
        self.is_asked = False
