"""Producer ids, each given out once in the life of the cluster, from blocks of the store.

Knows no requests and no store; who asks brings the way to a new block. Blocks are not remembered
over a restart, so what is left of one is lost, which is what 63 bits are for.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from brokers.cluster.proposals import Outcome, ProducerIdsResult
from brokers.protocol.errors import ErrorCode, KafkaError

# A next block is fetched ahead once fewer than this share of a block are left, as Kafka does.
_LOW_SHARE: Final = 10

Allocate = Callable[[], Awaitable[Outcome]]


class ProducerIds:
    """Belongs to the event loop."""

    def __init__(self) -> None:
        self._next = self._end = 0
        self._ahead: tuple[int, int] | None = None  # the next block
        self._size = 0
        self._fetching: asyncio.Task[None] | None = None

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
            self._fetching = asyncio.get_running_loop().create_task(self._allocate(allocate))
            self._fetching.add_done_callback(_forgive)
        return self._fetching

    async def _allocate(self, allocate: Allocate) -> None:
        try:
            outcome = await allocate()
        finally:
            self._fetching = None
        result = outcome.result
        if outcome.error is not ErrorCode.NONE or not isinstance(result, ProducerIdsResult):
            # The code by which Kafka says it: clients take others for the end.
            raise KafkaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"no block of producer ids could be had: {outcome.error.name} {outcome.message}",
            )
        self._ahead = (result.first, result.first + result.count)
        self._size = result.count


def _forgive(task: asyncio.Task[None]) -> None:
    """Takes note of a failure that nobody may have waited for; who needs a block asks again."""
    if not task.cancelled():
        task.exception()
