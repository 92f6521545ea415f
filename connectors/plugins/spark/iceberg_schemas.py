"""Converts Spark's schemas to Iceberg's, and compares them with those of a table.

Imports pyiceberg, which is an extra, so only functions import this module.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from pyiceberg.schema import Schema, index_by_id
from pyiceberg.table.name_mapping import MappedField, NameMapping
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from connectors.sdk.errors import ConnectorError

# Type names of Spark, in the JSON of its schemas.
ATOMS: Final[Mapping[str, PrimitiveType]] = MappingProxyType(
    {
        "boolean": BooleanType(),
        "byte": IntegerType(),
        "short": IntegerType(),
        "integer": IntegerType(),
        "long": LongType(),
        "float": FloatType(),
        "double": DoubleType(),
        "string": StringType(),
        "binary": BinaryType(),
        "date": DateType(),
        "timestamp": TimestamptzType(),
        "timestamp_ntz": TimestampType(),
    }
)
DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
TEXT: Final = re.compile(r"(?:var)?char\(\d+\)")
# Values of other types have several texts, so that two folders could be for one value.
OF_FOLDERS: Final = (BooleanType, IntegerType, LongType, DateType, DecimalType, StringType)
# Columns that engines add to any table; Spark and Trino cannot read a table that has one.
RESERVED: Final = frozenset(
    {
        "_file",
        "_pos",
        "_deleted",
        "_spec_id",
        "_partition",
        "_row_id",
        "_last_updated_sequence_number",
    }
)
# Names of the parts of lists and maps in a name mapping.
ELEMENT, KEY, VALUE = "element", "key", "value"
# Limits the list of types in a message.
MAX_SHOWN_CHARS: Final = 300


def schema_of(text: str) -> Schema:
    """Return the schema of Spark's JSON; ConnectorError for types that Iceberg does not have.

    The table assigns the ids of columns: these ones are only distinct.
    """
    told = json.loads(text)
    taken = [one["name"] for one in told["fields"] if one["name"].lower() in RESERVED]
    if taken:
        raise ConnectorError(
            f"{taken[0]} is the name of a column that Iceberg adds to tables itself: give the"
            " column another name"
        )
    return Schema(*_struct(told, itertools.count(1)).fields)


def require_folders(schema: Schema, names: Iterable[str]) -> None:
    for name in names:
        type_ = schema.find_type(name)
        if not isinstance(type_, OF_FOLDERS):
            raise ConnectorError(
                f"partition.by names {name} of the type {type_}: an Iceberg table has folders of"
                " texts, whole numbers, decimals, dates and booleans here"
            )


def require_types(wanted: Schema, there: Schema) -> None:
    """Refuse a batch with types that readers of the table could not read."""
    known = {field.name.lower(): field for field in there.fields}
    for field in wanted.fields:
        other = known.get(field.name.lower())
        if other is None or (
            other.name == field.name and _fits(field.field_type, other.field_type)
        ):
            continue
        raise ConnectorError(
            f"the table has the column {other.name} of the type {_words(other)}, and the batch"
            f" {field.name} of the type {_words(field)}: give value.schema with the columns of"
            " the table, or another table"
        )


def require_names(wanted: Schema, there: Schema, mapping: NameMapping | None) -> None:
    """Refuse columns whose names mean other columns in existing files.

    Files of Spark have no column ids, so a name must mean the same column in all of them.
    """
    if mapping is not None:
        _require_names(wanted.as_struct(), there.as_struct(), mapping.root)


def required_fields(schema: Schema) -> list[str]:
    """Return the columns, at any depth, that must have a value; map keys always have one."""
    fields = index_by_id(schema)
    types = [field.field_type for field in fields.values()]
    keys = {type_.key_id for type_ in types if isinstance(type_, MapType)}
    needed = [field for field in fields.values() if field.required and field.field_id not in keys]
    return [str(schema.find_column_name(field.field_id)) for field in needed]


def _struct(told: Mapping[str, Any], ids: Iterator[int]) -> StructType:
    return StructType(
        *(
            NestedField(
                field_id=next(ids),
                name=one["name"],
                field_type=_type(one["type"], ids),
                required=False,
            )
            for one in told["fields"]
        )
    )


def _type(told: Any, ids: Iterator[int]) -> IcebergType:
    if isinstance(told, str):
        return _atom(told)
    kind = told["type"]
    if kind == "struct":
        return _struct(told, ids)
    if kind == "array":
        return ListType(
            element_id=next(ids),
            element_type=_type(told["elementType"], ids),
            element_required=False,
        )
    if kind == "map":
        return MapType(
            key_id=next(ids),
            key_type=_type(told["keyType"], ids),
            value_id=next(ids),
            value_type=_type(told["valueType"], ids),
            value_required=False,
        )
    raise _unknown(str(kind))


def _atom(word: str) -> IcebergType:
    if (found := DECIMAL.fullmatch(word)) is not None:
        return DecimalType(int(found[1]), int(found[2]))
    type_ = StringType() if TEXT.fullmatch(word) else ATOMS.get(word)
    if type_ is None:
        raise _unknown(word)
    return type_


def _unknown(word: str) -> ConnectorError:
    return ConnectorError(
        f"an Iceberg table has no columns of the type {word[:MAX_SHOWN_CHARS]}: have value.schema"
        " name another one"
    )


def _fits(wanted: IcebergType, there: IcebergType) -> bool:
    """Return whether types are equal, except for struct fields that only one of them has."""
    if isinstance(wanted, StructType) and isinstance(there, StructType):
        known = {field.name.lower(): field for field in there.fields}
        pairs = [(field, known.get(field.name.lower())) for field in wanted.fields]
        return all(
            other is None
            or (other.name == field.name and _fits(field.field_type, other.field_type))
            for field, other in pairs
        )
    inner = _inner(wanted), _inner(there)
    if type(wanted) is type(there) and inner[0]:
        return all(_fits(inner[0][name], inner[1][name]) for name in inner[0])
    return bool(wanted == there)


def _inner(type_: IcebergType) -> dict[str, IcebergType]:
    if isinstance(type_, ListType):
        return {ELEMENT: type_.element_type}
    if isinstance(type_, MapType):
        return {KEY: type_.key_type, VALUE: type_.value_type}
    return {}


def _require_names(wanted: IcebergType, there: IcebergType, mapped: list[MappedField]) -> None:
    by_name = {name: one for one in mapped for name in one.names}
    if isinstance(wanted, StructType) and isinstance(there, StructType):
        known = {field.name: field for field in there.fields}
        for field in wanted.fields:
            other, entry = known.get(field.name), by_name.get(field.name)
            if (None if other is None else other.field_id) != (
                None if entry is None else entry.field_id
            ):
                raise ConnectorError(
                    f"the table's property schema.name-mapping.default gives the name {field.name}"
                    " in files to another column, or to one that was renamed or removed: give the"
                    " column another name, or another table"
                )
            if other is not None and entry is not None:
                _require_names(field.field_type, other.field_type, entry.fields)
        return
    inner = _inner(there)
    for name, type_ in _inner(wanted).items():
        entry = by_name.get(name)
        if entry is not None:
            _require_names(type_, inner[name], entry.fields)


def _words(field: NestedField) -> str:
    return str(field.field_type)[:MAX_SHOWN_CHARS]
