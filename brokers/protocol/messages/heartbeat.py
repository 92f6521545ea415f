"""Heartbeat: show that a member of a classic group is alive; learn of rebalances.
API 12, versions 0-4, flexible from 4.

Versions:
  1  throttle time (KIP-124)
  2  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  3  static members (KIP-345)
  4  flexible (KIP-482)
"""

from brokers.protocol.schema import Message, int16, int32, string


class HeartbeatRequest(Message, key=12, versions=(0, 4), flexible=4):
    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(
        "Null unless the member is static.", default=None, since=3, nullable=3
    )


class HeartbeatResponse(Message, key=12, versions=(0, 4), flexible=4):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=1,
        ignorable=True,
    )
    error_code: int = int16()
