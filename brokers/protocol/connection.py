"""The server side of one connection as a state machine: bytes in, requests out, answers in order.

Has no sockets, no clock and no handlers. Its owner asks for `room`, puts received bytes there,
takes the requests that `received` yields, and gives back one `answer` (or `skip`) for each; answers
leave in the order of the requests whatever the order in which they are given, as Kafka guarantees
its clients.

The machine stops yielding while too many requests or bytes are outstanding, and while a request of
the SASL exchange has no answer: `can_read` is false then, received bytes are kept, and the owner
calls `resume` once it is true again, before it receives more.

The requests that a peer may send depend on the state of its authentication; the table `ALLOWED` is
the whole rule, and the owner reports progress as a `Step`. Re-authentication (KIP-368) runs on a
connection that is already authenticated; while it runs no other request is accepted.

Not thread-safe: one event loop owns a connection.
"""

from collections.abc import Iterator, Mapping, Sized
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from brokers.protocol.apis import APIS, Api
from brokers.protocol.errors import ProtocolError
from brokers.protocol.frames import (
    MAX_FRAME_BYTES,
    SIZE,
    SIZE_PREFIX,
    FrameBuffers,
    FrameSplitter,
)
from brokers.protocol.headers import Request, read_request, response_head

API_VERSIONS: Final = 18
SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36
_EXCHANGE: Final = frozenset({SASL_HANDSHAKE, SASL_AUTHENTICATE})

# An unauthenticated peer needs no more: the largest legal request before authentication is a token
# of an identity provider.
MAX_FRAME_BYTES_BEFORE_AUTH: Final = 65_536
# Unanswered requests of one connection. librdkafka pipelines up to a million by configuration, but
# no faster than the server reads.
MAX_PIPELINED: Final = 1_000
# Answers of one connection that may wait for an earlier one: enough for a long poll with other
# fetches behind it, small enough for ten thousand deliberately slow connections.
MAX_HELD_BYTES: Final = 16 * 1024 * 1024


class State(Enum):
    """The state of the peer's authentication."""

    ANONYMOUS = auto()  # the listener requires no authentication
    STRANGER = auto()  # not authenticated; must begin a SASL exchange
    TOKENS = auto()  # a mechanism was agreed on; SaslAuthenticate requests carry its tokens
    RAW_TOKENS = auto()  # the oldest handshake: every frame is a bare token, not a request
    OPEN = auto()  # authenticated
    PROVING_AGAIN = auto()  # authenticated, and in the middle of a re-authentication
    CLOSING = auto()  # refused: nothing more is read, the refusal may still be sent
    CLOSED = auto()  # nothing is read or written any more


class Step(Enum):
    """The result of a request of the exchange, which the owner reports before its answer."""

    MECHANISM_AGREED = auto()  # SaslHandshake version 1 accepted
    RAW_MECHANISM_AGREED = auto()  # SaslHandshake version 0 accepted
    PROVED = auto()  # the exchange succeeded
    REFUSED = auto()  # the exchange failed


# The requests that are legal in each state that reads requests.
ALLOWED: Final[Mapping[State, frozenset[int]]] = {
    State.ANONYMOUS: frozenset(APIS) - _EXCHANGE,
    # A client may ask for versions before it picks a mechanism, as often as it likes.
    State.STRANGER: frozenset({API_VERSIONS, SASL_HANDSHAKE}),
    # The exchange must not be interrupted: a proxy could slip requests in otherwise.
    State.TOKENS: frozenset({SASL_AUTHENTICATE}),
    State.PROVING_AGAIN: frozenset({SASL_AUTHENTICATE}),
    # A token without a handshake before it means that the two sides are out of step.
    State.OPEN: frozenset(APIS) - {SASL_AUTHENTICATE},
}

# The next state for a step. A missing pair is a bug of the owner, not the peer's fault: `ALLOWED`
# above and `_check_allowed` decide what a peer may send.
NEXT: Final[Mapping[tuple[State, Step], State]] = {
    (State.STRANGER, Step.MECHANISM_AGREED): State.TOKENS,
    (State.STRANGER, Step.RAW_MECHANISM_AGREED): State.RAW_TOKENS,
    (State.STRANGER, Step.REFUSED): State.CLOSING,  # an unknown mechanism ends the connection
    (State.TOKENS, Step.PROVED): State.OPEN,
    (State.TOKENS, Step.REFUSED): State.CLOSING,
    (State.RAW_TOKENS, Step.PROVED): State.OPEN,
    (State.RAW_TOKENS, Step.REFUSED): State.CLOSING,
    (State.OPEN, Step.MECHANISM_AGREED): State.PROVING_AGAIN,
    (State.OPEN, Step.REFUSED): State.CLOSING,
    (State.PROVING_AGAIN, Step.PROVED): State.OPEN,
    (State.PROVING_AGAIN, Step.REFUSED): State.CLOSING,
}

_SILENT: Final = frozenset({State.CLOSING, State.CLOSED})


class IllegalRequest(ProtocolError):
    """A well-formed request that the state of authentication forbids.

    The owner may still answer it (ILLEGAL_SASL_STATE if the response has a field for it) before it
    closes the connection.
    """

    def __init__(self, request: Request, state: State) -> None:
        super().__init__(f"{request.api.name} is not legal in state {state.name}")
        self.request = request
        self.state = state


@dataclass(slots=True)
class RawToken:
    """A frame of the oldest SASL form: a token of the mechanism, answered by another."""

    token: memoryview
    place: int


class Connection:
    """See the module. `apis` are the rows that are served on this listener."""

    __slots__ = (
        "_answers",
        "_apis",
        "_exchange_place",
        "_frame_limit",
        "_held_bytes",
        "_next_place",
        "_sent_place",
        "_splitter",
        "is_paused",
        "state",
    )

    def __init__(
        self,
        apis: dict[int, Api],
        buffers: FrameBuffers,
        *,
        must_authenticate: bool,
        frame_limit: int = MAX_FRAME_BYTES,
        stranger_frame_limit: int = MAX_FRAME_BYTES_BEFORE_AUTH,
    ) -> None:
        self.state = State.STRANGER if must_authenticate else State.ANONYMOUS
        self._apis = apis
        self._frame_limit = frame_limit
        first_limit = min(stranger_frame_limit, frame_limit) if must_authenticate else frame_limit
        self._splitter = FrameSplitter(buffers, first_limit)
        self._next_place = 0  # of the next request
        self._sent_place = 0  # of the next answer to be sent
        self._answers: dict[int, tuple[int, list[Sized]]] = {}  # given before their turn, with size
        self._held_bytes = 0  # of these answers
        self._exchange_place: int | None = None  # of the unanswered request of the exchange
        # For the owner, which may have other reasons to stop reading.
        self.is_paused = False

    @property
    def waiting(self) -> int:
        """Requests that have not been answered yet."""
        return self._next_place - self._sent_place

    @property
    def can_read(self) -> bool:
        """False while the peer has to wait for answers before more of it is read."""
        if self.is_paused:
            return False
        # Usually nothing is outstanding, and this runs after each request.
        if self._next_place == self._sent_place and self.state is State.ANONYMOUS:
            return True
        return (
            self._next_place - self._sent_place < MAX_PIPELINED
            and self._exchange_place is None
            and self._held_bytes < MAX_HELD_BYTES
            and self.state not in _SILENT
        )

    @property
    def frames(self) -> FrameSplitter:
        """The receiving half, for those who bound its memory."""
        return self._splitter

    @property
    def is_inside_frame(self) -> bool:
        return self._splitter.is_inside_frame

    @property
    def has_held(self) -> bool:
        """Whether received bytes must go through `resume` before any others."""
        return self._splitter.has_held

    @property
    def may_shortcut(self) -> bool:
        """Whether the peer needs no authentication, and is between two frames.

        Then a request may be answered without passing through this machine; see `reserve`.
        """
        return self.state is State.ANONYMOUS and not self._splitter.is_inside_frame

    # -- bytes in --------------------------------------------------------------------------------

    def room(self, shared: memoryview) -> memoryview:
        """Return the buffer for the peer's next bytes."""
        return self._splitter.room(shared)

    def received(self, count: int) -> Iterator[Request | RawToken]:
        """Yield the requests that `count` more bytes complete; to be used up.

        Lazy on purpose: a step taken for one request applies to the next one in the same bytes.
        ProtocolError means that the connection must be closed.
        """
        return self._requests(self._splitter.received(count))

    def only_request(self, received: memoryview, count: int) -> Request | None:
        """Return the request if it is all of `count` received bytes, the usual case; else None.

        A shortcut for `received`, for a connection without authentication that was between two
        frames. After None the bytes still belong to `room` and `received`.
        """
        if count < SIZE_PREFIX or self.state is not State.ANONYMOUS:
            return None
        (size,) = SIZE.unpack_from(received)
        if size != count - SIZE_PREFIX or size > self._splitter.limit:
            return None
        place = self._next_place
        self._next_place = place + 1
        request = read_request(received[SIZE_PREFIX:count], self._apis, place)
        if request.api.key in _EXCHANGE:
            raise IllegalRequest(request, self.state)
        return request

    def resume(self) -> Iterator[Request | RawToken]:
        """Yield the requests that had to wait, once `can_read` is true again; to be used up."""
        assert self.can_read, "the requests still have to wait"
        return self._requests(self._splitter.resume())

    def _requests(self, frames: Iterator[memoryview]) -> Iterator[Request | RawToken]:
        for frame in frames:
            if self.state in _SILENT:
                return
            place = self._next_place
            self._next_place = place + 1
            if self.state is State.RAW_TOKENS:
                self._exchange_place = place
                yield RawToken(frame, place)
            else:
                request = read_request(frame, self._apis, place)
                self._check_allowed(request)
                yield request
            self._splitter.is_held = not self.can_read

    def _check_allowed(self, request: Request) -> None:
        key = request.api.key
        if key not in ALLOWED[self.state]:
            raise IllegalRequest(request, self.state)
        if key in _EXCHANGE:
            if self.state is State.OPEN and request.version == 0:
                # Raw tokens could not be told from the requests that are still on their way.
                raise IllegalRequest(request, self.state)
            self._exchange_place = request.place

    # -- answers out -----------------------------------------------------------------------------

    def answer(self, request: Request, body: list[Sized]) -> list[Sized]:
        """Return the buffers that may be sent after this answer; often just its own."""
        size = sum(map(len, body))
        head = response_head(request.api, request.version, request.correlation_id, size)
        return self._in_order(request.place, [head, *body], size)

    def reserve(self) -> int:
        """Reserve a place in the order of answers for a request that bypasses this machine.

        Not needed if nothing is outstanding and the answer is given at once.
        """
        place = self._next_place
        self._next_place = place + 1
        return place

    def answer_reserved(self, place: int, frame: list[Sized]) -> list[Sized]:
        """Do the same as `answer`, for a whole frame in a reserved place."""
        return self._in_order(place, frame, sum(map(len, frame)))

    def answer_token(self, token: RawToken, reply: bytes) -> list[Sized]:
        size = len(reply)
        return self._in_order(token.place, [size.to_bytes(4, "big"), reply], size)

    def skip(self, request: Request) -> list[Sized]:
        """Leave the request unanswered (acks=0); return the answers that waited behind it."""
        return self._in_order(request.place, [], 0)

    def _in_order(self, place: int, buffers: list[Sized], size: int) -> list[Sized]:
        if self.state is State.CLOSED:
            return []
        assert self._sent_place <= place < self._next_place, f"answer {place} was given before"
        if place == self._exchange_place:
            self._exchange_place = None
        if place != self._sent_place:
            assert place not in self._answers, f"answer {place} was given before"
            self._answers[place] = size, buffers
            self._held_bytes += size
            return []
        self._sent_place += 1
        if self._answers:
            self._release(buffers)
        return buffers

    def _release(self, buffers: list[Sized]) -> None:
        """Add the answers that are next in order."""
        while self._sent_place in self._answers:
            size, answer = self._answers.pop(self._sent_place)
            buffers += answer
            self._held_bytes -= size
            self._sent_place += 1

    # -- state -----------------------------------------------------------------------------------

    def take(self, step: Step) -> None:
        """Move on in the exchange, according to the table."""
        following = NEXT.get((self.state, step))
        assert following is not None, f"{step.name} cannot happen in state {self.state.name}"
        self.state = following
        if following is State.OPEN:
            self._splitter.limit = self._frame_limit

    def close(self) -> None:
        """Forget everything; unsent answers are lost."""
        self.state = State.CLOSED
        self._answers.clear()
        self._splitter.close()
