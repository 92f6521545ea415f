"""Holds one reader's positions in its partitions, and the records that it can take."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final

from gateway.kafka.readers.cursor import Cursor
from gateway.kafka.readers.feed import Feed
from gateway.kafka.readers.values import Begin, End, News, size_of
from gateway.kafka.values import Place

# News of new partitions that wait to be taken; further partitions are found again later. As many as
# one reader has.
MAX_SAID: Final = 1_000


class Reading:
    """Opened by `Readers.open`, closed by its caller; for one task at a time.

    `take` returns records in the order of each partition, partitions in turn. It reports skipped
    offsets by a `Gap`, and a partition that cannot be read any more by an `End`, the final news of
    that partition. A new partition is reported by a `Begin`, before its records. Nothing is fetched
    for a reader that does not take, beyond what is buffered for it, and no record is lost to it.
    """

    def __init__(
        self, *, closed: Callable[["Reading", Sequence[Place]], None], waits: bool = False
    ) -> None:
        self._closed = closed
        # Whether it continues without partitions, because new ones may appear.
        self._waits = waits
        self._is_closed = False
        # News that are returned before those of the partitions.
        self._said: deque[Begin | End] = deque()
        # The topic id with which each partition was last taken up: none is taken up twice.
        self._taken_up: dict[Place, str] = {}
        self._pauses_new = False
        self._feeds: dict[Cursor, Feed] = {}
        self._cursors: dict[Place, Cursor] = {}
        # Cursors that may have news, in the order of their turns; a dict keeps it.
        self._ready: dict[Cursor, None] = {}
        self._paused: set[Place] = set()
        self._event = asyncio.Event()

    # --- for readers ---------------------------------------------------------------------------

    @property
    def positions(self) -> dict[Place, int]:
        """Return the offset after the last taken record, for every partition that has not ended."""
        return {place: cursor.position for place, cursor in self._cursors.items()}

    @property
    def ends(self) -> dict[Place, int]:
        """Return the last known end of each partition; the rest before it is the lag."""
        return {place: self._feeds[cursor].end for place, cursor in self._cursors.items()}

    @property
    def is_over(self) -> bool:
        """Tell whether all final news were taken, and no new partition can appear."""
        return self._is_closed or not (self._waits or self._cursors or self._said)

    async def take(self, *, max_records: int, max_bytes: int, wait_s: float) -> list[News]:
        """Return news as soon as there are any; none if the wait is over, or all has ended.

        One record is returned even if it exceeds `max_bytes`.
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

    async def wait(self, wait_s: float) -> None:
        """Return when there may be news to take, or the wait is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._event.wait()
        self._event.clear()

    def take_now(self, *, max_records: int, max_bytes: int) -> list[News]:
        """Return the news that are already there; see `take`."""
        found: list[News] = []
        while self._said and len(found) < max_records:
            found.append(self._said.popleft())
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
        """Take nothing from these; their buffered records stay."""
        self._paused.update(places)

    def resume(self, places: Iterable[Place]) -> None:
        self._paused.difference_update(places)
        self._event.set()

    def pause_all(self) -> None:
        """Take nothing from any partition, including those that appear later."""
        self._pauses_new = True
        self.pause(self._cursors)

    def resume_all(self) -> None:
        self._pauses_new = False
        self._paused.clear()
        self._event.set()

    def drop(self, places: Collection[Place]) -> None:
        """Stop reading these, without any final news of them."""
        for place in places:
            if (cursor := self._cursors.get(place)) is not None:
                self._drop(cursor)
        self._said = deque(one for one in self._said if one.place not in places)

    def close(self) -> None:
        """Release all partitions; a waiting `take` returns nothing."""
        self._is_closed = True
        for cursor in list(self._feeds):
            self._drop(cursor)
        self._closed(self, [])
        self._event.set()

    # --- for the engine ------------------------------------------------------------------------

    @property
    def room_to_tell(self) -> int:
        """Return how many new partitions may be reported now."""
        return 0 if self.is_over else max(0, MAX_SAID - len(self._said))

    def lacks(self, place: Place, topic_id: str) -> bool:
        """Tell whether a partition was never taken up; one of a new topic id was not."""
        return self._taken_up.get(place) != topic_id

    def reads(self, place: Place) -> bool:
        return place in self._cursors

    def forget_topics(self, present: Collection[str]) -> None:
        """Forget deleted topics, so that their records of partitions do not pile up."""
        for place in [one for one in self._taken_up if one.topic not in present]:
            if place not in self._cursors:
                del self._taken_up[place]

    def refuse(self, place: Place, topic_id: str, end: End) -> None:
        """Report that a new partition is not read."""
        self._taken_up[place] = topic_id
        self._said.append(end)
        self._event.set()

    def take_up(self, feed: Feed, offset: int, *, first: int, end: int) -> None:
        """Read a new partition, and report it."""
        if self._pauses_new:
            self._paused.add(feed.place)
        self._said.append(Begin(place=feed.place, offset=offset))
        self.begin(feed, offset, first=first, end=end)

    def move(self, feed: Feed, offset: int, *, first: int, end: int) -> None:
        """Continue at another offset of a partition; the caller reports the positions of all."""
        self._said = deque(one for one in self._said if isinstance(one, End))
        if (cursor := self._cursors.get(feed.place)) is not None:
            feed_before = self._feeds.pop(cursor)
            feed_before.remove(cursor)
            self._ready.pop(cursor, None)
        self.begin(feed, offset, first=first, end=end)

    def begin(self, feed: Feed, offset: int, *, first: int, end: int) -> None:
        """Read a partition with these bounds, from an offset on."""
        self._taken_up[feed.place] = feed.topic_id
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
        self._paused.discard(cursor.place)
        del self._cursors[cursor.place]
        self._closed(self, [cursor.place])
