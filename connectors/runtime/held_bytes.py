"""The memory budget that the tasks of one process share between their slices.

With a limit per task only, all tasks together could exceed the limit of the process: it would end,
and the tasks would read and hold the same data again. Tasks run one at a time, so the task that
holds most is asked to release memory at its next slice; if the budget is used up before, the
running task releases instead. Pure; for one thread.
"""

from typing import Final

# Above this the task that holds most is asked to release memory.
ENOUGH_BYTES: Final = 256 * 1024 * 1024
# Above this the running task is asked. A child may use 768 MiB; its libraries take some 150, and
# to write a file takes several times its size.
MOST_BYTES: Final = 384 * 1024 * 1024


class Budget:
    """The budget of one process."""

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
    """What one task holds. `is_asked`: it must release memory as soon as it runs."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.size = 0
        self.is_asked = False

    def hold(self, size: int) -> int:
        """Note how much the running task holds; return how many bytes it must release."""
        budget = self._budget
        budget.count(self, max(0, size))
        too_much = budget.total - budget.enough
        if too_much <= 0:
            self.is_asked = False
            return 0
        largest = budget.largest()
        assert largest is not None, "a task holds the bytes"
        if self.is_asked or largest is self or budget.total > budget.most:
            self.is_asked = False
            return min(self.size, too_much)
        largest.is_asked = True
        return 0

    def let_go(self) -> None:
        """Note that the task holds nothing."""
        self._budget.count(self, 0)
        self.is_asked = False
