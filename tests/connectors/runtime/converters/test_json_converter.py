"""JSON with and without schemas: what comes back, and what is refused."""

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from connectors.runtime import converters
from connectors.runtime.converters import json_converter
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.schemas import INT32, OPTIONAL_STRING, STRING, Schema, Struct, Type
from tests.builders.connect_values import (
    date_schema,
    decimal_schema,
    schema,
    struct,
    struct_schema,
    time_schema,
    timestamp_schema,
)

ALL = struct_schema(
    "all",
    small=schema(Type.INT8),
    short=schema(Type.INT16),
    whole=INT32,
    long=schema(Type.INT64),
    real=schema(Type.FLOAT32),
    double=schema(Type.FLOAT64),
    flag=schema(Type.BOOLEAN),
    text=STRING,
    raw=schema(Type.BYTES),
    list=Schema(type=Type.ARRAY, value_schema=INT32),
    map=Schema(type=Type.MAP, key_schema=STRING, value_schema=OPTIONAL_STRING),
    pairs=Schema(type=Type.MAP, key_schema=INT32, value_schema=STRING),
    inner=struct_schema(a=INT32),
    price=decimal_schema(2),
    day=date_schema(),
    clock=time_schema(),
    when=timestamp_schema(),
)
FULL = struct(
    ALL,
    small=-128,
    short=32767,
    whole=-1,
    long=1 << 62,
    real=0.5,
    double=1e300,
    flag=True,
    text='quoted " text, ünïcode',
    raw=b"\x00\xff",
    list=[1, 2],
    map={"a": "b", "c": None},
    pairs={1: "one"},
    inner=struct(struct_schema(a=INT32), a=7),
    price=Decimal("-12.30"),
    day=date(2024, 2, 29),
    clock=time(23, 59, 59, 999000),
    when=datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=UTC),
)


def made(**config: str) -> converters.Converter:
    props = {name.replace("_", "."): text for name, text in config.items()}
    return converters.make("org.apache.kafka.connect.json.JsonConverter", props, is_key=False)


def payload_of(payload: bytes | None) -> Any:
    assert payload is not None
    return json.loads(payload)["payload"]


@pytest.mark.parametrize("decimals", ["BASE64", "numeric"])
def test_a_value_of_every_type_comes_back_as_it_was(decimals: str) -> None:
    converter = made(decimal_format=decimals)

    payload = converter.from_value("t", ALL, FULL)

    assert converter.to_value("t", payload) == (ALL, FULL)
    # The second time the schema is known by its bytes.
    assert converter.to_value("t", payload) == (ALL, FULL)


def test_decimals_are_bytes_or_numbers() -> None:
    price = decimal_schema(2)

    as_bytes = made().from_value("t", price, Decimal("12.30"))
    as_number = made(decimal_format="NUMERIC").from_value("t", price, Decimal("12.30"))

    assert payload_of(as_bytes) == "BM4="
    assert as_number is not None
    assert as_number.endswith(b'"payload":12.30}')
    assert made().to_value("t", as_number)[1] == Decimal("12.30")


def test_the_default_of_a_decimal_keeps_its_digits_as_a_number() -> None:
    of = struct_schema(price=decimal_schema(2, default=Decimal("12.30"), is_optional=True))
    numeric = made(decimal_format="NUMERIC")

    schema, value = made().to_value("t", numeric.from_value("t", of, struct(of)))

    assert schema == of
    assert str(value["price"]) == "12.30"
    assert made().from_value("t", schema, value) == made().from_value("t", of, struct(of))


def test_blanks_between_schema_and_payload_make_no_difference() -> None:
    of = struct_schema(a=INT32)
    tight = made().from_value("t", of, struct(of, a=5))
    assert tight is not None
    wide = json.dumps(json.loads(tight), indent=1).encode()
    converter = made()

    assert converter.to_value("t", wide) == converter.to_value("t", wide) == (of, struct(of, a=5))
    assert len(vars(converter)["_by_start"]) == 1


def test_a_decimal_of_another_scale_than_its_schema_is_refused() -> None:
    with pytest.raises(DataError, match="scale 1, and the schema has 2"):
        made().from_value("t", decimal_schema(2), Decimal("1.5"))


def test_a_null_becomes_the_default_of_its_field_only_where_the_config_says_so() -> None:
    of = struct_schema(a=schema(Type.STRING, is_optional=True, default="x"))
    value = struct(of, a=None)
    kept = made(replace_null_with_default="false")

    assert payload_of(made().from_value("t", of, value)) == {"a": "x"}
    assert payload_of(kept.from_value("t", of, value)) == {"a": None}
    assert kept.to_value("t", kept.from_value("t", of, value))[1] == struct(of, a=None)
    assert made().to_value("t", kept.from_value("t", of, value))[1] == struct(of, a="x")


def test_a_null_that_is_not_allowed_is_refused_with_the_name_of_its_field() -> None:
    of = struct_schema(a=STRING)

    with pytest.raises(DataError, match=r"field a: .*null value for field that is required"):
        made().from_value("t", of, struct(of))
    told = b'{"schema":{"type":"struct","fields":[{"type":"string","field":"a"}]},"payload":{}}'
    with pytest.raises(DataError, match="field a: Invalid null value for required string field"):
        made().to_value("t", told)


def test_without_schemas_values_are_what_json_has() -> None:
    plain = made(schemas_enable="false")
    value = {"a": [1, 2.5, None, True, "x"], "b": {"c": -1}}

    payload = plain.from_value("t", None, value)

    assert plain.to_value("t", payload) == (None, value)
    assert plain.to_value("t", b'{"big": 18446744073709551617}') == (None, {"big": 1})
    assert plain.from_value("t", OPTIONAL_STRING, None) == b"null"
    assert plain.from_value("t", None, None) is None


def test_what_has_no_schema_but_is_no_json_is_written_as_java_does_or_refused() -> None:
    plain = made(schemas_enable="false")

    assert plain.from_value("t", None, {1: b"x", "a": float("nan")}) == b'[[1,"eA=="],["a","NaN"]]'
    with pytest.raises(DataError, match="datetime without a schema"):
        plain.from_value("t", None, datetime(2024, 1, 1, tzinfo=UTC))


def test_a_tombstone_is_a_null_without_schema() -> None:
    assert made().to_value("t", None) == (None, None)


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        (b'{"a":1}', "requires .schema. and .payload. fields"),
        (b'{"schema":null,"payload":1,"more":2}', "may not contain additional fields"),
        (b"not json", "failed due to serialization error"),
        (b"", "failed due to serialization error"),
        (b"[" * 100_000, "serialization error|too deep"),
        (b"\xff", "serialization error"),
        (b'{"schema":{},"payload":1}', "must contain 'type' field"),
        (b'{"schema":{"type":"nope"},"payload":1}', "Unknown schema type: nope"),
        (b'{"schema":{"type":"array"},"payload":[]}', "did not specify its 'items'"),
        (b'{"schema":{"type":"struct"},"payload":{}}', "is not an array"),
        (b'{"schema":{"type":"struct","fields":[{"type":"int8"}]},"payload":{}}', "field name"),
        (b'{"schema":{"type":"int8"},"payload":"x"}', "the schema says int8, and the value is 'x'"),
        (b'{"schema":{"type":"int8"},"payload":128}', "the schema says int8, and the value is"),
        (b'{"schema":{"type":"int8"},"payload":1.5}', "the schema says int8, and the value is"),
        (b'{"schema":{"type":"int32"},"payload":1e400}', "the schema says int32"),
        (b'{"schema":{"type":"bytes"},"payload":"%%"}', "base64"),
        (b'{"schema":{"type":"string"},"payload":NaN}', "JSON has no number NaN"),
        (b'{"schema":{"type":"boolean"},"payload":1}', "the schema says boolean"),
    ],
)
def test_bad_messages_are_refused_with_the_reason(payload: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        made().to_value("t", payload)


def test_a_number_beyond_every_decimal_is_refused() -> None:
    price = made().from_value("t", decimal_schema(2), Decimal("1.00"))
    assert price is not None

    for number in (b"1e99999999999999999999", b"9" * 1001):
        with pytest.raises(DataError):
            made().to_value("t", price.replace(b'"ZA=="', number))


def test_a_schema_nested_without_end_is_refused() -> None:
    depth = 200
    told = '{"type":"array","items":' * depth + '{"type":"int8"}' + "}" * depth

    with pytest.raises(DataError, match="nested deeper than 64 levels"):
        made().to_value("t", f'{{"schema":{told},"payload":[]}}'.encode())


def test_a_schema_that_holds_the_word_payload_is_not_mistaken_for_the_end_of_one() -> None:
    of = Schema(type=Type.STRING, parameters={"a": "b", "payload": "c"}, doc='","payload":"')
    converter = made()
    payload = converter.from_value("t", of, "x")

    assert converter.to_value("t", payload) == (of, "x")
    assert converter.to_value("t", payload) == (of, "x")


def test_a_message_with_more_keys_is_refused_also_where_its_schema_is_known() -> None:
    converter = made()
    converter.to_value("t", b'{"schema":{"type":"int8"},"payload":1}')

    with pytest.raises(DataError, match="may not contain additional fields"):
        converter.to_value("t", b'{"schema":{"type":"int8"},"payload":1,"x":2}')


def test_a_schema_in_the_config_serves_messages_without_one() -> None:
    text = '{"type":"struct","fields":[{"type":"int32","field":"a"}]}'
    converter = made(schema_content=text)

    assert converter.to_value("t", b'{"a": 5}')[1] == Struct(struct_schema(a=INT32), {"a": 5})
    with pytest.raises(ConfigError, match=r"schema\.content is not a schema: Unknown schema type"):
        made(schema_content='{"type":"x"}')


def test_known_schemas_are_bounded() -> None:
    converter = made(schemas_cache_size="2")

    for version in range(10):
        of = Schema(type=Type.INT8, version=version)
        assert converter.to_value("t", converter.from_value("t", of, 1)) == (of, 1)

    assert len(vars(converter)["_by_start"]) == len(vars(converter)["_by_text"]) == 2


def test_large_schemas_of_strangers_are_forgotten_before_they_fill_the_memory() -> None:
    converter = made()
    large = "x" * (json_converter.MAX_KEPT_CHARS // 3)

    for version in range(5):
        told = f'{{"schema":{{"type":"int8","version":{version},"doc":"{large}"}},"payload":1}}'
        assert converter.to_value("t", told.encode())[1] == 1

    assert len(vars(converter)["_by_start"]) == len(vars(converter)["_by_text"]) == 2
