"""Defines the values of group records, as messages of `brokers.protocol.schema`.

Kafka's own formats, field by field, so that Kafka and Samsa can open each other's folders of
`__consumer_offsets`. Defines no bytes, keys or semantics; `records` adds a key to each.

Versions:
  OffsetCommitValue   0 the oldest; 1 expire_ms; 2 without it again; 3 leader epoch (KIP-320);
                      4 flexible, topic id; 1 or 3 is written
  GroupMetadataValue  1 rebalance timeout; 2 time of the last change; 3 static members (KIP-345);
                      4 flexible; 3 is written
  all others          0, flexible; what came later stands in tags (KIP-915)
"""

from brokers.protocol.schema import (
    INT32,
    STRING,
    Message,
    array,
    blob,
    int8,
    int32,
    int64,
    nested,
    string,
    uuid,
)


class OffsetCommitValue(Message, versions=(0, 4), flexible=4):
    """A group's committed offset in one partition."""

    offset: int = int64("The next record to read.")
    leader_epoch: int = int32(
        "Epoch of the last record read; -1 if not known.", default=-1, since=3, ignorable=True
    )
    metadata: str = string("Free text of the consumer.")
    commit_ms: int = int64("When it was committed.")
    expire_ms: int = int64(
        "When it may be forgotten; -1 for the broker's own retention.",
        default=-1,
        since=1,
        until=1,
        ignorable=True,
    )
    topic_id: bytes = uuid(
        "The topic that was meant; zeros if the consumer named none.",
        since=4,
        tag=0,
        ignorable=True,
    )


class GroupMetadataMember(Message):
    member_id: str = string()
    group_instance_id: str | None = string(
        "Null unless the member is static.", default=None, since=3, nullable=3, ignorable=True
    )
    client_id: str = string()
    client_host: str = string("As Java prints an address: with a slash before it.")
    rebalance_timeout_ms: int = int32(
        "How long the member may take to rejoin.", since=1, ignorable=True
    )
    session_timeout_ms: int = int32("How long the member may be silent.")
    subscription: bytes = blob("The member's metadata for the chosen protocol.")
    assignment: bytes = blob("The member's assignment by the leader.")


class GroupMetadataValue(Message, versions=(0, 4), flexible=4):
    """A classic group, once it is stable or empty."""

    protocol_type: str = string('"consumer" for consumers; empty if the group has none yet.')
    generation: int = int32("Counts the rebalances.")
    protocol: str | None = string("The protocol that was chosen.", default=None, nullable=0)
    leader: str | None = string("Member id of the leader.", default=None, nullable=0)
    current_state_ms: int = int64(
        "Since when the group is in its state; -1 if not known.",
        default=-1,
        since=2,
        ignorable=True,
    )
    members: list[GroupMetadataMember] = array(
        GroupMetadataMember, "In the order in which they joined."
    )


class ConsumerGroupMetadataValue(Message, flexible=0):
    """A group of the consumer protocol: that it exists, and its epoch."""

    epoch: int = int32("Counts what asks for a new assignment.")
    metadata_hash: int = int64("Of the topics that it is about; 0 if not known.", tag=0)


class ClassicProtocol(Message):
    name: str = string("Name of a way to assign.")
    metadata: bytes = blob("The member's metadata for it.")


class ClassicMemberMetadata(Message):
    """The classic protocol's data of a member, in a group of the consumer protocol."""

    # The encoding of an optional structure in a tag begins with this number, always 1; without it
    # the structure would be omitted.
    is_present: int = int8("Always 1.", default=1)
    session_timeout_ms: int = int32("How long the member may be silent.")
    supported_protocols: list[ClassicProtocol] = array(
        ClassicProtocol, "Its ways to assign, the dearest first."
    )


class ConsumerGroupMemberMetadataValue(Message, flexible=0):
    """One member of a group of the consumer protocol, and its subscription."""

    instance_id: str | None = string("Null unless the member is static.", default=None, nullable=0)
    rack_id: str | None = string(default=None, nullable=0)
    client_id: str = string()
    client_host: str = string("As Java prints an address: with a slash before it.")
    subscribed_topic_names: list[str] = array(STRING, "In the order of their names.")
    subscribed_topic_regex: str | None = string(default=None, nullable=0)
    rebalance_timeout_ms: int = int32("How long the member may take to let go.", default=-1)
    server_assignor: str | None = string(
        "Null if the member leaves it to the broker.", default=None, nullable=0
    )
    classic_member_metadata: ClassicMemberMetadata | None = nested(
        ClassicMemberMetadata, "Null unless the member speaks the classic protocol.", tag=0
    )


class ConsumerGroupTargetAssignmentMetadataValue(Message, flexible=0):
    """The group epoch for which the targets of its members were made."""

    assignment_epoch: int = int32()
    assignment_ms: int = int64("When they were made; 0 if not known.", tag=0, ignorable=True)


class TargetTopicPartitions(Message):
    topic_id: bytes = uuid()
    partitions: list[int] = array(INT32)


class ConsumerGroupTargetAssignmentMemberValue(Message, flexible=0):
    """The target assignment of one member."""

    topic_partitions: list[TargetTopicPartitions] = array(TargetTopicPartitions)


class CurrentTopicPartitions(Message):
    topic_id: bytes = uuid()
    partitions: list[int] = array(INT32)
    assignment_epochs: list[int] | None = array(
        INT32,
        "The member's epoch when it was given each partition, in the order of the partitions "
        "(KIP-1251); null in records of an older broker.",
        default=None,
        nullable=0,
        tag=0,
    )


class ConsumerGroupCurrentMemberAssignmentValue(Message, flexible=0):
    """The current assignment of one member, on its way to the target."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32("Taken once more from a member that missed its answer.")
    state: int = int8("0 stable, 1 unrevoked partitions, 2 unreleased partitions.")
    assigned_partitions: list[CurrentTopicPartitions] = array(CurrentTopicPartitions)
    partitions_pending_revocation: list[CurrentTopicPartitions] = array(
        CurrentTopicPartitions, "Partitions that the member still has to revoke."
    )


class ConsumerGroupRegularExpressionValue(Message, flexible=0):
    """The topics that a regular expression matched."""

    topics: list[str] = array(STRING, "In the order of their names.")
    version: int = int64("Of the cluster's metadata with which it was resolved.")
    timestamp_ms: int = int64("When it was resolved.")
