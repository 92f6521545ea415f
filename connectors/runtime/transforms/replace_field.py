"""ReplaceField: drops and renames fields."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from connectors.runtime.transforms.sides import (
    FILLS_KEY,
    Apply,
    Side,
    fills_of,
    key_of,
    map_of,
    names,
    struct_of,
)
from connectors.runtime.values.structs import Derived, field_value, with_fields
from connectors.sdk.checks import Message, show
from connectors.sdk.configs import Definition, Kind
from connectors.sdk.errors import ConfigError
from connectors.sdk.records import Record
from connectors.sdk.schemas import Field, Schema, Struct

_PURPOSE: Final = "field replacement"


def _parse(told: list[str]) -> dict[str, str]:
    renames = {}
    for one in told:
        old, colon, new = one.partition(":")
        if not colon or not new or ":" in new:
            raise ConfigError(
                f"Invalid value {show(told)} for configuration renames: "
                f"Invalid rename mapping: {one}"
            )
        renames[old] = new
    return renames


def _check_renames(value: Any) -> str | None:
    try:
        _parse(value or [])
    except ConfigError as error:
        return Message(str(error))
    return None


KEYS: Final = Definition(
    (
        key_of(
            "exclude",
            Kind.LIST,
            "Fields to leave out, even where include names them.",
            default=[],
            check=names("exclude", may_be_missing=True),
        ),
        key_of(
            "include",
            Kind.LIST,
            "Fields to keep: all others are left out. Empty for all.",
            default=[],
            check=names("include", may_be_missing=True),
        ),
        key_of(
            "renames",
            Kind.LIST,
            "Old and new names of fields, as old1:new1,old2:new2.",
            default=[],
            check=_check_renames,
        ),
        FILLS_KEY,
    )
)


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    exclude, include = frozenset(parsed["exclude"]), frozenset(parsed["include"])
    renames = _parse(parsed["renames"])
    fills = fills_of(parsed)

    def keeps(name: str) -> bool:
        return name not in exclude and (not include or name in include)

    def selected(schema: Schema) -> tuple[Schema, list[tuple[str, Field]]]:
        """Return the new schema, and each new name with its original field."""
        kept = [
            (renames.get(field.name, field.name), field)
            for field in schema.fields
            if keeps(field.name)
        ]
        fields = (replace(field, name=name) for name, field in kept)
        return with_fields(schema, fields), kept

    derived = Derived(selected)

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if value is None:
            return record
        if schema is None:
            plain = map_of(value, _PURPOSE)
            left = {renames.get(name, name): one for name, one in plain.items() if keeps(name)}
            return side.write(record, None, left)
        struct = struct_of(value, _PURPOSE)
        new_schema, kept = derived(struct.schema)
        values = {name: field_value(struct, field, fills=fills) for name, field in kept}
        return side.write(record, new_schema, Struct(new_schema, values))

    return apply
