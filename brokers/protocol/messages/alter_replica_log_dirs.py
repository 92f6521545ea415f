"""AlterReplicaLogDirs: move replicas between the log dirs of this broker.
API 34, versions 1-2, flexible from 2.

Versions:
  1  a throttled answer is sent at once (KIP-219); the API is KIP-113, the oldest left by KIP-896
  2  flexible (KIP-482)
"""

from brokers.protocol.schema import INT32, Message, array, int16, int32, string


class AlterReplicaLogDirTopic(Message):
    name: str = string()
    partitions: list[int] = array(INT32)


class AlterReplicaLogDir(Message):
    path: str = string(
        "Absolute path of the log dir to move to; LOG_DIR_NOT_FOUND if the broker has none such."
    )
    topics: list[AlterReplicaLogDirTopic] = array(AlterReplicaLogDirTopic)


class AlterReplicaLogDirsRequest(Message, key=34, versions=(1, 2), flexible=2):
    dirs: list[AlterReplicaLogDir] = array(AlterReplicaLogDir)


class AlterReplicaLogDirPartitionResult(Message):
    partition_index: int = int32()
    error_code: int = int16()


class AlterReplicaLogDirTopicResult(Message):
    topic_name: str = string()
    partitions: list[AlterReplicaLogDirPartitionResult] = array(AlterReplicaLogDirPartitionResult)


class AlterReplicaLogDirsResponse(Message, key=34, versions=(1, 2), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    results: list[AlterReplicaLogDirTopicResult] = array(AlterReplicaLogDirTopicResult)
