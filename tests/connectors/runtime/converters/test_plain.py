"""Bytes, texts, numbers and headers."""

from typing import Any

import pytest

from connectors.runtime import converters
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.schemas import BYTES, INT32, STRING, Type
from tests.builders.connect_values import struct, struct_schema

PACKAGE = "org.apache.kafka.connect.converters"


@pytest.mark.parametrize(
    ("name", "value", "payload"),
    [
        ("ShortConverter", -2, b"\xff\xfe"),
        ("IntegerConverter", 258, b"\x00\x00\x01\x02"),
        ("LongConverter", -1, b"\xff" * 8),
        ("FloatConverter", 0.5, b"\x3f\x00\x00\x00"),
        ("DoubleConverter", -2.0, b"\xc0" + bytes(7)),
        ("BooleanConverter", True, b"\x01"),
        ("ByteArrayConverter", b"\x00x", b"\x00x"),
    ],
)
def test_a_single_value_is_its_bytes(name: str, value: Any, payload: bytes) -> None:
    converter = converters.make(f"{PACKAGE}.{name}", {}, is_key=True)

    assert converter.from_value("t", None, value) == payload
    schema, back = converter.to_value("t", payload)
    assert back == value
    assert schema is not None
    assert schema.is_optional
    assert converter.from_value("t", schema, None) is None
    assert converter.to_value("t", None) == (schema, None)
    assert converter.name == f"{PACKAGE}.{name}"


@pytest.mark.parametrize(
    ("name", "value"),
    [("Short", 40_000), ("Integer", True), ("Integer", 1.0), ("Float", 1e300), ("Boolean", 1)],
)
def test_a_value_of_another_type_or_range_is_refused(name: str, value: Any) -> None:
    converter = converters.make(f"{name}Converter", {}, is_key=False)

    with pytest.raises(DataError):
        converter.from_value("t", None, value)


def test_bytes_of_another_length_are_refused() -> None:
    with pytest.raises(DataError, match="int32 has 4 bytes, and this has 5: 01 02 03 04 05"):
        converters.make("Integer", {}, is_key=False).to_value("t", b"\x01\x02\x03\x04\x05")
    with pytest.raises(DataError, match="the byte 0 or 1, and this is 02"):
        converters.make("Boolean", {}, is_key=False).to_value("t", b"\x02")


def test_a_converter_refuses_the_schema_of_another_type() -> None:
    with pytest.raises(DataError, match="the schema is string"):
        converters.make("ByteArray", {}, is_key=False).from_value("t", STRING, "x")
    with pytest.raises(DataError, match="the schema is int32"):
        converters.make("LongConverter", {}, is_key=False).from_value("t", INT32, 1)


@pytest.mark.parametrize(
    ("charset", "payload"),
    [
        ("UTF-8", b"\xc3\xbc"),
        ("ISO-8859-1", b"\xfc"),
        ("UTF-16", b"\xfe\xff\x00\xfc"),
        ("UTF-16LE", b"\xfc\x00"),
        ("US-ASCII", b"?"),
    ],
)
def test_texts_are_written_in_the_character_set_of_the_config(charset: str, payload: bytes) -> None:
    converter = converters.make("StringConverter", {"converter.encoding": charset}, is_key=False)

    assert converter.from_value("t", STRING, "ü") == payload
    read = converter.to_value("t", payload)[1]
    assert read == ("?" if charset == "US-ASCII" else "ü")


@pytest.mark.parametrize("name", ["rot13", "base64", "idna", "nope", "unicode_escape"])
def test_what_is_no_character_set_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a character set"):
        converters.make("StringConverter", {"converter.encoding": name}, is_key=False)


def test_other_values_become_their_text_and_bytes_are_refused() -> None:
    converter = converters.make("String", {}, is_key=False)
    value = struct(struct_schema(a=INT32, b=STRING), a=1, b=None)

    assert converter.from_value("t", value.schema, value) == b"Struct{a=1}"
    assert converter.from_value("t", None, {"a": [1, None, True], "b": 1e7}) == (
        b"{a=[1, null, true], b=1.0E7}"
    )
    with pytest.raises(DataError, match="bytes cannot be written as text"):
        converter.from_value("t", BYTES, b"x")


def test_headers_are_read_as_the_smallest_type_that_holds_them() -> None:
    converter = converters.make_for_headers("SimpleHeaderConverter", {})

    schema, value = converter.to_value("t", b'{"a":[1,2.5]}')

    assert value == {"a": [1.0, 2.5]}
    assert schema is not None
    assert schema.type is Type.MAP
    assert converter.from_value("t", schema, value) == b'{"a":[1.0,2.5]}'
    assert converter.to_value("t", b"[" * 100_000)[1] in (b"[" * 100_000, "[" * 100_000)


def test_an_unknown_class_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ConfigError, match=r"no converter is named com\.x\.Avro: there are .*Json"):
        converters.make("com.x.Avro", {}, is_key=False)
    with pytest.raises(ConfigError, match="no converter is named SimpleHeaderConverter"):
        converters.make("SimpleHeaderConverter", {}, is_key=False)


def test_a_wrong_key_is_refused_in_kafkas_words() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value x for configuration schemas\.enable"):
        converters.make("JsonConverter", {"schemas.enable": "x"}, is_key=False)
