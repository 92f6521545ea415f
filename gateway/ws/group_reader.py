"""Reads as a member of a consumer group for one subscription of a socket.

Belongs to the event loop; `group_reading` has the thread in which the member blocks.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from gateway.kafka.errors import KafkaFailure
from gateway.kafka.member import Reset
from gateway.kafka.readers.engine import TooManyReadings
from gateway.kafka.topic_pattern import TopicPattern
from gateway.kafka.values import Place, Position
from gateway.rest.codes import ApiError, Code
from gateway.ws.actions import Action, Join
from gateway.ws.group_reading import GroupReading
from gateway.ws.reader_context import Context, Task

# How often an idle member polls its group, and how long it may go without credit.
LOOK_S: Final = 1.0
NO_CREDIT_S: Final = 300.0
# How often a member looks for new topics of its pattern; as often as topics are listed for readers
# without a group.
LOOK_FOR_TOPICS_S: Final = 10.0


class GroupReader:
    """A member of its group from its creation until its tasks are cancelled, or it fails."""

    def __init__(self, context: Context, joining: Join) -> None:
        self._context = context
        self._joining = joining
        self._sid = joining.sid
        self._group: GroupReading | None = None
        # The offsets to commit next, all at once.
        self._acks: dict[Place, int] = {}
        # The partitions that shall be paused, and those that are.
        self._paused: set[Place] = set()
        self._held: set[Place] = set()
        self._has_credit = asyncio.Event()
        self._running = asyncio.create_task(self._run())
        self._committing: Task | None = None
        self._holding: Task | None = None
        self._moving: Task | None = None
        # Looks for new topics of a pattern.
        self._following: Task | None = None

    @property
    def tasks(self) -> list[Task]:
        begun = (self._running, self._committing, self._holding, self._moving, self._following)
        return [task for task in begun if task is not None]

    def take_more(self) -> None:
        """Look at the subscription's allowance again."""
        self._has_credit.set()

    def commit(self, offsets: Mapping[Place, int]) -> None:
        """Commit offsets; requests during a commit are combined into the next one."""
        self._acks.update(offsets)
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._commit(self._require_group()))

    def move(self, starts: Mapping[Place, Position]) -> None:
        """Continue at other positions; unnamed partitions continue where they are."""
        self._moving = asyncio.create_task(self._move(self._require_group(), starts))

    def hold(self, places: Sequence[Place] | None, *, is_paused: bool) -> None:
        """Pause or resume in the member's thread; requests during a turn are combined."""
        if is_paused:
            self._paused.update(places or ())
        else:
            self._paused.difference_update(list(self._paused) if places is None else places)
        if self._holding is None or self._holding.done():
            self._holding = asyncio.create_task(self._hold(self._require_group()))

    def _require_group(self) -> GroupReading:
        assert self._group is not None, "a session asks only for what is open"
        return self._group

    async def _run(self) -> None:
        services, caller = self._context.services, self._context.session.caller
        subscriptions, joining = self._context.subscriptions, self._joining
        assert caller is not None, "a caller without a name subscribes"
        reset = Reset.EARLIEST if joining.is_from_earliest else Reset.LATEST
        with self._context.reporting(self._sid, subscriptions.fail):
            async with services.member_seats.reserved(caller):
                group = GroupReading(services.member(joining.group, reset))
                try:
                    await self._join(group)
                    subscriptions.note_join(self._sid)
                    await self._pump(group)
                finally:
                    group.close(self._acks)

    async def _join(self, group: GroupReading) -> None:
        readers, topics = self._context.services.readers, self._joining.topics
        if self._joining.pattern is None:
            # Report a missing topic at once; a group would wait for it.
            await readers.partitions(topics)
        else:
            topics = await self._match(self._joining.pattern)
            following = self._follow_topics(self._joining.pattern, group, topics)
            self._following = asyncio.create_task(following)
        await group.join(topics)
        self._group = group

    async def _match(self, pattern: TopicPattern) -> Sequence[str]:
        """Return the readable topics that the member reads at present."""
        subscriptions = self._context.subscriptions
        try:
            topics = await self._context.services.readers.names(pattern, subscriptions.readable)
        except TooManyReadings as full:
            raise ApiError(Code.TOO_MANY, str(full)) from None
        subscriptions.note_topics(self._sid, topics)
        return topics

    async def _follow_topics(
        self, pattern: TopicPattern, group: GroupReading, topics: Sequence[str]
    ) -> None:
        """Let the member read new topics of its pattern."""
        with self._context.reporting(self._sid, self._context.subscriptions.fail):
            while True:
                await asyncio.sleep(LOOK_FOR_TOPICS_S)
                try:
                    found = await self._match(pattern)
                except KafkaFailure:
                    # No broker answers, which says nothing about topics.
                    continue
                if found != topics:
                    topics = found
                    await group.join(topics)

    async def _pump(self, group: GroupReading) -> None:
        context, subscriptions = self._context, self._context.subscriptions
        clock = asyncio.get_running_loop().time
        used_at = clock()
        while True:
            allowed = subscriptions.allowance(self._sid)
            if allowed is None or context.is_full:
                await group.look()
                self._note_assignment(group)
                if allowed is None and clock() - used_at >= NO_CREDIT_S:
                    context.execute(subscriptions.end_unused(self._sid))
                self._has_credit.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._has_credit.wait()
                continue
            used_at = clock()
            records, size = allowed
            found, ends = await group.take(max_records=records, max_bytes=size)
            self._note_assignment(group)
            context.count(len(found))
            context.execute(subscriptions.read(self._sid, found, ends))

    def _note_assignment(self, group: GroupReading) -> None:
        """Report assigned and revoked partitions; one that returns is not paused."""
        self._paused.intersection_update(group.assignment)
        self._held.intersection_update(group.assignment)
        self._context.execute(self._context.subscriptions.assign(self._sid, group.assignment))

    async def _commit(self, group: GroupReading) -> None:
        context, subscriptions = self._context, self._context.subscriptions
        while self._acks:
            offsets, self._acks = self._acks, {}
            with context.reporting(self._sid, subscriptions.report_failed_commit):
                await group.commit(offsets)
                context.execute(subscriptions.report_commit(self._sid, offsets))

    async def _move(self, group: GroupReading, starts: Mapping[Place, Position]) -> None:
        subscriptions = self._context.subscriptions
        with self._context.reporting(self._sid, subscriptions.report_failed_move):
            await group.seek(starts)
            offsets = {place: position.value for place, position in starts.items()}
            self._context.execute(subscriptions.report_move(self._sid, offsets))

    async def _hold(self, group: GroupReading) -> None:
        def revert(sid: str, error: Exception) -> Sequence[Action]:
            self._paused = set(self._held)
            return self._context.subscriptions.report_failed_hold(sid, error)

        while self._paused != self._held:
            wanted, held = set(self._paused), self._held
            with self._context.reporting(self._sid, revert):
                await group.hold(wanted - held, held - wanted)
                self._held = wanted
