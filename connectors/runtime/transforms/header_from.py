"""HeaderFrom: copies or moves fields into headers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from connectors.runtime.transforms.field_paths import unknown
from connectors.runtime.transforms.sides import (
    FILLS_KEY,
    Apply,
    Side,
    copied,
    fills_of,
    key_of,
    map_of,
    struct_of,
)
from connectors.runtime.values.structs import Derived, with_fields
from connectors.sdk.checks import one_of
from connectors.sdk.configs import Definition, Importance, Kind
from connectors.sdk.errors import ConfigError
from connectors.sdk.records import Header, Record
from connectors.sdk.schemas import Schema, Struct


def _check_list(value: Any) -> str | None:
    return None if value else "Empty list"


KEYS: Final = Definition(
    (
        key_of(
            "fields",
            Kind.LIST,
            "The fields whose values become headers.",
            importance=Importance.HIGH,
            check=_check_list,
        ),
        key_of(
            "headers",
            Kind.LIST,
            "The names of the headers, in the order of the fields.",
            importance=Importance.HIGH,
            check=_check_list,
        ),
        key_of(
            "operation",
            Kind.STRING,
            "move takes the fields out of the record, copy leaves them there.",
            importance=Importance.HIGH,
            check=one_of("move", "copy"),
        ),
        FILLS_KEY,
    )
)


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    fields: list[str] = parsed["fields"]
    names: list[str] = parsed["headers"]
    if len(fields) != len(names):
        raise ConfigError(
            "'fields' config must have the same number of elements as 'headers' config."
        )
    pairs = list(zip(fields, names, strict=True))
    moves: bool = parsed["operation"] == "move"
    fills = fills_of(parsed)
    purpose = f"header {parsed['operation']}"
    derived = Derived(lambda schema: _without(schema, fields))

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if schema is None:
            plain = map_of(value, purpose)
            added = [Header(name=name, value=plain.get(field)) for field, name in pairs]
            left = {name: one for name, one in plain.items() if not moves or name not in fields}
            written = side.write(record, None, left)
        else:
            struct = struct_of(value, purpose)
            added = _headers(struct, schema, pairs, fills=fills)
            new_schema = derived(schema) if moves else schema
            written = record
            if moves:
                values = copied(struct, new_schema.fields, fills=fills)
                written = side.write(record, new_schema, Struct(new_schema, values))
        return replace(written, headers=(*record.headers, *added))

    return apply


def _headers(
    struct: Struct, schema: Schema, pairs: list[tuple[str, str]], *, fills: bool
) -> list[Header]:
    added = []
    for field_name, name in pairs:
        field = schema.field(field_name)
        if field is None:
            raise unknown(field_name)
        value = copied(struct, (field,), fills=fills)[field_name]
        added.append(Header(name=name, value=value, schema=field.schema))
    return added


def _without(schema: Schema, names: list[str]) -> Schema:
    return with_fields(schema, (field for field in schema.fields if field.name not in names))
