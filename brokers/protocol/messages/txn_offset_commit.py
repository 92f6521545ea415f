"""TxnOffsetCommit: commit offsets of a group as a part of a transaction.
API 28, versions 0-5, flexible from 3.

Versions:
  0  (KIP-98)
  1  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  2  committed_leader_epoch (KIP-320)
  3  flexible (KIP-482); the member is checked (KIP-447)
  4  the client knows TRANSACTION_ABORTABLE (KIP-890)
  5  adds the group to the transaction by itself (KIP-890)
"""

from brokers.protocol.schema import Message, array, int16, int32, int64, string


class TxnOffsetCommitRequestPartition(Message):
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(
        "Epoch of the last record read; -1 if not known.", default=-1, since=2, ignorable=True
    )
    committed_metadata: str | None = string(
        "Free text of the consumer; null is kept as empty.", nullable=0
    )


class TxnOffsetCommitRequestTopic(Message):
    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


class TxnOffsetCommitRequest(Message, key=28, versions=(0, 5), flexible=3):
    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32("-1 is not checked.", default=-1, since=3)
    member_id: str = string("Empty is not checked.", since=3)
    group_instance_id: str | None = string(
        "Null unless the member is static.", default=None, since=3, nullable=3
    )
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


class TxnOffsetCommitResponsePartition(Message):
    partition_index: int = int32()
    error_code: int = int16()


class TxnOffsetCommitResponseTopic(Message):
    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


class TxnOffsetCommitResponse(Message, key=28, versions=(0, 5), flexible=3):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
