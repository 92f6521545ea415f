"""What waits to be sent on one socket: bounded, because whoever adds to it waits for room first."""

import asyncio
from collections import deque

from gateway.ws.actions import Close


class Outbox:
    """Belongs to one event loop; one task takes out."""

    def __init__(self) -> None:
        self._items: deque[str | Close] = deque()
        # Characters, which are bytes, of all that waits.
        self.size = 0
        self._is_closed = False
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()

    def put(self, item: str | Close) -> None:
        """Add what is to be sent; nothing comes after a close."""
        if self._is_closed:
            return
        self._is_closed = isinstance(item, Close)
        self._items.append(item)
        self.size += len(item) if isinstance(item, str) else 0
        self._filled.set()

    async def room(self, limit: int) -> None:
        """Wait until less than this waits to be sent."""
        while self.size >= limit:
            self._emptied.clear()
            await self._emptied.wait()

    async def next(self) -> str | Close:
        """Return the next one. It counts until `sent` says that the connection has taken it."""
        while not self._items:
            self._filled.clear()
            await self._filled.wait()
        return self._items.popleft()

    def sent(self, text: str) -> None:
        self.size -= len(text)
        self._emptied.set()
