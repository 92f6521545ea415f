"""Converts records of topics to rows, and rows to records, in Python. Pure."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from spark_integration.streams.durations import MICROS_PER_MS
from spark_integration.streams.evaluation import time_of_text
from spark_integration.streams.expressions import LONGS
from spark_integration.streams.fields import Kind, Row, Value
from spark_integration.streams.formats import VALUE, Form, Format
from spark_integration.streams.topology import Topology

# Limits of Java's parser.
MOST_DIGITS: Final = 1000
ESCAPED: Final = re.compile(r'[\x00-\x1f"\\]')
SHORT_ESCAPES: Final = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
}  # fmt: skip
# A lone surrogate, which JSON can represent and UTF-8 cannot.
HALVES: Final = re.compile("[\ud800-\udfff]")


class BadRecord(Exception):
    """A value is not in the format of its stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record of a topic."""

    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = 0
    partition: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A record for the output topic."""

    key: bytes | None
    value: bytes | None


def decode(form: Format, value: bytes | None) -> Row | None:
    """Parse the fields of a value; None for JSON or text without a value."""
    if form.form is Form.BYTES:
        return {VALUE: value}
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError as error:
        raise BadRecord(f"byte {error.start} is not UTF-8") from None
    if form.form is Form.TEXT:
        return {VALUE: text}
    kinds = dict(form.columns)
    found: dict[str, Any] = {}
    for name, value_found in parse_object(text):
        if name in kinds:
            # The last duplicate counts, as in Spark, which also parses the others.
            if name in found and not is_passable(kinds[name], found[name]):
                raise BadRecord(f"{name} is there twice, and no {kinds[name].value}")
            found[name] = value_found
    return {name: decode_field(name, kind, found.get(name)) for name, kind in form.columns}


def parse_object(text: str) -> tuple[tuple[str, Any], ...]:
    """Return the fields of a JSON object in order; nested objects are tuples as well."""
    try:
        found = json.loads(
            text,
            parse_constant=refuse_constant,
            parse_int=parse_long,
            parse_float=parse_double,
            object_pairs_hook=tuple,
        )
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"no JSON: {error}") from None
    if not isinstance(found, tuple):
        raise BadRecord(f"no object, but {type(found).__name__}")
    return found


def refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number")


def parse_long(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def parse_double(digits: str) -> float:
    if len(digits) > MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return float(digits)


def is_passable(kind: Kind, found: object) -> bool:
    """Return whether Spark continues after a value that a later duplicate replaces."""
    if found is None:
        return True
    if kind in (Kind.TEXT, Kind.TIME):
        return not isinstance(found, str) or not HALVES.search(found)
    return DECODERS[kind](found) is not None


def decode_field(name: str, kind: Kind, found: object) -> Value:
    if found is None:
        return None
    value = DECODERS[kind](found)
    if value is None:
        raise BadRecord(f"{name} is not a {kind.value}")
    return value


def decode_text(found: object) -> str | None:
    return found if isinstance(found, str) and not HALVES.search(found) else None


def decode_long(found: object) -> int | None:
    is_long = isinstance(found, int) and not isinstance(found, bool) and found in LONGS
    return found if is_long and isinstance(found, int) else None


def decode_double(found: object) -> float | None:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        number = float(found)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def decode_boolean(found: object) -> bool | None:
    return found if isinstance(found, bool) else None


def decode_time(found: object) -> int | None:
    return time_of_text(found) if isinstance(found, str) else None


DECODERS: Final = {
    Kind.TEXT: decode_text,
    Kind.LONG: decode_long,
    Kind.DOUBLE: decode_double,
    Kind.BOOLEAN: decode_boolean,
    Kind.TIME: decode_time,
}


def encode(topology: Topology, row: Row, *, key: bytes | None) -> Output:
    """Return the record of a row; `key` is the original key, for rows without a group."""
    if topology.grouping is not None:
        columns = topology.grouping.key_columns
        if topology.key_is_text:
            value = row[columns[0][0]]
            assert value is None or isinstance(value, str)
            key = None if value is None else value.encode()
        else:
            key = encode_object(columns, row)
    if topology.is_raw:
        raw = row[VALUE]
        if isinstance(raw, str):
            raw = raw.encode()
        assert raw is None or isinstance(raw, bytes)
        return Output(key=key, value=raw)
    return Output(key=key, value=encode_object(topology.columns, row))


def encode_object(columns: Sequence[tuple[str, Kind]], row: Row) -> bytes:
    """Format a JSON object, byte for byte like Spark except for doubles."""
    parts = [f'"{name}":{encode_value(kind, row[name])}' for name, kind in columns]
    return ("{" + ",".join(parts) + "}").encode()


def encode_value(kind: Kind, value: Value) -> str:
    if isinstance(value, str):
        return '"' + ESCAPED.sub(escape, value) + '"'
    if isinstance(value, tuple):
        return "[" + ",".join(encode_value(kind, item) for item in value) + "]"
    if kind is Kind.TIME and value is not None:
        assert isinstance(value, int)
        value //= MICROS_PER_MS
    return json.dumps(value)


def escape(found: re.Match[str]) -> str:
    character = found[0]
    return SHORT_ESCAPES.get(character) or f"\\u{ord(character):04X}"
