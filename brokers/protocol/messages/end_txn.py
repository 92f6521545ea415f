"""EndTxn: commit or abort a transaction.
API 26, versions 0-5, flexible from 3.

Versions:
  0  (KIP-98)
  1  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  2  the client knows PRODUCER_FENCED (KIP-588)
  3  flexible (KIP-482)
  4  the client knows TRANSACTION_ABORTABLE (KIP-890)
  5  every transaction gets an epoch of its own, sent back in the answer (KIP-890)
"""

from brokers.protocol.schema import Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message, key=26, versions=(0, 5), flexible=3):
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean("True to commit, false to abort.")


class EndTxnResponse(Message, key=26, versions=(0, 5), flexible=3):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    producer_id: int = int64(
        "Producer id for the next transaction; -1 on error.", default=-1, since=5, ignorable=True
    )
    producer_epoch: int = int16(
        "Epoch for the next transaction; -1 on error.", default=-1, since=5, ignorable=True
    )
