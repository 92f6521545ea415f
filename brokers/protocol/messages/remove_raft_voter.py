"""RemoveRaftVoter: remove a voter from the metadata quorum (KRaft only).
API 81, version 0, flexible from 0.

Versions:
  0  (KIP-853)
"""

from brokers.protocol.schema import Message, int16, int32, string, uuid


class RemoveRaftVoterRequest(Message, key=81, versions=(0, 0), flexible=0):
    cluster_id: str | None = string("Null is not checked.", nullable=0)
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


class RemoveRaftVoterResponse(Message, key=81, versions=(0, 0), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
