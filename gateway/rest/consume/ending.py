"""Ends a fetch early if its caller is no longer valid or its client has disconnected.

A fetch waits for its turn, in a thread for records, and for its client to take them. Its records
must return to the consumer, so only the wait is interrupted, never the whole call.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from gateway.access.callers import Caller
from gateway.rest.calls import Call, Gone
from gateway.rest.codes import ApiError

Watch = Callable[[Caller, Callable[[Caller], bool]], Awaitable[ApiError]]


class Ending:
    """The ending of one call. Not thread-safe, except for `is_over`."""

    def __init__(self) -> None:
        self._reason: ApiError | Gone | None = None
        self._waiting: asyncio.Timeout | None = None

    def is_over(self) -> bool:
        """Tell whether the fetched records are no longer wanted. Thread-safe."""
        return self._reason is not None

    def check(self) -> None:
        """Raise the reason if the fetch has to end."""
        if self._reason is not None:
            raise self._reason

    @asynccontextmanager
    async def cut(self) -> AsyncIterator[None]:
        """Interrupt the block when the fetch has to end, and raise the reason."""
        self.check()
        try:
            async with asyncio.timeout(None) as self._waiting:
                yield
        except TimeoutError:
            self.check()
            raise
        finally:
            self._waiting = None

    @asynccontextmanager
    async def watched(self, call: Call, watch: Watch) -> AsyncIterator[None]:
        """Within five seconds, notice in the block that the caller may no longer read."""

        def holds(known: Caller) -> bool:
            # Rights that were granted later do not matter.
            return set(call.caller.rights.grants) <= set(known.rights.grants)

        async def end() -> None:
            self._end(await watch(call.caller, holds))

        async with beside(end()):
            yield

    @asynccontextmanager
    async def while_there(self, call: Call) -> AsyncIterator[None]:
        """Notice in the block that the client disconnects; discard what it sends."""

        async def end() -> None:
            await call.left()
            self._end(Gone())

        async with beside(end()):
            yield

    def _end(self, reason: ApiError | Gone) -> None:
        self._reason = self._reason or reason
        if self._waiting is not None and self._waiting.when() is None:
            self._waiting.reschedule(-math.inf)


@asynccontextmanager
async def beside(work: Awaitable[None]) -> AsyncIterator[None]:
    """Run a coroutine until the block ends."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
