"""ShareGroupHeartbeat: be a member of a share group: join, stay, leave and learn the assignment.
API 76, version 1, flexible from 0.

Versions:
  1  the first stable one (KIP-932); 0 was early access and is gone
"""

from brokers.protocol.schema import (
    INT32,
    STRING,
    Message,
    array,
    int16,
    int32,
    nested,
    string,
    uuid,
)


class ShareGroupHeartbeatRequest(Message, key=76, versions=(1, 1), flexible=0):
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32("0 joins, -1 leaves.")
    rack_id: str | None = string("Null if absent or unchanged.", default=None, nullable=0)
    subscribed_topic_names: list[str] | None = array(
        STRING, "Null if they did not change.", default=None, nullable=0
    )


class TopicPartitions(Message):
    topic_id: bytes = uuid()
    partitions: list[int] = array(INT32)


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ShareGroupHeartbeatResponse(Message, key=76, versions=(1, 1), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    member_id: str | None = string("Null on error.", default=None, nullable=0)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32("Milliseconds until the next heartbeat is due.")
    assignment: Assignment | None = nested(Assignment, "Null if it did not change.", nullable=0)
