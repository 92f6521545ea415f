"""Lets a member leave its group in the name of a client that has ended.

librdkafka has no call for a member of the consumer protocol that is not its own.
"""

from dataclasses import replace
from typing import Final

from brokers.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from brokers.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from gateway.kafka.connection import Connection, address_of
from gateway.kafka.errors import broker_failure
from gateway.kafka.requests import ask

# The kind of coordinator: of a group.
OF_GROUP: Final = 0
# The epoch by which a member leaves.
LEAVING: Final = -1
# The member has left, or its group is gone.
GONE: Final = frozenset({"UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND", "FENCED_MEMBER_EPOCH"})


def leave(connection: Connection, group: str, member: str) -> None:
    """Leave a group as one of its members; raise KafkaFailure if the coordinator refuses."""
    value = f"group {group}"
    there = replace(connection, bootstrap=_coordinator(connection, group, value))
    request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=LEAVING)
    answer = ask(there, request, ConsumerGroupHeartbeatResponse, value, version=0)
    if answer.error_code:
        failed = broker_failure(answer.error_code, value, answer.error_message)
        if failed.name not in GONE:
            raise failed


def _coordinator(connection: Connection, group: str, value: str) -> str:
    request = FindCoordinatorRequest(key=group, key_type=OF_GROUP)
    answer = ask(connection, request, FindCoordinatorResponse, value, version=1)
    if answer.error_code:
        raise broker_failure(answer.error_code, value, answer.error_message)
    return address_of(answer.host, answer.port)
