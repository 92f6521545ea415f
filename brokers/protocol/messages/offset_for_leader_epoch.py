"""OffsetForLeaderEpoch: return the end offset of a leader epoch in the leader's log.
API 23, versions 2-4, flexible from 4.

A reader that held records of an epoch finds out whether the log was cut below its position: the
answer is the end of the largest epoch known here that is not above the one asked for (KIP-101,
KIP-279).  The present epoch ends at the log end.

Versions:
  2  current_leader_epoch and throttle time (KIP-320); the oldest left by KIP-896
  3  replica_id: only debugging and followers may look beyond the high watermark
  4  flexible (KIP-482)
"""

from brokers.protocol.schema import Message, array, int16, int32, int64, string


class OffsetForLeaderPartition(Message):
    partition: int = int32()
    current_leader_epoch: int = int32(
        "Leader epoch the client knows; older is FENCED_LEADER_EPOCH, newer UNKNOWN_LEADER_EPOCH, "
        "-1 is not checked.",
        default=-1,
    )
    leader_epoch: int = int32("The epoch whose end is asked for.")


class OffsetForLeaderTopic(Message):
    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(OffsetForLeaderPartition)


class OffsetForLeaderEpochRequest(Message, key=23, versions=(2, 4), flexible=4):
    replica_id: int = int32(
        "A broker id for a follower, -1 for a consumer, -2 (which older versions imply) for "
        "debugging.",
        default=-2,
        since=3,
        ignorable=True,
    )
    topics: list[OffsetForLeaderTopic] = array(OffsetForLeaderTopic)


class EpochEndOffset(Message):
    error_code: int = int16(
        "NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, "
        "UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED."
    )
    partition: int = int32()
    leader_epoch: int = int32(
        "The largest epoch not above the one asked for; -1 if the log has none.", default=-1
    )
    end_offset: int = int64("First offset after that epoch; -1 if the log has none.", default=-1)


class OffsetForLeaderTopicResult(Message):
    topic: str = string()
    partitions: list[EpochEndOffset] = array(EpochEndOffset)


class OffsetForLeaderEpochResponse(Message, key=23, versions=(2, 4), flexible=4):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    topics: list[OffsetForLeaderTopicResult] = array(OffsetForLeaderTopicResult)
