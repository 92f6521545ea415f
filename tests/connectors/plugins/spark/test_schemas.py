"""Schemas that records have by themselves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.plugins.spark.schemas import (
    Type,
    columns_ddl,
    from_json,
    merged,
    parse,
    to_json,
)
from connectors.sdk.errors import ConnectorError, DataError

FOUND = "OBJECT<id: BIGINT, price: DECIMAL(3,1), tags: ARRAY<OBJECT<`a b`: STRING>>, x: VOID>"


def test_what_spark_says_becomes_columns() -> None:
    assert columns_ddl(parse(FOUND)) == (
        "`id` BIGINT, `price` DOUBLE, `tags` ARRAY<STRUCT<`a b`: STRING>>"
    )


def test_what_is_now_this_and_then_that_is_text() -> None:
    assert columns_ddl(parse("OBJECT<a: VARIANT, d: DATE>")) == "`a` STRING, `d` STRING"


def test_a_column_without_any_value_has_no_type_yet() -> None:
    assert parse("OBJECT<a: VOID, b: ARRAY<VOID>, c: OBJECT<d: VOID>>") == {}


@pytest.mark.parametrize("text", ["BIGINT", "ARRAY<STRING>", "OBJECT<a BIGINT>", "OBJECT<a: ", ""])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(DataError, match=r"value\.schema"):
        parse(text)


def test_a_column_keeps_its_type_and_new_ones_come_behind() -> None:
    kept = parse("OBJECT<a: BIGINT, s: OBJECT<x: STRING>>")
    found = parse("OBJECT<b: STRING, a: DOUBLE, s: OBJECT<y: BIGINT, x: BIGINT>>")

    assert columns_ddl(merged(kept, found)) == (
        "`a` BIGINT, `s` STRUCT<`x`: STRING, `y`: BIGINT>, `b` STRING"
    )


def test_fields_that_tables_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(ConnectorError, match=r"'id' and 'ID'"):
        merged(parse("OBJECT<id: BIGINT>"), parse("OBJECT<ID: BIGINT>"))


NAMES = st.text(alphabet="ab `<>:,1é", min_size=1, max_size=6)
TYPES = st.recursive(
    st.sampled_from([Type(atom=atom) for atom in ("BIGINT", "STRING", "DOUBLE", "BOOLEAN")]),
    lambda inner: (
        inner.map(lambda one: Type(element=one))
        | st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(lambda f: Type(fields=f))
    ),
    max_leaves=8,
)


def said(type_: Type) -> str:
    """Return Spark's word for a type."""
    if type_.atom:
        return type_.atom
    if type_.element is not None:
        return f"ARRAY<{said(type_.element)}>"
    inner = ", ".join(f"`{n.replace('`', '``')}`: {said(t)}" for n, t in type_.fields.items())
    return f"OBJECT<{inner}>"


@given(st.dictionaries(NAMES, TYPES, min_size=1, max_size=4))
def test_any_schema_is_read_back_and_kept(columns: dict[str, Type]) -> None:
    assert parse(said(Type(fields=columns))) == columns
    assert from_json(to_json(columns)) == columns
