"""Computes the hash of a group's topics, and its members' target assignment.

Pure: a group and an image in, a hash or the members' new targets out. Knows no request.
"""

import struct
from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from brokers.cluster.image import ClusterImage, Topic
from brokers.coordination.groups.assignors import ASSIGNORS
from brokers.coordination.groups.assignors.spec import GroupSpec, MemberSpec
from brokers.coordination.groups.modern import (
    NO_PARTITIONS,
    ConsumerGroup,
    topic_ids_of,
    topic_names_of,
)
from brokers.coordination.groups.modern_changes import MemberTarget
from brokers.protocol.errors import ErrorCode, KafkaError

# The first byte of the hashed input: another hash method gets another number.
_HASH_KIND: Final = b"\x53"
_LENGTHS: Final = struct.Struct(">II")

DEFAULT_ASSIGNOR: Final = next(iter(ASSIGNORS))


def metadata_hash(names: Iterable[str], image: ClusterImage) -> int:
    """Return a number that changes when a topic is added, deleted, extended or moves racks.

    Samsa's own: Kafka's hash differs, so a group that came from there is assigned once more. 0, as
    in Kafka, if none of the topics exists.
    """
    topics = [image.topics[name] for name in sorted(names) if name in image.topics]
    if not topics:
        return 0
    digest = blake2b(_HASH_KIND, digest_size=8)
    racks = {broker.id: broker.rack for broker in image.brokers.values() if broker.rack}
    for topic in topics:
        name = topic.name.encode()
        digest.update(topic.id + _LENGTHS.pack(len(name), len(topic.partitions)) + name)
        if racks:
            digest.update(_racks_of(topic, racks))
    return int.from_bytes(digest.digest(), "big", signed=True)


def _racks_of(topic: Topic, racks: dict[int, str]) -> bytes:
    parts = []
    for partition in topic.partitions:
        names = sorted({racks[broker] for broker in partition.replicas if broker in racks})
        parts += [name.encode() for name in names]
        parts.append(b"")
    return b"".join(struct.pack(">I", len(part)) + part for part in parts)


def spec_of(group: ConsumerGroup, image: ClusterImage) -> GroupSpec:
    """Return the assignor's input for the members and their topics."""
    # Members mostly subscribe alike: ids are looked up once for each different subscription.
    ids: dict[tuple[tuple[str, ...], str], frozenset[bytes]] = {}
    partitions: dict[bytes, int] = {}
    members = {}
    for member in group.members.values():
        subscription = (member.names, member.regex)
        topics = ids.get(subscription)
        if topics is None:
            names = topic_names_of(member, group.regexes)
            topics = ids[subscription] = topic_ids_of(names, image)
            for name in names:
                if (topic := image.topics.get(name)) is not None:
                    partitions[topic.id] = len(topic.partitions)
        members[member.id] = MemberSpec(topics, group.targets.get(member.id, NO_PARTITIONS))
    return GroupSpec(members, partitions, group.is_homogeneous)


def new_targets(group: ConsumerGroup, image: ClusterImage) -> list[MemberTarget]:
    """Return the members whose target has changed, or that never had one.

    The assignor is the one that most members request. An error in it is a bug.
    """
    assign = ASSIGNORS.get(group.assignor or DEFAULT_ASSIGNOR, ASSIGNORS[DEFAULT_ASSIGNOR])
    try:
        made = assign(spec_of(group, image))
    except AssertionError as error:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"the partitions of group {group.id!r} could not be assigned: {error}",
        ) from error
    targets = group.targets
    return [
        MemberTarget(member_id, target)
        for member_id, target in made.items()
        if targets.get(member_id) is not target
    ]
