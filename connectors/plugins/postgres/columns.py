"""Maps schemas to column types, and values to the input of COPY."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Final

from connectors.sdk.errors import DataError
from connectors.sdk.plain import to_json
from connectors.sdk.schemas import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Struct, Type

COLUMN_TYPES: Final[Mapping[Type, str]] = {
    Type.INT8: "smallint",
    Type.INT16: "smallint",
    Type.INT32: "integer",
    Type.INT64: "bigint",
    Type.FLOAT32: "real",
    Type.FLOAT64: "double precision",
    Type.BOOLEAN: "boolean",
    Type.STRING: "text",
    Type.BYTES: "bytea",
    Type.ARRAY: "jsonb",
    Type.MAP: "jsonb",
    Type.STRUCT: "jsonb",
}
LOGICAL_TYPES: Final[Mapping[str, str]] = {
    DECIMAL: "numeric",
    DATE: "date",
    TIME: "time",
    TIMESTAMP: "timestamptz",
}
# For values without a schema, as in JSON. The order matters: True is also an int.
PLAIN_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "boolean"),
    (int, "bigint"),
    (float, "double precision"),
    (str, "text"),
    (bytes, "bytea"),
    (Decimal, "numeric"),
    (datetime, "timestamptz"),
    (date, "date"),
    (time, "time"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """The column for a field: its type, and whether it is NOT NULL."""

    name: str
    type: str
    is_optional: bool = True
    default: Any = None


def column_of(name: str, schema: Schema | None, value: Any) -> Column:
    """Return the column for a field, by its schema or else by its value."""
    if schema is None:
        kind = next((kind for type_, kind in PLAIN_TYPES if isinstance(value, type_)), "jsonb")
        return Column(name=name, type="text" if value is None else kind)
    kind = LOGICAL_TYPES.get(schema.name or "") or COLUMN_TYPES[schema.type]
    return Column(
        name=name,
        type=kind,
        is_optional=schema.is_optional,
        default=cell_of(schema.default) if schema.default is not None else None,
    )


def cell_of(value: Any, *, has_array: bool = False) -> Any:
    """Return a value as a cell; `has_array` means that the column is a PostgreSQL array."""
    if isinstance(value, str):
        if "\0" in value:
            raise DataError("PostgreSQL holds no text with the character NUL")
        if not value.isascii():
            _check_unicode(value)
        return value
    if isinstance(value, datetime):
        # Convert to UTC: a column without time zone drops the zone.
        return value.astimezone(UTC)
    if isinstance(value, (list, tuple)) and has_array:
        return [cell_of(one, has_array=True) for one in value]
    if isinstance(value, (Struct, Mapping, list, tuple)):
        told = to_json(value)
        if "\\u0000" in told:
            raise DataError("PostgreSQL holds no JSON with the character NUL")
        _check_unicode(told)
        return told
    return value


def _check_unicode(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"the text is not Unicode: {error.reason}") from error
