"""DescribeTransactions: show the state of transactions that this broker coordinates.
API 65, version 0, flexible from 0.

Versions:
  0  (KIP-664)
"""

from brokers.protocol.schema import INT32, STRING, Message, array, int16, int32, int64, string


class DescribeTransactionsRequest(Message, key=65, versions=(0, 0), flexible=0):
    transactional_ids: list[str] = array(STRING)


class TopicData(Message):
    topic: str = string()
    partitions: list[int] = array(INT32)


class TransactionState(Message):
    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64(
        "Milliseconds since 1970; -1 while no transaction is open."
    )
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[TopicData] = array(TopicData, "Partitions of the open transaction.")


class DescribeTransactionsResponse(Message, key=65, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    transaction_states: list[TransactionState] = array(TransactionState)
