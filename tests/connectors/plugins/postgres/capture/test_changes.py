"""Messages become records with offsets behind which nothing is missing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from connectors.plugins.postgres.capture.catalog import Captured
from connectors.plugins.postgres.capture.changes import Changes
from connectors.plugins.postgres.capture.events import Events
from connectors.plugins.postgres.capture.pgoutput import BadMessage, Payload, Relation
from connectors.plugins.postgres.capture.positions import Position
from connectors.plugins.postgres.capture.relations import Column, DataType, Operation, Table
from connectors.sdk.records import SourceRecord
from tests.connectors.plugins.postgres.capture import frames
from tests.connectors.plugins.postgres.capture.frames import at
from tests.connectors.plugins.postgres.capture.rows import SETTINGS

TEXT = DataType(oid=25, name="text")
A, B, HIDDEN = 1, 2, 3
START = Position(committed=100)
DESCRIBED = [
    at(0, frames.relation(A, "a", "id", "note")),
    at(0, frames.relation(B, "b", "id", "note")),
    at(0, frames.relation(HIDDEN, "hidden", "id")),
]
# Two transactions, with a change of a table that is not captured in between.
LOG = [
    at(110, frames.begin(150)),
    *DESCRIBED,
    at(110, frames.insert(A, "1", "x")),
    at(120, frames.insert(A, "2", "x")),
    at(120, frames.insert(A, "3", "x")),
    at(130, frames.delete(A, "1", None)),
    at(160, frames.commit(150, 160)),
    at(170, frames.begin(180)),
    at(170, frames.insert(HIDDEN, "9")),
    at(190, frames.commit(180, 190)),
    at(200, frames.begin(220)),
    at(200, frames.insert(B, "1", None)),
    at(210, frames.update(B, "1", "y")),
    at(230, frames.commit(220, 230)),
]


def describe(relation: Relation) -> Captured | None:
    if relation.name == "hidden":
        return None
    columns = tuple(Column(name=one.name, type=TEXT, is_key=one.is_key) for one in relation.columns)
    table = Table(schema=relation.schema, name=relation.name, columns=columns)
    return Captured(table=table, width=len(columns))


def changes(position: Position = START, **settings: Any) -> Changes:
    events = Events(replace(SETTINGS, **settings))
    return Changes(events, describe, place={"server": "p"}, position=position)


def read(reader: Changes, log: Sequence[Payload]) -> list[SourceRecord]:
    return [record for payload in log for record in reader.take(payload, now_ns=0)]


def shown(record: SourceRecord) -> tuple[str, str, str | None]:
    value = record.value
    return record.topic, record.key.values["id"], None if value is None else value.values["op"]


def test_changes_of_captured_tables_are_told_in_their_order() -> None:
    reader = changes()

    told = read(reader, LOG)

    assert [shown(record) for record in told] == [
        ("p.public.a", "1", "c"),
        ("p.public.a", "2", "c"),
        ("p.public.a", "3", "c"),
        ("p.public.a", "1", "d"),
        ("p.public.a", "1", None),
        ("p.public.b", "1", "c"),
        ("p.public.b", "1", "u"),
    ]
    assert reader.position == Position(committed=230)


def test_the_last_record_of_a_transaction_has_the_offset_behind_it() -> None:
    offsets = [Position.of(record.source_offset) for record in read(changes(), LOG)]

    assert [one and (one.committed, one.transaction) for one in offsets] == [
        (100, 150),
        (100, 150),
        (100, 150),
        (100, 150),
        (160, None),
        (190, 220),
        (230, None),
    ]


def test_behind_any_record_nothing_is_missing_and_little_is_repeated() -> None:
    whole = read(changes(), LOG)
    for cut, record in enumerate(whole, 1):
        position = Position.of(record.source_offset)
        assert position is not None, "each record has an offset"
        # A server sends what is committed behind the position, whole.
        begins = [index for index, one in enumerate(LOG) if one.body[:1] == b"B"]
        first = next(
            (
                index
                for index in begins
                if next(one.lsn for one in LOG[index:] if one.body[:1] == b"C") > position.committed
            ),
            len(LOG),
        )
        again = read(changes(position), [*DESCRIBED, *LOG[first:]])

        left = whole[cut:]
        kept = [shown(one) for one in again][len(again) - len(left) :]
        assert kept == [shown(one) for one in left]
        # What one record of the log holds comes again whole.
        assert len(again) - len(left) <= 2


def test_a_transaction_that_was_delivered_is_passed_over() -> None:
    assert read(changes(Position(committed=500)), LOG) == []


def test_what_the_server_has_passed_moves_the_position_between_transactions_only() -> None:
    reader = changes()

    reader.passed(300)
    assert reader.position.committed == 300
    reader.take(at(310, frames.begin(350)), now_ns=0)
    reader.passed(400)

    assert reader.position.committed == 300
    assert not reader.is_between


def test_truncations_are_told_where_they_are_asked_for() -> None:
    log = [
        at(110, frames.begin(150)),
        *DESCRIBED,
        at(110, frames.truncate(A, HIDDEN, B)),
        at(160, frames.commit(150, 160)),
    ]

    assert read(changes(), log) == []
    told = read(changes(skipped=frozenset[Operation]()), log)
    assert [(one.topic, one.value.values["op"]) for one in told] == [
        ("p.public.a", "t"),
        ("p.public.b", "t"),
    ]


def test_a_table_that_changes_is_told_with_its_new_columns() -> None:
    log = [
        at(110, frames.begin(150)),
        *DESCRIBED,
        at(110, frames.insert(A, "1", "x")),
        at(120, frames.relation(A, "a", "id", "note", "more")),
        at(130, frames.insert(A, "2", "x", "z")),
        at(160, frames.commit(150, 160)),
    ]

    told = read(changes(), log)

    assert [one.value["after"].values for one in told] == [
        {"id": "1", "note": "x"},
        {"id": "2", "note": "x", "more": "z"},
    ]


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ([at(1, frames.insert(A, "1", "x"))], "outside of a transaction"),
        ([at(1, frames.commit(1, 2))], "ends no transaction"),
        (
            [at(110, frames.begin(150)), at(110, frames.insert(7, "1"))],
            "relation 7 without a relation message",
        ),
        (
            [at(110, frames.begin(150)), *DESCRIBED, at(110, frames.insert(A, "1"))],
            "has 1 columns, and the table has 2",
        ),
    ],
)
def test_messages_that_contradict_each_other_are_told(log: list[Payload], words: str) -> None:
    with pytest.raises(BadMessage, match=words):
        read(changes(), log)
