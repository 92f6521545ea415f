"""ConsumerGroupDescribe: show consumer groups (KIP-848) with members and assignments.
API 69, versions 0-1, flexible from 0.

Versions:
  0  (KIP-848)
  1  member_type, for groups on their way from classic to new (KIP-1099)
"""

from brokers.protocol.schema import (
    INT32,
    STRING,
    Message,
    array,
    boolean,
    int8,
    int16,
    int32,
    nested,
    string,
    uuid,
)


class ConsumerGroupDescribeRequest(Message, key=69, versions=(0, 1), flexible=0):
    group_ids: list[str] = array(STRING)
    include_authorized_operations: bool = boolean()


class TopicPartitions(Message):
    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(INT32)


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class Member(Message):
    member_id: str = string()
    instance_id: str | None = string("Null unless the member is static.", default=None, nullable=0)
    rack_id: str | None = string("Null if the member names none.", default=None, nullable=0)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(STRING)
    subscribed_topic_regex: str | None = string(
        "Empty if the member has none; null from older brokers.", default=None, nullable=0
    )
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    member_type: int = int8(
        "0 classic, 1 consumer, -1 not known.", default=-1, since=1, ignorable=True
    )


class DescribedGroup(Message):
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[Member] = array(Member)
    authorized_operations: int = int32(
        "Bit n set: the principal may do ACL operation n; -2^31 if not asked for.",
        default=-2147483648,
    )


class ConsumerGroupDescribeResponse(Message, key=69, versions=(0, 1), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    groups: list[DescribedGroup] = array(DescribedGroup)
