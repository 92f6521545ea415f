"""MaskField: replaces values by zero, false or empty values, or by a fixed value."""

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from connectors.runtime.transforms.sides import (
    FILLS_KEY,
    Apply,
    Side,
    copied,
    fills_of,
    key_of,
    map_of,
    names,
    struct_of,
)
from connectors.runtime.values.numbers import float32, parse_decimal, to_whole, unscaled
from connectors.runtime.values.structs import BITS, words
from connectors.runtime.values.temporal import EPOCH, EPOCH_DATE
from connectors.sdk.checks import non_empty
from connectors.sdk.configs import Definition, Importance, Kind
from connectors.sdk.errors import DataError
from connectors.sdk.records import Record
from connectors.sdk.schemas import Schema, Struct, Type

KEYS: Final = Definition(
    (
        key_of(
            "fields",
            Kind.LIST,
            "The fields to mask.",
            importance=Importance.HIGH,
            check=names("fields"),
        ),
        key_of(
            "replacement",
            Kind.STRING,
            "The replacement, for numbers and texts only. Default: 0, false, an empty text, an "
            "empty list or map.",
            importance=Importance.LOW,
            default=None,
            check=non_empty,
        ),
        FILLS_KEY,
    )
)
_PURPOSE: Final = "mask fields"


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    fields = frozenset(parsed["fields"])
    replacement: str | None = parsed["replacement"]
    fills = fills_of(parsed)

    def masked(value: Any, schema: Schema | None) -> Any:
        if value is None:
            return None
        return _nothing(value) if replacement is None else _replaced(value, schema, replacement)

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if schema is None:
            plain = dict(map_of(value, _PURPOSE))
            plain.update((name, masked(plain.get(name), None)) for name in fields)
            return side.write(record, None, plain)
        struct = struct_of(value, _PURPOSE)
        values = copied(struct, struct.schema.fields, fills=fills)
        for field in struct.schema.fields:
            if field.name in fields:
                values[field.name] = masked(values[field.name], field.schema)
        return side.write(record, schema, Struct(struct.schema, values))

    return apply


def _nothing(value: Any) -> Any:
    if isinstance(value, Decimal):
        # Java's zero has the scale 0, which a schema with another scale refuses.
        return Decimal((0, (0,), -unscaled(value)[1]))
    for kind, nothing in _NOTHING:
        if isinstance(value, kind):
            # Copy it: records must not share a list that can change.
            return type(nothing)() if isinstance(nothing, (list, dict)) else nothing
    raise DataError(f"Cannot mask value of type: {type(value).__name__}")


# In Python, a boolean is an int, and a timestamp is a date.
_NOTHING: Final[tuple[tuple[type | tuple[type, ...], Any], ...]] = (
    (bool, False),
    (int, 0),
    (float, 0.0),
    (str, ""),
    (datetime, EPOCH),
    (date, EPOCH_DATE),
    (time, time()),
    ((list, tuple), []),
    (dict, {}),
)


def _replaced(value: Any, schema: Schema | None, replacement: str) -> Any:
    if isinstance(value, str):
        return replacement
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        found = type(value).__name__ if schema is None else words(schema)
        raise DataError(f"Cannot mask value of type {found} with custom replacement.")
    try:
        number = parse_decimal(replacement)
    except DataError as error:
        raise DataError(f"Unable to convert {replacement} to a number") from error
    if isinstance(value, Decimal):
        return number
    if isinstance(value, int):
        bits = BITS[schema.type] if schema else BITS[Type.INT64]
        # Narrow to 64 bits first, as Java does.
        return to_whole(to_whole(number, 64), bits)
    is_short = schema is not None and schema.type is Type.FLOAT32
    return float32(float(number)) if is_short else float(number)
