"""Buffers formatted records between the threads or tasks that read them and a client.

Who writes faster than the client reads waits for room; nothing is dropped.
"""

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from gateway.kafka.readers.progress import Progress

# Some dozens of records at the length of a list. With the maximum number of open streams, these
# take 24 MB.
MAX_WAITING_BYTES: Final = 1024 * 1024


class Stopped(Exception):
    """The stream has ended, so further output is unwanted; the text says why."""


class Pipe:
    """Written by any threads, and read on the event loop that created it."""

    def __init__(self, *, max_bytes: int = MAX_WAITING_BYTES) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        # For writers on the event loop.
        self._room = asyncio.Event()
        self._change = threading.Condition()
        self._max_bytes = max_bytes
        self._waiting: list[bytes] = []
        self._bytes = 0
        self._is_finished = False
        self._reason = ""
        self._stops: list[Callable[[], None]] = []

    @property
    def stopped(self) -> str:
        """Why further output is unwanted; empty while the stream is open."""
        return self._reason

    @contextmanager
    def stopping(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call a function when the stream is stopped; at once if it is already."""
        with self._change:
            self._stops.append(stop)
            is_stopped = bool(self._reason)
        if is_stopped:
            stop()
        try:
            yield
        finally:
            with self._change:
                self._stops.remove(stop)

    def check(self) -> None:
        if self._reason:
            raise Stopped(self._reason)

    def put(self, data: bytes) -> None:
        """Write; block while the browser has not read enough. Raises Stopped."""
        with self._change:
            # A piece above the limit is buffered alone.
            while self._bytes and self._bytes + len(data) > self._max_bytes and not self._reason:
                self._change.wait()
            self.check()
            self._waiting.append(data)
            self._bytes += len(data)
        self._notify()

    async def send(self, data: bytes) -> None:
        """Write from the event loop: as `put`, without blocking the loop."""
        while True:
            self.check()
            with self._change:
                if not self._bytes or self._bytes + len(data) <= self._max_bytes:
                    self._waiting.append(data)
                    self._bytes += len(data)
                    break
                self._room.clear()
            await self._room.wait()
        self._wake.set()

    def put_last(self, data: bytes) -> None:
        """Write a last line, even to a stopped stream. Does not block."""
        with self._change:
            self._waiting.append(data)
        self._notify()

    def rest(self, seconds: float) -> None:
        """Sleep until the stream is stopped, which raises Stopped, or the time is over."""
        with self._change:
            self._change.wait_for(lambda: bool(self._reason), seconds)
            self.check()

    def finish(self) -> None:
        """Mark the end of the output. Thread-safe."""
        with self._change:
            self._is_finished = True
        self._notify()

    def stop(self, reason: str) -> None:
        """Stop all writers. Thread-safe; the first reason wins."""
        with self._change:
            self._reason = self._reason or reason
            stops = list(self._stops)
            self._change.notify_all()
        for one in stops:
            one()
        self._notify()

    async def take(self) -> list[bytes]:
        """Wait for output and return all of it; nothing once the writers have finished."""
        while True:
            with self._change:
                taken, self._waiting, self._bytes = self._waiting, [], 0
                self._change.notify_all()
                self._room.set()
                if taken or self._is_finished:
                    return taken
                self._wake.clear()
            await self._wake.wait()

    def _notify(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)
            if self._reason:
                self._loop.call_soon_threadsafe(self._room.set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The destination of a read: records are formatted by `write` and go into the pipe.

    A search reports from several threads, also partitions that failed, and lost offsets.
    """

    pipe: Pipe
    write: Callable[..., bytes]
    report: Callable[[Progress], None]
    failed: Callable[..., None] = lambda _partition, _error: None
    lost: Callable[..., None] = lambda _partition, _first, _behind, _reason: None
