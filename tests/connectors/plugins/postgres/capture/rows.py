"""Builders of tables and changes for tests of events."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from connectors.plugins.postgres.capture.event_settings import EventSettings
from connectors.plugins.postgres.capture.events import Events
from connectors.plugins.postgres.capture.relations import (
    Cell,
    Column,
    DataType,
    Operation,
    Row,
    SourceInfo,
    Table,
)
from connectors.sdk.records import Record

SETTINGS = EventSettings(prefix="p", database="shop", version="1.0")
NOW_NS = 1_700_000_000_123_456_789
SOURCE = SourceInfo(ts_us=1_700_000_000_000_007, lsn=4711, transaction=9, last_commit_lsn=4000)
# Built-in types need a low number, and which one is never asked.
INT4 = DataType(oid=23, name="int4")
TEXT = DataType(oid=25, name="text")


def built_in(name: str) -> DataType:
    return DataType(oid=1, name=name)


def of_extension(name: str) -> DataType:
    return DataType(oid=20_000, name=name)


def array_of(element: DataType) -> DataType:
    return replace(element, name=f"_{element.name}", element=element, labels=())


ORDERS = Table(
    schema="public",
    name="orders",
    columns=(
        Column(name="id", type=INT4, is_optional=False, is_key=True),
        Column(name="note", type=TEXT),
        Column(name="state", type=TEXT, is_optional=False),
    ),
)


def change(
    operation: Operation,
    *,
    before: Row | None = None,
    after: Row | None = None,
    table: Table = ORDERS,
    **settings: Any,
) -> list[Record]:
    events = Events(replace(SETTINGS, **settings))
    return events.change(table, operation, before=before, after=after, source=SOURCE, now_ns=NOW_NS)


def value_of(type_: DataType, cell: Cell, *, modifier: int = -1, **settings: Any) -> Any:
    """Return what a cell of one type becomes; KeyError where events leave its column out."""
    return told_row(type_, cell, modifier=modifier, **settings)["it"]


def told_row(
    type_: DataType, cell: Cell, *, modifier: int = -1, **settings: Any
) -> Mapping[str, Any]:
    column = Column(name="it", type=type_, modifier=modifier)
    table = Table(schema="public", name="t", columns=(column,))
    (record,) = change(Operation.CREATE, after=(cell,), table=table, **settings)
    row: Mapping[str, Any] = record.value["after"].values
    return row
