"""TimestampConverter: converts between numbers, texts, dates, times and timestamps."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, time
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
from connectors.runtime.values import temporal
from connectors.runtime.values.date_patterns import Pattern
from connectors.runtime.values.structs import Derived, optional, with_fields, words
from connectors.sdk.checks import one_of
from connectors.sdk.configs import Definition, Importance, Kind
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Record
from connectors.sdk.schemas import (
    DATE,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Struct,
    Type,
)

KEYS: Final = Definition(
    (
        key_of(
            "field",
            Kind.STRING,
            "The field with the timestamp; empty where the whole value is one.",
            importance=Importance.HIGH,
            default="",
        ),
        key_of(
            "target.type",
            Kind.STRING,
            "The target type of the timestamp: string, unix, Date, Time or Timestamp.",
            importance=Importance.HIGH,
            check=one_of("string", "unix", "Date", "Time", "Timestamp"),
        ),
        key_of(
            "format",
            Kind.STRING,
            "The format of timestamps in texts, in UTC: a pattern of Java's SimpleDateFormat.",
            default="",
        ),
        key_of(
            "unix.precision",
            Kind.STRING,
            "The unit of numbers. All finer than milliseconds is cut off.",
            importance=Importance.LOW,
            default="milliseconds",
            check=one_of("nanoseconds", "microseconds", "milliseconds", "seconds"),
        ),
        FILLS_KEY,
    )
)
_PURPOSE: Final = "converting timestamp formats"
_SCHEMAS: Final[Mapping[str, Schema]] = {
    "string": STRING,
    "unix": INT64,
    "Date": Schema(type=Type.INT32, name=DATE, version=1),
    "Time": Schema(type=Type.INT32, name=TIME, version=1),
    "Timestamp": Schema(type=Type.INT64, name=TIMESTAMP, version=1),
}
_TEMPORAL: Final = (date, time)
_MAX_LONG: Final = (1 << 63) - 1
# The factor and the divisor that turn a number into milliseconds.
_PRECISIONS: Final = {
    "seconds": (1000, 1),
    "milliseconds": (1, 1),
    "microseconds": (1, 1000),
    "nanoseconds": (1, 1_000_000),
}


class _Converter:
    """Parses any timestamp to milliseconds, and formats them for the target type."""

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._target: str = parsed["target.type"]
        text: str = parsed["format"].strip()
        if self._target == "string" and not text:
            raise ConfigError(
                "TimestampConverter requires format option to be specified when using string "
                "timestamps"
            )
        self._pattern = Pattern(parsed["format"]) if text else None
        self._times, self._parts = _PRECISIONS[parsed["unix.precision"]]
        self._write = {
            "string": self._text,
            "unix": lambda millis: _scaled(millis, self._parts, self._times),
            "Date": lambda millis: temporal.date_of(millis // temporal.MILLIS_PER_DAY),
            "Time": lambda millis: temporal.time_of(millis % temporal.MILLIS_PER_DAY),
            "Timestamp": temporal.timestamp_of,
        }[self._target]

    def schema(self, is_optional: bool) -> Schema:
        made = _SCHEMAS[self._target]
        return optional(made) if is_optional else made

    def convert(self, value: Any, schema: Schema | None) -> Any:
        read = self._reader_of(value) if schema is None else self._reader(schema)
        return None if value is None else self._write(read(value))

    def _reader_of(self, value: Any) -> Callable[[Any], int]:
        if value is None or isinstance(value, _TEMPORAL):
            return temporal.millis_of
        if isinstance(value, str):
            return self._from_text
        if type(value) is int:
            return self._from_number
        raise DataError(
            f"TimestampConverter does not support {type(value).__name__} objects as timestamps"
        )

    def _reader(self, schema: Schema) -> Callable[[Any], int]:
        if schema.name in (TIMESTAMP, DATE, TIME):
            return _from_temporal
        if schema.type is Type.STRING:
            return self._from_text
        if schema.type is Type.INT64:
            return self._from_number
        raise DataError(
            f"Schema {words(schema)} does not correspond to a known timestamp type format"
        )

    def _from_text(self, value: Any) -> int:
        if not isinstance(value, str):
            raise DataError(f"Expected a text as timestamp, but found {type(value).__name__}")
        if self._pattern is None:
            raise DataError(
                f"a timestamp is the text {value[:100]!r}, and the key format is not set: "
                "set it to the pattern of such texts"
            )
        return self._pattern.parse(value)

    def _from_number(self, value: Any) -> int:
        if type(value) is not int:
            raise DataError(f"Expected a whole number, but found {type(value).__name__}")
        return _scaled(value, self._times, self._parts)

    def _text(self, millis: int) -> str:
        assert self._pattern is not None, "the target string has a format"
        return self._pattern.format(millis)


def _scaled(number: int, times: int, parts: int) -> int:
    """Multiply and divide like Java's TimeUnit: rounded towards zero, saturated at 64 bits."""
    scaled = min(max(number * times, -_MAX_LONG - 1), _MAX_LONG)
    return scaled // parts if scaled >= 0 else -(-scaled // parts)


def _from_temporal(value: Any) -> int:
    if not isinstance(value, _TEMPORAL):
        raise DataError(f"Expected a date or timestamp, but found {type(value).__name__}")
    return temporal.millis_of(value)


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    converter = _Converter(parsed)
    name: str = parsed["field"]
    fills = fills_of(parsed)
    derived = Derived(lambda schema: _converted_schema(schema, name, converter, fills=fills))

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if schema is None:
            if value is not None and name:
                plain = map_of(value, _PURPOSE)
                value = {**plain, name: converter.convert(plain.get(name), None)}
            else:
                value = converter.convert(value, None)
            return side.write(record, None, value)
        if not name:
            new_schema = converter.schema(schema.is_optional)
            return side.write(record, new_schema, converter.convert(value, schema))
        new_schema = derived(schema)
        if value is not None:
            struct = struct_of(value, _PURPOSE)
            value = _converted(struct, new_schema, name, converter, fills=fills)
        return side.write(record, new_schema, value)

    return apply


def _converted_schema(schema: Schema, name: str, converter: _Converter, *, fills: bool) -> Schema:
    fields = (
        Field(name=name, schema=converter.schema(field.schema.is_optional))
        if field.name == name
        else field
        for field in schema.fields
    )
    made = with_fields(schema, fields)
    if schema.is_optional:
        made = optional(made)
    if isinstance(schema.default, Struct):
        # As in Java, the schema of the default is the one without a default.
        default = _converted(schema.default, made, name, converter, fills=fills)
        made = replace(made, default=default, has_default=True)
    return made


def _converted(
    struct: Struct, schema: Schema, name: str, converter: _Converter, *, fills: bool
) -> Struct:
    values = copied(struct, struct.schema.fields, fills=fills)
    field = struct.schema.field(name)
    if field is not None:
        values[name] = converter.convert(values[name], field.schema)
    return Struct(schema, values)
