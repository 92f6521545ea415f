"""ExtractNewRecordState as its users see it; that it equals Java's is judged by the oracle."""

from dataclasses import replace
from typing import Any

import pytest

from connectors.runtime.transforms import CLASSES
from connectors.sdk.errors import ConfigError, DataError
from connectors.sdk.records import Header, Record
from connectors.sdk.schemas import INT64, OPTIONAL_STRING, STRING, Schema, Struct, Type
from tests.builders.connect_values import struct_schema

NAME = "io.debezium.transforms.ExtractNewRecordState"
ROW = replace(struct_schema("orders.Value", id=INT64, note=OPTIONAL_STRING), is_optional=True)
SOURCE = struct_schema("source", ts_ms=INT64, table=STRING)
EVENT = struct_schema(
    "orders.Envelope", before=ROW, after=ROW, source=SOURCE, op=STRING, ts_ms=INT64
)
KEY = struct_schema("orders.Key", id=INT64)


def event(op: str, *, before: Any = None, after: Any = None, headers: Any = ()) -> Record:
    rows = {
        name: None if row is None else Struct(ROW, row)
        for name, row in (("before", before), ("after", after))
    }
    source = Struct(SOURCE, {"ts_ms": 7, "table": "orders"})
    value = Struct(EVENT, {**rows, "source": source, "op": op, "ts_ms": 8})
    return Record(
        topic="shop.orders",
        key=Struct(KEY, {"id": 1}),
        key_schema=KEY,
        value=value,
        value_schema=EVENT,
        headers=headers,
    )


CREATED = event("c", after={"id": 1, "note": "a"})
DELETED = event("d", before={"id": 1, "note": "a"})
TOMBSTONE = Record(topic="shop.orders", key=CREATED.key, key_schema=KEY)


def unwrapped(record: Record, **config: str) -> Record | None:
    """Unwrap a record; keys are written with underscores for dots."""
    props = {key.replace("_", "."): text for key, text in config.items()}
    return CLASSES[NAME].make(props)(record)


def row_of(record: Record | None) -> Any:
    assert record is not None
    return None if record.value is None else record.value.values


def test_a_change_becomes_its_row() -> None:
    found = unwrapped(CREATED)

    assert row_of(found) == {"id": 1, "note": "a"}
    assert found is not None
    assert found.value_schema is not None
    assert found.value_schema.name == "orders.Value"
    assert found.key == CREATED.key


@pytest.mark.parametrize(
    ("mode", "deleted", "has_tombstone"),
    [
        ("drop", "left out", False),
        ("tombstone", None, False),
        ("delete-to-tombstone", None, False),
        ("rewrite", {"id": 1, "note": "a", "__deleted": "true"}, False),
        ("rewrite-with-tombstone", {"id": 1, "note": "a", "__deleted": "true"}, True),
    ],
)
def test_a_deletion_and_its_tombstone_become_what_the_mode_says(
    mode: str, deleted: Any, has_tombstone: bool
) -> None:
    told = unwrapped(DELETED, delete_tombstone_handling_mode=mode)
    tombstone = unwrapped(TOMBSTONE, delete_tombstone_handling_mode=mode)

    assert ("left out" if told is None else row_of(told)) == deleted
    assert (tombstone is not None) == has_tombstone


def test_rows_that_are_there_say_so_where_deletions_are_rewritten() -> None:
    found = unwrapped(CREATED, delete_tombstone_handling_mode="rewrite")

    assert row_of(found)["__deleted"] == "false"


@pytest.mark.parametrize(
    ("drops", "deletes", "deleted", "has_tombstone"),
    [
        (None, "rewrite", {"id": 1, "note": "a", "__deleted": "true"}, False),
        ("false", "rewrite", {"id": 1, "note": "a", "__deleted": "true"}, True),
        ("true", "none", None, False),
        ("true", None, "left out", False),
    ],
)
def test_keys_of_older_versions_mean_what_they_meant(
    drops: str | None, deletes: str | None, deleted: Any, has_tombstone: bool
) -> None:
    told = {"drop.tombstones": drops, "delete.handling.mode": deletes}
    transform = CLASSES[NAME].make({key: text for key, text in told.items() if text is not None})

    found = transform(DELETED)

    assert ("left out" if found is None else row_of(found)) == deleted
    assert (transform(TOMBSTONE) is not None) == has_tombstone


def test_old_and_new_keys_together_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"leave drop\.tombstones out"):
        unwrapped(CREATED, drop_tombstones="false", delete_tombstone_handling_mode="rewrite")


def test_fields_and_headers_tell_of_the_event() -> None:
    found = unwrapped(CREATED, add_fields="op,table,source.ts_ms,ts_ms:told,nope", add_headers="op")

    told = {"__op": "c", "__table": "orders", "__source_ts_ms": 7, "__told": 8}
    assert row_of(found) == {"id": 1, "note": "a", **told}
    assert found is not None
    optional = Schema(type=Type.STRING, is_optional=True)
    assert found.headers == (Header(name="__op", value="c", schema=optional),)


def test_a_field_can_name_the_topic() -> None:
    found = unwrapped(CREATED, route_by_field="note")

    assert found is not None
    assert found.topic == "a"


def test_a_topic_is_no_number() -> None:
    with pytest.raises(DataError, match="not of type STRING"):
        unwrapped(CREATED, route_by_field="id")


def test_a_header_lists_fields_to_leave_out() -> None:
    listed = event(
        "c",
        after={"id": 1, "note": "a"},
        headers=(Header(name="drop", value=["id", "note"]),),
    )

    kept = unwrapped(listed, drop_fields_header_name="drop")
    bare = unwrapped(
        listed,
        drop_fields_header_name="drop",
        drop_fields_keep_schema_compatible="false",
        drop_fields_from_key="true",
    )

    # A field that others rely on stays, unless compatibility is waived.
    assert row_of(kept) == {"id": 1}
    assert row_of(bare) == {}
    assert bare is not None
    assert bare.key.values == {}


def test_truncations_are_left_out_and_other_records_pass() -> None:
    other = Record(topic="t", value={"a": 1})

    truncation = event("t")
    assert unwrapped(truncation) is None
    assert unwrapped(truncation, truncate_handling_mode="keep") == truncation
    assert unwrapped(other) is other
