"""Changes become Debezium's records: keys, envelopes, names of topics, tombstones."""

import pytest

from connectors.plugins.postgres.capture.events import NEW_KEY, OLD_KEY
from connectors.plugins.postgres.capture.relations import (
    UNCHANGED,
    Column,
    Operation,
    Table,
)
from connectors.sdk.errors import DataError
from tests.connectors.plugins.postgres.capture.rows import (
    INT4,
    NOW_NS,
    ORDERS,
    TEXT,
    change,
)


def test_a_new_row_is_told_with_its_key_and_its_place_in_the_log() -> None:
    (record,) = change(Operation.CREATE, after=("1", "a", "open"))

    assert record.topic == "p.public.orders"
    assert record.key.values == {"id": 1}
    assert record.value["op"] == "c"
    assert record.value["before"] is None
    assert record.value["after"].values == {"id": 1, "note": "a", "state": "open"}
    assert record.value["ts_ns"] == NOW_NS
    source = record.value["source"]
    assert (source["db"], source["schema"], source["table"]) == ("shop", "public", "orders")
    assert source["sequence"] == '["4000","4711"]'
    assert source["ts_ns"] == 1_700_000_000_000_007_000


def test_a_deleted_row_leaves_an_event_and_a_tombstone() -> None:
    deleted, tombstone = change(Operation.DELETE, before=("1", None, None))

    # A NOT NULL column that the log lacks has the zero of its type.
    assert deleted.value["before"].values == {"id": 1, "note": None, "state": ""}
    assert tombstone.key == deleted.key
    assert (tombstone.value, tombstone.value_schema) == (None, None)


def test_tombstones_can_be_left_out() -> None:
    (deleted,) = change(Operation.DELETE, before=("1", None, None), has_tombstones=False)

    assert deleted.value["op"] == "d"


def test_an_update_that_changes_the_key_ends_one_row_and_begins_another() -> None:
    deleted, tombstone, created = change(
        Operation.UPDATE, before=("1", None, None), after=("2", "a", "open")
    )

    assert [deleted.value["op"], tombstone.value, created.value["op"]] == ["d", None, "c"]
    assert (deleted.key["id"], tombstone.key["id"], created.key["id"]) == (1, 1, 2)
    assert [(one.name, one.value["id"]) for one in deleted.headers] == [(NEW_KEY, 2)]
    assert [(one.name, one.value["id"]) for one in created.headers] == [(OLD_KEY, 1)]


def test_an_update_that_keeps_the_key_is_one_event() -> None:
    (record,) = change(Operation.UPDATE, before=("1", "a", "open"), after=("1", "b", "done"))

    assert record.value["op"] == "u"
    assert record.value["before"]["note"] == "a"


def test_a_large_value_that_was_left_alone_is_told_by_the_placeholder() -> None:
    (record,) = change(Operation.UPDATE, after=("1", UNCHANGED, "done"), placeholder="gone")

    assert record.value["after"]["note"] == "gone"


def test_a_large_value_that_was_left_alone_is_taken_from_the_row_before() -> None:
    (record,) = change(
        Operation.UPDATE, before=("1", "large", "open"), after=("1", UNCHANGED, "done")
    )

    assert record.value["after"]["note"] == "large"


def test_a_truncation_is_skipped_unless_it_is_asked_for() -> None:
    assert change(Operation.TRUNCATE) == []

    (record,) = change(Operation.TRUNCATE, skipped=frozenset())

    assert (record.key, record.value["op"]) == (None, "t")


def test_a_table_without_a_key_has_no_keys_and_no_tombstones() -> None:
    table = Table(schema="public", name="lines", columns=(Column(name="line", type=TEXT),))

    (record,) = change(Operation.DELETE, before=("a",), table=table)

    assert (record.key, record.key_schema) == (None, None)


def test_a_topic_has_only_characters_that_kafka_takes() -> None:
    table = Table(schema="public", name="größe & co", columns=(Column(name="id", type=INT4),))

    (record,) = change(Operation.CREATE, after=("1",), table=table)

    assert record.topic == "p.public.gr__e___co"


def test_a_cell_of_another_form_is_refused_by_its_column() -> None:
    table = Table(schema="s", name="t", columns=(Column(name="day", type=ORDERS.columns[0].type),))

    with pytest.raises(DataError, match=r"column day of s\.t, of type int4"):
        change(Operation.CREATE, after=("2024-01-01",), table=table)


def test_a_key_has_its_own_order() -> None:
    columns = tuple(Column(name=name, type=INT4, is_key=True) for name in "ab")
    table = Table(schema="s", name="t", columns=columns, key=("b", "a"))

    (record,) = change(Operation.CREATE, after=("1", "2"), table=table)

    assert record.key_schema is not None
    assert [field.name for field in record.key_schema.fields] == ["b", "a"]
    assert record.key.values == {"a": 1, "b": 2}
