"""Schemas, structs and records of connectors, every value defaulted."""

from typing import Any

from connectors.sdk.records import Record
from connectors.sdk.schemas import DATE, DECIMAL, TIME, TIMESTAMP, Field, Schema, Struct, Type


def schema(kind: Type, *, default: Any = None, **more: Any) -> Schema:
    return Schema(type=kind, default=default, has_default=default is not None, **more)


def struct_schema(name: str | None = None, **fields: Schema) -> Schema:
    listed = tuple(Field(name=one, schema=inner) for one, inner in fields.items())
    return Schema(type=Type.STRUCT, name=name, fields=listed)


def struct(of: Schema, **values: Any) -> Struct:
    return Struct(of, values)


def decimal_schema(scale: int, **more: Any) -> Schema:
    parameters = {"scale": str(scale)}
    return schema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters, **more)


def date_schema(**more: Any) -> Schema:
    return schema(Type.INT32, name=DATE, version=1, **more)


def time_schema(**more: Any) -> Schema:
    return schema(Type.INT32, name=TIME, version=1, **more)


def timestamp_schema(**more: Any) -> Schema:
    return schema(Type.INT64, name=TIMESTAMP, version=1, **more)


def record(value: Any = None, of: Schema | None = None, **more: Any) -> Record:
    """Return a record; a struct brings its schema."""
    if of is None and isinstance(value, Struct):
        of = value.schema
    return Record(**{"topic": "orders", "value": value, "value_schema": of, **more})
