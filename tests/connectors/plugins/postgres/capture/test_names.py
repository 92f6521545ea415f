"""Names as Avro takes them; those of Debezium 3.6 for the same tables."""

from dataclasses import replace

import pytest

from connectors.plugins.postgres.capture.event_settings import Adjustment
from connectors.plugins.postgres.capture.names import of_field, of_schema
from connectors.plugins.postgres.capture.relations import Column, Operation, Table
from connectors.sdk.errors import DataError
from tests.connectors.plugins.postgres.capture.rows import INT4, ORDERS, change


@pytest.mark.parametrize(
    ("name", "avro", "unicode"),
    [
        ("1 id", "_1_id", "_u0031_u0020id"),
        ("Co l-1", "Co_l_1", "Co_u0020l_u002d1"),
        ("ö€", "__", "_u00f6_u20ac"),
        ("a_b", "a_b", "a_u005fb"),
        ("_x", "_x", "_u005fx"),
        ("c.b", "c_b", "c_u002eb"),
        ("😀", "_", "_ud83d_ude00"),
    ],
)
def test_a_field_is_named_by_letters_digits_and_underscores(
    name: str, avro: str, unicode: str
) -> None:
    assert of_field(name, Adjustment.NONE) == name
    assert of_field(name, Adjustment.AVRO) == avro
    assert of_field(name, Adjustment.AVRO_UNICODE) == unicode


def test_a_schema_keeps_its_dots() -> None:
    name = "9my-p.public.1_We-ird_N_me.Key"

    assert of_schema(name, Adjustment.AVRO) == "_9my_p.public.1_We_ird_N_me.Key"
    assert of_schema(name, Adjustment.AVRO_UNICODE) == (
        "_u0039my_u002dp.public.1_u005fWe_u002dird_u005fN_u005fme.Key"
    )


def test_events_have_adjusted_names_and_topics_keep_theirs() -> None:
    (record,) = change(
        Operation.CREATE,
        after=("1", "a", "open"),
        table=replace(ORDERS, name="new-orders"),
        schema_names=Adjustment.AVRO,
        field_names=Adjustment.AVRO_UNICODE,
    )

    assert record.topic == "p.public.new-orders"
    assert record.value_schema is not None
    assert record.value_schema.name == "p.public.new_orders.Envelope"
    assert record.value["after"].schema.name == "p.public.new_orders.Value"


def test_two_columns_that_would_have_one_name_are_refused() -> None:
    columns = tuple(Column(name=name, type=INT4) for name in ("a-b", "a b"))
    table = Table(schema="s", name="t", columns=columns)

    with pytest.raises(DataError, match=r"columns a-b and a b of s\.t are both named a_b"):
        change(Operation.CREATE, after=("1", "2"), table=table, field_names=Adjustment.AVRO)
