"""Defaults of columns, as PostgreSQL keeps them, in schemas."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from connectors.plugins.postgres.capture.column_kinds import kind_of
from connectors.plugins.postgres.capture.relations import Column, DataType
from connectors.sdk.schemas import Schema
from tests.connectors.plugins.postgres.capture.rows import SETTINGS, array_of, built_in

NUMERIC_5_2 = (5 << 16 | 2) + 4


def schema_of(type_: DataType, default: str, *, modifier: int = -1) -> Schema:
    column = Column(name="it", type=type_, modifier=modifier, default=default)
    kind = kind_of(column, SETTINGS)
    assert kind is not None
    return kind.schema


@pytest.mark.parametrize(
    ("name", "modifier", "expression", "default"),
    [
        ("bool", -1, "true", True),
        ("int4", -1, "'-5'::integer", -5),
        ("int8", -1, "nextval('x'::regclass)", 0),
        ("float8", -1, "'10000000000'::numeric", 1e10),
        ("numeric", NUMERIC_5_2, "1.5", Decimal("1.50")),
        ("text", -1, "'it''s'::text", "it's"),
        ("text", -1, "E'a\\\\b\\n'::text", "a\\b\n"),
        ("varchar", -1, "'a::b'::character varying", "a::b"),
        ("varchar", -1, "upper('a'::text)", ""),
        ("timestamp", 3, "'2024-01-01 00:00:00'::timestamp without time zone", 1_704_067_200_000),
        ("timestamp", -1, "(now() AT TIME ZONE 'utc'::text)", 0),
        ("timestamptz", -1, "CURRENT_TIMESTAMP", "1970-01-01T00:00:00.000000Z"),
        ("uuid", -1, "gen_random_uuid()", "00000000-0000-0000-0000-000000000000"),
        ("jsonb", -1, "'[]'::jsonb", "[]"),
        ("interval", -1, "'1 day'::interval", 86_400_000_000),
        ("bit", 3, "B'101'::\"bit\"", b"\x05"),
    ],
)
def test_a_default_is_told_by_the_schema(
    name: str, modifier: int, expression: str, default: Any
) -> None:
    schema = schema_of(built_in(name), expression, modifier=modifier)

    assert (schema.default, schema.has_default) == (default, True)


@pytest.mark.parametrize(
    ("type_", "expression"),
    [
        (built_in("int4"), "(1 + 1)"),
        (built_in("text"), "('a'::text || 'b'::text)"),
        (built_in("text"), "NULL::text"),
        (built_in("date"), "NULL::date"),
        (built_in("numeric"), "1.25"),
        (built_in("inet"), "'10.0.0.1'::inet"),
        (array_of(built_in("int4")), "'{1}'::integer[]"),
        (DataType(oid=20_000, name="citext"), "'a'::citext"),
    ],
)
def test_what_has_no_default_in_debezium_has_none_here(type_: DataType, expression: str) -> None:
    assert not schema_of(type_, expression).has_default


def test_what_is_never_null_is_told_by_its_default_where_the_log_lacks_it() -> None:
    column = Column(name="it", type=built_in("int4"), is_optional=False, default="7")

    kind, optional = (
        kind_of(column, SETTINGS),
        kind_of(replace(column, is_optional=True), SETTINGS),
    )

    assert kind is not None
    assert optional is not None
    assert (kind.fallback, optional.fallback) == (7, None)
