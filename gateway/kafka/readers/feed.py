"""Distributes one partition to its readers: those at the shared head, and those behind, in turns.

The head is one fetch. Its window keeps records until all readers that keep up have taken them. It
stops while the fastest of them has half a window ahead; the slowest drop out of a full window and
continue in turns. Some reader always has the head, and a reader that is beyond it moves it ahead.
Belongs to the event loop, does nothing by itself, and knows no threads.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from gateway.kafka.errors import KafkaFailure
from gateway.kafka.readers.buffers import Buffers
from gateway.kafka.readers.cursor import Cursor
from gateway.kafka.readers.lane import Arrived
from gateway.kafka.readers.values import End, Gap, GapReason, News, size_of
from gateway.kafka.readers.window import Window
from gateway.kafka.values import Place

# A reader with this many of the last turns is faster than those that share the head, and gets it:
# turns are a third as fast as the head. Two equally fast readers stay with turns.
RECENT_TURNS: Final = 5
FAST_TURNS: Final = 4


class Orders(Protocol):
    """Reads partitions in the background; see `lane.Lane`."""

    def read(self, place: Place, offset: int, order: int) -> None: ...
    def stop(self, place: Place) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """The objects that all partitions of a process share."""

    head: Orders
    turns: Orders
    buffers: Buffers
    # Looks up a partition that cannot be read, and calls `found` or `over`.
    look: "Callable[[Feed, KafkaFailure], None]"
    # Unique numbers of orders; 0 is no order.
    next_order: Callable[[], int]
    window_bytes: Callable[[], int]
    turn_bytes: int


class Feed:
    def __init__(self, place: Place, *, topic_id: str, shared: Shared) -> None:
        self.place = place
        self.topic_id = topic_id
        self.cursors: set[Cursor] = set()
        # The last known end of the partition.
        self.end = 0
        self._shared = shared
        self._head = shared.head
        self._turns = shared.turns
        self._buffers = shared.buffers
        self._head_order = 0
        self._turn_order = 0
        self._window: Window | None = None
        self._attached: set[Cursor] = set()
        self._queue: deque[Cursor] = deque()
        self._turn: Cursor | None = None
        # The readers that had the last turns.
        self._recent: deque[Cursor] = deque(maxlen=RECENT_TURNS)
        # The offset that the turn has reached; its reader may have lost buffered records.
        self._turn_at = 0
        # Nothing more can be read; buffered records may still be taken.
        self._is_over = False

    # --- readers -------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        return self._is_over

    @property
    def window_bytes(self) -> int:
        return 0 if self._window is None else self._window.bytes

    def add(self, cursor: Cursor, *, first: int, end: int) -> None:
        """Add a reader; `first` and `end` are the bounds of the partition."""
        self.cursors.add(cursor)
        self.end = max(self.end, end)
        self._put_right(cursor, first, end)
        if not cursor.waiting:
            self._settle(cursor)

    def remove(self, cursor: Cursor) -> None:
        cursor.is_closed = True
        self._buffers.forget(cursor)
        self.cursors.discard(cursor)
        self._detach(cursor)
        if cursor.is_queued:
            self._queue.remove(cursor)
            cursor.is_queued = False
        if cursor is self._turn:
            self._end_turn()
        self._steer()

    def take(self, cursor: Cursor, max_rows: int, max_bytes: int, *, is_first: bool) -> list[News]:
        """Return records for a reader; the first row is returned whatever its size."""
        found: list[News] = []
        if cursor.number is None and not cursor.waiting:
            self._settle(cursor)
        if cursor.number is not None:
            assert self._window is not None
            rows = self._window.rows(cursor.number, max_rows)
        else:
            rows = [row for row, _ in zip(cursor.waiting, range(max_rows), strict=False)]
        size = 0
        for news, behind in rows:
            size += size_of(news)
            if size > max_bytes and (found or not is_first):
                break
            found.append(_from(news, cursor.position))
            cursor.position = behind
        if cursor.number is not None:
            cursor.number += len(found)
            self._steer()
        elif found:
            self._buffers.taken(cursor, len(found))
            if not cursor.waiting:
                # Fetch the next records while the reader handles these.
                self._settle(cursor)
        if not found and cursor.end is not None:
            found.append(cursor.end)
        return found

    def has_more(self, cursor: Cursor) -> bool:
        if cursor.number is not None:
            assert self._window is not None
            if cursor.number < self._window.count:
                return True
        return bool(cursor.waiting) or cursor.end is not None

    # --- what arrives --------------------------------------------------------------------------

    def head_arrived(self, arrived: Arrived) -> None:
        window = self._window
        if arrived.order != self._head_order or window is None:
            return
        count = window.count
        for record in arrived.records:
            if record.offset > window.end:
                self._put_gap(window, record.offset)
            if record.offset == window.end:
                window.put(record)
        if arrived.end is not None and arrived.end > window.end:
            self._put_gap(window, arrived.end)
        self.end = max(self.end, window.end)
        if window.count > count:
            for cursor in self._attached:
                # A reader with earlier rows was notified before.
                if cursor.number is not None and cursor.number >= count:
                    cursor.wake()
        if arrived.failed is not None:
            self._head_order = 0
            self._shared.look(self, arrived.failed)
            return
        self._steer()

    def turn_arrived(self, arrived: Arrived) -> None:
        cursor = self._turn
        if arrived.order != self._turn_order or cursor is None:
            return
        if cursor.reach != self._turn_at:
            # Its buffered records were evicted. New ones would leave a gap.
            self._end_turn()
            cursor.wake()
            return
        is_over = False
        for record in arrived.records:
            if self._is_at_head(record.offset):
                self._reach(cursor, self._head_end())
                is_over = True
                break
            if record.offset < cursor.reach:
                continue
            self._reach(cursor, record.offset)
            self._buffers.put(cursor, record, record.offset + 1)
            if cursor.waiting_bytes >= self._shared.turn_bytes:
                is_over = True
                break
        if arrived.end is not None and not is_over:
            self.end = max(self.end, arrived.end)
            is_at_head = self._is_at_head(arrived.end)
            self._reach(cursor, self._head_end() if is_at_head else arrived.end)
            is_over = True
        self._turn_at = cursor.reach
        if arrived.failed is not None:
            self._turn_order = 0
            self._shared.look(self, arrived.failed)
        elif is_over or (self._window is not None and self._window.holds(cursor.reach)):
            self._end_turn()
            cursor.wake()

    def found(self, first: int, end: int) -> None:
        """Apply the bounds of the partition, looked up after it could not be read."""
        self.end = end
        window = self._window
        if window is not None and window.end > end:
            # The log was truncated: the shared window is no longer part of it.
            for cursor in list(self._attached):
                self._detach(cursor)
            self._window = None
            window = None
        elif window is not None and window.end < first:
            window.put(
                Gap(place=self.place, start=window.end, next=first, reason=GapReason.DELETED)
            )
        for cursor in self.cursors:
            if cursor.number is None:
                self._put_right(cursor, first, end)
            cursor.wake()
        self._end_turn()
        self._steer()

    def over(self, name: str, message: str) -> None:
        """Send all readers the final news."""
        self._is_over = True
        self._queue.clear()
        if self._turn is not None:
            self._end_turn()
        self._stop_head()
        for cursor in self.cursors:
            cursor.is_queued = False
            cursor.end = End(place=self.place, name=name, message=message)
            cursor.wake()

    # --- the head ------------------------------------------------------------------------------

    def _settle(self, cursor: Cursor) -> None:
        """Attach a reader to the head if it fits there, or else queue it for a turn."""
        if self._is_over:
            return
        window = self._window
        if window is None or self._can_take_head(window, cursor):
            for other in list(self._attached):
                # It continues in turns, from its position.
                self._detach(other)
                other.wake()
            window = self._window = Window(cursor.position)
            self._head_order = 0
        if window.holds(cursor.position):
            cursor.number = window.number_of(cursor.position)
            self._attached.add(cursor)
            if cursor.is_queued:
                self._queue.remove(cursor)
                cursor.is_queued = False
            if cursor is self._turn:
                self._end_turn()
        elif not cursor.is_queued and cursor is not self._turn:
            cursor.is_queued = True
            self._queue.append(cursor)
            if self._turn is None:
                self._next_turn()
        self._steer()

    def _steer(self) -> None:
        """Evict old rows, and fetch as far ahead as the fastest reader needs."""
        window = self._window
        if window is None or self._is_over:
            return
        if not self._attached:
            self._stop_head()
            self._window = None
            self._wake_one()
            return
        limit = self._shared.window_bytes()
        fastest = max(cursor.number or 0 for cursor in self._attached)
        if window.bytes > limit:
            window.let_go(down_to_bytes=limit, before=fastest)
            for cursor in [one for one in self._attached if (one.number or 0) < window.first]:
                self._detach(cursor)
                cursor.wake()
        elif len(self._attached) == len(self.cursors):
            # No reader is behind that could still need them.
            slowest = min(cursor.number or 0 for cursor in self._attached)
            window.let_go(down_to_bytes=0, before=slowest)
        ahead = window.bytes_from(fastest)
        if self._head_order and ahead >= limit // 2:
            self._stop_head()
        elif not self._head_order and ahead < limit // 4:
            self._head_order = self._shared.next_order()
            self._head.read(self.place, window.end, self._head_order)

    def _can_take_head(self, window: Window, cursor: Cursor) -> bool:
        if not self._attached or cursor.position > window.end:
            return True
        # The readers at the head have enough for now, and this one takes most turns.
        is_still = not self._head_order and not window.holds(cursor.position)
        return is_still and self._recent.count(cursor) >= FAST_TURNS

    def _stop_head(self) -> None:
        if self._head_order:
            self._head_order = 0
            self._head.stop(self.place)

    def _detach(self, cursor: Cursor) -> None:
        """Detach a reader from the head; it continues in turns, from its position."""
        if cursor in self._attached:
            self._attached.discard(cursor)
            cursor.number = None
            cursor.reach = cursor.position

    def _wake_one(self) -> None:
        """Wake a reader that is behind to take the head, which is free."""
        if self._queue:
            cursor = self._queue.popleft()
            cursor.is_queued = False
            cursor.wake()

    def _put_gap(self, window: Window, behind: int) -> None:
        window.put(Gap(place=self.place, start=window.end, next=behind, reason=GapReason.NO_RECORD))

    def _is_at_head(self, offset: int) -> bool:
        return self._window is not None and offset >= self._window.end

    def _head_end(self) -> int:
        assert self._window is not None
        return self._window.end

    # --- turns ---------------------------------------------------------------------------------

    def _next_turn(self) -> None:
        assert self._turn is None
        if self._queue:
            self._turn = self._queue.popleft()
            self._recent.append(self._turn)
            self._turn.is_queued = False
            self._turn_order = self._shared.next_order()
            self._turn_at = self._turn.reach
            self._turns.read(self.place, self._turn.reach, self._turn_order)

    def _end_turn(self) -> None:
        if self._turn is None:
            return
        self._turn, self._turn_order = None, 0
        if self._queue:
            self._next_turn()
        else:
            self._turns.stop(self.place)

    def _reach(self, cursor: Cursor, offset: int) -> None:
        """Buffer a gap up to an offset: there is no record before it."""
        if offset > cursor.reach:
            gap = Gap(place=self.place, start=cursor.reach, next=offset, reason=GapReason.NO_RECORD)
            self._buffers.put(cursor, gap, offset)

    def _put_right(self, cursor: Cursor, first: int, end: int) -> None:
        """Move a reader that is behind to an existing offset, and report the gap."""
        if cursor.reach > end:
            self._buffers.forget(cursor)
        at = cursor.reach
        if at < first:
            gap = Gap(place=self.place, start=at, next=first, reason=GapReason.DELETED)
            self._buffers.put(cursor, gap, first)
        elif at > end:
            gap = Gap(place=self.place, start=at, next=end, reason=GapReason.CUT)
            self._buffers.put(cursor, gap, end)


def _from(news: News, position: int) -> News:
    """Return the rest of a gap from a reader's position, which may be inside it."""
    if isinstance(news, Gap) and news.start < position < news.next:
        return Gap(place=news.place, start=position, next=news.next, reason=news.reason)
    return news
