"""Threads that take work from one queue; they start one by one, as there is work for them.

Knows nothing of the work. If the system has no thread left, those that run take the work meanwhile.
"""

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

# The time to the next attempt to start a thread, if the system has none left.
RETRY_SECONDS: Final = 0.2

Item = TypeVar("Item")


class Threads(Generic[Item]):
    """Belongs to the event loop; only `do` is called in the threads."""

    __slots__ = ("_do", "_loop", "_max", "_name", "_queue", "_threads", "running")

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        do: Callable[[Item], None],
        *,
        name: str,
        max_threads: int,
    ) -> None:
        self.running = 0  # items in threads, or in line for them
        self._loop = loop
        self._do = do
        self._name = name
        self._max = max_threads
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def put(self, item: Item) -> None:
        """Do an item; the owner counts `running` down when it has collected the result."""
        self.running += 1
        self._queue.put(item)
        self._start_thread()

    def stop(self) -> list[threading.Thread]:
        """End the threads after the work that they have; return them."""
        threads, self._threads = self._threads, []
        for _thread in threads:
            self._queue.put(None)
        return threads

    def _start_thread(self) -> None:
        """Start one more thread if there is more work than threads."""
        number = len(self._threads)
        if number >= min(self.running, self._max):
            return
        # Daemons, because work that never returns must not keep the process alive.
        thread = threading.Thread(target=self._run, name=f"{self._name}-{number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:
            self._loop.call_later(RETRY_SECONDS, self._start_thread)
        else:
            self._threads.append(thread)

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            self._do(item)
