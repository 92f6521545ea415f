"""Polls client sockets for reading, in a poll of its own inside the event loop's.

The loop creates an object for each ready socket, queues it and calls it from the queue, which costs
a broker under load a twentieth of each request. Here all ready sockets are one event of the loop,
and their clients are called in a row.

A turn of the loop is shared: sockets that are ready have one slice of it, and after them one client
that used up its slice in an earlier turn has another. So neither keeps the other waiting for long,
whatever their requests cost.
"""

import asyncio
import select
import socket
from collections import deque
from collections.abc import Callable
from typing import Final

from brokers.clock import Clock

# Clients called in one turn; the others are still ready in the next one, after all other work.
READY_PER_TURN: Final = 64
# If so many were ready at once, others are by now, and a turn of the loop in between would be most
# of their cost.
CROWD: Final = 2
# What clients that are ready may take of a turn, all together, and what one may take that goes on
# with what it sent before; and, of each, the one request that is under way. Two of them are half of
# what an answer may be late, and some hundred requests of the usual kind, so that few are cut.
SLICE_SECONDS: Final = 0.005


class Readers:
    """Belongs to the event loop. Callbacks should not raise; one that does harms no others."""

    __slots__ = ("_calls", "_clock", "_later", "_loop", "_missed", "_poll")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        self._loop = loop
        self._clock = clock.monotonic
        self._poll = select.epoll()
        self._calls: dict[int, Callable[[], None]] = {}
        # Sockets that were ready when a slice ended: the next one begins with them, since the
        # kernel would name the same first ones again.
        self._missed: list[tuple[int, int]] = []
        # At most one for each connection.
        self._later: deque[Callable[[], None]] = deque()
        loop.add_reader(self._poll.fileno(), self._turn)

    def add(self, sock: socket.socket, call: Callable[[], None]) -> None:
        """Call back whenever there are bytes to read, or the peer is gone, until `remove`.

        OSError if the kernel has no room for one more; then there is nothing to remove.
        """
        fd = sock.fileno()
        self._poll.register(fd, select.EPOLLIN)
        self._calls[fd] = call

    def remove(self, sock: socket.socket) -> None:
        """Remove a socket, which must still be open, so that the number is still its own."""
        fd = sock.fileno()
        self._poll.unregister(fd)
        del self._calls[fd]

    def go_on_later(self, call: Callable[[], None]) -> None:
        """Call back once, in a later turn: after ready sockets, and after earlier calls of this.

        The client may be closed by then.
        """
        self._later.append(call)
        if len(self._later) == 1:
            self._loop.call_soon(self._shared_turn)

    def close(self) -> None:
        """Drop everything. Further calls do nothing."""
        if self._poll.closed:
            return
        self._loop.remove_reader(self._poll.fileno())
        self._poll.close()
        self._calls.clear()
        self._later.clear()

    def _turn(self) -> None:
        # If clients wait to continue, the ready ones have had their slice in this turn.
        if not self._later:
            self._serve_ready()

    def _shared_turn(self) -> None:
        if self._poll.closed:
            return
        try:
            self._serve_ready()
        finally:
            self._go_on_with_one()

    def _go_on_with_one(self) -> None:
        try:
            self._later[0]()
        finally:
            # Whatever one ran into: while one is left here nobody is read but by the next turn.
            # If it was closed in the meantime, it is empty.
            if self._later:
                self._later.popleft()
            if self._later:
                self._loop.call_soon(self._shared_turn)

    def _serve_ready(self) -> None:
        calls, clock, left = self._calls, self._clock, READY_PER_TURN
        until = 0.0
        while left > 0:
            ready = self._missed or self._poll.poll(0, left)
            self._missed = []
            is_crowd = len(ready) >= CROWD
            if is_crowd and not until:
                until = clock() + SLICE_SECONDS
            for number, (fd, _event) in enumerate(ready, 1):
                # Who was called before may have ended it.
                call = calls.get(fd)
                if call is not None:
                    call()
                    if is_crowd and clock() >= until:
                        self._missed = ready[number:]
                        return
            if not is_crowd:
                return
            left -= len(ready)
