"""HoistField: wraps the whole value into a struct or map with one field."""

from collections.abc import Mapping
from typing import Any, Final

from connectors.runtime.transforms.sides import Apply, Side, key_of
from connectors.runtime.values.structs import Derived, check
from connectors.sdk.configs import Definition, Kind
from connectors.sdk.records import Record
from connectors.sdk.schemas import Field, Schema, Struct, Type

KEYS: Final = Definition(
    (key_of("field", Kind.STRING, "The name of the one field that will hold the value."),)
)


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    name: str = parsed["field"]

    def wrapped(schema: Schema) -> Schema:
        return Schema(type=Type.STRUCT, fields=(Field(name=name, schema=schema),))

    derived = Derived(wrapped)

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if schema is None:
            return side.write(record, None, {name: value})
        check(schema, value, what=f"field {name}")
        new_schema = derived(schema)
        return side.write(record, new_schema, Struct(new_schema, {name: value}))

    return apply
