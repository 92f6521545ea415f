"""DeleteGroups: delete groups that have no members, with all their offsets.
API 42, versions 0-2, flexible from 2.

Versions:
  0  (KIP-229)
  1  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  2  flexible (KIP-482)
"""

from brokers.protocol.schema import STRING, Message, array, int16, int32, string


class DeleteGroupsRequest(Message, key=42, versions=(0, 2), flexible=2):
    groups_names: list[str] = array(STRING)


class DeletableGroupResult(Message):
    group_id: str = string()
    error_code: int = int16()


class DeleteGroupsResponse(Message, key=42, versions=(0, 2), flexible=2):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does."
    )
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
