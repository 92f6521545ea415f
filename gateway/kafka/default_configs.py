"""Changes configs of all brokers at once, which Kafka stores under an empty broker name.

The client library accepts no empty name, so the request is encoded here.
"""

import struct
from collections.abc import Sequence
from typing import Final

from gateway.kafka.connection import Connection
from gateway.kafka.values import ConfigEdit, EditKind
from gateway.kafka.wire import INCREMENTAL_ALTER_CONFIGS, ask, refused, text

BROKER: Final = 4
ALL_BROKERS: Final = ""
OPERATIONS: Final = {
    EditKind.SET: 0,
    EditKind.DELETE: 1,
    EditKind.APPEND: 2,
    EditKind.SUBTRACT: 3,
}
VALUE: Final = "the configs of all brokers"


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
