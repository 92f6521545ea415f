"""Limits the memory for data that can be read again: one budget for all logs of a process.

Knows only sizes and how to unload. One log's index table or tail of recent batches is small; those
of thousands of logs are not, so the least recently used ones are dropped first.
"""

from collections import OrderedDict
from typing import Protocol


class Holding(Protocol):
    """Data kept in memory for speed alone."""

    def unload(self) -> None:
        """Drop it; called when the budget needs the room."""


class MemoryBudget:
    """The holdings and their sizes in bytes, least recently used first. Not thread-safe."""

    __slots__ = ("_held", "held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self._held: OrderedDict[Holding, int] = OrderedDict()

    def hold(self, holding: Holding, size_bytes: int) -> None:
        """Record that `holding` was loaded or has grown; unload others that no longer fit."""
        self.held_bytes += size_bytes - self._held.get(holding, 0)
        self._held[holding] = size_bytes
        self._held.move_to_end(holding)
        # The newest stays even if it alone is too large: its caller is about to use it.
        while self.held_bytes > self.limit_bytes and len(self._held) > 1:
            oldest, size = self._held.popitem(last=False)
            self.held_bytes -= size
            oldest.unload()

    def touch(self, holding: Holding) -> None:
        """Mark a holding as used."""
        self._held.move_to_end(holding)

    def forget(self, holding: Holding) -> None:
        """Remove a holding that is already unloaded."""
        self.held_bytes -= self._held.pop(holding, 0)
