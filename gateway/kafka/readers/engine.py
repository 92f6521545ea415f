"""Opens readings for a process: the entry point. Belongs to one event loop."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice
from typing import Final, TypeVar, TypeVarTuple

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.readers.admission import Admission, Readable
from gateway.kafka.readers.buffers import Buffers
from gateway.kafka.readers.feed import Feed, Shared
from gateway.kafka.readers.following import MAX_MATCHED, Follow, Follower, without_internal
from gateway.kafka.readers.lane import JUMPING, STEADY, Arrived, Lane
from gateway.kafka.readers.positions import bounds
from gateway.kafka.readers.reading import Reading
from gateway.kafka.readers.values import End, Limits
from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import BEGINNING, Place, Position, Topic

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
log: Final = logging.getLogger(__name__)
# Threads that ask brokers for the bounds of partitions; each waits for its answer.
ASKERS: Final = 4
# The delay before a partition that failed is looked up, and between retries.
LOOK_AGAIN_S: Final = 1.0
# These errors are permanent.
FINAL: Final = frozenset(
    {
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "INVALID_TOPIC_EXCEPTION",
        "TOPIC_AUTHORIZATION_FAILED",
        "SASL_AUTHENTICATION_FAILED",
    }
)
OUT_OF_RANGE: Final = "OFFSET_OUT_OF_RANGE"
CLOSE_SECONDS: Final = 1.5


# librdkafka does not report a deleted topic, but waits for it. So all topics that are read are
# looked up at this interval, which bounds the delay after a deletion or an added partition.
WATCH_S: Final = 3.0
# How often all topics are listed for readers by pattern: the answer names every partition of the
# cluster, which takes this process a fifth of a second for 100,000.
LIST_S: Final = 10.0
# A new reader by pattern sees every topic that is older than this.
FRESH_S: Final = 1.0
GONE: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "the topic was deleted")
MADE_AGAIN: Final = ("UNKNOWN_TOPIC_ID", "the topic was deleted and made again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The position where a reader starts, and the bounds of the partition."""

    place: Place
    topic_id: str
    offset: int
    first: int
    end: int


class TooManyReadings(Exception):
    """A limit on concurrent readings is reached; the text names it."""


class Readers:
    """All readers without a group of one process.

        admission = admit(reader, ["orders"])
        reading = await readers.open(admission, {Place(topic="orders", partition=0): BEGINNING})
        news = await reading.take(max_records=100, max_bytes=1_000_000, wait_s=5)
        reading.close()

    `open` raises KafkaFailure where a partition is not there or cannot be asked, and
    TooManyReadings. An offset that the partition does not hold is no failure: the first news is
    then a gap. After that nothing fails: readings wait for a cluster that is down.
    """

    def __init__(self, connection: Connection, limits: Limits | None = None) -> None:
        self._connection = connection
        self._limits = limits or Limits()
        self._feeds: dict[Place, Feed] = {}
        self._readings: set[Reading] = set()
        self._cursors = 0
        self._looks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
        # Since when no broker answers, and why; None if one does.
        self._failed: tuple[float, KafkaFailure] | None = None
        self._is_draining = False
        self._head = Lane(connection, name="readers-head", pace=STEADY, tell=self._head_arrived)
        self._turns = Lane(connection, name="readers-turns", pace=JUMPING, tell=self._turn_arrived)
        self._shared = Shared(
            head=self._head,
            turns=self._turns,
            buffers=Buffers(self._limits.buffers_bytes),
            look=self._look,
            next_order=count(1).__next__,
            window_bytes=self._window_bytes,
            turn_bytes=self._limits.turn_bytes,
        )
        self._followers: dict[Reading, Follower] = {}
        # All topics except Kafka's internal ones, and when they were listed.
        self._listed: frozenset[str] = frozenset()
        self._listed_at = float("-inf")
        self._listing = asyncio.Lock()
        self._askers = ThreadPoolExecutor(ASKERS, "readers-ask")
        # Patterns come from untrusted clients: a slow one delays only other patterns.
        self._matcher = ThreadPoolExecutor(1, "readers-match")
        self._admins = threading.local()

    # --- for readers ---------------------------------------------------------------------------

    async def partitions(self, topics: Sequence[str]) -> dict[str, list[int]]:
        """Return the partitions of topics. Raises KafkaFailure if one does not exist."""
        return await self._ask(self._partitions, topics)

    async def matching(self, pattern: TopicPattern, readable: Readable) -> dict[str, list[int]]:
        """Return the partitions of the readable topics that a pattern matches."""
        return await self._ask(self._found_partitions, await self.names(pattern, readable))

    async def names(self, pattern: TopicPattern, readable: Readable) -> list[str]:
        """Return the names of the readable topics that a pattern matches."""
        listed = await self._list(FRESH_S)
        loop = asyncio.get_running_loop()
        names = await loop.run_in_executor(self._matcher, _matching, pattern, readable, listed)
        if len(names) > MAX_MATCHED:
            raise TooManyReadings(
                f"{pattern.text!r} matches {len(names)} topics; at most {MAX_MATCHED} can be read"
            )
        return names

    async def open(
        self,
        admission: Admission,
        starts: Mapping[Place, Position],
        *,
        follow: Follow | None = None,
    ) -> Reading:
        """Start reading at these positions; the caller closes the result.

        Partitions of followed topics that appear later are read from their beginning.
        """
        has_pattern = follow is not None and follow.pattern is not None
        # A matched topic may vanish before reading starts, or the right to it; a named one may not.
        if has_pattern:
            readable = admission.readable
            starts = {place: at for place, at in starts.items() if place.topic in readable}
        else:
            admission.require({place.topic for place in starts})
        asking = self._starts_of_present if has_pattern else self._starts
        owner = admission.key if has_pattern else None
        self._require_room(starts, owner)
        found = await self._ask(asking, dict(starts))
        # Other calls may have opened some meanwhile.
        self._require_room(starts, owner)
        reading = Reading(closed=self._closed, waits=has_pattern)
        self._readings.add(reading)
        for start in found:
            self._cursors += 1
            feed = self._feed_of(start)
            reading.begin(feed, start.offset, first=start.first, end=start.end)
        if follow is not None:
            self._followers[reading] = Follower(reading, follow, admission)
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._watch_topics())
        return reading

    async def move(self, reading: Reading, starts: Mapping[Place, Position]) -> None:
        """Move a reading to other positions, in partitions that it reads."""
        for start in await self._ask(self._starts, dict(starts)):
            if start.place in reading.positions:
                feed = self._feed_of(start)
                reading.move(feed, start.offset, first=start.first, end=start.end)

    def require_answers(self, within_s: float) -> None:
        """Raise KafkaFailure if no broker has answered for longer; readings wait for one."""
        if self._failed is not None:
            since, failed = self._failed
            if asyncio.get_running_loop().time() - since >= within_s:
                raise failed

    @property
    def held_bytes(self) -> int:
        """Return the bytes that are buffered for readers at present."""
        return self._shared.buffers.bytes + sum(feed.window_bytes for feed in self._feeds.values())

    # --- life ----------------------------------------------------------------------------------

    def drain(self) -> None:
        """Open nothing more. The holders of open readings close them."""
        self._is_draining = True

    async def close(self) -> None:
        self._is_draining = True
        for reading in list(self._readings):
            reading.close()
        for task in [*self._looks, *([self._watch] if self._watch else [])]:
            task.cancel()
        threads = [lane.close() for lane in (self._head, self._turns)]
        self._askers.shutdown(wait=False, cancel_futures=True)
        self._matcher.shutdown(wait=False, cancel_futures=True)
        for thread in threads:
            if thread is not None:
                await asyncio.to_thread(thread.join, CLOSE_SECONDS)

    # --- partitions ----------------------------------------------------------------------------

    def _require_room(self, starts: Mapping[Place, object], owner: str | None) -> None:
        """Raise TooManyReadings without room for these, and for a pattern of its owner if given."""
        if self._is_draining:
            raise TooManyReadings("this worker is about to end: open it on another one")
        if why := self._full(starts):
            raise TooManyReadings(why)
        if owner is not None:
            self._require_room_for_pattern(owner)

    def _require_room_for_pattern(self, owner: str) -> None:
        patterns = [one.admission.key for one in self._followers.values() if one.has_pattern]
        if len(patterns) >= self._limits.max_patterns:
            raise TooManyReadings(f"{len(patterns)} readers look for topics by a pattern already")
        own = patterns.count(owner)
        if own >= self._limits.max_patterns_each:
            raise TooManyReadings(
                f"{own} readers of {owner} look for topics by a pattern already: end some, or name"
                " the topics"
            )

    def _full(self, starts: Mapping[Place, object]) -> str:
        """Return which limit these would exceed; an empty text if none."""
        limits = self._limits
        if self._cursors + len(starts) > limits.max_cursors:
            return f"{limits.max_cursors} places are read at the same time already"
        new = sum(place not in self._feeds for place in starts)
        if len(self._feeds) + new > limits.max_places:
            return f"{limits.max_places} partitions are read at the same time already"
        return ""

    def _feed_of(self, start: Start) -> Feed:
        """Return the feed of a partition; a topic that was created again gets a new one."""
        feed = self._feeds.get(start.place)
        if feed is not None and feed.topic_id != start.topic_id:
            feed.over(*MADE_AGAIN)
        if feed is None or feed.is_over:
            feed = self._feeds[start.place] = Feed(
                start.place, topic_id=start.topic_id, shared=self._shared
            )
        return feed

    def _window_bytes(self) -> int:
        limits = self._limits
        share = limits.windows_bytes // max(1, len(self._feeds))
        return max(limits.min_window_bytes, min(limits.max_window_bytes, share))

    def _closed(self, reading: Reading, places: Sequence[Place]) -> None:
        """Update the books after a reading has released partitions."""
        for place in places:
            self._cursors -= 1
            feed = self._feeds.get(place)
            if feed is not None and not feed.cursors:
                del self._feeds[place]
        if reading.is_over:
            self._readings.discard(reading)
            self._followers.pop(reading, None)

    def _head_arrived(self, arrived: Arrived) -> None:
        feed = self._feeds.get(arrived.place)
        if feed is not None:
            feed.head_arrived(arrived)

    def _turn_arrived(self, arrived: Arrived) -> None:
        feed = self._feeds.get(arrived.place)
        if feed is not None:
            feed.turn_arrived(arrived)

    # --- trouble -------------------------------------------------------------------------------

    def _look(self, feed: Feed, failed: KafkaFailure) -> None:
        task = asyncio.get_running_loop().create_task(self._look_at(feed, failed))
        self._looks.add(task)
        task.add_done_callback(self._looks.discard)

    async def _look_at(self, feed: Feed, failed: KafkaFailure) -> None:
        """Look up the bounds of a failed partition, as long as it has readers."""
        log.info("readers.looked_again place=%s reason=%s", feed.place, failed.name)
        while feed.cursors and not feed.is_over:
            if failed.name != OUT_OF_RANGE:
                await asyncio.sleep(LOOK_AGAIN_S)
            try:
                first, end = await self._ask(self._bounds, feed.place)
            except KafkaFailure as again:
                failed = again
                if failed.name in FINAL:
                    feed.over(failed.name, str(failed))
            else:
                feed.found(first, end)
                return

    async def _watch_topics(self) -> None:
        """End the readers of deleted topics, and find new partitions, while there are readers."""
        while self._feeds or self._followers:
            await asyncio.sleep(WATCH_S)
            try:
                await self._look_at_topics()
                self._failed = None
            except KafkaFailure as failed:
                # No broker answers, which says nothing about topics.
                self._failed = self._failed or (asyncio.get_running_loop().time(), failed)
            except Exception:
                # All readers of the process depend on this loop, and its next round may succeed.
                log.exception("readers.look_failed")
        self._watch = self._failed = None

    async def _look_at_topics(self) -> None:
        asked = list(self._feeds.values())
        followers = list(self._followers.values())
        await self._match([one for one in followers if one.has_pattern])
        names = {feed.place.topic for feed in asked}
        names.update(*(follower.topics for follower in followers))
        found = await self._ask(self._topics, sorted(names))
        for feed in asked:
            topic = found.get(feed.place.topic)
            if (topic is None or topic.id != feed.topic_id) and not feed.is_over:
                feed.over(*(GONE if topic is None else MADE_AGAIN))
        for follower in followers:
            await self._take_up(follower, found)

    # --- what appears --------------------------------------------------------------------------

    async def _list(self, age_s: float) -> frozenset[str]:
        """Return the names of all topics, from a list that is at most `age_s` old."""
        clock = asyncio.get_running_loop().time
        async with self._listing:
            if clock() - self._listed_at > age_s:
                asked_at = clock()
                self._listed = await self._ask(self._names)
                self._listed_at = asked_at
            return self._listed

    async def _match(self, followers: Sequence[Follower]) -> None:
        if followers:
            listed = await self._list(LIST_S)
            loop = asyncio.get_running_loop()
            for follower in followers:
                readable = follower.admission.readable
                await loop.run_in_executor(self._matcher, follower.match, listed, readable)

    async def _take_up(self, follower: Follower, found: Mapping[str, Topic]) -> None:
        """Add new partitions to a reading, as far as there is room, and report the others."""
        reading = follower.reading
        # A topic may have any number of partitions: the next round finds the others.
        room = reading.room_to_tell
        wanted = dict(islice(follower.wanted(found).items(), room)) if room else {}
        if not wanted:
            return
        try:
            begun = await self._ask(self._starts_of_present, dict.fromkeys(wanted, BEGINNING))
        except KafkaFailure as failed:
            # A topic that is being created or deleted: the next round finds out.
            log.info("readers.not_taken_up topic=%s reason=%s", min(wanted).topic, failed.name)
            return
        begun = [start for start in begun if wanted[start.place] == start.topic_id]
        if reading.is_over or self._is_draining or not begun:
            return
        most = follower.follow.reserve([start.place for start in begun])
        for number, start in enumerate(begun):
            why = self._full({start.place: None})
            if number >= most:
                why = "this reader has as many partitions as it can have"
            if why:
                end = End(place=start.place, name="NOT_TAKEN_UP", message=why)
                reading.refuse(start.place, start.topic_id, end)
                continue
            self._cursors += 1
            reading.take_up(self._feed_of(start), start.offset, first=start.first, end=start.end)

    # --- requests to brokers, in threads -------------------------------------------------------

    async def _ask(self, question: "Callable[[*Ts], T]", *arguments: *Ts) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._askers, question, *arguments)

    def _admin(self) -> Admin:
        admin: Admin | None = getattr(self._admins, "admin", None)
        if admin is None:
            admin = self._admins.admin = Admin(self._connection)
        return admin

    def _partitions(self, topics: Sequence[str]) -> dict[str, list[int]]:
        return {
            topic.name: [partition.index for partition in topic.partitions]
            for topic in self._admin().describe(topics)
        }

    def _topics(self, topics: Sequence[str]) -> dict[str, Topic]:
        return self._admin().find(topics)

    def _names(self) -> frozenset[str]:
        return without_internal(topic.name for topic in self._admin().topics())

    def _found_partitions(self, topics: Sequence[str]) -> dict[str, list[int]]:
        return {
            name: [partition.index for partition in topic.partitions]
            for name, topic in self._topics(topics).items()
        }

    def _bounds(self, place: Place) -> tuple[int, int]:
        return bounds(self._admin(), place.topic, [place.partition])[place.partition]

    def _starts_of_present(self, starts: Mapping[Place, Position]) -> list[Start]:
        there = {
            Place(topic=topic.name, partition=partition.index)
            for topic in self._topics(list(dict.fromkeys(one.topic for one in starts))).values()
            for partition in topic.partitions
        }
        return self._starts({place: at for place, at in starts.items() if place in there})

    def _starts(self, starts: Mapping[Place, Position]) -> list[Start]:
        admin, begun = self._admin(), []
        names = dict.fromkeys(place.topic for place in starts)
        for topic in admin.describe(names):
            wanted = {one.partition: at for one, at in starts.items() if one.topic == topic.name}
            for index in wanted.keys() - {partition.index for partition in topic.partitions}:
                value = f"topic {topic.name}, partition {index}"
                raise failure("UNKNOWN_TOPIC_OR_PARTITION", value)
            found = bounds(admin, topic.name, wanted)
            for at in dict.fromkeys(wanted.values()):
                some = [index for index, position in wanted.items() if position == at]
                begun += [
                    Start(
                        place=Place(topic=topic.name, partition=index),
                        topic_id=topic.id,
                        offset=offset,
                        first=found[index][0],
                        end=found[index][1],
                    )
                    for index, offset in admin.offsets(topic.name, some, at).items()
                ]
        return begun


def _matching(pattern: TopicPattern, readable: Readable, listed: frozenset[str]) -> list[str]:
    return sorted(pattern.among(readable.among(listed)))
