"""Converts values to texts: as Java's `toString`, and as in headers.

Headers quote texts inside of lists and maps, so that `literals` can parse them.
"""

import base64
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final

from connectors.runtime.values.numbers import double_text, float32_text
from connectors.runtime.values.temporal import iso_text, millis_of, timestamp_of
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import Schema, Struct, Type

_BYTES: Final = (bytes, bytearray, memoryview)


def header_text(value: Any, schema: Schema | None = None) -> str:
    """Return the text of a value for a header."""
    return _plain_text(value, schema) if isinstance(value, str) else _embedded(value, schema, False)


def _embedded(value: Any, schema: Schema | None, quotes: bool = True) -> str:
    if value is None:
        return "null"
    if isinstance(value, (str, *_BYTES)):
        text = value if isinstance(value, str) else base64.b64encode(value).decode()
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"' if quotes else text
    if isinstance(value, (list, tuple)):
        inner = schema.value_schema if schema else None
        return f"[{','.join(_embedded(item, inner) for item in value)}]"
    if isinstance(value, Mapping):
        keys, items = (schema.key_schema, schema.value_schema) if schema else (None, None)
        pairs = (f"{_embedded(key, keys)}:{_embedded(item, items)}" for key, item in value.items())
        return f"{{{','.join(pairs)}}}"
    if isinstance(value, Struct):
        pairs = (
            f"{_embedded(field.name, None)}:{_embedded(_filled(value, field), field.schema)}"
            for field in value.schema.fields
        )
        return f"{{{','.join(pairs)}}}"
    return _plain_text(value, schema)


def _filled(struct: Struct, field: Any) -> Any:
    value = struct.values.get(field.name)
    return field.schema.default if value is None else value


def _plain_text(value: Any, schema: Schema | None) -> str:
    """Return the text of a value that is neither bytes nor a collection."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        is_short = schema is not None and schema.type is Type.FLOAT32
        return float32_text(value) if is_short else double_text(value)
    if isinstance(value, (date, time)):
        return iso_text(value)
    if isinstance(value, (str, int, Decimal)):
        return str(value)
    raise DataError(f"a {type(value).__name__} cannot be written as text")


def java_text(value: Any, schema: Schema | None = None) -> str:
    """Return the text of Java's `toString`; DataError for bytes: Java prints an address."""
    if isinstance(value, _BYTES):
        raise DataError(
            "bytes cannot be written as text: use ByteArrayConverter, or cast them to string before"
        )
    if value is None:
        return "null"
    if isinstance(value, (list, tuple)):
        inner = schema.value_schema if schema else None
        return f"[{', '.join(java_text(item, inner) for item in value)}]"
    if isinstance(value, Mapping):
        keys, items = (schema.key_schema, schema.value_schema) if schema else (None, None)
        pairs = (f"{java_text(key, keys)}={java_text(item, items)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, Struct):
        pairs = (
            f"{field.name}={java_text(item, field.schema)}"
            for field in value.schema.fields
            if (item := value.values.get(field.name)) is not None
        )
        return f"Struct{{{','.join(pairs)}}}"
    if isinstance(value, (date, time)):
        return _java_date(value)
    return _plain_text(value, schema)


_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)


def _java_date(value: date | time | datetime) -> str:
    when = timestamp_of(millis_of(value))
    day = f"{_DAYS[when.weekday()]} {_MONTHS[when.month - 1]} {when.day:02}"
    return f"{day} {when.hour:02}:{when.minute:02}:{when.second:02} UTC {when.year:04}"
