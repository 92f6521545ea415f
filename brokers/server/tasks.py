"""Runs coroutines that answer requests, a bounded number at a time.

Knows neither handlers nor codecs. One object is for one kind of work, so that work which waits for
others, such as an agent that hangs, does not keep the rest from running.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from brokers.protocol.schema import Message
from brokers.server.call import Call

# Coroutines of one kind that may run at the same time.
MAX_RUNNING: Final = 64
# Requests that may wait for one of those to end; each holds a decoded request of an admin's size.
MAX_WAITING: Final = 10_000

# Returns the response; None if the coroutine ends the call itself.
Work: TypeAlias = Callable[[], Coroutine[Any, Any, Message | None]]


class Tasks:
    """The running coroutines of one kind, and requests that wait until one of them ends."""

    __slots__ = ("_failed", "_running", "_waiting", "group")

    def __init__(self, failed: Callable[[Call, Exception], None]) -> None:
        self._failed = failed  # ends a call because of a bug
        self._running = 0
        self._waiting: deque[tuple[Call, Work]] = deque()
        self.group: asyncio.TaskGroup | None = None  # set before the first request

    @property
    def has_room(self) -> bool:
        """Whether work would start at once."""
        return self._running < MAX_RUNNING

    def enqueue(self, call: Call, work: Work) -> None:
        """Start the work as soon as there is room; close the connection if too many wait."""
        if self.has_room:
            self.start(call, work)
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append((call, work))
        else:
            call.disconnect(f"more than {MAX_WAITING} requests wait to be handled")

    def start(self, call: Call, work: Work) -> None:
        """Start the work; the caller has looked whether there is room."""
        assert self.group is not None, "the dispatch does not run"
        self._running += 1
        self.group.create_task(self._run(call, work))

    async def _run(self, call: Call, work: Work) -> None:
        try:
            answer = await work()
        except Exception as error:  # noqa: BLE001 - a handler's bug must not end other clients
            self._failed(call, error)
        else:
            if answer is not None:
                call.answer(answer)
        # Not after a cancellation, which is the end of all of them.
        self._running -= 1
        while self._waiting and self.has_room:
            following, work = self._waiting.popleft()
            if following.is_open:
                self.start(following, work)
