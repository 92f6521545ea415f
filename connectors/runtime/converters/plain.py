"""Converters without structure: bytes, texts, booleans, numbers.

They need no schema, and return the optional schema of their type, as in Java.
"""

import codecs
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from connectors.runtime.values.structs import WHOLE
from connectors.runtime.values.texts import java_text
from connectors.sdk.checks import one_of
from connectors.sdk.configs import Definition, Importance, Key, Kind, Width
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.schemas import OPTIONAL_BYTES, OPTIONAL_STRING, Schema, Type

PACKAGE: Final = "org.apache.kafka.connect.converters."
TYPE_KEY: Final = Key(
    name="converter.type",
    kind=Kind.STRING,
    importance=Importance.LOW,
    doc="The use of the converter: key or value.",
    check=one_of("key", "value", "header"),
    display_name="converter.type",
)
KEYS: Final = Definition((TYPE_KEY,))

# Python's text codecs that are not character sets.
_NO_CHARSETS: Final = frozenset(
    {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf_7", "utf_8_sig"}
)
# Java writes these in big-endian order, UTF-16 with a byte order mark; Python in the host's order,
# which it also assumes for text without a mark.
_WRITTEN: Final = {"utf-16": ("utf-16-be", b"\xfe\xff"), "utf-32": ("utf-32-be", b"")}
_MARKS: Final = {
    "utf-16": (codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE),
    "utf-32": (codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE),
}


def wrong_with_charset(name: Any) -> str | None:
    try:
        _codec(name)
    except ConfigError as error:
        return str(error)
    return None


STRING_KEYS: Final = Definition(
    (
        TYPE_KEY,
        Key(
            name="converter.encoding",
            kind=Kind.STRING,
            default="UTF-8",
            importance=Importance.HIGH,
            doc="The character set in which texts are written as bytes, and read.",
            check=wrong_with_charset,
            width=Width.MEDIUM,
            display_name="Encoding",
        ),
    )
)


class ByteArrayConverter:
    name = f"{PACKAGE}ByteArrayConverter"

    def to_value(
        self, topic: str, payload: bytes | None, headers: Iterable[Any] = ()
    ) -> tuple[Schema | None, Any]:
        del topic, headers
        return OPTIONAL_BYTES, payload

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        del topic
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(
                f"ByteArrayConverter takes bytes, and the schema is {schema.type.value}"
            )
        if value is None:
            return None
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise DataError(f"ByteArrayConverter takes bytes, and was given {_kind_of(value)}")
        return bytes(value)


class StringConverter:
    name = "org.apache.kafka.connect.storage.StringConverter"

    def __init__(self, parsed: Mapping[str, Any]) -> None:
        self._name = _codec(parsed["converter.encoding"])
        self._write_name, self._mark = _WRITTEN.get(self._name, (self._name, b""))
        self._marks = _MARKS.get(self._name, (b"",))

    def to_value(
        self, topic: str, payload: bytes | None, headers: Iterable[Any] = ()
    ) -> tuple[Schema | None, Any]:
        del topic, headers
        if payload is None:
            return OPTIONAL_STRING, None
        name = self._name if payload.startswith(self._marks) else self._write_name
        # Invalid bytes become the replacement character, as in Java.
        return OPTIONAL_STRING, payload.decode(name, "replace")

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        del topic
        if value is None:
            return None
        text = value if isinstance(value, str) else java_text(value, schema)
        return self._mark + text.encode(self._write_name, "replace") if text else b""


class BooleanConverter:
    """Converts a boolean: one byte, 0 or 1."""

    name = f"{PACKAGE}BooleanConverter"

    def to_value(
        self, topic: str, payload: bytes | None, headers: Iterable[Any] = ()
    ) -> tuple[Schema | None, Any]:
        del topic, headers
        if payload is not None and payload not in (b"\x00", b"\x01"):
            raise DataError(f"a boolean is the byte 0 or 1, and this is {_shown(payload)}")
        return _OPTIONAL_BOOLEAN, None if payload is None else payload == b"\x01"

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        del topic
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(
                f"BooleanConverter takes booleans, and the schema is {schema.type.value}"
            )
        if value is None:
            return None
        if not isinstance(value, bool):
            raise DataError(f"BooleanConverter takes booleans, and was given {_kind_of(value)}")
        return b"\x01" if value else b"\x00"


_OPTIONAL_BOOLEAN: Final = Schema(type=Type.BOOLEAN, is_optional=True)


@dataclass(frozen=True, slots=True)
class NumberWidth:
    type: Type
    layout: struct.Struct


WIDTHS: Final[Mapping[str, NumberWidth]] = {
    "Short": NumberWidth(Type.INT16, struct.Struct(">h")),
    "Integer": NumberWidth(Type.INT32, struct.Struct(">i")),
    "Long": NumberWidth(Type.INT64, struct.Struct(">q")),
    "Float": NumberWidth(Type.FLOAT32, struct.Struct(">f")),
    "Double": NumberWidth(Type.FLOAT64, struct.Struct(">d")),
}


class NumberConverter:
    """Converts a number, in big-endian order."""

    def __init__(self, word: str) -> None:
        self.name = f"{PACKAGE}{word}Converter"
        self._width = width = WIDTHS[word]
        self._schema = Schema(type=width.type, is_optional=True)
        self._is_whole = width.type in WHOLE

    def to_value(
        self, topic: str, payload: bytes | None, headers: Iterable[Any] = ()
    ) -> tuple[Schema | None, Any]:
        del topic, headers
        if payload is None:
            return self._schema, None
        if len(payload) != (size := self._width.layout.size):
            raise DataError(
                f"{self._width.type.value} has {size} bytes, and this has {len(payload)}: "
                f"{_shown(payload)}"
            )
        return self._schema, self._width.layout.unpack(payload)[0]

    def from_value(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        del topic
        kind = self._width.type
        if value is None:
            return None
        if schema is not None and schema.type is not kind:
            raise DataError(
                f"the converter takes {kind.value}, and the schema is {schema.type.value}"
            )
        if type(value) is not (int if self._is_whole else float):
            raise DataError(f"the converter takes {kind.value}, and was given {_kind_of(value)}")
        if self._is_whole and value not in WHOLE[kind]:
            raise DataError(f"{value} does not fit into {kind.value}")
        try:
            return self._width.layout.pack(value)
        except OverflowError as error:
            raise DataError(f"{value} does not fit into {kind.value}") from error


def _codec(name: Any) -> str:
    """Return Python's name of a character set."""
    try:
        found = codecs.lookup(str(name))
    except (LookupError, ValueError):
        found = None
    # Codecs without this attribute convert bytes to bytes.
    if found is None or found.name.replace("-", "_") in _NO_CHARSETS or not found._is_text_encoding:  # noqa: SLF001
        raise ConfigError(f"{str(name)[:100]!r} is not a character set: UTF-8 is one")
    return found.name


def _kind_of(value: Any) -> str:
    return type(value).__name__


def _shown(payload: bytes) -> str:
    return payload[:20].hex(" ") + (" …" if len(payload) > 20 else "")
