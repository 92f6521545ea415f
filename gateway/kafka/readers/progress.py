"""Counts the progress of one read, by partition. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

# How often progress is reported.
PROGRESS_SECONDS: Final = 0.25


@dataclass(slots=True, kw_only=True)
class Row:
    """One partition: the range to examine, and the progress in it."""

    partition: int
    first: int
    end: int
    # The offset reached: up from `first`, or down from `end` in a read of the newest.
    position: int
    records: int = 0
    size: int = 0
    examined: int = 0  # offsets, in a search
    hits: int = 0  # in a search; a stopped broker does not report the number of records
    waits: str = ""  # the reason, if it has not started
    reported: tuple[int, int, int] = (-1, 0, 0)  # position, end and records

    def has_moved(self) -> bool:
        """Tell whether there is progress since the last call."""
        before, self.reported = self.reported, (self.position, self.end, self.records)
        return before != self.reported


class Progress:
    """The progress of one read, which several threads update."""

    def __init__(self, rows: Sequence[Row], *, clock: Callable[[], float]) -> None:
        self.rows = {row.partition: row for row in rows}
        self.hits = 0
        self._clock = clock
        self._began = self._reported = clock()

    @property
    def records(self) -> int:
        return sum(max(row.records, row.hits) for row in self.rows.values())

    @property
    def size(self) -> int:
        return sum(row.size for row in self.rows.values())

    @property
    def share(self) -> int:
        """The examined share of all offsets, in per cent; 100 only for all."""
        total = sum(row.end - row.first for row in self.rows.values())
        done = sum(row.examined for row in self.rows.values())
        return 100 if done >= total else done * 100 // total

    def seconds(self) -> float:
        return self._clock() - self._began

    def is_due(self) -> bool:
        """Tell whether to report, and if so, begin the time to the next report."""
        now = self._clock()
        if now - self._reported < PROGRESS_SECONDS:
            return False
        self._reported = now
        return True
