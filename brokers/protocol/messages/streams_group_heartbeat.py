"""StreamsGroupHeartbeat: be a member of a streams group, bring the topology, learn the tasks.
API 88, version 0, flexible from 0.

What did not change since the last heartbeat is null, in both directions.

Versions:
  0  (KIP-1071)
"""

from brokers.protocol.schema import (
    INT16,
    INT32,
    STRING,
    Message,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
)


class KeyValue(Message):
    key: str = string()
    value: str = string()


class TopicInfo(Message):
    name: str = string()
    partitions: int = int32("0 if the number is left to the broker; always 0 for changelogs.")
    replication_factor: int = int16("0 for the broker's default.")
    topic_configs: list[KeyValue] = array(KeyValue)


class CopartitionGroup(Message):
    source_topics: list[int] = array(INT16, "Positions in the list of the subtopology.")
    source_topic_regex: list[int] = array(INT16, "Positions in the list of the subtopology.")
    repartition_source_topics: list[int] = array(INT16, "Positions in the list of the subtopology.")


class Subtopology(Message):
    subtopology_id: str = string()
    source_topics: list[str] = array(STRING)
    source_topic_regex: list[str] = array(STRING)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_sink_topics: list[str] = array(STRING)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup)


class Topology(Message):
    epoch: int = int32()
    subtopologies: list[Subtopology] = array(Subtopology)


class TaskIds(Message):
    subtopology_id: str = string()
    partitions: list[int] = array(INT32)


class Endpoint(Message):
    host: str = string()
    port: int = uint16()


class TaskOffset(Message):
    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


class StreamsGroupHeartbeatRequest(Message, key=88, versions=(0, 0), flexible=0):
    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32("0 joins, -1 leaves, -2 is a static member that will be back.")
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string("Null unless the member is static.", default=None, nullable=0)
    rack_id: str | None = string("Null if absent or unchanged.", default=None, nullable=0)
    rebalance_timeout_ms: int = int32(
        "How long the member may take to give up tasks, in ms; -1 if it did not change.", default=-1
    )
    topology: Topology | None = nested(Topology, "Sent on joining; else null.", nullable=0)
    active_tasks: list[TaskIds] | None = array(
        TaskIds, "Null if they did not change.", default=None, nullable=0
    )
    standby_tasks: list[TaskIds] | None = array(
        TaskIds, "Null if they did not change.", default=None, nullable=0
    )
    warmup_tasks: list[TaskIds] | None = array(
        TaskIds, "Null if they did not change.", default=None, nullable=0
    )
    process_id: str | None = string("Null if it did not change.", default=None, nullable=0)
    user_endpoint: Endpoint | None = nested(Endpoint, "Null if absent or unchanged.", nullable=0)
    client_tags: list[KeyValue] | None = array(
        KeyValue, "Null if they did not change.", default=None, nullable=0
    )
    task_offsets: list[TaskOffset] | None = array(
        TaskOffset, "Null if they did not change.", default=None, nullable=0
    )
    task_end_offsets: list[TaskOffset] | None = array(
        TaskOffset, "Null if they did not change.", default=None, nullable=0
    )
    shutdown_application: bool = boolean("Asks all members of the group to stop.")


class Status(Message):
    status_code: int = int8()
    status_detail: str = string()


class TopicPartition(Message):
    topic: str = string()
    partitions: list[int] = array(INT32)


class EndpointToPartitions(Message):
    user_endpoint: Endpoint = nested(Endpoint)
    active_partitions: list[TopicPartition] = array(TopicPartition)
    standby_partitions: list[TopicPartition] = array(TopicPartition)


class StreamsGroupHeartbeatResponse(Message, key=88, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32("Milliseconds until the next heartbeat is due.")
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32("Milliseconds between reports of task_offsets.")
    status: list[Status] | None = array(Status, "Null if there is nothing to say.", nullable=0)
    active_tasks: list[TaskIds] | None = array(
        TaskIds, "Null if they did not change.", default=None, nullable=0
    )
    standby_tasks: list[TaskIds] | None = array(
        TaskIds, "Null if they did not change.", default=None, nullable=0
    )
    warmup_tasks: list[TaskIds] | None = array(
        TaskIds, "Null if they did not change.", default=None, nullable=0
    )
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, "Null if they did not change.", default=None, nullable=0
    )
