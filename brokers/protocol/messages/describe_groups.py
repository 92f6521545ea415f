"""DescribeGroups: show classic groups with their state, members and assignments.
API 15, versions 0-6, flexible from 5.

Versions:
  1  throttle time (KIP-124)
  2  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  3  authorized operations on request (KIP-430)
  4  static members (KIP-345)
  5  flexible (KIP-482)
  6  error_message; an unknown group is GROUP_ID_NOT_FOUND, before a group in state Dead (KIP-1043)
"""

from brokers.protocol.schema import STRING, Message, array, blob, boolean, int16, int32, string


class DescribeGroupsRequest(Message, key=15, versions=(0, 6), flexible=5):
    groups: list[str] = array(STRING)
    include_authorized_operations: bool = boolean(since=3)


class DescribedGroupMember(Message):
    member_id: str = string()
    group_instance_id: str | None = string(
        "Null unless the member is static.", default=None, since=4, nullable=4, ignorable=True
    )
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = blob("The member's subscription; empty unless the group is stable.")
    member_assignment: bytes = blob(
        "The assignment of the member by the leader; empty before the first one."
    )


class DescribedGroup(Message):
    error_code: int = int16()
    error_message: str | None = string(
        "For people; null on success or where the code says it all.",
        default=None,
        since=6,
        nullable=6,
    )
    group_id: str = string()
    group_state: str = string(
        "PreparingRebalance, CompletingRebalance, Stable, Empty or Dead; empty on error."
    )
    protocol_type: str = string()
    protocol_data: str = string("The assignor chosen; empty unless the group is stable.")
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(
        "Bit n set: the principal may do ACL operation n; -2^31 if not asked for.",
        default=-2147483648,
        since=3,
    )


class DescribeGroupsResponse(Message, key=15, versions=(0, 6), flexible=5):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=1,
        ignorable=True,
    )
    groups: list[DescribedGroup] = array(DescribedGroup)
