"""Heartbeat records, as Debezium writes them."""

from typing import Final

from connectors.sdk.records import Record
from connectors.sdk.schemas import INT64, STRING, Field, Schema, Struct, Type

KEY: Final = Schema(
    type=Type.STRUCT,
    name="io.debezium.connector.common.ServerNameKey",
    version=1,
    fields=(Field(name="serverName", schema=STRING),),
)
VALUE: Final = Schema(
    type=Type.STRUCT,
    name="io.debezium.connector.common.Heartbeat",
    version=1,
    fields=(Field(name="ts_ms", schema=INT64),),
)


def heartbeat(topic: str, server: str, *, now_ms: int) -> Record:
    return Record(
        topic=topic,
        key=Struct(KEY, {"serverName": server}),
        key_schema=KEY,
        value=Struct(VALUE, {"ts_ms": now_ms}),
        value_schema=VALUE,
    )
