"""ListOffsets: find offsets by time or by place: start, end, newest record.
API 2, versions 1-11, flexible from 6.

Only the leader answers.  A plain timestamp finds the first record at or after it; the negative
ones are places.  The end is the high watermark, with isolation level 1 the last stable offset.  A
place that the request's version does not know yet is UNSUPPORTED_VERSION for its partition.  A
partition named twice is INVALID_REQUEST.

Versions:
  1  one offset per partition in place of a list (KIP-79); the oldest left by KIP-896
  2  isolation_level and throttle time (KIP-98)
  3  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  4  leader epochs in both directions (KIP-320)
  5  the client knows OFFSET_NOT_AVAILABLE, from a leader that does not know its watermark yet
     (KIP-207)
  6  flexible (KIP-482)
  7  -3, the record with the largest timestamp (KIP-734)
  8  -4, the first offset on local disk (KIP-405)
  9  -5, the last offset in tiered storage (KIP-1005)
  10 timeout_ms (KIP-1075)
  11 -6, the first offset not yet copied to tiered storage (KIP-1023)
"""

from brokers.protocol.schema import Message, array, int8, int16, int32, int64, string


class ListOffsetsPartition(Message):
    partition_index: int = int32()
    current_leader_epoch: int = int32(
        "Leader epoch the client knows; older is FENCED_LEADER_EPOCH, newer UNKNOWN_LEADER_EPOCH, "
        "-1 is not checked.",
        default=-1,
        since=4,
        ignorable=True,
    )
    timestamp: int = int64(
        "Milliseconds since 1970, or a place: -1 end, -2 start, -3 record with the largest "
        "timestamp, -4 start of the local log, -5 end of the tiered part, -6 start of what is not "
        "tiered yet."
    )


class ListOffsetsTopic(Message):
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(ListOffsetsPartition)


class ListOffsetsRequest(Message, key=2, versions=(1, 11), flexible=6):
    replica_id: int = int32("-1 for a consumer, a broker id for a follower, -2 for debugging.")
    isolation_level: int = int8(
        "0 ends at the high watermark, 1 (read committed) at the last stable offset.", since=2
    )
    topics: list[ListOffsetsTopic] = array(ListOffsetsTopic)
    timeout_ms: int = int32(
        "How long a look into tiered storage may take.", since=10, ignorable=True
    )


class ListOffsetsPartitionResponse(Message):
    partition_index: int = int32()
    error_code: int = int16(
        "NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, OFFSET_NOT_AVAILABLE, "
        "UNKNOWN_TOPIC_OR_PARTITION, UNSUPPORTED_VERSION, INVALID_REQUEST for a partition named "
        "twice."
    )
    timestamp: int = int64(
        "Time of the record found by timestamp or by -3; -1 for the other places or where none "
        "was found.",
        default=-1,
    )
    offset: int = int64("-1 where no record is that young, or on error.", default=-1)
    leader_epoch: int = int32(
        "Leader epoch of the record at that offset; -1 if not known.", default=-1, since=4
    )


class ListOffsetsTopicResponse(Message):
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(ListOffsetsPartitionResponse)


class ListOffsetsResponse(Message, key=2, versions=(1, 11), flexible=6):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=2,
        ignorable=True,
    )
    topics: list[ListOffsetsTopicResponse] = array(ListOffsetsTopicResponse)
