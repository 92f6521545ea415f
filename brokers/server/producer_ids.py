"""Producer ids, each given out once in the life of the cluster, from blocks of the store.

Knows no requests and no store; who asks brings the way to a new block. Blocks are not remembered
over a restart, so what is left of one is lost, which is what 63 bits are for. That a block was
given here is on the disk before its first id goes to a client: whatever happens to the database of
the cluster, this broker can tell. A block of which a log has seen an unused id was given out twice,
by a database that was set back, and is dropped.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from brokers.cluster.proposals import Outcome, ProducerIdsResult
from brokers.protocol.errors import ErrorCode, KafkaError
from brokers.storage.producer_ids import SeenProducerIds

# A next block is fetched ahead once fewer than this share of a block are left, as Kafka does.
_LOW_SHARE: Final = 10
# Blocks of one request that turn out to be in use: one after the database was set back, and more
# only where somebody writes with the newest ids on purpose.
_MAX_BLOCKS_IN_USE: Final = 3

# Asks for a block above the highest id that was seen here.
Allocate = Callable[[int], Awaitable[Outcome]]


class ProducerIds:
    """Belongs to the event loop. `save` notes on the disk what `seen` counts as used."""

    def __init__(self, seen: SeenProducerIds, *, save: Callable[[], None]) -> None:
        self._seen = seen
        self._save = save
        self._next = self._end = 0
        self._ahead: tuple[int, int] | None = None  # the next block
        self._size = 0
        self._fetching: asyncio.Task[None] | None = None
        seen.on_seen = self._drop_if_used

    async def next(self, allocate: Allocate) -> int:
        """An id that nobody had before; KafkaError, retriable, while no block can be had."""
        while self._next >= self._end:
            if self._ahead is not None:
                (self._next, self._end), self._ahead = self._ahead, None
                break
            # All who wait share one request; one who leaves must not end it for the others.
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
            # The code by which Kafka says it: clients take others for the end.
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"no block of producer ids could be had: {error.code.name} {error.message}",
            ) from error
        finally:
            self._fetching = None
        self._ahead = (block.first, block.first + block.count)
        self._size = block.count

    async def _unused_block(self, allocate: Allocate) -> ProducerIdsResult:
        """Return a block of which no id has arrived in a log while it was asked for."""
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
        """Give up the blocks in hand when a log meets an id that was not given out of them."""
        ahead = self._ahead or (0, 0)
        if self._next <= producer_id < self._end or ahead[0] <= producer_id < ahead[1]:
            self._next = self._end = 0
            self._ahead = None


def _forgive(task: asyncio.Task[None]) -> None:
    """Takes note of a failure that nobody may have waited for; who needs a block asks again."""
    if not task.cancelled():
        task.exception()
