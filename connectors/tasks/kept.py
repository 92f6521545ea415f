"""Keeps resources that are expensive to open between the slices of tasks.

One child runs all tasks of a worker, so it keeps resources only for tasks that stay here. They are
closed when the task moves, changes, or has not run for long.
"""

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from connectors.runtime.held_bytes import Budget, Holder
from connectors.tasks import leases
from connectors.tasks.leases import Taken

log: Final = logging.getLogger(__name__)
# The maximum of tasks with kept resources; the least recently run one is closed first.
MAX_TASKS: Final = 200


@dataclass(slots=True, kw_only=True)
class Kept:
    """The resources of one task, in one generation and under one owner."""

    generation: int
    epoch: int
    by_plugin: dict[str, Any] = field(default_factory=dict)
    by_runtime: dict[str, Any] = field(default_factory=dict)
    held: Holder = field(default_factory=lambda: Holder(Budget()))

    def close(self) -> None:
        """Close each resource that has a `close` method."""
        for name, thing in self.by_plugin.items():
            end = getattr(thing, "close", None)
            if end is None:
                continue
            try:
                end()
            # Foreign code; close the others, too.
            except Exception:
                log.exception("kept.not_closed name=%s", name)
        self.by_plugin.clear()
        self.held.let_go()


class Shelf:
    """The kept resources of all tasks of one process."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[int, Kept] = OrderedDict()
        self._budget = Budget()

    def of(self, taken: Taken) -> Kept:
        """Return what a task has kept here; empty if it has run elsewhere since."""
        kept = self._tasks.pop(taken.task, None)
        if kept is not None and (kept.generation, kept.epoch) != (taken.generation, taken.epoch):
            kept.close()
            kept = None
        if kept is None:
            held = Holder(self._budget)
            kept = Kept(generation=taken.generation, epoch=taken.epoch, held=held)
        self._tasks[taken.task] = kept
        while len(self._tasks) > MAX_TASKS:
            self._tasks.popitem(last=False)[1].close()
        return kept

    def close_of(self, task: int) -> None:
        """Close the plugin's resources of a task, after a slice that failed or stopped.

        The runtime's own facts about former slices stay, since they remain true.
        """
        if task in self._tasks:
            self._tasks[task].close()

    def forget(self, task: int) -> None:
        kept = self._tasks.pop(task, None)
        if kept is not None:
            kept.close()

    def sweep(self, worker: str) -> None:
        """Close the resources of tasks that are not here any more."""
        known = {task: (kept.generation, kept.epoch) for task, kept in self._tasks.items()}
        for task in known.keys() - leases.still_here(worker, known):
            self.forget(task)

    def close(self) -> None:
        for task in list(self._tasks):
            self.forget(task)
