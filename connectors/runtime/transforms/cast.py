"""Cast: converts fields, or the whole value, to another type."""

import base64
import re
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
from connectors.runtime.values.numbers import float32, is_number, to_whole
from connectors.runtime.values.structs import BITS, LOGICAL, REAL, WHOLE, Derived, with_fields
from connectors.runtime.values.texts import java_text
from connectors.sdk.checks import MAX_NUMBER_CHARS, Message
from connectors.sdk.checks import REAL as REAL_TEXT
from connectors.sdk.configs import Definition, Importance, Kind
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Record
from connectors.sdk.schemas import EMPTY, Field, Schema, Struct, Type

_WHOLE_TEXT: Final = re.compile(r"[+-]?[0-9]+")
_TARGETS: Final = (
    *(Type.INT8, Type.INT16, Type.INT32, Type.INT64),
    *(Type.FLOAT32, Type.FLOAT64, Type.BOOLEAN, Type.STRING),
)
_SOURCES: Final = (*_TARGETS, Type.BYTES)
_PURPOSE: Final = "cast types"
# Fields by name; None stands for the whole value.
Casts = Mapping[str | None, Type]


def _parse(spec: list[str]) -> Casts:
    casts: dict[str | None, Type] = {}
    for told in spec:
        parts = told.split(":")
        # As in Java's split: ignore empty parts at the end.
        while len(parts) > 1 and not parts[-1]:
            parts.pop()
        if len(parts) > 2:
            raise ConfigError(f"Invalid cast: {told} has more than one colon")
        word = parts[-1].strip().upper()
        if word not in Type.__members__:
            raise ConfigError(f"Invalid type found in casting spec: {parts[-1].strip()}")
        if Type[word] not in _TARGETS:
            allowed = ", ".join(kind.name for kind in _TARGETS)
            raise ConfigError(
                f"Cast transformation does not support casting to {word}; supported types are "
                f"[{allowed}]"
            )
        casts[parts[0].strip() if len(parts) == 2 else None] = Type[word]
    if None in casts and len(spec) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to may only specify "
            "a single cast in their spec"
        )
    return casts


def _check(spec: Any) -> str | None:
    if not spec:
        return Message("Must specify at least one field to cast.")
    try:
        _parse(spec)
    except ConfigError as error:
        return Message(str(error))
    return None


KEYS: Final = Definition(
    (
        key_of(
            "spec",
            Kind.LIST,
            "Fields and their new types, as field1:int32,field2:string; or one type alone for the "
            "whole value. Types are int8, int16, int32, int64, float32, float64, boolean and "
            "string. Bytes can be cast to string only.",
            importance=Importance.HIGH,
            check=_check,
        ),
        FILLS_KEY,
    )
)


def build(parsed: Mapping[str, Any], side: Side) -> Apply:
    casts = _parse(parsed["spec"])
    fills = fills_of(parsed)
    whole = casts.get(None)
    derived = Derived(lambda schema: _cast_schema(schema, casts))

    def apply(record: Record) -> Record:
        schema, value = side.read(record)
        if value is None:
            return record
        if schema is None:
            return side.write(record, None, _cast_plain(value, casts))
        new_schema = derived(schema)
        if whole is not None:
            return side.write(record, new_schema, cast(schema, value, whole))
        struct = struct_of(value, _PURPOSE)
        values = copied(struct, schema.fields, fills=fills)
        for field in schema.fields:
            if field.name in casts:
                values[field.name] = cast(field.schema, values[field.name], casts[field.name])
        return side.write(record, new_schema, Struct(new_schema, values))

    return apply


def _cast_plain(value: Any, casts: Casts) -> Any:
    if None in casts:
        return cast(None, value, casts[None])
    values = dict(map_of(value, _PURPOSE))
    for name, kind in casts.items():
        assert name is not None
        values[name] = cast(None, values.get(name), kind)
    return values


def _cast_schema(schema: Schema, casts: Casts) -> Schema:
    whole = casts.get(None)
    if whole is not None:
        # The name of a logical type does not apply to another type.
        is_logical = schema.name in LOGICAL
        return Schema(
            type=whole,
            is_optional=schema.is_optional,
            name=None if is_logical else schema.name,
            version=None if is_logical else schema.version,
            doc=schema.doc,
            parameters=EMPTY if is_logical else schema.parameters,
            **_default(schema, whole),
        )
    fields = (
        Field(
            name=field.name,
            schema=Schema(
                type=kind,
                is_optional=field.schema.is_optional,
                **_default(field.schema, kind),
            ),
        )
        if (kind := casts.get(field.name)) is not None
        else field
        for field in schema.fields
    )
    made = with_fields(schema, fields)
    return replace(made, is_optional=True) if schema.is_optional else made


def _default(schema: Schema, kind: Type) -> dict[str, Any]:
    if schema.default is None:
        return {}
    return {"default": cast(schema, schema.default, kind), "has_default": True}


def cast(schema: Schema | None, value: Any, kind: Type) -> Any:
    """Convert a value to another type; DataError if that is not possible."""
    if value is None:
        return None
    source = _type_of(value) if schema is None else schema.type
    if source not in _SOURCES:
        found = type(value).__name__ if source is None else source.name
        raise DataError(f"Cast transformation does not support casting from {found}")
    if kind is Type.STRING:
        return _text(value, schema)
    if isinstance(value, (date, time)):
        value = _number_of(value)
    if not is_number(value) and not isinstance(value, (bool, str)):
        raise DataError(f"Unexpected type in Cast transformation: {type(value).__name__}")
    return _CASTS[kind](value, kind)


def _type_of(value: Any) -> Type | None:
    return next((kind for python, kind in _TYPES if isinstance(value, python)), None)


_TYPES: Final[tuple[tuple[type | tuple[type, ...], Type], ...]] = (
    (bool, Type.BOOLEAN),
    (int, Type.INT64),
    (float, Type.FLOAT64),
    (str, Type.STRING),
    ((bytes, bytearray, memoryview), Type.BYTES),
    (dict, Type.MAP),
    ((list, tuple), Type.ARRAY),
    (Struct, Type.STRUCT),
)


def _number_of(value: date | time) -> int:
    """Return the number for a date, a time or a timestamp."""
    is_date = type(value) is date
    return temporal.days_of(value) if is_date else temporal.millis_of(value)  # type: ignore[arg-type]


def _text(value: Any, schema: Schema | None) -> str:
    if isinstance(value, (date, time)):
        return temporal.iso_text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return java_text(value, schema)


def _to_whole(value: Any, kind: Type) -> int:
    if isinstance(value, str):
        if len(value) > MAX_NUMBER_CHARS or not _WHOLE_TEXT.fullmatch(value):
            raise _out_of_range(value)
        if (number := int(value)) not in WHOLE[kind]:
            raise _out_of_range(value)
        return number
    return to_whole(value, BITS[kind])


def _to_real(value: Any, kind: Type) -> float:
    if isinstance(value, str):
        text = value.strip()
        if len(text) > MAX_NUMBER_CHARS or not REAL_TEXT.fullmatch(text):
            raise _out_of_range(value)
        value = float(text if text[-1] in "yN" else text.rstrip("fFdD"))
    number = float(value)
    return float32(number) if kind is Type.FLOAT32 else number


def _to_boolean(value: Any, _kind: Type) -> bool:
    if isinstance(value, str):
        return value.lower() == "true"
    return value if isinstance(value, bool) else to_whole(value, 64) != 0


_CASTS: Final[Mapping[Type, Callable[[Any, Type], Any]]] = {
    **dict.fromkeys(BITS, _to_whole),
    **dict.fromkeys(REAL, _to_real),
    Type.BOOLEAN: _to_boolean,
}


def _out_of_range(value: Any) -> DataError:
    return DataError(f"Value ({str(value)[:100]}) was out of range for requested data type")
