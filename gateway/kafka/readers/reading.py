"""What one reader holds: its places in partitions, and what there is for it to take."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from gateway.kafka.readers.cursor import Cursor
from gateway.kafka.readers.feed import Feed
from gateway.kafka.readers.values import End, News, size_of
from gateway.kafka.values import Place


class Reading:
    """Made by `Readers.open`, and closed by whoever opened it; for one task at a time.

    `take` hands out records in the order of each partition, and partitions in turn. Where offsets
    are left out it says so by a `Gap`, and where a partition cannot be read any more by an `End`,
    which is the last word of that partition. Nothing is fetched for a reader that does not take,
    beyond what waits for it already, and nothing that it has not taken is lost to it.
    """

    def __init__(self, *, closed: Callable[["Reading", Sequence[Place]], None]) -> None:
        self._closed = closed
        self._feeds: dict[Cursor, Feed] = {}
        self._cursors: dict[Place, Cursor] = {}
        # Those that may have something, in the order of their turns; a dict keeps it.
        self._ready: dict[Cursor, None] = {}
        self._paused: set[Place] = set()
        self._event = asyncio.Event()

    # --- for whoever reads ---------------------------------------------------------------------

    @property
    def positions(self) -> dict[Place, int]:
        """Return the offset behind what was taken last, of every partition that has not ended."""
        return {place: cursor.position for place, cursor in self._cursors.items()}

    @property
    def ends(self) -> dict[Place, int]:
        """Return where each partition ends, as far as is known: what is left is the lag."""
        return {place: self._feeds[cursor].end for place, cursor in self._cursors.items()}

    @property
    def is_over(self) -> bool:
        """Tell whether every partition has had its last word."""
        return not self._cursors

    async def take(self, *, max_records: int, max_bytes: int, wait_s: float) -> list[News]:
        """Return news as soon as there are any; none where the wait is over, or all has ended.

        One record comes even if it alone has more bytes.
        """
        deadline = asyncio.get_running_loop().time() + wait_s
        while True:
            self._event.clear()
            found = self.take_now(max_records=max_records, max_bytes=max_bytes)
            if found or self.is_over:
                return found
            try:
                async with asyncio.timeout_at(deadline):
                    await self._event.wait()
            except TimeoutError:
                return []

    def take_now(self, *, max_records: int, max_bytes: int) -> list[News]:
        """Return what is there already; see `take`."""
        found: list[News] = []
        left = max_bytes
        for cursor in list(self._ready):
            if len(found) >= max_records or (found and left <= 0):
                break
            if cursor.place in self._paused:
                continue
            del self._ready[cursor]
            feed = self._feeds[cursor]
            news = feed.take(cursor, max_records - len(found), left, is_first=not found)
            found += news
            left -= sum(map(size_of, news))
            if news and isinstance(news[-1], End):
                self._drop(cursor)
            elif feed.has_more(cursor):
                self._ready[cursor] = None
        return found

    def pause(self, places: Iterable[Place]) -> None:
        """Take nothing of these; what waits for them stays."""
        self._paused.update(places)

    def resume(self, places: Iterable[Place]) -> None:
        self._paused.difference_update(places)
        self._event.set()

    def close(self) -> None:
        """Let go of everything; a take that waits returns nothing."""
        for cursor in list(self._feeds):
            self._drop(cursor)
        self._event.set()

    # --- for the engine ------------------------------------------------------------------------

    def begin(self, feed: Feed, offset: int, *, first: int, end: int) -> None:
        """Read a partition, whose bounds these are, from an offset on."""
        cursor = Cursor(feed.place, offset, self._wake)
        self._feeds[cursor], self._cursors[feed.place] = feed, cursor
        feed.add(cursor, first=first, end=end)
        self._wake(cursor)

    def _wake(self, cursor: Cursor) -> None:
        self._ready[cursor] = None
        self._event.set()

    def _drop(self, cursor: Cursor) -> None:
        self._feeds.pop(cursor).remove(cursor)
        self._ready.pop(cursor, None)
        del self._cursors[cursor.place]
        self._closed(self, [cursor.place])
