"""Represents one request while a handler processes it, and the ways in which it may end.

Knows no sockets: a call ends through the channel that it came by. A handler that returns a message
ends its call; one that returns None ends it later, exactly once, by `answer` or `skip`. Once the
connection is closed all of them do nothing, so waiting code needs no case for it.
"""

from collections.abc import Callable, Sized
from dataclasses import replace
from typing import Final, Protocol

from brokers.protocol.headers import Request
from brokers.protocol.schema import Message
from brokers.server.peers import Peer

# Of the name and of the version of a client's software: short texts that each connection keeps.
MAX_NAME_LENGTH: Final = 100


class Closing(Protocol):
    """An object that is notified when a connection is closed."""

    def channel_closed(self) -> None: ...


class Channel(Protocol):
    """The part of a connection that its calls use."""

    peer: Peer
    is_closed: bool

    def watch(self, call: Closing) -> None:
        """Notify the call when the connection is closed."""
        ...

    def unwatch(self, call: Closing) -> None: ...

    def hold(self) -> None:
        """Handle no later request until `let_go`."""
        ...

    def let_go(self) -> None: ...

    def answered(self, call: "Call", message: Message) -> None: ...

    def answered_encoded(self, call: "Call", buffers: list[Sized]) -> None: ...

    def skipped(self, call: "Call") -> None: ...

    def disconnect(self, reason: str) -> None: ...

    def failed(self) -> None: ...


class Call:
    """See the module. Belongs to the event loop."""

    __slots__ = (
        "_channel",
        "closed_callback",
        "is_done",
        "is_held",
        "request",
        "started",
        "version",
    )

    def __init__(self, request: Request, channel: Channel, started: float) -> None:
        self.request = request
        self.version = request.version
        self.started = started  # monotonic seconds
        self.is_done = False
        self.is_held = False  # its connection, by this call
        self._channel = channel
        self.closed_callback: Callable[[], None] | None = None

    @property
    def peer(self) -> Peer:
        return self._channel.peer

    @property
    def is_open(self) -> bool:
        """Whether the connection is still there to be answered."""
        return not self._channel.is_closed

    @property
    def connection(self) -> object:
        """Identifies the connection, to count its calls."""
        return self._channel

    def introduce(self, software: str, version: str) -> None:
        """Record the software of the client."""
        peer = self._channel.peer
        self._channel.peer = replace(
            peer, software=software[:MAX_NAME_LENGTH], software_version=version[:MAX_NAME_LENGTH]
        )

    def hold(self) -> None:
        """Make later requests of the connection wait until `let_go`."""
        self.is_held = True
        self._channel.hold()

    def let_go(self) -> None:
        """Let the connection continue; call once for each `hold`, even if it is closed."""
        self.is_held = False
        self._channel.let_go()

    def answer(self, message: Message) -> None:
        """Send the response in the order of requests."""
        self._end()
        self._channel.answered(self, message)

    def answer_encoded(self, buffers: list[Sized]) -> None:
        """Send a response whose body is already encoded, from a cache."""
        self._end()
        self._channel.answered_encoded(self, buffers)

    def skip(self) -> None:
        """End the request without a response, as for acks=0."""
        self._end()
        self._channel.skipped(self)

    def disconnect(self, reason: str) -> None:
        """Close the connection; the reason goes to the operator's log."""
        self.is_done = True
        self._channel.disconnect(reason)

    def fail(self) -> None:
        """Close the connection because of a bug that was logged already."""
        self.is_done = True
        self._channel.failed()

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Call back once if the connection closes before the response; replaces earlier callbacks.

        If the connection is already closed, call back at once.
        """
        assert not self.is_done, "the call has ended"
        if self._channel.is_closed:
            callback()
            return
        self.closed_callback = callback
        self._channel.watch(self)

    def channel_closed(self) -> None:
        """Run the callback; the channel calls this when it is closed."""
        callback, self.closed_callback = self.closed_callback, None
        if callback is not None:
            callback()

    def _end(self) -> None:
        assert not self.is_done, f"{self.request.api.name} was answered twice"
        self.is_done = True
        if self.closed_callback is not None:
            self.closed_callback = None
            self._channel.unwatch(self)
