"""Groups as people read them."""

import pytest

from cli.group_tables import assigned, rows_of, spelled
from gateway.kafka.values import Group, GroupState, GroupType, Member, PartitionLag, Place

HOUR_MS = 3_600_000


def member(name: str, *places: Place) -> Member:
    return Member(id=name, client_id="c", host="/h", instance_id=None, assignment=places)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (None, None),
        (0, "0s"),
        (1, "0.1s"),
        (449, "0.4s"),
        (12_399, "12.3s"),
        (59_999, "59.9s"),
        (60_000, "1m00s"),
        (185_000, "3m05s"),
        (HOUR_MS - 1, "59m59s"),
        (5 * HOUR_MS + 420_000, "5h07m"),
        (76 * HOUR_MS, "3d04h"),
    ],
)
def test_a_span_of_time_is_spelled_for_people(ms: int | None, text: str | None) -> None:
    assert spelled(ms) == text


def test_a_row_is_what_is_committed_or_assigned_or_both() -> None:
    zero, one, two = (Place(topic="orders", partition=index) for index in range(3))
    reader = member("m", one, two)
    group = Group(
        name="g",
        state=GroupState.STABLE,
        type=GroupType.CLASSIC,
        assignor="range",
        coordinator=1,
        members=(reader,),
    )
    lags = [
        PartitionLag(group=name, place=place, committed=3, end=5, records=2, ms=1000)
        for name, place in [("g", zero), ("g", one), ("other", two)]
    ]

    rows = rows_of(group, lags)

    assert [row.place for row in rows] == [zero, one, two]
    assert [row.owner for row in rows] == [None, reader, reader]
    assert [row.lag is None for row in rows] == [False, False, True]
    assert rows[1].cells() == ("g", "orders", 1, 3, 5, 2, "1.0s", "m", "/h", "c")


def test_an_assignment_is_written_as_kafkas_tool_writes_it() -> None:
    places = [Place(topic="a", partition=0), Place(topic="a", partition=2)]

    assert assigned(member("m", *places, Place(topic="b", partition=1))) == "a(0,2), b(1)"
    assert assigned(member("m")) is None
