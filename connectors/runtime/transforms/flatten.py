"""Flatten: replaces nested fields by one level of fields, named by their path: `outer.inner`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from connectors.runtime.transforms.sides import Apply, Side, key_of, map_of, struct_of
from connectors.runtime.values.structs import Derived, with_fields, words
from connectors.sdk.configs import Definition, Kind
from connectors.sdk.errors import DataError
from connectors.sdk.records import Record
from connectors.sdk.schemas import MAX_DEPTH, Field, Schema, Struct, Type

KEYS: Final = Definition(
    (
        key_of(
            "delimiter",
            Kind.STRING,
            "The text between the names of outer and inner fields.",
            default=".",
        ),
    )
)
_PURPOSE: Final = "flattening"
_PLAIN: Final = (bool, int, float, str, bytes, bytearray, memoryview, list, tuple)


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    delimiter: str = parsed["delimiter"]
    derived = Derived(lambda schema: _flat_schema(schema, delimiter))

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if value is None:
            return record
        if schema is None:
            flat: dict[str, Any] = {}
            _flatten_map(map_of(value, _PURPOSE), "", delimiter, flat, MAX_DEPTH)
            return side.write(record, None, flat)
        struct = struct_of(value, _PURPOSE)
        new_schema = derived(struct.schema)
        values: dict[str, Any] = {}
        _flatten_struct(struct, "", delimiter, values)
        return side.write(record, new_schema, Struct(new_schema, values))

    return apply


def _flatten_map(
    value: dict[str, Any], prefix: str, delimiter: str, flat: dict[str, Any], depth: int
) -> None:
    if depth == 0:
        raise DataError(f"a map is nested deeper than {MAX_DEPTH} levels")
    for name, one in value.items():
        full = f"{prefix}{delimiter}{name}" if prefix else name
        if isinstance(one, dict):
            _flatten_map(one, full, delimiter, flat, depth - 1)
        elif one is None or isinstance(one, _PLAIN):
            flat[full] = one
        else:
            raise DataError(
                f"Flatten transformation does not support {type(one).__name__} for record without "
                f"schemas (for field {full})."
            )


def _flatten_struct(struct: Struct, prefix: str, delimiter: str, values: dict[str, Any]) -> None:
    for field in struct.schema.fields:
        full = f"{prefix}{delimiter}{field.name}" if prefix else field.name
        value = struct.values.get(field.name)
        if value is None:
            value = field.schema.default
        if field.schema.type is not Type.STRUCT:
            values[full] = value
        elif value is not None:
            _flatten_struct(value, full, delimiter, values)


def _flat_schema(schema: Schema, delimiter: str) -> Schema:
    fields = _flat_fields(schema, "", delimiter, schema.is_optional, schema.default, MAX_DEPTH)
    return with_fields(schema, fields)


def _flat_fields(
    schema: Schema,
    prefix: str,
    delimiter: str,
    is_optional: bool,
    default: Struct | None,
    depth: int,
) -> Iterator[Field]:
    """Yield the inner fields; they inherit optionality and defaults of the structs around them."""
    if depth == 0:
        raise DataError(f"the schema is nested deeper than {MAX_DEPTH} levels")
    for field in schema.fields:
        inner = field.schema
        full = f"{prefix}{delimiter}{field.name}" if prefix else field.name
        can_miss = is_optional or inner.is_optional
        own = inner.default
        if own is None and default is not None:
            own = default.values.get(field.name)
        if inner.type is Type.MAP:
            raise DataError(
                f"Flatten transformation does not support {words(inner)} for record with schemas "
                f"(for field {full})."
            )
        if inner.type is Type.STRUCT:
            yield from _flat_fields(inner, full, delimiter, can_miss, own, depth - 1)
        else:
            has_default = own is not None
            made = replace(inner, is_optional=can_miss, default=own, has_default=has_default)
            yield Field(name=full, schema=made)
