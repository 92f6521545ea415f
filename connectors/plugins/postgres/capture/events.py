"""Changes of rows as records: Debezium's keys, envelopes, topic names and tombstones.

Pure: the time, the LSN and the cells are arguments. A changed table definition is a new `Table`,
whose next event has a new schema.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from connectors.plugins.postgres.capture import envelopes, names
from connectors.plugins.postgres.capture.column_kinds import kind_of
from connectors.plugins.postgres.capture.event_settings import EventSettings
from connectors.plugins.postgres.capture.kinds import Kind
from connectors.plugins.postgres.capture.relations import (
    UNCHANGED,
    Cell,
    Column,
    Operation,
    Row,
    SourceInfo,
    Table,
)
from connectors.sdk.errors import DataError
from connectors.sdk.records import Header, Record
from connectors.sdk.schemas import Field, Schema, Struct, Type

# Characters that Kafka allows in topic names; every other one becomes an underscore.
NOT_IN_TOPICS: Final = re.compile(r"[^a-zA-Z0-9._-]")
# Headers of the two events that a change of a key becomes.
NEW_KEY: Final = "__debezium.newkey"
OLD_KEY: Final = "__debezium.oldkey"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """A column of events: its place in a row, and how its cells are converted."""

    index: int
    column: Column
    kind: Kind
    # The field name: that of the column unless names are adjusted.
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The schemas and columns of a table's events."""

    table: Table
    topic: str
    columns: tuple[_Told, ...]
    keys: tuple[_Told, ...]
    key: Schema | None
    row: Schema
    envelope: Schema


class Events:
    """Turns changes into records. Caches the schemas of each table."""

    def __init__(self, settings: EventSettings) -> None:
        self._settings = settings
        self._layouts: dict[tuple[str, str], _Layout] = {}

    def topic(self, table: Table) -> str:
        return self._layout(table).topic

    def change(
        self,
        table: Table,
        operation: Operation,
        *,
        before: Row | None,
        after: Row | None,
        source: SourceInfo,
        now_ns: int,
    ) -> list[Record]:
        """Return the records of one change, in order; none if its operation is skipped.

        `before` is the old row in the log: the whole row, or only its key with nulls for the rest.
        """
        if operation in self._settings.skipped:
            return []
        layout = self._layout(table)
        told = _Change(
            layout=layout,
            source=envelopes.source_of(source, table, self._settings),
            now_ns=now_ns,
            has_tombstones=self._settings.has_tombstones,
        )
        if after is not None and before is not None:
            after = _completed(after, before)
        old, new = _struct(layout, before), _struct(layout, after)
        old_key, new_key = _key(layout, before), _key(layout, after)
        if operation is Operation.UPDATE and old_key is not None and old_key != new_key:
            return [
                *told.deleted(old, old_key, header=(NEW_KEY, new_key)),
                told.record(Operation.CREATE, None, new, new_key, header=(OLD_KEY, old_key)),
            ]
        if operation is Operation.DELETE:
            return told.deleted(old, old_key)
        return [told.record(operation, old, new, new_key)]

    def _layout(self, table: Table) -> _Layout:
        name = (table.schema, table.name)
        layout = self._layouts.get(name)
        if layout is None or (layout.table is not table and layout.table != table):
            layout = self._layouts[name] = _layout(table, self._settings)
        return layout


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """One change on its way to records."""

    layout: _Layout
    source: Struct
    now_ns: int
    has_tombstones: bool

    def record(
        self,
        operation: Operation,
        before: Struct | None,
        after: Struct | None,
        key: Struct | None,
        *,
        header: tuple[str, Struct | None] | None = None,
    ) -> Record:
        layout = self.layout
        value = envelopes.event(
            layout.envelope,
            operation,
            before=before,
            after=after,
            source=self.source,
            now_ns=self.now_ns,
        )
        headers = (
            () if header is None else (Header(name=header[0], value=header[1], schema=layout.key),)
        )
        return Record(
            topic=layout.topic,
            key=key,
            key_schema=None if key is None else layout.key,
            value=value,
            value_schema=layout.envelope,
            headers=headers,
        )

    def deleted(
        self,
        before: Struct | None,
        key: Struct | None,
        *,
        header: tuple[str, Struct | None] | None = None,
    ) -> list[Record]:
        """Return the event, and the tombstone that lets compaction delete the key."""
        event = self.record(Operation.DELETE, before, None, key, header=header)
        if not self.has_tombstones or key is None:
            return [event]
        tombstone = Record(
            topic=event.topic, key=key, key_schema=event.key_schema, headers=event.headers
        )
        return [event, tombstone]


def _layout(table: Table, settings: EventSettings) -> _Layout:
    parts = (settings.prefix, table.schema, table.name)
    topic = NOT_IN_TOPICS.sub("_", settings.delimiter.join(parts))
    prefix = names.of_schema(topic, settings.schema_names)
    columns = tuple(
        _Told(
            index=index,
            column=column,
            kind=kind,
            name=names.of_field(column.name, settings.field_names),
        )
        for index, column in enumerate(table.columns)
        if (kind := kind_of(column, settings)) is not None
    )
    _check_names(table, columns)
    keys = [told for told in columns if told.column.is_key]
    if table.key:
        keys.sort(key=lambda told: table.key.index(told.column.name))
    row = Schema(
        type=Type.STRUCT, is_optional=True, name=f"{prefix}.Value", fields=_fields(columns)
    )
    key = Schema(type=Type.STRUCT, name=f"{prefix}.Key", fields=_fields(keys)) if keys else None
    return _Layout(
        table=table,
        topic=topic,
        columns=columns,
        keys=tuple(keys),
        key=key,
        row=row,
        envelope=envelopes.envelope(f"{prefix}.Envelope", row),
    )


def _check_names(table: Table, columns: Sequence[_Told]) -> None:
    seen: dict[str, str] = {}
    for told in columns:
        other = seen.setdefault(told.name, told.column.name)
        if other != told.column.name:
            raise DataError(
                f"columns {other} and {told.column.name} of {table.schema}.{table.name} are both "
                f"named {told.name} by field.name.adjustment.mode: use avro_unicode"
            )


def _fields(columns: Sequence[_Told]) -> tuple[Field, ...]:
    return tuple(Field(name=told.name, schema=told.kind.schema) for told in columns)


def _completed(after: Row, before: Row) -> list[Cell]:
    """Fill unchanged large values of the new row from the old row, if the log has it."""
    return [
        old if new is UNCHANGED and old is not None else new
        for new, old in zip(after, before, strict=True)
    ]


def _struct(layout: _Layout, row: Row | None) -> Struct | None:
    return None if row is None else Struct(layout.row, _values(layout, layout.columns, row))


def _key(layout: _Layout, row: Row | None) -> Struct | None:
    if row is None or layout.key is None:
        return None
    return Struct(layout.key, _values(layout, layout.keys, row))


def _values(layout: _Layout, columns: Sequence[_Told], row: Row) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for told in columns:
        cell = row[told.index]
        try:
            values[told.name] = _value(told.kind, cell)
        except (ValueError, OverflowError) as error:
            # The error does not show the value, which may be secret.
            table = layout.table
            raise DataError(
                f"column {told.column.name} of {table.schema}.{table.name}, "
                f"of type {told.column.type.name}: {error}"
            ) from None
    return values


def _value(kind: Kind, cell: Cell) -> Any:
    if cell is None:
        return kind.fallback
    if cell is UNCHANGED:
        if kind.unavailable is None:
            raise ValueError(
                "an update left its large value unchanged, so the log does not contain it: "
                "leave the column out, or set the table's REPLICA IDENTITY to FULL for the future"
            )
        return kind.unavailable
    return kind.value(cell)
