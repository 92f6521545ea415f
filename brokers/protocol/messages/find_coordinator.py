"""FindCoordinator: name the coordinator of a group, transactional id or share partition.
API 10, versions 0-6, flexible from 3.

Versions:
  1  key_type, so that transactional ids have coordinators too (KIP-98)
  2  a throttled answer is sent at once, the connection is muted afterwards (KIP-219)
  3  flexible (KIP-482)
  4  several keys at once (KIP-699)
  5  the client knows TRANSACTION_ABORTABLE (KIP-890)
  6  share partitions (KIP-932)
"""

from brokers.protocol.schema import STRING, Message, array, int8, int16, int32, string


class FindCoordinatorRequest(Message, key=10, versions=(0, 6), flexible=3):
    key: str = string(until=3)
    key_type: int = int8(
        "0 group, 1 transactional id, 2 share partition, written group:topic id:partition.", since=1
    )
    coordinator_keys: list[str] = array(STRING, since=4)


class Coordinator(Message):
    key: str = string(since=4)
    node_id: int = int32("Broker id; -1 on error.", since=4)
    host: str = string(since=4)
    port: int = int32("-1 on error.", since=4)
    error_code: int = int16(since=4)
    error_message: str | None = string(
        "For people; null on success or where the code says it all.",
        since=4,
        nullable=4,
        ignorable=True,
    )


class FindCoordinatorResponse(Message, key=10, versions=(0, 6), flexible=3):
    throttle_time_ms: int = int32(
        "How long a quota holds the client back after this answer, in ms; 0 where none does.",
        since=1,
        ignorable=True,
    )
    error_code: int = int16(until=3)
    error_message: str | None = string(
        "For people; null on success or where the code says it all.",
        since=1,
        until=3,
        nullable=1,
        ignorable=True,
    )
    node_id: int = int32("Broker id; -1 on error.", until=3)
    host: str = string(until=3)
    port: int = int32("-1 on error.", until=3)
    coordinators: list[Coordinator] = array(Coordinator, since=4)
