"""Defines the messages between a broker and its host's agent, and encodes them as frames.

Does no I/O. A frame is a u32 length and one message in msgpack, structures as arrays without names.
The wire form of every structure is derived from its dataclass, so the values of this package are
defined once; a field may be added at the end of one, with a default. All input is checked against
the types before values are made of it, and the worst bytes cause no more than `MalformedFrame`: the
link is closed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, lru_cache, reduce
from operator import or_
from struct import Struct as Layout
from types import GenericAlias, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from brokers.cluster import changes, proposals
from brokers.cluster.changes import Change, Record
from brokers.cluster.image import Broker, ClusterImage, DeletedTopic, PartitionState, Position
from brokers.cluster.proposals import MAX_PROPOSALS, Outcome, Proposal
from brokers.cluster.snapshot import Piece, TopicPiece, pieces_of
from brokers.cluster.store import Registered, Registration
from brokers.protocol.errors import ErrorCode

# Both ends come from one checkout, and one of them may be restarted after an update before the
# other: they compare this number to avoid misreading each other.
LINK_VERSION: Final = 1

LENGTH: Final = Layout(">I")
# The largest frame: 500 proposals or outcomes of ordinary size fill a tenth of it.
MAX_FRAME: Final = 2**20
# Parts of a snapshot are small, so that a broker returns to its clients between two of them.
MAX_SNAPSHOT_PART: Final = 64 * 2**10
# Room for the frame around the pieces of a part or the records of a change.
_AROUND: Final = 64
# Partition states look alike, and replica lists even more: keep so many of each for sharing.
_SHARED: Final = 4096

T = TypeVar("T")


class MalformedFrame(Exception):
    """Bytes from the other end that are not a message of the link."""


class FrameTooLarge(Exception):
    """A message that does not fit into a frame; the text names both sizes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    """The first message of a broker on every connection; answered by Registered or Refused."""

    registration: Registration
    link_version: int = LINK_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """Requests all changes after a position; sent once per connection, after Registered."""

    after: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class Propose:
    """At most MAX_PROPOSALS; answered by Outcomes with the same number, in any order of numbers."""

    request_no: int
    proposals: tuple[Proposal, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pong:
    """Answers a Ping at once, which proves that this process's event loop runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A refused Register or Follow; the agent closes the connection after it."""

    error: ErrorCode
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotBegin:
    """Replaces the reader's whole state; SnapshotParts follow, then SnapshotEnd, without others."""

    cluster_id: str
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotPart:
    """Undecoded pieces, since decoding all of a part at once would take too long."""

    pieces: tuple[msgspec.Raw, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEnd:
    position: Position


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFrame:
    """One change, or a part of one: the frame that says `is_last` completes it.

    The records are undecoded, for the reason of SnapshotPart.
    """

    position: Position
    records: tuple[msgspec.Raw, ...]
    is_last: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The answer to the Propose of this number.

    `is_later`: it is unknown whether it was done, since the database is away; there are no
    outcomes, and the broker asks again, unchanged. `reason`: what the database said; empty if the
    agent only has too many calls.
    """

    request_no: int
    outcomes: tuple[Outcome, ...]
    is_later: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ping:
    """Sent every second; the age of the agent's last good read of the database."""

    db_age_ms: int


FromBroker: TypeAlias = Register | Follow | Propose | Applied | Pong
FromAgent: TypeAlias = (
    Registered
    | Refused
    | SnapshotBegin
    | SnapshotPart
    | SnapshotEnd
    | ChangeFrame
    | Outcomes
    | Ping
)

# The first element of an array on the wire, if several types are possible. Never reused.
TAGS: Final[dict[type, int]] = {
    # From a broker.
    Register: 1,
    Follow: 2,
    Propose: 3,
    Applied: 4,
    Pong: 5,
    # From an agent.
    Registered: 16,
    Refused: 17,
    SnapshotBegin: 18,
    SnapshotPart: 19,
    SnapshotEnd: 20,
    ChangeFrame: 21,
    Outcomes: 22,
    Ping: 23,
    # Records of a change.
    changes.BrokerChanged: 32,
    changes.BrokerRemoved: 33,
    changes.TopicCreated: 34,
    changes.PartitionsAdded: 35,
    changes.PartitionChanged: 36,
    changes.TopicRemoved: 37,
    changes.ConfigsChanged: 38,  # also a piece of a snapshot
    # Other pieces of a snapshot.
    Broker: 48,
    TopicPiece: 49,
    DeletedTopic: 50,
    # Actions and results.
    proposals.CreateTopic: 64,
    proposals.DeleteTopic: 65,
    proposals.CreatePartitions: 66,
    proposals.AlterConfigs: 67,
    proposals.AllocateProducerIds: 68,
    proposals.TopicResult: 80,
    proposals.ProducerIdsResult: 81,
}


def encode(message: FromBroker | FromAgent) -> bytes:
    """Return a message as one frame, its length included."""
    body = pack(message)
    if len(body) > MAX_FRAME:
        raise FrameTooLarge(
            f"{type(message).__name__} takes {len(body)} bytes, a frame takes {MAX_FRAME}"
        )
    return LENGTH.pack(len(body)) + body


def encode_change(change: Change) -> bytes:
    """Return a change as its frames, the same bytes for every broker."""
    groups = list(_grouped(change.records, MAX_FRAME)) or [()]
    return b"".join(
        encode(ChangeFrame(position=change.position, records=group, is_last=number == len(groups)))
        for number, group in enumerate(groups, 1)
    )


def encode_snapshot(image: ClusterImage) -> Iterator[bytes]:
    """Yield the frames of a whole image one by one; the image itself never changes."""
    yield encode(SnapshotBegin(cluster_id=image.cluster_id, position=image.position))
    for group in _grouped(pieces_of(image), MAX_SNAPSHOT_PART):
        yield encode(SnapshotPart(pieces=group))
    yield encode(SnapshotEnd(position=image.position))


def pack(value: object) -> bytes:
    """Return a value of this package as bytes without a frame, which `unpack` reads."""
    return msgspec.msgpack.encode(_writer(cast("_Hint", type(value)))(value))


def unpack(type_: type[T], data: bytes) -> T:
    """Return a packed value. Raises MalformedFrame."""
    return cast("T", _reading(cast("_Hint", type_)).decode(data))


def decode_from_broker(body: bytes) -> FromBroker:
    message = _FROM_BROKER.decode(body)
    if isinstance(message, Propose) and len(message.proposals) > MAX_PROPOSALS:
        raise MalformedFrame(f"{len(message.proposals)} proposals in one call of {MAX_PROPOSALS}")
    return message


def decode_from_agent(body: bytes) -> FromAgent:
    return _FROM_AGENT.decode(body)


def decode_piece(piece: msgspec.Raw) -> Piece:
    return _PIECE.decode(piece)


def decode_record(record: msgspec.Raw) -> Record:
    return _RECORD.decode(record)


class FrameReader(Generic[T]):
    """Cuts a stream of bytes into messages. `decode` is one of the two above."""

    __slots__ = ("_buffer", "_decode")

    def __init__(self, decode: Callable[[bytes], T]) -> None:
        self._decode = decode
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[T]:
        """Return the messages that these bytes complete. Buffers at most one frame."""
        buffer = self._buffer
        buffer += data
        start = 0
        try:
            while len(buffer) - start >= LENGTH.size:
                (size,) = LENGTH.unpack_from(buffer, start)
                if not 0 < size <= MAX_FRAME:
                    raise MalformedFrame(f"a frame of {size} bytes, 1 to {MAX_FRAME} are allowed")
                if len(buffer) - start < LENGTH.size + size:
                    return
                body = bytes(buffer[start + LENGTH.size : start + LENGTH.size + size])
                start += LENGTH.size + size
                yield self._decode(body)
        finally:
            del buffer[:start]


def _grouped(values: Iterable[Piece | Record], limit: int) -> Iterator[tuple[msgspec.Raw, ...]]:
    """Pack values and group them into runs that each fit into a frame."""
    group: list[msgspec.Raw] = []
    size = _AROUND
    for value in values:
        packed = pack(value)
        if group and size + len(packed) > limit:
            yield tuple(group)
            group, size = [], _AROUND
        group.append(msgspec.Raw(packed))
        size += len(packed)
    if group:
        yield tuple(group)


# The code below derives the wire form from the dataclasses: for a type, `_wire` returns the type
# that msgspec checks against, `_writer` the function that makes arrays of its values, and `_reader`
# the one that makes values from msgspec's output.

# A type, and a value of a type, known at run time only.
_Hint: TypeAlias = Any
_Value: TypeAlias = Any

# All bytes in this package are ids.
_ID: Final = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]


def _same(value: _Value) -> _Value:
    return value


@cache  # as many as there are types
def _hints(cls: type) -> tuple[tuple[str, _Hint], ...]:
    hints = get_type_hints(cls)
    return tuple((field.name, hints[field.name]) for field in fields(cast("Any", cls)))


def _members(hint: _Hint) -> tuple[_Hint, ...]:
    """Return the types that the hint allows."""
    return get_args(hint) if _origin(hint) in (Union, UnionType) else (hint,)


def _origin(hint: _Hint) -> object:
    return get_origin(hint)


@cache  # as many as there are types
def _wire(hint: _Hint) -> _Hint:
    if hint is bytes:
        return _ID
    if is_dataclass(hint):
        return _struct(cast("type", hint))
    if _origin(hint) is tuple:
        items = tuple(item if item is ... else _wire(item) for item in get_args(hint))
        return GenericAlias(tuple, items)
    if len(members := _members(hint)) > 1:
        return reduce(or_, [_wire(member) for member in members])
    return hint


def _struct(cls: type) -> _Hint:
    defaults = {f.name: f.default for f in fields(cast("Any", cls)) if f.default is not MISSING}
    specs: list[_Value] = []
    for name, hint in _hints(cls):
        # Fields without a default on the wire come first in msgspec; arrays keep our order.
        has_default = name in defaults and not is_dataclass(defaults[name])
        specs.append((name, _wire(hint), defaults[name]) if has_default else (name, _wire(hint)))
    tag = TAGS.get(cls)
    return msgspec.defstruct(
        cls.__name__, _ordered(specs), array_like=True, frozen=True, tag=tag, kw_only=False
    )


def _ordered(specs: list[_Value]) -> list[_Value]:
    """Drop a default if a field without one follows."""
    last = max((i for i, spec in enumerate(specs) if len(spec) == 2), default=-1)
    return [spec[:2] if i < last else spec for i, spec in enumerate(specs)]


@cache  # as many as there are types
def _writer(hint: _Hint) -> Callable[[_Value], _Value]:
    members = _members(hint)
    if len(members) > 1:
        return _union_writer(members)
    if is_dataclass(hint):
        return _array_writer(cast("type", hint))
    if _origin(hint) is tuple:
        item = _writer(get_args(hint)[0])
        if item is not _same and get_args(hint)[-1] is ...:
            return lambda values: [item(value) for value in values]
    return _same


def _array_writer(cls: type) -> Callable[[_Value], _Value]:
    parts = [(name, _writer(hint)) for name, hint in _hints(cls)]
    tags = [TAGS[cls]] if cls in TAGS else []
    return lambda value: [*tags, *[write(getattr(value, name)) for name, write in parts]]


def _union_writer(members: tuple[_Hint, ...]) -> Callable[[_Value], _Value]:
    writers = {member: _writer(member) for member in members if member in TAGS}
    return lambda value: writers.get(type(value), _same)(value)


@cache  # as many as there are types
def _reader(hint: _Hint) -> Callable[[_Value], _Value]:
    members = _members(hint)
    if len(members) > 1:
        return _union_reader(members)
    if is_dataclass(hint):
        return _value_reader(cast("type", hint))
    if hint == tuple[int, ...]:
        # For replica lists: there are few different ones, and thousands of partitions with them.
        return _shared
    if _origin(hint) is tuple:
        item = _reader(get_args(hint)[0])
        if item is not _same and get_args(hint)[-1] is ...:
            return lambda values: tuple([item(value) for value in values])
    return _same


@lru_cache(maxsize=_SHARED)
def _shared(value: tuple[int, ...]) -> tuple[int, ...]:
    return value


def _value_reader(cls: type) -> Callable[[_Value], _Value]:
    parts = [(name, _reader(hint)) for name, hint in _hints(cls)]

    def read(value: _Value) -> _Value:
        return cls(**{name: part(getattr(value, name)) for name, part in parts})

    # Thousands of partitions have equal states: they share one value, a third of the memory.
    return lru_cache(maxsize=_SHARED)(read) if cls is PartitionState else read


def _union_reader(members: tuple[_Hint, ...]) -> Callable[[_Value], _Value]:
    readers = {_wire(member): _reader(member) for member in members if member in TAGS}
    return lambda value: readers.get(type(value), _same)(value)


class _Reading(Generic[T]):
    """Decodes bytes to values of one closed set of types."""

    def __init__(self, hint: _Hint) -> None:
        self._decoder = msgspec.msgpack.Decoder(_wire(hint))
        self._read = _reader(hint)

    def decode(self, data: bytes | msgspec.Raw) -> T:
        try:
            return cast("T", self._read(self._decoder.decode(data)))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedFrame(f"{len(memoryview(data))} bytes: {error}") from error


@cache  # as many as there are types
def _reading(hint: _Hint) -> "_Reading[_Value]":
    return _Reading(hint)


_FROM_BROKER: Final[_Reading[FromBroker]] = _Reading(FromBroker)
_FROM_AGENT: Final[_Reading[FromAgent]] = _Reading(FromAgent)
_PIECE: Final[_Reading[Piece]] = _Reading(Piece)
_RECORD: Final[_Reading[Record]] = _Reading(Record)
