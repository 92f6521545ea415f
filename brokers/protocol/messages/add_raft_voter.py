"""AddRaftVoter: add a voter to the metadata quorum (KRaft only).
API 80, versions 0-1, flexible from 0.

Versions:
  0  (KIP-853)
  1  ack_when_committed (KIP-1186)
"""

from brokers.protocol.schema import Message, array, boolean, int16, int32, string, uint16, uuid


class Listener(Message):
    name: str = string()
    host: str = string()
    port: int = uint16()


class AddRaftVoterRequest(Message, key=80, versions=(0, 1), flexible=0):
    cluster_id: str | None = string("Null is not checked.", nullable=0)
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean(
        "Answer when the new set of voters is committed, not already when it is written.",
        default=True,
        since=1,
    )


class AddRaftVoterResponse(Message, key=80, versions=(0, 1), flexible=0):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.", nullable=0
    )
