"""Defines schemas like those of Kafka Connect, and structs, whose values have one.

Immutable, so that one schema serves every record of a stream. A value without a schema is a JSON
value, or bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

# Far deeper than usual; every walk over a schema or value counts down from it.
MAX_DEPTH: Final = 64
EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


class Type(Enum):
    """The values of the members are the names of types in JSON with a schema."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


# The names of logical types, which define the meaning of values of another type.
DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"  # bytes, unscaled; parameter "scale"
DATE: Final = "org.apache.kafka.connect.data.Date"  # int32, days
TIME: Final = "org.apache.kafka.connect.data.Time"  # int32, milliseconds of a day
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"  # int64, milliseconds since 1970


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a struct; fields are in the order of the schema."""

    name: str
    schema: "Schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The type and the meaning of a value.

    Python's values by type: int, float, bool, str, bytes, list, dict, `Struct`. By logical name:
    `decimal.Decimal`, `datetime.date`, `datetime.time`, and an aware `datetime.datetime`.
    """

    type: Type
    is_optional: bool = False
    # The default; `has_default` distinguishes a default of None from no default.
    default: Any = None
    has_default: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    fields: tuple[Field, ...] = ()  # of a struct
    key_schema: "Schema | None" = None  # of a map
    value_schema: "Schema | None" = None  # of a map or an array

    def field(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)

    def __hash__(self) -> int:
        # Mappings are not hashable, and schemas that differ in parameters alone are rare.
        return hash((self.type, self.name, self.version, self.is_optional, self.fields))


@dataclass(frozen=True, slots=True)
class Struct:
    """Values of the fields of a schema, by name; None for a missing field."""

    schema: Schema
    values: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)


STRING: Final = Schema(type=Type.STRING)
OPTIONAL_STRING: Final = Schema(type=Type.STRING, is_optional=True)
BYTES: Final = Schema(type=Type.BYTES)
OPTIONAL_BYTES: Final = Schema(type=Type.BYTES, is_optional=True)
INT32: Final = Schema(type=Type.INT32)
INT64: Final = Schema(type=Type.INT64)
FLOAT64: Final = Schema(type=Type.FLOAT64)
BOOLEAN: Final = Schema(type=Type.BOOLEAN)
