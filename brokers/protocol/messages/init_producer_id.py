"""InitProducerId: give a producer the id and epoch that its batches are checked by.
API 22, versions 0-5, flexible from 2.

Without a transactional id every call returns a new producer id with epoch 0, from any broker.
With a transactional id, the transaction coordinator answers: it raises the epoch, so that older
instances are fenced, and first aborts the transaction that they left open
(CONCURRENT_TRANSACTIONS until that is done).

Versions:
  0  (KIP-98)
  1  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  2  flexible (KIP-482)
  3  producer_id and producer_epoch in the request: a producer raises its own epoch (KIP-360)
  4  the client knows PRODUCER_FENCED; below it gets INVALID_PRODUCER_EPOCH (KIP-588)
  5  the client knows TRANSACTION_ABORTABLE (KIP-890)
Version 6 (two-phase commit, KIP-939) is not stable upstream and left out.
"""

from brokers.protocol.schema import Message, int16, int32, int64, string


class InitProducerIdRequest(Message, key=22, versions=(0, 5), flexible=2):
    transactional_id: str | None = string(
        "Null for a producer that is only idempotent; empty is INVALID_REQUEST.", nullable=0
    )
    transaction_timeout_ms: int = int32(
        "Longest life of a transaction before the coordinator aborts it; 0 or less, or above "
        "transaction.max.timeout.ms, is INVALID_TRANSACTION_TIMEOUT. Not read without a "
        "transactional id."
    )
    producer_id: int = int64(
        "The id whose epoch is to be raised; -1 for a fresh start.", default=-1, since=3
    )
    producer_epoch: int = int16(
        "Its present epoch, -1 for a fresh start; one of both at -1 is INVALID_REQUEST.",
        default=-1,
        since=3,
    )


class InitProducerIdResponse(Message, key=22, versions=(0, 5), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16(
        "CLUSTER_AUTHORIZATION_FAILED without and TRANSACTIONAL_ID_AUTHORIZATION_FAILED with a "
        "transactional id, the latter always while transactions are not served; INVALID_REQUEST, "
        "NOT_COORDINATOR, CONCURRENT_TRANSACTIONS, PRODUCER_FENCED."
    )
    producer_id: int = int64("-1 on error.", default=-1)
    producer_epoch: int = int16("To be put into every batch; -1 on error.")
