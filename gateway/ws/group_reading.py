"""Reads as a member of a consumer group, for one subscription of a socket.

Its client blocks, so it has a thread of its own; call everything here on the loop.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Final, Protocol, TypeVar

from gateway.kafka.member import Subscription
from gateway.kafka.values import Place, Position, Record

T = TypeVar("T")
log: Final = logging.getLogger(__name__)
# The wait of an empty read, which also delays a commit and the end of the subscription.
TAKE_S: Final = 0.5


class Member(Protocol):
    """The used part of `gateway.kafka.member`. Not thread-safe, except for `stop`."""

    def subscribe(self, subscription: Subscription) -> None: ...
    def assignment(self) -> Sequence[Place]: ...
    def take(self, *, max_bytes: int, min_bytes: int, wait_s: float) -> list[Record]: ...
    def give_back(self, records: Sequence[Record]) -> None: ...
    def look(self) -> None: ...
    def commit(self, offsets: Mapping[Place, int]) -> None: ...
    def seek(self, positions: Mapping[Place, Position]) -> None: ...
    def pause(self, places: Collection[Place]) -> None: ...
    def resume(self, places: Collection[Place]) -> None: ...
    def ends(self, places: Iterable[Place]) -> dict[Place, int]: ...
    def stop(self) -> None: ...
    def close(self) -> None: ...


class GroupReading:
    """Belongs to one event loop. Close it, or the group waits for its session."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._thread = ThreadPoolExecutor(1, "ws-member")
        self._is_closed = False
        # The assigned partitions, as of the last call.
        self.assignment: Collection[Place] = ()

    async def join(self, topics: Sequence[str]) -> None:
        await self._run(partial(self._member.subscribe, Subscription(topics=tuple(topics))))

    async def take(
        self, *, max_records: int, max_bytes: int
    ) -> tuple[list[Record], dict[Place, int]]:
        """Return records, and the known ends of their partitions.

        Returns none if none arrive within TAKE_S, or much later at the start.
        """
        return await self._run(partial(self._take, max_records, max_bytes))

    async def look(self) -> None:
        """Poll the group; this keeps the membership of an idle member."""
        await self._run(self._member.look)

    async def commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit, even if the caller is cancelled meanwhile: the next owner starts there."""
        work = partial(self._member.commit, offsets)
        asked = asyncio.get_running_loop().run_in_executor(self._thread, self._done, work)
        _, self.assignment = await asyncio.shield(asked)

    async def seek(self, positions: Mapping[Place, Position]) -> None:
        """Continue at other positions. Raises NotAssigned for a partition revoked meanwhile."""
        await self._run(partial(self._member.seek, positions))

    async def hold(self, paused: Collection[Place], resumed: Collection[Place]) -> None:
        """Pause some partitions, and resume others."""
        await self._run(partial(self._hold, paused, resumed))

    def close(self, acks: Mapping[Place, int] | None = None) -> None:
        """Commit the rest and leave the group, as soon as the thread is free."""
        if self._is_closed:
            return
        self._is_closed = True
        self._member.stop()
        if acks:
            self._thread.submit(self._member.commit, dict(acks)).add_done_callback(_note)
        self._thread.submit(self._member.close).add_done_callback(_note)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        found, self.assignment = await loop.run_in_executor(self._thread, self._done, work)
        return found

    def _done(self, work: Callable[[], T]) -> tuple[T, Collection[Place]]:
        return work(), frozenset(self._member.assignment())

    def _hold(self, paused: Collection[Place], resumed: Collection[Place]) -> None:
        self._member.pause(paused)
        self._member.resume(resumed)

    def _take(self, most: int, size: int) -> tuple[list[Record], dict[Place, int]]:
        found = self._member.take(max_bytes=size, min_bytes=1, wait_s=TAKE_S)
        if len(found) > most:
            self._member.give_back(found[most:])
        taken = found[:most]
        places = {Place(topic=one.topic, partition=one.partition) for one in taken}
        return taken, self._member.ends(places)


def _note(closing: "Future[None]") -> None:
    if closing.exception() is not None:
        log.warning("ws.member_not_closed error=%s", closing.exception())
