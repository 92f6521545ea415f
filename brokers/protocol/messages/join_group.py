"""JoinGroup: join a classic group, and wait until all its members have joined.
API 11, versions 0-9, flexible from 6.

The answer to the leader lists all members and their subscriptions, for it to assign partitions.

Versions:
  1  rebalance_timeout_ms apart from the session timeout (KIP-62)
  2  throttle time (KIP-124)
  3  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  4  a newcomer is sent back with its member id and MEMBER_ID_REQUIRED (KIP-394)
  5  static members (KIP-345)
  6  flexible (KIP-482)
  7  protocol_type in the answer, protocol_name may be null (KIP-559)
  8  reason (KIP-800)
  9  skip_assignment, when a static leader comes back (KIP-814)
"""

from brokers.protocol.schema import Message, array, blob, boolean, int16, int32, string


class JoinGroupRequestProtocol(Message):
    name: str = string()
    metadata: bytes = blob()


class JoinGroupRequest(Message, key=11, versions=(0, 9), flexible=6):
    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(
        "How long the group waits for this member to rejoin; -1 means the session timeout.",
        default=-1,
        since=1,
        ignorable=True,
    )
    member_id: str = string("Empty for a newcomer.")
    group_instance_id: str | None = string(
        "Null unless the member is static.", default=None, since=5, nullable=5
    )
    protocol_type: str = string("Such as consumer or connect.")
    protocols: list[JoinGroupRequestProtocol] = array(
        JoinGroupRequestProtocol, "The best liked first."
    )
    reason: str | None = string(
        "Why the member joins, for the log; null if it does not say.",
        default=None,
        since=8,
        nullable=8,
        ignorable=True,
    )


class JoinGroupResponseMember(Message):
    member_id: str = string()
    group_instance_id: str | None = string(
        "Null unless the member is static.", default=None, since=5, nullable=5, ignorable=True
    )
    metadata: bytes = blob()


class JoinGroupResponse(Message, key=11, versions=(0, 9), flexible=6):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=2,
        ignorable=True,
    )
    error_code: int = int16()
    generation_id: int = int32("-1 on error.", default=-1)
    protocol_type: str | None = string(
        "Null on error.", default=None, since=7, nullable=7, ignorable=True
    )
    protocol_name: str | None = string(
        "The protocol that all members share; on error null, empty before version 7.", nullable=7
    )
    leader: str = string("Member id of the leader.")
    skip_assignment: bool = boolean("The leader must keep the present assignment.", since=9)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(
        JoinGroupResponseMember, "All members for the leader, empty for the others."
    )
