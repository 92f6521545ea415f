"""What a type of columns becomes: its schema, its values, and what stands in for them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from connectors.sdk.schemas import Schema, Struct, Type


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How cells of one column become values."""

    # Required; `of_column` makes it optional.
    schema: Schema
    # Raises ValueError for a text that is none of this type.
    value: Callable[[str], Any]
    # What a column that is never null holds where the log has no value for it: in what an update
    # or delete tells of the row before, without its key.
    fallback: Any
    # What tells that a large value was left alone; None where there is no such word.
    unavailable: Any = None

    def optional(self) -> "Kind":
        schema = replace(self.schema, is_optional=True)
        told = replace(self, schema=schema, fallback=None)
        if schema.type is not Type.STRUCT:
            return told
        # Structs carry the schema of their column, which a converter compares.
        value, marker = self.value, self.unavailable
        return replace(
            told,
            value=lambda text: Struct(schema, value(text).values),
            unavailable=None if marker is None else Struct(schema, marker.values),
        )


# The fallback of each type of schema, where no kind has its own.
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
    """Return a kind without parameters; one that has a name has version 1, as Debezium's have."""
    schema = Schema(type=type_, name=name, version=None if name is None else 1)
    return Kind(schema=schema, value=value, fallback=ZEROS[type_])
