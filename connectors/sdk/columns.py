"""Converts a batch of values to an Arrow table, and back; needs pyarrow, the extra `parquet`.

Functions import pyarrow, so that this module can be imported without it.
"""

import datetime
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from connectors.sdk.errors import ConnectorError, DataError
from connectors.sdk.records import Record
from connectors.sdk.schemas import DATE, DECIMAL, TIME, TIMESTAMP, Field, Schema, Struct, Type

INSTALL: Final = "./samsa extras install parquet"
# The digits of 128 bits; Kafka Connect has no precision.
DECIMAL_DIGITS: Final = 38
# Far deeper than usual; every walk counts down from it.
MAX_DEPTH: Final = 64


def is_here() -> bool:
    """Return whether pyarrow is installed."""
    try:
        version("pyarrow")
    except PackageNotFoundError:
        return False
    return True


def table_of(records: Sequence[Record]) -> Any:
    """Return the values of a batch as a table; all must have the same struct schema."""
    schemas = {record.value_schema for record in records}
    if len(schemas) != 1 or None in schemas:
        raise DataError(f"a table has one schema, these records have {len(schemas)}")
    schema = records[0].value_schema
    assert schema is not None
    return to_table(schema, [record.value for record in records])


def to_table(schema: Schema, values: Sequence[Struct]) -> Any:
    """Return structs as a table with a column for each of their fields."""
    pyarrow = _pyarrow()
    if schema.type is not Type.STRUCT:
        raise DataError(f"a table is made of structs, not of {schema.type.value}")
    arrow = pyarrow.schema([_to_arrow_field(pyarrow, field) for field in schema.fields])
    rows = [_to_plain(schema, value, schema.name or "the value") for value in values]
    try:
        return pyarrow.Table.from_pylist(rows, schema=arrow)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"a value does not fit its column: {error}") from error


def from_table(table: Any, *, name: str | None = None) -> tuple[Schema, list[Struct]]:
    """Return the schema of a table's rows, and the rows."""
    pyarrow = _pyarrow()
    fields = tuple(_from_arrow_field(pyarrow, field) for field in table.schema)
    schema = Schema(type=Type.STRUCT, name=name, fields=fields)
    return schema, [_from_plain(schema, row) for row in table.to_pylist(maps_as_pydicts="strict")]


def _pyarrow() -> Any:
    try:
        import pyarrow  # noqa: PLC0415 (an extra, which may not be there)
    except ImportError as error:
        raise ConnectorError(f"tables need pyarrow, which is not installed: {INSTALL}") from error
    return pyarrow


def _to_arrow_field(pyarrow: Any, field: Field, depth: int = MAX_DEPTH) -> Any:
    kind = _to_arrow(pyarrow, field.schema, depth)
    return pyarrow.field(field.name, kind, nullable=field.schema.is_optional)


def _to_arrow(pyarrow: Any, schema: Schema, depth: int) -> Any:
    if depth == 0:
        raise DataError(f"a schema is nested deeper than {MAX_DEPTH}")
    match schema.name:
        case "org.apache.kafka.connect.data.Decimal":
            return pyarrow.decimal128(DECIMAL_DIGITS, int(schema.parameters.get("scale", "0")))
        case "org.apache.kafka.connect.data.Date":
            return pyarrow.date32()
        case "org.apache.kafka.connect.data.Time":
            return pyarrow.time32("ms")
        case "org.apache.kafka.connect.data.Timestamp":
            return pyarrow.timestamp("ms", tz="UTC")
    if schema.type is Type.STRUCT:
        inner = [_to_arrow_field(pyarrow, field, depth - 1) for field in schema.fields]
        return pyarrow.struct(inner)
    if schema.type in {Type.ARRAY, Type.MAP}:
        assert schema.value_schema is not None
        values = _to_arrow(pyarrow, schema.value_schema, depth - 1)
        if schema.type is Type.ARRAY:
            nullable = schema.value_schema.is_optional
            return pyarrow.list_(pyarrow.field("item", values, nullable=nullable))
        assert schema.key_schema is not None
        return pyarrow.map_(_to_arrow(pyarrow, schema.key_schema, depth - 1), values)
    return getattr(pyarrow, _PLAIN[schema.type])()


_PLAIN: Final[Mapping[Type, str]] = {
    Type.INT8: "int8",
    Type.INT16: "int16",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float32",
    Type.FLOAT64: "float64",
    Type.BOOLEAN: "bool_",
    Type.STRING: "string",
    Type.BYTES: "binary",
}


def _to_plain(schema: Schema, value: Any, place: str) -> Any:
    """Return a value for pyarrow, after a check for missing required values."""
    if value is None:
        if not schema.is_optional:
            raise DataError(f"{place} is missing, and its schema says that it is not optional")
        return None
    if schema.type is Type.STRUCT:
        if not isinstance(value, Struct):
            raise DataError(f"{place} is a {type(value).__name__}, its schema says a struct")
        return {
            field.name: _to_plain(field.schema, value.values.get(field.name), field.name)
            for field in schema.fields
        }
    inner = schema.value_schema
    if inner is not None and isinstance(value, list):
        return [_to_plain(inner, one, place) for one in value]
    if inner is not None and isinstance(value, dict):
        return [(key, _to_plain(inner, one, place)) for key, one in value.items()]
    return value


def _from_arrow_field(pyarrow: Any, field: Any, depth: int = MAX_DEPTH) -> Field:
    if depth == 0:
        raise DataError(f"a table is nested deeper than {MAX_DEPTH}")
    schema = _from_arrow(pyarrow, field.type, field.nullable, depth)
    return Field(name=field.name, schema=schema)


def _from_arrow(pyarrow: Any, kind: Any, is_optional: bool, depth: int) -> Schema:
    types = pyarrow.types
    for fits, made in _FROM_ARROW:
        if getattr(types, fits)(kind):
            return made(kind, is_optional)
    if types.is_struct(kind):
        fields = tuple(
            _from_arrow_field(pyarrow, kind.field(number), depth - 1)
            for number in range(kind.num_fields)
        )
        return Schema(type=Type.STRUCT, is_optional=is_optional, fields=fields)
    if types.is_list(kind) or types.is_large_list(kind):
        item = _from_arrow_field(pyarrow, kind.value_field, depth - 1)
        return Schema(type=Type.ARRAY, is_optional=is_optional, value_schema=item.schema)
    if types.is_map(kind):
        return Schema(
            type=Type.MAP,
            is_optional=is_optional,
            key_schema=_from_arrow(pyarrow, kind.key_type, False, depth - 1),
            value_schema=_from_arrow_field(pyarrow, kind.item_field, depth - 1).schema,
        )
    raise DataError(f"columns of type {kind} have no schema in Kafka Connect")


def _typed(type_: Type) -> Callable[[Any, bool], Schema]:
    return lambda _kind, is_optional: Schema(type=type_, is_optional=is_optional)


def _named(type_: Type, name: str) -> Callable[[Any, bool], Schema]:
    return lambda _kind, is_optional: Schema(type=type_, is_optional=is_optional, name=name)


def _decimal(kind: Any, is_optional: bool) -> Schema:
    parameters = {"scale": str(kind.scale)}
    return Schema(type=Type.BYTES, is_optional=is_optional, name=DECIMAL, parameters=parameters)


# Unsigned integers become the next larger type; times without a zone are UTC.
_FROM_ARROW: Final[Sequence[tuple[str, Callable[[Any, bool], Schema]]]] = (
    ("is_int8", _typed(Type.INT8)),
    ("is_int16", _typed(Type.INT16)),
    ("is_uint8", _typed(Type.INT16)),
    ("is_int32", _typed(Type.INT32)),
    ("is_uint16", _typed(Type.INT32)),
    ("is_int64", _typed(Type.INT64)),
    ("is_uint32", _typed(Type.INT64)),
    ("is_float16", _typed(Type.FLOAT32)),
    ("is_float32", _typed(Type.FLOAT32)),
    ("is_float64", _typed(Type.FLOAT64)),
    ("is_boolean", _typed(Type.BOOLEAN)),
    ("is_string", _typed(Type.STRING)),
    ("is_large_string", _typed(Type.STRING)),
    ("is_binary", _typed(Type.BYTES)),
    ("is_large_binary", _typed(Type.BYTES)),
    ("is_fixed_size_binary", _typed(Type.BYTES)),
    ("is_decimal", _decimal),
    ("is_date32", _named(Type.INT32, DATE)),
    ("is_time", _named(Type.INT32, TIME)),
    ("is_timestamp", _named(Type.INT64, TIMESTAMP)),
)


def _from_plain(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.type is Type.STRUCT:
        named = {
            field.name: _from_plain(field.schema, value[field.name]) for field in schema.fields
        }
        return Struct(schema, named)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        return [_from_plain(schema.value_schema, one) for one in value]
    if schema.type is Type.MAP and schema.value_schema is not None:
        return {key: _from_plain(schema.value_schema, one) for key, one in value.items()}
    if schema.name == TIMESTAMP:
        return value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return value
