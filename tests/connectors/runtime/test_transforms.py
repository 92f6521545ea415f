"""Each transform as its users see it; that all of them equal Java's is judged in the oracles."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from connectors.runtime.transforms import CLASSES
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Header, Record, SinkRecord
from connectors.sdk.schemas import INT32, INT64, OPTIONAL_STRING, STRING, Schema, Struct, Type
from connectors.sdk.testing import sink_record
from tests.builders.connect_values import (
    decimal_schema,
    record,
    schema,
    struct,
    struct_schema,
    timestamp_schema,
)

ORDER = struct_schema("order", id=INT64, note=OPTIONAL_STRING)


def applied(name: str, to: Record, **config: str) -> Record:
    """Apply one transform; keys are written with underscores for dots."""
    props = {key.replace("_", "."): text for key, text in config.items()}
    found = CLASSES[name].make(props)(to)
    assert found is not None
    return found


def test_cast_changes_fields_their_schemas_and_their_defaults() -> None:
    of = struct_schema("o", id=schema(Type.STRING, default="7"), rest=STRING)

    found = applied("Cast$Value", record(struct(of, id="12", rest="x")), spec="id:int8")

    assert found.value_schema is not None
    assert found.value_schema.name == "o"
    id_field = found.value_schema.field("id")
    assert id_field is not None
    assert id_field.schema == schema(Type.INT8, default=7)
    assert found.value.values == {"id": 12, "rest": "x"}


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (300, "int8", 44),
        (3.9, "int32", 3),
        (-3.9, "int64", -3),
        (1e300, "int32", 2**31 - 1),
        (float("nan"), "int64", 0),
        ("+5", "int16", 5),
        ("true", "boolean", True),
        ("yes", "boolean", False),
        (True, "int32", 1),
        (1e7, "string", "1.0E7"),
        (0.1, "float32", 0.10000000149011612),
        (b"ab", "string", "YWI="),
        ("1.5f", "float64", 1.5),
    ],
)
def test_cast_converts_a_whole_value_as_java_does(value: Any, kind: str, expected: Any) -> None:
    assert applied("Cast$Value", record(value), spec=kind).value == expected


@pytest.mark.parametrize(("value", "kind"), [("300", "int8"), (" 5", "int32"), (b"x", "int8")])
def test_cast_refuses_what_does_not_fit(value: Any, kind: str) -> None:
    with pytest.raises(DataError):
        applied("Cast$Value", record(value), spec=kind)


@pytest.mark.parametrize(
    "spec", ["", "a:foo", "int8,int16", "a:b:c", "a:bytes", "int8,a:int8", "bytes"]
)
def test_cast_refuses_a_bad_spec(spec: str) -> None:
    with pytest.raises(ConfigError):
        CLASSES["Cast$Value"].make({"spec": spec})


def test_a_field_is_extracted_by_its_name_or_by_a_path() -> None:
    inner = struct_schema(None, **{"a.b": INT32})
    value = struct(struct_schema(inner=inner), inner=struct(inner, **{"a.b": 5}))
    v2 = {"field_syntax_version": "V2"}

    found = applied("ExtractField$Value", record(value), field="inner.`a.b`", **v2)

    assert (found.value_schema, found.value) == (INT32, 5)
    plain = record({"x": {"y": 1}})
    assert applied("ExtractField$Value", plain, field="x.y", **v2).value == 1
    assert applied("ExtractField$Value", plain, field="x.y").value is None
    with pytest.raises(DataError, match="Unknown field: nope"):
        applied("ExtractField$Value", record(value), field="nope")
    with pytest.raises(ConfigError, match="Incomplete backtick pair"):
        applied("ExtractField$Value", plain, field="`x", **v2)


def test_flatten_names_inner_fields_by_their_way_and_hands_down_what_may_miss() -> None:
    inner = struct_schema(a=INT32, b=schema(Type.STRING, default="x"))
    optional = Schema(type=Type.STRUCT, is_optional=True, fields=inner.fields)
    outer = struct_schema("o", x=INT64, inner=optional)

    found = applied("Flatten$Value", record(struct(outer, x=1)), delimiter="_")

    assert found.value_schema == struct_schema(
        "o",
        x=INT64,
        inner_a=schema(Type.INT32, is_optional=True),
        inner_b=schema(Type.STRING, is_optional=True, default="x"),
    )
    assert found.value.values == {"x": 1}
    plain = applied("Flatten$Value", record({"a": {"b": None, "c": 1}, "d": 2}))
    assert plain.value == {"a.b": None, "a.c": 1, "d": 2}
    with pytest.raises(DataError, match=r"for field a\.b"):
        applied("Flatten$Value", record({"a": {"b": Decimal(1)}}))


def test_fields_are_moved_or_copied_into_headers() -> None:
    value = struct(ORDER, id=1, note="x")
    keys = {"fields": "note", "headers": "h"}

    moved = applied("HeaderFrom$Value", record(value), operation="move", **keys)
    copied = applied("HeaderFrom$Value", record(value), operation="copy", **keys)

    header = Header(name="h", value="x", schema=OPTIONAL_STRING)
    assert (moved.headers, copied.headers) == ((header,), (header,))
    assert moved.value == struct(struct_schema("order", id=INT64), id=1)
    assert copied.value == value
    with pytest.raises(ConfigError, match="same number of elements"):
        applied("HeaderFrom$Value", record(value), operation="copy", fields="a,b", headers="h")


def test_fields_are_inserted_from_the_place_of_a_record() -> None:
    to = sink_record({"a": 1}, topic="orders", partition=3, offset=44, timestamp_ms=5)

    found = applied(
        "InsertField$Value",
        to,
        topic_field="t",
        partition_field="p!",
        offset_field="o?",
        timestamp_field="ts",
        static_field="s",
        static_value="v",
    )

    assert isinstance(found, SinkRecord)
    assert found.value == {"a": 1, "t": "orders", "p": 3, "o": 44, "ts": 5, "s": "v"}
    with pytest.raises(DataError, match=r"offset\.field is for sinks"):
        applied("InsertField$Value", record({}), offset_field="o")


def test_inserted_fields_are_optional_unless_marked() -> None:
    to = record(struct(ORDER, id=1), timestamp_ms=0)

    found = applied("InsertField$Value", to, topic_field="t!", timestamp_field="ts")

    assert found.value_schema is not None
    assert [field.schema for field in found.value_schema.fields[2:]] == [
        STRING,
        timestamp_schema(is_optional=True),
    ]
    assert found.value["ts"] == datetime(1970, 1, 1, tzinfo=UTC)
    with pytest.raises(DataError, match="field p is null"):
        applied("InsertField$Value", to, partition_field="p!")


def test_fields_are_masked_by_nothing_or_by_a_replacement() -> None:
    of = struct_schema(a=INT32, b=STRING, c=decimal_schema(2), d=schema(Type.BOOLEAN))
    value = struct(of, a=5, b="secret", c=Decimal("1.23"), d=True)

    nothing = applied("MaskField$Value", record(value), fields="a,b,c,d")
    replaced = applied("MaskField$Value", record(value), fields="a,b", replacement="42")

    assert nothing.value.values == {"a": 0, "b": "", "c": Decimal("0.00"), "d": False}
    assert str(nothing.value["c"]) == "0.00"
    assert (replaced.value["a"], replaced.value["b"]) == (42, "42")
    with pytest.raises(DataError, match="Cannot mask value of type boolean"):
        applied("MaskField$Value", record(value), fields="d", replacement="1")
    with pytest.raises(DataError, match="Cannot mask value of type: bytes"):
        applied("MaskField$Value", record({"a": b"x"}), fields="a")


def test_fields_are_left_out_and_renamed() -> None:
    value = struct(ORDER, id=1, note="x")

    found = applied("ReplaceField$Value", record(value), exclude="note", renames="id:number")

    assert found.value == struct(struct_schema("order", number=INT64), number=1)
    plain = applied("ReplaceField$Value", record({"a": 1, "b": 2, "c": 3}), include="a,b")
    assert plain.value == {"a": 1, "b": 2}
    with pytest.raises(DataError, match="two fields named 'note'"):
        applied("ReplaceField$Value", record(value), renames="id:note")


def test_a_schema_gets_another_name_and_its_struct_with_it() -> None:
    to = record(struct(ORDER, id=1))

    found = applied("SetSchemaMetadata$Value", to, schema_name="n", schema_version="3")

    assert found.value_schema is not None
    assert (found.value_schema.name, found.value_schema.version) == ("n", 3)
    assert found.value.schema is found.value_schema
    with pytest.raises(ConfigError, match="Neither schema name nor version configured"):
        CLASSES["SetSchemaMetadata$Key"].make({})


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (1_700_000_000_123, "Timestamp", datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)),
        (1_700_000_000_123, "Date", date(2023, 11, 14)),
        (1_700_000_000_123, "string", "2023-11-14 22:13:20"),
        ("2023-11-14 22:13:20", "unix", 1_700_000_000_000),
        (datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC), "unix", 1_700_000_000_000),
        (date(1969, 12, 31), "unix", -86_400_000),
    ],
)
def test_timestamps_are_converted(value: Any, target: str, expected: Any) -> None:
    keys = {"target_type": target, "format": "yyyy-MM-dd HH:mm:ss"}

    assert applied("TimestampConverter$Value", record(value), **keys).value == expected
    found = applied("TimestampConverter$Value", record({"t": value}), field="t", **keys)
    assert found.value == {"t": expected}


def test_a_timestamp_text_without_a_format_is_refused_with_the_key_to_set() -> None:
    with pytest.raises(DataError, match="the key format is not set"):
        applied("TimestampConverter$Value", record("2024"), target_type="unix")
    with pytest.raises(ConfigError, match="requires format option"):
        CLASSES["TimestampConverter$Value"].make({"target.type": "string"})


def test_a_key_is_made_of_fields_of_the_value() -> None:
    found = applied("ValueToKey", record(struct(ORDER, id=1)), fields="id")

    assert found.key == struct(struct_schema(id=INT64), id=1)
    assert applied("ValueToKey", record({"a": 1}), fields="a,b").key == {"a": 1, "b": None}
    with pytest.raises(DataError, match="Field does not exist: x"):
        applied("ValueToKey", record(struct(ORDER, id=1)), fields="x")


def test_headers_are_dropped_and_inserted() -> None:
    to = record(1, headers=(Header(name="a", value=1), Header(name="b", value=2)))

    dropped = applied("DropHeaders", to, headers="a")
    inserted = applied("InsertHeader", to, header="c", value_literal="7")

    assert dropped.headers == (Header(name="b", value=2),)
    assert inserted.headers[2] == Header(name="c", value=7, schema=schema(Type.INT8))


@pytest.mark.parametrize(
    ("regex", "replacement", "topic"),
    [
        ("(.*)ders", "new-$1", "new-or"),
        ("(o|or).*s", "x", "x"),
        ("nothing", "x", "orders"),
        ("o(?P<rest>.*)", "${rest}\\$", "rders$"),
        ("o(r)?(x)?.*", "$1$2", "r"),
        ("(o|orders)", "$10", "o0rders"),
    ],
)
def test_a_topic_is_renamed_by_a_regular_expression(
    regex: str, replacement: str, topic: str
) -> None:
    found = applied("RegexRouter", record(1), regex=regex, replacement=replacement)

    assert found.topic == topic


@pytest.mark.parametrize(
    ("regex", "replacement"), [("(?=a)a", "x"), ("a", "$1"), ("a", "$"), ("a", "\\"), ("a", "${x}")]
)
def test_what_a_regex_or_its_replacement_cannot_be_is_refused(regex: str, replacement: str) -> None:
    with pytest.raises(ConfigError):
        CLASSES["RegexRouter"].make({"regex": regex, "replacement": replacement})


def test_a_topic_gets_its_timestamp() -> None:
    to = record(1, timestamp_ms=1_700_000_000_000)

    assert applied("TimestampRouter", to).topic == "orders-20231114"
    with pytest.raises(DataError, match="Timestamp missing"):
        applied("TimestampRouter", record(1))
    with pytest.raises(ConfigError, match="the weeks of the host's locale"):
        CLASSES["TimestampRouter"].make({"timestamp.format": "YYYY"})


def test_a_hoisted_null_needs_a_schema_that_allows_it() -> None:
    assert applied("HoistField$Value", record(None), field="a").value == {"a": None}
    with pytest.raises(DataError, match="field a is null"):
        applied("HoistField$Value", record(None, of=STRING), field="a")


def test_schemas_of_a_stream_are_made_once() -> None:
    transform = CLASSES["ReplaceField$Value"].make({"exclude": "note"})

    found = [transform(record(Struct(ORDER, {"id": number}))) for number in range(3)]

    assert len({id(one.value_schema) for one in found if one}) == 1
