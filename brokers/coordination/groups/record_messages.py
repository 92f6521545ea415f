"""The values of the records in which groups are kept, in the notation of the protocol's messages.

Kafka's own forms, field by field, so that a folder of `__consumer_offsets` can change its owner.
Knows no bytes, no keys and nothing of what the values mean; `records` puts a key beside each.

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
    """How far a group has read one partition."""

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
    subscription: bytes = blob("What the member said for the protocol that was chosen.")
    assignment: bytes = blob("What the leader gave it.")


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
    """That a group of the consumer protocol is there, and how often it has changed."""

    epoch: int = int32("Counts what asks for a new assignment.")
    metadata_hash: int = int64("Of the topics that it is about; 0 if not known.", tag=0)


class ClassicProtocol(Message):
    name: str = string("Name of a way to assign.")
    metadata: bytes = blob("What the member says for it.")


class ClassicMemberMetadata(Message):
    """What a member has said by the classic protocol, in a group of the consumer protocol."""

    # An optional structure that stands in a tag has this number in front, always 1, for it would
    # not be written otherwise.
    is_present: int = int8("Always 1.", default=1)
    session_timeout_ms: int = int32("How long the member may be silent.")
    supported_protocols: list[ClassicProtocol] = array(
        ClassicProtocol, "Its ways to assign, the dearest first."
    )


class ConsumerGroupMemberMetadataValue(Message, flexible=0):
    """One member of a group of the consumer protocol, and what it wants."""

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
    """For which epoch of the group the targets of its members were made."""

    assignment_epoch: int = int32()
    assignment_ms: int = int64("When they were made; 0 if not known.", tag=0, ignorable=True)


class TargetTopicPartitions(Message):
    topic_id: bytes = uuid()
    partitions: list[int] = array(INT32)


class ConsumerGroupTargetAssignmentMemberValue(Message, flexible=0):
    """What one member shall have in the end."""

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
    """What one member has now, on its way to the target."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32("Taken once more from a member that missed its answer.")
    state: int = int8("0 stable, 1 unrevoked partitions, 2 unreleased partitions.")
    assigned_partitions: list[CurrentTopicPartitions] = array(CurrentTopicPartitions)
    partitions_pending_revocation: list[CurrentTopicPartitions] = array(
        CurrentTopicPartitions, "What it must still let go of."
    )


class ConsumerGroupRegularExpressionValue(Message, flexible=0):
    """Which topics a regular expression stood for."""

    topics: list[str] = array(STRING, "In the order of their names.")
    version: int = int64("Of the cluster's metadata with which it was resolved.")
    timestamp_ms: int = int64("When it was resolved.")
