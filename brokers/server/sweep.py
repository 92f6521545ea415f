"""Closes connections that are idle, or that send a request too slowly."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Final

from brokers.server.client import IDLE, SLOW, Client
from brokers.server.frame_room import ABANDONED_SECONDS, is_abandoned

# How often connections are checked, and how many in one turn of the loop.
SWEEP_SECONDS: Final = 5.0
SWEPT_PER_TURN: Final = 500


class Sweep:
    """Belongs to the event loop; checks all of `clients` again and again."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clients: Collection[Client],
        *,
        idle_seconds: Callable[[], float],
        frame_seconds: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._loop = loop
        self._clients = clients
        # Asked at each check, since configs may change them while the broker runs.
        self._idle_seconds = idle_seconds
        self._frame_seconds = frame_seconds
        self._now = now
        self._next: asyncio.Handle | None = None

    def start(self) -> None:
        seconds = min(SWEEP_SECONDS, self._idle_seconds() / 4, self._frame_seconds() / 4)
        self._next = self._loop.call_later(seconds, self._check_all)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _check_all(self) -> None:
        self._check_some(iter(list(self._clients)))

    def _check_some(self, clients: Iterator[Client]) -> None:
        """Check some connections, and leave the rest to the next turn of the loop."""
        now = self._now()
        seen = 0
        for client in islice(clients, SWEPT_PER_TURN):
            seen += 1
            if not client.is_closed:
                self._check(client, now)
        if seen == SWEPT_PER_TURN:
            self._next = self._loop.call_soon(self._check_some, clients)
        else:
            self.start()

    def _check(self, client: Client, now: float) -> None:
        if not client.machine.is_inside_frame:
            client.frame_mark = -1
        elif client.frame_mark != client.requests or not client.machine.can_read:
            # This frame began after the last check, or the broker has paused reading.
            client.frame_mark = client.requests
            client.frame_since = now
        elif is_abandoned(client, now):
            waited = f"{ABANDONED_SECONDS:g} s"
            client.close(SLOW, detail=f"nothing of a large request came for {waited}")
            return
        elif now - client.frame_since > (seconds := self._frame_seconds()):
            client.close(SLOW, detail=f"a request took more than {seconds:g} s")
            return
        # A client that waits for a response is not idle, unless it does not read its responses.
        is_waiting = client.machine.waiting and not client.output.size
        if now - client.last_active > self._idle_seconds() and not is_waiting:
            client.close(IDLE, detail=None)
