"""AddOffsetsToTxn: say that a transaction will commit offsets of a group.
API 25, versions 0-4, flexible from 3.

Versions:
  0  (KIP-98)
  1  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  2  the client knows PRODUCER_FENCED (KIP-588)
  3  flexible (KIP-482)
  4  the client knows TRANSACTION_ABORTABLE (KIP-890)
"""

from brokers.protocol.schema import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, key=25, versions=(0, 4), flexible=3):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, key=25, versions=(0, 4), flexible=3):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
