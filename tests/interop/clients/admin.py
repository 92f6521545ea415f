"""What the admin table asks of a client, in words that are the same for all of them.

A door is a class with a method for each call that its client has; clients/admin_table.py says which
ones a client lacks, and why. Values come back plain. A refusal is `Refused` with Kafka's error, by
its number, because clients name them differently.
"""

from collections.abc import Callable
from typing import Protocol

from brokers.protocol.errors import ErrorCode

SECONDS = 20


class Refused(Exception):
    """The broker answered with an error."""

    def __init__(self, code: int, message: str = "") -> None:
        self.code = ErrorCode(code)  # type: ignore[call-arg]
        super().__init__(f"{self.code.name}: {message}")


class Door(Protocol):
    """One open client; `close` lets go of it."""

    def close(self) -> None: ...


# Names of the calls; the arguments are those of ConfluentDoor, or else of JavaDoor.
CALLS = (
    "create_topic",
    "delete_topic",
    "has_topic",
    "describe_topic",
    "create_partitions",
    "topic_configs",
    "broker_config",
    "set_config",
    "append_config",
    "delete_config",
    "replace_configs",
    "delete_records",
    "cluster",
    "log_dir_partitions",
    "list_offset",
    "producers",
    "acls",
    "create_acl",
    "delete_acls",
    "scram_users",
    "scram_user",
    "quotas",
    "reassignments",
    "elect",
)

# Partition, leader, replicas, in-sync replicas.
Described = list[tuple[int, int, list[int], list[int]]]

Opened = Callable[[str], Door]
