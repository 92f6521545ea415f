"""Reads values of a schema from parsed JSON, with a function that is made once per schema.

Where Java would turn a value of another type into 0, false or null, or would cut a number, the
record is refused: see docs/gaps.md.
"""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from connectors.runtime.values import temporal
from connectors.runtime.values.numbers import decimal_of, float32, parse_decimal
from connectors.runtime.values.structs import WHOLE, words
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import (
    DATE,
    DECIMAL,
    MAX_DEPTH,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Struct,
    Type,
)

Reader: TypeAlias = Callable[[Any], Any]


def make_reader(schema: Schema, *, fills: bool, depth: int = MAX_DEPTH) -> Reader:
    """Return a function from parsed JSON to a value; with `fills`, a null becomes the default."""
    if depth == 0:
        raise DataError(f"the schema is nested deeper than {MAX_DEPTH} levels")
    read = _logical(schema) or _MAKERS[schema.type](schema, fills, depth - 1)
    default = schema.default if fills else None
    is_optional = schema.is_optional

    def read_or_default(told: Any) -> Any:
        if told is not None:
            return read(told)
        if default is not None:
            return default
        if is_optional:
            return None
        raise DataError(f"Invalid null value for required {words(schema)} field")

    return read_or_default


def has_decimals(schema: Schema | None) -> bool:
    """Return whether a schema has decimals, so that numbers must be parsed exactly."""
    if schema is None:
        return False
    inner = (schema.key_schema, schema.value_schema, *(field.schema for field in schema.fields))
    return schema.name == DECIMAL or any(map(has_decimals, inner))


def _whole(schema: Schema, _fills: bool, _depth: int) -> Reader:
    allowed = WHOLE[schema.type]

    def read(told: Any) -> int:
        if type(told) is int and told in allowed:
            return told
        # JSON has one kind of numbers: 1.0 is whole, too.
        if _is_whole(told) and int(told) in allowed:
            return int(told)
        raise _mismatch(schema, told)

    return read


def _is_whole(told: Any) -> bool:
    if type(told) is float:
        return told.is_integer()
    # No type has more digits, and they would take long to process.
    return (
        type(told) is Decimal
        and told.adjusted() < _MAX_WHOLE_DIGITS
        and told == told.to_integral_value()
    )


_MAX_WHOLE_DIGITS: Final = 20


def _real(schema: Schema, _fills: bool, _depth: int) -> Reader:
    is_short = schema.type is Type.FLOAT32

    def read(told: Any) -> float:
        if type(told) is str and told in _NO_NUMBERS:
            return _NO_NUMBERS[told]
        if type(told) not in (int, float, Decimal):
            raise _mismatch(schema, told)
        try:
            number = float(told)
        except OverflowError as error:
            raise _mismatch(schema, told) from error
        return float32(number) if is_short else number

    return read


# The texts that both sides write for values without a number in JSON.
_NO_NUMBERS: Final = {word: float(word) for word in ("NaN", "Infinity", "-Infinity")}


def _exact(kind: type) -> Callable[[Schema, bool, int], Reader]:
    def make(schema: Schema, _fills: bool, _depth: int) -> Reader:
        def read(told: Any) -> Any:
            if type(told) is not kind:
                raise _mismatch(schema, told)
            return told

        return read

    return make


def _bytes(schema: Schema, _fills: bool, _depth: int) -> Reader:
    def read(told: Any) -> bytes:
        if type(told) is not str:
            raise _mismatch(schema, told)
        try:
            return b64decode(told, validate=True)
        except (binascii.Error, ValueError) as error:
            raise DataError(f"bytes are written in base64, and {told[:40]!r} is not") from error

    return read


def _array(schema: Schema, fills: bool, depth: int) -> Reader:
    item = make_reader(_required(schema.value_schema), fills=fills, depth=depth)

    def read(told: Any) -> list[Any]:
        if type(told) is not list:
            raise _mismatch(schema, told)
        return [item(one) for one in told]

    return read


def _map(schema: Schema, fills: bool, depth: int) -> Reader:
    keys = _required(schema.key_schema)
    key = make_reader(keys, fills=fills, depth=depth)
    item = make_reader(_required(schema.value_schema), fills=fills, depth=depth)

    def read_object(told: Any) -> dict[Any, Any]:
        if type(told) is not dict:
            raise DataError(
                "Maps with string fields should be encoded as JSON objects, but found "
                f"{type(told).__name__}"
            )
        return {name: item(one) for name, one in told.items()}

    def read_pairs(told: Any) -> dict[Any, Any]:
        if type(told) is not list or not all(type(one) is list and len(one) == 2 for one in told):
            raise DataError(
                "Maps with non-string fields should be encoded as JSON array of tuples, but found "
                f"{type(told).__name__}"
            )
        try:
            return {key(name): item(one) for name, one in told}
        except TypeError as error:
            raise DataError(f"a {words(keys)} cannot be the key of a map here") from error

    return read_object if keys.type is Type.STRING else read_pairs


def _struct(schema: Schema, fills: bool, depth: int) -> Reader:
    readers = [
        (field.name, make_reader(field.schema, fills=fills, depth=depth), field)
        for field in schema.fields
    ]

    def read(told: Any) -> Struct:
        if type(told) is not dict:
            raise DataError(
                f"Structs should be encoded as JSON objects, but found {type(told).__name__}"
            )
        get = told.get
        try:
            return Struct(schema, {name: read_field(get(name)) for name, read_field, _ in readers})
        except DataError:
            raise _named(readers, told) from None

    return read


def _named(readers: list[tuple[str, Reader, Field]], told: Mapping[str, Any]) -> DataError:
    """Return the error again, with the name of its field; only failures pay for this."""
    for name, read, _ in readers:
        try:
            read(told.get(name))
        except DataError as error:
            return DataError(f"field {name}: {error}")
    raise AssertionError("a field that fails once fails again")


_MAKERS: Final[Mapping[Type, Callable[[Schema, bool, int], Reader]]] = {
    **dict.fromkeys(WHOLE, _whole),
    Type.FLOAT32: _real,
    Type.FLOAT64: _real,
    Type.BOOLEAN: _exact(bool),
    Type.STRING: _exact(str),
    Type.BYTES: _bytes,
    Type.ARRAY: _array,
    Type.MAP: _map,
    Type.STRUCT: _struct,
}


def _logical(schema: Schema) -> Reader | None:
    make = _LOGICAL.get(schema.name or "")
    return make(schema) if make else None


def _decimal(schema: Schema) -> Reader:
    scale = int(schema.parameters["scale"])
    payload = _bytes(schema, False, 0)

    def read(told: Any) -> Decimal:
        if type(told) is Decimal:
            return told
        if type(told) in (int, float):
            return parse_decimal(str(told))
        return decimal_of(payload(told), scale)

    return read


def _of_whole(convert: Callable[[int], Any]) -> Callable[[Schema], Reader]:
    def make(schema: Schema) -> Reader:
        whole = _whole(schema, False, 0)
        return lambda told: convert(whole(told))

    return make


_LOGICAL: Final[Mapping[str, Callable[[Schema], Reader]]] = {
    DECIMAL: _decimal,
    DATE: _of_whole(temporal.date_of),
    TIME: _of_whole(temporal.time_of),
    TIMESTAMP: _of_whole(temporal.timestamp_of),
}


def _required(schema: Schema | None) -> Schema:
    if schema is None:
        raise DataError("a schema of a list or a map does not say what is in it")
    return schema


def _mismatch(schema: Schema, told: Any) -> DataError:
    return DataError(f"the schema says {words(schema)}, and the value is {str(told)[:100]!r}")
