"""ConsumerGroupHeartbeat: join a consumer group (KIP-848), stay in it, learn the assignment.
API 68, versions 0-1, flexible from 0.

The one request of the protocol where the broker assigns (KIP-848).  What did not change since the
last heartbeat is null, in both directions.

Versions:
  0  the broker makes up the member id (KIP-848)
  1  the client makes up the member id (KIP-1082); subscribed_topic_regex
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


class TopicPartitions(Message):
    topic_id: bytes = uuid()
    partitions: list[int] = array(INT32)


class ConsumerGroupHeartbeatRequest(Message, key=68, versions=(0, 1), flexible=0):
    group_id: str = string()
    member_id: str = string("Made up by the client from version 1 on; empty to join in version 0.")
    member_epoch: int = int32("0 joins, -1 leaves, -2 is a static member that will be back.")
    instance_id: str | None = string("Null unless the member is static.", default=None, nullable=0)
    rack_id: str | None = string("Null if absent or unchanged.", default=None, nullable=0)
    rebalance_timeout_ms: int = int32(
        "How long the member may take to give up partitions, in ms; -1 if it did not change.",
        default=-1,
    )
    subscribed_topic_names: list[str] | None = array(
        STRING, "Null if they did not change.", default=None, nullable=0
    )
    subscribed_topic_regex: str | None = string(
        "Regular expression (RE2J); null if it did not change, empty for none.",
        default=None,
        since=1,
        nullable=1,
    )
    server_assignor: str | None = string(
        "Null for the group's choice, or if it did not change.", default=None, nullable=0
    )
    topic_partitions: list[TopicPartitions] | None = array(
        TopicPartitions,
        "The partitions that the member owns; null if unchanged.",
        default=None,
        nullable=0,
    )


class Assignment(Message):
    topic_partitions: list[TopicPartitions] = array(TopicPartitions)


class ConsumerGroupHeartbeatResponse(Message, key=68, versions=(0, 1), flexible=0):
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
