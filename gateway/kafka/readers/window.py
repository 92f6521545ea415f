"""Holds the newest records of one partition, which its readers share, by number and offset. Pure.

Numbers count all rows ever added, so that they stay valid when the oldest are evicted.
"""

from bisect import bisect_right
from itertools import islice
from operator import itemgetter

from gateway.kafka.readers.values import Gap, News, size_of
from gateway.kafka.values import Record


class Window:
    """Covers the offsets from `start` up to `end`, the offset of the next record."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.end = start
        # The number of the first row that is kept.
        self.first = 0
        # Each row with the offset after it, and the bytes of all rows up to it.
        self._rows: list[tuple[News, int, int]] = []
        self._bytes_before = 0

    @property
    def count(self) -> int:
        """Return the number of the next row."""
        return self.first + len(self._rows)

    @property
    def bytes(self) -> int:
        return self._bytes_put - self._bytes_before

    def put(self, news: Record | Gap) -> None:
        behind = news.offset + 1 if isinstance(news, Record) else news.next
        assert behind > self.end, f"offset {behind} comes after {self.end}"
        self._rows.append((news, behind, self._bytes_put + size_of(news)))
        self.end = behind

    def holds(self, offset: int) -> bool:
        return self.start <= offset <= self.end

    def number_of(self, offset: int) -> int:
        """Return the number of the row at which a reader at an offset continues."""
        assert self.holds(offset)
        return self.first + bisect_right(self._rows, offset, key=itemgetter(1))

    def rows(self, number: int, max_rows: int) -> list[tuple[News, int]]:
        """Return rows from a number on, each with the offset after it."""
        begin = number - self.first
        assert begin >= 0, "the row was let go"
        return [(row[0], row[1]) for row in islice(self._rows, begin, begin + max_rows)]

    def bytes_from(self, number: int) -> int:
        """Return the bytes from a number on."""
        begin = number - self.first
        before = self._rows[begin - 1][2] if begin > 0 else self._bytes_before
        return self._bytes_put - before

    def let_go(self, *, down_to_bytes: int, before: int) -> None:
        """Evict the oldest rows down to a size, but none from the number `before` on."""
        begin, last = 0, before - self.first
        while begin < last and self._bytes_put - self._before(begin) > down_to_bytes:
            begin += 1
        if begin:
            self._bytes_before = self._rows[begin - 1][2]
            self.start = self._rows[begin - 1][1]
            self.first += begin
            del self._rows[:begin]

    @property
    def _bytes_put(self) -> int:
        return self._rows[-1][2] if self._rows else self._bytes_before

    def _before(self, begin: int) -> int:
        return self._rows[begin - 1][2] if begin else self._bytes_before
