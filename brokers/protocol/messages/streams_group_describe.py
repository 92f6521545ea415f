"""StreamsGroupDescribe: show streams groups with topology, members and tasks.
API 89, version 0, flexible from 0.

Versions:
  0  (KIP-1071)
"""

from brokers.protocol.schema import (
    INT32,
    STRING,
    Message,
    array,
    boolean,
    int16,
    int32,
    int64,
    nested,
    string,
    uint16,
)


class StreamsGroupDescribeRequest(Message, key=89, versions=(0, 0), flexible=0):
    group_ids: list[str] = array(STRING)
    include_authorized_operations: bool = boolean()


class KeyValue(Message):
    key: str = string()
    value: str = string()


class TopicInfo(Message):
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[KeyValue] = array(KeyValue)


class Subtopology(Message):
    subtopology_id: str = string()
    source_topics: list[str] = array(STRING)
    repartition_sink_topics: list[str] = array(STRING)
    state_changelog_topics: list[TopicInfo] = array(TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(TopicInfo)


class Topology(Message):
    epoch: int = int32()
    subtopologies: list[Subtopology] | None = array(
        Subtopology, "Null while the topology is not known.", default=None, nullable=0
    )


class Endpoint(Message):
    host: str = string()
    port: int = uint16()


class TaskOffset(Message):
    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


class TaskIds(Message):
    subtopology_id: str = string()
    partitions: list[int] = array(INT32)


class Assignment(Message):
    active_tasks: list[TaskIds] = array(TaskIds)
    standby_tasks: list[TaskIds] = array(TaskIds)
    warmup_tasks: list[TaskIds] = array(TaskIds)


class Member(Message):
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string("Null unless the member is static.", default=None, nullable=0)
    rack_id: str | None = string("Null if the member names none.", default=None, nullable=0)
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(Endpoint, "Null if the member has none.", nullable=0)
    client_tags: list[KeyValue] = array(KeyValue)
    task_offsets: list[TaskOffset] = array(TaskOffset)
    task_end_offsets: list[TaskOffset] = array(TaskOffset)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    is_classic: bool = boolean()


class DescribedGroup(Message):
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", default=None, nullable=0
    )
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: Topology | None = nested(
        Topology, "Null while no member has brought one.", nullable=0
    )
    members: list[Member] = array(Member)
    authorized_operations: int = int32(
        "Bit n set: the principal may do ACL operation n; -2^31 if not asked for.",
        default=-2147483648,
    )


class StreamsGroupDescribeResponse(Message, key=89, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    groups: list[DescribedGroup] = array(DescribedGroup)
