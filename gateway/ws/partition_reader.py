"""Reads partitions for one subscription of a socket that has no group."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from gateway.kafka.readers.admission import admit
from gateway.kafka.readers.engine import TooManyReadings
from gateway.kafka.readers.following import Follow
from gateway.kafka.readers.reading import Reading
from gateway.kafka.values import Place, Position, Record
from gateway.rest.codes import ApiError, Code
from gateway.ws.actions import Open
from gateway.ws.reader_context import MAX_UNSENT, Context, Task

# An empty read is retried after this; the exact interval is unimportant.
TAKE_S: Final = 30.0


class PartitionReader:
    """Reads from its creation until its tasks are cancelled, or it fails."""

    def __init__(self, context: Context, opening: Open) -> None:
        self._context = context
        self._opening = opening
        self._sid = opening.sid
        self._reading: Reading | None = None
        self._has_credit = asyncio.Event()
        self._running = asyncio.create_task(self._run())
        self._moving: Task | None = None

    @property
    def tasks(self) -> list[Task]:
        return [self._running] if self._moving is None else [self._running, self._moving]

    def take_more(self) -> None:
        """Look at the subscription's allowance again."""
        self._has_credit.set()

    def move(self, starts: Mapping[Place, Position]) -> None:
        """Continue at other positions; unnamed partitions continue where they are."""
        self._moving = asyncio.create_task(self._move(self._require_reading(), starts))

    def hold(self, places: Sequence[Place] | None, *, is_paused: bool) -> None:
        """Pause or resume partitions; None means all."""
        reading = self._require_reading()
        if places is None:
            (reading.pause_all if is_paused else reading.resume_all)()
        else:
            (reading.pause if is_paused else reading.resume)(places)

    def drop(self, places: Sequence[Place]) -> None:
        """Stop reading some partitions."""
        # A reading that is still being opened is checked once it is open.
        if self._reading is not None:
            self._reading.drop(places)

    def _require_reading(self) -> Reading:
        assert self._reading is not None, "a session asks only for what is open"
        return self._reading

    async def _run(self) -> None:
        subscriptions = self._context.subscriptions
        with self._context.reporting(self._sid, subscriptions.fail):
            reading = self._reading = await self._open()
            try:
                self._context.execute(subscriptions.begin(self._sid, reading.positions))
                await self._pump(reading)
            finally:
                reading.close()

    async def _open(self) -> Reading:
        readers, subscriptions = self._context.services.readers, self._context.subscriptions
        opening = self._opening
        starts = dict(opening.starts)
        try:
            if opening.pattern is not None:
                found = await readers.matching(opening.pattern, subscriptions.readable)
            else:
                found = await readers.partitions(opening.topics) if opening.topics else {}
            for topic, indexes in found.items():
                for index in indexes:
                    starts[Place(topic=topic, partition=index)] = opening.start
            subscriptions.reserve(self._sid, starts)
            follow = Follow(
                topics=opening.topics,
                pattern=opening.pattern,
                reserve=partial(subscriptions.reserve_more, self._sid),
            )
            has_more = bool(opening.topics) or opening.pattern is not None
            admission = admit(subscriptions, opening.topics)
            return await readers.open(admission, starts, follow=follow if has_more else None)
        except TooManyReadings as full:
            raise ApiError(Code.TOO_MANY, str(full), retry_after_s=1) from None

    async def _pump(self, reading: Reading) -> None:
        context, subscriptions = self._context, self._context.subscriptions
        while True:
            allowed = subscriptions.allowance(self._sid)
            if allowed is None:
                self._has_credit.clear()
                await self._has_credit.wait()
                continue
            if context.is_full:
                await context.outbox.room(MAX_UNSENT)
                # It may have been paused or moved by now.
                continue
            # Take and add without an await in between: of all that wait for room, one gets it.
            records, size = allowed
            ends = reading.ends
            news = reading.take_now(max_records=records, max_bytes=size)
            if not news:
                await reading.wait(TAKE_S)
                continue
            ends |= reading.ends
            context.count(sum(isinstance(one, Record) for one in news))
            context.execute(subscriptions.read(self._sid, news, ends))
            # Existing records are read without a wait, so let other tasks run.
            await asyncio.sleep(0)

    async def _move(self, reading: Reading, starts: Mapping[Place, Position]) -> None:
        subscriptions = self._context.subscriptions
        with self._context.reporting(self._sid, subscriptions.fail):
            await self._context.services.readers.move(reading, starts)
            self._context.execute(subscriptions.begin(self._sid, reading.positions))
