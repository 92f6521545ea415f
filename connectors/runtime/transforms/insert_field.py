"""InsertField: adds fields with the record's place in Kafka, or with a fixed text."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from connectors.runtime.transforms.sides import (
    FILLS_KEY,
    Apply,
    Side,
    copied,
    fills_of,
    key_of,
    map_of,
    struct_of,
)
from connectors.runtime.values.structs import Derived, check, optional, with_fields
from connectors.runtime.values.temporal import timestamp_of
from connectors.sdk.configs import Definition, Kind
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Record, SinkRecord
from connectors.sdk.schemas import INT32, INT64, STRING, TIMESTAMP, Field, Schema, Struct, Type

_SUFFIXES: Final = " With ! behind it the field is required, with ? or nothing optional."
_TIMESTAMP: Final = Schema(type=Type.INT64, name=TIMESTAMP, version=1)
_PURPOSE: Final = "field insertion"


def _offset(record: Record) -> int:
    if not isinstance(record, SinkRecord):
        raise DataError(
            f"Only SinkRecord supported for [{_PURPOSE}], found: {type(record).__name__}: "
            "offset.field is for sinks, whose records have an offset"
        )
    return record.first_place.offset


# The fields to insert: config key, schema, and the source of the value.
_SOURCES: Final[tuple[tuple[str, Schema, Callable[[Record], Any]], ...]] = (
    ("topic.field", STRING, lambda record: record.topic),
    ("partition.field", INT32, lambda record: record.partition),
    ("offset.field", INT64, _offset),
    ("timestamp.field", _TIMESTAMP, lambda record: record.timestamp_ms),
)
_WORDS: Final = {
    "topic.field": "A field for the name of the topic.",
    "partition.field": "A field for the partition.",
    "offset.field": "A field for the offset in the partition, for sinks only.",
    "timestamp.field": "A field for the timestamp of the record.",
    "static.field": "A field for a text that is always the same.",
}
KEYS: Final = Definition(
    (
        *(
            key_of(name, Kind.STRING, words + _SUFFIXES, default=None)
            for name, words in _WORDS.items()
        ),
        key_of("static.value", Kind.STRING, "The text of static.field.", default=None),
        FILLS_KEY,
    )
)

# The name of a field, its schema, and the source of its value.
_Insert = tuple[str, Schema, Callable[[Record], Any]]


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    inserts = _inserts(parsed)
    fills = fills_of(parsed)
    added = [Field(name=name, schema=schema) for name, schema, _ in inserts]
    derived = Derived(lambda schema: with_fields(schema, (*schema.fields, *added)))

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if value is None:
            return record
        if schema is None:
            plain = dict(map_of(value, _PURPOSE))
            told = ((name, read(record)) for name, _, read in inserts)
            plain.update((name, one) for name, one in told if one is not None)
            return side.write(record, None, plain)
        struct = struct_of(value, _PURPOSE)
        new_schema = derived(struct.schema)
        values = copied(struct, struct.schema.fields, fills=fills)
        for name, inner, read in inserts:
            one = read(record)
            is_time = inner.name == TIMESTAMP and one is not None
            values[name] = timestamp_of(one) if is_time else one
            check(inner, values[name], what=f"field {name}")
        return side.write(record, new_schema, Struct(new_schema, values))

    return apply


def _inserts(parsed: Mapping[str, Any]) -> list[_Insert]:
    inserts = [
        _insert(parsed[key], schema, read)
        for key, schema, read in _SOURCES
        if parsed[key] is not None
    ]
    if (static := parsed["static.field"]) is not None:
        text = parsed["static.value"]
        if text is None:
            raise ConfigError(
                f"Invalid value null for configuration static.value: No value specified for static "
                f"field: {static}"
            )
        inserts.append(_insert(static, STRING, lambda _: text))
    if not inserts:
        raise ConfigError("No field insertion configured")
    return inserts


def _insert(told: str, schema: Schema, read: Callable[[Record], Any]) -> _Insert:
    if told.endswith("!"):
        return told[:-1], schema, read
    return told.removesuffix("?"), optional(schema), read
