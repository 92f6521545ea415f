"""Ends a fetch early, when its caller is no longer valid or its client has left.

A fetch waits in several ways: for its turn, in a thread for records, for its client to take them.
What it took from its consumer has to go back there, so a wait is cut, and never the whole call.
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
    """Of one call. Belongs to its task, but for `is_over`."""

    def __init__(self) -> None:
        self._reason: ApiError | Gone | None = None
        self._waiting: asyncio.Timeout | None = None

    def is_over(self) -> bool:
        """Tell whether nobody waits for what is fetched. From any thread."""
        return self._reason is not None

    def check(self) -> None:
        """Raise why the fetch has to end, where it has to."""
        if self._reason is not None:
            raise self._reason

    @asynccontextmanager
    async def cut(self) -> AsyncIterator[None]:
        """Cut what the block waits for when the fetch has to end, and raise why."""
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
        """Hear within five seconds when the caller may not read any more."""

        def holds(known: Caller) -> bool:
            # What was granted later takes nothing away.
            return set(call.caller.rights.grants) <= set(known.rights.grants)

        async def end() -> None:
            self._end(await watch(call.caller, holds))

        async with beside(end()):
            yield

    @asynccontextmanager
    async def while_there(self, call: Call) -> AsyncIterator[None]:
        """Hear when the client leaves; what it sends in the block is thrown away."""

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
    """Run something until the block ends."""
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
