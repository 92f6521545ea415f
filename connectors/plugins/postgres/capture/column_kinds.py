"""Maps each column type that Debezium supports to its kind.

A type without a row is left out of events, unless `include.unknown.datatypes` asks for its text.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from connectors.plugins.postgres.capture import number_kinds, spatial_kinds, time_kinds
from connectors.plugins.postgres.capture.defaults import with_default
from connectors.plugins.postgres.capture.event_settings import Binaries, EventSettings, Hstores
from connectors.plugins.postgres.capture.kinds import Kind, plain
from connectors.plugins.postgres.capture.relations import Column, DataType
from connectors.plugins.postgres.capture.texts import elements, pairs
from connectors.plugins.postgres.placeholders import uuid_of
from connectors.sdk.schemas import (
    DATE,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
)

# Makes the kind of a column from its type modifier.
Make = Callable[[int, EventSettings], Kind]
# Schema types with numeric values, and how to make one from a byte.
NUMBERS: Final[Mapping[Type, type]] = {
    **dict.fromkeys((Type.INT16, Type.INT32, Type.INT64), int),
    **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), float),
}
BITS_OF_ANY_LENGTH: Final = 2**31 - 1


def kind_of(column: Column, settings: EventSettings) -> Kind | None:
    """Return the kind of a column; None if events leave it out."""
    kind = _kind(column.type, column.modifier, settings)
    if kind is None:
        if not settings.has_unknown_types:
            return None
        kind = _as_octets(str.encode, settings)
    return with_default(kind.optional() if column.is_optional else kind, column)


def _kind(of: DataType, modifier: int, settings: EventSettings) -> Kind | None:
    if of.base is not None:
        is_narrower = of.base_modifier >= 0
        return _kind(of.base, of.base_modifier if is_narrower else modifier, settings)
    if of.labels:
        return _enum(of.labels)
    if of.element is not None:
        return _array(of.element, modifier, settings)
    make = (BUILT_IN if of.is_built_in else EXTENSIONS).get(of.name)
    return None if make is None else make(modifier, settings)


def _array(element: DataType, modifier: int, settings: EventSettings) -> Kind | None:
    is_known = bool(element.labels) or element.name in ELEMENTS
    inner = _kind(element, modifier, settings) if is_known and element.base is None else None
    if inner is None:
        return None
    of = inner.optional()

    def value(text: str) -> list[Any]:
        return [None if one is None else of.value(one) for one in elements(text)]

    return Kind(
        schema=Schema(type=Type.ARRAY, value_schema=of.schema),
        value=value,
        fallback=[],
        unavailable=_unavailable(element, of, settings),
    )


def _unavailable(element: DataType, of: Kind, settings: EventSettings) -> list[Any] | None:
    """Return the placeholder as an array: of texts, or of numbers, one for each of its bytes."""
    if element.name == "uuid":
        return [uuid_of(settings.placeholder)]
    if of.unavailable is not None:
        return [of.unavailable]
    octets, name = settings.placeholder.encode(), of.schema.name
    if of.schema.type is Type.STRING:
        return [settings.placeholder]
    if element.name == "numeric":
        return [of.value(str(octet)) for octet in octets]
    if of.schema.type in NUMBERS and name not in (DATE, TIME, TIMESTAMP):
        return [NUMBERS[of.schema.type](octet) for octet in octets]
    return None


def _enum(labels: tuple[str, ...]) -> Kind:
    kind = plain(Type.STRING, str, name="io.debezium.data.Enum")
    return replace(kind, schema=replace(kind.schema, parameters={"allowed": ",".join(labels)}))


def _fixed(type_: Type, value: Callable[[str], Any]) -> Make:
    return lambda _modifier, _settings: plain(type_, value)


def _text(name: str | None = None) -> Make:
    def make(_modifier: int, settings: EventSettings) -> Kind:
        kind = plain(Type.STRING, str, name=name)
        return replace(kind, unavailable=settings.placeholder)

    return make


def _boolean(text: str) -> bool:
    if text not in ("t", "f"):
        raise ValueError("no boolean")
    return text == "t"


def _binary(_modifier: int, settings: EventSettings) -> Kind:
    kind = _as_octets(_octets, settings)
    placeholder = settings.placeholder
    if settings.binaries is Binaries.BYTES:
        return replace(kind, unavailable=placeholder.encode())
    if settings.binaries is Binaries.HEX:
        return replace(kind, unavailable=placeholder)
    return replace(kind, unavailable=WRITTEN[settings.binaries](placeholder.encode()))


def _as_octets(read: Callable[[str], bytes], settings: EventSettings) -> Kind:
    if settings.binaries is Binaries.BYTES:
        return plain(Type.BYTES, read)
    write = WRITTEN[settings.binaries]
    return plain(Type.STRING, lambda text: write(read(text)))


WRITTEN: Final[Mapping[Binaries, Callable[[bytes], str]]] = {
    Binaries.BASE64: lambda octets: base64.b64encode(octets).decode(),
    Binaries.BASE64_URL_SAFE: lambda octets: base64.urlsafe_b64encode(octets).decode(),
    Binaries.HEX: bytes.hex,
}


def _octets(text: str) -> bytes:
    if not text.startswith("\\x"):
        raise ValueError("not bytes in hex format")
    return bytes.fromhex(text[2:])


def _bit(modifier: int, settings: EventSettings) -> Kind:
    if modifier == 1:
        return plain(Type.BOOLEAN, lambda text: text == "1")
    return _bits(modifier, settings)


def _bits(modifier: int, settings: EventSettings) -> Kind:
    length = modifier if modifier > 0 else BITS_OF_ANY_LENGTH
    kind = plain(Type.BYTES, _little_endian, name="io.debezium.data.Bits")
    schema = replace(kind.schema, parameters={"length": str(length)})
    return replace(kind, schema=schema, unavailable=settings.placeholder.encode())


def _little_endian(text: str) -> bytes:
    """Return bits as bytes in Java's order: last bit first, up to the highest set bit."""
    bits = int(text or "0", 2)
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def _hstore(_modifier: int, settings: EventSettings) -> Kind:
    placeholder = {settings.placeholder: settings.placeholder}
    if settings.hstores is Hstores.MAP:
        schema = Schema(type=Type.MAP, key_schema=STRING, value_schema=OPTIONAL_STRING)
        return Kind(schema=schema, value=pairs, fallback={}, unavailable=placeholder)
    kind = plain(Type.STRING, lambda text: _compact(pairs(text)), name=JSON)
    return replace(kind, unavailable=_compact(placeholder), fallback="{}")


def _compact(value: Mapping[str, str | None]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


JSON: Final = "io.debezium.data.Json"
BUILT_IN: Final[Mapping[str, Make]] = {
    "bool": _fixed(Type.BOOLEAN, _boolean),
    "int2": _fixed(Type.INT16, int),
    "int4": _fixed(Type.INT32, int),
    "int8": _fixed(Type.INT64, int),
    "oid": _fixed(Type.INT64, int),
    "float4": _fixed(Type.FLOAT32, float),
    "float8": _fixed(Type.FLOAT64, float),
    "numeric": number_kinds.numeric,
    "money": number_kinds.money,
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name"), _text()),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8"), _text()),
    **dict.fromkeys(("int4range", "int8range", "numrange"), _text()),
    **dict.fromkeys(("daterange", "tsrange", "tstzrange"), _text()),
    "uuid": _text("io.debezium.data.Uuid"),
    **dict.fromkeys(("json", "jsonb"), _text(JSON)),
    "xml": _text("io.debezium.data.Xml"),
    "tsvector": _text("io.debezium.data.Tsvector"),
    "bytea": _binary,
    "bit": _bit,
    "varbit": _bits,
    "point": spatial_kinds.point,
    "timestamp": time_kinds.timestamp,
    "timestamptz": time_kinds.zoned_timestamp,
    "date": time_kinds.date_of,
    "time": time_kinds.time_of_day,
    "timetz": time_kinds.zoned_time,
    "interval": time_kinds.interval_of,
}
# Types of extensions, whose OIDs differ between databases.
EXTENSIONS: Final[Mapping[str, Make]] = {
    **dict.fromkeys(("citext", "isbn"), _text()),
    "ltree": _text("io.debezium.data.Ltree"),
    "hstore": _hstore,
    **spatial_kinds.MAKERS,
}
# Element types of supported arrays, besides enums.
ELEMENTS: Final = frozenset(
    (
        *("bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric"),
        *("text", "varchar", "bpchar", "char", "inet", "cidr", "macaddr", "macaddr8"),
        *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
        *("uuid", "json", "jsonb", "bytea", "tsvector"),
        *("citext", "isbn", "ltree", "hstore", *spatial_kinds.MAKERS),
        *("timestamp", "timestamptz", "date", "time", "timetz"),
    )
)
