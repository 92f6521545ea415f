"""Hosts the shards of one internal topic: loads and ends them, and passes operations to them.

Follows the partitions that this broker leads. The leader of a partition of the topic coordinates
the groups in it, from the moment its log has been replayed to the end of its leadership; in that
time no other broker writes to it.

Belongs to the event loop. Knows neither requests nor the purpose of the shards.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import Enum, auto
from itertools import count
from typing import Final, Generic, TypeVar, cast

from brokers.clock import Clock
from brokers.cluster.image import ClusterImage
from brokers.coordination.answers import Answers, Done
from brokers.coordination.hosted import Hosted
from brokers.coordination.house import House, Limits
from brokers.coordination.jobs import Jobs
from brokers.coordination.loading import Loaded, Loading
from brokers.coordination.rounds import not_coordinator
from brokers.coordination.shard import Operation, S, Shard, TimerKey
from brokers.coordination.timers import Timers
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.replication.partition import Partition
from brokers.replication.replicas import Replicas, Trouble
from brokers.replication.turns import Turns
from brokers.slices import Slices

__all__ = ["Limits", "Runtime", "ShardState"]

# Shards that are loaded at the same time; the others wait, so that the first are ready early.
MAX_LOADS: Final = 4
RETRY_LOAD_MS: Final = 10_000
# How long `close` waits for records that are being written.
CLOSE_SECONDS: Final = 1.0

T = TypeVar("T")


class ShardState(Enum):
    """The state of a shard."""

    LOADING = auto()
    ACTIVE = auto()
    FAILED = auto()  # its log could not be read; loading will be retried


class _Place(Generic[S]):
    """One shard with its state and its loading task."""

    __slots__ = ("hosted", "image", "state", "task")

    def __init__(self, hosted: Hosted[S], image: ClusterImage) -> None:
        self.hosted = hosted
        self.image = image  # the one that the shard was created with, or got last
        self.state = ShardState.LOADING
        self.task: asyncio.Task[None] | None = None


class Runtime(Generic[S]):
    """See the module. `on_loaded` and `on_round` may be set, for logs and metrics."""

    def __init__(
        self,
        topic: str,
        *,
        replicas: Replicas,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        make_shard: Callable[[int, ClusterImage], S],
        on_trouble: Trouble,
        limits: Limits | None = None,
    ) -> None:
        self.topic = topic
        self._replicas = replicas
        self._clock = clock
        self._loop = loop
        self._make_shard = make_shard
        self._on_trouble = on_trouble
        # Called with each shard that was loaded, and with the seconds that each round took.
        self.on_loaded: Callable[[int, Loaded], None] = _unseen
        self.on_round: Callable[[float], None] = _unseen
        self._image: ClusterImage | None = None
        self._places: dict[int, _Place[S]] = {}
        self._loads = asyncio.Semaphore(MAX_LOADS)
        self._is_closing = False
        self._retries = Timers(replicas.deadlines, clock, self._retry)
        self._house: House[Hosted[S]] = House(
            loop=loop,
            clock=clock,
            deadlines=replicas.deadlines,
            answers=Answers(loop, clock, on_trouble),
            jobs=Jobs(loop, clock, on_trouble),
            turns=Turns(loop, clock, on_trouble, event="coordinator.turn_failed"),
            limits=limits or Limits(),
            on_trouble=on_trouble,
            on_end=self._begin_again,
            on_round=self._round_ended,
            tickets=count(1),
        )

    # -- for requests ----------------------------------------------------------------------------

    def submit(self, index: int, operation: Operation[S], done: Done) -> None:
        """Run an operation on a shard; `done` gets its answer once, perhaps before this returns.

        `done` gets errors in the same way; nothing is raised.
        """
        place = self._places.get(index)
        if place is None or place.state is not ShardState.ACTIVE or self._is_closing:
            try:
                place = self._active(index)
            except KafkaError as error:
                self._house.answers.give(done, error)
                return
        place.hosted.submit(operation, done)

    def look(self, index: int, query: Callable[[S], T]) -> T:
        """Query a shard's committed state; KafkaError if it is not here, or not loaded yet."""
        return query(self._active(index).hosted.shard)

    def is_active(self, index: int) -> bool:
        """Whether a shard is here and loaded."""
        place = self._places.get(index)
        return place is not None and place.state is ShardState.ACTIVE

    def hosts(self, index: int) -> bool:
        """Whether a shard is here, in any state."""
        return index in self._places or self._found(index) is not None

    def active(self) -> Iterator[tuple[int, S]]:
        """Yield the loaded shards."""
        for index, place in list(self._places.items()):
            if place.state is ShardState.ACTIVE:
                yield index, place.hosted.shard

    def states(self) -> Mapping[int, ShardState]:
        return {index: place.state for index, place in self._places.items()}

    @property
    def parked(self) -> int:
        """The number of requests that wait for other clients."""
        return self._house.parked

    def _active(self, index: int) -> _Place[S]:
        place = self._places.get(index)
        if place is None:
            place = self._found(index)
        if place is None or place.state is ShardState.FAILED or self._is_closing:
            raise not_coordinator(self.topic, index)
        if place.state is ShardState.LOADING:
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"{self.topic}-{index} is still being read"
            )
        return place

    def _found(self, index: int) -> _Place[S] | None:
        """Begin to host a partition whose log could be opened late, which no image announces."""
        partition = self._replicas.led((self.topic, index))
        if partition is None or self._image is None or self._is_closing:
            return None
        self._begin(partition, self._image)
        return self._places.get(index)

    # -- the cluster -----------------------------------------------------------------------------

    def apply(self, image: ClusterImage) -> None:
        """Follow an image that the replicas have applied already."""
        if self._is_closing:
            return
        before, self._image = self._image, image
        for index, place in list(self._places.items()):
            hosted = place.hosted
            partition = self._replicas.led((self.topic, index))
            if partition is not hosted.partition or partition.leader_epoch != hosted.epoch:
                self._unload(index)
        topic = image.topics.get(self.topic)
        for index in range(0 if topic is None else len(topic.partitions)):
            partition = self._replicas.led((self.topic, index))
            if partition is not None and index not in self._places:
                self._begin(partition, image)
        if before is not None:
            for place in self._places.values():
                if place.state is ShardState.ACTIVE and place.image is not image:
                    self._tell_of_image(place, image)

    def run_chores(self) -> None:
        """Start the periodic chores of every shard; they run in later turns."""
        for place in self._places.values():
            if place.state is ShardState.ACTIVE:
                place.hosted.later(self._shard(place).chores(self._clock.now_ms()))

    async def close(self) -> None:
        """End all shards; waiting clients are told to look for another coordinator.

        Rounds that are being written are awaited, so that their clients get the true result.
        """
        self._is_closing = True
        for place in self._places.values():
            if place.state is ShardState.ACTIVE:
                place.hosted.send_away()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                for place in list(self._places.values()):
                    if place.state is ShardState.ACTIVE:
                        await place.hosted.settle()
        except TimeoutError:
            pass  # Its clients are redirected, and find out the result elsewhere.
        tasks = [place.task for place in self._places.values() if place.task is not None]
        for index in list(self._places):
            self._unload(index)
        if tasks:
            await asyncio.wait(tasks)
        await self._house.jobs.close()
        while len(self._house.answers):
            self._house.answers.deliver()
            await asyncio.sleep(0)

    def _begin(self, partition: Partition, image: ClusterImage) -> None:
        """Create a shard and begin to load it."""
        index = partition.index
        shard = None
        with self._house.reporting("coordinator.not_loaded"):
            shard = self._make_shard(index, image)
        if shard is None:
            return
        hosted = Hosted(index, partition, shard, cast("Shard[S]", shard), self._house)
        place = self._places[index] = _Place(hosted, image)
        place.task = self._loop.create_task(self._load(place))

    def _begin_again(self, hosted: Hosted[S]) -> None:
        """Replace a shard that cannot continue by one that is loaded from the log."""
        place = self._places.get(hosted.index)
        if place is None or place.hosted is not hosted:
            return
        self._unload(hosted.index)
        partition = self._replicas.led((self.topic, hosted.index))
        is_mine = partition is not None and partition.is_leading and not self._is_closing
        if is_mine and partition is not None and self._image is not None:
            self._begin(partition, self._image)

    def _unload(self, index: int) -> None:
        place = self._places.pop(index)
        self._retries.cancel(_retry_key(index))
        if place.task is not None:
            place.task.cancel()
        place.hosted.unload()

    def _tell_of_image(self, place: _Place[S], image: ClusterImage) -> None:
        before, place.image = place.image, image
        place.hosted.later(self._shard(place).image_changed(before, image, self._clock.now_ms()))

    # -- loading ---------------------------------------------------------------------------------

    async def _load(self, place: _Place[S]) -> None:
        hosted = place.hosted
        try:
            async with self._loads:
                loaded = await self._replay(hosted)
                # No state is set before this: a failed load never counts as a shard.
                await hosted.start(Slices(self._clock))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 - also a bug must leave a shard that is tried again
            self._on_trouble("coordinator.not_loaded", error)
            place.state = ShardState.FAILED
            self._retries.set(_retry_key(hosted.index), RETRY_LOAD_MS)
            return
        finally:
            place.task = None
        place.state = ShardState.ACTIVE
        if self._image is not None and place.image is not self._image:
            self._tell_of_image(place, self._image)
        self.on_loaded(hosted.index, loaded)

    async def _replay(self, hosted: Hosted[S]) -> Loaded:
        began = self._clock.monotonic()
        loading = Loading(
            hosted.partition,
            cast("Shard[S]", hosted.shard),
            room=self._replicas.room,
            slices=Slices(self._clock),
            on_unreadable=lambda error: self._on_trouble("coordinator.record_unreadable", error),
        )
        # Read once: from here on only this shard writes to the log, and not before it is loaded.
        loaded = await loading.run(hosted.partition.log.end_offset)
        return replace(loaded, seconds=self._clock.monotonic() - began)

    def _round_ended(self, seconds: float) -> None:
        self.on_round(seconds)

    def _retry(self, key: TimerKey) -> None:
        index = int(key.subject)
        place = self._places.get(index)
        if place is not None and place.state is ShardState.FAILED:
            self._begin_again(place.hosted)

    def _shard(self, place: _Place[S]) -> Shard[S]:
        return cast("Shard[S]", place.hosted.shard)


def _retry_key(index: int) -> TimerKey:
    return TimerKey("load", str(index))


def _unseen(*_facts: object) -> None:
    return None
