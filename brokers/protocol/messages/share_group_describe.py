"""ShareGroupDescribe: show share groups with members and assignments.
API 77, version 1, flexible from 0.

Versions:
  1  the first stable one (KIP-932); 0 was early access and is gone
"""

from brokers.protocol.schema import (
    INT32,
    STRING,
    Message,
    array,
    boolean,
    int16,
    int32,
    nested,
    string,
    uuid,
)


class ShareGroupDescribeRequest(Message, key=77, versions=(1, 1), flexible=0):
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
    rack_id: str | None = string("Null if the member names none.", default=None, nullable=0)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(STRING)
    assignment: Assignment = nested(Assignment)


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


class ShareGroupDescribeResponse(Message, key=77, versions=(1, 1), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    groups: list[DescribedGroup] = array(DescribedGroup)
