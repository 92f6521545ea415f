"""Keeps resources that are expensive to open between the slices of tasks.

One child serves all tasks of a worker, so each may keep something only while it stays here; what is
kept is closed when the task moves, changes, or has not run for long.
"""

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

from connectors.runtime.held_bytes import Budget, Holder
from connectors.tasks import leases
from connectors.tasks.leases import Taken

log: Final = logging.getLogger(__name__)
# Tasks that keep something at a time; the one that has not run for longest gives way.
MAX_TASKS: Final = 200


@dataclass(slots=True, kw_only=True)
class Kept:
    """Of one task, in one generation and under one owner."""

    generation: int
    epoch: int
    by_plugin: dict[str, Any] = field(default_factory=dict)
    by_runtime: dict[str, Any] = field(default_factory=dict)
    held: Holder = field(default_factory=lambda: Holder(Budget()))

    def close(self) -> None:
        """End each thing that has an end."""
        for name, thing in self.by_plugin.items():
            end = getattr(thing, "close", None)
            if end is None:
                continue
            try:
                end()
            # Foreign code, and the others are to be ended as well.
            except Exception:
                log.exception("kept.not_closed name=%s", name)
        self.by_plugin.clear()
        self.held.let_go()


class Shelf:
    """Of one process."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[int, Kept] = OrderedDict()
        self._budget = Budget()

    def of(self, taken: Taken) -> Kept:
        """Return what a task has kept here; nothing where it has been elsewhere since."""
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
        """Close what a task has kept, after a slice that failed.

        The runtime's own memory holds facts of former slices, which stay true.
        """
        if task in self._tasks:
            self._tasks[task].close()

    def forget(self, task: int) -> None:
        kept = self._tasks.pop(task, None)
        if kept is not None:
            kept.close()

    def sweep(self, worker: str) -> None:
        """End what tasks have kept that are not here any more."""
        known = {task: (kept.generation, kept.epoch) for task, kept in self._tasks.items()}
        for task in known.keys() - leases.still_here(worker, known):
            self.forget(task)

    def close(self) -> None:
        for task in list(self._tasks):
            self.forget(task)
