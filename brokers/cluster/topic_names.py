"""Validates the names of topics, and detects two names that collide."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from brokers.protocol.errors import ErrorCode, KafkaError

# With the partition's number appended, a name must fit into the name of a folder.
MAX_NAME_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")
_FOLDERS: Final = frozenset({".", ".."})
# Characters of a too long name that are repeated to its sender.
_SHOWN: Final = 100

# The contents of brokers' internal topics; clients should not use them for data.
KEPT_INSIDE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "__consumer_offsets": "the committed offsets of every group",
        "__transaction_state": "the state of every transaction",
    }
)
INTERNAL_TOPICS: Final = frozenset(KEPT_INSIDE)
# Kafka keeps its own metadata under this name and refuses to create it.
PROHIBITED_TOPIC: Final = "__cluster_metadata"


def check_topic_name(name: str) -> None:
    """Refuse an invalid name of a topic."""
    wrong = _wrong(name)
    if wrong is not None:
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"the topic name {name[:_SHOWN]!r} {wrong}"
        )


def is_topic_name(name: str) -> bool:
    """Tell whether a topic could have this name; another one needs no request to the store."""
    return _wrong(name) is None


def collision_key(name: str) -> str:
    """Return the key by which two names collide: metrics write a dot as an underscore."""
    return name.replace(".", "_")


def _wrong(name: str) -> str | None:
    if not name:
        return "is empty"
    if len(name) > MAX_NAME_LENGTH:
        return f"has {len(name)} characters, {MAX_NAME_LENGTH} are allowed"
    if name in _FOLDERS:
        return "is the name of a folder"
    if not _LEGAL.fullmatch(name):
        return "has characters other than letters, digits, '.', '_' and '-'"
    return None
