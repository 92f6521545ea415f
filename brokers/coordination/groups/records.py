"""Encodes and decodes the records of groups: keys and values.

A key begins with the number of its type, a value with its version. `record_messages` defines the
content of values; their meaning is not known here. Committed offsets, which outnumber all other
records, are packed by hand in the versions that are written.

Unreadable bytes are a KafkaError with CORRUPT_MESSAGE; records of types that belong to other kinds
of groups are no error and have no key here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from struct import error as StructError  # noqa: N812 - a class with the name of a function
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, TypeVar

from brokers.coordination.groups.record_messages import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataValue,
    OffsetCommitValue,
)
from brokers.coordination.groups.values import NO_EPOCH, NO_EXPIRY, NO_TOPIC_ID, Committed
from brokers.coordination.shard import Record
from brokers.protocol.codec import codec
from brokers.protocol.errors import DecodeError, EncodeError, ErrorCode, KafkaError
from brokers.protocol.primitives import MAX_STRING_BYTES
from brokers.protocol.schema import Message

M = TypeVar("M", bound=Message)

# Encoded strings of keys in the cache. With the longest ids this is 8 MiB.
MAX_CACHED_STRINGS: Final = 2_048
# Topic ids that all offsets with them share: a loaded shard has millions of offsets on a few
# topics. With their slots this is 200 KiB.
MAX_CACHED_IDS: Final = 2_048

_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
# Version, offset, leader epoch, length of the metadata, which is one byte if it is short; version,
# offset, length of the metadata.
_OFFSET_4: Final = Struct(">hqiB")
_OFFSET_3: Final = Struct(">hqih")
_OFFSET_1: Final = Struct(">hqh")
_COMMIT_MS: Final = Struct(">q")
_COMMIT_AND_EXPIRE_MS: Final = Struct(">qq")
# Time of the commit, then one tag, 0, of 16 bytes: the topic id.
_COMMIT_MS_AND_ID: Final = Struct(">q3s16s")
_ID_TAG: Final = b"\1\0\x10"
# The longest metadata whose length, and one for "not null", fits into one byte of a varint.
_MAX_SHORT_METADATA: Final = 126

# The end of the value of a member that uses the consumer protocol: one tag, 0, of one byte, for
# null. Without it Kafka takes the member for a classic one. The schema of messages has no tagged
# null, so this replaces a count of no tags.
_NOT_CLASSIC: Final = b"\1\0\1\0"
_NO_TAGS: Final = b"\0"

_OFFSET_TYPE: Final = 1
_LEGACY_OFFSET_TYPE: Final = 0


class OffsetKey(NamedTuple):
    """An offset of a group; the value is an OffsetCommitValue, read as `Committed`."""

    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GroupKey:
    """A classic group: GroupMetadataValue."""

    group_id: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupKey:
    """A group of the consumer protocol: ConsumerGroupMetadataValue."""

    group_id: str


@dataclass(frozen=True, slots=True)
class PartitionMetadataKey:
    """The topics of a group, as stored by brokers before 4.1. Only deleted, never written or read:
    the cluster's image has the same content.
    """

    group_id: str


@dataclass(frozen=True, slots=True)
class MemberKey:
    """A member of a consumer group: ConsumerGroupMemberMetadataValue."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class TargetKey:
    """The targets of a consumer group: ConsumerGroupTargetAssignmentMetadataValue."""

    group_id: str


@dataclass(frozen=True, slots=True)
class TargetMemberKey:
    """The target of one member: ConsumerGroupTargetAssignmentMemberValue."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class CurrentMemberKey:
    """The current assignment of one member: ConsumerGroupCurrentMemberAssignmentValue."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class RegexKey:
    """The matches of a group's expression: ConsumerGroupRegularExpressionValue."""

    group_id: str
    regex: str


GroupIdKey: TypeAlias = GroupKey | ConsumerGroupKey | PartitionMetadataKey | TargetKey
PairKey: TypeAlias = MemberKey | TargetMemberKey | CurrentMemberKey | RegexKey
Key: TypeAlias = OffsetKey | GroupIdKey | PairKey

# By the number in front of a key. 9 to 15 and those from 17 on are share and streams groups.
_GROUP_ID_KEYS: Final[Mapping[int, type[GroupIdKey]]] = MappingProxyType(
    {2: GroupKey, 3: ConsumerGroupKey, 4: PartitionMetadataKey, 6: TargetKey}
)
_PAIR_KEYS: Final[Mapping[int, type[PairKey]]] = MappingProxyType(
    {5: MemberKey, 7: TargetMemberKey, 8: CurrentMemberKey, 16: RegexKey}
)
_PREFIXES: Final[Mapping[type[Key], bytes]] = MappingProxyType(
    {
        kind: _INT16.pack(number)
        for kinds in (_GROUP_ID_KEYS, _PAIR_KEYS)
        for number, kind in kinds.items()
    }
)
_OFFSET_PREFIX: Final = _INT16.pack(_OFFSET_TYPE)

# The value of each key, and the version in which it is written.
_VALUES: Final[Mapping[type[Key], tuple[type[Message], int]]] = MappingProxyType(
    {
        GroupKey: (GroupMetadataValue, 3),
        ConsumerGroupKey: (ConsumerGroupMetadataValue, 0),
        MemberKey: (ConsumerGroupMemberMetadataValue, 0),
        TargetKey: (ConsumerGroupTargetAssignmentMetadataValue, 0),
        TargetMemberKey: (ConsumerGroupTargetAssignmentMemberValue, 0),
        CurrentMemberKey: (ConsumerGroupCurrentMemberAssignmentValue, 0),
        RegexKey: (ConsumerGroupRegularExpressionValue, 0),
    }
)


def record_of(key: GroupIdKey | PairKey, value: Message, decoded: object | None = None) -> Record:
    """Return the record of `value` under `key`. Replay gets the value itself: it must not change
    any more, and its arrays are lists, as if decoded. Unless `decoded` replaces it.
    """
    kind, version = _VALUES[type(key)]
    assert type(value) is kind, f"{type(value).__name__} does not belong to {type(key).__name__}"
    encoded = b"".join((_INT16.pack(version), *codec(kind, version).encode(value)))
    if (
        isinstance(value, ConsumerGroupMemberMetadataValue)
        and value.classic_member_metadata is None
    ):
        encoded = encoded.removesuffix(_NO_TAGS) + _NOT_CLASSIC
    return Record(encode_key(key), encoded, value if decoded is None else decoded)


def committed_record(group_id: str, topic: str, partition: int, committed: Committed) -> Record:
    """Return the record of an offset.

    Version 1 is the only one with a time of expiry. It has no leader epoch, which consumers that
    set such a time do not know either, and no topic id.
    """
    if committed.expire_ms != NO_EXPIRY:
        committed = committed._replace(leader_epoch=NO_EPOCH, topic_id=NO_TOPIC_ID)
    key = OffsetKey(group_id, topic, partition)
    return Record(offset_commit_key(*key), offset_commit_value(committed), committed, key)


def tombstone(key: Key) -> Record:
    """Return the record that deletes the value under `key`."""
    return Record(encode_key(key), None)


def encode_key(key: Key) -> bytes:
    if isinstance(key, OffsetKey):
        return offset_commit_key(*key)
    prefix = _PREFIXES[type(key)]
    if isinstance(key, MemberKey | TargetMemberKey | CurrentMemberKey):
        return prefix + _string(key.group_id) + _string(key.member_id)
    if isinstance(key, RegexKey):
        return prefix + _string(key.group_id) + _string(key.regex)
    return prefix + _string(key.group_id)


def offset_commit_key(group_id: str, topic: str, partition: int) -> bytes:
    return _OFFSET_PREFIX + _string(group_id) + _string(topic) + _INT32.pack(partition)


def offset_commit_value(committed: Committed) -> bytes:
    offset, leader_epoch, text, commit_ms, expire_ms, topic_id = committed
    metadata = text.encode()
    length = len(metadata)
    try:
        if expire_ms == NO_EXPIRY:
            if topic_id != NO_TOPIC_ID:
                if length > _MAX_SHORT_METADATA:
                    return _long_offset_value(committed)
                head = _OFFSET_4.pack(4, offset, leader_epoch, length + 1)
                return head + metadata + _COMMIT_MS_AND_ID.pack(commit_ms, _ID_TAG, topic_id)
            head = _OFFSET_3.pack(3, offset, leader_epoch, length)
            return head + metadata + _COMMIT_MS.pack(commit_ms)
        head = _OFFSET_1.pack(1, offset, length)
    except StructError as error:
        raise EncodeError(f"a committed offset {committed!r:.200}: {error}") from error
    return head + metadata + _COMMIT_AND_EXPIRE_MS.pack(commit_ms, expire_ms)


def _long_offset_value(committed: Committed) -> bytes:
    value = OffsetCommitValue(*committed)
    return b"".join((_INT16.pack(4), *codec(OffsetCommitValue, 4).encode(value)))


@lru_cache(maxsize=MAX_CACHED_STRINGS)
def _string(text: str) -> bytes:
    """Encode a string of a key, with its length. The same few groups and topics recur."""
    encoded = text.encode()
    if len(encoded) > MAX_STRING_BYTES:
        raise EncodeError(
            f"a string of {len(encoded)} bytes exceeds the limit of {MAX_STRING_BYTES} in a key"
        )
    return _INT16.pack(len(encoded)) + encoded


# -- reading -----------------------------------------------------------------------------------


def decode_key(key: bytes) -> Key | None:
    """Return the decoded key; None for another kind of record."""
    if len(key) < 2:
        raise _corrupt(f"a key of {len(key)} bytes has no type")
    number = key[0] << 8 | key[1]
    if number in {_OFFSET_TYPE, _LEGACY_OFFSET_TYPE}:
        group_id, position = _read_string(key, 2, "group id")
        topic, position = _read_string(key, position, "topic")
        if len(key) - position != 4:
            raise _corrupt(f"a key has {len(key) - position} bytes for a partition's index")
        return OffsetKey(group_id, topic, _INT32.unpack_from(key, position)[0])
    if number in _GROUP_ID_KEYS:
        group_id, position = _read_string(key, 2, "group id")
        _check_end(key, position)
        return _GROUP_ID_KEYS[number](group_id)
    if number in _PAIR_KEYS:
        group_id, position = _read_string(key, 2, "group id")
        part, position = _read_string(key, position, "member id or expression")
        _check_end(key, position)
        return _PAIR_KEYS[number](group_id, part)
    return None


def key_of(record: Record) -> Key | None:
    """Return the key of a record; None for another kind of record."""
    if isinstance(record.decoded_key, OffsetKey):
        return record.decoded_key
    return decode_key(record.key)


def decode_value(kind: type[M], value: bytes) -> M:
    """Decode a value of this kind, in any version."""
    if len(value) < 2:
        raise _corrupt(f"{kind.__name__} of {len(value)} bytes has no version")
    (version,) = _INT16.unpack_from(value)
    low, high = kind.VERSIONS
    if not low <= version <= high:
        raise _corrupt(f"{kind.__name__} has version {version}; {low} to {high} are known")
    decode = codec(kind, version).decode
    body = value[2:]
    try:
        if kind is ConsumerGroupMemberMetadataValue and body.endswith(_NOT_CLASSIC):
            return decode(body.removesuffix(_NOT_CLASSIC) + _NO_TAGS)
        return decode(body)
    except DecodeError as error:
        raise _corrupt(str(error)) from error


def decode_committed(value: bytes) -> Committed:
    """Decode the value under an OffsetKey."""
    size, version = len(value), value[:2]
    if version == b"\0\4" and size >= _OFFSET_4.size + _COMMIT_MS_AND_ID.size:
        _, offset, leader_epoch, length = _OFFSET_4.unpack_from(value)
        end = size - _COMMIT_MS_AND_ID.size
        if length == end - _OFFSET_4.size + 1 and length <= _MAX_SHORT_METADATA + 1:
            commit_ms, tag, topic_id = _COMMIT_MS_AND_ID.unpack_from(value, end)
            if tag == _ID_TAG:
                text = _metadata(value[_OFFSET_4.size : end])
                return Committed(
                    offset, leader_epoch, text, commit_ms, NO_EXPIRY, _shared_id(topic_id)
                )
    elif version == b"\0\3" and size >= _OFFSET_3.size:
        _, offset, leader_epoch, length = _OFFSET_3.unpack_from(value)
        end = _OFFSET_3.size + length
        if length >= 0 and size == end + 8:
            text = _metadata(value[_OFFSET_3.size : end])
            return Committed(offset, leader_epoch, text, *_COMMIT_MS.unpack_from(value, end))
    # Another version, or malformed bytes, for which the codec raises the error.
    read = decode_value(OffsetCommitValue, value)
    return Committed(
        read.offset,
        read.leader_epoch,
        read.metadata,
        read.commit_ms,
        read.expire_ms,
        _shared_id(read.topic_id),
    )


def _metadata(encoded: bytes) -> str:
    try:
        return encoded.decode()
    except UnicodeDecodeError as error:
        raise _corrupt(f"the metadata of an offset is not UTF-8: {error.reason}") from error


@lru_cache(maxsize=MAX_CACHED_IDS)
def _shared_id(topic_id: bytes) -> bytes:
    return topic_id


def value_of(record: Record, kind: type[M]) -> M | None:
    """Return the value of a record under a key of that kind; None if the record deletes it."""
    if isinstance(record.decoded, kind):
        return record.decoded
    return None if record.value is None else decode_value(kind, record.value)


def committed_of(record: Record) -> Committed | None:
    """Return the value of a record under an OffsetKey; None if the record deletes it."""
    if isinstance(record.decoded, Committed):
        return record.decoded
    return None if record.value is None else decode_committed(record.value)


def _read_string(key: bytes, position: int, what: str) -> tuple[str, int]:
    start = position + 2
    if start > len(key):
        raise _corrupt(f"a key of {len(key)} bytes ends before the length of its {what}")
    (length,) = _INT16.unpack_from(key, position)
    end = start + length
    if length < 0 or end > len(key):
        raise _corrupt(
            f"the {what} of a key has length {length}, and {len(key) - start} bytes are left"
        )
    try:
        return key[start:end].decode(), end
    except UnicodeDecodeError as error:
        raise _corrupt(f"the {what} of a key is not UTF-8: {error.reason}") from error


def _check_end(key: bytes, position: int) -> None:
    if position != len(key):
        raise _corrupt(f"{len(key) - position} bytes are left over behind a key")


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
