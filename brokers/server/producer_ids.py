"""Issues producer ids, each once in the life of the cluster, from blocks of the store.

Knows no requests and no store; callers pass a function that gets a new block. Blocks are not kept
over a restart, so the rest of one is lost, which 63 bits allow. That this broker got a block is on
the disk before its first id goes to a client, so that this broker knows it even if the cluster's
database loses it. If a log has seen an unissued id of a block, the block was issued twice, by a
database that was restored from an older copy, and is dropped.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from brokers.cluster.proposals import Outcome, ProducerIdsResult
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.storage.producer_ids import SeenProducerIds

# The next block is fetched once less than this share of a block is left, as in Kafka.
_LOW_SHARE: Final = 10
# Blocks of one request that turn out to be in use: one after the database was restored, and more
# only if a client deliberately writes with the newest ids.
_MAX_BLOCKS_IN_USE: Final = 3

# Requests a block above the highest id that was seen here.
Allocate = Callable[[int], Awaitable[Outcome]]


class ProducerIds:
    """Belongs to the event loop. `save` writes to disk what `seen` counts as used."""

    def __init__(self, seen: SeenProducerIds, *, save: Callable[[], None]) -> None:
        self._seen = seen
        self._save = save
        self._next = self._end = 0
        self._ahead: tuple[int, int] | None = None  # the next block
        self._size = 0
        self._fetching: asyncio.Task[None] | None = None
        seen.on_seen = self._drop_if_used

    async def next(self, allocate: Allocate) -> int:
        """Return an id that was never issued; a retriable KafkaError while there is no block."""
        while self._next >= self._end:
            if self._ahead is not None:
                (self._next, self._end), self._ahead = self._ahead, None
                break
            # All waiters share one request; one that is cancelled must not end it for the others.
            await asyncio.shield(self._fetch(allocate))
        given = self._next
        self._next += 1
        is_low = (self._end - self._next) * _LOW_SHARE < self._size
        if is_low and self._ahead is None and self._fetching is None:
            self._fetch(allocate)
        return given

    def _fetch(self, allocate: Allocate) -> asyncio.Task[None]:
        if self._fetching is None:
            self._fetching = asyncio.get_running_loop().create_task(self._take_block(allocate))
            self._fetching.add_done_callback(_forgive)
        return self._fetching

    async def _take_block(self, allocate: Allocate) -> None:
        try:
            block = await self._unused_block(allocate)
            self._seen.reserve(block.first + block.count - 1)
            self._save()
        except KafkaError as error:
            # Kafka's code for this: clients treat others as fatal.
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"no block of producer ids could be allocated: {error.code.name} {error.message}",
            ) from error
        finally:
            self._fetching = None
        self._ahead = (block.first, block.first + block.count)
        self._size = block.count

    async def _unused_block(self, allocate: Allocate) -> ProducerIdsResult:
        """Return a block of which no id arrived in a log while it was requested."""
        for _ in range(_MAX_BLOCKS_IN_USE):
            outcome = await allocate(self._seen.highest)
            block = outcome.result
            if outcome.error is not ErrorCode.NONE or not isinstance(block, ProducerIdsResult):
                raise KafkaError(outcome.error, outcome.message)
            if not block.first <= self._seen.highest < block.first + block.count:
                return block
        raise KafkaError(
            ErrorCode.UNKNOWN_PRODUCER_ID,
            f"{_MAX_BLOCKS_IN_USE} new blocks were in use already; the highest id seen is "
            f"{self._seen.highest}",
        )

    def _drop_if_used(self, producer_id: int) -> None:
        """Drop the current blocks if a log has seen an id of theirs that was not issued."""
        ahead = self._ahead or (0, 0)
        if self._next <= producer_id < self._end or ahead[0] <= producer_id < ahead[1]:
            self._next = self._end = 0
            self._ahead = None


def _forgive(task: asyncio.Task[None]) -> None:
    """Retrieve a failure that may have no waiter; the next caller requests a block again."""
    if not task.cancelled():
        task.exception()
