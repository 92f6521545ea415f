"""Recognizes the event of a TRUNCATE, as Debezium and `samsa.postgres.capture` write it. Pure.

It is an envelope without rows; the transform ExtractNewRecordState passes it on if its
`truncate.handling.mode` is `keep`.
"""

from collections.abc import Mapping
from typing import Any, Final

from connectors.sdk.schemas import Schema, Struct

ENVELOPE: Final = ".Envelope"
TRUNCATE: Final = "t"
# The fields of an envelope, by which one without a schema is recognized.
FIELDS: Final = frozenset({"before", "after", "source", "op"})


def is_truncation(schema: Schema | None, value: Any) -> bool:
    """Return whether the value of a record says that all rows of its table were removed."""
    if isinstance(value, Struct):
        is_envelope = schema is not None and (schema.name or "").endswith(ENVELOPE)
        return is_envelope and value.values.get("op") == TRUNCATE
    if not isinstance(value, Mapping) or value.get("op") != TRUNCATE:
        return False
    has_rows = value.get("before") is not None or value.get("after") is not None
    return value.keys() >= FIELDS and not has_rows and isinstance(value["source"], Mapping)
