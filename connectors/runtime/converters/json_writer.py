"""Writes values as JSON, with a function per schema, or by their Python types.

It makes the text itself, so that decimals keep their digits.
"""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from connectors.runtime.values import temporal
from connectors.runtime.values.numbers import (
    decimal_bytes,
    float32,
    float32_text,
    json_number,
    parse_decimal,
)
from connectors.runtime.values.structs import LOGICAL, REAL, WHOLE, words
from connectors.sdk.errors import DataError
from connectors.sdk.schemas import (
    DATE,
    DECIMAL,
    MAX_DEPTH,
    TIME,
    TIMESTAMP,
    Schema,
    Struct,
    Type,
)

Writer: TypeAlias = Callable[[Any], str]

# The encoder in C: adds quotes and escapes.
quoted: Final[Writer] = json.encoder.encode_basestring
_BYTES: Final = (bytes, bytearray, memoryview)


def make_writer(schema: Schema, *, fills: bool, is_numeric: bool, depth: int = MAX_DEPTH) -> Writer:
    """Return a function that writes values of a schema.

    With `fills`, a null becomes the default; with `is_numeric`, decimals become numbers.
    """
    if depth == 0:
        raise DataError(f"the schema is nested deeper than {MAX_DEPTH} levels")

    def inner(one: Schema | None) -> Writer:
        if one is None:
            return plain_text
        return make_writer(one, fills=fills, is_numeric=is_numeric, depth=depth - 1)

    write = _logical(schema, is_numeric) or _typed(schema, inner)
    # Write the default when needed: an invalid one must not fail records that have a value.
    default = schema.default if fills else None
    is_optional = schema.is_optional

    def write_or_default(value: Any) -> str:
        if value is not None:
            return write(value)
        if default is not None:
            return write(default)
        if is_optional:
            return "null"
        raise DataError(
            "Conversion error: null value for field that is required and has no default value"
        )

    return write_or_default


def _typed(schema: Schema, inner: Callable[[Schema | None], Writer]) -> Writer:
    if schema.type in WHOLE:
        return _whole(schema)
    if schema.type in REAL:
        return _real(schema)
    if schema.type is Type.STRUCT:
        return _struct(schema, inner)
    if schema.type is Type.ARRAY:
        return _array(schema, inner(schema.value_schema))
    if schema.type is Type.MAP:
        return _map(schema, inner(schema.key_schema), inner(schema.value_schema))
    return _SIMPLE[schema.type](schema)


def _whole(schema: Schema) -> Writer:
    allowed = WHOLE[schema.type]

    def write(value: Any) -> str:
        if type(value) is not int or value not in allowed:
            raise _mismatch(schema, value)
        return str(value)

    return write


def _real(schema: Schema) -> Writer:
    is_short = schema.type is Type.FLOAT32

    def write(value: Any) -> str:
        if type(value) not in (float, int):
            raise _mismatch(schema, value)
        return _short_number(float32(value)) if is_short else json_number(float(value))

    return write


def _short_number(number: float) -> str:
    text = float32_text(number)
    return text if text[-1].isdigit() else f'"{text}"'


def _boolean(schema: Schema) -> Writer:
    def write(value: Any) -> str:
        if value is True:
            return "true"
        if value is False:
            return "false"
        raise _mismatch(schema, value)

    return write


def _string(schema: Schema) -> Writer:
    def write(value: Any) -> str:
        if not isinstance(value, str):
            raise _mismatch(schema, value)
        return quoted(value)

    return write


def _bytes(schema: Schema) -> Writer:
    def write(value: Any) -> str:
        if not isinstance(value, _BYTES):
            raise _mismatch(schema, value)
        return f'"{b64encode(value).decode()}"'

    return write


_SIMPLE: Final = {Type.BOOLEAN: _boolean, Type.STRING: _string, Type.BYTES: _bytes}


def _array(schema: Schema, item: Writer) -> Writer:
    def write(value: Any) -> str:
        if not isinstance(value, (list, tuple)):
            raise _mismatch(schema, value)
        return f"[{','.join([item(one) for one in value])}]"

    return write


def _map(schema: Schema, key: Writer, item: Writer) -> Writer:
    is_object = schema.key_schema is not None and schema.key_schema.type is Type.STRING

    def write(value: Any) -> str:
        if not isinstance(value, Mapping):
            raise _mismatch(schema, value)
        if is_object:
            return f"{{{','.join([f'{key(name)}:{item(one)}' for name, one in value.items()])}}}"
        return f"[{','.join([f'[{key(name)},{item(one)}]' for name, one in value.items()])}]"

    return write


def _struct(schema: Schema, inner: Callable[[Schema | None], Writer]) -> Writer:
    fields = [(f"{quoted(one.name)}:", one.name, inner(one.schema)) for one in schema.fields]

    def write(value: Any) -> str:
        if not isinstance(value, Struct):
            raise _mismatch(schema, value)
        if value.schema is not schema and value.schema != schema:
            raise DataError("Mismatching schema.")
        get = value.values.get
        try:
            return f"{{{','.join([start + write(get(name)) for start, name, write in fields])}}}"
        except DataError:
            raise _named(fields, value) from None

    return write


def _named(fields: list[tuple[str, str, Writer]], value: Struct) -> DataError:
    """Return the error again, with the name of its field; only failures pay for this."""
    for _, name, write in fields:
        try:
            write(value.values.get(name))
        except DataError as error:
            return DataError(f"field {name}: {error}")
    raise AssertionError("a field that fails once fails again")


def _logical(schema: Schema, is_numeric: bool) -> Writer | None:
    name = schema.name or ""
    if name == DECIMAL:
        return _decimal(schema, is_numeric)
    if name not in _WHOLES:
        return None
    expected, convert = LOGICAL[name][1], _WHOLES[name]
    whole = _whole(schema)

    def write(value: Any) -> str:
        if not isinstance(value, expected):
            raise _mismatch(schema, value)
        return whole(convert(value))

    return write


_WHOLES: Final[Mapping[str, Callable[[Any], int]]] = {
    DATE: temporal.days_of,
    TIME: temporal.millis_of,
    TIMESTAMP: temporal.millis_of,
}


def _decimal(schema: Schema, is_numeric: bool) -> Writer:
    scale = int(schema.parameters.get("scale", 0))

    def write(value: Any) -> str:
        if not isinstance(value, Decimal):
            raise _mismatch(schema, value)
        if is_numeric:
            return str(parse_decimal(str(value)))
        return f'"{b64encode(decimal_bytes(value, scale)).decode()}"'

    return write


def plain_text(value: Any) -> str:
    """Write a value without a schema, by its Python type."""
    write = _PLAIN.get(type(value))
    if write is not None:
        return write(value)
    if isinstance(value, _BYTES):
        return f'"{b64encode(value).decode()}"'
    raise DataError(f"a {type(value).__name__} without a schema cannot be written as JSON")


def _plain_map(value: dict[Any, Any]) -> str:
    if all(type(name) is str for name in value):
        return (
            f"{{{','.join([f'{quoted(name)}:{plain_text(one)}' for name, one in value.items()])}}}"
        )
    pairs = [f"[{plain_text(name)},{plain_text(one)}]" for name, one in value.items()]
    return f"[{','.join(pairs)}]"


def _plain_list(value: Any) -> str:
    return f"[{','.join([plain_text(one) for one in value])}]"


def _plain_struct(value: Struct) -> str:
    return make_writer(value.schema, fills=True, is_numeric=False)(value)


_PLAIN: Final[Mapping[type, Writer]] = {
    type(None): lambda _: "null",
    bool: lambda value: "true" if value else "false",
    int: str,
    float: json_number,
    str: quoted,
    list: _plain_list,
    tuple: _plain_list,
    dict: _plain_map,
    Struct: _plain_struct,
}


def _mismatch(schema: Schema, value: Any) -> DataError:
    return DataError(
        f"Invalid type for {schema.type.name}: the schema says {words(schema)}, and the value is "
        f"{type(value).__name__} {str(value)[:100]!r}"
    )
