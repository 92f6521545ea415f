"""Derives schemas and structs from others, and checks values against their schemas.

Derived schemas are cached, since one schema serves every record of a stream.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, Generic, TypeVar

from connectors.sdk.errors import DataError
from connectors.sdk.schemas import (
    DATE,
    DECIMAL,
    MAX_DEPTH,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Struct,
    Type,
)

T = TypeVar("T")

# A stream has few schemas; Kafka Connect caches as many for each transform.
MAX_KEPT: Final = 16
BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
WHOLE: Final = {kind: range(-(1 << (bits - 1)), 1 << (bits - 1)) for kind, bits in BITS.items()}
REAL: Final = frozenset({Type.FLOAT32, Type.FLOAT64})
LOGICAL: Final[Mapping[str, tuple[Type, type]]] = {
    DECIMAL: (Type.BYTES, Decimal),
    DATE: (Type.INT32, date),
    TIME: (Type.INT32, time),
    TIMESTAMP: (Type.INT64, datetime),
}


class Derived(Generic[T]):
    """A cache of values derived from schemas, which forgets the oldest.

    Finds them by identity, which is fast, or else by value, for sources that make a new schema for
    each record.
    """

    def __init__(self, make: Callable[[Schema], T], *, max_kept: int = MAX_KEPT) -> None:
        self._make = make
        self._max_kept = max_kept
        # Keep the schema with its id: otherwise another schema could get the same id.
        self._by_id: dict[int, tuple[Schema, T]] = {}
        self._by_value: OrderedDict[Schema, T] = OrderedDict()

    def __call__(self, schema: Schema) -> T:
        found = self._by_id.get(id(schema))
        if found is not None:
            return found[1]
        made = self._by_value.get(schema)
        if made is None:
            made = self._make(schema)
            if len(self._by_value) >= self._max_kept:
                self._by_value.popitem(last=False)
            self._by_value[schema] = made
        if len(self._by_id) >= self._max_kept:
            self._by_id.pop(next(iter(self._by_id)))
        self._by_id[id(schema)] = (schema, made)
        return made


def with_fields(schema: Schema, fields: Iterable[Field]) -> Schema:
    """Return a struct with other fields and the same name, version, doc and parameters.

    As in Java's transforms: required, and without the default, which had the old fields.
    DataError if the schema is not a struct.
    """
    if schema.type is not Type.STRUCT:
        raise DataError(f"Cannot list fields on non-struct type {words(schema)}")
    return Schema(
        type=Type.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=unique(fields),
    )


def unique(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Return the fields; DataError if two have the same name."""
    found = tuple(fields)
    names = [field.name for field in found]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"a struct cannot have two fields named {twice!r}: rename one of them")
    return found


def optional(schema: Schema) -> Schema:
    return schema if schema.is_optional else replace(schema, is_optional=True)


def field_value(struct: Struct, field: Field, *, fills: bool) -> Any:
    """Return the value of a field; with `fills`, a null becomes the default."""
    value = struct.values.get(field.name)
    return field.schema.default if value is None and fills else value


def check(schema: Schema, value: Any, *, what: str = "value", depth: int = MAX_DEPTH) -> None:
    """Raise DataError if a value does not match its schema."""
    if depth == 0:
        raise DataError(f"{what} is nested deeper than {MAX_DEPTH} levels")
    if value is None:
        if not schema.is_optional and schema.default is None:
            raise DataError(f"{what} is null, and its schema {words(schema)} is not optional")
        return
    if not _fits(schema, value):
        raise DataError(
            f"{what} is {type(value).__name__} {str(value)[:100]!r}, and its schema is "
            f"{words(schema)}"
        )
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        for item in value:
            check(schema.value_schema, item, what=f"item of {what}", depth=depth - 1)
    elif schema.type is Type.MAP and schema.key_schema and schema.value_schema:
        for key, item in value.items():
            check(schema.key_schema, key, what=f"key of {what}", depth=depth - 1)
            check(schema.value_schema, item, what=f"item of {what}", depth=depth - 1)


def _fits(schema: Schema, value: Any) -> bool:
    kind = schema.type
    logical = LOGICAL.get(schema.name or "")
    if logical is not None and logical[0] is kind:
        return isinstance(value, logical[1])
    if kind in WHOLE:
        return type(value) is int and value in WHOLE[kind]
    if kind is Type.STRUCT:
        return isinstance(value, Struct) and (value.schema is schema or value.schema == schema)
    if kind in REAL:
        return type(value) in (float, int)
    return isinstance(value, _PYTHONS[kind])


_PYTHONS: Final[Mapping[Type, type | tuple[type, ...]]] = {
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: (bytes, bytearray, memoryview),
    Type.ARRAY: (list, tuple),
    Type.MAP: dict,
}


def words(schema: Schema) -> str:
    """Describe a schema for messages."""
    return f"{schema.name} ({schema.type.value})" if schema.name else schema.type.value
