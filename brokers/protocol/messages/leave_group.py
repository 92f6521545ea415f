"""LeaveGroup: leave a classic group, or remove members from it.
API 13, versions 0-5, flexible from 4.

Versions:
  1  throttle time (KIP-124)
  2  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  3  several members at once, also by instance id (KIP-345)
  4  flexible (KIP-482)
  5  reason (KIP-800)
"""

from brokers.protocol.schema import Message, array, int16, int32, string


class MemberIdentity(Message):
    member_id: str = string("Empty to name a static member by its instance id alone.", since=3)
    group_instance_id: str | None = string(
        "Null unless the member is static.", default=None, since=3, nullable=3
    )
    reason: str | None = string(
        "Why it leaves, for the log; null if not said.",
        default=None,
        since=5,
        nullable=5,
        ignorable=True,
    )


class LeaveGroupRequest(Message, key=13, versions=(0, 5), flexible=4):
    group_id: str = string()
    member_id: str = string(until=2)
    members: list[MemberIdentity] = array(MemberIdentity, since=3)


class MemberResponse(Message):
    member_id: str = string(since=3)
    group_instance_id: str | None = string("Null unless the member is static.", since=3, nullable=3)
    error_code: int = int16(since=3)


class LeaveGroupResponse(Message, key=13, versions=(0, 5), flexible=4):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=1,
        ignorable=True,
    )
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, since=3)
