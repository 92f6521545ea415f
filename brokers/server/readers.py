"""The sockets of clients that are read, in a poll of their own inside of the event loop's.

The loop makes an object for each socket that is ready, puts it into a line and calls it from there,
which costs a broker under load a twentieth of each request. Here all sockets that are ready are one
event of the loop's, and their clients are called in a row.
"""

import asyncio
import select
import socket
from collections.abc import Callable
from typing import Final

# Called in one turn; the rest is still ready in the next one, after all else that waits.
READY_PER_TURN: Final = 64
# Where so many were ready at once, others are by now, and a turn of the loop between would be most
# of what they cost.
CROWD: Final = 2


class Readers:
    """Belongs to the event loop. What is called must not raise."""

    __slots__ = ("_calls", "_loop", "_poll")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._poll = select.epoll()
        self._calls: dict[int, Callable[[], None]] = {}
        loop.add_reader(self._poll.fileno(), self._turn)

    def add(self, sock: socket.socket, call: Callable[[], None]) -> None:
        """Calls whenever there is something to read, or the peer is gone, until `remove`.

        OSError where the kernel has no room for one more; then there is nothing to remove.
        """
        fd = sock.fileno()
        self._poll.register(fd, select.EPOLLIN)
        self._calls[fd] = call

    def remove(self, sock: socket.socket) -> None:
        """The socket is still open: its number belongs to it."""
        fd = sock.fileno()
        self._poll.unregister(fd)
        del self._calls[fd]

    def close(self) -> None:
        """Forgets all. Any further call does nothing."""
        if self._poll.closed:
            return
        self._loop.remove_reader(self._poll.fileno())
        self._poll.close()
        self._calls.clear()

    def _turn(self) -> None:
        calls, left = self._calls, READY_PER_TURN
        while left > 0:
            ready = self._poll.poll(0, left)
            for fd, _event in ready:
                # Who was called before may have ended it.
                call = calls.get(fd)
                if call is not None:
                    call()
            if len(ready) < CROWD:
                return
            left -= len(ready)
