"""SetSchemaMetadata: sets the name or version of the schema."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from connectors.runtime.transforms.sides import FILLS_KEY, Apply, Side, copied, fills_of, key_of
from connectors.runtime.values.structs import Derived
from connectors.sdk.configs import Definition, Importance, Kind
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Record
from connectors.sdk.schemas import Schema, Struct

KEYS: Final = Definition(
    (
        key_of(
            "schema.name",
            Kind.STRING,
            "The new name of the schema.",
            importance=Importance.HIGH,
            default=None,
        ),
        key_of(
            "schema.version",
            Kind.INT,
            "The new version of the schema.",
            importance=Importance.HIGH,
            default=None,
        ),
        FILLS_KEY,
    )
)


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    name, version = parsed["schema.name"], parsed["schema.version"]
    if name is None and version is None:
        raise ConfigError("Neither schema name nor version configured")
    fills = fills_of(parsed)

    def renamed(schema: Schema) -> Schema:
        return replace(
            schema,
            name=schema.name if name is None else name,
            version=schema.version if version is None else version,
        )

    derived = Derived(renamed)

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if schema is None:
            if value is None:
                return record
            raise DataError("Schema required for [updating schema metadata]")
        new_schema = derived(schema)
        if isinstance(value, Struct):
            value = Struct(new_schema, copied(value, new_schema.fields, fills=fills))
        return side.write(record, new_schema, value)

    return apply
