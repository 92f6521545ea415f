"""Reads and changes configs of all brokers at once, which Kafka stores under an empty broker name.

The client library accepts no empty name, so the requests are encoded here.
"""

import struct
from collections.abc import Sequence
from typing import Final

from gateway.kafka.connection import Connection
from gateway.kafka.values import Config, ConfigEdit, ConfigSynonym, EditKind
from gateway.kafka.wire import (
    DESCRIBE_CONFIGS,
    INCREMENTAL_ALTER_CONFIGS,
    Reader,
    ask,
    refused,
    text,
)

BROKER: Final = 4
ALL_BROKERS: Final = ""
NO_KEYS: Final = -1  # of a request: all keys
OPERATIONS: Final = {
    EditKind.SET: 0,
    EditKind.DELETE: 1,
    EditKind.APPEND: 2,
    EditKind.SUBTRACT: 3,
}
VALUE: Final = "the configs of all brokers"
# Kafka's word for where they come from.
SOURCE: Final = "DYNAMIC_DEFAULT_BROKER_CONFIG"


def described(connection: Connection) -> list[Config]:
    """Return what is set for all brokers, by key."""
    resource = struct.pack(">b", BROKER) + text(ALL_BROKERS) + struct.pack(">i", NO_KEYS)
    body = struct.pack(">i", 1) + resource + struct.pack(">?", False)
    answer = ask(connection, DESCRIBE_CONFIGS, 1, body, VALUE)
    answer.number("i")
    found = []
    for _ in range(answer.count()):
        code, words = answer.number("h"), answer.text()
        answer.number("b")
        answer.text()
        if code:
            raise refused(code, words, VALUE)
        found += [_described(answer) for _ in range(answer.count())]
    return sorted(found, key=lambda config: config.key)


def _described(answer: Reader) -> Config:
    key, value = answer.text(), answer.nullable_text()
    is_read_only = bool(answer.number("b"))
    answer.number("b")  # its source, which is known
    is_sensitive = bool(answer.number("b"))
    for _ in range(answer.count()):
        answer.text()
        answer.text()
        answer.number("b")
    return Config(
        key=key,
        value=value,
        source=SOURCE,
        is_default=False,
        is_read_only=is_read_only,
        is_sensitive=is_sensitive,
        synonyms=(ConfigSynonym(key=key, value=value, source=SOURCE),),
    )


def alter(connection: Connection, edits: Sequence[ConfigEdit], *, is_dry_run: bool) -> None:
    """Change some configs and keep the others: all of them, or none."""
    entries = b"".join(
        text(edit.key)
        + struct.pack(">b", OPERATIONS[edit.kind])
        + text(None if edit.kind is EditKind.DELETE else edit.value)
        for edit in edits
    )
    resource = struct.pack(">b", BROKER) + text(ALL_BROKERS) + struct.pack(">i", len(edits))
    body = struct.pack(">i", 1) + resource + entries + struct.pack(">?", is_dry_run)
    answer = ask(connection, INCREMENTAL_ALTER_CONFIGS, 0, body, VALUE)
    answer.number("i")
    for _ in range(answer.number("i")):
        code, words = answer.number("h"), answer.text()
        answer.number("b")
        answer.text()
        if code:
            raise refused(code, words, VALUE)
