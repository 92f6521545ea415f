"""A member of a group with aiokafka."""

import asyncio
from collections.abc import Collection
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from tests.interop.members.journal import (
    POLL_RECORDS,
    POLL_SECONDS,
    Job,
    Journal,
    Orders,
    Pace,
)

HEARTBEATS_PER_SESSION = 6


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # (the package has no types)
    """Tells what the client is given and loses.

    The client hands out records of what it was given before it waits for this to end, so that it
    is told at once; and it hands out nothing while it takes something back, so that only a commit
    can be on its way then.
    """

    def __init__(self, journal: Journal, committing: asyncio.Lock) -> None:
        self._journal = journal
        self._committing = committing

    async def on_partitions_assigned(self, assigned: Collection[Any]) -> None:
        self._journal.assigned(place.partition for place in assigned)

    async def on_partitions_revoked(self, revoked: Collection[Any]) -> None:
        # Once told, the client joins again, and what it commits then is of another generation.
        async with self._committing:
            self._journal.revoked(place.partition for place in revoked)


class Member:
    def __init__(self, job: Job) -> None:
        assert job.protocol == "classic", f"aiokafka has no protocol {job.protocol!r}"
        self._job = job
        self._journal = Journal()
        self._committing = asyncio.Lock()
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=job.bootstrap,
            group_id=job.group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=job.session_ms,
            heartbeat_interval_ms=job.session_ms // HEARTBEATS_PER_SESSION,
            **job.settings,
        )

    async def run(self, orders: Orders, ordered: asyncio.Event) -> None:
        self._consumer.subscribe(
            [self._job.topic], listener=Listener(self._journal, self._committing)
        )
        await self._consumer.start()
        pace = Pace(self._job.per_second)
        while not orders.is_over:
            pace.spend(await self._take_some())
            # Read, told and sent without another await: nothing can be taken back in between.
            await self._commit(self._journal.tell_read())
            try:
                await asyncio.wait_for(ordered.wait(), max(0.001, pace.left()))
            except TimeoutError:
                continue
        self._journal.closing()
        await self._consumer.stop()

    async def _take_some(self) -> int:
        batches = await self._consumer.getmany(
            timeout_ms=int(POLL_SECONDS * 1000), max_records=POLL_RECORDS
        )
        for batch in batches.values():
            for message in batch:
                self._journal.note(message.partition, message.offset)
        return sum(map(len, batches.values()))

    async def _commit(self, offsets: dict[int, int]) -> None:
        if not offsets:
            return
        places = {
            TopicPartition(self._job.topic, place): offset for place, offset in offsets.items()
        }
        try:
            async with self._committing:
                await self._consumer.commit(places)
        except KafkaError:
            # The group moved on meanwhile: somebody reads these records again.
            return
        self._journal.committed(offsets)


async def main() -> None:
    loop, ordered = asyncio.get_running_loop(), asyncio.Event()
    orders = Orders(lambda: loop.call_soon_threadsafe(ordered.set))
    await Member(orders.job).run(orders, ordered)


if __name__ == "__main__":
    asyncio.run(main())
