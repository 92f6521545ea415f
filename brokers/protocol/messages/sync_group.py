"""SyncGroup: hand the leader's assignment to all members of a classic group.
API 14, versions 0-5, flexible from 4.

Versions:
  1  throttle time (KIP-124)
  2  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  3  static members (KIP-345)
  4  flexible (KIP-482)
  5  protocol type and name, checked against the group's (KIP-559)
"""

from brokers.protocol.schema import Message, array, blob, int16, int32, string


class SyncGroupRequestAssignment(Message):
    member_id: str = string()
    assignment: bytes = blob()


class SyncGroupRequest(Message, key=14, versions=(0, 5), flexible=4):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(
        "Null unless the member is static.", default=None, since=3, nullable=3
    )
    protocol_type: str | None = string(
        "Null is not checked.", default=None, since=5, nullable=5, ignorable=True
    )
    protocol_name: str | None = string(
        "Null is not checked.", default=None, since=5, nullable=5, ignorable=True
    )
    assignments: list[SyncGroupRequestAssignment] = array(
        SyncGroupRequestAssignment, "From the leader one for each member, from the others none."
    )


class SyncGroupResponse(Message, key=14, versions=(0, 5), flexible=4):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=1,
        ignorable=True,
    )
    error_code: int = int16()
    protocol_type: str | None = string(
        "Null on error.", default=None, since=5, nullable=5, ignorable=True
    )
    protocol_name: str | None = string(
        "Null on error.", default=None, since=5, nullable=5, ignorable=True
    )
    assignment: bytes = blob("The assignment of this member; empty on error.")
