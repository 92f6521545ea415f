"""What cells of each type become; that Debezium makes the same of them is shown beside it."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from connectors.plugins.postgres.capture.event_settings import (
    Binaries,
    Decimals,
    Hstores,
    Intervals,
    Times,
)
from connectors.plugins.postgres.capture.relations import (
    UNCHANGED,
    Column,
    DataType,
    Operation,
    Table,
)
from connectors.sdk.errors import DataError
from tests.connectors.plugins.postgres.capture.rows import (
    INT4,
    TEXT,
    array_of,
    built_in,
    change,
    of_extension,
    told_row,
    value_of,
)

# How a type holds 5 digits, 2 of them behind the point; and 5, with two zeros before it.
NUMERIC_5_2 = (5 << 16 | 2) + 4
NUMERIC_5_MINUS_2 = (5 << 16 | 2046) + 4
MOOD = DataType(oid=20_001, name="mood", labels=("sad", "ok"))


@pytest.mark.parametrize(
    ("name", "modifier", "text", "value"),
    [
        ("bool", -1, "t", True),
        ("int8", -1, "-9", -9),
        ("float4", -1, "1.5", 1.5),
        ("numeric", NUMERIC_5_2, "12.30", Decimal("12.30")),
        ("numeric", NUMERIC_5_MINUS_2, "12300", Decimal("123E2")),
        ("money", -1, "-$1,234.56", Decimal("-1234.56")),
        ("bytea", -1, "\\xdead", b"\xde\xad"),
        ("bit", 1, "1", True),
        ("bit", 20, "10100000000000000001", b"\x01\x00\x0a"),
        ("varbit", -1, "0000000000", b""),
        ("timestamp", 3, "2024-01-02 03:04:05.123", 1_704_164_645_123),
        ("timestamp", -1, "2024-01-02 03:04:05.123456", 1_704_164_645_123_456),
        ("timestamptz", -1, "2024-01-02 01:04:05+00", "2024-01-02T01:04:05.000000Z"),
        ("timestamptz", 2, "infinity", "infinity"),
        ("date", -1, "2024-02-29", 19_782),
        ("date", -1, "-infinity", -(2**31)),
        ("time", -1, "24:00:00", 86_400_000_000),
        ("timetz", -1, "03:04:05.5+02", "01:04:05.5Z"),
        ("interval", -1, "1 year 2 mons 3 days 04:05:06.789", 37_091_106_789_000),
        ("jsonb", -1, '{"a": 1}', '{"a": 1}'),
    ],
)
def test_a_cell_becomes_a_value(name: str, modifier: int, text: str, value: Any) -> None:
    found = value_of(built_in(name), text, modifier=modifier)

    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "settings", "value"),
    [
        ("numeric", "NaN", {"decimals": Decimals.STRING}, "NAN"),
        ("numeric", "1.50", {"decimals": Decimals.DOUBLE}, 1.5),
        ("bytea", "\\xfbff", {"binaries": Binaries.BASE64_URL_SAFE}, "-_8="),
        ("bytea", "\\xfbff", {"binaries": Binaries.HEX}, "fbff"),
        ("interval", "-1 mons", {"intervals": Intervals.STRING}, "P0Y-1M0DT0H0M0S"),
        ("date", "2024-02-29", {"times": Times.CONNECT}, date(2024, 2, 29)),
        ("time", "03:04:05", {"times": Times.CONNECT}, time(3, 4, 5)),
        ("time", "03:04:05.5", {"times": Times.ISOSTRING}, "03:04:05.5Z"),
        (
            "timestamp",
            "2024-01-02 03:04:05.123456",
            {"times": Times.CONNECT},
            datetime(2024, 1, 2, 3, 4, 5, 123_000, tzinfo=UTC),
        ),
        (
            "timestamp",
            "2024-01-02 03:04:05",
            {"times": Times.NANOSECONDS},
            1_704_164_645_000_000_000,
        ),
    ],
)
def test_a_config_chooses_how_values_are_told(
    name: str, text: str, settings: Any, value: Any
) -> None:
    assert value_of(built_in(name), text, **settings) == value


def test_a_number_without_a_scale_tells_its_own() -> None:
    told = value_of(built_in("numeric"), "-12.50")

    assert told.values == {"scale": 1, "value": b"\x83"}


def test_a_point_is_told_in_well_known_binary_too() -> None:
    told = value_of(built_in("point"), "(1.5,-2)")

    assert (told["x"], told["y"]) == (1.5, -2.0)
    assert told["wkb"].hex() == "0101000000000000000000f83f00000000000000c0"


def test_an_hstore_is_json_or_a_map() -> None:
    hstore, text = of_extension("hstore"), '"a"=>"1", "b"=>NULL'

    assert value_of(hstore, text) == '{"a":"1","b":null}'
    assert value_of(hstore, text, hstores=Hstores.MAP) == {"a": "1", "b": None}


def test_a_shape_tells_its_reference_system() -> None:
    text = "0101000020e61000000000000000000840000000000000f03f"

    told = value_of(of_extension("geometry"), text)

    assert (told["wkb"].hex(), told["srid"]) == (text, 4326)
    assert value_of(of_extension("geography"), text[:2] + "01000000" + text[18:])["srid"] is None


@pytest.mark.parametrize("text", ["", "01", "02010000000000", "0x"])
def test_what_is_no_shape_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="of type geometry"):
        value_of(of_extension("geometry"), text)


def test_vectors_are_arrays_or_say_where_their_numbers_are() -> None:
    assert value_of(of_extension("halfvec"), "[1,-2.5]") == [1.0, -2.5]
    sparse = value_of(of_extension("sparsevec"), "{1:1.5,3:2}/5")
    assert sparse.values == {"dimensions": 5, "vector": {1: 1.5, 3: 2.0}}


def test_a_sparse_vector_beyond_its_schema_is_refused() -> None:
    with pytest.raises(DataError, match="schema allows 32767"):
        value_of(of_extension("sparsevec"), "{1:1}/40000")


def test_an_enum_tells_what_it_allows() -> None:
    table = Table(schema="s", name="t", columns=(Column(name="it", type=MOOD),))

    (record,) = change(Operation.CREATE, after=("ok",), table=table)

    (field,) = record.value["after"].schema.fields
    assert field.schema.parameters == {"allowed": "sad,ok"}


def test_a_domain_is_what_it_narrows() -> None:
    price = DataType(oid=20_002, name="price", base=built_in("numeric"), base_modifier=NUMERIC_5_2)
    cheap = DataType(oid=20_003, name="cheap", base=price)

    assert value_of(cheap, "1.50") == Decimal("1.50")


@pytest.mark.parametrize(
    ("element", "text", "value"),
    [
        (INT4, "{1,NULL}", [1, None]),
        (TEXT, '{"a,b"}', ["a,b"]),
        (MOOD, "{ok}", ["ok"]),
        (built_in("time"), "{03:04:05.123456}", [11_045_123_456]),
    ],
)
def test_an_array_has_values_of_its_elements(element: DataType, text: str, value: Any) -> None:
    assert value_of(array_of(element), text) == value


@pytest.mark.parametrize(
    "type_", [built_in("circle"), of_extension("int4"), array_of(built_in("money"))]
)
def test_an_unknown_type_is_left_out_or_told_as_bytes(type_: DataType) -> None:
    assert told_row(type_, "<>") == {}
    assert value_of(type_, "<>", has_unknown_types=True) == b"<>"


@pytest.mark.parametrize(
    ("name", "text", "settings", "told"),
    [
        ("numeric", "NaN", {}, "decimal.handling.mode"),
        ("time", "24:00:00", {"times": Times.CONNECT}, "time.precision.mode"),
        ("date", "0044-03-15 BC", {"times": Times.CONNECT}, "1 to 9999"),
        ("timestamp", "infinity", {"times": Times.CONNECT}, "1 to 9999"),
        ("timestamp", "1500-01-01 00:00:00", {"times": Times.NANOSECONDS}, "1678 to 2261"),
        ("bool", "true", {}, "no boolean"),
        ("bytea", "abc", {}, "hex format"),
    ],
)
def test_a_value_that_would_be_lost_is_refused(
    name: str, text: str, settings: Any, told: str
) -> None:
    with pytest.raises(DataError, match=told):
        value_of(built_in(name), text, **settings)


@pytest.mark.parametrize(
    ("type_", "told"),
    [
        (TEXT, "gone"),
        (built_in("bytea"), b"gone"),
        (of_extension("hstore"), '{"gone":"gone"}'),
        (array_of(TEXT), ["gone"]),
        (array_of(INT4), [103, 111, 110, 101]),
        (array_of(built_in("float8")), [103.0, 111.0, 110.0, 101.0]),
        (array_of(built_in("timestamptz")), ["gone"]),
        (of_extension("vector"), [103.0, 111.0, 110.0, 101.0]),
        (array_of(built_in("uuid")), ["50c1f58b-e7f5-347e-8f53-d64c094783c2"]),
    ],
)
def test_a_value_that_the_log_lacks_is_told_by_the_placeholder(type_: DataType, told: Any) -> None:
    assert value_of(type_, UNCHANGED, placeholder="gone") == told


def test_a_value_that_the_log_lacks_and_no_placeholder_tells_is_refused() -> None:
    with pytest.raises(DataError, match="REPLICA IDENTITY"):
        value_of(array_of(built_in("bool")), UNCHANGED)
