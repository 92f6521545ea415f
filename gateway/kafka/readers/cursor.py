"""Holds one reader's position in one partition, and the records that wait for it."""

from collections import deque
from collections.abc import Callable

from gateway.kafka.readers.values import End, News
from gateway.kafka.values import Place


class Cursor:
    """Changed by the feed of its partition; `wake` tells the reader that there is something."""

    def __init__(self, place: Place, position: int, wake: "Callable[[Cursor], None]") -> None:
        self.place = place
        # The offset behind the last record that was taken.
        self.position = position
        # The number of the next row in the feed's window, of a reader that keeps up.
        self.number: int | None = None
        # What a turn has brought a reader that is behind, each with the offset behind it, and how
        # far all of it reaches.
        self.waiting: deque[tuple[News, int]] = deque()
        self.waiting_bytes = 0
        self.reach = position
        self.is_queued = False
        # The last word, after all that waits.
        self.end: End | None = None
        self.is_closed = False
        self._wake = wake

    def wake(self) -> None:
        if not self.is_closed:
            self._wake(self)

    def forget_waiting(self) -> None:
        """Drop what waits; it is read again when the reader comes for it."""
        self.waiting.clear()
        self.waiting_bytes = 0
        self.reach = self.position
