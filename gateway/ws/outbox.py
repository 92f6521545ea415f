"""Queues frames to send on one socket; senders wait for room first, which bounds the queue."""

import asyncio
from collections import deque

from gateway.ws.actions import Close


class Outbox:
    """Belongs to one event loop; one task takes frames out."""

    def __init__(self) -> None:
        self._items: deque[str | Close] = deque()
        # The unsent characters, which are bytes.
        self.size = 0
        self._is_closed = False
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()

    def put(self, item: str | Close) -> None:
        """Queue a frame; nothing may follow a close."""
        if self._is_closed:
            return
        self._is_closed = isinstance(item, Close)
        self._items.append(item)
        self.size += len(item) if isinstance(item, str) else 0
        self._filled.set()

    async def room(self, limit: int) -> None:
        """Wait until less than `limit` is queued."""
        while self.size >= limit:
            self._emptied.clear()
            await self._emptied.wait()

    async def next(self) -> str | Close:
        """Return the next frame. It counts until `sent` reports that it has left."""
        while not self._items:
            self._filled.clear()
            await self._filled.wait()
        return self._items.popleft()

    def sent(self, text: str) -> None:
        self.size -= len(text)
        self._emptied.set()
