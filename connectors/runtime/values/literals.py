"""Parses values without a schema from texts, as in headers: `7`, `true`, `[1,2]`, a date.

The rules are those of Connect's class Values: the smallest type that holds a number exactly, dates
by their length, and otherwise a string.
"""

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Final, TypeAlias

from connectors.runtime.values.date_patterns import Pattern
from connectors.runtime.values.numbers import float32, parse_decimal, to_whole, unscaled
from connectors.runtime.values.structs import BITS, REAL
from connectors.runtime.values.temporal import MILLIS_PER_DAY, date_of, time_of, timestamp_of
from connectors.runtime.values.texts import header_text
from connectors.sdk.checks import BLANKS
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import DATE, DECIMAL, STRING, TIME, TIMESTAMP, Schema, Type

# A schema and a value; None for `null`, which has neither.
Parsed: TypeAlias = tuple[Schema | None, Any]

NULL: Final[Parsed] = (None, None)
# A delimiter, or the text up to the next delimiter that is not escaped by a backslash.
_TOKEN: Final = re.compile(r'[:,{}\[\]"]|(?:\\.?|[^:,{}\[\]"\\])+', re.DOTALL)
_BOOLEAN: Final = Schema(type=Type.BOOLEAN)
_WHOLES: Final = tuple((Schema(type=kind), bits) for kind, bits in BITS.items())
_FLOAT32: Final = Schema(type=Type.FLOAT32)
_FLOAT64: Final = Schema(type=Type.FLOAT64)
# The digits of the largest number of 64 bits.
_LONG_DIGITS: Final = 19
# Longer numbers stay texts.
_MAX_NUMBER_CHARS: Final = 1000
# Tokens after the first one in `12:30:00.000Z` and in a timestamp, since colons divide tokens.
_TOKENS_OF_TIME: Final = 4

_TIME_SCHEMA: Final = Schema(type=Type.INT32, name=TIME, version=1)
_DATE_SCHEMA: Final = Schema(type=Type.INT32, name=DATE, version=1)
_TIMESTAMP_SCHEMA: Final = Schema(type=Type.INT64, name=TIMESTAMP, version=1)
_TIME: Final = Pattern("HH:mm:ss.SSS'Z'")
_DATE: Final = Pattern("yyyy-MM-dd")
_TIMESTAMP: Final = Pattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
# The temporal type for each length of a text.
_TEMPORAL: Final[Mapping[int, tuple[Schema, Pattern]]] = {
    len("hh:mm:ss.mmmZ"): (_TIME_SCHEMA, _TIME),
    len("yyyy-mm-dd"): (_DATE_SCHEMA, _DATE),
    len("yyyy-mm-ddThh:mm:ss.mmmZ"): (_TIMESTAMP_SCHEMA, _TIMESTAMP),
}
# Types of numbers, from narrow to wide.
_WIDTHS: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


def parse(text: str) -> Parsed:
    """Return the value of a text, with its schema."""
    if not text:
        return STRING, text
    reader = _Reader(text)
    found = reader.read(embedded=False)
    if not reader.is_done():
        # Keep the whole text. Java returns only its beginning: 10 for 10:20.
        return STRING, text
    return NULL if found is None else found


class _Reader:
    """One pass over the tokens of a text, with the option to go back."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def read(self, *, embedded: bool) -> Parsed | None:
        """Read one value; None for `null` and at the end. DataError if it is not allowed inside."""
        if not self._has_next():
            return None
        if embedded and self._took('"'):
            return self._quoted()
        if self._took_alone("null", embedded):
            return None
        for word in ("true", "false"):
            if self._took_alone(word, embedded):
                return _BOOLEAN, word == "true"
        start = self._at
        try:
            if self._took("["):
                return self._list()
            if self._took("{"):
                return self._map()
        except DataError:
            # Neither a list nor a map: a text, unless it is inside of another value.
            self._at = start
        token = self._next()
        if not token.strip(BLANKS):
            return STRING, token
        return self._word(token.strip(BLANKS), embedded)

    def is_done(self) -> bool:
        return not self._has_next()

    def _word(self, token: str, embedded: bool) -> Parsed:
        is_digit = token[0].isdecimal()
        if is_digit and (temporal := self._temporal(token)):
            return temporal
        if is_digit or token[0] in "+-":
            try:
                return _number(token)
            except DataError:
                pass  # no number, so a text
        if embedded:
            raise DataError(f"{token[:100]!r} is not a value")
        return STRING, self._text

    def _temporal(self, token: str) -> Parsed | None:
        rest = self._tokens[self._at : self._at + _TOKENS_OF_TIME]
        if len(rest) == _TOKENS_OF_TIME and (found := _temporal(token + "".join(rest))):
            self._at += _TOKENS_OF_TIME
            return found
        return _temporal(token)

    def _quoted(self) -> Parsed:
        parts = []
        while self._has_next() and not self._took('"'):
            parts.append(self._next())
        text = "".join(parts)
        return _temporal(text) or (STRING, text)

    def _list(self) -> Parsed:
        items: list[Parsed] = []
        while self._has_next():
            if self._took("]"):
                return _list_of(items)
            if self._took(","):
                raise DataError("a list has an empty element")
            items.append(self.read(embedded=True) or NULL)
            if not self._is_next("]") and not self._took(","):
                raise DataError("elements of a list have no comma between them")
        raise DataError("a list has no end")

    def _map(self) -> Parsed:
        items: list[tuple[Parsed, Parsed]] = []
        while self._has_next():
            if self._took("}"):
                return _map_of(items)
            if self._took(","):
                raise DataError("a map has an empty entry")
            key = self.read(embedded=True)
            if key is None:
                raise DataError("a map has a null key")
            if not self._took(":"):
                raise DataError("an entry of a map has no colon")
            items.append((key, self.read(embedded=True) or NULL))
            self._took(",")
        raise DataError("a map has no end")

    def _has_next(self) -> bool:
        return self._at < len(self._tokens)

    def _next(self) -> str:
        if not self._has_next():
            raise DataError("a value ends too early")
        self._at += 1
        return str(self._tokens[self._at - 1])

    def _is_next(self, token: str) -> bool:
        """Return whether the next token, after blanks, is this one; skip the blanks."""
        while self._at < len(self._tokens) - 1 and not self._tokens[self._at].strip(BLANKS):
            self._at += 1
        return self._has_next() and self._tokens[self._at].strip(BLANKS) == token

    def _took(self, token: str) -> bool:
        is_next = self._is_next(token)
        self._at += is_next
        return is_next

    def _took_alone(self, word: str, embedded: bool) -> bool:
        """Take a word; outside of lists and maps only at the end of the text."""
        start = self._at
        if self._took(word) and (embedded or not self._has_next()):
            return True
        self._at = start
        return False


def _temporal(text: str) -> Parsed | None:
    text = text.replace("\\:", ":")
    schema, pattern = _TEMPORAL.get(len(text), (None, None))
    if schema is None or pattern is None:
        return None
    try:
        millis = pattern.parse(text, is_whole=True)
    except DataError:
        return None
    if schema is _TIMESTAMP_SCHEMA:
        return schema, timestamp_of(millis)
    if schema is _TIME_SCHEMA:
        # Java accepts times beyond a day, but cannot write them; keep them as text.
        return (schema, time_of(millis)) if 0 <= millis < MILLIS_PER_DAY else None
    return schema, date_of(millis // MILLIS_PER_DAY)


def _number(text: str) -> Parsed:
    if len(text) > _MAX_NUMBER_CHARS:
        raise DataError("too long for a number")
    number = parse_decimal(text)
    if number.adjusted() < _LONG_DIGITS and number == number.to_integral_value():
        whole = int(number)
        for schema, bits in _WHOLES:
            if to_whole(whole, bits) == whole:
                return schema, whole
    scale = unscaled(number)[1]
    if scale and math.isfinite(short := float32(float(number))):
        return _FLOAT32, short
    if scale and math.isfinite(float(number)):
        return _FLOAT64, float(number)
    return decimal_schema(scale), number


def decimal_schema(scale: int) -> Schema:
    return Schema(type=Type.BYTES, name=DECIMAL, version=1, parameters={"scale": str(scale)})


def _list_of(items: list[Parsed]) -> Parsed:
    schema = _merged([item[0] for item in items])
    if schema is None:
        return Schema(type=Type.ARRAY), [value for _, value in items]
    values = [_aligned(schema, value) for _, value in items]
    return Schema(type=Type.ARRAY, value_schema=schema), values


def _map_of(items: list[tuple[Parsed, Parsed]]) -> Parsed:
    keys = _merged([key[0] for key, _ in items])
    values = _merged([value[0] for _, value in items])
    found: dict[Any, Any] = {}
    for (_, key), (_, value) in items:
        aligned = key if keys is None else _aligned(keys, key)
        try:
            found[aligned] = value if keys is None or values is None else _aligned(values, value)
        except TypeError as error:
            raise DataError(f"a {type(key).__name__} cannot be the key of a map") from error
    if keys is None:
        values = None
    return Schema(type=Type.MAP, key_schema=keys, value_schema=values), found


def _merged(schemas: list[Schema | None]) -> Schema | None:
    """Return a common schema of all values except nulls; None if there is none."""
    merged: Schema | None = None
    for schema in schemas:
        if schema is None:
            continue
        if merged is None or merged.type is schema.type:
            merged = schema
        elif merged.type in _WIDTHS and schema.type in _WIDTHS:
            merged = max(merged, schema, key=lambda one: _WIDTHS.index(one.type))
        else:
            return None
    return merged


def _aligned(schema: Schema, value: Any) -> Any:
    """Convert a value to the common schema."""
    if value is None:
        raise DataError("a null is among values that are not optional")
    if isinstance(value, (bool, date, time, datetime, Decimal)):
        return value
    if schema.type is Type.STRING:
        return header_text(value)
    if schema.type in REAL:
        return float32(value) if schema.type is Type.FLOAT32 else float(value)
    return value
