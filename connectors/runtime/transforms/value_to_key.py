"""ValueToKey: builds the key from fields of the value."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from connectors.runtime.transforms.sides import (
    FILLS_KEY,
    Apply,
    copied,
    fills_of,
    key_of,
    map_of,
    names,
    struct_of,
)
from connectors.runtime.values.structs import Derived
from connectors.sdk.configs import Definition, Importance, Kind
from connectors.sdk.errors import DataError
from connectors.sdk.records import Record
from connectors.sdk.schemas import Field, Schema, Struct, Type

KEYS: Final = Definition(
    (
        key_of(
            "fields",
            Kind.LIST,
            "The fields of the value that become the key.",
            importance=Importance.HIGH,
            check=names("fields"),
        ),
        FILLS_KEY,
    )
)
_PURPOSE: Final = "copying fields from value to key"


def build(parsed: Mapping[str, Any]) -> Apply:
    fields: list[str] = parsed["fields"]
    fills = fills_of(parsed)

    def chosen(schema: Schema) -> Schema:
        return Schema(type=Type.STRUCT, fields=tuple(_field(schema, name) for name in fields))

    derived = Derived(chosen)

    def apply(record: Record) -> Record:
        if record.value_schema is None:
            plain = map_of(record.value, _PURPOSE)
            return replace(record, key_schema=None, key={name: plain.get(name) for name in fields})
        struct = struct_of(record.value, _PURPOSE)
        schema = derived(struct.schema)
        key = Struct(schema, copied(struct, schema.fields, fills=fills))
        return replace(record, key_schema=schema, key=key)

    return apply


def _field(schema: Schema, name: str) -> Field:
    field = schema.field(name)
    if field is None:
        raise DataError(f"Field does not exist: {name}")
    return field
