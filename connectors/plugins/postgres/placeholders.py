"""Defines the placeholder of large values that an update left unchanged, and recognizes it.

PostgreSQL's log does not repeat such a value. A capture writes the placeholder in the form of the
column's type; a sink must not write it, or it would replace the value that the target has.
"""

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from connectors.sdk.schemas import Struct

# Debezium's name for the key, and its default.
PLACEHOLDER: Final = "unavailable.value.placeholder"
DEFAULT: Final = "__debezium_unavailable_value"
# Types without a form of the placeholder.
ATOMS: Final = frozenset({type(None), bool, int, float, Decimal, datetime, date, time})


class Placeholder:
    """Recognizes one placeholder in every form that a capture, or Debezium, writes."""

    def __init__(self, text: str) -> None:
        self._octets = text.encode()
        self._texts = frozenset(
            {
                text,
                # Bytes, by `binary.handling.mode` or in JSON without a schema.
                base64.b64encode(self._octets).decode(),
                base64.urlsafe_b64encode(self._octets).decode(),
                # A map of texts, written as JSON.
                json.dumps({text: text}, ensure_ascii=False, separators=(",", ":")),
                uuid_of(text),
            }
        )
        # Most values are told apart by their length, without a hash of a large text.
        self._lengths = frozenset(map(len, self._texts))

    def among(self, fields: Mapping[str, tuple[Any, Any]]) -> list[str]:
        """Return the names of fields with the placeholder; called for each row."""
        lengths, texts = self._lengths, self._texts
        return [
            name
            for name, (_, value) in fields.items()
            if (
                len(value) in lengths and value in texts
                if type(value) is str
                else type(value) not in ATOMS and self.matches(value)
            )
        ]

    def matches(self, value: Any) -> bool:
        is_array_of_one = isinstance(value, (list, tuple)) and len(value) == 1
        return self._is_one(value[0] if is_array_of_one else value)

    def _is_one(self, value: Any) -> bool:
        if isinstance(value, (str, bytes)):
            return self._is_scalar(value)
        if isinstance(value, (list, tuple)):
            return self._is_spelt_by(value)
        if isinstance(value, Struct):
            value = value.values
        return isinstance(value, Mapping) and self._is_map(value)

    def _is_scalar(self, value: Any) -> bool:
        if isinstance(value, str):
            return len(value) in self._lengths and value in self._texts
        return isinstance(value, bytes) and value == self._octets

    def _is_map(self, value: Mapping[str, Any]) -> bool:
        """Return whether a map holds it: of texts, a shape, or a sparse vector."""
        if set(value) == {"wkb", "srid"}:
            return self._is_scalar(value["wkb"])
        if set(value) == {"dimensions", "vector"}:
            return self._is_spelt_by(_seconds(value["vector"]))
        return len(value) == 1 and all(map(self._is_scalar, (*value, *value.values())))

    def _is_spelt_by(self, numbers: Sequence[Any]) -> bool:
        """Return whether numbers are the bytes of the placeholder, one by one."""
        return len(numbers) == len(self._octets) and all(
            _number(one) == octet for one, octet in zip(numbers, self._octets, strict=True)
        )


def uuid_of(text: str) -> str:
    """Return the version 3 UUID that Java derives from a text, without a namespace."""
    digest = hashlib.md5(text.encode(), usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=3))


def _seconds(vector: Any) -> list[Any]:
    """Return the numbers of a map; JSON has no maps with numbers as keys, and holds pairs."""
    if isinstance(vector, Mapping):
        return list(vector.values())
    pairs = vector if isinstance(vector, list) else []
    return [one[-1] if isinstance(one, list) and one else None for one in pairs]


def _number(value: Any) -> Any:
    """Return a number; one of variable scale is a struct of a scale and bytes."""
    told = value.values if isinstance(value, Struct) else value
    if not isinstance(told, Mapping):
        return told
    if set(told) != {"scale", "value"} or told["scale"] != 0:
        return None
    octets = told["value"]
    try:
        octets = base64.b64decode(octets) if isinstance(octets, str) else octets
    except ValueError:
        return None
    return int.from_bytes(octets, "big", signed=True) if isinstance(octets, bytes) else None
