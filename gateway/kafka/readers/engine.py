"""The door: opens readings for the reads of one process. Belongs to one event loop."""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from typing import Final, TypeVar, TypeVarTuple

from gateway.kafka.admin import Admin
from gateway.kafka.connection import Connection
from gateway.kafka.errors import KafkaFailure, failure
from gateway.kafka.readers.buffers import Buffers
from gateway.kafka.readers.feed import Feed, Shared
from gateway.kafka.readers.lane import JUMPING, STEADY, Arrived, Lane
from gateway.kafka.readers.reading import Reading
from gateway.kafka.readers.values import Limits
from gateway.kafka.values import Place, Position, PositionKind

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
log: Final = logging.getLogger(__name__)
# Threads that ask brokers where partitions begin and end; each waits for its answer.
ASKERS: Final = 4
# How long after a partition could not be read it is asked for, and again until it answers.
LOOK_AGAIN_S: Final = 1.0
# These say that it will not come back by itself.
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
BEGINNING: Final = Position(kind=PositionKind.BEGINNING)
END: Final = Position(kind=PositionKind.END)
CLOSE_SECONDS: Final = 1.5


# What librdkafka does not tell by itself: it waits for a topic that is gone. One question for all
# topics that are read, which a deletion waits for as long.
WATCH_S: Final = 3.0
GONE: Final = ("UNKNOWN_TOPIC_OR_PARTITION", "the topic was deleted")
MADE_AGAIN: Final = ("UNKNOWN_TOPIC_ID", "the topic was deleted and made again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a reader begins, and the bounds of the partition."""

    place: Place
    topic_id: str
    offset: int
    first: int
    end: int


class TooManyReadings(Exception):
    """No more can be read at the same time; the text says of what there is no more."""


class Readers:
    """Every reader without a group of one process.

        reading = await readers.open({Place(topic="orders", partition=0): BEGINNING})
        news = await reading.take(max_records=100, max_bytes=1_000_000, wait_s=5)
        reading.close()

    `open` raises KafkaFailure where a partition is not there or cannot be asked, and
    TooManyReadings. An offset that the partition does not hold is no failure: the first news is
    then a gap. After that nothing fails: a cluster that is away is waited for.
    """

    def __init__(self, connection: Connection, limits: Limits | None = None) -> None:
        self._connection = connection
        self._limits = limits or Limits()
        self._feeds: dict[Place, Feed] = {}
        self._readings: set[Reading] = set()
        self._cursors = 0
        self._looks: set[asyncio.Task[None]] = set()
        self._watch: asyncio.Task[None] | None = None
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
        self._askers = ThreadPoolExecutor(ASKERS, "readers-ask")
        self._admins = threading.local()

    # --- for whoever reads ---------------------------------------------------------------------

    async def partitions(self, topics: Sequence[str]) -> dict[str, list[int]]:
        """Return the partitions of topics; KafkaFailure where one of them is not there."""
        return await self._ask(self._partitions, topics)

    async def open(self, starts: Mapping[Place, Position]) -> Reading:
        """Begin to read at these positions; close what is returned."""
        self._require_room(starts)
        found = await self._ask(self._starts, dict(starts))
        # Others have opened some meanwhile.
        self._require_room(starts)
        reading = Reading(closed=self._closed)
        self._readings.add(reading)
        self._cursors += len(found)
        for start in found:
            feed = self._feeds.get(start.place)
            if feed is not None and feed.topic_id != start.topic_id:
                feed.over(*MADE_AGAIN)
            if feed is None or feed.is_over:
                feed = self._feeds[start.place] = Feed(
                    start.place, topic_id=start.topic_id, shared=self._shared
                )
            reading.begin(feed, start.offset, first=start.first, end=start.end)
        if self._watch is None:
            self._watch = asyncio.get_running_loop().create_task(self._watch_topics())
        return reading

    @property
    def held_bytes(self) -> int:
        """Return what is kept for readers at the moment."""
        return self._shared.buffers.bytes + sum(feed.window_bytes for feed in self._feeds.values())

    # --- life ----------------------------------------------------------------------------------

    def drain(self) -> None:
        """Open nothing more. What is open is ended by whoever holds it."""
        self._is_draining = True

    async def close(self) -> None:
        self._is_draining = True
        for reading in list(self._readings):
            reading.close()
        for task in [*self._looks, *([self._watch] if self._watch else [])]:
            task.cancel()
        threads = [lane.close() for lane in (self._head, self._turns)]
        self._askers.shutdown(wait=False, cancel_futures=True)
        for thread in threads:
            if thread is not None:
                await asyncio.to_thread(thread.join, CLOSE_SECONDS)

    # --- partitions ----------------------------------------------------------------------------

    def _require_room(self, starts: Mapping[Place, Position]) -> None:
        limits = self._limits
        if self._is_draining:
            raise TooManyReadings("this worker is about to end: open it on another one")
        if self._cursors + len(starts) > limits.max_cursors:
            raise TooManyReadings(f"{limits.max_cursors} places are read at the same time already")
        new = sum(place not in self._feeds for place in starts)
        if len(self._feeds) + new > limits.max_places:
            raise TooManyReadings(
                f"{limits.max_places} partitions are read at the same time already"
            )

    def _window_bytes(self) -> int:
        limits = self._limits
        share = limits.windows_bytes // max(1, len(self._feeds))
        return max(limits.min_window_bytes, min(limits.max_window_bytes, share))

    def _closed(self, reading: Reading, places: Sequence[Place]) -> None:
        """Take note that a reading has let go of places."""
        for place in places:
            self._cursors -= 1
            feed = self._feeds.get(place)
            if feed is not None and not feed.cursors:
                del self._feeds[place]
        if reading.is_over:
            self._readings.discard(reading)

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
        """Find out where a partition begins and ends now, as long as somebody reads it."""
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
        """End the readers of topics that are gone, as long as anything is read."""
        while self._feeds:
            await asyncio.sleep(WATCH_S)
            asked = list(self._feeds.values())
            names = sorted({feed.place.topic for feed in asked})
            try:
                found = await self._ask(self._ids, names)
            except KafkaFailure:
                # No broker answers: that says nothing of topics.
                continue
            for feed in asked:
                topic_id = found.get(feed.place.topic)
                if topic_id != feed.topic_id and not feed.is_over:
                    feed.over(*(GONE if topic_id is None else MADE_AGAIN))
        self._watch = None

    # --- what brokers are asked, in threads ----------------------------------------------------

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

    def _ids(self, topics: Sequence[str]) -> dict[str, str]:
        return {name: topic.id for name, topic in self._admin().find(topics).items()}

    def _bounds(self, place: Place) -> tuple[int, int]:
        admin, wanted = self._admin(), [place.partition]
        first = admin.offsets(place.topic, wanted, BEGINNING)[place.partition]
        return first, max(first, admin.offsets(place.topic, wanted, END)[place.partition])

    def _starts(self, starts: Mapping[Place, Position]) -> list[Start]:
        admin, begun = self._admin(), []
        names = dict.fromkeys(place.topic for place in starts)
        for topic in admin.describe(names):
            wanted = {one.partition: at for one, at in starts.items() if one.topic == topic.name}
            for index in wanted.keys() - {partition.index for partition in topic.partitions}:
                value = f"topic {topic.name}, partition {index}"
                raise failure("UNKNOWN_TOPIC_OR_PARTITION", value)
            first = admin.offsets(topic.name, wanted, BEGINNING)
            end = admin.offsets(topic.name, wanted, END)
            for at in dict.fromkeys(wanted.values()):
                some = [index for index, position in wanted.items() if position == at]
                begun += [
                    Start(
                        place=Place(topic=topic.name, partition=index),
                        topic_id=topic.id,
                        offset=offset,
                        first=first[index],
                        end=max(first[index], end[index]),
                    )
                    for index, offset in admin.offsets(topic.name, some, at).items()
                ]
        return begun
