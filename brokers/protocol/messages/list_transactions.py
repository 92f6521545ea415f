"""ListTransactions: list the transactions that this broker coordinates.
API 66, versions 0-2, flexible from 0.

Versions:
  0  (KIP-664)
  1  duration_filter (KIP-994)
  2  transactional_id_pattern (KIP-1152)
"""

from brokers.protocol.schema import INT64, STRING, Message, array, int16, int32, int64, string


class ListTransactionsRequest(Message, key=66, versions=(0, 2), flexible=0):
    state_filters: list[str] = array(STRING, "Empty for all states.")
    producer_id_filters: list[int] = array(INT64, "Empty for all producers.")
    duration_filter: int = int64(
        "Only transactions open for longer than this many milliseconds; -1 for all.",
        default=-1,
        since=1,
    )
    transactional_id_pattern: str | None = string(
        "Regular expression (RE2); null or empty for all.", default=None, since=2, nullable=2
    )


class TransactionState(Message):
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


class ListTransactionsResponse(Message, key=66, versions=(0, 2), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    unknown_state_filters: list[str] = array(STRING, "The unknown states of state_filters.")
    transaction_states: list[TransactionState] = array(TransactionState)
