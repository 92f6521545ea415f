"""Buffers records for readers that are behind, bounded over all readers of a process."""

from collections import OrderedDict

from gateway.kafka.readers.cursor import Cursor
from gateway.kafka.readers.values import News, size_of


class Buffers:
    """Readers in the order in which they last took or received records."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._holders: OrderedDict[Cursor, None] = OrderedDict()
        self.bytes = 0

    def put(self, cursor: Cursor, news: News, behind: int) -> None:
        """Buffer records for a reader; the least recently active readers make room."""
        size = size_of(news)
        cursor.waiting.append((news, behind))
        cursor.waiting_bytes += size
        cursor.reach = behind
        self.bytes += size
        self._holders[cursor] = None
        self._holders.move_to_end(cursor)
        while self.bytes > self._max_bytes and len(self._holders) > 1:
            other = next(iter(self._holders))
            self.forget(other)
            other.wake()

    def taken(self, cursor: Cursor, rows: int) -> None:
        for _ in range(rows):
            news, _ = cursor.waiting.popleft()
            size = size_of(news)
            cursor.waiting_bytes -= size
            self.bytes -= size
        if cursor.waiting:
            self._holders.move_to_end(cursor)
        else:
            self._holders.pop(cursor, None)

    def forget(self, cursor: Cursor) -> None:
        """Drop the records that wait for a reader, which reads them again later."""
        self.bytes -= cursor.waiting_bytes
        self._holders.pop(cursor, None)
        cursor.forget_waiting()
