"""Delivers a lane's response later, in the order of its connection's requests.

Owns the reserved place on the connection and in the limits of all waits; its lane decides what it
waits for and what it sends. It ends once: by a response, by its deadline or with its connection.
"""

from abc import ABC, abstractmethod
from collections.abc import Sized
from typing import Final, Protocol

from brokers.server.call import Closing
from brokers.server.context import Context

# The memory of one, its entries in the lists of other objects included.
LATE_BYTES: Final = 600


class LateChannel(Protocol):
    """The part of a connection that a late answer uses."""

    def watch(self, call: Closing) -> None: ...

    def unwatch(self, call: Closing) -> None: ...

    def deliver_reserved(self, place: int, frame: list[Sized]) -> None: ...


class LateAnswer(ABC):
    """See the module. Belongs to the event loop."""

    __slots__ = ("_channel", "_context", "_place", "_wait_ms", "due_ms")

    def __init__(self, context: Context, wait_ms: int) -> None:
        self._context = context
        self._wait_ms = wait_ms
        self._channel: LateChannel | None = None  # none once the wait has ended
        self._place = 0
        self.due_ms = 0.0

    def begin(self, channel: LateChannel, place: int) -> None:
        """Begin to wait."""
        self._channel = channel
        self._place = place
        self._context.replicas.room.append_bytes += LATE_BYTES
        self._context.replicas.deadlines.add(self, self._wait_ms)
        channel.watch(self)

    def finish(self, frame: bytes) -> None:
        """Deliver the response; do nothing if the wait has ended already."""
        channel = self._channel
        if channel is None:
            return
        channel.unwatch(self)
        self._end()
        channel.deliver_reserved(self._place, [frame])

    def channel_closed(self) -> None:
        self._end()

    @abstractmethod
    def expire(self) -> None:
        """Finish at the deadline, with the response that is then possible."""

    def _end(self) -> None:
        self._channel = None
        self._context.replicas.room.append_bytes -= LATE_BYTES
        self._context.replicas.deadlines.remove(self)
