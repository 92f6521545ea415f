"""Converts records to rows: the table, key and columns of each, and whether it is deleted. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from connectors.plugins.postgres import truncations
from connectors.plugins.postgres.columns import Column, column_of
from connectors.plugins.postgres.sink_settings import (
    KAFKA_FIELDS,
    SCHEMA_AND_TABLE,
    TOPIC,
    PkMode,
    SinkSettings,
    offsets_problem,
)
from connectors.sdk.errors import DataError
from connectors.sdk.records import SinkRecord
from connectors.sdk.schemas import INT32, INT64, STRING, Schema, Struct, Type

# A table's name: schema and table, or the table alone.
Name: TypeAlias = tuple[str, ...]
# Values with their schemas, by field.
Fields: TypeAlias = dict[str, tuple[Schema | None, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The row of a record. `index` is the record's place in the batch."""

    index: int
    table: Name
    key: Fields
    rest: Fields
    is_delete: bool = False
    # The whole table is emptied.
    is_truncation: bool = False
    # The fields of `rest` whose value is the placeholder: the row in the table keeps its own.
    unavailable: frozenset[str] = frozenset()
    # The places of earlier records from which fields were taken over, by name.
    taken_over: Mapping[str, int] | None = None

    def place_of(self, name: str) -> int:
        """Return the place of the record from which a field came."""
        return (self.taken_over or {}).get(name, self.index)

    @property
    def sources(self) -> Iterable[int]:
        """Return the places of earlier records from which fields came."""
        return (self.taken_over or {}).values()

    @property
    def fields(self) -> tuple[str, ...]:
        return (*self.key, *self.rest)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns to write."""
        if not self.unavailable:
            return (*self.key, *self.rest)
        return tuple([name for name in self.fields if name not in self.unavailable])

    @property
    def identity(self) -> tuple[Any, ...]:
        """Return the values of the key, which identify the row in the table."""
        return tuple(repr(value) for _, value in self.key.values())

    def columns(self) -> Iterable[tuple[Column, bool]]:
        """Yield the columns that the table needs, and whether each is part of the key."""
        for is_key, fields in ((True, self.key), (False, self.rest)):
            for name, (schema, value) in fields.items():
                # Without a schema, the placeholder does not tell the type of its column.
                if schema is not None or name not in self.unavailable:
                    yield column_of(name, schema, value), is_key

    def value(self, name: str) -> Any:
        found = self.key.get(name) or self.rest[name]
        return found[1]


def row_of(record: SinkRecord, index: int, settings: SinkSettings) -> Row:
    """Return the row of a record; DataError if it does not fit into a table."""
    table = table_of(record.topic, settings.table_format)
    if wrong := offsets_problem(record.topic, settings.table_format, settings.offsets_table):
        raise DataError(wrong)
    if truncations.is_truncation(record.value_schema, record.value):
        if record.retried is not None:
            raise DataError(
                "it is a TRUNCATE that is sent again, and would remove rows written since: truncate"
                " the table yourself if they may go"
            )
        return Row(index=index, table=table, key={}, rest={}, is_truncation=True)
    if record.value is None:
        if not settings.has_deletes:
            raise DataError("the record has no value, and delete.enabled is false")
        return Row(
            index=index, table=table, key=_key(record, {}, settings), rest={}, is_delete=True
        )
    fields = _fields(record.value, "value")
    key = _key(record, fields, settings)
    rest = {
        name: field
        for name, field in fields.items()
        if name not in key and (not settings.whitelist or name in settings.whitelist)
    }
    if not key and not rest:
        raise DataError("no field of the record becomes a column")
    if unavailable := settings.placeholder.among(rest):
        return Row(index=index, table=table, key=key, rest=rest, unavailable=frozenset(unavailable))
    return Row(index=index, table=table, key=key, rest=rest)


def folded(former: Row, row: Row) -> Row:
    """Return a row with the values of an earlier row of its key where it has none itself."""
    had = row.unavailable & (former.rest.keys() - former.unavailable)
    if not had:
        return row
    return replace(
        row,
        rest={name: (former if name in had else row).rest[name] for name in row.rest},
        unavailable=row.unavailable - had,
        taken_over={name: former.place_of(name) for name in had},
    )


def table_of(topic: str, table_format: str) -> Name:
    name = table_format.replace(TOPIC, topic)
    parts = tuple(name.split("."))
    if len(parts) > SCHEMA_AND_TABLE or not all(parts):
        raise DataError(
            f"{name} is not a table name: table.name.format gives table or schema.table"
        )
    return parts


def _key(record: SinkRecord, fields: Fields, settings: SinkSettings) -> Fields:
    key = _found_key(record, fields, settings)
    if lacking := settings.placeholder.among(key):
        raise DataError(
            f"the field {lacking[0]} is a part of the key, and its value is the placeholder of one"
            " that PostgreSQL's log lacks: set REPLICA IDENTITY FULL for the captured table, or"
            " name other fields in pk.fields"
        )
    return key


def _found_key(record: SinkRecord, fields: Fields, settings: SinkSettings) -> Fields:
    names = settings.pk_fields
    if settings.pk_mode is PkMode.NONE:
        return {}
    if settings.pk_mode is PkMode.KAFKA:
        first = record.first_place
        place = (first.topic, first.partition, first.offset)
        typed = zip((STRING, INT32, INT64), place, strict=True)
        return dict(zip(names or KAFKA_FIELDS, typed, strict=True))
    if settings.pk_mode is PkMode.RECORD_VALUE:
        return _chosen(fields, names, "value")
    if record.key is None:
        raise DataError("the record has no key, which pk.mode=record_key needs")
    if isinstance(record.key, (Struct, Mapping)):
        return _chosen(_fields(record.key, "key"), names, "key")
    if len(names) != 1:
        raise DataError(f"the key is a single value: pk.fields names one column, not {len(names)}")
    return {names[0]: (record.key_schema, record.key)}


def _chosen(fields: Fields, names: tuple[str, ...], what: str) -> Fields:
    if missing := [name for name in names if name not in fields]:
        raise DataError(f"the {what} has no field {missing[0]}, which pk.fields names")
    chosen = {name: fields[name] for name in names or fields}
    if empty := [name for name, (_, value) in chosen.items() if value is None]:
        raise DataError(f"the field {empty[0]} of the {what} is null, but a part of the key")
    return chosen


def _fields(value: Any, what: str) -> Fields:
    if isinstance(value, Struct):
        return {field.name: (field.schema, value[field.name]) for field in value.schema.fields}
    if isinstance(value, Mapping):
        return {str(name): (None, one) for name, one in value.items()}
    kind = Type.STRUCT.value
    raise DataError(f"the {what} is a {type(value).__name__}, a {kind} with fields is needed")
