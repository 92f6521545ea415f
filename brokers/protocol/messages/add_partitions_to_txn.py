"""AddPartitionsToTxn: say which partitions a transaction will write to.
API 24, versions 0-5, flexible from 3.

Versions up to 3 come from producers; from 4 on brokers ask, also only to verify.

Versions:
  0  (KIP-98)
  1  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  2  the client knows PRODUCER_FENCED (KIP-588)
  3  flexible (KIP-482)
  4  several transactions at once, verify_only, error code of the whole answer (KIP-890)
  5  the client knows TRANSACTION_ABORTABLE (KIP-890)
"""

from brokers.protocol.schema import INT32, Message, array, boolean, int16, int32, int64, string


class AddPartitionsToTxnTopic(Message):
    name: str = string()
    partitions: list[int] = array(INT32)


class AddPartitionsToTxnTransaction(Message):
    transactional_id: str = string(since=4)
    producer_id: int = int64(since=4)
    producer_epoch: int = int16(since=4)
    verify_only: bool = boolean(
        "Only ask whether the partitions belong to the transaction; add none.", since=4
    )
    topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, since=4)


class AddPartitionsToTxnRequest(Message, key=24, versions=(0, 5), flexible=3):
    transactions: list[AddPartitionsToTxnTransaction] = array(
        AddPartitionsToTxnTransaction, since=4
    )
    v3_and_below_transactional_id: str = string(until=3)
    v3_and_below_producer_id: int = int64(until=3)
    v3_and_below_producer_epoch: int = int16(until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(AddPartitionsToTxnTopic, until=3)


class AddPartitionsToTxnPartitionResult(Message):
    partition_index: int = int32()
    partition_error_code: int = int16()


class AddPartitionsToTxnTopicResult(Message):
    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(
        AddPartitionsToTxnPartitionResult
    )


class AddPartitionsToTxnResult(Message):
    transactional_id: str = string(since=4)
    topic_results: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, since=4
    )


class AddPartitionsToTxnResponse(Message, key=24, versions=(0, 5), flexible=3):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16(since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(
        AddPartitionsToTxnResult, since=4
    )
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        AddPartitionsToTxnTopicResult, until=3
    )
