"""DeleteRecords: delete the records of a partition below an offset.
API 21, versions 0-2, flexible from 2.

The leader moves the log start, followers learn it by fetching; whole segments below it are deleted
in time.  The answer waits until every live replica has moved.  A topic whose cleanup policy does
not delete is POLICY_VIOLATION.

Versions:
  0  (KIP-107)
  1  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  2  flexible (KIP-482)
"""

from brokers.protocol.schema import Message, array, int16, int32, int64, string


class DeleteRecordsPartition(Message):
    partition_index: int = int32()
    offset: int = int64(
        "The new first offset, -1 for the high watermark; above that, or below -1, is "
        "OFFSET_OUT_OF_RANGE."
    )


class DeleteRecordsTopic(Message):
    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(DeleteRecordsPartition)


class DeleteRecordsRequest(Message, key=21, versions=(0, 2), flexible=2):
    topics: list[DeleteRecordsTopic] = array(DeleteRecordsTopic)
    timeout_ms: int = int32("How long to wait for the replicas before REQUEST_TIMED_OUT.")


class DeleteRecordsPartitionResult(Message):
    partition_index: int = int32()
    low_watermark: int = int64("The lowest log start among the live replicas; -1 on error.")
    error_code: int = int16(
        "OFFSET_OUT_OF_RANGE, NOT_LEADER_OR_FOLLOWER, POLICY_VIOLATION, "
        "UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED, REQUEST_TIMED_OUT, "
        "INVALID_TOPIC_EXCEPTION for an internal topic, KAFKA_STORAGE_ERROR."
    )


class DeleteRecordsTopicResult(Message):
    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(DeleteRecordsPartitionResult)


class DeleteRecordsResponse(Message, key=21, versions=(0, 2), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    topics: list[DeleteRecordsTopicResult] = array(DeleteRecordsTopicResult)
