"""Defines small shared values of group coordination: committed offsets, and clients' identities.

Also the partition of the offsets topic for a group: clients never compute it, but a folder copied
from Kafka has its groups where Kafka put them, so the number must be the same as Kafka's. Knows no
group, no record and no message.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

# Of a committed offset: the leader epoch is unknown; the broker's retention decides how long the
# offset stays.
NO_EPOCH: Final = -1
NO_EXPIRY: Final = -1
# Of a committed offset: its record has no topic id.
NO_TOPIC_ID: Final = bytes(16)

# By topic id (16 bytes).
TopicPartitions: TypeAlias = Mapping[bytes, frozenset[int]]


class Committed(NamedTuple):
    """A group's committed offset in one partition; `offset` is the next record to read."""

    offset: int
    leader_epoch: int  # of the last record read, or NO_EPOCH
    metadata: str  # free text of the consumer
    commit_ms: int
    expire_ms: int = NO_EXPIRY  # the consumer's own limit, from old versions with a field for it
    # The topic that was read: a name outlives its topic, an id does not.
    topic_id: bytes = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class Who:
    """A member's client, for people: its own name and its address as Java prints one."""

    client_id: str
    host: str  # "/127.0.0.1"


def partition_of(group_id: str, count: int) -> int:
    """Return the group's partition of the offsets topic, which has `count` of them."""
    number = java_hash(group_id)
    # The lowest number has no positive counterpart in 32 bits; Kafka takes 0 in its place.
    return 0 if number == -(2**31) else abs(number) % count


def java_hash(text: str) -> int:
    """Java's hash of a string, over its UTF-16 units. Linear: the caller limits the length."""
    number = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            number = (31 * number + unit) & 0xFFFF_FFFF
    else:
        units = text.encode("utf-16-be", "surrogatepass")
        for high, low in zip(units[::2], units[1::2], strict=True):
            number = (31 * number + (high << 8 | low)) & 0xFFFF_FFFF
    return number - (1 << 32) if number >> 31 else number
