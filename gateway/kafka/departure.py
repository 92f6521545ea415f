"""Lets a member leave its group in the name of a client that has ended.

The client library has no call for a member of the consumer protocol that is not its own.
"""

import struct
from dataclasses import replace
from typing import Final

from gateway.kafka.connection import Connection
from gateway.kafka.wire import (
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    Reader,
    ask,
    compact,
    refused,
    text,
)

# The kind of coordinator: of a group.
OF_GROUP: Final = 0
# The epoch by which a member leaves.
LEAVING: Final = -1
# Null, in the encoding of flexible versions, and no tagged fields.
NULL: Final = b"\0"
NO_TAGS: Final = b"\0"
# The member has left, or its group is gone.
GONE: Final = frozenset({"UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND", "FENCED_MEMBER_EPOCH"})


def leave(connection: Connection, group: str, member: str) -> None:
    """Leave a group as one of its members; raise KafkaFailure if the coordinator refuses."""
    value = f"group {group}"
    there = replace(connection, bootstrap=_coordinator(connection, group, value))
    body = b"".join(
        (
            NO_TAGS,
            compact(group),
            compact(member),
            struct.pack(">i", LEAVING),
            # Instance, rack.
            NULL + NULL,
            struct.pack(">i", -1),
            # Topics, assignor, partitions.
            NULL + NULL + NULL,
            NO_TAGS,
        )
    )
    answer = ask(there, CONSUMER_GROUP_HEARTBEAT, 0, body, value)
    answer.skip_tags()
    answer.number("i")
    if code := answer.number("h"):
        failed = refused(code, answer.compact_text(), value)
        if failed.name not in GONE:
            raise failed


def _coordinator(connection: Connection, group: str, value: str) -> str:
    answer: Reader = ask(
        connection, FIND_COORDINATOR, 1, text(group) + struct.pack(">b", OF_GROUP), value
    )
    answer.number("i")
    code, words = answer.number("h"), answer.text()
    if code:
        raise refused(code, words, value)
    answer.number("i")
    host, port = answer.text(), answer.number("i")
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
