"""The schemas of an event around its rows: source, transaction, envelope."""

from typing import Any, Final

from connectors.plugins.postgres.capture.event_settings import EventSettings
from connectors.plugins.postgres.capture.relations import Operation, SourceInfo, Table
from connectors.sdk.schemas import INT64, OPTIONAL_STRING, STRING, Field, Schema, Struct, Type

OPTIONAL_INT64: Final = Schema(type=Type.INT64, is_optional=True)
SNAPSHOT: Final = Schema(
    type=Type.STRING,
    is_optional=True,
    name="io.debezium.data.Enum",
    version=1,
    parameters={
        "allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,"
        "incremental"
    },
    default="false",
    has_default=True,
)
SOURCE: Final = Schema(
    type=Type.STRUCT,
    name="io.debezium.connector.postgresql.Source",
    version=1,
    fields=tuple(
        Field(name=name, schema=schema)
        for name, schema in (
            *(("version", STRING), ("connector", STRING), ("name", STRING)),
            *(("ts_ms", INT64), ("snapshot", SNAPSHOT), ("db", STRING)),
            *(("sequence", OPTIONAL_STRING), ("ts_us", OPTIONAL_INT64), ("ts_ns", OPTIONAL_INT64)),
            *(("schema", STRING), ("table", STRING)),
            *(("txId", OPTIONAL_INT64), ("lsn", OPTIONAL_INT64), ("xmin", OPTIONAL_INT64)),
            *(("origin", OPTIONAL_STRING), ("origin_lsn", OPTIONAL_INT64)),
        )
    ),
)
TRANSACTION: Final = Schema(
    type=Type.STRUCT,
    is_optional=True,
    name="event.block",
    version=1,
    fields=(
        Field(name="id", schema=STRING),
        Field(name="total_order", schema=INT64),
        Field(name="data_collection_order", schema=INT64),
    ),
)


def envelope(name: str, row: Schema) -> Schema:
    """Return the schema of events about rows of one schema, which is optional."""
    return Schema(
        type=Type.STRUCT,
        name=name,
        version=2,
        fields=(
            Field(name="before", schema=row),
            Field(name="after", schema=row),
            Field(name="source", schema=SOURCE),
            Field(name="transaction", schema=TRANSACTION),
            Field(name="op", schema=STRING),
            Field(name="ts_ms", schema=OPTIONAL_INT64),
            Field(name="ts_us", schema=OPTIONAL_INT64),
            Field(name="ts_ns", schema=OPTIONAL_INT64),
        ),
    )


def event(
    schema: Schema,
    operation: Operation,
    *,
    before: Struct | None,
    after: Struct | None,
    source: Struct,
    now_ns: int,
) -> Struct:
    values: dict[str, Any] = {
        "before": before,
        "after": after,
        "source": source,
        "transaction": None,
        "op": operation.value,
        "ts_ms": now_ns // 1_000_000,
        "ts_us": now_ns // 1_000,
        "ts_ns": now_ns,
    }
    return Struct(schema, values)


def source_of(info: SourceInfo, table: Table, settings: EventSettings) -> Struct:
    last = "null" if info.last_commit_lsn is None else f'"{info.last_commit_lsn}"'
    values: dict[str, Any] = {
        "version": settings.version,
        "connector": "postgresql",
        "name": settings.prefix,
        "ts_ms": info.ts_us // 1_000,
        "snapshot": None if info.snapshot is None else info.snapshot.value,
        "db": settings.database,
        "sequence": f'[{last},"{info.lsn}"]',
        "ts_us": info.ts_us,
        "ts_ns": info.ts_us * 1_000,
        "schema": table.schema,
        "table": table.name,
        "txId": info.transaction,
        "lsn": info.lsn,
        "xmin": None,
        "origin": info.origin,
        "origin_lsn": info.origin_lsn,
    }
    return Struct(SOURCE, values)
