"""Kinds of column types: their schemas, value conversions and placeholders."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from connectors.sdk.schemas import Schema, Struct, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How to convert the cells of one column into values."""

    # Required; `of_column` makes it optional.
    schema: Schema
    # Raises ValueError for a text that is not of this type.
    value: Callable[[str], Any]
    # The value of a NOT NULL column that the log lacks: in the old row of an update or delete,
    # which has only the key.
    fallback: Any
    # The placeholder for an unchanged large value; None if the kind has none.
    unavailable: Any = None

    def optional(self) -> "Kind":
        schema = replace(self.schema, is_optional=True)
        told = replace(self, schema=schema, fallback=None)
        if schema.type is not Type.STRUCT:
            return told
        # Structs carry the schema of their column, since a converter compares it.
        value, marker = self.value, self.unavailable
        return replace(
            told,
            value=lambda text: Struct(schema, value(text).values),
            unavailable=None if marker is None else Struct(schema, marker.values),
        )


# The fallback for each schema type, unless the kind has its own.
ZEROS: Final = {
    Type.INT8: 0,
    Type.INT16: 0,
    Type.INT32: 0,
    Type.INT64: 0,
    Type.FLOAT32: 0.0,
    Type.FLOAT64: 0.0,
    Type.BOOLEAN: False,
    Type.STRING: "",
    Type.BYTES: b"",
}


def plain(type_: Type, value: Callable[[str], Any], *, name: str | None = None) -> Kind:
    """Return a kind without parameters; a named schema has version 1, as in Debezium."""
    schema = Schema(type=type_, name=name, version=None if name is None else 1)
    return Kind(schema=schema, value=value, fallback=ZEROS[type_])
