"""One request on its way through a handler, and the ways in which it may end.

Knows no sockets: it ends by telling the channel it came by. A handler that returns a message has
ended its call by that; one that returns None ends it later, exactly once, by `answer` or `skip`.
Once the connection is gone all of them do nothing, so whoever waits needs no case for it.
"""

from collections.abc import Callable, Sized
from dataclasses import replace
from typing import Final, Protocol

from brokers.protocol.headers import Request
from brokers.protocol.schema import Message
from brokers.server.peers import Peer

# Of the name and the version of a client's software: a few words; each connection keeps them.
MAX_NAME_LENGTH: Final = 100


class Closing(Protocol):
    """What may want to know that a connection is gone."""

    def channel_closed(self) -> None: ...


class Channel(Protocol):
    """What a call needs of the connection by which it came."""

    peer: Peer
    is_closed: bool

    def watch(self, call: Closing) -> None:
        """The call wants to be told when the connection is gone."""
        ...

    def unwatch(self, call: Closing) -> None: ...

    def hold(self) -> None:
        """No later request may be handled until `let_go`."""
        ...

    def let_go(self) -> None: ...

    def answered(self, call: "Call", message: Message) -> None: ...

    def answered_encoded(self, call: "Call", buffers: list[Sized]) -> None: ...

    def skipped(self, call: "Call") -> None: ...

    def disconnect(self, reason: str) -> None: ...

    def failed(self) -> None: ...


class Call:
    """See the module. Belongs to the event loop."""

    __slots__ = ("_channel", "closed_callback", "is_done", "request", "started", "version")

    def __init__(self, request: Request, channel: Channel, started: float) -> None:
        self.request = request
        self.version = request.version
        self.started = started  # monotonic seconds
        self.is_done = False
        self._channel = channel
        self.closed_callback: Callable[[], None] | None = None

    @property
    def peer(self) -> Peer:
        return self._channel.peer

    @property
    def is_open(self) -> bool:
        """Whether anybody is still there to be answered."""
        return not self._channel.is_closed

    @property
    def connection(self) -> object:
        """Stands for the connection where calls of one are counted."""
        return self._channel

    def introduce(self, software: str, version: str) -> None:
        """Note which software is at the other end."""
        peer = self._channel.peer
        self._channel.peer = replace(
            peer, software=software[:MAX_NAME_LENGTH], software_version=version[:MAX_NAME_LENGTH]
        )

    def hold(self) -> None:
        """Lets later requests of the connection wait, until `let_go`."""
        self._channel.hold()

    def let_go(self) -> None:
        """Lets the connection go on; once for each `hold`, also where it is gone."""
        self._channel.let_go()

    def answer(self, message: Message) -> None:
        """Sends the answer, when the turn of this request comes."""
        self._end()
        self._channel.answered(self, message)

    def answer_encoded(self, buffers: list[Sized]) -> None:
        """The same for an answer's body that is there as bytes, from a cache."""
        self._end()
        self._channel.answered_encoded(self, buffers)

    def skip(self) -> None:
        """The request gets no answer, as acks=0 asks."""
        self._end()
        self._channel.skipped(self)

    def disconnect(self, reason: str) -> None:
        """Closes the connection; the reason is for the operator's log."""
        self.is_done = True
        self._channel.disconnect(reason)

    def fail(self) -> None:
        """Closes the connection, for a bug that has been noted already."""
        self.is_done = True
        self._channel.failed()

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Calls back once if the connection goes before the answer; replaces what was asked before.

        A connection that is gone already calls back at once.
        """
        assert not self.is_done, "the call has ended"
        if self._channel.is_closed:
            callback()
            return
        self.closed_callback = callback
        self._channel.watch(self)

    def channel_closed(self) -> None:
        """For the channel: it is gone, and so is whatever waited for this call."""
        callback, self.closed_callback = self.closed_callback, None
        if callback is not None:
            callback()

    def _end(self) -> None:
        assert not self.is_done, f"{self.request.api.name} was answered twice"
        self.is_done = True
        if self.closed_callback is not None:
            self.closed_callback = None
            self._channel.unwatch(self)
