"""Holds one reader's position in one partition, and the records that wait for it."""

from collections import deque
from collections.abc import Callable

from gateway.kafka.readers.values import End, News
from gateway.kafka.values import Place


class Cursor:
    """Changed by the feed of its partition; `wake` notifies the reader."""

    def __init__(self, place: Place, position: int, wake: "Callable[[Cursor], None]") -> None:
        self.place = place
        # The offset after the last record that was taken.
        self.position = position
        # The index of the next row in the feed's window, for a reader that keeps up.
        self.number: int | None = None
        # What a turn has fetched for a reader that is behind, each with the offset after it, and
        # the offset that all of it reaches.
        self.waiting: deque[tuple[News, int]] = deque()
        self.waiting_bytes = 0
        self.reach = position
        self.is_queued = False
        # The final news, after all waiting ones.
        self.end: End | None = None
        self.is_closed = False
        self._wake = wake

    def wake(self) -> None:
        if not self.is_closed:
            self._wake(self)

    def forget_waiting(self) -> None:
        """Drop waiting records; they are read again later."""
        self.waiting.clear()
        self.waiting_bytes = 0
        self.reach = self.position
