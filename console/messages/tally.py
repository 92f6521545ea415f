"""Reports the progress of a stream by partition, a few times a second."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from console.messages.lines import encoded

PROGRESS_SECONDS: Final = 0.25


@dataclass(slots=True, kw_only=True)
class Row:
    """One partition: the range to examine, and the progress in it."""

    partition: int
    first: int
    end: int
    # The offset reached: up from `first`, or down from `end` in mode newest.
    position: int
    records: int = 0
    size: int = 0
    looked: int = 0  # offsets, in a search
    hits: int = 0  # in a search; a stopped broker does not report the number of records
    waits: str = ""  # the reason, if it has not started
    told: tuple[int, int, int] = (-1, 0, 0)  # position, end and records of the last report

    def has_moved(self) -> bool:
        """Tell whether there is progress since the last call."""
        before, self.told = self.told, (self.position, self.end, self.records)
        return before != self.told


class Tally:
    """The progress of one stream, which several threads update."""

    def __init__(
        self, rows: Sequence[Row], *, clock: Callable[[], float], is_search: bool = False
    ) -> None:
        self.rows = {row.partition: row for row in rows}
        self.hits = 0
        self._is_search = is_search
        self._clock = clock
        self._began = self._told = clock()

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
        done = sum(row.looked for row in self.rows.values())
        return 100 if done >= total else done * 100 // total

    def seconds(self) -> float:
        return self._clock() - self._began

    def due(self) -> bytes | None:
        """Return a line of progress if one is due."""
        now = self._clock()
        if now - self._told < PROGRESS_SECONDS:
            return None
        self._told = now
        return self.line()

    def line(self) -> bytes:
        waiting = {row.partition: row.waits for row in self.rows.values() if row.waits}
        return encoded(
            {
                "type": "progress",
                "partitions": [
                    [row.partition, str(row.position), str(row.end), row.records, row.size]
                    for row in self.rows.values()
                    if row.has_moved()
                ],
                "waiting": waiting,
                "percent": self.share if self._is_search else None,
                "records": self.records,
                "hits": self.hits,
                "ms": round(self.seconds() * 1000),
            }
        )
