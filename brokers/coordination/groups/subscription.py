"""Decodes and encodes subscriptions and assignments inside JoinGroup and SyncGroup.

To a classic group these are opaque bytes of its members. The coordinator needs their content for
two purposes: offsets of subscribed topics are not deleted, and a group that changes to the consumer
protocol or back keeps its subscriptions and assignments.

Versions 0 to 3, never flexible; a newer one begins like version 3, and bytes behind the known
fields are ignored. Members may write any bytes, so unreadable ones are None, no error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Final, TypeAlias

from brokers.protocol.errors import EncodeError
from brokers.protocol.primitives import MAX_STRING_BYTES

HIGHEST_VERSION: Final = 3

# By topic name.
NamedPartitions: TypeAlias = Mapping[str, frozenset[int]]

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
# The minimum bytes of a topic's name, and of a topic with its partitions.
_LEAST_STRING: Final = 2
_LEAST_TOPIC: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A member's subscribed topics, and the partitions that it reports as owned."""

    version: int
    topics: frozenset[str]
    user_data: bytes | None = None
    owned: NamedPartitions  # since version 1; empty before
    generation: int = -1  # in which it had them; since version 2
    rack_id: str | None = None  # since version 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The leader's assignment for a member."""

    version: int
    partitions: NamedPartitions
    user_data: bytes | None = None


def decode_subscription(data: bytes) -> Subscription | None:
    """Decode the subscription in a member's metadata; None if it is unreadable."""
    try:
        reader = _Reader(data)
        version = reader.version()
        topics = reader.strings()
        user_data = reader.nullable_bytes()
        owned = reader.topic_partitions() if version >= 1 else {}
        generation = reader.int32() if version >= 2 else -1
        rack_id = reader.nullable_string() if version >= 3 else None
    except _UnreadableError:
        return None
    return Subscription(
        version=version,
        topics=topics,
        user_data=user_data,
        owned=owned,
        generation=generation,
        rack_id=rack_id,
    )


def decode_topics(data: bytes) -> frozenset[str] | None:
    """Decode the topics alone, with which all versions begin; None if they are unreadable."""
    try:
        reader = _Reader(data)
        reader.version()
        return reader.strings()
    except _UnreadableError:
        return None


def version_of(metadata: bytes) -> int:
    """Return the version of a member's subscription, at most the highest one known here.

    Unreadable bytes count as the lowest version, which all members can read.
    """
    try:
        return _Reader(metadata).version()
    except _UnreadableError:
        return 0


def decode_assignment(data: bytes) -> Assignment | None:
    """Decode the assignment that a leader made; None if it is unreadable."""
    try:
        reader = _Reader(data)
        version = reader.version()
        partitions = reader.topic_partitions()
        user_data = reader.nullable_bytes()
    except _UnreadableError:
        return None
    return Assignment(version=version, partitions=partitions, user_data=user_data)


def encode_assignment(partitions: NamedPartitions, version: int) -> bytes:
    """Encode an assignment for a member whose subscription has `version`; in a fixed order."""
    assert 0 <= version <= HIGHEST_VERSION, f"version {version} of an assignment"
    parts = [_INT16.pack(version), _INT32.pack(len(partitions))]
    for topic, indexes in sorted(partitions.items()):
        name = topic.encode()
        if len(name) > MAX_STRING_BYTES:
            raise EncodeError(
                f"a topic's name of {len(name)} bytes exceeds the limit of {MAX_STRING_BYTES}"
            )
        parts += (_INT16.pack(len(name)), name, _INT32.pack(len(indexes)))
        parts += map(_INT32.pack, sorted(indexes))
    parts.append(_INT32.pack(-1))  # no user data
    return b"".join(parts)


class _UnreadableError(Exception):
    """Malformed bytes; never leaves this module."""


class _Reader:
    """Reads the bytes of one member. Every length is compared with the bytes left."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def version(self) -> int:
        """Return the version, at most the highest one known here, as which newer ones are read."""
        number = self._int16()
        if number < 0:
            raise _UnreadableError
        return min(number, HIGHEST_VERSION)

    def int32(self) -> int:
        number: int = _INT32.unpack(self._take(4))[0]
        return number

    def nullable_bytes(self) -> bytes | None:
        length = self.int32()
        return None if length < 0 else self._take(length)

    def nullable_string(self) -> str | None:
        length = self._int16()
        return None if length < 0 else self._text(length)

    def strings(self) -> frozenset[str]:
        return frozenset([self._text(self._int16()) for _ in range(self._count(_LEAST_STRING))])

    def topic_partitions(self) -> dict[str, frozenset[int]]:
        """Merge the partitions of a topic that is named twice."""
        found: dict[str, frozenset[int]] = {}
        for _ in range(self._count(_LEAST_TOPIC)):
            topic = self._text(self._int16())
            raw = self._take(self._count(4) * 4)
            indexes = frozenset(index for (index,) in _INT32.iter_unpack(raw))
            found[topic] = found.get(topic, frozenset()) | indexes
        return found

    def _count(self, least: int) -> int:
        """Return how many elements follow, each of at least `least` bytes."""
        count = self.int32()
        if count < 0 or count * least > len(self._data) - self._position:
            raise _UnreadableError
        return count

    def _int16(self) -> int:
        number: int = _INT16.unpack(self._take(2))[0]
        return number

    def _text(self, length: int) -> str:
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise _UnreadableError from error

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise _UnreadableError
        piece = self._data[self._position : end]
        self._position = end
        return piece
