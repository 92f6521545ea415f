"""UnregisterBroker: forget a broker that will not come back.
API 64, version 0, flexible from 0.

Versions:
  0  (KIP-631)
"""

from brokers.protocol.schema import Message, int16, int32, string


class UnregisterBrokerRequest(Message, key=64, versions=(0, 0), flexible=0):
    broker_id: int = int32()


class UnregisterBrokerResponse(Message, key=64, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
