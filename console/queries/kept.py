"""Caches answers that stay valid while the step of their data does: the last few, by key.

Threads may compute the same answer at the same time; the later one is kept.
"""

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

# Visitors with different views of one table at a time; each answer may take some MB.
MAX_KEPT: Final = 8


class Kept(Generic[T]):
    """A cache for one process."""

    def __init__(self, most: int = MAX_KEPT) -> None:
        self._most = most
        self._step = ""
        self._answers: dict[Hashable, T] = {}

    def read(self, step: str, key: Hashable, make: Callable[[], T]) -> T:
        """Return the answer for a key, computing it if none of this step is cached.

        An empty step does not identify the data, so nothing is cached for it.
        """
        if not step:
            return make()
        if step != self._step:
            # Answers of an older step would pin tables that are otherwise unused.
            self._step, self._answers = step, {}
        answers = self._answers
        if key in answers:
            return answers[key]
        # Another thread may be reading the mapping, so replace it instead of changing it.
        made = make()
        if step == self._step:
            self._answers = dict([*answers.items(), (key, made)][-self._most :])
        return made
