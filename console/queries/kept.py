"""Answers that stay right while what they rest on does: the last few, by key.

Threads may make the same answer at the same time; the later one stays.
"""

from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

# Visitors who look at one table in different ways at the same time; each answer may be some MB.
MAX_KEPT: Final = 8


class Kept(Generic[T]):
    """Belongs to a process."""

    def __init__(self, most: int = MAX_KEPT) -> None:
        self._most = most
        self._step = ""
        self._answers: dict[Hashable, T] = {}

    def read(self, step: str, key: Hashable, make: Callable[[], T]) -> T:
        """Return the answer for a key, and make it where none of this step is kept.

        A step that is empty says nothing of what is the same, so nothing is kept.
        """
        if not step:
            return make()
        if step != self._step:
            # Answers of an older step would pin tables that nobody else has any more.
            self._step, self._answers = step, {}
        answers = self._answers
        if key in answers:
            return answers[key]
        # Another thread reads the ones before meanwhile, so they are replaced and never changed.
        made = make()
        if step == self._step:
            self._answers = dict([*answers.items(), (key, made)][-self._most :])
        return made
