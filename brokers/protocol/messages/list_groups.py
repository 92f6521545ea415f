"""ListGroups: list the groups, of all kinds, that this broker coordinates.
API 16, versions 0-5, flexible from 3.

Versions:
  1  throttle time (KIP-124)
  2  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  3  flexible (KIP-482)
  4  states (KIP-518)
  5  types (KIP-848)
"""

from brokers.protocol.schema import STRING, Message, array, int16, int32, string


class ListGroupsRequest(Message, key=16, versions=(0, 5), flexible=3):
    states_filter: list[str] = array(STRING, "Empty for all states.", since=4)
    types_filter: list[str] = array(
        STRING, "Such as classic, consumer, share or streams; empty for all.", since=5
    )


class ListedGroup(Message):
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(since=4, ignorable=True)
    group_type: str = string(since=5, ignorable=True)


class ListGroupsResponse(Message, key=16, versions=(0, 5), flexible=3):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=1,
        ignorable=True,
    )
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
